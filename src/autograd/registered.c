#include "autograd.h"

//== backward functions that a program registers for operators =========================================================

/* A backward function that was registered by opd_autograd_register.  The first recorded call makes its opdi_card,
   because the operator may be defined or redefined after the registration. */
typedef struct opdi_late_formula { opd_op_desc desc; opdi_card *card; opd_kernel kernel; } opdi_late_formula;

static void opdi_late_formula_free(void *formula) { opdi_free(formula, sizeof(opdi_late_formula)); }

OPDI_NOINLINE static opdi_card *opdi_late_formula_card(opdi_late_formula *formula, opd_op *op) {
    opdi_card *card = opdi_check_functional(op) ? NULL : opdi_card_new(op, &formula->desc, NULL, false, false);
    if (card) { OPDI_PUBLISH(&formula->card, card); }
    return card;
}
/* The autograd kernel of a backward function that was registered by opd_autograd_register.  Makes the opdi_card if the
   operator is new or has changed, and records the call. */
OPDI_INTERNAL int opdi_autograd_registered(opd_call *call) {
    opdi_late_formula *formula = (opdi_late_formula *)call->user;
    opdi_card *card = OPDI_ACQUIRE(&formula->card);
    const opd_op *op = call->op;
    if (OPDI_UNLIKELY(!card || card->nargs != op->nargs || card->tensor_args != op->tensor_args ||
                      card->list_args != op->list_args) && !(card = opdi_late_formula_card(formula, call->op))) {
        return -1;
    }
    call->user = card;
    return formula->kernel(call);
}
static int opdi_no_setup(opd_context *ctx) {
    (void)ctx;
    return 0;
}

/* Registers a backward function as a kernel at Autograd, which owns the opdi_late_formula.  The operator may be defined
   later.  Returns 0, or -1 and sets an error. */
int opd_autograd_register(opd_library *lib, const char *name, opd_backward_fn backward, opd_setup_fn setup_context) {
    char qualified[256];
    if (!opdi_library_usable(lib, "opd_autograd_register")) { return -1; }
    if (!name || !backward) {
        return opd_fail(OPD_ERROR_REGISTER, "opd_autograd_register: the %s is NULL",
                        name ? "backward function" : "name");
    }
    if (opdi_check_name(name) || opdi_qualify(lib, name, "operator name", qualified, sizeof qualified)) {
        return opdi_library_error(lib);
    }
    if (OPDI_LEAN_CHECK(lib, qualified, "opd_autograd_register")) { return opdi_library_error(lib); }
    opdi_builtins_make(qualified);
    opd_op *op = opdi_lookup(qualified, strlen(qualified));
    if (!opd_ok() || (op && opdi_is_defined(op) && opdi_check_functional(op))) { return opdi_library_error(lib); }
    opdi_late_formula *formula = (opdi_late_formula *)opdi_alloc(sizeof *formula);
    if (!formula) { return opdi_library_error(lib); }
    memset(formula, 0, sizeof *formula);
    formula->desc.backward = backward;
    formula->desc.setup_context = setup_context ? setup_context : opdi_no_setup;
    formula->kernel = opdi_autograd_kernel;
    if (opdi_impl_at(lib, qualified, OPD_KEY_AUTOGRAD, opdi_autograd_registered, formula, opdi_late_formula_free) ==
        0) {
        return 0;
    }
    opdi_late_formula_free(formula);
    return opdi_library_error(lib);
}
