#include "graphs.h"

//== recording functions for many sizes ================================================================================

/* A number of a graph: size or stride `index` of a tensor, or a constant. */
typedef enum opdi_open_slot_kind {
    OPDI_SLOT_SIZE, OPDI_SLOT_STRIDE, OPDI_SLOT_INT, OPDI_SLOT_FLOAT
} opdi_open_slot_kind;
typedef struct opdi_open_slot {
    opdi_gvalue *value;
    const opdi_gnode *node;                       /* the node of the value; for a constant, one that uses it */
    const char *by_data;                          /* see opd_graph_value */
    int32_t index, kind;                          /* kind: an opdi_open_slot_kind */
    const opdi_gexpr *expr;                       /* the expression that was found; NULL: the number is always the
                                                     same */
    int32_t form;                                 /* of a float: how it is computed from the expression */
    double factor;
} opdi_open_slot;
typedef struct opdi_open_trace {
    opd_transform_fn fn;
    void *user;
    opd_tensor *const *inputs;
    int ninputs;
    opd_trace_options options;                    /* for the recordings that are compared with the first one */
    opd_graph *shell;                             /* a graph without nodes that has the open sizes, and the expressions
                                                     of the inputs' sizes */
    opd_graph *graph;                             /* the first recording */
    int64_t example[OPDI_OPEN_NAMES];             /* the open sizes of the inputs */
    bool fakes;
    opdi_fit_points *points;
    int64_t **numbers;                            /* for each point, the numbers of its recording */
    const char ***texts;                          /* for each point, and each slot of a size that depends on data: the
                                                     sizes of its tensor, see opd_graph_value.by_data; else NULL */
    int less;                                     /* opdi_symbols_less in a recording */
    int first_name, *first_names;                 /* the number of the first name that the fakes of the last recording
                                                     could get, and of those at each point: in a fake mode of the
                                                     program, it is not 0 */
    opdi_open_slot *slots;
    int64_t nslots;
    opdi_fit_known *known;
    opdi_trace_failure failure;
    char text[600];                               /* the error of a recording that has failed */
} opdi_open_trace;
static const char opdi_open_who[] = "opd_graph_trace_open";

//== what the program says =============================================================================================

/* Reads the sizes of input i, such as "B, 2*T + 1, 64", where "_" is the size of the example.  Returns 0, or -1 and
   sets an error. */
static int opdi_open_read_input(const opdi_open_trace *trace, int i, const char *text) {
    opdi_gvalue *const input = trace->shell->inputs[i];
    const char *at = text;
    int dim = 0;
    input->open = (const opdi_gexpr **)opdi_graph_alloc(trace->shell, 2 * (size_t)input->ndim * sizeof *input->open);
    if (!input->open) { return -1; }
    for (at += strspn(at, " "); *at; at += strspn(at, " ")) {
        const char *const begin = at;
        const opdi_gexpr *expr = NULL;
        const bool same = *at == '_' && (at[1] == ',' || at[1] == ' ' || !at[1]);
        if (same) { at++; } else { expr = opdi_gexpr_read(trace->shell, &at, true); }
        at += strspn(at, " ");
        if (!opd_ok()) { return -1; }
        if ((!same && (!expr || expr->kind == OPDI_GEXPR_UNKNOWN)) || (*at && *at != ',')) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: input %d: the size '%.*s' is not understood: write a number, a "
                            "name, an expression such as 2*T + 1, or _", opdi_open_who, i,
                            (int)OPDI_MIN(strcspn(begin, ","), 80), begin);
        }
        if (dim < input->ndim && expr && expr->kind != OPDI_GEXPR_NUMBER) { input->open[dim] = expr; }
        if (dim < input->ndim && expr && expr->kind == OPDI_GEXPR_NUMBER) { input->dims[dim] = expr->number; }
        dim++;
        at += *at == ',';
    }
    if (dim == input->ndim) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: input %d has %d dims, but '%.80s' has %d sizes", opdi_open_who, i,
                    (int)input->ndim, text, dim);
}
/* Reads the sizes of all inputs, and the ranges, and finds the open sizes of the inputs.  Returns 0, or -1 and sets an
   error. */
static int opdi_open_read(opdi_open_trace *trace, const char *const *sizes, const char *ranges) {
    opd_graph *const shell = trace->shell;
    uint32_t found = 0;
    if (opdi_gsizes_of(shell) || opdi_graph_reserve_inputs(shell, trace->ninputs)) { return -1; }
    for (int i = 0; i < trace->ninputs; i++) {
        opdi_gvalue *const input = opdi_gvalue_new(shell, NULL, OPD_TAG_TENSOR);
        if (!input || opdi_gvalue_describe(shell, input, trace->inputs[i])) { return -1; }
        shell->inputs[i] = input;
        shell->ninputs = i + 1;
        if (sizes && sizes[i] && opdi_open_read_input(trace, i, sizes[i])) { return -1; }
        for (int k = 0; input->open && k < input->ndim; k++) {
            int64_t factor, rest;
            int32_t name;
            if (input->open[k] && opdi_gexpr_line(input->open[k], &name, &factor, &rest)) { found |= 1u << name; }
        }
    }
    if (!shell->sizes->count) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: no size is open: name sizes of the inputs, such as \"B, T, 64\"",
                        opdi_open_who);
    }
    for (int i = 0; i < shell->sizes->count; i++) {
        const char *const its = shell->sizes->names[i].name;
        if (its[0] == 'u' && strspn(its + 1, "0123456789") == strlen(its + 1)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: names such as %s are only for sizes that depend on data: choose "
                            "another one", opdi_open_who, its);
        }
        if (found >> i & 1) { continue; }
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s is not the size of an input, nor can it be computed from one: its "
                        "value must follow from a size such as %s or 2*%s + 1", opdi_open_who,
                        shell->sizes->names[i].name, shell->sizes->names[i].name, shell->sizes->names[i].name);
    }
    return (ranges && opdi_gsizes_read_ranges(shell, ranges, false, opdi_open_who)) ||
        opdi_graph_guard_tensors(shell, trace->inputs, opdi_open_who, trace->example) ? -1 : 0;
}

//== recordings ========================================================================================================

/* Writes the open sizes `values`, such as "B = 4, T = 7". */
static const char *opdi_open_at_text(const opdi_open_trace *trace, const int64_t *values, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    for (int i = 0; i < trace->shell->sizes->count; i++) {
        opdi_text_add(&text, "%s%s = %lld", i ? ", " : "", trace->shell->sizes->names[i].name, (long long)values[i]);
    }
    return buf;
}
/* Makes inputs with the open sizes `values`: fakes in a fake mode, else zeros.  Returns 0, or -1 and sets an error. */
static int opdi_open_make_inputs(const opdi_open_trace *trace, const int64_t *values, opd_tensor **in) {
    for (int i = 0; i < trace->ninputs; i++) {
        opd_tensor *const example = trace->inputs[i];
        const opdi_gvalue *const value = trace->shell->inputs[i];
        const opd_value dtype = opd_value_int(example->dtype), none = opd_value_none();
        int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
        for (int k = 0; k < value->ndim; k++) {
            sizes[k] = value->dims[k];
            if (!value->open || !value->open[k]) { continue; }
            if (!opdi_gexpr_value(value->open[k], values, ~0u, &sizes[k]) || sizes[k] < 0) {
                return opd_fail(OPD_ERROR_SHAPE, "size %d of input %d would be %lld", k, i, (long long)sizes[k]);
            }
        }
        if (opd_is_contiguous(example)) { opdi_strides_fill(sizes, strides, value->ndim); }
        else { opdi_strides_for(example, sizes, strides); }
        in[i] = opd_empty_strided_full(opd_ints_of(sizes, value->ndim), opd_ints_of(strides, value->ndim), dtype, none,
                                       opd_value_device(opd_tensor_device(example)), none);
        if (in[i] && !trace->fakes) { (void)opd_zero_(in[i]); }
        if (!in[i] || !opd_ok() ||
            (opdi_requires_grad(example) && !opd_tensor_set_requires_grad(in[i], true))) { return -1; }
    }
    return 0;
}
/* Records the function with the open sizes `values`.  Returns the graph, or NULL: then trace->text has the error,
   unless it must be passed on. */
static opd_graph *opdi_open_record_once(opdi_open_trace *trace, const int64_t *values) {
    opd_scope scope = opd_scope_open();
    opd_fake_block block;
    opd_graph *graph = NULL;
    opd_tensor **const in = opdi_scope_tensors(trace->ninputs + 1);
    memset(&block, 0, sizeof block);
    memset(&trace->failure, 0, sizeof trace->failure);
    if (trace->fakes) { block = opd_fake_begin(); }
    const opdi_fake_mode *const mode = trace->fakes ? opdi_fake_mode_of(opdi_self()) : NULL;
    trace->first_name = mode && mode->symbols ? mode->symbols->names : 0;
    if (mode) { opdi_symbols_less = trace->less; }
    if (in && opd_ok() && opdi_open_make_inputs(trace, values, in) == 0) {
        graph = opdi_trace_told(trace->fn, trace->user, in, trace->ninputs, &trace->options, &trace->failure);
    }
    if (trace->fakes) { opd_fake_end(&block); }
    opd_scope_close(&scope);
    if (!graph && !opdi_error_passes()) {
        (void)snprintf(trace->text, sizeof trace->text, "%s", opd_ok() ? "" : opd_error_message());
        opd_error_clear();
    }
    return graph;
}
/* Records again, with places in the source, what has failed with the sizes `values`.  Writes the operator and the place
   to buf, such as "aten::view in f.c:3". */
static const char *opdi_open_culprit(opdi_open_trace *trace, const int64_t *values, char *buf, size_t cap) {
    char was[sizeof trace->text];
    const bool locations = trace->options.locations;
    memcpy(was, trace->text, sizeof was);
    trace->options.locations = true;
    opd_graph_free(opdi_open_record_once(trace, values));
    trace->options.locations = locations;
    memcpy(trace->text, was, sizeof was);
    const opd_op *const op = trace->failure.op;
    (void)snprintf(buf, cap, "%s%s%s", op ? op->base_name : "the function", trace->failure.place[0] ? " in " : "",
                   trace->failure.place);
    return buf;
}

//== comparing recordings ==============================================================================================

/* Writes what a node calls, such as "aten::relu in f.c:3". */
static void opdi_open_node_text(const opdi_gnode *node, char *buf, size_t cap) {
    char name[100];
    (void)snprintf(buf, cap, "%s%s%s", node ? opdi_gnode_name(node, name, sizeof name) : "the end",
                   node && node->place ? " in " : "", node && node->place ? node->place : "");
}
static bool opdi_open_pair(opdi_gcopier *table, opdi_gvalue *const *values, opdi_gvalue *const *others, int32_t count) {
    for (int32_t i = 0; i < count; i++) {
        if (values[i]->tag != others[i]->tag || values[i]->dtype != others[i]->dtype ||
            values[i]->ndim != others[i]->ndim || values[i]->requires_grad != others[i]->requires_grad ||
            opdi_gcopier_put(table, values[i], others[i])) { return false; }
    }
    return true;
}
static bool opdi_open_paired(const opdi_gcopier *table, opdi_gvalue *const *values, opdi_gvalue *const *others,
                             int32_t count) {
    for (int32_t i = 0; i < count; i++) { if (opdi_gcopier_get(table, values[i]) != others[i]) { return false; } }
    return true;
}
/* Returns whether two nodes do the same, but for numbers. */
static bool opdi_open_nodes_match(opdi_gcopier *table, const opdi_gnode *node, const opdi_gnode *other) {
    if (node->kind != other->kind || node->op != other->op || node->function != other->function ||
        node->nin != other->nin || node->nout != other->nout || node->nblocks != other->nblocks ||
        !opdi_open_paired(table, node->in, other->in, node->nin) ||
        !opdi_open_pair(table, node->out, other->out, node->nout)) { return false; }
    for (int32_t k = 0; k < node->nblocks; k++) {
        const opdi_gblock *const block = &node->blocks[k], *const another = &other->blocks[k];
        if (block->ninputs != another->ninputs || block->noutputs != another->noutputs ||
            !opdi_open_pair(table, block->inputs, another->inputs, block->ninputs)) { return false; }
    }
    const int32_t tag = node->constant.tag;
    return node->kind != OPDI_GNODE_CONSTANT || (tag == other->constant.tag && (tag == OPD_TAG_INT ||
        tag == OPD_TAG_FLOAT)) || opdi_constants_same(&node->constant, &other->constant, 0);
}
/* Finds the first nodes in which two recordings differ, and writes them to *node and *other; NULL at the end.  Returns
   whether there are some. */
static bool opdi_open_mismatch(const opd_graph *graph, const opd_graph *again, const opdi_gnode **node,
                               const opdi_gnode **other) {
    opdi_gcopier table;
    memset(&table, 0, sizeof table);
    *node = graph->body.first;
    *other = again->body.first;
    if (!opdi_open_pair(&table, graph->inputs, again->inputs, graph->ninputs)) { return true; }
    while (*node && *other) {
        if (!opdi_open_nodes_match(&table, *node, *other)) { return true; }
        *node = opdi_gnode_after(*node);
        *other = opdi_gnode_after(*other);
    }
    return *node || *other || graph->noutputs != again->noutputs ||
        !opdi_open_paired(&table, graph->outputs, again->outputs, graph->noutputs);
}
/* Returns the first node from `node` on that is neither a constant nor a list: it says more to a reader. */
static const opdi_gnode *opdi_open_call(const opdi_gnode *node) {
    while (node && (node->kind == OPDI_GNODE_CONSTANT || node->kind == OPDI_GNODE_LIST)) {
        node = opdi_gnode_after(node);
    }
    return node;
}
/* Sets the error that the recordings with the sizes `values` and `first` differ.  Records both again, with places in
   the source.  Returns -1. */
static int opdi_open_differ(opdi_open_trace *trace, const int64_t *values, const int64_t *first) {
    char texts[2][300], at[2][300];
    const opdi_gnode *nodes[2] = {NULL, NULL};
    trace->options.locations = true;
    opd_graph *const graph = opdi_open_record_once(trace, first);
    opd_graph *const again = graph ? opdi_open_record_once(trace, values) : NULL;
    const bool differ = graph && again && opdi_open_mismatch(graph, again, &nodes[0], &nodes[1]);
    const bool tensor = nodes[0] && nodes[0]->kind == OPDI_GNODE_CONSTANT && nodes[0]->constant.tag == OPD_TAG_TENSOR &&
        nodes[1] && nodes[1]->kind == OPDI_GNODE_CONSTANT && nodes[1]->constant.tag == OPD_TAG_TENSOR;
    for (int i = 0; i < 2; i++) { opdi_open_node_text(opdi_open_call(nodes[i]), texts[i], sizeof texts[i]); }
    opd_graph_free(graph);
    opd_graph_free(again);
    if (!opd_ok()) { return -1; }
    (void)opdi_open_at_text(trace, values, at[0], sizeof at[0]);
    (void)opdi_open_at_text(trace, first, at[1], sizeof at[1]);
    if (tensor) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: a constant tensor, before %s, differs between %s and %s: compute "
            "it by operators, such as opd_arange, or pass it as an input", opdi_open_who, texts[0], at[0], at[1]);
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: the function does not do the same for all sizes: with %s, it %s%s%s, "
        "but with %s, %s.  A graph has one way for all sizes: narrow the ranges, or use opd_cond", opdi_open_who,
                    at[0], differ ? "calls " : "differs", differ ? texts[1] : "", "", at[1],
                    differ ? texts[0] : "it does not");
}

//== numbers ===========================================================================================================

static void opdi_open_take(int64_t *numbers, opdi_open_slot *slots, int64_t *count, int64_t number, opdi_gvalue *value,
                           const opdi_gnode *node, int32_t index, opdi_open_slot_kind kind) {
    if (numbers) { numbers[*count] = number; }
    if (slots) {
        opdi_open_slot *const slot = &slots[*count];
        memset(slot, 0, sizeof *slot);
        slot->value = value;
        slot->node = node;
        slot->index = index;
        slot->kind = (int32_t)kind;
    }
    if (slots || numbers || count) { ++*count; }
}
static void opdi_open_take_value(int64_t *numbers, opdi_open_slot *slots, int64_t *count, opdi_gvalue *value,
                                 const opdi_gnode *node) {
    for (int i = 0; value->tag == OPD_TAG_TENSOR && value->dtype >= 0 && i < 2 * value->ndim; i++) {
        opdi_open_take(numbers, slots, count, value->dims[i], value, node, i,
                       i < value->ndim ? OPDI_SLOT_SIZE : OPDI_SLOT_STRIDE);
    }
}
/* Lists the numbers of a graph in `numbers` and `slots`, unless these are NULL.  Returns how many there are. */
static int64_t opdi_open_numbers(const opd_graph *graph, int64_t *numbers, opdi_open_slot *slots) {
    int64_t count = 0;
    for (int i = 0; i < graph->ninputs; i++) { opdi_open_take_value(numbers, slots, &count, graph->inputs[i], NULL); }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        const opd_value *const constant = &node->constant;
        if (node->kind == OPDI_GNODE_CONSTANT && constant->tag == OPD_TAG_INT) {
            opdi_open_take(numbers, slots, &count, constant->u.i, node->out[0], node, 0, OPDI_SLOT_INT);
        } else if (node->kind == OPDI_GNODE_CONSTANT && constant->tag == OPD_TAG_FLOAT) {
            opdi_open_take(numbers, slots, &count, constant->u.i, node->out[0], node, 0, OPDI_SLOT_FLOAT);
        } else if (node->kind != OPDI_GNODE_CONSTANT) {
            for (int32_t i = 0; i < node->nout; i++) {
                opdi_open_take_value(numbers, slots, &count, node->out[i], node);
            }
        }
        for (int32_t k = 0; k < node->nblocks; k++) {
            for (int32_t i = 0; i < node->blocks[k].ninputs; i++) {
                opdi_open_take_value(numbers, slots, &count, node->blocks[k].inputs[i], node);
            }
        }
    }
    return count;
}
/* Takes over which values of a recording, that at point k, have sizes that depend on data.  Returns 0, or -1 if memory
   runs out. */
static int opdi_open_by_data(opdi_open_trace *trace, int k, const opd_graph *again) {
    opdi_arena *const arena = &trace->shell->arena;
    const size_t count = (size_t)trace->nslots + 1;
    opd_scope scope = opd_scope_open();
    opdi_open_slot *const slots = (opdi_open_slot *)opdi_scope_alloc(count * sizeof *slots);
    int rc = slots ? 0 : -1;
    if (slots) { (void)opdi_open_numbers(again, NULL, slots); }
    trace->first_names[k] = trace->first_name;
    for (int64_t i = 0; i < trace->nslots && rc == 0; i++) {
        const char *text = slots[i].value->by_data;
        if (!text) { continue; }
        if (!trace->texts[k]) {
            trace->texts[k] = (const char **)opdi_arena_alloc(arena, count * sizeof *trace->texts[k]);
            if (trace->texts[k]) { memset((void *)trace->texts[k], 0, count * sizeof *trace->texts[k]); }
        }
        text = trace->texts[k] ? opdi_arena_copy(arena, text, strlen(text)) : NULL;
        if (!text) { rc = -1; }
        else { trace->texts[k][i] = text; }
        if (k == 0) { trace->slots[i].by_data = text; }
    }
    opd_scope_close(&scope);
    return rc;
}
/* Records the function with the sizes `values`, as the next point.  Returns 0 if this has worked; 1 if the function has
   failed (see trace->text); -1 and sets an error if the recording differs from the first one. */
static int opdi_open_sample(opdi_open_trace *trace, const int64_t *values, int along) {
    opdi_fit_points *const points = trace->points;
    const opdi_gnode *node, *other;
    if (points->count == OPDI_FIT_POINTS) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: too many sizes", opdi_open_who); }
    for (int i = 0; i < points->count; i++) {
        if (memcmp(points->at[i], values, sizeof points->at[i]) == 0 && (points->along[i] == along || along < 0)) {
            return 0;
        }
    }
    opd_graph *const again = opdi_open_record_once(trace, values);
    if (!again) { return opd_ok() ? 1 : -1; }
    opd_scope scope = opd_scope_open();
    const bool differ = opdi_open_mismatch(trace->graph, again, &node, &other);
    opd_scope_close(&scope);
    int rc = opd_ok() ? 0 : -1;
    if (rc == 0 && differ) { rc = opdi_open_differ(trace, values, trace->example); }
    int64_t *const numbers = rc ? NULL
        : (int64_t *)opdi_arena_alloc(&trace->shell->arena, ((size_t)trace->nslots + 1) * sizeof *numbers);
    if (numbers) {
        (void)opdi_open_numbers(again, numbers, NULL);
        memcpy(points->at[points->count], values, sizeof points->at[0]);
        points->along[points->count] = along;
        trace->numbers[points->count] = numbers;
        rc = opdi_open_by_data(trace, points->count++, again);
    } else { rc = -1; }
    opd_graph_free(again);
    return rc;
}

//== choosing sizes ====================================================================================================

/* Returns the value of open size `name` at the base point (which is 0), or its other value (which is 1). */
static int64_t opdi_open_base(const opdi_open_trace *trace, int name, int which) {
    const opdi_gsize *const size = &trace->shell->sizes->names[name];
    const int64_t prime = opdi_open_primes[name] + which * 7;
    const int64_t first = opdi_open_allowed(size, 0), last = opdi_open_allowed(size, OPDI_OPEN_MOST);
    int64_t at = opdi_open_allowed(size, OPDI_MAX(first + 3 + name, prime) * size->step);
    if (at == last && last > first) { at = opdi_open_allowed(size, first + (last - first) * (which ? 1 : 2) / 3); }
    if (which && at == opdi_open_base(trace, name, 0)) { at = at == last ? first : last; }
    return at;
}
/* Finds of which number an open size must be a multiple, so that the function accepts it.  `trace->example` is known to
   work.  Returns 0, or -1 and sets an error. */
static int opdi_open_find_step(opdi_open_trace *trace, int name) {
    opdi_gsize *const size = &trace->shell->sizes->names[name];
    const int64_t example = trace->example[name];
    char why[400], at[300];
    int64_t values[OPDI_OPEN_NAMES], tried[OPDI_OPEN_NAMES];
    memcpy(values, trace->example, sizeof values);
    for (int64_t step = 1; step <= example || step == 1; step++) {
        bool works = true;
        if (step > 1 && (example % step || size->given[2])) { continue; }
        for (int k = 0; k < 3 && works; k++) {
            const opdi_gsize range = {size->name, size->least, size->most, size->step * step, NULL, {0}};
            values[name] = opdi_open_allowed(&range, (opdi_open_primes[k] + example / step) * range.step);
            if (values[name] == example) { continue; }
            opd_graph *const graph = opdi_open_record_once(trace, values);
            works = graph != NULL;
            opd_graph_free(graph);
            if (!opd_ok()) { return -1; }
            if (step == 1 && !works) { memcpy(tried, values, sizeof tried); }
        }
        if (works && step == 1) { return 0; }
        if (works) {
            (void)opdi_open_culprit(trace, tried, why, sizeof why);
            size->step *= step;
            size->why = opdi_arena_copy(&trace->shell->arena, why, strlen(why));
            return size->why ? 0 : -1;
        }
        if (size->given[2]) { break; }
    }
    opd_graph_free(opdi_open_record_once(trace, tried));
    return opd_ok() ? opd_fail(OPD_ERROR_ARGUMENT, "%s: with %s, where only %s differs from the inputs, the "
        "function fails: "
                               "%.300s (%s)", opdi_open_who, opdi_open_at_text(trace, tried, at, sizeof at), size->name,
                               trace->text, opdi_open_culprit(trace, tried, why, sizeof why)) : -1;
}
/* Handles that the function fails with the sizes `values`, of which size `name` differs from the base, where it works:
   narrows the range of this size, unless the program has given it.  `works` is the value nearest to it that works.
   Returns 0, or -1 and sets an error. */
static int opdi_open_narrow(opdi_open_trace *trace, int name, int64_t *values, int64_t works) {
    opdi_gsize *const size = &trace->shell->sizes->names[name];
    const bool above = values[name] > works;
    char why[400], at[300];
    while ((above ? values[name] - works : works - values[name]) > size->step && !size->given[above]) {
        const int64_t fails = values[name], middle = (fails + works) / 2 / size->step * size->step;
        values[name] = middle;
        const int rc = opdi_open_sample(trace, values, name);
        if (rc < 0) { return -1; }
        if (rc == 0) {
            works = middle;
            values[name] = fails;
        }
    }
    (void)opdi_open_culprit(trace, values, why, sizeof why);
    if (!opd_ok()) { return -1; }
    if (size->given[above]) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: with %s, the function fails, in %s: %.300s.  Narrow the range of %s",
                        opdi_open_who, opdi_open_at_text(trace, values, at, sizeof at), why, trace->text, size->name);
    }
    if (above) { size->most = works; } else { size->least = works; }
    if (!(size->why = opdi_arena_copy(&trace->shell->arena, why, strlen(why)))) { return -1; }
    return 0;
}
/* Records along the line on which size `name` differs from the base: from the base downward, or upward.  Returns 0, or
   -1 and sets an error. */
static int opdi_open_along(opdi_open_trace *trace, int name, bool upward) {
    static const int steps[] = {1, 2, 3, 4, 5, 6, 8, 9, 12, 14, 20, 21, 37, 52, 53, 54, 115, 116, 117, 118, 244, 245,
                                246, 500, 501, 502, 1012, 1013, 1014, 2036, 2037, 2038, 4084, 4085, 65525, 1000003};
    const opdi_gsize *const size = &trace->shell->sizes->names[name];
    const int64_t *const base = trace->points->at[0];
    int64_t values[OPDI_OPEN_NAMES], works = base[name], last = works;
    memcpy(values, base, sizeof values);
    for (int i = 0; i < (int)(sizeof steps / sizeof *steps) + 1; i++) {
        const int64_t end = upward ? size->most : size->least;
        int64_t to = base[name] + (upward ? 1 : -1) * size->step * (i < 36 ? steps[i] : 0);
        if (!trace->fakes && i < 36 && steps[i] > 21) { continue; }
        if (i == 36 || (upward ? to > end : to < end)) {
            to = upward ? size->most / size->step * size->step : opdi_open_allowed(size, 0);
            if (upward && (size->most == OPDI_OPEN_MOST || (!trace->fakes && to > 64))) { break; }
        }
        if (to == last) { continue; }
        values[name] = last = to;
        const int rc = opdi_open_sample(trace, values, name);
        if (rc < 0) { return -1; }
        if (rc == 1) { return opdi_open_narrow(trace, name, values, works); }
        works = to;
    }
    return 0;
}
/* Records at a point where several sizes differ from the base.  Returns 0, or -1 and sets an error. */
static int opdi_open_apart(opdi_open_trace *trace, const int64_t *values) {
    char at[300], why[400];
    const int rc = opdi_open_sample(trace, values, -1);
    if (rc != 1) { return rc; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: with %s, the function fails, in %s: %.300s.  If these sizes depend on "
        "each other, write them as expressions of one name", opdi_open_who,
                    opdi_open_at_text(trace, values, at, sizeof at), opdi_open_culprit(trace, values, why, sizeof why),
                    trace->text);
}
/* Records at points where two sizes differ together or are equal, and where all are as small or as large as they can
   be.  Returns 0, or -1 and sets an error. */
static int opdi_open_corners(opdi_open_trace *trace) {
    const opdi_gsizes *const sizes = trace->shell->sizes;
    opdi_fit_points *const points = trace->points;
    int64_t values[OPDI_OPEN_NAMES];
    for (int i = 0; i < sizes->count; i++) {
        for (int k = i + 1; k < sizes->count; k++) {
            const int64_t same = opdi_open_allowed(&sizes->names[k], opdi_open_allowed(&sizes->names[i], 30));
            memcpy(values, points->at[0], sizeof values);
            values[i] = points->at[points->others[i]][i];
            values[k] = points->at[points->others[k]][k];
            points->pairs[i][k] = points->count;
            for (int at = 0; at < points->count; at++) {
                if (memcmp(points->at[at], values, sizeof values) == 0) { points->pairs[i][k] = at; }
            }
            if (opdi_open_apart(trace, values)) { return -1; }
            if (opdi_open_allowed(&sizes->names[i], same) != same) { continue; }
            values[i] = values[k] = same;
            if (opdi_open_apart(trace, values)) { return -1; }
        }
    }
    for (int corner = 0; corner < 6; corner++) {
        memcpy(values, points->at[0], sizeof values);
        for (int i = 0; i < sizes->count; i++) {
            const int64_t most = !trace->fakes ? 23 : sizes->names[i].most == OPDI_OPEN_MOST ? 777 : OPDI_OPEN_MOST;
            const bool high = corner < 2 ? corner == 1 : (corner >> (i & 1) & 1) != 0;
            values[i] = opdi_open_allowed(&sizes->names[i], corner > 3 ? 40 + 3 * corner + 11 * i : high ? most : 0);
        }
        if (opdi_open_apart(trace, values)) { return -1; }
    }
    return opdi_open_apart(trace, trace->example);
}
/* Records the base point again with other numbers for sizes that depend on data, and checks that nothing else depends
   on these numbers.  Returns 0, or -1 and sets an error. */
static int opdi_open_other_data(opdi_open_trace *trace) {
    const opdi_gnode *node = NULL, *other;
    char why[300];
    int64_t *const numbers = (int64_t *)opdi_scope_alloc(((size_t)trace->nslots + 1) * sizeof *numbers);
    if (!numbers) { return -1; }
    if (!trace->fakes) { return 0; }
    trace->less = 2;
    opd_graph *const again = opdi_open_record_once(trace, trace->points->at[0]);
    trace->less = opdi_symbols_less = 0;
    if (!again && !opd_ok()) { return -1; }
    bool differs = !again || opdi_open_mismatch(trace->graph, again, &node, &other);
    const bool decides = differs;
    if (!differs) { (void)opdi_open_numbers(again, numbers, NULL); }
    for (int64_t i = 0; i < trace->nslots && !differs; i++) {
        const opdi_open_slot *const slot = &trace->slots[i];
        differs = (slot->kind == OPDI_SLOT_INT || slot->kind == OPDI_SLOT_FLOAT) && numbers[i] != trace->numbers[0][i];
        node = slot->node;
    }
    opd_graph_free(again);
    if (!differs || !opd_ok()) { return opd_ok() ? 0 : -1; }
    opdi_open_node_text(opdi_open_call(node), why, sizeof why);
    return decides && !node
        ? opd_fail(OPD_ERROR_ARGUMENT, "%s: the function does not do the same for all sizes that depend on data%s%s",
                   opdi_open_who, again ? "" : ": ", again ? "" : trace->text)
        : opd_fail(OPD_ERROR_ARGUMENT, "%s: %s %s depends on a size that depends on data, and would be a constant "
                   "of the graph.  Let operators compute it, or pass -1 as a size that follows from the others",
                   opdi_open_who, decides ? "the call of" : "a number that is given to", why);
}
/* Records the function at all points.  Returns 0, or -1 and sets an error. */
static int opdi_open_sample_all(opdi_open_trace *trace) {
    const int n = trace->shell->sizes->count;
    opdi_fit_points *const points = trace->points;
    int64_t values[OPDI_OPEN_NAMES];
    memset(values, 0, sizeof values);
    for (int i = 0; i < n; i++) { if (opdi_open_find_step(trace, i)) { return -1; } }
    for (int i = 0; i < n; i++) { values[i] = opdi_open_base(trace, i, 0); }
    points->n = n;
    if (opdi_open_apart(trace, values)) { return -1; }
    for (int i = 0; i < n; i++) {
        if (opdi_open_along(trace, i, false) || opdi_open_along(trace, i, true)) { return -1; }
    }
    for (int i = 0; i < n; i++) {
        memcpy(values, points->at[0], sizeof values);
        values[i] = opdi_open_base(trace, i, 1);
        points->others[i] = values[i] == points->at[0][i] ? 0 : points->count;
        if (points->others[i] && opdi_open_sample(trace, values, i)) {
            return opd_ok() ? opdi_open_narrow(trace, i, values, points->at[0][i]) : -1;
        }
        for (int k = 1; k < points->count; k++) {
            if (memcmp(points->at[k], values, sizeof values) == 0) { points->others[i] = k; }
        }
    }
    return opdi_open_corners(trace) || opdi_open_other_data(trace) ? -1 : 0;
}

//== finding expressions ===============================================================================================

/* Sets y to the numbers of a slot at all points.  For a stride, sets skip[k] where the tensor is empty.  Returns
   whether the numbers differ. */
static bool opdi_open_gather(const opdi_open_trace *trace, int64_t slot, int64_t *y, bool *skip) {
    const opdi_open_slot *const its = &trace->slots[slot];
    const int ndim = its->kind == OPDI_SLOT_STRIDE ? its->value->ndim : 0;
    bool differs = false;
    for (int k = 0; k < trace->points->count; k++) {
        y[k] = trace->numbers[k][slot];
        skip[k] = false;
        for (int i = 0; i < ndim; i++) { skip[k] = skip[k] || trace->numbers[k][slot - its->index + i] == 0; }
        differs = differs || (y[k] != y[0] && !skip[k] && !skip[0]);
    }
    return differs;
}
/* A size that depends on data, as a fake says it: (factor * symbols + rest) / divisor, where symbols is "u0" or
   "u0*u1", for example. */
typedef struct opdi_open_data { int64_t factor, rest, divisor; char symbols[40]; } opdi_open_data;

/* Reads size `dim` in the text of a slot at point k, such as "(2*u0 + 1, 3)".  Returns whether it depends on data. */
static bool opdi_open_read_data(const opdi_open_trace *trace, int k, int64_t slot, int dim, opdi_open_data *data) {
    const char *const text = trace->texts[k] ? trace->texts[k][slot] : NULL, *at = text ? text + 1 : "";
    opdi_text symbols = opdi_text_of(data->symbols, sizeof data->symbols);
    for (int depth = 0; *at && (dim || depth); at++) {
        depth += (*at == '(') - (*at == ')');
        dim -= *at == ',' && !depth;
    }
    char *end;
    at += strspn(at, " (");
    data->factor = data->divisor = 1;
    data->rest = 0;
    if (*at >= '0' && *at <= '9') {
        data->factor = strtoll(at, &end, 10);
        at = end + (*end == '*');
    }
    if (*at != 'u') { return false; }
    while (*at == 'u') {
        opdi_text_add(&symbols, "u%lld", strtoll(at + 1, &end, 10) - (long long)trace->first_names[k]);
        opdi_text_add(&symbols, *end == '*' ? "*" : "");
        at = end + (*end == '*');
    }
    if (at[0] == ' ' && (at[1] == '+' || at[1] == '-')) {
        data->rest = strtoll(at + 3, &end, 10) * (at[1] == '-' ? -1 : 1);
        at = end;
    }
    at += *at == ')' && at[1] == '/';
    if (*at == '/') { data->divisor = strtoll(at + 1, NULL, 10); }
    return true;
}
/* Returns the expression with the values y[points->count], or the unknown expression if there is none; points with
   skip[i] do not count.  Returns NULL if memory runs out. */
static const opdi_gexpr *opdi_open_part(opdi_open_trace *trace, const int64_t *y, const bool *skip) {
    bool same = true;
    for (int k = 0; k < trace->points->count; k++) { same = same && (skip[k] || y[k] == y[0]); }
    if (same) { return opdi_gexpr_number(trace->shell, y[0]); }
    const opdi_gexpr *const expr = opdi_fit_find(trace->shell, trace->points, y, trace->known, skip);
    return expr || !opd_ok() ? expr : opdi_gexpr_unknown(trace->shell);
}
/* Finds the expression of a slot whose tensor has sizes that depend on data, from what the fakes say at all points.
   Returns 0, or -1 and sets an error. */
static int opdi_open_fit_data(opdi_open_trace *trace, opdi_open_slot *slot, bool *data) {
    opd_graph *const shell = trace->shell;
    const int64_t number = slot - trace->slots;
    const int dim = slot->index % OPDI_MAX(slot->value->ndim, 1);
    int64_t factors[OPDI_FIT_POINTS], rests[OPDI_FIT_POINTS];
    bool skip[OPDI_FIT_POINTS], same = true;
    opdi_open_data first, other;
    *data = slot->kind == OPDI_SLOT_STRIDE;
    if (*data) { return (slot->expr = opdi_gexpr_unknown(shell)) != NULL ? 0 : -1; }
    if (!opdi_open_read_data(trace, 0, number, dim, &first)) { return 0; }
    *data = true;
    for (int k = 0; k < trace->points->count; k++) {
        skip[k] = !opdi_open_read_data(trace, k, number, dim, &other);
        if (skip[k]) { continue; }
        factors[k] = other.factor;
        rests[k] = other.rest;
        same = same && other.divisor == first.divisor && strcmp(other.symbols, first.symbols) == 0;
    }
    const char *at = first.symbols;
    const opdi_gexpr *const symbols = opdi_gexpr_read(shell, &at, true);
    if (!symbols || !same) { return opd_ok() && (slot->expr = opdi_gexpr_unknown(shell)) != NULL ? 0 : -1; }
    for (int i = trace->points->n; i < shell->sizes->count; i++) { shell->sizes->names[i].least = 0; }
    const opdi_gexpr *const factor = opdi_open_part(trace, factors, skip);
    const opdi_gexpr *const rest = factor ? opdi_open_part(trace, rests, skip) : NULL;
    if (!rest) { return -1; }
    if (factor->kind == OPDI_GEXPR_UNKNOWN || rest->kind == OPDI_GEXPR_UNKNOWN) {
        return (slot->expr = opdi_gexpr_unknown(shell)) != NULL ? 0 : -1;
    }
    slot->expr = opdi_gexpr_of(shell, OPDI_GEXPR_ADD, opdi_gexpr_of(shell, OPDI_GEXPR_MUL, factor, symbols), rest);
    slot->expr = opdi_gexpr_of(shell, OPDI_GEXPR_DIV, slot->expr, opdi_gexpr_number(shell, first.divisor));
    return slot->expr ? 0 : -1;
}
/* Returns a float that is computed from an integer by the same operations as in the graph. */
static double opdi_open_float(int form, double factor, int64_t number) {
    const double x = form < 2 ? (double)number : sqrt((double)number);
    return form % 2 ? factor / x : factor * x;
}
/* Finds how a float is computed from an integer expression: factor * E, factor / E, or the same with the square root of
   E.  Returns false if it finds nothing. */
static bool opdi_open_fit_float(opdi_open_trace *trace, opdi_open_slot *slot, const int64_t *bits) {
    static const double factors[] = {1, -1, 2, -2, 0.5, 4};
    int64_t numbers[OPDI_FIT_POINTS];
    for (int way = 0; way < 4 * 6; way++) {
        const double factor = factors[way / 4];
        bool fits = true;
        for (int k = 0; k < trace->points->count && fits; k++) {
            const double value = opdi_double((uint64_t)bits[k]);
            const double whole = way % 4 < 2 ? way % 2 ? factor / value : value / factor
                : way % 2 ? factor / value * (factor / value) : value / factor * (value / factor);
            fits = fabs(whole) < 1e15 && fabs(whole) > 0.5;
            numbers[k] = fits ? (int64_t)floor(whole + 0.5) : 0;
            const double again = opdi_open_float(way % 4, factor, numbers[k]);
            fits = fits && memcmp(&value, &again, sizeof value) == 0;
        }
        if (!fits || !(slot->expr = opdi_fit_find(trace->shell, trace->points, numbers, trace->known, NULL))) {
            continue;
        }
        slot->form = way % 4;
        slot->factor = factor;
        return true;
    }
    return false;
}
/* Sets the error that no expression was found for a number.  Returns -1. */
static int opdi_open_no_expression(opdi_open_trace *trace, const opdi_open_slot *slot, const int64_t *y) {
    static const char *const kinds[] = {"a size of a result of", "a stride of a result of",
                                        "an integer that is given to",
                                        "a float that is given to"};
    char at[2][300], numbers[2][60], why[300];
    int other = 0;
    for (int k = 1; k < trace->points->count && (!other || trace->points->along[k] >= 0); k++) {
        if (y[k] != y[0]) { other = k; }
    }
    trace->options.locations = true;
    opd_graph *const again = opdi_open_record_once(trace, trace->points->at[0]);
    if (!again && !opd_ok()) { return -1; }
    int64_t which = slot - trace->slots;
    opdi_open_slot *const slots = (opdi_open_slot *)opdi_scope_alloc(((size_t)trace->nslots + 1) * sizeof *slots);
    if (!slots) {
        opd_graph_free(again);
        return -1;
    }
    const opdi_gnode *node = slot->node;
    if (again && opdi_open_numbers(again, NULL, NULL) == trace->nslots) {
        (void)opdi_open_numbers(again, NULL, slots);
        node = slots[which].node;
    }
    opdi_open_node_text(opdi_open_call(node), why, sizeof why);
    opd_graph_free(again);
    for (int i = 0; i < 2; i++) {
        const int64_t number = y[i ? other : 0];
        (void)opdi_open_at_text(trace, trace->points->at[i ? other : 0], at[i], sizeof at[i]);
        if (slot->kind != OPDI_SLOT_FLOAT) { (void)snprintf(numbers[i], sizeof numbers[i], "%lld", (long long)number); }
        else { (void)snprintf(numbers[i], sizeof numbers[i], "%g", opdi_double((uint64_t)number)); }
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s %s is %s with %s, and %s with %s, but no sum, product or quotient "
        "of the open "
                    "sizes is so for all sizes.  Narrow the ranges", opdi_open_who, kinds[slot->kind], why, numbers[0],
                    at[0], numbers[1], at[1]);
}
/* Finds the expressions of all numbers that differ between the recordings.  `memo` has those that were found already,
   by their numbers.  Returns 0, or -1 and sets an error. */
static int opdi_open_fit_all(opdi_open_trace *trace) {
    const size_t bytes = (size_t)trace->points->count * sizeof(int64_t);
    opdi_arena *const arena = &trace->shell->arena;
    opdi_index memo;
    memset(&memo, 0, sizeof memo);
    for (int64_t i = 0; i < trace->nslots; i++) {
        opdi_open_slot *const slot = &trace->slots[i];
        int64_t y[OPDI_FIT_POINTS];
        bool skip[OPDI_FIT_POINTS], data = false;
        slot->expr = NULL;
        if (slot->by_data && opdi_open_fit_data(trace, slot, &data)) { return -1; }
        if (data || !opdi_open_gather(trace, i, y, skip)) { continue; }
        if (slot->kind == OPDI_SLOT_FLOAT) {
            if (opdi_open_fit_float(trace, slot, y)) { continue; }
            return opd_ok() ? opdi_open_no_expression(trace, slot, y) : -1;
        }
        for (int k = 0; k < trace->points->count; k++) { if (skip[k]) { y[k] = -1; } }
        slot->expr = (const opdi_gexpr *)opdi_index_get(&memo, (const char *)y, bytes);
        if (slot->expr) { continue; }
        const bool stride = slot->kind == OPDI_SLOT_STRIDE;
        slot->expr = opdi_fit_find(trace->shell, trace->points, y, trace->known, stride ? skip : NULL);
        if (!slot->expr && opd_ok() && stride) { slot->expr = opdi_gexpr_unknown(trace->shell); }
        if (!slot->expr) { return opd_ok() ? opdi_open_no_expression(trace, slot, y) : -1; }
        char *const key = opdi_arena_copy(arena, (const char *)y, bytes);
        if (!key || opdi_index_set(&memo, arena, key, bytes, (void *)(uintptr_t)slot->expr)) { return -1; }
    }
    return 0;
}
/* Records at the sizes where the quotients in an expression change.  Returns 0, or -1 and sets an error. */
static int opdi_open_refine(opdi_open_trace *trace, const opdi_gexpr *expr) {
    int64_t values[OPDI_OPEN_NAMES], factor, rest;
    int32_t name;
    if (!expr) { return 0; }
    if (expr->kind == OPDI_GEXPR_DIV && expr->args[1]->kind == OPDI_GEXPR_NUMBER &&
        opdi_gexpr_line(expr->args[0], &name, &factor, &rest) && factor == 1) {
        const opdi_gsize *const size = &trace->shell->sizes->names[name];
        const int64_t by = expr->args[1]->number;
        for (int k = 0; k < 2; k++) {
            memcpy(values, trace->points->at[0], sizeof values);
            values[name] = (values[name] + rest) / by * by - rest + by - k;
            if (values[name] > size->most) { values[name] -= by; }
            if (values[name] < size->least || values[name] > size->most || values[name] % size->step) { continue; }
            if (opdi_open_sample(trace, values, name)) {
                return opd_ok() ? opdi_open_narrow(trace, name, values, trace->points->at[0][name]) : -1;
            }
        }
    }
    return opdi_open_refine(trace, expr->args[0]) || opdi_open_refine(trace, expr->args[1]) ? -1 : 0;
}
/* Compares the first recording, which has the numbers of real tensors, with the expressions.  Returns 0, or -1 and sets
   an error. */
static int opdi_open_compare_first(opdi_open_trace *trace) {
    int64_t *const numbers = (int64_t *)opdi_scope_alloc(((size_t)trace->nslots + 1) * sizeof *numbers);
    if (!numbers) { return -1; }
    (void)opdi_open_numbers(trace->graph, numbers, NULL);
    for (int64_t i = 0; i < trace->nslots; i++) {
        const opdi_open_slot *const slot = &trace->slots[i];
        int64_t want = trace->numbers[0][i];
        char why[300];
        if (slot->kind == OPDI_SLOT_STRIDE || slot->kind == OPDI_SLOT_FLOAT) { continue; }
        if (slot->expr && !opdi_gexpr_value(slot->expr, trace->example, (1u << trace->points->n) - 1, &want)) {
            continue;
        }
        if (want == numbers[i]) { continue; }
        opdi_open_node_text(opdi_open_call(slot->node), why, sizeof why);
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s %s is %lld with the inputs, but %lld with others of the same "
            "sizes: it "
                        "depends on data, and would be a constant of the graph", opdi_open_who,
                        slot->kind == OPDI_SLOT_SIZE ? "a size of a result of" : "a number that is given to", why,
                        (long long)numbers[i], (long long)want);
    }
    return 0;
}
/* Finds all expressions, with more recordings where quotients change.  Returns 0, or -1 and sets an error. */
static int opdi_trace_find_open(opdi_open_trace *trace) {
    for (int round = 0; round < 8; round++) {
        const int before = trace->points->count;
        trace->known->count = 0;
        for (int i = 0; i < trace->points->n; i++) {
            if (!(trace->known->exprs[trace->known->count++] = opdi_gexpr_name(trace->shell, i))) { return -1; }
        }
        if (opdi_open_fit_all(trace)) { return -1; }
        for (int k = 0; k < trace->known->count; k++) {
            if (opdi_open_refine(trace, trace->known->exprs[k])) { return -1; }
        }
        if (trace->points->count == before) { return opdi_open_compare_first(trace); }
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: the quotients of open sizes are not found", opdi_open_who);
}

//== the graph =========================================================================================================

/* Gives the values of the graph their expressions, and replaces constants by nodes that compute them.  Returns 0, or -1
   and sets an error. */
static int opdi_open_apply(opdi_open_trace *trace) {
    opd_graph *const graph = trace->graph;
    opdi_gmaker maker;
    if (opdi_gsizes_copy(trace->shell, graph)) { return -1; }
    for (int32_t i = 0; i < graph->ninputs; i++) {
        opdi_gvalue *const input = graph->inputs[i], *const shell = trace->shell->inputs[i];
        if (shell->open && opdi_gvalue_open_copy(graph, shell, input)) { return -1; }
    }
    for (int64_t i = 0; i < trace->nslots; i++) {
        const opdi_open_slot *const slot = &trace->slots[i];
        const int count = slot->value->tag == OPD_TAG_TENSOR ? 2 * slot->value->ndim : 1;
        if (!slot->expr || (!slot->value->node && !slot->value->block && slot->kind == OPDI_SLOT_SIZE) ||
            slot->kind == OPDI_SLOT_INT || slot->kind == OPDI_SLOT_FLOAT) { continue; }
        if (!slot->value->open) {
            slot->value->open = (const opdi_gexpr **)opdi_graph_alloc(graph, (size_t)count * sizeof *slot->value->open);
            if (!slot->value->open) { return -1; }
        }
        if (!(slot->value->open[slot->index] = opdi_gexpr_copy(graph, slot->expr))) { return -1; }
    }
    opdi_gmaker_begin(&maker, graph);
    for (int64_t i = 0; i < trace->nslots; i++) {
        opdi_open_slot *const slot = &trace->slots[i];
        if (!slot->expr || (slot->kind != OPDI_SLOT_INT && slot->kind != OPDI_SLOT_FLOAT)) { continue; }
        const opdi_gexpr *const expr = opdi_gexpr_copy(graph, slot->expr);
        slot->value->same = !expr ? NULL : slot->kind == OPDI_SLOT_INT ? opdi_gmaker_value(&maker, expr)
            : opdi_gmaker_float(&maker, expr, slot->form, slot->factor);
        if (!slot->value->same) {
            opdi_gmaker_free(&maker);
            return -1;
        }
    }
    return opdi_gmaker_end(&maker);
}
/* Records with the sizes of the inputs, on fakes or, if an operator has no fake kernel, on zeros.  Returns 0, or -1 and
   sets an error. */
static int opdi_open_begin(opdi_open_trace *trace) {
    const size_t count = (size_t)opdi_open_numbers(trace->graph, NULL, NULL);
    trace->nslots = (int64_t)count;
    trace->slots = (opdi_open_slot *)opdi_scope_alloc((count + 1) * sizeof *trace->slots);
    trace->points = (opdi_fit_points *)opdi_scope_alloc(sizeof *trace->points);
    trace->numbers = (int64_t **)opdi_scope_alloc(OPDI_FIT_POINTS * sizeof *trace->numbers);
    trace->known = (opdi_fit_known *)opdi_scope_alloc(sizeof *trace->known);
    trace->texts = (const char ***)opdi_scope_alloc(OPDI_FIT_POINTS * sizeof *trace->texts);
    trace->first_names = (int *)opdi_scope_alloc(OPDI_FIT_POINTS * sizeof *trace->first_names);
    if (!trace->slots || !trace->points || !trace->numbers || !trace->known || !trace->texts ||
        !trace->first_names) { return -1; }
    memset((void *)trace->texts, 0, OPDI_FIT_POINTS * sizeof *trace->texts);
    memset(trace->points, 0, sizeof *trace->points);
    (void)opdi_open_numbers(trace->graph, NULL, trace->slots);
    for (int i = 0; i < 2; i++) {
        trace->fakes = i == 0;
        opd_graph *const again = opdi_open_record_once(trace, trace->example);
        opd_graph_free(again);
        if (again) { return 0; }
        if (!opd_ok()) { return -1; }
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: the function fails with inputs that are zero: %.400s", opdi_open_who,
                    trace->text);
}
static opd_graph *opdi_trace_open(opdi_open_trace *trace, const char *const *sizes, const char *ranges,
                                  const opd_trace_options *options) {
    if (!(trace->shell = opdi_graph_new()) || opdi_open_read(trace, sizes, ranges)) { return NULL; }
    if (options) { trace->options = *options; }
    trace->options.names = NULL;
    trace->options.check = false;
    trace->graph = opdi_trace_once(trace->fn, trace->user, trace->inputs, trace->ninputs, options);
    if (!trace->graph || opdi_open_begin(trace) || opdi_open_sample_all(trace) || opdi_trace_find_open(trace) ||
        opdi_open_apply(trace)) { return NULL; }
    return trace->graph;
}
opd_graph *opd_graph_trace_open(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                                const char *const *sizes, const char *ranges, const opd_trace_options *options) {
    OPDI_NEEDS_ALL();
    opdi_open_trace trace;
    if (opdi_visits_left(opdi_self()) || !opd_ok()) { return NULL; }
    memset(&trace, 0, sizeof trace);
    trace.fn = fn;
    trace.user = user;
    trace.inputs = inputs;
    trace.ninputs = ninputs;
    bool wrong = !fn || ninputs < 0 || (ninputs && !inputs);
    for (int i = 0; i < ninputs && !wrong; i++) { wrong = !inputs[i]; }
    if (wrong || opdi_self()->innermost.tracer || opd_transform_depth()) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, wrong ? "%s: the function or an input is NULL"
                       : "%s: a trace inside of a trace or of a transform cannot have open sizes", opdi_open_who);
        return NULL;
    }
    if (opdi_any_dead(inputs, ninputs, opdi_open_who)) { return NULL; }
    opd_scope scope = opd_scope_open();
    opd_graph *graph = opdi_trace_open(&trace, sizes, ranges, options);
    opd_scope_close(&scope);
    if (graph && options && options->check && opdi_trace_check(graph, fn, user, inputs, ninputs, options)) {
        graph = NULL;
    }
    if (!graph) { opd_graph_free(trace.graph); }
    opd_graph_free(trace.shell);
    return graph;
}
