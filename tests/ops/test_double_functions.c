/* Functions of float64 beside long double: errors in units in the last place, infinities, NaN and signs of zeros. */
#include "../check.h"
#include <float.h>

static long double of_silu(long double x, long double y) { return y == 0 ? x / (1 + expl(-x)) : 0; }
static long double of_gelu(long double x, long double y) { return y == 0 ? x * erfcl(-x * 0.70710678118654752440L) / 2 : 0; }
static long double of_softplus(long double x, long double y) { return y != 0 ? 0 : x > 20 ? x : log1pl(expl(x)); }
static long double of_elu(long double x, long double y) { return y != 0 ? 0 : x <= 0 ? expm1l(x) : x; }
static long double of_mish(long double x, long double y) { return y == 0 ? x * tanhl(log1pl(expl(x))) : 0; }
static long double of_logaddexp(long double x, long double y) {
    if (x == y && isinf(x)) { return x; }
    return (x > y || isnan(x) ? x : y) + log1pl(expl(-fabsl(x - y)));
}
static long double of_logaddexp2(long double x, long double y) {
    if (x == y && isinf(x)) { return x; }
    return (x > y || isnan(x) ? x : y) + log1pl(exp2l(-fabsl(x - y))) * 1.44269504088896340735992468100189214L;
}
static long double of_hypot(long double x, long double y) { return hypotl(x, y); }
#define OF_ONE(name) static long double of_##name(long double x, long double y) { return y == 0 ? name##l(x) : 0; }
OF_ONE(exp2) OF_ONE(expm1) OF_ONE(log2) OF_ONE(log10) OF_ONE(log1p) OF_ONE(tan) OF_ONE(asin) OF_ONE(acos) OF_ONE(atan)
OF_ONE(sinh) OF_ONE(cosh) OF_ONE(asinh) OF_ONE(acosh) OF_ONE(atanh)

/* A function, and its arguments: numbers from low to high or, if `small` is true, numbers 2^low to 2^high of both
   signs.  The error is at most `bound` units in the last place. */
typedef struct function_case {
    const char *name;
    long double (*of)(long double x, long double y);
    double low, high, bound;
    bool small;
} function_case;
static const function_case cases[] = {
    {"exp2", of_exp2, -1000, 1000, 0.8, false}, {"exp2", of_exp2, -60, 9, 0.8, true},
    {"expm1", of_expm1, -50, 700, 0.9, false}, {"expm1", of_expm1, -1000, 3, 0.9, true},
    {"log2", of_log2, 0, 2, 0.7, false}, {"log2", of_log2, 0, 1e300, 0.7, false},
    {"log10", of_log10, 0, 2, 0.7, false}, {"log10", of_log10, 0, 1e300, 0.7, false},
    {"log1p", of_log1p, -1, 3, 0.7, false}, {"log1p", of_log1p, -1000, -1, 0.7, true}, {"log1p", of_log1p, 0, 1e300, 0.7, false},
    {"tan", of_tan, -30, 30, 3.5, false}, {"tan", of_tan, -1000, 1, 3.5, true},
    {"asin", of_asin, -1, 1, 3, false}, {"asin", of_asin, -1000, -1, 3, true}, {"acos", of_acos, -1, 1, 3, false},
    {"atan", of_atan, -30, 30, 2, false}, {"atan", of_atan, -900, 900, 2, true},
    {"sinh", of_sinh, -3, 3, 2.5, false}, {"sinh", of_sinh, -710, 710, 2.5, false}, {"sinh", of_sinh, -1000, 1, 2.5, true},
    {"cosh", of_cosh, -3, 3, 2.5, false}, {"cosh", of_cosh, -710, 710, 2.5, false},
    {"asinh", of_asinh, -30, 30, 2, false}, {"asinh", of_asinh, -1000, 1000, 2, true},
    {"acosh", of_acosh, 1, 3, 2, false}, {"acosh", of_acosh, 1, 1e300, 2, false},
    {"atanh", of_atanh, -1, 1, 2, false}, {"atanh", of_atanh, -1000, -1, 2, true},
    {"silu", of_silu, -30, 30, 4, false}, {"gelu", of_gelu, 0, 9, 24, false}, {"softplus", of_softplus, -30, 30, 3, false},
    {"elu", of_elu, -50, 3, 1, false}, {"elu", of_elu, -1000, 1, 1, true}, {"mish", of_mish, -30, 45, 8, false},
    {"hypot", of_hypot, -1, 1, 2, false}, {"hypot", of_hypot, -400, 400, 2, true},
    {"logaddexp", of_logaddexp, 0, 20, 2, false}, {"logaddexp2", of_logaddexp2, 0, 20, 2, false}};
static const double ends[] = {0.0, -0.0, HUGE_VAL, -HUGE_VAL, (double)NAN, 1e-310, -1e-310, 1.7e308, -1.7e308, -1.0, 1.0, 1.5, -2.0};
enum { COUNT = 3001, ENDS = (int)(sizeof ends / sizeof ends[0]) };

static double between(double low, double high, bool small) {
    const double unit = opd_item_f64(opd_rand(OPD_INTS(1), OPD_FLOAT64)), number = low + (high - low) * unit;
    return small ? ldexp(1 + unit, (int)number) : number;
}
static void run_case(void *user) {
    const function_case *const c = (const function_case *)user;
    const bool sum = strncmp(c->name, "logaddexp", 9) == 0, two = sum || strncmp(c->name, "hypot", 5) == 0;
    /* OPD_CPU_LEVEL=0 calls the C library; long double may have no more digits than double */
    const char *const level = getenv("OPD_CPU_LEVEL");
    const double most = c->bound + (LDBL_MANT_DIG > 53 && !(level && *level == '0') ? 0 : 2);
    char name[64];
    double worst = 0;
    int wrong = 0;
    OPD_SCOPED;
    opd_manual_seed(5);
    opd_tensor *const x = opd_zeros(OPD_INTS(COUNT), OPD_FLOAT64), *const y = opd_zeros_like(x);
    double *const xs = opd_data_f64(x), *const ys = opd_data_f64(y);
    for (int i = 0; i < COUNT; i++) {
        OPD_SCOPED;
        xs[i] = i < ENDS * ENDS ? ends[i % ENDS] : between(c->low, c->high, c->small) * (c->small && i % 2 ? -1 : 1);
        ys[i] = !two ? 0 : i < ENDS * ENDS ? ends[i / ENDS] : between(c->low, c->high, c->small);
    }
    (void)snprintf(name, sizeof name, "aten::%s", c->name);
    opd_tensor *const out = two ? OPD_CALL(opd_find(name), x, y) : OPD_CALL(opd_find(name), x);
    const double *const result = out ? opd_data_f64(out) : NULL;
    CHECK_OR_RETURN(result != NULL);
    for (int i = 0; i < COUNT; i++) {
        const long double want = c->of((long double)xs[i], (long double)ys[i]);
        const double near = (double)want;
        int exponent;
        (void)frexp(near, &exponent);
        if (sum && exponent < 1) { exponent = 1; }          /* near 0, digits are lost */
        const double error = (double)fabsl((long double)result[i] - want) / ldexp(1, exponent < -1021 ? -1074 : exponent - 53);
        if (isnan(near) || isnan(result[i])) { wrong += !isnan(near) || !isnan(result[i]); }
        else if (near == 0 && !two) { wrong += result[i] != 0 || (signbit(result[i]) != 0) != (signbit(near) != 0); }
        else if (near == 0 || isinf(near)) { wrong += result[i] != near; }
        else if (!(error <= worst)) { worst = error == error ? error : HUGE_VAL; }
        if (wrong == 1) {
            printf("%s(%g, %g) is %g, not %g\n", c->name, xs[i], ys[i], result[i], near);
            wrong++;
        }
    }
    if (getenv("OPD_TEST_VERBOSE")) { printf("    %s of float64: %.3f ulp\n", c->name, worst); }
    if (!(worst <= most)) { printf("%s: %g ulp\n", c->name, worst); }
    CHECK(worst <= most && wrong == 0);
    CHECK_OK();
}
/* A number has the same result wherever it stands, and whatever stands beside it. */
static opd_tensor *(*const of_one[])(opd_tensor *) = {
    opd_exp, opd_exp2, opd_expm1, opd_log, opd_log2, opd_log10, opd_log1p, opd_sin, opd_cos, opd_tan, opd_asin, opd_acos,
    opd_atan, opd_sinh, opd_cosh, opd_tanh, opd_asinh, opd_acosh, opd_atanh, opd_erf, opd_erfc, opd_sigmoid, opd_silu,
    opd_gelu, opd_softplus, opd_elu, opd_mish, opd_sqrt, opd_sinc};
TEST(special_numbers_at_all_places) {
    enum { PLACES = 700 };
    static const int at[] = {0, 5, 15, 16, 63, 64, 65, 127, 128, 255, 256, 257, 300, 511, 512, 640, PLACES - 1};
    for (size_t f = 0; f < sizeof of_one / sizeof of_one[0]; f++) {
        for (int e = 0; e < 2 * ENDS; e++) {
            OPD_SCOPED;
            opd_tensor *const x = opd_full(OPD_INTS(PLACES), opd_value_double(e < ENDS ? 0.25 : 1.5), OPD_FLOAT64);
            opd_tensor *const alone = of_one[f](opd_full(OPD_INTS(1), opd_value_double(ends[e % ENDS]), OPD_FLOAT64));
            CHECK_OR_RETURN(x && alone);
            for (size_t k = 0; k < sizeof at / sizeof at[0]; k++) { opd_data_f64(x)[at[k]] = ends[e % ENDS]; }
            const opd_tensor *const all = of_one[f](x);
            CHECK_OR_RETURN(all != NULL);
            const double want = opd_data_f64(alone)[0];
            for (size_t k = 0; k < sizeof at / sizeof at[0]; k++) {
                const double have = opd_data_f64(all)[at[k]];
                const bool same = isnan(want) ? isnan(have)
                    : (have == want || fabs(have - want) <= 1e-15 * fabs(want)) && !signbit(have) == !signbit(want);
                if (!same) { printf("function %d of %g at %d is %g, not %g\n", (int)f, ends[e % ENDS], at[k], have, want); }
                CHECK(same);
            }
        }
    }
}
static void add_functions(void) {
    static char names[sizeof cases / sizeof cases[0]][40];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        (void)snprintf(names[i], sizeof names[i], "%s_%d", cases[i].name, (int)i);
        check_add_with(names[i], run_case, (void *)(uintptr_t)&cases[i]);
    }
}
CHECK_MAIN_ADD(add_functions)
