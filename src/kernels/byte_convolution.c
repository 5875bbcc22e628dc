#include "kernels.h"

//== convolutions of 8-bit integers ====================================================================================
//
//  The image is padded and stored with its channels last, so that the elements that a row of the kernel covers are one
//  run of bytes: a tile of the result reads them in place, and nothing is unfolded.  Sums are exact.  If the processor
//  can only multiply pairs of int16, the image and the weight are stored as int16.

/* Returns how a convolution is computed on this processor: 0: of bytes; 1: of int16; 2: in squares of int16. */
OPD_UNUSED OPDI_INTERNAL int opdi_byte_conv_form(const opdi_byte_conv *conv) {
    const bool three = conv->kh == 3 && conv->kw == 3 && conv->stride[0] == 1 && conv->stride[1] == 1 &&
        conv->dilation[0] == 1 && conv->dilation[1] == 1;
    if (conv->deep || !opdi_byte_tiles_are_pairs()) { return 0; }
    return three && conv->channels % 16 == 0 && conv->channels <= 900 ? 2 : 1;     /* sums times 4 have 32 bits */
}

#if defined(OPDI_WORDS)
typedef union opdi_byte_block { opdi_v16u align[64]; int32_t sums[1024]; float floats[1024]; uint8_t codes[4096]; }
    opdi_byte_block;
/* How a convolution is computed: positions of the result, `pitch` in each row of it, of which the first ow exist.  If
   the stride of columns allows it, the positions of all rows are `step` bytes apart (flat). */
typedef struct opdi_byte_plan {
    const opdi_byte_conv *conv;
    int64_t height, width;                        /* of the padded image */
    int64_t pitch, rows, count;                   /* `rows` rows of `count` positions are computed */
    int64_t unit;                                 /* the bytes of an element of the image and of the packed weight */
    opdi_byte_tile tile;
    int64_t *offsets;
    uint8_t *image;
    int16_t *squares;                             /* sums of pixels: see opdi_byte_square_in */
    char *y;
    const uint8_t *other;
} opdi_byte_plan;
enum { OPDI_BYTE_RUNS = 1024 };

static void opdi_byte_plan_make(const opdi_byte_conv *conv, int64_t *offsets, opdi_byte_plan *plan) {
    const int64_t sy = conv->stride[0], sx = conv->stride[1], c = conv->channels, once = conv->dilation[1] == 1;
    memset(plan, 0, sizeof *plan);
    plan->conv = conv;
    plan->unit = opdi_byte_conv_form(conv) ? 2 : 1;
    plan->height = conv->ih + 2 * conv->padding[0];
    plan->width = conv->iw + 2 * conv->padding[1];
    if (opdi_byte_conv_form(conv) == 2) {         /* an even number of lines and columns */
        plan->height = (conv->oh + 1) / 2 * 2 + 2;
        plan->width = (conv->ow + 1) / 2 * 2 + 2;
    }
    plan->pitch = conv->ow;
    plan->rows = conv->oh;
    plan->count = conv->ow;
    const int64_t pitch = sy * plan->width / sx, all = (conv->oh - 1) * pitch + conv->ow;
    if (!opdi_cpu_tiles()) {                      /* rows of a tile may be anywhere */
        plan->rows = 1;
        plan->count = conv->oh * conv->ow;
    } else if (pitch * sx == sy * plan->width && (all + 31) / 32 < conv->oh * ((conv->ow + 31) / 32)) {
        plan->pitch = pitch;
        plan->rows = 1;
        plan->count = all;
    }
    const int64_t across = once ? 1 : conv->kw, bytes = (once ? conv->kw * c : c) * plan->unit;
    plan->tile.runs = conv->kh * across;
    plan->tile.words = (bytes + 3) / 4;
    plan->tile.parts = (bytes + 63) / 64;
    plan->tile.step = sx * c * plan->unit;
    plan->tile.offsets = offsets;
    for (int64_t run = 0; offsets && run < plan->tile.runs; run++) {
        offsets[run] = (run / across * conv->dilation[0] * plan->width + run % across * conv->dilation[1]) * c *
            plan->unit;
    }
}
/* An opdi_range_fn: packs panels begin .. end - 1 of w, 32 rows each. */
static void opdi_byte_conv_panels(void *ctx, int64_t begin, int64_t end) {
    const opdi_byte_plan *const plan = (const opdi_byte_plan *)ctx;
    const opdi_byte_conv *const conv = plan->conv;
    const int64_t c = conv->channels, taps = conv->kh * conv->kw, bytes = plan->tile.parts * 64;
    const int64_t row = plan->tile.runs * bytes, across = taps / plan->tile.runs, unit = plan->unit;
    for (int64_t j = begin * OPDI_BYTE_SIDE; j < end * OPDI_BYTE_SIDE; j++) {
        int8_t *const to = conv->rows + j * row;
        memset(to, 0, (size_t)row);
        if (j >= conv->n) { continue; }
        const int8_t *const from = conv->w + j * c * taps;
        int32_t sum = 0;
        for (int64_t i = 0; i < c * taps; i++) { sum += from[i]; }
        conv->all[j] = sum;
        for (int64_t tap = 0; tap < taps; tap++) {
            int8_t *const at = to + tap / across * bytes + tap % across * c * unit;
            if (unit == 1) { for (int64_t i = 0; i < c; i++) { at[i] = from[i * taps + tap]; } }
            else { for (int64_t i = 0; i < c; i++) { ((int16_t *)(void *)at)[i] = from[i * taps + tap]; } }
        }
    }
    for (int64_t panel = begin; panel < end; panel++) {
        const int64_t at = panel * OPDI_BYTE_SIDE * row;
        opdi_pack_transposed((const opdi_word32 *)(const void *)(conv->rows + at), row / 4, row / 4, OPDI_BYTE_SIDE,
                             OPDI_BYTE_SIDE, (opdi_word32 *)(void *)(conv->packed + at));
    }
}
/* Copies `pixels` pixels of `c` channels from an image, whose channels and pixels are down and right bytes apart, to
   int16 with the channels last. */
OPDI_AVX2 static void opdi_byte_conv_widen(const uint8_t *from, int64_t down, int64_t right, int64_t c, int64_t pixels,
                                           uint8_t flip, int16_t *to) {
    const opdi_v16h none = {0}, flips = none + (uint16_t)flip;
    const bool last = down == 1 && right == c;
    int64_t i = 0;
    for (; last && i + 16 <= c * pixels; i += 16) {
        opdi_v16h h;
        OPDI_ASM_FROM_UINT8(h, from + i);
        h ^= flips;
        memcpy(to + i, &h, sizeof h);
    }
    for (; last && i < c * pixels; i++) { to[i] = from[i] ^ flip; }
    for (int64_t at = 0; !last && at < c; at++, from += down) {
        for (int64_t x = 0; x < pixels; x++) { to[x * c + at] = from[x * right] ^ flip; }
    }
}
/* Does the work of opdi_byte_conv_pad for an image of int16. */
static void opdi_byte_conv_pad_pairs(const opdi_byte_plan *plan, int64_t at) {
    const opdi_byte_conv *const conv = plan->conv;
    const int64_t c = conv->channels, all = plan->height * plan->width * c;
    int16_t *const image = (int16_t *)(void *)plan->image;
    if (conv->padding[0] || conv->padding[1]) {
        for (int64_t i = 0; i < all; i++) { image[i] = (int16_t)conv->ends.zero; }
    }
    for (int64_t y = 0; y < conv->ih; y++) {
        opdi_byte_conv_widen(conv->x + at * conv->xs[0] + y * conv->xs[2], conv->xs[1], conv->xs[3], c, conv->iw,
                             conv->flip, image + ((y + conv->padding[0]) * plan->width + conv->padding[1]) * c);
    }
}
/* Copies image number `at` to plan->image, with its channels last, and pads it with the zero point. */
static void opdi_byte_conv_pad(const opdi_byte_plan *plan, int64_t at) {
    const opdi_byte_conv *const conv = plan->conv;
    const int64_t c = conv->channels, wide = conv->iw * c;
    const bool last = conv->xs[1] == 1 && conv->xs[3] == c;
    if (plan->unit == 2) {
        opdi_byte_conv_pad_pairs(plan, at);
        return;
    }
    if (conv->padding[0] || conv->padding[1]) {
        memset(plan->image, conv->ends.zero, (size_t)(plan->height * plan->width * c));
    }
    for (int64_t y = 0; y < conv->ih; y++) {
        const uint8_t *const from = conv->x + at * conv->xs[0] + y * conv->xs[2];
        uint8_t *const to = plan->image + ((y + conv->padding[0]) * plan->width + conv->padding[1]) * c;
        if (last && !conv->flip) { memcpy(to, from, (size_t)wide); }
        else if (last) { for (int64_t i = 0; i < wide; i++) { to[i] = from[i] ^ conv->flip; } }
        else {
            for (int64_t i = 0; i < c; i++) {
                const uint8_t *const line = from + i * conv->xs[1];
                for (int64_t x = 0; x < conv->iw; x++) { to[x * c + i] = line[x * conv->xs[3]] ^ conv->flip; }
            }
        }
    }
}
/* Stores `count` positions of the result from (y, x) on: the columns j .. j + width - 1 of the rows of a block. */
static void opdi_byte_conv_store(const opdi_byte_plan *plan, const opdi_byte_block *sums, int64_t row, int64_t y,
                                 int64_t x, int64_t count, int64_t j, int64_t width) {
    const opdi_byte_conv *const conv = plan->conv;
    const int64_t size = conv->ends.codes ? 1 : 4, *const ys = conv->ys;
    const int64_t place = y * ys[2] + x * ys[3] + j * ys[1];
    const uint8_t *const other = plan->other ? plan->other + ((y * conv->ow + x) * conv->n + j) : NULL;
    opdi_byte_block floats, codes;
    opdi_byte_ends_tile(&conv->ends, sums->sums + row * OPDI_BYTE_SIDE, OPDI_BYTE_SIDE, count, j, width, other, conv->n,
                        floats.floats, codes.codes);
    if (size == 1 && ys[1] == 1) {
        for (int64_t i = 0; i < count; i++) {
            memcpy(plan->y + place + i * ys[3], codes.codes + i * OPDI_BYTE_SIDE, (size_t)width);
        }
        return;
    }
    for (int64_t i = 0; i < width; i++) {
        char *const to = plan->y + (place + i * ys[1]) * size;
        if (size == 1) { for (int64_t k = 0; k < count; k++) { to[k * ys[3]] = (char)codes.codes[32 * k + i]; } }
        else { for (int64_t k = 0; k < count; k++) { ((float *)(void *)to)[k * ys[3]] = floats.floats[32 * k + i]; } }
    }
}
/* An opdi_range_fn: computes blocks begin .. end - 1 of 32 positions. */
static void opdi_byte_conv_blocks(void *ctx, int64_t begin, int64_t end) {
    const opdi_byte_plan *const plan = (const opdi_byte_plan *)ctx;
    const opdi_byte_conv *const conv = plan->conv;
    const int64_t blocks = (plan->count + 31) / 32, c = conv->channels * plan->unit;
    const int64_t panel = plan->tile.runs * plan->tile.parts * 2048;
    opdi_byte_tile tile = plan->tile;
    opdi_byte_block sums;
    int64_t places[OPDI_BYTE_SIDE];
    const bool tiles = opdi_byte_tiles_begin();
    tile.places = places;
    for (int64_t j = 0; j < conv->n; j += OPDI_BYTE_SIDE) {
        tile.b = conv->packed + j / OPDI_BYTE_SIDE * panel;
        for (int64_t block = begin; block < end; block++) {
            const int64_t line = block / blocks, first = block % blocks * 32;
            const int64_t stop = OPDI_MIN(first + 32, plan->count);
            tile.a = plan->image + (tiles ? line * conv->stride[0] * plan->width * c + first * tile.step : 0);
            for (int64_t i = 0; !tiles && i < OPDI_BYTE_SIDE; i++) {
                const int64_t at = OPDI_MIN(first + i, stop - 1), y = at / conv->ow, x = at % conv->ow;
                places[i] = y * conv->stride[0] * plan->width * c + x * tile.step;
            }
            opdi_byte_tile_sums(&tile, tiles, sums.sums);
            for (int64_t at = first; at < stop;) {
                const int64_t y = line + at / plan->pitch, x = at % plan->pitch, next = at - x + plan->pitch;
                const int64_t some = OPDI_MIN(OPDI_MIN(conv->ow, x + stop - at) - x, stop - at);
                if (some > 0) {
                    opdi_byte_conv_store(plan, &sums, at - first, y, x, some, j,
                                         OPDI_MIN((int64_t)OPDI_BYTE_SIDE, conv->n - j));
                }
                at = OPDI_MIN(next, stop);
            }
        }
    }
    opdi_byte_tiles_end(tiles);
}

//== kernels of 3 x 3 elements, by fewer products ======================================================================
//
//  Winograd's way computes squares of 2 x 2 positions from squares of 4 x 4 pixels with 16 products for each channel
//  instead of 36: sums of pixels are multiplied by sums of weights.  In integers, it is exact: the sums of weights are
//  stored four times as large, without fractions, and the results are divided by four.

enum { OPDI_BYTE_SQUARES = 16 };                  /* squares in a block */
/* Sets *down and *right to the numbers of squares. */
static void opdi_byte_squares(const opdi_byte_conv *conv, int64_t *down, int64_t *right) {
    *down = (conv->oh + 1) / 2;
    *right = (conv->ow + 1) / 2;
}
/* Packs panels begin .. end - 1 of w as 16 matrices of words of two int16 [channels / 2, 32].  An opdi_range_fn. */
static void opdi_byte_square_panels(void *ctx, int64_t begin, int64_t end) {
    static const int16_t turn[4][3] = {{2, 0, 0}, {1, 1, 1}, {1, -1, 1}, {0, 0, 2}};
    const opdi_byte_plan *const plan = (const opdi_byte_plan *)ctx;
    const opdi_byte_conv *const conv = plan->conv;
    const int64_t c = conv->channels;
    int16_t *const rows = (int16_t *)(void *)conv->rows, *const packed = (int16_t *)(void *)conv->packed;
    for (int64_t j = begin * OPDI_BYTE_SIDE; j < end * OPDI_BYTE_SIDE; j++) {
        const int8_t *const w = conv->w + j * c * 9;
        const int64_t panel = j / OPDI_BYTE_SIDE * 16, row = j % OPDI_BYTE_SIDE;
        int32_t sum = 0;
        for (int64_t i = 0; i < c * 9 && j < conv->n; i++) { sum += w[i]; }
        if (j < conv->n) { conv->all[j] = sum; }
        for (int64_t i = 0; i < 16 * c; i++) {
            int sums[3] = {0, 0, 0};
            for (int k = 0; k < 9 && j < conv->n; k++) { sums[k % 3] += turn[i / c / 4][k / 3] * w[i % c * 9 + k]; }
            int number = 0;
            for (int k = 0; k < 3; k++) { number += sums[k] * turn[i / c % 4][k]; }
            rows[((panel + i / c) * OPDI_BYTE_SIDE + row) * c + i % c] = (int16_t)number;
        }
    }
    for (int64_t at = begin * 16; at < end * 16; at++) {
        opdi_pack_transposed((const opdi_word32 *)(const void *)(rows + at * OPDI_BYTE_SIDE * c), c / 2, c / 2,
                             OPDI_BYTE_SIDE, OPDI_BYTE_SIDE,
                             (opdi_word32 *)(void *)(packed + at * OPDI_BYTE_SIDE * c));
    }
}
/* Sets out[i], i < 4, to the sums of pixels of a line of a square. */
OPDI_AVX2 OPDI_ALWAYS void opdi_byte_square_line(const opdi_v16h *x, int step, opdi_v16h *out) {
    const opdi_v16h a = x[0], b = x[step], c = x[2 * step], d = x[3 * step];
    out[0] = a - c;
    out[step] = b + c;
    out[2 * step] = c - b;
    out[3 * step] = b - d;
}
/* Writes the sums of pixels of the squares from `first` on: v [16, 16 squares, channels]. */
OPDI_AVX2 static void opdi_byte_square_in(const opdi_byte_plan *plan, int64_t first, int64_t count, int64_t right,
                                          int16_t *v) {
    const int64_t c = plan->conv->channels, line = plan->width * c;
    for (int64_t t = 0; t < OPDI_BYTE_SQUARES; t++, v += c) {
        const int64_t at = first + OPDI_MIN(t, count - 1);            /* surplus squares repeat the last one */
        const int16_t *const from = (const int16_t *)(const void *)plan->image + at / right * 2 * line +
            at % right * 2 * c;
        for (int64_t i = 0; i < c; i += 16) {
            opdi_v16h x[16];
            for (int k = 0; k < 16; k++) {
                x[k] = *(const opdi_v16h *)(const void *)(from + k / 4 * line + k % 4 * c + i);
            }
            for (int k = 0; k < 4; k++) { opdi_byte_square_line(x + k, 4, x + k); }
            for (int k = 0; k < 4; k++) { opdi_byte_square_line(x + 4 * k, 1, x + 4 * k); }
            for (int k = 0; k < 16; k++) { *(opdi_v16h *)(void *)(v + k * OPDI_BYTE_SQUARES * c + i) = x[k]; }
        }
    }
}
/* Sets sums [32, 32] to the upper or lower (`low`) positions of 16 squares, from m [16, 16, 32]. */
OPDI_AVX2 static void opdi_byte_square_out(const int32_t *m, bool low, int32_t *sums) {
    const int64_t matrix = OPDI_BYTE_SQUARES * OPDI_BYTE_SIDE;
    for (int64_t t = 0; t < OPDI_BYTE_SQUARES; t++, sums += OPDI_BYTE_SIDE) {
        for (int64_t j = 0; j < OPDI_BYTE_SIDE; j += 8) {
            const int32_t *const from = m + t * OPDI_BYTE_SIDE + j;
            opdi_v8u s[4];
            for (int64_t k = 0; k < 4; k++) {
#define OPDI_BYTE_SQUARE_AT(row) (*(const opdi_v8u *)(const void *)(from + (4 * (row) + k) * matrix))
                s[k] = low ? OPDI_BYTE_SQUARE_AT(1) - OPDI_BYTE_SQUARE_AT(2) - OPDI_BYTE_SQUARE_AT(3)
                    : OPDI_BYTE_SQUARE_AT(0) + OPDI_BYTE_SQUARE_AT(1) + OPDI_BYTE_SQUARE_AT(2);
#undef OPDI_BYTE_SQUARE_AT
            }
            *(opdi_v8i *)(void *)(sums + j) = (opdi_v8i)(s[0] + s[1] + s[2]) >> 2;
            *(opdi_v8i *)(void *)(sums + OPDI_BYTE_SIDE + j) = (opdi_v8i)(s[1] - s[2] - s[3]) >> 2;
        }
        sums += OPDI_BYTE_SIDE;
    }
}
/* Stores the upper or lower positions of the squares from `first` on. */
static void opdi_byte_square_store(const opdi_byte_plan *plan, const opdi_byte_block *sums, int64_t first,
                                   int64_t count, int64_t right, bool low, int64_t j) {
    const opdi_byte_conv *const conv = plan->conv;
    for (int64_t at = 0, some; at < count; at += some) {
        const int64_t x = (first + at) % right, y = (first + at) / right * 2 + low;
        some = OPDI_MIN(right - x, count - at);
        if (y < conv->oh) {
            opdi_byte_conv_store(plan, sums, 2 * at, y, 2 * x, OPDI_MIN(2 * some, conv->ow - 2 * x), j,
                                 OPDI_MIN((int64_t)OPDI_BYTE_SIDE, conv->n - j));
        }
    }
}
/* An opdi_range_fn: computes blocks begin .. end - 1 of 16 squares. */
static void opdi_byte_square_blocks(void *ctx, int64_t begin, int64_t end) {
    const opdi_byte_plan *const plan = (const opdi_byte_plan *)ctx;
    const opdi_byte_conv *const conv = plan->conv;
    const int64_t c = conv->channels, matrix = OPDI_BYTE_SQUARES * OPDI_BYTE_SIDE;
    int64_t down, right;
    opdi_byte_block m[8], sums;
    opdi_byte_squares(conv, &down, &right);
    for (int64_t block = begin; block < end; block++) {
        const int64_t first = block * OPDI_BYTE_SQUARES, left = down * right - first;
        const int64_t count = OPDI_MIN(left, (int64_t)OPDI_BYTE_SQUARES);
        int16_t *const v = plan->squares + first * 16 * c;
        opdi_byte_square_in(plan, first, count, right, v);
        for (int64_t j = 0; j < conv->n; j += OPDI_BYTE_SIDE) {
            for (int64_t i = 0; i < 16; i++) {
                const int8_t *const b = conv->packed + (j / OPDI_BYTE_SIDE * 16 + i) * c * 2 * OPDI_BYTE_SIDE;
                for (int64_t row = 0; row < OPDI_BYTE_SQUARES; row += 4) {
                    uint32_t *const to = (uint32_t *)m[0].sums + i * matrix + row * OPDI_BYTE_SIDE;
                    const void *rows[4];
                    for (int64_t k = 0; k < 4; k++) { rows[k] = v + (i * OPDI_BYTE_SQUARES + row + k) * c; }
                    opdi_micro_short_pairs(c / 2, rows, b, OPDI_BYTE_SIDE, to, OPDI_BYTE_SIDE, false);
                    opdi_micro_short_pairs(c / 2, rows, b + 64, OPDI_BYTE_SIDE, to + 16, OPDI_BYTE_SIDE, false);
                }
            }
            for (int low = 0; low < 2; low++) {
                opdi_byte_square_out(m[0].sums, low != 0, sums.sums);
                opdi_byte_square_store(plan, &sums, first, count, right, low != 0, j);
            }
        }
    }
}

//== convolutions of each channel by itself ============================================================================

static int64_t opdi_byte_deep_wide(const opdi_byte_conv *conv) { return (conv->n + 31) / 32 * 32; }
/* Packs w as int16 [kh * kw, n], n rounded up to 32. */
static void opdi_byte_deep_pack(const opdi_byte_conv *conv) {
    const int64_t taps = conv->kh * conv->kw, wide = opdi_byte_deep_wide(conv);
    int16_t *const to = (int16_t *)(void *)conv->packed;
    memset(to, 0, (size_t)(taps * wide) * sizeof *to);
    for (int64_t j = 0; j < conv->n; j++) {
        int32_t sum = 0;
        for (int64_t tap = 0; tap < taps; tap++) {
            to[tap * wide + j] = conv->w[j * taps + tap];
            sum += conv->w[j * taps + tap];
        }
        conv->all[j] = sum;
    }
}
/* Computes the sums of `count` positions and 32 channels, from channel j on.  `from`: where the first position begins
   in the image. */
OPDI_ALWAYS void opdi_byte_deep_here(const opdi_byte_plan *plan, const uint8_t *from, int64_t count, int64_t j,
                                     int32_t *sums) {
    const opdi_byte_conv *const conv = plan->conv;
    const int64_t c = conv->channels, wide = opdi_byte_deep_wide(conv);
    const int64_t right = conv->dilation[1] * c, down = conv->dilation[0] * plan->width * c;
    for (int64_t i = 0; i < count; i++, from += conv->stride[1] * c, sums += OPDI_BYTE_SIDE) {
        const int16_t *w = (const int16_t *)(const void *)conv->packed + j;
        int32_t t[OPDI_BYTE_SIDE] = {0};
        for (int64_t y = 0; y < conv->kh; y++) {
            const uint8_t *at = from + y * down;
            for (int64_t x = 0; x < conv->kw; x++, at += right, w += wide) {
                for (int k = 0; k < OPDI_BYTE_SIDE; k++) { t[k] += (int32_t)(int16_t)(at[k] * w[k]); }
            }
        }
        for (int k = 0; k < OPDI_BYTE_SIDE; k++) { sums[k] = t[k]; }
    }
}
#define OPDI_BYTE_DEEP_AT(level, attribute) \
    attribute static void opdi_byte_deep_##level(const opdi_byte_plan *plan, const uint8_t *from, int64_t count, \
                                                 int64_t j, int32_t *sums) { \
        opdi_byte_deep_here(plan, from, count, j, sums); \
    }
OPDI_BYTE_DEEP_AT(plain, )
#if defined(OPDI_X86)
OPDI_BYTE_DEEP_AT(avx2, OPDI_AVX2)
OPDI_BYTE_DEEP_AT(avx512, OPDI_AVX512)
#define OPDI_BYTE_DEEP (opdi_cpu_level() == 0 ? opdi_byte_deep_plain : opdi_cpu_level() == 1 ? opdi_byte_deep_avx2 \
                        : opdi_byte_deep_avx512)
#else
#define OPDI_BYTE_DEEP opdi_byte_deep_plain
#endif
#undef OPDI_BYTE_DEEP_AT
/* An opdi_range_fn: computes rows begin .. end - 1 of an image of the result. */
static void opdi_byte_deep_rows(void *ctx, int64_t begin, int64_t end) {
    const opdi_byte_plan *const plan = (const opdi_byte_plan *)ctx;
    const opdi_byte_conv *const conv = plan->conv;
    const int64_t c = conv->channels;
    opdi_byte_block sums;
    for (int64_t y = begin; y < end; y++) {
        for (int64_t x = 0; x < conv->ow; x += OPDI_BYTE_SIDE) {
            const int64_t count = OPDI_MIN((int64_t)OPDI_BYTE_SIDE, conv->ow - x);
            const uint8_t *const from = plan->image + (y * conv->stride[0] * plan->width + x * conv->stride[1]) * c;
            for (int64_t j = 0; j < conv->n; j += OPDI_BYTE_SIDE) {
                OPDI_BYTE_DEEP(plan, from + j, count, j, sums.sums);
                opdi_byte_conv_store(plan, &sums, 0, y, x, count, j, OPDI_MIN((int64_t)OPDI_BYTE_SIDE, conv->n - j));
            }
        }
    }
}
#endif

/* Sets sizes[0], sizes[1] and sizes[2] to the bytes of planes, packed and rows.  Returns false if the processor or the
   sizes do not suit this way. */
OPD_UNUSED OPDI_INTERNAL bool opdi_byte_conv_sizes(const opdi_byte_conv *conv, int64_t *sizes) {
#if defined(OPDI_WORDS)
    opdi_byte_plan plan;
    int64_t down, right;
    if (!opdi_byte_tiles_are_fast() || conv->kh * conv->kw > OPDI_BYTE_RUNS) { return false; }
    opdi_byte_plan_make(conv, NULL, &plan);
    sizes[0] = (plan.height + 1) * plan.width * conv->channels * plan.unit +
        64 * (plan.tile.step + plan.tile.parts) + 64;
    if (opdi_byte_conv_form(conv) == 2) {
        opdi_byte_squares(conv, &down, &right);
        sizes[0] = plan.height * plan.width * conv->channels * 2 + (down * right + 16) * 16 * conv->channels * 2;
        sizes[1] = sizes[2] = (conv->n + 31) / 32 * 1024 * conv->channels;
        return true;
    }
    sizes[2] = conv->deep ? 0 : (conv->n + 31) / 32 * plan.tile.runs * plan.tile.parts * 2048;
    sizes[1] = conv->deep ? conv->kh * conv->kw * opdi_byte_deep_wide(conv) * 2 : sizes[2];
    return true;
#else
    (void)conv;
    (void)sizes;
    return false;
#endif
}
/* Packs the weight of a convolution.  The result does not depend on the image. */
OPD_UNUSED OPDI_INTERNAL void opdi_byte_conv_pack(const opdi_byte_conv *conv) {
#if defined(OPDI_WORDS)
    opdi_byte_plan plan;
    if (conv->deep) {
        opdi_byte_deep_pack(conv);
        return;
    }
    opdi_byte_plan_make(conv, NULL, &plan);
    opdi_parallel_for((conv->n + 31) / 32, OPDI_MAX((int64_t)1, 32 / (plan.tile.runs * plan.tile.parts)),
                      opdi_byte_conv_form(conv) == 2 ? opdi_byte_square_panels : opdi_byte_conv_panels, &plan);
#else
    (void)conv;
#endif
}
/* Computes a convolution whose weight is packed. */
OPD_UNUSED OPDI_INTERNAL void opdi_byte_convolution(const opdi_byte_conv *conv) {
#if defined(OPDI_WORDS)
    int64_t offsets[OPDI_BYTE_RUNS], sizes[3], down, right;
    opdi_byte_plan plan;
    opdi_byte_plan_make(conv, offsets, &plan);
    (void)opdi_byte_conv_sizes(conv, sizes);
    const int64_t blocks = plan.rows * ((plan.count + 31) / 32);
    const int form = opdi_byte_conv_form(conv);
    const int64_t pixels = plan.height * plan.width * conv->channels * plan.unit;
    plan.image = conv->planes;
    plan.squares = (int16_t *)(void *)(plan.image + (form == 2 ? pixels : 0));
    memset(plan.image, 0, (size_t)(form == 2 ? pixels : sizes[0]));
    for (int64_t i = 0; i < conv->images; i++) {
        const int64_t image = conv->n * conv->oh * conv->ow;
        plan.y = (char *)conv->y + i * conv->ys[0] * (conv->ends.codes ? 1 : 4);
        plan.other = conv->ends.other ? conv->ends.other + i * image : NULL;
        opdi_byte_conv_pad(&plan, i);
        if (conv->deep) {
            opdi_parallel_for(conv->oh, OPDI_MAX((int64_t)1, 262144 / (conv->ow * conv->n * conv->kh * conv->kw)),
                              opdi_byte_deep_rows, &plan);
            continue;
        }
        if (form == 2) {
            opdi_byte_squares(conv, &down, &right);
            opdi_parallel_for((down * right + 15) / 16, OPDI_MAX((int64_t)1, (int64_t)(1 << 21) / (sizes[1] + 1)),
                              opdi_byte_square_blocks, &plan);
            continue;
        }
        opdi_parallel_for(blocks, OPDI_MAX((int64_t)1, (int64_t)(1 << 21) / (sizes[1] + 1)), opdi_byte_conv_blocks,
                          &plan);
    }
#else
    (void)conv;
#endif
}
