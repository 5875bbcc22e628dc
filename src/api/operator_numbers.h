//----------------------------------------------------------------------------------------------------------------------
//  >>api:op_id      the built-in operators by number (may change)
//----------------------------------------------------------------------------------------------------------------------

/* Numbers of the built-in operators, in the order of their declarations.  Other versions of the library may have other
   numbers. */
typedef enum opd_op_id {
#include "operator_numbers.printed.h"
} opd_op_id;
/* Returns the handle of a built-in operator. */
OPD_NEW opd_op *opd_op_builtin(opd_op_id id);
/* The cards of the built-in operators and their names, in the order of opd_op_id. */
#include "card_lists.printed.h"
/* A library that is compiled with OPD_LEAN has no list of all built-in operators, so that a program can do without the
   operators that it does not use.  There are two ways:
   - The library is compiled once, and the linker drops what the program does not use.  Compile the implementation with
     OPD_LEAN and with a section for each function, link with the option that drops unused sections, and define OPD_LEAN
     in the files of the program, too:
       cc -O2 -DOPD_LEAN -DOPDISPATCH_IMPLEMENTATION -ffunction-sections -fdata-sections -x c -c opdispatch.h -o lean.o
       cc -O2 -DOPD_LEAN program.c lean.o -Wl,--gc-sections -o program -lm         (macOS: -Wl,-dead_strip)
   - A program of one file compiles the implementation, too, with OPD_LEAN and OPD_STATIC: the compiler drops what is
     not used.  This takes a quarter of the time that the whole library takes.
   Either way, the program contains the built-in operators whose functions (such as opd_conv2d) it calls, and the
   operators that these call in turn.  If the program calls a function which may call any operator (opd_program_load,
   opd_graph_call, opd_overloads_find, opd_plugin_load, ...), it contains all operators.  opd_op_next, dumps and
   listeners know only the operators that were called or kept so far.
   The statement OPD_KEEP(name) keeps a built-in operator.  Execute the statement before the program looks up the
   operator by name or number, or registers a kernel for the operator: OPD_KEEP(conv2d); opd_find("aten::conv2d").  name
   is the constant of opd_op_id without OPD_OP_.  OPD_KEEP(torchvision), OPD_KEEP(quantized) and
   OPD_KEEP(collectives) keep all operators of these groups (quantized: the namespaces quantized_decomposed, torchao,
   onednn and transformers).  If the library is compiled without OPD_LEAN, OPD_KEEP does nothing.  Any thread may
   execute the statement. */
#if defined(OPDISPATCH_PLUGIN)
#define OPD_KEEP(card) ((void)0)
#elif !defined(OPD_LEAN)
#define OPD_KEEP(card) opdi_keep_needs_lean(#card)
#elif defined(OPD_STATIC)
#define OPD_KEEP(card) OPDI_NEEDS(card)
#else
#define OPD_KEEP(card) opdi_keep_operator(&opdi_kept_##card)
#endif
#if defined(OPD_LEAN)
typedef struct opdi_lean_card opdi_lean_card;     /* a built-in operator, as the table of the kept operators has it */
#if !defined(OPD_STATIC) && !defined(OPDISPATCH_PLUGIN)
#define OPDI_CARD(card, name) extern const opdi_lean_card opdi_kept_##card;
OPDI_CARDS
#undef OPDI_CARD
extern const opdi_lean_card opdi_kept_torchvision, opdi_kept_quantized, opdi_kept_collectives;
#endif
#if !defined(OPDISPATCH_PLUGIN)
OPD_NEW void opdi_keep_operator(const opdi_lean_card *card);        /* what OPD_KEEP does */
#endif
#endif
#if !defined(OPDISPATCH_PLUGIN)
/* What OPD_KEEP does in a file without OPD_LEAN: sets an error if the library is compiled with OPD_LEAN, because the
   linker did not see that the program needs this operator. */
OPD_NEW void opdi_keep_needs_lean(const char *name);
#endif
#ifdef __cplusplus
}
#endif
