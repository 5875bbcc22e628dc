#include "kernels.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>convolution  convolution, computed as matrix products
//----------------------------------------------------------------------------------------------------------------------

//== convolution =======================================================================================================
//
//  Convolution in two dimensions of contiguous x [n, c, h, w] with weight [oc, c / groups, kh, kw], to y [n, oc, oh,
//  ow].  A convolution in one dimension has h = kh = 1.  The channels of a group of an image are copied with their
//  padding into a buffer, the padded image.
//
//  The unfolded matrix [c / groups * kh * kw, oh * ow] has a column for each output position: the elements that the
//  taps read for this position.  The matrix is never stored: packing for the matrix product reads the padded image.
//  In each line of the padded image, columns 0, sw, 2 sw and so on come first, then columns 1, sw + 1 and so on.  So
//  the elements that one tap reads along an output row are contiguous.

/* Computes the members of `conv` from `cg` to `line`, from its sizes, `oh` and `ow`.  Returns 0, or -1 and sets an
   error if the padded image is too large. */
static int opdi_conv_places(opdi_conv *conv) {
    conv->cg = conv->c / conv->groups;
    conv->og = conv->oc / conv->groups;
    conv->hp = (conv->oh - 1) * conv->sh + (conv->kh - 1) * conv->dh + 1;
    conv->wp = (conv->ow - 1) * conv->sw + (conv->kw - 1) * conv->dw + 1;
    conv->phases = OPDI_MIN(conv->sw, (conv->kw - 1) * conv->dw + 1);
    conv->run = (conv->wp - 1) / conv->sw + 1;
    conv->line = conv->phases * conv->run;
    if ((double)conv->hp * (double)conv->line * (double)(conv->cg + 1) > 1e15) {
        return opd_fail(OPD_ERROR_MEMORY, "convolution: the padded input is too large");
    }
    return 0;
}
/* Computes the members from `oh` to `line` of `conv`.  Returns 0, or -1 and sets an error if the sizes are invalid.
   The caller checks the channels. */
OPDI_INTERNAL int opdi_conv_init(opdi_conv *conv) {
    const int64_t big = (int64_t)1 << 31;
    if (conv->kh < 1 || conv->kw < 1 || conv->sh < 1 || conv->sw < 1 || conv->dh < 1 || conv->dw < 1 || conv->ph < 0 ||
        conv->pw < 0 || conv->groups < 1 || conv->kh >= big || conv->kw >= big || conv->dh >= big || conv->dw >= big ||
        conv->ph >= big || conv->pw >= big || conv->c % conv->groups || conv->oc % conv->groups) {
        return opd_fail(OPD_ERROR_ARGUMENT, "convolution: stride, padding, dilation or groups out of range");
    }
    int64_t rows = conv->h + 2 * conv->ph - conv->dh * (conv->kh - 1) - 1,
        cols = conv->w + 2 * conv->pw - conv->dw * (conv->kw - 1) - 1;
    if (rows < 0 || cols < 0) { return opd_fail(OPD_ERROR_SHAPE, "convolution: kernel larger than the padded input"); }
    conv->oh = rows / conv->sh + 1;
    conv->ow = cols / conv->sw + 1;
    return opdi_conv_places(conv);
}

/* Copies `count` elements of `size` bytes from `from`, where they are `step` elements apart, to contiguous elements at
   `to`.  If `back` is 1, adds the elements at `to` to the elements at `from` instead. */
static void opdi_conv_pad_run(size_t size, int64_t count, void *to, void *from, int64_t step, int back) {
    float *f = (float *)from, *to_f = (float *)to;
    double *d = (double *)from, *to_d = (double *)to;
    if (back && size == 4) { for (int64_t i = 0; i < count; i++) { f[i * step] += to_f[i]; } }
    else if (back) { for (int64_t i = 0; i < count; i++) { d[i * step] += to_d[i]; } }
    else if (step == 1) { memcpy(to, from, (size_t)count * size); }
    else if (size == 4) { for (int64_t i = 0; i < count; i++) { to_f[i] = f[i * step]; } }
    else { for (int64_t i = 0; i < count; i++) { to_d[i] = d[i * step]; } }
}
/* Copies x [planes, h, w] into the padded images dst [planes, hp, line], which must contain zeros.  If `back` is 1,
   adds dst without its padding to x instead.  Never writes the padding, so the buffer can be reused for the next
   image. */
static void opdi_conv_pad(const opdi_conv *conv, int64_t planes, char *dst, char *x, int back) {
    int64_t size = (int64_t)conv->size, left = OPDI_MIN(conv->pw, conv->wp), cols = OPDI_MIN(conv->w, conv->wp - left);
    for (int64_t plane = 0; plane < planes; plane++) {
        for (int64_t y = conv->ph; y < conv->hp && y - conv->ph < conv->h; y++) {
            char *to = dst + (plane * conv->hp + y) * conv->line * size,
                *from = x + (plane * conv->h + y - conv->ph) * conv->w * size;
            for (int64_t phase = 0; phase < conv->phases; phase++) {
                const int64_t turn = (left - phase + conv->sw - 1) / conv->sw, first = turn * conv->sw + phase - left;
                if (first >= cols) { continue; }
                opdi_conv_pad_run(conv->size, (cols - 1 - first) / conv->sw + 1, to + (phase * conv->run + turn) * size,
                                  from + first * size, conv->sw, back);
            }
        }
    }
}

static int64_t opdi_conv_pad_bytes(const opdi_conv *conv, int64_t planes) {
    return (planes * conv->hp * conv->line + OPDI_CONV_SLACK) * (int64_t)conv->size;
}

/* Returns the index in a line of the padded image at which the elements for column `kj` of the kernel begin. */
static inline int64_t opdi_conv_column(const opdi_conv *conv, int64_t kj) {
    const int64_t x = kj * conv->dw;
    return conv->sw == 1 ? x : x % conv->sw * conv->run + x / conv->sw;
}
/* Returns the index in the padded image of the first element of row `row` of the unfolded matrix. */
static inline int64_t opdi_unfold_row(const opdi_conv *conv, int64_t row) {
    int64_t kj = row % conv->kw, ki = row / conv->kw % conv->kh, channel = row / conv->kw / conv->kh;
    return (channel * conv->hp + ki * conv->dh) * conv->line + opdi_conv_column(conv, kj);
}

/* Packs rows k0 .. k0 + kc - 1 and columns j0 .. j0 + nc - 1 of the unfolded matrix for the matrix product, like an
   opdi_pack_fn.  A row of a panel consists of a few runs, one for each output row.  Each run is copied at full panel
   width; the next run, or the next row of the panel, overwrites the excess elements. */
typedef void opdi_unfold_fn(const opdi_unfold *unfold, int64_t k0, int64_t kc, int64_t j0, int64_t nc, int64_t ld,
                            void *out);
static opdi_unfold_fn opdi_unfold_runs_plain_f32, opdi_unfold_runs_plain_f64;
#if defined(OPDI_VECTORS)
OPDI_AVX2 static opdi_unfold_fn opdi_unfold_runs_avx2_f32, opdi_unfold_runs_avx2_f64;
#endif
#if defined(OPDI_X86)
OPDI_AVX512 static opdi_unfold_fn opdi_unfold_runs_avx512_f32, opdi_unfold_runs_avx512_f64;
#endif
#include "../typed/f32.h"
#include "unfolded_runs.typed.h"
#if defined(OPDI_VECTORS)
#include "../typed/f32_avx2.h"
#include "unfolded_runs.typed.h"
#endif
#if defined(OPDI_X86)
#include "../typed/f32_avx512.h"
#include "unfolded_runs.typed.h"
#endif
#include "../typed/f64.h"
#include "unfolded_runs.typed.h"
#if defined(OPDI_VECTORS)
#include "../typed/f64_avx2.h"
#include "unfolded_runs.typed.h"
#endif
#if defined(OPDI_X86)
#include "../typed/f64_avx512.h"
#include "unfolded_runs.typed.h"
#endif
#include "../typed/end.h"
static void opdi_unfold_pack(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t nc, int64_t ld, void *out) {
    const opdi_unfold *unfold = (const opdi_unfold *)ctx;
    const bool four = unfold->conv->size == 4;
    opdi_unfold_fn *runs = four ? opdi_unfold_runs_plain_f32 : opdi_unfold_runs_plain_f64;
#if defined(OPDI_VECTORS)
    const int level = opdi_cpu_level();
    if (level == 1) { runs = four ? opdi_unfold_runs_avx2_f32 : opdi_unfold_runs_avx2_f64; }
#endif
#if defined(OPDI_X86)
    if (level == 2) { runs = four ? opdi_unfold_runs_avx512_f32 : opdi_unfold_runs_avx512_f64; }
#endif
    runs(unfold, k0, kc, j0, nc, ld, out);
}

/* An opdi_pack_fn for the transposed unfolded matrix: rows k0 .. k0 + kc - 1 are output positions, columns j0 .. j0 +
   nc - 1 are taps. */
static void opdi_unfold_pack_transposed(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t nc, int64_t ld,
                                        void *out) {
    const opdi_unfold *unfold = (const opdi_unfold *)ctx;
    const opdi_conv *conv = unfold->conv;
    int64_t at[OPDI_MAX_NR];
    for (int64_t j = 0; j < nc; j++) { at[j] = opdi_unfold_row(conv, j0 + j); }
    for (int64_t j = nc; j < ld; j++) { at[j] = at[0]; }
    int64_t y = k0 / conv->ow, x = k0 % conv->ow, image = y / conv->oh;
    y %= conv->oh;
    for (int64_t turn = 0; turn < kc;) {
        int64_t place = image * unfold->image + y * conv->sh * conv->line + x, step = 1;
        if (conv->size == 4) {
            const float *source = (const float *)(const void *)unfold->pad + place;
            float *to = (float *)out + turn * ld;
            if (turn + 4 <= kc && x + 4 <= conv->ow) { step = 4; }
            for (int64_t j = 0; step == 4 && j < ld; j += 4) {
                opdi_transpose4(source + at[j], source + at[j + 1], source + at[j + 2], source + at[j + 3], to + j, ld);
            }
            for (int64_t j = 0; step == 1 && j < ld; j++) { to[j] = source[at[j]]; }
        } else {
            const double *source = (const double *)(const void *)unfold->pad + place;
            for (int64_t j = 0; j < ld; j++) { ((double *)out)[turn * ld + j] = source[at[j]]; }
        }
        turn += step;
        x += step;
        if (x >= conv->ow) {
            x = 0;
            y++;
        }
        if (y == conv->oh) {
            y = 0;
            image++;
        }
    }
}
/* An opdi_pack_fn for the gradients of the results: rows k0 .. k0 + kc - 1 are output positions of all images, columns
   are output channels. */
static void opdi_unfold_pack_gy(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t nc, int64_t ld, void *out) {
    const opdi_unfold *unfold = (const opdi_unfold *)ctx;
    const opdi_conv *conv = unfold->conv;
    const int64_t area = conv->oh * conv->ow;
    for (int64_t turn = 0, count; turn < kc; turn += count) {
        const int64_t image = (k0 + turn) / area, at = (k0 + turn) % area;
        const int64_t from = (image * conv->oc + j0) * area + at;
        count = OPDI_MIN(kc - turn, area - at);
        if (conv->size == 4) {
            opdi_pack_transposed((const opdi_word32 *)(const void *)unfold->gy + from, area, count, nc, ld,
                                 (opdi_word32 *)out + turn * ld);
        }
        for (int64_t j = 0; conv->size == 8 && j < nc; j++) {
            const double *const source = (const double *)(const void *)unfold->gy + from + j * area;
            for (int64_t i = 0; i < count; i++) { ((double *)out)[(turn + i) * ld + j] = source[i]; }
        }
    }
}

typedef struct opdi_conv_job {
    opdi_conv conv;
    const char *input, *weight, *bias, *gy;       /* inputs */
    char *output, *gx, *gw;                       /* results */
    int64_t parts;                                /* number of parts of the batch (for the weight's gradient) */
    int failed;
} opdi_conv_job;

static void opdi_conv_fill(const opdi_conv_job *job, int64_t group, void *y) {
    int64_t area = job->conv.oh * job->conv.ow;
    for (int64_t o = 0; o < job->conv.og; o++) {
        double b = opdi_number_at(job->conv.size, job->bias, group * job->conv.og + o);
        for (int64_t i = o * area; i < (o + 1) * area; i++) {
            if (job->conv.size == 4) { ((float *)y)[i] = (float)b; }
            else { ((double *)y)[i] = b; }
        }
    }
}

/* opdi_depthwise_* compute one output plane y of a depthwise convolution, 16 elements of a row at a time: y[16] = sum
   over taps of w * x[16].  opdi_depthwise_gw_* compute the weight gradient for one plane: gw[ki, kj] += sum of gy *
   x. */
static void opdi_depthwise_f32(const opdi_conv *conv, const float *pad, const float *weight, float bias, float *y);
static void opdi_depthwise_f64(const opdi_conv *conv, const double *pad, const double *weight, double bias, double *y);
static void opdi_depthwise_gw_f32(const opdi_conv *conv, const float *pad, const float *gy, float *gw);
static void opdi_depthwise_gw_f64(const opdi_conv *conv, const double *pad, const double *gy, double *gw);

#if defined(OPDI_VECTORS)
#define OPDI_MAX_TAPS 64
/* The same functions with vector instructions, for float and at most OPDI_MAX_TAPS taps. */
OPDI_AVX2 static void opdi_depthwise_avx2_f32(const opdi_conv *conv, const float *pad, const float *weight, float bias,
                                              float *y);
OPDI_AVX2 static void opdi_depthwise_gw_avx2_f32(const opdi_conv *conv, const float *pad, const float *gy, float *gw);
#endif
#if defined(OPDI_X86)
OPDI_AVX512 static void opdi_depthwise_avx512_f32(const opdi_conv *conv, const float *pad, const float *weight,
                                                  float bias, float *y);
OPDI_AVX512 static void opdi_depthwise_gw_avx512_f32(const opdi_conv *conv, const float *pad, const float *gy,
                                                     float *gw);
#endif
#include "../typed/f32.h"
#include "depthwise.typed.h"
#if defined(OPDI_VECTORS)
#include "../typed/f32_avx2.h"
#include "depthwise_vectors.typed.h"
#endif
#if defined(OPDI_X86)
#include "../typed/f32_avx512.h"
#include "depthwise_vectors.typed.h"
#endif
#include "../typed/f64.h"
#include "depthwise.typed.h"
#include "../typed/end.h"

static void opdi_conv_depthwise(const opdi_conv_job *job, int64_t group, const char *pad, char *y) {
    const opdi_conv *conv = &job->conv;
    double b = job->bias ? opdi_number_at(conv->size, job->bias, group) : 0;
    const void *weights = job->weight + group * conv->kh * conv->kw * (int64_t)conv->size, *image = pad;
    void *out = y;
    if (conv->size == 8) {
        opdi_depthwise_f64(conv, (const double *)image, (const double *)weights, b, (double *)out);
        return;
    }
#if defined(OPDI_VECTORS)
    const int level = conv->kh * conv->kw <= OPDI_MAX_TAPS ? opdi_cpu_level() : 0;
    if (level) {
        OPDI_WIDEST(level, opdi_depthwise_avx512_f32, opdi_depthwise_avx2_f32)
            (conv, (const float *)image, (const float *)weights, (float)b, (float *)out);
        return;
    }
#endif
    opdi_depthwise_f32(conv, (const float *)image, (const float *)weights, (float)b, (float *)out);
}

static void opdi_conv_depthwise_gw(const opdi_conv *conv, const void *pad, const void *gy, void *gw) {
    if (conv->size == 8) {
        opdi_depthwise_gw_f64(conv, (const double *)pad, (const double *)gy, (double *)gw);
        return;
    }
#if defined(OPDI_VECTORS)
    const int level = conv->kh * conv->kw <= OPDI_MAX_TAPS ? opdi_cpu_level() : 0;
    if (level) {
        OPDI_WIDEST(level, opdi_depthwise_gw_avx512_f32, opdi_depthwise_gw_avx2_f32)
            (conv, (const float *)pad, (const float *)gy, (float *)gw);
        return;
    }
#endif
    opdi_depthwise_gw_f32(conv, (const float *)pad, (const float *)gy, (float *)gw);
}

/* Returns true if the unfolded matrix equals the image (1 x 1 taps, no stride or padding).  Then nothing has to be
   copied. */
static bool opdi_conv_plain(const opdi_conv *conv) {
    return conv->kh == 1 && conv->kw == 1 && conv->sh == 1 && conv->sw == 1 && conv->ph == 0 && conv->pw == 0 &&
        conv->oh == conv->h && conv->ow == conv->w;
}
/* Returns the number of images that are unfolded together: several if they are small, else 1. */
static int64_t opdi_conv_together(const opdi_conv *conv) {
    const int64_t area = conv->oh * conv->ow, bytes = OPDI_MAX(opdi_conv_pad_bytes(conv, conv->cg), (int64_t)1);
    if (opdi_conv_plain(conv) || (conv->cg == 1 && conv->og == 1) || area > 256) { return 1; }
    return OPDI_MAX(1, OPDI_MIN(OPDI_MIN(conv->n, 512 / area), ((int64_t)4 << 20) / bytes));
}
/* Returns the number of bytes of scratch memory that a thread needs: for padded images and, if several images are
   unfolded together, for their results. */
static size_t opdi_conv_scratch_size(const opdi_conv *conv) {
    const int64_t images = opdi_conv_together(conv), area = conv->oh * conv->ow;
    if (opdi_conv_plain(conv)) { return 16; }
    return (size_t)(images * opdi_conv_pad_bytes(conv, conv->cg) +
                    (images > 1 ? images * conv->og * area * (int64_t)conv->size : 0));
}
/* Copies the results of `images` images from `from` [og, images, area] to the images y, and adds the bias. */
static void opdi_conv_apart(const opdi_conv_job *job, int64_t group, int64_t images, const char *from, char *y) {
    const opdi_conv *conv = &job->conv;
    const int64_t area = conv->oh * conv->ow, size = (int64_t)conv->size;
    for (int64_t o = 0; o < conv->og; o++) {
        const double b = job->bias ? opdi_number_at(conv->size, job->bias, group * conv->og + o) : 0;
        for (int64_t image = 0; image < images; image++, from += area * size) {
            void *const to = y + (image * conv->oc + o) * area * size;
            const void *const at = from;
            if (!job->bias && to != at) { memcpy(to, at, (size_t)(area * size)); }
            for (int64_t i = 0; job->bias && i < area; i++) {
                if (size == 4) { ((float *)to)[i] = ((const float *)at)[i] + (float)b; }
                else { ((double *)to)[i] = ((const double *)at)[i] + b; }
            }
        }
    }
}
/* Convolves `images` images of a group; x and y point to the first image.  `pad` is scratch memory, which the caller
   has set to zeros. */
static void opdi_conv_images(opdi_conv_job *job, int64_t group, int64_t images, const char *x, char *pad, char *y) {
    const opdi_conv *conv = &job->conv;
    const int64_t size = (int64_t)conv->size, depth = conv->cg * conv->kh * conv->kw, area = conv->oh * conv->ow;
    const int64_t bytes = opdi_conv_pad_bytes(conv, conv->cg), all = opdi_conv_together(conv);
    const int dtype = size == 4 ? OPD_FLOAT32 : OPD_FLOAT64;
    char *const out = all > 1 ? pad + all * bytes : y;
    const bool last = all > 1 || opd_same_bits();  /* the bias is added to the product, not the other way round */
    const double beta = job->bias && !last ? 1 : 0;
    opdi_unfold unfold;
    unfold.conv = conv;
    unfold.pad = pad;
    unfold.image = bytes / size;
    opdi_gemm_in left = opdi_gemm_in_of(job->weight + group * conv->og * depth * size, dtype, depth, 1);
    opdi_gemm_in right = opdi_gemm_in_of(x, dtype, area, 1);
    left.exact = right.exact = conv->exact;
    if (!opdi_conv_plain(conv)) {
        for (int64_t image = 0; image < images; image++) {
            opdi_conv_pad(conv, conv->cg, pad + image * bytes,
                          (char *)(uintptr_t)x + image * conv->c * conv->h * conv->w * size, 0);
        }
        if (conv->cg == 1 && conv->og == 1) {
            opdi_conv_depthwise(job, group, pad, y);
            return;
        }
        right.pack = opdi_unfold_pack;
        right.ctx = &unfold;
    }
    if (beta != 0) { opdi_conv_fill(job, group, y); }
    if (opdi_gemm(conv->size, conv->og, images * area, depth, &left, &right, beta, out, images * area, 1)) {
        OPDI_STORE(&job->failed, 1);
    } else if (last) { opdi_conv_apart(job, group, images, out, y); }
}
/* Computes items [begin, end) of ctx, an opdi_conv_job.  An item is one group of one image, or of a few small
   images.  Sets job->failed if memory runs out. */
static void opdi_conv_forward_range(void *ctx, int64_t begin, int64_t end) {
    opdi_conv_job *job = (opdi_conv_job *)ctx;
    const opdi_conv *conv = &job->conv;
    const int64_t size = (int64_t)conv->size, images = opdi_conv_together(conv);
    const size_t bytes = opdi_conv_scratch_size(conv);
    char *pad = opdi_scratch_alloc(bytes);
    if (!pad) {
        OPDI_STORE(&job->failed, 1);
        return;
    }
    memset(pad, 0, bytes);
    for (int64_t i = begin; i < end; i++) {
        const int64_t group = i % conv->groups, first = i / conv->groups * images;
        opdi_conv_images(job, group, OPDI_MIN(images, conv->n - first),
                         job->input + (first * conv->c + group * conv->cg) * conv->h * conv->w * size, pad,
                         job->output + (first * conv->oc + group * conv->og) * conv->oh * conv->ow * size);
    }
    opdi_scratch_free(pad, bytes);
}

/* Returns 0 or, if *failed is set (memory ran out during a convolution), returns -1 and sets an error. */
OPDI_INTERNAL int opdi_conv_done(const int *failed) {
    return OPDI_LOAD(failed) ? opd_fail(OPD_ERROR_MEMORY, "convolution: out of memory") : 0;
}

/* Computes y = conv(x, weights) + bias.  `bias` is [oc] or NULL; `conv` comes from opdi_conv_init.  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_conv_forward(const opdi_conv *conv, const void *x, const void *weights, const void *bias,
                                    void *y) {
    opdi_conv_job job;
    memset(&job, 0, sizeof job);
    job.conv = *conv;
    job.input = (const char *)x;
    job.weight = (const char *)weights;
    job.bias = (const char *)bias;
    job.output = (char *)y;
    const int64_t depth = conv->cg * conv->kh * conv->kw, area = conv->oh * conv->ow;
    const int64_t images = opdi_conv_together(conv);
    opdi_parallel_for_scratch(((conv->n - 1) / images + 1) * conv->groups, 1, opdi_conv_forward_range, &job,
                              OPDI_SCRATCH_BYTES(opdi_conv_scratch_size(conv)) +
                              opdi_gemm_scratch_size(conv->size, conv->og, images * area, depth));
    return opdi_conv_done(&job.failed);
}

#if defined(OPD_NO_OP_CONV)
OPDI_INTERNAL int opdi_conv_any(const opdi_conv *conv, const void *x, const void *weights, const void *bias, void *y) {
    return opdi_conv_forward(conv, x, weights, bias, y);
}
#endif

/* Adds `count` elements of `from` to the elements of `to`, in steps of constant size.  Elements have `size` bytes. */
OPDI_INTERNAL void opdi_conv_add(size_t size, int64_t count, void *to, const void *from) {
    float *f = (float *)to;
    double *d = (double *)to;
    const float *from_f = (const float *)from;
    const double *from_d = (const double *)from;
    int64_t i = 0;
    for (; size == 4 && i + 16 <= count; i += 16) {
        float x[16];
        for (int lane = 0; lane < 16; lane++) { x[lane] = f[i + lane] + from_f[i + lane]; }
        for (int lane = 0; lane < 16; lane++) { f[i + lane] = x[lane]; }
    }
    for (; i < count; i++) {
        if (size == 4) { f[i] += from_f[i]; }
        else { d[i] += from_d[i]; }
    }
}
/* Adds `col`, the product w^T * gy for output rows y0 .. y0 + rows - 1, to the padded image `pad`.  col is the gradient
   of the unfolded matrix; each element is added to the element that it was unfolded from (folding).  The inside of the
   padded image becomes the gradient of x. */
static void opdi_fold_add(const opdi_conv *conv, const char *col, int64_t y0, int64_t rows, char *pad) {
    int64_t depth = conv->cg * conv->kh * conv->kw;
    for (int64_t step = 0; step < depth; step++) {
        for (int64_t y = 0; y < rows; y++) {
            const int64_t to = opdi_unfold_row(conv, step) + (y0 + y) * conv->sh * conv->line,
                from = (step * rows + y) * conv->ow;
            opdi_conv_add(conv->size, conv->ow, pad + to * (int64_t)conv->size, col + from * (int64_t)conv->size);
        }
    }
}

/* Returns the number of output rows that are folded together. */
static int64_t opdi_conv_fold_step(const opdi_conv *conv) {
    const int64_t depth = conv->cg * conv->kh * conv->kw;
    return OPDI_MAX(1, OPDI_MIN(conv->oh, 65536 / OPDI_MAX(1, depth * conv->ow)));
}
/* Computes the gradient of x for items [begin, end) of ctx, an opdi_conv_job.  An item is one group of one image.
   The product w^T * gy for a few output rows at a time is folded into a padded image, whose inside is finally copied to
   gx.  Sets job->failed if memory runs out. */
static void opdi_conv_fold_range(void *ctx, int64_t begin, int64_t end) {
    opdi_conv_job *job = (opdi_conv_job *)ctx;
    const opdi_conv *conv = &job->conv;
    int64_t size = (int64_t)conv->size, depth = conv->cg * conv->kh * conv->kw, area = conv->oh * conv->ow;
    const int64_t step = opdi_conv_fold_step(conv);
    int dtype = size == 4 ? OPD_FLOAT32 : OPD_FLOAT64;
    size_t pad_bytes = (size_t)opdi_conv_pad_bytes(conv, conv->cg),
        bytes = pad_bytes + (size_t)(depth * step * conv->ow * size);
    char *pad = opdi_scratch_alloc(bytes);
    if (!pad) {
        OPDI_STORE(&job->failed, 1);
        return;
    }
    char *col = pad + pad_bytes;
    for (int64_t i = begin; i < end; i++) {
        const char *gy = job->gy + i * conv->og * area * size;
        char *gx = job->gx + i * conv->cg * conv->h * conv->w * size;
        memset(pad, 0, pad_bytes);
        for (int64_t y = 0; y < conv->oh; y += step) {
            int64_t rows = OPDI_MIN(step, conv->oh - y), count = rows * conv->ow;
            opdi_gemm_in left = opdi_gemm_in_of(job->weight + i % conv->groups * conv->og * depth * size, dtype, 1,
                                                depth);
            opdi_gemm_in right = opdi_gemm_in_of(gy + y * conv->ow * size, dtype, area, 1);
            left.exact = right.exact = conv->exact;
            if (opdi_gemm(conv->size, depth, count, conv->og, &left, &right, 0, col, count, 1)) {
                OPDI_STORE(&job->failed, 1);
            }
            else { opdi_fold_add(conv, col, y, rows, pad); }
        }
        memset(gx, 0, (size_t)(conv->cg * conv->h * conv->w * size));
        opdi_conv_pad(conv, conv->cg, pad, gx, 1);
    }
    opdi_scratch_free(pad, bytes);
}

/* Copies one tap of weights: element (i, j), for all i < rows and j < cols, from index i * row + j * col of `from` to
   index i * out_row + j * out_col of `to`.  Elements have `size` bytes. */
static void opdi_conv_transpose_tap(size_t size, int64_t rows, int64_t cols, const char *from, int64_t row, int64_t col,
                                    char *to, int64_t out_row, int64_t out_col) {
    for (int64_t j = 0; j < cols; j++) {
        const opdi_word32 *at = (const opdi_word32 *)(const void *)from + j * col;
        const opdi_word64 *at64 = (const opdi_word64 *)(const void *)from + j * col;
        opdi_word32 *there = (opdi_word32 *)(void *)to + j * out_col;
        opdi_word64 *there64 = (opdi_word64 *)(void *)to + j * out_col;
        if (size == 4) { for (int64_t i = 0; i < rows; i++) { there[i * out_row] = at[i * row]; } }
        else { for (int64_t i = 0; i < rows; i++) { there64[i * out_row] = at64[i * row]; } }
    }
}
/* Copies every sh-th row and sw-th column of taps, beginning with tap [y, x], of weights [groups * og, cg, kh, kw]
   to out [groups * cg, og, rows, columns], in reversed order.  Works on blocks of 16 by 16 channels. */
static void opdi_conv_transpose_weights(const opdi_conv *conv, const char *weights, int64_t y, int64_t x, char *out) {
    const int64_t high = (conv->kh - y + conv->sh - 1) / conv->sh, wide = (conv->kw - x + conv->sw - 1) / conv->sw;
    const int64_t taps = conv->kh * conv->kw, less = high * wide, across = (conv->cg - 1) / 16 + 1;
    const int64_t blocks = ((conv->og - 1) / 16 + 1) * across, size = (int64_t)conv->size;
    for (int64_t block = 0; block < conv->groups * blocks; block++) {
        const int64_t group = block / blocks, o = block % blocks / across * 16, c = block % across * 16;
        const int64_t rows = OPDI_MIN(16, conv->og - o), cols = OPDI_MIN(16, conv->cg - c);
        const char *const from = weights + ((group * conv->og + o) * conv->cg + c) * taps * size;
        char *const to = out + ((group * conv->cg + c) * conv->og + o) * less * size;
        for (int64_t i = 0; i < high; i++) {
            for (int64_t j = 0; j < wide; j++) {
                const int64_t tap = (y + i * conv->sh) * conv->kw + x + j * conv->sw;
                opdi_conv_transpose_tap(conv->size, rows, cols, from + tap * size, conv->cg * taps, taps,
                                        to + (less - 1 - i * wide - j) * size, less, conv->og * less);
            }
        }
    }
}
/* Copies weights [groups * og, cg, kh, kw] to [groups * cg, og, kh, kw] with the taps reversed. */
OPDI_INTERNAL void opdi_conv_flip(const opdi_conv *conv, const char *weights, char *out) {
    opdi_conv all = *conv;
    all.sh = all.sw = 1;
    opdi_conv_transpose_weights(&all, weights, 0, 0, out);
}

//== the gradient with respect to the input, for strides ===============================================================
//
//  A stride of sh by sw cuts the gradient into sh times sw parts.  All rows whose index in the padded image has the
//  same remainder modulo sh read the same taps: every sh-th row of taps.  The same holds for columns and sw.  Each part
//  is a convolution of gy with stride 1.

/* Describes in *part the convolution of gy that computes those rows and columns of gx whose remainders are `y` and `x`.
   Sets from[0] and from[1] to the first such row and column.  Returns 1, or 0 if there is no such element, or -1 if the
   padding would be negative or the sizes too large. */
static int opdi_conv_part(const opdi_conv *conv, int64_t y, int64_t x, opdi_conv *part, int64_t from[2]) {
    const int64_t qy = conv->ph > y ? (conv->ph - y + conv->sh - 1) / conv->sh : 0;
    const int64_t qx = conv->pw > x ? (conv->pw - x + conv->sw - 1) / conv->sw : 0;
    *part = *conv;
    from[0] = qy * conv->sh + y - conv->ph;
    from[1] = qx * conv->sw + x - conv->pw;
    part->c = conv->oc;
    part->oc = conv->c;
    part->h = conv->oh;
    part->w = conv->ow;
    part->kh = y < conv->kh ? (conv->kh - y + conv->sh - 1) / conv->sh : 0;
    part->kw = x < conv->kw ? (conv->kw - x + conv->sw - 1) / conv->sw : 0;
    part->sh = part->sw = 1;
    part->ph = part->kh - 1 - qy;
    part->pw = part->kw - 1 - qx;
    part->oh = from[0] < conv->h ? (conv->h - 1 - from[0]) / conv->sh + 1 : 0;
    part->ow = from[1] < conv->w ? (conv->w - 1 - from[1]) / conv->sw + 1 : 0;
    if (part->kh <= 0 || part->kw <= 0 || part->oh <= 0 || part->ow <= 0) { return 0; }
    return part->ph < 0 || part->pw < 0 || opdi_conv_places(part) ? -1 : 1;
}
/* Copies a part's results to every sh-th row and every sw-th column of gx, from row from[0] and column from[1] on. */
static void opdi_conv_scatter(const opdi_conv *conv, const opdi_conv *part, const int64_t from[2], const char *results,
                              char *gx) {
    const int64_t size = (int64_t)conv->size;
    for (int64_t row = 0; row < conv->n * conv->c * part->oh; row++) {
        const int64_t plane = row / part->oh, y = from[0] + row % part->oh * conv->sh;
        const char *const at = results + row * part->ow * size;
        char *const to = gx + ((plane * conv->h + y) * conv->w + from[1]) * size;
        if (size == 4) {
            const opdi_word32 *source = (const opdi_word32 *)(const void *)at;
            for (int64_t x = 0; x < part->ow; x++) { ((opdi_word32 *)(void *)to)[x * conv->sw] = source[x]; }
        } else {
            const opdi_word64 *source = (const opdi_word64 *)(const void *)at;
            for (int64_t x = 0; x < part->ow; x++) { ((opdi_word64 *)(void *)to)[x * conv->sw] = source[x]; }
        }
    }
}
/* Like opdi_conv_scatter for two parts of floats and a horizontal stride of 2: `even` has the even columns of `rows`
   rows of gx, `odd` has the odd columns. */
static void opdi_conv_merge(const opdi_conv *conv, int64_t rows, int64_t first, const char *even, const char *odd,
                            char *gx) {
    const int64_t w = conv->w;
    for (int64_t row = 0; row < conv->n * conv->c * rows; row++) {
        const float *a = (const float *)(const void *)even + row * ((w + 1) / 2);
        const float *b = (const float *)(const void *)odd + row * (w / 2);
        float *const to = (float *)(void *)gx + (row / rows * conv->h + first + row % rows * conv->sh) * w;
        int64_t x = 0;
#if defined(OPDI_X86) || defined(OPDI_NEON)
#if !defined(__clang__)
        const opdi_v4i mix_0415 = {0, 4, 1, 5}, mix_2637 = {2, 6, 3, 7};
#endif
        for (; x + 8 <= w; x += 8) {
            const opdi_v4f left = *(const opdi_v4f *)(const void *)(a + x / 2);
            const opdi_v4f right = *(const opdi_v4f *)(const void *)(b + x / 2);
            *(opdi_v4f *)(void *)(to + x) = OPDI_MIX4(left, right, 0, 4, 1, 5);
            *(opdi_v4f *)(void *)(to + x + 4) = OPDI_MIX4(left, right, 2, 6, 3, 7);
        }
#endif
        for (; x < w; x++) { to[x] = (x % 2 ? b : a)[x / 2]; }
    }
}
/* Returns true if the gradient of x can be computed in parts (see opdi_conv_part). */
static bool opdi_conv_has_parts(const opdi_conv *conv) {
    opdi_conv part;
    int64_t from[2];
    if (conv->dh != 1 || conv->dw != 1 || conv->sh * conv->sw < 2 || conv->sh * conv->sw > 64 || conv->cg < 8 ||
        conv->og < 8 || conv->kh + conv->kw < 3) { return false; }
    for (int64_t i = 0; i < conv->sh * conv->sw; i++) {
        if (opdi_conv_part(conv, i / conv->sw, i % conv->sw, &part, from) < 0) { return false; }
    }
    return true;
}
typedef struct opdi_conv_parts {
    opdi_conv conv;
    bool apart;                                   /* true: an item is a group of an image; false: there is one item */
    const char *gy, *weights;                     /* weights: for each part, [groups * cg, og, taps of the part] */
    char *gx;
    int failed;
} opdi_conv_parts;
/* Returns the number of bytes of the results of a part for an item, rounded up. */
static int64_t opdi_conv_parts_bytes(const opdi_conv_parts *parts) {
    const opdi_conv *conv = &parts->conv;
    const int64_t planes = parts->apart ? conv->cg : conv->n * conv->c;
    return opdi_round_up(planes * ((conv->h - 1) / conv->sh + 1) * ((conv->w - 1) / conv->sw + 1) *
                         (int64_t)conv->size, 64);
}
/* Computes the rows y, y + stride, y + 2 stride, ... of gx for the item and the group that `conv` and `group` describe.
   *weights points to the weights of these rows, and is set to their end.  `work` is scratch memory for the results of
   two parts.  Returns 0, or -1 and sets an error. */
static int opdi_conv_parts_row(const opdi_conv_parts *parts, const opdi_conv *conv, int64_t group, int64_t y,
                               const char *gy, const char **weights, char *work, char *gx) {
    const int64_t bytes = opdi_conv_parts_bytes(parts), channels = conv->cg * conv->og * (int64_t)conv->size;
    opdi_conv part[2];
    int64_t from[2][2], found = 0;                /* parts whose results are in `work` */
    for (int64_t x = 0; x < conv->sw; x++) {
        const int exists = opdi_conv_part(conv, y, x, &part[found], from[found]);
        const int64_t taps = OPDI_MAX(part[found].kh, 0) * OPDI_MAX(part[found].kw, 0);
        const char *const turned = *weights + group * channels * taps;
        *weights += parts->conv.groups * channels * taps;
        if (exists == 0) { continue; }
        if (opdi_conv_any(&part[found], gy, turned, NULL, work + found * bytes)) { return -1; }
        found++;
        if (found == 2 && conv->sw == 2 && conv->size == 4) {
            const int64_t second = from[0][1] == 0;
            opdi_conv_merge(conv, part[0].oh, from[0][0], work + (1 - second) * bytes, work + second * bytes, gx);
            return 0;
        }
        if (conv->sw != 2 || conv->size != 4) { found = 0; }
        if (found == 0) { opdi_conv_scatter(conv, &part[0], from[0], work, gx); }
    }
    if (found == 1) { opdi_conv_scatter(conv, &part[0], from[0], work, gx); }
    return 0;
}
/* Computes gx for items [begin, end) of ctx, an opdi_conv_parts. */
static void opdi_conv_parts_range(void *ctx, int64_t begin, int64_t end) {
    opdi_conv_parts *parts = (opdi_conv_parts *)ctx;
    const opdi_conv *all = &parts->conv;
    const int64_t size = (int64_t)all->size, bytes = 2 * opdi_conv_parts_bytes(parts);
    opdi_conv conv = *all;
    char *const work = opdi_scratch_alloc((size_t)bytes);
    if (parts->apart) {
        conv.n = conv.groups = 1;
        conv.c = all->cg;
        conv.oc = all->og;
    }
    for (int64_t item = begin; work && item < end; item++) {
        const char *weights = parts->weights, *const gy = parts->gy + item * all->og * all->oh * all->ow * size;
        char *const gx = parts->gx + item * all->cg * all->h * all->w * size;
        for (int64_t y = 0; y < all->sh; y++) {
            if (opdi_conv_parts_row(parts, &conv, item % all->groups, y, gy, &weights, work, gx)) {
                OPDI_STORE(&parts->failed, 1);
            }
        }
    }
    if (!work) { OPDI_STORE(&parts->failed, 1); }
    else { opdi_scratch_free(work, (size_t)bytes); }
}
/* Computes gx from gy and the weights in parts (see opdi_conv_part).  Returns 0, or -1 and sets an error. */
static int opdi_conv_grad_parts(const opdi_conv *conv, const void *gy, const void *weights, void *gx) {
    const int64_t size = (int64_t)conv->size, channels = conv->oc * conv->cg * size;
    const size_t bytes = (size_t)(channels * conv->kh * conv->kw);
    opdi_conv_parts parts;
    char *const turned = opdi_scratch_alloc(bytes);
    if (!turned) { return -1; }
    memset(&parts, 0, sizeof parts);
    parts.conv = *conv;
    parts.apart = conv->oh * conv->ow >= 128;
    parts.gy = (const char *)gy;
    parts.weights = turned;
    parts.gx = (char *)gx;
    if (conv->kh < conv->sh || conv->kw < conv->sw) {
        memset(gx, 0, (size_t)(conv->n * conv->c * conv->h * conv->w * size));
    }
    char *to = turned;
    for (int64_t i = 0; i < conv->sh * conv->sw; i++) {
        opdi_conv part;
        int64_t from[2];
        (void)opdi_conv_part(conv, i / conv->sw, i % conv->sw, &part, from);
        if (part.kh <= 0 || part.kw <= 0) { continue; }
        opdi_conv_transpose_weights(conv, (const char *)weights, i / conv->sw, i % conv->sw, to);
        to += channels * part.kh * part.kw;
    }
    opdi_parallel_for_scratch(parts.apart ? conv->n * conv->groups : 1, 1, opdi_conv_parts_range, &parts,
                              OPDI_SCRATCH_BYTES((size_t)(2 * opdi_conv_parts_bytes(&parts))));
    opdi_scratch_free(turned, bytes);
    return opdi_conv_done(&parts.failed);
}

/* Returns true if all of `count` numbers of `size` bytes (4: float, 8: double) are finite.  The exponent bits of an
   infinity or NaN are all ones. */
OPDI_INTERNAL bool opdi_conv_finite(size_t size, int64_t count, const void *numbers) {
    const opdi_word32 *const word = (const opdi_word32 *)numbers;
    const opdi_word64 *const twice = (const opdi_word64 *)numbers;
    uint32_t found[16] = {0}, all = 0;
    int64_t i = 0;
    for (; size == 8 && i < count; i++) { all |= (twice[i] >> 52 & 0x7ff) == 0x7ff; }
    for (; i + 16 <= count; i += 16) {
        for (int lane = 0; lane < 16; lane++) { found[lane] |= (word[i + lane] & 0x7f800000u) + 0x00800000u; }
    }
    for (int lane = 0; lane < 16; lane++) { all |= found[lane] & 0x80000000u; }
    for (; i < count; i++) { all |= (word[i] & 0x7f800000u) == 0x7f800000u; }
    return all == 0;
}
/* Computes gx from gy and the weights by folding, see opdi_fold_add.  Each gradient is multiplied only by the taps
   that read x, so infinite weights are not multiplied by padding.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_conv_grad_folded(const opdi_conv *conv, const void *gy, const void *weights, void *gx) {
    opdi_conv_job job;
    memset(&job, 0, sizeof job);
    job.conv = *conv;
    job.gy = (const char *)gy;
    job.weight = (const char *)weights;
    job.gx = (char *)gx;
    const int64_t depth = conv->cg * conv->kh * conv->kw, count = opdi_conv_fold_step(conv) * conv->ow;
    const size_t bytes = (size_t)(opdi_conv_pad_bytes(conv, conv->cg) + depth * count * (int64_t)conv->size);
    opdi_parallel_for_scratch(conv->n * conv->groups, 1, opdi_conv_fold_range, &job,
                              OPDI_SCRATCH_BYTES(bytes) + opdi_gemm_scratch_size(conv->size, depth, count, conv->og));
    return opdi_conv_done(&job.failed);
}
/* Computes gx from gy and the weights: as a convolution of gy with the flipped weights if the stride is 1 and there are
   enough channels for a product, otherwise in parts or by folding.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_conv_grad_input(const opdi_conv *conv, const void *gy, const void *weights, void *gx) {
    int64_t ph = conv->dh * (conv->kh - 1) - conv->ph, pw = conv->dw * (conv->kw - 1) - conv->pw;
    if (conv->n <= 0 || conv->c <= 0 || conv->h <= 0 || conv->w <= 0) { return 0; }
    if (conv->sh == 1 && conv->sw == 1 && ph >= 0 && pw >= 0 && (conv->cg >= 8 || conv->og == 1 || conv->groups > 1)) {
        opdi_conv other = *conv;
        size_t bytes = (size_t)(conv->oc * conv->cg * conv->kh * conv->kw) * conv->size;
        other.c = conv->oc;
        other.h = conv->oh;
        other.w = conv->ow;
        other.oc = conv->c;
        other.ph = ph;
        other.pw = pw;
        if (opdi_conv_init(&other)) { return -1; }
        char *turned = opdi_scratch_alloc(bytes);
        if (!turned) { return -1; }
        opdi_conv_flip(conv, (const char *)weights, turned);
        int rc = opdi_conv_any(&other, gy, turned, NULL, gx);
        opdi_scratch_free(turned, bytes);
        return rc;
    }
    if (opdi_conv_has_parts(conv)) { return opdi_conv_grad_parts(conv, gy, weights, gx); }
    return opdi_conv_grad_folded(conv, gy, weights, gx);
}

/* Returns the number of images over which a single matrix product sums the gradient of the weight. */
static int64_t opdi_conv_summed(const opdi_conv *conv) {
    const int64_t bytes = OPDI_MAX(opdi_conv_pad_bytes(conv, conv->cg), (int64_t)1);
    if (conv->cg == 1 && conv->og == 1) { return 1; }
    return OPDI_MAX(1, OPDI_MIN(OPDI_MIN(conv->n, 4096 / (conv->oh * conv->ow)), ((int64_t)8 << 20) / bytes));
}
/* Adds to `gw`, the gradient of the weights of group `group`, the contribution of images first .. first + images - 1.
   `pad` is scratch memory, which the caller has set to zeros.  Returns 0, or -1 if memory runs out. */
static int opdi_conv_gw_images(const opdi_conv_job *job, int64_t group, int64_t first, int64_t images, char *pad,
                               char *gw) {
    const opdi_conv *conv = &job->conv;
    const int64_t size = (int64_t)conv->size, depth = conv->cg * conv->kh * conv->kw, area = conv->oh * conv->ow;
    const int64_t bytes = opdi_conv_pad_bytes(conv, conv->cg), plane = conv->h * conv->w;
    const int dtype = size == 4 ? OPD_FLOAT32 : OPD_FLOAT64;
    const char *const gy = job->gy + (first * conv->oc + group * conv->og) * area * size;
    opdi_unfold unfold;
    unfold.conv = conv;
    unfold.pad = pad;
    unfold.image = bytes / size;
    unfold.gy = gy;
    for (int64_t i = 0; i < images; i++) {
        opdi_conv_pad(conv, conv->cg, pad + i * bytes,
                      (char *)(uintptr_t)(job->input + ((first + i) * conv->c + group * conv->cg) * plane * size), 0);
    }
    if (conv->cg == 1 && conv->og == 1) {
        opdi_conv_depthwise_gw(conv, pad, gy, gw);
        return 0;
    }
    opdi_gemm_in left = opdi_gemm_in_of(gy, dtype, area, 1), right = opdi_gemm_in_of(NULL, dtype, 0, 0);
    left.exact = right.exact = conv->exact;
    right.pack = opdi_unfold_pack_transposed;
    left.ctx = right.ctx = &unfold;
    if (images > 1) { left.pack = opdi_unfold_pack_gy; }
    return opdi_gemm(conv->size, conv->og, depth, images * area, &left, &right, 1, gw, depth, 1);
}
/* Computes the weight gradients of items [begin, end) of ctx, an opdi_conv_job.  An item is one group of one part of
   the batch. */
static void opdi_conv_gw_range(void *ctx, int64_t begin, int64_t end) {
    opdi_conv_job *job = (opdi_conv_job *)ctx;
    const opdi_conv *conv = &job->conv;
    const int64_t size = (int64_t)conv->size, count = conv->og * conv->cg * conv->kh * conv->kw;
    const int64_t images = opdi_conv_summed(conv);
    const size_t bytes = (size_t)(images * opdi_conv_pad_bytes(conv, conv->cg));
    char *pad = (char *)opdi_alloc(bytes);
    if (!pad) {
        OPDI_STORE(&job->failed, 1);
        return;
    }
    memset(pad, 0, bytes);
    for (int64_t i = begin; i < end; i++) {
        const int64_t part = i / conv->groups, group = i % conv->groups, last = conv->n * (part + 1) / job->parts;
        char *gw = job->gw + (part * conv->groups + group) * count * size;
        memset(gw, 0, (size_t)(count * size));
        for (int64_t image = conv->n * part / job->parts; image < last; image += images) {
            if (opdi_conv_gw_images(job, group, image, OPDI_MIN(images, last - image), pad, gw)) {
                OPDI_STORE(&job->failed, 1);
            }
        }
    }
    opdi_free(pad, bytes);
}

/* Computes gw from gy and x.  The batch is cut into parts, whose number depends only on the sizes, and the sums of the
   parts are added in order, so that the result does not depend on the number of threads.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_conv_grad_weight(const opdi_conv *conv, const void *gy, const void *x, void *gw) {
    opdi_conv_job job;
    int64_t count = conv->oc * conv->cg * conv->kh * conv->kw, size = (int64_t)conv->size;
    if (count <= 0) { return 0; }
    memset(&job, 0, sizeof job);
    job.conv = *conv;
    job.gy = (const char *)gy;
    job.input = (const char *)x;
    job.parts = OPDI_MAX(1, OPDI_MIN(OPDI_MIN(conv->n, 8), ((int64_t)4 << 20) / (count * size)));
    size_t bytes = (size_t)(job.parts * count * size);
    job.gw = job.parts == 1 ? (char *)gw : (char *)opdi_alloc(bytes);
    if (!job.gw) { return -1; }
    opdi_parallel_for(job.parts * conv->groups, 1, opdi_conv_gw_range, &job);
    if (job.parts > 1) {
        memcpy(gw, job.gw, (size_t)(count * size));
        for (int64_t plane = 1; plane < job.parts; plane++) {
            for (int64_t i = 0; i < count; i++) {
                if (size == 4) { ((float *)gw)[i] += ((float *)(void *)job.gw)[plane * count + i]; }
                else { ((double *)gw)[i] += ((double *)(void *)job.gw)[plane * count + i]; }
            }
        }
        opdi_free(job.gw, bytes);
    }
    return opdi_conv_done(&job.failed);
}
