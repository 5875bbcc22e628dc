#include "graphs.h"

//== tracing a function, and checking the trace ========================================================================

/* Sets the error that the texts of two traces differ; the error has the first line in which they differ, from both.
   Returns -1. */
static int opdi_trace_differs(const char *first, const char *second) {
    const char *la = first, *lb = second;
    while (*first && *first == *second) {
        if (*first == '\n') {
            la = first + 1;
            lb = second + 1;
        }
        first++, second++;
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "Tracing failed sanity checks!\nERROR: Graphs differed across invocations!\n"
                    "First diverging operator:\n- %.*s\n+ %.*s", (int)OPDI_MIN(strcspn(la, "\n"), 400), la,
                    (int)OPDI_MIN(strcspn(lb, "\n"), 400), lb);
}
/* Returns 1 if the elements of two tensors differ by at most `tolerance`, 0 if not, or -1 and sets an error. */
static int opdi_trace_close(opd_tensor *tensor, opd_tensor *result, double tolerance) {
    opd_tensor *have = opd_to_dtype(tensor, OPD_FLOAT64), *want = opd_to_dtype(result, OPD_FLOAT64);
    const opd_value most = opd_value_double(tolerance);
    opd_tensor *close = opd_le(opd_abs(opd_sub(have, want)), opd_add_Scalar(opd_mul_Scalar(opd_abs(want), most), most));
    close = opd_logical_or(opd_logical_or(close, opd_eq(have, want)),
                           opd_logical_and(opd_ne(have, have), opd_ne(want, want)));
    close = opd_all(close);
    return close ? opd_item_i64(close) != 0 : -1;
}
/* Compares the constant tensors of two graphs that have the same text.  Returns 0, or -1 and sets an error if the
   tensors differ. */
static int opdi_trace_constants(const opd_graph *graph, const opd_graph *again, double tolerance) {
    const opdi_gnode *node = graph->body.first, *other = again->body.first;
    int close = 1;
    for (; node && other && close > 0; node = node->next, other = other->next) {
        opd_tensor *tensor = node->constant.u.t, *result = other->constant.u.t;
        if (node->kind != OPDI_GNODE_CONSTANT || node->constant.tag != OPD_TAG_TENSOR || tensor == result ||
            opd_dtype_is_complex((opd_scalar_type)tensor->dtype)) { continue; }
        close = opdi_trace_close(tensor, result, tolerance);
    }
    return close > 0 ? 0 : close < 0 ? -1 : opd_fail(OPD_ERROR_ARGUMENT, "Tracing failed sanity checks!\nERROR: "
        "Tensor-valued Constant nodes differed in value across invocations. This often indicates that the tracer has "
        "encountered untraceable code.");
}
/* Returns the inputs for another run: copies if the graph writes into tensors, else the inputs themselves.  On failure,
   returns NULL and sets an error. */
static opd_tensor *const *opdi_trace_fresh(const opd_graph *graph, opd_tensor *const *inputs, int count) {
    opd_tensor **in;
    if (!opdi_graph_writes(graph)) { return inputs; }
    if (!(in = opdi_scope_tensors(count))) { return NULL; }
    for (int i = 0; i < count; i++) {
        in[i] = opd_clone(opd_detach(inputs[i]));
        if (!in[i] || (opdi_requires_grad(inputs[i]) && !opd_tensor_set_requires_grad(in[i], true))) { return NULL; }
    }
    return in;
}
/* Compares the graph with `again`, a second trace of `fn`, and the outputs of the graph with the outputs of `fn`.  If
   the traces differ, sets an error.  If only the outputs differ, warns.  Returns 0, or -1 and sets an error. */
static int opdi_trace_compare(const opd_graph *graph, const opd_graph *again, opd_transform_fn fn, void *user,
                              opd_tensor *const *inputs, int count, double tolerance) {
    const size_t size = opd_graph_print(graph, NULL, 0) + 1, other = opd_graph_print(again, NULL, 0) + 1;
    char *first = (char *)opdi_scope_alloc(size), *second = (char *)opdi_scope_alloc(other);
    opd_tensor *tensors[OPD_TRANSFORM_OUTPUTS], *outputs[OPD_TRANSFORM_OUTPUTS], *const *in;
    int i;
    if (!first || !second) { return -1; }
    (void)opd_graph_print(graph, first, size);
    (void)opd_graph_print(again, second, other);
    if (strcmp(first, second) != 0) { return opdi_trace_differs(first, second); }
    if (opdi_trace_constants(graph, again, tolerance)) { return -1; }
    in = opdi_trace_fresh(graph, inputs, count);
    if (!opd_ok()) { return -1; }
    int k = opdi_outputs_check(fn(user, in, count, tensors), tensors, "opd_graph_trace", "the function");
    in = opdi_trace_fresh(graph, inputs, count);
    if (k < 0 || !opd_ok() || (i = opd_graph_run(graph, in, count, outputs, OPD_TRANSFORM_OUTPUTS)) < 0) { return -1; }
    if (i != k) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_trace: the function returned %d outputs, and %d outputs when it "
                        "was called again", i, k);
    }
    for (i = 0; i < k; i++) {
        const int close = opdi_trace_close(tensors[i], outputs[i], tolerance);
        if (close < 0) { return -1; }
        if (!close) {
            opd_warn("Output nr %d. of the traced function does not match the corresponding output of the function",
                     i + 1);
        }
    }
    return 0;
}
/* Traces `fn` a second time and checks that the second graph is equal to the first.  If the graph writes into tensors,
   passes copies of the inputs.  Warns if the graph has random operators.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_trace_check(const opd_graph *graph, opd_transform_fn fn, void *user, opd_tensor *const *inputs,
                                   int count, const opd_trace_options *options) {
    opd_scope scope = opd_scope_open();
    opd_tensor *const *const in = opdi_trace_fresh(graph, inputs, count);
    opd_graph *again = opd_ok() ? opdi_trace_once(fn, user, in, count, options) : NULL;
    const opdi_gnode *first = NULL;
    int rc = again ? 0 : -1, random = 0;
    for (const opdi_gnode *node = graph->body.first; node && rc == 0; node = node->next) {
        if (!opdi_gnode_draws(node)) { continue; }
        if (random++ == 0) { first = node; }
    }
    if (random == 1) { opd_warn("Trace had nondeterministic nodes: %s", first->op->base_name); }
    if (random > 1) { opd_warn("Trace had nondeterministic nodes: %s and %d more", first->op->base_name, random - 1); }
    if (rc == 0) {
        rc = opdi_trace_compare(graph, again, fn, user, inputs, count,
                                options->tolerance > 0 ? options->tolerance : 1e-5);
    }
    opd_graph_free(again);
    opd_scope_close(&scope);
    return rc;
}

/* Records the operators that `fn` calls on `inputs` as a graph.  If options->check is set, also records `fn` a second
   time and compares the two graphs.  Returns the graph, which the caller owns, or NULL and sets an error. */
opd_graph *opd_graph_trace(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                     const opd_trace_options *options) {
    if (opdi_visits_left(opdi_self()) || !opd_ok()) { return NULL; }
    if (!fn || ninputs < 0 || (ninputs && !inputs)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_trace: the %s", fn ? "inputs are NULL" : "function is NULL");
        return NULL;
    }
    if (opdi_any_dead(inputs, ninputs, "opd_graph_trace")) { return NULL; }
    if (opdi_self()->innermost.tracer) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "Tracing can't be nested");
        return NULL;
    }
    opd_graph *graph = opdi_trace_once(fn, user, inputs, ninputs, options);
    if (graph && options && options->check && opdi_trace_check(graph, fn, user, inputs, ninputs, options)) {
        opd_graph_free(graph);
        return NULL;
    }
    return graph;
}
