#include "aoti.h"

//== extensions: kernels ===============================================================================================

OPDI_INTERNAL void opdi_ext_hold(opdi_ext *ext) {
    (void)pthread_mutex_lock(&opdi_ext_lock);
    ext->holds++;
    (void)pthread_mutex_unlock(&opdi_ext_lock);
}
static void opdi_ext_free(opdi_ext *ext) {
    opdi_aoti_image_free(&ext->model.image);      /* the extension's destructors run here */
    opdi_aoti_image_free(&ext->model.stubs);
    while (ext->libraries) {
        opdi_ext_library *library = ext->libraries;
        ext->libraries = library->next;
        while (library->entries) {
            opdi_ext_entry *entry = library->entries;
            library->entries = entry->next;
            free(entry->signature);
            free(entry->text);
            free(entry);
        }
        free(library->ns);
        free(library->key);
        free(library->file);
        free(library);
    }
    for (int64_t i = 0; i < ext->model.nrows; i++) { free(ext->model.rows[i]); }
    free(ext->model.rows);
    free(ext->model.path);
    free(ext);
}
OPDI_INTERNAL void opdi_ext_release(opdi_ext *ext) {
    (void)pthread_mutex_lock(&opdi_ext_lock);
    const bool last = --ext->holds == 0;
    (void)pthread_mutex_unlock(&opdi_ext_lock);
    if (last) { opdi_ext_free(ext); }
}
OPDI_INTERNAL void opdi_ext_kernel_release(void *user) { opdi_ext_release(((opdi_ext_entry *)user)->ext); }

/* If the C++ library says that a type is derived from std::exception, moves *object to the std::exception part of the
   object and returns true.  Otherwise returns false. */
static bool opdi_ext_is_exception(void *type, void **object) {
    typedef bool (*catch_fn)(const void *self, const void *thrown, void **object, unsigned outer);
    catch_fn catches = NULL;
    if (!type || !opdi_ext_cxx.base) { return false; }
    void *const *table = *(void *const **)opdi_ext_cxx.base;
    memcpy(&catches, &table[4], sizeof catches);
    return catches(opdi_ext_cxx.base, type, object, 1);
}
/* Sets an error with the message of an exception, unless an error is pending, and frees the exception. */
static void opdi_ext_caught(void *exception) {
    typedef const char *(*what_fn)(const void *self);
    what_fn what = NULL;
    uint64_t kind;
    memcpy(&kind, exception, sizeof kind);
    void *object = (char *)exception + 32;                    /* after the unwinder's header of 32 bytes */
    (void)opdi_ext_cxx.caught(exception);
    const bool plain = (kind & 255) == 0;                     /* not a reference to an exception stored elsewhere */
    if (plain && opdi_ext_is_exception(opdi_ext_cxx.type(), &object)) {
        memcpy(&what, *(void *const **)object + 2, sizeof what);
    }
    const char *text = what ? what(object) : "it threw an exception that is not a std::exception";
    size_t length = strlen(text);
    while (length && (text[length - 1] == '\n' || text[length - 1] == ' ')) { length--; }
    if (opd_ok()) { (void)opd_fail(OPD_ERROR_KERNEL, "%.*s", (int)(length < 1500 ? length : 1500), text); }
    opdi_ext_cxx.done();
}
/* Frees the objects that the words on a stack own. */
static void opdi_ext_drop(const opdi_aoti_param *params, int count, const uint64_t *stack) {
    opdi_ext_taken *taken = NULL;
    for (int i = 0; i < count; i++) { (void)opdi_ext_from_word(&opdi_ext_ours, &params[i], stack[i], &taken); }
    opdi_ext_taken_release(taken);
}
/* Sets the results of `call` to the values that an extension's kernel has left on its stack.  Returns 0, or -1 and sets
   an error. */
static int opdi_ext_return(opd_call *call, const opdi_ext_signature *signature, const uint64_t *stack) {
    opdi_ext_taken *taken = NULL;
    for (int i = 0; i < signature->nrets; i++) {
        const opd_value value = opdi_ext_from_word(&opdi_ext_ours, &signature->rets[i], stack[i], &taken);
        if (opd_ok() && value.tag == OPD_TAG_NONE && signature->rets[i].kind == 'T' && !signature->rets[i].optional) {
            (void)opd_fail(OPD_ERROR_KERNEL, "the kernel returns an undefined tensor");
        }
        if (opd_ok()) { (void)opd_return_value(call, value); }
    }
    opdi_ext_taken_release(taken);
    return opd_ok() ? 0 : -1;
}
/* The kernel that is registered for each kernel of an extension: puts the arguments on a stack and calls the
   extension's function. */
OPDI_INTERNAL int opdi_ext_kernel(opd_call *call) {
    opdi_ext_entry *entry = (opdi_ext_entry *)opd_call_user(call);
    opdi_ext_signature *signature = entry->signature, *own = NULL;
    uint64_t words[16], *stack = words;
    if (!signature) {                             /* the schema was registered later, by another library */
        signature = own = (opdi_ext_signature *)malloc(sizeof *own);
        if (!own) { return opdi_aoti_no_memory(); }
        if (!opdi_ext_signature_of(opd_call_operator(call), own)) {
            free(own);
            return -1;
        }
    }
    const int nargs = signature->nargs, nrets = signature->nrets, count = nargs > nrets ? nargs : nrets;
    memset(words, 0, sizeof words);
    if (count > 16) { stack = (uint64_t *)calloc((size_t)count, sizeof *stack); }
    if (!stack) { (void)opdi_aoti_no_memory(); }
    for (int i = 0; i < nargs && opd_ok(); i++) {
        if (signature->args[i].kind == 'S' || (signature->args[i].kind == 'G' && !opd_arg_is_none(call, i))) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "PyTorch's stable interface cannot pass a %s",
                           signature->args[i].kind == 'S' ? "Scalar" : "Generator");
        }
    }
    if (opd_ok()) {
        opdi_ext *outer = opdi_ext_running;
        for (int i = 0; i < nargs; i++) {
            stack[i] = opdi_ext_to_word(&opdi_ext_ours, &signature->args[i], &opd_call_args(call)[i]);
        }
        opdi_ext_running = entry->ext;
        const bool called = opd_ok();
        void *exception = called ? entry->ext->call(entry->fn, stack, (uint64_t)nargs, (uint64_t)nrets) : NULL;
        opdi_ext_running = outer;
        if (exception) { opdi_ext_caught(exception); }
        else if (called && opd_ok()) { (void)opdi_ext_return(call, signature, stack); }
        else if (!called) { opdi_ext_drop(signature->args, nargs, stack); }
    }
    if (stack != words) { free(stack); }
    free(own);
    return opd_ok() ? 0 : -1;
}

//== extensions: functions that they call ==============================================================================

static char *opdi_ext_copy(const char *text) {
    char *copy = text ? (char *)malloc(strlen(text) + 1) : NULL;
    if (text && !copy) { (void)opdi_aoti_no_memory(); }
    return copy ? strcpy(copy, text) : NULL;
}
/* Records that an extension asks for a library of operators, and sets *out to the record.  The extension's own code
   calls this function while the extension is loaded.  In that time it returns 0 even if it sets an error: otherwise the
   extension would throw an exception that nobody catches.  opdi_ext_commit carries out the registrations later. */
static int32_t opdi_ext_library_new(opd_library_kind kind, const char *ns, const char *key, const char *file,
                                    uint32_t line, opdi_ext_library **out) {
    opdi_ext *ext = opdi_ext_loading;
    opdi_ext_library *library = ext ? (opdi_ext_library *)calloc(1, sizeof *library) : NULL, **end;
    *out = library;
    if (!library) {
        (void)opd_fail(OPD_ERROR_REGISTER, "an extension may register operators only while it is loaded");
        return ext ? 0 : 1;
    }
    library->ext = ext;
    library->kind = kind;
    library->ns = opdi_ext_copy(ns);
    library->key = opdi_ext_copy(key);
    library->file = opdi_ext_copy(file);
    library->line = (int)line;
    for (end = &ext->libraries; *end; end = &(*end)->next) {}
    *end = library;
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_init_impl(const char *ns, const char *key, const char *file, uint32_t line, void **out) {
    return opdi_ext_library_new(OPD_IMPL, ns, key, file, line, (opdi_ext_library **)out);
}
OPDI_INTERNAL int32_t opdi_ext_init_def(const char *ns, const char *file, uint32_t line, void **out) {
    return opdi_ext_library_new(OPD_DEF, ns, NULL, file, line, (opdi_ext_library **)out);
}
OPDI_INTERNAL int32_t opdi_ext_init_fragment(const char *ns, const char *file, uint32_t line, void **out) {
    return opdi_ext_library_new(OPD_FRAGMENT, ns, NULL, file, line, (opdi_ext_library **)out);
}
static int32_t opdi_ext_register(opdi_ext_library *library, const char *text, opdi_ext_fn fn, uint32_t tags) {
    opdi_ext_entry *entry, **end;
    if (!library || library->ext->committed) {
        (void)opd_fail(OPD_ERROR_REGISTER, "an extension registered '%.200s' after it was loaded, which is not "
                       "supported", text ? text : "");
        return library ? 1 : 0;
    }
    entry = (opdi_ext_entry *)calloc(1, sizeof *entry);
    if (!entry) {
        (void)opdi_aoti_no_memory();
        return 0;
    }
    entry->ext = library->ext;
    entry->text = opdi_ext_copy(text ? text : "");
    entry->fn = fn;
    entry->tags = tags;
    for (end = &library->entries; *end; end = &(*end)->next) {}
    *end = entry;
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_def(void *library, const char *schema) {
    return opdi_ext_register((opdi_ext_library *)library, schema, NULL, 0);
}
/* Records a schema with tags.  Each of `tags` is the bit of a tag, or 0 for a tag that this library does not have. */
OPDI_INTERNAL int32_t opdi_ext_def_tags(void *library, const char *schema, const int32_t *tags, int32_t count) {
    uint32_t bits = 0;
    for (int32_t i = 0; i < count; i++) { bits |= (uint32_t)tags[i]; }
    return opdi_ext_register((opdi_ext_library *)library, schema, NULL, bits);
}
OPDI_INTERNAL int32_t opdi_ext_impl(void *library, const char *name, opdi_ext_fn fn, uint64_t version) {
    (void)version;
    return opdi_ext_register((opdi_ext_library *)library, name, fn, 0);
}
OPDI_INTERNAL int32_t opdi_ext_old_impl(void *library, const char *name, opdi_ext_fn fn) {
    return opdi_ext_register((opdi_ext_library *)library, name, fn, 0);
}
OPDI_INTERNAL int32_t opdi_ext_module(void *library, const char *module, const char *context) {
    (void)library;
    (void)module;
    (void)context;
    return 0;
}
/* The schema of aten::from_file, which makes a tensor of the first elements of a file.  The library does not have this
   operator. */
static const char opdi_ext_from_file_schema[] =
    "aten::from_file(str filename, bool? shared=None, int? size=0, *, ScalarType? dtype=None, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor";
static int opdi_ext_from_file(const opd_value *args, opd_value *rets) {
    const int64_t size = args[2].tag == OPD_TAG_INT ? args[2].u.i : 0;
    const opd_scalar_type dtype = args[3].tag == OPD_TAG_INT ? (opd_scalar_type)args[3].u.i : OPD_FLOAT32;
    opd_tensor *tensor = opd_tensor_new(opd_ints_of(&size, 1), dtype);
    if (!tensor) { return -1; }
    if (args[1].tag != OPD_TAG_NONE && args[1].u.i) {
        return opd_fail(OPD_ERROR_ARGUMENT, "aten::from_file: memory that is shared with a file is not supported");
    }
    FILE *file = fopen(args[0].u.s, "rb");
    const size_t element = opd_dtype_size(dtype), count = (size_t)size;
    const bool whole = file && (count == 0 || fread(opd_data(tensor), element, count, file) == count);
    const int why = errno;
    if (file) { (void)fclose(file); }
    rets[0] = opd_value_tensor(tensor);
    return whole ? 0 : opd_fail(OPD_ERROR_FILE, "aten::from_file: %.400s: %s", args[0].u.s,
                                file ? "the file has fewer elements than size" : strerror(why));
}
/* Calls an operator with the arguments on a stack, and replaces the arguments by the operator's results.  Returns 0, or
   1 if an error is pending. */
OPDI_INTERNAL int32_t opdi_ext_dispatch(const char *name, const char *overload, uint64_t *stack, uint64_t version) {
    opdi_ext_signature *signature = (opdi_ext_signature *)malloc(sizeof *signature);
    opd_value values[OPD_MAX_ARGS], rets[OPD_MAX_ARGS];
    opdi_ext_taken *taken = NULL;
    char full[300];
    (void)version;
    if (!signature) { return (int32_t)-opdi_aoti_no_memory(); }
    snprintf(full, sizeof full, "%.200s%s%.90s", name ? name : "", overload && *overload ? "." : "",
             overload ? overload : "");
    opd_op *op = opd_find_quiet(full);
    const bool file = !op && strcmp(full, "aten::from_file") == 0 &&
        opdi_ext_read_signature(opdi_ext_from_file_schema, signature);
    if (!file && (!(op = opd_find(full)) || !opdi_ext_signature_of(op, signature))) {
        free(signature);
        return 1;
    }
    opd_scope scope = opd_scope_open();
    for (int i = 0; i < signature->nargs; i++) {
        values[i] = opdi_ext_from_word(&opdi_ext_ours, &signature->args[i], stack[i], &taken);
    }
    for (int i = 0; i < OPD_MAX_ARGS; i++) { rets[i] = opd_value_none(); }
    if (opd_ok() && (file ? opdi_ext_from_file(values, rets)
                     : opd_call_all(op, rets, values, signature->nargs)) == 0) {
        for (int i = 0; i < signature->nrets; i++) {
            stack[i] = opdi_ext_to_word(&opdi_ext_ours, &signature->rets[i], &rets[i]);
        }
    }
    opd_scope_close(&scope);
    opdi_ext_taken_release(taken);
    free(signature);
    return opdi_aoti_status();
}
OPDI_INTERNAL int32_t opdi_ext_old_dispatch(const char *name, const char *overload, uint64_t *stack) {
    return opdi_ext_dispatch(name, overload, stack, 0);
}
OPDI_INTERNAL const char *opdi_ext_no_text(void) { return NULL; }
OPDI_INTERNAL const char *opdi_ext_what(void) { return opd_ok() ? NULL : opd_error_message(); }
OPDI_INTERNAL int32_t opdi_ext_parse_device(const char *text, uint32_t *type, int32_t *index) {
    opd_device device;
    if (opd_device_parse(text ? text : "", &device)) { return 1; }
    *type = (uint32_t)opdi_aoti_device_number(device);
    *index = device.type == OPD_CPU ? -1 : device.index;
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_parallel_for(int64_t begin, int64_t end, int64_t grain, void (*body)(int64_t begin,
                                            int64_t end, void *user), void *user) {
    (void)grain;
    if (begin < end) { body(begin, end, user); }
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_thread(uint32_t *out) {
    *out = 0;
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_threads(uint32_t *out) {
    *out = 1;
    return 0;
}
OPDI_INTERNAL int32_t opdi_ext_requires_grad(void *handle, bool on) {
    opd_tensor *tensor = opdi_aoti_tensor(handle);
    if (tensor) { (void)opd_tensor_set_requires_grad(tensor, on); }
    return opdi_aoti_status();
}
/* Memory that an extension gave to a tensor.  It holds a reference to the extension, whose code frees the memory. */
typedef struct opdi_ext_memory { opdi_ext *ext; void (*deleter)(void *data, void *user); void *user; } opdi_ext_memory;
static void opdi_ext_memory_free(void *data, void *user) {
    opdi_ext_memory *memory = (opdi_ext_memory *)user;
    memory->deleter(data, memory->user);
    if (memory->ext) { opdi_ext_release(memory->ext); }
    free(memory);
}
OPDI_INTERNAL int32_t opdi_ext_from_blob(void *data, int64_t ndim, const int64_t *sizes, const int64_t *strides, int64_t
                                         offset, int32_t dtype, int32_t device, int32_t index, void **out, int32_t
                                         layout, const uint8_t *metadata, int64_t metadata_size, void (*deleter)(void
                                         *data, void *user), void *user) {
    opdi_ext_memory *memory = deleter ? (opdi_ext_memory *)malloc(sizeof *memory) : NULL;
    (void)index;
    (void)layout;
    (void)metadata;
    (void)metadata_size;
    if (deleter && !memory) { return (int32_t)-opdi_aoti_no_memory(); }
    if (memory) {
        memory->ext = opdi_ext_running;
        memory->deleter = deleter;
        memory->user = user;
        if (memory->ext) { opdi_ext_hold(memory->ext); }
    }
    return opdi_aoti_wrap(data, ndim, sizes, strides, offset, dtype, device, memory ? opdi_ext_memory_free : NULL,
                          memory, out);
}
/* Replaces functions that need a device which is not supported: sets an error and returns 1. */
OPDI_INTERNAL int32_t opdi_ext_no_device(void) {
    (void)opd_fail(OPD_ERROR_ARGUMENT, "an extension uses CUDA, but only its kernels for the CPU can be used");
    return 1;
}
OPDI_INTERNAL int32_t opdi_ext_no_generator(void) {
    (void)opd_fail(OPD_ERROR_ARGUMENT, "an extension uses a generator, which is not supported");
    return 1;
}
/* Replaces functions of CUDA's run-time library: returns cudaErrorNoDevice. */
OPDI_INTERNAL int32_t opdi_ext_cuda(void) { return 100; }
OPDI_INTERNAL void *opdi_ext_cuda_null(void) { return NULL; }
/* Replaces std::string's _M_replace_cold, which PyTorch provides because C++ libraries before gcc 13 lack it.  Replaces
   the `length` characters at `place` by the `count` characters of `text`, which may be part of the same string.  `rest`
   is the number of characters after the replaced ones. */
OPDI_INTERNAL void opdi_ext_string_replace(void *self, char *place, size_t length, const char *text, size_t count,
                                           size_t rest) {
    char small[200], *copy = count <= sizeof small ? small : (char *)malloc(count);
    (void)self;
    if (!copy) { abort(); }                       /* an exception must not be thrown here */
    if (count) { memcpy(copy, text, count); }
    if (rest && length != count) { memmove(place + count, place + length, rest); }
    if (count) { memcpy(place, copy, count); }
    if (copy != small) { free(copy); }
}
/* opdi_ext_open, opdi_ext_close and opdi_ext_symbol replace dlopen, dlclose and dlsym in extensions, which look for
   functions of PyTorch with them. */
OPDI_INTERNAL char opdi_ext_torch;
OPDI_INTERNAL void *opdi_ext_open(const char *name, int mode) {
    if (name && (strstr(name, "libtorch") || strstr(name, "libc10"))) { return &opdi_ext_torch; }
    return opd_code_forbidden(NULL) ? NULL : dlopen(name, mode);
}
OPDI_INTERNAL int opdi_ext_close(void *library) { return library == (void *)&opdi_ext_torch ? 0 : dlclose(library); }
OPDI_INTERNAL void *opdi_ext_symbol(void *library, const char *name);
