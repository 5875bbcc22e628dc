//----------------------------------------------------------------------------------------------------------------------
//  >>api:op_id      the built-in operators by number
//----------------------------------------------------------------------------------------------------------------------

/* In the order of the declarations; the numbers are those of one version. */
typedef enum opd_op_id {
#include "operator_numbers.printed.h"
} opd_op_id;
#ifdef __cplusplus
}
#endif

