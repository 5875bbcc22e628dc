#include "aoti.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>in_torch      this library's operators in PyTorch
//----------------------------------------------------------------------------------------------------------------------

//== the reverse of extensions: registering operators in PyTorch =======================================================

//  When PyTorch loads a library that contains this code, the operators that the library's source files define are
//  registered in PyTorch.  PyTorch does not pass user data to a kernel, so each operator has a stub, which passes the
//  operator's opdi_torch_row.

typedef struct opdi_torch_row {
    opd_op *op;
    opdi_ext_signature signature;
    bool gradient;               /* true: the stub computes the gradients of the operator's arguments */
} opdi_torch_row;
/* Functions of PyTorch, found by name when the library is loaded. */
static struct {
    int32_t (*fragment)(const char *ns, const char *file, uint32_t line, void **out);
    int32_t (*implementation)(const char *ns, const char *key, const char *file, uint32_t line, void **out);
    int32_t (*forget)(void *library);
    int32_t (*define)(void *library, const char *schema);
    int32_t (*kernel)(void *library, const char *name, opdi_ext_fn fn, uint64_t version);
    int32_t (*data)(void *handle, void **out);
    int32_t (*ndim)(void *handle, int64_t *out);
    int32_t (*sizes)(void *handle, int64_t **out);
    int32_t (*strides)(void *handle, int64_t **out);
    int32_t (*dtype)(void *handle, int32_t *out);
    int32_t (*device)(void *handle, int32_t *out);
    int32_t (*defined)(void *handle, bool *out);
    int32_t (*again)(void *handle, void **out);
    int32_t (*undefined)(void **out);
    int32_t (*empty)(int64_t ndim, const int64_t *sizes, const int64_t *strides, int32_t dtype, int32_t device,
                     int32_t index, void **out);
    const char *(*what)(void);   /* returns the message of the last failure; NULL: PyTorch is older than 2.13 */
    opdi_ext_side side;
} opdi_torch;
static OPDI_AOTI_THREAD const opdi_ext_taken *opdi_torch_args;       /* arguments of the current call */

static const char *opdi_torch_find(void *library) {
    const struct { const char *name; void *to; } functions[] = {
        {"aoti_torch_library_init_fragment", &opdi_torch.fragment},
        {"aoti_torch_library_init_impl", &opdi_torch.implementation},
        {"aoti_torch_delete_library_object", &opdi_torch.forget}, {"aoti_torch_library_def", &opdi_torch.define},
        {"torch_library_impl", &opdi_torch.kernel}, {"aoti_torch_get_data_ptr", &opdi_torch.data},
        {"aoti_torch_get_dim", &opdi_torch.ndim}, {"aoti_torch_get_sizes", &opdi_torch.sizes},
        {"aoti_torch_get_strides", &opdi_torch.strides}, {"aoti_torch_get_dtype", &opdi_torch.dtype},
        {"aoti_torch_get_device_type", &opdi_torch.device}, {"aoti_torch_is_defined", &opdi_torch.defined},
        {"aoti_torch_new_tensor_handle", &opdi_torch.again},
        {"aoti_torch_new_uninitialized_tensor", &opdi_torch.undefined},
        {"aoti_torch_empty_strided", &opdi_torch.empty}, {"torch_new_list_reserve_size", &opdi_torch.side.list_new},
        {"torch_list_size", &opdi_torch.side.list_size}, {"torch_list_get_item", &opdi_torch.side.list_get},
        {"torch_list_push_back", &opdi_torch.side.list_push}, {"torch_delete_list", &opdi_torch.side.list_free},
        {"torch_new_string_handle", &opdi_torch.side.text_new}, {"torch_string_c_str", &opdi_torch.side.text_data},
        {"torch_delete_string", &opdi_torch.side.text_free},
        {"aoti_torch_delete_tensor_object", &opdi_torch.side.tensor_free}
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        opdi_aoti_find(library, functions[i].name, functions[i].to);
        if (!*(void **)functions[i].to) { return functions[i].name; }
    }
    opdi_aoti_find(library, "torch_exception_get_what_without_backtrace", &opdi_torch.what);
    return NULL;
}
static const char *opdi_torch_why(void) {
    const char *text = opdi_torch.what ? opdi_torch.what() : NULL;
    return text ? text : "PyTorch reported an error without a message";
}
static int opdi_torch_check(int32_t rc) { return rc ? opd_fail(OPD_ERROR_ARGUMENT, "%s", opdi_torch_why()) : 0; }
/* Returns a tensor of this library that uses the memory of a tensor of PyTorch, or NULL if that tensor is undefined.
   On failure, returns NULL and sets an error. */
static opd_tensor *opdi_torch_import(void *handle) {
    int64_t ndim = 0, *sizes = NULL, *strides = NULL;
    int32_t dtype = 0, device = 0;
    void *data = NULL;
    bool defined = false;
    if (opdi_torch_check(opdi_torch.defined(handle, &defined)) || !defined) { return NULL; }
    if (opdi_torch_check(opdi_torch.ndim(handle, &ndim) || opdi_torch.sizes(handle, &sizes) ||
                         opdi_torch.strides(handle, &strides) || opdi_torch.dtype(handle, &dtype) ||
                         opdi_torch.device(handle, &device))) {
        return NULL;
    }
    if (device != 0 && device != 14) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a tensor is not on the CPU, but the operators of this library run only on "
                       "the CPU");
        return NULL;
    }
    if (ndim > OPD_MAX_DIMS || !opd_dtype_size((opd_scalar_type)dtype)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a tensor has %d dims, or a dtype that is not supported", (int)ndim);
        return NULL;
    }
    if (device == 14) {                           /* a meta tensor has sizes, but no memory */
        return opd_to_device(opd_empty_strided(opd_ints_of(sizes, ndim), opd_ints_of(strides, ndim),
                                               (opd_scalar_type)dtype),
                             opd_device_make(OPD_META, -1), (opd_scalar_type)dtype);
    }
    if (opdi_torch_check(opdi_torch.data(handle, &data))) { return NULL; }
    return data ? opd_tensor_wrap(data, opd_ints_of(sizes, ndim), strides, (opd_scalar_type)dtype, NULL, NULL)
        : opd_empty_strided(opd_ints_of(sizes, ndim), opd_ints_of(strides, ndim), (opd_scalar_type)dtype);
}
/* Makes a tensor of PyTorch for a result: if the result is one of the arguments, a handle of that argument; otherwise a
   copy.  Returns 0, or 1 and sets an error. */
static int32_t opdi_torch_export(opd_tensor *tensor, void **out) {
    int64_t strides[OPD_MAX_DIMS], step = 1;
    void *data = NULL;
    if (!tensor) { return opdi_torch.undefined(out); }
    for (const opdi_ext_taken *taken = opdi_torch_args; taken; taken = taken->next) {
        if (taken->tensor == tensor) { return opdi_torch.again(taken->handle, out); }
    }
    const int ndim = opd_ndim(tensor);
    const bool meta = opd_tensor_device(tensor).type == OPD_META;
    for (int i = ndim - 1; i >= 0; i--) {
        strides[i] = step;
        step *= opd_size(tensor, i) > 1 ? opd_size(tensor, i) : 1;
    }
    if (opdi_torch_check(opdi_torch.empty(ndim, opd_sizes(tensor), strides, (int32_t)opd_dtype(tensor), meta ? 14 : 0,
                                          -1, out))) {
        return 1;
    }
    if (meta || opd_numel(tensor) == 0 || opdi_torch_check(opdi_torch.data(*out, &data))) { return 0; }
    (void)opd_copy_(opd_tensor_wrap(data, opd_ints_of(opd_sizes(tensor), ndim), strides, opd_dtype(tensor), NULL, NULL),
                    opd_detach(tensor));
    return 0;
}
/* Computes the gradients of an operator's arguments.  values[0] has the gradients of the results, and the other values
   are the arguments.  Sets grads[i] to the gradient of argument i, or to NULL.  Returns 0, or -1 and sets an error. */
static int opdi_torch_gradient(const opdi_torch_row *row, opd_value *values, opd_tensor **grads) {
    const int nargs = row->signature.nargs - 1;
    opd_tensor *outputs[OPD_MAX_ARGS], *given[OPD_MAX_ARGS], *inputs[OPD_MAX_ARGS], *found[OPD_MAX_ARGS];
    opd_value rets[OPD_MAX_ARGS];
    opd_backward_options options;
    int where[OPD_MAX_ARGS], count = 0, ninputs = 0;
    for (int i = 0; i < nargs; i++) {
        opd_tensor *tensor = values[1 + i].tag == OPD_TAG_TENSOR ? values[1 + i].u.t : NULL;
        grads[i] = NULL;
        if (!tensor || !opd_dtype_is_floating(opd_dtype(tensor))) { continue; }
        inputs[ninputs] = opd_tensor_set_requires_grad(opd_detach(tensor), true);
        values[1 + i] = opd_value_tensor(inputs[ninputs]);
        where[ninputs++] = i;
    }
    for (int i = 0; i < OPD_MAX_ARGS; i++) { rets[i] = opd_value_none(); }
    if (!opd_ok() || opd_call_all(row->op, rets, values + 1, nargs)) { return -1; }
    for (int i = 0; i < values[0].n; i++) {
        const opd_value grad = opdi_ext_item(&values[0], i);
        if (grad.tag != OPD_TAG_TENSOR || rets[i].tag != OPD_TAG_TENSOR || !opd_tensor_requires_grad(rets[i].u.t)) {
            continue;
        }
        outputs[count] = rets[i].u.t;
        given[count++] = grad.u.t;
    }
    if (count == 0 || ninputs == 0) { return 0; }
    memset(&options, 0, sizeof options);
    options.grad_outputs = given;
    options.allow_unused = true;
    if (opd_autograd_grad(outputs, count, inputs, ninputs, &options, found)) { return -1; }
    for (int i = 0; i < ninputs; i++) { grads[where[i]] = found[i]; }
    return 0;
}
static void opdi_torch_run(const opdi_torch_row *row, uint64_t *stack) {
    const opdi_ext_signature *signature = &row->signature;
    opd_value values[OPD_MAX_ARGS], rets[OPD_MAX_ARGS];
    opd_tensor *grads[OPD_MAX_ARGS];
    opdi_ext_taken *taken = NULL;
    int rc = 0;
    for (int i = 0; i < signature->nargs; i++) {
        values[i] = opdi_ext_from_word(&opdi_torch.side, &signature->args[i], stack[i], &taken);
    }
    for (int i = 0; i < OPD_MAX_ARGS; i++) { rets[i] = opd_value_none(); }
    if (opd_ok() && row->gradient) {
        rc = opdi_torch_gradient(row, values, grads);
        rets[0] = opd_value_tensors(grads, signature->nargs - 1);
    } else if (opd_ok()) { rc = opd_call_all(row->op, rets, values, signature->nargs); }
    opdi_torch_args = taken;
    for (int i = 0; i < signature->nrets && rc == 0 && opd_ok(); i++) {
        stack[i] = opdi_ext_to_word(&opdi_torch.side, &signature->rets[i], &rets[i]);
    }
    opdi_torch_args = NULL;
    opdi_ext_taken_release(taken);
}
/* The kernel that PyTorch calls.  The operator's stub passes `row` in place of the number of results.  If an error is
   pending afterwards, throws it as a C++ exception. */
static void opdi_torch_kernel(uint64_t *stack, uint64_t nargs, const opdi_torch_row *row) {
    char text[2000];
    (void)nargs;
    opd_scope scope = opd_scope_open();
    opdi_torch_run(row, stack);
    opd_scope_close(&scope);
    if (opd_ok()) { return; }
    snprintf(text, sizeof text, "%s", opd_error_message());
    opd_error_clear();
    void *exception = opdi_aoti_cxx.allocate(2 * sizeof(void *));
    opdi_aoti_cxx.construct(exception, text);
    opdi_aoti_cxx.throws(exception, opdi_aoti_cxx.type, opdi_aoti_cxx.destroy);
}

/* An operator, and the schema under which it is registered in PyTorch, without a namespace.  For NAME(Tensor x), there
   are the schema NAME(Tensor x) and, if `gradient` was true, NAME_vjp(Tensor?[] grads, Tensor x).  Only operators with
   a derivative and without lists of tensors have a NAME_vjp. */
typedef struct opdi_torch_entry { opdi_torch_row row; char ns[64], schema[4100], name[200]; } opdi_torch_entry;
static bool opdi_torch_entry_of(opd_op *op, bool gradient, opdi_torch_entry *entry) {
    char text[4000];
    const opd_op_desc *card = opd_op_card(op);
    const char *colons = strstr(opd_op_name(op), "::"), *dot = colons ? strchr(colons, '.') : NULL;
    if (!colons || !opd_op_schema(op) || colons - opd_op_name(op) >= 60 || strlen(colons) > 150 ||
        opd_schema_print(opd_op_schema(op), text, sizeof text) >= sizeof text) {
        return false;
    }
    memset(entry, 0, sizeof *entry);
    entry->row.op = op;
    entry->row.gradient = gradient;
    memcpy(entry->ns, opd_op_name(op), (size_t)(colons - opd_op_name(op)));
    const char *schema = strstr(text, "::") + 2, *args = strchr(schema, '(') + 1;
    snprintf(entry->name, sizeof entry->name, "%s", colons + 2);
    snprintf(entry->schema, sizeof entry->schema, "%s", schema);
    if (gradient) {
        const bool formula = card && card->backward && card->backward != OPD_NOT_DIFFERENTIABLE;
        if (!card || (!formula && !card->composite) || strchr(args, '!') ||
            strstr(args, "Tensor[]") || strstr(args, "Tensor?[]") || strchr(args, '*')) {
            return false;
        }
        const int length = (int)(dot ? dot - colons - 2 : (long)strlen(colons + 2));
        snprintf(entry->name, sizeof entry->name, "%.*s_vjp%s", length, colons + 2, dot ? dot : "");
        const char *end = strstr(args, ") ->");
        snprintf(entry->schema, sizeof entry->schema, "%s(Tensor?[] grads, %.*s) -> Tensor?[]", entry->name,
                 (int)(end ? end - args : 0), args);
    }
    return opdi_ext_read_signature(entry->schema, &entry->row.signature);
}
/* Returns true if the library's source files have defined the operator, false if its namespace belongs to built-in
   operators. */
static bool opdi_torch_is_defined_here(const opd_op *op) {
    static const char *const builtin[] = {"aten::", "torchvision::", "prim::", "prims::", "_c10d_functional::",
                                          "c10d::", "quantized::", "_quantized::"};
    for (size_t i = 0; i < sizeof builtin / sizeof *builtin; i++) {
        if (strncmp(opd_op_name(op), builtin[i], strlen(builtin[i])) == 0) { return false; }
    }
    return true;
}
static int opdi_torch_register_one(const opdi_torch_entry *entry, opdi_ext_fn fn, void **libraries) {
    static const char *const keys[] = {"CPU", "Meta", "CompositeExplicitAutograd"};
    const opd_op_desc *card = opd_op_card(entry->row.op);
    const bool any = card && card->any;           /* the kernel also runs if no argument is a tensor */
    const int first = any ? 2 : 0, last = any ? 2 : entry->row.gradient ? 0 : 1;
    const uint64_t version = (uint64_t)2 << 56 | (uint64_t)10 << 48;
    if (opdi_torch_check(opdi_torch.fragment(entry->ns, "opdispatch.h", __LINE__, &libraries[0])) ||
        opdi_torch_check(opdi_torch.define(libraries[0], entry->schema))) {
        return -1;
    }
    for (int i = first; i <= last; i++) {
        if (opdi_torch_check(opdi_torch.implementation(entry->ns, keys[i], "opdispatch.h", __LINE__,
                                                       &libraries[1 + i - first])) ||
            opdi_torch_check(opdi_torch.kernel(libraries[1 + i - first], entry->name, fn, version))) {
            return -1;
        }
    }
    return 0;
}
/* Makes the stubs of all entries and registers them.  Returns 0, or undoes all registrations, sets an error and returns
   -1. */
static int opdi_torch_register(opdi_torch_entry *entries, int count) {
    static opd_aoti model;
    opdi_aoti_library library;
    opdi_aoti_bytes file;
    char name[24];
    memset(&library, 0, sizeof library);
    memset(&file, 0, sizeof file);
    model.who = "operators for PyTorch";
    model.path = (char *)(uintptr_t)"stubs";
    opdi_aoti_name(&library, "");
    memset(library.symbols.data, 0, library.symbols.length);
    opdi_aoti_code_common(&library.code);
    for (int i = 0; i < count; i++) {
        const uint64_t row = (uint64_t)(uintptr_t)&entries[i].row;
        snprintf(name, sizeof name, ".k%d", i);
        opdi_aoti_name(&library, name);
        opdi_aoti_code_jump(&library.code, (opdi_aoti_fn)opdi_torch_kernel, &row);
    }
    opdi_aoti_link(&library, "opdtorch.so", &file);
    void **libraries = (void **)calloc(3 * (size_t)count + 1, sizeof *libraries);
    if (!libraries) { (void)opdi_aoti_no_memory(); }
    if (opd_ok()) { (void)opdi_aoti_image_load(&model, &model.stubs, file.data, file.length); }
    for (int i = 0; i < count && opd_ok(); i++) {
        opdi_ext_fn fn = NULL;
        snprintf(name, sizeof name, ".k%d", i);
        opdi_aoti_find(model.stubs.handle, name, &fn);
        (void)opdi_torch_register_one(&entries[i], fn, libraries + 3 * i);
    }
    for (int i = 3 * count - 1; i >= 0 && libraries && !opd_ok(); i--) {
        if (libraries[i]) { (void)opdi_torch.forget(libraries[i]); }
    }
    free(libraries);                              /* the registrations stay until the process ends */
    free(library.code.data);
    free(library.names.data);
    free(library.symbols.data);
    free(file.data);
    return opd_ok() ? 0 : -1;
}
/* Runs when PyTorch loads the library, after the constructors of its source files. */
__attribute__((constructor)) static void opdi_torch_load(void) {
    void *library = dlopen("libtorch_cpu.so", RTLD_NOW | 4 /* RTLD_NOLOAD */);
    const char *missing = library ? opdi_torch_find(library) : "libtorch_cpu.so (import torch first)";
    int count = 0, capacity = 0;
    if (missing) {
        opd_warn("operators for PyTorch: %s is missing: PyTorch 2.10 or later is needed", missing);
        return;
    }
    if (!opdi_aoti_find_cxx(library)) {
        opd_warn("operators for PyTorch: the C++ library is missing");
        return;
    }
    opdi_ext_find_cxx();
    opdi_torch.side.cell_new = opdi_ext_cell_new;
    opdi_torch.side.cell_free = opdi_ext_cell_free;
    opdi_torch.side.tensor_give = opdi_torch_export;
    opdi_torch.side.tensor_take = opdi_torch_import;
    (void)opd_find_quiet("");                     /* runs the registration blocks of the source files */
    for (opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) { capacity += 2; }
    opdi_torch_entry *entries = (opdi_torch_entry *)calloc((size_t)capacity + 1, sizeof *entries);
    for (opd_op *op = opd_op_next(NULL); op && entries; op = opd_op_next(op)) {
        if (!opdi_torch_is_defined_here(op)) { continue; }
        if (!opdi_torch_entry_of(op, false, &entries[count])) {
            opd_warn("operators for PyTorch: %s is left out: its schema has types that cannot be passed to PyTorch",
                     opd_op_name(op));
            continue;
        }
        count++;
        if (opdi_torch_entry_of(op, true, &entries[count])) { count++; }
    }
    if (opd_ok() && entries && count == 0) {
        opd_warn("operators for PyTorch: the library defines no operators (opdispatch.h must be the last source)");
    }
    if (opd_ok() && entries) { (void)opdi_torch_register(entries, count); }
    if (!opd_ok()) {
        opd_warn("operators for PyTorch: they could not be registered: %s", opd_error_message());
        opd_error_clear();
    }
}

