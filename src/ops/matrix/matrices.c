#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:matrices  products, powers and norms of matrices, ranks, pseudo-inverses, least squares solutions
//
//  Most operators here call those of >>op:equations, >>op:spectral and >>op:eig, which have the backward functions.
//----------------------------------------------------------------------------------------------------------------------

//== vector products, powers, Vandermonde matrices =====================================================================

static int opdi_cross_kernel_with(opd_call *call, int64_t dim) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1), *parts[3];
    if (a->ndim != b->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "linalg.cross: inputs must have the same number of dimensions.");
    }
    const int place = opdi_dim_of(dim, a->ndim);
    if (place < 0) { return -1; }
    if (a->ndim == 0 || opdi_sizes(a)[place] != 3 || opdi_sizes(b)[place] != 3) {
        return opd_fail(OPD_ERROR_SHAPE, "linalg.cross: inputs dimension %lld must have length 3. Got %lld and %lld",
                        (long long)dim, a->ndim ? (long long)opdi_sizes(a)[place] : 1,
                        b->ndim ? (long long)opdi_sizes(b)[place] : 1);
    }
    if (opdi_same_dtype(a, b)) { return -1; }
    for (int i = 0; i < 3; i++) {
        const int next = (i + 1) % 3, last = (i + 2) % 3;
        opd_tensor *one = opd_select(a, place, next), *other = opd_select(a, place, last);
        one = opd_mul(one, opd_select(b, place, last));
        if (!(parts[i] = opd_sub(one, opd_mul(other, opd_select(b, place, next))))) { return -1; }
    }
    const opd_key_guard guard = opdi_autocast_off();             /* as in PyTorch, autocast does not see the parts */
    opd_tensor *const result = opd_stack(opd_tensors_of(parts, 3), place);
    opd_keys_restore(guard);
    return opd_return_tensor(call, result);
}
static int opdi_linalg_cross_kernel(opd_call *call) { return opdi_cross_kernel_with(call, opd_arg_int(call, 2)); }
static int opdi_cross_kernel(opd_call *call) {          /* along dim or, if it is None, along the first dim of size 3 */
    const opd_tensor *a = opd_arg_tensor(call, 0);
    if (!opd_arg_is_none(call, 2)) { return opdi_cross_kernel_with(call, opd_arg_int(call, 2)); }
    for (int i = 0; i < a->ndim; i++) { if (opdi_sizes(a)[i] == 3) { return opdi_cross_kernel_with(call, i); } }
    return opd_fail(OPD_ERROR_SHAPE, "no dimension of size 3 in input");
}
/* opd_linalg_cross: the vector product along dim, which has size 3 */
OPDI_OP(linalg_cross) {
    op->schema = "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor";
    op->composite = opdi_linalg_cross_kernel;
    op->out = "linalg_cross.out"; op->tags = OPDI_OPTAG_OUT_APART;
    op->cases = "[2,3], [2,3]; [3,2], [3,2], dim=0; [2,3], [1,3]";
}
/* opd_cross: the vector product along dim or, without dim, along the first dim of size 3 */
OPDI_OP(cross) {
    op->schema = "cross(Tensor self, Tensor other, int? dim=None) -> Tensor";
    op->composite = opdi_cross_kernel;
    op->autocast = OPD_AUTOCAST_PROMOTE_NOT_CPU;
    op->out = "cross.out"; op->tags = OPDI_OPTAG_OUT_APART;
    op->cases = "[2,3], [2,3]; [3,2], [3,2], 0";
}
static int opdi_linalg_vecdot_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y = opd_arg_tensor(call, 1);
    const int64_t dim = opd_arg_int(call, 2);
    if (opdi_float_check(x, "linalg.vecdot", false)) { return -1; }
    if (x->dtype != y->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "linalg.vecdot: Expected x and y to have the same dtype, but found x of "
                        "type %s and y of type %s instead", opd_dtype_name(OPDI_DTYPE(x)),
                        opd_dtype_name(OPDI_DTYPE(y)));
    }
    return opd_return_tensor(call, x->ndim == 1 && y->ndim == 1 ? opd_vdot(x, y)
                             : opd_sum_dim(opd_mul(opdi_conj(x), y), opd_ints_of(&dim, 1), false));
}
/* opd_linalg_vecdot: the sum of conj(x) * y along dim */
OPDI_OP(linalg_vecdot) {
    op->schema = "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor";
    op->composite = opdi_linalg_vecdot_kernel;
    op->autocast = OPD_AUTOCAST_LOWER;
    op->out = "linalg_vecdot.out";
    op->cases = "[2,3], [2,3]; [3,2], [1,2], dim=0";
}
/* linalg_matrix_power: computes self^n by repeated squaring; if n is negative, the inverse to the power -n. */
static int opdi_linalg_matrix_power_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *result = NULL;
    const int64_t n = opd_arg_int(call, 1);
    if (opdi_square_check(input, "linalg.matrix_power")) { return -1; }
    if (n == 0) {
        return opd_return_tensor(call, opd_copy(input, opdi_identity_like(input)));     /* makes the gradient 0 */
    }
    if (n < 0) { input = opd_linalg_inv(input); }
    uint64_t rest = n < 0 ? (uint64_t)0 - (uint64_t)n : (uint64_t)n;
    if (rest == 1) { return opd_return_tensor(call, n < 0 ? input : opd_clone(input)); }
    for (; rest && opd_ok(); rest >>= 1) {
        if (rest & 1) { result = result ? opd_matmul(result, input) : input; }
        if (rest > 1) { input = opd_matmul(input, input); }
    }
    return opd_return_tensor(call, opd_ok() ? result : NULL);
}
/* opd_linalg_matrix_power: the n-th power of a square matrix, or of its inverse if n < 0 */
OPDI_OP(linalg_matrix_power) {
    op->schema = "linalg_matrix_power(Tensor self, int n) -> Tensor";
    op->composite = opdi_linalg_matrix_power_kernel;
    op->out = "linalg_matrix_power.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[3,3], 3; [2,3,3], -2; [3,3], 0; [3,3], 1";
}
/* opd_matrix_power: the same as linalg_matrix_power */
OPDI_OP(matrix_power) {
    op->schema = "matrix_power(Tensor self, int n) -> Tensor";
    op->composite = opdi_linalg_matrix_power_kernel;
    op->out = "matrix_power.out";
    op->cases = "[3,3], 2";
}
/* Returns powers 0 .. count - 1 of x [.., n] along a new last dim, as int64 if `whole`. */
static opd_tensor *opdi_powers_of(opd_tensor *x, int64_t count, bool whole) {
    const opd_scalar_type dtype = whole ? OPD_INT64 : opd_dtype(x);
    opd_tensor *column = opd_unsqueeze(opd_to_dtype(x, dtype), -1), *parts[2];
    int64_t sizes[OPD_MAX_DIMS + 1];
    if (!column) { return NULL; }
    const int ndim = column->ndim;
    memcpy(sizes, opdi_sizes(column), (size_t)ndim * sizeof *sizes);
    if (count < 2) {
        sizes[ndim - 1] = count;
        return opd_new_ones(column, opd_ints_of(sizes, ndim));
    }
    parts[0] = opd_new_ones(column, opd_ints_of(sizes, ndim));
    sizes[ndim - 1] = count - 1;
    parts[1] = opd_cumprod(opdi_expand_to(column, sizes, ndim), -1);
    return opd_cat(opd_tensors_of(parts, 2), -1);
}
static int opdi_linalg_vander_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = opd_dtype(x);
    if (dtype != OPD_FLOAT32 && dtype != OPD_FLOAT64 && dtype != OPD_COMPLEX64 && dtype != OPD_COMPLEX128 &&
        !opd_dtype_is_integral(dtype, false)) {
        return opd_fail(OPD_ERROR_DTYPE, "linalg.vander supports floating point, complex, and integer tensors, but "
                        "got %s", opd_dtype_name(dtype));
    }
    if (x->ndim == 0 && !(x = opd_unsqueeze(x, -1))) { return -1; }
    const int64_t count = opd_arg_is_none(call, 1) ? opd_size(x, -1) : opd_arg_int(call, 1);
    if (count <= 1) { return opd_fail(OPD_ERROR_ARGUMENT, "N must be greater than 1."); }
    return opd_return_tensor(call, opdi_powers_of(x, count, opd_dtype_is_integral(dtype, false)));
}
static int opdi_vander_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    const int64_t last = -1;
    if (x->ndim != 1) { return opd_fail(OPD_ERROR_SHAPE, "x must be a one-dimensional tensor."); }
    const int64_t count = opd_arg_is_none(call, 1) ? x->numel : opd_arg_int(call, 1);
    if (count < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "N must be non-negative."); }
    opd_tensor *powers = opdi_powers_of(x, count, opd_dtype_is_integral(opd_dtype(x), true));
    return opd_return_tensor(call, opd_arg_bool(call, 2) ? powers : opd_flip(powers, opd_ints_of(&last, 1)));
}
/* opd_linalg_vander: the powers 0 to N - 1 of x, along a new last dim */
OPDI_OP(linalg_vander) {
    op->schema = "linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor";
    op->composite = opdi_linalg_vander_kernel;
    op->cases = "[3]; [3,4]; [3], N=5; [3]i5";
}
/* opd_vander: the columns are powers of x, from the highest on or, if increasing is true, from 0 on */
OPDI_OP(vander) {
    op->schema = "vander(Tensor x, int? N=None, bool increasing=False) -> Tensor";
    op->composite = opdi_vander_kernel;
    op->cases = "[3]; [4], 3, True; [3], 1; [3]i5";
}
static int opdi_linalg_matmul_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_matmul(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)));
}
/* opd_linalg_matmul: the same as matmul */
OPDI_OP(linalg_matmul) {
    op->schema = "linalg_matmul(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_linalg_matmul_kernel;
    op->out = "linalg_matmul.out";
    op->cases = "[2,3], [3,2]; [3], [3]";
}
/* Returns the product of the sizes of dims [from, to). */
static int64_t opdi_sizes_product(const opd_tensor *tensor, int from, int to) {
    int64_t count = 1;
    for (int i = from; i < to; i++) { count *= opdi_sizes(tensor)[i]; }
    return count;
}
/* tensorinv: inverts self as a linear map from its last dims to its first `ind` dims. */
static int opdi_linalg_tensorinv_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *rets[2];
    const int64_t ind = opd_arg_int(call, 1);
    int64_t sizes[OPD_MAX_DIMS];
    if (ind <= 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Expected a strictly positive integer for 'ind', but got %lld",
                        (long long)ind);
    }
    const int first = (int)OPDI_MIN(ind, (int64_t)input->ndim);
    int64_t square[2];
    square[0] = opdi_sizes_product(input, 0, first);
    square[1] = opdi_sizes_product(input, first, input->ndim);
    if (square[0] != square[1]) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
                        "prod(self.shape[:ind]), but got %lld != %lld", (long long)square[1], (long long)square[0]);
    }
    for (int i = 0; i < input->ndim; i++) { sizes[i] = opdi_sizes(input)[(i + first) % input->ndim]; }
    opd_tensor *matrix = opdi_reshape_to(input, square, 2);
    return !matrix || opd_linalg_inv_ex(rets, matrix) || opdi_errors_of(rets[1], "inv", matrix) ? -1
        : opd_return_tensor(call, opdi_reshape_to(rets[0], sizes, input->ndim));
}
/* opd_linalg_tensorinv: the inverse of self as a linear map from its last dims to its first ind dims */
OPDI_OP(linalg_tensorinv) {
    op->schema = "linalg_tensorinv(Tensor self, int ind=2) -> Tensor";
    op->composite = opdi_linalg_tensorinv_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_tensorinv.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3,6]; [3,1,3], 1";
}

//== norms of matrices and condition numbers ===========================================================================

/* Returns the order of a norm as text for an error message: the string itself, or the number, written to text[size]. */
static const char *opdi_order_text(opd_value order, char *text, size_t size) {
    if (order.tag == OPD_TAG_STR) { return order.u.s; }
    if (order.tag == OPD_TAG_INT) { (void)snprintf(text, size, "%lld", (long long)order.u.i); }
    else { (void)snprintf(text, size, "%g", opdi_number_f64(order)); }
    return text;
}
static bool opdi_is_text(opd_value value, const char *text) {
    return value.tag == OPD_TAG_STR && strcmp(value.u.s, text) == 0;
}
/* Checks the arguments of a matrix norm.  Sets dims[0] and dims[1] to the two dims in `given`, as numbers from 0.  If
   `halves` is true, 16-bit dtypes are allowed.  Returns 0, or -1 and sets an error. */
static int opdi_matrix_norm_check(opd_tensor *tensor, opd_ints given, opd_scalar_type dtype, bool halves,
                                  int64_t *dims) {
    const char *name = "linalg.matrix_norm";
    char text[256];
    if (opdi_matrix_check(tensor, name) || opdi_float_check(tensor, name, !halves)) { return -1; }
    if (given.n != 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: dim must have two elements. Got %s", name,
                        opdi_sizes_text(given.data, (int)given.n, text, sizeof text));
    }
    for (int i = 0; i < 2; i++) {
        const int dim = opdi_dim_of(given.data[i], tensor->ndim);
        if (dim < 0) { return -1; }
        dims[i] = dim;
    }
    if (dims[0] == dims[1]) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: dims must be different. Got (%lld, %lld)", name, (long long)dims[0],
                        (long long)dims[1]);
    }
    return opdi_norm_dtype_check(tensor, dtype, name);
}
/* Returns the largest value along dim (0 if there are none) or, if `order` is negative, the smallest. */
static opd_tensor *opdi_extreme_of(opd_tensor *tensor, double order, int64_t dim, bool keepdim) {
    const opd_ints dims = opd_ints_of(&dim, 1);
    if (!tensor) { return NULL; }
    if (order < 0) { return opd_amin(tensor, dims, keepdim); }
    return opd_size(tensor, (int)dim) == 0 ? opd_sum_dim(tensor, dims, keepdim) : opd_amax(tensor, dims, keepdim);
}
/* Returns a norm of the matrices in dims[0] and dims[1], computed from their singular values: for order 2 the largest,
   for -2 the smallest, for 0 the sum. */
static opd_tensor *opdi_spectral_norm(opd_tensor *tensor, double order, const int64_t *dims, bool keepdim,
                                      opd_scalar_type dtype) {
    const int64_t last = -1;
    int64_t perm[OPD_MAX_DIMS];
    int count = 0;
    if (dtype != OPD_DTYPE_NONE && !(tensor = opd_to_dtype(tensor, dtype))) { return NULL; }
    for (int i = 0; i < tensor->ndim; i++) { if (i != dims[0] && i != dims[1]) { perm[count++] = i; } }
    perm[count++] = dims[0];
    perm[count++] = dims[1];
    opd_tensor *values = opd_linalg_svdvals(opd_permute(tensor, opd_ints_of(perm, count)));
    opd_tensor *result = order == 0 ? opd_sum_dim(values, opd_ints_of(&last, 1), false)
        : opdi_extreme_of(values, order, -1, false);
    if (!keepdim) { return result; }
    return opd_unsqueeze(opd_unsqueeze(result, OPDI_MIN(dims[0], dims[1])), OPDI_MAX(dims[0], dims[1]));
}
/* Returns a matrix norm over the two dims `given`.  order: 'fro', 'nuc', or a number whose absolute value is 1, 2 or
   infinity.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_matrix_norm(opd_tensor *tensor, opd_value order, opd_ints given, bool keepdim,
                                    opd_scalar_type dtype) {
    const bool text = order.tag == OPD_TAG_STR, frobenius = opdi_is_text(order, "fro");
    const double number = text ? 0 : opdi_number_f64(order), size = fabs(number);
    const opd_value want = dtype == OPD_DTYPE_NONE ? opd_value_none() : opd_value_int((int64_t)dtype);
    char buffer[64];
    int64_t dims[2];
    if (!tensor) { return NULL; }
    if (text ? !frobenius && !opdi_is_text(order, "nuc") : size != 1 && size != 2 && size != OPDI_INF) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "linalg.matrix_norm: Order %s not supported.",
                       opdi_order_text(order, buffer, sizeof buffer));
        return NULL;
    }
    if (opdi_matrix_norm_check(tensor, given, dtype, text ? frobenius : size != 2, dims)) { return NULL; }
    if (frobenius) {
        return opd_linalg_vector_norm_full(tensor, opd_value_int(2), opd_value_ints(dims, 2), keepdim, want);
    }
    if (text || size == 2) { return opdi_spectral_norm(tensor, number, dims, keepdim, dtype); }
    const int64_t inner = size == 1 ? dims[0] : dims[1], outer = size == 1 ? dims[1] : dims[0];
    opd_tensor *sums = opd_linalg_vector_norm_full(tensor, opd_value_int(1), opd_value_ints(&inner, 1), keepdim, want);
    return opdi_extreme_of(sums, number, outer - (!keepdim && inner < outer), keepdim);
}
static int opdi_linalg_matrix_norm_kernel(opd_call *call) {
    return opd_return_tensor(call, opdi_matrix_norm(opd_arg_tensor(call, 0), opd_call_args(call)[1],
                                                    opd_arg_ints(call, 2), opd_arg_bool(call, 3),
                                                    opd_arg_dtype(call, 4, OPD_DTYPE_NONE)));
}
/* opd_linalg_matrix_norm: matrix norm of order 1, 2 or infinity: the largest column sum, singular value or row sum */
OPDI_OP(linalg_matrix_norm) {
    op->schema = "linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2,-1], bool keepdim=False, *, ScalarType? "
        "dtype=None) -> Tensor";
    op->composite = opdi_linalg_matrix_norm_kernel;
    op->autocast = OPD_AUTOCAST_SET_NOT_CPU;
    op->out = "linalg_matrix_norm.out";
    op->cases = "[2,3], 1; [3,2,2], -1, (0,-1), True; [2,3], 2";
}
/* opd_linalg_matrix_norm_str_ord: matrix norm 'fro', or 'nuc', the sum of the singular values */
OPDI_OP(linalg_matrix_norm_str_ord) {
    op->schema = "linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2,-1], bool keepdim=False, *, "
        "ScalarType? dtype=None) -> Tensor";
    op->composite = opdi_linalg_matrix_norm_kernel;
    op->autocast = OPD_AUTOCAST_SET_NOT_CPU;
    op->out = "linalg_matrix_norm.str_ord_out";
    op->cases = "[2,3]; [2,3,2], 'nuc', (0,1), True";
}
/* Computes a vector norm or, if there are an order and two dims, a matrix norm. */
static int opdi_linalg_norm_kernel(opd_call *call) {
    static const int64_t both[2] = {0, 1};
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const opd_value order = opd_call_args(call)[1], want = opd_call_args(call)[4];
    const bool all = opd_arg_is_none(call, 2), keepdim = opd_arg_bool(call, 3);
    const opd_ints dims = opd_arg_ints(call, 2);
    char text[256];
    if (!all && dims.n != 1 && dims.n != 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "linalg.norm: If dim is specified, it must be of length 1 or 2. Got %s",
                        opdi_sizes_text(dims.data, (int)dims.n, text, sizeof text));
    }
    if (all && order.tag != OPD_TAG_NONE && tensor->ndim != 1 && tensor->ndim != 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "linalg.norm: If dim is not specified but ord is, the input must be 1D or "
                        "2D. Got %dD.", tensor->ndim);
    }
    if (order.tag != OPD_TAG_NONE && (order.tag == OPD_TAG_STR || (all ? tensor->ndim == 2 : dims.n == 2))) {
        return opd_return_tensor(call, opdi_matrix_norm(tensor, order, all ? opd_ints_of(both, 2) : dims, keepdim,
                                                        opd_arg_dtype(call, 4, OPD_DTYPE_NONE)));
    }
    return opd_return_tensor(call, opd_linalg_vector_norm_full(tensor, order.tag == OPD_TAG_NONE ? opd_value_int(2)
                                                               : order, opd_call_args(call)[2], keepdim, want));
}
/* opd_linalg_norm: linalg_vector_norm or, if there are ord and two dims, linalg_matrix_norm */
OPDI_OP(linalg_norm) {
    op->schema = "linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
        "dtype=None) -> Tensor";
    op->composite = opdi_linalg_norm_kernel;
    op->out = "linalg_norm.out";
    op->cases = "[2,3,2]; [2,3], 1; [2,3], 3, (1), True";
}
/* opd_linalg_norm_ord_str: linalg_matrix_norm over the two dims of self, or over two given dims */
OPDI_OP(linalg_norm_ord_str) {
    op->schema = "linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? "
        "dtype=None) -> Tensor";
    op->composite = opdi_linalg_norm_kernel;
    op->out = "linalg_norm.ord_str_out";
    op->cases = "[2,3], 'nuc'; [2,3,2], 'fro', (0,2), True";
}
static int opdi_nuclear_norm_dim_kernel(opd_call *call) {
    return opd_return_tensor(call, opdi_matrix_norm(opd_arg_tensor(call, 0), opd_value_str("nuc"),
                                                    opd_arg_ints(call, 1), opd_arg_bool(call, 2), OPD_DTYPE_NONE));
}
static int opdi_nuclear_norm_kernel(opd_call *call) {
    static const int64_t last[2] = {-2, -1};
    return opd_return_tensor(call, opdi_matrix_norm(opd_arg_tensor(call, 0), opd_value_str("nuc"),
                                                    opd_ints_of(last, 2), opd_arg_bool(call, 1), OPD_DTYPE_NONE));
}
/* opd_nuclear_norm: the sum of the singular values of a matrix */
OPDI_OP(nuclear_norm) {
    op->schema = "nuclear_norm(Tensor self, bool keepdim=False) -> Tensor";
    op->composite = opdi_nuclear_norm_kernel;
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "nuclear_norm.out";
    op->cases = "[2,3]; [2,3,2], True";
}
/* opd_nuclear_norm_dim: the sums of the singular values of the matrices in two dims */
OPDI_OP(nuclear_norm_dim) {
    op->schema = "nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor";
    op->composite = opdi_nuclear_norm_dim_kernel;
    op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "nuclear_norm.dim_out";
    op->cases = "[2,3], (0,1); [2,3,2], (2,0), True";
}

/* Returns the condition number for the norm `order`: norm(a) norm(a^-1), or infinity for a singular matrix. */
static opd_tensor *opdi_condition_by_inverse(opd_tensor *input, opd_value order) {
    static const int64_t last[2] = {-2, -1};
    const opd_ints dims = opd_ints_of(last, 2);
    opd_tensor *rets[2];
    if (opd_linalg_inv_ex(rets, input)) { return NULL; }
    opd_tensor *none = opd_unsqueeze(opd_unsqueeze(opd_gt_Scalar(rets[1], opd_value_int(0)), -1), -1);
    opd_tensor *inverse = opd_masked_fill_Scalar(rets[0], none, opd_value_double(OPDI_INF));
    opd_tensor *const norm = opdi_matrix_norm(input, order, dims, false, OPD_DTYPE_NONE),
        *number = opd_mul(norm, opdi_matrix_norm(inverse, order, dims, false, OPD_DTYPE_NONE));
    const opd_value infinite = opd_value_double(OPDI_INF);          /* NaN from 0 * infinity also becomes infinity */
    return opd_nan_to_num_full(number, infinite, infinite, opd_value_double(-OPDI_INF));
}
static opd_tensor *opdi_condition(opd_tensor *input, opd_value order) {
    const bool text = order.tag == OPD_TAG_STR;
    const double number = text ? 0 : opdi_number_f64(order), size = fabs(number);
    const int64_t last = -1;
    char buffer[64], name[128];
    if (text ? !opdi_is_text(order, "fro") && !opdi_is_text(order, "nuc")
        : size != 1 && size != 2 && size != OPDI_INF) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "linalg.cond got an invalid norm type: %s",
                       opdi_order_text(order, buffer, sizeof buffer));
        return NULL;
    }
    (void)snprintf(name, sizeof name, "linalg.cond(ord=%s)", opdi_order_text(order, buffer, sizeof buffer));
    if (text && opdi_square_check(input, name)) { return NULL; }
    if (input->numel == 0) {
        return opd_new_zeros_full(input, opd_ints_of(opdi_sizes(input), input->ndim - 2),
                                  opd_value_int(opdi_real_dtype(input->dtype)), OPD_NONE, OPD_NONE, OPD_NONE);
    }
    if (opdi_is_text(order, "nuc")) {
        opd_tensor *values = opd_linalg_svdvals(input), *sum = opd_sum_dim(values, opd_ints_of(&last, 1), false);
        return opd_mul(sum, opd_sum_dim(opd_reciprocal(values), opd_ints_of(&last, 1), false));
    }
    if (size == 2) {
        opd_tensor *values = opd_linalg_svdvals(input);
        if (!values) { return NULL; }
        opd_tensor *most = opd_select(values, -1, 0), *least = opd_select(values, -1, opd_size(values, -1) - 1);
        return number < 0 ? opd_div(least, most) : opd_div(most, least);
    }
    return opdi_square_check(input, name) ? NULL : opdi_condition_by_inverse(input, order);
}
static int opdi_linalg_cond_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const opd_value order = opd_call_args(call)[1];
    if (input->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "linalg.cond: The input tensor must have at least 2 dimensions.");
    }
    return opd_return_tensor(call, opdi_condition(input, order.tag == OPD_TAG_NONE ? opd_value_int(2) : order));
}
/* opd_linalg_cond: largest / smallest singular value or, with p, norm p of self times norm p of its inverse */
OPDI_OP(linalg_cond) {
    op->schema = "linalg_cond(Tensor self, Scalar? p=None) -> Tensor";
    op->composite = opdi_linalg_cond_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_cond.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3]; [3,3]g, 1; [2,2,2]g, -2";
}
/* opd_linalg_cond_p_str: norm 'fro' or 'nuc' of self times the same norm of its inverse */
OPDI_OP(linalg_cond_p_str) {
    op->schema = "linalg_cond.p_str(Tensor self, str p) -> Tensor";
    op->composite = opdi_linalg_cond_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_cond.p_str_out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[3,3]g, 'fro'; [2,2,2]g, 'nuc'";
}

//== ranks and pseudo-inverses =========================================================================================

static int opdi_tolerance_check(const opd_tensor *tolerance, const char *name, const char *which) {
    return !tolerance || !opdi_is_complex(tolerance) ? 0
        : opd_fail(OPD_ERROR_DTYPE, "%s: %s tensor of complex type is not supported. Got %s", name, which,
                   opd_dtype_name(OPDI_DTYPE(tolerance)));
}
static opd_tensor *opdi_new_number(opd_tensor *like, double value) {
    return opd_new_full_full(like, opd_ints_of(NULL, 0), opd_value_double(value), opd_value_int(OPD_FLOAT64), OPD_NONE,
                             OPD_NONE, OPD_NONE);
}
static double opdi_default_rtol(const opd_tensor *input) {
    const double least = opdi_real_dtype(input->dtype) == OPD_FLOAT64 ? DBL_EPSILON : (double)FLT_EPSILON;
    return least * (double)OPDI_MAX(opd_size(input, -1), opd_size(input, -2));
}
/* Returns the threshold up to which singular values count as zero: max(atol, rtol * the largest one).  sizes [.., n]
   has the singular values.  atol may be NULL (0).  If rtol is NULL, it follows from the size of input, or is 0 where
   atol is positive. */
static opd_tensor *opdi_threshold(opd_tensor *input, opd_tensor *sizes, opd_tensor *atol, opd_tensor *rtol) {
    const int64_t last = -1;
    if (!rtol && input) {
        rtol = opdi_new_number(input, opdi_default_rtol(input));
        if (atol) { rtol = opd_where_self(opd_gt_Scalar(atol, opd_value_int(0)), opdi_new_number(input, 0), rtol); }
    }
    if (!atol && input) { atol = opdi_new_number(input, 0); }
    atol = opd_unsqueeze(atol, -1);
    rtol = opd_unsqueeze(rtol, -1);
    return opd_maximum(atol, opd_mul(rtol, opd_amax(sizes, opd_ints_of(&last, 1), true)));
}
static opd_tensor *opdi_matrix_rank(opd_tensor *input, opd_tensor *atol, opd_tensor *rtol, bool hermitian) {
    const char *name = "linalg.matrix_rank";
    const int64_t last = -1;
    if (input->ndim < 2) {
        (void)opd_fail(OPD_ERROR_SHAPE, "%s: The input tensor input must have at least 2 dimensions.", name);
        return NULL;
    }
    if (opdi_float_check(input, name, true) || opdi_tolerance_check(atol, name, "atol") ||
        opdi_tolerance_check(rtol, name, "rtol")) {
        return NULL;
    }
    if (input->numel == 0) {
        return opd_new_zeros_full(input, opd_ints_of(opdi_sizes(input), input->ndim - 2), opd_value_int(OPD_INT64),
                                  OPD_NONE, OPD_NONE, OPD_NONE);
    }
    opd_tensor *values = hermitian ? opd_abs(opd_linalg_eigvalsh(input)) : opd_linalg_svdvals(input);
    return opd_sum_dim(opd_gt(values, opdi_threshold(input, values, atol, rtol)), opd_ints_of(&last, 1), false);
}
static int opdi_linalg_matrix_rank_tensors_kernel(opd_call *call) {
    return opd_return_tensor(call, opdi_matrix_rank(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                                    opd_arg_tensor(call, 2), opd_arg_bool(call, 3)));
}
/* Sets tolerances[0] and tolerances[1] to arguments 1 and 2 as tensors, or to NULL if the argument is None (see
   opdi_threshold).  Returns 0, or -1 and sets an error. */
static int opdi_tolerances_of(opd_call *call, opd_tensor **tolerances) {
    for (int i = 0; i < 2; i++) {
        tolerances[i] = NULL;
        if (opd_arg_is_none(call, 1 + i)) { continue; }
        tolerances[i] = opdi_new_number(opd_arg_tensor(call, 0), opd_arg_double(call, 1 + i));
        if (!tolerances[i]) { return -1; }
    }
    return 0;
}
static int opdi_linalg_matrix_rank_floats_kernel(opd_call *call) {
    opd_tensor *tolerances[2];
    return opdi_tolerances_of(call, tolerances) ? -1
        : opd_return_tensor(call, opdi_matrix_rank(opd_arg_tensor(call, 0), tolerances[0], tolerances[1],
                                                   opd_arg_bool(call, 3)));
}
static int opdi_linalg_matrix_rank_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opdi_matrix_rank(input, opdi_new_number(input, opd_arg_double(call, 1)),
                                                    opdi_new_number(input, 0), opd_arg_bool(call, 2)));
}
static int opdi_linalg_matrix_rank_tol_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opdi_matrix_rank(input, opd_arg_tensor(call, 1), opdi_new_number(input, 0),
                                                    opd_arg_bool(call, 2)));
}
/* opd_linalg_matrix_rank: the number of singular values above tol */
OPDI_OP(linalg_matrix_rank) {
    op->schema = "linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor";
    op->composite = opdi_linalg_matrix_rank_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_matrix_rank.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3], 0.5; [2,3,3], 0.1, True";
}
/* opd_linalg_matrix_rank_tol_tensor: the number of singular values above tol */
OPDI_OP(linalg_matrix_rank_tol_tensor) {
    op->schema = "linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> Tensor";
    op->composite = opdi_linalg_matrix_rank_tol_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_matrix_rank.out_tol_tensor";
    op->cases = "[2,3], []u; [2,3,3], [2]u, True";
    op->tags = OPDI_OPTAG_OUT_CASTS;
}
/* opd_linalg_matrix_rank_atol_rtol_float: number of singular values > max(atol, rtol * the largest one) */
OPDI_OP(linalg_matrix_rank_atol_rtol_float) {
    op->schema = "linalg_matrix_rank.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
        "hermitian=False) -> Tensor";
    op->composite = opdi_linalg_matrix_rank_floats_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_matrix_rank.atol_rtol_float_out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3]; [2,3,3], atol=0.5; [3,2], rtol=0.1";
}
/* opd_linalg_matrix_rank_atol_rtol_tensor: number of singular values > max(atol, rtol * the largest one) */
OPDI_OP(linalg_matrix_rank_atol_rtol_tensor) {
    op->schema = "linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, Tensor? atol=None, Tensor? rtol=None, bool "
        "hermitian=False) -> Tensor";
    op->composite = opdi_linalg_matrix_rank_tensors_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_matrix_rank.atol_rtol_tensor_out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3]; [2,3,3], atol=[2]u; [3,2], rtol=[]u";
}

/* Returns the pseudo-inverse V S^+ U^T or, if `hermitian` is true, the pseudo-inverse made from the eigenvalues. */
static opd_tensor *opdi_pseudo_inverse(opd_tensor *input, opd_tensor *atol, opd_tensor *rtol, bool hermitian) {
    opd_tensor *rets[3];
    const opd_scalar_type dtype = OPDI_DTYPE(input);
    char text[256];
    if (input->ndim < 2 || (!opd_dtype_is_complex(dtype) && dtype != OPD_FLOAT32 && dtype != OPD_FLOAT64)) {
        (void)opd_fail(OPD_ERROR_DTYPE, "linalg.pinv(%s{%s}): expected a tensor with 2 or more dimensions of float, "
                       "double, cfloat or cdouble types", opd_dtype_name(dtype),
                       opdi_sizes_text(opdi_sizes(input), input->ndim, text, sizeof text));
        return NULL;
    }
    if (opdi_tolerance_check(atol, "linalg.pinv", "atol") || opdi_tolerance_check(rtol, "linalg.pinv", "rtol")) {
        return NULL;
    }
    if (input->numel == 0) { return opd_clone(opdi_mt(input)); }
    if (hermitian ? opd_linalg_eigh(rets + 1, input) : opd_linalg_svd_full(rets, input, false, NULL)) { return NULL; }
    opd_tensor *left = hermitian ? rets[2] : opdi_mh(rets[2]), *right = hermitian ? rets[2] : rets[0];
    opd_tensor *sizes = hermitian ? opd_abs(rets[1]) : rets[1];
    opd_tensor *kept = opd_gt(sizes, opdi_threshold(input, sizes, atol, rtol));
    opd_tensor *inverse = opd_where_ScalarOther(kept, opd_reciprocal(rets[1]), opd_value_int(0));
    left = opd_mul(left, opd_unsqueeze(inverse, -2));
    opd_tensor *result = opd_matmul(left, opdi_mh(right));
    return result && result->ndim > 2 ? opd_clone(result) : result;       /* a copy, so that no view is returned */
}
static int opdi_linalg_pinv_tensors_kernel(opd_call *call) {
    return opd_return_tensor(call, opdi_pseudo_inverse(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                                       opd_arg_tensor(call, 2), opd_arg_bool(call, 3)));
}
/* Returns the gradient of A from the gradient g of P = A^+: -P^T g P^T + (1 - A P) g^T P P^T + P^T P g^T (1 - P A). */
static opd_tensor *opdi_pinv_gradient(opd_tensor *grad, opd_tensor *pinv, opd_tensor *input) {
    opd_tensor *over = opdi_mh(pinv), *turned = opdi_mh(grad);
    opd_tensor *first = opd_matmul(opd_matmul(turned, pinv), over);
    opd_tensor *second = opd_matmul(over, opd_matmul(pinv, turned));
    first = opd_sub(first, opd_matmul(input, opd_matmul(pinv, first)));
    second = opd_sub(second, opd_matmul(opd_matmul(second, pinv), input));
    first = opd_add(first, second);
    return opd_sub(first, opd_matmul(opd_matmul(over, grad), over));
}
static int opdi_linalg_pinv_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opdi_pinv_gradient(opd_bw_grad(bw, 0), opd_bw_result(bw, 0), opd_bw_tensor(bw, 0)));
}
static opd_tensor *opdi_pinv_with(opd_tensor *input, opd_tensor *atol, opd_tensor *rtol, bool hermitian) {
    return opd_linalg_pinv_atol_rtol_tensor_full(input, atol, rtol, hermitian);
}
static int opdi_linalg_pinv_floats_kernel(opd_call *call) {
    opd_tensor *tolerances[2];
    return opdi_tolerances_of(call, tolerances) ? -1
        : opd_return_tensor(call, opdi_pinv_with(opd_arg_tensor(call, 0), tolerances[0], tolerances[1],
                                                 opd_arg_bool(call, 3)));
}
static int opdi_linalg_pinv_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const bool hermitian = call->op->nargs > 2 && opd_arg_bool(call, 2);
    return opd_return_tensor(call, opdi_pinv_with(input, opdi_new_number(input, 0),
                                                  opdi_new_number(input, opd_arg_double(call, 1)), hermitian));
}
static int opdi_linalg_pinv_rcond_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opdi_pinv_with(input, opdi_new_number(input, 0), opd_arg_tensor(call, 1),
                                                  opd_arg_bool(call, 2)));
}
/* opd_linalg_pinv_atol_rtol_tensor: pseudo-inverse from the singular values > max(atol, rtol * the largest one) */
OPDI_OP(linalg_pinv_atol_rtol_tensor) {
    op->schema = "linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool "
        "hermitian=False) -> Tensor";
    op->any = opdi_linalg_pinv_tensors_kernel; op->backward = opdi_linalg_pinv_backward; op->save = "self, result";
    op->constant = "atol, rtol";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->tags = OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_OUT_CASTS;
    op->out = "linalg_pinv.atol_rtol_tensor_out";
    op->cases = "[2,3]; [3,2]; [2,3,3], atol=[2]i1; [3,2], rtol=[]i1";
}
/* opd_linalg_pinv_atol_rtol_float: pseudo-inverse from the singular values > max(atol, rtol * the largest one) */
OPDI_OP(linalg_pinv_atol_rtol_float) {
    op->schema = "linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool "
        "hermitian=False) -> Tensor";
    op->composite = opdi_linalg_pinv_floats_kernel;
    op->out = "linalg_pinv.atol_rtol_float_out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3]; [2,3,2], atol=0.1";
}
/* opd_linalg_pinv: the pseudo-inverse from the singular values > rcond * the largest one */
OPDI_OP(linalg_pinv) {
    op->schema = "linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor";
    op->composite = opdi_linalg_pinv_kernel;
    op->out = "linalg_pinv.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3], 0.1";
}
/* opd_linalg_pinv_rcond_tensor: the pseudo-inverse from the singular values > rcond * the largest one */
OPDI_OP(linalg_pinv_rcond_tensor) {
    op->schema = "linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor";
    op->composite = opdi_linalg_pinv_rcond_kernel;
    op->out = "linalg_pinv.out_rcond_tensor";
    op->cases = "[2,3], []i1";
    op->tags = OPDI_OPTAG_OUT_CASTS;
}
/* opd_pinverse: the same as linalg_pinv */
OPDI_OP(pinverse) {
    op->schema = "pinverse(Tensor self, float rcond=1e-15) -> Tensor";
    op->composite = opdi_linalg_pinv_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->cases = "[2,3]";
}

//== products of several matrices, exponentials ========================================================================

/* Finds the cheapest order of a product of `count` matrices, where matrix i is sizes[i] x sizes[i + 1].  Sets split[i *
   count + j] to the k for which matrices i .. j are best multiplied as (i .. k) (k + 1 .. j). */
static void opdi_product_order(const int64_t *sizes, int64_t count, double *cost, int64_t *split) {
    for (int64_t i = 0; i < count; i++) { cost[i * count + i] = 0; }
    for (int64_t width = 1; width < count; width++) {
        for (int64_t i = 0; i + width < count; i++) {
            const int64_t j = i + width;
            double least = OPDI_INF;
            for (int64_t k = i; k < j; k++) {
                const double sum = cost[i * count + k] + cost[(k + 1) * count + j] +
                    (double)sizes[i] * (double)sizes[k + 1] * (double)sizes[j + 1];
                if (sum < least || k == i) {
                    least = sum;
                    split[i * count + j] = k;
                }
            }
            cost[i * count + j] = least;
        }
    }
}
static opd_tensor *opdi_product_of(opd_tensor **list, const int64_t *split, int64_t count, int64_t first,
                                   int64_t last) {
    if (first == last || !opd_ok()) { return list[first]; }
    const int64_t at = split[first * count + last];
    opd_tensor *const product = opdi_product_of(list, split, count, first, at);
    return opd_mm(product, opdi_product_of(list, split, count, at + 1, last));
}
static int opdi_multi_dot_check(opd_tensors given) {
    char first[256], second[256];
    if (given.n < 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "multi_dot(): expected at least 2 tensors but got %lld",
                        (long long)given.n);
    }
    for (int64_t i = 0; i < given.n; i++) {
        const opd_tensor *tensor = given.data[i];
        const bool end = i == 0 || i == given.n - 1;
        if (tensor->ndim == 2 || (end && tensor->ndim == 1)) { continue; }
        return end ? opd_fail(OPD_ERROR_SHAPE, "multi_dot(): the %s tensor must be 1D or 2D but got %dD",
                              i ? "last" : "first", tensor->ndim)
            : opd_fail(OPD_ERROR_SHAPE, "multi_dot(): tensor %lld must be 2D but got %dD", (long long)i, tensor->ndim);
    }
    for (int64_t i = 0; i < given.n; i++) {
        const opd_tensor *before = given.data[OPDI_MAX(i - 1, (int64_t)0)], *tensor = given.data[i];
        if (tensor->dtype != given.data[0]->dtype) {
            return opd_fail(OPD_ERROR_DTYPE, "multi_dot(): all tensors must have be the same dtype but tensor 0 is %s "
                            "and tensor %lld %s", opd_dtype_name(OPDI_DTYPE(given.data[0])), (long long)i,
                            opd_dtype_name(OPDI_DTYPE(tensor)));
        }
        if (i > 0 && opd_size(before, -1) != opd_size(tensor, 0)) {
            return opd_fail(OPD_ERROR_SHAPE, "multi_dot(): tensors %lld and %lld with shapes %s and %s cannot be "
                            "multiplied", (long long)i - 1, (long long)i,
                            opdi_sizes_text(opdi_sizes(before), before->ndim, first, sizeof first),
                            opdi_sizes_text(opdi_sizes(tensor), tensor->ndim, second, sizeof second));
        }
    }
    return 0;
}
static opd_tensor *opdi_multi_dot(opd_tensors given) {
    if (opdi_multi_dot_check(given)) { return NULL; }
    const int64_t count = given.n;
    const size_t square = (size_t)count * (size_t)count;
    opd_tensor **list = (opd_tensor **)opdi_scope_alloc((size_t)count * sizeof *list);
    int64_t *sizes = (int64_t *)opdi_scope_alloc((size_t)(count + 1) * sizeof *sizes);
    double *cost = (double *)opdi_scope_alloc(square * sizeof *cost);
    int64_t *split = (int64_t *)opdi_scope_alloc(square * sizeof *split);
    if (!list || !sizes || !cost || !split) { return NULL; }
    const bool row = given.data[0]->ndim == 1, column = given.data[count - 1]->ndim == 1;
    for (int64_t i = 0; i < count; i++) { list[i] = given.data[i]; }
    if (row) { list[0] = opd_unsqueeze(list[0], 0); }
    if (column) { list[count - 1] = opd_unsqueeze(list[count - 1], -1); }
    if (!list[0] || !list[count - 1]) { return NULL; }
    for (int64_t i = 0; i < count; i++) { sizes[i] = opd_size(list[i], 0); }
    sizes[count] = opd_size(list[count - 1], 1);
    opdi_product_order(sizes, count, cost, split);
    opd_tensor *result = opdi_product_of(list, split, count, 0, count - 1);
    if (column) { result = opd_squeeze_dim(result, -1); }
    return row ? opd_squeeze_dim(result, 0) : result;
}
static int opdi_linalg_multi_dot_kernel(opd_call *call) {
    return opd_return_tensor(call, opdi_multi_dot(opd_arg_tensors(call, 0)));
}
static int opdi_chain_matmul_kernel(opd_call *call) {
    const opd_tensors given = opd_arg_tensors(call, 0);
    for (int64_t i = 0; i < given.n; i++) {
        if (given.data[i]->ndim != 2) {
            return opd_fail(OPD_ERROR_SHAPE, "Tensor dimension is %d, expected 2 instead.", given.data[i]->ndim);
        }
    }
    if (given.n == 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "chain_matmul(): Expected one or more matrices");
    }
    return opd_return_tensor(call, given.n == 1 ? opd_clone(given.data[0]) : opdi_multi_dot(given));
}
/* opd_linalg_multi_dot: the product of matrices in the cheapest order; the first and the last may be vectors */
OPDI_OP(linalg_multi_dot) {
    op->schema = "linalg_multi_dot(Tensor[] tensors) -> Tensor";
    op->composite = opdi_linalg_multi_dot_kernel;
    op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU;
    op->out = "linalg_multi_dot.out";
    op->cases = "{[2,3],[3,4],[4,2]}; {[3],[3,2],[2,4],[4]}";
}
/* opd_chain_matmul: the product of matrices in the cheapest order */
OPDI_OP(chain_matmul) {
    op->schema = "chain_matmul(Tensor[] matrices) -> Tensor";
    op->composite = opdi_chain_matmul_kernel;
    op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU;
    op->out = "chain_matmul.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "{[2,3],[3,4]}; {[2,2]}";
}

/* Returns exp(a) for small a, computed by its Taylor series up to a^16 / 16!, evaluated in powers of a^4. */
static opd_tensor *opdi_exp_near_zero(opd_tensor *input) {
    opd_tensor *powers[5], *sum = NULL;
    double factor = 1, factors[17];
    factors[0] = 1;
    for (int i = 1; i < 17; i++) { factors[i] = factor /= i; }
    powers[0] = opdi_identity_like(input);
    powers[1] = input;
    powers[2] = opd_matmul(input, input);
    powers[3] = opd_matmul(powers[2], input);
    powers[4] = opd_matmul(powers[2], powers[2]);
    for (int part = 3; part >= 0; part--) {
        sum = part == 3 ? opdi_muls(powers[4], factors[16]) : opd_matmul(sum, powers[4]);
        for (int i = 0; i < 4 && sum; i++) {
            sum = opd_add_full_(sum, powers[i], opd_value_double(factors[4 * part + i]));
        }
    }
    return sum;
}
/* Returns exp(a), computed as exp(a / 2^k) to the power 2^k.  For each matrix, k is chosen so that a / 2^k is small; k
   is 0 if a is not finite. */
static opd_tensor *opdi_exp_of(opd_tensor *input) {
    static const int64_t row = -2, column = -1;
    const bool twice = opdi_real_dtype(input->dtype) == OPD_FLOAT64;
    opd_tensor *norm = opd_sum_dim(opd_to_dtype(opd_abs(input), OPD_FLOAT64), opd_ints_of(&row, 1), true);
    norm = opd_amax(norm, opd_ints_of(&column, 1), true);
    opd_tensor *count = opd_ceil(opd_log2(opdi_muls(norm, 1 / (twice ? 0.75 : 2))));
    count = opd_where_ScalarOther(opd_logical_and(opd_isfinite(count), opd_gt_Scalar(count, opd_value_int(0))), count,
                                  opd_value_int(0));
    opd_tensor *scale = opd_pow_Scalar(opd_value_double(2), opd_neg(count));
    opd_tensor *result = opd_mul(input, opd_to_dtype(scale, (opd_scalar_type)opdi_real_dtype(input->dtype)));
    opd_tensor *most = opd_max(count), *kept = NULL;
    const double steps = most ? opd_item_f64(most) : 0;
    OPD_SCOPE { kept = opdi_keep(opdi_exp_near_zero(result)); }
    for (int step = 0; step < steps && opd_ok(); step++) {
        opd_tensor *squared = NULL;
        OPD_SCOPE {
            opd_tensor *const on = opd_gt_Scalar(count, opd_value_int(step));
            squared = opdi_keep(opd_where_self(on, opd_matmul(kept, kept), kept));
        }
        opdi_release(kept);
        kept = squared;
    }
    return kept ? opdi_own(kept) : NULL;
}
static int opdi_linalg_matrix_exp_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    if (opdi_square_check(input, "linalg.matrix_exp") || opdi_float_check(input, "linalg.matrix_exp", false) ||
        opdi_exact_out(call, OPDI_DTYPE(input))) { return -1; }
    opd_tensor *out = opd_result(call, 0, opdi_sizes(input), input->ndim, OPDI_DTYPE(input));
    if (!out || out->numel == 0 || opdi_no_data(out)) { return out ? 0 : -1; }
    if (!opdi_is_complex(input) && input->dtype != OPD_FLOAT64) { input = opd_to_dtype(input, OPD_FLOAT32); }
    const bool number = opd_size(out, -1) == 1;
    const opd_key_guard guard = opdi_autocast_off();
    opd_tensor *result = !input ? NULL : number ? opd_exp(input) : opdi_exp_of(input);
    opd_keys_restore(guard);                      /* as in PyTorch, autocast does not lower the products */
    return result ? opdi_copy(out, result) : -1;
}
/* Computes the gradient: the upper right block of exp([a^H, grad; 0, a^H]). */
static int opdi_linalg_matrix_exp_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *turned = opdi_mh(opd_bw_tensor(bw, 0)), *parts[2], *rows[2];
    if (!turned) { return -1; }
    const int64_t n = opd_size(turned, -1);
    parts[0] = turned;
    parts[1] = grad;
    rows[0] = opd_cat(opd_tensors_of(parts, 2), -1);
    parts[0] = opd_zeros_like(turned);
    parts[1] = turned;
    rows[1] = opd_cat(opd_tensors_of(parts, 2), -1);
    opd_tensor *both = opd_linalg_matrix_exp(opd_cat(opd_tensors_of(rows, 2), -2));
    return opd_bw_return(bw, 0, opd_narrow(opd_narrow(both, -2, 0, n), -1, n, n));
}
/* opd_linalg_matrix_exp: the matrix exponential */
OPDI_OP(linalg_matrix_exp) {
    op->schema = "linalg_matrix_exp(Tensor self) -> Tensor";
    op->cpu = op->fake = op->any = opdi_linalg_matrix_exp_kernel; op->backward = opdi_linalg_matrix_exp_backward;
    op->save = "self";
    op->vmap = opdi_solver_batch;
    op->tags = OPDI_OPTAG_CONJUGATES;
    op->out = "linalg_matrix_exp.out";
    op->cases = "[3,3]; [2,2,2]";
}
static int opdi_matrix_exp_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_linalg_matrix_exp(opd_arg_tensor(call, 0)));
}
/* opd_matrix_exp: the same as linalg_matrix_exp */
OPDI_OP(matrix_exp) {
    op->schema = "matrix_exp(Tensor self) -> Tensor";
    op->composite = opdi_matrix_exp_kernel;
    op->cases = "[3,3]";
}

//== equations with tensors, least squares =============================================================================

/* tensorsolve: solves self x = other, where self is a linear map from its last dims (or `dims`) to its first dims. */
static int opdi_linalg_tensorsolve_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1);
    const opd_ints dims = opd_arg_ints(call, 2);
    int64_t to[OPD_MAX_DIMS], square[2];
    const int64_t all = -1;
    if (dims.n > input->ndim) {
        return opd_fail(OPD_ERROR_ARGUMENT, "dims has %lld elements, but self has only %d dimensions",
                        (long long)dims.n, input->ndim);
    }
    for (int64_t i = 0; i < dims.n; i++) { to[i] = input->ndim - dims.n + i; }
    if (dims.n > 0 && !(input = opd_movedim_intlist(input, dims, opd_ints_of(to, dims.n)))) { return -1; }
    if (other->ndim > input->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "other has %d dimensions, but self has only %d", other->ndim, input->ndim);
    }
    square[0] = opdi_sizes_product(input, 0, other->ndim);
    square[1] = opdi_sizes_product(input, other->ndim, input->ndim);
    if (square[0] != square[1]) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                        "prod(self.shape[:other.ndim]), but got %lld != %lld", (long long)square[1],
                        (long long)square[0]);
    }
    opd_tensor *matrix = opdi_reshape_to(input, square, 2);
    return opd_return_tensor(call, opdi_reshape_to(opd_linalg_solve(matrix, opdi_reshape_to(other, &all, 1)),
                                                   opdi_sizes(input) + other->ndim, input->ndim - other->ndim));
}
/* opd_linalg_tensorsolve: solves self x = other, where self is a linear map from its last dims to its first dims */
OPDI_OP(linalg_tensorsolve) {
    op->schema = "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor";
    op->composite = opdi_linalg_tensorsolve_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "linalg_tensorsolve.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3,6], [2,3]; [2,4,2], [4], (0,2)";
}

/* svd, an older name: returns V instead of V^H; without compute_uv, U and V are zeros. */
static int opdi_svd_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *rets[3];
    int64_t sizes[OPD_MAX_DIMS];
    if (input->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "linalg.svd: input should have at least 2 dimensions, but has %d dimensions "
                        "instead", input->ndim);
    }
    if (opd_arg_bool(call, 2)) {
        if (opd_linalg_svd_full(rets, input, !opd_arg_bool(call, 1), NULL)) { return -1; }
    } else {
        rets[1] = opd_linalg_svdvals(input);
        memcpy(sizes, opdi_sizes(input), (size_t)input->ndim * sizeof *sizes);
        for (int i = 0; i < 2; i++) {
            sizes[input->ndim - 2] = sizes[input->ndim - 1] = opd_size(input, i - 2);
            rets[2 * i] = opd_new_zeros(input, opd_ints_of(sizes, input->ndim));
        }
    }
    return opd_return_tensor(call, rets[0]) || opd_return_tensor(call, rets[1]) ? -1
        : opd_return_tensor(call, opdi_mh(rets[2]));
}
/* opd_svd: like linalg_svd, but returns V instead of V^H, and has `some` instead of full_matrices */
OPDI_OP(svd) {
    op->schema = "svd(Tensor self, bool some=True, bool compute_uv=True) -> (Tensor U, Tensor S, Tensor V)";
    op->composite = opdi_svd_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "svd.U(U, S, V)";
    op->cases = "[2,3], True, False";
}

/* Arguments and results of linalg_lstsq.  Drivers gels (for matrices of full rank) and, for real numbers on the CPU,
   gelsy use QR, the other drivers singular values. */
typedef struct opdi_lstsq {
    int64_t rows, columns;
    bool gels, gelsy, vectors;
    double rcond;
    opd_tensor *own;                              /* the matrices before broadcasting */
    opd_tensor *a, *b;                            /* a [.., rows, columns], b [.., rows, count] */
    opd_tensor *x, *rank, *values;
} opdi_lstsq;
/* Returns true if b has one vector for each matrix of input, false if it has matrices. */
static bool opdi_lstsq_vectors(const opd_tensor *input, const opd_tensor *b) {
    return b->ndim == 1 || (b->ndim == input->ndim - 1 && opdi_has_sizes(b, opdi_sizes(input), b->ndim));
}
static int opdi_lstsq_check(const opd_tensor *input, const opd_tensor *b, const char *driver) {
    const char *name = "linalg.lstsq";
    const int less = input->ndim - b->ndim;
    if (input->ndim < 2) { return opd_fail(OPD_ERROR_SHAPE, "%s: input must have at least 2 dimensions.", name); }
    if (b->ndim < 1) { return opd_fail(OPD_ERROR_SHAPE, "%s: other must have at least 1 dimension.", name); }
    if (input->dtype != b->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: Expected input and other to have the same dtype, but got input's dtype "
                        "%s and other's dtype %s", name, opd_dtype_name(OPDI_DTYPE(input)),
                        opd_dtype_name(OPDI_DTYPE(b)));
    }
    if (less < 0 || less > 1) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: input.dim() must be greater or equal to other.dim() and (input.dim() - "
                        "other.dim()) <= 1", name);
    }
    const int dim = opdi_lstsq_vectors(input, b) ? -1 : -2;
    if (opd_size(input, -2) != opd_size(b, dim)) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: input.size(-2) should match other.size(%d)", name, dim);
    }
    if (strcmp(driver, "gels") && strcmp(driver, "gelsy") && strcmp(driver, "gelsd") && strcmp(driver, "gelss")) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)",
                        name);
    }
    return opdi_solver_check(input, "linalg_lstsq_cpu");
}
/* Checks that matrices have full rank: r [.., n, n], the R of their QR factorizations, must have no zero on the
   diagonal.  `single`: the error names no batch element.  Returns 0, or -1 and sets an error. */
static int opdi_lstsq_full_rank(opd_tensor *r, bool single) {
    opd_tensor *zero = opdi_on_host(opd_contiguous(opd_eq_Scalar(opd_diagonal_full(r, 0, -2, -1), opd_value_int(0))));
    const int64_t n = opd_size(r, -1);
    char place[64] = "";
    if (!zero || opdi_no_data(zero)) { return zero ? 0 : -1; }
    for (int64_t i = 0; i < zero->numel; i++) {
        if (!((const bool *)(const void *)zero->data)[i]) { continue; }
        if (!single) { (void)snprintf(place, sizeof place, "(Batch element %lld): ", (long long)(i / n)); }
        return opd_fail(OPD_ERROR_ARGUMENT, "linalg.lstsq: %sThe least squares solution could not be computed "
                        "because the input matrix does not have full rank (error code: %lld).", place,
                        (long long)(i % n + 1));
    }
    return 0;
}
/* Sets all->x, for matrices of full rank, to R^-1 Q^H b or, if there are more columns than rows, to Q R^-H b with a^H =
   Q R.  If a matrix is zero, x is 0.  Returns 0, or -1 and sets an error. */
static int opdi_lstsq_by_qr(opdi_lstsq *all) {
    const bool wide = all->rows < all->columns;
    const int64_t both[2] = {-2, -1};
    opd_tensor *rets[2], *none = opd_logical_not(opd_any_dims(all->a, opd_ints_of(both, 2), true));
    if (opd_linalg_qr(rets, wide ? opdi_mh(all->a) : all->a)) { return -1; }
    rets[1] = opd_add(rets[1], opd_mul(opdi_identity_like(rets[1]), none));
    if (!rets[1] || opdi_lstsq_full_rank(rets[1], all->a->ndim == 2)) { return -1; }
    all->x = wide ? opd_matmul(rets[0], opdi_by_triangle(opdi_mh(rets[1]), all->b, false, true, false))
        : opdi_by_triangle(rets[1], opd_matmul(opdi_mh(rets[0]), all->b), true, true, false);
    all->x = opd_masked_fill_Scalar(all->x, none, opd_value_int(0));
    return all->x ? 0 : -1;
}
/* Sets all->x to V S^+ U^H b, the solution of smallest norm.  Returns 0, or -1 and sets an error. */
static int opdi_lstsq_by_values(opdi_lstsq *all) {
    const int64_t last = -1;
    opd_tensor *rets[3];
    if (opd_linalg_svd_full(rets, all->own, false, NULL)) { return -1; }
    opd_tensor *kept = opd_size(rets[1], -1) == 0 ? opd_gt_Scalar(rets[1], opd_value_int(0))
        : opd_gt(rets[1], opdi_muls(opd_amax(rets[1], opd_ints_of(&last, 1), true), all->rcond));
    opd_tensor *inverse = opd_unsqueeze(opd_where_ScalarOther(kept, opd_reciprocal(rets[1]), opd_value_int(0)), -1);
    opd_tensor *inner = opd_mul(inverse, opd_matmul(opdi_mh(rets[0]), all->b));
    all->x = opd_matmul(opdi_mh(rets[2]), inner);
    all->rank = opd_sum_dim(kept, opd_ints_of(&last, 1), false);
    all->values = rets[1];
    return all->x && all->rank ? 0 : -1;
}
/* Returns the ranks with the batch sizes of `own`: one rank for each matrix, even if the matrix was broadcast to
   several batch elements. */
static opd_tensor *opdi_lstsq_ranks(opd_tensor *rank, const opd_tensor *own) {
    while (rank && rank->ndim > own->ndim - 2) { rank = opd_select(rank, 0, 0); }
    for (int dim = 0; rank && dim < rank->ndim; dim++) {
        if (opdi_sizes(own)[dim] != opdi_sizes(rank)[dim]) { rank = opd_narrow(rank, dim, 0, opdi_sizes(own)[dim]); }
    }
    return rank;
}
/* Sets all->x to the solution of smallest norm, computed by QR with column exchanges, as LAPACK's gelsy does.  Returns
   0, or -1 and sets an error. */
static int opdi_lstsq_by_pivots(opdi_lstsq *all) {
    opdi_solver solver;
    int64_t sizes[OPD_MAX_DIMS];
    const int ndim = all->a->ndim;
    opd_tensor *a = opd_clone_full(all->a, opd_value_int(OPDI_FORMAT_CONTIGUOUS));
    opd_tensor *b = opd_clone_full(all->b, opd_value_int(OPDI_FORMAT_CONTIGUOUS));
    if (!a || !b) { return -1; }
    memcpy(sizes, opdi_sizes(b), (size_t)ndim * sizeof *sizes);
    sizes[ndim - 2] = all->columns;
    all->x = opd_new_zeros(a, opd_ints_of(sizes, ndim));
    opd_tensor *pivots = opdi_new_int32(a, all->columns), *rank = opdi_new_int32(a, -1);
    if (!all->x || !pivots || !rank) { return -1; }
    const int64_t batch = opdi_batch_of(a);
    memset(&solver, 0, sizeof solver);
    solver.rows = all->rows;
    solver.columns = solver.npivots = all->columns;
    solver.count = opd_size(b, -1);
    solver.least = all->rcond;
    solver.pivots = (int32_t *)(void *)pivots->data;
    solver.info = (int32_t *)(void *)rank->data;
    opdi_solver_data(&solver, 0, a, solver.rows * solver.columns);
    opdi_solver_data(&solver, 1, b, solver.rows * solver.count);
    opdi_solver_data(&solver, 2, all->x, solver.columns * solver.count);
    const double work = 4 * (double)all->rows * (double)all->columns * (double)OPDI_MIN(all->rows, all->columns);
    if (!opdi_no_data(a) && !opdi_no_data(b) && !opdi_no_data(all->x) &&
        opdi_solver_run(&solver, batch, work, OPDI_DTYPE(a), opdi_lstsq_one_f32, opdi_lstsq_one_f64, NULL)) {
        return -1;
    }
    all->rank = opdi_lstsq_ranks(opd_to_dtype(rank, OPD_INT64), all->own);
    return all->rank ? 0 : -1;
}
/* Makes result 0 from all->x, stored by columns.  As in LAPACK, columns are max(rows, columns) elements apart.  Returns
   0, or -1 and sets an error. */
static int opdi_lstsq_solution(opd_call *call, const opdi_lstsq *all) {
    int64_t strides[OPD_MAX_DIMS];
    const int64_t *sizes = opdi_sizes(all->x);
    const int ndim = all->x->ndim;
    strides[ndim - 2] = 1;
    strides[ndim - 1] = OPDI_MAX(OPDI_MAX(all->rows, all->columns), (int64_t)1);
    for (int dim = ndim - 3, last = ndim - 1; dim >= 0; last = dim--) {
        strides[dim] = opdi_size_times(strides[last], OPDI_MAX(sizes[last], (int64_t)1));
    }
    opd_tensor *out = opd_result_strided(call, 0, sizes, strides, ndim - all->vectors, OPDI_DTYPE(all->x),
                                         opdi_call_device(call));
    opd_tensor *x = all->vectors ? opd_squeeze_dim(all->x, -1) : all->x;
    return !out || !x ? -1 : opdi_no_data(out) ? 0 : opdi_copy(out, x);
}
/* Makes result i: a copy of tensor or, if tensor is NULL, a tensor of size [0].  Returns 0, or -1 and sets an error. */
static int opdi_lstsq_return(opd_call *call, int i, opd_tensor *tensor, opd_scalar_type dtype) {
    const int64_t none = 0;
    opd_tensor *out = opd_result(call, i, tensor ? opdi_sizes(tensor) : &none, tensor ? tensor->ndim : 1, dtype);
    return !out ? -1 : !tensor || opdi_no_data(out) ? 0 : opdi_copy(out, tensor);
}
/* Makes result 1.  The result has the sums of the squares of a x - b if there are more rows than columns, the rank is
   full and the driver is not gelsy.  Otherwise the result has size [0].  Returns 0, or -1 and sets an error. */
static int opdi_lstsq_residuals(opd_call *call, const opdi_lstsq *all) {
    const int64_t row = -2;
    bool wanted = all->rows > all->columns && !all->gelsy;
    if (wanted && all->rank && !opdi_no_data(all->rank)) {
        const opd_tensor *ranks = opdi_on_host(opd_contiguous(all->rank));
        if (!ranks) { return -1; }
        for (int64_t i = 0; i < ranks->numel; i++) {
            wanted = wanted && ((const int64_t *)(const void *)ranks->data)[i] == all->columns;
        }
    }
    if (!wanted) { return opdi_lstsq_return(call, 1, NULL, (opd_scalar_type)opdi_real_dtype(all->x->dtype)); }
    opd_tensor *rest = opd_sub(opd_matmul(all->a, all->x), all->b);
    if (!rest) { return -1; }
    rest = opdi_is_complex(rest) ? opd_real(opd_mul(rest, opdi_conj(rest))) : opd_mul(rest, rest);
    rest = opd_sum_dim(rest, opd_ints_of(&row, 1), false);
    return rest ? opdi_lstsq_return(call, 1, rest, OPDI_DTYPE(rest)) : -1;
}
static int opdi_linalg_lstsq_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    const char *driver = opd_arg_is_none(call, 3) ? "gelsy" : opd_arg_str(call, 3);
    int64_t sizes[OPD_MAX_DIMS];
    int ndim;
    opdi_lstsq all;
    if (opdi_lstsq_check(input, b, driver)) { return -1; }
    memset(&all, 0, sizeof all);
    all.rows = opd_size(input, -2);
    all.columns = opd_size(input, -1);
    all.gels = strcmp(driver, "gels") == 0;
    all.gelsy = strcmp(driver, "gelsy") == 0;
    all.vectors = opdi_lstsq_vectors(input, b);
    all.rcond = opd_arg_is_none(call, 2) ? opdi_default_rtol(input) : opd_arg_double(call, 2);
    if (all.rcond < 0 || (strcmp(driver, "gelsd") == 0 && (all.rcond <= 0 || all.rcond >= 1))) {   /* as LAPACK does */
        all.rcond = opdi_real_dtype(input->dtype) == OPD_FLOAT64 ? DBL_EPSILON : (double)FLT_EPSILON;
    }
    if (all.vectors && !(b = opd_unsqueeze(b, -1))) { return -1; }
    if (opdi_batches_join(input, b, sizes, &ndim)) { return -1; }
    sizes[ndim - 2] = all.rows;
    sizes[ndim - 1] = all.columns;
    all.own = input;
    all.a = opdi_expand_to(input, sizes, ndim);
    sizes[ndim - 1] = opd_size(b, -1);
    all.b = opdi_expand_to(b, sizes, ndim);
    if (!all.a || !all.b || (all.gels ? opdi_lstsq_by_qr(&all)
                               : !all.gelsy || opdi_is_complex(input) || opdi_on_device(input)
                               ? opdi_lstsq_by_values(&all) : opdi_lstsq_by_pivots(&all)) ||
        opdi_lstsq_solution(call, &all) || opdi_lstsq_residuals(call, &all) ||
        opdi_lstsq_return(call, 2, all.rank, OPD_INT64)) {
        return -1;
    }
    return opdi_lstsq_return(call, 3, all.gels || all.gelsy ? NULL : all.values,
                             (opd_scalar_type)opdi_real_dtype(input->dtype));
}
/* Computes the gradients of A and b from the gradients of x = A^+ b and of |A x - b|^2, which is minimal at x. */
static int opdi_linalg_lstsq_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *rest = opd_bw_grad(bw, 1), *input = opd_bw_tensor(bw, 0),
        *b = opd_bw_tensor(bw, 1), *x = opd_bw_result(bw, 0), *a_grad = NULL, *b_grad = NULL;
    if (!input || !b || !x) { return -1; }
    const bool vectors = opdi_lstsq_vectors(input, b);
    if (vectors) {
        b = opd_unsqueeze(b, -1);
        x = opd_unsqueeze(x, -1);
        if (grad) { grad = opd_unsqueeze(grad, -1); }
    }
    if (grad) {
        opd_tensor *pinv = opd_linalg_pinv_atol_rtol_tensor(input);
        if (opd_bw_needs(bw, 0)) { a_grad = opdi_pinv_gradient(opd_matmul(grad, opdi_mh(b)), pinv, input); }
        if (opd_bw_needs(bw, 1)) { b_grad = opd_matmul(opdi_mh(pinv), grad); }
    }
    if (rest && rest->numel > 0) {
        opd_tensor *over = opdi_muls(opd_sub(opd_matmul(input, x), b), 2);
        over = opd_mul(over, opd_unsqueeze(rest, -2));
        if (opd_bw_needs(bw, 0)) { a_grad = opdi_plus(a_grad, opd_matmul(over, opdi_mh(x))); }
        if (opd_bw_needs(bw, 1)) { b_grad = opdi_plus(b_grad, opd_neg(over)); }
    }
    OPDI_BW_RETURN(0, a_grad);
    OPDI_BW_RETURN(1, b_grad && vectors ? opd_squeeze_dim(b_grad, -1) : b_grad);
    return opd_ok() ? 0 : -1;
}
/* Batches linalg_lstsq: moves the examples to the first dim.  Vectors temporarily get a last dim. */
static int opdi_linalg_lstsq_batch(opd_call *call) {
    opd_value args[4], rets[4];
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    const char *driver = opd_arg_is_none(call, 3) ? "gelsy" : opd_arg_str(call, 3);
    const bool gels = strcmp(driver, "gels") == 0, gelsy = strcmp(driver, "gelsy") == 0;
    const bool vectors = opdi_lstsq_vectors(a, b);
    int dim;
    if (a->ndim < 2 || b->ndim < 1 || a->ndim - b->ndim > 1 || b->ndim > a->ndim) { return opdi_batch_unfit(call); }
    const int64_t rows = opd_size(a, -2), columns = opd_size(a, -1);
    for (int i = 0; i < 4; i++) { args[i] = call->args[i]; }
    for (int i = 0; i < 2; i++) {
        opd_tensor *tensor = opd_batch_value(args[i].u.t, &dim);
        int64_t sizes[OPD_MAX_DIMS];
        tensor = dim >= 0 ? opd_batch_front(tensor, dim) : opd_unsqueeze(tensor, 0);
        if (!tensor) { return -1; }
        memcpy(sizes, opdi_sizes(tensor), (size_t)tensor->ndim * sizeof *sizes);
        sizes[0] = opd_batch_size();
        tensor = opdi_expand_to(tensor, sizes, tensor->ndim);
        args[i].u.t = i && vectors ? opd_unsqueeze(tensor, -1) : tensor;
        if (!args[i].u.t) { return -1; }
    }
    if (opd_call_all(call->op, rets, args, 4)) { return -1; }
    if (vectors) { rets[0].u.t = opd_squeeze_dim(rets[0].u.t, -1); }
    for (int i = 0; i < 4; i++) {
        const opd_tensor *tensor = rets[i].u.t;
        const bool none = tensor && tensor->ndim == 1 && tensor->numel == 0 && opd_batch_size() > 0;
        const bool left_out = (i == 1 && (none || gelsy || rows <= columns)) || (i == 2 && gels) ||
            (i == 3 && (gels || gelsy));
        if (opd_batch_return(call, rets[i].u.t, left_out ? -1 : 0)) { return -1; }
    }
    return 0;
}
/* opd_linalg_lstsq: x that minimizes |self x - b|; |self x - b|^2; rank; singular values; driver 'gels': full rank */
OPDI_OP(linalg_lstsq) {
    op->schema = "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, "
        "Tensor residuals, Tensor rank, Tensor singular_values)";
    op->cpu = op->fake = op->any = opdi_linalg_lstsq_kernel; op->backward = opdi_linalg_lstsq_backward;
    op->save = "self, b, solution"; op->constant = "singular_values";
    op->vmap = opdi_linalg_lstsq_batch; op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->tags = OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE | OPDI_OPTAG_OUT_DYNAMIC | OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_OUT_CASTS;
    op->out = "linalg_lstsq.out(solution, residuals, rank, singular_values)";
    op->cases = "[4,3], [4,2], driver='gels'; [3,4], [3,2]; [2,4,2], [2,4], driver='gelsd'";
}
