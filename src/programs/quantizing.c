#include "programs.h"

//== recording and quantising loaded programs ==========================================================================

/* Runs a program as a function of the tensors of its module, and of its inputs that are not fixed.  Returns the number
   of outputs, or -1 and sets an error. */
static int opdi_program_of_tensors(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    const opd_program *const program = (const opd_program *)user;
    const int first = (int)opd_module_count(program->module), count = ninputs - first;
    opd_value *const values = (opd_value *)opdi_scope_alloc((size_t)(count + 1) * sizeof *values);
    opd_value results[OPD_TRANSFORM_OUTPUTS];
    if (!values || opdi_function_outputs("opd_program_save", program->noutputs, "opd_program_run") < 0) { return -1; }
    for (int i = 0; i < count; i++) { values[i] = opd_value_tensor(inputs[first + i]); }
    const int found = opdi_program_run_with(program, NULL, inputs, values, count, results, OPD_TRANSFORM_OUTPUTS);
    for (int i = 0; i < found; i++) {
        if (results[i].tag != OPD_TAG_TENSOR) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: output '%.200s' is not a tensor, so the changed "
                            "program cannot be saved", program->outputs[i]);
        }
        outputs[i] = results[i].u.t;
    }
    return found;
}
/* Records a program anew, as a graph whose inputs are the tensors of its module and the inputs that are not fixed.
   Returns NULL and sets an error on failure. */
OPDI_INTERNAL opd_graph *opdi_program_record(const opd_program *program) {
    opdi_again_input *const inputs = (opdi_again_input *)opdi_scope_alloc(
        (size_t)(program->ninputs + 1) * sizeof *inputs);
    int count = 0;
    if (!inputs) { return NULL; }
    if (opd_program_writes(program)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: the graph of the program was changed, and it writes into "
                       "tensors: only a program as it was loaded can be saved then");
        return NULL;
    }
    for (int i = 0; i < program->ninputs; i++) {
        const opdi_program_input *const its = &program->inputs[i];
        if (its->constant) { continue; }
        if (its->tag != OPD_TAG_TENSOR || its->dtype == OPD_DTYPE_NONE) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: input '%.200s' is not a tensor, so the changed "
                           "program cannot be saved", its->name);
            return NULL;
        }
        opdi_again_input *const input = &inputs[count++];
        input->name = its->name;
        input->dtype = its->dtype;
        input->ndim = its->ndim;
        input->value = NULL;
        for (int k = 0; k < its->ndim; k++) { input->sizes[k] = its->dims[k].size; }
        for (int k = 0; k < program->graph->ninputs; k++) {
            const opdi_program_place *const from = &program->from[k];
            if (from->kind == OPDI_FROM_USER && from->at == i) { input->value = program->graph->inputs[k]; }
        }
        for (int k = 0; k < its->ndim; k++) {
            if (!its->dims[k].text || (input->value && input->value->open && input->value->open[k])) { continue; }
            (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_program_save: size %d of input '%.200s' is %.200s, with which the "
                           "changed program cannot be recorded", k, its->name, its->dims[k].text);
            return NULL;
        }
    }
    const bool was = opd_grad_mode_set(false);
    opd_graph *const made = opdi_graph_again(program->graph, program->module, inputs, count, opdi_program_of_tensors,
                                             (void *)(uintptr_t)program);
    (void)opd_grad_mode_set(was);
    return made;
}
static int opdi_program_quantized_run(void *user, const opd_graph *graph, opd_tensor *const *tensors,
                                      const opd_value *inputs, int ninputs, opd_value *outputs, int cap) {
    return opdi_program_run_with((const opd_program *)user, graph, tensors, inputs, ninputs, outputs, cap);
}
static int opdi_program_quantized_accept(void *user, opd_graph *graph) {
    return opd_program_set_graph((opd_program *)user, graph);
}
int opd_quantize_program(opd_program *program, const char *how, const opd_quantize_options *options) {
    opdi_quantize_source source;
    int count;
    if (!opd_ok()) { return -1; }
    if (!program || (options && options->nbatches > 0 && opd_program_writes(program))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_quantize_program: the program %s", program
                        ? "writes into tensors, so it cannot be run with batches" : "is NULL");
    }
    memset(&source, 0, sizeof source);
    source.who = "opd_quantize_program";
    source.graph = program->graph;
    source.module = program->module;
    source.run = opdi_program_quantized_run;
    source.accept = opdi_program_quantized_accept;
    source.user = program;
    return opdi_quantize(&source, how, options, &count) ? count : -1;
}
