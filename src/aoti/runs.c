#include "aoti.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>aoti_runs     compiled models: runs, constants, operators by name
//----------------------------------------------------------------------------------------------------------------------

//== calls into models =================================================================================================

/* Returns the model's message about its last failure, or a text that says there is none. */
static const char *opdi_aoti_last_error(const opd_aoti *model) {
    const char *text = NULL;
    opdi_aoti_error_fn error = NULL;
    memcpy(&error, &model->functions[OPDI_AOTI_LAST_ERROR], sizeof error);
    if (error) { (void)error(&text); }
    return text && *text ? text : "the model failed without a message";
}
static int opdi_aoti_failed(const opd_aoti *model, const char *what) {
    if (!opd_ok()) { return -1; }
    const char *text = opdi_aoti_last_error(model);
    size_t length = strlen(text);
    while (length && (text[length - 1] == '\n' || text[length - 1] == ' ')) { length--; }
    return opd_fail(OPD_ERROR_KERNEL, "%s: %.300s: %.*s", what, model->path, (int)(length < 1000 ? length : 1000),
                    text);
}
static void opdi_aoti_enter(opdi_aoti_frame *frame, opd_aoti *model, bool loading, jmp_buf *out) {
    frame->model = model;
    frame->loading = loading;
    frame->out = out;
    frame->outer = opdi_aoti_current;
    opdi_aoti_current = frame;
}
static void opdi_aoti_leave(const opdi_aoti_frame *frame) { opdi_aoti_current = frame->outer; }

static int opdi_aoti_functions(opd_aoti *model) {
    char text[200];
    for (int i = 0; i < OPDI_AOTI_FUNCTIONS; i++) {
        opdi_aoti_find(model->image.handle, opdi_aoti_exports[i].name, &model->functions[i]);
        if (model->functions[i] || !opdi_aoti_exports[i].needed) { continue; }
        snprintf(text, sizeof text, "the library has no %s: it was not compiled by AOTInductor, or by another version",
                 opdi_aoti_exports[i].name);
        return opdi_aoti_bad(model, text);
    }
    model->exceptions = opdi_aoti_find_cxx(model->image.handle);
    return 0;
}
static int opdi_aoti_count(opd_aoti *model, int which, size_t *count) {
    opdi_aoti_count_fn fn;
    memcpy(&fn, &model->functions[which], sizeof fn);
    return fn(model->container, count) ? opdi_aoti_failed(model, "opd_aoti_load") : 0;
}
/* Makes the container (the model's object), and gives it the block of constants in the package, if there is one.
   Returns 0, or -1 and sets an error. */
static int opdi_aoti_start_container(opd_aoti *model, int copies) {
    opdi_aoti_create_fn create;
    opdi_aoti_blob_fn blob;
    opdi_aoti_blob_size_fn blob_size;
    uint64_t bytes = 0;
    memcpy(&create, &model->functions[OPDI_AOTI_CREATE], sizeof create);
    memcpy(&blob, &model->functions[OPDI_AOTI_BLOB], sizeof blob);
    memcpy(&blob_size, &model->functions[OPDI_AOTI_BLOB_SIZE], sizeof blob_size);
    if (create(&model->container, (size_t)(copies > 0 ? copies : 1), "cpu", NULL)) {
        return opdi_aoti_failed(model, "opd_aoti_load");
    }
    if (!model->blob || !blob) { return 0; }
    if (blob_size && (blob_size(model->container, &bytes) || bytes > (uint64_t)opd_numel(model->blob))) {
        return opdi_aoti_bad(model, "the weights in the package are incomplete");
    }
    return blob(model->container, (const uint8_t *)opd_data(model->blob)) ? opdi_aoti_failed(model, "opd_aoti_load")
        : 0;
}
static int opdi_aoti_start(opd_aoti *model, int copies) {
    opdi_aoti_frame frame;
    jmp_buf out;
    opdi_aoti_enter(&frame, model, true, &out);
    if (setjmp(out) == 0) { (void)opdi_aoti_start_container(model, copies); }
    opdi_aoti_leave(&frame);
    return !opd_ok() || opdi_aoti_count(model, OPDI_AOTI_NINPUTS, &model->ninputs) ||
        opdi_aoti_count(model, OPDI_AOTI_NOUTPUTS, &model->noutputs) ||
        opdi_aoti_count(model, OPDI_AOTI_NCONSTANTS, &model->nconstants) ? -1 : 0;
}
static int opdi_aoti_set_constants(opd_aoti *model, const char *const *names, opd_tensors tensors, bool share,
                                   const char *who);
/* Gives the model the weights that are separate entries of the package, and finds out whether the model was compiled
   without weights.  Returns 0, or -1 and sets an error. */
static int opdi_aoti_fill(opd_aoti *model) {
    opdi_aoti_entries_fn entries;
    const opdi_aoti_pair *pairs = NULL;
    size_t count = 0;
    memcpy(&entries, &model->functions[OPDI_AOTI_ENTRIES], sizeof entries);
    if (entries && model->nconstants) {
        model->empty = entries(model->container, &pairs, &count, false) == 0 && count == 0;
    }
    if (model->nweights == 0) { return 0; }
    return opdi_aoti_set_constants(model, (const char *const *)(void *)model->weight_names,
                                   opd_tensors_of(model->weights, model->nweights),
                                   model->functions[OPDI_AOTI_SHARE] != NULL, "opd_aoti_load");
}
static bool opdi_aoti_is_package(const char *path) {
    char head[2] = "";
    FILE *file = fopen(path, "rb");
    const bool zip = file && fread(head, 1, 2, file) == 2 && head[0] == 'P' && head[1] == 'K';
    if (file) { (void)fclose(file); }
    return zip;
}
opd_aoti *opd_aoti_load(const char *path, const opd_aoti_options *options) {
#if defined(OPD_LEAN)
    OPDI_NEEDS_ALL();
#endif
    const char *name = options ? options->name : NULL;
    if (!opd_ok() || opd_code_forbidden("opd_aoti_load")) { return NULL; }
    if (!path) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_load: the path is NULL");
        return NULL;
    }
    if (options && (options->copies < 0 || options->copies > 1024)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_load: the number of copies must be 0 to 1024, not %d",
                       options->copies);
        return NULL;
    }
    opd_aoti *model = (opd_aoti *)calloc(1, sizeof *model);
    if (!model || !(model->path = opdi_aoti_copy_text(path, strlen(path)))) {
        free(model);
        (void)opdi_aoti_no_memory();
        return NULL;
    }
    model->refs = 1;
    model->who = "opd_aoti_load";
    model->image.fd = model->stubs.fd = -1;
    model->unchecked = options && options->unchecked;
    const bool package = opdi_aoti_is_package(path);
    int rc = package ? opdi_aoti_open_package(model, name) : opdi_aoti_open_file(model);
    if (rc == 0 && !package) {
        const char *slash = strrchr(path, '/');
        model->name = opdi_aoti_copy_text(slash ? slash + 1 : path, strlen(slash ? slash + 1 : path));
        model->names = (char *)calloc(strlen(path) + 2, 1);
        if (model->names && model->name) { memcpy(model->names, model->name, strlen(model->name)); }
        rc = model->names && model->name ? 0 : opdi_aoti_no_memory();
    }
    if (rc == 0 && opdi_aoti_functions(model) == 0 && opdi_aoti_start(model, options ? options->copies : 1) == 0 &&
        opdi_aoti_fill(model) == 0) {
        return model;
    }
    opd_aoti_free(model);
    return NULL;
}
void opd_aoti_free(opd_aoti *model) {
    opdi_aoti_delete_fn del;
    if (!model || OPDI_AOTI_LESS(model->refs)) { return; }
    memcpy(&del, &model->functions[OPDI_AOTI_DELETE], sizeof del);
    if (model->container && del) { (void)del(model->container); }
    opdi_aoti_image_free(&model->image);
    opdi_aoti_image_free(&model->stubs);
    for (int64_t i = 0; i < model->nrows; i++) { free(model->rows[i]); }
    free(model->rows);
    free(model->ranges);
    for (int64_t i = 0; i < model->nweights; i++) {
        opd_release(model->weights[i]);
        free(model->weight_names[i]);
    }
    free(model->weights);
    free(model->weight_names);
    opd_json_free(model->metadata);
    opd_json_free(model->nodes);
    opd_release(model->blob);
    free(model->path);
    free(model->name);
    free(model->names);
    free(model);
}
const char *opd_aoti_name(const opd_aoti *model) { return model ? model->name : NULL; }
const char *opd_aoti_file_name(const opd_aoti *model, int i) {
    const char *at = model && i >= 0 ? model->names : "";
    for (; *at && i > 0; i--) { at += strlen(at) + 1; }
    return *at ? at : NULL;
}
int opd_aoti_ninputs(const opd_aoti *model) { return model ? (int)model->ninputs : 0; }
int opd_aoti_noutputs(const opd_aoti *model) { return model ? (int)model->noutputs : 0; }
static const char *opdi_aoti_named(const opd_aoti *model, int which, size_t count, int64_t i) {
    const char *name = NULL;
    opdi_aoti_name_fn fn = NULL;
    if (!model || i < 0 || (size_t)i >= count) { return NULL; }
    memcpy(&fn, &model->functions[which], sizeof fn);
    return fn && fn(model->container, (size_t)i, &name) == 0 ? name : NULL;
}
const char *opd_aoti_input_name(const opd_aoti *model, int i) {
    return opdi_aoti_named(model, OPDI_AOTI_INPUT, model ? model->ninputs : 0, i);
}
const char *opd_aoti_output_name(const opd_aoti *model, int i) {
    return opdi_aoti_named(model, OPDI_AOTI_OUTPUT, model ? model->noutputs : 0, i);
}

//== running models ====================================================================================================

static int opdi_aoti_check_input(const opd_aoti *model, int i, opd_tensor *input) {
    const char *name = opd_aoti_input_name(model, i);
    if (!input) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: input %d ('%s') is NULL", i, name ? name : ""); }
    if (opd_tensor_device(input).type != OPD_CPU) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: input %d ('%s') is not on the CPU", i, name ? name : "");
    }
    if (opd_tensor_requires_grad(input) && opd_grad_mode_enabled()) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "opd_aoti_run: input %d ('%s') requires grad, but compiled models have no "
                        "derivatives: pass the result of opd_detach, or run the model in OPD_NO_GRAD { }", i,
                        name ? name : "");
    }
    if (opd_tensor_is_conj(input) || opd_tensor_is_neg(input)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: input %d ('%s') is a conjugate or negative view: pass the "
                        "result of opd_resolve_conj or opd_resolve_neg", i, name ? name : "");
    }
    (void)opd_data(input);       /* sets an error if the tensor has no memory of its own */
    return opd_ok() ? 0 : -1;
}
static bool opdi_aoti_is_constant(const opd_aoti *model, const opd_tensor *tensor) {
    const char *data = opd_numel(tensor) ? (const char *)opd_data(tensor) : NULL;
    for (int64_t i = 0; data && i < model->nranges; i++) {
        if (data >= model->ranges[i].begin && data < model->ranges[i].end) { return true; }
    }
    return false;
}
/* Returns the tensor in the box of a result; the innermost scope owns the tensor.  If the tensor's memory belongs to
   the model, returns a copy. */
static opd_tensor *opdi_aoti_unbox(const opd_aoti *model, void *box) {
    opd_tensor *tensor = opdi_aoti_tensor(box);
    if (!tensor) { return NULL; }
    return opdi_aoti_is_constant(model, tensor) ? opd_clone(tensor)
        : opd_tensor_view(tensor, opd_sizes(tensor), opd_strides(tensor), opd_ndim(tensor), opd_tensor_offset(tensor));
}
/* Frees the boxes that are left after a run, each only once.  A box may occur in several places: if the model returns a
   result twice, or returns an input as a result.  gone[i] is true if the model itself has freed input i. */
static void opdi_aoti_free_boxes(void **boxes, size_t count, const bool *gone, size_t ninputs) {
    for (size_t i = 0; i < count; i++) {
        if (i < ninputs && gone[i]) { boxes[i] = NULL; }
        for (size_t k = 0; k < i && boxes[i]; k++) {
            if (boxes[k] == boxes[i]) { boxes[i] = NULL; }
        }
    }
    for (size_t i = 0; i < count; i++) { (void)opdi_aoti_free_handle(boxes[i]); }
}
static void opdi_aoti_call(opd_aoti *model, void **inputs, void **outputs) {
    opdi_aoti_run_fn run;
    opdi_aoti_frame frame;
    jmp_buf out;
    const bool grad = opd_grad_mode_enabled();
    memcpy(&run, &model->functions[OPDI_AOTI_RUN], sizeof run);
    opdi_aoti_enter(&frame, model, false, &out);
    if (setjmp(out) == 0 && run(model->container, inputs, model->ninputs, outputs, model->noutputs, NULL, model)) {
        (void)opdi_aoti_failed(model, "opd_aoti_run");
    }
    opdi_aoti_leave(&frame);
    (void)opd_grad_mode_set(grad);
}
int opd_aoti_run(opd_aoti *model, opd_tensors inputs, opd_tensor **outputs, int cap) {
    int rc = 0;
    if (!opd_ok() || opd_interrupted()) { return -1; }
    if (!model) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: the model is NULL"); }
    if (inputs.n != (int64_t)model->ninputs) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: %.300s takes %lld inputs, not %lld", model->path,
                        (long long)model->ninputs, (long long)inputs.n);
    }
    if (model->empty) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: %.300s was compiled without its weights: set them with "
                        "opd_aoti_update", model->path);
    }
    if (cap < (int)model->noutputs || (!outputs && cap)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_run: %.300s has %lld outputs, but the array has room for %d",
                        model->path,
                        (long long)model->noutputs, outputs ? cap : 0);
    }
    (void)OPDI_AOTI_NEXT(model->refs);
    void **boxes = (void **)calloc(model->ninputs + model->noutputs + 1, sizeof *boxes);
    bool *gone = (bool *)calloc(model->ninputs + 1, sizeof *gone);
    if (!boxes || !gone) { rc = opdi_aoti_no_memory(); }
    void **results = boxes ? boxes + model->ninputs : NULL;
    for (size_t i = 0; i < model->ninputs && rc == 0; i++) {
        rc = opdi_aoti_check_input(model, (int)i, inputs.data[i]) || opdi_aoti_box(inputs.data[i], &boxes[i]) ? -1 : 0;
        if (rc == 0) { ((opdi_aoti_handle *)boxes[i])->gone = &gone[i]; }
    }
    if (rc == 0) {
        opdi_aoti_call(model, boxes, results);
        rc = opd_ok() ? 0 : -1;
    }
    for (size_t i = 0; i < model->noutputs && rc == 0; i++) {
        outputs[i] = results[i] ? opdi_aoti_unbox(model, results[i]) : NULL;
        rc = outputs[i] || !results[i] ? 0 : -1;
    }
    if (boxes && gone) { opdi_aoti_free_boxes(boxes, model->ninputs + model->noutputs, gone, model->ninputs); }
    for (size_t i = 0; rc && i < model->noutputs; i++) { outputs[i] = NULL; }
    free(boxes);
    free(gone);
    const int noutputs = (int)model->noutputs;
    opd_aoti_free(model);
    return rc ? -1 : noutputs;
}
int opd_aoti_function(void *model, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    return opd_aoti_run((opd_aoti *)model, opd_tensors_of(inputs, ninputs), outputs, OPD_TRANSFORM_OUTPUTS);
}

//== constants =========================================================================================================

int64_t opd_aoti_constants(const opd_aoti *model) { return model ? (int64_t)model->nconstants : 0; }
int opd_aoti_constant_at(const opd_aoti *model, int64_t i, opd_aoti_constant *constant) {
    opdi_aoti_dtype_fn dtype_of;
    opdi_aoti_bytes_fn bytes_of;
    opdi_aoti_flag_fn folded_of;
    opdi_aoti_dtype_fn type_of;
    int32_t dtype = OPD_DTYPE_NONE, type = 0;
    size_t bytes = 0;
    bool folded = false;
    if (!model || i < 0 || i >= (int64_t)model->nconstants) {
        return opd_fail(OPD_ERROR_INDEX, "opd_aoti_constant_at: there is no constant %lld", (long long)i);
    }
    memcpy(&dtype_of, &model->functions[OPDI_AOTI_DTYPE], sizeof dtype_of);
    memcpy(&bytes_of, &model->functions[OPDI_AOTI_BYTES], sizeof bytes_of);
    memcpy(&folded_of, &model->functions[OPDI_AOTI_FOLDED], sizeof folded_of);
    memcpy(&type_of, &model->functions[OPDI_AOTI_TYPE], sizeof type_of);
    if (type_of) { (void)type_of(model->container, (size_t)i, &type); }
    if (dtype_of) { (void)dtype_of(model->container, (size_t)i, &dtype); }
    if (bytes_of) { (void)bytes_of(model->container, (size_t)i, &bytes); }
    if (folded_of) { (void)folded_of(model->container, (size_t)i, &folded); }
    constant->symbol = opdi_aoti_named(model, OPDI_AOTI_SYMBOL, model->nconstants, i);
    constant->name = opdi_aoti_named(model, OPDI_AOTI_FQN, model->nconstants, i);
    if (!constant->name || !*constant->name) { constant->name = constant->symbol; }
    constant->dtype = (opd_scalar_type)dtype;
    constant->bytes = (int64_t)bytes;
    constant->folded = folded;
    constant->buffer = type == 2;
    return 0;
}
/* Finds a constant by either of its two names, and fills *constant.  Returns its number, or -1 and sets an error. */
static int64_t opdi_aoti_find_constant(const opd_aoti *model, const char *name, opd_aoti_constant *constant,
                                       const char *who) {
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t i = 0; name && i < opd_aoti_constants(model); i++) {
            if (opd_aoti_constant_at(model, i, constant)) { return -1; }
            const char *text = pass == 0 ? constant->name : constant->symbol;
            if (text && strcmp(text, name) == 0) { return i; }
        }
    }
    return opd_fail(OPD_ERROR_NOT_FOUND, "%s: %.300s has no constant '%.200s'", who, model ? model->path : "NULL",
                    name ? name : "NULL");
}
opd_tensor *opd_aoti_constant_get(opd_aoti *model, const char *name) {
    opdi_aoti_entries_fn entries;
    opd_aoti_constant constant;
    const opdi_aoti_pair *pairs = NULL;
    size_t count = 0;
    if (!opd_ok() || opdi_aoti_find_constant(model, name, &constant, "opd_aoti_constant_get") < 0) { return NULL; }
    memcpy(&entries, &model->functions[OPDI_AOTI_ENTRIES], sizeof entries);
    if (!entries) {
        (void)opd_fail(OPD_ERROR_NOT_FOUND, "opd_aoti_constant_get: %.300s was compiled by a version of PyTorch whose "
                       "models cannot return their constants", model->path);
        return NULL;
    }
    if (entries(model->container, &pairs, &count, false)) {
        (void)opdi_aoti_failed(model, "opd_aoti_constant_get");
        return NULL;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(pairs[i].name, constant.name) != 0 && strcmp(pairs[i].name, constant.symbol) != 0) { continue; }
        opd_tensor *tensor = opdi_aoti_tensor(pairs[i].handle);
        return tensor ? opd_clone(tensor) : NULL;
    }
    (void)opd_fail(OPD_ERROR_NOT_FOUND, "opd_aoti_constant_get: %.300s has no value of '%.200s' yet", model->path,
                   name);
    return NULL;
}
/* Returns a copy of `tensor` whose memory has `bytes` bytes: models copy that many bytes. */
static opd_tensor *opdi_aoti_padded(opd_tensor *tensor, int64_t bytes) {
    opd_tensor *memory = opd_zeros(opd_ints_of(&bytes, 1), OPD_UINT8);
    opd_tensor *flat = memory && opd_ok() ? opd_view_dtype(memory, opd_dtype(tensor)) : NULL;
    opd_tensor *padded = flat ? opd_tensor_view(flat, opd_sizes(tensor), opd_strides(tensor), opd_ndim(tensor), 0)
        : NULL;
    return padded ? opd_copy_(padded, tensor) : NULL;
}
/* Checks that a tensor can be the value of constant `name`, and makes its box in *pair.  Returns 0, or -1 and sets an
   error. */
static int opdi_aoti_value_box(opd_aoti *model, const char *name, opd_tensor *tensor, opdi_aoti_pair *pair,
                               const char *who) {
    opd_aoti_constant constant;
    if (opdi_aoti_find_constant(model, name, &constant, who) < 0) { return -1; }
    if (!tensor) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: '%.200s' is NULL", who, name); }
    const int64_t bytes = opd_numel(tensor) * (int64_t)opd_dtype_size(opd_dtype(tensor));
    if (opd_dtype(tensor) != constant.dtype || bytes > constant.bytes || constant.bytes - bytes >= 64) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: '%.200s' has %lld bytes of %s, but the tensor has %lld bytes of %s", who,
                        name, (long long)constant.bytes, opd_dtype_name(constant.dtype), (long long)bytes,
                        opd_dtype_name(opd_dtype(tensor)));
    }
    tensor = opd_contiguous(opd_detach(tensor));
    if (bytes < constant.bytes) { tensor = opdi_aoti_padded(tensor, constant.bytes); }
    pair->name = constant.symbol;
    return opdi_aoti_box(tensor, &pair->handle) ? -1 : 0;
}
/* Checks that a model that was compiled without weights gets all of them in the same call.  Returns 0, or -1 and sets
   an error. */
static int opdi_aoti_check_all(const opd_aoti *model, const opdi_aoti_pair *pairs, int64_t count, const char *who) {
    opd_aoti_constant constant;
    for (int64_t i = 0; i < opd_aoti_constants(model); i++) {
        bool given = opd_aoti_constant_at(model, i, &constant) != 0 || constant.folded || constant.bytes == 0;
        for (int64_t k = 0; k < count && !given; k++) { given = strcmp(pairs[k].name, constant.symbol) == 0; }
        if (!given) {
            return opd_fail(OPD_ERROR_NOT_FOUND, "%s: %.300s was compiled without its weights, and '%.200s' is not "
                            "among the given weights", who, model->path, constant.name);
        }
    }
    return opd_ok() ? 0 : -1;
}
/* Gives constants to the model.  If `share` is true, the model keeps the tensors and uses their memory; otherwise, it
   copies their values.  Returns 0, or -1 and sets an error. */
static int opdi_aoti_set_constants(opd_aoti *model, const char *const *names, opd_tensors tensors, bool share,
                                   const char *who) {
    opdi_aoti_pairs_fn update;
    opdi_aoti_frame frame;
    jmp_buf out;
    memcpy(&update, &model->functions[share ? OPDI_AOTI_SHARE : OPDI_AOTI_UPDATE], sizeof update);
    opdi_aoti_pair *const pairs = (opdi_aoti_pair *)calloc((size_t)tensors.n + 1, sizeof *pairs);
    if (!pairs) { return opdi_aoti_no_memory(); }
    opd_scope scope = opd_scope_open();
    for (int64_t i = 0; i < tensors.n && opd_ok(); i++) {
        (void)opdi_aoti_value_box(model, names[i], tensors.data[i], &pairs[i], who);
    }
    if (opd_ok() && model->empty) { (void)opdi_aoti_check_all(model, pairs, tensors.n, who); }
    if (opd_ok()) {
        opdi_aoti_enter(&frame, model, true, &out);
        if (setjmp(out) || update(model->container, pairs, (size_t)tensors.n, false, false)) {
            (void)opdi_aoti_failed(model, who);
        }
        opdi_aoti_leave(&frame);
        if (opd_ok()) { model->empty = false; }
    }
    for (int64_t i = 0; i < tensors.n; i++) { (void)opdi_aoti_free_handle(pairs[i].handle); }
    free(pairs);
    opd_scope_close(&scope);
    return opd_ok() ? 0 : -1;
}
int opd_aoti_update(opd_aoti *model, const char *const *names, opd_tensors tensors) {
    if (!opd_ok()) { return -1; }
    if (!model || (tensors.n && !names)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_aoti_update: the model or the names are NULL");
    }
    if (!model->functions[OPDI_AOTI_UPDATE]) {
        return opd_fail(OPD_ERROR_NOT_FOUND, "opd_aoti_update: %.300s was compiled by a version of PyTorch whose "
                        "models take constants only from C++", model->path);
    }
    return opdi_aoti_set_constants(model, names, tensors, false, "opd_aoti_update");
}

