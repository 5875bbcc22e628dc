/* Tests of complex numbers on a GPU.  Part of test_cuda.c. */

static opd_tensor *complex_of(opd_ints sizes, opd_scalar_type type, int layout) {
    int64_t n[4] = {1, 1, 1, 2};
    for (int64_t i = 0; i < sizes.n; i++) { n[i] = sizes.data[i]; }
    if (layout == 1) { n[0] = sizes.data[1]; n[1] = sizes.data[0]; }
    if (layout == 2) { n[1] *= 2; }
    if (layout == 3) { n[0] = 1; }
    n[sizes.n] = 2;
    opd_tensor *x = opd_view_as_complex(opd_randn(opd_ints_of(n, (int)sizes.n + 1), type == OPD_COMPLEX128 ? OPD_FLOAT64 : OPD_FLOAT32));
    return layout == 1 ? opd_transpose(x, 0, 1) : layout == 3 ? opd_expand(x, sizes)
        : layout == 2 ? opd_slice(x, 1, opd_value_int(0), opd_value_int(n[1]), 2) : x;
}
static void complex_as_on_host(const char *name, opd_tensor *on_gpu_, opd_tensor *on_host, double tolerance) {
    const bool pairs = on_host && on_gpu_ && opd_dtype_is_complex(opd_dtype(on_host)) && opd_dtype_is_complex(opd_dtype(on_gpu_));
    if (pairs) { as_on_host(name, opd_view_as_real(opd_resolve_conj(opd_detach(on_gpu_))), opd_view_as_real(opd_resolve_conj(opd_detach(on_host))), tolerance); }
    else { as_on_host(name, on_gpu_, on_host, tolerance); }
}
enum { COMPLEX_FORMULAS = 51 };
static opd_tensor *complex_formula(int k, opd_tensor *x, opd_tensor *y, opd_tensor *z) {
    static const double number[2] = {0.5, -1.25};
    const opd_value n = opd_value_complex(number);
    switch (k) {
        case 0: return opd_add(x, y);
        case 1: return opd_sub(x, y);
        case 2: return opd_mul(x, y);
        case 3: return opd_div(x, y);
        case 4: return opd_neg(x);
        case 5: return opd_conj_physical(x);
        case 6: return opd_abs(x);
        case 7: return opd_angle(x);
        case 8: return opd_exp(x);
        case 9: return opd_log(x);
        case 10: return opd_sqrt(x);
        case 11: return opd_sin(x);
        case 12: return opd_cos(x);
        case 13: return opd_tanh(x);
        case 14: return opd_sigmoid(x);
        case 15: return opd_reciprocal(x);
        case 16: return opd_square(x);
        case 17: return opd_sgn(x);
        case 18: return opd_pow_Tensor_Tensor(x, y);
        case 19: return opd_pow_Tensor_Scalar(x, n);
        case 20: return opd_mul_Scalar(x, n);
        case 21: return opd_add_full(x, y, n);
        case 22: return opd_addcmul(x, y, z, n);
        case 23: return opd_addcdiv(x, y, z, n);
        case 24: return opd_where_self(opd_ne(x, y), x, z);
        case 25: return opd_eq(x, y);
        case 26: return opd_isnan(x);
        case 27: return opd_logical_and(x, y);
        case 28: return opd_asin(x);
        case 29: return opd_acos(x);
        case 30: return opd_atan(x);
        case 31: return opd_sinh(x);
        case 32: return opd_cosh(x);
        case 33: return opd_asinh(x);
        case 34: return opd_acosh(x);
        case 35: return opd_atanh(x);
        case 36: return opd_expm1(x);
        case 37: return opd_log1p(x);
        case 38: return opd_log2(x);
        case 39: return opd_log10(x);
        case 40: return opd_exp2(x);
        case 41: return opd_rsqrt(x);
        case 42: return opd_tan(x);
        case 43: return opd_lerp(x, y, z);
        case 44: return opd_sinc(x);
        case 45: return opd_logaddexp(x, y);
        case 46: return opd_silu(opd_detach(x));       /* has no derivative for complex numbers */
        case 47: return opd_isfinite(x);
        case 48: return opd_nan_to_num(x);
        case 49: return opd_masked_fill_Scalar(x, opd_eq(x, y), n);
        default: return opd_mul(opd_conj(x), y);
    }
}
/* Sets out[0] to a result and out[1..3] to the gradients by three leaves, or NULL. */
static void complex_with_gradients(opd_tensor *(*f)(int, opd_tensor *, opd_tensor *, opd_tensor *), int k, opd_tensor *const *in, bool on, opd_tensor **out) {
    opd_tensor *x[3], *sum;
    opd_backward_options options;
    memset(&options, 0, sizeof options);
    options.allow_unused = true;
    for (int i = 0; i < 3; i++) { x[i] = opd_tensor_set_requires_grad(on ? to_gpu(in[i]) : opd_detach(in[i]), true); }
    out[0] = f(k, x[0], x[1], x[2]);
    if (!out[0] || !opd_tensor_requires_grad(out[0])) { return; }
    sum = opd_sum(opd_dtype_is_complex(opd_dtype(out[0])) ? opd_real(opd_mul(out[0], opd_conj(out[0]))) : opd_square(out[0]));
    (void)opd_autograd_grad(&sum, 1, x, 3, &options, out + 1);
}
/* Pointwise operators with both dtypes and mixed ones, with strides, broadcast and without elements: one launch each,
   nothing on the CPU, and gradients. */
TEST(pointwise_formulas_of_complex_numbers) {
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < COMPLEX_FORMULAS; k++) {
        for (int wide = 0; wide < 2 && check_visits((size_t)k, COMPLEX_FORMULAS); wide++) {
            OPD_SCOPE {
                const opd_scalar_type type = wide ? OPD_COMPLEX128 : OPD_COMPLEX64;
                opd_tensor *in[3], *out[2][4];
                memset(out, 0, sizeof out);
                in[0] = complex_of(OPD_INTS(5, 7), type, k % 4);
                in[1] = k % 5 == 1 ? complex_of(OPD_INTS(1, 7), type, 0) : k % 5 == 2 ? opd_randn(OPD_INTS(5, 7), OPD_FLOAT64) : complex_of(OPD_INTS(5, 7), type, (k + 1) % 4);
                in[2] = complex_of(OPD_INTS(5, 7), k % 7 == 3 ? OPD_COMPLEX64 : type, (k + 2) % 4);
                complex_with_gradients(complex_formula, k, in, false, out[0]);
                const int64_t before = opd_cpu_fallback_count();
                complex_with_gradients(complex_formula, k, in, true, out[1]);
                CHECK_INT(opd_cpu_fallback_count(), before);
                for (int i = 0; i < 4; i++) {
                    char name[60];
                    (void)snprintf(name, sizeof name, "    complex formula %d, %d", k, i);
                    CHECK(!out[0][i] == !out[1][i]);
                    if (out[0][i]) { complex_as_on_host(name, out[1][i], out[0][i], wide && k % 7 != 3 ? 1e-10 : 2e-4); }
                }
                for (int i = 0; i < 3; i++) { in[i] = opd_narrow(to_gpu(in[i]), 1, 0, 0); }
                CHECK(complex_formula(k, in[0], in[1], in[2]) != NULL);
            }
        }
    }
    CHECK_OK();
}
enum { COMPLEX_REDUCTIONS = 27 };
/* Returns n indices, each below 3, on the device of x; some are equal. */
static opd_tensor *complex_indices(opd_tensor *x, int64_t n) {
    return opd_to_device(opd_remainder_Scalar(opd_arange(opd_value_int(n), OPD_INT64), opd_value_int(3)), opd_tensor_device(x), OPD_INT64);
}
static opd_tensor *complex_reduction(int k, opd_tensor *x, opd_tensor *y, opd_tensor *z) {
    static const double numbers[2][2] = {{0.5, 2}, {-1, 0.25}};
    const opd_value a = opd_value_complex(numbers[0]), b = opd_value_complex(numbers[1]);
    const int64_t last = 1;
    (void)z;
    switch (k) {
        case 0: return opd_sum(x);
        case 1: return opd_sum_dim(x, opd_ints_of(&last, 1), false);
        case 2: return opd_sum_dim(x, OPD_INTS(0), true);
        case 3: return opd_mean(x);
        case 4: return opd_prod(opd_div(opd_narrow(x, 1, 0, 2), opd_detach(opd_abs(opd_narrow(x, 1, 0, 2)))));         /* of size 1 */
        case 5: return opd_cumsum(x, 1);
        case 6: return opd_cumprod(x, 0);
        case 7: return opd_linalg_vector_norm(x);
        case 8: return opd_any(opd_mul_Scalar(x, opd_value_double(-0.0)));     /* -0 is 0 in both parts */
        case 9: return opd_all(x);
        case 10: return opd_count_nonzero(opd_mul(x, opd_isfinite(x)));
        case 11: return opd_trace(x);
        case 12: return opd_mm(x, opd_t(y));
        case 13: return opd_addmm_full(opd_mm(x, opd_conj(opd_t(y))), x, opd_t(y), a, b);
        case 14: return opd_bmm(opd_unsqueeze(x, 0), opd_unsqueeze(opd_t(y), 0));
        case 15: return opd_mv(x, opd_select(y, 0, 0));
        case 16: return opd_dot(opd_select(x, 0, 0), opd_select(y, 0, 0));
        case 19: return opd_var_dim(x, OPD_INTS(1), true, false);
        case 20: return opd_std(x);
        case 21: {
            opd_tensor *out[2] = {NULL, NULL};
            return opd_var_mean_correction(out, x, OPD_INTS(0), OPD_V(0), true) ? NULL : opd_mul(out[0], out[1]);
        }
        case 22: return opd_logcumsumexp(x, 1);
        case 23: return opd_index_add_full(x, 0, complex_indices(x, opd_size(y, 0)), y, a);
        case 24: return opd_scatter_add(x, 1, opd_expand(complex_indices(x, opd_size(y, 1)), opd_ints_of(opd_sizes(y), 2)), y);
        case 25: {
            opd_tensor *index = complex_indices(x, 40);
            return opd_index_put(x, opd_tensors_of(&index, 1), opd_select(y, 0, 0), true);
        }
        case 26: return opd_put_full(x, complex_indices(x, opd_size(y, 1)), opd_select(y, 0, 0), true);
        case 17: return opd_vdot(opd_select(x, 0, 0), opd_select(y, 0, 0));
        default: return opd_addmm_full(opd_t(opd_select(x, 0, 0)), opd_narrow(x, 1, 0, 0), opd_narrow(opd_t(x), 0, 0, 0), opd_value_int(0), a);
    }
}
TEST(sums_and_products_of_complex_numbers) {
    static const int64_t sizes[][2] = {{5, 5}, {3, 700}, {200, 3}, {130, 64}};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 4 * COMPLEX_REDUCTIONS; k++) {
        const int form = k / 4;
        if (!check_visits((size_t)k, 4 * COMPLEX_REDUCTIONS) || (form == 18 && k % 4)) { continue; }
        OPD_SCOPE {
            const opd_scalar_type type = (k + k / 4) % 2 ? OPD_COMPLEX128 : OPD_COMPLEX64;
            const int64_t *const n = form == 11 || form == 18 ? sizes[0] : sizes[k % 4], before = opd_cpu_fallback_count();
            opd_tensor *in[3], *out[2][4];
            memset(out, 0, sizeof out);
            for (int i = 0; i < 3; i++) { in[i] = complex_of(OPD_INTS(n[0], n[1]), type, (k / 4 + i) % 4); }
            complex_with_gradients(complex_reduction, form, in, false, out[0]);
            complex_with_gradients(complex_reduction, form, in, true, out[1]);
            CHECK_INT(opd_cpu_fallback_count(), before);
            for (int i = 0; i < 4; i++) {
                char name[60];
                (void)snprintf(name, sizeof name, "    complex reduction %d, %d", k, i);
                CHECK(!out[0][i] == !out[1][i]);
                if (out[0][i]) { complex_as_on_host(name, out[1][i], out[0][i], type == OPD_COMPLEX128 ? 1e-10 : 1e-4); }
            }
        }
    }
    CHECK_OK();
}
/* In place, in a function of one variable, and in a batch; complex32, which is only stored. */
TEST(complex_numbers_in_other_mechanisms) {
    opd_tensor *x, *y, *z = NULL;
    if (!there()) { SKIP("no GPU"); }
    x = complex_of(OPD_INTS(4, 4), OPD_COMPLEX64, 0);
    y = to_gpu(x);
    complex_as_on_host("in place", opd_mul_(opd_clone(y), opd_t(y)), opd_mul_(opd_clone(x), opd_t(x)), 1e-5);
    complex_as_on_host("with a tensor of the host", opd_mul(y, opd_select(opd_select(x, 0, 0), 0, 1)), opd_mul(x, opd_select(opd_select(x, 0, 0), 0, 1)), 1e-5);
    CHECK_INT(opd_vmap(squares, NULL, &y, 1, NULL, &z, 1), 1);
    complex_as_on_host("in a batch", z, opd_sum_dim(opd_mul(x, x), OPD_INTS(1), false), 1e-5);
    CHECK(opd_equal(to_host(opd_any_dim(opd_zeros_like(opd_to_dtype(y, OPD_COMPLEX128)), 0, false)), opd_zeros(OPD_INTS(4), OPD_BOOL)));
    CHECK(!opd_abs_(y));
    CHECK_ERROR(OPD_ERROR_DTYPE, "In-place abs is not supported for complex tensors");
    x = to_gpu(opd_to_dtype(x, OPD_COMPLEX32));
    CHECK(!opd_mm(x, x));
    CHECK_ERROR(OPD_ERROR_DTYPE, "complex32");
    CHECK(!opd_sum(x));
    CHECK_ERROR(OPD_ERROR_DTYPE, "complex32");
    CHECK(!opd_lt(y, y));
    CHECK_ERROR(OPD_ERROR_DTYPE, "complex64");
    CHECK_OK();
}
