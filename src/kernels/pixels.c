#include "kernels.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>pixels       convolutions of groups with 12 to 64 channels
//
//  The channels of a group, which are floats, are copied with their padding to an image [row, column, channel].  In
//  this image, the elements that one row of taps reads for a result are contiguous.  A tile has the sums for eight
//  results and a vector of output channels.  It is computed from eight pointers into the image, and from weights [tap,
//  channel, output channel].  So nothing is unfolded.  Finally, the results are transposed back to planes.
//
//  Images are cut into bands of rows, so that the copies stay in the caches.  While a band is computed, the memory that
//  the next steps need is prefetched.
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPD_NO_OP_CONV)
#define OPDI_PIXELS_MAX 64                        /* the largest number of channels of a group */
#define OPDI_PIXELS_ROWS 8                        /* rows of a tile */

/* Memory that is needed soon.  Computing a tile prefetches `step` bytes for each row of the second operand, from
   address `at` on, so that the caches are filled while products are computed. */
typedef struct opdi_ahead { uintptr_t at, step; } opdi_ahead;
/* Computes a tile of OPDI_PIXELS_ROWS rows and one vector of lanes: to[r][lane] = (or += if `add`) the sum, over all
   run < runs and k < depth, of rows[r][run * jump + k * step] * second[(run * depth + k) * ld + lane]. */
typedef void opdi_pixels_fn(int64_t runs, int64_t jump, int64_t depth, int64_t step, const float *const *rows,
                            const float *second, int64_t ld, float *const *to, bool add, opdi_ahead ahead);
#if defined(OPDI_VECTORS)
OPDI_AVX2 static opdi_pixels_fn opdi_pixels_avx2_f32;
#include "../typed/f32_avx2.h"
#include "pixels.typed.h"
#endif
#if defined(OPDI_X86)
OPDI_AVX512 static opdi_pixels_fn opdi_pixels_avx512_f32;
#include "../typed/f32_avx512.h"
#include "pixels.typed.h"
#endif
#include "../typed/end.h"

/* A convolution, or one of its gradients.  "From" is the tensor that is read: x, or gy for the gradient of x.  "To" is
   the result. */
typedef struct opdi_pixels {
    opdi_conv conv;
    opdi_pixels_fn *run;
    bool back;                                    /* computes gx */
    int64_t channels, results, lanes;             /* per group: channels of from and of to; lanes: channels of to,
                                                     rounded up to whole vectors */
    int64_t width;                                /* numbers in a vector of `run` */
    int64_t high, wide, band, bands;              /* high, wide: size of an image of `to`; band: rows of a band; bands:
                                                     bands of an image */
    int64_t rows, columns;                        /* size of the copy of a band of `from` */
    const float *from, *weight, *bias, *gy;
    float *to, *packed;                           /* packed: weights [groups, taps, channels, lanes] */
    int failed;
} opdi_pixels;
/* The results of a band that read the same taps: `rows` by `columns` results.  The first one is at row `y` and column
   `x` of the band, and reads the copy from row `top` and column `left` on. */
typedef struct opdi_pixels_part {
    int64_t y, x, rows, columns, top, left, high, wide;   /* high, wide: number of taps */
    const float *weights;
} opdi_pixels_part;

/* Returns true if this method suits the convolution or, if `back` is true, the gradient of x.  Then also fills in
   *pixels, except for the data. */
static bool opdi_pixels_fit(const opdi_conv *conv, bool back, opdi_pixels *pixels) {
    const int64_t most = (int64_t)1 << 10;
    const int level = opdi_cpu_level();
    if (level == 0 || conv->size != 4 || conv->groups < 2 || conv->cg % 4 || conv->og % 4 || conv->cg <= 8 ||
        conv->og <= 8 || conv->cg > OPDI_PIXELS_MAX || conv->og > OPDI_PIXELS_MAX || conv->dh != 1 || conv->dw != 1 ||
        conv->kh < conv->sh || conv->kw < conv->sw || conv->kh * conv->kw < 2 || conv->kh > 16 || conv->kw > 16 ||
        conv->ph >= most || conv->pw >= most || conv->w > 8 * most || conv->wp > 8 * most) { return false; }
    memset(pixels, 0, sizeof *pixels);
    pixels->conv = *conv;
    pixels->back = back;
    pixels->channels = back ? conv->og : conv->cg;
    pixels->results = back ? conv->cg : conv->og;
    pixels->high = back ? conv->h : conv->oh;
    pixels->wide = back ? conv->w : conv->ow;
#if defined(OPDI_VECTORS)
    pixels->run = opdi_pixels_avx2_f32;
    pixels->width = (int64_t)(sizeof(OPDI_V_4_1) / sizeof(float));
#endif
#if defined(OPDI_X86)
    if (level == 2) {
        pixels->run = opdi_pixels_avx512_f32;
        pixels->width = 16;
    }
#endif
    pixels->lanes = opdi_round_up(pixels->results, pixels->width);
    const int64_t down = back ? 1 : conv->sh;
    pixels->columns = back ? (conv->kw - 1) / conv->sw + (conv->w - 1 + conv->pw) / conv->sw + 1 : conv->wp;
    const int64_t line = pixels->wide * pixels->lanes + pixels->columns * pixels->channels * down;
    pixels->band = OPDI_MAX((int64_t)1, OPDI_MIN(pixels->high, 32768 / line));
    pixels->bands = (pixels->high - 1) / pixels->band + 1;
    pixels->rows = back ? (pixels->band - 1) / conv->sh + 2 + (conv->kh - 1) / conv->sh
        : (pixels->band - 1) * conv->sh + conv->kh;
    return true;
}
/* Returns the index of tap [y, x] in the weights for gx: the taps of a part are contiguous, in reversed order. */
static int64_t opdi_pixels_place(const opdi_conv *conv, int64_t y, int64_t x) {
    const int64_t row = y % conv->sh, column = x % conv->sw;
    const int64_t high = (conv->kh - 1 - row) / conv->sh + 1, wide = (conv->kw - 1 - column) / conv->sw + 1;
    int64_t place = (high - 1 - y / conv->sh) * wide + wide - 1 - x / conv->sw;
    for (int64_t i = 0; i < row; i++) { place += ((conv->kh - 1 - i) / conv->sh + 1) * conv->kw; }
    for (int64_t i = 0; i < column; i++) { place += high * ((conv->kw - 1 - i) / conv->sw + 1); }
    return place;
}
/* A range function: packs the weights.  An item is a group. */
static void opdi_pixels_pack_range(void *ctx, int64_t begin, int64_t end) {
    opdi_pixels *pixels = (opdi_pixels *)ctx;
    const opdi_conv *conv = &pixels->conv;
    const int64_t taps = conv->kh * conv->kw, lanes = pixels->lanes, block = pixels->channels * lanes;
    const size_t bytes = (size_t)(taps * block) * sizeof(float);
    float *const work = pixels->back ? (float *)(void *)opdi_scratch_alloc(bytes) : NULL;
    if (pixels->back && !work) {
        OPDI_STORE(&pixels->failed, 1);
        return;
    }
    for (int64_t group = begin; group < end; group++) {
        const opdi_word32 *const from =
            (const opdi_word32 *)(const void *)pixels->weight + group * conv->og * conv->cg * taps;
        float *const to = pixels->packed + group * taps * block;
        opdi_word32 *const out = (opdi_word32 *)(void *)(work ? work : to);
        memset(out, 0, bytes);
        for (int64_t channel = 0; channel < pixels->channels; channel++) {
            opdi_pack_transposed(from + channel * (work ? conv->cg : 1) * taps, work ? taps : conv->cg * taps, taps,
                                 pixels->results, block, out + channel * lanes);
        }
        for (int64_t tap = 0; work && tap < taps; tap++) {
            memcpy(to + opdi_pixels_place(conv, tap / conv->kw, tap % conv->kw) * block, work + tap * block,
                   (size_t)block * sizeof(float));
        }
    }
    if (work) { opdi_scratch_free((char *)work, bytes); }
}
/* The memory that an item needs soon: two ranges.  `steps` is the number of rows of second operands of the item. */
typedef struct opdi_ahead_both { uintptr_t at, end, at2, end2, step; } opdi_ahead_both;
static void opdi_ahead_begin(opdi_ahead_both *both, const float *first, int64_t count, const float *second,
                             int64_t count2, int64_t steps) {
    both->at = (uintptr_t)first;
    both->end = both->at + (uintptr_t)count * sizeof(float);
    both->at2 = (uintptr_t)second;
    both->end2 = both->at2 + (uintptr_t)count2 * sizeof(float);
    both->step = (uintptr_t)((count + count2) * (int64_t)sizeof(float) / OPDI_MAX(steps, (int64_t)1) + 1);
}
/* Returns what the next tile, with `steps` rows of the second operand, prefetches. */
static opdi_ahead opdi_ahead_next(opdi_ahead_both *both, int64_t steps) {
    opdi_ahead ahead = {both->at, 0};
    if (both->at >= both->end) {
        ahead.at = both->at = both->at2;
        both->end = both->end2;
        both->at2 = both->end2 = 0;
    }
    if (both->at < both->end) {
        ahead.step = both->step;
        both->at += both->step * (uintptr_t)steps;
    }
    return ahead;
}
/* Computes a part of a band from its copy `image`, to out [row, column, lanes]. */
static void opdi_pixels_compute(const opdi_pixels *pixels, const opdi_pixels_part *part, const float *bias,
                                const float *image, float *out, opdi_ahead_both *ahead) {
    const opdi_conv *conv = &pixels->conv;
    const int64_t channels = pixels->channels, lanes = pixels->lanes, line = pixels->columns * channels;
    const int64_t down = (pixels->back ? 1 : conv->sh) * line, across = (pixels->back ? 1 : conv->sw) * channels;
    const int64_t out_down = (pixels->back ? conv->sh : 1) * pixels->wide * lanes;
    const int64_t out_across = (pixels->back ? conv->sw : 1) * lanes, depth = part->wide * channels;
    const int64_t all = part->rows * part->columns;
    float *to[OPDI_PIXELS_ROWS];
    const float *at[OPDI_PIXELS_ROWS];
    const float *from = image + part->top * line + part->left * channels;
    float *there = out + (part->y * pixels->wide + part->x) * lanes;
    for (int64_t i = 0, column = 0; i < all; i += OPDI_PIXELS_ROWS) {
        for (int64_t r = 0; r < OPDI_PIXELS_ROWS; r++) {          /* surplus rows of the tile repeat the last result */
            at[r] = from;
            to[r] = there;
            if (bias) { memcpy(there, bias, (size_t)lanes * sizeof(float)); }
            if (i + r + 1 >= all) { continue; }
            from += across;
            there += out_across;
            if (++column == part->columns) {
                column = 0;
                from += down - part->columns * across;
                there += out_down - part->columns * out_across;
            }
        }
        for (int64_t lane = 0; lane < lanes; lane += pixels->width) {
            pixels->run(part->high, line, depth, 1, at, part->weights + lane, lanes, to, bias != NULL,
                        opdi_ahead_next(ahead, part->high * depth));
            for (int64_t r = 0; r < OPDI_PIXELS_ROWS; r++) { to[r] += pixels->width; }
        }
    }
}
/* Computes the rows [begin, end) of gx of a group, of which `image` has the copy of gy from row `top` on. */
static void opdi_pixels_back(const opdi_pixels *pixels, int64_t begin, int64_t end, int64_t top, const float *weights,
                             const float *image, float *out, opdi_ahead_both *ahead) {
    const opdi_conv *conv = &pixels->conv;
    for (int64_t i = 0; i < conv->sh * conv->sw; i++) {
        const int64_t row = i / conv->sw, column = i % conv->sw;
        opdi_pixels_part part;
        part.high = (conv->kh - 1 - row) / conv->sh + 1;
        part.wide = (conv->kw - 1 - column) / conv->sw + 1;
        part.y = ((row - conv->ph - begin) % conv->sh + conv->sh) % conv->sh;
        part.x = ((column - conv->pw) % conv->sw + conv->sw) % conv->sw;
        part.rows = begin + part.y < end ? (end - begin - part.y - 1) / conv->sh + 1 : 0;
        part.columns = part.x < conv->w ? (conv->w - 1 - part.x) / conv->sw + 1 : 0;
        part.top = (begin + part.y + conv->ph) / conv->sh - (part.high - 1) - top;
        part.left = (part.x + conv->pw) / conv->sw - (part.wide - 1) + (conv->kw - 1) / conv->sw;
        part.weights = weights + opdi_pixels_place(conv, row + (part.high - 1) * conv->sh,
                                                   column + (part.wide - 1) * conv->sw) *
            pixels->channels * pixels->lanes;
        opdi_pixels_compute(pixels, &part, NULL, image, out, ahead);
    }
}
/* Returns the number of floats of scratch memory that a thread needs: the copy of a band, and its results. */
static int64_t opdi_pixels_scratch_size(const opdi_pixels *pixels) {
    return pixels->rows * pixels->columns * pixels->channels + pixels->band * pixels->wide * pixels->lanes;
}
/* A range function: computes y or gx.  An item is a band of a group of an image. */
static void opdi_pixels_range(void *ctx, int64_t begin, int64_t end) {
    opdi_pixels *pixels = (opdi_pixels *)ctx;
    const opdi_conv *conv = &pixels->conv;
    const int64_t channels = pixels->channels, line = pixels->columns * channels, lanes = pixels->lanes;
    const int64_t high = pixels->back ? conv->oh : conv->h, wide = pixels->back ? conv->ow : conv->w;
    const int64_t area = pixels->high * pixels->wide, taps = conv->kh * conv->kw;
    const int64_t left = pixels->back ? (conv->kw - 1) / conv->sw : conv->pw;
    const size_t bytes = (size_t)opdi_pixels_scratch_size(pixels) * sizeof(float);
    float *const image = (float *)(void *)opdi_scratch_alloc(bytes);
    if (!image) {
        OPDI_STORE(&pixels->failed, 1);
        return;
    }
    float *const out = image + pixels->rows * line;
    for (int64_t item = begin; item < end; item++) {
        const int64_t y = item % pixels->bands * pixels->band, stop = OPDI_MIN(y + pixels->band, pixels->high);
        const int64_t group = item / pixels->bands % conv->groups, plane = item / pixels->bands;
        const int64_t top = pixels->back ? (y + conv->ph) / conv->sh - (conv->kh - 1) / conv->sh
            : y * conv->sh - conv->ph;
        const int64_t last = pixels->back ? (stop - 1 + conv->ph) / conv->sh
            : (stop - 1) * conv->sh - conv->ph + conv->kh - 1;
        const float *planes[OPDI_PIXELS_MAX], *const weights = pixels->packed + group * taps * channels * lanes;
        float bias[OPDI_PIXELS_MAX] = {0};
        for (int64_t c = 0; c < channels; c++) { planes[c] = pixels->from + (plane * channels + c) * high * wide; }
        for (int64_t row = top; row <= last; row++) {
            opdi_tiles_line(planes, channels, high, wide, row, left, pixels->columns, image + (row - top) * line,
                            channels);
        }
        for (int64_t i = 0; pixels->bias && i < conv->og; i++) { bias[i] = pixels->bias[group * conv->og + i]; }
        opdi_ahead_both ahead = {0, 0, 0, 0, 0};
        if (pixels->bands == 1) {
            const int64_t count = channels * high * wide, parts = pixels->back ? conv->sh * conv->sw : 1;
            opdi_ahead_begin(&ahead, pixels->to + plane * pixels->results * area, pixels->results * area,
                             planes[0] + count, item + 1 < end ? count : 0,
                             area / OPDI_PIXELS_ROWS * lanes / pixels->width * taps * channels / parts);
        }
        if (pixels->back) { opdi_pixels_back(pixels, y, stop, top, weights, image, out, &ahead); }
        else {
            const opdi_pixels_part part = {0, 0, stop - y, conv->ow, 0, 0, conv->kh, conv->kw, weights};
            opdi_pixels_compute(pixels, &part, pixels->bias ? bias : NULL, image, out, &ahead);
        }
        opdi_tiles_put(out, lanes, pixels->results, (stop - y) * pixels->wide,
                       pixels->to + plane * pixels->results * area + y * pixels->wide, area);
    }
    opdi_scratch_free((char *)image, bytes);
}
/* Packs the weights, and computes y or gx.  Returns 0, or -1 and sets an error. */
static int opdi_pixels_run(opdi_pixels *pixels) {
    const opdi_conv *conv = &pixels->conv;
    const size_t bytes = (size_t)(conv->groups * conv->kh * conv->kw * pixels->channels * pixels->lanes) *
        sizeof(float);
    const size_t work = (size_t)opdi_pixels_scratch_size(pixels) * sizeof(float);
    pixels->packed = (float *)(void *)opdi_scratch_alloc(bytes);
    if (!pixels->packed) { return -1; }
    opdi_parallel_for_scratch(conv->groups, 1, opdi_pixels_pack_range, pixels,
                              OPDI_SCRATCH_BYTES(bytes / (size_t)conv->groups));
    opdi_parallel_for_scratch(conv->n * conv->groups * pixels->bands, 1, opdi_pixels_range, pixels,
                              OPDI_SCRATCH_BYTES(work));
    opdi_scratch_free((char *)pixels->packed, bytes);
    return opdi_conv_done(&pixels->failed);
}
/* Computes y = conv(x, weights) + bias.  Returns 0, or 1 if this method does not suit the convolution, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_pixels_forward(const opdi_conv *conv, const void *x, const void *weights, const void *bias,
                                      void *y) {
    opdi_pixels pixels;
    if (!opdi_pixels_fit(conv, false, &pixels)) { return 1; }
    pixels.from = (const float *)x;
    pixels.weight = (const float *)weights;
    pixels.bias = (const float *)bias;
    pixels.to = (float *)y;
    return opdi_pixels_run(&pixels);
}
/* Computes gx from gy and the weights, which have to be finite.  Returns 0, 1 or -1 like opdi_pixels_forward. */
OPDI_INTERNAL int opdi_pixels_grad_input(const opdi_conv *conv, const void *gy, const void *weights, void *gx) {
    opdi_pixels pixels;
    if (!opdi_pixels_fit(conv, true, &pixels)) { return 1; }
    pixels.from = (const float *)gy;
    pixels.weight = (const float *)weights;
    pixels.to = (float *)gx;
    return opdi_pixels_run(&pixels);
}

//== the gradient with respect to the weight ===========================================================================
//
//  In the copy of x, the rows that taps of one row phase read, every sh-th row, lie one after another.  So for each
//  tap, neighbouring columns of a band are equally far apart, even from one row to the next.  In the copy of gy, the
//  surplus columns between rows are zeros.  The micro-kernel then sums over all columns of a band.

/* Copies rows [begin, end) of gy of a group of an image, and the rows of x that they read.  `wide` is the number of
   columns of the copy of gy, and `phase` the number of floats of x of a row phase. */
static void opdi_pixels_copy_both(const opdi_pixels *pixels, int64_t plane, int64_t begin, int64_t end, int64_t wide,
                                  int64_t phase, float *image, float *grad) {
    const opdi_conv *conv = &pixels->conv;
    const int64_t line = wide * conv->sw * conv->cg, count = (end - begin - 1) * conv->sh + conv->kh;
    const float *planes[OPDI_PIXELS_MAX];
    for (int64_t c = 0; c < conv->cg; c++) { planes[c] = pixels->from + (plane * conv->cg + c) * conv->h * conv->w; }
    for (int64_t row = 0; row < count; row++) {
        opdi_tiles_line(planes, conv->cg, conv->h, conv->w, begin * conv->sh + row - conv->ph, conv->pw,
                        wide * conv->sw, image + row % conv->sh * phase + row / conv->sh * line, conv->cg);
    }
    for (int64_t o = 0; o < conv->og; o++) { planes[o] = pixels->gy + (plane * conv->og + o) * conv->oh * conv->ow; }
    for (int64_t row = begin; row < end; row++) {
        opdi_tiles_line(planes, conv->og, conv->oh, conv->ow, row, 0, wide, grad + (row - begin) * wide * pixels->lanes,
                        pixels->lanes);
    }
}
/* Adds (if `add` is 0: writes) the sums over the columns of a band, `count` in all, to sums [tap, channel, lane]. */
static void opdi_pixels_sum(const opdi_pixels *pixels, int64_t count, int64_t line, int64_t phase, const float *image,
                            const float *grad, float *sums, bool add, opdi_ahead_both *ahead) {
    const opdi_conv *conv = &pixels->conv;
    const int64_t cg = conv->cg, all = conv->kh * conv->kw * cg, lanes = pixels->lanes;
    for (int64_t i = 0; i < all; i += OPDI_PIXELS_ROWS) {
        const float *rows[OPDI_PIXELS_ROWS];
        float *to[OPDI_PIXELS_ROWS];
        for (int64_t r = 0; r < OPDI_PIXELS_ROWS; r++) {    /* surplus rows of the tile repeat the last one */
            const int64_t at = OPDI_MIN(i + r, all - 1), tap = at / cg, y = tap / conv->kw;
            rows[r] = image + y % conv->sh * phase + y / conv->sh * line + tap % conv->kw * cg + at % cg;
        }
        for (int64_t lane = 0; lane < lanes; lane += pixels->width) {
            for (int64_t r = 0; r < OPDI_PIXELS_ROWS; r++) { to[r] = sums + (i + r) * lanes + lane; }
            pixels->run(1, 0, count, conv->sw * cg, rows, grad + lane, lanes, to, add,
                        opdi_ahead_next(ahead, count));
        }
    }
}
/* A range function: computes gw.  An item is a group. */
static void opdi_pixels_gw_range(void *ctx, int64_t begin, int64_t end) {
    opdi_pixels *pixels = (opdi_pixels *)ctx;
    const opdi_conv *conv = &pixels->conv;
    const int64_t wide = conv->ow + (conv->kw - 1) / conv->sw, line = wide * conv->sw * conv->cg;
    const int64_t phase = (pixels->band + (conv->kh - 1) / conv->sh) * line;
    const int64_t grads = pixels->band * wide * pixels->lanes;
    const int64_t taps = conv->kh * conv->kw, rows = taps * conv->cg + OPDI_PIXELS_ROWS;
    const size_t bytes = (size_t)(phase * conv->sh + grads + rows * pixels->lanes) * sizeof(float);
    float *const image = (float *)(void *)opdi_scratch_alloc(bytes);
    if (!image) {
        OPDI_STORE(&pixels->failed, 1);
        return;
    }
    float *const grad = image + phase * conv->sh, *const sums = grad + grads;
    memset(grad, 0, (size_t)grads * sizeof(float));   /* lanes without channels */
    for (int64_t group = begin; group < end; group++) {
        for (int64_t item = 0; item < conv->n * pixels->bands; item++) {
            const int64_t y = item % pixels->bands * pixels->band, stop = OPDI_MIN(y + pixels->band, conv->oh);
            const int64_t plane = item / pixels->bands * conv->groups + group;
            opdi_ahead_both ahead = {0, 0, 0, 0, 0};
            if (pixels->bands == 1 && item + 1 < conv->n) {
                const int64_t in = conv->cg * conv->h * conv->w, out = conv->og * conv->oh * conv->ow;
                const int64_t next = plane + conv->groups;
                opdi_ahead_begin(&ahead, pixels->from + next * in, in, pixels->gy + next * out, out,
                                 taps * conv->cg / OPDI_PIXELS_ROWS * pixels->lanes / pixels->width * conv->oh * wide);
            }
            opdi_pixels_copy_both(pixels, plane, y, stop, wide, phase, image,
                                  grad);
            opdi_pixels_sum(pixels, (stop - y - 1) * wide + conv->ow, line, phase, image, grad, sums, item > 0, &ahead);
        }
        for (int64_t c = 0; c < conv->cg; c++) {
            opdi_pack_transposed((const opdi_word32 *)(const void *)sums + c * pixels->lanes, conv->cg * pixels->lanes,
                                 conv->og, taps, conv->cg * taps,
                                 (opdi_word32 *)(void *)pixels->to + (group * conv->og * conv->cg + c) * taps);
        }
    }
    opdi_scratch_free((char *)image, bytes);
}
/* Computes gw from gy and x.  Returns 0, 1 or -1 like opdi_pixels_forward.  If x is not finite, gw may contain NaN
   instead of numbers. */
OPDI_INTERNAL int opdi_pixels_grad_weight(const opdi_conv *conv, const void *gy, const void *x, void *gw) {
    opdi_pixels pixels;
    if (conv->groups < 8 || !opdi_pixels_fit(conv, false, &pixels)) { return 1; }  /* threads share the groups */
    const int64_t wide = conv->ow + (conv->kw - 1) / conv->sw;
    pixels.band = OPDI_MAX((int64_t)1, OPDI_MIN(conv->oh, 256 / wide));
    pixels.bands = (conv->oh - 1) / pixels.band + 1;
    pixels.from = (const float *)x;
    pixels.gy = (const float *)gy;
    pixels.to = (float *)gw;
    const int64_t each = ((pixels.band + conv->kh) * conv->sh * conv->sw * conv->cg + pixels.band * pixels.lanes) *
        wide;
    opdi_parallel_for_scratch(conv->groups, 1, opdi_pixels_gw_range, &pixels,
                              OPDI_SCRATCH_BYTES((size_t)(each + (conv->kh * conv->kw * conv->cg + OPDI_PIXELS_ROWS) *
                                                          pixels.lanes) * sizeof(float)));
    return opdi_conv_done(&pixels.failed);
}
#endif
