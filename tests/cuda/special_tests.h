/* Tests of special functions on a GPU.  Part of test_cuda.c. */

static const char *const special_of_one[] = {
    "lgamma", "digamma", "erfinv", "special_ndtri", "special_log_ndtr", "special_erfcx", "special_entr", "i0", "special_i0e", "special_i1",
    "special_i1e", "special_modified_bessel_i0", "special_modified_bessel_i1", "special_modified_bessel_k0", "special_modified_bessel_k1",
    "special_scaled_modified_bessel_k0", "special_scaled_modified_bessel_k1", "special_bessel_j0", "special_bessel_j1", "special_bessel_y0",
    "special_bessel_y1", "special_spherical_bessel_j0", "special_airy_ai"};
static const char *const special_of_two[] = {
    "igamma", "igammac", "special_zeta", "special_xlog1py", "_standard_gamma_grad", "special_chebyshev_polynomial_t",
    "special_chebyshev_polynomial_u", "special_chebyshev_polynomial_v", "special_chebyshev_polynomial_w", "special_shifted_chebyshev_polynomial_t",
    "special_shifted_chebyshev_polynomial_u", "special_shifted_chebyshev_polynomial_v", "special_shifted_chebyshev_polynomial_w",
    "special_hermite_polynomial_h", "special_hermite_polynomial_he", "special_laguerre_polynomial_l", "special_legendre_polynomial_p"};
enum { SPECIAL_ONE = sizeof special_of_one / sizeof *special_of_one, SPECIAL_TWO = sizeof special_of_two / sizeof *special_of_two };
/* Poles, zeros, numbers beside zeros, bounds between methods, huge and tiny numbers, infinities and NaN. */
static const double special_points[] = {
    0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3.7, -1.5, -2.25, -2.4570247, -7.9, -19.3, -20.3, 10.3, 8, 8.0001, -8.5, 2.4048255577, 3.8317059702, 0.8935769663,
    0.9999999, -0.9999999, 0.02425, 170.6, 95, 700, -26.5, -27.5, 1e-10, -1e-10, 1e-300, 1e5, -12345.25, 1e15, 1e30, 1e300, 104, -4.9, -1e4,
    INFINITY, -INFINITY, NAN, -3, 6.25};
static const double special_shapes[] = {0, 0.3, 1, 4.5, 50, 300, 1e5, 2e6, -1, -2.5, 1e-8, 7, INFINITY, NAN};
static const double special_places[] = {0, 0.2, 1, 4.9, 60, 290, 99700, 2000300, -2, -0.3, 1e-9, 0.99, -1, INFINITY, NAN};
static const double special_degrees[] = {0, 1, 2, 5, 6, 7, 8, 9, 10, 30, 31, 33, 513, -1, -0.5, 2.9, INFINITY, NAN};
static const double special_abscissas[] = {0, 1, -1, 0.3, -0.7, 0.5, 1.2, -2.5, 1e-9, 40, INFINITY, NAN};

static opd_tensor *special_tensor(const double *from, size_t n, opd_scalar_type dtype) {
    const int64_t size = (int64_t)n;
    return opd_to_dtype(opd_tensor_from((void *)(uintptr_t)from, opd_ints_of(&size, 1), OPD_FLOAT64), dtype);
}
static opd_tensor *special_call(const char *name, const opd_value *args, int n) {
    char full[100];
    opd_value result = opd_value_none();
    (void)snprintf(full, sizeof full, "aten::%s", name);
    return opd_call_all(opd_find(full), &result, args, n) ? NULL : result.u.t;
}
static opd_tensor *special_lgamma_out(opd_tensor *x, opd_tensor *out) {
    const opd_value args[2] = {opd_value_tensor(x), opd_value_tensor(out)};
    return special_call("lgamma.out", args, 2);
}
/* Compares each element with the one on the CPU: infinities and NaN exactly, other numbers relative to their size. */
static void special_as_on_host(const char *name, opd_tensor *got, opd_tensor *want, double tolerance) {
    const bool waves = strstr(name, "polynomial") != NULL;           /* a method may find 0 where another finds almost 0 */
    int wrong = 0;
    if (!got || !want) { printf("    %s: %s\n", name, opd_error_message()); CHECK(!got && !want); return; }
    CHECK_INT(opd_dtype(got), opd_dtype(want));
    CHECK_INT(opd_tensor_device(got).type, OPD_CUDA);
    if (!same_shape(got, want)) { CHECK(!"sizes"); return; }
    got = opd_contiguous(opd_to_dtype(to_host(got), OPD_FLOAT64)); want = opd_contiguous(opd_to_dtype(opd_detach(want), OPD_FLOAT64));
    for (int64_t i = 0; i < opd_numel(want); i++) {
        const double a = opd_data_f64(got)[i], b = opd_data_f64(want)[i];
        const bool same = a != a || b != b ? a != a && b != b : fabs(b) > 1e308 || fabs(a) > 1e308 ? a == b
            : fabs(a - b) <= tolerance * fabs(b) + (waves ? tolerance * 1e-3 : 1e-320);
        if (!same && wrong++ < 4) { printf("    %s: element %d is %.17g, not %.17g\n", name, (int)i, a, b); }
    }
    CHECK_INT(wrong, 0);
}
static double special_rounding(opd_scalar_type t) { return t == OPD_BFLOAT16 ? 8e-3 : t == OPD_FLOAT16 ? 1e-3 : t == OPD_FLOAT32 ? 1e-6 : 1e-11; }
static const opd_scalar_type special_dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16, OPD_INT64, OPD_BOOL};

TEST(special_functions_of_one_number) {
    if (!there()) { SKIP("no GPU"); }
    const int64_t before = opd_cpu_fallback_count();
    for (size_t k = 0; k < SPECIAL_ONE; k++) {
        for (size_t d = 0; d < 6; d++) {
            OPD_SCOPE {
                const opd_scalar_type dtype = special_dtypes[d];
                opd_tensor *x = d < 4 ? special_tensor(special_points, sizeof special_points / sizeof *special_points, dtype)
                    : opd_to_dtype(opd_sub_Scalar(opd_arange(OPD_V(44), OPD_INT64), OPD_V(3)), dtype);
                const opd_value there_ = opd_value_tensor(to_gpu(x)), here = opd_value_tensor(x);
                opd_tensor *want = special_call(special_of_one[k], &here, 1);
                if (!want) {                      /* some functions refuse 16-bit floats */
                    char text[200];
                    (void)snprintf(text, sizeof text, "%s", opd_error_message());
                    opd_error_clear();
                    CHECK(!special_call(special_of_one[k], &there_, 1));
                    CHECK_ERROR(OPD_ERROR_DTYPE, text);
                }
                else { special_as_on_host(special_of_one[k], special_call(special_of_one[k], &there_, 1), want, special_rounding(opd_dtype(want))); }
            }
        }
    }
    CHECK_INT(opd_cpu_fallback_count(), before);
    CHECK_OK();
}
/* All pairs of two lists, by broadcasting a column and a row. */
TEST(special_functions_of_two_numbers) {
    if (!there()) { SKIP("no GPU"); }
    const int64_t before = opd_cpu_fallback_count();
    for (size_t k = 0; k < SPECIAL_TWO; k++) {
        const bool degrees = strstr(special_of_two[k], "polynomial") != NULL;
        for (size_t d = 0; d < 4; d++) {
            OPD_SCOPE {
                const opd_scalar_type dtype = special_dtypes[d];
                opd_tensor *x = degrees ? special_tensor(special_abscissas, sizeof special_abscissas / sizeof *special_abscissas, dtype)
                    : special_tensor(special_shapes, sizeof special_shapes / sizeof *special_shapes, dtype);
                opd_tensor *y = degrees ? special_tensor(special_degrees, sizeof special_degrees / sizeof *special_degrees, dtype)
                    : special_tensor(special_places, sizeof special_places / sizeof *special_places, dtype);
                x = opd_unsqueeze(x, 1);
                const opd_value here[2] = {opd_value_tensor(x), opd_value_tensor(y)};
                const opd_value there_[2] = {opd_value_tensor(to_gpu(x)), opd_value_tensor(to_gpu(y))};
                opd_tensor *want = special_call(special_of_two[k], here, 2);
                if (!want) {
                    opd_error_clear();
                    CHECK(!special_call(special_of_two[k], there_, 2));
                    CHECK_ERROR(OPD_ERROR_DTYPE, "not implemented for");
                }
                else { special_as_on_host(special_of_two[k], special_call(special_of_two[k], there_, 2), want, dtype == OPD_FLOAT64 ? 1e-9 : 2 * special_rounding(dtype)); }
            }
        }
    }
    for (int64_t n = 0; n < 6; n++) {
        opd_tensor *x = special_tensor(special_points, sizeof special_points / sizeof *special_points, n % 2 ? OPD_FLOAT64 : OPD_FLOAT32);
        special_as_on_host("polygamma", opd_polygamma(n, to_gpu(x)), opd_polygamma(n, x), n % 2 ? 1e-11 : 1e-6);
    }
    CHECK_INT(opd_cpu_fallback_count(), before);
    CHECK_OK();
}
/* The derivative of a beta distributed number, with three inputs. */
TEST(derivatives_of_samples_on_the_gpu) {
    static const double xs[] = {0, 1e-9, 0.1, 0.5, 0.9, 1, -1, 2, NAN}, as[] = {0.2, 1, 3, 80, 1e11, -1, NAN};
    if (!there()) { SKIP("no GPU"); }
    const int64_t before = opd_cpu_fallback_count();
    for (size_t d = 0; d < 2; d++) {
        opd_tensor *x = special_tensor(xs, 9, special_dtypes[d]), *a = opd_unsqueeze(special_tensor(as, 7, special_dtypes[d]), 1);
        opd_tensor *total = opd_add(a, opd_unsqueeze(opd_unsqueeze(special_tensor(as, 5, special_dtypes[d]), 1), 1));
        const opd_value here[3] = {opd_value_tensor(x), opd_value_tensor(a), opd_value_tensor(total)};
        const opd_value there_[3] = {opd_value_tensor(to_gpu(x)), opd_value_tensor(to_gpu(a)), opd_value_tensor(to_gpu(total))};
        special_as_on_host("_dirichlet_grad", special_call("_dirichlet_grad", there_, 3), special_call("_dirichlet_grad", here, 3), d ? 1e-9 : 1e-5);
    }
    CHECK_INT(opd_cpu_fallback_count(), before);
    CHECK_OK();
}
/* Layouts of two inputs; a dtype for each; more dims than one launch takes. */
TEST(special_functions_with_strides) {
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 36; k++) {
        OPD_SCOPE {
            opd_tensor *in[2], *on[2];
            for (int i = 0; i < 2; i++) {
                const int layout = i ? k / 6 : k % 6;
                opd_tensor *x = opd_add_Scalar(opd_rand(layout == 1 ? OPD_INTS(6, 5, 4) : layout == 2 ? OPD_INTS(4, 10, 6) : layout == 3 ? OPD_INTS(5, 1)
                    : layout == 4 ? OPD_INTS(6) : layout == 5 ? OPD_INTS(4, 6, 5) : OPD_INTS(4, 5, 6), (k + i) % 3 ? OPD_FLOAT32 : OPD_FLOAT64), OPD_V(0.5));
                on[i] = to_gpu(x);
                for (int side = 0; side < 2; side++) {
                    opd_tensor **t = side ? &on[i] : &x;
                    *t = layout == 1 ? opd_transpose(*t, 0, 2) : layout == 2 ? opd_slice(*t, 1, opd_value_int(1), OPD_NONE, 2)
                        : layout == 3 ? opd_expand(*t, OPD_INTS(4, 5, 6)) : layout == 5 ? opd_transpose(*t, 1, 2) : *t;
                }
                in[i] = x;
            }
            special_as_on_host("igamma with strides", opd_igamma(on[0], on[1]), opd_igamma(in[0], in[1]), 1e-5);
            special_as_on_host("lgamma with strides", opd_lgamma(on[0]), opd_lgamma(in[0]), 1e-5);
        }
    }
    {
        int64_t sizes[14];
        opd_tensor *x, *y;
        for (int i = 0; i < 14; i++) { sizes[i] = 2; }
        x = opd_slice(opd_add_Scalar(opd_rand(opd_ints_of(sizes, 14), OPD_FLOAT64), OPD_V(1)), 13, opd_value_int(0), OPD_NONE, 2);
        y = to_gpu(x);
        for (int i = 0; i < 6; i++) { x = opd_transpose(x, i, 12 - i); y = opd_transpose(y, i, 12 - i); }
        special_as_on_host("digamma of 14 dims", opd_special_zeta(opd_add_Scalar(y, OPD_V(1)), opd_flip(y, OPD_INTS(0, 3))),
                           opd_special_zeta(opd_add_Scalar(x, OPD_V(1)), opd_flip(x, OPD_INTS(0, 3))), 1e-11);
    }
    CHECK_OK();
}
/* Numbers and tensors of the CPU, in-place and out= forms, results in memory that an input uses, several devices. */
TEST(special_functions_in_other_forms) {
    opd_tensor *x, *y, *out;
    if (!there()) { SKIP("no GPU"); }
    const int64_t before = opd_cpu_fallback_count();
    x = opd_add_Scalar(opd_rand(OPD_INTS(4, 4), OPD_FLOAT32), OPD_V(0.5));
    y = to_gpu(x);
    special_as_on_host("a number", opd_special_xlog1py_self_scalar(OPD_V(0.1), y), opd_special_xlog1py_self_scalar(OPD_V(0.1), x), 1e-6);
    /* a number is converted to the dtype of the tensor: 70000 is infinite in float16 */
    special_as_on_host("a large number", opd_special_xlog1py_self_scalar(OPD_V(70000), opd_to_dtype(y, OPD_FLOAT16)),
                       opd_special_xlog1py_self_scalar(OPD_V(70000), opd_to_dtype(x, OPD_FLOAT16)), 1e-3);
    special_as_on_host("a large number of the CPU", opd_special_xlog1py(opd_scalar_tensor(OPD_V(70000), OPD_FLOAT32), opd_to_dtype(y, OPD_FLOAT16)),
                       opd_special_xlog1py(opd_scalar_tensor(OPD_V(70000), OPD_FLOAT32), opd_to_dtype(x, OPD_FLOAT16)), 1e-3);
    special_as_on_host("a degree", opd_special_legendre_polynomial_p_n_scalar(y, OPD_V(3)), opd_special_legendre_polynomial_p_n_scalar(x, OPD_V(3)), 1e-6);
    special_as_on_host("an abscissa", opd_special_hermite_polynomial_h_x_scalar(OPD_V(0.1), y), opd_special_hermite_polynomial_h_x_scalar(OPD_V(0.1), x), 1e-6);
    special_as_on_host("a tensor of the CPU", opd_igamma(opd_scalar_tensor(OPD_V(0.7), OPD_FLOAT32), y), opd_igamma(opd_scalar_tensor(OPD_V(0.7), OPD_FLOAT32), x), 1e-6);
    special_as_on_host("an integer of the CPU", opd_special_zeta(y, opd_tensor_wrapped_number(opd_value_int(3))), opd_special_zeta(x, opd_tensor_wrapped_number(opd_value_int(3))), 1e-6);
    special_as_on_host("integers", opd_special_zeta(opd_to_dtype(y, OPD_INT64), opd_arange_full(opd_value_int(4), opd_value_int(OPD_INT32), opd_value_none(), opd_value_device(gpu(-1)), opd_value_none())),
                       opd_special_zeta(opd_to_dtype(x, OPD_INT64), opd_arange(OPD_V(4), OPD_INT32)), 1e-6);
    special_as_on_host("in place", opd_igamma_(opd_clone(y), opd_t(y)), opd_igamma_(opd_clone(x), opd_t(x)), 1e-6);
    special_as_on_host("in place, by itself", opd_igamma_(opd_clone(y), y), opd_igamma_(opd_clone(x), x), 1e-6);
    special_as_on_host("in place, polygamma", opd_polygamma_(opd_clone(y), 1), opd_polygamma_(opd_clone(x), 1), 1e-6);
    special_as_on_host("mvlgamma", opd_mvlgamma(opd_add_Scalar(y, OPD_V(2)), 3), opd_mvlgamma(opd_add_Scalar(x, OPD_V(2)), 3), 1e-5);
    out = opd_zeros_like(opd_to_dtype(y, OPD_FLOAT64));
    special_as_on_host("out= of another dtype", special_lgamma_out(y, out), special_lgamma_out(x, opd_zeros_like(opd_to_dtype(x, OPD_FLOAT64))), 1e-6);
    out = opd_clone(y);
    CHECK(!special_lgamma_out(opd_t(out), out));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "refer to a single memory location");
    out = opd_zeros(OPD_INTS(17), OPD_FLOAT32);
    out = to_gpu(out);
    CHECK(!special_lgamma_out(opd_narrow(out, 0, 1, 16), opd_narrow(out, 0, 0, 16)));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "refer to a single memory location");
    CHECK(!opd_igamma(y, x));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "same device");
    CHECK(!opd_igamma(x, y));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "same device");
    if (opd_device_count(OPD_CUDA) > 1) {
        opd_tensor *other = opd_to_device(x, opd_device_make(OPD_CUDA, 1), OPD_FLOAT32), *first = opd_to_device(x, opd_device_make(OPD_CUDA, 0), OPD_FLOAT32);
        CHECK(!opd_igamma(first, other));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "same device");
        special_as_on_host("on another GPU", opd_igamma(other, other), opd_igamma(x, x), 1e-6);
        CHECK_INT(opd_tensor_device(opd_lgamma(other)).index, 1);
    }
    CHECK(!opd_igamma(opd_to_dtype(y, OPD_INT64), opd_to_dtype(y, OPD_INT64)));
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"igamma_cpu\" not implemented for 'int64'");
    CHECK_INT(opd_numel(opd_igamma(opd_narrow(y, 0, 0, 0), opd_narrow(y, 0, 0, 1))), 0);
    CHECK_INT(opd_cpu_fallback_count(), before);
    CHECK_OK();
}
/* Gradients by way of random numbers of distributions, which call derivatives of samples. */
TEST(derivatives_of_special_functions_on_the_gpu) {
    if (!there()) { SKIP("no GPU"); }
    const int64_t before = opd_cpu_fallback_count();
    for (int k = 0; k < 8; k++) {
        opd_tensor *grad[2] = {NULL, NULL}, *x = opd_add_Scalar(opd_rand(OPD_INTS(6, 7), OPD_FLOAT64), OPD_V(0.7));
        for (int side = 0; side < 2; side++) {
            opd_tensor *leaf = opd_tensor_set_requires_grad(side ? to_gpu(x) : opd_detach(x), true), *half = opd_mul_Scalar(leaf, OPD_V(0.5)), *r;
            switch (k) {
                case 0: r = opd_digamma(opd_mul(leaf, opd_lgamma(leaf))); break;
                case 1: r = opd_igamma(opd_detach(leaf), opd_erfinv(opd_mul_Scalar(leaf, OPD_V(0.4)))); break;
                case 2: r = opd_add(opd_special_i0e(leaf), opd_special_i1e(opd_i0(leaf))); break;
                case 3: r = opd_special_ndtri(opd_mul_Scalar(half, OPD_V(0.5))); break;
                case 4: r = opd_mul(opd_special_bessel_j1(leaf), opd_special_bessel_y1(leaf)); break;
                case 5: r = opd_special_xlog1py(leaf, opd_special_erfcx(leaf)); break;
                case 6: r = opd_special_zeta(opd_detach(opd_add_Scalar(leaf, OPD_V(2))), leaf); break;
                default: r = opd_special_modified_bessel_k1(opd_special_log_ndtr(opd_neg(leaf))); r = opd_add(r, opd_mvlgamma(opd_add_Scalar(leaf, OPD_V(3)), 2)); break;
            }
            opd_tensor *sum = opd_sum(opd_square(r));
            CHECK_INT(opd_autograd_grad(&sum, 1, &leaf, 1, NULL, &grad[side]), 0);
        }
        special_as_on_host("a gradient", grad[1], grad[0], 1e-9);
    }
    CHECK_INT(opd_cpu_fallback_count(), before);
    CHECK_OK();
}
