#include "../ops.h"

//== rotary position embedding, and the norm of a sum ==================================================================
//
//  Both are made of operators.  On a GPU, one kernel computes them if no other layer has to see the operators.

/* Returns the operator of the CUDA plug-in for the rotation, or NULL if there is none. */
static opd_op *opdi_rotary_op(void) {
    static opd_op *rotary;
    return opdi_cuda_op(&rotary, "opd_cuda::rotary");
}
/* Checks the arguments, and sets table[2] to cosines and sines with the sizes of x, but for the last.  Returns 0, or -1
   and sets an error. */
static int opdi_rotary_check(opd_tensor *x, opd_tensor **table /*[2]*/) {
    static const char *const names[2] = {"cosines", "sines"};
    int64_t sizes[OPD_MAX_DIMS];
    if (x->ndim < 1 || !opd_dtype_is_floating(opd_dtype(x))) {
        return opd_fail(x->ndim < 1 ? OPD_ERROR_SHAPE : OPD_ERROR_DTYPE, "opd_rotary_embedding: x must be a tensor of "
                        "floats [..., features], but is a %d-D tensor of %s", x->ndim, opd_dtype_name(opd_dtype(x)));
    }
    memcpy(sizes, opdi_sizes(x), (size_t)x->ndim * sizeof *sizes);
    for (int i = 0; i < 2; i++) {
        const opd_tensor *const t = table[i];
        const int64_t half = t->ndim > 0 ? opdi_sizes(t)[t->ndim - 1] : 0;
        if (!opd_dtype_is_floating(opd_dtype(t)) || t->ndim < 1 || t->ndim > x->ndim ||
            half > opdi_sizes(x)[x->ndim - 1] / 2) {
            return opd_fail(OPD_ERROR_SHAPE, "opd_rotary_embedding: %s must be floats [..., half] with no more dims "
                            "than x, and half at most half of x's features, %lld, but is a %d-D tensor of %s whose "
                            "last size is %lld", names[i], (long long)opdi_sizes(x)[x->ndim - 1], t->ndim,
                            opd_dtype_name(opd_dtype(t)), (long long)half);
        }
        if (i == 1 && half != sizes[x->ndim - 1]) {
            return opd_fail(OPD_ERROR_SHAPE, "opd_rotary_embedding: cosines and sines must have the same last size, "
                            "but have %lld and %lld", (long long)sizes[x->ndim - 1], (long long)half);
        }
        sizes[x->ndim - 1] = half;
    }
    for (int i = 0; i < 2; i++) {
        if (!(table[i] = opd_expand(table[i], opd_ints_of(sizes, x->ndim)))) { return -1; }
    }
    return 0;
}
/* Computes the rotation by operators, in float32 or float64. */
static opd_tensor *opdi_rotary_steps(opd_tensor *x, opd_tensor *const *table /*[2]*/, bool next) {
    const opd_scalar_type work = x->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    const int64_t last = x->ndim - 1, depth = opdi_sizes(x)[last], half = opdi_sizes(table[0])[last];
    opd_tensor *const wide = opd_to_dtype(x, work), *const cosine = opd_to_dtype(table[0], work),
        *const sine = opd_to_dtype(table[1], work), *in[2], *out[3];
    const opd_value end = opd_value_int(2 * half);
    for (int i = 0; i < 2; i++) {
        in[i] = next ? opd_slice(wide, last, opd_value_int(i), end, 2) : opd_narrow(wide, last, i * half, half);
    }
    opd_tensor *const product = opd_mul(in[0], cosine);
    out[0] = opd_sub(product, opd_mul(in[1], sine));
    opd_tensor *const first_product = opd_mul(in[1], cosine);
    out[1] = opd_add(first_product, opd_mul(in[0], sine));
    out[2] = opd_narrow(wide, last, 2 * half, depth - 2 * half);
    if (next) {
        out[1] = opd_flatten(opd_stack(opd_tensors_of(out, 2), last + 1), last, last + 1);
        return opd_to_dtype(opd_cat(opd_tensors_of(out + 1, 2), last), opd_dtype(x));
    }
    return opd_to_dtype(opd_cat(opd_tensors_of(out, 3), last), opd_dtype(x));
}
/* Calls the kernel.  in: x, cosines, sines and whether the pairs are neighbours. */
static opd_tensor *opdi_rotary_call(const opd_value *in /*[4]*/, bool back) {
    opd_value args[5], got;
    memcpy(args, in, 4 * sizeof *args);
    args[4] = opd_value_bool(back);
    return opd_call_all(opdi_rotary_op(), &got, args, 5) ? NULL : got.u.t;
}
static int opdi_rotary_record(opd_context *ctx) {
    opd_value args[4];
    opd_tensor *saved[2];
    for (int i = 0; i < 4; i++) { args[i] = opd_context_input(ctx, i); }
    saved[0] = args[1].u.t;
    saved[1] = args[2].u.t;
    opd_tensor *const y = opdi_rotary_call(args, false);
    return !y || opd_context_set(ctx, "next", args[3]) || opd_context_save_for_backward(ctx, saved, 2) ? -1
        : opd_context_return(ctx, y);
}
/* The gradient is turned back. */
static int opdi_rotary_formula(opd_backward_call *bw) {
    opd_context *const ctx = opd_bw_context(bw);
    opd_tensor *const grad = opd_bw_grad(bw, 0), *const cosine = opd_context_saved(ctx, 0),
        *const sine = opd_context_saved(ctx, 1), *y;
    opd_value args[4];
    if (!grad || !cosine || !sine) { return opd_ok() ? 0 : -1; }
    args[0] = opd_value_tensor(grad);
    args[1] = opd_value_tensor(cosine);
    args[2] = opd_value_tensor(sine);
    args[3] = opd_context_get(ctx, "next");
    const bool plain = !opd_grad_mode_enabled() && opdi_only_autocast_follows() && opdi_in_cuda(grad) &&
        opdi_strides(grad)[grad->ndim - 1] == 1;
    y = plain ? opdi_rotary_call(args, true)
        : opd_rotary_embedding(grad, cosine, opd_neg(sine), args[3].u.i != 0);
    return y ? opd_bw_return(bw, 0, y) : -1;
}
/* Computes the rotation by one kernel, and sets *result.  Returns 1, or -1 and sets an error, or 0 if this is not
   possible. */
static int opdi_rotary_in_cuda(opd_tensor *x, opd_tensor *const *table /*[2]*/, bool next, opd_tensor **result) {
    opd_autograd_function function;
    opd_value values[4], got;
    if (x->backend != OPD_CUDA || x->ndim > 4 || !opdi_only_autocast_follows() || !opdi_in_cuda(x) || x->numel == 0 ||
        opd_dtype_size(opd_dtype(x)) < 2 || opdi_strides(x)[x->ndim - 1] != 1 || !opdi_rotary_op() ||
        table[0]->dtype != table[1]->dtype ||
        (table[0]->dtype != x->dtype && (table[0]->dtype != OPD_FLOAT32 || x->dtype == OPD_FLOAT64))) { return 0; }
    for (int i = 0; i < 2; i++) {
        if (!opdi_in_cuda(table[i]) || table[i]->storage->index != x->storage->index || table[i]->numel == 0 ||
            (opd_grad_mode_enabled() && opdi_tracked(table[i]))) { return 0; }
    }
    const bool same = opdi_strides(table[0])[x->ndim - 1] == 1 &&
        memcmp(opdi_strides(table[0]), opdi_strides(table[1]), (size_t)x->ndim * sizeof(int64_t)) == 0;
    values[0] = opd_value_tensor(x);
    for (int i = 0; i < 2; i++) { values[1 + i] = opd_value_tensor(same ? table[i] : opd_contiguous(table[i])); }
    values[3] = opd_value_bool(next);
    if (!opd_ok()) { return -1; }
    if (!opd_grad_mode_enabled() || !opdi_tracked(x)) { return (*result = opdi_rotary_call(values, false)) ? 1 : -1; }
    memset(&function, 0, sizeof function);
    function.name = "RotaryEmbedding";
    function.forward = opdi_rotary_record;
    function.backward = opdi_rotary_formula;
    if (opd_autograd_apply(&function, values, 4, &got, 1) < 0) { return -1; }
    *result = got.u.t;
    return 1;
}
opd_tensor *opd_rotary_embedding(opd_tensor *x, opd_tensor *cosines, opd_tensor *sines, bool interleaved) {
    opd_tensor *table[2] = {cosines, sines}, *out = NULL;
    if (!opd_ok() || opdi_null_tensor(x, "opd_rotary_embedding") ||
        opdi_null_tensor(cosines, "opd_rotary_embedding") || opdi_null_tensor(sines, "opd_rotary_embedding")) {
        return NULL;
    }
    OPD_SCOPE {
        if (opdi_rotary_check(x, table) == 0 && opdi_rotary_in_cuda(x, table, interleaved, &out) == 0) {
            out = opdi_rotary_steps(x, table, interleaved);
        }
        if (out) { out = opd_scope_return(out); }
    }
    return out;
}
opd_tensor *opd_add_layer_norm(opd_tensor *x, opd_tensor *residual, opd_ints normalized_shape, opd_tensor *weight,
                               opd_tensor *bias, double eps, opd_tensor **sum) {
    opd_tensor *y = NULL, *added = NULL;
    if (sum) { *sum = NULL; }
    if (!opd_ok() || opdi_null_tensor(x, "opd_add_layer_norm") || opdi_null_tensor(residual, "opd_add_layer_norm")) {
        return NULL;
    }
    OPD_SCOPE {
        int done = 0;
#if !defined(OPD_NO_OP_NORM)
        done = opdi_layer_norm_sum_in_cuda(x, residual, normalized_shape, weight, bias, eps, &y, &added);
#endif
        if (done == 0) {
            added = opd_add(x, residual);
            y = added ? opd_layer_norm_full(added, normalized_shape, weight, bias, eps, true) : NULL;
        }
        if (y) {
            y = opd_scope_return(y);
            if (sum) { *sum = opd_scope_return(added); }
        }
    }
    return y;
}
opd_tensor *opd_add_rms_norm(opd_tensor *x, opd_tensor *residual, opd_ints normalized_shape, opd_tensor *weight,
                             opd_value eps, opd_tensor **sum) {
    opd_tensor *y = NULL, *added = NULL;
    if (sum) { *sum = NULL; }
    if (!opd_ok() || opdi_null_tensor(x, "opd_add_rms_norm") || opdi_null_tensor(residual, "opd_add_rms_norm")) {
        return NULL;
    }
    OPD_SCOPE {
        int done = 0;
#if !defined(OPD_NO_OP_NORM)
        done = opdi_rms_in_cuda(x, normalized_shape, weight, eps, residual, &y, NULL, &added);
#endif
        if (done == 0) {
            added = opd_add(x, residual);
            y = added ? opd_rms_norm(added, normalized_shape, weight, eps) : NULL;
        }
        if (y) {
            y = opd_scope_return(y);
            if (sum) { *sum = opd_scope_return(added); }
        }
    }
    return y;
}
