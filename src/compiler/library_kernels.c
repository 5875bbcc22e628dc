#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>library_kernels products and convolutions of compiled graphs that kernels of the library can compute
//
//  A nest that is a matrix product or a convolution gets an opdi_nest_kernel, if it has the form that a kernel of the
//  library computes.  The C code then has both ways to compute the nest: its loops, or a call of the kernel and the
//  loops of nest->finish.  The first runs of the code show which way is faster (>>choosing).
//----------------------------------------------------------------------------------------------------------------------

/* Returns whether `count` loops, the outermost first, can run as one loop in both accesses. */
static bool opdi_kernel_joins(const opdi_nest *nest, const int *loops, int count, const opdi_access *a,
                              const opdi_access *b) {
    for (int i = 0; i + 1 < count; i++) {
        const int64_t size = nest->sizes[loops[i + 1]];
        if (a->strides[loops[i]] != a->strides[loops[i + 1]] * size ||
            b->strides[loops[i]] != b->strides[loops[i + 1]] * size) { return false; }
    }
    return true;
}
static int64_t opdi_kernel_stride(const opdi_access *access, const int *loops, int count) {
    return count ? access->strides[loops[count - 1]] : 0;
}
static int64_t opdi_kernel_bytes(const opdi_access *access, int64_t elements) {
    return elements * (int64_t)opd_dtype_size(access->dtype);
}
/* Adds a loop that calls the kernel in each iteration, with other addresses. */
static void opdi_kernel_repeat(opdi_nest_kernel *kernel, const opdi_nest *nest, int loop) {
    const int at = kernel->nbatch++;
    kernel->batch[at] = nest->sizes[loop];
    for (int i = 0; i < 2; i++) {
        kernel->steps[at][i] = opdi_kernel_bytes(kernel->operands[i], kernel->operands[i]->strides[loop]);
    }
    kernel->steps[at][2] = opdi_kernel_bytes(&nest->out, nest->out.strides[loop]);
}
/* Leaves only those of the innermost `loops` that can run as one loop; the kernel is called for each iteration of the
   others.  Returns the number of iterations of the one loop, and sets *count to the number of its loops. */
static int64_t opdi_kernel_inner(opdi_nest_kernel *kernel, const opdi_nest *nest, int *loops, int *count,
                                 const opdi_access *operand) {
    int first = 0;
    int64_t size = 1;
    while (!opdi_kernel_joins(nest, loops + first, *count - first, operand, &nest->out)) {
        opdi_kernel_repeat(kernel, nest, loops[first++]);
    }
    *count -= first;
    memmove(loops, loops + first, (size_t)*count * sizeof *loops);
    for (int i = 0; i < *count; i++) { size *= nest->sizes[loops[i]]; }
    return size;
}
/* Returns whether the library's products can read an operand of dtype `from` if their result has dtype `dtype`. */
static bool opdi_kernel_reads(opd_scalar_type from, opd_scalar_type dtype) {
    return from == dtype || (dtype == OPD_FLOAT32 && (from == OPD_BFLOAT16 || from == OPD_FLOAT16));
}
/* Sets *kernel to the matrix products that a nest consists of.  Returns false if it is no matrix product. */
static bool opdi_kernel_product(opdi_nest_kernel *kernel, opdi_nest *nest) {
    opdi_contraction all;
    if (!opdi_nest_contracts(nest)) { return false; }
    opdi_contraction_of(&all, nest);
    if (!opdi_kernel_joins(nest, all.k, all.nk, all.left, all.right) ||
        !opdi_kernel_reads(all.left->dtype, nest->out.dtype) || !opdi_kernel_reads(all.right->dtype, nest->out.dtype)) {
        return false;
    }
    kernel->operands[0] = all.left;
    kernel->operands[1] = all.right;
    for (int i = 0; i < all.nbatch; i++) { opdi_kernel_repeat(kernel, nest, all.batch[i]); }
    kernel->rows = opdi_kernel_inner(kernel, nest, all.m, &all.nm, all.left);
    kernel->columns = opdi_kernel_inner(kernel, nest, all.n, &all.nn, all.right);
    kernel->depth = all.depth;
    kernel->left[0] = opdi_kernel_stride(all.left, all.m, all.nm);
    kernel->left[1] = opdi_kernel_stride(all.left, all.k, all.nk);
    kernel->right[0] = opdi_kernel_stride(all.right, all.k, all.nk);
    kernel->right[1] = opdi_kernel_stride(all.right, all.n, all.nn);
    kernel->out[0] = opdi_kernel_stride(&nest->out, all.m, all.nm);
    kernel->out[1] = opdi_kernel_stride(&nest->out, all.n, all.nn);
    return kernel->rows * kernel->columns * kernel->depth >= OPDI_KERNEL_LEAST;
}
/* Returns the nest of a convolution whose operands and result are contiguous, after opdi_nest_order; NULL and sets an
   error if memory runs out. */
static opdi_nest *opdi_kernel_usual(const opdi_conv *conv, opd_scalar_type dtype) {
    const int64_t window = conv->kh * conv->kw, area = conv->oh * conv->ow, image = conv->h * conv->w;
    const int64_t sizes[8] = {conv->n, conv->groups, conv->og, conv->oh, conv->ow, conv->cg, conv->kh, conv->kw};
    const int64_t weight[8] = {0, conv->og * conv->cg * window, conv->cg * window, 0, 0, window, conv->kw, 1};
    const int64_t input[8] = {conv->c * image, conv->cg * image, 0, conv->w * conv->sh, conv->sw, image,
                              conv->dh * conv->w, conv->dw};
    const int64_t out[8] = {conv->oc * area, conv->og * area, area, conv->ow, 1, 0, 0, 0};
    opdi_nest *const nest = opdi_nest_new(sizes, 8, 3);
    opdi_expr *const w = nest ? opdi_expr_new(OPDI_EXPR_LOAD, dtype) : NULL;
    opdi_expr *const x = w ? opdi_expr_new(OPDI_EXPR_LOAD, dtype) : NULL;
    if (!x || !(nest->value = opdi_expr_formula(OPD_FORMULA_mul, dtype, w, x))) { return NULL; }
    memcpy(w->access.strides, weight, sizeof weight);
    memcpy(x->access.strides, input, sizeof input);
    memcpy(nest->out.strides, out, sizeof out);
    w->access.dtype = x->access.dtype = nest->out.dtype = dtype;
    nest->reduction = OPDI_REDUCTION_SUM;
    opdi_nest_order(nest);
    return nest;
}
/* Finds for each loop of a nest the loop of `usual` with the same size and the same strides in both operands; the order
   of the loops may differ.  Sets like[i] to the loop for loop i.  Returns false if a loop has no such counterpart. */
static bool opdi_kernel_alike(const opdi_nest *nest, const opdi_nest *usual, int like[OPDI_NEST_DIMS]) {
    const int inner = nest->ndim - nest->nreduce;
    uint32_t done = 0;
    if (nest->ndim != usual->ndim || nest->nreduce != usual->nreduce) { return false; }
    for (int i = 0; i < nest->ndim; i++) {
        like[i] = -1;
        for (int k = i < inner ? 0 : inner; k < (i < inner ? inner : nest->ndim); k++) {
            bool same = !(done >> k & 1) && nest->sizes[i] == usual->sizes[k];
            for (int in = 0; in < 2; in++) {
                same = same && nest->value->in[in]->access.strides[i] == usual->value->in[in]->access.strides[k];
            }
            if (same) { like[i] = k; }
        }
        if (like[i] < 0) { return false; }
        done |= 1u << like[i];
    }
    return true;
}
/* If the result of a convolution is not contiguous, lets the kernel store it in memory of its own, kernel->raw.
   Returns 0, or -1 and sets an error. */
static int opdi_kernel_raw(opdi_recording *recording, opdi_nest_kernel *kernel, const opdi_nest *nest,
                           const opdi_nest *usual, const int *like) {
    const int64_t count = kernel->conv.n * kernel->conv.oc * kernel->conv.oh * kernel->conv.ow;
    bool same = true;
    for (int i = 0; i < nest->ndim - nest->nreduce; i++) {
        kernel->strides[i] = usual->out.strides[like[i]];
        same = same && nest->out.strides[i] == kernel->strides[i];
    }
    if (same) { return 0; }
    kernel->raw = opdi_buffer_new(recording, (size_t)count * kernel->conv.size, OPDI_BUFFER_TEMPORARY);
    if (!kernel->raw) { return -1; }
    kernel->raw->dtype = nest->out.dtype;
    return 0;
}
/* Sets *kernel to the convolution that a nest computes.  Returns false if it is none, if its operands are not
   contiguous, or if memory runs out (this sets an error). */
static bool opdi_kernel_convolution(opdi_recording *recording, opdi_nest_kernel *kernel, const opdi_nest *nest) {
    const opdi_expr *const value = nest->value;
    int like[OPDI_NEST_DIMS];
    if (!nest->conv || value->kind != OPDI_EXPR_FORMULA || value->formula != OPD_FORMULA_mul ||
        value->in[0]->kind != OPDI_EXPR_LOAD || value->in[1]->kind != OPDI_EXPR_LOAD || value->in[0]->nin ||
        value->in[1]->nin || value->in[0]->dtype != value->dtype || value->in[1]->dtype != value->dtype) {
        return false;
    }
    kernel->conv = *nest->conv;
    kernel->conv.size = opd_dtype_size(value->dtype);
    const int64_t oh = kernel->conv.oh, ow = kernel->conv.ow;
    if (opdi_conv_init(&kernel->conv)) {
        opd_error_clear();
        return false;
    }
    const opdi_nest *const usual = opdi_kernel_usual(&kernel->conv, value->dtype);
    kernel->operands[0] = &value->in[0]->access;
    kernel->operands[1] = &value->in[1]->access;
    return usual && kernel->conv.oh == oh && kernel->conv.ow == ow && opdi_kernel_alike(nest, usual, like) &&
        opdi_nest_rounds(nest, nest->ndim) >= OPDI_KERNEL_LEAST &&
        opdi_kernel_raw(recording, kernel, nest, usual, like) == 0;
}
/* Returns a copy of an expression in which `with` replaces the nest's result, or NULL and sets an error. */
static opdi_expr *opdi_kernel_finished(const opdi_expr *expr, opdi_expr *with) {
    if (expr->kind == OPDI_EXPR_RESULT) { return with; }
    opdi_expr *const copy = opdi_expr_new(expr->kind, expr->dtype);
    if (!copy) { return NULL; }
    *copy = *expr;
    for (int i = 0; i < expr->nin; i++) {
        if (!(copy->in[i] = opdi_kernel_finished(expr->in[i], with))) { return NULL; }
    }
    return copy;
}
/* Sets kernel->after to a group that computes nest->finish from the result that the kernel has stored, and stores it as
   the nest does.  Returns 0, or -1 and sets an error. */
static int opdi_kernel_after(opdi_recording *recording, opdi_nest_kernel *kernel, const opdi_nest *nest) {
    if (!nest->finish && !kernel->raw) { return 0; }
    opdi_nest *const after = opdi_nest_new(nest->sizes, nest->ndim - nest->nreduce, 0);
    opdi_expr *const load = after ? opdi_expr_new(OPDI_EXPR_LOAD, nest->out.dtype) : NULL;
    kernel->after = load ? (opdi_group *)opdi_recording_alloc(recording, sizeof *kernel->after) : NULL;
    if (!kernel->after) { return -1; }
    load->access = after->out = nest->out;
    for (int i = after->ndim; i < OPDI_NEST_DIMS; i++) { load->access.strides[i] = after->out.strides[i] = 0; }
    if (kernel->raw) {
        load->access.buffer = kernel->raw;
        load->access.offset = 0;
        memcpy(load->access.strides, kernel->strides, (size_t)after->ndim * sizeof *kernel->strides);
    }
    after->what = "after";
    kernel->after->nests[0] = after;
    kernel->after->nnests = 1;
    after->value = nest->finish ? opdi_kernel_finished(nest->finish, load) : load;
    if (!after->value) { return -1; }
    opdi_nest_order(after);
    return 0;
}
typedef struct opdi_kernel_check { const opdi_buffer *buffer; bool reads; } opdi_kernel_check;
static void opdi_seen_kernel(opdi_access *access, void *user) {
    opdi_kernel_check *const check = (opdi_kernel_check *)user;
    check->reads = check->reads || access->buffer == check->buffer;
}
/* Gives a nest its opdi_nest_kernel, if a kernel of the library can compute it.  Returns 0, or -1 and sets an error. */
static int opdi_kernel_find(opdi_recording *recording, opdi_nest *nest) {
    opdi_kernel_check check = {nest->out.buffer, false};
    opdi_nest_kernel found;
    if (nest->reduction != OPDI_REDUCTION_SUM || nest->place || nest->follows || nest->called ||
        nest->out.dtype != nest->value->dtype ||
        (nest->value->dtype != OPD_FLOAT32 && nest->value->dtype != OPD_FLOAT64)) { return 0; }
    opdi_nest_walk(nest, opdi_seen_kernel, &check);
    if (check.reads) { return 0; }
    memset(&found, 0, sizeof found);
    if (!opdi_kernel_convolution(recording, &found, nest)) {
        if (!opd_ok()) { return -1; }
        memset(&found, 0, sizeof found);
        if (!opdi_kernel_product(&found, nest)) { return 0; }
    }
    opdi_nest_kernel *const kernel = (opdi_nest_kernel *)opdi_recording_alloc(recording, sizeof *kernel);
    if (!kernel) { return -1; }
    *kernel = found;
    kernel->dtype = nest->out.dtype;
    kernel->places[2] = kernel->raw ? 0 : opdi_kernel_bytes(&nest->out, nest->out.offset);
    for (int i = 0; i < 2; i++) {
        const opdi_access *const operand = kernel->operands[i];
        kernel->dtypes[i] = operand->dtype;
        kernel->places[i] = opdi_kernel_bytes(operand, operand->offset);
    }
    kernel->id = recording->nkernels++;
    kernel->next = recording->kernels;
    recording->kernels = nest->kernel = kernel;
    return opdi_kernel_after(recording, kernel, nest);
}
/* Finds the nests that kernels of the library can compute.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_kernels_find(opdi_recording *recording) {
    for (opdi_nest *nest = recording->first; nest; nest = nest->next) {
        if (opdi_kernel_find(recording, nest)) { return -1; }
    }
    return 0;
}

//== running kernels ===================================================================================================

/* Computes the matrix product whose operands and result begin at these addresses.  Returns 0, or -1 if memory runs
   out. */
static int opdi_kernel_multiply(const opdi_nest_kernel *kernel, const char *left, const char *right, char *out) {
    const opdi_gemm_in a = opdi_gemm_in_of(left, (int)kernel->dtypes[0], kernel->left[0], kernel->left[1]);
    const opdi_gemm_in b = opdi_gemm_in_of(right, (int)kernel->dtypes[1], kernel->right[0], kernel->right[1]);
    return opdi_gemm_of((int)kernel->dtype, kernel->rows, kernel->columns, kernel->depth, &a, &b, 0, out,
                        kernel->out[0], kernel->out[1]);
}
/* Computes a nest by its kernel.  The addresses are those of the buffers.  Returns 0, or 4 and sets an error. */
OPDI_INTERNAL int opdi_kernel_run(const opdi_nest_kernel *kernel, const void *left, const void *right, void *out) {
    const char *const a = (const char *)left + kernel->places[0], *const b = (const char *)right + kernel->places[1];
    char *const to = (char *)out + kernel->places[2];
    int64_t at[OPDI_NEST_DIMS] = {0}, count = 1;
    if (kernel->conv.size) { return opdi_conv_any(&kernel->conv, b, a, NULL, to) ? 4 : 0; }
    for (int i = 0; i < kernel->nbatch; i++) { count *= kernel->batch[i]; }
    for (int64_t round = 0; round < count; round++) {
        int64_t moved[3] = {0, 0, 0};
        for (int i = 0; i < kernel->nbatch; i++) {
            for (int k = 0; k < 3; k++) { moved[k] += at[i] * kernel->steps[i][k]; }
        }
        if (opdi_kernel_multiply(kernel, a + moved[0], b + moved[1], to + moved[2])) {
            (void)opd_fail(OPD_ERROR_MEMORY, "a matrix product of a compiled graph: out of memory");
            return 4;
        }
        for (int i = kernel->nbatch - 1; i >= 0 && ++at[i] == kernel->batch[i]; i--) { at[i] = 0; }
    }
    return 0;
}
