#include "aoti.h"

//== oneDNN's operators in PyTorch =====================================================================================

typedef struct opdi_aoti_unary { const char *name; opd_tensor *(*apply)(opd_tensor *self); } opdi_aoti_unary;
static const opdi_aoti_unary opdi_aoti_unaries[] = {
    {"relu", opd_relu}, {"sigmoid", opd_sigmoid}, {"tanh", opd_tanh}, {"hardswish", opd_hardswish},
    {"hardsigmoid", opd_hardsigmoid}, {"swish", opd_silu}, {"silu", opd_silu}, {"abs", opd_abs}, {"exp", opd_exp},
    {"sqrt", opd_sqrt}, {"square", opd_square}, {"log", opd_log}, {"mish", opd_mish}
};
/* Applies a function to the result of a product.  `name` is its name, `numbers` are its parameters, and `way` is its
   variant ("tanh" for gelu).  Returns NULL and sets an error if the function is unknown. */
static opd_tensor *opdi_aoti_apply(opd_tensor *self, const opd_value *name, const opd_value *numbers,
                                   const opd_value *way) {
    const opd_value *list = numbers->tag == OPD_TAG_LIST ? numbers->u.list : NULL;
    const char *text = name->tag == OPD_TAG_STR ? name->u.s : "none";
    const int count = list ? numbers->n : 0;
    if (!self || strcmp(text, "none") == 0 || !*text) { return self; }
    if (strcmp(text, "gelu") == 0) {
        return opd_gelu_full(self, way->tag == OPD_TAG_STR && strcmp(way->u.s, "tanh") == 0 ? "tanh" : "none");
    }
    if (strcmp(text, "leaky_relu") == 0 && count >= 1) { return opd_leaky_relu(self, list[0]); }
    if (strcmp(text, "elu") == 0 && count >= 1) {
        return opd_elu_full(self, list[0], opd_value_int(1), opd_value_int(1));
    }
    if ((strcmp(text, "hardtanh") == 0 || strcmp(text, "clamp") == 0) && count >= 2) {
        return opd_hardtanh_full(self, list[0], list[1]);
    }
    for (size_t i = 0; i < sizeof opdi_aoti_unaries / sizeof *opdi_aoti_unaries; i++) {
        if (strcmp(text, opdi_aoti_unaries[i].name) == 0) { return opdi_aoti_unaries[i].apply(self); }
    }
    (void)opd_fail(OPD_ERROR_NOT_FOUND, "a compiled model uses '%.40s' after a product, which is not supported", text);
    return NULL;
}
static opd_tensor *opdi_aoti_combine(opd_tensor *self, opd_tensor *other, const opd_value *name,
                                     const opd_value *alpha) {
    const char *text = name->tag == OPD_TAG_STR ? name->u.s : "";
    const opd_value factor = alpha->tag == OPD_TAG_NONE ? opd_value_int(1) : *alpha;
    if (strcmp(text, "add") == 0 || strcmp(text, "sum") == 0) { return opd_add_full(self, other, factor); }
    if (strcmp(text, "sub") == 0) { return opd_sub_full(self, other, factor); }
    if (strcmp(text, "mul") == 0) { return opd_mul(self, other); }
    if (strcmp(text, "div") == 0) { return opd_div(self, other); }
    (void)opd_fail(OPD_ERROR_NOT_FOUND, "a compiled model uses '%.40s' of two tensors after a product, which is not "
                   "supported", text);
    return NULL;
}
static opd_tensor *opdi_aoti_arg(const opd_value *value) {
    return value->tag == OPD_TAG_TENSOR ? value->u.t : NULL;
}
static int opdi_aoti_return(opd_value *rets, opd_tensor *tensor) {
    rets[0] = opd_value_tensor(tensor);
    return tensor ? 0 : -1;
}
/* Returns true if a tensor is in channels_last format, judged by its strides as in PyTorch. */
static bool opdi_aoti_channels_last(const opd_tensor *tensor) {
    const int ndim = opd_ndim(tensor);
    const int64_t *sizes = opd_sizes(tensor), *strides = opd_strides(tensor);
    int64_t least = 0;
    if ((ndim != 4 && ndim != 5) || strides[1] == 0) { return false; }
    for (int i = 0; i < ndim; i++) {
        const int dim = i == 0 ? 1 : i == ndim - 1 ? 0 : ndim - i;            /* for 4 dims: 1, 3, 2, 0 */
        if (sizes[dim] == 0 || strides[dim] < least || (dim == 0 && least == strides[1])) { return false; }
        least = strides[dim] * (sizes[dim] > 1 ? sizes[dim] : 1);
    }
    return true;
}
/* Gives the result of a convolution the memory format of its input `like`.  Returns NULL and sets an error if it
   fails. */
static opd_tensor *opdi_aoti_laid_out(opd_tensor *self, const opd_tensor *like) {
    return !self ? NULL : opdi_aoti_channels_last(like)
        ? opd_contiguous_full(self, opd_ndim(self) == 4 ? 2 : 3) : opd_contiguous(self);
}
/* Merges the groups of a convolution's packed weight, [g, o/g, i/g, ...].  `ndim` is the number of dims of the input.
   If `transposed` is true, the weight is that of a transposed convolution.  Returns NULL and sets an error if it
   fails. */
static opd_tensor *opdi_aoti_ungrouped(opd_tensor *weight, void *handle, int ndim, bool transposed) {
    const bool packed = handle && ((opdi_aoti_handle *)handle)->packed;
    if (!packed) { return weight; }
    if (opd_ndim(weight) == ndim) { return transposed ? opd_transpose(weight, 0, 1) : weight; }
    if (transposed) { weight = opd_transpose(weight, 1, 2); }
    return opd_flatten(weight, 0, 1);
}
static opd_tensor *opdi_aoti_convolve(const opd_value *args, const opd_value *bias, const opd_value *rest,
                                      const opd_value *weight, void *handle, const opd_value *output_padding) {
    static const int64_t zeros[3] = {0, 0, 0};
    opd_tensor *input = args->u.t;
    opd_value values[9];
    opd_tensor *kernel = opdi_aoti_ungrouped(weight->u.t, handle, opd_ndim(input), output_padding != NULL);
    static opd_op *convolution;
    values[0] = *args;
    values[1] = opd_value_tensor(kernel);
    values[2] = *bias;
    values[3] = rest[1];
    values[4] = rest[0];
    values[5] = rest[2];
    values[6] = opd_value_bool(output_padding != NULL);
    values[7] = output_padding ? *output_padding : opd_value_ints(zeros, opd_ndim(input) - 2);
    values[8] = rest[3];
    return kernel ? opdi_aoti_laid_out(opd_call_op(OPD_OP(&convolution, "aten::convolution"), values, 9), input) : NULL;
}
static int opdi_aoti_conv_pointwise(const opd_value *args, void *const *handles, opd_value *rets) {
    opd_tensor *self = opdi_aoti_convolve(&args[0], &args[2], &args[3], &args[1], handles[1], NULL);
    return opdi_aoti_return(rets, opdi_aoti_apply(self, &args[7], &args[8], &args[9]));
}
static int opdi_aoti_conv_binary(const opd_value *args, void *const *handles, opd_value *rets) {
    opd_tensor *self = opdi_aoti_convolve(&args[0], &args[3], &args[4], &args[2], handles[2], NULL);
    if (self) { self = opdi_aoti_combine(self, args[1].u.t, &args[8], &args[9]); }
    return opdi_aoti_return(rets, opdi_aoti_laid_out(opdi_aoti_apply(self, &args[10], &args[11], &args[12]),
                                                     args[0].u.t));
}
/* Computes a convolution, combines its result with args[0], applies a function to that, and writes the result to
   args[0].  Returns 0, or -1 and sets an error. */
static int opdi_aoti_conv_binary_inplace(const opd_value *args, void *const *handles, opd_value *rets) {
    opd_tensor *self = opdi_aoti_convolve(&args[1], &args[3], &args[4], &args[2], handles[2], NULL);
    if (self) { self = opdi_aoti_combine(self, args[0].u.t, &args[8], &args[9]); }
    self = opdi_aoti_apply(self, &args[10], &args[11], &args[12]);
    return opdi_aoti_return(rets, self ? opd_copy_(args[0].u.t, self) : NULL);
}
static int opdi_aoti_conv_transposed(const opd_value *args, void *const *handles, opd_value *rets) {
    opd_value rest[4];
    rest[0] = args[3];
    rest[1] = args[5];
    rest[2] = args[6];
    rest[3] = args[7];
    opd_tensor *self = opdi_aoti_convolve(&args[0], &args[2], rest, &args[1], handles[1], &args[4]);
    return opdi_aoti_return(rets, opdi_aoti_apply(self, &args[8], &args[9], &args[10]));
}
static int opdi_aoti_linear(const opd_value *args, void *const *handles, opd_value *rets) {
    (void)handles;
    opd_tensor *self = opd_linear(args[0].u.t, args[1].u.t, opdi_aoti_arg(&args[2]));
    return opdi_aoti_return(rets, opdi_aoti_apply(self, &args[3], &args[4], &args[5]));
}
static int opdi_aoti_linear_binary(const opd_value *args, void *const *handles, opd_value *rets) {
    const opd_value one = opd_value_int(1);
    (void)handles;
    opd_tensor *self = opd_linear(args[0].u.t, args[2].u.t, opdi_aoti_arg(&args[3]));
    return opdi_aoti_return(rets, self ? opdi_aoti_combine(self, args[1].u.t, &args[4], &one) : NULL);
}
static int opdi_aoti_mkl_linear(const opd_value *args, void *const *handles, opd_value *rets) {
    (void)handles;
    return opdi_aoti_return(rets, opd_linear(args[0].u.t, args[2].u.t, opdi_aoti_arg(&args[3])));
}
/* Converts the packed weight of a recurrent layer, [1, 1, features, gates, outputs], to PyTorch's format, [gates *
   outputs, features].  Returns NULL and sets an error if it fails. */
static opd_tensor *opdi_aoti_gates(opd_tensor *weight, void *handle) {
    static const int64_t order[5] = {0, 1, 3, 4, 2};
    int64_t sizes[2];
    if (!weight || !((opdi_aoti_handle *)handle)->packed || opd_ndim(weight) != 5) { return weight; }
    sizes[0] = opd_size(weight, 3) * opd_size(weight, 4);
    sizes[1] = opd_size(weight, 2);
    return opd_reshape(opd_permute(weight, opd_ints_of(order, 5)), opd_ints_of(sizes, 2));
}
/* Runs a recurrent layer in one direction.  args[0] is the input, [steps, examples, features], or [examples, steps,
   features] if args[14] (batch_first) is true.  args[9] is the mode: 0 relu, 1 tanh, 2 LSTM, 3 GRU.  The results are
   the outputs, both final states, and the workspace for training, which is empty.  Returns 0, or -1 and sets an
   error. */
static int opdi_aoti_rnn_layer(const opd_value *args, void *const *handles, opd_value *rets) {
    static const char *const names[] = {"aten::rnn_relu.input", "aten::rnn_tanh.input", "aten::lstm.input",
                                        "aten::gru.input"};
    static const int64_t first = 0, nothing = 0;
    const bool reverse = args[7].u.i != 0, biases = args[12].u.i != 0, batch_first = args[14].u.i != 0;
    const int64_t mode = args[9].u.i;
    opd_tensor *weights[4], *states[2], *input = args[0].u.t;
    opd_value values[9], results[3];
    if (mode < 0 || mode > 3) {
        return opd_fail(OPD_ERROR_ARGUMENT, "recurrent layers of mode %d are not supported", (int)mode);
    }
    if (args[8].n > 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "recurrent layers over packed sequences are not supported");
    }
    for (int i = 0; i < 4; i++) { weights[i] = opdi_aoti_gates(args[1 + i].u.t, handles[1 + i]); }
    /* a state may be [examples, features] */
    for (int i = 0; i < 2; i++) {
        states[i] = args[5 + i].u.t;
        if (states[i] && opd_ndim(states[i]) == 2) { states[i] = opd_unsqueeze(states[i], 0); }
    }
    if (batch_first) { input = opd_transpose(input, 0, 1); }
    if (reverse) { input = opd_flip(input, opd_ints_of(&first, 1)); }
    values[0] = opd_value_tensor(input);
    values[1] = mode == 2 ? opd_value_tensors(states, 2) : opd_value_tensor(states[0]);
    values[2] = opd_value_tensors(weights, biases ? 4 : 2);
    values[3] = opd_value_bool(biases);
    values[4] = opd_value_int(1);
    values[5] = opd_value_double(0);
    values[6] = values[7] = values[8] = opd_value_bool(false);
    results[2] = opd_value_none();
    opd_op *op = opd_ok() ? opd_find(names[mode]) : NULL;
    if (!op || opd_call_all(op, results, values, 9)) { return -1; }
    opd_tensor *output = results[0].u.t;
    if (reverse) { output = opd_flip(output, opd_ints_of(&first, 1)); }
    if (batch_first) { output = opd_transpose(output, 0, 1); }
    rets[0] = opd_value_tensor(output ? opd_contiguous(output) : NULL);
    for (int i = 0; i < 2; i++) {
        opd_tensor *state = i < (mode == 2 ? 2 : 1) ? results[1 + i].u.t : args[6].u.t;
        if (i == 0 || mode == 2) { state = opd_reshape(state, opd_ints_of(opd_sizes(args[5 + i].u.t),
                                                                          opd_ndim(args[5 + i].u.t))); }
        rets[1 + i] = opd_value_tensor(state);
    }
    rets[3] = opd_value_tensor(opd_tensor_new(opd_ints_of(&nothing, 1), OPD_UINT8));
    return opd_ok() ? 0 : -1;
}
static int opdi_aoti_scatter(const opd_value *args, void *const *handles, opd_value *rets) {
    opd_value values[6];
    (void)handles;
    (void)rets;
    values[0] = args[0];
    values[1] = args[1];
    values[2] = args[2];
    values[3] = args[3];
    values[4] = args[4];
    return opd_call_all(opd_find("aten::scatter.src_out"), NULL, values, 5);
}
static int opdi_aoti_mm_plus_mm(const opd_value *args, void *const *handles, opd_value *rets) {
    (void)handles;
    (void)rets;
    opd_tensor *sum = opd_add(opd_mm(args[0].u.t, args[1].u.t), opd_mm(args[2].u.t, args[3].u.t));
    return sum && opd_copy_(args[4].u.t, sum) ? 0 : -1;
}

static int opdi_aoti_addmm_activation(const opd_value *args, void *const *handles, opd_value *rets) {
    static opd_op *addmm;
    (void)handles;
    opd_tensor *sum = opd_call_op(OPD_OP(&addmm, "aten::addmm"), args, 5);
    return opdi_aoti_return(rets, !sum ? NULL : args[5].u.i ? opd_gelu_full(sum, "tanh") : opd_relu(sum));
}
/* Multiplies by packed weights of 4 bits.  The group size args[2] is a tensor here.  How the weights are packed follows
   from the processor for which the model was compiled.  Returns 0, or -1 and sets an error. */
static int opdi_aoti_int4_mm(const opd_value *args, void *const *handles, opd_value *rets) {
    static opd_op *product;
    const char *const sets = opdi_aoti_current ? opd_aoti_metadata(opdi_aoti_current->model, "AOTI_CPU_ISA") : NULL;
    opd_value values[5];
    (void)handles;
    memcpy(values, args, 4 * sizeof *values);
    values[2] = opd_value_int(opd_item_i64(args[2].u.t));
    values[4] = opd_value_int(!sets ? 0 : strstr(sets, "AVX512") ? 64 : 32);
    opd_op *const op = opd_ok() ? OPD_OP(&product, "opdispatch::int4pack_mm") : NULL;
    return opdi_aoti_return(rets, op ? opd_call_op(op, values, 5) : NULL);
}
/* Calls a layer of codes with a second tensor, args[6].  PyTorch writes a "sum" to this tensor, which the model then
   reads, though the schema does not say so.  Returns 0, or -1 and sets an error. */
static int opdi_aoti_coded_linear_binary(const opd_value *args, void *const *handles, opd_value *rets) {
    static opd_op *op;
    const bool sum = args[13].tag == OPD_TAG_STR && strcmp(args[13].u.s, "sum") == 0;
    (void)handles;
    opd_tensor *const y = opd_call_op(OPD_OP(&op, "onednn::qlinear_pointwise.binary_tensor"), args, 18);
    return opdi_aoti_return(rets, y && sum ? opd_copy_(args[6].u.t, y) : y);
}
/* Calls a convolution of codes, whose packed weight is args[3].  Returns 0, or -1 and sets an error. */
static int opdi_aoti_coded_conv_of(opd_op *op, int count, const opd_value *args, void *const *handles,
                                   opd_value *rets) {
    opd_value values[OPDI_AOTI_ARGS];
    const int ndim = opd_ndim(args[0].u.t);
    memcpy(values, args, (size_t)count * sizeof *values);
    values[3] = opd_value_tensor(opdi_aoti_ungrouped(args[3].u.t, handles[3], ndim == 3 ? 4 : ndim, false));
    return opdi_aoti_return(rets, op && values[3].u.t ? opd_call_op(op, values, count) : NULL);
}
static int opdi_aoti_coded_conv(const opd_value *args, void *const *handles, opd_value *rets) {
    static opd_op *op;
    return opdi_aoti_coded_conv_of(OPD_OP(&op, "onednn::qconv_pointwise.tensor"), 17, args, handles, rets);
}
static int opdi_aoti_coded_conv_binary(const opd_value *args, void *const *handles, opd_value *rets) {
    static opd_op *op;
    return opdi_aoti_coded_conv_of(OPD_OP(&op, "onednn::qconv2d_pointwise.binary_tensor"), 22, args, handles, rets);
}
/* Computes the gradient of masked_scatter with respect to its source: the elements of the gradient args[0] that the
   mask args[1] selects, then zeros.  args[2] are the sizes of the source.  Returns 0, or -1 and sets an error. */
static int opdi_aoti_masked_backward(const opd_value *args, void *const *handles, opd_value *rets) {
    int64_t count = 1, first = 0;
    (void)handles;
    for (int i = 0; i < args[2].n; i++) { count *= args[2].u.ints[i]; }
    opd_tensor *found = opd_masked_select(args[0].u.t, args[1].u.t);
    opd_tensor *all = found ? opd_zeros(opd_ints_of(&count, 1), opd_dtype(found)) : NULL;
    const int64_t there = all && opd_numel(found) < count ? opd_numel(found) : count;
    if (all && !opd_copy_(opd_narrow(all, 0, first, there), opd_narrow(found, 0, first, there))) { return -1; }
    return opdi_aoti_return(rets, all ? opd_view(all, opd_ints_of(args[2].u.ints, args[2].n)) : NULL);
}
static int opdi_aoti_set(const opd_value *args, void *const *handles, opd_value *rets) {
    (void)handles;
    (void)rets;
    return opd_tensor_set_data(args[0].u.t, args[1].u.t);
}
static int opdi_aoti_uniform(const opd_value *args, void *const *handles, opd_value *rets) {
    static opd_op *uniform;
    opd_value values[3];
    (void)handles;
    opd_tensor *like = opd_empty_like(args[0].u.t);
    values[0] = opd_value_tensor(like);
    values[1] = args[1];
    values[2] = args[2];
    return opdi_aoti_return(rets, like ? opd_call_op(OPD_OP(&uniform, "aten::uniform_"), values, 3) : NULL);
}
/* These two functions run rand_like and randn_like with the default generator. */
static int opdi_aoti_rand_like(const opd_value *args, void *const *handles, opd_value *rets) {
    static opd_op *rand_like;
    opd_value values[6];
    (void)handles;
    values[0] = args[0];
    for (int i = 1; i < 6; i++) { values[i] = args[i + 1]; }
    return opdi_aoti_return(rets, opd_call_op(OPD_OP(&rand_like, "aten::rand_like"), values, 6));
}
static int opdi_aoti_randn_like(const opd_value *args, void *const *handles, opd_value *rets) {
    static opd_op *randn_like;
    opd_value values[6];
    (void)handles;
    values[0] = args[0];
    for (int i = 1; i < 6; i++) { values[i] = args[i + 1]; }
    return opdi_aoti_return(rets, opd_call_op(OPD_OP(&randn_like, "aten::randn_like"), values, 6));
}

OPDI_INTERNAL const opdi_aoti_other opdi_aoti_others[] = {
    {"aoti_torch_cpu__linear_pointwise",
     "linear(Tensor X, Tensor W, Tensor? B, str attr, Scalar?[] scalars, str? algorithm) -> Tensor", opdi_aoti_linear},
    {"aoti_torch_cpu__linear_pointwise_binary",
     "linear(Tensor X, Tensor other, Tensor W, Tensor? B, str attr) -> Tensor", opdi_aoti_linear_binary},
    {"aoti_torch_cpu__mkl_linear",
     "linear(Tensor X, Tensor W, Tensor origin, Tensor? B, int batch) -> Tensor", opdi_aoti_mkl_linear},
    {"aoti_torch_cpu_mkldnn__convolution_pointwise",
     "conv(Tensor X, Tensor W, Tensor? B, int[] padding, int[] stride, int[] dilation, int groups, str attr, "
     "Scalar?[] scalars, str? algorithm) -> Tensor", opdi_aoti_conv_pointwise},
    {"aoti_torch_cpu_mkldnn__convolution_pointwise_binary",
     "conv(Tensor X, Tensor other, Tensor W, Tensor? B, int[] padding, int[] stride, int[] dilation, int groups, "
     "str attr, Scalar? alpha, str? unary, Scalar?[] scalars, str? algorithm) -> Tensor", opdi_aoti_conv_binary},
    {"aoti_torch_cpu_mkldnn__convolution_pointwise_binary_",
     "conv(Tensor other, Tensor X, Tensor W, Tensor? B, int[] padding, int[] stride, int[] dilation, int groups, "
     "str attr, Scalar? alpha, str? unary, Scalar?[] scalars, str? algorithm) -> Tensor",
     opdi_aoti_conv_binary_inplace},
    {"aoti_torch_cpu_mkldnn__convolution_transpose_pointwise",
     "conv(Tensor X, Tensor W, Tensor? B, int[] padding, int[] output_padding, int[] stride, int[] dilation, "
     "int groups, str attr, Scalar?[] scalars, str? algorithm) -> Tensor", opdi_aoti_conv_transposed},
    {"aoti_torch_cpu_mkldnn_rnn_layer",
     "rnn(Tensor input, Tensor w0, Tensor w1, Tensor w2, Tensor w3, Tensor hx, Tensor cx, bool reverse, int[] sizes, "
     "int mode, int hidden, int layers, bool biases, bool bidirectional, bool batch_first, bool train) -> "
     "(Tensor, Tensor, Tensor, Tensor)", opdi_aoti_rnn_layer},
    {"aoti_torch_cpu__addmm_activation",
     "addmm(Tensor self, Tensor a, Tensor b, Scalar beta, Scalar alpha, bool gelu) -> Tensor",
         opdi_aoti_addmm_activation},
    {"aoti_torch_cpu__qlinear_pointwise_tensor", "onednn::qlinear_pointwise.tensor", NULL},
    {"aoti_torch_cpu__qlinear_pointwise_binary_tensor", "onednn::qlinear_pointwise.binary_tensor",
     opdi_aoti_coded_linear_binary},
    {"aoti_torch_cpu__qconv_pointwise_tensor", "onednn::qconv_pointwise.tensor", opdi_aoti_coded_conv},
    {"aoti_torch_cpu__qconv2d_pointwise_binary_tensor", "onednn::qconv2d_pointwise.binary_tensor",
     opdi_aoti_coded_conv_binary},
    {"aoti_torch_cpu__weight_int4pack_mm_cpu_tensor",
     "mm(Tensor self, Tensor mat2, Tensor group, Tensor scales_and_zeros) -> Tensor", opdi_aoti_int4_mm},
    {"aoti_torch_cpu_masked_scatter_backward",
     "masked(Tensor grad, Tensor mask, int[] sizes) -> Tensor", opdi_aoti_masked_backward},
    {"aoti_torch_cpu_set__source_Tensor", "set_(Tensor(a!) self, Tensor source) -> Tensor(a!)", opdi_aoti_set},
    {"aoti_torch_cpu_uniform",
     "uniform(Tensor self, float from, float to, Generator? generator) -> Tensor", opdi_aoti_uniform},
    {"aoti_torch_cpu_rand_like_generator",
     "like(Tensor self, Generator? generator, ScalarType? dtype, Layout? layout, "
     "Device? device, bool? pin, MemoryFormat? format) -> Tensor", opdi_aoti_rand_like},
    {"aoti_torch_cpu_randn_like_generator",
     "like(Tensor self, Generator? generator, ScalarType? dtype, Layout? layout, "
     "Device? device, bool? pin, MemoryFormat? format) -> Tensor", opdi_aoti_randn_like},
    {"aoti_torch_cpu__efficientzerotensor",
     "aten::zeros(int[] size, ScalarType? dtype, Layout? layout, Device? device, bool? pin) -> Tensor", NULL},
    {"aoti_torch_scatter_out",
     "scatter(Tensor self, int dim, Tensor index, Tensor src, *, Tensor(a!) out) -> Tensor(a!)", opdi_aoti_scatter},
    {"aoti_torch__mm_plus_mm_out",
     "mm(Tensor a, Tensor b, Tensor c, Tensor d, *, Tensor(a!) out) -> Tensor(a!)", opdi_aoti_mm_plus_mm},
    {"aoti_torch_scatter_reduce_out",
     "aten::scatter_reduce.two_out(Tensor self, int dim, Tensor index, Tensor src, str reduce, bool include_self, *, "
     "Tensor(a!) out) -> Tensor(a!)", NULL},
    {"aoti_torch_addmm_out",
     "aten::addmm.out(Tensor self, Tensor mat1, Tensor mat2, float32 beta, float32 alpha, *, Tensor(a!) out) -> Tensor",
     NULL},
    {"aoti_torch_bmm_out", "aten::bmm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor", NULL},
    {"aoti_torch_mm_out", "aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor", NULL},
    {"aoti_torch_nonzero", "aten::nonzero(Tensor self) -> Tensor", NULL},
    {"aoti_torch_repeat_interleave_Tensor",
     "aten::repeat_interleave.Tensor(Tensor repeats, int? size) -> Tensor", NULL},
    {"aoti_torch_view_as_real", "aten::view_as_real(Tensor self) -> Tensor", NULL},
    {"aoti_torch_view_dtype", "aten::view.dtype(Tensor self, ScalarType dtype) -> Tensor", NULL},
    {"aoti_torch__fft_c2c", "aten::_fft_c2c(Tensor self, int[] dim, int norm, bool forward) -> Tensor", NULL},
    {"aoti_torch__embedding_bag",
     "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale, Layout mode, bool sparse, "
     "Handle bare, bool last, Layout padding_idx) -> (Tensor, Tensor, Tensor, Tensor)", NULL},
    {"aoti_torch_convolution",
     "aten::convolution(Tensor input, Tensor weight, Handle bare, int[] stride, int[] padding, int[] dilation, "
     "bool transposed, int[] output_padding, int groups) -> Tensor", NULL},
    {"aoti_torch_index_put_out",
     "aten::index_put.out(Tensor self, Handle[] indices, Tensor values, bool accumulate, *, Tensor(a!) out) -> Tensor",
     NULL}
};
OPDI_INTERNAL const size_t opdi_aoti_nothers = sizeof opdi_aoti_others / sizeof *opdi_aoti_others;

//== vector functions ==================================================================================================
//
//  Models call vector functions by the names of the library Sleef, such as Sleef_expf16_u10.  The stub stores the
//  vectors in memory, calls opdi_aoti_vector_run, and loads the result from there.

OPDI_INTERNAL const opdi_aoti_math opdi_aoti_maths[OPDI_AOTI_MATHS] = {
    {"exp", expf, exp, NULL, NULL}, {"tanh", tanhf, tanh, NULL, NULL}, {"log", logf, log, NULL, NULL},
    {"erf", erff, erf, NULL, NULL}, {"erfc", erfcf, erfc, NULL, NULL}, {"sin", sinf, sin, NULL, NULL},
    {"cos", cosf, cos, NULL, NULL}, {"tan", tanf, tan, NULL, NULL}, {"asin", asinf, asin, NULL, NULL},
    {"acos", acosf, acos, NULL, NULL}, {"atan", atanf, atan, NULL, NULL}, {"sinh", sinhf, sinh, NULL, NULL},
    {"cosh", coshf, cosh, NULL, NULL}, {"asinh", asinhf, asinh, NULL, NULL}, {"acosh", acoshf, acosh, NULL, NULL},
    {"atanh", atanhf, atanh, NULL, NULL}, {"exp2", exp2f, exp2, NULL, NULL}, {"expm1", expm1f, expm1, NULL, NULL},
    {"log2", log2f, log2, NULL, NULL}, {"log10", log10f, log10, NULL, NULL}, {"log1p", log1pf, log1p, NULL, NULL},
    {"lgamma", lgammaf, lgamma, NULL, NULL}, {"tgamma", tgammaf, tgamma, NULL, NULL}, {"cbrt", cbrtf, cbrt, NULL, NULL},
    {"sqrt", sqrtf, sqrt, NULL, NULL}, {"ceil", ceilf, ceil, NULL, NULL}, {"floor", floorf, floor, NULL, NULL},
    {"round", roundf, round, NULL, NULL}, {"rint", rintf, rint, NULL, NULL}, {"trunc", truncf, trunc, NULL, NULL},
    {"fabs", fabsf, fabs, NULL, NULL}, {"pow", NULL, NULL, powf, pow}, {"atan2", NULL, NULL, atan2f, atan2},
    {"hypot", NULL, NULL, hypotf, hypot}, {"fmod", NULL, NULL, fmodf, fmod},
    {"copysign", NULL, NULL, copysignf, copysign},
    {"nextafter", NULL, NULL, nextafterf, nextafter}, {"fdim", NULL, NULL, fdimf, fdim},
    {"fmax", NULL, NULL, fmaxf, fmax},
    {"fmin", NULL, NULL, fminf, fmin}
};

OPDI_INTERNAL void opdi_aoti_vector_run(void *first, const void *second, const opdi_aoti_vector *vector) {
    const opdi_aoti_math *math = vector->math;
    float *f = (float *)first;
    double *d = (double *)first;
    const float *f_2 = (const float *)second;
    const double *d_2 = (const double *)second;
    if (math->f32 && vector->element == 4) { for (int i = 0; i < vector->count; i++) { f[i] = math->f32(f[i]); } }
    else if (math->f64) { for (int i = 0; i < vector->count; i++) { d[i] = math->f64(d[i]); } }
    else if (vector->element == 4) { for (int i = 0; i < vector->count; i++) { f[i] = math->f32_2(f[i], f_2[i]); } }
    else { for (int i = 0; i < vector->count; i++) { d[i] = math->f64_2(d[i], d_2[i]); } }
}
/* Finds the function with a name such as Sleef_expf16_u10.  Sets *count to the number of elements of a vector, and
   *element to their size in bytes.  Returns NULL if there is none. */
OPDI_INTERNAL const opdi_aoti_math *opdi_aoti_vector_of(const char *name, int *count, int *element) {
    if (strncmp(name, "Sleef_", 6) != 0) { return NULL; }
    for (size_t i = 0; i < OPDI_AOTI_MATHS; i++) {
        const size_t length = strlen(opdi_aoti_maths[i].name);
        if (strncmp(name + 6, opdi_aoti_maths[i].name, length) != 0) { continue; }
        const char kind = name[6 + length];
        char *end;
        const long numbers = strtol(name + 7 + length, &end, 10);
        const long bytes = numbers * (kind == 'f' ? 4 : 8);
        if ((kind != 'f' && kind != 'd') || (*end && *end != '_') || strstr(end, "sve")) { continue; }
#if defined(__x86_64__)
        if (bytes != 16 && bytes != 32 && bytes != 64) { continue; }
#else
        if (bytes != 16) { continue; }
#endif
        *count = (int)numbers;
        *element = kind == 'f' ? 4 : 8;
        return &opdi_aoti_maths[i];
    }
    return NULL;
}

