#include "programs.h"

//== conditions and loops of a program in a trace ======================================================================
//
//  While a graph is recorded (opd_graph_trace), a condition or loop of a program that runs becomes a node with blocks,
//  exactly as opd_cond, opd_while, opd_scan and opd_map become one (see >>recorded_control), so that its derivatives,
//  its maps over examples and saved programs work, too.  The functions of the recording call the graphs of the node.
//  Arguments that are not tensors are constants of the trace.

#if !defined(OPD_NO_TRANSFORMS)
/* The data of these functions. */
typedef struct opdi_region_traced {
    opd_program *program;        /* a reference; the program owns the graphs */
    const opdi_graph_home *home; /* drops the reference */
    const opdi_program_region *region;
    size_t bytes;
    int nargs;                   /* the number of arguments of the graphs; the last one is the device */
    opd_value args[1];           /* [nargs]; an element of the tag OPD_TAG_TENSOR stands for the next tensor that a
                                    function gets */
} opdi_region_traced;

static void opdi_region_traced_free(void *user) {
    opdi_region_traced *const traced = (opdi_region_traced *)user;
    traced->home->drop(traced->program);
    opdi_free(traced, traced->bytes);
}
/* Returns a tensor for a result of a graph: the condition of a loop may be a bool. */
static opd_tensor *opdi_region_traced_result(const opd_value *value) {
    return value->tag == OPD_TAG_TENSOR ? value->u.t : opd_full(opd_ints_of(NULL, 0), *value, OPD_BOOL);
}
/* Calls graph `which` (opd_transform_fn).  Writes its results that are tensors to `out`, and returns their number. */
static int opdi_region_traced_call(const opdi_region_traced *traced, int which, opd_tensor *const *in, int n,
                                   opd_tensor **out) {
    const opd_graph *const graph = traced->region->graphs[which];
    const int noutputs = opd_graph_noutputs(graph);
    opd_value *const args = opdi_control_values(traced->nargs), *const outputs = opdi_control_values(noutputs);
    int at = 0, count = 0;
    if (!args || !outputs) { return -1; }
    for (int i = 0; i < traced->nargs; i++) {
        args[i] = traced->args[i].tag == OPD_TAG_TENSOR && at < n ? opd_value_tensor(in[at++]) : traced->args[i];
    }
    const int nargs = traced->nargs - !traced->region->wants_device[which];
    if (opdi_graph_run_values(graph, args, nargs, outputs, noutputs) < 0) { return -1; }
    for (int i = 0; i < noutputs; i++) {
        if (outputs[i].tag != OPD_TAG_TENSOR && outputs[i].tag != OPD_TAG_BOOL) { continue; }
        if (count < OPD_TRANSFORM_OUTPUTS) { out[count] = opdi_region_traced_result(&outputs[i]); }
        count++;
    }
    return opd_ok() ? count : -1;
}
static int opdi_region_traced_first(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opdi_region_traced_call((const opdi_region_traced *)user, 0, in, n, out);
}
static int opdi_region_traced_second(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opdi_region_traced_call((const opdi_region_traced *)user, 1, in, n, out);
}

/* Returns whether result `i` of the graphs of a node is the same constant, but not a tensor, whichever graph runs. */
static bool opdi_region_constant(const opdi_program_region *region, int body, bool both, int i, opd_value *constant) {
    const opdi_gnode *const node = region->graphs[body]->outputs[i]->node;
    if (!node || node->kind != OPDI_GNODE_CONSTANT) { return false; }
    *constant = node->constant;
    if (!both) { return true; }
    const opd_graph *const other = region->graphs[!body];
    const opdi_gnode *const its = i < other->noutputs ? other->outputs[i]->node : NULL;
    return its && its->kind == OPDI_GNODE_CONSTANT && opdi_control_same(constant, &its->constant);
}
/* Returns whether a node can be recorded.  The first `fixed` arguments are carried or sliced, and must be tensors.  The
   results must be tensors, or constants if the node is a condition. */
static bool opdi_region_is_recordable(const opdi_gnode *node, const opd_value *args, int fixed, bool cond) {
    const opdi_program_region *const region = (const opdi_program_region *)node->user;
    const int body = !cond && region->graphs[1];
    const opd_graph *const graph = region->graphs[body];
    opd_value constant;
    bool good = fixed < node->nin && opd_graph_noutputs(graph) == node->nout &&
        (!cond || opd_graph_noutputs(region->graphs[1]) == node->nout);
    for (int i = 0; i < fixed && good; i++) { good = args[i].tag == OPD_TAG_TENSOR; }
    for (int i = 0; i < node->nout && good; i++) {
        good = graph->outputs[i]->tag == OPD_TAG_TENSOR &&
            (!cond || region->graphs[1]->outputs[i]->tag == OPD_TAG_TENSOR)
            ? true : cond && opdi_region_constant(region, 0, true, i, &constant);
    }
    for (int i = cond; i < node->nin && good; i++) {
        const int32_t tag = args[i].tag;
        good = tag == OPD_TAG_TENSOR || tag == OPD_TAG_INT || tag == OPD_TAG_FLOAT || tag == OPD_TAG_BOOL ||
            tag == OPD_TAG_NONE || tag == OPD_TAG_DEVICE;
    }
    return good;
}
/* Makes the data of the functions, and moves the arguments that are tensors to task->args.  Returns NULL and sets an
   error if memory runs out. */
static opdi_region_traced *opdi_region_traced_new(const opdi_gnode *node, const opd_value *args, int nargs,
                                                  opdi_control_task *task) {
    const opdi_program_region *const region = (const opdi_program_region *)node->user;
    const size_t bytes = sizeof(opdi_region_traced) + (size_t)nargs * sizeof(opd_value);
    opdi_region_traced *const traced = (opdi_region_traced *)opdi_alloc(bytes);
    task->args = opdi_control_values(nargs);
    if (!traced || !task->args) {
        opdi_free(traced, bytes);
        return NULL;
    }
    traced->home = region->program->graph->home;
    traced->program = traced->home->keep(region->program);
    traced->region = region;
    traced->bytes = bytes;
    traced->nargs = nargs;
    for (int i = 0; i < nargs; i++) {
        traced->args[i] = args[i];
        if (args[i].tag == OPD_TAG_TENSOR) { task->args[task->nargs++] = args[i]; }
    }
    return traced;
}
/* Records a condition or loop as a node of the trace, if this thread records.  Writes its results, which belong to the
   innermost scope, to `outputs`.  Returns 0; -1 and sets an error; or OPDI_CONTROL_DECLINES if it must run as outside
   of a trace. */
OPDI_INTERNAL int opdi_region_record(const opdi_gnode *node, const opd_value *args, opd_value *outputs) {
    const opdi_program_region *const region = (const opdi_program_region *)node->user;
    const bool cond = strcmp(node->function->name, "cond") == 0, loop = !cond && region->graphs[1];
    const int fixed = region->nfirst + region->nsliced, body = loop;
    opdi_control_task task;
    memset(&task, 0, sizeof task);
    if (cond && args[0].tag == OPD_TAG_TENSOR) { task.pred = args[0].u.t; }
    if (cond != (task.pred != NULL) || !opdi_region_is_recordable(node, args, fixed, cond) ||
        !opdi_control_is_recorded(&task)) { return OPDI_CONTROL_DECLINES; }
    opdi_region_traced *const traced = opdi_region_traced_new(node, args + cond, node->nin - cond, &task);
    opd_value *const values = opdi_control_values(2 * OPD_TRANSFORM_OUTPUTS);
    if (!traced || !values) {
        if (traced) { opdi_region_traced_free(traced); }
        return -1;
    }
    task.flow.who = node->function->name;
    task.flow.names[0] = cond ? "the graph for true" : loop ? "the graph of the condition" : "the graph";
    task.flow.names[1] = cond ? "the graph for false" : loop ? "the graph of the body" : NULL;
    task.functions.fns[0] = opdi_region_traced_first;
    task.functions.fns[1] = cond || loop ? opdi_region_traced_second : NULL;
    task.functions.user = traced;
    task.destroy = opdi_region_traced_free;
    task.ncarried = region->nfirst;
    task.nsliced = region->nsliced;
    task.nothers = task.nargs - fixed;
    const int count = opdi_control_record(&task, values);
    if (count < 0) { return -1; }
    for (int i = 0, at = 0; i < node->nout; i++) {
        if (region->graphs[body]->outputs[i]->tag != OPD_TAG_TENSOR) {
            (void)opdi_region_constant(region, body, cond, i, &outputs[i]);
            continue;
        }
        if (at == count) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: its graph returns another number of values than expected",
                            node->function->name);
        }
        outputs[i] = values[at++];
    }
    return 0;
}
#else
OPDI_INTERNAL int opdi_region_record(const opdi_gnode *node, const opd_value *args, opd_value *outputs) {
    (void)node;
    (void)args;
    (void)outputs;
    return OPDI_CONTROL_DECLINES;
}
#endif
