#include "autograd.h"

//== nodes that a program records ======================================================================================

/* Checks the arguments of opd_autograd_record.  If an input requires grad, makes the node and makes it the history of
   the results.  A saved tensor may also be a result.  Returns 0, or -1 and sets an error. */
static int opdi_record_manually(const char *name, opd_backward_fn backward, opd_tensor *const *inputs, int ninputs,
                                opd_tensor *const *saved, int nsaved, const opd_value *values, int nvalues,
                                opd_tensor *const *results, int nresults) {
    bool wanted = false;
    if (!opd_ok()) { return -1; }
    if (!name || !backward || ninputs < 0 || nsaved < 0 || nvalues < 0 || nsaved + nvalues > 255 || nresults < 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_autograd_record: a name, a backward function and a result are needed, "
                        "and at most 255 saved tensors and values are allowed");
    }
    if ((ninputs && !inputs) || (nsaved && !saved) || (nvalues && !values) || !results) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_autograd_record: an array is NULL");
    }
    for (int i = 0; i < nvalues; i++) {
        if (values[i].tag == OPD_TAG_TENSOR && !values[i].u.t) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_autograd_record: value %d is a NULL tensor", i);
        }
    }
    for (int i = 0; i < ninputs && !opdi_self()->state.no_grad; i++) {
        if (inputs[i] && opdi_refresh(inputs[i])) { return -1; }
        wanted = wanted || opdi_requires_grad(inputs[i]);
    }
    if (!wanted) { return 0; }
    for (int i = 0; i < nresults; i++) {
        if (results[i] && (results[i]->flags & OPDI_REQUIRES_GRAD)) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "opd_autograd_record: result %d already requires grad; call the "
                            "operator below the Autograd keys", i);
        }
    }
    for (int i = 0; i < nsaved * nsaved; i++) {
        int first = i / nsaved, second = i % nsaved;
        if (first < second && saved[first] && saved[first] == saved[second]) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_autograd_record: saved tensors %d and %d are the same tensor",
                            first, second);
        }
    }
    const opdi_derivative *formula = opdi_manual_formula(name, backward, false, false);
    opd_node *node = formula ? opdi_node_make(formula, ninputs, nsaved + nvalues, 0, results, nresults, 0) : NULL;
    if (!node) { return -1; }
    for (int i = 0; i < ninputs; i++) { opdi_edge_to(&opdi_edges(node)[i], inputs[i]); }
    for (int i = 0; i < nsaved; i++) {
        const opd_value value = opd_value_tensor(saved[i]);
        int k;
        for (k = 0; k < nresults && saved[i] != results[k]; k++) { }
        if (saved[i] && k < nresults) { opdi_kept(node)[i] = opdi_keep_result(saved[i]); }
        else if (saved[i] && opdi_keep_value(&opdi_kept(node)[i], &value, true)) {
            opdi_node_release(node);
            return -1;
        }
        node->saved = OPDI_SAVED;
    }
    for (int i = 0; i < nvalues; i++) {
        if (opdi_keep_value(&opdi_kept(node)[nsaved + i], &values[i], true)) {
            opdi_node_release(node);
            return -1;
        }
    }
    for (int i = 0; i < nresults; i++) { opdi_attach(results[i], node, i); }
    for (int i = 0; i < nsaved; i++) {            /* a saved tensor that is also a result must not form a cycle of
                                                     references */
        if (saved[i] && saved[i]->grad_fn == node) { saved[i]->own |= OPDI_SAVED_BY_OWN; }
    }
    int i = opdi_self()->innermost.packer ? opdi_node_pack(node) : 0;
    opdi_node_release(node);
    return i;
}

int opd_autograd_record(const char *name, opd_backward_fn backward, opd_tensor *const *inputs, int ninputs,
                        opd_tensor *const *saved, int nsaved, const opd_value *values, int nvalues,
                        opd_tensor *const *results, int nresults) {
    const opd_value list = opd_value_tensors(inputs, ninputs);
    int rc = opdi_any_dead(inputs, ninputs, "opd_autograd_record") ||
        opdi_any_dead(saved, nsaved, "opd_autograd_record") ||
        opdi_any_dead(results, nresults, "opd_autograd_record") ||
        opdi_any_dead_value(values, nvalues, "opd_autograd_record") ? -1
        : opdi_record_manually(name, backward, inputs, ninputs, saved, nsaved, values, nvalues, results, nresults);
    if (rc || opdi_self()->state.forward != OPDI_FORWARD_OPEN || !opdi_level_of(&list, 1)) { return rc; }
    const opdi_derivative *formula = opdi_manual_formula(name, backward, false, false);
    if (!formula) { return -1; }
    return OPDI_ACQUIRE(&opdi_on_forward)->record(formula, inputs, ninputs, saved, nsaved, values, nvalues, results,
                                                  nresults);
}
