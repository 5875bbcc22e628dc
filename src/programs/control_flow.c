#include "programs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>program_graphs exported programs: nodes, conditions and loops, graphs, names of inputs and outputs, signatures
//
//  This section reads the JSON text of a program and makes its graphs.  A node may contain graphs (see "conditions and
//  loops").  The function that reads such graphs, opdi_program_inner, therefore calls itself through the functions that
//  read nodes.  The signature describes each input and output of the main graph.  The user's inputs and outputs get the
//  names of the exported function's arguments and results.
//----------------------------------------------------------------------------------------------------------------------

//== conditions and loops ==============================================================================================
//
//  A condition or loop is a node that contains graphs.  All values that these graphs read are passed to them as
//  arguments.  A graph that makes tensors on the module's device gets this device as its last input.

OPDI_INTERNAL int opdi_region_fail(const opdi_gnode *node, const char *what) {
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s", node->function->name, what);
}
/* Runs graph number `which` of a node.  The last of the `nargs` arguments is the device; it is left out if the graph
   has no input for it.  The results belong to the innermost scope.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_region_call(const opdi_gnode *node, int which, const opd_value *args, int nargs,
                                   opd_value *outputs, int noutputs) {
    const opdi_program_region *region = (const opdi_program_region *)node->user;
    const opd_graph *const graph = region->graphs[which];
    const int count = nargs - !region->wants_device[which];
    if (opd_graph_ninputs(graph) != count || opd_graph_noutputs(graph) != noutputs) {
        return opdi_region_fail(node, "its graph takes or returns another number of values than expected");
    }
    return opdi_graph_run_values(graph, args, count, outputs, noutputs) < 0 ? -1 : 0;
}
/* Returns 1 if a condition is true, 0 if it is false, or -1 and sets an error.  The condition is a bool, an int or a
   tensor with one element. */
static int opdi_region_holds(const opd_value *value) {
    if (value->tag == OPD_TAG_BOOL || value->tag == OPD_TAG_INT) { return value->u.i != 0; }
    if (value->tag != OPD_TAG_TENSOR) {
        return opd_fail(OPD_ERROR_ARGUMENT, "the condition is neither a tensor nor a bool");
    }
    const double number = opd_item_f64(value->u.t);
    return opd_ok() ? number < 0 || number > 0 : -1;
}
/* Stores references to `count` values, which belong to the innermost scope, in `rets`, the results of a node.  Returns
   0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_region_return(opd_value *rets, const opd_value *values, int count) {
    for (int i = 0; i < count; i++) {
        rets[i] = values[i];
        if (opdi_value_hold(&rets[i]) == 0) { continue; }
        while (i-- > 0) { opdi_value_drop(rets[i]); }
        return -1;
    }
    return 0;
}
OPDI_INTERNAL opd_value *opdi_region_values(int count) {
    return (opd_value *)opdi_scope_alloc((size_t)(count + 1) * sizeof(opd_value));
}
/* Returns whether the value of a predicate is not known now: the predicate is a fake tensor, a tensor in code that is
   being compiled, or a batched tensor, which has one value per example. */
static bool opdi_region_unknown(const opd_value *predicate) {
    return predicate->tag == OPD_TAG_TENSOR && (predicate->u.t->backend == OPD_META ||
        predicate->u.t->backend == OPD_LAZY || opd_tensor_is_batched(predicate->u.t));
}
/* Runs both graphs of a cond; their results must have equal sizes and dtypes.  If the predicate is fake, returns the
   results of the first graph.  If the predicate is batched, where() chooses between the results of the graphs for each
   example; if it is in code that is being compiled, where() chooses in each run of the code.  Returns 0, or -1 and sets
   an error. */
static int opdi_region_both(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    opd_value *const outputs = opdi_region_values(node->nout), *const others = opdi_region_values(node->nout);
    opd_tensor *holds = args[0].u.t;
    if (!outputs || !others || opdi_region_call(node, 0, args + 1, node->nin - 1, outputs, node->nout) ||
        opdi_region_call(node, 1, args + 1, node->nin - 1, others, node->nout)) { return -1; }
    if (opd_numel(holds) != 1) { return opdi_region_fail(node, "the condition is not a tensor with one element"); }
    const bool batched = opd_tensor_is_batched(holds) || holds->backend == OPD_LAZY;
    if (batched) { holds = opd_ne_Scalar(opd_reshape(holds, opd_ints_of(NULL, 0)), opd_value_int(0)); }
    for (int i = 0; i < node->nout && opd_ok(); i++) {
        const opd_tensor *const x = outputs[i].tag == OPD_TAG_TENSOR ? outputs[i].u.t : NULL;
        const opd_tensor *const y = others[i].tag == OPD_TAG_TENSOR ? others[i].u.t : NULL;
        bool same = x && y && x->ndim == y->ndim && x->dtype == y->dtype;
        for (int k = 0; same && k < x->ndim; k++) { same = opd_size(x, k) == opd_size(y, k); }
        if (!x && !y && outputs[i].tag == others[i].tag) {
            same = outputs[i].tag == OPD_TAG_NONE ||
                (outputs[i].tag != OPD_TAG_STR && opdi_sym_compare(&outputs[i], &others[i]) == 0);
        }
        if (!same) {
            return opdi_region_fail(node, "its graphs return values with different sizes or dtypes, or different "
                                    "numbers of values");
        }
        if (batched && x) { outputs[i] = opd_value_tensor(opd_where_self(holds, outputs[i].u.t, others[i].u.t)); }
    }
    return opd_ok() ? opdi_region_return(rets, outputs, node->nout) : -1;
}
/* Runs cond(predicate, true graph, false graph, operands); the predicate is args[0].  Returns 0, or -1 and sets an
   error. */
static int opdi_region_cond(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    if (opdi_region_unknown(&args[0])) {
        const bool sides = opdi_generator_sides_set(args[0].u.t->backend == OPD_LAZY || opdi_generator_has_sides());
        const int rc = opdi_region_both(node, args, rets);
        (void)opdi_generator_sides_set(sides);
        return rc;
    }
    const int holds = opdi_region_holds(&args[0]);
    opd_value *const outputs = opdi_region_values(node->nout);
    if (holds < 0 || !outputs || opdi_region_call(node, !holds, args + 1, node->nin - 1, outputs, node->nout)) {
        return -1;
    }
    return opdi_region_return(rets, outputs, node->nout);
}
/* Returns 2 if a batched condition is true for all examples, 1 if it is true for some of them, 0 if for none; or -1 and
   sets an error. */
static int opdi_region_holds_for(const opd_tensor *test) {
    if (opd_numel(test) != 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "the condition is not a tensor with one element");
    }
    while (test->flags & OPDI_BATCHED) { test = opdi_batched_of(test)->value; }
    opd_tensor *const holds = opd_ne_Scalar((opd_tensor *)(uintptr_t)test, opd_value_int(0));
    const bool any = opd_item_i64(opd_any(holds)) != 0, all = any && opd_item_i64(opd_all(holds)) != 0;
    return opd_ok() ? any + all : -1;
}
/* Chooses the values for the next iteration if a condition is true only for some examples: for the other examples,
   replaces the results `next` of the body by the current carried values `now`.  Returns 0, or -1 and sets an error. */
static int opdi_region_select(const opdi_gnode *node, opd_tensor *test, const opd_value *now, opd_value *next,
                              int count) {
    opd_tensor *const holds = opd_ne_Scalar(opd_reshape(test, opd_ints_of(NULL, 0)), opd_value_int(0));
    for (int i = 0; i < count && opd_ok(); i++) {
        const bool tensors = now[i].tag == OPD_TAG_TENSOR && next[i].tag == OPD_TAG_TENSOR;
        bool same = tensors ? now[i].u.t->dtype == next[i].u.t->dtype && now[i].u.t->ndim == next[i].u.t->ndim
            : now[i].tag == next[i].tag && now[i].tag != OPD_TAG_TENSOR && now[i].tag != OPD_TAG_STR &&
            (now[i].tag == OPD_TAG_NONE || opdi_sym_compare(&now[i], &next[i]) == 0);
        for (int k = 0; same && tensors && k < now[i].u.t->ndim; k++) {
            same = opd_size(now[i].u.t, k) == opd_size(next[i].u.t, k);
        }
        if (!same) {
            return opdi_region_fail(node, "the loop ends for some examples but not for others, and a value that it "
                                    "carries is not a tensor of the same size and dtype");
        }
        if (tensors) { next[i] = opd_value_tensor(opd_where_self(holds, next[i].u.t, now[i].u.t)); }
    }
    return opd_ok() ? 0 : -1;
}
/* Runs while_loop(condition, body, carried, more).  The body returns the new carried values.  If the condition is fake,
   the body runs once.  Under vmap, the loop continues while the condition is true for any example.  Returns 0, or -1
   and sets an error. */
static int opdi_region_while(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const int count = ((const opdi_program_region *)node->user)->nfirst;
    opd_value *const now = opdi_region_values(node->nin), *const next = opdi_region_values(count);
    if (!now || !next) { return -1; }
    if (node->nout != count) {
        return opdi_region_fail(node, "the loop returns another number of values than it carries");
    }
    memcpy(now, args, (size_t)node->nin * sizeof *now);
    if (opdi_region_return(now, now, count)) { return -1; }
    for (int again = 1; again > 0;) {
        opd_scope scope = opd_scope_open();
        opd_value test = opd_value_none();
        again = opdi_region_call(node, 0, now, node->nin, &test, 1) ? -1 : 1;
        const bool fake = again > 0 && test.tag == OPD_TAG_TENSOR && test.u.t->backend == OPD_META;
        const bool batched = again > 0 && !fake && test.tag == OPD_TAG_TENSOR && opd_tensor_is_batched(test.u.t);
        if (again > 0 && !fake) { again = batched ? opdi_region_holds_for(test.u.t) : opdi_region_holds(&test); }
        if (again > 0 && (opdi_region_call(node, 1, now, node->nin, next, count) ||
                          (batched && again == 1 && opdi_region_select(node, test.u.t, now, next, count)))) {
            again = -1;
        }
        for (int i = 0; i < count && again > 0; i++) {
            opd_value value;
            if (opdi_region_return(&value, &next[i], 1)) { again = -1; }
            else {
                opdi_value_drop(now[i]);
                now[i] = value;
            }
        }
        opd_scope_close(&scope);
        if (fake) { break; }
    }
    for (int i = 0; i < count; i++) {
        if (opd_ok()) { rets[i] = now[i]; } else { opdi_value_drop(now[i]); }
    }
    return opd_ok() ? 0 : -1;
}
/* Runs map_impl(body, sliced, more) or scan(body, carried, sliced, more).  Calls the body for each slice of the tensors
   `sliced` along dim 0.  The body returns the new carried values, followed by values that are stacked after the last
   call.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_region_scan(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const opdi_program_region *region = (const opdi_program_region *)node->user;
    const int carried = region->nfirst, sliced = region->nsliced, stacked = node->nout - carried;
    opd_value *const now = opdi_region_values(node->nin), *const outputs = opdi_region_values(node->nout);
    int64_t length = -1;
    for (int i = carried; i < carried + sliced; i++) {
        const int64_t size = args[i].tag == OPD_TAG_TENSOR && opd_ndim(args[i].u.t) ? opd_size(args[i].u.t, 0) : -1;
        if (size < 1 || (length >= 0 && size != length)) {
            return opdi_region_fail(node, "the values that it splits along dim 0 must be tensors with the same size "
                                    "there, which must not be 0");
        }
        length = size;
    }
    if (length < 0 || stacked < 0) { return opdi_region_fail(node, "there is no tensor to split along dim 0"); }
    opd_tensor **const made = opdi_scope_tensors((int)(stacked * length));
    if (!now || !outputs || !made || stacked * length > INT32_MAX) { return -1; }
    memcpy(now, args, (size_t)node->nin * sizeof *now);
    for (int64_t k = 0; k < length; k++) {
        for (int i = carried; i < carried + sliced; i++) { now[i] = opd_value_tensor(opd_select(args[i].u.t, 0, k)); }
        if (!opd_ok() || opdi_region_call(node, 0, now, node->nin, outputs, node->nout)) { return -1; }
        if (carried) { memcpy(now, outputs, (size_t)carried * sizeof *now); }
        for (int i = 0; i < stacked; i++) {
            const opd_value *const result = &outputs[carried + i];
            if (result->tag != OPD_TAG_TENSOR) { return opdi_region_fail(node, "a result is not a tensor"); }
            made[i * length + k] = result->u.t;
        }
    }
    for (int i = 0; i < stacked; i++) {
        outputs[carried + i] = opd_value_tensor(opd_stack(opd_tensors_of(made + i * length, length), 0));
    }
    if (carried) { memcpy(outputs, now, (size_t)carried * sizeof *now); }
    return opd_ok() ? opdi_region_return(rets, outputs, node->nout) : -1;
}
/* Runs associative_scan(combine, sliced, more).  Slice k of the result, along dim 0, combines the slices 0 to k, one
   after another.  Returns 0, or -1 and sets an error. */
static int opdi_region_associative(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const int count = ((const opdi_program_region *)node->user)->nfirst, more = node->nin - count;
    opd_value *const now = opdi_region_values(2 * count + more), *const outputs = opdi_region_values(count);
    const int64_t length = count && args[0].tag == OPD_TAG_TENSOR && opd_ndim(args[0].u.t) ? opd_size(args[0].u.t, 0)
        : -1;
    for (int i = 0; i < count; i++) {
        if (length < 1 || args[i].tag != OPD_TAG_TENSOR || !opd_ndim(args[i].u.t) ||
            opd_size(args[i].u.t, 0) != length) {
            return opdi_region_fail(node, "the values that it splits along dim 0 must be tensors with the same size "
                                    "there, which must not be 0");
        }
    }
    const bool fits = length > 0 && length <= INT32_MAX / (count + 1);
    opd_tensor **const made = fits ? opdi_scope_tensors((int)(count * length)) : NULL;
    if (!now || !outputs || !made || node->nout != count) {
        return !opd_ok() ? -1
            : opdi_region_fail(node, "its graph returns another number of values than it splits along dim 0");
    }
    memcpy(now + 2 * count, args + count, (size_t)more * sizeof *now);
    for (int64_t k = 0; k < length; k++) {
        for (int i = 0; i < count; i++) { now[count + i] = opd_value_tensor(opd_select(args[i].u.t, 0, k)); }
        if (!opd_ok() || (k && opdi_region_call(node, 0, now, 2 * count + more, outputs, count))) { return -1; }
        for (int i = 0; i < count; i++) {
            now[i] = k ? outputs[i] : now[count + i];
            if (now[i].tag != OPD_TAG_TENSOR) { return opdi_region_fail(node, "a result is not a tensor"); }
            made[i * length + k] = now[i].u.t;
        }
    }
    for (int i = 0; i < count; i++) {
        outputs[i] = opd_value_tensor(opd_stack(opd_tensors_of(made + i * length, length), 0));
    }
    return opd_ok() ? opdi_region_return(rets, outputs, count) : -1;
}
/* Calls the graph of a node.  If the node is a wrap_with_... node, sets its mode (grad mode or autocast) during the
   call.  Returns 0, or -1 and sets an error. */
static int opdi_region_wrap(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const opdi_program_region *region = (const opdi_program_region *)node->user;
    opd_value *const outputs = opdi_region_values(node->nout);
    const char *const mode = strstr(node->function->name, "_with_");
    if (!outputs) { return -1; }
    if (mode && strcmp(mode, "_with_set_grad_enabled") == 0) {
        const bool was = opd_grad_mode_set(region->modes[0].u.i != 0);
        const int rc = opdi_region_call(node, 0, args, node->nin, outputs, node->nout);
        (void)opd_grad_mode_set(was);
        return rc ? -1 : opdi_region_return(rets, outputs, node->nout);
    }
    if (mode) {
        const opd_value *const modes = region->modes;  /* [device, dtype, enabled, cache_enabled] */
        opd_autocast_region autocast = opd_autocast_begin((opd_backend)modes[0].u.device.type,
                                                          modes[1].tag == OPD_TAG_INT ? (opd_scalar_type)modes[1].u.i
                                                          : OPD_DTYPE_NONE, modes[2].u.i != 0,
                                                          modes[3].tag == OPD_TAG_BOOL ? (int)modes[3].u.i : -1);
        const int rc = opdi_region_call(node, 0, args, node->nin, outputs, node->nout);
        opd_autocast_end(&autocast);
        return rc ? -1 : opdi_region_return(rets, outputs, node->nout);
    }
    return opdi_region_call(node, 0, args, node->nin, outputs, node->nout) ? -1
        : opdi_region_return(rets, outputs, node->nout);
}
OPDI_INTERNAL int opdi_region_run(const opdi_gnode *node, const opd_value *args, opd_value *rets);
static const opdi_region_kind opdi_regions[] = {
    {{"cond", opdi_region_run, true}, opdi_region_cond, 2, 0, 1},
    {{"while_loop", opdi_region_run, true}, opdi_region_while, 2, 0, 2},
    {{"map_impl", opdi_region_run, true}, opdi_region_scan, 1, 0, 2},
    {{"scan", opdi_region_run, true}, opdi_region_scan, 1, 0, 3},
    {{"associative_scan", opdi_region_run, true}, opdi_region_associative, 1, 0, 2},
    {{"hints_wrapper", opdi_region_run, true}, opdi_region_wrap, 1, 0, 1},
    {{"wrap_with_set_grad_enabled", opdi_region_run, true}, opdi_region_wrap, 1, 1, -1},
    {{"wrap_with_autocast", opdi_region_run, true}, opdi_region_wrap, 1, 4, -1},
    {{"strict_mode", opdi_region_run, true}, opdi_region_wrap, 1, 0, 1},
    {{"wrap", opdi_region_run, true}, opdi_region_wrap, 1, 0, -1},
    {{"tag_activation_checkpoint", opdi_region_run, true}, opdi_region_wrap, 1, 0, -1},
    {{"invoke_subgraph", opdi_region_run, true}, opdi_region_wrap, 1, 0, -1},
    {{"run_const_graph", opdi_region_run, true}, opdi_region_wrap, 1, 0, 1}};
/* Runs the node in a new scope; only the results live longer than this scope.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_region_run(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const opdi_region_kind *const kind = (const opdi_region_kind *)(const void *)node->function;
    opd_scope scope = opd_scope_open();
    const int rc = kind->inside(node, args, rets);
    opd_scope_close(&scope);
    return rc;
}
OPDI_INTERNAL const opdi_region_kind *opdi_region_find(const char *target) {
    static const char begin[] = "torch.ops.higher_order.";
    if (strncmp(target, begin, sizeof begin - 1) != 0) { return NULL; }
    for (size_t i = 0; i < sizeof opdi_regions / sizeof *opdi_regions; i++) {
        if (strcmp(opdi_regions[i].function.name, target + sizeof begin - 1) == 0) { return &opdi_regions[i]; }
    }
    return NULL;
}
