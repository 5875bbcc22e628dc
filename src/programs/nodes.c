#include "programs.h"

//== arguments and nodes ===============================================================================================

/* Adds an input with the tag `tag` to the graph.  Returns the input, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_program_input_add(opd_graph *graph, int32_t tag) {
    opdi_gvalue *const value = opdi_graph_reserve_inputs(graph, graph->ninputs + 1)
        ? NULL : opdi_gvalue_new(graph, NULL, tag);
    if (value) {
        graph->inputs[graph->ninputs++] = value;
        opdi_graph_changed(graph);
    }
    return value;
}
OPDI_INTERNAL opdi_gvalue *opdi_program_device_value(opdi_program_graph *made) {
    if (!made->device) {
        made->device = opdi_gvalue_new(made->graph, NULL, OPD_TAG_DEVICE);
        if (made->device) { made->device->name = "device"; }
    }
    return made->device;
}
OPDI_INTERNAL opdi_graph_name *opdi_program_slot(const opdi_program_graph *made, const char *name) {
    return opdi_graph_name_slot(made->names, made->size, name, strlen(name));
}
/* Gives a value its name, by which later nodes find it.  `at` is the position in the JSON, for errors.  Returns 0, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_program_define(const opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                      const char *name, opdi_gvalue *value) {
    if (!value) { return -1; }
    if (!*name || name[strspn(name, OPDI_GRAPH_NAME)] || opdi_is_digit(*name)) {
        return opdi_program_bad(reader, at, "'%.100s' is not a name that a value can have", name);
    }
    opdi_graph_name *const slot = opdi_program_slot(made, name);
    if (slot->name) { return opdi_program_bad(reader, at, "there are two values '%.100s'", name); }
    slot->name = value->name = opdi_arena_copy(&made->graph->arena, name, strlen(name));
    slot->value = value;
    return slot->name ? 0 : -1;
}
/* Finds a value by its name.  In the graph of a vmap, a value of the outer graph becomes an input.  Returns the value;
   NULL if there is none; or NULL and sets an error. */
static opdi_gvalue *opdi_program_value(const opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                       const char *name) {
    opdi_gvalue *const own = opdi_program_slot(made, name)->value;
    opdi_gvalue *const around = own || !made->outer ? NULL : opdi_program_value(reader, made->outer, at, name);
    opdi_gvalue *const input = around ? opdi_program_input_add(made->graph, around->tag) : NULL;
    return !around ? own : opdi_program_define(reader, made, at, name, input) ? NULL : input;
}
OPDI_INTERNAL opdi_gvalue *opdi_program_use(const opdi_program_reader *reader, opdi_program_graph *made, int64_t at) {
    const char *const name = opd_json_text(reader->json, at, NULL);
    opdi_gvalue *const value = name ? opdi_program_value(reader, made, at, name) : NULL;
    if (!name) { (void)opdi_program_bad(reader, at, "expected the name of a value"); }
    else if (!value) { (void)opdi_program_bad(reader, at, "there is no value '%.100s' here", name); }
    return value;
}
/* Adds a constant to the graph.  If `type` is not NULL, converts the value as for an argument of this type.  Returns
   the constant, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_program_constant(opdi_program_graph *made, const opdi_type *type,
                                                 const opd_value *value) {
    opd_value bound = *value;
    if (type && opdi_bind_value(type, value, &bound) < 0) { return NULL; }
    return opdi_graph_constants(made->graph, &bound);
}
OPDI_INTERNAL opdi_gvalue *opdi_program_argument(opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                                 const opdi_type *type);
/* Reads a symbolic number at `at` in the JSON: {"as_name": ".."} or {"as_int": 3}.  Returns its value, or NULL and sets
   an error. */
OPDI_INTERNAL opdi_gvalue *opdi_program_symbolic(opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                                 const opdi_type *type) {
    int64_t value;
    const char *const kind = opdi_program_union(reader, at, &value);
    if (!kind) { return NULL; }
    if (strcmp(kind, "as_name") == 0) { return opdi_program_use(reader, made, value); }
    return opdi_program_argument(reader, made, at, type);
}
/* Reads a list of constants at `at` in the JSON; `kind` is "as_ints" or similar.  Returns the list, or NULL and sets an
   error. */
static opdi_gvalue *opdi_program_constants(opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                           const char *kind, const opdi_type *type) {
    const opd_json *const json = reader->json;
    const int64_t count = opd_json_count(json, at);
    opd_value list = opd_value_none(), *values = (opd_value *)opdi_scope_alloc(((size_t)count + 1) * sizeof *values);
    int64_t i = 0;
    if (!values) { return NULL; }
    for (int64_t item = opd_json_first(json, at); item >= 0; item = opd_json_next(json, item), i++) {
        int rc = 0;
        if (strcmp(kind, "as_ints") == 0) {
            values[i] = opd_value_int(0);
            rc = opdi_program_int(reader, item, &values[i].u.i);
        } else if (strcmp(kind, "as_floats") == 0) {
            values[i] = opd_value_double(0);
            rc = opdi_program_float(reader, item, &values[i].u.d);
        } else if (strcmp(kind, "as_bools") == 0) { values[i] = opd_value_bool(opd_json_bool(json, item, false)); }
        else { values[i] = opd_value_str(opd_json_text(json, item, "")); }
        if (rc) { return NULL; }
    }
    list = opd_value_list(values, count);
    if (!type) {                                  /* makes a list of the type that `kind` tells */
        for (i = 0; i < count && strcmp(kind, "as_strings") != 0; i++) {
            if (*kind && kind[3] == 'i') { ((int64_t *)(void *)values)[i] = values[i].u.i; }
            else if (kind[3] == 'f') { ((double *)(void *)values)[i] = values[i].u.d; }
            else { ((bool *)(void *)values)[i] = values[i].u.i != 0; }
        }
        list.tag = kind[3] == 'i' ? OPD_TAG_INTS : kind[3] == 'f' ? OPD_TAG_FLOATS : kind[3] == 'b' ? OPD_TAG_BOOLS
            : OPD_TAG_LIST;
    }
    return opdi_program_constant(made, type, &list);
}
/* A kind of lists in the JSON, the type of their elements, and the tag of their values. */
typedef struct opdi_program_list { const char *kind, *word; int32_t tag; } opdi_program_list;
/* Reads a list of symbolic numbers, or of tensors (`kind` is "as_tensors", or "as_optional_tensors" if elements may be
   None).  Returns the list, or NULL and sets an error. */
static opdi_gvalue *opdi_program_values(opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                        const char *kind) {
    const opd_json *const json = reader->json;
    const int64_t count = opd_json_count(json, at);
    opdi_gvalue **values = (opdi_gvalue **)opdi_scope_alloc(((size_t)count + 1) * sizeof *values);
    /* the last row is for lists of integers, whatever their kind is called */
    static const opdi_program_list lists[] = {
        {"as_tensors", "Tensor", OPD_TAG_TENSORS}, {"as_optional_tensors", "Tensor?", OPD_TAG_TENSORS},
        {"as_sym_floats", "float", OPD_TAG_FLOATS}, {"as_sym_bools", "bool", OPD_TAG_BOOLS},
        {NULL, "int", OPD_TAG_INTS}};
    const opdi_program_list *list = lists;
    int32_t i = 0;
    if (!values) { return NULL; }
    while (list->kind && strcmp(kind, list->kind) != 0) { list++; }
    const char *const word = list->word;
    for (int64_t item = opd_json_first(json, at); item >= 0; item = opd_json_next(json, item), i++) {
        values[i] = strcmp(word, "Tensor") == 0 ? opdi_program_use(reader, made, opd_json_get(json, item, "name"))
            : *word == 'T' ? opdi_program_argument(reader, made, item, NULL)
            : opdi_program_symbolic(reader, made, item, NULL);
        if (!values[i]) { return NULL; }
        const int32_t tag = values[i]->tag;
        if (*word == 'T' ? tag == OPD_TAG_TENSOR || (tag == OPD_TAG_NONE && word[6])
            : tag == OPD_TAG_INT || tag == OPD_TAG_BOOL || (tag == OPD_TAG_FLOAT && *word == 'f')) { continue; }
        (void)opdi_program_bad(reader, item, "an element of a list is not of type %s", word);
        return NULL;
    }
    return opdi_graph_list(made->graph, OPDI_GNODE_LIST, list->tag, word, values, i);
}
/* Reads a constant that is not a list into *constant.  Returns 0; 1 if the argument is not such a constant; or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_program_single(const opdi_program_reader *reader, int64_t at, const char *kind,
                                      opd_value *constant) {
    const opd_json *const json = reader->json;
    int64_t number = 0;
    if (strcmp(kind, "as_none") == 0) { *constant = opd_value_none(); }
    else if (strcmp(kind, "as_string") == 0 || strcmp(kind, "as_operator") == 0) {
        *constant = opd_value_str(opd_json_text(json, at, ""));
    } else if (strcmp(kind, "as_bool") == 0) { *constant = opd_value_bool(opd_json_bool(json, at, false)); }
    else if (strcmp(kind, "as_float") == 0) {
        *constant = opd_value_double(0);
        return opdi_program_float(reader, at, &constant->u.d);
    } else if (strcmp(kind, "as_complex") == 0) {
        double *const pair = (double *)opdi_scope_alloc(2 * sizeof *pair);
        if (!pair || opdi_program_float(reader, opd_json_get(json, at, "real"), &pair[0]) ||
            opdi_program_float(reader, opd_json_get(json, at, "imag"), &pair[1])) { return -1; }
        *constant = opd_value_complex(pair);
    } else if (strcmp(kind, "as_int") == 0 || strcmp(kind, "as_scalar_type") == 0 || strcmp(kind, "as_layout") == 0 ||
               strcmp(kind, "as_memory_format") == 0) {
        if (kind[3] == 'i' && opd_json_kind_of(json, at) == OPD_JSON_BOOL) {    /* torch 2.5 writes some ints as
                                                                                   bools */
            *constant = opd_value_bool(opd_json_bool(json, at, false));
            return 0;
        }
        if (opdi_program_int(reader, at, &number)) { return -1; }
        *constant = opd_value_int(kind[3] == 's' ? (int64_t)opdi_program_dtype(number)
                                  : kind[3] == 'l' ? opdi_program_layout(number)
                                  : kind[3] == 'm' ? opdi_program_format(number) : number);
        if (kind[3] != 'i' && constant->u.i < 0) {
            return opdi_program_bad(reader, at, "%s %lld is not supported", kind + 3, (long long)number);
        }
    } else { return 1; }
    return 0;
}
/* Reads an argument as a value of the graph.  `type` is the type in the operator's schema, or NULL if it is unknown.
   Returns the value, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_program_argument(opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                                 const opdi_type *type) {
    opd_value constant;
    int64_t value;
    opd_device device;
    const char *const kind = opdi_program_union(reader, at, &value);
    if (!kind) { return NULL; }
    if (strcmp(kind, "as_tensor") == 0) {
        return opdi_program_use(reader, made, opd_json_get(reader->json, value, "name"));
    }
    const int rc = opdi_program_single(reader, value, kind, &constant);
    if (rc <= 0) { return rc ? NULL : opdi_program_constant(made, type, &constant); }
    if (strcmp(kind, "as_sym_int") == 0 || strcmp(kind, "as_sym_bool") == 0 || strcmp(kind, "as_sym_float") == 0) {
        return opdi_program_symbolic(reader, made, value, type);
    }
    if (strcmp(kind, "as_optional_tensor") == 0) { return opdi_program_argument(reader, made, value, type); }
    if (strcmp(kind, "as_ints") == 0 || strcmp(kind, "as_floats") == 0 || strcmp(kind, "as_bools") == 0 ||
        strcmp(kind, "as_strings") == 0) {
        return opdi_program_constants(reader, made, value, kind, type);
    }
    if (strcmp(kind, "as_tensors") == 0 || strcmp(kind, "as_optional_tensors") == 0 ||
        strcmp(kind, "as_sym_ints") == 0 || strcmp(kind, "as_sym_floats") == 0 || strcmp(kind, "as_sym_bools") == 0) {
        return opdi_program_values(reader, made, value, kind);
    }
    if (strcmp(kind, "as_device") == 0) {
        if (opdi_program_device(reader, value, &device)) { return NULL; }
        if (opdi_program_same_device(device, reader->program->device)) { return opdi_program_device_value(made); }
        constant = opd_value_device(device);
        return opdi_program_constant(made, NULL, &constant);
    }
    (void)opdi_program_bad(reader, at, "arguments of kind %.60s are not supported", kind);
    return NULL;
}

/* Gives the results of a node their names, in the order of the node's schema.  `first` is the position of the
   description of the first result in the JSON.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_results(const opdi_program_reader *reader, opdi_program_graph *made, int64_t first,
                                       opdi_gnode *node) {
    const opd_json *const json = reader->json;
    int32_t i = 0;
    for (int64_t at = first; at >= 0; at = opd_json_next(json, at), i++) {
        int64_t value;
        const char *const kind = opdi_program_union(reader, at, &value);
        if (!kind) { return -1; }
        if (strcmp(kind, "as_none") == 0) { continue; }
        if (i >= node->nout) { return opdi_program_bad(reader, at, "the node has more results than its operator"); }
        if (strcmp(kind, "as_tensors") == 0) {
            const int64_t count = opd_json_count(json, value);
            opdi_gnode *const unpack = count < INT32_MAX
                ? opdi_gnode_new(made->graph, OPDI_GNODE_UNPACK, 1, (int32_t)count)
                : NULL;
            int32_t k = 0;
            if (!unpack) { return -1; }
            if (node->out[i]->tag != OPD_TAG_TENSORS) {
                return opdi_program_bad(reader, at, "the node has a list of results, but the operator does not return "
                                        "this list");
            }
            unpack->in[0] = node->out[i];
            for (int64_t part = opd_json_first(json, value); part >= 0; part = opd_json_next(json, part), k++) {
                unpack->out[k] = opdi_gvalue_new(made->graph, unpack, OPD_TAG_TENSOR);
                const char *const name = opd_json_text(json, opd_json_get(json, part, "name"), "");
                if (opdi_program_define(reader, made, part, name, unpack->out[k])) { return -1; }
            }
            opdi_gnode_append(made->graph, unpack);
            continue;
        }
        const bool symbolic = strncmp(kind, "as_sym_", 7) == 0;
        const int64_t name = opd_json_get(json, value, symbolic ? "as_name" : "name");
        if (name < 0) { return opdi_program_bad(reader, at, "results of kind %.60s are not supported", kind); }
        if (symbolic != (node->out[i]->tag != OPD_TAG_TENSOR && node->out[i]->tag != OPD_TAG_TENSORS)) {
            return opdi_program_bad(reader, at, "a result has another type than the result of the operator");
        }
        if (symbolic) {
            node->out[i]->tag = kind[7] == 'i' ? OPD_TAG_INT : kind[7] == 'b' ? OPD_TAG_BOOL : OPD_TAG_FLOAT;
        }
        if (opdi_program_define(reader, made, at, opd_json_text(json, name, ""), node->out[i])) { return -1; }
    }
    return 0;
}
/* Counts a call of the operator `name`, for opd_program_operator.  `what` is the reason why the operator cannot be
   called, or NULL.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_program_count(opd_program *program, const char *name, const char *what) {
    opdi_program_operator *const list = (opdi_program_operator *)(void *)program->operators.data;
    const size_t count = program->operators.length / sizeof *list;
    opdi_program_operator fresh = {NULL, NULL, 1};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            list[i].count++;
            return 0;
        }
    }
    fresh.name = opdi_arena_copy(&program->arena, name, strlen(name));
    fresh.what = what;
    opdi_string_add_n(&program->operators, (const char *)(const void *)&fresh, sizeof fresh);
    return fresh.name && !program->operators.failed ? 0 : -1;
}
/* Runs a node whose operator does not exist or cannot take its arguments: sets an error with the reason node->user, and
   returns -1. */
static int opdi_program_missing_run(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    (void)args;
    (void)rets;
    return opd_fail(OPD_ERROR_NOT_FOUND, "%s", (const char *)node->user);
}
/* Reads a node that calls the C function `function` instead of an operator.  The function computes with numbers, or
   reports that the operator cannot be called.  node->user is set to `user`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_function_node(opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                             const opdi_gfunction *function, const void *user) {
    const opd_json *const json = reader->json;
    const int64_t inputs = opd_json_get(json, at, "inputs"), outputs = opd_json_get(json, at, "outputs");
    const int64_t nin = opd_json_count(json, inputs), nout = opd_json_count(json, outputs);
    opdi_gnode *const node = nin < INT32_MAX && nout < INT32_MAX
        ? opdi_gnode_new(made->graph, OPDI_GNODE_FUNCTION, (int32_t)nin, (int32_t)nout) : NULL;
    int32_t i = 0;
    if (!node) { return -1; }
    node->function = function;
    node->user = user;
    for (int64_t input = opd_json_first(json, inputs); input >= 0; input = opd_json_next(json, input)) {
        node->in[i] = opdi_program_argument(reader, made, opd_json_get(json, input, "arg"), NULL);
        if (!node->in[i++]) { return -1; }
    }
    i = 0;
    for (int64_t output = opd_json_first(json, outputs); output >= 0; output = opd_json_next(json, output), i++) {
        int64_t value;
        const char *const kind = opdi_program_union(reader, output, &value);
        const int32_t tag = !kind ? OPD_TAG_NONE : strcmp(kind, "as_sym_int") == 0 ? OPD_TAG_INT
            : strcmp(kind, "as_sym_bool") == 0 ? OPD_TAG_BOOL : strcmp(kind, "as_sym_float") == 0 ? OPD_TAG_FLOAT
            : strcmp(kind, "as_tensors") == 0 ? OPD_TAG_TENSORS : OPD_TAG_TENSOR;
        if (!(node->out[i] = opdi_gvalue_new(made->graph, node, tag))) { return -1; }
    }
    opdi_gnode_append(made->graph, node);
    return opdi_program_results(reader, made, opd_json_first(json, outputs), node);
}
static const opdi_gfunction opdi_program_missing = {"missing", opdi_program_missing_run, true};
/* Reads a node that cannot run: a run fails with the message `why`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_missing_node(opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                            const char *target, const char *why) {
    opd_program *const program = reader->program;
    opdi_gfunction *const function = (opdi_gfunction *)opdi_arena_alloc(&program->arena, sizeof *function);
    char *const what = opdi_arena_copy(&program->arena, why, strlen(why));
    if (!function || !what) { return -1; }
    *function = opdi_program_missing;
    function->name = opdi_arena_copy(&program->arena, target, strlen(target));
    if (!function->name || opdi_program_count(program, target, what)) { return -1; }
    return opdi_program_function_node(reader, made, at, function, what);
}
/* Finds an argument of a node: the argument named `name` or, if arguments have no names, argument number `place`.
   `first` is the position of the first argument.  Returns the position of the argument in the JSON, or -1 if the node
   does not have it. */
OPDI_INTERNAL int64_t opdi_program_given(const opd_json *json, int64_t first, const char *name, int place) {
    int64_t found = -1;
    for (int64_t at = first; at >= 0 && found < 0; at = opd_json_next(json, at), place--) {
        const char *const its = opd_json_text(json, opd_json_get(json, at, "name"), "");
        if (*its ? strcmp(its, name) == 0 : place == 0) { found = opd_json_get(json, at, "arg"); }
    }
    return found;
}
/* Operators that behave as in eval mode, because the program was exported in eval mode, and a note about this for the
   user.  A note applies if the argument `arg` is false; if `arg` is NULL, the note always applies. */
static const struct { const char *name, *arg, *note; } opdi_program_notes[] = {
    {"aten::batch_norm", "training", "batch_norm uses its saved mean and variance, and does not update them"},
    {"aten::_native_batch_norm_legit_no_training", NULL,
     "batch_norm uses its saved mean and variance, and does not update them"},
    {"aten::native_batch_norm", "training", "batch_norm uses its saved mean and variance, and does not update them"},
    {"aten::cudnn_batch_norm", "training", "batch_norm uses its saved mean and variance, and does not update them"},
    {"aten::dropout", "train", "dropout is off"}, {"aten::native_dropout", "train", "dropout is off"},
    {"aten::feature_dropout", "train", "dropout is off"}, {"aten::alpha_dropout", "train", "dropout is off"},
    {"aten::lstm.input", "train", "dropout is off"}, {"aten::gru.input", "train", "dropout is off"},
    {"aten::rrelu", "training", "rrelu is not random"}};
/* If opdi_program_notes has a note that applies to the node, adds the note to the notes of the program, unless it is
   already there.  Returns 0, or -1 if memory runs out. */
static int opdi_program_note(opd_program *program, const opdi_gnode *node) {
    for (size_t i = 0; i < sizeof opdi_program_notes / sizeof *opdi_program_notes; i++) {
        const char *const arg = opdi_program_notes[i].arg, *const note = opdi_program_notes[i].note;
        const char **const list = (const char **)(void *)program->notes.data;
        size_t k = 0;
        if (strcmp(opdi_program_notes[i].name, node->op->name) != 0) { continue; }
        for (int at = 0; arg && at < node->nin; at++) {
            const opdi_gnode *const from = node->in[at]->node;
            if (strcmp(node->op->schema->args[at].name, arg) != 0) { continue; }
            if (!from || from->kind != OPDI_GNODE_CONSTANT || from->constant.u.i) { return 0; }
        }
        while (k < program->notes.length / sizeof note && strcmp(list[k], note) != 0) { k++; }
        if (k < program->notes.length / sizeof note) { return 0; }
        opdi_string_add_n(&program->notes, (const char *)(const void *)&note, sizeof note);
        return program->notes.failed ? -1 : 0;
    }
    return 0;
}
/* Reads a node that calls the operator `op`.  `inputs` and `outputs` are the positions of its first argument and of its
   first result in the JSON.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_call_node(opdi_program_reader *reader, opdi_program_graph *made, int64_t at, opd_op *op,
                                         int64_t inputs, int64_t outputs) {
    const opd_json *const json = reader->json;
    opdi_gnode *const node = opdi_gnode_new(made->graph, OPDI_GNODE_OP, op->nargs, op->nrets);
    if (!node || opdi_program_count(reader->program, op->name, NULL)) { return -1; }
    node->op = op;
    for (int i = 0; i < op->nargs; i++) {
        const opdi_arg *const arg = &op->schema->args[i];
        const int64_t given = opdi_program_given(json, inputs, arg->name, i);
        if (given >= 0) { node->in[i] = opdi_program_argument(reader, made, given, arg->type); }
        else if (arg->has_default) { node->in[i] = opdi_graph_constants(made->graph, &arg->value); }
        else { return opdi_program_bad(reader, at, "%s has no value for its argument '%s'", op->name, arg->name); }
        if (!node->in[i]) { return -1; }
    }
    for (int i = 0; i < op->nrets; i++) {
        node->out[i] = opdi_gvalue_new(made->graph, node, opdi_graph_tag_of(op->schema->returns[i].type));
        if (!node->out[i]) { return -1; }
    }
    opdi_gnode_append(made->graph, node);
    return opdi_program_note(reader->program, node) ? -1 : opdi_program_results(reader, made, outputs, node);
}
/* Converts a target, the name of an operator in a program, to the qualified name: "torch.ops.aten.add.Tensor" to
   "aten::add.Tensor".  Writes it to `name` and returns `name`.  Returns NULL if the target is not the name of an
   operator, or too long for `cap` bytes. */
OPDI_INTERNAL const char *opdi_program_qualified(const char *target, char *name, size_t cap) {
    static const char begin[] = "torch.ops.";
    if (strncmp(target, begin, sizeof begin - 1) != 0) { return NULL; }
    const char *const space = target + sizeof begin - 1, *const dot = strchr(space, '.');
    const char *const last = dot ? strrchr(dot + 1, '.') : NULL;
    if (!dot || !last || strlen(space) + 8 > cap) { return NULL; }
    const bool plain = strcmp(last, ".default") == 0;
    (void)snprintf(name, cap, "%.*s::%.*s%s", (int)(dot - space), space, (int)(last - dot - 1), dot + 1,
                   plain ? "" : last);
    return name;
}
OPDI_INTERNAL int opdi_program_region_node(opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                           const opdi_region_kind *kind);
/* Gives a value a second name.  `from` is the position of its name in the JSON, and `to` the position of the second
   name.  Returns 0, or -1 and sets an error. */
static int opdi_program_again(const opdi_program_reader *reader, opdi_program_graph *made, int64_t from, int64_t to) {
    const opd_json *const json = reader->json;
    opdi_gvalue *const value = opdi_program_use(reader, made, from);
    const char *const name = opd_json_text(json, to, NULL);
    opdi_graph_name *const slot = value && name ? opdi_program_slot(made, name) : NULL;
    if (!slot || slot->name) {
        return opd_ok() ? opdi_program_bad(reader, to, name ? "there are two values '%.100s'" : "a value has no name%s",
                                           name ? name : "") : -1;
    }
    slot->name = opdi_arena_copy(&made->graph->arena, name, strlen(name));
    slot->value = value;
    return slot->name ? 0 : -1;
}
/* Reads a node with_effects(token, operator, arguments of the operator).  The results of the node are the token and the
   results of the operator.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_effects_node(opdi_program_reader *reader, opdi_program_graph *made, int64_t at) {
    const opd_json *const json = reader->json;
    const int64_t token = opd_json_first(json, opd_json_get(json, at, "inputs")), called = opd_json_next(json, token);
    const int64_t result = opd_json_first(json, opd_json_get(json, at, "outputs"));
    const char *const target = opd_json_text(json, opdi_program_member(json, opd_json_get(json, called, "arg"),
                                                                       "as_operator"), NULL);
    char name[300], why[700];
    const char *const qualified = target ? opdi_program_qualified(target, name, sizeof name) : NULL;
    opd_op *const op = qualified ? opd_find_quiet(qualified) : NULL;
    if (!target || result < 0) { return opdi_program_bad(reader, at, "with_effects has no operator or no token"); }
    if (!op || !op->definition) {
        if (!opd_ok()) { return -1; }
        (void)snprintf(why, sizeof why, "there is no operator %.250s, which the program calls: load the library that "
                       "defines it first", qualified ? qualified : target);
        return opdi_program_missing_node(reader, made, at, qualified ? qualified : target, why);
    }
    const int64_t from = opd_json_get(json, opd_json_get(json, opd_json_get(json, token, "arg"), "as_tensor"), "name");
    const int64_t to = opd_json_get(json, opd_json_get(json, result, "as_tensor"), "name");
    return opdi_program_again(reader, made, from, to) ? -1
        : opdi_program_call_node(reader, made, at, op, opd_json_next(json, called), opd_json_next(json, result));
}
//== writing operators as functions without side effects ===============================================================
//
//  A node auto_functionalized(operator, arguments of the operator) copies the tensors that the operator writes, calls
//  the operator with the copies, and returns the results of the operator and then the copies.
//
//  In the second form (auto_functionalized_v2), the node has a list of the tensors to copy, which are called bases.  A
//  written argument x of the operator is a copy of a base, or a part of such a copy.  Inputs of the node tell which
//  one: _x_base_index, _x_slice_dim, ..., _x_storage_offset.

/* An argument that the operator writes: the copy of a base, or a part of this copy. */
typedef struct opdi_functional_part {
    int32_t base;                /* the number of the base; -1: the argument is None */
    char part;                   /* 0: the whole base; 's': a slice; 'v': a view with given sizes, strides and offset */
    int32_t at;                  /* the index, among the inputs of the node, of the first parameter of the slice or
                                    view */
    int64_t begin;               /* the storage offset of the base at export */
} opdi_functional_part;
typedef struct opdi_functional_arg {
    int32_t at;                  /* the index among the inputs of the node; -1 if the operator writes the argument */
    bool list;
    int32_t first, count;        /* the argument's entries in `parts` */
} opdi_functional_arg;
typedef struct opdi_functional {
    opd_op *op;
    opdi_functional_arg *args;
    opdi_functional_part *parts;
    int32_t nparts, bases, nbases;                /* bases: the index of the first base among the inputs of the node */
} opdi_functional;

/* Returns the tensor that is passed for a written argument: the copy of its base, or a part of this copy.  `args` are
   the inputs of the node, and `copies` the copies of the bases.  The tensor belongs to the innermost scope.  Returns
   NULL and sets an error on failure. */
static opd_tensor *opdi_functional_part_of(const opdi_functional *its, const opdi_functional_part *part,
                                           const opd_value *args, const opd_value *copies) {
    opd_tensor *const copy = copies[part->base].tag == OPD_TAG_TENSOR ? copies[part->base].u.t : NULL;
    const opd_value *const given = args + part->at;
    if (!copy) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the value that it writes into is not a tensor", its->op->name);
        return NULL;
    }
    if (!part->part) { return copy; }
    if (part->part == 's' && given[0].tag == OPD_TAG_INT) {
        return opd_slice(copy, given[0].u.i, given[1], given[2], 1);
    }
    const opd_tensor *const base = args[its->bases + part->base].u.t;
    if (part->part == 's' || given[0].tag != OPD_TAG_INTS || given[1].tag != OPD_TAG_INTS ||
        given[2].tag != OPD_TAG_INT || base->ndim != copy->ndim ||
        memcmp(opd_strides(base), opd_strides(copy), (size_t)base->ndim * sizeof *base->dims) != 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the part of a tensor that it writes into cannot be found in a copy of "
                       "the tensor", its->op->name);
        return NULL;
    }
    return opd_as_strided_full(copy, opd_ints_of(given[0].u.ints, given[0].n), opd_ints_of(given[1].u.ints, given[1].n),
                               opd_value_int(given[2].u.i - part->begin));
}
static int opdi_functional_inside(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const opdi_functional *const its = (const opdi_functional *)node->user;
    const int nargs = its->op->nargs, results = OPDI_MAX(its->op->nrets, 1);
    opd_value *const given = opdi_control_values(nargs), *const all = opdi_control_values(results + its->nbases);
    if (!given || !all) { return -1; }
    opd_value *const copies = all + results;
    all[0] = opd_value_none();
    for (int32_t i = 0; i < its->nbases; i++) {
        copies[i] = args[its->bases + i];
        if (copies[i].tag == OPD_TAG_TENSOR) { copies[i] = opd_value_tensor(opd_clone(copies[i].u.t)); }
        if (!opd_ok()) { return -1; }
    }
    for (int i = 0; i < nargs; i++) {
        const opdi_functional_arg *const arg = &its->args[i];
        opd_tensor **const list = arg->list ? opdi_scope_tensors(arg->count + 1) : NULL;
        given[i] = arg->at >= 0 ? args[arg->at] : opd_value_none();
        if (arg->list && !list) { return -1; }
        for (int32_t k = 0; arg->at < 0 && k < arg->count; k++) {
            const opdi_functional_part *const part = &its->parts[arg->first + k];
            opd_tensor *const made = part->base >= 0 ? opdi_functional_part_of(its, part, args, copies) : NULL;
            if (!opd_ok()) { return -1; }
            if (list) { list[k] = made; }
            else if (made) { given[i] = opd_value_tensor(made); }
        }
        if (list) { given[i] = opd_value_tensors(list, arg->count); }
    }
    return opd_call_all(its->op, all, given, nargs) ? -1 : opdi_region_return(rets, all, results + its->nbases);
}
static int opdi_functional_run(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    opd_scope scope = opd_scope_open();
    const int rc = opdi_functional_inside(node, args, rets);
    opd_scope_close(&scope);
    return rc;
}
static const opdi_gfunction opdi_functionals[] = {
    {"auto_functionalized", opdi_functional_run, true}, {"auto_functionalized_v2", opdi_functional_run, true}};

/* The state while an auto_functionalized node is read. */
typedef struct opdi_functionalizer {
    opdi_program_reader *reader;
    opdi_program_graph *made;
    int64_t node, inputs;        /* positions in the JSON: the node, and its first input after the operator */
    opdi_functional *its;
    opdi_gvalue **in;
    int32_t nin;
} opdi_functionalizer;

/* Finds the input of the node that is named "_<name><end>", or "_<name>_<element><end>" if `element` is not negative.
   Returns its position in the JSON, or -1 if there is none. */
static int64_t opdi_functional_given(const opdi_functionalizer *from, const char *name, int64_t element,
                                     const char *end) {
    char key[300], number[24] = "";
    if (element >= 0) { (void)snprintf(number, sizeof number, "_%lld", (long long)element); }
    (void)snprintf(key, sizeof key, "_%.200s%s%s", name, number, end);
    return opdi_program_given(from->reader->json, from->inputs, key, -1);
}
/* Adds the argument at `at` in the JSON to the inputs of the node.  Returns 0, or -1 and sets an error. */
static int opdi_functional_input(opdi_functionalizer *from, int64_t at, const opdi_type *type) {
    opdi_gvalue *const value = opdi_program_argument(from->reader, from->made, at, type);
    from->in[from->nin] = value;
    from->nin += value != NULL;
    return value ? 0 : -1;
}
/* Adds an argument of the operator to the inputs of the node.  The operator does not write this argument, or, in the
   first form, the argument is a base.  Returns 0, or -1 and sets an error. */
static int opdi_functional_plain(opdi_functionalizer *from, const opdi_arg *arg) {
    const int64_t given = opdi_program_given(from->reader->json, from->inputs, arg->name, -1);
    if (given >= 0) { return opdi_functional_input(from, given, arg->type); }
    if (!arg->has_default) {
        return opdi_program_bad(from->reader, from->node, "%s has no value for its argument '%s'", from->its->op->name,
                                arg->name);
    }
    opdi_gvalue *const value = opdi_graph_constants(from->made->graph, &arg->value);
    from->in[from->nin] = value;
    from->nin += value != NULL;
    return value ? 0 : -1;
}
/* Reads how a written argument is made from the copy of its base.  If the argument is a list, `element` is the index of
   a tensor in the list, otherwise -1.  Returns 0, or -1 and sets an error. */
static int opdi_functional_written(opdi_functionalizer *from, const char *name, int64_t element) {
    static const char *const slices[] = {"_slice_dim", "_slice_start", "_slice_end"};
    static const char *const views[] = {"_size", "_stride", "_storage_offset"};
    const opd_json *const json = from->reader->json;
    opdi_functional_part *const part = &from->its->parts[from->its->nparts++];
    const int64_t at = opdi_functional_given(from, name, element, "_base_index");
    const int64_t base = opd_json_int(json, opdi_program_member(json, at, "as_int"), -1);
    memset(part, 0, sizeof *part);
    part->base = -1;
    part->at = from->nin;
    if (opdi_program_member(json, at, "as_none") >= 0) { return 0; }
    if (base < 0 || base >= from->its->nbases) {
        return opdi_program_bad(from->reader, from->node, "the tensor that is written as '%.100s' does not exist",
                                name);
    }
    part->base = (int32_t)base;
    part->part = opdi_functional_given(from, name, element, views[2]) >= 0 ? 'v'
        : opdi_functional_given(from, name, element, slices[0]) >= 0 ? 's' : 0;
    for (int k = 0; k < 3 && part->part; k++) {
        const int64_t given = opdi_functional_given(from, name, element, part->part == 's' ? slices[k] : views[k]);
        if (given < 0) {
            return opdi_program_bad(from->reader, from->node, "the description of a part of '%.100s' is incomplete",
                                    name);
        }
        if (opdi_functional_input(from, given, NULL)) { return -1; }
    }
    return 0;
}
/* Adds the bases to the inputs of the node, after all other inputs; `list` is the position of their list in the JSON.
   If `optional` is true, a base may be None.  Returns 0, or -1 and sets an error. */
static int opdi_functional_bases(opdi_functionalizer *from, int64_t list, bool optional) {
    const opd_json *const json = from->reader->json;
    int32_t k = 0;
    from->its->bases = from->nin;
    for (int64_t at = opd_json_first(json, list); at >= 0; at = opd_json_next(json, at), k++) {
        opdi_gvalue *const base = optional ? opdi_program_argument(from->reader, from->made, at, NULL)
            : opdi_program_use(from->reader, from->made, opd_json_get(json, at, "name"));
        if (!base) { return -1; }
        from->in[from->nin++] = base;
        const int64_t meta = base->name ? opd_json_get(json, from->made->metas, base->name) : -1;
        const int64_t offset = opd_json_get(json, opd_json_get(json, meta, "storage_offset"), "as_int");
        for (int32_t i = 0; i < from->its->nparts; i++) {
            if (from->its->parts[i].base == k) { from->its->parts[i].begin = opd_json_int(json, offset, 0); }
        }
    }
    return 0;
}
/* Reads the arguments of a node of the second form.  Returns 0, or -1 and sets an error. */
static int opdi_functional_second(opdi_functionalizer *from) {
    const opd_json *const json = from->reader->json;
    opdi_functional *const its = from->its;
    for (int i = 0; i < its->op->nargs; i++) {
        const opdi_arg *const arg = &its->op->schema->args[i];
        opdi_functional_arg *const to = &its->args[i];
        memset(to, 0, sizeof *to);
        to->at = arg->written ? -1 : from->nin;
        to->first = its->nparts;
        if (!arg->written) {
            if (opdi_functional_plain(from, arg)) { return -1; }
            continue;
        }
        const bool list = opdi_strip_optional(arg->type)->kind == OPDI_TYPE_LIST;
        const int64_t length = opdi_functional_given(from, arg->name, -1, "_length");
        if (list && opdi_program_member(json, length, "as_none") >= 0) { continue; }
        const int64_t count = list ? opd_json_int(json, opdi_program_member(json, length, "as_int"), -1) : 1;
        if (count < 0 || count > its->nbases) {
            return opdi_program_bad(from->reader, from->node, "the program does not say which tensor %s writes as '%s'",
                                    its->op->name, arg->name);
        }
        to->list = list;
        to->count = (int32_t)count;
        for (int64_t k = 0; k < count; k++) {
            if (opdi_functional_written(from, arg->name, list ? k : -1)) { return -1; }
        }
    }
    return 0;
}
/* Reads the arguments of a node of the first form, in which each base is an argument of the operator.  Returns 0, or -1
   and sets an error. */
static int opdi_functional_first(opdi_functionalizer *from) {
    opdi_functional *const its = from->its;
    const opd_op *const op = its->op;
    for (int pass = 0; pass < 2; pass++) {        /* the bases come after all other inputs */
        if (pass) { its->bases = from->nin; }
        for (int i = 0; i < op->nargs; i++) {
            const opdi_arg *const arg = &op->schema->args[i];
            opdi_functional_arg *const to = &its->args[i];
            if (arg->written != (pass == 1)) { continue; }
            if (pass && opdi_strip_optional(arg->type)->kind != OPDI_TYPE_TENSOR) {
                return opdi_program_bad(from->reader, from->node, "the program does not say which tensor %s writes as "
                                        "'%s'", op->name, arg->name);
            }
            memset(to, 0, sizeof *to);
            to->at = pass ? -1 : from->nin;
            to->first = its->nparts;
            to->count = pass;
            if (opdi_functional_plain(from, arg)) { return -1; }
            if (!pass) { continue; }
            memset(&its->parts[its->nparts], 0, sizeof *its->parts);
            its->parts[its->nparts++].base = from->in[from->nin - 1]->tag == OPD_TAG_TENSOR ? its->nbases : -1;
            its->nbases++;
        }
    }
    return 0;
}
/* Adds the node and its results to the graph.  Returns 0, or -1 and sets an error. */
static int opdi_functional_make(opdi_functionalizer *from, const opdi_gfunction *function) {
    const opd_json *const json = from->reader->json;
    const opd_op *const op = from->its->op;
    const int32_t results = OPDI_MAX(op->nrets, 1);
    opdi_gnode *const node =
        opdi_gnode_new(from->made->graph, OPDI_GNODE_FUNCTION, from->nin, results + from->its->nbases);
    if (!node || opdi_program_count(from->reader->program, op->name, NULL)) { return -1; }
    if (from->nin) { memcpy(node->in, from->in, (size_t)from->nin * sizeof *from->in); }
    node->function = function;
    node->user = from->its;
    for (int32_t i = 0; i < node->nout; i++) {
        const int32_t tag = i >= results ? OPD_TAG_TENSOR : op->nrets ? opdi_graph_tag_of(op->schema->returns[i].type)
            : OPD_TAG_NONE;
        if (!(node->out[i] = opdi_gvalue_new(from->made->graph, node, tag))) { return -1; }
    }
    opdi_gnode_append(from->made->graph, node);
    return opdi_program_results(from->reader, from->made,
                                opd_json_first(json, opd_json_get(json, from->node, "outputs")), node);
}
/* Reads an auto_functionalized node; its operator `op` exists.  `second` is true if the node has the second form.
   Returns 0, or -1 and sets an error. */
static int opdi_functional_node(opdi_functionalizer *from, opd_op *op, bool second) {
    const opd_json *const json = from->reader->json;
    opdi_arena *const arena = &from->reader->program->arena;
    const size_t nargs = (size_t)op->nargs + 1;
    int64_t capacity = op->nargs + 1, bases = -1;
    for (int64_t i = from->inputs; i >= 0; i = opd_json_next(json, i)) {
        capacity += 1 + opdi_program_union_count(json, opd_json_get(json, i, "arg"));
    }
    opdi_functional *const its = from->its = (opdi_functional *)opdi_arena_alloc(arena, sizeof *its);
    from->in = (opdi_gvalue **)opdi_scope_alloc((size_t)capacity * sizeof *from->in);
    if (!its || !from->in) { return -1; }
    memset(its, 0, sizeof *its);
    its->op = op;
    its->args = (opdi_functional_arg *)opdi_arena_alloc(arena, nargs * sizeof *its->args);
    its->parts = (opdi_functional_part *)opdi_arena_alloc(arena, (size_t)capacity * sizeof *its->parts);
    if (!its->args || !its->parts) { return -1; }
    if (!second) { return opdi_functional_first(from) ? -1 : opdi_functional_make(from, &opdi_functionals[0]); }
    const int64_t given = opdi_program_given(json, from->inputs, "_all_bases", -1);
    const char *const kind = given >= 0 ? opdi_program_union(from->reader, given, &bases) : NULL;
    const bool optional = kind && strcmp(kind, "as_optional_tensors") == 0;
    if (!kind || (!optional && strcmp(kind, "as_tensors") != 0)) {
        return opd_ok() ? opdi_program_bad(from->reader, from->node, "%s has no tensor to write into", op->name) : -1;
    }
    its->nbases = (int32_t)OPDI_MIN(opd_json_count(json, bases), INT32_MAX);
    return opdi_functional_second(from) || opdi_functional_bases(from, bases, optional) ? -1
        : opdi_functional_make(from, &opdi_functionals[1]);
}
OPDI_INTERNAL int opdi_program_functional_node(opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                               bool second) {
    const opd_json *const json = reader->json;
    const int64_t first = opd_json_first(json, opd_json_get(json, at, "inputs"));
    const char *const target = opd_json_text(json, opdi_program_member(json, opd_json_get(json, first, "arg"),
                                                                       "as_operator"), NULL);
    char name[300], why[700];
    const char *const qualified = target ? opdi_program_qualified(target, name, sizeof name) : NULL;
    opd_op *const op = qualified ? opd_find_quiet(qualified) : NULL;
    opdi_functionalizer from;
    if (!target) { return opdi_program_bad(reader, at, "auto_functionalized has no operator"); }
    if (!op || !op->definition) {
        if (!opd_ok()) { return -1; }
        (void)snprintf(why, sizeof why, "there is no operator %.250s, which the program calls: load the library that "
                       "defines it first", qualified ? qualified : target);
        return opdi_program_missing_node(reader, made, at, qualified ? qualified : target, why);
    }
    memset(&from, 0, sizeof from);
    from.reader = reader;
    from.made = made;
    from.node = at;
    from.inputs = opd_json_next(json, first);
    return opdi_functional_node(&from, op, second);
}
