#include "block_rows.h"

//== rows of blocks of 256 elements ====================================================================================
//
//  In these formats, a block has its own scales, in few bits, for groups of 16 or 32 elements, or all have one.

#if defined(OPDI_X86)
/* The places of groups of 32 elements in an opdi_block_super: for Q6_K, for Q4_K and Q5_K, and for Q2_K and Q3_K. */
static const uint8_t opdi_block_places[3][8] = {
    {0, 1, 2, 3, 4, 5, 6, 7}, {0, 2, 1, 3, 4, 6, 5, 7}, {0, 2, 4, 6, 1, 3, 5, 7}};
/* Returns whether the codes of a format are pairs of bits, or begin with them. */
static bool opdi_block_is_of_pairs(opd_scalar_type dtype) {
    return dtype == OPD_Q2_K || dtype == OPD_Q3_K || dtype == OPD_TQ2_0;
}
/* Writes a rounded row as opdi_block_super.  In formats with minima, the groups of 32 elements change places, because
   the codes of two groups share bytes; in formats of two bits, the codes of four groups do. */
OPDI_AVX2 static void opdi_block_supers(const opdi_block_form *form, int64_t wide, const opdi_block_row *row,
                                        void *out) {
    const uint8_t *const order = opdi_block_places[opdi_block_is_of_pairs(form->dtype) ? 2 : form->mins];
    opdi_block_super *to = (opdi_block_super *)out;
    for (int64_t at = 0; at < wide; at += 256, to++) {
        for (int b = 0; b < 8; b++) {
            const opdi_v8u words = opdi_block_word_sums(row->q + at + 32 * b), bias = words * (uint32_t)-form->offset;
            int32_t some[8];
            memcpy(to->q + 32 * order[b], row->q + at + 32 * b, 32);
            memcpy(to->bias + 8 * order[b], &bias, sizeof bias);
            memcpy(some, &words, sizeof some);
            to->halves[2 * b] = (int16_t)(some[0] + some[1] + some[2] + some[3]);
            to->halves[2 * b + 1] = (int16_t)(some[4] + some[5] + some[6] + some[7]);
            to->sums[b] = (int16_t)(to->halves[2 * b] + to->halves[2 * b + 1]);
        }
        to->d = row->d[at / 256];
    }
}

//-- AVX2 --------------------------------------------------------------------------------------------------------------

/* Returns what opdi_q3_K_scales writes. */
OPDI_ALWAYS opdi_v16b opdi_block_scales(const uint8_t *at) {
    const uint64_t low = UINT64_C(0x0f0f0f0f0f0f0f0f), pair = 0x30303030u, high = opdi_u32_at(at + 8);
    const uint64_t s = opdi_u32_at(at) | (uint64_t)opdi_u32_at(at + 4) << 32;
    const opdi_v2w all = {opdi_block_less_32((s & low) | (high << 4 & pair) | (high << 2 & pair) << 32),
        opdi_block_less_32((s >> 4 & low) | (high & pair) | (high >> 2 & pair) << 32)};
    return (opdi_v16b)all;
}
/* Adds to `whole` the products of 32 codes and x, multiplied by the int16 in `scale`. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_scaled(opdi_v8u whole, opdi_v8u codes, const int8_t *q, opdi_v16h scale) {
    opdi_v16h some;
    OPDI_ASM_BYTES_AT(some, codes, q);
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
            OPDI_ASM_BYTES_AT(some, code, x->q + 32 * (i)); \
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
/* Returns each byte times 3, without the carries. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_thrice(opdi_v8u bytes) {
    const opdi_v32b b = (opdi_v32b)bytes;
    return (opdi_v8u)(b + b + b);
}
/* Returns each byte times the low byte of the number in its two bytes of `powers`, without the carries. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_times(opdi_v8u bytes, opdi_v16h powers) {
    const opdi_v16h low = (opdi_v16h)bytes * powers & 255, high = ((opdi_v16h)bytes >> 8) * powers << 8;
    return (opdi_v8u)(low | high);
}
/* TQ1_0.  A byte has five digits to base 3.  A block has the digits of 32 bytes, of 16 bytes, and four digits each of 4
   bytes. */
OPDI_AVX2 static float opdi_block_bytes_tq1_0(const void *rounded, const uint8_t *w, int64_t blocks) {
    const opdi_v8u threes = OPDI_ALL8_OF(0x03030303u), ones = OPDI_ALL8_OF(0x00010001u), all = OPDI_ALL8_OF(~0u);
    const opdi_v16h first = {OPDI_ALL8(1), OPDI_ALL8(3)}, last = {OPDI_ALL8(81), 1, 1, 3, 3, 9, 9, 27, 27};
    const opdi_block_super *x = (const opdi_block_super *)rounded;
    const opdi_v4f more = {0};
    opdi_v8f sum = {0};
    for (; blocks > 0; blocks--, x++, w += 54) {
        opdi_block_ahead(w, 54);
        const opdi_v4u four = OPDI_ALL4(opdi_u32_at(w + 48));
        opdi_v8u whole = {0}, rest = opdi_block_gather2(w + 32, w + 32), end = rest, bytes;
        opdi_v16h some, pairs = -*(const opdi_v16h *)(const void *)x->halves;       /* at most 64 * 127 */
        opdi_v8f f;
        memcpy(&bytes, w, sizeof bytes);
        __asm__("vinserti128 {$1, %1, %0, %0|%0, %0, %1, 1}" : "+x"(end) : "x"(four));
        rest = opdi_block_times(rest, first);
        end = opdi_block_times(end, last);
        /* the highest digit of b is 3 b >> 8, or (b + (b >> 1)) >> 7; OPDI_ASM_MEAN of ~a and ~b is ~((a + b) >> 1) */
#define OPDI_PART(i, digits) { \
            const opdi_v8u others = ~digits; \
            opdi_v8u code; \
            OPDI_ASM_MEAN(code, others, all); \
            OPDI_ASM_MEAN(code, others, code); \
            code = ~(code >> 6) & threes; \
            OPDI_ASM_BYTES_AT(some, code, x->q + 32 * (i)); \
            pairs += some; \
        }
        OPDI_PART(0, bytes)
        bytes = opdi_block_thrice(bytes);
        OPDI_PART(1, bytes)
        bytes = opdi_block_thrice(bytes);
        OPDI_PART(2, bytes)
        bytes = opdi_block_thrice(bytes);
        OPDI_PART(3, bytes)
        bytes = opdi_block_thrice(bytes);
        OPDI_PART(4, bytes)
        OPDI_PART(5, rest)
        rest = opdi_block_thrice(opdi_block_thrice(rest));
        OPDI_PART(6, rest)
        OPDI_PART(7, end)
#undef OPDI_PART
        OPDI_ASM_JOIN(whole, pairs, ones)
        OPDI_ASM_FLOATS(f, whole);
        sum += f * (opdi_block_half1(w + 52) * x->d);
    }
    return opdi_block_lanes8(sum, more);
}
#endif
#if defined(OPDI_WORDS)

//-- AVX512_VNNI -------------------------------------------------------------------------------------------------------

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
/* Returns the highest digits, to base 3, of the bytes times `powers`: see opdi_block_bytes_tq1_0. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16u opdi_block_digits(opdi_v16u bytes, opdi_v32h powers) {
    const opdi_v32h low = (opdi_v32h)bytes * powers & 255, high = ((opdi_v32h)bytes >> 8) * powers << 8;
    const opdi_v16u threes = OPDI_ALL16(0x03030303u), all = OPDI_ALL16(~0u);
    opdi_v16u digits = (opdi_v16u)~(low | high), half;
    OPDI_ASM_MEAN(half, digits, all);
    OPDI_ASM_MEAN(digits, digits, half);
    return ~(digits >> 6) & threes;
}
OPDI_AVX512 static float opdi_block_row_tq1_0(const void *rounded, const uint8_t *w, int64_t blocks) {
    const opdi_v32h first = {OPDI_ALL8(1), OPDI_ALL8(1), OPDI_ALL8(3), OPDI_ALL8(3)};
    const opdi_v32h third = {OPDI_ALL8(81), OPDI_ALL8(81), OPDI_ALL8(1), OPDI_ALL8(3)};
    const opdi_v32h fourth = {OPDI_ALL8(9), OPDI_ALL8(27), OPDI_ALL8(81), 1, 1, 3, 3, 9, 9, 27, 27};
    const opdi_block_super *x = (const opdi_block_super *)rounded;
    const opdi_v4f more = {0};
    opdi_v16f sum = {0};
    for (; blocks > 0; blocks--, x++, w += 54) {
        opdi_block_ahead(w, 54);
        const opdi_v16u *const bias = (const opdi_v16u *)(const void *)x->bias;
        const opdi_v16u *const q = (const opdi_v16u *)(const void *)x->q;
        const opdi_v4u four = OPDI_ALL4(opdi_u32_at(w + 48));
        const opdi_v16u bytes = opdi_block_twice(w), rest = opdi_block_gather4(w, w + 16, w + 32, w + 32);
        opdi_v16u whole = bias[0] + bias[1], more_whole = bias[2] + bias[3], end = opdi_block_gather(w + 32, 0);
        opdi_v16f f;
        __asm__("vinserti32x4 {$3, %1, %0, %0|%0, %0, %1, 3}" : "+v"(end) : "v"(four));
        OPDI_ASM_QUADS(whole, opdi_block_digits(bytes, first), q[0]);
        OPDI_ASM_QUADS(more_whole, opdi_block_digits(bytes, first * 9), q[1]);
        OPDI_ASM_QUADS(whole, opdi_block_digits(rest, third), q[2]);
        OPDI_ASM_QUADS(more_whole, opdi_block_digits(end, fourth), q[3]);
        whole += more_whole;
        OPDI_ASM_FLOATS(f, whole);
        sum += f * (opdi_block_half1(w + 52) * x->d);
    }
    return opdi_block_lanes(sum, more);
}
#endif

#if defined(OPDI_X86)
#define OPDI_WAYS_SUPER 256, (int)sizeof(opdi_block_super), 256, opdi_block_supers
static const opdi_block_ways opdi_super_ways_bytes[] = {
    {OPD_Q4_K, OPDI_WAYS_SUPER, opdi_block_bytes_q4_k}, {OPD_Q5_K, OPDI_WAYS_SUPER, opdi_block_bytes_q5_k},
    {OPD_Q6_K, OPDI_WAYS_SUPER, opdi_block_bytes_q6_k}, {OPD_Q2_K, OPDI_WAYS_SUPER, opdi_block_bytes_q2_k},
    {OPD_Q3_K, OPDI_WAYS_SUPER, opdi_block_bytes_q3_k}, {OPD_TQ2_0, OPDI_WAYS_SUPER, opdi_block_bytes_tq2_0},
    {OPD_TQ1_0, OPDI_WAYS_SUPER, opdi_block_bytes_tq1_0}};
#endif
#if defined(OPDI_WORDS)
static const opdi_block_ways opdi_super_ways_quads[] = {
    {OPD_Q4_K, OPDI_WAYS_SUPER, opdi_block_row_q4_k}, {OPD_Q5_K, OPDI_WAYS_SUPER, opdi_block_row_q5_k},
    {OPD_Q6_K, OPDI_WAYS_SUPER, opdi_block_row_q6_k}, {OPD_Q2_K, OPDI_WAYS_SUPER, opdi_block_row_q2_k},
    {OPD_Q3_K, OPDI_WAYS_SUPER, opdi_block_row_q3_k}, {OPD_TQ2_0, OPDI_WAYS_SUPER, opdi_block_row_tq2_0},
    {OPD_TQ1_0, OPDI_WAYS_SUPER, opdi_block_row_tq1_0}};
#endif
/* Returns the functions for rows of a format with blocks of 256 elements, or NULL if it has none. */
OPDI_INTERNAL const opdi_block_ways *opdi_super_ways_of(opd_scalar_type dtype) {
#if defined(OPDI_X86)
    const opdi_block_ways *ways = opdi_super_ways_bytes;
#if defined(OPDI_WORDS)
    if (opdi_cpu_words() & OPDI_HAS_QUADS) { ways = opdi_super_ways_quads; }
#endif
    for (size_t i = 0; i < sizeof opdi_super_ways_bytes / sizeof *ways && opdi_cpu_level() > 0; i++) {
        if (ways[i].dtype == dtype) { return &ways[i]; }
    }
#endif
    (void)dtype;
    return NULL;
}
