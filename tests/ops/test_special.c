/* Special functions: values as computed with mpmath and PyTorch (golden/special.txt), dtypes, derivatives of any
   order. */
#include "../../opdispatch.h"
#include "../check.h"

/* What aten::name gives at x, and y unless it is NULL, in dtype; polygamma's order comes first. */
static double value_of(const char *name, double x, const double *y, opd_scalar_type dtype) {
    char full[100];
    double value = 0;
    (void)snprintf(full, sizeof full, "aten::%s", name);
    OPD_SCOPE {
        opd_value args[2], got;
        opd_op *op = opd_find(full);
        const bool order = strcmp(name, "polygamma") == 0;
        args[order] = opd_value_tensor(opd_full(opd_ints_of(NULL, 0), opd_value_double(x), dtype));
        if (order) { args[0] = opd_value_int((int64_t)*y); }
        else if (y) { args[1] = opd_value_tensor(opd_full(opd_ints_of(NULL, 0), opd_value_double(*y), dtype)); }
        if (op && opd_call_all(op, &got, args, y ? 2 : 1) == 0) { value = opd_item_f64(got.u.t); }
        CHECK(opd_ok());
    }
    return value;
}
static bool as_good(double have, double want, double limit, double least) {
    if (isnan(want) || isnan(have)) { return isnan(want) && isnan(have); }
    return have == want || fabs(have - want) <= limit * fabs(want) + least;
}

TEST(values_are_those_of_mpmath_and_pytorch) {
    FILE *golden = check_golden("special.txt");
    char line[400], name[100], first[40], second[40], third[40];
    int count = 0, wrong = 0;
    CHECK_OR_RETURN(golden != NULL);
    while (fgets(line, sizeof line, golden)) {
        char kind;
        double error = 0, x, y, want, have, limit;
        const int read = sscanf(line, "%c %99s %39s %39s %39s %lf", &kind, name, first, second, third, &error);
        CHECK_OR_RETURN(read == (kind == '~' ? 6 : 5));
        x = strtod(first, NULL);
        y = strtod(second, NULL);
        want = strtod(third, NULL);
        limit = kind == '=' ? 1e-5 : error > 5e-14 ? 2 * error : 1e-13;
        have = value_of(name, x, *second == '-' && !second[1] ? NULL : &y, OPD_FLOAT64);
        count++;
        if (!as_good(have, want, limit, kind == '=' ? 1e-14 : 0)) {
            printf("float64 %s gives %.17g\n", line, have);
            wrong++;
        }
        if (kind != '~' || fabs(want) > 3e38 || fabs(want) < 1e-37) { continue; }
        have = value_of(name, x, *second == '-' && !second[1] ? NULL : &y, OPD_FLOAT32);
        limit = strcmp(name, "special_ndtr") == 0 ? 5e-6 : 2 * 1.1920929e-7 + 2 * error;   /* that is composed */
        if (!as_good(have, want, limit, 0)) {
            printf("float32 %s gives %.9g\n", line, have);
            wrong++;
        }
    }
    (void)fclose(golden);
    CHECK(count > 2500);
    CHECK_INT(wrong, 0);
}

TEST(dtypes_are_those_of_pytorch) {
    opd_tensor *whole = opd_full(OPD_INTS(3), OPD_V(4), OPD_INT64), *half = opd_full(OPD_INTS(3), OPD_V(0.5), OPD_BFLOAT16);
    CHECK_INT(opd_dtype(opd_lgamma(whole)), OPD_FLOAT32);
    CHECK_INT(opd_dtype(opd_special_legendre_polynomial_p(whole, whole)), OPD_FLOAT32);
    CHECK_INT(opd_dtype(opd_mvlgamma(whole, 2)), OPD_FLOAT32);
    CHECK_INT(opd_dtype(opd_erfinv(half)), OPD_BFLOAT16);
    CHECK_INT(opd_dtype(opd_special_zeta_self_scalar(OPD_V(2.5), whole)), OPD_FLOAT32);
    CHECK(opd_special_airy_ai(half) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"airy_ai_cpu\" not implemented for 'bfloat16'");
    CHECK(opd_igamma(whole, whole) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"igamma_cpu\" not implemented for 'int64'");
    CHECK(opd_i0(opd_full(OPD_INTS(3), OPD_V(1), OPD_COMPLEX64)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"i0_vml_cpu\" not implemented for 'complex64'");
    CHECK(opd_polygamma(-1, half) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "polygamma(n, x) does not support negative n.");
    CHECK(opd_mvlgamma(half, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "p has to be greater than or equal to 1");
    CHECK(opd_mvlgamma(half, INT32_MAX) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "p is 2147483647, but must be less than 2^30");
    CHECK(opd_special_multigammaln(half, (int64_t)1 << 62) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "but must be less than 2^30");
    CHECK(opd_polygamma_(whole, 1) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "result type float32 can't be cast to the desired output type int64");
}

/* The gradient of y's sum with respect to x, recorded. */
static opd_tensor *gradient(opd_tensor *y, opd_tensor *x) {
    opd_tensor *sum = opd_sum(y), *grad = NULL;
    opd_backward_options options;
    memset(&options, 0, sizeof options);
    options.create_graph = true;
    (void)opd_autograd_grad(&sum, 1, &x, 1, &options, &grad);
    return grad;
}
/* The third derivative of lgamma, and polygamma_ with autograd. */
TEST(derivatives_have_any_order) {
    opd_tensor *x = opd_full(OPD_INTS(1), OPD_V(2.5), OPD_FLOAT64), *grad, *y;
    opd_tensor_set_requires_grad(x, true);
    grad = opd_lgamma(x);
    for (int i = 0; i < 3; i++) { grad = gradient(grad, x); }
    CHECK_NEAR(opd_item_f64(grad), -0.23620405164172739, 1e-14);
    y = opd_polygamma_(opd_mul(x, x), 1);
    CHECK_NEAR(opd_item_f64(gradient(y, x)), 5 * opd_item_f64(opd_polygamma(2, opd_mul(x, x))), 1e-14);
    CHECK(opd_igamma(x, x) == NULL);
    CHECK(!opd_ok());
    opd_error_clear();
}
/* Halfway between negative whole numbers what stands above and below zero cancels in odd powers, to the last digit. */
TEST(polygamma_halfway_between_whole_numbers) {
    const double second = 2, tenth = 10;
    CHECK_NEAR(value_of("polygamma", -1000000.5, &second, OPD_FLOAT64), -9.9999800000275e-13, 1e-24);
    CHECK_NEAR(value_of("polygamma", -171.5, &tenth, OPD_FLOAT64), -1.6010735589454852e-17, 2e-29);
    CHECK(value_of("igamma", 5e-324, &second, OPD_FLOAT64) <= 1);
}
/* lgamma of zeros, of numbers very close to 0, and of negative whole numbers. */
TEST(lgamma_near_its_poles) {
    const double poles[] = {0, -0.0, -1, -2, -3, -4, -25, -1e7};
    for (int i = 0; i < 8; i++) {
        CHECK(value_of("lgamma", poles[i], NULL, OPD_FLOAT64) == HUGE_VAL);
        CHECK(value_of("lgamma", poles[i], NULL, OPD_FLOAT32) == HUGE_VAL);
    }
    CHECK_NEAR(value_of("lgamma", 1e-310, NULL, OPD_FLOAT64), 713.8013788281542, 1e-12);
    CHECK_NEAR(value_of("lgamma", 1e-300, NULL, OPD_FLOAT64), 690.7755278982137, 1e-12);
    CHECK_NEAR(value_of("lgamma", -1e-160, NULL, OPD_FLOAT64), 368.4136148790473, 1e-12);
    CHECK_NEAR(value_of("lgamma", -1e-18, NULL, OPD_FLOAT64), 41.44653167389282, 1e-13);
}
/* The result for a number does not depend on its position or its neighbours: 150 numbers, in vector code and in the
   remaining scalar code, and each number separately. */
TEST(numbers_do_not_depend_on_their_neighbours) {
    static const char *const names[] = {
        "lgamma", "digamma", "erf", "erfc", "erfinv", "sinc", "logit", "special_erfcx", "special_ndtri",
        "special_log_ndtr", "special_entr", "special_i1", "special_i1e", "special_bessel_j0", "special_bessel_j1",
        "special_bessel_y0", "special_bessel_y1", "special_spherical_bessel_j0", "igamma", "igammac", "xlogy.Tensor",
        "atan2", "special_hermite_polynomial_h", "special_hermite_polynomial_he", "special_laguerre_polynomial_l",
        "special_legendre_polynomial_p", "special_chebyshev_polynomial_t", "special_chebyshev_polynomial_u",
        "special_chebyshev_polynomial_v", "special_chebyshev_polynomial_w", "special_shifted_chebyshev_polynomial_t",
        "special_shifted_chebyshev_polynomial_u", "special_shifted_chebyshev_polynomial_v",
        "special_shifted_chebyshev_polynomial_w"};
    const double odd[] = {0, -0.0, 1, -1, 2, -3, 0.5, INFINITY, -INFINITY, NAN, 1e300, -1e300, 1e-300, 3e7};
    enum { COUNT = 150, ODD = sizeof odd / sizeof *odd };
    double x[COUNT], y[COUNT];
    for (int i = 0; i < COUNT; i++) {
        x[i] = i % 4 == 3 ? odd[i / 4 % ODD] : (double)(i * 37 % COUNT) * (i % 2 ? 0.3 : 0.006) - (i % 2 ? 15 : 0.3);
        y[i] = i % 5 == 4 ? odd[i / 5 % ODD] : (double)(i * 53 % COUNT) * 0.2;
    }
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char full[60];
        (void)snprintf(full, sizeof full, "aten::%s", names[k]);
        opd_op *op = opd_find(full);
        for (int single = 0; single < 2; single++) {
            const int64_t count = COUNT;
            opd_scalar_type dtype = single ? OPD_FLOAT32 : OPD_FLOAT64;
            opd_value args[2], all, one;
            args[0] = opd_value_tensor(opd_to_dtype(opd_tensor_from(x, opd_ints_of(&count, 1), OPD_FLOAT64), dtype));
            args[1] = opd_value_tensor(opd_to_dtype(opd_tensor_from(y, opd_ints_of(&count, 1), OPD_FLOAT64), dtype));
            opd_tensor *first = args[0].u.t, *second = args[1].u.t;
            const int nargs = k > 17 ? 2 : 1;
            CHECK_OR_RETURN(op && opd_call_all(op, &all, args, nargs) == 0);
            int wrong = 0;
            for (int64_t i = 0; i < count; i++) OPD_SCOPE {
                args[0] = opd_value_tensor(opd_select(first, 0, i));
                args[1] = opd_value_tensor(opd_select(second, 0, i));
                CHECK_OR_RETURN(opd_call_all(op, &one, args, nargs) == 0);
                const double have = opd_item_f64(opd_select(all.u.t, 0, i)), want = opd_item_f64(one.u.t);
                wrong += !(have == want || (isnan(have) && isnan(want)));
            }
            if (wrong) { printf("    %s of %s: %d\n", names[k], single ? "float" : "double", wrong); }
            CHECK_INT(wrong, 0);
        }
    }
}
/* A single degree, or a single place, gives the same as a tensor of equal degrees or places. */
TEST(polynomials_take_a_scalar_for_either) {
    opd_tensor *x = opd_linspace(OPD_V(-2.5), OPD_V(2.5), 70, OPD_FLOAT32);
    opd_tensor *n = opd_full(OPD_INTS(70), OPD_V(5), OPD_FLOAT32);
    opd_tensor *fixed = opd_full(OPD_INTS(70), OPD_V(0.75), OPD_FLOAT32);
    opd_tensor *degrees = opd_fmod_Scalar(opd_arange(OPD_V(70), OPD_FLOAT32), OPD_V(40));
    CHECK(opd_equal(opd_special_legendre_polynomial_p(x, n),
                    opd_special_legendre_polynomial_p_n_scalar(x, OPD_V(5))));
    CHECK(opd_equal(opd_special_laguerre_polynomial_l(x, n),
                    opd_special_laguerre_polynomial_l_n_scalar(x, OPD_V(5))));
    CHECK(opd_equal(opd_special_hermite_polynomial_h(fixed, degrees),
                    opd_special_hermite_polynomial_h_x_scalar(OPD_V(0.75), degrees)));
    CHECK(opd_ok());
}
CHECK_MAIN()
