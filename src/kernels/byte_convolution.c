#include "kernels.h"

//== convolutions of 8-bit integers ====================================================================================
//
//  The image is padded and stored with its channels last, so that the elements that a row of the kernel covers are one
//  run of bytes: a tile of the result reads them in place, and nothing is unfolded.  Sums are exact.

#if defined(OPDI_WORDS)
typedef union opdi_byte_block { opdi_v16u align[64]; int32_t sums[1024]; float floats[1024]; uint8_t codes[4096]; }
    opdi_byte_block;
/* How a convolution is computed: positions of the result, `pitch` in each row of it, of which the first ow exist.  If
   the stride of columns allows it, the positions of all rows are `step` bytes apart (flat). */
typedef struct opdi_byte_plan {
    const opdi_byte_conv *conv;
    int64_t height, width;                        /* of the padded image */
    int64_t pitch, rows, count;                   /* `rows` rows of `count` positions are computed */
    opdi_byte_tile tile;
    int64_t *offsets;
    uint8_t *image;
    char *y;
    const uint8_t *other;
} opdi_byte_plan;
enum { OPDI_BYTE_RUNS = 1024 };

static void opdi_byte_plan_make(const opdi_byte_conv *conv, int64_t *offsets, opdi_byte_plan *plan) {
    const int64_t sy = conv->stride[0], sx = conv->stride[1], c = conv->channels, once = conv->dilation[1] == 1;
    memset(plan, 0, sizeof *plan);
    plan->conv = conv;
    plan->height = conv->ih + 2 * conv->padding[0];
    plan->width = conv->iw + 2 * conv->padding[1];
    plan->pitch = conv->ow;
    plan->rows = conv->oh;
    plan->count = conv->ow;
    const int64_t pitch = sy * plan->width / sx, all = (conv->oh - 1) * pitch + conv->ow;
    if (pitch * sx == sy * plan->width && (all + 31) / 32 < conv->oh * ((conv->ow + 31) / 32)) {
        plan->pitch = pitch;
        plan->rows = 1;
        plan->count = all;
    }
    const int64_t across = once ? 1 : conv->kw, bytes = once ? conv->kw * c : c;
    plan->tile.runs = conv->kh * across;
    plan->tile.words = (bytes + 3) / 4;
    plan->tile.parts = (bytes + 63) / 64;
    plan->tile.step = sx * c;
    plan->tile.offsets = offsets;
    for (int64_t run = 0; offsets && run < plan->tile.runs; run++) {
        offsets[run] = (run / across * conv->dilation[0] * plan->width + run % across * conv->dilation[1]) * c;
    }
}
/* An opdi_range_fn: packs panels begin .. end - 1 of w, 32 rows each. */
static void opdi_byte_conv_panels(void *ctx, int64_t begin, int64_t end) {
    const opdi_byte_plan *const plan = (const opdi_byte_plan *)ctx;
    const opdi_byte_conv *const conv = plan->conv;
    const int64_t c = conv->channels, taps = conv->kh * conv->kw, bytes = plan->tile.parts * 64;
    const int64_t row = plan->tile.runs * bytes, across = taps / plan->tile.runs;
    for (int64_t j = begin * OPDI_BYTE_SIDE; j < end * OPDI_BYTE_SIDE; j++) {
        int8_t *const to = conv->rows + j * row;
        memset(to, 0, (size_t)row);
        if (j >= conv->n) { continue; }
        const int8_t *const from = conv->w + j * c * taps;
        int32_t sum = 0;
        for (int64_t i = 0; i < c * taps; i++) { sum += from[i]; }
        conv->all[j] = sum;
        for (int64_t tap = 0; tap < taps; tap++) {
            int8_t *const at = to + tap / across * bytes + tap % across * c;
            for (int64_t i = 0; i < c; i++) { at[i] = from[i * taps + tap]; }
        }
    }
    for (int64_t panel = begin; panel < end; panel++) {
        const int64_t at = panel * OPDI_BYTE_SIDE * row;
        opdi_pack_transposed((const opdi_word32 *)(const void *)(conv->rows + at), row / 4, row / 4, OPDI_BYTE_SIDE,
                             OPDI_BYTE_SIDE, (opdi_word32 *)(void *)(conv->packed + at));
    }
}
/* Copies image number `at` to plan->image, with its channels last, and pads it with the zero point. */
static void opdi_byte_conv_pad(const opdi_byte_plan *plan, int64_t at) {
    const opdi_byte_conv *const conv = plan->conv;
    const int64_t c = conv->channels, wide = conv->iw * c;
    const bool last = conv->xs[1] == 1 && conv->xs[3] == c;
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
    const int64_t blocks = (plan->count + 31) / 32, c = conv->channels;
    const int64_t panel = plan->tile.runs * plan->tile.parts * 2048;
    opdi_byte_tile tile = plan->tile;
    opdi_byte_block sums;
    const bool tiles = opdi_byte_tiles_begin();
    for (int64_t j = 0; j < conv->n; j += OPDI_BYTE_SIDE) {
        tile.b = conv->packed + j / OPDI_BYTE_SIDE * panel;
        for (int64_t block = begin; block < end; block++) {
            const int64_t line = block / blocks, first = block % blocks * 32;
            const int64_t stop = OPDI_MIN(first + 32, plan->count);
            tile.a = plan->image + line * conv->stride[0] * plan->width * c + first * tile.step;
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
    if (!opdi_byte_tiles_are_fast() || conv->kh * conv->kw > OPDI_BYTE_RUNS) { return false; }
    opdi_byte_plan_make(conv, NULL, &plan);
    sizes[0] = (plan.height + 1) * plan.width * conv->channels + 64 * (plan.tile.step + plan.tile.parts) + 64;
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
                      opdi_byte_conv_panels, &plan);
#else
    (void)conv;
#endif
}
/* Computes a convolution whose weight is packed. */
OPD_UNUSED OPDI_INTERNAL void opdi_byte_convolution(const opdi_byte_conv *conv) {
#if defined(OPDI_WORDS)
    int64_t offsets[OPDI_BYTE_RUNS], sizes[3];
    opdi_byte_plan plan;
    opdi_byte_plan_make(conv, offsets, &plan);
    (void)opdi_byte_conv_sizes(conv, sizes);
    const int64_t blocks = plan.rows * ((plan.count + 31) / 32);
    plan.image = conv->planes;
    memset(plan.image, 0, (size_t)sizes[0]);
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
        opdi_parallel_for(blocks, OPDI_MAX((int64_t)1, (int64_t)(1 << 21) / (sizes[1] + 1)), opdi_byte_conv_blocks,
                          &plan);
    }
#else
    (void)conv;
#endif
}
