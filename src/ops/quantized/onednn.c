#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:onednn    layers of quantised models with what follows them, as PyTorch lowers them for oneDNN
//
//  The weights of these layers are packed first.  In PyTorch, a packed weight is opaque; here, it is a tensor with the
//  sizes that PyTorch says: that of a linear layer is transposed.  The operators are composites of quantized_linear and
//  quantized_convolution (>>op:coded).  As in PyTorch, zero points of weights count as 0.
//----------------------------------------------------------------------------------------------------------------------

/* The arguments of a layer.  settings: where stride is among the arguments of a convolution; else 0. */
typedef struct opdi_onednn_layer {
    const char *name, *binary, *unary, *way;
    opd_tensor *x, *w, *other, *bias;
    opd_value numbers;           /* the parameters of `unary` */
    double scale, other_scale, alpha;
    int64_t zero, other_zero;
    opd_scalar_type dtype;       /* the dtype of the result */
    int settings;
} opdi_onednn_layer;

static bool opdi_onednn_is(const char *text, const char *name) { return strcmp(text, name) == 0; }
static bool opdi_onednn_is_float(int dtype) {
    return dtype == OPD_FLOAT32 || dtype == OPD_BFLOAT16 || dtype == OPD_FLOAT16;
}
static const char *opdi_onednn_text(const opd_call *call, int at) {
    const char *const text = opd_arg_is_none(call, at) ? NULL : opd_arg_str(call, at);
    return text && *text ? text : "none";
}
/* Reads the arguments from number 6 on. */
static void opdi_onednn_arguments(const opd_call *call, bool conv, bool binary, opdi_onednn_layer *layer) {
    int at = 6;
    memset(layer, 0, sizeof *layer);
    layer->name = opd_op_name(opd_call_operator(call));
    layer->x = opd_arg_tensor(call, 0);
    layer->w = opd_arg_tensor(call, 3);
    layer->other = binary ? opd_arg_tensor(call, at++) : NULL;
    layer->bias = opd_arg_tensor(call, at++);
    layer->settings = conv ? at : 0;
    at += conv ? 4 : 0;
    layer->scale = opd_arg_double(call, at++);
    layer->zero = opd_arg_int(call, at++);
    layer->dtype = opd_arg_dtype(call, at++, OPDI_DTYPE(conv && layer->other ? layer->other : layer->x));
    layer->binary = "none";
    layer->other_scale = layer->alpha = 1;
    if (binary) {
        layer->other_scale = opd_arg_double(call, at++);
        layer->other_zero = opd_arg_int(call, at++);
        layer->binary = opdi_onednn_text(call, at++);
        layer->alpha = opd_arg_is_none(call, at) ? 1 : opdi_number_f64(opd_call_args(call)[at]);
        at++;
    }
    layer->unary = opdi_onednn_text(call, at++);
    layer->numbers = opd_call_args(call)[at++];
    layer->way = opdi_onednn_text(call, at);
}
/* Checks the parameters of what follows a layer.  Returns 0, or -1 and sets an error. */
static int opdi_onednn_check_numbers(const opdi_onednn_layer *layer) {
    const bool limits = opdi_onednn_is(layer->unary, "hardtanh");
    const int count = limits ? 2 : opdi_onednn_is(layer->unary, "leaky_relu"), given = (int)layer->numbers.n;
    const char *const needs = limits ? "two numbers, min_val and max_val" : given > 1 ? "one number"
        : "its negative slope";
    bool numbers = given == count;
    if (!count) { return 0; }
    for (int i = 0; i < count && numbers; i++) {
        const int tag = (int)layer->numbers.u.list[i].tag;
        numbers = tag == OPD_TAG_FLOAT || tag == OPD_TAG_INT || tag == OPD_TAG_BOOL;
    }
    if (!numbers && given > count) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s needs %s, but got %d", layer->name, layer->unary, needs, given);
    }
    if (!numbers) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s needs %s", layer->name, layer->unary, needs); }
    if (limits && !(opdi_number_f64(layer->numbers.u.list[0]) <= opdi_number_f64(layer->numbers.u.list[1]))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: hardtanh needs min_val of at most max_val, but got %g and %g",
                        layer->name, opdi_number_f64(layer->numbers.u.list[0]),
                        opdi_number_f64(layer->numbers.u.list[1]));
    }
    return 0;
}
/* Checks what follows a layer.  Returns 0, or -1 and sets an error. */
static int opdi_onednn_check_ending(const opdi_onednn_layer *layer) {
    const char *const name = layer->name, *const unary = layer->unary;
    const bool conv = layer->settings > 0, add = opdi_onednn_is(layer->binary, "add") && !conv;
    const bool sum = opdi_onednn_is(layer->binary, "sum"), none = opdi_onednn_is(layer->binary, "none");
    static const char *const unaries[] = {"none", "relu", "hardtanh", "hardswish", "swish", "leaky_relu", "tanh",
                                          "gelu"};
    const int count = none ? conv ? 5 : 8 : 2;
    bool known = false;
    if (!add && !sum && !(none && !layer->other) && !(none && !conv)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the binary operation must be %ssum, but is %.40s", name,
                        conv ? "" : "none, add or ", layer->binary);
    }
    for (int i = 0; i < count && !known; i++) { known = opdi_onednn_is(unary, unaries[i]); }
    if (!known) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the operation %.40s cannot follow this layer%s", name, unary,
                        none ? "" : " and a binary operation, only relu");
    }
    if (opdi_onednn_check_numbers(layer)) { return -1; }
    if (opdi_onednn_is(unary, "gelu") && !opdi_onednn_is(layer->way, "none") && !opdi_onednn_is(layer->way, "tanh")) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the algorithm of gelu must be none or tanh, but is %.40s", name,
                        layer->way);
    }
    if (none) { return 0; }
    if (!layer->other) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the tensor for the operation %s is missing", name, layer->binary);
    }
    if (layer->alpha < 1 || layer->alpha > 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: alpha must be 1, but is %g", name, layer->alpha);
    }
    if (sum && layer->other->dtype != (int)layer->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: the tensor that is added must have the dtype of the result, %s, but has "
                        "%s", name, opd_dtype_name(layer->dtype), opd_dtype_name(OPDI_DTYPE(layer->other)));
    }
    return 0;
}
/* Checks the dtypes, and that a result of floats has no scale.  Returns 0, or -1 and sets an error. */
static int opdi_onednn_check(const opd_call *call, const opdi_onednn_layer *layer) {
    const opd_tensor *const x = layer->x, *const w = layer->w, *const scales = opd_arg_tensor(call, 4);
    const bool float8 = w->dtype == OPD_FLOAT8_E4M3FN, conv = layer->settings > 0;
    if (float8 ? x->dtype != OPD_FLOAT8_E4M3FN : x->dtype != OPD_UINT8 && x->dtype != OPD_INT8) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: qx must be uint8 or int8, or float8_e4m3fn like qw, but is %s",
                        layer->name, opd_dtype_name(OPDI_DTYPE(x)));
    }
    if (!float8 && w->dtype != OPD_INT8) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: qw must be a packed weight of dtype int8 or float8_e4m3fn, but is %s",
                        layer->name, opd_dtype_name(OPDI_DTYPE(w)));
    }
    const int64_t rows = w->ndim > 1 ? opdi_sizes(w)[conv ? 0 : 1] : 0;
    if (scales->dtype != OPD_FLOAT32 || (scales->numel != 1 && scales->numel != rows)) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: w_scale must have dtype float32 and 1 or %lld elements", layer->name,
                        (long long)rows);
    }
    if (layer->bias && (layer->bias->ndim != 1 || layer->bias->numel != rows)) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: bias must be a vector of %lld elements", layer->name, (long long)rows);
    }
    const bool floats = opdi_onednn_is_float((int)layer->dtype);
    if (!floats && layer->dtype != OPD_UINT8 && layer->dtype != OPD_INT8 && layer->dtype != OPD_FLOAT8_E4M3FN) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: output_dtype must be float32, bfloat16, float16, uint8, int8 or "
                        "float8_e4m3fn, but is %s", layer->name, opd_dtype_name(layer->dtype));
    }
    if (floats && (layer->scale < 1 || layer->scale > 1 || layer->zero || layer->other_scale < 1 ||
                   layer->other_scale > 1 || layer->other_zero)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: for a result of dtype %s, scales must be 1 and zero points 0",
                        layer->name, opd_dtype_name(layer->dtype));
    }
    return opdi_onednn_check_ending(layer);
}
/* Returns argument `at`, a number or a tensor of one element, as a tensor of this dtype without dims.  Returns NULL and
   sets an error if it has another number of elements.  No element means 0. */
static opd_tensor *opdi_onednn_number(const opd_call *call, int at, opd_scalar_type dtype) {
    const opd_value given = opd_call_args(call)[at];
    if (given.tag != OPD_TAG_TENSOR) { return opd_full(opd_ints_of(NULL, 0), given, dtype); }
    if (given.u.t->numel == 1) { return opd_to_dtype(opdi_reshape_to(given.u.t, NULL, 0), dtype); }
    if (!given.u.t->numel && at == 2) { return opd_zeros(opd_ints_of(NULL, 0), dtype); }
    (void)opd_fail(OPD_ERROR_SHAPE, "%s: %s must have one element, but has %lld", opd_op_name(opd_call_operator(call)),
                   at == 1 ? "x_scale" : "x_zero_point", (long long)given.u.t->numel);
    return NULL;
}
/* Returns the result of the operation that follows a layer. */
static opd_tensor *opdi_onednn_unary(const opdi_onednn_layer *layer, opd_tensor *y) {
    const char *const unary = layer->unary;
    const opd_value *const numbers = layer->numbers.u.list;
    if (!y) { return NULL; }
    if (opdi_onednn_is(unary, "relu")) { return opd_relu(y); }
    if (opdi_onednn_is(unary, "hardtanh")) { return opd_hardtanh_full(y, numbers[0], numbers[1]); }
    if (opdi_onednn_is(unary, "hardswish")) { return opd_hardswish(y); }
    if (opdi_onednn_is(unary, "swish")) { return opd_silu(y); }
    if (opdi_onednn_is(unary, "leaky_relu")) { return opd_leaky_relu(y, numbers[0]); }
    if (opdi_onednn_is(unary, "tanh")) { return opd_tanh(y); }
    return opdi_onednn_is(unary, "gelu") ? opd_gelu_full(y, layer->way) : y;
}
/* Returns floats in dtype: as they are, or divided by scale, rounded, plus zero. */
static opd_tensor *opdi_onednn_codes(opd_tensor *y, double scale, int64_t zero, opd_scalar_type dtype) {
    const bool minus = dtype == OPD_INT8;
    if (!y || opdi_onednn_is_float((int)dtype)) { return y ? opd_to_dtype(y, dtype) : NULL; }
    opd_tensor *const inverse = opd_tensor_wrapped_number(opd_value_double(1 / scale));
    if (dtype == OPD_FLOAT8_E4M3FN) {
        y = inverse ? opd_clamp(opd_mul(y, inverse), opd_value_int(-448), opd_value_int(448)) : NULL;
        return y ? opd_to_dtype(y, dtype) : NULL;
    }
    opd_tensor *const added = inverse ? opd_tensor_wrapped_number(opd_value_int(zero)) : NULL;
    return added ? opdi_affine_quantise(y, inverse, added, false, opd_value_int(minus ? -128 : 0),
                                        opd_value_int(minus ? 127 : 255), dtype) : NULL;
}
/* Writes to ending[9] what the layer's own operator does: limits, gelu or silu, and codes.  Returns how many numbers
   that are, or -1 if other operators have to follow.  Sets args[3] to the codes that are added, with their scale and
   zero point.  last: the result is channels-last. */
static int opdi_onednn_ending(const opdi_onednn_layer *layer, bool last, double *ending, opd_value *args) {
    const bool limited = opdi_onednn_is(layer->unary, "hardtanh"), relu = opdi_onednn_is(layer->unary, "relu");
    const bool bytes = layer->dtype == OPD_UINT8 || layer->dtype == OPD_INT8;
    const bool sum = opdi_onednn_is(layer->binary, "sum"), gelu = opdi_onednn_is(layer->unary, "gelu");
    const bool silu = opdi_onednn_is(layer->unary, "swish"), other = !limited && !relu && !gelu && !silu;
    if ((!bytes && layer->dtype != OPD_FLOAT32) || (other && !opdi_onednn_is(layer->unary, "none")) ||
        (!opdi_onednn_is(layer->binary, "none") && !(sum && bytes))) { return -1; }
    if (sum) {
        opd_tensor *const scale = opd_full(opd_ints_of(NULL, 0), opd_value_double(layer->other_scale), OPD_FLOAT32);
        args[0] = opd_value_tensor(layer->other);
        args[1] = opd_value_tensor(scale);
        args[2] = opd_value_tensor(opd_full(opd_ints_of(NULL, 0), opd_value_int(layer->other_zero), OPD_INT64));
    }
    ending[0] = limited ? opdi_number_f64(layer->numbers.u.list[0]) : relu ? 0 : -(double)INFINITY;
    ending[1] = limited ? opdi_number_f64(layer->numbers.u.list[1]) : (double)INFINITY;
    ending[2] = layer->scale;
    ending[3] = (double)layer->zero;
    ending[4] = layer->dtype == OPD_INT8 ? -128 : 0;
    ending[5] = ending[4] + 255;
    ending[6] = (double)layer->dtype;
    ending[7] = last;
    ending[8] = silu ? 3 : !gelu ? 0 : opdi_onednn_is(layer->way, "tanh") ? 2 : 1;      /* OPDI_CODED_GELU, ... */
    return gelu || silu ? 9 : bytes || last ? 8 : limited || relu ? 2 : 0;
}
/* Returns what a binary operation adds.  The tensor for a sum has a scale and a zero point if it is of codes. */
static opd_tensor *opdi_onednn_added(const opdi_onednn_layer *layer) {
    opd_tensor *const other = opd_to_dtype(layer->other, OPD_FLOAT32);
    if (!other || !opdi_onednn_is(layer->binary, "sum") || opdi_onednn_is_float((int)layer->dtype)) { return other; }
    return opd_mul_Scalar(opd_sub_Scalar(other, opd_value_int(layer->other_zero)),
                          opd_value_double(layer->other_scale));
}
/* Calls a layer's own operator, `op`, and what follows it.  args: its arguments, of which number `at` and the three
   after it describe what follows. */
static opd_tensor *opdi_onednn_make(opd_call *call, const opdi_onednn_layer *layer, opd_op *op, opd_value *args,
                                    int at) {
    double ending[9];
    const bool last = layer->settings && layer->w->ndim == 4;
    opd_tensor *const scale = opdi_onednn_number(call, 1, OPD_FLOAT32);
    opd_tensor *const zero = scale ? opdi_onednn_number(call, 2, OPD_INT64) : NULL;
    opd_tensor *const bias = zero && layer->bias ? opd_to_dtype(layer->bias, OPD_FLOAT32) : NULL;
    for (int i = 0; i < 3; i++) { args[at + i] = opd_value_none(); }
    const int count = opdi_onednn_ending(layer, last, ending, args + at);
    if (!zero || !opd_ok()) { return NULL; }
    args[1] = opd_value_tensor(scale);
    args[2] = opd_value_tensor(zero);
    args[4] = opd_value_tensor(opd_arg_tensor(call, 4));
    args[5] = opd_value_none();
    args[6] = opd_value_tensor(bias);
    args[at + 3] = opd_value_doubles(ending, count > 0 ? count : 0);
    opd_tensor *y = opd_call_op(op, args, at + 4);
    if (count >= 0) { return y; }
    if (y && !opdi_onednn_is(layer->binary, "none")) { y = opd_add(y, opdi_onednn_added(layer)); }
    return opdi_onednn_codes(opdi_onednn_unary(layer, y), layer->scale, layer->zero, layer->dtype);
}

/* The same, and autocast does not lower the layer, because PyTorch's kernels of these operators do not call linear. */
static opd_tensor *opdi_onednn_run(opd_call *call, const opdi_onednn_layer *layer, opd_op *op, opd_value *args,
                                   int at) {
    const opd_key_guard guard = opdi_autocast_off();
    opd_tensor *const y = opdi_onednn_make(call, layer, op, args, at);
    opd_keys_restore(guard);
    return y;
}

//== linear layers =====================================================================================================

static int opdi_onednn_linear(opd_call *call, bool binary) {
    opdi_onednn_layer layer;
    opd_value args[11];
    opdi_onednn_arguments(call, false, binary, &layer);
    const int ndim = layer.x->ndim;
    if (layer.w->ndim != 2 || ndim < 1 || opdi_sizes(layer.x)[ndim - 1] != opdi_sizes(layer.w)[0]) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: qw must be a packed weight, a matrix with as many rows as qx has columns "
                        "(see qlinear_prepack)", layer.name);
    }
    if (opdi_onednn_check(call, &layer)) { return -1; }
    if (opdi_onednn_is(layer.binary, "sum")) {
        bool same = layer.other->ndim == ndim && opdi_sizes(layer.other)[ndim - 1] == opdi_sizes(layer.w)[1];
        for (int i = 0; same && i < ndim - 1; i++) { same = opdi_sizes(layer.other)[i] == opdi_sizes(layer.x)[i]; }
        if (!same) {
            return opd_fail(OPD_ERROR_SHAPE, "%s: other must have the sizes of the result", layer.name);
        }
    }
    args[0] = opd_value_tensor(layer.x);
    args[3] = opd_value_tensor(opd_t(layer.w));
    opd_op *const op = opd_ok() ? opd_find("opdispatch::quantized_linear") : NULL;
    return op ? opd_return_tensor(call, opdi_onednn_run(call, &layer, op, args, 7)) : -1;
}
static int opdi_onednn_linear_kernel(opd_call *call) { return opdi_onednn_linear(call, false); }
static int opdi_onednn_linear_binary_kernel(opd_call *call) { return opdi_onednn_linear(call, true); }
OPDI_INTERNAL void opdi_onednn_linear_numbers(opd_op_desc *op) {
    op->schema = "qlinear_pointwise(Tensor qx, float x_scale, int x_zero_point, Tensor qw, Tensor w_scale, Tensor "
        "w_zero_point, Tensor? bias, float output_scale, int output_zero_point, ScalarType? output_dtype, str "
        "post_op_name, Scalar?[] post_op_args, str post_op_algorithm) -> Tensor";
    op->composite = opdi_onednn_linear_kernel;
}
OPDI_INTERNAL void opdi_onednn_linear_tensors(opd_op_desc *op) {
    op->schema = "qlinear_pointwise.tensor(Tensor qx, Tensor x_scale, Tensor x_zero_point, Tensor qw, Tensor w_scale, "
        "Tensor w_zero_point, Tensor? bias, float output_scale, int output_zero_point, ScalarType? output_dtype, str "
        "post_op_name, Scalar?[] post_op_args, str post_op_algorithm) -> Tensor";
    op->composite = opdi_onednn_linear_kernel;
}
OPDI_INTERNAL void opdi_onednn_linear_binary_numbers(opd_op_desc *op) {
    op->schema = "qlinear_pointwise.binary(Tensor qx, float x_scale, int x_zero_point, Tensor qw, Tensor w_scale, "
        "Tensor w_zero_point, Tensor? other, Tensor? bias, float output_scale, int output_zero_point, ScalarType? "
        "output_dtype, float other_scale, int other_zp, str binary_post_op, float binary_alpha, str unary_post_op, "
        "Scalar?[] unary_post_op_args, str unary_post_op_algorithm) -> Tensor";
    op->composite = opdi_onednn_linear_binary_kernel;
}
OPDI_INTERNAL void opdi_onednn_linear_binary_tensors(opd_op_desc *op) {
    op->schema = "qlinear_pointwise.binary_tensor(Tensor qx, Tensor x_scale, Tensor x_zero_point, Tensor qw, Tensor "
        "w_scale, Tensor w_zero_point, Tensor? other, Tensor? bias, float output_scale, int output_zero_point, "
        "ScalarType? output_dtype, float other_scale, int other_zp, str binary_post_op, float binary_alpha, str "
        "unary_post_op, Scalar?[] unary_post_op_args, str unary_post_op_algorithm) -> Tensor";
    op->composite = opdi_onednn_linear_binary_kernel;
}
/* Returns argument 0, a weight to be packed.  Returns NULL and sets an error if it is no weight. */
static opd_tensor *opdi_onednn_weight(const opd_call *call, bool half) {
    opd_tensor *const weight = opd_arg_tensor(call, 0);
    const char *const name = opd_op_name(opd_call_operator(call));
    const bool right = half ? weight->dtype == OPD_FLOAT32 || weight->dtype == OPD_FLOAT16
        : weight->dtype == OPD_INT8 || weight->dtype == OPD_FLOAT8_E4M3FN;
    if (right) { return weight; }
    (void)opd_fail(OPD_ERROR_DTYPE, "%s: weight must be %s, but is %s", name,
                   half ? "float32 or float16" : "int8 or float8_e4m3fn", opd_dtype_name(OPDI_DTYPE(weight)));
    return NULL;
}
/* Packs the weight of a linear layer: the transposed weight, in memory of its own. */
static int opdi_onednn_pack(opd_call *call, bool half) {
    opd_tensor *const weight = opdi_onednn_weight(call, half);
    const opd_ints sizes = opd_arg_ints(call, 1);
    if (!weight) { return -1; }
    if (weight->ndim != 2 || (sizes.n && sizes.data[sizes.n - 1] != opdi_sizes(weight)[1])) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: weight must be a matrix, with as many columns as the last size of "
                        "x_shape", opd_op_name(opd_call_operator(call)));
    }
    opd_tensor *const whole = opd_clone_full(weight, opd_value_int(OPDI_FORMAT_CONTIGUOUS));
    return opd_return_tensor(call, opd_t(half ? opd_to_dtype(whole, OPD_FLOAT16) : whole));
}
static int opdi_onednn_linear_pack_kernel(opd_call *call) { return opdi_onednn_pack(call, false); }
static int opdi_onednn_half_pack_kernel(opd_call *call) { return opdi_onednn_pack(call, true); }
OPDI_INTERNAL void opdi_onednn_linear_pack(opd_op_desc *op) {
    op->schema = "qlinear_prepack(Tensor weight, int[]? x_shape) -> Tensor";
    op->composite = opdi_onednn_linear_pack_kernel;
}
OPDI_INTERNAL void opdi_onednn_half_pack(opd_op_desc *op) {
    op->schema = "linear_prepack_fp16(Tensor weight, int[]? x_shape=None) -> Tensor";
    op->composite = opdi_onednn_half_pack_kernel;
}
/* A layer whose weight is rounded to float16; it computes in float32. */
static int opdi_onednn_half(opd_call *call, bool relu) {
    opd_tensor *const x = opd_arg_tensor(call, 0), *const w = opd_arg_tensor(call, 1), *bias = opd_arg_tensor(call, 2);
    const char *const name = opd_op_name(opd_call_operator(call));
    if (x->dtype != OPD_FLOAT32 || w->dtype != OPD_FLOAT16 || w->ndim != 2) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: x must be float32, and w a matrix of float16 (see linear_prepack_fp16)",
                        name);
    }
    if (bias) { bias = opd_to_dtype(bias, OPD_FLOAT32); }
    opd_tensor *const weight = opd_ok() ? opd_to_dtype(opd_t(w), OPD_FLOAT32) : NULL;
    const opd_key_guard guard = opdi_autocast_off();
    opd_tensor *const y = weight ? opd_linear(x, weight, bias) : NULL;
    opd_keys_restore(guard);
    return y ? opd_return_tensor(call, relu ? opd_relu(y) : y) : -1;
}
static int opdi_onednn_half_kernel(opd_call *call) { return opdi_onednn_half(call, false); }
static int opdi_onednn_half_relu_kernel(opd_call *call) { return opdi_onednn_half(call, true); }
OPDI_INTERNAL void opdi_onednn_half_linear(opd_op_desc *op) {
    op->schema = "linear_dynamic_fp16(Tensor x, Tensor w, Tensor? bias) -> Tensor";
    op->composite = opdi_onednn_half_kernel;
}
OPDI_INTERNAL void opdi_onednn_half_linear_relu(opd_op_desc *op) {
    op->schema = "linear_relu_dynamic_fp16(Tensor x, Tensor w, Tensor? bias) -> Tensor";
    op->composite = opdi_onednn_half_relu_kernel;
}

//== convolutions ======================================================================================================

/* The packed weight of a convolution of one dim has a dim of size 1 before it, as in PyTorch. */
static int opdi_onednn_conv_pack_kernel(opd_call *call) {
    opd_tensor *const weight = opdi_onednn_weight(call, false);
    const opd_tensor *const scales = opd_arg_tensor(call, 1);
    const int64_t groups = opd_arg_int(call, 7);
    if (!weight) { return -1; }
    if (weight->ndim < 3 || weight->ndim > 5 || groups < 1 || opdi_sizes(weight)[0] % groups) {
        return opd_fail(OPD_ERROR_SHAPE, "onednn::qconv_prepack: weight must have 3, 4 or 5 dims, and the number of "
                        "groups must divide its first size");
    }
    if (scales->numel != 1 && scales->numel != opdi_sizes(weight)[0]) {
        return opd_fail(OPD_ERROR_SHAPE, "onednn::qconv_prepack: w_scales must have 1 or %lld elements",
                        (long long)opdi_sizes(weight)[0]);
    }
    opd_tensor *const whole = opd_clone_full(weight, opd_value_int(OPDI_FORMAT_CONTIGUOUS));
    return opd_return_tensor(call, whole && weight->ndim == 3 ? opd_unsqueeze(whole, 2) : whole);
}
OPDI_INTERNAL void opdi_onednn_conv_pack(opd_op_desc *op) {
    op->schema = "qconv_prepack(Tensor weight, Tensor w_scales, float x_scale, int x_zp, int[] stride, int[] padding, "
        "int[] dilation, int groups, int[]? x_shape=None) -> Tensor";
    op->composite = opdi_onednn_conv_pack_kernel;
}
/* Sets args[7] to args[10] to stride, padding, dilation and groups; numbers[3][3] has the lists.  A convolution of one
   dim gets another dim.  Returns 0, or -1 and sets an error. */
static int opdi_onednn_settings(const opd_call *call, const opdi_onednn_layer *layer, int dims, int64_t numbers[3][3],
                                opd_value *args) {
    static const char *const names[3] = {"stride", "padding", "dilation"};
    const bool flat = dims == 1;
    for (int i = 0; i < 3; i++) {
        const opd_ints list = opd_arg_ints(call, layer->settings + i);
        if (list.n != dims) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s must have %d numbers, but has %lld", layer->name, names[i],
                            dims, (long long)list.n);
        }
        numbers[i][0] = i != 1;
        for (int k = 0; k < dims; k++) { numbers[i][k + flat] = list.data[k]; }
        args[7 + i] = opd_value_ints(numbers[i], dims + flat);
    }
    args[10] = opd_call_args(call)[layer->settings + 3];
    args[11] = opd_value_bool(false);
    return 0;
}
/* Returns a result with its channels last, as in PyTorch; inside of vmap, as it is. */
static opd_tensor *opdi_onednn_last(opd_tensor *y) {
    return !y || y->flags & OPDI_BATCHED ? y
        : opd_contiguous_full(y, y->ndim == 5 ? OPDI_FORMAT_LAST_3D : OPDI_FORMAT_LAST);
}
/* Returns whether `other` has other sizes than the result.  numbers: stride, padding and dilation. */
static bool opdi_onednn_sum_fails(const opdi_onednn_layer *layer, int64_t numbers[3][3]) {
    const int64_t *const x = opdi_sizes(layer->x), *const w = opdi_sizes(layer->w), *const y = opdi_sizes(layer->other);
    const int dims = layer->w->ndim - 2;
    bool fails = y[0] != x[0] || y[1] != w[0];
    for (int i = 0; i < dims && !fails && dims == layer->x->ndim - 2; i++) {
        const int64_t room = x[2 + i] + 2 * numbers[1][i] - numbers[2][i] * (w[2 + i] - 1) - 1;
        fails = numbers[0][i] > 0 && room >= 0 && y[2 + i] != room / numbers[0][i] + 1;
    }
    return fails;
}
static int opdi_onednn_conv(opd_call *call, bool binary) {
    opdi_onednn_layer layer;
    opd_value args[16];
    int64_t numbers[3][3];
    opdi_onednn_arguments(call, true, binary, &layer);
    const int ndim = layer.x->ndim;
    const bool flat = ndim == 3;
    if (ndim < 3 || ndim > 5 || layer.w->ndim != (flat ? 4 : ndim)) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: qx must have 3, 4 or 5 dims, and qw must be a packed weight for as many "
                        "(see qconv_prepack)", layer.name);
    }
    if (opdi_onednn_check(call, &layer) || opdi_onednn_settings(call, &layer, ndim - 2, numbers, args)) { return -1; }
    if (binary && (layer.other->ndim != ndim || opdi_onednn_sum_fails(&layer, numbers))) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: qaccum must have the sizes of the result", layer.name);
    }
    args[0] = opd_value_tensor(flat ? opd_unsqueeze(layer.x, 2) : layer.x);
    args[3] = opd_value_tensor(layer.w);
    opd_op *const op = opd_ok() ? opd_find("opdispatch::quantized_convolution") : NULL;
    opd_tensor *y = op ? opdi_onednn_run(call, &layer, op, args, 12) : NULL;
    y = opdi_onednn_last(y);
    y = y && flat ? opd_squeeze_dim(y, 2) : y;
    if (y && binary && !opd_copy_(layer.other, y)) { return -1; }
    return y ? opd_return_tensor(call, y) : -1;
}
static int opdi_onednn_conv_kernel(opd_call *call) { return opdi_onednn_conv(call, false); }
static int opdi_onednn_conv_binary_kernel(opd_call *call) { return opdi_onednn_conv(call, true); }
/* The arguments of a convolution behind the scale and the zero point of its input. */
#define OPDI_ONEDNN_CONV_TEXT "Tensor qw, Tensor w_scale, Tensor w_zero_point, Tensor? bias, int[] stride, int[] " \
    "padding, int[] dilation, int groups, float output_scale, int output_zero_point, ScalarType? output_dtype, str " \
    "attr, Scalar?[] scalars, str? algorithm) -> Tensor"
#define OPDI_ONEDNN_SUM_TEXT "Tensor qw, Tensor w_scale, Tensor w_zero_point, Tensor(a!) qaccum, Tensor? bias, int[] " \
    "stride, int[] padding, int[] dilation, int groups, float output_scale, int output_zero_point, ScalarType? " \
    "output_dtype, float accum_scale, int accum_zero_point, str binary_attr, Scalar? alpha, str? unary_attr, " \
    "Scalar?[] unary_scalars, str? unary_algorithm) -> Tensor"
OPDI_INTERNAL void opdi_onednn_conv_numbers(opd_op_desc *op) {
    op->schema = "qconv_pointwise(Tensor qx, float x_scale, int x_zero_point, " OPDI_ONEDNN_CONV_TEXT;
    op->composite = opdi_onednn_conv_kernel;
}
OPDI_INTERNAL void opdi_onednn_conv_tensors(opd_op_desc *op) {
    op->schema = "qconv_pointwise.tensor(Tensor qx, Tensor x_scale, Tensor x_zero_point, " OPDI_ONEDNN_CONV_TEXT;
    op->composite = opdi_onednn_conv_kernel;
}
OPDI_INTERNAL void opdi_onednn_flat_conv_numbers(opd_op_desc *op) {
    op->schema = "qconv1d_pointwise(Tensor qx, float x_scale, int x_zero_point, " OPDI_ONEDNN_CONV_TEXT;
    op->composite = opdi_onednn_conv_kernel;
}
OPDI_INTERNAL void opdi_onednn_plane_conv_numbers(opd_op_desc *op) {
    op->schema = "qconv2d_pointwise(Tensor qx, float x_scale, int x_zero_point, " OPDI_ONEDNN_CONV_TEXT;
    op->composite = opdi_onednn_conv_kernel;
}
OPDI_INTERNAL void opdi_onednn_plane_conv_tensors(opd_op_desc *op) {
    op->schema = "qconv2d_pointwise.tensor(Tensor qx, Tensor x_scale, Tensor x_zero_point, " OPDI_ONEDNN_CONV_TEXT;
    op->composite = opdi_onednn_conv_kernel;
}
OPDI_INTERNAL void opdi_onednn_deep_conv_numbers(opd_op_desc *op) {
    op->schema = "qconv3d_pointwise(Tensor qx, float x_scale, int x_zero_point, " OPDI_ONEDNN_CONV_TEXT;
    op->composite = opdi_onednn_conv_kernel;
}
OPDI_INTERNAL void opdi_onednn_plane_sum_numbers(opd_op_desc *op) {
    op->schema = "qconv2d_pointwise.binary(Tensor qx, float x_scale, int x_zero_point, " OPDI_ONEDNN_SUM_TEXT;
    op->composite = opdi_onednn_conv_binary_kernel;
}
OPDI_INTERNAL void opdi_onednn_plane_sum_tensors(opd_op_desc *op) {
    op->schema = "qconv2d_pointwise.binary_tensor(Tensor qx, Tensor x_scale, Tensor x_zero_point, "
        OPDI_ONEDNN_SUM_TEXT;
    op->composite = opdi_onednn_conv_binary_kernel;
}

//== operators of codes without weights ================================================================================

/* Returns argument `at`, codes of uint8, as floats: (codes - zero) * scale, whose scale and zero are the next
   arguments. */
static opd_tensor *opdi_onednn_wide(const opd_call *call, int at) {
    opd_tensor *const codes = opd_arg_tensor(call, at);
    if (codes->dtype != OPD_UINT8) {
        (void)opd_fail(OPD_ERROR_DTYPE, "%s: %s must be uint8, but is %s", opd_op_name(opd_call_operator(call)),
                       opd_schema_arg_name(opd_op_schema(opd_call_operator(call)), at),
                       opd_dtype_name(OPDI_DTYPE(codes)));
        return NULL;
    }
    opd_tensor *const numbers = opd_sub_Scalar(opd_to_dtype(codes, OPD_FLOAT32), opd_call_args(call)[at + 2]);
    return numbers ? opd_mul_Scalar(numbers, opd_call_args(call)[at + 1]) : NULL;
}
/* Returns floats as the result of a call, whose scale, zero point and dtype are the arguments from `at` on. */
static int opdi_onednn_return(opd_call *call, int at, opd_tensor *y) {
    const double scale = opd_arg_double(call, at);
    const int64_t zero = opd_arg_int(call, at + 1), dtype = opd_arg_int(call, at + 2);
    const char *const name = opd_op_name(opd_call_operator(call));
    if (dtype != OPD_UINT8 && !opdi_onednn_is_float((int)dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: output_dtype must be uint8, float32, bfloat16 or float16, but is %s",
                        name, opd_dtype_name((opd_scalar_type)dtype));
    }
    if (dtype != OPD_UINT8 && (scale < 1 || scale > 1 || zero)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: for a result of floats, output_scale must be 1 and output_zero_point "
                        "0", name);
    }
    return opd_return_tensor(call, opdi_onednn_codes(y, scale, zero, (opd_scalar_type)dtype));
}
/* Combines two tensors of codes. */
static int opdi_onednn_two(opd_call *call, bool product, bool relu) {
    const opd_tensor *const first = opd_arg_tensor(call, 0), *const second = opd_arg_tensor(call, 3);
    if (first->ndim != second->ndim || !opdi_has_sizes(first, opdi_sizes(second), second->ndim)) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: self and other must have the same sizes",
                        opd_op_name(opd_call_operator(call)));
    }
    opd_tensor *const a = opdi_onednn_wide(call, 0), *const b = a ? opdi_onednn_wide(call, 3) : NULL;
    opd_tensor *const y = !b ? NULL : product ? opd_mul(a, b) : opd_add(a, b);
    return y ? opdi_onednn_return(call, 6, relu ? opd_relu(y) : y) : -1;
}
static int opdi_onednn_add_kernel(opd_call *call) { return opdi_onednn_two(call, false, false); }
static int opdi_onednn_add_relu_kernel(opd_call *call) { return opdi_onednn_two(call, false, true); }
static int opdi_onednn_mul_kernel(opd_call *call) { return opdi_onednn_two(call, true, false); }
#define OPDI_ONEDNN_TWO_TEXT "(Tensor self, float self_scale, int self_zero_point, Tensor other, float other_scale, " \
    "int other_zero_point, float output_scale, int output_zero_point, ScalarType output_dtype) -> Tensor"
OPDI_INTERNAL void opdi_onednn_add(opd_op_desc *op) {
    op->schema = "qadd.tensor" OPDI_ONEDNN_TWO_TEXT;
    op->composite = opdi_onednn_add_kernel;
}
OPDI_INTERNAL void opdi_onednn_add_relu(opd_op_desc *op) {
    op->schema = "qadd_relu.tensor" OPDI_ONEDNN_TWO_TEXT;
    op->composite = opdi_onednn_add_relu_kernel;
}
OPDI_INTERNAL void opdi_onednn_mul(opd_op_desc *op) {
    op->schema = "qmul.tensor" OPDI_ONEDNN_TWO_TEXT;
    op->composite = opdi_onednn_mul_kernel;
}
static int opdi_onednn_norm_kernel(opd_call *call) {
    if (opd_arg_tensor(call, 0)->ndim != 4) {
        return opd_fail(OPD_ERROR_SHAPE, "onednn::qbatch_norm2d: qx must have 4 dims, but has %d",
                        opd_arg_tensor(call, 0)->ndim);
    }
    opd_tensor *const x = opdi_onednn_wide(call, 0);
    opd_tensor *const y = !x ? NULL : opd_batch_norm(x, opd_arg_tensor(call, 3), opd_arg_tensor(call, 4),
                                                     opd_arg_tensor(call, 5), opd_arg_tensor(call, 6), false, 0,
                                                     opd_arg_double(call, 7), false);
    return y ? opdi_onednn_return(call, 8, opdi_onednn_last(y)) : -1;
}
OPDI_INTERNAL void opdi_onednn_norm(opd_op_desc *op) {
    op->schema = "qbatch_norm2d(Tensor qx, float qx_scale, int qx_zero_point, Tensor weight, Tensor bias, Tensor mean, "
        "Tensor var, float eps, float output_scale, int output_zero_point, ScalarType output_dtype) -> Tensor";
    op->composite = opdi_onednn_norm_kernel;
}
