#include "programs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>program_signatures  inputs and outputs of exported programs, and files with several programs
//----------------------------------------------------------------------------------------------------------------------

//== names of inputs and outputs =======================================================================================
//
//  The structure of a call's arguments and results is described by a JSON text inside of the JSON text: "[1, {type,
//  context, children_spec}]".  The leaves of the structure are named by their paths, such as "x", "state.0" or
//  "logits".

typedef struct opdi_program_leaves {
    opdi_arena *arena;
    const opd_json *json;
    opdi_string path, names;     /* names: const char *[] */
    int depth;
} opdi_program_leaves;
static int opdi_program_leaves_below(opdi_program_leaves *leaves, int64_t spec);
/* Adds the names of the leaves in a part of the structure.  `name` is the name of this part in its parent.  Returns 0,
   or -1 and sets an error. */
static int opdi_program_leaf(opdi_program_leaves *leaves, int64_t spec, const char *name) {
    const size_t was = leaves->path.length;
    if (was && *name) { opdi_string_add(&leaves->path, "."); }
    opdi_string_add(&leaves->path, name);
    const int rc = leaves->path.failed ? -1 : opdi_program_leaves_below(leaves, spec);
    leaves->path.length = was;
    return rc;
}
static int opdi_program_leaves_below(opdi_program_leaves *leaves, int64_t spec) {
    const opd_json *const json = leaves->json;
    const char *const type = opd_json_text(json, opd_json_get(json, spec, "type"), NULL);
    const int64_t children = opd_json_get(json, spec, "children_spec");
    const char *const context = opd_json_text(json, opd_json_get(json, spec, "context"), "");
    opd_json *keys = NULL;
    int64_t k = 0;
    int rc = ++leaves->depth <= 60 ? 0
        : opd_fail(OPD_ERROR_FILE, "lists and dicts of arguments are nested more than 60 deep");
    if (!type && rc == 0) {
        const char *const copy = opdi_arena_copy(leaves->arena, leaves->path.data ? leaves->path.data : "",
                                                 leaves->path.length);
        opdi_string_add_n(&leaves->names, (const char *)(const void *)&copy, sizeof copy);
        leaves->depth--;
        return copy && !leaves->names.failed ? 0 : -1;
    }
    if (strchr(context, '[')) {                   /* the context of a dict is a list of its keys; other contexts are not
                                                     lists */
        const int mark = opd_error_mark();
        keys = opd_json_parse(context, strlen(context));
        if (opdi_error_passes()) { rc = -1; } else { (void)opd_error_rewind(mark); }
    }
    int64_t key = opd_json_first(keys, opd_json_kind_of(keys, 0) == OPD_JSON_LIST ? 0 : -1);
    for (int64_t child = opd_json_first(json, children); child >= 0 && rc == 0; child = opd_json_next(json, child)) {
        char number[24];
        (void)snprintf(number, sizeof number, "%lld", (long long)k++);
        rc = opdi_program_leaf(leaves, child, opd_json_text(keys, key, number));
        key = opd_json_next(keys, key);
    }
    opd_json_free(keys);
    leaves->depth--;
    return rc;
}
/* Finds the names of the leaves of a structure, whose description is `text`.  If `arguments` is true, it is the
   structure of a call's arguments, and `names` is the position in the JSON of a list of the arguments' names; otherwise
   it is the structure of the results.  Sets *leaves_names to the names of the leaves.  Returns the number of leaves, or
   -1 and sets an error. */
static int64_t opdi_program_tree(const opdi_program_reader *reader, const char *text, bool arguments, int64_t names,
                                 const char ***leaves_names) {
    opdi_program_leaves leaves;
    memset(&leaves, 0, sizeof leaves);
    leaves.arena = &reader->program->arena;
    opd_json *const json = opd_json_parse(text, strlen(text));
    if (!json) { return -1; }
    leaves.json = json;
    int64_t spec = opd_json_next(json, opd_json_first(json, 0)), name = opd_json_first(reader->json, names);
    int rc = 0;
    if (!arguments) { rc = opdi_program_leaf(&leaves, spec, ""); }
    else {                                        /* positional, then keyword arguments */
        const int64_t both = opd_json_first(json, opd_json_get(json, spec, "children_spec"));
        for (int64_t part = both; part >= 0 && rc == 0; part = opd_json_next(json, part)) {
            int64_t child = opd_json_first(json, opd_json_get(json, part, "children_spec"));
            for (; child >= 0 && rc == 0; child = opd_json_next(json, child)) {
                rc = opdi_program_leaf(&leaves, child, opd_json_text(reader->json, name, "input"));
                name = opd_json_next(reader->json, name);
            }
        }
    }
    const int64_t count = (int64_t)(leaves.names.length / sizeof **leaves_names);
    *leaves_names = (const char **)opdi_arena_alloc(&reader->program->arena, (size_t)count * sizeof **leaves_names + 8);
    if (rc == 0 && *leaves_names && count) { memcpy(*leaves_names, leaves.names.data, leaves.names.length); }
    opdi_string_free(&leaves.path);
    opdi_string_free(&leaves.names);
    opd_json_free(json);
    return rc || !*leaves_names ? -1 : count;
}

//== the signature =====================================================================================================

/* Reads the ranges of symbols, such as {"s0": {"min_val": 2, "max_val": 10}}.  Returns 0, or -1 and sets an error. */
static int opdi_program_ranges(opdi_program_reader *reader) {
    const opd_json *const json = reader->json;
    const int64_t ranges = opd_json_get(json, 0, "range_constraints"), count = opd_json_count(json, ranges);
    opd_program *const program = reader->program;
    program->symbols = (opdi_program_symbol *)opdi_arena_alloc(&program->arena,
                                                               (size_t)(count + 1) * sizeof *program->symbols);
    if (!program->symbols) { return -1; }
    for (int64_t at = opd_json_first(json, ranges); at >= 0; at = opd_json_next(json, at)) {
        opdi_program_symbol *const symbol = &program->symbols[program->nsymbols];
        const char *const name = opd_json_key(json, at);
        symbol->least = opd_json_int(json, opd_json_get(json, at, "min_val"), INT64_MIN);
        symbol->most = opd_json_int(json, opd_json_get(json, at, "max_val"), INT64_MAX);
        symbol->name = name ? opdi_arena_copy(&program->arena, name, strlen(name)) : NULL;
        if (!symbol->name) { return name ? -1 : opdi_program_bad(reader, at, "a range has no name"); }
        program->nsymbols++;
    }
    return 0;
}
/* Reads the sizes of an input from `meta`, the description of a tensor.  A size may be a symbol or an expression.
   Returns 0, or -1 and sets an error. */
static int opdi_program_sizes_of(opdi_program_reader *reader, int64_t meta, opdi_program_input *input) {
    const opd_json *const json = reader->json;
    const int64_t sizes = opd_json_get(json, meta, "sizes"), count = opd_json_count(json, sizes);
    if (opd_json_kind_of(json, sizes) != OPD_JSON_LIST || count > OPD_MAX_DIMS) {
        return opdi_program_bad(reader, meta, "an input has no sizes");
    }
    input->dims = (opdi_program_dim *)opdi_arena_alloc(&reader->program->arena,
                                                       (size_t)(count + 1) * sizeof *input->dims);
    if (!input->dims) { return -1; }
    for (int64_t at = opd_json_first(json, sizes); at >= 0; at = opd_json_next(json, at)) {
        opdi_program_dim *const dim = &input->dims[input->ndim++];
        const int64_t expression = opd_json_get(json, opd_json_get(json, at, "as_expr"), "expr_str");
        dim->size = opd_json_int(json, opd_json_get(json, at, "as_int"), -1);
        dim->symbol = -1;
        dim->text = NULL;
        if (expression >= 0) {
            const char *const text = opd_json_text(json, expression, "");
            dim->symbol = opdi_program_plain_symbol(reader->program, text);
            if (!(dim->text = opdi_arena_copy(&reader->program->arena, text, strlen(text)))) { return -1; }
        } else if (dim->size < 0) {
            return opdi_program_bad(reader, at, "expected a size: an integer of 0 or more, or an expression");
        }
    }
    return 0;
}
/* Reads the input of the user named `name`, with the properties that runs check.  Returns 0, or -1 and sets an
   error. */
static int opdi_program_user_input(opdi_program_reader *reader, int64_t graph, int64_t arg, const char *name,
                                   opdi_program_input *input) {
    const opd_json *const json = reader->json;
    int64_t value;
    const char *const kind = opdi_program_union(reader, arg, &value);
    if (!kind) { return -1; }
    input->name = name;
    input->symbol = -1;
    input->tag = OPD_TAG_TENSOR;
    if (strcmp(kind, "as_tensor") == 0) {
        const char *const its = opd_json_text(json, opd_json_get(json, value, "name"), "");
        const int64_t meta = opd_json_get(json, opd_json_get(json, graph, "tensor_values"), its);
        input->dtype = opdi_program_dtype(opd_json_int(json, opd_json_get(json, meta, "dtype"), 0));
        return opdi_program_sizes_of(reader, meta, input);
    }
    if (strncmp(kind, "as_sym_", 7) == 0) {
        const char *const its = opd_json_text(json, opd_json_get(json, value, "as_name"), "");
        const int64_t symbol = opd_json_get(json, opd_json_get(json, graph, "sym_int_values"), its);
        input->tag = kind[7] == 'i' ? OPD_TAG_INT : kind[7] == 'b' ? OPD_TAG_BOOL : OPD_TAG_FLOAT;
        input->symbol = opdi_program_plain_symbol(reader->program, opd_json_text(
            json, opd_json_get(json, opd_json_get(json, symbol, "as_expr"), "expr_str"), ""));
        return 0;
    }
    input->constant = true;
    if (opdi_program_single(reader, value, kind, &input->value)) {
        return opdi_program_bad(reader, arg, "inputs of kind %.60s are not supported", kind);
    }
    input->tag = input->value.tag;
    if (input->tag == OPD_TAG_COMPLEX) {
        return opdi_program_bad(reader, arg, "an input is a complex number, which is not supported");
    }
    if (input->tag == OPD_TAG_STR) {
        input->value.u.s = opdi_arena_copy(&reader->program->arena, input->value.u.s, strlen(input->value.u.s));
    }
    return input->tag == OPD_TAG_STR && !input->value.u.s ? -1 : 0;
}
/* Returns the major version of the format of the JSON text, or -1 if the text does not have it. */
static int64_t opdi_program_major(const opd_json *json) {
    const int64_t version = opd_json_get(json, 0, "schema_version");
    return opd_json_int(json, version, opd_json_int(json, opd_json_get(json, version, "major"), -1));
}
/* Returns the position of the major version in the JSON text, in bytes. */
static int64_t opdi_program_major_at(const opd_json *json) {
    const int64_t version = opd_json_get(json, 0, "schema_version"), major = opd_json_get(json, version, "major");
    return (int64_t)opdi_json_entry_at(json, major >= 0 ? major : version)->at;
}
/* Reads the specification of an input, at `spec` in the JSON.  Adds the input to the graph, and its source to
   program->from.  `names` are the names of the user's inputs.  Returns 0, or -1 and sets an error. */
static int opdi_program_input_spec(opdi_program_reader *reader, opdi_program_graph *made, int64_t graph, int64_t spec,
                                   int64_t argument, const char *const *names, int64_t nnames) {
    const opd_json *const json = reader->json;
    opd_program *const program = reader->program;
    int64_t value;
    const char *const kind = opdi_program_union(reader, spec, &value), *name = NULL;
    opd_module_kind its = OPD_MODULE_PARAMETER;
    bool persistent = true;
    if (!kind) { return -1; }
    if (strcmp(kind, "parameter") == 0) {
        name = opd_json_text(json, opd_json_get(json, value, "parameter_name"), NULL);
    } else if (strcmp(kind, "buffer") == 0) {
        name = opd_json_text(json, opd_json_get(json, value, "buffer_name"), NULL);
        persistent = opd_json_bool(json, opd_json_get(json, value, "persistent"), true);
        its = persistent ? OPD_MODULE_BUFFER : OPD_MODULE_CONSTANT;
    } else if (strcmp(kind, "tensor_constant") == 0) {
        name = opd_json_text(json, opd_json_get(json, value, "tensor_constant_name"), NULL);
        its = OPD_MODULE_CONSTANT;
        persistent = false;
    }
    const int inner = name ? opdi_program_inner_inputs(reader, made, argument, name, its) : 0;
    if (inner) { return inner < 0 ? -1 : 0; }
    opdi_program_place *const place = &program->from[made->graph->ninputs];
    opdi_gvalue *const input = opdi_program_graph_input(reader, made, argument);
    if (!input) { return -1; }
    if (strcmp(kind, "token") == 0) {
        input->tag = OPD_TAG_NONE;
        place->kind = OPDI_FROM_NOWHERE;
        return 0;
    }
    if (strcmp(kind, "user_input") == 0 || strcmp(kind, "constant_input") == 0) {
        const bool constant = *kind == 'c';
        const int64_t arg = opd_json_get(json, value, constant ? "value" : "arg");
        place->kind = OPDI_FROM_USER;
        place->at = program->ninputs;
        const char *its_name = place->at < nnames ? names[place->at]
            : made->graph->inputs[made->graph->ninputs - 1]->name;
        return opdi_program_user_input(reader, graph, arg, its_name, &program->inputs[program->ninputs++]);
    }
    if (!name) { return opdi_program_bad(reader, spec, "inputs of kind %.60s are not supported", kind); }
    place->kind = OPDI_FROM_MODULE;
    const int64_t metas = opd_json_get(json, graph, "tensor_values");
    const int64_t meta = opd_json_get(json, metas, opd_json_text(
        json, opd_json_get(json, opd_json_get(json, value, "arg"), "name"), ""));
    place->at = opdi_program_add(reader, name, its, persistent, opdi_program_major(json) < 5 ||
                                 opd_json_bool(json, opd_json_get(json, meta, "requires_grad"), true));
    return place->at < 0 ? -1 : 0;
}
/* Finds the input of the user whose value has the name at `at` in the JSON.  Returns the number of the input, or -1 and
   sets an error if there is none. */
static int64_t opdi_program_written_input(const opdi_program_reader *reader, const opdi_program_graph *made,
                                          int64_t at) {
    const char *const name = opd_json_text(reader->json, at, "");
    const opdi_gvalue *const value = opdi_program_slot(made, name)->value;
    for (int32_t i = 0; value && i < made->graph->ninputs; i++) {
        const opdi_program_place *const place = &reader->program->from[i];
        if (made->graph->inputs[i] == value && place->kind == OPDI_FROM_USER && value->tag == OPD_TAG_TENSOR) {
            return place->at;
        }
    }
    return opdi_program_bad(reader, at, "there is no input '%.100s' to write into", name);
}
#define OPDI_LOSS "loss"
/* Returns whether an output is in the structure of the results: its name is not the name of a gradient. */
static bool opdi_program_is_result(const char *name) { return !*name || strcmp(name, OPDI_LOSS) == 0; }
/* Writes the name of an output of a joint graph to *name: NAME.grad for the gradient of NAME; if `of` is NULL, "loss"
   or no name.  Returns 0, or -1 if memory runs out. */
static int opdi_program_joint_name(const opdi_program_reader *reader, const char *of, const char **name, bool loss) {
    char *its;
    *name = loss ? OPDI_LOSS : "";
    if (!of) { return 0; }
    const size_t length = strlen(of);
    if (!(its = (char *)opdi_arena_alloc(&reader->program->arena, length + sizeof ".grad"))) { return -1; }
    memcpy(its, of, length);
    memcpy(its + length, ".grad", sizeof ".grad");
    *name = its;
    return 0;
}
/* Gives the outputs their `nnames` names in the structure of the results.  The gradients of a joint graph are not in
   this structure, and keep their names.  If the numbers differ otherwise, no output gets another name. */
static void opdi_program_name_outputs(const opd_program *program, const char *const *names, int64_t nnames) {
    int64_t at = 0, count = 0;
    for (int32_t i = 0; i < program->noutputs; i++) { count += opdi_program_is_result(program->outputs[i]); }
    for (int32_t i = 0; count == nnames && i < program->noutputs; i++) {
        if (!opdi_program_is_result(program->outputs[i])) { continue; }
        if (*names[at]) { program->outputs[i] = names[at]; }
        at++;
    }
}
/* Reads the specification of an output, at `spec` in the JSON, and sets *place to its destination.  Returns 0, or -1
   and sets an error. */
static int opdi_program_output_spec(opdi_program_reader *reader, const opdi_program_graph *made, int64_t spec,
                                    opdi_program_place *place) {
    const opd_json *const json = reader->json;
    int64_t value;
    const char *const kind = opdi_program_union(reader, spec, &value);
    if (!kind) { return -1; }
    if (strcmp(kind, "user_output") == 0 || strcmp(kind, "loss_output") == 0 ||
        strncmp(kind, "gradient_to_", 12) == 0) {
        const int64_t of = opd_json_get(json, value, strcmp(kind, "gradient_to_parameter") == 0 ? "parameter_name"
                                        : "user_input_name");
        place->kind = OPDI_TO_USER;
        place->at = reader->program->noutputs++;
        return opdi_program_joint_name(reader, *kind == 'g' ? opd_json_text(json, of, "") : NULL,
                                       &reader->program->outputs[place->at], *kind == 'l');
    }
    if (strcmp(kind, "token") == 0) {
        place->kind = OPDI_TO_NOWHERE;
        return 0;
    }
    if (strcmp(kind, "buffer_mutation") == 0 || strcmp(kind, "parameter_mutation") == 0) {
        const int64_t name = opd_json_get(json, value, *kind == 'b' ? "buffer_name" : "parameter_name");
        place->kind = OPDI_TO_MODULE;
        place->at = opd_module_find(reader->program->module, opd_json_text(json, name, ""));
        return place->at < 0 ? opdi_program_bad(reader, spec, "there is no '%.100s' to write into",
                                                opd_json_text(json, name, "")) : 0;
    }
    if (strcmp(kind, "user_input_mutation") == 0) {
        place->kind = OPDI_TO_INPUT;
        place->at = opdi_program_written_input(reader, made, opd_json_get(json, value, "user_input_name"));
        return place->at < 0 ? -1 : 0;
    }
    return opdi_program_bad(reader, spec, "outputs of kind %.60s are not supported", kind);
}
/* Reads the device that the first tensor among the inputs had at export. */
static void opdi_program_find_device(opdi_program_reader *reader, int64_t graph) {
    const opd_json *const json = reader->json;
    int64_t at = opd_json_first(json, opd_json_get(json, graph, "inputs"));
    reader->program->device = opd_device_make(OPD_CPU, -1);
    for (; at >= 0; at = opd_json_next(json, at)) {
        const char *const name = opd_json_text(json, opd_json_get(json, opd_json_get(json, at, "as_tensor"), "name"),
                                               NULL);
        const int64_t meta = name ? opd_json_get(json, opd_json_get(json, graph, "tensor_values"), name) : -1;
        if (meta < 0) { continue; }
        const int mark = opd_error_mark();
        (void)opdi_program_device(reader, opd_json_get(json, meta, "device"), &reader->program->device);
        (void)opd_error_rewind(mark);
        return;
    }
}
/* Allocates the tables of inputs and outputs.  Returns 0, or -1 if memory runs out. */
static int opdi_program_tables(opd_program *program, int64_t nin, int64_t nout) {
    opdi_arena *const arena = &program->arena;
    program->from = (opdi_program_place *)opdi_arena_alloc(arena, (size_t)(nin + 2) * sizeof *program->from);
    program->to = (opdi_program_place *)opdi_arena_alloc(arena, (size_t)(nout + 1) * sizeof *program->to);
    program->inputs = (opdi_program_input *)opdi_arena_alloc(arena, (size_t)(nin + 1) * sizeof *program->inputs);
    program->outputs = (const char **)opdi_arena_alloc(arena, (size_t)(nout + 1) * sizeof *program->outputs);
    if (!program->from || !program->to || !program->inputs || !program->outputs) { return -1; }
    memset(program->inputs, 0, (size_t)(nin + 1) * sizeof *program->inputs);
    return 0;
}

/* Adds a reference to a program. */
static opd_program *opdi_program_keep(const opd_program *program) {
    opd_program *const kept = (opd_program *)(uintptr_t)program;
    opdi_ref_up(&kept->refs);
    return kept;
}
static const opdi_graph_home opdi_program_home = {opdi_program_keep, opd_program_free};
/* Reads the program from the JSON text.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_read(opdi_program_reader *reader) {
    const opd_json *const json = reader->json;
    opd_program *const program = reader->program;
    const int64_t top = opd_json_get(json, 0, "graph_module"), graph = opd_json_get(json, top, "graph");
    const int64_t signature = opd_json_get(json, top, "signature"), major = opdi_program_major(json);
    const int64_t in = opd_json_get(json, signature, "input_specs");
    const int64_t out = opd_json_get(json, signature, "output_specs");
    const int64_t call = opd_json_get(json, opd_json_first(json, opd_json_get(json, top, "module_call_graph")),
                                      "signature");
    const char *const in_spec = opd_json_text(json, opd_json_get(json, call, "in_spec"), NULL);
    const char *const out_spec = opd_json_text(json, opd_json_get(json, call, "out_spec"), NULL);
    const char **names = NULL;
    opdi_program_graph made;
    int64_t i = 0, nnames = 0, argument = opd_json_first(json, opd_json_get(json, graph, "inputs"));
    if (major < 2 || major > 8) {
        return opdi_program_bad(reader, opd_json_get(json, 0, "schema_version"), "the program has schema version %lld, "
                                "but only versions 2 to 8 can be read", (long long)major);
    }
    if (graph < 0 || in < 0 || out < 0) { return opdi_program_bad(reader, 0, "this is not an exported program"); }
    const int64_t names_at = opd_json_get(json, call, "forward_arg_names");
    if (in_spec && (nnames = opdi_program_tree(reader, in_spec, true, names_at, &names)) < 0) { return -1; }
    opdi_program_find_device(reader, graph);
    if (opdi_program_ranges(reader) ||
        opdi_program_tables(program, opd_json_count(json, in) + opdi_program_inner_most(reader),
                            opd_json_count(json, out)) ||
        opdi_program_begin(reader, &made, graph, opdi_program_values_of(json, graph) +
                           2 * opdi_program_inner_most(reader))) { return -1; }
    program->graph = made.graph;
    program->graph->program = program;
    program->graph->home = &opdi_program_home;
    program->major = major;
    program->major_at = opdi_program_major_at(json);
    for (int64_t spec = opd_json_first(json, in); spec >= 0; spec = opd_json_next(json, spec)) {
        if (argument < 0) { return opdi_program_bad(reader, in, "more inputs are described than the graph has"); }
        if (opdi_program_input_spec(reader, &made, graph, spec, argument, names, nnames)) { return -1; }
        argument = opd_json_next(json, argument);
    }
    if (argument >= 0) { return opdi_program_bad(reader, argument, "an input is not described"); }
    if (opdi_program_body(reader, &made, graph)) { return -1; }
    if (made.device) { program->from[made.graph->ninputs - 1].kind = OPDI_FROM_DEVICE; }
    if (opd_json_count(json, out) != made.graph->noutputs) {
        return opdi_program_bad(reader, out, "other outputs are described than the graph has");
    }
    for (int64_t spec = opd_json_first(json, out); spec >= 0; spec = opd_json_next(json, spec)) {
        if (opdi_program_output_spec(reader, &made, spec, &program->to[i++])) { return -1; }
    }
    nnames = out_spec ? opdi_program_tree(reader, out_spec, false, -1, &names) : 0;
    opdi_program_name_outputs(program, names, nnames);
    return nnames < 0 ? -1 : 0;
}
