#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>open_graphs  graphs with open sizes: guards, and recording functions for many sizes
//
//  A graph with open sizes has names for sizes that may differ from run to run, and their ranges.
//
//  opd_graph_trace_open records the function with its inputs, and then many times with other sizes, on fakes, or on
//  zeros if an operator has no fake kernel.  All recordings must have the same nodes.  Numbers that differ become
//  expressions of the open sizes; constants among them become nodes that compute them from the sizes of the inputs.
//
//  The sizes of the recordings are: a base point; lines through it, on which one size takes the smallest and the
//  largest sizes of its range and sizes around powers of two; two sizes that differ together, or are equal; and the
//  ends of the ranges.  If a quotient is found, the sizes where it changes are recorded, too.
//----------------------------------------------------------------------------------------------------------------------

//== guards ============================================================================================================
//
//  Before a graph with open sizes runs, the sizes of its inputs are compared with the expressions that the graph has
//  for them.  A size that is only a name, or a name times a number plus a number, gives the name its value; the others
//  are computed.

/* The values of the open sizes in a run.  places: for each of them, the input and the dim that has given the value. */
typedef struct opdi_gbinding {
    const opd_graph *graph;
    const char *who;
    int64_t values[OPDI_OPEN_NAMES];
    int32_t places[OPDI_OPEN_NAMES][2];
    uint32_t bound;
} opdi_gbinding;

/* Sets the error that dim `dim` of input i has the size `size`, but should not.  Returns -1. */
static int opdi_guard_fail(const opdi_gbinding *binding, int32_t i, int32_t dim, int64_t size, const char *format, ...)
    OPD_PRINTF_LIKE(5, 6);
static int opdi_guard_fail(const opdi_gbinding *binding, int32_t i, int32_t dim, int64_t size, const char *format,
                           ...) {
    const char *const name = binding->graph->inputs[i]->name;
    char text[400];
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return opd_fail(OPD_ERROR_SHAPE, "%s: input %d%s%.60s%s: size %d is %lld, %s", binding->who, (int)i,
                    name ? " (" : "", name ? name : "", name ? ")" : "", (int)dim, (long long)size, text);
}
/* Gives open size number `name` its value, or compares it with the value that it has, and checks its range.  `size` is
   the size that dim `dim` of input i has, from which the value was computed.  Returns 0, or -1 and sets an error. */
static int opdi_guard_bind(opdi_gbinding *binding, int32_t name, int64_t value, int32_t i, int32_t dim, int64_t size) {
    const opdi_gsize *const its = &binding->graph->sizes->names[name];
    const char *const because = its->why ? ", because of " : "", *const why = its->why ? its->why : "";
    char is[80] = "";
    if (value != size) { (void)snprintf(is, sizeof is, "so %.40s is %lld, ", its->name, (long long)value); }
    if (binding->bound >> name & 1) {
        return binding->values[name] == value ? 0
            : opdi_guard_fail(binding, i, dim, size, "%sbut %s is %lld from size %d of input %d", is, its->name,
                              (long long)binding->values[name], (int)binding->places[name][1],
                              (int)binding->places[name][0]);
    }
    if (value < its->least) {
        return opdi_guard_fail(binding, i, dim, size, "%sbut %s must be at least %lld%s%.200s", is, its->name,
                               (long long)its->least, because, why);
    }
    if (value > its->most) {
        return opdi_guard_fail(binding, i, dim, size, "%sbut %s must be at most %lld%s%.200s", is, its->name,
                               (long long)its->most, because, why);
    }
    if (value % its->step) {
        return opdi_guard_fail(binding, i, dim, size, "%sbut %s must be a multiple of %lld%s%.200s", is, its->name,
                               (long long)its->step, because, why);
    }
    binding->bound |= 1u << name;
    binding->values[name] = value;
    binding->places[name][0] = i;
    binding->places[name][1] = dim;
    return 0;
}
/* If an expression is factor * name + rest, returns true and sets *name, *factor and *rest. */
OPDI_INTERNAL bool opdi_gexpr_line(const opdi_gexpr *expr, int32_t *name, int64_t *factor, int64_t *rest) {
    *rest = 0;
    *factor = 1;
    if (expr->kind == OPDI_GEXPR_ADD && expr->args[1]->kind == OPDI_GEXPR_NUMBER) {
        *rest = expr->args[1]->number;
        expr = expr->args[0];
    }
    if (expr->kind == OPDI_GEXPR_MUL && expr->args[0]->kind == OPDI_GEXPR_NUMBER) {
        *factor = expr->args[0]->number;
        expr = expr->args[1];
    }
    *name = expr->name;
    return expr->kind == OPDI_GEXPR_NAME && *factor != 0;
}
/* Checks one size.  Round 0 checks sizes that are names, round 1 those from which a name can be computed, and round 2
   the others.  Returns 0, or -1 and sets an error. */
static int opdi_guard_dim(opdi_gbinding *binding, int32_t i, int32_t dim, int64_t size, int round) {
    const opdi_gvalue *const input = binding->graph->inputs[i];
    const opdi_gexpr *const expr = input->open ? input->open[dim] : NULL;
    int64_t factor, rest, value = input->dims[dim];
    int32_t name = 0;
    char text[200] = "";
    opdi_text out = opdi_text_of(text, sizeof text);
    const bool line = expr && opdi_gexpr_line(expr, &name, &factor, &rest);
    const int when = !line ? 2 : expr->kind == OPDI_GEXPR_NAME ? 0 : 1;
    if (when != round || (expr && expr->kind == OPDI_GEXPR_UNKNOWN)) { return 0; }
    if (line && (size - rest) % factor == 0) {
        return opdi_guard_bind(binding, name, (size - rest) / factor, i, dim, size);
    }
    if (expr) { opdi_gexpr_print(&out, binding->graph->sizes, expr); }
    if (line) { return opdi_guard_fail(binding, i, dim, size, "but must be %s", text); }
    if ((expr && !opdi_gexpr_value(expr, binding->values, binding->bound, &value)) || value == size) { return 0; }
    return expr ? opdi_guard_fail(binding, i, dim, size, "but must be %lld, which is %s", (long long)value, text)
        : opdi_guard_fail(binding, i, dim, size, "but must be %lld", (long long)value);
}
OPDI_INTERNAL OPDI_TLS bool opdi_guards_off;      /* true while this thread records a graph for sizes outside of its
                                                     ranges */
/* Checks the sizes of the inputs of a graph with open sizes, before a run by the function `who`.  inputs[i] is a tensor
   or something else, which is not checked.  Writes the values of the open sizes to `values`, unless it is NULL; 0 for
   those that no input has.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_guard(const opd_graph *graph, const opd_value *inputs, const char *who, int64_t *values) {
    opdi_gbinding binding;
    if (opdi_guards_off) { return 0; }
    memset(&binding, 0, sizeof binding);
    binding.graph = graph;
    binding.who = who;
    for (int round = 0; round < 3; round++) {
        for (int32_t i = 0; i < graph->ninputs; i++) {
            const opdi_gvalue *const input = graph->inputs[i];
            const opd_tensor *const tensor = inputs[i].tag == OPD_TAG_TENSOR ? inputs[i].u.t : NULL;
            if (!tensor || !input->dims) { continue; }
            const int ndim = opd_ndim(tensor);
            if (ndim != input->ndim) {
                char text[300] = "";
                (void)opd_graph_shape_print(input, text, sizeof text);
                return opd_fail(OPD_ERROR_SHAPE, "%s: input %d has %d dims, but must have %d: %s", who, (int)i, ndim,
                                (int)input->ndim, text);
            }
            for (int32_t k = 0; k < ndim; k++) {
                if (opdi_guard_dim(&binding, i, k, opd_size(tensor, k), round)) { return -1; }
            }
        }
    }
    if (values) { memcpy(values, binding.values, sizeof binding.values); }
    return 0;
}
/* Finds the open sizes that the inputs have in the description of the graph.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_open_examples(const opd_graph *graph, int64_t *values) {
    opdi_gbinding binding;
    memset(&binding, 0, sizeof binding);
    binding.graph = graph;
    binding.who = "the graph";
    for (int round = 0; round < 3; round++) {
        for (int32_t i = 0; i < graph->ninputs; i++) {
            const opdi_gvalue *const input = graph->inputs[i];
            for (int32_t k = 0; input->dims && k < input->ndim; k++) {
                if (opdi_guard_dim(&binding, i, k, input->dims[k], round)) { return -1; }
            }
        }
    }
    memcpy(values, binding.values, sizeof binding.values);
    return 0;
}
/* Returns whether the value of an open size follows from the size of an input. */
OPDI_INTERNAL bool opdi_gsize_follows(const opd_graph *graph, int32_t name) {
    for (int32_t i = 0; i < graph->ninputs; i++) {
        const opdi_gvalue *const input = graph->inputs[i];
        for (int k = 0; input->open && input->tag == OPD_TAG_TENSOR && k < input->ndim; k++) {
            int64_t factor, rest;
            int32_t its;
            if (input->open[k] && opdi_gexpr_line(input->open[k], &its, &factor, &rest) && its == name) { return true; }
        }
    }
    return false;
}
/* Checks the sizes of a list of tensors, as opdi_graph_guard does.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_guard_tensors(const opd_graph *graph, opd_tensor *const *inputs, const char *who,
                                           int64_t *values) {
    if (opdi_any_dead(inputs, graph->ninputs, who)) { return -1; }
    opd_scope own = opd_scope_open();
    opd_value *const all = (opd_value *)opdi_scope_alloc(((size_t)graph->ninputs + 1) * sizeof *all);
    for (int32_t i = 0; all && i < graph->ninputs; i++) { all[i] = opd_value_tensor(inputs[i]); }
    const int rc = all ? opdi_graph_guard(graph, all, who, values) : -1;
    opd_scope_close(&own);
    return rc;
}

//== nodes that compute sizes ==========================================================================================

OPDI_INTERNAL void opdi_gmaker_begin(opdi_gmaker *maker, opd_graph *graph) {
    memset(maker, 0, sizeof *maker);
    maker->graph = graph;
    maker->was.into = graph->into;
    maker->was.at = graph->at;
    graph->into = NULL;
    graph->at = graph->body.first;
}
static opdi_gvalue *opdi_gmaker_number(opdi_gmaker *maker, int64_t number) {
    const opd_value value = opd_value_int(number);
    return opdi_graph_constant(maker->graph, &value);
}
/* Adds a call of a builtin with one or two (two is not NULL) arguments.  Returns its result, or NULL if memory runs
   out. */
static opdi_gvalue *opdi_gmaker_call(opdi_gmaker *maker, const char *name, opdi_gvalue *one, opdi_gvalue *two,
                                     int32_t tag) {
    opdi_gnode *const node = one ? opdi_gnode_new(maker->graph, OPDI_GNODE_BUILTIN, two ? 2 : 1, 1) : NULL;
    if (!node || !(node->out[0] = opdi_gvalue_new(maker->graph, node, tag))) { return NULL; }
    node->builtin = opdi_builtin_at(opdi_builtin_next(name, -1));
    node->in[0] = one;
    if (two) { node->in[1] = two; }
    opdi_gnode_append(maker->graph, node);
    return node->out[0];
}
/* Adds a call of aten::sym_size.  Returns its result, or NULL if memory runs out. */
static opdi_gvalue *opdi_gmaker_size(opdi_gmaker *maker, int32_t input, int32_t dim) {
    opd_op *const op = opd_find(OPDI_NAME(sym_size_int, "aten::sym_size.int"));
    opdi_gvalue *const at = op ? opdi_gmaker_number(maker, dim) : NULL;
    opdi_gnode *const node = at ? opdi_gnode_new(maker->graph, OPDI_GNODE_OP, 2, 1) : NULL;
    if (!node || !(node->out[0] = opdi_gvalue_new(maker->graph, node, OPD_TAG_INT))) { return NULL; }
    node->op = op;
    node->in[0] = maker->graph->inputs[input];
    node->in[1] = at;
    opdi_gnode_append(maker->graph, node);
    return node->out[0];
}
/* Adds nodes that compute an open size: the size of an input that is only its name or, if there is none, from a size
   that is a line of it.  Returns the value, or NULL and sets an error. */
static opdi_gvalue *opdi_gmaker_name(opdi_gmaker *maker, int32_t name) {
    const opd_graph *const graph = maker->graph;
    for (int round = 0; round < 2; round++) {
        for (int32_t i = 0; i < graph->ninputs; i++) {
            const opdi_gvalue *const input = graph->inputs[i];
            for (int k = 0; input->open && input->tag == OPD_TAG_TENSOR && k < input->ndim; k++) {
                int64_t factor, rest;
                int32_t its;
                if (!input->open[k] || !opdi_gexpr_line(input->open[k], &its, &factor, &rest) || its != name ||
                    (round == 0 && input->open[k]->kind != OPDI_GEXPR_NAME)) { continue; }
                opdi_gvalue *size = opdi_gmaker_size(maker, i, k);
                if (rest && size) {
                    size = opdi_gmaker_call(maker, "aten::sub.int", size, opdi_gmaker_number(maker, rest), OPD_TAG_INT);
                }
                return factor == 1 || !size ? size : opdi_gmaker_call(maker, "aten::floordiv.int", size,
                                                                      opdi_gmaker_number(maker, factor), OPD_TAG_INT);
            }
        }
    }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "the open size %s follows from no size of an input",
        graph->sizes->names[name].name);
    return NULL;
}
/* Returns a value of the graph that is an expression; adds the nodes that compute it, if they are not there.  Returns
   NULL and sets an error on failure. */
OPDI_INTERNAL opdi_gvalue *opdi_gmaker_value(opdi_gmaker *maker, const opdi_gexpr *expr) {
    static const char *const names[] = {"", "", "aten::add.int", "aten::mul.int", "aten::floordiv.int"};
    opdi_gvalue *value = (opdi_gvalue *)opdi_index_get(&maker->made, (const char *)&expr, sizeof expr);
    if (value || opdi_stack_is_short("opd_graph_trace_open", OPDI_STACK_CALL)) { return value; }
    if (expr->kind == OPDI_GEXPR_UNKNOWN) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "the expression of a size is not known");
        return NULL;
    }
    if (expr->kind == OPDI_GEXPR_NUMBER) { value = opdi_gmaker_number(maker, expr->number); }
    else if (expr->kind == OPDI_GEXPR_NAME) { value = opdi_gmaker_name(maker, expr->name); }
    else {
        opdi_gvalue *const one = opdi_gmaker_value(maker, expr->args[0]);
        opdi_gvalue *const two = one ? opdi_gmaker_value(maker, expr->args[1]) : NULL;
        value = two ? opdi_gmaker_call(maker, names[expr->kind], one, two, OPD_TAG_INT) : NULL;
    }
    const opdi_gexpr **const key = (const opdi_gexpr **)opdi_arena_alloc(&maker->arena, sizeof *key);
    if (!key || !value) { return NULL; }
    *key = expr;
    if (opdi_index_set(&maker->made, &maker->arena, (const char *)key, sizeof *key, value)) { return NULL; }
    if (expr->kind == OPDI_GEXPR_NUMBER) { return value; }
    if (!(value->open = (const opdi_gexpr **)opdi_graph_alloc(maker->graph, sizeof *value->open))) { return NULL; }
    value->open[0] = expr;
    return value;
}
/* Does the same for a float: factor times an expression (form 0), factor through it (1), or the same with its square
   root (2 and 3). */
OPDI_INTERNAL opdi_gvalue *opdi_gmaker_float(opdi_gmaker *maker, const opdi_gexpr *expr, int form, double factor) {
    const opd_value number = opd_value_double(factor);
    opdi_gvalue *value = opdi_gmaker_value(maker, expr);
    const char *const name = form < 2 ? "aten::Float.int" : "aten::sqrt.int";
    if (value) { value = opdi_gmaker_call(maker, name, value, NULL, OPD_TAG_FLOAT); }
    if (!value || (form % 2 == 0 && factor == 1.0)) { return value; }
    opdi_gvalue *const by = opdi_graph_constant(maker->graph, &number);
    return by ? opdi_gmaker_call(maker, form % 2 ? "aten::div.float" : "aten::mul.float", by, value, OPD_TAG_FLOAT)
        : NULL;
}
static void opdi_gmaker_replace(opdi_gvalue **values, int32_t count) {
    for (int32_t i = 0; i < count; i++) { if (values[i]->same) { values[i] = values[i]->same; } }
}
OPDI_INTERNAL void opdi_gmaker_free(opdi_gmaker *maker) {
    opdi_arena_free(&maker->arena);
    maker->graph->into = maker->was.into;
    maker->graph->at = maker->was.at;
}
/* Replaces the uses of all values whose member `same` is set by this value, and removes nodes that are not needed any
   more.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_gmaker_end(opdi_gmaker *maker) {
    opd_graph *const graph = maker->graph;
    opdi_gmaker_free(maker);
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        opdi_gmaker_replace(node->in, node->nin);
        for (int32_t k = 0; k < node->nblocks; k++) {
            opdi_gmaker_replace(node->blocks[k].outputs, node->blocks[k].noutputs);
        }
    }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int32_t i = 0; i < node->nout; i++) { node->out[i]->same = NULL; }
    }
    opdi_graph_changed(graph);
    return opd_graph_dce(graph) < 0 || opdi_graph_open_ints(graph) ? -1 : 0;
}

//== reading open sizes ================================================================================================

int opd_graph_nsizes(const opd_graph *graph) { return graph && graph->sizes ? graph->sizes->count : 0; }
bool opd_graph_size(const opd_graph *graph, int i, opd_graph_open_size *size) {
    if (!size || i < 0 || i >= opd_graph_nsizes(graph)) { return false; }
    const opdi_gsize *const its = &graph->sizes->names[i];
    size->name = its->name;
    size->least = its->least;
    size->most = its->most < OPDI_OPEN_MOST ? its->most : -1;
    size->multiple_of = its->step;
    size->reason = its->why;
    return true;
}
size_t opd_graph_shape_print(const opd_graph_value *value, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    const opdi_gsizes *const sizes = value && value->graph ? value->graph->sizes : NULL;
    if (buf && cap) { buf[0] = 0; }
    if (value && value->tag == OPD_TAG_INT && value->open && sizes) {
        opdi_gexpr_print(&text, sizes, value->open[0]);
        return text.length;
    }
    if (value && value->tag == OPD_TAG_INT && value->node && value->node->kind == OPDI_GNODE_CONSTANT) {
        opdi_text_add(&text, "%lld", (long long)value->node->constant.u.i);
        return text.length;
    }
    if (!value || value->tag != OPD_TAG_TENSOR || value->dtype < 0) { return 0; }
    opdi_text_add(&text, "(");
    for (int i = 0; i < value->ndim; i++) {
        opdi_text_add(&text, i ? ", " : "");
        opdi_gvalue_print_dim(&text, value, i);
    }
    opdi_text_add(&text, ")");
    return text.length;
}
size_t opd_graph_guards_print(const opd_graph *graph, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    if (buf && cap) { buf[0] = 0; }
    for (int i = 0; i < opd_graph_nsizes(graph); i++) {
        const opdi_gsize *const size = &graph->sizes->names[i];
        opdi_gsize_print(&text, size);
        opdi_text_add(&text, size->why ? " # %s\n" : "\n", size->why);
    }
    for (int32_t i = 0; opd_graph_nsizes(graph) && i < graph->ninputs; i++) {
        const opdi_gvalue *const input = graph->inputs[i];
        for (int k = 0; input->dims && k < input->ndim; k++) {
            opdi_text_add(&text, "input %d: size %d == ", (int)i, k);
            opdi_gvalue_print_dim(&text, input, k);
            opdi_text_add(&text, "\n");
        }
    }
    return text.length;
}
int opd_graph_check_sizes(const opd_graph *graph, opd_tensor *const *inputs, int ninputs) {
    if (!opd_ok()) { return -1; }
    if (!graph || ninputs != graph->ninputs || (ninputs && !inputs)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_check_sizes: the %s", !graph ? "graph is NULL"
                        : ninputs == graph->ninputs ? "inputs are NULL" : "number of inputs is wrong");
    }
    if (opdi_any_dead(inputs, ninputs, "opd_graph_check_sizes")) { return -1; }
    return graph->sizes ? opdi_graph_guard_tensors(graph, inputs, "opd_graph_check_sizes", NULL) : 0;
}
