#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:coded     layers whose weights, and perhaps inputs, are codes of 8 bits
//
//  opd_graph_fuse_quantized makes these operators of layers between conversions (src/graphs/quantized_layers.c).  They
//  compute what the conversions and the layer would; if no other layer has to see those, on integers, or on a few
//  weights at a time that become floats.
//----------------------------------------------------------------------------------------------------------------------

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
/* Makes *out: an empty tensor of dtype with the strides that a pointwise operator gives its result for `from`.  Returns
   `from` as a tensor of its dtype with these strides, or NULL and sets an error. */
static opd_tensor *opdi_coded_laid(opd_tensor *from, int64_t dtype, opd_tensor **out) {
    int64_t strides[OPD_MAX_DIMS];
    const size_t bytes = (size_t)from->ndim * sizeof *strides;
    opdi_strides_like(from, strides);
    *out = opdi_own(opdi_tensor_make(opdi_sizes(from), strides, from->ndim, (opd_scalar_type)dtype, OPD_CPU));
    if (!*out) { return NULL; }
    if (!(from->flags & OPDI_LAZY) && memcmp(opdi_strides(from), strides, bytes) == 0) { return from; }
    opd_tensor *const copy = opdi_own(opdi_tensor_make(opdi_sizes(from), strides, from->ndim, OPDI_DTYPE(from),
                                                       OPD_CPU));
    return copy && opdi_copy(copy, from) == 0 ? copy : NULL;
}
/* Returns whether the elements of each `row` elements, by the order of indices, lie together, row by row. */
static bool opdi_coded_rows_lie_together(const opd_tensor *tensor, int64_t row) {
    int64_t inner = 1;
    for (int dim = tensor->ndim - 1; dim >= 0; dim--) {
        const int64_t size = opdi_sizes(tensor)[dim];
        if (inner >= row && size != 1 && opdi_strides(tensor)[dim] != inner) { return false; }
        inner *= size;
    }
    return true;
}
/* Returns (codes - zero) * scale as float32, computed in one pass; scale and zero have one element.  Returns NULL,
   without an error, if that is not possible. */
OPDI_INTERNAL opd_tensor *opdi_coded_wide_at_once(opd_tensor *codes, opd_tensor *scale, opd_tensor *zero) {
    opdi_coded_rows rows;
    if ((codes->dtype != OPD_INT8 && codes->dtype != OPD_UINT8) || !codes->numel || scale->numel != 1 ||
        zero->numel != 1 || !opdi_nothing_follows() || !opdi_in_memory(codes) ||
        ((scale->flags | zero->flags) & OPDI_REQUIRES_GRAD)) { return NULL; }
    opd_tensor *out;
    codes = opdi_coded_laid(codes, OPD_FLOAT32, &out);
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
    opd_tensor *out;
    numbers = opdi_coded_laid(numbers, dtype, &out);
    inverse = opdi_coded_floats_of(inverse);
    zero = zero ? opdi_coded_floats_of(zero) : opd_zeros(opd_ints_of(NULL, 0), OPD_FLOAT32);
    (void)opd_grad_mode_set(grad);
    if (!numbers || !inverse || !zero || !opdi_coded_rows_lie_together(out, row)) { return NULL; }
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

//== the conversion of codes to floats =================================================================================

/* Which operator converts codes to floats: its number (OPDI_CODED_BY_...), the dtype that it says the codes have,
   group_size or the last element of block_size, and the number of elements of block_size.  Number 0: the caller has
   checked the codes and scales. */
typedef struct opdi_coded_rule { int64_t kind, dtype, group, ndim; } opdi_coded_rule;

/* Returns rule `which` of argument `at`, a list of ints, which may be empty. */
static opdi_coded_rule opdi_coded_rule_at(const opd_call *call, int at, int which) {
    const opd_ints list = opd_arg_ints(call, at);
    opdi_coded_rule rule;
    memset(&rule, 0, sizeof rule);
    if (list.n < 4 * which + 4) { return rule; }
    rule.kind = list.data[4 * which];
    rule.dtype = list.data[4 * which + 1];
    rule.group = list.data[4 * which + 2];
    rule.ndim = list.data[4 * which + 3];
    return rule;
}
/* Checks that a rule names an operator, and a number of dims.  Returns 0, or -1 and sets an error. */
static int opdi_coded_rule_check(const opd_call *call, const opdi_coded_rule *rule) {
    if (rule->kind >= 0 && rule->kind <= OPDI_CODED_BY_BLOCK && rule->ndim >= 0 && rule->ndim <= OPD_MAX_DIMS) {
        return 0;
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: a rule begins with %lld and ends with %lld, but must begin with the number"
                    " of an operator, 0 to %d, and end with a number of dims, 0 to %d",
                    opd_op_name(opd_call_operator(call)), (long long)rule->kind, (long long)rule->ndim,
                    (int)OPDI_CODED_BY_BLOCK, OPD_MAX_DIMS);
}
/* Returns whether the sizes of scales or zero points are what the conversion needs, and have no meaning beside that. */
static bool opdi_coded_steps_fit(const opdi_coded_rule *rule, const opd_tensor *codes, const opd_tensor *steps) {
    const int last = codes->ndim - 1;
    const int64_t columns = last < 0 ? 1 : opdi_sizes(codes)[last];
    const int64_t group = rule->kind == OPDI_CODED_BY_BLOCK && rule->group < 1 ? columns : rule->group;
    bool fits = true;
    switch (rule->kind) {
    case OPDI_CODED_BY_TENSOR: return steps->numel == 1;
    case OPDI_CODED_BY_CHANNEL: return last >= 0 && (steps->numel == 1 || steps->numel == opdi_sizes(codes)[0]);
    case OPDI_CODED_BY_TOKEN:
        fits = last >= 0 && steps->ndim == codes->ndim && opdi_sizes(steps)[last] == 1;
        return fits && memcmp(opdi_sizes(steps), opdi_sizes(codes), (size_t)last * sizeof(int64_t)) == 0;
    case OPDI_CODED_BY_GROUP: fits = codes->ndim == 2 && group > 1; break;
    default: fits = codes->ndim == rule->ndim && last >= 0; break;
    }
    return fits && group > 0 && columns % group == 0 && steps->numel == codes->numel / group;
}
/* Returns whether the conversion would succeed, and whether its floats are (codes - zeros) * scales in float32.  Some
   conversions subtract integers, so that 8-bit zero points wrap around, and multiply in the dtype of the scales. */
static bool opdi_coded_fits(const opdi_coded_rule *rule, const opd_tensor *codes, const opd_tensor *scales,
                            const opd_tensor *zeros) {
    const bool whole = rule->kind != OPDI_CODED_BY_TENSOR && rule->kind != OPDI_CODED_BY_BLOCK;
    if (!rule->kind) { return true; }
    if (!scales || codes->dtype != rule->dtype || !opdi_coded_steps_fit(rule, codes, scales) ||
        (zeros && !opdi_coded_steps_fit(rule, codes, zeros))) { return false; }
    if (!whole) { return true; }
    return (scales->dtype == OPD_FLOAT32 || scales->dtype == OPD_FLOAT64) &&
        (!zeros || zeros->dtype == OPD_INT32 || zeros->dtype == OPD_INT64 || zeros->dtype == OPD_FLOAT32 ||
         zeros->dtype == OPD_FLOAT64);
}
/* Returns codes as floats, or NULL and sets an error, as the conversion itself does. */
static opd_tensor *opdi_coded_convert(const opdi_coded_rule *rule, opd_tensor *codes, opd_tensor *scales,
                                      opd_tensor *zeros) {
    static const char *const names[] = {
        "quantized_decomposed::dequantize_per_tensor.tensor", "quantized_decomposed::dequantize_per_channel",
        "quantized_decomposed::dequantize_per_token", "quantized_decomposed::dequantize_per_channel_group",
        "torchao::dequantize_affine"};
    const opd_value none = opd_value_int(0), dtype = opd_value_int(rule->dtype), out = opd_value_int(OPD_FLOAT32);
    opd_op *const op = opd_find(names[rule->kind - 1]);
    int64_t block[OPD_MAX_DIMS];
    opd_value args[8];
    int at = 3;
    if (!op) { return NULL; }
    for (int i = 0; i < OPD_MAX_DIMS; i++) { block[i] = i == rule->ndim - 1 ? rule->group : 1; }
    args[0] = opd_value_tensor(codes);
    args[1] = opd_value_tensor(scales);
    args[2] = opd_value_tensor(zeros);
    if (rule->kind == OPDI_CODED_BY_BLOCK) {
        args[3] = args[2];
        args[2] = args[1];
        args[1] = opd_value_ints(block, rule->ndim);
        args[4] = dtype;
        return opd_call_op(op, args, 5);
    }
    if (rule->kind == OPDI_CODED_BY_CHANNEL) { args[at++] = none; }     /* the axis */
    args[at++] = none;                            /* quant_min and quant_max, which change nothing */
    args[at++] = none;
    args[at++] = dtype;
    if (rule->kind == OPDI_CODED_BY_GROUP) { args[at++] = opd_value_int(rule->group); }
    if (rule->kind == OPDI_CODED_BY_GROUP || rule->kind == OPDI_CODED_BY_TOKEN) { args[at++] = out; }
    return opd_call_op(op, args, at);
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
/* What follows a layer, from argument `at` on: Tensor? other, Tensor? other_scale, Tensor? other_zero_point, float[]
   ending.  The codes `other` are added, as floats; then the sum is limited to ending[0] .. ending[1]; then the function
   ending[8] is applied; then the result becomes codes: ending[2] to ending[7] are the scale, the zero point, quant_min,
   quant_max, the dtype and the memory format.  If the dtype is float32, it stays as it is.  `ending` may be shorter.
   Then: int[] rules, which has an opdi_coded_rule for the input and one for the weight, and the dtype of `other`; or is
   empty. */
enum { OPDI_CODED_GELU = 1, OPDI_CODED_GELU_TANH, OPDI_CODED_SILU };
typedef struct opdi_coded_ending {
    int at;
    bool limited, codes;
    double low, high, scale, zero, least, most;
    opd_scalar_type dtype;
    bool last;                                    /* the codes are channels-last */
    int function;                                 /* 0 or OPDI_CODED_... */
    const opd_tensor *other;
    int64_t other_dtype;                          /* the dtype that `other` must have; 0: the caller has checked it */
} opdi_coded_ending;
/* Reads *ending.  Returns 0, or -1 and sets an error. */
static int opdi_coded_ending_read(const opd_call *call, int at, opdi_coded_ending *ending) {
    const opd_value *const list = opd_call_args(call) + at + 3;
    memset(ending, 0, sizeof *ending);
    ending->at = at;
    ending->other = opdi_coded_arg(call, at);
    const opd_ints rules = opd_arg_ints(call, at + 4);
    if (rules.n != 0 && rules.n != 9) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: rules must have 0 or 9 numbers, but has %lld",
                        opd_op_name(opd_call_operator(call)), (long long)rules.n);
    }
    for (int i = 0; i < 2; i++) {
        const opdi_coded_rule rule = opdi_coded_rule_at(call, at + 4, i);
        if (opdi_coded_rule_check(call, &rule)) { return -1; }
    }
    ending->other_dtype = rules.n ? rules.data[8] : 0;
    if (list->tag != OPD_TAG_FLOATS || list->n == 0) { return 0; }
    const double *const d = list->u.floats;
    if (list->n != 2 && list->n != 8 && list->n != 9) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: ending must have 0, 2, 8 or 9 numbers, but has %d",
                        opd_op_name(opd_call_operator(call)), (int)list->n);
    }
    if (list->n == 9 && !(d[8] >= 0 && d[8] <= (double)OPDI_CODED_SILU)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: ending[8] must be 0 to %d, the number of a function, but is %g",
                        opd_op_name(opd_call_operator(call)), (int)OPDI_CODED_SILU, d[8]);
    }
    ending->low = d[0];
    ending->high = d[1];
    ending->limited = d[0] > -(double)INFINITY || d[1] < (double)INFINITY;
    if (list->n == 2) { return 0; }
    ending->codes = (int)d[6] != OPD_FLOAT32;
    ending->scale = d[2];
    ending->zero = d[3];
    ending->least = d[4];
    ending->most = d[5];
    ending->dtype = (opd_scalar_type)d[6];
    ending->last = d[7] > 0;
    ending->function = list->n == 9 ? (int)d[8] : 0;
    return 0;
}
/* Returns what follows a layer with the result y, computed by operators.  The codes keep the strides of y, because
   operators that are called one by one also dequantise to the strides that they find. */
static opd_tensor *opdi_coded_finish(const opd_call *call, const opdi_coded_ending *ending, opd_tensor *y) {
    const opd_value none = opd_value_none();
    if (y && ending->other && ending->other_dtype) {
        const opdi_coded_rule rule = {OPDI_CODED_BY_TENSOR, ending->other_dtype, 0, 0};
        opd_tensor *const other = opdi_coded_convert(&rule, opd_arg_tensor(call, ending->at),
                                                     opd_arg_tensor(call, ending->at + 1),
                                                     opd_arg_tensor(call, ending->at + 2));
        y = other ? opd_add(y, other) : NULL;
    } else if (y && ending->other) {
        opd_tensor *const codes = opd_to_dtype(opd_arg_tensor(call, ending->at), OPD_FLOAT32);
        opd_tensor *const zero = opd_to_dtype(opd_arg_tensor(call, ending->at + 2), OPD_FLOAT32);
        opd_tensor *const other = opd_ok() ? opd_mul(opd_sub(codes, zero), opd_arg_tensor(call, ending->at + 1)) : NULL;
        y = other ? opd_add(y, opd_to_dtype(other, OPD_FLOAT32)) : NULL;
    }
    if (y && ending->limited) {
        const bool below = ending->low > -(double)INFINITY, above = ending->high < (double)INFINITY;
        y = !(ending->low < 0 || ending->low > 0) && !above ? opd_relu(y)
            : opd_clamp(y, below ? opd_value_double(ending->low) : none, above ? opd_value_double(ending->high) : none);
    }
    if (y && ending->function) {
        y = ending->function == OPDI_CODED_SILU ? opd_silu(y)
            : opd_gelu_full(y, ending->function == OPDI_CODED_GELU ? "none" : "tanh");
    }
    if (!y || !ending->codes) { return y; }
    opd_tensor *const inverse = opd_tensor_wrapped_number(opd_value_double(1 / ending->scale));
    opd_tensor *const zero = opd_tensor_wrapped_number(opd_value_int((int64_t)ending->zero));
    return inverse && zero ? opdi_affine_quantise(opd_to_dtype(y, OPD_FLOAT32), inverse, zero, false,
                                                  opd_value_int((int64_t)ending->least),
                                                  opd_value_int((int64_t)ending->most), ending->dtype) : NULL;
}
static void opdi_coded_gelu_tanh(int64_t count, float *out, const float *x) {
    void *const data[2] = {out, (void *)(uintptr_t)x};
    opdi_f32_vgelu_tanh(data, count, NULL);
}
/* Sets what follows a product.  Returns 1; 0 if opdi_coded_finish has to do it; or -1 and sets an error.  sizes[ndim]:
   of the result. */
static int opdi_coded_ends_make(const opd_call *call, const opdi_coded_ending *ending, const int64_t *sizes, int ndim,
                                bool last, opdi_byte_ends *ends) {
    memset(ends, 0, sizeof *ends);
    ends->limited = ending->limited;
    ends->low = (float)ending->low;
    ends->high = (float)ending->high;
    ends->codes = ending->codes;
    ends->apply = !ending->function ? NULL : ending->function == OPDI_CODED_SILU ? opdi_vsilu
        : ending->function == OPDI_CODED_GELU ? opdi_vgelu : opdi_coded_gelu_tanh;
    ends->inverse = (float)(1 / ending->scale);
    ends->code_zero = (float)ending->zero;
    ends->least = (float)ending->least;
    ends->most = (float)ending->most;
    if (ending->codes && ((ending->dtype != OPD_INT8 && ending->dtype != OPD_UINT8) || !isfinite(ends->inverse))) {
        return 0;
    }
    if (!ending->other) { return 1; }
    opd_tensor *other = opd_arg_tensor(call, ending->at), *scale = opdi_coded_arg(call, ending->at + 1);
    opd_tensor *zero = opdi_coded_arg(call, ending->at + 2);
    if (!scale || !zero || scale->numel != 1 || zero->numel != 1 || other->ndim != ndim || (last && ndim != 4) ||
        memcmp(opdi_sizes(other), sizes, (size_t)ndim * sizeof *sizes) != 0 ||
        (other->dtype != OPD_INT8 && other->dtype != OPD_UINT8) ||
        (ending->other_dtype && other->dtype != ending->other_dtype)) { return 0; }
    if (last) { other = opd_permute(other, OPD_INTS(0, 2, 3, 1)); }
    other = other ? opdi_dense_as(other, OPDI_DTYPE(other)) : NULL;
    if (!other) { return -1; }
    ends->other = (const uint8_t *)other->data;
    ends->other_minus = other->dtype == OPD_INT8;
    ends->other_scale = (float)opd_item_f64(scale);
    ends->other_zero = (float)opd_item_f64(zero);
    return opd_ok() ? 1 : -1;
}
/* A product of such an input with rows of int8.  sums: [m + 1, n], the last row has the sums of the rows of int8. */
typedef struct opdi_coded_product {
    opdi_coded_input x;
    opdi_byte_ends ends;
    const int32_t *sums;
    int64_t m, n;
    char *y;
} opdi_coded_product;
/* An opdi_range_fn: computes rows begin .. end - 1 of y from the sums. */
static void opdi_coded_ends(void *ctx, int64_t begin, int64_t end) {
    const opdi_coded_product *const product = (const opdi_coded_product *)ctx;
    const int64_t n = product->n, size = product->ends.codes ? 1 : 4;
    const int64_t most = product->x.step ? 1 : OPDI_BYTE_SIDE;    /* rows that have the same scale */
    opdi_byte_ends ends = product->ends;
    float floats[OPDI_BYTE_SIDE * OPDI_BYTE_SIDE];
    uint8_t codes[OPDI_BYTE_SIDE * OPDI_BYTE_SIDE];
    for (int64_t i = begin, rows; i < end; i += rows) {
        rows = OPDI_MIN(most, end - i);
        ends.zero = product->x.zeros[i * product->x.step];
        ends.scale = product->x.scales[i * product->x.step];
        for (int64_t j = 0; j < n; j += OPDI_BYTE_SIDE) {
            const int64_t count = OPDI_MIN((int64_t)OPDI_BYTE_SIDE, n - j);
            const char *const made = size == 1 ? (const char *)codes : (const char *)floats;
            opdi_byte_ends_tile(&ends, product->sums + i * n + j, n, rows, j, count,
                                ends.other ? ends.other + i * n + j : NULL, n, floats, codes);
            for (int64_t row = 0; row < rows; row++) {
                char *const to = product->y + ((i + row) * n + j) * size;
                const char *const from = made + row * OPDI_BYTE_SIDE * size;
                if (count < OPDI_BYTE_SIDE) { memcpy(to, from, (size_t)(count * size)); }
                else if (size == 1) { memcpy(to, from, OPDI_BYTE_SIDE); }
                else { memcpy(to, from, OPDI_BYTE_SIDE * sizeof(float)); }
            }
        }
    }
}
static bool opdi_coded_all_zero(const float *zeros, int64_t count) {
    bool zero = true;
    for (int64_t i = 0; zeros && i < count; i++) { zero = zero && zeros[i] == 0; }
    return zero;
}
/* Sets range[0] and range[1] to the least size of the scales besides 0 and to the largest one, NaN if one is NaN.  The
   bits of sizes are in the order of the sizes, and those of NaN are above. */
static void opdi_coded_range(const float *scales, int64_t count, double range[2]) {
    uint32_t least[8], most[8] = {0};             /* least: bits - 1, so that 0 is above all */
    memset(least, 0xff, sizeof least);
    for (int64_t i = 0, some; i < count; i += some) {
        uint32_t bits[8] = {0};
        some = OPDI_MIN((int64_t)8, count - i);
        if (some == 8) { memcpy(bits, scales + i, sizeof bits); }
        else { memcpy(bits, scales + i, (size_t)some * sizeof *bits); }
        for (int lane = 0; lane < 8; lane++) {
            const uint32_t size = bits[lane] & 0x7fffffffu;
            least[lane] = size - 1 < least[lane] ? size - 1 : least[lane];
            most[lane] = size > most[lane] ? size : most[lane];
        }
    }
    for (int lane = 1; lane < 8; lane++) {
        least[0] = OPDI_MIN(least[0], least[lane]);
        most[0] = OPDI_MAX(most[0], most[lane]);
    }
    range[0] = least[0] == UINT32_MAX ? (double)INFINITY : (double)opdi_float(least[0] + 1);
    range[1] = (double)opdi_float(most[0]);
}
/* Returns whether the products of the scales of an input and of a weight are normal float32.  Products in integers
   multiply by them at the end: 0 times infinity would get lost, and digits of tiny products. */
static bool opdi_coded_scales_fit(const float *input, int64_t m, const float *weight, int64_t n) {
    double x[2], w[2];
    opdi_coded_range(input, m, x);
    opdi_coded_range(weight, n, w);
    return isfinite(x[1]) && isfinite(w[1]) && x[1] * w[1] <= (double)FLT_MAX && !(x[0] * w[0] < (double)FLT_MIN);
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
    int64_t at = 0;
    for (; minus && at + 32 <= m * k; at += 32) {
        uint8_t some[32];
        memcpy(some, from + at, sizeof some);
        for (int lane = 0; lane < 32; lane++) { some[lane] ^= 0x80; }
        memcpy(to + at, some, sizeof some);
    }
    for (; minus && at < m * k; at++) { to[at] = from[at] ^ 0x80; }
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
    return 1;
}
/* Computes a layer with an input of codes, in integers, and what follows it.  Returns 1, and *out is the result; 0 if
   that is not possible; or -1 and sets an error. */
static int opdi_coded_whole(const opd_call *call, const opdi_coded_rows *w, const opd_tensor *bias,
                            const opdi_coded_ending *ending, opd_ints sizes, opd_tensor **out) {
    opdi_coded_product product;
    opdi_byte_job job;
    opd_tensor *const scale = opdi_coded_arg(call, 1), *const zero = opdi_coded_arg(call, 2);
    const int64_t k = w->stride, n = sizes.data[sizes.n - 1], m = opd_arg_tensor(call, 0)->numel / k;
    if (!scale || !zero || !w->minus || !w->scales || w->groups > 1 || k > 32768 ||
        !opdi_coded_all_zero(w->zeros, n)) { return 0; }
    int rc = opdi_coded_ends_make(call, ending, sizes.data, (int)sizes.n, false, &product.ends);
    rc = rc == 1 ? opdi_coded_codes(opd_arg_tensor(call, 0), scale, zero, m, k, &product.x) : rc;
    if (rc == 1 && !opdi_coded_scales_fit(product.x.scales, scale->numel, w->scales, n)) { return 0; }
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
    *out = opd_empty(sizes, ending->codes ? ending->dtype : OPD_FLOAT32);
    if (!*out) { return -1; }
    product.ends.all = job.y + m * n;
    product.ends.scales = w->scales;
    product.ends.bias = bias ? (const float *)(const void *)bias->data : NULL;
    product.sums = job.y;
    product.m = m;
    product.n = n;
    product.y = (char *)(*out)->data;
    opdi_parallel_for(m, OPDI_MAX((int64_t)1, 16384 / n), opdi_coded_ends, &product);
    return 1;
}
/* Computes a layer of codes whose weight has scales for groups, in integers, to made [m, n].  Returns 1; 0 if that is
   not possible; or -1 and sets an error. */
static int opdi_coded_grouped(const opd_call *call, const opdi_coded_rows *w, const opd_tensor *bias, int64_t m,
                              int64_t n, opd_tensor *made) {
    opd_tensor *const scale = opdi_coded_arg(call, 1), *const zero = opdi_coded_arg(call, 2);
    opdi_coded_input x;
    opdi_group_job job;
    double range[2];
    if (!scale || !zero || !w->minus || w->groups < 2 || !opdi_coded_all_zero(w->zeros, n * w->groups)) {
        return 0;
    }
    const int rc = opdi_coded_codes(opd_arg_tensor(call, 0), scale, zero, m, w->stride, &x);
    if (rc != 1) { return rc; }
    opdi_coded_range(w->scales, n * w->groups, range);
    if (!opdi_coded_scales_fit(x.scales, scale->numel, w->scales, n * w->groups) ||
        range[1] * 32640 * (double)w->stride > (double)FLT_MAX) { return 0; }        /* sums have no scale of x yet */
    job.m = m;
    job.n = n;
    job.k = w->stride;
    job.group = w->group;
    job.x = x.codes;
    job.w = (const int8_t *)w->codes;
    job.scales = w->scales;
    job.bias = bias ? (const float *)(const void *)bias->data : NULL;
    job.x_scales = x.scales;
    job.x_zeros = x.zeros;
    job.step = x.step;
    job.y = (float *)(void *)made->data;
    const int done = opdi_byte_groups_product(&job);
    return done < 0 ? opdi_buffer_fail() : done;
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
/* Returns the input of a layer, or its weight, as floats, computed as its rule says. */
static opd_tensor *opdi_coded_operand(const opd_call *call, int rules, bool input) {
    const opdi_coded_rule rule = opdi_coded_rule_at(call, rules, !input);
    opd_tensor *const codes = opd_arg_tensor(call, input ? 0 : 3), *const scales = opdi_coded_arg(call, input ? 1 : 4);
    opd_tensor *const zeros = opdi_coded_arg(call, input ? 2 : 5);
    return rule.kind ? opdi_coded_convert(&rule, codes, scales, zeros) : opdi_coded_wide(codes, scales, zeros, input);
}
/* Returns whether the conversions of the input and the weight of a layer are those that the layer computes. */
static bool opdi_coded_rules_fit(const opd_call *call, int rules) {
    bool fit = true;
    for (int i = 0; i < 2; i++) {
        const opdi_coded_rule rule = opdi_coded_rule_at(call, rules, i);
        fit = fit && opdi_coded_fits(&rule, opd_arg_tensor(call, 3 * i), opdi_coded_arg(call, 3 * i + 1),
                                     opdi_coded_arg(call, 3 * i + 2));
    }
    return fit;
}
/* Returns whether all elements of a row have the same scale, and no zero point. */
static bool opdi_coded_is_simple(const opdi_coded_rows *w, int64_t n) {
    return w->groups == 1 && opdi_coded_all_zero(w->zeros, n);
}
/* Fills a job for the product of x [m, k] and w, to made [m, n]. */
static void opdi_coded_job(const opdi_coded_rows *w, const opd_tensor *x, int64_t m, int64_t n, opd_tensor *made,
                           opdi_block_job *job) {
    memset(job, 0, sizeof *job);
    job->dtype = w->minus ? OPD_INT8 : OPD_UINT8;
    job->exact = true;
    job->m = m;
    job->n = n;
    job->k = w->stride;
    job->w = w->codes;
    job->w_stride = w->stride;
    job->x = (const float *)(const void *)x->data;
    job->x_stride = w->stride;
    job->y = (float *)(void *)made->data;
    job->y_stride = n;
    job->form = &w->form;
    job->codes = opdi_coded_is_simple(w, n) ? w->codes : NULL;
    job->minus = w->minus;
    job->scales = w->scales;
}
/* Returns x [m, k] times the transposed weight of int8, or NULL: without an error, if other kernels have to see the
   product, or if the arguments do not suit. */
OPDI_INTERNAL opd_tensor *opdi_coded_float_mm(const opd_call *call, opd_tensor *x, opd_tensor *weight) {
    const int64_t m = opdi_sizes(x)[0], n = opdi_sizes(weight)[0];
    opdi_coded_rows w;
    if (!opdi_coded_alone(call) || !x->numel || opdi_coded_read(weight, NULL, NULL, &w) != 1) { return NULL; }
    x = opdi_dense_as(x, OPD_FLOAT32);
    opd_tensor *const made = x ? opd_empty(OPD_INTS(m, n), OPD_FLOAT32) : NULL;
    opdi_block_job job;
    if (!made) { return NULL; }
    opdi_coded_job(&w, x, m, n, made, &job);
    return opdi_block_product(&job) ? NULL : made;
}
/* Computes the product of an input as floats with a weight, whose codes become floats a few at a time, to made [m, n].
   Returns 0, or -1 and sets an error. */
static int opdi_coded_of_floats(const opd_call *call, const opdi_coded_rows *w, int64_t m, int64_t n,
                                opd_tensor *made) {
    opd_tensor *const wide = opdi_coded_wide(opd_arg_tensor(call, 0), opdi_coded_arg(call, 1), opdi_coded_arg(call, 2),
                                             true);
    const opd_tensor *const x = opdi_dense_as(wide, OPD_FLOAT32);
    opdi_block_job job;
    if (!x) { return -1; }
    opdi_coded_job(w, x, m, n, made, &job);
    return opdi_block_product(&job);
}
enum { OPDI_CODED_LINEAR_RULES = 11, OPDI_CODED_CONV_RULES = 16 };      /* where rules is among the arguments */
/* Computes a linear layer at once, and what follows it.  Returns 1, and *out is the result; 0 if that is not possible;
   or -1 and sets an error. */
static int opdi_coded_linear_at_once(opd_call *call, const opdi_coded_ending *ending, opd_tensor **out) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *const weight = opd_arg_tensor(call, 3);
    opd_tensor *const scale = opdi_coded_arg(call, 1), *const bias = opdi_coded_arg(call, 6);
    const opd_scalar_type dtype = scale ? OPD_FLOAT32 : OPDI_DTYPE(input);
    opdi_coded_rows w;
    int64_t sizes[OPD_MAX_DIMS];
    if (!opdi_coded_alone(call) || input->ndim < 1 || weight->ndim != 2 || !input->numel ||
        !opdi_coded_rules_fit(call, OPDI_CODED_LINEAR_RULES) ||
        opdi_sizes(input)[input->ndim - 1] != opdi_sizes(weight)[1]) { return 0; }
    if ((dtype != OPD_FLOAT32 && dtype != OPD_FLOAT16 && dtype != OPD_BFLOAT16) ||
        (bias && (bias->dtype != OPD_FLOAT32 || bias->ndim != 1 || bias->numel != opdi_sizes(weight)[0]))) { return 0; }
    const int read = opdi_coded_read(weight, opdi_coded_arg(call, 4), opdi_coded_arg(call, 5), &w);
    if (read != 1) { return read; }
    const int64_t n = opdi_sizes(weight)[0], k = w.stride, m = input->numel / k;
    for (int i = 0; i < input->ndim; i++) { sizes[i] = i == input->ndim - 1 ? n : opdi_sizes(input)[i]; }
    const opd_tensor *const added = bias ? opdi_dense_as(bias, OPD_FLOAT32) : NULL;
    if (bias && !added) { return -1; }
    const int rc = opdi_coded_whole(call, &w, added, ending, opd_ints_of(sizes, input->ndim), out);
    if (rc) { return rc; }
    opd_tensor *const made = opd_empty(opd_ints_of(sizes, input->ndim), OPD_FLOAT32);
    if (!made) { return -1; }
    const int grouped = opdi_coded_grouped(call, &w, added, m, n, made);
    if (grouped < 0 || (!grouped && opdi_coded_of_floats(call, &w, m, n, made))) { return -1; }
    *out = added && !grouped ? opd_add_(made, (opd_tensor *)(uintptr_t)added) : made;
    *out = *out ? opdi_coded_finish(call, ending, opd_to_dtype(*out, dtype)) : NULL;
    return *out ? 1 : -1;
}
static int opdi_coded_linear_kernel(opd_call *call) {
    opd_tensor *out = NULL;
    opdi_coded_ending ending;
    if (opdi_coded_ending_read(call, 7, &ending)) { return -1; }
    const int done = opdi_coded_linear_at_once(call, &ending, &out);
    if (done) { return done < 0 ? -1 : opd_return_tensor(call, out); }
    opd_tensor *const x = opdi_coded_operand(call, OPDI_CODED_LINEAR_RULES, true);
    opd_tensor *weight = x ? opdi_coded_operand(call, OPDI_CODED_LINEAR_RULES, false) : NULL;
    weight = x && weight ? opd_to_dtype(weight, opd_dtype(x)) : NULL;
    opd_tensor *const bias = opdi_coded_arg(call, 6);
    const bool one = !bias || opd_ndim(bias) == 1;               /* else the layer was addmm */
    if (weight) { out = one ? opd_linear(x, weight, bias) : opd_addmm(bias, x, opd_t(weight)); }
    out = opdi_coded_finish(call, &ending, out);
    return out ? opd_return_tensor(call, out) : -1;
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
        "scales, Tensor? zero_points, Tensor? bias, Tensor? other, Tensor? other_scale, Tensor? other_zero_point, "
        "float[] ending, int[] rules=[]) -> Tensor";
    op->composite = opdi_coded_linear_kernel;
}

//== convolutions ======================================================================================================

/* Reads the arguments of a convolution.  Returns 1; 0 if it is not one of two dims and one group, or of a group for
   each channel; or -1 and sets an error. */
static int opdi_coded_conv_read(const opd_call *call, opdi_coded_rows *w, opdi_byte_conv *conv) {
    const opd_tensor *const input = opd_arg_tensor(call, 0), *const weight = opd_arg_tensor(call, 3);
    const opd_tensor *const zero = opd_arg_tensor(call, 2), *const bias = opdi_coded_arg(call, 6);
    const opd_ints settings[3] = {opd_arg_ints(call, 7), opd_arg_ints(call, 8), opd_arg_ints(call, 9)};
    int64_t *const to[3] = {conv->stride, conv->padding, conv->dilation};
    const int64_t groups = opd_arg_int(call, 10);
    if (input->ndim != 4 || weight->ndim != 4 || groups < 1 || !input->numel || !weight->numel ||
        weight->dtype != OPD_INT8 || (input->dtype != OPD_INT8 && input->dtype != OPD_UINT8) || zero->numel != 1 ||
        !opd_dtype_is_integral(OPDI_DTYPE(zero), false) || opd_arg_tensor(call, 1)->numel != 1 ||
        opdi_sizes(input)[1] != opdi_sizes(weight)[1] * groups) { return 0; }
    const int64_t *const sizes = opdi_sizes(weight), *const image = opdi_sizes(input);
    conv->deep = groups > 1 && sizes[1] == 1 && sizes[0] == groups;
    if (groups > 1 && !conv->deep) { return 0; }
    if (bias && (bias->dtype != OPD_FLOAT32 || bias->numel != sizes[0])) { return 0; }
    for (int i = 0; i < 3; i++) {
        for (int64_t dim = 0; dim < 2; dim++) {
            if (settings[i].n != 1 && settings[i].n != 2) { return 0; }
            to[i][dim] = settings[i].data[settings[i].n == 2 ? dim : 0];
            if (to[i][dim] < (i != 1) || to[i][dim] > 1024) { return 0; }
        }
    }
    conv->images = image[0];
    conv->n = sizes[0];
    conv->channels = image[1];
    conv->kh = sizes[2];
    conv->kw = sizes[3];
    conv->ih = image[2];
    conv->iw = image[3];
    const int64_t height = conv->ih + 2 * conv->padding[0] - conv->dilation[0] * (conv->kh - 1) - 1;
    const int64_t width = conv->iw + 2 * conv->padding[1] - conv->dilation[1] * (conv->kw - 1) - 1;
    conv->oh = height / conv->stride[0] + 1;
    conv->ow = width / conv->stride[1] + 1;
    if (height < 0 || width < 0) { return 0; }
    return opdi_coded_read(opd_arg_tensor(call, 3), opdi_coded_arg(call, 4), opdi_coded_arg(call, 5), w);
}
/* An opdi_packing_fn: packs the weight of a convolution.  The sums of its rows follow the packed weight. */
static int opdi_coded_conv_pack(void *user, char *data) {
    opdi_byte_conv *const conv = (opdi_byte_conv *)user;
    int64_t bytes[3];
    (void)opdi_byte_conv_sizes(conv, bytes);
    opd_tensor *const rows = bytes[2] ? opd_empty(OPD_INTS(bytes[2]), OPD_INT8) : NULL;
    if (bytes[2] && !rows) { return -1; }
    conv->rows = rows ? (int8_t *)rows->data : NULL;
    conv->packed = (int8_t *)data;
    conv->all = (int32_t *)(void *)(data + bytes[1]);
    opdi_byte_conv_pack(conv);
    return 0;
}
/* Sets the packed weight of a convolution.  Returns a reference to it, or NULL and sets an error. */
static opdi_packing *opdi_coded_conv_packed(opdi_byte_conv *conv, const opd_tensor *weight, int64_t bytes) {
    opdi_packing_key key;
    memset(&key, 0, sizeof key);
    key.sizes[0] = conv->n;
    key.sizes[1] = conv->deep ? 0 : conv->channels;
    key.sizes[2] = conv->kh;
    key.sizes[3] = conv->kw;
    key.sizes[4] = (conv->dilation[1] == 1) +     /* then the elements of a row of the kernel are one run */
        2 * opdi_byte_conv_form(conv);
    key.bytes = bytes + conv->n * (int64_t)sizeof *conv->all;
    opdi_packing *const packing = opdi_packing_of(weight, conv->w, weight->numel, &key, opdi_coded_conv_pack, conv);
    if (!packing) { return NULL; }
    conv->packed = (int8_t *)packing->data;
    conv->ends.all = (const int32_t *)(const void *)(packing->data + bytes);
    return packing;
}
/* Makes the result and the buffer of a convolution.  Returns the result, or NULL and sets an error.  bytes: of the
   buffer. */
static opd_tensor *opdi_coded_conv_begin(const opdi_coded_ending *ending, opdi_byte_conv *conv, int64_t bytes) {
    opd_tensor *const planes = opd_empty(OPD_INTS(bytes), OPD_UINT8);
    const int64_t sizes[4] = {conv->images, conv->n, conv->oh, conv->ow};
    const int64_t turned[4] = {conv->images, conv->oh, conv->ow, conv->n};
    opd_tensor *out = planes ? opd_empty(opd_ints_of(ending->last ? turned : sizes, 4),
                                      ending->codes ? ending->dtype : OPD_FLOAT32) : NULL;
    if (!out) { return NULL; }
    conv->planes = (uint8_t *)planes->data;
    conv->y = out->data;
    out = ending->last ? opd_permute(out, OPD_INTS(0, 3, 1, 2)) : out;
    for (int i = 0; out && i < 4; i++) { conv->ys[i] = opdi_strides(out)[i]; }
    return out;
}
static int opdi_coded_conv_at_once(opd_call *call, const opdi_coded_ending *ending, opd_tensor **out) {
    opdi_byte_conv conv;
    opdi_coded_rows w;
    opd_tensor *const input = opd_arg_tensor(call, 0), *const bias = opdi_coded_arg(call, 6);
    int64_t bytes[3];
    memset(&conv, 0, sizeof conv);
    if (!opdi_coded_alone(call) || !opdi_byte_tiles_are_fast() || !opdi_coded_rules_fit(call, OPDI_CODED_CONV_RULES)) {
        return 0;
    }
    const int read = opdi_coded_conv_read(call, &w, &conv);
    if (read != 1 || w.groups > 1 || !w.scales || w.stride > 32768 || !opdi_coded_all_zero(w.zeros, conv.n)) {
        return read < 0 ? -1 : 0;
    }
    const int64_t sizes[4] = {conv.images, conv.n, conv.oh, conv.ow};
    const int rc = opdi_coded_ends_make(call, ending, sizes, 4, true, &conv.ends);
    if (rc != 1) { return rc; }
    conv.flip = input->dtype == OPD_INT8 ? 0x80 : 0;
    const int64_t zero = opd_item_i64(opd_arg_tensor(call, 2)) + conv.flip;
    if (zero < 0 || zero > 255) { return 0; }
    conv.ends.zero = (int32_t)zero;
    conv.ends.scale = (float)opd_item_f64(opd_arg_tensor(call, 1));
    if (!opdi_coded_scales_fit(&conv.ends.scale, 1, w.scales, conv.n)) { return 0; }
    const opd_tensor *const added = bias ? opdi_dense_as(bias, OPD_FLOAT32) : NULL;
    if (bias && !added) { return -1; }
    if (!opdi_byte_conv_sizes(&conv, bytes)) { return 0; }
    *out = opdi_coded_conv_begin(ending, &conv, bytes[0]);
    if (!*out) { return -1; }
    conv.x = (const uint8_t *)input->data;
    for (int i = 0; i < 4; i++) { conv.xs[i] = opdi_strides(input)[i]; }
    conv.w = (const int8_t *)w.codes;
    conv.ends.scales = w.scales;
    conv.ends.bias = added ? (const float *)(const void *)added->data : NULL;
    opdi_packing *const packing = opdi_coded_conv_packed(&conv, opd_arg_tensor(call, 3), bytes[1]);
    if (!packing) { return -1; }
    opdi_byte_convolution(&conv);
    opdi_packing_drop(packing);
    return 1;
}
static int opdi_coded_conv_kernel(opd_call *call) {
    opd_tensor *out = NULL;
    opdi_coded_ending ending;
    if (opdi_coded_ending_read(call, 12, &ending)) { return -1; }
    const int done = opdi_coded_conv_at_once(call, &ending, &out);
    if (done) { return done < 0 ? -1 : opd_return_tensor(call, out); }
    static const int64_t none[3] = {0, 0, 0};
    opd_tensor *const bias = opdi_coded_arg(call, 6);
    const opd_ints stride = opd_arg_ints(call, 7), padding = opd_arg_ints(call, 8), dilation = opd_arg_ints(call, 9);
    const int64_t groups = opd_arg_int(call, 10);
    opd_tensor *const x = opdi_coded_operand(call, OPDI_CODED_CONV_RULES, true);
    opd_tensor *weight = x ? opdi_coded_operand(call, OPDI_CODED_CONV_RULES, false) : NULL;
    weight = x && weight ? opd_to_dtype(weight, opd_dtype(x)) : NULL;
    if (!weight) { return -1; }
    if (opd_arg_bool(call, 11)) {                 /* autocast lowers conv2d, but not convolution */
        out = opd_conv2d_full(x, weight, bias, stride, padding, dilation, groups);
    } else {
        const int64_t dims = opd_ndim(weight) > 2 ? OPDI_MIN(3, opd_ndim(weight) - 2) : 1;
        out = opd_convolution(x, weight, bias, stride, padding, dilation, false, opd_ints_of(none, dims), groups);
    }
    out = opdi_coded_finish(call, &ending, out);
    return out ? opd_return_tensor(call, out) : -1;
}
OPDI_INTERNAL void opdi_coded_convolution(opd_op_desc *op) {
    op->schema = "quantized_convolution(Tensor input, Tensor input_scale, Tensor input_zero_point, Tensor weight, "
        "Tensor? scales, Tensor? zero_points, Tensor? bias, SymInt[] stride, SymInt[] padding, SymInt[] dilation, "
        "SymInt groups, bool flat, Tensor? other, Tensor? other_scale, Tensor? other_zero_point, float[] ending, "
        "int[] rules=[]) -> Tensor";
    op->composite = opdi_coded_conv_kernel;
}

//== embeddings ========================================================================================================

/* Returns the rows of a table that an embedding takes. */
static opd_tensor *opdi_coded_taken(const opd_call *call, opd_tensor *table) {
    return table ? opd_embedding_full(table, opd_arg_tensor(call, 3), opd_arg_int(call, 4), opd_arg_bool(call, 5),
                                      opd_arg_bool(call, 6)) : NULL;
}
/* Returns the rows that an embedding takes of codes, each with a scale and perhaps a zero point, as floats. */
static opd_tensor *opdi_coded_rows_taken(const opd_call *call, opd_tensor *codes, opd_tensor *scales,
                                         opd_tensor *zeros) {
    const int64_t column[2] = {scales->numel, 1};
    opd_tensor *wide = opdi_coded_taken(call, codes);
    wide = wide ? opd_to_dtype(wide, OPD_FLOAT32) : NULL;
    if (wide && zeros) { wide = opd_sub(wide, opdi_coded_taken(call, opdi_reshape_to(zeros, column, 2))); }
    return wide ? opd_mul(wide, opdi_coded_taken(call, opdi_reshape_to(scales, column, 2))) : NULL;
}
static int opdi_coded_embedding_kernel(opd_call *call) {
    opd_tensor *const codes = opd_arg_tensor(call, 0), *const scales = opd_arg_tensor(call, 1);
    opd_tensor *const zeros = opdi_coded_arg(call, 2);
    const opdi_coded_rule rule = opdi_coded_rule_at(call, 7, 0);
    const int64_t rows = codes->ndim == 2 ? opdi_sizes(codes)[0] : -1;
    if (opdi_coded_rule_check(call, &rule)) { return -1; }
    if (rule.kind != OPDI_CODED_BY_CHANNEL) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the rule must be that of dequantize_per_channel",
                        opd_op_name(opd_call_operator(call)));
    }
    opd_tensor *out = NULL;
    if (opdi_coded_fits(&rule, codes, scales, zeros) && scales->numel == rows && (!zeros || zeros->numel == rows) &&
        scales->dtype == OPD_FLOAT32 && (!zeros || zeros->dtype != OPD_FLOAT64)) {
        out = opdi_coded_rows_taken(call, codes, scales, zeros);
    } else {
        out = opdi_coded_taken(call, opdi_coded_convert(&rule, codes, scales, zeros));
    }
    return out ? opd_return_tensor(call, out) : -1;
}
OPDI_INTERNAL void opdi_coded_embedding(opd_op_desc *op) {
    op->schema = "quantized_embedding(Tensor weight, Tensor scales, Tensor? zero_points, Tensor indices, int "
        "padding_idx, bool scale_grad_by_freq, bool sparse, int[] rule) -> Tensor";
    op->composite = opdi_coded_embedding_kernel;
}

//== pooling ===========================================================================================================

/* Pools codes with their channels last.  Returns 1, and *out is the result; 0 if that is not possible; or -1 and sets
   an error. */
static int opdi_coded_pool_at_once(opd_call *call, opd_tensor **out) {
    opdi_code_pool pool;
    opd_tensor *const input = opd_arg_tensor(call, 0);
    int64_t *const to[4] = {pool.kernel, pool.stride, pool.padding, pool.dilation};
    if (!opdi_coded_alone(call) || input->ndim != 4 || (input->dtype != OPD_INT8 && input->dtype != OPD_UINT8) ||
        !input->numel || opd_arg_bool(call, 5) || !opdi_is_channels_last(input)) { return 0; }
    for (int i = 0; i < 4; i++) {
        const opd_ints list = opd_arg_ints(call, i + 1);
        const opd_ints numbers = i == 1 && list.n == 0 ? opd_arg_ints(call, 1) : list;
        if (numbers.n != 1 && numbers.n != 2) { return 0; }
        for (int dim = 0; dim < 2; dim++) {
            to[i][dim] = numbers.data[numbers.n == 2 ? dim : 0];
            if (to[i][dim] < (i != 2) || to[i][dim] > 1024) { return 0; }
        }
    }
    for (int dim = 0; dim < 2; dim++) {
        pool.in[dim] = opdi_sizes(input)[2 + dim];
        const int64_t room = pool.in[dim] + 2 * pool.padding[dim] - pool.dilation[dim] * (pool.kernel[dim] - 1) - 1;
        if (room < 0 || 2 * pool.padding[dim] > pool.kernel[dim]) { return 0; }
        pool.out[dim] = room / pool.stride[dim] + 1;
    }
    pool.images = opdi_sizes(input)[0];
    pool.channels = opdi_sizes(input)[1];
    pool.flip = input->dtype == OPD_INT8 ? 0x80 : 0;
    pool.x = (const uint8_t *)input->data;
    *out = opd_empty(OPD_INTS(pool.images, pool.out[0], pool.out[1], pool.channels), OPDI_DTYPE(input));
    if (!*out) { return -1; }
    pool.y = (uint8_t *)(*out)->data;
    opdi_codes_pool(&pool);
    *out = opd_permute(*out, OPD_INTS(0, 3, 1, 2));
    return *out ? 1 : -1;
}
static int opdi_coded_pool_kernel(opd_call *call) {
    opd_tensor *out = NULL;
    const int done = opdi_coded_pool_at_once(call, &out);
    if (done < 0) { return -1; }
    if (!done) {
        out = opd_max_pool2d_full(opd_arg_tensor(call, 0), opd_arg_ints(call, 1), opd_arg_ints(call, 2),
                                  opd_arg_ints(call, 3), opd_arg_ints(call, 4), opd_arg_bool(call, 5));
    }
    return out ? opd_return_tensor(call, out) : -1;
}
OPDI_INTERNAL void opdi_coded_pool(opd_op_desc *op) {
    op->schema = "quantized_max_pool2d(Tensor input, int[2] kernel_size, int[2] stride, int[2] padding, int[2] "
        "dilation, bool ceil_mode) -> Tensor";
    op->composite = opdi_coded_pool_kernel;
}
