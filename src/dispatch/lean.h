#include "dispatch.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>lean         the built-in operators that a program with OPD_LEAN keeps
//
//  A whole program has a list of all cards. With OPD_LEAN nothing lists them, so that the compiler drops the operators
//  that the program does not reach. Whoever calls an operator by its name or number therefore names its card:
//
//    OPDI_NAME(add_Tensor, "aten::add_.Tensor")  the name, of a form that the card add_Tensor has
//    OPDI_BY_NUMBER(add_Tensor)                  the number, OPD_OP_add_Tensor
//    OPDI_NEEDS(add_Tensor)                      nothing: the name or number comes from elsewhere
//
//  With OPD_LEAN each of them notes the card, and a look-up finds the cards that are noted. Typed functions do, too.
//----------------------------------------------------------------------------------------------------------------------

#if defined(OPD_LEAN)
typedef struct opdi_lean_card {
    int number;                                   /* an opd_op_id, or OPD_OP_COUNT + OPDI_EXTRA_... */
    const char *name;
    void (*card)(opd_op_desc *op);                /* NULL: a macro left the operator out, or it is a namespace */
    int (*all)(void);                             /* of a namespace: registers its operators */
    const char *macro;                            /* what left the operator out */
} opdi_lean_card;

#include "lean_cards.printed.h"

static int opdi_register_vision(void);
static int opdi_register_collectives(void);
static const OPD_UNUSED opdi_lean_card opdi_kept_torchvision = {
    OPD_OP_COUNT + OPDI_EXTRA_VISION, "torchvision", NULL, opdi_register_vision, NULL};
static const OPD_UNUSED opdi_lean_card opdi_kept_collectives = {
    OPD_OP_COUNT + OPDI_EXTRA_COLLECTIVES, "collectives", NULL, opdi_register_collectives, NULL};

/* The linker refuses two files that define OPD_LEAN in one program: each would have a library of its own. */
#if defined(__cplusplus)
extern "C" { int only_one_file_of_a_program_may_define_OPD_LEAN = 1; }
#else
int only_one_file_of_a_program_may_define_OPD_LEAN = 1;
#endif

/* What is noted so far, by number. */
static const opdi_lean_card *opdi_lean_cards[OPD_OP_COUNT + OPDI_EXTRAS];

/* Notes a card, and returns name. */
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
/* Notes every card, for what may call any operator: a program, a script, a plug-in. */
static void opdi_lean_all(void) {
#define OPDI_LEAN_CARD(card, name) &opdi_kept_##card,
    static const opdi_lean_card *const all[] = {OPDI_LEAN_CARDS &opdi_kept_torchvision, &opdi_kept_collectives};
#undef OPDI_LEAN_CARD
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) { (void)opdi_lean_note(all[i], NULL); }
}
#define OPDI_NAME(card, name) opdi_lean_note(&opdi_kept_##card, name)
#define OPDI_BY_NUMBER(card) opdi_lean_number(&opdi_kept_##card)
#define OPDI_NEEDS(card) ((void)opdi_lean_note(&opdi_kept_##card, NULL))
#define OPDI_NEEDS_ALL() opdi_lean_all()
#else
#define OPDI_NAME(card, name) name
#define OPDI_BY_NUMBER(card) OPD_OP_##card
#define OPDI_NEEDS(card) ((void)0)
#define OPDI_NEEDS_ALL() ((void)0)
#endif

