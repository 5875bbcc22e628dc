#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>writing_c    nests as C text
//----------------------------------------------------------------------------------------------------------------------

static void opdi_c_write_arguments(opdi_cfile *file, const char *format, va_list ap) {
    char text[2048];
    const int length = vsnprintf(text, sizeof text, format, ap);
    if (length < 0 || length >= (int)sizeof text) { file->failed = true; }
    else { opdi_string_add_n(file->out, text, (size_t)length); }
}
/* Writes formatted text. */
OPD_PRINTF_LIKE(2, 3) OPDI_INTERNAL void opdi_c_write(opdi_cfile *file, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    opdi_c_write_arguments(file, format, ap);
    va_end(ap);
}
/* Writes the indentation of a line. */
OPDI_INTERNAL void opdi_c_write_indent(opdi_cfile *file) {
    for (int i = 0; i < file->indent; i++) { opdi_string_add(file->out, "    "); }
}
/* Writes a line, with its indentation. */
OPD_PRINTF_LIKE(2, 3) OPDI_INTERNAL void opdi_c_write_line(opdi_cfile *file, const char *format, ...) {
    va_list ap;
    opdi_c_write_indent(file);
    va_start(ap, format);
    opdi_c_write_arguments(file, format, ap);
    va_end(ap);
    opdi_string_add(file->out, "\n");
}
/* Writes a line that opens a block, such as "for (...) {".  The following lines are indented further. */
OPD_PRINTF_LIKE(2, 3) OPDI_INTERNAL void opdi_c_write_open(opdi_cfile *file, const char *format, ...) {
    va_list ap;
    opdi_c_write_indent(file);
    va_start(ap, format);
    opdi_c_write_arguments(file, format, ap);
    va_end(ap);
    opdi_string_add(file->out, "\n");
    file->indent++;
}
/* Writes lines that close `count` blocks. */
OPDI_INTERNAL void opdi_c_write_close(opdi_cfile *file, int count) {
    for (; count > 0; count--) {
        file->indent--;
        opdi_c_write_line(file, "}");
    }
}

/* Returns the words before the type of a group's function.  In code for this process, opdi_c_write_parts defines GROUP:
   functions may be in different files. */
OPDI_INTERNAL const char *opdi_c_linkage(const opdi_cfile *file) { return file->table ? "GROUP " : "APART static "; }

/* The first lines of every C file.

   LANES: the number of floats in a vector of the C compiler.  PARTS: the number of vectors in a row of a tile.

   FRESH: stands before each call of a group.  Tensors of several types use the same memory in turn; without FRESH,
   clang moves a read of one type past a write of another.

   APART: forbids inlining, because gcc no longer unrolls loops after some hundred inlined calls. */
OPDI_INTERNAL const char opdi_c_prelude[] =
    "#include <math.h>\n"
    "#include <stddef.h>\n"
    "#include <stdint.h>\n"
    "#include <string.h>\n"
    "#if defined(__cplusplus)\n#define RESTRICT __restrict\n#elif defined(__TINYC__)\n#define RESTRICT\n"
    "#else\n#define RESTRICT restrict\n#endif\n"
    "#if (defined(__GNUC__) || defined(__clang__)) && !defined(__TINYC__)\n"
    "#define FRESH __asm__ volatile(\"\" : : : \"memory\")\n#define APART __attribute__((noinline))\n"
    "#else\n#define FRESH (void)0\n#define APART\n#endif\n"
    "#if defined(_WIN64) && defined(__AVX__) && defined(__GNUC__) && !defined(__clang__)\n"
    "/* gcc does not align the stack for these instructions (GCC's bug 54412). */\n"
    "#define MOVE(aligned, unaligned) \".macro \" aligned \" all:vararg\\n\" unaligned \" \\\\all\\n.endm\\n\"\n"
    "__asm__(\".ifndef opd_moves\\n.set opd_moves, 1\\n\" MOVE(\"vmovaps\", \"vmovups\")\n"
    "        MOVE(\"vmovapd\", \"vmovupd\") "
    "MOVE(\"vmovdqa\", \"vmovdqu\") MOVE(\"vmovdqa32\", \"vmovdqu32\") MOVE(\"vmovdqa64\", \"vmovdqu64\") "
    "\".endif\\n\");\n"
    "#endif\n"
    "#if defined(__AVX512F__)\n#define LANES 16\n#define PARTS 4\n"
    "#elif defined(__AVX__)\n#define LANES 8\n#define PARTS 2\n"
    "#elif defined(__GNUC__) && !defined(__TINYC__)\n#define LANES 4\n#define PARTS 4\n"
    "#else\n#define LANES 1\n#define PARTS 16\n#endif\n"
    "#if LANES > 1\n"
    "typedef float vector __attribute__((vector_size(4 * LANES), aligned(4), may_alias));\n"
    "typedef double vector64 __attribute__((vector_size(4 * LANES), aligned(8), may_alias));\n"
    "#define WIDTH (LANES * PARTS)\n#define WIDTH64 (LANES / 2 * PARTS)\n"
    "#else\ntypedef float vector;\ntypedef double vector64;\n#define WIDTH PARTS\n#define WIDTH64 PARTS\n#endif\n\n";
/* In the mode of same bits, these lines follow in files: a product and a sum are rounded apart.  Code for this process
   is compiled with the flag instead. */
OPDI_INTERNAL const char opdi_c_apart[] =
    "#if defined(__clang__)\n#pragma STDC FP_CONTRACT OFF\n"
    "#elif defined(__GNUC__) && !defined(__TINYC__)\n#pragma GCC optimize (\"fp-contract=off\")\n#endif\n\n";
/* The text of helper functions for a floating-point type of C, `type`.  `name` is the suffix of the helpers' names, and
   `f` the suffix of functions in libm. */
#define OPDI_C_REMAINDER(type, name, f) {"remainder_" name, \
    "static inline " type " remainder_" name "(" type " x, " type " y) {\n" \
    "    const " type " mod = fmod" f "(x, y);\n" \
    "    return mod != 0 && (y < 0) != (mod < 0) ? mod + y : mod;\n" \
    "}\n"}
#define OPDI_C_DIV_FLOOR(type, name, f) {"div_floor_" name, \
    "static inline " type " div_floor_" name "(" type " x, " type " y) {\n" \
    "    const " type " mod = fmod" f "(x, y), less = mod != 0 && (y < 0) != (mod < 0) ? 1 : 0;\n" \
    "    const " type " q = (x - mod) / y - less, whole = floor" f "(q);\n" \
    "    return y == 0 ? x / y : q == 0 ? copysign" f "((" type ")0, x / y)\n" \
    "        : q - whole > (" type ")0.5 ? whole + 1 : whole;\n" \
    "}\n"}
#define OPDI_C_LOGADDEXP(type, name, f) {"logaddexp_" name, \
    "static inline " type " logaddexp_" name "(" type " x, " type " y) {\n" \
    "    const " type " m = x > y || x != x ? x : y;\n" \
    "    return x == y && m - m != 0 ? x : m + log1p" f "(exp" f "(-fabs" f "(x - y)));\n" \
    "}\n"}
#define OPDI_C_LOGADDEXP2(type, name, f) {"logaddexp2_" name, \
    "static inline " type " logaddexp2_" name "(" type " x, " type " y) {\n" \
    "    const " type " m = x > y || x != x ? x : y;\n" \
    "    return x == y && m - m != 0 ? x : m + log1p" f "(exp2" f "(-fabs" f "(x - y))) * \n" \
    "        (" type ")1.44269504088896340736;\n" \
    "}\n"}
#define OPDI_C_LOGIT(type, name, f) {"logit_" name, \
    "static inline " type " logit_" name "(" type " x, " type " low, " type " high) {\n" \
    "    const " type " p = x < low ? low : x > high ? high : x;\n" \
    "    return p == 1 ? (" type ")INFINITY : log" f "(p / (1 - p));\n" \
    "}\n"}
#define OPDI_C_EXP_RATIO(type, name, f) {"exp_ratio_" name, \
    "static inline " type " exp_ratio_" name "(" type " x) {\n" \
    "    const " type " e = exp" f "(-fabs" f "(x));\n" \
    "    return e / (1 + e);\n" \
    "}\n"}
#define OPDI_C_GELU_SLOPE(type, name, f) {"gelu_slope_" name, \
    "static inline " type " gelu_slope_" name "(" type " x) {\n" \
    "    return (" type ")0.5 * (1 + erf" f "(x * (" type ")0.70710678118654752440)) +\n" \
    "        x * exp" f "((" type ")-0.5 * x * x) * (" type ")0.39894228040143267794;\n" \
    "}\n"}
#define OPDI_C_GELU_TANH_SLOPE(type, name, f) {"gelu_tanh_slope_" name, \
    "static inline " type " gelu_tanh_slope_" name "(" type " x) {\n" \
    "    const " type " c = (" type ")0.79788456080286535588, q = (" type ")0.044715 * x * x;\n" \
    "    const " type " t = tanh" f "(c * x * (1 + q));\n" \
    "    return (" type ")0.5 * (1 + t) + (" type ")0.5 * x * (1 - t * t) * c * (1 + 3 * q);\n" \
    "}\n"}
#define OPDI_C_SILU_SLOPE(type, name, f) {"silu_slope_" name, \
    "static inline " type " silu_slope_" name "(" type " x) {\n" \
    "    const " type " s = 1 / (1 + exp" f "(-x));\n" \
    "    return s * (1 + x * (1 - s));\n" \
    "}\n"}
#define OPDI_C_MISH_SLOPE(type, name, f) {"mish_slope_" name, \
    "static inline " type " mish_slope_" name "(" type " x) {\n" \
    "    const " type " s = 1 / (1 + exp" f "(-x)), t = tanh" f "(log1p" f "(exp" f "(x)));\n" \
    "    return t + x * s * (1 - t * t);\n" \
    "}\n"}
#define OPDI_C_NAN_TO_NUM(type, name) {"nan_to_num_" name, \
    "static inline " type " nan_to_num_" name "(" type " x, " type " a, " type " b, " type " c) {\n" \
    "    return x != x ? a : x == (" type ")INFINITY ? b : x == -(" type ")INFINITY ? c : x;\n" \
    "}\n"}
#define OPDI_C_FLOAT_HELPERS(type, name, f) \
    OPDI_C_REMAINDER(type, name, f), OPDI_C_DIV_FLOOR(type, name, f), OPDI_C_LOGADDEXP(type, name, f), \
    OPDI_C_LOGADDEXP2(type, name, f), OPDI_C_LOGIT(type, name, f), OPDI_C_EXP_RATIO(type, name, f), \
    OPDI_C_GELU_SLOPE(type, name, f), OPDI_C_GELU_TANH_SLOPE(type, name, f), OPDI_C_SILU_SLOPE(type, name, f), \
    OPDI_C_MISH_SLOPE(type, name, f), OPDI_C_NAN_TO_NUM(type, name)
/* The text of helper functions that compute `count` sums together: they add a number times `count` other numbers, or
   the products of two rows of numbers. */
#define OPDI_C_SUMS(count, bytes) {"sums_" count, \
    "#if LANES > 1\n" \
    "typedef float lanes_" count " __attribute__((vector_size(" bytes "), aligned(4), may_alias));\n" \
    "typedef lanes_" count " sums_" count "[1];\n" \
    "#define NO_SUMS_" count " {{0}}\n" \
    "#else\n" \
    "typedef float sums_" count "[" count "];\n" \
    "#define NO_SUMS_" count " {0}\n" \
    "#endif\n"}
#define OPDI_C_ADD(count) {"add_" count, \
    "static inline void add_" count "(sums_" count " sums, float x, const float *y) {\n" \
    "#if LANES > 1\n" \
    "    sums[0] += x * *(const lanes_" count " *)(const void *)y;\n" \
    "#else\n" \
    "    for (int l = 0; l < " count "; l++) { sums[l] += x * y[l]; }\n" \
    "#endif\n" \
    "}\n"}
#define OPDI_C_ADD_ALL(count) {"add_all_" count, \
    "static inline void add_all_" count "(sums_" count " sums, const float *x, const float *y) {\n" \
    "#if LANES > 1\n" \
    "    sums[0] += *(const lanes_" count " *)(const void *)x * *(const lanes_" count " *)(const void *)y;\n" \
    "#else\n" \
    "    for (int l = 0; l < " count "; l++) { sums[l] += x[l] * y[l]; }\n" \
    "#endif\n" \
    "}\n"}
/* The text that declares the float `to` with the bits of `bits`. */
#define OPDI_C_FLOAT_OF(to, bits) \
    "    float " to ";\n    memcpy(&" to ", &" bits ", sizeof " to ");\n"
/* The helpers whose names begin with same_ are for the mode of same bits.  They round as the functions of the library
   do at level 1: opdi_exp1, opdi_log1 and so on. */
OPDI_INTERNAL const opdi_c_helper opdi_c_helpers[] = {
    {"fused_f32",
    "/* x * y + z, rounded once.  The product is exact in double, and the sum is rounded to odd. */\n"
    "static inline float fused_f32(float x, float y, float z) {\n"
    "#if defined(__FP_FAST_FMAF) || defined(__FMA__) || (defined(__ARM_FEATURE_FMA) && defined(__ARM_FP))\n"
    "    return fmaf(x, y, z);\n"
    "#else\n"
    "    const double product = (double)x * (double)y, sum = product + (double)z;\n"
    "    const double part = sum - product, other = sum - part;\n"
    "    const double lost = ((product - other) + ((double)z - part)) * sum;\n"
    "    int64_t bits;\n"
    "    double odd;\n"
    "    memcpy(&bits, &sum, sizeof bits);\n"
    "    bits += lost > 0 ? ~bits & 1 : lost < 0 ? -(~bits & 1) : 0;\n"
    "    memcpy(&odd, &bits, sizeof odd);\n"
    "    return (float)odd;\n"
    "#endif\n"
    "}\n"},
    {"same_power",
    "/* 2^n e^r, where `count` ends with the last 9 bits of n + 254. */\n"
    "static inline float same_power(float r, uint32_t count) {\n"
    "    float q = fused_f32(0.00139505544f, r, 0.00836892892f);\n"
    "    q = fused_f32(fused_f32(q, r, 0.041666206f), r, 0.166665182f);\n"
    "    q = fused_f32(fused_f32(q, r, 0.5f), r * r, r) + 1.0f;\n"
    "    const uint32_t half = count >> 1, bits = half << 23, rest = (count - half) << 23;\n"
    OPDI_C_FLOAT_OF("first", "bits") OPDI_C_FLOAT_OF("second", "rest")
    "    return q * first * second;\n"
    "}\n"},
    {"same_reduced",
    "/* r = x - n log 2.  *count ends with the last 9 bits of n + 254. */\n"
    "static inline float same_reduced(float x, uint32_t *count) {\n"
    "    const float t = fused_f32(x, 1.44269504f, 12583166.0f), k = t - 12583166.0f;\n"
    "    memcpy(count, &t, sizeof *count);\n"
    "    return fused_f32(k, 2.12194442e-4f, fused_f32(k, -0.693359375f, x));\n"
    "}\n"},
    {"same_exp_f32",
    "static inline float same_exp_f32(float x) {\n"
    "    const float high = x > 89.0f ? 89.0f : x;\n"
    "    uint32_t count;\n"
    "    const float r = same_reduced(high < -104.0f ? -104.0f : high, &count);\n"
    "    return same_power(r, count);\n"
    "}\n"},
    {"same_log_f32",
    "static inline float same_log_f32(float x) {\n"
    "    const float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;\n"
    "    uint32_t bits;\n"
    "    memcpy(&bits, &scaled, sizeof bits);\n"
    "    bits -= 0x3f3504f3u;\n"
    "    const int32_t whole = (int32_t)(bits >> 23), n = whole > 255 ? whole - 512 : whole;\n"
    "    const uint32_t rest = (bits & 0x7fffffu) + 0x3f3504f3u;\n"
    OPDI_C_FLOAT_OF("m", "rest")
    "    const float e = (float)(n - (x < 1.17549435e-38f ? 23 : 0)), f = m - 1.0f, z = f * f;\n"
    "    float p = fused_f32(0.0691537708f, f, -0.117898293f);\n"
    "    p = fused_f32(fused_f32(p, f, 0.118729778f), f, -0.123843402f);\n"
    "    p = fused_f32(fused_f32(p, f, 0.142186567f), f, -0.16669251f);\n"
    "    p = fused_f32(fused_f32(p, f, 0.200022265f), f, -0.249999866f);\n"
    "    p = fused_f32(p, f, 0.333333105f);\n"
    "    float y = fused_f32(-0.5f, z, fused_f32(e, -2.12194442e-4f, p * f * z));\n"
    "    y = fused_f32(e, 0.693359375f, f + y);\n"
    "    y = x < (float)INFINITY ? y : x;\n"
    "    return x == 0 ? -(float)INFINITY : x < 0 ? (float)NAN : y;\n"
    "}\n"},
    {"same_less_one",
    "/* e^x - 1 for -18 <= x <= 89 */\n"
    "static inline float same_less_one(float x) {\n"
    "    uint32_t count;\n"
    "    const float r = same_reduced(x, &count);\n"
    "    const uint32_t bits = (count - 128) << 23;\n"
    OPDI_C_FLOAT_OF("power", "bits")
    "    float q = fused_f32(0.000199127855f, r, 0.00139411015f);\n"
    "    q = fused_f32(fused_f32(q, r, 0.00833327603f), r, 0.041666355f);\n"
    "    q = fused_f32(fused_f32(q, r, 0.166666672f), r, 0.5f);\n"
    "    q = fused_f32(q, r * r, r);\n"
    "    return fused_f32(power, q, power - 0.5f) * 2.0f;\n"
    "}\n"},
    {"same_expm1_f32",
    "static inline float same_expm1_f32(float x) {\n"
    "    const float high = x > 89.0f ? 89.0f : x;\n"
    "    const float y = same_less_one(high < -18.0f ? -18.0f : high);\n"
    "    return fabsf(x) < 2.98023224e-8f ? x : y;\n"
    "}\n"},
    {"same_tanh_f32",
    "static inline float same_tanh_f32(float x) {\n"
    "    const float whole = fabsf(x), a = whole > 10.0f ? 10.0f : whole;\n"
    "    const float m = same_less_one(a + a), y = m / (m + 2.0f);\n"
    "    return copysignf(a < 1e-4f ? a : y, x);\n"
    "}\n"},
    {"same_sigmoid_f32",
    "static inline float same_sigmoid_f32(float x) {\n"
    "    const float t = same_exp_f32(-fabsf(x));\n"
    "    return (x >= 0 ? 1.0f : t) / (1.0f + t);\n"
    "}\n"},
    {"same_silu_f32", "static inline float same_silu_f32(float x) { return x * same_sigmoid_f32(x); }\n"},
    {"same_gelu_f32",
    "static inline float same_gelu_f32(float x) {\n"
    "    const float high = x > 5.6f ? 5.6f : x, a = high < -5.6f ? -5.6f : high, z = a * a;\n"
    "    float p = fused_f32(2.21612200e-8f, z, 6.34756685e-6f);\n"
    "    p = fused_f32(fused_f32(p, z, 0.000173217964f), z, 0.00470335987f);\n"
    "    p = fused_f32(fused_f32(p, z, 0.0343191040f), z, 0.398942226f);\n"
    "    float q = fused_f32(1.18001065e-6f, z, 7.48746640e-5f);\n"
    "    q = fused_f32(fused_f32(q, z, 0.00190941968f), z, 0.0289064122f);\n"
    "    q = fused_f32(fused_f32(q, z, 0.252691010f), z, 1.0f);\n"
    "    p = p * a / q + 0.5f;\n"
    "    return x * (x <= -5.6f ? 0.0f : x >= 5.6f ? 1.0f : p);\n"
    "}\n"},
    {"sum_row",
    "/* The sum of a row: in groups of up to 4096 floats in 64 partial sums, which are added as doubles. */\n"
    "static double sum_row(const float *x, ptrdiff_t count) {\n"
    "    double total = 0;\n"
    "    ptrdiff_t i = 0;\n"
    "    while (count - i >= 64) {\n"
    "        const ptrdiff_t last = (count < i + 4096 ? count : i + 4096) - 64;\n"
    "        float a[64] = {0};\n"
    "        for (; i <= last; i += 64) { for (int l = 0; l < 64; l++) { a[l] += x[i + l]; } }\n"
    "        for (int l = 0; l < 8; l++) {\n"
    "            const float low = (a[l] + a[l + 8]) + (a[l + 16] + a[l + 24]);\n"
    "            total += (double)(low + ((a[l + 32] + a[l + 40]) + (a[l + 48] + a[l + 56])));\n"
    "        }\n"
    "    }\n"
    "    if (count - i >= 8) {\n"
    "        float a[16] = {0};\n"
    "        for (; i + 16 <= count; i += 16) { for (int l = 0; l < 16; l++) { a[l] += x[i + l]; } }\n"
    "        for (int l = 0; l < 8 && i + 8 <= count; l++) { a[l] += x[i + l]; }\n"
    "        i += i + 8 <= count ? 8 : 0;\n"
    "        for (int l = 0; l < 8; l++) { a[l] += a[l + 8]; }\n"
    "        const float low = (a[0] + a[4]) + (a[2] + a[6]);\n"
    "        total += (double)(low + ((a[1] + a[5]) + (a[3] + a[7])));\n"
    "    }\n"
    "    for (; i < count; i++) { total += (double)x[i]; }\n"
    "    return total;\n"
    "}\n"},
    {"from_bf16",
    "static inline float from_bf16(uint16_t x) {\n"
    "    const uint32_t bits = (uint32_t)x << 16;\n"
    "    float value;\n"
    "    memcpy(&value, &bits, sizeof value);\n"
    "    return value;\n"
    "}\n"},
    {"to_bf16",
    "static inline uint16_t to_bf16(float x) {\n"
    "    uint32_t bits;\n"
    "    memcpy(&bits, &x, sizeof bits);\n"
    "    return (uint16_t)(x != x ? 0x7fc0u : (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);\n"
    "}\n"},
    {"round_bf16",
    "static inline float round_bf16(float x) { return from_bf16(to_bf16(x)); }\n"},
    {"from_f16",
    "static inline float from_f16(uint16_t x) {\n"
    "    const uint32_t sign = (uint32_t)(x & 0x8000u) << 16, rest = x & 0x7fffu;\n"
    "    const uint32_t bits = sign | (rest >= 0x7c00u ? 0x7f800000u | rest << 13 : (rest << 13) + 0x38000000u);\n"
    "    float value;\n"
    "    memcpy(&value, &bits, sizeof value);\n"
    "    return rest >= 0x400u ? value : (sign ? -1.0f : 1.0f) * (float)rest * 5.9604644775390625e-8f;\n"
    "}\n"},
    {"to_f16",
    "static inline uint16_t to_f16(float x) {\n"
    "    uint32_t bits;\n"
    "    memcpy(&bits, &x, sizeof bits);\n"
    "    const uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7fffffffu;\n"
    "    const float small = fabsf(x) + 0.5f;          /* rounds to multiples of 2^-24 */\n"
    "    uint32_t low;\n"
    "    memcpy(&low, &small, sizeof low);\n"
    "    const uint32_t normal = (rest - 0x38000000u + 0xfffu + (rest >> 13 & 1u)) >> 13;\n"
    "    const uint32_t value = rest > 0x7f800000u ? 0x7e00u : rest >= 0x477ff000u ? 0x7c00u\n"
    "        : rest < 0x38800000u ? low - 0x3f000000u : normal;\n"
    "    return (uint16_t)(sign | value);\n"
    "}\n"},
    {"round_f16",
    "static inline float round_f16(float x) { return from_f16(to_f16(x)); }\n"},
    {"as_bf16_f32", "static inline float as_bf16_f32(float x) { return round_bf16(x); }\n"},
    {"as_f16_f32", "static inline float as_f16_f32(float x) { return round_f16(x); }\n"},
    {"to_i64",
    "/* NaN, and a value that does not fit, become the smallest integer. */\n"
    "static inline int64_t to_i64(double x) {\n"
    "    return x >= -9223372036854775808.0 && x < 9223372036854775808.0 ? (int64_t)x : INT64_MIN;\n"
    "}\n"},
    {"to_i32",
    "static inline int32_t to_i32(double x) {\n"
    "    return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;\n"
    "}\n"},
    {"exp_f32",
    "/* exp(x) = 2^n exp(r), where n is the integer nearest to x / log 2. */\n"
    "static inline float exp_f32(float x) {\n"
    "    const float low = x < -104.0f ? -104.0f : x, y = low > 89.0f ? 89.0f : low;\n"
    "    const float big = y * 1.44269504f + 12582912.0f, n = big - 12582912.0f;\n"
    "    const float r = (y - n * 0.693359375f) + n * 2.12194440e-4f;\n"
    "    const float high = 0.041666206f + r * (0.00836892892f + r * 0.00139505544f);\n"
    "    const float p = 1.0f + (r + r * r * (0.5f + r * (0.166665182f + r * high)));\n"
    "    const int32_t whole = n == n ? (int32_t)n : 0, half = whole / 2;\n"
    "    const int32_t bits = (half + 127) * 8388608, rest = (whole - half + 127) * 8388608;\n"
    "    float first, second;\n"
    "    memcpy(&first, &bits, sizeof first);\n"
    "    memcpy(&second, &rest, sizeof second);\n"
    "    return p * first * second;\n"
    "}\n"},
    {"log_core_f32",
    "/* log(2^e (1 + f)), with 1 + f between sqrt(1/2) and sqrt(2). */\n"
    "static inline float log_core_f32(float f, float e) {\n"
    "    const float a = 0.118729778f + f * (-0.117898293f + f * 0.0691537708f);\n"
    "    const float b = 0.142186567f + f * (-0.123843402f + f * a);\n"
    "    const float p = 0.333333105f + f * (-0.249999866f + f * (0.200022265f + f * (-0.16669251f + f * b)));\n"
    "    const float z = f * f, low = p * f * z - e * 2.12194442e-4f;\n"
    "    return e * 0.693359375f + (f + (low - 0.5f * z));\n"
    "}\n"},
    {"log_f32",
    "static inline float log_f32(float x) {\n"
    "    const float y = x < 1.17549435e-38f ? x * 8388608.0f : x, less = x < 1.17549435e-38f ? 23.0f : 0.0f;\n"
    "    uint32_t bits;\n"
    "    memcpy(&bits, &y, sizeof bits);\n"
    "    const uint32_t from = bits - 0x3f3504f3u, rest = (from & 0x7fffffu) + 0x3f3504f3u;\n"
    "    const int32_t count = (int32_t)(from >> 23), e = count > 255 ? count - 512 : count;\n"
    "    float m;\n"
    "    memcpy(&m, &rest, sizeof m);\n"
    "    const float value = log_core_f32(m - 1.0f, (float)e - less), end = x == 0 ? -(float)INFINITY : (float)NAN;\n"
    "    const float more = x <= 3.40282347e38f ? value : x;\n"
    "    return x > 0 ? more : end;\n"
    "}\n"},
    {"log1p_f32",
    "/* The logarithm of the rounded sum 1 + x.  Its rounding error c is added to the mantissa. */\n"
    "static inline float log1p_f32(float x) {\n"
    "    const float sum = 1.0f + x, b = sum - 1.0f, c = (1.0f - (sum - b)) + (x - b);\n"
    "    uint32_t bits;\n"
    "    memcpy(&bits, &sum, sizeof bits);\n"
    "    const uint32_t from = bits - 0x3f3504f3u, rest = (from & 0x7fffffu) + 0x3f3504f3u;\n"
    "    const int32_t count = (int32_t)(from >> 23), e = count > 255 ? count - 512 : count;\n"
    "    const int32_t scale = (127 - (e > 126 ? 126 : e)) * 8388608;\n"
    "    float m, factor;\n"
    "    memcpy(&m, &rest, sizeof m);\n"
    "    memcpy(&factor, &scale, sizeof factor);\n"
    "    const float value = log_core_f32(m - 1.0f + c * factor, (float)e);\n"
    "    const float end = x == -1.0f ? -(float)INFINITY : (float)NAN, more = x <= 3.40282347e38f ? value : x;\n"
    "    const float all = x > -1.0f ? more : end;\n"
    "    return fabsf(x) < 2.98023224e-8f ? x : all;\n"
    "}\n"},
    {"expm1_f32",
    "/* 2^n (exp(r) - 1) + (2^n - 1), computed as twice its half, so that 2^128 does not overflow. */\n"
    "static inline float expm1_f32(float x) {\n"
    "    const float low = x < -18.0f ? -18.0f : x, y = low > 89.0f ? 89.0f : low;\n"
    "    const float big = y * 1.44269504f + 12582912.0f, n = big - 12582912.0f;\n"
    "    const float r = (y - n * 0.693359375f) + n * 2.12194442e-4f;\n"
    "    const float q = 0.041666355f + r * (0.00833327603f + r * (0.00139411015f + r * 0.000199127855f));\n"
    "    const float p = r + r * r * (0.5f + r * (0.166666672f + r * q));\n"
    "    const int32_t whole = n == n ? (int32_t)n : 0, bits = (whole + 126) * 8388608;\n"
    "    float half;\n"
    "    memcpy(&half, &bits, sizeof half);\n"
    "    return fabsf(x) < 2.98023224e-8f ? x : (half * p + (half - 0.5f)) * 2.0f;\n"
    "}\n"},
    {"tanh_f32",
    "static inline float tanh_f32(float x) {\n"
    "    const float a = fabsf(x), m = expm1_f32(2.0f * (a > 10.0f ? 10.0f : a)), y = m / (m + 2.0f);\n"
    "    return copysignf(a < 1e-4f ? a : y, x);\n"
    "}\n"},
    {"erf_f32",
    "/* x P(x^2) for |x| < 0.93, otherwise 1 - exp(-|x| Q(|x|)) with the sign of x. */\n"
    "static inline float erf_f32(float x) {\n"
    "    const float a = fabsf(x), t = a > 4.0f ? 4.0f : a, z = a * a;\n"
    "    const float l = -0.0268592704f + z * (0.00520063424f + z * (-0.000813743682f + z * 8.34522143e-5f));\n"
    "    const float small = a + a * (0.128379166f + z * (-0.376126349f + z * (0.112836942f + z * l)));\n"
    "    const float q = -0.023753006f + t * (0.00363849476f + t * (-0.000321903295f + t * 1.11483105e-5f));\n"
    "    const float size = t + t * (0.128646553f + t * (0.635158658f + t * (0.10622555f + t * q)));\n"
    "    const float tail = 1.0f - exp_f32(-size), end = a > 4.0f ? 1.0f : tail, value = a >= 0.93f ? end : small;\n"
    "    return copysignf(value, x);\n"
    "}\n"},
    {"gelu_f32",
    "/* x times the normal distribution function 1/2 + x P(x^2) / Q(x^2), whose absolute error is at most 2e-7. */\n"
    "static inline float gelu_f32(float x) {\n"
    "    const float high = x > 5.6f ? 5.6f : x, a = high < -5.6f ? -5.6f : high, z = a * a;\n"
    "    const float l = 0.00470335987f + z * (0.000173217964f + z * (6.34756685e-6f + z * 2.21612200e-8f));\n"
    "    const float p = 0.398942226f + z * (0.0343191040f + z * l);\n"
    "    const float m = 0.00190941968f + z * (7.48746640e-5f + z * 1.18001065e-6f);\n"
    "    const float q = 1.0f + z * (0.252691010f + z * (0.0289064122f + z * m)), phi = a * p / q + 0.5f;\n"
    "    return x * (x <= -5.6f ? 0.0f : x >= 5.6f ? 1.0f : phi);\n"
    "}\n"},
    {"atan_f32",
    "/* Beyond 1, atan(x) = pi/2 - atan(1/x). */\n"
    "static inline float atan_f32(float x) {\n"
    "    const float a = fabsf(x), t = (a > 1.0f ? -1.0f : a) / (a > 1.0f ? a : 1.0f), z = t * t;\n"
    "    const float l = 0.0625016944f + z * (-0.0358715389f + z * (0.0135077714f + z * -0.00238699731f));\n"
    "    const float m = -0.142785687f + z * (0.110337642f + z * (-0.0865688043f + z * l));\n"
    "    const float p = t + t * z * (-0.333333317f + z * (0.199997393f + z * m));\n"
    "    return copysignf(a > 1.0f ? 1.57079637f + (p - 4.37113883e-8f) : p, x);\n"
    "}\n"},
    OPDI_C_SUMS("4", "16"), OPDI_C_SUMS("8", "32"), OPDI_C_SUMS("16", "64"),
    OPDI_C_ADD("4"), OPDI_C_ADD("8"), OPDI_C_ADD("16"), OPDI_C_ADD_ALL("4"), OPDI_C_ADD_ALL("8"), OPDI_C_ADD_ALL("16"),
    {"relu6_f32", "static inline float relu6_f32(float x) {\n"
    "    const float low = x < 0 ? 0 : x;\n"
    "    return low > 6 ? 6 : low;\n"
    "}\n"},
    {"gelu_inner_f32",
    "static inline float gelu_inner_f32(float x) { return 0.797884561f * (x + 0.044715f * x * x * x); }\n"},
    {"clamp_f32",
    "static inline float clamp_f32(float x, float y, float z) {\n"
    "    const float m = x > y || x != x ? x : y;\n"
    "    return m < z || m != m ? m : z;\n"
    "}\n"},
    {"remainder_i64",
    "static inline int64_t remainder_i64(int64_t x, int64_t y) {\n"
    "    const int64_t r = y == 0 || y == -1 ? 0 : x % y;\n"
    "    return r != 0 && (r < 0) != (y < 0) ? r + y : r;\n"
    "}\n"},
    {"fmod_i64",
    "static inline int64_t fmod_i64(int64_t x, int64_t y) { return y == 0 || y == -1 ? 0 : x % y; }\n"},
    {"div_trunc_i64",
    "static inline int64_t div_trunc_i64(int64_t x, int64_t y) {\n"
    "    return y == 0 ? 0 : y == -1 ? (int64_t)(0u - (uint64_t)x) : x / y;\n"
    "}\n"},
    {"div_floor_i64",
    "static inline int64_t div_floor_i64(int64_t x, int64_t y) {\n"
    "    const int64_t q = div_trunc_i64(x, y);\n"
    "    return y != 0 && y != -1 && x % y != 0 && (x < 0) != (y < 0) ? q - 1 : q;\n"
    "}\n"},
    {"clamp_i64",
    "static inline int64_t clamp_i64(int64_t x, int64_t y, int64_t z) {\n"
    "    const int64_t m = x > y ? x : y;\n"
    "    return m < z ? m : z;\n"
    "}\n"},
    {"pow_i64",
    "static inline int64_t pow_i64(int64_t x, int64_t y) {\n"
    "    uint64_t power = 1, square = (uint64_t)x;\n"
    "    if (y < 0) { return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0; }\n"
    "    for (; y; y >>= 1) {\n"
    "        power = y & 1 ? power * square : power;\n"
    "        square *= square;\n"
    "    }\n"
    "    return (int64_t)power;\n"
    "}\n"},
    {"shift_left_i64",
    "static inline int64_t shift_left_i64(int64_t x, int64_t y) {\n"
    "    return y < 0 || y > 63 ? 0 : (int64_t)((uint64_t)x << y);\n"
    "}\n"},
    {"shift_right_i64",
    "static inline int64_t shift_right_i64(int64_t x, int64_t y) {\n"
    "    const int k = y < 0 || y > 63 ? 63 : (int)y;\n"
    "    return x < 0 ? (int64_t)~(~(uint64_t)x >> k) : (int64_t)((uint64_t)x >> k);\n"
    "}\n"},
    {"gcd_i64",
    "static inline int64_t gcd_i64(int64_t x, int64_t y) {\n"
    "    uint64_t first = x < 0 ? 0 - (uint64_t)x : (uint64_t)x, second = y < 0 ? 0 - (uint64_t)y : (uint64_t)y;\n"
    "    while (second) {\n"
    "        const uint64_t rest = first % second;\n"
    "        first = second;\n"
    "        second = rest;\n"
    "    }\n"
    "    return (int64_t)first;\n"
    "}\n"},
    {"lcm_i64",
    "static inline int64_t lcm_i64(int64_t x, int64_t y) {\n"
    "    const int64_t common = gcd_i64(x, y), value = common ? (int64_t)((uint64_t)(x / common) * (uint64_t)y) : 0;\n"
    "    return value < 0 ? (int64_t)(0 - (uint64_t)value) : value;\n"
    "}\n"},
    {"relu6_f64", "static inline double relu6_f64(double x) {\n"
    "    const double low = x < 0 ? 0 : x;\n"
    "    return low > 6 ? 6 : low;\n"
    "}\n"},
    {"gelu_inner_f64",
    "static inline double gelu_inner_f64(double x) { return 0.79788456080286535588 * (x + 0.044715 * x * x * x); }\n"},
    {"clamp_f64",
    "static inline double clamp_f64(double x, double y, double z) {\n"
    "    const double m = x > y || x != x ? x : y;\n"
    "    return m < z || m != m ? m : z;\n"
    "}\n"},
    /* special functions, computed as in the room >>op:special */
    {"powers_f64",
    "/* The sum of table[k] x^k. */\n"
    "static inline double powers_f64(const double *table, int count, double x) {\n"
    "    const double square = x * x;\n"
    "    double even = 0, odd = 0;\n"
    "    if (count & 1) { even = table[--count]; }\n"
    "    for (; count > 0; count -= 2) {\n"
    "        odd = odd * square + table[count - 1];\n"
    "        even = even * square + table[count - 2];\n"
    "    }\n"
    "    return even + x * odd;\n"
    "}\n"},
    {"digamma_up_f64",
    "/* The derivative of lgamma: this function is for x > 0, the next one for all x. */\n"
    "static inline double digamma_up_f64(double x) {\n"
    "    static const double digamma_series[9] = {\n"
    "        0.08333333333333333, -0.008333333333333333, 0.003968253968253968, -0.004166666666666667,\n"
    "        0.007575757575757576, -0.021092796092796094, 0.08333333333333333, -0.4432598039215686,\n"
    "        3.0539543302701198};\n"
    "    double over = 0, under = 1;\n"
    "    for (; x < 10; x += 1) {\n"
    "        over = over * x + under;\n"
    "        under *= x;\n"
    "    }\n"
    "    const double inverse = 1 / (x * x);\n"
    "    return log(x) - 0.5 / x - inverse * powers_f64(digamma_series, 9, inverse) - over / under;\n"
    "}\n"},
    {"digamma_f64",
    "static inline double digamma_f64(double x) {\n"
    "    if (x == 0) { return copysign(1.0, x) < 0 ? (double)INFINITY : -(double)INFINITY; }\n"
    "    if (!(x < 0)) { return digamma_up_f64(x); }\n"
    "    return x == floor(x) ? (double)NAN : digamma_up_f64(1 - x) -\n"
    "        3.14159265358979323846 / tan(3.14159265358979323846 * (x - floor(x + 0.5)));\n"
    "}\n"},
    {"lgamma_two_f64",
    "/* lgamma(2 + x) for |x| <= 1 / 2.  The next functions: for x > 0, near a zero, for x < 0, for all x. */\n"
    "static inline double lgamma_two_f64(double x) {\n"
    "    static const double gamma_near_two[19] = {\n"
    "        0.42278433509846713, 0.16123351671205663, -0.016838075263299536, 0.002572601053472542,\n"
    "        -0.000461596939291756, 9.032844784489912e-05, -1.8636779875052926e-05, 3.981793088659667e-06,\n"
    "        -8.716982449081134e-07, 1.9425327031438992e-07, -4.387339030049162e-08, 1.001249236957858e-08,\n"
    "        -2.3043102744274226e-09, 5.352455971471404e-10, -1.2481294697143873e-10, 2.8075860826633894e-11,\n"
    "        -6.566215046625873e-12, 2.1270762170785405e-12, -5.117684453811745e-13};\n"
    "    return x * powers_f64(gamma_near_two, 19, 2 * x);\n"
    "}\n"},
    {"lgamma_up_f64",
    "static inline double lgamma_up_f64(double x) {\n"
    "    static const double stirling[9] = {\n"
    "        0.08333333333333333, -0.002777777777777778, 0.0007936507936507937, -0.0005952380952380953,\n"
    "        0.0008417508417508417, -0.0019175269175269176, 0.00641025641025641, -0.029550653594771242,\n"
    "        0.17964437236883057};\n"
    "    double product = 1;\n"
    "    if (x >= 8) {\n"
    "        const double rest = 0.91893853320467274 + powers_f64(stirling, 9, 1 / (x * x)) / x;\n"
    "        return x > 1.7e308 ? x : (x - 0.5) * log(x) - x + rest;\n"
    "    }\n"
    "    if (x < 0.5) { return lgamma_two_f64(x) - log(x * (1 + x)); }\n"
    "    if (x < 1.5) { return lgamma_two_f64(x - 1) - log1p(x - 1); }\n"
    "    while (x > 2.5) {\n"
    "        x -= 1;\n"
    "        product *= x;\n"
    "    }\n"
    "    return lgamma_two_f64(x - 2) + log(product);\n"
    "}\n"},
    {"lgamma_zero_f64",
    "static inline double lgamma_zero_f64(double zero, double less, double away) {\n"
    "    const int shift = (int)floor(2.5 - zero);\n"
    "    const double middle = zero + shift + away / 2;\n"
    "    double sum = 0, bend = 0, x = middle;\n"
    "    for (; x < 10; x += 1) { bend -= 2 / (x * x * x); }\n"
    "    const double part = 1 / (x * x);\n"
    "    bend -= part * (1 + 1 / x + part * (0.5 - part * (1.0 / 6 - part * (1.0 / 6 - part * 0.3))));\n"
    "    sum = away * (digamma_f64(middle) + away * away * bend / 24);\n"
    "    for (int k = 0; k < shift; k++) { sum -= log1p(away / ((zero + k) + less)); }\n"
    "    return sum;\n"
    "}\n"},
    {"lgamma_down_f64",
    "static inline double lgamma_down_f64(double x) {\n"
    "    static const double gamma_ones[20] = {\n"
    "        -2.4570247382208006, -3.7075610815513266e-17, -2.7476826467274127, 9.055340329338315e-17,\n"
    "        -3.14358088834998, -2.1818179852331714e-16, -3.955294284858598, -1.999428391746348e-17,\n"
    "        -4.039361839740537, 2.1143995503980602e-16, -4.991544640560048, 1.5174411760571722e-16,\n"
    "        -5.0082181683225935, -4.3926353491015815e-17, -5.998607480080875, -3.311862478893795e-16,\n"
    "        -6.001385294453155, 6.415847287933042e-17, -6.999801507890638, 1.0550130037400023e-17};\n"
    "    double product = 1;\n"
    "    for (int k = 0; k < 20; k += 2) {\n"
    "        const double away = (x - gamma_ones[k]) - gamma_ones[k + 1], pole = x - floor(x + 0.5);\n"
    "        if (fabs(away) < 4e-3 && fabs(away) < fabs(pole) / 3) {\n"
    "            return lgamma_zero_f64(gamma_ones[k], gamma_ones[k + 1], away);\n"
    "        }\n"
    "    }\n"
    "    for (; x < 1.5; x += 1) { product *= x; }\n"
    "    return lgamma_two_f64(x - 2) - log(fabs(product));\n"
    "}\n"},
    {"lgamma_f64",
    "static inline double lgamma_f64(double x) {\n"
    "    const double pi = 3.14159265358979323846;\n"
    "    if (x > 0 || x != x) { return x != x ? x : lgamma_up_f64(x); }\n"
    "    if (x == floor(x)) { return (double)INFINITY; }\n"
    "    if (x < -2 && x > -20) { return lgamma_down_f64(x); }\n"
    "    if (x > -1e-17) { return -log(-x); }\n"
    "    return log(pi / fabs(x * sin(pi * (x - floor(x + 0.5))))) - lgamma_up_f64(-x);\n"
    "}\n"},
    {"erfinv_part_f64",
    "/* erfinv(y) / y, as a function of 1 - y^2. */\n"
    "static inline double erfinv_part_f64(double rest) {\n"
    "    static const double erfinv_middle[25] = {\n"
    "        1.6536545626831027, 0.7504943200799635, -0.05892256710377839, -0.022604447453450232,\n"
    "        0.017808361818321756, -0.004137314377403391, -0.001271692268923054, 0.001232485568550093,\n"
    "        -0.00026439366376450275, -0.00011688883906368398, 9.336736525855553e-05, -1.5027713926607673e-05,\n"
    "        -1.12572237422896e-05, 7.1300663740767115e-06, -6.839448584111029e-07, -1.059336931327948e-06,\n"
    "        5.397895417173957e-07, -1.0167881522843899e-08, -9.905042307855316e-08, 3.9142671001331085e-08,\n"
    "        5.039596477958063e-09, -8.557984074479201e-09, 1.4461050507676023e-09, 7.680990475576525e-10,\n"
    "        -2.5466157998892667e-10};\n"
    "    static const double erfinv_tail[25] = {\n"
    "        3.5875041872852242, 1.2608470495124553, 0.0032100697498925377, -0.002513060360180213,\n"
    "        0.0013296875361222963, -0.0008104755785164408, 0.0006085808913154581, -0.0004564659354180374,\n"
    "        0.00028191565262630043, -0.00011949304150452255, 1.4562201696028464e-05, 2.4981762239216766e-05,\n"
    "        -2.352162194228108e-05, 1.0192254058352984e-05, -9.132713392295978e-07, -1.8793362059549453e-06,\n"
    "        1.3814261848007931e-06, -4.3398778915619797e-07, -1.6644086681924207e-08, 9.294140177453962e-08,\n"
    "        -5.4819225340819004e-08, 1.4382568588564247e-08, 3.37450048126613e-09, -3.814212743385927e-09,\n"
    "        8.487194093702458e-10};\n"
    "    static const double erfinv_far[47] = {\n"
    "        16.167818521819697, 11.285678745648068, -0.017383315740869182, 0.008667161215317458,\n"
    "        -0.004256313404221921, 0.001983427045679832, -0.000819429440091023, 0.00024039785440625435,\n"
    "        3.0167012714528128e-05, -0.00014077100462852647, 0.00017132986534073444, -0.0001624429202630677,\n"
    "        0.00013751487057438077, -0.00013607111437794283, 0.00014102169621729095, 0.00012012633398518287,\n"
    "        -0.000370999966130888, -0.0013733998559155606, 0.0027610512564484645, 0.007163298079255033,\n"
    "        -0.013654998597330287, -0.03019021412606424, 0.053861620834436734, 0.10014714224660594,\n"
    "        -0.16885611055474528, -0.2646893458627321, 0.42427922462137313, 0.5594917467999015,\n"
    "        -0.8570993246708947, -0.9465278328926597, 1.3919341748130496, 1.277452483981488,\n"
    "        -1.8102527513493016, -1.3647551083380571, 1.8698236111083852, 1.1385197234965871,\n"
    "        -1.512523130933567, -0.7255116910013503, 0.9369954667312674, 0.3408913318776074,\n"
    "        -0.42897618061247766, -0.11126390878996534, 0.1367048811054247, 0.02252274879689945,\n"
    "        -0.027068466395709843, -0.0021291756731886572, 0.0025072091355943507};\n"
    "    const double w = -log(rest), root = sqrt(w);\n"
    "    return w < 6.25 ? powers_f64(erfinv_middle, 25, w / 3.125 - 1)\n"
    "        : root < 5 ? powers_f64(erfinv_tail, 25, (root - 3.75) / 1.25)\n"
    "        : powers_f64(erfinv_far, 47, (root - 16.25) / 11.25);\n"
    "}\n"},
    {"erfinv_f64",
    "static inline double erfinv_f64(double y) {\n"
    "    const double size = fabs(y);\n"
    "    if (!(size < 1)) { return size == 1 ? y * (double)INFINITY : (double)NAN; }\n"
    "    return y * erfinv_part_f64((1 - size) * (1 + size));\n"
    "}\n"},
    {"ndtri_f64",
    "static inline double ndtri_f64(double p) {\n"
    "    if (p == 0 || p == 1) { return p == 0 ? -(double)INFINITY : (double)INFINITY; }\n"
    "    if (!(p > 0 && p < 1)) { return (double)NAN; }\n"
    "    return (2 * p - 1) * erfinv_part_f64(4 * p * (1 - p)) * 1.4142135623730951;\n"
    "}\n"},
    {"exp_square_f64",
    "static inline double exp_square_f64(double x) {\n"
    "    const double rough = (double)(float)x;\n"
    "    return exp(rough * rough) * exp((x - rough) * (x + rough));\n"
    "}\n"},
    {"erfcx_up_f64",
    "static inline double erfcx_up_f64(double x) {\n"
    "    static const double erfcx_scaled[25] = {\n"
    "        1.2375126308378275, -0.14024059858554697, 0.0035854154854644293, 0.0822767384901452,\n"
    "        -0.10880393014174886, 0.09230432116037748, -0.05869339858963677, 0.028362277418956406,\n"
    "        -0.009746579558029276, 0.0017556258528952954, 0.00029371366559134476, -0.00029015408054084167,\n"
    "        5.164909889268259e-05, 2.238423915508205e-05, -1.1444146237700994e-05, -9.735598967364506e-07,\n"
    "        1.7516376488498498e-06, -5.7218230603606515e-08, -2.586685071624259e-07, 2.3263508709141603e-08,\n"
    "        3.867533424282623e-08, -3.744210081080678e-09, -5.173990214252411e-09, 3.111433381196195e-10,\n"
    "        4.251471445216738e-10};\n"
    "    if (!(x < 1e150)) { return 0.56418958354775628695 / x; }\n"
    "    return powers_f64(erfcx_scaled, 25, (x - 3.75) / (x + 3.75)) / (1 + 2 * x);\n"
    "}\n"},
    {"erfcx_f64",
    "static inline double erfcx_f64(double x) {\n"
    "    if (x < -27) { return (double)INFINITY; }\n"
    "    return x < 0 ? 2 * exp_square_f64(x) - erfcx_up_f64(-x) : erfcx_up_f64(x);\n"
    "}\n"},
    {"log_ndtr_f64",
    "static inline double log_ndtr_f64(double x) {\n"
    "    const double root = x * 0.70710678118654752440;\n"
    "    return x < -1 ? log(erfcx_f64(-root) / 2) - root * root : log1p(-erfc(root) / 2);\n"
    "}\n"},
    {"entr_f64",
    "static inline double entr_f64(double x) {\n"
    "    return x != x ? x : x > 0 ? -x * log(x) : x == 0 ? 0 : -(double)INFINITY;\n"
    "}\n"},
    {"xlog1py_f64",
    "static inline double xlog1py_f64(double x, double y) { return y != y ? y : x == 0 ? 0 : x * log1p(y); }\n"},
    {"bessel_0_f64",
    "/* Modified Bessel functions: multiplied by factor if size <= 8, otherwise divided by exp(size). */\n"
    "static inline double bessel_0_f64(double size, double factor) {\n"
    "    static const double i0_series[25] = {\n"
    "        1.0, 16.0, 64.0, 113.77777777777777, 113.77777777777777, 72.81777777777778, 32.36345679012346,\n"
    "        10.567659360040313, 2.6419148400100783, 0.5218597214834723, 0.08349755543735556,\n"
    "        0.011040999066096603, 0.0012267776740107336, 0.00011614463185900436, 9.481194437469744e-06,\n"
    "        6.742182711089596e-07, 4.2138641944309975e-08, 2.332935194148649e-09, 1.1520667625425427e-10,\n"
    "        5.106113074980799e-12, 2.0424452299923196e-13, 7.410232126956262e-15, 2.4496635130433923e-16,\n"
    "        7.40919020958304e-18, 2.0581083915508441e-19};\n"
    "    static const double i0_large[25] = {\n"
    "        0.4021765094450081, 0.0033605519836678614, 0.0001362160743919305, 1.1143033790932038e-05,\n"
    "        1.4838475658279249e-06, 2.9735985885673923e-07, 8.872219737904054e-08, 3.932584334552952e-08,\n"
    "        2.1548377974791598e-08, 7.554691881248808e-09, -6.747657956107524e-09, -1.340891754008974e-08,\n"
    "        -5.404771567579958e-09, 7.552583062123384e-09, 7.430464650325426e-09, -3.505966530879332e-09,\n"
    "        -5.95356943826489e-09, 1.5200816953924232e-09, 3.6379546359011143e-09, -5.715843864202709e-10,\n"
    "        -1.618980683624682e-09, 1.5279202694981569e-10, 4.577087631643623e-10, -2.0260604287413626e-11,\n"
    "        -6.067631570603006e-11};\n"
    "    return size <= 8 ? factor * powers_f64(i0_series, 25, size * size / 64)\n"
    "        : powers_f64(i0_large, 25, 16 / size - 1) / sqrt(size);\n"
    "}\n"},
    {"i0e_f64",
    "static inline double i0e_f64(double x) { return bessel_0_f64(fabs(x), fabs(x) <= 8 ? exp(-fabs(x)) : 1); }\n"},
    {"i0_f64",
    "static inline double i0_f64(double x) {\n"
    "    const double root = fabs(x) <= 8 ? 1 : exp(fabs(x) / 2);\n"
    "    return root * bessel_0_f64(fabs(x), 1) * root;\n"
    "}\n"},
    {"bessel_1_f64",
    "static inline double bessel_1_f64(double size, double factor) {\n"
    "    static const double i1_series[25] = {\n"
    "        1.0, 8.0, 21.333333333333332, 28.444444444444443, 22.755555555555556, 12.136296296296296,\n"
    "        4.623350970017636, 1.3209574200050391, 0.29354609333445314, 0.05218597214834722,\n"
    "        0.007590686857941414, 0.0009200832555080502, 9.436751338544105e-05, 8.296045132786026e-06,\n"
    "        6.320796291646496e-07, 4.2138641944309975e-08, 2.4787436437829395e-09, 1.2960751078603606e-10,\n"
    "        6.0635092765396984e-12, 2.5530565374903993e-13, 9.725929666630093e-15, 3.368287330434664e-16,\n"
    "        1.0650710926275618e-17, 3.087162587326266e-19, 8.232433566203377e-21};\n"
    "    static const double i1_large[25] = {\n"
    "        0.38939845902587233, -0.009749577193235737, -0.00021923576383388928, -1.5038547200567216e-05,\n"
    "        -1.8349101326980946e-06, -3.483855761044295e-07, -1.0001288294864884e-07, -4.312917729178349e-08,\n"
    "        -2.337392820814264e-08, -8.427766093735185e-09, 6.734464815301592e-09, 1.4034238782067183e-08,\n"
    "        5.974437608040264e-09, -7.64239413436356e-09, -7.888351507862078e-09, 3.4262341490077958e-09,\n"
    "        6.242741219786445e-09, -1.4387250533041013e-09, -3.794670896208339e-09, 5.295625441161261e-10,\n"
    "        1.6848984479705146e-09, -1.4011625179770627e-10, -4.758818838703853e-10, 1.8515118828852956e-11,\n"
    "        6.305965197150057e-11};\n"
    "    return size <= 8 ? factor * (size / 2) * powers_f64(i1_series, 25, size * size / 64)\n"
    "        : powers_f64(i1_large, 25, 16 / size - 1) / sqrt(size);\n"
    "}\n"},
    {"i1e_f64",
    "static inline double i1e_f64(double x) {\n"
    "    return copysign(bessel_1_f64(fabs(x), fabs(x) <= 8 ? exp(-fabs(x)) : 1), x);\n"
    "}\n"},
    {"i1_f64",
    "static inline double i1_f64(double x) {\n"
    "    const double root = fabs(x) <= 8 ? 1 : exp(fabs(x) / 2);\n"
    "    return copysign(root * bessel_1_f64(fabs(x), 1) * root, x);\n"
    "}\n"},
    OPDI_C_FLOAT_HELPERS("float", "f32", "f"),
    OPDI_C_FLOAT_HELPERS("double", "f64", ""),
};
OPDI_HAS_COUNT(opdi_c_helpers, OPDI_C_HELPERS);

OPDI_INTERNAL void opdi_c_need(opdi_cfile *file, const char *name) {
    for (size_t i = 0; i < sizeof opdi_c_helpers / sizeof *opdi_c_helpers; i++) {
        if (strcmp(opdi_c_helpers[i].name, name) != 0) { continue; }
        file->helpers[i / 64] |= (uint64_t)1 << (i % 64);
        const char *at = opdi_c_helpers[i].text;  /* the helpers that this helper calls */
        for (size_t k = 0; k < i; k++) {
            if (strstr(at, opdi_c_helpers[k].name)) { opdi_c_need(file, opdi_c_helpers[k].name); }
        }
        return;
    }
    if (!file->failed) { (void)opd_fail(OPD_ERROR_ARGUMENT, "%s cannot be written in C", name); }
    file->failed = true;
}
OPDI_INTERNAL bool opdi_c_has(const char *name) {
    for (size_t i = 0; i < sizeof opdi_c_helpers / sizeof *opdi_c_helpers; i++) {
        if (strcmp(opdi_c_helpers[i].name, name) == 0) { return true; }
    }
    return false;
}

/* Returns the C type of elements of dtype `dtype` in memory, or NULL if there is none. */
OPDI_INTERNAL const char *opdi_c_type(opd_scalar_type dtype) {
    switch ((int)dtype) {
    case OPD_FLOAT32: return "float";
    case OPD_FLOAT64: return "double";
    case OPD_INT64: return "int64_t";
    case OPD_INT32: return "int32_t";
    case OPD_INT16: return "int16_t";
    case OPD_INT8: return "int8_t";
    case OPD_UINT8: case OPD_BOOL: return "uint8_t";
    case OPD_FLOAT16: case OPD_BFLOAT16: return "uint16_t";
    default: return NULL;
    }
}
/* Returns the C type in which values of dtype `dtype` are computed.  16-bit floats are computed as floats, and rounded
   to 16 bits after each operation. */
OPDI_INTERNAL const char *opdi_c_value(opd_scalar_type dtype) {
    return dtype == OPD_FLOAT16 || dtype == OPD_BFLOAT16 ? "float" : opdi_c_type(dtype);
}
OPDI_INTERNAL void opdi_c_name(const opdi_buffer *buffer, char name[64]) {
    if (buffer->name) {
        (void)snprintf(name, 64, "%s", buffer->name);
    } else { (void)snprintf(name, 64, "t%d", (int)buffer->id); }
}
/* Writes the offset of an element as a C expression, such as "4 * i0 + i1 + 3".  Leaves out the loops before number
   `from`: they do not matter if the buffer has memory for only one row. */
static void opdi_c_write_place(opdi_cfile *file, const opdi_access *access, int ndim, int from, int64_t offset) {
    bool any = false;
    for (int i = from; i < ndim; i++) {
        if (!access->strides[i]) { continue; }
        opdi_c_write(file, any ? " + " : "");
        if (access->strides[i] != 1) { opdi_c_write(file, "%lld * ", (long long)access->strides[i]); }
        opdi_c_write(file, "i%d", i);
        any = true;
    }
    if (offset || !any) {
        opdi_c_write(file, any ? offset < 0 ? " - %lld" : " + %lld" : "%lld", (long long)(any && offset < 0 ? -offset
            : offset));
    }
}
/* Returns whether a buffer has memory for only one row, a C array in the function of the group.  If so, sets *low to
   the first element of the row. */
static bool opdi_c_in_row(const opdi_cfile *file, const opdi_access *access, int64_t *low) {
    const opdi_group *const group = file->group;
    if (!access->buffer->group || access->buffer->group != group) { return false; }
    for (int i = 0; i < group->nnests; i++) {
        const opdi_nest *const nest = group->nests[i];
        int64_t high;
        if (nest->out.buffer != access->buffer) { continue; }
        opdi_access_range(&nest->out, nest, group->outer, nest->ndim - nest->nreduce, low, &high);
        return true;
    }
    return false;
}
/* Writes the element of an access as a C expression to which a value can be assigned.  `more` is a text that is added
   to the offset of the element. */
OPDI_INTERNAL void opdi_c_write_element(opdi_cfile *file, const opdi_access *access, int ndim, bool written,
                                        const char *more) {
    char name[64];
    int64_t low = 0;
    opdi_c_name(access->buffer, name);
    const bool row = opdi_c_in_row(file, access, &low);
    const bool other = access->buffer->dtype != access->dtype;
    if (other && !row) {
        opdi_c_write(file, "((%s%s *)%s)[", written ? "" : "const ", opdi_c_type(access->dtype), name);
    } else { opdi_c_write(file, "%s[", name); }
    opdi_c_write_place(file, access, ndim, row ? file->group->outer : 0, access->offset - low);
    opdi_c_write(file, "%s]", more);
}
OPDI_INTERNAL void opdi_c_write_number(opdi_cfile *file, opd_scalar_type dtype, double f64, int64_t i64) {
    if (dtype == OPD_FLOAT64 || dtype == OPD_FLOAT32 || dtype == OPD_FLOAT16 || dtype == OPD_BFLOAT16) {
        const bool wide = dtype == OPD_FLOAT64;
        const char *const type = wide ? "double" : "float";
        if (f64 != f64 || f64 - f64 != 0) {
            opdi_c_write(file, "%s(%s)%s", f64 < 0 ? "-" : "", type, f64 != f64 ? "NAN" : "INFINITY");
            return;
        }
        char text[64];
        (void)snprintf(text, sizeof text, wide ? "%.17g" : "%.9g", wide ? f64 : (double)(float)f64);
        opdi_c_write(file, "%s%s%s", text, strpbrk(text, ".e") ? "" : ".0", wide ? "" : "f");
    } else { opdi_c_write(file, i64 == INT64_MIN ? "INT64_MIN" : "%lld", (long long)i64); }
}

/* Writes f64[k] or i64[k] of an expression as a C expression. */
static void opdi_c_write_expr_number(opdi_cfile *file, const opdi_expr *expr, int k) {
    static const char *const forms[][2] = {
        {"", ""}, {"", ""}, {"1.0 / ", ""}, {"sqrt((double)", ")"}, {"1.0 / sqrt((double)", ")"}};
    const char *const *const form = forms[expr->forms[k]];
    if (!expr->forms[k] || expr->dtype == OPD_INT64) {
        opdi_c_write_number(file, expr->dtype, expr->f64[k], expr->i64[k]);
    }
    else {
        opdi_c_write(file, "(%s)(%s%lld%s)", expr->dtype == OPD_FLOAT64 ? "double" : "float", form[0],
                     (long long)expr->i64[k], form[1]);
    }
}

typedef struct opdi_formula_args { char names[3][32]; const opdi_expr *expr; } opdi_formula_args;
/* Writes a pointwise formula as C for the dtype of args->expr.  `text` is the replacement text of the formula's macro.
   The operands and constants of `args` replace those in the text. */
static void opdi_c_write_formula(opdi_cfile *file, const char *text, size_t length, const opdi_formula_args *args) {
    const opd_scalar_type dtype = args->expr->dtype;
    const bool wide = dtype == OPD_FLOAT64, whole = dtype == OPD_INT64;
    const char *const suffix = whole ? "i64" : wide ? "f64" : "f32";
    static const struct { const char *macro; char sign; } signs[] = {
        {"OPD_ADD(", '+'}, {"OPD_SUB(", '-'}, {"OPD_MUL(", '*'}, {"OPD_NEG(", '-'}};
    const char *const end = text + length;
    while (text < end) {
        size_t word = 0;
        if (whole && strncmp(text, " | (x != x)", 11) == 0) {       /* integers are never NaN */
            text += 11;
            continue;
        }
        while (text + word < end && (opdi_c_letter(text[word]))) { word++; }
        if (!word || (*text >= '0' && *text <= '9')) {
            word = word ? word : 1;
            opdi_c_write(file, "%.*s", (int)word, text);
            text += word;
            continue;
        }
        int sign = -1;
        for (int i = 0; i < 4; i++) { if (word == 7 && strncmp(text, signs[i].macro, 8) == 0) { sign = i; } }
        if (sign >= 0) {                          /* the word is the macro for a sum, difference, product or negation */
            const char *const first = text + 8, *at = first, *second = NULL;
            for (int depth = 1; depth; at++) {
                depth += (*at == '(') - (*at == ')');
                if (depth == 1 && *at == ',' && !second) { second = at + 1; }
            }
            const char *const close = at - 1;
            opdi_c_write(file, whole ? "(int64_t)(" : "(");
            if (sign < 3) {
                opdi_c_write(file, whole ? "(uint64_t)" : "");
                opdi_c_write_formula(file, first, (size_t)(second - 1 - first), args);
                opdi_c_write(file, " %c%s", signs[sign].sign, whole ? " (uint64_t)" : "");
                opdi_c_write_formula(file, second, (size_t)(close - second), args);
            } else {
                opdi_c_write(file, whole ? "0u - (uint64_t)" : "-");
                opdi_c_write_formula(file, first, (size_t)(close - first), args);
            }
            opdi_c_write(file, ")");
            text = at;
            continue;
        }
        const bool function = word == 6 && strncmp(text, "OPD_FN(", 7) == 0;
        const bool helper = word == 5 && strncmp(text, "OPD_H(", 6) == 0;
        if (function || helper) {
            const char *const from = strchr(text, '(') + 1, *const to = strchr(from, ')');
            char name[64], full[80];
            (void)snprintf(name, sizeof name, "%.*s", (int)(to - from), from);
            (void)snprintf(full, sizeof full, "same_%s_%s", name, suffix);
            if (!opd_same_bits() || !opdi_c_has(full)) { (void)snprintf(full, sizeof full, "%s_%s", name, suffix); }
            if (helper || opdi_c_has(full)) {
                opdi_c_need(file, full);
                opdi_c_write(file, "%s", full);
            } else { opdi_c_write(file, "%s%s", name, wide ? "" : "f"); }
            text = to + 1;
        } else if (word == 1 && *text >= 'x' && *text <= 'z') {
            opdi_c_write(file, "%s", args->names[*text - 'x']);
            text++;
        } else if (word == 1 && *text >= 'a' && *text <= 'c') {
            opdi_c_write(file, "(");
            opdi_c_write_expr_number(file, args->expr, *text - 'a');
            opdi_c_write(file, ")");
            text++;
        } else {
            const bool type = word == 5 && strncmp(text, "OPD_T", 5) == 0;
            opdi_c_write(file, "%.*s", type ? (int)strlen(opdi_c_type(dtype)) : (int)word, type ? opdi_c_type(dtype)
                : text);
            text += word;
        }
    }
}
static const char *const opdi_formula_texts[] = {
#define OPDI_FORMULA_TEXT(name, inputs, kind, formula) OPDI_TEXT(#formula),
    OPD_FORMULAS_ALL(OPDI_FORMULA_TEXT) OPD_FORMULAS_FLOAT(OPDI_FORMULA_TEXT)
    OPD_FORMULAS_INT_OWN(OPDI_FORMULA_TEXT) "x",
    OPDI_NEST_FORMULAS(OPDI_FORMULA_TEXT)
};
static const struct { const char *name, *text; } opdi_formula_int_texts[] = {
#define OPDI_FORMULA_INT_TEXT(name, inputs, kind, formula) {#name, #formula},
    OPDI_FORMULAS_INT_SHARED(OPDI_FORMULA_INT_TEXT)
};
OPDI_INTERNAL const char *opdi_formula_text(const opdi_expr *expr) {
    const size_t count = sizeof opdi_formula_int_texts / sizeof *opdi_formula_int_texts;
    for (size_t i = 0; expr->dtype == OPD_INT64 && i < count; i++) {
        if (strcmp(opdi_formula_int_texts[i].name, opdi_formula_names[expr->formula]) == 0) {
            return opdi_formula_int_texts[i].text;
        }
    }
    if (expr->formula == OPD_FORMULA_gelu && expr->dtype == OPD_FLOAT32) { return "OPD_H(gelu)(x)"; }
    if (expr->dtype == OPD_FLOAT32 && opd_same_bits()) {
        if (expr->formula == OPD_FORMULA_sigmoid) { return "OPD_H(same_sigmoid)(x)"; }
        if (expr->formula == OPD_FORMULA_silu) { return "OPD_H(same_silu)(x)"; }
    }
    return opdi_formula_texts[expr->formula];
}

/* Returns whether a value is the result of a comparison, 0 or 1, perhaps after casts.  In C, its variable has the type
   uint8_t, whatever its dtype is: the vectoriser of GCC 11 and 12 writes wrong code for a loop in which a condition of
   floats becomes a float, then a byte, and then a float again. */
static bool opdi_expr_condition(const opdi_expr *expr) {
    while (expr->kind == OPDI_EXPR_CAST && expr->dtype != OPD_BOOL) { expr = expr->in[0]; }
    if (expr->kind == OPDI_EXPR_CAST) { return true; }
    if (expr->kind != OPDI_EXPR_FORMULA) { return false; }
    switch (expr->formula) {
    case OPD_FORMULA_eq: case OPD_FORMULA_ne: case OPD_FORMULA_lt: case OPD_FORMULA_le: case OPD_FORMULA_gt:
    case OPD_FORMULA_ge: case OPD_FORMULA_logical_not: case OPD_FORMULA_logical_and: case OPD_FORMULA_logical_or:
    case OPD_FORMULA_logical_xor: case OPD_FORMULA_isnan: case OPD_FORMULA_isinf: case OPD_FORMULA_isfinite:
    case OPD_FORMULA_isposinf: case OPD_FORMULA_isneginf: case OPD_FORMULA_signbit: return true;
    default: return false;
    }
}
/* Returns whether a formula only asks whether operand i is zero. */
static bool opdi_expr_asks(const opdi_expr *expr, int i) {
    return expr->kind == OPDI_EXPR_FORMULA &&
        ((expr->formula == OPD_FORMULA_where && i == 0) || expr->formula == OPD_FORMULA_logical_not ||
         expr->formula == OPD_FORMULA_logical_and || expr->formula == OPD_FORMULA_logical_or ||
         expr->formula == OPD_FORMULA_logical_xor);
}
/* Returns whether a pointwise formula can be written in C: all helpers that it calls exist for its dtype. */
OPDI_INTERNAL bool opdi_c_writes(const opdi_expr *expr) {
    const char *const suffix = expr->dtype == OPD_INT64 ? "i64" : expr->dtype == OPD_FLOAT64 ? "f64" : "f32";
    const char *at = opdi_formula_text(expr);
    bool all = true;
    while ((at = strstr(at, "OPD_H(")) != NULL) {
        char name[72];
        at += strlen("OPD_H(");
        (void)snprintf(name, sizeof name, "%.*s_%s", (int)strcspn(at, ")"), at, suffix);
        all = all && opdi_c_has(name);
    }
    return all;
}
/* Writes a cast of the C expression `from`, whose dtype is `was`, to `dtype`. */
static void opdi_c_write_cast(opdi_cfile *file, const char *from, opd_scalar_type was, opd_scalar_type dtype) {
    const bool floating = opd_dtype_is_floating(was);
    if (dtype == OPD_BOOL) { opdi_c_write(file, "%s != 0", from); }
    else if (dtype == OPD_BFLOAT16 || dtype == OPD_FLOAT16) {
        const char *const name = dtype == OPD_BFLOAT16 ? "round_bf16" : "round_f16";
        opdi_c_need(file, name);
        opdi_c_write(file, "%s((float)%s)", name, from);
    } else if (floating && !opd_dtype_is_floating(dtype)) {
        const char *const name = dtype == OPD_INT64 || dtype == OPD_UINT8 ? "to_i64" : "to_i32";
        opdi_c_need(file, name);
        opdi_c_write(file, "(%s)%s(%s)", opdi_c_value(dtype), name, from);
    } else { opdi_c_write(file, "(%s)%s", opdi_c_value(dtype), from); }
}
/* Returns whether an expression divides an integer by a number that may be zero. */
OPDI_INTERNAL bool opdi_expr_divides(const opdi_expr *expr) {
    static const char *const names[] = {"div_trunc", "div_floor", "fmod", "remainder"};
    if (expr->kind != OPDI_EXPR_FORMULA || expr->dtype != OPD_INT64 ||
        (expr->in[1] && expr->in[1]->kind == OPDI_EXPR_NUMBER && expr->in[1]->i64[0] && !expr->in[1]->forms[0])) {
        return false;
    }
    for (int i = 0; i < 4; i++) { if (strcmp(opdi_formula_names[expr->formula], names[i]) == 0) { return true; } }
    return false;
}
/* Writes the lines that check the indices in the C variables `in`; if an index is out of range, the C function returns
   1.  Writes a text to `more` that adds the indices to an element's offset. */
static void opdi_c_write_indices(opdi_cfile *file, const opdi_expr *expr, const char *name, char in[][32],
                                 char more[256]) {
    for (int i = 0, at = 0; i < expr->nin; i++) {
        const long long size = (long long)expr->index_sizes[i];
        if (expr->wraps) {
            opdi_c_write_line(file, "const int64_t %s_%d = %s < 0 ? %s + %lld : %s;", name, i, in[i], in[i], size,
                              in[i]);
        } else { opdi_c_write_line(file, "const int64_t %s_%d = %s;", name, i, in[i]); }
        opdi_c_write_line(file, "if (%s_%d < 0 || %s_%d >= %lld) { return 1; }", name, i, name, i, size);
        at += snprintf(more + at, (size_t)(256 - at), " + %lld * %s_%d", (long long)expr->index_strides[i], name, i);
    }
}
static void opdi_c_write_variable(opdi_cfile *file, opdi_expr *expr, int ndim, char name[32]);
/* Writes the lines that compute a value.  Sets `name` to a C expression for it: the name of a variable or, if the value
   is a condition, a cast of the variable. */
OPDI_INTERNAL void opdi_c_write_value(opdi_cfile *file, opdi_expr *expr, int ndim, char name[32]) {
    char variable[20];
    opdi_c_write_variable(file, expr, ndim, name);
    if (expr->dtype == OPD_BOOL || !opdi_expr_condition(expr)) { return; }
    (void)snprintf(variable, sizeof variable, "%.19s", name);
    (void)snprintf(name, 32, "(%.9s)%s", opdi_c_value(expr->dtype), variable);
}
/* Writes the lines that compute operand i of an expression, and sets `name` to a C expression for it. */
static void opdi_c_name_operand(opdi_cfile *file, const opdi_expr *expr, int i, int ndim, char name[32]) {
    opdi_expr *in = expr->in[i];
    const bool asks = opdi_expr_asks(expr, i);
    while (asks && in->kind == OPDI_EXPR_CAST && in->in[0]->dtype == OPD_BOOL) { in = in->in[0]; }
    if (asks && opdi_expr_condition(in)) { opdi_c_write_variable(file, in, ndim, name); }
    else { opdi_c_write_value(file, in, ndim, name); }
}
/* Writes the part of a line that computes a value from the C expressions `in` for its operands.  `more` is a text that
   is added to the offset of a loaded element. */
static void opdi_c_write_computed(opdi_cfile *file, const opdi_expr *expr, int ndim, char in[][32], const char *more) {
    const bool half = expr->dtype == OPD_BFLOAT16 || expr->dtype == OPD_FLOAT16;
    if (expr->kind == OPDI_EXPR_LOAD) {
        if (half) {
            const char *const helper = expr->dtype == OPD_BFLOAT16 ? "from_bf16" : "from_f16";
            opdi_c_need(file, helper);
            opdi_c_write(file, "%s(", helper);
        }
        opdi_c_write_element(file, &expr->access, ndim, false, more);
        opdi_c_write(file, half ? ")" : "");
    } else if (expr->kind == OPDI_EXPR_NUMBER) { opdi_c_write_expr_number(file, expr, 0); }
    else if (expr->kind == OPDI_EXPR_COUNT) { opdi_c_write_place(file, &expr->access, ndim, 0, expr->access.offset); }
    else if (expr->kind == OPDI_EXPR_CAST) { opdi_c_write_cast(file, in[0], expr->in[0]->dtype, expr->dtype); }
    else {
        opdi_formula_args args;
        const char *text = opdi_formula_text(expr);
        memset(&args, 0, sizeof args);
        args.expr = expr;
        for (int i = 0; i < expr->nin; i++) { (void)snprintf(args.names[i], 32, "%s", in[i]); }
        text += opdi_expr_condition(expr) ? strlen("(OPD_T)") : 0;        /* a condition remains a condition */
        opdi_c_write_formula(file, text, strlen(text), &args);
    }
}
/* Writes the lines that compute a value: first those for its operands, then a line that declares a variable.  Sets
   `name` to the name of the variable. */
static void opdi_c_write_variable(opdi_cfile *file, opdi_expr *expr, int ndim, char name[32]) {
    char in[OPDI_NEST_INDICES][32], more[256] = "";
    while (expr->kind == OPDI_EXPR_CAST && opdi_expr_condition(expr->in[0])) { expr = expr->in[0]; }
    if (expr->kind == OPDI_EXPR_RESULT) {
        (void)snprintf(name, 32, "%s", file->result);
        return;
    }
    if (expr->mark > 0 && expr->round == opdi_expr_round) {
        (void)snprintf(name, 32, "v%d", (int)expr->mark);
        return;
    }
    for (int i = 0; i < expr->nin; i++) { opdi_c_name_operand(file, expr, i, ndim, in[i]); }
    if (!opdi_c_value(expr->dtype)) {
        if (!file->failed) { (void)opd_fail(OPD_ERROR_DTYPE, "%s cannot be compiled", opd_dtype_name(expr->dtype)); }
        file->failed = true;
        return;
    }
    expr->mark = ++file->next;
    expr->round = opdi_expr_round;
    (void)snprintf(name, 32, "v%d", (int)expr->mark);
    if (expr->kind == OPDI_EXPR_LOAD && expr->nin) { opdi_c_write_indices(file, expr, name, in, more); }
    if (opdi_expr_divides(expr)) { opdi_c_write_line(file, "if (%s == 0) { return 2; }", in[1]); }
    opdi_c_write_indent(file);
    opdi_c_write(file, "const %s %s = ", opdi_c_value(opdi_expr_condition(expr) ? OPD_BOOL : expr->dtype), name);
    opdi_c_write_computed(file, expr, ndim, in, more);
    opdi_c_write(file, ";\n");
}
/* Writes the line that stores the C variable `name` as the nest's result. */
OPDI_INTERNAL void opdi_c_write_store(opdi_cfile *file, opdi_nest *nest, const char *name) {
    const opdi_access *const access = &nest->out;
    const bool half = access->dtype == OPD_BFLOAT16 || access->dtype == OPD_FLOAT16;
    char in[OPDI_NEST_INDICES][32], more[256] = "";
    if (nest->place) {
        opdi_expr_round++;
        for (int i = 0; i < nest->place->nin; i++) { opdi_c_write_value(file, nest->place->in[i], nest->ndim, in[i]); }
        opdi_c_write_indices(file, nest->place, "place", in, more);
    }
    opdi_c_write_indent(file);
    opdi_c_write_element(file, access, nest->ndim, true, more);
    if (half) {
        const char *const helper = access->dtype == OPD_BFLOAT16 ? "to_bf16" : "to_f16";
        opdi_c_need(file, helper);
        opdi_c_write(file, " = %s(%s);\n", helper, name);
    } else { opdi_c_write(file, " = %s;\n", name); }
}
OPDI_INTERNAL void opdi_c_write_for(opdi_cfile *file, int loop, int64_t size) {
    opdi_c_write_open(file, "for (ptrdiff_t i%d = 0; i%d < %lld; i%d++) {", loop, loop, (long long)size, loop);
}
