#include "autograd.h"

//== views =============================================================================================================
//
//  A write into a view also changes its base, so the base gets a node for the write (CopySlices).
//
//  The history of a view is brought up to date when it is needed.  If the storage was written after the view got its
//  history, the view gets a new history, which starts from the history of its base.

OPDI_COLD_BEGIN
/* Why a view must not be written, by its `creation`. */
static const char *const opdi_view_reasons[] = {
    OPDI_TEXT(
        "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
        "code by moving both the view and the inplace either both inside the no_grad block (if you don't "
        "want the inplace to be tracked) or both outside (if you want the inplace to be tracked)."),
    OPDI_TEXT(
        "This view is the output of a function that returns multiple views. Such functions do not allow "
        "the output views to be modified inplace. You should replace the inplace operation by an "
        "out-of-place one."),
    OPDI_TEXT(
        "This view was created inside a custom Function (or because an input was returned as-is) and the "
        "autograd logic to handle view+inplace would override the custom backward associated with the "
        "custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix this "
        "by cloning the output of the custom Function."),
    OPDI_TEXT(
        "Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your "
        "code by moving both the view and the inplace either both inside the inference_mode block (if "
        "you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
        "tracked)."),
    OPDI_TEXT(
        "Mutating a view made by an operator which does not have a derivative implemented is forbidden.")};
/* Sets the error that a view must not be written, because of the way in which it was made (its `creation`).  If
   `indirect` is true, the program has not written the view itself: it uses the view after a write into the base or into
   another view of the base.  Returns -1. */
static int opdi_view_error(const opd_tensor *view, bool indirect) {
    const uint32_t creation = opdi_view_record_of(view)->creation;
    const bool inference = creation == OPDI_VIEW_INFERENCE, no_grad = creation == OPDI_VIEW_NO_GRAD || !view->grad_fn;
    const char *what = indirect ? "its base or another view of its base has been" : "is being";
    char head[160];
    if (view->grad_fn) {
        snprintf(head, sizeof head, "Output %u of %.99s", view->output_nr, view->grad_fn->formula->name);
    }
    if (!inference && !no_grad) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "%s is a view and %s modified inplace. %s", head, what,
                        opdi_view_reasons[creation - 1]);
    }
    return opd_fail(OPD_ERROR_AUTOGRAD, "%s%s created in %s mode and %s modified inplace %s. %s",
                    view->grad_fn ? head : "A view", view->grad_fn ? " is a view of a view which was" : " was",
                    inference ? "inference" : "no_grad", what, inference ? "in normal mode" : "with grad mode enabled",
                    opdi_view_reasons[creation - 1]);
}

OPDI_INTERNAL const opdi_pair_views *opdi_on_pairs;

/* Writes the geometry of `view` relative to `base` to `at`, as int64: ndim; dtype, combined with those OPDI_LAZY_KEYS
   that only one of the two tensors has; the distance in bytes from the base's first element to the view's; the view's
   sizes and strides; the base's strides.  Returns the number of these int64. */
OPDI_INTERNAL int opdi_slice_pack(const opd_tensor *view, const opd_tensor *base, int64_t *at /*[OPDI_MAX_SLICE]*/) {
    const size_t ndim = view->ndim;
    at[0] = view->ndim;
    at[1] = view->dtype | (int64_t)((view->functionality ^ base->functionality) & OPDI_LAZY_KEYS);
    at[2] = view->data && base->data ? (int64_t)(view->data - base->data) : view->begin - base->begin;
    memcpy(at + 3, view->dims, 2 * ndim * sizeof *at);
    memcpy(at + 3 + 2 * ndim, base->dims + base->ndim, (size_t)base->ndim * sizeof *at);
    return 3 + 2 * (int)ndim + base->ndim;
}

/* Returns the part of `tensor` that `at` describes (see opdi_slice_pack).  `tensor` must have the geometry that the
   base had.  If only one of `tensor` and the part is complex, pairs of real numbers become complex numbers, or the
   reverse.  Returns NULL and sets an error on failure. */
OPDI_INTERNAL opd_tensor *opdi_slice_of(opd_tensor *tensor, const int64_t *at) {
    const opd_scalar_type dtype = (opd_scalar_type)(at[1] & (int64_t)(OPD_BIT_OF(OPD_F_CONJUGATE) - 1));
    const bool pairs = opd_dtype_is_complex(dtype) && !opd_dtype_is_complex((opd_scalar_type)tensor->dtype);
    const opdi_pair_views *const views = OPDI_ACQUIRE(&opdi_on_pairs);   /* not NULL if the dtypes differ */
    int64_t sizes[OPD_MAX_DIMS + 1], strides[OPD_MAX_DIMS + 1];
    int count = (int)at[0];
    if (opd_dtype_is_complex((opd_scalar_type)tensor->dtype) && !opd_dtype_is_complex(dtype)) {
        tensor = views->as_real(tensor);
        if (!tensor) { return NULL; }
    }
    int64_t element = (int64_t)opd_dtype_size((opd_scalar_type)tensor->dtype);
    for (int i = 0; i < count; i++) {
        sizes[i] = at[3 + i];
        strides[i] = at[3 + count + i] * (pairs ? 2 : 1);
    }
    if (pairs) {
        sizes[count] = 2;
        strides[count++] = 1;
    }
    tensor = opd_as_strided_full(tensor, opd_ints_of(sizes, count), opd_ints_of(strides, count),
                                 opd_value_int(opd_tensor_offset(tensor) + at[2] / element));
    if (pairs) { tensor = views->as_complex(tensor); }
    if (tensor && (at[1] & (int64_t)OPD_BIT_OF(OPD_F_CONJUGATE))) { tensor = opd_conj_view(tensor); }
    if (tensor && (at[1] & (int64_t)OPD_BIT_OF(OPD_F_NEGATIVE))) { tensor = opd__neg_view(tensor); }
    return tensor;
}

/* Returns a new tensor with the memory and geometry of `view`.  Its history is a node AsStridedBackward0 whose edge
   leads to `base`.  Returns a reference, or NULL and sets an error. */
static opd_tensor *opdi_view_replayed(opd_tensor *view, opd_tensor *base) {
    int64_t at[OPDI_MAX_SLICE];
    opd_tensor *tensor;
    opd_value values[5];
    (void)opdi_slice_pack(view, base, at);
    if (at[1] != base->dtype) { return opdi_keep(opdi_slice_of(base, at)); }
    if (!(tensor = opdi_shallow_copy(view))) { return NULL; }
    values[0] = opd_value_ints(base->dims, base->ndim);
    values[1] = opd_value_ints(base->dims + base->ndim, base->ndim);
    values[2] = opd_value_ints(view->dims, view->ndim);
    values[3] = opd_value_ints(view->dims + view->ndim, view->ndim);
    values[4] = opd_value_int(at[2] / (int64_t)opd_dtype_size((opd_scalar_type)view->dtype));
    if (opd_autograd_record("AsStridedBackward0", opdi_as_strided_bw, &base, 1, NULL, 0, values, 5, &tensor, 1)) {
        opdi_drop(tensor);
        return NULL;
    }
    return tensor;
}
/* Calls opdi_view_replayed with grad mode on, and restores the thread's grad mode afterwards.  Returns a reference, or
   NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_view_replay(opd_tensor *view, opd_tensor *base) {
    opdi_thread *thread = opdi_self();
    const opdi_state state = thread->state;
    const int64_t mark = thread->top;
    thread->state.no_grad = thread->state.inference = 0;
    thread->state.include |= OPDI_DEFAULT_INCLUDE;
    thread->state.allow |= OPDI_AUTOGRAD_BITS;
    opd_tensor *tensor = opdi_view_replayed(view, base);
    thread->state = state;
    if (thread->top != mark) { opdi_scope_remove(thread, mark, thread->top); }
    return tensor;
}

/* Checks that the base of `view` still has the memory of the view.  Returns 0, or -1 and sets an error. */
static int opdi_check_base(const opd_tensor *view) {
    return view->storage == opdi_view_record_of(view)->base->storage ? 0
        : opd_fail(OPD_ERROR_AUTOGRAD, "a view was modified inplace after its base had been resized or had been given "
                   "other data: they no longer share memory, so autograd cannot connect their histories");
}

/* Gives `tensor` a history: a node without edges.  `tensor` replaces a view whose base has lost its history.  Returns
   0, or -1 and sets an error. */
static int opdi_view_loose(opd_tensor *tensor) {
    static const opdi_derivative loose = {
        "AsStridedBackward0", opdi_as_strided_bw, /* card, plugin */ NULL, NULL,
        /* context, once, fresh, real */ false, false, false, false};
    opd_node *node = opdi_node_make(&loose, 0, 0, 0, &tensor, 1, 0);
    if (!node) { return -1; }
    opdi_attach(tensor, node, 0);
    opdi_node_release(node);
    return 0;
}

OPDI_INTERNAL opdi_mutex opdi_view_lock = OPDI_MUTEX_INIT;
/* If the memory of a view was written after the view got its history, gives the view a new history, which starts from
   the history of its base.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_view_refresh(opd_tensor *view) {
    opdi_view_record *record = opdi_view_record_of(view);
    const uint32_t version = OPDI_LOAD(&view->storage->version);
    opd_node *old = NULL;
    opd_tensor *tensor;
    int rc = 0;
    if (OPDI_ACQUIRE(&record->version) == version || (!(record->base->flags & OPDI_REQUIRES_GRAD) && !view->grad_fn)) {
        return 0;
    }
    if (record->creation != OPDI_VIEW_DEFAULT) { return opdi_view_error(view, true); }
    if (opdi_check_base(view) || !(tensor = opdi_view_replay(view, record->base))) { return -1; }
    if (!tensor->grad_fn && view->grad_fn && opdi_view_loose(tensor)) {
        opdi_drop(tensor);
        return -1;
    }
    opdi_lock(&opdi_view_lock);
    if (record->version != version) {             /* false if another thread has refreshed the view meanwhile */
        old = view->grad_fn;
        if (old) { opdi_ref_up(&old->refs); }     /* the node is freed outside the lock, because its hooks may call user
                                                     functions */
        opdi_leave_node(view);
        view->grad_fn = tensor->grad_fn;
        view->output_nr = tensor->output_nr;
        OPDI_STORE(&view->flags, (uint8_t)((view->flags & ~OPDI_REQUIRES_GRAD) | (tensor->flags & OPDI_REQUIRES_GRAD)));
        tensor->grad_fn = NULL;
        if (view->meta && view->meta->retained && view->grad_fn) {
            opdi_retained_grad_follow(view);
            rc = opd_ok() ? 0 : -1;
        }
        OPDI_PUBLISH(&record->version, version);
    }
    opdi_unlock(&opdi_view_lock);
    opdi_drop(tensor);
    if (old) { opdi_node_release(old); }
    return rc;
}
OPDI_COLD_END

/* Checks that autograd can record a write into self: self must not be a leaf that requires grad, a view of such a leaf,
   or a view made in a way that forbids writes.  Called in grad mode if something requires grad.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_check_inplace(const opd_tensor *self) {
    if (self->flags & OPDI_IS_VIEW) {
        const opdi_view_record *record = opdi_view_record_of(self);
        if (record->creation != OPDI_VIEW_DEFAULT) { return opdi_view_error(self, false); }
        if (OPDI_UNLIKELY(self->storage != record->base->storage)) { return opdi_check_base(self); }
        if (opdi_requires_grad(self) && (!record->base->grad_fn || opdi_diff_is_input(record->base))) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "a view of a leaf tensor that requires grad is being used in an "
                            "in-place operation.");
        }
    }
    if ((self->flags & OPDI_REQUIRES_GRAD) && (!self->grad_fn || opdi_diff_is_input(self))) {
        return opd_fail(OPD_ERROR_AUTOGRAD,
                        "a leaf tensor that requires grad is being used in an in-place operation.");
    }
    return 0;
}
