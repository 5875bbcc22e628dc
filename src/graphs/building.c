#include "graphs.h"

//== building graphs by calls of C functions ===========================================================================

/* Returns the block into which new nodes are inserted. */
static opdi_gblock *opdi_graph_into(opd_graph *graph) { return graph->into ? graph->into : &graph->body; }
/* Begins a change by the public function `who`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_build_begin(opdi_graph_builder *build, opd_graph *graph, const char *who) {
    if (!opd_ok()) { return -1; }
    if (!graph) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: the graph is NULL", who); }
    memset(build, 0, sizeof *build);
    build->parser.graph = graph;
    build->parser.who = who;
    build->parser.at = "";
    build->before = graph->at ? graph->at->prev : opdi_graph_into(graph)->last;
    build->next_id = graph->next_id;
    build->scope = opd_scope_open();
    build->was = opdi_enter(opdi_self());
    return 0;
}
/* Ends a change.  If it failed (`done` is false), removes the nodes that it has added.  Returns 0, or -1 if
   it failed. */
OPDI_INTERNAL int opdi_graph_build_end(opdi_graph_builder *build, bool done) {
    opd_graph *graph = build->parser.graph;
    opdi_gnode *node;
    if (!done) {
        while ((node = build->before ? build->before->next : opdi_graph_into(graph)->first) != graph->at) {
            opdi_gnode_remove(graph, node);
        }
        graph->next_id = build->next_id;
    }
    opd_scope_close(&build->scope);
    opdi_leave(opdi_self(), build->was);
    return done ? 0 : -1;
}
/* Checks that values belong to the graph and are computed before its insertion point.  If `defaults` is true, a value
   may be NULL, which means the default of an argument.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_build_values(opdi_graph_builder *build, opdi_gvalue *const *values, int count,
                                          bool defaults) {
    opd_graph *graph = build->parser.graph;
    if (count < 0 || (count && !values)) {
        return opdi_graph_parse_fail(&build->parser, "the pointer to the values is NULL");
    }
    for (int i = 0; i < count; i++) {
        if (!values[i] && defaults) { continue; }
        if (!values[i] || values[i]->graph != graph) {
            return opdi_graph_parse_fail(&build->parser,
                                         values[i] ? "value %d is not a value of this graph" : "value %d is NULL", i);
        }
        if (!opdi_graph_sees(graph, opdi_gvalue_block(graph, values[i]), values[i]->node,
                             opdi_graph_into(graph), graph->at)) {
            return opdi_graph_parse_fail(&build->parser, "value %d is made after the place where nodes are inserted, "
                                         "or in an inner block", i);
        }
    }
    return 0;
}
/* Checks that the values `args` have the types of the inputs of `inner`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_build_types(opdi_graph_builder *build, const opd_graph *inner, opdi_gvalue *const *args) {
    for (int32_t i = 0; i < inner->ninputs; i++) {
        char text[200] = "", given[200] = "";
        opdi_text want = opdi_text_of(text, sizeof text), have = opdi_text_of(given, sizeof given);
        const opdi_gtype *const type = opdi_gvalue_gtype((opd_graph *)(uintptr_t)inner, inner->inputs[i]);
        const opdi_gtype *const actual = opdi_gvalue_gtype(build->parser.graph, args[i]);
        if (!type || !actual) { return -1; }
        if (opdi_gtype_fits(actual, type)) { continue; }
        opdi_gtype_print(&want, type, false);
        opdi_gtype_print(&have, actual, false);
        return opdi_graph_parse_fail(&build->parser, "value %d has the type %s, but the input has the type %s", (int)i,
                                     given, text);
    }
    return 0;
}
static opdi_gvalue *opdi_graph_build_node(opdi_graph_builder *build, opdi_gkind kind, opdi_gvalue *const *in, int nin,
                                          int nout, int32_t tag) {
    opd_graph *graph = build->parser.graph;
    opdi_gnode *node = opdi_gnode_new(graph, kind, nin, nout);
    if (!node) { return NULL; }
    for (int i = 0; i < nout; i++) { if (!(node->out[i] = opdi_gvalue_new(graph, node, tag))) { return NULL; } }
    if (nin) { memcpy(node->in, in, (size_t)nin * sizeof *in); }
    opdi_gnode_append(graph, node);
    return nout ? node->out[0] : NULL;
}

opd_graph *opd_graph_new(void) { return opd_ok() ? opdi_graph_new() : NULL; }

/* Returns whether a value contains an object of the program. */
static bool opdi_value_has_object(const opd_value *value) {
    bool has = value->tag == OPD_TAG_OBJECT;
    for (int32_t i = 0; value->tag == OPD_TAG_LIST && value->u.list && i < value->n && !has; i++) {
        has = opdi_value_has_object(&value->u.list[i]);
    }
    return has;
}
/* Checks that `value` can be a constant.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_constant_check(opdi_graph_builder *build, const opd_value *value) {
    int32_t k = 0;
    const bool list = opdi_is_list(value);
    const bool object = value->tag == OPD_TAG_TENSOR || value->tag == OPD_TAG_STR || value->tag == OPD_TAG_COMPLEX;
    while (value->tag == OPD_TAG_TENSORS && k < value->n && value->u.tensors &&
           (!value->u.tensors[k] || !opdi_requires_grad(value->u.tensors[k]))) { k++; }
    if (value->tag < 0 || value->tag >= OPD_TAG_DEFAULT || opdi_value_has_object(value) ||
        (list && value->n < 0) || ((object || (list && value->n)) && !value->u.object)) {
        return opdi_graph_parse_fail(&build->parser, "%s cannot be a constant", opdi_value_kind_name(value));
    }
    if ((value->tag == OPD_TAG_TENSOR && opdi_requires_grad(value->u.t)) ||
        (value->tag == OPD_TAG_TENSORS && k < value->n)) {
        return opdi_graph_parse_fail(&build->parser,
                                     "Cannot insert a Tensor that requires grad as a constant. Consider making it a "
                                     "parameter or input, or detaching the gradient");
    }
    return 0;
}
/* Returns the value of the graph for the constant `value`.  Returns NULL and sets an error if `value` cannot be a
   constant. */
opd_graph_value *opd_graph_constant(opd_graph *graph, opd_value value) {
    opdi_graph_builder build;
    opdi_gvalue *other = NULL;
    if (opdi_graph_build_begin(&build, graph, "opd_graph_constant")) { return NULL; }
    if (opdi_graph_constant_check(&build, &value) == 0) { other = opdi_graph_constants(graph, &value); }
    return opdi_graph_build_end(&build, other != NULL) ? NULL : other;
}

opd_graph_value *opd_graph_list(opd_graph *graph, const char *element, opd_graph_value *const *values, int count) {
    opdi_graph_builder build;
    opdi_gvalue *value = NULL;
    bool done = false;
    int row = 0;
    if (opdi_graph_build_begin(&build, graph, "opd_graph_list")) { return NULL; }
    if (!element) { element = ""; }
    while (row < 5 && strcmp(element, opdi_graph_list_rows[row].word) != 0) { row++; }
    if (strcmp(element, "Tensor?") == 0) { row = 3; }
    if (row == 5) {
        (void)opdi_graph_parse_fail(&build.parser, "there are no lists of '%.40s': use Tensor, Tensor?, int, float, "
                                    "bool or Scalar", element);
    } else if (opdi_graph_build_values(&build, values, count, false) == 0 &&
             (value = opdi_graph_build_node(&build, OPDI_GNODE_LIST, values, count, 1,
                                            opdi_graph_list_rows[row].list)) != NULL) {
        value->node->word = row == 3 && element[6] ? "Tensor?" : opdi_graph_list_rows[row].word;
        done = opdi_graph_parse_list(&build.parser, value->node) == 0;
    }
    return opdi_graph_build_end(&build, done) ? NULL : value;
}
/* After a failure, sets the `count` values to NULL.  Returns -1. */
static int opdi_graph_build_nothing(opd_graph_value **values, int count) {
    for (int i = 0; values && i < count; i++) { values[i] = NULL; }
    return -1;
}
int opd_graph_unpack(opd_graph *graph, opd_graph_value *list, opd_graph_value **parts, int count) {
    opdi_graph_builder build;
    bool done = false;
    if (opdi_graph_build_begin(&build, graph, "opd_graph_unpack")) { return opdi_graph_build_nothing(parts, count); }
    if (count < 0 || (count && !parts)) {
        (void)opdi_graph_parse_fail(&build.parser, "the pointer to the elements is NULL");
    }
    else if (opdi_graph_build_values(&build, &list, 1, false) == 0) {
        (void)opdi_graph_build_node(&build, OPDI_GNODE_UNPACK, &list, 1, count, OPD_TAG_TENSOR);
        opdi_gnode *const node = graph->at ? graph->at->prev : opdi_graph_into(graph)->last;
        done = opd_ok() && opdi_graph_parse_prim(&build.parser, node) == 0;
        if (done && count) {
            memcpy(parts, node->out, (size_t)count * sizeof *parts);
        }
    }
    return opdi_graph_build_end(&build, done) ? opdi_graph_build_nothing(parts, count) : 0;
}

OPDI_INTERNAL int opdi_graph_build_call(opdi_graph_builder *build, opd_op *op, opdi_gvalue *const *args, int nargs,
                                        opdi_gvalue **results, int cap) {
    opdi_gvalue *in[OPD_MAX_ARGS];
    opdi_gnode *node;
    if (nargs) { memcpy(in, args, (size_t)nargs * sizeof *in); }
    if (!(node = opdi_gnode_new(build->parser.graph, OPDI_GNODE_OP, op->nargs, op->nrets))) { return -1; }
    node->op = op;
    if (opdi_graph_parse_bind(&build->parser, node, op, in, nargs)) { return -1; }
    for (int i = 0; i < op->nrets; i++) {
        node->out[i] = opdi_gvalue_new(build->parser.graph, node, opdi_graph_tag_of(op->schema->returns[i].type));
        if (!node->out[i]) { return -1; }
    }
    opdi_gnode_append(build->parser.graph, node);
    for (int i = 0; i < op->nrets && i < cap; i++) { results[i] = node->out[i]; }
    return 0;
}
int opd_graph_call_op(opd_graph *graph, opd_op *op, opd_graph_value *const *args, int nargs, opd_graph_value **results,
                      int cap) {
    opdi_graph_builder build;
    char text[500];
    opdi_text why = opdi_text_of(text, sizeof text);
    bool done = false;
    if (opdi_graph_build_begin(&build, graph, "opd_graph_call")) { return opdi_graph_build_nothing(results, cap); }
    if (!op) { (void)opdi_graph_parse_fail(&build.parser, "the operator is NULL"); }
    else if (cap > 0 && !results) { (void)opdi_graph_parse_fail(&build.parser, "the pointer to the results is NULL"); }
    else if (opdi_graph_build_values(&build, args, nargs, true) == 0) {
        if (!opdi_graph_match(op, args, nargs, -1, true, &why)) {
            (void)opdi_graph_parse_fail(&build.parser, "%s", text);
        } else {
            done = opdi_graph_build_call(&build, op, args, nargs, results, cap) == 0;
        }
    }
    return opdi_graph_build_end(&build, done) ? opdi_graph_build_nothing(results, cap) : op->nrets;
}
int opd_graph_call(opd_graph *graph, const char *name, opd_graph_value *const *args, int nargs,
                   opd_graph_value **results, int cap) {
    OPDI_NEEDS_ALL();
    opdi_graph_builder build;
    opd_op *op = NULL;
    if (opdi_graph_build_begin(&build, graph, "opd_graph_call")) { return opdi_graph_build_nothing(results, cap); }
    if (!name) { (void)opdi_graph_parse_fail(&build.parser, "the name of the operator is NULL"); }
    else if (opdi_graph_build_values(&build, args, nargs, true) == 0) {
        op = opdi_graph_parse_op(&build.parser, name, args, nargs, -1, NULL);
    }
    if (opdi_graph_build_end(&build, op != NULL)) { return opdi_graph_build_nothing(results, cap); }
    return opd_graph_call_op(graph, op, args, nargs, results, cap);
}

static opdi_graph_name *opdi_graph_names_put(opdi_graph_names *names, const char *name, opdi_gvalue *value) {
    opdi_graph_name *slot = opdi_graph_name_slot(names->slots, names->size, name, strlen(name));
    names->used += !slot->name;
    slot->name = name;
    if (value) { slot->value = value; }
    return slot;
}
static void opdi_graph_names_put_value(opdi_graph_names *names, opdi_gvalue *value) {
    if (value->name) { (void)opdi_graph_names_put(names, value->name, value); }
}

/* Makes a table of the names of all values of the graph, with space for `more` new names.  If `old` is not NULL, takes
   the members `suffix` from its entries.  Returns the table, or NULL if memory runs out. */
static opdi_graph_names *opdi_graph_names_make(const opd_graph *graph, const opdi_graph_names *old, int64_t more) {
    int64_t count = graph->ninputs + more, size = 64;
    opdi_graph_names *names;
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int i = 0; i < node->nout; i++) { count += node->out[i]->name != NULL; }
        for (int32_t k = 0; k < node->nblocks; k++) { count += node->blocks[k].ninputs; }
    }
    for (int64_t k = 0; old && k < old->size; k++) { count += old->slots[k].suffix != 0; }
    while (size < 4 * count) { size *= 2; }
    if (!(names = (opdi_graph_names *)opdi_alloc(opdi_graph_names_bytes(size)))) { return NULL; }
    memset(names, 0, opdi_graph_names_bytes(size));
    names->size = size;
    names->slots = (opdi_graph_name *)(names + 1);
    for (int i = 0; i < graph->ninputs; i++) { opdi_graph_names_put_value(names, graph->inputs[i]); }
    for (const opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int i = 0; i < node->nout; i++) { opdi_graph_names_put_value(names, node->out[i]); }
        for (int32_t k = 0; k < node->nblocks; k++) {
            for (int32_t i = 0; i < node->blocks[k].ninputs; i++) {
                opdi_graph_names_put_value(names, node->blocks[k].inputs[i]);
            }
        }
    }
    for (int64_t k = 0; old && k < old->size; k++) {
        if (old->slots[k].suffix) {
            opdi_graph_names_put(names, old->slots[k].name, NULL)->suffix = old->slots[k].suffix;
        }
    }
    return names;
}
/* Returns the graph's table of names, with space for at least `more` new names.  Returns NULL if memory runs out. */
static opdi_graph_names *opdi_graph_names_of(opd_graph *graph, int64_t more) {
    opdi_graph_names *names = graph->names;
    if (names && 2 * (names->used + more) <= names->size) { return names; }
    if (!(names = opdi_graph_names_make(graph, names, more))) { return NULL; }
    opdi_graph_forget_names(graph);
    return graph->names = names;
}

/* Returns the value with the name `name`, or NULL.  Checks the value of the entry, because the table may still have
   values that were removed or renamed. */
static opdi_gvalue *opdi_graph_names_find(const opd_graph *graph, const opdi_graph_names *names, const char *name) {
    opdi_gvalue *const value = opdi_graph_name_slot(names->slots, names->size, name, strlen(name))->value;
    return value && value->graph == graph && value->name && strcmp(value->name, name) == 0 ? value : NULL;
}
/* Returns the value of the graph with the name `name`, or, if `name` is a number such as "12", the value without a name
   that has this number.  Returns NULL if there is none. */
opd_graph_value *opd_graph_find(opd_graph *graph, const char *name) {
    opdi_graph_names *names = graph && name ? OPDI_ACQUIRE(&graph->names) : NULL;
    if (!graph || !name) { return NULL; }
    if (*name < '0' || *name > '9') {
        opdi_graph_names *made = names ? NULL : opdi_graph_names_make(graph, NULL, 0);
        while (made && !names) { if (OPDI_EXCHANGE(&graph->names, &names, made)) { names = made; } }
        if (made != names) { opdi_graph_names_free(made); }   /* another thread has set graph->names meanwhile */
        return names ? opdi_graph_names_find(graph, names, name) : NULL;
    }
    int64_t id = strtoll(name, NULL, 10);
    for (int i = 0; i < graph->ninputs; i++) {
        if (!graph->inputs[i]->name && graph->inputs[i]->id == id) { return graph->inputs[i]; }
    }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int i = 0; i < node->nout; i++) {
            if (!node->out[i]->name && node->out[i]->id == id) { return node->out[i]; }
        }
        for (int32_t k = 0; k < node->nblocks; k++) {
            for (int32_t i = 0; i < node->blocks[k].ninputs; i++) {
                opdi_gvalue *const input = node->blocks[k].inputs[i];
                if (!input->name && input->id == id) { return input; }
            }
        }
    }
    return NULL;
}

/* Returns a name that no value has: `name` with the lowest free suffix, such as "x.2"; or NULL if memory runs out.  In
   the entry for "x", the member `suffix` is the lowest suffix that may be free. */
static char *opdi_graph_free_name(opd_graph *graph, opdi_graph_names *names, const char *name) {
    int32_t from;
    const int base = opdi_graph_name_base(name, &from);
    opdi_graph_name *const slot = opdi_graph_name_slot(names->slots, names->size, name, (size_t)base);
    char *out = (char *)opdi_arena_alloc(&graph->arena, (size_t)base + 13);
    if (!out || (!slot->name && !(slot->name = opdi_arena_copy(&graph->arena, name, (size_t)base)))) { return NULL; }
    names->used += !slot->value && !slot->suffix;
    int32_t suffix = OPDI_MAX(from, slot->suffix);
    do {
        (void)snprintf(out, (size_t)base + 13, "%.*s.%d", base, name, suffix++);
    } while (opdi_graph_names_find(graph, names, out));
    if (from <= OPDI_MAX(slot->suffix, 1)) { slot->suffix = suffix; }
    return out;
}

/* Gives a new value of the graph the name `name`, or if another value has it, one such as "name.1".  Returns 0, or -1
   if memory runs out. */
OPDI_INTERNAL int opdi_graph_name_new(opd_graph *graph, opdi_gvalue *value, const char *name) {
    opdi_graph_names *const names = opdi_graph_names_of(graph, 3);
    if (!names) { return -1; }
    value->name = opdi_graph_names_find(graph, names, name) ? opdi_graph_free_name(graph, names, name)
        : opdi_arena_copy(&graph->arena, name, strlen(name));
    if (!value->name) { return -1; }
    (void)opdi_graph_names_put(names, value->name, value);
    return 0;
}

/* Sets the name and the type of a value; if one of them is NULL, it is not changed.  Returns 0.  On failure, changes
   nothing, returns -1 and sets an error. */
static int opdi_graph_build_describe(opdi_graph_builder *build, opdi_gvalue *value, const char *name,
                                     const char *type) {
    opd_graph *graph = build->parser.graph;
    opdi_gvalue to = *value, *old = NULL;
    opdi_graph_names *names = NULL;
    const char *word;
    char *copy = NULL, *other = NULL;
    if (type) {
        build->parser.at = type;
        if (opdi_graph_parse_type(&build->parser, &to, &word)) { return -1; }
        if (*build->parser.at) {
            return opdi_graph_parse_fail(&build->parser, "there is more text after the type: '%.40s'",
                                         build->parser.at);
        }
        if (to.tag != value->tag || (value->node && value->node->kind == OPDI_GNODE_CONSTANT)) {
            return opdi_graph_parse_fail(&build->parser, "the value cannot have the type '%.100s'", type);
        }
    }
    if (name && *name) {
        if (name[strspn(name, OPDI_GRAPH_NAME)] || (*name >= '0' && *name <= '9')) {
            return opdi_graph_parse_fail(&build->parser, "'%.100s' is not a name: use letters, digits, '_' and '.', "
                                         "and no digit at the beginning", name);
        }
        names = opdi_graph_names_of(graph, 3);
        if (!names || !(copy = opdi_arena_copy(&graph->arena, name, strlen(name)))) { return -1; }
        old = opdi_graph_names_find(graph, names, name);
        if (old && old != value && !(other = opdi_graph_free_name(graph, names, name))) { return -1; }
        (void)opdi_graph_names_put(names, copy, value);
    }
    if (name) {
        opdi_graph_names_release(graph, value);
        if (other) {
            old->name = other;
            (void)opdi_graph_names_put(names, other, old);
        }
        to.name = copy;
        if (!copy && to.id < 0) { to.id = graph->next_id++; }
    }
    *value = to;
    return 0;
}
int opd_graph_describe(opd_graph *graph, opd_graph_value *value, const char *name, const char *type) {
    opdi_graph_builder build;
    if (opdi_graph_build_begin(&build, graph, "opd_graph_describe")) { return -1; }
    bool done = value && value->graph == graph ? opdi_graph_build_describe(&build, value, name, type) == 0
        : opdi_graph_parse_fail(&build.parser,
                                value ? "the value is not a value of this graph" : "the value is NULL") == 0;
    return opdi_graph_build_end(&build, done);
}

/* Adds an input after the existing inputs and returns it.  On failure, returns NULL and sets an error. */
opd_graph_value *opd_graph_input(opd_graph *graph, const char *name, const char *type) {
    opdi_graph_builder build;
    opdi_gvalue *value = NULL;
    bool done = false;
    if (opdi_graph_build_begin(&build, graph, "opd_graph_input")) { return NULL; }
    if (opdi_graph_reserve_inputs(graph, graph->ninputs + 1) == 0 &&
        (value = opdi_gvalue_new(graph, NULL, OPD_TAG_TENSOR)) != NULL) {
        done = opdi_graph_build_describe(&build, value, name && *name ? name : NULL, type) == 0;
        if (done) {
            graph->inputs[graph->ninputs++] = value;
            opdi_graph_changed(graph);
        }
    }
    return opdi_graph_build_end(&build, done) ? NULL : value;
}

/* Makes new nodes be inserted before the node of `value` or, if `after` is true, after it.  For an input of the graph
   or of a block, nodes are inserted before all nodes of the graph or block.  If `value` is NULL, nodes are inserted at
   the end of the graph.  Returns 0, or -1 and sets an error. */
static int opdi_graph_insert_at(opd_graph *graph, opdi_gvalue *value, bool after, const char *who) {
    opdi_graph_builder build;
    if (opdi_graph_build_begin(&build, graph, who)) { return -1; }
    const bool done = !value || value->graph == graph ||
        opdi_graph_parse_fail(&build.parser, "the value is not a value of this graph") == 0;
    (void)opdi_graph_build_end(&build, true);
    if (!done) { return -1; }
    opdi_gblock *const block = !value ? &graph->body : value->node ? value->node->block
        : value->block ? value->block : &graph->body;
    graph->into = block->owner ? block : NULL;
    graph->at = !value ? NULL : !value->node ? block->first : after ? value->node->next : value->node;
    return 0;
}
int opd_graph_insert_before(opd_graph *graph, opd_graph_value *value) {
    return opdi_graph_insert_at(graph, value, false, "opd_graph_insert_before");
}
int opd_graph_insert_after(opd_graph *graph, opd_graph_value *value) {
    return opdi_graph_insert_at(graph, value, true, "opd_graph_insert_after");
}

/* Makes `values` the outputs of the graph.  If a node has made a tuple or list of the previous outputs, removes the
   node.  Returns 0, or -1 and sets an error. */
int opd_graph_output(opd_graph *graph, opd_graph_value *const *values, int count, bool list) {
    opdi_graph_builder build;
    opdi_gvalue **outputs = NULL, *result = NULL;
    bool done = false;
    if (opdi_graph_build_begin(&build, graph, "opd_graph_output")) { return -1; }
    opdi_gnode *at = graph->at;
    opdi_gblock *const into = graph->into;
    graph->at = NULL;
    graph->into = NULL;
    build.before = graph->body.last;
    done = opdi_graph_build_values(&build, values, count, false) == 0;
    for (int i = 0; done && i < count; i++) {
        const opdi_gnode *const node = values[i]->node;
        const bool made = node && (node->kind == OPDI_GNODE_LIST || node->kind == OPDI_GNODE_TUPLE);
        done = values[i]->tag == OPD_TAG_TENSOR || (count == 1 && !list && !made) ||
            opdi_graph_parse_fail(&build.parser, made ? "output %d is a list or tuple, whose elements are the outputs"
                                  : "output %d is not a tensor", i) == 0;
    }
    done = done && (outputs = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)count * sizeof *outputs)) != NULL;
    if (done && count) {
        memcpy(outputs, values, (size_t)count * sizeof *outputs);
        result = count == 1 && !list ? values[0]
            : opdi_graph_list(graph, list ? OPDI_GNODE_LIST : OPDI_GNODE_TUPLE, list ? OPD_TAG_TENSORS : OPD_TAG_LIST,
                              "Tensor",
                              outputs, count);
        done = result != NULL;
    }
    if (done) {
        opdi_gnode *old = graph->result ? graph->result->node : NULL;
        graph->outputs = outputs;
        graph->noutputs = count;
        graph->result = result;
        opdi_graph_changed(graph);
        opdi_graph_count_uses(graph);             /* `uses` then tells if the node of the previous outputs is still
                                                     used */
        if (old && (old->kind == OPDI_GNODE_TUPLE || old->kind == OPDI_GNODE_LIST) && old->out[0]->uses == 0) {
            if (old == at) { at = old->next; }
            opdi_gnode_remove(graph, old);
        }
    }
    (void)opdi_graph_build_end(&build, done);
    graph->at = at;
    graph->into = into;
    return done ? 0 : -1;
}

/* Removes the node of a value, or an input of the graph.  Returns 0.  Returns -1 and sets an error if the value cannot
   be removed, for example because it is used. */
int opd_graph_erase(opd_graph *graph, opd_graph_value *value) {
    opdi_graph_builder build;
    int i;
    if (opdi_graph_build_begin(&build, graph, "opd_graph_erase")) { return -1; }
    bool done = value && value->graph == graph ? true
        : opdi_graph_parse_fail(&build.parser,
                                value ? "the value is not a value of this graph" : "the value is NULL") == 0;
    if (done) {
        opdi_gvalue **const all = value->node ? value->node->out : &value;
        const int count = value->node ? value->node->nout : 1;
        if (!graph->counted) { opdi_graph_count_uses(graph); }
        for (i = 0; i < count && done; i++) {
            char text[100] = "";
            if (!all[i]->uses) { continue; }
            opdi_text name = opdi_text_of(text, sizeof text);
            opdi_gvalue_name(&name, all[i]);
            done = opdi_graph_parse_fail(&build.parser, "%s is still used", text) == 0;
        }
    }
    if (done && value->block) {
        done = opdi_graph_parse_fail(&build.parser, "the value is an input of a block, which cannot be removed") == 0;
    }
    (void)opdi_graph_build_end(&build, true);
    if (!done) { return -1; }
    if (value->node) {
        opdi_gnode_remove(graph, value->node);
        return 0;
    }
    for (i = --graph->ninputs; graph->inputs[i] != value; i--) { }
    memmove(graph->inputs + i, graph->inputs + i + 1, (size_t)(graph->ninputs - i) * sizeof(opdi_gvalue *));
    value->graph = NULL;
    opdi_graph_names_release(graph, value);
    opdi_graph_changed(graph);
    graph->counted = true;                        /* an input without uses does not change the uses of other values */
    return 0;
}
