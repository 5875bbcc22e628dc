#include "aoti.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>aoti_ops     compiled models: calls of operators
//----------------------------------------------------------------------------------------------------------------------

//== operators that are called with the arguments of a C function ======================================================

//  The arguments of a C function like aoti_torch_cpu_addmm_out follow from the operator's schema.  Out arguments come
//  first.  A tensor is a handle, an optional value is a pointer that may be NULL, and a list is a pointer and a count.
//  Behind the arguments there are pointers to which results are written.  A single function, opdi_aoti_operator, reads
//  the arguments of all operators, from registers and stack as the operator's stub has stored them.  It uses a
//  description (opdi_aoti_row), which is made from the schema when the model is loaded.

/* Reads the type of a schema at *at, with its suffixes, into `param`, and moves *at past it.  Returns false if the type
   is unknown. */
OPDI_INTERNAL bool opdi_aoti_read_type(const char **at, opdi_aoti_param *param) {
    static const char *const words[] = {"Tensor", "int", "SymInt", "float", "Scalar", "bool", "str", "ScalarType",
                                        "Layout", "MemoryFormat", "Device", "Generator", "float32", "Handle"};
    static const char kinds[] = "TiiddbseeeDGfO";
    const char *here = *at;
    size_t length = strspn(here, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    memset(param, 0, sizeof *param);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i]) == length && strncmp(here, words[i], length) == 0) { param->kind = kinds[i]; }
    }
    here += length;
    if (*here == '(') {                           /* Tensor(a!) */
        const char *end = strchr(here, ')');
        if (!end) { return false; }
        param->out = memchr(here, '!', (size_t)(end - here)) != NULL;
        here = end + 1;
    }
    if (*here == '?' && here[1] == '[') {
        param->optional_items = true;
        here++;
    }
    if (*here == '[') {
        here = strchr(here, ']');
        if (!here) { return false; }
        param->list = true;
        here++;
        if (*here == '(') {                       /* Tensor[](a!) */
            here = strchr(here, ')');
            if (!here) { return false; }
            here++;
        }
    }
    if (*here == '?') {
        param->optional = true;
        here++;
    }
    *at = here;
    return param->kind != 0;
}
/* Returns the position after an argument's name, its default and the comma that follows. */
OPDI_INTERNAL const char *opdi_aoti_next_arg(const char *at) {
    int depth = 0;
    for (char quote = 0; *at && (quote || depth || (*at != ',' && *at != ')')); at++) {
        if (quote) { quote = *at == quote ? (char)0 : quote; }
        else if (*at == '\'' || *at == '"') { quote = *at; }
        else { depth += (*at == '[' || *at == '(') - (*at == ']' || *at == ')'); }
    }
    return *at == ',' ? at + 1 : at;
}
/* Fills a description from a schema, "name.overload(...) -> ...".  Returns false if a C function cannot have one of the
   types. */
OPDI_INTERNAL bool opdi_aoti_read_schema(opdi_aoti_row *row, const char *schema) {
    const char *at = strchr(schema, '(');
    bool keywords = false, outs = false;
    if (!at) { return false; }
    const char *end = schema + strcspn(schema, ".(");         /* end of the name, without the overload */
    const bool inplace = end - schema > 2 && end[-1] == '_' && end[-2] != '_';
    for (at++; *at && *at != ')';) {
        while (*at == ' ') { at++; }
        if (*at == '*' && (at[1] == ',' || at[1] == ')')) {
            keywords = true;
            at = opdi_aoti_next_arg(at);
            continue;
        }
        if (row->nparams == OPDI_AOTI_ARGS || !opdi_aoti_read_type(&at, &row->params[row->nparams])) { return false; }
        row->params[row->nparams].out = row->params[row->nparams].out && keywords;
        outs = outs || row->params[row->nparams].out;
        row->nparams++;
        at = opdi_aoti_next_arg(at);
    }
    int n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < row->nparams; i++) {
            if (row->params[i].out == (pass == 0)) { row->order[n++] = i; }
        }
    }
    row->returns = !outs && !inplace;
    at = strstr(at, "->");
    for (at = at ? at + 2 : ""; *at && row->nrets < 16;) {
        opdi_aoti_param param;
        at += strspn(at, " (,");
        if (*at == ')' || !*at) { break; }
        if (!opdi_aoti_read_type(&at, &param) || param.list) { return !row->returns; }
        row->rets[row->nrets++] = param.kind;
        at += strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789 ");
    }
    return true;
}

/* The arguments of a call, as the operator's stub has stored them.  nints and nfloats count the integers and the floats
   that were read so far. */
typedef struct opdi_aoti_args {
    const uint64_t *ints, *stack;
    const double *floats;
    int nints, nfloats;
    void *memory[2 * OPDI_AOTI_ARGS];             /* lists that were allocated for this call */
    int nmemory;
} opdi_aoti_args;
#if defined(__x86_64__)
enum { OPDI_AOTI_INTS = 6, OPDI_AOTI_FLOATS = 8 };
#else
enum { OPDI_AOTI_INTS = 8, OPDI_AOTI_FLOATS = 8 };
#endif
static uint64_t opdi_aoti_word(opdi_aoti_args *args) {
    return args->nints < OPDI_AOTI_INTS ? args->ints[args->nints++] : *args->stack++;
}
static void *opdi_aoti_pointer(opdi_aoti_args *args) { return (void *)(uintptr_t)opdi_aoti_word(args); }
static double opdi_aoti_double(opdi_aoti_args *args) {
    double number;
    if (args->nfloats < OPDI_AOTI_FLOATS) { return args->floats[args->nfloats++]; }
    memcpy(&number, args->stack++, sizeof number);
    return number;
}
/* Reads a float argument, which is in the lower half of its word. */
static double opdi_aoti_float(opdi_aoti_args *args) {
    const double word = opdi_aoti_double(args);
    float number;
    memcpy(&number, &word, sizeof number);
    return (double)number;
}
static void *opdi_aoti_memory(opdi_aoti_args *args, int64_t count, size_t element) {
    void *memory = count >= 0 && count < INT32_MAX ? calloc((size_t)count + 1, element) : NULL;
    if (memory) { args->memory[args->nmemory++] = memory; }
    else { (void)opdi_aoti_no_memory(); }
    return memory;
}
/* Returns the optional value at `at`.  If it is a tensor, sets *handle to its handle. */
static opd_value opdi_aoti_value_at(const opdi_aoti_param *param, const void *at, void **handle) {
    switch (param->kind) {
    case 'T':
        *handle = *(void *const *)at;
        return opd_value_tensor(*handle ? ((opdi_aoti_handle *)*handle)->tensor : NULL);
    case 'i': return opd_value_int(*(const int64_t *)at);
    case 'b': return opd_value_bool(*(const int32_t *)at != 0);
    case 'e': return opd_value_int(*(const int32_t *)at);
    case 's': return opd_value_str(*(const char *const *)at);
    case 'G': return opd_value_none();
    default: return opd_value_double(*(const double *)at);
    }
}
static opd_value opdi_aoti_tensor_list(opdi_aoti_args *args, const opdi_aoti_param *param, const void *data,
                                       int64_t count) {
    opd_tensor **list = (opd_tensor **)opdi_aoti_memory(args, count, sizeof *list);
    for (int64_t i = 0; list && i < count; i++) {
        void *handle = NULL;
        if (param->optional_items) {
            void *const *at = ((void *const *const *)data)[i];
            handle = at ? *at : NULL;
        } else { handle = ((void *const *)data)[i]; }
        list[i] = handle ? ((opdi_aoti_handle *)handle)->tensor : NULL;
        if (!list[i] && !param->optional_items && param->kind == 'T') { (void)opdi_aoti_tensor(handle); }
    }
    return opd_value_tensors(list, list ? count : 0);
}
static opd_value opdi_aoti_list(opdi_aoti_args *args, const opdi_aoti_param *param) {
    const void *data = opdi_aoti_pointer(args);
    const int64_t count = (int64_t)opdi_aoti_word(args);
    if (param->optional) {
        if (!data) { return opd_value_none(); }
        data = *(const void *const *)data;
    }
    if (param->kind == 'T') { return opdi_aoti_tensor_list(args, param, data, count); }
    if (param->kind == 'O') { return opdi_aoti_tensor_list(args, param, data, (uint32_t)count); }
    if (param->kind == 'i') { return opd_value_ints((const int64_t *)data, count); }
    if (param->kind == 'b') {
        bool *bools = (bool *)opdi_aoti_memory(args, count, sizeof *bools);
        for (int64_t i = 0; bools && i < count; i++) { bools[i] = ((const int32_t *)data)[i] != 0; }
        return opd_value_bools(bools, bools ? count : 0);
    }
    if (param->kind == 'd' && param->optional_items) {                        /* a double ** */
        opd_value *items = (opd_value *)opdi_aoti_memory(args, count, sizeof *items);
        for (int64_t i = 0; items && i < count; i++) {
            const double *number = ((const double *const *)data)[i];
            items[i] = number ? opd_value_double(*number) : opd_value_none();
        }
        return opd_value_list(items, items ? count : 0);
    }
    if (param->kind == 'd') { return opd_value_doubles((const double *)data, count); }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "a list has a kind that compiled models do not use");
    return opd_value_none();
}
/* Reads and returns the next argument of a call.  If it is a tensor, sets *handle to its handle. */
static opd_value opdi_aoti_read(opdi_aoti_args *args, const opdi_aoti_param *param, void **handle) {
    if (param->list) { return opdi_aoti_list(args, param); }
    if (param->kind == 'D') {
        const uint64_t word = opdi_aoti_word(args);
        const int32_t index = (int32_t)opdi_aoti_word(args);
        if (param->optional && !word) { return opd_value_none(); }
        const int32_t number = param->optional ? *(const int32_t *)(uintptr_t)word : (int32_t)word;
        return opd_value_device(opdi_aoti_device(number, index));
    }
    if (param->optional) {
        const void *at = opdi_aoti_pointer(args);
        return at ? opdi_aoti_value_at(param, at, handle) : opd_value_none();
    }
    switch (param->kind) {
    case 'T':
        *handle = opdi_aoti_pointer(args);
        return opd_value_tensor(opdi_aoti_tensor(*handle));
    case 'O':
        *handle = opdi_aoti_pointer(args);
        return opd_value_tensor(*handle ? ((opdi_aoti_handle *)*handle)->tensor : NULL);
    case 'i': return opd_value_int((int64_t)opdi_aoti_word(args));
    case 'b': return opd_value_bool((opdi_aoti_word(args) & 255) != 0);
    case 'f': return opd_value_double(opdi_aoti_float(args));
    case 'e': return opd_value_int((int32_t)opdi_aoti_word(args));
    case 's': return opd_value_str((const char *)opdi_aoti_pointer(args));
    case 'G':
        (void)opdi_aoti_word(args);
        return opd_value_none();
    default: return opd_value_double(opdi_aoti_double(args));
    }
}
/* Stores a result of this kind at `out`, unless `out` is NULL.  Returns 0, or 1 if an error is pending. */
static int32_t opdi_aoti_store_result(char kind, const opd_value *value, void *out) {
    if (!out) { return 0; }
    if (kind == 'T' && value->tag == OPD_TAG_TENSOR) { return opdi_aoti_box(value->u.t, (void **)out); }
    if (kind == 'T') { return opdi_aoti_new_undefined((void **)out); }
    if (kind == 'd') {
        const double number = value->tag == OPD_TAG_FLOAT ? value->u.d : (double)value->u.i;
        memcpy(out, &number, sizeof number);
    } else if (kind == 'b') { *(int32_t *)out = value->u.i != 0; }
    else { *(int64_t *)out = value->tag == OPD_TAG_NONE ? 0 : value->u.i; }
    return 0;
}
/* Called by the stubs of operators: reads the arguments, calls the operator that `row` describes, and stores its
   results.  Returns 0, or 1 and sets an error. */
OPDI_INTERNAL int32_t opdi_aoti_operator(const opdi_aoti_row *row, const uint64_t *ints, const double *floats, const
                                         uint64_t *stack) {
    opd_value values[OPDI_AOTI_ARGS], rets[16];
    void *handles[OPDI_AOTI_ARGS];
    opdi_aoti_args args;
    int rc;
    if (!opd_ok() || opd_interrupted()) { return 1; }
    memset(&args, 0, sizeof args);
    args.ints = ints;
    args.floats = floats;
    args.stack = stack;
    opd_scope scope = opd_scope_open();
    for (int i = 0; i < row->nparams; i++) {
        const int at = row->order[i];
        handles[at] = NULL;
        values[at] = opdi_aoti_read(&args, &row->params[at], &handles[at]);
    }
    for (int i = 0; i < 16; i++) { rets[i] = opd_value_none(); }
    rc = !opd_ok() ? -1 : row->compose ? row->compose(values, handles, rets)
        : opd_call_all(row->op, row->returns ? rets : NULL, values, row->nparams);
    for (int i = 0; rc == 0 && row->returns && i < row->nrets; i++) {
        rc = opdi_aoti_store_result(row->rets[i], &rets[i], opdi_aoti_pointer(&args));
    }
    opd_scope_close(&scope);
    for (int i = 0; i < args.nmemory; i++) { free(args.memory[i]); }
    return rc ? 1 : opdi_aoti_status();
}

