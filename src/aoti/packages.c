#include "aoti.h"

//== packages ==========================================================================================================

OPDI_INTERNAL char *opdi_aoti_copy_text(const char *text, size_t length) {
    char *copy = (char *)malloc(length + 1);
    if (!copy) {
        (void)opdi_aoti_no_memory();
        return NULL;
    }
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}
/* Returns the part of an entry's name that follows data/aotinductor/, such as "model/abc.wrapper.so", or NULL if the
   entry is not in that folder. */
static const char *opdi_aoti_below(const char *entry) {
    const char *at = entry ? strstr(entry, "data/aotinductor/") : NULL;
    return at && (at == entry || at[-1] == '/') ? at + 17 : NULL;
}
OPDI_INTERNAL bool opdi_aoti_ends(const char *text, const char *end) {
    const size_t length = strlen(text), ending = strlen(end);
    return length >= ending && strcmp(text + length - ending, end) == 0;
}
/* Collects the names of all models in a package, and chooses the model `wanted` or, if it is NULL, "model" or the first
   model.  Returns 0, or -1 and sets an error. */
static int opdi_aoti_choose(opd_aoti *model, const opd_tensor_file *file, const char *wanted) {
    char text[600];
    size_t capacity = 2;
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) { capacity += strlen(opd_tensor_file_name(file, i)) + 1; }
    char *end = model->names = (char *)calloc(capacity, 1);
    if (!end) { return opdi_aoti_no_memory(); }
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
        const char *below = opdi_aoti_below(opd_tensor_file_name(file, i));
        const char *slash = below ? strrchr(below, '/') : NULL;
        if (!slash || !opdi_aoti_ends(below, ".so")) { continue; }
        const size_t length = (size_t)(slash - below);
        const char *at = model->names;
        while (*at && !(strlen(at) == length && strncmp(at, below, length) == 0)) { at += strlen(at) + 1; }
        if (*at) { continue; }
        memcpy(end, below, length);
        end += length + 1;
    }
    const char *chosen = NULL;
    for (const char *at = model->names; *at; at += strlen(at) + 1) {
        if (wanted ? strcmp(at, wanted) == 0 : !chosen || strcmp(at, "model") == 0) { chosen = at; }
    }
    if (!*model->names) { return opdi_aoti_bad(model, "there is no compiled library in the package"); }
    if (!chosen) {
        snprintf(text, sizeof text, "the package has no model '%.200s', but a model '%.200s'", wanted, model->names);
        return opdi_aoti_bad(model, text);
    }
    model->name = opdi_aoti_copy_text(chosen, strlen(chosen));
    return model->name ? 0 : -1;
}
/* Finds the entry of the chosen model whose name ends with `end` and does not contain `without` (if that is not NULL).
   Returns the number of the entry, or -1 if there is none. */
static int64_t opdi_aoti_find_entry(const opd_aoti *model, const opd_tensor_file *file, const char *end,
                                    const char *without) {
    const size_t length = strlen(model->name);
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
        const char *below = opdi_aoti_below(opd_tensor_file_name(file, i));
        if (below && strncmp(below, model->name, length) == 0 && below[length] == '/' && opdi_aoti_ends(below, end) &&
            !strchr(below + length + 1, '/') && !(without && strstr(below, without))) {
            return i;
        }
    }
    return -1;
}
/* Reads an entry as JSON.  Returns NULL and sets an error if it fails. */
static opd_json *opdi_aoti_entry_json(const opd_tensor_file *file, int64_t entry) {
    opd_scope scope = opd_scope_open();
    const opd_tensor *bytes = opd_tensor_file_bytes(file, entry);
    opd_json *json = bytes ? opd_json_parse((const char *)opd_data(bytes), (size_t)opd_numel(bytes)) : NULL;
    opd_scope_close(&scope);
    return json;
}
/* Checks that the model was compiled for a machine like this one, as the package's metadata says.  Returns 0, or -1 and
   sets an error. */
static int opdi_aoti_check_metadata(const opd_aoti *model) {
    const char *const here = OPDI_AOTI_MACHINE == EM_X86_64 ? "x86_64" : "aarch64";
    char text[300];
    const char *device = opd_aoti_metadata(model, "AOTI_DEVICE_KEY"), *system = opd_aoti_metadata(model,
                                                                                                  "AOTI_PLATFORM");
    const char *machine = opd_aoti_metadata(model, "AOTI_MACHINE");
    if (device && strncmp(device, "cpu", 3) != 0) {
        snprintf(text, sizeof text, "the model was compiled for %.40s, but only models for the CPU can be used",
                 device);
        return opdi_aoti_bad(model, text);
    }
    if (system && strcmp(system, "linux") != 0) {
        snprintf(text, sizeof text, "the model was compiled for %.40s, but this program runs on linux", system);
        return opdi_aoti_bad(model, text);
    }
    if (machine && *machine && strcmp(machine, here) != 0 && !(strcmp(machine, "AMD64") == 0 && here[0] == 'x') &&
        !(strcmp(machine, "arm64") == 0 && here[0] == 'a')) {
        snprintf(text, sizeof text, "the model was compiled for %.40s, but this program runs on %s", machine, here);
        return opdi_aoti_bad(model, text);
    }
    return opdi_aoti_check_isa(model, opd_aoti_metadata(model, "AOTI_CPU_ISA"));
}
/* Checks the version of the package's format.  Returns 0, or -1 and sets an error. */
static int opdi_aoti_check_version(const opd_aoti *model, const opd_tensor_file *file) {
    char text[160];
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
        const char *name = opd_tensor_file_name(file, i), *slash = strchr(name, '/');
        if (strcmp(slash ? slash + 1 : name, "archive_version") != 0) { continue; }
        const opd_tensor *bytes = opd_tensor_file_bytes(file, i);
        const char *data = bytes ? (const char *)opd_data(bytes) : "";
        if (bytes && (opd_numel(bytes) != 1 || *data != '0')) {
            snprintf(text, sizeof text, "the package has version %.*s of the format, but only version 0 can be read",
                     (int)(opd_numel(bytes) < 20 ? opd_numel(bytes) : 20), data);
            return opdi_aoti_bad(model, text);
        }
    }
    return opd_ok() ? 0 : -1;
}
/* Releases the bytes of the package from which an inner file was read. */
static void opdi_aoti_close_bytes(void *data, void *user) { opdi_aoti_release(data, user); }
/* Reads a weight, described by ["weight_0", [sizes], [strides], offset] at `value` in the JSON.  Returns NULL and sets
   an error if it fails. */
static opd_tensor *opdi_aoti_read_weight(const opd_aoti *model, const opd_tensor_file *file, const opd_json *json,
                                         int64_t value) {
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS], entry = -1;
    char text[300];
    int ndim = 0, nstrides = 0;
    const int64_t first = opd_json_first(json, value), second = opd_json_next(json, first);
    const int64_t third = opd_json_next(json, second), fourth = opd_json_next(json, third);
    const char *name = opd_json_text(json, first, "");
    for (int64_t i = 0; i < opd_tensor_file_count(file) && *name; i++) {
        const char *at = strstr(opd_tensor_file_name(file, i), "data/weights/");
        if (at && strcmp(at + 13, name) == 0) { entry = i; }
    }
    for (int64_t e = opd_json_first(json, second); e >= 0 && ndim < OPD_MAX_DIMS; e = opd_json_next(json, e)) {
        sizes[ndim++] = opd_json_int(json, e, -1);
    }
    for (int64_t e = opd_json_first(json, third); e >= 0 && nstrides < OPD_MAX_DIMS; e = opd_json_next(json, e)) {
        strides[nstrides++] = opd_json_int(json, e, -1);
    }
    if (entry < 0 || ndim != nstrides) {
        snprintf(text, sizeof text, "the weight '%.100s' is not in the package", name);
        (void)opdi_aoti_bad(model, text);
        return NULL;
    }
    opd_tensor *bytes = opd_tensor_file_bytes(file, entry);
    opd_tensor_file *inner = !bytes ? NULL : opd_tensor_file_parse(opd_data(bytes), (size_t)opd_numel(bytes),
                                                                   opdi_aoti_close_bytes, opd_keep(bytes));
    opd_tensor *tensor = inner ? opd_tensor_file_at(inner, 0) : NULL;
    tensor = tensor ? opd_tensor_view(tensor, sizes, strides, ndim, opd_json_int(json, fourth, 0)) : NULL;
    opd_tensor_file_close(inner);
    return tensor;
}
/* Opens the weights that are separate entries of the package; entry number `list` lists them.  The tensors use the
   memory of the mapped file.  Returns 0, or -1 and sets an error. */
static int opdi_aoti_read_weights(opd_aoti *model, const opd_tensor_file *file, int64_t list) {
    opd_json *json = opdi_aoti_entry_json(file, list);
    const int64_t count = json ? opd_json_count(json, 0) : 0;
    model->weights = (opd_tensor **)calloc((size_t)count + 1, sizeof *model->weights);
    model->weight_names = (char **)calloc((size_t)count + 1, sizeof *model->weight_names);
    if (!model->weights || !model->weight_names) { (void)opdi_aoti_no_memory(); }
    for (int64_t e = json ? opd_json_first(json, 0) : -1; e >= 0 && opd_ok(); e = opd_json_next(json, e)) {
        const char *name = opd_json_key(json, e);
        opd_tensor *tensor = name ? opdi_aoti_read_weight(model, file, json, e) : NULL;
        if (!tensor) { break; }
        model->weights[model->nweights] = opd_keep(tensor);
        model->weight_names[model->nweights++] = opdi_aoti_copy_text(name, strlen(name));
    }
    opd_json_free(json);
    return opd_ok() ? 0 : -1;
}
OPDI_INTERNAL int opdi_aoti_open_package(opd_aoti *model, const char *wanted) {
    opd_tensor_file *file = opd_tensor_file_open(model->path);
    opd_scope scope = opd_scope_open();
    int rc = -1;
    if (file && opdi_aoti_choose(model, file, wanted) == 0 && opdi_aoti_check_version(model, file) == 0) {
        const int64_t library = opdi_aoti_find_entry(model, file, ".so", NULL);
        const int64_t metadata = opdi_aoti_find_entry(model, file, "wrapper_metadata.json", NULL);
        const int64_t other = opdi_aoti_find_entry(model, file, "_metadata.json", NULL);
        const int64_t nodes = opdi_aoti_find_entry(model, file, "wrapper.json", NULL);
        const int64_t blob = opdi_aoti_find_entry(model, file, "_serialized_weights.bin", NULL);
        const int64_t bin = blob >= 0 ? blob : opdi_aoti_find_entry(model, file, ".blob", NULL);
        if (metadata >= 0 || other >= 0) {
            model->metadata = opdi_aoti_entry_json(file, metadata >= 0 ? metadata : other);
        }
        if (nodes >= 0 && opd_ok()) { model->nodes = opdi_aoti_entry_json(file, nodes); }
        const int64_t list = opdi_aoti_find_entry(model, file, "weights_config.json", NULL);
        if (list >= 0 && opd_ok()) { (void)opdi_aoti_read_weights(model, file, list); }
        if (bin >= 0 && opd_ok()) { model->blob = opd_keep(opd_tensor_file_bytes(file, bin)); }
        opd_tensor *bytes = opd_ok() && opdi_aoti_check_metadata(model) == 0 ? opd_tensor_file_bytes(file, library)
            : NULL;
        /* the file is mapped privately, so it is not changed; but the library's tables must be aligned */
        if (bytes && (uintptr_t)opd_data(bytes) % 16) { bytes = opd_clone(bytes); }
        if (bytes) {
            rc = opdi_aoti_load_library(model, (unsigned char *)opd_data(bytes), (size_t)opd_numel(bytes));
        }
    }
    opd_scope_close(&scope);
    opd_tensor_file_close(file);
    return rc;
}
/* Maps the file of a model into memory, as a private copy, and sets *size to its size.  The caller unmaps it.  Returns
   NULL and sets an error on failure. */
OPDI_INTERNAL unsigned char *opdi_aoti_map(opd_aoti *model, size_t *size) {
    struct stat about;
    void *data = MAP_FAILED;
    const int fd = open(model->path, O_RDONLY);
    if (fd < 0 || fstat(fd, &about)) { (void)opdi_aoti_bad(model, strerror(errno)); }
    else if (!S_ISREG(about.st_mode) || about.st_size == 0) {
        (void)opdi_aoti_bad(model, "this is not a file, or the file is empty");
    } else {
        *size = (size_t)about.st_size;
        data = mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
        if (data == MAP_FAILED) { (void)opdi_aoti_bad(model, strerror(errno)); }
    }
    if (fd >= 0) { (void)close(fd); }
    return data == MAP_FAILED ? NULL : (unsigned char *)data;
}
OPDI_INTERNAL int opdi_aoti_open_file(opd_aoti *model) {
    size_t size;
    unsigned char *const data = opdi_aoti_map(model, &size);
    if (!data) { return -1; }
    const int rc = opdi_aoti_load_library(model, data, size);
    (void)munmap(data, size);
    return rc;
}

