#include "kernels.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>codes        products and convolutions of codes of 8 bits
//
//  A quantised tensor has codes: integers of 8 bits, which stand for (code - zero) * scale.  Layers of quantised models
//  multiply codes, add the products exactly as integers, and scale the sums.
//----------------------------------------------------------------------------------------------------------------------

//== codes of 8 bits and floats ========================================================================================

/* Sets out[i] to (codes[i] - zero) * scale. */
OPDI_ALWAYS void opdi_codes_widen_plain_part(const uint8_t *codes, bool minus, int64_t count, float zero, float scale,
                                             float *out) {
    for (int64_t i = 0; i < count; i++) { out[i] = ((float)(minus ? (int8_t)codes[i] : codes[i]) - zero) * scale; }
}
#if defined(OPDI_X86)
/* The same with vectors of type V of int32 and F of floats, from bytes in vectors of type B. */
#define OPDI_CODES_PART(level, attribute, V, F, B) \
    attribute OPDI_ALWAYS F opdi_codes_floats_##level(const uint8_t *codes, bool minus) { \
        V whole; \
        F number; \
        if (minus) { __asm__("vpmovsxbd {%1, %0|%0, %1}" : "=v"(whole) : "m"(*(const B *)codes)); } \
        else { __asm__("vpmovzxbd {%1, %0|%0, %1}" : "=v"(whole) : "m"(*(const B *)codes)); } \
        OPDI_ASM_FLOATS(number, whole); \
        return number; \
    } \
    attribute OPDI_ALWAYS void opdi_codes_widen_##level##_part(const uint8_t *codes, bool minus, int64_t count, \
                                                               float zero, float scale, float *out) { \
        int64_t i = 0; \
        for (const int64_t lanes = (int64_t)sizeof(F) / 4; i + lanes <= count; i += lanes) { \
            *(F *)(void *)(out + i) = (opdi_codes_floats_##level(codes + i, minus) - zero) * scale; \
        } \
        opdi_codes_widen_plain_part(codes + i, minus, count - i, zero, scale, out + i); \
    }
typedef uint8_t opdi_v8b __attribute__((vector_size(8), aligned(1), may_alias));
OPDI_CODES_PART(avx2, OPDI_AVX2, opdi_v8u, opdi_v8f, opdi_v8b)
OPDI_CODES_PART(avx512, OPDI_AVX512, opdi_v16u, opdi_v16f, opdi_v16b)
#undef OPDI_CODES_PART
#endif
/* Sets out[i] to the code of x[i]: 0 if x[i] is NaN. */
OPDI_ALWAYS void opdi_codes_make_here(const opdi_code_job *job, const float *x, int64_t count, float inverse,
                                      float zero, uint8_t *out) {
    const float low = job->low, high = job->high, most = 1048576, before = job->late ? zero : 0;
    const float after = job->late ? 0 : zero;
    float v[32];
    int32_t whole[32];
    for (int64_t i = 0; i < count; i += 32) {
        const int64_t some = OPDI_MIN((int64_t)32, count - i);
        if (some == 32) { for (int lane = 0; lane < 32; lane++) { v[lane] = x[i + lane]; } }
        else {
            memset(v, 0, sizeof v);
            memcpy(v, x + i, (size_t)some * sizeof *v);
        }
        for (int lane = 0; lane < 32; lane++) {
            float number = v[lane] * inverse + before;
            number = number > most ? most : number;
            number = number < -most ? -most : number;
            number = OPDI_ROUNDED(float, number + OPDI_MAGIC) - OPDI_MAGIC + after;
            number = number > high ? high : number;
            number = number < low ? low : number;
            v[lane] = number == number ? number : 0;
        }
        for (int lane = 0; lane < 32; lane++) { whole[lane] = (int32_t)v[lane]; }
        if (some == 32) { for (int lane = 0; lane < 32; lane++) { out[i + lane] = (uint8_t)whole[lane]; } }
        else { for (int lane = 0; lane < some; lane++) { out[i + lane] = (uint8_t)whole[lane]; } }
    }
}
#if defined(OPDI_X86)
/* OPDI_ASM_LIMIT replaces each x by `limit` if it is below ("max") or above it ("min"); NaN stays. */
#define OPDI_ASM_LIMIT(s, x, limit) __asm__("v" s "ps {%0, %1, %0|%0, %1, %0}" : "+v"(x) : "v"(limit))
/* Returns the codes of a vector of floats as int32: see opdi_codes_make_here. */
#define OPDI_CODES_WHOLE(level, attribute, V, F) \
    attribute OPDI_ALWAYS V opdi_codes_whole_##level(const opdi_code_job *job, const float *x, float inverse, \
                                                     float before, float after) { \
        const F none = {0}, most = none + 1048576.0f, low = none + job->low, high = none + job->high; \
        F number = *(const F *)(const void *)x * inverse + before; \
        V whole; \
        OPDI_ASM_LIMIT("min", number, most); OPDI_ASM_LIMIT("max", number, -most); \
        number = number + (float)OPDI_MAGIC - (float)OPDI_MAGIC + after; \
        OPDI_ASM_LIMIT("min", number, high); OPDI_ASM_LIMIT("max", number, low); \
        __asm__("vcvtps2dq {%1, %0|%0, %1}" : "=v"(whole) : "v"(number)); return whole & (V)(number == number); \
    }
OPDI_CODES_WHOLE(avx2, OPDI_AVX2, opdi_v8u, opdi_v8f)
OPDI_CODES_WHOLE(avx512, OPDI_AVX512, opdi_v16u, opdi_v16f)
#undef OPDI_CODES_WHOLE
/* Makes 32 codes. */
OPDI_AVX2 OPDI_ALWAYS void opdi_codes_make32_avx2(const opdi_code_job *job, const float *x, float inverse, float before,
                                                  float after, uint8_t *out) {
    static const uint32_t order[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    opdi_v8u w[4];
    for (int i = 0; i < 4; i++) { w[i] = opdi_codes_whole_avx2(job, x + 8 * i, inverse, before, after) & 255; }
    __asm__("vpackusdw {%1, %0, %0|%0, %0, %1}" : "+x"(w[0]) : "x"(w[1]));
    __asm__("vpackusdw {%1, %0, %0|%0, %0, %1}" : "+x"(w[2]) : "x"(w[3]));
    __asm__("vpackuswb {%1, %0, %0|%0, %0, %1}" : "+x"(w[0]) : "x"(w[2]));
    __asm__("vpermd {%1, %2, %0|%0, %2, %1}" : "=x"(w[1]) : "x"(w[0]), "x"(*(const opdi_v8u *)order));
    memcpy(out, &w[1], 32);
}
OPDI_AVX512 OPDI_ALWAYS void opdi_codes_make32_avx512(const opdi_code_job *job, const float *x, float inverse,
                                                      float before, float after, uint8_t *out) {
    for (int i = 0; i < 32; i += 16) {
        const opdi_v16u whole = opdi_codes_whole_avx512(job, x + i, inverse, before, after);
        __asm__("vpmovdb {%1, %0|%0, %1}" : "=m"(*(opdi_v16b *)(void *)(out + i)) : "v"(whole));
    }
}
#endif
#define OPDI_CODES_MAKE(level, attribute, vectors) \
    attribute static void opdi_codes_make_##level(const opdi_code_job *job, const float *x, int64_t count, \
                                                  float inverse, float zero, uint8_t *out) { \
        const float before = job->late ? zero : 0, after = job->late ? 0 : zero; \
        int64_t i = 0; \
        for (; i + 32 <= count; i += 32) { vectors(job, x + i, inverse, before, after, out + i); } \
        opdi_codes_make_here(job, x + i, count - i, inverse, zero, out + i); \
    }
#if defined(OPDI_X86)
OPDI_CODES_MAKE(avx2, OPDI_AVX2, opdi_codes_make32_avx2)
OPDI_CODES_MAKE(avx512, OPDI_AVX512, opdi_codes_make32_avx512)
#endif
#undef OPDI_CODES_MAKE
static void opdi_codes_make_plain(const opdi_code_job *job, const float *x, int64_t count, float inverse, float zero,
                                  uint8_t *out) {
    opdi_codes_make_here(job, x, count, inverse, zero, out);
}
/* Computes what follows a product for `rows` rows of `count` columns, from column j on, without codes: v [rows, 32]. */
OPDI_ALWAYS void opdi_byte_ends_here(const opdi_byte_ends *ends, const int32_t *sums, int64_t ld, int64_t rows,
                                     int64_t j, int64_t count, const uint8_t *other, int64_t other_step, float *v) {
    const float low = ends->low, high = ends->high, less = ends->other_zero, more = ends->other_scale;
    const uint8_t flip = ends->other_minus ? 0x80 : 0;
    const float half = flip ? 128 : 0;
    float scales[32] = {0}, bias[32] = {0}, t[32];
    int32_t all[32] = {0}, whole[32] = {0};
    uint8_t bytes[32] = {0};
    for (int64_t i = 0; i < count; i++) {
        scales[i] = ends->scale * ends->scales[j + i];
        all[i] = ends->zero * ends->all[j + i];
        bias[i] = ends->bias ? ends->bias[j + i] : 0;
    }
    for (int64_t row = 0; row < rows; row++, sums += ld, v += 32) {
        memcpy(whole, sums, (size_t)count * sizeof *sums);
        for (int i = 0; i < 32; i++) { t[i] = (float)(whole[i] - all[i]) * scales[i]; }
        for (int i = 0; i < 32; i++) { t[i] += bias[i]; }
        if (other) {
            memcpy(bytes, other + row * other_step, (size_t)count);
            for (int i = 0; i < 32; i++) { t[i] += ((float)(uint8_t)(bytes[i] ^ flip) - half - less) * more; }
        }
        if (ends->limited) {
            for (int i = 0; i < 32; i++) { t[i] = t[i] < low ? low : t[i]; }
            for (int i = 0; i < 32; i++) { t[i] = t[i] > high ? high : t[i]; }
        }
        for (int i = 0; i < 32; i++) { v[i] = t[i]; }
    }
}
static void opdi_codes_ends_plain(const opdi_byte_ends *ends, const int32_t *sums, int64_t ld, int64_t rows, int64_t j,
                                  int64_t count, const uint8_t *other, int64_t other_step, float *v) {
    opdi_byte_ends_here(ends, sums, ld, rows, j, count, other, other_step, v);
}
#if defined(OPDI_X86)
/* The same for as many columns as a vector has, and for `count` columns. */
#define OPDI_BYTE_ENDS_COLUMNS(level, attribute, V, F) \
    attribute OPDI_ALWAYS F opdi_byte_ends_of_##level(const opdi_byte_ends *ends, F number, const uint8_t *other) { \
        const F none = {0}, low = none + ends->low, high = none + ends->high; \
        if (other) { number += (opdi_codes_floats_##level(other, ends->other_minus) - ends->other_zero) * \
                               ends->other_scale; } \
        if (ends->limited) { OPDI_ASM_LIMIT("max", number, low); OPDI_ASM_LIMIT("min", number, high); } \
        return number; \
    } \
    attribute OPDI_ALWAYS void opdi_byte_ends_column_##level( \
        const opdi_byte_ends *ends, const int32_t *sums, int64_t ld, int64_t rows, int64_t j, const uint8_t *other, \
        int64_t other_step, float *v) { \
        const V all = *(const V *)(const void *)(ends->all + j) * (uint32_t)ends->zero; \
        const F none = {0}, scale = *(const F *)(const void *)(ends->scales + j) * ends->scale; \
        const F bias = ends->bias ? *(const F *)(const void *)(ends->bias + j) : none; \
        for (int64_t row = 0; row < rows; row++, sums += ld, v += 32) { \
            const V whole = *(const V *)(const void *)sums - all; F number; OPDI_ASM_FLOATS(number, whole); \
            number = opdi_byte_ends_of_##level(ends, number * scale + bias, other ? other + row * other_step : NULL); \
            *(F *)(void *)v = number; \
        } \
    }
#define OPDI_BYTE_ENDS_AT(level, attribute, F) \
    attribute static void opdi_codes_ends_##level( \
        const opdi_byte_ends *ends, const int32_t *sums, int64_t ld, int64_t rows, int64_t j, int64_t count, \
        const uint8_t *other, int64_t step, float *v) { \
        const int64_t lanes = (int64_t)sizeof(F) / 4; \
        if (count % lanes) { opdi_byte_ends_here(ends, sums, ld, rows, j, count, other, step, v); return; } \
        if (count < 32) { memset(v, 0, (size_t)rows * 32 * sizeof *v); } \
        for (int64_t i = 0; i < count; i += lanes) { opdi_byte_ends_column_##level( \
            ends, sums + i, ld, rows, j + i, other ? other + i : NULL, step, v + i); } \
    }
OPDI_BYTE_ENDS_COLUMNS(avx2, OPDI_AVX2, opdi_v8u, opdi_v8f)
OPDI_BYTE_ENDS_COLUMNS(avx512, OPDI_AVX512, opdi_v16u, opdi_v16f)
OPDI_BYTE_ENDS_AT(avx2, OPDI_AVX2, opdi_v8f)
OPDI_BYTE_ENDS_AT(avx512, OPDI_AVX512, opdi_v16f)
#undef OPDI_BYTE_ENDS_COLUMNS
#undef OPDI_BYTE_ENDS_AT
#endif
/* Sets to[i] to the larger one of to[i] and from[i].  flip: 0x80 if the codes are int8. */
OPDI_ALWAYS void opdi_codes_max_here(const uint8_t *from, uint8_t flip, int64_t count, uint8_t *to) {
    uint8_t a[32] = {0}, b[32] = {0};
    for (int64_t i = 0; i < count; i += 32) {
        const int64_t some = OPDI_MIN((int64_t)32, count - i);
        if (some == 32) {
            memcpy(a, from + i, 32);
            memcpy(b, to + i, 32);
        } else {
            memcpy(a, from + i, (size_t)some);
            memcpy(b, to + i, (size_t)some);
        }
        for (int lane = 0; lane < 32; lane++) {
            const uint8_t x = a[lane] ^ flip, y = b[lane] ^ flip;
            b[lane] = (uint8_t)((x > y ? x : y) ^ flip);
        }
        memcpy(to + i, b, (size_t)some);
    }
}
/* For each level, a function that converts `count` elements of row `row`, from element k on, to floats, one that makes
   codes, and one for the larger ones of codes. */
#define OPDI_CODES_AT(level, attribute) \
    attribute static void opdi_codes_widen_##level(const opdi_coded_rows *rows, int64_t row, int64_t k, int64_t count, \
                                                   float *out) { \
        const uint8_t *const codes = rows->codes + row * rows->stride + k; \
        for (int64_t done = 0, at = row * rows->groups + k / rows->group; done < count; at++) { \
            const int64_t some = OPDI_MIN(count - done, rows->group - (k + done) % rows->group); \
            opdi_codes_widen_##level##_part(codes + done, rows->minus, some, rows->zeros ? rows->zeros[at] : 0, \
                                            rows->scales ? rows->scales[at] : 1, out + done); \
            done += some; \
        } \
    } \
    attribute static void opdi_codes_max_##level(const uint8_t *from, uint8_t flip, int64_t count, uint8_t *to) { \
        opdi_codes_max_here(from, flip, count, to); \
    }
static void opdi_codes_panel_plain(const opdi_word32 *words, bool minus, int64_t count, int64_t side,
                                   const float *scales, float *out) {
    for (int64_t k = 0; k < 4 * count; k++) {
        const uint8_t *const codes = (const uint8_t *)(const void *)(words + k / 4 * side) + k % 4;
        for (int64_t i = 0; i < side; i++) {
            out[k * side + i] = (float)(minus ? (int8_t)codes[4 * i] : codes[4 * i]) * scales[i];
        }
    }
}
#if defined(OPDI_X86)
/* The same with vectors of uint32, int32 and floats. */
#define OPDI_CODES_PANEL(level, attribute, V, S, F) \
    attribute static void opdi_codes_panel_##level(const opdi_word32 *words, bool minus, int64_t count, int64_t side, \
                                                   const float *scales, float *out) { \
        for (int64_t k = 0; k < count; k++, words += side, out += 4 * side) { \
            for (int64_t i = 0; i < side; i += (int64_t)sizeof(F) / 4) { \
                const V word = *(const V *)(const void *)(words + i); \
                for (int byte = 0; byte < 4; byte++) { \
                    const V high = word << (24 - 8 * byte), whole = minus ? (V)((S)high >> 24) : high >> 24; \
                    F number; OPDI_ASM_FLOATS(number, whole); \
                    *(F *)(void *)(out + byte * side + i) = number * *(const F *)(const void *)(scales + i); \
                } \
            } \
        } \
    }
OPDI_CODES_PANEL(avx2, OPDI_AVX2, opdi_v8u, opdi_v8i, opdi_v8f)
OPDI_CODES_PANEL(avx512, OPDI_AVX512, opdi_v16u, opdi_v16i, opdi_v16f)
#undef OPDI_CODES_PANEL
#endif
OPDI_CODES_AT(plain, )
#if defined(OPDI_X86)
OPDI_CODES_AT(avx2, OPDI_AVX2)
OPDI_CODES_AT(avx512, OPDI_AVX512)
#define OPDI_CODES(name) (opdi_cpu_level() == 0 ? opdi_codes_##name##_plain : opdi_cpu_level() == 1 \
                          ? opdi_codes_##name##_avx2 : opdi_codes_##name##_avx512)
#else
#define OPDI_CODES(name) opdi_codes_##name##_plain
#endif
#undef OPDI_CODES_AT

/* An opdi_block_floats_fn for opdi_coded_rows. */
static void opdi_coded_floats(const opdi_block_form *form, const uint8_t *at, int64_t count, float *out) {
    const opdi_coded_rows *const rows = (const opdi_coded_rows *)(const void *)form;
    const int64_t place = at - rows->codes;
    OPDI_CODES(widen)(rows, place / rows->stride, place % rows->stride, count, out);
}
/* Sets out[i] to (codes[i] - zero) * scale. */
OPDI_INTERNAL void opdi_codes_floats(const uint8_t *codes, int64_t count, float zero, float scale, float *out) {
    opdi_coded_rows rows;
    rows.codes = codes;
    rows.minus = false;
    rows.stride = rows.group = count;
    rows.groups = 1;
    rows.scales = &scale;
    rows.zeros = &zero;
    OPDI_CODES(widen)(&rows, 0, 0, count, out);
}
/* Converts the codes of `side` rows to floats: out [4 * count, side].  Word [k, i] has four codes of row i, which has
   the scale scales[i].  `side` is a multiple of 16. */
OPDI_INTERNAL void opdi_codes_panel(const opdi_word32 *words, bool minus, int64_t count, int64_t side,
                                    const float *scales, float *out) {
    OPDI_CODES(panel)(words, minus, count, side, scales, out);
}
/* Prepares rows whose members behind `form` are set for products. */
OPDI_INTERNAL void opdi_coded_rows_begin(opdi_coded_rows *rows) {
    memset(&rows->form, 0, sizeof rows->form);
    rows->form.dtype = rows->minus ? OPD_INT8 : OPD_UINT8;
    rows->form.elements = rows->form.bytes = 1;
    rows->form.floats = opdi_coded_floats;
}
/* A conversion of all elements of rows to floats. */
typedef struct opdi_codes_widening { const opdi_coded_rows *rows; float *out; } opdi_codes_widening;
static void opdi_codes_widen_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_codes_widening *const all = (const opdi_codes_widening *)ctx;
    for (int64_t row = begin; row < end; row++) {
        OPDI_CODES(widen)(all->rows, row, 0, all->rows->stride, all->out + row * all->rows->stride);
    }
}
/* Converts `count` rows to floats. */
OPDI_INTERNAL void opdi_codes_widen(const opdi_coded_rows *rows, int64_t count, float *out) {
    opdi_codes_widening all;
    all.rows = rows;
    all.out = out;
    opdi_parallel_for(count, OPDI_MAX((int64_t)1, 65536 / OPDI_MAX(rows->stride, (int64_t)1)), opdi_codes_widen_range,
                      &all);
}
enum { OPDI_CODES_AT_ONCE = 4096 };
static void opdi_codes_make_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_code_job *const job = (const opdi_code_job *)ctx;
    const int64_t parts = (job->row + OPDI_CODES_AT_ONCE - 1) / OPDI_CODES_AT_ONCE;
    for (int64_t at = begin; at < end; at++) {
        const int64_t row = at / parts, first = at % parts * OPDI_CODES_AT_ONCE;
        const int64_t count = OPDI_MIN((int64_t)OPDI_CODES_AT_ONCE, job->row - first), place = row * job->row + first;
        OPDI_CODES(make)(job, job->x + place, count, job->inverse[row * job->step], job->zero[row * job->step],
                         job->codes + place);
    }
}
/* Makes codes of `rows` rows of floats. */
OPDI_INTERNAL void opdi_codes_make(const opdi_code_job *job, int64_t rows) {
    if (!job->row) { return; }
    const int64_t parts = (job->row + OPDI_CODES_AT_ONCE - 1) / OPDI_CODES_AT_ONCE;
    opdi_parallel_for(rows * parts, OPDI_MAX((int64_t)1, 32768 / OPDI_MIN(job->row, (int64_t)OPDI_CODES_AT_ONCE)),
                      opdi_codes_make_range, (void *)(uintptr_t)job);
}

/* Computes what follows a product for `rows` rows of `count` columns, at most 32 each, from column j on.  `sums` has
   rows of ld elements.  Writes floats to v [rows, 32], or codes to out [rows, 32]. */
OPD_UNUSED OPDI_INTERNAL void opdi_byte_ends_tile(
    const opdi_byte_ends *ends, const int32_t *sums, int64_t ld, int64_t rows, int64_t j, int64_t count,
    const uint8_t *other, int64_t other_step, float *v, uint8_t *out) {
    opdi_code_job job;
    OPDI_CODES(ends)(ends, sums, ld, rows, j, count, other, other_step, v);
    if (ends->apply) { ends->apply(rows * OPDI_BYTE_SIDE, v, v); }
    if (!ends->codes) { return; }
    memset(&job, 0, sizeof job);
    job.low = ends->least;
    job.high = ends->most;
    OPDI_CODES(make)(&job, v, rows * OPDI_BYTE_SIDE, ends->inverse, ends->code_zero, out);
}

/* A max_pool2d of `planes` images of codes with their channels last. */
static void opdi_codes_pool_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_code_pool *const pool = (const opdi_code_pool *)ctx;
    const int64_t c = pool->channels;
    for (int64_t row = begin; row < end; row++) {
        const uint8_t *const image = pool->x + row / pool->out[0] * pool->in[0] * pool->in[1] * c;
        const int64_t y = row % pool->out[0] * pool->stride[0] - pool->padding[0];
        for (int64_t at = 0; at < pool->out[1]; at++) {
            uint8_t *const to = pool->y + (row * pool->out[1] + at) * c;
            const int64_t x = at * pool->stride[1] - pool->padding[1];
            memset(to, pool->flip, (size_t)c);    /* the least code */
            for (int64_t i = 0; i < pool->kernel[0]; i++) {
                const int64_t line = y + i * pool->dilation[0];
                for (int64_t k = 0; k < pool->kernel[1] && line >= 0 && line < pool->in[0]; k++) {
                    const int64_t column = x + k * pool->dilation[1];
                    if (column < 0 || column >= pool->in[1]) { continue; }
                    OPDI_CODES(max)(image + (line * pool->in[1] + column) * c, pool->flip, c, to);
                }
            }
        }
    }
}
OPD_UNUSED OPDI_INTERNAL void opdi_codes_pool(const opdi_code_pool *pool) {
    opdi_parallel_for(pool->images * pool->out[0], OPDI_MAX((int64_t)1, 32768 / (pool->out[1] * pool->channels)),
                      opdi_codes_pool_range, (void *)(uintptr_t)pool);
}

//== products of 8-bit integers with few rows ==========================================================================
//
//  Sums of products of uint8 and int8, exact: each row of x with each row of w, which is read in place.  A product with
//  many rows is packed first (see opdi_gemm_bytes_try in >>words).

#if defined(OPDI_X86)
/* Vectors at any address. */
typedef uint32_t opdi_v8m __attribute__((vector_size(32), aligned(1), may_alias));
typedef uint32_t opdi_v16m __attribute__((vector_size(64), aligned(1), may_alias));
#endif

/* Returns the product of `count` elements. */
static uint32_t opdi_byte_dot(const uint8_t *x, const int8_t *w, int64_t count) {
    uint32_t sum = 0;
    int64_t k = 0;
    for (; k + 16 <= count; k += 16) {
        int32_t lanes[16], part = 0;
        for (int lane = 0; lane < 16; lane++) { lanes[lane] = x[k + lane] * w[k + lane]; }
        for (int lane = 0; lane < 16; lane++) { part += lanes[lane]; }
        sum += (uint32_t)part;
    }
    for (; k < count; k++) { sum += (uint32_t)(x[k] * w[k]); }
    return sum;
}
/* Computes the products of two rows of x and four rows of w: sums[4 i + j]. */
typedef void opdi_byte_cell_fn(const uint8_t *const *x, const int8_t *const *w, int64_t count, uint32_t *sums);
static void opdi_byte_cell_plain(const uint8_t *const *x, const int8_t *const *w, int64_t count, uint32_t *sums) {
    for (int at = 0; at < 8; at++) { sums[at] = opdi_byte_dot(x[at / 4], w[at % 4], count); }
}
#if defined(OPDI_X86)
#define OPDI_BYTE_CELLS(M) M(0, 0) M(0, 1) M(0, 2) M(0, 3) M(1, 0) M(1, 1) M(1, 2) M(1, 3)
#define OPDI_BYTE_ZERO(i, j) c##i##j = {0},
#define OPDI_BYTE_END(i, j) \
    for (int lane = 0; lane < (int)(sizeof c##i##j / 4); lane++) { sums[4 * (i) + (j)] += c##i##j[lane]; } \
    sums[4 * (i) + (j)] += opdi_byte_dot(x[i] + k, w[j] + k, count - k);
OPDI_AVX2 static void opdi_byte_cell_avx2(const uint8_t *const *x, const int8_t *const *w, int64_t count,
                                          uint32_t *sums) {
    opdi_v8u OPDI_BYTE_CELLS(OPDI_BYTE_ZERO) part;
    opdi_v16h a, b, h;
    int64_t k = 0;
    for (; k + 16 <= count; k += 16) {
        OPDI_ASM_FROM_UINT8(a, x[0] + k);
        OPDI_ASM_FROM_UINT8(b, x[1] + k);
#define OPDI_BYTE_COLUMN(j) { \
            OPDI_ASM_FROM_INT8(h, w[j] + k); \
            OPDI_ASM_WHOLES(part, a, h); \
            c0##j += part; \
            OPDI_ASM_WHOLES(part, b, h); \
            c1##j += part; \
        }
        OPDI_BYTE_COLUMN(0) OPDI_BYTE_COLUMN(1) OPDI_BYTE_COLUMN(2) OPDI_BYTE_COLUMN(3)
#undef OPDI_BYTE_COLUMN
    }
    memset(sums, 0, 8 * sizeof *sums);
    OPDI_BYTE_CELLS(OPDI_BYTE_END)
}
#if defined(OPDI_WORDS)
OPDI_AVX512 static void opdi_byte_cell_quads(const uint8_t *const *x, const int8_t *const *w, int64_t count,
                                             uint32_t *sums) {
    opdi_v16u OPDI_BYTE_CELLS(OPDI_BYTE_ZERO) a, b, h;
    int64_t k = 0;
    for (; k + 64 <= count; k += 64) {
        a = (opdi_v16u)*(const opdi_v16m *)(const void *)(x[0] + k);
        b = (opdi_v16u)*(const opdi_v16m *)(const void *)(x[1] + k);
#define OPDI_BYTE_COLUMN(j) { \
            h = (opdi_v16u)*(const opdi_v16m *)(const void *)(w[j] + k); \
            OPDI_ASM_QUADS(c0##j, a, h); \
            OPDI_ASM_QUADS(c1##j, b, h); \
        }
        OPDI_BYTE_COLUMN(0) OPDI_BYTE_COLUMN(1) OPDI_BYTE_COLUMN(2) OPDI_BYTE_COLUMN(3)
#undef OPDI_BYTE_COLUMN
    }
    memset(sums, 0, 8 * sizeof *sums);
    OPDI_BYTE_CELLS(OPDI_BYTE_END)
}
#endif
#if defined(OPDI_FOURS)
OPDI_FOURS static void opdi_byte_cell_fours(const uint8_t *const *x, const int8_t *const *w, int64_t count,
                                            uint32_t *sums) {
    opdi_v8u OPDI_BYTE_CELLS(OPDI_BYTE_ZERO) a, b, h;
    int64_t k = 0;
    for (; k + 32 <= count; k += 32) {
        a = (opdi_v8u)*(const opdi_v8m *)(const void *)(x[0] + k);
        b = (opdi_v8u)*(const opdi_v8m *)(const void *)(x[1] + k);
#define OPDI_BYTE_COLUMN(j) { \
            h = (opdi_v8u)*(const opdi_v8m *)(const void *)(w[j] + k); \
            OPDI_ASM_FOURS(c0##j, a, h); \
            OPDI_ASM_FOURS(c1##j, b, h); \
        }
        OPDI_BYTE_COLUMN(0) OPDI_BYTE_COLUMN(1) OPDI_BYTE_COLUMN(2) OPDI_BYTE_COLUMN(3)
#undef OPDI_BYTE_COLUMN
    }
    memset(sums, 0, 8 * sizeof *sums);
    OPDI_BYTE_CELLS(OPDI_BYTE_END)
}
#endif
#undef OPDI_BYTE_CELLS
#undef OPDI_BYTE_ZERO
#undef OPDI_BYTE_END
#endif

static opdi_byte_cell_fn *opdi_byte_cell_of(void) {
#if defined(OPDI_FOURS)
    if (opdi_cpu_fours()) { return opdi_byte_cell_fours; }
#endif
#if defined(OPDI_WORDS)
    if (opdi_cpu_words() & OPDI_HAS_QUADS) { return opdi_byte_cell_quads; }
#endif
#if defined(OPDI_X86)
    if (opdi_cpu_level() > 0) { return opdi_byte_cell_avx2; }
#endif
    return opdi_byte_cell_plain;
}
/* An opdi_range_fn: computes the columns of the result for the groups begin .. end - 1 of four rows of w. */
static void opdi_byte_columns(void *ctx, int64_t begin, int64_t end) {
    const opdi_byte_job *const job = (const opdi_byte_job *)ctx;
    opdi_byte_cell_fn *const cell = opdi_byte_cell_of();
    for (int64_t group = begin; group < end; group++) {
        const int64_t j = 4 * group, count = OPDI_MIN((int64_t)4, job->n - j);
        const int8_t *w[4];
        for (int64_t at = 0; at < 4; at++) { w[at] = job->w + (j + OPDI_MIN(at, count - 1)) * job->w_stride; }
        for (int64_t i = 0; i < job->m; i += 2) {
            const bool both = i + 1 < job->m;
            const uint8_t *const x[2] = {job->x + i * job->k, job->x + (both ? i + 1 : i) * job->k};
            uint32_t sums[8];
            cell(x, w, job->k, sums);
            memcpy(job->y + i * job->n + j, sums, (size_t)count * 4);
            if (both) { memcpy(job->y + (i + 1) * job->n + j, sums + 4, (size_t)count * 4); }
        }
    }
}
//== products of 8-bit integers with many rows, with AVX2 ==============================================================
//
//  AVX2 cannot add products of bytes exactly (AVX-VNNI can).  So both operands become int16: x once, and w 16 rows at a
//  time.  A word of such a panel has two elements of a row of w, and the words of all rows are side by side.

#if defined(OPDI_X86)
enum { OPDI_SHORT_PANEL = 16, OPDI_SHORT_TILE = 4, OPDI_SHORT_DEPTH = 256, OPDI_SHORT_FEW = 6 };
/* A product while it is computed.  x has the rows of job->x as int16, `wide` elements apart; NULL: AVX-VNNI multiplies
   bytes. */
typedef struct opdi_short_product { const opdi_byte_job *job; const int16_t *x; int64_t wide; } opdi_short_product;

/* Widens `count` bytes, which have signs if `minus` is true.  If `count` is odd, a zero follows. */
OPDI_AVX2 OPDI_ALWAYS void opdi_short_widen(const uint8_t *from, bool minus, int64_t count, int16_t *to) {
    int64_t i = 0;
    for (; i + 16 <= count; i += 16) {
        opdi_v16h h;
        if (minus) { OPDI_ASM_FROM_INT8(h, from + i); }
        else { OPDI_ASM_FROM_UINT8(h, from + i); }
        memcpy(to + i, &h, sizeof h);
    }
    for (; i < count; i++) { to[i] = (int16_t)(minus ? (int8_t)from[i] : from[i]); }
    if (count % 2) { to[count] = 0; }
}
#define OPDI_SHORT_ROWS(M) M(0) M(1) M(2) M(3)
#define OPDI_SHORT_BEGIN(i) const opdi_word32 *const p##i = x[i]; opdi_v8u c##i = {0}, d##i = {0};
#define OPDI_SHORT_STEP(i) \
    if ((i) < rows) { \
        OPDI_ASM_SPLAT("s", a, p##i + word); \
        OPDI_ASM_WHOLES(part, a, b0); \
        c##i += part; \
        OPDI_ASM_WHOLES(part, a, b1); \
        d##i += part; \
    }
#define OPDI_SHORT_END(i) sums[2 * i] = c##i; sums[2 * i + 1] = d##i;
/* Computes the products of four rows of x, or of `rows` of them, and a panel of `words` words: sums [4, 16]. */
OPDI_AVX2 OPDI_ALWAYS void opdi_short_tile(const opdi_word32 *const *x, const opdi_word32 *panel, int64_t words,
                                           int rows, opdi_v8u *sums) {
    OPDI_SHORT_ROWS(OPDI_SHORT_BEGIN)
    for (int64_t word = 0; word < words; word++, panel += OPDI_SHORT_PANEL) {
        const opdi_v8u b0 = *(const opdi_v8u *)(const void *)panel, b1 = *(const opdi_v8u *)(const void *)(panel + 8);
        opdi_v8u a, part;
        OPDI_SHORT_ROWS(OPDI_SHORT_STEP)
    }
    OPDI_SHORT_ROWS(OPDI_SHORT_END)
}
#undef OPDI_SHORT_ROWS
#undef OPDI_SHORT_BEGIN
#undef OPDI_SHORT_STEP
#undef OPDI_SHORT_END
/* Stores the sums [4, 16] of rows of y from row i on, and of `count` columns from column j on, or adds them to y. */
OPDI_AVX2 OPDI_ALWAYS void opdi_short_store(const opdi_byte_job *job, const uint32_t *sums, int64_t i, int64_t j,
                                            int64_t count, bool add) {
    uint32_t *y = (uint32_t *)job->y + i * job->n + j;
    for (int64_t row = 0; row < OPDI_MIN((int64_t)OPDI_SHORT_TILE, job->m - i); row++, y += job->n) {
        const uint32_t *const sum = sums + row * OPDI_SHORT_PANEL;
        if (!add) { memcpy(y, sum, (size_t)count * sizeof *y); }
        else { for (int64_t column = 0; column < count; column++) { y[column] += sum[column]; } }
    }
}
/* Adds the products of all rows of x and `count` rows of w, from row j on, to y, or sets y to them if k is 0.  The
   products have `depth` elements, from element k on. */
OPDI_AVX2 static void opdi_short_tiles(const opdi_short_product *all, int64_t j, int64_t count, int64_t k,
                                       int64_t depth) {
    const opdi_byte_job *const job = all->job;
    int16_t rows[OPDI_SHORT_PANEL * OPDI_SHORT_DEPTH] __attribute__((aligned(32)));
    opdi_word32 panel[OPDI_SHORT_PANEL * OPDI_SHORT_DEPTH / 2] __attribute__((aligned(32)));
    const int64_t words = (depth + 1) / 2;
    for (int64_t row = 0; row < OPDI_SHORT_PANEL; row++) {       /* surplus rows repeat the last one */
        opdi_short_widen((const uint8_t *)job->w + (j + OPDI_MIN(row, count - 1)) * job->w_stride + k, true, depth,
                         rows + row * OPDI_SHORT_DEPTH);
    }
    opdi_pack_transposed((const opdi_word32 *)(const void *)rows, OPDI_SHORT_DEPTH / 2, words, OPDI_SHORT_PANEL,
                         OPDI_SHORT_PANEL, panel);
    for (int64_t i = 0; i < job->m; i += OPDI_SHORT_TILE) {
        const opdi_word32 *x[OPDI_SHORT_TILE];
        opdi_v8u tile[2 * OPDI_SHORT_TILE];
        uint32_t sums[OPDI_SHORT_TILE * OPDI_SHORT_PANEL];
        for (int64_t row = 0; row < OPDI_SHORT_TILE; row++) {
            x[row] = (const opdi_word32 *)(const void *)(all->x + OPDI_MIN(i + row, job->m - 1) * all->wide + k);
        }
        if (i + 1 == job->m) { opdi_short_tile(x, panel, words, 1, tile); }     /* often the row of ones */
        else { opdi_short_tile(x, panel, words, OPDI_SHORT_TILE, tile); }
        memcpy(sums, tile, sizeof sums);
        opdi_short_store(job, sums, i, j, count, k > 0);
    }
}
#if defined(OPDI_FOURS)
/* Does the work of opdi_short_tiles with AVX-VNNI, which multiplies bytes: x is read in place. */
OPDI_FOURS static void opdi_four_tiles(const opdi_byte_job *job, int64_t j, int64_t count, int64_t k, int64_t depth) {
    opdi_word32 rows[OPDI_SHORT_PANEL * OPDI_SHORT_DEPTH / 2], panel[OPDI_SHORT_PANEL * OPDI_SHORT_DEPTH / 2]
        __attribute__((aligned(32)));
    const int64_t words = depth / 4, rest = depth % 4;
    for (int64_t row = 0; row < OPDI_SHORT_PANEL; row++) {       /* surplus rows repeat the last one */
        memcpy(rows + row * OPDI_SHORT_DEPTH / 2, job->w + (j + OPDI_MIN(row, count - 1)) * job->w_stride + k,
               (size_t)(4 * words));
    }
    opdi_pack_transposed(rows, OPDI_SHORT_DEPTH / 2, words, OPDI_SHORT_PANEL, OPDI_SHORT_PANEL, panel);
    for (int64_t i = 0; i < job->m; i += OPDI_SHORT_TILE) {
        const void *x[OPDI_SHORT_TILE];
        uint32_t sums[OPDI_SHORT_TILE * OPDI_SHORT_PANEL] __attribute__((aligned(32)));
        for (int64_t row = 0; row < OPDI_SHORT_TILE; row++) {
            x[row] = job->x + OPDI_MIN(i + row, job->m - 1) * job->k + k;
        }
        opdi_micro_fours(words, x, panel, OPDI_SHORT_PANEL, sums, OPDI_SHORT_PANEL, false);
        for (int64_t at = 0; rest && at < OPDI_SHORT_TILE * count; at++) {
            const int64_t row = at / count, column = at % count;
            sums[row * OPDI_SHORT_PANEL + column] += opdi_byte_dot((const uint8_t *)x[row] + 4 * words,
                job->w + (j + column) * job->w_stride + k + 4 * words, rest);
        }
        opdi_short_store(job, sums, i, j, count, k > 0);
    }
}
#endif
/* An opdi_range_fn: computes the columns of y for the panels begin .. end - 1. */
static void opdi_short_panels(void *ctx, int64_t begin, int64_t end) {
    const opdi_short_product *const all = (const opdi_short_product *)ctx;
    const opdi_byte_job *const job = all->job;
    const int64_t most = all->x ? OPDI_SHORT_DEPTH : 2 * OPDI_SHORT_DEPTH;
    for (int64_t j = begin * OPDI_SHORT_PANEL; j < OPDI_MIN(end * OPDI_SHORT_PANEL, job->n); j += OPDI_SHORT_PANEL) {
        const int64_t count = OPDI_MIN((int64_t)OPDI_SHORT_PANEL, job->n - j);
        for (int64_t k = 0; k == 0 || k < job->k; k += most) {
            const int64_t depth = OPDI_MIN(most, job->k - k);
#if defined(OPDI_FOURS)
            if (!all->x) {
                opdi_four_tiles(job, j, count, k, depth);
                continue;
            }
#endif
            opdi_short_tiles(all, j, count, k, depth);
        }
    }
}
OPDI_AVX2 static void opdi_short_widen_all(const opdi_byte_job *job, int64_t wide, int16_t *x) {
    for (int64_t i = 0; i < job->m; i++) { opdi_short_widen(job->x + i * job->k, false, job->k, x + i * wide); }
}
/* Computes the product.  Returns 0, or -1 if memory runs out. */
static int opdi_short_product_of(const opdi_byte_job *job) {
    opdi_short_product all;
    all.job = job;
    all.wide = opdi_round_up(job->k, 16);
    all.x = NULL;
    const bool fours = opdi_cpu_fours();
    const size_t bytes = fours ? 64 : (size_t)(job->m * all.wide) * sizeof(int16_t);
    int16_t *const x = (int16_t *)(void *)opdi_scratch_alloc(bytes);
    if (!x) { return -1; }
    if (!fours) {
        opdi_short_widen_all(job, all.wide, x);
        all.x = x;
    }
    opdi_parallel_for((job->n + OPDI_SHORT_PANEL - 1) / OPDI_SHORT_PANEL,
                      OPDI_MAX((int64_t)1, 16384 / OPDI_MAX(job->k * job->m / 4, (int64_t)1)), opdi_short_panels, &all);
    opdi_scratch_free((char *)x, bytes);
    return 0;
}
#endif

/* Computes the exact product of *job.  Returns 0, or -1 if memory runs out. */
OPD_UNUSED OPDI_INTERNAL int opdi_byte_product(const opdi_byte_job *job) {
    if (job->m > OPDI_BYTE_FEW) {
        const opdi_gemm_in left = opdi_gemm_in_of((const char *)job->x, OPD_UINT8, job->k, 1);
        const opdi_gemm_in right = opdi_gemm_in_of((const char *)job->w, OPD_INT8, 1, job->w_stride);
        const int done = opdi_gemm_bytes_try(job->m, job->n, job->k, &left, &right, job->y);
        if (done) { return done > 0 ? 0 : -1; }
    }
#if defined(OPDI_X86)
    if (job->m >= OPDI_SHORT_FEW && job->n && opdi_cpu_level() > 0 && !opdi_gemm_bytes_are_fast()) {
        return opdi_short_product_of(job);
    }
#endif
    opdi_parallel_for((job->n + 3) / 4, OPDI_MAX((int64_t)1, 65536 / OPDI_MAX(job->k * job->m, (int64_t)1)),
                      opdi_byte_columns, (void *)(uintptr_t)job);
    return 0;
}
