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

//== functions for rows of blocks ======================================================================================

/* Asks for `bytes` bytes of weights before they are needed: memory that the processor guesses comes later, and not from
   the next page.  Nearer than OPDI_BLOCK_AHEAD, or much further, was slower. */
enum { OPDI_BLOCK_AHEAD = 1024 };
OPDI_ALWAYS void opdi_block_ahead(const uint8_t *w, int bytes) {
    for (int at = 0; at < bytes; at += 64) { OPDI_PREFETCH(w + OPDI_BLOCK_AHEAD + at); }
}
#if defined(OPDI_X86)
#define OPDI_ALL4(x) {x, x, x, x}
#define OPDI_ALL8(x) x, x, x, x, x, x, x, x
#define OPDI_ALL8_OF(x) {OPDI_ALL8(x)}
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

OPDI_LOOPS_BEGIN
/* Returns the sums of each four of 32 bytes. */
OPDI_AVX2 OPDI_ALWAYS opdi_v8u opdi_block_word_sums(const int8_t *q) {
    const opdi_v8u ones = OPDI_ALL8_OF(0x01010101u), pairs = OPDI_ALL8_OF(0x00010001u);
    opdi_v8u words = {0};
    opdi_v16h some;
    OPDI_ASM_BYTES(some, ones, *(const opdi_v8u *)(const void *)q);
    OPDI_ASM_JOIN(words, some, pairs)
    return words;
}
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
/* OPDI_ASM_BYTES_AT is OPDI_ASM_BYTES of a and the bytes at p. */
#define OPDI_ASM_BYTES_AT(c, a, p) \
    __asm__("vpmaddubsw {%2, %1, %0|%0, %1, %2}" : "=x"(c) : "x"(a), "m"(*(const opdi_v8u *)(const void *)(p)))
/* OPDI_ASM_MEAN adds bytes, and 1, and divides the sums by 2. */
#define OPDI_ASM_MEAN(c, a, b) __asm__("vpavgb {%2, %1, %0|%0, %1, %2}" : "=v"(c) : "v"(a), "v"(b))
/* Returns eight bytes from 0 to 63, less 32 each.  Scales of blocks are made in registers: if a vector is loaded just
   after its bytes were stored, the processor waits. */
OPDI_ALWAYS uint64_t opdi_block_less_32(uint64_t bytes) {
    const uint64_t signs = UINT64_C(0x8080808080808080);
    return ((bytes | signs) - UINT64_C(0x2020202020202020)) ^ signs;
}
OPDI_LOOPS_END
#endif
#if defined(OPDI_WORDS)
#define OPDI_ALL16(x) {x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x}
typedef uint16_t opdi_v32h __attribute__((vector_size(64), aligned(2), may_alias));
OPDI_LOOPS_BEGIN
OPDI_AVX512 OPDI_ALWAYS float opdi_block_lanes(opdi_v16f sum, opdi_v4f more) {
    opdi_v8f low, high;
    memcpy(&low, &sum, sizeof low);
    __asm__("vextractf64x4 {$1, %1, %0|%0, %1, 1}" : "=v"(high) : "v"(sum));
    return opdi_block_lanes8(low + high, more);
}
/* Returns 16 bytes from each of four places. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16u opdi_block_gather4(const uint8_t *first, const uint8_t *second, const uint8_t *third,
                                                     const uint8_t *fourth) {
    opdi_v16u all;
    __asm__("vmovdqu32 {%1, %x0|%x0, %1}" : "=v"(all) : "m"(*(const opdi_v16b *)first));
    __asm__("vinserti32x4 {$1, %1, %0, %0|%0, %0, %1, 1}" : "+v"(all) : "m"(*(const opdi_v16b *)second));
    __asm__("vinserti32x4 {$2, %1, %0, %0|%0, %0, %1, 2}" : "+v"(all) : "m"(*(const opdi_v16b *)third));
    __asm__("vinserti32x4 {$3, %1, %0, %0|%0, %0, %1, 3}" : "+v"(all) : "m"(*(const opdi_v16b *)fourth));
    return all;
}
/* Returns 16 bytes from each of four places, `step` bytes apart. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16u opdi_block_gather(const uint8_t *at, int64_t step) {
    return opdi_block_gather4(at, at + step, at + 2 * step, at + 3 * step);
}
/* Returns the codes of a table of 16 bytes, four times in `table`. */
OPDI_AVX512 OPDI_ALWAYS opdi_v16u opdi_block_look_up(opdi_v16u table, opdi_v16u codes) {
    opdi_v16u found;
    __asm__("vpshufb {%2, %1, %0|%0, %1, %2}" : "=v"(found) : "v"(table), "v"(codes));
    return found;
}
OPDI_LOOPS_END
#endif
