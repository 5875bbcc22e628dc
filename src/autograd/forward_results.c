#include "autograd.h"

//== tangents of results ===============================================================================================

OPDI_COLD_BEGIN

/* Returns the index of element number `element` of argument `i` among the inputs of a forward-mode rule (jv->inputs),
   or -1 if there is no such tensor. */
static int opdi_jvp_edge(const opd_jvp_call *jv, int i, int element) {
    const opd_op *op = jv->op;
    int edge = 0;
    if (!op) { return opdi_context_edge(jv->ctx, i, element); }
    for (int j = 0; j < op->nargs; j++) {
        const opd_value *value = &jv->args[j];
        int count = op->tensor_args >> j & 1 ? 1 : op->list_args >> j & 1 && value->tag == OPD_TAG_TENSORS ? value->n
            : 0;
        if (j == i) { return element >= 0 && element < count ? edge + element : -1; }
        edge += count;
    }
    return -1;
}

opd_value opd_jvp_value(opd_jvp_call *jv, int i) {
    if (!jv->op) { return opd_context_input(jv->ctx, i); }
    return i >= 0 && i < jv->op->nargs ? jv->args[i] : opd_value_none();
}
opd_tensor *opd_jvp_tensor(opd_jvp_call *jv, int i) {
    const opd_value value = opd_jvp_value(jv, i);
    return value.tag == OPD_TAG_TENSOR ? value.u.t : NULL;
}
opd_tensor *opd_jvp_tangent_at(opd_jvp_call *jv, int i, int element) {
    const int edge = opdi_jvp_edge(jv, i, element);
    return edge < 0 ? NULL : jv->tangents[edge];
}
opd_tensor *opd_jvp_tangent(opd_jvp_call *jv, int i) { return opd_jvp_tangent_at(jv, i, 0); }
opd_tensor *opd_jvp_result(opd_jvp_call *jv, int i) { return i >= 0 && i < jv->nresults ? jv->results[i] : NULL; }
/* Sets the tangent of result i.  Retains the tangent until the rule has ended, because the rule may have made it in an
   inner scope. */
static void opdi_jvp_hold(opd_jvp_call *jv, int i, opd_tensor *tangent) {
    if (tangent) { opdi_retain(tangent); }
    if (jv->held[i]) { opdi_drop(jv->held[i]); }
    jv->held[i] = jv->out[i] = tangent;
}
/* Calls a forward-mode rule, then moves the tangents that it has set to the innermost scope.  Returns the value that
   the rule returned, or -1 and sets an error. */
static int opdi_jvp_call_rule(opd_jvp_call *jv, opd_jvp_fn rule) {
    opd_tensor *few[8] = {NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    jv->held = jv->nresults <= 8 ? few : opdi_scope_tensors(jv->nresults);
    if (!jv->held) { return -1; }
    const int rc = rule(jv);
    for (int i = 0; i < jv->nresults; i++) { (void)opdi_own(jv->held[i]); }
    jv->held = NULL;
    return rc;
}

int opd_jvp_return(opd_jvp_call *jv, int i, opd_tensor *tangent) {
    if (!opd_ok()) { return -1; }
    if (i >= jv->nresults && jv->ctx) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "Function's jvp returned an invalid number of forward gradients (expected "
                        "%d but got %d)", jv->nresults, i + 1);
    }
    if (i < 0 || i >= jv->nresults || !tangent) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "the forward derivative of %s returned %s %d",
                        jv->op ? jv->op->name : jv->ctx->name,
                        tangent ? "a tangent for a result that does not exist:" : "NULL as the tangent of result", i);
    }
    opdi_jvp_hold(jv, i, tangent);
    return 0;
}

opd_context *opd_jvp_context(const opd_jvp_call *jv) { return jv->ctx; }

/* Returns a context filled by the operator's setup_context, for the node that opdi_jvp_node makes, or NULL and sets an
   error. */
static opd_context *opdi_jvp_setup(const opd_jvp_call *jv) {
    opd_value rets[OPDI_MAX_RETURNS];
    for (int i = 0; i < jv->op->nrets; i++) {
        if (jv->op->nrets != jv->nresults) {
            (void)opd_fail(OPD_ERROR_AUTOGRAD, "Trying to use forward AD with %s that does not support it because it "
                           "has a setup_context and returns lists; give the operator a .jvp", jv->op->name);
            return NULL;
        }
        rets[i] = jv->results[i] ? opd_value_tensor(jv->results[i]) : opd_value_none();
    }
    return opdi_context_setup(jv->op, jv->card, jv->args, rets);
}

/* Makes the node that recording the call would make, in order to call its backward function.  `wanted` is the only edge
   whose gradient is needed; -1 means all edges whose input has a tangent.  Returns a reference, or NULL and sets an
   error. */
static opd_node *opdi_jvp_node(opd_jvp_call *jv, int wanted) {
    const opdi_card *card = jv->card;
    const bool formula = card && card->desc.backward;
    opd_context *ctx = formula && card->formula.context ? opdi_jvp_setup(jv) : NULL;
    opd_node *node = !formula || (card->formula.context && !ctx) ? NULL
        : opdi_node_make(&card->formula, jv->ninputs, card->nkept + opdi_context_kept_count(ctx), card->nresults,
                         jv->results, jv->nresults, 0);
    opd_value *kept = node ? opdi_kept(node) : NULL;
    int k = 0, row = 0;
    if (!formula) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "%s has no backward function (.backward) from which its tangents could be "
                       "computed", jv->op->name);
    }
    if (!node || (ctx && opdi_context_keep(ctx, node, jv->results, jv->nresults))) {
        opdi_context_free(ctx);
        if (node) { opdi_node_release(node); }
        return NULL;
    }
    for (int i = 0; ctx && i < jv->nresults; i++) {
        if (opdi_context_constant(ctx, jv->results[i])) { jv->constant[i] = true; }
    }
    if (ctx) { opdi_context_end_call(ctx); }
    for (int i = 0; i < jv->ninputs; i++) {
        if (!jv->tangents[i] || (wanted >= 0 && i != wanted)) { continue; }
        opdi_retain(jv->inputs[i]);
        opdi_edges(node)[i].vertex = (uintptr_t)jv->inputs[i] | OPDI_LEAF;
    }
    for (uint64_t mask = card->kept_args; mask; mask &= mask - 1) {
        int i = opdi_low_bit(mask);
        if (opdi_keep_value(kept++, &jv->args[i], (card->save_args >> i & 1) != 0)) {
            opdi_node_release(node);
            return NULL;
        }
    }
    for (int i = 0; i < jv->op->nrets && k < jv->nresults; i++) {
        const opd_value *ret = &jv->rets[i];      /* each element of a list counts as a result */
        if (card->save_results >> i & 1) {
            if (jv->results[k] && ret->tag != OPD_TAG_TENSORS) {
                opdi_saved_results(node)[row] = opdi_keep_result(jv->results[k]);
            }
            row++;
        }
        k += ret->tag == OPD_TAG_TENSORS ? ret->n : 1;
    }
    node->saved = OPDI_SAVED;
    return node;
}

/* Calls the backward function of `node` with the gradients `grads`, and writes the returned gradients to `out`, in the
   innermost scope.  If `plain` is true, complex gradients are not conjugated for the backward function.  Returns 0, or
   -1 and sets an error. */
static int opdi_jvp_formula(opd_node *node, opd_tensor **grads, opd_tensor **out, bool plain) {
    opd_backward_call bw;
    memset(&bw, 0, sizeof bw);
    bw.plain = plain;
    bw.node = node;
    bw.base = NULL;
    bw.grads = grads;
    bw.out = out;
    memset(out, 0, (size_t)node->nedges * sizeof *out);
    int rc = opdi_call_formula(&bw);
    for (int i = 0; i < node->nedges; i++) {
        if (out[i] && !(out[i] = opdi_own(out[i]))) { rc = -1; }
    }
    return rc;
}

/* Computes the tangents of the results from `tangents`, the tangents of the inputs, by differentiating the backward
   function of `node`, and writes them to `out`.  The backward function vjp(v) is linear in v, the gradients of the
   results.  So the derivative of the scalar product <vjp(v), t> with respect to v is jvp(t), the tangents of the
   results for the input tangents t.  Results whose `constant` is true are left out.  Returns 0, or -1 and sets an
   error. */
static int opdi_jvp_twice(opd_node *node, opd_tensor *const *tangents, opd_tensor *const *results, int nresults,
                          const bool *constant, opd_tensor **out) {
    opdi_thread *thread = opdi_self();
    struct opdi_packer *packer = thread->innermost.packer;
    const int16_t no_grad = thread->state.no_grad;
    const int nin = node->nedges;
    opd_tensor **values = opdi_scope_tensors(nresults), **vs = opdi_scope_tensors(nresults);
    opd_tensor **got = opdi_scope_tensors(nresults), **gave = opdi_scope_tensors(nin);
    opd_tensor **gs = opdi_scope_tensors(nin), **ts = opdi_scope_tensors(nin);
    opd_backward_options options;
    bool records = false;
    int i, m = 0, k = 0, rc = 0;
    if (!values || !gave || !got || !vs || !gs || !ts) { return -1; }
    for (i = 0; i < nin && !records; i++) { records = opdi_tracked(tangents[i]); }
    for (i = 0; i < node->nkept + node->nresults && !records; i++) {
        const opd_value *kept = &opdi_kept(node)[i];
        if (kept->tag == OPD_TAG_TENSOR) { records = opdi_tracked(kept->u.t); }
        for (int32_t part = 0; kept->tag == OPD_TAG_TENSORS && kept->u.tensors && part < kept->n && !records; part++) {
            records = opdi_tracked(kept->u.tensors[part]);
        }
    }
    thread->state.no_grad = 0;
    thread->innermost.packer = NULL;              /* this graph is used only here, so its tensors are not packed */
    for (i = 0; i < nresults && rc == 0; i++) {
        if (!results[i] || !opdi_differentiable(results[i]) || (constant && constant[i])) { continue; }
        values[i] = vs[k++] = opd_ones(opd_ints_of(results[i]->dims, results[i]->ndim),
                                       (opd_scalar_type)results[i]->dtype);
        if (values[i] &&
            ((results[i]->flags & OPDI_BATCHED) || opdi_place_of(values[i]) != opdi_place_of(results[i]))) {
            values[i] = vs[k - 1] = opd_ones_like(results[i]); /* batched as the result, or on the result's device */
        }
        if (values[i]) { values[i]->flags |= OPDI_REQUIRES_GRAD; } else { rc = -1; }
    }
    if (rc == 0 && k) { rc = opdi_jvp_formula(node, values, gave, false); }
    for (i = 0; i < nin && rc == 0; i++) {
        opd_tensor *grad = gave[i] && tangents[i] ? opdi_validate(node, i, gave[i]) : NULL;
        if (grad && (grad->flags & OPDI_REQUIRES_GRAD)) {
            gs[m] = grad;
            ts[m++] = tangents[i];
            continue;
        }
        if (!opd_ok()) { rc = -1; }
        /* Without a history, `grad` does not depend on v, and is correct only if it is zero.  If it is not zero, the
           backward function has computed it without operators. */
        if (grad && grad->backend != OPD_META && opdi_any_element(grad, false)) {
            rc = opd_fail(OPD_ERROR_AUTOGRAD, "Trying to use forward AD with %s that does not support it because its "
                          "backward function cannot be differentiated itself; give the operator a .jvp",
                          node->formula->name);
        }
    }
    if (rc == 0 && m) {
        memset(&options, 0, sizeof options);
        options.grad_outputs = ts;
        options.allow_unused = true;
        options.create_graph = records && !no_grad;
        if (options.create_graph) { thread->innermost.packer = packer; }
        rc = opdi_autograd_grad(gs, m, vs, k, &options, false, opdi_serial_of(NULL), got);
    }
    thread->state.no_grad = no_grad;
    thread->innermost.packer = packer;
    for (i = k = 0; i < nresults && rc == 0; i++) {
        if (!values[i]) { continue; }
        out[i] = got[k++];
        if (!out[i] && (m == 0 || nresults == 1)) { rc = (out[i] = opd_zeros_like(results[i])) ? 0 : -1; }
    }
    return rc;
}

/* Returns true if a built-in forward-mode rule (opd_jvp_pointwise or similar) runs for an operator.  If it runs for a
   custom function, sets an error and returns false. */
static bool opdi_jvp_of_operator(const opd_jvp_call *jv) {
    if (jv->op) { return true; }
    (void)opd_fail(OPD_ERROR_AUTOGRAD, "opd_jvp_pointwise, _linear and _backward are for operators, not for %s",
                   jv->ctx->name);
    return false;
}
static int opdi_jvp_by_backward(opd_jvp_call *jv) {
    opd_node *node = opd_ok() && opdi_jvp_of_operator(jv) ? opdi_jvp_node(jv, -1) : NULL;
    int rc = node ? opdi_jvp_twice(node, jv->tangents, jv->results, jv->nresults, jv->constant, jv->out) : -1;
    for (int i = 0; i < jv->nresults && rc == 0; i++) {
        if (jv->out[i] != jv->held[i]) { opdi_jvp_hold(jv, i, jv->out[i]); }
    }
    if (node) { opdi_node_release(node); }
    return rc;
}

/* Returns `tensor`, cast to the dtype of `result` and expanded to its sizes, so that it can be the tangent of the
   result.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_tangent_expand(opd_tensor *tensor, const opd_tensor *result) {
    if (tensor && tensor->dtype != result->dtype) { tensor = opd_to_dtype(tensor, (opd_scalar_type)result->dtype); }
    return !tensor || opdi_has_sizes(tensor, result->dims, result->ndim) ? tensor
        : opd_expand(tensor, opd_ints_of(result->dims, result->ndim));
}

/* Returns true if an input or a result of the call is complex. */
static bool opdi_jvp_complex(const opd_jvp_call *jv) {
    for (int edge = 0; edge < jv->ninputs; edge++) { if (opdi_is_complex(jv->inputs[edge])) { return true; } }
    for (int i = 0; i < jv->nresults; i++) { if (opdi_is_complex(jv->results[i])) { return true; } }
    return false;
}
/* Computes the tangent of the result of a pointwise operator.  For each input with a tangent, calls the backward
   function with this tangent instead of the result's gradient, and takes the gradient of this input.  The tangent of
   the result is the sum of these gradients.  Returns 0, or -1 and sets an error. */
static int opdi_jvp_by_pointwise(opd_jvp_call *jv) {
    opd_tensor *result = jv->results[0], *sum = NULL, *grad, **gave = opdi_scope_tensors(jv->ninputs);
    int rc = gave && opdi_jvp_of_operator(jv) ? 0 : -1;
    if (rc) { return rc; }
    if (jv->nresults != 1 || (!jv->card->formula.real && opdi_jvp_complex(jv))) { return opdi_jvp_by_backward(jv); }
    for (int edge = 0; edge < jv->ninputs && rc == 0; edge++) {
        if (!jv->tangents[edge]) { continue; }
        if (!opdi_expands(jv->inputs[edge]->dims, jv->inputs[edge]->ndim, result->dims, result->ndim)) {
            return opdi_jvp_by_backward(jv);
        }
        grad = opdi_tangent_expand(jv->tangents[edge], result);
        opd_node *node = grad ? opdi_jvp_node(jv, edge) : NULL;
        rc = node ? opdi_jvp_formula(node, &grad, gave, true) : -1;
        if (node) { opdi_node_release(node); }
        if (rc || !gave[edge]) { continue; }
        /* the input was broadcast and the backward function has summed its gradient, so only the general rule works */
        if (!opdi_has_sizes(gave[edge], result->dims, result->ndim)) { return opdi_jvp_by_backward(jv); }
        gave[edge] = opdi_tangent_expand(gave[edge], result);
        sum = sum && gave[edge] ? opd_add(sum, gave[edge]) : gave[edge];
        rc = sum ? 0 : -1;
    }
    if (rc == 0 && !sum && !(sum = opd_zeros_like(result))) { rc = -1; }
    return rc ? rc : opd_jvp_return(jv, 0, sum);
}

/* Returns the tangent of input number `edge`, or zeros with the sizes of the input if it has none.  If the dtype of the
   input has no derivatives (for example, an index), returns the input itself, unless the input is in a list whose
   elements are not optional (`listed`). */
static opd_tensor *opdi_linear_arg(const opd_jvp_call *jv, int edge, bool listed) {
    opd_tensor *tensor = jv->inputs[edge];
    return jv->tangents[edge] ? jv->tangents[edge] : opdi_differentiable(tensor) ||
        listed ? opd_zeros_like(tensor) : tensor;
}
/* Computes the tangents of a linear operator's results by calling the operator with the tangents of its inputs.
   Returns 0, or -1 and sets an error. */
static int opdi_jvp_by_linear(opd_jvp_call *jv) {
    const opd_op *op = jv->op;
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    opd_tensor **list;
    int edge = 0, ret = 0;
    if (!opd_ok() || !opdi_jvp_of_operator(jv)) { return -1; }
    for (int i = 0; i < op->nargs; i++) {
        args[i] = jv->args[i];
        if (op->tensor_args >> i & 1) {
            if (args[i].tag == OPD_TAG_TENSOR && !(args[i].u.t = opdi_linear_arg(jv, edge, false))) { return -1; }
            edge++;
        } else if ((op->list_args >> i & 1) && args[i].tag == OPD_TAG_TENSORS) {
            const opdi_type *type = opdi_strip_optional(op->schema->args[i].type);
            const bool listed = type->elems[0]->kind != OPDI_TYPE_OPTIONAL;
            if (!(list = opdi_scope_tensors(args[i].n))) { return -1; }
            for (int32_t k = 0; k < args[i].n; k++, edge++) {
                if (jv->inputs[edge] && !(list[k] = opdi_linear_arg(jv, edge, listed))) { return -1; }
            }
            args[i].u.tensors = list;
        }
    }
    if (opd_call_all((opd_op *)(uintptr_t)op, rets, args, op->nargs)) { return -1; }
    for (int i = 0; i < op->nrets; i++) {
        for (int32_t k = 0; k < (rets[i].tag == OPD_TAG_TENSORS ? rets[i].n : 1); k++, ret++) {
            opdi_jvp_hold(jv, ret, rets[i].tag == OPD_TAG_TENSORS ? rets[i].u.tensors[k]
                                   : rets[i].tag == OPD_TAG_TENSOR ? rets[i].u.t : NULL);
        }
    }
    return 0;
}

/* Prepares the call of a forward-mode rule: collects the tensor arguments of `args` and their tangents in *jv.  Returns
   0, or -1 and sets an error. */
static int opdi_jvp_begin(opd_jvp_call *jv, const opdi_card *card, opd_op *op, const opd_value *args) {
    int edge = 0;
    memset(jv, 0, sizeof *jv);
    jv->card = card;
    jv->op = op;
    jv->args = args;
    jv->ninputs = opdi_count_edges(op, args);
    jv->inputs = opdi_scope_tensors(jv->ninputs);
    jv->tangents = opdi_scope_tensors(jv->ninputs);
    if (!jv->inputs || !jv->tangents) { return -1; }
    for (int i = 0; i < op->nargs; i++) {
        const opd_value *value = &args[i];
        const bool list = (op->list_args >> i & 1) && value->tag == OPD_TAG_TENSORS;
        if (!list && !(op->tensor_args >> i & 1)) { continue; }
        for (int32_t k = 0; k < (list ? value->n : 1); k++, edge++) {
            jv->inputs[edge] = list ? value->u.tensors[k] : value->tag == OPD_TAG_TENSOR ? value->u.t : NULL;
            jv->tangents[edge] = opdi_tangent_of(jv->inputs[edge]);
            if (!opd_ok()) { return -1; }
            if (jv->tangents[edge] && card && (card->constant_args >> i & 1)) {
                return opd_fail(OPD_ERROR_AUTOGRAD, "The function '%s' is not differentiable with respect to argument "
                                "'%s'. This input cannot have a tangent.", op->schema->name, op->schema->args[i].name);
            }
        }
    }
    return 0;
}

/* Returns the forward-mode rule of an operator: a rule that was registered separately, else the rule in the operator's
   descriptor, else a rule that uses the backward function.  Returns NULL if there is none. */
static opd_jvp_fn opdi_jvp_rule(const opd_jvp_call *jv) {
    const opdi_table *table = OPDI_ACQUIRE(&jv->op->table);
    const opd_op_desc *desc = jv->card ? &jv->card->desc : NULL;
    if (table && table->jvp) { return (opd_jvp_fn)(void (*)(void))table->jvp; }
    return !desc || (!desc->jvp && !desc->backward) ? NULL : desc->jvp ? desc->jvp
        : desc->vmap == opd_batch_pointwise ? opd_jvp_pointwise : opd_jvp_backward;
}
static int opdi_jvp_run(opd_jvp_call *jv, opd_jvp_fn rule) {
    const int rc = opdi_jvp_call_rule(jv, rule);
    if (rc && opd_ok()) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "the forward derivative of %s failed without setting an error (opd_fail)",
                       jv->op->name);
    }
    return opd_ok() ? 0 : opdi_fail_more(" [in the forward derivative of %s]", jv->op->name);
}

/* Returns true if `result` shares the memory of an input.  If so, also puts the result into the family of that input,
   so that it has the input's tangent, or, if `apart` is true (the operator has no derivative), into a new family.  Sets
   *rc to -1 if memory runs out. */
static bool opdi_jvp_is_view(opd_tensor *const *inputs, int count, opd_tensor *result, bool apart, int *rc) {
    for (int edge = 0; edge < count; edge++) {
        const opd_tensor *first = inputs[edge];
        if (!first || first->storage != result->storage) { continue; }
        if (first != result && (apart ? opdi_family_new(result) : opdi_family_pass(result, first))) { *rc = -1; }
        return true;
    }
    return false;
}

/* Gives the results of a call their tangents, after the call has run.  `apart` is true if the operator has no
   derivative.  Returns 0, or -1 and sets an error. */
static int opdi_jvp_end(opd_jvp_call *jv, opd_call *call, bool apart) {
    opd_jvp_fn rule;
    int rc = 0;
    bool any = false;
    jv->rets = call->rets;
    jv->nresults = (int)opdi_flat_results(call, NULL, 0);
    jv->results = opdi_scope_tensors(jv->nresults);
    jv->out = opdi_scope_tensors(jv->nresults);
    jv->constant = (bool *)opdi_scope_alloc((size_t)jv->nresults + 1);
    if (!jv->results || !jv->out || !jv->constant) { return -1; }
    (void)opdi_flat_results(call, jv->results, jv->nresults);
    for (int i = 0; i < jv->nresults && rc == 0; i++) {
        opd_tensor *result = jv->results[i];
        jv->constant[i] = jv->card && opdi_constant_result(jv->card, jv->rets, i);
        if (!result || !opdi_differentiable(result) || opdi_jvp_is_view(jv->inputs, jv->ninputs, result, apart, &rc)) {
            continue;
        }
        any = any || !jv->constant[i];
    }
    if (rc || !any || apart) { return rc; }
    if (!(rule = opdi_jvp_rule(jv))) {
        return OPDI_LOAD(&opdi_fallback_mode) == OPD_AUTOGRAD_FALLBACK_ERROR ? opdi_forward_missing(call) : 0;
    }
    rc = opdi_jvp_run(jv, rule);
    for (int i = 0; i < jv->nresults && rc == 0; i++) {
        opd_tensor *result = jv->results[i];
        if (!jv->out[i] || !result || !opdi_differentiable(result) || jv->constant[i]) { continue; }
        if (!opdi_jvp_is_view(jv->inputs, jv->ninputs, result, false, &rc)) {
            rc = opdi_tangent_set(result, jv->out[i], false);
        }
    }
    return rc;
}

/* Returns the innermost open level in which an argument of the call has a tangent, or NULL. */
static opdi_level *opdi_call_level(const opd_call *call) {
    return call->th->state.forward == OPDI_FORWARD_OPEN ? opdi_level_of(call->args, call->op->nargs) : NULL;
}
/* Returns true if the call is to become a node of the graph that is being traced.  A call that autograd records inside
   a vmap layer does not become a node. */
static bool opdi_tracing(const opd_call *call) {
    return call->th->innermost.tracer && (call->th->state.include & call->th->state.allow & OPD_BIT_OF(OPD_F_TRACER)) &&
        !(call->keys.functionality & OPD_BIT_OF(OPD_F_DYNAMIC_LAYER_BACK));
}
/* Runs the call itself, after all levels that compute its tangents were entered.  Records and traces it, if necessary.
   During the call, the levels of `first` are open, as before any level was entered.  Returns 0, or -1 and sets an
   error. */
static int opdi_forward_record_call(opd_call *call, const opdi_card *card, opd_tensor *self,
                                    const opdi_level_frame *first) {
    opdi_thread *thread = call->th;
    opdi_level *outer = thread->innermost.level;
    const bool formula = self || (card && card->desc.backward);
    struct opd_graph_node *node = NULL;
    int64_t waiting = 0;
    thread->innermost.level = first->level;
    thread->state.forward = first->state.forward;
    if (opdi_tracing(call) && !(node = thread->innermost.tracer->begin(call, &waiting))) {
        thread->innermost.level = outer;
        return -1;
    }
    thread->innermost.tangents = first->tangents;
    /* operators that the kernel calls are not recorded, and must not compute tangents either */
    if (formula && !opdi_call_flags(call)) { thread->state.allow &= ~OPDI_AUTOGRAD_BITS; }
    int rc = self ? opdi_recording_inplace_kernel(call, card, self)
        : formula ? opdi_recording_kernel(call, card) : opdi_recording_fallback(call);
    if (node) { rc = thread->innermost.tracer->done(call, node, waiting, rc); }
    thread->innermost.tangents = true;
    thread->innermost.level = outer;
    return rc;
}

/* Runs a call and computes its tangents in the level that was entered (innermost.dual).  The levels outside of this
   level compute their tangents first, because the operators that forward-mode rules call belong to those levels.
   Returns 0, or -1 and sets an error. */
static int opdi_forward_call(opd_call *call, const opdi_card *card, const opdi_level_frame *first) {
    opdi_thread *thread = call->th;
    const opdi_state state = thread->state;
    opdi_level_frame within;
    opdi_level *level;
    opd_jvp_call jv;
    int rc;
    if (opdi_jvp_begin(&jv, card, call->op, call->args)) { return -1; }
    if ((level = opdi_call_level(call)) != NULL) {
        opdi_level_enter(thread, &within, level);
        rc = opdi_forward_call(call, card, first);
        opdi_level_leave(thread, &within);
    } else { rc = opdi_forward_record_call(call, card, NULL, first); }
    thread->state = state;
    return rc ? rc : opdi_jvp_end(&jv, call, card && card->desc.backward == opd_not_differentiable);
}
/* Runs a call at Autograd in which an argument has a tangent.  `card` is NULL if the operator was registered without a
   backward function.  Returns 0, or -1 and sets an error. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_forward_kernel(opd_call *call, const opdi_card *card) {
    opdi_thread *thread = call->th;
    opdi_level_frame within;
    if (!card) { card = OPDI_ACQUIRE(&call->op->card); }
    if (call->op->written_args & ~(card ? card->constant_args : 0)) { return opdi_forward_missing(call); }
    opdi_level_enter(thread, &within, opdi_level_of(call->args, call->op->nargs));
    int rc = opdi_forward_call(call, card, &within);
    opdi_level_leave(thread, &within);
    return rc;
}

/* Replaces the arguments in `args` that lie in the memory of self by copies, before self is written.  Returns 0, or -1
   and sets an error. */
static int opdi_forward_originals(const opd_op *op, const opd_tensor *self, opd_value *args) {
    for (uint64_t mask = op->tensor_args | op->list_args; mask; mask &= mask - 1) {
        opd_value *value = &args[opdi_low_bit(mask)];
        if (value->tag == OPD_TAG_TENSOR && value->u.t->storage == self->storage) {
            if (!(value->u.t = opd_clone(value->u.t))) { return -1; }
        }
        for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (!value->u.tensors[k] || value->u.tensors[k]->storage != self->storage) { continue; }
            return opd_fail(OPD_ERROR_AUTOGRAD, "Trying to use forward AD with %s that does not support it because a "
                            "list of its arguments contains a tensor that it writes", op->name);
        }
    }
    return 0;
}

/* Runs a call that writes self, and gives self the tangent that the forward-mode rule of the functional form computes.
   Returns 0, or -1 and sets an error. */
static int opdi_forward_write(opd_call *call, const opdi_card *card, opd_tensor *self, const opdi_level_frame *first) {
    opdi_thread *thread = call->th;
    const opdi_state state = thread->state;
    const opdi_card *rule = card->base ? card->base : card;
    opd_value args[OPD_MAX_ARGS], ret = opd_value_tensor(self);
    opd_tensor *results[1], *out[1] = {NULL};
    opdi_level_frame within;
    opdi_level *level;
    opd_jvp_call jv;
    int rc;
    if (card->base) { (void)opdi_derived_args(call, card, self, args); }
    else { memcpy(args, call->args, (size_t)call->op->nargs * sizeof *args); }
    if (opdi_jvp_begin(&jv, rule, rule->op, args) || opdi_forward_originals(rule->op, self, args)) { return -1; }
    if ((level = opdi_call_level(call)) != NULL) {
        opdi_level_enter(thread, &within, level);
        rc = opdi_forward_write(call, card, self, first);
        opdi_level_leave(thread, &within);
    } else { rc = opdi_forward_record_call(call, card, self, first); }
    thread->state = state;
    if (rc) { return -1; }
    /* squeeze_ and similar operators change only the sizes and strides, so self keeps its tangent */
    if (!opdi_differentiable(self) || (rule->desc.tags & OPD_OPTAG_INPLACE_VIEW)) { return 0; }
    results[0] = self;
    jv.rets = &ret;
    jv.results = results;
    jv.out = out;
    jv.nresults = 1;
    if (rule->desc.backward != opd_not_differentiable) {
        const opd_jvp_fn jvp = opdi_jvp_rule(&jv);
        if (!jvp) { return opdi_forward_missing(call); }
        if (opdi_jvp_run(&jv, jvp)) { return -1; }
    }
    if (!out[0] && opdi_has_tangent(self) && !(out[0] = opd_zeros_like(self))) { return -1; }
    return out[0] ? opdi_tangent_set(self, out[0], false) : 0;
}
OPDI_NOINLINE OPDI_INTERNAL int opdi_forward_inplace_kernel(opd_call *call, const opdi_card *card, opd_tensor *self) {
    opdi_thread *thread = call->th;
    opdi_level_frame within;
    for (uint64_t mask = call->op->written_args & ~(uint64_t)1; mask; mask &= mask - 1) {
        if (call->args[opdi_low_bit(mask)].tag == OPD_TAG_NONE) { continue; }
        return opdi_forward_missing(call);
    }
    if (!self) { return opdi_forward_missing(call); }
    /* must run before a level is entered */
    if (OPDI_UNLIKELY(thread->innermost.tape != 0) && opdi_is_captured(thread, self)) { return -1; }
    opdi_level_enter(thread, &within, opdi_level_of(call->args, call->op->nargs));
    int rc = opdi_forward_write(call, card, self, &within);
    opdi_level_leave(thread, &within);
    return rc;
}

/* Gives `copy`, a copy of tensor without history, copies of tensor's tangents in all levels.  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_forward_copy(opd_tensor *copy, opd_tensor *tensor) {
    opdi_thread *thread = opdi_self();
    const opd_value value = opd_value_tensor(tensor);
    opdi_level *level = thread->state.forward == OPDI_FORWARD_OPEN ? opdi_level_of(&value, 1) : NULL;
    opdi_level_frame within;
    if (!level) { return 0; }
    opdi_level_enter(thread, &within, level);
    thread->state.allow |= OPD_BIT_OF(OPD_F_TRACER);  /* the copy of the tangent is traced, too */
    int rc = opdi_forward_copy(copy, tensor);
    opd_tensor *tangent = rc == 0 ? opdi_tangent_of(tensor) : NULL;
    tangent = tangent ? opd_clone(tangent) : NULL;
    rc = tangent ? opdi_tangent_set(copy, tangent, false) : -1;
    opdi_level_leave(thread, &within);
    return rc;
}

/* Checks the tangent `given` that a custom function's jvp returned for an input that the function has written.  It must
   be `tangent`, the tangent of the input, changed in place, so that its version is not `version`.  Returns 0, or -1 and
   sets an error. */
static int opdi_check_dirty_tangent(opd_tensor *tangent, const opd_tensor *given, uint32_t version) {
    if (OPDI_LOAD(&tangent->storage->version) == version) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "An inplace custom Function is not modifying the forward mode gradients "
                        "inplace. If the forward is modifying an input inplace, then the jvp function must modify the "
                        "corresponding gradient inplace.");
    }
    return given == tangent ? 0
        : opd_fail(OPD_ERROR_AUTOGRAD, "An inplace custom Function is not returning the forward mode gradients as-is. "
                   "If the forward is modifying an input inplace, then the jvp function must modify the gradient "
                   "inplace and return it as-is.");
}
/* Checks the tangent `given` that a custom function's jvp returned for `result`.  This output is a view of an input
   that has a tangent, so `given` must be the same view of the input's tangent.  Returns 0, or -1 and sets an error. */
static int opdi_check_view_tangent(const opd_tensor *result, const opd_tensor *given) {
    const opd_tensor *part = opdi_tangent_of(result);
    if (!part) { return -1; }
    if (!opdi_same_memory(part, given)) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "A custom Function's forward is returning a view (or an input as-is) but "
                        "the jvp is not returning a view.");
    }
    return part->data == given->data && opdi_has_sizes(given, part->dims, part->ndim) &&
        !((part->functionality ^ given->functionality) & OPDI_LAZY_KEYS) &&
        memcmp(given->dims + given->ndim, part->dims + part->ndim, (size_t)part->ndim * sizeof *part->dims) == 0 ? 0
        : opd_fail(OPD_ERROR_AUTOGRAD, "A custom Function is returning a view but the jvp is not returning a view of "
                   "the given grad input.");
}
/* Gives output i of a custom function its tangent. `versions` are the versions of the inputs' tangents before the jvp.
   Returns 0, or -1 and sets an error. */
static int opdi_forward_output(const opd_context *ctx, opd_jvp_call *jv, int i, const uint32_t *versions) {
    opd_tensor *result = jv->results[i];
    int edge, rc = 0;
    if (!result || !opdi_differentiable(result) || opdi_tensor_array_has(&ctx->constant, result)) { return 0; }
    if (!jv->out[i]) {
        int count = 0;
        for (int k = 0; k < jv->nresults; k++) { count += jv->out[k] != NULL; }
        return opd_fail(OPD_ERROR_AUTOGRAD, "Function's jvp returned an invalid number of forward gradients (expected "
                        "%d but got %d: none for output %d)", jv->nresults, count, i);
    }
    if (opdi_tensor_array_has(&ctx->dirty, result)) {
        for (edge = 0; edge < jv->ninputs && jv->inputs[edge] != result; edge++) { }
        if (edge == jv->ninputs) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "Only input Tensors should be given to opd_context_mark_dirty. If a "
                            "Tensor is not an input, there is no need to pass it to opd_context_mark_dirty.");
        }
        if (jv->tangents[edge]) { return opdi_check_dirty_tangent(jv->tangents[edge], jv->out[i], versions[edge]); }
    } else if (opdi_jvp_is_view(jv->inputs, jv->ninputs, result, false, &rc) && rc == 0 && opdi_has_tangent(result)) {
        return opdi_check_view_tangent(result, jv->out[i]);
    }
    return rc || opdi_tangent_set(result, jv->out[i], false) ? -1 : 0;
}

/* Runs the jvp of a custom function and gives its outputs their tangents.  Returns 0, or -1 and sets an error. */
static int opdi_forward_outputs(opd_context *ctx) {
    opd_jvp_call jv;
    int32_t input = 0;
    memset(&jv, 0, sizeof jv);
    jv.ctx = ctx;
    jv.ninputs = ctx->first[ctx->ninputs];
    jv.nresults = ctx->noutputs;
    jv.inputs = opdi_scope_tensors(jv.ninputs);
    jv.tangents = opdi_scope_tensors(jv.ninputs);
    jv.results = opdi_scope_tensors(jv.nresults);
    jv.out = opdi_scope_tensors(jv.nresults);
    uint32_t *versions = (uint32_t *)opdi_scope_alloc((size_t)OPDI_MAX(jv.ninputs, 1) * sizeof *versions);
    if (!jv.inputs || !jv.tangents || !jv.results || !jv.out || !versions) { return -1; }
    for (int32_t i = 0; i < ctx->ninputs; i++) {
        const opd_value *value = &ctx->inputs[i];
        for (int32_t k = 0; k < ctx->first[i + 1] - ctx->first[i]; k++, input++) {
            jv.inputs[input] = value->tag == OPD_TAG_TENSORS ? value->u.tensors[k] : value->u.t;
            jv.tangents[input] = opdi_tangent_of(jv.inputs[input]);
            versions[input] = jv.tangents[input] ? OPDI_LOAD(&jv.tangents[input]->storage->version) : 0;
        }
    }
    for (int32_t i = 0; i < ctx->noutputs; i++) { jv.results[i] = opdi_tensor_in(&ctx->outputs[i]); }
    if (!opd_ok()) { return -1; }
    ctx->in_jvp = true;
    int rc = opdi_jvp_call_rule(&jv, ctx->fn.jvp);
    ctx->in_jvp = false;
    if (rc && opd_ok()) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "the jvp of %s failed without setting an error (opd_fail)", ctx->name);
    }
    if (!opd_ok()) { return opdi_fail_more(" [in the jvp of %s]", ctx->name); }
    for (int32_t i = 0; i < ctx->noutputs && rc == 0; i++) { rc = opdi_forward_output(ctx, &jv, i, versions); }
    if (rc) { return opdi_fail_more(" [in the jvp of %s]", ctx->name); }
    return rc;
}
OPDI_INTERNAL int opdi_forward_function(opd_context *ctx) {
    opdi_thread *thread = opdi_self();
    opdi_level *level = thread->state.forward == OPDI_FORWARD_OPEN ? opdi_level_of(ctx->inputs, ctx->ninputs) : NULL;
    opdi_level_frame within;
    if (!level) { return 0; }
    opd_scope scope = opd_scope_open();
    opdi_level_enter(thread, &within, level);
    int rc = opdi_forward_function(ctx);
    if (rc == 0) { rc = opdi_forward_outputs(ctx); }
    opdi_level_leave(thread, &within);
    opd_scope_close(&scope);
    return rc;
}

/* Computes tangents for the results of opd_autograd_record, from the backward function of `formula`.  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_forward_record(const opdi_derivative *formula, opd_tensor *const *inputs, int ninputs,
                                      opd_tensor *const *saved, int nsaved, const opd_value *values, int nvalues,
                                      opd_tensor *const *results, int nresults) {
    opdi_thread *thread = opdi_self();
    const opd_value list = opd_value_tensors(inputs, ninputs);
    opdi_level *level = thread->state.forward == OPDI_FORWARD_OPEN ? opdi_level_of(&list, 1) : NULL;
    opdi_level_frame within;
    const opdi_state state = thread->state;
    bool any = false;
    if (!level) { return 0; }
    opdi_level_enter(thread, &within, level);
    thread->state.allow |= OPDI_AUTOGRAD_BITS;
    opd_tensor **tangents = opdi_scope_tensors(ninputs);
    opd_tensor **out = opdi_scope_tensors(nresults);
    opd_node *node = tangents && out && opdi_forward_record(formula, inputs, ninputs, saved, nsaved, values, nvalues,
                                                            results, nresults) == 0
        ? opdi_node_make(formula, ninputs, nsaved + nvalues, 0, results, nresults, 0) : NULL;
    int rc = node ? 0 : -1;
    for (int i = 0; i < ninputs && rc == 0; i++) {
        if (!(tangents[i] = opdi_tangent_of(inputs[i]))) {
            rc = opd_ok() ? 0 : -1;
            continue;
        }
        opdi_retain(inputs[i]);
        opdi_edges(node)[i].vertex = (uintptr_t)inputs[i] | OPDI_LEAF;
    }
    for (int i = 0; i < nsaved && rc == 0; i++) {
        opdi_kept(node)[i] = saved[i] ? opdi_keep_result(saved[i]) : opd_value_none();
    }
    for (int i = 0; i < nvalues && rc == 0; i++) {
        rc = opdi_keep_value(&opdi_kept(node)[nsaved + i], &values[i], true);
    }
    for (int i = 0; i < nresults && rc == 0; i++) {
        opd_tensor *result = results[i];
        if (result && opdi_differentiable(result) && !opdi_jvp_is_view(inputs, ninputs, result, false, &rc)) {
            any = true;
        }
    }
    if (rc == 0 && any && thread->innermost.tracer && !(state.allow & OPD_BIT_OF(OPD_F_TRACER))) {
        rc = opd_fail(OPD_ERROR_AUTOGRAD, "%s is recorded by a kernel at Autograd, so its tangents cannot become part "
                      "of the graph that is being recorded; give the operator a .backward or a .jvp instead",
                      formula->name);
    }
    if (rc == 0 && any) { rc = opdi_jvp_twice(node, tangents, results, nresults, NULL, out); }
    for (int i = 0; i < nresults && rc == 0; i++) {
        if (out[i] && !opdi_jvp_is_view(inputs, ninputs, results[i], false, &rc)) {
            rc = opdi_tangent_set(results[i], out[i], false);
        }
    }
    if (node) { opdi_node_release(node); }
    opdi_level_leave(thread, &within);
    return rc;
}

/* Lets calls reach forward mode. */
OPDI_INTERNAL void opdi_forward_reach(void) {
    static const opdi_forward_calls calls = {
        opdi_forward_kernel, opdi_forward_inplace_kernel, opdi_forward_copy, opdi_forward_record, opdi_jvp_by_pointwise,
        opdi_jvp_by_linear, opdi_jvp_by_backward};
    OPDI_PUBLISH(&opdi_on_forward, &calls);
}

OPDI_COLD_END
