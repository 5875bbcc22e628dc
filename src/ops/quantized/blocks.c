#include "../ops.h"

//== weights in blocks of few bits =====================================================================================
//
//  The forms that operators have for tensors whose dtype is stored in blocks (see opd_dtype_block): products with a
//  weight in blocks, which never exists as floats as a whole, rows of it, and conversions.  They are called below
//  autograd and all transforms (see >>stored_calls), so gradients, vmap and forward mode compose as for other weights.

//== products ==========================================================================================================

/* A product out = a b of matrices, where b is a weight in blocks.  back: a weight [rows, columns] is b itself;
   otherwise b is its transpose. */
typedef struct opdi_blocks_product {
    opd_tensor *a, *b;
    bool back;
    int64_t rows, columns;       /* of the weight; a row is whole blocks */
    int64_t stride;              /* elements from one row of the weight to the next */
} opdi_blocks_product;

/* Finds out how the weight `b` [k, n] or, as one matrix of a batch, [batch, k, n] lies in memory.  Returns 0, or -1 and
   sets an error. */
static int opdi_blocks_product_of(opdi_blocks_product *product, opd_tensor *a, opd_tensor *b) {
    const int last = b->ndim - 1, row = b->numel ? opdi_block_row_dim(b) : last;
    product->a = a;
    product->b = b;
    product->back = row == last;
    product->rows = opdi_sizes(b)[product->back ? last - 1 : last];
    product->columns = opdi_sizes(b)[product->back ? last : last - 1];
    product->stride = opdi_strides(b)[product->back ? last - 1 : last];
    return row >= last - 1 ? 0
        : opd_fail(OPD_ERROR_SHAPE, "a product with blocks of %s: the blocks must lie along one of the last two dims, "
                   "not along dim %d", opd_dtype_name(OPDI_DTYPE(b)), row);
}
/* Computes y [m, ...] = x [m, ...] w in float32 for the weight at byte `w`.  Returns 0, or -1 and sets an error. */
static int opdi_blocks_product_run(const opdi_blocks_product *product, const char *w, const float *x, int64_t x_stride,
                                   float *y, int64_t m) {
    opdi_block_job job;
    memset(&job, 0, sizeof job);
    job.dtype = OPDI_DTYPE(product->b);
    job.exact = opd_exact_blocks();
    job.m = m;
    job.n = product->rows;
    job.k = product->columns;
    job.w = w;
    job.w_stride = opdi_elements_bytes(product->b->dtype, product->stride);
    job.x = x;
    job.x_stride = x_stride;
    job.y = y;
    job.y_stride = product->back ? product->columns : product->rows;
    return product->back ? opdi_block_product_back(&job) : opdi_block_product(&job);
}
/* Returns the product in float64: converts some rows of the weight at a time, and multiplies by them.  Returns NULL and
   sets an error on failure. */
static opd_tensor *opdi_blocks_product_f64(const opdi_blocks_product *product, opd_tensor *a, opd_tensor *weight) {
    enum { ROWS = 256 };
    opd_tensor *sum = NULL;
    const int64_t m = opdi_sizes(a)[0];
    opd_tensor *const out = opd_empty(OPD_INTS(m, product->back ? product->columns : product->rows), OPD_FLOAT64);
    if (!out || (product->back && !(sum = opd_zero_(out)))) { return NULL; }
    for (int64_t at = 0; at < product->rows && opd_ok(); at += ROWS) {
        const int64_t count = OPDI_MIN((int64_t)ROWS, product->rows - at);
        OPD_SCOPE {
            opd_tensor *const rows = opd_to_dtype(opd_narrow(weight, 0, at, count), OPD_FLOAT64);
            if (product->back) { (void)opd_add_(sum, opd_mm(opd_narrow(a, 1, at, count), rows)); }
            else { (void)opd_copy_(opd_narrow(out, 1, at, count), opd_mm(a, opd_t(rows))); }
        }
    }
    return opd_ok() ? out : NULL;
}
/* Returns a product of one matrix `a` [m, ...] with number `at` of a batch of weights, as contiguous float32, or as
   float64 if a is float64.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_blocks_product_at(const opdi_blocks_product *product, int64_t at) {
    opd_tensor *const b = product->b;
    opd_tensor *a = product->a->ndim == 3 ? opd_select(product->a, 0, at) : product->a;
    opd_tensor *const matrix = b->ndim == 3 ? opd_select(b, 0, at) : b;
    if (!a || !matrix) { return NULL; }
    if (a->dtype == OPD_FLOAT64) {
        return opdi_blocks_product_f64(product, a, product->back ? matrix : opd_t(matrix));
    }
    const int64_t m = opdi_sizes(a)[0];
    opd_tensor *const out = opd_empty(OPD_INTS(m, product->back ? product->columns : product->rows), OPD_FLOAT32);
    const bool rows = a->dtype == OPD_FLOAT32 && (opdi_strides(a)[1] == 1 || opdi_sizes(a)[1] == 1);
    if (!rows) { a = opdi_dense_as(a, OPD_FLOAT32); }
    if (!out || !a) { return NULL; }
    return opdi_blocks_product_run(product, matrix->data, (const float *)(const void *)a->data, opdi_strides(a)[0],
                                   (float *)(void *)out->data, m) ? NULL : out;
}
/* Checks the dtypes of a product: `a` and `self`, which may be NULL, are floats of one dtype, and b is in blocks.
   Returns 0, or -1 and sets an error. */
static int opdi_blocks_product_dtypes(const opd_call *call, const opd_tensor *self, const opd_tensor *a,
                                      const opd_tensor *b) {
    const opd_scalar_type dtype = OPDI_DTYPE(a);
    const opd_tensor *const wrong = self && opdi_is_block(self->dtype) ? self
        : opdi_is_block(a->dtype) || !opdi_is_block(b->dtype) ? a : NULL;
    if (wrong) { return opdi_stored_refuse(call->op, "cpu", wrong->dtype); }
    if (dtype != OPD_FLOAT32 && dtype != OPD_FLOAT16 && dtype != OPD_BFLOAT16 && dtype != OPD_FLOAT64) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: a tensor of %s cannot be multiplied by one of %s, only one of float16, "
                        "bfloat16, float32 or float64 (opd_dequantize makes float32 of blocks)", opdi_call_name(call),
                        opd_dtype_name(dtype), opd_dtype_name(OPDI_DTYPE(b)));
    }
    return !self || self->dtype == a->dtype ? 0
        : opd_fail(OPD_ERROR_DTYPE, "%s: self and the tensor that is multiplied by blocks must have the same dtype, "
                   "but have %s and %s", opdi_call_name(call), opd_dtype_name(OPDI_DTYPE(self)), opd_dtype_name(dtype));
}
/* Copies product number `at` to its part of `out`, and adds beta * self, rounding once.  self may be NULL.  Returns 0,
   or -1 and sets an error. */
static int opdi_blocks_product_end(opd_tensor *out, int64_t at, opd_tensor *product, opd_tensor *self, opd_value beta,
                                   opd_value alpha) {
    opd_tensor *sum = product;
    if (!sum) { return -1; }
    if (opdi_number_f64(alpha) != 1) { sum = opdi_scale(sum, alpha); }
    if (self && !opdi_number_is_zero(beta)) {
        self = sum ? opd_expand(self, opd_ints_of(opdi_sizes(out), out->ndim)) : NULL;
        if (self && out->ndim == 3) { self = opd_select(self, 0, at); }
        if (self) { self = opd_to_dtype(self, OPDI_DTYPE(sum)); }
        sum = self ? opd_add(sum, opdi_scale(self, beta)) : NULL;
    }
    if (out->ndim == 3) { out = opd_select(out, 0, at); }
    return sum && out ? opdi_copy(out, sum) : -1;
}
/* Computes out = beta * self + alpha * a b, where b is in blocks.  self may be NULL.  Returns 0, or -1 and sets an
   error. */
static int opdi_blocks_product_all(opd_tensor *out, opd_tensor *self, opd_tensor *a, opd_tensor *b, opd_value beta,
                                   opd_value alpha) {
    opdi_blocks_product product;
    if (opdi_blocks_product_of(&product, a, b)) { return -1; }
    for (int64_t i = 0; i < (out->ndim == 3 ? opdi_sizes(out)[0] : 1); i++) {
        int rc = -1;
        OPD_SCOPE { rc = opdi_blocks_product_end(out, i, opdi_blocks_product_at(&product, i), self, beta, alpha); }
        if (rc) { return -1; }
    }
    return 0;
}
/* Runs mm, addmm, bmm or baddbmm.  Argument number `first` is multiplied by the next one; if it is 1, argument 0 is
   added.  `ndim` is the number of dims of both.  If the first factor is in blocks, the product is transposed:
   w x = (x^T w^T)^T.  Returns 0, or -1 and sets an error. */
static int opdi_blocks_product_call(opd_call *call, int first, int ndim) {
    opd_tensor *self = first ? opd_arg_tensor(call, 0) : NULL;
    opd_tensor *const a = opd_arg_tensor(call, first), *const b = opd_arg_tensor(call, first + 1);
    const bool turned = opdi_is_block(a->dtype) && !opdi_is_block(b->dtype);
    const opd_value one = opd_value_int(1), beta = first ? opd_arg_value(call, 3) : one;
    const opd_value alpha = first ? opd_arg_value(call, 4) : one;
    int64_t sizes[3];
    if (opdi_blocks_product_dtypes(call, self, turned ? b : a, turned ? a : b)) { return -1; }
    const opd_scalar_type dtype = OPDI_DTYPE(turned ? b : a);
    if (opdi_number_check(beta, dtype) || opdi_number_check(alpha, dtype)) { return -1; }
    const int64_t *const x = opdi_sizes(a), *const y = opdi_sizes(b);
    if (a->ndim != ndim || b->ndim != ndim || x[ndim - 1] != y[ndim - 2] || (ndim == 3 && x[0] != y[0])) {
        char left[256], right[256];
        return opd_fail(OPD_ERROR_SHAPE, "%s: sizes %s and %s cannot be multiplied: they must be %d-D and fit",
                        opdi_call_name(call), opdi_sizes_text(x, a->ndim, left, sizeof left),
                        opdi_sizes_text(y, b->ndim, right, sizeof right), ndim);
    }
    sizes[0] = x[0];
    sizes[ndim - 2] = x[ndim - 2];
    sizes[ndim - 1] = y[ndim - 1];
    if (self && opdi_expand_check(self, sizes, ndim) != 0) { return -1; }
    opd_tensor *const out = opd_result(call, 0, sizes, ndim, dtype);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    if (!turned) { return opdi_blocks_product_all(out, self, a, b, beta, alpha); }
    if (self) { self = opdi_mt(opd_expand(self, opd_ints_of(sizes, ndim))); }
    opd_tensor *const across = opdi_mt(out), *const left = opdi_mt(b), *const right = opdi_mt(a);
    return opd_ok() ? opdi_blocks_product_all(across, self, left, right, beta, alpha) : -1;
}
/* mv: a product with a matrix of one column. */
static int opdi_blocks_vector(opd_call *call) {
    opd_tensor *const a = opd_arg_tensor(call, 0), *const x = opd_arg_tensor(call, 1);
    if (a->ndim != 2 || x->ndim != 1 || opdi_sizes(a)[1] != x->numel) {
        return opd_fail(OPD_ERROR_SHAPE, "mv: sizes of a %d-D and a %d-D tensor cannot be multiplied, which must be a "
                        "matrix and a vector that fit", a->ndim, x->ndim);
    }
    if (opdi_blocks_product_dtypes(call, NULL, x, a)) { return -1; }
    opd_tensor *const out = opd_result(call, 0, opdi_sizes(a), 1, OPDI_DTYPE(x));
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    opd_tensor *const row = opd_unsqueeze(out, 0), *const left = opd_unsqueeze(x, 0), *const right = opd_t(a);
    const opd_value one = opd_value_int(1);
    return opd_ok() ? opdi_blocks_product_all(row, NULL, left, right, one, one) : -1;
}

//== rows ==============================================================================================================
//
//  These forms use nothing of the families of operators for indices, which a program can leave out.

/* Returns the indices as contiguous int64 after checking that each is in [0, size).  Returns NULL and sets an error if
   one is not, or if that fails. */
static opd_tensor *opdi_blocks_index(opd_tensor *index, int64_t size) {
    index = opdi_dense_as(index, OPD_INT64);
    for (int64_t i = 0; index && i < index->numel; i++) {
        const int64_t at = ((const int64_t *)(const void *)index->data)[i];
        if (at >= 0 && at < size) { continue; }
        (void)opd_fail(OPD_ERROR_INDEX, "index out of range in self: %lld, of %lld rows", (long long)at,
                       (long long)size);
        return NULL;
    }
    return index;
}
/* Returns 0 if `index` has a dtype of indices, or -1 and sets an error. */
static int opdi_blocks_index_dtype(const opd_call *call, const opd_tensor *index) {
    return index->dtype == OPD_INT64 || index->dtype == OPD_INT32 ? 0
        : opd_fail(OPD_ERROR_DTYPE, "%s: Expected dtype int32 or int64 for indices, not %s", opdi_call_name(call),
                   opd_dtype_name(OPDI_DTYPE(index)));
}

/* A pass that converts rows of a weight to float32. */
typedef struct opdi_blocks_rows {
    const opd_tensor *weight;
    const int64_t *index;
    float *out;
    int64_t width, bytes;        /* bytes: from one row of the weight to the next */
} opdi_blocks_rows;
static void opdi_blocks_rows_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_blocks_rows *const rows = (const opdi_blocks_rows *)ctx;
    for (int64_t i = begin; i < end; i++) {
        (void)opdi_blocks_decode(OPDI_DTYPE(rows->weight), rows->weight->data + rows->index[i] * rows->bytes,
                                 rows->out + i * rows->width, rows->width);
    }
}
/* embedding: returns the rows of weight at the indices, as float32. */
static int opdi_blocks_embedding(opd_call *call) {
    opd_tensor *const weight = opd_arg_tensor(call, 0);
    opd_tensor *input = opd_arg_tensor(call, 1);
    int64_t sizes[OPD_MAX_DIMS];
    opdi_blocks_rows rows;
    if (weight->ndim != 2 || (weight->numel && opdi_block_row_dim(weight) != 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "embedding: a weight in blocks must be 2-D, with blocks along its rows");
    }
    if (opdi_blocks_index_dtype(call, input)) { return -1; }
    if (input->ndim >= OPD_MAX_DIMS) { return opdi_dims_fail(input->ndim + 1); }
    memcpy(sizes, opdi_sizes(input), sizeof *sizes * input->ndim);
    sizes[input->ndim] = rows.width = opdi_sizes(weight)[1];
    opd_tensor *const out = opd_result(call, 0, sizes, input->ndim + 1, OPD_FLOAT32);
    if (!out || !out->data || !input->data) { return out ? 0 : -1; }
    if (!(input = opdi_blocks_index(input, opdi_sizes(weight)[0]))) { return -1; }
    if (out->numel == 0 || opdi_blocks_readable(OPDI_DTYPE(weight))) { return out->numel ? -1 : 0; }
    opd_tensor *const to = out->flags & OPDI_CONTIGUOUS ? out : opd_empty(opd_ints_of(sizes, out->ndim), OPD_FLOAT32);
    if (!to) { return -1; }
    rows.weight = weight;
    rows.index = (const int64_t *)(const void *)input->data;
    rows.out = (float *)(void *)to->data;
    rows.bytes = opdi_elements_bytes(weight->dtype, opdi_strides(weight)[0]);
    opdi_parallel_for(input->numel, OPDI_MAX((int64_t)1, OPDI_GRAIN / rows.width), opdi_blocks_rows_range, &rows);
    return to == out ? 0 : opdi_copy(out, to);
}
/* index_select: copies the slices of dim at the positions in index, as blocks. */
static int opdi_blocks_select(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    opd_tensor *index = opd_arg_tensor(call, 2);
    const int dim = opdi_dim_of(opd_arg_int(call, 1), self->ndim);
    int64_t sizes[OPD_MAX_DIMS];
    if (dim < 0 || opdi_blocks_index_dtype(call, index)) { return -1; }
    if (index->ndim > 1) { return opd_fail(OPD_ERROR_INDEX, "index_select(): Index is supposed to be a vector"); }
    if (self->numel && dim == opdi_block_row_dim(self)) {
        return opd_fail(OPD_ERROR_SHAPE, "index_select(): dim %d has the blocks of %s, which cannot be cut "
                        "(opd_dequantize makes float32 of it)", dim, opd_dtype_name(OPDI_DTYPE(self)));
    }
    const int row = self->numel ? opdi_block_row_dim(self) : self->ndim - 1, last = self->ndim - 1;
    if (row != last) {                            /* a transposed weight: a result without gaps would cut blocks */
        opd_tensor *const rows = opd_transpose(self, row, last);
        opd_tensor *const some = rows ? opd_index_select(rows, dim == last ? row : dim, index) : NULL;
        return some ? opd_return_tensor(call, opd_transpose(some, row, last)) : -1;
    }
    memcpy(sizes, opdi_sizes(self), sizeof *sizes * self->ndim);
    sizes[dim] = index->numel;
    opd_tensor *const out = opd_result(call, 0, sizes, self->ndim, OPDI_DTYPE(self));
    if (!out || !out->data || !index->data) { return out ? 0 : -1; }
    if (!(index = opdi_blocks_index(index, opdi_sizes(self)[dim]))) { return -1; }
    for (int64_t i = 0; i < index->numel && out->numel; i++) {
        const int64_t from = ((const int64_t *)(const void *)index->data)[i];
        int rc = -1;
        OPD_SCOPE {
            opd_tensor *const to = opd_narrow(out, dim, i, 1);
            const opd_tensor *const slice = to ? opd_narrow(self, dim, from, 1) : NULL;
            rc = slice ? opdi_copy(to, slice) : -1;
        }
        if (rc) { return -1; }
    }
    return 0;
}
/* cat: joins tensors of one dtype, as blocks. */
static int opdi_blocks_cat(opd_call *call) {
    const opd_tensors tensors = opd_arg_tensors(call, 0);
    opd_tensor *const first = tensors.data[0];
    const int dim = opdi_dim_of(opd_arg_int(call, 1), first->ndim);
    int64_t sizes[OPD_MAX_DIMS], at = 0;
    if (dim < 0) { return -1; }
    memcpy(sizes, opdi_sizes(first), sizeof *sizes * first->ndim);
    sizes[dim] = 0;
    for (int i = 0; i < tensors.n; i++) {
        const opd_tensor *const tensor = tensors.data[i];
        if (tensor->dtype != first->dtype) {
            return opdi_stored_refuse(call->op, "cpu", opdi_is_block(first->dtype) ? first->dtype : tensor->dtype);
        }
        bool fits = tensor->ndim == first->ndim;
        for (int k = 0; fits && k < first->ndim; k++) { fits = k == dim || opdi_sizes(tensor)[k] == sizes[k]; }
        if (!fits) {
            return opd_fail(OPD_ERROR_SHAPE, "cat: sizes of tensors must match except in dimension %d, but tensor %d "
                            "has other sizes", dim, i);
        }
        sizes[dim] = opdi_size_plus(sizes[dim], opdi_sizes(tensor)[dim]);
    }
    opd_tensor *const out = opd_result(call, 0, sizes, first->ndim, OPDI_DTYPE(first));
    if (!out || !out->data) { return out ? 0 : -1; }
    for (int i = 0; i < tensors.n; i++) {
        const int64_t count = opdi_sizes(tensors.data[i])[dim];
        int rc = 0;
        if (tensors.data[i]->numel == 0) { continue; }
        OPD_SCOPE {
            opd_tensor *const to = opd_narrow(out, dim, at, count);
            rc = to ? opdi_copy(to, tensors.data[i]) : -1;
        }
        if (rc) { return -1; }
        at += count;
    }
    return 0;
}
/* stack: joins tensors of one dtype along a new dim, as blocks. */
static int opdi_blocks_stack(opd_call *call) {
    const opd_tensors tensors = opd_arg_tensors(call, 0);
    const int dim = opdi_dim_of(opd_arg_int(call, 1), tensors.data[0]->ndim + 1);
    opd_tensor **const rows = dim < 0 ? NULL : opdi_scope_tensors((int)tensors.n);
    if (!rows) { return -1; }
    for (int i = 0; i < tensors.n; i++) {
        if (!(rows[i] = opd_unsqueeze(tensors.data[i], OPDI_MIN(dim, tensors.data[i]->ndim)))) { return -1; }
    }
    return opd_return_tensor(call, opd_cat(opd_tensors_of(rows, tensors.n), dim));
}

//== the forms =========================================================================================================

/* Checks that all tensors of a call on a device are on the same one.  Returns 0, or -1 and sets an error. */
static int opdi_blocks_same_device(const opd_call *call) {
    const opd_tensor *first = NULL;
    for (int i = 0; i < call->op->nargs; i++) {
        const opd_value *const v = &call->args[i];
        const int n = v->tag == OPD_TAG_TENSOR ? 1 : v->tag == OPD_TAG_TENSORS ? v->n : 0;
        for (int k = 0; k < n; k++) {
            const opd_tensor *const t = v->tag == OPD_TAG_TENSOR ? v->u.t : v->u.tensors[k];
            if (!t || !opdi_on_device(t)) { continue; }
            if (!first) { first = t; }
            if (opd_tensor_device(t).index != opd_tensor_device(first).index) {
                return opdi_device_differs(call, opd_tensor_device(first), t);
            }
        }
    }
    return 0;
}
/* Runs a call on a device: by its kernel for blocks or, if it has none for this call, on the CPU.  Returns 0, or -1 and
   sets an error. */
static int opdi_blocks_on_device(opd_call *call) {
    if (opdi_blocks_same_device(call)) { return -1; }
    const opdi_backend *const backend = opdi_backend_of((int)call->slot - (int)OPD_KEY_CPU);
    const int rc = backend && backend->desc.blocks ? backend->desc.blocks(call) : 1;
    return rc == 1 ? opd_cpu_fallback(call) : rc;
}
/* Runs a call of an operator that has a form for blocks: the operators with OPDI_STORED_BLOCKS in >>stored_dtypes.
   Returns 0, or -1 and sets an error. */
static int opdi_blocks_call(opd_call *call) {
    static const struct { const char *name; int (*run)(opd_call *call); int first, ndim; } forms[] = {
        {"mm", NULL, 0, 2}, {"addmm", NULL, 1, 2}, {"bmm", NULL, 0, 3}, {"baddbmm", NULL, 1, 3},
        {"mv", opdi_blocks_vector, 0, 0}, {"embedding", opdi_blocks_embedding, 0, 0},
        {"index_select", opdi_blocks_select, 0, 0}, {"cat", opdi_blocks_cat, 0, 0},
        {"stack", opdi_blocks_stack, 0, 0}};
    const bool device = call->slot != OPD_KEY_CPU && call->slot != OPD_KEY_META;
    size_t at = 0;
    if (device) { return opdi_blocks_on_device(call); }
    while (at + 1 < sizeof forms / sizeof *forms && strcmp(call->op->schema->name, forms[at].name) != 0) { at++; }
    return forms[at].run ? forms[at].run(call) : opdi_blocks_product_call(call, forms[at].first, forms[at].ndim);
}
/* Lets lower layers find the functions for blocks.  Called when the operator dequantize is registered: see
   opdi_block_forms_of. */
static void opdi_blocks_noted(void) {
    static const opdi_block_forms forms = {
        opdi_blocks_decode, opdi_int_floats, opdi_blocks_encode, opdi_blocks_call, opdi_block_copy};
    OPDI_PUBLISH(&opdi_on_blocks, &forms);
}

/* dequantize: the numbers of a tensor in blocks as float32.  Other tensors are converted, too, as in PyTorch.  The
   result has memory of its own: channels last if the tensor is, else contiguous. */
static int opdi_dequantize_kernel(opd_call *call) {
    enum { CONTIGUOUS = 0, PRESERVE = 1, LAST = 2 };
    opd_tensor *const self = opd_arg_tensor(call, 0), *const numbers = opd_to_dtype(self, OPD_FLOAT32);
    const bool last = (self->ndim == 4 || self->ndim == 5) && opd_sym_is_contiguous_full(self, LAST + self->ndim - 4);
    if (numbers && numbers != self && !last && opd_is_contiguous(numbers)) { return opd_return_tensor(call, numbers); }
    return numbers ? opd_return_tensor(call, opd_clone_full(numbers, opd_value_int(last ? PRESERVE : CONTIGUOUS))) : -1;
}
/* opd_dequantize: self as float32; blocks become the numbers that they stand for */
OPDI_OP(dequantize_self) {
    op->schema = "dequantize.self(Tensor self) -> Tensor";
    opdi_blocks_noted();
    op->composite = opdi_dequantize_kernel;
    op->cases = "[2,3]";
}
