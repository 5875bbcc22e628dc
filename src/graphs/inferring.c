#include "graphs.h"

//== what a graph knows of its tensors =================================================================================
//
//  A copy of the graph returns all tensors of its body.  It runs in a fake mode, which computes no numbers, and its
//  outputs tell the dtypes and sizes of the graph's values.

/* Lists the tensors of the graph's body in `values` (if it is not NULL), and returns their number. */
static int32_t opdi_graph_tensors(const opd_graph *graph, opdi_gvalue **values) {
    int32_t count = 0;
    for (const opdi_gnode *node = graph->body.first; node; node = node->next) {
        for (int32_t i = 0; i < node->nout; i++) {
            if (node->out[i]->tag != OPD_TAG_TENSOR || node->kind == OPDI_GNODE_CONSTANT) { continue; }
            if (values) { values[count] = node->out[i]; }
            count++;
        }
    }
    return count;
}
/* Makes the graph forget what it knows of a value. */
static void opdi_gvalue_forget(opdi_gvalue *value) {
    value->dtype = -1;
    value->ndim = 0;
    value->dims = NULL;
    value->open = NULL;
}
static int opdi_gvalue_learn(opd_graph *graph, opdi_gvalue *value, const opd_tensor *tensor) {
    const opd_device device = opd_tensor_device(tensor);
    if (opdi_gvalue_describe(graph, value, tensor)) { return -1; }
    value->backend = (uint8_t)device.type;
    value->index = (int8_t)device.index;
    return 0;
}
/* Runs the copy on fakes of the inputs.  Writes its outputs.  Returns 0, or -1 and sets an error. */
static int opdi_graph_run_fakes(const opd_graph *copy, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    opd_tensor **const fakes = opdi_scope_tensors(ninputs + 1);
    if (!fakes) { return -1; }
    for (int i = 0; i < ninputs; i++) { if (!(fakes[i] = opd_fake_tensor(inputs[i]))) { return -1; } }
    return opd_graph_run(copy, fakes, ninputs, outputs, copy->noutputs) < 0 ? -1 : 0;
}
static int opdi_graph_infer(opd_graph *graph, opd_graph *copy, opd_tensor *const *inputs, int ninputs) {
    const int32_t count = opdi_graph_tensors(graph, NULL);
    opdi_gvalue **const values = (opdi_gvalue **)opdi_scope_alloc(((size_t)count + 1) * sizeof *values);
    opdi_gvalue **const ends = (opdi_gvalue **)opdi_graph_alloc(copy, ((size_t)count + 1) * sizeof *ends);
    opd_tensor **const outputs = opdi_scope_tensors(count + 1);
    if (!values || !ends || !outputs) { return -1; }
    (void)opdi_graph_tensors(graph, values);
    (void)opdi_graph_tensors(copy, ends);
    if (opdi_append_outputs(copy, ends, count, false)) { return -1; }
    opd_fake_block block = opd_fake_begin();
    int rc = opdi_graph_run_fakes(copy, inputs, ninputs, outputs);
    for (opdi_gnode *node = rc == 0 ? graph->body.first : NULL; node; node = opdi_gnode_after(node)) {
        if (node->kind == OPDI_GNODE_CONSTANT) { continue; }
        for (int32_t i = 0; i < node->nout; i++) { opdi_gvalue_forget(node->out[i]); }
        for (int32_t k = 0; k < node->nblocks; k++) {
            for (int32_t i = 0; i < node->blocks[k].ninputs; i++) { opdi_gvalue_forget(node->blocks[k].inputs[i]); }
        }
    }
    for (int i = 0; i < ninputs && rc == 0; i++) { rc = opdi_gvalue_learn(graph, graph->inputs[i], inputs[i]); }
    for (int32_t i = 0; i < count && rc == 0; i++) { rc = opdi_gvalue_learn(graph, values[i], outputs[i]); }
    opd_fake_end(&block);
    if (rc == 0 && graph->sizes) {
        for (int i = 0; i < ninputs; i++) { graph->inputs[i]->open = NULL; }
        graph->sizes = NULL;
    }
    return rc;
}
int opd_graph_infer(opd_graph *graph, opd_tensor *const *inputs, int ninputs) {
    if (!opd_ok()) { return -1; }
    if (!graph || ninputs != graph->ninputs || (ninputs && !inputs)) {
        return !graph || ninputs == graph->ninputs
            ? opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_infer: the %s NULL", graph ? "inputs are" : "graph is")
            : opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_infer: expected %d inputs but got %d", (int)graph->ninputs,
                       ninputs);
    }
    for (int i = 0; i < ninputs; i++) {
        if (!inputs[i]) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_infer: input %d is NULL", i); }
    }
    opd_scope scope = opd_scope_open();
    opd_graph *const copy = opd_graph_copy(graph);
    const int rc = copy ? opdi_graph_infer(graph, copy, inputs, ninputs) : -1;
    opd_graph_free(copy);
    opd_scope_close(&scope);
    return rc;
}
