#include "block_rows.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>tiles        products of many rows with weights in blocks
//
//  This is the second method of >>rounded: panels of unpacked weights, and tiles of four rows of x.
//----------------------------------------------------------------------------------------------------------------------


/* Writes codes k .. k + count - 1 of a row of blocks of integers, which begins at `row`, and for each 32 of them the
   scale, and the minimum of formats with zero points.  k and count are multiples of 32. */
static void opdi_int_unpack(const opdi_block_info *info, const uint8_t *row, int64_t k, int64_t count, uint8_t *codes,
                            float *scales, float *mins) {
    float scale, zero;
    for (int64_t done = 0, some; done < count; done += some) {
        const int64_t inside = (k + done) % info->elements;
        const uint8_t *const block = row + (k + done) / info->elements * info->bytes;
        const uint8_t *const from = opdi_int_scale(info, block, &scale, &zero);
        some = OPDI_MIN(count - done, info->elements - inside);
        opdi_int_codes(from + inside / 8 * info->bits, some, info->bits, codes + done);
        for (int64_t at = done / 32; at < (done + some) / 32; at++) {
            scales[at] = scale;
            if (info->zero) { mins[at] = -zero * scale; }
        }
    }
}

#include "../typed/f32.h"
#include "block_unpack.typed.h"
#if defined(OPDI_X86) || defined(OPDI_NEON)
#include "../typed/f32_avx2.h"
#include "block_unpack.typed.h"
#endif
#if defined(OPDI_X86)
#include "../typed/f32_avx512.h"
#include "block_unpack.typed.h"
#endif
#include "../typed/end.h"

//== rounding ==========================================================================================================

/* Rounds `count` elements of x, 32 or 256, to 8 bits: x is about d * q.  Returns d, or NaN if an element is infinite or
   NaN, or if the elements are so small or so large that their products with scales could not be represented. */
OPDI_ALWAYS float opdi_block_round(const float *x, int count, int8_t *q) {
    float most[16] = {0};
    uint32_t bad = 0;
    for (int i = 0; i < count; i += 16) {
        float size[16];
        for (int lane = 0; lane < 16; lane++) { size[lane] = opdi_float(opdi_bits(x[i + lane]) & 0x7fffffffu); }
        for (int lane = 0; lane < 16; lane++) { most[lane] = size[lane] > most[lane] ? size[lane] : most[lane]; }
        for (int lane = 0; lane < 16; lane++) { bad |= (uint32_t)(opdi_bits(size[lane]) >= 0x7f800000u); }
    }
    for (int lane = 1; lane < 16; lane++) { most[0] = most[lane] > most[0] ? most[lane] : most[0]; }
    if (bad || most[0] > 1e28f || (most[0] < 1e-28f && most[0] > 0)) {
        memset(q, 0, (size_t)count);
        return NAN;
    }
    if (most[0] == 0) {
        memset(q, 0, (size_t)count);
        return 0;
    }
    const float more = 127.0f / most[0];
    for (int i = 0; i < count; i += 16) {
        int32_t whole[16];
        for (int lane = 0; lane < 16; lane++) {
            const float rounded = OPDI_ROUNDED(float, x[i + lane] * more + OPDI_MAGIC);
            whole[lane] = (int32_t)(opdi_bits(rounded) - 0x4b400000u);
        }
        for (int lane = 0; lane < 16; lane++) { q[i + lane] = (int8_t)whole[lane]; }
    }
    return most[0] / 127.0f;
}
/* Returns the bytes of one rounded row of k elements. */
static int64_t opdi_block_rounded_bytes(const opdi_block_form *form, int64_t k) {
    const int64_t wide = opdi_round_up(k, OPDI_BLOCK_PAD);
    return wide + opdi_round_up(wide / form->chunk * 4, 64) + wide / form->sub * 4;
}
/* Returns an element of opdi_block_row.sums. */
OPDI_ALWAYS uint32_t opdi_block_sum_of(const opdi_block_form *form, int32_t sum) {
    return form->mins ? opdi_bits((float)sum) : (uint32_t)(-form->offset * sum);
}
/* An opdi_range_fn: rounds rows begin .. end - 1 of x. */
static void opdi_block_round_rows(void *ctx, int64_t begin, int64_t end) {
    const opdi_block_rounded *const x = (const opdi_block_rounded *)ctx;
    const opdi_block_form *const form = x->form;
    const int64_t k = x->job->k;
    for (int64_t i = begin; i < end; i++) {
        const float *const from = x->job->x + i * x->job->x_stride;
        const opdi_block_row row = opdi_block_row_at(x, i);
        memset(row.q + k, 0, (size_t)(opdi_round_up(k, OPDI_BLOCK_PAD) - k));
        x->bad[i] = 0;
        for (int64_t at = 0; at < k; at += form->chunk) {
            row.d[at / form->chunk] = opdi_block_round(from + at, form->chunk, row.q + at);
            x->bad[i] |= row.d[at / form->chunk] != row.d[at / form->chunk];
        }
        for (int64_t at = k; at < opdi_round_up(k, OPDI_BLOCK_PAD); at += form->chunk) { row.d[at / form->chunk] = 0; }
        for (int64_t at = 0; at < opdi_round_up(k, OPDI_BLOCK_PAD); at += form->sub) {
            int32_t sum = 0;
            for (int j = 0; j < form->sub; j++) { sum += row.q[at + j]; }
            row.sums[at / form->sub] = opdi_block_sum_of(form, sum);
        }
    }
}

#if defined(OPDI_X86)
/* OPDI_ASM_MOST stores the larger of the uint32 of a and b. */
#define OPDI_ASM_MOST(c, a, b) __asm__("vpmaxud {%2, %1, %0|%0, %1, %2}" : "=x"(c) : "x"(a), "x"(b))
#define OPDI_ASM_PACK(name, c, a, b) __asm__(name " {%2, %1, %0|%0, %1, %2}" : "=x"(c) : "x"(a), "x"(b))
/* Returns the largest of the sizes of 32 floats, as bits: floats without signs have the order of their bits. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_sizes32(const float *x, opdi_v8u most) {
    const opdi_v8u *const at = (const opdi_v8u *)(const void *)x;
    const uint32_t all = 0x7fffffffu;
    const opdi_v8u size = {all, all, all, all, all, all, all, all};
    opdi_v8u first, second;
    OPDI_ASM_MOST(first, at[0] & size, at[1] & size);
    OPDI_ASM_MOST(second, at[2] & size, at[3] & size);
    OPDI_ASM_MOST(first, first, second);
    OPDI_ASM_MOST(most, most, first);
    return most;
}
/* Returns the int32 nearest to eight floats times `more`. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_nearest(const float *x, float more) {
    const opdi_v8f scaled = *(const opdi_v8f *)(const void *)x * more;
    opdi_v8u whole;
    __asm__("vcvtps2dq {%1, %0|%0, %1}" : "=x"(whole) : "x"(scaled));
    return whole;
}
/* Does what opdi_block_round does, with AVX2. */
OPDI_AVX2 OPDI_ALWAYS float opdi_block_round_bytes(const float *x, int count, int8_t *q) {
    const opdi_v8u order = {0, 4, 1, 5, 2, 6, 3, 7};
    opdi_v8u sizes = {0};
    opdi_v4u four, turned;
    for (int i = 0; i < count; i += 32) { sizes = opdi_block_sizes32(x + i, sizes); }
    __asm__("vextracti128 {$1, %1, %0|%0, %1, 1}" : "=x"(four) : "x"(sizes));
    __asm__("vpmaxud {%t1, %t0, %t0|%t0, %t0, %t1}" : "+x"(four) : "x"(sizes));
    __asm__("vpshufd {$0x4e, %1, %0|%0, %1, 0x4e}" : "=x"(turned) : "x"(four));
    OPDI_ASM_MOST(four, four, turned);
    __asm__("vpshufd {$0xb1, %1, %0|%0, %1, 0xb1}" : "=x"(turned) : "x"(four));
    OPDI_ASM_MOST(four, four, turned);
    const float most = opdi_float(four[0]);
    const bool bad = four[0] >= 0x7f800000u || most > 1e28f || (most < 1e-28f && most > 0);
    if (bad || most == 0) {
        memset(q, 0, (size_t)count);
        return bad ? NAN : 0;
    }
    const float more = 127.0f / most;
    for (int i = 0; i < count; i += 32) {
        opdi_v8u first, second, bytes;
        OPDI_ASM_PACK("vpackssdw", first, opdi_block_nearest(x + i, more), opdi_block_nearest(x + i + 8, more));
        OPDI_ASM_PACK("vpackssdw", second, opdi_block_nearest(x + i + 16, more), opdi_block_nearest(x + i + 24, more));
        OPDI_ASM_PACK("vpacksswb", bytes, first, second);
        OPDI_ASM_PACK("vpermd", bytes, order, bytes);
        memcpy(q + i, &bytes, 32);
    }
    return most / 127.0f;
}
/* Does what opdi_block_round_rows does, with AVX2. */
OPDI_AVX2 static void opdi_block_round_rows_avx2(void *ctx, int64_t begin, int64_t end) {
    const opdi_block_rounded *const x = (const opdi_block_rounded *)ctx;
    const opdi_block_form *const form = x->form;
    const int64_t k = x->job->k, wide = opdi_round_up(k, OPDI_BLOCK_PAD);
    const opdi_v8u none = {0}, flip = {0x80808080u, 0x80808080u, 0x80808080u, 0x80808080u, 0x80808080u, 0x80808080u,
        0x80808080u, 0x80808080u};
    for (int64_t i = begin; i < end; i++) {
        const float *const from = x->job->x + i * x->job->x_stride;
        const opdi_block_row row = opdi_block_row_at(x, i);
        int64_t chunk = 0;
        memset(row.q + k, 0, (size_t)(wide - k));
        x->bad[i] = 0;
        for (int64_t at = 0; at < k; at += form->chunk, chunk++) {
            const float d = form->chunk == 32 ? opdi_block_round_bytes(from + at, 32, row.q + at)
                : opdi_block_round_bytes(from + at, 256, row.q + at);
            row.d[chunk] = d;
            x->bad[i] |= d != d;
        }
        for (; chunk < wide / form->chunk; chunk++) { row.d[chunk] = 0; }
        for (int64_t at = 0; at < wide; at += 32) {
            opdi_v8u eights;                         /* sums of 8 bytes, of which each is 128 more */
            uint64_t some[4];
            __asm__("vpsadbw {%2, %1, %0|%0, %1, %2}" : "=x"(eights)
                    : "x"(*(const opdi_v8u *)(const void *)(row.q + at) ^ flip), "x"(none));
            memcpy(some, &eights, sizeof some);
            const int32_t first = (int32_t)(some[0] + some[1]) - 16 * 128;
            const int32_t last = (int32_t)(some[2] + some[3]) - 16 * 128;
            if (form->sub == 32) { row.sums[at / 32] = opdi_block_sum_of(form, first + last); }
            else {
                row.sums[at / 16] = opdi_block_sum_of(form, first);
                row.sums[at / 16 + 1] = opdi_block_sum_of(form, last);
            }
        }
    }
}
#endif

//== instructions for tiles ============================================================================================

#define OPDI_BLOCK_DEPTH 512                      /* elements of rows in a panel: whole blocks and chunks */

/* An opdi_block_tile_fn in plain C. */
static void opdi_block_tile_plain(const opdi_block_tile *tile, float *sums) {
    for (int64_t at = 0; at < tile->depth; at += tile->sub) {
        const int64_t sub = at / tile->sub;
        for (int i = 0; i < OPDI_BLOCK_TILE; i++) {
            int32_t whole[OPDI_BLOCK_PANEL];
            const float d = tile->x[i].d[at / tile->chunk], sum = opdi_float(tile->x[i].sums[sub]);
            const int32_t first = tile->mins ? 0 : (int32_t)tile->x[i].sums[sub];
            for (int j = 0; j < OPDI_BLOCK_PANEL; j++) { whole[j] = first; }
            for (int step = 0; step < tile->sub; step += 4) {
                const int8_t *const q = tile->x[i].q + at + step;
                const uint8_t *const codes = tile->codes + (at + step) * OPDI_BLOCK_PANEL;
                for (int j = 0; j < OPDI_BLOCK_PANEL; j++) {
                    whole[j] += codes[4 * j] * q[0] + codes[4 * j + 1] * q[1] + codes[4 * j + 2] * q[2] +
                        codes[4 * j + 3] * q[3];
                }
            }
            for (int j = 0; j < OPDI_BLOCK_PANEL; j++) {
                float product = (float)whole[j] * tile->scales[sub * OPDI_BLOCK_PANEL + j];
                if (tile->mins) { product += tile->mins[sub * OPDI_BLOCK_PANEL + j] * sum; }
                sums[i * OPDI_BLOCK_PANEL + j] += product * d;
            }
        }
    }
}
#if defined(OPDI_X86)
#define OPDI_TILE_ROWS(M) M(0) M(1) M(2) M(3)
#define OPDI_TILE_SUMS(i) opdi_v16f s##i = {0}, t##i = {0};
#define OPDI_TILE_FIRST(i) opdi_v16u c##i = {0}, d##i;
#define OPDI_TILE_BIAS(i) OPDI_ASM_SPLAT("s", c##i, tile->x[i].sums + sub);
#define OPDI_TILE_TWICE(i) d##i = c##i;
#define OPDI_TILE_STEP(i) { \
        opdi_v16u word; \
        OPDI_ASM_SPLAT("s", word, (const opdi_word32 *)(const void *)(q##i + at)); \
        OPDI_ASM_QUADS(c##i, w0, word); \
        OPDI_ASM_QUADS(d##i, w1, word); \
    }
#define OPDI_TILE_SCALE(i) { \
        opdi_v16f f, g; \
        OPDI_ASM_FLOATS(f, c##i); \
        OPDI_ASM_FLOATS(g, d##i); \
        OPDI_ASM_FMA("ps", s##i, f, scales[0]); \
        OPDI_ASM_FMA("ps", t##i, g, scales[1]); \
    }
#define OPDI_TILE_MINS(i) { \
        opdi_v16f sum; \
        OPDI_ASM_SPLAT("s", sum, tile->x[i].sums + sub); \
        OPDI_ASM_FMA("ps", s##i, sum, mins[0]); \
        OPDI_ASM_FMA("ps", t##i, sum, mins[1]); \
    }
#define OPDI_TILE_SCALE_ONCE(i) { \
        opdi_v16f f, g, d; \
        OPDI_ASM_SPLAT("s", d, tile->x[i].d + sub); \
        OPDI_ASM_FLOATS(f, c##i); \
        OPDI_ASM_FLOATS(g, d##i); \
        OPDI_ASM_FMA("ps", s##i, f * scales[0], d); \
        OPDI_ASM_FMA("ps", t##i, g * scales[1], d); \
    }
#define OPDI_TILE_STORE(i) { \
        opdi_v16f *const to = (opdi_v16f *)(void *)(sums + (i) * OPDI_BLOCK_PANEL); \
        to[0] += s##i; \
        to[1] += t##i; \
    }
#define OPDI_TILE_ADD(i) { \
        opdi_v16f d; \
        opdi_v16f *const to = (opdi_v16f *)(void *)(sums + (i) * OPDI_BLOCK_PANEL); \
        OPDI_ASM_SPLAT("s", d, tile->x[i].d + chunk); \
        to[0] += s##i * d; \
        to[1] += t##i * d; \
    }
#endif
#if defined(OPDI_WORDS)
/* An opdi_block_tile_fn for AVX512_VNNI and formats without minima in which chunks have as many elements as groups. */
OPDI_AVX512 static void opdi_block_tile_quads_once(const opdi_block_tile *tile, float *sums) {
    const opdi_v16u *w = (const opdi_v16u *)(const void *)tile->codes;
    const opdi_v16f *scales = (const opdi_v16f *)(const void *)tile->scales;
    const int8_t *const q0 = tile->x[0].q, *const q1 = tile->x[1].q, *const q2 = tile->x[2].q, *const q3 = tile->x[3].q;
    OPDI_TILE_ROWS(OPDI_TILE_SUMS)
    for (int64_t sub = 0, at = 0; at < tile->depth; sub++, scales += 2) {
        const int64_t end = at + 32;
        OPDI_TILE_ROWS(OPDI_TILE_FIRST)
        OPDI_TILE_ROWS(OPDI_TILE_BIAS)
        OPDI_TILE_ROWS(OPDI_TILE_TWICE)
        for (; at < end; at += 4, w += 2) {
            const opdi_v16u w0 = w[0], w1 = w[1];
            OPDI_TILE_ROWS(OPDI_TILE_STEP)
        }
        OPDI_TILE_ROWS(OPDI_TILE_SCALE_ONCE)
    }
    OPDI_TILE_ROWS(OPDI_TILE_STORE)
}
/* An opdi_block_tile_fn for AVX512_VNNI. */
OPDI_AVX512 static void opdi_block_tile_quads(const opdi_block_tile *tile, float *sums) {
    const opdi_v16u *w = (const opdi_v16u *)(const void *)tile->codes;
    const opdi_v16f *scales = (const opdi_v16f *)(const void *)tile->scales;
    const opdi_v16f *mins = (const opdi_v16f *)(const void *)tile->mins;
    const int8_t *const q0 = tile->x[0].q, *const q1 = tile->x[1].q, *const q2 = tile->x[2].q, *const q3 = tile->x[3].q;
    int64_t sub = 0, at = 0;
    for (int64_t chunk = 0; at < tile->depth; chunk++) {
        const int64_t chunk_end = OPDI_MIN(at + tile->chunk, tile->depth);
        OPDI_TILE_ROWS(OPDI_TILE_SUMS)
        for (; at < chunk_end; sub++, scales += 2) {
            const int64_t end = at + tile->sub;
            OPDI_TILE_ROWS(OPDI_TILE_FIRST)
            if (!mins) { OPDI_TILE_ROWS(OPDI_TILE_BIAS) }
            OPDI_TILE_ROWS(OPDI_TILE_TWICE)
            for (; at < end; at += 4, w += 2) {
                const opdi_v16u w0 = w[0], w1 = w[1];
                OPDI_TILE_ROWS(OPDI_TILE_STEP)
            }
            OPDI_TILE_ROWS(OPDI_TILE_SCALE)
            if (mins) {
                OPDI_TILE_ROWS(OPDI_TILE_MINS)
                mins += 2;
            }
        }
        OPDI_TILE_ROWS(OPDI_TILE_ADD)
    }
}
#endif
#if defined(OPDI_X86)
#undef OPDI_TILE_SUMS
#undef OPDI_TILE_FIRST
#undef OPDI_TILE_BIAS
#undef OPDI_TILE_TWICE
#undef OPDI_TILE_STEP
#undef OPDI_TILE_SCALE
#undef OPDI_TILE_SCALE_ONCE
#undef OPDI_TILE_STORE
#undef OPDI_TILE_MINS
#undef OPDI_TILE_ADD
#define OPDI_TILE_ROW(i) const int8_t *const q##i = tile->x[i].q; opdi_v8f s##i = {0};
#define OPDI_TILE_NONE(i) \
    opdi_v16h a##i; \
    opdi_v8u c##i = {0}; \
    if (bias && !once) { OPDI_ASM_SPLAT("s", c##i, numbers->sums + i); }
#define OPDI_TILE_FIRST(i) \
    OPDI_ASM_SPLAT("s", word, (const opdi_word32 *)(const void *)(q##i + at)); \
    OPDI_ASM_BYTES(a##i, codes, word);
#define OPDI_TILE_NEXT(i) \
    OPDI_ASM_SPLAT("s", word, (const opdi_word32 *)(const void *)(q##i + at)); \
    OPDI_ASM_BYTES(some, codes, word); \
    a##i += some;
#define OPDI_TILE_WORD(number) \
    if (together > number) { \
        codes = *w; \
        OPDI_TILE_ROWS(OPDI_TILE_NEXT) \
        at += 4; \
        w += 4; \
    }
#define OPDI_TILE_JOIN(i) OPDI_ASM_JOIN(c##i, a##i, ones)
#define OPDI_TILE_SOME \
    codes = *w; \
    OPDI_TILE_ROWS(OPDI_TILE_FIRST) \
    at += 4; \
    w += 4; \
    OPDI_TILE_WORD(1) OPDI_TILE_WORD(2) OPDI_TILE_WORD(3) \
    OPDI_TILE_WORD(4) OPDI_TILE_WORD(5) OPDI_TILE_WORD(6) OPDI_TILE_WORD(7) \
    OPDI_TILE_ROWS(OPDI_TILE_JOIN)
#define OPDI_TILE_SIGNED(i) \
    OPDI_ASM_SPLAT("s", word, (const opdi_word32 *)(const void *)(q##i + at)); \
    OPDI_ASM_SIGN(word, word, codes); \
    OPDI_ASM_BYTES(a##i, sizes, word); \
    OPDI_ASM_JOIN(c##i, a##i, ones)
#define OPDI_TILE_ADD(i) \
    if (bias && once) { \
        OPDI_ASM_SPLAT("s", word, numbers->sums + i); \
        c##i += word; \
    } \
    OPDI_ASM_FLOATS(f, c##i); \
    f *= scale; \
    if (mins) { \
        OPDI_ASM_SPLAT("s", d, numbers->sums + i); \
        OPDI_ASM_FMA("ps", f, d, min); \
    } \
    OPDI_ASM_SPLAT("s", d, numbers->d + i); \
    s##i += f * d;
#define OPDI_TILE_STORE(i) *(opdi_v8f *)(void *)(sums + (i) * OPDI_BLOCK_PANEL) = s##i;
#define OPDI_TILE_NUMBER(i) numbers[at].sums[i] = tile->x[i].sums[at];
/* The numbers of the four rows of x that belong to a group of elements, side by side: one pointer leads to all. */
typedef struct opdi_block_tile_four {
    opdi_word32 sums[OPDI_BLOCK_TILE];
    float d[OPDI_BLOCK_TILE];
} opdi_block_tile_four;
/* Computes 8 columns of a tile, from column `part` on.  Codes of 8 bits (`wide`) are multiplied with their signs,
   because sums of two products of 8-bit numbers without signs would not fit into 16 bits; of others, as many sums as
   `together` says are added as 16-bit numbers.  sub, together, mins and wide are constant, so that the steps of a group
   have no branches. */
OPDI_AVX2 OPDI_ALWAYS void opdi_block_tile_part(const opdi_block_tile *tile, const opdi_block_tile_four *numbers,
                                                int64_t part, int sub, int together, bool mins, bool wide,
                                                float *sums) {
    const opdi_v16h ones = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const opdi_v8u flip = {0x80808080u, 0x80808080u, 0x80808080u, 0x80808080u, 0x80808080u, 0x80808080u, 0x80808080u,
        0x80808080u};
    const opdi_v8u *w = (const opdi_v8u *)(const void *)(tile->codes + 4 * part);
    const float *scales = tile->scales + part, *low = mins ? tile->mins + part : NULL;
    const bool bias = !mins && !wide, once = 4 * together >= sub;     /* once: a sum needs no register until its end */
    int64_t at = 0;
    OPDI_TILE_ROWS(OPDI_TILE_ROW)
    for (; at < tile->depth; numbers++, scales += OPDI_BLOCK_PANEL) {
        opdi_v8f f, d, min = {0};
        opdi_v8u word, codes, sizes;
        opdi_v16h some;
        OPDI_TILE_ROWS(OPDI_TILE_NONE)
        for (int step = 0; wide && step < sub; step += 4, at += 4, w += 4) {
            codes = *w ^ flip;
            OPDI_ASM_ABS(sizes, codes);
            OPDI_TILE_ROWS(OPDI_TILE_SIGNED)
        }
        if (!wide) { OPDI_TILE_SOME }
        if (!wide && sub / together >= 8) { OPDI_TILE_SOME }
        for (int step = 8 * together; !wide && step < sub; step += 4 * together) { OPDI_TILE_SOME }
        const opdi_v8f scale = *(const opdi_v8f *)(const void *)scales;
        if (mins) {
            min = *(const opdi_v8f *)(const void *)low;
            low += OPDI_BLOCK_PANEL;
        }
        OPDI_TILE_ROWS(OPDI_TILE_ADD)
    }
    OPDI_TILE_ROWS(OPDI_TILE_STORE)
}
/* Computes 8 columns of a tile of a format whose groups have 16 or 32 elements (`sub`, which is constant). */
OPDI_AVX2 OPDI_ALWAYS void opdi_block_tile_some(const opdi_block_tile *tile, const opdi_block_tile_four *numbers,
                                                int64_t part, int sub, float *sums) {
    const int together = OPDI_MIN(tile->together, sub / 4);
    if (tile->wide) { opdi_block_tile_part(tile, numbers, part, sub, 1, false, true, sums); }
    else if (together >= 8 && tile->mins) { opdi_block_tile_part(tile, numbers, part, 32, 8, true, false, sums); }
    else if (together >= 8) { opdi_block_tile_part(tile, numbers, part, 32, 8, false, false, sums); }
    else if (together >= 4 && tile->mins) { opdi_block_tile_part(tile, numbers, part, sub, 4, true, false, sums); }
    else if (together >= 4) { opdi_block_tile_part(tile, numbers, part, sub, 4, false, false, sums); }
    else if (together >= 2 && tile->mins) { opdi_block_tile_part(tile, numbers, part, sub, 2, true, false, sums); }
    else if (together >= 2) { opdi_block_tile_part(tile, numbers, part, sub, 2, false, false, sums); }
    else if (tile->mins) { opdi_block_tile_part(tile, numbers, part, sub, 1, true, false, sums); }
    else { opdi_block_tile_part(tile, numbers, part, sub, 1, false, false, sums); }
}
/* An opdi_block_tile_fn for AVX2. */
OPDI_AVX2 static void opdi_block_tile_bytes(const opdi_block_tile *tile, float *sums) {
    opdi_block_tile_four numbers[OPDI_BLOCK_DEPTH / 16];
    const int64_t groups = tile->depth / tile->sub, each = tile->chunk / tile->sub;
    for (int64_t at = 0, chunk = 0; at < groups; chunk++) {
        const float d[OPDI_BLOCK_TILE] = {tile->x[0].d[chunk], tile->x[1].d[chunk], tile->x[2].d[chunk],
            tile->x[3].d[chunk]};
        for (int64_t end = OPDI_MIN(at + each, groups); at < end; at++) {
            OPDI_TILE_ROWS(OPDI_TILE_NUMBER)
            memcpy(numbers[at].d, d, sizeof d);
        }
    }
    for (int64_t part = 0; part < OPDI_BLOCK_PANEL; part += 8) {
        if (tile->sub == 16) { opdi_block_tile_some(tile, numbers, part, 16, sums + part); }
        else { opdi_block_tile_some(tile, numbers, part, 32, sums + part); }
    }
}
#undef OPDI_TILE_ROWS
#undef OPDI_TILE_ROW
#undef OPDI_TILE_NONE
#undef OPDI_TILE_FIRST
#undef OPDI_TILE_NEXT
#undef OPDI_TILE_WORD
#undef OPDI_TILE_SOME
#undef OPDI_TILE_JOIN
#undef OPDI_TILE_SIGNED
#undef OPDI_TILE_ADD
#undef OPDI_TILE_STORE
#undef OPDI_TILE_NUMBER
#endif

#if defined(OPDI_DOT)
#define OPDI_TILE_ROWS(M) M(0) M(1) M(2) M(3)
#define OPDI_TILE_WORDS(i) \
    opdi_v4u c##i, d##i, e##i, f##i; \
    OPDI_ASM_SPLAT("s", c##i, tile->x[i].sums + sub); \
    if (tile->wide || tile->mins) { c##i ^= c##i; } \
    d##i = e##i = f##i = c##i;
#define OPDI_TILE_STEP(i, lane) { \
        OPDI_ASM_DOT(c##i, w0, q##i, lane); \
        OPDI_ASM_DOT(d##i, w1, q##i, lane); \
        OPDI_ASM_DOT(e##i, w2, q##i, lane); \
        OPDI_ASM_DOT(f##i, w3, q##i, lane); \
    }
#define OPDI_TILE_LANE(lane) { \
        const opdi_v4u w0 = w[8 * lane] ^ flip, w1 = w[8 * lane + 1] ^ flip, w2 = w[8 * lane + 2] ^ flip, \
            w3 = w[8 * lane + 3] ^ flip; \
        OPDI_TILE_STEP(0, lane) OPDI_TILE_STEP(1, lane) OPDI_TILE_STEP(2, lane) OPDI_TILE_STEP(3, lane) \
    }
#define OPDI_TILE_LOAD(i) const opdi_v4u q##i = *(const opdi_v4u *)(const void *)(tile->x[i].q + at);
#define OPDI_TILE_ADD(i) { \
        const opdi_v4u whole[4] = {c##i, d##i, e##i, f##i}; \
        opdi_block_tile_sum(tile, i, sub, part, whole, sums); \
    }
/* Adds the products of row i of x and group number `sub` of 16 rows of the weights, from row `part` on, to sums.  The
   floats are added as by opdi_block_tile_plain. */
OPDI_DOT OPDI_ALWAYS void opdi_block_tile_sum(const opdi_block_tile *tile, int i, int64_t sub, int part,
                                              const opdi_v4u *whole, float *sums) {
    const float d = tile->x[i].d[sub * tile->sub / tile->chunk], sum = opdi_float(tile->x[i].sums[sub]);
    const opdi_v4f *const scales = (const opdi_v4f *)(const void *)(tile->scales + sub * OPDI_BLOCK_PANEL + part);
    opdi_v4f *const to = (opdi_v4f *)(void *)(sums + i * OPDI_BLOCK_PANEL + part);
    for (int v = 0; v < 4; v++) {
        opdi_v4f product;
        OPDI_ASM_FLOATS(product, whole[v]);
        product *= scales[v];
        if (tile->mins) {
            product += ((const opdi_v4f *)(const void *)(tile->mins + sub * OPDI_BLOCK_PANEL + part))[v] * sum;
        }
        to[v] += product * d;
    }
}
/* An opdi_block_tile_fn for processors with OPDI_ASM_DOT.  Codes of 8 bits are multiplied with their signs. */
OPDI_DOT static void opdi_block_tile_dots(const opdi_block_tile *tile, float *sums) {
    const uint32_t sign = tile->wide ? 0x80808080u : 0;
    const opdi_v4u flip = {sign, sign, sign, sign};
    for (int part = 0; part < OPDI_BLOCK_PANEL; part += 16) {
        const opdi_v4u *w = (const opdi_v4u *)(const void *)(tile->codes + 4 * part);
        for (int64_t at = 0, sub = 0; at < tile->depth; sub++) {
            const int64_t end = at + tile->sub;
            OPDI_TILE_ROWS(OPDI_TILE_WORDS)
            for (; at < end; at += 16, w += 32) {
                OPDI_TILE_ROWS(OPDI_TILE_LOAD)
                OPDI_TILE_LANE(0) OPDI_TILE_LANE(1) OPDI_TILE_LANE(2) OPDI_TILE_LANE(3)
            }
            OPDI_TILE_ROWS(OPDI_TILE_ADD)
        }
    }
}
#undef OPDI_TILE_ROWS
#undef OPDI_TILE_WORDS
#undef OPDI_TILE_STEP
#undef OPDI_TILE_LANE
#undef OPDI_TILE_LOAD
#undef OPDI_TILE_ADD
#endif

#if defined(OPDI_AMX)
/* Tiles of AMX have the products of 16 rows of x and 16 rows of w.  Tiles 0 and 1 have sums for a group of elements
   that share a scale, tile 2 has these elements of x, tiles 3 and 4 of w.  The sums become floats outside of the tiles,
   as in opdi_block_tile_quads and opdi_block_tile_quads_once: the results have the same bits.  A group of 16 elements
   would take as long as one of 32, so that formats with such groups do not use tiles. */
#define OPDI_BLOCK_TALL 16                        /* rows of x */
#define OPDI_BLOCK_GROUPS 4                       /* groups whose sums are scaled together */
#define OPDI_BLOCK_SUMS (OPDI_BLOCK_TALL * OPDI_BLOCK_PANEL)
typedef struct opdi_block_tall {
    const opdi_block_tile *tile;                  /* the weights, and the first row of x */
    int64_t row_bytes;                            /* from a row of x to the next one */
    uint32_t *whole;                              /* [2 * OPDI_BLOCK_GROUPS, OPDI_BLOCK_TALL, OPDI_BLOCK_PANEL] */
} opdi_block_tall;

static void opdi_block_tall_configure(int sub) {
    opdi_amx_config config;
    memset(&config, 0, sizeof config);
    config.palette = 1;
    for (int tile = 0; tile < 5; tile++) {
        config.bytes[tile] = (uint16_t)(tile == 2 ? sub : 64);
        config.rows[tile] = (uint8_t)(tile < 3 ? 16 : sub / 4);
    }
    OPDI_AMX_CONFIGURE(&config);
}
/* Computes the sums of one group of elements, and stores them at `to` [OPDI_BLOCK_TALL, OPDI_BLOCK_PANEL]. */
static inline void opdi_block_tall_sums(const opdi_block_tall *tall, int64_t group, uint32_t *to) {
    const int64_t sub = tall->tile->sub, line = 4 * OPDI_BLOCK_PANEL;
    const int8_t *const q = tall->tile->x[0].q + group * sub;
    const uint8_t *const codes = tall->tile->codes + group * sub * OPDI_BLOCK_PANEL;
    OPDI_AMX_LOAD(2, q, tall->row_bytes);
    OPDI_AMX_LOAD(3, codes, line);
    OPDI_AMX_LOAD(4, codes + 64, line);
    OPDI_AMX_ZERO(0);
    OPDI_AMX_ZERO(1);
    OPDI_AMX_QUADS_OF(0, 2, 3);
    OPDI_AMX_QUADS_OF(1, 2, 4);
    OPDI_AMX_STORE(0, to, line);
    OPDI_AMX_STORE(1, to + 16, line);
}
/* Adds the scaled sums of `count` groups, from group `first` on, to the sum of a chunk in part [OPDI_BLOCK_TALL,
   OPDI_BLOCK_PANEL], and adds whole chunks to sums.  A chunk has `each` groups.  `once`: scales groups as
   opdi_block_tile_quads_once does, which has no chunks. */
OPDI_AVX512 OPDI_ALWAYS void opdi_block_tall_row(const opdi_block_tall *tall, int64_t row, int64_t first, int64_t count,
                                                 int64_t each, bool once, bool has_mins, float *part, float *sums) {
    const opdi_block_tile *const tile = tall->tile;
    const int64_t away = row * tall->row_bytes, at = row * OPDI_BLOCK_PANEL, from = first * OPDI_BLOCK_PANEL;
    const opdi_v16u *whole = (const opdi_v16u *)(const void *)(tall->whole + first % (2 * OPDI_BLOCK_GROUPS) *
                                                               OPDI_BLOCK_SUMS + at);
    const opdi_v16f *scales = (const opdi_v16f *)(const void *)(tile->scales + from);
    const opdi_v16f *mins = has_mins ? (const opdi_v16f *)(const void *)(tile->mins + from) : NULL;
    const opdi_word32 *const bias = (const opdi_word32 *)(const void *)((const char *)tile->x[0].sums + away) + first;
    const float *const d = (const float *)(const void *)((const char *)tile->x[0].d + away) + first / each;
    opdi_v16f *const to = (opdi_v16f *)(void *)(sums + at), *const kept = (opdi_v16f *)(void *)(part + at);
    opdi_v16f s = kept[0], t = kept[1], all = to[0], more = to[1];
    int64_t left = each - first % each, chunk = 0;     /* left: groups until the end of the chunk */
    for (int64_t group = 0; group < count; group++, whole += 2 * OPDI_BLOCK_TALL, scales += 2) {
        opdi_v16u c = whole[0], e = whole[1], less;
        opdi_v16f f, g, some;
        OPDI_ASM_SPLAT("s", less, bias + group);
        if (!has_mins) {
            c += less;
            e += less;
        }
        OPDI_ASM_FLOATS(f, c);
        OPDI_ASM_FLOATS(g, e);
        OPDI_ASM_SPLAT("s", some, d + chunk);
        if (once) {
            OPDI_ASM_FMA("ps", s, f * scales[0], some);
            OPDI_ASM_FMA("ps", t, g * scales[1], some);
            chunk++;
            continue;
        }
        OPDI_ASM_FMA("ps", s, f, scales[0]);
        OPDI_ASM_FMA("ps", t, g, scales[1]);
        if (has_mins) {
            OPDI_ASM_FMA("ps", s, (opdi_v16f)less, mins[0]);
            OPDI_ASM_FMA("ps", t, (opdi_v16f)less, mins[1]);
            mins += 2;
        }
        if (--left == 0) {
            const opdi_v16f none = {0};
            all += s * some;
            more += t * some;
            s = t = none;
            left = each;
            chunk++;
        }
    }
    to[0] = all;
    to[1] = more;
    kept[0] = s;
    kept[1] = t;
}
/* Does the work of an opdi_block_tile_fn for 16 rows of x. */
OPDI_AVX512 static void opdi_block_tile_tall(const opdi_block_tall *tall, float *sums) {
    const opdi_block_tile *const tile = tall->tile;
    const int64_t groups = tile->depth / tile->sub, each = tile->chunk / tile->sub;
    const bool once = each == 1 && !tile->mins;
    const int64_t rows = OPDI_BLOCK_TALL / OPDI_BLOCK_GROUPS;
    float part[OPDI_BLOCK_SUMS] = {0};
    for (int64_t group = 0; group < OPDI_MIN(groups, OPDI_BLOCK_GROUPS); group++) {
        opdi_block_tall_sums(tall, group, tall->whole + group * OPDI_BLOCK_SUMS);
    }
    for (int64_t first = 0; first < groups; first += OPDI_BLOCK_GROUPS) {
        const int64_t count = OPDI_MIN(OPDI_BLOCK_GROUPS, groups - first);
        for (int64_t row = 0; row < OPDI_BLOCK_TALL; row++) {
            const int64_t next = first + OPDI_BLOCK_GROUPS + row / rows;
            if (row % rows == 0 && next < groups) {   /* tiles multiply while vectors scale */
                opdi_block_tall_sums(tall, next, tall->whole + next % (2 * OPDI_BLOCK_GROUPS) * OPDI_BLOCK_SUMS);
            }
            if (once) { opdi_block_tall_row(tall, row, first, count, each, true, false, part, sums); }
            else if (tile->mins) { opdi_block_tall_row(tall, row, first, count, each, false, true, part, sums); }
            else { opdi_block_tall_row(tall, row, first, count, each, false, false, part, sums); }
        }
    }
    for (int j = 0; j < OPDI_BLOCK_SUMS && once; j++) { sums[j] += part[j]; }
}
#endif

//== panels ============================================================================================================

/* Memory for a panel, and for the rows from which it is made. */
typedef struct opdi_block_panel {
    uint8_t rows[OPDI_BLOCK_PANEL * OPDI_BLOCK_DEPTH], codes[OPDI_BLOCK_PANEL * OPDI_BLOCK_DEPTH];
    float row_scales[2][OPDI_BLOCK_PANEL * OPDI_BLOCK_DEPTH / 16], scales[2][OPDI_BLOCK_PANEL * OPDI_BLOCK_DEPTH / 16];
#if defined(OPDI_AMX)
    uint32_t whole[2 * OPDI_BLOCK_GROUPS * OPDI_BLOCK_SUMS];
#endif
} opdi_block_panel;

/* Asks for the blocks that the next panel needs from row j of w, which was unpacked up to element k, at `at`: the next
   blocks of the row, or the first ones of the row that takes its place in the next panel.  Panels read a few blocks of
   many rows, which the processor does not guess. */
OPDI_ALWAYS void opdi_block_panel_ahead(const opdi_block_rounded *x, int64_t j, int64_t k, const uint8_t *at) {
    const opdi_block_job *const job = x->job;
    int64_t left = job->k - k;
    if (left == 0) {
        if (j + OPDI_BLOCK_PANEL >= job->n) { return; }
        at = (const uint8_t *)job->w + (j + OPDI_BLOCK_PANEL) * job->w_stride;
        left = job->k;
    }
    const int64_t bytes = OPDI_MIN(left, OPDI_BLOCK_DEPTH) / x->form->elements * x->form->bytes;
    for (int64_t line = 0; line < bytes; line += 64) { OPDI_PREFETCH(at + line); }
}
/* Unpacks `depth` elements, from element k on, of 32 rows of w from row j on.  Only `count` of them exist; the last one
   stands for the others. */
static void opdi_block_panel_fill(const opdi_block_rounded *x, int64_t j, int64_t count, int64_t k, int64_t depth,
                                  opdi_block_panel *panel) {
    const opdi_block_form *const form = x->form;
    const int64_t subs = OPDI_BLOCK_DEPTH / form->sub;
    for (int64_t row = 0; x->ints && row < OPDI_BLOCK_PANEL; row++) {
        opdi_int_unpack(x->ints, (const uint8_t *)x->job->w + (j + OPDI_MIN(row, count - 1)) * x->job->w_stride, k,
                        depth, panel->rows + row * OPDI_BLOCK_DEPTH, panel->row_scales[0] + row * subs,
                        panel->row_scales[1] + row * subs);
    }
    for (int64_t row = 0; !x->ints && row < OPDI_BLOCK_PANEL; row++) {
        const uint8_t *at = (const uint8_t *)x->job->w + (j + OPDI_MIN(row, count - 1)) * x->job->w_stride +
            k / form->elements * form->bytes;
        for (int64_t step = 0; step < depth; step += form->elements, at += form->bytes) {
            const int64_t sub = row * subs + step / form->sub;
            form->unpack(at, panel->rows + row * OPDI_BLOCK_DEPTH + step, panel->row_scales[0] + sub,
                         panel->row_scales[1] + sub);
        }
        opdi_block_panel_ahead(x, j + row, k + depth, at);
    }
    opdi_pack_transposed((const opdi_word32 *)(const void *)panel->rows, OPDI_BLOCK_DEPTH / 4, depth / 4,
                         OPDI_BLOCK_PANEL, OPDI_BLOCK_PANEL, (opdi_word32 *)(void *)panel->codes);
    for (int i = 0; i < (form->mins ? 2 : 1); i++) {
        opdi_pack_transposed((const opdi_word32 *)(const void *)panel->row_scales[i], subs, depth / form->sub,
                             OPDI_BLOCK_PANEL, OPDI_BLOCK_PANEL, (opdi_word32 *)(void *)panel->scales[i]);
    }
}
/* Adds `rows` rows of sums to y, from row i and column j on.  Sets y to them if k is 0. */
static void opdi_block_sums_add(const opdi_block_job *job, const float *sums, int64_t i, int64_t rows, int64_t j,
                                int64_t count, int64_t k) {
    for (int64_t row = 0; row < rows; row++) {
        float *const y = job->y + (i + row) * job->y_stride + j;
        const float *const sum = sums + row * OPDI_BLOCK_PANEL;
        if (k == 0 && count == OPDI_BLOCK_PANEL) { memcpy(y, sum, OPDI_BLOCK_PANEL * sizeof(float)); }
        else if (k == 0) { memcpy(y, sum, (size_t)count * sizeof(float)); }
        else if (count == OPDI_BLOCK_PANEL) {
            float whole[OPDI_BLOCK_PANEL];
            for (int column = 0; column < OPDI_BLOCK_PANEL; column++) { whole[column] = y[column] + sum[column]; }
            memcpy(y, whole, sizeof whole);
        } else {
            for (int64_t column = 0; column < count; column++) { y[column] += sum[column]; }
        }
    }
}
/* Returns row number i of x.  `first` is row 0, from some element on. */
OPDI_ALWAYS opdi_block_row opdi_block_row_after(const opdi_block_rounded *x, const opdi_block_row *first, int64_t i) {
    const int64_t away = i * x->row_bytes;
    opdi_block_row row;
    row.q = first->q + away;
    row.d = (float *)(void *)((char *)first->d + away);
    row.sums = (opdi_word32 *)(void *)((char *)first->sums + away);
    return row;
}
/* Adds the products of all rows of x and a panel to y, or sets y to them if k is 0. */
static void opdi_block_tiles_add(const opdi_block_rounded *x, opdi_block_tile *tile, opdi_block_panel *panel, int64_t j,
                                 int64_t count, int64_t k) {
    const int64_t m = x->job->m;
    opdi_block_row first = opdi_block_row_at(x, 0);
    int64_t i = 0;
    first.q += k;
    first.d += k / tile->chunk;
    first.sums += k / tile->sub;
#if defined(OPDI_AMX)
    const opdi_block_tall tall = {tile, x->row_bytes, panel->whole};
    for (; x->tall && i + OPDI_BLOCK_TALL <= m; i += OPDI_BLOCK_TALL) {
        float sums[OPDI_BLOCK_SUMS] = {0};
        tile->x[0] = opdi_block_row_after(x, &first, i);
        opdi_block_tile_tall(&tall, sums);
        opdi_block_sums_add(x->job, sums, i, OPDI_BLOCK_TALL, j, count, k);
    }
#else
    (void)panel;
#endif
    for (; i < m; i += OPDI_BLOCK_TILE) {
        const int64_t rows = OPDI_MIN(OPDI_BLOCK_TILE, m - i);
        float sums[OPDI_BLOCK_TILE * OPDI_BLOCK_PANEL] = {0};
        for (int64_t row = 0; row < OPDI_BLOCK_TILE; row++) {
            tile->x[row] = opdi_block_row_after(x, &first, i + OPDI_MIN(row, rows - 1));
        }
        x->tile(tile, sums);
        opdi_block_sums_add(x->job, sums, i, rows, j, count, k);
    }
}
/* An opdi_range_fn: computes the columns of y for the groups begin .. end - 1 of 32 rows of w. */
static void opdi_block_panels(void *ctx, int64_t begin, int64_t end) {
    opdi_block_rounded *const x = (opdi_block_rounded *)ctx;
    const opdi_block_job *const job = x->job;
    opdi_block_panel *const panel = (opdi_block_panel *)(void *)opdi_scratch_alloc(sizeof(opdi_block_panel));
    if (!panel) {
        OPDI_STORE(&x->failed, 1);
        return;
    }
    opdi_block_tile tile;
    memset(&tile, 0, sizeof tile);
    tile.codes = panel->codes;
    tile.scales = panel->scales[0];
    tile.mins = x->form->mins ? panel->scales[1] : NULL;
    tile.sub = x->form->sub;
    tile.chunk = x->form->chunk;
    tile.together = x->form->together;
    tile.wide = x->form->offset == 128;
#if defined(OPDI_AMX)
    if (x->tall) { opdi_block_tall_configure(tile.sub); }
#endif
    for (int64_t group = begin; group < end; group++) {
        const int64_t j = group * OPDI_BLOCK_PANEL, count = OPDI_MIN(OPDI_BLOCK_PANEL, job->n - j);
        for (int64_t k = 0; k < job->k; k += OPDI_BLOCK_DEPTH) {
            tile.depth = OPDI_MIN(OPDI_BLOCK_DEPTH, job->k - k);
            opdi_block_panel_fill(x, j, count, k, tile.depth, panel);
            opdi_block_tiles_add(x, &tile, panel, j, count, k);
        }
    }
#if defined(OPDI_AMX)
    if (x->tall) { OPDI_AMX_RELEASE(); }
#endif
    opdi_scratch_free((char *)panel, sizeof(opdi_block_panel));
}

//== products ==========================================================================================================

/* Returns how a format is multiplied, or NULL if it has no codes with scales. */
OPDI_INTERNAL const opdi_block_form *opdi_block_form_of(opd_scalar_type dtype) {
    const opdi_block_form *forms = opdi_block_forms_plain_f32;
#if defined(OPDI_X86) || defined(OPDI_NEON)
    if (opdi_cpu_level() > 0) {
        forms = OPDI_WIDEST(opdi_cpu_level(), opdi_block_forms_avx512_f32, opdi_block_forms_avx2_f32);
    }
#endif
    for (size_t i = 0; i < sizeof opdi_block_forms_plain_f32 / sizeof *forms; i++) {
        if (forms[i].dtype == dtype) { return &forms[i]; }
    }
    return NULL;
}
/* Makes the form of a dtype of integers.  Returns false if it has none: if groups are not a multiple of 32 elements, or
   if codes of 8 bits have zero points. */
static bool opdi_int_form_of(const opdi_block_info *info, opdi_int_form *ints) {
    const int most = (1 << info->bits) - 1;
    if (!info->bits || info->elements % 32 || (info->bits == 8 && info->zero)) { return false; }
    memset(ints, 0, sizeof *ints);
    ints->info = *info;
    ints->form.dtype = info->dtype;
    ints->form.sub = ints->form.chunk = 32;
    ints->form.mins = info->zero;
    ints->form.offset = (int16_t)(info->zero ? 0 : 1 << (info->bits - 1));
    ints->form.together = (int16_t)(info->bits == 8 ? 1 : OPDI_MIN(8, 32767 / (254 * most)));
    return true;
}
/* Returns the function for tiles of a format. */
static opdi_block_tile_fn *opdi_block_tile_of(const opdi_block_form *form) {
#if defined(OPDI_WORDS)
    if (opdi_cpu_words() & OPDI_HAS_QUADS) {
        const bool once = form->chunk == 32 && form->sub == 32 && !form->mins;
        return once ? opdi_block_tile_quads_once : opdi_block_tile_quads;
    }
#endif
#if defined(OPDI_X86)
    if (opdi_cpu_level() > 0) { return opdi_block_tile_bytes; }
#elif defined(OPDI_DOT)
    if (opdi_cpu_words() & OPDI_HAS_QUADS) { return opdi_block_tile_dots; }
#endif
    (void)form;
    return opdi_block_tile_plain;
}
/* Computes y [m, n] = x [m, k] wT, with x rounded to 8 bits.  Rows of x with elements that are infinite or NaN are
   multiplied by `exact` instead, which computes an exact product.  Returns 1, or 0 if the format of w is not multiplied
   in integers, or -1 with an error. */
OPDI_INTERNAL int opdi_block_rounded_try(const opdi_block_job *job, int (*exact)(const opdi_block_job *job)) {
    const opdi_block_info info = opdi_block_info_of((int)job->dtype);
    opdi_int_form ints;
    opdi_block_rounded x;
    memset(&x, 0, sizeof x);
    x.job = job;
    x.form = opdi_block_form_of(job->dtype);
    if (opdi_int_form_of(&info, &ints)) {
        x.form = &ints.form;
        x.ints = &ints.info;
    }
    if (job->k == 0 || !x.form) { return 0; }
    x.tile = opdi_block_tile_of(x.form);
    x.tall = job->m >= 16 && x.form->sub == 32 && opdi_cpu_tiles();
    x.row_bytes = opdi_round_up(opdi_block_rounded_bytes(x.form, job->k), 64);
    if (job->m > INT64_MAX / 2 / (x.row_bytes + 1)) {
        return opd_fail(OPD_ERROR_MEMORY, "product of blocks: no memory for %lld rounded rows", (long long)job->m);
    }
    const size_t bytes = (size_t)(job->m * (x.row_bytes + 1)) + 64;
    x.memory = opdi_scratch_alloc(bytes);
    if (!x.memory) { return -1; }
    x.rows = x.memory + (64 - ((uintptr_t)x.memory & 63)) % 64;
    x.bad = (uint8_t *)x.rows + job->m * x.row_bytes;
    opdi_range_fn round = opdi_block_round_rows;
#if defined(OPDI_X86)
    if (opdi_cpu_level() > 0) { round = opdi_block_round_rows_avx2; }
#endif
    opdi_parallel_for(job->m, OPDI_MAX(1, 16384 / job->k), round, &x);
    int rc = opdi_block_few_try(&x);
    if (rc == 0) {
        opdi_parallel_for_scratch((job->n - 1) / OPDI_BLOCK_PANEL + 1, 1, opdi_block_panels, &x,
                                  OPDI_SCRATCH_BYTES(sizeof(opdi_block_panel)));
        rc = 1;
    }
    for (int64_t i = 0; i < job->m && rc == 1; i++) {
        opdi_block_job row = *job;
        row.m = 1;
        row.x += i * job->x_stride;
        row.y += i * job->y_stride;
        if (x.bad[i] && exact(&row) != 0) { rc = -1; }
    }
    opdi_scratch_free(x.memory, bytes);
    if (!OPDI_LOAD(&x.failed)) { return rc; }
    return opd_fail(OPD_ERROR_MEMORY, "product of blocks: out of memory for a few rows of %s weights",
                    opd_dtype_name(job->dtype));
}
