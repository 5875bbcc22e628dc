#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>recorded_control conditions and loops in a trace
//
//  A condition or loop becomes one node with blocks.  First, the functions run as outside of a trace, without being
//  recorded: this gives the results.  Then each function is called once with fake tensors, and its calls are recorded
//  in a block.  So nothing is computed twice, and a branch that is not taken cannot fail or loop because of the data.
//
//  The whole is a custom function for autograd, forward mode and vmap.  Its derivatives are conditions and loops again,
//  over functions that are derived from the program's (see "derivatives of recorded control flow").  So the derivative
//  of a loop has a fixed number of nodes.
//----------------------------------------------------------------------------------------------------------------------

//== structs ===========================================================================================================

OPDI_INTERNAL void opdi_recorded_release(opdi_recorded *recorded) {
    while (recorded && opdi_ref_down(&recorded->refs) == 0) {
        opdi_recorded *const of = recorded->of;
        if (recorded->destroy) { recorded->destroy(recorded->functions.user); }
        opdi_free(recorded, recorded->bytes);
        recorded = of;
    }
}
static void opdi_recorded_destroy(void *recorded) { opdi_recorded_release((opdi_recorded *)recorded); }
/* Returns a copy of `from`, with `nroles` roles, or NULL if memory runs out.  The copy refers to `of`, which may be
   NULL. */
OPDI_INTERNAL opdi_recorded *opdi_recorded_copy(const opdi_recorded *from, opdi_recorded *of, int nroles) {
    const size_t bytes = sizeof *from + (size_t)nroles + 1;
    opdi_recorded *const recorded = (opdi_recorded *)opdi_alloc(bytes);
    if (!recorded) { return NULL; }
    memset(recorded, 0, bytes);
    *recorded = *from;
    recorded->refs = 1;
    recorded->of = of;
    recorded->bytes = bytes;
    recorded->roles = (int8_t *)(void *)(recorded + 1);
    if (of) {
        opdi_ref_up(&of->refs);
        recorded->functions.user = recorded;
        recorded->destroy = NULL;
    }
    return recorded;
}
OPDI_INTERNAL int opdi_recorded_noperands(const opdi_recorded *recorded) {
    return (recorded->kind == OPDI_RECORDED_COND) + recorded->ncarried + recorded->nsliced + recorded->nothers;
}
static bool opdi_recorded_may_be_empty(const opdi_recorded *recorded) {
    return recorded->may_be_empty || recorded->kind == OPDI_RECORDED_WHILE;
}
/* Returns whether calls of this thread are recorded now. */
OPDI_INTERNAL bool opdi_filling_is_on(const opdi_thread *thread) {
    return thread->innermost.tracer && (thread->state.allow & OPD_BIT_OF(OPD_F_TRACER));
}

//== results ===========================================================================================================

/* Calls a function of a loop (opdi_control.call), and keeps the carried tensors that it gets: of a scan, as further
   results; of a while, in the list of `user`. */
typedef struct opdi_recorded_keeping {
    opdi_control flow;                            /* the flow that calls the functions */
    opdi_recorded *recorded;
    opd_tensor **kept;                            /* references */
    int64_t count, cap;
} opdi_recorded_keeping;
static int opdi_recorded_keep(opdi_recorded_keeping *keeping, const opd_value *values) {
    for (int i = 0; i < keeping->recorded->ncarried; i++) {
        void *kept = keeping->kept;
        if (opdi_grow(&kept, keeping->count, &keeping->cap, sizeof *keeping->kept)) { return -1; }
        keeping->kept = (opd_tensor **)kept;
        keeping->kept[keeping->count++] = opdi_keep(values[i].u.t);
    }
    return 0;
}
static int opdi_recorded_keeping_call(const opdi_control *flow, int which, const opd_value *args, int nargs,
                                      opd_value *outputs, int cap) {
    opdi_recorded_keeping *const keeping = (opdi_recorded_keeping *)(uintptr_t)flow->user;
    const int carried = keeping->recorded->ncarried;
    const int count = keeping->flow.call(&keeping->flow, which, args, nargs, outputs, cap);
    if (count < 0 || (keeping->recorded->kind == OPDI_RECORDED_WHILE && which == 0)) { return count; }
    if (keeping->recorded->kind == OPDI_RECORDED_WHILE) { return opdi_recorded_keep(keeping, args) ? -1 : count; }
    if (count < carried) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s returns %d outputs, but must return the %d carried tensors first",
                        flow->who, flow->names[0], count, carried);
    }
    for (int i = 0; i < carried && count + i < cap; i++) { outputs[count + i] = args[i]; }
    return count + carried;
}
/* Returns an empty stack of tensors like `tensor`. */
static opd_value opdi_recorded_no_stack(opd_tensor *tensor) {
    int64_t sizes[OPD_MAX_DIMS + 1];
    sizes[0] = 0;
    for (int k = 0; k < tensor->ndim; k++) { sizes[k + 1] = opd_size(tensor, k); }
    return opd_value_tensor(opd_new_empty(tensor, opd_ints_of(sizes, tensor->ndim + 1)));
}
/* Stacks the carried tensors that a while has kept.  Returns 0, or -1 and sets an error. */
static int opdi_recorded_stack(const opdi_recorded_keeping *keeping, opd_value *results) {
    const int carried = keeping->recorded->ncarried;
    const int64_t rounds = keeping->count / carried;
    opd_tensor **const list = rounds <= INT32_MAX ? opdi_scope_tensors((int)rounds) : NULL;
    for (int i = 0; i < carried && list; i++) {
        for (int64_t k = 0; k < rounds; k++) { list[k] = keeping->kept[k * carried + i]; }
        results[carried + i] = rounds ? opd_value_tensor(opd_stack(opd_tensors_of(list, rounds), 0))
            : opdi_recorded_no_stack(results[i].u.t);
    }
    return list && opd_ok() ? 0 : -1;
}
/* Returns whether a loop has no slices, and may have none.  Then writes the operands that it carries, and empty stacks
   of them, to `results`. */
static bool opdi_recorded_is_empty(const opdi_recorded *recorded, const opd_value *args, opd_value *results) {
    if (!recorded->may_be_empty || opd_size(args[recorded->ncarried].u.t, 0)) { return false; }
    for (int i = 0; i < recorded->ncarried; i++) {
        results[i] = args[i];
        if (recorded->stacks) { results[recorded->ncarried + i] = opdi_recorded_no_stack(args[i].u.t); }
    }
    return true;
}
/* Computes the outputs of a condition or loop, as outside of a trace.  Returns their number, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_recorded_compute(opdi_recorded *recorded, const opd_value *operands, opd_value *results) {
    opdi_control flow = {recorded->who, {recorded->names[0], recorded->names[1]}, opdi_control_call,
                         &recorded->functions, 2 * OPD_TRANSFORM_OUTPUTS, true, false, false, false};
    opdi_recorded_keeping keeping = {flow, recorded, NULL, 0, 0};
    const int nargs = opdi_recorded_noperands(recorded), carried = recorded->ncarried;
    int count;
    if (recorded->kind == OPDI_RECORDED_COND) {
        count = opdi_control_cond(&flow, &operands[0], operands + 1, nargs - 1, results, flow.most);
        recorded->nresults = OPDI_MAX(count, 0);
        return count;
    }
    if (opdi_recorded_is_empty(recorded, operands, results)) {
        return opd_ok() ? carried * (recorded->stacks ? 2 : 1) : -1;
    }
    if (recorded->stacks) {
        flow.call = opdi_recorded_keeping_call;
        flow.user = &keeping;
    }
    if (recorded->kind == OPDI_RECORDED_WHILE) {
        count = opdi_control_while(&flow, operands, nargs, carried, results) ? -1 : carried;
        if (count >= 0 && recorded->stacks) { count = opdi_recorded_stack(&keeping, results) ? -1 : 2 * carried; }
    } else {
        count = opdi_control_scan(&flow, operands, nargs, carried, recorded->nsliced, recorded->reverse, results);
        recorded->nresults = count < 0 ? 0 : count - carried * (recorded->stacks ? 2 : 1);
    }
    for (int64_t i = 0; i < keeping.count; i++) { opdi_drop(keeping.kept[i]); }
    opdi_free(keeping.kept, (size_t)keeping.cap * sizeof *keeping.kept);
    return count;
}

//== blocks ============================================================================================================

/* The recording of the blocks of a condition or loop. */
typedef struct opdi_filling {
    opdi_recorded *recorded;
    opdi_graph_tracer *tracer;
    opd_graph *graph;
    opdi_gnode *node;                             /* the node with the blocks, once it was made */
    opdi_gvalue **operands;                       /* the values of the operands */
    opdi_gvalue **empties;                        /* if the loop may have no rounds: for each list, a tensor without
                                                     elements, with which the list begins; else NULL */
    opdi_graph_insert_point was;
    const char *control;                          /* control and follows: of the tracer, before the recording */
    bool follows;
    opd_fake_block fake;
    opd_scope scope;
    opdi_visit_frame visit;
} opdi_filling;
/* The recording of a thread while it is switched off. */
typedef struct opdi_filling_pause { struct opdi_tracer *tracer; uint64_t allow; } opdi_filling_pause;
static opdi_filling_pause opdi_filling_off(opdi_thread *thread) {
    const opdi_filling_pause pause = {thread->innermost.tracer, thread->state.allow};
    thread->innermost.tracer = NULL;
    thread->state.allow &= ~OPD_BIT_OF(OPD_F_TRACER);
    return pause;
}
static void opdi_filling_on(opdi_thread *thread, const opdi_filling_pause *pause) {
    thread->innermost.tracer = pause->tracer;
    thread->state.allow = pause->allow;
}

/* Takes back what a filling has set.  If `failed` is true, also removes the node that it has made. */
static void opdi_filling_restore(opdi_filling *filling, bool failed) {
    opd_graph *const graph = filling->graph;
    opd_fake_end(&filling->fake);
    if (failed && filling->node) { opdi_gnode_remove(graph, filling->node); }
    graph->into = filling->was.into;
    graph->at = filling->was.at;
    filling->tracer->control = filling->control;
    filling->tracer->follows = filling->follows;
}
static void opdi_filling_left(opdi_visit *visit) { opdi_filling_restore((opdi_filling *)visit->user, true); }
static void opdi_filling_begin(opdi_filling *filling, opdi_recorded *recorded) {
    opdi_thread *const thread = opdi_self();
    memset(filling, 0, sizeof *filling);
    filling->recorded = recorded;
    filling->tracer = opdi_tracer_of(thread);
    filling->graph = filling->tracer->graph;
    filling->was.into = filling->graph->into;
    filling->was.at = filling->graph->at;
    filling->control = filling->tracer->control;
    filling->follows = filling->tracer->follows;
    opdi_visit_begin(thread, &filling->visit, "the function of a condition or loop", opdi_filling_left, filling);
    filling->scope = opd_scope_open();
    filling->tracer->control = recorded->who;
    filling->tracer->follows = filling->follows || recorded->follows;
    filling->tracer->blocks = true;
    if (!opd_fake_enabled()) { filling->fake = opd_fake_begin(); }
}
/* Ends a filling.  Returns `rc`. */
static int opdi_filling_end(opdi_filling *filling, int rc) {
    opdi_filling_restore(filling, rc != 0);
    opd_scope_close(&filling->scope);
    opdi_visit_end(&filling->visit);
    return rc;
}
/* Returns a fake of `tensor` that the recording knows as `value`, or NULL and sets an error.  If `slice` is true, the
   fake is one of a slice along dim 0. */
static opd_tensor *opdi_filling_fake(opdi_filling *filling, opd_tensor *tensor, opdi_gvalue *value, bool slice) {
    opdi_thread *const thread = opdi_self();
    const opdi_filling_pause pause = opdi_filling_off(thread);
    opd_tensor *const alias = opdi_own(opdi_shallow_copy(tensor));
    opd_tensor *fake = alias ? opd_fake_tensor(alias) : NULL;
    if (fake && slice && opd_size(fake, 0)) { fake = opd_select(fake, 0, 0); }
    else if (fake && slice) { fake = opd_new_empty(fake, opd_ints_of(fake->dims + 1, fake->ndim - 1)); }
    opdi_filling_on(thread, &pause);
    return fake && value && opdi_traced_put(filling->tracer, fake, value) == 0 ? fake : NULL;
}
/* Calls function `which`, and records its calls at the insertion point.  Writes its outputs, at most `cap`, to
   `outputs`, and their values to `values`.  Returns their number, or -1 and sets an error. */
static int opdi_filling_call(opdi_filling *filling, int which, const opd_value *args, int nargs,
                               opd_value *outputs, opdi_gvalue **values, int cap) {
    const opdi_recorded *const recorded = filling->recorded;
    const opdi_control flow = {recorded->who, {recorded->names[0], recorded->names[1]}, opdi_control_call,
                               &recorded->functions, cap, true, false, false, false};
    const int count = opdi_control_call(&flow, which, args, nargs, outputs, cap);
    if (count > cap && recorded->may_be_empty) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "%s: the second derivative of a loop without rounds cannot be recorded: "
                        "trace it with inputs for which the loop has a round", recorded->who);
    }
    if (count > cap) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s returned %d outputs in one call and %d in another; it must do the "
                        "same in each call", recorded->who, recorded->names[which], cap, count);
    }
    for (int i = 0; i < count; i++) {
        opdi_gvalue *const value = opdi_trace_tensor(filling->tracer, outputs[i].u.t);
        if (!value) { return -1; }
        values[i] = value;
    }
    return count;
}
/* Adds a call of the operator `name`, whose result has the tag `tag`.  Returns the result, or NULL and sets an
   error. */
static opdi_gvalue *opdi_filling_op(opd_graph *graph, const char *name, opdi_gvalue *first, opdi_gvalue *second,
                                      opdi_gvalue *third, int32_t tag) {
    opd_op *const op = opd_find_quiet(name);
    if (!op || !first || !second || (op->nargs > 2 && !third)) { return NULL; }
    opdi_gnode *const node = opdi_gnode_new(graph, OPDI_GNODE_OP, op->nargs, 1);
    if (!node || !(node->out[0] = opdi_gvalue_new(graph, node, tag))) { return NULL; }
    node->op = op;
    node->in[0] = first;
    node->in[1] = second;
    if (op->nargs > 2) { node->in[2] = third; }
    opdi_gnode_append(graph, node);
    return node->out[0];
}
static opdi_gvalue *opdi_filling_builtin(opd_graph *graph, const char *name, opdi_gvalue *first, opdi_gvalue *second,
                                           const opdi_gtype *type) {
    opdi_gvalue *in[2] = {NULL, NULL};
    if (!first || !type) { return NULL; }
    in[0] = first;
    in[1] = second;
    const opdi_gnode *const node = opdi_append_builtin(graph, name, in, second ? 2 : 1, &type, 1, NULL);
    return node ? node->out[0] : NULL;
}
static opdi_gvalue *opdi_filling_int(opd_graph *graph, int64_t number) {
    return opdi_append_constant(graph, opd_value_int(number), opdi_gtype_simple(OPDI_GTYPE_INT), NULL);
}
static opdi_gvalue *opdi_filling_bool(opd_graph *graph, opdi_gvalue *value) {
    return opdi_filling_builtin(graph, "aten::Bool.Tensor", value, NULL, opdi_gtype_simple(OPDI_GTYPE_BOOL));
}
/* Gives the node of a filling `count` results, and writes them to `values`.  Returns 0, or -1 if memory runs out. */
static int opdi_filling_results(opdi_filling *filling, opdi_gvalue **values, int count) {
    opdi_gnode *const node = filling->node;
    node->out = (opdi_gvalue **)opdi_graph_alloc(filling->graph, (size_t)count * sizeof *node->out);
    if (!node->out) { return -1; }
    for (int i = 0; i < count; i++) {
        if (!(node->out[i] = values[i] = opdi_gvalue_new(filling->graph, node, OPD_TAG_TENSOR))) { return -1; }
        opdi_gvalue_typed(values[i], opdi_gtype_simple(OPDI_GTYPE_TENSOR));
        node->nout = i + 1;
    }
    return 0;
}

/* Fails if a node of `block` writes into a tensor that no node of the block has made.  Returns 0, or -1 and sets an
   error. */
static int opdi_filling_check_writes(const opdi_filling *filling, const opdi_gblock *block) {
    for (const opdi_gnode *node = block->first; node; node = node->next) {
        for (uint64_t mask = opdi_gnode_written(node); mask; mask &= mask - 1) {
            opdi_gvalue *const written = node->in[opdi_low_bit(mask)];
            const opdi_gnode *const list = written->node && written->node->kind == OPDI_GNODE_LIST ? written->node
                : NULL;
            for (int k = 0; k < (list ? list->nin : 1); k++) {
                const opdi_gnode *const made = opdi_gvalue_base(list ? list->in[k] : written)->node;
                if (made && made->block == block && !made->nblocks) { continue; }
                return opd_fail(OPD_ERROR_ARGUMENT, "%s: inside of a trace, %s writes into a tensor that the function "
                                "has not made itself.  Write into a copy (opd_clone)", filling->recorded->who,
                                node->op->name);
            }
        }
    }
    return 0;
}
/* Ends a block: sets its outputs, and makes the place after its node the insertion point.  Returns 0, or -1 and sets an
   error. */
static int opdi_filling_leave(opdi_filling *filling, int which, opdi_gvalue *const *values, int count) {
    opdi_gblock *const block = &filling->node->blocks[which];
    return opdi_gblock_leave(filling->graph, block, filling->was, values, count) ? -1
        : opdi_filling_check_writes(filling, block);
}

//== nodes =============================================================================================================

/* Adds the node of a condition.  Writes the values of its outputs to values[count].  Returns 0, or -1 and sets an
   error. */
static int opdi_filling_cond(opdi_filling *filling, const opd_value *operands, opdi_gvalue **values, int count) {
    opdi_recorded *const recorded = filling->recorded;
    opd_graph *const graph = filling->graph;
    const int nargs = recorded->nothers;
    opd_value *const args = opdi_control_values(nargs), *const outputs = opdi_control_values(2 * count);
    opdi_gvalue *const holds = opdi_filling_bool(graph, filling->operands[0]);
    if (!args || !outputs || !holds ||
        !(filling->node = opdi_append_if(graph, holds, NULL))) { return -1; }
    for (int which = 0; which < 2; which++) {
        (void)opdi_gblock_enter(graph, &filling->node->blocks[which]);
        for (int i = 0; i < nargs; i++) {
            args[i] = opd_value_tensor(opdi_filling_fake(filling, operands[1 + i].u.t, filling->operands[1 + i],
                                                         false));
            if (!args[i].u.t) { return -1; }
        }
        const int got = opdi_filling_call(filling, which, args, nargs, outputs + which * count, values, count);
        if (got >= 0 && got != count) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s returns %d outputs, but %s returns %d", recorded->who,
                            recorded->names[which], got, recorded->names[!which], count);
        }
        if (got < 0 || opdi_filling_leave(filling, which, values, count)) { return -1; }
    }
    for (int i = 0; i < count; i++) {
        if (opdi_control_same(&outputs[i], &outputs[count + i])) { continue; }
        return opdi_control_differs(recorded->who, recorded->names[0], i, &outputs[i], "that of else_fn",
                                    &outputs[count + i]);
    }
    return opdi_filling_results(filling, values, count);
}

/* The values of a loop while it is recorded. */
typedef struct opdi_filling_loop {
    opdi_gvalue *next[2 * OPD_TRANSFORM_OUTPUTS + 1];     /* the outputs of the block */
    opdi_gvalue *lists[2 * OPD_TRANSFORM_OUTPUTS];         /* of the results, and then of the stacks */
    opd_value *args, *outputs;                    /* fakes: arguments and outputs of the functions */
} opdi_filling_loop;
/* Makes the lists to which a loop appends its results and stacks.  Returns 0, or -1 and sets an error. */
static int opdi_filling_lists(const opdi_filling *filling, opdi_filling_loop *loop, int count) {
    for (int i = 0; i < count; i++) {
        opdi_gvalue *empty = filling->empties ? filling->empties[i] : NULL;
        loop->lists[i] = opdi_append_list(filling->graph, opdi_gtype_simple(OPDI_GTYPE_TENSOR), &empty, empty != NULL,
                                          NULL);
        if (!loop->lists[i]) { return -1; }
    }
    return 0;
}
/* Appends `value` to a list of a loop.  Returns 0, or -1 and sets an error. */
static int opdi_filling_append(const opdi_filling *filling, opdi_gvalue *list, opdi_gvalue *value) {
    opd_graph *const graph = filling->graph;
    if (opdi_recorded_may_be_empty(filling->recorded)) {
        value = opdi_filling_op(graph, OPDI_NAME(unsqueeze, "aten::unsqueeze"), value, opdi_filling_int(graph, 0), NULL,
                                OPD_TAG_TENSOR);
    }
    return value && opdi_filling_builtin(graph, "aten::append.t", list, value, list->type) ? 0 : -1;
}
/* Stacks the lists of a loop, after its node.  Writes the values to `values`.  Returns 0, or -1 and sets an error. */
static int opdi_filling_stacks(const opdi_filling *filling, const opdi_filling_loop *loop, opdi_gvalue **values,
                               int count) {
    opd_graph *const graph = filling->graph;
    opdi_gvalue *const zero = count ? opdi_filling_int(graph, 0) : NULL;
    const char *const name = opdi_recorded_may_be_empty(filling->recorded) ? OPDI_NAME(cat, "aten::cat")
        : OPDI_NAME(stack, "aten::stack");
    for (int i = 0; i < count; i++) {
        if (!(values[i] = opdi_filling_op(graph, name, loop->lists[i], zero, NULL, OPD_TAG_TENSOR))) { return -1; }
    }
    return 0;
}
/* Makes fakes of the arguments of a loop's functions, which the recording knows as `carried` and as the operands.
   Returns 0, or -1 and sets an error. */
static int opdi_filling_args(opdi_filling *filling, opdi_filling_loop *loop, const opd_value *operands,
                               opdi_gvalue *const *carried) {
    const opdi_recorded *const recorded = filling->recorded;
    const int ncarried = recorded->ncarried, nargs = opdi_recorded_noperands(recorded);
    for (int i = 0; i < nargs; i++) {
        if (i >= ncarried && i < ncarried + recorded->nsliced) { continue; }
        loop->args[i] = opd_value_tensor(opdi_filling_fake(filling, operands[i].u.t, i < ncarried ? carried[i]
                                                           : filling->operands[i], false));
        if (!loop->args[i].u.t) { return -1; }
    }
    return 0;
}
/* Adds the node of a loop, which begins with the carried operands, and makes its block the insertion point.
   Returns 0, or -1 and sets an error. */
static int opdi_filling_enter(opdi_filling *filling, opdi_filling_loop *loop, opdi_gvalue *most,
                                opdi_gvalue *holds, const opd_value *operands) {
    opd_graph *const graph = filling->graph;
    const int ncarried = filling->recorded->ncarried;
    if (!most || !holds || !(filling->node = opdi_append_loop(graph, most, holds, filling->operands, ncarried, NULL))) {
        return -1;
    }
    opdi_gblock *const block = &filling->node->blocks[0];
    for (int i = 0; i < ncarried; i++) {
        opdi_gvalue_typed(block->inputs[1 + i], opdi_gtype_simple(OPDI_GTYPE_TENSOR));
    }
    (void)opdi_gblock_enter(graph, block);
    return opdi_filling_args(filling, loop, operands, block->inputs + 1);
}
/* Checks that the function `name` returned `want` outputs, of which the first are new carried tensors.  Returns 0, or
   -1 and sets an error. */
static int opdi_filling_check(const opdi_filling *filling, const opdi_filling_loop *loop, const char *name,
                                int count, int want) {
    const opdi_recorded *const recorded = filling->recorded;
    if (count != want) {
        return count < 0 ? -1
            : opd_fail(OPD_ERROR_ARGUMENT, "%s: %s returns %d outputs, but must return %d", recorded->who, name, count,
                       want);
    }
    for (int i = 0; i < recorded->ncarried && i < want; i++) {
        if (opdi_control_same(&loop->args[i], &loop->outputs[i])) { continue; }
        return opdi_control_differs(recorded->who, name, i, &loop->outputs[i], "the value that it replaces",
                                    &loop->args[i]);
    }
    return 0;
}
/* Calls the condition of a while with loop->args.  Returns the value of its output, a bool, or NULL and sets an
   error. */
static opdi_gvalue *opdi_filling_holds(opdi_filling *filling, const opdi_filling_loop *loop) {
    opd_value test;
    opdi_gvalue *value;
    const int count = opdi_filling_call(filling, 0, loop->args, opdi_recorded_noperands(filling->recorded), &test,
                                          &value, 1);
    return count == 1 ? opdi_filling_bool(filling->graph, value) : NULL;
}
static int opdi_filling_while(opdi_filling *filling, opdi_filling_loop *loop, const opd_value *operands,
                                opdi_gvalue **values) {
    opdi_recorded *const recorded = filling->recorded;
    opd_graph *const graph = filling->graph;
    const int ncarried = recorded->ncarried, nargs = opdi_recorded_noperands(recorded);
    const int nlists = recorded->stacks ? ncarried : 0;
    opdi_gvalue *const most = opdi_filling_int(graph, INT64_MAX);
    if (opdi_filling_args(filling, loop, operands, filling->operands)) { return -1; }
    opdi_gvalue *const holds = opdi_filling_holds(filling, loop);
    if (!holds || opdi_filling_lists(filling, loop, nlists) ||
        opdi_filling_enter(filling, loop, most, holds, operands)) { return -1; }
    for (int i = 0; i < nlists; i++) {
        if (opdi_filling_append(filling, loop->lists[i], filling->node->blocks[0].inputs[1 + i])) { return -1; }
    }
    const int count = opdi_filling_call(filling, 1, loop->args, nargs, loop->outputs, loop->next + 1, ncarried);
    if (opdi_filling_check(filling, loop, recorded->names[1], count, ncarried)) { return -1; }
    memcpy(loop->args, loop->outputs, (size_t)ncarried * sizeof *loop->args);
    if (!(loop->next[0] = opdi_filling_holds(filling, loop)) ||
        opdi_filling_leave(filling, 0, loop->next, ncarried + 1) ||
        opdi_filling_results(filling, values, ncarried)) { return -1; }
    return opdi_filling_stacks(filling, loop, values + ncarried, nlists);
}
/* Adds the slices of a scan in the round that is recorded to the arguments loop->args.  `last` is the index of the last
   slice if the scan is reversed.  Returns 0, or -1 and sets an error. */
static int opdi_filling_slices(opdi_filling *filling, opdi_filling_loop *loop, const opd_value *operands,
                                 opdi_gvalue *last) {
    const opdi_recorded *const recorded = filling->recorded;
    opd_graph *const graph = filling->graph;
    opdi_gvalue *at = filling->node->blocks[0].inputs[0];
    if (last && !(at = opdi_filling_builtin(graph, "aten::sub.int", last, at, opdi_gtype_simple(OPDI_GTYPE_INT)))) {
        return -1;
    }
    opdi_gvalue *const zero = opdi_filling_int(graph, 0);
    for (int i = recorded->ncarried; i < recorded->ncarried + recorded->nsliced; i++) {
        opdi_gvalue *const slice = opdi_filling_op(graph, OPDI_NAME(select_int, "aten::select.int"),
                                                   filling->operands[i], zero, at, OPD_TAG_TENSOR);
        loop->args[i] = opd_value_tensor(slice ? opdi_filling_fake(filling, operands[i].u.t, slice, true) : NULL);
        if (!loop->args[i].u.t) { return -1; }
    }
    return 0;
}
static int opdi_filling_scan(opdi_filling *filling, opdi_filling_loop *loop, const opd_value *operands,
                               opdi_gvalue **values) {
    opdi_recorded *const recorded = filling->recorded;
    opd_graph *const graph = filling->graph;
    const int ncarried = recorded->ncarried, nresults = recorded->nresults;
    const int nlists = nresults + (recorded->stacks ? ncarried : 0);
    opdi_gvalue *const length = opdi_filling_op(graph, OPDI_NAME(size_int, "aten::size.int"),
                                                filling->operands[ncarried], opdi_filling_int(graph, 0), NULL,
                                                OPD_TAG_INT), *last = NULL;
    opdi_gvalue *const always = opdi_append_constant(graph, opd_value_bool(true), opdi_gtype_simple(OPDI_GTYPE_BOOL),
                                                     NULL);
    if (!length || !always) { return -1; }
    if (recorded->reverse && !(last = opdi_filling_builtin(graph, "aten::sub.int", length,
        opdi_filling_int(graph, 1), opdi_gtype_simple(OPDI_GTYPE_INT)))) { return -1; }
    if (opdi_filling_lists(filling, loop, nlists) || opdi_filling_enter(filling, loop, length, always, operands) ||
        opdi_filling_slices(filling, loop, operands, last)) { return -1; }
    const int count = opdi_filling_call(filling, 0, loop->args, opdi_recorded_noperands(recorded), loop->outputs,
                                          loop->next + 1, ncarried + nresults);
    if (opdi_filling_check(filling, loop, recorded->names[0], count, ncarried + nresults)) { return -1; }
    for (int i = 0; i < nlists; i++) {
        opdi_gvalue *const value = i < nresults ? loop->next[1 + ncarried + i]
            : filling->node->blocks[0].inputs[1 + i - nresults];
        if (opdi_filling_append(filling, loop->lists[i], value)) { return -1; }
    }
    loop->next[0] = always;
    if (opdi_filling_leave(filling, 0, loop->next, ncarried + 1) ||
        opdi_filling_results(filling, values, ncarried)) { return -1; }
    for (int i = 0; i < nlists && recorded->reverse; i++) {
        if (!opdi_append_builtin(graph, "aten::reverse.t", &loop->lists[i], 1, NULL, 0, NULL)) { return -1; }
    }
    return opdi_filling_stacks(filling, loop, values + ncarried, nlists);
}
/* Adds the node of a condition or loop, which has `count` outputs.  Writes their values to `values`.  Returns 0, or -1
   and sets an error. */
static int opdi_filling_node(opdi_filling *filling, const opd_value *operands, opdi_gvalue **values, int count) {
    opdi_recorded *const recorded = filling->recorded;
    const int noperands = opdi_recorded_noperands(recorded);
    filling->operands = (opdi_gvalue **)opdi_scope_alloc(((size_t)noperands + 1) * sizeof *filling->operands);
    if (!filling->operands || !opd_ok()) { return -1; }
    for (int i = 0; i < noperands; i++) {
        if (!(filling->operands[i] = opdi_trace_tensor(filling->tracer, operands[i].u.t))) { return -1; }
    }
    if (recorded->kind == OPDI_RECORDED_COND) { return opdi_filling_cond(filling, operands, values, count); }
    opdi_filling_loop *const loop = (opdi_filling_loop *)opdi_scope_alloc(sizeof *loop);
    if (!loop) { return -1; }
    memset(loop, 0, sizeof *loop);
    loop->args = opdi_control_values(noperands);
    loop->outputs = opdi_control_values(2 * OPD_TRANSFORM_OUTPUTS);
    if (!loop->args || !loop->outputs) { return -1; }
    return recorded->kind == OPDI_RECORDED_WHILE ? opdi_filling_while(filling, loop, operands, values)
        : opdi_filling_scan(filling, loop, operands, values);
}

//== calls =============================================================================================================

/* Returns the values of tensors without elements, with which the lists of a loop that may have no rounds begin.  Those
   of the stacks have the sizes of the operands.  Returns NULL and sets an error on failure. */
static opdi_gvalue **opdi_recorded_empties(const opdi_recorded *recorded, const opd_value *operands,
                                           const opd_value *results) {
    const int nresults = recorded->nresults, ncarried = recorded->ncarried;
    opdi_gvalue **const empties =
        (opdi_gvalue **)opdi_scope_alloc(2 * (size_t)OPD_TRANSFORM_OUTPUTS * sizeof *empties);
    opdi_graph_tracer *const tracer = opdi_tracer_of(opdi_self());
    for (int i = 0; i < nresults + (recorded->stacks ? ncarried : 0) && empties; i++) {
        opd_tensor *const tensor = i < nresults ? results[ncarried + i].u.t : operands[i - nresults].u.t;
        const int64_t none = 0;
        opd_tensor *const empty = i < nresults ? opd_new_zeros(tensor, opd_ints_of(&none, 1))
            : opd_slice(opd_unsqueeze(tensor, 0), 0, opd_value_int(0), opd_value_int(0), 1);
        if (!empty || !(empties[i] = opdi_trace_tensor(tracer, empty))) { return NULL; }
    }
    return empties;
}
/* Computes and records a condition or loop.  Writes its outputs, which belong to the innermost scope, to `results`.
   Returns their number, or -1 and sets an error. */
static int opdi_recorded_make(opdi_recorded *recorded, const opd_value *operands, opd_value *results) {
    opdi_thread *const thread = opdi_self();
    opdi_gvalue **const values =
        (opdi_gvalue **)opdi_scope_alloc(2 * (size_t)OPD_TRANSFORM_OUTPUTS * sizeof *values);
    opdi_filling filling;
    opdi_visit_frame visit;
    if (!values) { return -1; }
    opdi_visit_begin(thread, &visit, "the function of a condition or loop", /* end, user */ NULL, NULL);
    const opdi_filling_pause pause = opdi_filling_off(thread);
    const int count = opdi_recorded_compute(recorded, operands, results);
    for (int i = 0; i < count; i++) {
        if (!(results[i].u.t = opdi_own(opdi_shallow_copy(results[i].u.t)))) { break; }
    }
    opdi_filling_on(thread, &pause);
    opdi_visit_end(&visit);
    opdi_gvalue **empties = NULL;
    if (count < 0 || !opd_ok() || (opdi_recorded_may_be_empty(recorded) &&
                                   !(empties = opdi_recorded_empties(recorded, operands, results)))) { return -1; }
    opdi_filling_begin(&filling, recorded);
    filling.empties = empties;
    if (opdi_filling_end(&filling, opdi_filling_node(&filling, operands, values, count))) { return -1; }
    for (int i = 0; i < count; i++) {
        if (opdi_gvalue_describe(filling.graph, values[i], results[i].u.t) ||
            opdi_traced_put(filling.tracer, results[i].u.t, values[i])) { return -1; }
    }
    return count;
}
OPDI_INTERNAL int opdi_recorded_forward(opd_context *ctx) {
    opdi_recorded *const recorded = (opdi_recorded *)opd_context_user(ctx);
    const int noperands = opdi_recorded_noperands(recorded);
    opd_scope scope = opd_scope_open();
    opd_value *const operands = opdi_control_values(noperands);
    opd_value *const results = opdi_control_values(2 * OPD_TRANSFORM_OUTPUTS);
    for (int i = 0; i < noperands && operands; i++) { operands[i] = opd_context_input(ctx, i); }
    const int count = operands && results ? opdi_recorded_make(recorded, operands, results) : -1;
    int rc = count < 0 ? -1 : 0;
    for (int i = 0; i < count && rc == 0; i++) { rc = opd_context_return_value(ctx, results[i]); }
    opd_scope_close(&scope);
    return rc;
}
/* Saves the operands and the stacks for derivatives. */
OPDI_INTERNAL int opdi_recorded_setup(opd_context *ctx) {
    opdi_recorded *const recorded = (opdi_recorded *)opd_context_user(ctx);
    const int noperands = opdi_recorded_noperands(recorded);
    const int nstacks = recorded->stacks ? recorded->ncarried : 0;
    opd_tensor **const saved = opdi_scope_tensors(noperands + nstacks);
    if (!saved) { return -1; }
    for (int i = 0; i < noperands; i++) { saved[i] = opd_context_tensor(ctx, i); }
    for (int i = 0; i < nstacks; i++) {
        saved[noperands + i] = opd_context_output(ctx, recorded->ncarried + recorded->nresults + i).u.t;
    }
    for (int i = 0; i < recorded->nresults; i++) {
        recorded->floats[i] = opdi_differentiable(opd_context_output(ctx, recorded->ncarried + i).u.t);
    }
    (void)opd_context_set_materialize_grads(ctx, false);
    opdi_ref_up(&recorded->refs);
    if (opd_context_set_data(ctx, recorded, opdi_recorded_destroy)) {
        opdi_recorded_release(recorded);
        return -1;
    }
    return opd_context_save_for_backward(ctx, saved, noperands + nstacks);
}
