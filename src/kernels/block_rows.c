#include "block_rows.h"

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

#if defined(OPDI_X86)
/* How the codes of blocks are stored: nibbles, nibbles and fifth bits, bytes, nibbles that choose from a table, bits,
   or pairs of bits.  The codes of bytes and of IQ4_NL have signs here.  WHOLES are bytes without a sign: 128 is
   subtracted from each.  NVFP4 has the codes of FP4, with a scale for each 16. */
enum { OPDI_ROW_FOURS, OPDI_ROW_FIVES, OPDI_ROW_EIGHTS, OPDI_ROW_IQ4, OPDI_ROW_FP4, OPDI_ROW_WHOLES, OPDI_ROW_NVFP4,
    OPDI_ROW_ONES, OPDI_ROW_TWOS };
/* Returns the place of element i, from 0 to 127, in four groups of 32, of which an opdi_block_four has the first halves
   and the second halves.  FOURS are integers of 4 bits here: elements with even numbers lie in the low bits. */
static int opdi_block_place(int kind, int i) {
    switch (kind) {
        case OPDI_ROW_FOURS: return i / 32 * 32 + i % 2 * 16 + i % 32 / 2;
        case OPDI_ROW_TWOS: return i / 64 * 64 + i % 2 * 32 + i % 4 / 2 * 16 + i % 64 / 4;
        case OPDI_ROW_NVFP4: return i / 32 * 32 + i % 32 / 16 * 8 + i % 16 / 8 * 16 + i % 8;
        default: return i;
    }
}
/* Writes elements at .. at + 127 of a rounded row, which are at q in the order of an opdi_block_four. */
OPDI_AVX2 OPDI_ALWAYS void opdi_block_four_of(const opdi_block_form *form, const opdi_block_row *row, int64_t at,
                                              const int8_t *q, opdi_block_four *to) {
    for (int b = 0; b < 4; b++, at += 32, q += 32) {
        const opdi_v8u words = opdi_block_word_sums(q) * (uint32_t)-form->offset;
        opdi_v4u low, high;
        __asm__("vextracti128 {$1, %1, %0|%0, %1, 1}" : "=x"(high) : "x"(words));
        memcpy(&low, &words, sizeof low);
        low += high;
        memcpy(to->bias + 4 * b, &low, sizeof low);
        memcpy(to->low + 16 * b, q, 16);
        memcpy(to->high + 16 * b, q + 16, 16);
        to->d[b] = row->d[at / form->chunk];
        to->sums[b] = form->mins ? to->d[b] * opdi_float(row->sums[at / 32]) : 0;
    }
}
/* Writes a rounded row as opdi_block_four, with the elements at their places.  Of each 16 elements, four of four have
   neighbouring places. */
OPDI_AVX2 static void opdi_block_fours_of(const opdi_block_form *form, int64_t wide, const opdi_block_row *row,
                                          int kind, void *out) {
    static const uint8_t twos[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    static const uint8_t fours[16] = {0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15};
    opdi_block_four *to = (opdi_block_four *)out;
    uint8_t order[16], places[32];
    for (int i = 0; i < 16; i++) {
        order[i] = kind == OPDI_ROW_TWOS ? twos[i] : kind == OPDI_ROW_FOURS ? fours[i] : (uint8_t)i;
    }
    for (int i = 0; i < 32; i++) { places[i] = (uint8_t)opdi_block_place(kind, i / 4 * 16 + order[i % 4 * 4]); }
    for (int64_t at = 0; at < wide; at += 128, to++) {
        int8_t moved[128];
        for (int i = 0; i < 128; i += 16) {
            opdi_v16b some = *(const opdi_v16b *)(const void *)(row->q + at + i);
            uint32_t words[4];
            OPDI_ASM_LOOK_UP(some, some, *(const opdi_v16b *)order);
            memcpy(words, &some, sizeof words);
            for (int j = 0; j < 4; j++) { memcpy(moved + places[i / 4 + j], &words[j], 4); }
        }
        opdi_block_four_of(form, row, at, moved, to);
    }
}
OPDI_AVX2 static void opdi_block_fours(const opdi_block_form *form, int64_t wide, const opdi_block_row *row,
                                       void *out) {
    opdi_block_four *to = (opdi_block_four *)out;
    for (int64_t at = 0; at < wide; at += 128, to++) {
        opdi_block_four_of(form, row, at, row->q + at, to);
    }
}
static void opdi_block_fours_q2_0(const opdi_block_form *form, int64_t wide, const opdi_block_row *row, void *out) {
    opdi_block_fours_of(form, wide, row, OPDI_ROW_TWOS, out);
}
static void opdi_block_fours_nvfp4(const opdi_block_form *form, int64_t wide, const opdi_block_row *row, void *out) {
    opdi_block_fours_of(form, wide, row, OPDI_ROW_NVFP4, out);
}
static void opdi_int_fours(const opdi_block_form *form, int64_t wide, const opdi_block_row *row, void *out) {
    opdi_block_fours_of(form, wide, row, OPDI_ROW_FOURS, out);
}

//-- AVX2 --------------------------------------------------------------------------------------------------------------

/* Returns 32 bytes, each `value` if its bit is set, else 0: 16 bits each of both halves of `bits`, whose bytes are at
   `places`. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_spread(opdi_v8u bits, opdi_v8u places, uint32_t value) {
    const opdi_v4w each = {OPDI_BIT_OF_BYTE, OPDI_BIT_OF_BYTE, OPDI_BIT_OF_BYTE, OPDI_BIT_OF_BYTE};
    const opdi_v8u values = OPDI_ALL8_OF(value * 0x01010101u);
    opdi_v8u spread;
    OPDI_ASM_LOOK_UP(spread, bits, places);
    return (opdi_v8u)((opdi_v32b)((opdi_v4w)spread & each) == (opdi_v32b)each) & values;
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
/* Returns opdi_mxfp4_scale of the bytes at four places, `step` bytes apart: of its two cases, the right one has the
   larger bits. */
OPDI_AVX2 OPDI_ALWAYS opdi_v4f opdi_block_powers4(const uint8_t *at, int64_t step) {
    const opdi_v4u first = {at[0], 0, 0, 0};
    opdi_v4u e = first;
    __asm__("vpinsrb {$4, %1, %0, %0|%0, %0, %1, 4}" : "+x"(e) : "m"(at[step]));
    __asm__("vpinsrb {$8, %1, %0, %0|%0, %0, %1, 8}" : "+x"(e) : "m"(at[2 * step]));
    __asm__("vpinsrb {$12, %1, %0, %0|%0, %0, %1, 12}" : "+x"(e) : "m"(at[3 * step]));
    opdi_v4u normal = (e - 1) << 23;
    __asm__("vpmaxsd {%2, %1, %0|%0, %1, %2}" : "=x"(normal) : "x"(normal), "x"((e + 1) << 21));
    return (opdi_v4f)normal;
}
/* Returns opdi_nvfp4_scale of the eight bytes: a float16 with the same bits is too small by 2^7. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8f opdi_block_scales_nvfp4(uint64_t bytes) {
    const opdi_v2w all = {bytes, 0};
    const opdi_v16b sizes = (opdi_v16b)all & 127 & ~(opdi_v16b)((opdi_v16b)all == 127);
    opdi_v4u halves;
    opdi_v8f floats;
    __asm__("vpmovzxbw {%1, %0|%0, %1}" : "=x"(halves) : "x"(sizes));
    __asm__("vpsllw {$7, %1, %0|%0, %1, 7}" : "=x"(halves) : "x"(halves));
    __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=x"(floats) : "x"(halves));
    return floats * 128.0f;
}
/* Returns the scales of 128 elements, multiplied by the scales of x: four, or eight for NVFP4. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8f opdi_block_row_scales(const uint8_t *w, int bytes, int kind, const float *x) {
    const opdi_v4f d = *(const opdi_v4f *)(const void *)x;
    opdi_v8f scales;
    opdi_v4f four;
    if (kind == OPDI_ROW_NVFP4) {
        const opdi_v8u twice = {0, 0, 1, 1, 2, 2, 3, 3};
        __asm__("vpermps {%t2, %1, %0|%0, %1, %t2}" : "=x"(scales) : "x"(twice), "x"(d));
        return scales * opdi_block_scales_nvfp4(opdi_u32_at(w) | (uint64_t)opdi_u32_at(w + bytes) << 32);
    }
    if (kind == OPDI_ROW_ONES || kind == OPDI_ROW_TWOS) {
        const opdi_v2w halves = {opdi_u16_at(w) * UINT64_C(0x10001) |
            opdi_u16_at(kind == OPDI_ROW_TWOS ? w + bytes : w) * UINT64_C(0x10001) << 32, 0};
        __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=x"(four) : "x"(halves));
    } else { four = kind == OPDI_ROW_FP4 ? opdi_block_powers4(w, bytes) : opdi_block_halves4(w, bytes); }
    four *= d;
    __asm__("vmovaps {%1, %x0|%x0, %1}" : "=x"(scales) : "x"(four));
    return scales;
}
/* Returns the sums of four products of 64 elements, number `pair` of x.  The codes of the first 32 begin `at` bytes
   after w, the others `bytes` bytes later.  Fifth bits are before them.  ONES and TWOS have both in the same bytes. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_two(const opdi_block_four *x, int pair, const uint8_t *w, int bytes, int at,
                                              int kind, opdi_v8u table) {
    const opdi_v8u fifteens = OPDI_ALL8_OF(0x0f0f0f0fu), threes = OPDI_ALL8_OF(0x03030303u);
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
        low |= opdi_block_spread(bits, places, 16);
        high |= opdi_block_spread(bits, places + 0x02020202u, 16);
    }
    if (kind == OPDI_ROW_ONES) {
        const opdi_v8u places = {0, 0, 0x01010101u, 0x01010101u, 0x04040404u, 0x04040404u, 0x05050505u, 0x05050505u};
        low = opdi_block_spread(first, places + 0x08080808u * (uint32_t)pair, 2);
        high = opdi_block_spread(first, places + 0x08080808u * (uint32_t)pair + 0x02020202u, 2);
    }
    if (kind == OPDI_ROW_TWOS) {
        const opdi_v8u by = {0, 0, 0, 0, 2, 2, 2, 2};
        low = first >> by & threes;
        high = first >> (by + 4) & threes;
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
    OPDI_ASM_BYTES_AT(some, low, x->low + 32 * pair);
    OPDI_ASM_BYTES_AT(more, high, x->high + 32 * pair);
    some += more;
    memcpy(&whole, x->bias + 8 * pair, sizeof whole);
    OPDI_ASM_JOIN(whole, some, ones)
    return whole;
}
/* Returns the numbers of the scales of 64 elements.  TWOS have both scales of x in each half. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_scale_places(int kind) {
    const opdi_v8u halves = {0, 0, 0, 0, 1, 1, 1, 1}, twos = {0, 0, 1, 1, 0, 0, 1, 1};
    const opdi_v8u fourths = {0, 0, 1, 1, 2, 2, 3, 3};
    return kind == OPDI_ROW_NVFP4 ? fourths : kind == OPDI_ROW_TWOS ? twos : halves;
}
/* Returns the product of a row of `blocks` blocks of `bytes` bytes.  128 elements are in `per` blocks.  mins: whether
   float16 minima follow the scales. */
OPDI_AVX2 OPDI_ALWAYS float opdi_block_row_bytes(const void *rounded, const uint8_t *w, int64_t blocks, int per,
                                                 int bytes, int at, int kind, bool mins) {
    const bool fp4 = kind == OPDI_ROW_FP4 || kind == OPDI_ROW_NVFP4;
    const uint8_t *const numbers = fp4 ? opdi_block_e2m1 : (const uint8_t *)opdi_iq4_numbers;
    const opdi_v8u table = opdi_block_gather2(numbers, numbers), places = opdi_block_scale_places(kind);
    const int codes = kind == OPDI_ROW_NVFP4 ? OPDI_ROW_FP4 : kind;
    const int next = per == 4 ? bytes : kind == OPDI_ROW_NVFP4 ? 16 : 0;
    const opdi_block_four *x = (const opdi_block_four *)rounded;
    uint8_t rest[4 * 34];
    opdi_v8f sum = {0};
    opdi_v4f more = {0};
    for (; blocks > 0; blocks -= per, x++, w += per * bytes) {
        opdi_block_ahead(w, per * bytes);
        if (blocks < per) {
            memcpy(rest, w, (size_t)(blocks * bytes));
            memset(rest + blocks * bytes, 0, (size_t)((per - blocks) * bytes));
            w = rest;
        }
        const opdi_v8f scales = opdi_block_row_scales(w, bytes, kind, x->d);
        if (mins) { more += opdi_block_halves4(w + 2, bytes) * *(const opdi_v4f *)(const void *)x->sums; }
#define OPDI_PAIR(pair) { \
            opdi_v8f f, scale; \
            const opdi_v8u which = places + (kind == OPDI_ROW_NVFP4 ? 4u : 2u) * pair; \
            const opdi_v8u whole = opdi_block_two(x, pair, w + pair * (per / 2 * bytes), next, at, codes, table); \
            __asm__("vpermps {%2, %1, %0|%0, %1, %2}" : "=x"(scale) : "x"(which), "x"(scales)); \
            OPDI_ASM_FLOATS(f, whole); \
            OPDI_ASM_FMA("ps", sum, f, scale); \
        }
        OPDI_PAIR(0)
        OPDI_PAIR(1)
#undef OPDI_PAIR
    }
    return opdi_block_lanes8(sum, more);
}
/* The formats with blocks of 32, 64 or 128 elements: M(name, dtype, function that orders a rounded row, blocks per 128,
   bytes of a block, place of the codes in it, kind of the codes, whether there are minima). */
#define OPDI_ROW_FORMATS(M) \
    M(q8_0, OPD_Q8_0, opdi_block_fours, 4, 34, 2, OPDI_ROW_EIGHTS, false) \
    M(q4_0, OPD_Q4_0, opdi_block_fours, 4, 18, 2, OPDI_ROW_FOURS, false) \
    M(q4_1, OPD_Q4_1, opdi_block_fours, 4, 20, 4, OPDI_ROW_FOURS, true) \
    M(q5_0, OPD_Q5_0, opdi_block_fours, 4, 22, 6, OPDI_ROW_FIVES, false) \
    M(q5_1, OPD_Q5_1, opdi_block_fours, 4, 24, 8, OPDI_ROW_FIVES, true) \
    M(iq4_nl, OPD_IQ4_NL, opdi_block_fours, 4, 18, 2, OPDI_ROW_IQ4, false) \
    M(mxfp4, OPD_MXFP4, opdi_block_fours, 4, 17, 1, OPDI_ROW_FP4, false) \
    M(nvfp4, OPD_NVFP4, opdi_block_fours_nvfp4, 2, 36, 4, OPDI_ROW_NVFP4, false) \
    M(q1_0, OPD_Q1_0, opdi_block_fours, 1, 18, 2, OPDI_ROW_ONES, false) \
    M(q2_0, OPD_Q2_0, opdi_block_fours_q2_0, 2, 18, 2, OPDI_ROW_TWOS, false)
#define OPDI_ROW_BYTES(name, dtype, turn, per, bytes, at, kind, mins) \
    OPDI_AVX2 static float opdi_block_bytes_##name(const void *rounded, const uint8_t *w, int64_t blocks) { \
        return opdi_block_row_bytes(rounded, w, blocks, per, bytes, at, kind, mins); \
    }
OPDI_ROW_FORMATS(OPDI_ROW_BYTES)

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
#endif
#if defined(OPDI_WORDS)

//-- AVX512_VNNI -------------------------------------------------------------------------------------------------------

#define OPDI_TWICE(i) (i) * 0x01010101u, (i) * 0x01010101u
/* Returns 64 bytes, each 2 if its bit is set, else 0: the bits of the bytes at `places`. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16u opdi_block_ones(opdi_v16u bits, opdi_v16u places) {
    const opdi_v8w each = {OPDI_ALL8(OPDI_BIT_OF_BYTE)};
    const opdi_v16u twos = OPDI_ALL16(0x02020202u);
    uint64_t set;
    __asm__("vptestmb {%2, %1, %0|%0, %1, %2}" : "=Yk"(set) : "v"(opdi_block_look_up(bits, places)), "v"(each));
    __asm__("vmovdqu8 {%2, %0%{%1%}%{z%}|%0%{%1%}%{z%}, %2}" : "=v"(bits) : "Yk"(set), "v"(twos));
    return bits;
}
/* Adds 16 to the bytes of `codes` that belong to the bits of `high`. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16u opdi_block_fifths(opdi_v16u codes, uint64_t high) {
    const opdi_v16u sixteens = OPDI_ALL16(0x10101010u);
    __asm__("vpaddb {%2, %0, %0%{%1%}|%0%{%1%}, %0, %2}" : "+v"(codes) : "Yk"(high), "v"(sixteens));
    return codes;
}
/* Sets *low and *high to the codes of 128 elements whose blocks begin at w, each group's first and last 16.  Nibbles,
   bytes or bits begin at byte `at`.  For OPDI_ROW_FIVES, the fifth bits are in the four bytes before.  `table` has the
   numbers for which codes stand. */
OPDI_AVX512 OPDI_ALWAYS void opdi_block_codes(const uint8_t *w, int bytes, int at, int kind, opdi_v16u table,
                                              opdi_v16u *low, opdi_v16u *high) {
    const opdi_v16u fifteens = OPDI_ALL16(0x0f0f0f0fu), flips = OPDI_ALL16(0x80808080u);
    if (kind == OPDI_ROW_ONES) {
        const opdi_v16u places = {OPDI_TWICE(0), OPDI_TWICE(1), OPDI_TWICE(4), OPDI_TWICE(5), OPDI_TWICE(8),
            OPDI_TWICE(9), OPDI_TWICE(12), OPDI_TWICE(13)};
        const opdi_v16u twos = OPDI_ALL16(0x02020202u), bits = opdi_block_gather(w + at, 0);
        *low = opdi_block_ones(bits, places);
        *high = opdi_block_ones(bits, places + twos);
        return;
    }
    if (kind == OPDI_ROW_TWOS) {
        const opdi_v16u by = {0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0, 2, 2, 2, 2}, threes = OPDI_ALL16(0x03030303u);
        const opdi_v16u pairs = opdi_block_gather4(w + at, w + at, w + at + bytes, w + at + bytes);
        *low = pairs >> by & threes;
        *high = pairs >> (by + 4) & threes;
        return;
    }
    const int group = kind == OPDI_ROW_NVFP4 ? 16 : bytes, pair = kind == OPDI_ROW_NVFP4 ? bytes : 2 * bytes;
    const opdi_v16u both = opdi_block_gather4(w + at, w + at + group, w + at + pair, w + at + pair + group);
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
        *low = opdi_block_fifths(*low, (h0 & 0xffff) | (h1 & 0xffff) << 16 | (h2 & 0xffff) << 32 | h3 << 48);
        *high = opdi_block_fifths(*high, h0 >> 16 | (h1 & 0xffff0000u) | (h2 >> 16) << 32 | (h3 >> 16) << 48);
    }
    if (kind == OPDI_ROW_IQ4 || kind == OPDI_ROW_FP4 || kind == OPDI_ROW_NVFP4) {
        *low = opdi_block_look_up(table, *low);
        *high = opdi_block_look_up(table, *high);
    }
}
/* Returns the product of a row of `blocks` blocks of `bytes` bytes.  128 elements are in `per` blocks.  mins: whether
   float16 minima follow the scales.  For the other arguments, see opdi_block_codes. */
OPDI_AVX512 OPDI_ALWAYS float opdi_block_row_quads(const void *rounded, const uint8_t *w, int64_t blocks, int per,
                                                   int bytes, int at, int kind, bool mins) {
    const opdi_v16u halves = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
    const opdi_v16u pairs = {0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3};
    const opdi_v16u eighths = {0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7};
    const opdi_v16u places = kind == OPDI_ROW_NVFP4 ? eighths : kind == OPDI_ROW_TWOS ? pairs : halves;
    const bool fp4 = kind == OPDI_ROW_FP4 || kind == OPDI_ROW_NVFP4;
    const opdi_v16u table = opdi_block_gather(fp4 ? opdi_block_e2m1 : opdi_block_curve, 0);
    const opdi_block_four *x = (const opdi_block_four *)rounded;
    uint8_t rest[4 * 34];
    opdi_v16f sum = {0};
    opdi_v4f more = {0};
    for (; blocks > 0; blocks -= per, x++, w += per * bytes) {
        opdi_block_ahead(w, per * bytes);
        if (blocks < per) {
            memcpy(rest, w, (size_t)(blocks * bytes));
            memset(rest + blocks * bytes, 0, (size_t)((per - blocks) * bytes));
            w = rest;
        }
        opdi_v16u whole = {0}, low, high;
        opdi_v16f f, scale;
        const opdi_v8f scales = opdi_block_row_scales(w, bytes, kind, x->d);
        opdi_block_codes(w, bytes, at, kind, table, &low, &high);
        if (!mins) { memcpy(&whole, x->bias, sizeof whole); }
        OPDI_ASM_QUADS(whole, low, *(const opdi_v16u *)(const void *)x->low);
        OPDI_ASM_QUADS(whole, high, *(const opdi_v16u *)(const void *)x->high);
        __asm__("vpermps {%g2, %1, %0|%0, %1, %g2}" : "=v"(scale) : "v"(places), "v"(scales));
        OPDI_ASM_FLOATS(f, whole);
        OPDI_ASM_FMA("ps", sum, f, scale);
        if (mins) { more += opdi_block_halves4(w + 2, bytes) * *(const opdi_v4f *)(const void *)x->sums; }
    }
    return opdi_block_lanes(sum, more);
}
#define OPDI_ROW_QUADS(name, dtype, turn, per, bytes, at, kind, mins) \
    OPDI_AVX512 static float opdi_block_row_##name(const void *rounded, const uint8_t *w, int64_t blocks) { \
        return opdi_block_row_quads(rounded, w, blocks, per, bytes, at, kind, mins); \
    }
OPDI_ROW_FORMATS(OPDI_ROW_QUADS)

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

#if defined(OPDI_X86)

//-- integers with scales ----------------------------------------------------------------------------------------------

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
/* 128 codes: each 32 begin at a place, and have one of the scales and one of the zero points. */
typedef struct opdi_int_four { const uint8_t *at0, *at1, *at2, *at3; opdi_v4f scales, zeros; } opdi_int_four;
/* The sums of a row: its product is the sum of all lanes. */
typedef struct opdi_int_sums { opdi_v8f sum; opdi_v4f more; } opdi_int_sums;
/* Adds the products of 128 codes and x. */
OPDI_AVX2 OPDI_ALWAYS void opdi_int_four_bytes(const opdi_block_four *x, const opdi_int_four *w, int kind,
                                               opdi_int_sums *to) {
    const opdi_v8u spread[2] = {{0, 0, 0, 0, 1, 1, 1, 1}, {2, 2, 2, 2, 3, 3, 3, 3}}, none = {0};
    const opdi_v4f mins = -w->zeros * w->scales, scales = w->scales * *(const opdi_v4f *)(const void *)x->d;
    to->more += mins * *(const opdi_v4f *)(const void *)x->sums;
    for (int pair = 0; pair < 2; pair++) {
        opdi_v8f f, scale;
        const uint8_t *const at = pair ? w->at2 : w->at0;
        const opdi_v8u whole = opdi_block_two(x, pair, at, (int)((pair ? w->at3 : w->at1) - at), 0, kind, none);
        __asm__("vpermps {%t2, %1, %0|%0, %1, %t2}" : "=x"(scale) : "x"(spread[pair]), "x"(scales));
        OPDI_ASM_FLOATS(f, whole);
        OPDI_ASM_FMA("ps", to->sum, f, scale);
    }
}
#if defined(OPDI_WORDS)
/* Does the same with AVX512_VNNI.  The sums have the same bits. */
OPDI_AVX512 OPDI_ALWAYS void opdi_int_four_quads(const opdi_block_four *x, const opdi_int_four *w, int kind,
                                                 opdi_int_sums *to) {
    const opdi_v8u first = {0, 0, 0, 0, 1, 1, 1, 1}, second = {2, 2, 2, 2, 3, 3, 3, 3};
    const opdi_v4f mins = -w->zeros * w->scales, scales = w->scales * *(const opdi_v4f *)(const void *)x->d;
    const opdi_v16u fifteens = OPDI_ALL16(0x0f0f0f0fu), both = opdi_block_gather4(w->at0, w->at1, w->at2, w->at3);
    opdi_v16u whole, low = both, high;
    opdi_v16f f;
    opdi_v8f half, scale;
    if (kind == OPDI_ROW_FOURS) {
        low = both & fifteens;
        high = both >> 4 & fifteens;
    } else { high = opdi_block_gather4(w->at0 + 16, w->at1 + 16, w->at2 + 16, w->at3 + 16); }
    memcpy(&whole, x->bias, sizeof whole);
    OPDI_ASM_QUADS(whole, low, *(const opdi_v16u *)(const void *)x->low);
    OPDI_ASM_QUADS(whole, high, *(const opdi_v16u *)(const void *)x->high);
    OPDI_ASM_FLOATS(f, whole);
    to->more += mins * *(const opdi_v4f *)(const void *)x->sums;
    memcpy(&half, &f, sizeof half);
    __asm__("vpermps {%t2, %1, %0|%0, %1, %t2}" : "=x"(scale) : "x"(first), "x"(scales));
    OPDI_ASM_FMA("ps", to->sum, half, scale);
    __asm__("vextractf64x4 {$1, %1, %0|%0, %1, 1}" : "=v"(half) : "v"(f));
    __asm__("vpermps {%t2, %1, %0|%0, %1, %t2}" : "=x"(scale) : "x"(second), "x"(scales));
    OPDI_ASM_FMA("ps", to->sum, half, scale);
}
#endif
/* Returns four float32, each from 4 bytes. */
OPDI_AVX2 OPDI_ALWAYS opdi_v4f opdi_int_numbers(const uint8_t *first, const uint8_t *second, const uint8_t *third,
                                                const uint8_t *fourth) {
    const opdi_v2w all = {opdi_u32_at(first) | (uint64_t)opdi_u32_at(second) << 32,
        opdi_u32_at(third) | (uint64_t)opdi_u32_at(fourth) << 32};
    return (opdi_v4f)all;
}
/* How the next 128 codes of a row lie: in how many blocks (0: not in one, two or four whole blocks, so that
   opdi_int_walk has to find them), and how far apart the first two groups of 32, the first two pairs of groups, and
   their scales are. */
typedef struct opdi_int_strides { int64_t blocks, group, pair, scale, scale_pair; } opdi_int_strides;
OPDI_ALWAYS opdi_int_strides opdi_int_strides_of(const opdi_block_info *info, int bits) {
    const int64_t bytes = info->bytes;
    opdi_int_strides steps = {0, 4 * bits, 8 * bits, 0, 0};
    if (info->elements % 128 == 0) { steps.blocks = 1; }
    if (info->elements == 64) {
        steps.blocks = 2;
        steps.pair = steps.scale_pair = bytes;
    }
    if (info->elements == 32) {
        steps.blocks = 4;
        steps.group = steps.scale = bytes;
        steps.pair = steps.scale_pair = 2 * bytes;
    }
    return steps;
}
#include "../typed/f32_avx2.h"
#include "int_rows.typed.h"
#if defined(OPDI_WORDS)
#include "../typed/f32_avx512.h"
#include "int_rows.typed.h"
#endif
#include "../typed/end.h"
/* Returns the function for rows of integers of 4 or 8 bits. */
static opdi_block_row_fn *opdi_int_row_of(int bits) {
#if defined(OPDI_WORDS)
    if (opdi_cpu_words() & OPDI_HAS_QUADS) {
        return bits == 4 ? opdi_int_fours_avx512_f32 : opdi_int_wholes_avx512_f32;
    }
#endif
    return bits == 4 ? opdi_int_fours_avx2_f32 : opdi_int_wholes_avx2_f32;
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

#if defined(OPDI_X86)
#define OPDI_WAYS_FOUR(per, turn) 128, (int)sizeof(opdi_block_four), 128 / (per), turn
#define OPDI_WAYS_BYTES(name, dtype, turn, per, bytes, at, kind, mins) \
    {dtype, OPDI_WAYS_FOUR(per, turn), opdi_block_bytes_##name},
static const opdi_block_ways opdi_block_ways_bytes[] = {
    {OPD_IQ4_XS, 128, (int)sizeof(opdi_block_four), 256, opdi_block_fours, opdi_block_bytes_iq4_xs},
    OPDI_ROW_FORMATS(OPDI_WAYS_BYTES)};
#endif
#if defined(OPDI_WORDS)
#define OPDI_WAYS_QUADS(name, dtype, turn, per, bytes, at, kind, mins) \
    {dtype, OPDI_WAYS_FOUR(per, turn), opdi_block_row_##name},
static const opdi_block_ways opdi_block_ways_quads[] = {
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
#if defined(OPDI_WORDS)
    if (opdi_cpu_words() & OPDI_HAS_QUADS) { ways = opdi_block_ways_quads; }
#endif
    for (size_t i = 0; i < sizeof opdi_block_ways_bytes / sizeof *ways && opdi_cpu_level() > 0; i++) {
        if (ways[i].dtype == dtype) { return &ways[i]; }
    }
#endif
    return opdi_super_ways_of(dtype);
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
        few.row = opdi_int_row_of(x->ints->bits);
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
