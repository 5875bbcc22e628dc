#include "../ops.h"

//== upsampling ========================================================================================================
//
//  Along each dim (depth, rows and columns), an output is a weighted sum of a few inputs (taps), whose positions do
//  not depend on the other dims.  The weight of an element is the product of its weights along the dims.  The backward
//  pass adds to the gradients of the elements that the forward pass reads.  Tensors with fewer than three dims to
//  resize are treated as if they had three, of which the first have size 1.

OPDI_COLD_BEGIN

typedef enum opdi_upsample_mode {
    OPDI_UPSAMPLE_NEAREST, OPDI_UPSAMPLE_EXACT, OPDI_UPSAMPLE_LINEAR, OPDI_UPSAMPLE_CUBIC, OPDI_UPSAMPLE_LINEAR_AA,
    OPDI_UPSAMPLE_CUBIC_AA
} opdi_upsample_mode;
/* The taps along one dim.  Output i has count[i] taps.  They begin at index i * most of `at`, which has their indices,
   and of `weight`, which has their weights in the type in which the kernel computes. */
typedef struct opdi_taps { int64_t most, *count, *at; void *weight; } opdi_taps;
typedef struct opdi_upsample {
    opdi_taps side[3];                            /* planes, rows, columns of the output */
    int64_t in[3], out[3], planes;
    int dims;
    opdi_upsample_mode how;
    bool back, corners, twice;                    /* twice: double, else float */
    const void *input;
    void *output;
} opdi_upsample;

/* Returns an upper bound of the number of inputs that an output reads, among `rows` inputs.  Antialiasing filters
   (AA) read more inputs if they shrink an image. */
static int64_t opdi_taps_most(opdi_upsample_mode how, int64_t rows, double scale) {
    if (how == OPDI_UPSAMPLE_NEAREST || how == OPDI_UPSAMPLE_EXACT) { return 1; }
    if (how == OPDI_UPSAMPLE_LINEAR) { return 2; }
    if (how == OPDI_UPSAMPLE_CUBIC) { return 4; }
    const double most = ceil((how == OPDI_UPSAMPLE_CUBIC_AA ? 2 : 1) * OPDI_MAX(scale, 1.)) * 2 + 1;
    return most < (double)rows ? (int64_t)most : rows;
}
/* Returns the weight at distance x of the cubic filter with parameter a. */
static double opdi_cubic(double x, double a) {
    x = fabs(x);
    return x < 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}
/* Returns `place`, rounded down and limited to 0 .. rows. */
static int64_t opdi_taps_clip(double place, int64_t rows) {
    return !(place > 0) ? 0 : place < (double)rows ? (int64_t)place : rows;
}
/* Finds the inputs that output i reads under a filter whose width grows with the scale (as PyTorch's
   _compute_indices_min_size_weights_aa does).  Sets *first to the index of the first of these inputs, and weight[most]
   to their weights.  Returns their number, at least 1. */
static int64_t opdi_taps_filter(const opdi_upsample *upsample, int64_t i, int64_t rows, double scale, int64_t most,
                                int64_t *first, double *weight) {
    const bool cubic = upsample->how == OPDI_UPSAMPLE_CUBIC_AA;
    const double support = (cubic ? 2 : 1) * OPDI_MAX(scale, 1.), shrink = scale >= 1 ? 1 / scale : 1;
    double center = scale * ((double)i + 0.5), low = center - support, high = center + support, sum = 0;
    if (!upsample->twice) {
        center = (double)(float)center;
        low = (double)((float)center - (float)support);
        high = (double)((float)center + (float)support);
    }
    *first = opdi_taps_clip(low + 0.5, rows);
    const int64_t count = OPDI_MIN(OPDI_MAX(opdi_taps_clip(high + 0.5, rows) - *first, (int64_t)0), most);
    for (int64_t k = 0; k < count; k++) {
        const double x = ((double)(k + *first) - center + 0.5) * shrink;
        weight[k] = cubic ? opdi_cubic(x, -0.5) : OPDI_MAX(1 - fabs(x), 0.);
        sum += weight[k];
    }
    for (int64_t k = 0; k < count && sum != 0; k++) { weight[k] /= sum; }
    *first = OPDI_MIN(*first, rows - 1);
    if (count == 0) { weight[0] = 0; }
    return OPDI_MAX(count, (int64_t)1);
}
/* Sets the taps of output i of `count`: their indices at[most] among `rows` inputs, and their weights weight[most] (as
   PyTorch's area_pixel_compute_source_index does).  Returns the number of taps. */
static int64_t opdi_taps_set(const opdi_upsample *upsample, int64_t i, int64_t rows, int64_t count, double scale,
                             int64_t most, int64_t *at, double *weight) {
    const opdi_upsample_mode how = upsample->how;
    const bool whole = how == OPDI_UPSAMPLE_NEAREST || upsample->corners;
    double place = whole ? scale * (double)i : scale * ((double)i + 0.5) - 0.5;
    if (!upsample->twice) {
        place = whole ? (double)((float)scale * (float)i) : (double)((float)scale * ((float)i + 0.5f) - 0.5f);
    }
    weight[0] = 1;
    if (rows == count && (how == OPDI_UPSAMPLE_NEAREST ? upsample->dims == 2
                          : how != OPDI_UPSAMPLE_EXACT && (how != OPDI_UPSAMPLE_CUBIC || rows == 1))) {
        at[0] = i;                                /* sizes are equal: the scale does not matter */
        return 1;
    }
    if (how == OPDI_UPSAMPLE_LINEAR_AA || how == OPDI_UPSAMPLE_CUBIC_AA) {
        most = opdi_taps_filter(upsample, i, rows, scale, most, &at[0], weight);
        for (int64_t k = 1; k < most; k++) { at[k] = at[0] + k; }
        return most;
    }
    if (how == OPDI_UPSAMPLE_CUBIC) {
        const double first = floor(OPDI_MIN(OPDI_MAX(place, -4.), (double)(rows - 1))),
            t = OPDI_MIN(OPDI_MAX(place - first, 0.), 1.);
        for (int k = 0; k < 4; k++) {
            at[k] = OPDI_MIN(opdi_taps_clip(first + k - 1, rows), rows - 1);
            weight[k] = opdi_cubic(t + 1 - k, -0.75);
        }
        return 4;
    }
    if (how == OPDI_UPSAMPLE_NEAREST && upsample->dims == 2 && count == 2 * rows) { place = (double)(i / 2); }
    place = OPDI_MAX(place, 0.);
    if (how == OPDI_UPSAMPLE_EXACT) { place = upsample->twice ? place + 0.5 : (double)((float)place + 0.5f); }
    at[0] = place < (double)(rows - 1) ? (int64_t)place : rows - 1;    /* limited, because the caller may give any
                                                                          scale */
    if (how != OPDI_UPSAMPLE_LINEAR) { return 1; }
    at[1] = at[0] + (at[0] < rows - 1);
    weight[1] = OPDI_MIN(OPDI_MAX(place - (double)at[0], 0.), 1.);
    weight[0] = 1 - weight[1];
    return 2;
}
enum { OPDI_UPSAMPLE_LINES = 4, OPDI_UPSAMPLE_WIDE = 512 };     /* lines that are kept, and their columns */
static void opdi_upsample_f32(const opdi_upsample *upsample, const float *x, float *y);
static void opdi_upsample_f64(const opdi_upsample *upsample, const double *x, double *y);
OPDI_COLD_END
#include "../../typed/f32.h"
#include "upsample_lines.typed.h"
#include "../../typed/f64.h"
#include "upsample_lines.typed.h"
#include "../../typed/end.h"
OPDI_COLD_BEGIN
static void opdi_upsample_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_upsample *upsample = (const opdi_upsample *)ctx;
    const int64_t *in = upsample->in, *out = upsample->out;
    const int64_t count = in[0] * in[1] * in[2], places = out[0] * out[1] * out[2],
        x = upsample->back ? places : count, y = upsample->back ? count : places;
    for (int64_t plane = begin; plane < end; plane++) {
        if (upsample->twice) {
            opdi_upsample_f64(upsample, (const double *)upsample->input + plane * x,
                              (double *)upsample->output + plane * y);
        }
        else {
            opdi_upsample_f32(upsample, (const float *)upsample->input + plane * x,
                              (float *)upsample->output + plane * y);
        }
    }
}
OPDI_COLD_BEGIN
typedef struct opdi_upsample_form {
    const char *name;
    opd_op_id op, derivative;
    opdi_upsample_mode how;
    int dims;
} opdi_upsample_form;
static const opdi_upsample_form opdi_upsample_forms[] = {
    {"upsample_nearest1d", OPD_OP_upsample_nearest1d, OPD_OP_upsample_nearest1d_backward,
     OPDI_UPSAMPLE_NEAREST, 1},
    {"upsample_nearest2d", OPD_OP_upsample_nearest2d, OPD_OP_upsample_nearest2d_backward,
     OPDI_UPSAMPLE_NEAREST, 2},
    {"upsample_nearest3d", OPD_OP_upsample_nearest3d, OPD_OP_upsample_nearest3d_backward,
     OPDI_UPSAMPLE_NEAREST, 3},
    {"_upsample_nearest_exact1d", OPD_OP__upsample_nearest_exact1d, OPD_OP__upsample_nearest_exact1d_backward,
     OPDI_UPSAMPLE_EXACT, 1},
    {"_upsample_nearest_exact2d", OPD_OP__upsample_nearest_exact2d, OPD_OP__upsample_nearest_exact2d_backward,
     OPDI_UPSAMPLE_EXACT, 2},
    {"_upsample_nearest_exact3d", OPD_OP__upsample_nearest_exact3d, OPD_OP__upsample_nearest_exact3d_backward,
     OPDI_UPSAMPLE_EXACT, 3},
    {"upsample_linear1d", OPD_OP_upsample_linear1d, OPD_OP_upsample_linear1d_backward,
     OPDI_UPSAMPLE_LINEAR, 1},
    {"upsample_bilinear2d", OPD_OP_upsample_bilinear2d, OPD_OP_upsample_bilinear2d_backward,
     OPDI_UPSAMPLE_LINEAR, 2},
    {"upsample_trilinear3d", OPD_OP_upsample_trilinear3d, OPD_OP_upsample_trilinear3d_backward,
     OPDI_UPSAMPLE_LINEAR, 3},
    {"upsample_bicubic2d", OPD_OP_upsample_bicubic2d, OPD_OP_upsample_bicubic2d_backward,
     OPDI_UPSAMPLE_CUBIC, 2},
    {"_upsample_bilinear2d_aa", OPD_OP__upsample_bilinear2d_aa, OPD_OP__upsample_bilinear2d_aa_backward,
     OPDI_UPSAMPLE_LINEAR_AA, 2},
    {"_upsample_bicubic2d_aa", OPD_OP__upsample_bicubic2d_aa, OPD_OP__upsample_bicubic2d_aa_backward,
     OPDI_UPSAMPLE_CUBIC_AA, 2}
};
/* Returns the form (linear, bicubic, ...) of operator `op`, found by its name.  The operator may be the form's
   operator itself, its .vec variant, or its derivative. */
static const opdi_upsample_form *opdi_upsample_form_of(const opd_op *op) {
    int i = (int)(sizeof opdi_upsample_forms / sizeof *opdi_upsample_forms) - 1;
    for (; i > 0; i--) {
        const size_t length = strlen(opdi_upsample_forms[i].name);
        if (strncmp(op->schema->name, opdi_upsample_forms[i].name, length) == 0) { break; }
    }
    return &opdi_upsample_forms[i];
}
/* Reads the form and sizes into *upsample.  `out` is output_size; `in` has the ndim sizes of the input.  Returns 0,
   or -1 and sets an error. */
static int opdi_upsample_read(opd_call *call, opdi_upsample *upsample, opd_ints out, const int64_t *in, int ndim) {
    const opdi_upsample_form *form = opdi_upsample_form_of(call->op);
    const int dims = form->dims;
    long long got[6];
    bool empty = false;
    memset(upsample, 0, sizeof *upsample);
    upsample->how = form->how;
    upsample->dims = dims;
    if (out.n != dims) {
        return opd_fail(OPD_ERROR_ARGUMENT, "It is expected output_size equals to %d, but got size %lld", dims,
                        (long long)out.n);
    }
    if (ndim != dims + 2) {
        return opd_fail(OPD_ERROR_SHAPE, "It is expected input_size equals to %d, but got size %d", dims + 2, ndim);
    }
    for (int dim = 0; dim < 3; dim++) {
        const int i = dim - 3 + dims;
        upsample->in[dim] = i < 0 ? 1 : in[2 + i];
        upsample->out[dim] = i < 0 ? 1 : out.data[i];
        empty = empty || upsample->in[dim] <= 0 || upsample->out[dim] <= 0;
        if (i >= 0) {
            got[i] = (long long)in[2 + i];
            got[dims + i] = (long long)out.data[i];
        }
    }
    if (!empty) { return 0; }
    if (dims == 1) {
        return opd_fail(OPD_ERROR_SHAPE, "Input and output sizes should be greater than 0, but got input (W: %lld) and "
                        "output (W: %lld)", got[0], got[1]);
    }
    if (dims == 2) {
        return opd_fail(OPD_ERROR_SHAPE, "Input and output sizes should be greater than 0, but got input (H: %lld, W: "
                        "%lld) output (H: %lld, W: %lld)", got[0], got[1], got[2], got[3]);
    }
    return opd_fail(OPD_ERROR_SHAPE, "Input and output sizes should be greater than 0, but got input (D: %lld, H: "
                    "%lld, W: %lld) output (D: %lld, H: %lld, W: %lld)", got[0], got[1], got[2], got[3], got[4],
                    got[5]);
}
/* Computes the taps along dim `dim` for all outputs.  `factor` is the scale that the caller of the operator gave, or 0.
   Returns 0, or -1 and sets an error. */
static int opdi_taps_fill(opdi_upsample *upsample, int dim, double factor) {
    opdi_taps *taps = &upsample->side[dim];
    const int64_t rows = upsample->in[dim], count = upsample->out[dim];
    double scale = upsample->corners ? count > 1 ? (double)(rows - 1) / (double)(count - 1) : 0
        : factor > 0 ? 1 / factor : (double)rows / (double)count;
    if (!upsample->twice) { scale = (double)(float)scale; }
    taps->most = opdi_taps_most(upsample->how, rows, scale);
    const int64_t bytes = opdi_size_times(opdi_size_times(count, taps->most), sizeof(int64_t));
    taps->count = (int64_t *)opdi_scope_alloc((size_t)count * sizeof *taps->count);
    taps->at = (int64_t *)opdi_scope_alloc((size_t)bytes);
    taps->weight = opdi_scope_alloc(upsample->twice ? (size_t)bytes : (size_t)bytes / 2);       /* doubles or floats */
    double *weight = (double *)opdi_scope_alloc((size_t)taps->most * sizeof *weight);
    if (!taps->count || !taps->at || !taps->weight || !weight) { return -1; }
    for (int64_t i = 0; i < count; i++) {
        const int64_t first = i * taps->most;
        taps->count[i] = opdi_taps_set(upsample, i, rows, count, scale, taps->most, taps->at + first, weight);
        for (int64_t k = 0; k < taps->count[i]; k++) {
            if (upsample->twice) { ((double *)taps->weight)[first + k] = weight[k]; }
            else { ((float *)taps->weight)[first + k] = (float)weight[k]; }
        }
    }
    return 0;
}
/* Replaces the weights of the taps of `count` outputs by integers, in units of 2^-bits.  bits is the largest number
   up to 22 for which the weights fit in 16 bits.  First merges taps with the same index.  Returns bits. */
static int opdi_taps_whole(opdi_taps *taps, int64_t count) {
    double *weight = (double *)taps->weight, most = 0;
    int bits = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t first = i * taps->most;
        int64_t n = 0;
        for (int64_t k = 0; k < taps->count[i]; k++) {
            if (n && taps->at[first + n - 1] == taps->at[first + k]) { weight[first + n - 1] += weight[first + k]; }
            else {
                taps->at[first + n] = taps->at[first + k];
                weight[first + n++] = weight[first + k];
            }
        }
        taps->count[i] = n;
        for (int64_t k = 0; k < n; k++) { most = OPDI_MAX(most, weight[first + k]); }
    }
    while (bits < 22 && 0.5 + most * (double)(1 << (bits + 1)) < 1 << 15) { bits++; }
    for (int64_t i = 0; i < count * taps->most; i++) {
        const double w = i % taps->most < taps->count[i / taps->most] ? weight[i] * (double)(1 << bits) : 0;
        weight[i] = (double)(int32_t)(w < 0 ? w - 0.5 : w + 0.5);
    }
    return bits;
}
/* Resizes bytes x [outer, in, inner] to y [outer, out, inner] with weights in units of 2^-bits, and rounds to bytes. */
static void opdi_upsample_bytes_along(const opdi_taps *taps, int bits, const uint8_t *x, uint8_t *y, int64_t outer,
                                      int64_t in, int64_t out, int64_t inner) {
    const double *weight = (const double *)taps->weight;
    for (int64_t i = 0; i < outer * out * inner; i++) {
        const int64_t line = i / inner, first = line % out * taps->most;
        const uint8_t *from = x + line / out * in * inner + i % inner;
        int64_t sum = bits > 0 ? (int64_t)1 << (bits - 1) : 0;
        for (int64_t k = 0; k < taps->count[line % out]; k++) {
            sum += (int64_t)weight[first + k] * from[taps->at[first + k] * inner];
        }
        sum = sum < 0 ? 0 : sum >> bits;
        y[i] = (uint8_t)OPDI_MIN(sum, (int64_t)255);
    }
}
/* Resizes images of bytes along columns, then along rows.  Rounds after each direction whose size changes, as
   PyTorch does.  Returns 0, or -1 and sets an error. */
static int opdi_upsample_bytes(opdi_upsample *upsample, opd_tensor *input, opd_tensor *out) {
    const int64_t *in = upsample->in, *to = upsample->out, planes = upsample->planes;
    opd_tensor *output = opdi_staging(out, OPD_UINT8);
    if (!output || !(input = opdi_dense_as(input, OPD_UINT8))) { return -1; }
    const uint8_t *x = (const uint8_t *)input->data;
    if (in[2] != to[2]) {
        uint8_t *y = in[1] == to[1] ? (uint8_t *)output->data
            : (uint8_t *)opdi_scope_alloc((size_t)(planes * in[1] * to[2]));
        if (!y) { return -1; }
        const int bits = opdi_taps_whole(&upsample->side[2], to[2]);
        opdi_upsample_bytes_along(&upsample->side[2], bits, x, y, planes * in[1], in[2], to[2], 1);
        x = y;
    }
    if (in[1] != to[1]) {
        const int bits = opdi_taps_whole(&upsample->side[1], to[1]);
        opdi_upsample_bytes_along(&upsample->side[1], bits, x, (uint8_t *)output->data, planes, in[1], to[1], to[2]);
    } else if (x != (const uint8_t *)output->data) { memcpy(output->data, x, (size_t)output->numel); }
    return opdi_staging_store(out, output);
}
/* Computes the taps of every output, then resizes input to out.  If upsample->back is set, instead computes the
   gradient `out` of the input from `input`, the gradient of the output.  The arguments from number `scales` on are
   the scales.  Returns 0, or -1 and sets an error. */
static int opdi_upsample_run(opd_call *call, opdi_upsample *upsample, opd_tensor *input, opd_tensor *out, int scales) {
    const opd_scalar_type dtype = input->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    const int64_t places = upsample->out[0] * upsample->out[1] * upsample->out[2];
    const bool bytes = input->dtype == OPD_UINT8 && upsample->how > OPDI_UPSAMPLE_EXACT;
    upsample->twice = dtype == OPD_FLOAT64 || bytes;
    upsample->planes = (upsample->back ? input : out)->numel / places;
    for (int dim = 0; dim < 3; dim++) {
        const int at = scales + dim - 3 + upsample->dims;
        const double factor = at < scales || opd_arg_is_none(call, at) ? 0 : opd_arg_double(call, at);
        if (opdi_taps_fill(upsample, dim, factor)) { return -1; }
    }
    if (bytes) { return opdi_upsample_bytes(upsample, input, out); }
    input = opdi_dense_as(input, dtype);
    opd_tensor *output = opdi_staging(out, dtype);
    if (!input || !output) { return -1; }
    if (upsample->back) { memset(output->data, 0, (size_t)output->numel * opd_dtype_size(dtype)); }
    upsample->input = input->data;
    upsample->output = output->data;
    opdi_parallel_for(upsample->planes, OPDI_MAX((int64_t)1, OPDI_GRAIN / places), opdi_upsample_range, upsample);
    return opdi_staging_store(out, output);
}
/* The kernel of all upsample operators: resizes argument 0 [n, c, ...] to output_size, argument 1.  Returns 0, or -1
   and sets an error. */
static int opdi_upsample_kernel(opd_call *call) {
    static const char *const names[] = {"compute_indices_weights_nearest", "compute_indices_weights_nearest",
                                        "compute_indices_weights_linear", "compute_indices_weights_cubic",
                                        "compute_index_ranges_weights", "compute_index_ranges_weights"};
    opd_tensor *input = opd_arg_tensor(call, 0);
    const int64_t *other_sizes = opdi_sizes(input);
    int64_t sizes[5];
    char text[256];
    opdi_upsample upsample;
    if (opdi_upsample_read(call, &upsample, opd_arg_ints(call, 1), other_sizes, input->ndim)) { return -1; }
    const bool nearest = upsample.how <= OPDI_UPSAMPLE_EXACT;
    const int ndim = upsample.dims + 2;
    if (other_sizes[1] == 0) {
        return opd_fail(OPD_ERROR_SHAPE, "Non-empty %dD data tensor expected but got a tensor with sizes %s", ndim,
                        opdi_sizes_text(other_sizes, ndim, text, sizeof text));
    }
    if (!((nearest || upsample.dims == 2) && input->dtype == OPD_UINT8) &&
        opdi_kernel_dtype(OPDI_DTYPE(input), false, names[upsample.how]) < 0) {
        return -1;
    }
    sizes[0] = other_sizes[0];
    sizes[1] = other_sizes[1];
    for (int dim = 2; dim < ndim; dim++) { sizes[dim] = upsample.out[dim + 3 - ndim]; }
    upsample.corners = !nearest && opd_arg_bool(call, 2);
    return opdi_upsample_run(call, &upsample, input, opdi_result_format(call, 0, opdi_is_channels_last(input), sizes,
                                                                        ndim, OPDI_DTYPE(input)), nearest ? 2 : 3);
}
/* The kernel of all gradients of upsampling: computes the gradient of the input, whose sizes are input_size (argument
   2), from argument 0, the gradient of the output.  Returns 0, or -1 and sets an error. */
static int opdi_upsample_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0);
    const opd_ints in = opd_arg_ints(call, 2);
    int64_t sizes[5];
    char text[2][256];
    opdi_upsample upsample;
    if (opdi_upsample_read(call, &upsample, opd_arg_ints(call, 1), in.data, (int)OPDI_MIN(in.n, (int64_t)64))) {
        return -1;
    }
    const bool nearest = upsample.how <= OPDI_UPSAMPLE_EXACT;
    const int ndim = upsample.dims + 2;
    sizes[0] = in.data[0];
    sizes[1] = in.data[1];
    for (int dim = 2; dim < ndim; dim++) { sizes[dim] = upsample.out[dim + 3 - ndim]; }
    if (!opdi_has_sizes(grad, sizes, ndim)) {
        return opd_fail(OPD_ERROR_SHAPE, "Expected grad_output to have the sizes of the output, %s, but got %s",
                        opdi_sizes_text(sizes, ndim, text[0], sizeof text[0]),
                        opdi_sizes_text(opdi_sizes(grad), grad->ndim, text[1], sizeof text[1]));
    }
    if (opdi_kernel_dtype(OPDI_DTYPE(grad), false, call->op->schema->name) < 0) { return -1; }
    const bool last = opdi_is_channels_last(grad) && !(nearest && ndim == 5) &&
        upsample.how != OPDI_UPSAMPLE_CUBIC && upsample.how != OPDI_UPSAMPLE_CUBIC_AA;
    upsample.back = true;
    upsample.corners = !nearest && opd_arg_bool(call, 3);
    return opdi_upsample_run(call, &upsample, grad,
                             opdi_result_format(call, 0, last, in.data, ndim, OPDI_DTYPE(grad)), nearest ? 3 : 4);
}
/* The batching rule of the gradient of upsampling: computes the images of all examples in one call. */
static int opdi_upsample_backward_batch(opd_call *call) {
    int dim;
    opd_tensor *grad = opd_batch_arg(call, 0, &dim);
    const opd_ints in = opd_arg_ints(call, 2);
    opd_value args[OPD_MAX_ARGS];
    int64_t sizes[6];
    const int64_t count = opd_batch_size();
    grad = opd_batch_front(grad, dim);
    if (!grad || in.n < 3 || in.n > 5 || grad->ndim != in.n + 1) { return opd_batch_loop(call); }
    for (int i = 0; i < call->op->nargs; i++) { args[i] = call->args[i]; }
    args[0] = opd_value_tensor(opd_flatten(grad, 0, 1));
    memcpy(sizes + 1, in.data, (size_t)in.n * sizeof *sizes);
    sizes[1] = opdi_size_times(sizes[1], count);
    args[2] = opd_value_ints(sizes + 1, in.n);
    grad = args[0].u.t ? opd_call_op(call->op, args, call->op->nargs) : NULL;
    sizes[0] = count;
    sizes[1] = in.data[0];
    return opd_batch_return(call, grad ? opdi_reshape_to(grad, sizes, (int)in.n + 1) : NULL, 0);
}
/* Runs upsample_*.vec or, if `back` is true, its derivative, which exists in PyTorch 1 and has the sizes of the input
   as third argument.  The call gives either the size of the output or the factors; with factors, the size is floor(size
   * factor).  Returns 0, or -1 and sets an error. */
static int opdi_upsample_vec(opd_call *call, bool back) {
    const opdi_upsample_form *form = opdi_upsample_form_of(call->op);
    const opd_tensor *input = opd_arg_tensor(call, 0);
    const int corners = form->how <= OPDI_UPSAMPLE_EXACT ? 0 : 1, next = back ? 3 : 2;
    const opd_ints in = back ? opd_arg_ints(call, 2) : opd_ints_of(opdi_sizes(input), input->ndim);
    const opd_value size = opd_arg_value(call, 1), factors = opd_arg_value(call, next + corners);
    opd_value args[7];
    int64_t out[3];
    int count = 0;
    if ((size.tag == OPD_TAG_NONE) == (factors.tag == OPD_TAG_NONE)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Must specify exactly one of output_size and scale_factors");
    }
    if (in.n != form->dims + 2 || (factors.tag != OPD_TAG_NONE && factors.n != form->dims)) {
        return opd_fail(OPD_ERROR_SHAPE, "input must have %d dimensions and scale_factors %d elements", form->dims + 2,
                        form->dims);
    }
    args[count++] = opd_value_tensor(opd_arg_tensor(call, 0));
    args[count++] = size;
    for (int i = 2; i < next + corners; i++) { args[count++] = opd_arg_value(call, i); }
    for (int dim = 0; dim < form->dims; dim++) {
        const double f = factors.tag == OPD_TAG_NONE ? 0 : factors.u.floats[dim];
        args[count++] = f > 0 || f < 0 ? opd_value_double(f) : opd_value_none();
        out[dim] = (int64_t)OPDI_MIN(OPDI_MAX((double)in.data[2 + dim] * f, -1.), 1e15);
    }
    if (size.tag == OPD_TAG_NONE) { args[1] = opd_value_ints(out, form->dims); }
    return opd_return_tensor(call, opd_call_op(opd_op_builtin(back ? form->derivative : form->op), args, count));
}
static int opdi_upsample_vec_kernel(opd_call *call) { return opdi_upsample_vec(call, false); }
static int opdi_upsample_backward_vec_kernel(opd_call *call) { return opdi_upsample_vec(call, true); }
/* Computes the gradient of argument 0 by calling operator `id` with the arguments of the differentiated call.  If
   `forward` is true, `id` is a derivative: the input's sizes are inserted as its third argument.  Otherwise `id` is
   the forward operator, and the third argument is left out. */
static int opdi_upsample_derive(opd_backward_call *bw, opd_op_id id, bool forward) {
    opd_op *op = opd_op_builtin(id);
    opd_value args[7];
    const opd_ints sizes = opd_bw_sizes(bw, 0);
    args[0] = opd_value_tensor(opd_bw_grad(bw, 0));
    args[1] = opd_bw_value(bw, 1);
    args[2] = opd_value_ints(sizes.data, sizes.n);
    for (int i = forward ? 3 : 2; i < op->nargs; i++) { args[i] = opd_bw_value(bw, forward ? i - 1 : i + 1); }
    return opd_bw_return(bw, 0, opd_call_op(op, args, op->nargs));
}
static int opdi_upsample_nearest1d_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_nearest1d_backward), true);
}
static int opdi_upsample_nearest1d_backward_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_nearest1d), false);
}
static int opdi_upsample_nearest2d_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_nearest2d_backward), true);
}
static int opdi_upsample_nearest2d_backward_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_nearest2d), false);
}
static int opdi_upsample_nearest3d_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_nearest3d_backward), true);
}
static int opdi_upsample_nearest3d_backward_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_nearest3d), false);
}
static int opdi__upsample_nearest_exact1d_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(_upsample_nearest_exact1d_backward), true);
}
static int opdi__upsample_nearest_exact1d_backward_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(_upsample_nearest_exact1d), false);
}
static int opdi__upsample_nearest_exact2d_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(_upsample_nearest_exact2d_backward), true);
}
static int opdi__upsample_nearest_exact2d_backward_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(_upsample_nearest_exact2d), false);
}
static int opdi__upsample_nearest_exact3d_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(_upsample_nearest_exact3d_backward), true);
}
static int opdi__upsample_nearest_exact3d_backward_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(_upsample_nearest_exact3d), false);
}
static int opdi_upsample_linear1d_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_linear1d_backward), true);
}
static int opdi_upsample_linear1d_backward_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_linear1d), false);
}
static int opdi_upsample_bilinear2d_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_bilinear2d_backward), true);
}
static int opdi_upsample_bilinear2d_backward_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_bilinear2d), false);
}
static int opdi_upsample_trilinear3d_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_trilinear3d_backward), true);
}
static int opdi_upsample_trilinear3d_backward_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_trilinear3d), false);
}
static int opdi_upsample_bicubic2d_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_bicubic2d_backward), true);
}
static int opdi_upsample_bicubic2d_backward_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(upsample_bicubic2d), false);
}
static int opdi__upsample_bilinear2d_aa_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(_upsample_bilinear2d_aa_backward), true);
}
static int opdi__upsample_bilinear2d_aa_backward_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(_upsample_bilinear2d_aa), false);
}
static int opdi__upsample_bicubic2d_aa_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(_upsample_bicubic2d_aa_backward), true);
}
static int opdi__upsample_bicubic2d_aa_backward_backward(opd_backward_call *bw) {
    return opdi_upsample_derive(bw, OPDI_BY_NUMBER(_upsample_bicubic2d_aa), false);
}
#define OPDI_SCALES_1 ", float? scales=None"
#define OPDI_SCALES_2 ", float? scales_h=None, float? scales_w=None"
#define OPDI_SCALES_3 ", float? scales_d=None, float? scales_h=None, float? scales_w=None"
/* opd_upsample_nearest1d: [N, C, L] resized, by the nearest element */
OPDI_OP(upsample_nearest1d) {
    op->schema = "upsample_nearest1d(Tensor self, SymInt[1] output_size" OPDI_SCALES_1 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_kernel; op->backward = opdi_upsample_nearest1d_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_batch_fold_1d; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "upsample_nearest1d.out";
    op->cases = "[1,2,3], (5); [2,1,4], (2); [1,1,3], (7), 2.5";
}
/* opd_upsample_nearest1d_backward: derivative of upsample_nearest1d */
OPDI_OP(upsample_nearest1d_backward) {
    op->schema = "upsample_nearest1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size"
        OPDI_SCALES_1 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_backward_kernel; op->backward = opdi_upsample_nearest1d_backward_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_upsample_backward_batch;
    op->out = "upsample_nearest1d_backward.grad_input(grad_input)";
    op->cases = "[1,2,5], (5), (1,2,3); [2,1,2], (2), (2,1,4)";
}
/* opd_upsample_nearest1d_vec: [N, C, L] resized, by the nearest element */
OPDI_OP(upsample_nearest1d_vec) {
    op->schema = "upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor";
    op->composite = opdi_upsample_vec_kernel; OPDI_NEEDS(upsample_nearest1d);
    op->out = "upsample_nearest1d.vec_out";
    op->cases = "[1,2,3], (5), None; [1,2,3], None, (2.5)";
}
/* opd_upsample_nearest1d_backward_vec: derivative of upsample_nearest1d, for programs of PyTorch 1 */
OPDI_OP(upsample_nearest1d_backward_vec) {
    op->schema = "upsample_nearest1d_backward.vec(Tensor grad_output, SymInt[]? output_size, SymInt[] input_size, "
        "float[]? scale_factors) -> Tensor";
    op->composite = opdi_upsample_backward_vec_kernel; OPDI_NEEDS(upsample_nearest1d_backward);
    op->out = "upsample_nearest1d_backward.vec_out";
    op->cases = "[1,2,5], (5), (1,2,3), None; [2,1,4], None, (2,1,3), (1.5)";
}
/* opd_upsample_nearest2d: [N, C, H, W] resized, by the nearest element */
OPDI_OP(upsample_nearest2d) {
    op->schema = "upsample_nearest2d(Tensor self, SymInt[2] output_size" OPDI_SCALES_2 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_kernel; op->backward = opdi_upsample_nearest2d_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_batch_fold_2d; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "upsample_nearest2d.out";
    op->cases = "[1,2,3,4], (5,4); [2,1,4,4], (2,3); [1,1,3,3], (7,7), 2.5, 2.4";
}
/* opd_upsample_nearest2d_backward: derivative of upsample_nearest2d */
OPDI_OP(upsample_nearest2d_backward) {
    op->schema = "upsample_nearest2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size"
        OPDI_SCALES_2 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_backward_kernel; op->backward = opdi_upsample_nearest2d_backward_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_upsample_backward_batch;
    op->out = "upsample_nearest2d_backward.grad_input(grad_input)";
    op->cases = "[1,2,5,4], (5,4), (1,2,3,4); [2,1,2,3], (2,3), (2,1,4,4)";
}
/* opd_upsample_nearest2d_vec: [N, C, H, W] resized, by the nearest element */
OPDI_OP(upsample_nearest2d_vec) {
    op->schema = "upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor";
    op->composite = opdi_upsample_vec_kernel; OPDI_NEEDS(upsample_nearest2d);
    op->tags = OPD_OPTAG_CORE;
    op->out = "upsample_nearest2d.vec_out";
    op->cases = "[1,2,3,4], (5,4), None; [1,2,3,4], None, (2.5,1.5)";
}
/* opd_upsample_nearest2d_backward_vec: derivative of upsample_nearest2d, for programs of PyTorch 1 */
OPDI_OP(upsample_nearest2d_backward_vec) {
    op->schema = "upsample_nearest2d_backward.vec(Tensor grad_output, SymInt[]? output_size, SymInt[] input_size, "
        "float[]? scale_factors) -> Tensor";
    op->composite = opdi_upsample_backward_vec_kernel; OPDI_NEEDS(upsample_nearest2d_backward);
    op->out = "upsample_nearest2d_backward.vec_out";
    op->cases = "[1,2,5,4], (5,4), (1,2,3,4), None; [1,2,4,6], None, (1,2,3,4), (1.5,1.5)";
}
/* opd_upsample_nearest3d: [N, C, D, H, W] resized, by the nearest element */
OPDI_OP(upsample_nearest3d) {
    op->schema = "upsample_nearest3d(Tensor self, SymInt[3] output_size" OPDI_SCALES_3 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_kernel; op->backward = opdi_upsample_nearest3d_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_batch_fold_3d; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "upsample_nearest3d.out";
    op->cases = "[1,2,2,3,2], (3,2,2); [2,1,2,4,3], (1,2,3); [1,1,2,2,3], (3,4,7), 1.5, 2.0, 2.4";
}
/* opd_upsample_nearest3d_backward: derivative of upsample_nearest3d */
OPDI_OP(upsample_nearest3d_backward) {
    op->schema = "upsample_nearest3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size"
        OPDI_SCALES_3 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_backward_kernel; op->backward = opdi_upsample_nearest3d_backward_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_upsample_backward_batch;
    op->out = "upsample_nearest3d_backward.grad_input(grad_input)";
    op->cases = "[1,2,3,2,2], (3,2,2), (1,2,2,3,2); [2,1,1,2,3], (1,2,3), (2,1,2,4,3)";
}
/* opd_upsample_nearest3d_vec: [N, C, D, H, W] resized, by the nearest element */
OPDI_OP(upsample_nearest3d_vec) {
    op->schema = "upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor";
    op->composite = opdi_upsample_vec_kernel; OPDI_NEEDS(upsample_nearest3d);
    op->out = "upsample_nearest3d.vec_out";
    op->cases = "[1,2,2,3,2], (3,2,2), None; [1,2,2,3,2], None, (1.5,1.0,2.5)";
}
/* opd_upsample_nearest3d_backward_vec: derivative of upsample_nearest3d, for programs of PyTorch 1 */
OPDI_OP(upsample_nearest3d_backward_vec) {
    op->schema = "upsample_nearest3d_backward.vec(Tensor grad_output, SymInt[]? output_size, SymInt[] input_size, "
        "float[]? scale_factors) -> Tensor";
    op->composite = opdi_upsample_backward_vec_kernel; OPDI_NEEDS(upsample_nearest3d_backward);
    op->out = "upsample_nearest3d_backward.vec_out";
    op->cases = "[1,1,3,2,2], (3,2,2), (1,1,2,3,2), None; [1,1,3,3,5], None, (1,1,2,3,2), (1.5,1.0,2.5)";
}
/* opd__upsample_nearest_exact1d: [N, C, L] resized, by the element nearest to the middle */
OPDI_OP(_upsample_nearest_exact1d) {
    op->schema = "_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size" OPDI_SCALES_1 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_kernel; op->backward = opdi__upsample_nearest_exact1d_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_batch_fold_1d; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "_upsample_nearest_exact1d.out";
    op->cases = "[1,2,3], (5); [2,1,4], (2); [1,1,3], (7), 2.5";
}
/* opd__upsample_nearest_exact1d_backward: derivative of _upsample_nearest_exact1d */
OPDI_OP(_upsample_nearest_exact1d_backward) {
    op->schema = "_upsample_nearest_exact1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size"
        OPDI_SCALES_1 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_backward_kernel; op->backward = opdi__upsample_nearest_exact1d_backward_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_upsample_backward_batch;
    op->out = "_upsample_nearest_exact1d_backward.grad_input(grad_input)";
    op->cases = "[1,2,5], (5), (1,2,3); [2,1,2], (2), (2,1,4)";
}
/* opd__upsample_nearest_exact1d_vec: [N, C, L] resized, by the element nearest to the middle */
OPDI_OP(_upsample_nearest_exact1d_vec) {
    op->schema = "_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> "
        "Tensor";
    op->composite = opdi_upsample_vec_kernel; OPDI_NEEDS(_upsample_nearest_exact1d);
    op->cases = "[1,2,3], (5), None; [1,2,3], None, (2.5)";
}
/* opd__upsample_nearest_exact2d: [N, C, H, W] resized, by the element nearest to the middle */
OPDI_OP(_upsample_nearest_exact2d) {
    op->schema = "_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size" OPDI_SCALES_2 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_kernel; op->backward = opdi__upsample_nearest_exact2d_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_batch_fold_2d; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "_upsample_nearest_exact2d.out";
    op->cases = "[1,2,3,4], (5,4); [2,1,4,4], (2,3); [1,1,3,3], (7,7), 2.5, 2.4";
}
/* opd__upsample_nearest_exact2d_backward: derivative of _upsample_nearest_exact2d */
OPDI_OP(_upsample_nearest_exact2d_backward) {
    op->schema = "_upsample_nearest_exact2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size"
        OPDI_SCALES_2 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_backward_kernel; op->backward = opdi__upsample_nearest_exact2d_backward_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_upsample_backward_batch;
    op->out = "_upsample_nearest_exact2d_backward.grad_input(grad_input)";
    op->cases = "[1,2,5,4], (5,4), (1,2,3,4); [2,1,2,3], (2,3), (2,1,4,4)";
}
/* opd__upsample_nearest_exact2d_vec: [N, C, H, W] resized, by the element nearest to the middle */
OPDI_OP(_upsample_nearest_exact2d_vec) {
    op->schema = "_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> "
        "Tensor";
    op->composite = opdi_upsample_vec_kernel; OPDI_NEEDS(_upsample_nearest_exact2d);
    op->cases = "[1,2,3,4], (5,4), None; [1,2,3,4], None, (2.5,1.5)";
}
/* opd__upsample_nearest_exact3d: [N, C, D, H, W] resized, by the element nearest to the middle */
OPDI_OP(_upsample_nearest_exact3d) {
    op->schema = "_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size" OPDI_SCALES_3 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_kernel; op->backward = opdi__upsample_nearest_exact3d_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_batch_fold_3d; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "_upsample_nearest_exact3d.out";
    op->cases = "[1,2,2,3,2], (3,2,2); [2,1,2,4,3], (1,2,3); [1,1,2,2,3], (3,4,7), 1.5, 2.0, 2.4";
}
/* opd__upsample_nearest_exact3d_backward: derivative of _upsample_nearest_exact3d */
OPDI_OP(_upsample_nearest_exact3d_backward) {
    op->schema = "_upsample_nearest_exact3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size"
        OPDI_SCALES_3 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_backward_kernel; op->backward = opdi__upsample_nearest_exact3d_backward_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_upsample_backward_batch;
    op->out = "_upsample_nearest_exact3d_backward.grad_input(grad_input)";
    op->cases = "[1,2,3,2,2], (3,2,2), (1,2,2,3,2); [2,1,1,2,3], (1,2,3), (2,1,2,4,3)";
}
/* opd__upsample_nearest_exact3d_vec: [N, C, D, H, W] resized, by the element nearest to the middle */
OPDI_OP(_upsample_nearest_exact3d_vec) {
    op->schema = "_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> "
        "Tensor";
    op->composite = opdi_upsample_vec_kernel; OPDI_NEEDS(_upsample_nearest_exact3d);
    op->cases = "[1,2,2,3,2], (3,2,2), None; [1,2,2,3,2], None, (1.5,1.0,2.5)";
}
/* opd_upsample_linear1d: [N, C, L] resized, by linear interpolation */
OPDI_OP(upsample_linear1d) {
    op->schema = "upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners" OPDI_SCALES_1 ") -> "
        "Tensor";
    op->cpu = op->fake = opdi_upsample_kernel; op->backward = opdi_upsample_linear1d_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_batch_fold_1d; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "upsample_linear1d.out";
    op->cases = "[1,2,3], (5), False; [2,1,4], (2), True; [1,1,3], (7), False, 2.5";
}
/* opd_upsample_linear1d_backward: derivative of upsample_linear1d */
OPDI_OP(upsample_linear1d_backward) {
    op->schema = "upsample_linear1d_backward(Tensor grad_output, SymInt[1] output_size, SymInt[3] input_size, bool "
        "align_corners" OPDI_SCALES_1 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_backward_kernel; op->backward = opdi_upsample_linear1d_backward_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_upsample_backward_batch;
    op->out = "upsample_linear1d_backward.grad_input(grad_input)";
    op->cases = "[1,2,5], (5), (1,2,3), False; [2,1,2], (2), (2,1,4), True";
}
/* opd_upsample_linear1d_vec: [N, C, L] resized, by linear interpolation */
OPDI_OP(upsample_linear1d_vec) {
    op->schema = "upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
        "scale_factors) -> Tensor";
    op->composite = opdi_upsample_vec_kernel; OPDI_NEEDS(upsample_linear1d);
    op->out = "upsample_linear1d.vec_out";
    op->cases = "[1,2,3], (5), True, None; [1,2,3], None, False, (2.5)";
}
/* opd_upsample_linear1d_backward_vec: derivative of upsample_linear1d, for programs of PyTorch 1 */
OPDI_OP(upsample_linear1d_backward_vec) {
    op->schema = "upsample_linear1d_backward.vec(Tensor grad_output, SymInt[]? output_size, SymInt[] input_size, "
        "bool align_corners, float[]? scale_factors) -> Tensor";
    op->composite = opdi_upsample_backward_vec_kernel; OPDI_NEEDS(upsample_linear1d_backward);
    op->out = "upsample_linear1d_backward.vec_out";
    op->cases = "[1,2,5], (5), (1,2,3), True, None; [2,1,4], None, (2,1,3), False, (1.5)";
}
/* opd_upsample_bilinear2d: [N, C, H, W] resized, by bilinear interpolation */
OPDI_OP(upsample_bilinear2d) {
    op->schema = "upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners" OPDI_SCALES_2 ") -> "
        "Tensor";
    op->cpu = op->fake = opdi_upsample_kernel; op->backward = opdi_upsample_bilinear2d_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_batch_fold_2d; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "upsample_bilinear2d.out";
    op->cases = "[1,2,3,4], (5,4), False; [2,1,4,4], (2,3), True; [1,1,3,3], (7,7), False, 2.5, 2.4; [1,2,2,3], "
        "(1,6), True";
}
/* opd_upsample_bilinear2d_backward: derivative of upsample_bilinear2d */
OPDI_OP(upsample_bilinear2d_backward) {
    op->schema = "upsample_bilinear2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
        "align_corners" OPDI_SCALES_2 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_backward_kernel; op->backward = opdi_upsample_bilinear2d_backward_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_upsample_backward_batch;
    op->out = "upsample_bilinear2d_backward.grad_input(grad_input)";
    op->cases = "[1,2,5,4], (5,4), (1,2,3,4), False; [2,1,2,3], (2,3), (2,1,4,4), True";
}
/* opd_upsample_bilinear2d_vec: [N, C, H, W] resized, by bilinear interpolation */
OPDI_OP(upsample_bilinear2d_vec) {
    op->schema = "upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
        "scale_factors) -> Tensor";
    op->composite = opdi_upsample_vec_kernel; OPDI_NEEDS(upsample_bilinear2d);
    op->tags = OPD_OPTAG_CORE;
    op->out = "upsample_bilinear2d.vec_out";
    op->cases = "[1,2,3,4], (5,4), True, None; [1,2,3,4], None, False, (2.5,1.5)";
}
/* opd_upsample_bilinear2d_backward_vec: derivative of upsample_bilinear2d, for programs of PyTorch 1 */
OPDI_OP(upsample_bilinear2d_backward_vec) {
    op->schema = "upsample_bilinear2d_backward.vec(Tensor grad_output, SymInt[]? output_size, SymInt[] input_size, "
        "bool align_corners, float[]? scale_factors) -> Tensor";
    op->composite = opdi_upsample_backward_vec_kernel; OPDI_NEEDS(upsample_bilinear2d_backward);
    op->out = "upsample_bilinear2d_backward.vec_out";
    op->cases = "[1,2,5,4], (5,4), (1,2,3,4), True, None; [1,2,4,6], None, (1,2,3,4), False, (1.5,1.5)";
}
/* opd_upsample_trilinear3d: [N, C, D, H, W] resized, by trilinear interpolation */
OPDI_OP(upsample_trilinear3d) {
    op->schema = "upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners" OPDI_SCALES_3 ") -> "
        "Tensor";
    op->cpu = op->fake = opdi_upsample_kernel; op->backward = opdi_upsample_trilinear3d_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_batch_fold_3d; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "upsample_trilinear3d.out";
    op->cases = "[1,2,2,3,2], (3,2,2), False; [2,1,2,4,3], (1,2,3), True; [1,1,2,2,3], (3,4,7), False, 1.5, 2.0, 2.4";
}
/* opd_upsample_trilinear3d_backward: derivative of upsample_trilinear3d */
OPDI_OP(upsample_trilinear3d_backward) {
    op->schema = "upsample_trilinear3d_backward(Tensor grad_output, SymInt[3] output_size, SymInt[5] input_size, "
        "bool align_corners" OPDI_SCALES_3 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_backward_kernel; op->backward = opdi_upsample_trilinear3d_backward_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_upsample_backward_batch;
    op->out = "upsample_trilinear3d_backward.grad_input(grad_input)";
    op->cases = "[1,2,3,2,2], (3,2,2), (1,2,2,3,2), False; [2,1,1,2,3], (1,2,3), (2,1,2,4,3), True";
}
/* opd_upsample_trilinear3d_vec: [N, C, D, H, W] resized, by trilinear interpolation */
OPDI_OP(upsample_trilinear3d_vec) {
    op->schema = "upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
        "scale_factors) -> Tensor";
    op->composite = opdi_upsample_vec_kernel; OPDI_NEEDS(upsample_trilinear3d);
    op->out = "upsample_trilinear3d.vec_out";
    op->cases = "[1,2,2,3,2], (3,2,2), True, None; [1,2,2,3,2], None, False, (1.5,1.0,2.5)";
}
/* opd_upsample_trilinear3d_backward_vec: derivative of upsample_trilinear3d, for programs of PyTorch 1 */
OPDI_OP(upsample_trilinear3d_backward_vec) {
    op->schema = "upsample_trilinear3d_backward.vec(Tensor grad_output, SymInt[]? output_size, SymInt[] input_size, "
        "bool align_corners, float[]? scale_factors) -> Tensor";
    op->composite = opdi_upsample_backward_vec_kernel; OPDI_NEEDS(upsample_trilinear3d_backward);
    op->out = "upsample_trilinear3d_backward.vec_out";
    op->cases = "[1,1,3,2,2], (3,2,2), (1,1,2,3,2), True, None; [1,1,3,3,5], None, (1,1,2,3,2), False, (1.5,1.0,2.5)";
}
/* opd_upsample_bicubic2d: [N, C, H, W] resized, by bicubic interpolation */
OPDI_OP(upsample_bicubic2d) {
    op->schema = "upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners" OPDI_SCALES_2 ") -> "
        "Tensor";
    op->cpu = op->fake = opdi_upsample_kernel; op->backward = opdi_upsample_bicubic2d_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_batch_fold_2d; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "upsample_bicubic2d.out";
    op->cases = "[1,2,3,4], (5,4), False; [2,1,4,4], (2,3), True; [1,1,3,3], (7,7), False, 2.5, 2.4";
}
/* opd_upsample_bicubic2d_backward: derivative of upsample_bicubic2d */
OPDI_OP(upsample_bicubic2d_backward) {
    op->schema = "upsample_bicubic2d_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, bool "
        "align_corners" OPDI_SCALES_2 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_backward_kernel; op->backward = opdi_upsample_bicubic2d_backward_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_upsample_backward_batch;
    op->out = "upsample_bicubic2d_backward.grad_input(grad_input)";
    op->cases = "[1,2,5,4], (5,4), (1,2,3,4), False; [2,1,2,3], (2,3), (2,1,4,4), True";
}
/* opd_upsample_bicubic2d_vec: [N, C, H, W] resized, by bicubic interpolation */
OPDI_OP(upsample_bicubic2d_vec) {
    op->schema = "upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
        "scale_factors) -> Tensor";
    op->composite = opdi_upsample_vec_kernel; OPDI_NEEDS(upsample_bicubic2d);
    op->out = "upsample_bicubic2d.vec_out";
    op->cases = "[1,2,3,4], (5,4), True, None; [1,2,3,4], None, False, (2.5,1.5)";
}
/* opd_upsample_bicubic2d_backward_vec: derivative of upsample_bicubic2d, for programs of PyTorch 1 */
OPDI_OP(upsample_bicubic2d_backward_vec) {
    op->schema = "upsample_bicubic2d_backward.vec(Tensor grad_output, SymInt[]? output_size, SymInt[] input_size, "
        "bool align_corners, float[]? scale_factors) -> Tensor";
    op->composite = opdi_upsample_backward_vec_kernel; OPDI_NEEDS(upsample_bicubic2d_backward);
    op->out = "upsample_bicubic2d_backward.vec_out";
    op->cases = "[1,2,5,4], (5,4), (1,2,3,4), True, None; [1,2,4,6], None, (1,2,3,4), False, (1.5,1.5)";
}
/* opd__upsample_bilinear2d_aa: [N, C, H, W] resized, by bilinear interpolation, smoothed if it shrinks */
OPDI_OP(_upsample_bilinear2d_aa) {
    op->schema = "_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners" OPDI_SCALES_2 ") "
        "-> Tensor";
    op->cpu = op->fake = opdi_upsample_kernel; op->backward = opdi__upsample_bilinear2d_aa_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_batch_fold_2d; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "_upsample_bilinear2d_aa.out";
    op->cases = "[1,2,3,4], (5,4), False; [2,1,4,4], (2,3), True; [1,1,3,3], (7,7), False, 2.5, 2.4; [1,1,9,3], "
        "(2,3), False";
}
/* opd__upsample_bilinear2d_aa_backward: derivative of _upsample_bilinear2d_aa */
OPDI_OP(_upsample_bilinear2d_aa_backward) {
    op->schema = "_upsample_bilinear2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, "
        "bool align_corners" OPDI_SCALES_2 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_backward_kernel; op->backward = opdi__upsample_bilinear2d_aa_backward_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_upsample_backward_batch;
    op->out = "_upsample_bilinear2d_aa_backward.grad_input(grad_input)";
    op->cases = "[1,2,5,4], (5,4), (1,2,3,4), False; [2,1,2,3], (2,3), (2,1,4,4), True";
}
/* opd__upsample_bilinear2d_aa_vec: [N, C, H, W] resized, by bilinear interpolation, smoothed if it shrinks */
OPDI_OP(_upsample_bilinear2d_aa_vec) {
    op->schema = "_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
        "scale_factors) -> Tensor";
    op->composite = opdi_upsample_vec_kernel; OPDI_NEEDS(_upsample_bilinear2d_aa);
    op->cases = "[1,2,3,4], (5,4), True, None; [1,2,3,4], None, False, (2.5,1.5)";
}
/* opd__upsample_bicubic2d_aa: [N, C, H, W] resized, by bicubic interpolation, smoothed if it shrinks */
OPDI_OP(_upsample_bicubic2d_aa) {
    op->schema = "_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners" OPDI_SCALES_2 ") -> "
        "Tensor";
    op->cpu = op->fake = opdi_upsample_kernel; op->backward = opdi__upsample_bicubic2d_aa_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_batch_fold_2d; op->autocast = OPD_AUTOCAST_FP32_NOT_CPU;
    op->out = "_upsample_bicubic2d_aa.out";
    op->cases = "[1,2,3,4], (5,4), False; [2,1,4,4], (2,3), True; [1,1,3,3], (7,7), False, 2.5, 2.4; [1,1,9,3], "
        "(2,3), False";
}
/* opd__upsample_bicubic2d_aa_backward: derivative of _upsample_bicubic2d_aa */
OPDI_OP(_upsample_bicubic2d_aa_backward) {
    op->schema = "_upsample_bicubic2d_aa_backward(Tensor grad_output, SymInt[2] output_size, SymInt[4] input_size, "
        "bool align_corners" OPDI_SCALES_2 ") -> Tensor";
    op->cpu = op->fake = opdi_upsample_backward_kernel; op->backward = opdi__upsample_bicubic2d_aa_backward_backward;
    op->jvp = OPD_JVP_LINEAR; op->vmap = opdi_upsample_backward_batch;
    op->out = "_upsample_bicubic2d_aa_backward.grad_input(grad_input)";
    op->cases = "[1,2,5,4], (5,4), (1,2,3,4), False; [2,1,2,3], (2,3), (2,1,4,4), True";
}
/* opd__upsample_bicubic2d_aa_vec: [N, C, H, W] resized, by bicubic interpolation, smoothed if it shrinks */
OPDI_OP(_upsample_bicubic2d_aa_vec) {
    op->schema = "_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
        "scale_factors) -> Tensor";
    op->composite = opdi_upsample_vec_kernel; OPDI_NEEDS(_upsample_bicubic2d_aa);
    op->cases = "[1,2,3,4], (5,4), True, None; [1,2,3,4], None, False, (2.5,1.5)";
}
OPDI_COLD_END
OPDI_COLD_END
