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
/* The same for the outputs of a condition or loop, of which there are `count` (-1: it has failed). */
static int opdi_region_give(const opdi_gnode *node, opd_value *rets, const opd_value *outputs, int count) {
    if (count >= 0 && count != node->nout) {
        return opdi_region_fail(node, "its graph takes or returns another number of values than expected");
    }
    return count < 0 ? -1 : opdi_region_return(rets, outputs, count);
}
/* Calls one of the graphs of a node (opdi_control.call). */
static int opdi_region_flow_call(const opdi_control *flow, int which, const opd_value *args, int nargs,
                                 opd_value *outputs, int cap) {
    const opdi_gnode *const node = (const opdi_gnode *)flow->user;
    const int count = opd_graph_noutputs(((const opdi_program_region *)node->user)->graphs[which]);
    return opdi_region_call(node, which, args, nargs, outputs, OPDI_MIN(count, cap)) ? -1 : count;
}
static opdi_control opdi_region_flow(const opdi_gnode *node) {
    opdi_control flow = {node->function->name, {"the first graph", "the second graph"}, opdi_region_flow_call, node,
                         node->nout, false, false, false, false};
#if !defined(OPD_NO_COMPILER)
    const opdi_program_region *const region = (const opdi_program_region *)node->user;
    flow.closed = true;
    for (int i = 0; i < 2 && region->graphs[i]; i++) {
        flow.closed = flow.closed && opdi_graph_is_closed(region->graphs[i]);
    }
#endif
    return flow;
}
OPDI_INTERNAL int opdi_region_record(const opdi_gnode *node, const opd_value *args, opd_value *outputs);
/* Records a condition or loop as a node of the trace, if this thread records.  Returns 0; -1 and sets an error; or
   OPDI_CONTROL_DECLINES if it must run as outside of a trace. */
static int opdi_region_recorded(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    if (OPDI_LIKELY(!opdi_self()->innermost.tracer)) { return OPDI_CONTROL_DECLINES; }
    opd_value *const outputs = opdi_control_values(node->nout);
    const int rc = outputs ? opdi_region_record(node, args, outputs) : -1;
    return rc ? rc : opdi_region_return(rets, outputs, node->nout);
}
/* Runs cond(predicate, true graph, false graph, operands); the predicate is args[0].  Returns 0, or -1 and sets an
   error. */
static int opdi_region_cond(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const int recorded = opdi_region_recorded(node, args, rets);
    if (recorded != OPDI_CONTROL_DECLINES) { return recorded; }
    const opdi_control flow = opdi_region_flow(node);
    opd_value *const outputs = opdi_control_values(node->nout);
    const int count = !outputs ? -1
        : opdi_control_cond(&flow, &args[0], args + 1, node->nin - 1, outputs, node->nout);
    return opdi_region_give(node, rets, outputs, count);
}
/* Runs while_loop(condition, body, carried, more).  The body returns the new carried values.  Returns 0, or -1 and sets
   an error. */
static int opdi_region_while(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const int recorded = opdi_region_recorded(node, args, rets);
    if (recorded != OPDI_CONTROL_DECLINES) { return recorded; }
    const opdi_control flow = opdi_region_flow(node);
    const int count = ((const opdi_program_region *)node->user)->nfirst;
    opd_value *const outputs = opdi_control_values(count);
    if (node->nout != count) {
        return opdi_region_fail(node, "the loop returns another number of values than it carries");
    }
    if (!outputs || opdi_control_while(&flow, args, node->nin, count, outputs)) { return -1; }
    return opdi_region_return(rets, outputs, count);
}
/* Runs map_impl(body, sliced, more) or scan(body, carried, sliced, more).  Calls the body for each slice of the tensors
   `sliced` along dim 0.  The body returns the new carried values, followed by values that are stacked after the last
   call.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_region_scan(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const opdi_program_region *region = (const opdi_program_region *)node->user;
    const int recorded = opdi_region_recorded(node, args, rets);
    if (recorded != OPDI_CONTROL_DECLINES) { return recorded; }
    const opdi_control flow = opdi_region_flow(node);
    opd_value *const outputs = opdi_control_values(node->nout);
    const int count = outputs
        ? opdi_control_scan(&flow, args, node->nin, region->nfirst, region->nsliced, false, outputs) : -1;
    return opdi_region_give(node, rets, outputs, count);
}
/* Runs associative_scan(combine, sliced, more).  Slice k of the result, along dim 0, combines the slices 0 to k, one
   after another.  Returns 0, or -1 and sets an error. */
static int opdi_region_associative(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const int count = ((const opdi_program_region *)node->user)->nfirst, more = node->nin - count;
    const uint64_t since = opdi_self()->sequence;
    opd_value *const now = opdi_control_values(2 * count + more), *const outputs = opdi_control_values(count);
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
    if (opd_ok() && opdi_control_tie(since, args, node->nin, outputs, count) < 0) { return -1; }
    return opd_ok() ? opdi_region_return(rets, outputs, count) : -1;
}
/* Calls the graph of a node.  If the node is a wrap_with_... node, sets its mode (grad mode or autocast) during the
   call.  Returns 0, or -1 and sets an error. */
static int opdi_region_wrap(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const opdi_program_region *region = (const opdi_program_region *)node->user;
    opd_value *const outputs = opdi_control_values(node->nout);
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
/* Returns the kind of a node that calls a function; NULL if it is none of these. */
OPDI_INTERNAL const opdi_region_kind *opdi_region_of(const opdi_gnode *node) {
    for (size_t i = 0; i < sizeof opdi_regions / sizeof *opdi_regions; i++) {
        if (node->function == &opdi_regions[i].function) { return &opdi_regions[i]; }
    }
    return NULL;
}
