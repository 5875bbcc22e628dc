#include "autograd.h"

//== CopySlices: writes into views =====================================================================================
//
//  When a view is written, its base gets a CopySlices node, which contains the node of the operator that writes.

/* Returns the base of the batched view `tensor`, without history.  `meta` has the base's sizes and dtype (see
   opdi_node_meta), and `at` describes the view (see opdi_slice_pack).  Returns a reference, or NULL and sets an
   error. */
static opd_tensor *opdi_slices_batched_base(opd_tensor *tensor, const int64_t *meta, const int64_t *at) {
    const int ndim = opdi_meta_ndim(meta);
    const size_t bytes = (size_t)ndim * sizeof *at;
    int64_t back[OPDI_MAX_SLICE];                 /* describes the base, seen from the view */
    opdi_rule_frame was;
    uint64_t keys = (uint64_t)at[1] & OPDI_LAZY_KEYS;
    back[2] = -at[2];
    memcpy(back + 3, meta + 1, bytes);
    memcpy(back + 3 + ndim, at + 3 + 2 * at[0], bytes);
    if (opdi_untaped_begin(tensor, &was)) { return NULL; }
    if ((keys & OPD_BIT_OF(OPD_F_CONJUGATE)) && opdi_is_complex(tensor)) {
        /* the last step from the base to the view is undone first */
        tensor = opd_conj_view(tensor);
        keys &= ~OPD_BIT_OF(OPD_F_CONJUGATE);
    }
    if (tensor && (keys & OPD_BIT_OF(OPD_F_NEGATIVE))) {
        tensor = opd__neg_view(tensor);
        keys &= ~OPD_BIT_OF(OPD_F_NEGATIVE);
    }
    back[0] = ndim;
    back[1] = (int64_t)((uint64_t)opdi_meta_dtype(meta) | keys);
    opd_tensor *part = tensor ? opdi_slice_of(tensor, back) : NULL;
    opdi_untaped_end(&was);
    return part ? opdi_shallow_copy(part) : NULL;
}
/* Returns `tensor`, the saved result of a write into a view, with a history that shows it as a view of the base after
   the write.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_slices_result(opd_backward_call *bw, opd_tensor *tensor) {
    const int64_t *meta = opdi_node_meta(bw->base, 0), *at = opdi_kept(bw->base)[1].u.ints;
    const int ndim = opdi_meta_ndim(meta);
    opd_tensor *base;
    if (tensor->flags & OPDI_BATCHED) {
        base = opdi_slices_batched_base(tensor, meta, at);
    } else {
        base = opdi_tensor_on(tensor->storage, tensor->data ? tensor->data - at[2] : NULL, meta + 1, at + 3 + 2 * at[0],
                              ndim, opdi_meta_dtype(meta), tensor->backend);
        if (base) {
            opdi_share_storage(base, tensor);
            if (!tensor->data) { base->begin -= at[2]; }
            opdi_set_lazy(base, tensor->functionality ^ (uint64_t)at[1]);
        }
    }
    if (!base) { return NULL; }
    opdi_attach(base, bw->base, 0);
    opd_tensor *value = opdi_view_replay(tensor, base);
    opdi_drop(base);
    return value ? opdi_own(value) : NULL;
}

/* Runs a CopySlices node (see opdi_slices_make).  The gradient of the base is the incoming gradient, except for the
   part that belongs to the view.  That part is replaced by the gradient of the view before the write, which the
   backward function of the inner node computes.  `out` is an array for the inner node's gradients, filled with NULL.
   Returns 0, or -1 and sets an error. */
static int opdi_slices_run(opd_backward_call *bw, opd_tensor **out) {
    opd_node *node = opdi_slices_inner(bw->node);
    const int64_t *meta = opdi_node_meta(bw->node, 0), *at = opdi_kept(bw->node)[1].u.ints;
    const int ndim = opdi_meta_ndim(meta), edge = (int)opdi_edges(bw->node)[0].spare;
    opd_tensor *grads = opd_bw_grad(bw, 0), *grad;
    opd_backward_call in;
    opd_tensor *whole = opd_new_empty_strided(grads, opd_ints_of(meta + 1, ndim),
                                              opd_ints_of(at + 3 + 2 * at[0], ndim));
    opd_tensor *part = opd_copy_(whole, grads) ? opdi_slice_of(whole, at) : NULL;
    if (!(grad = opd_clone(part))) { return -1; }
    in.node = node;
    in.base = bw->node;
    in.result = opdi_slices_result;
    in.grads = &grad;
    in.out = out;
    in.plain = false;
    if (opdi_run_fn(&in)) {
        return opd_ok() ? opd_fail(OPD_ERROR_AUTOGRAD, "the backward function of %s failed without setting an error "
                                   "(opd_fail)", node->formula->name) : opdi_fail_more(" [in %s]", node->formula->name);
    }
    if (opd_bw_needs(bw, 0)) {
        grads = out[edge] ? opdi_validate(node, edge, out[edge]) : NULL;
        if (grads && OPDI_UNLIKELY(grads->flags & OPDI_BATCHED) && opdi_more_examples(grads, whole)) {
            whole = opdi_with_examples(whole, grads, opd_ints_of(at + 3 + 2 * at[0], ndim));
            part = whole ? opdi_slice_of(whole, at) : NULL;
        }
        if (!opd_ok() || !(grads ? opd_copy_(part, grads) : opd_zero_(part)) || opd_bw_return(bw, 0, whole)) {
            return -1;
        }
    }
    for (int i = 1; i < node->nedges; i++) {
        grads = out[i == edge ? 0 : i];
        if (opd_bw_return(bw, i, grads)) { return -1; }
    }
    return 0;
}
OPDI_INTERNAL int opdi_slices_bw(opd_backward_call *bw) {
    const int nedges = opdi_slices_inner(bw->node)->nedges;
    opd_tensor **out = (opd_tensor **)opdi_alloc((size_t)nedges * sizeof *out);
    if (!out) { return -1; }
    memset(out, 0, (size_t)nedges * sizeof *out);
    int rc = opdi_slices_run(bw, out);
    for (int i = 0; i < nedges; i++) {
        if (out[i]) { opdi_drop(out[i]); }
    }
    opdi_free(out, (size_t)nedges * sizeof *out);
    return rc;
}
OPDI_INTERNAL const opdi_derivative opdi_slices_formula = {
    "CopySlices", opdi_slices_bw, /* card, plugin */ NULL, NULL,
    /* context, once, fresh, real */ false, false, false, false};
