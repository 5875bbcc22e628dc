#include "tools.h"

//== initialisers ======================================================================================================

/* Ends an initialiser: sets the grad mode to `was`.  Returns `tensor`, or NULL if an error occurred. */
static opd_tensor *opdi_init_done(opd_tensor *tensor, bool was) {
    (void)opd_grad_mode_set(was);
    return opd_ok() ? tensor : NULL;
}
static opd_tensor *opdi_init_wrong(const char *function, const char *what) {
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: %s", function, what);
    return NULL;
}
double opd_init_calculate_gain(const char *nonlinearity, double param) {
    static const struct { const char *name; double gain; } rows[] = {
        {"linear", 1}, {"conv1d", 1}, {"conv2d", 1}, {"conv3d", 1}, {"conv_transpose1d", 1}, {"conv_transpose2d", 1},
        {"conv_transpose3d", 1}, {"sigmoid", 1}, {"tanh", 5.0 / 3}, {"selu", 3.0 / 4}};
    for (size_t i = 0; nonlinearity && i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].name, nonlinearity) == 0) { return rows[i].gain; }
    }
    if (nonlinearity && strcmp(nonlinearity, "relu") == 0) { return sqrt(2.0); }
    if (nonlinearity && strcmp(nonlinearity, "leaky_relu") == 0) {
        const double slope = isnan(param) ? 0.01 : param;
        return sqrt(2.0 / (1 + slope * slope));
    }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "Unsupported nonlinearity %s", nonlinearity ? nonlinearity : "(null)");
    return NAN;
}
int opd_init_fans(const opd_tensor *tensor, int64_t *fan_in, int64_t *fan_out) {
    int64_t field = 1;
    if (fan_in) { *fan_in = 0; }
    if (fan_out) { *fan_out = 0; }
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_init_fans")) { return -1; }
    if (tensor->ndim < 2) {
        return opd_fail(OPD_ERROR_SHAPE, "Fan in and fan out can not be computed for tensor with fewer than 2 "
                        "dimensions");
    }
    for (int i = 2; i < tensor->ndim; i++) { field *= tensor->dims[i]; }
    if (fan_in) { *fan_in = tensor->dims[1] * field; }
    if (fan_out) { *fan_out = tensor->dims[0] * field; }
    return 0;
}
opd_tensor *opd_init_uniform_(opd_tensor *tensor, double from, double to) {
    const bool was = opd_grad_mode_set(false);
    (void)opd_uniform_(tensor, from, to);
    return opdi_init_done(tensor, was);
}
opd_tensor *opd_init_normal_(opd_tensor *tensor, double mean, double std) {
    const bool was = opd_grad_mode_set(false);
    (void)opd_normal_(tensor, mean, std);
    return opdi_init_done(tensor, was);
}
opd_tensor *opd_init_constant_(opd_tensor *tensor, double value) {
    const bool was = opd_grad_mode_set(false);
    (void)opd_fill_(tensor, opd_value_double(value));
    return opdi_init_done(tensor, was);
}
opd_tensor *opd_init_ones_(opd_tensor *tensor) { return opd_init_constant_(tensor, 1); }
opd_tensor *opd_init_zeros_(opd_tensor *tensor) { return opd_init_constant_(tensor, 0); }

/* Returns the cumulative distribution function of the standard normal distribution at x. */
static double opdi_normal_below(double x) { return opdi_erfc_f64(-x / sqrt(2.0)) / 2; }
/* Fills `tensor` with normal random numbers, and redraws numbers outside of [from, to] until all are inside.  This is
   fast if most numbers are inside.  Returns 0, or -1 and sets an error. */
static int opdi_trunc_normal(opd_tensor *tensor, double mean, double std, double from, double to) {
    bool more = true;
    (void)opd_normal_(tensor, mean, std);
    while (more && opd_ok()) {
        OPD_SCOPE {
            opd_tensor *outside = opd_logical_or(opd_lt_Scalar(tensor, opd_value_double(from)),
                                                 opd_gt_Scalar(tensor, opd_value_double(to)));
            more = opd_item_f64(opd_any(outside)) > 0;
            if (more && opd_ok()) {
                opd_tensor *again = opd_normal_(opd_empty_like(tensor), mean, std);
                (void)opd_copy_(tensor, opd_where_self(outside, again, tensor));
            }
        }
    }
    return opd_ok() ? 0 : -1;
}
/* Fills `tensor` by rejection sampling: draws uniform numbers in [from, to], accepts each with a probability
   proportional to the normal density, and redraws the rejected ones.  The density in [from, to] is largest at
   `mode`.  Returns 0, or -1 and sets an error. */
static int opdi_trunc_tail(opd_tensor *tensor, double mean, double std, double from, double to) {
    const double mode = OPDI_MAX(from, OPDI_MIN(mean, to)), peak = -0.5 * ((mode - mean) / std) * ((mode - mean) / std);
    bool more = true;
    OPD_SCOPE {
        opd_tensor *pending = opdi_keep(opd_ones_like_full(tensor, opd_value_int(OPD_BOOL), OPD_NONE, OPD_NONE,
                                                           OPD_NONE, OPD_NONE));
        while (more && opd_ok()) {
            OPD_SCOPE {
                opd_tensor *drawn = opd_uniform_(opd_empty_like(tensor), from, to);
                opd_tensor *scaled = opd_div_Scalar(opd_sub_Scalar(drawn, opd_value_double(mean)),
                                                    opd_value_double(std));
                opd_tensor *density = opd_sub_Scalar(opd_mul_Scalar(opd_square(scaled), opd_value_double(-0.5)),
                                                     opd_value_double(peak));
                opd_tensor *refused = opd_gt(opd_log(opd_uniform_(opd_empty_like(tensor), 0, 1)), density);
                (void)opd_copy_(tensor, opd_where_self(pending, drawn, tensor));
                (void)opd_copy_(pending, opd_logical_and(pending, refused));
                more = opd_item_f64(opd_any(pending)) > 0;
            }
        }
        opdi_release(pending);
    }
    return opd_ok() ? 0 : -1;
}
opd_tensor *opd_init_trunc_normal_(opd_tensor *tensor, double mean, double std, double from, double to) {
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_init_trunc_normal_")) { return NULL; }
    if (!(std > 0) || !(from < to)) {
        return opdi_init_wrong("opd_init_trunc_normal_", "expected std > 0 and from < to");
    }
    if (tensor->backend == OPD_META || tensor->numel == 0) { return tensor; }
    if (mean < from - 2 * std || mean > to + 2 * std) {
        opd_warn("mean is more than 2 std from [a, b] in opd_init_trunc_normal_. The distribution of values may be "
                 "incorrect.");
    }
    const bool was = opd_grad_mode_set(false);
    (void)(opdi_normal_below((to - mean) / std) - opdi_normal_below((from - mean) / std) > 0.3
           ? opdi_trunc_normal(tensor, mean, std, from, to) : opdi_trunc_tail(tensor, mean, std, from, to));
    return opdi_init_done(tensor, was);
}
opd_tensor *opd_init_eye_(opd_tensor *tensor) {
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_init_eye_")) { return NULL; }
    if (tensor->ndim != 2) { return opdi_init_wrong("opd_init_eye_", "Only tensors with 2 dimensions are supported"); }
    const bool was = opd_grad_mode_set(false);
    OPD_SCOPE { (void)opd_copy_(tensor, opd_eye_m(tensor->dims[0], tensor->dims[1], (opd_scalar_type)tensor->dtype)); }
    return opdi_init_done(tensor, was);
}
opd_tensor *opd_init_dirac_(opd_tensor *tensor, int64_t groups) {
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_init_dirac_")) { return NULL; }
    if (tensor->ndim < 3 || tensor->ndim > 5) {
        return opdi_init_wrong("opd_init_dirac_", "Only tensors with 3, 4, or 5 dimensions are supported");
    }
    if (groups < 1 || tensor->dims[0] % groups) {
        return opdi_init_wrong("opd_init_dirac_", "dim 0 must be divisible by groups");
    }
    const int64_t each = tensor->dims[0] / groups, least = OPDI_MIN(each, tensor->dims[1]);
    const bool was = opd_grad_mode_set(false);
    (void)opd_zero_(tensor);
    for (int64_t i = 0; i < groups * least && opd_ok(); i++) {
        OPD_SCOPE {
            opd_tensor *at = opd_select(opd_select(tensor, 0, i / least * each + i % least), 0, i % least);
            for (int dim = 2; dim < tensor->ndim; dim++) { at = opd_select(at, 0, tensor->dims[dim] / 2); }
            (void)opd_fill_(at, opd_value_int(1));
        }
    }
    return opdi_init_done(tensor, was);
}
opd_tensor *opd_init_xavier_uniform_(opd_tensor *tensor, double gain) {
    int64_t fan_in, fan_out;
    if (opd_init_fans(tensor, &fan_in, &fan_out)) { return NULL; }
    const double bound = sqrt(3.0) * (gain * sqrt(2.0 / (double)(fan_in + fan_out)));
    return tensor->numel ? opd_init_uniform_(tensor, -bound, bound) : tensor;
}
opd_tensor *opd_init_xavier_normal_(opd_tensor *tensor, double gain) {
    int64_t fan_in, fan_out;
    if (opd_init_fans(tensor, &fan_in, &fan_out)) { return NULL; }
    return tensor->numel ? opd_init_normal_(tensor, 0, gain * sqrt(2.0 / (double)(fan_in + fan_out))) : tensor;
}
/* Returns the standard deviation for kaiming_uniform_ and kaiming_normal_, or NaN and sets an error.  `param` is the
   parameter of the nonlinearity.  If fan_out is true, uses the number of outputs, else the number of inputs. */
static double opdi_init_kaiming(const opd_tensor *tensor, double param, bool fan_out, const char *nonlinearity) {
    int64_t in, out;
    if (opd_init_fans(tensor, &in, &out)) { return NAN; }
    return opd_init_calculate_gain(nonlinearity, param) / sqrt((double)(fan_out ? out : in));
}
opd_tensor *opd_init_kaiming_uniform_(opd_tensor *tensor, double param, bool fan_out, const char *nonlinearity) {
    const double bound = sqrt(3.0) * opdi_init_kaiming(tensor, param, fan_out, nonlinearity);
    return !opd_ok() ? NULL : tensor->numel ? opd_init_uniform_(tensor, -bound, bound) : tensor;
}
opd_tensor *opd_init_kaiming_normal_(opd_tensor *tensor, double param, bool fan_out, const char *nonlinearity) {
    const double std = opdi_init_kaiming(tensor, param, fan_out, nonlinearity);
    return !opd_ok() ? NULL : tensor->numel ? opd_init_normal_(tensor, 0, std) : tensor;
}
/* Orthonormalises the rows of a matrix [rows, cols], rows <= cols, one after another.  The result is the factor Q of
   a QR factorization whose R has a positive diagonal.  Each row is processed twice, to remove rounding errors. */
static void opdi_orthonormal(double *matrix, int64_t rows, int64_t cols) {
    for (int64_t i = 0; i < rows; i++) {
        double *const row = matrix + i * cols, sum = 0;
        for (int64_t k = 0; k < 2 * i; k++) {
            const double *const other = matrix + k % i * cols;
            double product = 0;
            for (int64_t j = 0; j < cols; j++) { product += row[j] * other[j]; }
            for (int64_t j = 0; j < cols; j++) { row[j] -= product * other[j]; }
        }
        for (int64_t j = 0; j < cols; j++) { sum += row[j] * row[j]; }
        for (int64_t j = 0; j < cols; j++) { row[j] /= sqrt(sum); }
    }
}
opd_tensor *opd_init_orthogonal_(opd_tensor *tensor, double gain) {
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_init_orthogonal_")) { return NULL; }
    if (tensor->ndim < 2) {
        return opdi_init_wrong("opd_init_orthogonal_", "Only tensors with 2 or more dimensions are supported");
    }
    if (tensor->numel == 0 || tensor->backend == OPD_META) { return tensor; }
    const int64_t rows = tensor->dims[0], cols = tensor->numel / rows;
    const int64_t sizes[2] = {OPDI_MIN(rows, cols), OPDI_MAX(rows, cols)};
    const bool was = opd_grad_mode_set(false);
    OPD_SCOPE {
        opd_tensor *matrix = opd_normal_(opd_empty(opd_ints_of(sizes, 2), OPD_FLOAT64), 0, 1);
        if (matrix) { opdi_orthonormal((double *)(void *)matrix->data, sizes[0], sizes[1]); }
        matrix = opd_mul_Scalar(rows < cols ? matrix : opd_t(matrix), opd_value_double(gain));
        (void)opd_copy_(tensor, opd_reshape(matrix, opd_ints_of(tensor->dims, tensor->ndim)));
    }
    return opdi_init_done(tensor, was);
}
opd_tensor *opd_init_sparse_(opd_tensor *tensor, double sparsity, double std) {
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_init_sparse_")) { return NULL; }
    if (tensor->ndim != 2) {
        return opdi_init_wrong("opd_init_sparse_", "Only tensors with 2 dimensions are supported");
    }
    if (!(sparsity >= 0 && sparsity <= 1)) { return opdi_init_wrong("opd_init_sparse_", "sparsity is not in [0, 1]"); }
    const int64_t rows = tensor->dims[0], cols = tensor->dims[1], none = (int64_t)ceil(sparsity * (double)rows);
    const bool was = opd_grad_mode_set(false);
    (void)opd_normal_(tensor, 0, std);
    for (int64_t col = 0; col < cols && opd_ok() && tensor->backend != OPD_META; col++) {
        OPD_SCOPE {
            opd_tensor *mask = opd_lt_Scalar(opd_randperm(rows, OPD_INT64), opd_value_int(none));
            mask = opd_to_device(mask, opd_tensor_device(tensor), OPD_BOOL);
            (void)opd_masked_fill_Scalar_(opd_select(tensor, 1, col), mask, opd_value_int(0));
        }
    }
    return opdi_init_done(tensor, was);
}
