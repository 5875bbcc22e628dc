#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:packed    products with packed weights of 8 and 4 bits, with float8, for experts, and with weights in blocks
//----------------------------------------------------------------------------------------------------------------------

/* Returns the product of two matrices in their own dtype.  Autocast does not lower it, because PyTorch's kernels of the
   operators here do not call mm. */
OPDI_INTERNAL opd_tensor *opdi_product_as_given(opd_tensor *left, opd_tensor *right) {
    const opd_key_guard guard = opdi_autocast_off();
    opd_tensor *const product = opd_mm(left, right);
    opd_keys_restore(guard);
    return product;
}

//== weights of 8 bits =================================================================================================

static int opdi_int8_product_kernel(opd_call *call) {
    opd_tensor *const x = opd_arg_tensor(call, 0), *const weight = opd_arg_tensor(call, 1),
        *const scales = opd_arg_tensor(call, 2);
    const opd_scalar_type dtype = OPDI_DTYPE(x);
    if (x->ndim != 2 || (dtype != OPD_FLOAT32 && dtype != OPD_FLOAT16 && dtype != OPD_BFLOAT16)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "_weight_int8pack_mm: self must be a matrix of float32, float16 or "
                        "bfloat16, but has %d dims and dtype %s", x->ndim, opd_dtype_name(dtype));
    }
    if (weight->ndim != 2 || weight->dtype != OPD_INT8 || opdi_sizes(weight)[1] != opdi_sizes(x)[1]) {
        return opd_fail(OPD_ERROR_SHAPE, "_weight_int8pack_mm: mat2 must be an int8 matrix with a row for each result "
                        "and %lld columns", (long long)opdi_sizes(x)[1]);
    }
    if (scales->ndim != 1 || scales->numel != opdi_sizes(weight)[0]) {
        return opd_fail(OPD_ERROR_SHAPE, "_weight_int8pack_mm: scales must have an element for each of the %lld rows "
                        "of mat2", (long long)opdi_sizes(weight)[0]);
    }
    opd_tensor *product = opdi_coded_float_mm(call, x, weight);
    if (!product && opd_ok()) {
        opd_tensor *const wide = opd_t(opd_to_dtype(weight, OPD_FLOAT32));
        product = opdi_product_as_given(opd_to_dtype(x, OPD_FLOAT32), wide);
    }
    if (!product) { return -1; }
    return opd_return_tensor(call, opd_to_dtype(opd_mul(product, opd_to_dtype(scales, OPD_FLOAT32)), dtype));
}
/* opd__weight_int8pack_mm: self times the transposed int8 matrix mat2, whose rows have scales */
OPDI_OP(_weight_int8pack_mm) {
    op->schema = "_weight_int8pack_mm(Tensor self, Tensor mat2, Tensor scales) -> Tensor";
    op->composite = opdi_int8_product_kernel;
    op->cases = "";
}

//== weights of 4 bits =================================================================================================

/* The packed form of a matrix of 4 bits an element, as PyTorch has it on processors with AVX2 or with AVX-512.  A
   block of 32 rows (AVX2) has a line of 16 bytes for each column: byte j has row j in its low four bits, and row j + 16
   in the high ones.  A block of 64 rows (AVX-512) has a line of 32 bytes: byte j has row j and row j + 32.  In a last
   block of fewer rows, byte j of a line has rows 2 j and 2 j + 1.  Returns the place of row `inside` of a block in a
   line of `count` rows, counted in half bytes. */
static int64_t opdi_int4_place_in(int64_t inside, int64_t count, int64_t block) {
    return count < block ? inside : inside % (block / 2) * 2 + inside / (block / 2);
}
/* Returns the place of an element, counted in half bytes. */
static int64_t opdi_int4_place(int64_t row, int64_t column, int64_t rows, int64_t columns, int64_t block) {
    const int64_t first = row / block * block, count = OPDI_MIN(block, rows - first);
    return first * columns + column * count + opdi_int4_place_in(row - first, count, block);
}
static int opdi_int4_code(const uint8_t *packed, int64_t at) { return packed[at / 2] >> (at % 2 ? 4 : 0) & 15; }
/* Returns how many of the first `groups` groups of columns, in the first `some` rows, have both code 0 and code 15. */
static int64_t opdi_int4_full(const uint8_t *packed, int64_t rows, int64_t columns, int64_t some, int64_t groups,
                              int64_t group, int64_t block) {
    int64_t full = 0;
    for (int64_t row = 0; row < some; row++) {
        for (int64_t first = 0; first < groups * group; first += group) {
            unsigned seen = 0;
            for (int64_t k = first; k < first + group; k++) {
                seen |= 1u << opdi_int4_code(packed, opdi_int4_place(row, k, rows, columns, block));
            }
            full += (seen & 0x8001u) == 0x8001u;
        }
    }
    return full;
}
/* Returns the rows of a block of packed codes.  A file does not tell.  Each group of a quantiser has the code 0 for its
   smallest element and 15 for the largest; if the codes are read in the wrong way, elements of two rows are mixed, and
   fewer groups have both.  Reads 128 columns (or a group) of 64 rows, because each product asks.  Returns 32 if that
   does not decide.  chosen: the answer, if it is known, or 0. */
static int64_t opdi_int4_block(const uint8_t *packed, int64_t rows, int64_t columns, int64_t group, int chosen) {
    if (chosen || !columns) { return chosen ? chosen : 32; }
    const int64_t some = OPDI_MIN(rows, (int64_t)64);
    const int64_t groups = OPDI_MIN(columns / group, OPDI_MAX((int64_t)1, 128 / group));
    const int64_t wide = opdi_int4_full(packed, rows, columns, some, groups, group, 64);
    if (wide * 10 < some * groups * 9) { return 32; }
    return wide > opdi_int4_full(packed, rows, columns, some, groups, group, 32) ? 64 : 32;
}
static int opdi_int4_pack_kernel(opd_call *call) {
    opd_tensor *const weight = opd_arg_tensor(call, 0);
    if (weight->ndim != 2 || weight->dtype != OPD_INT32 || opdi_sizes(weight)[0] % 16 || opdi_sizes(weight)[1] % 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "_convert_weight_to_int4pack_for_cpu: self must be an int32 matrix whose "
                        "rows are a multiple of 16 and whose columns are a multiple of 2");
    }
    const int64_t rows = opdi_sizes(weight)[0], columns = opdi_sizes(weight)[1], sizes[2] = {rows, columns / 2};
    opd_tensor *const out = opd_result(call, 0, sizes, 2, OPD_UINT8);
    uint8_t *const to = out ? (uint8_t *)opd_data(out) : NULL;
    if (!to) { return out ? 0 : -1; }
    const opd_tensor *const dense = opdi_dense_as(weight, OPD_INT32);
    if (!dense) { return -1; }
    const int32_t *const from = (const int32_t *)(const void *)dense->data;
    const int64_t block = opd_int4_block() == 64 ? 64 : 32;
    memset(to, 0, (size_t)(rows * columns / 2));
    for (int64_t i = 0; i < rows * columns; i++) {
        const int64_t at = opdi_int4_place(i / columns, i % columns, rows, columns, block);
        if (from[i] < 0 || from[i] > 15) {
            return opd_fail(OPD_ERROR_ARGUMENT, "_convert_weight_to_int4pack_for_cpu: element %lld is %d, but must be "
                            "0 to 15", (long long)i, (int)from[i]);
        }
        to[at / 2] = (uint8_t)(to[at / 2] | from[i] << (at % 2 ? 4 : 0));
    }
    return 0;
}
/* opd__convert_weight_to_int4pack_for_cpu: numbers from 0 to 15, packed as PyTorch packs them on processors with AVX2,
   or with AVX-512 after opd_int4_block_set(64) */
OPDI_OP(_convert_weight_to_int4pack_for_cpu) {
    op->schema = "_convert_weight_to_int4pack_for_cpu(Tensor self, int innerKTiles) -> Tensor";
    op->cpu = op->fake = opdi_int4_pack_kernel; op->any = opd_cpu_fallback; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "";
}
/* The rows of a packed weight [rows, columns], with a scale and a zero for each row and group of columns, in scales
   [groups, rows, 2].  An element is (code - 8) * scale + zero. */
typedef struct opdi_int4_rows {
    opdi_block_form form;
    const uint8_t *packed;
    const float *scales;
    int64_t rows, columns, group, block;
} opdi_int4_rows;
/* An opdi_block_floats_fn: `at` is as if each row had its codes side by side. */
static void opdi_int4_floats(const opdi_block_form *form, const uint8_t *at, int64_t count, float *out) {
    const opdi_int4_rows *const w = (const opdi_int4_rows *)(const void *)form;
    const int64_t half = w->columns / 2, row = (at - w->packed) / half, first = (at - w->packed) % half * 2;
    const int64_t begin = row / w->block * w->block, line = OPDI_MIN(w->block, w->rows - begin);
    const int64_t place = begin * w->columns + opdi_int4_place_in(row - begin, line, w->block);
    const uint8_t *from = w->packed + (place + first * line) / 2;
    const int shift = place % 2 ? 4 : 0;          /* lines have an even number of codes */
    for (int64_t k = 0; k < count; k++, from += line / 2) {
        const float *const two = w->scales + ((first + k) / w->group * w->rows + row) * 2;
        out[k] = (float)((*from >> shift & 15) - 8) * two[0] + two[1];
    }
}
/* Computes y [m, rows] = x [m, columns] wT.  chosen: see opdi_int4_block.  Returns 0, or -1 and sets an error. */
static int opdi_int4_product(const opd_tensor *x, const opd_tensor *packed, const opd_tensor *scales, int64_t group,
                             int chosen, float *y) {
    opdi_int4_rows w;
    opdi_block_job job;
    memset(&w, 0, sizeof w);
    memset(&job, 0, sizeof job);
    w.packed = (const uint8_t *)packed->data;
    w.scales = (const float *)(const void *)scales->data;
    w.rows = job.n = opdi_sizes(packed)[0];
    w.columns = job.k = opdi_sizes(x)[1];
    w.group = group;
    w.block = opdi_int4_block(w.packed, w.rows, w.columns, group, chosen);
    w.form.elements = 2;
    w.form.bytes = 1;
    w.form.floats = opdi_int4_floats;
    job.form = &w.form;
    job.dtype = OPD_UINT8;
    job.exact = true;
    job.m = opdi_sizes(x)[0];
    job.w = w.packed;
    job.w_stride = w.columns / 2;
    job.x = (const float *)(const void *)x->data;
    job.x_stride = w.columns;
    job.y = y;
    job.y_stride = w.rows;
    return opdi_block_product(&job);
}
static int opdi_int4_product_kernel(opd_call *call) {
    opd_tensor *const x = opd_arg_tensor(call, 0), *const packed = opd_arg_tensor(call, 1),
        *const scales = opd_arg_tensor(call, 3);
    const int64_t group = opd_arg_int(call, 2), columns = x->ndim == 2 ? opdi_sizes(x)[1] : 0;
    const int set = opd_int4_block(), chosen = set || opd_call_nargs(call) < 5 ? set : (int)opd_arg_int(call, 4);
    if (x->ndim != 2 || !opd_dtype_is_floating(OPDI_DTYPE(x)) || x->dtype == OPD_FLOAT64) {
        return opd_fail(OPD_ERROR_ARGUMENT, "_weight_int4pack_mm_for_cpu: self must be a matrix of float32, float16 or "
                        "bfloat16");
    }
    if (packed->ndim != 2 || packed->dtype != OPD_UINT8 || opdi_sizes(packed)[1] * 2 != columns ||
        opdi_sizes(packed)[0] % 16) {
        return opd_fail(OPD_ERROR_SHAPE, "_weight_int4pack_mm_for_cpu: mat2 must be a uint8 matrix of %lld columns "
                        "(two elements in a byte), whose rows are a multiple of 16", (long long)columns / 2);
    }
    const int64_t rows = opdi_sizes(packed)[0];
    if ((group != 32 && group != 64 && group != 128 && group != 256) || columns % group) {
        return opd_fail(OPD_ERROR_ARGUMENT, "_weight_int4pack_mm_for_cpu: qGroupSize must be 32, 64, 128 or 256 and "
                        "divide the %lld columns of self, but is %lld", (long long)columns, (long long)group);
    }
    const int64_t want[3] = {columns / group, rows, 2}, sizes[2] = {opdi_sizes(x)[0], rows};
    if (!opdi_has_sizes(scales, want, 3)) {
        return opd_fail(OPD_ERROR_SHAPE, "_weight_int4pack_mm_for_cpu: qScaleAndZeros must have the sizes (%lld, %lld, "
                        "2)", (long long)want[0], (long long)rows);
    }
    opd_tensor *const out = opd_result(call, 0, sizes, 2, OPDI_DTYPE(x));
    if (!out || !opd_data(out)) { return out ? 0 : -1; }
    const opd_tensor *const from = opdi_dense_as(x, OPD_FLOAT32), *const codes = opdi_dense_as(packed, OPD_UINT8);
    const opd_tensor *const each = opdi_dense_as(scales, OPD_FLOAT32);
    opd_tensor *const product = opd_empty(opd_ints_of(sizes, 2), OPD_FLOAT32);
    if (!from || !codes || !each || !product ||
        opdi_int4_product(from, codes, each, group, chosen, (float *)(void *)product->data)) { return -1; }
    return opd_copy_(out, product) ? 0 : -1;
}
/* The gradient of self is grad times the weight, which is the product of a unit matrix with the packed weight. */
static int opdi_int4_product_backward(opd_backward_call *bw) {
    opd_tensor *const grad = opd_bw_grad(bw, 0), *const packed = opd_bw_tensor(bw, 1);
    opd_tensor *const scales = opd_bw_tensor(bw, 3);
    if (!packed) { return -1; }
    opd_tensor *const unit = opd_to_dtype(opd_eye(opd_size(packed, 1) * 2, OPD_FLOAT32), OPD_FLOAT32);
    opd_tensor *const weight = opd__weight_int4pack_mm_for_cpu(unit, packed, opd_bw_int(bw, 2), scales);
    return opd_bw_return(bw, 0, opd_mm(grad, opd_to_dtype(opd_t(weight), opd_dtype(grad))));
}
/* opd__weight_int4pack_mm_for_cpu: self times a transposed matrix of 4 bits an element, packed as on processors with
   AVX2 or AVX-512 (see opd_int4_block_set), with a scale and a zero for each group of columns */
OPDI_OP(_weight_int4pack_mm_for_cpu) {
    op->schema = "_weight_int4pack_mm_for_cpu(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros) -> "
        "Tensor";
    op->cpu = op->fake = opdi_int4_product_kernel; op->any = opd_cpu_fallback;
    op->backward = opdi_int4_product_backward; op->save = "mat2, qScaleAndZeros"; op->constant = "qScaleAndZeros";
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "";
}
/* The same product of a weight whose blocks have 32 or 64 rows, as the file says; 0: unknown. */
OPDI_INTERNAL void opdi_int4_product_of_block(opd_op_desc *op) {
    op->schema = "int4pack_mm(Tensor self, Tensor mat2, int qGroupSize, Tensor qScaleAndZeros, int block) -> Tensor";
    op->cpu = op->fake = opdi_int4_product_kernel; op->any = opd_cpu_fallback; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
}

//== weights of 4 bits, and activations of 8 ===========================================================================

/* PyTorch's packed form on processors that are not ARM's: one float32 vector with each byte of the weights, as a
   number, and then the scales, and the bias if there is one. */
static int opdi_dyn4_pack_kernel(opd_call *call) {
    opd_tensor *const weights = opd_arg_tensor(call, 0), *const scales = opd_arg_tensor(call, 1);
    const int64_t block = opd_arg_int(call, 3), in = opd_arg_int(call, 4), rows = opd_arg_int(call, 5);
    const bool biased = !opd_arg_is_none(call, 2);
    if (block < 1 || in < 2 || in % 2 || rows < 1 || in % block || weights->dtype != OPD_UINT8 || in > INT32_MAX ||
        rows > INT32_MAX || weights->numel != rows * (in / 2) || scales->numel != rows * (in / block)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "_dyn_quant_pack_4bit_weight: weights must have out_features x in_features "
                        "/ 2 bytes, and scales_zeros out_features x in_features / block_size elements");
    }
    opd_tensor *parts[3];
    parts[0] = opd_to_dtype(opd_reshape(weights, OPD_INTS(-1)), OPD_FLOAT32);
    parts[1] = opd_to_dtype(opd_reshape(scales, OPD_INTS(-1)), OPD_FLOAT32);
    parts[2] = biased ? opd_to_dtype(opd_reshape(opd_arg_tensor(call, 2), OPD_INTS(-1)), OPD_FLOAT32) : NULL;
    if (biased && opd_arg_tensor(call, 2)->numel != rows) {
        return opd_fail(OPD_ERROR_SHAPE, "_dyn_quant_pack_4bit_weight: bias must have %lld elements", (long long)rows);
    }
    return opd_ok() ? opd_return_tensor(call, opd_cat(opd_tensors_of(parts, biased ? 3 : 2), 0)) : -1;
}
/* opd__dyn_quant_pack_4bit_weight: weights of 4 bits, scales and bias as one vector */
OPDI_OP(_dyn_quant_pack_4bit_weight) {
    op->schema = "_dyn_quant_pack_4bit_weight(Tensor weights, Tensor scales_zeros, Tensor? bias, int block_size, int "
        "in_features, int out_features) -> Tensor";
    op->composite = opdi_dyn4_pack_kernel;
    op->cases = "";
}
/* A row of activations that was rounded to 8 bits: the number of q is (q - zero) * scale. */
typedef struct opdi_dyn4_row { float scale; int32_t zero; } opdi_dyn4_row;
static opdi_dyn4_row opdi_dyn4_round(const float *from, int64_t count, int8_t *to) {
    float low = 0, high = 0;
    for (int64_t k = 0; k < count; k++) {
        low = from[k] < low ? from[k] : low;
        high = from[k] > high ? from[k] : high;
    }
    const float steps = low == high ? 1 : 255 / (high - low), below = low * steps, above = high * steps;
    float zero = (-128 + below) + (127 + above) > 0 ? -128 - below : 127 - above;
    zero = zero > 127 ? 127 : zero > -128 ? zero : -128;
    const int32_t nudged = (int32_t)lrintf(zero);
    for (int64_t k = 0; k < count; k++) {
        const float number = roundf(from[k] * steps) + (float)nudged;
        to[k] = (int8_t)(number > 127 ? 127 : number > -128 ? (int32_t)number : -128);
    }
    const opdi_dyn4_row row = {steps != 0 ? 1 / steps : 0, nudged};
    return row;
}
/* Multiplies one row of activations with all rows of the weights. */
static void opdi_dyn4_product(const int8_t *row, opdi_dyn4_row how, const float *packed, int64_t block, int64_t in,
                              int64_t rows, bool biased, float *out) {
    const float *const scales = packed + rows * (in / 2), *const bias = scales + rows * (in / block);
    for (int64_t n = 0; n < rows; n++) {
        const float *const codes = packed + n * (in / 2);
        float sum = 0;
        for (int64_t group = 0; group < in / block; group++) {
            int32_t whole = 0;
            for (int64_t k = group * block; k < (group + 1) * block; k++) {
                const int32_t code = (int32_t)codes[k / 2] >> (k % 2 ? 4 : 0) & 15;
                whole += (row[k] - how.zero) * (code - 8);
            }
            sum += (float)whole * scales[n * (in / block) + group];
        }
        out[n] = sum * how.scale + (biased ? bias[n] : 0);
    }
}
static int opdi_dyn4_product_kernel(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *const packed = opd_arg_tensor(call, 1);
    const int64_t block = opd_arg_int(call, 2), in = opd_arg_int(call, 3), rows = opd_arg_int(call, 4);
    int64_t sizes[OPD_MAX_DIMS];
    if (input->ndim < 1 || opdi_sizes(input)[input->ndim - 1] != in || !opd_dtype_is_floating(OPDI_DTYPE(input))) {
        return opd_fail(OPD_ERROR_SHAPE, "_dyn_quant_matmul_4bit: the last size of inp must be in_features, %lld",
                        (long long)in);
    }
    if (block < 1 || in < 2 || in % 2 || in % block || rows < 1 || in > INT32_MAX || rows > INT32_MAX) {
        return opd_fail(OPD_ERROR_ARGUMENT, "_dyn_quant_matmul_4bit: block_size %lld must divide in_features %lld, "
                        "which must be even", (long long)block, (long long)in);
    }
    const int64_t least = rows * (in / 2) + rows * (in / block);
    if (packed->ndim != 1 || packed->dtype != OPD_FLOAT32 ||
        (packed->numel != least && packed->numel != least + rows)) {
        return opd_fail(OPD_ERROR_SHAPE, "_dyn_quant_matmul_4bit: packed_weights must be a float32 vector of %lld "
                        "elements, or %lld with a bias", (long long)least, (long long)(least + rows));
    }
    for (int i = 0; i < input->ndim; i++) { sizes[i] = i == input->ndim - 1 ? rows : opdi_sizes(input)[i]; }
    opd_tensor *const out = opd_result(call, 0, sizes, input->ndim, OPDI_DTYPE(input));
    if (!out || !opd_data(out)) { return out ? 0 : -1; }
    const opd_tensor *const from = opdi_dense_as(input, OPD_FLOAT32);
    const opd_tensor *const weights = opdi_dense_as(packed, OPD_FLOAT32);
    opd_tensor *const made = opd_empty(opd_ints_of(sizes, input->ndim), OPD_FLOAT32);
    int8_t *const row = (int8_t *)opdi_scope_alloc((size_t)in);
    if (!from || !weights || !made || !row) { return -1; }
    for (int64_t i = 0; i < input->numel / in; i++) {
        const opdi_dyn4_row how = opdi_dyn4_round((const float *)(const void *)from->data + i * in, in, row);
        opdi_dyn4_product(row, how, (const float *)(const void *)weights->data, block, in, rows, packed->numel > least,
                          (float *)(void *)made->data + i * rows);
    }
    return opd_copy_(out, made) ? 0 : -1;
}
/* opd__dyn_quant_matmul_4bit: inp, rounded to 8 bits row by row, times weights of 4 bits */
OPDI_OP(_dyn_quant_matmul_4bit) {
    op->schema = "_dyn_quant_matmul_4bit(Tensor inp, Tensor packed_weights, int block_size, int in_features, int "
        "out_features) -> Tensor";
    op->cpu = op->fake = opdi_dyn4_product_kernel; op->any = opd_cpu_fallback; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "";
}

//== products of float8 ================================================================================================

static bool opdi_scaled_dtype(int dtype) { return dtype == OPD_FLOAT8_E4M3FN || dtype == OPD_FLOAT8_E5M2; }
/* Returns the scales of self (at 2) or of mat2 (at 3): one number, or one for each of `count` rows or columns. */
static opd_tensor *opdi_scaled_scale(const opd_call *call, int at, int64_t count) {
    opd_tensor *const scale = opd_arg_tensor(call, at);
    const int64_t sizes[2] = {at == 2 ? count : 1, at == 2 ? 1 : count};
    if (scale->dtype == OPD_FLOAT32 && scale->numel == 1) { return opdi_reshape_to(scale, NULL, 0); }
    if (scale->dtype == OPD_FLOAT32 && opdi_has_sizes(scale, sizes, 2)) { return scale; }
    (void)opd_fail(OPD_ERROR_SHAPE, "_scaled_mm: %s must be float32 with one element or the sizes (%lld, %lld)",
                   at == 2 ? "scale_a" : "scale_b", (long long)sizes[0], (long long)sizes[1]);
    return NULL;
}
/* Computes a product of float8 on tensor cores of a GPU.  in: both matrices, their scales, and the bias or NULL.
   Returns NULL if this fails, and also, without an error, if it is not possible. */
static opd_tensor *opdi_scaled_in_cuda(opd_tensor *const *in /*[5]*/, opd_scalar_type dtype, bool fast) {
    static opd_op *product;
    opd_op *const op = in[0]->backend == OPD_CUDA && opdi_only_autocast_follows()
        ? opdi_cuda_op(&product, "opd_cuda::scaled_mm") : NULL;
    opd_value args[8], got;
    if (!op || (dtype != OPD_FLOAT32 && dtype != OPD_FLOAT16 && dtype != OPD_BFLOAT16)) { return NULL; }
    for (int i = 0; i < 5; i++) {
        opd_tensor *t = in[i];
        if (t && opd_grad_mode_enabled() && opdi_tracked(t)) { return NULL; }
        if (i < 2 && !(t = opd_view_dtype(t, OPD_UINT8))) { return NULL; }
        if (t && (!opdi_in_cuda(t) || t->storage->index != in[0]->storage->index)) { return NULL; }
        args[i] = t ? opd_value_tensor(t) : opd_value_none();
    }
    args[5] = opd_value_int((in[0]->dtype == OPD_FLOAT8_E5M2) + 2 * (in[1]->dtype == OPD_FLOAT8_E5M2));
    args[6] = opd_value_int((int64_t)dtype);
    args[7] = opd_value_bool(fast);
    return opd_call_all(op, &got, args, 8) || got.tag != OPD_TAG_TENSOR ? NULL : got.u.t;
}
static int opdi_scaled_product_kernel(opd_call *call) {
    opd_tensor *const a = opd_arg_tensor(call, 0), *const b = opd_arg_tensor(call, 1);
    if (a->ndim != 2 || b->ndim != 2 || opdi_sizes(a)[1] != opdi_sizes(b)[0]) {
        return opd_fail(OPD_ERROR_SHAPE, "_scaled_mm: self and mat2 must be matrices that can be multiplied");
    }
    if (!opdi_scaled_dtype(a->dtype) || !opdi_scaled_dtype(b->dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "_scaled_mm: self and mat2 must have dtype float8_e4m3fn or float8_e5m2, but "
                        "have %s and %s", opd_dtype_name(OPDI_DTYPE(a)), opd_dtype_name(OPDI_DTYPE(b)));
    }
    const opd_scalar_type dtype = opd_arg_is_none(call, 6) ? OPDI_DTYPE(a) : (opd_scalar_type)opd_arg_int(call, 6);
    opd_tensor *const left = opdi_scaled_scale(call, 2, opdi_sizes(a)[0]);
    opd_tensor *const right = left ? opdi_scaled_scale(call, 3, opdi_sizes(b)[1]) : NULL;
    if (!right) { return -1; }
    opd_tensor *const all[5] = {a, b, left, right, opd_arg_is_none(call, 4) ? NULL : opd_arg_tensor(call, 4)};
    opd_tensor *const quick = !all[4] || all[4]->numel == opdi_sizes(b)[1]
        ? opdi_scaled_in_cuda(all, dtype, opd_arg_bool(call, 7)) : NULL;
    if (quick || !opd_ok()) { return quick ? opd_return_tensor(call, quick) : -1; }
    opd_tensor *const product = opd_mul(opd_to_dtype(a, OPD_FLOAT32), left),
        *out = opdi_product_as_given(product, opd_mul(opd_to_dtype(b, OPD_FLOAT32), right));
    if (!opd_arg_is_none(call, 4)) {
        opd_tensor *const bias = opd_arg_tensor(call, 4);
        if (bias->numel != opdi_sizes(b)[1]) {
            return opd_fail(OPD_ERROR_SHAPE, "_scaled_mm: bias must have %lld elements", (long long)opdi_sizes(b)[1]);
        }
        out = opd_add(out, opd_to_dtype(opd_reshape(bias, OPD_INTS(-1)), OPD_FLOAT32));
    }
    if (!opd_arg_is_none(call, 5) && !opd_arg_is_none(call, 6) && opdi_scaled_dtype((int)dtype)) {
        out = opd_div(out, opd_reshape(opd_arg_tensor(call, 5), OPD_INTS(-1)));
    }
    return opd_return_tensor(call, opd_to_dtype(out, dtype));
}
/* opd__scaled_mm: the product of two matrices of float8, with scales for all elements, or for rows and columns */
OPDI_OP(_scaled_mm) {
    op->schema = "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? "
        "scale_result=None, ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor";
    op->composite = opdi_scaled_product_kernel;
    op->out = "_scaled_mm.out"; op->tags = OPD_OPTAG_NEEDS_EXACT_STRIDES | OPDI_OPTAG_OUT_APART;
    op->cases = "";
}

static int opdi_choose_tensor_kernel(opd_call *call) {
    opd_tensor *const input = opd_to_dtype(opd_arg_tensor(call, 0), OPD_FLOAT32), *both[2];
    double low = 0, high = 0, step = 0;
    if (!input) { return -1; }
    if (input->numel) {
        if (opd_aminmax(both, input)) { return -1; }
        low = OPDI_MIN(0.0, opd_item_f64(both[0]));
        high = OPDI_MAX(0.0, opd_item_f64(both[1]));
    }
    if (!opd_ok()) { return -1; }
    if (!isfinite(high - low)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "_choose_qparams_per_tensor: self has elements that are not finite");
    }
    const double zero = opdi_quantized_steps(low, high, opd_arg_bool(call, 1) ? 127 : 255, &step);
    return opd_return_double(call, step) ? -1 : opd_return_int(call, (int64_t)zero);
}
/* opd__choose_qparams_per_tensor: the scale and zero point for 8-bit numbers that cover all elements of self */
OPDI_OP(_choose_qparams_per_tensor) {
    op->schema = "_choose_qparams_per_tensor(Tensor self, bool reduce_range=False) -> (float, int)";
    op->composite = opdi_choose_tensor_kernel;
    op->cases = "";
}
