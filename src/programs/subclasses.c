#include "programs.h"

//== tensors of Python classes =========================================================================================
//
//  A parameter may be an object of a Python class that stands for a tensor, such as torchao's quantised weights.  Its
//  entry in the file is a checkpoint with the tensors inside of the object.  The program reads these by the operator
//  export::access_subclass_inner_tensor.  Here each of them is a tensor of the module and an input of the graph of its
//  own: "a.weight.qdata", and the input p_a_weight.qdata.

OPDI_COLD_BEGIN
static void opdi_program_inner_free(void *data, void *user) {
    (void)data;
    opdi_drop((opd_tensor *)user);
}
/* Opens the checkpoint in which the tensors of `name` are.  Returns NULL if `name` is an ordinary tensor; else, if the
   checkpoint cannot be opened, sets an error, too. */
static opd_tensor_file *opdi_program_inner_open(const opdi_program_reader *reader, const char *name) {
    static const char *const folders[] = {"data/weights/", "data/constants/"};
    for (int i = 0; i < 2; i++) {
        const opd_json *const json = reader->configs[i];
        const int64_t payload = json ? opd_json_get(json, opd_json_get(json, 0, "config"), name) : -1;
        const char *const path = opd_json_text(json, opd_json_get(json, payload, "path_name"), NULL);
        if (payload < 0 || !path || !opd_json_bool(json, opd_json_get(json, payload, "use_pickle"), false)) {
            continue;
        }
        const int64_t entry = opdi_program_entry(reader, folders[i], path);
        opd_tensor *const bytes = entry < 0 ? NULL : opdi_program_storage(reader, entry);
        opd_tensor *const kept = bytes ? opdi_keep(bytes) : NULL;
        return kept ? opd_tensor_file_parse(kept->data, (size_t)kept->numel, opdi_program_inner_free, kept) : NULL;
    }
    return NULL;
}
/* Returns how many tensors are in objects of Python classes, at most. */
OPDI_INTERNAL int64_t opdi_program_inner_most(const opdi_program_reader *reader) {
    int64_t count = 0;
    for (int i = 0; i < 2; i++) {
        const opd_json *const json = reader->configs[i];
        int64_t at = json ? opd_json_first(json, opd_json_get(json, 0, "config")) : -1;
        for (; at >= 0; at = opd_json_next(json, at)) {
            count += opd_json_bool(json, opd_json_get(json, at, "use_pickle"), false) ? OPDI_PROGRAM_INNER : 0;
        }
    }
    return count;
}
/* Adds tensor i of an opened checkpoint to the module and to the inputs of the graph.  `outer` is the name of the
   graph's input, and `name` that of the parameter.  Returns 0, or -1 and sets an error. */
static int opdi_program_inner_add(opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                  const opd_tensor_file *inner, int64_t i, const char *outer, const char *name,
                                  opd_module_kind kind) {
    opd_program *const program = reader->program;
    opd_tensor *const tensor = opd_tensor_file_at(inner, i);
    char text[2][700];
    const char *const attribute = opd_tensor_file_name(inner, i), *const names[2] = {outer, name};
    for (int k = 0; k < 2; k++) {
        const int length = snprintf(text[k], sizeof text[k], "%s.%s", names[k], attribute);
        if (length < 0 || length >= (int)sizeof text[k]) {
            return opdi_program_bad(reader, at, "the name of a tensor inside '%.100s' is too long", name);
        }
        for (char *slash = text[k]; (slash = strchr(slash, '/')) != NULL;) { *slash = '.'; }
    }
    if (!tensor || opd_module_add(program->module, text[1], tensor, kind == OPD_MODULE_PARAMETER
                                  ? OPD_MODULE_BUFFER : kind)) { return -1; }
    opdi_program_place *const place = &program->from[made->graph->ninputs];
    place->kind = OPDI_FROM_MODULE;
    place->at = opd_module_count(program->module) - 1;
    return opdi_program_define(reader, made, at, text[0], opdi_program_input_add(made->graph, OPD_TAG_TENSOR));
}
/* Adds the tensors inside the parameter, buffer or constant `name`.  `at` is the position of the graph's input in the
   JSON.  Returns 1; 0 if `name` is an ordinary tensor; or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_inner_inputs(opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                            const char *name, opd_module_kind kind) {
    const opd_json *const json = reader->json;
    opd_tensor_file *const inner = opdi_program_inner_open(reader, name);
    const int64_t tensor = opd_json_get(json, at, "as_tensor");
    const char *const outer = opd_json_text(json, opd_json_get(json, tensor, "name"), NULL);
    int64_t count = 0;
    int rc = opd_ok() ? 0 : -1;
    if (!inner) { return rc; }
    if (!outer) { rc = opdi_program_bad(reader, at, "the input for '%.100s' has no name", name); }
    for (int64_t i = 0; rc == 0 && i < opd_tensor_file_count(inner); i++) {
        opd_value value;
        const int mark = opd_error_mark();
        const bool other = opd_tensor_file_value_at(inner, i, &value) == 0 && value.tag != OPD_TAG_TENSOR;
        const bool failed = !opd_ok();
        (void)opd_error_rewind(mark);
        if (other || failed) { continue; }        /* a number, a text or an object that the graph does not read */
        rc = ++count > OPDI_PROGRAM_INNER ? opdi_program_bad(reader, at, "'%.100s' has more than %d tensors", name,
                                                             OPDI_PROGRAM_INNER)
            : opdi_program_inner_add(reader, made, at, inner, i, outer, name, kind);
    }
    opd_tensor_file_close(inner);
    reader->program->subclass = reader->program->subclass ? reader->program->subclass
        : opdi_arena_copy(&reader->program->arena, name, strlen(name));
    return rc ? -1 : 1;
}
/* Gives the value `from` a second name.  Returns 0, or -1 and sets an error. */
static int opdi_program_inner_name(const opdi_program_reader *reader, opdi_program_graph *made, int64_t at,
                                   const char *name, opdi_gvalue *value) {
    opdi_graph_name *const slot = opdi_program_slot(made, name);
    if (slot->name) { return opdi_program_bad(reader, at, "there are two values '%.100s'", name); }
    slot->name = opdi_arena_copy(&made->graph->arena, name, strlen(name));
    slot->value = value;
    return slot->name ? 0 : -1;
}
/* Reads a node access_subclass_inner_tensor(object, attribute): its result is the tensor, or an object of which other
   nodes read tensors.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_inner_node(opdi_program_reader *reader, opdi_program_graph *made, int64_t at) {
    const opd_json *const json = reader->json;
    const int64_t first = opd_json_first(json, opd_json_get(json, at, "inputs")), second = opd_json_next(json, first);
    const int64_t object = opd_json_get(json, opd_json_get(json, first, "arg"), "as_tensor");
    const int64_t text_at = opd_json_get(json, opd_json_get(json, second, "arg"), "as_string");
    const int64_t result = opd_json_get(json, opd_json_first(json, opd_json_get(json, at, "outputs")), "as_tensor");
    const char *const outer = opd_json_text(json, opd_json_get(json, object, "name"), NULL);
    const char *const attribute = opd_json_text(json, text_at, NULL);
    const char *const name = opd_json_text(json, opd_json_get(json, result, "name"), NULL);
    char path[700], text[700];
    int64_t found = 0;
    if (!outer || !attribute || !name) { return opdi_program_bad(reader, at, "the node has other arguments"); }
    const int length = snprintf(path, sizeof path, "%s.%s", outer, attribute);
    if (length < 0 || length >= (int)sizeof path) { return opdi_program_bad(reader, at, "a name is too long"); }
    for (int64_t i = 0; i < made->size; i++) {
        const char *const its = made->names[i].name;
        if (!its || strncmp(its, path, (size_t)length) != 0 || (its[length] && its[length] != '.')) { continue; }
        const int whole = snprintf(text, sizeof text, "%s%s", name, its + length);
        if (whole < 0 || whole >= (int)sizeof text) { return opdi_program_bad(reader, at, "a name is too long"); }
        if (strncmp(text, path, (size_t)length) == 0 || opdi_program_slot(made, text)->name) {
            return opdi_program_bad(reader, at, "there are two values '%.100s'", text);
        }
        if (opdi_program_inner_name(reader, made, at, text, made->names[i].value)) { return -1; }
        if (++found > OPDI_PROGRAM_INNER) { break; }
    }
    return found ? 0 : opdi_program_bad(reader, at, "there is no tensor '%.100s' in '%.100s'", attribute, outer);
}
OPDI_COLD_END
