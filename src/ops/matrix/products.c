#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:linalg    matrix products
//----------------------------------------------------------------------------------------------------------------------

//== functions that the sections below share ===========================================================================

OPDI_COLD_BEGIN

static opd_tensor *opdi_swap_dims(opd_tensor *tensor, int64_t first, int64_t second) {
    return opd_transpose(tensor, first, second);
}
OPDI_INTERNAL opd_tensor *opdi_mt(opd_tensor *tensor) { return opdi_swap_dims(tensor, -2, -1); }
OPDI_INTERNAL opd_tensor *opdi_reshape_to(opd_tensor *tensor, const int64_t *sizes, int64_t count) {
    return opd_reshape(tensor, opd_ints_of(sizes, count));
}
OPDI_INTERNAL opd_tensor *opdi_expand_to(opd_tensor *tensor, const int64_t *sizes, int64_t count) {
    return opd_expand(tensor, opd_ints_of(sizes, count));
}
OPDI_INTERNAL opd_tensor *opdi_unsqueeze_at(opd_tensor *tensor, int64_t dim) {
    return opd_unsqueeze(tensor, dim);
}
OPDI_INTERNAL opd_tensor *opdi_squeeze_at(opd_tensor *tensor, int64_t dim) {
    return opd_squeeze_dim(tensor, dim);
}
OPDI_INTERNAL opd_tensor *opdi_sum_over(opd_tensor *tensor, const int64_t *dims, int64_t count, bool keepdim) {
    return opd_sum_dim(tensor, opd_ints_of(dims, count), keepdim);
}
OPDI_INTERNAL opd_tensor *opdi_permute_to(opd_tensor *tensor, const int64_t *dims, int64_t count) {
    return opd_permute(tensor, opd_ints_of(dims, count));
}

/* Returns tensor itself if it is contiguous and of dtype `dtype`, else a copy that the innermost scope owns.  On
   failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_dense_as(opd_tensor *tensor, opd_scalar_type dtype) {
    const unsigned as_it_is = OPDI_CONTIGUOUS;
    if (!tensor || (tensor->dtype == (int32_t)dtype && (tensor->flags & (as_it_is | OPDI_LAZY)) == as_it_is)) {
        return tensor;
    }
    opd_tensor *c = opdi_own(opdi_tensor_make(opdi_sizes(tensor), NULL, tensor->ndim, dtype, OPD_CPU));
    return c && opdi_copy(c, tensor) == 0 ? c : NULL;
}
/* Returns a contiguous tensor of this dtype in which a kernel computes the contents of `out`: out itself if possible,
   else a new tensor, which opdi_staging_store later copies to out.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_staging(opd_tensor *out, opd_scalar_type dtype) {
    if (out->dtype == (int32_t)dtype && (out->flags & OPDI_CONTIGUOUS)) { return out; }
    return opdi_own(opdi_tensor_make(opdi_sizes(out), NULL, out->ndim, dtype, OPD_CPU));
}
/* Returns the dtype in which a kernel for float32 and float64 (`ints`: also int64) computes with elements of dtype
   `dtype`.  If the dtype is not supported, returns -1 and sets PyTorch's error, which names the kernel `what`. */
OPDI_INTERNAL int opdi_kernel_dtype(opd_scalar_type dtype, bool ints, const char *what) {
    if (opd_dtype_is_floating(dtype) || (ints && opd_dtype_is_integral(dtype, false))) {
        return opdi_compute_dtype[opdi_compute_type(dtype)];
    }
    return opdi_dtype_fail(what, dtype);
}
/* Checks that tensor can be broadcast to sizes[ndim].  Returns 0, or -1 and sets the error that expand would set. */
OPDI_INTERNAL int opdi_expand_check(const opd_tensor *tensor, const int64_t *sizes, int ndim) {
    char to[256], from[256];
    int shift = ndim - tensor->ndim;
    opdi_sizes_text(sizes, ndim, to, sizeof to);
    opdi_sizes_text(opdi_sizes(tensor), tensor->ndim, from, sizeof from);
    if (shift < 0) {
        return opd_fail(OPD_ERROR_SHAPE, "expand(CPU%sType{%s}, size=%s): the number of sizes provided (%d) must "
                        "be greater or equal to the number of dimensions in the tensor (%d)",
                        opd_dtype_name((opd_scalar_type)tensor->dtype), from, to, ndim, tensor->ndim);
    }
    for (int dim = 0; dim < tensor->ndim; dim++) {
        if (opdi_sizes(tensor)[dim] != sizes[dim + shift] && opdi_sizes(tensor)[dim] != 1) {
            return opd_fail(OPD_ERROR_SHAPE, "The expanded size of the tensor (%lld) must match the existing size "
                            "(%lld) at non-singleton dimension %d.  Target sizes: %s.  Tensor sizes: %s",
                            (long long)sizes[dim + shift], (long long)opdi_sizes(tensor)[dim], dim + shift, to, from);
        }
    }
    return 0;
}
/* Returns the same as opdi_kernel_dtype, but for kernels that call opdi_product, which also supports complex numbers.
   `none`: the product has no terms or no elements; then bool is allowed, too. */
OPDI_INTERNAL int opdi_product_dtype(opd_scalar_type dtype, bool none, const char *what) {
    if (opd_dtype_is_complex(dtype) && opdi_complex_left_out()) { return -1; }
    return opd_dtype_is_complex(dtype) || (none && dtype == OPD_BOOL) ? (int)dtype
        : opdi_kernel_dtype(dtype, true, what);
}
/* Returns true if a or b has no elements, so that their product has no elements or is a sum of no terms. */
OPDI_INTERNAL bool opdi_product_none(const opd_tensor *a, const opd_tensor *b) {
    return a->numel == 0 || b->numel == 0;
}
OPDI_INTERNAL int opdi_same_dtype(const opd_tensor *a, const opd_tensor *b) {
    if (a->dtype == b->dtype) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, "expected scalar type %s but found %s", opd_dtype_name((opd_scalar_type)a->dtype),
                    opd_dtype_name((opd_scalar_type)b->dtype));
}

//== products of vectors, matrices and batches of matrices =============================================================

/* Returns a view of a tensor of up to three dims as a batch of matrices.  A vector is a column or, if `row`, a row. */
static opdi_matrix opdi_matrix_of(const opd_tensor *tensor, bool row) {
    const int64_t *strides = opdi_strides(tensor) + tensor->ndim;
    opdi_matrix matrix;
    matrix.data = tensor->data;
    matrix.bs = 0;
    matrix.rs = 1;
    matrix.cs = 1;
    if (tensor->ndim == 1 && row) { matrix.cs = strides[-1]; }
    else if (tensor->ndim == 1) { matrix.rs = strides[-1]; }
    else if (tensor->ndim > 1) {
        matrix.rs = strides[-2];
        matrix.cs = strides[-1];
    }
    if (tensor->ndim == 3) { matrix.bs = strides[-3]; }
    return matrix;
}
/* Computes the product of pair number i of a batch of matrices, c = a * b + beta * c, as a dot product, an outer
   product or a general product.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_product_at(const opdi_products *products, int64_t i, double beta) {
    const int64_t size = (int64_t)opd_dtype_size((opd_scalar_type)products->dtype),
        in = (int64_t)opd_dtype_size((opd_scalar_type)products->from);
    char *const at = products->c.data + i * products->c.bs * size,
        *const x = products->a.data + i * products->a.bs * in, *const y = products->b.data + i * products->b.bs * in;
    if (products->dots) {
        opdi_dots((size_t)size, 1, products->k, x, 0, y, 0, beta, at, 0);
        return 0;
    }
    if (products->outer && opdi_outer_try((size_t)size, products->m, products->n, x, products->a.rs, y, at,
                                          products->c.rs, products->large)) {
        return 0;
    }
    opdi_gemm_in side = opdi_gemm_in_of(x, products->from, products->a.rs, products->a.cs);
    opdi_gemm_in other = opdi_gemm_in_of(y, products->from, products->b.rs, products->b.cs);
    return opdi_gemm_of(products->dtype, products->m, products->n, products->k, &side, &other, beta, at, products->c.rs,
                        products->c.cs);
}
static void opdi_products_range(void *ctx, int64_t begin, int64_t end) {
    opdi_products *products = (opdi_products *)ctx;
    const int64_t in = (int64_t)opd_dtype_size((opd_scalar_type)products->from);
    if (products->dots) {
        opdi_dots((size_t)in, end - begin, products->k, products->a.data + begin * products->a.bs * in, products->a.bs,
                  products->b.data + begin * products->b.bs * in, products->b.bs, products->beta,
                  products->c.data + begin * products->c.bs * in, products->c.bs);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        if (opdi_product_at(products, i, products->beta) != 0) { OPDI_STORE(&products->failed, 1); }
    }
}
/* Computes c = a * b + beta * c, where a * b is a product of matrices.  If c has fewer dims than a and b (addbmm), sums
   the products over the batch.  c has a dtype that kernels compute with (not a 16-bit float); a and b have the same
   dtype, or 16-bit floats if c is float32.  Returns 0, or -1 and sets an error. */
static int opdi_product_run(opd_tensor *c, opd_tensor *a, opd_tensor *b, double beta) {
    opdi_products products;
    products.a = opdi_matrix_of(a, true);
    products.b = opdi_matrix_of(b, false);
    products.c = opdi_matrix_of(c, false);
    products.dtype = c->dtype;
    products.from = a->dtype;
    products.beta = beta;
    products.failed = 0;
    products.batch = a->ndim == 3 ? opdi_sizes(a)[0] : 1;
    products.m = a->ndim > 1 ? opdi_sizes(a)[a->ndim - 2] : 1;
    products.k = opdi_sizes(a)[a->ndim - 1];
    products.n = b->ndim > 1 ? opdi_sizes(b)[b->ndim - 1] : 1;
    products.dots = products.outer = products.large = 0;
    if (products.from == products.dtype && opd_dtype_is_floating(OPDI_DTYPE(c))) {
        products.dots = products.m == 1 && products.n == 1 &&
            (products.k == 1 || (products.a.cs == 1 && products.b.rs == 1)) &&
            (!opd_same_bits() || (a->ndim == 1 && b->ndim == 1));
        products.outer = products.k == 1 && beta == 0 && c->ndim == a->ndim && products.c.cs == 1 &&
            (products.b.cs == 1 || products.n == 1);
        products.large = c->numel >= 1 << 22;
    }
    if (products.batch == 1) { return opdi_product_at(&products, 0, beta); }
    if (c->ndim < a->ndim) {
        if (products.batch == 0) {
            products.k = 0;
            return opdi_product_at(&products, 0, beta);
        }
        for (int64_t i = 0; i < products.batch; i++) {
            if (opdi_product_at(&products, i, i ? 1.0 : beta) != 0) { return -1; }
        }
        return 0;
    }
    int64_t work = products.m * products.n * products.k + 64;
    if (work >= 1 << 20 && products.batch < opd_threads()) {
        opdi_products_range(&products, 0, products.batch);
    } else {
        const size_t size = opd_dtype_size((opd_scalar_type)products.dtype);
        opdi_parallel_for_scratch(products.batch, OPDI_MAX((int64_t)1, (1 << 18) / work), opdi_products_range,
                                  &products,
                                  products.dots ? 0 : opdi_gemm_scratch_size(size, products.m, products.n, products.k));
    }
    return products.failed ? opdi_buffer_fail() : 0;
}
/* Computes weight = alpha * weight + beta * source.  The tensors are contiguous and have the same dtype, one that
   kernels compute with (not a 16-bit float).  source may be NULL. */
static void opdi_axpby(opd_tensor *weight, const opd_tensor *source, opd_value alpha, opd_value beta) {
    const double a = opdi_number_f64(alpha), b = opdi_number_f64(beta);
    if (weight->dtype == OPD_FLOAT32) {
        float *x = (float *)(void *)weight->data;
        const float *y = source ? (const float *)(const void *)source->data : x, af = (float)a,
            bf = source ? (float)b : 0.0f;
        for (int64_t i = 0; i < weight->numel; i++) { x[i] = source ? af * x[i] + bf * y[i] : af * x[i]; }
    } else if (weight->dtype == OPD_FLOAT64) {
        double *x = (double *)(void *)weight->data;
        const double *y = source ? (const double *)(const void *)source->data : x;
        for (int64_t i = 0; i < weight->numel; i++) { x[i] = source ? a * x[i] + b * y[i] : a * x[i]; }
    } else if (weight->dtype == OPD_INT32) {
        uint32_t *places = (uint32_t *)(void *)weight->data, ai = (uint32_t)opdi_number_i64(alpha),
            bi = (uint32_t)opdi_number_i64(beta);
        const uint32_t *other = source ? (const uint32_t *)(const void *)source->data : places;
        for (int64_t i = 0; i < weight->numel; i++) { places[i] = ai * places[i] + (source ? bi * other[i] : 0); }
    } else {
        uint64_t *places = (uint64_t *)(void *)weight->data, ai = (uint64_t)opdi_number_i64(alpha),
            bi = (uint64_t)opdi_number_i64(beta);
        const uint64_t *other = source ? (const uint64_t *)(const void *)source->data : places;
        for (int64_t i = 0; i < weight->numel; i++) { places[i] = ai * places[i] + (source ? bi * other[i] : 0); }
    }
}
enum { OPDI_SMALL_COMPLEX = 64 };                 /* the largest number of rows, columns and depth of a small product */
static void opdi_complex_split_f32(const opd_tensor *from, char *to, int64_t ld, int64_t apart);
static void opdi_complex_split_f64(const opd_tensor *from, char *to, int64_t ld, int64_t apart);
static void opdi_complex_merge_f32(opd_tensor *out, const char *product);
static void opdi_complex_merge_f64(opd_tensor *out, const char *product);
OPDI_COLD_END
#include "../../typed/f32.h"
#include "complex_parts.typed.h"
#include "../../typed/f64.h"
#include "complex_parts.typed.h"
#include "../../typed/end.h"
OPDI_COLD_BEGIN
/* Computes a small complex product a * b of matrices as one real product: left [2, rows, depth] has the real and
   imaginary parts of a, right [depth, 2, columns] has the parts of b, and left * right has the products of all parts.
   Returns 0, or -1 if memory runs out. */
static int opdi_complex_product_small(opd_tensor *out, const opd_tensor *a, const opd_tensor *b) {
    const int64_t rows = opdi_sizes(out)[0], columns = opdi_sizes(out)[1], depth = opdi_sizes(a)[1];
    const bool twice = out->dtype == OPD_COMPLEX128;
    const size_t size = twice ? sizeof(double) : sizeof(float);
    const size_t first = (size_t)(2 * rows * depth) * size, second = (size_t)(2 * depth * columns) * size;
    const size_t bytes = first + second + (size_t)(4 * rows * columns) * size;
    char *left = opdi_scratch_alloc(bytes);
    if (!left) { return opdi_buffer_fail(); }
    char *right = left + first, *product = right + second;
    const opdi_gemm_in one = opdi_gemm_in_of(left, twice ? OPD_FLOAT64 : OPD_FLOAT32, depth, 1);
    const opdi_gemm_in two = opdi_gemm_in_of(right, twice ? OPD_FLOAT64 : OPD_FLOAT32, 2 * columns, 1);
    (twice ? opdi_complex_split_f64 : opdi_complex_split_f32)(a, left, depth, rows * depth);
    (twice ? opdi_complex_split_f64 : opdi_complex_split_f32)(b, right, 2 * columns, columns);
    const int failed = opdi_gemm(size, 2 * rows, 2 * columns, depth, &one, &two, 0, product, 2 * columns, 1);
    if (!failed) { (twice ? opdi_complex_merge_f64 : opdi_complex_merge_f32)(out, product); }
    opdi_scratch_free(left, bytes);
    return failed ? opdi_buffer_fail() : 0;
}
/* Does the work of opdi_product for complex numbers, by four products of contiguous copies of the real and imaginary
   parts, or by opdi_complex_product_small.  Returns 0, or -1 and sets an error. */
static int opdi_complex_product(opd_tensor *out, opd_tensor *self, opd_tensor *a, opd_tensor *b, opd_value beta,
                                opd_value alpha) {
    const opd_scalar_type dtype = (opd_scalar_type)opdi_real_dtype(out->dtype);
    const bool bare = !self && alpha.tag != OPD_TAG_COMPLEX && opdi_number_f64(alpha) == 1;
    opd_tensor *parts[2], *x[2], *y[2];
    if (bare && out->ndim == 2 && a->ndim == 2 && b->ndim == 2 && a->dtype == out->dtype && b->dtype == out->dtype &&
        !((a->flags | b->flags | out->flags) & OPDI_LAZY) && opdi_sizes(a)[1] > 0 &&
        opdi_sizes(out)[0] <= OPDI_SMALL_COMPLEX && opdi_sizes(out)[1] <= OPDI_SMALL_COMPLEX &&
        opdi_sizes(a)[1] <= OPDI_SMALL_COMPLEX) {
        return opdi_complex_product_small(out, a, b);
    }
    for (int i = 0; i < 2; i++) {
        parts[i] = opdi_own(opdi_tensor_make(opdi_sizes(out), NULL, out->ndim, dtype, OPD_CPU));
        x[i] = opdi_dense_as(opdi_part_of(a, i), dtype);
        y[i] = opdi_dense_as(opdi_part_of(b, i), dtype);
        if (!parts[i] || !x[i] || !y[i]) { return -1; }
    }
    opd_tensor *const less = opd_neg(x[1]);
    if (!less || opdi_product_run(parts[0], x[0], y[0], 0) || opdi_product_run(parts[0], less, y[1], 1) ||
        opdi_product_run(parts[1], x[0], y[1], 0) || opdi_product_run(parts[1], x[1], y[0], 1)) { return -1; }
    opd_tensor *sum = bare ? out
        : opdi_own(opdi_tensor_make(opdi_sizes(out), NULL, out->ndim, OPDI_DTYPE(out), OPD_CPU));
    for (int i = 0; i < 2; i++) { if (!sum || !opd_copy_(opdi_part_of(sum, i), parts[i])) { return -1; } }
    if (bare) { return 0; }
    sum = opdi_scale(sum, alpha);
    if (self) { sum = opd_add(sum, opdi_scale(self, beta)); }
    return sum ? opdi_copy(out, sum) : -1;
}
/* Computes out = alpha * a * b + beta * self for matrices a and b.  self may be NULL, and is not read if beta is 0.
   16-bit floats are rounded only once, at the end.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_product(opd_tensor *out, opd_tensor *self, opd_tensor *a, opd_tensor *b, opd_value beta,
                               opd_value alpha) {
    const opd_scalar_type from = OPDI_DTYPE(a);
    const bool whole = opd_dtype_is_integral(from, true);          /* integers wrap around */
    const opd_scalar_type dtype = whole && from != OPD_INT64 ? OPD_INT32
        : (opd_scalar_type)opdi_compute_dtype[opdi_compute_type(from)];
    opd_tensor *sum = NULL;
    if (!out->data || out->numel == 0) { return 0; }
    if (self && opdi_number_is_zero(beta)) { self = NULL; }
    if (opdi_is_complex(a)) {
        return opdi_complex_left_out() ? -1 : opdi_complex_product(out, self, a, b, beta, alpha);
    }
    if (whole && (from != dtype || OPDI_DTYPE(b) != dtype)) {
        a = opdi_dense_as(a, dtype);
        b = opdi_dense_as(b, dtype);
        if (!a || !b) { return -1; }
    }
    if (out->dtype == (int32_t)dtype && opdi_number_f64(alpha) == 1 && (!whole || !self)) {
        if (self && opdi_copy(out, self) != 0) { return -1; }
        return opdi_product_run(out, a, b, self ? opdi_number_f64(beta) : 0);
    }
    opd_tensor *work = opdi_own(opdi_tensor_make(opdi_sizes(out), NULL, out->ndim, dtype, OPD_CPU));
    if (work && !whole && opdi_number_f64(alpha) == 1) {
        if (self && opdi_copy(work, self) != 0) { return -1; }
        return opdi_product_run(work, a, b, self ? opdi_number_f64(beta) : 0) ? -1 : opdi_copy(out, work);
    }
    if (!work || opdi_product_run(work, a, b, 0) != 0) { return -1; }
    if (self) {
        sum = opdi_own(opdi_tensor_make(opdi_sizes(out), NULL, out->ndim, dtype, OPD_CPU));
        if (!sum || opdi_copy(sum, self) != 0) { return -1; }
    }
    opdi_axpby(work, sum, alpha, beta);
    return opdi_copy(out, work);
}
OPDI_INTERNAL int opdi_product_result(opd_call *call, opd_tensor *self, opd_tensor *a, opd_tensor *b,
                                      const int64_t *sizes, int ndim, opd_value beta, opd_value alpha) {
    if (self && opdi_expand_check(self, sizes, ndim) != 0) { return -1; }
    if (opdi_number_check(beta, OPDI_DTYPE(b)) || opdi_number_check(alpha, OPDI_DTYPE(b))) { return -1; }
    opd_tensor *out = opd_result(call, 0, sizes, ndim, OPDI_DTYPE(b));
    return out ? opdi_product(out, self, a, b, beta, alpha) : -1;
}
OPDI_INTERNAL opd_value opdi_one(void) { return opd_value_int(1); }

//== batching rules for products =======================================================================================

OPDI_INTERNAL opdi_factor opdi_factor_of(opd_call *call, int i) {
    opdi_factor factor;
    factor.tensor = opd_batch_arg(call, i, &factor.dim);
    factor.ndim = call->args[i].u.t->ndim;
    return factor;
}
static opdi_factor opdi_factor_transposed(opdi_factor factor) {
    if (factor.dim > 0) {
        factor.tensor = opd_batch_front(factor.tensor, factor.dim);
        factor.dim = 0;
    }
    if (factor.ndim > 1) { factor.tensor = opdi_mt(factor.tensor); }
    return factor;
}
static opd_tensor *opdi_batch_shape(opd_tensor *tensor, const int64_t *sizes, int count) {
    if (tensor && opdi_has_sizes(tensor, sizes, count)) { return tensor; }
    return tensor && (tensor->flags & OPDI_CONTIGUOUS) ? opd_view(tensor, opd_ints_of(sizes, count))
        : opdi_reshape_to(tensor, sizes, count);
}
static opd_tensor *opdi_batch_shape3(opd_tensor *tensor, int64_t first, int64_t second, int64_t channels) {
    int64_t sizes[3];
    sizes[0] = first;
    sizes[1] = second;
    sizes[2] = channels;
    return opdi_batch_shape(tensor, sizes, 3);
}
/* Computes the products of `factor` [rows, depth] and `other` [depth, place] for B examples, or the products of batches
   of `count` such matrices for each example.  A vector is a row as first factor and a column as second factor.  Returns
   a tensor [B, rows, place], [B, count, rows, place] or [count, B, rows, place], without the dims that vectors lack,
   and sets *dim to the position of B.  On failure, returns NULL and sets an error.

   A factor that all examples share is not repeated: instead, the rows of all examples form one matrix.  If the product
   is then a single mm, and *add is the same for every row, the function adds beta * *add to alpha times the product,
   and sets *add to NULL.  Otherwise it does not use alpha and beta. */
OPDI_INTERNAL opd_tensor *opdi_batch_product(opdi_factor factor, opdi_factor other, opd_tensor **add, opd_value beta,
                                             opd_value alpha, int *dim) {
    const int64_t size = opd_batch_size();
    int64_t sizes[4];
    int row = 0;
    *dim = 0;
    if (factor.dim < 0) {                         /* a b = (b^T a^T)^T */
        const bool turn = factor.ndim > 1 && other.ndim > 1;
        opd_tensor *output = opdi_batch_product(opdi_factor_transposed(other), opdi_factor_transposed(factor),
                                                turn ? NULL : add, beta, alpha, dim);
        return turn ? opdi_mt(output) : output;
    }
    opd_tensor *input = opd_batch_front(factor.tensor, factor.dim);
    opd_tensor *output = other.dim < 0 ? other.tensor : opd_batch_front(other.tensor, other.dim);
    if (!input || !output) { return NULL; }
    const int64_t *bs = opdi_sizes(output) + (other.dim >= 0);
    int64_t rows = factor.ndim > 1 ? opdi_sizes(input)[factor.ndim - 1] : 1;
    int64_t depth = opdi_sizes(input)[factor.ndim];
    int64_t place = other.ndim > 1 ? bs[other.ndim - 1] : 1;
    int64_t count = factor.ndim > 2 ? opdi_sizes(input)[1] : 1;
    if (other.dim >= 0) {
        opd_tensor *const batch = opdi_batch_shape3(input, size * count, rows, depth);
        output = opd_bmm(batch, opdi_batch_shape3(output, size * count, depth, place));
    }
    else if (factor.ndim > 2) {
        output = opd_bmm(opdi_batch_shape3(opdi_swap_dims(input, 0, 1), count, size * rows, depth), output);
        *dim = 1;
    } else {
        sizes[0] = size * rows;
        sizes[1] = depth;
        sizes[2] = place;
        input = opdi_batch_shape(input, sizes, 2);
        output = opdi_batch_shape(output, sizes + 1, 2);
        if (add && *add && ((*add)->ndim == 0 || ((*add)->ndim == 1 && other.ndim > 1))) {
            output = opd_addmm_full(*add, input, output, beta, alpha);
            *add = NULL;
        } else { output = opd_mm(input, output); }
    }
    sizes[row++] = *dim ? count : size;
    if (factor.ndim > 2) { sizes[row++] = *dim ? size : count; }
    if (factor.ndim > 1) { sizes[row++] = rows; }
    if (other.ndim > 1) { sizes[row++] = place; }
    return opdi_batch_shape(output, sizes, row);
}
/* Returns a factor of a sum of products over n: a first factor [n, m, k] is flattened to [m, n * k] or, if `second` is
   true, a second factor [n, k, p] to [n * k, p]. */
static opdi_factor opdi_factor_summed(opdi_factor factor, bool second) {
    if (factor.dim > 0) {
        factor.tensor = opd_batch_front(factor.tensor, factor.dim);
        factor.dim = 0;
    }
    factor.tensor = second ? opd_flatten(factor.tensor, -3, -2)
        : opd_flatten(opdi_swap_dims(factor.tensor, -3, -2), -2, -1);
    factor.ndim = 2;
    return factor;
}
/* Returns true if autocast converts both factors to one dtype in the products that a batching rule calls: if it is on
   for their device, and applies to both. */
static bool opdi_product_casts(const opd_tensor *input, const opd_tensor *output) {
    const int device = opdi_cast_device(input);
    return opdi_autocast_is_on(opdi_self(), device) && opdi_autocast_eligible(input, device) &&
           opdi_autocast_eligible(output, device);
}
/* Batches a product of factors with na and nb dims or, if `summed`, the sum of such products over a batch.  If the call
   has three tensors, the first one is added to the product.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_product_batch(opd_call *call, int na, int nb, bool summed) {
    const int first = call->op->nargs > 2;
    const opd_tensor *input = call->args[first].u.t, *output = call->args[first + 1].u.t;
    opdi_factor factor = opdi_factor_of(call, first), other = opdi_factor_of(call, first + 1);
    const opd_value beta = first ? call->args[3] : opdi_one(), alpha = first ? call->args[4] : opdi_one();
    opd_tensor *added = NULL, *result;
    int64_t sizes[3];
    int dim, sdim = -1, ndim = 0;
    if (input->ndim != na || output->ndim != nb ||
        opdi_sizes(input)[na - 1] != opdi_sizes(output)[nb > 1 ? nb - 2 : 0] ||
        (na == 3 && opdi_sizes(input)[0] != opdi_sizes(output)[0]) ||
        (input->dtype != output->dtype && opdi_is_block(input->dtype) == opdi_is_block(output->dtype) &&
         !opdi_product_casts(input, output))) {
        return opdi_batch_unfit(call);
    }
    const opd_scalar_type dtype = OPDI_DTYPE(opdi_is_block(input->dtype) ? output : input);
    if (strcmp(call->op->schema->name, "vdot") == 0) { factor.tensor = opdi_conj(factor.tensor); }
    if (na > 2 && !summed) { sizes[ndim++] = opdi_sizes(input)[0]; }
    if (na > 1) { sizes[ndim++] = opdi_sizes(input)[na - 2]; }
    if (nb > 1) { sizes[ndim++] = opdi_sizes(output)[nb - 1]; }
    if (first) {
        const opd_tensor *tensor = call->args[0].u.t;
        const int mark = opd_error_mark();
        const bool fits = tensor->ndim <= ndim && opdi_expand_check(tensor, sizes, ndim) == 0;
        (void)opd_error_rewind(mark);
        if (!fits || tensor->dtype != (int32_t)dtype || (!opd_dtype_is_floating(OPDI_DTYPE(tensor)) &&
            (beta.tag == OPD_TAG_FLOAT || alpha.tag == OPD_TAG_FLOAT)) || (!opdi_is_complex(input) &&
            (beta.tag == OPD_TAG_COMPLEX || alpha.tag == OPD_TAG_COMPLEX))) { return opdi_batch_unfit(call); }
        if (!opdi_number_is_zero(beta)) { added = opd_batch_arg(call, 0, &sdim); }
    }
    if (summed) {
        factor = opdi_factor_summed(factor, false);
        other = opdi_factor_summed(other, true);
    }
    opd_tensor *same = sdim < 0 ? added : NULL;
    if (factor.dim < 0 && other.dim < 0) {
        result = opd_matmul(factor.tensor, other.tensor);
        dim = -1;
    }
    else { result = opdi_batch_product(factor, other, &same, beta, alpha, &dim); }
    if (first && !(added && sdim < 0 && !same)) {
        result = opdi_scale(result, alpha);
        if (added) {
            if (sdim >= 0) { added = opdi_batch_pad(opd_batch_front(added, sdim), ndim); }
            if (dim > 0) { result = opd_batch_front(result, dim); }
            result = opd_add(result, opdi_scale(added, beta));
            dim = 0;
        }
    }
    return opd_batch_return(call, result, dim);
}

OPDI_INTERNAL int opdi_product_of_matrices(opd_call *call) { return opdi_product_batch(call, 2, 2, false); }
OPDI_INTERNAL int opdi_product_of_batches(opd_call *call) { return opdi_product_batch(call, 3, 3, false); }
OPDI_INTERNAL int opdi_product_of_sum(opd_call *call) { return opdi_product_batch(call, 3, 3, true); }
OPDI_INTERNAL int opdi_product_of_vector(opd_call *call) { return opdi_product_batch(call, 2, 1, false); }
OPDI_INTERNAL int opdi_product_of_vectors(opd_call *call) { return opdi_product_batch(call, 1, 1, false); }
OPDI_COLD_END
