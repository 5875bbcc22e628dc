//----------------------------------------------------------------------------------------------------------------------
//  >>api:op_id      the built-in operators by number
//----------------------------------------------------------------------------------------------------------------------

/* Numbers of the built-in operators, in the order of their declarations.  Other versions of the library may have other
   numbers. */
typedef enum opd_op_id {
#include "operator_numbers.printed.h"
} opd_op_id;
/* Returns the handle of a built-in operator. */
OPD_API opd_op *opd_op_builtin(opd_op_id id);
/* A program of one file may define OPD_LEAN before it includes the implementation.  The program then contains only the
   built-in operators whose functions (such as opd_conv2d) it calls, and the operators that these call in turn.  Such a
   program compiles in a quarter of the time and has a sixth of the code.  If the program calls a function which may
   call any operator (opd_program_load, opd_graph_call, opd_overloads_find, opd_library_load, ...), it contains all
   operators.  opd_op_next, dumps and listeners know only the operators that were called or kept so far.
   The statement OPD_KEEP(name) keeps a built-in operator.  Execute the statement before the program looks up the
   operator by name or number, or registers a kernel for the operator: OPD_KEEP(conv2d); opd_find("aten::conv2d").  name
   is the constant of opd_op_id without OPD_OP_.  OPD_KEEP(torchvision) and OPD_KEEP(collectives) keep all operators of
   these groups.  Without OPD_LEAN, OPD_KEEP does nothing.  Any thread may execute the statement. */
#if defined(OPD_LEAN) && !defined(OPDISPATCH_PLUGIN)
#define OPD_KEEP(card) OPDI_NEEDS(card)
#else
#define OPD_KEEP(card) ((void)0)
#endif
#ifdef __cplusplus
}
#endif

