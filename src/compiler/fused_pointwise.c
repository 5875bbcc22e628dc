#include "compiler.h"

//== fusion of pointwise operators =====================================================================================
//
//  Groups of pointwise operators become parts that are compiled as C: each runs as one loop.  The other nodes of the
//  graph, and the parts under transforms and for gradients, run as before.

typedef struct opdi_fused { opd_graph *graph; opd_compiled *compiled; } opdi_fused;

static void opdi_fused_free(void *user) {
    opdi_fused *const fused = (opdi_fused *)user;
    opd_compiled_free(fused->compiled);
    opd_graph_free(fused->graph);
    opdi_free(fused, sizeof *fused);
}
static bool opdi_fused_takes(void *user, const opd_graph_node *node) {
    const opd_op *const op = opd_graph_node_op(node);
    (void)user;
    return op && op->definition && op->definition->lib == opdi_registry.aten &&
        (opd_op_tags(op) & OPD_OPTAG_POINTWISE) && !opd_graph_node_has_effects(node);
}
static int opdi_fused_run(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    return opd_compiled_function(((const opdi_fused *)user)->compiled, inputs, ninputs, outputs);
}
static int opdi_fused_compile(void *user, const opd_graph *part, opd_part_function *function) {
    opdi_fused *const fused = (opdi_fused *)opdi_alloc(sizeof *fused);
    (void)user;
    if (!fused) { return -1; }
    memset(fused, 0, sizeof *fused);
    fused->graph = opd_graph_copy(part);
    fused->compiled = fused->graph ? opd_graph_compile(fused->graph, NULL) : NULL;
    if (!fused->compiled) {
        opdi_fused_free(fused);
        return -1;
    }
    function->name = "pointwise";
    function->run = opdi_fused_run;
    function->user = fused;
    function->destroy = opdi_fused_free;
    return 0;
}
int opd_graph_fuse_pointwise(opd_graph *graph, int least) {
    opd_part_compiler compiler;
    memset(&compiler, 0, sizeof compiler);
    compiler.supported = opdi_fused_takes;
    compiler.compile = opdi_fused_compile;
    compiler.least = least > 0 ? least : 2;
    return opd_graph_delegate(graph, &compiler);
}
