#include "programs.h"

//== reading exported programs (.pt2) ==================================================================================

void opd_program_free(opd_program *program) {
    if (!program || opdi_ref_down(&program->refs)) { return; }
    opd_tensor_file_close(program->file);
    opd_graph_free(program->graph);
    opd_graph_free(program->quick);
    for (size_t i = 0; i < program->graphs.length / sizeof(opd_graph *); i++) {
        opd_graph_free(((opd_graph **)(void *)program->graphs.data)[i]);
    }
    opd_module_free(program->module);
    opdi_string_free(&program->operators);
    opdi_string_free(&program->graphs);
    opdi_string_free(&program->notes);
    opdi_arena_free(&program->arena);
    opdi_free(program, sizeof *program);
}
/* Returns the JSON text of an entry, and sets *source to the description of the entry for errors.  On failure, returns
   NULL and sets an error. */
static opd_json *opdi_program_json(const opdi_program_reader *reader, int64_t entry, opdi_source *source) {
    unsigned char *own;
    if (opdi_zip_bytes(reader->file, opdi_file_entry_of(reader->file, entry), 1, source, &own)) { return NULL; }
    opd_json *const json = opdi_json_read(source);
    opdi_free(own, source->length);
    source->data = NULL;
    source->length = 0;
    return json;
}
/* Stores the names of the programs in the file, and finds the program named `name`.  If `name` is NULL, finds the
   program "model" or, if there is none, the first program.  Returns the index of the program's entry, or -1 and sets an
   error. */
static int64_t opdi_program_find(opdi_program_reader *reader, const char *name) {
    opd_program *const program = reader->program;
    const opd_tensor_file *const file = reader->file;
    int64_t found = -1;
    bool exact = false;
    program->names = (const char **)opdi_arena_alloc(&program->arena,
                                                     (size_t)(file->count + 1) * sizeof *program->names);
    for (int64_t i = 0; i < file->count && program->names; i++) {
        const char *const entry = opdi_file_entry_name(file, i), *const slash = strchr(entry, '/');
        const size_t length = strlen(entry);
        if (strcmp(entry, "serialized_exported_program.json") == 0 && (!name || strcmp(name, "model") == 0)) {
            program->names[0] = program->name = "model";         /* a file from before torch 2.7 */
            program->nnames = 1;
            reader->root = "";
            reader->plain = true;
            return i;
        }
        if (!slash || strncmp(slash, "/models/", 8) != 0 || length < 14 || strcmp(entry + length - 5, ".json") != 0) {
            continue;
        }
        const size_t bytes = (size_t)(entry + length - 5 - (slash + 8));
        char *const its = opdi_arena_copy(&program->arena, slash + 8, bytes);
        if (!its) { return -1; }
        program->names[program->nnames++] = its;
        const bool same = strcmp(its, name ? name : "model") == 0;
        if (exact || (!same && (name || found >= 0))) { continue; }
        exact = same;
        found = i;
        program->name = its;
        reader->root = entry;
        reader->root_bytes = (size_t)(slash + 1 - entry);
    }
    if (!program->names) { return -1; }
    if (found >= 0) { return found; }
    return opdi_bad(&file->source, OPDI_NOWHERE, name && program->nnames ? "the file has no program '%.100s'"
                    : "this is not a file of an exported program", name);
}
/* Opens the entry `name` in `folder`, which is a checkpoint.  Returns the open file; NULL if there is no such entry; or
   NULL and sets an error. */
static opd_tensor_file *opdi_program_checkpoint(const opdi_program_reader *reader, const char *folder,
                                                const char *name) {
    const int64_t entry = opdi_program_entry(reader, folder, name);
    const opdi_file_entry *const named = entry >= 0 ? opdi_file_entry_of(reader->file, entry) : NULL;
    opdi_source source;
    unsigned char *own;
    if (!named || opdi_zip_bytes(reader->file, named, named->method != 0, &source, &own)) { return NULL; }
    opdi_file_buffer *const buffer = opdi_file_buffer_new();
    if (!buffer) {
        opdi_free(own, source.length);
        return NULL;
    }
    buffer->data = (unsigned char *)(uintptr_t)source.data;
    buffer->length = source.length;
    if (own) { buffer->block = source.length; }
    else {
        opdi_ref_up(&reader->file->bytes->refs);
        buffer->deleter = opdi_file_buffer_release;
        buffer->user = reader->file->bytes;
    }
    return opdi_tensor_file(buffer, &source);
}
/* Opens the checkpoints that have the tensors in older files.  Returns 0, or -1 and sets an error. */
static int opdi_program_checkpoints(opdi_program_reader *reader) {
    char name[300];
    (void)snprintf(name, sizeof name, "%.200s.pt", reader->program->name);
    reader->weights = reader->plain ? opdi_program_checkpoint(reader, "", "serialized_state_dict.pt")
        : opdi_program_checkpoint(reader, "data/weights/", name);
    if (!reader->weights && opd_ok() && reader->plain) {
        reader->weights = opdi_program_checkpoint(reader, "", "serialized_state_dict.json");
    }
    if (!opd_ok()) { return -1; }
    reader->constants = reader->plain ? opdi_program_checkpoint(reader, "", "serialized_constants.pt")
        : opdi_program_checkpoint(reader, "data/constants/", name);
    if (!reader->constants && opd_ok() && reader->plain) {
        reader->constants = opdi_program_checkpoint(reader, "", "serialized_constants.json");
    }
    return opd_ok() ? 0 : -1;
}
/* Reads the descriptions of the tensors in a file of torch 2.8 or later.  Returns 0, or -1 and sets an error. */
static int opdi_program_configs(opdi_program_reader *reader) {
    static const char *const folders[] = {"data/weights/", "data/constants/"};
    static const char *const ends[] = {"_weights_config.json", "_constants_config.json"};
    opdi_source source;
    for (int i = 0; i < 2; i++) {
        char name[300];
        if (strlen(reader->program->name) > 200) { return opdi_program_bad(reader, -1, "a name is too long"); }
        (void)snprintf(name, sizeof name, "%s%s", reader->program->name, ends[i]);
        const int64_t entry = opdi_program_entry(reader, folders[i], name);
        if (entry >= 0 && !(reader->configs[i] = opdi_program_json(reader, entry, &source))) { return -1; }
        if (!opd_ok()) { return -1; }
    }
    return 0;
}
/* Stores the names, kinds, dtypes and sizes of the module's tensors.  Returns 0, or -1 if memory runs out. */
static int opdi_program_shapes(opd_program *program) {
    const int64_t count = opd_module_count(program->module);
    program->shapes = (opdi_program_shape *)opdi_arena_alloc(&program->arena,
                                                             (size_t)(count + 1) * sizeof *program->shapes);
    for (int64_t i = 0; i < count && program->shapes; i++) {
        const opd_tensor *const tensor = opd_module_at(program->module, i);
        const char *const name = opd_module_name(program->module, i);
        opdi_program_shape *const shape = &program->shapes[i];
        shape->name = opdi_arena_copy(&program->arena, name, strlen(name));
        shape->kind = opd_module_kind_at(program->module, i);
        shape->dtype = (opd_scalar_type)tensor->dtype;
        shape->ndim = tensor->ndim;
        shape->sizes = (int64_t *)opdi_arena_alloc(&program->arena, (size_t)tensor->ndim * sizeof *shape->sizes + 8);
        if (!shape->name || !shape->sizes) { return -1; }
        memcpy(shape->sizes, tensor->dims, (size_t)tensor->ndim * sizeof *shape->sizes);
        program->nshapes++;
    }
    return program->shapes ? 0 : -1;
}
/* Makes program->quick of `graph`, which is or becomes the program's graph: NULL if it has no quantised layers.  Such
   layers dequantise something, cast a weight of integers for a product (mm), or have packed weights.  Returns 0, or -1
   and sets an error; then nothing has changed. */
OPDI_INTERNAL int opdi_program_quicken(opd_program *program, const opd_graph *graph) {
    bool quantized = false;
    for (const opd_graph_node *node = opd_graph_first(graph); node; node = opd_graph_next(node)) {
        const char *const name = opd_graph_node_kind(node) == OPD_GRAPH_OP ? opd_op_name(opd_graph_node_op(node)) : "";
        quantized = quantized || strstr(name, "::dequantize_") || strcmp(name, "aten::mm") == 0 ||
            strncmp(name, "onednn::q", 9) == 0;
    }
    opd_graph *copy = quantized ? opd_graph_copy(graph) : NULL;
    const int fused = copy ? opd_graph_fuse_quantized(copy) : quantized ? -1 : 0;
    if (fused <= 0) {
        opd_graph_free(copy);
        copy = NULL;
    } else {
        copy->program = program;
        copy->kept = NULL;
        opd_program_free(program);                /* the reference that the copy had */
    }
    if (fused < 0) { return -1; }
    opd_graph_free(program->quick);
    program->quick = copy;
    return 0;
}
/* Reads the program `name` from an open file.  Returns 0, or -1 and sets an error. */
static int opdi_program_open(opdi_program_reader *reader, const char *name) {
    const opd_tensor_file *const file = reader->file;
    if (!file->zip || file->checkpoint) {
        return opdi_bad(&file->source, 0, "this is not a file of an exported program");
    }
    reader->storages = (opd_tensor **)opdi_alloc((size_t)(file->count + 1) * sizeof *reader->storages);
    if (!reader->storages) { return -1; }
    memset(reader->storages, 0, (size_t)(file->count + 1) * sizeof *reader->storages);
    const int64_t entry = opdi_program_find(reader, name);
    if (entry < 0 || opdi_program_configs(reader) || opdi_program_checkpoints(reader)) { return -1; }
    opd_json *const json = opdi_program_json(reader, entry, &reader->source);
    reader->program->text = entry;
    reader->json = json;
    const int rc = json ? opdi_program_read(reader) : -1;
    opd_json_free(json);
    return rc || opdi_program_open_sizes(reader->program) ? -1 : opdi_program_shapes(reader->program);
}
static void opdi_program_reader_end(opdi_program_reader *reader) {
    for (int64_t i = 0; reader->storages && i < reader->file->count; i++) {
        if (reader->storages[i]) { opdi_drop(reader->storages[i]); }
    }
    if (reader->storages) { opdi_free(reader->storages, (size_t)(reader->file->count + 1) * sizeof *reader->storages); }
    opd_json_free(reader->configs[0]);
    opd_json_free(reader->configs[1]);
    opd_tensor_file_close(reader->weights);
    opd_tensor_file_close(reader->constants);
}
/* Reads the program `name` from an open file; the program then owns the file.  `file` is NULL if opening it has failed
   and set an error.  Returns the program, or NULL and sets an error. */
static opd_program *opdi_program_load(opd_tensor_file *file, const char *name) {
    opdi_program_reader reader;
    opd_program *program = file ? (opd_program *)opdi_alloc(sizeof *program) : NULL;
    if (!program) {
        opd_tensor_file_close(file);
        return NULL;
    }
    memset(program, 0, sizeof *program);
    program->refs = 1;
    memset(&reader, 0, sizeof reader);
    reader.program = program;
    reader.file = program->file = file;
    reader.source = file->source;
    opdi_thread *const thread = opdi_self();
    const uint64_t was = opdi_enter(thread);      /* schemas stay valid while they are read, as in a call of an
                                                     operator */
    opd_scope scope = opd_scope_open();
    program->module = opd_module_new();
    const int rc = program->module ? opdi_program_open(&reader, name) : -1;
    opd_scope_close(&scope);
    opdi_leave(thread, was);
    opdi_program_reader_end(&reader);
    if (rc == 0 && opdi_program_quicken(program, program->graph) == 0) { return program; }
    opd_program_free(program);
    return NULL;
}
opd_program *opd_program_load(const char *path, const char *name) {
    OPDI_NEEDS_ALL();
    opdi_source source;
    opdi_file_buffer *const buffer = opdi_file_buffer_open(&source, "opd_program_load", path, NULL);
    return opdi_program_load(opdi_tensor_file(buffer, &source), name);
}
opd_program *opd_program_parse(const void *data, size_t size, const char *name) {
    OPDI_NEEDS_ALL();
    return opdi_program_load(opd_tensor_file_parse((void *)(uintptr_t)data, size, NULL, NULL), name);
}
