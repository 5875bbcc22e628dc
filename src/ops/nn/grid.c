#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:grid      sampling images at given points: grid_sampler, affine_grid_generator; channel_shuffle
//----------------------------------------------------------------------------------------------------------------------

//== grid_sampler_2d ===================================================================================================
//
//  Each output element has a point of the image, which the grid gives as two coordinates from -1 to 1 (x, then y).  The
//  output element is a weighted sum of the elements in one, two or four rows and as many columns around that point.
//  The weight of an element is the product of its row's and its column's weight.  Elements outside of the image count
//  as 0, or are replaced by the nearest element of the border, or by their mirror image.

OPDI_COLD_BEGIN

enum { OPDI_GRID_BILINEAR = 0, OPDI_GRID_NEAREST, OPDI_GRID_BICUBIC };
enum { OPDI_GRID_ZEROS = 0, OPDI_GRID_BORDER, OPDI_GRID_REFLECTION };
enum { OPDI_GRID_TAPS = 1024, OPDI_GRID_WIDE = 256 };      /* the most taps and points that are found together */
typedef struct opdi_grid {
    int64_t n, c, in[2], out[2];                  /* n, c: number of images and of channels; in, out: [rows, columns] */
    int how, outside;
    bool corners;
    const void *input, *grid, *grad;              /* input [n, c, in], grid [n, out, 2], grad [n, c, out] */
    void *output, *dx, *dgrid;                    /* output: as large as grad; dx: as input, or NULL; dgrid: as grid */
} opdi_grid;
static void opdi_grid_rows_f32(void *ctx, int64_t begin, int64_t end);
static void opdi_grid_rows_f64(void *ctx, int64_t begin, int64_t end);
static void opdi_grid_back_f32(void *ctx, int64_t begin, int64_t end);
static void opdi_grid_back_f64(void *ctx, int64_t begin, int64_t end);
OPDI_COLD_END
#include "../../typed/f32.h"
#include "grid_samples.typed.h"
#include "../../typed/f64.h"
#include "grid_samples.typed.h"
#include "../../typed/end.h"
OPDI_COLD_BEGIN
/* Reads input, grid, the interpolation, the padding and align_corners, which are the arguments from number `at` on,
   into *other.  `dims` is the number of dims that input must have.  Returns 0, or -1 and sets an error. */
static int opdi_grid_read(opd_call *call, int at, int dims, opdi_grid *other) {
    opd_tensor *input = opd_arg_tensor(call, at), *grid = opd_arg_tensor(call, at + 1);
    const int64_t how = opd_arg_int(call, at + 2), outside = opd_arg_int(call, at + 3);
    char first[256], second[256];
    opdi_sizes_text(opdi_sizes(input), input->ndim, first, sizeof first);
    opdi_sizes_text(opdi_sizes(grid), grid->ndim, second, sizeof second);
    if (input->ndim && grid->ndim && opdi_sizes(input)[0] != opdi_sizes(grid)[0]) {
        return opd_fail(OPD_ERROR_SHAPE, "grid_sampler(): expected grid and input to have same batch size, but got "
                        "input with sizes %s and grid with sizes %s", first, second);
    }
    if (input->ndim != dims || grid->ndim != dims) {
        return opd_fail(OPD_ERROR_SHAPE, "grid_sampler(): expected %dD input and grid with same number of dimensions, "
                        "but got input with sizes %s and grid with sizes %s", dims, first, second);
    }
    if (opdi_sizes(grid)[dims - 1] != dims - 2) {
        return opd_fail(OPD_ERROR_SHAPE, "grid_sampler(): expected grid to have size %d in last dimension, but got "
                        "grid with sizes %s", dims - 2, second);
    }
    for (int dim = 2; dim < dims; dim++) {
        if (opdi_sizes(input)[dim] <= 0) {
            return opd_fail(OPD_ERROR_SHAPE, "grid_sampler(): expected input to have non-empty spatial dimensions, but "
                            "input has sizes %s with dimension %d being empty", first, dim);
        }
    }
    if (how < 0 || how > 2 || outside < 0 || outside > 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "interpolation_mode and padding_mode must be 0, 1 or 2, but are %lld and "
                        "%lld", (long long)how, (long long)outside);
    }
    if (opdi_kernel_dtype(OPDI_DTYPE(input), false, "grid_sampler_2d_cpu") < 0 || opdi_same_dtype(input, grid)) {
        return -1;
    }
    memset(other, 0, sizeof *other);
    other->n = opdi_sizes(input)[0];
    other->c = opdi_sizes(input)[1];
    for (int dim = 0; dim < 2; dim++) {
        other->in[dim] = opdi_sizes(input)[2 + dim];
        other->out[dim] = opdi_sizes(grid)[1 + dim];
    }
    other->how = (int)how;
    other->outside = (int)outside;
    other->corners = opd_arg_bool(call, at + 4);
    return 0;
}
/* grid_sampler_2d: samples input [n, c, h, w] at the points of grid [n, H, W, 2]; the result is [n, c, H, W]. */
static int opdi_grid_sampler_2d_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *grid = opd_arg_tensor(call, 1);
    const opd_scalar_type dtype = input->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    int64_t sizes[4];
    opdi_grid other;
    if (opdi_grid_read(call, 0, 4, &other)) { return -1; }
    sizes[0] = other.n;
    sizes[1] = other.c;
    sizes[2] = other.out[0];
    sizes[3] = other.out[1];
    opd_tensor *out = opd_result(call, 0, sizes, 4, OPDI_DTYPE(input));
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    input = opdi_dense_as(input, dtype);
    grid = opdi_dense_as(grid, dtype);
    opd_tensor *output = opdi_staging(out, dtype);
    if (!input || !grid || !output ||
        opdi_stack_short(NULL, OPDI_STACK_FOR((dtype == OPD_FLOAT64 ? 84 : 46) << 10))) { return -1; }
    other.input = input->data;
    other.grid = grid->data;
    other.output = output->data;
    opdi_parallel_for(other.n * other.out[0],
                      OPDI_MAX((int64_t)1, OPDI_GRAIN / 8 / OPDI_MAX((int64_t)1, other.c * other.out[1])),
                      dtype == OPD_FLOAT64 ? opdi_grid_rows_f64 : opdi_grid_rows_f32, &other);
    return opdi_staging_store(out, output);
}
/* grid_sampler_2d_backward: computes the gradients with respect to input (None if output_mask excludes it) and to
   grid.  grad_output is broadcast to the sizes of the output. */
static int opdi_grid_sampler_2d_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *grid = opd_arg_tensor(call, 2),
        *out[2];
    const opd_scalar_type dtype = input->dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    const opd_value mask = opd_arg_value(call, 6);
    opd_tensor *work[2] = {NULL, NULL};
    int64_t sizes[4];
    opdi_grid other;
    if (opdi_grid_read(call, 1, 4, &other)) { return -1; }
    sizes[0] = other.n;
    sizes[1] = other.c;
    sizes[2] = other.out[0];
    sizes[3] = other.out[1];
    if (opdi_expand_check(grad, sizes, 4) || !(grad = opd_expand(grad, opd_ints_of(sizes, 4))) ||
        opdi_same_dtype(input, grad)) {
        return -1;
    }
    out[0] = mask.n && !mask.u.bools[0] ? NULL : opd_result(call, 0, opdi_sizes(input), 4, OPDI_DTYPE(input));
    if (!opd_ok() || !(out[1] = opd_result(call, 1, opdi_sizes(grid), 4, OPDI_DTYPE(input)))) { return -1; }
    if (out[1]->data) {
        grad = opdi_dense_as(grad, dtype);
        input = opdi_dense_as(input, dtype);
        grid = opdi_dense_as(grid, dtype);
        work[0] = out[0] ? opdi_staging(out[0], dtype) : NULL;
        work[1] = opdi_staging(out[1], dtype);
        if (!grad || !input || !grid || !work[1] || (out[0] && !work[0])) { return -1; }
        other.input = input->data;
        other.grid = grid->data;
        other.grad = grad->data;
        other.dx = work[0] ? work[0]->data : NULL;
        other.dgrid = work[1]->data;
        opdi_parallel_for(other.n, 1, dtype == OPD_FLOAT64 ? opdi_grid_back_f64 : opdi_grid_back_f32, &other);
    }
    for (int i = 0; i < 2; i++) {
        if (work[i] && opdi_staging_store(out[i], work[i])) { return -1; }
        if (out[i] ? opd_return_tensor(call, call->rets[i].u.t) : opd_return_value(call, opd_value_none())) {
            return -1;
        }
    }
    return 0;
}
static int opdi_grid_sampler_2d_backward(opd_backward_call *bw) {
    opd_tensor *results[2];
    bool mask[2];
    for (int i = 0; i < 2; i++) { mask[i] = opd_bw_needs(bw, i); }
    if (opd_grid_sampler_2d_backward(results, opd_bw_grad(bw, 0), opd_bw_tensor(bw, 0), opd_bw_tensor(bw, 1),
                                     opd_bw_value(bw, 2).u.i, opd_bw_value(bw, 3).u.i, opd_bw_value(bw, 4).u.i != 0,
                                     opd_value_bools(mask, 2))) { return -1; }
    for (int i = 0; i < 2; i++) { OPDI_BW_RETURN(i, results[i]); }
    return 0;
}
/* Sampling along one dim, computed with public operators by opdi_grid_axis_make, so that every derivative can be
   differentiated.  line[i] [n, 1, points] has, for each point, the index of the i-th row or column that it reads.
   weights[0][i] are the weights of these rows or columns, weights[1][i] and weights[2][i] their first and second
   derivatives with respect to the grid; NULL means 0. */
typedef struct opdi_grid_axis { int count; opd_tensor *weights[3][4], *line[4]; } opdi_grid_axis;

static opd_tensor *opdi_times(opd_tensor *first, opd_tensor *second) {
    return first && second ? opd_mul(first, second) : NULL;
}
/* Returns scale * tensor + shift. */
static opd_tensor *opdi_affine(opd_tensor *tensor, double scale, double shift) {
    return opd_add_Scalar(opd_mul_Scalar(tensor, opd_value_double(scale)), opd_value_double(shift));
}
/* Returns the coordinates `at` moved into [0, size - 1], like grid_inside, but computed with public operators.  Sets
   *sign to the derivative of the result with respect to `at`. */
static opd_tensor *opdi_grid_fold(const opdi_grid *grid, opd_tensor *at, int64_t size, opd_tensor **sign) {
    const double low = grid->corners ? 0 : -0.5, span = grid->corners ? (double)(size - 1) : (double)size;
    opd_tensor *one = opd_ones_like(at);
    if (grid->outside == OPDI_GRID_REFLECTION && span > 0) {
        at = opdi_affine(at, 1, -low);
        one = opd_where_self(opd_lt_Scalar(at, opd_value_int(0)), opd_neg(one), one);
        at = opd_abs(at);
        opd_tensor *odd = opd_floor(opd_div_Scalar(at, opd_value_double(span)));
        at = opd_sub(at, opd_mul_Scalar(odd, opd_value_double(span)));
        odd = opd_gt_Scalar(opd_remainder_Scalar(odd, opd_value_int(2)), opd_value_int(0));
        at = opdi_affine(opd_where_self(odd, opdi_affine(at, -1, span), at), 1, low);
        one = opd_where_self(odd, opd_neg(one), one);
    }
    opd_tensor *in = opd_logical_and(opd_gt_Scalar(at, opd_value_int(0)), opd_lt_Scalar(at, opd_value_int(size - 1)));
    *sign = opd_mul(one, in);
    return opd_clamp(at, opd_value_int(0), opd_value_int(size - 1));
}
/* Fills in *axis for coordinates `at`, which run from -1 to 1 along a dim of `size`.  Computes the same indices,
   weights and slopes as grid_taps_set, and the second derivatives, but with public operators.  On failure, some of the
   tensors in *axis are NULL. */
static void opdi_grid_axis_make(opdi_grid_axis *axis, const opdi_grid *grid, opd_tensor *at, int64_t size) {
    const double half = (double)(grid->corners ? size - 1 : size) / 2, a = -0.75;
    opd_tensor *sign = opd_ones_like(at), *unused;
    memset(axis, 0, sizeof *axis);
    at = opdi_affine(at, half, grid->corners ? half : half - 0.5);
    if (grid->how != OPDI_GRID_BICUBIC && grid->outside != OPDI_GRID_ZEROS) {
        at = opdi_grid_fold(grid, at, size, &sign);
    }
    axis->count = grid->how == OPDI_GRID_NEAREST ? 1 : grid->how == OPDI_GRID_BILINEAR ? 2 : 4;
    opd_tensor *first = axis->count == 1 ? opd_round(at) : opd_floor(at);
    opd_tensor *tensor = opd_sub(at, first);
    opd_tensor *factor = opd_mul_Scalar(sign, opd_value_double(half));
    if (axis->count == 1) { axis->weights[0][0] = opd_ones_like(tensor); }
    if (axis->count == 2) {
        axis->weights[0][0] = opdi_affine(tensor, -1, 1);
        axis->weights[0][1] = tensor;
        axis->weights[1][0] = opd_neg(factor);
        axis->weights[1][1] = factor;
    }
    for (int i = 0; axis->count == 4 && i < 4; i++) {  /* cubic weights of the distance to line i */
        const bool outer = i == 0 || i == 3;
        opd_tensor *upper = i < 2 ? opdi_affine(tensor, 1, outer) : opdi_affine(tensor, -1, outer ? 2 : 1);
        axis->weights[0][i] = outer
            ? opdi_affine(opd_mul(opdi_affine(opd_mul(opdi_affine(upper, a, -5 * a), upper), 1, 8 * a), upper), 1,
                          -4 * a) : opdi_affine(opd_mul(opd_mul(opdi_affine(upper, a + 2, -(a + 3)), upper), upper), 1,
                                                1);
        opd_tensor *d1 = outer ? opdi_affine(opd_mul(opdi_affine(upper, 3 * a, -10 * a), upper), 1, 8 * a)
            : opd_mul(opdi_affine(upper, 3 * (a + 2), -2 * (a + 3)), upper);
        opd_tensor *d2 = outer ? opdi_affine(upper, 6 * a, -10 * a) : opdi_affine(upper, 6 * (a + 2), -2 * (a + 3));
        axis->weights[1][i] = opd_mul_Scalar(d1, opd_value_double(i < 2 ? half : -half));
        axis->weights[2][i] = opd_mul_Scalar(d2, opd_value_double(half * half));
    }
    for (int i = 0; i < axis->count; i++) {
        opd_tensor *line = opdi_affine(first, 1, i - axis->count / 4);
        if (axis->count == 4 && grid->outside != OPDI_GRID_ZEROS) { line = opdi_grid_fold(grid, line, size, &unused); }
        opd_tensor *inside = opd_logical_and(opd_ge_Scalar(line, opd_value_int(0)),
                                             opd_lt_Scalar(line, opd_value_int(size)));
        for (int order = 0; order < 3; order++) {
            axis->weights[order][i] = opdi_times(axis->weights[order][i], inside);
        }
        axis->line[i] = opd_to_dtype(opdi_where(inside, opd_detach(line)), OPD_INT64);
    }
}
/* Computes directional derivatives of the samples S of input.  Sets results[0] to the change of S if input changes by
   `value` and the grid by `upper`; NULL means no change.  If grad is not NULL, sets results[1] and results[2] to the
   gradients of the sum of grad * results[0] with respect to input and grid.  Results that are 0 are NULL.  Returns 0,
   or -1 and sets an error. */
static int opdi_grid_second(const opdi_grid *other, opd_tensor *input, opd_tensor *grid, opd_tensor *grad,
                            opd_tensor *value, opd_tensor *upper, opd_tensor **results /*[3]*/) {
    const int64_t *in = opdi_sizes(input), *to = opdi_sizes(grid), channels = 1;
    int64_t flat[3], sizes[4];
    opd_tensor *move[2] = {NULL, NULL}, *along[2] = {NULL, NULL};
    opdi_grid_axis axis[2];
    results[0] = results[1] = results[2] = NULL;
    flat[0] = in[0];
    flat[1] = to[1] * to[2];
    flat[2] = 2;
    opd_tensor *at = opdi_reshape_to(grid, flat, 3);
    upper = upper ? opdi_reshape_to(upper, flat, 3) : NULL;
    for (int i = 0; i < 2; i++) {
        opdi_grid_axis_make(&axis[i], other, opd_unsqueeze(opd_select(at, 2, 1 - i), 1), in[2 + i]);
        if (upper) { move[i] = opd_unsqueeze(opd_select(upper, 2, 1 - i), 1); }
    }
    flat[1] = in[1];
    flat[2] = to[1] * to[2];
    grad = grad ? opdi_reshape_to(grad, flat, 3) : NULL;
    flat[2] = in[2] * in[3];
    input = opdi_reshape_to(input, flat, 3);
    value = value ? opdi_reshape_to(value, flat, 3) : NULL;
    if (!opd_ok()) { return -1; }
    flat[2] = to[1] * to[2];
    for (int first = 0; first < axis[0].count; first++) {
        for (int batch = 0; batch < axis[1].count; batch++) {
            opd_tensor *weights[3][3];
            for (int plane = 0; plane < 3; plane++) {
                for (int q = 0; q + plane < 3; q++) {
                    weights[plane][q] = opdi_times(axis[0].weights[plane][first], axis[1].weights[q][batch]);
                }
            }
            opd_tensor *from = opd_add(opd_mul_Scalar(axis[0].line[first], opd_value_int(in[3])), axis[1].line[batch]);
            from = opd_expand(from, opd_ints_of(flat, 3));
            opd_tensor *xs = opd_gather(input, 2, from);
            opd_tensor *vs = value ? opd_gather(value, 2, from) : NULL;
            opd_tensor *const product = opdi_times(move[0], weights[1][0]),
                *shift = opdi_plus(product, opdi_times(move[1], weights[0][1]));
            opd_tensor *const first_product = opdi_times(weights[0][0], vs);
            results[0] = opdi_plus(results[0], opdi_plus(first_product, opdi_times(shift, xs)));
            if (!grad) { continue; }
            if (shift) {
                results[1] = opd_scatter_add(results[1] ? results[1] : opd_zeros_like(input), 2, from,
                                             opd_mul(shift, grad));
            }
            for (int i = 0; i < 2; i++) {
                opd_tensor *const left = opdi_times(move[0], i ? weights[1][1] : weights[2][0]);
                shift = opdi_plus(left, opdi_times(move[1], i ? weights[0][2] : weights[1][1]));
                opd_tensor *const right = opdi_times(i ? weights[0][1] : weights[1][0], vs);
                shift = opdi_plus(right, opdi_times(shift, xs));
                along[i] = opdi_plus(along[i], opdi_times(grad, shift));
            }
            if (!opd_ok()) { return -1; }
        }
    }
    sizes[0] = in[0];
    sizes[1] = in[1];
    sizes[2] = to[1];
    sizes[3] = to[2];
    if (results[0]) { results[0] = opdi_reshape_to(results[0], sizes, 4); }
    if (results[1]) { results[1] = opdi_reshape_to(results[1], in, 4); }
    if (along[0] || along[1]) {
        opd_tensor *pair[2];
        for (int i = 0; i < 2; i++) {
            pair[i] = along[1 - i] ? opdi_sum_over(along[1 - i], &channels, 1, false) : NULL;
        }
        for (int i = 0; i < 2; i++) { if (!pair[i]) { pair[i] = opd_zeros_like(pair[1 - i]); } }
        results[2] = opdi_reshape_to(opd_stack(opd_tensors_of(pair, 2), -1), to, 4);
    }
    return opd_ok() ? 0 : -1;
}
static int opdi_grid_jvp(opd_jvp_call *jv) {
    opd_tensor *results[3];
    opdi_grid grid;
    memset(&grid, 0, sizeof grid);
    grid.how = (int)opd_jvp_value(jv, 2).u.i;
    grid.outside = (int)opd_jvp_value(jv, 3).u.i;
    grid.corners = opd_jvp_value(jv, 4).u.i != 0;
    if (opdi_grid_second(&grid, opd_jvp_tensor(jv, 0), opd_jvp_tensor(jv, 1), NULL, opd_jvp_tangent(jv, 0),
                         opd_jvp_tangent(jv, 1), results)) { return -1; }
    return results[0] ? opd_jvp_return(jv, 0, results[0]) : 0;
}
static int opdi_grid_sampler_2d_backward_backward(opd_backward_call *bw) {
    opd_tensor *results[3];
    opdi_grid grid;
    memset(&grid, 0, sizeof grid);
    grid.how = (int)opd_bw_value(bw, 3).u.i;
    grid.outside = (int)opd_bw_value(bw, 4).u.i;
    grid.corners = opd_bw_value(bw, 5).u.i != 0;
    if (opdi_grid_second(&grid, opd_bw_tensor(bw, 1), opd_bw_tensor(bw, 2), opd_bw_tensor(bw, 0), opd_bw_grad(bw, 0),
                         opd_bw_grad(bw, 1), results)) { return -1; }
    for (int i = 0; i < 3; i++) { OPDI_BW_RETURN(i, results[i]); }
    return 0;
}
#define OPDI_GRID_ARGS "Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners"
/* opd_grid_sampler_2d: input [N, C, H, W] sampled at the points of grid [N, h, w, 2], with coordinates from -1 to 1 */
OPDI_OP(grid_sampler_2d) {
    op->schema = "grid_sampler_2d(" OPDI_GRID_ARGS ") -> Tensor";
    op->cpu = op->fake = opdi_grid_sampler_2d_kernel; op->backward = opdi_grid_sampler_2d_backward;
    op->save = "input, grid"; op->jvp = opdi_grid_jvp;
    op->vmap = OPD_BATCH_FOLD; op->autocast = OPD_AUTOCAST_FP32_CPU; op->tags = OPD_OPTAG_CORE;
    op->out = "grid_sampler_2d.out";
    op->cases = "[1,2,3,4], [1,2,3,2], 0, 0, False; [2,1,3,3], [2,2,2,2], 0, 1, True; [1,1,4,3], [1,2,2,2], 0, 2, "
        "False; [1,2,3,4], [1,2,2,2], 1, 0, False; [1,1,4,4], [1,2,2,2], 2, 0, False; [1,1,4,4], [1,2,2,2], 2, 2, "
        "True; [1,1,4,4], [1,2,2,2], 2, 1, False";
}
/* opd_grid_sampler_2d_backward: derivatives of grid_sampler_2d */
OPDI_OP(grid_sampler_2d_backward) {
    op->schema = "grid_sampler_2d_backward(Tensor grad_output, " OPDI_GRID_ARGS ", bool[2] output_mask) -> (Tensor, "
        "Tensor)";
    op->cpu = op->fake = opdi_grid_sampler_2d_backward_kernel; op->backward = opdi_grid_sampler_2d_backward_backward;
    op->save = "grad_output, input, grid";
    op->vmap = OPD_BATCH_FOLD;
    op->out = "grid_sampler_2d_backward.out(out0, out1)";
    op->cases = "[1,2,2,3], [1,2,3,4], [1,2,3,2], 0, 0, False, (True,True); [1,1,2,2], [1,1,3,4], [1,2,2,2], 2, 2, "
        "False, (True,True); [1,1,2,2], [1,1,3,4], [1,2,2,2], 0, 1, True, (True,True)";
}

/* Sampling in three dims: the indices and weights along each dim, the images [n, c, area], the number of corners
   (elements that a point reads), and the sizes [n, c, points]. */
typedef struct opdi_grid_cube {
    opdi_grid_axis axis[3];
    opd_tensor *image;
    opd_tensor *known;                            /* bool [n, 1, points]: false if the point is NaN */
    bool zeros;                                   /* true: elements outside are zeros */
    int corners;
    int64_t rows[3];
} opdi_grid_cube;

/* Makes cube->axis[number] for coordinates `at`; infinities and NaN are first replaced by finite coordinates.  Sets
   cube->known to false for NaN and for coordinates that would become NaN.  At these points, slopes are 0, and padding
   by zeros gives 0. */
static void opdi_grid_cube_axis(opdi_grid_cube *cube, int number, const opdi_grid *grid, opd_tensor *at, int64_t size) {
    const bool border = grid->outside == OPDI_GRID_BORDER, one = grid->corners && size == 1;
    opd_tensor *known = border && !one ? opd_logical_not(opd_isnan(at)) : opd_isfinite(at);
    if (!one || grid->outside != OPDI_GRID_REFLECTION) {
        cube->known = cube->known ? opd_logical_and(cube->known, known) : known;
    }
    at = opd_nan_to_num_full(at, opd_value_double(1), opd_value_double(border ? 3 : 1),
                             opd_value_double(border ? -3 : 1));
    opdi_grid_axis_make(&cube->axis[number], grid, at, size);
}

/* Reads input [n, c, d, h, w], grid [n, D, H, W, 3] (x, y, z) and the options, the arguments from number `at` on,
   into *cube.  Returns 0, or -1 and sets an error. */
static int opdi_grid_cube_read(opd_call *call, int at, opdi_grid_cube *cube) {
    opd_tensor *input = opd_arg_tensor(call, at), *grid = opd_arg_tensor(call, at + 1);
    const int64_t *in = opdi_sizes(input), *to = opdi_sizes(grid);
    opdi_grid other;
    if (opdi_grid_read(call, at, 5, &other)) { return -1; }
    if (other.how == OPDI_GRID_BICUBIC) {
        return opd_fail(OPD_ERROR_ARGUMENT, "grid_sampler(): bicubic interpolation only supports 4D input");
    }
    cube->rows[0] = in[0];
    cube->rows[1] = opdi_size_times(to[1], opdi_size_times(to[2], to[3]));
    cube->rows[2] = 3;
    opd_tensor *places = opdi_reshape_to(grid, cube->rows, 3);
    cube->zeros = other.outside == OPDI_GRID_ZEROS;
    cube->known = NULL;
    for (int i = 0; i < 3 && opd_ok(); i++) {
        opdi_grid_cube_axis(cube, i, &other, opd_unsqueeze(opd_select(places, 2, 2 - i), 1), in[2 + i]);
    }
    cube->rows[2] = in[2] * in[3] * in[4];
    cube->rows[1] = in[1];
    cube->image = opd_ok() ? opdi_reshape_to(input, cube->rows, 3) : NULL;
    cube->rows[2] = opdi_size_times(to[1], opdi_size_times(to[2], to[3]));
    if (!opd_ok()) { return -1; }
    cube->corners = cube->axis[0].count * cube->axis[1].count * cube->axis[2].count;
    return 0;
}
/* Returns, for each point, the index of corner number `corner` in its image, as [n, c, points].  Sets lines[3] to
   the numbers of the corner's lines (planes, rows, columns) along the axes. */
static opd_tensor *opdi_grid_cube_corner(const opdi_grid_cube *cube, const int64_t *in, int corner, int *lines) {
    lines[2] = corner % cube->axis[2].count;
    lines[1] = corner / cube->axis[2].count % cube->axis[1].count;
    lines[0] = corner / cube->axis[2].count / cube->axis[1].count;
    opd_tensor *from = cube->axis[0].line[lines[0]];
    for (int i = 1; i < 3; i++) {
        from = opd_add(opd_mul_Scalar(from, opd_value_int(in[2 + i])), cube->axis[i].line[lines[i]]);
    }
    return opd_expand(from, opd_ints_of(cube->rows, 3));
}
/* Returns the weight of the corner on lines[3] or, if axis >= 0, the derivative of this weight along that axis.
   Returns NULL if the result is 0, or on failure. */
static opd_tensor *opdi_grid_cube_weight(const opdi_grid_cube *cube, const int *lines, int axis) {
    opd_tensor *weight = cube->axis[0].weights[axis == 0][lines[0]];
    for (int i = 1; i < 3; i++) { weight = opdi_times(weight, cube->axis[i].weights[axis == i][lines[i]]); }
    return weight;
}
/* grid_sampler_3d with public operators: the sum, over the corners of a point, of the product of three weights and
   the element at the corner. */
static int opdi_grid_sampler_3d_kernel(opd_call *call) {
    const int64_t *in = opdi_sizes(opd_arg_tensor(call, 0)), *to = opdi_sizes(opd_arg_tensor(call, 1));
    opd_tensor *sum = NULL;
    int64_t sizes[5];
    int lines[3];
    opdi_grid_cube cube;
    if (opdi_grid_cube_read(call, 0, &cube)) { return -1; }
    for (int i = 0; opd_ok() && i < cube.corners; i++) {
        opd_tensor *from = opdi_grid_cube_corner(&cube, in, i, lines);
        opd_tensor *const picked = opd_gather(cube.image, 2, from);
        sum = opdi_plus(sum, opd_mul(picked, opdi_grid_cube_weight(&cube, lines, -1)));
    }
    if (cube.known && cube.zeros) { sum = opdi_where(cube.known, sum); }
    else if (cube.known) { sum = opd_where_self(cube.known, sum, opd_detach(sum)); }
    sizes[0] = in[0];
    sizes[1] = in[1];
    for (int i = 1; i < 4; i++) { sizes[1 + i] = to[i]; }
    return opd_return_tensor(call, opd_ok() ? opdi_reshape_to(sum, sizes, 5) : NULL);
}
/* Computes the gradients with respect to input (None if output_mask excludes it) and to grid.  input gets grad_output
   times the weights of the corners of each point.  grid gets the product of grad_output, the elements at the corners
   and the slopes of the weights. */
static int opdi_grid_sampler_3d_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *input = opd_arg_tensor(call, 1), *grid = opd_arg_tensor(call, 2);
    opd_tensor *along[3] = {NULL, NULL, NULL}, *xyz[3], *delta = NULL;
    const opd_value mask = opd_arg_value(call, 6);
    const int64_t *in = opdi_sizes(input), channels = 1;
    int64_t sizes[5];
    int lines[3];
    opdi_grid_cube cube;
    if (opdi_grid_cube_read(call, 1, &cube)) { return -1; }
    for (int i = 0; i < 5; i++) { sizes[i] = i < 2 ? in[i] : opdi_sizes(grid)[i - 1]; }
    if (opdi_expand_check(grad, sizes, 5) || opdi_same_dtype(input, grad)) { return -1; }
    grad = opdi_reshape_to(opd_expand(grad, opd_ints_of(sizes, 5)), cube.rows, 3);
    if (cube.known) { grad = opdi_where(cube.known, grad); }
    if (!mask.n || mask.u.bools[0]) { delta = opd_zeros_like(cube.image); }
    for (int i = 0; opd_ok() && i < cube.corners; i++) {
        opd_tensor *from = opdi_grid_cube_corner(&cube, in, i, lines);
        if (delta) {
            delta = opd_scatter_add(delta, 2, from, opd_mul(grad, opdi_grid_cube_weight(&cube, lines, -1)));
        }
        opd_tensor *part = opdi_sum_over(opd_mul(grad, opd_gather(cube.image, 2, from)), &channels, 1, true);
        for (int k = 0; k < 3; k++) {
            along[k] = opdi_plus(along[k], opdi_times(part, opdi_grid_cube_weight(&cube, lines, k)));
        }
    }
    for (int i = 0; opd_ok() && i < 3; i++) { xyz[i] = along[2 - i] ? opd_squeeze_dim(along[2 - i], 1) : NULL; }
    if (!opd_ok()) { return -1; }
    opd_tensor *slope = xyz[0] ? opdi_reshape_to(opd_stack(opd_tensors_of(xyz, 3), -1), opdi_sizes(grid), 5)
        : opd_zeros_like_full(grid, OPD_NONE, OPD_NONE, OPD_NONE, OPD_NONE, opd_value_int(0));
    if (delta ? opd_return_tensor(call, opdi_reshape_to(delta, in, 5)) : opd_return_value(call, opd_value_none())) {
        return -1;
    }
    return opd_return_tensor(call, slope);
}
/* opd_grid_sampler_3d: input sampled at the points of grid [N, D, H, W, 3], with coordinates from -1 to 1 */
OPDI_OP(grid_sampler_3d) {
    op->schema = "grid_sampler_3d(" OPDI_GRID_ARGS ") -> Tensor";
    op->composite = opdi_grid_sampler_3d_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->out = "grid_sampler_3d.out";
    op->cases = "[1,2,2,3,4], [1,2,1,2,3], 0, 0, False; [2,1,2,2,3], [2,1,2,2,3], 0, 1, True; [1,1,3,2,2], "
        "[1,1,1,2,3], 0, 2, False; [1,2,2,3,2], [1,2,1,1,3], 1, 0, False";
}
/* opd_grid_sampler_3d_backward: derivatives of grid_sampler_3d */
OPDI_OP(grid_sampler_3d_backward) {
    op->schema = "grid_sampler_3d_backward(Tensor grad_output, " OPDI_GRID_ARGS ", bool[2] output_mask) -> (Tensor, "
        "Tensor)";
    op->composite = opdi_grid_sampler_3d_backward_kernel;
    op->out = "grid_sampler_3d_backward.out(out0, out1)";
    op->cases = "[1,2,2,1,2], [1,2,2,3,4], [1,2,1,2,3], 0, 0, False, (True,True); [1,1,1,1,2], [1,1,3,2,2], "
        "[1,1,1,2,3], 0, 2, False, (True,True); [1,1,1,1,2], [1,1,3,2,2], [1,1,1,2,3], 1, 1, True, (True,True)";
}
static int opdi_grid_sampler_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    if (input->ndim == 5) {
        return opd_return_tensor(call, opd_grid_sampler_3d(input, opd_arg_tensor(call, 1), opd_arg_int(call, 2),
                                                           opd_arg_int(call, 3), opd_arg_bool(call, 4)));
    }
    if (input->ndim != 4) {
        return opd_fail(OPD_ERROR_SHAPE, "grid_sampler(): expected 4D or 5D input, but got input with %d dimensions",
                        input->ndim);
    }
    return opd_return_tensor(call, opd_grid_sampler_2d(input, opd_arg_tensor(call, 1), opd_arg_int(call, 2),
                                                       opd_arg_int(call, 3), opd_arg_bool(call, 4)));
}
/* opd_grid_sampler: grid_sampler_2d or grid_sampler_3d */
OPDI_OP(grid_sampler) {
    op->schema = "grid_sampler(" OPDI_GRID_ARGS ") -> Tensor";
    op->composite = opdi_grid_sampler_kernel;
    op->autocast = OPD_AUTOCAST_PROMOTE_FP32_CPU;
    op->cases = "[1,2,3,4], [1,2,3,2], 0, 0, False; [1,1,2,3,2], [1,1,2,1,3], 0, 0, True";
}

//== affine_grid_generator =============================================================================================

/* Returns n coordinates from -1 to 1.  If `corners` is true, they include both ends; else they are the centers of n
   pixels.  A single coordinate is 0. */
static opd_tensor *opdi_affine_line(opd_tensor *like, int64_t n, bool corners) {
    if (n <= 1) { return opd_new_zeros(like, opd_ints_of(&n, 1)); }
    opd_tensor *line = opd_linspace_full(opd_value_int(-1), opd_value_int(1), n, opd_value_int(like->dtype), OPD_NONE,
                                         opd_value_device(opd_tensor_device(like)), OPD_NONE);
    return corners ? line : opdi_muls(line, (double)(n - 1) / (double)n);
}
/* Returns the coordinates of all pixels of an image of size [N, C, ..], each followed by a 1, as [N, pixels, 3] or
   [N, pixels, 4].  The coordinate along the last dim comes first.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_affine_base(opd_tensor *like, opd_ints size, bool corners) {
    const int dims = (int)size.n - 2;
    opd_tensor *parts[4] = {NULL, NULL, NULL, NULL};
    int64_t shape[3];
    if (dims != 2 && dims != 3) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
        return NULL;
    }
    for (int i = 0; i < dims; i++) {
        const int dim = dims - 1 - i;
        for (int k = 0; k < 3; k++) { shape[k] = 1; }
        shape[dim] = size.data[2 + dim];
        parts[i] = opdi_reshape_to(opdi_affine_line(like, size.data[2 + dim], corners), shape, dims);
        parts[i] = opd_expand(parts[i], opd_ints_of(size.data + 2, dims));
    }
    parts[dims] = opd_ok() ? opd_ones_like(parts[0]) : NULL;
    opd_tensor *base = opd_ok() ? opd_stack(opd_tensors_of(parts, dims + 1), -1) : NULL;
    shape[0] = size.data[0];
    shape[1] = base ? base->numel / (dims + 1) : 0;
    shape[2] = dims + 1;
    return base ? opd_expand(opdi_reshape_to(base, shape + 1, 2), opd_ints_of(shape, 3)) : NULL;
}
/* affine_grid_generator: returns [N, .., dims], the coordinates of the pixels of an output of sizes `size` [N, C,
   ..], transformed by theta, which is [N, 2, 3] or [N, 3, 4]. */
static int opdi_affine_grid_generator_kernel(opd_call *call) {
    opd_tensor *theta = opd_arg_tensor(call, 0), *base;
    const opd_ints size = opd_arg_ints(call, 1);
    int64_t shape[5];
    if (!(base = opdi_affine_base(theta, size, opd_arg_bool(call, 2)))) { return -1; }
    if (theta->ndim != 3 || opdi_sizes(theta)[1] != size.n - 2 || opdi_sizes(theta)[2] != size.n - 1) {
        char text[256];
        return opd_fail(OPD_ERROR_SHAPE, "theta must have sizes [%lld, %lld, %lld], but has %s",
                        (long long)size.data[0], (long long)size.n - 2, (long long)size.n - 1,
                        opdi_shape_text(theta, text));
    }
    shape[0] = size.data[0];
    for (int i = 2; i < size.n; i++) { shape[i - 1] = size.data[i]; }
    shape[size.n - 1] = size.n - 2;
    base = opdi_reshape_to(opd_bmm(base, opd_transpose(theta, 1, 2)), shape, size.n);
    return opd_return_tensor(call, opd_clone(base));                          /* not a view of a temporary tensor */
}
static int opdi_affine_grid_generator_backward_kernel(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *base;
    const opd_ints size = opd_arg_ints(call, 1);
    int64_t shape[3];
    if (!(base = opdi_affine_base(grad, size, opd_arg_bool(call, 2)))) { return -1; }
    shape[0] = size.data[0];
    shape[1] = opd_size(base, 1);
    shape[2] = size.n - 2;
    opd_tensor *const turned = opd_transpose(base, 1, 2), *sum = opd_bmm(turned, opdi_reshape_to(grad, shape, 3));
    return opd_return_tensor(call, opd_transpose(sum, 1, 2));
}
static int opdi_affine_grid_generator_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_affine_grid_generator_backward(opd_bw_grad(bw, 0), opd_bw_ints(bw, 1),
                                                                   opd_bw_value(bw, 2).u.i != 0));
}
/* opd_affine_grid_generator: the coordinates of an output [N, C, ..] of `size`, mapped by theta, for grid_sampler */
OPDI_OP(affine_grid_generator) {
    op->schema = "affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor";
    op->any = opdi_affine_grid_generator_kernel; op->backward = opdi_affine_grid_generator_backward;
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->out = "affine_grid_generator.out";
    op->cases = "[2,2,3], (2,1,3,2), False; [1,2,3], (1,1,1,4), True; [1,3,4], (1,1,2,1,3), False";
}
/* opd_affine_grid_generator_backward: derivative of affine_grid_generator */
OPDI_OP(affine_grid_generator_backward) {
    op->schema = "affine_grid_generator_backward(Tensor grad, SymInt[] size, bool align_corners) -> Tensor";
    op->composite = opdi_affine_grid_generator_backward_kernel;
    op->cases = "[2,3,2,2], (2,1,3,2), False; [1,2,1,3,3], (1,1,2,1,3), True";
}

//== channel_shuffle ===================================================================================================

/* channel_shuffle: rearranges channels [N, groups, each, ..] to [N, each, groups, ..]. */
static int opdi_channel_shuffle_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const int64_t groups = opd_arg_int(call, 1);
    int64_t sizes[OPD_MAX_DIMS + 1];
    if (input->ndim < 3) {
        char text[256];
        return opd_fail(OPD_ERROR_SHAPE, "channel_shuffle expects input with > 2 dims, but got input with sizes %s",
                        opdi_shape_text(input, text));
    }
    if (groups <= 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Number of groups to divide channels in must be positive. Value of "
                        "groups:%lld", (long long)groups);
    }
    if (opdi_sizes(input)[1] % groups) {
        return opd_fail(OPD_ERROR_SHAPE, "Number of channels must be divisible by groups. Got %lld channels and %lld "
                        "groups.", (long long)opdi_sizes(input)[1], (long long)groups);
    }
    sizes[0] = opdi_sizes(input)[0];
    sizes[1] = groups;
    sizes[2] = opdi_sizes(input)[1] / groups;
    sizes[3] = 1;
    for (int i = 2; i < input->ndim; i++) { sizes[3] = opdi_size_times(sizes[3], opdi_sizes(input)[i]); }
    opd_tensor *parts = opd_transpose(opdi_reshape_to(input, sizes, 4), 1, 2);
    parts = opdi_reshape_to(opd_clone_full(parts, OPDI_MEMORY_DENSE), opdi_sizes(input), input->ndim);
    return opd_return_tensor(call, opd_contiguous_full(parts, opdi_format_of(input)));       /* never a view of input */
}
/* opd_channel_shuffle: interleaves groups of channels: [N, groups, C / groups, ..] to [N, C / groups, groups, ..] */
OPDI_OP(channel_shuffle) {
    op->schema = "channel_shuffle(Tensor self, SymInt groups) -> Tensor";
    op->composite = opdi_channel_shuffle_kernel;
    op->out = "channel_shuffle.out";
    op->cases = "[2,6,2,3], 3; [1,4,2], 2";
}
/* opd_native_channel_shuffle: channel_shuffle */
OPDI_OP(native_channel_shuffle) {
    op->schema = "native_channel_shuffle(Tensor self, SymInt groups) -> Tensor";
    op->composite = opdi_channel_shuffle_kernel;
    op->cases = "[2,6,2,3], 3";
}
OPDI_COLD_END
