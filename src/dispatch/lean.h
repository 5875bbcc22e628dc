#include "dispatch.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>lean         the built-in operators that a program with OPD_LEAN keeps
//
//  A program normally has a list of the descriptors of all built-in operators.  With OPD_LEAN there is no such list, so
//  that the compiler (with OPD_STATIC) or the linker drops the operators that the program does not use.  Code that
//  calls an operator by its name or number therefore names its descriptor:
//
//    OPDI_NAME(add_Tensor, "aten::add_.Tensor")  the name, of a form that the descriptor add_Tensor has
//    OPDI_BY_NUMBER(add_Tensor)                  the number, OPD_OP_add_Tensor
//    OPDI_NEEDS(add_Tensor)                      nothing: the name or number comes from other code
//
//  With OPD_LEAN each of these macros adds the descriptor to a table, in which look-ups find it.  Typed functions do
//  this, too.
//----------------------------------------------------------------------------------------------------------------------

#if defined(OPD_LEAN)
struct opdi_lean_card {
    int number;                                   /* an opd_op_id; for a group: OPD_OP_COUNT + OPDI_EXTRA_... */
    const char *name;
    void (*card)(opd_op_desc *op);                /* fills in the descriptor; NULL: left out, or this is a group */
    int (*all)(void);                             /* for a group: registers its operators */
    const char *macro;                            /* the macro that left the operator out */
};

#if defined(OPD_STATIC)
#define OPDI_LEAN_CONST static const OPD_UNUSED
#else
#define OPDI_LEAN_CONST const                     /* files without the implementation refer to it: see OPD_KEEP */
#endif
#include "lean_cards.printed.h"

static int opdi_register_vision(void);
static int opdi_register_quantized(void);
static int opdi_register_collectives(void);
OPDI_LEAN_CONST opdi_lean_card opdi_kept_torchvision = {
    (int)OPD_OP_COUNT + (int)OPDI_EXTRA_VISION, "torchvision", NULL, opdi_register_vision, NULL};
OPDI_LEAN_CONST opdi_lean_card opdi_kept_quantized = {
    (int)OPD_OP_COUNT + (int)OPDI_EXTRA_QUANTIZED, "quantized", NULL, opdi_register_quantized, NULL};
OPDI_LEAN_CONST opdi_lean_card opdi_kept_collectives = {
    (int)OPD_OP_COUNT + (int)OPDI_EXTRA_COLLECTIVES, "collectives", NULL, opdi_register_collectives, NULL};

static bool opdi_lean_has_all;                    /* opdi_lean_all was called */
/* The descriptors added so far, by number. */
static const opdi_lean_card *opdi_lean_cards[(int)OPD_OP_COUNT + (int)OPDI_EXTRAS];

/* Adds a descriptor to the table, so that a look-up finds it, and returns `name`. */
static inline const char *opdi_lean_note(const opdi_lean_card *card, const char *name) {
    if (OPDI_UNLIKELY(!OPDI_LOAD(&opdi_lean_cards[card->number]))) {
        OPDI_STORE(&opdi_lean_cards[card->number], card);
    }
    return name;
}
static inline opd_op_id opdi_lean_number(const opdi_lean_card *card) {
    (void)opdi_lean_note(card, NULL);
    return (opd_op_id)card->number;
}
/* Adds all descriptors, for code that may call any operator: a program, a script, a plug-in. */
static void opdi_lean_all(void) {
#define OPDI_CARD(card, name) &opdi_kept_##card,
    static const opdi_lean_card *const all[] = {OPDI_CARDS &opdi_kept_torchvision, &opdi_kept_quantized,
                                                &opdi_kept_collectives};
#undef OPDI_CARD
    if (OPDI_LOAD(&opdi_lean_has_all)) { return; }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) { (void)opdi_lean_note(all[i], NULL); }
    OPDI_STORE(&opdi_lean_has_all, true);
}
#define OPDI_NAME(card, name) opdi_lean_note(&opdi_kept_##card, name)
#define OPDI_BY_NUMBER(card) opdi_lean_number(&opdi_kept_##card)
#define OPDI_NEEDS(card) ((void)opdi_lean_note(&opdi_kept_##card, NULL))
#define OPDI_NEEDS_ALL() opdi_lean_all()
/* Checks a registration by a library of the program for operator `name`.  If it is a built-in operator that is not
   kept, sets an error and returns -1, because the operator's kernels would be registered later and would run instead.
   Otherwise returns 0.  If `lib` is NULL, checks a question about the operator by the function `what`. */
static int opdi_lean_check(const opd_library *lib, const char *name, const char *what);
#define OPDI_LEAN_CHECK(lib, name, what) opdi_lean_check(lib, name, what)
#else
#define OPDI_LEAN_CHECK(lib, name, what) 0
#define OPDI_NAME(card, name) name
#define OPDI_BY_NUMBER(card) OPD_OP_##card
#define OPDI_NEEDS(card) ((void)0)
#define OPDI_NEEDS_ALL() ((void)0)
#endif

