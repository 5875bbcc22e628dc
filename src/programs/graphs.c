#include "programs.h"

//== vmap ==============================================================================================================
//
//  In the text of a program, torch.vmap consists of calls of four functions: the first begins a layer, two move tensors
//  into the layer and out of it, and the last ends the layer.  The nodes between the first and the last become a graph,
//  whose first input is the level of the layer.

static int opdi_region_vmap(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const char *const how = args[1].tag == OPD_TAG_STR ? args[1].u.s : "";
    opd_value *const outputs = opdi_control_values(node->nout), *const all = opdi_control_values(node->nin);
    if (!outputs || !all) { return -1; }
    if (args[0].tag != OPD_TAG_INT) { return opdi_region_fail(node, "the number of examples is not an integer"); }
    const int level = opd_vmap_begin(args[0].u.i, strcmp(how, "different") == 0 ? OPD_RANDOM_DIFFERENT
                                     : strcmp(how, "same") == 0 ? OPD_RANDOM_SAME : OPD_RANDOM_ERROR);
    if (level < 0) { return -1; }
    all[0] = opd_value_int(level);
    memcpy(all + 1, args + 2, (size_t)(node->nin - 2) * sizeof *all);
    const int rc = opdi_region_call(node, 0, all, node->nin - 1, outputs, node->nout) ||
        opdi_region_return(rets, outputs, node->nout) ? -1 : 0;
    return opd_vmap_end(level) ? -1 : rc;
}
static int opdi_vmap_move(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const bool in = strcmp(node->function->name, "_add_batch_dim") == 0;
    if (args[0].tag != OPD_TAG_TENSOR || args[1].tag != OPD_TAG_INT || args[2].tag != OPD_TAG_INT) {
        return opdi_region_fail(node, "expected a tensor and its dim");
    }
    const int dim = (int)OPDI_MIN(OPDI_MAX(args[1].u.i, -OPD_MAX_DIMS - 1), OPD_MAX_DIMS), level = (int)args[2].u.i;
    opd_tensor *const moved = in ? opd_vmap_wrap(args[0].u.t, dim, level) : opd_vmap_unwrap(args[0].u.t, dim, level);
    const opd_value value = opd_value_tensor(moved);
    return moved ? opdi_region_return(rets, &value, 1) : -1;
}
static const opdi_region_kind opdi_vmap_kind = {{"vmap", opdi_region_run, true}, opdi_region_vmap, 1, 0, -1};
static const opdi_gfunction opdi_vmap_moves[] = {
    {"_add_batch_dim", opdi_vmap_move, true}, {"_remove_batch_dim", opdi_vmap_move, true}};

/* Returns a letter for the function of torch.vmap that a node calls: 'b' (begins a layer), 'i' (moves a tensor into the
   layer), 'o' (moves a tensor out of it), 'e' (ends the layer), or 'l' (lazy_load_decompositions, which has no effect).
   Returns 0 if the node calls another function. */
static int opdi_vmap_which(const opd_json *json, int64_t node) {
    static const char *const names[] = {"lazy_load_decompositions", "_vmap_increment_nesting", "_add_batch_dim",
                                        "_remove_batch_dim", "_vmap_decrement_nesting"};
    const char *const target = opd_json_text(json, opd_json_get(json, node, "target"), "");
    int i = 0;
    if (strncmp(target, "torch._functorch.predispatch.", 29) != 0) { return 0; }
    while (i < 5 && strcmp(target + 29, names[i]) != 0) { i++; }
    return i < 5 ? "lbioe"[i] : 0;
}
/* Reads argument number `place` of the node at `at` in the JSON.  Returns its value, or NULL and sets an error. */
static opdi_gvalue *opdi_vmap_argument(opdi_program_reader *reader, opdi_program_graph *made, int64_t at, int place) {
    const opd_json *const json = reader->json;
    const int64_t given = opdi_program_given(json, opd_json_first(json, opd_json_get(json, at, "inputs")), "", place);
    if (given < 0) { (void)opdi_program_bad(reader, at, "a vmap has too few arguments"); }
    return given < 0 ? NULL : opdi_program_argument(reader, made, given, NULL);
}
/* Reads a node that moves a tensor into a layer: it adds a batch dim and has the arguments (tensor, dim, level).  If
   `out` is true, reads a node that moves a tensor out of a layer: it removes the dim and has the arguments (tensor,
   level, examples, dim).  Returns 0, or -1 and sets an error. */
static int opdi_vmap_move_node(opdi_program_reader *reader, opdi_program_graph *made, int64_t at, bool out) {
    const opd_json *const json = reader->json;
    opdi_gnode *const node = opdi_gnode_new(made->graph, OPDI_GNODE_FUNCTION, 3, 1);
    if (!made->level) { return opdi_program_bad(reader, at, "a tensor belongs to a vmap that has not begun"); }
    if (!node || !(node->in[0] = opdi_vmap_argument(reader, made, at, 0)) ||
        !(node->in[1] = opdi_vmap_argument(reader, made, at, out ? 3 : 1)) ||
        !(node->out[0] = opdi_gvalue_new(made->graph, node, OPD_TAG_TENSOR))) { return -1; }
    node->in[2] = made->level;
    node->function = &opdi_vmap_moves[out];
    opdi_gnode_append(made->graph, node);
    return opdi_program_results(reader, made, opd_json_first(json, opd_json_get(json, at, "outputs")), node);
}
static int opdi_program_nodes(opdi_program_reader *reader, opdi_program_graph *made, int64_t *at);
OPDI_INTERNAL int opdi_program_begin(opdi_program_reader *reader, opdi_program_graph *made, int64_t graph,
                                     int64_t count);
static int opdi_program_end(opdi_program_graph *made);
/* Returns an upper bound of the number of names that occur inside of a vmap.  `node` is the first node of the vmap. */
static int64_t opdi_vmap_values(const opd_json *json, int64_t node) {
    int64_t count = 0, depth = 1;
    for (; node >= 0 && depth; node = opd_json_next(json, node)) {
        const int which = opdi_vmap_which(json, node);
        depth += which == 'b' ? 1 : which == 'e' ? -1 : 0;
        for (int k = 0; k < 2; k++) {
            int64_t at = opd_json_first(json, opd_json_get(json, node, k ? "outputs" : "inputs"));
            for (; at >= 0; at = opd_json_next(json, at)) {
                count += 1 + opdi_program_union_count(json, k ? at : opd_json_get(json, at, "arg"));
            }
        }
    }
    return count;
}
/* Reads the nodes inside of a vmap into the new graph `inner`, and moves *at to the node that ends the vmap.  Returns
   0, or -1 and sets an error. */
static int opdi_vmap_inside(opdi_program_reader *reader, opdi_program_graph *made, opdi_program_graph *inner,
                            int64_t *at) {
    int64_t count = 0;
    if (opdi_program_begin(reader, inner, made->text, opdi_vmap_values(reader->json, *at))) { return -1; }
    inner->outer = made;
    opdi_string_add_n(&reader->program->graphs, (const char *)(const void *)&inner->graph, sizeof inner->graph);
    if (reader->program->graphs.failed) {
        opd_graph_free(inner->graph);
        return -1;
    }
    inner->level = opdi_program_input_add(inner->graph, OPD_TAG_INT);
    if (!inner->level || opdi_program_nodes(reader, inner, at)) { return -1; }
    if (*at < 0) { return opdi_program_bad(reader, made->text, "a vmap has no end"); }
    for (const opdi_gnode *node = inner->graph->body.first; node; node = node->next) {
        count += node->kind == OPDI_GNODE_FUNCTION && node->function == &opdi_vmap_moves[1];
    }
    opd_graph *const graph = inner->graph;
    graph->outputs = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)(count + 1) * sizeof *graph->outputs);
    if (!graph->outputs) { return -1; }
    for (const opdi_gnode *node = graph->body.first; node; node = node->next) {
        if (node->kind != OPDI_GNODE_FUNCTION || node->function != &opdi_vmap_moves[1]) { continue; }
        graph->outputs[graph->noutputs++] = node->out[0];
    }
    return opdi_program_end(inner);
}
/* Reads a vmap that begins at the node *at, and moves *at to the node that ends it.  Returns 0, or -1 and sets an
   error. */
static int opdi_program_vmap_node(opdi_program_reader *reader, opdi_program_graph *made, int64_t *at) {
    const opd_value none = opd_value_none();
    const int64_t begin = *at;
    opdi_program_region *const region =
        (opdi_program_region *)opdi_arena_alloc(&reader->program->arena, sizeof *region);
    opdi_program_graph inner;
    if (!region) { return -1; }
    memset(region, 0, sizeof *region);
    *at = opd_json_next(reader->json, begin);
    const int rc = ++reader->depth > 40 ? opdi_program_bad(reader, begin, "graphs are nested more than 40 deep")
        : opdi_vmap_inside(reader, made, &inner, at);
    reader->depth--;
    if (rc) { return -1; }
    opd_graph *const graph = inner.graph;
    const int32_t taken = graph->ninputs - 1 - (inner.device != NULL);
    opdi_gnode *const node = opdi_gnode_new(made->graph, OPDI_GNODE_FUNCTION, taken + 3, graph->noutputs);
    if (!node || opdi_program_count(reader->program, opdi_vmap_kind.function.name, NULL)) { return -1; }
    region->graphs[0] = graph;
    region->wants_device[0] = inner.device != NULL;
    node->function = &opdi_vmap_kind.function;
    node->user = region;
    node->in[0] = opdi_vmap_argument(reader, made, begin, 0);
    node->in[1] = node->in[0] ? opdi_vmap_argument(reader, made, begin, 1) : NULL;
    for (int32_t i = 0; i < taken; i++) {
        node->in[2 + i] = opdi_program_slot(made, graph->inputs[1 + i]->name)->value;
    }
    node->in[taken + 2] = inner.device ? opdi_program_device_value(made) : opdi_program_constant(made, NULL, &none);
    if (!node->in[1] || !node->in[taken + 2]) { return -1; }
    for (int32_t i = 0; i < node->nout; i++) {
        node->out[i] = opdi_gvalue_new(made->graph, node, OPD_TAG_TENSOR);
        if (!node->out[i]) { return -1; }
        const char *const name = graph->outputs[i]->name;
        if (name && opdi_program_define(reader, made, begin, name, node->out[i])) { return -1; }
    }
    opdi_gnode_append(made->graph, node);
    return 0;
}
/* Returns whether a node only computes a dtype and has no results.  Such a node is left out, because the exporter has
   already used the dtype. */
static bool opdi_program_computes_dtype(const opd_json *json, int64_t node, const char *target) {
    static const char *const targets[] = {"torch.ops.aten.promote_types.", "torch.ops.aten.result_type.",
                                          "torch.ops.aten.can_cast."};
    bool asks = false;
    for (size_t k = 0; k < sizeof targets / sizeof *targets; k++) {
        asks = asks || strncmp(target, targets[k], strlen(targets[k])) == 0;
    }
    int64_t out = opd_json_first(json, opd_json_get(json, node, "outputs"));
    for (; out >= 0; out = opd_json_next(json, out)) { asks = asks && opd_json_get(json, out, "as_none") >= 0; }
    return asks;
}
/* Reads the node at `at` in the JSON and adds it to the graph.  Returns 0, or -1 and sets an error. */
static int opdi_program_node(opdi_program_reader *reader, opdi_program_graph *made, int64_t at) {
    const char *const target = opd_json_text(reader->json, opd_json_get(reader->json, at, "target"), NULL);
    char name[300], why[700];
    if (!target) { return opdi_program_bad(reader, at, "a node has no target"); }
    const opdi_gfunction *const function = opdi_sym_find(target);
    if (function) {
        return opdi_program_count(reader->program, function->name, NULL) ? -1
            : opdi_program_function_node(reader, made, at, function, NULL);
    }
    if (strcmp(target, "torch.ops.higher_order.with_effects") == 0) {
        return opdi_program_effects_node(reader, made, at);
    }
    if (strcmp(target, "torch.ops.export.access_subclass_inner_tensor.default") == 0) {
        return opdi_program_inner_node(reader, made, at);
    }
    const int vmap = opdi_vmap_which(reader->json, at);
    if (vmap == 'l') { return 0; }
    if (vmap) { return opdi_vmap_move_node(reader, made, at, vmap != 'i'); }
    if (strncmp(target, "torch.ops.higher_order.auto_functionalized", 42) == 0) {
        return opdi_program_functional_node(reader, made, at, strcmp(target + 42, "_v2") == 0);
    }
    const opdi_region_kind *const region = opdi_region_find(target);
    if (region) { return opdi_program_region_node(reader, made, at, region); }
    const char *const qualified = opdi_program_qualified(target, name, sizeof name);
    opd_op *const op = qualified ? opd_find_quiet(qualified) : NULL;
    if (op && op->definition) {
        const opd_json *const json = reader->json;
        return opdi_program_call_node(reader, made, at, op, opd_json_first(json, opd_json_get(json, at, "inputs")),
                                      opd_json_first(json, opd_json_get(json, at, "outputs")));
    }
    if (!opd_ok()) { return -1; }
    if (opdi_program_computes_dtype(reader->json, at, target)) { return 0; }
    (void)snprintf(why, sizeof why, "there is no operator %.250s, which the program calls: load the library that "
                   "defines it first", qualified ? qualified : target);
    return opdi_program_missing_node(reader, made, at, qualified ? qualified : target, why);
}

//== graphs ============================================================================================================

/* Returns an upper bound of the number of values in a graph, from which the size of its table of names follows. */
OPDI_INTERNAL int64_t opdi_program_values_of(const opd_json *json, int64_t graph) {
    int64_t count = opd_json_count(json, opd_json_get(json, graph, "inputs"));
    int64_t node = opd_json_first(json, opd_json_get(json, graph, "nodes"));
    for (; node >= 0; node = opd_json_next(json, node)) {
        int64_t output = opd_json_first(json, opd_json_get(json, node, "outputs"));
        for (; output >= 0; output = opd_json_next(json, output)) {
            count += 1 + opdi_program_union_count(json, output);
        }
    }
    return count;
}
/* Begins an empty graph.  Its table of names has space for `count` names and belongs to the innermost scope.  Returns
   0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_begin(opdi_program_reader *reader, opdi_program_graph *made, int64_t graph,
                                     int64_t count) {
    memset(made, 0, sizeof *made);
    made->text = graph;
    made->metas = opd_json_get(reader->json, graph, "tensor_values");
    for (made->size = 16; made->size < 2 * count; made->size *= 2) { }
    made->names = (opdi_graph_name *)opdi_scope_alloc((size_t)made->size * sizeof *made->names);
    made->graph = made->names ? opd_graph_new() : NULL;
    if (made->names) { memset(made->names, 0, (size_t)made->size * sizeof *made->names); }
    return made->graph ? 0 : -1;
}
/* Adds an input to the graph; `at` is its description in the JSON.  Returns the input, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_program_graph_input(const opdi_program_reader *reader, opdi_program_graph *made,
                                                    int64_t at) {
    int64_t value;
    const char *const kind = opdi_program_union(reader, at, &value);
    if (!kind) { return NULL; }
    const bool symbolic = strncmp(kind, "as_sym_", 7) == 0;
    const int32_t tag = strcmp(kind, "as_tensor") == 0 ? OPD_TAG_TENSOR : strcmp(kind, "as_sym_int") == 0 ||
        strcmp(kind, "as_int") == 0 ? OPD_TAG_INT : strcmp(kind, "as_sym_bool") == 0 || strcmp(kind, "as_bool") == 0
        ? OPD_TAG_BOOL : strcmp(kind, "as_sym_float") == 0 || strcmp(kind, "as_float") == 0 ? OPD_TAG_FLOAT
        : strcmp(kind, "as_string") == 0 ? OPD_TAG_STR : OPD_TAG_NONE;
    opdi_gvalue *const input = opdi_program_input_add(made->graph, tag);
    const int64_t its = opd_json_get(reader->json, value, symbolic ? "as_name" : "name");
    const char *const name = opd_json_text(reader->json, its, NULL);
    if (input && name && opdi_program_define(reader, made, at, name, input)) { return NULL; }
    return input;
}
/* Reads the nodes from *at to the end of the graph.  In the graph of a vmap, moves *at to the node that ends the vmap.
   Returns 0, or -1 and sets an error. */
static int opdi_program_nodes(opdi_program_reader *reader, opdi_program_graph *made, int64_t *at) {
    const opd_json *const json = reader->json;
    for (; *at >= 0; *at = opd_json_next(json, *at)) {
        const int64_t node = *at;
        const int vmap = opdi_vmap_which(json, node);
        if (vmap == 'e' && made->level) { return 0; }
        if (vmap == 'e') { return opdi_program_bad(reader, node, "a vmap ends that has not begun"); }
        opd_scope scope = opd_scope_open();
        const int rc = vmap == 'b' ? opdi_program_vmap_node(reader, made, at) : opdi_program_node(reader, made, node);
        opd_scope_close(&scope);
        if (rc) { return opd_ok() ? opdi_program_bad(reader, node, "the node cannot be read") : -1; }
    }
    return 0;
}
/* Completes a graph whose outputs were added.  Returns 0, or -1 and sets an error. */
static int opdi_program_end(opdi_program_graph *made) {
    opd_graph *const to = made->graph;
    to->result = to->noutputs == 1 ? to->outputs[0]
        : opdi_graph_list(to, OPDI_GNODE_TUPLE, OPD_TAG_LIST, "Tensor", to->outputs, to->noutputs);
    if (!to->result) { return -1; }
    if (made->device) {                           /* the device is the last input */
        if (opdi_graph_reserve_inputs(to, to->ninputs + 1)) { return -1; }
        to->inputs[to->ninputs++] = made->device;
    }
    opdi_graph_changed(to);
    return 0;
}
/* Reads the nodes and then the outputs of a graph, and completes the graph.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_body(opdi_program_reader *reader, opdi_program_graph *made, int64_t graph) {
    const opd_json *const json = reader->json;
    const int64_t outputs = opd_json_get(json, graph, "outputs"), count = opd_json_count(json, outputs);
    opd_graph *const to = made->graph;
    int64_t node = opd_json_first(json, opd_json_get(json, graph, "nodes"));
    if (opdi_program_nodes(reader, made, &node)) { return -1; }
    to->outputs = (opdi_gvalue **)opdi_graph_alloc(to, (size_t)count * sizeof *to->outputs);
    if (!to->outputs) { return -1; }
    for (int64_t at = opd_json_first(json, outputs); at >= 0; at = opd_json_next(json, at)) {
        opdi_gvalue *const value = opdi_program_argument(reader, made, at, NULL);
        if (!value) { return -1; }
        to->outputs[to->noutputs++] = value;
    }
    return opdi_program_end(made);
}
/* Reads a graph that a node calls; the program owns the graph.  Sets *wants_device to true if the last input of the
   graph is the device.  Returns the graph, or NULL and sets an error. */
static opd_graph *opdi_program_inner(opdi_program_reader *reader, int64_t graph, bool *wants_device) {
    const opd_json *const json = reader->json;
    opdi_program_graph made;
    opd_scope scope = opd_scope_open();
    int rc = ++reader->depth > 40 ? opdi_program_bad(reader, graph, "graphs are nested more than 40 deep")
        : opdi_program_begin(reader, &made, graph, opdi_program_values_of(json, graph));
    if (rc == 0) {
        opdi_string_add_n(&reader->program->graphs, (const char *)(const void *)&made.graph, sizeof made.graph);
        if (reader->program->graphs.failed) {
            opd_graph_free(made.graph);
            rc = -1;
        }
    }
    int64_t at = rc ? -1 : opd_json_first(json, opd_json_get(json, graph, "inputs"));
    for (; at >= 0 && rc == 0; at = opd_json_next(json, at)) {
        rc = opdi_program_graph_input(reader, &made, at) ? 0 : -1;
    }
    rc = rc ? -1 : opdi_program_body(reader, &made, graph);
    reader->depth--;
    opd_scope_close(&scope);
    *wants_device = rc == 0 && made.device;
    return rc ? NULL : made.graph;
}
/* Appends the argument at `at` in the JSON to `in`, which has *count values, and advances *count.  If the argument is a
   list, appends its elements.  Returns 0, or -1 and sets an error. */
static int opdi_program_flatten(opdi_program_reader *reader, opdi_program_graph *made, int64_t at, opdi_gvalue **in,
                                int32_t *count) {
    int64_t value;
    const char *const kind = opdi_program_union(reader, at, &value);
    if (!kind) { return -1; }
    const bool tensors = strcmp(kind, "as_tensors") == 0, ints = strcmp(kind, "as_ints") == 0;
    if (!tensors && !ints && strcmp(kind, "as_sym_ints") != 0 && strcmp(kind, "as_optional_tensors") != 0 &&
        strcmp(kind, "as_nested_tensors") != 0) {
        in[*count] = opdi_program_argument(reader, made, at, NULL);
        return in[(*count)++] ? 0 : -1;
    }
    for (int64_t i = opd_json_first(reader->json, value); i >= 0; i = opd_json_next(reader->json, i)) {
        const opd_value constant = opd_value_int(opd_json_int(reader->json, i, 0));
        in[*count] = tensors ? opdi_program_use(reader, made, opd_json_get(reader->json, i, "name"))
            : ints ? opdi_program_constant(made, NULL, &constant)
            : strcmp(kind, "as_sym_ints") == 0 ? opdi_program_symbolic(reader, made, i, NULL)
            : opdi_program_argument(reader, made, i, NULL);
        if (!in[(*count)++]) { return -1; }
    }
    return 0;
}
/* Reads an argument of a node that sets a mode while it calls a graph.  The argument must be a constant; if it is a
   string, it is the name of a device.  Returns 0, or -1 and sets an error. */
static int opdi_program_mode(const opdi_program_reader *reader, int64_t at, opd_value *mode) {
    int64_t value;
    opd_device device;
    const char *const kind = opdi_program_union(reader, at, &value);
    if (!kind || opdi_program_single(reader, value, kind, mode)) {
        return opd_ok() ? opdi_program_bad(reader, at, "expected a constant") : -1;
    }
    if (mode->tag != OPD_TAG_STR) { return 0; }
    if (opd_device_parse(mode->u.s, &device)) { return -1; }
    *mode = opd_value_device(device);
    return 0;
}
/* Returns the number of results of a node.  Each element of a list counts as one result. */
static int32_t opdi_program_region_nout(const opd_json *json, int64_t outputs) {
    int64_t count = 0;
    for (int64_t at = opd_json_first(json, outputs); at >= 0; at = opd_json_next(json, at)) {
        const int64_t list = opdi_program_member(json, at, "as_tensors");
        count += list >= 0 ? opd_json_count(json, list) : 1;
    }
    return (int32_t)OPDI_MIN(count, INT32_MAX);
}
/* Makes the results of a node that calls graphs, gives them their names, and adds the node to the graph.  Returns 0, or
   -1 and sets an error. */
static int opdi_program_region_results(const opdi_program_reader *reader, opdi_program_graph *made, int64_t outputs,
                                       opdi_gnode *node) {
    const opd_json *const json = reader->json;
    int32_t i = 0;
    for (int64_t at = opd_json_first(json, outputs); at >= 0; at = opd_json_next(json, at)) {
        int64_t value;
        const char *const kind = opdi_program_union(reader, at, &value);
        if (!kind) { return -1; }
        const bool list = strcmp(kind, "as_tensors") == 0, symbolic = strncmp(kind, "as_sym_", 7) == 0;
        for (int64_t part = list ? opd_json_first(json, value) : value; part >= 0;
             part = list ? opd_json_next(json, part) : -1) {
            const int64_t name = opd_json_get(json, part, symbolic ? "as_name" : "name");
            const int32_t tag = !symbolic ? OPD_TAG_TENSOR : strcmp(kind, "as_sym_int") == 0 ? OPD_TAG_INT
                : strcmp(kind, "as_sym_bool") == 0 ? OPD_TAG_BOOL : OPD_TAG_FLOAT;
            opdi_gvalue *const result = node->out[i++] = opdi_gvalue_new(made->graph, node, tag);
            if (!result) { return -1; }
            if (name >= 0 && opdi_program_define(reader, made, at, opd_json_text(json, name, ""), result)) {
                return -1;
            }
        }
    }
    opdi_gnode_append(made->graph, node);
    return 0;
}
/* Reads a node of kind `kind`, which calls graphs.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_region_node(opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                           const opdi_region_kind *kind) {
    const opd_json *const json = reader->json;
    const int64_t inputs = opd_json_get(json, at, "inputs"), outputs = opd_json_get(json, at, "outputs");
    opdi_program_region *const region =
        (opdi_program_region *)opdi_arena_alloc(&reader->program->arena, sizeof *region);
    int64_t capacity = 1;
    int modes = 0, graphs = 0, lists = 0;
    int32_t count = 0;
    if (!region) { return -1; }
    memset(region, 0, sizeof *region);
    region->program = reader->program;
    for (int64_t i = opd_json_first(json, inputs); i >= 0; i = opd_json_next(json, i)) {
        capacity += 1 + opdi_program_union_count(json, opd_json_get(json, i, "arg"));
    }
    opdi_gvalue **const in = (opdi_gvalue **)opdi_scope_alloc((size_t)capacity * sizeof *in);
    if (!in) { return -1; }
    for (int64_t i = opd_json_first(json, inputs); i >= 0; i = opd_json_next(json, i)) {
        const int64_t arg = opd_json_get(json, i, "arg"), graph = opdi_program_member(json, arg, "as_graph");
        if (graph >= 0) {
            if (graphs == kind->graphs) {
                return opdi_program_bad(reader, arg, "the node has more graphs than expected");
            }
            region->graphs[graphs] = opdi_program_inner(reader, opd_json_get(json, graph, "graph"),
                                                        &region->wants_device[graphs]);
            if (!region->graphs[graphs++]) { return -1; }
            continue;
        }
        if (modes < kind->modes) {
            if (opdi_program_mode(reader, arg, &region->modes[modes++])) { return -1; }
            continue;
        }
        if (graphs == kind->graphs && (opdi_program_member(json, arg, "as_string") >= 0 ||        /* a name, or hints */
                                       opdi_program_member(json, arg, "as_string_to_argument") >= 0)) { continue; }
        const int32_t before = count;
        if (opdi_program_flatten(reader, made, arg, in, &count)) { return -1; }
        if (graphs < kind->graphs) { continue; }
        lists++;
        if (lists == 1 && kind->lists > 1) { region->nfirst = count - before; }
        if (lists == 2 && kind->lists == 3) { region->nsliced = count - before; }
    }
    if (graphs != kind->graphs || modes != kind->modes || (kind->lists > 0 && lists < kind->lists - 1)) {
        return opdi_program_bad(reader, at, "%s is given too few arguments", kind->function.name);
    }
    if (kind->lists == 2 && kind->inside == opdi_region_scan) {  /* in map_impl, the first list has the tensors that are
                                                                    sliced */
        region->nsliced = region->nfirst;
        region->nfirst = 0;
    }
    in[count++] = NULL;
    const bool device = region->wants_device[0] || region->wants_device[1];
    if (device && !(in[count - 1] = opdi_program_device_value(made))) { return -1; }
    if (!device) {                                /* no graph takes the device, so None is passed */
        const opd_value none = opd_value_none();
        if (!(in[count - 1] = opdi_program_constant(made, NULL, &none))) { return -1; }
    }
    const int32_t nout = opdi_program_region_nout(json, outputs);
    opdi_gnode *const node = opdi_gnode_new(made->graph, OPDI_GNODE_FUNCTION, count, nout);
    if (!node || opdi_program_count(reader->program, kind->function.name, NULL)) { return -1; }
    memcpy(node->in, in, (size_t)count * sizeof *in);
    node->function = &kind->function;
    node->user = region;
    return opdi_program_region_results(reader, made, outputs, node);
}
