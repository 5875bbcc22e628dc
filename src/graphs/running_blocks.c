#include "graphs.h"

//== steps of graphs with blocks or cells ==============================================================================

OPDI_COLD_BEGIN
static int opdi_graph_unpack(const opdi_gstep *step, const int32_t *slots, opd_value *vals) {
    const opd_value list = opdi_value_plain(&vals[slots[0]]);
    if (!opdi_is_list(&list) || list.n != step->nout) {
        return opd_fail(OPD_ERROR_ARGUMENT, "prim::ListUnpack: Expected %d elements in a list but found %d",
                        step->nout, opdi_is_list(&list) ? list.n : 0);
    }
    for (int32_t i = 0; i < step->nout; i++) {
        opd_value element = list.tag == OPD_TAG_TENSORS ? opd_value_tensor(list.u.tensors[i])
            : opdi_list_element(&list, i);
        if (opdi_value_hold(&element)) { return -1; }
        vals[slots[1 + i]] = element;
    }
    return 0;
}

/* Replaces *value, a result of an operator, by a cell if it is a list, a text or a complex number.  Returns 0, or -1
   and sets an error. */
static int opdi_graph_box(opd_value *value) {
    opd_value held = *value;
    if (held.tag != OPD_TAG_STR && held.tag != OPD_TAG_COMPLEX && !opdi_is_list(&held)) { return 0; }
    const int rc = opdi_value_hold(&held);
    opdi_ret_block_free(value);
    *value = rc ? opd_value_none() : held;
    return rc;
}
OPDI_INTERNAL OPDI_TLS opdi_graph_watch opdi_graph_watched;      /* this thread's callback; NULL: none */

/* Runs the step of a node of kind OPDI_GNODE_FUNCTION, and stores references of the results in their slots.  Returns 0,
   or -1 and sets an error. */
static int opdi_graph_function_step(const opdi_graph_plan *plan, const opdi_gstep *step, const int32_t *slots,
                                    opd_value *vals) {
    opd_value few[16], *args = few;
    opd_scope scope = opd_scope_open();
    if (step->nin > 16) { args = (opd_value *)opdi_scope_alloc((size_t)step->nin * sizeof *args); }
    for (int i = 0; i < step->nin && args; i++) { args[i] = opdi_value_plain(&vals[slots[i]]); }
    int rc = args ? step->node->function->run(step->node, args, &vals[slots[step->nin]]) : -1;
    if (rc == 0 && opdi_graph_watched && step->nout == 1) {
        opdi_graph_watched(step->node->function->name, args, step->nin, &vals[slots[step->nin]]);
    }
    for (int i = 0; i < step->nout && rc == 0 && plan->cells; i++) {
        rc = opdi_graph_box(&vals[slots[step->nin + i]]);
    }
    opd_scope_close(&scope);
    return rc;
}
/* Returns a value in the form that operators take (see opdi_value_plain).  If the value is a list of lists, the inner
   lists are in this form, too; the innermost scope owns the memory of the outer list. */
static opd_value opdi_value_flat(const opd_value *value, int depth) {
    opd_value plain = opdi_value_plain(value);
    if (plain.tag != OPD_TAG_LIST || depth > OPDI_MAX_CELL_DEPTH) { return plain; }
    opd_value *const list = (opd_value *)opdi_scope_alloc(((size_t)plain.n + 1) * sizeof *list);
    if (!list) { return opd_value_none(); }
    for (int32_t i = 0; i < plain.n; i++) { list[i] = opdi_value_flat(&plain.u.list[i], depth + 1); }
    return opd_value_list(list, plain.n);
}
/* Runs the step of an operator whose arguments or results may be cells.  Returns 0, or -1 and sets an error. */
static int opdi_graph_op_cells(opdi_thread *thread, const opdi_gstep *step, const int32_t *slots, opd_value *vals) {
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    bool deep = false;
    int rc;
    for (int i = 0; i < step->nin; i++) {
        args[i] = opdi_value_plain(&vals[slots[i]]);
        deep = deep || (args[i].tag == OPD_TAG_LIST && vals[slots[i]].tag == OPD_TAG_CELL);
    }
    for (int i = 0; i < step->nout; i++) { rets[i] = opd_value_none(); }
    if (deep) {
        opd_scope scope = opd_scope_open();
        for (int i = 0; i < step->nin; i++) { args[i] = opdi_value_flat(&vals[slots[i]], 0); }
        rc = opd_ok() ? opdi_graph_call(step->node, rets, args) : -1;
        opd_scope_close(&scope);
    } else { rc = opdi_graph_op(thread, step, args, rets); }
    for (int i = 0; i < step->nout; i++) {
        if (rc == 0) { rc = opdi_graph_box(&rets[i]); }
        if (rc == 0) { vals[slots[step->nin + i]] = rets[i]; }
        else { opdi_graph_value_release(&rets[i]); }
    }
    return rc;
}
/* Makes a list or tuple cell of the values in the slots `slots`.  Returns the cell, or NULL and sets an error. */
static opdi_cell *opdi_graph_make(const opdi_gnode *node, const int32_t *slots, const opd_value *vals) {
    const opdi_gvalue *const out = node->out[0];
    const bool tuple = node->kind == OPDI_GNODE_TUPLE;
    opdi_cell *cell = opdi_cell_new(tuple ? OPD_CELL_TUPLE : OPD_CELL_LIST, tuple ? OPD_TAG_LIST : out->tag,
                                    tuple ? node->nin : 0);
    if (!cell || (!tuple && opdi_cell_reserve(cell, node->nin))) {
        if (cell) { opdi_cell_drop(cell); }
        return NULL;
    }
    if (tuple && out->type && out->type->klass) {
        cell->klass = out->type->klass;
        (void)opdi_gspace_keep(cell->klass->space);
    }
    for (int32_t i = 0; i < node->nin; i++) {
        opd_value element = vals[slots[i]];
        if (opdi_cell_take(cell, &element)) {
            opdi_cell_drop(cell);
            return NULL;
        }
        opdi_cell_put(cell, cell->count++, &element);
    }
    return cell;
}
static int opdi_graph_call_builtin(const opdi_gstep *step, const int32_t *slots, opd_value *vals) {
    opd_value few[16], *const buffer = step->nin + step->nout <= 16 ? few
        : (opd_value *)opdi_alloc((size_t)(step->nin + step->nout) * sizeof *buffer);
    opdi_bcall call;
    if (!buffer) { return -1; }
    for (int32_t i = 0; i < step->nin; i++) { buffer[i] = vals[slots[i]]; }
    for (int32_t i = 0; i < step->nout; i++) { buffer[step->nin + i] = opd_value_none(); }
    call.args = buffer;
    call.rets = buffer + step->nin;
    call.nargs = step->nin;
    call.nrets = step->nout;
    call.node = step->node;
    call.builtin = step->node->builtin;
    int rc = call.builtin->run(&call);
    if (rc == 0 && !opd_ok()) { rc = -1; }
    if (rc == 0 && opdi_graph_watched && step->nout == 1) {
        opdi_graph_watched(call.builtin->schema, buffer, step->nin, call.rets);
    }
    for (int32_t i = 0; i < step->nout; i++) {
        if (rc == 0) { vals[slots[step->nin + i]] = call.rets[i]; }
        else { opdi_value_drop(call.rets[i]); }
    }
    if (buffer != few) { opdi_free(buffer, (size_t)(step->nin + step->nout) * sizeof *buffer); }
    return rc;
}

/* Releases the values that are not used after this step; their slots are the first step->ndrop of `slots`. */
static void opdi_graph_drops(const opdi_gstep *step, const int32_t *slots, opd_value *vals) {
    for (int32_t i = 0; i < step->ndrop; i++) { opdi_graph_value_release(&vals[slots[i]]); }
}
/* Copies `count` values from the slots `from` to the slots `to`, which get new references.  Returns 0, or -1 and sets
   an error. */
static int opdi_graph_copy(const int32_t *from, const int32_t *to, int32_t count, opd_value *vals) {
    for (int32_t i = 0; i < count; i++) {
        opd_value value = vals[from[i]];
        if (opdi_value_hold(&value)) { return -1; }
        vals[to[i]] = value;
    }
    return 0;
}
static int opdi_graph_is_true(const opd_value *value, const char *what, bool *truth) {
    *truth = value->u.i != 0;
    if (value->tag == OPD_TAG_INT && opdi_graph_watched) {
        const opd_value what_is = opd_value_bool(*truth);
        opdi_graph_watched("aten::Bool", value, 1, &what_is);
    }
    return value->tag == OPD_TAG_BOOL || value->tag == OPD_TAG_INT ? 0
        : opd_fail(OPD_ERROR_ARGUMENT, "%s is %s, but must be a bool", what, opdi_value_kind_name(value));
}
/* Returns the step that follows a step of a loop: if `again` is true, the first step of the next round, else the step
   after the loop.  For the next round, first moves the carried values from the slots of the loop's results to the slots
   of the block's inputs. */
static const opdi_gstep *opdi_graph_round(const opdi_graph_plan *plan, const opdi_gstep *step, const int32_t *slots,
                                          opd_value *vals, bool again) {
    const int32_t *const outs = slots + step->nin, *const ins = outs + step->nout;
    const opdi_gstep *const here = plan->steps + step->target;
    if (!again) { return step->code == OPDI_STEP_LOOP ? here : step + 1; }
    vals[step->inner] = vals[step->extra];
    for (int32_t i = 0; i < step->nout; i++) {
        vals[ins[i]] = vals[outs[i]];
        vals[outs[i]] = opd_value_none();
    }
    return step->code == OPDI_STEP_LOOP ? step + 1 : here;
}
static const opdi_gstep *opdi_graph_loop(const opdi_graph_plan *plan, const opdi_gstep *step, const int32_t *slots,
                                         opd_value *vals) {
    opd_value *const round = &vals[step->extra], *const most = round + 1;
    const bool first = step->code == OPDI_STEP_LOOP;
    const int32_t *const carried = slots + (first ? 2 : 1);
    bool again;
    if (first) {
        if (vals[slots[0]].tag != OPD_TAG_INT) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "prim::Loop: the number of iterations is not an int");
            return NULL;
        }
        *most = vals[slots[0]];
        *round = opd_value_int(0);
    } else { round->u.i++; }
    if (opdi_graph_is_true(&vals[slots[first ? 1 : 0]], "prim::Loop: the condition", &again)) { return NULL; }
    again = again && round->u.i < most->u.i;
    if (opdi_graph_copy(carried, slots + step->nin, step->nout, vals)) { return NULL; }
    opdi_graph_drops(step, slots + step->nin + 2 * step->nout, vals);
    return opdi_graph_round(plan, step, slots, vals, again);
}
/* Runs a step that is not OPDI_STEP_OP.  Returns the next step, or NULL and sets an error. */
OPDI_NOINLINE OPDI_INTERNAL const opdi_gstep *opdi_graph_other(opdi_thread *thread, const opdi_graph_plan *plan,
                                                               const opdi_gstep *step, opd_value *vals, char *scratch) {
    const int32_t *const slots = plan->slots + step->slots;
    const opdi_gstep *next = step + 1;
    bool truth;
    int rc = 0;
    switch (step->code) {
    case OPDI_STEP_OP_CELLS: rc = opdi_graph_op_cells(thread, step, slots, vals); break;
    case OPDI_STEP_LIST: {
        char *at = scratch + step->target;
        vals[slots[step->nin]] = opdi_gnode_list(step->node, vals, &at);
        break;
    }
    case OPDI_STEP_UNPACK: rc = opdi_graph_unpack(step, slots, vals); break;
    case OPDI_STEP_MAKE: {
        opdi_cell *cell = opdi_graph_make(step->node, slots, vals);
        if (cell) { vals[slots[step->nin]] = opdi_cell_value(cell); } else { rc = -1; }
        break;
    }
    case OPDI_STEP_FUNCTION: rc = opdi_graph_function_step(plan, step, slots, vals); break;
    case OPDI_STEP_BUILTIN: rc = opdi_graph_call_builtin(step, slots, vals); break;
    case OPDI_STEP_IF:
        if ((rc = opdi_graph_is_true(&vals[slots[0]], "prim::If: the condition", &truth)) == 0 && !truth) {
            next = plan->steps + step->target;
        }
        break;
    case OPDI_STEP_JUMP:
        if ((rc = opdi_graph_copy(slots, slots + step->nin, step->nout, vals)) == 0) {
            next = plan->steps + step->target;
        }
        break;
    case OPDI_STEP_LOOP: case OPDI_STEP_NEXT: return opdi_graph_loop(plan, step, slots, vals);
    default: break;
    }
    if (rc) {
        (void)(step->node->kind == OPDI_GNODE_UNPACK ? -1 : opdi_graph_where(step->node));
        return NULL;
    }
    opdi_graph_drops(step, slots + step->nin + step->nout, vals);
    return next;
}

//-- constant folding: operators of constants are replaced by their results --------------------------------------------

/* Calls the operator of `node`, whose arguments are all constants.  If the result is a tensor, makes the node a
   constant with this tensor.  `vals` has the values of the slots.  Returns 1 if the node is now a constant, 0 if not,
   or -1 and sets an error. */
static int opdi_gnode_fold(opd_graph *graph, opdi_gnode *node, const opd_value *vals) {
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    opd_scope scope = opd_scope_open();
    opd_tensor *tensor = NULL;
    for (int i = 0; i < node->nin; i++) { args[i] = opdi_value_flat(&vals[node->in[i]->slot], 0); }
    int rc = opdi_run_ends(opdi_self()) || !opd_ok() ? -1 : opd_call_all(node->op, rets, args, node->nin);
    if (rc == 0 && rets[0].tag == OPD_TAG_TENSOR) {
        tensor = opdi_keep(opd_detach(rets[0].u.t));
        rc = tensor ? opdi_gvalue_describe(graph, node->out[0], tensor) : -1;
        if (rc) { opdi_release(tensor); }
    }
    opd_scope_close(&scope);
    if (rc || !tensor) { return rc; }
    node->kind = OPDI_GNODE_CONSTANT;
    node->constant = opd_value_tensor(tensor);
    node->nin = 0;
    node->op = NULL;
    opdi_graph_changed(graph);
    return 1;
}
/* Calls operators whose arguments are all constants, and replaces their nodes by the results.  Returns the number of
   nodes that were removed, or -1 and sets an error. */
static int opdi_graph_fold(opd_graph *graph) {
    size_t bytes;
    const int32_t slots = opdi_graph_number(graph, &bytes);
    opd_value *vals = (opd_value *)opdi_scope_alloc(((size_t)slots + 1) * sizeof *vals);
    char *lists = (char *)opdi_scope_alloc(bytes + 8);
    int gone = 0, rc;
    if (!vals || !lists) { return -1; }
    for (opdi_gnode *node = graph->body.first; node; node = node->next) {
        bool constant = node->kind == OPDI_GNODE_OP && node->nout == 1 && (node->op->tensor_rets & 1) &&
            !node->block->owner && !opdi_gnode_stays(node) && !opdi_gnode_draws(node);
        for (int i = 0; i < node->nin && constant; i++) { constant = node->in[i]->node && node->in[i]->node->fixed; }
        if (constant) {
            if ((rc = opdi_gnode_fold(graph, node, vals)) < 0) { return -1; }
            gone += rc;
        }
        if (!opdi_gnode_fix(node)) { continue; }
        vals[node->out[0]->slot] = node->kind == OPDI_GNODE_LIST ? opdi_gnode_list(node, vals, &lists) : node->constant;
    }
    int i = opd_graph_dce(graph);
    return i < 0 ? -1 : gone + i;
}
int opd_graph_fold(opd_graph *graph) {
    if (!opdi_graph_is_given(graph, "opd_graph_fold")) { return -1; }
    if (opdi_graph_writes(graph)) { return 0; }   /* the graph may write into its constants */
    opd_scope scope = opd_scope_open();
    opd_graph *const kept = opdi_graph_keep(graph);
    int gone = opdi_graph_fold(graph);
    opd_scope_close(&scope);
    opd_graph_free(kept);
    return gone;
}
OPDI_COLD_END

/* Runs the steps of `plan` with the slots `vals`, and releases each value after its last use.  `scratch` is memory for
   the elements of light lists.  Returns 0, or -1 and sets an error. */
static int opdi_graph_steps(opdi_thread *thread, const opdi_graph_plan *plan, opd_value *vals, char *scratch) {
    const opdi_gstep *const end = plan->steps + plan->nsteps;
    int32_t i;
    for (const opdi_gstep *step = plan->steps; step != end;) {
        const int32_t *slots = plan->slots + step->slots;
        if (opdi_run_ends(thread)) { return -1; }
        if (OPDI_UNLIKELY(step->code != OPDI_STEP_OP)) {
            if (!(step = opdi_graph_other(thread, plan, step, vals, scratch))) { return -1; }
            continue;
        }
        if (OPDI_UNLIKELY(opdi_graph_step(thread, step, slots, vals) != 0)) { return opdi_graph_where(step->node); }
        for (slots += step->nin + step->nout, i = 0; i < step->ndrop; i++) {
            opd_value *value = &vals[slots[i]];
            if (OPDI_LIKELY(value->tag == OPD_TAG_TENSOR)) {
                value->tag = OPD_TAG_NONE;
                opdi_drop(value->u.t);
            }
            else { opdi_graph_value_release(value); }
        }
        step++;
    }
    return 0;
}

/* Sets *out to a new reference to output i of a run, whose slots are `vals`.  Returns 0, or -1 and sets an error. */
static int opdi_graph_take(const opd_graph *graph, opd_value *vals, int i, opd_value *out) {
    *out = vals[graph->outputs[i]->slot];
    return opdi_value_hold(out);
}
/* Runs a graph with the values `inputs`, which must have the types of the graph's inputs.  Stores references of at most
   `cap` outputs in `outputs`.  Each run has its own slots, so several threads may run the same graph at the same time.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_values(const opd_graph *graph, const opd_value *inputs, int ninputs, opd_value *outputs,
                                    int cap) {
    opdi_thread *thread = opdi_self();
    const opdi_graph_plan *plan = OPDI_ACQUIRE(&graph->plan);
    if (!plan && !(plan = opdi_graph_plan_of(graph))) { return -1; }
    const size_t bytes = (size_t)plan->nslots * sizeof(opd_value) + plan->scratch + 16;
    opd_value *vals = (opd_value *)opdi_alloc(bytes);
    opdi_planned **const memory = &((opd_graph *)(uintptr_t)graph)->memory, *planned;
    int done = 0;
    if (!vals) { return -1; }
    if (opdi_planned_begin(thread, memory, &planned)) {
        opdi_free(vals, bytes);
        return -1;
    }
    memcpy(vals, plan->start, (size_t)plan->nslots * sizeof *vals);
    if (ninputs) { memcpy(vals, inputs, (size_t)ninputs * sizeof *vals); }
    int rc = opdi_graph_steps(thread, plan, vals, (char *)(vals + plan->nslots));
    for (; done < graph->noutputs && done < cap && rc == 0; done++) {
        rc = opdi_graph_take(graph, vals, done, &outputs[done]);
        if (rc) { break; }
    }
    if (OPDI_UNLIKELY(rc != 0)) {
        for (int32_t i = 0; i < plan->nowned; i++) { opdi_graph_value_release(&vals[plan->owned[i]]); }
        while (done-- > 0) { opdi_value_drop(outputs[done]); }
    } else { for (int i = 0; i < plan->nrest; i++) { opdi_graph_value_release(&vals[plan->rest[i]]); } }
    opdi_planned_end(thread, memory, planned, rc != 0);
    opdi_free(vals, bytes);
    return rc;
}

/* Writes at most `cap` outputs of a run, which must be tensors or None, to `outputs`.  They belong to the innermost
   scope.  Returns 0, or -1 and sets an error. */
static int opdi_graph_take_tensors(const opd_graph *graph, const opd_value *vals, opd_tensor **outputs, int cap) {
    for (int i = 0; i < graph->noutputs && i < cap; i++) {
        const opd_value *value = &vals[graph->outputs[i]->slot];
        outputs[i] = value->tag == OPD_TAG_TENSOR ? opdi_own(opdi_keep(value->u.t)) : NULL;
        if (!outputs[i] && !opd_ok()) { return -1; }
        if (!outputs[i] && value->tag != OPD_TAG_NONE) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_run: output %d is not a tensor, but %s", i,
                            opdi_value_kind_name(value));
        }
    }
    return 0;
}
/* Runs a graph with the tensors `inputs`, and writes at most `cap` outputs to `outputs`.  Returns the graph's number of
   outputs, or -1 and sets an error. */
int opd_graph_run(const opd_graph *graph, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs, int cap) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    opd_graph *const kept = opdi_graph_keep(graph);
    const opdi_graph_plan *plan = NULL;
    opdi_planned *planned = NULL;
    opd_value *vals = NULL;
    size_t bytes = 0;
    int rc = -1;
    if (thread->error == OPD_OK && graph && ninputs == graph->ninputs && (inputs || !ninputs) && (outputs || !cap)) {
        if (OPDI_UNLIKELY(graph->sizes) && !graph->program &&
            opdi_graph_guard_tensors(graph, inputs, "opd_graph_run", NULL)) { }
        else if ((plan = OPDI_ACQUIRE(&graph->plan)) != NULL || (plan = opdi_graph_plan_of(graph)) != NULL) {
            bytes = (size_t)plan->nslots * sizeof *vals + plan->scratch + 16;
            vals = (opd_value *)opdi_alloc(bytes);
        }
    } else if (thread->error == OPD_OK) { rc = opdi_graph_run_error(graph, inputs, ninputs); }
    if (vals) {
        opdi_planned **const memory = &((opd_graph *)(uintptr_t)graph)->memory;
        memcpy(vals, plan->start, (size_t)plan->nslots * sizeof *vals);
        for (int i = 0; i < ninputs; i++) { vals[i] = opd_value_tensor(inputs[i]); }
        rc = opdi_planned_begin(thread, memory, &planned);
        rc = rc ? rc : opdi_graph_steps(thread, plan, vals, (char *)(vals + plan->nslots));
        rc = rc ? rc : opdi_graph_take_tensors(graph, vals, outputs, cap);
        if (OPDI_UNLIKELY(rc != 0)) {
            for (int32_t i = 0; i < plan->nowned; i++) { opdi_graph_value_release(&vals[plan->owned[i]]); }
        } else { for (int i = 0; i < plan->nrest; i++) { opdi_graph_value_release(&vals[plan->rest[i]]); } }
        opdi_planned_end(thread, memory, planned, rc != 0);
        opdi_free(vals, bytes);
    }
    opdi_leave(thread, was);
    if (rc == 0) { rc = graph->noutputs; } else { (void)opdi_no_tensors(outputs, cap); }
    opd_graph_free(kept);
    return rc;
}

OPDI_ONCE_BEGIN

/* Returns `count`, the number of outputs that `who` has as an opd_transform_fn.  If there are too many, returns -1 and
   sets an error; `run` is the function that has no such limit. */
OPDI_INTERNAL int opdi_function_outputs(const char *who, int count, const char *run) {
    if (count <= OPD_TRANSFORM_OUTPUTS) { return count; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: there are %d outputs, but a function for transforms can return at most "
                    "%d: call %s", who, count, OPD_TRANSFORM_OUTPUTS, run);
}
int opd_graph_function(void *graph, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    const opd_graph *called = (const opd_graph *)graph;
    const int count = opdi_function_outputs("opd_graph_function", called ? called->noutputs : 1, "opd_graph_run");
    return count < 0 ? -1 : opd_graph_run(called, inputs, ninputs, outputs, count);
}
OPDI_ONCE_END
