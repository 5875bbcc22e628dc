//----------------------------------------------------------------------------------------------------------------------
//  >>api:op_id      the built-in operators by number
//----------------------------------------------------------------------------------------------------------------------

/* In the order of the declarations.  Another version may have other numbers. */
typedef enum opd_op_id {
#include "operator_numbers.printed.h"
} opd_op_id;
/* The handle of a built-in operator. */
OPD_API opd_op *opd_op_builtin(opd_op_id id);
/* OPD_LEAN, defined before the implementation in a program of one file, keeps only the built-in operators whose
   functions (opd_conv2d) the program calls, with all that those call: a fifth of the time to compile and of the code.
   OPD_KEEP is a statement that keeps an operator which the program asks for by its name or number: OPD_KEEP(conv2d)
   before opd_find("aten::conv2d").  Its argument is the name behind OPD_OP_, or torchvision or collectives for all of
   those.  opd_op_next, dumps and opd_overloads know the operators that were called or kept so far.  A program that
   calls a function which loads programs, scripts, graphs or plug-ins keeps all operators.  Without OPD_LEAN OPD_KEEP
   does nothing.  Any thread. */
#if defined(OPD_LEAN) && !defined(OPDISPATCH_PLUGIN)
#define OPD_KEEP(card) OPDI_NEEDS(card)
#else
#define OPD_KEEP(card) ((void)0)
#endif
#ifdef __cplusplus
}
#endif

