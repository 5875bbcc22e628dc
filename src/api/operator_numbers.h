//----------------------------------------------------------------------------------------------------------------------
//  >>api:op_id      the built-in operators by number
//----------------------------------------------------------------------------------------------------------------------

/* Numbers of the built-in operators, in the order of their declarations.  Another version may have other numbers. */
typedef enum opd_op_id {
#include "operator_numbers.printed.h"
} opd_op_id;
/* Returns the handle of a built-in operator. */
OPD_API opd_op *opd_op_builtin(opd_op_id id);
/* OPD_LEAN, defined before the implementation in a program of one file, keeps only the built-in operators whose
   functions (opd_conv2d) the program calls, and the operators that those call.  The program then compiles in a fifth
   of the time and has a fifth of the code.  A program that calls a function which may call any operator
   (opd_program_load, opd_graph_call, opd_overloads_find, opd_library_load, ...) keeps all operators.  opd_op_next,
   dumps, listeners and opd_schema_is_nondeterministic know only the operators that were called or kept so far.
   OPD_KEEP(name) is a statement that keeps an operator which the program looks up by name or number, or registers a
   kernel for: OPD_KEEP(conv2d) before opd_find("aten::conv2d").  The argument is the name after OPD_OP_.  The arguments
   torchvision and collectives keep all operators of those groups.  Without OPD_LEAN, OPD_KEEP does nothing.  Any
   thread. */
#if defined(OPD_LEAN) && !defined(OPDISPATCH_PLUGIN)
#define OPD_KEEP(card) OPDI_NEEDS(card)
#else
#define OPD_KEEP(card) ((void)0)
#endif
#ifdef __cplusplus
}
#endif

