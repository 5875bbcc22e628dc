#include "compiler.h"

//== parts of graphs that a compiler of the program, or of a device, computes ==========================================
//
//  A part that a compiler takes becomes one node of the graph, which calls the compiled function.  The node keeps the
//  part as a graph, too.  Under a transform, for gradients, while a graph is recorded, and for tensors without memory,
//  it runs this graph: so a part works everywhere where its calls have worked.

typedef struct opdi_delegate {
    opdi_guser user;                              /* must be the first member; see opdi_gfunction */
    opdi_gfunction called;
    opd_part_function function;
    opd_graph *part;
    char name[64];
} opdi_delegate;

static void opdi_part_function_end(const opd_part_function *function) {
    if (function->destroy) { function->destroy(function->user); }
}
static void opdi_delegate_destroy(opdi_guser *user) {
    opdi_delegate *const delegate = (opdi_delegate *)(void *)user;
    opdi_part_function_end(&delegate->function);
    opd_graph_free(delegate->part);
    opdi_free(delegate, sizeof *delegate);
}
/* Returns whether the compiled function can compute a call with these tensors; otherwise the part runs as a graph. */
static bool opdi_delegate_applies(const opd_value *args, int32_t count) {
    const opdi_thread *const thread = opdi_self();
    bool applies = !opdi_compiled_modes(thread);
    for (int32_t i = 0; i < count && applies; i++) {
        applies = args[i].tag == OPD_TAG_TENSOR && !opdi_compiled_tensor(thread, args[i].u.t, false, true) &&
            args[i].u.t->backend != OPD_META && args[i].u.t->backend != OPD_LAZY;
    }
    return applies;
}
/* Returns whether a tensor has the dtype and the number of dims that a graph knows of a value. */
static bool opdi_gvalue_is_like(const opdi_gvalue *value, const opd_tensor *tensor) {
    return tensor->dtype == value->dtype && tensor->ndim == value->ndim;
}
/* Checks that a function has returned the tensors that the graph of the part knows, if it was given those that this
   graph knows.  Returns 0, or -1 and sets an error. */
static int opdi_delegate_check(const opd_graph *part, opd_tensor *const *inputs, opd_tensor *const *outputs) {
    for (int32_t i = 0; i < part->ninputs; i++) {
        if (!opdi_gvalue_is_like(part->inputs[i], inputs[i])) { return 0; }
    }
    for (int32_t i = 0; i < part->noutputs; i++) {
        const opdi_gvalue *const value = part->outputs[i];
        if (value->dtype < 0 || opdi_gvalue_is_like(value, outputs[i])) { continue; }
        return opd_fail(OPD_ERROR_KERNEL, "output %d is a %s tensor with %d dims, but the graph has a %s tensor "
                        "with %d dims", (int)i, opd_dtype_name((opd_scalar_type)outputs[i]->dtype), outputs[i]->ndim,
                        opd_dtype_name((opd_scalar_type)value->dtype), value->ndim);
    }
    return 0;
}
/* Runs a node of the graph that stands for a part. */
static int opdi_delegate_run(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const opdi_delegate *const delegate = (const opdi_delegate *)node->user;
    opd_tensor **const inputs = opdi_scope_tensors(node->nin + 1);
    opd_tensor *outputs[OPD_TRANSFORM_OUTPUTS];
    if (!inputs) { return -1; }
    for (int32_t i = 0; i < node->nin; i++) { inputs[i] = args[i].tag == OPD_TAG_TENSOR ? args[i].u.t : NULL; }
    int count = 0;
    if (opdi_delegate_applies(args, node->nin)) {
        memset(outputs, 0, sizeof outputs);       /* so that an output which the function forgets is NULL */
        count = opdi_outputs_check(delegate->function.run(delegate->function.user, inputs, node->nin, outputs), outputs,
                                   delegate->name, "the function");
        if (count > 0 && count != node->nout) {
            return opd_fail(OPD_ERROR_KERNEL, "%s: the function returned %d outputs, but the part has %d",
                            delegate->name, count, (int)node->nout);
        }
        if (count > 0 && opdi_delegate_check(delegate->part, inputs, outputs)) { return -1; }
    }
    if (count == 0) { count = opd_graph_run(delegate->part, inputs, node->nin, outputs, OPD_TRANSFORM_OUTPUTS); }
    for (int i = 0; i < count; i++) {
        rets[i] = opd_value_tensor(outputs[i]);
        opdi_retain(outputs[i]);
    }
    return count < 0 ? -1 : 0;
}
/* Gives the uses of `value` behind the node `last`, the end of a part, the value `by`. */
static void opdi_part_output_replace(opd_graph *graph, const opdi_gnode *last, opdi_gvalue *value, opdi_gvalue *by) {
    const opdi_graph_uses *const users = graph->users;
    opdi_graph_order(graph);
    for (int32_t at = value->first_use, next; at >= 0; at = next) {
        const opdi_guse *const use = &users->uses[at];
        const opdi_gnode *user = use->node ? use->node : use->block->owner;
        next = use->next;
        while (user && user->block != last->block) { user = user->block->owner; }
        if (!user || user->order > last->order) { opdi_graph_use_set(graph, at, by); }
    }
}
/* Makes the node that stands for a part, behind the part, and removes the nodes of the part.  The node owns `function`
   and `extracted`, if this succeeds.  Returns 0, or -1 and sets an error. */
static int opdi_graph_outline(opd_graph *graph, const opd_part *part, const opd_part_function *function,
                              opd_graph *extracted) {
    opdi_delegate *const delegate = (opdi_delegate *)opdi_alloc(sizeof *delegate);
    opdi_gnode *const last = part->nodes[part->nnodes - 1];
    if (!delegate || !opdi_graph_users(graph)) {
        opdi_free(delegate, delegate ? sizeof *delegate : 0);
        return -1;
    }
    memset(delegate, 0, sizeof *delegate);
    (void)snprintf(delegate->name, sizeof delegate->name, "%s", function->name ? function->name : "part");
    delegate->called.name = delegate->name;
    delegate->called.run = opdi_delegate_run;
    delegate->called.flags = OPDI_GFUNCTION_COUNTED;
    for (int i = 0; i < part->nnodes; i++) {
        if (opdi_gnode_draws_inside(part->nodes[i])) { delegate->called.flags |= OPDI_GFUNCTION_DRAWS; }
    }
    delegate->user.refs = 1;
    delegate->user.destroy = opdi_delegate_destroy;
    opdi_gblock *const into = graph->into;
    opdi_gnode *const at = graph->at;
    graph->into = last->block->owner ? last->block : NULL;
    graph->at = last->next;
    opdi_gnode *const node = opdi_graph_function_node(graph, &delegate->called, delegate, part);
    graph->into = into;
    graph->at = at;
    if (!node) {
        opdi_free(delegate, sizeof *delegate);
        return -1;
    }
    if (!opdi_graph_users(graph) || !opd_ok()) {
        opdi_gnode_remove(graph, node);           /* frees the delegate, which owns nothing yet */
        return -1;
    }
    delegate->function = *function;
    delegate->part = extracted;
    if (extracted->kept) {                        /* the graph itself keeps the program alive, or belongs to it */
        extracted->home->drop(extracted->kept);
        extracted->kept = NULL;
    }
    node->place = last->place;
    for (int i = 0; i < part->noutputs; i++) { opdi_part_output_replace(graph, last, part->outputs[i], node->out[i]); }
    for (int i = part->nnodes - 1; i >= 0; i--) { opdi_gnode_remove(graph, part->nodes[i]); }
    return 0;
}

//== compiling the parts of a graph ====================================================================================

/* What became of a part. */
typedef struct opdi_taken { opd_graph *part; opd_part_function function; bool taken; } opdi_taken;

/* Extracts a part and lets the compiler compile it.  Returns 0, or -1 and sets an error. */
static int opdi_part_take(opd_graph *graph, const opd_part_compiler *compiler, const opd_part *part,
                          opdi_taken *taken) {
    int calls = 0;
    memset(taken, 0, sizeof *taken);
    for (int i = 0; i < part->nnodes; i++) { calls += part->nodes[i]->kind == OPDI_GNODE_OP; }
    if (calls < compiler->least || part->noutputs > OPD_TRANSFORM_OUTPUTS || part->noutputs == 0) { return 0; }
    if (!(taken->part = opd_graph_extract_part(graph, part))) { return -1; }
    const uint64_t changes = graph->changes;
    const int rc = compiler->compile(compiler->user, taken->part, &taken->function);
    if (rc < 0 || !opd_ok()) {
        if (opd_ok()) { (void)opd_fail(OPD_ERROR_KERNEL, "opd_graph_delegate: the compiler failed"); }
        return opdi_graph_where(part->nodes[0]);
    }
    taken->taken = rc == 0;
    if (graph->changes != changes) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_delegate: the compiler has changed the graph");
    }
    if (taken->taken && !taken->function.run) {
        taken->taken = false;
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_delegate: the compiler has set no function `run`");
    }
    return 0;
}
static int opdi_graph_delegate(opd_graph *graph, const opd_part_compiler *compiler) {
    int count = 0, most = 0, done = 0, rc = 0, taken = 0;
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) { most++; }
    opd_part *const parts = (opd_part *)opdi_scope_alloc(((size_t)most + 1) * sizeof *parts);
    if (!parts || (count = opd_graph_partition(graph, compiler->supported, compiler->user, parts, most)) < 0) {
        return -1;
    }
    opdi_taken *const all = (opdi_taken *)opdi_scope_alloc(((size_t)count + 1) * sizeof *all);
    if (!all) { return -1; }
    for (; done < count && rc == 0; done++) { rc = opdi_part_take(graph, compiler, &parts[done], &all[done]); }
    for (int i = done - 1; i >= 0; i--) {         /* the inputs of a part may be outputs of parts before it */
        bool owned = false;
        if (all[i].taken && rc == 0) {
            rc = opdi_graph_outline(graph, &parts[i], &all[i].function, all[i].part);
            owned = rc == 0;
        }
        taken += owned;
        if (owned) { continue; }
        if (all[i].taken) { opdi_part_function_end(&all[i].function); }
        opd_graph_free(all[i].part);
    }
    return rc ? -1 : taken;
}
int opd_graph_delegate(opd_graph *graph, const opd_part_compiler *compiler) {
    if (!opd_ok()) { return -1; }
    if (!graph || !compiler || !compiler->supported || !compiler->compile) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_delegate: the %s NULL", !graph ? "graph is" : !compiler
                        ? "compiler is" : "functions `supported` and `compile` must not be");
    }
    opd_scope scope = opd_scope_open();
    const int count = opdi_graph_delegate(graph, compiler);
    opd_scope_close(&scope);
    return count;
}
