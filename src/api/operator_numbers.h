//----------------------------------------------------------------------------------------------------------------------
//  >>api:op_id      the built-in operators by number
//----------------------------------------------------------------------------------------------------------------------

/* In the order of the declarations.  Another version may have other numbers. */
typedef enum opd_op_id {
#include "operator_numbers.printed.h"
} opd_op_id;
/* The handle of a built-in operator. */
OPD_API opd_op *opd_op_builtin(opd_op_id id);
#ifdef __cplusplus
}
#endif

