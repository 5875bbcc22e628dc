#include "autograd.h"

//== tensors in the autograd graph =====================================================================================

OPDI_INTERNAL opd_node *opdi_grad_fn(const opd_tensor *tensor) {
    if (opdi_is_none(tensor, "reading the grad_fn") || opdi_refresh((opd_tensor *)(uintptr_t)tensor)) { return NULL; }
    return opdi_diff_is_input(tensor) ? NULL : tensor->grad_fn;
}
bool opd_tensor_is_leaf(const opd_tensor *tensor) { return !opdi_grad_fn(tensor); }
opd_tensor *opd_tensor_grad(const opd_tensor *tensor) {
    return !opdi_is_none(tensor, "opd_tensor_grad") && tensor->meta ? *opdi_grad_slot(tensor->meta) : NULL;
}
const char *opd_tensor_grad_fn(const opd_tensor *tensor) {
    const opd_node *node = opdi_grad_fn(tensor);
    return node ? node->formula->name : NULL;
}

/* Sets the requires_grad flag of a leaf.  Returns tensor, or NULL and sets an error. */
opd_tensor *opd_tensor_set_requires_grad(opd_tensor *tensor, bool on) {
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_tensor_set_requires_grad") ||
        opdi_inside_transform("opd_tensor_set_requires_grad cannot be called inside of a function that opd_grad, "
                              "opd_vjp, opd_jvp, opd_vmap or another transform runs. Pass the tensor to the transform "
                              "as an input (opd_transform_options.argnums says by which inputs it differentiates), or "
                              "call the function before the transform")) { return NULL; }
    if (on && opdi_is_inference(tensor) && !opdi_self()->state.inference) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "an inference tensor cannot require grad outside of inference mode: clone "
                       "it (opd_clone)");
        return NULL;
    }
    if (opdi_refresh(tensor)) { return NULL; }
    if (tensor->grad_fn) {
        if (on) { return tensor; }
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "you can only change requires_grad flags of leaf variables. If you want to "
                       "use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = "
                       "var.detach(). (In C: opd_detach)");
        return NULL;
    }
    if (on && !opd_dtype_is_floating((opd_scalar_type)tensor->dtype) &&
        !opd_dtype_is_complex((opd_scalar_type)tensor->dtype)) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "only Tensors of floating point and complex dtype can require gradients");
        return NULL;
    }
    tensor->flags = (uint8_t)(on ? tensor->flags | OPDI_REQUIRES_GRAD : tensor->flags & ~OPDI_REQUIRES_GRAD);
    return tensor;
}

/* Replaces the gradient of `tensor` by `grad`, after checking that it has the same sizes, dtype and device as the
   tensor.  If `grad` is NULL, removes the gradient.  While a layer of transforms (grad, vmap) is running, sets the
   gradient that belongs to that layer.  Returns 0, or -1 and sets an error. */
int opd_tensor_set_grad(opd_tensor *tensor, opd_tensor *grad) {
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_tensor_set_grad") ||
        opdi_any_dead(&grad, 1, "opd_tensor_set_grad")) { return -1; }
    if (!grad && !tensor->meta) { return 0; }
    if (grad == tensor) { return opd_fail(OPD_ERROR_AUTOGRAD, "can't assign a tensor as its own grad"); }
    if (grad && (!opdi_has_sizes(grad, tensor->dims, tensor->ndim) || grad->dtype != tensor->dtype ||
                 opdi_place_of(grad) != opdi_place_of(tensor))) {
        return opd_fail(OPD_ERROR_AUTOGRAD,
                        "assigned grad has data of a different size, dtype or device than the tensor");
    }
    opdi_meta *meta = opdi_meta_of(tensor);
    if (!meta) { return -1; }
    if (grad) { opdi_retain(grad); }
    opd_tensor *old = *opdi_grad_slot(meta);
    *opdi_grad_slot(meta) = grad;
    if (old) { opdi_drop(old); }
    return 0;
}

//== public functions that read nodes ==================================================================================

opd_node *opd_tensor_node(const opd_tensor *tensor) { return opdi_grad_fn(tensor); }

opd_edge opd_gradient_edge(opd_tensor *tensor) {
    opd_edge edge = opdi_edge_of(tensor);
    if (opd_ok() && !edge.node) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "It is not possible to get the gradient edge for a Tensor that does not "
                       "require gradients");
    }
    return edge;
}

uint64_t opd_node_sequence(const opd_node *node) {
    return opdi_plain_node(node) ? opdi_node_sequence(node) : UINT64_MAX;
}
opd_op *opd_node_op(const opd_node *node) {
    const opdi_card *card = opdi_plain_node(node) ? opdi_node_card(node) : NULL;
    return card ? card->op : NULL;
}
opd_tensor *opd_node_variable(const opd_node *node) {
    return opdi_vertex(node) & OPDI_LEAF ? opdi_edge_leaf(opdi_vertex(node)) : NULL;
}
int opd_node_edges(const opd_node *node) { return opdi_plain_node(node) ? node->nedges : 0; }
opd_edge opd_node_edge(const opd_node *node, int i) {
    opd_edge edge;
    memset(&edge, 0, sizeof edge);
    if (i < 0 || i >= opd_node_edges(node)) { return edge; }
    edge.node = (opd_node *)opdi_edges(node)[i].vertex;
    edge.nr = opdi_edges(node)[i].nr;
    return edge;
}

int opd_node_inputs(const opd_node *node) { return !node ? 0 : opdi_plain_node(node) ? node->noutputs : 1; }
static bool opdi_node_input(const opd_node *node, int i, const int64_t **sizes, int *ndim, opd_scalar_type *dtype,
                            int *place) {
    opdi_edge edge;
    if (i < 0 || i >= opd_node_inputs(node)) { return false; }
    edge.vertex = opdi_vertex(node);
    edge.nr = (uint32_t)i;
    return opdi_edge_meta(&edge, sizes, ndim, dtype, place);
}
opd_ints opd_node_sizes(const opd_node *node, int i) {
    const int64_t *sizes;
    opd_scalar_type dtype;
    int ndim, place;
    return opdi_node_input(node, i, &sizes, &ndim, &dtype, &place) ? opd_ints_of(sizes, ndim) : opd_ints_of(NULL, -1);
}
opd_scalar_type opd_node_dtype(const opd_node *node, int i) {
    const int64_t *sizes;
    opd_scalar_type dtype;
    int ndim, place;
    return opdi_node_input(node, i, &sizes, &ndim, &dtype, &place) ? dtype : OPD_DTYPE_NONE;
}
opd_device opd_node_device(const opd_node *node, int i) {
    const int64_t *sizes;
    opd_scalar_type dtype;
    int ndim, place;
    return opdi_place_device(opdi_node_input(node, i, &sizes, &ndim, &dtype, &place) ? place : OPD_CPU);
}

//== the running backward ==============================================================================================

int64_t opd_backward_id(void) {
    const opdi_engine *engine = opdi_self()->innermost.engine;
    return engine ? engine->id : -1;
}
bool opd_backward_keeps_graph(void) {
    const opdi_engine *engine = opdi_self()->innermost.engine;
    return !engine || engine->retain;
}

int opd_backward_callback(opd_callback_fn fn, void *user, opd_destroy destroy) {
    opdi_engine *engine = opdi_self()->innermost.engine;
    if (!opd_ok()) { return -1; }
    if (!fn) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_backward_callback: the function is NULL"); }
    if (!engine) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "Final callbacks can only be installed during backward pass.");
    }
    opdi_final *final = (opdi_final *)opdi_alloc(sizeof *final);
    if (!final) { return -1; }
    final->next = NULL;
    final->fn = fn;
    final->user = user;
    final->destroy = destroy;
    final->plugin = opdi_plugin_hold((uintptr_t)fn);
    *(engine->finals ? engine->finals_end : &engine->finals) = final;
    engine->finals_end = &final->next;
    return 0;
}

static void opdi_final_pop(opdi_engine *engine) {
    opdi_final *final = engine->finals;
    engine->finals = final->next;
    if (final->destroy) { final->destroy(final->user); }
    if (final->plugin) { opdi_plugin_unpin(final->plugin); }
    opdi_free(final, sizeof *final);
}
OPDI_INTERNAL void opdi_finals_drop(opdi_engine *engine) {
    while (engine->finals) { opdi_final_pop(engine); }
}
OPDI_INTERNAL int opdi_finals_run(opdi_engine *engine) {
    while (engine->finals) {
        if (engine->finals->fn(engine->finals->user) && opd_ok()) {
            (void)opd_fail(OPD_ERROR_AUTOGRAD, "a final callback of backward failed without setting an error "
                           "(opd_fail)");
        }
        if (!opd_ok()) { return -1; }
        opdi_final_pop(engine);
    }
    return 0;
}
