#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:conv      convolution
//
//  All functions work on contiguous tensors of a dtype in which loops compute (not 16-bit floats).  The tensors have
//  one to three spatial dims.  Arrays such as in[3] always describe three dims; if the tensors have fewer, the first
//  elements describe dims of size 1.  A transposed convolution is the gradient of a convolution with respect to its
//  input.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL int64_t opdi_vol_area(const int64_t *sizes) { return sizes[0] * sizes[1] * sizes[2]; }

/* Copies one row of columns: the elements that one tap of the kernel reads along the innermost dim.  Outputs lo .. hi -
   1 read inside of x; the elements for all other outputs are zeros.  If `back` is true, adds the row to x instead. */
#define OPDI_UNFOLD_ROW(type)                                                                               \
    {                                                                                                       \
        const type *from = (const type *)(const void *)x + row; type *to = (type *)(void *)out;             \
        if (back) { type *add = (type *)(void *)x + row;                                                    \
            for (j = lo; j < hi; j++) { add[j * step] = (type)(add[j * step] + to[j]); } }                  \
        else {                                                                                              \
            for (j = 0; j < lo; j++) { to[j] = 0; }                                                         \
            for (; j < hi; j++) { to[j] = from[j * step]; }                                                 \
            for (; j < vol->out[2]; j++) { to[j] = 0; }                                                     \
        }                                                                                                   \
    }
/* Unfolds the image x [channels, in] to columns col [channels * kernel, out], whose rows are `ld` elements apart.
   If `back` is true, adds the columns to the image instead. */
OPDI_INTERNAL void opdi_vol_unfold(const opdi_vol *vol, int64_t channels, char *x, char *col, int64_t ld, bool back) {
    const int64_t size = (int64_t)opd_dtype_size((opd_scalar_type)vol->dtype), taps = opdi_vol_area(vol->kernel),
        step = vol->stride[2];
    int64_t j;
    for (int64_t turn = 0; turn < channels * taps; turn++) {
        const int64_t channel = turn / taps, k2 = turn % vol->kernel[2], k1 = turn / vol->kernel[2] % vol->kernel[1],
            k0 = turn % taps / (vol->kernel[2] * vol->kernel[1]);
        const int64_t first = k2 * vol->dilation[2] - vol->pad[2];  /* the element of x that output 0 reads */
        int64_t lo = first < 0 ? (-first + step - 1) / step : 0, hi = vol->in[2] - first <= 0 ? 0
            : (vol->in[2] - first - 1) / step + 1;
        hi = OPDI_MIN(hi, vol->out[2]);
        lo = OPDI_MIN(lo, vol->out[2]);
        if (hi < lo) { hi = lo; }
        for (int64_t i = 0; i < vol->out[0] * vol->out[1]; i++) {
            const int64_t left = i / vol->out[1] * vol->stride[0] + k0 * vol->dilation[0] - vol->pad[0],
                second = i % vol->out[1] * vol->stride[1] + k1 * vol->dilation[1] - vol->pad[1];
            const int64_t row = ((channel * vol->in[0] + left) * vol->in[1] + second) * vol->in[2] + first;
            char *out = col + (turn * ld + i * vol->out[2]) * size;
            if (left < 0 || left >= vol->in[0] || second < 0 || second >= vol->in[1]) {
                if (!back) { memset(out, 0, (size_t)(vol->out[2] * size)); }
            }
            else if (vol->dtype == OPD_FLOAT32) { OPDI_UNFOLD_ROW(float) }
            else if (vol->dtype == OPD_FLOAT64) { OPDI_UNFOLD_ROW(double) }
            else { OPDI_UNFOLD_ROW(int64_t) }
        }
    }
}
OPDI_COLD_BEGIN
/* Computes at [rows, count] = first * second + beta * at, where first * second is a product of matrices with inner
   dimension `element`.  lda, ldb and ldc are the distances between the rows of first, second and at.  If ta is true,
   first is stored transposed; if tb is true, second is.  Returns 0, or -1 if memory runs out. */
static int opdi_vol_gemm(const opdi_vol *vol, int64_t rows, int64_t count, int64_t element, const char *first,
                         int64_t lda, bool ta, const char *second, int64_t ldb, bool tb, double beta, char *at,
                         int64_t ldc) {
    opdi_products products;
    memset(&products, 0, sizeof products);
    products.a.data = (char *)(uintptr_t)first;
    products.a.bs = 0;
    products.a.rs = ta ? 1 : lda;
    products.a.cs = ta ? lda : 1;
    products.b.data = (char *)(uintptr_t)second;
    products.b.bs = 0;
    products.b.rs = tb ? 1 : ldb;
    products.b.cs = tb ? ldb : 1;
    products.c.data = at;
    products.c.bs = 0;
    products.c.rs = ldc;
    products.c.cs = 1;
    products.dtype = products.from = vol->dtype;
    products.m = rows;
    products.n = count;
    products.k = element;
    return opdi_product_at(&products, 0, beta);
}
/* Returns 1 and fills in *conv if the routines for two dims (opdi_conv) can compute this convolution; else returns
   0. */
static int opdi_vol_flat(const opdi_vol *vol, opdi_conv *conv) {
    if (vol->dtype == OPD_INT64 || vol->in[0] != 1 || vol->kernel[0] != 1 || vol->out[0] != 1 || vol->pad[0] != 0) {
        return 0;
    }
    memset(conv, 0, sizeof *conv);
    conv->size = vol->dtype == OPD_FLOAT32 ? 4 : 8;
    conv->exact = vol->exact;
    conv->n = vol->n;
    conv->c = vol->c;
    conv->oc = vol->oc;
    conv->groups = vol->groups;
    conv->h = vol->in[1];
    conv->w = vol->in[2];
    conv->kh = vol->kernel[1];
    conv->kw = vol->kernel[2];
    conv->sh = vol->stride[1];
    conv->sw = vol->stride[2];
    conv->ph = vol->pad[1];
    conv->pw = vol->pad[2];
    conv->dh = vol->dilation[1];
    conv->dw = vol->dilation[2];
    int mark = opd_error_mark();
    int fits = opdi_conv_init(conv) == 0 && conv->oh == vol->out[1] && conv->ow == vol->out[2];
    (void)opd_error_rewind(mark);
    return fits;
}
//== convolutions that read the image in place =========================================================================
//
//  Row i of the padded image belongs to row phase i % sh, and column j to column phase j % sw.  Each channel has one
//  plane for each pair of phases, with every sh-th row and every sw-th column.  In a plane, the images of a chunk of
//  the batch lie one after another.  Neighbouring rows, and neighbouring images, share the zeros between them: rows
//  are `wide` elements apart, and an image takes `high` rows.
//
//  Each row of the unfolded matrix of the whole chunk then consists of the elements of one plane from some offset on,
//  so the matrix product reads the planes themselves.  Output (n, y, x) is column (n * high + y) * wide + x.  The
//  results in all other columns are not used.

typedef struct opdi_shift {
    opdi_conv conv;
    int64_t row_phases, phases;                   /* phases that taps read: of rows, and of columns */
    int64_t rows, columns, wide, high;            /* rows, columns: size of the part of a plane that one image reads */
    int64_t plane, channel, chunk, cols;          /* plane, channel: elements from one plane, or channel, to the next;
                                                     chunk: images; cols: columns of the product */
    const char *input, *weight, *bias, *gy;
    char *output, *gw;                            /* gw [parts, groups, kp, ldg] */
    int64_t *at;                                  /* the rows of the unfolded matrix: their offsets in the planes */
    int64_t parts, kp, ldg;
    opdi_micro mk;
    opdi_dots_fn *dots;                           /* computes gw if there are few output channels; else NULL */
    int64_t lines;                            /* number of output channels for which `dots` computes sums */
    int32_t failed;
} opdi_shift;

/* Returns the number of elements after which rows, or images, of `size` elements can repeat.  The first `pad` elements,
   which are zeros, may be the last elements of the row before.  Each output reads `reach` elements after its first.
   *read is the number of elements that the outputs read; each is every `step`-th element of the padded row. */
static int64_t opdi_shift_period(int64_t size, int64_t out, int64_t pad, int64_t step, int64_t reach, int64_t *read) {
    *read = out + reach / step;
    return OPDI_MAX(OPDI_MAX(OPDI_MIN((size - 1 + pad) / step + 1, *read), *read - pad / step), out);
}
static bool opdi_shift_fits(const opdi_conv *conv, opdi_shift *shift, int64_t per_image) {
    const int64_t reach = (conv->kh - 1) * conv->dh, across = (conv->kw - 1) * conv->dw;
    memset(shift, 0, sizeof *shift);
    if ((double)conv->hp * (double)conv->wp * (double)conv->c > 1e9) { return false; }
    shift->conv = *conv;
    shift->high = opdi_shift_period(conv->h, conv->oh, conv->ph, conv->sh, reach, &shift->rows);
    shift->wide = opdi_shift_period(conv->w, conv->ow, conv->pw, conv->sw, across, &shift->columns);
    shift->row_phases = OPDI_MIN(conv->sh, reach + 1);
    shift->phases = OPDI_MIN(conv->sw, across + 1);
    const int64_t all = shift->wide * shift->high, used = conv->oh * conv->ow;
    const int64_t phases = shift->row_phases * shift->phases;
    if ((conv->kh * conv->kw == 1 && conv->sh == 1 && conv->sw == 1 && all > 128) || used * 2 < all || phases > 1024 ||
        conv->cg * conv->kh * conv->kw < 8 || conv->og < 4) { return false; }
    shift->chunk = OPDI_MAX(65536 / OPDI_MAX((int64_t)1, all * per_image), 512 / OPDI_MAX((int64_t)1, all));
    shift->chunk = OPDI_MAX((int64_t)1, OPDI_MIN(conv->n, shift->chunk));
    shift->cols = shift->chunk * all;
    /* for floats, an odd number of cache lines: planes that are 4 KiB apart compete for the same lines */
    shift->plane = opdi_round_up(shift->cols + reach / conv->sh * shift->wide + across / conv->sw, 32) + 16;
    shift->channel = shift->plane * phases;
    return true;
}
OPDI_COLD_END
/* Returns the number of bytes of the planes of a group. */
static int64_t opdi_shift_bytes(const opdi_shift *shift) {
    return opdi_round_up((shift->conv.cg * shift->channel + OPDI_CONV_SLACK) * (int64_t)shift->conv.size, 64);
}
/* Allocates shift->at and fills it in.  Returns 0, or -1 if memory runs out. */
static int opdi_shift_offsets(opdi_shift *shift) {
    const opdi_conv *conv = &shift->conv;
    const int64_t taps = conv->kh * conv->kw, depth = conv->cg * taps;
    shift->at = (int64_t *)(void *)opdi_scratch_alloc((size_t)depth * sizeof(int64_t));
    if (!shift->at) { return -1; }
    for (int64_t tap = 0; tap < taps; tap++) {
        const int64_t y = tap / conv->kw * conv->dh, x = tap % conv->kw * conv->dw;
        shift->at[tap] = (y % conv->sh * shift->phases + x % conv->sw) * shift->plane + y / conv->sh * shift->wide +
            x / conv->sw;
    }
    for (int64_t i = taps; i < depth; i++) { shift->at[i] = shift->at[i - taps] + shift->channel; }
    return 0;
}
static void opdi_shift_free(opdi_shift *shift) {
    opdi_scratch_free((char *)shift->at, (size_t)(shift->conv.cg * shift->conv.kh * shift->conv.kw) * sizeof(int64_t));
}
/* What opdi_shift_pack reads: padded planes, as `pad`. */
typedef struct opdi_shift_source { const opdi_shift *shift; const char *pad; } opdi_shift_source;
static void opdi_shift_pack(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t nc, int64_t ld, void *out) {
    const opdi_shift_source *const source = (const opdi_shift_source *)ctx;
    const opdi_shift *const shift = source->shift;
    const int64_t size = (int64_t)shift->conv.size;
    for (int64_t step = 0; step < kc; step++) {
        const char *at = source->pad + (shift->at[k0 + step] + j0) * size;
        char *to = (char *)out + step * ld * size;
        if (ld * size == 128) { memcpy(to, at, 128); } else { memcpy(to, at, (size_t)(nc * size)); }
    }
}
/* Copies `bytes` bytes, a multiple of 4, in steps of constant size, so that the compiler emits single moves. */
static inline void opdi_shift_line(char *to, const char *from, int64_t bytes) {
    int64_t i = 0;
    for (; i + 16 <= bytes; i += 16) { memcpy(to + i, from + i, 16); }
    for (; i < bytes; i += 4) { memcpy(to + i, from + i, 4); }
}
/* Copies elements 0, 2, 4 and so on of the `count` floats `from` to `even`, and the elements between them to `odd`. */
static inline void opdi_shift_split(const float *from, int64_t count, float *even, float *odd) {
    int64_t x = 0;
#if defined(OPDI_X86) || defined(OPDI_NEON)
#if !defined(__clang__)
    const opdi_v4i mix_0246 = {0, 2, 4, 6}, mix_1357 = {1, 3, 5, 7};
#endif
    for (; x + 2 <= count && count >= 8; x += 8) {
        x = OPDI_MIN(x, (count - 8) / 2 * 2);     /* the last eight overlap the eight before */
        const opdi_v4f first = *(const opdi_v4f *)(const void *)(from + x);
        const opdi_v4f second = *(const opdi_v4f *)(const void *)(from + x + 4);
        *(opdi_v4f *)(void *)(even + x / 2) = OPDI_MIX4(first, second, 0, 2, 4, 6);
        *(opdi_v4f *)(void *)(odd + x / 2) = OPDI_MIX4(first, second, 1, 3, 5, 7);
    }
#endif
    for (; x < count; x++) { (x % 2 ? odd : even)[x / 2] = from[x]; }
}
/* Copies a row of the image to the row at `to` of each plane of its row phase.  Columns that no output reads are left
   out. */
static void opdi_shift_row(const opdi_shift *shift, const char *x, char *to) {
    const opdi_conv *conv = &shift->conv;
    const int64_t size = (int64_t)conv->size, sw = conv->sw;
    const int64_t w = OPDI_MIN(conv->w, shift->columns * sw - conv->pw);
    if (sw == 1) {
        if (w > 0) { opdi_shift_line(to + conv->pw * size, x, w * size); }
        return;
    }
    if (sw == 2 && size == 4 && shift->phases == 2 && w > 0) {
        float *const even = (float *)(void *)(to + conv->pw % 2 * shift->plane * size) + conv->pw / 2;
        float *const odd = (float *)(void *)(to + (conv->pw + 1) % 2 * shift->plane * size) + (conv->pw + 1) / 2;
        opdi_shift_split((const float *)(const void *)x, w, even, odd);
        return;
    }
    for (int64_t phase = 0; phase < shift->phases; phase++, to += shift->plane * size) {
        int64_t column = (conv->pw - phase + sw - 1) / sw;            /* the first column of the plane in the image */
        for (int64_t j = column * sw + phase - conv->pw; j < w; j += sw, column++) {
            if (size == 4) { ((opdi_word32 *)(void *)to)[column] = ((const opdi_word32 *)(const void *)x)[j]; }
            else { ((opdi_word64 *)(void *)to)[column] = ((const opdi_word64 *)(const void *)x)[j]; }
        }
    }
}
/* Images first .. first + count - 1 of a batch, in one group: `pad` has their planes.  For the gradient of the weight,
   `grad` has gy, and gw is the result of this part of the batch; a block of the result has `block` taps. */
typedef struct opdi_shift_task {
    const opdi_shift *shift;
    int64_t group, first, count, block;
    char *pad, *grad, *gw;
    int add;
} opdi_shift_task;
/* Copies the channels of ctx, an opdi_shift_task, to the planes.  An item of [begin, end) is a channel of an image. */
static void opdi_shift_fill_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_shift_task *task = (const opdi_shift_task *)ctx;
    const opdi_shift *shift = task->shift;
    const opdi_conv *conv = &shift->conv;
    const int64_t size = (int64_t)conv->size, line = conv->w * size;
    for (int64_t item = begin; item < end; item++) {
        const int64_t batch = item / conv->cg, channel = task->group * conv->cg + item % conv->cg;
        const char *x = shift->input + ((task->first + batch) * conv->c + channel) * conv->h * line;
        char *const to = task->pad + (item % conv->cg * shift->channel + batch * shift->high * shift->wide) * size;
        int64_t phase = conv->ph % conv->sh, row = conv->ph / conv->sh;
        for (int64_t i = 0; i < conv->h && row < shift->rows; i++, x += line) {
            if (phase < shift->row_phases) {
                opdi_shift_row(shift, x, to + (phase * shift->phases * shift->plane + row * shift->wide) * size);
            }
            if (++phase == conv->sh) {
                phase = 0;
                row++;
            }
        }
    }
}
/* Copies the images of a task into its planes. */
static void opdi_shift_fill(opdi_shift_task *task) {
    const opdi_conv *conv = &task->shift->conv;
    opdi_parallel_for(task->count * conv->cg, 65536 / (conv->h * conv->w) + 1, opdi_shift_fill_range, task);
}
/* Returns how many rows of a chunk of images are multiplied together.  Their results stay in the cache until they are
   stored: they have at most 512 KiB, but at least 1,024 columns.  Whole tiles have 16 columns, or 32. */
static int64_t opdi_shift_together(const opdi_shift *shift) {
    const int64_t columns = OPDI_MAX(1024, ((int64_t)512 << 10) / (shift->conv.og * (int64_t)shift->conv.size));
    return OPDI_MIN(opdi_round_up((columns - 1) / shift->wide + 1, 32), shift->chunk * shift->high);
}
/* Writes to y rows line .. line + lines - 1 of a chunk of images that begins with image `first`, from the columns `col`
   of the product, and adds the bias.  Skips the unused rows and columns. */
static void opdi_shift_store(const opdi_shift *shift, int64_t group, int64_t first, int64_t line, int64_t lines,
                             const char *col) {
    const opdi_conv *conv = &shift->conv;
    const int64_t size = (int64_t)conv->size;
    int64_t j;
    for (int64_t o = 0; o < conv->og; o++) {
        /* zeros keep their signs if -0 is added */
        const double add = shift->bias ? opdi_number_at(conv->size, shift->bias, group * conv->og + o) : -0.0;
        for (int64_t i = line; i < line + lines; i++, col += shift->wide * size) {
            const int64_t plane = (first + i / shift->high) * conv->oc + group * conv->og + o, row = i % shift->high;
            const void *const from = col;
            void *const to = shift->output + (plane * conv->oh + row) * conv->ow * size;
            if (row >= conv->oh) { continue; }
            if (size == 4) {
                const float *at = (const float *)from, f = (float)add;
                float *there = (float *)to;
                for (j = 0; j + 16 <= conv->ow; j += 16) {
                    OPDI_IVDEP
                    for (int lane = 0; lane < 16; lane++) { there[j + lane] = at[j + lane] + f; }
                }
                for (; j < conv->ow; j++) { there[j] = at[j] + f; }
            } else {
                const double *at = (const double *)from;
                double *there = (double *)to;
                for (j = 0; j < conv->ow; j++) { there[j] = at[j] + add; }
            }
        }
    }
}
OPDI_COLD_BEGIN
/* Computes the convolution for items [begin, end) of the opdi_shift ctx.  An item is one chunk of the batch in one
   group. */
static void opdi_shift_forward_range(void *ctx, int64_t begin, int64_t end) {
    opdi_shift *shift = (opdi_shift *)ctx;
    const opdi_conv *conv = &shift->conv;
    const int64_t size = (int64_t)conv->size, depth = conv->cg * conv->kh * conv->kw,
        pads = opdi_shift_bytes(shift), together = opdi_shift_together(shift),
        all = pads + conv->og * together * shift->wide * size;
    const int dtype = size == 4 ? OPD_FLOAT32 : OPD_FLOAT64;
    char *pad = opdi_scratch_alloc((size_t)all);
    if (!pad) {
        OPDI_STORE(&shift->failed, 1);
        return;
    }
    char *col = pad + pads;
    memset(pad, 0, (size_t)pads);
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i % conv->groups, first = i / conv->groups * shift->chunk,
            count = OPDI_MIN(shift->chunk, conv->n - first);
        opdi_gemm_in other = opdi_gemm_in_of(shift->weight + group * conv->og * depth * size, dtype, depth, 1),
            side = opdi_gemm_in_of(NULL, dtype, 0, 0);
        opdi_shift_source source = {shift, pad};
        other.exact = side.exact = conv->exact;
        side.pack = opdi_shift_pack;
        side.ctx = &source;
        side.at = shift->at;
        opdi_shift_task task = {shift, group, first, count, 0, pad, NULL, NULL, 0};
        opdi_shift_fill(&task);
        for (int64_t line = 0, lines; line < count * shift->high; line += lines) {
            lines = OPDI_MIN(together, count * shift->high - line);
            side.data = source.pad = pad + line * shift->wide * size;
            if (opdi_gemm(conv->size, conv->og, lines * shift->wide, depth, &other, &side, 0, col, lines * shift->wide,
                          1) != 0) {
                OPDI_STORE(&shift->failed, 1);
                break;
            }
            opdi_shift_store(shift, group, first, line, lines, col);
        }
    }
    opdi_scratch_free(pad, (size_t)all);
}
static int opdi_shift_forward(opdi_shift *shift, const void *x, const void *weights, const void *bias, void *y) {
    shift->input = (const char *)x;
    shift->weight = (const char *)weights;
    shift->bias = (const char *)bias;
    shift->output = (char *)y;
    const opdi_conv *const conv = &shift->conv;
    const int64_t columns = opdi_shift_together(shift) * shift->wide;
    const int64_t all = opdi_shift_bytes(shift) + conv->og * columns * (int64_t)conv->size;
    if (opdi_shift_offsets(shift)) { return -1; }
    opdi_parallel_for_scratch((conv->n + shift->chunk - 1) / shift->chunk * conv->groups, 1, opdi_shift_forward_range,
                              shift, OPDI_SCRATCH_BYTES((size_t)all) +
                           opdi_gemm_scratch_size(conv->size, conv->og, columns, conv->cg * conv->kh * conv->kw));
    opdi_shift_free(shift);
    return shift->failed ? opdi_buffer_fail() : 0;
}
/* Returns whether reading the images in place takes less time than unfolding them.  Products are computed for 16
   columns at a time.  Unfolding a column takes about as long as its products with 20 output channels, or with 30 if
   there are strides. */
static bool opdi_shift_pays(const opdi_shift *shift) {
    const opdi_conv *conv = &shift->conv;
    const int64_t all = opdi_round_up(conv->n * shift->high * shift->wide, 16);
    const int64_t used = opdi_round_up(conv->n * conv->oh * conv->ow, 16);
    const int64_t unfolding = conv->sh == 1 && conv->sw == 1 ? 20 : 30;
    return (double)all * (double)conv->og <= (double)used * (double)(conv->og + unfolding);
}
OPDI_INTERNAL int opdi_conv_any(const opdi_conv *conv, const void *x, const void *weights, const void *bias, void *y) {
    opdi_shift shift;
    int rc = opdi_tiles_forward(conv, x, weights, bias, y);
    if (rc == 2) {
        const int64_t from = conv->c * conv->h * conv->w, to = conv->oc * conv->oh * conv->ow;
        opdi_conv one = *conv;
        one.n = 1;
        for (int64_t i = 0; i < conv->n; i++) {   /* only floats have tiles */
            if (opdi_conv_any(&one, (const float *)x + i * from, weights, bias, (float *)y + i * to)) { return -1; }
        }
        return 0;
    }
    if (rc > 0) { rc = opdi_pixels_forward(conv, x, weights, bias, y); }
    if (rc > 0) { rc = opdi_grouped_forward(conv, x, weights, bias, y); }
    if (rc <= 0) { return rc; }
    if (opdi_shift_fits(conv, &shift, conv->cg + conv->og) && opdi_shift_pays(&shift)) {
        return opdi_shift_forward(&shift, x, weights, bias, y);
    }
    return opdi_conv_forward(conv, x, weights, bias, y);
}
/* Computes gx, the gradient of x, as a convolution of gy with the flipped weights.  Returns 0, 1 if this method does
   not suit the convolution, or -1 and sets an error. */
static int opdi_shift_grad_input(const opdi_conv *conv, const void *gy, const void *weights, void *gx) {
    const int64_t bytes = conv->oc * conv->cg * conv->kh * conv->kw * (int64_t)conv->size;
    opdi_conv other = *conv;
    opdi_shift shift;
    other.ph = conv->dh * (conv->kh - 1) - conv->ph;
    other.pw = conv->dw * (conv->kw - 1) - conv->pw;
    other.c = conv->oc;
    other.h = conv->oh;
    other.w = conv->ow;
    other.oc = conv->c;
    if (conv->sh != 1 || conv->sw != 1 || other.ph < 0 || other.pw < 0 || opdi_conv_init(&other) != 0 ||
        !opdi_shift_fits(&other, &shift, other.cg + other.og)) {
        return 1;
    }
    char *turned = opdi_scratch_alloc((size_t)bytes);
    if (!turned) { return -1; }
    opdi_conv_flip(conv, (const char *)weights, turned);
    int rc = opdi_shift_forward(&shift, gy, turned, NULL, gx);
    opdi_scratch_free(turned, (size_t)bytes);
    return rc;
}
OPDI_COLD_END
/* Transposes gy of images first .. first + count - 1 to panels out [ldg / nr, cols, nr]: each row has nr channels of
   one output column.  Does not write the rows of unused columns, which the caller has set to zeros. */
static void opdi_shift_transpose(const opdi_shift *shift, int64_t group, int64_t first, int64_t count, char *out) {
    const opdi_conv *conv = &shift->conv;
    const int64_t area = conv->oh * conv->ow, nr = shift->mk.nr, lines = (conv->og - 1) / 4 + 1;
    for (int64_t item = 0; item < count * lines * conv->oh; item++) {
        const int64_t i = item % conv->oh, o = item / conv->oh % lines * 4, batch = item / conv->oh / lines;
        const int64_t channels = OPDI_MIN((int64_t)4, conv->og - o), column = (batch * shift->high + i) * shift->wide;
        const int64_t at = ((first + batch) * conv->oc + group * conv->og + o) * area + i * conv->ow;
        const int64_t to = (o / nr * shift->cols + column) * nr + o % nr;
        if (conv->size == 4) {
            const float *from = (const float *)(const void *)shift->gy + at, *p1 = from + (channels > 1 ? area : 0);
            const float *p2 = from + (channels > 2 ? 2 * area : 0), *p3 = from + (channels > 3 ? 3 * area : 0);
            float *there = (float *)(void *)out + to;
            /* Always writes 4 channels, even if fewer are left: nr is a multiple of 4, and the elements of a row after
               the first og are not used. */
            int64_t j = 0;
            for (; j + 4 <= conv->ow; j += 4) {
                opdi_transpose4(from + j, p1 + j, p2 + j, p3 + j, there + j * nr, nr);
            }
            for (; j < conv->ow; j++) {
                there[j * nr] = from[j];
                there[j * nr + 1] = p1[j];
                there[j * nr + 2] = p2[j];
                there[j * nr + 3] = p3[j];
            }
        } else {
            const double *from = (const double *)(const void *)shift->gy + at;
            double *there = (double *)(void *)out + to;
            for (int64_t j = 0; j < conv->ow; j++) {
                for (int64_t lane = 0; lane < channels; lane++) { there[j * nr + lane] = from[lane * area + j]; }
            }
        }
    }
}
/* Copies gy of images first .. first + count - 1 to rows out [og, cols rounded up].  Does not write unused columns,
   which the caller has set to zeros, except those after the last image, up to a multiple of 16: they may hold an image
   of the chunk before, which had more images. */
static void opdi_shift_spread(const opdi_shift *shift, int64_t group, int64_t first, int64_t count, char *out) {
    const opdi_conv *conv = &shift->conv;
    const int64_t line = conv->ow * (int64_t)conv->size, cols = opdi_round_up(shift->cols, 16);
    const int64_t used = count * shift->high * shift->wide, after = opdi_round_up(used, 16) - used;
    for (int64_t o = 0; o < conv->og; o++) {
        memset(out + (o * cols + used) * (int64_t)conv->size, 0, (size_t)after * conv->size);
    }
    for (int64_t item = 0; item < count * conv->og; item++) {
        const int64_t o = item % conv->og, batch = item / conv->og;
        const char *from = shift->gy + ((first + batch) * conv->oc + group * conv->og + o) * conv->oh * line;
        char *to = out + (o * cols + batch * shift->high * shift->wide) * (int64_t)conv->size;
        for (int64_t i = 0; i < conv->oh; i++, from += line, to += shift->wide * (int64_t)conv->size) {
            opdi_shift_line(to, from, line);
        }
    }
}
/* Adds (if `add` is 0: writes) the sums over columns j .. j + count - 1 to taps [from, end) of gw, like
   opdi_shift_gw_tiles, from rows of gy that opdi_shift_spread wrote.  Computes dot products of shift->lines rows of gy
   and four rows of the unfolded matrix. */
static void opdi_shift_gw_dots(const opdi_shift_task *task, int64_t from, int64_t end, int64_t j, int64_t count,
                               int add) {
    const opdi_shift *shift = task->shift;
    const opdi_conv *conv = &shift->conv;
    const int64_t size = (int64_t)conv->size, depth = conv->cg * conv->kh * conv->kw, high = shift->lines;
    const int64_t cols = opdi_round_up(shift->cols, 16);
    for (int64_t turn = from; turn < end; turn += 4) {
        for (int64_t o = 0; o < conv->og; o += high) {
            const void *few[4], *many[4];
            double sums[16];                      /* or 16 floats */
            for (int64_t k = 0; k < 4; k++) {     /* surplus rows repeat the last row */
                few[k] = task->grad + (OPDI_MIN(o + k, conv->og - 1) * cols + j) * size;
                many[k] = task->pad + (shift->at[OPDI_MIN(turn + k, depth - 1)] + j) * size;
            }
            shift->dots(count, few, many, sums);
            for (int64_t k = 0; k < 4 * high; k++) {
                const int64_t to = (turn + k % 4) * shift->ldg + o + k / 4;
                double *const d = (double *)(void *)task->gw + to;
                float *const f = (float *)(void *)task->gw + to;
                const float sum = ((const float *)(const void *)sums)[k];
                if (size == 4) { *f = add ? *f + sum : sum; }
                else { *d = add ? *d + sums[k] : sums[k]; }
            }
        }
    }
}
/* Adds (if `add` is 0: writes) to taps [from, end) of gw [taps, ldg] the sums over columns j .. j + count - 1:
   gw[turn, o] += sum of row `turn` of the unfolded matrix times gy[o], whose panels opdi_shift_transpose wrote.  The
   micro-kernel reads the planes as its rows. */
static void opdi_shift_gw_tiles(const opdi_shift_task *task, int64_t from, int64_t end, int64_t j, int64_t count,
                                int add) {
    const opdi_shift *shift = task->shift;
    const opdi_conv *conv = &shift->conv;
    const opdi_micro *mk = &shift->mk;
    const int64_t size = (int64_t)conv->size, depth = conv->cg * conv->kh * conv->kw;
    for (int64_t o = 0; o < shift->ldg; o += mk->nr) {
        for (int64_t turn = from; turn < end; turn += mk->mr) {
            const void *rows[OPDI_MAX_MR];
            for (int64_t row = 0; row < mk->mr; row++) {
                rows[row] = task->pad + (shift->at[OPDI_MIN(turn + row, depth - 1)] + j) * size;
            }
            mk->run(count, rows, 1, task->grad + (o * shift->cols + j * mk->nr) * size, mk->nr,
                    task->gw + (turn * shift->ldg + o) * size, shift->ldg, add);
        }
    }
}
/* Adds (if task->add is 0: writes) to blocks [begin, end) of gw the sums over all columns of ctx, an opdi_shift_task.
   The order of the terms of a sum does not depend on the blocks. */
static void opdi_shift_gw_blocks(void *ctx, int64_t begin, int64_t end) {
    const opdi_shift_task *task = (const opdi_shift_task *)ctx;
    const opdi_shift *shift = task->shift;
    const int64_t cols = task->count * shift->high * shift->wide, step = shift->dots ? 2048 : 256;
    const int64_t from = begin * task->block;
    const int64_t to = OPDI_MIN(end * task->block, shift->conv.cg * shift->conv.kh * shift->conv.kw);
    for (int64_t j = 0; j < cols; j += step) {
        const int64_t left = OPDI_MIN(step, cols - j);
        const int add = task->add || j > 0;
        if (shift->dots) { opdi_shift_gw_dots(task, from, to, j, opdi_round_up(left, 16), add); }
        else { opdi_shift_gw_tiles(task, from, to, j, left, add); }
    }
}
/* Computes the weight's gradient, transposed.  An item of [begin, end) is one part of the batch in one group.  Outside
   of jobs, the threads divide the taps of an item among them. */
static void opdi_shift_gw_range(void *ctx, int64_t begin, int64_t end) {
    opdi_shift *shift = (opdi_shift *)ctx;
    const opdi_conv *conv = &shift->conv;
    const int64_t size = (int64_t)conv->size, pads = opdi_shift_bytes(shift), depth = conv->cg * conv->kh * conv->kw;
    const int64_t all = pads + opdi_round_up(shift->cols, 16) * shift->ldg * size;
    const double work = (double)shift->cols * (double)depth * (double)shift->ldg;
    opdi_shift_task task = {shift, 0, 0, 0, 0, (char *)opdi_alloc((size_t)all), NULL, NULL, 0};
    if (!task.pad) {
        OPDI_STORE(&shift->failed, 1);
        return;
    }
    task.grad = task.pad + pads;
    task.block = opdi_round_up(work < 1e6 ? depth : depth / (4 * (int64_t)opd_threads()) + 1,
                               shift->dots ? 4 : shift->mk.mr);
    memset(task.pad, 0, (size_t)all);
    for (int64_t item = begin; item < end; item++) {
        const int64_t part = item / conv->groups, last = conv->n * (part + 1) / shift->parts;
        task.group = item % conv->groups;
        task.gw = shift->gw + item * shift->kp * shift->ldg * size;
        task.add = 0;
        for (task.first = conv->n * part / shift->parts; task.first < last; task.first += shift->chunk) {
            task.count = OPDI_MIN(shift->chunk, last - task.first);
            opdi_shift_fill(&task);
            if (shift->dots) { opdi_shift_spread(shift, task.group, task.first, task.count, task.grad); }
            else { opdi_shift_transpose(shift, task.group, task.first, task.count, task.grad); }
            opdi_parallel_for((depth - 1) / task.block + 1, 1, opdi_shift_gw_blocks, &task);
            task.add = 1;
        }
    }
    opdi_free(task.pad, (size_t)all);
}
/* Sums the parts of shift->gw, and writes the first og of each ldg columns, transposed, to gw [groups, og, taps]. */
static void opdi_shift_sum(const opdi_shift *shift, void *gw) {
    const int64_t og = shift->conv.og, groups = shift->conv.groups, size = (int64_t)shift->conv.size, ldg = shift->ldg;
    const int64_t taps = shift->conv.cg * shift->conv.kh * shift->conv.kw;
    for (int64_t group = 0; group < groups; group++) {
        char *const sums = shift->gw + group * shift->kp * ldg * size;
        for (int64_t part = 1; part < shift->parts; part++) {
            opdi_conv_add(shift->conv.size, taps * ldg, sums, sums + part * groups * shift->kp * ldg * size);
        }
        if (size == 4) {
            opdi_pack_transposed((const opdi_word32 *)(const void *)sums, ldg, og, taps, taps,
                                 (opdi_word32 *)gw + group * og * taps);
        }
        for (int64_t i = 0; size == 8 && i < og * taps; i++) {
            ((double *)gw)[group * og * taps + i] = ((const double *)(const void *)sums)[i % taps * ldg + i / taps];
        }
    }
}
OPDI_COLD_BEGIN
/* Computes gw [groups, og, cg * kh * kw], the gradient of the weight, from gy and x.  Parts of the batch are
   computed separately and then summed.  Returns 0, 1 if this method does not suit the convolution, or -1 and sets an
   error. */
static int opdi_shift_grad_weight(const opdi_conv *conv, const void *gy, const void *x, void *gw) {
    const int64_t depth = conv->cg * conv->kh * conv->kw, kp = depth + OPDI_MAX_MR;   /* room for surplus taps */
    int64_t lines;
    opdi_dots_fn *const dots = conv->og <= 8 ? opdi_dots_of(conv->size, &lines) : NULL;
    opdi_gemm_job job;
    job.size = conv->size;
    job.mk = opdi_micro_of(conv->size == 4 ? OPD_FLOAT32 : OPD_FLOAT64);
    opdi_micro_narrow(&job, conv->og);
    const int64_t ldg = opdi_round_up(conv->og, dots ? 4 : job.mk.nr);
    opdi_shift shift;
    if (!opdi_shift_fits(conv, &shift, conv->cg + ldg) || conv->og * depth > 1 << 19) { return 1; }
    shift.mk = job.mk;
    shift.dots = dots;
    shift.lines = dots ? lines : 0;
    shift.kp = kp;
    shift.input = (const char *)x;
    shift.gy = (const char *)gy;
    shift.ldg = ldg;
    shift.parts = OPDI_MAX((int64_t)1, OPDI_MIN(OPDI_MIN(conv->n / shift.chunk, (int64_t)8),
                                                ((int64_t)16 << 20) / (conv->groups * kp * ldg * (int64_t)conv->size)));
    int64_t bytes = shift.parts * conv->groups * kp * ldg * (int64_t)conv->size;
    if (opdi_shift_offsets(&shift)) { return -1; }
    shift.gw = (char *)opdi_alloc((size_t)bytes);
    if (!shift.gw) {
        opdi_shift_free(&shift);
        return -1;
    }
    /* with fewer items than threads, the threads work on one item after another */
    if (shift.parts * conv->groups < opd_threads()) { opdi_shift_gw_range(&shift, 0, shift.parts * conv->groups); }
    else { opdi_parallel_for(shift.parts * conv->groups, 1, opdi_shift_gw_range, &shift); }
    opdi_shift_sum(&shift, gw);
    opdi_free(shift.gw, (size_t)bytes);
    opdi_shift_free(&shift);
    return shift.failed ? opdi_buffer_fail() : 0;
}

/* Computes y = conv(x, weights) or a gradient, one image after another.  `what` is OPDI_VOL_Y, OPDI_VOL_GX (x from
   gy, given in y) or OPDI_VOL_GW (weights from x and from gy, given in y).  Returns 0, or -1 and sets an error. */
static int opdi_vol_columns(const opdi_vol *vol, int what, char *x, char *weights, char *y) {
    const int64_t size = (int64_t)opd_dtype_size((opd_scalar_type)vol->dtype), cg = vol->c / vol->groups,
        og = vol->oc / vol->groups;
    const int64_t depth = cg * opdi_vol_area(vol->kernel), area = opdi_vol_area(vol->out),
        image = opdi_vol_area(vol->in);
    const double elements = (double)depth * (double)area;
    char *col = NULL;
    int rc = 0;
    if (elements > 1e15 || !(col = opdi_scratch_alloc((size_t)(depth * area * size) + 16))) {
        return opdi_buffer_fail();
    }
    if (what == OPDI_VOL_GX) { memset(x, 0, (size_t)(vol->n * vol->c * image * size)); }
    for (int64_t i = 0; i < vol->n && rc == 0; i++) {
        for (int64_t group = 0; group < vol->groups && rc == 0; group++) {
            char *xi = x + (i * vol->c + group * cg) * image * size, *yi = y + (i * vol->oc + group * og) * area * size,
                *wg = weights + group * og * depth * size;
            if (what != OPDI_VOL_GX) { opdi_vol_unfold(vol, cg, xi, col, area, false); }
            if (what == OPDI_VOL_Y) {
                rc = opdi_vol_gemm(vol, og, area, depth, wg, depth, false, col, area, false, 0, yi, area);
            }
            else if (what == OPDI_VOL_GW) {
                rc = opdi_vol_gemm(vol, og, depth, area, yi, area, false, col, area, true, i ? 1 : 0, wg, depth);
            }
            else {
                rc = opdi_vol_gemm(vol, depth, area, og, wg, depth, true, yi, area, false, 0, col, area);
                if (rc == 0) { opdi_vol_unfold(vol, cg, xi, col, area, true); }
            }
        }
    }
    opdi_scratch_free(col, (size_t)(depth * area * size) + 16);
    return rc;
}
/* Computes gx by the fastest method that suits the convolution, whose weight has `count` elements.  Returns 0, or -1
   and sets an error. */
static int opdi_vol_grad_input(const opdi_conv *conv, const void *gy, const void *weights, int64_t count, void *gx) {
    const bool around = conv->kh * conv->kw * conv->sh * conv->sw > 1;    /* true: gy gets zeros around it or between
                                                                             its elements */
    int rc = opdi_tiles_grad_input(conv, gy, weights, gx);
    if (rc == 2) {
        const int64_t from = conv->oc * conv->oh * conv->ow, to = conv->c * conv->h * conv->w;
        opdi_conv one = *conv;
        one.n = 1;
        for (int64_t i = 0; i < conv->n; i++) {   /* only floats have tiles */
            rc = opdi_vol_grad_input(&one, (const float *)gy + i * from, weights, count, (float *)gx + i * to);
            if (rc) { return rc; }
        }
        return 0;
    }
    /* the next two methods would multiply the zeros by an infinite weight; opdi_tiles_grad_input has its own test */
    if (rc > 0 && around && !opdi_conv_finite(conv->size, count, weights)) {
        return opdi_conv_grad_folded(conv, gy, weights, gx);
    }
    if (rc > 0) { rc = opdi_pixels_grad_input(conv, gy, weights, gx); }
    if (rc > 0) { rc = opdi_grouped_grad_input(conv, gy, weights, gx); }
    if (rc > 0) { rc = opdi_shift_grad_input(conv, gy, weights, gx); }
    return rc <= 0 ? rc : opdi_conv_grad_input(conv, gy, weights, gx);
}
/* Runs one of the computations of opdi_vol_columns by the fastest method that suits it.  For OPDI_VOL_Y, `bias` may
   point to a bias [oc].  The function either adds the bias to output and sets *bias to NULL, or leaves it for the
   caller to add.  `bias` and *bias may be NULL.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_vol_run(const opdi_vol *vol, int what, const opd_tensor *input, const opd_tensor *weight,
                               const opd_tensor *output, opd_tensor **bias) {
    const void *second = NULL;
    opd_tensor *const target = (opd_tensor *)(uintptr_t)(what == OPDI_VOL_Y ? output : what == OPDI_VOL_GX ? input
                                                         : weight);
    opdi_conv conv;
    if (target->numel == 0) { return 0; }
    if (input->numel == 0 || weight->numel == 0 || output->numel == 0) {
        memset(target->data, 0, (size_t)target->numel * opd_dtype_size(OPDI_DTYPE(target)));
        return 0;
    }
    if (!opdi_vol_flat(vol, &conv)) { return opdi_vol_columns(vol, what, input->data, weight->data, output->data); }
    if (what == OPDI_VOL_Y) {
        if (bias && *bias) {
            second = (*bias)->data;
            *bias = NULL;
        }
        return opdi_conv_any(&conv, input->data, weight->data, second, output->data);
    }
    if (what == OPDI_VOL_GX) {
        return opdi_vol_grad_input(&conv, output->data, weight->data, weight->numel, input->data);
    }
    int rc = opdi_tiles_grad_weight(&conv, output->data, input->data, weight->data);
    if (rc > 0) {
        rc = opdi_pixels_grad_weight(&conv, output->data, input->data, weight->data);
        if (rc > 0) { rc = opdi_grouped_grad_weight(&conv, output->data, input->data, weight->data); }
        if (rc > 0) { rc = opdi_shift_grad_weight(&conv, output->data, input->data, weight->data); }
        if (rc == 0 && !opdi_conv_finite(conv.size, weight->numel, weight->data)) { rc = 1; } /* gw may contain 0 *
                                                                                                 infinity */
    }
    return rc <= 0 ? rc : opdi_conv_grad_weight(&conv, output->data, input->data, weight->data);
}
OPDI_COLD_END
/* Adds the bias `second` [channels] to output [n, channels, area]. */
OPDI_INTERNAL void opdi_bias_add(opd_tensor *output, const opd_tensor *second) {
    const int64_t channels = opdi_sizes(output)[1],
        area = output->numel / OPDI_MAX((int64_t)1, opdi_sizes(output)[0] * channels);
    for (int64_t i = 0; i < opdi_sizes(output)[0] * channels; i++) {
        if (output->dtype == OPD_FLOAT32) {
            float *at = (float *)(void *)output->data + i * area,
                k = ((const float *)(const void *)second->data)[i % channels];
            for (int64_t j = 0; j < area; j++) { at[j] += k; }
        } else if (output->dtype == OPD_FLOAT64) {
            double *at = (double *)(void *)output->data + i * area,
                k = ((const double *)(const void *)second->data)[i % channels];
            for (int64_t j = 0; j < area; j++) { at[j] += k; }
        } else {
            uint64_t *at = (uint64_t *)(void *)output->data + i * area,
                k = ((const uint64_t *)(const void *)second->data)[i % channels];
            for (int64_t j = 0; j < area; j++) { at[j] += k; }
        }
    }
}
/* Sets out [channels] to the sum over count and area of grad [count, channels, area], float or double. */
OPDI_INTERNAL void opdi_bias_sum(const opd_tensor *grad, opd_tensor *out) {
    const int64_t count = opdi_sizes(grad)[0], channels = opdi_sizes(grad)[1],
        area = grad->numel / OPDI_MAX((int64_t)1, count * channels);
    int64_t j;
    for (int64_t i = 0; i < channels; i++) {
        double sum = 0;
        for (int64_t batch = 0; batch < count; batch++) {
            double part[8] = {0, 0, 0, 0, 0, 0, 0, 0};
            if (grad->dtype == OPD_FLOAT32) {
                const float *at = (const float *)(const void *)grad->data + (batch * channels + i) * area;
                float f[16] = {0};
                for (j = 0; j + 16 <= area && area <= 4096; j += 16) {
                    for (int lane = 0; lane < 16; lane++) { f[lane] += at[j + lane]; }
                }
                for (int lane = 0; lane < 8; lane++) { part[lane] = (double)f[lane] + (double)f[lane + 8]; }
                for (; j < area; j++) { part[j & 7] += (double)at[j]; }
            } else {
                const double *at = (const double *)(const void *)grad->data + (batch * channels + i) * area;
                for (j = 0; j < area; j++) { part[j & 7] += at[j]; }
            }
            sum += ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
        }
        if (grad->dtype == OPD_FLOAT32) { ((float *)(void *)out->data)[i] = (float)sum; }
        else { ((double *)(void *)out->data)[i] = sum; }
    }
}
