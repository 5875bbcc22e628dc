//----------------------------------------------------------------------------------------------------------------------
//  >>kernels_h    threads, vectors, matrix products: types and macros for several files
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_KERNELS_H)
#define OPDI_KERNELS_H
#include "../dispatch/lean.h"
#include "../typed/typed.h"

/* The instructions that the processor has: the level (see opdi_cpu_level), and those for 32-bit words of smaller
   numbers, a sum of OPDI_HAS_... (see words.c).  -1: not determined yet.  OPDI_CPU_BY_THREAD: the level depends on the
   thread, because a thread has called opd_same_bits_set.  opdi_cpu_most is the level without opd_same_bits. */
#define OPDI_CPU_BY_THREAD (-2)
#define OPDI_HAS_PAIRS 1                          /* AVX512_BF16 */
#define OPDI_HAS_QUADS 2                          /* AVX512_VNNI */
#define OPDI_HAS_TILES 4                          /* AMX for bfloat16 and 8-bit integers */
#define OPDI_HAS_PERMISSION 8                     /* the operating system permits the use of tiles */
#define OPDI_HAS_FOURS 32                         /* AVX-VNNI */
#define OPDI_HAS_FAST_PAIRS 16                    /* pairs are faster than floats.  On Intel's processors they are
                                                     not: an instruction for pairs takes two cycles. */
#if defined(OPDI_DIVIDED)
extern OPDI_INTERNAL int opdi_cpu_known, opdi_cpu_most, opdi_words_known;
#else
static int opdi_cpu_known = -1, opdi_cpu_most = -1;
OPD_UNUSED static int opdi_words_known = -1;
#endif

//== threads ===========================================================================================================

/* Vector code is left out if the compiler does not optimise: then, code with intrinsics is slower than plain C and
   takes longer to compile. */
#if defined(__x86_64__) && defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(__TINYC__) && !defined(OPD_NO_SIMD)
#define OPDI_X86
#define OPDI_AVX2 __attribute__((target("avx2,fma")))
#if defined(__clang__)
#define OPDI_AVX512 __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq")))
#else
#define OPDI_AVX512 __attribute__((target("avx2,fma,avx512f,avx512bw,avx512vl,avx512dq,prefer-vector-width=512")))
#endif
#if defined(_WIN32) && !defined(__clang__)
/* gcc for Windows may place vectors of 32 and 64 bytes on the stack, which is only aligned to 16 bytes, and move them
   by instructions that need the larger alignment (GCC's bug 54412).  The assembler replaces these instructions. */
#define OPDI_UNALIGN(aligned, unaligned) ".macro " aligned " all:vararg\n" unaligned " \\all\n.endm\n"
__asm__(".ifndef opdi_moves\n.set opdi_moves, 1\n"
        OPDI_UNALIGN("vmovaps", "vmovups") OPDI_UNALIGN("vmovapd", "vmovupd") OPDI_UNALIGN("vmovdqa", "vmovdqu")
        OPDI_UNALIGN("vmovdqa32", "vmovdqu32") OPDI_UNALIGN("vmovdqa64", "vmovdqu64") ".endif\n");
#endif
/* Writes EAX to EDX of the instruction CPUID to r. */
static inline void opdi_cpu_leaf(uint32_t leaf, uint32_t part, uint32_t *r /*[4]*/) {
    __asm__ __volatile__("cpuid" : "=a"(r[0]), "=b"(r[1]), "=c"(r[2]), "=d"(r[3]) : "0"(leaf), "2"(part));
}
OPDI_INTERNAL int opdi_cpu_features(void);
/* On 64-bit ARM, level 1 is NEON, which every processor has: vectors of 16 bytes and 32 registers.  Its functions have
   `avx2` in their names, like all functions of level 1.  32-bit ARM runs plain C, because its NEON has no vectors of
   doubles and rounds denormals to 0.  Machines that store the highest byte first also run plain C. */
#elif defined(__aarch64__) && defined(__ARM_NEON) && defined(__GNUC__) && defined(__OPTIMIZE__) && \
    !defined(__AARCH64EB__) && !defined(__TINYC__) && !defined(OPD_NO_SIMD)
#define OPDI_NEON
#define OPDI_AVX2
/* In all other builds, the functions of level 1 are compiled for vectors of 32 bytes, which the compiler divides into
   smaller ones.  With opd_same_bits they give the bits of AVX2; otherwise, plain C is faster.  Lean programs have them
   only if OPD_NO_SIMD is defined. */
#elif defined(__GNUC__) && defined(__OPTIMIZE__) && !defined(__TINYC__) && \
    (!defined(OPD_LEAN) || defined(OPD_NO_SIMD))
#define OPDI_PORTABLE
#define OPDI_AVX2
/* Functions have vectors as arguments.  This is not restored, because gcc warns at the end of the file. */
#pragma GCC diagnostic ignored "-Wpsabi"
#endif
#if defined(OPDI_X86) || defined(OPDI_NEON) || defined(OPDI_PORTABLE)
#define OPDI_VECTORS
#endif
/* OPDI_WIDEST(level, avx512, other) is the function `avx512` if level is 2, else `other`, the function for level 1.
   ARM has no level 2. */
#if defined(OPDI_X86)
#define OPDI_WIDEST(level, avx512, other) ((level) == 2 ? avx512 : other)
#else
#define OPDI_WIDEST(level, avx512, other) (other)
#endif
/* OPDI_FMAF(level, a, b, c) is a * b + c for floats: rounded once at level 1 and above.  Level 0 rounds twice.  Level
   OPDI_ONCE rounds once without an instruction for it, for code that gives the same bits at every level. */
#define OPDI_ONCE (-1)
#if defined(OPDI_PORTABLE)
#define OPDI_FMAF(level, a, b, c) ((level) ? opdi_fused_f32(a, b, c) : (a) * (b) + (c))
#elif defined(__GNUC__) && !defined(__TINYC__)
#define OPDI_FMAF(level, a, b, c) \
    ((level) > 0 ? __builtin_fmaf(a, b, c) : (level) < 0 ? opdi_fused_f32(a, b, c) : (a) * (b) + (c))
#else
#define OPDI_FMAF(level, a, b, c) ((level) < 0 ? opdi_fused_f32(a, b, c) : (a) * (b) + (c))
#endif
/* Returns sum + a * b in the type OPDI_T: rounded once if every processor of the target can do so as fast, else twice.
   If gcc may fuse products and sums of expressions, it does so in some forms of a loop and not in others, so that one
   element could have different bits in two products. */
#if defined(__FP_FAST_FMA) && defined(__FP_FAST_FMAF)
#define OPDI_PLUS_PRODUCT(sum, a, b) ((OPDI_T)(sizeof(OPDI_T) == sizeof(float) \
    ? (double)__builtin_fmaf((float)(a), (float)(b), (float)(sum)) \
    : __builtin_fma((double)(a), (double)(b), (double)(sum))))
#else
#define OPDI_PLUS_PRODUCT(sum, a, b) ((sum) + (a) * (b))
#endif
/* Keeps the compiler from fusing `product`, a variable with a product, with a sum to which it is added. */
#if !defined(__GNUC__) || !(defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__FP_FAST_FMA))
#define OPDI_ROUND_FIRST(product) ((void)0)
#elif defined(OPDI_X86)
#define OPDI_ROUND_FIRST(product) __asm__("" : "+x"(product))
#elif defined(OPDI_NEON)
#define OPDI_ROUND_FIRST(product) __asm__("" : "+w"(product))
#else
#define OPDI_ROUND_FIRST(product) __asm__("" : "+m"(product))
#endif
OPDI_NOINLINE OPDI_INTERNAL int opdi_cpu_detect(void);
OPDI_LOOPS_BEGIN
/* Returns the level of the instructions that kernels use.  0: plain C.  1: AVX2 with FMA, or NEON.  2: AVX-512 F, BW,
   VL and DQ.  OPD_CPU_LEVEL in the environment may lower the level.  If opd_same_bits(), the level is 1, also with
   OPD_CPU_LEVEL=0, or 0 if the processor has no AVX2. */
OPDI_ALWAYS int opdi_cpu_level(void) {
    const int level = OPDI_LOAD(&opdi_cpu_known);
    return OPDI_LIKELY(level >= 0) ? level : opdi_cpu_detect();
}
OPDI_LOOPS_END
/* A range function works on the items from `begin` to `end` - 1.  `begin` is a multiple of the grain (see
   opdi_parallel_for); a range may span several grains. */
typedef void (*opdi_range_fn)(void *ctx, int64_t begin, int64_t end);
#define OPDI_SCRATCH_BYTES(bytes) (((bytes) + 63) & ~(size_t)63) /* bytes, rounded up to 64 */

//== vector math =======================================================================================================

#define OPDI_VSTEP 16
#define OPDI_MAGIC 12582912.0f                    /* 1.5 * 2^23: a float plus this number is rounded to an integer */
/* OPDI_LIMIT(number) is `number`.  gcc computes `x > limit ? limit : x` by one instruction, the smaller of two numbers,
   only if it does not know the value of `limit`; otherwise by four.  So this adds a zero that gcc does not know. */
#if defined(OPDI_X86) && !defined(__clang__)
static float opdi_zero __attribute__((used)) = 0.0f;
#define OPDI_LIMIT(number) ((number) + opdi_zero)
#else
#define OPDI_LIMIT(number) (number)
#endif
/* Rounds `sum` to its type, even if the compiler evaluates expressions with more digits (x87). */
#if FLT_EVAL_METHOD == 0 || FLT_EVAL_METHOD == 16
#define OPDI_ROUNDED(type, sum) (sum)
#else
OPDI_ALWAYS float opdi_rounded_float(float sum) {
    volatile float f = sum;
    return f;
}
OPDI_ALWAYS double opdi_rounded_double(double sum) {
    volatile double d = sum;
    return d;
}
#define OPDI_ROUNDED(type, sum) opdi_rounded_##type(sum)
#endif
OPDI_LOOPS_BEGIN
/* Returns a * b + c, rounded once.  The product is exact in double.  The sum is rounded to odd: if it is not exact, to
   the one of its two neighbours whose last bit is 1.  Rounding such a number to float is as good as rounding the exact
   sum (S. Boldo and G. Melquiond, Emulation of FMA and correctly rounded sums, 2008). */
OPDI_ALWAYS float opdi_fused_f32(float a, float b, float c) {
#if defined(__FP_FAST_FMAF)
    return __builtin_fmaf(a, b, c);
#else
    const double product = (double)a * (double)b, sum = OPDI_ROUNDED(double, product + (double)c);
    const double part = OPDI_ROUNDED(double, sum - product), other = OPDI_ROUNDED(double, sum - part);
    const double lost = OPDI_ROUNDED(double, OPDI_ROUNDED(double, product - other) +
                                     OPDI_ROUNDED(double, (double)c - part)) * sum;      /* above 0: too near to 0 */
    const int64_t bits = (int64_t)opdi_bits64(sum), even = ~bits & 1;
    return (float)opdi_double((uint64_t)(bits + (lost > 0.0 ? even : 0) - (lost < 0.0 ? even : 0)));
#endif
}
/* Returns r = x - n * ln 2, at most 0.347 in absolute value, for n = round(x / ln 2).  Sets the last 9 bits of *count
   to the last bits of n + 254.  `lv` is the level of instructions. */
#define OPDI_MAGIC_EXP (OPDI_MAGIC + 254)
OPDI_ALWAYS float opdi_exp_reduce(int lv, float x, uint32_t *count) {
    float t = OPDI_ROUNDED(float, OPDI_FMAF(lv, x, 1.44269504f, OPDI_MAGIC_EXP)), k = t - OPDI_MAGIC_EXP;
    float r = OPDI_FMAF(lv, k, -0.693359375f, x);
    *count = opdi_bits(t);
    return OPDI_FMAF(lv, k, 2.12194442e-4f, r);
}
OPDI_ALWAYS float opdi_select_f32(int condition, float a, float b) { return condition ? a : b; }
/* Return x, but at most `most`, or limited to [least, most].  They return NaN if x is NaN. */
OPDI_ALWAYS float opdi_at_most_f32(float x, float most) {
    const float limit = OPDI_LIMIT(most);
    return x > limit ? limit : x;
}
OPDI_ALWAYS float opdi_limited_f32(float x, float least, float most) {
    const float limit = OPDI_LIMIT(least), y = opdi_at_most_f32(x, most);
    return y < limit ? limit : y;
}
OPDI_ALWAYS float opdi_pow2(int32_t count) { return opdi_float((uint32_t)(count + 127) << 23); }
/* Returns e^r for |r| <= 0.35. */
OPDI_ALWAYS float opdi_exp_near(int lv, float r) {
    float q = OPDI_FMAF(lv, 0.00139505544f, r, 0.00836892892f);
    q = OPDI_FMAF(lv, q, r, 0.041666206f);
    q = OPDI_FMAF(lv, q, r, 0.166665182f);
    q = OPDI_FMAF(lv, q, r, 0.5f);
    return OPDI_FMAF(lv, q, r * r, r) + 1.0f;
}
/* Returns 2^n * e^r for |r| <= 0.35, where `count` ends with the last 9 bits of n + 254.  2^n is applied in two
   factors, so that very large and very small results are rounded only once. */
OPDI_ALWAYS float opdi_exp_scaled(int lv, float r, uint32_t count) {
    const uint32_t half = count >> 1;
    return opdi_exp_near(lv, r) * opdi_float(half << 23) * opdi_float((count - half) << 23);
}
/* Returns e^(x - less) for a small `less`. */
OPDI_ALWAYS float opdi_exp_less(int lv, float x, float less) {
    uint32_t count;
    x = opdi_limited_f32(x, -104.0f, 89.0f);
    const float r = opdi_exp_reduce(lv, x, &count) - less;
    return opdi_exp_scaled(lv, r, count);
}
OPDI_ALWAYS float opdi_exp1(int lv, float x) { return opdi_exp_less(lv, x, 0.0f); }
/* Returns log(m * 2^e) for m in [sqrt(1/2), sqrt(2)], where f = m - 1. */
OPDI_ALWAYS float opdi_log_core(int lv, float f, float e) {
    float p = OPDI_FMAF(lv, 0.0691537708f, f, -0.117898293f);
    p = OPDI_FMAF(lv, p, f, 0.118729778f);
    p = OPDI_FMAF(lv, p, f, -0.123843402f);
    p = OPDI_FMAF(lv, p, f, 0.142186567f);
    p = OPDI_FMAF(lv, p, f, -0.16669251f);
    p = OPDI_FMAF(lv, p, f, 0.200022265f);
    p = OPDI_FMAF(lv, p, f, -0.249999866f);
    p = OPDI_FMAF(lv, p, f, 0.333333105f);
    float z = f * f;
    float y = OPDI_FMAF(lv, e, -2.12194442e-4f, p * f * z);
    y = OPDI_FMAF(lv, -0.5f, z, y);
    return OPDI_FMAF(lv, e, 0.693359375f, f + y);
}
/* Splits a = m * 2^e, m in [sqrt(1/2), sqrt(2)): returns m - 1, and sets *exponent to e.  a is positive and finite. */
OPDI_ALWAYS float opdi_log_split(float a, float *exponent) {
    int tiny = opdi_bits(a) < 0x00800000u;       /* denormal */
    uint32_t bits = opdi_bits(opdi_select_f32(tiny, a * 8388608.0f, a)) - 0x3f3504f3u;
    *exponent = (float)(((int32_t)bits >> 23) - (23 & -tiny));
    return opdi_float((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
}
/* Returns log(a).  a is positive, finite and not denormal. */
OPDI_ALWAYS float opdi_log_normal1(int lv, float a) {
    const uint32_t bits = opdi_bits(a) - 0x3f3504f3u;
    return opdi_log_core(lv, opdi_float((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f, (float)((int32_t)bits >> 23));
}
/* Returns the logarithm y of a, or the logarithm of an `a` that is negative, 0, infinite or NaN. */
OPDI_ALWAYS float opdi_log_special(float a, float y) {
    y = opdi_select_f32(a < HUGE_VALF, y, a);              /* inf and NaN are returned */
    y = opdi_select_f32(a < 0.0f, NAN, y);
    return opdi_select_f32(a == 0.0f, -HUGE_VALF, y);
}
OPDI_ALWAYS float opdi_log1(int lv, float a) {
    float e;
    const float f = opdi_log_split(a, &e);
    return opdi_log_special(a, opdi_log_core(lv, f, e));
}
OPDI_LOOPS_END

//== double math =======================================================================================================

OPDI_LOOPS_BEGIN
/* Returns a if `condition` is true, else b, without a branch, which would keep clang from vectorising. */
OPDI_ALWAYS double opdi_select_f64(bool condition, double a, double b) {
    const uint64_t mask = condition ? ~(uint64_t)0 : 0;
    return opdi_double((opdi_bits64(a) & mask) | (opdi_bits64(b) & ~mask));
}
OPDI_LOOPS_END
/* OPDI_FMA returns a * b + c, rounded once. */
#if defined(__GNUC__) && !defined(__TINYC__)
#define OPDI_FMA(a, b, c) __builtin_fma(a, b, c)
#else
#define OPDI_FMA(a, b, c) fma(a, b, c)
#endif
#include "double_functions.typed.h"
/* The functions below compute e^x = 2^n * e^r, |r| <= ln(2) / 2, with a polynomial of degree 12 for e^r.  The error is
   at most 1 ulp. */
OPDI_LOOPS_BEGIN
/* Returns (e^r - 1 - r) / r^2.  The even and the odd powers of r are added separately: two short chains of operations
   take less time than a long one. */
OPDI_ALWAYS double opdi_exp_series(double r) {
    const double z = r * r;
    double even = OPDI_FMA(2.0975501691911855e-09, z, 2.755713230227415e-07);
    double odd = OPDI_FMA(2.5103137236375596e-08, z, 2.7557261085892016e-06);
    even = OPDI_FMA(even, z, 2.4801587429262468e-05);
    odd = OPDI_FMA(odd, z, 0.0001984126986986777);
    even = OPDI_FMA(even, z, 0.0013888888888855808);
    odd = OPDI_FMA(odd, z, 0.008333333333327598);
    even = OPDI_FMA(even, z, 0.04166666666666669);
    odd = OPDI_FMA(odd, z, 0.1666666666666667);
    return OPDI_FMA(OPDI_FMA(even, r, odd), r, 0.5);
}
OPDI_ALWAYS double opdi_exp1_f64(double x) {
    double t;
    const double from = OPDI_LIMIT(-746.0), to = OPDI_LIMIT(710.0), y = x > to ? to : x;
    const double r = opdi_exp_rest(y < from ? from : y, &t);
    return opdi_scale_f64(OPDI_FMA(opdi_exp_series(r), r * r, r) + 1.0, t);
}
/* Returns log(a) for a number that is positive, finite and not denormal. */
OPDI_ALWAYS double opdi_log_normal_f64(double a) {
    double e;
    const double m = opdi_split_f64(a, &e);
    return opdi_log_parts_f64(m - 1.0, e);
}
/* Returns (x / 2^less)^y.  For |x| = m * 2^e, log(m) / 2 is computed as s + s * (z / 3 + z^2 * P(z)) with s = (m - 1) /
   (m + 1) and z = s^2.  The logarithm, except for P, is computed with pairs of doubles, which have twice as many
   digits. */
OPDI_ALWAYS double opdi_pow1_f64(double x, double y, double less) {
    double e;
    const double m = opdi_split_f64(fabs(x), &e), f = m - 1.0, d = m + 1.0, d_low = m - (d - 1.0), inverse = 1.0 / d;
    const double s = f * inverse, s_low = OPDI_FMA(-s, d_low, OPDI_FMA(-s, d, f)) * inverse;
    const double z = s * s, z_low = OPDI_FMA(s, s, -z) + 2.0 * s * s_low;
    double p = 0.05381659858659186 * z + 0.05228114216719776;
    p = p * z + 0.05883408766858394;
    p = p * z + 0.06666648216187893;
    p = p * z + 0.07692307881234989;
    p = p * z + 0.09090909089824;
    p = p * z + 0.1111111111111423;
    p = p * z + 0.14285714285714282;
    p = p * z + 0.2;
    const double c = z * 0.3333333333333333, tail = p * (z * z), u = c + tail;
    const double u_low = ((c - u) + tail) + (OPDI_FMA(z, 0.3333333333333333, -c) +
                                             (z * 1.850371707708594e-17 + z_low * 0.3333333333333333));
    const double v = s * u, v_low = OPDI_FMA(s, u, -v) + (s * u_low + s_low * u);
    const double half = s + v, half_low = ((s - half) + v) + (v_low + s_low);
    const double l = half * 2.8853900817779268, l_low = OPDI_FMA(half, 2.8853900817779268, -l) +
        (half * 4.0710547481862066e-17 + half_low * 2.8853900817779268);
    e -= less;
    const double a = e + l, a_low = ((e - a) + l) + l_low;
    double w = y * a, w_low = OPDI_FMA(y, a, -w) + y * a_low;
    w = w > 1100.0 ? 1100.0 : w;
    w = w < -1100.0 ? -1100.0 : w;
    w_low = fabs(w) < 1100.0 ? w_low : 0.0;
    const double t = w + OPDI_MAGIC_EXP64, r = (w - (t - OPDI_MAGIC_EXP64)) + w_low;
    p = 2.5729344553786755e-11 * r + 4.455822025014915e-10;
    p = p * r + 7.054897292691627e-09;
    p = p * r + 1.0178057064573359e-07;
    p = p * r + 1.3215486808727859e-06;
    p = p * r + 1.5252733841601815e-05;
    p = p * r + 0.00015403530393370715;
    p = p * r + 0.0013333558146406436;
    p = p * r + 0.00961812910762848;
    p = p * r + 0.055504108664821625;
    p = p * r + 0.24022650695910072;
    p = p * r + 0.6931471805599453;
    const double power = opdi_scale_f64(p * r + 1.0, t), whole = y + OPDI_MAGIC_F64;
    const double odd = opdi_double(opdi_bits64(power) ^ opdi_bits64(whole) << 63);
    const double negative = whole - OPDI_MAGIC_F64 == y ? odd : (double)NAN;
    return x < 0.0 ? negative : power;
}
OPDI_LOOPS_END
/* They begin a definition in a text that CUDA has, too.  For CUDA, a large function is not inlined. */
#define OPDI_SHARED_TEXT static
#define OPDI_SHARED_LARGE static
#if !defined(OPD_NO_OPERATORS)
OPDI_LOOPS_BEGIN
/* Returns table[k] + x * table[k + 1] + x^2 * table[k + 2] + x^3 * table[k + 3], without the terms whose index is
   `count` or more.  `square` is x^2. */
OPDI_ALWAYS double opdi_terms(const double *table, int k, int count, double x, double square) {
    const double low = k + 1 < count ? OPDI_FMA(x, table[k + 1], table[k]) : table[k];
    if (k + 2 >= count) { return low; }
    return OPDI_FMA(square, k + 3 < count ? OPDI_FMA(x, table[k + 3], table[k + 2]) : table[k + 2], low);
}
/* Returns the sum over k < count of table[k] * x^k; count is at most 28.  If `count` is a constant, compilers leave no
   loops or branches. */
OPDI_ALWAYS double opdi_polynomial(const double *table, int count, double x) {
    const double square = x * x, fourth = square * square;
    double sum = 0;
    if (count > 24) { sum = opdi_terms(table, 24, count, x, square); }
    if (count > 20) { sum = OPDI_FMA(sum, fourth, opdi_terms(table, 20, count, x, square)); }
    if (count > 16) { sum = OPDI_FMA(sum, fourth, opdi_terms(table, 16, count, x, square)); }
    if (count > 12) { sum = OPDI_FMA(sum, fourth, opdi_terms(table, 12, count, x, square)); }
    if (count > 8) { sum = OPDI_FMA(sum, fourth, opdi_terms(table, 8, count, x, square)); }
    if (count > 4) { sum = OPDI_FMA(sum, fourth, opdi_terms(table, 4, count, x, square)); }
    return OPDI_FMA(sum, fourth, opdi_terms(table, 0, count, x, square));
}
OPDI_LOOPS_END
#define OPDI_POLYNOMIAL(table, x) opdi_polynomial(table, (int)(sizeof(table) / sizeof(double)), x)
#include "erfcx_scaled.typed.h"
OPDI_LOOPS_BEGIN
/* Returns exp(x^2) * erfc(x) for x >= 0: a polynomial in (x - 3.75) / (x + 3.75), divided by 1 + 2 * x. */
OPDI_ALWAYS double opdi_erfcx1_f64(double x) {
    const double more = 1.0 + 2.0 * x, over = 1.0 / ((x + 3.75) * more);
    return OPDI_POLYNOMIAL(opdi_erfcx_scaled, (x - 3.75) * more * over) * ((x + 3.75) * over);
}
/* Returns exp(-x^2), corrected by the rounding error of x^2. */
OPDI_ALWAYS double opdi_exp_square1_f64(double x) {
    const double square = x * x;
    return opdi_exp1_f64(-square) * (1.0 - OPDI_FMA(x, x, -square));
}
OPDI_LOOPS_END
#endif
/* Functions of one or two numbers: the C library's functions or, in the mode of same bits, functions without it. */
/* Returns whether this is the mode of same bits, so that functions without the C library are called. */
OPD_UNUSED OPDI_INTERNAL bool opdi_own_wanted(void);
OPD_UNUSED OPDI_INTERNAL double opdi_sin_f64(double x);
OPD_UNUSED OPDI_INTERNAL double opdi_cos_f64(double x);
OPD_UNUSED OPDI_INTERNAL double opdi_exp_f64(double x);
OPD_UNUSED OPDI_INTERNAL double opdi_expm1_f64(double x);
OPD_UNUSED OPDI_INTERNAL double opdi_log_f64(double x);
OPD_UNUSED OPDI_INTERNAL double opdi_log1p_f64(double x);
OPD_UNUSED OPDI_INTERNAL double opdi_erfc_f64(double x);
OPD_UNUSED OPDI_INTERNAL double opdi_sinh_f64(double x);
OPD_UNUSED OPDI_INTERNAL double opdi_cosh_f64(double x);
OPD_UNUSED OPDI_INTERNAL double opdi_tanh_f64(double x);
OPD_UNUSED OPDI_INTERNAL double opdi_tan_f64(double x);
OPD_UNUSED OPDI_INTERNAL double opdi_acos_f64(double x);
OPD_UNUSED OPDI_INTERNAL double opdi_pow_f64(double x, double y);
OPD_UNUSED OPDI_INTERNAL double opdi_hypot_f64(double x, double y);
OPD_UNUSED OPDI_INTERNAL double opdi_atan2_f64(double x, double y);

//== matrix product ====================================================================================================

#if defined(__GNUC__)
typedef uint32_t opdi_word32 __attribute__((may_alias));      /* an element of 4 bytes, of any type */
typedef uint64_t opdi_word64 __attribute__((may_alias));
#else
typedef uint32_t opdi_word32;
typedef uint64_t opdi_word64;
#endif
typedef void (*opdi_pack_fn)(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t nc, int64_t ld, void *out);
/* An operand, A or B, of a matrix product C.  `dtype` is the dtype of C; if C is float, it may also be OPD_FLOAT16 or
   OPD_BFLOAT16.  rs and cs are the distances from one row to the next and from one column to the next, in elements.

   If `pack` is set (only for B), `data` is not used: the function `pack` writes out[t * ld + j] = B[k0 + t, j0 + j] for
   t < kc and j < nc, nc <= ld, and may write anything into columns nc <= j < ld.

   If `at` is also set, row k of B begins at element at[k] of `data`, and is contiguous.  Then most products read B
   there, without packing it, and read up to OPDI_MAX_NR elements after the end of a row. */
typedef struct opdi_gemm_in {
    const void *data;
    int dtype;
    int64_t rs, cs;
    opdi_pack_fn pack;
    void *ctx;
    const int64_t *at;
    bool exact;                                   /* true: all floats of the operand are representable in bfloat16 */
} opdi_gemm_in;
/* Computes a tile: product[r * ldc + j] = (or += if `add`) sum over t < kc of rows[r][t * csa] * second[t * ldb +
   j], for r < MR and j < NR. */
typedef void opdi_micro_fn(int64_t kc, const void *const *rows, int64_t csa, const void *second, int64_t ldb,
                           void *product, int64_t ldc, int add);
/* The same for a second operand whose row t begins at second[at[t]]. */
typedef void opdi_micro_at_fn(int64_t kc, const void *const *rows, int64_t csa, const void *second, const int64_t *at,
                              void *product, int64_t ldc, int add);
/* kc: the largest number of rows of a panel.  run_few: computes the first four rows of a tile; may be NULL. */
typedef struct opdi_micro {
    opdi_micro_fn *run;
    int64_t mr, nr, kc;
    opdi_micro_at_fn *run_at;
    opdi_micro_fn *run_few;
} opdi_micro;
/* Computes the dot products of a few rows few[i] and of four rows many[j], all of `depth` elements: sums[4 * i + j] =
   few[i] . many[j].  The number of rows in `few` depends on the function. */
typedef void opdi_dots_fn(int64_t depth, const void *const *few, const void *const *many, void *sums);
#define OPDI_MAX_MR 8
#define OPDI_MAX_NR 32
#if defined(OPDI_X86) || defined(OPDI_PORTABLE)
typedef uint32_t opdi_v8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint64_t opdi_v4w __attribute__((vector_size(32), aligned(8), may_alias));
typedef float opdi_v8f __attribute__((vector_size(32), aligned(4), may_alias));
typedef double opdi_v4d __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint16_t opdi_v8h __attribute__((vector_size(16), aligned(2), may_alias));
#endif
#if defined(OPDI_X86)
typedef uint32_t opdi_v16u __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint64_t opdi_v8w __attribute__((vector_size(64), aligned(8), may_alias));
typedef float opdi_v16f __attribute__((vector_size(64), aligned(4), may_alias));
typedef double opdi_v8d __attribute__((vector_size(64), aligned(8), may_alias));
/* OPDI_ASM_FMA adds the products a * b to c, lane by lane.  It uses assembly, because compilers do not contract a * b +
   c to this instruction in ISO mode (-std=c11). */
#define OPDI_ASM_FMA(s, c, a, b) __asm__("vfmadd231" s " {%2, %1, %0|%0, %1, %2}" : "+v"(c) : "v"(a), "v"(b))
/* OPDI_ASM_SPLAT sets all lanes of x to the number at p.  OPDI_ASM_ONE prepares x for OPDI_ASM_FMA_ONE(s, c, x, b),
   which adds the products of the number at p and b to c. */
#define OPDI_ASM_SPLAT(s, x, p) __asm__("vbroadcasts" s " {%1, %0|%0, %1}" : "=v"(x) : "m"(*(p)))
#define OPDI_ASM_ONE OPDI_ASM_SPLAT
#define OPDI_ASM_FMA_ONE OPDI_ASM_FMA
/* OPDI_ASM_FMA_AT adds the products of b and the number at p to c.  b and c are AVX-512 vectors of `lanes` numbers, "8"
   or "16". */
#define OPDI_ASM_FMA_AT(s, lanes, c, b, p) \
    __asm__("vfmadd231p" s " {%2%{1to" lanes "%}, %1, %0|%0, %1, %2%{1to" lanes "%}}" : "+v"(c) : "v"(b), "m"(*(p)))
#define OPDI_ASM_STREAM(s, p, x) __asm__("vmovntp" s " {%1, %0|%0, %1}" : "=m"(*(p)) : "v"(x))
#define OPDI_STREAM_END __builtin_ia32_sfence()
/* OPDI_ASM_ROOT sets r to the square roots of x, OPDI_ASM_ROOT_OF replaces r by its square roots.  OPDI_ASM_MAX sets r
   to the larger of x and r in each lane; if one of them is NaN, r is unchanged. */
#define OPDI_ASM_ROOT(s, r, x) __asm__("vsqrtp" s " {%1, %0|%0, %1}" : "=x"(r) : "x"(x))
#define OPDI_ASM_ROOT_OF(s, r) __asm__("vsqrtp" s " {%0, %0|%0, %0}" : "+x"(r))
#define OPDI_ASM_MAX(s, r, x) __asm__("vmaxp" s " {%0, %1, %0|%0, %1, %0}" : "+x"(r) : "x"(x))
/* Converts half a vector of floats in memory to a vector of doubles. */
#define OPDI_ASM_TO_DOUBLE(x, floats) __asm__("vcvtps2pd {%1, %0|%0, %1}" : "=v"(x) : "m"(floats))
/* Converts float16 to float and back, rounded to nearest.  Every processor with AVX2 has these instructions (F16C). */
#define OPDI_ASM_WIDEN(x, halves) __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=v"(x) : "m"(halves))
/* Converts 16-bit integers to 32-bit integers, times 2^16: bfloat16 to the bits of floats. */
#define OPDI_ASM_WIDEN_BF16(words, halves) { \
        __asm__("vpmovzxwd {%1, %0|%0, %1}" : "=v"(words) : "m"(halves)); \
        words <<= 16; \
    }
#define OPDI_ASM_NARROW(halves, x) __asm__("vcvtps2ph {$0, %1, %0|%0, %1, 0}" : "=v"(halves) : "v"(x))
/* OPDI_ASM_FROM_INT8 and OPDI_ASM_FROM_UINT8 widen 16 int8 or uint8 in memory to int16. */
#define OPDI_ASM_FROM_INT8(h, p) __asm__("vpmovsxbw {%1, %0|%0, %1}" : "=x"(h) : "m"(*(const opdi_v16b *)(p)))
#define OPDI_ASM_FROM_UINT8(h, p) __asm__("vpmovzxbw {%1, %0|%0, %1}" : "=x"(h) : "m"(*(const opdi_v16b *)(p)))
/* OPDI_ASM_WHOLES sets each int32 of c to the sum of two products.  Their factors are the two int16 in the same 32-bit
   lane of a and of b. */
#define OPDI_ASM_WHOLES(c, a, b) __asm__("vpmaddwd {%2, %1, %0|%0, %1, %2}" : "=x"(c) : "x"(a), "x"(b))
/* OPDI_ASM_PAIRS adds two products to each float of c.  Their factors are the two bfloat16 in the same 32-bit lane of a
   and of b. */
#if defined(__clang__) ? __clang_major__ >= 9 : __GNUC__ >= 10
#define OPDI_WORDS
#define OPDI_ASM_PAIRS(c, a, b) __asm__("vdpbf16ps {%2, %1, %0|%0, %1, %2}" : "+v"(c) : "v"(a), "v"(b))
/* OPDI_ASM_NARROW_BF16 rounds floats to bfloat16. */
#define OPDI_ASM_NARROW_BF16(halves, x) __asm__("vcvtneps2bf16 {%1, %0|%0, %1}" : "=v"(halves) : "v"(x))
/* OPDI_ASM_QUADS adds four products to each int32 of c.  Their factors are the four uint8 in the same 32-bit lane of a,
   and the four int8 in that lane of b. */
#define OPDI_ASM_QUADS(c, a, b) __asm__("vpdpbusd {%2, %1, %0|%0, %1, %2}" : "+v"(c) : "v"(a), "v"(b))
/* The same for vectors of 32 bytes, on processors with AVX-VNNI, which need not have AVX-512. */
#if defined(__clang__) ? __clang_major__ >= 12 && !defined(__apple_build_version__) : __GNUC__ >= 11
#define OPDI_FOURS __attribute__((target("avx2,fma,avxvnni")))
#define OPDI_ASM_FOURS(c, a, b) \
    __asm__("%{vex%} vpdpbusd {%2, %1, %0|%0, %1, %2}" : "+x"(c) : "x"(a), "x"(b))
#endif
#if defined(__linux__)
#define OPDI_AMX
#define OPDI_AMX_ROWS 32                          /* rows of a panel of A in products with tiles: two tiles */
#define OPDI_AMX_LONG 1024                        /* largest depth of a block, in words, if one side has few rows */
/* The instructions are written as bytes, because old assemblers do not know them.  `tile`, `a` and `b` are numbers of
   tiles, from 0 to 7.  The rows of the tile in memory begin at `at` and are `step` bytes apart. */
#define OPDI_AMX_LOAD(tile, at, step)             /* tileloadd (at,step), tile */ \
    __asm__ volatile(".byte 0xc4, 0xe2, 0x7b, 0x4b, 0x04 + 8 * " #tile ", 0x08" : : "a"(at), "c"(step) : "memory")
#define OPDI_AMX_STORE(tile, at, step)            /* tilestored tile, (at,step) */ \
    __asm__ volatile(".byte 0xc4, 0xe2, 0x7a, 0x4b, 0x04 + 8 * " #tile ", 0x08" : : "a"(at), "c"(step) : "memory")
#define OPDI_AMX_ZERO(tile)                       /* tilezero tile */ \
    __asm__ volatile(".byte 0xc4, 0xe2, 0x7b, 0x49, 0xc0 + 8 * " #tile)
#define OPDI_AMX_PAIRS(tile, a, b)                /* tdpbf16ps b, a, tile */ \
    __asm__ volatile(".byte 0xc4, 0xe2, 0x7a - 8 * " #b ", 0x5c, 0xc0 + 8 * " #tile " + " #a)
#define OPDI_AMX_QUADS(tile, a, b)                /* tdpbusd b, a, tile: a without signs, b with */ \
    __asm__ volatile(".byte 0xc4, 0xe2, 0x79 - 8 * " #b ", 0x5e, 0xc0 + 8 * " #tile " + " #a)
#define OPDI_AMX_QUADS_OF(tile, a, b)             /* tdpbsud b, a, tile: a with signs, b without */ \
    __asm__ volatile(".byte 0xc4, 0xe2, 0x7a - 8 * " #b ", 0x5e, 0xc0 + 8 * " #tile " + " #a)
#define OPDI_AMX_CONFIGURE(at)                    /* ldtilecfg (at) */ \
    __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0x00" : : "a"(at) : "memory")
#define OPDI_AMX_RELEASE()                        /* tilerelease */ \
    __asm__ volatile(".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0")

/* What ldtilecfg reads: the number of rows of each tile, and of the bytes in a row. */
typedef struct opdi_amx_config { uint8_t palette, start, reserved[14]; uint16_t bytes[16]; uint8_t rows[16]; }
    opdi_amx_config;
#endif
#endif
typedef uint16_t opdi_v16h __attribute__((vector_size(32), aligned(2), may_alias));
#elif defined(OPDI_NEON)
typedef uint32_t opdi_v4u __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t opdi_v2w __attribute__((vector_size(16), aligned(8), may_alias));
typedef double opdi_v2d __attribute__((vector_size(16), aligned(8), may_alias));
typedef uint16_t opdi_v4h __attribute__((vector_size(8), aligned(2), may_alias));
/* The same OPDI_ASM_ macros, for NEON.  OPDI_ASM_ONE loads the number only into the first lane of x, from which
   OPDI_ASM_FMA_ONE takes it.  OPDI_ASM_STREAM writes as usual, not past the caches. */
/* OPDI_ASM_DOTS adds four products to each int32 of c, of the int8 in the same 32-bit lane of a and of b.  OPDI_ASM_DOT
   multiplies all lanes of a by one lane of b.  Not every processor has these instructions: see opdi_cpu_words.
   OPDI_DOT is before functions that use them.  (gcc cannot compile such functions for ARMv8.3 if it may not use the
   instructions in other functions, too.) */
#if defined(__clang__)
#define OPDI_DOT __attribute__((target("dotprod")))
#elif defined(__ARM_FEATURE_DOTPROD)
#define OPDI_DOT
#elif !defined(__ARM_FEATURE_COMPLEX)
#define OPDI_DOT __attribute__((target("arch=armv8.2-a+dotprod")))
#endif
#define OPDI_ASM_DOTS(c, a, b) __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(c) : "w"(a), "w"(b))
#define OPDI_ASM_DOT(c, a, b, lane) __asm__("sdot %0.4s, %1.16b, %2.4b[" #lane "]" : "+w"(c) : "w"(a), "w"(b))
#define OPDI_ASM_FLOATS(f, c) __asm__("scvtf %0.4s, %1.4s" : "=w"(f) : "w"(c))
#define OPDI_ASM_LANES(x) (sizeof(x) / sizeof((x)[0]))
#define OPDI_ASM_FMA(s, c, a, b) { \
        if (OPDI_ASM_LANES(c) == 4) { __asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(c) : "w"(a), "w"(b)); } \
        else { __asm__("fmla %0.2d, %1.2d, %2.2d" : "+w"(c) : "w"(a), "w"(b)); } \
    }
#define OPDI_ASM_FMA_ONE(s, c, a, b) { \
        if (OPDI_ASM_LANES(c) == 4) { __asm__("fmla %0.4s, %2.4s, %1.s[0]" : "+w"(c) : "w"(a), "w"(b)); } \
        else { __asm__("fmla %0.2d, %2.2d, %1.d[0]" : "+w"(c) : "w"(a), "w"(b)); } \
    }
#define OPDI_ASM_SPLAT(s, x, p) { \
        if (OPDI_ASM_LANES(x) == 4) { __asm__("ld1r {%0.4s}, %1" : "=w"(x) : "Q"(*(p))); } \
        else { __asm__("ld1r {%0.2d}, %1" : "=w"(x) : "Q"(*(p))); } \
    }
#define OPDI_ASM_ONE(s, x, p) { \
        if (OPDI_ASM_LANES(x) == 4) { __asm__("ldr %s0, %1" : "=w"(x) : "m"(*(p))); } \
        else { __asm__("ldr %d0, %1" : "=w"(x) : "m"(*(p))); } \
    }
#define OPDI_ASM_STREAM(s, p, x) *(p) = (x)
#define OPDI_STREAM_END (void)0
#define OPDI_ASM_ROOT(s, r, x) { \
        if (OPDI_ASM_LANES(r) == 4) { __asm__("fsqrt %0.4s, %1.4s" : "=w"(r) : "w"(x)); } \
        else { __asm__("fsqrt %0.2d, %1.2d" : "=w"(r) : "w"(x)); } \
    }
#define OPDI_ASM_ROOT_OF(s, r) OPDI_ASM_ROOT(s, r, r)
#define OPDI_ASM_MAX(s, r, x) { \
        opdi_v4u larger; \
        if (OPDI_ASM_LANES(r) == 4) { __asm__("fcmgt %0.4s, %1.4s, %2.4s" : "=w"(larger) : "w"(x), "w"(r)); } \
        else { __asm__("fcmgt %0.2d, %1.2d, %2.2d" : "=w"(larger) : "w"(x), "w"(r)); } \
        __asm__("bit %0.16b, %1.16b, %2.16b" : "+w"(r) : "w"(x), "w"(larger)); \
    }
#define OPDI_ASM_WIDEN(x, halves) __asm__("fcvtl %0.4s, %1.4h" : "=w"(x) : "w"(halves))
#define OPDI_ASM_WIDEN_BF16(words, halves) __asm__("shll %0.4s, %1.4h, #16" : "=w"(words) : "w"(halves))
#define OPDI_ASM_NARROW(halves, x) __asm__("fcvtn %0.4h, %1.4s" : "=w"(halves) : "w"(x))
#elif defined(OPDI_PORTABLE)
/* The same OPDI_ASM_ macros without assembly, lane by lane.  OPDI_EACH_LANE repeats a statement for each lane of x. */
#define OPDI_EACH_LANE(x, ...) \
    for (size_t opdi_at = 0; opdi_at < sizeof(x) / sizeof((x)[0]); opdi_at++) { __VA_ARGS__; }
#define OPDI_ASM_FMA(s, c, a, b) { \
        const __typeof__(c) opdi_a = (a), opdi_b = (b); \
        OPDI_EACH_LANE(c, opdi_fuse_lane(sizeof((c)[0]), &(c), &opdi_a, &opdi_b, opdi_at)) \
    }
#define OPDI_ASM_FMA_ONE OPDI_ASM_FMA
#define OPDI_ASM_TO_DOUBLE(x, floats) OPDI_EACH_LANE(x, (x)[opdi_at] = (double)(floats)[opdi_at])
#define OPDI_ASM_SPLAT(s, x, p) OPDI_EACH_LANE(x, (x)[opdi_at] = *(p))
#define OPDI_ASM_ONE OPDI_ASM_SPLAT
#define OPDI_ASM_STREAM(s, p, x) *(p) = (x)
#define OPDI_STREAM_END (void)0
#define OPDI_ASM_ROOT(s, r, x) OPDI_EACH_LANE(x, (r)[opdi_at] = OPDI_ROOT_LANE((x)[opdi_at]))
#define OPDI_ROOT_LANE(x) (sizeof(x) == 4 ? (double)sqrtf((float)(x)) : sqrt((double)(x)))
#define OPDI_ASM_ROOT_OF(s, r) OPDI_ASM_ROOT(s, r, r)
#define OPDI_ASM_MAX(s, r, x) OPDI_EACH_LANE(x, if ((x)[opdi_at] > (r)[opdi_at]) { (r)[opdi_at] = (x)[opdi_at]; })
#define OPDI_ASM_WIDEN(x, halves) { \
        const opdi_v8h opdi_halves = (halves); \
        OPDI_EACH_LANE(x, (x)[opdi_at] = opdi_f16_to_f32(opdi_halves[opdi_at])) \
    }
#define OPDI_ASM_WIDEN_BF16(words, halves) { \
        const opdi_v8h opdi_halves = (halves); \
        OPDI_EACH_LANE(words, (words)[opdi_at] = (uint32_t)opdi_halves[opdi_at] << 16) \
    }
#define OPDI_ASM_NARROW(halves, x) { \
        const opdi_v8f opdi_wide = (x); \
        OPDI_EACH_LANE(opdi_wide, (halves)[opdi_at] = opdi_f32_to_f16(opdi_wide[opdi_at])) \
    }
OPDI_LOOPS_BEGIN
/* Adds the product of lane `at` of a and b to lane `at` of c.  `size` is the size of a lane, 4 or 8. */
OPDI_ALWAYS void opdi_fuse_lane(size_t size, void *c, const void *a, const void *b, size_t at) {
    if (size == 4) {
        float *const sum = (float *)c + at;
        *sum = opdi_fused_f32(((const float *)a)[at], ((const float *)b)[at], *sum);
    } else {
        double *const sum = (double *)c + at;
        *sum = OPDI_FMA(((const double *)a)[at], ((const double *)b)[at], *sum);
    }
}
OPDI_LOOPS_END
#endif
OPDI_LOOPS_BEGIN
/* Returns the size of elements that are packed without conversion, or 0 for half precision, which is converted to
   float. */
static inline size_t opdi_gemm_moved(const opdi_gemm_in *in) {
    return in->dtype == OPD_FLOAT32 || in->dtype == OPD_INT32 ? 4
        : in->dtype == OPD_FLOAT64 || in->dtype == OPD_INT64 ? 8 : 0;
}
OPDI_LOOPS_END
#if defined(OPDI_VECTORS)
typedef float opdi_v4f __attribute__((vector_size(16), aligned(4), may_alias));
#endif
#if defined(OPDI_X86) || defined(OPDI_NEON)
typedef int opdi_v4i __attribute__((vector_size(16)));
#if defined(__clang__)
#define OPDI_MIX4(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define OPDI_MIX4(a, b, i, j, k, l) __builtin_shuffle(a, b, mix_##i##j##k##l)
#endif
OPDI_LOOPS_BEGIN
/* Transposes a 4 x 4 block of 4-byte elements: out[t * ld + j] = pj[t] for t, j < 4. */
static inline void opdi_transpose4(const void *p0, const void *p1, const void *p2, const void *p3, void *to,
                                   int64_t ld) {
    opdi_word32 *const out = (opdi_word32 *)to;
#if !defined(__clang__)
    const opdi_v4i mix_0415 = {0, 4, 1, 5}, mix_2637 = {2, 6, 3, 7};
#endif
    opdi_v4f row0 = *(const opdi_v4f *)p0, row1 = *(const opdi_v4f *)p1;
    opdi_v4f row2 = *(const opdi_v4f *)p2, row3 = *(const opdi_v4f *)p3;
    opdi_v4f even = OPDI_MIX4(row0, row2, 0, 4, 1, 5), even2 = OPDI_MIX4(row0, row2, 2, 6, 3, 7);
    opdi_v4f odd = OPDI_MIX4(row1, row3, 0, 4, 1, 5), odd2 = OPDI_MIX4(row1, row3, 2, 6, 3, 7);
    *(opdi_v4f *)(void *)out = OPDI_MIX4(even, odd, 0, 4, 1, 5);
    *(opdi_v4f *)(void *)(out + ld) = OPDI_MIX4(even, odd, 2, 6, 3, 7);
    *(opdi_v4f *)(void *)(out + 2 * ld) = OPDI_MIX4(even2, odd2, 0, 4, 1, 5);
    *(opdi_v4f *)(void *)(out + 3 * ld) = OPDI_MIX4(even2, odd2, 2, 6, 3, 7);
}
OPDI_LOOPS_END
#else
OPDI_LOOPS_BEGIN
static inline void opdi_transpose4(const void *p0, const void *p1, const void *p2, const void *p3, void *to,
                                   int64_t ld) {
    opdi_word32 *out = (opdi_word32 *)to;
    for (int step = 0; step < 4; step++, out += ld) {
        out[0] = ((const opdi_word32 *)p0)[step];
        out[1] = ((const opdi_word32 *)p1)[step];
        out[2] = ((const opdi_word32 *)p2)[step];
        out[3] = ((const opdi_word32 *)p3)[step];
    }
}
OPDI_LOOPS_END
#endif
typedef struct opdi_gemm_job {
    opdi_micro mk;
    int dtype;                                    /* the dtype of C */
    size_t size;
    opdi_gemm_in a, b;                            /* a describes A transposed: rs is the step along k, cs the step along
                                                     the rows */
    char *c;
    int64_t rsc, csc;
    int64_t i0, mc, j0, nc, k0, kc;               /* offsets and sizes of the current block */
    int64_t mb, nb;                               /* rows and columns of a work item */
    void (*pack_panels)(const struct opdi_gemm_job *job, int64_t begin, int64_t end);     /* packs several panels; NULL:
                                                                                             each panel is packed
                                                                                             separately */
    char *apack, *bpack;                          /* packed blocks, or NULL if not packed */
    opdi_range_fn compute;                        /* computes work items; NULL: opdi_gemm_blocks */
    int add;
} opdi_gemm_job;
#define OPDI_FEW 4                                /* largest number of rows of half precision for opdi_halves_try */
#define OPDI_FEW_ROWS 16                          /* largest number of rows of half precision for opdi_few_rows_try */
#define OPDI_FEW_FLOATS 8                         /* number of rows of floats that opdi_few_rows_try takes in any case.
                                                     Of long rows, it takes more. */
#define OPDI_ROW_GROUPS_BYTES 16384               /* bytes of the results that opdi_row_groups_try computes together */
#define OPDI_FEW_PAIRS 32                         /* largest number of rows of bfloat16 that opdi_few_rows_try
                                                     multiplies as pairs, if the processor has no tiles */
#define OPDI_FEW_TILES 8                          /* the same, if the processor has tiles */

//== convolution =======================================================================================================

typedef struct opdi_conv {
    size_t size;                                  /* 4: float, 8: double */
    bool exact;                                   /* all elements of the operands (not of the results) are representable
                                                     in bfloat16 */
    int64_t n, c, h, w, oc, kh, kw, sh, sw, ph, pw, dh, dw, groups, oh, ow;
    int64_t cg, og, hp, wp;                       /* cg, og: channels of x and of y per group; hp, wp: sizes of a padded
                                                     image */
    int64_t phases, run, line;                    /* phases: runs in a line; run: length of a run; line: length of a
                                                     line */
} opdi_conv;
#define OPDI_CONV_SLACK 64                        /* number of elements that packing may read after the end of a
                                                     buffer */
/* The padded images, each `image` elements after the previous image, and gy, the gradient of the results.  For small
   images, whose planes are shifted, this struct is the first member of an opdi_shift. */
typedef struct opdi_unfold { const opdi_conv *conv; const char *pad; int64_t image; const char *gy; } opdi_unfold;
OPDI_LOOPS_BEGIN
static inline double opdi_number_at(size_t size, const void *memory, int64_t i) {
    return size == 4 ? (double)((const float *)memory)[i] : ((const double *)memory)[i];
}
OPDI_LOOPS_END
#if defined(OPDI_X86) || defined(OPDI_PORTABLE)
typedef int opdi_v8i __attribute__((vector_size(32), aligned(4), may_alias));
#endif
#if defined(OPDI_X86)
typedef int opdi_v16i __attribute__((vector_size(64), aligned(4), may_alias));
#endif

//== weights in blocks =================================================================================================

/* A product y = x wT or, for gradients, y = x w, where the weights w [n, k] are stored in blocks (see opd_dtype_block).
   Rows are whole blocks.  x and y are float32; strides of rows are in elements, and in bytes for w.
   opdi_block_product: x is [m, k], y [m, n].  opdi_block_product_back: x is [m, n], y [m, k]. */
struct opdi_block_form;
typedef struct opdi_block_job {
    opd_scalar_type dtype;       /* of w */
    bool exact;                  /* multiplies x as it is; false: opdi_block_product rounds the rows of x to 8 bits, as
                                    llama.cpp does */
    int64_t m, n, k;
    const void *w;
    int64_t w_stride;
    const float *x;
    int64_t x_stride;
    float *y;
    int64_t y_stride;
    const struct opdi_block_form *form;           /* how the weights of an exact product are converted to floats; NULL:
                                                     as dtype says */
    const uint8_t *codes;        /* w, if it has codes of 8 bits, whose rows are multiplied by scales; else NULL */
    bool minus;                  /* the codes are int8 */
    const float *scales;         /* NULL: 1 */
} opdi_block_job;
/* An exact product y [m, n] = x [m, k] wT of 8-bit integers, whose sums wrap.  Rows are contiguous, and there are no
   gaps between rows of x and of y. */
typedef struct opdi_byte_job {
    int64_t m, n, k;
    const uint8_t *x;
    const int8_t *w;
    int64_t w_stride;
    int32_t *y;
} opdi_byte_job;
/* A product of codes x [m, k] with rows of codes w [n, k] that have a scale for each group of elements, scales [n, k /
   group].  Behind the rows of x is a row of ones.  x_scales and x_zeros have a number for each row of x, `step` apart.
       y[i][j] = x_scales[i] * sum over k of (x[i][k] - x_zeros[i]) * w[j][k] * scales[j][k / group] + bias[j]
   bias may be NULL. */
typedef struct opdi_group_job {
    int64_t m, n, k, group;
    const uint8_t *x;
    const int8_t *w;
    const float *scales, *bias, *x_scales;
    const int32_t *x_zeros;
    int64_t step;
    float *y;
    int64_t together;            /* the rest is set by opdi_byte_groups_product */
    int failed;
} opdi_group_job;
/* What follows a product of codes, whose sums of row i and column j are sums[i][j]:
       y = (sums[i][j] - zero * all[j]) * (scale * scales[j]) + bias[j] + (other - other_zero) * other_scale
   y is limited to low .. high, becomes apply(y), and becomes a code if `codes` is true.  bias, other and apply may be
   NULL. */
typedef struct opdi_byte_ends {
    const int32_t *all;                           /* the sums of the rows of w */
    const float *scales, *bias;
    const uint8_t *other;                         /* as the result, with the last dim contiguous */
    float scale, other_scale, other_zero, low, high;
    int32_t zero;
    bool other_minus, limited, codes;
    void (*apply)(int64_t count, float *out, const float *x);
    float inverse, code_zero, least, most;        /* see opdi_code_job */
} opdi_byte_ends;
/* A max_pool2d of images of codes with their channels last.  flip: 0x80 if the codes are int8. */
typedef struct opdi_code_pool {
    int64_t images, channels, in[2], out[2], kernel[2], stride[2], padding[2], dilation[2];
    const uint8_t *x;
    uint8_t *y, flip;
} opdi_code_pool;
/* The operators that convert codes to floats: see opdi_coded_rule in src/ops/quantized/coded.c. */
enum { OPDI_CODED_BY_TENSOR = 1, OPDI_CODED_BY_CHANNEL, OPDI_CODED_BY_TOKEN, OPDI_CODED_BY_GROUP,
       OPDI_CODED_BY_BLOCK };
#define OPDI_BYTE_SIDE 32                         /* rows and columns of a tile of sums */
/* A tile of sums of products of uint8 and int8.  Row i of A begins at a + places[i], or with AMX at a + i * step, and
   consists of runs of bytes, which begin at `offsets`.  A run has `words` words of four bytes, rounded up to `parts`
   times 64 bytes: B, packed by opdi_byte_conv_panels, has zeros for the rest. */
typedef struct opdi_byte_tile {
    const uint8_t *a;
    const int8_t *b;
    const int64_t *offsets, *places;
    int64_t step, runs, words, parts;
} opdi_byte_tile;
/* A convolution of images x [images, channels, ih, iw] of 8-bit codes with w [n, channels, kh, kw] of int8.  xs and ys
   are the strides of x and y, in elements: of an image, a channel, a row and a column.  The result y has floats, or
   codes (ends.codes).  opdi_byte_conv_pack writes w to `packed`, and the sums of its n rows to `all`.  `planes`,
   `packed` and `rows` are buffers, whose bytes opdi_byte_conv_sizes finds.  deep: w is [n, 1, kh, kw], and each of the
   n channels has its own row. */
typedef struct opdi_byte_conv {
    bool deep;
    int64_t images, channels, ih, iw, n, kh, kw, oh, ow, stride[2], padding[2], dilation[2];
    const uint8_t *x;
    uint8_t flip;                                 /* 0x80 if x is of int8: the codes become uint8 */
    const int8_t *w;
    int64_t xs[4], ys[4];
    void *y;
    opdi_byte_ends ends;
    uint8_t *planes;
    int8_t *packed, *rows;
    int32_t *all;
} opdi_byte_conv;
#define OPDI_BYTE_FEW 24                          /* largest number of rows of x for which w is not packed */
/* The numbers for the codes of IQ4_NL and IQ4_XS, plus 128, and for the codes of MXFP4 and NVFP4, plus 12. */
OPD_UNUSED static const uint8_t opdi_block_curve[16] = {
    1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241};
OPD_UNUSED static const uint8_t opdi_block_e2m1[16] = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

/* Unpacks a block: writes its codes, and the scale and the minimum of each group of codes.  An element is
   scale * (code - offset) + minimum.  Formats without minima do not write them. */
typedef void opdi_block_unpack_fn(const uint8_t *block, uint8_t *codes, float *scales, float *mins);
/* Converts `count` elements, whole blocks, to floats. */
typedef void opdi_block_floats_fn(const struct opdi_block_form *form, const uint8_t *blocks, int64_t count, float *out);
/* A row of x that is rounded to 8 bits: element i is about q[i] * d[i / chunk].  `sums` has the sum of the q of each
   group of `sub` elements: as a float if the format has minima, else as an integer, times -offset. */
typedef struct opdi_block_row { int8_t *q; float *d; opdi_word32 *sums; } opdi_block_row;
/* Returns the product of a rounded row of k elements and a row of weights, which are unpacked a block at a time. */
typedef float opdi_block_row_fn(const struct opdi_block_form *form, int64_t k, const opdi_block_row *row,
                                const uint8_t *w);
/* How a format is multiplied in integers. */
typedef struct opdi_block_form {
    opd_scalar_type dtype;
    int16_t elements, bytes;                      /* of a block */
    int16_t sub;                                  /* elements that share a scale: 16 or 32 */
    int16_t chunk;                                /* elements of x that are rounded with the same scale: 32 or 256 */
    int16_t offset;                               /* 0 if there are minima.  128: the codes have all 8 bits */
    bool mins;
    int16_t together;                             /* how many sums of two products of a code and a rounded element of x
                                                     can be added without overflow of 16 bits, at most 8 */
    opdi_block_unpack_fn *unpack;
    opdi_block_floats_fn *floats;
    opdi_block_row_fn *row;
} opdi_block_form;
/* The functions for rows of one format: `turn` writes a rounded row in the order that `row` needs, in `bytes` bytes per
   `elements` elements; `row` returns the product of such a row and `blocks` blocks. */
typedef struct opdi_block_ways {
    opd_scalar_type dtype;
    int elements, bytes, block;
    void (*turn)(const opdi_block_form *form, int64_t wide, const opdi_block_row *row, void *out);
    float (*row)(const void *rounded, const uint8_t *w, int64_t blocks);
} opdi_block_ways;
/* How integers with scales (see opd_dtype_int_blocks) are multiplied in integers. */
typedef struct opdi_int_form {
    opdi_block_form form;
    opdi_block_info info;
} opdi_int_form;
#define OPDI_INT_PART 512                         /* the most codes of integers that are unpacked at a time */
/* Rows of 8-bit codes, each group of `group` elements with a scale and a zero point: an element is (code - zero) *
   scale.  scales, zeros: [rows, groups]; NULL: all 1, or all 0.  The form converts them for opdi_block_product. */
typedef struct opdi_coded_rows {
    opdi_block_form form;
    const uint8_t *codes;
    bool minus;                                   /* the codes are int8, not uint8 */
    int64_t stride, group, groups;
    const float *scales, *zeros;
} opdi_coded_rows;
/* How floats become codes of 8 bits: x * inverse is rounded, zero is added, and the sum is limited to low .. high.
   late: the sum is rounded.  Each `row` elements have an own inverse and zero, which are `step` apart (0: all have the
   same). */
typedef struct opdi_code_job {
    const float *x, *inverse, *zero;
    int64_t row, step;
    float low, high;
    bool late;
    uint8_t *codes;
} opdi_code_job;
#define OPDI_BLOCK_PAD 256                        /* rounded rows are padded with zeros to a multiple of this length */
#define OPDI_BLOCK_PANEL 32                       /* rows of w in a panel */
#define OPDI_BLOCK_TILE 4                         /* rows of x in a tile */
/* The operands of a tile: rows of x, and a panel of 32 rows of w, with `depth` elements.  The words of four codes of
   all rows are side by side, and so are the scales, and the minima (NULL: none). */
typedef struct opdi_block_tile {
    const uint8_t *codes;
    const float *scales, *mins;
    int64_t depth;
    int sub, chunk, together;                     /* see opdi_block_form */
    bool wide;                                    /* the codes have 8 bits */
    opdi_block_row x[OPDI_BLOCK_TILE];
} opdi_block_tile;
/* Adds the products of a tile to sums [OPDI_BLOCK_TILE, OPDI_BLOCK_PANEL]. */
typedef void opdi_block_tile_fn(const opdi_block_tile *tile, float *sums);
#define OPDI_BLOCK_MOST 4                         /* largest number of rows of x for which w is not unpacked */
#define OPDI_BLOCK_LEAST 2                        /* the same, for formats without own functions for rows */
/* A product with rounded rows of x. */
typedef struct opdi_block_rounded {
    const opdi_block_job *job;
    const opdi_block_form *form;
    const opdi_block_info *ints;                  /* of a form of integers; else NULL */
    opdi_block_tile_fn *tile;
    bool tall;                                    /* multiplies 16 rows of x at a time, by tiles of AMX */
    char *memory, *rows;                          /* `rows` is `memory`, aligned */
    int64_t row_bytes;
    uint8_t *bad;                                 /* for each row of x: 1 if it has elements that are infinite or NaN */
    int failed;                                   /* set by a thread that gets no memory */
} opdi_block_rounded;
#if defined(OPDI_VECTORS)
typedef uint8_t opdi_v16b __attribute__((vector_size(16), aligned(1), may_alias));
#if defined(OPDI_X86)
typedef uint8_t opdi_v32b __attribute__((vector_size(32), aligned(1), may_alias));
#endif
/* OPDI_ASM_LOOK_UP replaces bytes from 0 to 15 by the bytes at these places of a table. */
#if defined(OPDI_X86)
#define OPDI_ASM_LOOK_UP(c, table, a) __asm__("vpshufb {%2, %1, %0|%0, %1, %2}" : "=x"(c) : "x"(table), "x"(a))
#else
#define OPDI_ASM_LOOK_UP(c, table, a) __asm__("tbl %0.16b, {%1.16b}, %2.16b" : "=w"(c) : "w"(table), "w"(a))
#endif
#endif
#if defined(OPDI_X86)
/* OPDI_ASM_FLOATS converts int32 to float.  OPDI_ASM_BYTES multiplies uint8 of a by int8 of b, and adds each two
   products that are neighbours to an int16.  OPDI_ASM_JOIN adds two such sums to each int32 of c.  OPDI_ASM_SIGN
   multiplies each byte of a by -1, 0 or 1, the sign of the byte of b.  OPDI_ASM_ABS removes signs. */
#define OPDI_ASM_FLOATS(f, c) __asm__("vcvtdq2ps {%1, %0|%0, %1}" : "=v"(f) : "v"(c))
#define OPDI_ASM_BYTES(c, a, b) __asm__("vpmaddubsw {%2, %1, %0|%0, %1, %2}" : "=x"(c) : "x"(a), "x"(b))
#define OPDI_ASM_JOIN(c, a, ones) { \
        opdi_v8u joined; \
        __asm__("vpmaddwd {%2, %1, %0|%0, %1, %2}" : "=x"(joined) : "x"(a), "x"(ones)); \
        c += joined; \
    }
#define OPDI_ASM_SIGN(c, a, b) __asm__("vpsignb {%2, %1, %0|%0, %1, %2}" : "=x"(c) : "x"(a), "x"(b))
#define OPDI_ASM_ABS(c, a) __asm__("vpabsb {%1, %0|%0, %1}" : "=x"(c) : "x"(a))
#endif
/* Bit j of byte j of eight bytes in memory. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define OPDI_BIT_OF_BYTE UINT64_C(0x0102040810204080)
#else
#define OPDI_BIT_OF_BYTE UINT64_C(0x8040201008040201)
#endif
/* Numbers of blocks, which are stored with the lowest byte first, at any address. */
OPDI_ALWAYS uint32_t opdi_u16_at(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }
OPDI_ALWAYS uint32_t opdi_u32_at(const uint8_t *at) { return opdi_u16_at(at) | opdi_u16_at(at + 2) << 16; }
OPDI_ALWAYS float opdi_f16_at(const uint8_t *at) { return opdi_f16_to_f32((uint16_t)opdi_u16_at(at)); }
OPDI_ALWAYS float opdi_f32_at(const uint8_t *at) { return opdi_float(opdi_u32_at(at)); }
/* The numbers for the codes of OPD_IQ4_NL and OPD_IQ4_XS; twice the numbers of OPD_MXFP4 and OPD_NVFP4. */
OPD_UNUSED static const int8_t opdi_iq4_numbers[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
OPD_UNUSED static const int8_t opdi_fp4_numbers[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
/* Returns 2^(e - 128), by which OPD_MXFP4 multiplies opdi_fp4_numbers.  For e = 0 and e = 1 it is denormal. */
OPDI_ALWAYS float opdi_mxfp4_scale(uint8_t e) {
    return opdi_float(e < 2 ? 0x00200000u << e : (uint32_t)(e - 1) << 23);
}
/* Returns half of the scale of OPD_NVFP4, an unsigned float8_e4m3: its bits without the sign, shifted to the float's
   places, are too small by 2^120. */
OPDI_ALWAYS float opdi_nvfp4_scale(uint8_t u) {
    return u == 0x7f ? 0.0f : opdi_float((uint32_t)(u & 0x7fu) << 20) * 6.6461399789245794e35f;
}
/* Unpacks the eight scales and minima of a block of OPD_Q4_K or OPD_Q5_K, with 6 bits each, from 12 bytes. */
OPDI_ALWAYS void opdi_q4_K_scales(const uint8_t *at, uint8_t *scales, uint8_t *minima) {
    for (int b = 0; b < 4; b++) {
        scales[b] = at[b] & 63u;
        minima[b] = at[b + 4] & 63u;
        scales[b + 4] = (uint8_t)((at[b + 8] & 15u) | (unsigned)(at[b] >> 6) << 4);
        minima[b + 4] = (uint8_t)(at[b + 8] >> 4 | (at[b + 4] >> 6) << 4);
    }
}
/* Unpacks the sixteen scales of a block of OPD_Q3_K, from -32 to 31, from 12 bytes. */
OPDI_ALWAYS void opdi_q3_K_scales(const uint8_t *at, int8_t *scales) {
    for (int k = 0; k < 16; k++) {
        const int low = at[k & 7] >> (k < 8 ? 0 : 4) & 15, high = at[8 + (k & 3)] >> 2 * (k >> 2) & 3;
        scales[k] = (int8_t)((low | high << 4) - 32);
    }
}
/* Unpacks the eight scales of a block of OPD_IQ4_XS, from -32 to 31.  `at` is the beginning of the block. */
OPDI_ALWAYS void opdi_iq4_xs_scales(const uint8_t *at, int8_t *scales) {
    const uint32_t high = opdi_u16_at(at + 2);
    for (int b = 0; b < 8; b++) {
        const uint32_t low = at[4 + b / 2] >> 4 * (b & 1) & 15u;
        scales[b] = (int8_t)((int)(low | (high >> 2 * b & 3u) << 4) - 32);
    }
}

//== functions of higher layers that this layer calls ==================================================================

OPDI_INTERNAL int opdi_conv_any(const opdi_conv *conv, const void *x, const void *weights, const void *bias, void *y);

#if defined(OPDI_VECTORS)
OPDI_LOOPS_BEGIN
#include "../typed/f32_avx2.h"
#include "halves_to_floats.typed.h"
#include "lanes_sum.typed.h"
#include "../typed/f64_avx2.h"
#include "lanes_sum.typed.h"
#if defined(OPDI_X86)
#include "../typed/f32_avx512.h"
#include "halves_to_floats.typed.h"
#include "lanes_sum.typed.h"
#include "../typed/f64_avx512.h"
#include "lanes_sum.typed.h"
#endif
#include "../typed/end.h"
OPDI_LOOPS_END
#endif
#include "kernels.prototypes.h"
#endif

