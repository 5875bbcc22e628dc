#include "autograd.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>functions    custom functions, functions that are differentiable once, complex gradients
//
//  This section records calls whose backward functions belong to the program, and has the functions with which backward
//  functions read saved values and return gradients.  Backward functions call public operators.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL int opdi_forward_function(opd_context *ctx);

//== custom functions ==================================================================================================
//
//  The rules for the values that a custom function returns are PyTorch's (custom_function.cpp).  An opd_context stores
//  the state of a call: see "contexts" in >>tape.

int opd_context_ninputs(const opd_context *ctx) { return ctx ? ctx->ninputs : 0; }
opd_tensor *opd_context_tensor(const opd_context *ctx, int i) {
    opd_value value = opd_context_input(ctx, i);
    return value.tag == OPD_TAG_TENSOR ? value.u.t : NULL;
}
opd_value opd_context_output(const opd_context *ctx, int i) {
    return ctx && ctx->outputs && i >= 0 && i < ctx->noutputs ? ctx->outputs[i] : opd_value_none();
}

/* Checks that the function named `what` is called inside the forward or the set-up of a custom function, or, if
   `forward_only` is true, inside the forward.  Returns 0, or -1 and sets an error. */
static int opdi_context_during(const opd_context *ctx, const char *what, bool forward_only) {
    if (!opd_ok()) { return -1; }
    if (!ctx) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: the context is NULL", what); }
    if (ctx->in_forward || (ctx->in_setup && !forward_only)) { return 0; }
    return opd_fail(OPD_ERROR_AUTOGRAD, "%s can only be called in the forward%s of a function (%s)", what,
                    forward_only ? "" : " or setup_context", ctx->name);
}

/* Appends `value` to the outputs of the function.  A tensor is retained; other values are copied.  Returns 0, or -1 and
   sets an error. */
int opd_context_return_value(opd_context *ctx, opd_value value) {
    if (opdi_context_during(ctx, "opd_context_return", true)) { return -1; }
    if (value.tag == OPD_TAG_TENSORS) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: a list of tensors cannot be an output; return its tensors one by one",
                        ctx->name);
    }
    if (ctx->noutputs == ctx->cap) {
        int32_t cap = ctx->cap ? 2 * ctx->cap : 4;
        opd_value *more = (opd_value *)opdi_alloc((size_t)cap * sizeof *more);
        if (!more) { return -1; }
        if (ctx->cap) {
            memcpy(more, ctx->outputs, (size_t)ctx->cap * sizeof *more);
            opdi_free(ctx->outputs, (size_t)ctx->cap * sizeof *more);
        }
        ctx->outputs = more;
        ctx->cap = cap;
    }
    if (value.tag == OPD_TAG_TENSOR) {
        opdi_retain(value.u.t);
        ctx->outputs[ctx->noutputs++] = value;
        return 0;
    }
    if (opdi_keep_value(&ctx->outputs[ctx->noutputs], &value, true)) { return -1; }
    ctx->noutputs++;
    return 0;
}
int opd_context_return(opd_context *ctx, opd_tensor *tensor) {
    if (!opd_ok()) { return -1; }
    return opd_context_return_value(ctx, tensor ? opd_value_tensor(tensor) : opd_value_none());
}

bool opd_context_needs_input_grad(const opd_context *ctx, int i) {
    opd_backward_call bw;
    if (!ctx || i < 0 || i >= ctx->ninputs) { return false; }
    if (ctx->inputs) { return opdi_arg_requires_grad(&ctx->inputs[i]); }
    if (!ctx->node) { return false; }
    memset(&bw, 0, sizeof bw);
    bw.node = ctx->node;
    return opd_bw_needs(&bw, i);
}

int opd_context_save_for_backward(opd_context *ctx, opd_tensor *const *tensors, int count) {
    if (opdi_context_during(ctx, "opd_context_save_for_backward", false)) { return -1; }
    if (count < 0 || count > OPDI_MOST_SAVED || (count && !tensors)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_context_save_for_backward: 0 to %d tensors can be saved, not %d (%s)",
                        OPDI_MOST_SAVED, count, ctx->name);
    }
    return opdi_tensor_array_set(&ctx->save, 0, tensors, count);
}
int opd_context_save_for_forward(opd_context *ctx, opd_tensor *const *tensors, int count) {
    if (opdi_context_during(ctx, "opd_context_save_for_forward", false)) { return -1; }
    if (count < 0 || (count && !tensors)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_context_save_for_forward: the array is NULL (%s)", ctx->name);
    }
    return opdi_tensor_array_set(&ctx->save_forward, 0, tensors, count);
}
int opd_context_mark_dirty(opd_context *ctx, opd_tensor *tensor) {
    struct opdi_mutation *mutation = opdi_self()->innermost.mutation;
    const bool of_operator = !ctx || !ctx->fn.forward;
    if (opdi_context_during(ctx, "opd_context_mark_dirty", of_operator) ||
        opdi_null_tensor(tensor, "opd_context_mark_dirty") || (mutation && opdi_mutation_write(mutation, tensor)) ||
        opdi_tensor_array_set(&ctx->dirty, ctx->dirty.count, &tensor, 1)) {
        return -1;
    }
    (void)OPDI_ADD(&tensor->storage->version, 1u);
    return 0;
}
int opd_context_mark_non_differentiable(opd_context *ctx, opd_tensor *tensor) {
    if (opdi_context_during(ctx, "opd_context_mark_non_differentiable", false) ||
        opdi_null_tensor(tensor, "opd_context_mark_non_differentiable")) { return -1; }
    return opdi_tensor_array_set(&ctx->constant, ctx->constant.count, &tensor, 1);
}
bool opd_context_set_materialize_grads(opd_context *ctx, bool on) {
    const bool was = ctx && ctx->materialize;
    if (ctx) { ctx->materialize = on; }
    return was;
}

/* Sets attribute `name` of ctx to a copy of value, which holds no tensors.  Returns 0, or -1 and sets an error. */
int opd_context_set(opd_context *ctx, const char *name, opd_value value) {
    opdi_attribute *attribute;
    if (!opd_ok()) { return -1; }
    if (!ctx || !name) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_context_set: context or name is NULL"); }
    if (value.tag == OPD_TAG_TENSOR || value.tag == OPD_TAG_TENSORS || opdi_value_bytes(&value, 0) < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_context_set: '%s' contains tensors; save them with "
                        "opd_context_save_for_backward (%s)", name, ctx->name);
    }
    size_t length = sizeof *attribute + strlen(name) + 1;
    attribute = (opdi_attribute *)opdi_alloc(length);
    if (!attribute) { return -1; }
    attribute->name = (char *)(attribute + 1);
    strcpy(attribute->name, name);
    if (opdi_keep_value(&attribute->value, &value, true)) {
        opdi_free(attribute, length);
        return -1;
    }
    attribute->next = ctx->attributes;            /* in front, so that the newest attribute is found first */
    ctx->attributes = attribute;
    return 0;
}
opd_value opd_context_get(const opd_context *ctx, const char *name) {
    const opdi_attribute *attribute = ctx && name ? ctx->attributes : NULL;
    while (attribute && strcmp(attribute->name, name) != 0) { attribute = attribute->next; }
    opd_value value = attribute ? attribute->value : opd_value_none();
    if (value.tag == OPD_TAG_STR) { value.n--; }
    return value;
}
int opd_context_set_data(opd_context *ctx, void *data, opd_destroy destroy) {
    if (!opd_ok()) { return -1; }
    if (!ctx) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_context_set_data: the context is NULL"); }
    if (ctx->destroy) { ctx->destroy(ctx->data); }
    ctx->data = data;
    ctx->destroy = destroy;
    return 0;
}
void *opd_context_data(const opd_context *ctx) { return ctx ? ctx->data : NULL; }
void *opd_context_user(const opd_context *ctx) { return ctx ? ctx->fn.user : NULL; }

int opd_context_nsaved(const opd_context *ctx) { return ctx ? ctx->nsaved : 0; }
opd_tensor *opd_context_saved(opd_context *ctx, int i) {
    const opd_node *node = ctx ? ctx->node : NULL;
    if (ctx && ctx->in_jvp) { return i >= 0 && i < ctx->save_forward.count ? ctx->save_forward.tensors[i] : NULL; }
    if (!node || i < 0 || i >= ctx->nsaved) { return NULL; }
    if (ctx->cleared || opdi_saved_is_freed(node)) {
        (void)opdi_fail_freed(node);
        return NULL;
    }
    const opd_value *value = &opdi_kept(node)[node->nkept - 1 - ctx->nsaved];
    if (value[i].tag == OPD_TAG_INT) { i = (int)value[i].u.i; }
    return opdi_unpack(node, &value[i], (uint32_t)value[i].n);
}

int opd_context_maybe_clear_saved_tensors(opd_context *ctx) {
    if (!opd_ok()) { return -1; }
    if (!ctx) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_context_maybe_clear_saved_tensors: the context is NULL");
    }
    if (!ctx->node || opd_backward_keeps_graph()) { return 0; }
    uint8_t was = OPDI_ACQUIRE(&ctx->node->saved);
    if (was / OPDI_SAVED_USER != 1 ||             /* another backward uses the tensors, too, and frees them when it
                                                     ends */
        !OPDI_EXCHANGE(&ctx->node->saved, &was, (uint8_t)(was | OPDI_SAVED_FREED))) { return 0; }
    ctx->cleared = true;
    opdi_node_free_saved(ctx->node);
    return 0;
}

/* Brings the histories of the views among the inputs up to date.  Returns 1 if grad mode is on and an input requires
   grad, else 0.  Returns -1 and sets an error on failure. */
static int opdi_function_wanted(const opd_context *ctx) {
    int wanted = 0;
    if (!opd_grad_mode_enabled()) { return 0; }
    for (int32_t i = 0; i < ctx->ninputs; i++) {
        const opd_value *value = &ctx->inputs[i];
        for (int32_t k = 0; k < (value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR); k++) {
            opd_tensor *tensor = value->tag == OPD_TAG_TENSORS ? value->u.tensors[k] : value->u.t;
            if (tensor && opdi_refresh(tensor)) { return -1; }
        }
        wanted = wanted || opdi_arg_requires_grad(value);
    }
    return wanted;
}

/* Returns 1 if an input has a tangent, else 0.  If an input has a tangent but the function has no jvp, returns -1 and
   sets an error. */
static int opdi_function_dual(const opd_context *ctx) {
    if (OPDI_LIKELY(opdi_self()->state.forward != OPDI_FORWARD_OPEN)) { return 0; }
    if (!opdi_level_of(ctx->inputs, ctx->ninputs)) { return 0; }
    return ctx->fn.jvp ? 1
        : opd_fail(OPD_ERROR_AUTOGRAD, "the function %s has no `jvp` (see opd_autograd_function), so it cannot be "
                   "used in forward mode", ctx->name);
}

/* Makes ctx->edges, which lead to the histories of the inputs.  Called before forward, which may change the inputs.
   Returns 0, or -1 and sets an error. */
static int opdi_function_edges(opd_context *ctx) {
    const int32_t count = ctx->first[ctx->ninputs];
    ctx->edges = (opdi_edge *)opdi_alloc((size_t)count * sizeof *ctx->edges);
    if (!ctx->edges) { return -1; }
    memset(ctx->edges, 0, (size_t)count * sizeof *ctx->edges);
    ctx->nedges = count;
    for (int32_t i = 0; i < ctx->ninputs; i++) {
        const opd_value *value = &ctx->inputs[i];
        opdi_edge *edge = ctx->edges + ctx->first[i];
        if (value->tag == OPD_TAG_TENSOR) { opdi_edge_to(edge, value->u.t); }
        for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            opdi_edge_to(edge + k, value->u.tensors[k]);
        }
    }
    return 0;
}

static bool opdi_is_input(const opd_context *ctx, const opd_tensor *tensor) {
    for (int32_t i = 0; i < ctx->ninputs; i++) {
        const opd_value *value = &ctx->inputs[i];
        if (value->tag == OPD_TAG_TENSOR && value->u.t == tensor) { return true; }
        for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (value->u.tensors[k] == tensor) { return true; }
        }
    }
    return false;
}

/* Checks that `tensor`, an output that forward has written in place, can get a correct history.  `input` tells if the
   tensor is also an input.  Returns 0, or -1 and sets an error. */
static int opdi_check_dirty(const opd_context *ctx, const opd_tensor *tensor, bool input) {
    if ((tensor->flags & OPDI_REQUIRES_GRAD) && !tensor->grad_fn) {
        return opd_fail(OPD_ERROR_AUTOGRAD,
                        "a leaf tensor that requires grad has been used in an in-place operation.");
    }
    if (!input) {
        opd_warn("Only input Tensors should be given to opd_context_mark_dirty. If a Tensor is not an input, there is "
                 "no need to pass it to opd_context_mark_dirty (%s).", ctx->name);
    }
    if ((tensor->flags & OPDI_IS_VIEW) && ctx->noutputs > 1) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "If your Function modifies inplace an input that is a view of another "
                        "Tensor, your Function cannot return more than one Tensor. This is not supported by the "
                        "current autograd engine. You should either make sure the input is not a view (using "
                        "opd_clone for example) or make your Function only return one Tensor (potentially splitting "
                        "it into two Functions: one doing the inplace that returns a single Tensor and a second one "
                        "that does the other operations). (%s)", ctx->name);
    }
    if ((tensor->flags & OPDI_IS_VIEW) && (ctx->inputs[0].tag != OPD_TAG_TENSOR || ctx->inputs[0].u.t != tensor ||
                                           opdi_tensor_array_has(&ctx->save, tensor))) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "A view that a Function modifies inplace must be its first input. To save "
                        "the view for backward, save a clone of it (opd_clone). (%s)", ctx->name);
    }
    return opdi_check_inplace(tensor);
}

/* Prepares the outputs for recording.  If an output itself must not get this function's node as its history, replaces
   it by a copy or an alias.  Sets tied[i] to true if output i is to get the node.  Returns the number of outputs that
   are to get the node, or -1 and sets an error. */
static int opdi_function_wrap(opd_context *ctx, bool wanted, bool *tied) {
    int32_t count = 0;
    for (int32_t i = 0; i < ctx->dirty.count; i++) {
        int32_t k;
        for (k = 0; k < ctx->noutputs && opdi_tensor_in(&ctx->outputs[k]) != ctx->dirty.tensors[i]; k++) { }
        if (k < ctx->noutputs) { continue; }
        return opd_fail(OPD_ERROR_AUTOGRAD, "Some elements marked as dirty during the forward method were not returned "
                        "as output. The inputs that are modified inplace must all be outputs of the Function. (%s)",
                        ctx->name);
    }
    for (int32_t i = 0; i < ctx->noutputs; i++) {
        opd_tensor *tensor = opdi_tensor_in(&ctx->outputs[i]), *old = tensor;
        const bool input = tensor && opdi_is_input(ctx, tensor),
            dirty = tensor && opdi_tensor_array_has(&ctx->dirty, tensor);
        const bool history = tensor && (tensor->flags & OPDI_REQUIRES_GRAD) != 0;
        tied[i] = tensor && wanted && opdi_differentiable(tensor) && !opdi_tensor_array_has(&ctx->constant, tensor);
        if (!tensor) { continue; }
        count += tied[i];
        if (tied[i] && dirty) {
            if (opdi_check_dirty(ctx, tensor, input)) { return -1; }
            continue;
        }
        if (tied[i] && input && ctx->fn.setup_context && opdi_tensor_array_has(&ctx->save, tensor)) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "A input that has been returned as-is as output is being saved for "
                            "backward. This is not supported if you override setup_context. You should return and save "
                            "a view of the input instead, e.g. with opd_alias or setup ctx inside the forward function "
                            "itself. (%s)", ctx->name);
        }
        if (history || (input && !dirty)) {
            if (history && !tied[i] ? !(tensor = opdi_shallow_copy(old)) : opdi_unalias(&tensor, false)) { return -1; }
            ctx->outputs[i].u.t = tensor;
            opdi_drop(old);
        } else if (!input && (tensor->flags & OPDI_IS_VIEW)) {
            opdi_view_record_of(tensor)->creation = OPDI_VIEW_CUSTOM;
        }
    }
    for (int32_t i = 0; i < ctx->noutputs && count > 1; i++) {
        opd_tensor *tensor = opdi_tensor_in(&ctx->outputs[i]);
        if (tensor && (tensor->flags & OPDI_IS_VIEW)) {
            opdi_view_record_of(tensor)->creation = OPDI_VIEW_MULTI_OUTPUT;
        }
    }
    return count;
}

/* Makes the function's node, and makes it the history of the outputs whose `tied` is true.  `outs` has space for
   noutputs tensors.  Returns 0, or -1 and sets an error.  If ctx->node is not NULL afterwards (also after an error),
   the caller owns the reference to the node. */
static int opdi_function_record(opd_context *ctx, const opdi_derivative *formula, const bool *tied, opd_tensor **outs) {
    int rc = 0;
    for (int32_t i = 0; i < ctx->noutputs; i++) { outs[i] = opdi_tensor_in(&ctx->outputs[i]); }
    opd_node *node = opdi_node_make(formula, ctx->nedges, opdi_context_kept_count(ctx), 0, outs, ctx->noutputs, 0);
    if (!node) { return -1; }
    memcpy(opdi_edges(node), ctx->edges, (size_t)ctx->nedges * sizeof *ctx->edges);
    opdi_free(ctx->edges, (size_t)ctx->nedges * sizeof *ctx->edges);
    ctx->edges = NULL;
    if (opdi_context_keep(ctx, node, outs, ctx->noutputs)) {
        opdi_node_release(node);
        return -1;
    }
    for (int32_t i = 0; i < ctx->noutputs; i++) {
        opd_tensor *tensor = outs[i];
        if (!tied[i]) { continue; }
        if (tensor->grad_fn == node) {  /* the tensor is returned twice */
            tensor->output_nr = (uint32_t)i;
            continue;
        }
        if (opdi_tensor_array_has(&ctx->dirty, tensor)) {
            rc = opdi_rebase_to(tensor, node, i, 0) || rc;
            continue;
        }
        opdi_attach(tensor, node, i);
        if (tensor->flags & OPDI_IS_VIEW) {
            opdi_view_record_of(tensor)->version = OPDI_LOAD(&tensor->storage->version);
        }
    }
    opdi_context_tie(ctx);
    return rc || (opdi_self()->innermost.packer && opdi_node_pack(node)) ? -1 : 0;
}

/* Moves the first `cap` outputs to the innermost scope and writes them to `outputs`.  Returns 0, or -1 and sets an
   error. */
static int opdi_function_deliver(opd_context *ctx, opd_value *outputs, int cap) {
    for (int32_t i = 0; i < ctx->noutputs && i < cap; i++) {
        opd_value value = ctx->outputs[i];
        if (value.tag == OPD_TAG_TENSOR) {
            ctx->outputs[i] = opd_value_none();
            if (!opdi_own(value.u.t)) { return -1; }
        } else if (opdi_value_bytes(&value, 0) > 0) {
            char *at = (char *)opdi_scope_alloc((size_t)opdi_value_bytes(&value, 0));
            if (!at) { return -1; }
            if (value.tag == OPD_TAG_STR) { value.n--; }
            (void)opdi_value_copy(&value, at);
        }
        outputs[i] = value;
    }
    return 0;
}

static int opdi_function_missing(opd_backward_call *bw) {
    return opd_fail(OPD_ERROR_AUTOGRAD, "You must implement the backward of your custom function (%s) to use it with "
                    "backward mode AD.", bw->node->formula->name);
}

/* Finishes the call of a function after forward and set-up: records it and gives the caller the outputs.  Takes over
   the context.  Returns the number of outputs, or -1 and sets an error. */
static int opdi_function_finish(opd_context *ctx, const opdi_derivative *formula, bool wanted, opd_value *outputs,
                                int cap) {
    const int count = ctx->noutputs;
    const size_t bytes = (size_t)count * (sizeof(opd_tensor *) + sizeof(bool)) + 1;
    opd_tensor **outs = (opd_tensor **)opdi_alloc(bytes);
    bool *tied = outs ? (bool *)(void *)(outs + count) : NULL;
    int rc = outs ? opdi_function_wrap(ctx, wanted, tied) : -1;
    if (rc > 0) { rc = opdi_function_record(ctx, formula, tied, outs); }
    if (outs) { opdi_free(outs, bytes); }
    opd_node *node = ctx->node;
    if (rc == 0 && opdi_function_dual(ctx)) { rc = opdi_forward_function(ctx); }
    if (rc == 0) { rc = opdi_function_deliver(ctx, outputs, cap); }
    if (!node) {
        opdi_context_free(ctx);
        return rc ? -1 : count;
    }
    opdi_context_end_call(ctx);
    opdi_node_release(node);
    return rc ? -1 : count;
}

/* Runs the forward and set-up of a function and records the call.  Takes over the context.  Returns the number of
   outputs, or -1 and sets an error. */
static int opdi_function_call(opd_context *ctx, opd_value *outputs, int cap) {
    char name[64];
    snprintf(name, sizeof name, "%.50sBackward", ctx->fn.name);
    const opdi_derivative *formula = opdi_manual_formula(name,
                                                         ctx->fn.backward ? ctx->fn.backward : opdi_function_missing,
                                                         true, ctx->fn.once_differentiable);
    ctx->name = formula ? formula->name : "";
    int wanted = formula ? opdi_function_wanted(ctx) : -1;
    if (wanted < 0 || opdi_function_dual(ctx) < 0 || (wanted && opdi_function_edges(ctx)) ||
        (ctx->layer ? ctx->layer->compute(ctx)
         : opdi_context_run(ctx, ctx->fn.forward, &ctx->in_forward, "forward")) ||
        (ctx->fn.setup_context && opdi_context_run(ctx, ctx->fn.setup_context, &ctx->in_setup, "setup_context"))) {
        opdi_context_free(ctx);
        return -1;
    }
    return opdi_function_finish(ctx, formula, wanted != 0, outputs, cap);
}

/* Calls the function as opdi_function_call does, and reports the call to observers as a span.  Returns the number of
   outputs, or -1 and sets an error. */
static int opdi_function_observed(opd_context *ctx, opd_value *outputs, int cap) {
    opdi_thread *thread = opdi_self();
    opdi_observing observing;
    if (!opdi_observe_on(thread)) { return opdi_function_call(ctx, outputs, cap); }
    observing.event.op = NULL;
    observing.event.args = ctx->inputs;
    observing.event.nargs = ctx->ninputs;
    observing.event.forward_thread = 0;
    opdi_observe_begin(thread, &observing, OPD_OBSERVE_SPAN, ctx->fn.name,
                       opd_grad_mode_enabled() ? (int64_t)thread->sequence : -1);
    int count = opdi_function_call(ctx, outputs, cap);
    opdi_observe_end(thread, &observing, outputs, OPDI_MAX(OPDI_MIN(count, cap), 0));
    return count;
}

/* Sets ctx->layer to the innermost vmap layer at which an input of a custom function is batched, or leaves it NULL.
   Afterwards, forward mode uses only the levels of the inner layers.  Returns 0, or -1 and sets an error. */
static int opdi_function_layer(opd_context *ctx) {
    opdi_layer *layer = opdi_self()->innermost.layer;
    if (!ctx->fn.setup_context) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "%s is called inside of a transform (opd_vmap, opd_grad, opd_jvp, "
                        "opd_jacrev, ...), so it must have a setup_context: this member of opd_autograd_function runs "
                        "after forward and fills the context", ctx->fn.name);
    }
    for (; layer && !ctx->layer; layer = layer->outer) {
        for (int i = 0; i < ctx->ninputs && layer->kind == OPDI_LAYER_VMAP; i++) {
            const opd_value *value = &ctx->inputs[i];
            for (int32_t k = 0; k < (value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR); k++) {
                if (opdi_batched_at(value->tag == OPD_TAG_TENSORS ? value->u.tensors[k] : value->u.t, layer->level)) {
                    ctx->layer = layer;
                }
            }
        }
    }
    opdi_forward_at(opdi_self(), ctx->layer ? ctx->layer->level : 0);
    return 0;
}

/* Checks the arguments of opd_autograd_apply and runs the function in a new context.  Returns the number of outputs, or
   -1 and sets an error. */
static int opdi_autograd_apply(const opd_autograd_function *fn, opd_value *outputs, int cap, const opd_value *inputs,
                               int count) {
    opdi_thread *thread = opdi_self();
    const int32_t floor = thread->innermost.floor;
    const int16_t forward = thread->state.forward;
    if (!opd_ok()) { return -1; }
    if (!fn || !fn->name || !fn->forward || count < 0 || cap < 0 || (count && !inputs) || (cap && !outputs)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_autograd_apply: the function must have a name and a forward, and the "
                        "arrays must not be NULL");
    }
    for (int i = 0; i < count; i++) {
        if ((inputs[i].tag == OPD_TAG_TENSOR && !inputs[i].u.t) || inputs[i].tag == OPD_TAG_DEFAULT) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_autograd_apply: input %d of %s is a NULL tensor, or OPD_DEFAULT",
                            i, fn->name);
        }
    }
    opd_context *ctx = opdi_context_new(count, count + 1);
    if (!ctx) { return -1; }
    ctx->fn = *fn;
    ctx->inputs = inputs;
    for (int i = 0; i < count; i++) {
        ctx->first[i + 1] = ctx->first[i] + (inputs[i].tag == OPD_TAG_TENSORS ? inputs[i].n
                                             : inputs[i].tag == OPD_TAG_TENSOR);
    }
    if (OPDI_UNLIKELY(thread->innermost.layer != NULL) && opdi_function_layer(ctx)) {
        opdi_context_free(ctx);
        return -1;
    }
    int i = OPDI_LOAD(&thread->observed) ? opdi_function_observed(ctx, outputs, cap) : opdi_function_call(ctx, outputs,
        cap);
    thread->innermost.floor = floor;
    thread->state.forward = forward;
    return i;
}
int opd_autograd_apply(const opd_autograd_function *fn, const opd_value *inputs, int count, opd_value *outputs,
                       int cap) {
    int rc = opdi_autograd_apply(fn, outputs, cap, inputs, count);
    for (int i = 0; rc < 0 && outputs && i < cap; i++) { outputs[i] = opd_value_none(); }
    return rc;
}
int opdi_old_autograd_apply(const opd_autograd_function *fn, opd_value *outputs, int cap, const opd_value *inputs,
                           int count) {
    return opd_autograd_apply(fn, inputs, count, outputs, cap);
}

opd_tensor *opd_autograd_call(const opd_autograd_function *fn, const opd_value *inputs, int count) {
    opd_value out = opd_value_none();
    const int got = opd_autograd_apply(fn, inputs, count, &out, 1);
    if (got >= 0 && out.tag != OPD_TAG_TENSOR) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_autograd_call: the first output of %s is not a tensor", fn->name);
    }
    return got >= 0 && out.tag == OPD_TAG_TENSOR ? out.u.t : NULL;
}

//== once differentiable ===============================================================================================
//
//  Some functions are differentiable only once.  Their backward functions run with grad mode off.  If the gradients
//  need a history (create_graph), their history is a node whose backward function fails.  The edges of this node lead
//  to the function's inputs and to the gradients that the function received, so a second derivative reaches the node
//  and fails.

static int opdi_twice(opd_backward_call *bw) {
    return opd_fail(OPD_ERROR_AUTOGRAD, "trying to differentiate twice a function that was marked with "
                    "@once_differentiable (%s)", opdi_kept(bw->node)->u.s);
}
static const opdi_derivative opdi_twice_formula = {
    "Error", opdi_twice, /* card, plugin */ NULL, NULL, /* context, once, fresh, real */ false, false, false, false};

/* Sets *reads to an array in the innermost scope with the tensors that a backward function can read: the gradients and
   the saved tensors.  Returns their number, or -1 and sets an error. */
static int opdi_once_reads(opd_backward_call *bw, opd_tensor ***reads) {
    const opd_node *from = bw->node;
    opd_context *ctx = opd_bw_context(bw);
    const int nkept = ctx ? ctx->nsaved : from->nkept + from->nresults;
    int count = from->noutputs, capacity = count + nkept;
    opd_tensor **all;
    for (int i = 0; i < nkept && !ctx; i++) {
        if (opdi_kept(from)[i].tag == OPD_TAG_TENSORS) { capacity += opdi_kept(from)[i].n; }
    }
    if (!(all = *reads = opdi_scope_tensors(capacity))) { return -1; }
    for (int i = 0; i < count; i++) { all[i] = bw->grads[i]; }
    for (int i = 0; i < nkept; i++) {
        const opd_value *value = bw->fetched && bw->fetched[i].tag != OPD_TAG_NONE ? &bw->fetched[i]
            : &opdi_kept(from)[i];
        if (ctx) { all[count++] = opd_context_saved(ctx, i); }
        else if (value->tag == OPD_TAG_TENSOR) { all[count++] = value->u.t; }
        for (int32_t k = 0; !ctx && value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            all[count++] = value->u.tensors[k];
        }
    }
    return opd_ok() ? count : -1;
}

/* Makes *tensors, a reference, the result of a node whose backward function fails.  The backward function of `from`,
   which can be differentiated only once, has computed the tensor from the `count` tensors `reads`.  Does nothing if
   autograd records neither these tensors nor their tangents in `level`.  Returns 0, or -1 and sets an error. */
static int opdi_once_tie(const opd_node *from, opd_tensor **tensors, opd_tensor *const *reads, int count,
                         opdi_level *level) {
    const opd_value name = opd_value_str(from->formula->name);
    opd_node *twice = opdi_node_make(&opdi_twice_formula, 2 * count, 1, 0, tensors, 1, 0);
    bool followed = false;
    if (!twice) { return -1; }
    for (int i = 0; i < count; i++) {
        opdi_edge *edge = &opdi_edges(twice)[2 * i];
        opdi_edge_to(edge, reads[i]);
        opdi_lock(&opdi_dual_lock);
        const opdi_dual *dual = level && reads[i] ? opdi_dual_at(reads[i], level) : NULL;
        if (dual) { opdi_edge_to(edge + 1, dual->tangent); }
        opdi_unlock(&opdi_dual_lock);
        followed = followed || edge[0].vertex || edge[1].vertex;
    }
    int rc = opdi_keep_value(opdi_kept(twice), &name, true) || (followed && opdi_unalias(tensors, true)) ? -1 : 0;
    if (!rc && followed) { opdi_attach(*tensors, twice, 0); }
    opdi_node_release(twice);
    return rc;
}
static int opdi_once_deeper(const opd_node *from, opd_tensor **tensors, opd_tensor *const *reads, int count,
                            int below);
/* Calls opdi_once_tie for the tangents of `tensor` in those open levels that are outside of layer `below` and inside of
   the tensor's own layer.  Returns 0, or -1 and sets an error. */
static int opdi_once_tangents(const opd_node *from, const opd_tensor *tensor, opd_tensor *const *reads, int count,
                              int below) {
    const int above = tensor->flags & OPDI_BATCHED ? opdi_batched_of(tensor)->level : 0;
    int rc = 0;
    for (opdi_level *level = opdi_self()->innermost.level; level && !rc; level = level->outer) {
        opd_tensor *tangent, *was;
        if (level->layer <= above || level->layer > below) { continue; }
        opdi_lock(&opdi_dual_lock);
        opdi_dual *dual = opdi_dual_at(tensor, level);
        tangent = was = dual ? opdi_keep(dual->tangent) : NULL;
        opdi_unlock(&opdi_dual_lock);
        if (!tangent) { continue; }
        rc = opdi_once_deeper(from, &tangent, reads, count, level->layer);
        if (!rc) { rc = opdi_once_tie(from, &tangent, reads, count, level); }
        if (!rc && tangent != was) {
            opdi_retain(tangent);
            opdi_lock(&opdi_dual_lock);
            was = dual->tangent;
            dual->tangent = tangent;
            opdi_unlock(&opdi_dual_lock);
            opdi_drop(was);
        }
        opdi_drop(tangent);
    }
    return rc;
}
/* Calls opdi_once_tie for the tangents of *tensors, in the levels that opdi_once_tangents selects by `below`.  If
   *tensors is a vmap wrapper, then does the same for the tensor in the wrapper, at any depth, and also calls
   opdi_once_tie for this tensor itself.  Returns 0, or -1 and sets an error. */
static int opdi_once_deeper(const opd_node *from, opd_tensor **tensors, opd_tensor *const *reads, int count,
                            int below) {
    opd_tensor **outside;
    if (!*tensors || opdi_once_tangents(from, *tensors, reads, count, below)) { return *tensors ? -1 : 0; }
    if (!((*tensors)->flags & OPDI_BATCHED)) { return 0; }
    if (opdi_unalias(tensors, true) || !(outside = opdi_scope_tensors(count))) { return -1; }
    for (int i = 0; i < count; i++) {
        outside[i] = reads[i];
        while (outside[i] && (outside[i]->flags & OPDI_BATCHED) &&
               opdi_batched_of(outside[i])->level >= opdi_batched_of(*tensors)->level) {
            outside[i] = opdi_batched_of(outside[i])->value;
        }
    }
    opd_tensor *value = opdi_keep(opdi_batched_of(*tensors)->value);
    int rc = opdi_once_deeper(from, &value, outside, count, opdi_batched_of(*tensors)->level);
    if (!rc) { rc = opdi_once_tie(from, &value, outside, count, NULL); }
    opdi_release(opdi_batched_of(*tensors)->value);
    opdi_batched_of(*tensors)->value = value;
    return rc;
}

/* Calls, with grad mode off, a backward function that is differentiable only once.  If the gradients need a history,
   gives them a node whose backward function fails.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_call_once(opd_backward_call *bw) {
    opdi_thread *thread = opdi_self();
    const opd_node *from = bw->node;
    const int16_t no_grad = thread->state.no_grad;
    const opd_value name = opd_value_str(from->formula->name);
    const bool around = !no_grad && ((thread->state.include & OPD_BIT_OF(OPD_F_DYNAMIC_LAYER_FRONT)) ||
        thread->innermost.level);
    opd_tensor **reads = NULL;
    int nreads = around ? opdi_once_reads(bw, &reads) : 0;
    if (nreads < 0) { return -1; }
    thread->state.no_grad = 1;
    int rc = opdi_call_fn(bw);
    thread->state.no_grad = no_grad;
    if (rc || no_grad || !opd_ok()) { return rc; }
    for (int i = 0; around && i < from->nedges; i++) {
        if (opdi_once_deeper(from, &bw->out[i], reads, nreads, INT32_MAX)) { return -1; }
    }
    for (int i = 0; i < from->nedges; i++) {
        if (bw->out[i] && opdi_unalias(&bw->out[i], true)) { return -1; }
    }
    opd_node *node = opdi_node_make(&opdi_twice_formula, from->nedges + from->noutputs, 1, 0, bw->out, from->nedges, 0);
    if (!node) { return -1; }
    for (int i = 0; i < from->nedges; i++) {
        opdi_edge *edge = &opdi_edges(node)[i];
        *edge = opdi_edges(from)[i];
        if (edge->vertex & OPDI_LEAF) { opdi_retain(opdi_edge_leaf(edge->vertex)); }
        else if (edge->vertex) { opdi_ref_up(&opdi_edge_node(edge->vertex)->refs); }
    }
    for (int i = 0; i < from->noutputs; i++) { opdi_edge_to(&opdi_edges(node)[from->nedges + i], bw->grads[i]); }
    rc = opdi_keep_value(opdi_kept(node), &name, true);
    for (int i = 0; i < from->nedges && !rc; i++) { opdi_attach(bw->out[i], node, i); }
    opdi_node_release(node);
    return rc;
}

//== complex numbers ===================================================================================================
//
//  The gradient of a complex tensor is the derivative with respect to its conjugate, as in PyTorch, so that a step
//  against the gradient decreases the differentiated function.
//
//  A backward function that is written for real numbers computes J^T g, where J is the Jacobian of the forward function
//  and g the gradient of the result, but the gradient of the input is J^H g.  If the forward function is complex
//  differentiable (sums, products, exp), then J^H g = conj(J^T conj(g)), so opdi_call_conjugated gets the gradient from
//  the same backward function.  This also holds for derivatives of higher order.  Other forward functions (abs, conj)
//  have special backward functions and the tag OPDI_OPTAG_CONJUGATES.  For linear functions with real coefficients, the
//  backward function is correct as it is.
//
//  The gradient of a real input is the real part of the result: the engine takes it when it casts the gradient.

/* Calls a backward function that is written for real numbers with the conjugates of the gradients, and conjugates its
   results.  Returns 0, or -1 and sets an error. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_call_conjugated(opd_backward_call *bw) {
    const opd_node *node = bw->node;
    opd_tensor **const given = bw->grads, **conjugates = opdi_scope_tensors(node->noutputs);
    if (!conjugates) { return -1; }
    for (int i = 0; i < node->noutputs; i++) {
        conjugates[i] = opdi_is_complex(given[i]) ? opd_conj_physical(given[i]) : given[i];
    }
    bw->grads = conjugates;
    int rc = opd_ok() ? opdi_call_fn(bw) : -1;
    bw->grads = given;
    for (int i = 0; i < node->nedges && rc == 0; i++) {
        if (!opdi_is_complex(bw->out[i])) { continue; }
        opd_tensor *grad = opd_conj_physical(bw->out[i]);
        if (!grad) { return -1; }
        opdi_retain(grad);
        opdi_drop(bw->out[i]);
        bw->out[i] = grad;
    }
    return rc;
}
