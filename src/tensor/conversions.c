#include "tensor.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>loops        tensor iteration: promotion, broadcasting, block loops, copies
//
//  The base of all pointwise kernels.  A loop is written for float, double or int64_t over contiguous memory.  This
//  section handles all other cases (other dtypes, strides, broadcasting, threads) by running such a loop on blocks of
//  elements.  It uses tensors and the thread pool, and does not depend on operators.  Results are those of
//  at::TensorIterator.
//----------------------------------------------------------------------------------------------------------------------

//== conversions =======================================================================================================

static inline uint64_t opdi_to_u64(double x) {
    return x < 9223372036854775808.0 ? (uint64_t)opdi_to_i64(x)
        : (uint64_t)opdi_to_i64(x - 9223372036854775808.0) ^ (uint64_t)1 << 63;
}
static inline int32_t opdi_to_i32(double x) {
    return x > -2147483649.0 && x < 2147483648.0 ? (int32_t)x : INT32_MIN;
}
/* Converts x to an int32, as opdi_to_i64 does for int64, but without a branch around the conversion. */
static inline int32_t opdi_f32_to_i32(float x) {
    return (int32_t)(((x >= -2147483648.0f) & (x < 2147483648.0f)) ? x : -2147483648.0f);
}
static inline int64_t opdi_f32_to_i64(float x) {
    return (int64_t)(((x >= -9223372036854775808.0f) & (x < 9223372036854775808.0f)) ? x : -9223372036854775808.0f);
}
/* Convert a 64-bit integer to a narrower type, which keeps the low bits. */
#define OPDI_WRAP_u8(x) ((uint8_t)((uint64_t)(x) & 255u))
#define OPDI_WRAP_i8(x) ((int8_t)(uint8_t)((uint64_t)(x) & 255u))
#define OPDI_WRAP_i16(x) ((int16_t)(uint16_t)((uint64_t)(x) & 65535u))
#define OPDI_WRAP_u16(x) ((uint16_t)((uint64_t)(x) & 65535u))
#define OPDI_WRAP_u32(x) ((uint32_t)((uint64_t)(x) & 4294967295u))
#define OPDI_WRAP_i32(x) ((int32_t)(uint32_t)((uint64_t)(x) & 4294967295u))

/* Converts `count` elements of from_size bytes at src to elements of to_size bytes at dst, each with the function
   `one`. */
OPDI_LOOP_TEXT void opdi_convert_each(void *dst, int64_t to_size, const void *src, int64_t from_size, int64_t count,
                                      void (*one)(void *to, const void *from)) {
    char *to = (char *)dst;
    const char *from = (const char *)src;
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        OPDI_IVDEP
        OPDI_UNROLL
        for (int j = 0; j < 32; j++) {
            one(to + (i + j) * to_size, from + (i + j) * from_size);
        }
    }
    for (; i < count; i++) {
        one(to + i * to_size, from + i * from_size);
    }
}
/* OPDI_CONVERT_ONE defines a function that converts one element x of type S to `expr` of type D.  OPDI_CONVERT_LOOP
   defines a function that converts many elements with it. */
#define OPDI_CONVERT_ONE(name, D, S, expr) \
    OPDI_LOOP_TEXT void name##_one(void *to, const void *from) { const S x = *(const S *)from; *(D *)to = (expr); }
#define OPDI_CONVERT_LOOP(name, one, D, S) \
    static void name(void *dst, const void *src, int64_t count) { \
        opdi_convert_each(dst, (int64_t)sizeof(D), src, (int64_t)sizeof(S), count, one); }
#define OPDI_CONVERT(name, D, S, expr) \
    OPDI_CONVERT_ONE(name, D, S, expr) \
    OPDI_CONVERT_LOOP(name, name##_one, D, S)
/* OPDI_CONVERT_SMALL defines a conversion with little code, which is not vectorised and takes four elements at a time.
   */
#define OPDI_CONVERT_FOURS(name, one, D, S) \
    static void name(void *dst, const void *src, int64_t count) { \
        D *to = (D *)dst, *const end = to + count; \
        const S *from = (const S *)src; \
        for (; end - to >= 4; to += 4, from += 4) { \
            one(to, from); \
            one(to + 1, from + 1); \
            one(to + 2, from + 2); \
            one(to + 3, from + 3); \
        } \
        for (; to < end; to++, from++) { one(to, from); } \
    }
#define OPDI_CONVERT_SMALL(name, D, S, expr) \
    OPDI_CONVERT_ONE(name, D, S, expr) \
    OPDI_CONVERT_FOURS(name, name##_one, D, S)
/* Defines a conversion as OPDI_CONVERT does, also for AVX2 and AVX-512, for conversions that gain from wider registers.
   opdi_convert_widest calls the one of three functions that the processor can run. */
#if defined(OPDI_X86)
OPDI_COLD OPDI_NOINLINE static void opdi_convert_widest(void *dst, const void *src, int64_t count, opdi_convert avx512,
                                                        opdi_convert avx2, opdi_convert less) {
    const int level = opdi_cpu_level();
    (level > 1 ? avx512 : level > 0 ? avx2 : less)(dst, src, count);
}
#define OPDI_CONVERT_WIDE(name, D, S, expr) \
    OPDI_CONVERT_ONE(name, D, S, expr) \
    OPDI_AVX2 OPDI_CONVERT_LOOP(name##_avx2, name##_one, D, S) \
    OPDI_AVX512 OPDI_CONVERT_LOOP(name##_avx512, name##_one, D, S) \
    OPDI_COLD OPDI_CONVERT_FOURS(name##_less, name##_one, D, S) \
    static void name(void *dst, const void *src, int64_t count) { \
        opdi_convert_widest(dst, src, count, name##_avx512, name##_avx2, name##_less); }
#else
#define OPDI_CONVERT_WIDE OPDI_CONVERT
#endif
/* The functions are named opdi_cvt_<to>_<from>. */
OPDI_CONVERT_WIDE(opdi_cvt_f32_u8, float, uint8_t, (float)x)
OPDI_CONVERT_WIDE(opdi_cvt_f32_i32, float, int32_t, (float)x)
OPDI_CONVERT_WIDE(opdi_cvt_f32_i64, float, int64_t, (float)x)
OPDI_CONVERT_WIDE(opdi_cvt_f32_f64, float, double, (float)x)
OPDI_CONVERT(opdi_cvt_f32_b, float, uint8_t, (float)(x != 0))
OPDI_CONVERT_WIDE(opdi_cvt_f64_i32, double, int32_t, (double)x)
OPDI_CONVERT_WIDE(opdi_cvt_f64_i64, double, int64_t, (double)x)
OPDI_CONVERT_WIDE(opdi_cvt_f64_f32, double, float, (double)x)
OPDI_CONVERT(opdi_cvt_f64_b, double, uint8_t, (double)(x != 0))
OPDI_CONVERT_WIDE(opdi_cvt_i64_u8, int64_t, uint8_t, (int64_t)x)
OPDI_CONVERT_WIDE(opdi_cvt_i64_i32, int64_t, int32_t, (int64_t)x)
OPDI_CONVERT_WIDE(opdi_cvt_i64_b, int64_t, uint8_t, (int64_t)(x != 0))
/* Floats that do not fit into int32 are multiples of 256, so that the low bits of the int64 are 0, as those of
   INT32_MIN. */
OPDI_CONVERT_WIDE(opdi_cvt_u8_f32, uint8_t, float, OPDI_WRAP_u8(opdi_f32_to_i32(x)))
OPDI_CONVERT_WIDE(opdi_cvt_i32_f32, int32_t, float, opdi_f32_to_i32(x))
#if defined(OPDI_X86)
OPDI_CONVERT_WIDE(opdi_cvt_i64_f32_any, int64_t, float, opdi_f32_to_i64(x))
/* Converts 64 floats if all of them fit in an int32, to which AVX2 can convert vectors; otherwise returns false. */
OPDI_AVX2 static bool opdi_cvt_i64_f32_small(int64_t *to, const float *from) {
    uint32_t most = 0;
    for (int j = 0; j < 64; j++) { most = OPDI_MAX(most, opdi_bits(from[j]) & 0x7fffffffu); }
    for (int j = 0; j < 64 && most < 0x4f000000u; j++) { to[j] = (int32_t)from[j]; }
    return most < 0x4f000000u;
}
static void opdi_cvt_i64_f32(void *dst, const void *src, int64_t count) {
    int64_t *to = (int64_t *)dst, i = 0;
    const float *from = (const float *)src;
    for (; opdi_cpu_level() == 1 && i + 64 <= count; i += 64) {
        if (!opdi_cvt_i64_f32_small(to + i, from + i)) { opdi_cvt_i64_f32_any(to + i, from + i, 64); }
    }
    opdi_cvt_i64_f32_any(to + i, from + i, count - i);
}
#else
OPDI_CONVERT(opdi_cvt_i64_f32, int64_t, float, opdi_f32_to_i64(x))
#endif
OPDI_CONVERT_WIDE(opdi_cvt_b_f32, uint8_t, float, (uint8_t)(x != 0))
OPDI_CONVERT_SMALL(opdi_cvt_i32_f64, int32_t, double, opdi_to_i32(x))
OPDI_CONVERT_SMALL(opdi_cvt_i64_f64, int64_t, double, opdi_to_i64(x))
OPDI_CONVERT_SMALL(opdi_cvt_b_f64, uint8_t, double, (uint8_t)(x != 0))
OPDI_CONVERT(opdi_cvt_u8_i64, uint8_t, int64_t, OPDI_WRAP_u8(x))
OPDI_CONVERT(opdi_cvt_i32_i64, int32_t, int64_t, OPDI_WRAP_i32(x))
OPDI_CONVERT_SMALL(opdi_cvt_b_i64, uint8_t, int64_t, (uint8_t)(x != 0))
/* Converts eight elements at a time, because processors with instructions for float16 convert only the rest so. */
#define OPDI_CONVERT_EIGHTS(name, D, S, expr) \
    OPDI_CONVERT_ONE(name, D, S, expr) \
    static void name(void *dst, const void *src, int64_t count) { \
        D *to = (D *)dst, *const end = to + count; \
        const S *from = (const S *)src; \
        for (; end - to >= 8; to += 8, from += 8) { \
            OPDI_IVDEP \
            for (int j = 0; j < 8; j++) { name##_one(to + j, from + j); } \
        } \
        for (; to < end; to++, from++) { name##_one(to, from); } \
    }
OPDI_CONVERT_EIGHTS(opdi_cvt_f32_f16_most, float, uint16_t, opdi_f16_to_f32(x))
OPDI_CONVERT_EIGHTS(opdi_cvt_f16_f32_most, uint16_t, float, opdi_f32_to_f16(x))
OPDI_CONVERT_EIGHTS(opdi_cvt_f16_f64_most, uint16_t, double, opdi_f32_to_f16((float)x))
/* opdi_narrow_f16_avx512 and opdi_narrow_f16_avx2 convert floats to float16, one vector at a time, with one
   instruction.  opdi_narrow_f64_avx512 and opdi_narrow_f64_avx2 convert doubles, which are first rounded to float, as
   by c10::Half.  They return how many of the `count` numbers were converted; the caller converts the rest.
   opdi_widen_f16_avx2 is the opposite of opdi_narrow_f16_avx2. */
#if defined(OPDI_X86)
OPDI_AVX512 static int64_t opdi_narrow_f16_avx512(const float *at, int64_t count, uint16_t *out) {
    int64_t j = 0;
    OPDI_UNROLL
    for (; j + 16 <= count; j += 16) {
        opdi_v16h half;
        OPDI_ASM_NARROW(half, *(const opdi_v16f *)(const void *)(at + j));
        *(opdi_v16h *)(void *)(out + j) = half;
    }
    return j;
}
OPDI_AVX512 static int64_t opdi_narrow_f64_avx512(const double *at, int64_t count, uint16_t *out) {
    int64_t j = 0;
    for (; j + 16 <= count; j += 16) {
        float block[16];
        opdi_v16h half;
        for (int k = 0; k < 16; k++) { block[k] = (float)at[j + k]; }
        OPDI_ASM_NARROW(half, *(const opdi_v16f *)(const void *)block);
        *(opdi_v16h *)(void *)(out + j) = half;
    }
    return j;
}
#endif
#if defined(OPDI_VECTORS)
OPDI_AVX2 static int64_t opdi_narrow_f16_avx2(const float *at, int64_t count, uint16_t *out) {
    const int step = (int)(sizeof(OPDI_V_4_1) / sizeof(float));
    int64_t j = 0;
    for (; j + step <= count; j += step) {
        OPDI_V_HALVES_1 half;
        OPDI_ASM_NARROW(half, *(const OPDI_V_4_1 *)(const void *)(at + j));
        *(OPDI_V_HALVES_1 *)(void *)(out + j) = half;
    }
    return j;
}
OPDI_AVX2 static int64_t opdi_narrow_f64_avx2(const double *at, int64_t count, uint16_t *out) {
    enum { STEP = sizeof(OPDI_V_4_1) / sizeof(float) };
    int64_t j = 0;
    for (; j + STEP <= count; j += STEP) {
        float block[STEP];
        OPDI_V_HALVES_1 half;
        for (int k = 0; k < STEP; k++) { block[k] = (float)at[j + k]; }
        OPDI_ASM_NARROW(half, *(const OPDI_V_4_1 *)(const void *)block);
        *(OPDI_V_HALVES_1 *)(void *)(out + j) = half;
    }
    return j;
}
#endif
OPDI_INTERNAL void opdi_cvt_f32_f16(void *dst, const void *src, int64_t count) {
    int64_t done = 0;
#if defined(OPDI_VECTORS)
    const int level = opdi_cpu_level();
    if (level > 0) {
        done = OPDI_WIDEST(level, opdi_widen_f16_avx512, opdi_widen_f16_avx2)
            ((const uint16_t *)src, count, (float *)dst);
    }
#endif
    opdi_cvt_f32_f16_most((float *)dst + done, (const uint16_t *)src + done, count - done);
}
static void opdi_cvt_f16_f32(void *dst, const void *src, int64_t count) {
    int64_t done = 0;
#if defined(OPDI_VECTORS)
    const int level = opdi_cpu_level();
    if (level > 0) {
        done = OPDI_WIDEST(level, opdi_narrow_f16_avx512, opdi_narrow_f16_avx2)
            ((const float *)src, count, (uint16_t *)dst);
    }
#endif
    opdi_cvt_f16_f32_most((uint16_t *)dst + done, (const float *)src + done, count - done);
}
static void opdi_cvt_f16_f64(void *dst, const void *src, int64_t count) {
    int64_t done = 0;
#if defined(OPDI_VECTORS)
    const int level = opdi_cpu_level();
    if (level > 0) {
        done = OPDI_WIDEST(level, opdi_narrow_f64_avx512, opdi_narrow_f64_avx2)
            ((const double *)src, count, (uint16_t *)dst);
    }
#endif
    opdi_cvt_f16_f64_most((uint16_t *)dst + done, (const double *)src + done, count - done);
}
OPDI_CONVERT_WIDE(opdi_cvt_f32_bf16, float, uint16_t, opdi_bf16_to_f32(x))
OPDI_CONVERT_WIDE(opdi_cvt_bf16_f32, uint16_t, float, opdi_f32_to_bf16(x))
OPDI_CONVERT_WIDE(opdi_cvt_f64_bf16, double, uint16_t, (double)opdi_bf16_to_f32(x))
OPDI_CONVERT_WIDE(opdi_cvt_bf16_f64, uint16_t, double, opdi_f32_to_bf16((float)x))
OPDI_COLD_BEGIN
OPDI_CONVERT_SMALL(opdi_cvt_f32_i8, float, int8_t, (float)x)
OPDI_CONVERT_SMALL(opdi_cvt_f32_i16, float, int16_t, (float)x)
OPDI_CONVERT_SMALL(opdi_cvt_f64_u8, double, uint8_t, (double)x)
OPDI_CONVERT_SMALL(opdi_cvt_f64_i8, double, int8_t, (double)x)
OPDI_CONVERT_SMALL(opdi_cvt_f64_i16, double, int16_t, (double)x)
OPDI_CONVERT_SMALL(opdi_cvt_i64_i8, int64_t, int8_t, (int64_t)x)
OPDI_CONVERT_SMALL(opdi_cvt_i64_i16, int64_t, int16_t, (int64_t)x)
OPDI_CONVERT_SMALL(opdi_cvt_i8_f32, int8_t, float, OPDI_WRAP_i8(opdi_f32_to_i32(x)))
OPDI_CONVERT_SMALL(opdi_cvt_i16_f32, int16_t, float, OPDI_WRAP_i16(opdi_f32_to_i32(x)))
OPDI_CONVERT_SMALL(opdi_cvt_u8_f64, uint8_t, double, OPDI_WRAP_u8(opdi_to_i64(x)))
OPDI_CONVERT_SMALL(opdi_cvt_i8_f64, int8_t, double, OPDI_WRAP_i8(opdi_to_i32(x)))
OPDI_CONVERT_SMALL(opdi_cvt_i16_f64, int16_t, double, OPDI_WRAP_i16(opdi_to_i32(x)))
OPDI_CONVERT_SMALL(opdi_cvt_i8_i64, int8_t, int64_t, OPDI_WRAP_i8(x))
OPDI_CONVERT_SMALL(opdi_cvt_i16_i64, int16_t, int64_t, OPDI_WRAP_i16(x))
/* Converts in two steps, through float, as c10::Half and c10::BFloat16 do.  Elements that are converted later are
   fetched into the cache, because between the first steps the processor stops reading ahead. */
static void opdi_convert_via(void *dst, int64_t to_size, const void *src, int64_t from_size, int64_t count,
                             opdi_convert first, opdi_convert second) {
    float block[512];
    for (int64_t i = 0, n; i < count; i += n) {
        const uintptr_t later = (uintptr_t)src + (uintptr_t)(i + 1024) * (uintptr_t)from_size;
        n = OPDI_MIN(count - i, (int64_t)512);
        for (int64_t at = 0; at < n * from_size; at += 64) { OPDI_PREFETCH(later + (uintptr_t)at); }
        first(block, (const char *)src + i * from_size, n);
        second((char *)dst + i * to_size, block, n);
    }
}
#define OPDI_CONVERT_VIA(name, first, second, from_size, to_size) \
    static void name(void *dst, const void *src, int64_t count) { \
        opdi_convert_via(dst, to_size, src, from_size, count, first, second); }
OPDI_CONVERT_VIA(opdi_cvt_f64_f16, opdi_cvt_f32_f16, opdi_cvt_f64_f32, 2, 8)
OPDI_CONVERT_VIA(opdi_cvt_f16_i64, opdi_cvt_f32_i64, opdi_cvt_f16_f32, 8, 2)
OPDI_CONVERT_VIA(opdi_cvt_bf16_i64, opdi_cvt_f32_i64, opdi_cvt_bf16_f32, 8, 2)
OPDI_CONVERT_VIA(opdi_cvt_i64_f16, opdi_cvt_f32_f16, opdi_cvt_i64_f32, 2, 8)
OPDI_CONVERT_VIA(opdi_cvt_i64_bf16, opdi_cvt_f32_bf16, opdi_cvt_i64_f32, 2, 8)
/* Conversions of the stored dtypes (see >>stored_dtypes).  Floats of eight bits are converted through float.  In
   int64_t computations, uint64 is taken as its bits. */
OPDI_CONVERT_SMALL(opdi_cvt_f32_u16, float, uint16_t, (float)x)
OPDI_CONVERT_SMALL(opdi_cvt_f64_u16, double, uint16_t, (double)x)
OPDI_CONVERT_SMALL(opdi_cvt_i64_u16, int64_t, uint16_t, (int64_t)x)
OPDI_CONVERT_SMALL(opdi_cvt_u16_f32, uint16_t, float, OPDI_WRAP_u16(opdi_f32_to_i32(x)))
OPDI_CONVERT_SMALL(opdi_cvt_u16_f64, uint16_t, double, OPDI_WRAP_u16(opdi_to_i32(x)))
OPDI_CONVERT_SMALL(opdi_cvt_u16_i64, uint16_t, int64_t, OPDI_WRAP_u16(x))
OPDI_CONVERT_SMALL(opdi_cvt_f32_u32, float, uint32_t, (float)x)
OPDI_CONVERT_SMALL(opdi_cvt_f64_u32, double, uint32_t, (double)x)
OPDI_CONVERT_SMALL(opdi_cvt_i64_u32, int64_t, uint32_t, (int64_t)x)
OPDI_CONVERT_SMALL(opdi_cvt_u32_f32, uint32_t, float, OPDI_WRAP_u32(opdi_to_i64((double)x)))
OPDI_CONVERT_SMALL(opdi_cvt_u32_f64, uint32_t, double, OPDI_WRAP_u32(opdi_to_i64(x)))
OPDI_CONVERT_SMALL(opdi_cvt_u32_i64, uint32_t, int64_t, OPDI_WRAP_u32(x))
OPDI_CONVERT_SMALL(opdi_cvt_f32_u64, float, uint64_t, (float)x)
OPDI_CONVERT_SMALL(opdi_cvt_f64_u64, double, uint64_t, (double)x)
OPDI_CONVERT_SMALL(opdi_cvt_u64_f32, uint64_t, float, opdi_to_u64((double)x))
OPDI_CONVERT_SMALL(opdi_cvt_u64_f64, uint64_t, double, opdi_to_u64(x))
/* Defines the six conversions of a dtype of eight bits, from `load` and `store`, which convert one element. */
#define OPDI_CONVERT_F8(name, load, store) \
    OPDI_CONVERT_SMALL(opdi_cvt_f32_##name, float, uint8_t, load) \
    OPDI_CONVERT_SMALL(opdi_cvt_##name##_f32, uint8_t, float, store) \
    OPDI_CONVERT_VIA(opdi_cvt_f64_##name, opdi_cvt_f32_##name, opdi_cvt_f64_f32, 1, 8) \
    OPDI_CONVERT_VIA(opdi_cvt_##name##_f64, opdi_cvt_f32_f64, opdi_cvt_##name##_f32, 8, 1) \
    OPDI_CONVERT_VIA(opdi_cvt_i64_##name, opdi_cvt_f32_##name, opdi_cvt_i64_f32, 1, 8) \
    OPDI_CONVERT_VIA(opdi_cvt_##name##_i64, opdi_cvt_f32_i64, opdi_cvt_##name##_f32, 8, 1)
OPDI_CONVERT_F8(e5m2, opdi_f8_to_f32(x, &opdi_f8_e5m2), opdi_f32_to_f8(x, &opdi_f8_e5m2))
OPDI_CONVERT_F8(e4m3fn, opdi_f8_to_f32(x, &opdi_f8_e4m3fn), opdi_f32_to_f8(x, &opdi_f8_e4m3fn))
OPDI_CONVERT_F8(e5m2fnuz, opdi_f8_to_f32(x, &opdi_f8_e5m2fnuz), opdi_f32_to_f8(x, &opdi_f8_e5m2fnuz))
OPDI_CONVERT_F8(e4m3fnuz, opdi_f8_to_f32(x, &opdi_f8_e4m3fnuz), opdi_f32_to_f8(x, &opdi_f8_e4m3fnuz))
OPDI_CONVERT_F8(e8m0, opdi_e8m0_to_f32(x), opdi_f32_to_e8m0(x))
/* opdi_convert_to_complex and opdi_convert_from_complex convert real numbers to complex numbers and back, through
   doubles.  The imaginary part is dropped.  Only a conversion to bool (opdi_cvt_b_c128) takes it into account. */
static void opdi_convert_to_complex(opdi_complex *to, const char *from, int64_t size, int64_t count,
                                    opdi_convert load) {
    double block[64];
    for (int64_t i = 0, n; i < count; i += n) {
        n = OPDI_MIN(count - i, (int64_t)64);
        load(block, from + i * size, n);
        for (int64_t j = 0; j < n; j++) {
            to[i + j].re = block[j];
            to[i + j].im = 0;
        }
    }
}
static void opdi_convert_from_complex(char *to, const opdi_complex *from, int64_t size, int64_t count,
                                      opdi_convert store) {
    double block[64];
    for (int64_t i = 0, n; i < count; i += n) {
        n = OPDI_MIN(count - i, (int64_t)64);
        for (int64_t j = 0; j < n; j++) { block[j] = from[i + j].re; }
        store(to + i * size, block, n);
    }
}
#define OPDI_CONVERT_COMPLEX(name, size, load, store) \
    static void opdi_cvt_c128_##name(void *dst, const void *src, int64_t count) { \
        opdi_convert_to_complex((opdi_complex *)dst, (const char *)src, size, count, load); } \
    static void opdi_cvt_##name##_c128(void *dst, const void *src, int64_t count) { \
        opdi_convert_from_complex((char *)dst, (const opdi_complex *)src, size, count, store); }
static void opdi_cvt_8(void *dest, const void *source, int64_t count) { memcpy(dest, source, (size_t)count * 8); }
OPDI_CONVERT_COMPLEX(u8, 1, opdi_cvt_f64_u8, opdi_cvt_u8_f64)
OPDI_CONVERT_COMPLEX(i8, 1, opdi_cvt_f64_i8, opdi_cvt_i8_f64)
OPDI_CONVERT_COMPLEX(i16, 2, opdi_cvt_f64_i16, opdi_cvt_i16_f64)
OPDI_CONVERT_COMPLEX(i32, 4, opdi_cvt_f64_i32, opdi_cvt_i32_f64)
OPDI_CONVERT_COMPLEX(i64, 8, opdi_cvt_f64_i64, opdi_cvt_i64_f64)
OPDI_CONVERT_COMPLEX(f16, 2, opdi_cvt_f64_f16, opdi_cvt_f16_f64)
OPDI_CONVERT_COMPLEX(bf16, 2, opdi_cvt_f64_bf16, opdi_cvt_bf16_f64)
OPDI_CONVERT_COMPLEX(f32, 4, opdi_cvt_f64_f32, opdi_cvt_f32_f64)
OPDI_CONVERT_COMPLEX(f64, 8, opdi_cvt_8, opdi_cvt_8)
OPDI_CONVERT_COMPLEX(u16, 2, opdi_cvt_f64_u16, opdi_cvt_u16_f64)
OPDI_CONVERT_COMPLEX(u32, 4, opdi_cvt_f64_u32, opdi_cvt_u32_f64)
OPDI_CONVERT_COMPLEX(u64, 8, opdi_cvt_f64_u64, opdi_cvt_u64_f64)
OPDI_CONVERT_COMPLEX(e5m2, 1, opdi_cvt_f64_e5m2, opdi_cvt_e5m2_f64)
OPDI_CONVERT_COMPLEX(e4m3fn, 1, opdi_cvt_f64_e4m3fn, opdi_cvt_e4m3fn_f64)
OPDI_CONVERT_COMPLEX(e5m2fnuz, 1, opdi_cvt_f64_e5m2fnuz, opdi_cvt_e5m2fnuz_f64)
OPDI_CONVERT_COMPLEX(e4m3fnuz, 1, opdi_cvt_f64_e4m3fnuz, opdi_cvt_e4m3fnuz_f64)
OPDI_CONVERT_COMPLEX(e8m0, 1, opdi_cvt_f64_e8m0, opdi_cvt_e8m0_f64)
static void opdi_cvt_c128_b(void *dst, const void *src, int64_t count) {
    opdi_convert_to_complex((opdi_complex *)dst, (const char *)src, 1, count, opdi_cvt_f64_b);
}
static void opdi_cvt_b_c128(void *dst, const void *src, int64_t count) {
    const opdi_complex *from = (const opdi_complex *)src;
    for (int64_t i = 0; i < count; i++) { ((bool *)dst)[i] = from[i].re != 0 || from[i].im != 0; }
}
OPDI_COLD_END
OPDI_INTERNAL void opdi_cvt_c128_c64(void *dst, const void *src, int64_t count) {
    opdi_cvt_f64_f32(dst, src, 2 * count);
}
static void opdi_cvt_c64_c128(void *dst, const void *src, int64_t count) { opdi_cvt_f32_f64(dst, src, 2 * count); }
static void opdi_cvt_c128_c32(void *dst, const void *src, int64_t count) { opdi_cvt_f64_f16(dst, src, 2 * count); }
static void opdi_cvt_c32_c128(void *dst, const void *src, int64_t count) { opdi_cvt_f16_f64(dst, src, 2 * count); }
static void opdi_cvt_16(void *dst, const void *src, int64_t count) { memcpy(dst, src, (size_t)count * 16); }
OPDI_INTERNAL void opdi_cvt_4(void *dest, const void *source, int64_t count) {
    memcpy(dest, source, (size_t)count * 4);
}

/* Tables with the index [OPDI_F32 to OPDI_C128][opdi_dtype_at]: opdi_load_table converts a dtype to the type in which a
   loop computes, opdi_store_table converts it back. */
static const opdi_convert opdi_load_table[4][OPDI_DTYPES] = {
    {opdi_cvt_f32_u8, opdi_cvt_f32_i8, opdi_cvt_f32_i16, opdi_cvt_f32_i32, opdi_cvt_f32_i64, opdi_cvt_f32_f16,
     opdi_cvt_4, opdi_cvt_f32_f64, NULL, NULL, NULL, opdi_cvt_f32_b, NULL, NULL, NULL, opdi_cvt_f32_bf16,
     opdi_cvt_f32_e5m2, opdi_cvt_f32_e4m3fn, opdi_cvt_f32_e5m2fnuz, opdi_cvt_f32_e4m3fnuz, opdi_cvt_f32_u16,
     opdi_cvt_f32_u32, opdi_cvt_f32_u64, opdi_cvt_f32_e8m0},
    {opdi_cvt_f64_u8, opdi_cvt_f64_i8, opdi_cvt_f64_i16, opdi_cvt_f64_i32, opdi_cvt_f64_i64, opdi_cvt_f64_f16,
     opdi_cvt_f64_f32, opdi_cvt_8, NULL, NULL, NULL, opdi_cvt_f64_b, NULL, NULL, NULL, opdi_cvt_f64_bf16,
     opdi_cvt_f64_e5m2, opdi_cvt_f64_e4m3fn, opdi_cvt_f64_e5m2fnuz, opdi_cvt_f64_e4m3fnuz, opdi_cvt_f64_u16,
     opdi_cvt_f64_u32, opdi_cvt_f64_u64, opdi_cvt_f64_e8m0},
    {opdi_cvt_i64_u8, opdi_cvt_i64_i8, opdi_cvt_i64_i16, opdi_cvt_i64_i32, opdi_cvt_8, opdi_cvt_i64_f16,
     opdi_cvt_i64_f32, opdi_cvt_i64_f64, NULL, NULL, NULL, opdi_cvt_i64_b, NULL, NULL, NULL, opdi_cvt_i64_bf16,
     opdi_cvt_i64_e5m2, opdi_cvt_i64_e4m3fn, opdi_cvt_i64_e5m2fnuz, opdi_cvt_i64_e4m3fnuz, opdi_cvt_i64_u16,
     opdi_cvt_i64_u32, opdi_cvt_8, opdi_cvt_i64_e8m0},
    {opdi_cvt_c128_u8, opdi_cvt_c128_i8, opdi_cvt_c128_i16, opdi_cvt_c128_i32, opdi_cvt_c128_i64,
     opdi_cvt_c128_f16, opdi_cvt_c128_f32, opdi_cvt_c128_f64, opdi_cvt_c128_c32, opdi_cvt_c128_c64, opdi_cvt_16,
     opdi_cvt_c128_b, NULL, NULL, NULL, opdi_cvt_c128_bf16, opdi_cvt_c128_e5m2, opdi_cvt_c128_e4m3fn,
     opdi_cvt_c128_e5m2fnuz, opdi_cvt_c128_e4m3fnuz, opdi_cvt_c128_u16, opdi_cvt_c128_u32, opdi_cvt_c128_u64,
     opdi_cvt_c128_e8m0}};
static const opdi_convert opdi_store_table[4][OPDI_DTYPES] = {
    {opdi_cvt_u8_f32, opdi_cvt_i8_f32, opdi_cvt_i16_f32, opdi_cvt_i32_f32, opdi_cvt_i64_f32, opdi_cvt_f16_f32,
     opdi_cvt_4, opdi_cvt_f64_f32, NULL, NULL, NULL, opdi_cvt_b_f32, NULL, NULL, NULL, opdi_cvt_bf16_f32,
     opdi_cvt_e5m2_f32, opdi_cvt_e4m3fn_f32, opdi_cvt_e5m2fnuz_f32, opdi_cvt_e4m3fnuz_f32, opdi_cvt_u16_f32,
     opdi_cvt_u32_f32, opdi_cvt_u64_f32, opdi_cvt_e8m0_f32},
    {opdi_cvt_u8_f64, opdi_cvt_i8_f64, opdi_cvt_i16_f64, opdi_cvt_i32_f64, opdi_cvt_i64_f64, opdi_cvt_f16_f64,
     opdi_cvt_f32_f64, opdi_cvt_8, NULL, NULL, NULL, opdi_cvt_b_f64, NULL, NULL, NULL, opdi_cvt_bf16_f64,
     opdi_cvt_e5m2_f64, opdi_cvt_e4m3fn_f64, opdi_cvt_e5m2fnuz_f64, opdi_cvt_e4m3fnuz_f64, opdi_cvt_u16_f64,
     opdi_cvt_u32_f64, opdi_cvt_u64_f64, opdi_cvt_e8m0_f64},
    {opdi_cvt_u8_i64, opdi_cvt_i8_i64, opdi_cvt_i16_i64, opdi_cvt_i32_i64, opdi_cvt_8, opdi_cvt_f16_i64,
     opdi_cvt_f32_i64, opdi_cvt_f64_i64, NULL, NULL, NULL, opdi_cvt_b_i64, NULL, NULL, NULL, opdi_cvt_bf16_i64,
     opdi_cvt_e5m2_i64, opdi_cvt_e4m3fn_i64, opdi_cvt_e5m2fnuz_i64, opdi_cvt_e4m3fnuz_i64, opdi_cvt_u16_i64,
     opdi_cvt_u32_i64, opdi_cvt_8, opdi_cvt_e8m0_i64},
    {opdi_cvt_u8_c128, opdi_cvt_i8_c128, opdi_cvt_i16_c128, opdi_cvt_i32_c128, opdi_cvt_i64_c128,
     opdi_cvt_f16_c128, opdi_cvt_f32_c128, opdi_cvt_f64_c128, opdi_cvt_c32_c128, opdi_cvt_c64_c128, opdi_cvt_16,
     opdi_cvt_b_c128, NULL, NULL, NULL, opdi_cvt_bf16_c128, opdi_cvt_e5m2_c128, opdi_cvt_e4m3fn_c128,
     opdi_cvt_e5m2fnuz_c128, opdi_cvt_e4m3fnuz_c128, opdi_cvt_u16_c128, opdi_cvt_u32_c128, opdi_cvt_u64_c128,
     opdi_cvt_e8m0_c128}};
/* opdi_load_of returns the conversion of a dtype to the type `compute` in which a loop computes, opdi_store_of the
   opposite one.  Both return NULL if there is none. */
OPDI_INTERNAL opdi_convert opdi_load_of(int compute, int dtype) {
    return opdi_load_table[compute][opdi_dtype_at(dtype)];
}
OPDI_INTERNAL opdi_convert opdi_store_of(int compute, int dtype) {
    return opdi_store_table[compute][opdi_dtype_at(dtype)];
}

/* Converts *number, which has the type `from` (int64, float64 or complex128), to an element of dtype `dtype`. */
OPDI_INTERNAL void opdi_store_one(opd_scalar_type from, const void *number, opd_scalar_type dtype, void *element) {
    opdi_store_of(from == OPD_INT64 ? OPDI_I64 : from == OPD_FLOAT64 ? OPDI_F64 : OPDI_C128, dtype)(element, number, 1);
}

//== copies between strided and contiguous memory (gather, scatter) ====================================================

/* OPDI_GATHER copies `count` elements of a type from src, where they are k elements apart, to contiguous dst.
   OPDI_GATHER loads four elements at a time, so that the loads do not wait for each other.  OPDI_MOVE copies elements
   from index src_index(i) to index dst_index(i). */
#define OPDI_GATHER(type)                                                                       \
    {                                                                                           \
        type *to = (type *)dst; const type *from = (const type *)src; int64_t i = 0;            \
        for (; i + 4 <= count; i += 4, from += 4 * k) {                                         \
            type e0 = from[0], e1 = from[k], e2 = from[2 * k], e3 = from[3 * k];                \
            to[i] = e0; to[i + 1] = e1; to[i + 2] = e2; to[i + 3] = e3;                         \
        }                                                                                       \
        for (; i < count; i++, from += k) { to[i] = from[0]; }                                  \
    } break
#define OPDI_MOVE(type, dst_index, src_index)                                                   \
    {                                                                                           \
        type *to = (type *)dst; const type *from = (const type *)src; int64_t i;                \
        for (i = 0; i < count; i++) { to[dst_index] = from[src_index]; }                        \
    } break
static void opdi_gather_n(void *dst, const void *src, int64_t stride, int64_t count, int size) {
    const int64_t k = stride / size;
    switch (size) {
        case 1: OPDI_GATHER(uint8_t);
        case 2: OPDI_GATHER(uint16_t);
        case 4: OPDI_GATHER(uint32_t);
        case 8: OPDI_GATHER(uint64_t);
        default: {
            const char *from = (const char *)src;
            char *to = (char *)dst;
            for (int64_t i = 0; i < count; i++) { memcpy(to + i * size, from + i * stride, (size_t)size); }
        }
    }
}
/* Copies `count` elements of `size` bytes, which are `ss` bytes apart at src and `ds` bytes apart at dst. */
OPDI_INTERNAL void opdi_scatter(void *dst, int64_t ds, const void *src, int64_t ss, int64_t count, int size) {
    const int64_t k = ds / size, l = ss / size;
    switch (size) {
        case 1: OPDI_MOVE(uint8_t, i * k, i * l);
        case 2: OPDI_MOVE(uint16_t, i * k, i * l);
        case 4: OPDI_MOVE(uint32_t, i * k, i * l);
        case 8: OPDI_MOVE(uint64_t, i * k, i * l);
        default: {
            const char *from = (const char *)src;
            char *to = (char *)dst;
            for (int64_t i = 0; i < count; i++) { memcpy(to + i * ds, from + i * ss, (size_t)size); }
        }
    }
}
#if defined(OPDI_X86)
/* Copies every second of 2 * count elements of 4 bytes: reads 8 bytes and keeps the low half.  The last elements are
   copied one by one, because there may be no memory after them. */
OPDI_AVX2 static void opdi_gather_second(void *dst, const void *src, int64_t count) {
    uint32_t *to = (uint32_t *)dst;
    const uint32_t *from = (const uint32_t *)src;
    int64_t i = 0;
    for (; i + 32 < count; i += 32) {
        OPDI_IVDEP for (int j = 0; j < 32; j++) {
            uint64_t value;
            memcpy(&value, from + 2 * i + 2 * j, 8);
            to[i + j] = (uint32_t)value;
        }
    }
    for (; i < count; i++) { to[i] = from[2 * i]; }
}
#endif
#if defined(OPDI_VECTORS)
/* Copies `count` elements of 4 or 8 bytes in reverse order: element i of dst is element -i of src. */
static void opdi_gather_backwards(void *dst, const void *src, int64_t count, int size) {
    int64_t i;
    if (size == 4) {
        uint32_t *to = (uint32_t *)dst;
        const uint32_t *from = (const uint32_t *)src;
        OPDI_COLUMN_EACH(to[j] = from[-j])
    } else {
        uint64_t *to = (uint64_t *)dst;
        const uint64_t *from = (const uint64_t *)src;
        OPDI_COLUMN_EACH(to[j] = from[-j])
    }
}
#endif
/* Writes the 4-byte element at `src` `count` times to `dst`. */
OPDI_ALWAYS void opdi_gather_one_body(void *dst, const void *src, int64_t count) {
    uint32_t *to = (uint32_t *)dst, value;
    int64_t i;
    memcpy(&value, src, sizeof value);
    OPDI_SIXTEENS(to[j] = value)
    for (; i < count; i++) { to[i] = value; }
}
#if defined(OPDI_X86)
OPDI_AVX2 static void opdi_gather_one_avx2(void *dst, const void *src, int64_t count) {
    opdi_gather_one_body(dst, src, count);
}
#endif
static void opdi_gather_one(void *dst, const void *src, int64_t count) {
#if defined(OPDI_X86)
    if (count >= 32 && opdi_cpu_level() > 0) {
        opdi_gather_one_avx2(dst, src, count);
        return;
    }
#endif
    opdi_gather_one_body(dst, src, count);
}
OPDI_INTERNAL void opdi_gather(void *dst, const void *src, int64_t stride, int64_t count, int size) {
    if (stride == size) { memcpy(dst, src, (size_t)count * (size_t)size); }
    else if (stride == 0 && size == 4) { opdi_gather_one(dst, src, count); }
#if defined(OPDI_VECTORS)
    else if (stride == -size && (size == 4 || size == 8)) { opdi_gather_backwards(dst, src, count, size); }
#endif
#if defined(OPDI_X86)
    else if (stride == 8 && size == 4 && opdi_cpu_level() > 0) { opdi_gather_second(dst, src, count); }
#endif
    else { opdi_gather_n(dst, src, stride, count, size); }
}
