#include "transforms.h"

//== Jacobians =========================================================================================================

/* Returns `rows` rows of an identity matrix, from row `first` on, with only the columns that belong to `tensor`: one
   for each of its elements, from column `offset` on.  Each row has the sizes of `tensor`.  Returns NULL and sets an
   error on failure. */
static opd_tensor *opdi_basis(const opd_tensor *tensor, int64_t first, int64_t rows, int64_t offset) {
    const opd_value none = opd_value_none(), dtype = opd_value_int(OPD_INT64);
    const opd_value device = opd_value_device(opd_tensor_device(tensor));
    int64_t sizes[OPD_MAX_DIMS + 1];
    if (tensor->ndim == OPD_MAX_DIMS) {
        (void)opd_fail(OPD_ERROR_SHAPE, "a Jacobian would have more than %d dimensions", OPD_MAX_DIMS);
        return NULL;
    }
    sizes[0] = rows;
    sizes[1] = 1;
    opd_tensor *row = opd_arange_start_full(opd_value_int(first), opd_value_int(first + rows), dtype, none, device,
                                            none);
    row = row ? opd_reshape(row, opd_ints_of(sizes, 2)) : NULL;
    opd_tensor *column = opd_arange_start_full(opd_value_int(offset), opd_value_int(offset + tensor->numel), dtype,
                                               none, device, none);
    for (int i = 0; i < tensor->ndim; i++) { sizes[i + 1] = tensor->dims[i]; }
    row = row && column ? opd_to_dtype(opd_eq(row, column), (opd_scalar_type)tensor->dtype) : NULL;
    return row ? opd_reshape(row, opd_ints_of(sizes, tensor->ndim + 1)) : NULL;
}

/* A Jacobian while it is computed.  Each of the `rows` rows is a derivative for one element of the `count` tensors in
   `what`: the outputs (jacrev) or the inputs (jacfwd). */
typedef struct opdi_jacobian {
    opdi_diff *diff;
    opd_derivative *vjp;                          /* the derivative of the function, for jacrev; NULL for jacfwd */
    opd_tensor *const *what;
    int count;
    int64_t rows;
    opd_tensor *aux[OPD_TRANSFORM_OUTPUTS];
} opdi_jacobian;

/* Computes the rows for the basis vectors in `basis`: applies the vjp, or calls the function in forward mode.  Writes
   them to `out`, one tensor for each input (jacrev) or output (jacfwd).  Returns the number of these tensors, or -1 and
   sets an error. */
static int opdi_jacobian_apply(opdi_jacobian *jacobian, opd_tensor **basis, opd_tensor **out) {
    opd_tensor *all[OPD_TRANSFORM_OUTPUTS];
    opdi_diff diff;
    if (jacobian->vjp) { return opdi_vjp_pull(jacobian->vjp, basis, 0, out); }
    if (opdi_diff_make(&diff, jacobian->diff->who, jacobian->diff->fn, jacobian->diff->user, jacobian->diff->in,
                       jacobian->diff->nin, jacobian->diff->options, false)) {
        return -1;
    }
    int count = opdi_jvp_make(&diff, basis, all, out);
    opdi_diff_leave(&diff);
    for (int i = 0; count >= 0 && i < diff.options->naux; i++) {
        jacobian->aux[i] = all[count - diff.options->naux + i];
    }
    return count < 0 ? -1 : count - diff.options->naux;
}

/* Computes `count` rows at once, from row `first` on, under a vmap.  Writes them to `out`: dim 0 of each tensor counts
   the rows.  Returns the number of tensors, or -1 and sets an error. */
static int opdi_jacobian_rows(opdi_jacobian *jacobian, int64_t first, int64_t count, opd_tensor **out) {
    opd_tensor **basis = opdi_scope_tensors(jacobian->count);
    const bool single = jacobian->diff->options->chunk_size == 1 && count > 0;
    int64_t offset = 0;
    int total = 0, level = single ? 0 : opd_vmap_begin(count, jacobian->diff->options->randomness);
    if (!basis || level < 0) { return -1; }
    opdi_visit_frame visit;
    opdi_visit_begin(opdi_self(), &visit, "the function of a transform", opdi_layers_leave,
                     single ? NULL : opdi_self()->innermost.layer);
    for (int i = 0; i < jacobian->count && total == 0; i++) {
        basis[i] = opdi_basis(jacobian->what[i], first, count, offset);
        if (basis[i]) { basis[i] = single ? opd_select(basis[i], 0, 0) : opd_vmap_wrap(basis[i], 0, level); }
        if (!basis[i]) { total = -1; }
        offset += jacobian->what[i]->numel;
    }
    if (total == 0) { total = opdi_jacobian_apply(jacobian, basis, out); }
    for (int i = 0; i < total; i++) {
        if (!(out[i] = single ? opd_unsqueeze(out[i], 0) : opd_vmap_unwrap(out[i], 0, level))) { total = -1; }
    }
    for (int i = 0; total >= 0 && !single && !jacobian->vjp && i < jacobian->diff->options->naux; i++) {
        if (!(jacobian->aux[i] = opd_vmap_unwrap(jacobian->aux[i], OPD_NO_DIM, level))) { total = -1; }
    }
    if (!single) { opdi_layers_end(level); }
    opdi_visit_end(&visit);
    return total;
}

/* Computes all rows, in chunks if the options have a chunk_size, and writes them to `out`.  Returns the number of
   tensors, or -1 and sets an error. */
static int opdi_jacobian_all(opdi_jacobian *jacobian, opd_tensor **out) {
    const int64_t given = jacobian->diff->options->chunk_size, step = given > 0 ? given : OPDI_MAX(jacobian->rows, 1);
    const int64_t count = OPDI_MAX((jacobian->rows + step - 1) / step, 1);
    opd_tensor **parts[OPD_TRANSFORM_OUTPUTS];
    int total = 0;
    if (count == 1 && given != 1) { return opdi_jacobian_rows(jacobian, 0, jacobian->rows, out); }
    for (int64_t k = 0; k < count; k++) {
        const int got = opdi_jacobian_rows(jacobian, k * step, OPDI_MIN(step, jacobian->rows - k * step), out);
        if (got < 0) { return -1; }
        if (k && got != total) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: the function returned %d outputs for one chunk and %d for another",
                            jacobian->diff->who, total, got);
        }
        total = got;
        for (int i = 0; i < total; i++) {
            if (k == 0 && !(parts[i] = opdi_scope_tensors((int)count))) { return -1; }
            parts[i][k] = out[i];
        }
    }
    for (int i = 0; i < total; i++) {
        if (!(out[i] = opd_cat(opd_tensors_of(parts[i], count), 0))) { return -1; }
    }
    return total;
}

/* Returns the block of `rows` that belongs to `tensor`: one row for each of its elements, from row `offset` on.  The
   block has the dims of `tensor` and then the dims of a row; if `last` is true, the dims of a row come first.  Returns
   NULL and sets an error on failure. */
static opd_tensor *opdi_jacobian_part(opd_tensor *rows, const opd_tensor *tensor, int64_t offset, bool last) {
    const int inner = rows->ndim - 1;
    int64_t sizes[2 * OPD_MAX_DIMS];
    if (inner + tensor->ndim > OPD_MAX_DIMS) {
        (void)opd_fail(OPD_ERROR_SHAPE, "a Jacobian would have more than %d dimensions", OPD_MAX_DIMS);
        return NULL;
    }
    for (int i = 0; i < tensor->ndim; i++) { sizes[last ? inner + i : i] = tensor->dims[i]; }
    for (int i = 0; i < inner; i++) { sizes[last ? i : tensor->ndim + i] = rows->dims[i + 1]; }
    if (!(rows = opd_narrow(rows, 0, offset, tensor->numel))) { return NULL; }
    if (last && !(rows = opd_movedim(rows, 0, -1))) { return NULL; }
    return opd_reshape(rows, opd_ints_of(sizes, inner + tensor->ndim));
}

static int opdi_jacobian_check(const opdi_diff *diff) {
    if (diff->options->chunk_size < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: `chunk_size` should be greater than 0.", diff->who);
    }
    for (int i = 0; i < diff->nby; i++) {
        const opd_tensor *tensor = diff->in[diff->argnums[i]];
        if (!tensor || opd_dtype_is_complex((opd_scalar_type)tensor->dtype)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: Expected all inputs to be real but received %s at flattened input "
                            "idx: %d", diff->who, tensor ? "complex tensor" : "NULL", diff->argnums[i]);
        }
        if (!opdi_dual_dtype(tensor, "primal")) { return -1; }
    }
    return 0;
}

/* Computes a Jacobian, by jacrev if `reverse` is true, else by jacfwd.  Writes to `outputs` its blocks, output by
   output, and then the auxiliary outputs.  Returns their number, or -1 and sets an error. */
static int opdi_jacobian_make(opdi_diff *diff, bool reverse, opd_tensor **outputs) {
    opd_derivative derivative;
    opdi_jacobian jacobian;
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS], *rows[OPD_TRANSFORM_OUTPUTS];
    opd_tensor **by = opdi_scope_tensors(diff->nby);
    int k, count = 0;
    int64_t offset;
    memset(&jacobian, 0, sizeof jacobian);
    if (!by || opdi_jacobian_check(diff) || opdi_diff_most(diff, diff->nby)) { return -1; }
    for (int i = 0; i < diff->nby; i++) { by[i] = diff->in[diff->argnums[i]]; }
    jacobian.diff = diff;
    jacobian.what = by;
    jacobian.count = diff->nby;
    if (reverse) {
        memset(&derivative, 0, sizeof derivative);
        derivative.diff = *diff;
        count = opdi_vjp_make(&derivative, out);
        opdi_diff_leave(&derivative.diff);
        if (count < 0) { return -1; }
        jacobian.vjp = &derivative;
        jacobian.what = out;
        jacobian.count = derivative.nouts;
        for (int i = 0; i < diff->options->naux; i++) { jacobian.aux[i] = out[derivative.nouts + i]; }
        for (int i = 0; i < jacobian.count; i++) {
            if (!opd_dtype_is_complex((opd_scalar_type)out[i]->dtype)) { continue; }
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: Expected all outputs to be real but received complex tensor at "
                            "flattened output idx: %d", diff->who, i);
        }
    }
    for (int i = 0; i < jacobian.count; i++) { jacobian.rows += jacobian.what[i]->numel; }
    if ((count = opdi_jacobian_all(&jacobian, rows)) < 0) { return -1; }
    int nouts = reverse ? jacobian.count : count;
    if (opdi_diff_most(diff, nouts * diff->nby + diff->options->naux)) { return -1; }
    for (k = 0, offset = 0; k < jacobian.count; offset += jacobian.what[k++]->numel) {
        for (int i = 0; i < count; i++) {
            opd_tensor *block = opdi_jacobian_part(rows[i], jacobian.what[k], offset, !reverse);
            if (!block) { return -1; }
            outputs[reverse ? k * count + i : i * jacobian.count + k] = block;
        }
    }
    for (int i = 0; i < diff->options->naux; i++) { outputs[count * jacobian.count + i] = jacobian.aux[i]; }
    return count * jacobian.count + diff->options->naux;
}

static int opdi_jacobian_of(const char *who, opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                            const opd_transform_options *options, bool reverse, opd_tensor **outputs, int cap) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS] = {NULL};
    opd_scope scope = opd_scope_open();
    const int depth = opd_transform_depth();
    opdi_diff diff;
    int count = opdi_diff_make(&diff, who, fn, user, inputs, ninputs, options, false);
    if (count == 0) { count = opdi_diff_check_outputs(outputs, outputs, who); }
    if (count == 0) { count = opdi_jacobian_make(&diff, reverse, out); }
    opdi_layers_end(depth + 1);
    count = opdi_diff_to_outer_scope(out, count);
    opd_scope_close(&scope);
    return opdi_outputs_return(who, outputs, cap, out, count, opdi_least_gradients(options));
}
int opd_jacrev(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
               const opd_transform_options *options, opd_tensor **outputs, int cap) {
    return opdi_jacobian_of("jacrev", fn, user, inputs, ninputs, options, true, outputs, cap);
}
int opd_jacfwd(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
               const opd_transform_options *options, opd_tensor **outputs, int cap) {
    return opdi_jacobian_of("jacfwd", fn, user, inputs, ninputs, options, false, outputs, cap);
}

typedef struct opdi_hessian { opd_transform_fn fn; void *user; const opd_transform_options *options; } opdi_hessian;
static int opdi_hessian_inner(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    const opdi_hessian *hessian = (const opdi_hessian *)user;
    return opd_jacrev(hessian->fn, hessian->user, inputs, ninputs, hessian->options, outputs,
                      OPD_TRANSFORM_OUTPUTS);
}
int opd_hessian(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                const opd_transform_options *options, opd_tensor **outputs, int cap) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS] = {NULL};
    opdi_hessian hessian;
    hessian.fn = fn;
    hessian.user = user;
    hessian.options = options;
    if (opd_ok() && !fn) { (void)opd_fail(OPD_ERROR_ARGUMENT, "hessian: the function is NULL"); }
    if (opd_ok() && !outputs) { (void)opd_fail(OPD_ERROR_ARGUMENT, "hessian: the pointer to the results is NULL"); }
    const int count = opd_jacfwd(opdi_hessian_inner, &hessian, inputs, ninputs, options, out, OPD_TRANSFORM_OUTPUTS);
    return opdi_outputs_return("hessian", outputs, cap, out, count, opdi_least_gradients(options));
}

/* The function whose tangents are products with the Hessian: the gradients of fn. */
typedef struct opdi_hvp { opd_transform_fn fn; void *user; const int *argnums; } opdi_hvp;
static int opdi_hvp_inner(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    const opdi_hvp *const hvp = (const opdi_hvp *)user;
    opd_transform_options options;
    memset(&options, 0, sizeof options);
    options.argnums = hvp->argnums;
    options.nargnums = ninputs;
    return opd_grad(hvp->fn, hvp->user, inputs, ninputs, &options, outputs, OPD_TRANSFORM_OUTPUTS);
}
int opd_hvp(opd_transform_fn fn, void *user, opd_tensor *const *inputs, opd_tensor *const *vectors, int count,
            opd_tensor **outputs, opd_tensor **grads, int cap) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS] = {NULL}, *along[OPD_TRANSFORM_OUTPUTS] = {NULL};
    int argnums[OPD_TRANSFORM_OUTPUTS];
    opdi_hvp hvp;
    hvp.fn = fn;
    hvp.user = user;
    hvp.argnums = argnums;
    for (int i = 0; i < OPD_TRANSFORM_OUTPUTS; i++) { argnums[i] = i; }
    int rc = -1;
    if (!opd_ok()) { }
    else if (!fn || !outputs) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "hvp: the %s NULL", fn ? "pointer to the results is" : "function is");
    } else if (count < 1 || count > OPD_TRANSFORM_OUTPUTS) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "hvp: there are %d inputs, but there must be 1 to %d", count,
                       OPD_TRANSFORM_OUTPUTS);
    } else {
        rc = opd_jvp(opdi_hvp_inner, &hvp, inputs, vectors, count, NULL, out, along, OPD_TRANSFORM_OUTPUTS);
    }
    if (grads) { (void)opdi_outputs_return("hvp", grads, cap, out, rc, 1); }
    return opdi_outputs_return("hvp", outputs, cap, along, rc, 1);
}
