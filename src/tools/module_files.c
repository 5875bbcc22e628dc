#include "tools.h"

//== loading modules from files ========================================================================================

static bool opdi_ends_with(const char *text, const char *end) {
    const size_t length = strlen(text), its = strlen(end);
    return length >= its && strcmp(text + length - its, end) == 0;
}
/* Returns true if two tensors consist of the same elements of a storage in the same order, as tied weights do. */
OPDI_INTERNAL bool opdi_same_elements(const opd_tensor *tensor, const opd_tensor *other) {
    return tensor->storage == other->storage && tensor->data == other->data && tensor->dtype == other->dtype &&
        tensor->ndim == other->ndim && opd_tensor_is_conj(tensor) == opd_tensor_is_conj(other) &&
        opd_tensor_is_neg(tensor) == opd_tensor_is_neg(other) &&
        memcmp(tensor->dims, other->dims, 2 * (size_t)tensor->ndim * sizeof *tensor->dims) == 0;
}
/* A tensor that was already processed, with its number.  opdi_tied_set finds it by a hash of its address, dtype, sizes
   and strides. */
typedef struct opdi_tied_tensor { const opd_tensor *tensor; int64_t number; } opdi_tied_tensor;
typedef struct opdi_tied_set { opdi_pointer_set hashes; opdi_string seen; } opdi_tied_set;
static void opdi_tied_set_free(opdi_tied_set *tied_set) {
    opdi_pointer_set_free(&tied_set->hashes);
    opdi_string_free(&tied_set->seen);
}
/* Returns the number of an earlier tensor with the same elements and kind.  If there is none, adds `tensor` and
   returns `number`; `tensor` must then live as long as `tied_set`.  Returns -1 if memory runs out. */
static int64_t opdi_tied_find(opdi_tied_set *tied_set, const opd_tensor *tensor, int kind, int64_t number) {
    const opdi_tied_tensor fresh = {tensor, number};
    uint64_t hash = ((uint64_t)(uintptr_t)tensor->data * 31 + (uint64_t)tensor->dtype) * 31 + (uint64_t)kind;
    for (int i = 0; i < 2 * tensor->ndim; i++) { hash = (hash ^ (uint64_t)tensor->dims[i]) * UINT64_C(0x100000001b3); }
    for (;; hash++) {
        const int64_t was = tied_set->hashes.count, at = opdi_pointer_set_add(&tied_set->hashes, (uintptr_t)hash);
        if (at < 0 || tied_set->seen.failed) { return -1; }
        if (at == was) {
            opdi_string_add_n(&tied_set->seen, (const char *)(const void *)&fresh, sizeof fresh);
            return tied_set->seen.failed ? -1 : number;
        }
        const opdi_tied_tensor *const other = (const opdi_tied_tensor *)(void *)tied_set->seen.data + at;
        if (opdi_same_elements(tensor, other->tensor)) { return other->number; }
    }
}
/* Returns the name of the tensor for which `name` stands, or NULL.  A safetensors file may have, in its metadata, pairs
   of such a name and the tensor's name.  If the file has a tensor called `name`, returns NULL. */
static const char *opdi_file_stands_for(const opd_tensor_file *file, const char *name) {
    const char *const other = opd_tensor_file_metadata(file, name);
    return other && opd_tensor_file_find(file, name) < 0 && opd_tensor_file_find(file, other) >= 0 ? other : NULL;
}
#if defined(OPD_NO_EXCHANGE)
OPDI_INTERNAL bool opdi_tensor_file_is_data(const opd_tensor_file *file, int64_t i) { return !file && i < 0; }
#endif
/* Adds the tensors of an open file whose names begin with `prefix` to the module.  Returns 0, or -1 and sets an
   error. */
static int opdi_module_take_tensors(opd_module *module, const opd_tensor_file *file, const char *prefix,
                                    opdi_tied_set *tied_set) {
    const size_t strip = strlen(prefix);
    bool told = false;
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) { told |= opd_tensor_file_requires_grad(file, i); }
    for (int64_t i = 0; i < opd_tensor_file_count(file) && opd_ok(); i++) {
        opd_value value;
        if (opdi_tensor_file_is_data(file, i)) { continue; }
        const char *const name = opd_tensor_file_name(file, i);
        if (!name || strncmp(name, prefix, strip) != 0) { continue; }
        OPD_SCOPE {
            if (opd_tensor_file_value_at(file, i, &value) == 0 && value.tag == OPD_TAG_TENSOR) {
                const bool floating = opd_dtype_is_floating((opd_scalar_type)value.u.t->dtype);
                const bool parameter = told ? opd_tensor_file_requires_grad(file, i)
                    : floating && !opdi_ends_with(name, "running_mean") && !opdi_ends_with(name, "running_var");
                const opd_module_kind kind = parameter ? OPD_MODULE_PARAMETER : OPD_MODULE_BUFFER;
                const int64_t at = opdi_tied_find(tied_set, value.u.t, (int)kind, module->count);
                opd_tensor *const tensor = at >= 0 && at < module->count ? module->items[at].tensor : value.u.t;
                if (parameter) { (void)opd_tensor_set_requires_grad(tensor, true); }
                (void)opd_module_add(module, name[strip] ? name + strip : "tensor", tensor, kind);
            }
        }
    }
    return opd_ok() ? 0 : -1;
}
/* Adds the tensors of an open file to the module, and also the other names that stand for some of them.  Returns 0,
   or -1 and sets an error. */
OPDI_INTERNAL int opdi_module_take(opd_module *module, const opd_tensor_file *file, const char *prefix) {
    const size_t strip = strlen(prefix);
    const char *name;
    opdi_tied_set tied_set;
    memset(&tied_set, 0, sizeof tied_set);
    int rc = opdi_module_take_tensors(module, file, prefix, &tied_set);
    opdi_tied_set_free(&tied_set);
    for (int64_t i = 0; rc == 0 && (name = opd_tensor_file_metadata_key(file, i)) != NULL; i++) {
        const char *const other = opdi_file_stands_for(file, name);
        const bool wanted = other && strncmp(name, prefix, strip) == 0 && strncmp(other, prefix, strip) == 0;
        const int64_t at = wanted && name[strip] && other[strip] ? opd_module_find(module, other + strip) : -1;
        if (at < 0) { continue; }
        rc = opd_module_add(module, name + strip, opd_module_at(module, at), opd_module_kind_at(module, at));
    }
    return rc;
}
opd_module *opd_module_open(const char *path, const char *prefix) {
    opd_tensor_file *file = opd_tensor_file_open(path);
    opd_module *module = file ? opd_module_new() : NULL;
    if (module && opdi_module_take(module, file, prefix ? prefix : "") == 0 && module->count == 0) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "opd_module_open: %.500s has no tensors%s%.300s", path,
                       prefix ? " under " : "", prefix ? prefix : "");
    }
    opd_tensor_file_close(file);
    if (opd_ok()) { return module; }
    opd_module_free(module);
    return NULL;
}

/* The state while a module is filled from a file. */
typedef struct opdi_module_fill {
    opd_module *module;
    const opd_tensor_file *file;
    opd_module_load_options options;
    opd_tensor **tensors;        /* [module's count]: the file's tensor for each item; NULL: the item stays unchanged */
    opdi_string said[4];         /* names for the error message, indexed by opd_module_match */
    int64_t counts[4];
} opdi_module_fill;
/* Records the result of matching `name`, and reports it to the program.  `more` is additional text for the error. */
static void opdi_fill_note(opdi_module_fill *fill, opd_module_match match, const char *name, const char *more) {
    opdi_string *const said = &fill->said[match];
    if (fill->options.report) { fill->options.report(match, name, fill->options.user); }
    if (match != OPD_MODULE_COPIED && ++fill->counts[match] <= 8) {
        opdi_string_add(said, said->length ? ", \"" : " \"");
        opdi_string_add(said, name);
        opdi_string_add(said, "\"");
        opdi_string_add(said, more);
    }
}
/* Writes the sizes of `tensor` as "[2, 3]", as far as they fit. */
static void opdi_fill_sizes(const opd_tensor *tensor, char *buf, size_t cap) {
    opdi_text text = opdi_text_of(buf, cap);
    opdi_text_add(&text, "[");
    for (int i = 0; i < tensor->ndim; i++) { opdi_text_add(&text, i ? ", %lld" : "%lld", (long long)tensor->dims[i]); }
    opdi_text_add(&text, "]");
}
/* Returns the index of the file's tensor with this name, or of the tensor that the name stands for.  Returns -1 if
   there is none. */
static int64_t opdi_fill_find(const opdi_module_fill *fill, const char *name) {
    const char *const other = name ? opdi_file_stands_for(fill->file, name) : NULL;
    return name ? opd_tensor_file_find(fill->file, other ? other : name) : -1;
}
/* Sets *name to the name that `item` should have in the file, or to NULL if it cannot be in the file.  `buffer` holds
   the name.  Returns false if memory runs out. */
static bool opdi_fill_name(const opdi_module_fill *fill, const char *item, opdi_string *buffer, const char **name) {
    const char *const add = fill->options.add ? fill->options.add : "";
    *name = NULL;
    if (strncmp(item, add, strlen(add)) != 0) { return true; }
    buffer->length = 0;
    opdi_string_add(buffer, fill->options.strip ? fill->options.strip : "");
    opdi_string_add(buffer, item + strlen(add));
    if (!buffer->failed) { *name = buffer->data; }
    return !buffer->failed;
}
/* Returns true if the tensor of item i has another name in the module, and that name is in the file. */
static bool opdi_fill_elsewhere(const opdi_module_fill *fill, int64_t i) {
    const opd_module *const module = fill->module;
    opdi_string buffer = {NULL, 0, 0, false};
    const char *name;
    bool found = false;
    for (int64_t k = 0; k < module->count && !found; k++) {
        if (k == i || module->items[k].tensor != module->items[i].tensor ||
            module->items[k].kind == OPD_MODULE_CONSTANT) { continue; }
        found = opdi_fill_name(fill, module->items[k].name, &buffer, &name) && opdi_fill_find(fill, name) >= 0;
    }
    opdi_string_free(&buffer);
    return found;
}
/* Finds the file's tensor for item i, which has the name `name` in the file.  Returns 0, or -1 and sets an error. */
static int opdi_fill_match(opdi_module_fill *fill, int64_t i, const char *name) {
    const opdi_module_item *const item = &fill->module->items[i];
    char more[300], first[120], second[120];
    const int64_t at = opdi_fill_find(fill, name);
    if (at < 0) {
        if (opd_ok()) {
            opdi_fill_note(fill, opdi_fill_elsewhere(fill, i) ? OPD_MODULE_COPIED : OPD_MODULE_MISSING, item->name, "");
        }
        return 0;
    }
    opd_tensor *const tensor = opd_tensor_file_at(fill->file, at);
    if (!tensor) { return -1; }
    if (opdi_has_sizes(tensor, item->tensor->dims, item->tensor->ndim)) {
        fill->tensors[i] = tensor;
        opdi_fill_note(fill, OPD_MODULE_COPIED, item->name, "");
        return 0;
    }
    opdi_fill_sizes(tensor, first, sizeof first);
    opdi_fill_sizes(item->tensor, second, sizeof second);
    (void)snprintf(more, sizeof more, " (%s in the file, %s in the module)", first, second);
    opdi_fill_note(fill, OPD_MODULE_MIS_SIZED, item->name, more);
    return 0;
}
/* Compares the names and sizes in the file with those of the module.  Returns 0, or -1 and sets an error. */
static int opdi_fill_compare(opdi_module_fill *fill) {
    const opd_module *const module = fill->module;
    const char *const strip = fill->options.strip ? fill->options.strip : "";
    const char *const add = fill->options.add ? fill->options.add : "";
    opdi_string buffer = {NULL, 0, 0, false};
    const char *name;
    for (int64_t i = 0; i < module->count && opd_ok(); i++) {
        if (module->items[i].kind == OPD_MODULE_CONSTANT) { continue; }
        if (opdi_fill_name(fill, module->items[i].name, &buffer, &name)) { (void)opdi_fill_match(fill, i, name); }
    }
    for (int64_t i = 0; i < opd_tensor_file_count(fill->file) && opd_ok(); i++) {
        name = opd_tensor_file_name(fill->file, i);
        if (!name || strncmp(name, strip, strlen(strip)) != 0) { continue; }
        buffer.length = 0;
        opdi_string_add(&buffer, add);
        opdi_string_add(&buffer, name + strlen(strip));
        if (buffer.failed) { break; }
        const int64_t at = opd_module_find(module, buffer.data);
        if (at < 0 || module->items[at].kind == OPD_MODULE_CONSTANT) {
            opdi_fill_note(fill, OPD_MODULE_UNEXPECTED, buffer.data, "");
        }
    }
    opdi_string_free(&buffer);
    return opd_ok() ? 0 : -1;
}
/* Returns 0 if all names and sizes match.  Otherwise returns -1 and sets an error that lists the names that do not
   match. */
static int opdi_fill_check_names(const opdi_module_fill *fill) {
    static const char *const words[] = {"", "missing in the file:", "unexpected there:", "of other sizes:"};
    const bool allowed[] = {true, fill->options.lenient, fill->options.lenient, fill->options.skip_sizes};
    opdi_string text = {NULL, 0, 0, false};
    char more[60];
    for (int match = OPD_MODULE_MISSING; match <= OPD_MODULE_MIS_SIZED; match++) {
        if (allowed[match] || !fill->counts[match]) { continue; }
        if (text.length) { opdi_string_add(&text, "; "); }
        opdi_string_add(&text, words[match]);
        opdi_string_add(&text, fill->said[match].data ? fill->said[match].data : "");
        if (fill->counts[match] > 8) {
            (void)snprintf(more, sizeof more, " and %lld more", (long long)(fill->counts[match] - 8));
            opdi_string_add(&text, more);
        }
    }
    const int rc = !opd_ok() ? -1 : text.length ? opd_fail(OPD_ERROR_NOT_FOUND, "opd_module_load: %s", text.data) : 0;
    opdi_string_free(&text);
    return rc;
}
/* Fills *fill: finds the tensor of the same name in the file for each tensor of the module, and checks names and sizes.
   The tensors of *fill belong to the innermost scope.  Returns 0, or -1 and sets an error.  The caller calls
   opdi_fill_free in either case. */
static int opdi_fill_begin(opdi_module_fill *fill, opd_module *module, const opd_tensor_file *file,
                           const opd_module_load_options *options) {
    memset(fill, 0, sizeof *fill);
    fill->module = module;
    fill->file = file;
    if (options) { fill->options = *options; }
    if (opdi_null_module(module, "opd_module_load")) { return -1; }
    if (!file) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_module_load: the file is NULL"); }
    fill->tensors = (opd_tensor **)opdi_scope_alloc(((size_t)module->count + 1) * sizeof *fill->tensors);
    if (!fill->tensors) { return -1; }
    memset(fill->tensors, 0, ((size_t)module->count + 1) * sizeof *fill->tensors);
    return opdi_fill_compare(fill) || opdi_fill_check_names(fill) ? -1 : 0;
}
static void opdi_fill_free(opdi_module_fill *fill) {
    for (int i = 0; i < 4; i++) { opdi_string_free(&fill->said[i]); }
}
/* Copies the matching tensors.  Returns 0, or -1 and sets an error. */
static int opdi_fill_copy(const opdi_module_fill *fill) {
    const bool was = opd_grad_mode_set(false);
    for (int64_t i = 0; i < fill->module->count && opd_ok(); i++) {
        if (fill->tensors[i]) { (void)opd_copy_(fill->module->items[i].tensor, fill->tensors[i]); }
    }
    (void)opd_grad_mode_set(was);
    return opd_ok() ? 0 : -1;
}
int opd_module_load(opd_module *module, const opd_tensor_file *file, const opd_module_load_options *options) {
    opdi_module_fill fill;
    int rc = -1;
    if (!opd_ok()) { return -1; }
    OPD_SCOPE {
        rc = opdi_fill_begin(&fill, module, file, options);
        if (rc == 0) { rc = opdi_fill_copy(&fill); }
        opdi_fill_free(&fill);
    }
    return rc;
}

//== saving modules, with or without the state of training =============================================================

/* The names and values of a file that will be written.  text: the names, each with its final 0.  places: size_t[], the
   positions of the names in `text`.  values: opd_value[].

   The module's entries come first.  same: int64_t[], for each of them, the number of the first entry with the same
   tensor. */
typedef struct opdi_saving {
    opdi_string text, places, values;
    opdi_string same;
    int64_t count;
} opdi_saving;
/* Adds a value under a name of any length, made from `format`, which may contain %s and %d. */
OPD_PRINTF_LIKE(3, 4) static void opdi_saving_add(opdi_saving *entries, opd_value value, const char *format, ...) {
    const size_t place = entries->text.length;
    char number[64];
    va_list ap;
    va_start(ap, format);
    for (const char *at = format; *at; at++) {
        if (*at != '%') {
            opdi_string_add_n(&entries->text, at, 1);
        } else if (*++at == 's') {
            opdi_string_add(&entries->text, va_arg(ap, const char *));
        } else {                                  /* the conversion is %d */
            (void)snprintf(number, sizeof number, "%d", va_arg(ap, int));
            opdi_string_add(&entries->text, number);
        }
    }
    va_end(ap);
    opdi_string_add_n(&entries->text, "", 1);
    opdi_string_add_n(&entries->places, (const char *)(const void *)&place, sizeof place);
    opdi_string_add_n(&entries->values, (const char *)(const void *)&value, sizeof value);
    entries->count++;
}
static void opdi_saving_free(opdi_saving *entries) {
    opdi_string_free(&entries->text);
    opdi_string_free(&entries->places);
    opdi_string_free(&entries->values);
    opdi_string_free(&entries->same);
}
/* Adds the tensors of a module, before all other entries.  Does nothing if module is NULL. */
static void opdi_saving_module(opdi_saving *entries, const opd_module *module, const char *prefix) {
    opdi_tied_set tied_set;
    memset(&tied_set, 0, sizeof tied_set);
    for (int64_t i = 0; module && i < module->count; i++) {
        const opdi_module_item *const item = &module->items[i];
        if (item->kind == OPD_MODULE_CONSTANT) { continue; }
        const int64_t same = opdi_tied_find(&tied_set, item->tensor, (int)item->kind, entries->count);
        opdi_string_add_n(&entries->same, (const char *)(const void *)&same, sizeof same);
        opdi_saving_add(entries, opd_value_tensor(opd_detach(item->tensor)), "%s%s", prefix, item->name);
    }
    opdi_tied_set_free(&tied_set);
}
/* Adds the options of a group in the format and order of PyTorch's param_groups.  `first` is the number of the
   group's first parameter.  Options that are not supported here get PyTorch's default. */
static void opdi_saving_group(opdi_saving *entries, const opd_optimizer *optimizer, int group, int first) {
    static const char *const sgd[] = {"lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize"};
    static const char *const adam[] = {"lr", "eps", "weight_decay", "amsgrad", "maximize"};
    const bool is_sgd = strcmp(opd_optimizer_name(optimizer), "SGD") == 0;
    const char *const head = "optimizer/param_groups/[%d]/%s";
    for (int i = 0; i < (is_sgd ? 6 : 5); i++) {
        const char *const name = is_sgd ? sgd[i] : adam[i];
        const double value = opd_optimizer_option(optimizer, group, name);
        const bool flag = strcmp(name, "nesterov") == 0 || strcmp(name, "maximize") == 0 ||
            strcmp(name, "amsgrad") == 0;
        opdi_saving_add(entries, flag ? opd_value_bool(value > 0) : opd_value_double(value), head, group, name);
        for (int k = 0; k < 2 && i == 0 && !is_sgd; k++) {
            opdi_saving_add(entries, opd_value_double(opd_optimizer_option(optimizer, group, k ? "beta2" : "beta1")),
                           "optimizer/param_groups/[%d]/betas/(%d)", group, k);
        }
    }
    opdi_saving_add(entries, opd_value_none(), head, group, "foreach");
    if (!is_sgd) { opdi_saving_add(entries, opd_value_bool(false), head, group, "capturable"); }
    opdi_saving_add(entries, opd_value_bool(false), head, group, "differentiable");
    opdi_saving_add(entries, opd_value_none(), head, group, "fused");
    if (!is_sgd) {
        opdi_saving_add(entries, opd_value_bool(strcmp(opd_optimizer_name(optimizer), "AdamW") == 0), head, group,
                       "decoupled_weight_decay");
    }
    const int size = opd_optimizer_group_size(optimizer, group);
    for (int i = 0; i < size; i++) {
        opdi_saving_add(entries, opd_value_int(first + i), "optimizer/param_groups/[%d]/params/[%d]", group, i);
    }
    if (!size) { opdi_saving_add(entries, opd_value_none(), "optimizer/param_groups/[%d]/params/[]", group); }
}
static const char *const opdi_saved_states[2][5] = {{"momentum_buffer", NULL, NULL, NULL, NULL},
                                                    {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", NULL}};
/* Returns the current state `name` of parameter i of a group, or NULL if it has none. */
static opd_tensor *opdi_state_now(const opd_optimizer *optimizer, int group, int i, const char *name) {
    if (strcmp(name, "momentum_buffer") == 0 && !(opd_optimizer_option(optimizer, group, "momentum") > 0)) {
        return NULL;
    }
    if (strcmp(name, "max_exp_avg_sq") == 0 && !(opd_optimizer_option(optimizer, group, "amsgrad") > 0)) {
        return NULL;
    }
    return opd_optimizer_state(optimizer, i, name);
}
static void opdi_saving_optimizer(opdi_saving *entries, const opd_optimizer *optimizer) {
    const char *const *states = opdi_saved_states[strcmp(opd_optimizer_name(optimizer), "SGD") != 0];
    const int64_t before = entries->count;
    for (int group = 0, i = 0; group < opd_optimizer_groups(optimizer); group++) {
        for (const int end = i + opd_optimizer_group_size(optimizer, group); i < end; i++) {
            for (int k = 0; states[k]; k++) {
                opd_tensor *const state = opdi_state_now(optimizer, group, i, states[k]);
                if (!state) { continue; }
                opdi_saving_add(entries, opd_value_tensor(state), "optimizer/state/{%d}/%s", i, states[k]);
            }
        }
    }
    if (entries->count == before) { opdi_saving_add(entries, opd_value_none(), "optimizer/state/{}"); }
    for (int group = 0, i = 0; group < opd_optimizer_groups(optimizer); group++) {
        opdi_saving_group(entries, optimizer, group, i);
        i += opd_optimizer_group_size(optimizer, group);
    }
}
/* Removes the brackets from a path, for a file format without lists and dicts. */
static void opdi_path_plain(char *path) {
    char *to = path;
    for (char *at = path, *end; *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, "/");
        const char slash = *end;
        const char *const kind = end - at > 1 ? strchr("[](){}", *at) : NULL;
        const size_t off = kind && end[-1] == kind[1] ? 1 : 0, length = (size_t)(end - at) - 2 * off;
        memmove(to, at + off, length);
        to += length;
        *to = slash;
        to += slash ? 1 : 0;
    }
    *to = 0;
}
/* Writes entries into a safetensors file, with numbers as tensors and texts as metadata.  Returns 0, or -1 and sets an
   error. */
static int opdi_saving_flat(const opdi_saving *entries, const char **names, const opd_value *values,
                             const char *path) {
    opd_tensor **const tensors = opdi_scope_tensors((int)entries->count);
    const char **const texts = (const char **)opdi_scope_alloc((2 * (size_t)entries->count + 1) * sizeof *texts);
    const opd_ints none = opd_ints_of(NULL, 0);
    const int64_t *const same = (const int64_t *)(void *)entries->same.data;
    const int64_t nsame = (int64_t)(entries->same.length / sizeof *same);
    int64_t count = 0, ntexts = 0;
    if (!tensors || !texts) { return -1; }
    for (int64_t i = 0; i < entries->count && opd_ok(); i++) {
        const opd_value *const value = &values[i];
        opdi_path_plain(entries->text.data + ((const size_t *)(void *)entries->places.data)[i]);
        tensors[count] = NULL;
        if (i < nsame && same[i] < i) {
            texts[ntexts++] = names[i];
            texts[ntexts++] = entries->text.data + ((const size_t *)(void *)entries->places.data)[same[i]];
            continue;
        }
        switch ((opd_tag)value->tag) {
        case OPD_TAG_TENSOR: tensors[count] = value->u.t; break;
        case OPD_TAG_INT: tensors[count] = opd_full(none, *value, OPD_INT64); break;
        case OPD_TAG_BOOL: tensors[count] = opd_full(none, *value, OPD_BOOL); break;
        case OPD_TAG_FLOAT: tensors[count] = opd_full(none, *value, OPD_FLOAT64); break;
        case OPD_TAG_STR:
            texts[ntexts++] = names[i];
            texts[ntexts++] = value->u.s;
            break;
        case OPD_TAG_NONE: break;
        default: return opd_fail(OPD_ERROR_ARGUMENT, "opd_training_save: '%.300s' is not a tensor, a number or a "
                                 "string, so it cannot be saved", names[i]);
        }
        if (tensors[count]) { names[count++] = names[i]; }
    }
    texts[ntexts] = NULL;
    return opd_ok() ? opd_safetensors_save(path, names, opd_tensors_of(tensors, (int)count), ntexts ? texts : NULL)
        : -1;
}
/* Writes the entries into a file.  The extension of `path` selects the format.  Returns 0, or -1 and sets an error. */
static int opdi_saving_save(opdi_saving *entries, const char *path) {
    const size_t *const places = (const size_t *)(void *)entries->places.data;
    const opd_value *const values = (const opd_value *)(void *)entries->values.data;
    if (!opd_ok() || entries->text.failed || entries->places.failed || entries->values.failed || entries->same.failed) {
        return -1;
    }
    const char **const names = (const char **)opdi_scope_alloc(((size_t)entries->count + 1) * sizeof *names);
    for (int64_t i = 0; names && i < entries->count; i++) { names[i] = entries->text.data + places[i]; }
    return !names ? -1 : path && opdi_ends_with(path, ".safetensors") ? opdi_saving_flat(entries, names, values, path)
        : opd_checkpoint_file_save(path, names, values, entries->count);
}
/* Writes parameters and buffers into a GGUF file.  Returns 0, or -1 and sets an error. */
static int opdi_module_save_gguf(const opd_module *module, const char *path) {
    opd_tensor **const tensors = opdi_scope_tensors((int)module->count + 1);
    const char **const names = (const char **)opdi_scope_alloc(((size_t)module->count + 1) * sizeof *names);
    int count = 0;
    if (!tensors || !names) { return -1; }
    for (int64_t i = 0; i < module->count; i++) {
        const opdi_module_item *const item = &module->items[i];
        int k = 0;
        while (k < count && tensors[k] != item->tensor) { k++; }
        if (k < count || item->kind == OPD_MODULE_CONSTANT) { continue; }
        names[count] = item->name;
        tensors[count++] = item->tensor;
    }
    return opd_gguf_save(path, names, opd_tensors_of(tensors, count), NULL, NULL, 0);
}
int opd_module_save(const opd_module *module, const char *path) {
    opdi_saving entries;
    int rc = -1;
    if (!opd_ok() || opdi_null_module(module, "opd_module_save")) { return -1; }
    if (path && opdi_ends_with(path, ".gguf")) {
        OPD_SCOPE { rc = opdi_module_save_gguf(module, path); }
        return rc;
    }
    memset(&entries, 0, sizeof entries);
    OPD_SCOPE {
        opdi_saving_module(&entries, module, "");
        rc = opdi_saving_save(&entries, path);
    }
    opdi_saving_free(&entries);
    return rc;
}
int opd_training_save(const char *path, const opd_module *module, const opd_optimizer *optimizer,
                      const char *const *names, const opd_value *values, int64_t count) {
    opdi_saving entries;
    int rc = -1;
    if (!opd_ok()) { return -1; }
    if (count < 0 || (count && (!names || !values))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_training_save: the pointer to the names or to the values is NULL");
    }
    memset(&entries, 0, sizeof entries);
    OPD_SCOPE {
        opdi_saving_module(&entries, module, "model/");
        if (optimizer) { opdi_saving_optimizer(&entries, optimizer); }
        for (int64_t i = 0; i < count; i++) { opdi_saving_add(&entries, values[i], "%s", names[i] ? names[i] : ""); }
        rc = opdi_saving_save(&entries, path);
    }
    opdi_saving_free(&entries);
    return rc;
}

//== loading optimizers from files =====================================================================================

/* A saved optimizer: a file, and the prefix of the optimizer's entries. */
typedef struct opdi_restore {
    const opd_tensor_file *file;
    const char *prefix;
    opd_optimizer *optimizer;
    opdi_string name;
} opdi_restore;
/* Returns the name of an entry, or NULL if memory runs out.  The name is the prefix, followed by
   "param_groups/GROUP/WORD/I" if `kind` is 'g' (without "/I" if i < 0), or by "state/GROUP/WORD" if `kind` is 's'. */
static const char *opdi_restore_name(opdi_restore *saved, char kind, int64_t group, const char *word, int i) {
    char text[160];
    saved->name.length = 0;
    opdi_string_add(&saved->name, saved->prefix);
    (void)snprintf(text, sizeof text, i < 0 ? "%s/%lld/%s" : "%s/%lld/%s/%d", kind == 'g' ? "param_groups" : "state",
                   (long long)group, word, i);
    opdi_string_add(&saved->name, text);
    return saved->name.failed ? NULL : saved->name.data;
}
/* Reads the number in entry `name`, which may be a number or a tensor of one element.  Returns 1, or 0 if the entry
   does not exist, or -1 and sets an error. */
static int opdi_restore_number(opdi_restore *saved, const char *name, double *number) {
    opd_value value;
    if (!name) { return -1; }
    if (opd_tensor_file_find(saved->file, name) < 0) { return 0; }
    if (opd_tensor_file_value(saved->file, name, &value)) { return -1; }
    return value.tag == OPD_TAG_NONE ? 0 : opd_tensor_file_number(saved->file, name, number) ? -1 : 1;
}
#define OPDI_SAVED_OPTIONS 7
static const char *const opdi_restore_options[2][OPDI_SAVED_OPTIONS] = {
    {"lr", "momentum", "dampening", "weight_decay", "maximize", "nesterov", NULL},
    {"lr", "beta1", "beta2", "eps", "weight_decay", "maximize", "amsgrad"}};
/* Sets the options of a group to `values`.  nesterov is only valid with certain other options, so it is cleared
   first and set last.  Returns 0, or -1 and sets an error. */
static int opdi_options_set(opd_optimizer *optimizer, int group, const double *values) {
    const bool sgd = strcmp(opd_optimizer_name(optimizer), "SGD") == 0;
    if (sgd && opd_optimizer_set_option(optimizer, group, "nesterov", 0)) { return -1; }
    for (int i = 0; i < OPDI_SAVED_OPTIONS && opdi_restore_options[!sgd][i]; i++) {
        if (opd_optimizer_set_option(optimizer, group, opdi_restore_options[!sgd][i], values[i])) { return -1; }
    }
    return 0;
}
/* Reads the options of a group into `values`.  Options that are not in the file keep their present values.  Returns 0,
   or -1 and sets an error. */
static int opdi_restore_options_read(opdi_restore *saved, int group, double *values) {
    const bool sgd = strcmp(opd_optimizer_name(saved->optimizer), "SGD") == 0;
    const bool decoupled = strcmp(opd_optimizer_name(saved->optimizer), "AdamW") == 0;
    double flag = decoupled;
    for (int i = 0; i < OPDI_SAVED_OPTIONS && opdi_restore_options[!sgd][i]; i++) {
        const char *const word = opdi_restore_options[!sgd][i];
        const int beta = !sgd && (i == 1 || i == 2) ? i - 1 : -1;
        values[i] = opd_optimizer_option(saved->optimizer, group, word);
        const char *const name = opdi_restore_name(saved, 'g', group, beta < 0 ? word : "betas", beta);
        const int found = opdi_restore_number(saved, name, &values[i]);
        if (found < 0) { return -1; }
        if (!found && i == 0 && group) {
            return opd_fail(OPD_ERROR_SHAPE, "opd_optimizer_load: the file has a different number of "
                            "parameter groups");
        }
        if (!found && i < 2) {                     /* lr, and then momentum (SGD) or betas are required */
            return opd_fail(OPD_ERROR_NOT_FOUND, "opd_optimizer_load: the file has no '%.300s', so it does not contain "
                            "the state of %s", saved->name.data, opd_optimizer_name(saved->optimizer));
        }
    }
    const char *const name = opdi_restore_name(saved, 'g', group, "decoupled_weight_decay", -1);
    if (!sgd && opdi_restore_number(saved, name, &flag) < 0) { return -1; }
    return (flag > 0) == decoupled ? 0
        : opd_fail(OPD_ERROR_ARGUMENT, "opd_optimizer_load: the file contains the state of %s, but the optimizer is %s",
                   decoupled ? "Adam" : "AdamW", opd_optimizer_name(saved->optimizer));
}
/* Sets *number to the number that parameter i of a group has in the file.  Returns 0, or -1 and sets an error. */
static int opdi_restore_param(opdi_restore *saved, int group, int i, int64_t *number) {
    double value = 0;
    const int found = opdi_restore_number(saved, opdi_restore_name(saved, 'g', group, "params", i), &value);
    *number = (int64_t)value;
    if (found == 0) {
        return opd_fail(OPD_ERROR_SHAPE, "opd_optimizer_load: the file contains a parameter group that "
                        "doesn't match the size of optimizer's group (%d)", group);
    }
    return found < 0 ? -1 : 0;
}
/* Checks state `word` of parameter i, which has the number `number` in the file, or loads the state if `put` is true.
   Returns 0, or -1 and sets an error. */
static int opdi_restore_state(opdi_restore *saved, int i, int64_t number, const char *word, bool put) {
    const char *const name = opdi_restore_name(saved, 's', number, word, -1);
    const opd_tensor *const param = opd_optimizer_param(saved->optimizer, i);
    double step = 0;
    if (!name) { return -1; }
    if (strcmp(word, "step") == 0) {
        const int found = opdi_restore_number(saved, name, &step);
        if (found <= 0) {
            return found < 0 ? -1 : opd_fail(OPD_ERROR_NOT_FOUND, "opd_optimizer_load: the file has no '%.300s'", name);
        }
        return put ? opd_optimizer_set_state(saved->optimizer, i, word,
                                             opd_full(opd_ints_of(NULL, 0), opd_value_double(step), OPD_FLOAT32)) : 0;
    }
    const opd_tensor *const tensor = opd_tensor_file_get(saved->file, name);
    if (!tensor) { return -1; }
    if (!opdi_has_sizes(tensor, param->dims, param->ndim)) {
        return opd_fail(OPD_ERROR_SHAPE, "opd_optimizer_load: '%.300s' in the file has other sizes than parameter %d",
                        name, i);
    }
    return put ? opd_optimizer_set_state(saved->optimizer, i, word, tensor) : 0;
}
/* Checks all states of parameter i, which has the number `number` in the file.  If `put` is true, loads them
   instead, and removes states that are not in the file.  Returns 0, or -1 and sets an error. */
static int opdi_restore_states_of(opdi_restore *saved, int i, int64_t number, const double *options, bool put) {
    const bool sgd = strcmp(opd_optimizer_name(saved->optimizer), "SGD") == 0;
    const char *const *words = opdi_saved_states[!sgd];
    const char *const first = opdi_restore_name(saved, 's', number, sgd ? "momentum_buffer" : "exp_avg", -1);
    opd_value value = opd_value_none();
    if (!first || (put && opd_optimizer_forget(saved->optimizer, i))) { return -1; }
    if (opd_tensor_file_find(saved->file, first) >= 0 && opd_tensor_file_value(saved->file, first, &value)) {
        return -1;
    }
    if (value.tag != OPD_TAG_TENSOR || (sgd && !(options[1] > 0))) { return 0; }
    for (int k = 0; words[k]; k++) {
        if (k == 3 && !(options[6] > 0)) { continue; }
        if (opdi_restore_state(saved, i, number, words[k], put)) { return -1; }
    }
    return 0;
}
/* Checks all parameters or, if `put` is true, loads them.  options[groups][OPDI_SAVED_OPTIONS] are the options read
   before.  Returns 0, or -1 and sets an error. */
static int opdi_restore_pass(opdi_restore *saved, const double *options, bool put) {
    int rc = 0;
    for (int group = 0, i = 0; group < opd_optimizer_groups(saved->optimizer) && rc == 0; group++) {
        const int size = opd_optimizer_group_size(saved->optimizer, group);
        const double *const its = options + group * OPDI_SAVED_OPTIONS;
        double more;
        for (int k = 0; k < size && rc == 0; k++, i++) {
            OPD_SCOPE {
                int64_t number;
                rc = opdi_restore_param(saved, group, k, &number) ||
                    opdi_restore_states_of(saved, i, number, its, put) ? -1 : 0;
            }
        }
        if (rc == 0 && opdi_restore_number(saved, opdi_restore_name(saved, 'g', group, "params", size), &more)) {
            rc = opd_ok() ? opd_fail(OPD_ERROR_SHAPE, "opd_optimizer_load: the file contains a parameter "
                                     "group that doesn't match the size of optimizer's group (%d)", group) : -1;
        }
    }
    return rc;
}
/* Checks that `values` are valid options of a group.  Returns 0, or -1 and sets an error. */
static int opdi_restore_try(const opdi_restore *saved, const double *values) {
    const char *const name = opd_optimizer_name(saved->optimizer);
    int rc = -1;
    OPD_SCOPE {
        opd_tensor *one = opd_zeros(opd_ints_of(NULL, 0), OPD_FLOAT32);
        opd_optimizer *scratch = strcmp(name, "SGD") == 0 ? opd_sgd_new(&one, 1, NULL) : strcmp(name, "Adam") == 0
            ? opd_adam_new(&one, 1, NULL) : opd_adamw_new(&one, 1, NULL);
        rc = scratch ? opdi_options_set(scratch, 0, values) : -1;
        opd_optimizer_free(scratch);
    }
    return rc;
}
/* Reads the options of all groups into options[groups][OPDI_SAVED_OPTIONS], and checks all entries.  Returns 0, or
   -1 and sets an error. */
static int opdi_restore_check(opdi_restore *saved, double *options) {
    const int groups = opd_optimizer_groups(saved->optimizer);
    double more;
    for (int group = 0; group < groups; group++) {
        double *const its = options + group * OPDI_SAVED_OPTIONS;
        if (opdi_restore_options_read(saved, group, its) || opdi_restore_try(saved, its)) { return -1; }
    }
    if (opdi_restore_number(saved, opdi_restore_name(saved, 'g', groups, "lr", -1), &more)) {
        return !opd_ok() ? -1 : opd_fail(OPD_ERROR_SHAPE, "opd_optimizer_load: the file has a different "
                                         "number of parameter groups");
    }
    return opdi_restore_pass(saved, options, false);
}
/* Loads the entries after they were checked.  Returns 0, or -1 and sets an error. */
static int opdi_restore_put(opdi_restore *saved, const double *options) {
    for (int group = 0; group < opd_optimizer_groups(saved->optimizer); group++) {
        if (opdi_options_set(saved->optimizer, group, options + group * OPDI_SAVED_OPTIONS)) { return -1; }
    }
    return opdi_restore_pass(saved, options, true);
}
/* Checks module and optimizer against the file, then loads both.  Either may be NULL.  The caller has opened a
   scope.  Returns 0, or -1 and sets an error. */
static int opdi_training_load(const opd_tensor_file *file, opd_module *module, opd_optimizer *optimizer,
                              const char *prefix) {
    const int groups = opd_optimizer_groups(optimizer);
    double *options = (double *)opdi_scope_alloc((size_t)(groups + 1) * OPDI_SAVED_OPTIONS * sizeof *options);
    opd_module_load_options load;
    opdi_module_fill fill;
    opdi_restore saved;
    memset(&load, 0, sizeof load);
    memset(&fill, 0, sizeof fill);
    memset(&saved, 0, sizeof saved);
    load.strip = "model/";
    saved.file = file;
    saved.prefix = prefix;
    saved.optimizer = optimizer;
    const int rc = !options || (module && opdi_fill_begin(&fill, module, file, &load)) ||
        (optimizer && (opdi_restore_check(&saved, options) || opdi_restore_put(&saved, options))) ||
        (module && opdi_fill_copy(&fill)) ? -1 : 0;
    opdi_fill_free(&fill);
    opdi_string_free(&saved.name);
    return rc;
}
int opd_training_load(const opd_tensor_file *file, opd_module *module, opd_optimizer *optimizer) {
    int rc = -1;
    if (!opd_ok()) { return -1; }
    if (!file) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_training_load: the file is NULL"); }
    OPD_SCOPE { rc = opdi_training_load(file, module, optimizer, "optimizer/"); }
    return rc;
}
int opd_optimizer_load(opd_optimizer *optimizer, const opd_tensor_file *file, const char *prefix) {
    int rc = -1;
    if (!opd_ok()) { return -1; }
    if (!optimizer || !file) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_optimizer_load: the %s is NULL", file ? "optimizer" : "file");
    }
    OPD_SCOPE { rc = opdi_training_load(file, NULL, optimizer, prefix ? prefix : ""); }
    return rc;
}
