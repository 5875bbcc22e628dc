//----------------------------------------------------------------------------------------------------------------------
//  >>products     matrix product
//
//  C[m,n] = A[m,k] B[k,n] + beta C.  B is copied into panels of NR columns (a panel's row is contiguous), A into
//  panels of MR rows unless its rows are contiguous already; a micro-kernel keeps an MR x NR tile of C in registers.
//  k is never split among threads and its blocks depend on k only.  C is of float, double, int32 or int64; integers
//  wrap.  Where the processor multiplies pairs of bfloat16, two such operands are packed in words of two steps of k.
//----------------------------------------------------------------------------------------------------------------------

OPDI_LOOPS_BEGIN

//== matrix product ====================================================================================================

/* An operand.  `dtype`: that of C, or for float C also OPD_FLOAT16 and OPD_BFLOAT16.  rs, cs: strides in elements.
   With `pack` (B only) there is no data: it writes out[t * ld + j] = B[k0 + t, j0 + j] for t < kc, j < nc <= ld, and
   may write anything into the columns nc <= j < ld. */
#if defined(__GNUC__)
typedef uint32_t opdi_word32 __attribute__((may_alias));      /* elements of four and eight bytes as they are moved */
typedef uint64_t opdi_word64 __attribute__((may_alias));
#else
typedef uint32_t opdi_word32;
typedef uint64_t opdi_word64;
#endif
typedef void (*opdi_pack_fn)(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t nc, int64_t ld, void *out);
typedef struct opdi_gemm_in {
    const void *data;
    int dtype;
    int64_t rs, cs;
    opdi_pack_fn pack;
    void *ctx;
    bool exact;                                   /* of float, and all its numbers are ones of bfloat16 */
} opdi_gemm_in;

/* A tile: c[r * ldc + j] (+)= sum over t < kc of rows[r][t * csa] * b[t * ldb + j], r < MR, j < NR */
typedef void opdi_micro_fn(int64_t kc, const void *const *rows, int64_t csa, const void *second, int64_t ldb,
                           void *product, int64_t ldc, int add);
typedef struct opdi_micro { opdi_micro_fn *run; int64_t mr, nr, kc; } opdi_micro;      /* kc: k of a panel, at most */
/* Dot products of a few rows with four others, over depth: sums[4 * i + j] */
typedef void opdi_dots_fn(int64_t depth, const void *const *few, const void *const *many, void *sums);
#define OPDI_GEMM_K 576                           /* a panel of B, K x NR, is 72 KiB of float at most */
#define OPDI_MAX_MR 8
#define OPDI_MAX_NR 32

static opdi_micro_fn opdi_micro_plain_f32, opdi_micro_plain_f64, opdi_micro_whole_plain_f32, opdi_micro_whole_plain_f64;

#if defined(OPDI_X86)
typedef uint32_t opdi_v8u __attribute__((vector_size(32), aligned(4), may_alias));
typedef uint32_t opdi_v16u __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint64_t opdi_v4w __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint64_t opdi_v8w __attribute__((vector_size(64), aligned(8), may_alias));
typedef float opdi_v8f __attribute__((vector_size(32), aligned(4), may_alias));
typedef float opdi_v16f __attribute__((vector_size(64), aligned(4), may_alias));
typedef double opdi_v4d __attribute__((vector_size(32), aligned(8), may_alias));
typedef double opdi_v8d __attribute__((vector_size(64), aligned(8), may_alias));

/* Assembly, because ISO mode (-std=c11) does not let the compiler contract a * b + c. */
#define OPDI_ASM_FMA(s, c, a, b) __asm__("vfmadd231" s " {%2, %1, %0|%0, %1, %2}" : "+v"(c) : "v"(a), "v"(b))
#define OPDI_ASM_SPLAT(s, x, p) __asm__("vbroadcasts" s " {%1, %0|%0, %1}" : "=v"(x) : "m"(*(p)))
#define OPDI_ASM_STREAM(s, p, x) __asm__("vmovntp" s " {%1, %0|%0, %1}" : "=m"(*(p)) : "v"(x))
/* c += the products of pairs of bfloat16: of a's and b's first halves, and of their second halves. */
#if defined(__clang__) ? __clang_major__ >= 9 : __GNUC__ >= 10
#define OPDI_ASM_PAIRS(c, a, b) __asm__("vdpbf16ps {%2, %1, %0|%0, %1, %2}" : "+v"(c) : "v"(a), "v"(b))
OPDI_AVX512 static opdi_micro_fn opdi_micro_pairs_avx512_f32;
#endif
OPDI_AVX2 static opdi_micro_fn opdi_micro_avx2_f32, opdi_micro_avx2_f64;
OPDI_AVX2 static opdi_micro_fn opdi_micro_whole_avx2_f32, opdi_micro_whole_avx2_f64;
OPDI_AVX512 static opdi_micro_fn opdi_micro_avx512_f32, opdi_micro_avx512_f64;
OPDI_AVX512 static opdi_micro_fn opdi_micro_narrow_avx512_f32, opdi_micro_narrow_avx512_f64;
OPDI_AVX512 static opdi_micro_fn opdi_micro_whole_avx512_f32, opdi_micro_whole_avx512_f64;
#endif
#endif
#if defined(OPDI_WIDE)   /* once for each type and level, see >>typed */
#if OPDI_LEVEL == 0
/* A tile of integers as large as the type. */
static void OPDI_WIDE(micro_whole)(int64_t kc, const void *const *rows, int64_t csa, const void *bv, int64_t ldb,
                                   void *cv, int64_t ldc, int add) {
    const OPDI_BITS *b = (const OPDI_BITS *)bv;
    OPDI_BITS *out_row = (OPDI_BITS *)cv, acc[4][8] = {{0}};
    for (int64_t step = 0; step < kc; step++, b += ldb) {
        for (int row = 0; row < 4; row++) {
            const OPDI_BITS x = ((const OPDI_BITS *)rows[row])[step * csa];
            for (int j = 0; j < 8; j++) { acc[row][j] += x * b[j]; }
        }
    }
    for (int row = 0; row < 4; row++) {
        for (int j = 0; j < 8; j++) {
            out_row[row * ldc + j] = add ? out_row[row * ldc + j] + acc[row][j] : acc[row][j];
        }
    }
}
static void OPDI_WIDE(micro)(int64_t kc, const void *const *rows, int64_t csa, const void *bv, int64_t ldb, void *cv,
                             int64_t ldc, int add) {
    const OPDI_T *b = (const OPDI_T *)bv;
    OPDI_T *out_row = (OPDI_T *)cv, acc[4][8] = {{0}};
    for (int64_t step = 0; step < kc; step++, b += ldb) {
        for (int row = 0; row < 4; row++) {
            OPDI_T x = ((const OPDI_T *)rows[row])[step * csa];
            for (int j = 0; j < 8; j++) { acc[row][j] += x * b[j]; }
        }
    }
    for (int row = 0; row < 4; row++) {
        for (int j = 0; j < 8; j++) {
            out_row[row * ldc + j] = add ? out_row[row * ldc + j] + acc[row][j] : acc[row][j];
        }
    }
}
#else
#define OPDI_ROW_INIT(i) OPDI_ROW_FROM(i) OPDI_V d##i = {0};
#define OPDI_ROW_FROM(i) \
    const OPDI_T *p##i = (const OPDI_T *)rows[i]; \
    OPDI_V c##i = {0};
#define OPDI_ROW_STEP(i) { \
        OPDI_V v8f; \
        OPDI_ASM_SPLAT(OPDI_ASM, v8f, p##i + at); \
        OPDI_ASM_FMA("p" OPDI_ASM, c##i, v8f, b0); \
        OPDI_ASM_FMA("p" OPDI_ASM, d##i, v8f, b1); \
    }
#define OPDI_ROW_PAIRS(i) { \
        OPDI_V v8f; \
        OPDI_ASM_SPLAT(OPDI_ASM, v8f, p##i + at); \
        OPDI_ASM_PAIRS(c##i, v8f, b0); \
        OPDI_ASM_PAIRS(d##i, v8f, b1); \
    }
#define OPDI_ROW_NARROW(i) { \
        OPDI_V v8f; \
        OPDI_ASM_SPLAT(OPDI_ASM, v8f, p##i + at); \
        OPDI_ASM_FMA("p" OPDI_ASM, c##i, v8f, b0); \
    }
#define OPDI_ROW_PUT(i) { \
        OPDI_V *v8f = (OPDI_V *)(void *)(out_row + i * ldc); \
        if (add) { c##i += *v8f; } \
        *v8f = c##i; \
    }
#define OPDI_ROW_STORE(i) { \
        OPDI_V *v8f = (OPDI_V *)(void *)(out_row + i * ldc), *q1 = (OPDI_V *)(void *)(out_row + i * ldc + WIDTH); \
        if (add) { c##i += *v8f; d##i += *q1; } \
        *v8f = c##i; \
        *q1 = d##i; \
    }
#if OPDI_LEVEL == 1
#define OPDI_TILE_ROWS(M) M(0) M(1) M(2) M(3) M(4) M(5)
#else
#define OPDI_TILE_ROWS(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7)
#endif
OPDI_TARGET static void OPDI_WIDE(micro)(int64_t kc, const void *const *rows, int64_t csa, const void *bv, int64_t ldb,
                                         void *cv, int64_t ldc, int add) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const OPDI_T *b = (const OPDI_T *)bv;
    OPDI_T *out_row = (OPDI_T *)cv;
    OPDI_TILE_ROWS(OPDI_ROW_INIT)
    for (int64_t step = 0, at = 0; step < kc; step++, at += csa, b += ldb) {
        OPDI_V b0 = *(const OPDI_V *)(const void *)b, b1 = *(const OPDI_V *)(const void *)(b + WIDTH);
        OPDI_TILE_ROWS(OPDI_ROW_STEP)
    }
    OPDI_TILE_ROWS(OPDI_ROW_STORE)
}
#if OPDI_LEVEL == 2
/* A tile of one vector across. */
OPDI_TARGET static void OPDI_WIDE(micro_narrow)(int64_t kc, const void *const *rows, int64_t csa, const void *bv,
                                                int64_t ldb, void *cv, int64_t ldc, int add) {
    const OPDI_T *b = (const OPDI_T *)bv;
    OPDI_T *out_row = (OPDI_T *)cv;
    OPDI_TILE_ROWS(OPDI_ROW_FROM)
    for (int64_t step = 0, at = 0; step < kc; step++, at += csa, b += ldb) {
        OPDI_V b0 = *(const OPDI_V *)(const void *)b;
        OPDI_TILE_ROWS(OPDI_ROW_NARROW)
    }
    OPDI_TILE_ROWS(OPDI_ROW_PUT)
}
#endif
#if OPDI_LEVEL == 2 && OPDI_BYTES == 4 && defined(OPDI_ASM_PAIRS)
/* A tile of pairs of bfloat16. */
OPDI_TARGET static void OPDI_WIDE(micro_pairs)(int64_t kc, const void *const *rows, int64_t csa, const void *bv,
                                               int64_t ldb, void *cv, int64_t ldc, int add) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const OPDI_T *b = (const OPDI_T *)bv;
    OPDI_T *out_row = (OPDI_T *)cv;
    OPDI_TILE_ROWS(OPDI_ROW_INIT)
    for (int64_t step = 0, at = 0; step < kc; step++, at += csa, b += ldb) {
        OPDI_V b0 = *(const OPDI_V *)(const void *)b, b1 = *(const OPDI_V *)(const void *)(b + WIDTH);
        OPDI_TILE_ROWS(OPDI_ROW_PAIRS)
    }
    OPDI_TILE_ROWS(OPDI_ROW_STORE)
}
#endif
/* A tile of four rows of integers as large as the type. */
OPDI_TARGET static void OPDI_WIDE(micro_whole)(int64_t kc, const void *const *rows, int64_t csa, const void *bv,
                                               int64_t ldb, void *cv, int64_t ldc, int add) {
    enum { WIDTH = (int)(sizeof(OPDI_V_BITS) / sizeof(OPDI_BITS)) };
    const OPDI_BITS *const *from = (const OPDI_BITS *const *)(const void *)rows;
    const OPDI_BITS *p0 = from[0], *p1 = from[1], *p2 = from[2], *p3 = from[3], *b = (const OPDI_BITS *)bv;
    OPDI_V_BITS sums[8] = {{0}}, *to0 = (OPDI_V_BITS *)cv;
    OPDI_V_BITS *to1 = (OPDI_V_BITS *)(void *)((OPDI_BITS *)cv + ldc);
    OPDI_V_BITS *to2 = (OPDI_V_BITS *)(void *)((OPDI_BITS *)cv + 2 * ldc);
    OPDI_V_BITS *to3 = (OPDI_V_BITS *)(void *)((OPDI_BITS *)cv + 3 * ldc);
    for (int64_t step = 0; step < kc; step++, p0 += csa, p1 += csa, p2 += csa, p3 += csa, b += ldb) {
        const OPDI_V_BITS b0 = *(const OPDI_V_BITS *)(const void *)b;
        const OPDI_V_BITS b1 = *(const OPDI_V_BITS *)(const void *)(b + WIDTH);
        sums[0] += b0 * *p0;
        sums[1] += b1 * *p0;
        sums[2] += b0 * *p1;
        sums[3] += b1 * *p1;
        sums[4] += b0 * *p2;
        sums[5] += b1 * *p2;
        sums[6] += b0 * *p3;
        sums[7] += b1 * *p3;
    }
    if (add) {
        sums[0] += to0[0];
        sums[1] += to0[1];
        sums[2] += to1[0];
        sums[3] += to1[1];
        sums[4] += to2[0];
        sums[5] += to2[1];
        sums[6] += to3[0];
        sums[7] += to3[1];
    }
    to0[0] = sums[0];
    to0[1] = sums[1];
    to1[0] = sums[2];
    to1[1] = sums[3];
    to2[0] = sums[4];
    to2[1] = sums[5];
    to3[0] = sums[6];
    to3[1] = sums[7];
}
#if OPDI_LEVEL == 1
/* See opdi_gemm_small: four rows at a time, whose tiles are one vector across. */
OPDI_TARGET static void OPDI_WIDE(gemm_small)(int64_t rows, int64_t count, int64_t depth, const opdi_gemm_in *left,
                                              const opdi_gemm_in *right, int add, void *cv, int64_t ldc) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const OPDI_T *const a = (const OPDI_T *)left->data;
    const int64_t csa = left->cs, ldb = right->rs;
    for (int64_t j = 0; j < count; j += WIDTH) {
        int64_t i = 0;
        for (; i + 4 <= rows; i += 4) {
            const OPDI_T *b = (const OPDI_T *)right->data + j, *const p0 = a + i * left->rs, *const p1 = p0 + left->rs,
                *const p2 = p1 + left->rs, *const p3 = p2 + left->rs;
            OPDI_T *const out_row = (OPDI_T *)cv + i * ldc + j;
            OPDI_V c0 = {0}, c1 = {0}, c2 = {0}, c3 = {0};
            for (int64_t step = 0, at = 0; step < depth; step++, at += csa, b += ldb) {
                const OPDI_V b0 = *(const OPDI_V *)(const void *)b;
                OPDI_ROW_NARROW(0) OPDI_ROW_NARROW(1) OPDI_ROW_NARROW(2) OPDI_ROW_NARROW(3)
            }
            OPDI_ROW_PUT(0) OPDI_ROW_PUT(1) OPDI_ROW_PUT(2) OPDI_ROW_PUT(3)
        }
        for (; i < rows; i++) {
            const OPDI_T *b = (const OPDI_T *)right->data + j, *const p0 = a + i * left->rs;
            OPDI_T *const out_row = (OPDI_T *)cv + i * ldc + j;
            OPDI_V c0 = {0};
            for (int64_t step = 0, at = 0; step < depth; step++, at += csa, b += ldb) {
                const OPDI_V b0 = *(const OPDI_V *)(const void *)b;
                OPDI_ROW_NARROW(0)
            }
            OPDI_ROW_PUT(0)
        }
    }
}
#endif
#undef OPDI_ROW_INIT
#undef OPDI_ROW_FROM
#undef OPDI_ROW_NARROW
#undef OPDI_ROW_PUT
#undef OPDI_ROW_PAIRS
#undef OPDI_ROW_STEP
#undef OPDI_ROW_STORE
#undef OPDI_TILE_ROWS
#endif
#endif
#if defined(OPDI_OPERATORS)

/* The micro-kernel for C of a dtype. */
static opdi_micro opdi_micro_of(int dtype) {
    const bool whole = dtype == OPD_INT32 || dtype == OPD_INT64, four = dtype == OPD_FLOAT32 || dtype == OPD_INT32;
    opdi_micro mk = {four ? opdi_micro_plain_f32 : opdi_micro_plain_f64, 4, 8, whole ? OPDI_GEMM_K / 2 : OPDI_GEMM_K};
    if (whole) { mk.run = four ? opdi_micro_whole_plain_f32 : opdi_micro_whole_plain_f64; }
#if defined(OPDI_X86)
    int level = opdi_cpu_level();
    if (level == 1) {
        mk.run = four ? opdi_micro_avx2_f32 : opdi_micro_avx2_f64;
        if (whole) { mk.run = four ? opdi_micro_whole_avx2_f32 : opdi_micro_whole_avx2_f64; }
        mk.mr = whole ? 4 : 6;
        mk.nr = four ? 16 : 8;
    } else if (level == 2) {
        mk.run = four ? opdi_micro_avx512_f32 : opdi_micro_avx512_f64;
        if (whole) { mk.run = four ? opdi_micro_whole_avx512_f32 : opdi_micro_whole_avx512_f64; }
        mk.mr = whole ? 4 : 8;
        mk.nr = four ? 32 : 16;
    }
#endif
    return mk;
}
/* True if the processor multiplies pairs of bfloat16. */
static bool opdi_cpu_pairs(void) {
#if defined(OPDI_X86) && defined(OPDI_ASM_PAIRS)
    return opdi_cpu_level() == 2 && __builtin_cpu_supports("avx512bf16");
#else
    return false;
#endif
}

static inline float opdi_gemm_load_f32(const opdi_gemm_in *in, int64_t at) {
    if (in->dtype == OPD_BFLOAT16) { return opdi_bf16_to_f32(((const uint16_t *)in->data)[at]); }
    if (in->dtype == OPD_FLOAT16) { return opdi_f16_to_f32(((const uint16_t *)in->data)[at]); }
    return ((const float *)in->data)[at];
}

#if defined(OPDI_X86)
typedef uint16_t opdi_v8h __attribute__((vector_size(16), aligned(2), may_alias));
typedef uint16_t opdi_v16h __attribute__((vector_size(32), aligned(2), may_alias));
/* Converts float16 to float, 8 or 16 at a time; returns how many.  Whoever has AVX2 has the instruction (F16C). */
OPDI_AVX2 static int64_t opdi_widen_f16_avx2(const uint16_t *at, int64_t count, float *out) {
    int64_t j = 0;
    for (; j + 8 <= count; j += 8) {
        opdi_v8f wide;
        __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=v"(wide) : "m"(*(const opdi_v8h *)(const void *)(at + j)));
        *(opdi_v8f *)(void *)(out + j) = wide;
    }
    return j;
}
OPDI_AVX512 static int64_t opdi_widen_f16_avx512(const uint16_t *at, int64_t count, float *out) {
    int64_t j = 0;
    for (; j + 16 <= count; j += 16) {
        opdi_v16f wide;
        __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=v"(wide) : "m"(*(const opdi_v16h *)(const void *)(at + j)));
        *(opdi_v16f *)(void *)(out + j) = wide;
    }
    return j;
}
#endif
/* Converts half precision to float, contiguous, in fixed steps. */
static void opdi_widen(const uint16_t *at, int bf16, int64_t count, float *out) {
    int64_t j = 0;
#if defined(OPDI_X86)
    if (!bf16 && opdi_cpu_level() > 1) { j = opdi_widen_f16_avx512(at, count, out); }
    else if (!bf16 && opdi_cpu_level() > 0) { j = opdi_widen_f16_avx2(at, count, out); }
#endif
    for (; bf16 && j + 16 <= count; j += 16) {
        float x[16];
        for (int lane = 0; lane < 16; lane++) { x[lane] = opdi_bf16_to_f32(at[j + lane]); }
        for (int lane = 0; lane < 16; lane++) { out[j + lane] = x[lane]; }
    }
    for (; !bf16 && j + 16 <= count; j += 16) {
        float x[16];
        for (int lane = 0; lane < 16; lane++) { x[lane] = opdi_f16_to_f32(at[j + lane]); }
        for (int lane = 0; lane < 16; lane++) { out[j + lane] = x[lane]; }
    }
    for (; j < count; j++) { out[j] = bf16 ? opdi_bf16_to_f32(at[j]) : opdi_f16_to_f32(at[j]); }
}

/* The size of elements that are packed as they are; 0 for half precision, which is made float. */
static inline size_t opdi_gemm_moved(const opdi_gemm_in *in) {
    return in->dtype == OPD_FLOAT32 || in->dtype == OPD_INT32 ? 4
        : in->dtype == OPD_FLOAT64 || in->dtype == OPD_INT64 ? 8 : 0;
}
/* Sets out[j] = in[j * stride] for j < count; half precision becomes float. */
static void opdi_pack_line(const opdi_gemm_in *in, int64_t at, int64_t stride, int64_t count, void *out) {
    const size_t size = opdi_gemm_moved(in);
    if (stride == 1 && size) {
        memcpy(out, (const char *)in->data + at * (int64_t)size, (size_t)count * size);
    } else if (size == 8) {
        const opdi_word64 *from = (const opdi_word64 *)in->data + at;
        for (int64_t j = 0; j < count; j++) { ((opdi_word64 *)out)[j] = from[j * stride]; }
    } else if (size == 4) {
        const opdi_word32 *from = (const opdi_word32 *)in->data + at;
        for (int64_t j = 0; j < count; j++) { ((opdi_word32 *)out)[j] = from[j * stride]; }
    } else if (stride == 1) {
        opdi_widen((const uint16_t *)in->data + at, in->dtype == OPD_BFLOAT16, count, (float *)out);
    } else {
        for (int64_t j = 0; j < count; j++) { ((float *)out)[j] = opdi_gemm_load_f32(in, at + j * stride); }
    }
}

#if defined(OPDI_X86)
typedef float opdi_v4f __attribute__((vector_size(16), aligned(4), may_alias));
typedef int opdi_v4i __attribute__((vector_size(16)));
#if defined(__clang__)
#define OPDI_MIX4(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define OPDI_MIX4(a, b, i, j, k, l) __builtin_shuffle(a, b, mix_##i##j##k##l)
#endif
/* Of elements of four bytes: out[t * ld + j] = pj[t] for t, j < 4. */
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
#else
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
#endif

/* Columns [0, count) of a matrix of words whose columns are contiguous: out[step * ld + j] = in[j * cs + step] */
static void opdi_pack_turned(const opdi_word32 *in, int64_t cs, int64_t kc, int64_t count, int64_t ld,
                             opdi_word32 *out) {
    int64_t begin = 0;
    for (; begin + 4 <= kc; begin += 16) {        /* a line of the cache from each column */
        const int64_t end = OPDI_MIN(begin + 16, kc & ~(int64_t)3);
        int64_t j = 0;
        for (; j + 4 <= count; j += 4) {
            for (int64_t step = begin; step < end; step += 4) {
                const opdi_word32 *at = in + j * cs + step;
                opdi_transpose4(at, at + cs, at + 2 * cs, at + 3 * cs, out + step * ld + j, ld);
            }
        }
        for (; j < count; j++) {
            for (int64_t step = begin; step < end; step++) { out[step * ld + j] = in[j * cs + step]; }
        }
    }
    for (int64_t step = kc & ~(int64_t)3; step < kc; step++) {
        for (int64_t j = 0; j < count; j++) { out[step * ld + j] = in[j * cs + step]; }
    }
}

/* Copies a line of a panel: most are of 64 or 128 bytes. */
static inline void opdi_copy_line(void *to, const void *from, size_t bytes) {
    if (bytes == 128) { memcpy(to, from, 128); }
    else if (bytes == 64) { memcpy(to, from, 64); }
    else { memcpy(to, from, bytes); }
}
/* Packs columns [j0, j0 + count) and rows [k0, k0 + kc) into a panel ld wide; columns from count on become zero. */
static void opdi_pack_panel(const opdi_gemm_in *in, size_t size, int64_t k0, int64_t kc, int64_t j0, int64_t count,
                            int64_t ld, void *out) {
    char *to = (char *)out;
    size_t line = (size_t)ld * size;
    int64_t at = k0 * in->rs + j0 * in->cs;
    if (in->pack) {
        in->pack(in->ctx, k0, kc, j0, count, ld, out);
        return;
    }
    if (count < ld) { memset(to, 0, line * (size_t)kc); }
    if (in->rs == 1 && in->cs != 1 && opdi_gemm_moved(in) == 4) {
        opdi_pack_turned((const opdi_word32 *)in->data + at, in->cs, kc, count, ld, (opdi_word32 *)out);
    } else if (in->rs == 1 && in->cs != 1 && size == 4) {             /* half precision, 64 rows at a time */
        float wide[OPDI_MAX_NR * 64];
        for (int64_t step = 0; step < kc; step += 64) {
            int64_t rows = OPDI_MIN(64, kc - step);
            for (int64_t j = 0; j < count; j++) { opdi_pack_line(in, at + step + j * in->cs, 1, rows, wide + j * 64); }
            opdi_pack_turned((const opdi_word32 *)(const void *)wide, 64, rows, count, ld,
                             (opdi_word32 *)out + step * ld);
        }
    } else if (in->cs == 1 && count == ld && opdi_gemm_moved(in)) {
        const char *here = (const char *)in->data + at * (int64_t)size;
        int64_t step = in->rs * (int64_t)size;
        for (int64_t turn = 0; turn < kc; turn++) {
            opdi_copy_line(to + turn * (int64_t)line, here + turn * step, line);
        }
    } else {
        for (int64_t step = 0; step < kc; step++) {
            opdi_pack_line(in, at + step * in->rs, in->cs, count, to + step * (int64_t)line);
        }
    }
}

typedef struct opdi_gemm_job {
    opdi_micro mk;
    int dtype;                                    /* of c */
    size_t size;
    opdi_gemm_in a, b;                            /* a as its transpose: rs over k, cs over the rows */
    char *c;
    int64_t rsc, csc;
    int64_t i0, mc, j0, nc, k0, kc;               /* the block at work */
    int64_t mb, nb;                               /* rows and columns of a work item */
    void (*pack_panels)(const struct opdi_gemm_job *job, int64_t begin, int64_t end);     /* of b; NULL: one by one */
    char *apack, *bpack;                          /* NULL: read the operand where it is */
    int add;
} opdi_gemm_job;

/* Takes half a tile's columns where there are no more. */
static void opdi_micro_narrow(opdi_gemm_job *job, int64_t count) {
#if defined(OPDI_X86)
    if (opdi_cpu_level() < 2 || count > job->mk.nr / 2) { return; }
    job->mk.run = job->size == 4 ? opdi_micro_narrow_avx512_f32 : opdi_micro_narrow_avx512_f64;
    job->mk.nr /= 2;
#else
    (void)job;
    (void)count;
#endif
}
static void opdi_gemm_pack_a(void *ctx, int64_t begin, int64_t end) {
    opdi_gemm_job *job = (opdi_gemm_job *)ctx;
    int64_t mr = job->mk.mr;
    for (int64_t panel = begin; panel < end; panel++) {
        opdi_pack_panel(&job->a, job->size, job->k0, job->kc, job->i0 + panel * mr, OPDI_MIN(mr, job->mc - panel * mr),
                        mr, job->apack + (size_t)(panel * mr * job->kc) * job->size);
    }
}

/* Packs the panels begin to end of the right factor for the job ctx (opdi_gemm_job), each nr columns wide. */
static void opdi_gemm_pack_b(void *ctx, int64_t begin, int64_t end) {
    opdi_gemm_job *job = (opdi_gemm_job *)ctx;
    int64_t nr = job->mk.nr, size = (int64_t)job->size, line = nr * size;
    if (job->pack_panels) {
        job->pack_panels(job, begin, end);
        return;
    }
    int plain = job->b.dtype == job->dtype && job->b.cs == 1 && !job->b.pack;
    if (plain && line >= 64) {                      /* eight panels at a time: longer runs of memory */
        for (; begin + 1 < end && (begin + 1) * nr <= job->nc; begin += 8) {
            int64_t panels = OPDI_MIN(OPDI_MIN(8, end - begin), job->nc / nr - begin);
            const char *at = (const char *)job->b.data + (job->k0 * job->b.rs + job->j0 + begin * nr) * size;
            char *out = job->bpack + begin * nr * job->kc * size;
            for (int64_t step = 0; step < job->kc; step++, at += job->b.rs * size, out += line) {
                for (int64_t q = 0; q < panels; q++) {
                    opdi_copy_line(out + q * job->kc * line, at + q * line, (size_t)line);
                }
            }
            if (panels < 8) {
                begin += panels;
                break;
            }
        }
    }
    for (int64_t panel = begin; panel < end; panel++) {
        opdi_pack_panel(&job->b, job->size, job->k0, job->kc, job->j0 + panel * nr, OPDI_MIN(nr, job->nc - panel * nr),
                        nr, job->bpack + (size_t)(panel * nr * job->kc) * job->size);
    }
}

/* Adds or copies the part rows x count of a tile to C. */
static void opdi_gemm_store(const opdi_gemm_job *job, const void *tile, int64_t i, int64_t j, int64_t rows,
                            int64_t count) {
    if (job->csc == 1 && !job->add) {
        for (int64_t row = 0; row < rows; row++) {
            memcpy(job->c + ((i + row) * job->rsc + j) * (int64_t)job->size,
                   (const char *)tile + row * job->mk.nr * (int64_t)job->size, (size_t)count * job->size);
        }
        return;
    }
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t q = 0; q < count; q++) {
            int64_t to = (i + row) * job->rsc + (j + q) * job->csc;
            if (job->dtype == OPD_INT32) {
                const uint32_t v = ((const uint32_t *)tile)[row * job->mk.nr + q];
                uint32_t *sum = (uint32_t *)(void *)job->c + to;
                *sum = job->add ? *sum + v : v;
            } else if (job->dtype == OPD_INT64) {
                const uint64_t v = ((const uint64_t *)tile)[row * job->mk.nr + q];
                uint64_t *sum = (uint64_t *)(void *)job->c + to;
                *sum = job->add ? *sum + v : v;
            } else if (job->size == 4) {
                float v = ((const float *)tile)[row * job->mk.nr + q], *sum = (float *)(void *)job->c + to;
                *sum = job->add ? *sum + v : v;
            } else {
                double v = ((const double *)tile)[row * job->mk.nr + q], *sum = (double *)(void *)job->c + to;
                *sum = job->add ? *sum + v : v;
            }
        }
    }
}

/* Computes the tile of rows [i, i + part), at most MR, and count columns from j on; panel has those of B. */
static void opdi_gemm_tile(const opdi_gemm_job *job, int64_t i, int64_t j, int64_t count, const void *panel,
                           int64_t ldb) {
    double tile[OPDI_MAX_MR * OPDI_MAX_NR / 2];
    const void *rows[OPDI_MAX_MR];
    const opdi_micro *mk = &job->mk;
    int64_t part = OPDI_MIN(mk->mr, job->mc - i), csa = mk->mr, size = (int64_t)job->size;
    for (int64_t row = 0; row < mk->mr; row++) {
        int64_t real = OPDI_MIN(row, part - 1);   /* rows past the end compute what nobody reads */
        if (job->apack) { rows[row] = job->apack + (i * job->kc + row) * size; }
        else {
            rows[row] = (const char *)job->a.data + ((job->i0 + i + real) * job->a.cs + job->k0 * job->a.rs) * size;
        }
    }
    if (!job->apack) { csa = job->a.rs; }
    if (part == mk->mr && count == mk->nr && job->csc == 1) {
        mk->run(job->kc, rows, csa, panel, ldb, job->c + ((job->i0 + i) * job->rsc + job->j0 + j) * size, job->rsc,
                job->add);
    } else {
        mk->run(job->kc, rows, csa, panel, ldb, tile, mk->nr, 0);
        opdi_gemm_store(job, tile, job->i0 + i, job->j0 + j, part, count);
    }
}

/* Computes work items [begin, end), which are blocks of mb x nb of C, by rows. */
static void opdi_gemm_blocks(void *ctx, int64_t begin, int64_t end) {
    const opdi_gemm_job *job = (const opdi_gemm_job *)ctx;
    int64_t across = (job->nc - 1) / job->nb + 1, nr = job->mk.nr;
    for (int64_t item = begin; item < end; item++) {
        int64_t ib = item / across * job->mb, jb = item % across * job->nb;
        int64_t ie = OPDI_MIN(ib + job->mb, job->mc), je = OPDI_MIN(jb + job->nb, job->nc);
        for (int64_t j = jb; j < je; j += nr) {
            int64_t count = OPDI_MIN(nr, job->nc - j), ldb = nr;
            const char *second;
            if (job->bpack) {
                second = job->bpack + (size_t)(j * job->kc) * job->size;
            } else {
                ldb = job->b.rs;
                second = (const char *)job->b.data + (job->k0 * ldb + job->j0 + j) * (int64_t)job->size;
            }
            for (int64_t i = ib; i < ie; i += job->mk.mr) { opdi_gemm_tile(job, i, j, count, second, ldb); }
        }
    }
}

/* Adds to one block of C, job->mc x job->nc at (i0, j0), the products of k0 .. k0 + kc: packs A unless it is read in
   place, then runs the tiles in groups of mb x nb, which threads share. */
static void opdi_gemm_block(opdi_gemm_job *job) {
    int64_t mr = job->mk.mr, nr = job->mk.nr, rows = (job->mc - 1) / mr + 1, cols = (job->nc - 1) / nr + 1;
    double work = (double)job->mc * (double)job->nc * (double)job->kc;
    int64_t threads = work < 1e6 ? 1 : opd_threads(), mp = 16, np = 8;
    while (threads > 1 && ((rows - 1) / mp + 1) * ((cols - 1) / np + 1) < 4 * threads && (mp > 2 || np > 1)) {
        if (mp > 2) { mp /= 2; }
        else { np /= 2; }
    }
    job->mb = mp * mr;
    job->nb = np * nr;
    if (job->apack) {
        opdi_parallel_for(rows, threads > 1 ? OPDI_MAX(1, 16384 / (mr * job->kc)) : rows, opdi_gemm_pack_a, job);
    }
    int64_t items = ((job->mc - 1) / job->mb + 1) * ((job->nc - 1) / job->nb + 1);
    opdi_parallel_for(items, threads > 1 ? 1 : items, opdi_gemm_blocks, job);
}

#define OPDI_GEMM_N 1024
#define OPDI_GEMM_M 2048
#define OPDI_FEW 4                                /* rows of half precision that are multiplied one by one */
#define OPDI_FEW_ROWS 16                          /* those that are not packed, where vectors are */
#define OPDI_FEW_FLOATS 8         /* those of floats: what is added up in another order than large batches are */
#define OPDI_FEW_PAIRS 32                         /* those of pairs of bfloat16 that are not packed */

static int64_t opdi_round_up(int64_t count, int64_t to) { return (count + to - 1) / to * to; }

/* Cuts a product into blocks: steps[0] rows, steps[1] columns and steps[2] of the depth at a time. */
static void opdi_gemm_steps(const opdi_micro *mk, int64_t rows, int64_t count, int64_t depth, int64_t steps[3]) {
    const int64_t parts = (depth - 1) / mk->kc + 1;
    steps[0] = OPDI_MIN(opdi_round_up(rows, mk->mr), OPDI_GEMM_M / mk->mr * mk->mr);
    steps[1] = OPDI_MIN(opdi_round_up(count, mk->nr), OPDI_GEMM_N);
    steps[2] = OPDI_MIN(opdi_round_up((depth - 1) / parts + 1, 8), depth);
}
/* Returns the most bytes that a product works with, whichever of its sides are packed. */
static size_t opdi_gemm_room(size_t size, int64_t rows, int64_t count, int64_t depth) {
    const opdi_micro mk = opdi_micro_of(size == 4 ? OPD_FLOAT32 : OPD_FLOAT64);
    int64_t steps[3], turned[3];
    if (rows <= 0 || count <= 0 || depth <= 0) { return 0; }
    opdi_gemm_steps(&mk, rows, count, depth, steps);
    opdi_gemm_steps(&mk, count, rows, depth, turned);
    const int64_t sides = OPDI_MAX(steps[0] + steps[1], turned[0] + turned[1]) * steps[2];
    if (rows > 1 && count > 1 && sides * (int64_t)size + 64 <= 4096) { return 0; }      /* it has a place of its own */
    const int64_t few = OPDI_MIN(rows, count) <= OPDI_FEW_ROWS ? OPDI_FEW_ROWS * depth : depth;
    return OPDI_LENT((size_t)(OPDI_MAX(sides, few) * (int64_t)size) + 64);
}

/* Computes C (rows x count) = A B, or C += A B where job->add is set, block by block: panels of B and blocks of A are
   packed into one buffer, except those that can be read in place.  0, or -1 when there is no memory for the buffer. */
static int opdi_gemm_blocked(opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const int64_t nr = job->mk.nr, size = (int64_t)job->size;
    int64_t steps[3];
    opdi_gemm_steps(&job->mk, rows, count, depth, steps);
    const int64_t mstep = steps[0], nstep = steps[1], kstep = steps[2];
    int same = job->a.dtype == job->dtype && job->a.rs == 1 && !job->a.pack &&
               (count < 512 || rows < 256 || job->a.cs * size < 4096);  /* far rows compete for the same cache lines */
    int direct = !job->b.pack && job->b.dtype == job->dtype && job->b.cs == 1 && count % nr == 0 &&
                 count * depth * size <= 32768;
    size_t asize = same ? 0 : (size_t)(mstep * kstep * size), bsize = direct ? 0 : (size_t)(nstep * kstep * size);
    double local[512];                            /* 4 KiB: small products allocate nothing */
    char *buffer = (char *)local;
    if (asize + bsize + 64 > sizeof local) {
        buffer = opdi_lend(asize + bsize + 64);
        if (!buffer) { return -1; }
    }
    char *at = buffer + (64 - ((uintptr_t)buffer & 63));
    int first = job->add;
    job->bpack = direct ? NULL : at;
    job->apack = same ? NULL : at + bsize;
    for (job->j0 = 0; job->j0 < count; job->j0 += nstep) {
        job->nc = OPDI_MIN(nstep, count - job->j0);
        for (job->k0 = 0; job->k0 < depth; job->k0 += kstep) {
            job->kc = OPDI_MIN(kstep, depth - job->k0);
            job->add = first || job->k0 > 0;
            int64_t panels = (job->nc - 1) / nr + 1, grain = OPDI_MAX(1, 16384 / (nr * job->kc));
            if (job->bpack) {
                opdi_parallel_for(panels, (double)rows * (double)count * (double)depth < 1e6 ? panels : grain,
                                  opdi_gemm_pack_b, job);
            }
            for (job->i0 = 0; job->i0 < rows; job->i0 += mstep) {
                job->mc = OPDI_MIN(mstep, rows - job->i0);
                opdi_gemm_block(job);
            }
        }
    }
    if (buffer != (char *)local) { opdi_lend_end(buffer, asize + bsize + 64); }
    return 0;
}

/* Sets C = beta C; beta == 0 does not read C, and integers have 0 or 1. */
static void opdi_gemm_scale(const opdi_gemm_job *job, int64_t rows, int64_t count, double beta) {
    const bool whole = job->dtype == OPD_INT32 || job->dtype == OPD_INT64;
    if (beta == 1) { return; }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < count; j++) {
            int64_t at = i * job->rsc + j * job->csc;
            float *f = (float *)(void *)job->c + at;
            double *to = (double *)(void *)job->c + at;
            if (whole) { memset(job->c + at * (int64_t)job->size, 0, job->size); }
            else if (job->size == 4) { *f = beta == 0 ? 0.0f : *f * (float)beta; }
            else { *to = beta == 0 ? 0.0 : *to * beta; }
        }
    }
}

typedef struct opdi_gemv_job {
    size_t size;
    const char *a, *x;
    char *y;
    int64_t m, k, rs, cs, incy;
    int add;
} opdi_gemv_job;

/* Matrix times vector, y[m] += A[m,k] x[k], x contiguous; A by columns (added up) or by rows (dot products). */
static void opdi_gemv_cols_plain_f32(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y);
static void opdi_gemv_cols_plain_f64(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y);
static float opdi_dot_plain_f32(int64_t depth, const float *a, const float *x);
static double opdi_dot_plain_f64(int64_t depth, const double *a, const double *x);
#if defined(OPDI_X86)
OPDI_AVX512 static void opdi_gemv_cols_avx512_f32(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y);
OPDI_AVX512 static void opdi_gemv_cols_avx512_f64(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y);
OPDI_AVX2 static float opdi_dot_avx2_f32(int64_t depth, const float *a, const float *x);
OPDI_AVX2 static double opdi_dot_avx2_f64(int64_t depth, const double *a, const double *x);
OPDI_AVX512 static float opdi_dot_avx512_f32(int64_t depth, const float *a, const float *x);
OPDI_AVX512 static double opdi_dot_avx512_f64(int64_t depth, const double *a, const double *x);
#endif
#endif
#if defined(OPDI_WIDE)   /* once for each type and level, see >>typed */
#if OPDI_LEVEL != 1
OPDI_TARGET static void OPDI_WIDE(gemv_cols)(const opdi_gemv_job *job, int64_t i, int64_t rows, void *yv) {
    const OPDI_T *a = (const OPDI_T *)(const void *)job->a + i * job->rs, *x = (const OPDI_T *)(const void *)job->x;
    OPDI_T *y = (OPDI_T *)yv;
    const int64_t k = job->k, cs = job->cs, left = k % 4;
    for (int64_t step = 0; step + 4 <= k; step += 4) {
        const OPDI_T x0 = x[step], x1 = x[step + 1], x2 = x[step + 2], x3 = x[step + 3], *at = a + step * cs;
        for (int64_t j = 0; j < rows; j += 16) {
            OPDI_T work[16];
            for (int lane = 0; lane < 16; lane++) {
                work[lane] = y[j + lane] + ((x0 * at[j + lane] + x1 * at[cs + j + lane]) +
                                            (x2 * at[2 * cs + j + lane] + x3 * at[3 * cs + j + lane]));
            }
            for (int lane = 0; lane < 16; lane++) { y[j + lane] = work[lane]; }
        }
    }
    for (int64_t j = 0; left && j < rows; j += 16) {  /* the last one to three: an infinity is not multiplied by 0 */
        const OPDI_T *const at = a + (k - left) * cs + j, *const with = x + k - left;
        OPDI_T work[16];
        for (int lane = 0; lane < 16; lane++) { work[lane] = with[0] * at[lane]; }
        for (int lane = 0; left > 1 && lane < 16; lane++) { work[lane] += with[1] * at[cs + lane]; }
        for (int lane = 0; left > 2 && lane < 16; lane++) { work[lane] += with[2] * at[2 * cs + lane]; }
        for (int lane = 0; lane < 16; lane++) { y[j + lane] += work[lane]; }
    }
}
#endif
#if OPDI_LEVEL == 0
static OPDI_T OPDI_WIDE(dot)(int64_t depth, const OPDI_T *a, const OPDI_T *x) {
    OPDI_T sums[16] = {0}, sum = 0;
    int64_t step = 0;
    for (; step + 16 <= depth; step += 16) {
        for (int lane = 0; lane < 16; lane++) { sums[lane] += a[step + lane] * x[step + lane]; }
    }
    for (int lane = 0; lane < 16; lane++) { sum += sums[lane]; }
    for (; step < depth; step++) { sum += a[step] * x[step]; }
    return sum;
}
#else
/* The dot product of depth elements of a and x, in four vectors that are summed at the end. */
OPDI_TARGET static OPDI_T OPDI_WIDE(dot)(int64_t depth, const OPDI_T *a, const OPDI_T *x) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    typedef OPDI_T H __attribute__((vector_size(sizeof(OPDI_V) / 2)));
    typedef OPDI_T Q __attribute__((vector_size(sizeof(OPDI_V) / 4)));
    OPDI_V s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    H half[2];
    Q quarter[2];
    OPDI_T lanes[WIDTH / 4], sum = 0;
    int64_t step = 0;
    for (; step + 4 * WIDTH <= depth; step += 4 * WIDTH) {
        const OPDI_V *v8f = (const OPDI_V *)(const void *)(a + step), *other = (const OPDI_V *)(const void *)(x + step);
        s0 += v8f[0] * other[0];
        s1 += v8f[1] * other[1];
        s2 += v8f[2] * other[2];
        s3 += v8f[3] * other[3];
    }
    for (; step + WIDTH <= depth; step += WIDTH) {
        s0 += *(const OPDI_V *)(const void *)(a + step) * *(const OPDI_V *)(const void *)(x + step);
    }
    s0 = (s0 + s1) + (s2 + s3);
    memcpy(half, &s0, sizeof half);
    half[0] += half[1];
    memcpy(quarter, &half[0], sizeof quarter);
    quarter[0] += quarter[1];
    memcpy(lanes, &quarter[0], sizeof lanes);
    for (int w = WIDTH / 8; w > 0; w /= 2) {
        for (int lane = 0; lane < w; lane++) { lanes[lane] += lanes[lane + w]; }
    }
    for (; step < depth; step++) { sum += a[step] * x[step]; }
    return lanes[0] + sum;
}
OPDI_TARGET OPDI_ALWAYS OPDI_T OPDI_WIDE(lanes_sum)(OPDI_V sum) {
    typedef OPDI_T H __attribute__((vector_size(sizeof(OPDI_V) / 2)));
    typedef OPDI_T Q __attribute__((vector_size(sizeof(OPDI_V) / 4)));
    H half[2];
    Q quarter[2];
    OPDI_T lanes[sizeof(Q) / sizeof(OPDI_T)];
    memcpy(half, &sum, sizeof half);
    half[0] += half[1];
    memcpy(quarter, &half[0], sizeof quarter);
    quarter[0] += quarter[1];
    memcpy(lanes, &quarter[0], sizeof lanes);
    for (int w = (int)(sizeof(Q) / sizeof(OPDI_T)) / 2; w > 0; w /= 2) {
        for (int lane = 0; lane < w; lane++) { lanes[lane] += lanes[lane + w]; }
    }
    return lanes[0];
}
/* Defines an opdi_dots_fn for a few rows of OPDI_T and four rows of `type`, whose vectors `load` reads. */
#define OPDI_DOTS_FROM(i) \
    const OPDI_T *const a##i = (const OPDI_T *)few[i]; \
    OPDI_V c##i##0 = {0}, c##i##1 = {0}, c##i##2 = {0}, c##i##3 = {0};
#define OPDI_DOTS_STEP(i) { \
        const OPDI_V row = *(const OPDI_V *)(const void *)(a##i + step); \
        OPDI_ASM_FMA("p" OPDI_ASM, c##i##0, row, y0); \
        OPDI_ASM_FMA("p" OPDI_ASM, c##i##1, row, y1); \
        OPDI_ASM_FMA("p" OPDI_ASM, c##i##2, row, y2); \
        OPDI_ASM_FMA("p" OPDI_ASM, c##i##3, row, y3); \
    }
#define OPDI_DOTS_SUM(i) \
    sums[4 * i] = OPDI_WIDE(lanes_sum)(c##i##0); \
    sums[4 * i + 1] = OPDI_WIDE(lanes_sum)(c##i##1); \
    sums[4 * i + 2] = OPDI_WIDE(lanes_sum)(c##i##2); \
    sums[4 * i + 3] = OPDI_WIDE(lanes_sum)(c##i##3); \
    for (int64_t at = step; at < depth; at++) { \
        sums[4 * i] += a##i[at] * OPDI_DOTS_ONE(x0[at]); \
        sums[4 * i + 1] += a##i[at] * OPDI_DOTS_ONE(x1[at]); \
        sums[4 * i + 2] += a##i[at] * OPDI_DOTS_ONE(x2[at]); \
        sums[4 * i + 3] += a##i[at] * OPDI_DOTS_ONE(x3[at]); \
    }
#define OPDI_DOTS_NAMES(type) \
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) }; \
    OPDI_T *const sums = (OPDI_T *)product; \
    int64_t step = 0; \
    const type *const x0 = (const type *)many[0], *const x1 = (const type *)many[1], \
        *const x2 = (const type *)many[2], *const x3 = (const type *)many[3];
#define OPDI_DOTS_TILE(name, ROWS, type, load) \
    OPDI_TARGET static void OPDI_WIDE(name)(int64_t depth, const void *const *few, const void *const *many, \
                                            void *product) { \
        OPDI_DOTS_NAMES(type) \
        ROWS(OPDI_DOTS_FROM) \
        for (; step + WIDTH <= depth; step += WIDTH) { \
            const OPDI_V y0 = load(x0 + step), y1 = load(x1 + step), y2 = load(x2 + step), y3 = load(x3 + step); \
            ROWS(OPDI_DOTS_STEP) \
        } \
        ROWS(OPDI_DOTS_SUM) \
    }
#define OPDI_DOTS_1(M) M(0)
#if OPDI_LEVEL == 1
#define OPDI_DOTS_FEW(M) M(0) M(1)
#else
#define OPDI_DOTS_FEW(M) M(0) M(1) M(2) M(3)
#endif
#define OPDI_DOTS_LOAD(at) (*(const OPDI_V *)(const void *)(at))
#define OPDI_DOTS_ONE(x) (x)
OPDI_DOTS_TILE(dots_few, OPDI_DOTS_FEW, OPDI_T, OPDI_DOTS_LOAD)
#if defined(OPDI_V_HALVES)
OPDI_TARGET OPDI_ALWAYS OPDI_V OPDI_WIDE(from_f16)(const uint16_t *at) {
    OPDI_V wide;
    __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=v"(wide) : "m"(*(const OPDI_V_HALVES *)(const void *)at));
    return wide;
}
#undef OPDI_DOTS_ONE
#define OPDI_DOTS_ONE(x) opdi_f16_to_f32(x)
OPDI_DOTS_TILE(dots_few_f16, OPDI_DOTS_FEW, uint16_t, OPDI_WIDE(from_f16))
OPDI_DOTS_TILE(dots_one_f16, OPDI_DOTS_1, uint16_t, OPDI_WIDE(from_f16))
#endif
#if defined(OPDI_V_HALVES)
/* Reads the short floats of two vectors as floats: of bfloat16 first the even ones, of float16 the first half. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(longer)(const uint16_t *at, bool bf16, OPDI_V *two) {
    if (!bf16) {
        const OPDI_V_HALVES *const halves = (const OPDI_V_HALVES *)(const void *)at;
        __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=v"(two[0]) : "m"(halves[0]));
        __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=v"(two[1]) : "m"(halves[1]));
        return;
    }
    OPDI_V_BITS words;
    memcpy(&words, at, sizeof words);
    const OPDI_V_BITS even = words << 16, odd = words & 0xffff0000u;
    memcpy(&two[0], &even, sizeof even);
    memcpy(&two[1], &odd, sizeof odd);
}
/* Adds x[k] B[k, j] to sums[j], for count columns of short floats that are whole steps of two vectors; of bfloat16 the
   sums of a step are those of its even columns, then of its odd ones. */
OPDI_TARGET static void OPDI_WIDE(halves_cols)(int64_t depth, int64_t count, bool bf16, const float *x,
                                               const uint16_t *b, int64_t rs, float *sums) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    for (int64_t k = 0; k < depth; k += 4) {
        const int64_t rows = OPDI_MIN(4, depth - k);
        for (int64_t j = 0; j < count; j += 2 * WIDTH) {
            OPDI_V *const to = (OPDI_V *)(void *)(sums + j), first = to[0], second = to[1];
            for (int64_t row = 0; row < rows; row++) {
                OPDI_V two[2], factor;
                OPDI_WIDE(longer)(b + (k + row) * rs + j, bf16, two);
                OPDI_ASM_SPLAT(OPDI_ASM, factor, x + k + row);
                OPDI_ASM_FMA("p" OPDI_ASM, first, two[0], factor);
                OPDI_ASM_FMA("p" OPDI_ASM, second, two[1], factor);
            }
            to[0] = first;
            to[1] = second;
        }
    }
}
#endif
#undef OPDI_DOTS_FROM
#undef OPDI_DOTS_STEP
#undef OPDI_DOTS_SUM
#undef OPDI_DOTS_NAMES
#undef OPDI_DOTS_TILE
#undef OPDI_DOTS_1
#undef OPDI_DOTS_FEW
#undef OPDI_DOTS_LOAD
#undef OPDI_DOTS_ONE
#endif
#endif
#if defined(OPDI_OPERATORS)

#if defined(OPDI_X86)
OPDI_AVX2 static opdi_dots_fn opdi_dots_few_avx2_f32, opdi_dots_few_avx2_f64, opdi_dots_few_f16_avx2_f32,
    opdi_dots_one_f16_avx2_f32;
OPDI_AVX2 static void opdi_halves_cols_avx2_f32(int64_t depth, int64_t count, bool bf16, const float *x,
                                                const uint16_t *b, int64_t rs, float *sums);
OPDI_AVX512 static void opdi_halves_cols_avx512_f32(int64_t depth, int64_t count, bool bf16, const float *x,
                                                    const uint16_t *b, int64_t rs, float *sums);
OPDI_AVX512 static opdi_dots_fn opdi_dots_few_avx512_f32, opdi_dots_few_avx512_f64, opdi_dots_few_f16_avx512_f32,
    opdi_dots_one_f16_avx512_f32;
#endif
/* Computes count dot products of depth elements: of first and second, rows of as and bs elements, to product, cs apart.
   Where beta is not 0 product holds what is added. */
static void opdi_dots(size_t size, int64_t count, int64_t depth, const void *first, int64_t as, const void *second,
                      int64_t bs, double beta, void *product, int64_t cs) {
    float (*f32)(int64_t, const float *, const float *) = opdi_dot_plain_f32;
    double (*f64)(int64_t, const double *, const double *) = opdi_dot_plain_f64;
#if defined(OPDI_X86)
    int level = opdi_cpu_level();
    if (level == 1) {
        f32 = opdi_dot_avx2_f32;
        f64 = opdi_dot_avx2_f64;
    }
    if (level == 2) {
        f32 = opdi_dot_avx512_f32;
        f64 = opdi_dot_avx512_f64;
    }
#endif
    for (int64_t i = 0; i < count; i++) {
        float *f = (float *)product + i * cs;
        double *to = (double *)product + i * cs;
        if (size == 4) {
            const float sum = f32(depth, (const float *)first + i * as, (const float *)second + i * bs);
            *f = beta == 0 ? sum : sum + (float)beta * *f;
        } else {
            const double sum = f64(depth, (const double *)first + i * as, (const double *)second + i * bs);
            *to = beta == 0 ? sum : sum + beta * *to;
        }
    }
}
static void opdi_gemv_rows(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y) {
    opdi_dots(job->size, rows, job->k, job->a + i * job->rs * (int64_t)job->size, job->rs, job->x, 0, 0, y, 1);
}

/* Rows of C [m, n], rs elements apart, are numbers a, as apart, times b.  What is larger than caches goes past them. */
#if defined(OPDI_X86)
OPDI_AVX2 static void opdi_outer_avx2_f32(int64_t rows, int64_t count, const float *a, int64_t as, const float *b,
                                          float *out_row, int64_t rs, int stream);
OPDI_AVX2 static void opdi_outer_avx2_f64(int64_t rows, int64_t count, const double *a, int64_t as, const double *b,
                                          double *out_row, int64_t rs, int stream);
#endif
#endif
#if defined(OPDI_WIDE) && OPDI_LEVEL == 1   /* once for each type and level, see >>typed */
OPDI_TARGET static void OPDI_WIDE(outer)(int64_t rows, int64_t count, const OPDI_T *a, int64_t as, const OPDI_T *b,
                                         OPDI_T *out_row, int64_t rs, int stream) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    for (int64_t i = 0; i < rows; i++) {
        const OPDI_T sum = a[i * as];
        OPDI_T *to = out_row + i * rs;
        int64_t j = 0;
        for (; j + WIDTH <= count; j += WIDTH) {
            const OPDI_V v8f = *(const OPDI_V *)(const void *)(b + j) * sum;
            if (stream) { OPDI_ASM_STREAM(OPDI_ASM, (OPDI_V *)(void *)(to + j), v8f); }
            else { *(OPDI_V *)(void *)(to + j) = v8f; }
        }
        for (; j < count; j++) { to[j] = sum * b[j]; }
    }
}
#endif
#if defined(OPDI_OPERATORS)

/* Computes C = a second^T and returns 1 where that has a loop of its own, else returns 0. */
static int opdi_outer_try(size_t size, int64_t rows, int64_t count, const void *first, int64_t as, const void *second,
                          void *product, int64_t rs, bool large) {
#if defined(OPDI_X86)
    const int stream = large && ((uintptr_t)product & 31) == 0 && rs * (int64_t)size % 32 == 0;
    if (opdi_cpu_level() == 0) { return 0; }
    if (size == 4) {
        opdi_outer_avx2_f32(rows, count, (const float *)first, as, (const float *)second, (float *)product, rs, stream);
    }
    else {
        opdi_outer_avx2_f64(rows, count, (const double *)first, as, (const double *)second, (double *)product, rs,
                            stream);
    }
    if (stream) { __builtin_ia32_sfence(); }
    return 1;
#else
    (void)size;
    (void)rows;
    (void)count;
    (void)first;
    (void)as;
    (void)second;
    (void)product;
    (void)rs;
    (void)large;
    return 0;
#endif
}

/* Adds the products of the last rows < 16 rows of a matrix that is stored by columns. */
static void opdi_gemv_rest(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y) {
    const void *first = job->a + i * job->rs * (int64_t)job->size, *x = job->x;
    for (int64_t step = 0; step < job->k; step++) {
        for (int64_t row = 0; row < rows; row++) {
            int64_t at = row * job->rs + step * job->cs;
            if (job->size == 4) { ((float *)y)[row] += ((const float *)first)[at] * ((const float *)x)[step]; }
            else { ((double *)y)[row] += ((const double *)first)[at] * ((const double *)x)[step]; }
        }
    }
}

static void opdi_gemv_cols(const opdi_gemv_job *job, int64_t i, int64_t rows, void *y) {
#if defined(OPDI_X86)
    if (opdi_cpu_level() == 2) {
        (job->size == 4 ? opdi_gemv_cols_avx512_f32 : opdi_gemv_cols_avx512_f64)(job, i, rows, y);
        return;
    }
#endif
    (job->size == 4 ? opdi_gemv_cols_plain_f32 : opdi_gemv_cols_plain_f64)(job, i, rows, y);
}
/* Computes rows [begin, end) of y = A x, or y += A x where job->add is set, in steps that fit a buffer on the
   stack.  An opdi_range_fn. */
static void opdi_gemv_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_gemv_job *job = (const opdi_gemv_job *)ctx;
    double y[1024];
    int64_t step = job->size == 4 ? 2048 : 1024;
    for (int64_t i = begin; i < end; i += step) {
        int64_t rows = OPDI_MIN(step, end - i), whole = rows & ~(int64_t)15;
        memset(y, 0, (size_t)rows * job->size);
        if (job->cs == 1) {
            opdi_gemv_rows(job, i, rows, y);
        } else {
            opdi_gemv_cols(job, i, whole, y);
            opdi_gemv_rest(job, i + whole, rows - whole, (char *)y + (size_t)whole * job->size);
        }
        for (int64_t row = 0; row < rows; row++) {
            int64_t to = (i + row) * job->incy;
            float *f = (float *)(void *)job->y + to;
            double *dest = (double *)(void *)job->y + to;
            if (job->size == 4) { *f = (job->add ? *f : 0.0f) + ((const float *)(void *)y)[row]; }
            else { *dest = (job->add ? *dest : 0.0) + y[row]; }
        }
    }
}

/* Returns 1 when it has done the product, 0 when the shapes are not for it, -1 on failure. */
static int opdi_gemv_try(opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const int dtype = job->size == 4 ? OPD_FLOAT32 : OPD_FLOAT64;
    opdi_gemv_job gemv;
    int64_t incx;
    if ((rows != 1 && count != 1) || job->b.pack || job->a.dtype != dtype || job->b.dtype != dtype) { return 0; }
    gemv.size = job->size;
    gemv.y = job->c;
    gemv.add = job->add;
    gemv.k = depth;
    if (count == 1) {
        gemv.a = (const char *)job->a.data;
        gemv.rs = job->a.cs;
        gemv.cs = job->a.rs;
        gemv.m = rows;
        gemv.incy = job->rsc;
        gemv.x = (const char *)job->b.data;
        incx = job->b.rs;
    } else {
        gemv.a = (const char *)job->b.data;
        gemv.rs = job->b.cs;
        gemv.cs = job->b.rs;
        gemv.m = count;
        gemv.incy = job->csc;
        gemv.x = (const char *)job->a.data;
        incx = job->a.rs;
    }
    if (gemv.cs != 1 && gemv.rs != 1) { return 0; }
    char *copy = NULL;
    if (incx != 1) {
        opdi_gemm_in vector = count == 1 ? job->b : job->a;
        copy = opdi_lend((size_t)depth * gemv.size);
        if (!copy) { return -1; }
        opdi_pack_line(&vector, 0, incx, depth, copy);
        gemv.x = copy;
    }
    int64_t grain = opdi_round_up(OPDI_MAX(16, 65536 / depth), 16);
    opdi_parallel_for(gemv.m, grain, opdi_gemv_range, &gemv);
    if (copy) { opdi_lend_end(copy, (size_t)depth * gemv.size); }
    return 1;
}

#if defined(OPDI_X86)
OPDI_AVX2 static void opdi_gemm_small_avx2_f32(int64_t rows, int64_t count, int64_t depth, const opdi_gemm_in *left,
                                               const opdi_gemm_in *right, int add, void *product, int64_t rsc);
OPDI_AVX2 static void opdi_gemm_small_avx2_f64(int64_t rows, int64_t count, int64_t depth, const opdi_gemm_in *left,
                                               const opdi_gemm_in *right, int add, void *product, int64_t rsc);
#endif
/* Computes C = A B, or C += A B, of at most 64 in each size, where rows of B and C are contiguous and whole vectors;
   nothing is packed.  False: it is no such product. */
static bool opdi_gemm_small(int dtype, int64_t rows, int64_t count, int64_t depth, const opdi_gemm_in *left,
                            const opdi_gemm_in *right, double beta, void *product, int64_t rsc, int64_t csc) {
#if defined(OPDI_X86)
    if (rows > 64 || count > 64 || depth > 64 || rows * count * depth > 4096 || rows < 2 || depth < 1 || csc != 1 ||
        right->cs != 1 || right->pack || count % (dtype == OPD_FLOAT32 ? 8 : 4) || (beta != 0 && beta != 1) ||
        left->dtype != dtype || right->dtype != dtype || opdi_cpu_level() == 0) { return false; }
    if (dtype == OPD_FLOAT32) {
        opdi_gemm_small_avx2_f32(rows, count, depth, left, right, beta != 0, product, rsc);
        return true;
    }
    if (dtype != OPD_FLOAT64) { return false; }
    opdi_gemm_small_avx2_f64(rows, count, depth, left, right, beta != 0, product, rsc);
    return true;
#else
    (void)dtype;
    (void)rows;
    (void)count;
    (void)depth;
    (void)left;
    (void)right;
    (void)beta;
    (void)product;
    (void)rsc;
    (void)csc;
    return false;
#endif
}
/* Computes a product so small that everything else costs more than it. */
static void opdi_gemm_tiny(const opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const float *a = (const float *)job->a.data, *b = (const float *)job->b.data;
    const double *x = (const double *)job->a.data, *y = (const double *)job->b.data;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < count; j++) {
            int64_t at_a = i * job->a.cs, at_b = j * job->b.cs, to = i * job->rsc + j * job->csc;
            float f = 0;
            double d = 0;
            if (job->size == 4) {
                for (int64_t step = 0; step < depth; step++) {
                    f += a[at_a + step * job->a.rs] * b[at_b + step * job->b.rs];
                }
            }
            else {
                for (int64_t step = 0; step < depth; step++) {
                    d += x[at_a + step * job->a.rs] * y[at_b + step * job->b.rs];
                }
            }
            float *single = (float *)(void *)job->c + to;
            double *twice = (double *)(void *)job->c + to;
            if (job->size == 4) { *single = job->add ? *single + f : f; }
            else { *twice = job->add ? *twice + d : d; }
        }
    }
}

#if defined(OPDI_X86) && defined(OPDI_ASM_PAIRS)
typedef float opdi_v16p __attribute__((vector_size(64), aligned(2), may_alias));      /* of pairs of bfloat16 */
/* The dot product of depth bfloat16 numbers, in four vectors that are summed at the end. */
OPDI_AVX512 static float opdi_dot_pairs(int64_t depth, const uint16_t *a, const uint16_t *x) {
    opdi_v16f s0 = {0}, s1 = {0}, s2 = {0}, s3 = {0};
    float lanes[16], sum = 0;
    int64_t step = 0;
    for (; step + 128 <= depth; step += 128) {
        const opdi_v16p *v16f = (const opdi_v16p *)(const void *)(a + step);
        const opdi_v16p *other = (const opdi_v16p *)(const void *)(x + step);
        OPDI_ASM_PAIRS(s0, v16f[0], other[0]);
        OPDI_ASM_PAIRS(s1, v16f[1], other[1]);
        OPDI_ASM_PAIRS(s2, v16f[2], other[2]);
        OPDI_ASM_PAIRS(s3, v16f[3], other[3]);
    }
    for (; step + 32 <= depth; step += 32) {
        OPDI_ASM_PAIRS(s0, *(const opdi_v16p *)(const void *)(a + step), *(const opdi_v16p *)(const void *)(x + step));
    }
    s0 = (s0 + s1) + (s2 + s3);
    memcpy(lanes, &s0, sizeof lanes);
    for (int lane = 0; lane < 16; lane++) { sum += lanes[lane]; }
    for (; step < depth; step++) { sum += opdi_bf16_to_f32(a[step]) * opdi_bf16_to_f32(x[step]); }
    return sum;
}
#else
static float opdi_dot_pairs(int64_t depth, const uint16_t *a, const uint16_t *x) {
    float sum = 0;
    for (int64_t step = 0; step < depth; step++) { sum += opdi_bf16_to_f32(a[step]) * opdi_bf16_to_f32(x[step]); }
    return sum;
}
#endif
#if defined(OPDI_X86) && defined(OPDI_ASM_PAIRS)
/* The 16 dot products of depth bfloat16 numbers of four rows a and four rows x, a vector for each: sums[4 * i + j]. */
OPDI_AVX512 static void opdi_dots_pairs(int64_t depth, const void *const *few, const void *const *many, void *product) {
    const uint16_t *const *a = (const uint16_t *const *)few, *const *x = (const uint16_t *const *)many;
    float *const sums = (float *)product;
    typedef float opdi_half __attribute__((vector_size(32)));
    typedef float opdi_quarter __attribute__((vector_size(16)));
    const uint16_t *a0 = a[0], *a1 = a[1], *a2 = a[2], *a3 = a[3], *x0 = x[0], *x1 = x[1], *x2 = x[2], *x3 = x[3];
    opdi_v16f all[16] = {{0}};
    int64_t step = 0;
#define OPDI_PAIRS_AT(p) (*(const opdi_v16p *)(const void *)((p) + step))
#define OPDI_PAIRS_FOUR(i) { \
        const opdi_v16f row = OPDI_PAIRS_AT(a##i); \
        OPDI_ASM_PAIRS(c##i##0, row, y0); \
        OPDI_ASM_PAIRS(c##i##1, row, y1); \
        OPDI_ASM_PAIRS(c##i##2, row, y2); \
        OPDI_ASM_PAIRS(c##i##3, row, y3); \
    }
#define OPDI_PAIRS_ZERO(i) opdi_v16f c##i##0 = {0}, c##i##1 = {0}, c##i##2 = {0}, c##i##3 = {0};
#define OPDI_PAIRS_KEEP(i) \
    all[4 * i] = c##i##0, all[4 * i + 1] = c##i##1, all[4 * i + 2] = c##i##2, all[4 * i + 3] = c##i##3;
    OPDI_PAIRS_ZERO(0) OPDI_PAIRS_ZERO(1) OPDI_PAIRS_ZERO(2) OPDI_PAIRS_ZERO(3)
    for (; step + 32 <= depth; step += 32) {
        const opdi_v16f y0 = OPDI_PAIRS_AT(x0), y1 = OPDI_PAIRS_AT(x1), y2 = OPDI_PAIRS_AT(x2), y3 = OPDI_PAIRS_AT(x3);
        OPDI_PAIRS_FOUR(0) OPDI_PAIRS_FOUR(1) OPDI_PAIRS_FOUR(2) OPDI_PAIRS_FOUR(3)
    }
    OPDI_PAIRS_KEEP(0) OPDI_PAIRS_KEEP(1) OPDI_PAIRS_KEEP(2) OPDI_PAIRS_KEEP(3)
#undef OPDI_PAIRS_AT
#undef OPDI_PAIRS_FOUR
#undef OPDI_PAIRS_ZERO
#undef OPDI_PAIRS_KEEP
    for (int k = 0; k < 16; k++) {
        opdi_half halves[2];
        opdi_quarter quarters[2];
        memcpy(halves, &all[k], sizeof halves);
        halves[0] += halves[1];
        memcpy(quarters, &halves[0], sizeof quarters);
        quarters[0] += quarters[1];
        sums[k] = (quarters[0][0] + quarters[0][1]) + (quarters[0][2] + quarters[0][3]);
    }
    for (; step < depth; step++) {
        for (int k = 0; k < 16; k++) {
            sums[k] += opdi_bf16_to_f32(a[k / 4][step]) * opdi_bf16_to_f32(x[k % 4][step]);
        }
    }
}
#endif
/* Dot products of a few rows with many that are of half precision. */
typedef struct opdi_halves_job {
    opdi_gemm_in few, many;
    const float *rows;                            /* the few as floats, depth apart; NULL: multiplied as pairs */
    float *out;
    int64_t nrows, depth, across, along;          /* element (i, j): out[i * across + j * along] */
    int add;
} opdi_halves_job;
static void opdi_halves_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_halves_job *job = (const opdi_halves_job *)ctx;
    float wide[1024], sums[OPDI_FEW];
    for (int64_t j = begin; j < end; j++) {
        const uint16_t *const row = (const uint16_t *)job->many.data + j * job->many.cs;
        for (int64_t i = 0; !job->rows && i < job->nrows; i++) {
            sums[i] = opdi_dot_pairs(job->depth, row, (const uint16_t *)job->few.data + i * job->few.cs);
        }
        for (int64_t at = 0; job->rows && at < job->depth; at += 1024) {
            const int64_t part = OPDI_MIN(1024, job->depth - at);
            opdi_widen(row + at, job->many.dtype == OPD_BFLOAT16, part, wide);
            opdi_dots(4, job->nrows, part, job->rows + at, job->depth, wide, 0, at ? 1 : 0, sums, 1);
        }
        for (int64_t i = 0; i < job->nrows; i++) {
            float *const to = job->out + i * job->across + j * job->along;
            *to = job->add ? *to + sums[i] : sums[i];
        }
    }
}
/* A product of a few rows with many, k contiguous on both: `run` takes `high` of the few and four of the many. */
typedef struct opdi_few_job {
    opdi_dots_fn *run;
    int64_t high;
    const char *few, *many;
    int64_t few_step, many_step;                  /* bytes from row to row */
    char *out;
    int64_t nrows, depth, across, along;          /* element (i, j): out + (i * across + j * along) * size */
    size_t size;
    int add;
} opdi_few_job;
static void opdi_few_put(const opdi_few_job *job, int64_t i, int64_t j, const double *sums, int64_t k) {
    char *const to = job->out + (i * job->across + j * job->along) * (int64_t)job->size;
    float *const f = (float *)(void *)to;
    double *const d = (double *)(void *)to;
    if (job->size == 8) { *d = job->add ? *d + sums[k] : sums[k]; }
    else {
        const float sum = ((const float *)(const void *)sums)[k];
        *f = job->add ? *f + sum : sum;
    }
}
static void opdi_few_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_few_job *job = (const opdi_few_job *)ctx;
    for (int64_t j = begin; j < end; j += 4) {
        const void *few[4], *many[4];
        const int64_t wide = OPDI_MIN(4, end - j);
        double sums[16];                          /* or floats */
        for (int64_t k = 0; k < 4; k++) {         /* past the last the last again, which nobody reads */
            many[k] = job->many + (j + OPDI_MIN(k, wide - 1)) * job->many_step;
        }
        for (int64_t i = 0; i < job->nrows; i += job->high) {
            const int64_t rows = OPDI_MIN(job->high, job->nrows - i);
            for (int64_t k = 0; k < job->high; k++) {
                few[k] = job->few + (i + OPDI_MIN(k, rows - 1)) * job->few_step;
            }
            job->run(job->depth, few, many, sums);
            for (int64_t k = 0; k < 4 * rows; k++) {
                if (k % 4 < wide) { opdi_few_put(job, i + k / 4, j + k % 4, sums, k); }
            }
        }
    }
}
/* Chooses what multiplies nrows rows of floats (doubles) with ones of dtype `many`, or of bfloat16 as pairs; none: the
   processor, or the library, has no such. */
static void opdi_few_choose(opdi_few_job *few, int many, bool pairs) {
    few->run = NULL;
    few->high = 4;
#if defined(OPDI_X86)
    const int level = opdi_cpu_level();
    if (level == 0) { return; }
    if (level == 1) { few->high = 2; }
    if (many == OPD_FLOAT32) { few->run = level == 2 ? opdi_dots_few_avx512_f32 : opdi_dots_few_avx2_f32; }
    if (many == OPD_FLOAT64) { few->run = level == 2 ? opdi_dots_few_avx512_f64 : opdi_dots_few_avx2_f64; }
    if (many == OPD_FLOAT16 && few->nrows > 1) {
        few->run = level == 2 ? opdi_dots_few_f16_avx512_f32 : opdi_dots_few_f16_avx2_f32;
    }
    if (many == OPD_FLOAT16 && few->nrows == 1) {
        few->run = level == 2 ? opdi_dots_one_f16_avx512_f32 : opdi_dots_one_f16_avx2_f32;
        few->high = 1;
    }
#if defined(OPDI_ASM_PAIRS)
    if (pairs) { few->run = opdi_dots_pairs; }
#endif
#endif
    (void)many;
    (void)pairs;
}
/* The product of halves, or of floats (doubles), where one side has few rows, and k is contiguous on both.  Returns 1
   when it has done it, 0 when the shapes are not for it, -1 on failure. */
static int opdi_few_try(const opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const bool turned = count < rows, half = opdi_gemm_moved(&job->a) == 0;
    const bool pairs = job->a.dtype == OPD_BFLOAT16 && job->b.dtype == OPD_BFLOAT16 && opdi_cpu_pairs();
    const opdi_gemm_in *const less = turned ? &job->b : &job->a, *const more = turned ? &job->a : &job->b;
    const int64_t nrows = OPDI_MIN(rows, count), most = pairs ? OPDI_FEW_PAIRS : half ? OPDI_FEW_ROWS
        : OPDI_FEW_FLOATS;
    opdi_few_job few;
    few.nrows = nrows;
    opdi_few_choose(&few, more->dtype, pairs);
    if (!few.run || nrows > most || job->b.pack || job->a.rs != 1 || job->b.rs != 1 || job->a.dtype != job->b.dtype ||
        (half ? pairs && nrows <= OPDI_FEW : depth < 256 || nrows == 1)) { return 0; }
    const size_t bytes = (size_t)(nrows * depth) * sizeof(float);
    float *const wide = half && !pairs ? (float *)(void *)opdi_lend(bytes) : NULL;
    if (half && !pairs && !wide) { return -1; }
    for (int64_t i = 0; wide && i < nrows; i++) { opdi_pack_line(less, i * less->cs, 1, depth, wide + i * depth); }
    few.size = job->size;
    few.few = wide ? (const char *)wide : (const char *)less->data;
    few.few_step = wide ? depth * (int64_t)sizeof(float) : less->cs * (half ? 2 : (int64_t)job->size);
    few.many = (const char *)more->data;
    few.many_step = more->cs * (half ? 2 : (int64_t)job->size);
    few.out = job->c;
    few.depth = depth;
    few.across = turned ? job->csc : job->rsc;
    few.along = turned ? job->rsc : job->csc;
    few.add = job->add;
    opdi_parallel_for(OPDI_MAX(rows, count), opdi_round_up(OPDI_MAX(1, 65536 / depth), 4), opdi_few_range, &few);
    if (wide) { opdi_lend_end((char *)wide, bytes); }
    return 1;
}
/* The product of halves where one side has few rows, and k is contiguous on both.  Returns 1 when it has done it, 0
   when the shapes are not for it, -1 on failure. */
static int opdi_halves_try(const opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const bool turned = count < rows;
    const bool pairs = job->a.dtype == OPD_BFLOAT16 && job->b.dtype == OPD_BFLOAT16 && opdi_cpu_pairs();
    opdi_halves_job halves;
    if (OPDI_MIN(rows, count) > OPDI_FEW || job->b.pack || job->a.rs != 1 || job->b.rs != 1 ||
        opdi_gemm_moved(&job->a) || opdi_gemm_moved(&job->b)) { return 0; }
    halves.few = turned ? job->b : job->a;
    halves.many = turned ? job->a : job->b;
    halves.nrows = OPDI_MIN(rows, count);
    const size_t bytes = (size_t)(halves.nrows * depth) * sizeof(float);
    float *const wide = pairs ? NULL : (float *)(void *)opdi_lend(bytes);
    if (!pairs && !wide) { return -1; }
    for (int64_t i = 0; wide && i < halves.nrows; i++) {
        opdi_pack_line(&halves.few, i * halves.few.cs, 1, depth, wide + i * depth);
    }
    halves.rows = wide;
    halves.out = (float *)(void *)job->c;
    halves.depth = depth;
    halves.across = turned ? job->csc : job->rsc;
    halves.along = turned ? job->rsc : job->csc;
    halves.add = job->add;
    opdi_parallel_for(OPDI_MAX(rows, count), OPDI_MAX(1, 65536 / depth), opdi_halves_range, &halves);
    if (wide) { opdi_lend_end((char *)wide, bytes); }
    return 1;
}

#if defined(OPDI_X86)
/* A row of floats times a matrix of short floats with contiguous rows, rs apart. */
typedef struct opdi_cols_job {
    const float *x;
    const uint16_t *b;
    float *out;
    int64_t depth, rs, along;                     /* column j: out[j * along] */
    bool bf16;
    int add;
} opdi_cols_job;
static void opdi_cols_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_cols_job *job = (const opdi_cols_job *)ctx;
    float sums[1024] __attribute__((aligned(64)));
    const int64_t step = opdi_cpu_level() == 2 ? 32 : 16;
    for (int64_t at = begin, count; at < end; at += count) {
        count = OPDI_MIN(1024, end - at);
        const int64_t whole = count - count % step;
        const uint16_t *const b = job->b + at;
        memset(sums, 0, (size_t)count * sizeof *sums);
        (step == 32 ? opdi_halves_cols_avx512_f32
                    : opdi_halves_cols_avx2_f32)(job->depth, whole, job->bf16, job->x, b, job->rs, sums);
        for (int64_t k = 0; k < job->depth; k++) {
            for (int64_t j = whole; j < count; j++) {
                const uint16_t half = b[k * job->rs + j];
                sums[j] += job->x[k] * (job->bf16 ? opdi_bf16_to_f32(half) : opdi_f16_to_f32(half));
            }
        }
        for (int64_t j = 0; j < count; j++) {
            const int64_t in = j % step, place = in % 2 ? step / 2 + in / 2 : in / 2;
            const float sum = sums[j < whole && job->bf16 ? j - in + place : j];
            float *const to = job->out + (at + j) * job->along;
            *to = job->add ? *to + sum : sum;
        }
    }
}
/* The product of halves that is one row, or one column, whose other side has rows, or columns, in one piece over it.
   Returns 1 when it has done it, 0 when the shapes are not for it, -1 on failure. */
static int opdi_cols_try(const opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    const bool turned = count == 1;
    const opdi_gemm_in *const less = turned ? &job->b : &job->a, *const more = turned ? &job->a : &job->b;
    opdi_cols_job cols;
    if ((rows != 1 && count != 1) || job->b.pack || more->cs != 1 || opdi_gemm_moved(less) || opdi_gemm_moved(more) ||
        OPDI_MAX(rows, count) < 64 || opdi_cpu_level() == 0) { return 0; }
    const size_t bytes = (size_t)depth * sizeof(float);
    float *const x = (float *)(void *)opdi_lend(bytes);
    if (!x) { return -1; }
    opdi_pack_line(less, 0, less->rs, depth, x);
    cols.x = x;
    cols.b = (const uint16_t *)more->data;
    cols.out = (float *)(void *)job->c;
    cols.depth = depth;
    cols.rs = more->rs;
    cols.along = turned ? job->rsc : job->csc;
    cols.bf16 = more->dtype == OPD_BFLOAT16;
    cols.add = job->add;
    opdi_parallel_for(OPDI_MAX(rows, count), opdi_round_up(OPDI_MAX(64, 65536 / depth), 64), opdi_cols_range, &cols);
    opdi_lend_end((char *)x, bytes);
    return 1;
}
#else
static int opdi_cols_try(const opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
    (void)job;
    (void)rows;
    (void)count;
    (void)depth;
    return 0;
}
#endif
#if defined(OPDI_X86) && defined(OPDI_ASM_PAIRS)
/* A matrix of bfloat16 that is packed as words of two steps of k; past its depth stands 0. */
typedef struct opdi_gemm_pairs { opdi_gemm_in in; const uint16_t *data; int64_t rs, cs, depth; } opdi_gemm_pairs;

/* Packs words of rows at and at + rs: out[j] for j < count. */
OPDI_AVX512 static void opdi_pack_pair(const uint16_t *at, int64_t rs, int64_t cs, int64_t count, uint32_t *out) {
    const uint16_t *after = at + rs;
    int64_t j = 0;
    for (; cs == 1 && j + 32 <= count; j += 32) {
        uint32_t words[32];
        for (int lane = 0; lane < 32; lane++) { words[lane] = at[j + lane] | (uint32_t)after[j + lane] << 16; }
        for (int lane = 0; lane < 32; lane++) { out[j + lane] = words[lane]; }
    }
    for (; j < count; j++) { out[j] = at[j * cs] | (uint32_t)after[j * cs] << 16; }
}
/* An opdi_pack_fn; ctx is opdi_gemm_pairs, and steps of k count twice. */
static void opdi_pack_pairs(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t count, int64_t ld, void *out) {
    const opdi_gemm_pairs *pairs = (const opdi_gemm_pairs *)ctx;
    const uint16_t *at = pairs->data + 2 * k0 * pairs->rs + j0 * pairs->cs;
    const int64_t whole = OPDI_MIN(kc, pairs->depth / 2 - k0);
    uint32_t *to = (uint32_t *)out;
    if (pairs->rs == 1 && pairs->cs % 2 == 0 && ((uintptr_t)pairs->data & 3) == 0 && pairs->cs != 0) {
        opdi_pack_turned((const opdi_word32 *)(const void *)at, pairs->cs / 2, whole, count, ld, (opdi_word32 *)out);
    } else {
        for (int64_t step = 0; step < whole; step++) {
            opdi_pack_pair(at + 2 * step * pairs->rs, pairs->rs, pairs->cs, count, to + step * ld);
        }
    }
    for (int64_t j = 0; whole < kc && j < count; j++) {
        to[whole * ld + j] = at[2 * whole * pairs->rs + j * pairs->cs];
    }
}
/* Panels of words of a matrix with contiguous rows, eight at a time: longer runs of memory. */
static void opdi_pack_pair_panels(const opdi_gemm_job *job, int64_t begin, int64_t end) {
    const opdi_gemm_pairs *pairs = (const opdi_gemm_pairs *)job->b.ctx;
    const int64_t nr = job->mk.nr, whole = OPDI_MIN(job->kc, pairs->depth / 2 - job->k0);
    for (; begin < end; begin += 8) {
        const int64_t stop = OPDI_MIN(begin + 8, end);
        const uint16_t *at = pairs->data + 2 * job->k0 * pairs->rs + job->j0;
        for (int64_t step = 0; step < job->kc; step++, at += 2 * pairs->rs) {
            for (int64_t panel = begin; panel < stop; panel++) {
                const int64_t j = panel * nr, count = OPDI_MIN(nr, job->nc - j);
                uint32_t *to = (uint32_t *)(void *)job->bpack + j * job->kc + step * nr;
                if (step < whole) { opdi_pack_pair(at + j, pairs->rs, 1, count, to); }
                else { for (int64_t i = 0; i < count; i++) { to[i] = at[j + i]; } }
            }
        }
    }
}
/* The same for an operand whose floats are numbers of bfloat16, by way of a few lines of its panel. */
OPDI_AVX512 static void opdi_pack_pairs_exact(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t count, int64_t ld,
                                              void *out) {
    const opdi_gemm_pairs *pairs = (const opdi_gemm_pairs *)ctx;
    opdi_word32 wide[64 * OPDI_MAX_NR], *to = (opdi_word32 *)out;
    for (int64_t begin = 0; begin < kc; begin += 32) {
        const int64_t words = OPDI_MIN(32, kc - begin), steps = OPDI_MIN(2 * words, pairs->depth - 2 * (k0 + begin));
        opdi_pack_panel(&pairs->in, 4, 2 * (k0 + begin), steps, j0, count, ld, wide);
        if (steps < 2 * words) { memset(wide + steps * ld, 0, (size_t)ld * 4); }
        for (int64_t word = 0; word < words; word++) {
            const opdi_word32 *first = wide + 2 * word * ld, *second = first + ld;
            for (int64_t j = 0; j < ld; j += 8, to += 8) {            /* a panel is a multiple of eight wide */
                opdi_word32 both[8];
                for (int lane = 0; lane < 8; lane++) {
                    both[lane] = first[j + lane] >> 16 | (second[j + lane] & 0xffff0000u);
                }
                for (int lane = 0; lane < 8; lane++) { to[lane] = both[lane]; }
            }
        }
    }
}
/* Makes one of two operands that are of bfloat16 one of words. */
static void opdi_gemm_pair(opdi_gemm_in *in, opdi_gemm_pairs *pairs, int64_t depth) {
    pairs->in = *in;
    pairs->data = (const uint16_t *)in->data;
    pairs->rs = in->rs;
    pairs->cs = in->cs;
    pairs->depth = depth;
    in->pack = in->exact ? opdi_pack_pairs_exact : opdi_pack_pairs;
    in->ctx = pairs;
}
static bool opdi_gemm_is_short(const opdi_gemm_in *in, int64_t rows) {
    return (in->dtype == OPD_BFLOAT16 && !in->pack) || (in->exact && rows >= 16);
}
#endif
/* The general product of a job whose operands are there. */
static int opdi_gemm_general(opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
#if defined(OPDI_X86) && defined(OPDI_ASM_PAIRS)
    opdi_gemm_pairs left, right;
    if (opdi_gemm_is_short(&job->a, rows) && opdi_gemm_is_short(&job->b, rows) && opdi_cpu_pairs()) {
        const bool runs = job->b.dtype == OPD_BFLOAT16 && job->b.cs == 1;
        job->mk.run = opdi_micro_pairs_avx512_f32;
        opdi_gemm_pair(&job->a, &left, depth);
        opdi_gemm_pair(&job->b, &right, depth);
        if (runs) { job->pack_panels = opdi_pack_pair_panels; }
        return opdi_gemm_blocked(job, rows, count, (depth + 1) / 2);
    }
#endif
    opdi_micro_narrow(job, count);
    return opdi_gemm_blocked(job, rows, count, depth);
}

/* Computes C = A B + beta C, with C of float, double, int32 or int64; of integers, which wrap, beta is 0 or 1.  0, or
   -1 when memory is out. */
static int opdi_gemm_of(int dtype, int64_t rows, int64_t count, int64_t depth, const opdi_gemm_in *left,
                        const opdi_gemm_in *right, double beta, void *product, int64_t rsc, int64_t csc) {
    opdi_gemm_job job;
    if (rows <= 0 || count <= 0) { return 0; }
    if (opdi_gemm_small(dtype, rows, count, depth, left, right, beta, product, rsc, csc)) { return 0; }
    memset(&job, 0, sizeof job);
    job.mk = opdi_micro_of(dtype);
    job.dtype = dtype;
    job.size = dtype == OPD_FLOAT32 || dtype == OPD_INT32 ? 4 : 8;
    job.c = (char *)product;
    job.rsc = rsc;
    job.csc = csc;
    if (depth <= 0 || (beta != 0 && beta != 1)) { opdi_gemm_scale(&job, rows, count, beta); }
    if (depth <= 0) { return 0; }
    job.add = beta != 0;
    if (!right->pack && csc != 1 && rsc == 1 && count != 1) {
        int64_t t = rows;                         /* C^T = B^T A^T, so that rows of C are contiguous */
        rows = count;
        count = t;
        job.rsc = csc;
        job.csc = rsc;
        job.a = *right;
        job.b = *left;
        t = job.b.rs;
        job.b.rs = job.b.cs;
        job.b.cs = t;
    } else {
        job.a = *left;
        job.a.rs = left->cs;
        job.a.cs = left->rs;
        job.b = *right;
    }
    if (dtype == OPD_INT32 || dtype == OPD_INT64) { return opdi_gemm_blocked(&job, rows, count, depth); }
    if (rows <= 16 && count <= 16 && depth <= 16 && rows * count * depth <= 256 && !right->pack &&
        left->dtype == dtype && right->dtype == dtype) {
        opdi_gemm_tiny(&job, rows, count, depth);
        return 0;
    }
    int done = opdi_gemv_try(&job, rows, count, depth);
    if (!done) { done = opdi_few_try(&job, rows, count, depth); }
    if (!done) { done = opdi_halves_try(&job, rows, count, depth); }
    if (!done) { done = opdi_cols_try(&job, rows, count, depth); }
    if (done) { return done < 0 ? -1 : 0; }
    return opdi_gemm_general(&job, rows, count, depth);
}
/* opdi_gemm_of in float (size 4) or double (size 8). */
static int opdi_gemm(size_t size, int64_t rows, int64_t count, int64_t depth, const opdi_gemm_in *left,
                     const opdi_gemm_in *right, double beta, void *product, int64_t rsc, int64_t csc) {
    return opdi_gemm_of(size == 4 ? OPD_FLOAT32 : OPD_FLOAT64, rows, count, depth, left, right, beta, product, rsc,
                        csc);
}

static opdi_gemm_in opdi_gemm_in_of(const void *data, int dtype, int64_t rs, int64_t cs) {
    opdi_gemm_in in;
    in.data = data;
    in.dtype = dtype;
    in.rs = rs;
    in.cs = cs;
    in.pack = NULL;
    in.ctx = NULL;
    in.exact = false;
    return in;
}

OPD_UNUSED static int opdi_gemm_f32(int64_t rows, int64_t count, int64_t depth, const float *a, int64_t rsa,
                                    int64_t csa, const float *b, int64_t rsb, int64_t csb, float beta, float *product,
                                    int64_t rsc, int64_t csc) {
    opdi_gemm_in left = opdi_gemm_in_of(a, OPD_FLOAT32, rsa, csa), right = opdi_gemm_in_of(b, OPD_FLOAT32, rsb, csb);
    return opdi_gemm(4, rows, count, depth, &left, &right, (double)beta, product, rsc, csc);
}

OPD_UNUSED static int opdi_gemm_f64(int64_t rows, int64_t count, int64_t depth, const double *a, int64_t rsa,
                                    int64_t csa, const double *b, int64_t rsb, int64_t csb, double beta,
                                    double *product, int64_t rsc, int64_t csc) {
    opdi_gemm_in left = opdi_gemm_in_of(a, OPD_FLOAT64, rsa, csa), right = opdi_gemm_in_of(b, OPD_FLOAT64, rsb, csb);
    return opdi_gemm(8, rows, count, depth, &left, &right, beta, product, rsc, csc);
}
OPDI_LOOPS_END

