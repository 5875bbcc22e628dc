#include "kernels.h"

//== from numbers to blocks ============================================================================================

/* Sums of products are not fused, so that every processor writes the same blocks. */
#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(__GNUC__) && !defined(__TINYC__) && defined(__OPTIMIZE__)
#pragma GCC push_options
#pragma GCC optimize ("fp-contract=off")
#endif
/* The product of two floats, rounded to a float. */
#define OPDI_PRODUCT(a, b) OPDI_ROUNDED(float, (a) * (b))
/* Scales below this are 0 in a block. */
#define OPDI_BLOCK_TINY 1e-18f
/* The numbers that a format can store before they are multiplied by a scale: the integers from low to high, or 16
   numbers of a table, the least and the gaps between them.  A search for the best scale changes the number for the
   largest element by multiples of `step`. */
typedef struct opdi_block_numbers {
    float low, high, step;
    bool table;
    float least, bounds[15], gaps[15];
} opdi_block_numbers;
/* Functions that search for the scales of n numbers x, for a level of instructions.
   scale: returns the s with the least error when x is stored as s * q.
   scale_error: returns the sum of (x - s * q)^2, less the sum of x^2; sums: of x * q, and of q * q.
   range: returns the s, and writes the m >= 0, with the least error when x is stored as s * q - m, 0 <= q <= high.
   range_error: returns the sum of (x - s * q + m)^2, less the sum of x^2; writes sums of x * q, q * q and q, and reads
   the sum of x in sums[3]. */
typedef struct opdi_block_search {
    float (*scale)(const float *x, int n, const opdi_block_numbers *numbers);
    float (*scale_error)(const float *x, int n, float scale, const opdi_block_numbers *numbers, float *sums);
    float (*range)(const float *x, int n, float high, float *minimum);
    float (*range_error)(const float *x, int n, float scale, float minimum, float high, float *sums);
} opdi_block_search;

#define OPDI_BLOCK_SEARCH(level) {opdi_best_scale_##level##_f32, opdi_scale_error_##level##_f32, \
    opdi_best_range_##level##_f32, opdi_range_error_##level##_f32}
#include "../typed/f32.h"
#include "block_search.typed.h"
static const opdi_block_search opdi_block_search_plain = OPDI_BLOCK_SEARCH(plain);
#if defined(OPDI_VECTORS)
#include "../typed/f32_avx2.h"
#include "block_search.typed.h"
static const opdi_block_search opdi_block_search_avx2 = OPDI_BLOCK_SEARCH(avx2);
#if defined(OPDI_X86)
#include "../typed/f32_avx512.h"
#include "block_search.typed.h"
static const opdi_block_search opdi_block_search_avx512 = OPDI_BLOCK_SEARCH(avx512);
#endif
#endif
#include "../typed/end.h"
static const opdi_block_search *opdi_block_search_of(int level) {
#if defined(OPDI_VECTORS)
    if (level > 0) { return OPDI_WIDEST(level, &opdi_block_search_avx512, &opdi_block_search_avx2); }
#endif
    return (void)level, &opdi_block_search_plain;
}

static const opdi_block_numbers opdi_q3_numbers = {-4, 3, 0.1f, false, 0, {0}, {0}};
static const opdi_block_numbers opdi_q6_numbers = {-32, 31, 0.1f, false, 0, {0}, {0}};
static const opdi_block_numbers opdi_iq4_table = {-127, 113, 2, true, -127,
    {-115.5f, -93.5f, -74, -57, -42, -28.5f, -16, -4.5f, 7, 19, 31.5f, 45.5f, 61, 79, 101},
    {23, 21, 18, 16, 14, 13, 12, 11, 12, 12, 13, 15, 16, 20, 24}};
static const opdi_block_numbers opdi_fp4_table = {-12, 12, 0.2f, true, -12,
    {-10, -7, -5, -3.5f, -2.5f, -1.5f, -0.5f, 0.5f, 1.5f, 2.5f, 3.5f, 5, 7, 10, 100},
    {4, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 4, 0}};

//== parts of blocks ===================================================================================================

static void opdi_u16_put(uint8_t *at, uint32_t number) {
    at[0] = (uint8_t)number;
    at[1] = (uint8_t)(number >> 8);
}
/* Writes a scale as float16.  Returns false if it is too large. */
static bool opdi_f16_put(uint8_t *at, float scale) {
    const uint16_t half = opdi_f32_to_f16(scale);
    opdi_u16_put(at, half);
    return (half & 0x7c00u) != 0x7c00u;
}
static float opdi_rounded_f16(float scale) { return opdi_f16_to_f32(opdi_f32_to_f16(scale)); }
/* Returns the element with the largest magnitude, the first of several. */
static float opdi_block_top(const float *x, int n) {
    float top = 0;
    for (int i = 0; i < n; i++) {
        if (fabsf(x[i]) > fabsf(top)) { top = x[i]; }
    }
    return top;
}
/* Returns 1 / scale, or 0 if this is infinite.  Then, scale is 0 as a float16. */
static float opdi_inverse(float scale) {
    const float inverse = 1.0f / scale;
    return scale != 0 && fabsf(inverse) <= FLT_MAX ? inverse : 0.0f;
}
/* Returns x * inverse + shift without its fraction, limited to 0 to most. */
static uint8_t opdi_code_plus(float x, float inverse, float shift, int most) {
    const int q = (int)OPDI_ROUNDED(float, OPDI_PRODUCT(x, inverse) + shift);
    return (uint8_t)(q < 0 ? 0 : q > most ? most : q);
}
/* Returns x, rounded to the nearest integer, and half away from zero; |x| < 2^23. */
static int opdi_nearest(float x) {
    const int whole = (int)x;
    const float rest = x - (float)whole;
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}
/* Returns the integer that the functions of opdi_block_search use for x: half to even, limited. */
static int opdi_searched_code(float x, int low, int high) {
    float q = x < (float)low ? (float)low : x;
    q = q > (float)high ? (float)high : q;
    q = OPDI_ROUNDED(float, q + OPDI_MAGIC);
    return (int)(q - OPDI_MAGIC);
}
/* Returns the place in a sorted table of the number that is nearest to x. */
static int opdi_searched_place(float x, const opdi_block_numbers *numbers) {
    int place = 0;
    for (int k = 0; k < 15; k++) { place += x > numbers->bounds[k]; }
    return place;
}
/* Returns the code of OPD_MXFP4 and OPD_NVFP4 for x, in units of opdi_fp4_numbers. */
static int opdi_fp4_code(float x) {
    const int place = opdi_searched_place(x, &opdi_fp4_table) - 7;
    return place < 0 ? 8 - place : place;
}
/* Writes 2 * count numbers of 4 bits to `count` bytes: first the low bits of all bytes. */
static void opdi_nibbles_put(uint8_t *at, const uint8_t *q, int count) {
    for (int j = 0; j < count; j++) { at[j] = (uint8_t)((q[j] & 15u) | (uint32_t)q[j + count] << 4); }
}
/* Writes 128 numbers of 2 bits to 32 bytes: first the lowest bits of all bytes. */
static void opdi_pairs_of_bits_put(uint8_t *at, const uint8_t *q) {
    for (int j = 0; j < 32; j++) {
        at[j] = (uint8_t)((q[j] & 3u) | (q[j + 32] & 3u) << 2 | (q[j + 64] & 3u) << 4 | (uint32_t)q[j + 96] << 6);
    }
}

//== blocks with one scale =============================================================================================

/* OPD_Q4_0, OPD_Q5_0: numbers from -half to half - 1; OPD_Q4_1, OPD_Q5_1 (if `minimum` is set): from 0 to 2 * half - 1,
   and a minimum.  The bytes are those of llama.cpp. */
static bool opdi_encode_q4_q5(const float *x, uint8_t *at, int half, bool minimum) {
    uint8_t q[32], *const codes = at + (minimum ? 4 : 2) + (half == 16 ? 4 : 0);
    const int most = 2 * half - 1;
    bool fits;
    if (minimum) {
        float least = x[0], largest = x[0];
        for (int i = 1; i < 32; i++) {
            least = x[i] < least ? x[i] : least;
            largest = x[i] > largest ? x[i] : largest;
        }
        const float d = (largest - least) / (float)most, inverse = opdi_inverse(d);
        fits = opdi_f16_put(at, d);
        fits = opdi_f16_put(at + 2, least) && fits;
        if (!fits) { return false; }
        for (int i = 0; i < 32; i++) { q[i] = opdi_code_plus(OPDI_ROUNDED(float, x[i] - least), inverse, 0.5f, most); }
    } else {
        const float d = opdi_block_top(x, 32) / (float)-half, inverse = opdi_inverse(d);
        fits = opdi_f16_put(at, d);
        if (!fits) { return false; }
        for (int i = 0; i < 32; i++) { q[i] = opdi_code_plus(x[i], inverse, (float)half + 0.5f, most); }
    }
    if (half == 16) {
        memset(codes - 4, 0, 4);
        for (int i = 0; i < 32; i++) { codes[i / 8 - 4] = (uint8_t)(codes[i / 8 - 4] | (q[i] >> 4) << i % 8); }
    }
    opdi_nibbles_put(codes, q, 16);
    return true;
}
/* OPD_Q8_0, with the bytes of llama.cpp, and OPD_Q8_1, which also has the scale times the sum of the integers. */
static bool opdi_encode_q8(const float *x, uint8_t *at, bool sum) {
    const float d = fabsf(opdi_block_top(x, 32)) / 127.0f, inverse = opdi_inverse(d);
    uint8_t *const codes = at + (sum ? 4 : 2);
    int total = 0;
    if (!opdi_f16_put(at, d)) { return false; }
    for (int i = 0; i < 32; i++) {
        const int q = opdi_nearest(OPDI_PRODUCT(x[i], inverse));
        codes[i] = (uint8_t)q;
        total += q;
    }
    return !sum || opdi_f16_put(at + 2, (float)total * d);
}
static bool opdi_encode_q8_K(const float *x, uint8_t *at) {
    const float top = opdi_block_top(x, 256), d = top / -127.0f, inverse = opdi_inverse(d);
    const uint32_t bits = opdi_bits(inverse != 0 ? d : 0.0f);
    opdi_u16_put(at, bits);
    opdi_u16_put(at + 2, bits >> 16);
    for (int k = 0; k < 16; k++) {
        int total = 0;
        for (int j = 16 * k; j < 16 * k + 16; j++) {
            const int q = opdi_nearest(OPDI_PRODUCT(x[j], inverse));
            at[4 + j] = (uint8_t)q;
            total += q;
        }
        opdi_u16_put(at + 260 + 2 * k, (uint32_t)total);
    }
    return true;
}
/* OPD_Q1_0: the best scale is the mean of the magnitudes. */
static bool opdi_encode_q1_0(const float *x, uint8_t *at) {
    double sum = 0;
    memset(at + 2, 0, 16);
    for (int i = 0; i < 128; i++) {
        sum += fabs((double)x[i]);
        at[2 + i / 8] = (uint8_t)(at[2 + i / 8] | (uint32_t)(x[i] >= 0) << i % 8);
    }
    return opdi_f16_put(at, (float)(sum / 128));
}
/* OPD_Q2_0: numbers -1, 0, 1 and 2 times a scale of any sign. */
static bool opdi_encode_q2_0(const opdi_block_search *search, const float *x, uint8_t *at) {
    static const opdi_block_numbers numbers = {-1, 2, 0.06f, false, 0, {0}, {0}};
    const float d = opdi_rounded_f16(search->scale(x, 64, &numbers)), inverse = opdi_inverse(d);
    memset(at + 2, 0, 16);
    for (int i = 0; i < 64; i++) {
        const int q = opdi_searched_code(x[i] * inverse, -1, 2) + 1;
        at[2 + i / 4] = (uint8_t)(at[2 + i / 4] | q << 2 * (i % 4));
    }
    return opdi_f16_put(at, d);
}
static int opdi_descending(const void *a, const void *b) {
    const float left = *(const float *)a, right = *(const float *)b;
    return (left < right) - (left > right);
}
/* OPD_TQ1_0, OPD_TQ2_0: -1, 0 and 1 times a scale.  If the k largest magnitudes are not 0, the best scale is their mean,
   and the square of their sum, divided by k, is what the error becomes less. */
static bool opdi_encode_ternary(const float *x, uint8_t *at, bool base3) {
    float sizes[256], d;
    uint8_t q[256];
    double sum = 0, best = 0, scale = 0;
    for (int i = 0; i < 256; i++) { sizes[i] = fabsf(x[i]); }
    qsort(sizes, 256, sizeof *sizes, opdi_descending);
    for (int k = 0; k < 256; k++) {
        sum += (double)sizes[k];
        if (sum * sum / (k + 1) > best) {
            best = sum * sum / (k + 1);
            scale = sum / (k + 1);
        }
    }
    if (!opdi_f16_put(at + (base3 ? 52 : 64), (float)scale)) { return false; }
    d = opdi_rounded_f16((float)scale);
    for (int i = 0; i < 256; i++) { q[i] = (uint8_t)(1 + (x[i] > 0.5f * d) - (x[i] < -0.5f * d)); }
    if (!base3) {
        opdi_pairs_of_bits_put(at, q);
        opdi_pairs_of_bits_put(at + 32, q + 128);
        return true;
    }
    /* Five digits are a fraction of 243, which becomes a fraction of 256, rounded up. */
    for (int j = 0; j < 52; j++) {
        const int first = j < 32 ? j : j < 48 ? 160 + j - 32 : 240 + j - 48, apart = j < 32 ? 32 : j < 48 ? 16 : 4;
        int number = 0;
        for (int n = 0; n < 5; n++) { number = 3 * number + (j < 48 || n < 4 ? q[first + n * apart] : 0); }
        at[j] = (uint8_t)((number * 256 + 242) / 243);
    }
    return true;
}

//== blocks with four-bit numbers of a table ===========================================================================

static bool opdi_encode_iq4_nl(const opdi_block_search *search, const float *x, uint8_t *at) {
    uint8_t q[32];
    const float d = opdi_rounded_f16(search->scale(x, 32, &opdi_iq4_table)), inverse = opdi_inverse(d);
    for (int i = 0; i < 32; i++) { q[i] = (uint8_t)opdi_searched_place(x[i] * inverse, &opdi_iq4_table); }
    opdi_nibbles_put(at + 2, q, 16);
    return opdi_f16_put(at, d);
}
/* OPD_MXFP4: the scale is a power of two.  Tries three of them, so that the largest number becomes 3 to 12 units or
   becomes smaller. */
static bool opdi_encode_mxfp4(const opdi_block_search *search, const float *x, uint8_t *at) {
    const float top = opdi_block_top(x, 32);
    float near_one[32], least = 0, sums[2];
    uint8_t q[32];
    int exponent = 0, best = 0;
    (void)frexpf(top, &exponent);                 /* |top| < 2^exponent */
    for (int i = 0; i < 32; i++) { near_one[i] = ldexpf(x[i], -exponent); }
    for (int e = exponent + 128 - 5; top != 0 && e <= exponent + 128 - 2; e++) {
        const float error = search->scale_error(near_one, 32, ldexpf(1, e - 128 - exponent), &opdi_fp4_table, sums);
        if (e >= 0 && e < 255 && error < least) {
            least = error;
            best = e;
        }
    }
    at[0] = (uint8_t)best;
    for (int i = 0; i < 32; i++) {
        q[i] = (uint8_t)(least < 0 ? opdi_fp4_code(ldexpf(near_one[i], exponent + 128 - best)) : 0);
    }
    opdi_nibbles_put(at + 1, q, 16);
    return true;
}
/* OPD_NVFP4: the scale is an unsigned float8_e4m3.  Tries those near the scale with the least error. */
static bool opdi_encode_nvfp4(const opdi_block_search *search, const float *x, uint8_t *at) {
    for (int g = 0; g < 4; g++, x += 16) {
        uint8_t q[16];
        float least = 0, sums[2];
        int best = 0, middle = 0;
        const float scale = fabsf(search->scale(x, 16, &opdi_fp4_table));
        if (fabsf(opdi_block_top(x, 16)) > 2784) { return false; }      /* the largest scale is 448 */
        while (middle < 126 && opdi_nvfp4_scale((uint8_t)middle) < scale) { middle++; }
        for (int u = middle < 5 ? 1 : middle - 4; u <= middle + 4 && u <= 126; u++) {
            const float error = search->scale_error(x, 16, opdi_nvfp4_scale((uint8_t)u), &opdi_fp4_table, sums);
            if (error < least) {
                least = error;
                best = u;
            }
        }
        at[g] = (uint8_t)best;
        for (int j = 0; j < 16; j++) {
            q[j] = (uint8_t)opdi_fp4_code(x[j] * opdi_inverse(opdi_nvfp4_scale((uint8_t)best)));
        }
        opdi_nibbles_put(at + 4 + 8 * g, q, 8);
    }
    return true;
}

//== blocks of 256 with scales for groups ==============================================================================

/* Finds the scales of a block whose numbers are d * scales[k] * q in groups of n.  The integers scales[k] are from low
   to -1 - low.  Returns d, which a float16 can represent. */
static float opdi_search_scales(const opdi_block_search *search, const float *x, int n, int low,
                                const opdi_block_numbers *numbers, int *scales) {
    const int groups = 256 / n;
    float wanted[16], top, best_d = 0, least = 0;
    memset(scales, 0, (size_t)groups * sizeof *scales);
    for (int k = 0; k < groups; k++) { wanted[k] = search->scale(x + n * k, n, numbers); }
    top = opdi_block_top(wanted, groups);
    for (int t = 0; t < 4 && top != 0; t++) {
        float d = opdi_rounded_f16(top / ((float)low + (float)t * (low < -32 ? 1.0f : 0.4f)));
        for (int again = 0; again < 3 && d != 0; again++) {
            float error = 0, xq = 0, qq = 0;
            int tried[16];
            for (int k = 0; k < groups; k++) {
                const int middle = opdi_searched_code(wanted[k] / d, low, -1 - low);
                float group_least = 0, best_sums[2] = {0, 0};
                tried[k] = 0;
                for (int s = middle - 1; s <= middle + 1; s++) {
                    float sums[2];
                    if (s < low || s > -1 - low) { continue; }
                    const float e = search->scale_error(x + n * k, n, d * (float)s, numbers, sums);
                    if (e < group_least) {
                        group_least = e;
                        tried[k] = s;
                        memcpy(best_sums, sums, sizeof sums);
                    }
                }
                error += group_least;
                xq += best_sums[0] * (float)tried[k];
                qq += best_sums[1] * (float)(tried[k] * tried[k]);
            }
            if (error < least) {
                least = error;
                best_d = d;
                memcpy(scales, tried, (size_t)groups * sizeof *scales);
            }
            d = qq > 0 ? opdi_rounded_f16(xq / qq) : 0.0f;
        }
    }
    return best_d;
}
static bool opdi_encode_q6_K(const opdi_block_search *search, const float *x, uint8_t *at) {
    int scales[16];
    const float d = opdi_search_scales(search, x, 16, -128, &opdi_q6_numbers, scales);
    uint8_t q[256], high[128];
    for (int i = 0; i < 256; i++) {
        q[i] = (uint8_t)(opdi_searched_code(x[i] * opdi_inverse(d * (float)scales[i / 16]), -32, 31) + 32);
    }
    for (int h = 0; h < 2; h++) {
        opdi_nibbles_put(at + 64 * h, q + 128 * h, 64);
        for (int j = 0; j < 128; j++) { high[j] = q[128 * h + j] >> 4; }
        opdi_pairs_of_bits_put(at + 128 + 32 * h, high);
    }
    for (int k = 0; k < 16; k++) { at[192 + k] = (uint8_t)scales[k]; }
    return opdi_f16_put(at + 208, d);
}
static bool opdi_encode_q3_K(const opdi_block_search *search, const float *x, uint8_t *at) {
    int scales[16];
    const float d = opdi_search_scales(search, x, 16, -32, &opdi_q3_numbers, scales);
    uint8_t q[256];
    memset(at, 0, 32);
    memset(at + 96, 0, 12);
    for (int i = 0; i < 256; i++) {
        q[i] = (uint8_t)(opdi_searched_code(x[i] * opdi_inverse(d * (float)scales[i / 16]), -4, 3) + 4);
        at[i % 32] = (uint8_t)(at[i % 32] | (q[i] >> 2) << i / 32);
    }
    opdi_pairs_of_bits_put(at + 32, q);
    opdi_pairs_of_bits_put(at + 64, q + 128);
    for (int k = 0; k < 16; k++) {
        const int scale = scales[k] + 32;
        at[96 + k % 8] = (uint8_t)(at[96 + k % 8] | (scale & 15) << (k < 8 ? 0 : 4));
        at[104 + k % 4] = (uint8_t)(at[104 + k % 4] | (scale >> 4) << 2 * (k / 4));
    }
    return opdi_f16_put(at + 108, d);
}
static bool opdi_encode_iq4_xs(const opdi_block_search *search, const float *x, uint8_t *at) {
    int scales[8];
    const float d = opdi_search_scales(search, x, 32, -32, &opdi_iq4_table, scales);
    uint32_t high = 0;
    memset(at + 4, 0, 4);
    for (int b = 0; b < 8; b++) {
        const float inverse = opdi_inverse(d * (float)scales[b]);
        const int scale = scales[b] + 32;
        uint8_t q[32];
        for (int j = 0; j < 32; j++) { q[j] = (uint8_t)opdi_searched_place(x[32 * b + j] * inverse, &opdi_iq4_table); }
        opdi_nibbles_put(at + 8 + 16 * b, q, 16);
        at[4 + b / 2] = (uint8_t)(at[4 + b / 2] | (scale & 15) << 4 * (b % 2));
        high |= (uint32_t)(scale >> 4) << 2 * b;
    }
    opdi_u16_put(at + 2, high);
    return opdi_f16_put(at, d);
}
/* The scales of a block whose numbers are d * scales[k] * q - dmin * minima[k] in groups of n. */
typedef struct opdi_block_ranges {
    float d, dmin, error;
    int scales[16], minima[16];
} opdi_block_ranges;
/* Finds the integers for given d and dmin, near `scales` / d and `minima` / dmin.  Then sets *d and *dmin to the best
   ones for the same codes. */
static void opdi_try_ranges(const opdi_block_search *search, const float *x, int n, int limit, float high,
                            const float *scales, const float *minima, float *d, float *dmin,
                            opdi_block_ranges *found) {
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
    found->d = *d;
    found->dmin = *dmin;
    found->error = 0;
    for (int k = 0; k < 256 / n; k++) {
        const int scale = opdi_searched_code(scales[k] * opdi_inverse(*d), 0, limit);
        const int minimum = opdi_searched_code(minima[k] * opdi_inverse(*dmin), 0, limit);
        float least = 3e38f, best[4] = {0}, sums[4] = {0};
        for (int i = 0; i < n; i++) { sums[3] += x[n * k + i]; }
        for (int s = scale > 0 ? scale - 1 : 0; s <= scale + 1 && s <= limit; s++) {
            for (int m = minimum > 0 ? minimum - 1 : 0; m <= minimum + 1 && m <= limit; m++) {
                const float e = search->range_error(x + n * k, n, *d * (float)s, *dmin * (float)m, high, sums);
                if (e < least) {
                    least = e;
                    found->scales[k] = s;
                    found->minima[k] = m;
                    memcpy(best, sums, sizeof best);
                }
            }
        }
        const double s = found->scales[k], m = found->minima[k];
        found->error += least;
        aa += s * s * (double)best[1];
        ab += s * m * (double)best[2];
        bb += m * m * n;
        xa += s * (double)best[0];
        xb += m * (double)sums[3];
    }
    const double determinant = aa * bb - ab * ab;
    if (determinant > 0) {
        *d = opdi_rounded_f16((float)((xa * bb - xb * ab) / determinant));
        *dmin = opdi_rounded_f16((float)((xa * ab - xb * aa) / determinant));
    } else if (aa > 0) {
        *d = opdi_rounded_f16((float)(xa / aa));
    }
}
static void opdi_search_ranges(const opdi_block_search *search, const float *x, int n, int limit, float high,
                               opdi_block_ranges *best) {
    float scales[16], minima[16], scale = 0, minimum = 0;
    opdi_block_ranges found;
    for (int k = 0; k < 256 / n; k++) {
        scales[k] = search->range(x + n * k, n, high, &minima[k]);
        scale = scales[k] > scale ? scales[k] : scale;
        minimum = minima[k] > minimum ? minima[k] : minimum;
    }
    memset(best, 0, sizeof *best);
    best->error = 3e38f;
    for (int t = 0; t < (limit < 63 ? 4 : 1); t++) {
        float d = opdi_rounded_f16(scale / ((float)limit - 0.5f * (float)(t & 1)));
        float dmin = opdi_rounded_f16(minimum / ((float)limit - 0.5f * (float)(t >> 1)));
        for (int again = 0; again < 3 && d >= 0 && dmin >= 0; again++) {
            opdi_try_ranges(search, x, n, limit, high, scales, minima, &d, &dmin, &found);
            if (found.error < best->error) { *best = found; }
        }
    }
}
/* Returns the code of x in group k. */
static uint8_t opdi_range_code(const opdi_block_ranges *ranges, int k, float x, int high) {
    const float scale = ranges->d * (float)ranges->scales[k], minimum = ranges->dmin * (float)ranges->minima[k];
    return scale < OPDI_BLOCK_TINY ? 0 : (uint8_t)opdi_searched_code((x + minimum) * (1.0f / scale), 0, high);
}
static bool opdi_encode_q2_K(const opdi_block_search *search, const float *x, uint8_t *at) {
    opdi_block_ranges ranges;
    uint8_t q[256];
    opdi_search_ranges(search, x, 16, 15, 3, &ranges);
    for (int i = 0; i < 256; i++) { q[i] = opdi_range_code(&ranges, i / 16, x[i], 3); }
    for (int k = 0; k < 16; k++) { at[k] = (uint8_t)(ranges.scales[k] | ranges.minima[k] << 4); }
    opdi_pairs_of_bits_put(at + 16, q);
    opdi_pairs_of_bits_put(at + 48, q + 128);
    return opdi_f16_put(at + 80, ranges.d) && opdi_f16_put(at + 82, ranges.dmin);
}
/* OPD_Q4_K, or OPD_Q5_K if `fifth` is set. */
static bool opdi_encode_q4_K(const opdi_block_search *search, const float *x, uint8_t *at, bool fifth) {
    opdi_block_ranges ranges;
    uint8_t q[256], *const s = at + 4;
    const int high = fifth ? 31 : 15;
    opdi_search_ranges(search, x, 32, 63, (float)high, &ranges);
    for (int i = 0; i < 256; i++) { q[i] = opdi_range_code(&ranges, i / 32, x[i], high); }
    for (int b = 0; b < 4; b++) {
        const int scale = ranges.scales[b + 4], minimum = ranges.minima[b + 4];
        s[b] = (uint8_t)(ranges.scales[b] | (scale >> 4) << 6);
        s[b + 4] = (uint8_t)(ranges.minima[b] | (minimum >> 4) << 6);
        s[b + 8] = (uint8_t)((scale & 15) | (minimum & 15) << 4);
    }
    for (int j = 0; fifth && j < 32; j++) {
        uint32_t bits = 0;
        for (int b = 0; b < 8; b++) { bits |= (uint32_t)(q[32 * b + j] >> 4) << b; }
        at[16 + j] = (uint8_t)bits;
    }
    for (int k = 0; k < 4; k++) { opdi_nibbles_put(at + (fifth ? 48 : 16) + 32 * k, q + 64 * k, 32); }
    return opdi_f16_put(at, ranges.d) && opdi_f16_put(at + 2, ranges.dmin);
}

//== any format ========================================================================================================

/* Returns the largest magnitude for which the scale fits into a block, about; the functions above check the scale, too,
   if they store it as it is. */
static float opdi_block_limit(opd_scalar_type dtype) {
    switch (dtype) {
        case OPD_Q2_K: return 65504.0f * 15 * 3 / 2;
        case OPD_Q3_K: return 65504.0f * 32 * 3;
        case OPD_Q4_K: return 65504.0f * 63 * 15 / 2;
        case OPD_Q5_K: return 65504.0f * 63 * 31 / 2;
        case OPD_Q6_K: return 65504.0f * 127 * 31;
        case OPD_IQ4_XS: return 65504.0f * 31 * 113;
        case OPD_IQ4_NL: return 65504.0f * 113;
        case OPD_Q2_0: return 65504.0f;
        default: return FLT_MAX;
    }
}
static bool opdi_encode_block(opd_scalar_type dtype, const opdi_block_search *search, const float *x, uint8_t *at) {
    switch (dtype) {
        case OPD_Q4_0: return opdi_encode_q4_q5(x, at, 8, false);
        case OPD_Q4_1: return opdi_encode_q4_q5(x, at, 8, true);
        case OPD_Q5_0: return opdi_encode_q4_q5(x, at, 16, false);
        case OPD_Q5_1: return opdi_encode_q4_q5(x, at, 16, true);
        case OPD_Q8_0: return opdi_encode_q8(x, at, false);
        case OPD_Q8_1: return opdi_encode_q8(x, at, true);
        case OPD_Q8_K: return opdi_encode_q8_K(x, at);
        case OPD_Q1_0: return opdi_encode_q1_0(x, at);
        case OPD_Q2_0: return opdi_encode_q2_0(search, x, at);
        case OPD_IQ4_NL: return opdi_encode_iq4_nl(search, x, at);
        case OPD_MXFP4: return opdi_encode_mxfp4(search, x, at);
        case OPD_NVFP4: return opdi_encode_nvfp4(search, x, at);
        case OPD_Q2_K: return opdi_encode_q2_K(search, x, at);
        case OPD_Q3_K: return opdi_encode_q3_K(search, x, at);
        case OPD_Q4_K: return opdi_encode_q4_K(search, x, at, false);
        case OPD_Q5_K: return opdi_encode_q4_K(search, x, at, true);
        case OPD_Q6_K: return opdi_encode_q6_K(search, x, at);
        case OPD_IQ4_XS: return opdi_encode_iq4_xs(search, x, at);
        case OPD_TQ1_0: return opdi_encode_ternary(x, at, true);
        default: return opdi_encode_ternary(x, at, false);
    }
}
/* Writes n numbers to n / opd_dtype_block(dtype) blocks.  OPD_Q4_0, OPD_Q4_1, OPD_Q5_0, OPD_Q5_1 and OPD_Q8_0 get the
   bytes that llama.cpp writes.  For the other formats, searches for the scales with the least squared error.  Returns
   0, or -1 with an error if the format cannot be written, or a number is NaN, infinite or too large for the format.
   The error says which number, counted from `in`. */
OPDI_INTERNAL int opdi_blocks_encode(opd_scalar_type dtype, const float *in, void *blocks, int64_t n) {
    const opdi_block_info *const info = opdi_block_info_of((int)dtype);
    const opdi_block_search *const search = opdi_block_search_of(opdi_cpu_level());
    const float limit = opdi_block_limit(dtype);
    if (opdi_blocks_readable(dtype) != 0) { return -1; }
    for (int64_t i = 0; i + info->elements <= n; i += info->elements) {
        int64_t largest = i;
        for (int64_t j = i; j < i + info->elements; j++) {
            if (!(fabsf(in[j]) <= FLT_MAX)) {
                return opd_fail(OPD_ERROR_ARGUMENT, "quantize: number %lld is %s, which cannot be stored as %s",
                                (long long)j, in[j] != in[j] ? "NaN" : "infinite", info->info.name);
            }
            if (fabsf(in[j]) > fabsf(in[largest])) { largest = j; }
        }
        if (fabsf(in[largest]) > limit ||
            !opdi_encode_block(dtype, search, in + i, (uint8_t *)blocks + i / info->elements * info->bytes)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "quantize: number %lld, %g, is too large for %s", (long long)largest,
                            (double)in[largest], info->info.name);
        }
    }
    return 0;
}
#if defined(__GNUC__) && !defined(__clang__) && !defined(__TINYC__) && defined(__OPTIMIZE__)
#pragma GCC pop_options
#endif
