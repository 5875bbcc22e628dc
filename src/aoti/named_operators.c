#include "aoti.h"

//== operators called by name ==========================================================================================

//  If a compiled model needs an operator that has no C function in AOTInductor's table, it calls opdi_aoti_proxy with
//  the operator's number in a list in the package.  The list describes calls in the JSON format of torch.export,
//  including constant arguments; the model passes tensors and integers to opdi_aoti_proxy.

typedef struct opdi_aoti_flat {
    opd_aoti *model;
    const int64_t *ints;
    void *const *tensors;
    int nints, ntensors, at_int, at_tensor;
    void *memory[4 * OPDI_AOTI_ARGS];
    int nmemory;
} opdi_aoti_flat;

static void *opdi_aoti_flat_memory(opdi_aoti_flat *flat, int64_t count, size_t element) {
    void *memory = flat->nmemory < 4 * OPDI_AOTI_ARGS ? calloc((size_t)count + 1, element) : NULL;
    if (memory) { flat->memory[flat->nmemory++] = memory; }
    else { (void)opdi_aoti_no_memory(); }
    return memory;
}
static opd_tensor *opdi_aoti_flat_tensor(opdi_aoti_flat *flat) {
    if (flat->at_tensor >= flat->ntensors) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a compiled model calls an operator with too few tensors");
        return NULL;
    }
    return opdi_aoti_tensor(flat->tensors[flat->at_tensor++]);
}
static int64_t opdi_aoti_flat_int(opdi_aoti_flat *flat) {
    if (flat->at_int >= flat->nints) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a compiled model calls an operator with too few integers");
        return 0;
    }
    return flat->ints[flat->at_int++];
}
/* Returns ATen's number of the dtype with this number in torch.export. */
static opd_value opdi_aoti_export_dtype(int64_t number) {
    static const int dtypes[] = {-1, OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64, OPD_FLOAT16, OPD_FLOAT32,
                                 OPD_FLOAT64, OPD_COMPLEX32, OPD_COMPLEX64, OPD_COMPLEX128, OPD_BOOL, OPD_BFLOAT16};
    return opd_value_int(number > 0 && number < 14 ? dtypes[number] : number);
}
static opd_value opdi_aoti_flat_list(opdi_aoti_flat *flat, const char *kind, int64_t list) {
    const opd_json *json = flat->model->nodes;
    const int64_t count = opd_json_count(json, list);
    int64_t n = 0;
    if (strcmp(kind, "as_tensors") == 0 || strcmp(kind, "as_optional_tensors") == 0) {
        opd_tensor **tensors = (opd_tensor **)opdi_aoti_flat_memory(flat, count, sizeof *tensors);
        for (int64_t e = opd_json_first(json, list); e >= 0 && tensors; e = opd_json_next(json, e)) {
            const bool none = strcmp(kind, "as_optional_tensors") == 0 && opd_json_get(json, e, "as_none") >= 0;
            tensors[n++] = none ? NULL : opdi_aoti_flat_tensor(flat);
        }
        return opd_value_tensors(tensors, n);
    }
    if (strcmp(kind, "as_floats") == 0) {
        double *numbers = (double *)opdi_aoti_flat_memory(flat, count, sizeof *numbers);
        for (int64_t e = opd_json_first(json, list); e >= 0 && numbers; e = opd_json_next(json, e)) {
            numbers[n++] = opd_json_double(json, e, 0);
        }
        return opd_value_doubles(numbers, n);
    }
    if (strcmp(kind, "as_bools") == 0) {
        bool *bools = (bool *)opdi_aoti_flat_memory(flat, count, sizeof *bools);
        for (int64_t e = opd_json_first(json, list); e >= 0 && bools; e = opd_json_next(json, e)) {
            bools[n++] = opd_json_bool(json, e, false);
        }
        return opd_value_bools(bools, n);
    }
    int64_t *ints = (int64_t *)opdi_aoti_flat_memory(flat, count, sizeof *ints);
    while (ints && n < count) { ints[n++] = opdi_aoti_flat_int(flat); }
    return opd_value_ints(ints, n);
}
/* Returns the value of an argument such as {"as_int": 3}.  Integers and tensors are taken from those that the call
   passes. */
static opd_value opdi_aoti_flat_value(opdi_aoti_flat *flat, int64_t arg) {
    const opd_json *json = flat->model->nodes;
    const int64_t value = opd_json_first(json, arg);
    const char *kind = opd_json_key(json, value);
    if (!kind || strcmp(kind, "as_none") == 0) { return opd_value_none(); }
    if (strcmp(kind, "as_tensor") == 0) { return opd_value_tensor(opdi_aoti_flat_tensor(flat)); }
    if (strcmp(kind, "as_optional_tensor") == 0) {
        return opd_json_get(json, value, "as_none") >= 0 ? opd_value_none()
            : opd_value_tensor(opdi_aoti_flat_tensor(flat));
    }
    if (strcmp(kind, "as_int") == 0 || strcmp(kind, "as_sym_int") == 0) {
        return opd_value_int(opdi_aoti_flat_int(flat));
    }
    if (strcmp(kind, "as_float") == 0) { return opd_value_double(opd_json_double(json, value, NAN)); }
    if (strcmp(kind, "as_bool") == 0) { return opd_value_bool(opd_json_bool(json, value, false)); }
    if (strcmp(kind, "as_string") == 0) { return opd_value_str(opd_json_text(json, value, "")); }
    if (strcmp(kind, "as_scalar_type") == 0) { return opdi_aoti_export_dtype(opd_json_int(json, value, 0)); }
    if (strcmp(kind, "as_layout") == 0) { return opd_value_int(0); }
    if (strcmp(kind, "as_memory_format") == 0) {
        static const int formats[] = {0, 0, 2, 3, 1};         /* by torch.export's number: unknown, contiguous,
                                                                 channels_last, channels_last_3d, preserve */
        const int64_t number = opd_json_int(json, value, 0);
        return opd_value_int(number >= 0 && number < 5 ? formats[number] : 0);
    }
    if (strcmp(kind, "as_device") == 0) { return opd_value_device(opdi_aoti_device(0, -1)); }
    if (opd_json_kind_of(json, value) == OPD_JSON_LIST) { return opdi_aoti_flat_list(flat, kind, value); }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "a compiled model calls an operator with an argument of kind %.60s, which is "
                   "not supported", kind);
    return opd_value_none();
}
/* Stores a result in the next box, which the model has made for it.  Returns 0, or -1 and sets an error. */
static int opdi_aoti_flat_return(opdi_aoti_flat *flat, const opd_value *value) {
    if (value->tag == OPD_TAG_TENSORS) {
        for (int i = 0; i < value->n; i++) {
            const opd_value one = opd_value_tensor(value->u.tensors[i]);
            if (opdi_aoti_flat_return(flat, &one)) { return -1; }
        }
        return 0;
    }
    if (value->tag != OPD_TAG_TENSOR) { return 0; }
    if (flat->at_tensor >= flat->ntensors) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a compiled model calls an operator with too few places for its results");
    }
    opdi_aoti_handle *handle = (opdi_aoti_handle *)flat->tensors[flat->at_tensor++];
    if (handle) { (void)opd_assign(&handle->tensor, value->u.t); }
    return opd_ok() ? 0 : -1;
}
static int opdi_aoti_flat_call(opdi_aoti_flat *flat, int64_t node) {
    const opd_json *json = flat->model->nodes;
    opd_keyword keywords[OPDI_AOTI_ARGS];
    opd_value rets[16];
    char name[300];
    const char *target = opd_json_text(json, opd_json_get(json, node, "target"), "");
    int n = 0;
    snprintf(name, sizeof name, "%.250s", opdi_aoti_ends(target, ".default") ? "" : target);
    if (!*name) { snprintf(name, sizeof name, "%.*s", (int)(strlen(target) < 258 ? strlen(target) - 8 : 250), target); }
    if (strncmp(name, "torch.ops.", 10) == 0) { memmove(name, name + 10, strlen(name + 10) + 1); }
    opd_op *op = opd_find(name);
    if (!op) { return -1; }
    const int64_t inputs = opd_json_get(json, node, "inputs");
    for (int64_t e = opd_json_first(json, inputs); e >= 0 && n < OPDI_AOTI_ARGS; e = opd_json_next(json, e)) {
        keywords[n].name = opd_json_text(json, opd_json_get(json, e, "name"), "");
        keywords[n++].value = opdi_aoti_flat_value(flat, opd_json_get(json, e, "arg"));
    }
    for (int i = 0; i < 16; i++) { rets[i] = opd_value_none(); }
    if (!opd_ok() || opd_call_keywords(op, rets, NULL, 0, keywords, n)) { return -1; }
    const int64_t outputs = opd_json_get(json, node, "outputs");
    n = 0;
    for (int64_t e = opd_json_first(json, outputs); e >= 0 && n < 16; e = opd_json_next(json, e)) {
        if (opdi_aoti_flat_return(flat, &rets[n++])) { return -1; }
    }
    return 0;
}
OPDI_INTERNAL int32_t opdi_aoti_proxy(void *executor, int node, int nints, int64_t *ints, int ntensors, void **tensors)
                                      {
    opdi_aoti_flat flat;
    int rc = -1;
    memset(&flat, 0, sizeof flat);
    flat.model = (opd_aoti *)executor;
    flat.ints = ints;
    flat.nints = nints;
    flat.tensors = tensors;
    flat.ntensors = ntensors;
    if (!opd_ok() || opd_interrupted()) { return 1; }
    const opd_json *json = flat.model ? flat.model->nodes : NULL;
    int64_t e = json ? opd_json_first(json, opd_json_get(json, 0, "nodes")) : -1;
    for (int i = 0; i < node && e >= 0; i++) { e = opd_json_next(json, e); }
    opd_scope scope = opd_scope_open();
    if (e < 0) {
        (void)opd_fail(OPD_ERROR_FILE, "a compiled model calls operator %d of a list in its package: load the package "
                       "(.pt2), not the library (.so)", node);
    } else { rc = opdi_aoti_flat_call(&flat, opd_json_get(json, e, "node")); }
    opd_scope_close(&scope);
    for (int i = 0; i < flat.nmemory; i++) { free(flat.memory[i]); }
    return rc ? 1 : opdi_aoti_status();
}

