#include "transforms.h"

//== custom functions under vmap =======================================================================================

/* Returns element number `element` of `value` if it is a list of tensors, else the tensor in `value`. */
static opd_tensor *opdi_value_tensor(const opd_value *value, int32_t element) {
    return value->tag == OPD_TAG_TENSORS ? value->u.tensors[element] : value->u.t;
}
static int32_t opdi_value_tensors(const opd_value *value) {
    return value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR;
}
/* Returns `value` with the tensors in `list` instead of its own tensors.  `list` belongs to the innermost scope. */
static opd_value opdi_value_with(const opd_value *value, opd_tensor **list) {
    return value->tag == OPD_TAG_TENSORS ? opd_value_tensors(list, value->n) : value->tag == OPD_TAG_TENSOR && list[0]
        ? opd_value_tensor(list[0]) : *value;
}

/* Calls a custom function once for each example of the innermost vmap layer, and stacks the outputs that are tensors.
   The calls run in the layers outside of this layer.  The examples of values[i] are along its dim dims[i]; if dims[i]
   is negative, each call gets values[i] unchanged.  If there are no examples, calls the function once with ones, to
   find the sizes of the outputs.  Writes the stacked outputs to `outputs`.  Returns the number of outputs, or -1 and
   sets an error. */
static int opdi_function_loop(opd_context *ctx, const opd_value *values, const int *dims, opd_value *outputs) {
    const int64_t size = opd_batch_size(), runs = OPDI_MAX(size, 1);
    opd_value *args = (opd_value *)opdi_scope_alloc(((size_t)ctx->ninputs + 1) * sizeof *args);
    opd_value *all = (opd_value *)opdi_scope_alloc((size_t)runs * OPD_TRANSFORM_OUTPUTS * sizeof *all);
    opd_tensor **list;
    int total = 0;
    for (int64_t example = 0; args && all && example < runs; example++) {
        for (int i = 0; i < ctx->ninputs; i++) {
            const int32_t count = opdi_value_tensors(&values[i]);
            if (!(list = opdi_scope_tensors(count))) { return -1; }
            for (int32_t k = 0; k < count; k++) {
                opd_tensor *tensor = opdi_value_tensor(&values[i], k), *one = opdi_value_tensor(&ctx->inputs[i], k);
                list[k] = dims[i] < 0 || !tensor ? tensor : size ? opd_select(tensor, dims[i], example)
                    : opd_new_ones(tensor, opd_ints_of(one->dims, one->ndim));
                if (tensor && !list[k]) { return -1; }
            }
            args[i] = opdi_value_with(&values[i], list);
        }
        int got = opd_autograd_apply(&ctx->fn, args, ctx->ninputs, all + example * OPD_TRANSFORM_OUTPUTS,
                                     OPD_TRANSFORM_OUTPUTS);
        if (got < 0) { return -1; }
        if ((example && got != total) || got > OPD_TRANSFORM_OUTPUTS) {
            return opd_fail(OPD_ERROR_AUTOGRAD,
                            example ? "%s returned %d outputs for one example and %d for another"
                            : "%s returned %d outputs, but at most %d are allowed under vmap", ctx->fn.name,
                            example ? total : got, example ? got : OPD_TRANSFORM_OUTPUTS);
        }
        for (int i = 0; i < got; i++) {
            if (all[example * OPD_TRANSFORM_OUTPUTS + i].tag == all[i].tag) { continue; }
            return opd_fail(OPD_ERROR_AUTOGRAD, "output %d of %s is a Tensor for one example and not for another", i,
                            ctx->fn.name);
        }
        total = got;
    }
    if (!args || !all) { return -1; }
    for (int i = 0; i < total; i++) {
        outputs[i] = all[i];
        if (outputs[i].tag != OPD_TAG_TENSOR) { continue; }
        if (!(list = opdi_scope_tensors((int)runs))) { return -1; }
        for (int64_t example = 0; example < runs; example++) {
            list[example] = all[example * OPD_TRANSFORM_OUTPUTS + i].u.t;
        }
        if (!(list[0] = opd_stack(opd_tensors_of(list, runs), 0))) { return -1; }
        if (!size && !(list[0] = opd_narrow(list[0], 0, 0, 0))) { return -1; }
        outputs[i].u.t = list[0];
    }
    return total;
}

/* Computes the outputs of a custom function in the layers outside of ctx->layer.  Uses the function's vmap rule;
   without a rule, computes the outputs example by example if autograd or forward mode outside of the layer records an
   input.  If nothing records an input, returns -2: the caller then runs forward.  Returns the number of outputs, or -1
   and sets an error. */
static int opdi_function_outside(opd_context *ctx, opd_value *outputs, int *out_dims) {
    opdi_thread *thread = opdi_self();
    opd_value *values = (opd_value *)opdi_scope_alloc(((size_t)ctx->ninputs + 1) * sizeof *values);
    int *dims = (int *)opdi_scope_alloc(((size_t)ctx->ninputs + 1) * sizeof *dims);
    bool followed = false;
    int dim;
    for (int i = 0; values && dims && i < ctx->ninputs; i++) {
        const int32_t count = opdi_value_tensors(&ctx->inputs[i]);
        opd_tensor **list = opdi_scope_tensors(count);
        if (!list) { return -1; }
        dims[i] = -1;
        for (int32_t k = 0; k < count; k++) {
            (void)opd_batch_value(opdi_value_tensor(&ctx->inputs[i], k), &dim);
            dims[i] = dim < 0 ? dims[i] : ctx->inputs[i].tag == OPD_TAG_TENSORS ? 0 : dim;
        }
        for (int32_t k = 0; k < count; k++) {
            list[k] = opd_batch_value(opdi_value_tensor(&ctx->inputs[i], k), &dim);
            if (ctx->inputs[i].tag == OPD_TAG_TENSORS && dims[i] == 0 && !(list[k] = opd_batch_front(list[k], dim))) {
                return -1;
            }
            followed = followed || (!thread->state.no_grad && opdi_tracked(list[k])) || opdi_is_dual_inside(list[k]);
        }
        values[i] = opdi_value_with(&ctx->inputs[i], list);
    }
    if (!values || !dims) { return -1; }
    for (int i = 0; i < OPD_TRANSFORM_OUTPUTS; i++) { out_dims[i] = ctx->fn.vmap ? -1 : 0; }
    if (!ctx->fn.vmap) { return followed ? opdi_function_loop(ctx, values, dims, outputs) : -2; }
    int total = ctx->fn.vmap(ctx->fn.user, values, dims, ctx->ninputs, outputs, out_dims);
    if (opd_ok() && (total < 0 || total > OPD_TRANSFORM_OUTPUTS)) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "the vmap of %s failed without setting an error (opd_fail)", ctx->name);
    }
    for (int i = 0; i < total; i++) {
        const opd_tensor *tensor = opdi_tensor_in(&outputs[i]);
        if (out_dims[i] < 0 ||
            (tensor && out_dims[i] < tensor->ndim && tensor->dims[out_dims[i]] == ctx->layer->size)) {
            continue;
        }
        return opd_fail(OPD_ERROR_AUTOGRAD, "the vmap of %s returned an output that does not match its out_dim: output "
                        "%d has no examples at dim %d", ctx->name, i, out_dims[i]);
    }
    return opd_ok() ? total : -1;
}

/* Computes the outputs of a custom function with batched inputs (see opdi_function_outside).  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_function_compute(opd_context *ctx) {
    opdi_thread *thread = opdi_self();
    opd_value outputs[OPD_TRANSFORM_OUTPUTS];
    int out_dims[OPD_TRANSFORM_OUTPUTS], rc = 0;
    opd_scope scope = opd_scope_open();
    opdi_rule_frame was;
    opdi_rule_begin(thread, ctx->layer, &was);
    int count = opdi_function_outside(ctx, outputs, out_dims);
    opdi_rule_end(thread, &was);
    if (count == -2) { rc = opdi_context_run(ctx, ctx->fn.forward, &ctx->in_forward, "forward"); }
    ctx->in_forward = true;
    for (int i = 0; i < count && rc == 0; i++) {
        if (outputs[i].tag == OPD_TAG_TENSOR && out_dims[i] >= 0) {
            outputs[i].u.t = opdi_own(opdi_batch_wrap(outputs[i].u.t, out_dims[i], ctx->layer->level,
                                                        ctx->layer->serial));
            rc = outputs[i].u.t ? 0 : -1;
        }
        if (rc == 0) { rc = opd_context_return_value(ctx, outputs[i]); }
    }
    ctx->in_forward = false;
    opd_scope_close(&scope);
    return count == -1 ? -1 : rc;
}
