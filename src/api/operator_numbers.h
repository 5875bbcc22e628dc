//----------------------------------------------------------------------------------------------------------------------
//  >>api:op_id      the built-in operators by number
//----------------------------------------------------------------------------------------------------------------------

/* In the order of the declarations.  Another version may have other numbers. */
typedef enum opd_op_id {
#include "operator_numbers.printed.h"
} opd_op_id;
/* The handle of a built-in operator. */
OPD_API opd_op *opd_op_builtin(opd_op_id id);
/* Keeps a built-in operator in a program with OPD_LEAN that asks for it by its name or number: OPD_KEEP(conv2d) before
   opd_find("aten::conv2d").  The argument is the name behind OPD_OP_; torchvision and collectives keep those operators.
   Needs no call where the program calls a typed function, opd_conv2d, and does nothing without OPD_LEAN. */
#if defined(OPD_LEAN) && !defined(OPDISPATCH_PLUGIN)
#define OPD_KEEP(card) OPDI_NEEDS(card)
#else
#define OPD_KEEP(card) ((void)0)
#endif
#ifdef __cplusplus
}
#endif

