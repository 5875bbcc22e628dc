#include "../ops.h"

//== layers whose weights, and perhaps inputs, are codes of 8 bits =====================================================
//
//  opd_graph_fuse_quantized makes these operators of layers between conversions (src/graphs/quantized_layers.c).  They
//  compute what the conversions and the layer would; if no other layer has to see those, on integers, or on a few
//  weights at a time that become floats.

/* Returns whether all tensors among the arguments are in the memory of the CPU, and nothing has to see the operators
   that a composite calls. */
static bool opdi_coded_alone(const opd_call *call) {
    const opd_value *const args = opd_call_args(call);
    for (int i = 0; i < opd_call_nargs(call); i++) {
        if (args[i].tag == OPD_TAG_TENSOR && !opdi_in_memory(args[i].u.t)) { return false; }
    }
    return opdi_nothing_follows() && !opd_call_requires_grad(call);
}
static opd_tensor *opdi_coded_arg(const opd_call *call, int at) {
    return opd_arg_is_none(call, at) ? NULL : opd_arg_tensor(call, at);
}

//== codes of floats ===================================================================================================

/* Returns how many elements share each element of `each`, if it has one element, or one for each index of the first
   dims of `whole` and size 1 in the others; 0: neither. */
static int64_t opdi_coded_row(const opd_tensor *whole, const opd_tensor *each) {
    int dim = 0;
    int64_t rest = 1;
    if (each->numel == 1) { return whole->numel; }
    if (each->ndim != whole->ndim) { return 0; }
    while (dim < whole->ndim && opdi_sizes(each)[dim] == opdi_sizes(whole)[dim]) { dim++; }
    for (; dim < whole->ndim; dim++) {
        if (opdi_sizes(each)[dim] != 1) { return 0; }
        rest *= opdi_sizes(whole)[dim];
    }
    return rest;
}
/* Returns a tensor as contiguous float32, also if it is a wrapped number.  Returns NULL if it is not in memory, without
   an error, or if memory runs out. */
static opd_tensor *opdi_coded_floats_of(opd_tensor *tensor) {
    if (tensor->flags & OPDI_WRAPPED && tensor->numel == 1 && tensor->data) {
        return opd_full(opd_ints_of(NULL, 0), opd_value_double(opd_item_f64(tensor)), OPD_FLOAT32);
    }
    return opdi_in_memory(tensor) ? opdi_dense_as(tensor, OPD_FLOAT32) : NULL;
}
/* Returns (codes - zero) * scale as float32, computed in one pass; scale and zero have one element.  Returns NULL,
   without an error, if that is not possible. */
OPDI_INTERNAL opd_tensor *opdi_coded_wide_at_once(opd_tensor *codes, opd_tensor *scale, opd_tensor *zero) {
    opdi_coded_rows rows;
    if ((codes->dtype != OPD_INT8 && codes->dtype != OPD_UINT8) || !codes->numel || scale->numel != 1 ||
        zero->numel != 1 || !opdi_nothing_follows() || !opdi_in_memory(codes) ||
        ((scale->flags | zero->flags) & OPDI_REQUIRES_GRAD)) { return NULL; }
    opd_tensor *const out = opd_empty(opd_ints_of(opdi_sizes(codes), codes->ndim), OPD_FLOAT32);
    codes = out ? opdi_dense_as(codes, OPDI_DTYPE(codes)) : NULL;
    scale = codes ? opdi_coded_floats_of(scale) : NULL;
    zero = scale ? opdi_coded_floats_of(zero) : NULL;
    if (!zero) { return NULL; }
    rows.codes = (const uint8_t *)codes->data;
    rows.minus = codes->dtype == OPD_INT8;
    rows.stride = rows.group = codes->numel;
    rows.groups = 1;
    rows.scales = (const float *)(const void *)scale->data;
    rows.zeros = (const float *)(const void *)zero->data;
    opdi_codes_widen(&rows, 1, (float *)(void *)out->data);
    return out;
}
/* Returns clamp(round(numbers * inverse) + zero, low, high) as dtype, 8 bits, computed in one pass; zero may be NULL.
   late: the sum is rounded.  Returns NULL, without an error, if that is not possible. */
OPDI_INTERNAL opd_tensor *opdi_coded_at_once(opd_tensor *numbers, opd_tensor *inverse, opd_tensor *zero, bool late,
                                             opd_value low, opd_value high, int64_t dtype) {
    opdi_code_job job;
    const int64_t row = opdi_coded_row(numbers, inverse);
    const bool floats = inverse->dtype == OPD_FLOAT32 || inverse->ndim == 0;
    if ((dtype != OPD_INT8 && dtype != OPD_UINT8) || numbers->dtype != OPD_FLOAT32 || !row || !numbers->numel ||
        !floats || (zero && zero->numel != inverse->numel) || !opdi_nothing_follows() || !opdi_in_memory(numbers)) {
        return NULL;
    }
    if (low.tag == OPD_TAG_TENSOR || high.tag == OPD_TAG_TENSOR) { return NULL; }
    const bool grad = opd_grad_mode_set(false);
    opd_tensor *const out = opd_empty(opd_ints_of(opdi_sizes(numbers), numbers->ndim), (opd_scalar_type)dtype);
    numbers = opdi_dense_as(numbers, OPD_FLOAT32);
    inverse = opdi_coded_floats_of(inverse);
    zero = zero ? opdi_coded_floats_of(zero) : opd_zeros(opd_ints_of(NULL, 0), OPD_FLOAT32);
    (void)opd_grad_mode_set(grad);
    if (!out || !numbers || !inverse || !zero) { return NULL; }
    job.x = (const float *)(const void *)numbers->data;
    job.inverse = (const float *)(const void *)inverse->data;
    job.zero = (const float *)(const void *)zero->data;
    job.row = row;
    job.step = zero->numel > 1;
    job.low = (float)opdi_number_f64(low);
    job.high = (float)opdi_number_f64(high);
    job.late = late;
    job.codes = (uint8_t *)out->data;
    for (int64_t i = 0; i < zero->numel; i++) { if (!(job.zero[i] >= -65536 && job.zero[i] <= 65536)) { return NULL; } }
    if (inverse->numel > 1 && zero->numel == 1) { return NULL; }
    opdi_codes_make(&job, numbers->numel / row);
    return out;
}

//== layers ============================================================================================================

/* Reads codes with scales and zero points: [rows] or one for all, or [rows, groups] if the codes are a matrix.  Returns
   1; 0 if the codes are not such; or -1 and sets an error. */
static int opdi_coded_read(opd_tensor *codes, opd_tensor *scales, opd_tensor *zeros, opdi_coded_rows *rows) {
    const int64_t count = codes->ndim > 1 ? opdi_sizes(codes)[0] : 0;
    const int64_t all = scales ? scales->numel : count;
    const bool bytes = codes->dtype == OPD_INT8 || codes->dtype == OPD_UINT8;
    if (!bytes || !codes->numel || (all != 1 && all % count) || (zeros && (!scales || zeros->numel != all))) {
        return 0;
    }
    rows->stride = codes->numel / count;
    rows->groups = all > count ? all / count : 1;
    if (rows->stride % rows->groups || (rows->groups > 1 && codes->ndim != 2)) { return 0; }
    rows->group = rows->stride / rows->groups;
    rows->minus = codes->dtype == OPD_INT8;
    codes = opdi_dense_as(codes, OPDI_DTYPE(codes));
    if (all != count * rows->groups) {            /* one for all rows */
        scales = scales ? opd_expand(opdi_reshape_to(scales, NULL, 0), OPD_INTS(count)) : NULL;
        zeros = zeros ? opd_expand(opdi_reshape_to(zeros, NULL, 0), OPD_INTS(count)) : NULL;
    }
    scales = scales ? opdi_dense_as(scales, OPD_FLOAT32) : NULL;
    zeros = zeros ? opdi_dense_as(zeros, OPD_FLOAT32) : NULL;
    if (!codes || !opd_ok()) { return -1; }
    rows->codes = (const uint8_t *)codes->data;
    rows->scales = scales ? (const float *)(const void *)scales->data : NULL;
    rows->zeros = zeros ? (const float *)(const void *)zeros->data : NULL;
    opdi_coded_rows_begin(rows);
    return 1;
}
/* The input of a layer as codes: [m, k] uint8, with a scale and a zero point for each row, or (step is 0) for all. */
typedef struct opdi_coded_input {
    const uint8_t *codes;
    const float *scales;
    const int32_t *zeros;
    int64_t step;
} opdi_coded_input;
/* A product of such an input with rows of int8.  sums: [m + 1, n], the last row has the sums of the rows of int8. */
typedef struct opdi_coded_product {
    opdi_coded_input x;
    const float *scales, *bias;
    const int32_t *sums;
    int64_t m, n;
    float *y;
} opdi_coded_product;
/* An opdi_range_fn: computes rows begin .. end - 1 of y from the sums. */
static void opdi_coded_ends(void *ctx, int64_t begin, int64_t end) {
    const opdi_coded_product *const product = (const opdi_coded_product *)ctx;
    const int64_t n = product->n;
    const int32_t *const all = product->sums + product->m * n;
    const float *const scales = product->scales, *const bias = product->bias;
    for (int64_t i = begin; i < end; i++) {
        const int32_t *const sums = product->sums + i * n, zero = product->x.zeros[i * product->x.step];
        const float scale = product->x.scales[i * product->x.step];
        float *const y = product->y + i * n;
        for (int64_t j = 0; j < n; j++) { y[j] = (float)(sums[j] - zero * all[j]) * (scale * scales[j]); }
        for (int64_t j = 0; bias && j < n; j++) { y[j] += bias[j]; }
    }
}
static bool opdi_coded_all_zero(const float *zeros, int64_t count) {
    bool zero = true;
    for (int64_t i = 0; zeros && i < count; i++) { zero = zero && zeros[i] == 0; }
    return zero;
}
/* Products in integers multiply by the scales at the end, so that 0 times infinity would get lost. */
static bool opdi_coded_all_finite(const float *scales, int64_t count) {
    bool finite = true;
    for (int64_t i = 0; i < count; i++) { finite = finite && isfinite(scales[i]); }
    return finite;
}
/* Makes the input of codes [m, k] of an integer product.  Adds a row of ones.  Returns 1; 0 if it is not such; or -1
   and sets an error. */
static int opdi_coded_codes(opd_tensor *input, opd_tensor *scale, opd_tensor *zero, int64_t m, int64_t k,
                            opdi_coded_input *x) {
    const int64_t count = scale->numel;
    const bool minus = input->dtype == OPD_INT8;
    if ((!minus && input->dtype != OPD_UINT8) || (count != 1 && count != m) || zero->numel != count ||
        !opd_dtype_is_integral(OPDI_DTYPE(zero), false)) { return 0; }
    opd_tensor *const codes = opd_empty(OPD_INTS(m + 1, k), OPD_UINT8);
    input = opdi_dense_as(input, OPDI_DTYPE(input));
    scale = opdi_dense_as(scale, OPD_FLOAT32);
    const opd_tensor *const given = opdi_dense_as(zero, OPD_INT64);
    opd_tensor *const zeros = opd_empty(OPD_INTS(count), OPD_INT32);
    if (!codes || !input || !scale || !given || !zeros) { return -1; }
    uint8_t *const to = (uint8_t *)codes->data, *const from = (uint8_t *)input->data;
    for (int64_t i = 0; minus && i < m * k; i++) { to[i] = from[i] ^ 0x80; }
    if (!minus) { memcpy(to, from, (size_t)(m * k)); }
    memset(to + m * k, 1, (size_t)k);
    for (int64_t i = 0; i < count; i++) {
        const int64_t number = ((const int64_t *)(const void *)given->data)[i] + (minus ? 128 : 0);
        if (number < 0 || number > 255) { return 0; }
        ((int32_t *)(void *)zeros->data)[i] = (int32_t)number;
    }
    x->codes = to;
    x->scales = (const float *)(const void *)scale->data;
    x->zeros = (const int32_t *)(const void *)zeros->data;
    x->step = count > 1;
    return opdi_coded_all_finite(x->scales, count);
}
/* Computes y [m, n] from an input of codes, in integers.  Returns 1; 0 if that is not possible; or -1 and sets an
   error. */
static int opdi_coded_whole(const opd_call *call, const opdi_coded_rows *w, const opd_tensor *bias, int64_t m,
                            int64_t n, float *y) {
    opdi_coded_product product;
    opdi_byte_job job;
    opd_tensor *const scale = opdi_coded_arg(call, 1), *const zero = opdi_coded_arg(call, 2);
    const int64_t k = w->stride;
    if (!scale || !zero || !w->minus || !w->scales || w->groups > 1 || k > 32768 ||
        !opdi_coded_all_zero(w->zeros, n) || !opdi_coded_all_finite(w->scales, n)) { return 0; }
    const int rc = opdi_coded_codes(opd_arg_tensor(call, 0), scale, zero, m, k, &product.x);
    opd_tensor *const sums = rc == 1 ? opd_empty(OPD_INTS(m + 1, n), OPD_INT32) : NULL;
    if (rc != 1 || !sums) { return rc == 1 ? -1 : rc; }
    job.m = m + 1;
    job.n = n;
    job.k = k;
    job.x = product.x.codes;
    job.w = (const int8_t *)w->codes;
    job.w_stride = k;
    job.y = (int32_t *)(void *)sums->data;
    if (opdi_byte_product(&job)) { return opdi_buffer_fail(); }
    product.scales = w->scales;
    product.bias = bias ? (const float *)(const void *)bias->data : NULL;
    product.sums = job.y;
    product.m = m;
    product.n = n;
    product.y = y;
    opdi_parallel_for(m, OPDI_MAX((int64_t)1, 16384 / n), opdi_coded_ends, &product);
    return 1;
}
/* Returns an input of codes, or a weight, as floats: (codes - zeros) * scales.  scales may be NULL.  An input has
   scales for the rows of its last dim, or for groups of a row; a weight has them for its first dim, or for such
   groups. */
static opd_tensor *opdi_coded_wide(opd_tensor *codes, opd_tensor *scales, opd_tensor *zeros, bool input) {
    const opd_tensor *const whole = codes;
    const int last = codes->ndim - 1;
    if (!scales) { return codes; }
    codes = opd_to_dtype(codes, OPD_FLOAT32);
    if (!codes || !whole->numel) { return codes; }
    int64_t rows = input || last < 1 ? 1 : opdi_sizes(whole)[0];
    for (int i = 0; (input || scales->numel > rows) && i < last; i++) {
        rows = (i ? rows : 1) * opdi_sizes(whole)[i];
    }
    const int64_t groups = OPDI_MAX((int64_t)1, scales->numel / rows);
    const int64_t parts[3] = {rows, groups, whole->numel / rows / groups}, each[3] = {rows, groups, 1};
    codes = opdi_reshape_to(codes, parts, 3);
    if (codes && zeros) {
        zeros = opdi_reshape_to(zeros, each, zeros->numel == 1 ? 0 : 3);
        codes = zeros ? opd_sub(codes, opd_to_dtype(zeros, OPD_FLOAT32)) : NULL;
    }
    codes = codes ? opd_mul(codes, opdi_reshape_to(scales, each, scales->numel == 1 ? 0 : 3)) : NULL;
    codes = codes ? opd_to_dtype(codes, OPD_FLOAT32) : NULL;
    return codes ? opdi_reshape_to(codes, opdi_sizes(whole), whole->ndim) : NULL;
}
/* Computes a linear layer at once.  Returns 1, and *out is the result; 0 if that is not possible; or -1 and sets an
   error. */
static int opdi_coded_linear_at_once(opd_call *call, opd_tensor **out) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *const weight = opd_arg_tensor(call, 3);
    opd_tensor *const scale = opdi_coded_arg(call, 1), *const bias = opdi_coded_arg(call, 6);
    const opd_scalar_type dtype = scale ? OPD_FLOAT32 : OPDI_DTYPE(input);
    opdi_coded_rows w;
    int64_t sizes[OPD_MAX_DIMS];
    if (!opdi_coded_alone(call) || input->ndim < 1 || weight->ndim != 2 || !input->numel ||
        opdi_sizes(input)[input->ndim - 1] != opdi_sizes(weight)[1]) { return 0; }
    if ((dtype != OPD_FLOAT32 && dtype != OPD_FLOAT16 && dtype != OPD_BFLOAT16) ||
        (bias && (bias->dtype != OPD_FLOAT32 || bias->ndim != 1 || bias->numel != opdi_sizes(weight)[0]))) { return 0; }
    const int read = opdi_coded_read(weight, opdi_coded_arg(call, 4), opdi_coded_arg(call, 5), &w);
    if (read != 1) { return read; }
    const int64_t n = opdi_sizes(weight)[0], k = w.stride, m = input->numel / k;
    for (int i = 0; i < input->ndim; i++) { sizes[i] = i == input->ndim - 1 ? n : opdi_sizes(input)[i]; }
    opd_tensor *const made = opd_empty(opd_ints_of(sizes, input->ndim), OPD_FLOAT32);
    const opd_tensor *const added = bias ? opdi_dense_as(bias, OPD_FLOAT32) : NULL;
    if (!made || (bias && !added)) { return -1; }
    float *const y = (float *)(void *)made->data;
    const int rc = opdi_coded_whole(call, &w, added, m, n, y);
    *out = made;
    if (rc) { return rc; }
    opd_tensor *const wide = opdi_coded_wide(input, scale, opdi_coded_arg(call, 2), true);
    const opd_tensor *const x = opdi_dense_as(wide, OPD_FLOAT32);
    opdi_block_job job;
    if (!x) { return -1; }
    memset(&job, 0, sizeof job);
    job.dtype = OPDI_DTYPE(weight);
    job.exact = true;
    job.m = m;
    job.n = n;
    job.k = k;
    job.w = w.codes;
    job.w_stride = k;
    job.x = (const float *)(const void *)x->data;
    job.x_stride = k;
    job.y = y;
    job.y_stride = n;
    job.form = &w.form;
    if (opdi_block_product(&job)) { return -1; }
    if (added) { *out = opd_add_(made, (opd_tensor *)(uintptr_t)added); }
    *out = *out ? opd_to_dtype(*out, dtype) : NULL;
    return *out ? 1 : -1;
}
static int opdi_coded_linear_kernel(opd_call *call) {
    opd_tensor *out = NULL;
    const int done = opdi_coded_linear_at_once(call, &out);
    if (done) { return done < 0 ? -1 : opd_return_tensor(call, out); }
    opd_tensor *const x = opdi_coded_wide(opd_arg_tensor(call, 0), opdi_coded_arg(call, 1), opdi_coded_arg(call, 2),
                                          true);
    opd_tensor *weight = opd_arg_tensor(call, 3);
    weight = opdi_coded_wide(weight, opdi_coded_arg(call, 4), opdi_coded_arg(call, 5), false);
    weight = x && weight ? opd_to_dtype(weight, opd_dtype(x)) : NULL;
    opd_tensor *const bias = opdi_coded_arg(call, 6);
    if (!weight || !bias || opd_ndim(bias) == 1) {
        return weight ? opd_return_tensor(call, opd_linear(x, weight, bias)) : -1;
    }
    out = opd_linear(x, weight, NULL);            /* the layer was addmm */
    return out ? opd_return_tensor(call, opd_add(out, bias)) : -1;
}
/* Computes the sums of the rows or columns of a matrix of int8, which are contiguous, as int32.  Returns 1; 0 if the
   call is another; or -1 and sets an error. */
static int opdi_sum_bytes(opd_call *call) {
    const opd_tensor *const tensor = opd_arg_tensor(call, 0);
    const opd_ints dims = opd_arg_ints(call, 1);
    if (tensor->dtype != OPD_INT8 || tensor->ndim != 2 || dims.n != 1 || dims.data[0] < -2 || dims.data[0] > 1 ||
        opd_arg_is_none(call, 3) || opd_arg_int(call, 3) != OPD_INT32 || !tensor->numel || !tensor->data) { return 0; }
    const int64_t dim = (dims.data[0] + 2) % 2, n = opdi_sizes(tensor)[1 - dim], k = opdi_sizes(tensor)[dim];
    const bool keep = opd_arg_bool(call, 2);
    const int64_t sizes[2] = {keep && dim == 0 ? 1 : n, dim ? 1 : n};
    if (opdi_strides(tensor)[dim] != 1) { return 0; }
    opd_tensor *const out = opd_result(call, 0, sizes, keep ? 2 : 1, OPD_INT32);
    if (!out || !out->data) { return out ? 1 : -1; }        /* only the size was asked for */
    opd_tensor *const ones = opd_full(OPD_INTS(k), opd_value_int(1), OPD_UINT8);
    opd_tensor *const sums = ones ? opd_empty(OPD_INTS(n), OPD_INT32) : NULL;
    opdi_byte_job job;
    if (!sums) { return -1; }
    job.m = 1;
    job.n = n;
    job.k = k;
    job.x = (const uint8_t *)ones->data;
    job.w = (const int8_t *)tensor->data;
    job.w_stride = opdi_strides(tensor)[1 - dim];
    job.y = (int32_t *)(void *)sums->data;
    if (opdi_byte_product(&job)) { return opdi_buffer_fail(); }
    return opd_copy_(out, opd_reshape(sums, opd_ints_of(opdi_sizes(out), out->ndim))) ? 1 : -1;
}
OPDI_INTERNAL void opdi_coded_linear(opd_op_desc *op) {
    OPDI_PUBLISH(&opdi_on_byte_sums, &opdi_sum_bytes);     /* layers of codes need sums of their weights */
    op->schema = "quantized_linear(Tensor input, Tensor? input_scale, Tensor? input_zero_point, Tensor weight, Tensor? "
        "scales, Tensor? zero_points, Tensor? bias) -> Tensor";
    op->composite = opdi_coded_linear_kernel;
}

//== convolutions ======================================================================================================

/* A 2-D convolution of codes.  planes: the padded image, int8 [channels, height, width]. */
typedef struct opdi_coded_conv {
    opdi_coded_rows w;
    int64_t n, channels, kh, kw;                  /* of the weight */
    int64_t ih, iw, height, width, oh, ow;        /* the sizes of an image, of the padded image, and of the result */
    int64_t stride[2], padding[2], dilation[2];
    int32_t zero;                                 /* the zero point of the codes in planes */
    float scale;
    const float *bias;
    const int32_t *sums;                          /* [n]: the sums of the rows of w */
    int8_t *planes, *columns;
    int32_t *product;
} opdi_coded_conv;

/* Copies an image to conv->planes and pads it with zeros. */
static void opdi_coded_pad(const opdi_coded_conv *conv, const uint8_t *image, bool minus) {
    memset(conv->planes, conv->zero, (size_t)(conv->channels * conv->height * conv->width));
    for (int64_t row = 0; row < conv->channels * conv->ih; row++) {
        const int64_t plane = row / conv->ih, y = row % conv->ih + conv->padding[0];
        const uint8_t *const from = image + row * conv->iw;
        int8_t *const to = conv->planes + (plane * conv->height + y) * conv->width + conv->padding[1];
        const uint8_t flip = minus ? 0 : 0x80;
        for (int64_t x = 0; x < conv->iw; x++) { to[x] = (int8_t)(from[x] ^ flip); }
    }
}
/* An opdi_range_fn: writes rows begin .. end - 1 of the matrix of columns for rows y .. y + count - 1 of the result. */
typedef struct opdi_coded_unfold { const opdi_coded_conv *conv; int64_t y, count; } opdi_coded_unfold;
static void opdi_coded_unfold_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_coded_unfold *const unfold = (const opdi_coded_unfold *)ctx;
    const opdi_coded_conv *const conv = unfold->conv;
    const int64_t sx = conv->stride[1];
    for (int64_t row = begin; row < end; row++) {
        const int64_t kx = row % conv->kw, ky = row / conv->kw % conv->kh, plane = row / conv->kw / conv->kh;
        int8_t *to = conv->columns + row * unfold->count * conv->ow;
        for (int64_t y = unfold->y; y < unfold->y + unfold->count; y++, to += conv->ow) {
            const int8_t *const from = conv->planes + kx * conv->dilation[1] +
                (plane * conv->height + y * conv->stride[0] + ky * conv->dilation[0]) * conv->width;
            if (sx == 1) { memcpy(to, from, (size_t)conv->ow); }
            else { for (int64_t x = 0; x < conv->ow; x++) { to[x] = from[x * sx]; } }
        }
    }
}
/* An opdi_range_fn: computes channels begin .. end - 1 of rows of the result from the product. */
typedef struct opdi_coded_store { const opdi_coded_conv *conv; int64_t count; float *y; } opdi_coded_store;
static void opdi_coded_store_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_coded_store *const store = (const opdi_coded_store *)ctx;
    const opdi_coded_conv *const conv = store->conv;
    for (int64_t j = begin; j < end; j++) {
        const int32_t *const from = conv->product + j * store->count, less = conv->zero * conv->sums[j];
        const float scale = conv->scale * conv->w.scales[j], more = conv->bias ? conv->bias[j] : 0;
        float *const to = store->y + j * conv->oh * conv->ow;
        for (int64_t i = 0; i < store->count; i++) { to[i] = (float)(from[i] - less) * scale + more; }
    }
}
/* Returns how many rows of the result are computed at a time. */
static int64_t opdi_coded_conv_rows(const opdi_coded_conv *conv) {
    const int64_t rows = OPDI_MAX((int64_t)1, 524288 / OPDI_MAX((int64_t)1, conv->w.stride * conv->ow));
    return OPDI_MIN(rows, conv->oh);
}
/* Computes one image.  Returns 1; 0 if the processor has no instructions for it; or -1 if memory runs out. */
static int opdi_coded_conv_image(opdi_coded_conv *conv, const uint8_t *image, bool minus, float *y) {
    const int64_t rows = opdi_coded_conv_rows(conv), k = conv->w.stride;
    const bool plain = conv->kh == 1 && conv->kw == 1 && conv->stride[0] == 1 && conv->stride[1] == 1;
    const opdi_gemm_in left = opdi_gemm_in_of(conv->w.codes, OPD_INT8, k, 1);
    opdi_coded_pad(conv, image, minus);
    for (int64_t at = 0; at < conv->oh; at += rows) {
        opdi_coded_unfold unfold;
        opdi_coded_store store;
        unfold.conv = store.conv = conv;
        unfold.y = at;
        unfold.count = OPDI_MIN(rows, conv->oh - at);
        store.count = unfold.count * conv->ow;
        store.y = y + at * conv->ow;
        if (!plain) {
            opdi_parallel_for(k, OPDI_MAX((int64_t)1, 65536 / store.count), opdi_coded_unfold_range, &unfold);
        }
        const opdi_gemm_in right = opdi_gemm_in_of(plain ? conv->planes + at * conv->ow : conv->columns, OPD_INT8,
                                                   plain ? conv->oh * conv->ow : store.count, 1);
        const int done = opdi_gemm_bytes_try(conv->n, store.count, k, &left, &right, conv->product);
        if (done != 1) { return done; }
        opdi_parallel_for(conv->n, OPDI_MAX((int64_t)1, 16384 / store.count), opdi_coded_store_range, &store);
    }
    return 1;
}
/* Reads the arguments of a convolution.  Returns 1; 0 if it is not one of two dims and one group; or -1 and sets an
   error. */
static int opdi_coded_conv_read(const opd_call *call, opdi_coded_conv *conv) {
    const opd_tensor *const input = opd_arg_tensor(call, 0), *const weight = opd_arg_tensor(call, 3);
    const opd_tensor *const zero = opd_arg_tensor(call, 2), *const bias = opdi_coded_arg(call, 6);
    const opd_ints settings[3] = {opd_arg_ints(call, 7), opd_arg_ints(call, 8), opd_arg_ints(call, 9)};
    int64_t *const to[3] = {conv->stride, conv->padding, conv->dilation};
    if (input->ndim != 4 || weight->ndim != 4 || opd_arg_int(call, 10) != 1 || !input->numel || !weight->numel ||
        weight->dtype != OPD_INT8 || (input->dtype != OPD_INT8 && input->dtype != OPD_UINT8) || zero->numel != 1 ||
        !opd_dtype_is_integral(OPDI_DTYPE(zero), false) || opd_arg_tensor(call, 1)->numel != 1 ||
        opdi_sizes(input)[1] != opdi_sizes(weight)[1]) { return 0; }
    const int64_t *const sizes = opdi_sizes(weight), *const image = opdi_sizes(input);
    if (bias && (bias->dtype != OPD_FLOAT32 || bias->numel != sizes[0])) { return 0; }
    for (int i = 0; i < 3; i++) {
        for (int64_t dim = 0; dim < 2; dim++) {
            if (settings[i].n != 1 && settings[i].n != 2) { return 0; }
            to[i][dim] = settings[i].data[settings[i].n == 2 ? dim : 0];
            if (to[i][dim] < (i != 1) || to[i][dim] > 1024) { return 0; }
        }
    }
    conv->n = sizes[0];
    conv->channels = sizes[1];
    conv->kh = sizes[2];
    conv->kw = sizes[3];
    conv->ih = image[2];
    conv->iw = image[3];
    conv->height = conv->ih + 2 * conv->padding[0];
    conv->width = conv->iw + 2 * conv->padding[1];
    conv->oh = (conv->height - conv->dilation[0] * (conv->kh - 1) - 1) / conv->stride[0] + 1;
    conv->ow = (conv->width - conv->dilation[1] * (conv->kw - 1) - 1) / conv->stride[1] + 1;
    if (conv->height < conv->dilation[0] * (conv->kh - 1) + 1 || conv->width < conv->dilation[1] * (conv->kw - 1) + 1) {
        return 0;
    }
    return opdi_coded_read(opd_arg_tensor(call, 3), opdi_coded_arg(call, 4), opdi_coded_arg(call, 5), &conv->w);
}
/* Allocates the buffers, and computes the sums of the rows of the weight.  Returns 1, or -1 and sets an error. */
static int opdi_coded_conv_begin(opdi_coded_conv *conv) {
    const int64_t k = conv->w.stride, part = opdi_coded_conv_rows(conv) * conv->ow;
    opd_tensor *const planes = opd_empty(OPD_INTS(conv->channels * conv->height * conv->width), OPD_INT8);
    opd_tensor *const columns = opd_empty(OPD_INTS(k * part), OPD_INT8);
    opd_tensor *const product = opd_empty(OPD_INTS(conv->n * (part + 1)), OPD_INT32);
    if (!planes || !columns || !product) { return -1; }
    conv->planes = (int8_t *)planes->data;
    conv->columns = (int8_t *)columns->data;
    conv->product = (int32_t *)(void *)product->data;
    int32_t *const sums = conv->product + conv->n * part;
    for (int64_t j = 0; j < conv->n; j++) {
        int32_t sum = 0;
        for (int64_t i = 0; i < k; i++) { sum += (int8_t)conv->w.codes[j * k + i]; }
        sums[j] = sum;
    }
    conv->sums = sums;
    return 1;
}
static int opdi_coded_conv_at_once(opd_call *call, opd_tensor **out) {
    opdi_coded_conv conv;
    opd_tensor *const input = opd_arg_tensor(call, 0), *const bias = opdi_coded_arg(call, 6);
    if (!opdi_coded_alone(call) || !opdi_gemm_bytes_are_fast()) { return 0; }
    const int read = opdi_coded_conv_read(call, &conv);
    if (read != 1 || conv.w.groups > 1 || !conv.w.scales || conv.w.stride > 32768 ||
        !opdi_coded_all_zero(conv.w.zeros, conv.n) || !opdi_coded_all_finite(conv.w.scales, conv.n)) {
        return read < 0 ? -1 : 0;
    }
    const bool minus = input->dtype == OPD_INT8;
    const int64_t zero = opd_item_i64(opd_arg_tensor(call, 2)) - (minus ? 0 : 128);
    if (zero < -128 || zero > 127) { return 0; }
    conv.zero = (int32_t)zero;
    conv.scale = (float)opd_item_f64(opd_arg_tensor(call, 1));
    if (!isfinite(conv.scale)) { return 0; }
    const opd_tensor *const image = opdi_dense_as(input, OPDI_DTYPE(input));
    const opd_tensor *const added = bias ? opdi_dense_as(bias, OPD_FLOAT32) : NULL;
    *out = opd_empty(OPD_INTS(opdi_sizes(input)[0], conv.n, conv.oh, conv.ow), OPD_FLOAT32);
    if (!image || !*out || (bias && !added) || opdi_coded_conv_begin(&conv) < 0) { return -1; }
    conv.bias = added ? (const float *)(const void *)added->data : NULL;
    for (int64_t i = 0; i < opdi_sizes(input)[0]; i++) {
        const uint8_t *const from = (const uint8_t *)image->data + i * conv.channels * conv.ih * conv.iw;
        float *const to = (float *)(void *)(*out)->data + i * conv.n * conv.oh * conv.ow;
        const int done = opdi_coded_conv_image(&conv, from, minus, to);
        if (done != 1) { return done < 0 ? opdi_buffer_fail() : 0; }
    }
    return 1;
}
static int opdi_coded_conv_kernel(opd_call *call) {
    opd_tensor *out = NULL;
    const int done = opdi_coded_conv_at_once(call, &out);
    if (done) { return done < 0 ? -1 : opd_return_tensor(call, out); }
    static const int64_t none[3] = {0, 0, 0};
    opd_tensor *const bias = opdi_coded_arg(call, 6);
    const opd_ints stride = opd_arg_ints(call, 7), padding = opd_arg_ints(call, 8), dilation = opd_arg_ints(call, 9);
    const int64_t groups = opd_arg_int(call, 10);
    opd_tensor *const x = opdi_coded_wide(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_tensor(call, 2),
                                          true);
    opd_tensor *weight = opdi_coded_wide(opd_arg_tensor(call, 3), opdi_coded_arg(call, 4), opdi_coded_arg(call, 5),
                                         false);
    weight = x && weight ? opd_to_dtype(weight, opd_dtype(x)) : NULL;
    if (!weight) { return -1; }
    if (opd_arg_bool(call, 11)) {                 /* autocast lowers conv2d, but not convolution */
        return opd_return_tensor(call, opd_conv2d_full(x, weight, bias, stride, padding, dilation, groups));
    }
    const int64_t dims = opd_ndim(weight) > 2 ? OPDI_MIN(3, opd_ndim(weight) - 2) : 1;
    return opd_return_tensor(call, opd_convolution(x, weight, bias, stride, padding, dilation, false,
                                                   opd_ints_of(none, dims), groups));
}
OPDI_INTERNAL void opdi_coded_convolution(opd_op_desc *op) {
    op->schema = "quantized_convolution(Tensor input, Tensor input_scale, Tensor input_zero_point, Tensor weight, "
        "Tensor? scales, Tensor? zero_points, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
        "SymInt groups, bool flat) -> Tensor";
    op->composite = opdi_coded_conv_kernel;
}
