#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:pool      pooling
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN

//== pooling: windows and loops ========================================================================================

/* A pooling of planes with sizes in[3] to planes with sizes out[3].  The last nd dims are pooled; the dims before them
   have size 1.  Along dim i, the window of output o reads the elements lo[i][o], lo[i][o] + dilation[i] and so on,
   below hi[i][o].  An average is divided by `divisor` or, if that is 0, by the product of span[i][o] over the dims. */
typedef struct opdi_windows {
    int64_t planes, in[3], out[3], kernel[3], stride[3], pad[3], dilation[3];
    int64_t *lo[3], *hi[3], *span[3];
    int64_t divisor;                              /* if not 0, averages are divided by it */
    const char *from;                             /* forward: input; backward: gradient of the output */
    char *to;                                     /* forward: output; backward: gradient of the input */
    int64_t *at;                                  /* for each maximum, its position in its plane; or NULL */
    size_t bytes;                                 /* size of lo, hi and span together */
    int dtype, nd;
    int32_t bad;                                  /* set to 1 if a position is out of range */
} opdi_windows;

#define OPDI_POOL_EACH(v, a, b, c)                                                                          \
    for (a = 0; a < (v)->out[0]; a++) for (b = 0; b < (v)->out[1]; b++) for (c = 0; c < (v)->out[2]; c++)
/* Returns true if the windows are 2 x 2, do not overlap and lie inside of the plane.  For this usual case, there are
   loops without branches. */
static bool opdi_pool_is_2x2(const opdi_windows *windows) {
    if (windows->in[0] != 1 || windows->out[0] != 1) { return false; }
    for (int i = 1; i < 3; i++) {
        if (windows->kernel[i] != 2 || windows->stride[i] != 2 || windows->pad[i] != 0 || windows->dilation[i] != 1 ||
            windows->out[i] * 2 > windows->in[i]) {
            return false;
        }
    }
    return true;
}
OPDI_COLD_END
static inline int64_t opdi_pool_divisor(const opdi_windows *windows, int64_t first, int64_t second, int64_t channels) {
    return windows->divisor ? windows->divisor
        : windows->span[0][first] * windows->span[1][second] * windows->span[2][channels];
}
#define OPDI_POOL_WINDOW(value, first, second, c, i, j, k)                                                  \
    for (i = value->lo[0][first]; i < value->hi[0][first]; i++) for (j = value->lo[1][second];                        \
                                                                     j < value->hi[1][second]; j++)                   \
        for (k = value->lo[2][c]; k < value->hi[2][c]; k++)
static void opdi_max_pool_2x2_f32(const opdi_windows *windows, const float *x, float *y, int64_t *at);
static void opdi_max_pool_f32(const opdi_windows *windows, const float *x, float *y, int64_t *at);
static void opdi_max_pool_values_f32(const opdi_windows *windows, const float *x, float *y);
static void opdi_avg_pool_f32(const opdi_windows *windows, const float *x, float *y);
static void opdi_avg_pool_backward_f32(const opdi_windows *windows, const float *grad, float *gx);
static int opdi_max_pool_backward_f32(const opdi_windows *windows, const float *grad, const int64_t *at, float *gx);
static void opdi_max_pool_2x2_f64(const opdi_windows *windows, const double *x, double *y, int64_t *at);
static void opdi_max_pool_f64(const opdi_windows *windows, const double *x, double *y, int64_t *at);
static void opdi_max_pool_values_f64(const opdi_windows *windows, const double *x, double *y);
static void opdi_avg_pool_f64(const opdi_windows *windows, const double *x, double *y);
static void opdi_avg_pool_backward_f64(const opdi_windows *windows, const double *grad, double *gx);
static int opdi_max_pool_backward_f64(const opdi_windows *windows, const double *grad, const int64_t *at, double *gx);
static void opdi_max_pool_2x2_i64(const opdi_windows *windows, const int64_t *x, int64_t *y, int64_t *at);
static void opdi_max_pool_i64(const opdi_windows *windows, const int64_t *x, int64_t *y, int64_t *at);
static void opdi_max_pool_values_i64(const opdi_windows *windows, const int64_t *x, int64_t *y);
static void opdi_avg_pool_i64(const opdi_windows *windows, const int64_t *x, int64_t *y);
#include "../../typed/f32.h"
#include "pool_windows.typed.h"
#include "../../typed/f64.h"
#include "pool_windows.typed.h"
#include "../../typed/i64.h"
#include "pool_windows.typed.h"
#include "../../typed/end.h"

enum { OPDI_POOL_MAX, OPDI_POOL_VALUES, OPDI_POOL_AVG, OPDI_POOL_MAX_BACKWARD, OPDI_POOL_AVG_BACKWARD };
typedef struct opdi_pool_job { opdi_windows *windows; int what; } opdi_pool_job;
OPDI_COLD_BEGIN
/* Pools planes [begin, end) of ctx, an opdi_pool_job, forward or backward, with the loops for its dtype.  Sets `bad` of
   the windows if a position in `at` is outside of its plane. */
static void opdi_pool_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_pool_job *job = (const opdi_pool_job *)ctx;
    opdi_windows *windows = job->windows;
    const bool back = job->what >= OPDI_POOL_MAX_BACKWARD,
        quick = job->what == OPDI_POOL_MAX && opdi_pool_is_2x2(windows);
    const int64_t size = windows->dtype == OPD_FLOAT32 ? 4 : 8, in = opdi_vol_area(windows->in),
        out = opdi_vol_area(windows->out);
    for (int64_t i = begin; i < end; i++) {
        const void *x = windows->from + i * (back ? out : in) * size;
        void *y = windows->to + i * (back ? in : out) * size;
        int64_t *at = windows->at ? windows->at + i * out : NULL;
        int bad = 0;
        if (back) { memset(y, 0, (size_t)(in * size)); }
        if (windows->dtype == OPD_FLOAT32) {
            const float *from = (const float *)x;
            float *there = (float *)y;
            if (quick) { opdi_max_pool_2x2_f32(windows, from, there, at); }
            else if (job->what == OPDI_POOL_MAX) { opdi_max_pool_f32(windows, from, there, at); }
            else if (job->what == OPDI_POOL_VALUES) { opdi_max_pool_values_f32(windows, from, there); }
            else if (job->what == OPDI_POOL_AVG) { opdi_avg_pool_f32(windows, from, there); }
            else if (job->what == OPDI_POOL_AVG_BACKWARD) { opdi_avg_pool_backward_f32(windows, from, there); }
            else { bad = opdi_max_pool_backward_f32(windows, from, at, there); }
        } else if (windows->dtype == OPD_FLOAT64) {
            const double *from = (const double *)x;
            double *there = (double *)y;
            if (quick) { opdi_max_pool_2x2_f64(windows, from, there, at); }
            else if (job->what == OPDI_POOL_MAX) { opdi_max_pool_f64(windows, from, there, at); }
            else if (job->what == OPDI_POOL_VALUES) { opdi_max_pool_values_f64(windows, from, there); }
            else if (job->what == OPDI_POOL_AVG) { opdi_avg_pool_f64(windows, from, there); }
            else if (job->what == OPDI_POOL_AVG_BACKWARD) { opdi_avg_pool_backward_f64(windows, from, there); }
            else { bad = opdi_max_pool_backward_f64(windows, from, at, there); }
        } else {
            const int64_t *ints = (const int64_t *)x;
            int64_t *to = (int64_t *)y;
            if (quick) { opdi_max_pool_2x2_i64(windows, ints, to, at); }
            else if (job->what == OPDI_POOL_MAX) { opdi_max_pool_i64(windows, ints, to, at); }
            else if (job->what == OPDI_POOL_VALUES) { opdi_max_pool_values_i64(windows, ints, to); }
            else { opdi_avg_pool_i64(windows, ints, to); }
        }
        if (bad) { OPDI_STORE(&windows->bad, 1); }
    }
}

//== pooling: arguments ================================================================================================

/* Reads `list`, the argument `name` of operator `op`, into the last ndim elements of out[3], and sets the elements
   before them to `fill`.  The list has ndim numbers, or one number, which is used for all ndim dims.  If `otherwise`
   is not NULL, the list may also be empty; then out becomes a copy of otherwise[3].  Returns 0, or -1 and sets an
   error. */
static int opdi_pool_list(const char *op, const char *name, opd_ints list, int ndim, int64_t *out, int64_t fill,
                          const int64_t *otherwise) {
    static const char *const words[] = {"", "one", "two", "three"};
    for (int i = 0; i < 3; i++) { out[i] = fill; }
    if (otherwise && list.n == 0) {
        memcpy(out, otherwise, 3 * sizeof *out);
        return 0;
    }
    if (list.n != 1 && list.n != ndim) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s must %shave one element, or %s", op, name, otherwise
                        ? "either be empty, " : "either ", words[ndim]);
    }
    for (int i = 0; i < ndim; i++) { out[3 - ndim + i] = list.data[list.n == 1 ? 0 : i]; }
    return 0;
}
/* Sets windows->out[i] to the number of windows along dim i (at::native::pooling_output_shape).  Returns 0, or -1
   and sets an error. */
static int opdi_pool_count(opdi_windows *windows, int i, bool ceil_mode) {
    const int64_t big = (int64_t)1 << 31;
    if (windows->kernel[i] < 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "kernel size should be greater than zero, but got %lld",
                        (long long)windows->kernel[i]);
    }
    if (windows->stride[i] < 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, windows->stride[i] ? "stride should be greater than zero"
                        : "stride should not be zero");
    }
    if (windows->dilation[i] < 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "dilation should be greater than zero, but got %lld",
                        (long long)windows->dilation[i]);
    }
    if (windows->pad[i] < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "pad must be non-negative, but got pad: %lld", (long long)windows->pad[i]);
    }
    int64_t reach = windows->kernel[i] < big && windows->dilation[i] < big
        ? windows->dilation[i] * (windows->kernel[i] - 1) + 1 : 0;
    if (reach == 0 || windows->stride[i] >= big || windows->pad[i] > reach / 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "pad should be at most half of effective kernel size, but got pad=%lld, "
                        "kernel_size=%lld and dilation=%lld",
                        (long long)windows->pad[i], (long long)windows->kernel[i], (long long)windows->dilation[i]);
    }
    int64_t count = opdi_floor_div(windows->in[i] + 2 * windows->pad[i] - reach + (ceil_mode ? windows->stride[i] - 1
        : 0), windows->stride[i]) + 1;
    if (ceil_mode && (count - 1) * windows->stride[i] >= windows->in[i] + windows->pad[i]) { count--; }
    windows->out[i] = count;
    return 0;
}
/* Reads the sizes of `input`, whose batch may be empty, into *windows.  `adaptive` selects the texts of errors.
   Returns 0, or -1 and sets an error. */
static int opdi_pool_input(opdi_windows *windows, const opd_tensor *input, int ndim, const char *name, bool adaptive) {
    const int64_t *sizes = opdi_sizes(input);
    char text[256];
    int i;
    bool good = input->ndim == ndim + 1 || input->ndim == ndim + 2;
    opdi_sizes_text(sizes, input->ndim, text, sizeof text);
    if (adaptive && !good) {
        return opd_fail(OPD_ERROR_SHAPE, "%s(): Expected %dD or %dD tensor, but got %s", name, ndim + 1, ndim + 2,
                        text);
    }
    for (i = adaptive ? input->ndim - ndim : input->ndim - ndim - 1; good && i < input->ndim; i++) {
        good = sizes[i] > 0;
        if (!good && adaptive) {
            return opd_fail(OPD_ERROR_SHAPE, "%s(): Expected input to have non-zero size for non-batch dimensions, "
                            "but input has sizes %s with dimension %d being empty", name, text, i);
        }
    }
    if (!good) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected %dD or %dD (batch mode) tensor with optional 0 dim batch size for "
                        "input, but got:%s", ndim + 1, ndim + 2, text);
    }
    windows->nd = ndim;
    for (windows->planes = 1, i = 0; i < input->ndim - ndim; i++) { windows->planes *= sizes[i]; }
    for (i = 0; i < 3; i++) {
        windows->in[i] = i < 3 - ndim ? 1 : sizes[input->ndim - 3 + i];
        windows->dilation[i] = 1;
        windows->stride[i] = windows->kernel[i] = windows->out[i] = 1;
    }
    return 0;
}
/* Reads kernel_size, stride, padding and, if `maximum` is true, dilation into *windows; they are the arguments from
   number `first` on.  Argument number ceil_at is ceil_mode.  Returns 0, or -1 and sets an error. */
static int opdi_pool_read(const opd_call *call, int first, opdi_windows *windows, const opd_tensor *input, int ndim,
                          const char *name, bool maximum, int ceil_at) {
    char left[96], second[96];
    memset(windows, 0, sizeof *windows);
    if (input->ndim < ndim || opdi_pool_input(windows, input, ndim, name, false) != 0) {
        return opd_ok() ? opd_fail(OPD_ERROR_SHAPE, "non-empty %dD or %dD (batch mode) tensor expected for input",
                                   ndim + 1, ndim + 2) : -1;
    }
    if (opdi_pool_list(name, "kernel_size", opd_arg_ints(call, first), ndim, windows->kernel, 1, NULL) != 0 ||
        opdi_pool_list(name, "stride", opd_arg_ints(call, first + 1), ndim, windows->stride, 1, windows->kernel) != 0 ||
        opdi_pool_list(name, "padding", opd_arg_ints(call, first + 2), ndim, windows->pad, 0, NULL) != 0 ||
        (maximum && opdi_pool_list(name, "dilation", opd_arg_ints(call, first + 3), ndim, windows->dilation, 1,
                                   NULL) != 0)) {
            return -1;
            }
    for (int i = 3 - ndim; i < 3; i++) {
        if (opdi_pool_count(windows, i, opd_arg_bool(call, ceil_at)) != 0) { return -1; }
    }
    for (int i = 3 - ndim; i < 3; i++) {
        if (windows->out[i] < 1) {
            const long long c = (long long)opdi_sizes(input)[input->ndim - ndim - 1];
            return opd_fail(OPD_ERROR_SHAPE, "Given input size: (%lldx%s). Calculated output size: (%lldx%s). Output "
                            "size is too small", c, opdi_by_text(windows->in + 3 - ndim, ndim, left), c,
                            opdi_by_text(windows->out + 3 - ndim, ndim, second));
        }
    }
    return 0;
}
/* Allocates lo, hi and span of *windows and fills them in.  If `adaptive` is true, the windows divide the input
   evenly.  If include_pad is true, spans include the padding.  Returns 0, or -1 and sets an error. */
static int opdi_windows_make(opdi_windows *windows, bool adaptive, bool include_pad) {
    int64_t *at;
    windows->bytes = 3 * sizeof *at * ((size_t)windows->out[0] + (size_t)windows->out[1] + (size_t)windows->out[2]);
    at = (int64_t *)(void *)opdi_scratch_alloc(windows->bytes);
    if (!at) { return -1; }
    for (int i = 0; i < 3; i++) {
        const int64_t count = windows->out[i], in = windows->in[i], depth = windows->kernel[i],
            dim = windows->dilation[i];
        windows->lo[i] = at;
        windows->hi[i] = at + count;
        windows->span[i] = at + 2 * count;
        at += 3 * count;
        for (int64_t o = 0; o < count; o++) {
            int64_t lo = o * windows->stride[i] - windows->pad[i], hi = lo + dim * (depth - 1) + 1,
                full = OPDI_MIN(lo + depth, in + windows->pad[i]) - lo;
            if (adaptive) {
                lo = o / count * in + o % count * in / count;
                hi = 1 + ((o + 1) * in - 1) / count;
                full = 0;
            }
            if (lo < 0) { lo += (dim - 1 - lo) / dim * dim; }
            hi = OPDI_MIN(hi, in);
            windows->lo[i][o] = lo;
            windows->hi[i][o] = hi;
            windows->span[i][o] = include_pad ? full : hi - lo;
        }
    }
    return 0;
}
static int opdi_windows_run(opdi_windows *windows, int what, bool adaptive, bool include_pad) {
    opdi_pool_job job;
    const int64_t work = opdi_vol_area(windows->in) + opdi_vol_area(windows->out);
    if (opdi_windows_make(windows, adaptive, include_pad) != 0) { return -1; }
    job.windows = windows;
    job.what = what;
    opdi_parallel_for(windows->planes, OPDI_MAX((int64_t)1, OPDI_GRAIN / OPDI_MAX((int64_t)1, work)), opdi_pool_range,
                      &job);
    opdi_scratch_free((char *)windows->lo[0], windows->bytes);
    return windows->bad ? opd_fail(OPD_ERROR_INDEX, "an element of indices is out of range") : 0;
}
/* Sets `sizes` to the sizes of the pooling's output for `input`. */
static void opdi_pool_sizes(const opdi_windows *windows, const opd_tensor *input, int64_t *sizes) {
    for (int i = 0; i < input->ndim; i++) {
        sizes[i] = i < input->ndim - windows->nd ? opdi_sizes(input)[i] : windows->out[3 - input->ndim + i];
    }
}
/* Returns true if the result of a pooling of `nd` dims, or its gradient, is stored channels last, as `input` is.  In
   PyTorch, all poolings of 2 dims do this, but only max_pool3d of the poolings of 3 dims. */
static bool opdi_pool_is_last(const opd_tensor *input, int nd, bool maximum, bool adaptive) {
    return input->ndim == nd + 2 && (nd == 2 || (maximum && !adaptive)) && opdi_is_channels_last(input);
}
/* Pools `input` by the windows in *windows.  If `maximum` is true, this is a max_pool, whose result 1, if the operator
   has one, has the positions; else it is an avg_pool.  If `ints` is true, integers are allowed.  `name` is the
   operator's name in errors.  Returns 0, or -1 and sets an error. */
static int opdi_pool_forward(opd_call *call, opdi_windows *windows, opd_tensor *input, bool maximum, bool adaptive,
                             bool include_pad, bool ints, const char *name) {
    int64_t sizes[8];
    const bool places = maximum && call->op->nrets == 2;
    const int what = !maximum ? OPDI_POOL_AVG : places ? OPDI_POOL_MAX : OPDI_POOL_VALUES;
    const bool last = opdi_pool_is_last(input, windows->nd, maximum, adaptive);
    const int t = opdi_kernel_dtype(OPDI_DTYPE(input), ints, name);
    opd_tensor *at = NULL, *to = NULL;
    if (t < 0) { return -1; }
    opdi_pool_sizes(windows, input, sizes);
    opd_tensor *out = opdi_result_format(call, 0, last, sizes, input->ndim, OPDI_DTYPE(input));
    if (places) { at = opdi_result_format(call, 1, last, sizes, input->ndim, OPD_INT64); }
    if (!out || (places && !at)) { return -1; }
    if (!out->data || out->numel == 0) { return 0; }
    windows->dtype = t;
    input = opdi_dense_as(input, (opd_scalar_type)t);
    opd_tensor *output = opdi_staging(out, (opd_scalar_type)t);
    if (places) { to = opdi_staging(at, OPD_INT64); }
    if (!input || !output || (places && !to)) { return -1; }
    windows->from = input->data;
    windows->to = output->data;
    windows->at = to ? (int64_t *)(void *)to->data : NULL;
    if (opdi_windows_run(windows, what, adaptive, include_pad) != 0 || opdi_staging_store(out, output) != 0) {
        return -1;
    }
    return places ? opdi_staging_store(at, to) : 0;
}
/* Computes result 0, the gradient of a pooling with respect to `input`.  `at` has the positions of the maxima, or is
   NULL for an average.  Returns 0, or -1 and sets an error. */
static int opdi_pool_backward(opd_call *call, opdi_windows *windows, opd_tensor *grad, opd_tensor *input,
                              opd_tensor *at, bool adaptive, bool include_pad, const char *name) {
    int64_t sizes[8];
    const int t = opdi_kernel_dtype(OPDI_DTYPE(input), false, name);
    if (t < 0) { return -1; }
    if (grad->dtype != input->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "expected dtype %s for `grad_output` but got dtype %s",
                        opd_dtype_name(OPDI_DTYPE(input)), opd_dtype_name(OPDI_DTYPE(grad)));
    }
    opdi_pool_sizes(windows, input, sizes);
    if (opdi_conv_same_sizes(grad, sizes, input->ndim) != 0 ||
        (at && opdi_conv_same_sizes(at, sizes, input->ndim) != 0)) {
        return -1;
    }
    if (at && at->dtype != OPD_INT64) {
        return opd_fail(OPD_ERROR_DTYPE, "expected scalar type int64 but found %s", opd_dtype_name(OPDI_DTYPE(at)));
    }
    opd_tensor *out = opdi_result_format(call, 0, opdi_pool_is_last(input, windows->nd, at != NULL, adaptive),
                                         opdi_sizes(input), input->ndim, OPDI_DTYPE(input));
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    windows->dtype = t;
    grad = opdi_dense_as(grad, (opd_scalar_type)t);
    opd_tensor *output = opdi_staging(out, (opd_scalar_type)t);
    if (at) {
        at = opdi_dense_as(at, OPD_INT64);
        if (!at) { return -1; }
    }
    if (!grad || !output) { return -1; }
    windows->from = grad->data;
    windows->to = output->data;
    windows->at = at ? (int64_t *)(void *)at->data : NULL;
    if (opdi_windows_run(windows, at ? OPDI_POOL_MAX_BACKWARD : OPDI_POOL_AVG_BACKWARD, adaptive, include_pad) != 0) {
        return -1;
    }
    return opdi_staging_store(out, output);
}

//== max_pool2d, max_pool3d ============================================================================================

/* Returns the elements of `input` at the positions `at`, with the sizes of `at`.  A position is an index into the last
   ndim dims of `input`, the pooled dims, as one flattened dim. */
static opd_tensor *opdi_pool_pick(opd_tensor *input, opd_tensor *at, int ndim) {
    int64_t flat[OPD_MAX_DIMS], rest[OPD_MAX_DIMS];
    int i;
    if (!input || !at || input->ndim < ndim || at->ndim < ndim) { return NULL; }
    int count = input->ndim - ndim;
    for (i = 0; i < count; i++) { flat[i] = rest[i] = opdi_sizes(input)[i]; }
    for (flat[count] = 1; i < input->ndim; i++) { flat[count] *= opdi_sizes(input)[i]; }
    for (rest[count] = 1, i = count; i < at->ndim; i++) { rest[count] *= opdi_sizes(at)[i]; }
    opd_tensor *const shaped = opdi_reshape_to(input, flat, count + 1);
    input = opd_gather(shaped, -1, opdi_reshape_to(at, rest, count + 1));
    return opdi_reshape_to(input, opdi_sizes(at), at->ndim);
}
/* The kernel of max_pool2d_with_indices (ndim is 2) and max_pool3d_with_indices (ndim is 3), and of max_pool1d,
   max_pool2d and max_pool3d if only the values are needed. */
static int opdi_max_pool_of(opd_call *call, int ndim) {
    const char *name = ndim == 1 ? "max_pool1d" : ndim == 2 ? "max_pool2d" : "max_pool3d";
    opd_tensor *input = opd_arg_tensor(call, 0);
    opdi_windows windows;
    if (opdi_pool_read(call, 1, &windows, input, ndim, name, true, 5) != 0) { return -1; }
    return opdi_pool_forward(call, &windows, input, true, false, false, true, name);
}
static int opdi_max_pool_backward_of(opd_call *call, int ndim) {
    opd_tensor *input = opd_arg_tensor(call, 1);
    opdi_windows windows;
    if (opdi_pool_read(call, 2, &windows, input, ndim, ndim == 2 ? "max_pool2d" : "max_pool3d", true, 6) != 0) {
        return -1;
    }
    return opdi_pool_backward(call, &windows, opd_arg_tensor(call, 0), input, opd_arg_tensor(call, 7), false, false,
                              ndim == 2 ? "max_pool2d_backward" : "max_pool3d_backward");
}
static int opdi_max_pool_gradient(opd_backward_call *bw, int ndim) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *input = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0,
                         (ndim == 2 ? opd_max_pool2d_with_indices_backward
                          : opd_max_pool3d_with_indices_backward) (grad, input, opd_bw_ints(bw, 1),
                                                                   opd_bw_ints(bw, 2), opd_bw_ints(bw, 3),
                                                                   opd_bw_ints(bw, 4), opd_bw_value(bw, 5).u.i != 0,
                                                                   opd_bw_result(bw, 1)));
}
/* The backward function of the operator that computes the gradient of a max_pool.  The gradient of its grad_output has
   the elements of grad at the positions, which are argument number `at`; the gradient of self is 0. */
static int opdi_max_pool_backward_gradient(opd_backward_call *bw, int ndim, int at) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, opdi_pool_pick(grad, opd_bw_tensor(bw, at), ndim));
    OPDI_BW_RETURN(1, opd_zeros_like(grad));
    return 0;
}
/* Returns true if only the values of a max_pool are needed, and not the positions of the maxima: if nothing but the
   kernel handles the call. */
static bool opdi_max_pool_plain(const opd_call *call) {
    return opdi_nothing_follows() && opdi_in_memory(opd_arg_tensor(call, 0)) && !opd_call_requires_grad(call);
}
static int opdi_max_pool_without(opd_call *call, int ndim) {
    opd_tensor *rets[2];
    if (opdi_max_pool_plain(call)) { return opdi_max_pool_of(call, ndim); }
    if ((ndim == 2 ? opd_max_pool2d_with_indices_full : opd_max_pool3d_with_indices_full)
        (rets, opd_arg_tensor(call, 0), opd_arg_ints(call, 1), opd_arg_ints(call, 2), opd_arg_ints(call, 3),
         opd_arg_ints(call, 4), opd_arg_bool(call, 5)) != 0) { return -1; }
    return opd_return_tensor(call, rets[0]);
}
static int opdi_max_pool2d_with_indices_kernel(opd_call *call) { return opdi_max_pool_of(call, 2); }
static int opdi_max_pool3d_with_indices_kernel(opd_call *call) { return opdi_max_pool_of(call, 3); }
static int opdi_max_pool2d_with_indices_backward(opd_backward_call *bw) { return opdi_max_pool_gradient(bw, 2); }
static int opdi_max_pool3d_with_indices_backward(opd_backward_call *bw) { return opdi_max_pool_gradient(bw, 3); }
static int opdi_max_pool2d_with_indices_backward_kernel(opd_call *call) { return opdi_max_pool_backward_of(call, 2); }
static int opdi_max_pool3d_with_indices_backward_kernel(opd_call *call) { return opdi_max_pool_backward_of(call, 3); }
static int opdi_max_pool2d_with_indices_backward_backward(opd_backward_call *bw) {
    return opdi_max_pool_backward_gradient(bw, 2, 7);
}
static int opdi_max_pool3d_with_indices_backward_backward(opd_backward_call *bw) {
    return opdi_max_pool_backward_gradient(bw, 3, 7);
}
static int opdi_max_pool2d_kernel(opd_call *call) { return opdi_max_pool_without(call, 2); }
static int opdi_max_pool3d_kernel(opd_call *call) { return opdi_max_pool_without(call, 3); }
/* opd_max_pool2d_with_indices(self, kernel_size, stride, padding): the greatest element of each window [.., H, W], and
   its position in the plane */
OPDI_OP(max_pool2d_with_indices) {
    op->schema = "max_pool2d_with_indices(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] "
        "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)";
    op->cpu = op->fake = opdi_max_pool2d_with_indices_kernel; op->backward = opdi_max_pool2d_with_indices_backward;
    op->save = "self, result1";
    op->vmap = opdi_batch_fold_2d; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "max_pool2d_with_indices.out(out, indices)";
    op->cases = "[1,2,4,4], (2,2); [2,5,5], 3, 2, 1, 1, True; [1,1,6,6], 2, 1, 0, 2";
}
/* opd_max_pool3d_with_indices(self, kernel_size, stride, padding): the greatest element of each window [.., D, H, W],
   and its position */
OPDI_OP(max_pool3d_with_indices) {
    op->schema = "max_pool3d_with_indices(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] "
        "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)";
    op->cpu = op->fake = opdi_max_pool3d_with_indices_kernel; op->backward = opdi_max_pool3d_with_indices_backward;
    op->save = "self, result1";
    op->vmap = opdi_batch_fold_3d; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "max_pool3d_with_indices.out(out, indices)";
    op->cases = "[1,2,4,4,4], 2";
}
/* opd_max_pool2d_with_indices_backward: derivative of max_pool2d_with_indices */
OPDI_OP(max_pool2d_with_indices_backward) {
    op->schema = "max_pool2d_with_indices_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] "
        "stride, int[2] padding, int[2] dilation, bool ceil_mode, Tensor indices) -> Tensor";
    op->cpu = op->fake = opdi_max_pool2d_with_indices_backward_kernel;
    op->backward = opdi_max_pool2d_with_indices_backward_backward; op->save = "indices";
    op->vmap = opdi_batch_fold_2d; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "max_pool2d_with_indices_backward.grad_input(grad_input)";
    op->cases = "[1,2,2,2], [1,2,4,4], 2, 2, 0, 1, False, [1,2,2,2]i16";
}
/* opd_max_pool3d_with_indices_backward: derivative of max_pool3d_with_indices */
OPDI_OP(max_pool3d_with_indices_backward) {
    op->schema = "max_pool3d_with_indices_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] "
        "stride, int[3] padding, int[3] dilation, bool ceil_mode, Tensor indices) -> Tensor";
    op->cpu = op->fake = opdi_max_pool3d_with_indices_backward_kernel;
    op->backward = opdi_max_pool3d_with_indices_backward_backward; op->save = "indices";
    op->vmap = opdi_batch_fold_3d; op->flops = opdi_flops_elements;
    op->out = "max_pool3d_with_indices_backward.grad_input(grad_input)";
    op->cases = "[1,2,2,2,2], [1,2,4,4,4], 2, 2, 0, 1, False, [1,2,2,2,2]i64";
}
/* opd_max_pool2d(self, kernel_size, stride, padding): the greatest element of each window [.., H, W] */
OPDI_OP(max_pool2d) {
    op->schema = "max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, "
        "bool ceil_mode=False) -> Tensor";
    op->composite = opdi_max_pool2d_kernel;
    op->cases = "[1,2,4,4], 2";
}
/* opd_max_pool3d(self, kernel_size, stride, padding): the greatest element of each window [.., D, H, W] */
OPDI_OP(max_pool3d) {
    op->schema = "max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, "
        "bool ceil_mode=False) -> Tensor";
    op->composite = opdi_max_pool3d_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->cases = "[1,2,4,4,4], 2";
}

/* Memory for a list for two dims that is made from a list for one dim: (n) becomes (first, n). */
typedef struct opdi_pair { int64_t values[2]; } opdi_pair;
static opd_ints opdi_pair_of(opd_ints list, int64_t first, opdi_pair *pair) {
    pair->values[0] = first;
    pair->values[1] = list.n ? list.data[0] : 0;
    return opd_ints_of(pair->values, list.n ? 2 : 0);
}
static int opdi_pool1d_check(const opd_call *call, const char *name, int lists) {
    static const char *const names[] = {"", "kernel_size", "stride", "padding", "dilation"};
    const opd_tensor *input = opd_arg_tensor(call, 0);
    if (input->ndim != 2 && input->ndim != 3) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected 2 to 3 dimensions, but got %d-dimensional tensor for argument #1 "
                        "'self' (while checking arguments for %s)", input->ndim, name);
    }
    for (int i = 1; i <= lists; i++) {
        const opd_ints list = opd_arg_ints(call, i);
        if (list.n != 1 && !(i == 2 && list.n == 0)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s() argument '%s' should contain one int (got %lld)", name,
                            lists == 1 ? "output_size" : names[i], (long long)list.n);
        }
    }
    return 0;
}
static int opdi_max_pool1d_with_indices_kernel(opd_call *call) {
    opdi_pair pair, other, next, last;
    opd_tensor *rets[2];
    if (opdi_pool1d_check(call, "max_pool1d", 4) != 0) { return -1; }
    if (opd_max_pool2d_with_indices_full(rets, opdi_unsqueeze_at(opd_arg_tensor(call, 0), -2),
                                         opdi_pair_of(opd_arg_ints(call, 1), 1, &pair),
                                         opdi_pair_of(opd_arg_ints(call, 2), 1, &other),
                                         opdi_pair_of(opd_arg_ints(call, 3), 0, &next),
                                         opdi_pair_of(opd_arg_ints(call, 4), 1, &last), opd_arg_bool(call, 5)) != 0) {
                                             return -1;
                                             }
    if (opd_return_tensor(call, opdi_squeeze_at(rets[0], -2)) != 0) { return -1; }
    return opd_return_tensor(call, opdi_squeeze_at(rets[1], -2));
}
static int opdi_max_pool1d_kernel(opd_call *call) {
    opd_tensor *rets[2];
    if (opdi_max_pool_plain(call)) { return opdi_pool1d_check(call, "max_pool1d", 4) ? -1 : opdi_max_pool_of(call, 1); }
    if (opd_max_pool1d_with_indices_full(rets, opd_arg_tensor(call, 0), opd_arg_ints(call, 1), opd_arg_ints(call, 2),
                                         opd_arg_ints(call, 3), opd_arg_ints(call, 4), opd_arg_bool(call, 5)) != 0) {
        return -1;
    }
    return opd_return_tensor(call, rets[0]);
}
/* opd_max_pool1d_with_indices: the greatest element of each window [.., L], and its position */
OPDI_OP(max_pool1d_with_indices) {
    op->schema = "max_pool1d_with_indices(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] "
        "dilation=1, bool ceil_mode=False) -> (Tensor, Tensor)";
    op->composite = opdi_max_pool1d_with_indices_kernel;
    op->cases = "[1,2,6], 2";
}
/* opd_max_pool1d(self, kernel_size, stride, padding): the greatest element of each window [.., L] */
OPDI_OP(max_pool1d) {
    op->schema = "max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, int[1] dilation=1, "
        "bool ceil_mode=False) -> Tensor";
    op->composite = opdi_max_pool1d_kernel;
    op->cases = "[1,2,6], 2";
}

//== avg_pool2d, avg_pool3d ============================================================================================

static int opdi_pool_override(const opd_call *call, int i, opdi_windows *windows) {
    if (opd_arg_is_none(call, i)) { return 0; }
    windows->divisor = opd_arg_int(call, i);
    return windows->divisor ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "divisor must be not zero");
}
static int opdi_avg_pool_of(opd_call *call, int ndim) {
    const char *name = ndim == 2 ? "avg_pool2d" : "avg_pool3d";
    opd_tensor *input = opd_arg_tensor(call, 0);
    opdi_windows windows;
    if (opdi_pool_read(call, 1, &windows, input, ndim, name, false, 4) != 0 ||
        opdi_pool_override(call, 6, &windows) != 0) {
        return -1;
    }
    return opdi_pool_forward(call, &windows, input, false, false, opd_arg_bool(call, 5), true, name);
}
static int opdi_avg_pool_backward_of(opd_call *call, int ndim) {
    opd_tensor *input = opd_arg_tensor(call, 1);
    opdi_windows windows;
    if (opdi_pool_read(call, 2, &windows, input, ndim, ndim == 2 ? "avg_pool2d" : "avg_pool3d", false, 5) != 0 ||
        opdi_pool_override(call, 7, &windows) != 0) {
        return -1;
    }
    return opdi_pool_backward(call, &windows, opd_arg_tensor(call, 0), input, NULL, false, opd_arg_bool(call, 6),
                              ndim == 2 ? "avg_pool2d_backward" : "avg_pool3d_backward");
}
static int opdi_avg_pool_gradient(opd_backward_call *bw, int ndim) {
    return opd_bw_return(bw, 0, (ndim == 2 ? opd_avg_pool2d_backward : opd_avg_pool3d_backward)
                         (opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_ints(bw, 1), opd_bw_ints(bw, 2),
                          opd_bw_ints(bw, 3), opd_bw_value(bw, 4).u.i != 0, opd_bw_value(bw, 5).u.i != 0,
                          opd_bw_value(bw, 6)));
}
static int opdi_avg_pool_backward_gradient(opd_backward_call *bw, int ndim) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, (ndim == 2 ? opd_avg_pool2d_full : opd_avg_pool3d_full)
                   (grad, opd_bw_ints(bw, 2), opd_bw_ints(bw, 3), opd_bw_ints(bw, 4), opd_bw_value(bw, 5).u.i != 0,
                    opd_bw_value(bw, 6).u.i != 0, opd_bw_value(bw, 7)));
    OPDI_BW_RETURN(1, opd_zeros_like(grad));
    return 0;
}
static int opdi_avg_pool2d_kernel(opd_call *call) { return opdi_avg_pool_of(call, 2); }
static int opdi_avg_pool3d_kernel(opd_call *call) { return opdi_avg_pool_of(call, 3); }
static int opdi_avg_pool2d_backward(opd_backward_call *bw) { return opdi_avg_pool_gradient(bw, 2); }
static int opdi_avg_pool3d_backward(opd_backward_call *bw) { return opdi_avg_pool_gradient(bw, 3); }
static int opdi_avg_pool2d_backward_kernel(opd_call *call) { return opdi_avg_pool_backward_of(call, 2); }
static int opdi_avg_pool3d_backward_kernel(opd_call *call) { return opdi_avg_pool_backward_of(call, 3); }
static int opdi_avg_pool2d_backward_backward(opd_backward_call *bw) { return opdi_avg_pool_backward_gradient(bw, 2); }
static int opdi_avg_pool3d_backward_backward(opd_backward_call *bw) { return opdi_avg_pool_backward_gradient(bw, 3); }
/* opd_avg_pool2d(self, kernel_size, stride, padding): the mean of each window [.., H, W] */
OPDI_OP(avg_pool2d) {
    op->schema = "avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, bool "
        "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor";
    op->cpu = op->fake = opdi_avg_pool2d_kernel; op->backward = opdi_avg_pool2d_backward; op->save = "self";
    op->vmap = opdi_batch_fold_2d; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "avg_pool2d.out";
    op->cases = "[1,2,4,4], (2,2); [2,5,5], 3, 2, 1, True, False; [1,1,5,5], 2, 1, 0, False, True, 3";
}
/* opd_avg_pool3d(self, kernel_size, stride, padding): the mean of each window [.., D, H, W] */
OPDI_OP(avg_pool3d) {
    op->schema = "avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, bool "
        "ceil_mode=False, bool count_include_pad=True, int? divisor_override=None) -> Tensor";
    op->cpu = op->fake = opdi_avg_pool3d_kernel; op->backward = opdi_avg_pool3d_backward; op->save = "self";
    op->vmap = opdi_batch_fold_3d; op->autocast = OPD_AUTOCAST_FP32_CPU; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "avg_pool3d.out";
    op->cases = "[1,2,4,4,4], 2, 2, 1";
}
/* opd_avg_pool2d_backward: derivative of avg_pool2d */
OPDI_OP(avg_pool2d_backward) {
    op->schema = "avg_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] stride, int[2] "
        "padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor";
    op->cpu = op->fake = opdi_avg_pool2d_backward_kernel; op->backward = opdi_avg_pool2d_backward_backward;
    op->vmap = opdi_batch_fold_2d; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "avg_pool2d_backward.grad_input(grad_input)";
    op->cases = "[1,2,2,2], [1,2,4,4], 2, 2, 0, False, True, None";
}
/* opd_avg_pool3d_backward: derivative of avg_pool3d */
OPDI_OP(avg_pool3d_backward) {
    op->schema = "avg_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] stride, int[3] "
        "padding, bool ceil_mode, bool count_include_pad, int? divisor_override) -> Tensor";
    op->cpu = op->fake = opdi_avg_pool3d_backward_kernel; op->backward = opdi_avg_pool3d_backward_backward;
    op->vmap = opdi_batch_fold_3d; op->flops = opdi_flops_elements;
    op->out = "avg_pool3d_backward.grad_input(grad_input)";
    op->cases = "[1,2,2,2,2], [1,2,4,4,4], 2, 2, 0, False, True, None";
}

static int opdi_avg_pool1d_kernel(opd_call *call) {
    opdi_pair pair, other, next;
    if (opdi_pool1d_check(call, "avg_pool1d", 3) != 0) { return -1; }
    return opd_return_tensor(call,
                             opdi_squeeze_at(opd_avg_pool2d_full(opdi_unsqueeze_at(opd_arg_tensor(call, 0), -2),
                                                                 opdi_pair_of(opd_arg_ints(call, 1), 1, &pair),
                                                                 opdi_pair_of(opd_arg_ints(call, 2), 1, &other),
                                                                 opdi_pair_of(opd_arg_ints(call, 3), 0, &next),
                                                                 opd_arg_bool(call, 4), opd_arg_bool(call, 5),
                                                                 OPD_NONE), -2));
}
/* opd_avg_pool1d(self, kernel_size, stride, padding): the mean of each window [.., L] */
OPDI_OP(avg_pool1d) {
    op->schema = "avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=0, bool "
        "ceil_mode=False, bool count_include_pad=True) -> Tensor";
    op->composite = opdi_avg_pool1d_kernel;
    op->tags = OPD_OPTAG_CORE;
    op->cases = "[1,2,6], 2";
}

//== adaptive pooling ==================================================================================================

/* Reads the output sizes `size` of an adaptive pooling into *windows.  Window o covers the elements from floor(o * in /
   out) to ceil((o + 1) * in / out) - 1.  Returns 0, or -1 and sets an error. */
static int opdi_adaptive_read(opdi_windows *windows, const opd_tensor *input, int ndim, opd_ints size,
                              const char *name) {
    memset(windows, 0, sizeof *windows);
    if (size.n != ndim) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: output_size must be %d", name, ndim); }
    if (opdi_pool_input(windows, input, ndim, name, true) != 0) { return -1; }
    for (int i = 0; i < ndim; i++) {
        if (size.data[i] < 0 || (size.data[i] > 0 && windows->in[3 - ndim + i] >= INT64_MAX / size.data[i])) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: elements of output_size must be greater than or equal to 0", name);
        }
        windows->out[3 - ndim + i] = size.data[i];
    }
    return 0;
}
static int opdi_adaptive_forward(opd_call *call, int ndim, bool maximum, const char *name) {
    opdi_windows windows;
    opd_tensor *input = opd_arg_tensor(call, 0);
    if (opdi_adaptive_read(&windows, input, ndim, opd_arg_ints(call, 1), name) != 0) { return -1; }
    return opdi_pool_forward(call, &windows, input, maximum, true, false, false, name);
}
static int opdi_adaptive_backward(opd_call *call, int ndim, opd_tensor *at, const char *name) {
    opdi_windows windows;
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1);
    if (grad->ndim != input->ndim || grad->ndim < ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "grad_output must have as many dimensions as self, %d, but has %d",
                        input->ndim, grad->ndim);
    }
    if (opdi_adaptive_read(&windows, input, ndim, opd_ints_of(opdi_sizes(grad) + grad->ndim - ndim, ndim), name) != 0) {
        return -1;
    }
    return opdi_pool_backward(call, &windows, grad, input, at, true, false, name);
}
static int opdi_adaptive_avg_gradient(opd_backward_call *bw, int ndim) {
    return opd_bw_return(bw, 0, (ndim == 2 ? opd_adaptive_avg_pool2d_backward : opd_adaptive_avg_pool3d_backward)
                         (opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0)));
}
static int opdi_adaptive_avg_backward_gradient(opd_backward_call *bw, int ndim) {
    const opd_ints list = opd_bw_sizes(bw, 0);
    opd_tensor *grad = opd_bw_grad(bw, 0);
    if (list.n >= ndim) {
        OPDI_BW_RETURN(0, (ndim == 2 ? opd_under_adaptive_avg_pool2d : opd_under_adaptive_avg_pool3d)
                       (grad, opd_ints_of(list.data + list.n - ndim, ndim)));
    }
    OPDI_BW_RETURN(1, opd_zeros_like(grad));
    return 0;
}
static int opdi_adaptive_max_gradient(opd_backward_call *bw, int ndim) {
    return opd_bw_return(bw, 0, (ndim == 2 ? opd_adaptive_max_pool2d_backward : opd_adaptive_max_pool3d_backward)
                         (opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_result(bw, 1)));
}
static int opdi__adaptive_avg_pool2d_kernel(opd_call *call) {
    return opdi_adaptive_forward(call, 2, false, "adaptive_avg_pool2d");
}
static int opdi__adaptive_avg_pool3d_kernel(opd_call *call) {
    return opdi_adaptive_forward(call, 3, false, "adaptive_avg_pool3d");
}
static int opdi__adaptive_avg_pool2d_backward(opd_backward_call *bw) { return opdi_adaptive_avg_gradient(bw, 2); }
static int opdi__adaptive_avg_pool3d_backward(opd_backward_call *bw) { return opdi_adaptive_avg_gradient(bw, 3); }
static int opdi__adaptive_avg_pool2d_backward_kernel(opd_call *call) {
    return opdi_adaptive_backward(call, 2, NULL, "adaptive_avg_pool2d_backward");
}
static int opdi__adaptive_avg_pool3d_backward_kernel(opd_call *call) {
    return opdi_adaptive_backward(call, 3, NULL, "adaptive_avg_pool3d_backward");
}
static int opdi__adaptive_avg_pool2d_backward_backward(opd_backward_call *bw) {
    return opdi_adaptive_avg_backward_gradient(bw, 2);
}
static int opdi__adaptive_avg_pool3d_backward_backward(opd_backward_call *bw) {
    return opdi_adaptive_avg_backward_gradient(bw, 3);
}
static int opdi_adaptive_max_pool2d_kernel(opd_call *call) {
    return opdi_adaptive_forward(call, 2, true, "adaptive_max_pool2d");
}
static int opdi_adaptive_max_pool3d_kernel(opd_call *call) {
    return opdi_adaptive_forward(call, 3, true, "adaptive_max_pool3d");
}
static int opdi_adaptive_max_pool2d_backward(opd_backward_call *bw) { return opdi_adaptive_max_gradient(bw, 2); }
static int opdi_adaptive_max_pool3d_backward(opd_backward_call *bw) { return opdi_adaptive_max_gradient(bw, 3); }
static int opdi_adaptive_max_pool2d_backward_kernel(opd_call *call) {
    return opdi_adaptive_backward(call, 2, opd_arg_tensor(call, 2), "adaptive_max_pool2d_backward");
}
static int opdi_adaptive_max_pool3d_backward_kernel(opd_call *call) {
    return opdi_adaptive_backward(call, 3, opd_arg_tensor(call, 2), "adaptive_max_pool3d_backward");
}
static int opdi_adaptive_max_pool2d_backward_backward(opd_backward_call *bw) {
    return opdi_max_pool_backward_gradient(bw, 2, 2);
}
static int opdi_adaptive_max_pool3d_backward_backward(opd_backward_call *bw) {
    return opdi_max_pool_backward_gradient(bw, 3, 2);
}
/* opd_under_adaptive_avg_pool2d: adaptive_avg_pool2d, always computed by the pooling kernel */
OPDI_OP(_adaptive_avg_pool2d) {
    op->schema = "_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor";
    op->cpu = op->fake = opdi__adaptive_avg_pool2d_kernel; op->backward = opdi__adaptive_avg_pool2d_backward;
    op->save = "self";
    op->vmap = opdi_batch_fold_2d; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "_adaptive_avg_pool2d.out";
    op->cases = "[1,2,5,4], (2,3); [2,3,3], (1,1)";
}
/* opd_adaptive_avg_pool2d_backward: derivative of adaptive_avg_pool2d */
OPDI_OP(_adaptive_avg_pool2d_backward) {
    op->schema = "_adaptive_avg_pool2d_backward(Tensor grad_output, Tensor self) -> Tensor";
    op->cpu = op->fake = opdi__adaptive_avg_pool2d_backward_kernel;
    op->backward = opdi__adaptive_avg_pool2d_backward_backward;
    op->vmap = opdi_batch_fold_2d; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "_adaptive_avg_pool2d_backward.out";
    op->cases = "[1,2,2,3], [1,2,5,4]";
}
/* opd_adaptive_max_pool2d: the greatest element of each of output_size windows [.., H, W], and its position */
OPDI_OP(adaptive_max_pool2d) {
    op->schema = "adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)";
    op->cpu = op->fake = opdi_adaptive_max_pool2d_kernel; op->backward = opdi_adaptive_max_pool2d_backward;
    op->save = "self, result1";
    op->vmap = opdi_batch_fold_2d; op->flops = opdi_flops_elements;
    op->out = "adaptive_max_pool2d.out(out, indices)";
    op->cases = "[1,2,5,4], (2,3); [2,3,3], (1,1)";
}
/* opd_adaptive_max_pool2d_backward: derivative of adaptive_max_pool2d */
OPDI_OP(adaptive_max_pool2d_backward) {
    op->schema = "adaptive_max_pool2d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor";
    op->cpu = op->fake = opdi_adaptive_max_pool2d_backward_kernel;
    op->backward = opdi_adaptive_max_pool2d_backward_backward; op->save = "indices";
    op->vmap = opdi_batch_fold_2d; op->flops = opdi_flops_elements;
    op->out = "adaptive_max_pool2d_backward.grad_input(grad_input)";
    op->cases = "[1,2,2,3], [1,2,5,4], [1,2,2,3]i20";
}
/* opd_under_adaptive_avg_pool3d: adaptive_avg_pool3d, always computed by the pooling kernel */
OPDI_OP(_adaptive_avg_pool3d) {
    op->schema = "_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor";
    op->cpu = op->fake = opdi__adaptive_avg_pool3d_kernel; op->backward = opdi__adaptive_avg_pool3d_backward;
    op->save = "self";
    op->vmap = opdi_batch_fold_3d; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_elements;
    op->out = "_adaptive_avg_pool3d.out";
    op->cases = "[1,2,3,5,4], (2,2,3); [2,3,3,3], (1,1,1)";
}
/* opd_adaptive_avg_pool3d_backward: derivative of adaptive_avg_pool3d */
OPDI_OP(_adaptive_avg_pool3d_backward) {
    op->schema = "_adaptive_avg_pool3d_backward(Tensor grad_output, Tensor self) -> Tensor";
    op->cpu = op->fake = opdi__adaptive_avg_pool3d_backward_kernel;
    op->backward = opdi__adaptive_avg_pool3d_backward_backward;
    op->vmap = opdi_batch_fold_3d; op->flops = opdi_flops_elements;
    op->out = "_adaptive_avg_pool3d_backward.out";
    op->cases = "[1,1,2,2,3], [1,1,3,5,4]";
}
/* opd_adaptive_max_pool3d: the greatest element of each of output_size windows [.., D, H, W], and its position */
OPDI_OP(adaptive_max_pool3d) {
    op->schema = "adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)";
    op->cpu = op->fake = opdi_adaptive_max_pool3d_kernel; op->backward = opdi_adaptive_max_pool3d_backward;
    op->save = "self, result1";
    op->vmap = opdi_batch_fold_3d; op->autocast = OPD_AUTOCAST_FP32_CPU; op->flops = opdi_flops_elements;
    op->out = "adaptive_max_pool3d.out(out, indices)";
    op->cases = "[1,2,3,5,4], (2,2,3); [2,3,3,3], (1,1,1)";
}
/* opd_adaptive_max_pool3d_backward: derivative of adaptive_max_pool3d */
OPDI_OP(adaptive_max_pool3d_backward) {
    op->schema = "adaptive_max_pool3d_backward(Tensor grad_output, Tensor self, Tensor indices) -> Tensor";
    op->cpu = op->fake = opdi_adaptive_max_pool3d_backward_kernel;
    op->backward = opdi_adaptive_max_pool3d_backward_backward; op->save = "indices";
    op->vmap = opdi_batch_fold_3d; op->flops = opdi_flops_elements;
    op->out = "adaptive_max_pool3d_backward.grad_input(grad_input)";
    op->cases = "[1,1,2,2,3], [1,1,3,5,4], [1,1,2,2,3]i60";
}

/* The kernel of adaptive_avg_pool2d and adaptive_avg_pool3d.  If each plane of the output has a single element, calls
   mean, whose backward function needs no saved tensor. */
static int opdi_adaptive_avg_pool_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_ints to = opd_arg_ints(call, 1);
    const int64_t last[3] = {-1, -2, -3};
    const int ndim = call->op->schema->name[sizeof "adaptive_avg_pool" - 1] - '0';
    int64_t i = 0;
    if (to.n != ndim) {
        return opd_fail(OPD_ERROR_ARGUMENT, "adaptive_avg_pool%dd: output_size must be %d", ndim, ndim);
    }
    while (i < to.n && to.data[i] == 1) { i++; }
    if (i == to.n && self->ndim > to.n) {
        return opd_return_tensor(call, opd_mean_dim(self, opd_ints_of(last, i), true));
    }
    return opd_return_tensor(call, to.n == 2 ? opd_under_adaptive_avg_pool2d(self, to)
                             : opd_under_adaptive_avg_pool3d(self, to));
}
/* opd_adaptive_avg_pool2d: the means of output_size windows [.., H, W] */
OPDI_OP(adaptive_avg_pool2d) {
    op->schema = "adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor";
    op->composite = opdi_adaptive_avg_pool_kernel;
    op->out = "adaptive_avg_pool2d.out";
    op->cases = "[1,2,5,4], (2,3); [1,2,5,4], (1,1)";
}
/* opd_adaptive_avg_pool3d: the means of output_size windows [.., D, H, W] */
OPDI_OP(adaptive_avg_pool3d) {
    op->schema = "adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor";
    op->composite = opdi_adaptive_avg_pool_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "adaptive_avg_pool3d.out";
    op->cases = "[1,2,3,5,4], (2,2,3); [1,2,3,5,4], (1,1,1)";
}

static int opdi_adaptive_avg_pool1d_kernel(opd_call *call) {
    opdi_pair pair;
    if (opdi_pool1d_check(call, "adaptive_avg_pool1d", 1) != 0) { return -1; }
    return opd_return_tensor(call,
                             opdi_squeeze_at(opd_adaptive_avg_pool2d(opdi_unsqueeze_at(opd_arg_tensor(call, 0), -2),
                                                                     opdi_pair_of(opd_arg_ints(call, 1), 1, &pair)),
                                             -2));
}
/* opd_adaptive_avg_pool1d: the means of output_size windows [.., L] */
OPDI_OP(adaptive_avg_pool1d) {
    op->schema = "adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor";
    op->composite = opdi_adaptive_avg_pool1d_kernel;
    op->tags = OPD_OPTAG_CORE;
    op->cases = "[1,2,5], 2";
}

static int opdi_adaptive_max_pool1d_kernel(opd_call *call) {
    opdi_pair pair;
    opd_tensor *rets[2];
    if (opdi_pool1d_check(call, "adaptive_max_pool1d", 1) != 0) { return -1; }
    if (opd_adaptive_max_pool2d(rets, opdi_unsqueeze_at(opd_arg_tensor(call, 0), -2),
                                opdi_pair_of(opd_arg_ints(call, 1), 1, &pair)) != 0) {
        return -1;
    }
    if (opd_return_tensor(call, opdi_squeeze_at(rets[0], -2)) != 0) { return -1; }
    return opd_return_tensor(call, opdi_squeeze_at(rets[1], -2));
}
/* opd_adaptive_max_pool1d: the greatest element of each of output_size windows [.., L], and its position */
OPDI_OP(adaptive_max_pool1d) {
    op->schema = "adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)";
    op->composite = opdi_adaptive_max_pool1d_kernel;
    op->cases = "[1,2,5], 2";
}

//== max_unpool2d, max_unpool3d ========================================================================================

/* Checks the arguments of max_unpool2d or max_unpool3d; `dims` is 2 or 3.  Returns 0, or -1 and sets an error. */
static int opdi_unpool_check(const opd_call *call, const opd_tensor *input, const opd_tensor *at, int dims) {
    const opd_ints size = opd_arg_ints(call, 2);
    char first[256], second[256];
    if (at->dtype != OPD_INT64) {
        return opd_fail(OPD_ERROR_DTYPE, "elements in indices should be type int64 but got: %s",
                        opd_dtype_name((opd_scalar_type)at->dtype));
    }
    if (size.n != dims) {
        return opd_fail(OPD_ERROR_ARGUMENT, "There should be exactly %s in output_size, but got %lld elements.",
                        dims == 2 ? "two elements (height, width)" : "three elements (depth, height, width)",
                        (long long)size.n);
    }
    if (input->ndim != dims + 1 && input->ndim != dims + 2) {
        return opd_fail(OPD_ERROR_SHAPE, "Input to max_unpooling%dd should be a %dd or %dd Tensor, but got a tensor "
                        "with %d dimensions.", dims, dims + 1, dims + 2, input->ndim);
    }
    opdi_sizes_text(opdi_sizes(input), input->ndim, first, sizeof first);
    if (!opdi_same_sizes(input, at)) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected shape of indices to be same as that of the input tensor (%s) but "
                        "got indices tensor with shape: %s", first,
                        opdi_sizes_text(opdi_sizes(at), at->ndim, second, sizeof second));
    }
    for (int i = input->ndim == dims + 2; i < input->ndim; i++) {
        if (opdi_sizes(input)[i] <= 0) {
            return opd_fail(OPD_ERROR_SHAPE, "max_unpooling%dd(): Expected input to have non-zero size for non-batch "
                            "dimensions, but input has sizes %s with dimension %d being empty", dims, first, i);
        }
    }
    for (int list = 3; dims == 3 && list < 5; list++) {
        const opd_ints numbers = opd_arg_ints(call, list);
        if (numbers.n != 3 || (list == 3 && (numbers.data[0] <= 0 || numbers.data[1] <= 0 || numbers.data[2] <= 0))) {
            return opd_fail(OPD_ERROR_ARGUMENT, list == 3 ? "stride must have three elements greater than zero, but is "
                            "%s" : "padding must have three elements, but is %s",
                            opdi_sizes_text(numbers.data, (int)OPDI_MIN(numbers.n, (int64_t)8), first, sizeof first));
        }
    }
    return 0;
}
/* The kernel of max_unpool2d and max_unpool3d: makes zeros of output_size, and writes each element of self to its
   position in indices, from which max_pool read it.  If several elements have the same index, the last of them
   remains. */
static int opdi_unpool_of(opd_call *call, int dims) {
    opd_tensor *input = opd_arg_tensor(call, 0), *at = opd_arg_tensor(call, 1);
    const opd_ints size = opd_arg_ints(call, 2);
    int64_t from[3], to[3], sizes[5];
    const int rest = input->ndim - dims;
    if (opdi_unpool_check(call, input, at, dims) || opdi_refuse_complex(input, call->op->schema->name)) { return -1; }
    for (int i = 0; i < rest; i++) { sizes[i] = from[i] = to[i] = opdi_sizes(input)[i]; }
    from[rest] = to[rest] = 1;
    for (int i = 0; i < dims; i++) {
        sizes[rest + i] = size.data[i];
        if (size.data[i] < 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "output_size must not be negative, but got %lld",
                            (long long)size.data[i]);
        }
        from[rest] = opdi_size_times(from[rest], opdi_sizes(input)[rest + i]);
        to[rest] = opdi_size_times(to[rest], size.data[i]);
    }
    opd_tensor *out = opd_new_zeros(input, opd_ints_of(to, rest + 1));
    opd_tensor *const shaped = opdi_reshape_to(at, from, rest + 1);
    out = opd_scatter(out, rest, shaped, opdi_reshape_to(input, from, rest + 1));
    out = opdi_reshape_to(out, sizes, input->ndim);
    const bool last = dims == 2 && input->ndim == 4 && opdi_is_channels_last(input);
    return opd_return_tensor(call, opd_clone_full(out, opd_value_int(last ? 2 : 0)));
}
static int opdi_max_unpool2d_kernel(opd_call *call) { return opdi_unpool_of(call, 2); }
static int opdi_max_unpool3d_kernel(opd_call *call) { return opdi_unpool_of(call, 3); }
static int opdi_max_unpool2d_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opdi_pool_pick(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 1), 2));
}
static int opdi_max_unpool3d_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opdi_pool_pick(opd_bw_grad(bw, 0), opd_bw_tensor(bw, 1), 3));
}
/* opd_max_unpool2d: zeros [.., H, W], with the elements of self at the positions that max_pool2d returned */
OPDI_OP(max_unpool2d) {
    op->schema = "max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor";
    op->any = opdi_max_unpool2d_kernel; op->backward = opdi_max_unpool2d_backward; op->save = "indices";
    op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "max_unpool2d.out";
    op->cases = "[1,2,2,1], [1,2,2,1]i20, (4,5); [2,1,3], [2,1,3]i12, (3,4)";
}
/* opd_max_unpool3d: zeros [.., D, H, W], with the elements of self at the positions that max_pool3d returned */
OPDI_OP(max_unpool3d) {
    op->schema = "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, int[3] padding) -> "
        "Tensor";
    op->any = opdi_max_unpool3d_kernel; op->backward = opdi_max_unpool3d_backward; op->save = "indices";
    op->vmap = OPD_BATCH_DECOMPOSE; op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "max_unpool3d.out";
    op->cases = "[1,1,2,1,2], [1,1,2,1,2]i16, (4,2,2), (2,2,2), (0,0,0)";
}

//== fractional_max_pool2d, fractional_max_pool3d ======================================================================

/* Returns the starts of `out` windows along a dim of size `in`, as [.., out, 1], for random samples [..].  Each
   window has `kernel` elements; the last window ends at the end of the dim. */
static opd_tensor *opdi_fractional_starts(opd_tensor *sample, int64_t in, int64_t out, int64_t kernel) {
    const double step = out > 1 ? (double)(in - kernel) / (double)(out - 1) : 0;
    opd_tensor *each[2];
    if (!sample) { return NULL; }
    opd_tensor *counts = opd_arange_full(opd_value_int(out - 1), opd_value_int(sample->dtype), OPD_NONE,
                                         opd_value_device(opd_tensor_device(sample)), OPD_NONE);
    sample = opd_unsqueeze(sample, -1);
    opd_tensor *const whole = opd_trunc(opdi_muls(opd_add(counts, sample), step));
    each[0] = opd_sub(whole, opd_trunc(opdi_muls(sample, step)));
    each[1] = opd_full_like(sample, opd_value_int(in - kernel));
    return opd_ok() ? opd_unsqueeze(opd_to_dtype(opd_cat(opd_tensors_of(each, 2), -1), OPD_INT64), -1) : NULL;
}
/* Checks the sizes of a fractional_max_pool and the dtype of input; `dims` is 2 or 3.  Returns 0, or -1 and sets an
   error. */
static int opdi_fractional_sizes(const opd_tensor *input, opd_ints kernel, opd_ints out, int dims) {
    char text[256];
    if (kernel.n != dims || out.n != dims) {
        return opd_fail(OPD_ERROR_ARGUMENT, "kernel_size and output_size must have %d elements each, but have %lld and "
                        "%lld", dims, (long long)kernel.n, (long long)out.n);
    }
    if (input->ndim != dims + 1 && input->ndim != dims + 2) {
        return opd_fail(OPD_ERROR_SHAPE, "fractional_max_pool%dd(): Expected %dD or %dD tensor, but got: %s", dims,
                        dims + 1, dims + 2, opdi_shape_text(input, text));
    }
    const int64_t *sizes = opdi_sizes(input) + input->ndim - dims - 1;
    for (int i = 0; i < dims; i++) {
        if (out.data[i] < 1 || kernel.data[i] < 1 || out.data[i] > sizes[1 + i] || kernel.data[i] > sizes[1 + i] ||
            out.data[i] + kernel.data[i] - (dims == 2) > sizes[1 + i]) {
            return opd_fail(OPD_ERROR_ARGUMENT, "fractional_max_pool%dd(): pool %lld of output %lld is too large "
                            "relative to input %lld", dims, (long long)kernel.data[i], (long long)out.data[i],
                            (long long)sizes[1 + i]);
        }
    }
    return opdi_kernel_dtype(OPDI_DTYPE(input), false, "fractional_max_pool") < 0 ? -1 : 0;
}
/* Checks the argument _random_samples of a fractional_max_pool; `dims` is 2 or 3.  Returns 0, or -1 and sets an
   error. */
static int opdi_fractional_samples(const opd_tensor *input, const opd_tensor *samples, int dims) {
    const int64_t channels = opdi_sizes(input)[input->ndim - dims - 1];
    const int64_t batch = input->ndim == dims + 2 ? opdi_sizes(input)[0] : 1;
    if (samples->dtype != input->dtype || samples->ndim != 3 || opdi_sizes(samples)[0] < batch ||
        opdi_sizes(samples)[1] < channels || opdi_sizes(samples)[2] != dims) {
        return opd_fail(OPD_ERROR_SHAPE, "Expect _random_samples to have the dtype of input and sizes [%lld, %lld, %d]",
                        (long long)batch, (long long)channels, dims);
    }
    return 0;
}
/* The kernel of fractional_max_pool: computes the greatest element of each window and its position in its plane.  The
   starts of the windows follow from random_samples.  Gathers the elements of all windows by indices, which are first
   [n, c, out0, k0, out1, k1, ..] and are then rearranged to [n, c, outs, ks]. */
static int opdi_fractional_of(opd_call *call, int dims) {
    opd_tensor *input = opd_arg_tensor(call, 0), *samples = opd_arg_tensor(call, 3), *at = NULL, *rets[2];
    const opd_ints kernel = opd_arg_ints(call, 1), out = opd_arg_ints(call, 2);
    int64_t sizes[8], order[8], area = 1, outs = 1, kernels = 1;
    if (opdi_fractional_sizes(input, kernel, out, dims) || opdi_fractional_samples(input, samples, dims)) { return -1; }
    const int plain = input->ndim == dims + 1;
    opd_tensor *image = plain ? opd_unsqueeze(input, 0) : input;
    if (!image) { return -1; }
    const int64_t n = opd_size(image, 0), c = opd_size(image, 1);
    samples = opd_narrow(opd_narrow(samples, 0, 0, n), 1, 0, c);
    for (int i = 0; i < dims && opd_ok(); i++) {
        const int64_t in = opd_size(image, 2 + i), number = dims == 2 ? 1 - i : i;
        opd_tensor *each = opdi_fractional_starts(opd_select(samples, 2, number), in, out.data[i], kernel.data[i]);
        each = opd_add(each, opd_arange_full(opd_value_int(kernel.data[i]), opd_value_int(OPD_INT64), OPD_NONE,
                                             opd_value_device(opd_tensor_device(input)), OPD_NONE));
        for (int k = 0; k < 2 + 2 * dims; k++) { sizes[k] = 1; }
        sizes[0] = n;
        sizes[1] = c;
        sizes[2 + 2 * i] = out.data[i];
        sizes[3 + 2 * i] = kernel.data[i];
        each = opdi_reshape_to(each, sizes, 2 + 2 * dims);
        at = at ? opd_add(opd_mul_Scalar(at, opd_value_int(in)), each) : each;
        area = opdi_size_times(area, in);
        outs *= out.data[i];
        kernels *= kernel.data[i];
        order[2 + i] = 2 + 2 * i;
        order[2 + dims + i] = 3 + 2 * i;
    }
    order[0] = 0;
    order[1] = 1;
    sizes[0] = n;
    sizes[1] = c;
    sizes[2] = outs * kernels;
    if (!opd_ok() || !(at = opdi_permute_to(at, order, 2 + 2 * dims)) || !(at = opdi_reshape_to(at, sizes, 3))) {
        return -1;
    }
    sizes[2] = area;
    opd_tensor *values = opd_gather(opdi_reshape_to(image, sizes, 3), 2, at);
    sizes[2] = outs;
    sizes[3] = kernels;
    if (opd_max_dim(rets, opdi_reshape_to(values, sizes, 4), 3, false)) { return -1; }
    opd_tensor *const shaped = opdi_reshape_to(at, sizes, 4);
    at = opd_squeeze_dim(opd_gather(shaped, 3, opd_unsqueeze(rets[1], 3)), 3);
    for (int i = 0; i < dims; i++) { sizes[2 + i] = out.data[i]; }
    if (opd_return_tensor(call, opdi_reshape_to(rets[0], sizes + plain, 2 + dims - plain))) { return -1; }
    return opd_return_tensor(call, opdi_reshape_to(at, sizes + plain, 2 + dims - plain));
}
static int opdi_fractional_max_pool2d_kernel(opd_call *call) { return opdi_fractional_of(call, 2); }
static int opdi_fractional_max_pool3d_kernel(opd_call *call) { return opdi_fractional_of(call, 3); }
/* Computes the gradient of fractional_max_pool with respect to self: adds each number of grad_output at its position
   in indices. */
static int opdi_fractional_backward_of(opd_call *call, int dims) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *at = opd_arg_tensor(call, 4);
    const opd_ints kernel = opd_arg_ints(call, 2), out = opd_arg_ints(call, 3);
    const int rest = input->ndim - dims;
    int64_t sizes[5], from[3], to[3];
    if (opdi_fractional_sizes(input, kernel, out, dims)) { return -1; }
    for (int i = 0; i < rest; i++) { sizes[i] = from[i] = to[i] = opdi_sizes(input)[i]; }
    from[rest] = to[rest] = 1;
    for (int i = 0; i < dims; i++) {
        sizes[rest + i] = out.data[i];
        from[rest] *= out.data[i];
        to[rest] *= opdi_sizes(input)[rest + i];
    }
    if (opdi_conv_same_sizes(grad, sizes, input->ndim) || opdi_conv_same_sizes(at, sizes, input->ndim) ||
        opdi_same_dtype(input, grad)) {
        return -1;
    }
    if (at->dtype != OPD_INT64) {
        return opd_fail(OPD_ERROR_DTYPE, "expected indices of dtype int64, but got %s",
                        opd_dtype_name(OPDI_DTYPE(at)));
    }
    opd_tensor *const shaped = opdi_reshape_to(at, from, rest + 1);
    grad = opd_scatter_add(opd_new_zeros(input, opd_ints_of(to, rest + 1)), rest, shaped,
        opdi_reshape_to(grad, from, rest + 1));
    return opd_return_tensor(call, opdi_reshape_to(grad, opdi_sizes(input), input->ndim));
}
static int opdi_fractional_max_pool2d_backward_kernel(opd_call *call) { return opdi_fractional_backward_of(call, 2); }
static int opdi_fractional_max_pool3d_backward_kernel(opd_call *call) { return opdi_fractional_backward_of(call, 3); }
/* opd_fractional_max_pool2d: the greatest element of each window, and its position; windows begin at random */
OPDI_OP(fractional_max_pool2d) {
    op->schema = "fractional_max_pool2d(Tensor self, int[2] kernel_size, int[2] output_size, Tensor random_samples) -> "
        "(Tensor, Tensor)";
    op->composite = opdi_fractional_max_pool2d_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "fractional_max_pool2d.output(output, indices)";
    op->cases = "[1,2,6,5], (2,2), (3,2), [1,2,2]u; [2,5,5], (3,2), (2,3), [1,2,2]u";
}
/* opd_fractional_max_pool2d_backward: derivative of fractional_max_pool2d */
OPDI_OP(fractional_max_pool2d_backward) {
    op->schema = "fractional_max_pool2d_backward(Tensor grad_output, Tensor self, int[2] kernel_size, int[2] "
        "output_size, Tensor indices) -> Tensor";
    op->composite = opdi_fractional_max_pool2d_backward_kernel;
    op->out = "fractional_max_pool2d_backward.grad_input(grad_input)";
    op->cases = "[1,2,2,2], [1,2,4,4], (2,2), (2,2), [1,2,2,2]i16";
}
/* opd_fractional_max_pool3d: the greatest element of each window, and its position; windows begin at random */
OPDI_OP(fractional_max_pool3d) {
    op->schema = "fractional_max_pool3d(Tensor self, int[3] kernel_size, int[3] output_size, Tensor random_samples) -> "
        "(Tensor, Tensor)";
    op->composite = opdi_fractional_max_pool3d_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "fractional_max_pool3d.output(output, indices)";
    op->cases = "[1,2,5,4,5], (2,2,2), (2,2,3), [1,2,3]u";
}
/* opd_fractional_max_pool3d_backward: derivative of fractional_max_pool3d */
OPDI_OP(fractional_max_pool3d_backward) {
    op->schema = "fractional_max_pool3d_backward(Tensor grad_output, Tensor self, int[3] kernel_size, int[3] "
        "output_size, Tensor indices) -> Tensor";
    op->composite = opdi_fractional_max_pool3d_backward_kernel;
    op->out = "fractional_max_pool3d_backward.grad_input(grad_input)";
    op->cases = "[2,2,1,2], [2,4,3,4], (2,2,2), (2,1,2), [2,2,1,2]i48";
}
OPDI_COLD_END
