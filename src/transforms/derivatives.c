#include "transforms.h"

//== derivatives of functions ==========================================================================================
//
//  A function that is differentiated gets aliases of its inputs.  An alias is a leaf, unless autograd outside of the
//  function records the input; then a node links the alias to the input.  The operators of the function are recorded in
//  the same autograd graph as all other operators.
//
//  The gradients with respect to the aliases are computed after the layer has ended, that is, in the outer layers.  The
//  gradients are recorded only if the function's results also depend on other recorded tensors.

/* Sets diff->argnums to the numbers of the inputs with respect to which the transform differentiates.  These are the
   argnums of the options; without argnums, all inputs (if `all` is true) or the first input.  Returns 0, or -1 and sets
   an error. */
static int opdi_diff_argnums(opdi_diff *diff, bool all) {
    const opd_transform_options *options = diff->options;
    const int count = options->argnums || options->nargnums ? options->nargnums : all ? diff->nin : 1;
    int k;
    if (count <= 0) {
        return all && !diff->nin ? opd_fail(OPD_ERROR_ARGUMENT, "%s: got no inputs", diff->who)
            : opd_fail(OPD_ERROR_ARGUMENT, "%s: argnums must be non-empty", diff->who);
    }
    if (!(diff->argnums = (int *)opdi_scope_alloc((size_t)count * sizeof *diff->argnums))) { return -1; }
    for (int i = 0; i < count; i++) {
        const int given = options->argnums ? options->argnums[i] : i, first = given < 0 ? given + diff->nin : given;
        if (first < 0 || first >= diff->nin) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: Got argnum=%d, but only %d positional inputs", diff->who, given,
                            diff->nin);
        }
        for (k = 0; k < i && diff->argnums[k] != first; k++) { }
        if (k < i) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: argnums elements must be unique, got %d twice", diff->who, given);
        }
        diff->argnums[i] = first;
    }
    diff->nby = count;
    return 0;
}

/* Checks the arguments of a transform and fills in *diff.  `who` is the name of the transform in messages; `all` is as
   for opdi_diff_argnums.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_diff_make(opdi_diff *diff, const char *who, opd_transform_fn fn, void *user,
                                 opd_tensor *const *inputs, int ninputs, const opd_transform_options *options,
                                 bool all) {
    static const opd_transform_options none = {
        /* argnums, nargnums */ NULL, 0, /* naux, chunk_size */ 0, 0, OPD_RANDOM_ERROR, /* strict */ false};
    memset(diff, 0, sizeof *diff);
    if (opdi_visits_left(opdi_self()) || !opd_ok()) { return -1; }
    diff->who = who;
    diff->fn = fn;
    diff->user = user;
    diff->options = options ? options : &none;
    diff->nin = ninputs;
    if (!fn || ninputs < 0 || (ninputs && !inputs)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the %s is NULL", who, fn ? "list of inputs" : "function");
    }
    if (diff->options->naux < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: naux must be at least 0, but is %d", who, diff->options->naux);
    }
    if (opdi_any_dead(inputs, ninputs, who)) { return -1; }
    if (!(diff->in = opdi_scope_tensors(ninputs)) || opdi_diff_argnums(diff, all)) { return -1; }
    for (int i = 0; i < ninputs; i++) { diff->in[i] = inputs[i]; }
    diff->by = opdi_scope_tensors(diff->nby);
    return diff->by && (diff->given = opdi_scope_tensors(diff->nby)) ? 0 : -1;
}

static const opdi_derivative opdi_input_formula = {
    "AliasBackward0", opdi_input_bw, /* card, plugin */ NULL, NULL,
    /* context, once, fresh, real */ false, false, false, false};
/* Returns an alias of `tensor`, which autograd outside of the function records; a node links the alias to `tensor`.
   The alias is not a view, because later writes to `tensor` must not affect the function.  Returns NULL and sets an
   error on failure. */
static opd_tensor *opdi_diff_link(opdi_diff *diff, opd_tensor *tensor) {
    opd_tensor *alias = opdi_own(opdi_shallow_copy(tensor));
    opd_node *node = alias ? opdi_node_make(&opdi_input_formula, 1, 0, 0, &alias, 1, 0) : NULL;
    if (!node) { return NULL; }
    node->flags |= OPDI_NODE_INPUT;
    opdi_edge_to(opdi_edges(node), tensor);
    opdi_attach(alias, node, 0);
    opdi_node_release(node);
    diff->linked = true;
    return alias;
}
/* If a node links `tensor` to an input, returns an alias of that input.  If `tensor` is a view of such a tensor,
   returns the same view of the input.  Otherwise returns NULL without an error.  On failure, returns NULL and sets an
   error. */
static opd_tensor *opdi_diff_unlink(const opdi_diff *diff, opd_tensor *tensor) {
    opd_tensor *base = tensor->flags & OPDI_IS_VIEW ? opdi_view_record_of(tensor)->base : tensor;
    int i;
    for (i = 0; i < diff->nby && diff->by[i] != base; i++) { }
    if (i == diff->nby || !diff->linked || !opdi_diff_is_input(base)) { return NULL; }
    if (tensor == base) { return opd_alias(diff->given[i]); }
    opd_tensor *value = opdi_own(opdi_view_replay(tensor, diff->given[i]));
    if (value && !(value->flags & OPDI_IS_VIEW)) {
        opdi_view_tie(value, diff->given[i], opdi_view_record_of(tensor)->creation);
    }
    return value;
}
/* Returns an alias of input number `i` that requires grad: a leaf, or a tensor that a node links to the input.  Returns
   NULL and sets an error on failure. */
static opd_tensor *opdi_diff_alias(opdi_diff *diff, int i) {
    opd_tensor *tensor = diff->in[i];
    if (!tensor) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: all inputs with respect to which it differentiates must be tensors, "
                       "but input %d is NULL", diff->who, i);
        return NULL;
    }
    if (!opdi_differentiable(tensor)) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "%s: only Tensors of floating point and complex dtype can require gradients "
                       "(input %d is %s)", diff->who, i, opd_dtype_name((opd_scalar_type)tensor->dtype));
        return NULL;
    }
    if (!diff->around.no_grad && opdi_requires_grad(tensor)) {
        return opdi_refresh(tensor) ? NULL : opdi_diff_link(diff, tensor);
    }
    const opdi_tracer *tracer = opdi_self()->innermost.tracer;
    if (OPDI_UNLIKELY(tracer != NULL) && tracer->outside(tensor)) { return NULL; }
    opd_tensor *alias = opdi_own(opdi_shallow_copy(tensor));
    if (alias) {
        alias->flags |= OPDI_REQUIRES_GRAD;
        alias->functionality |= OPDI_GRAD_KEYS;   /* inside the function, the alias is not an inference tensor */
        alias->output_nr = diff->serial;
    }
    return alias;
}

/* Begins a layer of kind `kind`.  In a grad layer, replaces the inputs with respect to which the transform
   differentiates by aliases.  Returns 0, or -1 and sets an error. */
static int opdi_diff_enter(opdi_diff *diff, opdi_layer_kind kind) {
    opdi_thread *thread = opdi_self();
    diff->around = thread->state;
    diff->serial = thread->innermost.serials + 1 ? thread->innermost.serials + 1 : 1;
    for (int i = 0; i < diff->nby && kind == OPDI_LAYER_GRAD; i++) {
        diff->given[i] = diff->in[diff->argnums[i]];
        if (!(diff->in[diff->argnums[i]] = diff->by[i] = opdi_diff_alias(diff, diff->argnums[i]))) { return -1; }
    }
    diff->since = thread->sequence;
    if (!(diff->layer = opdi_layer_push(kind, 0, OPD_RANDOM_ERROR))) { return -1; }
    diff->layer->inputs = diff->in;
    diff->layer->ninputs = diff->nin;
    diff->layer->since = diff->since;
    thread->state.include |= OPDI_DEFAULT_INCLUDE;
    thread->state.allow |= OPDI_AUTOGRAD_BITS | OPD_BIT_OF(OPD_F_AD_INPLACE_OR_VIEW);
    thread->state.inference = 0;
    if (kind == OPDI_LAYER_GRAD) { thread->state.no_grad = 0; }
    return 0;
}
OPDI_INTERNAL void opdi_diff_leave(opdi_diff *diff) {
    opdi_thread *thread = opdi_self();
    if (!diff->layer) { return; }
    opdi_layers_end(diff->layer->level);
    thread->state = diff->around;
    diff->layer = NULL;
}

/* Calls the function inside of the layer, and writes its outputs to `out`.  Returns the number of outputs without the
   auxiliary outputs, or -1 and sets an error. */
static int opdi_diff_call(opdi_diff *diff, opd_tensor **out) {
    opdi_visit_frame visit;
    opdi_visit_begin(opdi_self(), &visit, "the function of a transform", opdi_layers_leave, diff->layer);
    int count = diff->fn(diff->user, diff->in, diff->nin, out);
    opdi_visit_end(&visit);
    count = opdi_outputs_check(count, out, diff->who, "fn");
    if (count < 0 || count > diff->options->naux) { return count < 0 ? -1 : count - diff->options->naux; }
    return diff->options->naux ? opd_fail(OPD_ERROR_ARGUMENT,
                                          "%s: function f must have another output besides the ones that "
                                          "naux counts: it has %d outputs, and naux is %d", diff->who, count,
                                              diff->options->naux)
        : opd_fail(OPD_ERROR_ARGUMENT, "%s: Expected f to be a function that has non-empty output", diff->who);
}

/* A set of nodes: `list` has them in the order in which they were added, and `slots` is a hash table of their
   indices. */
typedef struct opdi_nodes { const opd_node **list; int32_t *slots; int32_t count, cap; } opdi_nodes;

/* Returns the slot of `node` in the hash table, or the empty slot into which it would be inserted. */
static int32_t *opdi_nodes_slot(const opdi_nodes *nodes, const opd_node *node) {
    uint32_t slot = (uint32_t)((uintptr_t)node / 16) % (2 * (uint32_t)nodes->cap);
    while (nodes->slots[slot] && nodes->list[nodes->slots[slot] - 1] != node) {
        slot = slot + 1 < 2 * (uint32_t)nodes->cap ? slot + 1 : 0;
    }
    return &nodes->slots[slot];
}
static int opdi_nodes_grow(opdi_nodes *nodes) {
    const int32_t cap = nodes->cap ? 4 * nodes->cap : 64;
    const opd_node **list =
        (const opd_node **)opdi_scope_alloc((size_t)cap * (sizeof *list + 2 * sizeof *nodes->slots));
    if (!list) { return -1; }
    if (nodes->count) { memcpy(list, nodes->list, (size_t)nodes->count * sizeof *list); }
    nodes->list = list;
    nodes->slots = (int32_t *)(void *)(list + cap);
    nodes->cap = cap;
    memset(nodes->slots, 0, 2 * (size_t)cap * sizeof *nodes->slots);
    for (int32_t i = 0; i < nodes->count; i++) { *opdi_nodes_slot(nodes, list[i]) = i + 1; }
    return 0;
}
static int opdi_nodes_put(opdi_nodes *nodes, const opd_node *node) {
    if (nodes->count == nodes->cap && opdi_nodes_grow(nodes)) { return -1; }
    int32_t *slot = opdi_nodes_slot(nodes, node);
    if (!*slot) {
        nodes->list[nodes->count++] = node;
        *slot = nodes->count;
    }
    return 0;
}

/* Returns true if this layer, or an inner layer that has ended, has made `leaf`. */
static bool opdi_diff_mine(const opdi_diff *diff, const opd_tensor *leaf) {
    int i;
    for (i = 0; i < diff->nby && diff->by[i] != leaf; i++) { }
    return i < diff->nby || (leaf->output_nr && leaf->output_nr > diff->serial);
}
/* Returns true if this thread has recorded `node` inside of the layer. */
static bool opdi_diff_inside(const opdi_diff *diff, const opd_node *node) {
    return opdi_node_sequence(node) >= diff->since &&
        node->sequence >> OPDI_SEQUENCE_BITS == opdi_thread_number(opdi_self());
}
/* Returns 1 if the history of `tensor` leads to a node or leaf that existed before the layer began, else 0.  Returns -1
   if memory runs out. */
static int opdi_diff_leads_out(const opdi_diff *diff, const opd_tensor *tensor) {
    opdi_nodes seen;
    if (!tensor->grad_fn) { return (tensor->flags & OPDI_REQUIRES_GRAD) && !opdi_diff_mine(diff, tensor); }
    if (!opdi_diff_inside(diff, tensor->grad_fn)) { return 1; }
    memset(&seen, 0, sizeof seen);
    if (opdi_nodes_put(&seen, tensor->grad_fn)) { return -1; }
    for (int32_t i = 0; i < seen.count; i++) {
        for (int k = 0; k < seen.list[i]->nedges; k++) {
            const uintptr_t vertex = opdi_edges(seen.list[i])[k].vertex;
            if (!vertex) { continue; }
            if (vertex & OPDI_LEAF ? !opdi_diff_mine(diff, opdi_edge_leaf(vertex)) : !opdi_diff_inside(diff,
                    opdi_edge_node(vertex))) {
                return 1;
            }
            if (!(vertex & OPDI_LEAF) && opdi_nodes_put(&seen, opdi_edge_node(vertex))) { return -1; }
        }
    }
    return 0;
}

static opd_tensor *opdi_diff_result(const opdi_diff *diff, opd_tensor *tensor);
/* Replaces the tangents of `tensor` by tensors that can be used outside of the layer (see opdi_diff_result).  Returns
   0, or -1 and sets an error. */
static int opdi_diff_tangents(const opdi_diff *diff, const opd_tensor *tensor) {
    for (opdi_level *level = opdi_self()->innermost.level; level; level = level->outer) {
        opdi_lock(&opdi_dual_lock);
        opdi_dual *dual = opdi_dual_at(tensor, level);
        opd_tensor *tangent = dual ? opdi_keep(dual->tangent) : NULL;
        opdi_unlock(&opdi_dual_lock);
        if (!tangent) { continue; }
        opd_tensor *made = opdi_diff_result(diff, tangent);
        if (made && made != tangent) {
            opdi_retain(made);
            opdi_lock(&opdi_dual_lock);
            dual->tangent = made;
            opdi_unlock(&opdi_dual_lock);
            opdi_drop(tangent);
        }
        opdi_drop(tangent);
        if (!made) { return -1; }
    }
    return 0;
}

/* Returns 1 if `tensor` itself can be used outside of the layer: it has no history, or its history leads to a node or
   leaf outside of the layer.  Otherwise returns 0.  Returns -1 and sets an error on failure. */
static int opdi_diff_keeps(const opdi_diff *diff, const opd_tensor *tensor) {
    const opd_tensor *base = !tensor->grad_fn && (tensor->flags & OPDI_IS_VIEW) ? opdi_view_record_of(tensor)->base
        : tensor;
    if (!opdi_requires_grad(tensor)) { return 1; }
    if (base->grad_fn ? !opdi_diff_inside(diff, base->grad_fn) : !opdi_diff_mine(diff, base)) { return 1; }
    return diff->around.no_grad ? 0 : opdi_diff_leads_out(diff, tensor);
}
/* Returns a tensor with the values of `tensor` for use outside of the layer: `tensor` itself or, if its history ends
   inside of the layer, an alias without history.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_diff_result(const opdi_diff *diff, opd_tensor *tensor) {
    const opdi_batched *batched = tensor && tensor->flags & OPDI_BATCHED ? opdi_batched_of(tensor) : NULL;
    opd_tensor *value = NULL, *v;
    int keep;
    if (!tensor || opdi_refresh(tensor)) { return NULL; }
    if ((v = opdi_diff_unlink(diff, tensor)) != NULL || !opd_ok()) { return v; }
    if (OPDI_UNLIKELY(tensor->storage->duals != NULL) && opdi_diff_tangents(diff, tensor)) { return NULL; }
    if ((keep = opdi_diff_keeps(diff, tensor)) < 0) { return NULL; }
    if (keep && (!batched || opdi_requires_grad(tensor))) { return tensor; }
    if (batched && !(value = opdi_diff_result(diff, batched->value))) { return NULL; }  /* the wrapped value may have a
                                                                                           history of its own */
    if (keep && value == batched->value) { return tensor; }
    v = opdi_own(batched ? opdi_batch_again(tensor, value) : opdi_shallow_copy(tensor));
    return v && opdi_family_pass(v, tensor) == 0 ? v : NULL;
}

/* Copies the options into *derivative, because the caller may free them before the program calls the derivative. */
static void opdi_derivative_own(opd_derivative *derivative) {
    derivative->o = *derivative->diff.options;
    derivative->o.argnums = derivative->diff.argnums;
    derivative->o.nargnums = derivative->diff.nby;
    derivative->diff.options = &derivative->o;
}

/* Checks that the `count` outputs in `out` have dtypes with derivatives.  Returns 0, or -1 and sets an error. */
static int opdi_diff_check(const opdi_diff *diff, opd_tensor *const *out, int count) {
    for (int i = 0; i < count; i++) {
        if (opdi_differentiable(out[i])) { continue; }
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: Expected f to return only floating point or complex Tensors, got "
                        "%s as output %d", diff->who, opd_dtype_name((opd_scalar_type)out[i]->dtype), i);
    }
    return 0;
}

/* Calls the function inside of a grad layer.  Writes its outputs, and then its auxiliary outputs, to `outputs`, in the
   form for use outside of the layer (see opdi_diff_result).  Returns their number, or -1 and sets an error. */
OPDI_INTERNAL int opdi_vjp_make(opd_derivative *derivative, opd_tensor **outputs) {
    opdi_diff *diff = &derivative->diff;
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS] = {NULL};
    int count;
    if (opdi_diff_enter(diff, OPDI_LAYER_GRAD) || (count = opdi_diff_call(diff, out)) < 0) { return -1; }
    derivative->vmaps = diff->layer->vmaps;
    opdi_diff_leave(diff);
    if (opdi_diff_check(diff, out, count) || !(derivative->outs = opdi_scope_tensors(count))) { return -1; }
    for (int i = 0; i < count + diff->options->naux; i++) {
        if (i < count) { derivative->outs[i] = opdi_own(opdi_keep(out[i])); }
        if (!(outputs[i] = opdi_diff_result(diff, out[i]))) { return -1; }
    }
    derivative->nouts = count;
    return count + diff->options->naux;
}
static opd_derivative *opdi_derivative_new(void) {
    opd_derivative *derivative = (opd_derivative *)opdi_scope_alloc(sizeof *derivative);
    if (derivative) { memset(derivative, 0, sizeof *derivative); }
    return derivative;
}
/* Moves `count` outputs from the innermost scope to the scope around it.  Returns `count`, or -1 and sets an error. */
OPDI_INTERNAL int opdi_diff_to_outer_scope(opd_tensor *const *outputs, int count) {
    for (int i = 0; i < count; i++) {
        if (!opd_scope_return(outputs[i])) { return -1; }
    }
    return count;
}
OPDI_INTERNAL int opdi_diff_check_outputs(const void *outputs, const void *other, const char *who) {
    return outputs && other ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "%s: the pointer to the results is NULL", who);
}

/* Returns the smallest number of outputs of a transformed function: one, plus the auxiliary outputs. */
static int opdi_least_outputs(const opd_transform_options *options) {
    return 1 + (options ? OPDI_MIN(OPDI_MAX(options->naux, 0), OPD_TRANSFORM_OUTPUTS - 1) : 0);
}
/* Returns the smallest number of outputs of a transform that returns a gradient for each of the argnums instead of the
   function's output. */
OPDI_INTERNAL int opdi_least_gradients(const opd_transform_options *options) {
    const int by = options && options->nargnums > 0 ? OPDI_MIN(options->nargnums, OPD_TRANSFORM_OUTPUTS) : 1;
    return by + opdi_least_outputs(options) - 1;
}
int opd_vjp(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
            const opd_transform_options *options, opd_tensor **outputs, int cap, opd_derivative **vjp) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS] = {NULL};
    opd_derivative *derivative = opd_ok() ? opdi_derivative_new() : NULL;
    int rc = -1;
    if (derivative && opdi_diff_make(&derivative->diff, "vjp", fn, user, primals, count, options, true) == 0 &&
        opdi_diff_check_outputs(outputs, vjp, "vjp") == 0) {
        opdi_derivative_own(derivative);
        rc = opdi_vjp_make(derivative, out);
    }
    if (derivative) { opdi_diff_leave(&derivative->diff); }
    rc = opdi_outputs_return("vjp", outputs, cap, out, rc, opdi_least_outputs(options));
    if (vjp) { *vjp = rc >= 0 ? derivative : NULL; }
    return rc;
}

/* Computes the gradients of the inputs from `cotangents`, the gradients of the outputs, and writes them to `grads`.  A
   NULL cotangent means zeros; if `cotangents` is NULL, all are ones.  Returns the number of gradients, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_vjp_pull(opd_derivative *derivative, opd_tensor *const *cotangents, unsigned flags,
                                opd_tensor **grads) {
    opdi_thread *thread = opdi_self();
    opdi_diff diff = derivative->diff;
    opd_tensor **roots = opdi_scope_tensors(derivative->nouts), **with = opdi_scope_tensors(derivative->nouts);
    opd_backward_options options;
    bool create = opd_grad_mode_enabled() && !(flags & OPD_DERIVATIVE_DETACHED), reach = diff.linked;
    int k = 0;
    if (!roots || !with) { return -1; }
    diff.around.no_grad = !create;
    for (int i = 0; i < derivative->nouts; i++) {
        opd_tensor *tensor = derivative->outs[i], *grad = cotangents ? cotangents[i] : NULL;
        int out;
        if (opdi_refresh(tensor)) { return -1; }
        if (!opdi_requires_grad(tensor) || (cotangents && !grad)) { continue; }
        with[k] = grad;
        roots[k++] = tensor;
        if (create && !reach && (out = opdi_diff_leads_out(&diff, tensor)) != 0) {
            if (out < 0) { return -1; }
            reach = true;
        }
        reach = reach || opdi_tracked(grad);
    }
    memset(&options, 0, sizeof options);
    options.grad_outputs = with;
    options.retain_graph = !(flags & OPD_DERIVATIVE_LAST);
    /* inside of a vmap, the outputs belong to another layer than the derivative */
    options.create_graph = create && (reach || (derivative->vmaps && thread->innermost.layer));
    options.allow_unused = true;
    if (k && opdi_autograd_grad(roots, k, diff.by, diff.nby, &options, !reach, diff.serial, grads)) { return -1; }
    for (int i = 0; i < diff.nby; i++) {
        opd_tensor *grad = k ? grads[i] : NULL;
        grads[i] = grad ? opdi_diff_result(&diff, grad) : opd_zeros_like(diff.by[i]);
        if (!grads[i]) { return -1; }
    }
    return diff.nby;
}

/* Checks that a transform has no more results than allowed.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_diff_most(const opdi_diff *diff, int count) {
    return count <= OPD_TRANSFORM_OUTPUTS ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "%s: there are %d results, but at most %d "
                                                         "are allowed", diff->who, count, OPD_TRANSFORM_OUTPUTS);
}
/* Computes the gradients of a function whose output is a single number.  Writes to `outputs` the gradients; then, if
   `value` is true, the function's output; then the auxiliary outputs.  Returns their number, or -1 and sets an
   error. */
static int opdi_diff_grad(opdi_diff *diff, bool value, opd_tensor **outputs) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS], *grads[OPD_TRANSFORM_OUTPUTS];
    opd_derivative derivative;
    int k = diff->nby;
    memset(&derivative, 0, sizeof derivative);
    derivative.diff = *diff;
    if (opdi_diff_most(diff, diff->nby) ||
        opdi_diff_most(diff, k + value + OPDI_MIN(diff->options->naux, OPD_TRANSFORM_OUTPUTS))) {
        return -1;
    }
    int count = opdi_vjp_make(&derivative, out);
    opdi_diff_leave(&derivative.diff);
    if (count < 0) { return -1; }
    if (derivative.nouts != 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: Expected f(*args) to return one scalar Tensor, got %d outputs",
                        diff->who, derivative.nouts);
    }
    if (out[0]->ndim != 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: Expected f(*args) to return a scalar Tensor, got tensor with %d dims. "
                        "Maybe you wanted to use the vjp or jacrev APIs instead?", diff->who, (int)out[0]->ndim);
    }
    if (opdi_vjp_pull(&derivative, NULL, OPD_DERIVATIVE_LAST, grads) < 0) { return -1; }
    for (int i = 0; i < diff->nby; i++) { outputs[i] = grads[i]; }
    for (int i = value ? 0 : 1; i < count; i++) { outputs[k++] = out[i]; }
    return k;
}
static int opdi_grad_of(const char *who, opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                        const opd_transform_options *options, bool value, opd_tensor **outputs, int cap) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS] = {NULL};
    opd_scope scope = opd_scope_open();
    opdi_diff diff;
    int count = opdi_diff_make(&diff, who, fn, user, inputs, ninputs, options, false);
    if (count == 0 && !outputs) { count = opd_fail(OPD_ERROR_ARGUMENT, "%s: the pointer to the outputs is NULL", who); }
    if (count == 0) { count = opdi_diff_grad(&diff, value, out); }
    count = opdi_diff_to_outer_scope(out, count);
    opd_scope_close(&scope);
    return opdi_outputs_return(who, outputs, cap, out, count, opdi_least_gradients(options) + value);
}
int opd_grad(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
             const opd_transform_options *options, opd_tensor **outputs, int cap) {
    return opdi_grad_of("grad", fn, user, inputs, ninputs, options, false, outputs, cap);
}
int opd_grad_and_value(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                       const opd_transform_options *options, opd_tensor **outputs, int cap) {
    return opdi_grad_of("grad_and_value", fn, user, inputs, ninputs, options, true, outputs, cap);
}

//== forward mode ======================================================================================================

/* Calls the function in forward mode at the primals diff->in, with the tangents `tangents` (NULL means zeros).  Writes
   the outputs to `outputs` and their tangents to `out_tangents`.  Returns the number of outputs, including auxiliary
   outputs, or -1 and sets an error. */
OPDI_INTERNAL int opdi_jvp_make(opdi_diff *diff, opd_tensor *const *tangents, opd_tensor **outputs,
                                opd_tensor **out_tangents) {
    opdi_thread *thread = opdi_self();
    opdi_level_frame within;
    int count, rc = 0;
    if (opdi_diff_enter(diff, OPDI_LAYER_JVP) || opdi_level_begin(thread, true)) { return -1; }
    thread->state.forward = 0;
    opdi_forward_at(thread, thread->innermost.floor);
    opdi_level_enter(thread, &within, thread->innermost.level);
    for (int i = 0; i < diff->nby && rc == 0; i++) {
        const int first = diff->argnums[i];
        if (!tangents[i]) { continue; }
        if (!(diff->in[first] = opdi_make_dual(diff->in[first], tangents[i]))) { rc = -1; }
        else { diff->in[first]->functionality |= OPDI_GRAD_KEYS; }  /* inside the function, the input is not an
                                                                       inference tensor */
    }
    opdi_level_leave(thread, &within);
    if (rc || (count = opdi_diff_call(diff, outputs)) < 0) { return -1; }
    opdi_level_enter(thread, &within, thread->innermost.level);
    for (int i = 0; i < count && rc == 0; i++) {
        out_tangents[i] = opdi_tangent_of(outputs[i]);
        if (!out_tangents[i] && opd_ok() && diff->options->strict) {
            rc = opd_fail(OPD_ERROR_ARGUMENT, "jvp: output %d of f is independent of the inputs, which the option "
                          "strict does not allow", i);
        }
        if (!out_tangents[i] && opd_ok()) { out_tangents[i] = opd_zeros_like(outputs[i]); }
        rc = out_tangents[i] ? rc : -1;
    }
    opdi_level_leave(thread, &within);
    opdi_diff_leave(diff);
    return rc ? -1 : count + diff->options->naux;
}

/* Checks that each tangent has the sizes, dtype and device of its primal.  Returns 0, or -1 and sets an error. */
static int opdi_jvp_check(const opdi_diff *diff, opd_tensor *const *tangents, const char *who) {
    char first[256], second[256];
    if (opdi_any_dead(tangents, diff->nby, who)) { return -1; }
    for (int i = 0; i < diff->nby; i++) {
        const opd_tensor *primal = diff->in[diff->argnums[i]], *tensor = tangents[i];
        if (!primal || !tensor) {
            if (!primal || strcmp(who, "linearize") == 0) {
                return opd_fail(OPD_ERROR_ARGUMENT, "%s: Expected %s to only contain Tensors, got NULL at %d", who,
                                primal ? "tangents" : "primals", i);
            }
            continue;
        }
        if (!opdi_dual_dtype(primal, "primal") || !opdi_dual_dtype(tensor, "tangent")) { return -1; }
        if (!opdi_has_sizes(tensor, primal->dims, primal->ndim)) {
            return opd_fail(OPD_ERROR_SHAPE, "%s: tangent:%d with shape %s doesn't match the shape %s of the "
                            "corresponding primal", who, i,
                            opdi_sizes_text(tensor->dims, tensor->ndim, first, sizeof first),
                            opdi_sizes_text(primal->dims, primal->ndim, second, sizeof second));
        }
        if (tensor->dtype != primal->dtype) {
            return opd_fail(OPD_ERROR_DTYPE, "%s: tangent:%d with dtype %s doesn't match the dtype %s of the "
                            "corresponding primal", who, i, opd_dtype_name((opd_scalar_type)tensor->dtype),
                            opd_dtype_name((opd_scalar_type)primal->dtype));
        }
        /* in a fake mode, the device that a fake stands for */
        if (opdi_place(opd_tensor_device(tensor)) != opdi_place(opd_tensor_device(primal))) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: tangent:%d is on another device than the corresponding primal",
                            who, i);
        }
    }
    return 0;
}

/* Runs the function in forward mode, and moves its outputs and their tangents to the caller's scope.  Returns the
   number of outputs, or -1 and sets an error. */
int opd_jvp(opd_transform_fn fn, void *user, opd_tensor *const *primals, opd_tensor *const *tangents, int count,
            const opd_transform_options *options, opd_tensor **outputs, opd_tensor **out_tangents, int cap) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS] = {NULL}, *along[OPD_TRANSFORM_OUTPUTS] = {NULL};
    opd_scope scope = opd_scope_open();
    opdi_diff diff;
    int rc = opdi_diff_make(&diff, "jvp", fn, user, primals, count, options, true);
    if (rc == 0 && !tangents) {
        rc = opd_fail(OPD_ERROR_ARGUMENT, "jvp: the tangents are NULL, but there must be one for each primal");
    }
    if (rc == 0) { rc = opdi_diff_check_outputs(outputs, out_tangents, "jvp"); }
    if (rc == 0) { rc = opdi_jvp_check(&diff, tangents, "jvp"); }
    if (rc == 0) { rc = opdi_jvp_make(&diff, tangents, out, along); }
    opdi_diff_leave(&diff);
    rc = opdi_diff_to_outer_scope(out, rc);
    if (rc > 0 && opdi_diff_to_outer_scope(along, rc - diff.options->naux) < 0) { rc = -1; }
    opd_scope_close(&scope);
    rc = opdi_outputs_return("jvp", outputs, cap, out, rc, opdi_least_outputs(options));
    (void)opdi_outputs_return("jvp", out_tangents, cap, along, rc < 0 ? rc : rc - diff.options->naux, 1);
    return rc;
}

/* Calls the function once and writes its outputs to `outputs`.  Makes *jvp, a derivative that holds the primals and
   calls the function again for each set of tangents.  Returns the number of outputs, or -1 and sets an error. */
static int opdi_linearize(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
                          const opd_transform_options *options, opd_tensor **outputs, opd_derivative **jvp) {
    opd_derivative *derivative = opd_ok() ? opdi_derivative_new() : NULL;
    opd_tensor **kept;
    int rc = -1;
    if (!derivative || opdi_diff_make(&derivative->diff, "linearize", fn, user, primals, count, options, true) ||
        opdi_diff_check_outputs(outputs, jvp, "linearize") || !(kept = opdi_scope_tensors(count))) { return -1; }
    for (int i = 0; i < count; i++) {
        if (!primals[i] || !(kept[i] = opdi_own(opdi_keep(primals[i])))) {
            return opd_fail(OPD_ERROR_ARGUMENT, "linearize: Expected primals to only contain Tensors, got NULL at %d",
                            i);
        }
    }
    derivative->primals = kept;
    opdi_derivative_own(derivative);
    rc = opdi_diff_call(&derivative->diff, outputs);
    if (rc < 0) { return -1; }
    derivative->nouts = rc;
    *jvp = derivative;
    return rc + derivative->diff.options->naux;
}
int opd_linearize(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
                  const opd_transform_options *options, opd_tensor **outputs, int cap, opd_derivative **jvp) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS] = {NULL};
    if (jvp) { *jvp = NULL; }
    count = opdi_linearize(fn, user, primals, count, options, outputs ? out : NULL, jvp);
    count = opdi_outputs_return("linearize", outputs, cap, out, count, opdi_least_outputs(options));
    if (count < 0 && jvp) { *jvp = NULL; }
    return count;
}

/* The number of results of a derivative. */
static int opdi_derivative_results(const opd_derivative *derivative) {
    return !derivative ? 1 : derivative->primals ? derivative->nouts : derivative->diff.nby;
}
/* Applies a derivative to the tensors `in`: gradients of the outputs (vjp), or tangents of the inputs (linearize).
   Writes the results to `out`, which has room for `cap`.  Returns their number, or -1 and sets an error. */
static int opdi_derivative_call(opd_derivative *derivative, opd_tensor *const *in, int count, unsigned flags,
                                opd_tensor **out, int cap) {
    opd_tensor *outputs[OPD_TRANSFORM_OUTPUTS], *along[OPD_TRANSFORM_OUTPUTS];
    int rc = -1;
    if (!opd_ok()) { return -1; }
    if (!derivative || !out || (count && !in)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_derivative_call: an argument is NULL");
    }
    if (opdi_any_dead(in, count, "opd_derivative_call")) { return -1; }
    if (count != (derivative->primals ? derivative->diff.nby : derivative->nouts)) {
        return derivative->primals ? opd_fail(OPD_ERROR_ARGUMENT,
                                              "linearize: Expected the tangents to have the same structure "
                                              "as the primals. primals: %d, tangents: %d", derivative->diff.nby, count)
            : opd_fail(OPD_ERROR_ARGUMENT, "vjp: Expected pytree structure of cotangents to be the same as pytree "
                       "structure of outputs to the function. cotangents: %d, primal output: %d", count,
                       derivative->nouts);
    }
    if (opdi_outputs_room("opd_derivative_call", opdi_derivative_results(derivative), cap) < 0) { return -1; }
    opd_scope scope = opd_scope_open();
    if (!derivative->primals) { rc = opdi_vjp_pull(derivative, in, flags, out); }
    else {
        opdi_diff diff;
        rc = opdi_diff_make(&diff, "linearize", derivative->diff.fn, derivative->diff.user, derivative->primals,
                            derivative->diff.nin, derivative->diff.options, true);
        if (rc == 0) { rc = opdi_jvp_check(&diff, in, "linearize"); }
        if (rc == 0) { rc = opdi_jvp_make(&diff, in, outputs, along); }
        opdi_diff_leave(&diff);
        if (rc > 0 && (rc -= diff.options->naux) != derivative->nouts) {
            rc = opd_fail(OPD_ERROR_ARGUMENT, "linearize: the function returned %d outputs before, and %d outputs now",
                          derivative->nouts, rc);
        }
        for (int i = 0; i < rc; i++) { out[i] = along[i]; }
    }
    rc = opdi_diff_to_outer_scope(out, rc);
    opd_scope_close(&scope);
    return rc;
}
int opd_derivative_call(opd_derivative *derivative, opd_tensor *const *in, int count, unsigned flags,
                        opd_tensor **outputs, int cap) {
    const int rc = opdi_derivative_call(derivative, in, count, flags, outputs, cap);
    return rc < 0 ? opdi_no_tensors(outputs, OPDI_MIN(opdi_derivative_results(derivative), cap)) : rc;
}
