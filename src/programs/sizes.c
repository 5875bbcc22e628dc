#include "programs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>programs     exported programs (files of torch.export): sizes, tensors, integers
//
//  A .pt2 file is a zip file.  For each program, it contains a JSON text and the bytes of tensors.  The text becomes a
//  graph, whose first inputs are the module's tensors.  Conditions and loops become nodes that call a C function.  This
//  function runs the graphs of the condition or loop.  Operators are looked up by name and called as in other graphs.
//  This section uses files, JSON, modules and graphs.
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN
/* Sets an error about the value at `value` in the JSON; if `value` is -1, about the whole text.  Returns -1. */
OPD_PRINTF_LIKE(3, 4) OPDI_INTERNAL int opdi_program_bad(const opdi_program_reader *reader, int64_t value,
                                                         const char *format, ...) {
    char text[512];
    int64_t line, column;
    va_list ap;
    if (!opd_ok()) { return -1; }
    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    opd_json_place(reader->json, value, &line, &column);
    if (!line) { return opdi_bad(&reader->source, OPDI_NOWHERE, "%s", text); }
    return opdi_bad(&reader->source, OPDI_NOWHERE, "line %lld, column %lld: %s", (long long)line, (long long)column,
                    text);
}
/* Returns the value of member `name` of a union, or -1 if the union has another member. */
OPDI_INTERNAL int64_t opdi_program_member(const opd_json *json, int64_t of, const char *name) {
    const int64_t value = opd_json_get(json, of, name);
    return opd_json_kind_of(json, value) == OPD_JSON_NULL ? -1 : value;
}
/* Returns the name of the only member of a union, and sets *value to the member's value.  (In older files, the other
   members exist, but are null.) On failure, returns NULL and sets an error. */
OPDI_INTERNAL const char *opdi_program_union(const opdi_program_reader *reader, int64_t of, int64_t *value) {
    const opd_json *const json = reader->json;
    int64_t at = opd_json_first(json, of), known = 0;
    const bool only = at >= 0 && opd_json_next(json, at) < 0;
    *value = at;
    for (; at >= 0 && !only; at = opd_json_next(json, at)) {
        if (opd_json_kind_of(json, at) == OPD_JSON_NULL) { continue; }
        *value = at;
        known++;
    }
    const char *const key = opd_json_key(json, *value);
    if (!key || (!only && known != 1)) {
        (void)opdi_program_bad(reader, of, "expected an object of one member");
        return NULL;
    }
    return key;
}
/* Returns the number of elements of all lists in a union together. */
OPDI_INTERNAL int64_t opdi_program_union_count(const opd_json *json, int64_t of) {
    int64_t count = 0;
    for (int64_t at = opd_json_first(json, of); at >= 0; at = opd_json_next(json, at)) {
        count += opd_json_count(json, at);
    }
    return count;
}

//== numbers of the file format, and the library's numbers =============================================================

OPDI_INTERNAL opd_scalar_type opdi_program_dtype(int64_t number) {
    static const opd_scalar_type later[] = {OPD_UINT16, OPD_FLOAT8_E4M3FN, OPD_FLOAT8_E5M2, OPD_FLOAT8_E4M3FNUZ,
                                            OPD_FLOAT8_E5M2FNUZ, OPD_FLOAT8_E8M0FNU, OPD_UINT32, OPD_UINT64};
    if (number >= 1 && number <= 12) { return (opd_scalar_type)(number - 1); }
    return number == 13 ? OPD_BFLOAT16 : number >= 28 && number <= 35 ? later[number - 28] : OPD_DTYPE_NONE;
}
/* Converts the file's number for a layout to the number in ATen: strided 0, COO 1, CSR 2, mkldnn 3, CSC 4, BSR 5, BSC
   6.  Returns -1 if the number is unknown. */
OPDI_INTERNAL int64_t opdi_program_layout(int64_t number) {
    static const int8_t numbers[] = {-1, 1, 2, 4, 5, 6, 3, 0};
    return number >= 1 && number <= 7 ? numbers[number] : -1;
}
/* Converts the file's number for a memory format to the number in ATen: contiguous 0, preserve 1, channels_last 2,
   channels_last_3d 3.  Returns -1 if the number is unknown. */
OPDI_INTERNAL int64_t opdi_program_format(int64_t number) {
    static const int8_t numbers[] = {-1, 0, 2, 3, 1};
    return number >= 1 && number <= 4 ? numbers[number] : -1;
}
/* Reads a floating-point number; in the file, infinity and NaN are strings.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_program_float(const opdi_program_reader *reader, int64_t value, double *number) {
    const char *const text = opd_json_text(reader->json, value, NULL);
    const opd_json_kind kind = opd_json_kind_of(reader->json, value);
    if (kind == OPD_JSON_INT || kind == OPD_JSON_FLOAT) { *number = opd_json_double(reader->json, value, 0); }
    else if (text && strcmp(text, "Infinity") == 0) { *number = OPDI_INF; }
    else if (text && strcmp(text, "-Infinity") == 0) { *number = -OPDI_INF; }
    else if (text && strcmp(text, "NaN") == 0) { *number = NAN; }
    else { return opdi_program_bad(reader, value, "expected a number"); }
    return 0;
}
OPDI_INTERNAL int opdi_program_int(const opdi_program_reader *reader, int64_t value, int64_t *number) {
    if (opd_json_kind_of(reader->json, value) != OPD_JSON_INT) {
        return opdi_program_bad(reader, value, "expected an integer");
    }
    *number = opd_json_int(reader->json, value, 0);
    return 0;
}
OPDI_INTERNAL int opdi_program_device(const opdi_program_reader *reader, int64_t value, opd_device *device) {
    char text[80];
    const char *const type = opd_json_text(reader->json, opd_json_get(reader->json, value, "type"), NULL);
    const int64_t index = opd_json_int(reader->json, opd_json_get(reader->json, value, "index"), -1);
    if (!type) { return opdi_program_bad(reader, value, "expected a device"); }
    (void)snprintf(text, sizeof text, "%.40s", type);
    if (opd_device_parse(text, device)) { return -1; }
    device->index = (int32_t)OPDI_MIN(OPDI_MAX(index, -1), 127);
    return 0;
}
OPDI_INTERNAL bool opdi_program_same_device(opd_device device, opd_device other) {
    return device.type == other.type && (device.index < 0 ? 0 : device.index) == (other.index < 0 ? 0 : other.index);
}

//== sizes =============================================================================================================
//
//  A size is an integer, or an expression in the notation of sympy (a library of Python), such as "Mul(Integer(4),
//  Symbol('s39', integer=True))".

/* Returns the number of the symbol named `name`, or -1 if there is none. */
OPDI_INTERNAL int32_t opdi_program_symbol_of(opd_program *program, const char *name, size_t length) {
    int32_t i = 0;
    while (i < program->nsymbols && (strncmp(program->symbols[i].name, name, length) != 0 ||
                                     program->symbols[i].name[length])) { i++; }
    return i < program->nsymbols ? i : -1;
}
/* Returns the position of the symbol's name in a text such as "Mul(Integer(4), Symbol('s0', ...))".  Sets *factor to
   the factor, and *length to the length of the name.  Returns NULL for other expressions. */
OPDI_INTERNAL const char *opdi_program_multiple(const char *text, int64_t *factor, int *length) {
    char *end;
    if (strncmp(text, "Mul(Integer(", 12) != 0) { return NULL; }
    *factor = strtoll(text + 12, &end, 10);
    if (strncmp(end, "), Symbol('", 11) != 0 || *factor < 1) { return NULL; }
    const char *const name = end + 11, *const quote = strchr(name, '\'');
    const char *const last = quote ? strchr(quote, ')') : NULL;
    *length = quote ? (int)(quote - name) : 0;
    return last && strcmp(last, "))") == 0 ? name : NULL;
}
/* If a text is only a symbol, returns the number of the symbol; else -1. */
OPDI_INTERNAL int32_t opdi_program_plain_symbol(opd_program *program, const char *text) {
    static const char begin[] = "Symbol('";
    if (strncmp(text, begin, sizeof begin - 1) != 0) {           /* older files have only the name, such as s0 */
        return opdi_program_symbol_of(program, text, strlen(text));
    }
    const char *const name = text + sizeof begin - 1, *const end = strchr(name, '\'');
    return end && strchr(end, ')') && !strchr(end, ')')[1] ? opdi_program_symbol_of(program, name, (size_t)(end - name))
        : -1;
}

/* Applies the function `name` of sympy to the integers `args`.  Returns false if the function is unknown or the result
   is too large. */
static bool opdi_program_apply(const char *name, size_t length, const int64_t *args, int count, int64_t *result) {
    static const char *const names[] = {"Add", "Mul", "Max", "Min", "FloorDiv", "CleanDiv", "Mod", "PythonMod", "Pow",
                                        "CeilDiv", "CeilToInt", "TruncToInt", "FloorToInt"};
    int k = 0;
    while (k < 13 && (strlen(names[k]) != length || memcmp(names[k], name, length) != 0)) { k++; }
    if (k == 13 || count < 1 || (k >= 4 && k < 10 && count != 2)) { return false; }
    *result = args[0];
    for (int i = 1; i < count; i++) {
        const int64_t x = *result, y = args[i];
        if (k >= 4 && k < 10 && k != 8 && y <= 0) { return false; }
        const int64_t rest = k >= 4 && k < 10 && k != 8 ? (x % y + y) % y : 0;
        switch (k) {
        case 0: *result = x + y; break;
        case 1:
            if (x && (y > OPDI_PROGRAM_SIZE / (x < 0 ? -x : x) || y < -OPDI_PROGRAM_SIZE / (x < 0 ? -x : x))) {
                return false;
            }
            *result = x * y;
            break;
        case 2: *result = OPDI_MAX(x, y); break;
        case 3: *result = OPDI_MIN(x, y); break;
        case 4: case 5: *result = (x - rest) / y; break;
        case 6: case 7: *result = rest; break;
        case 8:
            if (y != 2 || x > (1 << 20) || x < -(1 << 20)) { return false; }
            *result = x * x;
            break;
        case 9: *result = (x - rest) / y + (rest != 0); break;
        default: break;
        }
        if (*result > OPDI_PROGRAM_SIZE || *result < -OPDI_PROGRAM_SIZE) { return false; }
    }
    return true;
}
/* Evaluates the expression at *at, and moves *at to its end.  Returns false if the expression cannot be evaluated, for
   example because a symbol has no value yet. */
OPDI_INTERNAL bool opdi_program_expression(const opdi_program_sizes *sizes, const char **at, int depth,
                                           int64_t *result) {
    const char *const name = *at;
    const size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
    int64_t args[8];
    int count = 0;
    if (!length || name[length] != '(' || depth > 30) { return false; }
    *at = name + length + 1;
    if (length == 7 && memcmp(name, "Integer", 7) == 0) {
        char *end;
        *result = strtoll(*at, &end, 10);
        *at = end + 1;
        return *end == ')' && *result <= OPDI_PROGRAM_SIZE && *result >= -OPDI_PROGRAM_SIZE;
    }
    if (length == 6 && memcmp(name, "Symbol", 6) == 0) {
        const char *const word = *at + 1, *const end = **at == '\'' ? strchr(word, '\'') : NULL;
        const char *const close = end ? strchr(end, ')') : NULL;
        const int32_t symbol = close ? opdi_program_symbol_of((opd_program *)(uintptr_t)sizes->program, word,
                                                              (size_t)(end - word)) : -1;
        if (symbol < 0 || !sizes->bound[symbol]) { return false; }
        *at = close + 1;
        *result = sizes->values[symbol];
        return true;
    }
    do {
        while (**at == ' ' || **at == ',') { ++*at; }
        if (strncmp(*at, "evaluate=False", 14) == 0) { *at += 14; }
        else if (count == 8 || !opdi_program_expression(sizes, at, depth + 1, &args[count++])) { return false; }
    } while (**at == ',');
    if (**at != ')') { return false; }
    ++*at;
    return opdi_program_apply(name, length, args, count, result);
}

/* Reads a size or stride, which must be an integer that is not negative.  Returns 0, or -1 and sets an error. */
static int opdi_program_size(const opdi_program_reader *reader, const opd_json *json, int64_t value, int64_t *size) {
    const int64_t number = opd_json_get(json, value, "as_int");
    if (opd_json_kind_of(json, number) != OPD_JSON_INT || opd_json_int(json, number, -1) < 0) {
        return opdi_program_bad(reader, json == reader->json ? value : -1, "expected a size of 0 or more");
    }
    *size = opd_json_int(json, number, 0);
    return 0;
}

//== tensors in the file ===============================================================================================

/* Returns the number of the entry `name` in a folder, or -1 if there is none. */
OPDI_INTERNAL int64_t opdi_program_entry(const opdi_program_reader *reader, const char *folder, const char *name) {
    opdi_string path = {NULL, 0, 0, false};
    opdi_string_add_n(&path, reader->root, reader->root_bytes);
    opdi_string_add(&path, folder);
    opdi_string_add(&path, name);
    const int64_t i = path.failed ? -1 : opdi_tensor_file_find(reader->file, path.data, path.length);
    opdi_string_free(&path);
    return i;
}
/* Reads a list of sizes or strides into `dims`.  Returns their number, or -1 and sets an error. */
static int opdi_program_dims(const opdi_program_reader *reader, const opd_json *json, int64_t list, int64_t *dims) {
    int count = 0;
    for (int64_t i = opd_json_first(json, list); i >= 0; i = opd_json_next(json, i)) {
        if (count == OPD_MAX_DIMS) {
            return opdi_program_bad(reader, -1, "the tensor has more than %d dims", OPD_MAX_DIMS);
        }
        if (opdi_program_size(reader, json, i, &dims[count++])) { return -1; }
    }
    return count;
}
/* Returns the bytes of an entry as a uint8 tensor, which several tensors may share.  On failure, returns NULL and sets
   an error. */
OPDI_INTERNAL opd_tensor *opdi_program_storage(const opdi_program_reader *reader, int64_t entry) {
    if (!reader->storages[entry]) {
        reader->storages[entry] = opdi_checkpoint_storage(reader->file, opdi_file_entry_of(reader->file, entry));
    }
    return reader->storages[entry];
}
/* Returns the tensor that the description at `payload` describes, in the innermost scope.  `name` is the name of the
   tensor, for errors.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_program_tensor(const opdi_program_reader *reader, const opd_json *json, int64_t payload,
                                       const char *folder, const char *name) {
    const int64_t meta = opd_json_get(json, payload, "tensor_meta");
    const char *const path = opd_json_text(json, opd_json_get(json, payload, "path_name"), NULL);
    const opd_scalar_type dtype = opdi_program_dtype(opd_json_int(json, opd_json_get(json, meta, "dtype"), 0));
    const int64_t entry = path ? opdi_program_entry(reader, folder, path) : -1;
    int64_t dims[2 * OPD_MAX_DIMS], at = 0;
    opdi_source source = reader->file->source;
    source.entry = name;
    if (opd_json_bool(json, opd_json_get(json, payload, "use_pickle"), false) || entry < 0 || dtype == OPD_DTYPE_NONE ||
        opdi_program_layout(opd_json_int(json, opd_json_get(json, meta, "layout"), 0)) != 0) {
        (void)opdi_bad(&source, OPDI_NOWHERE, entry < 0 ? "its bytes are not in the file" : dtype == OPD_DTYPE_NONE
                       ? "its dtype is not supported" : "the tensor is not stored as plain bytes");
        return NULL;
    }
    const int ndim = opdi_program_dims(reader, json, opd_json_get(json, meta, "sizes"), dims);
    if (ndim < 0 || opdi_program_size(reader, json, opd_json_get(json, meta, "storage_offset"), &at)) { return NULL; }
    if (opdi_program_dims(reader, json, opd_json_get(json, meta, "strides"), dims + ndim) != ndim) {
        (void)opdi_bad(&source, OPDI_NOWHERE, "the numbers of strides and sizes are different");
        return NULL;
    }
    opd_tensor *const bytes = opdi_program_storage(reader, entry);
    if (!bytes) { return NULL; }
    const int64_t reach = opdi_extent(dims, dims + ndim, ndim), size = (int64_t)opd_dtype_size(dtype);
    if (bytes->numel == 0 && reach > 0 && reach <= INT64_C(1) << 32) {
        return opd_zeros(opd_ints_of(dims, ndim), dtype);
    }
    if (reach < 0 || at > bytes->numel / size || reach > bytes->numel / size - at) {
        (void)opdi_bad(&source, OPDI_NOWHERE, "the tensor reaches beyond its %lld bytes", (long long)bytes->numel);
        return NULL;
    }
    if (opdi_bools_check(&source, OPDI_NOWHERE, dtype, bytes->data, (size_t)bytes->numel)) { return NULL; }
    opd_tensor *tensor = opdi_tensor_on(bytes->storage, bytes->data ? bytes->data + at * size : NULL, dims, dims + ndim,
                                        ndim, dtype, opdi_place_of(bytes));
    if (!tensor) { return NULL; }
    opdi_ref_up(&bytes->storage->refs);
    return opdi_own(tensor);
}
/* Returns the tensor of kind `kind` in the module that has the same elements of the same storage as `tensor`, or NULL
   if there is none. */
static opd_tensor *opdi_program_shared(const opd_program *program, const opd_tensor *tensor, opd_module_kind kind) {
    for (int64_t i = 0; i < opd_module_count(program->module); i++) {
        opd_tensor *const other = opd_module_at(program->module, i);
        if (opd_module_kind_at(program->module, i) == kind && opdi_same_elements(other, tensor)) { return other; }
    }
    return NULL;
}
/* Adds the tensor `name` of the file to the module, unless the module already has it.  `trained` tells if a parameter
   from a checkpoint requires grad.  Returns the number of the tensor in the module, or -1 and sets an error. */
OPDI_INTERNAL int64_t opdi_program_add(const opdi_program_reader *reader, const char *name, opd_module_kind kind,
                                       bool persistent, bool trained) {
    static const char *const folders[] = {"data/weights/", "data/constants/"};
    opd_module *const module = reader->program->module;
    const int64_t have = opd_module_find(module, name);
    if (have >= 0) { return have; }
    opd_scope scope = opd_scope_open();
    opd_tensor *tensor = NULL;
    bool requires_grad = kind == OPD_MODULE_PARAMETER;
    for (int i = 0; i < 2 && !tensor; i++) {      /* the oldest files store non-persistent buffers as weights */
        const opd_tensor_file *const older = persistent == (i == 0) ? reader->weights : reader->constants;
        if (!older || opd_tensor_file_find(older, name) < 0) { continue; }
        tensor = opd_tensor_file_get(older, name);
        if (!tensor) { break; }
        requires_grad = requires_grad && trained && (opd_dtype_is_floating(opd_dtype(tensor)) ||
                                                     opd_dtype_is_complex(opd_dtype(tensor)));
    }
    for (int i = 0; i < 2 && !tensor && opd_ok(); i++) {
        const opd_json *const json = reader->configs[i];
        const int64_t payload = opd_json_get(json, opd_json_get(json, 0, "config"), name);
        if (payload < 0) { continue; }
        tensor = opdi_program_tensor(reader, json, payload, folders[i], name);
        requires_grad = kind == OPD_MODULE_PARAMETER &&
            opd_json_bool(json, opd_json_get(json, opd_json_get(json, payload, "tensor_meta"), "requires_grad"), true);
    }
    if (!tensor) { (void)opdi_program_bad(reader, -1, "the file has no tensor '%.200s'", name); }
    else {
        opd_tensor *const same = opdi_program_shared(reader->program, tensor, kind);
        if (same) { tensor = same; }
        else if (requires_grad && !opd_tensor_set_requires_grad(tensor, true)) { tensor = NULL; }
    }
    const int rc = tensor && opd_ok() ? opd_module_add(module, name, tensor, kind) : -1;
    opd_scope_close(&scope);
    return rc ? -1 : opd_module_count(module) - 1;
}
OPDI_COLD_END

//== numbers that are computed when the program runs ===================================================================
//
//  Operators of Python on numbers, with their names in programs, such as "_operator.floordiv", "torch.sym_max" and
//  "math.trunc".

typedef enum opdi_program_sym {
    OPDI_SYM_ADD, OPDI_SYM_SUB, OPDI_SYM_MUL, OPDI_SYM_FLOORDIV, OPDI_SYM_MOD, OPDI_SYM_POW, OPDI_SYM_LSHIFT,
    OPDI_SYM_RSHIFT, OPDI_SYM_AND, OPDI_SYM_OR, OPDI_SYM_TRUEDIV, OPDI_SYM_EQ, OPDI_SYM_NE, OPDI_SYM_LT, OPDI_SYM_LE,
    OPDI_SYM_GT, OPDI_SYM_GE, OPDI_SYM_MAX, OPDI_SYM_MIN, OPDI_SYM_NEG, OPDI_SYM_POS, OPDI_SYM_TRUNC, OPDI_SYM_NOT,
    OPDI_SYM_INT, OPDI_SYM_FLOAT, OPDI_SYM_SQRT, OPDI_SYM_ITE, OPDI_SYM_COUNT
} opdi_program_sym;
OPDI_INTERNAL int opdi_sym_run(const opdi_gnode *node, const opd_value *args, opd_value *rets);
static const opdi_gfunction opdi_sym_functions[] = {
    {"_operator.add", opdi_sym_run, false}, {"_operator.sub", opdi_sym_run, false},
    {"_operator.mul", opdi_sym_run, false}, {"_operator.floordiv", opdi_sym_run, false},
    {"_operator.mod", opdi_sym_run, false}, {"_operator.pow", opdi_sym_run, false},
    {"_operator.lshift", opdi_sym_run, false}, {"_operator.rshift", opdi_sym_run, false},
    {"_operator.and_", opdi_sym_run, false}, {"_operator.or_", opdi_sym_run, false},
    {"_operator.truediv", opdi_sym_run, false}, {"_operator.eq", opdi_sym_run, false},
    {"_operator.ne", opdi_sym_run, false}, {"_operator.lt", opdi_sym_run, false},
    {"_operator.le", opdi_sym_run, false}, {"_operator.gt", opdi_sym_run, false},
    {"_operator.ge", opdi_sym_run, false}, {"torch.sym_max", opdi_sym_run, false},
    {"torch.sym_min", opdi_sym_run, false}, {"_operator.neg", opdi_sym_run, false},
    {"_operator.pos", opdi_sym_run, false}, {"math.trunc", opdi_sym_run, false},
    {"torch.sym_not", opdi_sym_run, false}, {"torch.sym_int", opdi_sym_run, false},
    {"torch.sym_float", opdi_sym_run, false}, {"torch.sym_sqrt", opdi_sym_run, false},
    {"torch.sym_ite", opdi_sym_run, false}};

/* Applies an operator to two integers.  Returns 0, or -1 and sets an error if the result is not an integer that fits in
   int64_t. */
static int opdi_sym_ints(const char *name, opdi_program_sym sym, int64_t x, int64_t y, int64_t *result) {
    const uint64_t a = (uint64_t)x, b = (uint64_t)y;
    bool over = false;
    switch (sym) {
    case OPDI_SYM_ADD:
        over = y > 0 ? x > INT64_MAX - y : x < INT64_MIN - y;
        *result = (int64_t)(a + b);
        break;
    case OPDI_SYM_SUB:
        over = y < 0 ? x > INT64_MAX + y : x < INT64_MIN + y;
        *result = (int64_t)(a - b);
        break;
    case OPDI_SYM_MUL:
        over = x && y && (x == -1 ? y == INT64_MIN : y == -1 ? x == INT64_MIN : (int64_t)(a * b) / y != x);
        *result = (int64_t)(a * b);
        break;
    case OPDI_SYM_FLOORDIV: case OPDI_SYM_MOD:
        if (!y) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: integer division or modulo by zero", name); }
        over = y == -1 && x == INT64_MIN && sym == OPDI_SYM_FLOORDIV;
        if (y == -1) { *result = sym == OPDI_SYM_MOD ? 0 : (int64_t)(0 - a); }
        else if (sym == OPDI_SYM_MOD) { *result = x % y + (x % y && (x < 0) != (y < 0) ? y : 0); }
        else { *result = x / y - (x % y && (x < 0) != (y < 0)); }
        break;
    case OPDI_SYM_POW:
        for (*result = 1; y > 0 && !over; y--) {
            if (*result == 0 || *result == 1) { y = x == 0 || x == 1 ? 1 : y; }
            if (opdi_sym_ints(name, OPDI_SYM_MUL, *result, x, result)) { return -1; }
            if (*result == -1 && x == -1) { y = 1 + (y - 1) % 2; }
        }
        break;
    case OPDI_SYM_LSHIFT: case OPDI_SYM_RSHIFT:
        if (y < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: negative shift count", name); }
        if (sym == OPDI_SYM_RSHIFT) { *result = y > 62 ? (x < 0 ? -1 : 0) : x < 0 ? ~(~x >> y) : x >> y; }
        else {
            over = x && (y > 63 || x > INT64_MAX >> y || x < -(INT64_MAX >> y) - 1);
            *result = over || !x ? 0 : (int64_t)(a << y);
        }
        break;
    case OPDI_SYM_AND: *result = x & y; break;
    default: *result = x | y; break;
    }
    return over ? opd_fail(OPD_ERROR_ARGUMENT, "%s: the result is larger than 64 bits hold", name) : 0;
}
static bool opdi_sym_is_zero(double number) { return number >= 0 && number <= 0; }
/* Returns the quotient x / y of two integers, rounded only once; y must not be 0.  Computes the quotient of the
   absolute values with more bits than a double has, and sets its last bit if there is a remainder. */
static double opdi_sym_quotient(int64_t x, int64_t y) {
    uint64_t rest = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    const uint64_t by = y < 0 ? 0 - (uint64_t)y : (uint64_t)y;
    uint64_t whole = rest / by;
    int scale = 0;
    rest %= by;
    while (rest && whole < (uint64_t)1 << 62) {
        const bool more = rest >= by - rest;
        rest = more ? rest - (by - rest) : 2 * rest;
        whole = 2 * whole + more;
        scale--;
    }
    const double amount = ldexp((double)(whole | (rest != 0)), scale);
    return (x < 0) != (y < 0) ? -amount : amount;
}
/* Returns x // y (floor division of Python) and sets *mod to x % y, as float_divmod of CPython does; y must not be
   0. */
static double opdi_sym_divmod(double x, double y, double *mod) {
    *mod = fmod(x, y);
    double quotient = (x - *mod) / y;
    if (opdi_sym_is_zero(*mod)) { *mod = copysign(0, y); }
    else if ((y < 0) != (*mod < 0)) {
        *mod += y;
        quotient -= 1;
    }
    if (opdi_sym_is_zero(quotient)) { return copysign(0, x / y); }
    const double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}
static int opdi_sym_pow(const char *name, double x, double y, double *result) {
    if (opdi_sym_is_zero(x) && y < 0 && isfinite(y)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: 0 cannot be raised to a negative power", name);
    }
    if (x < 0 && isfinite(x) && isfinite(y) && (floor(y) < y)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: a negative number to the power of a fraction is complex", name);
    }
    *result = pow(x, y);
    return isinf(*result) && isfinite(x) && isfinite(y)
        ? opd_fail(OPD_ERROR_ARGUMENT, "%s: the result is larger than a double holds", name) : 0;
}
static int opdi_sym_floats(const char *name, opdi_program_sym sym, double x, double y, double *result) {
    double rest;
    switch (sym) {
    case OPDI_SYM_ADD: *result = x + y; return 0;
    case OPDI_SYM_SUB: *result = x - y; return 0;
    case OPDI_SYM_MUL: *result = x * y; return 0;
    case OPDI_SYM_POW: return opdi_sym_pow(name, x, y, result);
    case OPDI_SYM_TRUEDIV: case OPDI_SYM_FLOORDIV: case OPDI_SYM_MOD:
        if (opdi_sym_is_zero(y)) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: division by zero", name); }
        if (sym == OPDI_SYM_TRUEDIV) { *result = x / y; }
        else if (sym == OPDI_SYM_FLOORDIV) { *result = opdi_sym_divmod(x, y, &rest); }
        else { (void)opdi_sym_divmod(x, y, result); }
        return 0;
    default: return opd_fail(OPD_ERROR_ARGUMENT, "%s: the arguments must be integers", name);
    }
}
/* Compares an integer with a double exactly.  Returns -1 if x < y, 0 if they are equal, 1 if x > y, or 2 if y is
   NaN. */
static int opdi_sym_compare_mixed(int64_t x, double y) {
    if (isnan(y)) { return 2; }
    if (y >= 9223372036854775808.0) { return -1; }
    if (y < -9223372036854775808.0) { return 1; }
    const int64_t whole = (int64_t)y;
    const double rest = y - (double)whole;
    return x != whole ? (x > whole) - (x < whole) : (rest < 0) - (rest > 0);
}
/* Compares two numbers exactly.  Returns -1 if x < y, 0 if they are equal, 1 if x > y, or 2 if either is NaN. */
OPDI_INTERNAL int opdi_sym_compare(const opd_value *x, const opd_value *y) {
    if (x->tag != OPD_TAG_FLOAT && y->tag != OPD_TAG_FLOAT) { return (x->u.i > y->u.i) - (x->u.i < y->u.i); }
    if (x->tag != OPD_TAG_FLOAT) { return opdi_sym_compare_mixed(x->u.i, y->u.d); }
    if (y->tag != OPD_TAG_FLOAT) {
        const int order = opdi_sym_compare_mixed(y->u.i, x->u.d);
        return order == 2 ? 2 : -order;
    }
    return x->u.d < y->u.d ? -1 : x->u.d > y->u.d ? 1 : x->u.d >= y->u.d ? 0 : 2;
}
/* Returns whether a number is true in Python; NaN is true. */
static bool opdi_sym_is_true(const opd_value *value) {
    return value->tag == OPD_TAG_FLOAT ? !opdi_sym_is_zero(value->u.d) : value->u.i != 0;
}
/* Applies an operator to a single number.  Returns 0, or -1 and sets an error. */
static int opdi_sym_one(const char *name, opdi_program_sym sym, const opd_value *value, opd_value *ret) {
    const bool integral = value->tag != OPD_TAG_FLOAT;
    const double number = integral ? (double)value->u.i : value->u.d;
    switch (sym) {
    case OPDI_SYM_NEG:
        if (integral && value->u.i == INT64_MIN) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: out of range", name); }
        *ret = integral ? opd_value_int(-value->u.i) : opd_value_double(-number);
        return 0;
    case OPDI_SYM_POS: *ret = integral ? opd_value_int(value->u.i) : *value; return 0;
    case OPDI_SYM_NOT: *ret = opd_value_bool(!opdi_sym_is_true(value)); return 0;
    case OPDI_SYM_FLOAT: *ret = opd_value_double(number); return 0;
    case OPDI_SYM_SQRT:
        if (number < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: math domain error", name); }
        *ret = opd_value_double(sqrt(number));
        return 0;
    default:                                      /* math.trunc, torch.sym_int */
        if (!integral && !opdi_fits_i64(number)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: cannot convert %g to integer", name, number);
        }
        *ret = opd_value_int(integral ? value->u.i : (int64_t)number);
        return 0;
    }
}
/* Runs a node that computes with numbers.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_sym_run(const opdi_gnode *node, const opd_value *args, opd_value *rets) {
    const opdi_program_sym sym = (opdi_program_sym)(node->function - opdi_sym_functions);
    const char *const name = node->function->name;
    const int want = sym == OPDI_SYM_ITE ? 3 : sym >= OPDI_SYM_NEG ? 1 : 2;
    if (node->nin != want || node->nout != 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s takes %d argument(s), not %d", name, want, node->nin);
    }
    for (int i = 0; i < want; i++) {
        if (args[i].tag == OPD_TAG_INT || args[i].tag == OPD_TAG_FLOAT || args[i].tag == OPD_TAG_BOOL) { continue; }
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: argument %d is not a number", name, i + 1);
    }
    if (sym >= OPDI_SYM_NEG && sym != OPDI_SYM_ITE) { return opdi_sym_one(name, sym, args, rets); }
    const opd_value *const x = &args[0], *const y = &args[1];
    const bool integral = x->tag != OPD_TAG_FLOAT && y->tag != OPD_TAG_FLOAT;
    if (sym == OPDI_SYM_ITE) {
        *rets = args[opdi_sym_is_true(x) ? 1 : 2];
        return 0;
    }
    if (sym >= OPDI_SYM_EQ) {
        const int order = opdi_sym_compare(x, y);
        const opd_value *const best = order == (sym == OPDI_SYM_MAX ? -1 : 1) ? y : x;     /* if equal or NaN: x */
        switch (sym) {
        case OPDI_SYM_EQ: *rets = opd_value_bool(order == 0); return 0;
        case OPDI_SYM_NE: *rets = opd_value_bool(order != 0); return 0;
        case OPDI_SYM_LT: *rets = opd_value_bool(order == -1); return 0;
        case OPDI_SYM_LE: *rets = opd_value_bool(order <= 0); return 0;
        case OPDI_SYM_GT: *rets = opd_value_bool(order == 1); return 0;
        case OPDI_SYM_GE: *rets = opd_value_bool(order == 0 || order == 1); return 0;
        default:
            *rets = integral ? *best : opd_value_double(best->tag == OPD_TAG_FLOAT ? best->u.d : (double)best->u.i);
            return 0;
        }
    }
    if (integral && sym != OPDI_SYM_TRUEDIV && !(sym == OPDI_SYM_POW && y->u.i < 0)) {
        const bool logical = x->tag == OPD_TAG_BOOL && y->tag == OPD_TAG_BOOL &&
            (sym == OPDI_SYM_AND || sym == OPDI_SYM_OR);
        int64_t result = 0;
        if (opdi_sym_ints(name, sym, x->u.i, y->u.i, &result)) { return -1; }
        *rets = logical ? opd_value_bool(result != 0) : opd_value_int(result);
        return 0;
    }
    if (integral && sym == OPDI_SYM_TRUEDIV && y->u.i) {
        *rets = opd_value_double(opdi_sym_quotient(x->u.i, y->u.i));
        return 0;
    }
    double number = 0;
    if (opdi_sym_floats(name, sym, x->tag == OPD_TAG_FLOAT ? x->u.d : (double)x->u.i,
                        y->tag == OPD_TAG_FLOAT ? y->u.d : (double)y->u.i, &number)) { return -1; }
    *rets = opd_value_double(number);
    return 0;
}
OPDI_COLD_BEGIN
/* Returns the function of numbers whose name is `target`, or NULL if there is none. */
OPDI_INTERNAL const opdi_gfunction *opdi_sym_find(const char *target) {
    for (int i = 0; i < OPDI_SYM_COUNT; i++) {
        const char *const name = opdi_sym_functions[i].name;
        const bool sym = strncmp(target, "torch._sym_", 11) == 0 && strncmp(name, "torch.sym_", 10) == 0;
        const bool plain = strncmp(target, "operator.", 9) == 0 && name[0] == '_';      /* without the '_' */
        if (sym ? strcmp(target + 11, name + 10) == 0 : strcmp(target, name + plain) == 0) {
            return &opdi_sym_functions[i];
        }
    }
    return NULL;
}
OPDI_COLD_END
