#include "autograd.h"

//== accumulating gradients in leaves ==================================================================================

static void opdi_set_grad(opdi_meta *meta, opd_tensor *grad) {
    opd_tensor *old = meta->grad;
    meta->grad = grad;
    if (old) { opdi_drop(old); }
}

/* Returns the strides of a new gradient of `tensor`: tensor's own strides, or NULL (contiguous) if its elements have
   gaps between them or share memory. */
static const int64_t *opdi_grad_strides(const opd_tensor *tensor) {
    return opdi_is_dense(tensor) && !opdi_overlaps_itself(tensor) ? tensor->dims + tensor->ndim : NULL;
}
/* Returns a copy of `grad`, with the layout of `tensor` and without history.  Returns a reference, or NULL and sets an
   error. */
static opd_tensor *opdi_grad_clone(const opd_tensor *tensor, const opd_tensor *grad) {
    if (grad->flags & (OPDI_BATCHED | OPDI_TRACED)) { return opdi_bare_copy(grad); }
    opd_tensor *copy = opdi_tensor_make(tensor->dims, opdi_grad_strides(tensor), tensor->ndim,
                                        (opd_scalar_type)tensor->dtype, opdi_place_of(tensor));
    if (copy && opdi_copy(copy, grad)) {
        opdi_drop(copy);
        return NULL;
    }
    return copy;
}

/* Returns a copy of `grad`, with its history and tangent, and in the layout of `tensor`.  Returns a reference, or NULL
   and sets an error. */
static opd_tensor *opdi_grad_clone_recorded(const opd_tensor *tensor, opd_tensor *grad) {
    static opd_op *clone, *copy;
    opd_value values[3];
    values[0] = opd_value_tensor(grad);
    values[1] = opd_value_none();
    opd_tensor *c = opd_call_op(OPD_OP(&clone, OPDI_NAME(clone, "aten::clone")), values, 2);
    if (!c || opdi_same_layout(tensor, c)) { return opdi_keep(c); }
    c = opdi_own(opdi_tensor_make(tensor->dims, opdi_grad_strides(tensor), tensor->ndim,
                                  (opd_scalar_type)tensor->dtype, opdi_place_of(tensor)));
    values[0] = opd_value_tensor(c);
    values[1] = opd_value_tensor(grad);
    values[2] = opd_value_bool(false);
    return c ? opdi_keep(opd_call_op(OPD_OP(&copy, OPDI_NAME(copy_, "aten::copy_")), values, 3)) : NULL;
}

OPDI_NOINLINE static int opdi_fake_gradient(void) {
    return opd_fail(OPD_ERROR_AUTOGRAD, "the gradient of a real tensor would be a fake tensor: convert the real tensor "
                    "to a fake tensor first (opd_fake_tensor)");
}
/* Accumulates `grad` into the gradient of the leaf `tensor`.  If the leaf has no gradient yet, `grad` or a copy of it
   becomes the gradient.  Takes over a reference to `grad`.  Apart from this reference, `grad` has `held` references,
   whose owners only read it.  Returns 0, or -1 and sets an error. */
static int opdi_accumulate_here(opdi_engine *engine, opd_tensor *tensor, opd_tensor *grad, int held) {
    opdi_meta *meta = tensor->meta;
    opd_tensor *sum;
    if (OPDI_UNLIKELY(grad->backend != tensor->backend)) {
        opdi_drop(grad);
        return opdi_fake_gradient();
    }
    if (!meta->grad) {
        if (opdi_held_by(grad, 1 + held) && opdi_same_layout(tensor, grad)) {
            meta->grad = grad;
            return 0;
        }
        sum = engine->create || opdi_is_dual_inside(grad) ? opdi_grad_clone_recorded(tensor, grad)
            : opdi_grad_clone(tensor, grad);
        opdi_drop(grad);
        meta->grad = sum;
        return sum ? 0 : -1;
    }
    if (!engine->create) {
        static opd_op *add_inplace;
        opd_value values[3];
        values[0] = opd_value_tensor(meta->grad);
        values[1] = opd_value_tensor(grad);
        values[2] = opd_value_int(1);
        sum = opd_call_op(OPD_OP(&add_inplace, OPDI_NAME(add_Tensor, "aten::add_.Tensor")), values, 3);
    } else {
        sum = opdi_grad_sum(engine, meta->grad, grad);
        if (sum && sum != meta->grad) {
            opdi_retain(sum);
            opdi_set_grad(meta, sum);
        }
    }
    opdi_drop(grad);
    return sum ? 0 : -1;
}
/* A lock for adding to the gradients of leaves, because several threads may add to one leaf.  The thread that holds the
   lock may enter again, because an addition can lead back to accumulation.  opdi_accumulate_enter returns true if it
   has taken the lock; the caller passes the result to opdi_accumulate_leave. */
OPDI_INTERNAL opdi_mutex opdi_accumulate_lock = OPDI_MUTEX_INIT;
static opdi_thread *opdi_accumulate_holder;
OPDI_INTERNAL bool opdi_accumulate_enter(opdi_thread *thread) {
    if (OPDI_LOAD(&opdi_accumulate_holder) == thread) { return false; }
    opdi_lock(&opdi_accumulate_lock);
    OPDI_STORE(&opdi_accumulate_holder, thread);
    return true;
}
OPDI_INTERNAL void opdi_accumulate_leave(bool entered) {
    if (!entered) { return; }
    OPDI_STORE(&opdi_accumulate_holder, (opdi_thread *)NULL);
    opdi_unlock(&opdi_accumulate_lock);
}
/* Waits for the asynchronous operations that compute `grad` or the gradient to which it will be added.  The caller must
   not hold the lock of accumulation, because these operations may need it.  Returns 0, or -1 and sets an error. */
OPDI_COLD OPDI_NOINLINE static int opdi_accumulate_await(const opd_tensor *tensor, opd_tensor *grad, int held) {
    bool entered = opdi_accumulate_enter(opdi_self());
    opd_tensor *const before = tensor->meta->grad;
    const bool taken = !before && opdi_held_by(grad, 1 + held) && opdi_same_layout(tensor, grad);
    if (before) { opdi_retain(before); }
    opdi_accumulate_leave(entered);
    const int rc = !taken && (opdi_wait_for(grad) || (before && opdi_wait_for(before))) ? -1 : 0;
    if (before) { opdi_drop(before); }
    return rc;
}
static int opdi_accumulate(opdi_engine *engine, opd_tensor *tensor, opd_tensor *grad, int held) {
    if (OPDI_UNLIKELY(OPDI_LOAD(&opdi_works_running) != 0) && opdi_accumulate_await(tensor, grad, held)) {
        opdi_drop(grad);
        return -1;
    }
    bool entered = opdi_accumulate_enter(opdi_self());
    int rc = opdi_accumulate_here(engine, tensor, grad, held);
    opdi_accumulate_leave(entered);
    return rc;
}

OPDI_COLD_BEGIN
/* Accumulates `grad` as opdi_accumulate does, and reports this to observers as a call of the node AccumulateGrad, as
   PyTorch does.  Returns 0, or -1 and sets an error. */
OPDI_NOINLINE static int opdi_accumulate_observed(opdi_engine *engine, opd_tensor *tensor, opd_tensor *grad, int held) {
    const opd_value grads = opd_value_tensors(&grad, 1);
    opdi_thread *thread = opdi_self();
    opdi_observing observing;
    if (!opdi_observe_on(thread)) { return opdi_accumulate(engine, tensor, grad, held); }
    observing.event.op = NULL;
    observing.event.args = &grads;
    observing.event.nargs = 1;
    observing.event.forward_thread = 0;
    opdi_observe_begin(thread, &observing, OPD_OBSERVE_BACKWARD, "torch::autograd::AccumulateGrad", -1);
    observing.event.args = NULL;                  /* the gradient belongs to the leaf now */
    observing.event.nargs = 0;
    int rc = opdi_accumulate(engine, tensor, grad, held);
    opdi_observe_end(thread, &observing, NULL, 0);
    return rc;
}
OPDI_COLD_END
OPDI_INTERNAL int opdi_accumulate_any(opdi_engine *engine, opd_tensor *tensor, opd_tensor *grad, int held) {
    if (OPDI_UNLIKELY(OPDI_LOAD(&opdi_self()->observed) != 0)) {
        return opdi_accumulate_observed(engine, tensor, grad, held);
    }
    return opdi_accumulate(engine, tensor, grad, held);
}
