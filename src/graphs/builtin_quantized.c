#include "graphs.h"

//== quantized layers of archives ======================================================================================

enum { OPDI_PACKED_INPUT, OPDI_PACKED_HIDDEN, OPDI_PACKED_REDUCE };
OPDI_INTERNAL bool opdi_packed_class(const char *name) {
    return strcmp(name, OPDI_PACKED_LINEAR) == 0 || strcmp(name, OPDI_PACKED_EMBEDDING) == 0 ||
        strcmp(name, OPDI_PACKED_CLASSES "Conv2dPackedParamsBase") == 0 ||
        strcmp(name, OPDI_PACKED_CLASSES "Conv3dPackedParamsBase") == 0 || strcmp(name, OPDI_PACKED_CELL) == 0;
}
/* Adds the attributes of packed weights ("(weight)", "(bias)", ...) to the class `gclass`.  Returns 0, or -1 if memory
   runs out. */
OPDI_INTERNAL int opdi_packed_names(opdi_gclass *gclass) {
    static const char *const parts[] = {"(weight)", "(bias)", "(scale)", "(zero)"};
    while (gclass->nattributes < OPDI_PACKED_PARTS) {
        if (opdi_gclass_add(gclass, parts[gclass->nattributes], opdi_gtype_simple(OPDI_GTYPE_ANY), 0) < 0) {
            return -1;
        }
    }
    return 0;
}
/* Returns the attributes of argument i, which must be an object with packed weights whose class name ends with `end`.
   On failure, returns NULL and sets an error. */
static const opd_value *opdi_call_packed(const opdi_bcall *call, int i, const char *end) {
    const opdi_cell *const packed = opdi_call_cell(call, i, OPD_CELL_OBJECT);
    const char *const name = packed ? packed->klass->name : "";
    const size_t length = strlen(name), tail = strlen(end);
    if (!packed) { return NULL; }
    if (strncmp(name, OPDI_PACKED_CLASSES, sizeof OPDI_PACKED_CLASSES - 1) != 0 || length < tail ||
        strcmp(name + length - tail, end) != 0 || packed->count != OPDI_PACKED_PARTS) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: argument %d has the class %s, but must be packed weights for this "
                       "function", call->builtin->schema, i, name);
        return NULL;
    }
    return packed->u.values;
}
/* Quantizes `input` to steps of equal size, which cover 0, the minimum and the maximum of the input.  There are 256
   steps, or 128 (7 bits) if `reduce` is true; in PyTorch, 7 bits keep 16-bit sums from overflowing.  Sets *step to the
   size of a step.  Returns the elements as multiples of *step, in float64, or NULL and sets an error. */
static opd_tensor *opdi_quantized_input(opd_tensor *input, bool reduce, double *step) {
    double low = 0, high = 0;
    if (opd_numel(input)) {
        low = OPDI_MIN(0.0, opd_item_f64(opd_min(input)));
        high = OPDI_MAX(0.0, opd_item_f64(opd_max(input)));
    }
    if (!opd_ok()) { return NULL; }
    if (!isfinite(high - low)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "quantized::linear_dynamic: X has elements that are not finite");
        return NULL;
    }
    const double zero = opdi_quantized_steps(low, high, reduce ? 127 : 255, step);
    opd_tensor *steps = opd_round(opd_mul_Scalar(input, opd_value_double((double)(1 / (float)*step))));
    steps = steps ? opd_clamp(steps, opd_value_double(-zero), opd_value_double(255 - zero)) : NULL;
    *step = (double)(float)*step;
    return steps ? opd_to_dtype(steps, OPD_FLOAT64) : NULL;
}
/* Returns scales or zero points as a float64 tensor.  If `part` is a number, the result has one element.  If `part` is
   a tensor, the result has its `rows` elements, as a column [rows, 1] if `column` is true.  On failure, returns NULL
   and sets an error. */
static opd_tensor *opdi_packed_part(const opd_value *part, int64_t rows, bool column) {
    opd_tensor *tensor = part->tag == OPD_TAG_TENSOR ? part->u.t : NULL;
    const double number = part->tag == OPD_TAG_FLOAT ? part->u.d : part->tag == OPD_TAG_INT ? (double)part->u.i : 0;
    if (!tensor && (part->tag == OPD_TAG_FLOAT || part->tag == OPD_TAG_INT)) {
        return opd_full(OPD_INTS(1), opd_value_double(number), OPD_FLOAT64);
    }
    if (!tensor || opd_ndim(tensor) != 1 || opd_size(tensor, 0) != rows || opd_dtype_is_complex(opd_dtype(tensor))) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "W_prepack of a quantized linear layer has scales or zero points that do "
                       "not match its sizes");
        return NULL;
    }
    tensor = opd_to_dtype(tensor, OPD_FLOAT64);
    return tensor && column ? opd_unsqueeze(tensor, 1) : tensor;
}
static opd_tensor *opdi_quantized_linear(opd_tensor *input, const opd_value *parts, bool reduce) {
    opd_tensor *const weight = opdi_tensor_in(&parts[OPDI_PACKED_WEIGHT]);
    opd_tensor *const bias = opdi_tensor_in(&parts[OPDI_PACKED_BIAS]);
    double step;
    if (opd_dtype(input) != OPD_FLOAT32 || !weight || opd_dtype(weight) != OPD_INT8 || opd_ndim(weight) != 2) {
        (void)opd_fail(OPD_ERROR_DTYPE, "quantized::linear_dynamic: X must be float32 and W_prepack a matrix of qint8");
        return NULL;
    }
    if (opd_ndim(input) < 2 || opd_size(input, -1) != opd_size(weight, 1)) {
        (void)opd_fail(OPD_ERROR_SHAPE, "quantized::linear_dynamic: X must have 2 dimensions or more, and %lld "
                       "elements in the last", (long long)opd_size(weight, 1));
        return NULL;
    }
    opd_tensor *const scale = opdi_packed_part(&parts[OPDI_PACKED_SCALE], opd_size(weight, 0), false);
    opd_tensor *const zero = opdi_packed_part(&parts[OPDI_PACKED_ZERO], opd_size(weight, 0), true);
    opd_tensor *const steps = scale && zero ? opdi_quantized_input(input, reduce, &step) : NULL;
    opd_tensor *sums = steps ? opd_sub(opd_to_dtype(weight, OPD_FLOAT64), zero) : NULL;
    sums = sums ? opd_linear(steps, sums, NULL) : NULL;
    sums = sums ? opd_mul(sums, opd_mul_Scalar(scale, opd_value_double(step))) : NULL;
    sums = sums ? opd_to_dtype(sums, OPD_FLOAT32) : NULL;
    return sums && bias ? opd_add(sums, bias) : sums;
}
/* Runs quantized::linear_dynamic.  If the builtin's `what` is 1, applies relu to the result.  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_fn_quantized_linear(opdi_bcall *call) {
    opd_tensor *const input = opdi_call_tensor(call, 0);
    const opd_value *const parts = input ? opdi_call_packed(call, 1, "LinearPackedParamsBase") : NULL;
    if (!parts) { return -1; }
    opd_scope scope = opd_scope_open();
    const bool grad = opd_grad_mode_set(false);
    opd_tensor *result = opdi_quantized_linear(input, parts, call->nargs > 2 && opdi_call_int(call, 2));
    if (result && call->builtin->what) { result = opd_relu(result); }
    const int rc = opdi_return_tensor(call, result);
    (void)opd_grad_mode_set(grad);
    opd_scope_close(&scope);
    return rc;
}

/* This library has no quantized dtypes.  A quantized tensor that one layer passes to the next is a float32 tensor with
   the numbers that the quantized tensor would represent.  Operators that are not quantized take it like any other
   tensor and do not round their results. */

/* Returns `numbers`, rounded to the numbers that a quint8 tensor with this scale and zero point can represent.  Returns
   NULL if `numbers` is NULL. */
static opd_tensor *opdi_quantized_round(opd_tensor *numbers, double scale, int64_t zero) {
    return numbers ? opd_fake_quantize_per_tensor_affine(numbers, scale, zero, 0, 255) : NULL;
}
/* Checks the arguments of quantize_per_tensor and similar functions: `input` must be float32, and argument i must be
   the number of a dtype that is at least `least` (12: qint8, 13: quint8).  Returns 0, or -1 and sets an error. */
static int opdi_quantize_takes(const opdi_bcall *call, opd_tensor *input, int i, int64_t least) {
    const int64_t dtype = opdi_call_int(call, i), quint8 = 13;
    if (opd_dtype(input) != OPD_FLOAT32) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: Quantize only works on float32 Tensor, got %s", call->builtin->schema,
                        opd_dtype_name(opd_dtype(input)));
    }
    return dtype >= least && dtype <= quint8 ? 0
        : opd_fail(OPD_ERROR_DTYPE, "%s: dtype %lld is not a supported quantized dtype, which are quint8%s",
                   call->builtin->schema, (long long)dtype, least < quint8 ? ", qint8" : "");
}
/* Quantizes a tensor.  If the builtin's `what` is 1, the arguments scale and zero_point are tensors, else numbers.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_quantize(opdi_bcall *call) {
    opd_tensor *const input = opdi_call_tensor(call, 0);
    double scale = call->args[1].u.d;
    int64_t zero = call->args[2].u.i;
    if (!input || opdi_quantize_takes(call, input, 3, 13)) { return -1; }
    if (call->builtin->what) {
        scale = opd_item_f64(opdi_call_tensor(call, 1));
        zero = (int64_t)opd_item_f64(opdi_call_tensor(call, 2));
    }
    opd_scope scope = opd_scope_open();
    const bool grad = opd_grad_mode_set(false);
    const int rc = opd_ok() ? opdi_return_tensor(call, opdi_quantized_round(input, scale, zero)) : -1;
    (void)opd_grad_mode_set(grad);
    opd_scope_close(&scope);
    return rc;
}
OPDI_INTERNAL int opdi_fn_quantize_channels(opdi_bcall *call) {
    opd_tensor *const input = opdi_call_tensor(call, 0);
    const bool chars = opdi_call_int(call, 4) == 12;
    if (!input || opdi_quantize_takes(call, input, 4, 12)) { return -1; }
    opd_scope scope = opd_scope_open();
    const bool grad = opd_grad_mode_set(false);
    opd_tensor *const scale = opd_to_dtype(opdi_call_tensor(call, 1), OPD_FLOAT32);
    opd_tensor *const zero = opd_to_dtype(opdi_call_tensor(call, 2), OPD_INT32);
    opd_tensor *const result = opd_ok()
        ? opd_fake_quantize_per_channel_affine(input, scale, zero, opdi_call_int(call, 3), chars ? -128 : 0,
                                               chars ? 127 : 255) : NULL;
    const int rc = opdi_return_tensor(call, result);
    (void)opd_grad_mode_set(grad);
    opd_scope_close(&scope);
    return rc;
}
OPDI_INTERNAL int opdi_fn_dequantize(opdi_bcall *call) {
    opd_scope scope = opd_scope_open();
    const int rc = opdi_return_tensor(call, opd_dequantize(opdi_call_tensor(call, 0)));
    opd_scope_close(&scope);
    return rc;
}

OPDI_INTERNAL int opdi_fn_dequantize_all(opdi_bcall *call) {
    const opdi_cell *const given = opdi_call_list(call, 0);
    opd_tensor **tensors = given ? (opd_tensor **)opdi_alloc((size_t)(given->count + 1) * sizeof *tensors) : NULL;
    opd_scope scope = opd_scope_open();
    for (int64_t i = 0; tensors && i < given->count; i++) { tensors[i] = opd_dequantize(opdi_cell_at(given, i).u.t); }
    const int rc = tensors && opd_ok() ? opdi_return_borrowed(call, opd_value_tensors(tensors, (int)given->count)) : -1;
    opd_scope_close(&scope);
    if (tensors) { opdi_free(tensors, (size_t)(given->count + 1) * sizeof *tensors); }
    return rc;
}

/* Returns the weight of a linear layer as a float32 tensor; dequantizes an int8 weight.  On failure, returns NULL and
   sets an error. */
static opd_tensor *opdi_quantized_weight(const opd_value *parts) {
    opd_tensor *const weight = opdi_tensor_in(&parts[OPDI_PACKED_WEIGHT]);
    if (!weight || opd_ndim(weight) != 2) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "W_prepack of a quantized linear layer has no matrix");
        return NULL;
    }
    if (opd_dtype(weight) != OPD_INT8) { return opd_to_dtype(weight, OPD_FLOAT32); }
    opd_tensor *const scale = opdi_packed_part(&parts[OPDI_PACKED_SCALE], opd_size(weight, 0), true);
    opd_tensor *const zero = scale ? opdi_packed_part(&parts[OPDI_PACKED_ZERO], opd_size(weight, 0), true) : NULL;
    if (!zero) { return NULL; }
    opd_tensor *const numbers = opd_to_dtype(weight, OPD_FLOAT32),
        *const from = opd_sub(numbers, opd_to_dtype(zero, OPD_FLOAT32));
    return opd_mul(from, opd_to_dtype(scale, OPD_FLOAT32));
}
/* Runs a convolution of `input` with the packed weights `parts`.  If `line` is true, the convolution has one dimension.
   Returns the result, or NULL and sets an error.

   parts[OPDI_PACKED_SETTINGS] is a list of the settings of aten::convolution: stride, padding, dilation and output
   padding, each for all dimensions; then the number of groups; then 1 if the convolution is transposed, else 0. */
static opd_tensor *opdi_quantized_conv(const opdi_bcall *call, opd_tensor *input, const opd_value *parts, bool line) {
    enum { DIMS = 3 };
    opd_tensor *const weight = opdi_tensor_in(&parts[OPDI_PACKED_WEIGHT]);
    const opd_value *const list = &parts[OPDI_PACKED_SETTINGS];
    const int64_t dims = weight ? opd_ndim(weight) - 2 : 0;
    int64_t settings[4 * DIMS + 2];
    if (dims < 1 || dims > DIMS || opd_value_cell(*list) != OPD_CELL_LIST || opd_list_count(*list) != 4 * dims + 2) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the packed weights are incomplete", call->builtin->schema);
        return NULL;
    }
    for (int64_t i = 0; i < 4 * dims + 2; i++) { settings[i] = opd_list_at(*list, i).u.i; }
    if (opd_ndim(input) != dims + (line ? 1 : 2)) {
        (void)opd_fail(OPD_ERROR_SHAPE, "%s: the input must have %lld dimensions", call->builtin->schema,
                       (long long)(dims + (line ? 1 : 2)));
        return NULL;
    }
    input = line ? opd_unsqueeze(input, 2) : input;
    opd_tensor *const result = opd_convolution(input, weight, opdi_tensor_in(&parts[OPDI_PACKED_BIAS]),
                                               opd_ints_of(settings, dims), opd_ints_of(settings + dims, dims),
                                               opd_ints_of(settings + 2 * dims, dims), settings[4 * dims + 1] != 0,
                                               opd_ints_of(settings + 3 * dims, dims), settings[4 * dims]);
    return result && line ? opd_squeeze_dim(result, 2) : result;
}
/* Concatenates the tensors in argument 0, a list.  Returns the result, or NULL and sets an error. */
static opd_tensor *opdi_quantized_cat(const opdi_bcall *call) {
    const int64_t count = opd_list_count(call->args[0]);
    const size_t bytes = (size_t)OPDI_MAX(count, 1) * sizeof(opd_tensor *);
    opd_tensor **const tensors = count > 0 ? (opd_tensor **)opdi_alloc(bytes) : NULL;
    opd_tensor *result = NULL;
    if (count == 0) { (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the list of tensors is empty", call->builtin->schema); }
    for (int64_t i = 0; tensors && i < count; i++) { tensors[i] = opd_list_at(call->args[0], i).u.t; }
    if (tensors) { result = opd_cat(opd_tensors_of(tensors, count), opdi_call_int(call, 1)); }
    opdi_free(tensors, tensors ? bytes : 0);
    return result;
}
static opd_tensor *opdi_quantized_bag(const opdi_bcall *call, opd_tensor *weight) {
    opd_tensor *rets[4] = {NULL, NULL, NULL, NULL};
    opd_tensor *indices = opdi_call_tensor(call, 1);
    opd_tensor *offsets = call->nargs > 2 ? opdi_tensor_in(&call->args[2]) : NULL;
    if (!indices) { return NULL; }
    if (opdi_call_int(call, 4) != 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: mode must be 0 (sum)", call->builtin->schema);
        return NULL;
    }
    if (!offsets && opd_ndim(indices) == 2) {
        const int64_t rows = opd_size(indices, 0), columns = opd_size(indices, 1);
        offsets = opd_arange_start_step(opd_value_int(0), opd_value_int(rows * columns),
                                        opd_value_int(OPDI_MAX(columns, 1)), OPD_INT64);
        indices = opd_reshape(indices, OPD_INTS(-1));
    }
    if (!offsets) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: indices of one dimension need offsets", call->builtin->schema);
        return NULL;
    }
    indices = opd_to_dtype(indices, OPD_INT64);
    return opd_embedding_bag_full(rets, weight, indices, opd_to_dtype(offsets, OPD_INT64), false, 0, false,
                                  call->nargs > 6 ? opdi_tensor_in(&call->args[6]) : NULL,
                                  call->nargs > 8 && opdi_call_int(call, 8)) ? NULL : rets[0];
}
/* Runs a convolution, a linear layer or an embedding; `kind` (OPDI_Q_...) tells which.  Returns the result, or NULL and
   sets an error. */
static opd_tensor *opdi_quantized_layer(const opdi_bcall *call, int kind) {
    const bool table = kind == OPDI_Q_EMBEDDING || kind == OPDI_Q_BAG;
    const int at = table ? 0 : kind == OPDI_Q_CONV_ADD ? 2 : 1;
    const opd_value *const parts = opdi_call_packed(call, at, kind == OPDI_Q_LINEAR ? "LinearPackedParamsBase"
                                                    : table ? "EmbeddingPackedParamsBase" : "dPackedParamsBase");
    opd_tensor *const input = parts ? opdi_call_tensor(call, table ? 1 : 0) : NULL, *result;
    if (!input) { return NULL; }
    if (table && opdi_call_int(call, kind == OPDI_Q_BAG ? 5 : 2)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: pruned_weights must be False", call->builtin->schema);
        return NULL;
    }
    if (kind == OPDI_Q_LINEAR) {
        opd_tensor *const weight = opdi_quantized_weight(parts);
        return weight ? opd_linear(input, weight, opdi_tensor_in(&parts[OPDI_PACKED_BIAS])) : NULL;
    }
    if (kind == OPDI_Q_EMBEDDING) { return opd_embedding(opdi_tensor_in(&parts[OPDI_PACKED_WEIGHT]), input); }
    if (kind == OPDI_Q_BAG) { return opdi_quantized_bag(call, opdi_tensor_in(&parts[OPDI_PACKED_WEIGHT])); }
    result = opdi_quantized_conv(call, input, parts, kind == OPDI_Q_CONV1D);
    return result && kind == OPDI_Q_CONV_ADD ? opd_add(result, opdi_call_tensor(call, 1)) : result;
}
/* Runs a normalization layer; `kind` (OPDI_Q_...) tells which.  Returns the result, or NULL and sets an error. */
static opd_tensor *opdi_quantized_norm(const opdi_bcall *call, int kind, opd_tensor *input) {
    const int at = kind == OPDI_Q_LAYER_NORM || kind == OPDI_Q_GROUP_NORM ? 2 : 1;
    opd_tensor *const weight = opdi_tensor_in(&call->args[at]);
    opd_tensor *const bias = opdi_tensor_in(&call->args[at + 1]);
    int64_t sizes[OPD_MAX_DIMS];
    if (kind == OPDI_Q_GROUP_NORM) {
        return opd_group_norm_full(input, opdi_call_int(call, 1), weight, bias, call->args[4].u.d, false);
    }
    if (kind == OPDI_Q_INSTANCE_NORM) {
        return opd_instance_norm(input, weight, bias, NULL, NULL, true, 0.1, call->args[3].u.d, false);
    }
    if (kind == OPDI_Q_BATCH_NORM) {
        return opd_batch_norm(input, weight, bias, opdi_call_tensor(call, 3), opdi_call_tensor(call, 4), false, 0.1,
                              call->args[5].u.d, false);
    }
    const int64_t count = opd_list_count(call->args[1]);
    for (int64_t i = 0; i < count && i < OPD_MAX_DIMS; i++) { sizes[i] = opd_list_at(call->args[1], i).u.i; }
    return count < 0 || count > OPD_MAX_DIMS ? NULL
        : opd_layer_norm_full(input, opd_ints_of(sizes, count), weight, bias, call->args[4].u.d, false);
}
/* Runs an operator that is not a layer; `kind` (OPDI_Q_...) tells which.  Returns the result, or NULL and sets an
   error. */
static opd_tensor *opdi_quantized_plain(const opdi_bcall *call, int kind) {
    if (kind == OPDI_Q_CAT) { return opdi_quantized_cat(call); }
    const bool turned = call->args[0].tag != OPD_TAG_TENSOR;          /* true: the number is the first operand, the
                                                                         tensor the second */
    opd_tensor *const input = opdi_call_tensor(call, turned ? 1 : 0);
    opd_value *const args = (opd_value *)(uintptr_t)call->args;
    if (!input) { return NULL; }
    switch (kind) {
    case OPDI_Q_ADD: case OPDI_Q_MUL: {
        const opd_value *const other = &args[turned ? 0 : 1];
        if (other->tag != OPD_TAG_TENSOR) {
            return kind == OPDI_Q_ADD ? opd_add_Scalar(input, *other) : opd_mul_Scalar(input, *other);
        }
        return kind == OPDI_Q_ADD ? opd_add(input, other->u.t) : opd_mul(input, other->u.t);
    }
    case OPDI_Q_MATMUL: return opd_matmul(input, opdi_call_tensor(call, 1));
    case OPDI_Q_HARDSWISH: return opd_hardswish(input);
    case OPDI_Q_SIGMOID: return opd_sigmoid(input);
    case OPDI_Q_LEAKY_RELU: return opd_leaky_relu(input, args[1]);
    case OPDI_Q_ELU: return opd_elu_full(opd_contiguous(input), args[3], args[4], args[5]);
    case OPDI_Q_CELU: return opd_celu_full(opd_contiguous(input), args[3]);
    case OPDI_Q_PRELU: return opd_prelu(input, opdi_call_tensor(call, 1));
    case OPDI_Q_RELU6: return opd_relu6(input);
    case OPDI_Q_CLAMP: return opd_clamp(input, args[1], args[2]);
    case OPDI_Q_SOFTMAX: return opd_softmax(input, opdi_call_int(call, 1));
    case OPDI_Q_DROPOUT: return input;                        /* models in archives are in evaluation mode */
    default: return opdi_quantized_norm(call, kind, input);
    }
}
OPDI_INTERNAL int opdi_fn_quantized(opdi_bcall *call) {
    const int kind = call->builtin->what & 255, place = call->builtin->what >> 8 & 255;
    const int then = call->builtin->what >> 16;
    const bool layer = kind <= OPDI_Q_CONV_ADD || kind >= OPDI_Q_EMBEDDING;
    opd_scope scope = opd_scope_open();
    const bool grad = opd_grad_mode_set(false);
    opd_tensor *result = layer ? opdi_quantized_layer(call, kind) : opdi_quantized_plain(call, kind);
    if (result && then == OPDI_Q_RELU) { result = opd_relu(result); }
    if (result && then == OPDI_Q_TANH) { result = opd_tanh(result); }
    if (result && then == OPDI_Q_LEAKY) { result = opd_leaky_relu(result, call->args[place + 2]); }
    if (place && !opdi_call_none(call, place)) {
        result = opdi_quantized_round(result, call->args[place].u.d, opdi_call_int(call, place + 1));
    }
    const int rc = opdi_return_tensor(call, result);
    (void)opd_grad_mode_set(grad);
    opd_scope_close(&scope);
    return rc;
}
/* Rounds the result of an operator on quantized numbers to multiples of the scale in float32, as quantized kernels of
   PyTorch do.  The builtin's `what` tells how.  0: a number halfway between two multiples is rounded to an even
   quantized value.  1: to an even distance from the zero point.  2: as 0, but the numbers are exactly those that the
   operator has computed in float32.  For 0 and 1, numbers that are almost halfway count as halfway, because rounding to
   float32 may have moved them.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_requantize(opdi_bcall *call) {
    opd_tensor *const input = opdi_call_tensor(call, 0);
    const int32_t what = call->builtin->what;
    const double scale = call->args[1].u.d, margin = what == 2 ? 0 : 2e-4;
    const int64_t zero = opdi_call_int(call, 2), from = what == 1 ? zero : 0;
    if (!input || scale <= 0) { return opdi_return_tensor(call, input); }
    opd_scope scope = opd_scope_open();
    const bool grad = opd_grad_mode_set(false);
    const float often = 1 / (float)scale;
    opd_tensor *const steps = opd_clone(opd_to_dtype(input, OPD_FLOAT64));     /* keeps the layout, without gaps */
    double *const data = steps && opd_numel(steps) ? (double *)opd_data(steps) : NULL;
    for (int64_t i = 0; data && i < opd_numel(steps); i++) {
        const double at = what == 2 ? (double)((float)data[i] * often) : data[i] / scale;
        const double halves = nearbyint(2 * at);
        const double exact = fabs(2 * at - halves) < margin ? halves / 2 : at;
        const double whole = nearbyint(exact + (double)(zero - from)) + (double)from;
        data[i] = OPDI_MIN(OPDI_MAX(whole, 0.0), 255.0) - (double)zero;
    }
    opd_tensor *const result = steps ? opd_to_dtype(opd_mul_Scalar(steps, opd_value_double(scale)), OPD_FLOAT32) : NULL;
    const int rc = opdi_return_tensor(call, result);
    (void)opd_grad_mode_set(grad);
    opd_scope_close(&scope);
    return rc;
}
/* Appends the settings of a convolution, which are arguments of the call, to the list `settings` (see
   opdi_quantized_conv).  If `line` is true, the convolution has one dimension; the settings get a first dimension of
   size 1. */
static void opdi_quantized_settings(const opdi_bcall *call, opd_value settings, bool line, bool transposed) {
    static const int plain[] = {2, 3, 4, -1}, turned[] = {2, 3, 5, 4};   /* indexes of arguments; -1: zeros */
    const int64_t dims = opd_ndim(call->args[0].u.t) - 2;
    for (int i = 0; i < 4; i++) {
        const int at = transposed ? turned[i] : plain[i];
        const int64_t count = at < 0 ? dims : opd_list_count(call->args[at]);
        if (line) { (void)opd_list_append(settings, opd_value_int(i % 2 == 0)); }
        for (int64_t j = 0; j < count; j++) {
            (void)opd_list_append(settings, at < 0 ? opd_value_int(0) : opd_list_at(call->args[at], j));
        }
    }
    (void)opd_list_append(settings, opd_value_int(opdi_call_int(call, transposed ? 6 : 5)));
    (void)opd_list_append(settings, opd_value_int(transposed));
}
/* Makes an object with packed weights from a weight and further arguments.  The builtin's `what` (OPDI_PACK_...) is the
   kind of layer.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_quantized_pack(opdi_bcall *call) {
    const int what = call->builtin->what;
    const opdi_gtype *const type = call->node->out[0]->type;
    const bool line = what == OPDI_PACK_LINE || what == OPDI_PACK_TURNED_LINE;
    const bool transposed = what == OPDI_PACK_TURNED || what == OPDI_PACK_TURNED_LINE;
    opd_tensor *weight = opdi_call_tensor(call, 0);
    if (!weight) { return -1; }
    if (!type || !type->klass) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the class is missing", call->builtin->schema);
    }
    if (opdi_packed_names(type->klass)) { return -1; }
    opd_scope scope = opd_scope_open();
    opdi_cell *const packed = opdi_object_new(type->klass);
    const opd_value settings = opd_list_new(OPD_TAG_INTS);
    if (line || transposed || what == OPDI_PACK_CONV) { opdi_quantized_settings(call, settings, line, transposed); }
    weight = line ? opd_unsqueeze(weight, 2) : weight;
    int rc = packed && opd_ok() ? opdi_object_put(packed, OPDI_PACKED_WEIGHT, opd_value_tensor(weight)) : -1;
    if (!rc && call->nargs > 1) { rc = opdi_object_put(packed, OPDI_PACKED_BIAS, call->args[1]); }
    if (!rc && opd_list_count(settings)) { rc = opdi_object_put(packed, OPDI_PACKED_SETTINGS, settings); }
    opd_scope_close(&scope);
    if (rc && packed) { opdi_cell_drop(packed); }
    return rc ? -1 : opdi_return_cell(call, packed);
}
/* A recurrent layer, with the packed weights for its input and for its hidden state.  `reduce` is true if inputs are
   quantized to 7 bits. */
typedef struct opdi_qcell {
    const opdi_bcall *call;
    const opd_value *input, *hidden;
    bool reduce, lstm;
} opdi_qcell;

/* Runs a linear layer.  If its weights are int8, quantizes the input dynamically, else computes with floats.  Returns
   the result, or NULL and sets an error. */
static opd_tensor *opdi_quantized_either(opd_tensor *input, const opd_value *parts, bool reduce) {
    opd_tensor *const weight = opdi_tensor_in(&parts[OPDI_PACKED_WEIGHT]);
    if (!input || !weight || opd_dtype(weight) == OPD_INT8) {
        return input ? opdi_quantized_linear(input, parts, reduce) : NULL;
    }
    return opd_linear(input, opdi_quantized_weight(parts), opdi_tensor_in(&parts[OPDI_PACKED_BIAS]));
}
static const opd_value *opdi_packed_parts(const opdi_bcall *call, opd_value packed) {
    const opdi_cell *const cell = opdi_cell_of(&packed);
    if (cell && cell->kind == OPD_CELL_OBJECT && cell->count == OPDI_PACKED_PARTS) { return cell->u.values; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the weights are not packed weights", call->builtin->schema);
    return NULL;
}
/* Runs one time step of a recurrent layer.  `gates` is the contribution of the input to the gates.  Replaces state[0],
   which is h, and, in an LSTM, state[1], which is c.  Returns 0, or -1 and sets an error. */
static int opdi_quantized_step(const opdi_qcell *cell, opd_tensor *gates, opd_tensor **state) {
    enum { MOST = 4 };
    const int count = cell->lstm ? 4 : 3;
    opd_tensor *const more = opdi_quantized_either(state[0], cell->hidden, cell->reduce);
    opd_tensor *first[MOST], *second[MOST];
    const int64_t size = more ? opd_size(more, -1) / count : 0;
    for (int i = 0; more && i < count; i++) {
        first[i] = opd_narrow(gates, -1, i * size, size);
        second[i] = opd_narrow(more, -1, i * size, size);
        if (cell->lstm || i < 2) { first[i] = opd_add(second[i], first[i]); }
        if (cell->lstm ? i != 2 : i < 2) { first[i] = opd_sigmoid(first[i]); }
    }
    if (!more || !opd_ok()) { return -1; }
    if (cell->lstm) {
        opd_tensor *const product = opd_mul(first[1], state[1]);
        state[1] = opd_add(product, opd_mul(first[0], opd_tanh(first[2])));
        state[0] = opd_mul(first[3], opd_tanh(state[1]));
    } else {
        opd_tensor *const fresh = opd_tanh(opd_add(first[2], opd_mul(second[2], first[0])));
        state[0] = opd_add(opd_mul(opd_sub(state[0], fresh), first[1]), fresh);
    }
    return opd_ok() ? 0 : -1;
}
/* Runs one direction of a layer over `input` [steps, batch, features]; if `back` is true, from the last step to the
   first.  `state` has the initial state, which is replaced by the final state.  Returns h of all steps as [steps,
   batch, size], or NULL and sets an error. */
static opd_tensor *opdi_quantized_direction(const opdi_qcell *cell, opd_tensor *input, bool back, opd_tensor **state) {
    const int64_t steps = opd_size(input, 0);
    const size_t bytes = (size_t)OPDI_MAX(steps, 1) * sizeof(opd_tensor *);
    opd_tensor *const gates = opdi_quantized_either(input, cell->input, cell->reduce), *result = NULL;
    opd_tensor **const all = gates ? (opd_tensor **)opdi_alloc(bytes) : NULL;
    int rc = all ? 0 : -1;
    for (int64_t k = 0; !rc && k < steps; k++) {
        const int64_t at = back ? steps - 1 - k : k;
        rc = opdi_quantized_step(cell, opd_select(gates, 0, at), state);
        all[at] = state[0];
    }
    if (!rc && steps < 1) {
        (void)opd_fail(OPD_ERROR_SHAPE, "%s: the input must have at least one step", cell->call->builtin->schema);
    }
    if (!rc && steps > 0) { result = opd_stack(opd_tensors_of(all, steps), 0); }
    opdi_free(all, all ? bytes : 0);
    return result;
}
/* Runs all layers.  `states` is [h, c], each with one entry per layer and direction; c is NULL in a GRU.  Writes the
   final states, concatenated, to `last`.  Returns the output of the last layer, or NULL and sets an error. */
static opd_tensor *opdi_quantized_layers(const opdi_bcall *call, opd_tensor *input, opd_tensor *const *states,
                                         opd_tensor **last) {
    enum { PARAMS = 2, LAYERS = 4, DROPOUT, TRAIN, BOTH };
    const int64_t layers = opdi_call_int(call, LAYERS), sides = opdi_call_int(call, BOTH) ? 2 : 1;
    const bool lstm = states[1] != NULL;
    for (int64_t layer = 0; layer < layers && input; layer++) {
        opd_tensor *outs[2] = {NULL, NULL};
        for (int64_t side = 0; side < sides; side++) {
            const int64_t at = layer * sides + side;
            const opd_value *const own = opdi_packed_parts(call, opd_list_at(call->args[PARAMS], at));
            opdi_qcell cell = {call, NULL, NULL, false, lstm};
            cell.input = own ? opdi_packed_parts(call, own[OPDI_PACKED_INPUT]) : NULL;
            cell.hidden = cell.input ? opdi_packed_parts(call, own[OPDI_PACKED_HIDDEN]) : NULL;
            if (!cell.hidden) { return NULL; }
            cell.reduce = own[OPDI_PACKED_REDUCE].tag == OPD_TAG_INT && own[OPDI_PACKED_REDUCE].u.i;
            opd_tensor *state[2] = {opd_select(states[0], 0, at), lstm ? opd_select(states[1], 0, at) : NULL};
            outs[side] = opd_ok() ? opdi_quantized_direction(&cell, input, side == 1, state) : NULL;
            for (int i = 0; i <= (lstm ? 1 : 0) && outs[side]; i++) {
                opd_tensor *const one = opd_unsqueeze(state[i], 0);
                last[i] = last[i] ? opd_cat(OPD_TENSORS(last[i], one), 0) : one;
            }
            if (!outs[side]) { return NULL; }
        }
        input = sides == 2 ? opd_cat(OPD_TENSORS(outs[0], outs[1]), -1) : outs[0];
        if (input && layer + 1 < layers && opdi_call_int(call, TRAIN) && call->args[DROPOUT].u.d > 0) {
            input = opd_dropout(input, call->args[DROPOUT].u.d, true);
        }
    }
    return opd_ok() ? input : NULL;
}
/* Runs aten::quantized_lstm.input or, if the builtin's `what` is 1, aten::quantized_gru.input.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_fn_quantized_recurrent(opdi_bcall *call) {
    enum { FIRST = 8 };
    const bool lstm = call->builtin->what == 0;
    opd_tensor *input = opdi_call_tensor(call, 0), *states[2] = {NULL, NULL}, *last[2] = {NULL, NULL};
    if (!input || (!lstm && !opdi_call_tensor(call, 1))) { return -1; }
    if (opd_ndim(input) != 3 || (lstm && opd_list_count(call->args[1]) != 2)) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: the input must have 3 dimensions%s", call->builtin->schema,
                        lstm ? ", and hx two tensors" : "");
    }
    opd_scope scope = opd_scope_open();
    const bool grad = opd_grad_mode_set(false);
    for (int i = 0; i < (lstm ? 2 : 1); i++) {
        states[i] = lstm ? opd_list_at(call->args[1], i).u.t : call->args[1].u.t;
    }
    const bool first = opdi_call_int(call, FIRST) != 0;
    input = first ? opd_transpose(input, 0, 1) : input;
    opd_tensor *result = input ? opdi_quantized_layers(call, input, states, last) : NULL;
    result = result && first ? opd_transpose(result, 0, 1) : result;
    const int rc = opdi_return_tensor(call, result);
    for (int i = 0; !rc && i < (lstm ? 2 : 1); i++) { call->rets[i + 1] = opd_value_tensor(opdi_keep(last[i])); }
    (void)opd_grad_mode_set(grad);
    opd_scope_close(&scope);
    return rc;
}
OPDI_INTERNAL int opdi_fn_quantized_sequence(opdi_bcall *call) {
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: packed sequences are not supported for quantized layers",
                    call->builtin->schema);
}
/* Runs one step of a recurrent cell with packed weights.  The builtin's `what` is 0 for an LSTM, 1 for a GRU, 2 for an
   RNN with tanh, and 3 for an RNN with relu.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_quantized_cell(opdi_bcall *call) {
    const int what = call->builtin->what;
    opd_tensor *const input = opdi_call_tensor(call, 0);
    opd_tensor *state[2] = {NULL, NULL};
    opdi_qcell cell = {call, NULL, NULL, /* reduce */ true, what == 0};
    cell.input = input ? opdi_call_packed(call, 2, "LinearPackedParamsBase") : NULL;
    cell.hidden = cell.input ? opdi_call_packed(call, 3, "LinearPackedParamsBase") : NULL;
    if (!cell.hidden || (what && !(state[0] = opdi_call_tensor(call, 1)))) { return -1; }
    if (!what && opd_list_count(call->args[1]) != 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: hx must be two tensors", call->builtin->schema);
    }
    opd_scope scope = opd_scope_open();
    const bool grad = opd_grad_mode_set(false);
    for (int i = 0; !what && i < 2; i++) { state[i] = opd_list_at(call->args[1], i).u.t; }
    opd_tensor *const gates = opdi_quantized_either(input, cell.input, cell.reduce);
    if (gates && what >= 2) {
        opd_tensor *const sum = opd_add(opdi_quantized_either(state[0], cell.hidden, cell.reduce), gates);
        state[0] = what == 2 ? opd_tanh(sum) : opd_relu(sum);
    } else if (gates) { (void)opdi_quantized_step(&cell, gates, state); }
    const int rc = gates && opd_ok() ? opdi_return_tensor(call, state[0]) : -1;
    if (!rc && !what) { call->rets[1] = opd_value_tensor(opdi_keep(state[1])); }
    (void)opd_grad_mode_set(grad);
    opd_scope_close(&scope);
    return rc;
}
/* Sets the call's result to the name (the builtin's `what` is 0) or the value (1) of an enum member.  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_fn_enum(opdi_bcall *call) {
    const opdi_cell *const cell = opdi_call_cell(call, 0, OPD_CELL_OBJECT);
    if (!cell) { return -1; }
    if (cell->klass->kind != OPDI_CLASS_ENUM || cell->count != 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the value is an object of %s, which is not an enum",
                        call->builtin->schema, cell->klass->name);
    }
    return opdi_return_borrowed(call, cell->u.values[call->builtin->what]);
}
/* Sets the call's result to false, because the library has no nested tensors.  A transformer encoder with a padding
   mask then computes with ordinary tensors.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_not_nested(opdi_bcall *call) { return opdi_return_value(call, opd_value_bool(false)); }
OPDI_INTERNAL int opdi_fn_set_item(opdi_bcall *call) {
    opdi_cell *const cell = opdi_cell_of(&call->args[0]);
    if (cell && cell->kind == OPD_CELL_DICT) { return opdi_dict_set(cell, call->args[1], call->args[2]); }
    const int64_t at = opdi_call_list(call, 0) ? opdi_list_index(opdi_call_int(call, 1), cell->count) : -1;
    if (at < 0 || opdi_cell_set(cell, at, call->args[2])) { return -1; }
    return call->nrets ? opdi_return_borrowed(call, call->args[0]) : 0;
}
OPDI_INTERNAL int opdi_fn_delete(opdi_bcall *call) {
    opdi_cell *const cell = opdi_cell_of(&call->args[0]);
    if (cell && cell->kind == OPD_CELL_DICT) {
        const int64_t at = opdi_dict_find(cell, &call->args[1]);
        if (at < 0) { return opdi_no_key(&call->args[1]); }
        opdi_dict_remove(cell, at);
        return 0;
    }
    const int64_t at = opdi_call_list(call, 0) ? opdi_list_index(opdi_call_int(call, 1), cell->count) : -1;
    if (at >= 0) { opdi_cell_remove(cell, at, at + 1); }
    return at >= 0 ? 0 : -1;
}
OPDI_INTERNAL int opdi_fn_len(opdi_bcall *call) {
    int64_t length;
    const opdi_cell *const cell = opdi_cell_of(&call->args[0]);
    if (opdi_value_text(&call->args[0], &length)) { return opdi_return_value(call, opd_value_int(length)); }
    if (call->args[0].tag == OPD_TAG_TENSOR) {
        if (opd_ndim(call->args[0].u.t) == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "len() of a 0-d tensor"); }
        return opdi_return_value(call, opd_value_int(opd_size(call->args[0].u.t, 0)));
    }
    if (!cell) { return opdi_call_list(call, 0) ? 0 : -1; }
    return opdi_return_value(call, opd_value_int(cell->count));
}
OPDI_INTERNAL int opdi_fn_append(opdi_bcall *call) {
    opdi_cell *const cell = opdi_call_list(call, 0);
    if (!cell || opdi_cell_insert(cell, cell->count, call->args[1])) { return -1; }
    return call->nrets ? opdi_return_borrowed(call, call->args[0]) : 0;
}
OPDI_INTERNAL int opdi_fn_insert(opdi_bcall *call) {
    opdi_cell *const cell = opdi_call_list(call, 0);
    if (!cell) { return -1; }
    int64_t at = opdi_call_int(call, 1);
    at = at < 0 ? OPDI_MAX(0, at + cell->count) : OPDI_MIN(at, cell->count);
    return opdi_cell_insert(cell, at, call->args[2]);
}
OPDI_INTERNAL int opdi_fn_extend(opdi_bcall *call) {
    opdi_cell *const cell = opdi_call_list(call, 0), *const more = cell ? opdi_call_list(call, 1) : NULL;
    const int64_t count = more ? more->count : 0;
    for (int64_t i = 0; i < count; i++) {
        if (opdi_cell_insert(cell, cell->count, opdi_cell_at(more, i))) { return -1; }
    }
    if (!more) { return -1; }
    return call->nrets ? opdi_return_borrowed(call, call->args[0]) : 0;
}
OPDI_INTERNAL int opdi_fn_pop(opdi_bcall *call) {
    opdi_cell *const cell = opdi_call_list(call, 0);
    if (!cell) { return -1; }
    if (cell->count == 0) { return opd_fail(OPD_ERROR_INDEX, "pop from empty list"); }
    const int64_t at = opdi_list_index(call->nargs > 1 ? opdi_call_int(call, 1) : -1, cell->count);
    if (at < 0 || opdi_return_borrowed(call, opdi_cell_at(cell, at))) { return -1; }
    opdi_cell_remove(cell, at, at + 1);
    return 0;
}
OPDI_INTERNAL int opdi_fn_clear(opdi_bcall *call) {
    opdi_cell *const cell = opdi_cell_of(&call->args[0]);
    if (cell && cell->kind == OPD_CELL_DICT) {
        while (cell->count) { opdi_dict_remove(cell, cell->count - 1); }
        return 0;
    }
    if (!opdi_call_list(call, 0)) { return -1; }
    opdi_cell_remove(cell, 0, cell->count);
    return 0;
}
OPDI_INTERNAL int opdi_fn_reverse(opdi_bcall *call) {
    opdi_cell *const cell = opdi_call_list(call, 0);
    if (cell) { opdi_list_reverse(cell); }
    return cell ? 0 : -1;
}
/* Returns a new list of `count` elements of `from`, those at the indexes start, start + step, start + 2 step, and so
   on.  On failure, returns NULL and sets an error. */
static opdi_cell *opdi_list_part(const opdi_cell *from, int64_t start, int64_t count, int64_t step) {
    opdi_cell *cell = opdi_cell_new(OPD_CELL_LIST, from->tag, 0);
    int rc = cell ? opdi_cell_reserve(cell, count) : -1;
    for (int64_t k = 0; k < count && rc == 0; k++) {
        rc = opdi_cell_insert(cell, k, opdi_cell_at(from, start + k * step));
    }
    if (rc && cell) { opdi_cell_drop(cell); }
    return rc ? NULL : cell;
}
OPDI_INTERNAL int opdi_fn_copy(opdi_bcall *call) {
    const opdi_cell *const cell = opdi_cell_of(&call->args[0]);
    if (cell && cell->kind == OPD_CELL_DICT) {
        opdi_cell *copy = opdi_cell_new(OPD_CELL_DICT, OPD_TAG_LIST, 0);
        for (int64_t i = 0; copy && i < cell->count; i++) {
            if (opdi_dict_set(copy, cell->u.values[2 * i], cell->u.values[2 * i + 1])) {
                opdi_cell_drop(copy);
                return -1;
            }
        }
        return opdi_return_cell(call, copy);
    }
    return opdi_call_list(call, 0) ? opdi_return_cell(call, opdi_list_part(cell, 0, cell->count, 1)) : -1;
}
/* Sets *start and *step as Python's slice.indices does, for a list of `count` elements.  Arguments 1 to 3 of the call
   are the slice.  Returns the number of elements of the slice, or -1 and sets an error. */
OPDI_INTERNAL int64_t opdi_slice_range(const opdi_bcall *call, int64_t count, int64_t *start, int64_t *step) {
    const int64_t by = call->nargs > 3 && !opdi_call_none(call, 3) ? opdi_call_int(call, 3) : 1;
    const int64_t low = by < 0 ? -1 : 0, high = by < 0 ? count - 1 : count;
    int64_t ends[2];
    if (by == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "slice step cannot be zero"); }
    for (int k = 0; k < 2; k++) {
        if (opdi_call_none(call, 1 + k)) { ends[k] = (k == 0) == (by > 0) ? low : high; }
        else {
            const int64_t at = opdi_call_int(call, 1 + k);
            ends[k] = at < 0 ? OPDI_MAX(low, at + count) : OPDI_MIN(at, high);
        }
    }
    *start = ends[0];
    *step = by;
    if (by > 0 ? ends[0] >= ends[1] : ends[0] <= ends[1]) { return 0; }
    const uint64_t span = by > 0 ? (uint64_t)(ends[1] - ends[0]) : (uint64_t)(ends[0] - ends[1]);
    const uint64_t size = by > 0 ? (uint64_t)by : 0 - (uint64_t)by;
    return (int64_t)((span - 1) / size + 1);
}
OPDI_INTERNAL int opdi_fn_slice(opdi_bcall *call) {
    int64_t length, start, step;
    const char *const text = opdi_value_text(&call->args[0], &length);
    const opdi_cell *const cell = opdi_cell_of(&call->args[0]);
    if (!text && !opdi_call_list(call, 0)) { return -1; }
    const int64_t count = opdi_slice_range(call, text ? length : cell->count, &start, &step);
    if (count < 0) { return -1; }
    if (!text) { return opdi_return_cell(call, opdi_list_part(cell, start, count, step)); }
    opdi_cell *part = opdi_cell_text(NULL, count);
    for (int64_t k = 0; part && k < count; k++) { part->u.text[k] = text[start + k * step]; }
    return opdi_return_cell(call, part);
}
OPDI_INTERNAL int opdi_fn_concat(opdi_bcall *call) {
    int64_t first, second;
    const char *const text = opdi_value_text(&call->args[0], &first);
    if (text) {
        const char *const other = opdi_call_text(call, 1, &second);
        opdi_cell *cell = other ? opdi_cell_text(NULL, first + second) : NULL;
        if (!cell) { return -1; }
        memcpy(cell->u.text, text, (size_t)first);
        memcpy(cell->u.text + first, other, (size_t)second);
        return opdi_return_cell(call, cell);
    }
    const opdi_cell *const left = opdi_call_list(call, 0), *const right = left ? opdi_call_list(call, 1) : NULL;
    opdi_cell *cell = right ? opdi_list_part(left, 0, left->count, 1) : NULL;
    for (int64_t i = 0; cell && i < right->count; i++) {
        if (opdi_cell_insert(cell, cell->count, opdi_cell_at(right, i))) {
            opdi_cell_drop(cell);
            return -1;
        }
    }
    return opdi_return_cell(call, cell);
}
OPDI_INTERNAL int opdi_fn_repeat(opdi_bcall *call) {
    const int at = call->args[0].tag == OPD_TAG_INT;
    const opdi_cell *const list = opdi_call_list(call, at);
    const int64_t times = list ? OPDI_MAX(0, opdi_call_int(call, !at)) : 0;
    opdi_cell *cell = list ? opdi_cell_new(OPD_CELL_LIST, list->tag, 0) : NULL;
    if (cell && (times > INT32_MAX || opdi_cell_reserve(cell, list->count * times))) {
        opdi_cell_drop(cell);
        return opd_ok() ? opd_fail(OPD_ERROR_ARGUMENT, "a list is too long") : -1;
    }
    for (int64_t k = 0; cell && k < times; k++) {
        for (int64_t i = 0; i < list->count; i++) {
            if (opdi_cell_insert(cell, cell->count, opdi_cell_at(list, i))) {
                opdi_cell_drop(cell);
                return -1;
            }
        }
    }
    return opdi_return_cell(call, cell);
}
/* Repeats a list in place (list *= times).  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_repeat_in_place(opdi_bcall *call) {
    opdi_cell *const list = opdi_call_list(call, 0);
    const int64_t count = list ? list->count : 0, times = list ? OPDI_MAX(0, opdi_call_int(call, 1)) : 0;
    if (!list) { return -1; }
    if (times == 0) { opdi_cell_remove(list, 0, count); }
    if (times > INT32_MAX || (times > 1 && opdi_cell_reserve(list, count * times))) {
        return opd_ok() ? opd_fail(OPD_ERROR_ARGUMENT, "a list is too long") : -1;
    }
    for (int64_t i = count; i < count * times; i++) {
        if (opdi_cell_insert(list, i, opdi_cell_at(list, i - count))) { return -1; }
    }
    return opdi_return_borrowed(call, call->args[0]);
}
/* Returns the index of the first element that is equal to `want`, or `count` if there is none.  On failure, returns -1
   and sets an error. */
static int64_t opdi_list_find(const opdi_cell *list, const opd_value *want) {
    for (int64_t i = 0; i < list->count; i++) {
        const opd_value element = opdi_cell_at(list, i);
        const int rc = opdi_equal(&element, want, 0);
        if (rc < 0) { return -1; }
        if (rc) { return i; }
    }
    return list->count;
}
OPDI_INTERNAL int opdi_fn_search(opdi_bcall *call) {
    const int32_t what = call->builtin->what;
    opdi_cell *const list = opdi_cell_of(&call->args[0]);
    if (list && list->kind == OPD_CELL_DICT) {
        return opdi_return_value(call, opd_value_bool(opdi_dict_find(list, &call->args[1]) >= 0));
    }
    if (!opdi_call_list(call, 0)) { return -1; }
    if (what == OPDI_LIST_COUNT) {
        int64_t times = 0;
        for (int64_t i = 0; i < list->count; i++) {
            const opd_value element = opdi_cell_at(list, i);
            const int rc = opdi_equal(&element, &call->args[1], 0);
            if (rc < 0) { return -1; }
            times += rc;
        }
        return opdi_return_value(call, opd_value_int(times));
    }
    const int64_t at = opdi_list_find(list, &call->args[1]);
    if (at < 0) { return -1; }
    if (what == OPDI_LIST_CONTAINS) { return opdi_return_value(call, opd_value_bool(at < list->count)); }
    if (at == list->count) {
        opdi_text_builder out = {NULL, 0, 0, false};
        opdi_value_write(&out, &call->args[1], 0);
        (void)(what == OPDI_LIST_INDEX
               ? opd_fail(OPD_ERROR_ARGUMENT, "ValueError: '%.200s' is not in list", out.length ? out.text : "")
               : opd_fail(OPD_ERROR_ARGUMENT, "list.remove(x): x not in list"));
        opdi_text_builder_free(&out);
        return -1;
    }
    if (what == OPDI_LIST_INDEX) { return opdi_return_value(call, opd_value_int(at)); }
    opdi_cell_remove(list, at, at + 1);
    return 0;
}
/* Compares two objects by __lt__ of the class `klass`.  Returns 1 if `first` sorts before `second`, 0 if not, or -1 and
   sets an error. */
static int opdi_less_object(const opdi_gclass *klass, const opd_value *first, const opd_value *second) {
    const char *const name = klass && klass->name ? klass->name : "";
    opdi_thread *const thread = opdi_self();
    if (!klass || !klass->less) {
        return opd_fail(OPD_ERROR_ARGUMENT, "To sort a list of %s it must define a __lt__ method with two inputs of "
                        "type %s that returns a bool", name, name);
    }
    if (thread->sorting == OPDI_MAX_CELL_DEPTH) {
        return opd_fail(OPD_ERROR_ARGUMENT, "__lt__ of %s sorts a list of its own class without end", name);
    }
    thread->sorting++;
    const int rc = klass->less(klass, first, second);
    thread->sorting--;
    return rc;
}
/* Returns 1 if `first` sorts before `second`, 0 if not, or -1 and sets an error. */
static int opdi_less(const opd_value *first, const opd_value *second, int depth) {
    const opdi_cell *const left = opdi_cell_of(first), *const right = opdi_cell_of(second);
    if (depth > OPDI_MAX_CELL_DEPTH) { return opd_fail(OPD_ERROR_ARGUMENT, "values are nested too deeply"); }
    if (left && right && left->kind == OPD_CELL_TUPLE && right->kind == OPD_CELL_TUPLE) {
        for (int64_t i = 0; i < OPDI_MIN(left->count, right->count); i++) {
            int rc = opdi_less(&left->u.values[i], &right->u.values[i], depth + 1);
            if (rc) { return rc; }
            rc = opdi_less(&right->u.values[i], &left->u.values[i], depth + 1);
            if (rc) { return rc < 0 ? rc : 0; }
        }
        return left->count < right->count;
    }
    if (first->tag == OPD_TAG_TENSOR && second->tag == OPD_TAG_TENSOR) {
        opd_scope scope = opd_scope_open();
        opd_tensor *less = opd_lt(first->u.t, second->u.t);
        const int rc = less ? opd_item_i64(less) != 0 : -1;
        opd_scope_close(&scope);
        return opd_ok() ? rc : -1;
    }
    if (left && right && left->kind == OPD_CELL_OBJECT && right->kind == OPD_CELL_OBJECT) {
        return left == right ? 0 : opdi_less_object(left->klass == right->klass ? left->klass : NULL, first, second);
    }
    if (left && left->kind >= OPD_CELL_LIST) {
        return opd_fail(OPD_ERROR_ARGUMENT, "only lists of numbers, strings and tuples of these can be sorted");
    }
    return opdi_compare(first, second) == -1;
}
/* Stores the `count` elements `sorted` in the list.  `were` has the elements before sorting: if the list now differs
   from `were`, because an object's __lt__ has changed it, returns -1 and sets an error.  Returns 0 otherwise. */
static int opdi_list_sorted(opdi_cell *list, const opd_value *sorted, const opd_value *were, int64_t count) {
    bool same = list->count == count;
    for (int64_t i = 0; same && list->tag == OPD_TAG_LIST && i < count; i++) {
        same = list->u.values[i].tag == were[i].tag && list->u.values[i].u.i == were[i].u.i;
    }
    if (!same) { return opd_fail(OPD_ERROR_ARGUMENT, "a list was changed while it was sorted"); }
    for (int64_t i = 0; i < count; i++) { opdi_cell_put(list, i, &sorted[i]); }
    return 0;
}
/* Sorts a list by merge sort, which is stable; in descending order if `reverse` is true.  Returns 0, or -1 and sets an
   error. */
static int opdi_list_sort(opdi_cell *list, bool reverse) {
    const int64_t count = list->count;
    const size_t bytes = (size_t)(3 * count + 1) * sizeof(opd_value);
    opd_value *from = (opd_value *)opdi_alloc(bytes), *const block = from, *to = from ? from + count : NULL;
    opd_value *const were = from ? from + 2 * count : NULL;
    int64_t held = 0;
    int rc = from ? 0 : -1;
    for (int64_t i = 0; rc == 0 && i < count; i++) {
        from[i] = were[i] = opdi_cell_at(list, i);
        if (list->tag != OPD_TAG_LIST) { continue; }
        rc = opdi_value_hold(&were[i]);           /* holds the elements, because a comparison may change the list */
        held += rc == 0;
    }
    for (int64_t run = 1; rc == 0 && run < count; run *= 2) {
        for (int64_t start = 0; rc >= 0 && start < count; start += 2 * run) {
            int64_t a = start, b = OPDI_MIN(start + run, count), k = start;
            const int64_t middle = b, end = OPDI_MIN(start + 2 * run, count);
            while (k < end && rc >= 0) {
                bool second = a == middle;
                if (!second && b < end) {
                    rc = reverse ? opdi_less(&from[a], &from[b], 0) : opdi_less(&from[b], &from[a], 0);
                    second = rc == 1;
                }
                to[k++] = second ? from[b++] : from[a++];
            }
        }
        if (rc >= 0) { rc = 0; }
        opd_value *const other = from;
        from = to;
        to = other;
    }
    if (rc == 0) { rc = opdi_list_sorted(list, from, were, count); }
    if (were) { opdi_values_drop(were, held); }
    opdi_free(block, bytes);
    return rc < 0 ? -1 : 0;
}
OPDI_INTERNAL int opdi_fn_sort(opdi_bcall *call) {
    opdi_cell *const list = opdi_call_list(call, 0);
    return list ? opdi_list_sort(list, call->nargs > 1 && opdi_call_int(call, 1) != 0) : -1;
}
OPDI_INTERNAL int opdi_fn_sorted(opdi_bcall *call) {
    const opdi_cell *const list = opdi_call_list(call, 0);
    opdi_cell *copy = list ? opdi_list_part(list, 0, list->count, 1) : NULL;
    if (copy && opdi_list_sort(copy, call->nargs > 1 && opdi_call_int(call, 1) != 0)) {
        opdi_cell_drop(copy);
        return -1;
    }
    return opdi_return_cell(call, copy);
}
/* Sets the call's result to the smallest (the builtin's `what` is OPDI_FN_MIN) or largest element of a list; of two
   lists, to the smaller or larger list.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_extreme(opdi_bcall *call) {
    const opdi_cell *const list = opdi_call_list(call, 0);
    const bool least = call->builtin->what == OPDI_FN_MIN;
    if (!list) { return -1; }
    if (call->nargs == 2) {
        const opdi_cell *const other = opdi_call_list(call, 1);
        if (!other) { return -1; }
        for (int64_t i = 0; i < OPDI_MIN(list->count, other->count); i++) {
            const opd_value a = opdi_cell_at(list, i), b = opdi_cell_at(other, i);
            const int order = opdi_compare(&a, &b);
            if (order) { return opdi_return_borrowed(call, call->args[(order < 0) != least]); }
        }
        return opdi_return_borrowed(call, call->args[(list->count <= other->count) != least]);
    }
    if (list->count == 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s() arg is an empty sequence", least ? "min" : "max");
    }
    int64_t best = 0;
    for (int64_t i = 1; i < list->count; i++) {
        const opd_value a = opdi_cell_at(list, i), b = opdi_cell_at(list, best);
        const int order = opdi_compare(&a, &b);
        if (order == (least ? -1 : 1)) { best = i; }
    }
    return opdi_return_value(call, opdi_cell_at(list, best));
}
OPDI_INTERNAL int opdi_fn_sum(opdi_bcall *call) {
    const opdi_cell *const list = opdi_call_list(call, 0);
    uint64_t whole = 0;
    double sum = 0, imaginary = 0;
    if (!list) { return -1; }
    for (int64_t i = 0; i < list->count; i++) {
        const opd_value element = opdi_cell_at(list, i);
        const double *const pair = opdi_complex_of(&element);
        sum += opdi_real_of(&element);
        if (pair) { imaginary += pair[1]; }
        if (opdi_whole(&element)) { whole += (uint64_t)element.u.i; }
    }
    if (list->tag == OPD_TAG_LIST) { return opdi_return_complex(call, sum, imaginary); }
    return opdi_return_value(call,
                             list->tag == OPD_TAG_FLOATS ? opd_value_double(sum) : opd_value_int(opdi_wrap(whole)));
}
/* Runs all(list), or any(list) if the builtin's `what` is 1.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_all(opdi_bcall *call) {
    const opdi_cell *const list = opdi_call_list(call, 0);
    const bool any = call->builtin->what != 0;
    int64_t length = 0;
    if (!list) { return -1; }
    for (int64_t i = 0; i < list->count; i++) {
        const opd_value element = opdi_cell_at(list, i);
        const bool truth = opdi_value_text(&element, &length) ? length > 0
            : element.tag == OPD_TAG_FLOAT ? element.u.d < 0 || !(element.u.d <= 0) : element.u.i != 0;
        if (truth == any) { return opdi_return_value(call, opd_value_bool(any)); }
    }
    return opdi_return_value(call, opd_value_bool(!any));
}
