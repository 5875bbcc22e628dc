#include "graphs.h"

//== folding batch norms ===============================================================================================
//
//  A batch norm in eval mode multiplies each channel of its input by a number and adds another:
//      y = (x - mean) * scale + shift,  scale = weight / sqrt(var + eps),  shift = bias
//  If x is the result of a convolution or linear layer with constant weights, x = conv(input, w) + b, then
//      y = conv(input, w * scale) + ((b - mean) * scale + shift)
//  where each output channel of w is multiplied by the scale of this channel.

/* A layer whose result a batch norm can follow.  transposed: OPDI_LAYER_PLAIN; OPDI_LAYER_TRANSPOSED: dim 1 of the
   weight is that of the output channels; or the place of the argument that tells which.  groups: the place of the
   argument `groups` if the layer can be transposed, else 0. */
enum { OPDI_LAYER_PLAIN = -1, OPDI_LAYER_TRANSPOSED = -2 };
typedef struct opdi_norm_layer { const char *name; int8_t transposed, groups; } opdi_norm_layer;
static const opdi_norm_layer opdi_norm_layers[] = {
    {"aten::conv1d", OPDI_LAYER_PLAIN, 0}, {"aten::conv2d", OPDI_LAYER_PLAIN, 0}, {"aten::conv3d", OPDI_LAYER_PLAIN, 0},
    {"aten::linear", OPDI_LAYER_PLAIN, 0}, {"aten::convolution", 6, 8}, {"aten::_convolution", 6, 8},
    {"aten::conv_transpose1d", OPDI_LAYER_TRANSPOSED, 6}, {"aten::conv_transpose2d", OPDI_LAYER_TRANSPOSED, 6},
    {"aten::conv_transpose3d", OPDI_LAYER_TRANSPOSED, 6}
};
/* A batch norm operator.  Its first five arguments are the input, weight, bias, running mean and running variance.
   training, eps: the places of these arguments; 0: the operator is always in eval mode. */
typedef struct opdi_norm_kind { const char *name; int8_t training, eps; } opdi_norm_kind;
static const opdi_norm_kind opdi_norm_kinds[] = {
    {"aten::batch_norm", 5, 7}, {"aten::native_batch_norm", 5, 7}, {"aten::_native_batch_norm_legit_no_training", 0, 6},
    {"aten::_batch_norm_no_update", 0, 6}
};
/* Returns the constant that is argument `i` of a node, or NULL if the argument is not a constant. */
static const opd_value *opdi_gnode_constant(const opdi_gnode *node, int i) {
    const opdi_gnode *const from = i < node->nin ? node->in[i]->node : NULL;
    return from && from->kind == OPDI_GNODE_CONSTANT ? &from->constant : NULL;
}
/* Returns the layer that a node calls, or NULL.  A call that writes a tensor, as convolution.out does, is none: the
   tensor would get the results of the new weight. */
static const opdi_norm_layer *opdi_gnode_layer(const opdi_gnode *node) {
    if (opdi_gnode_written(node)) { return NULL; }
    for (size_t i = 0; node->kind == OPDI_GNODE_OP && i < sizeof opdi_norm_layers / sizeof *opdi_norm_layers; i++) {
        if (strcmp(node->op->base_name, opdi_norm_layers[i].name) == 0) { return &opdi_norm_layers[i]; }
    }
    return NULL;
}
/* Returns the batch norm that a node calls in eval mode, or NULL.  A call that writes a tensor is none. */
static const opdi_norm_kind *opdi_gnode_norm(const opdi_gnode *node) {
    if (opdi_gnode_written(node)) { return NULL; }
    for (size_t i = 0; node->kind == OPDI_GNODE_OP && i < sizeof opdi_norm_kinds / sizeof *opdi_norm_kinds; i++) {
        if (strcmp(node->op->base_name, opdi_norm_kinds[i].name) != 0) { continue; }
        const int at = opdi_norm_kinds[i].training;
        const opd_value *const training = at ? opdi_gnode_constant(node, at) : NULL;
        return !at || (training && training->tag == OPD_TAG_BOOL && !training->u.i) ? &opdi_norm_kinds[i] : NULL;
    }
    return NULL;
}
/* The search for batch norms to fold.  exposed: the storages of constants that other nodes than layers and batch norms
   in eval mode use.  Such a node could write into the constant. */
typedef struct opdi_norms_search { opd_graph *graph; opdi_index exposed; opdi_arena arena; } opdi_norms_search;
static int opdi_norms_expose(opdi_norms_search *search, const opdi_gvalue *value) {
    const opdi_gnode *const node = value->node;
    if (!node || node->kind != OPDI_GNODE_CONSTANT || node->constant.tag != OPD_TAG_TENSOR) { return 0; }
    const opd_tensor *const tensor = node->constant.u.t;
    return opdi_index_set(&search->exposed, &search->arena, (const char *)&tensor->storage, sizeof tensor->storage,
                          (void *)(uintptr_t)tensor);
}
/* Lists the storages of exposed constants.  Returns 0, or -1 and sets an error. */
static int opdi_norms_look(opdi_norms_search *search) {
    const opd_graph *const graph = search->graph;
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        const bool plain = opdi_gnode_layer(node) || opdi_gnode_norm(node);
        for (int32_t i = 0; i < node->nin && !plain; i++) {
            if (opdi_norms_expose(search, node->in[i])) { return -1; }
        }
        for (int32_t k = 0; k < node->nblocks; k++) {
            for (int32_t i = 0; i < node->blocks[k].noutputs; i++) {
                if (opdi_norms_expose(search, node->blocks[k].outputs[i])) { return -1; }
            }
        }
    }
    for (int i = 0; i < graph->noutputs; i++) { if (opdi_norms_expose(search, graph->outputs[i])) { return -1; } }
    return 0;
}
/* Sets *tensor to argument `i` of a node, or to NULL if the argument is None.  Returns false if it is not a constant of
   real floats that no other node can write. */
static bool opdi_norms_tensor(const opdi_norms_search *search, const opdi_gnode *node, int i, opd_tensor **tensor) {
    const opd_value *const value = opdi_gnode_constant(node, i);
    *tensor = NULL;
    if (!value || (value->tag != OPD_TAG_TENSOR && value->tag != OPD_TAG_NONE)) { return false; }
    if (value->tag == OPD_TAG_NONE) { return true; }
    *tensor = value->u.t;
    const opd_scalar_type dtype = opd_dtype(*tensor);
    return (dtype == OPD_FLOAT32 || dtype == OPD_FLOAT64 || dtype == OPD_FLOAT16 || dtype == OPD_BFLOAT16) &&
        !opdi_requires_grad(*tensor) &&
        !opdi_index_get(&search->exposed, (const char *)&(*tensor)->storage, sizeof (*tensor)->storage);
}
/* The tensors of a layer and of the batch norm after it; bias, scale and shift may be NULL.  channels: the number of
   output channels.  groups: 0 if the output channels are dim 0 of the weight; else the number of groups of a transposed
   convolution. */
typedef struct opdi_norm_pair {
    opd_tensor *weight, *bias, *scale, *shift, *mean, *var;
    int64_t channels, groups;
    double eps;
} opdi_norm_pair;
/* Sets pair->groups and pair->channels.  Returns false if an argument that tells them is not a constant. */
static bool opdi_norms_channels(const opdi_gnode *node, const opdi_norm_layer *layer, opdi_norm_pair *pair) {
    const int64_t *const sizes = opd_sizes(pair->weight);
    const opd_value *const turned = layer->transposed >= 0 ? opdi_gnode_constant(node, layer->transposed) : NULL;
    const opd_value *const groups = layer->groups ? opdi_gnode_constant(node, layer->groups) : NULL;
    if ((layer->transposed >= 0 && (!turned || turned->tag != OPD_TAG_BOOL)) ||
        (layer->groups && (!groups || groups->tag != OPD_TAG_INT)) || opd_ndim(pair->weight) < 2) { return false; }
    const bool transposed = layer->transposed == OPDI_LAYER_TRANSPOSED || (turned && turned->u.i);
    pair->groups = transposed ? groups->u.i : 0;
    pair->channels = transposed ? pair->groups * sizes[1] : sizes[0];
    return !transposed || (pair->groups > 0 && sizes[0] % pair->groups == 0);
}
/* Sets *pair to the tensors of a batch norm and of the layer before it.  Returns false if they cannot be folded. */
static bool opdi_norms_pair(const opdi_norms_search *search, const opdi_gnode *norm, const opdi_gnode *layer,
                            opdi_norm_pair *pair) {
    const opdi_gvalue *const between = layer->out[0];
    const opd_value *const eps = opdi_gnode_constant(norm, opdi_gnode_norm(norm)->eps);
    memset(pair, 0, sizeof *pair);
    if (between->uses != 1 || !between->dims || !eps || eps->tag != OPD_TAG_FLOAT ||
        !opdi_norms_tensor(search, layer, 1, &pair->weight) || !opdi_norms_tensor(search, layer, 2, &pair->bias) ||
        !opdi_norms_tensor(search, norm, 1, &pair->scale) || !opdi_norms_tensor(search, norm, 2, &pair->shift) ||
        !opdi_norms_tensor(search, norm, 3, &pair->mean) || !opdi_norms_tensor(search, norm, 4, &pair->var) ||
        !pair->weight || !pair->mean || !pair->var) { return false; }
    for (int i = 1; i < norm->nout; i++) { if (norm->out[i]->uses) { return false; } }
    /* The channels must be dim 1 of the result: an image without a batch has them in dim 0, a linear layer in the
       last. */
    if (!opdi_norms_channels(layer, opdi_gnode_layer(layer), pair) || between->ndim != opd_ndim(pair->weight)) {
        return false;
    }
    opd_tensor *const all[] = {pair->bias, pair->scale, pair->shift, pair->mean, pair->var};
    const opd_scalar_type dtype = opd_dtype(pair->weight);
    const bool half = dtype == OPD_FLOAT16 || dtype == OPD_BFLOAT16;
    for (int i = 0; i < 5; i++) {
        if (all[i] && (opd_ndim(all[i]) != 1 || opd_sizes(all[i])[0] != pair->channels ||
                       (opd_dtype(all[i]) != dtype && !(i && half && opd_dtype(all[i]) == OPD_FLOAT32)))) {
            return false;
        }
    }
    pair->eps = eps->u.d;
    return true;
}
/* Computes the weight and the bias of the layer that does the work of both, in double.  Returns 1; 0 if one of their
   elements is not finite; or -1 and sets an error. */
static int opdi_norms_compute(const opdi_norm_pair *pair, opd_tensor **weight, opd_tensor **bias) {
    const opd_scalar_type dtype = opd_dtype(pair->weight);
    const int64_t *const sizes = opd_sizes(pair->weight);
    const int ndim = opd_ndim(pair->weight);
    int64_t parts[OPD_MAX_DIMS + 1], each[OPD_MAX_DIMS + 1];
    opd_tensor *scale = opd_rsqrt(opd_add_Scalar(opd_to_dtype(pair->var, OPD_FLOAT64), opd_value_double(pair->eps)));
    if (pair->scale) { scale = opd_mul(scale, opd_to_dtype(pair->scale, OPD_FLOAT64)); }
    /* Splits dim 0 of a transposed weight into the groups and the input channels of each. */
    const int more = pair->groups ? 1 : 0;
    for (int i = 0; i < ndim + more; i++) {
        parts[i] = i < more ? pair->groups : i == more && more ? sizes[0] / pair->groups : sizes[i - more];
        each[i] = pair->groups ? i == 0 ? pair->groups : i == 2 ? sizes[1] : 1 : i == 0 ? sizes[0] : 1;
    }
    opd_tensor *const shaped = opd_reshape(opd_to_dtype(pair->weight, OPD_FLOAT64), opd_ints_of(parts, ndim + more));
    *weight = opd_mul(shaped, opd_reshape(scale, opd_ints_of(each, ndim + more)));
    *weight = opd_to_dtype(opd_reshape(*weight, opd_ints_of(sizes, ndim)), dtype);
    opd_tensor *sum = opd_neg(opd_to_dtype(pair->mean, OPD_FLOAT64));
    if (pair->bias) { sum = opd_add(sum, opd_to_dtype(pair->bias, OPD_FLOAT64)); }
    sum = opd_mul(sum, scale);
    if (pair->shift) { sum = opd_add(sum, opd_to_dtype(pair->shift, OPD_FLOAT64)); }
    *bias = opd_to_dtype(sum, dtype);
    opd_tensor *const finite = opd_logical_and(opd_all(opd_isfinite(*weight)), opd_all(opd_isfinite(*bias)));
    return finite && opd_ok() ? opd_item_i64(finite) != 0 : -1;
}
/* Makes `tensor` a constant before `node`.  Returns its value, or NULL and sets an error. */
static opdi_gvalue *opdi_norms_constant(opd_graph *graph, opdi_gnode *node, opd_tensor *tensor) {
    opdi_gnode *const at = graph->at;
    opdi_gblock *const into = graph->into;
    const opd_value value = opd_value_tensor(opd_detach(tensor));
    graph->at = node;
    graph->into = node->block;
    opdi_gvalue *const constant = value.u.t ? opdi_graph_constant(graph, &value) : NULL;
    graph->at = at;
    graph->into = into;
    if (constant) { constant->uses = 1; }
    return constant;
}
/* Removes the constants among `values` that have no uses. */
static void opdi_norms_clean(opd_graph *graph, opdi_gvalue *const *values, int count) {
    for (int i = 0; i < count; i++) {
        opdi_gnode *const node = values[i]->graph && !values[i]->uses ? values[i]->node : NULL;
        if (node && node->kind == OPDI_GNODE_CONSTANT) { opdi_gnode_remove(graph, node); }
    }
}
/* Returns the value that replaces a value. */
static opdi_gvalue *opdi_norms_now(opdi_gvalue *value) { return value && value->same ? value->same : value; }
/* Folds a batch norm into the layer before it.  Returns 1, 0 if that is impossible, or -1 and sets an error. */
static int opdi_norms_fold(opdi_norms_search *search, opdi_gnode *norm) {
    opdi_gnode *const layer = opdi_norms_now(norm->in[0])->node;
    opd_graph *const graph = search->graph;
    opdi_norm_pair pair;
    opd_tensor *weight = NULL, *bias = NULL;
    if (!layer || !opdi_gnode_layer(layer) || !opdi_norms_pair(search, norm, layer, &pair)) { return 0; }
    opd_scope scope = opd_scope_open();
    opdi_gvalue *old[OPD_MAX_ARGS + 2];
    const int count = norm->nin - 1;
    memcpy(old, norm->in + 1, (size_t)count * sizeof *old);
    old[count] = layer->in[1];
    old[count + 1] = layer->in[2];
    int rc = opdi_norms_compute(&pair, &weight, &bias);
    opdi_gvalue *const first = rc == 1 ? opdi_norms_constant(graph, layer, weight) : NULL;
    opdi_gvalue *const second = first ? opdi_norms_constant(graph, layer, bias) : NULL;
    if (first && !second) { opdi_gnode_remove(graph, first->node); }
    if (rc == 1) { rc = second ? 1 : -1; }
    if (rc == 1) {
        layer->in[1]->uses--;
        layer->in[2]->uses--;
        layer->in[1] = first;
        layer->in[2] = second;
        norm->out[0]->same = layer->out[0];
        opdi_gnode_remove(graph, norm);
        layer->out[0]->uses = norm->out[0]->uses;
        opdi_norms_clean(graph, old, count + 2);
    }
    opd_scope_close(&scope);
    return rc;
}
/* Makes all nodes use the results of the layers instead of the results of the removed batch norms. */
static void opdi_norms_rename(opd_graph *graph) {
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int32_t i = 0; i < node->nin; i++) { node->in[i] = opdi_norms_now(node->in[i]); }
        for (int32_t k = 0; k < node->nblocks; k++) {
            opdi_gblock *const block = &node->blocks[k];
            for (int32_t i = 0; i < block->noutputs; i++) { block->outputs[i] = opdi_norms_now(block->outputs[i]); }
        }
    }
    for (int i = 0; i < graph->noutputs; i++) { graph->outputs[i] = opdi_norms_now(graph->outputs[i]); }
    graph->result = opdi_norms_now(graph->result);
    opdi_graph_changed(graph);
}
int opd_graph_fold_batch_norms(opd_graph *graph) {
    opdi_norms_search search;
    int folded = 0;
    if (!opdi_graph_is_given(graph, "opd_graph_fold_batch_norms")) { return -1; }
    memset(&search, 0, sizeof search);
    search.graph = graph;
    const bool was = opd_grad_mode_set(false);
    int rc = opdi_norms_look(&search);
    opdi_graph_count_uses(graph);
    for (opdi_gnode *node = graph->body.first, *next; node && rc == 0; node = next) {
        next = opdi_gnode_after(node);
        const int done = opdi_gnode_norm(node) ? opdi_norms_fold(&search, node) : 0;
        rc = done < 0 ? -1 : 0;
        folded += done > 0;
    }
    if (folded) { opdi_norms_rename(graph); }
    (void)opd_grad_mode_set(was);
    opdi_arena_free(&search.arena);
    return rc ? -1 : folded;
}
