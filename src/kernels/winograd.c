#include "kernels.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>winograd     convolutions of 3 x 3 taps with a quarter of the multiplications
//
//  Winograd's method F(4 x 4, 3 x 3), for floats and stride 1: a tile of 4 x 4 results of a channel is computed from 6
//  x 6 inputs.  Inputs x and weights w are transformed to B^T x B and G w G^T, which have 36 elements each.  For each
//  of these 36 positions, one matrix product (tiles by channels) sums over the input channels.  The results of a tile
//  are A^T m A, where m [6, 6] has the tile's 36 sums.  Transforms work on 16 channels at a time, side by side.
//
//  The gradient with respect to the input is computed in the same way with reversed taps.  The gradient with respect
//  to the weight is G^T (sum over tiles of (A gy A^T) * (B^T x B)) G, where * is elementwise.
//
//  Accuracy, for normally distributed numbers and 16 to 512 channels: the root mean square of the errors is 0.4e-6 to
//  1.1e-6 of the root mean square of the results, which is 1.8 to 3.8 times as much as with plain sums.  The largest
//  error is 1.4 to 3.4 times as large as with plain sums.
//
//  The error is relative to the largest inputs of a tile, so small results would lose digits if much larger results
//  are near them.  Therefore this method is not used for a convolution with an input of more than 64 times the mean
//  absolute value.  It is not used either if a result is not finite, because an input or weight is not finite or a
//  transform overflows.  OPD_WINOGRAD=0 in the environment turns this method off: convolutions are plain sums, and
//  take up to three times the time.
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPD_NO_OP_CONV)
OPDI_LOOPS_BEGIN
#define OPDI_TILE_BLOCK 16                        /* channels that are transformed side by side */
#define OPDI_TILE_OUT 32                          /* output channels that are multiplied together */
#define OPDI_TILE_DEPTH 128                       /* input channels that are multiplied together */

/* Transforms `count` tiles of a strip of six lines [.., 16 channels], which are `line` elements apart, to 36 planes at
   `to`.  (Strips of gradients of results have four lines.)  Planes are `plane` elements apart, and neighbouring tiles
   of a plane `tile` elements. */
typedef void opdi_tiles_in_fn(const float *strip, int64_t line, int64_t count, float *to, int64_t tile, int64_t plane);
/* Transforms the products of `count` tiles, in 36 planes, back to results: to a strip of four lines [.., 32 channels].
   Adds the bias.  Returns false if a result is not finite. */
typedef bool opdi_tiles_out_fn(const float *from, int64_t plane, int64_t count, int64_t lanes, const float *bias,
                               float *strip, int64_t line);
/* Transforms the weights of `count` input channels [count, 9, 16] to 36 planes, which are `plane` elements apart.
   In a plane, input channels are `step` elements apart, and the 16 output channels lie in panels of `width`, which
   are `panel` elements apart. */
typedef void opdi_tiles_weight_fn(const float *weights, int64_t count, float *to, int64_t width, int64_t panel,
                                  int64_t step, int64_t plane);
/* Transforms the sums for 16 weights, in 36 planes, to 9 taps `to` [9, 16].  Sets each of the 16 numbers at `check` to
   0 if the taps of its weight are finite, else to NaN. */
typedef void opdi_tiles_taps_fn(const float *from, int64_t plane, float *to, float *check);
static opdi_tiles_in_fn opdi_tiles_in_plain_f32, opdi_tiles_grad_plain_f32;
static opdi_tiles_out_fn opdi_tiles_out_plain_f32;
static opdi_tiles_weight_fn opdi_tiles_weight_plain_f32;
static opdi_tiles_taps_fn opdi_tiles_taps_plain_f32;
#if defined(OPDI_VECTORS)
OPDI_AVX2 static opdi_tiles_in_fn opdi_tiles_in_avx2_f32, opdi_tiles_grad_avx2_f32;
OPDI_AVX2 static opdi_tiles_out_fn opdi_tiles_out_avx2_f32;
OPDI_AVX2 static opdi_tiles_weight_fn opdi_tiles_weight_avx2_f32;
OPDI_AVX2 static opdi_tiles_taps_fn opdi_tiles_taps_avx2_f32;
#endif
#if defined(OPDI_X86)
OPDI_AVX512 static opdi_tiles_in_fn opdi_tiles_in_avx512_f32, opdi_tiles_grad_avx512_f32;
OPDI_AVX512 static opdi_tiles_out_fn opdi_tiles_out_avx512_f32;
OPDI_AVX512 static opdi_tiles_weight_fn opdi_tiles_weight_avx512_f32;
OPDI_AVX512 static opdi_tiles_taps_fn opdi_tiles_taps_avx512_f32;
#endif
#include "../typed/f32.h"
#include "winograd_tiles.typed.h"
#if defined(OPDI_VECTORS)
#include "../typed/f32_avx2.h"
#include "winograd_tiles.typed.h"
#endif
#if defined(OPDI_X86)
#include "../typed/f32_avx512.h"
#include "winograd_tiles.typed.h"
#endif
#include "../typed/end.h"

/* A convolution y = conv(x, weight), or one of its gradients.  Here, a row is a row of tiles of one image; the rows of
   image 0 come first, then the rows of image 1, and so on. */
typedef struct opdi_tiles {
    opdi_conv conv;                               /* 3 x 3, stride 1; for gx: the convolution of gy */
    opdi_micro mk;
    opdi_tiles_in_fn *in, *grad;
    opdi_tiles_out_fn *out;
    opdi_tiles_weight_fn *weigh;
    opdi_tiles_taps_fn *taps;
    bool turned;                                  /* the weight of a group is [cg, og, 3, 3], with its taps reversed */
    int64_t across, down, rows;                   /* across: tiles in a row; down: rows in an image; rows: rows in all
                                                     images */
    int64_t chunk, chunks;                        /* chunk: rows that are processed together; chunks: their number */
    int64_t cp, op, blocks;                       /* per group: channels of x and of y, rounded up to multiples of 16;
                                                     blocks of output channels */
    int64_t channels;                             /* number of input channels whose weights u holds at a time */
    int64_t ld, vplane, uplane, mplane;           /* ld: elements from one tile to the next in v; the others: elements
                                                     of a plane of v, of u, and of the products (for gw: of g) */
    const float *x, *weight, *bias, *gy;
    float *y, *gw;
    float *u, *v, *g, *sums;                      /* transformed weights, x and gy; the sums for gw, or NULL */
    int64_t first, last;                          /* the current rows, if all threads work on the same rows */
    int failed, bad;                              /* failed: memory ran out; bad: a result is not finite */
} opdi_tiles;

/* 0 if the environment turns this method off, else 1; -1: not read yet */
OPDI_INTERNAL int opdi_winograd_known = -1;
OPDI_INTERNAL bool opdi_winograd_wanted(void) {
    int wanted = OPDI_LOAD(&opdi_winograd_known);
    if (wanted < 0) {
        const char *wish = getenv("OPD_WINOGRAD");
        wanted = !(wish && wish[0] == '0' && wish[1] == 0);
        OPDI_STORE(&opdi_winograd_known, wanted);
    }
    return wanted != 0;
}
static void opdi_tiles_functions(opdi_tiles *tiles) {
    const int level = opdi_cpu_level();
    tiles->mk = opdi_micro_of(OPD_FLOAT32);
    tiles->in = opdi_tiles_in_plain_f32;
    tiles->grad = opdi_tiles_grad_plain_f32;
    tiles->out = opdi_tiles_out_plain_f32;
    tiles->weigh = opdi_tiles_weight_plain_f32;
    tiles->taps = opdi_tiles_taps_plain_f32;
#if defined(OPDI_VECTORS)
    if (level == 1) {
        tiles->in = opdi_tiles_in_avx2_f32;
        tiles->grad = opdi_tiles_grad_avx2_f32;
        tiles->out = opdi_tiles_out_avx2_f32;
        tiles->weigh = opdi_tiles_weight_avx2_f32;
        tiles->taps = opdi_tiles_taps_avx2_f32;
    }
#endif
#if defined(OPDI_X86)
    else if (level == 2) {
        tiles->in = opdi_tiles_in_avx512_f32;
        tiles->grad = opdi_tiles_grad_avx512_f32;
        tiles->out = opdi_tiles_out_avx512_f32;
        tiles->weigh = opdi_tiles_weight_avx512_f32;
        tiles->taps = opdi_tiles_taps_avx512_f32;
    }
#endif
    (void)level;
}
/* Returns true if the method suits this convolution.  Then also fills in *tiles, except for the data. */
static bool opdi_tiles_fit(const opdi_conv *conv, opdi_tiles *tiles) {
    if (conv->size != 4 || conv->kh != 3 || conv->kw != 3 || conv->sh != 1 || conv->sw != 1 || conv->dh != 1 ||
        conv->dw != 1 || conv->cg < 16 || conv->og < 16 || conv->oh < 4 || conv->ow < 4 || conv->ow > 2048 ||
        !opdi_winograd_wanted()) {
        return false;
    }
    /* Tiles multiply so many bfloat16 at once that the plain sums take less time than Winograd's, unless packing the
       image takes most of it, because a group has few outputs. */
    if (conv->exact && conv->og >= 128 && opdi_cpu_tiles()) { return false; }
    memset(tiles, 0, sizeof *tiles);
    tiles->conv = *conv;
    opdi_tiles_functions(tiles);
    tiles->across = (conv->ow + 3) / 4;
    tiles->down = (conv->oh + 3) / 4;
    tiles->rows = conv->n * tiles->down;
    tiles->cp = opdi_round_up(conv->cg, OPDI_TILE_BLOCK);
    tiles->op = opdi_round_up(conv->og, OPDI_TILE_BLOCK);
    tiles->blocks = (conv->og + OPDI_TILE_OUT - 1) / OPDI_TILE_OUT;
    tiles->ld = tiles->cp % 256 == 0 ? tiles->cp + OPDI_TILE_BLOCK : tiles->cp;
    return true;
}

/* Copies line `y` of `count` planes to a line [width, step] that begins at column -left, with zeros around the planes.
   `planes` has pointers up to the next multiple of four, and `step` is at least as large. */
OPDI_INTERNAL void opdi_tiles_line(const float *const *planes, int64_t count, int64_t high, int64_t wide, int64_t y,
                                   int64_t left, int64_t width, float *to, int64_t step) {
    const int64_t from = OPDI_MIN(left, width), cols = OPDI_MIN(wide, width - from);
    if (y < 0 || y >= high || cols <= 0) {
        memset(to, 0, (size_t)(width * step) * sizeof(float));
        return;
    }
    memset(to, 0, (size_t)(from * step) * sizeof(float));
    to += from * step;
    for (int64_t c = 0; c < count; c += 4) {
        const float *const p0 = planes[c] + y * wide, *const p1 = planes[c + 1] + y * wide;
        const float *const p2 = planes[c + 2] + y * wide, *const p3 = planes[c + 3] + y * wide;
        int64_t x = 0;
        for (; x < cols && cols >= 4; x += 4) {   /* groups of four columns; the last one may overlap the one before */
            x = OPDI_MIN(x, cols - 4);
            opdi_transpose4(p0 + x, p1 + x, p2 + x, p3 + x, to + x * step + c, step);
        }
        for (; x < cols; x++) {
            to[x * step + c] = p0[x];
            to[x * step + c + 1] = p1[x];
            to[x * step + c + 2] = p2[x];
            to[x * step + c + 3] = p3[x];
        }
    }
    memset(to + cols * step, 0, (size_t)((width - from - cols) * step) * sizeof(float));
}
/* Sets planes[16] to the addresses of the planes of 16 channels, the first of which is at `first`.  If there are only
   `count` < 16 channels, repeats the last address. */
static void opdi_tiles_of(const float *first, int64_t area, int64_t count, const float *planes[OPDI_TILE_BLOCK]) {
    for (int64_t c = 0; c < OPDI_TILE_BLOCK; c++) { planes[c] = first + OPDI_MIN(c, count - 1) * area; }
}
/* Returns the number of floats of a strip of six lines. */
static int64_t opdi_tiles_strip(const opdi_tiles *tiles) { return 6 * (4 * tiles->across + 2) * OPDI_TILE_BLOCK; }
/* Transforms 16 channels of x, from `channel` of group `group` on, in rows [begin, end) to v; neighbouring tiles are
   `tile` elements apart.  `strip` is scratch memory. */
static void opdi_tiles_read(const opdi_tiles *tiles, int64_t group, int64_t channel, int64_t begin, int64_t end,
                            float *strip, float *v, int64_t tile) {
    const opdi_conv *conv = &tiles->conv;
    const int64_t width = 4 * tiles->across + 2, line = width * OPDI_TILE_BLOCK, area = conv->h * conv->w;
    const int64_t count = OPDI_MIN(OPDI_TILE_BLOCK, conv->cg - channel);
    for (int64_t row = begin; row < end; row++) {
        const float *planes[OPDI_TILE_BLOCK];
        opdi_tiles_of(tiles->x + (row / tiles->down * conv->c + group * conv->cg + channel) * area, area, count,
                      planes);
        const int64_t y = row % tiles->down * 4;
        const bool goes_on = row > begin && y > 0;
        if (goes_on) { memcpy(strip, strip + 4 * line, (size_t)(2 * line) * sizeof(float)); }
        for (int64_t i = goes_on ? 2 : 0; i < 6; i++) {
            opdi_tiles_line(planes, count, conv->h, conv->w, y + i - conv->ph, conv->pw, width, strip + i * line,
                            OPDI_TILE_BLOCK);
        }
        tiles->in(strip, line, tiles->across, v + (row - begin) * tiles->across * tile, tile, tiles->vplane);
    }
}
/* Transforms the weights of block `block` of output channels, for input channels [begin, end), to u [36, panels, input
   channels, nr]. */
static void opdi_tiles_weights(const opdi_tiles *tiles, int64_t group, int64_t block, int64_t begin, int64_t end,
                               int64_t nr, float *u) {
    const opdi_conv *conv = &tiles->conv;
    float work[8 * 9 * OPDI_TILE_BLOCK];
    const int64_t stop = OPDI_MIN(conv->og, (block + 1) * OPDI_TILE_OUT), panel = tiles->channels * nr;
    for (int64_t o = block * OPDI_TILE_OUT, lane = 0; o < stop; o += OPDI_TILE_BLOCK, lane += OPDI_TILE_BLOCK) {
        const int64_t lanes = OPDI_MIN(OPDI_TILE_BLOCK, conv->og - o);
        float *to = u + lane / nr * panel + lane % nr;
        if (lanes < OPDI_TILE_BLOCK) { memset(work, 0, sizeof work); }
        for (int64_t c = begin; c < end; c += 8, to += 8 * nr) {
            const int64_t count = OPDI_MIN(8, end - c);
            const float *from = tiles->weight + ((group * conv->og + o) * conv->cg + c) * 9;
            if (!tiles->turned) {
                opdi_pack_transposed((const opdi_word32 *)(const void *)from, conv->cg * 9, count * 9, lanes,
                                     OPDI_TILE_BLOCK, (opdi_word32 *)(void *)work);
            }
            for (int64_t i = 0; tiles->turned && i < count; i++) {    /* reverses the taps */
                from = tiles->weight + ((group * conv->cg + c + i) * conv->og + o) * 9;
                opdi_pack_transposed((const opdi_word32 *)(const void *)from, 9, 9, lanes, -OPDI_TILE_BLOCK,
                                     (opdi_word32 *)(void *)(work + (i * 9 + 8) * OPDI_TILE_BLOCK));
            }
            tiles->weigh(work, count, to, nr, panel, nr, tiles->uplane);
        }
    }
}
/* Copies a line [width, step] of `count` channels to a row of each channel's plane; planes are `area` elements
   apart. */
OPDI_INTERNAL void opdi_tiles_put(const float *line, int64_t step, int64_t count, int64_t width, float *to,
                                  int64_t area) {
    for (int64_t o = 0; o < count; o += 4, line += 4, to += 4 * area) {
        int64_t x = 0;
        for (; o + 4 <= count && x < width && width >= 4; x += 4) {   /* groups of four columns; the last one may
                                                                         overlap the one before */
            x = OPDI_MIN(x, width - 4);
            const float *const from = line + x * step;
            opdi_transpose4(from, from + step, from + 2 * step, from + 3 * step, to + x, area);
        }
        for (; x < width; x++) {
            for (int64_t k = 0; k < OPDI_MIN(4, count - o); k++) { to[k * area + x] = line[x * step + k]; }
        }
    }
}
/* Writes the results of row `row` of tiles, `strip` (four lines [.., 32 channels]), to y. */
static void opdi_tiles_write(const opdi_tiles *tiles, int64_t group, int64_t block, int64_t row, const float *strip) {
    const opdi_conv *conv = &tiles->conv;
    const int64_t area = conv->oh * conv->ow, o = block * OPDI_TILE_OUT, y = row % tiles->down * 4;
    const int64_t count = OPDI_MIN(OPDI_TILE_OUT, conv->og - o), line = 4 * tiles->across * OPDI_TILE_OUT;
    float *const to = tiles->y + (row / tiles->down * conv->oc + group * conv->og + o) * area + y * conv->ow;
    for (int64_t i = 0; i < OPDI_MIN(4, conv->oh - y); i++) {
        opdi_tiles_put(strip + i * line, OPDI_TILE_OUT, count, conv->ow, to + i * conv->ow, area);
    }
}
/* Multiplies the tiles v of some rows, `count` tiles in all, by the weights u of a block, for OPDI_TILE_DEPTH input
   channels from `channel` on.  Writes the products to m if these channels are the first, else adds them to m. */
static void opdi_tiles_multiply(const opdi_tiles *tiles, int64_t block, int64_t count, int64_t channel,
                                const opdi_micro *mk, const float *v, const float *u, float *m) {
    const int64_t lanes = OPDI_MIN(OPDI_TILE_OUT, tiles->op - block * OPDI_TILE_OUT);
    const int64_t depth = OPDI_MIN(OPDI_TILE_DEPTH, tiles->conv.cg - channel);
    for (int64_t plane = 0; plane < 36; plane++) {
        const float *const first = v + plane * tiles->vplane + channel;
        for (int64_t lane = 0; lane < lanes; lane += mk->nr) {
            const float *const second = u + plane * tiles->uplane + lane * tiles->channels;
            float *const to = m + plane * tiles->mplane + lane;
            for (int64_t tile = 0; tile < count; tile += mk->mr) {
                const void *rows[OPDI_MAX_MR];
                for (int64_t row = 0; row < mk->mr; row++) {
                    rows[row] = first + OPDI_MIN(tile + row, count - 1) * tiles->ld;
                }
                mk->run(depth, rows, 1, second, mk->nr, to + tile * OPDI_TILE_OUT, OPDI_TILE_OUT, channel > 0);
            }
        }
    }
}
/* Computes the results of a block of output channels, in rows [begin, end), from the products m.  Returns false if a
   result is not finite. */
static bool opdi_tiles_results(const opdi_tiles *tiles, int64_t group, int64_t block, int64_t begin, int64_t end,
                               const float *m, float *strip) {
    const opdi_conv *conv = &tiles->conv;
    const int64_t o = block * OPDI_TILE_OUT, lanes = OPDI_MIN(OPDI_TILE_OUT, tiles->op - o);
    const size_t real = (size_t)OPDI_MIN(OPDI_TILE_OUT, conv->og - o);
    float bias[OPDI_TILE_OUT] = {0};
    bool fine = true;
    if (tiles->bias) { memcpy(bias, tiles->bias + group * conv->og + o, real * sizeof *bias); }
    for (int64_t row = begin; row < end; row++, m += tiles->across * OPDI_TILE_OUT) {
        fine &= tiles->out(m, tiles->mplane, tiles->across, lanes, bias, strip, 4 * tiles->across * OPDI_TILE_OUT);
        opdi_tiles_write(tiles, group, block, row, strip);
    }
    return fine;
}
/* Returns the micro-kernel for a block.  If the block has at most half a panel of channels, the micro-kernel has
   half the width. */
static opdi_micro opdi_tiles_micro(const opdi_tiles *tiles, int64_t block) {
    opdi_gemm_job job;
    job.mk = tiles->mk;
    job.size = 4;
    opdi_micro_narrow(&job, tiles->conv.og - block * OPDI_TILE_OUT);
    return job.mk;
}
/* A range function: transforms the weights.  An item is a block of output channels of a group. */
static void opdi_tiles_weights_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_tiles *tiles = (const opdi_tiles *)ctx;
    for (int64_t item = begin; item < end; item++) {
        const opdi_micro mk = opdi_tiles_micro(tiles, item % tiles->blocks);
        opdi_tiles_weights(tiles, item / tiles->blocks, item % tiles->blocks, 0, tiles->conv.cg, mk.nr,
                           tiles->u + item * 36 * tiles->uplane);
    }
}
/* Returns the number of floats that the products of a chunk of rows and a strip of results need. */
static int64_t opdi_tiles_scratch_size(const opdi_tiles *tiles) {
    return 36 * tiles->mplane + 4 * 4 * tiles->across * OPDI_TILE_OUT;
}
/* A range function: computes chunks of rows, after all weights were transformed.  An item is a chunk of rows of a
   group. */
static void opdi_tiles_chunk_range(void *ctx, int64_t begin, int64_t end) {
    opdi_tiles *tiles = (opdi_tiles *)ctx;
    const int64_t scratch = opdi_tiles_scratch_size(tiles),
        all = scratch + 36 * tiles->vplane + opdi_tiles_strip(tiles);
    float *const m = (float *)(void *)opdi_scratch_alloc((size_t)all * sizeof(float)), *const v = m + scratch;
    if (!m) {
        OPDI_STORE(&tiles->failed, 1);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        const int64_t group = item % tiles->conv.groups, first = item / tiles->conv.groups * tiles->chunk;
        const int64_t last = OPDI_MIN(first + tiles->chunk, tiles->rows);
        for (int64_t c = 0; c < tiles->conv.cg; c += OPDI_TILE_BLOCK) {
            opdi_tiles_read(tiles, group, c, first, last, v + 36 * tiles->vplane, v + c, tiles->ld);
        }
        for (int64_t block = 0; block < tiles->blocks; block++) {
            const opdi_micro mk = opdi_tiles_micro(tiles, block);
            const float *const u = tiles->u + (group * tiles->blocks + block) * 36 * tiles->uplane;
            for (int64_t c = 0; c < tiles->conv.cg; c += OPDI_TILE_DEPTH) {
                opdi_tiles_multiply(tiles, block, (last - first) * tiles->across, c, &mk, v, u + c * mk.nr, m);
            }
            if (!opdi_tiles_results(tiles, group, block, first, last, m, m + 36 * tiles->mplane)) {
                OPDI_STORE(&tiles->bad, 1);
            }
        }
    }
    opdi_scratch_free((char *)m, (size_t)all * sizeof(float));
}
/* A range function: transforms all of x.  An item is a block of channels of a group, in one image. */
static void opdi_tiles_inputs_range(void *ctx, int64_t begin, int64_t end) {
    opdi_tiles *tiles = (opdi_tiles *)ctx;
    const int64_t blocks = tiles->cp / OPDI_TILE_BLOCK, groups = tiles->conv.groups;
    const size_t bytes = (size_t)opdi_tiles_strip(tiles) * sizeof(float);
    float *const strip = (float *)(void *)opdi_scratch_alloc(bytes);
    if (!strip) {
        OPDI_STORE(&tiles->failed, 1);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        const int64_t group = item % groups, block = item / groups % blocks, image = item / groups / blocks;
        opdi_tiles_read(tiles, group, block * OPDI_TILE_BLOCK, image * tiles->down, (image + 1) * tiles->down, strip,
                        tiles->v + group * 36 * tiles->vplane + image * tiles->down * tiles->across * tiles->ld +
                        block * OPDI_TILE_BLOCK, tiles->ld);
    }
    opdi_scratch_free((char *)strip, bytes);
}
/* A range function: computes blocks of output channels in all rows.  An item is a block of a group. */
static void opdi_tiles_block_range(void *ctx, int64_t begin, int64_t end) {
    opdi_tiles *tiles = (opdi_tiles *)ctx;
    const int64_t scratch = opdi_tiles_scratch_size(tiles), all = scratch + 36 * tiles->uplane;
    float *const m = (float *)(void *)opdi_scratch_alloc((size_t)all * sizeof(float));
    if (!m) {
        OPDI_STORE(&tiles->failed, 1);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        const int64_t group = item / tiles->blocks, block = item % tiles->blocks;
        const opdi_micro mk = opdi_tiles_micro(tiles, block);
        for (int64_t c = 0; c < tiles->conv.cg; c += OPDI_TILE_DEPTH) {
            opdi_tiles_weights(tiles, group, block, c, OPDI_MIN(c + OPDI_TILE_DEPTH, tiles->conv.cg), mk.nr,
                               m + scratch);
            opdi_tiles_multiply(tiles, block, tiles->rows * tiles->across, c, &mk,
                                tiles->v + group * 36 * tiles->vplane, m + scratch, m);
        }
        if (!opdi_tiles_results(tiles, group, block, 0, tiles->rows, m, m + 36 * tiles->mplane)) {
            OPDI_STORE(&tiles->bad, 1);
        }
    }
    opdi_scratch_free((char *)m, (size_t)all * sizeof(float));
}
static void opdi_tiles_planes(opdi_tiles *tiles, int64_t rows) {
    const int64_t count = rows * tiles->across;
    tiles->vplane = count * tiles->ld + OPDI_TILE_BLOCK;
    tiles->mplane = opdi_round_up(count, tiles->mk.mr) * OPDI_TILE_OUT + OPDI_TILE_BLOCK;
}
/* Runs a convolution whose data are set in *tiles.  First transforms the smaller operand, as a whole: the inputs of all
   tiles, or the weights.  Returns 0, 1 or -1 like opdi_tiles_forward. */
static int opdi_tiles_run(opdi_tiles *tiles) {
    const opdi_conv *conv = &tiles->conv;
    const bool few = tiles->rows * tiles->across <= conv->og;
    const int64_t items = conv->groups * tiles->blocks;
    int64_t size, scratch;
    tiles->channels = few ? OPDI_MIN(conv->cg, OPDI_TILE_DEPTH) : conv->cg;
    tiles->uplane = tiles->channels * OPDI_TILE_OUT + OPDI_TILE_BLOCK;
    if (few) {
        opdi_tiles_planes(tiles, tiles->rows);
        size = conv->groups * 36 * tiles->vplane;
        scratch = opdi_tiles_scratch_size(tiles) + 36 * tiles->uplane;
    } else {
        const int64_t want = OPDI_MAX(24, 2048 / conv->cg);
        tiles->chunk = OPDI_MIN(tiles->rows, (want + tiles->across - 1) / tiles->across);
        tiles->chunks = (tiles->rows - 1) / tiles->chunk + 1;
        opdi_tiles_planes(tiles, tiles->chunk);
        size = items * 36 * tiles->uplane;
        scratch = opdi_tiles_scratch_size(tiles) + 36 * tiles->vplane + opdi_tiles_strip(tiles);
    }
    float *const data = (float *)(void *)opdi_scratch_alloc((size_t)size * sizeof(float));
    if (!data) { return -1; }
    const size_t bytes = OPDI_SCRATCH_BYTES((size_t)scratch * sizeof(float));
    if (few) {
        tiles->v = data;
        opdi_parallel_for_scratch(conv->groups * tiles->cp / OPDI_TILE_BLOCK * conv->n, 1, opdi_tiles_inputs_range,
                                  tiles, OPDI_SCRATCH_BYTES((size_t)opdi_tiles_strip(tiles) * sizeof(float)));
        opdi_parallel_for_scratch(items, 1, opdi_tiles_block_range, tiles, bytes);
    } else {
        tiles->u = data;
        opdi_parallel_for(items, 1, opdi_tiles_weights_range, tiles);
        opdi_parallel_for_scratch(tiles->chunks * conv->groups, 1, opdi_tiles_chunk_range, tiles, bytes);
    }
    opdi_scratch_free((char *)data, (size_t)size * sizeof(float));
    if (OPDI_LOAD(&tiles->failed)) { return opd_fail(OPD_ERROR_MEMORY, "convolution: out of memory"); }
    return OPDI_LOAD(&tiles->bad) ? 1 : 0;
}
/* Finds the largest absolute value, and the sum of the absolute values, of each part of OPDI_TILE_PART inputs.  The
   parts have a fixed size, so that the sum does not depend on the number of threads. */
#define OPDI_TILE_PART 65536
typedef struct opdi_tiles_sizes { const float *x; int64_t count; double *largest, *sum; } opdi_tiles_sizes;
static void opdi_tiles_sizes_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_tiles_sizes *const sizes = (const opdi_tiles_sizes *)ctx;
    for (int64_t part = begin; part < end; part++) {
        const float *const x = sizes->x + part * OPDI_TILE_PART;
        const int64_t count = OPDI_MIN(OPDI_TILE_PART, sizes->count - part * OPDI_TILE_PART);
        float largest[16] = {0}, sum[16] = {0};
        int64_t i = 0;
        for (; i + 16 <= count; i += 16) {
            for (int lane = 0; lane < 16; lane++) {
                const float size = fabsf(x[i + lane]);
                largest[lane] = largest[lane] > size ? largest[lane] : size;
                sum[lane] += size;
            }
        }
        for (; i < count; i++) {
            largest[0] = OPDI_MAX(largest[0], fabsf(x[i]));
            sum[0] += fabsf(x[i]);
        }
        sizes->largest[part] = sizes->sum[part] = 0;
        for (int lane = 0; lane < 16; lane++) {
            sizes->largest[part] = OPDI_MAX(sizes->largest[part], largest[lane]);
            sizes->sum[part] += sum[lane];
        }
    }
}
/* Returns 0 if no input is more than 64 times as large as the inputs' mean absolute value.  Returns 1 if an input is
   larger, or is not finite.  Returns -1 and sets an error if memory runs out. */
static int opdi_tiles_uneven(const opdi_conv *conv, const float *x) {
    opdi_tiles_sizes sizes;
    sizes.x = x;
    sizes.count = conv->n * conv->c * conv->h * conv->w;
    const int64_t parts = (sizes.count - 1) / OPDI_TILE_PART + 1;
    const size_t bytes = (size_t)parts * 2 * sizeof(double);
    double largest = 0, sum = 0, *const data = (double *)(void *)opdi_scratch_alloc(bytes);
    if (!data) { return -1; }
    sizes.largest = data;
    sizes.sum = data + parts;
    opdi_parallel_for(parts, 1, opdi_tiles_sizes_range, &sizes);
    for (int64_t part = 0; part < parts; part++) {
        largest = OPDI_MAX(largest, sizes.largest[part]);
        sum += sizes.sum[part];
    }
    opdi_scratch_free((char *)data, bytes);
    return largest <= 64 * (sum / (double)sizes.count) ? 0 : 1;
}
/* With opd_same_bits, each image chooses its method.  Returns 0 or 1 if it is the same for all images, 2 if the images
   have to be computed one by one, or -1 and sets an error. */
static int opdi_tiles_uneven_each(const opdi_conv *conv, const float *x) {
    opdi_conv one = *conv;
    int first = 0;
    one.n = opd_same_bits() ? 1 : conv->n;
    for (int64_t image = 0; image < conv->n; image += one.n) {
        const int uneven = opdi_tiles_uneven(&one, x + image * conv->c * conv->h * conv->w);
        if (uneven < 0 || image == 0) { first = uneven; }
        if (uneven < 0) { return -1; }
        if (uneven != first) { return 2; }
    }
    return first;
}
/* Computes y = conv(x, weights) + bias.  Returns 0; 1 if this method does not suit the convolution or its numbers; 2 if
   the images have to be computed one by one; or -1 and sets an error. */
OPDI_INTERNAL int opdi_tiles_forward(const opdi_conv *conv, const void *x, const void *weights, const void *bias,
                                     void *y) {
    opdi_tiles tiles;
    if (!opdi_tiles_fit(conv, &tiles)) { return 1; }
    const int rc = opdi_tiles_uneven_each(conv, (const float *)x);
    if (rc) { return rc; }
    tiles.x = (const float *)x;
    tiles.weight = (const float *)weights;
    tiles.bias = (const float *)bias;
    tiles.y = (float *)y;
    return opdi_tiles_run(&tiles);
}
/* Computes gx, the convolution of gy with the weights' taps reversed.  Returns 0, 1 or -1 like opdi_tiles_forward. */
OPDI_INTERNAL int opdi_tiles_grad_input(const opdi_conv *conv, const void *gy, const void *weights, void *gx) {
    opdi_conv other = *conv;
    opdi_tiles tiles;
    other.ph = 2 - conv->ph;
    other.pw = 2 - conv->pw;
    other.c = conv->oc;
    other.h = conv->oh;
    other.w = conv->ow;
    other.oc = conv->c;
    if (conv->kh != 3 || conv->kw != 3 || other.ph < 0 || other.pw < 0 || conv->sh != 1 || conv->sw != 1 ||
        conv->dh != 1 || conv->dw != 1 || opdi_conv_init(&other) != 0 || !opdi_tiles_fit(&other, &tiles)) { return 1; }
    const int rc = opdi_tiles_uneven_each(&other, (const float *)gy);
    if (rc) { return rc; }
    tiles.turned = true;
    tiles.x = (const float *)gy;
    tiles.weight = (const float *)weights;
    tiles.y = (float *)gx;
    return opdi_tiles_run(&tiles);
}

//== the gradient with respect to the weight ===========================================================================
//
//  Inputs are in panels [36, panel, tile, width], gradients of results in panels [36, panel, tile, 16]; the sums of a
//  block of 32 output channels and a panel of input channels are [36, channel, width].

static int64_t opdi_tiles_width(const opdi_tiles *tiles) { return OPDI_MAX(tiles->mk.nr, OPDI_TILE_BLOCK); }

/* Transforms 16 channels of gy, from `channel` of group `group` on, in rows [begin, end) to v.  `strip` is scratch
   memory. */
static void opdi_tiles_read_grad(const opdi_tiles *tiles, int64_t group, int64_t channel, int64_t begin, int64_t end,
                                 float *strip, float *v) {
    const opdi_conv *conv = &tiles->conv;
    const int64_t width = 4 * tiles->across, line = width * OPDI_TILE_BLOCK, area = conv->oh * conv->ow;
    const int64_t count = OPDI_MIN(OPDI_TILE_BLOCK, conv->og - channel);
    for (int64_t row = begin; row < end; row++) {
        const float *planes[OPDI_TILE_BLOCK];
        opdi_tiles_of(tiles->gy + (row / tiles->down * conv->oc + group * conv->og + channel) * area, area, count,
                      planes);
        for (int64_t i = 0; i < 4; i++) {
            opdi_tiles_line(planes, count, conv->oh, conv->ow, row % tiles->down * 4 + i, 0, width, strip + i * line,
                            OPDI_TILE_BLOCK);
        }
        tiles->grad(strip, line, tiles->across, v + (row - begin) * tiles->across * OPDI_TILE_BLOCK, OPDI_TILE_BLOCK,
                    tiles->mplane);
    }
}
/* A range function: transforms x and gy of the current rows.  An item is a block of 16 channels; the blocks of x
   come first, then the blocks of gy. */
static void opdi_tiles_both_range(void *ctx, int64_t begin, int64_t end) {
    opdi_tiles *tiles = (opdi_tiles *)ctx;
    const int64_t xblocks = tiles->cp / OPDI_TILE_BLOCK, gblocks = tiles->op / OPDI_TILE_BLOCK;
    const int64_t tile = opdi_tiles_width(tiles), count = (tiles->last - tiles->first) * tiles->across;
    const size_t bytes = (size_t)opdi_tiles_strip(tiles) * sizeof(float);
    float *const strip = (float *)(void *)opdi_scratch_alloc(bytes);
    if (!strip) {
        OPDI_STORE(&tiles->failed, 1);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        const int64_t group = item / (xblocks + gblocks), block = item % (xblocks + gblocks) - xblocks;
        if (block >= 0) {
            opdi_tiles_read_grad(tiles, group, block * OPDI_TILE_BLOCK, tiles->first, tiles->last, strip,
                                 tiles->g + group * 36 * tiles->mplane + block * count * OPDI_TILE_BLOCK);
        } else {
            const int64_t channel = (block + xblocks) * OPDI_TILE_BLOCK;
            opdi_tiles_read(tiles, group, channel, tiles->first, tiles->last, strip,
                            tiles->v + group * 36 * tiles->vplane + channel / tile * tile * count + channel % tile,
                            tile);
        }
    }
    opdi_scratch_free((char *)strip, bytes);
}
/* Returns the number of floats that the sums of a block need. */
static int64_t opdi_tiles_sums(const opdi_tiles *tiles) {
    return 36 * opdi_round_up(OPDI_TILE_OUT, tiles->mk.mr) * opdi_tiles_width(tiles);
}
/* Adds the products of the current rows to `sums`, for the output channels from `o` on and a panel of input
   channels.  If `add` is false, sets the sums instead. */
static void opdi_tiles_sum(const opdi_tiles *tiles, int64_t group, int64_t o, int64_t panel, float *sums, bool add) {
    const opdi_micro *mk = &tiles->mk;
    const int64_t width = opdi_tiles_width(tiles), count = (tiles->last - tiles->first) * tiles->across;
    const int64_t stop = OPDI_MIN(OPDI_TILE_OUT, tiles->op - o), each = opdi_tiles_sums(tiles) / 36;
    for (int64_t plane = 0; plane < 36; plane++) {
        const float *const grad = tiles->g + (group * 36 + plane) * tiles->mplane;
        const float *const second = tiles->v + (group * 36 + plane) * tiles->vplane + panel * width * count;
        for (int64_t lane = 0; lane < width; lane += mk->nr) {
            for (int64_t row = 0; row < stop; row += mk->mr) {
                const void *rows[OPDI_MAX_MR];
                for (int64_t i = 0; i < mk->mr; i++) {
                    const int64_t at = o + OPDI_MIN(row + i, stop - 1);
                    rows[i] = grad + at / OPDI_TILE_BLOCK * OPDI_TILE_BLOCK * count + at % OPDI_TILE_BLOCK;
                }
                mk->run(count, rows, OPDI_TILE_BLOCK, second + lane, width, sums + plane * each + row * width + lane,
                        width, add);
            }
        }
    }
}
/* Computes the gradients of weights from `sums` of a block: output channels from `o` on, and a panel of input
   channels.  Returns false if a gradient is not finite. */
static bool opdi_tiles_unsum(const opdi_tiles *tiles, int64_t group, int64_t o, int64_t panel, const float *sums) {
    const opdi_conv *conv = &tiles->conv;
    const int64_t width = opdi_tiles_width(tiles), stop = OPDI_MIN(OPDI_TILE_OUT, conv->og - o);
    const int64_t each = opdi_tiles_sums(tiles) / 36;
    float taps[9 * OPDI_TILE_BLOCK], check[OPDI_TILE_BLOCK], bad = 0;
    for (int64_t row = 0; row < stop; row++) {
        for (int64_t lane = 0; lane < width && panel * width + lane < conv->cg; lane += OPDI_TILE_BLOCK) {
            const int64_t c = panel * width + lane, lanes = OPDI_MIN(OPDI_TILE_BLOCK, conv->cg - c);
            tiles->taps(sums + row * width + lane, each, taps, check);
            opdi_pack_transposed((const opdi_word32 *)(const void *)taps, OPDI_TILE_BLOCK, lanes, 9, 9,
                                 (opdi_word32 *)(void *)(tiles->gw +
                                                         ((group * conv->og + o + row) * conv->cg + c) * 9));
            for (int64_t i = 0; i < lanes; i++) { bad += check[i]; }
        }
    }
    return bad == 0;
}
/* A range function: computes the sums of blocks.  An item is a block of output channels with a panel of input
   channels, in one group. */
static void opdi_tiles_sums_range(void *ctx, int64_t begin, int64_t end) {
    opdi_tiles *tiles = (opdi_tiles *)ctx;
    const int64_t panels = (tiles->conv.cg - 1) / opdi_tiles_width(tiles) + 1;
    const size_t bytes = (size_t)opdi_tiles_sums(tiles) * sizeof(float);
    float *const local = tiles->sums ? NULL : (float *)(void *)opdi_scratch_alloc(bytes);
    if (!tiles->sums && !local) {
        OPDI_STORE(&tiles->failed, 1);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        const int64_t panel = item % panels, o = item / panels % tiles->blocks * OPDI_TILE_OUT;
        const int64_t group = item / panels / tiles->blocks;
        float *const sums = local ? local : tiles->sums + item * opdi_tiles_sums(tiles);
        opdi_tiles_sum(tiles, group, o, panel, sums, tiles->first > 0);
        if (tiles->last == tiles->rows && !opdi_tiles_unsum(tiles, group, o, panel, sums)) {
            OPDI_STORE(&tiles->bad, 1);
        }
    }
    if (local) { opdi_scratch_free((char *)local, bytes); }
}
/* Computes gw from gy and x, which are set in *tiles.  Returns 0, 1 or -1 like opdi_tiles_grad_weight. */
static int opdi_tiles_gw_run(opdi_tiles *tiles) {
    const opdi_conv *conv = &tiles->conv;
    const int64_t width = opdi_tiles_width(tiles), panels = (conv->cg - 1) / width + 1;
    const int64_t items = conv->groups * tiles->blocks * panels, all = items * opdi_tiles_sums(tiles);
    const int64_t both = 36 * (panels * width + tiles->op) * conv->groups * tiles->across;    /* floats per row of
                                                                                                 tiles */
    tiles->chunk = OPDI_MAX(OPDI_MAX(64 / tiles->across, (int64_t)1), ((int64_t)1 << 18) / both);
    if (tiles->chunk >= tiles->rows || tiles->rows * both <= all) { tiles->chunk = tiles->rows; }
    tiles->vplane = tiles->chunk * tiles->across * panels * width + OPDI_TILE_BLOCK;
    tiles->mplane = tiles->chunk * tiles->across * tiles->op + OPDI_TILE_BLOCK;
    const int64_t data = 36 * conv->groups * (tiles->vplane + tiles->mplane);
    const int64_t many = tiles->chunk < tiles->rows ? all : 0;
    const size_t bytes = (size_t)(data + many) * sizeof(float);
    tiles->v = (float *)(void *)opdi_scratch_alloc(bytes);
    if (!tiles->v) { return -1; }
    tiles->g = tiles->v + 36 * conv->groups * tiles->vplane;
    tiles->sums = many ? tiles->v + data : NULL;
    for (; tiles->first < tiles->rows; tiles->first = tiles->last) {
        tiles->last = OPDI_MIN(tiles->first + tiles->chunk, tiles->rows);
        opdi_parallel_for_scratch((tiles->cp + tiles->op) / OPDI_TILE_BLOCK * conv->groups, 1, opdi_tiles_both_range,
                                  tiles, OPDI_SCRATCH_BYTES((size_t)opdi_tiles_strip(tiles) * sizeof(float)));
        opdi_parallel_for_scratch(items, 1, opdi_tiles_sums_range, tiles,
                                  many ? 0 : OPDI_SCRATCH_BYTES((size_t)opdi_tiles_sums(tiles) * sizeof(float)));
    }
    opdi_scratch_free((char *)tiles->v, bytes);
    if (OPDI_LOAD(&tiles->failed)) { return opd_fail(OPD_ERROR_MEMORY, "convolution: out of memory"); }
    return OPDI_LOAD(&tiles->bad) ? 1 : 0;
}
/* A range function: computes gw, one group after another, so that the transformed numbers stay in the caches.  An item
   is a group. */
static void opdi_tiles_gw_groups_range(void *ctx, int64_t begin, int64_t end) {
    opdi_tiles *tiles = (opdi_tiles *)ctx;
    const opdi_conv *conv = &tiles->conv;
    for (int64_t group = begin; group < end; group++) {
        opdi_tiles one = *tiles;
        one.conv.groups = 1;
        one.x += group * conv->cg * conv->h * conv->w;
        one.gy += group * conv->og * conv->oh * conv->ow;
        one.gw += group * conv->og * conv->cg * 9;
        const int rc = opdi_tiles_gw_run(&one);
        if (rc) { OPDI_STORE(rc < 0 ? &tiles->failed : &tiles->bad, 1); }
    }
}
/* Computes gw from gy and x.  Returns 0, or 1 if this method does not suit the convolution or a gradient is not finite,
   or -1 and sets an error.  The order in which tiles are summed depends only on the sizes. */
OPDI_INTERNAL int opdi_tiles_grad_weight(const opdi_conv *conv, const void *gy, const void *x, void *gw) {
    opdi_tiles tiles;
    opdi_gemm_job job;
    if (!opdi_tiles_fit(conv, &tiles)) { return 1; }
    job.mk = tiles.mk;
    job.size = 4;
    opdi_micro_narrow(&job, conv->cg);
    tiles.mk = job.mk;
    tiles.x = (const float *)x;
    tiles.gy = (const float *)gy;
    tiles.gw = (float *)gw;
    if (conv->groups < 8) { return opdi_tiles_gw_run(&tiles); }
    opdi_parallel_for(conv->groups, 1, opdi_tiles_gw_groups_range, &tiles);
    if (OPDI_LOAD(&tiles.failed)) { return opd_fail(OPD_ERROR_MEMORY, "convolution: out of memory"); }
    return OPDI_LOAD(&tiles.bad) ? 1 : 0;
}
//== groups with few channels ==========================================================================================
//
//  Like Winograd's method, this method computes the results of 16 channels side by side, as floats.  For each input
//  channel of a group, a line of the padded image is copied to a line [column, 16]: each of the 16 lanes has the
//  elements that one result channel multiplies.  The last lines are kept, because the next results read them again.

/* Computes a line out [count, 16] of results.  `lines` points to the lines that the rows of taps read.  If `count` is
   less than eight, eight results are computed; the lines and `out` have space for them. */
typedef void opdi_grouped_line_fn(const opdi_conv *conv, const float *const *lines, const float *weights,
                                  const float *bias, int64_t count, float *out);
/* Adds the contribution of one line `grad` [count, 16] of the output's gradient to `sums` [taps, 16], the gradient of
   the weights.  `lines` points to the lines that the rows of taps read. */
typedef void opdi_grouped_sum_fn(const opdi_conv *conv, const float *const *lines, const float *grad, int64_t count,
                                 float *sums);
#if defined(OPDI_VECTORS)
OPDI_AVX2 static opdi_grouped_line_fn opdi_grouped_line_avx2_f32;
OPDI_AVX2 static opdi_grouped_sum_fn opdi_grouped_sum_avx2_f32;
#endif
#if defined(OPDI_X86)
OPDI_AVX512 static opdi_grouped_line_fn opdi_grouped_line_avx512_f32;
OPDI_AVX512 static opdi_grouped_sum_fn opdi_grouped_sum_avx512_f32;
#endif
#if defined(OPDI_VECTORS)
#include "../typed/f32_avx2.h"
#include "winograd_lines.typed.h"
#endif
#if defined(OPDI_X86)
#include "../typed/f32_avx512.h"
#include "winograd_lines.typed.h"
#endif
#include "../typed/end.h"

#define OPDI_GROUPED_MAX_CHANNELS 4               /* the largest number of channels of a group */
/* A convolution whose groups have few channels, or one of its gradients. */
typedef struct opdi_grouped {
    opdi_conv conv, each;                         /* each: conv for the line functions: it has kh * cg rows of taps */
    opdi_grouped_line_fn *line;
    opdi_grouped_sum_fn *sum;
    const float *x, *weight, *bias, *gy;
    float *y, *gx, *gw;
    int64_t kept, wide;                           /* kept: number of kept rows; wide: columns of a line */
    int failed;
} opdi_grouped;
/* Returns true if the method suits this convolution.  Then also fills in *grouped, except for the data. */
static bool opdi_grouped_fits(const opdi_conv *conv, opdi_grouped *grouped) {
    const int level = opdi_cpu_level();
    if (level == 0 || conv->size != 4 || conv->cg > OPDI_GROUPED_MAX_CHANNELS || conv->og > OPDI_GROUPED_MAX_CHANNELS ||
        conv->groups < 4 || conv->oc < 8 || conv->wp > 1 << 16 || conv->kh * conv->kw > 1 << 12 ||
        (conv->kh - 1) * conv->dh >= 1 << 10 ||
        conv->sw >= 1 << 10) { return false; }
    memset(grouped, 0, sizeof *grouped);
    grouped->conv = grouped->each = *conv;
    grouped->each.kh = conv->kh * conv->cg;
    grouped->kept = (conv->kh - 1) * conv->dh + 1;
    grouped->wide = conv->wp;
#if defined(OPDI_VECTORS)
    grouped->line = OPDI_WIDEST(level, opdi_grouped_line_avx512_f32, opdi_grouped_line_avx2_f32);
    grouped->sum = OPDI_WIDEST(level, opdi_grouped_sum_avx512_f32, opdi_grouped_sum_avx2_f32);
#endif
    return true;
}
/* Writes to planes [step, 16] the addresses of the planes that the 16 result channels from `first` on read.  `per`
   result channels form a group, and each group reads `step` planes. */
static void opdi_grouped_planes(const float *image, int64_t area, int64_t first, int64_t count, int64_t per,
                                int64_t step, const float **planes) {
    for (int64_t lane = 0; lane < OPDI_TILE_BLOCK; lane++) {
        const float *const plane = image + (first + OPDI_MIN(lane, count - 1)) / per * step * area;
        for (int64_t c = 0; c < step; c++) { planes[c * OPDI_TILE_BLOCK + lane] = plane + c * area; }
    }
}
/* Returns the number of floats of the kept lines, with additional memory for seven more results. */
static int64_t opdi_grouped_kept(const opdi_grouped *grouped, int64_t channels) {
    return (grouped->kept * channels * grouped->wide + 8 * grouped->conv.sw) * OPDI_TILE_BLOCK;
}
/* Returns the number of floats of scratch memory that a thread needs: the kept lines, a line of results, the taps,
   and a bias. */
static int64_t opdi_grouped_scratch_size(const opdi_grouped *grouped) {
    const opdi_conv *conv = &grouped->conv;
    return opdi_grouped_kept(grouped, conv->cg) + (conv->ow + 8 + grouped->each.kh * conv->kw + 1) * OPDI_TILE_BLOCK;
}
/* Sets lines [kh, cg] to the lines of the padded image that line `y` of the results reads.  First copies those rows of
   the image that are not copied yet.  *next is the first row that has not been copied. */
static void opdi_grouped_lines(const opdi_grouped *grouped, const float *const *planes, int64_t count, int64_t y,
                               int64_t *next, float *work, const float **lines) {
    const opdi_conv *conv = &grouped->conv;
    const int64_t line = grouped->wide * OPDI_TILE_BLOCK, cg = conv->cg;
    *next = OPDI_MAX(*next, y * conv->sh);
    for (; *next < y * conv->sh + grouped->kept; ++*next) {
        for (int64_t c = 0; c < cg; c++) {
            opdi_tiles_line(planes + c * OPDI_TILE_BLOCK, count, conv->h, conv->w, *next - conv->ph, conv->pw,
                            grouped->wide, work + (*next % grouped->kept * cg + c) * line, OPDI_TILE_BLOCK);
        }
    }
    for (int64_t ki = 0; ki < conv->kh; ki++, lines += cg) {
        float *const row = work + (y * conv->sh + ki * conv->dh) % grouped->kept * cg * line;
        for (int64_t c = 0; c < cg; c++) { lines[c] = row + c * line; }
    }
}
/* Copies the taps of `count` result channels from weights [count, cg, kh, kw] to lines [kh, cg, kw, 16].  If `back` is
   true, copies from lines to weights instead. */
static void opdi_grouped_taps(const opdi_conv *conv, int64_t count, float *weights, float *lines, bool back) {
    const int64_t taps = conv->kh * conv->kw;
    if (conv->cg == 1) {
        const opdi_word32 *const from = (const opdi_word32 *)(const void *)(back ? lines : weights);
        if (back) { opdi_pack_transposed(from, OPDI_TILE_BLOCK, count, taps, taps, (opdi_word32 *)(void *)weights); }
        else { opdi_pack_transposed(from, taps, taps, count, OPDI_TILE_BLOCK, (opdi_word32 *)(void *)lines); }
        return;
    }
    for (int64_t lane = 0; lane < count; lane++) {
        for (int64_t c = 0; c < conv->cg; c++) {
            for (int64_t ki = 0; ki < conv->kh; ki++, weights += conv->kw) {
                float *const there = lines + (ki * conv->cg + c) * conv->kw * OPDI_TILE_BLOCK + lane;
                for (int64_t kj = 0; kj < conv->kw; kj++) {
                    if (back) { weights[kj] = there[kj * OPDI_TILE_BLOCK]; }
                    else { there[kj * OPDI_TILE_BLOCK] = weights[kj]; }
                }
            }
        }
    }
}
/* Prefetches part `part` of `parts` of `count` floats at `from`, which are needed soon.  Does nothing if the caches
   could not keep so many floats until then. */
static inline void opdi_grouped_ahead(const float *from, int64_t count, int64_t part, int64_t parts) {
    const uintptr_t at = (uintptr_t)from;
    for (int64_t i = count * part / parts / 16 * 16; count <= 16384 && i < count * (part + 1) / parts; i += 16) {
        OPDI_PREFETCH(at + (uintptr_t)i * sizeof(float));
    }
}
/* A range function: computes results.  An item is a block of channels of an image. */
static void opdi_grouped_range(void *ctx, int64_t begin, int64_t end) {
    opdi_grouped *grouped = (opdi_grouped *)ctx;
    const opdi_conv *conv = &grouped->conv;
    const int64_t blocks = (conv->oc - 1) / OPDI_TILE_BLOCK + 1, area = conv->oh * conv->ow;
    const size_t floats = (size_t)opdi_grouped_scratch_size(grouped),
        pointers = (size_t)grouped->each.kh * sizeof(float *);
    const size_t bytes = floats * sizeof(float) + pointers;
    float *const work = (float *)(void *)opdi_scratch_alloc(bytes);
    if (!work) {
        OPDI_STORE(&grouped->failed, 1);
        return;
    }
    const float **const lines = (const float **)(void *)(work + floats);
    float *const out = work + opdi_grouped_kept(grouped, conv->cg),
        *const weights = out + (conv->ow + 8) * OPDI_TILE_BLOCK;
    float *const bias = weights + grouped->each.kh * conv->kw * OPDI_TILE_BLOCK;
    memset(work, 0, bytes);
    for (int64_t item = begin; item < end; item++) {
        const int64_t o = item % blocks * OPDI_TILE_BLOCK, count = OPDI_MIN(OPDI_TILE_BLOCK, conv->oc - o);
        float *const y = grouped->y + (item / blocks * conv->oc + o) * area;
        const float *planes[OPDI_GROUPED_MAX_CHANNELS * OPDI_TILE_BLOCK];
        int64_t next = 0;
        opdi_grouped_planes(grouped->x + item / blocks * conv->c * conv->h * conv->w, conv->h * conv->w, o, count,
                            conv->og, conv->cg, planes);
        opdi_grouped_taps(conv, count, (float *)(uintptr_t)(grouped->weight + o * conv->cg * conv->kh * conv->kw),
                          weights, false);
        for (int64_t lane = 0; grouped->bias && lane < count; lane++) { bias[lane] = grouped->bias[o + lane]; }
        const int64_t soon = item + 1 < end ? count * conv->cg / conv->og * conv->h * conv->w : 0;
        for (int64_t i = 0; i < conv->oh; i++) {
            opdi_grouped_lines(grouped, planes, count, i, &next, work, lines);
            opdi_grouped_ahead(planes[0] + soon, soon, i, conv->oh);
            opdi_grouped_ahead(y, count * area, i, conv->oh);
            grouped->line(&grouped->each, lines, weights, bias, conv->ow, out);
            opdi_tiles_put(out, OPDI_TILE_BLOCK, count, conv->ow, y + i * conv->ow, area);
        }
    }
    opdi_scratch_free((char *)work, bytes);
}
/* A range function: computes gradients of weights.  An item is a block of result channels. */
static void opdi_grouped_gw_range(void *ctx, int64_t begin, int64_t end) {
    opdi_grouped *grouped = (opdi_grouped *)ctx;
    const opdi_conv *conv = &grouped->conv;
    const int64_t taps = grouped->each.kh * conv->kw, area = conv->oh * conv->ow;
    const size_t floats = (size_t)opdi_grouped_scratch_size(grouped),
        pointers = (size_t)grouped->each.kh * sizeof(float *);
    const size_t bytes = floats * sizeof(float) + pointers;
    const float *planes[(OPDI_GROUPED_MAX_CHANNELS + 1) * OPDI_TILE_BLOCK],
        **const grads = planes + conv->cg * OPDI_TILE_BLOCK;
    float *const work = (float *)(void *)opdi_scratch_alloc(bytes);
    if (!work) {
        OPDI_STORE(&grouped->failed, 1);
        return;
    }
    const float **const lines = (const float **)(void *)(work + floats);
    float *const grad = work + opdi_grouped_kept(grouped, conv->cg),
        *const sums = grad + (conv->ow + 8) * OPDI_TILE_BLOCK;
    memset(work, 0, bytes);
    for (int64_t item = begin; item < end; item++) {
        const int64_t o = item * OPDI_TILE_BLOCK, count = OPDI_MIN(OPDI_TILE_BLOCK, conv->oc - o);
        memset(sums, 0, (size_t)(taps * OPDI_TILE_BLOCK) * sizeof(float));
        for (int64_t batch = 0; batch < conv->n; batch++) {
            int64_t next = 0;
            opdi_grouped_planes(grouped->x + batch * conv->c * conv->h * conv->w, conv->h * conv->w, o, count, conv->og,
                                conv->cg, planes);
            opdi_grouped_planes(grouped->gy + batch * conv->oc * area, area, o, count, 1, 1, grads);
            for (int64_t i = 0; i < conv->oh; i++) {
                opdi_grouped_lines(grouped, planes, count, i, &next, work, lines);
                opdi_tiles_line(grads, count, conv->oh, conv->ow, i, 0, conv->ow, grad, OPDI_TILE_BLOCK);
                if (batch + 1 < conv->n) {        /* the next image */
                    opdi_grouped_ahead(planes[0] + conv->c * conv->h * conv->w,
                                       count * conv->cg / conv->og * conv->h * conv->w, i, conv->oh);
                    opdi_grouped_ahead(grads[0] + conv->oc * area, count * area, i, conv->oh);
                }
                grouped->sum(&grouped->each, lines, grad, conv->ow, sums);
            }
        }
        opdi_grouped_taps(conv, count, grouped->gw + o * conv->cg * conv->kh * conv->kw, sums, true);
    }
    opdi_scratch_free((char *)work, bytes);
}

//== groups with few channels: the gradient with respect to the input, for strides =====================================
//
//  All rows of gx whose indices have the same remainder modulo sh read the same taps, every sh-th row of taps.  The
//  same holds for columns and sw.  Lines are those of gy, [kept, og, wide, 16].

/* Copies to `to` [.., og, .., 16], in reversed order, the taps for the rows and columns of gx whose remainders are y
   and x.  Returns the end of the copy. */
static float *opdi_grouped_part(const opdi_grouped *grouped, int64_t channel, int64_t count, int64_t y, int64_t x,
                                float *to) {
    const opdi_conv *conv = &grouped->conv;
    const int64_t high = (conv->kh - 1 - y) / conv->sh + 1, wide = (conv->kw - 1 - x) / conv->sw + 1;
    for (int64_t i = 0; i < high * conv->og * wide; i++, to += OPDI_TILE_BLOCK) {
        const int64_t ki = y + (high - 1 - i / wide / conv->og) * conv->sh, kj = x + (wide - 1 - i % wide) * conv->sw;
        for (int64_t lane = 0; lane < count; lane++) {
            const int64_t c = channel + lane, o = c / conv->cg * conv->og + i / wide % conv->og;
            to[lane] = grouped->weight[((o * conv->cg + c % conv->cg) * conv->kh + ki) * conv->kw + kj];
        }
    }
    return to;
}
/* Computes line `y` of gx, to [w, 16].  `ring` has the kept lines of gy, `weights` the taps of all remainders; `out`
   is scratch memory for a line of results. */
static void opdi_grouped_grad_line(opdi_grouped *grouped, int64_t y, const float *ring, const float *weights,
                                   const float **lines, float *out, float *to) {
    const opdi_conv *conv = &grouped->conv;
    const int64_t og = conv->og, q = (y + conv->ph) / conv->sh, row = (y + conv->ph) % conv->sh;
    const int64_t high = row < conv->kh ? (conv->kh - 1 - row) / conv->sh + 1 : 0, before = (conv->kw - 1) / conv->sw;
    const float zeros[OPDI_TILE_BLOCK] = {0};
    opdi_conv each = grouped->each;
    each.kh = high * og;
    for (int64_t r = 0; r < OPDI_MIN(row, conv->kh); r++) {
        weights += ((conv->kh - 1 - r) / conv->sh + 1) * og * conv->kw * OPDI_TILE_BLOCK;
    }
    memset(to, 0, (size_t)(conv->w * OPDI_TILE_BLOCK) * sizeof(float));
    for (int64_t column = 0; high && column < OPDI_MIN(conv->sw, conv->kw); column++) {
        const int64_t first = ((column - conv->pw) % conv->sw + conv->sw) % conv->sw;
        const int64_t count = first < conv->w ? (conv->w - 1 - first) / conv->sw + 1 : 0;
        each.kw = (conv->kw - 1 - column) / conv->sw + 1;
        const int64_t from = (first + conv->pw) / conv->sw - (each.kw - 1) + before;
        for (int64_t i = 0; i < each.kh; i++) {
            const int64_t slot = (q - (high - 1) + i / og + grouped->kept) % grouped->kept * og + i % og;
            lines[i] = ring + (slot * grouped->wide + from) * OPDI_TILE_BLOCK;
        }
        if (count) { grouped->line(&each, lines, weights, zeros, count, out); }
        for (int64_t x = 0; x < count; x++) {
            memcpy(to + (first + x * conv->sw) * OPDI_TILE_BLOCK, out + x * OPDI_TILE_BLOCK, sizeof zeros);
        }
        weights += each.kh * each.kw * OPDI_TILE_BLOCK;
    }
}
/* Returns the number of floats of scratch memory that a thread needs for gx: the kept lines, a line of results, a
   line of gx, and the taps. */
static int64_t opdi_grouped_grad_scratch_size(const opdi_grouped *grouped) {
    const opdi_conv *conv = &grouped->conv;
    return opdi_grouped_kept(grouped, conv->og) + (2 * conv->w + 8 + conv->kh * conv->kw * conv->og) * OPDI_TILE_BLOCK;
}
/* A range function: computes gx.  An item is a block of channels of an image. */
static void opdi_grouped_grad_range(void *ctx, int64_t begin, int64_t end) {
    opdi_grouped *grouped = (opdi_grouped *)ctx;
    const opdi_conv *conv = &grouped->conv;
    const int64_t blocks = (conv->c - 1) / OPDI_TILE_BLOCK + 1, plane = conv->h * conv->w, og = conv->og;
    const size_t floats = (size_t)opdi_grouped_grad_scratch_size(grouped),
        pointers = (size_t)(conv->kh * og) * sizeof(float *);
    const size_t bytes = floats * sizeof(float) + pointers;
    const int64_t before = (conv->kw - 1) / conv->sw;
    const float *planes[OPDI_GROUPED_MAX_CHANNELS * OPDI_TILE_BLOCK];
    float *const work = (float *)(void *)opdi_scratch_alloc(bytes);
    if (!work) {
        OPDI_STORE(&grouped->failed, 1);
        return;
    }
    const float **const lines = (const float **)(void *)(work + floats);
    float *const out = work + opdi_grouped_kept(grouped, og), *const to = out + (conv->w + 8) * OPDI_TILE_BLOCK;
    float *const weights = to + conv->w * OPDI_TILE_BLOCK;
    memset(work, 0, bytes);
    for (int64_t item = begin; item < end; item++) {
        const int64_t c = item % blocks * OPDI_TILE_BLOCK, count = OPDI_MIN(OPDI_TILE_BLOCK, conv->c - c);
        opdi_grouped_planes(grouped->gy + item / blocks * conv->oc * conv->oh * conv->ow, conv->oh * conv->ow, c, count,
                            conv->cg, og, planes);
        int64_t next = conv->ph / conv->sh - grouped->kept + 1;
        float *part = weights;
        for (int64_t i = 0; i < OPDI_MIN(conv->sh, conv->kh); i++) {
            for (int64_t j = 0; j < OPDI_MIN(conv->sw, conv->kw); j++) {
                part = opdi_grouped_part(grouped, c, count, i, j, part);
            }
        }
        for (int64_t y = 0; y < conv->h; y++) {
            for (; next <= (y + conv->ph) / conv->sh; next++) {
                for (int64_t o = 0; o < og; o++) {
                    opdi_tiles_line(planes + o * OPDI_TILE_BLOCK, count, conv->oh, conv->ow, next, before,
                                    grouped->wide,
                                    work +
                                    ((next + grouped->kept) % grouped->kept * og +
                                     o) * grouped->wide * OPDI_TILE_BLOCK, OPDI_TILE_BLOCK);
                }
            }
            opdi_grouped_grad_line(grouped, y, work, weights, lines, out, to);
            opdi_tiles_put(to, OPDI_TILE_BLOCK, count, conv->w,
                           grouped->gx + (item / blocks * conv->c + c) * plane + y * conv->w, plane);
        }
    }
    opdi_scratch_free((char *)work, bytes);
}
/* Computes y = conv(x, weights) + bias.  Returns 0, or 1 if this method does not suit the convolution, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_grouped_forward(const opdi_conv *conv, const void *x, const void *weights, const void *bias,
                                       void *y) {
    opdi_grouped grouped;
    if (!opdi_grouped_fits(conv, &grouped)) { return 1; }
    grouped.x = (const float *)x;
    grouped.weight = (const float *)weights;
    grouped.bias = (const float *)bias;
    grouped.y = (float *)y;
    const size_t bytes = (size_t)opdi_grouped_scratch_size(&grouped) * sizeof(float) +
        (size_t)grouped.each.kh * sizeof(float *);
    opdi_parallel_for_scratch(conv->n * ((conv->oc - 1) / OPDI_TILE_BLOCK + 1), 1, opdi_grouped_range, &grouped,
                              OPDI_SCRATCH_BYTES(bytes));
    return opdi_conv_done(&grouped.failed);
}
/* Computes gx of a convolution with strides.  Returns 0, or 1 if this method does not suit the convolution, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_grouped_grad_input(const opdi_conv *conv, const void *gy, const void *weights, void *gx) {
    opdi_grouped grouped;
    if (conv->sh * conv->sw < 2 || conv->sh > 64 || conv->dh != 1 || conv->dw != 1 || conv->ph >= 1 << 10 ||
        conv->pw >= 1 << 10 || !opdi_grouped_fits(conv, &grouped)) { return 1; }
    grouped.gy = (const float *)gy;
    grouped.weight = (const float *)weights;
    grouped.gx = (float *)gx;
    grouped.each.sw = 1;
    grouped.kept = (conv->kh - 1) / conv->sh + 1;
    grouped.wide = (conv->kw - 1) / conv->sw + (conv->w - 1 + conv->pw) / conv->sw + 1;
    const size_t pointers = (size_t)(conv->kh * conv->og) * sizeof(float *);
    opdi_parallel_for_scratch(conv->n * ((conv->c - 1) / OPDI_TILE_BLOCK + 1), 1, opdi_grouped_grad_range, &grouped,
                              OPDI_SCRATCH_BYTES((size_t)opdi_grouped_grad_scratch_size(&grouped) * sizeof(float) +
                                                 pointers));
    return opdi_conv_done(&grouped.failed);
}
/* Computes gw from gy and x.  Returns 0, or 1 if this method does not suit the convolution, or -1 and sets an error. */
OPDI_INTERNAL int opdi_grouped_grad_weight(const opdi_conv *conv, const void *gy, const void *x, void *gw) {
    opdi_grouped grouped;
    if (!opdi_grouped_fits(conv, &grouped)) { return 1; }
    grouped.x = (const float *)x;
    grouped.gy = (const float *)gy;
    grouped.gw = (float *)gw;
    const size_t bytes = (size_t)opdi_grouped_scratch_size(&grouped) * sizeof(float) +
        (size_t)grouped.each.kh * sizeof(float *);
    opdi_parallel_for_scratch((conv->oc - 1) / OPDI_TILE_BLOCK + 1, 1, opdi_grouped_gw_range, &grouped,
                              OPDI_SCRATCH_BYTES(bytes));
    return opdi_conv_done(&grouped.failed);
}
OPDI_LOOPS_END
#endif
