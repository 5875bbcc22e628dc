#include "kernels.h"

//== from numbers to blocks ============================================================================================

/* Sums of products are not fused, so that every processor writes the same blocks. */
/* The product of two floats, rounded to a float. */
#define OPDI_PRODUCT(a, b) OPDI_ROUNDED(float, (a) * (b))
/* Scales below this are 0 in a block. */
#define OPDI_BLOCK_TINY 1e-18f
/* The numbers that a format can store before they are multiplied by a scale: the integers from low to high, or, if
   `table` is set, 16 numbers: the least is `low`, the gaps between them are `gaps`, and halfway between them are
   `bounds`.  A search for the best scale changes the number for the largest element by multiples of `step`. */
typedef struct opdi_block_numbers {
    float low, high, step;
    bool table;
    float bounds[15], gaps[15];
} opdi_block_numbers;
/* Scales that are tried for n numbers x.  Code q of x is x * inverse, rounded and limited; for formats with minima, it
   is (x + minimum) * inverse. */
#define OPDI_TRIALS 16
typedef struct opdi_block_trials {
    float inverse[OPDI_TRIALS], scale[OPDI_TRIALS], minimum[OPDI_TRIALS];
    float xq[OPDI_TRIALS], qq[OPDI_TRIALS], qs[OPDI_TRIALS];       /* sums of x * q, of q * q, and of q */
} opdi_block_trials;
/* Functions for all trials.
   codes, numbers, ranges: set the sums: for integers, for a table, and for formats with minima (0 <= q <= high).
   invert: sets `inverse` to 1 / scale, or 0.
   fit_scales, fit_ranges: set `scale`, or `scale` and `minimum`, to the best for the codes, and write the errors.
   errors: writes the errors: sums of (x - scale * q + minimum)^2, less the sum of x^2.  `sum` is the sum of x.
   (The errors are no member of opdi_block_trials: gcc 12 for 32-bit x86 computes the addresses of doubles from the
   addresses of floats in the same struct, and then takes the function for one that writes nothing.) */
typedef struct opdi_block_search {
    void (*codes)(const float *x, int n, const opdi_block_numbers *numbers, opdi_block_trials *trials);
    void (*numbers)(const float *x, int n, const opdi_block_numbers *numbers, opdi_block_trials *trials);
    void (*ranges)(const float *x, int n, float high, opdi_block_trials *trials);
    void (*invert)(opdi_block_trials *trials);
    void (*fit_scales)(opdi_block_trials *trials, double *error);
    void (*fit_ranges)(int n, double sum, opdi_block_trials *trials, double *error);
    void (*errors)(int n, double sum, const opdi_block_trials *trials, double *error);
} opdi_block_search;

#define OPDI_BLOCK_SEARCH(level) {opdi_try_codes_##level##_f32, opdi_try_numbers_##level##_f32, \
    opdi_try_ranges_##level##_f32, opdi_invert_scales_##level##_f32, opdi_fit_scales_##level##_f32, \
    opdi_fit_ranges_##level##_f32, opdi_find_errors_##level##_f32}
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

static const opdi_block_numbers opdi_q3_numbers = {-4, 3, 0.12f, false, {0}, {0}};
static const opdi_block_numbers opdi_q6_numbers = {-32, 31, 0.12f, false, {0}, {0}};
static const opdi_block_numbers opdi_iq4_table = {-127, 113, 2.5f, true,
    {-115.5f, -93.5f, -74, -57, -42, -28.5f, -16, -4.5f, 7, 19, 31.5f, 45.5f, 61, 79, 101},
    {23, 21, 18, 16, 14, 13, 12, 11, 12, 12, 13, 15, 16, 20, 24}};
static const opdi_block_numbers opdi_fp4_table = {-12, 12, 0.2f, true,
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
/* Returns the bits of the largest magnitude.  The bits of NaN are larger than the bits of any number. */
static int32_t opdi_block_most(const float *x, int n) {
    int32_t most[16] = {0};
    int i = 0;
    for (; i + 16 <= n; i += 16) {
        for (int j = 0; j < 16; j++) {
            const int32_t bits = (int32_t)(opdi_bits(x[i + j]) & 0x7fffffffu);
            most[j] = bits > most[j] ? bits : most[j];
        }
    }
    for (; i < n; i++) {
        const int32_t bits = (int32_t)(opdi_bits(x[i]) & 0x7fffffffu);
        most[0] = bits > most[0] ? bits : most[0];
    }
    for (int j = 1; j < 16; j++) { most[0] = most[j] > most[0] ? most[j] : most[0]; }
    return most[0];
}
/* Returns the place of the element with the largest magnitude, the first of several. */
static int opdi_block_top_place(const float *x, int n) {
    const uint32_t most = (uint32_t)opdi_block_most(x, n);
    int i = 0;
    while ((opdi_bits(x[i]) & 0x7fffffffu) != most) { i++; }
    return i;
}
/* Returns this element; 0, not -0, if all are 0. */
static float opdi_block_top(const float *x, int n) { return x[opdi_block_top_place(x, n)] + 0.0f; }
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

//== searching for scales ==============================================================================================

static void opdi_try_scales(const opdi_block_search *search, const float *x, int n, const opdi_block_numbers *numbers,
                            opdi_block_trials *trials) {
    (numbers->table ? search->numbers : search->codes)(x, n, numbers, trials);
}
/* Returns the trial with the least error, if this is less than *least; else -1. */
static int opdi_best_trial(const double *errors, double *least) {
    int best = -1;
    for (int t = 0; t < OPDI_TRIALS; t++) {
        if (errors[t] < *least) {
            *least = errors[t];
            best = t;
        }
    }
    return best;
}
/* Tries `inverse` of all trials.  If the error is less than *error, sets it and *scale. */
static void opdi_improve_scale(const opdi_block_search *search, const float *x, int n,
                               const opdi_block_numbers *numbers, opdi_block_trials *trials, double *error,
                               float *scale) {
    double errors[OPDI_TRIALS];
    opdi_try_scales(search, x, n, numbers, trials);
    search->fit_scales(trials, errors);
    const int best = opdi_best_trial(errors, error);
    if (best >= 0) { *scale = trials->scale[best]; }
}
/* Returns the scale with the least squared error when n numbers are stored as scale * q: tries 16 scales for which the
   largest element becomes about numbers->low, 16 for which it becomes numbers->high, and 16 near the best of these. */
static float opdi_best_scale(const opdi_block_search *search, const float *x, int n,
                             const opdi_block_numbers *numbers) {
    const float top = opdi_block_top(x, n);
    opdi_block_trials trials;
    double error = 0;
    float scale = 0;
    if (fabsf(top) < OPDI_BLOCK_TINY) { return 0; }
    for (int t = 0; t < OPDI_TRIALS; t++) { trials.inverse[t] = (numbers->low + numbers->step * (float)(t - 7)) / top; }
    opdi_improve_scale(search, x, n, numbers, &trials, &error, &scale);
    for (int t = 0; t < OPDI_TRIALS; t++) {
        trials.inverse[t] = (numbers->high + numbers->step * (float)(t - 7)) / top;
    }
    opdi_improve_scale(search, x, n, numbers, &trials, &error, &scale);
    if (fabsf(scale) < OPDI_BLOCK_TINY) { return scale; }
    const float inverse = 1.0f / scale, apart = inverse * 0.1f * numbers->step / numbers->low;
    for (int t = 0; t < OPDI_TRIALS; t++) { trials.inverse[t] = inverse + apart * (float)(t - 7); }
    opdi_improve_scale(search, x, n, numbers, &trials, &error, &scale);
    return scale;
}
/* The same for a scale and a minimum. */
static void opdi_improve_range(const opdi_block_search *search, const float *x, int n, float high, double sum,
                               opdi_block_trials *trials, double *error, float *scale, float *minimum) {
    double errors[OPDI_TRIALS];
    search->ranges(x, n, high, trials);
    search->fit_ranges(n, sum, trials, errors);
    const int best = opdi_best_trial(errors, error);
    if (best >= 0) {
        *scale = trials->scale[best];
        *minimum = trials->minimum[best];
    }
}
/* Returns the scale, and writes the minimum, with the least squared error when n numbers are stored as scale * q -
   minimum, where 0 <= q <= high and minimum >= 0: tries 16 scales for which the largest element becomes about `high`,
   and 16 for which the least element is lower than the minimum; then twice 16 scales and minima near the best ones. */
static float opdi_best_range(const opdi_block_search *search, const float *x, int n, float high, double sum,
                             float *minimum) {
    float least = 0, most = x[0], scale = 0, apart = 0.1f / high;
    double error = 1e299;
    opdi_block_trials trials;
    for (int i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    *minimum = -least;
    if (most - least < OPDI_BLOCK_TINY) { return 0; }             /* all numbers are equal, and not positive */
    const float one = 1.0f / (most - least);
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < OPDI_TRIALS; t++) {
            trials.inverse[t] = (high + 0.15f * (float)(t - 8)) * one;
            trials.minimum[t] = pass == 0 ? -least : -least - 0.5f * (most - least) / high;
        }
        opdi_improve_range(search, x, n, high, sum, &trials, &error, &scale, minimum);
    }
    for (int again = 0; again < 2 && scale > OPDI_BLOCK_TINY; again++, apart *= 0.5f) {
        const float inverse = 1.0f / scale;
        for (int t = 0; t < OPDI_TRIALS; t++) {
            trials.inverse[t] = (1.0f + apart * (float)(t / 4 - 1)) * inverse;
            trials.minimum[t] = *minimum + 0.2f * scale * (float)(t % 4 - 1);
        }
        opdi_improve_range(search, x, n, high, sum, &trials, &error, &scale, minimum);
    }
    return scale;
}

//== blocks with one scale =============================================================================================

/* OPD_Q4_0, OPD_Q5_0: numbers from -half to half - 1; OPD_Q4_1, OPD_Q5_1 (if `minimum` is set): from 0 to 2 * half - 1,
   and a minimum.  llama.cpp writes the same bytes. */
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
    static const opdi_block_numbers numbers = {-1, 2, 0.06f, false, {0}, {0}};
    const float d = opdi_rounded_f16(opdi_best_scale(search, x, 64, &numbers)), inverse = opdi_inverse(d);
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
/* OPD_TQ1_0, OPD_TQ2_0: -1, 0 and 1 times a scale.  If the k largest magnitudes do not become 0, the best scale is
   their mean, and the error becomes less by the square of their sum, divided by k. */
static bool opdi_encode_ternary(const float *x, uint8_t *at, bool base3) {
    float sizes[256];
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
    const float d = opdi_rounded_f16((float)scale);
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
    const float d = opdi_rounded_f16(opdi_best_scale(search, x, 32, &opdi_iq4_table)), inverse = opdi_inverse(d);
    for (int i = 0; i < 32; i++) { q[i] = (uint8_t)opdi_searched_place(x[i] * inverse, &opdi_iq4_table); }
    opdi_nibbles_put(at + 2, q, 16);
    return opdi_f16_put(at, d);
}
/* OPD_MXFP4: the scale is a power of two.  Tries those for which the largest number becomes 2 to 32 units. */
static bool opdi_encode_mxfp4(const opdi_block_search *search, const float *x, uint8_t *at) {
    float near_one[32];
    opdi_block_trials trials;
    uint8_t q[32];
    int exponent = 0;
    double least = 0, errors[OPDI_TRIALS];
    (void)frexpf(opdi_block_top(x, 32), &exponent);                /* no |x| is larger than 2^exponent */
    const float factor = opdi_pow2(-exponent >> 1), other = opdi_pow2(-exponent - (-exponent >> 1));
    for (int i = 0; i < 32; i++) { near_one[i] = x[i] * factor * other; }
    memset(&trials, 0, sizeof trials);
    for (int t = 0; t < 4; t++) {
        const int e = exponent + 128 - 2 - t;
        trials.scale[t] = e >= 0 && e < 255 ? 0.25f / (float)(1 << t) : 0;
    }
    search->invert(&trials);
    search->numbers(near_one, 32, &opdi_fp4_table, &trials);
    search->errors(32, 0, &trials, errors);
    const int best = opdi_best_trial(errors, &least);
    at[0] = (uint8_t)(best < 0 ? 0 : exponent + 128 - 2 - best);
    for (int i = 0; i < 32; i++) {
        q[i] = (uint8_t)(best < 0 ? 0 : opdi_fp4_code(near_one[i] * trials.inverse[best]));
    }
    opdi_nibbles_put(at + 1, q, 16);
    return true;
}
/* OPD_NVFP4: the scale is an unsigned float8_e4m3.  Tries those for which the largest number becomes 4 to 18 units. */
static bool opdi_encode_nvfp4(const opdi_block_search *search, const float *x, uint8_t *at) {
    for (int g = 0; g < 4; g++, x += 16) {
        uint8_t q[16];
        opdi_block_trials trials;
        int first = 0;
        double least = 0, errors[OPDI_TRIALS];
        const float top = fabsf(opdi_block_top(x, 16));
        if (top > 2784) { return false; }                          /* the largest scale is 448 */
        while (first < 126 && opdi_nvfp4_scale((uint8_t)first) * 12 < top) { first++; }
        first = first > 5 ? first - 5 : 1;
        memset(&trials, 0, sizeof trials);
        for (int t = 0; t < OPDI_TRIALS && first + t <= 126; t++) {
            trials.scale[t] = opdi_nvfp4_scale((uint8_t)(first + t));
        }
        search->invert(&trials);
        search->numbers(x, 16, &opdi_fp4_table, &trials);
        search->errors(16, 0, &trials, errors);
        const int best = opdi_best_trial(errors, &least);
        at[g] = (uint8_t)(best < 0 ? 0 : first + best);
        for (int j = 0; j < 16; j++) { q[j] = (uint8_t)(best < 0 ? 0 : opdi_fp4_code(x[j] * trials.inverse[best])); }
        opdi_nibbles_put(at + 4 + 8 * g, q, 8);
    }
    return true;
}

//== blocks of 256 with scales for groups ==============================================================================

/* Finds the integers for a given d, near wanted[k] / d.  Returns the error, less the sum of x^2, and sets *d to the
   best one for the same codes.  See opdi_search_scales. */
static double opdi_try_block_scales(const opdi_block_search *search, const float *x, int n, int low,
                                    const opdi_block_numbers *numbers, const float *wanted, float *d, int *scales) {
    double error = 0, xq = 0, qq = 0;
    opdi_block_trials trials;
    memset(&trials, 0, sizeof trials);
    for (int k = 0; k < 256 / n; k++) {
        const int first = opdi_searched_code(wanted[k] / *d, low, -1 - low) - OPDI_TRIALS / 2;
        double least = 0, errors[OPDI_TRIALS];
        for (int t = 0; t < OPDI_TRIALS; t++) {
            trials.scale[t] = *d * (float)(first + t < low || first + t > -1 - low ? 0 : first + t);
        }
        search->invert(&trials);
        opdi_try_scales(search, x + n * k, n, numbers, &trials);
        search->errors(n, 0, &trials, errors);
        const int best = opdi_best_trial(errors, &least);
        scales[k] = best < 0 ? 0 : first + best;
        error += least;
        if (best >= 0) {
            xq += (double)trials.xq[best] * scales[k];
            qq += (double)trials.qq[best] * scales[k] * scales[k];
        }
    }
    *d = qq > 0 ? opdi_rounded_f16((float)(xq / qq)) : 0.0f;
    return error;
}
/* Finds the scales of a block whose numbers are d * scales[k] * q in groups of n.  The integers scales[k] are from low
   to -1 - low.  Returns d, which a float16 can represent. */
static float opdi_search_scales(const opdi_block_search *search, const float *x, int n, int low,
                                const opdi_block_numbers *numbers, int *scales) {
    const int groups = 256 / n;
    float wanted[16], best = 0;
    double least = 0;
    memset(scales, 0, (size_t)groups * sizeof *scales);
    for (int k = 0; k < groups; k++) { wanted[k] = opdi_best_scale(search, x + n * k, n, numbers); }
    const float top = opdi_block_top(wanted, groups);
    for (int t = 0; t < 3 && top != 0; t++) {
        float d = opdi_rounded_f16(top / ((float)low + (float)t * (low < -32 ? 1.0f : 0.4f)));
        for (int again = 0; again < 2 && d != 0; again++) {
            int tried[16];
            const float now = d;
            const double error = opdi_try_block_scales(search, x, n, low, numbers, wanted, &d, tried);
            if (error < least) {
                least = error;
                best = now;
                memcpy(scales, tried, (size_t)groups * sizeof *scales);
            }
        }
    }
    return best;
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
    float d, dmin;
    double error;
    int scales[16], minima[16];
} opdi_block_ranges;
/* Finds found->scales[k] and found->minima[k] with the least error, near a scale and a minimum.  Tries four scales, and
   eight minima for each.  If the codes stay the same, the best minimum for a scale gives the stored numbers the same
   mean as x.  Returns the error, less the sum of x^2, and writes the sums of x * q, q * q and q.  `sum` is
   the sum of x. */
static double opdi_try_group_range(const opdi_block_search *search, const float *x, int n, int limit, float high,
                                   float scale, float minimum, double sum, int k, opdi_block_ranges *found,
                                   double *sums) {
    const float mean = (float)(sum / n), to_dmin = opdi_inverse(found->dmin), to_scale = opdi_inverse(scale);
    const int first = opdi_searched_code(scale * opdi_inverse(found->d) - 0.5f, 0, limit) - 1;
    opdi_block_trials trials;
    double least = 1e299, errors[OPDI_TRIALS];
    int minima[OPDI_TRIALS];
    for (int t = 0; t < OPDI_TRIALS; t += 4) {
        const float now = found->d * (float)(first + t / 4);
        const float nearest = scale > 0 ? (minimum + mean) * (now * to_scale) - mean : minimum;
        const int middle = opdi_searched_code(nearest * to_dmin - 0.5f, 0, limit);
        for (int j = 0; j < 4; j++) {
            minima[t + j] = middle - 3 + j;
            trials.scale[t + j] = now;
        }
    }
    search->invert(&trials);
    for (int pass = 0; pass < 2; pass++) {
        for (int t = 0; t < OPDI_TRIALS; t++) {
            minima[t] += 4 * pass;
            trials.minimum[t] = found->dmin * (float)minima[t];
        }
        search->ranges(x, n, high, &trials);
        search->errors(n, sum, &trials, errors);
        for (int t = 0; t < OPDI_TRIALS; t++) {
            const int a = first + t / 4, b = minima[t];
            if (a < 0 || a > limit || b < 0 || b > limit) { errors[t] = 1e300; }
        }
        const int best = opdi_best_trial(errors, &least);
        if (best < 0) { continue; }
        found->scales[k] = first + best / 4;
        found->minima[k] = minima[best];
        sums[0] = (double)trials.xq[best];
        sums[1] = (double)trials.qq[best];
        sums[2] = (double)trials.qs[best];
    }
    return least;
}
/* What was found for the groups of a block: the best scale and minimum of each, and the sums of x. */
typedef struct opdi_group_ranges {
    float scales[16], minima[16];
    double sums[16];
} opdi_group_ranges;
/* Finds the integers for found->d and found->dmin.  Sets *d and *dmin to the best ones for the same codes. */
static void opdi_try_block_ranges(const opdi_block_search *search, const float *x, int n, int limit, float high,
                                  const opdi_group_ranges *groups, opdi_block_ranges *found, float *d, float *dmin) {
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
    found->error = 0;
    for (int k = 0; k < 256 / n; k++) {
        double sums[3] = {0, 0, 0};
        found->error += opdi_try_group_range(search, x + n * k, n, limit, high, groups->scales[k], groups->minima[k],
                                             groups->sums[k], k, found, sums);
        const double s = found->scales[k], m = found->minima[k];
        aa += s * s * sums[1];
        ab += s * m * sums[2];
        bb += m * m * n;
        xa += s * sums[0];
        xb += m * groups->sums[k];
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
    float scale = 0, minimum = 0;
    opdi_group_ranges groups;
    opdi_block_ranges found;
    for (int k = 0; k < 256 / n; k++) {
        groups.sums[k] = 0;
        for (int i = n * k; i < n * k + n; i++) { groups.sums[k] += (double)x[i]; }
        groups.scales[k] = opdi_best_range(search, x + n * k, n, high, groups.sums[k], &groups.minima[k]);
        scale = groups.scales[k] > scale ? groups.scales[k] : scale;
        minimum = groups.minima[k] > minimum ? groups.minima[k] : minimum;
    }
    memset(&found, 0, sizeof found);
    *best = found;
    best->error = 1e300;
    for (int t = 0; t < 2; t++) {
        const float top = (float)limit - (limit < 63 ? 0.5f : 2.5f) * (float)t;
        float d = opdi_rounded_f16(scale / top), dmin = opdi_rounded_f16(minimum / top);
        for (int again = 0; again < 3 && d >= 0 && dmin >= 0; again++) {
            found.d = d;
            found.dmin = dmin;
            opdi_try_block_ranges(search, x, n, limit, high, &groups, &found, &d, &dmin);
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
        case OPD_WEIGHT_F16: return 65519.996f;                        /* what is rounded to a finite number */
        case OPD_WEIGHT_BF16: return 3.39615136e38f;
        default: return FLT_MAX;
    }
}
/* Writes 32 numbers of 16 bits. */
static bool opdi_encode_halves(const float *x, uint8_t *at, bool bf16) {
    for (int i = 0; i < 32; i++) {
        const uint16_t half = bf16 ? opdi_f32_to_bf16(x[i]) : opdi_f32_to_f16(x[i]);
        at[2 * i] = (uint8_t)half;
        at[2 * i + 1] = (uint8_t)(half >> 8);
    }
    return true;
}
/* Writes codes of integers, the first one in the lowest bits of the first byte. */
OPDI_INTERNAL void opdi_int_codes_put(const uint8_t *codes, int64_t count, int bits, uint8_t *at) {
    for (int64_t i = 0; i < count; i += 8, at += bits) {
        uint64_t word = 0;
        for (int j = 0; j < 8; j++) { word |= (uint64_t)codes[i + j] << bits * j; }
        for (int byte = 0; byte < bits; byte++) { at[byte] = (uint8_t)(word >> 8 * byte); }
    }
}
/* Writes a float, the lowest byte first. */
OPDI_INTERNAL void opdi_f32_put(uint8_t *at, float number) {
    const uint32_t bits = opdi_bits(number);
    for (int byte = 0; byte < 4; byte++) { at[byte] = (uint8_t)(bits >> 8 * byte); }
}
/* Returns the code for x: rounded half to even, as torchao's quantize_affine does. */
static uint8_t opdi_int_code(float x, float inverse, float zero, float most) {
    float code = OPDI_PRODUCT(x, inverse);
    code = code > 1000 ? 1000 : code < -1000 ? -1000 : code;
    code = OPDI_ROUNDED(float, code + OPDI_MAGIC) - OPDI_MAGIC + zero;
    return (uint8_t)(code > most ? most : code < 0 ? 0 : code);
}
/* Writes a block of integers with the scale and zero point that torchao's choose_qparams_affine gives.  Returns false
   if the scale would be infinite. */
static bool opdi_encode_ints(const opdi_block_info *info, const float *x, uint8_t *at) {
    const int most = (1 << info->bits) - 1;
    float low = 0, high = 0, zero = (float)((most + 1) / 2);
    for (int i = 0; i < info->elements; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    float scale = info->zero ? (high - low) / (float)most : (-low > high ? -low : high) / ((float)most / 2);
    if (!(scale <= FLT_MAX)) { return false; }
    scale = scale < FLT_MIN ? FLT_MIN : scale;
    if (info->zero) {
        zero = -(OPDI_ROUNDED(float, low / scale + OPDI_MAGIC) - OPDI_MAGIC);
        zero = zero > (float)most ? (float)most : zero;
    }
    opdi_f32_put(at, scale);
    if (info->zero) { opdi_f32_put(at + 4, zero + 0.0f); }
    at += info->zero ? 8 : 4;
    for (int i = 0; i < info->elements; i += 8, at += info->bits) {
        uint8_t codes[8];
        for (int j = 0; j < 8; j++) { codes[j] = opdi_int_code(x[i + j], 1.0f / scale, zero, (float)most); }
        opdi_int_codes_put(codes, 8, info->bits, at);
    }
    return true;
}
static bool opdi_encode_block(opd_scalar_type dtype, const opdi_block_search *search, const float *x, uint8_t *at) {
    switch (dtype) {
        case OPD_WEIGHT_F16: return opdi_encode_halves(x, at, false);
        case OPD_WEIGHT_BF16: return opdi_encode_halves(x, at, true);
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
/* Makes the error for a block that cannot be encoded; `first` is the place of its first number.  Returns -1. */
static int opdi_encode_refused(const opdi_block_info *info, const float *x, int64_t first) {
    const int place = opdi_block_top_place(x, info->elements);
    const float top = x[place];
    if (!(fabsf(top) <= FLT_MAX)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "quantize: number %lld is %s, which cannot be stored as %s",
                        (long long)(first + place), top != top ? "NaN" : "infinite", opd_dtype_name(info->dtype));
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "quantize: number %lld, %g, is too large for %s", (long long)(first + place),
                    (double)top, opd_dtype_name(info->dtype));
}
/* Writes n numbers to n / opd_dtype_block(dtype) blocks.  OPD_Q4_0, OPD_Q4_1, OPD_Q5_0, OPD_Q5_1 and OPD_Q8_0 get the
   bytes that llama.cpp writes.  For the other formats, searches for the scales with the least squared error.  Returns
   0, or -1 with an error if the format cannot be written, or a number is NaN, infinite or too large for the format.
   The error says which number, counted from `in`. */
OPDI_INTERNAL int opdi_blocks_encode(opd_scalar_type dtype, const float *in, void *blocks, int64_t n) {
    const opdi_block_info info = opdi_block_info_of((int)dtype);
    const opdi_block_search *const search = opdi_block_search_of(opdi_cpu_level());
    const float limit = opdi_block_limit(dtype);
    if (opdi_blocks_readable(dtype) != 0) { return -1; }
    for (int64_t i = 0; i + info.elements <= n; i += info.elements) {
        const float most = opdi_float((uint32_t)opdi_block_most(in + i, info.elements));
        uint8_t *const at = (uint8_t *)blocks + i / info.elements * info.bytes;
        if (!(most <= limit) || !(info.bits ? opdi_encode_ints(&info, in + i, at)
                                  : opdi_encode_block(dtype, search, in + i, at))) {
            return opdi_encode_refused(&info, in + i, i);
        }
    }
    return 0;
}
