/* Random numbers with various distributions: moments and distribution functions of many samples, limits of
   arguments, errors, gradients. */
#include "../check.h"
#include <math.h>

#define CALL(name, ...) ({ static opd_op *op_; OPD_CALL(OPD_OP(&op_, name), __VA_ARGS__); })
enum { COUNT = 100000 };
static opd_tensor *filled(double value, opd_scalar_type dtype) { return opd_full(OPD_INTS(COUNT), OPD_V(value), dtype); }
static const double *values_of(opd_tensor *t) {
    t = opd_contiguous(opd_to_dtype(t, OPD_FLOAT64));
    CHECK_OK();
    return t ? opd_data_f64(t) : NULL;
}
/* Mean and variance of samples are within six standard errors; kurtosis is that of the distribution, 3 for normal. */
static void moments(const char *what, opd_tensor *samples, double mean, double variance, double kurtosis) {
    const double *x = values_of(samples);
    double sum = 0, squares = 0;
    CHECK_OR_RETURN(x != NULL);
    for (int i = 0; i < COUNT; i++) { sum += x[i] - mean; }
    sum /= COUNT;
    for (int i = 0; i < COUNT; i++) { squares += (x[i] - mean) * (x[i] - mean); }
    squares /= COUNT;
    if (fabs(sum) > 6 * sqrt(variance / COUNT) || fabs(squares - variance) > 6 * variance * sqrt(kurtosis / COUNT)) {
        printf("%s: mean %g off by %g, variance %g is %g\n", what, mean, sum, variance, squares);
        CHECK(!"the moments are those of the distribution");
    }
}
static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
/* Kolmogorov and Smirnov: the distribution function at samples, in `parts`, is uniform. */
static void uniform(const char *what, opd_tensor *parts) {
    double *x = (double *)malloc(COUNT * sizeof *x), most = 0;
    const double *from = values_of(parts);
    if (from && x) {
        memcpy(x, from, COUNT * sizeof *x);
        qsort(x, COUNT, sizeof *x, by_size);
        for (int i = 0; i < COUNT; i++) { most = fmax(most, fabs(x[i] - (i + 0.5) / COUNT)); }
        if (!(most * sqrt((double)COUNT) < 2.2)) {             /* one in ten thousand is above */
            printf("%s: the distribution function is off by %g\n", what, most);
            CHECK(!"the distribution is right");
        }
    }
    free(x);
}
/* How often samples are at most `bound`, against a probability. */
static void at_most(const char *what, opd_tensor *samples, double bound, double probability) {
    const double *x = values_of(samples);
    double found = 0;
    CHECK_OR_RETURN(x != NULL);
    for (int i = 0; i < COUNT; i++) { found += x[i] <= bound; }
    if (fabs(found / COUNT - probability) > 6 * sqrt(probability * (1 - probability) / COUNT) + 1e-9) {
        printf("%s: at most %g with %g, not %g\n", what, bound, found / COUNT, probability);
        CHECK(!"the distribution function is right");
    }
}

TEST(poisson_numbers) {
    static const double means[] = {0.01, 0.5, 9.9, 10, 11, 50, 1000, 1e6, 1e12};
    opd_manual_seed(11);
    for (int i = 0; i < 9; i++) {
        OPD_SCOPED;
        const double mean = means[i];
        char what[40];
        opd_tensor *samples = opd_poisson(filled(mean, OPD_FLOAT64));
        (void)snprintf(what, sizeof what, "poisson %g", mean);
        moments(what, samples, mean, mean, 2 + 1 / mean);
        for (int k = -2; k <= 2 && mean < 1e7; k++) {
            const double bound = floor(mean + k * sqrt(mean));
            if (bound < 0) { continue; }
            at_most(what, samples, bound, opd_item_f64(opd_igammac(opd_full(opd_ints_of(NULL, 0), OPD_V(bound + 1), OPD_FLOAT64),
                                                                   opd_full(opd_ints_of(NULL, 0), OPD_V(mean), OPD_FLOAT64))));
        }
    }
    CHECK_NEAR(opd_item_f64(opd_poisson(opd_zeros(OPD_INTS(1), OPD_FLOAT32))), 0, 0);
    CHECK(opd_poisson(opd_full(OPD_INTS(3), OPD_V(-1), OPD_FLOAT32)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "invalid Poisson rate, expected rate to be non-negative");
    CHECK(opd_poisson(opd_ones(OPD_INTS(3), OPD_INT64)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"poisson_cpu\" not implemented for 'int64'");
}
static double binomial_part(double count, double p, double bound) {
    double sum = 0;
    for (double k = 0; k <= bound; k++) {
        sum += exp(lgamma(count + 1) - lgamma(k + 1) - lgamma(count - k + 1) + k * log(p) + (count - k) * log1p(-p));
    }
    return sum;
}
TEST(binomial_numbers) {
    static const double cases[][2] = {{1, 0.3}, {5, 0.3}, {40, 0.24}, {40, 0.26}, {40, 0.74}, {100, 0.5}, {1000, 0.9},
                                      {1e6, 1e-6}, {1e9, 0.3}, {1e12, 0.7}};
    opd_manual_seed(12);
    for (int i = 0; i < 10; i++) {
        OPD_SCOPED;
        const double count = cases[i][0], p = cases[i][1], variance = count * p * (1 - p);
        char what[60];
        opd_tensor *samples = opd_binomial(filled(count, OPD_FLOAT64), filled(p, OPD_FLOAT64));
        (void)snprintf(what, sizeof what, "binomial %g %g", count, p);
        moments(what, samples, count * p, variance, 2 + fmax(0, (1 - 6 * p * (1 - p)) / variance));
        for (int k = -2; k <= 2 && count < 2e6; k++) {
            const double bound = floor(count * p + k * sqrt(variance));
            if (bound >= 0 && bound < count) { at_most(what, samples, bound, binomial_part(count, p, bound)); }
        }
    }
    {
        opd_tensor *one = opd_ones(OPD_INTS(1), OPD_FLOAT32), *nan = opd_full(OPD_INTS(1), OPD_V(NAN), OPD_FLOAT32);
        CHECK_NEAR(opd_item_f64(opd_binomial(opd_full(OPD_INTS(1), OPD_V(5.5), OPD_FLOAT32), one)), 5.5, 0);
        CHECK_NEAR(opd_item_f64(opd_binomial(opd_neg(one), one)), 0, 0);
        CHECK(isnan(opd_item_f64(opd_binomial(nan, one))));
        CHECK(isnan(opd_item_f64(opd_binomial(one, nan))));
        CHECK(opd_binomial(one, opd_ones(OPD_INTS(1), OPD_FLOAT64)) == NULL);
        CHECK_ERROR(OPD_ERROR_DTYPE, "Found dtype float64 but expected float32");
        CHECK(opd_binomial(opd_ones(OPD_INTS(1), OPD_INT64), one) == NULL);
        CHECK_ERROR(OPD_ERROR_DTYPE, "binomial only supports floating-point dtypes for count, got: int64");
    }
}
TEST(numbers_of_continuous_distributions) {
    opd_tensor *x;
    opd_manual_seed(13);
    x = filled(0, OPD_FLOAT64);
    uniform("exponential", opd_neg(opd_expm1(opd_mul_Scalar(opd_exponential_full(x, 2.5, NULL), OPD_V(-2.5)))));
    uniform("cauchy", opd_add_Scalar(opd_mul_Scalar(opd_atan(opd_mul_Scalar(opd_sub_Scalar(opd_cauchy_full(x, 3, 2, NULL), OPD_V(3)),
                                                                            OPD_V(0.5))), OPD_V(0.31830988618379067)), OPD_V(0.5)));
    uniform("log_normal", opd_special_ndtr(opd_mul_Scalar(opd_sub_Scalar(opd_log(opd_log_normal_full(x, 1, 0.5, NULL)), OPD_V(1)), OPD_V(2))));
    x = filled(0, OPD_FLOAT32);
    uniform("log_normal in float32", opd_special_ndtr(opd_log(opd_log_normal_full_(x, 0, 1, NULL))));
    CHECK(opd_cauchy_full(x, 0, 0, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "cauchy_ expects sigma > 0.0, but found sigma=0");
    CHECK(opd_log_normal_full(x, 0, NAN, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "log_normal_ expects std > 0.0, but found std=nan");
    CHECK(opd_cauchy(opd_ones(OPD_INTS(2), OPD_INT32)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Cauchy distribution is a continuous probability distribution.");
    CHECK(opd_exponential_(opd_ones(OPD_INTS(2), OPD_INT32), 1) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Exponential distribution is a continuous probability distribution.");
}
TEST(geometric_numbers) {
    static const double chances[] = {1e-3, 0.2, 0.7, 0.999};
    opd_manual_seed(14);
    for (int i = 0; i < 4; i++) {
        OPD_SCOPED;
        const double p = chances[i];
        char what[40];
        opd_tensor *samples = opd_geometric(opd_zeros(OPD_INTS(COUNT), OPD_INT64), p);
        (void)snprintf(what, sizeof what, "geometric %g", p);
        CHECK_INT(opd_dtype(samples), OPD_INT64);
        moments(what, samples, 1 / p, (1 - p) / (p * p), 8 + p * p / (1 - p));
        for (int k = 0; k < 4; k++) { at_most(what, samples, k, -expm1(k * log1p(-p))); }
    }
    CHECK(opd_geometric(opd_ones(OPD_INTS(2), OPD_FLOAT32), 1) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "geometric_ expects p to be in (0, 1), but got p=1");
    CHECK(opd_geometric(opd_ones(OPD_INTS(2), OPD_BOOL), 0.5) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"geometric_cpu\" not implemented for 'bool'");
}
TEST(gamma_numbers) {
    static const double shapes[] = {0.01, 0.3, 0.999, 1, 2.5, 40, 1e4};
    opd_manual_seed(15);
    for (int i = 0; i < 7; i++) {
        OPD_SCOPED;
        char what[40];
        opd_tensor *shape = filled(shapes[i], OPD_FLOAT64);
        (void)snprintf(what, sizeof what, "gamma %g", shapes[i]);
        uniform(what, opd_igamma(shape, opd_standard_gamma(shape)));
    }
    CHECK(isnan(opd_item_f64(opd_standard_gamma(opd_full(OPD_INTS(1), OPD_V(-2), OPD_FLOAT32)))));
    CHECK_NEAR(opd_item_f64(opd_standard_gamma(opd_zeros(OPD_INTS(1), OPD_FLOAT32))), 1.17549435e-38, 1e-44);
    CHECK(opd_standard_gamma(opd_ones(OPD_INTS(1), OPD_FLOAT16)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "\"gamma_cpu\" not implemented for 'float16'");
}
/* The mean's derivative by the shape is 1; that of the mean logarithm is trigamma. */
TEST(gradients_of_gamma_numbers) {
    opd_tensor *shape = opd_full(opd_ints_of(NULL, 0), OPD_V(1.7), OPD_FLOAT64), *x;
    opd_manual_seed(16);
    opd_tensor_set_requires_grad(shape, true);
    x = opd_standard_gamma(opd_expand(shape, OPD_INTS(COUNT)));
    opd_backward(opd_add(opd_mean(x), opd_mul_Scalar(opd_mean(opd_log(x)), OPD_V(2))));
    CHECK_OK();
    CHECK_NEAR(opd_item_f64(opd_tensor_grad(shape)), 1 + 2 * opd_item_f64(opd_polygamma(1, shape)), 0.02);
    CHECK(opd_binomial(opd_mul_Scalar(shape, OPD_V(3)), opd_detach(shape)) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "The function 'binomial' is not differentiable with respect to argument 'count'");
}
TEST(dirichlet_numbers) {
    static const double shapes[] = {0.5, 2, 7.5};
    opd_tensor *parameters = opd_tensor_from(shapes, OPD_INTS(3), OPD_FLOAT64), *x;
    opd_manual_seed(17);
    x = opd_sample_dirichlet(opd_expand(parameters, OPD_INTS(COUNT, 3)));
    for (int k = 0; k < 3; k++) {
        const double mean = shapes[k] / 10, variance = mean * (1 - mean) / 11;
        moments("dirichlet", opd_select(x, 1, k), mean, variance, 8);
    }
    CHECK(opd_item_f64(opd_amax(opd_abs(opd_sub_Scalar(opd_sum_dim(x, OPD_INTS(1), false), OPD_V(1))),
                                OPD_INTS(0), false)) < 1e-14);
    x = opd_sample_dirichlet(opd_full(OPD_INTS(COUNT, 2), OPD_V(1e-4), OPD_FLOAT32));       /* nearly all at an end */
    CHECK(!isnan(opd_item_f64(opd_sum(x))));
    at_most("dirichlet of small shapes", opd_select(x, 1, 0), 0.5, 0.5);
    for (int i = 0; i < 2; i++) {                      /* of shapes that are all 0, or nearly, each has its part */
        x = opd_sample_dirichlet(opd_full(OPD_INTS(4, 2), OPD_V(i * 1e-310), OPD_FLOAT64));
        CHECK_NEAR(opd_item_f64(opd_sum(x)), 4, 1e-12);
    }
    CHECK(isnan(opd_item_f64(opd_sum(opd_sample_dirichlet(opd_full(OPD_INTS(2), OPD_V(NAN), OPD_FLOAT64))))));
    x = opd_sample_dirichlet(opd_ones(opd_ints_of(NULL, 0), OPD_FLOAT32));
    CHECK_NEAR(opd_item_f64(x), 0.999999940395355, 1e-12);
}
/* mpmath's -(dI_x(a, b)/da) / (dI_x/dx) / (1 - x). */
TEST(gradients_of_beta_numbers) {
    static const double known[][4] = {
        {0.25, 0.5, 1.25, 1.027955188153808},
        {0.75, 0.5, 1.25, 1.9795293369698},
        {0.015625, 2.0, 40.0, 0.01435593140557613},
        {0.5, 100.0, 200.0, 0.005016699951906953},
        {0.53125, 1000.0, 2000.0, 0.0005154823869397508},
        {0.96875, 30.0, 31.0, 0.03280698825839964},
        {1e-05, 0.125, 8.0, 0.0007287594729436948}
    };
    for (int i = 0; i < (int)(sizeof known / sizeof *known); i++) {
        opd_tensor *args[3];
        for (int k = 0; k < 3; k++) { args[k] = opd_full(OPD_INTS(1), OPD_V(known[i][k]), OPD_FLOAT64); }
        CHECK_NEAR(opd_item_f64(opd_dirichlet_grad(args[0], args[1], args[2])), known[i][3], 1e-10 * known[i][3]);
    }
}
TEST(dtypes_of_samples_are_their_own) {
    opd_tensor *ones = opd_ones(OPD_INTS(3), OPD_FLOAT32), *out = opd_ones(OPD_INTS(3), OPD_FLOAT64);
    for (int i = 0; i < 6; i++) {
        if (i == 0) { CHECK(CALL("aten::poisson.out", ones, OPD_NONE, out) == NULL); }
        else if (i == 1) { CHECK(CALL("aten::geometric.out", ones, 0.5, OPD_NONE, out) == NULL); }
        else if (i == 2) { CHECK(CALL("aten::_standard_gamma.out", ones, OPD_NONE, out) == NULL); }
        else if (i == 3) { CHECK(CALL("aten::exponential.out", ones, 1.0, OPD_NONE, out) == NULL); }
        else if (i == 4) { CHECK(CALL("aten::_sample_dirichlet.out", ones, OPD_NONE, out) == NULL); }
        else { CHECK(CALL("aten::_standard_gamma_grad.out", ones, ones, out) == NULL); }
        CHECK_ERROR(OPD_ERROR_DTYPE, "Expected out tensor to have dtype");
    }
    CHECK(opd_item_f64(opd_sum(out)) == 3);
    CHECK(opd_standard_gamma_grad(ones, out) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Found dtype float64 but expected float32");
    CHECK(opd_standard_gamma_grad(opd_to_dtype(ones, OPD_INT64), ones) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "Found dtype float32 but expected int64");
    CHECK(!signbit(opd_item_f64(opd_poisson(opd_full(OPD_INTS(1), OPD_V(-0.0), OPD_FLOAT32)))));
}
/* An element does not depend on the number of threads, or on other elements that are drawn. */
TEST(elements_have_streams_of_their_own) {
    opd_tensor *few, *many;
    opd_manual_seed(18);
    few = opd_poisson(opd_full(OPD_INTS(100), OPD_V(20), OPD_FLOAT32));
    opd_manual_seed(18);
    many = opd_poisson(opd_full(OPD_INTS(20000), OPD_V(20), OPD_FLOAT32));
    CHECK(opd_item_f64(opd_amax(opd_abs(opd_sub(opd_narrow(many, 0, 0, 100), few)), OPD_INTS(0), false)) == 0);
}
CHECK_MAIN()
