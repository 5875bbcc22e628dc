#include "kernels.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>rounded      products with weights in blocks, in 8-bit integers
//
//  A product y = x wT multiplies rows of floats, x, by rows of weights that are stored in blocks (see opd_dtype_block).
//  The rows of x are rounded to 8 bits once per product, in groups of 32 or 256 elements that share a scale, as
//  llama.cpp does.  Then integers are multiplied, and the sums of 16 or 32 products are scaled.
//
//  With many rows of x, groups of 32 rows of weights are unpacked into a panel: their codes as 32-bit words of four
//  consecutive codes, the words of all rows side by side, and the scales.  Then each group of four rows of x is
//  multiplied by the panel.  With few rows of x, each row of weights is multiplied where it is.
//
//  Exact products, and gradients, are in block_products.c.
//----------------------------------------------------------------------------------------------------------------------

//== rows of blocks by few rows of x ===================================================================================
//
//  With few rows of x, the time of a product is the time in which the weights are read.  So each row of weights is
//  multiplied where it is, several blocks at a time.  x is stored in the order in which the codes lie in the vectors.

/* Sets the pointers to the parts of rounded row number i. */
OPDI_INTERNAL opdi_block_row opdi_block_row_at(const opdi_block_rounded *x, int64_t i) {
    const int64_t wide = opdi_round_up(x->job->k, OPDI_BLOCK_PAD);
    char *const at = x->rows + i * x->row_bytes;
    opdi_block_row row;
    row.q = (int8_t *)at;
    row.d = (float *)(void *)(at + wide);
    row.sums = (opdi_word32 *)(void *)(at + wide + opdi_round_up(wide / x->form->chunk * 4, 64));
    return row;
}

/* Asks for `bytes` bytes of weights before they are needed: memory that the processor guesses comes later, and not from
   the next page.  Nearer than OPDI_BLOCK_AHEAD, or much further, was slower. */
enum { OPDI_BLOCK_AHEAD = 1024 };
OPDI_ALWAYS void opdi_block_ahead(const uint8_t *w, int bytes) {
    for (int at = 0; at < bytes; at += 64) { OPDI_PREFETCH(w + OPDI_BLOCK_AHEAD + at); }
}

#if defined(OPDI_X86)
typedef uint32_t opdi_v4u __attribute__((vector_size(16), aligned(4), may_alias));
typedef uint64_t opdi_v2w __attribute__((vector_size(16), aligned(8), may_alias));
/* Four blocks of 32 elements of a rounded row: the first halves of the blocks, the second halves, for each word of four
   elements the multiple of their sum that belongs to it, and for each block its scale, and its sum times the scale. */
typedef struct opdi_block_four { int8_t low[64], high[64]; uint32_t bias[16]; float d[4], sums[4], unused[8]; }
    opdi_block_four;
/* A block of 256 elements of a rounded row: the elements, in the order of the format, for each word of four elements
   the multiple of their sum that belongs to it, the sums of 32 and of 16 elements, and the scale. */
typedef struct opdi_block_super { int8_t q[256]; uint32_t bias[64]; int16_t sums[8], halves[16]; float d, unused[3]; }
    opdi_block_super;

/* Writes a rounded row as opdi_block_four. */
static void opdi_block_fours(const opdi_block_form *form, int64_t wide, const opdi_block_row *row, void *out) {
    opdi_block_four *to = (opdi_block_four *)out;
    for (int64_t at = 0; at < wide; at += 128, to++) {
        for (int b = 0; b < 4; b++) {
            const int8_t *const q = row->q + at + 32 * b;
            int32_t sum = 0;
            memcpy(to->low + 16 * b, q, 16);
            memcpy(to->high + 16 * b, q + 16, 16);
            for (int word = 0; word < 4; word++) {
                int32_t some = 0;
                for (int i = 0; i < 4; i++) { some += q[4 * word + i] + q[16 + 4 * word + i]; }
                to->bias[4 * b + word] = (uint32_t)(-form->offset * some);
                sum += some;
            }
            to->d[b] = row->d[(at + 32 * b) / form->chunk];
            to->sums[b] = to->d[b] * (float)sum;
        }
    }
}
/* The places of groups of 32 elements in an opdi_block_super: for Q6_K, for Q4_K and Q5_K, and for Q2_K and Q3_K. */
static const uint8_t opdi_block_places[3][8] = {
    {0, 1, 2, 3, 4, 5, 6, 7}, {0, 2, 1, 3, 4, 6, 5, 7}, {0, 2, 4, 6, 1, 3, 5, 7}};
/* Returns whether the codes of a format are pairs of bits, or begin with them. */
static bool opdi_block_is_of_pairs(opd_scalar_type dtype) {
    return dtype == OPD_Q2_K || dtype == OPD_Q3_K || dtype == OPD_TQ2_0;
}
/* Writes a rounded row as opdi_block_super.  In formats with minima, the groups of 32 elements change places, because
   the codes of two groups share bytes; in formats of two bits, the codes of four groups do. */
static void opdi_block_supers(const opdi_block_form *form, int64_t wide, const opdi_block_row *row, void *out) {
    const uint8_t *const order = opdi_block_places[opdi_block_is_of_pairs(form->dtype) ? 2 : form->mins];
    opdi_block_super *to = (opdi_block_super *)out;
    for (int64_t at = 0; at < wide; at += 256, to++) {
        for (int b = 0; b < 8; b++) {
            const int8_t *const q = row->q + at + 32 * b;
            const int place = order[b];
            int32_t sum = 0, half = 0;
            memcpy(to->q + 32 * place, q, 32);
            for (int word = 0; word < 8; word++) {
                const int32_t some = q[4 * word] + q[4 * word + 1] + q[4 * word + 2] + q[4 * word + 3];
                to->bias[8 * place + word] = (uint32_t)(-form->offset * some);
                sum += some;
                half += word < 4 ? some : 0;
            }
            to->sums[b] = (int16_t)sum;
            to->halves[2 * b] = (int16_t)half;
            to->halves[2 * b + 1] = (int16_t)(sum - half);
        }
        to->d = row->d[at / 256];
    }
}

//-- AVX2 --------------------------------------------------------------------------------------------------------------

OPDI_AVX2 OPDI_ALWAYS float opdi_block_lanes8(opdi_v8f sum, opdi_v4f more) {
    float lanes[8], others[4];
    memcpy(lanes, &sum, sizeof lanes);
    memcpy(others, &more, sizeof others);
    for (int lane = 0; lane < 4; lane++) { lanes[lane] += lanes[lane + 4]; }
    return ((lanes[0] + lanes[2]) + (lanes[1] + lanes[3])) + ((others[0] + others[2]) + (others[1] + others[3]));
}
/* Returns 16 bytes from each of two places. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_gather2(const uint8_t *first, const uint8_t *second) {
    opdi_v8u both;
    __asm__("vmovdqu {%1, %x0|%x0, %1}" : "=x"(both) : "m"(*(const opdi_v16b *)first));
    __asm__("vinserti128 {$1, %1, %0, %0|%0, %0, %1, 1}" : "+x"(both) : "m"(*(const opdi_v16b *)second));
    return both;
}
/* Does what opdi_f16_at does, by one instruction. */
OPDI_AVX2 OPDI_ALWAYS float opdi_block_half1(const uint8_t *at) {
    const opdi_v4u half = {opdi_u16_at(at), 0, 0, 0};
    opdi_v4f floats;
    __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=x"(floats) : "x"(half));
    return floats[0];
}
/* Returns the float16 at four places, `step` bytes apart, as floats. */
OPDI_AVX2 OPDI_ALWAYS opdi_v4f opdi_block_halves4(const uint8_t *at, int64_t step) {
    const opdi_v2w all = {(uint64_t)opdi_u16_at(at) | (uint64_t)opdi_u16_at(at + step) << 16 |
        (uint64_t)opdi_u16_at(at + 2 * step) << 32 | (uint64_t)opdi_u16_at(at + 3 * step) << 48, 0};
    opdi_v4f floats;
    __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=x"(floats) : "x"(all));
    return floats;
}
#define OPDI_ALL8_OF(x) {x, x, x, x, x, x, x, x}
/* Returns 32 bytes, each 16 if its bit is set, else 0: 16 bits each of both halves of `bits`, whose bytes are at
   `places`. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_spread(opdi_v8u bits, opdi_v8u places) {
    const opdi_v4w each = {OPDI_BIT_OF_BYTE, OPDI_BIT_OF_BYTE, OPDI_BIT_OF_BYTE, OPDI_BIT_OF_BYTE};
    const opdi_v8u sixteens = OPDI_ALL8_OF(0x10101010u);
    opdi_v8u spread;
    OPDI_ASM_LOOK_UP(spread, bits, places);
    return (opdi_v8u)((opdi_v32b)((opdi_v4w)spread & each) == (opdi_v32b)each) & sixteens;
}
/* The scales of a block come in registers: a vector that is loaded just after its bytes were stored waits for them. */
/* Returns eight bytes from 0 to 63, less 32 each. */
OPDI_ALWAYS uint64_t opdi_block_less_32(uint64_t bytes) {
    const uint64_t signs = UINT64_C(0x8080808080808080);
    return ((bytes | signs) - UINT64_C(0x2020202020202020)) ^ signs;
}
/* Returns what opdi_q3_K_scales writes. */
OPDI_ALWAYS opdi_v16b opdi_block_scales(const uint8_t *at) {
    const uint64_t low = UINT64_C(0x0f0f0f0f0f0f0f0f), pair = 0x30303030u, high = opdi_u32_at(at + 8);
    const uint64_t s = opdi_u32_at(at) | (uint64_t)opdi_u32_at(at + 4) << 32;
    const opdi_v2w all = {opdi_block_less_32((s & low) | (high << 4 & pair) | (high << 2 & pair) << 32),
        opdi_block_less_32((s >> 4 & low) | (high & pair) | (high >> 2 & pair) << 32)};
    return (opdi_v16b)all;
}
/* Returns what opdi_iq4_xs_scales writes, one scale in each byte. */
OPDI_ALWAYS uint64_t opdi_block_scales_iq4_xs(const uint8_t *at) {
    uint64_t low = opdi_u32_at(at + 4), high = opdi_u16_at(at + 2);
    low = (low | low << 16) & UINT64_C(0x0000ffff0000ffff);
    low = (low | low << 8) & UINT64_C(0x00ff00ff00ff00ff);
    low = (low | low << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    high = (high | high << 24) & UINT64_C(0x000000ff000000ff);
    high = (high | high << 12) & UINT64_C(0x000f000f000f000f);
    high = (high | high << 6) & UINT64_C(0x0303030303030303);
    return opdi_block_less_32(low | high << 4);
}
/* Returns four bytes, numbers with signs, as floats. */
OPDI_AVX2 OPDI_ALWAYS opdi_v4f opdi_block_bytes4(uint32_t bytes) {
    const opdi_v4u all = {bytes, 0, 0, 0};
    opdi_v4u wide;
    opdi_v4f floats;
    __asm__("vpmovsxbd {%1, %0|%0, %1}" : "=x"(wide) : "x"(all));
    OPDI_ASM_FLOATS(floats, wide);
    return floats;
}
/* Returns opdi_mxfp4_scale of the bytes at four places, `step` bytes apart. */
OPDI_AVX2 OPDI_ALWAYS opdi_v4f opdi_block_powers4(const uint8_t *at, int64_t step) {
    const opdi_v4u e = {at[0], at[step], at[2 * step], at[3 * step]}, small = (opdi_v4u)(e < 2);
    return (opdi_v4f)(((e + 1) << 21 & small) | ((e - 1) << 23 & ~small));
}
/* How the codes of blocks of 32 elements are stored: nibbles, nibbles and fifth bits, bytes, or nibbles that choose
   from a table.  The codes of bytes and of IQ4_NL have signs here.  WHOLES are bytes without a sign: 128 is
   subtracted from each. */
enum { OPDI_ROW_FOURS, OPDI_ROW_FIVES, OPDI_ROW_EIGHTS, OPDI_ROW_IQ4, OPDI_ROW_FP4, OPDI_ROW_WHOLES };
/* Returns the sums of four products each of two blocks, the first at w.  Their codes begin `at` bytes after w, and
   fifth bits are before them. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_two(const opdi_block_four *x, int pair, const uint8_t *w, int bytes, int at,
                                              int kind, opdi_v8u table) {
    const opdi_v8u fifteens = OPDI_ALL8_OF(0x0f0f0f0fu);
    const opdi_v16h ones = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const opdi_v8u x_low = *(const opdi_v8u *)(const void *)(x->low + 32 * pair);
    const opdi_v8u x_high = *(const opdi_v8u *)(const void *)(x->high + 32 * pair);
    const bool eights = kind == OPDI_ROW_EIGHTS || kind == OPDI_ROW_WHOLES;
    const opdi_v8u first = opdi_block_gather2(w + at, w + at + bytes);
    const opdi_v8u lower = first & fifteens, upper = first >> 4 & fifteens;
    opdi_v8u high = eights ? opdi_block_gather2(w + at + 16, w + at + bytes + 16) : upper;
    opdi_v8u low = eights ? first : lower, whole = {0}, size, turned;
    opdi_v16h some, more;
    if (kind == OPDI_ROW_FIVES) {
        const opdi_v8u bits = {opdi_u32_at(w + at - 4), 0, 0, 0, opdi_u32_at(w + at - 4 + bytes), 0, 0, 0};
        const opdi_v8u places = {0, 0, 0x01010101u, 0x01010101u, 0, 0, 0x01010101u, 0x01010101u};
        low |= opdi_block_spread(bits, places);
        high |= opdi_block_spread(bits, places + 0x02020202u);
    }
    if (kind == OPDI_ROW_IQ4 || kind == OPDI_ROW_FP4) {
        OPDI_ASM_LOOK_UP(low, table, low);
        OPDI_ASM_LOOK_UP(high, table, high);
    }
    if (kind == OPDI_ROW_WHOLES) {
        const opdi_v8u flip = OPDI_ALL8_OF(0x80808080u);
        low ^= flip;
        high ^= flip;
    }
    if (eights || kind == OPDI_ROW_IQ4) {
        OPDI_ASM_ABS(size, low);
        OPDI_ASM_SIGN(turned, x_low, low);
        OPDI_ASM_BYTES(some, size, turned);
        OPDI_ASM_JOIN(whole, some, ones)
        OPDI_ASM_ABS(size, high);
        OPDI_ASM_SIGN(turned, x_high, high);
        OPDI_ASM_BYTES(some, size, turned);
        OPDI_ASM_JOIN(whole, some, ones)
        return whole;
    }
    OPDI_ASM_BYTES(some, low, x_low);
    OPDI_ASM_BYTES(more, high, x_high);
    some += more;
    memcpy(&whole, x->bias + 8 * pair, sizeof whole);
    OPDI_ASM_JOIN(whole, some, ones)
    return whole;
}
OPDI_AVX2 OPDI_ALWAYS float opdi_block_row_bytes(const void *rounded, const uint8_t *w, int64_t blocks, int bytes,
                                                 int at, int kind, bool mins) {
    const uint8_t *const numbers = kind == OPDI_ROW_FP4 ? opdi_block_e2m1 : (const uint8_t *)opdi_iq4_numbers;
    const opdi_v8u table = opdi_block_gather2(numbers, numbers);
    const opdi_v8u spread[2] = {{0, 0, 0, 0, 1, 1, 1, 1}, {2, 2, 2, 2, 3, 3, 3, 3}};
    const opdi_block_four *x = (const opdi_block_four *)rounded;
    uint8_t rest[4 * 34] = {0};
    opdi_v8f sum = {0};
    opdi_v4f more = {0};
    for (; blocks > 0; blocks -= 4, x++, w += 4 * bytes) {
        opdi_block_ahead(w, 4 * bytes);
        if (blocks < 4) {
            memcpy(rest, w, (size_t)(blocks * bytes));
            w = rest;
        }
        opdi_v4f scales = kind == OPDI_ROW_FP4 ? opdi_block_powers4(w, bytes) : opdi_block_halves4(w, bytes);
        scales *= *(const opdi_v4f *)(const void *)x->d;
        if (mins) { more += opdi_block_halves4(w + 2, bytes) * *(const opdi_v4f *)(const void *)x->sums; }
        for (int pair = 0; pair < 2; pair++) {
            opdi_v8f f, scale;
            const opdi_v8u whole = opdi_block_two(x, pair, w + 2 * pair * bytes, bytes, at, kind, table);
            __asm__("vpermps {%t2, %1, %0|%0, %1, %t2}" : "=x"(scale) : "x"(spread[pair]), "x"(scales));
            OPDI_ASM_FLOATS(f, whole);
            OPDI_ASM_FMA("ps", sum, f, scale);
        }
    }
    return opdi_block_lanes8(sum, more);
}
/* The formats with blocks of 32 elements: M(name, dtype, bytes of a block, place of the codes in it, kind of the codes,
   whether there are minima). */
#define OPDI_ROW_FORMATS(M) \
    M(q8_0, OPD_Q8_0, 34, 2, OPDI_ROW_EIGHTS, false) M(q4_0, OPD_Q4_0, 18, 2, OPDI_ROW_FOURS, false) \
    M(q4_1, OPD_Q4_1, 20, 4, OPDI_ROW_FOURS, true) M(q5_0, OPD_Q5_0, 22, 6, OPDI_ROW_FIVES, false) \
    M(q5_1, OPD_Q5_1, 24, 8, OPDI_ROW_FIVES, true) M(iq4_nl, OPD_IQ4_NL, 18, 2, OPDI_ROW_IQ4, false) \
    M(mxfp4, OPD_MXFP4, 17, 1, OPDI_ROW_FP4, false)
#define OPDI_ROW_BYTES(name, dtype, bytes, at, kind, mins) \
    OPDI_AVX2 static float opdi_block_bytes_##name(const void *rounded, const uint8_t *w, int64_t blocks) { \
        return opdi_block_row_bytes(rounded, w, blocks, bytes, at, kind, mins); \
    }
OPDI_ROW_FORMATS(OPDI_ROW_BYTES)

/* A place in a row of blocks of integers: the block, its next 32 codes, those before, how many 32 codes are left in the
   block and in the row. */
typedef struct opdi_int_walk { const uint8_t *block, *codes, *last; int64_t left, count; } opdi_int_walk;
/* Goes on by 32 codes.  Returns them, and sets the bits of the scale and the zero point of their block.  At the end of
   the row it stays, with a scale of 0. */
OPDI_ALWAYS const uint8_t *opdi_int_step(const opdi_block_info *info, opdi_int_walk *walk, uint64_t *scale,
                                         uint64_t *zero) {
    *scale = *zero = 0;
    if (walk->count <= 0) { return walk->last; }
    if (walk->left == 0) {
        walk->block += info->bytes;
        walk->codes = walk->block + (info->zero ? 8 : 4);
        walk->left = info->elements / 32;
    }
    *scale = opdi_u32_at(walk->block);
    if (info->zero) { *zero = opdi_u32_at(walk->block + 4); }
    walk->last = walk->codes;
    walk->codes += 4 * info->bits;
    walk->left--;
    walk->count--;
    return walk->last;
}
/* An opdi_block_row_fn for integers of 4 or 8 bits: row->q is the row as opdi_block_four. */
OPDI_AVX2 OPDI_ALWAYS float opdi_int_row_bytes(const opdi_block_form *form, int64_t k, const opdi_block_row *row,
                                               const uint8_t *w, int kind) {
    const opdi_block_info *const info = &((const opdi_int_form *)(const void *)form)->info;
    const opdi_v8u spread[2] = {{0, 0, 0, 0, 1, 1, 1, 1}, {2, 2, 2, 2, 3, 3, 3, 3}}, none = {0};
    const opdi_block_four *x = (const opdi_block_four *)(const void *)row->q;
    const uint8_t *const codes = w + (info->zero ? 8 : 4);
    opdi_int_walk walk = {w, codes, codes, info->elements / 32, k / 32};
    opdi_v8f sum = {0};
    opdi_v4f more = {0};
    for (; walk.count > 0; x++) {
        uint64_t step[4], zero[4];
        const uint8_t *const at0 = opdi_int_step(info, &walk, &step[0], &zero[0]);
        const uint8_t *const at1 = opdi_int_step(info, &walk, &step[1], &zero[1]);
        const uint8_t *const at2 = opdi_int_step(info, &walk, &step[2], &zero[2]);
        const uint8_t *const at3 = opdi_int_step(info, &walk, &step[3], &zero[3]);
        const opdi_v2w all_scales = {step[0] | step[1] << 32, step[2] | step[3] << 32};
        const opdi_v2w all_zeros = {zero[0] | zero[1] << 32, zero[2] | zero[3] << 32};
        const opdi_v4f steps = (opdi_v4f)all_scales, mins = -(opdi_v4f)all_zeros * steps;
        const opdi_v4f scales = steps * *(const opdi_v4f *)(const void *)x->d;
        more += mins * *(const opdi_v4f *)(const void *)x->sums;
        for (int pair = 0; pair < 2; pair++) {
            opdi_v8f f, scale;
            const uint8_t *const first = pair ? at2 : at0;
            const opdi_v8u whole = opdi_block_two(x, pair, first, (int)((pair ? at3 : at1) - first), 0, kind, none);
            __asm__("vpermps {%t2, %1, %0|%0, %1, %t2}" : "=x"(scale) : "x"(spread[pair]), "x"(scales));
            OPDI_ASM_FLOATS(f, whole);
            OPDI_ASM_FMA("ps", sum, f, scale);
        }
    }
    return opdi_block_lanes8(sum, more);
}
OPDI_AVX2 static float opdi_int_row_fours(const opdi_block_form *form, int64_t k, const opdi_block_row *row,
                                          const uint8_t *w) {
    return opdi_int_row_bytes(form, k, row, w, OPDI_ROW_FOURS);
}
OPDI_AVX2 static float opdi_int_row_wholes(const opdi_block_form *form, int64_t k, const opdi_block_row *row,
                                           const uint8_t *w) {
    return opdi_int_row_bytes(form, k, row, w, OPDI_ROW_WHOLES);
}
/* Writes a rounded row as opdi_block_four for opdi_int_row_fours, in which the elements with even numbers are the first
   half of a block: they lie in the low bits. */
static void opdi_int_fours(const opdi_block_form *form, int64_t wide, const opdi_block_row *row, void *out) {
    opdi_block_row turned = *row;
    for (int64_t at = 0; at < wide; at += 128) {
        int8_t q[128];
        float d[4];
        for (int i = 0; i < 128; i++) { q[i / 32 * 32 + i % 2 * 16 + i % 32 / 2] = row->q[at + i]; }
        memcpy(d, row->d + at / 32, sizeof d);
        turned.q = q;
        turned.d = d;
        opdi_block_fours(form, 128, &turned, (opdi_block_four *)out + at / 128);
    }
}

/* IQ4_XS: x is an opdi_block_four for each half of a block. */
OPDI_AVX2 static float opdi_block_bytes_iq4_xs(const void *rounded, const uint8_t *w, int64_t blocks) {
    const uint8_t *const numbers = (const uint8_t *)opdi_iq4_numbers;
    const opdi_v8u table = opdi_block_gather2(numbers, numbers);
    const opdi_v8u spread[2] = {{0, 0, 0, 0, 1, 1, 1, 1}, {2, 2, 2, 2, 3, 3, 3, 3}};
    const opdi_block_four *x = (const opdi_block_four *)rounded;
    const opdi_v4f more = {0};
    opdi_v8f sum = {0};
    for (; blocks > 0; blocks--, w += 136) {
        opdi_block_ahead(w, 136);
        const float d = opdi_block_half1(w);
        const uint64_t six = opdi_block_scales_iq4_xs(w);
        for (int half = 0; half < 2; half++, x++) {
            const opdi_v4f numbers4 = opdi_block_bytes4((uint32_t)(six >> 32 * half));
            const opdi_v4f scales = numbers4 * d * *(const opdi_v4f *)(const void *)x->d;
            for (int pair = 0; pair < 2; pair++) {
                opdi_v8f f, scale;
                const uint8_t *const q = w + 8 + 64 * half + 32 * pair;
                const opdi_v8u whole = opdi_block_two(x, pair, q, 16, 0, OPDI_ROW_IQ4, table);
                __asm__("vpermps {%t2, %1, %0|%0, %1, %t2}" : "=x"(scale) : "x"(spread[pair]), "x"(scales));
                OPDI_ASM_FLOATS(f, whole);
                OPDI_ASM_FMA("ps", sum, f, scale);
            }
        }
    }
    return opdi_block_lanes8(sum, more);
}
/* Adds to `whole` the products of 32 codes and x, multiplied by the int16 in `scale`. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_scaled(opdi_v8u whole, opdi_v8u codes, const int8_t *q, opdi_v16h scale) {
    opdi_v16h some;
    OPDI_ASM_BYTES(some, codes, *(const opdi_v8u *)(const void *)q);
    OPDI_ASM_JOIN(whole, some, scale)
    return whole;
}
/* Moves bit number `bit` of each byte to its bit number `to`, and clears the others.  Both numbers are constant. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_bit(opdi_v8u bytes, int bit, int to) {
    const opdi_v8u ones = OPDI_ALL8_OF(0x01010101u);
    return (bit < to ? bytes << (to - bit) : bytes >> (bit - to)) & ones << to;
}
/* Adds the scaled products of part number i, from 0 to 3, of a block of Q4_K or, if `fives` is true, of Q5_K, whose
   fifth bits are h.  i is constant, and so are the numbers by which bits are shifted. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_part_k(opdi_v8u whole, const uint8_t *codes, opdi_v8u h,
                                                 const opdi_block_super *x, const uint16_t *scales, int i, bool fives) {
    const opdi_v8u fifteens = OPDI_ALL8_OF(0x0f0f0f0fu);
    const int places[4] = {0, 1, 4, 5};           /* see opdi_block_places */
    opdi_v8u low;
    opdi_v16h scale;
    memcpy(&low, codes, sizeof low);
    opdi_v8u high = low >> 4 & fifteens;
    low &= fifteens;
    if (fives) {
        low |= opdi_block_bit(h, 2 * i, 4);
        high |= opdi_block_bit(h, 2 * i + 1, 4);
    }
    __asm__("vpbroadcastw {%1, %0|%0, %1}" : "=x"(scale) : "m"(scales[2 * i]));
    whole = opdi_block_scaled(whole, low, x->q + 32 * places[i], scale);
    __asm__("vpbroadcastw {%1, %0|%0, %1}" : "=x"(scale) : "m"(scales[2 * i + 1]));
    return opdi_block_scaled(whole, high, x->q + 32 * (places[i] + 2), scale);
}
/* Q4_K, and Q5_K if `fives` is true. */
OPDI_AVX2 OPDI_ALWAYS float opdi_block_bytes_k(const void *rounded, const uint8_t *w, int64_t blocks, bool fives) {
    const opdi_block_super *x = (const opdi_block_super *)rounded;
    opdi_v8f sum = {0};
    opdi_v4f more = {0};
    for (; blocks > 0; blocks--, x++, w += fives ? 176 : 144) {
        opdi_block_ahead(w, fives ? 176 : 144);
        const uint8_t *const codes = w + (fives ? 48 : 16);
        const uint32_t s0 = opdi_u32_at(w + 4), s1 = opdi_u32_at(w + 8), s2 = opdi_u32_at(w + 12);
        const opdi_v2w scales = {(s0 & 0x3f3f3f3fu) |
            (uint64_t)((s2 & 0x0f0f0f0fu) | (s0 >> 2 & 0x30303030u)) << 32, 0};
        const opdi_v2w mins = {(s1 & 0x3f3f3f3fu) |
            (uint64_t)((s2 >> 4 & 0x0f0f0f0fu) | (s1 >> 2 & 0x30303030u)) << 32, 0};
        opdi_v4u wide, wide_mins, joined;
        opdi_v4f from_mins;
        opdi_v8u whole = {0}, h = {0};
        opdi_v8f f;
        uint16_t all[8];
        __asm__("vpmovzxbw {%1, %0|%0, %1}" : "=x"(wide) : "x"(scales));
        __asm__("vpmovzxbw {%1, %0|%0, %1}" : "=x"(wide_mins) : "x"(mins));
        memcpy(all, &wide, sizeof all);
        if (fives) { memcpy(&h, w + 16, sizeof h); }
        whole = opdi_block_part_k(whole, codes, h, x, all, 0, fives);
        whole = opdi_block_part_k(whole, codes + 32, h, x, all, 1, fives);
        whole = opdi_block_part_k(whole, codes + 64, h, x, all, 2, fives);
        whole = opdi_block_part_k(whole, codes + 96, h, x, all, 3, fives);
        __asm__("vpmaddwd {%2, %1, %0|%0, %1, %2}" : "=x"(joined) : "x"(wide_mins),
                "m"(*(const opdi_v16b *)(const void *)x->sums));
        OPDI_ASM_FLOATS(from_mins, joined);
        OPDI_ASM_FLOATS(f, whole);
        sum += f * (opdi_block_half1(w) * x->d);
        more -= from_mins * (opdi_block_half1(w + 2) * x->d);
    }
    return opdi_block_lanes8(sum, more);
}
OPDI_AVX2 static float opdi_block_bytes_q4_k(const void *rounded, const uint8_t *w, int64_t blocks) {
    return opdi_block_bytes_k(rounded, w, blocks, false);
}
OPDI_AVX2 static float opdi_block_bytes_q5_k(const void *rounded, const uint8_t *w, int64_t blocks) {
    return opdi_block_bytes_k(rounded, w, blocks, true);
}
/* Returns eight times the int16 at `at`, and eight times the next one. */
OPDI_AVX2 OPDI_ALWAYS opdi_v16h opdi_block_two_scales(const int16_t *at) {
    const opdi_v8u places = {0x01000100u, 0x01000100u, 0x01000100u, 0x01000100u, 0x03020302u, 0x03020302u, 0x03020302u,
        0x03020302u};
    opdi_v16h scale;
    __asm__("vpbroadcastd {%1, %0|%0, %1}" : "=x"(scale) : "m"(*(const opdi_word32 *)(const void *)at));
    OPDI_ASM_LOOK_UP(scale, scale, places);
    return scale;
}
/* Adds the scaled products of part number i, from 0 to 7, of a block of Q2_K, Q3_K or Q6_K.  i and `bits` are constant,
   and so are the numbers by which bits are shifted. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_part_sixteens(opdi_v8u whole, const uint8_t *w, const opdi_block_super *x,
                                                        const int16_t *scales, int i, int bits) {
    const opdi_v8u threes = OPDI_ALL8_OF(0x03030303u), fifteens = OPDI_ALL8_OF(0x0f0f0f0fu);
    const int place = bits == 6 ? i : i / 4 + i % 4 * 2;       /* see opdi_block_places */
    opdi_v8u codes, high;
    if (bits == 6) {
        memcpy(&codes, w + 64 * (i / 4) + 32 * (i % 2), sizeof codes);
        memcpy(&high, w + 128 + 32 * (i / 4), sizeof high);
        codes = (i % 4 / 2 ? codes >> 4 : codes) & fifteens;
        codes |= (i % 4 == 3 ? high >> 2 : high << (4 - i % 4 * 2)) & threes << 4;
    } else {
        memcpy(&codes, w + (bits == 3 ? 32 : 16) + 32 * (i / 4), sizeof codes);
        codes = codes >> i % 4 * 2 & threes;
    }
    if (bits == 3) {
        memcpy(&high, w, sizeof high);
        codes |= opdi_block_bit(high, i, 2);
    }
    return opdi_block_scaled(whole, codes, x->q + 32 * place, opdi_block_two_scales(scales + 2 * i));
}
/* Q2_K, Q3_K or Q6_K, whose groups have 16 elements. */
OPDI_AVX2 OPDI_ALWAYS float opdi_block_bytes_sixteens(const void *rounded, const uint8_t *w, int64_t blocks, int bits) {
    const int bytes = bits == 2 ? 84 : bits == 3 ? 110 : 210, shift = bits == 3 ? 2 : 5;
    const opdi_block_super *x = (const opdi_block_super *)rounded;
    const opdi_v4f more = {0};
    opdi_v8f sum = {0};
    for (; blocks > 0; blocks--, x++, w += bytes) {
        opdi_block_ahead(w, bytes);
        opdi_v8u whole = {0}, offsets = {0}, wide;
        opdi_v8f f;
        opdi_v16h scales;
        int16_t all[16];
        opdi_v16b bytes16;
        memcpy(&bytes16, w + (bits == 6 ? 192 : 0), sizeof bytes16);
        if (bits == 3) { bytes16 = opdi_block_scales(w + 96); }
        const opdi_v16b mins = bytes16 >> 4;
        if (bits == 2) { bytes16 &= 15; }
        __asm__("vpmovsxbw {%1, %0|%0, %1}" : "=x"(wide) : "x"(bytes16));
        memcpy(all, &wide, sizeof all);
        if (bits == 2) { __asm__("vpmovzxbw {%1, %0|%0, %1}" : "=x"(wide) : "x"(mins)); }
        memcpy(&scales, &wide, sizeof scales);
        OPDI_ASM_JOIN(offsets, scales, *(const opdi_v16h *)(const void *)x->halves)
#define OPDI_PART(i) whole = opdi_block_part_sixteens(whole, w, x, all, i, bits);
        OPDI_PART(0) OPDI_PART(1) OPDI_PART(2) OPDI_PART(3) OPDI_PART(4) OPDI_PART(5) OPDI_PART(6) OPDI_PART(7)
#undef OPDI_PART
        if (bits != 2) { whole -= offsets << shift; }
        OPDI_ASM_FLOATS(f, whole);
        sum += f * (opdi_block_half1(w + (bits == 2 ? 80 : bits == 3 ? 108 : 208)) * x->d);
        if (bits == 2) {
            OPDI_ASM_FLOATS(f, offsets);
            sum -= f * (opdi_block_half1(w + 82) * x->d);
        }
    }
    return opdi_block_lanes8(sum, more);
}
OPDI_AVX2 static float opdi_block_bytes_q2_k(const void *rounded, const uint8_t *w, int64_t blocks) {
    return opdi_block_bytes_sixteens(rounded, w, blocks, 2);
}
OPDI_AVX2 static float opdi_block_bytes_q3_k(const void *rounded, const uint8_t *w, int64_t blocks) {
    return opdi_block_bytes_sixteens(rounded, w, blocks, 3);
}
OPDI_AVX2 static float opdi_block_bytes_q6_k(const void *rounded, const uint8_t *w, int64_t blocks) {
    return opdi_block_bytes_sixteens(rounded, w, blocks, 6);
}
OPDI_AVX2 static float opdi_block_bytes_tq2_0(const void *rounded, const uint8_t *w, int64_t blocks) {
    const opdi_v8u threes = OPDI_ALL8_OF(0x03030303u), ones = OPDI_ALL8_OF(0x00010001u);
    const opdi_block_super *x = (const opdi_block_super *)rounded;
    const opdi_v4f more = {0};
    opdi_v8f sum = {0};
    for (; blocks > 0; blocks--, x++, w += 66) {
        opdi_block_ahead(w, 66);
        opdi_v8u whole = {0}, first, second;
        opdi_v16h some, pairs = -*(const opdi_v16h *)(const void *)x->halves;       /* at most 64 * 127 */
        opdi_v8f f;
        memcpy(&first, w, sizeof first);
        memcpy(&second, w + 32, sizeof second);
#define OPDI_PART(i) { \
            const opdi_v8u code = ((i) % 2 ? second : first) >> (i) / 2 * 2 & threes; \
            OPDI_ASM_BYTES(some, code, *(const opdi_v8u *)(const void *)(x->q + 32 * (i))); \
            pairs += some; \
        }
        OPDI_PART(0) OPDI_PART(1) OPDI_PART(2) OPDI_PART(3) OPDI_PART(4) OPDI_PART(5) OPDI_PART(6) OPDI_PART(7)
#undef OPDI_PART
        OPDI_ASM_JOIN(whole, pairs, ones)
        OPDI_ASM_FLOATS(f, whole);
        sum += f * (opdi_block_half1(w + 64) * x->d);
    }
    return opdi_block_lanes8(sum, more);
}
#endif
#if defined(OPDI_WORDS)

//-- AVX512_VNNI -------------------------------------------------------------------------------------------------------

typedef uint16_t opdi_v32h __attribute__((vector_size(64), aligned(2), may_alias));

OPDI_AVX512 OPDI_ALWAYS float opdi_block_lanes(opdi_v16f sum, opdi_v4f more) {
    opdi_v8f low, high;
    memcpy(&low, &sum, sizeof low);
    __asm__("vextractf64x4 {$1, %1, %0|%0, %1, 1}" : "=v"(high) : "v"(sum));
    return opdi_block_lanes8(low + high, more);
}
/* Returns a vector of 16 bytes from each of four places, `step` bytes apart. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16u opdi_block_gather(const uint8_t *at, int64_t step) {
    opdi_v16u all;
    __asm__("vmovdqu32 {%1, %x0|%x0, %1}" : "=v"(all) : "m"(*(const opdi_v16b *)at));
    __asm__("vinserti32x4 {$1, %1, %0, %0|%0, %0, %1, 1}" : "+v"(all) : "m"(*(const opdi_v16b *)(at + step)));
    __asm__("vinserti32x4 {$2, %1, %0, %0|%0, %0, %1, 2}" : "+v"(all) : "m"(*(const opdi_v16b *)(at + 2 * step)));
    __asm__("vinserti32x4 {$3, %1, %0, %0|%0, %0, %1, 3}" : "+v"(all) : "m"(*(const opdi_v16b *)(at + 3 * step)));
    return all;
}
/* Returns the float16 at four places, `step` bytes apart, as floats. */
OPDI_AVX512 OPDI_ALWAYS opdi_v4f opdi_block_halves(const uint8_t *at, int64_t step) {
    const opdi_v2w all = {(uint64_t)opdi_u16_at(at) | (uint64_t)opdi_u16_at(at + step) << 16 |
        (uint64_t)opdi_u16_at(at + 2 * step) << 32 | (uint64_t)opdi_u16_at(at + 3 * step) << 48, 0};
    opdi_v4f floats;
    __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=v"(floats) : "v"(all));
    return floats;
}
/* Returns the codes of a table of 16 bytes, four times in `table`. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16u opdi_block_look_up(opdi_v16u table, opdi_v16u codes) {
    opdi_v16u found;
    __asm__("vpshufb {%2, %1, %0|%0, %1, %2}" : "=v"(found) : "v"(table), "v"(codes));
    return found;
}
/* Adds 16 to the bytes of `codes` that belong to the bits of `high`. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16u opdi_block_fifths(opdi_v16u codes, uint64_t high, opdi_v16u sixteens) {
    __asm__("vpaddb {%2, %0, %0%{%1%}|%0%{%1%}, %0, %2}" : "+v"(codes) : "Yk"(high), "v"(sixteens));
    return codes;
}

#define OPDI_ALL16(x) {x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}
#define OPDI_ALL8(x) x, x, x, x, x, x, x, x
/* Sets *low and *high to the codes of the first and last 16 elements of four blocks at w, whose nibbles or bytes begin
   at byte `at`.  For OPDI_ROW_FIVES, the fifth bits are in the four bytes before.  For OPDI_ROW_IQ4 and OPDI_ROW_FP4,
   `table` has the numbers for which codes stand. */
OPDI_AVX512 OPDI_ALWAYS void opdi_block_codes(const uint8_t *w, int bytes, int at, int kind, opdi_v16u table,
                                              opdi_v16u *low, opdi_v16u *high) {
    const opdi_v16u fifteens = OPDI_ALL16(0x0f0f0f0fu), flips = OPDI_ALL16(0x80808080u);
    const opdi_v16u sixteens = OPDI_ALL16(0x10101010u), both = opdi_block_gather(w + at, bytes);
    if (kind == OPDI_ROW_EIGHTS) {
        *low = both ^ flips;
        *high = opdi_block_gather(w + at + 16, bytes) ^ flips;
        return;
    }
    *high = both >> 4 & fifteens;
    *low = both & fifteens;
    if (kind == OPDI_ROW_FIVES) {
        const uint8_t *const bits = w + at - 4;
        const uint64_t h0 = opdi_u32_at(bits), h1 = opdi_u32_at(bits + bytes);
        const uint64_t h2 = opdi_u32_at(bits + 2 * bytes), h3 = opdi_u32_at(bits + 3 * bytes);
        *low = opdi_block_fifths(*low, (h0 & 0xffff) | (h1 & 0xffff) << 16 | (h2 & 0xffff) << 32 | h3 << 48, sixteens);
        *high = opdi_block_fifths(*high, h0 >> 16 | (h1 & 0xffff0000u) | (h2 >> 16) << 32 | (h3 >> 16) << 48,
                                  sixteens);
    }
    if (kind == OPDI_ROW_IQ4 || kind == OPDI_ROW_FP4) {
        *low = opdi_block_look_up(table, *low);
        *high = opdi_block_look_up(table, *high);
    }
}
/* Multiplies a row of `blocks` blocks of 32 elements in `bytes` bytes.  mins: whether float16 minima follow the scales.
   For the other arguments, see opdi_block_codes. */
OPDI_AVX512 OPDI_ALWAYS float opdi_block_row_quads(const void *rounded, const uint8_t *w, int64_t blocks, int bytes,
                                                   int at, int kind, bool mins) {
    const opdi_v16u spread = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    const opdi_v16u table = opdi_block_gather(kind == OPDI_ROW_FP4 ? opdi_block_e2m1 : opdi_block_curve, 0);
    const opdi_block_four *x = (const opdi_block_four *)rounded;
    uint8_t rest[4 * 34] = {0};
    opdi_v16f sum = {0};
    opdi_v4f more = {0};
    for (; blocks > 0; blocks -= 4, x++, w += 4 * bytes) {
        opdi_block_ahead(w, 4 * bytes);
        if (blocks < 4) {
            memcpy(rest, w, (size_t)(blocks * bytes));
            w = rest;
        }
        opdi_v16u whole = {0}, low, high;
        opdi_v16f f, scale;
        opdi_v4f scales = kind == OPDI_ROW_FP4 ? opdi_block_powers4(w, bytes) : opdi_block_halves(w, bytes);
        opdi_block_codes(w, bytes, at, kind, table, &low, &high);
        if (!mins) { memcpy(&whole, x->bias, sizeof whole); }
        OPDI_ASM_QUADS(whole, low, *(const opdi_v16u *)(const void *)x->low);
        OPDI_ASM_QUADS(whole, high, *(const opdi_v16u *)(const void *)x->high);
        scales *= *(const opdi_v4f *)(const void *)x->d;
        __asm__("vpermps {%g2, %1, %0|%0, %1, %g2}" : "=v"(scale) : "v"(spread), "v"(scales));
        OPDI_ASM_FLOATS(f, whole);
        OPDI_ASM_FMA("ps", sum, f, scale);
        if (mins) { more += opdi_block_halves(w + 2, bytes) * *(const opdi_v4f *)(const void *)x->sums; }
    }
    return opdi_block_lanes(sum, more);
}
#define OPDI_ROW_QUADS(name, dtype, bytes, at, kind, mins) \
    OPDI_AVX512 static float opdi_block_row_##name(const void *rounded, const uint8_t *w, int64_t blocks) { \
        return opdi_block_row_quads(rounded, w, blocks, bytes, at, kind, mins); \
    }
OPDI_ROW_FORMATS(OPDI_ROW_QUADS)

/* OPDI_ASM_SHORTS adds to each int32 of c the products of the two int16 in the same lane of a and of b. */
#define OPDI_ASM_SHORTS(c, a, b) __asm__("vpdpwssd {%2, %1, %0|%0, %1, %2}" : "+v"(c) : "v"(a), "v"(b))
/* Returns the 32 bytes at `at`, twice. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16u opdi_block_twice(const uint8_t *at) {
    opdi_v16u all;
    __asm__("vbroadcasti64x4 {%1, %0|%0, %1}" : "=v"(all) : "m"(*(const opdi_v32b *)(const void *)at));
    return all;
}
/* Multiplies the codes of two groups by x, which may begin with sums.  Returns both results as int16 in each lane. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16u opdi_block_both(opdi_v16u low, opdi_v16u high, const int8_t *q, opdi_v16u first,
                                                  opdi_v16u second) {
    const opdi_v16u lower = OPDI_ALL16(0xffffu);
    OPDI_ASM_QUADS(first, low, *(const opdi_v16u *)(const void *)q);
    OPDI_ASM_QUADS(second, high, *(const opdi_v16u *)(const void *)(q + 64));
    return second << 16 | (first & lower);
}
/* Q4_K, and Q5_K if `fives` is true. */
OPDI_AVX512 OPDI_ALWAYS float opdi_block_row_k(const void *rounded, const uint8_t *w, int64_t blocks, bool fives) {
    const opdi_v16u fifteens = OPDI_ALL16(0x0f0f0f0fu), zeros = {0};
    const opdi_v16u first = {OPDI_ALL8(0), OPDI_ALL8(1)}, second = {OPDI_ALL8(2), OPDI_ALL8(3)};
    const opdi_v16u bits[4] = {{OPDI_ALL8(0x01010101u), OPDI_ALL8(0x04040404u)},
        {OPDI_ALL8(0x02020202u), OPDI_ALL8(0x08080808u)}, {OPDI_ALL8(0x10101010u), OPDI_ALL8(0x40404040u)},
        {OPDI_ALL8(0x20202020u), OPDI_ALL8(0x80808080u)}};
    const opdi_v16u by[4] = {{OPDI_ALL8(4), OPDI_ALL8(2)}, {OPDI_ALL8(3), OPDI_ALL8(1)}, {OPDI_ALL8(0), OPDI_ALL8(2)},
        {OPDI_ALL8(1), OPDI_ALL8(3)}};
    const opdi_block_super *x = (const opdi_block_super *)rounded;
    opdi_v16f sum = {0};
    opdi_v4f more = {0};
    for (; blocks > 0; blocks--, x++, w += fives ? 176 : 144) {
        opdi_block_ahead(w, fives ? 176 : 144);
        const uint8_t *const q = w + (fives ? 48 : 16);
        const uint32_t s0 = opdi_u32_at(w + 4), s1 = opdi_u32_at(w + 8), s2 = opdi_u32_at(w + 12);
        const opdi_v2w scales = {(s0 & 0x3f3f3f3fu) |
            (uint64_t)((s2 & 0x0f0f0f0fu) | (s0 >> 2 & 0x30303030u)) << 32, 0};
        const opdi_v2w mins = {(s1 & 0x3f3f3f3fu) |
            (uint64_t)((s2 >> 4 & 0x0f0f0f0fu) | (s1 >> 2 & 0x30303030u)) << 32, 0};
        const opdi_v4u halves = {opdi_u32_at(w), 0, 0, 0};
        opdi_v4u wide, wide_mins, joined;
        opdi_v4f d, from_mins;
        opdi_v16u whole = {0}, scale0, scale1;
        opdi_v16u low0, low1;
        memcpy(&low0, q, sizeof low0);
        memcpy(&low1, q + 64, sizeof low1);
        opdi_v16u high0 = low0 >> 4 & fifteens, high1 = low1 >> 4 & fifteens;
        low0 &= fifteens;
        low1 &= fifteens;
        if (fives) {
            const opdi_v16u h = opdi_block_twice(w + 16);
            low0 |= (h & bits[0]) << by[0];
            high0 |= (h & bits[1]) << by[1];
            low1 |= (h & bits[2]) >> by[2];
            high1 |= (h & bits[3]) >> by[3];
        }
        __asm__("vpmovzxbw {%1, %0|%0, %1}" : "=v"(wide) : "v"(scales));
        __asm__("vpmovzxbw {%1, %0|%0, %1}" : "=v"(wide_mins) : "v"(mins));
        __asm__("vpermd {%g2, %1, %0|%0, %1, %g2}" : "=v"(scale0) : "v"(first), "v"(wide));
        __asm__("vpermd {%g2, %1, %0|%0, %1, %g2}" : "=v"(scale1) : "v"(second), "v"(wide));
        OPDI_ASM_SHORTS(whole, opdi_block_both(low0, high0, x->q, zeros, zeros), scale0);
        OPDI_ASM_SHORTS(whole, opdi_block_both(low1, high1, x->q + 128, zeros, zeros), scale1);
        __asm__("vpmaddwd {%2, %1, %0|%0, %1, %2}" : "=v"(joined) : "v"(wide_mins),
                "m"(*(const opdi_v16b *)(const void *)x->sums));
        __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=v"(d) : "v"(halves));
        OPDI_ASM_FLOATS(from_mins, joined);
        opdi_v16f f;
        const float scale = d[0] * x->d, min = d[1] * x->d;
        OPDI_ASM_FLOATS(f, whole);
        sum += f * scale;
        more -= from_mins * min;
    }
    return opdi_block_lanes(sum, more);
}
OPDI_AVX512 static float opdi_block_row_q4_k(const void *rounded, const uint8_t *w, int64_t blocks) {
    return opdi_block_row_k(rounded, w, blocks, false);
}
OPDI_AVX512 static float opdi_block_row_q5_k(const void *rounded, const uint8_t *w, int64_t blocks) {
    return opdi_block_row_k(rounded, w, blocks, true);
}
OPDI_AVX512 static float opdi_block_row_q6_k(const void *rounded, const uint8_t *w, int64_t blocks) {
    const opdi_v16u fifteens = OPDI_ALL16(0x0f0f0f0fu);
    const opdi_v16u bits[2] = {{OPDI_ALL8(0x03030303u), OPDI_ALL8(0x0c0c0c0cu)},
        {OPDI_ALL8(0x30303030u), OPDI_ALL8(0xc0c0c0c0u)}};
    const opdi_v16u by[2] = {{OPDI_ALL8(4), OPDI_ALL8(2)}, {OPDI_ALL8(0), OPDI_ALL8(2)}};
#define OPDI_PAIRS4(i) i, (i) + 4, i, (i) + 4, i, (i) + 4, i, (i) + 4
    const opdi_v32h first = {OPDI_PAIRS4(0), OPDI_PAIRS4(1), OPDI_PAIRS4(2), OPDI_PAIRS4(3)};
    const opdi_v32h second = {OPDI_PAIRS4(8), OPDI_PAIRS4(9), OPDI_PAIRS4(10), OPDI_PAIRS4(11)};
    const opdi_block_super *x = (const opdi_block_super *)rounded;
    opdi_v16f sum = {0};
    const opdi_v4f more = {0};
    for (; blocks > 0; blocks--, x++, w += 210) {
        opdi_block_ahead(w, 210);
        const opdi_v16u *const bias = (const opdi_v16u *)(const void *)x->bias;
        opdi_v16u whole = {0}, scale;
        opdi_v8u wide;
        opdi_v16f f;
        __asm__("vpmovsxbw {%1, %0|%0, %1}" : "=v"(wide) : "m"(*(const opdi_v16b *)(w + 192)));
        for (int half = 0; half < 2; half++) {
            const opdi_v16u h = opdi_block_twice(w + 128 + 32 * half);
            opdi_v16u low;
            memcpy(&low, w + 64 * half, sizeof low);
            const opdi_v16u high = (low >> 4 & fifteens) | (h & bits[1]) >> by[1];
            low = (low & fifteens) | (h & bits[0]) << by[0];
            __asm__("vpermw {%g2, %1, %0|%0, %1, %g2}" : "=v"(scale) : "v"(half ? second : first), "v"(wide));
            low = opdi_block_both(low, high, x->q + 128 * half, bias[2 * half], bias[2 * half + 1]);
            OPDI_ASM_SHORTS(whole, low, scale);
        }
        OPDI_ASM_FLOATS(f, whole);
        sum += f * (opdi_block_half1(w + 208) * x->d);
    }
    return opdi_block_lanes(sum, more);
}
/* Returns two bits of each byte, the lowest ones after a shift by 2 * part. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16u opdi_block_pair(opdi_v16u q, int part) {
    const opdi_v16u threes = OPDI_ALL16(0x03030303u);
    return q >> 2 * part & threes;
}
/* Q2_K, and Q3_K if `threes` is true.  Part number i of the codes has elements 32 i to 32 i + 31 of both halves of the
   block. */
OPDI_AVX512 OPDI_ALWAYS float opdi_block_row_few_bits(const void *rounded, const uint8_t *w, int64_t blocks,
                                                      bool threes) {
    const opdi_v16u zeros = {0}, lowest = {OPDI_ALL8(0x01010101u), OPDI_ALL8(0x10101010u)};
#define OPDI_PAIRS2(i) i, (i) + 2, i, (i) + 2, i, (i) + 2, i, (i) + 2
    const opdi_v32h first = {OPDI_PAIRS2(0), OPDI_PAIRS2(1), OPDI_PAIRS2(8), OPDI_PAIRS2(9)};
    const opdi_v32h second = {OPDI_PAIRS2(4), OPDI_PAIRS2(5), OPDI_PAIRS2(12), OPDI_PAIRS2(13)};
    const opdi_v16u fours = OPDI_ALL16(0x04040404u), down = {OPDI_ALL8(0), OPDI_ALL8(4)};
    const opdi_block_super *x = (const opdi_block_super *)rounded;
    opdi_v16f sum = {0};
    opdi_v8f more = {0};
    for (; blocks > 0; blocks--, x++, w += threes ? 110 : 84) {
        opdi_block_ahead(w, threes ? 110 : 84);
        const opdi_v16u *const bias = (const opdi_v16u *)(const void *)x->bias;
        opdi_v16u codes[4], whole = {0}, scale, q;
        opdi_v8u wide;
        opdi_v16f f;
        memcpy(&q, w + (threes ? 32 : 16), sizeof q);
        for (int part = 0; part < 4; part++) { codes[part] = opdi_block_pair(q, part); }
        if (threes) {
            const opdi_v16u h = opdi_block_twice(w);
            codes[0] |= ((h & lowest) << 2) >> down & fours;
            codes[1] |= ((h & lowest << 1) << 1) >> down & fours;
            codes[2] |= (h & lowest << 2) >> down & fours;
            codes[3] |= ((h & lowest << 3) >> 1) >> down & fours;
            __asm__("vpmovsxbw {%1, %0|%0, %1}" : "=v"(wide) : "v"(opdi_block_scales(w + 96)));
        } else {
            opdi_v16b all;
            opdi_v8u wide_mins, joined;
            opdi_v8f from_mins;
            memcpy(&all, w, sizeof all);
            const opdi_v16b low = all & 15, high = all >> 4;
            __asm__("vpmovzxbw {%1, %0|%0, %1}" : "=v"(wide) : "v"(low));
            __asm__("vpmovzxbw {%1, %0|%0, %1}" : "=v"(wide_mins) : "v"(high));
            __asm__("vpmaddwd {%2, %1, %0|%0, %1, %2}" : "=v"(joined) : "v"(wide_mins),
                    "m"(*(const opdi_v8u *)(const void *)x->halves));
            OPDI_ASM_FLOATS(from_mins, joined);
            more -= from_mins * (opdi_block_half1(w + 82) * x->d);
        }
        __asm__("vpermw {%g2, %1, %0|%0, %1, %g2}" : "=v"(scale) : "v"(first), "v"(wide));
        OPDI_ASM_SHORTS(whole, opdi_block_both(codes[0], codes[1], x->q, threes ? bias[0] : zeros,
                                               threes ? bias[1] : zeros), scale);
        __asm__("vpermw {%g2, %1, %0|%0, %1, %g2}" : "=v"(scale) : "v"(second), "v"(wide));
        OPDI_ASM_SHORTS(whole, opdi_block_both(codes[2], codes[3], x->q + 128, threes ? bias[2] : zeros,
                                               threes ? bias[3] : zeros), scale);
        OPDI_ASM_FLOATS(f, whole);
        sum += f * (opdi_block_half1(w + (threes ? 108 : 80)) * x->d);
    }
    float lanes[8];
    memcpy(lanes, &more, sizeof lanes);
    const opdi_v4f rest = {lanes[0] + lanes[4], lanes[1] + lanes[5], lanes[2] + lanes[6], lanes[3] + lanes[7]};
    return opdi_block_lanes(sum, rest);
}
OPDI_AVX512 static float opdi_block_row_q2_k(const void *rounded, const uint8_t *w, int64_t blocks) {
    return opdi_block_row_few_bits(rounded, w, blocks, false);
}
OPDI_AVX512 static float opdi_block_row_q3_k(const void *rounded, const uint8_t *w, int64_t blocks) {
    return opdi_block_row_few_bits(rounded, w, blocks, true);
}
OPDI_AVX512 static float opdi_block_row_tq2_0(const void *rounded, const uint8_t *w, int64_t blocks) {
    const opdi_block_super *x = (const opdi_block_super *)rounded;
    const opdi_v4f more = {0};
    opdi_v16f sum = {0};
    for (; blocks > 0; blocks--, x++, w += 66) {
        opdi_block_ahead(w, 66);
        const opdi_v16u *const bias = (const opdi_v16u *)(const void *)x->bias;
        const opdi_v16u *const q = (const opdi_v16u *)(const void *)x->q;
        opdi_v16u codes, whole = bias[0] + bias[1], more_whole = bias[2] + bias[3];
        opdi_v16f f;
        memcpy(&codes, w, sizeof codes);
        OPDI_ASM_QUADS(whole, opdi_block_pair(codes, 0), q[0]);
        OPDI_ASM_QUADS(more_whole, opdi_block_pair(codes, 1), q[1]);
        OPDI_ASM_QUADS(whole, opdi_block_pair(codes, 2), q[2]);
        OPDI_ASM_QUADS(more_whole, opdi_block_pair(codes, 3), q[3]);
        whole += more_whole;
        OPDI_ASM_FLOATS(f, whole);
        sum += f * (opdi_block_half1(w + 64) * x->d);
    }
    return opdi_block_lanes(sum, more);
}
/* IQ4_XS: x is an opdi_block_four for each half of a block. */
OPDI_AVX512 static float opdi_block_row_iq4_xs(const void *rounded, const uint8_t *w, int64_t blocks) {
    const opdi_v16u spread = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3}, fifteens = OPDI_ALL16(0x0f0f0f0fu);
    const opdi_v16u curve = opdi_block_gather(opdi_block_curve, 0);
    const opdi_block_four *x = (const opdi_block_four *)rounded;
    opdi_v16f sum = {0};
    const opdi_v4f more = {0};
    for (; blocks > 0; blocks--, w += 136) {
        opdi_block_ahead(w, 136);
        const float d = opdi_block_half1(w);
        const uint64_t six = opdi_block_scales_iq4_xs(w);
        for (int half = 0; half < 2; half++, x++) {
            opdi_v16u whole, low;
            opdi_v16f f, scale;
            opdi_v4f scales = opdi_block_bytes4((uint32_t)(six >> 32 * half));
            memcpy(&low, w + 8 + 64 * half, sizeof low);
            memcpy(&whole, x->bias, sizeof whole);
            const opdi_v16u high = opdi_block_look_up(curve, low >> 4 & fifteens);
            low = opdi_block_look_up(curve, low & fifteens);
            OPDI_ASM_QUADS(whole, low, *(const opdi_v16u *)(const void *)x->low);
            OPDI_ASM_QUADS(whole, high, *(const opdi_v16u *)(const void *)x->high);
            scales *= *(const opdi_v4f *)(const void *)x->d * d;
            __asm__("vpermps {%g2, %1, %0|%0, %1, %g2}" : "=v"(scale) : "v"(spread), "v"(scales));
            OPDI_ASM_FLOATS(f, whole);
            OPDI_ASM_FMA("ps", sum, f, scale);
        }
    }
    return opdi_block_lanes(sum, more);
}
#endif

#if defined(OPDI_DOT)
/* An opdi_block_row_fn for processors with OPDI_ASM_DOTS. */
OPDI_DOT static float opdi_block_row_dots(const opdi_block_form *form, int64_t k, const opdi_block_row *row,
                                          const uint8_t *w) {
    const uint32_t sign = form->offset == 128 ? 0x80808080u : 0;
    const opdi_v4u flip = {sign, sign, sign, sign};
    opdi_v4f lanes = {0};
    float sum = 0, each[4];
    for (int64_t at = 0; at < k; at += form->elements, w += form->bytes) {
        uint8_t codes[256];
        float scales[16], mins[16];
        form->unpack(w, codes, scales, mins);
        for (int i = 0; i < form->elements; i += form->sub) {
            const int64_t sub = (at + i) / form->sub;
            const float d = row->d[(at + i) / form->chunk], scale = scales[i / form->sub] * d;
            opdi_v4u whole = {0};
            opdi_v4f f;
            for (int j = i; j < i + form->sub; j += 16) {
                const opdi_v4u code = *(const opdi_v4u *)(const void *)(codes + j) ^ flip;
                OPDI_ASM_DOTS(whole, code, *(const opdi_v4u *)(const void *)(row->q + at + j));
            }
            OPDI_ASM_FLOATS(f, whole);
            lanes += f * scale;
            if (form->mins) { sum += mins[i / form->sub] * d * opdi_float(row->sums[sub]); }
            else if (!sign) { sum += (float)(int32_t)row->sums[sub] * scale; }
        }
    }
    memcpy(each, &lanes, sizeof each);
    return ((each[0] + each[2]) + (each[1] + each[3])) + sum;
}
#endif

/* The functions for rows of one format: `turn` writes a rounded row in the order that `row` needs, in `bytes` bytes per
   `elements` elements; `row` returns the product of such a row and `blocks` blocks. */
typedef struct opdi_block_ways {
    opd_scalar_type dtype;
    int elements, bytes, block;
    void (*turn)(const opdi_block_form *form, int64_t wide, const opdi_block_row *row, void *out);
    float (*row)(const void *rounded, const uint8_t *w, int64_t blocks);
} opdi_block_ways;
#if defined(OPDI_X86)
#define OPDI_WAYS_FOUR 128, (int)sizeof(opdi_block_four), 32, opdi_block_fours
#define OPDI_WAYS_SUPER 256, (int)sizeof(opdi_block_super), 256, opdi_block_supers
#define OPDI_WAYS_BYTES(name, dtype, bytes, at, kind, mins) {dtype, OPDI_WAYS_FOUR, opdi_block_bytes_##name},
static const opdi_block_ways opdi_block_ways_bytes[] = {
    {OPD_Q4_K, OPDI_WAYS_SUPER, opdi_block_bytes_q4_k}, {OPD_Q5_K, OPDI_WAYS_SUPER, opdi_block_bytes_q5_k},
    {OPD_Q6_K, OPDI_WAYS_SUPER, opdi_block_bytes_q6_k}, {OPD_Q2_K, OPDI_WAYS_SUPER, opdi_block_bytes_q2_k},
    {OPD_Q3_K, OPDI_WAYS_SUPER, opdi_block_bytes_q3_k}, {OPD_TQ2_0, OPDI_WAYS_SUPER, opdi_block_bytes_tq2_0},
    {OPD_IQ4_XS, 128, (int)sizeof(opdi_block_four), 256, opdi_block_fours, opdi_block_bytes_iq4_xs},
    OPDI_ROW_FORMATS(OPDI_WAYS_BYTES)};
#endif
#if defined(OPDI_WORDS)
#define OPDI_WAYS_QUADS(name, dtype, bytes, at, kind, mins) {dtype, OPDI_WAYS_FOUR, opdi_block_row_##name},
static const opdi_block_ways opdi_block_ways_quads[] = {
    {OPD_Q4_K, OPDI_WAYS_SUPER, opdi_block_row_q4_k}, {OPD_Q5_K, OPDI_WAYS_SUPER, opdi_block_row_q5_k},
    {OPD_Q6_K, OPDI_WAYS_SUPER, opdi_block_row_q6_k}, {OPD_Q2_K, OPDI_WAYS_SUPER, opdi_block_row_q2_k},
    {OPD_Q3_K, OPDI_WAYS_SUPER, opdi_block_row_q3_k}, {OPD_TQ2_0, OPDI_WAYS_SUPER, opdi_block_row_tq2_0},
    {OPD_IQ4_XS, 128, (int)sizeof(opdi_block_four), 256, opdi_block_fours, opdi_block_row_iq4_xs},
    OPDI_ROW_FORMATS(OPDI_WAYS_QUADS)};
#endif
/* A product of few rows. */
typedef struct opdi_block_few {
    const opdi_block_rounded *x;
    const opdi_block_ways *ways;
    opdi_block_row_fn *row;                       /* without ways */
    char *turned;                                 /* rows in another order; NULL: none */
    int64_t bytes;                                /* of a row in `turned` */
} opdi_block_few;
/* An opdi_range_fn: computes the columns begin .. end - 1 of y. */
static void opdi_block_few_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_block_few *const few = (const opdi_block_few *)ctx;
    const opdi_block_job *const job = few->x->job;
    for (int64_t j = begin; j < end; j++) {
        const uint8_t *const w = (const uint8_t *)job->w + j * job->w_stride;
        for (int64_t i = 0; i < job->m; i++) {
            float *const y = job->y + i * job->y_stride + j;
            if (few->ways) { *y = few->ways->row(few->turned + i * few->bytes, w, job->k / few->ways->block); }
            else {
                opdi_block_row row = opdi_block_row_at(few->x, i);
                if (few->turned) { row.q = (int8_t *)few->turned + i * few->bytes; }
                *y = few->row(few->x->form, job->k, &row, w);
            }
        }
    }
}
/* Returns the functions for rows of a format, or NULL if it has none. */
static const opdi_block_ways *opdi_block_ways_of(opd_scalar_type dtype) {
#if defined(OPDI_X86)
    const opdi_block_ways *ways = opdi_block_ways_bytes;
    size_t count = opdi_cpu_level() > 0 ? sizeof opdi_block_ways_bytes / sizeof *ways : 0;
#if defined(OPDI_WORDS)
    if (opdi_cpu_words() & OPDI_HAS_QUADS) {
        ways = opdi_block_ways_quads;
        count = sizeof opdi_block_ways_quads / sizeof *ways;
    }
#endif
    for (size_t i = 0; i < count; i++) {
        if (ways[i].dtype == dtype) { return &ways[i]; }
    }
#else
    (void)dtype;
#endif
    return NULL;
}
/* Computes the product if it has few rows.  Returns 1, or 0 if it has not, or -1 with an error. */
OPDI_INTERNAL int opdi_block_few_try(const opdi_block_rounded *x) {
    const opdi_block_job *const job = x->job;
    const int64_t wide = opdi_round_up(job->k, 256), grain = OPDI_MAX(1, 32768 / job->k);
    opdi_block_few few = {x, opdi_block_ways_of(job->dtype), x->form->row, NULL, 0};
#if defined(OPDI_DOT)
    if (opdi_cpu_words() & OPDI_HAS_QUADS) { few.row = opdi_block_row_dots; }
#endif
    void (*turn)(const opdi_block_form *form, int64_t wide, const opdi_block_row *row, void *out) = NULL;
    if (few.ways) {
        turn = few.ways->turn;
        few.bytes = wide / few.ways->elements * few.ways->bytes;
    }
#if defined(OPDI_X86)
    if (x->ints && (x->ints->bits == 4 || x->ints->bits == 8) && opdi_cpu_level() > 0) {
        turn = x->ints->bits == 4 ? opdi_int_fours : opdi_block_fours;
        few.row = x->ints->bits == 4 ? opdi_int_row_fours : opdi_int_row_wholes;
        few.bytes = wide / 128 * (int64_t)sizeof(opdi_block_four);
    }
#endif
    const int most = turn && !(x->ints && x->ints->bits == 8) ? OPDI_BLOCK_MOST : OPDI_BLOCK_LEAST;
    if (job->m > most || (x->ints && !turn) || opd_same_bits()) { return 0; }
    if (!turn) {
        opdi_parallel_for(job->n, grain, opdi_block_few_range, &few);
        return 1;
    }
    char *const memory = opdi_scratch_alloc((size_t)(few.bytes * job->m) + 64);
    if (!memory) { return -1; }
    few.turned = memory + (64 - ((uintptr_t)memory & 63)) % 64;
    for (int64_t i = 0; i < job->m; i++) {
        const opdi_block_row row = opdi_block_row_at(x, i);
        turn(x->form, wide, &row, few.turned + i * few.bytes);
    }
    opdi_parallel_for(job->n, grain, opdi_block_few_range, &few);
    opdi_scratch_free(memory, (size_t)(few.bytes * job->m) + 64);
    return 1;
}
