#include "../ops.h"

//== operators of quantized_decomposed and torchao =====================================================================
//
//  PyTorch's exported quantised models have plain integer tensors.  The operators differ in which elements share a
//  scale: all elements, a channel, a row (token), or a block.  They are composites: fakes, gradients with respect to
//  scales, vmap, traces and compiled graphs follow from the operators that they call.  They are registered when one of
//  their namespaces is looked up and no library has defined them.

//== what the operators share ==========================================================================================

/* Returns the smallest and largest number of a dtype for quantised numbers.  Returns false for other dtypes. */
static bool opdi_affine_limits(int64_t dtype, double limits[2]) {
    const bool float8 = dtype == OPD_FLOAT8_E4M3FN || dtype == OPD_FLOAT8_E5M2;
    const bool is_signed = dtype == OPD_INT8 || dtype == OPD_INT16 || dtype == OPD_INT32;
    if (!is_signed && !float8 && dtype != OPD_UINT8 && dtype != OPD_UINT16) { return false; }
    const int bits = float8 ? 0 : 8 * (int)opd_dtype_size((opd_scalar_type)dtype);
    limits[1] = dtype == OPD_FLOAT8_E4M3FN ? 448 : dtype == OPD_FLOAT8_E5M2 ? 57344
        : (double)(((int64_t)1 << (is_signed ? bits - 1 : bits)) - 1);
    limits[0] = float8 ? -limits[1] : is_signed ? -limits[1] - 1 : 0;
    return true;
}
/* Checks that low and high are numbers that dtype has.  Returns 0, or -1 and sets an error. */
static int opdi_affine_range(const opd_call *call, double low, double high, int64_t dtype) {
    const char *const name = opd_op_name(opd_call_operator(call));
    double limits[2];
    if (!opdi_affine_limits(dtype, limits)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: numbers cannot be quantised to dtype %s", name,
                        opd_dtype_name((opd_scalar_type)dtype));
    }
    if (low >= limits[0] && high <= limits[1]) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: quant_min %g to quant_max %g is out of bounds for dtype %s, which has %g "
                    "to %g", name, low, high, opd_dtype_name((opd_scalar_type)dtype), limits[0], limits[1]);
}
/* Returns argument 0 as float32.  Returns NULL and sets an error if it is not a float of at most 32 bits. */
static opd_tensor *opdi_affine_input(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    const int dtype = input->dtype;
    if (dtype == OPD_FLOAT32 || dtype == OPD_FLOAT16 || dtype == OPD_BFLOAT16) {
        return opd_to_dtype(input, OPD_FLOAT32);
    }
    (void)opd_fail(OPD_ERROR_DTYPE, "%s: input must be float32, float16 or bfloat16, but is %s",
                   opd_op_name(opd_call_operator(call)), opd_dtype_name((opd_scalar_type)dtype));
    return NULL;
}
/* Returns argument 0 if it has the dtype that argument `at` names.  Else returns NULL and sets an error. */
static opd_tensor *opdi_affine_numbers(opd_call *call, int at) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = (opd_scalar_type)opd_arg_int(call, at);
    if (opdi_affine_range(call, 0, 0, dtype)) { return NULL; }
    if (opd_dtype(input) == dtype) { return input; }
    (void)opd_fail(OPD_ERROR_DTYPE, "%s: input must have dtype %s, but has %s", opd_op_name(opd_call_operator(call)),
                   opd_dtype_name(dtype), opd_dtype_name(opd_dtype(input)));
    return NULL;
}
/* Returns argument `at`, a tensor of one element, as a tensor without dims.  Returns NULL and sets an error if it has
   another number of elements. */
static opd_tensor *opdi_affine_one(opd_call *call, int at) {
    opd_tensor *const number = opd_arg_tensor(call, at);
    if (number->numel == 1) { return opdi_reshape_to(number, NULL, 0); }
    (void)opd_fail(OPD_ERROR_SHAPE, "%s: %s must have one element, but has %lld",
                   opd_op_name(opd_call_operator(call)),
                   opd_schema_arg_name(opd_op_schema(opd_call_operator(call)), at), (long long)number->numel);
    return NULL;
}
OPDI_INTERNAL opd_tensor *opdi_coded_wide_at_once(opd_tensor *codes, opd_tensor *scale, opd_tensor *zero);
OPDI_INTERNAL opd_tensor *opdi_coded_at_once(opd_tensor *numbers, opd_tensor *inverse, opd_tensor *zero, bool late,
                                             opd_value low, opd_value high, int64_t dtype);
/* Returns `numbers` times inverse, rounded, plus zero, between low and high, in dtype.  zero may be NULL.  If `late` is
   true, rounds after zero was added. */
OPDI_INTERNAL opd_tensor *opdi_affine_quantise(opd_tensor *numbers, opd_tensor *inverse, opd_tensor *zero, bool late,
                                               opd_value low, opd_value high, int64_t dtype) {
    opd_tensor *const done = opd_ok() ? opdi_coded_at_once(numbers, inverse, zero, late, low, high, dtype) : NULL;
    if (done) { return done; }
    numbers = opd_ok() ? opd_mul(numbers, inverse) : NULL;
    if (!late) { numbers = opd_round(numbers); }
    if (zero && opd_ok()) { numbers = opd_add(numbers, zero); }
    if (late) { numbers = opd_round(numbers); }
    return opd_ok() ? opd_to_dtype(opd_clamp(numbers, low, high), (opd_scalar_type)dtype) : NULL;
}

//== one scale for all elements ========================================================================================

/* The forms of quantize_per_tensor and dequantize_per_tensor: numbers; .tensor: a scale and a zero point that are
   tensors; .tensor2: a range of tensors, too.  The scale and the zero point stay tensors, so that a graph does not
   depend on their values. */
static int opdi_affine_tensor_kernel(opd_call *call) {
    const bool tensors = opd_call_args(call)[1].tag == OPD_TAG_TENSOR;
    const bool limits = opd_call_args(call)[3].tag == OPD_TAG_TENSOR;
    const int64_t dtype = opd_arg_int(call, 5);
    opd_tensor *const input = opdi_affine_input(call);
    opd_tensor *scale = NULL, *zero = NULL;
    if (!input) { return -1; }
    if (!limits && opdi_affine_range(call, (double)opd_arg_int(call, 3), (double)opd_arg_int(call, 4), dtype)) {
        return -1;
    }
    if (tensors) {
        scale = opdi_affine_one(call, 1);
        zero = scale ? opdi_affine_one(call, 2) : NULL;
        scale = zero ? opd_to_dtype(opd_reciprocal(opd_to_dtype(scale, OPD_FLOAT64)), OPD_FLOAT32) : NULL;
    } else {
        scale = opd_tensor_wrapped_number(opd_value_double(1 / opd_arg_double(call, 1)));
        zero = scale ? opd_tensor_wrapped_number(opd_value_int(opd_arg_int(call, 2))) : NULL;
    }
    if (!limits) {
        return opd_return_tensor(call, opdi_affine_quantise(input, scale, zero, false, opd_call_args(call)[3],
                                                            opd_call_args(call)[4], dtype));
    }
    opd_tensor *const low = opdi_affine_one(call, 3), *const high = low ? opdi_affine_one(call, 4) : NULL;
    if (!high || opdi_affine_range(call, 0, 0, dtype)) { return -1; }
    opd_tensor *const numbers = opd_add(opd_round(opd_mul(input, scale)), zero);
    return opd_return_tensor(call, opd_to_dtype(opd_clamp_Tensor_full(numbers, low, high), (opd_scalar_type)dtype));
}
OPDI_INTERNAL void opdi_affine_quantize_tensor(opd_op_desc *op) {
    op->schema = "quantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, "
        "ScalarType dtype) -> Tensor";
    op->composite = opdi_affine_tensor_kernel;
}
OPDI_INTERNAL void opdi_affine_quantize_tensor_by_tensors(opd_op_desc *op) {
    op->schema = "quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int "
        "quant_max, ScalarType dtype) -> Tensor";
    op->composite = opdi_affine_tensor_kernel;
}
OPDI_INTERNAL void opdi_affine_quantize_tensor_in_tensors(opd_op_desc *op) {
    op->schema = "quantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, Tensor "
        "quant_max, ScalarType dtype) -> Tensor";
    op->composite = opdi_affine_tensor_kernel;
}

/* Returns argument `at`, an optional dtype of the result. */
static opd_scalar_type opdi_affine_out(const opd_call *call, int at) {
    return opd_arg_is_none(call, at) ? OPD_FLOAT32 : (opd_scalar_type)opd_arg_int(call, at);
}
static int opdi_affine_from_tensor_kernel(opd_call *call) {
    const bool tensors = opd_call_args(call)[1].tag == OPD_TAG_TENSOR;
    opd_tensor *input = opdi_affine_numbers(call, 5), *scale, *zero;
    if (!input) { return -1; }
    if (tensors) {
        scale = opdi_affine_one(call, 1);
        zero = scale ? opdi_affine_one(call, 2) : NULL;
    } else {
        scale = opd_tensor_wrapped_number(opd_value_double(opd_arg_double(call, 1)));
        zero = scale ? opd_tensor_wrapped_number(opd_value_int(opd_arg_int(call, 2))) : NULL;
    }
    const opd_scalar_type dtype = opdi_affine_out(call, 6);
    opd_tensor *const done = zero && dtype == OPD_FLOAT32 ? opdi_coded_wide_at_once(input, scale, zero) : NULL;
    if (done) { return opd_return_tensor(call, done); }
    input = zero ? opd_to_dtype(input, dtype) : NULL;
    return input ? opd_return_tensor(call, opd_to_dtype(opd_mul(opd_sub(input, zero), scale), dtype)) : -1;
}
OPDI_INTERNAL void opdi_affine_dequantize_tensor(opd_op_desc *op) {
    op->schema = "dequantize_per_tensor(Tensor input, float scale, int zero_point, int quant_min, int quant_max, "
        "ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor";
    op->composite = opdi_affine_from_tensor_kernel;
}
OPDI_INTERNAL void opdi_affine_dequantize_tensor_by_tensors(opd_op_desc *op) {
    op->schema = "dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, int quant_min, int "
        "quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor";
    op->composite = opdi_affine_from_tensor_kernel;
}
OPDI_INTERNAL void opdi_affine_dequantize_tensor_in_tensors(opd_op_desc *op) {
    op->schema = "dequantize_per_tensor.tensor2(Tensor input, Tensor scale, Tensor zero_point, Tensor quant_min, "
        "Tensor quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor";
    op->composite = opdi_affine_from_tensor_kernel;
}

/* Finds a scale and a zero point for the numbers of the input, such that 0 is represented exactly.  The results have
   one element each.  Symmetric: the zero point is the middle of the range. */
static int opdi_affine_choose(opd_call *call, bool symmetric) {
    const int64_t least = opd_arg_int(call, 1), most = opd_arg_int(call, 2), dtype = opd_arg_int(call, 4);
    opd_tensor *both[2], *scale, *zero;
    if (!opdi_affine_input(call) || opdi_affine_range(call, 0, 0, dtype)) { return -1; }
    if (!(least <= 0 && most >= 0 && least < most)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the range from quant_min %lld to quant_max %lld must have 0 and "
                        "another number", opd_op_name(opd_call_operator(call)), (long long)least, (long long)most);
    }
    if (opd_aminmax(both, opd_arg_tensor(call, 0))) { return -1; }
    opd_tensor *const none = opd_zeros_like(both[0]), *const low = opd_minimum(both[0], none);
    opd_tensor *const eps = opd_new_full_full(both[0], OPD_INTS(1), opd_value_double(opd_arg_double(call, 3)),
                                              opd_value_int(OPD_FLOAT32), opd_value_none(), opd_value_none(),
                                              opd_value_none());
    opd_tensor *high = opd_maximum(both[1], none);
    if (symmetric) {
        scale = opd_div_Scalar(opd_maximum(opd_neg(low), high), opd_value_double((double)(most - least) / 2));
        scale = opd_maximum(scale, eps);
        zero = opd_to_dtype(opd_full_like(scale, opd_value_int(dtype == OPD_UINT8 ? 128 : 0)), OPD_INT64);
    } else {
        scale = opd_div_Scalar(opd_sub(high, low), opd_value_double((double)(most - least)));
        scale = opd_maximum(scale, eps);
        zero = opd_to_dtype(opd_round(opd_div(low, scale)), OPD_INT64);
        zero = opd_clamp(opd_rsub_Scalar(zero, opd_value_int(least)), opd_value_int(least), opd_value_int(most));
    }
    if (!opd_ok() || opd_return_tensor(call, opd_to_dtype(scale, OPD_FLOAT64))) { return -1; }
    return opd_return_tensor(call, zero);
}
static int opdi_affine_choose_kernel(opd_call *call) { return opdi_affine_choose(call, false); }
static int opdi_affine_choose_symmetric_kernel(opd_call *call) { return opdi_affine_choose(call, true); }
OPDI_INTERNAL void opdi_affine_choose_qparams(opd_op_desc *op) {
    op->schema = "choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType dtype) -> "
        "(Tensor, Tensor)";
    op->composite = opdi_affine_choose_kernel;
}
OPDI_INTERNAL void opdi_affine_choose_qparams_symmetric(opd_op_desc *op) {
    op->schema = "choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType "
        "dtype) -> (Tensor, Tensor)";
    op->composite = opdi_affine_choose_symmetric_kernel;
}
static int opdi_affine_convert_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_to_dtype_full(opd_arg_tensor(call, 0), (opd_scalar_type)opd_arg_int(call, 1),
                                                     false, true, opd_value_none()));
}
OPDI_INTERNAL void opdi_affine_convert(opd_op_desc *op) {
    op->schema = "convert_element_type.no_fuse(Tensor input, ScalarType dtype) -> Tensor";
    op->composite = opdi_affine_convert_kernel;
}

//== a scale for each channel ==========================================================================================

/* Returns `numbers`, which has an element for each index of dim `axis` of input, with the dims of input.  Returns NULL
   and sets an error if the sizes do not match. */
static opd_tensor *opdi_affine_along(const opd_call *call, opd_tensor *numbers, const opd_tensor *input, int64_t axis) {
    const char *const name = opd_op_name(opd_call_operator(call));
    int64_t sizes[OPD_MAX_DIMS];
    if (axis < -input->ndim || axis >= input->ndim) {
        (void)opd_fail(OPD_ERROR_INDEX, "%s: axis is %lld, but input has %d dims", name, (long long)axis, input->ndim);
        return NULL;
    }
    axis += axis < 0 ? input->ndim : 0;
    if (numbers->numel != opdi_sizes(input)[axis] && numbers->numel != 1) {
        (void)opd_fail(OPD_ERROR_SHAPE, "%s: there are %lld scales or zero points, but dim %lld of input has size %lld",
                       name, (long long)numbers->numel, (long long)axis, (long long)opdi_sizes(input)[axis]);
        return NULL;
    }
    for (int i = 0; i < input->ndim; i++) { sizes[i] = i == axis ? numbers->numel : 1; }
    return opdi_reshape_to(numbers, sizes, input->ndim);
}
static int opdi_affine_channel_kernel(opd_call *call) {
    const int64_t axis = opd_arg_int(call, 3), dtype = opd_arg_int(call, 6);
    opd_tensor *const input = opdi_affine_input(call);
    if (!input || opdi_affine_range(call, (double)opd_arg_int(call, 4), (double)opd_arg_int(call, 5), dtype)) {
        return -1;
    }
    opd_tensor *const scales = opdi_affine_along(call, opd_arg_tensor(call, 1), input, axis);
    opd_tensor *const zeros = scales ? opdi_affine_along(call, opd_arg_tensor(call, 2), input, axis) : NULL;
    return !zeros ? -1 : opd_return_tensor(call, opdi_affine_quantise(
        input, opd_reciprocal(scales), zeros, false, opd_call_args(call)[4], opd_call_args(call)[5], dtype));
}
OPDI_INTERNAL void opdi_affine_quantize_channel(opd_op_desc *op) {
    op->schema = "quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int "
        "quant_max, ScalarType dtype) -> Tensor";
    op->composite = opdi_affine_channel_kernel;
}
static int opdi_affine_from_channel_kernel(opd_call *call) {
    const int64_t axis = opd_arg_int(call, 3);
    opd_tensor *numbers = opdi_affine_numbers(call, 6);
    if (!numbers || opdi_affine_range(call, (double)opd_arg_int(call, 4), (double)opd_arg_int(call, 5),
                                      opd_arg_int(call, 6))) { return -1; }
    opd_tensor *const scales = opdi_affine_along(call, opd_arg_tensor(call, 1), numbers, axis);
    if (scales && !opd_arg_is_none(call, 2)) {
        opd_tensor *const zeros = opdi_affine_along(call, opd_arg_tensor(call, 2), numbers, axis);
        numbers = zeros ? opd_sub(numbers, zeros) : NULL;
    }
    return !scales || !numbers ? -1
        : opd_return_tensor(call, opd_to_dtype(opd_mul(numbers, scales), opdi_affine_out(call, 7)));
}
OPDI_INTERNAL void opdi_affine_dequantize_channel(opd_op_desc *op) {
    op->schema = "dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, int quant_min, "
        "int quant_max, ScalarType dtype, *, ScalarType? out_dtype=None) -> Tensor";
    op->composite = opdi_affine_from_channel_kernel;
}
/* fake_quant_per_channel: the numbers after they were quantised and converted back.  Only numbers within the range have
   a gradient, which is that of the result. */
static int opdi_affine_fake_kernel(opd_call *call) {
    const int64_t axis = opd_arg_int(call, 3);
    opd_tensor *const input = opd_arg_tensor(call, 0);
    if (input->dtype != OPD_FLOAT32) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: input must be float32, but is %s", opd_op_name(opd_call_operator(call)),
                        opd_dtype_name(OPDI_DTYPE(input)));
    }
    opd_tensor *scales = opdi_affine_along(call, opd_arg_tensor(call, 1), input, axis);
    opd_tensor *zeros = scales ? opdi_affine_along(call, opd_arg_tensor(call, 2), input, axis) : NULL;
    if (!zeros) { return -1; }
    scales = opd_detach(opd_to_dtype(scales, OPD_FLOAT32));
    zeros = opd_detach(opd_to_dtype(zeros, OPD_INT32));
    const opd_value low = opd_call_args(call)[4], high = opd_call_args(call)[5];
    opd_tensor *const number = opd_add(opd_round(opd_mul(opd_detach(input), opd_reciprocal(scales))), zeros);
    opd_tensor *const inside = opd_logical_and(opd_ge_Scalar(number, low), opd_le_Scalar(number, high));
    opd_tensor *const out = opd_mul(opd_sub(opd_clamp(number, low, high), zeros), scales);
    /* The result is `out`, plus a zero that has the gradient. */
    opd_tensor *const moved = opd_where_self(inside, opd_sub(input, opd_detach(input)), opd_zeros_like(out));
    return opd_return_tensor(call, opd_add(out, moved));
}
OPDI_INTERNAL void opdi_affine_fake_channel(opd_op_desc *op) {
    op->schema = "fake_quant_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, int quant_min, int "
        "quant_max) -> Tensor";
    op->composite = opdi_affine_fake_kernel;
}

//== a scale for each row, or for groups of a row ======================================================================

static int opdi_affine_rows_choose_kernel(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *scales;
    const int64_t last = -1;
    if (opd_arg_int(call, 1) != OPD_INT8) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: dtype must be int8, but is %s", opd_op_name(opd_call_operator(call)),
                        opd_dtype_name((opd_scalar_type)opd_arg_int(call, 1)));
    }
    scales = opd_amax(opd_abs(input), opd_ints_of(&last, 1), true);
    if (input->dtype == OPD_FLOAT16) { scales = opd_to_dtype(scales, OPD_FLOAT32); }
    scales = opd_div_Scalar(opd_clamp_min(scales, opd_value_double(1e-5)), opd_value_double(127));
    return !opd_ok() || opd_return_tensor(call, scales) ? -1 : opd_return_tensor(call, opd_zeros_like(scales));
}
OPDI_INTERNAL void opdi_affine_choose_rows(opd_op_desc *op) {
    op->schema = "choose_qparams_per_token(Tensor input, ScalarType dtype) -> (Tensor, Tensor)";
    op->composite = opdi_affine_rows_choose_kernel;
}
static int opdi_affine_rows_around_kernel(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    const int64_t last = -1;
    opd_tensor *low = opd_amin(input, opd_ints_of(&last, 1), true);
    opd_tensor *high = opd_amax(input, opd_ints_of(&last, 1), true), *const none = low ? opd_zeros_like(low) : NULL;
    low = none ? opd_minimum(low, none) : NULL;
    high = none ? opd_maximum(high, none) : NULL;
    opd_tensor *const scale = opd_clamp_min(opd_div_Scalar(opd_sub(high, low), opd_value_double(255)),
                                            opd_value_double(1.1920928955078125e-07));
    low = opd_div(low, scale);
    high = opd_div(high, scale);
    opd_tensor *const shifted = opd_add_Scalar(low, opd_value_int(-128)),
        *const errors = opd_add(shifted, opd_add_Scalar(high, opd_value_int(127)));
    opd_tensor *const first = opd_rsub_Scalar(low, opd_value_int(-128)),
        *zero = opd_where_self(opd_gt_Scalar(errors, opd_value_int(0)), first,
        opd_rsub_Scalar(high, opd_value_int(127)));
    zero = opd_to_dtype(opd_round(opd_clamp(zero, opd_value_int(-128), opd_value_int(127))), OPD_INT64);
    return !opd_ok() || opd_return_tensor(call, opd_to_dtype(scale, OPD_FLOAT64)) ? -1 : opd_return_tensor(call, zero);
}
OPDI_INTERNAL void opdi_affine_choose_rows_around(opd_op_desc *op) {
    op->schema = "choose_qparams_per_token_asymmetric(Tensor input, ScalarType dtype) -> (Tensor, Tensor)";
    op->composite = opdi_affine_rows_around_kernel;
}
OPDI_INTERNAL void opdi_affine_choose_rows_inside(opd_op_desc *op) {
    op->schema = "_choose_qparams_per_token_asymmetric_impl(Tensor input, ScalarType dtype) -> (Tensor, Tensor)";
    op->composite = opdi_affine_rows_around_kernel;
}
static int opdi_affine_rows_kernel(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    const int64_t columns = input->ndim ? opdi_sizes(input)[input->ndim - 1] : 1, dtype = opd_arg_int(call, 5);
    if (opdi_affine_range(call, (double)opd_arg_int(call, 3), (double)opd_arg_int(call, 4), dtype)) { return -1; }
    for (int i = 1; i < 3; i++) {
        const int64_t count = opd_arg_tensor(call, i)->numel;
        if (count * columns == input->numel) { continue; }
        return opd_fail(OPD_ERROR_SHAPE, "%s: input has %lld rows, but there are %lld %s",
                        opd_op_name(opd_call_operator(call)), (long long)(columns ? input->numel / columns : 0),
                        (long long)count, i == 1 ? "scales" : "zero_points");
    }
    return opd_return_tensor(call, opdi_affine_quantise(input, opd_reciprocal(opd_arg_tensor(call, 1)),
                                                        opd_arg_tensor(call, 2), true, opd_call_args(call)[3],
                                                        opd_call_args(call)[4], dtype));
}
OPDI_INTERNAL void opdi_affine_quantize_rows(opd_op_desc *op) {
    op->schema = "quantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, "
        "ScalarType dtype) -> Tensor";
    op->composite = opdi_affine_rows_kernel;
}
static int opdi_affine_from_rows_kernel(opd_call *call) {
    opd_tensor *const numbers = opd_sub(opd_arg_tensor(call, 0), opd_arg_tensor(call, 2));
    return opd_return_tensor(call, opd_to_dtype(opd_mul(numbers, opd_arg_tensor(call, 1)),
                                                (opd_scalar_type)opd_arg_int(call, 6)));
}
OPDI_INTERNAL void opdi_affine_dequantize_rows(opd_op_desc *op) {
    op->schema = "dequantize_per_token(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int quant_max, "
        "ScalarType dtype, ScalarType output_dtype) -> Tensor";
    op->composite = opdi_affine_from_rows_kernel;
}
/* Reads argument 0, a matrix, as a matrix whose rows are the groups of `size` elements, and sets rest[i], i < count, to
   the numbers of argument i + 1 as a column; NULL for None.  Returns NULL and sets an error if the sizes do not
   match. */
static opd_tensor *opdi_affine_groups(opd_call *call, int64_t size, opd_tensor *rest[2]) {
    const char *const name = opd_op_name(opd_call_operator(call));
    opd_tensor *const input = opd_arg_tensor(call, 0), *const scales = opd_arg_tensor(call, 1);
    const int64_t columns = input->ndim == 2 ? opdi_sizes(input)[1] : 0;
    if (input->ndim != 2) {
        (void)opd_fail(OPD_ERROR_SHAPE, "%s: input must be a matrix, but has %d dims", name, input->ndim);
        return NULL;
    }
    if (size > columns && scales->ndim && opdi_sizes(scales)[scales->ndim - 1] == 1) { size = columns; }
    if (size <= 1 || columns % size) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: group_size must be at least 2 and must divide the %lld columns of "
                       "input, but is %lld", name, (long long)columns, (long long)size);
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        opd_tensor *const numbers = opd_arg_is_none(call, 1 + i) ? NULL : opd_arg_tensor(call, 1 + i);
        const int64_t groups = input->numel / size, shape[2] = {groups, 1};
        rest[i] = NULL;
        if (!numbers) { continue; }
        if (numbers->numel != groups) {
            (void)opd_fail(OPD_ERROR_SHAPE, "%s: input has %lld groups, but there are %lld %s", name,
                           (long long)groups, (long long)numbers->numel, i ? "zero_points" : "scales");
            return NULL;
        }
        if (!(rest[i] = opdi_reshape_to(numbers, shape, 2))) { return NULL; }
    }
    const int64_t shape[2] = {input->numel / size, size};
    return opdi_reshape_to(input, shape, 2);
}
static int opdi_affine_groups_kernel(opd_call *call) {
    const int64_t dtype = opd_arg_int(call, 5);
    opd_tensor *const input = opd_arg_tensor(call, 0), *rest[2];
    opd_tensor *groups = opdi_affine_groups(call, opd_arg_int(call, 6), rest);
    groups = !groups ? NULL : opdi_affine_quantise(groups, opd_reciprocal(rest[0]), rest[1], true,
                                                   opd_call_args(call)[3], opd_call_args(call)[4], dtype);
    return groups ? opd_return_tensor(call, opdi_reshape_to(groups, opdi_sizes(input), 2)) : -1;
}
OPDI_INTERNAL void opdi_affine_quantize_groups(opd_op_desc *op) {
    op->schema = "quantize_per_channel_group(Tensor input, Tensor scales, Tensor zero_points, int quant_min, int "
        "quant_max, ScalarType dtype, int group_size) -> Tensor";
    op->composite = opdi_affine_groups_kernel;
}
static int opdi_affine_from_groups_kernel(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *rest[2];
    opd_tensor *groups = opdi_affine_groups(call, opd_arg_int(call, 6), rest);
    if (groups && rest[1]) { groups = opd_sub(groups, rest[1]); }
    groups = groups ? opdi_reshape_to(opd_mul(groups, rest[0]), opdi_sizes(input), 2) : NULL;
    return groups ? opd_return_tensor(call, opd_to_dtype(groups, (opd_scalar_type)opd_arg_int(call, 7))) : -1;
}
OPDI_INTERNAL void opdi_affine_dequantize_groups(opd_op_desc *op) {
    op->schema = "dequantize_per_channel_group(Tensor input, Tensor scales, Tensor? zero_points, int quant_min, int "
        "quant_max, ScalarType dtype, int group_size, ScalarType output_dtype) -> Tensor";
    op->composite = opdi_affine_from_groups_kernel;
}

//== a scale for each block of elements ================================================================================

/* How a tensor is divided into blocks (torchao).  Each dim that has several blocks becomes two dims: the number of the
   block, and the place in it. */
typedef struct opdi_affine_blocks {
    int64_t sizes[OPD_MAX_DIMS], scales[OPD_MAX_DIMS];      /* [ndim]: the sizes of the divided tensor, and of scales */
    int64_t dims[OPD_MAX_DIMS];  /* [ndims]: the dims of the divided tensor that are inside of blocks */
    int64_t counts[OPD_MAX_DIMS];                 /* the number of blocks along each dim of the tensor */
    int ndim, ndims;
} opdi_affine_blocks;

/* Divides a tensor into blocks of the sizes that argument `at` has.  Returns 0, or -1 and sets an error. */
static int opdi_affine_divide(const opd_call *call, int at, const opd_tensor *tensor, opdi_affine_blocks *blocks) {
    const char *const name = opd_op_name(opd_call_operator(call));
    const opd_ints block = opd_arg_ints(call, at);
    if (block.n != tensor->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: block_size has %lld elements, but the tensor has %d dims", name,
                        (long long)block.n, tensor->ndim);
    }
    blocks->ndim = blocks->ndims = 0;
    for (int i = 0; i < tensor->ndim; i++) {
        const int64_t size = opdi_sizes(tensor)[i], each = block.data[i] < 1 ? size : block.data[i];   /* -1: all */
        if (each != size && size % each) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: dim %d has size %lld, which is no multiple of block_size %lld",
                            name, i, (long long)size, (long long)each);
        }
        const bool divided = each != size && each > 1;
        if (blocks->ndim + divided >= OPD_MAX_DIMS) {
            return opd_fail(OPD_ERROR_SHAPE, "%s: the tensor has too many dims to be divided into blocks", name);
        }
        if (divided) {
            blocks->sizes[blocks->ndim] = blocks->scales[blocks->ndim] = size / each;
            blocks->ndim++;
        }
        blocks->sizes[blocks->ndim] = divided ? each : size;
        blocks->scales[blocks->ndim] = each > 1 ? 1 : size;
        if (each > 1) { blocks->dims[blocks->ndims++] = blocks->ndim; }
        blocks->counts[i] = each ? size / each : 0;
        blocks->ndim++;
    }
    return 0;
}
/* Returns argument `at`, a tensor with a number for each block, with the dims of the divided tensor.  Returns NULL for
   None and for a tensor without elements; else, if the tensor does not fit, sets an error, too. */
static opd_tensor *opdi_affine_of_blocks(const opd_call *call, int at, const opdi_affine_blocks *blocks) {
    opd_tensor *const numbers = opd_arg_is_none(call, at) ? NULL : opd_arg_tensor(call, at);
    int64_t count = 1;
    for (int i = 0; i < blocks->ndim; i++) { count *= blocks->scales[i]; }
    if (!numbers || (!numbers->numel && count)) { return NULL; }
    if (numbers->numel == count) { return opdi_reshape_to(numbers, blocks->scales, blocks->ndim); }
    (void)opd_fail(OPD_ERROR_SHAPE, "%s: there are %lld blocks, but %s has %lld elements",
                   opd_op_name(opd_call_operator(call)), (long long)count,
                   opd_schema_arg_name(opd_op_schema(opd_call_operator(call)), at), (long long)numbers->numel);
    return NULL;
}
/* Sets limits to the arguments `at` and at + 1, optional numbers, or to the limits of dtype.  Returns 0, or -1 and sets
   an error. */
static int opdi_affine_numbers_of(const opd_call *call, int at, int64_t dtype, double limits[2]) {
    if (opdi_affine_range(call, 0, 0, dtype)) { return -1; }
    (void)opdi_affine_limits(dtype, limits);
    for (int i = 0; i < 2; i++) {
        const opd_value number = opd_call_args(call)[at + i];
        if (number.tag != OPD_TAG_NONE) { limits[i] = number.tag == OPD_TAG_FLOAT ? number.u.d : (double)number.u.i; }
    }
    return opdi_affine_range(call, limits[0], limits[1], dtype);
}
static bool opdi_affine_is_float(int64_t dtype) {
    return dtype == OPD_FLOAT32 || dtype == OPD_FLOAT16 || dtype == OPD_BFLOAT16;
}
static int opdi_affine_float_fail(const opd_call *call, const char *what, int64_t dtype) {
    return opd_fail(OPD_ERROR_DTYPE, "%s: %s must be float32, float16 or bfloat16, but is %s",
                    opd_op_name(opd_call_operator(call)), what, opd_dtype_name((opd_scalar_type)dtype));
}
static int opdi_affine_blocks_kernel(opd_call *call) {
    const int64_t dtype = opd_arg_int(call, 4);
    opd_tensor *const input = opd_arg_tensor(call, 0);
    opdi_affine_blocks blocks;
    double limits[2];
    if (opdi_affine_numbers_of(call, 5, dtype, limits)) { return -1; }
    if (!opdi_affine_is_float(input->dtype)) { return opdi_affine_float_fail(call, "input", input->dtype); }
    if (opdi_affine_divide(call, 1, input, &blocks)) { return -1; }
    opd_tensor *const divided = opdi_reshape_to(input, blocks.sizes, blocks.ndim);
    opd_tensor *const scales = opdi_affine_of_blocks(call, 2, &blocks);
    opd_tensor *const zeros = opdi_affine_of_blocks(call, 3, &blocks);
    if (!scales || !opd_ok()) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: scale has no elements", opd_op_name(opd_call_operator(call)));
    }
    opd_tensor *const numbers = opdi_affine_quantise(divided, opd_reciprocal(scales), zeros, false,
                                                     opd_value_double(limits[0]), opd_value_double(limits[1]), dtype);
    return numbers ? opd_return_tensor(call, opdi_reshape_to(numbers, opdi_sizes(input), input->ndim)) : -1;
}
OPDI_INTERNAL void opdi_affine_quantize_blocks(opd_op_desc *op) {
    op->schema = "quantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType "
        "output_dtype, Scalar? quant_min=None, Scalar? quant_max=None) -> Tensor";
    op->composite = opdi_affine_blocks_kernel;
}
static int opdi_affine_from_blocks_kernel(opd_call *call) {
    const opd_scalar_type dtype = (opd_scalar_type)opd_arg_int(call, 7);
    opd_tensor *const input = opdi_affine_numbers(call, 4);
    opdi_affine_blocks blocks;
    double limits[2];
    if (!input || opdi_affine_numbers_of(call, 5, input->dtype, limits)) { return -1; }
    if (!opdi_affine_is_float(dtype)) { return opdi_affine_float_fail(call, "output_dtype", dtype); }
    if (opdi_affine_divide(call, 1, input, &blocks)) { return -1; }
    opd_tensor *const scales = opdi_affine_of_blocks(call, 2, &blocks);
    opd_tensor *const zeros = opdi_affine_of_blocks(call, 3, &blocks);
    if (!scales || !opd_ok()) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: scale has no elements", opd_op_name(opd_call_operator(call)));
    }
    opd_tensor *numbers = opd_to_dtype(opdi_reshape_to(input, blocks.sizes, blocks.ndim), dtype);
    if (zeros) { numbers = opd_sub(numbers, opd_to_dtype(zeros, dtype)); }
    numbers = opd_mul(numbers, scales);
    numbers = numbers ? opdi_reshape_to(numbers, opdi_sizes(input), input->ndim) : NULL;
    return numbers ? opd_return_tensor(call, opd_to_dtype(numbers, dtype)) : -1;
}
OPDI_INTERNAL void opdi_affine_dequantize_blocks(opd_op_desc *op) {
    op->schema = "dequantize_affine(Tensor input, SymInt[] block_size, Tensor scale, Tensor? zero_point, ScalarType "
        "input_dtype, Scalar? quant_min=None, Scalar? quant_max=None, ScalarType output_dtype=6) -> Tensor";
    op->composite = opdi_affine_from_blocks_kernel;
}

/* Returns the smallest normal number of a floating dtype. */
static double opdi_affine_smallest(int dtype) {
    return dtype == OPD_FLOAT16 ? ldexp(1, -14) : ldexp(1, dtype == OPD_FLOAT64 ? -1022 : -126);
}
/* Sets *scale and *zero to the scales and zero points of blocks whose numbers lie between low and high, which include
   0.  limits: the range of the integers.  mapping: "SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR" or "ASYMMETRIC". */
static void opdi_affine_map(const char *mapping, opd_tensor *low, opd_tensor *high, const double limits[2], double eps,
                            opd_tensor **scale, opd_tensor **zero) {
    const double width = limits[1] - limits[0];
    if (strcmp(mapping, "ASYMMETRIC") == 0) {
        *scale = opd_clamp_min(opd_div_Scalar(opd_sub(high, low), opd_value_double(width)), opd_value_double(eps));
        *zero = opd_rsub_Scalar(opd_round(opd_div(low, *scale)), opd_value_double(limits[0]));
        *zero = opd_clamp(*zero, opd_value_double(limits[0]), opd_value_double(limits[1]));
        return;
    }
    if (strcmp(mapping, "SYMMETRIC") == 0) {
        *scale = opd_div_Scalar(opd_maximum(opd_neg(low), high), opd_value_double(width / 2));
    } else {
        opd_tensor *const below = opd_div_Scalar(low, opd_value_double(limits[0]));
        opd_tensor *const above = opd_div_Scalar(high, opd_value_double(limits[1]));
        *scale = opd_where_self(opd_gt(below, above), below, above);
    }
    *zero = opd_full_like(*scale, opd_value_double(trunc((limits[0] + limits[1] + 1) / 2)));
    *scale = opd_clamp_min(*scale, opd_value_double(eps));
}
static int opdi_affine_blocks_choose_kernel(opd_call *call) {
    const char *const name = opd_op_name(opd_call_operator(call)), *const mapping = opd_arg_str(call, 1);
    const int64_t dtype = opd_arg_int(call, 3);
    const bool around = mapping && strcmp(mapping, "ASYMMETRIC") == 0, keep = opd_arg_bool(call, 9);
    opd_tensor *const input = opd_arg_is_none(call, 0) ? NULL : opd_arg_tensor(call, 0), *scale, *zero;
    opdi_affine_blocks blocks;
    double limits[2];
    if (!input) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: input must be a tensor", name); }
    if (!mapping || (!around && strcmp(mapping, "SYMMETRIC") != 0 &&
                     strcmp(mapping, "SYMMETRIC_NO_CLIPPING_ERR") != 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: mapping_type must be SYMMETRIC, SYMMETRIC_NO_CLIPPING_ERR or "
                        "ASYMMETRIC, but is %s", name, mapping ? mapping : "None");
    }
    if (!opd_dtype_is_floating(OPDI_DTYPE(input))) { return opdi_affine_float_fail(call, "input", input->dtype); }
    if (opdi_affine_numbers_of(call, 4, dtype, limits) || opdi_affine_divide(call, 2, input, &blocks)) { return -1; }
    const double eps = !opd_arg_is_none(call, 6) ? opd_arg_double(call, 6) : opdi_affine_smallest(input->dtype);
    opd_tensor *const divided = opdi_reshape_to(input, blocks.sizes, blocks.ndim);
    const opd_ints dims = opd_ints_of(blocks.dims, blocks.ndims);
    opd_tensor *low = divided, *high = divided;
    if (blocks.ndims) {
        low = opd_amin(divided, dims, keep);
        high = opd_amax(divided, dims, keep);
    }
    opd_tensor *const none = low ? opd_zeros_like(low) : NULL;
    if (!none) { return -1; }
    opd_tensor *const least = opd_minimum(low, none);
    opdi_affine_map(mapping, least, opd_maximum(high, none), limits, eps, &scale, &zero);
    if (keep && opd_ok()) {
        scale = opdi_reshape_to(scale, blocks.counts, input->ndim);
        zero = opdi_reshape_to(zero, blocks.counts, input->ndim);
    }
    if (!opd_arg_is_none(call, 7)) { scale = opd_to_dtype(scale, (opd_scalar_type)opd_arg_int(call, 7)); }
    if (!opd_arg_is_none(call, 8)) { zero = opd_to_dtype(zero, (opd_scalar_type)opd_arg_int(call, 8)); }
    else if (around) { zero = opd_to_dtype(zero, OPD_INT32); }
    return !opd_ok() || opd_return_tensor(call, scale) ? -1 : opd_return_tensor(call, zero);
}
OPDI_INTERNAL void opdi_affine_choose_blocks(opd_op_desc *op) {
    op->schema = "choose_qparams_affine(Tensor? input, str mapping_type, SymInt[] block_size, ScalarType target_dtype, "
        "Scalar? quant_min=None, Scalar? quant_max=None, float? eps=None, ScalarType? scale_dtype=None, ScalarType? "
        "zero_point_dtype=None, bool keepdim=False) -> (Tensor, Tensor)";
    op->composite = opdi_affine_blocks_choose_kernel;
}

//== float8 ============================================================================================================

static int opdi_affine_float8_choose_kernel(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    const int64_t kind = opd_arg_int(call, 3);
    opdi_affine_blocks blocks;
    double limits[2];
    if (kind != OPD_FLOAT32 && kind != OPD_FLOAT8_E8M0FNU) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: scale_dtype must be float32 or float8_e8m0fnu, but is %s",
                        opd_op_name(opd_call_operator(call)), opd_dtype_name((opd_scalar_type)kind));
    }
    if (opdi_affine_range(call, 0, 0, opd_arg_int(call, 2)) || opdi_affine_divide(call, 1, input, &blocks)) {
        return -1;
    }
    (void)opdi_affine_limits(opd_arg_int(call, 2), limits);
    opd_tensor *most = opd_abs(opdi_reshape_to(input, blocks.sizes, blocks.ndim));
    if (blocks.ndims) { most = opd_amax(most, opd_ints_of(blocks.dims, blocks.ndims), true); }
    if (!opd_arg_is_none(call, 4) || !opd_arg_is_none(call, 5)) {
        most = opd_clamp(most, opd_call_args(call)[4], opd_call_args(call)[5]);
    }
    opd_tensor *scale = opd_div_Scalar(most, opd_value_double(limits[1]));
    scale = scale ? opdi_reshape_to(scale, blocks.counts, input->ndim) : NULL;
    if (kind == OPD_FLOAT8_E8M0FNU) { scale = opd_exp2(opd_round(opd_log2(scale))); }
    return scale ? opd_return_tensor(call, opd_to_dtype(scale, OPD_FLOAT32)) : -1;
}
OPDI_INTERNAL void opdi_affine_choose_float8(opd_op_desc *op) {
    op->schema = "choose_scale_float8(Tensor tensor, SymInt[] block_size, ScalarType float8_dtype=24, ScalarType "
        "scale_dtype=6, float? hp_value_lb=None, float? hp_value_ub=None) -> Tensor";
    op->composite = opdi_affine_float8_choose_kernel;
}
/* Returns argument 1, scales for the blocks of argument 0, as a tensor that can be broadcast with argument 0.  Returns
   NULL and sets an error if its sizes do not divide the sizes of argument 0. */
static opd_tensor *opdi_affine_spread(const opd_call *call) {
    const opd_tensor *const tensor = opd_arg_tensor(call, 0);
    opd_tensor *scale = opd_arg_tensor(call, 1);
    bool fits = scale->ndim <= tensor->ndim;
    for (int i = 1; fits && i <= scale->ndim; i++) {
        const int64_t have = opdi_sizes(scale)[scale->ndim - i];
        fits = have == 1 || have == opdi_sizes(tensor)[tensor->ndim - i];
    }
    if (fits || scale->numel == 1) { return scale; }
    for (int i = 0; scale->ndim == tensor->ndim && i < tensor->ndim; i++) {
        const int64_t have = opdi_sizes(scale)[i], size = opdi_sizes(tensor)[i];
        if (!have || size % have) { break; }
        if (size != have) {
            scale = opd_repeat_interleave_full(scale, size / have, opd_value_int(i), opd_value_none());
        }
        if (!scale) { return NULL; }
        fits = i == tensor->ndim - 1;
    }
    if (fits) { return scale; }
    (void)opd_fail(OPD_ERROR_SHAPE, "%s: the sizes of scale must divide the sizes of tensor",
                   opd_op_name(opd_call_operator(call)));
    return NULL;
}
static int opdi_affine_float8_kernel(opd_call *call) {
    const int64_t dtype = opd_arg_int(call, 2);
    opd_tensor *const scale = opdi_affine_range(call, 0, 0, dtype) ? NULL : opdi_affine_spread(call);
    double limits[2];
    if (!scale) { return -1; }
    (void)opdi_affine_limits(dtype, limits);
    opd_tensor *const scaled = opd_div(opd_to_dtype(opd_arg_tensor(call, 0), OPD_FLOAT32), scale);
    return opd_return_tensor(call, opd_to_dtype(opd_clamp(scaled, opd_value_double(limits[0]),
                                                          opd_value_double(limits[1])), (opd_scalar_type)dtype));
}
OPDI_INTERNAL void opdi_affine_quantize_float8(opd_op_desc *op) {
    op->schema = "quantize_affine_float8_non_decomposed(Tensor tensor, Tensor scale, ScalarType float8_dtype=24) -> "
        "Tensor";
    op->composite = opdi_affine_float8_kernel;
}
static int opdi_affine_from_float8_kernel(opd_call *call) {
    opd_tensor *const scale = opdi_affine_spread(call);
    opd_tensor *const numbers = scale ? opd_to_dtype(opd_arg_tensor(call, 0), OPD_FLOAT32) : NULL;
    return numbers ? opd_return_tensor(call, opd_to_dtype(opd_mul(numbers, scale),
                                                          (opd_scalar_type)opd_arg_int(call, 2))) : -1;
}
OPDI_INTERNAL void opdi_affine_dequantize_float8(opd_op_desc *op) {
    op->schema = "dequantize_affine_float8_non_decomposed(Tensor tensor, Tensor scale, ScalarType output_dtype=6) -> "
        "Tensor";
    op->composite = opdi_affine_from_float8_kernel;
}

//== products of integers ==============================================================================================

static int opdi_affine_product_kernel(opd_call *call) {
    return opd_return_tensor(call, opd__int_mm(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)));
}
OPDI_INTERNAL void opdi_affine_product(opd_op_desc *op) {
    op->schema = "int_matmul(Tensor a, Tensor b) -> Tensor";
    op->composite = opdi_affine_product_kernel;
}
static int opdi_affine_scaled_product_kernel(opd_call *call) {
    opd_tensor *const a = opd_arg_tensor(call, 0), *const scales = opd_arg_tensor(call, 2);
    const int64_t rows = a->ndim ? opdi_sizes(a)[0] : 0;
    if (!opd_dtype_is_floating(OPDI_DTYPE(scales)) || (scales->numel != 1 && scales->numel != rows)) {
        return opd_fail(OPD_ERROR_SHAPE, "torchao::int_scaled_matmul: scales1 must have a floating dtype, and an "
                        "element for each of the %lld rows of a, or one", (long long)rows);
    }
    opd_tensor *const sums = opd__int_mm(a, opd_arg_tensor(call, 1));
    const int64_t column[2] = {scales->numel, 1};
    opd_tensor *const each = sums ? opdi_reshape_to(scales, column, 2) : NULL;
    return each ? opd_return_tensor(call, opd_mul(opd_to_dtype(sums, OPDI_DTYPE(scales)), each)) : -1;
}
OPDI_INTERNAL void opdi_affine_scaled_product(opd_op_desc *op) {
    op->schema = "int_scaled_matmul(Tensor a, Tensor b, Tensor scales1) -> Tensor";
    op->composite = opdi_affine_scaled_product_kernel;
}
