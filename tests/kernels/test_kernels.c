/* Kernels on raw pointers: threads, half precision, vector math, matrix product, convolution, random numbers.
     cc -O2 test_kernels.c -lm -lpthread && ./a.out           run.sh links the other tests with this implementation */
#define OPDISPATCH_IMPLEMENTATION
#include "../inside.h"
#include "../check.h"
#if defined(OPDI_APART)                   /* with the separate files of src/: see run.sh --rooms */
extern int opdi_winograd_known;
#endif

static float kn_random(void) {
    static uint32_t s = 12345;
    s = s * 1664525u + 1013904223u;
    return (float)(s >> 8) / 16777216.0f - 0.5f;
}

static int32_t kn_to_i32(double x) { return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN; }
static double kn_sigmoid(double x) { return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }

static double kn_rsqrt(double x) { return 1 / sqrt(x); }

/* Largest error in units in the last place over every `step`-th float; counts wrong inf, nan and zero in *bad. */
static double kn_ulp(void (*f)(int64_t, float *, const float *), double (*ref)(double), uint64_t step, int *bad) {
    static float a[4096], o[4096];
    double worst = 0;
    *bad = 0;
    for (uint64_t u = 0; u < ((uint64_t)1 << 32);) {
        int n = 0;
        for (; n < 4096 && u < ((uint64_t)1 << 32); n++, u += step) a[n] = opdi_float((uint32_t)u);
        f(n, o, a);
        for (int i = 0; i < n; i++) {
            double e = ref((double)a[i]);
            float want = (float)e;
            if (e != e) { *bad += o[i] == o[i]; continue; }
            if (e > FLT_MAX || e < -FLT_MAX) {
                if (o[i] != want && !(fabsf(o[i]) == FLT_MAX && fabs(e) < 3.40282357e38)) *bad += 1;
                continue;
            }
            if (want == 0) {
                if (!(fabsf(o[i]) < 2e-45f) || (e == 0 && opdi_bits(o[i]) != opdi_bits(want))) *bad += 1;
                continue;
            }
            int exponent;
            (void)frexp((double)want, &exponent);
            double d = fabs((double)o[i] - e) / ldexp(1, exponent < -125 ? -149 : exponent - 24);
            if (!(d <= worst)) worst = d == d ? d : HUGE_VAL;
        }
    }
    return worst;
}

/* The loops of asin and acos as functions of arrays. */
static void kn_asin(int64_t count, float *out, const float *x) {
    void *data[2] = {out, (void *)(uintptr_t)x};
    opdi_f32_vasin(data, count, &opdi_no_params);
}
static void kn_acos(int64_t count, float *out, const float *x) {
    void *data[2] = {out, (void *)(uintptr_t)x};
    opdi_f32_vacos(data, count, &opdi_no_params);
}
/* Every 10,007th float at the level of this machine (OPD_CPU_LEVEL lowers it); OPD_TEST_ALL_FLOATS: every one. */
TEST(kernels_vector_math) {
    static const struct {
        const char *name;
        void (*f)(int64_t, float *, const float *);
        double (*ref)(double), bound;
    } t[] = {
        {"exp", opdi_vexp, exp, 1.1}, {"log", opdi_vlog, log, 1.1}, {"log1p", opdi_vlog1p, log1p, 1.6},
        {"expm1", opdi_vexpm1, expm1, 1.6}, {"tanh", opdi_vtanh, tanh, 2.6}, {"erf", opdi_verf, erf, 1.3},
        {"erfc", opdi_verfc, erfc, 4.5},
        {"sin", opdi_vsin, sin, 1.8}, {"cos", opdi_vcos, cos, 1.8}, {"sigmoid", opdi_vsigmoid, kn_sigmoid, 2.5},
        {"tan", opdi_vtan, tan, 2.0}, {"atan", opdi_vatan, atan, 1.9}, {"sqrt", opdi_vsqrt, sqrt, 0.6},
        {"rsqrt", opdi_vrsqrt, kn_rsqrt, 1.6}, {"exp2", opdi_vexp2, exp2, 1.2}, {"log2", opdi_vlog2, log2, 1.9},
        {"log10", opdi_vlog10, log10, 2.0}, {"asin", kn_asin, asin, 2.4}, {"acos", kn_acos, acos, 1.3}};
    uint64_t step = getenv("OPD_TEST_ALL_FLOATS") ? 1 : 10007;
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        int bad;
        double e = kn_ulp(t[i].f, t[i].ref, step, &bad);
        if (getenv("OPD_TEST_VERBOSE"))
            printf("    %-8s %.3f ulp, %d bad, level %d\n", t[i].name, e, bad, opdi_cpu_level());
        CHECK(e <= t[i].bound);
        CHECK_INT(bad, 0);
    }
}

/* The floats at which AVX2 and AVX-512 have the largest errors of all floats. */
TEST(kernels_vector_math_at_its_worst) {
    static const struct {
        const char *name;
        void (*f)(int64_t, float *, const float *);
        double (*ref)(double);
        uint32_t at;
        double bound;
    } t[] = {
        {"exp", opdi_vexp, exp, 0xc0bb638du, 1.1}, {"log", opdi_vlog, log, 0x3fb42c5du, 1.1}, {"log", opdi_vlog, log,
        0x3f74779du, 1.1}, {"log", opdi_vlog, log, 0x3f883333u, 1.1}, {"tanh",
        opdi_vtanh, tanh, 0x3c7f52fbu, 2.6}, {"erf", opdi_verf, erf, 0x3f720f3bu, 1.3}, {"erfc", opdi_verfc,
        erfc, 0x40f760d9u, 4.5}, {"sigmoid", opdi_vsigmoid, kn_sigmoid, 0xc085088du, 2.5}, {"log2",
        opdi_vlog2, log2, 0x3fb33b97u, 1.9}, {"log10", opdi_vlog10, log10, 0x3faa1152u, 2.0}, {"atan",
        opdi_vatan, atan, 0x3f8202d8u, 1.9}};
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        const float x = opdi_float(t[i].at);
        float y;
        int exponent;
        t[i].f(1, &y, &x);
        const double e = t[i].ref((double)x);
        (void)frexp((double)(float)e, &exponent);
        const double error = fabs((double)y - e) / ldexp(1, exponent - 24);
        if (!(error <= t[i].bound)) { printf("    %s(%g): %.3f ulp\n", t[i].name, (double)x, error); }
        CHECK(error <= t[i].bound);
    }
}

/* Powers of two and of ten have exact logarithms, and whole numbers have exact powers of two. */
TEST(kernels_logarithms_of_powers) {
    float x[278], y[278];
    for (int i = 0; i < 278; i++) { x[i] = ldexpf(1, i - 149); }
    opdi_vlog2(277, y, x);
    for (int i = 0; i < 277; i++) { CHECK(y[i] == (float)(i - 149)); }
    for (int i = 0; i < 77; i++) { x[i] = (float)pow(10, i - 38); }
    opdi_vlog10(77, y, x);
    for (int i = 0; i < 77; i++) { CHECK(y[i] == (float)log10((double)x[i])); }
    for (int i = 0; i < 278; i++) { x[i] = (float)(i - 149); }
    opdi_vexp2(277, y, x);
    for (int i = 0; i < 277; i++) { CHECK(y[i] == ldexpf(1, i - 149)); }
}
/* Formulas of two floats that run by blocks or by vector instructions, compared with the C library, for pairs of special
   numbers and for random pairs. */
static double kn_logaddexp(double x, double y) {
    const double most = x > y || x != x ? x : y;
    return x == y && isinf(x) ? x : most + log1p(exp(-fabs(x - y)));
}
static double kn_fmax(double x, double y) { return x >= y || y != y ? x : y; }
static double kn_div_floor(double x, double y) {
    const float a = (float)x, b = (float)y;
    float out;
    void *data[3] = {&out, (void *)(uintptr_t)&a, (void *)(uintptr_t)&b};
    opdi_f32_div_floor(data, 1, &opdi_no_params);
    return (double)out;
}
TEST(kernels_formulas_of_two_floats) {
    static const float special[] = {0.0f, -0.0f, 1.0f, -1.0f, 3.0f, -7.0f, 0.1f, -0.3f, 1e-45f, -1e-40f, 1.5e-38f, 1e20f, -2e38f, FLT_MAX,
        HUGE_VALF, -HUGE_VALF, NAN, 1e-20f, 5e6f, -1e9f, 2.0f, 88.0f, -104.0f};
    static const struct {
        const char *name;
        void (*f)(void *const *, int64_t, const opdi_params *);
        double (*ref)(double, double), bound;
    } t[] = {{"atan2", opdi_f32_vatan2, atan2, 3.0}, {"hypot", opdi_f32_vhypot, hypot, 2.0},
             {"logaddexp", opdi_f32_vlogaddexp, kn_logaddexp, 3.0}, {"copysign", opdi_f32_copysign, copysign, 0},
             {"fmax", opdi_f32_fmax, kn_fmax, 0}, {"floor_divide", opdi_f32_vdiv_floor, kn_div_floor, 0}};
    enum { SPECIAL = sizeof special / sizeof *special, COUNT = SPECIAL * SPECIAL + 4000 };
    static float x[COUNT], y[COUNT], out[COUNT];
    for (int i = 0; i < COUNT; i++) {
        const float scale = i % 3 ? 4.0f : 3e5f;
        x[i] = i < SPECIAL * SPECIAL ? special[i / SPECIAL] : kn_random() * scale;
        y[i] = i < SPECIAL * SPECIAL ? special[i % SPECIAL] : kn_random() * (i % 5 ? scale : 0.01f);
    }
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        void *data[3] = {out, x, y};
        double worst = 0;
        t[k].f(data, COUNT, &opdi_no_params);
        for (int i = 0; i < COUNT; i++) {
            const double e = t[k].ref((double)x[i], (double)y[i]);
            const float want = (float)e;
            if (e != e || want == 0 || isinf(want)) {
                const bool same = e != e ? out[i] != out[i] : opdi_bits(out[i]) == opdi_bits(want);
                if (!same && !(fabsf(out[i]) == FLT_MAX && fabs(e) < 3.5e38)) { printf("    %s(%g, %g) = %g, not %g\n", t[k].name, (double)x[i], (double)y[i], (double)out[i], e); }
                CHECK(same || (fabsf(out[i]) == FLT_MAX && fabs(e) < 3.5e38));
                continue;
            }
            int exponent;
            (void)frexp((double)want, &exponent);
            const double size = t[k].ref == kn_logaddexp && fabs(e) < 0.5 ? 0 : exponent;     /* it has a zero */
            const double d = fabs((double)out[i] - e) / ldexp(1, size < -125 ? -149 : (int)size - 24);
            if (!(d <= worst)) { worst = d == d ? d : HUGE_VAL; }
            if (!(d <= t[k].bound + 0.5)) { printf("    %s(%g, %g) = %.9g, not %.9g\n", t[k].name, (double)x[i], (double)y[i], (double)out[i], e); }
        }
        if (getenv("OPD_TEST_VERBOSE")) { printf("    %-12s %.3f ulp\n", t[k].name, worst); }
        CHECK(worst <= t[k].bound + 0.5);
    }
}
/* Activations that run by blocks, compared with their formulas in double. */
TEST(kernels_activations_by_blocks) {
    static const struct {
        const char *name;
        void (*f)(void *const *, int64_t, const opdi_params *), (*ref)(void *const *, int64_t, const opdi_params *);
        int inputs;
    } t[] = {{"elu", opdi_f32_velu, opdi_f64_elu, 1}, {"elu_backward", opdi_f32_velu_backward, opdi_f64_elu_backward, 2},
             {"softplus", opdi_f32_vsoftplus, opdi_f64_softplus, 1},
             {"softplus_backward", opdi_f32_vsoftplus_backward, opdi_f64_softplus_backward, 2},
             {"mish", opdi_f32_vmish, opdi_f64_mish, 1}, {"mish_backward", opdi_f32_vmish_backward, opdi_f64_mish_backward, 2}};
    enum { COUNT = 3001 };
    static float x[COUNT], y[COUNT], out[COUNT];
    static double x64[COUNT], y64[COUNT], out64[COUNT];
    static const float special[] = {0.0f, -0.0f, HUGE_VALF, NAN, 1e-30f, -1e-30f, 20.0f, 20.1f, 44.5f, 89.0f, 1e30f, -88.0f, -103.0f, -1e5f};
    opdi_params params = opdi_no_params;
    opdi_params_set_f64(&params, 0, 1.25);
    opdi_params_set_f64(&params, 1, 15.5);
    opdi_params_set_f64(&params, 2, 0.75);
    for (int i = 0; i < COUNT; i++) {
        x64[i] = x[i] = i < 14 ? special[i] : kn_random() * 40;
        y64[i] = y[i] = i < 14 ? special[i] : kn_random() * 40;
    }
    for (size_t k = 0; k < sizeof t / sizeof *t; k++) {
        void *data[3] = {out, x, y}, *data64[3] = {out64, x64, y64};
        if (t[k].inputs == 2) { for (int i = 0; i < 14; i++) { x64[i] = x[i] = 1.5f; } }
        t[k].ref(data64, COUNT, &params);
        for (int same = 0; same < 2; same++) {    /* the second time, the result overwrites the first input */
            static float kept[COUNT];
            memcpy(kept, x, sizeof x);
            data[0] = same ? x : out;
            t[k].f(data, COUNT, &params);
            const float *const got = same ? x : out;
            for (int i = 0; i < COUNT; i++) {
                const double want = out64[i], most = 4e-6 * fabs(want) + (t[k].inputs == 2 ? 2e-6 : 1e-38);
                const bool fits = want != want ? got[i] != got[i] : isinf((float)want) ? got[i] == (float)want
                    : fabs((double)got[i] - want) <= most;
                if (!fits) { printf("    %s(%g, %g) = %.9g, not %.9g\n", t[k].name, x64[i], y64[i], (double)got[i], want); }
                CHECK(fits);
            }
            memcpy(x, kept, sizeof x);
        }
        if (t[k].inputs == 2) { for (int i = 0; i < 14; i++) { x64[i] = x[i] = special[i]; } }
    }
    float one = 1.0f, low = -103.9f, slope;       /* the slope is negative, although its terms are close to 0 */
    void *const data[3] = {&slope, &one, &low};
    opdi_f32_vmish_backward(data, 1, &params);
    CHECK(slope < 0 && slope > -1.6e-43f);
}
/* Logical and bitwise operators, which run on words of eight bytes, give the same results for each length, in place and
   at addresses that are no multiple of 8.  Bools whose byte is neither 0 nor 1 are true. */
TEST(kernels_bits_by_words) {
    static const int lengths[] = {1, 7, 8, 9, 63, 64, 2047, 2048, 2049, 2055, 70001};
    static opd_tensor *(*const two[])(opd_tensor *, opd_tensor *) = {opd_logical_and, opd_logical_or, opd_logical_xor,
        opd_bitwise_and, opd_bitwise_or, opd_bitwise_xor};
    static opd_tensor *(*const in_place[])(opd_tensor *, opd_tensor *) = {opd_logical_and_, opd_logical_or_, opd_logical_xor_,
        opd_bitwise_and_, opd_bitwise_or_, opd_bitwise_xor_};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        for (int kind = 0; kind < 4; kind++) {    /* bool, uint8, int16, int32 */
            static const opd_scalar_type dtypes[] = {OPD_BOOL, OPD_UINT8, OPD_INT16, OPD_INT32};
            static const unsigned char bytes[] = {0, 1, 2, 255, 1, 0, 128};
            const int64_t size = lengths[l] + 1, count = lengths[l];
            for (int at = 0; at < 2; at++) {      /* from the first element, or from the second */
                OPD_SCOPED;
                opd_tensor *a = opd_empty(opd_ints_of(&size, 1), dtypes[kind]), *b = opd_empty(opd_ints_of(&size, 1), dtypes[kind]);
                unsigned char *const pa = (unsigned char *)opd_data(a), *const pb = (unsigned char *)opd_data(b);
                const int each = (int)opd_dtype_size(dtypes[kind]);
                for (int64_t i = 0; i < size * each; i++) {
                    pa[i] = bytes[i * 5 % 7];
                    pb[i] = bytes[i * 3 / 2 % 7];
                }
                a = opd_narrow(a, 0, at, count);
                b = opd_narrow(b, 0, at, count);
                for (int k = 0; k < 8; k++) {
                    opd_tensor *const got = k == 6 ? opd_logical_not(a) : k == 7 ? opd_bitwise_not(a) : two[k](a, b);
                    opd_tensor *const copy = opd_clone(a), *const same = k < 6 ? in_place[k](copy, b)
                        : k == 6 ? opd_logical_not_(copy) : opd_bitwise_not_(copy);
                    bool right = got && same;
                    for (int64_t i = 0; i < count && right; i++) {
                        const unsigned char *const qa = pa + (i + at) * each, *const qb = pb + (i + at) * each;
                        unsigned char ta = 0, tb = 0;
                        for (int c = 0; c < each; c++) { ta |= qa[c]; tb |= qb[c]; }
                        for (int c = 0; c < each; c++) {
                            const bool logical = k < 3 || k == 6 || kind == 0;
                            const unsigned char va = logical ? ta != 0 : qa[c], vb = logical ? tb != 0 : qb[c];
                            unsigned char want = k % 3 == 0 && k < 6 ? va & vb : k % 3 == 1 && k < 6 ? va | vb
                                : k < 6 ? va ^ vb : (unsigned char)~va;
                            if (logical) { want &= 1; }
                            if (!logical || kind == 0) { right = right && ((unsigned char *)opd_data(got))[i * each + c] == want; }
                            else { right = right && ((unsigned char *)opd_data(got))[i] == want; }
                            if (logical && c) { want = 0; }
                            right = right && ((unsigned char *)opd_data(same))[i * each + c] == want;
                        }
                    }
                    if (!right) { printf("    operator %d, kind %d, %d elements from %d\n", k, kind, lengths[l], at); }
                    CHECK(right);
                }
            }
        }
    }
}
/* Floats become uint8 by way of int64, and int8 and int16 by way of int32. */
TEST(kernels_floats_to_short_integers) {
    static float x[4096];
    static uint8_t u8[4096];
    static int8_t i8[4096];
    static int16_t i16[4096];
    for (uint64_t u = 0; u < ((uint64_t)1 << 32);) {
        int n = 0;
        for (; n < 4096 && u < ((uint64_t)1 << 32); n++, u += 100003) { x[n] = opdi_float((uint32_t)u); }
        opdi_store_of(OPDI_F32, OPD_UINT8)(u8, x, n);
        opdi_store_of(OPDI_F32, OPD_INT8)(i8, x, n);
        opdi_store_of(OPDI_F32, OPD_INT16)(i16, x, n);
        for (int i = 0; i < n; i++) {
            const uint64_t bits = (uint64_t)opdi_to_i64((double)x[i]), low = (uint64_t)kn_to_i32((double)x[i]);
            CHECK_OR_RETURN(u8[i] == (uint8_t)bits && (uint8_t)i8[i] == (uint8_t)bits && (uint16_t)i16[i] == (uint16_t)low);
        }
    }
}

/* The exponential of an element does not depend on its neighbours, which may be too large for the vector code, nor on
   whether the result replaces the argument. */
TEST(kernels_vector_math_beside_large_elements) {
    float x[48], y[48], alone[48];
    double x64[48], y64[48], alone64[48];
    static const double large[] = {88.5, -88.5, 1e30, -1e30, 709.5, -740.0};
    for (int i = 0; i < 48; i++) { x64[i] = x[i] = (float)(i * 3.625 - 80); }
    opdi_vexp(48, alone, x);
    opdi_vexp64(48, alone64, x64);
    for (int i = 0; i < 48; i += 5) {
        x64[i] = large[i % 6];
        x[i] = i == 40 ? NAN : (float)large[i % 6];
    }
    opdi_vexp(48, y, x);
    opdi_vexp64(48, y64, x64);
    for (int i = 0; i < 48; i++) {
        if (i % 5) { CHECK(y[i] == alone[i] && y64[i] == alone64[i]); }
        else if (isnan(x[i])) { CHECK(isnan(y[i])); }
        else { CHECK(y[i] == (float)exp((double)x[i]) || fabs(y[i] / exp((double)x[i]) - 1) < 1e-6); }
        if (i % 5 == 0 && y64[i] < HUGE_VAL && y64[i] > 1e-300) { CHECK(fabs(y64[i] / exp(x64[i]) - 1) < 1e-15); }
    }
    opdi_vexp(48, x, x);
    opdi_vexp64(48, x64, x64);
    CHECK(memcmp(x64, y64, sizeof y64) == 0);
    for (int i = 0; i < 48; i++) { CHECK(x[i] == y[i] || isnan(y[i])); }
}

/* A block with a very large or a very small element is computed by another formula.  The other elements keep their
   bits. */
TEST(kernels_exp_in_blocks) {
    static const double places[] = {86.9, -86.9, 87.1, -87.4, 0, 1e-30, -103.9, -0.0};
    static const double twice_places[] = {707.9, -707.9, 708.1, -708.5, 0, 1e-300, -745.0, -0.0};
    float x[304], y[304], z[304];
    double a[304], b[304], c[304];
    for (int i = 0; i < 304; i++) {
        x[i] = i % 9 == 0 ? (float)places[i / 9 % 2] : (float)sin(i) * 80.0f;
        a[i] = i % 9 == 0 ? twice_places[i / 9 % 2] : sin(i) * 700;
    }
    opdi_vexp(304, y, x);
    opdi_vexp64(304, b, a);
    for (int k = 0; k < 8; k++) {
        const double want = exp((double)(float)places[k]);
        for (int i = 5; i < 304; i += 64) {
            x[i] = (float)places[k];
            a[i] = twice_places[k];
        }
        opdi_vexp(304, z, x);
        opdi_vexp64(304, c, a);
        for (int i = 0; i < 304; i++) {
            CHECK(i % 64 == 5 || (opdi_bits(y[i]) == opdi_bits(z[i]) && memcmp(&b[i], &c[i], sizeof c[i]) == 0));
            CHECK(i % 64 != 5 || fabs((double)z[i] - want) <= 1.2e-7 * want + 1.5e-45);
        }
        memcpy(z, x, sizeof z);
        opdi_vexp(304, z, z);                     /* in place */
        for (int i = 0; i < 304; i++) { CHECK(i % 64 == 5 || opdi_bits(y[i]) == opdi_bits(z[i])); }
    }
}
/* In the mode of same bits, functions have the bits of every level, and not those of faster formulas. */
TEST(kernels_same_bits_of_functions) {
    float x[256], y[256], z[256];
    const bool was = opd_same_bits_set(true);
    for (int i = 0; i < 256; i++) { x[i] = 0.01f + (float)i * (float)i * 0.01f; }
    opdi_vlog(256, y, x);
    opdi_vlog_same(256, z, x);
    CHECK(memcmp(y, z, sizeof y) == 0);
    opdi_vsin(256, y, x);
    opdi_vsin_same(256, z, x);
    CHECK(memcmp(y, z, sizeof y) == 0);
    opdi_vcos(256, y, x);
    opdi_vcos_same(256, z, x);
    CHECK(memcmp(y, z, sizeof y) == 0);
    (void)opd_same_bits_set(was);
}

/* exp and sigmoid in double, compared with the C library (exact within 1 ulp), at a few hundred thousand places and
   at the limits of the range. */
TEST(kernels_vector_math_in_double) {
    static const double ends[] = {0.0, -0.0, 709.782712893384, 709.7827128933841, 710.0, 1e300, -744.0, -745.13, -745.2,
                                  -746.0, -1e300, -708.3964185322641, -708.5, 1e-300, -1e-17, 0.34657359027997264};
    double x[1003], y[1003], z[1003], worst = 0;
    uint64_t state = 77;
    for (int round = 0; round < 300; round++) {
        for (int i = 0; i < 1003; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const double unit = (double)(state >> 11) / 9007199254740992.0 - 0.5;
            x[i] = i < 16 ? ends[i] : unit * (round % 3 == 0 ? 1500 : round % 3 == 1 ? 20 : 0.5);
        }
        opdi_vexp64(1003, y, x);
        opdi_vsigmoid64(1003, z, x);
        for (int i = 0; i < 1003; i++) {
            const double want = exp(x[i]), sigmoid = 1 / (1 + exp(-x[i]));
            const double ulp = nextafter(want, HUGE_VAL) - want;
            if (isinf(want) || want == 0) { CHECK(y[i] == want || (want == 0 && y[i] < 5e-324 * 1.5)); }
            else if (!(fabs(y[i] - want) / ulp <= worst)) { worst = isnan(y[i]) ? HUGE_VAL : fabs(y[i] - want) / ulp; }
            CHECK(fabs(z[i] - sigmoid) <= 4e-16 * sigmoid + 1e-323);
        }
    }
    if (getenv("OPD_TEST_VERBOSE")) { printf("    exp in double: %.2f ulp\n", worst); }
    CHECK(worst <= 1.0);
    x[0] = NAN;
    x[1] = HUGE_VAL;
    x[2] = -HUGE_VAL;
    opdi_vexp64(3, y, x);
    CHECK(isnan(y[0]) && y[1] == HUGE_VAL && y[2] == 0);
}

/* Of the angle as a double has it. */
static long double kn_sinc(long double x) {
    const double angle = (double)x * 3.14159265358979323846;
    return x == 0 ? 1 : sinl((long double)angle) / (long double)angle;
}
/* log1p of numbers between -1 and 1. */
static double kn_within_one(double x) { return x / (1 + fabs(x)); }
static void kn_vlog1p(int64_t count, double *out, const double *a) {
    for (int64_t i = 0; i < count; i++) { out[i] = kn_within_one(a[i]); }
    opdi_vlog1p64(count, out, out);
}
static long double kn_log1p(long double x) { return log1pl((long double)kn_within_one((double)x)); }
static double kn_doubles(void (*f)(int64_t, double *, const double *), long double (*ref)(long double), double size) {
    double x[1003], y[1003], worst = 0;
    uint64_t state = 99;
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 1003; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const double unit = (double)(state >> 11) / 9007199254740992.0 - 0.5;
            x[i] = size > 0 ? unit * (round % 4 == 0 ? size : round % 4 == 1 ? 4 : round % 4 == 2 ? 0.01 : 80)
                : ldexp(1 + fabs(unit), round % 3 == 0 ? (int)(state >> 40) % 2000 - 1040 : (int)(state >> 40) % 5 - 2);
        }
        f(1003, y, x);
        for (int i = 0; i < 1003; i++) {
            const long double want = ref((long double)x[i]);
            int exponent;
            (void)frexp((double)want, &exponent);
            const double error = (double)fabsl((long double)y[i] - want) / ldexp(1, exponent - 53);
            if (!(error <= worst) && want != 0) { worst = error; }
        }
    }
    return worst;
}
/* The other functions of doubles, compared with long double if that has more digits. */
TEST(kernels_functions_of_doubles) {
    static const struct {
        const char *name;
        void (*f)(int64_t, double *, const double *);
        long double (*ref)(long double);
        double size, bound;
    } t[] = {
        {"log", opdi_vlog64, logl, 0, 1.0}, {"sin", opdi_vsin64, sinl, 2e6, 1.5}, {"cos", opdi_vcos64, cosl, 2e6, 1.5},
        {"tanh", opdi_vtanh64, tanhl, 40, 3.0}, {"sqrt", opdi_vsqrt64, sqrtl, 0, 0.6},
        {"erf", opdi_verf64, erfl, 20, 1.6}, {"erfc", opdi_verfc64, erfcl, 50, 1.6},
        {"sinc", opdi_vsinc64, kn_sinc, 2e6, 2.5}, {"tan", opdi_vtan64, tanl, 2e6, 3.5},
        {"exp2", opdi_vexp264, exp2l, 2000, 0.8}, {"expm1", opdi_vexpm164, expm1l, 1400, 0.9},
        {"log2", opdi_vlog264, log2l, 0, 0.7}, {"log10", opdi_vlog1064, log10l, 0, 0.7},
        {"log1p", opdi_vlog1p64, log1pl, 0, 0.7}, {"log1p below 1", kn_vlog1p, kn_log1p, 2000, 0.7}};
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        const double error = kn_doubles(t[i].f, t[i].ref, t[i].size);
        if (getenv("OPD_TEST_VERBOSE")) { printf("    %s in double: %.3f ulp\n", t[i].name, error); }
        CHECK(error <= (opdi_cpu_level() ? t[i].bound : OPDI_MAX(t[i].bound, 2.0)));          /* or the C library's */
    }
    const double ends[] = {0.0, -0.0, HUGE_VAL, -HUGE_VAL, NAN, 4e-324, -1.0, 1.0};
    double y[8];
    opdi_vlog64(8, y, ends);
    CHECK(y[0] == -HUGE_VAL && y[1] == -HUGE_VAL && y[2] == HUGE_VAL && isnan(y[3]) && isnan(y[4]) && isnan(y[6]));
    CHECK(fabs(y[5] - log(4e-324)) < 1e-12 && y[7] == 0);
    opdi_vtanh64(8, y, ends);
    CHECK(y[0] == 0 && signbit(y[1]) && y[2] == 1 && y[3] == -1 && isnan(y[4]) && y[5] == 4e-324);
    opdi_vsin64(8, y, ends);
    CHECK(y[0] == 0 && signbit(y[1]) && isnan(y[2]) && isnan(y[3]) && isnan(y[4]));
    opdi_vcos64(8, y, ends);
    CHECK(y[0] == 1 && y[1] == 1 && isnan(y[2]) && isnan(y[4]));
    opdi_vtan64(8, y, ends);
    CHECK(y[0] == 0 && signbit(y[1]) && isnan(y[2]) && isnan(y[3]) && isnan(y[4]) && y[5] == 4e-324);
    opdi_vexp264(8, y, ends);
    CHECK(y[0] == 1 && y[1] == 1 && y[2] == HUGE_VAL && y[3] == 0 && isnan(y[4]) && y[5] == 1 && y[6] == 0.5 && y[7] == 2);
    opdi_vexpm164(8, y, ends);
    CHECK(y[0] == 0 && signbit(y[1]) && y[2] == HUGE_VAL && y[3] == -1 && isnan(y[4]) && y[5] == 4e-324);
    opdi_vlog1p64(8, y, ends);
    CHECK(y[0] == 0 && signbit(y[1]) && y[2] == HUGE_VAL && isnan(y[3]) && isnan(y[4]) && y[5] == 4e-324);
    CHECK(y[6] == -HUGE_VAL);
    opdi_vlog264(8, y, ends);
    CHECK(y[0] == -HUGE_VAL && y[1] == -HUGE_VAL && y[2] == HUGE_VAL && isnan(y[3]) && isnan(y[4]) && isnan(y[6]));
    CHECK(y[5] == -1074 && y[7] == 0);
    opdi_vlog1064(8, y, ends);
    CHECK(y[0] == -HUGE_VAL && y[1] == -HUGE_VAL && y[2] == HUGE_VAL && isnan(y[3]) && isnan(y[4]) && isnan(y[6]));
    CHECK(fabs(y[5] - log10(4e-324)) < 1e-12 && y[7] == 0);
}
static double (*kn_one)(double);                     /* the function that kn_each computes */
static void kn_each(int64_t count, double *out, const double *a) { for (int64_t i = 0; i < count; i++) { out[i] = kn_one(a[i]); } }
static double kn_log1p_one(double x) { return opdi_log1p_f64(kn_within_one(x)); }
static double kn_acos_one(double x) { return opdi_acos_f64(kn_within_one(x)); }
static long double kn_arc_cosine(long double x) { return acosl((long double)kn_within_one((double)x)); }
/* Functions of one or two numbers in the mode of same bits, which do without the C library. */
TEST(kernels_functions_of_one_number) {
    static const struct { const char *name; double (*f)(double); long double (*ref)(long double); double size, bound; } t[12] = {
        {"exp", opdi_exp_f64, expl, 1400, 1.0}, {"expm1", opdi_expm1_f64, expm1l, 1400, 0.9}, {"log", opdi_log_f64, logl, 0, 0.7},
        {"log1p", kn_log1p_one, kn_log1p, 2000, 0.7}, {"sin", opdi_sin_f64, sinl, 2e6, 0.8}, {"cos", opdi_cos_f64, cosl, 2e6, 0.8},
        {"tan", opdi_tan_f64, tanl, 2e6, 2.5}, {"sinh", opdi_sinh_f64, sinhl, 1400, 1.0}, {"cosh", opdi_cosh_f64, coshl, 1400, 1.0},
        {"tanh", opdi_tanh_f64, tanhl, 60, 2.5}, {"erfc", opdi_erfc_f64, erfcl, 50, 1.6}, {"acos", kn_acos_one, kn_arc_cosine, 4, 1.5}};
    static const double angles[][3] = {
        {1e22, -0.8522008497671888, 0.523214785395139}, {8.98846567431158e307, 0.563127779850884, -0.826369834614148},
        {5.319372648326541e255, 1, -4.687165924254628e-19}, {1048576.5, 0.7425208640927718, 0.669822936593637},
        {1e300, -0.8178819121159085, -0.5753861119575491}, {-123456789, -0.9901147518020355, 0.14025968153390964}}, powers[][3] = {
        {5e-324, 0.3, 1.018908996936868e-97}, {1.0000001, 1e9, 2.6881038582144647e43}, {3, -200.5, 2.1736440600627772e-96},
        {1e-310, -0.9, 1.0000000000000186e279}, {0.9999999999, 5e12, 7.124281489683408e-218}, {7, 363, 5.896421555566455e306}};
    static const double ends[] = {0.0, -0.0, 1, -1, HUGE_VAL, -HUGE_VAL, NAN, 2, -2, 3, 0.5, -0.5, 1e300, 4e-324};
    enum { ENDS = sizeof ends / sizeof ends[0] };
    const bool was = opd_same_bits_set(true);
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        kn_one = t[i].f;
        const double error = kn_doubles(kn_each, t[i].ref, t[i].size);
        if (getenv("OPD_TEST_VERBOSE")) { printf("    %s of one number: %.3f ulp\n", t[i].name, error); }
        CHECK(error <= t[i].bound);
    }
    for (size_t i = 0; i < sizeof angles / sizeof angles[0]; i++) {           /* sin and cos */
        CHECK_NEAR(opdi_sin_f64(angles[i][0]), angles[i][1], 1.2e-16 * fabs(angles[i][1]));
        CHECK_NEAR(opdi_cos_f64(angles[i][0]), angles[i][2], 1.2e-16 * fabs(angles[i][2]));
    }
    for (size_t i = 0; i < sizeof powers / sizeof powers[0]; i++) {
        CHECK_NEAR(opdi_pow_f64(powers[i][0], powers[i][1]), powers[i][2], 2.3e-16 * fabs(powers[i][2]));
    }
    double ten = 1;
    for (int i = 0; i < 23; i++, ten *= 10) { CHECK(opdi_pow_f64(10, i) == ten); }
    for (int i = 0; i < ENDS * ENDS; i++) {
        const double x = ends[i / ENDS], y = ends[i % ENDS];
        const double want[3] = {pow(x, y), atan2(x, y), hypot(x, y)}, have[3] = {opdi_pow_f64(x, y), opdi_atan2_f64(x, y), opdi_hypot_f64(x, y)};
        for (int k = 0; k < 3; k++) {
            CHECK(isnan(want[k]) ? isnan(have[k]) : isinf(want[k]) ? have[k] == want[k] : fabs(have[k] - want[k]) <= 2.3e-16 * fabs(want[k]));
            CHECK(isnan(want[k]) || !signbit(have[k]) == !signbit(want[k]));
        }
    }
    uint64_t hash = 14695981039346656037u, state = 5;                         /* of the bits of many results */
    for (int i = 0; i < 20000; i++) {
        double x[2], y[5];
        for (int k = 0; k < 2; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            x[k] = ldexp((double)(int64_t)state, (int)(state >> 20) % (i % 4 ? 8 : 900) - 63);
        }
        y[0] = opdi_pow_f64(x[0], x[1]); y[1] = opdi_atan2_f64(x[0], x[1]); y[2] = opdi_hypot_f64(x[0], x[1]);
        y[3] = opdi_acos_f64(x[0]); y[4] = t[i % 12].f(x[1]);
        for (int k = 0; k < 5; k++) {
            uint64_t bits = 0;
            if (y[k] == y[k]) { memcpy(&bits, &y[k], sizeof bits); }
            hash = (hash ^ bits) * 1099511628211u;
            hash ^= hash >> 29;
        }
    }
    if (getenv("OPD_TEST_VERBOSE")) { printf("    hash: %016llx\n", (unsigned long long)hash); }
    CHECK(hash == 0x040709a9e890dc40u);
    (void)opd_same_bits_set(was);
}
/* Powers and logarithms whose results are numbers of few digits are exact, also those that are denormal.  Other denormal
   powers of 2 are within 0.8 units in the last place, and e^x does not overflow before its largest number. */
TEST(kernels_exact_powers_of_doubles) {
    double x[2112], y[2112];
    for (int i = 0; i < 2112; i++) { x[i] = i - 1080; }
    opdi_vexp264(2112, y, x);
    for (int i = 0; i < 2112; i++) { CHECK(y[i] == (i < 6 ? 0 : i < 2104 ? ldexp(1, i - 1080) : HUGE_VAL)); }
    opdi_vlog264(2098, x, y + 6);
    for (int i = 0; i < 2098; i++) { CHECK(x[i] == i - 1074); }
    for (int i = 0; i < 23; i++) { x[i] = i ? x[i - 1] * 10 : 1; }
    opdi_vlog1064(23, y, x);
    for (int i = 0; i < 23; i++) { CHECK(y[i] == i); }
    for (int i = 0; i < 2112; i++) { x[i] = -1022.05 - i * 0.0245; }
    opdi_vexp264(2112, y, x);
    for (int i = 0; i < 2112; i++) {
        CHECK(fabsl((long double)ldexp(y[i], 1074) - exp2l((long double)(x[i] + 1074))) <= 0.8L);
    }
    x[0] = 1023.999999999999;
    x[1] = 709.782712893384;
    x[2] = 709.7827128933841;
    opdi_vexp264(1, y, x);
    CHECK(y[0] < HUGE_VAL && y[0] > 1.797e308);
    opdi_vexpm164(2, y, x + 1);
    CHECK(y[0] < HUGE_VAL && y[0] > 1.797e308 && y[1] == HUGE_VAL);
}
/* In the mode of same bits, dot products of several rows add in the order of the lanes of AVX2 on every processor. */
TEST(kernels_dots_have_the_same_bits) {
    enum { DEPTH = 48 };
    float a[2][4][DEPTH], sums[16];
    double wide[2][4][DEPTH], products[16];
    const bool was = opd_same_bits_set(true);
    int64_t high = 0, high64 = 0;
    opdi_dots_fn *const dots = opdi_dots_of(4, &high), *const dots64 = opdi_dots_of(8, &high64);
    (void)opd_same_bits_set(was);
    if (!dots || !dots64) { SKIP("no vector code"); }
    CHECK_OR_RETURN(high >= 1 && high <= 4 && high64 >= 1 && high64 <= 4);
    const void *rows[2][4], *rows64[2][4];
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 4; i++) {
            for (int j = 0; j < DEPTH; j++) { wide[k][i][j] = (double)(a[k][i][j] = kn_random()) + 1e-9 * (double)kn_random(); }
            rows[k][i] = a[k][i];
            rows64[k][i] = wide[k][i];
        }
    }
    dots(DEPTH, rows[0], rows[1], sums);
    dots64(DEPTH, rows64[0], rows64[1], products);
    for (int i = 0; i < 4 * high; i++) {
        float lanes[8] = {0};
        for (int j = 0; j < DEPTH; j++) { lanes[j % 8] = fmaf(a[0][i / 4][j], a[1][i % 4][j], lanes[j % 8]); }
        for (int j = 0; j < 4; j++) { lanes[j] += lanes[j + 4]; }
        CHECK(sums[i] == (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]));
    }
    for (int i = 0; i < 4 * high64; i++) {
        double lanes[4] = {0};
        for (int j = 0; j < DEPTH; j++) { lanes[j % 4] = fma(wide[0][i / 4][j], wide[1][i % 4][j], lanes[j % 4]); }
        CHECK(products[i] == (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]));
    }
}
/* The normal distribution function within 2e-7, and gelu at the limits of its range. */
TEST(kernels_gelu) {
    const float ends[4] = {HUGE_VALF, -HUGE_VALF, NAN, -100.0f};
    float x[1001], y[1001];
    for (int i = 0; i < 1001; i++) { x[i] = (float)(i - 500) / 60; }
    opdi_vphi(1001, y, x);
    for (int i = 0; i < 1001; i++) { CHECK(fabs((double)y[i] - 0.5 * erfc(-(double)x[i] / sqrt(2.0))) <= 2e-7); }
    opdi_vphi(4, y, ends);
    CHECK(y[0] == 1 && y[1] == 0 && isnan(y[2]) && y[3] == 0);
}
/* Powers and remainders of all kinds of numbers, compared with the C library: powers within a bound, remainders
   exactly. */
TEST(kernels_powers_and_remainders) {
    static const double some[] = {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 1e30, -1e30, 1e-40, 1e300,
                                  -1e-310, 4194305.0, -7.25, 16777217.0, 1e16, 0.1, HUGE_VAL, -HUGE_VAL, NAN, 5e-324};
    double worst = 0, worst64 = 0;
    uint64_t state = 5;
    for (int round = 0; round < 400; round++) {
        float x[200], y[200], out[200], mod[200], python[200];
        double x64[200], y64[200], out64[200], mod64[200], python64[200];
        for (int i = 0; i < 200; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            const double unit = (double)(state >> 11) / 9007199254740992.0 - 0.5;
            state = state * 6364136223846793005u + 1442695040888963407u;
            const double other = (double)(state >> 11) / 9007199254740992.0 - 0.5;
            x64[i] = round < 3 ? some[(i + 24 * round) / 24 % 24] : round % 3 ? unit * 8 : exp(unit * 160);
            y64[i] = round < 3 ? some[i % 24] : round % 4 == 0 ? other * 8 : round % 4 == 1 ? floor(other * 20)
                : other * (round % 3 ? 90 : 0.9);
            if (round >= 3 && round % 5 == 0) { x64[i] = floor(y64[i] * floor(unit * 50)); }
            x64[i] = x[i] = (float)x64[i];
            y64[i] = y[i] = (float)y64[i];
        }
        void *f32[3] = {out, x, y}, *f64[3] = {out64, x64, y64};
        opdi_f32_vpow(f32, 200, &opdi_no_params);
        opdi_f64_vpow(f64, 200, &opdi_no_params);
        f32[0] = mod;
        f64[0] = mod64;
        opdi_f32_vfmod(f32, 200, &opdi_no_params);
        opdi_f64_vfmod(f64, 200, &opdi_no_params);
        f32[0] = python;
        f64[0] = python64;
        opdi_f32_vremainder(f32, 200, &opdi_no_params);
        opdi_f64_vremainder(f64, 200, &opdi_no_params);
        for (int i = 0; i < 200; i++) {
            const float m = fmodf(x[i], y[i]), p = m != 0 && (y[i] < 0) != (m < 0) ? m + y[i] : m;
            const double m64 = fmod(x64[i], y64[i]), p64 = m64 != 0 && (y64[i] < 0) != (m64 < 0) ? m64 + y64[i] : m64;
            const double want = pow(x64[i], y64[i]);
            const long double want64 = powl((long double)x64[i], (long double)y64[i]);
            CHECK(isnan(m) ? isnan(mod[i]) : opdi_bits(m) == opdi_bits(mod[i]));
            CHECK(isnan(p) ? isnan(python[i]) : opdi_bits(p) == opdi_bits(python[i]));
            CHECK(isnan(m64) ? isnan(mod64[i]) : memcmp(&m64, mod64 + i, 8) == 0);
            CHECK(isnan(p64) ? isnan(python64[i]) : memcmp(&p64, python64 + i, 8) == 0);
            if (isnan(want)) { CHECK(isnan(out[i]) && isnan(out64[i])); continue; }
            if (fabs(want) < 1e-37 || fabs(want) > 3e38) {
                CHECK(out[i] == (float)want || fabs((double)out[i] - want) <= fabs(want) * 1e-7 + 2e-45);
            } else {
                int exponent;
                (void)frexp(want, &exponent);
                const double error = fabs((double)out[i] - want) / ldexp(1, exponent - 24);
                if (!(error <= worst)) { worst = error == error ? error : HUGE_VAL; }
            }
            if (fabs(want) < 1e-307 || fabs(want) > 1e308) { CHECK(out64[i] == want || fabs(out64[i] - want) <= fabs(want) * 1e-15 + 1e-323); }
            else {
                int exponent;
                (void)frexp(want, &exponent);
                const double error = (double)fabsl((long double)out64[i] - want64) / ldexp(1, exponent - 53);
                if (!(error <= worst64)) { worst64 = error == error ? error : HUGE_VAL; }
            }
        }
    }
    if (getenv("OPD_TEST_VERBOSE")) { printf("    powers: %.3f ulp, of doubles %.3f\n", worst, worst64); }
    CHECK(worst <= 0.6);
    CHECK(worst64 <= 1.5);
}

TEST(kernels_vector_math_edges) {
    const float in[6] = {HUGE_VALF, -HUGE_VALF, NAN, 0.0f, -0.0f, 1e-45f};
    float o[6];
    opdi_vexp(6, o, in);
    CHECK(o[0] == HUGE_VALF && o[1] == 0 && o[2] != o[2] && o[3] == 1 && o[4] == 1 && o[5] == 1);
    opdi_vlog(6, o, in);
    CHECK(o[0] == HUGE_VALF && o[1] != o[1] && o[2] != o[2] && o[3] == -HUGE_VALF && o[4] == -HUGE_VALF);
    opdi_vtanh(6, o, in);
    CHECK(o[0] == 1 && o[1] == -1 && o[2] != o[2] && o[5] == 1e-45f && opdi_bits(o[4]) == 0x80000000u);
    opdi_verf(6, o, in);
    CHECK(o[0] == 1 && o[1] == -1 && o[2] != o[2]);
    opdi_vsin(6, o, in);
    CHECK(o[0] != o[0] && o[2] != o[2] && o[5] == 1e-45f && opdi_bits(o[4]) == 0x80000000u);
    opdi_vcos(6, o, in);
    CHECK(o[0] != o[0] && o[2] != o[2] && o[3] == 1);
    float a[100], b[100];                         /* every length, and in place */
    for (int n = 0; n <= 100; n++) {
        for (int i = 0; i < n; i++) a[i] = b[i] = (float)i * 0.1f;
        opdi_vexp(n, a, a);
        for (int i = 0; i < n; i++) CHECK_NEAR((double)a[i], exp((double)b[i]), 1e-6 * exp((double)b[i]));
    }
}

TEST(kernels_half) {
    int bad = 0;
    for (uint32_t h = 0; h < 65536; h++) {
        float f = opdi_f16_to_f32((uint16_t)h), g = opdi_bf16_to_f32((uint16_t)h);
        if (f != f) bad += (opdi_f32_to_f16(f) & 0x7fffu) <= 0x7c00u;
        else bad += opdi_f32_to_f16(f) != h;
        if (g != g) bad += (opdi_f32_to_bf16(g) & 0x7fffu) <= 0x7f80u;
        else bad += opdi_f32_to_bf16(g) != h;
        uint32_t e = h >> 10 & 31, m = h & 1023;
        double want = e == 0 ? ldexp((double)m, -24) : ldexp(1024.0 + (double)m, (int)e - 25);
        if (e < 31) bad += (double)f != (h & 0x8000u ? -want : want);
    }
    CHECK_INT(bad, 0);
    for (uint32_t h = 0; h < 0x7bff; h++) {       /* halfway goes to even; beside it, to the nearer */
        double mid = ((double)opdi_f16_to_f32((uint16_t)h) + (double)opdi_f16_to_f32((uint16_t)(h + 1))) / 2;
        float f = (float)mid;
        bad += opdi_f32_to_f16(f) != (h & 1 ? h + 1 : h);
        bad += opdi_f32_to_f16(opdi_float(opdi_bits(f) + 1)) != h + 1;
        bad += opdi_f32_to_f16(opdi_float(opdi_bits(f) - 1)) != h;
    }
    CHECK_INT(bad, 0);
    CHECK_INT(opdi_f32_to_f16(65504.0f), 0x7bff);
    CHECK_INT(opdi_f32_to_f16(65519.0f), 0x7bff);
    CHECK_INT(opdi_f32_to_f16(65520.0f), 0x7c00);
    CHECK_INT(opdi_f32_to_f16(-HUGE_VALF), 0xfc00);
    CHECK_INT(opdi_f32_to_bf16(1.00390625f), 0x3f80);
    CHECK_INT(opdi_f32_to_bf16(1.01171875f), 0x3f82);
    CHECK_INT(opdi_f32_to_bf16(FLT_MAX), 0x7f80);
}

typedef struct kn_sum { int64_t n, grain; int *hits; int nested; } kn_sum;
static void kn_mark(void *ctx, int64_t begin, int64_t end) {
    kn_sum *s = (kn_sum *)ctx;
    if (begin % s->grain != 0) OPDI_ADD(&s->nested, 1000);
    for (int64_t i = begin; i < end; i++) OPDI_ADD(&s->hits[i], 1);
}
static void kn_nested(void *ctx, int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i++) opdi_parallel_for(100, 1, kn_mark, ctx);
}

/* Casting a line gives the same as casting each number, also if its length is not a multiple of a vector's. */
TEST(kernels_casts_of_lines) {
    enum { N = 65536 + 13 };
    uint16_t *half = (uint16_t *)malloc(N * 2);
    float *wide = (float *)malloc(N * 4), *got = (float *)malloc(N * 4);
    int64_t *whole = (int64_t *)malloc(N * 8);
    double *twice = (double *)malloc(N * 8);
    int32_t *four = (int32_t *)malloc(N * 4);
    uint8_t *byte = (uint8_t *)malloc(N);
    int bad = 0;
    for (int i = 0; i < N; i++) {
        half[i] = (uint16_t)i;
        whole[i] = (int64_t)((double)kn_random() * 9.2e18) >> (i % 40);
        four[i] = (int32_t)(whole[i] >> 20);
        byte[i] = (uint8_t)(i * 7);
    }
    opdi_load_of(OPDI_F32, OPD_FLOAT16)(wide, half, N);
    for (int i = 0; i < N; i++) {
        const float one = opdi_f16_to_f32(half[i]);
        bad += one != one ? wide[i] == wide[i] : wide[i] != one || signbit(wide[i]) != signbit(one);
        wide[i] = one != one ? one : one * (1.0f + (float)(i % 5 - 2) / 4096.0f) * (i % 3 ? 1.0f : 1e-3f);
    }
    CHECK_INT(bad, 0);
    opdi_store_of(OPDI_F32, OPD_FLOAT16)(half, wide, N);
    for (int i = 0; i < N; i++) {
        const uint16_t one = opdi_f32_to_f16(wide[i]);
        bad += wide[i] != wide[i] ? (half[i] & 0x7fffu) <= 0x7c00u : half[i] != one;
    }
    CHECK_INT(bad, 0);
    opdi_load_of(OPDI_F32, OPD_INT64)(got, whole, N);
    for (int i = 0; i < N; i++) { bad += got[i] != (float)whole[i]; }
    opdi_load_of(OPDI_F32, OPD_INT32)(got, four, N);
    for (int i = 0; i < N; i++) { bad += got[i] != (float)four[i]; }
    opdi_load_of(OPDI_F32, OPD_UINT8)(got, byte, N);
    for (int i = 0; i < N; i++) { bad += got[i] != (float)byte[i]; }
    opdi_load_of(OPDI_F64, OPD_INT64)(twice, whole, N);
    for (int i = 0; i < N; i++) { bad += twice[i] != (double)whole[i]; }
    opdi_load_of(OPDI_F32, OPD_FLOAT64)(got, twice, N);
    for (int i = 0; i < N; i++) { bad += got[i] != (float)twice[i]; }
    opdi_load_of(OPDI_I64, OPD_INT32)(whole, four, N);
    for (int i = 0; i < N; i++) { bad += whole[i] != four[i]; }
    CHECK_INT(bad, 0);
    free(half); free(wide); free(got); free(whole); free(twice); free(four); free(byte);
}

/* Each conversion between a dtype and a type in which loops compute: many elements become what each alone becomes, and
   nothing behind them is written. */
TEST(kernels_casts_of_all_dtypes) {
    enum { N = 71 };
    static const int counts[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 39, 63, 64, 70};
    double numbers[N], computed[2 * N], stored[2 * N], wanted[2 * N + 2], found[2 * N + 2];
    char *const alone = (char *)(void *)wanted;
    int bad = 0, casts = 0;
    for (int i = 0; i < N; i++) {
        numbers[i] = (double)(kn_random() * 300) * (i % 13 == 5 ? 1e30 : i % 11 == 3 ? 1e10 : i % 7 == 2 ? 1e-6 : i % 5 ? 1 : 0);
    }
    for (int dtype = 0; dtype <= 60; dtype++) {
        const size_t size = opd_dtype_size((opd_scalar_type)dtype);
        for (int compute = OPDI_F32; compute <= OPDI_C128; compute++) {
            const opdi_convert load = opdi_load_of(compute, dtype), store = opdi_store_of(compute, dtype);
            const size_t wide = compute == OPDI_F32 ? 4 : compute == OPDI_C128 ? 16 : 8;
            CHECK_INT(load != NULL, store != NULL);
            if (!load) { continue; }
            for (int back = 0; back < 2; back++) {
                const opdi_convert convert = back ? store : load;
                const size_t from = back ? wide : size, to = back ? size : wide;
                const char *source = (const char *)(const void *)(back ? computed : stored);
                casts++;
                opdi_load_of(back ? compute : OPDI_C128, OPD_FLOAT64)(computed, numbers, N);
                if (!back) { opdi_store_of(OPDI_C128, dtype)(stored, computed, N); }
                for (size_t at = 0; at < sizeof counts / sizeof *counts; at++) {
                    memset(found, 0x5a, sizeof found);
                    memset(wanted, 0x5a, sizeof wanted);
                    convert(found, source, counts[at]);
                    for (int i = 0; i < counts[at]; i++) { convert(alone + (size_t)i * to, source + (size_t)i * from, 1); }
                    bad += memcmp(found, wanted, sizeof found) != 0;
                }
            }
        }
    }
    CHECK_INT(bad, 0);
    CHECK(casts >= 2 * 4 * 17);
}

TEST(kernels_parallel_for) {
    static int hits[10000];
    kn_sum s;
    s.nested = 0;
    s.hits = hits;
    for (int threads = 1; threads <= 5; threads++) {
        opd_threads_set(threads);
#if !defined(OPD_NO_THREADS)
        CHECK_INT(opd_threads(), threads);
#endif
        for (int round = 0; round < 50; round++) {
            s.n = (round * 397) % 10000;
            s.grain = 1 + round % 13;
            memset(hits, 0, sizeof hits);
            opdi_parallel_for(s.n, s.grain, kn_mark, &s);
            int64_t total = 0, bad = 0;
            for (int64_t i = 0; i < 10000; i++) { total += hits[i]; bad += hits[i] > 1; }
            CHECK(total == s.n && bad == 0);
        }
        memset(hits, 0, sizeof hits);
        s.grain = 1;
        opdi_parallel_for(20, 1, kn_nested, &s);
        for (int i = 0; i < 100; i++) CHECK_INT(hits[i], 20);
    }
    CHECK_INT(s.nested, 0);
    opd_threads_set(0);
}

#if !defined(OPD_NO_THREADS)
#include <sys/wait.h>
static void *kn_user_thread(void *unused) {
    static int64_t bad;
    (void)unused;
    for (int round = 0; round < 200; round++) {
        int hits[64] = {0};
        kn_sum s;
        s.n = 64;
        s.grain = 1;
        s.hits = hits;
        s.nested = 0;
        opdi_parallel_for(64, 1, kn_mark, &s);
        for (int i = 0; i < 64; i++) if (hits[i] != 1) OPDI_ADD(&bad, 1);
    }
    return OPDI_LOAD(&bad) ? &bad : NULL;
}

TEST(kernels_parallel_for_many_users) {
    pthread_t id[4];
    opd_threads_set(3);
    for (int i = 0; i < 4; i++) CHECK_INT(pthread_create(&id[i], NULL, kn_user_thread, NULL), 0);
    for (int i = 0; i < 4; i++) {
        void *r = NULL;
        pthread_join(id[i], &r);
        CHECK(r == NULL);
    }
    opd_threads_set(0);
}

TEST(kernels_parallel_for_fork) {
    opd_threads_set(3);
    CHECK(kn_user_thread(NULL) == NULL);
#if !defined(OPDI_SANITIZED) && !defined(OPDI_APART)
    int status = 1;
    pid_t child = fork();
    if (child == 0) { CHECK_CHILD_ENDS(kn_user_thread(NULL) == NULL && opdi_the_pool.threads > 0 ? 0 : 1); }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
#endif
    opd_threads_set(0);
}
#endif

/* C = A B + beta C in double, against which all products are checked */
static double kn_gemm_error(int64_t m, int64_t n, int64_t k, int ta, int tb, int tc, float beta, int wide) {
    size_t most = (size_t)OPDI_MAX(OPDI_MAX(m * k, k * n), OPDI_MAX(m * n, 1));
    float *a = (float *)calloc(most, 4), *b = (float *)calloc(most, 4), *c = (float *)calloc(most, 4);
    double *da = (double *)calloc(most, 8), *db = (double *)calloc(most, 8), *dc = (double *)calloc(most, 8), worst = 0;
    float *before = (float *)calloc(most, 4);
    int64_t rsa = ta ? 1 : k, csa = ta ? m : 1, rsb = tb ? 1 : n, csb = tb ? k : 1, rsc = tc ? 1 : n, csc = tc ? m : 1;
    for (size_t i = 0; i < most; i++) {
        da[i] = (double)(a[i] = kn_random());
        db[i] = (double)(b[i] = kn_random());
        dc[i] = (double)(before[i] = c[i] = beta == 0 ? NAN : kn_random());
    }
    if (wide) {
        const opdi_gemm_in left = opdi_gemm_in_of(da, OPD_FLOAT64, rsa, csa), right = opdi_gemm_in_of(db, OPD_FLOAT64, rsb, csb);
        CHECK_INT(opdi_gemm(8, m, n, k, &left, &right, (double)beta, dc, rsc, csc), 0);
    }
    else CHECK_INT(opdi_gemm_f32(m, n, k, a, rsa, csa, b, rsb, csb, beta, c, rsc, csc), 0);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double s = beta == 0 ? 0 : (double)beta * (double)before[i * rsc + j * csc];
            for (int64_t t = 0; t < k; t++) s += da[i * rsa + t * csa] * db[t * rsb + j * csb];
            double e = fabs(s - (wide ? dc[i * rsc + j * csc] : (double)c[i * rsc + j * csc]));
            if (!(e <= worst)) worst = e == e ? e : HUGE_VAL;
        }
    free(a); free(b); free(c); free(da); free(db); free(dc); free(before);
    return worst;
}

TEST(kernels_gemm) {
    static const int64_t dims[][3] = {{1, 1, 1}, {0, 3, 2}, {3, 0, 2}, {3, 4, 0}, {1, 7, 5}, {7, 1, 5}, {2, 3, 4},
        {5, 5, 5}, {8, 32, 16}, {9, 33, 17}, {16, 64, 300}, {31, 65, 129}, {64, 40, 600}, {1, 100, 70}, {100, 1, 70},
        {130, 1, 1}, {1, 2100, 3}, {2100, 1, 67}, {33, 2100, 7}, {2060, 17, 9}, {50, 96, 1}, {3, 64, 64},
        {8, 8, 8}, {7, 16, 5}, {16, 16, 16}, {5, 24, 3}, {64, 8, 8}, {2, 4, 64}, {4, 40, 300}, {9, 70, 261}, {70, 9, 259},
        {2, 1000, 256}, {16, 33, 1031}};
    for (int threads = 1; threads <= 3; threads += 2) {
        opd_threads_set(threads);
        for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
            for (int mode = 0; mode < 8; mode++)
                for (int wide = 0; wide < 2; wide++) {
                    const int64_t *d = dims[i];
                    float beta = mode % 3 == 0 ? 0.0f : mode % 3 == 1 ? 1.0f : 0.5f;
                    double e = kn_gemm_error(d[0], d[1], d[2], mode & 1, mode & 2, mode & 4, beta, wide);
                    if (!(e <= (wide ? 1e-12 : 2e-5)))
                        printf("    case %d mode %d wide %d: %g\n", (int)i, mode, wide, e);
                    CHECK(e <= (wide ? 1e-12 : 2e-5));
                }
    }
    opd_threads_set(0);
}

TEST(kernels_gemm_strides) {
    float x[4] = {1, 2, 3, 4}, one = 2, c[12];
    CHECK_INT(opdi_gemm_f32(3, 4, 4, &one, 0, 0, x, 0, 1, 0, c, 4, 1), 0);        /* stride 0: all equal */
    for (int i = 0; i < 12; i++) CHECK_NEAR((double)c[i], 8.0 * (double)x[i % 4], 0);
    CHECK_INT(opdi_gemm_f32(3, 1, 4, &one, 0, 0, x, 1, 1, 0, c, 4, 1), 0);
    CHECK_NEAR((double)c[0], 20, 0);
    CHECK_NEAR((double)c[8], 20, 0);
    int64_t a[4] = {1, 2, 3, 4}, b[4] = {5, 6, 7, 8}, r[4];
    opdi_gemm_in left = opdi_gemm_in_of(a, OPD_INT64, 2, 1), right = opdi_gemm_in_of(b, OPD_INT64, 2, 1);
    CHECK_INT(opdi_gemm_of(OPD_INT64, 2, 2, 2, &left, &right, 0, r, 2, 1), 0);
    CHECK(r[0] == 19 && r[1] == 22 && r[2] == 43 && r[3] == 50);
}
/* Products of one row or column with a matrix that is one expanded row or column. */
TEST(kernels_gemv_expanded) {
    static const int64_t sizes[] = {1, 3, 4, 17, 67};
    for (int way = 0; way < 100; way++) {
        OPD_SCOPE {
            const int64_t rows = sizes[way % 5], depth = sizes[way / 5 % 5];
            const opd_scalar_type dtype = way < 50 ? OPD_FLOAT32 : OPD_FLOAT64;
            opd_tensor *x = opd_randn(OPD_INTS(depth), dtype), *a = opd_expand(
                opd_randn(way / 25 % 2 ? OPD_INTS(1, depth) : OPD_INTS(rows, 1), dtype), OPD_INTS(rows, depth));
            opd_tensor *const want = opd_sum_dim(opd_mul(opd_to_dtype(a, OPD_FLOAT64), opd_to_dtype(x, OPD_FLOAT64)),
                                                 OPD_INTS(1), false);
            opd_tensor *const got[] = {
                opd_mv(a, x), opd_matmul(x, opd_t(a)), opd_flatten(opd_mm(opd_unsqueeze(x, 0), opd_t(a)), 0, -1),
                opd_flatten(opd_bmm(opd_unsqueeze(a, 0), opd_unsqueeze(opd_unsqueeze(x, 1), 0)), 0, -1)};
            for (int i = 0; i < 4 && opd_ok(); i++) {
                CHECK(opd_allclose_full(opd_to_dtype(got[i], OPD_FLOAT64), want, 1e-4, 1e-4, false));
            }
            CHECK_OK();
        }
    }
}

static double kn_get(const opd_tensor *t, int64_t i) {
    return opd_dtype(t) == OPD_FLOAT64 ? ((const double *)(const void *)t->data)[i] : (double)((const float *)(const void *)t->data)[i];
}
static void kn_set(opd_tensor *t, int64_t i, float v) {
    if (opd_dtype(t) == OPD_FLOAT64) { ((double *)(void *)t->data)[i] = (double)v; } else { ((float *)(void *)t->data)[i] = v; }
}
/* Outer products, which have their own loops, also so large that the stores bypass the caches. */
TEST(kernels_outer) {
    static const int64_t sizes[][4] = {{1, 4200, 1008, 0}, {3, 5, 9, 0}, {2, 3, 17, 1}, {4, 1, 3, 0}, {1, 2100, 2001, 0}};
    int64_t i, j, b;
    size_t k;
    for (k = 0; k < 2 * sizeof sizes / sizeof *sizes; k++) {
        OPD_SCOPE {
            const int64_t *s = sizes[k / 2], n = s[0], rows = s[1], cols = s[2];
            opd_tensor *x = opd_tensor_new(OPD_INTS(n, rows, 1), k % 2 ? OPD_FLOAT64 : OPD_FLOAT32);
            opd_tensor *y = opd_tensor_new(OPD_INTS(n, 1, s[3] ? cols * 2 : cols), opd_dtype(x)), *r;
            bool right = true;
            for (i = 0; i < opd_numel(x); i++) { kn_set(x, i, kn_random()); }
            for (i = 0; i < opd_numel(y); i++) { kn_set(y, i, kn_random()); }
            if (s[3]) { y = opd_slice(y, 2, opd_value_int(0), OPD_NONE, 2); }
            r = opd_bmm(x, y);
            x = opd_contiguous(x); y = opd_contiguous(y);
            for (b = 0; b < n; b++) {
                for (i = 0; i < rows; i++) {
                    for (j = 0; j < cols; j += rows > 1000 ? 7 : 1) {
                        const double want = kn_get(x, b * rows + i) * kn_get(y, b * cols + j);
                        const double got = kn_get(r, (b * rows + i) * cols + j);
                        right = right && got == (k % 2 ? want : (double)(float)want);
                    }
                }
            }
            CHECK(right);
        }
    }
}
TEST(kernels_dots) {
    static const int64_t sizes[] = {0, 1, 3, 16, 17, 40, 100, 512};
    size_t k;
    int64_t i, t;
    for (k = 0; k < 2 * sizeof sizes / sizeof *sizes; k++) {
        OPD_SCOPE {
            const int64_t n = sizes[k / 2];
            opd_tensor *x = opd_tensor_new(OPD_INTS(5, 1, n), k % 2 ? OPD_FLOAT64 : OPD_FLOAT32);
            opd_tensor *y = opd_tensor_new(OPD_INTS(5, n, 1), opd_dtype(x)), *c = opd_tensor_new(OPD_INTS(5, 1, 1), opd_dtype(x)), *r;
            for (i = 0; i < 5 * n; i++) { kn_set(x, i, kn_random()); kn_set(y, i, kn_random()); }
            for (i = 0; i < 5; i++) { kn_set(c, i, kn_random()); }
            r = opd_baddbmm_full(c, x, y, opd_value_double(0.5), opd_value_double(1));
            for (i = 0; i < 5; i++) {
                double want = 0.5 * kn_get(c, i);
                for (t = 0; t < n; t++) { want += kn_get(x, i * n + t) * kn_get(y, i * n + t); }
                CHECK_NEAR(kn_get(r, i), want, k % 2 ? 1e-12 : 1e-4);
            }
        }
    }
}

/* Whole numbers wrap; halves are added up in float.  Matrices begin at an odd address where odd is 1. */
typedef struct kn_matrix { char *data; int64_t rs, cs; int dtype; } kn_matrix;
static uint64_t kn_word(const kn_matrix *m, int64_t i, int64_t j) {
    const size_t size = opd_dtype_size((opd_scalar_type)m->dtype), at = (size_t)(i * m->rs + j * m->cs) * size;
    uint64_t word = 0;
    if (size == 8) { memcpy(&word, m->data + at, 8); }
    else if (size == 4) { uint32_t small_word; memcpy(&small_word, m->data + at, 4); word = small_word; }
    else { uint16_t half; memcpy(&half, m->data + at, 2); word = half; }
    return word;
}
static double kn_half(const kn_matrix *m, int64_t i, int64_t j) {
    const uint16_t half = (uint16_t)kn_word(m, i, j);
    return (double)(m->dtype == OPD_FLOAT16 ? opdi_f16_to_f32(half) : opdi_bf16_to_f32(half));
}
static kn_matrix kn_matrix_of(int dtype, int64_t rows, int64_t columns, bool turned, bool odd) {
    const size_t size = opd_dtype_size((opd_scalar_type)dtype), n = (size_t)(rows * columns) + 1;
    kn_matrix m;
    m.data = (char *)malloc(n * size) + (odd ? size : 0);
    m.rs = turned ? 1 : columns;
    m.cs = turned ? rows : 1;
    m.dtype = dtype;
    for (size_t i = 0; i + 1 < n; i++) {
        const float x = kn_random();
        uint64_t word = (uint64_t)(int64_t)((double)x * 9e18);
        if (dtype == OPD_FLOAT16) { word = opdi_f32_to_f16(x); }
        if (dtype == OPD_BFLOAT16) { word = opdi_f32_to_bf16(x); }
        const uint32_t four = (uint32_t)(word >> 20);
        const uint16_t two = (uint16_t)word;
        memcpy(m.data + i * size, size == 8 ? (const void *)&word : size == 4 ? (const void *)&four : (const void *)&two, size);
    }
    return m;
}
/* brief: int64 that fit into 32 bits, or all but the last do */
static void kn_shorten(kn_matrix *m, int64_t count, int brief) {
    for (int64_t i = 0; brief && m->dtype == OPD_INT64 && i < count; i++) {
        int64_t word;
        memcpy(&word, m->data + i * 8, 8);
        word = i % 5 == 0 ? INT32_MIN : i % 5 == 1 ? INT32_MAX : word / INT64_C(4294967296);
        if (i == count - 1 && brief == 2) { word = INT64_C(2147483648); }
        if (i == count - 1 && brief == 3) { word = INT64_C(-2147483649); }
        memcpy(m->data + i * 8, &word, 8);
    }
}
static bool kn_gemm_dtype(int dtype, const int64_t *d, int mode, bool odd, int brief) {
    const bool whole = dtype == OPD_INT32 || dtype == OPD_INT64;
    const int64_t m = d[0], n = d[1], k = d[2];
    kn_matrix a = kn_matrix_of(dtype, m, k, mode & 1, odd), b = kn_matrix_of(dtype, k, n, mode & 2, odd);
    kn_shorten(&a, m * k, brief & 1 ? brief : brief != 0);
    kn_shorten(&b, k * n, brief & 1 ? brief != 0 : brief);
    kn_matrix c = kn_matrix_of(whole ? dtype : OPD_FLOAT32, m, n, mode & 4, false), was = c;
    const size_t bytes = (size_t)(m * n) * opd_dtype_size((opd_scalar_type)c.dtype), size = opd_dtype_size((opd_scalar_type)dtype);
    bool right = true;
    was.data = (char *)malloc(bytes + 1);
    for (int64_t i = 0; !whole && i < m * n; i++) { ((float *)(void *)c.data)[i] = kn_random(); }
    memcpy(was.data, c.data, bytes);
    opdi_gemm_in left = opdi_gemm_in_of(a.data, dtype, a.rs, a.cs), other = opdi_gemm_in_of(b.data, dtype, b.rs, b.cs);
    CHECK_INT(opdi_gemm_of(c.dtype, m, n, k, &left, &other, mode & 1 ? 1 : 0, c.data, c.rs, c.cs), 0);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            uint64_t sum = mode & 1 ? kn_word(&was, i, j) : 0;
            double want = mode & 1 ? (double)((const float *)(const void *)was.data)[i * c.rs + j * c.cs] : 0;
            for (int64_t t = 0; t < k; t++) {
                if (whole) { sum += kn_word(&a, i, t) * kn_word(&b, t, j); }
                else { want += kn_half(&a, i, t) * kn_half(&b, t, j); }
            }
            if (!whole) { right = right && fabs(want - (double)((const float *)(const void *)c.data)[i * c.rs + j * c.cs]) < 1e-4; }
            else { right = right && (size == 8 ? sum : (uint32_t)sum) == kn_word(&c, i, j); }
        }
    }
    free(a.data - (odd ? size : 0)); free(b.data - (odd ? size : 0)); free(c.data); free(was.data);
    return right;
}
TEST(kernels_gemm_dtypes) {
    static const int dtypes[] = {OPD_INT32, OPD_INT64, OPD_FLOAT16, OPD_BFLOAT16};
    static const int64_t dims[][3] = {{1, 1, 1}, {3, 4, 0}, {2, 3, 4}, {1, 40, 70}, {40, 1, 71}, {3, 50, 1300}, {50, 4, 33}, {5, 16, 9},
        {20, 37, 50}, {9, 33, 1171}, {31, 65, 129}, {8, 32, 2}, {1, 7, 1}, {300, 40, 11}, {5, 300, 64}, {4, 1100, 7},
        {9, 37, 130}, {16, 21, 70}, {33, 40, 64}, {41, 12, 31}, {32, 70, 95}, {17, 66, 34}, {66, 17, 61}, {1, 1130, 70},
        {1, 64, 33}, {1, 95, 2}, {1130, 1, 70}, {70, 1, 61}};
    for (int threads = 1; threads <= 3; threads += 2) {
        opd_threads_set(threads);
        for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
            for (int k = 0; k < 4 * 8; k++) {
                if (!check_visits(i * 32 + (size_t)k, 32 * sizeof dims / sizeof *dims)) continue;
                const bool right = kn_gemm_dtype(dtypes[k / 8], dims[i], k % 8, (i + (size_t)k) % 3 == 0, k / 8 == 1 ? (int)i % 4 : 0);
                if (!right) { printf("    %s, case %d, mode %d\n", opd_dtype_cname((opd_scalar_type)dtypes[k / 8]), (int)i, k % 8); }
                CHECK(right);
            }
        }
    }
    opd_threads_set(0);
}

TEST(kernels_gemm_threads) {                      /* the same bits with any number of threads */
    enum { M = 200, N = 300, K = 520 };
    float *a = (float *)malloc(M * K * 4), *b = (float *)malloc(K * N * 4), *c = (float *)malloc(M * N * 4);
    float *d = (float *)malloc(M * N * 4);
    for (int i = 0; i < M * K; i++) a[i] = kn_random();
    for (int i = 0; i < K * N; i++) b[i] = kn_random();
    opd_threads_set(1);
    opdi_gemm_f32(M, N, K, a, 1, M, b, N, 1, 0, c, N, 1);
    for (int threads = 2; threads < 6; threads++) {
        opd_threads_set(threads);
        memset(d, 0, M * N * 4);
        opdi_gemm_f32(M, N, K, a, 1, M, b, N, 1, 0, d, N, 1);
        CHECK(memcmp(c, d, M * N * 4) == 0);
    }
    opd_threads_set(0);
    free(a); free(b); free(c); free(d);
}

/* Products of few rows give the same bits with any number of threads, however the other operand is divided. */
TEST(kernels_few_rows_threads) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16};
    for (int way = 0; way < 4 * 9; way++) {
        if (!check_visits((size_t)way, 4 * 9)) continue;
        OPD_SCOPE {
            const int64_t rows = 1 + 4 * (way / 4);
            opd_tensor *a = opd_to_dtype(opd_randn(OPD_INTS(rows, 300), OPD_FLOAT32), dtypes[way % 4]);
            opd_tensor *b = opd_to_dtype(opd_randn(OPD_INTS(4003, 300), OPD_FLOAT32), dtypes[way % 4]);
            opd_threads_set(1);
            opd_tensor *one = opd_mm(a, opd_t(b)), *turned = opd_mm(b, opd_t(a));
            opd_tensor *want = opd_mm(opd_to_dtype(a, OPD_FLOAT64), opd_to_dtype(opd_t(b), OPD_FLOAT64));
            for (int threads = 2; threads < 6; threads++) {
                opd_threads_set(threads);
                CHECK(opd_item(opd_all(opd_eq(opd_mm(a, opd_t(b)), one))).u.i != 0);
                CHECK(opd_item(opd_all(opd_eq(opd_mm(b, opd_t(a)), turned))).u.i != 0);
            }
            const double most = way % 4 == 0 ? 2e-4 : way % 4 == 1 ? 1e-11 : way % 4 == 2 ? 0.06 : 0.5;
            CHECK(opd_item(opd_max(opd_abs(opd_sub(opd_to_dtype(one, OPD_FLOAT64), want)))).u.d < most);
            CHECK(opd_item(opd_max(opd_abs(opd_sub(opd_to_dtype(opd_t(turned), OPD_FLOAT64), want)))).u.d < most);
            CHECK_OK();
        }
    }
    opd_threads_set(0);
}

/* The same for a matrix with contiguous rows, which is read without a copy.  A row gives the same bits as in a
   product of 20 rows. */
TEST(kernels_row_groups) {
    static opd_op *mm_out;
    static const int64_t dims[][3] = {{2, 130, 131}, {3, 263, 257}, {4, 1100, 2001}, {5, 2049, 1030}, {6, 1501, 1400}, {7, 1501, 1400}};
    for (int way = 0; way < 4 * 6; way++) {
        if (!check_visits((size_t)way, 4 * 6)) continue;
        OPD_SCOPE {
            const int64_t *d = dims[way / 4];
            const opd_scalar_type dtype = way & 1 ? OPD_FLOAT64 : OPD_FLOAT32;
            opd_tensor *a = way & 2 ? opd_t(opd_randn(OPD_INTS(d[1], d[0]), dtype)) : opd_randn(OPD_INTS(d[0], d[1]), dtype);
            opd_tensor *b = opd_narrow(opd_randn(OPD_INTS(d[1], d[2] + 5), dtype), 1, way & 2 ? 3 : 0, d[2]);
            opd_tensor *c = opd_randn(OPD_INTS(d[0], d[2]), dtype);
            opd_threads_set(1);
            opd_tensor *one = opd_mm(a, b), *added = opd_addmm(c, a, b);
            opd_tensor *want = opd_mm(opd_to_dtype(a, OPD_FLOAT64), opd_t(opd_contiguous(opd_t(opd_to_dtype(b, OPD_FLOAT64)))));
            opd_tensor *out = opd_narrow(opd_zeros(OPD_INTS(d[0], d[2] + 9), dtype), 1, 4, d[2]);
            CHECK(OPD_CALL(OPD_OP(&mm_out, "aten::mm.out"), a, b, out) == out);
            CHECK(opd_item(opd_all(opd_eq(out, one))).u.i != 0);
            opd_tensor *const parts[] = {a, opd_randn(OPD_INTS(20 - d[0], d[1]), dtype)};
            opd_tensor *many = opd_mm(opd_cat(opd_tensors_of(parts, 2), 0), b);
            CHECK(opd_item(opd_all(opd_eq(opd_narrow(many, 0, 0, d[0]), one))).u.i != 0);
            for (int threads = 2; threads < 6; threads++) {
                opd_threads_set(threads);
                CHECK(opd_item(opd_all(opd_eq(opd_mm(a, b), one))).u.i != 0);
            }
            const double most = way & 1 ? 1e-11 : 4e-4;
            CHECK(opd_item(opd_max(opd_abs(opd_sub(opd_to_dtype(one, OPD_FLOAT64), want)))).u.d < most);
            CHECK(opd_item(opd_max(opd_abs(opd_sub(opd_to_dtype(added, OPD_FLOAT64), opd_add(want, c))))).u.d < most);
            CHECK_OK();
        }
    }
    opd_threads_set(0);
}

/* Loops over the definition; which: 0 y, 1 gx, 2 gw from the other two. */
static void kn_conv(const opdi_conv *v, int which, double *x, double *w, double *y) {
    for (int64_t n = 0; n < v->n; n++)
        for (int64_t o = 0; o < v->oc; o++)
            for (int64_t i = 0; i < v->oh * v->ow; i++)
                for (int64_t c = 0; c < v->cg; c++)
                    for (int64_t t = 0; t < v->kh * v->kw; t++) {
                        int64_t r = i / v->ow * v->sh + t / v->kw * v->dh - v->ph;
                        int64_t s = i % v->ow * v->sw + t % v->kw * v->dw - v->pw;
                        if (r < 0 || r >= v->h || s < 0 || s >= v->w) continue;
                        double *px = x + ((n * v->c + o / v->og * v->cg + c) * v->h + r) * v->w + s;
                        double *pw = w + (o * v->cg + c) * v->kh * v->kw + t;
                        double *py = y + (n * v->oc + o) * v->oh * v->ow + i;
                        if (which == 0) *py += *px * *pw;
                        if (which == 1) *px += *py * *pw;
                        if (which == 2) *pw += *py * *px;
                    }
}

static double kn_conv_error(opdi_conv v, int which, int with_bias) {
    int64_t nx = v.n * v.c * v.h * v.w, nw = v.oc * v.c / v.groups * v.kh * v.kw, ny;
    CHECK_INT(opdi_conv_init(&v), 0);
    ny = v.n * v.oc * v.oh * v.ow;
    double *d[3], worst = 0, bias[64];
    float *f[3], fbias[64];
    int64_t count[3];
    int result = which == 0 ? 2 : which == 1 ? 0 : 1;
    count[0] = nx; count[1] = nw; count[2] = ny;
    for (int i = 0; i < 64; i++) bias[i] = (double)(fbias[i] = kn_random());
    for (int q = 0; q < 3; q++) {
        d[q] = (double *)malloc((size_t)count[q] * 8 + 8);
        f[q] = (float *)malloc((size_t)count[q] * 4 + 8);
        for (int64_t i = 0; i < count[q]; i++) {
            d[q][i] = (double)(f[q][i] = kn_random());
            if (q == result) { d[q][i] = with_bias && which == 0 ? bias[i / (v.oh * v.ow) % v.oc] : 0; f[q][i] = NAN; }
        }
    }
    kn_conv(&v, which, d[0], d[1], d[2]);
    double *wide = (double *)malloc((size_t)count[result] * 8 + 8);
    for (int pass = 0; pass < 2; pass++) {
        void *p[3];
        for (int q = 0; q < 3; q++) p[q] = pass ? (void *)(q == result ? wide : d[q]) : (void *)f[q];
        v.size = pass ? 8 : 4;
        const void *b = !with_bias ? NULL : pass ? (const void *)bias : (const void *)fbias;
        if (which == 0) CHECK_INT(opdi_conv_forward(&v, p[0], p[1], b, p[2]), 0);
        if (which == 1) CHECK_INT(opdi_conv_grad_input(&v, p[2], p[1], p[0]), 0);
        if (which == 2) CHECK_INT(opdi_conv_grad_weight(&v, p[2], p[0], p[1]), 0);
        for (int64_t i = 0; i < count[result]; i++) {
            double e = fabs(d[result][i] - (pass ? wide[i] : (double)f[result][i])) * (pass ? 1e6 : 1);
            if (!(e <= worst)) worst = e == e ? e : HUGE_VAL;
        }
    }
    free(wide);
    for (int q = 0; q < 3; q++) { free(d[q]); free(f[q]); }
    return worst;
}

TEST(kernels_conv) {
    /* n c h w oc kh kw sh sw ph pw dh dw groups */
    static const int64_t cases[][14] = {
        {2, 3, 8, 9, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1}, {1, 2, 7, 7, 3, 3, 3, 2, 2, 1, 1, 1, 1, 1},
        {3, 4, 10, 70, 6, 3, 5, 1, 1, 0, 2, 1, 1, 2}, {2, 6, 9, 20, 6, 3, 3, 1, 1, 1, 1, 1, 1, 6},
        {2, 6, 9, 21, 6, 3, 3, 2, 2, 1, 1, 1, 1, 6}, {1, 3, 12, 12, 5, 3, 3, 1, 1, 2, 2, 2, 2, 1},
        {2, 5, 6, 6, 7, 1, 1, 1, 1, 0, 0, 1, 1, 1}, {2, 4, 6, 6, 8, 1, 1, 2, 2, 0, 0, 1, 1, 2},
        {1, 2, 1, 30, 3, 1, 5, 1, 2, 0, 2, 1, 1, 1}, {9, 2, 5, 5, 3, 2, 2, 1, 1, 3, 3, 1, 1, 1},
        {1, 3, 4, 4, 2, 4, 4, 1, 1, 0, 0, 1, 1, 1}, {2, 3, 11, 13, 4, 3, 2, 3, 2, 1, 0, 1, 2, 1},
        {1, 16, 14, 14, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1}, {1, 2, 3, 3, 2, 1, 1, 1, 1, 5, 5, 1, 1, 1},
        {1, 4, 9, 9, 8, 3, 3, 1, 1, 1, 1, 1, 1, 4}, {2, 3, 40, 45, 13, 7, 7, 2, 2, 3, 3, 1, 1, 1},
        {2, 6, 19, 50, 6, 7, 7, 3, 3, 3, 3, 1, 1, 6}, {1, 4, 16, 41, 6, 9, 8, 2, 3, 4, 3, 1, 2, 2},
        {1, 3, 5, 5, 4, 1, 1, 7, 7, 0, 0, 1, 1, 1}, {1, 2, 12, 30, 2, 9, 9, 2, 2, 4, 4, 1, 1, 2},
        {2, 4, 14, 30, 5, 4, 4, 2, 2, 1, 1, 1, 1, 1}, {1, 3, 1, 200, 7, 1, 5, 1, 2, 0, 2, 1, 1, 1},
        {1, 4, 3, 20, 4, 2, 3, 1, 5, 0, 4, 1, 3, 4}};
    for (int threads = 1; threads <= 3; threads += 2) {
        opd_threads_set(threads);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            for (int which = 0; which < 4; which++) {
                const int64_t *p = cases[i];
                opdi_conv v;
                memset(&v, 0, sizeof v);
                v.size = 4;
                v.n = p[0]; v.c = p[1]; v.h = p[2]; v.w = p[3]; v.oc = p[4]; v.kh = p[5]; v.kw = p[6];
                v.sh = p[7]; v.sw = p[8]; v.ph = p[9]; v.pw = p[10]; v.dh = p[11]; v.dw = p[12]; v.groups = p[13];
                double e = kn_conv_error(v, which % 3, which == 3);
                if (!(e < 2e-4)) printf("    case %d which %d: %g\n", (int)i, which, e);
                CHECK(e < 2e-4);
            }
    }
    opd_threads_set(0);
}

/* The same numbers as bfloat16 and as float: convolved, and their gradients, within a rounding of each other. */
static double kn_far(opd_tensor *narrow, opd_tensor *wide) {
    return opd_item_f64(opd_max(opd_abs(opd_sub(opd_to_dtype(narrow, OPD_FLOAT32), wide)))) / opd_item_f64(opd_max(opd_abs(wide)));
}
TEST(kernels_conv_bfloat16) {
    /* n c h w oc kh kw stride padding groups */
    static const int64_t cases[][10] = {{2, 16, 20, 21, 24, 3, 3, 1, 1, 1}, {2, 16, 20, 21, 32, 3, 3, 2, 1, 1}, {9, 16, 5, 5, 20, 3, 3, 1, 1, 1},
        {1, 33, 30, 30, 17, 1, 1, 1, 0, 1}, {2, 34, 9, 50, 64, 3, 5, 1, 2, 2}, {1, 3, 40, 40, 16, 7, 7, 2, 3, 1}, {1, 200, 12, 12, 16, 3, 3, 1, 0, 1}};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        OPD_SCOPED;
        const int64_t *d = cases[i / 2], two[2] = {d[7], d[7]}, pads[2] = {d[8], d[8]}, one[2] = {1, 1}, none[2] = {0, 0};
        const bool mask[3] = {true, true, false}, turned = i % 2;
        opd_tensor *x[2], *w[2], *y[2], *gy[2], *rets[2][3];
        x[0] = opd_to_dtype(opd_randn(OPD_INTS(d[0], d[1], d[2], d[3]), OPD_FLOAT32), OPD_BFLOAT16);
        w[0] = opd_to_dtype(turned ? opd_randn(OPD_INTS(d[1], d[4] / d[9], d[5], d[6]), OPD_FLOAT32)
                            : opd_randn(OPD_INTS(d[4], d[1] / d[9], d[5], d[6]), OPD_FLOAT32), OPD_BFLOAT16);
        for (int k = 0; k < 2; k++) {
            if (k) { x[1] = opd_to_dtype(x[0], OPD_FLOAT32); w[1] = opd_to_dtype(w[0], OPD_FLOAT32); }
            y[k] = opd_convolution(x[k], w[k], NULL, opd_ints_of(two, 2), opd_ints_of(pads, 2), opd_ints_of(one, 2), turned,
                                   opd_ints_of(none, 2), d[9]);
            CHECK_OR_RETURN(y[k] != NULL);
            gy[k] = k ? opd_to_dtype(gy[0], OPD_FLOAT32) : opd_to_dtype(opd_randn_like(y[0]), OPD_BFLOAT16);
            CHECK_INT(opd_convolution_backward(rets[k], gy[k], x[k], w[k], OPD_NONE, opd_ints_of(two, 2), opd_ints_of(pads, 2),
                                               opd_ints_of(one, 2), turned, opd_ints_of(none, 2), d[9], opd_value_bools(mask, 3)), 0);
        }
        CHECK(kn_far(y[0], y[1]) < 0.005);
        CHECK(kn_far(rets[0][0], rets[1][0]) < 0.005);
        CHECK(kn_far(rets[0][1], rets[1][1]) < 0.005);
    }
}

/* y, gx and gw of one convolution, of float and of double. */
typedef struct kn_three { opd_tensor *t[3]; } kn_three;
static kn_three kn_three_of(opd_tensor *x, opd_tensor *w, opd_tensor *b, opd_tensor *gy, const int64_t *d, bool turned) {
    const int64_t stride[2] = {d[7], d[8]}, pads[2] = {d[9], d[10]}, dilation[2] = {d[11], d[12]}, none[2] = {0, 0};
    const bool mask[3] = {true, true, false};
    kn_three r = {{NULL, NULL, NULL}};
    opd_tensor *rets[3];
    r.t[0] = opd_convolution(x, w, b, opd_ints_of(stride, 2), opd_ints_of(pads, 2), opd_ints_of(dilation, 2), turned, opd_ints_of(none, 2), d[13]);
    if (!r.t[0] || opd_convolution_backward(rets, gy, x, w, OPD_NONE, opd_ints_of(stride, 2), opd_ints_of(pads, 2), opd_ints_of(dilation, 2), turned,
                                 opd_ints_of(none, 2), d[13], opd_value_bools(mask, 3)) != 0) { return r; }
    r.t[1] = rets[0];
    r.t[2] = rets[1];
    return r;
}
static opd_tensor *kn_wide(opd_tensor *t) { return opd_to_dtype(t, OPD_FLOAT64); }
/* The largest error, of the root of the mean square of what it should be; 1e9 where one is finite and the other not. */
static double kn_conv_far(opd_tensor *got, opd_tensor *want) {
    const double *w = (const double *)(const void *)want->data;
    const float *g = (const float *)(const void *)got->data;
    double sum = 0, worst = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < want->numel; i++) if (isfinite((float)w[i])) { sum += w[i] * w[i]; count++; }
    sum = sqrt(sum / (double)(count ? count : 1)) + 1e-300;
    for (int64_t i = 0; i < want->numel; i++) {
        if (!isfinite((float)w[i])) { if (isfinite(g[i])) return 1e9; continue; }
        double e = fabs((double)g[i] - w[i]) / sum;
        if (!(e <= worst)) { worst = e == e ? e : 1e9; }
    }
    return worst;
}
static bool kn_same_bits(kn_three a, kn_three b) {
    for (int i = 0; i < 3; i++) if (memcmp(a.t[i]->data, b.t[i]->data, (size_t)a.t[i]->numel * 4) != 0) return false;
    return true;
}
/* n c h w oc kh kw sh sw ph pw dh dw groups, of every way there is */
static const int64_t kn_ways[][14] = {
    {2, 16, 13, 17, 40, 3, 3, 1, 1, 1, 1, 1, 1, 1}, {1, 33, 9, 22, 17, 3, 3, 1, 1, 0, 2, 1, 1, 1}, {5, 150, 7, 7, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1},
    {2, 64, 10, 11, 96, 3, 3, 1, 1, 1, 0, 1, 1, 2}, {3, 20, 6, 6, 50, 3, 3, 1, 1, 3, 3, 1, 1, 1}, {1, 16, 2, 41, 16, 3, 3, 1, 1, 2, 1, 1, 1, 1},
    {2, 48, 30, 31, 48, 3, 3, 1, 1, 1, 1, 1, 1, 3}, {1, 140, 21, 5, 16, 3, 3, 1, 1, 0, 0, 1, 1, 1}, {40, 16, 4, 4, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1},
    {2, 16, 14, 14, 24, 3, 3, 2, 2, 1, 1, 1, 1, 1}, {3, 24, 15, 9, 16, 3, 3, 2, 1, 1, 1, 1, 1, 2}, {4, 16, 7, 7, 40, 1, 1, 2, 2, 0, 0, 1, 1, 1},
    {2, 16, 20, 23, 16, 5, 4, 3, 2, 2, 1, 1, 1, 1}, {1, 9, 11, 12, 10, 4, 4, 2, 2, 1, 1, 1, 1, 1}, {2, 8, 9, 9, 8, 2, 2, 3, 3, 0, 0, 1, 1, 1},
    {1, 16, 10, 10, 16, 3, 3, 2, 2, 2, 2, 2, 2, 1}, {2, 8, 12, 12, 8, 7, 7, 2, 2, 3, 3, 1, 1, 1}, {1, 16, 9, 9, 8, 3, 3, 2, 2, 0, 0, 1, 1, 1},
    {3, 40, 5, 5, 24, 1, 1, 1, 1, 0, 0, 1, 1, 1}, {2, 16, 9, 9, 16, 3, 3, 1, 1, 2, 2, 2, 2, 1}, {3, 300, 6, 6, 500, 1, 1, 1, 1, 0, 0, 1, 1, 1},
    {2, 19, 9, 13, 19, 3, 3, 1, 1, 1, 1, 1, 1, 19}, {1, 32, 14, 7, 32, 5, 5, 1, 1, 2, 2, 1, 1, 32}, {2, 16, 21, 21, 16, 7, 7, 1, 1, 3, 3, 1, 1, 16},
    {1, 35, 12, 10, 35, 3, 3, 2, 2, 1, 1, 1, 1, 35}, {2, 8, 11, 15, 8, 3, 2, 1, 2, 0, 1, 2, 3, 8}, {2, 17, 1, 50, 17, 1, 31, 1, 1, 0, 15, 1, 1, 17},
    {1, 16, 3, 3, 16, 3, 3, 2, 2, 1, 1, 1, 1, 16}, {1, 12, 2, 2, 12, 2, 2, 2, 2, 0, 0, 1, 1, 12}, {2, 16, 5, 6, 32, 3, 3, 1, 1, 1, 1, 1, 1, 16},
    {2, 16, 11, 13, 16, 3, 3, 1, 1, 1, 1, 1, 1, 4}, {1, 20, 9, 9, 10, 3, 3, 2, 2, 1, 1, 1, 1, 5}, {2, 8, 7, 8, 24, 3, 2, 2, 3, 1, 0, 1, 1, 8},
    {1, 12, 10, 6, 18, 3, 3, 1, 1, 2, 2, 2, 2, 6}, {2, 15, 8, 8, 20, 5, 5, 3, 3, 2, 2, 1, 1, 5}, {1, 8, 9, 5, 8, 3, 3, 2, 2, 4, 4, 1, 1, 8},
    {1, 8, 6, 6, 8, 2, 2, 3, 3, 0, 0, 1, 1, 8}, {1, 24, 6, 21, 24, 3, 3, 2, 1, 1, 1, 1, 1, 8}, {2, 32, 15, 17, 24, 3, 3, 2, 2, 1, 1, 1, 1, 2},
    {2, 160, 9, 11, 128, 3, 3, 2, 2, 1, 1, 1, 1, 8}, {1, 96, 13, 8, 384, 5, 4, 3, 2, 2, 1, 1, 1, 8}, {2, 128, 7, 9, 128, 4, 3, 2, 3, 5, 4, 1, 1, 8},
    {1, 128, 40, 70, 128, 3, 3, 2, 1, 1, 1, 1, 1, 8}, {1, 192, 10, 9, 96, 5, 5, 1, 1, 2, 2, 1, 1, 8}, {2, 128, 9, 10, 160, 3, 3, 1, 1, 1, 1, 1, 1, 8},
    {1, 320, 8, 8, 512, 3, 3, 1, 1, 0, 0, 1, 1, 8}};
TEST(kernels_conv_ways) {                         /* all ways at all levels beside doubles, and the same with any number of threads */
    const int known = opdi_cpu_level();
    for (size_t i = 0; i < 2 * sizeof kn_ways / sizeof *kn_ways; i++) {
        OPD_SCOPED;
        const int64_t *d = kn_ways[i / 2];
        const bool turned = i % 2;
        if (!check_visits(i, 2 * sizeof kn_ways / sizeof *kn_ways)) continue;
        opd_tensor *x = opd_randn(OPD_INTS(d[0], turned ? d[4] : d[1], d[2], d[3]), OPD_FLOAT32);
        opd_tensor *w = opd_randn(OPD_INTS(d[4], d[1] / d[13], d[5], d[6]), OPD_FLOAT32);
        opd_tensor *b = opd_randn(OPD_INTS(turned ? d[1] : d[4]), OPD_FLOAT32);
        kn_three want = kn_three_of(kn_wide(x), kn_wide(w), kn_wide(b), NULL, d, turned), got[2];
        opd_error_clear();
        if (!want.t[0]) continue;                 /* nothing would be left */
        opd_tensor *gy = opd_to_dtype(opd_randn_like(want.t[0]), OPD_FLOAT32);
        want = kn_three_of(kn_wide(x), kn_wide(w), kn_wide(b), kn_wide(gy), d, turned);
        CHECK_OR_RETURN(want.t[1] != NULL);
        for (int level = 0; level <= known; level++) {
            for (int fast = 0; fast < 2; fast++) {
                opdi_cpu_known = level;
                opdi_winograd_known = fast;
                for (int k = 0; k < 2; k++) {
                    opd_threads_set(k ? 3 : 1);
                    got[k] = kn_three_of(x, w, b, gy, d, turned);
                    CHECK_OR_RETURN(got[k].t[1] != NULL);
                }
                CHECK(kn_same_bits(got[0], got[1]));
                for (int q = 0; q < 3; q++) {
                    const double e = kn_conv_far(got[0].t[q], want.t[q]);
                    if (!(e < 2e-5)) printf("    case %d turned %d level %d fast %d result %d: %g\n", (int)(i / 2), turned, level, fast, q, e);
                    CHECK(e < 2e-5);
                }
            }
        }
    }
    opdi_cpu_known = known;
    opdi_winograd_known = -1;
    opd_threads_set(0);
}
/* Convolutions that read the image in place, with strides, beside loops over the definition: floats and doubles, whose
   images, or gradients, are contiguous, channels_last, or every second row of a larger tensor. */
static opd_tensor *kn_layout(opd_tensor *t, int layout) {
    if (layout == 1) return opd_permute(opd_contiguous(opd_permute(t, OPD_INTS(0, 2, 3, 1))), OPD_INTS(0, 3, 1, 2));
    if (layout == 2) return opd_slice(opd_repeat_interleave_full(t, 2, OPD_V(2), OPD_NONE), 2, OPD_NONE, OPD_NONE, 2);
    return t;
}
TEST(kernels_conv_in_place) {
    /* n c h w oc kh kw sh sw ph pw dh dw groups */
    static const int64_t cases[][14] = {
        {2, 16, 24, 25, 16, 3, 3, 2, 2, 1, 1, 1, 1, 2}, {1, 24, 31, 37, 40, 5, 4, 2, 3, 2, 1, 1, 1, 1},
        {1, 16, 29, 30, 12, 3, 3, 2, 2, 2, 2, 2, 2, 1}, {3, 24, 19, 18, 24, 3, 3, 1, 1, 1, 1, 1, 1, 3},
        {2, 40, 17, 16, 40, 3, 3, 1, 1, 1, 1, 1, 1, 2}, {2, 8, 40, 41, 8, 5, 5, 1, 1, 2, 2, 1, 1, 1},
        {1, 9, 20, 33, 10, 3, 3, 1, 2, 1, 1, 1, 1, 1}, {1, 8, 12, 13, 8, 3, 3, 2, 2, 5, 4, 1, 1, 1},
        {2, 8, 23, 25, 8, 2, 1, 3, 2, 0, 0, 1, 1, 1}, {2, 8, 1, 300, 12, 1, 5, 1, 2, 0, 2, 1, 1, 1},
        {1, 3, 48, 48, 20, 16, 16, 16, 16, 0, 0, 1, 1, 1}, {1, 70, 16, 17, 9, 3, 3, 2, 2, 1, 1, 1, 1, 1},
        {3, 16, 9, 5, 16, 3, 3, 2, 2, 1, 1, 1, 1, 2}, {6, 20, 9, 9, 24, 1, 1, 2, 2, 0, 0, 1, 1, 1},
        {2, 10, 40, 38, 44, 4, 4, 2, 2, 1, 1, 1, 1, 1}, {5, 12, 7, 9, 12, 3, 3, 3, 2, 0, 1, 1, 1, 1},
        {6, 8, 30, 30, 4, 3, 3, 1, 1, 1, 1, 1, 1, 1}, {1, 8, 31, 47, 9, 1, 3, 1, 3, 0, 0, 1, 1, 1},
        {2, 16, 29, 33, 24, 2, 2, 4, 2, 0, 0, 1, 1, 2}, {0, 16, 9, 9, 16, 3, 3, 2, 2, 1, 1, 1, 1, 1}};
    const int known = opdi_cpu_level();
    for (size_t i = 0; i < 4 * sizeof cases / sizeof *cases; i++) {
        OPD_SCOPED;
        const int64_t *const d = cases[i / 4];
        const bool wide = i % 2, bias = i / 2 % 2;
        if (!check_visits(i, 4 * sizeof cases / sizeof *cases)) continue;
        opdi_conv v;
        memset(&v, 0, sizeof v);
        v.n = d[0]; v.c = d[1]; v.h = d[2]; v.w = d[3]; v.oc = d[4]; v.kh = d[5]; v.kw = d[6]; v.sh = d[7]; v.sw = d[8];
        v.ph = d[9]; v.pw = d[10]; v.dh = d[11]; v.dw = d[12]; v.groups = d[13]; v.size = 8;
        CHECK_OR_RETURN(opdi_conv_init(&v) == 0);
        const int64_t sizes[3][4] = {{v.n, v.c, v.h, v.w}, {v.oc, v.cg, v.kh, v.kw}, {v.n, v.oc, v.oh, v.ow}};
        opd_tensor *t[3], *doubles[3], *want[3], *const b = bias ? opd_randn(OPD_INTS(v.oc), OPD_FLOAT32) : NULL;
        for (int q = 0; q < 3; q++) {
            t[q] = opd_randn(opd_ints_of(sizes[q], 4), OPD_FLOAT32);
            doubles[q] = kn_wide(t[q]);
            want[q] = opd_zeros(opd_ints_of(sizes[q], 4), OPD_FLOAT64);
            CHECK_OR_RETURN(t[q] && doubles[q] && want[q]);
            if (wide) t[q] = doubles[q];
            t[q] = kn_layout(t[q], q == 1 ? 0 : (int)(i % 3));
        }
        if (b) want[2] = opd_contiguous(opd_add(want[2], opd_view(kn_wide(b), OPD_INTS(v.oc, 1, 1))));
        for (int which = 0; which < 3; which++) {
            double *p[3];
            for (int q = 0; q < 3; q++) p[q] = (double *)(void *)(q == (which + 2) % 3 ? want : doubles)[q]->data;
            kn_conv(&v, which, p[0], p[1], p[2]);
        }
        for (int level = 0; level <= known; level++) {
            opdi_cpu_known = level;
            const kn_three got = kn_three_of(t[0], t[1], b && wide ? kn_wide(b) : b, t[2], d, false);
            CHECK_OR_RETURN(got.t[1] != NULL);
            for (int which = 0; which < 3; which++) {
                opd_tensor *const off = opd_sub(kn_wide(got.t[which]), want[(which + 2) % 3]);
                const double e = off->numel ? opd_item_f64(opd_max(opd_abs(off))) : 0, most = wide ? 1e-11 : 1e-3;
                if (!(e < most)) printf("    case %d double %d level %d result %d: %g\n", (int)(i / 4), wide, level, which, e);
                CHECK(e < most);
            }
        }
    }
    opdi_cpu_known = known;
}
/* Functions of complex numbers that are computed for 64 numbers at a time: those of a row have the same bits wherever
   the row is divided, and those of all levels are the same but for rounding. */
TEST(kernels_complex_rows) {
    typedef opd_tensor *unary(opd_tensor *);
    static const struct { const char *name; unary *one; } rows[] = {
        {"exp", opd_exp}, {"sigmoid", opd_sigmoid}, {"sin", opd_sin}, {"cos", opd_cos}, {"asin", opd_asin}};
    static const double ends[] = {0, -0.0, 1e-310, -1e-20, 1, -350, 500, 720, 2e6, -1e300, HUGE_VAL, -HUGE_VAL, (double)NAN};
    enum { ENDS = sizeof ends / sizeof *ends, COUNT = 20000 };
    OPD_SCOPED;
    const int known = opdi_cpu_level();
    opd_tensor *const parts = opd_mul_Scalar(opd_randn(OPD_INTS(COUNT, 2), OPD_FLOAT64), OPD_V(20));
    CHECK_OR_RETURN(parts != NULL);
    double *const x = opd_data_f64(parts);
    for (int i = 0; i < ENDS * ENDS; i++) {
        x[6 * i] = ends[i / ENDS];
        x[6 * i + 1] = ends[i % ENDS];
    }
    opd_tensor *const all = opd_view_as_complex(parts);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        opdi_cpu_known = 0;
        opd_tensor *const plain = rows[k].one(all);
        for (opdi_cpu_known = 0; opdi_cpu_known <= known; opdi_cpu_known++) {
            opd_tensor *const whole = rows[k].one(all);
            CHECK_OR_RETURN(plain && whole);
            const double *const have = (const double *)(const void *)whole->data, *const want = (const double *)(const void *)plain->data;
            int64_t moved = 0;
            for (int64_t at = 0; at < COUNT; at += 63) OPD_SCOPE {
                const int64_t count = OPDI_MIN(COUNT - at, (int64_t)63);
                opd_tensor *const part = rows[k].one(opd_narrow(all, 0, at, count));
                CHECK_OR_RETURN(part != NULL);
                moved += memcmp(part->data, have + 2 * at, (size_t)count * 16) != 0;
            }
            if (moved) printf("    %s, level %d: %d parts have other bits\n", rows[k].name, opdi_cpu_known, (int)moved);
            CHECK_INT(moved, 0);
            for (int64_t i = 0; i < 2 * COUNT; i++) {
                const bool same = have[i] == want[i] || (isnan(have[i]) && isnan(want[i]));
                const double least = 1e-14 * hypot(want[i], want[i ^ 1]);
                if (!same && !(fabs(have[i] - want[i]) <= least && isfinite(want[i]))) {
                    printf("    %s(%g, %g), level %d, part %d: %.17g, not %.17g\n", rows[k].name, x[i / 2 * 2], x[i / 2 * 2 + 1],
                           opdi_cpu_known, (int)(i % 2), have[i], want[i]);
                    CHECK(!"another number");
                }
            }
        }
        opdi_cpu_known = known;
    }
}
#if !defined(OPD_NO_THREADS) && !defined(OPDI_APART)
/* The threads share the work on the gradient of the weight, also if there is only one image and one group. */
TEST(kernels_conv_gradients_use_threads) {
    /* n c h w oc kh kw sh sw ph pw dh dw groups; the last one computes dot products */
    static const int64_t cases[][14] = {{1, 64, 28, 28, 64, 5, 5, 2, 2, 2, 2, 1, 1, 1}, {2, 64, 14, 14, 64, 5, 5, 1, 1, 2, 2, 1, 1, 1},
        {1, 64, 28, 28, 64, 5, 5, 1, 1, 2, 2, 1, 1, 1}, {2, 32, 28, 28, 32, 3, 3, 2, 2, 1, 1, 1, 1, 2},
        {1, 64, 30, 30, 7, 5, 5, 2, 2, 2, 2, 1, 1, 1}};
    const bool mask[3] = {false, true, false};
    opd_threads_set(4);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        OPD_SCOPED;
        const int64_t *const d = cases[i], none[2] = {0, 0};
        opd_tensor *rets[3], *const x = opd_randn(OPD_INTS(d[0], d[1], d[2], d[3]), OPD_FLOAT32);
        opd_tensor *const w = opd_randn(OPD_INTS(d[4], d[1] / d[13], d[5], d[6]), OPD_FLOAT32);
        opd_tensor *const y = opd_convolution(x, w, NULL, opd_ints_of(d + 7, 2), opd_ints_of(d + 9, 2), opd_ints_of(d + 11, 2), false,
                                              opd_ints_of(none, 2), d[13]);
        CHECK_OR_RETURN(y != NULL);
        const uint32_t jobs = opdi_the_pool.generation;
        CHECK_INT(opd_convolution_backward(rets, y, x, w, OPD_NONE, opd_ints_of(d + 7, 2), opd_ints_of(d + 9, 2), opd_ints_of(d + 11, 2),
                                           false, opd_ints_of(none, 2), d[13], opd_value_bools(mask, 3)), 0);
        if (opdi_the_pool.generation == jobs) printf("    case %d: one thread does all the work\n", (int)i);
        CHECK(opdi_the_pool.generation != jobs);
    }
    opd_threads_set(0);
}
#endif
/* Winograd's algorithm is used.  Its error is at most four times that of the plain sum, and 1e-6 of the root mean
   square of the results. */
TEST(kernels_winograd) {
    static const int64_t d[] = {2, 96, 20, 24, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    OPD_SCOPED;
    opd_tensor *x = opd_randn(OPD_INTS(d[0], d[1], d[2], d[3]), OPD_FLOAT32), *w = opd_randn(OPD_INTS(d[4], d[1], 3, 3), OPD_FLOAT32);
    opd_tensor *gy = opd_randn(OPD_INTS(d[0], d[4], d[2], d[3]), OPD_FLOAT32);
    kn_three want = kn_three_of(kn_wide(x), kn_wide(w), NULL, kn_wide(gy), d, false), got[2];
    CHECK_OR_RETURN(want.t[1] != NULL);
    for (int fast = 0; fast < 2; fast++) {
        opdi_winograd_known = fast;
        got[fast] = kn_three_of(x, w, NULL, gy, d, false);
        CHECK_OR_RETURN(got[fast].t[1] != NULL);
    }
    opdi_winograd_known = -1;
    for (int q = 0; q < 3; q++) {
        double rms[2];
        for (int fast = 0; fast < 2; fast++) {
            opd_tensor *off = opd_sub(kn_wide(got[fast].t[q]), want.t[q]);
            rms[fast] = sqrt(opd_item_f64(opd_mean(opd_mul(off, off))) / opd_item_f64(opd_mean(opd_mul(want.t[q], want.t[q]))));
        }
        CHECK(memcmp(got[0].t[q]->data, got[1].t[q]->data, (size_t)want.t[q]->numel * 4) != 0);
        if (!(rms[1] < 1e-6 * 1.5 && rms[1] < 4 * rms[0])) printf("    result %d: %g, plain %g\n", q, rms[1], rms[0]);
        CHECK(rms[1] < 1e-6 * 1.5 && rms[1] < 4 * rms[0]);
    }
}
/* Groups of 12 channels with stride 2: results that infinities and NaN reach, and no others, are as in plain C. */
TEST(kernels_pixels_not_finite) {
    static const int64_t d[] = {2, 96, 9, 10, 96, 3, 3, 2, 2, 1, 1, 1, 1, 8};
    static const float odd[] = {INFINITY, -INFINITY, NAN};
    const int known = opdi_cpu_level();
    for (int i = 0; i < 9; i++) {
        OPD_SCOPED;
        opd_tensor *t[3];
        kn_three got[2];
        t[0] = opd_randn(OPD_INTS(d[0], d[1], d[2], d[3]), OPD_FLOAT32);
        t[1] = opd_randn(OPD_INTS(d[4], d[1] / d[13], 3, 3), OPD_FLOAT32);
        t[2] = opd_randn(OPD_INTS(d[0], d[4], 5, 5), OPD_FLOAT32);
        for (int64_t k = 401; k < t[i % 3]->numel; k += 2111) ((float *)(void *)t[i % 3]->data)[k] = odd[i / 3];
        for (int plain = 0; plain < 2; plain++) {
            opdi_cpu_known = plain ? 0 : known;
            got[plain] = kn_three_of(t[0], t[1], NULL, t[2], d, false);
        }
        opdi_cpu_known = known;
        CHECK_OR_RETURN(got[0].t[1] != NULL && got[1].t[1] != NULL);
        for (int q = 0; q < 3; q++) {
            const float *const a = (const float *)(const void *)got[0].t[q]->data, *const b = (const float *)(const void *)got[1].t[q]->data;
            int differ = 0;
            for (int64_t k = 0; k < got[0].t[q]->numel; k++) differ += isfinite(b[k]) ? !isfinite(a[k]) : isnan(b[k]) ? !isnan(a[k]) : a[k] != b[k];
            CHECK_INT(differ, 0);
        }
    }
}
TEST(kernels_winograd_uneven) {      /* results beside much larger inputs keep their digits: plain sums, to the bit */
    static const int64_t d[] = {1, 32, 16, 16, 32, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    OPD_SCOPED;
    opd_tensor *t[3];
    kn_three got[2];
    t[0] = opd_randn(OPD_INTS(d[0], d[1], d[2], d[3]), OPD_FLOAT32);
    t[1] = opd_randn(OPD_INTS(d[4], d[1], 3, 3), OPD_FLOAT32);
    t[2] = opd_randn(OPD_INTS(d[0], d[4], d[2], d[3]), OPD_FLOAT32);
    for (int where = 0; where < 3; where += 2) {  /* x: the result; gy: the gradient by x */
        for (float size = 1e3f; size < 1e10f; size *= 100) {
            float *const at = (float *)(void *)t[where]->data + 4000, was = *at;
            *at = size;
            for (int fast = 0; fast < 2; fast++) {
                opdi_winograd_known = fast;
                got[fast] = kn_three_of(t[0], t[1], NULL, t[2], d, false);
            }
            opdi_winograd_known = -1;
            *at = was;
            CHECK_OR_RETURN(got[0].t[1] != NULL && got[1].t[1] != NULL);
            const int q = where == 0 ? 0 : 1;
            CHECK(memcmp(got[0].t[q]->data, got[1].t[q]->data, (size_t)got[0].t[q]->numel * 4) == 0);
        }
    }
}
TEST(kernels_winograd_not_finite) {               /* what is not finite or too large for transforms is computed the plain way */
    static const int64_t d[] = {2, 16, 12, 13, 20, 3, 3, 1, 1, 1, 1, 1, 1, 1};
    static const float odd[] = {INFINITY, -INFINITY, NAN, 1e38f, -3e38f};
    for (int where = 0; where < 3; where++) {
        for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
            OPD_SCOPED;
            opd_tensor *t[3];
            t[0] = opd_randn(OPD_INTS(d[0], d[1], d[2], d[3]), OPD_FLOAT32);
            t[1] = opd_mul_Scalar(opd_randn(OPD_INTS(d[4], d[1], 3, 3), OPD_FLOAT32), OPD_V(0.01));
            t[2] = opd_randn(OPD_INTS(d[0], d[4], d[2], d[3]), OPD_FLOAT32);
            for (int64_t k = where == 1 ? 700 : 401; k < t[where]->numel; k += 2111) ((float *)(void *)t[where]->data)[k] = odd[i];
            opdi_winograd_known = 0;
            kn_three plain = kn_three_of(t[0], t[1], NULL, t[2], d, false);
            opdi_winograd_known = 1;
            kn_three fast = kn_three_of(t[0], t[1], NULL, t[2], d, false);
            opdi_winograd_known = -1;
            CHECK_OR_RETURN(plain.t[1] != NULL && fast.t[1] != NULL);
            for (int q = 0; q < 3; q++) {
                const float *p = (const float *)(const void *)plain.t[q]->data, *f = (const float *)(const void *)fast.t[q]->data;
                int differ = 0;
                for (int64_t k = 0; k < plain.t[q]->numel; k++) differ += isfinite(p[k]) ? !isfinite(f[k]) : isnan(p[k]) ? !isnan(f[k]) : p[k] != f[k];
                CHECK_INT(differ, 0);
            }
        }
    }
}

/* numbers of ((i * 7919) % 101 - 50) / 50 */
static opd_tensor *kn_pattern(const int64_t *sizes, int64_t n) {
    opd_tensor *t = opd_zeros(opd_ints_of(sizes, n), OPD_FLOAT32);
    for (int64_t i = 0; t && i < t->numel; i++) ((float *)(void *)t->data)[i] = (float)(i * 7919 % 101 - 50) / 50;
    return t;
}
static int64_t kn_not_finite(const opd_tensor *t) {
    int64_t count = 0;
    for (int64_t i = 0; i < t->numel; i++) count += !isfinite(((const float *)(const void *)t->data)[i]);
    return count;
}
/* The zeros around an image, and those that fill lines up, are no numbers of it: an infinite weight makes those elements
   of gx infinite that it was multiplied for, an infinite input the taps of gw that met it.  How many: PyTorch 2.15, with
   and without oneDNN, in float and in double. */
TEST(kernels_convolution_padding_is_not_multiplied) {
    static const struct { int64_t d[14]; int64_t gx, gw; } t[] = {
        {{2, 16, 9, 9, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1}, 128, 64}, {{2, 14, 16, 5, 48, 3, 3, 1, 1, 2, 0, 1, 1, 1}, 96, 144},
        {{3, 12, 10, 9, 10, 3, 3, 2, 2, 1, 1, 1, 1, 1}, 48, 10}, {{2, 8, 8, 9, 16, 3, 3, 2, 2, 1, 1, 1, 1, 8}, 24, 2},
        {{2, 8, 9, 8, 8, 3, 3, 1, 1, 1, 1, 1, 1, 8}, 112, 4}, {{2, 12, 9, 3, 14, 3, 3, 1, 1, 1, 1, 1, 1, 2}, 32, 28},
        {{2, 10, 8, 8, 12, 3, 3, 1, 1, 2, 2, 2, 2, 1}, 72, 48}};
    for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
        OPD_SCOPED;
        const int64_t *const d = t[i].d, size[4] = {d[0], d[1], d[2], d[3]}, taps[4] = {d[4], d[1] / d[13], d[5], d[6]};
        const int64_t out[4] = {d[0], d[4], (d[2] + 2 * d[9] - d[11] * (d[5] - 1) - 1) / d[7] + 1,
                                (d[3] + 2 * d[10] - d[12] * (d[6] - 1) - 1) / d[8] + 1};
        opd_tensor *const x = kn_pattern(size, 4), *const w = kn_pattern(taps, 4), *const gy = kn_pattern(out, 4);
        CHECK_OR_RETURN(x && w && gy);
        const float kept = ((float *)(void *)w->data)[0];
        ((float *)(void *)w->data)[0] = INFINITY;
        const kn_three weight = kn_three_of(x, w, NULL, gy, d, false);
        ((float *)(void *)w->data)[0] = kept;
        ((float *)(void *)x->data)[0] = -INFINITY;
        const kn_three input = kn_three_of(x, w, NULL, gy, d, false);
        CHECK_OR_RETURN(weight.t[1] && input.t[2]);
        CHECK_INT(kn_not_finite(weight.t[1]), t[i].gx);
        CHECK_INT(kn_not_finite(input.t[2]), t[i].gw);
    }
}
/* A row times a matrix by columns, four at a time: the last one to three are multiplied by nothing but their numbers. */
TEST(kernels_row_times_infinity) {
    for (int64_t k = 1; k < 12; k++) {
        for (int64_t at = 0; at < k; at++) {
            OPD_SCOPED;
            opd_tensor *const a = opd_ones(OPD_INTS(1, k), OPD_FLOAT32), *const b = opd_ones(OPD_INTS(k, 300), OPD_FLOAT32);
            CHECK_OR_RETURN(a && b);
            for (int64_t j = 0; j < 300; j += 7) ((float *)(void *)b->data)[at * 300 + j] = j % 2 ? INFINITY : -INFINITY;
            opd_tensor *const c = opd_mm(a, b), *const twice = opd_mm(kn_wide(a), kn_wide(b));
            CHECK_OR_RETURN(c && twice);
            int bad = 0;
            for (int64_t j = 0; j < 300; j++) {
                const float want = j % 7 ? (float)k : j % 2 ? INFINITY : -INFINITY;
                bad += ((const float *)(const void *)c->data)[j] != want || (float)((const double *)(const void *)twice->data)[j] != want;
            }
            CHECK_INT(bad, 0);
        }
    }
}

TEST(kernels_no_memory) {                         /* the n-th allocation fails: -1, an error, nothing lost */
    enum { N = 2 * 8 * 12 * 12, W = 8 * 8 * 9 };
    static float x[N], w[W], y[N], a[100 * 100], c[100 * 100];
    opdi_conv v;
    memset(&v, 0, sizeof v);
    v.size = 4;
    v.n = 2; v.c = v.oc = 8; v.h = v.w = 12; v.kh = v.kw = 3;
    v.sh = v.sw = v.ph = v.pw = v.dh = v.dw = v.groups = 1;
    CHECK_INT(opdi_conv_init(&v), 0);
    for (int threads = 1; threads <= 2; threads++)
        for (int which = 0; which < 10; which++)
            for (int64_t n = 1, seen = 1; n <= seen && n < 50; n++) {
                const bool all[3] = {true, true, false};
                opd_tensor *rets[3];
                OPD_SCOPED;
                opd_tensor *const image = opd_ones(OPD_INTS(2, 16, 30, 31), OPD_FLOAT32), *const taps = opd_ones(OPD_INTS(16, 8, 3, 3), OPD_FLOAT32);
                opd_tensor *const grad = opd_ones(OPD_INTS(2, 16, 15, 16), OPD_FLOAT32);
                CHECK_OR_RETURN(image && taps && grad);
                opd_threads_set(threads);
                opd_memory_fail_at(n, false);
                int r = 0;
                v.sh = v.sw = which == 3 || which == 8 ? 2 : 1;
                opdi_conv_init(&v);
                if (which == 0) r = opdi_conv_forward(&v, x, w, NULL, y);
                if (which == 1 || which == 3) r = opdi_conv_grad_input(&v, y, w, x);
                if (which == 2) r = opdi_conv_grad_weight(&v, y, x, w);
                if (which == 4) r = opdi_gemm_f32(100, 100, 100, a, 1, 100, a, 1, 100, 0, c, 100, 1);
                if (which == 5) r = opdi_gemm_f32(100, 1, 100, a, 100, 1, a, 100, 1, 0, c, 100, 1);
                if (which == 8) r = opdi_conv_any(&v, x, w, NULL, y);
                if (which == 9) {
                    r = opd_convolution_backward(rets, grad, image, taps, OPD_NONE, OPD_INTS(2, 2), OPD_INTS(1, 1), OPD_INTS(1, 1), false,
                                                 OPD_INTS(0, 0), 2, opd_value_bools(all, 3));
                }
                if (which == 6 || which == 7) {
                    opdi_gemm_in halves = opdi_gemm_in_of(a, which == 6 ? OPD_BFLOAT16 : OPD_FLOAT16, 100, 1), other = halves;
                    other.rs = 1;
                    other.cs = 100;
                    r = opdi_gemm(4, which == 6 ? 100 : 3, 100, 100, &halves, &other, 0, c, 100, 1);
                }
                CHECK(r == 0 || r == -1);
                seen = opd_memory_fail_at(0, false);
                CHECK(n > 1 || threads > 1 || r == -1);                  /* without a room threads ask for themselves */
                CHECK(n <= seen || r == 0);
                opd_error_clear();
            }
    opd_threads_set(0);
}

TEST(kernels_philox) {
    uint32_t o[4], many[64];                      /* the authors' known answers */
    opdi_philox(0, 0, 0, o);
    CHECK(o[0] == 0x6627e8d5u && o[1] == 0xe169c58du && o[2] == 0xbc57ac4cu && o[3] == 0x9b00dbd8u);
    opdi_philox(~(uint64_t)0, ~(uint64_t)0, ~(uint64_t)0, o);
    CHECK(o[0] == 0x408f276du && o[1] == 0x41c83b0eu && o[2] == 0xa20bc7c6u && o[3] == 0x6d5451fdu);
    opdi_philox16(77, 5, many);
    for (uint64_t i = 0; i < 16; i++) {
        opdi_philox(77, 0, 5 + i, o);
        CHECK(memcmp(o, many + 4 * i, 16) == 0);
    }
}

TEST(kernels_random_fill) {
    enum { N = 100000 };
    static float f[N], g[N];
    static double d[N], e[N];
    double s = 0, s2 = 0, sn = 0, sn2 = 0, sd = 0, sd2 = 0, se2 = 0;
    opd_threads_set(3);
    opdi_fill_random(0, N, f, 42, 0);
    opdi_fill_random(1, N, g, 42, 0);
    opdi_fill_random(2, N, d, 42, 0);
    opdi_fill_random(3, N, e, 42, 0);
    opd_threads_set(0);
    for (int i = 0; i < N; i++) {
        CHECK(f[i] >= 0 && f[i] < 1 && d[i] >= 0 && d[i] < 1 && fabsf(g[i]) < 7 && fabs(e[i]) < 9);
        s += (double)f[i]; s2 += (double)f[i] * (double)f[i];
        sn += (double)g[i]; sn2 += (double)g[i] * (double)g[i];
        sd += d[i]; sd2 += d[i] * d[i]; se2 += e[i] * e[i];
    }
    CHECK_NEAR(s / N, 0.5, 0.005);
    CHECK_NEAR(s2 / N, 1.0 / 3, 0.005);
    CHECK_NEAR(sn / N, 0, 0.01);
    CHECK_NEAR(sn2 / N, 1, 0.02);
    CHECK_NEAR(sd / N, 0.5, 0.005);
    CHECK_NEAR(sd2 / N, 1.0 / 3, 0.005);
    CHECK_NEAR(se2 / N, 1, 0.02);
    for (int64_t at = 0; at < 200; at += 7) {     /* an element depends on its index only */
        float part[100];
        double wide[100];
        opdi_fill_random(1, 100, part, 42, (uint64_t)at);
        CHECK(memcmp(part, g + at, sizeof part) == 0);
        opdi_fill_random(2, 100, wide, 42, (uint64_t)at);
        CHECK(memcmp(wide, d + at, sizeof wide) == 0);
    }
}

#if !defined(OPDI_APART)
/* Each name that >>stored lists is that of a built-in operator with a kernel of its own: the others never ask there. */
static bool has_kernel(const char *name) {
    char full[120];
    const int length = snprintf(full, sizeof full, "aten::%s", name);
    for (int i = 0; i < OPD_OP_COUNT; i++) {
        const opd_op *op = opd_op_builtin((opd_op_id)i);
        const char *text = op ? opd_op_name(op) : "";
        if (strncmp(text, full, (size_t)length) == 0 && (!text[length] || text[length] == '.') &&
            opdi_has_own_kernel(op)) { return true; }
    }
    return false;
}
TEST(operators_of_stored_dtypes_are_there) {
    int count = 0;
    for (size_t k = 0; k < sizeof opdi_stored_rows / sizeof *opdi_stored_rows; k++) {
        const char *at = opdi_stored_rows[k].names;
        for (at += strspn(at, " "); *at; at += strspn(at, " "), count++) {
            char name[100];
            const size_t length = strcspn(at, " ");
            CHECK_OR_RETURN(length < sizeof name);
            memcpy(name, at, length);
            name[length] = 0;
            if (!has_kernel(name)) { printf("%s\n", name); }
            CHECK(has_kernel(name));
            at += length;
        }
    }
    CHECK(count > 100);
}
#endif

/* A tensor of short floats whose bits are any, from its second element on: no vector begins where a line does. */
static opd_tensor *kn_shorts(int64_t n, opd_scalar_type dtype, bool finite) {
    const int64_t size = n + 1;
    opd_tensor *t = opd_tensor_new(opd_ints_of(&size, 1), dtype);
    for (int64_t i = 0; t && i < size; i++) {
        const float f = kn_random() * 4;
        const uint16_t bits = (uint16_t)(kn_random() * 65535.0f + 32768.0f);
        ((uint16_t *)(void *)t->data)[i] = !finite ? bits : dtype == OPD_FLOAT16 ? opdi_f32_to_f16(f)
            : opdi_f32_to_bf16(f);
    }
    return t ? opd_narrow(t, 0, 1, n) : NULL;
}
static float kn_widened(opd_scalar_type dtype, uint16_t half) {
    return dtype == OPD_FLOAT16 ? opdi_f16_to_f32(half) : opdi_bf16_to_f32(half);
}
/* Conversions between double and 16-bit floats round first to float, at every level of the processor, and those of every
   second element give the same bits.  1 + 2^-11 + 2^-40 rounds to 1, as in PyTorch. */
TEST(kernels_conversions_of_short_floats) {
    static const int64_t sizes[] = {0, 1, 7, 8, 15, 16, 17, 33, 513, 40003};
    const int known = opdi_cpu_level();
    for (int way = 0; way < 2 * 10 * 3; way++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = way & 1 ? OPD_BFLOAT16 : OPD_FLOAT16;
            const int64_t n = sizes[(way >> 1) % 10], two = 2 * n;
            opdi_cpu_known = OPDI_MIN(way / 20, known);
            opd_tensor *wide = opd_tensor_new(opd_ints_of(&two, 1), OPD_FLOAT64);
            double *const x = (double *)(void *)wide->data;
            const double tiny = ldexp(1, -40);
            for (int64_t i = 0; i < two; i++) { x[i] = ldexp((double)kn_random() + tiny, (int)(i * 7 % 60) - 40); }
            for (int64_t i = 0; i < two; i += 16) { x[i] = i % 32 ? 1 + ldexp(1, -11) + tiny : i % 64 ? -HUGE_VAL : 65520; }
            opd_tensor *every = opd_slice(wide, 0, OPD_V(0), OPD_V(two), 2);
            opd_tensor *got = opd_to_dtype(opd_narrow(wide, 0, 0, n), dtype), *second = opd_to_dtype(every, dtype),
                *back = opd_to_dtype(got, OPD_FLOAT64);
            int bad = 0;
            for (int64_t i = 0; i < n; i++) {
                const uint16_t half = ((const uint16_t *)(const void *)got->data)[i];
                const float a = (float)x[i], b = (float)x[2 * i];
                bad += half != (dtype == OPD_FLOAT16 ? opdi_f32_to_f16(a) : opdi_f32_to_bf16(a));
                bad += ((const uint16_t *)(const void *)opd_contiguous(second)->data)[i] !=
                    (dtype == OPD_FLOAT16 ? opdi_f32_to_f16(b) : opdi_f32_to_bf16(b));
                bad += ((const double *)(const void *)back->data)[i] != (double)kn_widened(dtype, half);
            }
            opdi_cpu_known = known;
            CHECK_INT(bad, 0);
            CHECK_OK();
        }
    }
}
/* Sums, differences and products of 16-bit floats equal those of float, rounded: NaN, infinity, denormals, also in
   place. */
TEST(kernels_arithmetic_of_short_floats) {
    static const int64_t sizes[] = {0, 1, 15, 16, 17, 64, 1000, 40003};
    for (int way = 0; way < 2 * 8 * 4; way++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = way & 1 ? OPD_BFLOAT16 : OPD_FLOAT16;
            const int64_t n = sizes[way >> 1 & 7];
            const int what = way >> 4;
            opd_tensor *x = kn_shorts(n, dtype, false), *y = kn_shorts(n, dtype, false), *kept = opd_clone(x);
            opd_tensor *to = what == 0 ? opd_add(x, y) : what == 1 ? opd_sub(x, y) : what == 2 ? opd_mul(x, y)
                : opd_mul_(x, y);
            int bad = 0;
            for (int64_t i = 0; to && i < n; i++) {
                const float a = kn_widened(dtype, ((const uint16_t *)(const void *)kept->data)[i]),
                    b = kn_widened(dtype, ((const uint16_t *)(const void *)y->data)[i]),
                    f = what == 0 ? a + b : what == 1 ? a - b : a * b,
                    g = kn_widened(dtype, ((const uint16_t *)(const void *)to->data)[i]);
                const uint16_t want = dtype == OPD_FLOAT16 ? opdi_f32_to_f16(f) : opdi_f32_to_bf16(f);
                if (f != f) { bad += g == g; }
                else { bad += ((const uint16_t *)(const void *)to->data)[i] != want; }
            }
            CHECK_INT(bad, 0);
            CHECK_OK();
        }
    }
}
/* Sums of all elements and of rows of 16-bit floats, and dot products of float16.  Infinity remains infinity. */
TEST(kernels_sums_of_short_floats) {
    static const int64_t sizes[] = {1, 63, 64, 65, 4096, 4160, 300001};
    for (int way = 0; way < 14; way++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = way & 1 ? OPD_BFLOAT16 : OPD_FLOAT16;
            const int64_t n = sizes[way >> 1], rows = n > 5000 ? 1 : 3, shape[2] = {rows, n}, last = 1;
            opd_tensor *x = kn_shorts(rows * n, dtype, true), *wide = opd_to_dtype(x, OPD_FLOAT64);
            opd_tensor *got = opd_sum_dim(opd_view(x, opd_ints_of(shape, 2)), opd_ints_of(&last, 1), false),
                *want = opd_sum_dim(opd_view(wide, opd_ints_of(shape, 2)), opd_ints_of(&last, 1), false);
            const float unit = dtype == OPD_FLOAT16 ? 0.001f : 0.008f;
            got = opd_to_dtype(got, OPD_FLOAT64);
            for (int64_t i = 0; got && want && i < rows; i++) {
                CHECK_NEAR(opd_data_f64(got)[i], opd_data_f64(want)[i], unit * (fabs(opd_data_f64(want)[i]) + 1));
            }
            ((uint16_t *)(void *)x->data)[n / 2] = dtype == OPD_FLOAT16 ? 0x7c00 : 0x7f80;
            got = opd_to_dtype(opd_sum(x), OPD_FLOAT64);
            CHECK(got && opd_data_f64(got)[0] == HUGE_VAL);
            CHECK_OK();
        }
    }
}
TEST(kernels_dots_of_float16) {
    static const int64_t sizes[] = {17, 63, 64, 65, 130, 1500};
    for (int way = 0; way < 24; way++) {
        OPD_SCOPE {
            const int64_t k = sizes[way / 4], few = 1 + way % 4, a[2] = {few, k}, b[2] = {37, k};
            opd_tensor *x = opd_view(kn_shorts(few * k, OPD_FLOAT16, true), opd_ints_of(a, 2)),
                *w = opd_view(kn_shorts(37 * k, OPD_FLOAT16, true), opd_ints_of(b, 2)),
                *got = opd_to_dtype(opd_mm(x, opd_t(w)), OPD_FLOAT64),
                *want = opd_mm(opd_to_dtype(x, OPD_FLOAT64), opd_t(opd_to_dtype(w, OPD_FLOAT64)));
            for (int64_t i = 0; got && want && i < few * 37; i++) {
                CHECK_NEAR(opd_data_f64(got)[i], opd_data_f64(want)[i], 0.001 * (fabs(opd_data_f64(want)[i]) + 1));
            }
            CHECK_OK();
        }
    }
}
/* Sums over columns equal sums in double: few and many columns, odd numbers of rows, strides, several dims. */
TEST(kernels_sums_of_columns) {
    static const int64_t shapes[][3] = {{64, 256, 64}, {3, 70, 8}, {2, 1000, 33}, {1, 67, 1500}, {5, 3, 9}, {2, 4, 1030},
                                        {7, 5, 1}, {1, 66, 1024}};
    for (int way = 0; way < 8 * 6; way++) {
        OPD_SCOPE {
            const int64_t *shape = shapes[way % 8];
            const int64_t dims[2] = {way / 8 % 2, 1}, ndims = way / 8 % 3 == 2 && dims[0] == 0 ? 2 : 1;
            opd_tensor *x = opd_tensor_new(opd_ints_of(shape, 3), OPD_FLOAT32);
            for (int64_t i = 0; x && i < x->numel; i++) { opd_data_f32(x)[i] = kn_random(); }
            if (way >= 24 && shape[2] > 2) { x = opd_slice(x, 2, opd_value_int(1), opd_value_int(shape[2]), 1); }
            opd_tensor *got = opd_sum_dim(x, opd_ints_of(dims, (int)ndims), false),
                *want = opd_sum_dim(opd_to_dtype(x, OPD_FLOAT64), opd_ints_of(dims, (int)ndims), false);
            int bad = 0;
            for (int64_t i = 0; got && want && i < got->numel; i++) {
                bad += !(fabs((double)opd_data_f32(got)[i] - opd_data_f64(want)[i]) <
                         2e-6 * (10 + fabs(opd_data_f64(want)[i])));
            }
            CHECK_INT(bad, 0);
            CHECK_OK();
        }
    }
}
/* Random numbers [n, h, l, d] of that dtype, in that order of memory or with h and l exchanged. */
static opd_tensor *kn_heads(int64_t n, int64_t h, int64_t l, int64_t d, bool turned, opd_scalar_type dtype) {
    opd_tensor *x = opd_to_dtype(opd_randn(turned ? OPD_INTS(n, l, h, d) : OPD_INTS(n, h, l, d), OPD_FLOAT32), dtype);
    return turned ? opd_transpose(x, 1, 2) : x;
}
/* The largest difference from b, where numbers are about 1, or of NULL and what is none. */
static double kn_apart(opd_tensor *a, opd_tensor *b) {
    opd_tensor *far = opd_abs(opd_sub(opd_to_dtype(opd_detach(a), OPD_FLOAT64), opd_to_dtype(opd_detach(b), OPD_FLOAT64)));
    opd_tensor *size = opd_add_Scalar(opd_abs(opd_to_dtype(opd_detach(b), OPD_FLOAT64)), opd_value_double(1));
    far = opd_max(opd_div(far, size));
    return far ? opd_item(far).u.d : HUGE_VAL;
}
/* Attention by blocks, and its derivative, equal attention computed with several operators, whose derivative is used
   when autograd records it. */
TEST(kernels_attention) {
    static const int64_t lines[] = {1, 5, 59, 60, 61, 121}, keys[] = {1, 7, 32, 65, 129}, depths[] = {1, 3, 16, 100};
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16, OPD_FLOAT16};
    static const double units[] = {3e-5, 1e-13, 1e-1, 1.2e-2};
    for (int way = 0; way < 40; way++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = dtypes[way % 4];
            const int64_t n = 1 + way % 2, h = 1 + way % 3, few = way % 5 ? h : 1, l = lines[way * 5 % 6],
                s = keys[way % 5], d = depths[way / 4 % 4];
            const bool causal = way % 7 < 2, turned = way % 9 < 4;
            const opd_value scale = way % 2 ? OPD_NONE : opd_value_double(-0.4);
            opd_tensor *q = kn_heads(n, h, l, d, turned, dtype), *k = kn_heads(n, few, s, d, turned, dtype),
                *v = kn_heads(n, few, s, d, !turned, dtype), *g = kn_heads(n, h, l, d, way % 4 == 1, dtype),
                *mask = NULL, *f[2], *got[3], *want[3], *more[3];
            if (!causal && way % 4 == 1) { mask = kn_heads(1, 1, l, s, false, dtype); }
            if (!causal && way % 4 == 2) { mask = opd_to_dtype(opd_randn(OPD_INTS(l, s), OPD_FLOAT32), dtype); }
            if (!causal && way % 4 == 3) { mask = kn_heads(n, h, l, 1, false, dtype); }
            if (!causal && way % 8 == 0) { mask = kn_heads(n, 1, 1, s, false, OPD_FLOAT32); }
            if (mask && way % 3 == 0) { (void)opd_fill_(opd_select(mask, -2, 0), opd_value_double(-HUGE_VAL)); }
            CHECK_INT(opd_scaled_dot_product_attention_math_full(want, q, k, v, mask, 0, causal, NULL, scale, true), 0);
            for (int threads = 1; threads < 4 && opd_ok(); threads += 2) {
                opd_threads_set(threads);
                more[0] = threads > 1 ? f[0] : NULL;
                CHECK_INT(opd_scaled_dot_product_flash_attention_for_cpu_full(f, q, k, v, 0, causal, mask, scale), 0);
                CHECK(opd_ok() && kn_apart(f[0], want[0]) <= units[way % 4] / 4);
                if (more[0]) { CHECK(opd_equal(more[0], f[0])); }
                CHECK_INT(opd_scaled_dot_product_flash_attention_for_cpu_backward_full(
                    threads > 1 ? more : got, g, q, k, v, f[0], f[1], 0, causal, mask, scale), 0);
                for (int i = 0; i < 3 && threads > 1 && opd_ok(); i++) { CHECK(opd_equal(got[i], more[i])); }
            }
            opd_threads_set(0);
            g = opd_tensor_set_requires_grad(opd_clone(g), true);
            CHECK_INT(opd_scaled_dot_product_flash_attention_for_cpu_backward_full(want, g, q, k, v, f[0], f[1], 0,
                                                                                  causal, mask, scale), 0);
            for (int i = 0; i < 3 && opd_ok(); i++) {
                CHECK(opd_tensor_requires_grad(want[i]) && !opd_tensor_requires_grad(got[i]));
                CHECK_INT(opd_dtype(got[i]), dtype);
                if (!(kn_apart(got[i], want[i]) <= units[way % 4])) {
                    printf("    way %d: derivative %d is %g off\n", way, i, kn_apart(got[i], want[i]));
                    CHECK(false);
                }
            }
            CHECK_OK();
        }
    }
}
/* The memory of attention's backward grows with rows and keys, but not with their product (which would take 8 MiB
   here). */
TEST(kernels_attention_backward_memory) {
    OPD_SCOPE {
        opd_tensor *in[3], *grads[3], *loss;
        for (int i = 0; i < 3; i++) {
            in[i] = opd_tensor_set_requires_grad(kn_heads(1, 2, 1024, 4, false, OPD_FLOAT32), true);
        }
        opd_threads_set(1);
        loss = opd_sum(opd_scaled_dot_product_attention(in[0], in[1], in[2], NULL, 0, false));
        opd_memory_reset_peak();
        const int64_t before = opd_memory_stats().live;
        CHECK_INT(opd_autograd_grad(&loss, 1, in, 3, NULL, grads), 0);
        CHECK(opd_memory_stats().peak - before < 2 << 20);
        CHECK_OK();
        opd_threads_set(0);
    }
}
/* Cumulative sums of several lines, some of them computed four at a time, have the same bits as those of single
   lines. */
TEST(kernels_running_sums) {
    for (int way = 0; way < 96; way++) {
        OPD_SCOPE {
            const int64_t rows = 1 + way % 12, n = way % 3 ? 1 + way * 7 % 40 : 0 + way % 2 * 2100 + 1;
            opd_tensor *x = opd_randn(OPD_INTS(rows, n + 3), OPD_FLOAT32), *got;
            const int kind = way / 12;                         /* whole, part of rows, one row again and again, in place .. */
            x = kind % 2 ? opd_narrow(x, 1, 2, n) : x;
            if (kind % 4 == 2) { x = opd_expand(opd_narrow(x, 0, 0, 1), OPD_INTS(rows, n + 3)); }
            if (kind == 7) { x = opd_unsqueeze(x, 1); }
            opd_tensor *was = opd_clone(x);
            opd_threads_set(1 + way % 3);
            got = opd_contiguous(kind % 4 == 3 ? opd_cumsum_(x, -1) : opd_cumsum(x, -1));
            opd_threads_set(0);
            was = opd_contiguous(was);
            int bad = 0;
            for (int64_t i = 0; opd_ok() && i < rows; i++) {
                const int64_t count = got->numel / rows;
                double sum = 0;
                for (int64_t j = 0; j < count; j++) {
                    sum += (double)opd_data_f32(was)[i * count + j];
                    bad += opdi_bits(opd_data_f32(got)[i * count + j]) != opdi_bits((float)sum);
                }
            }
            CHECK_INT(bad, 0);
            CHECK_OK();
        }
    }
}
/* Layer norm's backward over blocks of rows, compared with loops in double. */
TEST(kernels_layer_norm_backward) {
    static const int64_t rows[] = {1, 63, 64, 65, 131}, columns[] = {1, 15, 17, 600, 2049};
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16, OPD_FLOAT16};
    for (int way = 0; way < 5 * 5 * 4; way++) {
        OPD_SCOPE {
            const int64_t a = rows[way % 5], n = columns[way / 5 % 5], shape[2] = {a, n}, one[2] = {a, 1};
            const opd_scalar_type dtype = dtypes[way / 25];
            const double unit = dtype == OPD_FLOAT64 ? 1e-12 : dtype == OPD_FLOAT32 ? 1e-5
                : dtype == OPD_FLOAT16 ? 2e-3 : 1.6e-2;
            opd_tensor *x = opd_view(opd_to_dtype(kn_shorts(a * n, OPD_FLOAT16, true), dtype), opd_ints_of(shape, 2)),
                *g = opd_view(opd_to_dtype(kn_shorts(a * n, OPD_FLOAT16, true), dtype), opd_ints_of(shape, 2)),
                *w = opd_to_dtype(kn_shorts(n, OPD_FLOAT16, true), dtype), *got[3], *wide[3];
            opd_tensor *xd = opd_to_dtype(x, OPD_FLOAT64), *gd = opd_to_dtype(g, OPD_FLOAT64),
                *wd = opd_to_dtype(w, OPD_FLOAT64);
            const opd_scalar_type stat = dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
            opd_tensor *mean = opd_tensor_new(opd_ints_of(one, 2), stat),
                *rstd = opd_tensor_new(opd_ints_of(one, 2), stat);
            const bool mask[3] = {way % 3 != 1, way % 3 != 2, way % 3 == 0};
            double *dw = (double *)calloc((size_t)n, 8), *db = (double *)calloc((size_t)n, 8);
            for (int64_t i = 0; i < a; i++) {
                const double m = kn_random(), r = 1 + kn_random();
                if (stat == OPD_FLOAT64) {
                    opd_data_f64(mean)[i] = (double)(float)m;
                    opd_data_f64(rstd)[i] = (double)(float)r;
                } else {
                    opd_data_f32(mean)[i] = (float)m;
                    opd_data_f32(rstd)[i] = (float)r;
                }
            }
            CHECK_INT(opd_native_layer_norm_backward(got, g, x, opd_ints_of(&n, 1), mean, rstd, w, w,
                                                     opd_value_bools(mask, 3)), 0);
            for (int k = 0; k < 3 && opd_ok(); k++) {
                CHECK((got[k] != NULL) == mask[k]);
                wide[k] = got[k] ? opd_to_dtype(got[k], OPD_FLOAT64) : NULL;
            }
            opd_tensor *md = opd_to_dtype(mean, OPD_FLOAT64), *rd = opd_to_dtype(rstd, OPD_FLOAT64);
            int bad = 0;
            for (int64_t i = 0; i < a && opd_ok(); i++) {
                const double *xr = opd_data_f64(xd) + i * n, *gr = opd_data_f64(gd) + i * n, *wr = opd_data_f64(wd),
                    m = opd_data_f64(md)[i], r = opd_data_f64(rd)[i];
                double first = 0, second = 0;
                for (int64_t j = 0; j < n; j++) {
                    first += gr[j] * wr[j] / (double)n;
                    second += gr[j] * wr[j] * (xr[j] - m) * r / (double)n;
                    dw[j] += gr[j] * (xr[j] - m) * r;
                    db[j] += gr[j];
                }
                for (int64_t j = 0; j < n && wide[0]; j++) {
                    const double want = r * (gr[j] * wr[j] - first - (xr[j] - m) * r * second);
                    bad += !(fabs(opd_data_f64(wide[0])[i * n + j] - want) <= unit * (fabs(want) + 4));
                }
            }
            for (int64_t j = 0; j < n; j++) {
                if (wide[1]) { bad += !(fabs(opd_data_f64(wide[1])[j] - dw[j]) <= unit * (fabs(dw[j]) + 20)); }
                if (wide[2]) { bad += !(fabs(opd_data_f64(wide[2])[j] - db[j]) <= unit * (fabs(db[j]) + 20)); }
            }
            CHECK_INT(bad, 0);
            free(dw);
            free(db);
            CHECK_OK();
        }
    }
}

/* Element [i, j] of a matrix of any strides and a dtype that is no complex one. */
static double kn_at(const opd_tensor *t, int64_t i, int64_t j) {
    const int64_t at = i * opd_strides(t)[0] + j * opd_strides(t)[1];
    const char *from = (const char *)opd_data(t) + at * (int64_t)opd_dtype_size(opd_dtype(t));
    if (opd_dtype(t) == OPD_FLOAT64) { return *(const double *)(const void *)from; }
    if (opd_dtype(t) == OPD_INT64) { return (double)*(const int64_t *)(const void *)from; }
    if (opd_dtype(t) == OPD_BFLOAT16) { return (double)opdi_bf16_to_f32(*(const uint16_t *)(const void *)from); }
    return (double)*(const float *)(const void *)from;
}
/* Small whole numbers, whose sums are exact in every dtype. */
static opd_tensor *kn_whole(int64_t rows, int64_t columns, opd_scalar_type dtype) {
    return opd_to_dtype(opd_randint(100, OPD_INTS(rows, columns), OPD_INT64), dtype);
}
static int kn_sum_differs(const opd_tensor *sum, const opd_tensor *a, const opd_tensor *b) {
    int bad = !sum;
    for (int64_t i = 0; !bad && i < opd_size(sum, 0); i++) {
        for (int64_t j = 0; j < opd_size(sum, 1); j++) {
            bad += kn_at(sum, i, j) != kn_at(a, opd_size(a, 0) > 1 ? i : 0, opd_size(a, 1) > 1 ? j : 0) +
                kn_at(b, opd_size(b, 0) > 1 ? i : 0, opd_size(b, 1) > 1 ? j : 0);
        }
    }
    return bad;
}
/* Operands that are transposed, or one expanded number, with short and long rows. */
TEST(kernels_turned_and_repeated_operands) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_INT64, OPD_BFLOAT16};
    static const int64_t sizes[][2] = {{33, 70}, {64, 64}, {1, 40}, {130, 31}, {65, 129}, {200, 700}, {40, 2100}, {2100, 40}, {0, 64}};
    for (int way = 0; way < 9 * 4 * 2; way++) {
        OPD_SCOPE {
            const opd_scalar_type dtype = dtypes[way / 9 % 4];
            const int64_t rows = sizes[way % 9][0], columns = sizes[way % 9][1];
            opd_threads_set(1 + way / 36 * 2);
            opd_tensor *a = kn_whole(rows, columns, dtype), *b = opd_t(kn_whole(columns, rows, dtype));
            opd_tensor *part = opd_slice(opd_t(kn_whole(columns + 3, rows + 2, dtype)), 0, opd_value_int(1), opd_value_int(rows + 1), 1);
            part = opd_slice(part, 1, opd_value_int(2), opd_value_int(columns + 2), 1);
            opd_tensor *column = kn_whole(rows, 1, dtype), *row = kn_whole(1, columns, dtype), *other = kn_whole(rows, columns, OPD_FLOAT64);
            CHECK_INT(kn_sum_differs(opd_add(a, b), a, b), 0);
            CHECK_INT(kn_sum_differs(opd_add(b, a), b, a), 0);
            CHECK_INT(kn_sum_differs(opd_add(a, part), a, part), 0);
            CHECK_INT(kn_sum_differs(opd_add(b, part), b, part), 0);
            CHECK_INT(kn_sum_differs(opd_add(a, column), a, column), 0);
            CHECK_INT(kn_sum_differs(opd_add(column, row), column, row), 0);
            CHECK_INT(kn_sum_differs(opd_add(b, column), b, column), 0);
            CHECK_INT(kn_sum_differs(opd_add(other, b), other, b), 0);
            opd_tensor *three = opd_addcmul(a, b, part, OPD_V(1));          /* two are turned */
            opd_tensor *parts = opd_add(a, opd_mul(opd_contiguous(b), opd_contiguous(part)));
            CHECK(dtype == OPD_BFLOAT16 || opd_item(opd_all(opd_eq(three, parts))).u.i != 0);      /* rounded once, or twice */
            opd_tensor *into = opd_clone(a);
            CHECK_INT(kn_sum_differs(opd_add_(into, b), a, b), 0);
            CHECK_OK();
        }
    }
    opd_threads_set(0);
}
/* The same in three dims, of which the outermost, or the middle one, is the contiguous one. */
TEST(kernels_turned_operands_of_three_dims) {
    static const int64_t orders[][3] = {{2, 0, 1}, {0, 2, 1}, {1, 2, 0}, {2, 1, 0}};
    for (int way = 0; way < 4; way++) {
        OPD_SCOPE {
            const int64_t sizes[3] = {35, 37, 66};
            int64_t stored[3];
            for (int i = 0; i < 3; i++) { stored[orders[way][i]] = sizes[i]; }
            opd_tensor *a = opd_randn(opd_ints_of(sizes, 3), OPD_FLOAT32), *b = opd_randn(opd_ints_of(stored, 3), OPD_FLOAT32);
            opd_tensor *turned = opd_permute(b, opd_ints_of(orders[way], 3)), *got = opd_mul(a, turned);
            int bad = 0;
            for (int64_t i = 0; got && i < opd_numel(a); i++) {
                const int64_t x = i / 66 / 37, y = i / 66 % 37, z = i % 66;
                const float *bs = opd_data_f32(b);
                bad += opd_data_f32(got)[i] != opd_data_f32(a)[i] *
                    bs[x * opd_strides(turned)[0] + y * opd_strides(turned)[1] + z * opd_strides(turned)[2]];
            }
            CHECK_INT(bad, 0);
            CHECK_OK();
        }
    }
}
/* Minima and maxima with NaN and infinities at every place, zeros of both signs, and all lengths; and products. */
TEST(kernels_extremes_and_products) {
    for (int64_t n = 1; n < 210; n += n < 60 ? 13 : 1) {
        OPD_SCOPE {
            opd_tensor *x = opd_randn(OPD_INTS(1, n), OPD_FLOAT32), *factors = opd_add_Scalar(opd_mul_Scalar(x, OPD_V(0.1)), OPD_V(1));
            float most = -HUGE_VALF, least = HUGE_VALF;
            double product = 1;
            for (int64_t i = 0; i < n; i++) {
                most = OPDI_MAX(most, opd_data_f32(x)[i]);
                least = OPDI_MIN(least, opd_data_f32(x)[i]);
                product *= (double)opd_data_f32(factors)[i];
            }
            CHECK_NEAR(opd_item(opd_amax(x, OPD_INTS(1), false)).u.d, (double)most, 0);
            CHECK_NEAR(opd_item(opd_amin(x, OPD_INTS(1), false)).u.d, (double)least, 0);
            CHECK_NEAR(opd_item(opd_prod(factors)).u.d, product, 1e-6 * fabs(product));
            for (int64_t at = 0; at < n; at++) {
                const float kept = opd_data_f32(x)[at];
                opd_data_f32(x)[at] = NAN;
                CHECK(isnan(opd_item(opd_amax(x, OPD_INTS(1), false)).u.d) && isnan(opd_item(opd_amin(x, OPD_INTS(1), false)).u.d));
                opd_data_f32(x)[at] = HUGE_VALF;
                CHECK(opd_item(opd_amax(x, OPD_INTS(1), false)).u.d == HUGE_VAL && (n == 1 || opd_item(opd_amin(x, OPD_INTS(1), false)).u.d < 9));
                opd_data_f32(x)[at] = -HUGE_VALF;
                CHECK(opd_item(opd_amin(x, OPD_INTS(1), false)).u.d == -HUGE_VAL && (n == 1 || opd_item(opd_amax(x, OPD_INTS(1), false)).u.d > -9));
                opd_data_f32(x)[at] = kept;
                opd_tensor *zero = opd_clone(factors);
                opd_data_f32(zero)[at] = 0;
                CHECK(opd_item(opd_prod(zero)).u.d == 0);
                opd_data_f32(zero)[at] = NAN;
                CHECK(isnan(opd_item(opd_prod(zero)).u.d));
            }
            CHECK(isinf(opd_item(opd_amax(opd_full(OPD_INTS(n), OPD_V(-HUGE_VAL), OPD_FLOAT32), OPD_INTS(0), false)).u.d));
            CHECK_OK();
        }
    }
    OPD_SCOPE {                                   /* products go through numbers that floats do not hold */
        opd_tensor *x = opd_full(OPD_INTS(64), OPD_V(1), OPD_FLOAT32);
        for (int i = 0; i < 64; i++) { opd_data_f32(x)[i] = i < 32 ? 1e30f : 1e-30f; }
        CHECK_NEAR(opd_item(opd_prod(x)).u.d, 1, 1e-5);
    }
}
/* Concatenated rows of tensors: elements of one byte and of eight, narrow, wide, without elements, with several
   threads. */
TEST(kernels_joined_rows) {
    static const int64_t widths[][3] = {{1, 2, 3}, {64, 0, 33}, {100, 7, 300}, {1000, 3, 9000}, {512, 512, 1}};
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_BFLOAT16, OPD_FLOAT32, OPD_FLOAT64};
    for (int way = 0; way < 5 * 4 * 2; way++) {
        OPD_SCOPE {
            const int64_t *w = widths[way % 5], rows = way % 3 == 0 ? 1 : 70;
            const opd_scalar_type dtype = dtypes[way / 5 % 4];
            opd_threads_set(1 + way / 20 * 2);
            opd_tensor *list[4], *wide[3];
            for (int i = 0; i < 3; i++) {
                list[i] = kn_whole(rows, w[i], dtype);
                wide[i] = opd_to_dtype(list[i], OPD_FLOAT64);
            }
            list[3] = opd_to_dtype(opd_randn(OPD_INTS(0), OPD_FLOAT32), dtype);      /* is left out */
            opd_tensors all = {list, 4};
            opd_tensor *got = opd_to_dtype(opd_cat(all, 1), OPD_FLOAT64);
            int bad = !got || opd_size(got, 1) != w[0] + w[1] + w[2];
            for (int64_t i = 0; !bad && i < rows; i++) {
                int64_t at = 0;
                for (int k = 0; k < 3; k++) {
                    for (int64_t j = 0; j < w[k]; j++) { bad += kn_at(got, i, at++) != kn_at(wide[k], i, j); }
                }
            }
            CHECK_INT(bad, 0);
            CHECK_OK();
        }
    }
    opd_threads_set(0);
}
/* Softmax of columns with few and many rows: a column of -infinity, one with infinity, and one with NaN. */
TEST(kernels_softmax_of_columns) {
    static const int64_t sizes[][2] = {{1, 9}, {3, 16}, {15, 40}, {16, 257}, {17, 300}, {33, 8}, {70, 31}};
    for (int way = 0; way < 7 * 4; way++) {
        OPD_SCOPE {
            const int64_t rows = sizes[way % 7][0], columns = sizes[way % 7][1];
            const bool logarithm = way / 7 % 2 == 1, half = way / 14 == 1;
            opd_tensor *x = opd_mul_Scalar(opd_randn(OPD_INTS(rows, columns), OPD_FLOAT32), OPD_V(5));
            for (int64_t i = 0; i < rows; i++) { opd_data_f32(x)[i * columns + 3] = -HUGE_VALF; }
            opd_data_f32(x)[(rows - 1) * columns + 5] = NAN;
            opd_data_f32(x)[rows / 2 * columns + columns - 1] = -HUGE_VALF;
            x = opd_to_dtype(x, half ? OPD_BFLOAT16 : OPD_FLOAT32);
            opd_tensor *wide = opd_contiguous(opd_t(opd_to_dtype(x, OPD_FLOAT64)));
            opd_tensor *got = opd_to_dtype(logarithm ? opd_log_softmax(x, 0) : opd_softmax(x, 0), OPD_FLOAT64);
            opd_tensor *want = opd_t(logarithm ? opd_log_softmax(wide, 1) : opd_softmax(wide, 1));
            int bad = 0;
            for (int64_t i = 0; got && want && i < rows; i++) {
                for (int64_t j = 0; j < columns; j++) {
                    const double a = kn_at(got, i, j), b = kn_at(want, i, j);
                    bad += isnan(a) != isnan(b) || (isinf(b) ? a != b : fabs(a - b) > (half ? 0.01 : 2e-6) * (fabs(b) + (logarithm ? 1 : 0.1)));
                }
            }
            CHECK_INT(bad, 0);
            CHECK_OK();
        }
    }
}

/* Kernels for every level of instructions give nearly the same as the plain ones. */
static const char *const kn_level_calls[] = {
    "x.exp()", "x.log()", "x.log1p()", "x.expm1()", "x.tanh()", "x.erf()", "x.erfc()", "x.sigmoid()", "x.sin()", "x.cos()", "x.tan()",
    "x.exp2()", "x.log2()", "x.log10()", "x.sinh()", "x.cosh()", "x.atan()", "x.asinh()", "x.rsqrt()", "x.reciprocal()",
    "torch.nn.functional.gelu(x)", "torch.nn.functional.silu(x)", "torch.nn.functional.softplus(x)", "torch.nn.functional.mish(x)",
    "torch.nn.functional.elu(x)", "torch.nn.functional.logsigmoid(x)", "torch.fmod(x, y)", "torch.remainder(-x, y)", "torch.pow(x, y)",
    "torch.floor_divide(x, y)", "torch.atan2(x, y)", "torch.hypot(x, y)", "torch.logaddexp(x, y)", "torch.softmax(x, 0)", "torch.log_softmax(x, 0)",
    "torch.softmax(x, 1)", "torch.logsumexp(x, 0)", "torch.logsumexp(x, 1)", "x.sum()", "x.sum(0)", "x.sum(1)", "x.mean()", "x.var()", "x.prod(1)", "x.norm()", "x.cumsum(0)",
    "x.cumsum(1)", "x.amax()", "x.argmax()", "x.t().contiguous()", "x.half()", "x.half() * y.half()", "x.bfloat16() * y.bfloat16()",
    "torch.complex(x, y).sum().real", "torch.complex(x, y).reciprocal().real", "(torch.complex(x, y) * torch.complex(y, x)).imag",
    "(torch.complex(x, y) / torch.complex(y, x)).imag", "torch.complex(x, y).abs()", "torch.complex(x, y).sgn().real", "x @ y", "x.t() @ y", "x @ y.t()", "x @ y[0]", "x.t() @ y[0]", "x[:3] @ y", "x[:3] @ y.t()",
    "x[:3].half() @ y.half().t()", "x[:3].bfloat16() @ y.bfloat16().t()", "x.half() @ y.half()", "x.bfloat16() @ y.bfloat16()",
    "(x * 9).long() @ (y * 9).long()", "(x * 9).int() @ (y * 9).int()", "(x * 9).short() @ (y * 9).short()", "(x * 9).long() @ (y * 9).long()[0]",
    "torch.linalg.cholesky(x @ x.t() + torch.eye(52) * 60)", "torch.linalg.lu_factor(x)[0]", "torch.linalg.solve(x + torch.eye(52) * 60, y)",
    "torch.linalg.ldl_factor(x + x.t() + torch.eye(52) * 60)[0]", "torch.linalg.qr(x)[1].abs()", "torch.linalg.svdvals(x)",
    "torch.linalg.eigvalsh(x + x.t())", "torch.linalg.eigvals(x).abs().sort()[0]", "torch.linalg.inv(x + torch.eye(52) * 60)",
    "torch.linalg.det(x / 4)", "torch.fft.fft(x).real", "torch.fft.rfft2(x).imag", "torch.fft.irfft(torch.complex(x, y))",
    "torch.layer_norm(x, [52])", "torch.group_norm(x.view(2, 26, 52), 13)", "torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)",
    "torch.conv2d(x.view(1, 4, 26, 26), y[0, :36].view(1, 4, 3, 3))", "torch.conv1d(x.view(1, 52, 52), y.view(52, 52, 1))",
    "torch.max_pool2d(x.view(1, 4, 26, 26), [2, 2])", "torch.avg_pool2d(x.view(1, 4, 26, 26), [2, 2])",
    "torch.nn.functional.scaled_dot_product_attention(x, y, x)", "torch.cdist(x, y)", "torch.index_select(x, 0, torch.arange(9))",
    "torch.nn.functional.interpolate(x.view(1, 4, 26, 26), scale_factor=2.0, mode='bilinear')", "torch.sort(x, 1)[0]", "torch.where(x > y, x, y)", "x.gt(y)"};
TEST(kernels_levels) {
    const int known = opdi_cpu_level();
    CHECK(known >= 0);
    for (size_t i = 0; known > 0 && i < 2 * sizeof kn_level_calls / sizeof *kn_level_calls; i++) {
        OPD_SCOPED;
        const opd_scalar_type dtype = i % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
        char source[400];
        opd_manual_seed(7);
        const opd_value args[2] = {opd_value_tensor(opd_add_Scalar(opd_rand(OPD_INTS(52, 52), dtype), OPD_V(0.25))),
                                   opd_value_tensor(opd_add_Scalar(opd_rand(OPD_INTS(52, 52), dtype), OPD_V(0.25)))};
        opd_tensor *first = NULL;
        snprintf(source, sizeof source, "def f(x, y):\n    return %s\n", kn_level_calls[i / 2]);
        opd_script *script = opd_script_compile(source, NULL);
        CHECK_OK();
        for (int level = 0; script && level <= known; level++) {
            opd_value result;
            opdi_cpu_known = level;
            memset(&result, 0, sizeof result);
            const int rc = opd_script_run(script, "f", args, 2, &result);
            opdi_cpu_known = known;
            if (rc) { printf("%s: %s\n", kn_level_calls[i / 2], opd_error_message()); }
            CHECK_OK();
            if (rc) { opd_error_clear(); break; }
            const double close = strstr(source, "half") || strstr(source, "float16") ? 2e-2 : dtype == OPD_FLOAT64 ? 1e-11 : 1e-3;
            opd_tensor *wide = opd_to_dtype(result.u.t, OPD_FLOAT64);
            if (!first) { first = wide; }
            const double far = opd_item_f64(opd_max(opd_div(opd_abs(opd_sub(wide, first)), opd_add_Scalar(opd_abs(first), OPD_V(1)))));
            if (!(far <= close)) { printf("%s level %d of %s: %g\n", kn_level_calls[i / 2], level, opd_dtype_name(dtype), far); }
            CHECK(far <= close);
        }
        opd_script_free(script);
    }
}

CHECK_MAIN()
