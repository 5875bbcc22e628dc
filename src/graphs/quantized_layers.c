#include "graphs.h"

//== layers between conversions of codes ===============================================================================
//
//  A layer of a quantised model is linear(dequantize(x), dequantize(weight), bias), where x and weight are codes of 8
//  bits; or x are floats.  One operator computes that without weights as floats (src/ops/quantized/coded.c).

/* Codes with scales and zero points, which may be NULL; the conversion takes them to float32.  turned: the codes are
   transposed.  rule: which operator converts them, see opdi_coded_rule in src/ops/quantized/coded.c. */
typedef struct opdi_coded_value {
    opdi_gvalue *codes, *scales, *zeros;
    bool turned;
    int64_t rule[4];
} opdi_coded_value;
/* A search for layers.  mark: values whose memory a node writes have it. */
typedef struct opdi_coded_search { opd_graph *graph; uint64_t mark; } opdi_coded_search;

/* Returns whether a node calls exactly this operator, and no other overload of it: for aten::mm, not mm.out, which
   writes, or mm.dtype. */
static bool opdi_coded_is(const opdi_gnode *node, const char *name) {
    return node->kind == OPDI_GNODE_OP && strcmp(node->op->name, name) == 0;
}
/* Sets *number to argument `i` of a node, an int.  Returns false if the argument is not constant. */
static bool opdi_coded_int(const opdi_gnode *node, int i, int64_t *number) {
    const opdi_gnode *const from = i < node->nin ? node->in[i]->node : NULL;
    if (!from || from->kind != OPDI_GNODE_CONSTANT || from->constant.tag != OPD_TAG_INT) { return false; }
    *number = from->constant.u.i;
    return true;
}
static bool opdi_coded_none(const opdi_gnode *node, int i) {
    const opdi_gnode *const from = i < node->nin ? node->in[i]->node : NULL;
    return i >= node->nin || (from && from->kind == OPDI_GNODE_CONSTANT && from->constant.tag == OPD_TAG_NONE);
}
/* Sets *number to argument `i` of a node, a constant number; to `none` for None.  Returns false for other arguments. */
static bool opdi_coded_number_at(const opdi_gnode *node, int i, double none, double *number) {
    opd_value value;
    *number = none;
    if (opdi_coded_none(node, i)) { return true; }
    if (!opd_graph_value_constant(node->in[i], &value)) { return false; }
    *number = value.tag == OPD_TAG_INT ? (double)value.u.i : value.u.d;
    return value.tag == OPD_TAG_INT || value.tag == OPD_TAG_FLOAT;
}
/* Returns whether argument `i` of a node is a constant dtype, or None for `plain`, that is `want`. */
static bool opdi_coded_dtype(const opdi_gnode *node, int i, opd_scalar_type want, opd_scalar_type plain) {
    int64_t dtype;
    return opdi_coded_none(node, i) ? plain == want : opdi_coded_int(node, i, &dtype) && dtype == want;
}
/* Returns a tensor of one number as a constant of the graph: float32 for a float, int64 for an int.  No operator makes
   it, so that it has data inside of fakes, traces and transforms, too.  Returns NULL and sets an error on failure. */
static opdi_gvalue *opdi_coded_number(opd_graph *graph, opd_value number) {
    const bool whole = number.tag == OPD_TAG_INT;
    opd_tensor *const tensor = opd_tensor_new(opd_ints_of(NULL, 0), whole ? OPD_INT64 : OPD_FLOAT32);
    if (!tensor) { return NULL; }
    if (whole) { *(int64_t *)opd_data(tensor) = number.u.i; }
    else { *opd_data_f32(tensor) = (float)number.u.d; }
    return opd_graph_constant(graph, opd_value_tensor(tensor));
}
/* Reads a scale and a zero point, the arguments 1 and 2 of a node, which may be numbers.  Returns 1, 0 or -1. */
static int opdi_coded_steps(opd_graph *graph, const opdi_gnode *node, opdi_coded_value *coded) {
    opd_value numbers[2];
    coded->scales = node->in[1];
    coded->zeros = node->in[2];
    if (coded->scales->tag == OPD_TAG_TENSOR && coded->zeros->tag == OPD_TAG_TENSOR) { return 1; }
    if (!opd_graph_value_constant(node->in[1], &numbers[0]) || !opd_graph_value_constant(node->in[2], &numbers[1]) ||
        numbers[0].tag != OPD_TAG_FLOAT || numbers[1].tag != OPD_TAG_INT) { return opd_ok() ? 0 : -1; }
    coded->scales = opdi_coded_number(graph, numbers[0]);
    coded->zeros = coded->scales ? opdi_coded_number(graph, numbers[1]) : NULL;
    return coded->zeros ? 1 : -1;
}
/* Returns whether block_size, argument 1 of dequantize_affine, has a scale for each row, or group of a row. */
static bool opdi_coded_by_rows(const opdi_gnode *node, opdi_coded_value *coded) {
    opd_value sizes;
    bool rows = opd_graph_value_constant(node->in[1], &sizes) && sizes.tag == OPD_TAG_INTS && sizes.n > 1;
    for (int i = 0; rows && i < sizes.n - 1; i++) { rows = sizes.u.ints[i] == 1; }
    coded->rule[2] = rows ? sizes.u.ints[sizes.n - 1] : 0;
    coded->rule[3] = rows ? sizes.n : 0;
    return rows;
}
/* Returns the dtype of a tensor, or -1 if it is unknown. */
static int opdi_coded_dtype_of(const opdi_gvalue *value) {
    const opd_value *const constant = value->node && value->node->kind == OPDI_GNODE_CONSTANT ? &value->node->constant
        : NULL;
    if (constant) { return constant->tag == OPD_TAG_TENSOR ? constant->u.t->dtype : -1; }
    return value->tag == OPD_TAG_TENSOR ? value->dtype : -1;
}
/* Returns whether scales or zero points of dequantize_per_token, which broadcast, have one number for each row. */
static bool opdi_coded_each_row(const opdi_gvalue *codes, const opdi_gvalue *steps) {
    static const char *const names[] = {
        "choose_qparams_per_token", "choose_qparams_per_token_asymmetric", "_choose_qparams_per_token_asymmetric_impl"};
    bool each = false;
    for (int i = 0; i < 3 && !each && steps->node && steps->node->kind == OPDI_GNODE_OP; i++) {
        const char *const name = steps->node->op->name, *const found = strstr(name, "::");
        each = found && strcmp(found + 2, names[i]) == 0;
    }
    if (each || !codes->dims || !steps->dims || codes->ndim != steps->ndim || !codes->ndim) { return each; }
    each = true;
    for (int i = 0; i < codes->ndim; i++) {
        each = each && steps->dims[i] == (i < codes->ndim - 1 ? codes->dims[i] : 1);
    }
    return each;
}
/* Returns whether codes have 8 bits, and argument `at`, a dtype, says so.  In a run, codes of an input of the graph may
   have another dtype; the operators of layers look at that. */
static bool opdi_coded_bytes(const opdi_gnode *node, int at, opdi_coded_value *coded) {
    const int codes = opdi_coded_dtype_of(coded->codes);
    int64_t dtype;
    const bool bytes = opdi_coded_int(node, at, &dtype) && (dtype == OPD_INT8 || dtype == OPD_UINT8);
    coded->rule[1] = bytes ? dtype : 0;
    return bytes && (codes < 0 || codes == dtype);
}
/* Returns whether the arguments `at` and at + 1, quant_min and quant_max, are constant, and the codes' dtype has these
   numbers; else the conversion fails. */
static bool opdi_coded_in_range(const opdi_gnode *node, int at, const opdi_coded_value *coded) {
    const double least = coded->rule[1] == OPD_INT8 ? -128 : 0;
    double low, high;
    return opdi_coded_number_at(node, at, least, &low) && opdi_coded_number_at(node, at + 1, least + 255, &high) &&
        low >= least && high <= least + 255;
}
/* Reads a scale for each row, the arguments 1 and 2 of a node. */
static void opdi_coded_rows_of(const opdi_gnode *node, int64_t kind, opdi_coded_value *coded) {
    coded->scales = node->in[1];
    coded->zeros = opdi_coded_none(node, 2) ? NULL : node->in[2];
    coded->rule[0] = kind;
}
/* Reads the conversion of codes to float32 by a node.  Returns 1; 0 if it is none; or -1 and sets an error. */
static int opdi_coded_by(opd_graph *graph, const opdi_gnode *node, bool weight, opdi_coded_value *coded) {
    int64_t axis;
    memset(coded, 0, sizeof *coded);
    coded->codes = node->nin ? node->in[0] : NULL;
    if (opd_graph_node_is(node, "quantized_decomposed::dequantize_per_channel")) {
        opdi_coded_rows_of(node, OPDI_CODED_BY_CHANNEL, coded);
        return weight && opdi_coded_int(node, 3, &axis) && axis == 0 && opdi_coded_bytes(node, 6, coded) &&
            opdi_coded_in_range(node, 4, coded) && opdi_coded_dtype(node, 7, OPD_FLOAT32, OPD_FLOAT32);
    }
    if (opd_graph_node_is(node, "quantized_decomposed::dequantize_per_tensor")) {
        coded->rule[0] = OPDI_CODED_BY_TENSOR;
        return opdi_coded_dtype(node, 6, OPD_FLOAT32, OPD_FLOAT32) && opdi_coded_bytes(node, 5, coded)
            ? opdi_coded_steps(graph, node, coded) : 0;
    }
    if (opd_graph_node_is(node, "quantized_decomposed::dequantize_per_token") && !weight) {
        opdi_coded_rows_of(node, OPDI_CODED_BY_TOKEN, coded);
        return coded->zeros && opdi_coded_dtype(node, 6, OPD_FLOAT32, OPD_FLOAT32) &&
            opdi_coded_bytes(node, 5, coded) && opdi_coded_each_row(coded->codes, coded->scales) &&
            opdi_coded_each_row(coded->codes, coded->zeros);
    }
    if (opd_graph_node_is(node, "quantized_decomposed::dequantize_per_channel_group") && weight) {
        opdi_coded_rows_of(node, OPDI_CODED_BY_GROUP, coded);
        return opdi_coded_dtype(node, 7, OPD_FLOAT32, OPD_FLOAT32) && opdi_coded_bytes(node, 5, coded) &&
            opdi_coded_int(node, 6, &coded->rule[2]);
    }
    if (opd_graph_node_is(node, "torchao::dequantize_affine") && opdi_coded_by_rows(node, coded)) {
        coded->rule[0] = OPDI_CODED_BY_BLOCK;
        coded->scales = node->in[2];
        coded->zeros = opdi_coded_none(node, 3) ? NULL : node->in[3];
        return opdi_coded_dtype(node, 7, OPD_FLOAT32, OPD_FLOAT32) && (weight || coded->zeros) &&
            opdi_coded_bytes(node, 4, coded) && opdi_coded_in_range(node, 5, coded);
    }
    return 0;
}
/* What a value is for a layer.  Only matrices may be transposed on their way to the layer. */
typedef enum opdi_coded_role { OPDI_CODED_INPUT, OPDI_CODED_MATRIX, OPDI_CODED_PLANES } opdi_coded_role;
/* Reads codes that are converted to floats.  A weight without scales gets the dtype of the layer's input.  Returns 1; 0
   if the value is something else; or -1 and sets an error. */
static int opdi_coded_find(opd_graph *graph, opdi_gvalue *value, opdi_coded_role role, opdi_coded_value *coded) {
    const bool weight = role != OPDI_CODED_INPUT;
    int64_t dtype;
    bool turned = false, wide = false;
    memset(coded, 0, sizeof *coded);
    for (int steps = 0; steps < 4 && value->node && value->node->kind == OPDI_GNODE_OP; steps++) {
        const opdi_gnode *const node = value->node;
        const int found = wide ? 0 : opdi_coded_by(graph, node, weight, coded);
        coded->turned = turned;
        if (found) { return found; }
        if (role == OPDI_CODED_MATRIX && opdi_gnode_transposes(node)) { turned = !turned; }
        else if (weight && !wide && opdi_coded_int(node, 1, &dtype) && opd_dtype_is_floating((opd_scalar_type)dtype) &&
                 (opd_graph_node_is(node, "aten::to.dtype") || opd_graph_node_is(node, "aten::_to_copy"))) {
            wide = true;
        }
        else { return 0; }
        value = node->in[0];
        if (wide && !value->node) {               /* a parameter; the operator takes any dtype */
            memset(coded, 0, sizeof *coded);
            coded->codes = value;
            coded->turned = turned;
            return 1;
        }
    }
    return 0;
}

//== replacing =========================================================================================================

/* The arguments of a layer; bias may be NULL.  conv: where stride and the like are among the arguments; groups: where
   this number is.  flat: the layer is conv2d. */
typedef struct opdi_coded_layer {
    opdi_gvalue *x, *weight, *bias;
    bool turned, flat;
    int conv, groups;
} opdi_coded_layer;

static bool opdi_coded_one(const opdi_gnode *node, int i) {
    opd_value number;
    return i >= node->nin || (opd_graph_value_constant(node->in[i], &number) &&
                              (number.tag == OPD_TAG_INT ? number.u.i == 1
                               : number.tag == OPD_TAG_FLOAT && !(number.u.d < 1) && !(number.u.d > 1)));
}
/* Returns whether a node is a layer, and sets *layer to its arguments. */
static bool opdi_coded_layer_of(const opdi_gnode *node, opdi_coded_layer *layer) {
    memset(layer, 0, sizeof *layer);
    if (node->kind != OPDI_GNODE_OP || node->nout != 1 || node->nin < 2) { return false; }
    const bool added = opdi_coded_is(node, "aten::addmm"), plain = opdi_coded_is(node, "aten::mm");
    const bool conv = opdi_coded_is(node, "aten::convolution"), flat = opdi_coded_is(node, "aten::conv2d");
    layer->x = node->in[added];
    layer->weight = node->in[added + 1];
    layer->turned = added || plain;
    if (plain) { return true; }
    if (added) {
        layer->bias = node->in[0];
        return opdi_coded_one(node, 3) && opdi_coded_one(node, 4);
    }
    layer->bias = opdi_coded_none(node, 2) ? NULL : node->in[2];
    if (conv || flat) {
        opd_value turned;
        layer->conv = 3;
        layer->flat = flat;
        layer->groups = conv ? 8 : 6;
        return node->nin == layer->groups + 1 && node->in[4]->tag == OPD_TAG_INTS &&
            (!conv || (opd_graph_value_constant(node->in[6], &turned) && turned.tag == OPD_TAG_BOOL && !turned.u.i));
    }
    return opdi_coded_is(node, "aten::linear");
}
/* Returns whether a node writes memory of a value.  Constants that this pass made have no alias yet. */
static bool opdi_coded_written(const opdi_coded_search *search, opdi_gvalue *value) {
    return value && value->alias && opdi_gvalue_root(value)->mark == search->mark;
}
/* Returns an argument for a call: None for NULL. */
static opd_graph_arg opdi_coded_arg_of(opdi_gvalue *value) {
    opd_graph_arg arg;
    memset(&arg, 0, sizeof arg);
    arg.kind = value ? OPD_GRAPH_ARG_VALUE : OPD_GRAPH_ARG_C;
    arg.value = value;
    arg.constant = opd_value_none();
    return arg;
}
/* Removes the conversions and views that computed a value, if it has no users. */
static int opdi_coded_remove(opd_graph *graph, opdi_gvalue *value) {
    opdi_gnode *const node = value->node;
    opdi_gvalue *inputs[OPD_MAX_ARGS];
    if (!node || opd_graph_value_uses(value, NULL, 0) || node->nout != 1 || node->nin > OPD_MAX_ARGS ||
        (node->kind != OPDI_GNODE_OP && node->kind != OPDI_GNODE_CONSTANT && node->kind != OPDI_GNODE_LIST) ||
        opd_graph_node_has_effects(node)) { return 0; }
    const int count = node->nin;
    memcpy(inputs, node->in, (size_t)count * sizeof *inputs);
    if (opd_graph_erase_node(graph, node)) { return -1; }
    for (int i = 0; i < count; i++) {
        if (!inputs[i]->node) { continue; }
        bool again = false;
        for (int k = 0; k < i; k++) { again = again || inputs[k] == inputs[i]; }
        if (!again && opdi_coded_remove(graph, inputs[i])) { return -1; }
    }
    return 0;
}

//== what follows a layer ==============================================================================================
//
//  The operators of layers of codes also add other codes, limit the result or apply gelu or silu, and make codes of it.

/* What follows a layer, up to the value `end`.  numbers[count]: see opdi_coded_ending in src/ops/quantized/coded.c. */
typedef struct opdi_coded_tail {
    opdi_gvalue *end;
    opdi_gvalue *wide;                            /* the dequantised `other`, or NULL */
    opdi_coded_value other;
    double numbers[9];
    int count, nnodes;
    opdi_gnode *nodes[4];
} opdi_coded_tail;

/* Returns the only user of a value, if it is a call with one result; else NULL. */
static opdi_gnode *opdi_coded_user(const opdi_gvalue *value) {
    opd_graph_use use;
    return opd_graph_value_uses(value, &use, 1) == 1 && use.node && use.node->kind == OPDI_GNODE_OP &&
        use.node->nout == 1 && use.node->block == value->node->block ? use.node : NULL;
}
/* Returns whether a node limits its argument, and sets the limits. */
static bool opdi_coded_limits(const opdi_gnode *node, double *limits) {
    limits[0] = 0;
    limits[1] = (double)INFINITY;
    if (opdi_coded_is(node, "aten::relu") || opdi_coded_is(node, "aten::relu_")) { return true; }
    if (opdi_coded_is(node, "aten::relu6") || opdi_coded_is(node, "aten::relu6_")) {
        limits[1] = 6;
        return true;
    }
    const bool tanh = opdi_coded_is(node, "aten::hardtanh") || opdi_coded_is(node, "aten::hardtanh_");
    if (!tanh && !opdi_coded_is(node, "aten::clamp") && !opdi_coded_is(node, "aten::clamp_")) { return false; }
    return opdi_coded_number_at(node, 1, tanh ? -1 : -(double)INFINITY, &limits[0]) &&
        opdi_coded_number_at(node, 2, tanh ? 1 : (double)INFINITY, &limits[1]) && limits[0] <= limits[1];
}
/* Returns whether a node applies gelu or silu, and sets *function to its number. */
static bool opdi_coded_function(const opdi_gnode *node, double *function) {
    opd_value way;
    if (opdi_coded_is(node, "aten::silu") || opdi_coded_is(node, "aten::silu_")) {
        *function = 3;
        return true;
    }
    if (!opdi_coded_is(node, "aten::gelu") && !opdi_coded_is(node, "aten::gelu_")) { return false; }
    *function = 1;
    if (node->nin < 2 || opdi_coded_none(node, 1)) { return true; }
    if (!opd_graph_value_constant(node->in[1], &way) || way.tag != OPD_TAG_STR) { return false; }
    *function = strcmp(way.u.s, "tanh") == 0 ? 2 : 1;
    return *function > 1 || strcmp(way.u.s, "none") == 0;
}
/* Reads the scale, zero point, quant_min, quant_max and dtype of quantize_per_tensor or dequantize_per_tensor with
   numbers.  Returns false if the node is another, or has other scales. */
static bool opdi_coded_numbers(const opdi_gnode *node, bool back, double *numbers) {
    bool right = node && node->kind == OPDI_GNODE_OP && node->nin >= 6 &&
        opd_graph_node_is(node, back ? "quantized_decomposed::dequantize_per_tensor"
                          : "quantized_decomposed::quantize_per_tensor") &&
        (!back || opdi_coded_dtype(node, 6, OPD_FLOAT32, OPD_FLOAT32));
    for (int i = 0; right && i < 5; i++) {
        right = !opdi_coded_none(node, i + 1) && opdi_coded_number_at(node, i + 1, 0, &numbers[i]);
    }
    const double inverse = right ? 1 / numbers[0] : 0, least = right && numbers[4] == (double)OPD_INT8 ? -128 : 0;
    return right && numbers[0] > 1e-30 && inverse > 1e-30 && fabs(numbers[1]) <= 65536 && numbers[2] >= least &&
        numbers[3] <= least + 255 && (numbers[4] == (double)OPD_INT8 || numbers[4] == (double)OPD_UINT8);
}
/* Returns whether codes may be channels-last: all their users take any strides. */
static bool opdi_coded_any_strides(const opdi_gvalue *codes) {
    static const char *const takers[] = {
        "quantized_decomposed::dequantize_per_tensor", "opdispatch::quantized_convolution",
        "opdispatch::quantized_max_pool2d", "aten::reshape"};
    opd_graph_use uses[8];
    const int count = opd_graph_value_uses(codes, uses, 8);
    bool any = count > 0 && count <= 8;
    for (int i = 0; any && i < count; i++) {
        any = false;
        for (int k = 0; uses[i].node && !any && k < 4; k++) { any = opd_graph_node_is(uses[i].node, takers[k]); }
    }
    return any;
}
/* Adds a node to what follows a layer.  Returns the only user of its result, or NULL. */
static opdi_gnode *opdi_coded_take(opdi_coded_tail *tail, opdi_gnode *node) {
    tail->nodes[tail->nnodes++] = node;
    tail->end = node->out[0];
    return opdi_coded_user(tail->end);
}
/* Finds what follows a layer.  Returns 0, or -1 and sets an error. */
static int opdi_coded_tail_find(const opdi_coded_search *search, opdi_gvalue *value, bool conv, opdi_coded_tail *tail) {
    memset(tail, 0, sizeof *tail);
    tail->end = value;
    tail->numbers[0] = -(double)INFINITY;
    tail->numbers[1] = (double)INFINITY;
    opdi_gnode *next = opdi_coded_user(value);
    if (next && (opdi_coded_is(next, "aten::add.Tensor") || opdi_coded_is(next, "aten::add_.Tensor")) &&
        opdi_coded_one(next, 2) && next->in[0] != next->in[1] && next->in[0]->tag == OPD_TAG_TENSOR) {
        const int at = next->in[0] == value;
        const opdi_gnode *const from = next->in[at]->node;
        double numbers[5];
        if ((at == 1 || opdi_coded_is(next, "aten::add.Tensor")) && opdi_coded_numbers(from, true, numbers) &&
            !opdi_coded_written(search, from->out[0]) && !opdi_coded_written(search, from->in[0])) {
            const int rc = opdi_coded_by(search->graph, from, false, &tail->other);
            if (rc < 0) { return -1; }
            tail->wide = from->out[0];
            next = opdi_coded_take(tail, next);
        }
    }
    if (next && next->in[0] == tail->end && opdi_coded_limits(next, tail->numbers)) {
        tail->count = 2;
        next = opdi_coded_take(tail, next);
    } else {
        tail->numbers[0] = -(double)INFINITY;
        tail->numbers[1] = (double)INFINITY;
    }
    opdi_gnode *const then = next && next->in[0] == tail->end && opdi_coded_function(next, &tail->numbers[8])
        ? opdi_coded_user(next->out[0]) : NULL;
    if (then && opdi_coded_numbers(then, false, tail->numbers + 2)) { next = opdi_coded_take(tail, next); }
    else { tail->numbers[8] = 0; }
    if (next && opdi_coded_numbers(next, false, tail->numbers + 2)) {
        tail->count = 9;
        (void)opdi_coded_take(tail, next);
        tail->numbers[7] = conv && opdi_coded_any_strides(tail->end);
    }
    return opd_ok() ? 0 : -1;
}

//== conversions that move behind other operators ======================================================================
//
//  Some operators only move elements, or choose some of them: a dequantisation behind them gives the same floats as
//  one before them.  It then meets a quantisation with the same numbers, and both are left out; or a layer.

/* Returns whether argument `i` of a node is absent or a list in which all numbers are `number`. */
static bool opdi_coded_all(const opdi_gnode *node, int i, int64_t number) {
    opd_value list;
    bool all = i >= node->nin;
    if (all || !opd_graph_value_constant(node->in[i], &list)) { return all; }
    if (list.tag == OPD_TAG_INT) { return list.u.i == number; }
    all = list.tag == OPD_TAG_INTS || list.tag == OPD_TAG_LIST;
    for (int at = 0; all && at < list.n; at++) { all = list.u.ints[at] == number; }
    return all;
}
static bool opdi_coded_moves(const opdi_gnode *node) {
    static const char *const names[] = {
        "aten::flatten.using_ints", "aten::view", "aten::reshape", "aten::_unsafe_view", "aten::permute",
        "aten::transpose.int", "aten::unsqueeze", "aten::squeeze.dim", "aten::squeeze.dims", "aten::embedding"};
    bool moves = false;
    for (int i = 0; !moves && i < 10; i++) { moves = opdi_coded_is(node, names[i]); }
    if (moves || !opdi_coded_is(node, "aten::max_pool2d") || node->nin != 6) { return moves; }
    return opdi_coded_all(node, 3, 0) || opdi_coded_all(node, 4, 1);        /* else a window may be all padding */
}
/* Returns whether a value has this dtype in each run: it is constant, or made by a quantisation, and perhaps moved. */
static bool opdi_coded_surely(const opdi_gvalue *value, double dtype, int depth) {
    static const char *const makers[] = {
        "quantized_decomposed::quantize_per_tensor", "quantized_decomposed::quantize_per_token",
        "quantized_decomposed::quantize_per_channel_group", "quantized_decomposed::quantize_per_channel",
        "torchao::quantize_affine"};
    static const int at[] = {5, 5, 5, 6, 4};
    const opdi_gnode *const node = value->node;
    int64_t made;
    if (!node || depth > 16) { return false; }
    if (node->kind == OPDI_GNODE_CONSTANT) { return (double)opdi_coded_dtype_of(value) == dtype; }
    bool sure = node->kind == OPDI_GNODE_LIST && node->nin > 0;
    for (int i = 0; sure && i < node->nin; i++) { sure = opdi_coded_surely(node->in[i], dtype, depth + 1); }
    if (sure || node->kind != OPDI_GNODE_OP) { return sure; }
    for (int i = 0; i < 5; i++) {
        if (opd_graph_node_is(node, makers[i])) { return opdi_coded_int(node, at[i], &made) && (double)made == dtype; }
    }
    return (opdi_coded_moves(node) || opdi_coded_is(node, "aten::cat") ||
            opd_graph_node_is(node, "opdispatch::quantized_max_pool2d")) &&
        opdi_coded_surely(node->in[0], dtype, depth + 1);
}
/* Returns a call of the operator of `node` with codes, and the result dequantised as `from` does. */
static opdi_gvalue *opdi_coded_moved(opd_graph *graph, const opdi_gnode *node, const opdi_gnode *from) {
    opd_graph_arg args[8];
    const bool view = opdi_coded_is(node, "aten::view") || opdi_coded_is(node, "aten::_unsafe_view");
    for (int i = 0; i < node->nin; i++) { args[i] = opdi_coded_arg_of(i ? node->in[i] : from->in[0]); }
    const char *const name = view ? "aten::reshape" : opdi_coded_is(node, "aten::max_pool2d")
        ? "opdispatch::quantized_max_pool2d" : opd_op_name(node->op);
    opdi_gvalue *const codes = opd_graph_call_args(graph, name, args, node->nin);
    for (int i = 0; codes && i < from->nin; i++) { args[i] = opdi_coded_arg_of(i ? from->in[i] : codes); }
    return codes ? opd_graph_call_args(graph, opd_op_name(from->op), args, from->nin) : NULL;
}
/* Moves the dequantisation before a node behind it, or leaves out a quantisation of dequantised codes.  Returns 1; 0 if
   the node is another; or -1 and sets an error. */
static int opdi_coded_move(const opdi_coded_search *search, opdi_gnode *node) {
    const opdi_gnode *const from = node->kind == OPDI_GNODE_OP && node->nin && node->nout == 1 ? node->in[0]->node
        : NULL;
    double now[5], before[5];
    if (!from || !opdi_coded_numbers(from, true, before) || opdi_coded_written(search, from->out[0]) ||
        opdi_coded_written(search, from->in[0]) || opdi_coded_written(search, node->out[0])) { return 0; }
    const bool whole = before[3] - before[2] >= 255;
    const bool again = whole && opdi_coded_numbers(node, false, now) && memcmp(now, before, sizeof now) == 0 &&
        opdi_coded_surely(from->in[0], before[4], 0);            /* else the conversion may fail in a run */
    if (!again && (node->nin > 8 || from->nin > 8 || !opdi_coded_moves(node))) { return 0; }
    if (opd_graph_insert_before(search->graph, node->out[0])) { return -1; }
    opdi_gvalue *const old = node->out[0];
    opdi_gvalue *const made = again ? from->in[0] : opdi_coded_moved(search->graph, node, from);
    return !made || opd_graph_replace(search->graph, old, made) < 0 || opdi_coded_remove(search->graph, old) ? -1 : 1;
}

/* Returns a list of ints as an argument for a call. */
static opd_graph_arg opdi_coded_ints(const int64_t *ints, int count) {
    opd_graph_arg arg = opdi_coded_arg_of(NULL);
    arg.constant = opd_value_ints(ints, count);
    return arg;
}
/* Lets an embedding read codes with a scale for each row, and dequantises only the rows that it takes.  Returns 1; 0 if
   the node is another; or -1 and sets an error. */
static int opdi_coded_embed(const opdi_coded_search *search, opdi_gnode *node) {
    opd_graph *const graph = search->graph;
    const opdi_gnode *const from = node->nin == 5 && node->in[0]->node ? node->in[0]->node : node;
    opd_graph_arg args[8];
    opdi_coded_value coded;
    if (!opdi_coded_is(node, "aten::embedding") || node->nout != 1 || from->nout != 1 ||
        !opd_graph_node_is(from, "quantized_decomposed::dequantize_per_channel") ||
        opdi_coded_by(graph, from, true, &coded) != 1) { return opd_ok() ? 0 : -1; }
    opdi_gvalue *const parts[3] = {coded.codes, coded.scales, coded.zeros};
    if (opdi_coded_written(search, from->out[0]) || opdi_coded_written(search, node->out[0])) { return 0; }
    for (int i = 0; i < 3; i++) {
        if (opdi_coded_written(search, parts[i])) { return 0; }
        args[i] = opdi_coded_arg_of(parts[i]);
    }
    if (opd_graph_insert_before(graph, node->out[0])) { return -1; }
    for (int i = 1; i < 5; i++) { args[2 + i] = opdi_coded_arg_of(node->in[i]); }
    args[7] = opdi_coded_ints(coded.rule, 4);
    opdi_gvalue *const made = opd_graph_call_args(graph, "opdispatch::quantized_embedding", args, 8);
    opdi_gvalue *const old = node->out[0];
    return !made || opd_graph_replace(graph, old, made) < 0 || opdi_coded_remove(graph, old) ? -1 : 1;
}
/* Joins codes instead of floats, if all of them are dequantised with the same numbers.  Returns 1; 0 if the node is
   another; or -1 and sets an error. */
static int opdi_coded_join(const opdi_coded_search *search, opdi_gnode *node) {
    opd_graph *const graph = search->graph;
    const opdi_gnode *const list = node->nin == 2 && node->nout == 1 ? node->in[0]->node : NULL;
    double numbers[5], first[5];
    opd_graph_arg args[8];
    opdi_gvalue *codes[OPD_MAX_ARGS];
    if (!opdi_coded_is(node, "aten::cat") || !list || list->kind != OPDI_GNODE_LIST || list->nin < 1 ||
        list->nin > OPD_MAX_ARGS || opdi_coded_written(search, node->out[0])) { return 0; }
    for (int i = 0; i < list->nin; i++) {
        const opdi_gnode *const from = list->in[i]->node;
        if (!from || !opdi_coded_numbers(from, true, i ? numbers : first) || from->nin > 8 ||
            (i && memcmp(numbers, first, sizeof first) != 0) || opdi_coded_written(search, from->out[0]) ||
            opdi_coded_written(search, from->in[0]) || !opdi_coded_surely(from->in[0], first[4], 0)) {
            return opd_ok() ? 0 : -1;             /* cat takes several dtypes, but the conversion does not */
        }
        codes[i] = from->in[0];
    }
    if (opd_graph_insert_before(graph, node->out[0])) { return -1; }
    const opdi_gnode *const from = list->in[0]->node;
    args[0] = opdi_coded_arg_of(opd_graph_list(graph, "Tensor", codes, list->nin));
    args[1] = opdi_coded_arg_of(node->in[1]);
    opdi_gvalue *made = args[0].value ? opd_graph_call_args(graph, "aten::cat", args, 2) : NULL;
    for (int i = 0; made && i < from->nin; i++) { args[i] = opdi_coded_arg_of(i ? from->in[i] : made); }
    made = made ? opd_graph_call_args(graph, opd_op_name(from->op), args, from->nin) : NULL;
    opdi_gvalue *const old = node->out[0];
    return !made || opd_graph_replace(graph, old, made) < 0 || opdi_coded_remove(graph, old) ? -1 : 1;
}

//== weights that are packed in the graph ==============================================================================

/* Lets oneDNN's layers read a weight that the graph packs for them: here, packing is only a copy, which each run would
   make.  Returns 1; 0 if the node is another; or -1 and sets an error. */
static int opdi_coded_unpack(const opdi_coded_search *search, const opdi_gnode *node) {
    const bool op = node->kind == OPDI_GNODE_OP && node->nout == 1;
    const bool linear = op && opdi_coded_is(node, "onednn::qlinear_prepack");
    opd_graph_use uses[8];
    if (!linear && !(op && opdi_coded_is(node, "onednn::qconv_prepack"))) { return 0; }
    opdi_gvalue *const weight = node->in[0], *const packed = node->out[0];
    const int count = opd_graph_value_uses(packed, uses, 8);
    const bool known = weight->dims != NULL, other = linear ? known && weight->ndim != 2 : !known || weight->ndim < 4;
    if (count < 1 || count > 8 || other ||
        opdi_coded_written(search, weight) || opdi_coded_written(search, packed)) { return opd_ok() ? 0 : -1; }
    for (int i = 0; i < count; i++) {
        const opdi_gnode *const user = uses[i].node;
        if (!user || user->kind != OPDI_GNODE_OP || uses[i].index != 3 ||
            strncmp(user->op->name, linear ? "onednn::qlinear" : "onednn::qconv", linear ? 15 : 13) != 0) { return 0; }
    }
    const opd_graph_arg arg = opdi_coded_arg_of(weight);
    if (opd_graph_insert_before(search->graph, packed)) { return -1; }
    opdi_gvalue *const made = linear ? opd_graph_call_args(search->graph, "aten::t", &arg, 1) : weight;
    return !made || opd_graph_replace(search->graph, packed, made) < 0 || opdi_coded_remove(search->graph, packed) ? -1
        : 1;
}

//== layers ============================================================================================================

/* Replaces a layer by one operator.  Returns 1; 0 if it stays; or -1 and sets an error. */
static int opdi_coded_fuse(const opdi_coded_search *search, opdi_gnode *node) {
    opd_graph *const graph = search->graph;
    opdi_coded_layer layer;
    opdi_coded_value x, w;
    opdi_coded_tail tail;
    if (!opdi_coded_layer_of(node, &layer)) { return opd_ok() ? 0 : -1; }
    if (opd_graph_insert_before(graph, node->out[0])) { return -1; }
    int rc = opdi_coded_find(graph, layer.weight, layer.conv ? OPDI_CODED_PLANES : OPDI_CODED_MATRIX, &w);
    if (rc != 1 || w.turned != layer.turned) { return rc < 0 ? -1 : 0; }
    rc = opdi_coded_find(graph, layer.x, OPDI_CODED_INPUT, &x);
    if (rc < 0 || (rc == 0 && layer.conv)) { return rc; }
    memset(&tail, 0, sizeof tail);
    tail.end = node->out[0];
    if (rc == 0) {
        memset(&x, 0, sizeof x);
        x.codes = layer.x;
    } else if (!opdi_coded_written(search, layer.bias) &&
               opdi_coded_tail_find(search, node->out[0], layer.conv != 0, &tail)) { return -1; }
    opdi_gvalue *const all[] = {x.codes, x.scales, x.zeros, w.codes, w.scales, w.zeros};
    opd_graph_arg args[17];
    int64_t rules[9];
    for (int i = 0; i < 6; i++) {
        if (opdi_coded_written(search, all[i])) { return 0; }
        args[i] = opdi_coded_arg_of(all[i]);
    }
    if (opd_graph_insert_before(graph, tail.end)) { return -1; }
    args[6] = opdi_coded_arg_of(layer.bias);
    for (int i = 0; i < 3 && layer.conv; i++) { args[7 + i] = opdi_coded_arg_of(node->in[layer.conv + i]); }
    if (layer.conv) {
        args[10] = opdi_coded_arg_of(node->in[layer.groups]);
        args[11] = opdi_coded_arg_of(NULL);
        args[11].constant = opd_value_bool(layer.flat);
    }
    const int at = layer.conv ? 12 : 7;
    args[at] = opdi_coded_arg_of(tail.other.codes);
    args[at + 1] = opdi_coded_arg_of(tail.other.scales);
    args[at + 2] = opdi_coded_arg_of(tail.other.zeros);
    args[at + 3] = opdi_coded_arg_of(NULL);
    args[at + 3].constant = opd_value_doubles(tail.numbers, tail.count);
    memcpy(rules, x.rule, sizeof x.rule);
    memcpy(rules + 4, w.rule, sizeof w.rule);
    rules[8] = tail.other.rule[1];
    args[at + 4] = opdi_coded_ints(rules, 9);
    opdi_gvalue *const old = node->out[0];
    opdi_gvalue *const made = opd_graph_call_args(graph, layer.conv ? "opdispatch::quantized_convolution"
                                                  : "opdispatch::quantized_linear", args, at + 5);
    if (!made || opd_graph_replace(graph, tail.end, made) < 0) { return -1; }
    while (tail.nnodes > 0) {                     /* operators in place, too, whose results nothing uses now */
        if (opd_graph_erase_node(graph, tail.nodes[--tail.nnodes])) { return -1; }
    }
    return (tail.wide && opdi_coded_remove(graph, tail.wide)) || opdi_coded_remove(graph, old) ? -1 : 1;
}
int opd_graph_fuse_quantized(opd_graph *graph) {
    opdi_coded_search search;
    int fused = 0, rc = 0;
    if (!graph || !opd_ok()) {
        return opd_ok() ? opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_fuse_quantized: the graph is NULL") : -1;
    }
    if (!opd_find_quiet("opdispatch::quantized_linear") || !opd_find_quiet("opdispatch::quantized_convolution") ||
        !opd_find_quiet("opdispatch::quantized_embedding")) {
        return opd_ok() ? 0 : -1;                 /* the operators were left out of this build */
    }
    opd_scope scope = opd_scope_open();
    search.graph = graph;
    if (opdi_graph_alias(graph, false)) { rc = -1; }
    else { search.mark = opdi_graph_mark_written(graph); }
    for (opd_graph_node *node = opd_graph_first(graph), *next; node && rc >= 0; node = next) {
        next = opd_graph_next(node);
        int moved = opdi_coded_move(&search, node);
        if (!moved) { moved = opdi_coded_join(&search, node); }
        rc = moved ? moved : opdi_coded_embed(&search, node);
        if (!rc) { rc = opdi_coded_unpack(&search, node); }
        fused += !moved && rc > 0;
    }
    for (opd_graph_node *node = opd_graph_first(graph), *next; node && rc >= 0; node = next) {
        next = opd_graph_next(node);
        rc = opdi_coded_fuse(&search, node);
        if (rc > 0) { next = opd_graph_first(graph); }            /* `next` may have been left out */
        fused += rc > 0;
    }
    if (opd_graph_insert_before(graph, NULL)) { rc = -1; }
    opd_scope_close(&scope);
    return rc < 0 ? -1 : fused;
}
