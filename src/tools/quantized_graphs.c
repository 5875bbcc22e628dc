#include "tools.h"

//== weights of layers in graphs =======================================================================================
//
//  A weight is a tensor of the module, or a constant of the graph, that only layers use.  The functions here find the
//  weights in a copy of the graph, quantise them, run the float graph with the batches to find the ranges of the
//  layers' inputs, change the copy, and run both graphs to compare layers and outputs.  An observer sees the calls of
//  layers while the float graph runs; it knows a layer by the memory of its weight.

/* A call that uses a weight.  node: takes the weight as input number `input`; it is the layer itself, or the transpose
   of the weight for it.  The layer has the weight as argument weight_at, and its input as argument input_at. */
typedef struct opdi_quantize_use { opdi_gnode *node, *layer; int input, weight_at, input_at; } opdi_quantize_use;
typedef struct opdi_quantize_weight {
    opd_quantized row;
    char form[100], op[100];
    opd_tensor *tensor;
    opdi_gvalue *value;          /* the weight in the copy of the graph */
    int64_t at;                  /* its number in the module; -1: it is a constant */
    opdi_quantize_use *uses;     /* [row.uses] */
    bool turned, convolution;    /* turned: the first two dims are inputs and outputs, not outputs and inputs */
    opdi_integers numbers;
    opd_tensor *stored;          /* the tensor that takes its place; NULL: it stays */
    opdi_input_range range;
    double off, square;          /* the sums of differences, and of squares of the float layer's outputs */
    int64_t count;               /* how many outputs were compared */
} opdi_quantize_weight;
typedef struct opdi_quantizer {
    const opdi_quantize_source *source;
    const opd_quantize_options *options;
    opdi_quantize_how how;
    opd_graph *graph;            /* the copy */
    opdi_quantize_weight *weights;
    int64_t count;
    opd_tensor **before, **after;                 /* the tensors of the module */
    int64_t ntensors;
    uint64_t written;            /* the mark of values of the copy whose memory a node writes */
    bool compare;                /* the observer compares layers; else it finds ranges */
    opd_code code;               /* the error of the observer, OPD_OK if there is none */
    char text[500];
} opdi_quantizer;

/* Returns whether input `input` of a node is the weight of a layer, and describes the layer in *use. */
static bool opdi_quantize_layer(opdi_gnode *node, int input, opdi_quantize_use *use, bool *turned, bool *convolution) {
    static const struct { const char *name; int weight; bool turned, convolution; } rows[] = {
        {"aten::linear", 1, false, false}, {"aten::mm", 1, true, false}, {"aten::matmul", 1, true, false},
        {"aten::addmm", 2, true, false}, {"aten::conv1d", 1, false, true}, {"aten::conv2d", 1, false, true},
        {"aten::conv3d", 1, false, true}, {"aten::convolution", 1, false, true},
        {"aten::conv_transpose1d", 1, true, true}, {"aten::conv_transpose2d", 1, true, true},
        {"aten::conv_transpose3d", 1, true, true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].weight != input || !opd_graph_node_is(node, rows[i].name)) { continue; }
        use->layer = node;
        use->weight_at = input;
        use->input_at = input - 1;
        *turned = rows[i].turned;
        *convolution = rows[i].convolution;
        opd_value value;
        if (i == 7) { *turned = opd_graph_value_constant(node->in[6], &value) && value.u.i; }
        return true;
    }
    return false;
}
/* Returns the uses of a value in the innermost scope, and their number; NULL and sets an error if memory runs out. */
static opd_graph_use *opdi_quantize_uses(const opdi_gvalue *value, int *count) {
    *count = opd_graph_value_uses(value, NULL, 0);
    opd_graph_use *const uses = *count < 0 ? NULL
        : (opd_graph_use *)opdi_scope_alloc((size_t)(*count + 1) * sizeof *uses);
    return uses && opd_graph_value_uses(value, uses, *count) >= 0 ? uses : NULL;
}
/* Adds a use to a weight.  `why` is set if the weight cannot be quantised because of it.  Returns 0, or -1 and sets an
   error. */
static int opdi_quantize_use_add(opdi_quantize_weight *weight, const opd_graph_use *its, opdi_quantize_use *use,
                                 const char **why) {
    bool turned = false, convolution = false, view = false;
    use->node = its->node;
    use->input = its->index;
    bool layer = its->node && opdi_quantize_layer(its->node, its->index, use, &turned, &convolution);
    if (its->node && !layer && weight->tensor->ndim == 2 && its->index == 0 && opdi_gnode_transposes(its->node)) {
        int count;
        const opd_graph_use *const again = opdi_quantize_uses(its->node->out[0], &count);
        if (!again) { return -1; }
        layer = count == 1 && again->node && opdi_quantize_layer(again->node, again->index, use, &turned,
                                                                 &convolution) && turned && !convolution;
        view = layer;
    }
    turned = turned != view;
    const bool fits = layer && (weight->tensor->ndim == 2) == !convolution &&
        (!weight->row.uses || (weight->turned == turned && weight->convolution == convolution));
    if (!fits) {
        char name[60] = "the graph, which returns it";
        if (its->node) { (void)opd_graph_node_name(its->node, name, sizeof name); }
        (void)snprintf(weight->form, sizeof weight->form, "it is used by %s", name);
        *why = weight->form;
    }
    if (layer && !weight->op[0]) { (void)opd_graph_node_name(use->layer, weight->op, sizeof weight->op); }
    weight->turned = turned;
    weight->convolution = convolution;
    weight->row.uses += layer;
    return 0;
}
/* Adds the uses of a value to a weight.  Returns 0, or -1 and sets an error. */
static int opdi_quantize_uses_add(opdi_quantize_weight *weight, const opdi_gvalue *value, const char **why) {
    int count;
    const opd_graph_use *const its = opdi_quantize_uses(value, &count);
    opdi_quantize_use *const uses = its ? (opdi_quantize_use *)opdi_scope_alloc(
        (size_t)(weight->row.uses + count + 1) * sizeof *uses) : NULL;
    if (!uses) { return -1; }
    if (weight->row.uses) { memcpy(uses, weight->uses, (size_t)weight->row.uses * sizeof *uses); }
    weight->uses = uses;
    for (int i = 0; i < count; i++) {
        if (opdi_quantize_use_add(weight, &its[i], &uses[weight->row.uses], why)) { return -1; }
    }
    return 0;
}

//== quantising weights ================================================================================================

/* Returns why the layer's form of a weight cannot be quantised, or NULL. */
static const char *opdi_quantize_unfit_layer(const opdi_quantizer *q, const opdi_quantize_weight *weight) {
    const opd_tensor *const tensor = weight->tensor;
    const int64_t rows = tensor->ndim ? opdi_sizes(tensor)[weight->turned] : 1;
    if (weight->convolution && q->how.blocks != OPD_DTYPE_NONE) { return "convolutions take no blocks"; }
    return q->how.bits == 4 && rows && tensor->numel / rows % 2 ? "4 bits need rows of even length" : NULL;
}
/* Returns a weight as a float32 matrix [outputs, inputs].  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_quantize_matrix(const opdi_quantize_weight *weight) {
    opd_tensor *const tensor = opd_to_dtype(opd_detach(weight->tensor), OPD_FLOAT32);
    opd_tensor *const turned = tensor && weight->turned ? opd_transpose(tensor, 0, 1) : tensor;
    const int64_t sizes[2] = {turned ? opdi_sizes(turned)[0] : 0, turned ? turned->numel / opdi_sizes(turned)[0] : 0};
    return turned ? opd_contiguous(opd_reshape(turned, opd_ints_of(sizes, 2))) : NULL;
}
/* Returns the sizes of a weight with the outputs first. */
static opd_ints opdi_quantize_sizes(const opdi_quantize_weight *weight, int64_t sizes[OPD_MAX_DIMS]) {
    memcpy(sizes, opdi_sizes(weight->tensor), (size_t)weight->tensor->ndim * sizeof *sizes);
    if (weight->turned) {
        sizes[0] = opdi_sizes(weight->tensor)[1];
        sizes[1] = opdi_sizes(weight->tensor)[0];
    }
    return opd_ints_of(sizes, weight->tensor->ndim);
}
/* Returns the numbers that are stored for a weight, with its sizes and dtype; or the blocks.  Returns NULL and sets an
   error on failure. */
static opd_tensor *opdi_quantize_again(const opdi_quantizer *q, const opdi_quantize_weight *weight) {
    const opdi_integers *const its = &weight->numbers;
    int64_t sizes[OPD_MAX_DIMS];
    opd_tensor *again = weight->stored;
    if (q->how.blocks == OPD_DTYPE_NONE) {
        const int64_t rows = opdi_sizes(its->codes)[0], groups = its->scales->numel / rows;
        const int64_t grouped[3] = {rows, groups, weight->tensor->numel / rows / groups};
        const int64_t each[3] = {rows, groups, 1};
        opd_tensor *codes = its->codes;
        if (q->how.bits == 4) {
            opd_tensor *halves[2];
            halves[0] = opd_bitwise_and_Scalar(codes, opd_value_int(15));
            halves[1] = opd_bitwise_right_shift_Tensor_Scalar(codes, opd_value_int(4));
            codes = opd_ok() ? opd_stack(opd_tensors_of(halves, 2), -1) : NULL;
        }
        codes = opd_to_dtype(opd_reshape(codes, opd_ints_of(grouped, 3)), OPD_FLOAT32);
        codes = opd_sub(codes, opd_to_dtype(opd_reshape(its->zeros, opd_ints_of(each, 3)), OPD_FLOAT32));
        codes = opd_mul(codes, opd_reshape(its->scales, opd_ints_of(each, 3)));
        again = opd_to_dtype(opd_reshape(codes, opdi_quantize_sizes(weight, sizes)),
                             (opd_scalar_type)weight->tensor->dtype);
    }
    return again && weight->turned ? opd_transpose(again, 0, 1) : again;
}
/* Quantises a weight, which fits.  Returns 0, or -1 and sets an error. */
static int opdi_quantize_weight_do(const opdi_quantizer *q, opdi_quantize_weight *weight) {
    opd_quantized *const row = &weight->row;
    const opdi_quantize_how *const how = &q->how;
    const char *const who = q->source->who;
    int64_t sizes[OPD_MAX_DIMS], bytes;
    if (opdi_quantize_check(who, row->name, weight->tensor)) { return -1; }
    opd_tensor *const matrix = opdi_quantize_matrix(weight), *again = NULL;
    if (!matrix) { return -1; }
    const bool blocks = how->blocks != OPD_DTYPE_NONE;
    const int64_t group = blocks ? opd_dtype_block(how->blocks, &bytes) : weight->convolution ? 0 : how->group;
    if (group && opdi_sizes(matrix)[1] % group) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: the weight '%.200s' has rows of %lld numbers, which %s of %lld do not "
                        "divide: use another size, or select other weights with options->layers", who, row->name,
                        (long long)opdi_sizes(matrix)[1], blocks ? "blocks" : "groups", (long long)group);
    }
    if (blocks) { weight->stored = again = opd_quantize_blocks(matrix, how->blocks); }
    else if (opdi_quantize_integers(how, matrix, !weight->convolution, &weight->numbers, &again) == 0) {
        weight->stored = how->bits == 4 ? weight->numbers.codes
            : opd_reshape(weight->numbers.codes, opdi_quantize_sizes(weight, sizes));
    }
    if (!weight->stored || (blocks && !(again = opd_dequantize(again))) ||
        opdi_quantize_differ(matrix, again, &row->weight_mean, &row->weight_max)) {
        weight->stored = NULL;
        return opdi_quantize_blame(who, row->name);
    }
    opdi_quantize_form(how, !weight->convolution, weight->form, sizeof weight->form);
    row->bytes_after = opdi_quantize_bytes(weight->stored) + opdi_quantize_bytes(weight->numbers.scales) +
        opdi_quantize_bytes(weight->numbers.zeros);
    row->kept = false;
    return 0;
}
/* Completes a weight whose uses are known, and quantises it if it fits and is selected.  Only weights that a layer uses
   are counted.  Returns 0, or -1 and sets an error. */
static int opdi_quantize_weight_end(opdi_quantizer *q, opdi_quantize_weight *weight, const char *why) {
    opd_quantized *const row = &weight->row;
    if (!row->uses) { return 0; }
    q->count++;
    row->op = weight->op;
    row->kept = true;
    row->bytes_before = row->bytes_after = opdi_quantize_bytes(weight->tensor);
    row->output_mean = row->output_max = row->output_size = NAN;
    if (!why) { why = opdi_quantize_unfit(weight->tensor); }
    if (!why) { why = opdi_quantize_unfit_layer(q, weight); }
    if (!why && !opdi_quantize_chosen(q->options, row)) { why = "it is not selected"; }
    row->form = why ? why : weight->form;
    return !opd_ok() ? -1 : why ? 0 : opdi_quantize_weight_do(q, weight);
}
static bool opdi_quantize_is_weight(const opd_tensor *tensor) {
    return tensor->ndim >= 2 && opd_dtype_is_floating((opd_scalar_type)tensor->dtype) && !opdi_is_block(tensor->dtype);
}
/* Finds the weights, and quantises those that fit and are selected.  Returns 0, or -1 and sets an error. */
static int opdi_quantize_find(opdi_quantizer *q) {
    const opd_module *const module = q->source->module;
    int64_t most = q->ntensors;
    for (opdi_gnode *node = opd_graph_first(q->graph); node; node = opd_graph_next(node)) {
        most += node->kind == OPDI_GNODE_CONSTANT && node->constant.tag == OPD_TAG_TENSOR;
    }
    q->weights = (opdi_quantize_weight *)opdi_scope_alloc((size_t)(most + 1) * sizeof *q->weights);
    if (!q->weights) { return -1; }
    memset(q->weights, 0, (size_t)(most + 1) * sizeof *q->weights);
    for (int64_t i = 0; i < q->ntensors; i++) {
        opdi_quantize_weight *const weight = &q->weights[q->count];
        const char *why = NULL;
        int64_t first = 0;
        while (q->before[first] != q->before[i]) { first++; }
        if (first < i || !opdi_quantize_is_weight(q->before[i])) { continue; }
        memset(weight, 0, sizeof *weight);
        weight->row.name = opd_module_name(module, i);
        weight->tensor = q->before[i];
        weight->at = i;
        weight->value = q->graph->inputs[i];
        for (int64_t k = i; k < q->ntensors; k++) {
            if (q->before[k] == q->before[i] && opdi_quantize_uses_add(weight, q->graph->inputs[k], &why)) {
                return -1;
            }
        }
        if (opdi_quantize_weight_end(q, weight, why)) { return -1; }
    }
    for (opdi_gnode *node = opd_graph_first(q->graph); node; node = opd_graph_next(node)) {
        opdi_quantize_weight *const weight = &q->weights[q->count];
        const char *why = NULL;
        if (node->kind != OPDI_GNODE_CONSTANT || node->constant.tag != OPD_TAG_TENSOR ||
            !opdi_quantize_is_weight(node->constant.u.t)) { continue; }
        char *const name = (char *)opdi_scope_alloc(100);
        if (!name) { return -1; }
        (void)opd_graph_value_name(node->out[0], name, 100);
        memset(weight, 0, sizeof *weight);
        weight->row.name = name;
        weight->tensor = node->constant.u.t;
        weight->at = -1;
        weight->value = node->out[0];
        if (opdi_quantize_uses_add(weight, node->out[0], &why) || opdi_quantize_weight_end(q, weight, why)) {
            return -1;
        }
    }
    return 0;
}

//== runs with batches =================================================================================================

/* Runs a graph, the original or the copy, with a batch.  Returns the number of outputs, or -1 and sets an error. */
static int opdi_quantize_run(const opdi_quantizer *q, const opd_graph *graph, opd_tensor *const *tensors,
                             const opd_value *inputs, opd_value *outputs, int cap) {
    const int ninputs = q->options->ninputs;
    if (q->source->run) { return q->source->run(q->source->user, graph, tensors, inputs, ninputs, outputs, cap); }
    opd_value *const all = (opd_value *)opdi_scope_alloc((size_t)(q->ntensors + ninputs + 1) * sizeof *all);
    if (!all) { return -1; }
    for (int64_t i = 0; i < q->ntensors; i++) { all[i] = opd_value_tensor(tensors[i]); }
    for (int i = 0; i < ninputs; i++) { all[q->ntensors + i] = inputs[i]; }
    return opdi_graph_run_values(graph, all, (int)q->ntensors + ninputs, outputs, cap);
}
/* Returns the input of a layer as the quantised graph rounds it.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_quantize_input(const opdi_quantizer *q, const opdi_quantize_weight *weight, opd_tensor *x) {
    const opd_value limits[3] = {opd_value_int(-128), opd_value_int(127), opd_value_int(OPD_INT8)};
    opd_value args[8], found[2];
    if (q->how.fixed) {
        return opd_to_dtype(opd_fake_quantize_per_tensor_affine(opd_to_dtype(x, OPD_FLOAT32), weight->row.input_scale,
                                                                weight->row.input_zero_point, -128, 127),
                            (opd_scalar_type)x->dtype);
    }
    if (!q->how.dynamic || weight->convolution) { return x; }
    args[0] = opd_value_tensor(x);
    args[1] = limits[2];
    if (opd_call_all(opd_find(OPDI_NAME(quantized, "quantized_decomposed::choose_qparams_per_token_asymmetric")), found,
                     args, 2)) { return NULL; }
    args[1] = found[0];
    args[2] = found[1];
    memcpy(args + 3, limits, sizeof limits);
    x = opd_call_op(opd_find(OPDI_NAME(quantized, "quantized_decomposed::quantize_per_token")), args, 6);
    args[0] = opd_value_tensor(x);
    args[6] = opd_value_int(weight->tensor->dtype);
    return x ? opd_call_op(opd_find(OPDI_NAME(quantized, "quantized_decomposed::dequantize_per_token")), args, 7)
        : NULL;
}
/* Compares the output y of a float layer with the output of the same call with quantised numbers.  Returns 0, or -1 and
   sets an error. */
static int opdi_quantize_compare(const opdi_quantizer *q, opdi_quantize_weight *weight, const opdi_quantize_use *use,
                                 const opd_event *event) {
    opd_value args[OPD_MAX_ARGS];
    opd_tensor *const w = event->args[use->weight_at].u.t, *const y = event->rets[0].u.t;
    opd_tensor *again = opdi_quantize_again(q, weight);
    double mean, most;
    const bool same = memcmp(w->dims, weight->tensor->dims, 2 * (size_t)w->ndim * sizeof *w->dims) == 0;
    if (again && !same) { again = opd_t(again); }
    memcpy(args, event->args, (size_t)event->nargs * sizeof *args);
    args[use->weight_at] = opd_value_tensor(again);
    args[use->input_at] = opd_value_tensor(opdi_quantize_input(q, weight, event->args[use->input_at].u.t));
    opd_tensor *const z = opd_ok() ? opd_call_op(event->op, args, event->nargs) : NULL;
    if (!z || opdi_quantize_differ(y, z, &mean, &most)) { return -1; }
    weight->off += mean * (double)y->numel;
    weight->count += y->numel;
    weight->square += opd_item_f64(opd_sum(opd_square(opd_to_dtype(y, OPD_FLOAT64))));
    weight->row.output_max = weight->row.output_max >= most ? weight->row.output_max : most;
    return opd_ok() ? 0 : -1;
}
/* Returns the first weight from number *next on that a call uses, and the use, and sets *next to the number after it;
   or NULL.  Weights may share memory. */
static opdi_quantize_weight *opdi_quantize_called(const opdi_quantizer *q, const opd_event *event, int64_t *next,
                                                  const opdi_quantize_use **use) {
    while (*next < q->count) {
        opdi_quantize_weight *const weight = &q->weights[(*next)++];
        for (int k = 0; k < weight->row.uses && weight->stored; k++) {
            *use = &weight->uses[k];
            if ((*use)->layer->op != event->op || (*use)->weight_at >= event->nargs) { continue; }
            const opd_value *const arg = &event->args[(*use)->weight_at];
            const opd_tensor *const its = arg->tag == OPD_TAG_TENSOR ? arg->u.t : NULL;
            if (its && its->data == weight->tensor->data && its->numel == weight->tensor->numel &&
                its->ndim == weight->tensor->ndim && event->args[(*use)->input_at].tag == OPD_TAG_TENSOR) {
                return weight;
            }
        }
    }
    return NULL;
}
/* The observer's function at the end of a call. */
static void opdi_quantize_see(const opd_event *event, void *context, void *user) {
    opdi_quantizer *const q = (opdi_quantizer *)user;
    const opdi_quantize_use *use;
    opdi_quantize_weight *weight;
    int64_t next = 0;
    (void)context;
    while (event->rets && !q->code && (weight = opdi_quantize_called(q, event, &next, &use))) {
        const int rc = q->compare ? opdi_quantize_compare(q, weight, use, event)
            : opdi_range_add(&weight->range, event->args[use->input_at].u.t, q->how.ranges > OPDI_RANGE_MINMAX);
        if (rc == 0 && opd_ok()) { continue; }
        q->code = opd_error_code();
        (void)snprintf(q->text, sizeof q->text, "%s: the layer of '%.200s': %.200s", q->source->who, weight->row.name,
                       opd_error_message());
        opd_error_clear();
    }
}
/* Runs the float graph with batch `at` while the observer sees its layers.  Returns 0, or -1 and sets an error. */
static int opdi_quantize_observed(opdi_quantizer *q, int at, opd_value *outputs) {
    opd_observer observer;
    memset(&observer, 0, sizeof observer);
    observer.end = opdi_quantize_see;
    observer.user = q;
    observer.kinds = OPD_OBSERVE_CALL;
    const int64_t handle = opd_observer_add_local(&observer);
    if (!handle) { return -1; }
    const bool was = opd_observe_set(true);
    const int count = opdi_quantize_run(q, q->source->graph, q->before, q->options->batches[at], outputs,
                                        q->graph->noutputs);
    (void)opd_observe_set(was);
    (void)opd_observer_remove(handle);
    if (q->code && opd_ok()) { return opd_fail(q->code, "%s", q->text); }
    return count < 0 ? opdi_fail_more(" [%s: batch %d]", q->source->who, at) : 0;
}
/* Finds the ranges of the layers' inputs.  Returns 0, or -1 and sets an error. */
static int opdi_quantize_calibrate(opdi_quantizer *q) {
    for (int i = 0; i < q->options->nbatches; i++) {
        opd_scope scope = opd_scope_open();
        opd_value *const outputs = (opd_value *)opdi_scope_alloc((size_t)(q->graph->noutputs + 1) * sizeof *outputs);
        const int rc = outputs ? opdi_quantize_observed(q, i, outputs) : -1;
        opd_scope_close(&scope);
        if (rc) { return -1; }
    }
    for (int64_t i = 0; i < q->count; i++) {
        opdi_quantize_weight *const weight = &q->weights[i];
        if (!weight->stored) { continue; }
        if (!weight->range.seen) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: the layer of '%.200s' has no inputs in the batches, so their "
                            "range is not known: use other batches, or select other weights", q->source->who,
                            weight->row.name);
        }
        if (opdi_range_choose(&weight->range, &q->how, &weight->row)) { return -1; }
    }
    return 0;
}
/* Compares the float graph and the copy with the batches.  rows: a row for each output.  Returns 0, or -1 and sets an
   error. */
static int opdi_quantize_measure(opdi_quantizer *q, opd_quantized *rows, double *counts) {
    q->compare = true;
    for (int i = 0; i < q->options->nbatches; i++) {
        const int cap = q->graph->noutputs;
        opd_scope scope = opd_scope_open();
        opd_value *const outputs = (opd_value *)opdi_scope_alloc(2 * (size_t)(cap + 1) * sizeof *outputs);
        int count = outputs && opdi_quantize_observed(q, i, outputs) == 0
            ? opdi_quantize_run(q, q->graph, q->after, q->options->batches[i], outputs + cap, cap) : -1;
        for (int k = 0; k < count && opd_ok(); k++) {
            opd_tensor *const x = outputs[k].tag == OPD_TAG_TENSOR ? outputs[k].u.t : NULL;
            double mean, most;
            if (!x || !opd_dtype_is_floating((opd_scalar_type)x->dtype) || !x->numel ||
                opdi_quantize_differ(x, outputs[cap + k].u.t, &mean, &most)) { continue; }
            rows[k].output_mean += mean * (double)x->numel;
            rows[k].output_max = OPDI_MAX(rows[k].output_max, most);
            rows[k].output_size += opd_item_f64(opd_sum(opd_square(opd_to_dtype(x, OPD_FLOAT64))));
            counts[k] += (double)x->numel;
        }
        opd_scope_close(&scope);
        if (count < 0 || !opd_ok()) { return -1; }
    }
    return 0;
}

//== changing the copy =================================================================================================

/* Adds a call with the values `values` and then the constants `rest` as arguments.  Returns its first result, or NULL
   and sets an error. */
static opdi_gvalue *opdi_quantize_call(opd_graph *graph, const char *name, opdi_gvalue *const *values, int nvalues,
                                       const opd_value *rest, int nrest) {
    opd_graph_arg args[10];
    memset(args, 0, sizeof args);
    for (int i = 0; i < nvalues; i++) {
        if (!values[i]) { return NULL; }
        args[i].kind = OPD_GRAPH_ARG_VALUE;
        args[i].value = values[i];
    }
    for (int i = 0; i < nrest; i++) { args[nvalues + i].constant = rest[i]; }
    return opd_graph_call_args(graph, name, args, nvalues + nrest);
}
/* Adds nodes that unpack integers of 4 bits to `sizes`.  Returns their result, or NULL and sets an error. */
static opdi_gvalue *opdi_quantize_unpack(opd_graph *graph, opdi_gvalue *packed, opd_ints sizes) {
    const opd_value low = opd_value_int(15), shift = opd_value_int(4), dim = opd_value_int(-1);
    const opd_value all = opd_value_of_ints(sizes);
    opdi_gvalue *halves[2], *list = NULL;
    halves[0] = opdi_quantize_call(graph, "aten::bitwise_and.Scalar", &packed, 1, &low, 1);
    halves[1] = opdi_quantize_call(graph, "aten::bitwise_right_shift.Tensor_Scalar", &packed, 1, &shift, 1);
    if (halves[0] && halves[1]) { list = opd_graph_list(graph, "Tensor", halves, 2); }
    list = opdi_quantize_call(graph, "aten::stack", &list, 1, &dim, 1);
    return opdi_quantize_call(graph, "aten::view", &list, 1, &all, 1);
}
/* Adds nodes that make floats of a quantised weight, `value`.  Returns their result, or NULL and sets an error. */
static opdi_gvalue *opdi_quantize_read_weight(opdi_quantizer *q, const opdi_quantize_weight *weight,
                                              opdi_gvalue *value) {
    static const char *const names[] = {"quantized_decomposed::dequantize_per_channel",
                                        "quantized_decomposed::dequantize_per_channel_group"};
    const opdi_quantize_how *const how = &q->how;
    const opdi_integers *const its = &weight->numbers;
    const opd_value both[2] = {opd_value_int(0), opd_value_int(1)};
    const opd_value dtype = opd_value_int(weight->tensor->dtype);
    int64_t sizes[OPD_MAX_DIMS];
    if (how->blocks == OPD_DTYPE_NONE) {
        const opd_value limits[3] = {opd_value_int(how->least), opd_value_int(how->most),
                                     opd_value_int(how->bits == 4 ? OPD_UINT8 : OPD_INT8)};
        const bool groups = its->scales->ndim == 2;
        opd_value rest[8];
        int count = 0;
        rest[count++] = opd_value_tensor(its->scales);
        rest[count++] = opd_value_tensor(its->zeros);
        if (!groups) { rest[count++] = opd_value_int(0); }
        for (int i = 0; i < 3; i++) { rest[count++] = limits[i]; }
        if (groups) { rest[count++] = opd_value_int(how->group); }
        if (groups || weight->tensor->dtype != OPD_FLOAT32) { rest[count++] = dtype; }
        if (how->bits == 4) { value = opdi_quantize_unpack(q->graph, value, opdi_quantize_sizes(weight, sizes)); }
        value = opdi_quantize_call(q->graph, names[groups], &value, 1, rest, count);
    }
    return weight->turned ? opdi_quantize_call(q->graph, "aten::transpose.int", &value, 1, both, 2) : value;
}
/* Adds nodes that round the input `x` of a layer.  Returns their result, or NULL and sets an error. */
static opdi_gvalue *opdi_quantize_read_input(opdi_quantizer *q, const opdi_quantize_weight *weight, opdi_gvalue *x) {
    const bool half = weight->tensor->dtype != OPD_FLOAT32;
    opdi_gvalue *values[3] = {x, NULL, NULL};
    opd_value rest[6];
    int count = 0;
    if (q->how.fixed) {
        rest[count++] = opd_value_double(weight->row.input_scale);
        rest[count++] = opd_value_int(weight->row.input_zero_point);
    }
    rest[count++] = opd_value_int(-128);
    rest[count++] = opd_value_int(127);
    rest[count++] = opd_value_int(OPD_INT8);
    rest[count] = opd_value_int(weight->tensor->dtype);
    if (q->how.fixed) {
        x = opdi_quantize_call(q->graph, "quantized_decomposed::quantize_per_tensor", &x, 1, rest, count);
        return opdi_quantize_call(q->graph, "quantized_decomposed::dequantize_per_tensor", &x, 1, rest, count + half);
    }
    values[1] = opdi_quantize_call(q->graph, "quantized_decomposed::choose_qparams_per_token_asymmetric", &x, 1,
                                   rest + 2, 1);
    values[2] = values[1] ? values[1]->node->out[1] : NULL;
    values[0] = opdi_quantize_call(q->graph, "quantized_decomposed::quantize_per_token", values, 3, rest, count);
    return opdi_quantize_call(q->graph, "quantized_decomposed::dequantize_per_token", values, 3, rest, count + 1);
}
/* Lets an input of the copy be the tensor that is stored for a weight. */
static int opdi_quantize_retype(opd_graph *graph, opdi_gvalue *value, const opd_tensor *stored) {
    value->requires_grad = false;
    if (value->dims) {
        const size_t bytes = 2 * (size_t)stored->ndim * sizeof *value->dims;
        if (!(value->dims = (int64_t *)opdi_graph_alloc(graph, bytes + 1))) { return -1; }
        memcpy(value->dims, stored->dims, bytes);
        value->ndim = stored->ndim;
        value->open = NULL;
    }
    if (value->dtype >= 0) { value->dtype = stored->dtype; }
    return 0;
}
/* Changes use number `at` of a weight.  rounded, count, whose: pairs of a layer's input and its rounded form, how many,
   and for which weight each was made; each layer with the same input, in the same block and with the same scale, takes
   the same form, unless a node writes the input.  Returns 0, or -1 and sets an error. */
static int opdi_quantize_change(opdi_quantizer *q, opdi_quantize_weight *weight, int at, opdi_gvalue **rounded,
                                int64_t *count, const opdi_quantize_weight **whose) {
    const opdi_quantize_use *const use = &weight->uses[at];
    opdi_gvalue *value = use->node->in[use->input], *const x = use->layer->in[use->input_at];
    if (opd_graph_insert_before(q->graph, use->node->out[0])) { return -1; }
    if (weight->at < 0) { value = opd_graph_constant(q->graph, opd_value_tensor(weight->stored)); }
    opdi_gvalue *const read = value ? opdi_quantize_read_weight(q, weight, value) : NULL;
    if (!read || (read != use->node->in[use->input] &&
                  opd_graph_set_input(q->graph, use->node, use->input, read))) { return -1; }
    if (!q->how.fixed && (!q->how.dynamic || weight->convolution)) { return 0; }
    int64_t i = x->alias && opdi_gvalue_root(x)->mark == q->written ? *count : 0;
    while (i < *count && (rounded[2 * i] != x || rounded[2 * i + 1]->node->block != use->layer->block ||
                          whose[i]->tensor->dtype != weight->tensor->dtype || (q->how.fixed &&
                           (whose[i]->row.input_zero_point != weight->row.input_zero_point ||
                            whose[i]->row.input_scale < weight->row.input_scale ||
                            whose[i]->row.input_scale > weight->row.input_scale)))) { i++; }
    if (i == *count) {
        if (opd_graph_insert_before(q->graph, use->layer->out[0])) { return -1; }
        opdi_gvalue *const to = opdi_quantize_read_input(q, weight, x);
        if (!to) { return -1; }
        rounded[2 * i] = x;
        rounded[2 * i + 1] = to;
        whose[(*count)++] = weight;
    }
    return opd_graph_set_input(q->graph, use->layer, use->input_at, rounded[2 * i + 1]);
}
/* A layer in the order of the graph: use number `use` of a weight. */
typedef struct opdi_quantize_place { opdi_gnode *layer; opdi_quantize_weight *weight; int use; } opdi_quantize_place;
/* Changes all layers, in the order of the graph, so that the rounded form of an input is made before the first layer
   that takes it.  Returns 0, or -1 and sets an error. */
static int opdi_quantize_change_all(opdi_quantizer *q) {
    int64_t total = 0, count = 0, at;
    for (int64_t i = 0; i < q->count; i++) { total += q->weights[i].stored ? q->weights[i].row.uses : 0; }
    opdi_quantize_place *const places = (opdi_quantize_place *)opdi_scope_alloc((size_t)(total + 1) * sizeof *places);
    opdi_gvalue **const rounded = (opdi_gvalue **)opdi_scope_alloc(2 * (size_t)(total + 1) * sizeof *rounded);
    const opdi_quantize_weight **const whose = (const opdi_quantize_weight **)opdi_scope_alloc(
        (size_t)(total + 1) * sizeof *whose);
    if (!places || !rounded || !whose || opdi_graph_alias(q->graph, true)) { return -1; }
    q->written = opdi_graph_mark_written(q->graph);
    for (int64_t i = at = 0; i < q->count; i++) {
        for (int k = 0; k < q->weights[i].row.uses && q->weights[i].stored; k++, at++) {
            places[at].layer = q->weights[i].uses[k].layer;
            places[at].weight = &q->weights[i];
            places[at].use = k;
        }
    }
    int rc = 0;
    opdi_gnode *next;
    for (opdi_gnode *node = opd_graph_first(q->graph); node && rc == 0; node = next) {
        next = opd_graph_next(node);
        for (at = 0; at < total && node->kind == OPDI_GNODE_OP && rc == 0; at++) {
            if (places[at].layer == node) {
                rc = opdi_quantize_change(q, places[at].weight, places[at].use, rounded, &count, whose);
            }
        }
    }
    (void)opd_graph_insert_before(q->graph, NULL);
    for (int64_t i = 0; i < q->count && rc == 0; i++) {
        const opdi_quantize_weight *const weight = &q->weights[i];
        if (!weight->stored) { continue; }
        if (weight->at < 0) { rc = opd_graph_erase(q->graph, weight->value); }
        for (int64_t k = 0; k < q->ntensors && weight->at >= 0 && rc == 0; k++) {
            if (q->before[k] != weight->tensor) { continue; }
            q->after[k] = weight->stored;
            rc = opdi_quantize_retype(q->graph, q->graph->inputs[k], weight->stored);
        }
    }
    opdi_graph_changed(q->graph);
    return rc || !opd_ok() ? -1 : 0;
}

//== recording a graph anew ============================================================================================

/* Appends the ranges of the open sizes of a graph. */
static void opdi_again_ranges(const opd_graph *graph, opdi_string *to) {
    char text[300];
    opd_graph_open_size size;
    for (int i = 0; opd_graph_size(graph, i, &size); i++) {
        if (!opdi_gsize_follows(graph, i)) { continue; }
        char most[40] = "";
        if (size.most >= 0) { (void)snprintf(most, sizeof most, " <= %lld", (long long)size.most); }
        (void)snprintf(text, sizeof text, "%s%lld <= %.100s%s", to->length ? ", " : "", (long long)size.least,
                       size.name, most);
        opdi_string_add(to, text);
        if (size.multiple_of <= 1) { continue; }
        (void)snprintf(text, sizeof text, ", %.100s %% %lld == 0", size.name, (long long)size.multiple_of);
        opdi_string_add(to, text);
    }
}
/* Sets the sizes of an input to example sizes, and *text to the text of its sizes for opd_graph_trace_open; NULL if
   they are not open.  Returns 0, or -1 and sets an error. */
static int opdi_again_sizes(const opd_graph *graph, const int64_t *examples, opdi_again_input *input,
                            const char **text) {
    const opdi_gvalue *const value = input->value;
    bool open = false;
    *text = NULL;
    for (int k = 0; graph->sizes && value->open && k < input->ndim; k++) {
        if (!value->open[k]) { continue; }
        open = true;
        if (!opdi_gexpr_value(value->open[k], examples, ~0u, &input->sizes[k])) { input->sizes[k] = value->dims[k]; }
    }
    if (!open) { return 0; }
    const size_t room = 400;
    char *const shape = (char *)opdi_scope_alloc(room);
    if (!shape) { return -1; }
    opdi_text to = opdi_text_of(shape, room);
    for (int k = 0; k < input->ndim; k++) {
        if (k) { opdi_text_add(&to, ", "); }
        if (value->open[k]) { opdi_gexpr_print(&to, graph->sizes, value->open[k]); }
        else { opdi_text_add(&to, "%lld", (long long)input->sizes[k]); }
    }
    *text = shape;
    return to.length < room ? 0 : opd_fail(OPD_ERROR_LIMIT, "the sizes of input '%.100s' are too long", input->name);
}
/* Records fn as a graph whose inputs are the tensors of the module, and zeros for `inputs`, with the open sizes of
   `graph`.  Returns NULL and sets an error on failure. */
OPDI_INTERNAL opd_graph *opdi_graph_again(const opd_graph *graph, const opd_module *module, opdi_again_input *inputs,
                                          int ninputs, opd_transform_fn fn, void *user) {
    const int first = (int)opd_module_count(module), count = first + ninputs;
    int64_t examples[OPDI_OPEN_NAMES];
    opdi_string ranges = {NULL, 0, 0, false};
    opd_trace_options options;
    opd_tensor **const in = opdi_scope_tensors(count + 1);
    const char **const sizes = (const char **)opdi_scope_alloc((size_t)(count + 1) * sizeof *sizes);
    const char **const names = (const char **)opdi_scope_alloc((size_t)(count + 1) * sizeof *names);
    bool open = false;
    if (!in || !sizes || !names || (graph->sizes && opdi_graph_open_examples(graph, examples))) { return NULL; }
    const opd_tensor *const where = first ? opd_module_at(module, 0) : NULL;
    for (int i = 0; i < count; i++) {
        sizes[i] = NULL;
        names[i] = i < first ? opd_module_name(module, i) : inputs[i - first].name;
        if (i < first) {
            in[i] = opd_module_at(module, i);
            continue;
        }
        opdi_again_input *const input = &inputs[i - first];
        if (opdi_again_sizes(graph, examples, input, &sizes[i])) { return NULL; }
        open = open || sizes[i];
        in[i] = opd_zeros(opd_ints_of(input->sizes, input->ndim), input->dtype);
        if (in[i] && where) { in[i] = opd_to_device(in[i], opd_tensor_device(where), input->dtype); }
        if (!in[i]) { return NULL; }
    }
    memset(&options, 0, sizeof options);
    options.names = names;
    options.nnames = count;
    if (open) { opdi_again_ranges(graph, &ranges); }
    opd_graph *const made = ranges.failed ? NULL : open
        ? opd_graph_trace_open(fn, user, in, count, sizes, ranges.length ? ranges.data : NULL, &options)
        : opd_graph_trace(fn, user, in, count, &options);
    opdi_string_free(&ranges);
    return made;
}
/* If the original was recorded, returns the copy recorded anew, so that the dtypes and sizes of all values are known;
   else the copy.  Returns NULL and sets an error on failure. */
static opd_graph *opdi_quantize_record(opdi_quantizer *q) {
    opd_graph *const graph = q->graph;
    const int ninputs = graph->ninputs - (int)q->ntensors;
    opdi_again_input *const inputs = (opdi_again_input *)opdi_scope_alloc((size_t)(ninputs + 1) * sizeof *inputs);
    opd_module *const module = opd_module_new();
    bool known = q->how.blocks == OPD_DTYPE_NONE && !opdi_self()->innermost.tracer && !opd_transform_depth();
    for (opdi_gnode *node = opd_graph_first(graph); node && known; node = opd_graph_next(node)) {
        known = !node->nblocks && node->kind != OPDI_GNODE_FUNCTION;
    }
    for (int64_t i = 0; i < q->ntensors && module; i++) {
        if (opd_module_add(module, opd_module_name(q->source->module, i), q->after[i],
                           opd_module_kind_at(q->source->module, i))) { break; }
    }
    for (int i = 0; i < ninputs && inputs; i++) {
        const opdi_gvalue *const value = graph->inputs[q->ntensors + i];
        known = known && value->tag == OPD_TAG_TENSOR && value->dims && value->dtype >= 0;
        if (!known) { break; }
        inputs[i].name = value->name;
        inputs[i].dtype = (opd_scalar_type)value->dtype;
        inputs[i].ndim = value->ndim;
        memcpy(inputs[i].sizes, value->dims, value->ndim * sizeof *value->dims);
        inputs[i].value = value;
    }
    opd_graph *made = module && inputs && opd_ok() ? graph : NULL;
    if (made && known) {
        made = opdi_graph_again(graph, module, inputs, ninputs, opd_graph_function, graph);
        if (made) { opd_graph_free(graph); }
    }
    opd_module_free(module);
    return made;
}

//== quantising graphs =================================================================================================

/* Calls the report for the weights and outputs.  rows, counts: of the outputs; NULL without batches. */
static void opdi_quantize_report(opdi_quantizer *q, opd_quantized *rows, const double *counts) {
    const opd_quantize_options *const options = q->options;
    for (int64_t i = 0; i < q->count; i++) {
        opdi_quantize_weight *const weight = &q->weights[i];
        if (weight->count) {
            weight->row.output_mean = weight->off / (double)weight->count;
            weight->row.output_size = sqrt(weight->square / (double)weight->count);
        }
        options->report(options->user, &weight->row);
    }
    for (int i = 0; i < q->graph->noutputs && rows; i++) {
        char name[40];
        if (!(counts[i] > 0)) { continue; }
        (void)snprintf(name, sizeof name, "output %d", i);
        rows[i].name = name;
        rows[i].form = "";
        rows[i].output_mean /= counts[i];
        rows[i].output_size = sqrt(rows[i].output_size / counts[i]);
        options->report(options->user, &rows[i]);
    }
}
/* Does the work of opdi_quantize in the innermost scope.  Sets q->graph to the new graph.  Returns 0, or -1 and sets an
   error. */
static int opdi_quantize_inside(opdi_quantizer *q) {
    const opdi_quantize_source *const source = q->source;
    const opd_quantize_options *const options = q->options;
    const bool batches = options && options->nbatches > 0;
    opd_quantized *rows = NULL;
    double *counts = NULL;
    if (q->how.fixed && !batches) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: static quantisation needs batches, from which it finds the ranges of "
                        "the layers' inputs", source->who);
    }
    if (batches && (!options->batches || options->ninputs < 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the batches are NULL, or have fewer than 0 inputs", source->who);
    }
    q->ntensors = opd_module_count(source->module);
    if (q->ntensors > q->graph->ninputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the graph has fewer inputs than the module has tensors", source->who);
    }
    const int others = q->graph->ninputs - (int)q->ntensors;
    if (batches && !source->run && options->ninputs != others) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the batches have %d inputs, but the graph has %d besides the module's "
                        "tensors", source->who, options->ninputs, others);
    }
    q->before = opdi_scope_tensors((int)q->ntensors + 1);
    q->after = opdi_scope_tensors((int)q->ntensors + 1);
    if (!q->before || !q->after) { return -1; }
    for (int64_t i = 0; i < q->ntensors; i++) { q->before[i] = q->after[i] = opd_module_at(source->module, i); }
    if (opdi_quantize_find(q) || (q->how.fixed && opdi_quantize_calibrate(q)) || opdi_quantize_change_all(q)) {
        return -1;
    }
    if (batches && options->report) {
        const size_t outputs = (size_t)q->graph->noutputs + 1;
        rows = (opd_quantized *)opdi_scope_alloc(outputs * sizeof *rows);
        counts = (double *)opdi_scope_alloc(outputs * sizeof *counts);
        if (!rows || !counts) { return -1; }
        memset(rows, 0, outputs * sizeof *rows);
        memset(counts, 0, outputs * sizeof *counts);
        if (opdi_quantize_measure(q, rows, counts)) { return -1; }
    }
    if (!source->run) {
        opd_graph *const made = opdi_quantize_record(q);
        if (!made) { return -1; }
        q->graph = made;
    }
    if (options && options->report) { opdi_quantize_report(q, rows, counts); }
    if (!opd_ok() || (source->accept && source->accept(source->user, q->graph))) { return -1; }
    for (int64_t i = 0; i < q->ntensors; i++) {   /* nothing can fail any more */
        if (q->after[i] != q->before[i] &&
            opd_module_set(source->module, opd_module_name(source->module, i), q->after[i])) { return -1; }
    }
    return 0;
}
/* Quantises a graph and the tensors of its module.  Returns the new graph, and sets *count to the number of weights
   that were quantised; NULL and sets an error on failure. */
OPDI_INTERNAL opd_graph *opdi_quantize(const opdi_quantize_source *source, const char *how,
                                       const opd_quantize_options *options, int *count) {
    opdi_quantizer q;
    memset(&q, 0, sizeof q);
    q.source = source;
    q.options = options;
    *count = 0;
    if (!opd_ok() || opdi_quantize_read(source->who, how, &q.how) || !(q.graph = opd_graph_copy(source->graph))) {
        return NULL;
    }
    const bool was = opd_grad_mode_set(false);
    opd_scope scope = opd_scope_open();
    const int rc = opdi_quantize_inside(&q);
    for (int64_t i = 0; i < q.count; i++) {
        if (q.weights[i].range.counts) { opdi_release(q.weights[i].range.counts); }
        *count += q.weights[i].stored != NULL;
    }
    opd_scope_close(&scope);
    (void)opd_grad_mode_set(was);
    if (rc == 0) { return q.graph; }
    opd_graph_free(q.graph);
    return NULL;
}
opd_graph *opd_quantize_graph(const opd_graph *graph, opd_module *module, const char *how,
                              const opd_quantize_options *options) {
    opdi_quantize_source source;
    int count;
    memset(&source, 0, sizeof source);
    source.who = "opd_quantize_graph";
    source.graph = graph;
    source.module = module;
    if (!opd_ok()) { return NULL; }
    if (!graph || graph->program || graph->kept) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, graph ? "opd_quantize_graph: the graph belongs to a program: call "
                       "opd_quantize_program" : "opd_quantize_graph: the graph is NULL");
        return NULL;
    }
    return opdi_quantize(&source, how, options, &count);
}
