#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>graph_text   graphs that are read from text, and graphs that are built by calls of public functions
//----------------------------------------------------------------------------------------------------------------------

//== reading the text ==================================================================================================

OPDI_INTERNAL int opdi_graph_parse_fail(opdi_graph_parser *parser, const char *format, ...) OPD_PRINTF_LIKE(2, 3);
/* Sets an error with the line number in the text or, if a public function builds the graph, with the name of this
   function.  If an error is already set, keeps it.  Returns -1. */
OPDI_INTERNAL int opdi_graph_parse_fail(opdi_graph_parser *parser, const char *format, ...) {
    char text[600];
    va_list ap;
    if (!opd_ok()) { return -1; }
    va_start(ap, format);
    (void)vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    if (parser->who) { return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s", parser->who, text); }
    if (!*parser->at || *parser->at == '\n') {
        return opd_fail(OPD_ERROR_ARGUMENT, "line %d of the graph: %s", parser->line, text);
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "line %d of the graph: %s, at '%.*s'", parser->line, text,
                    (int)OPDI_MIN(strcspn(parser->at, "\n"), 40), parser->at);
}

/* Skips blanks and comments.  If `lines` is true, also skips ends of lines. */
OPDI_INTERNAL void opdi_graph_parse_blanks(opdi_graph_parser *parser, bool lines) {
    for (;; parser->at++) {
        if (*parser->at == '#') { parser->at += strcspn(parser->at, "\n"); }
        if (*parser->at == '\n' && lines) {
            parser->line++;
            continue;
        }
        if (*parser->at != ' ' && *parser->at != '\t' && *parser->at != '\r') { return; }
    }
}
/* Skips blanks.  If the text `token` comes next, skips it and returns true; otherwise returns false. */
OPDI_INTERNAL bool opdi_graph_parse_is(opdi_graph_parser *parser, const char *token) {
    const size_t length = strlen(token);
    opdi_graph_parse_blanks(parser, false);
    if (strncmp(parser->at, token, length) != 0) { return false; }
    parser->at += length;
    return true;
}
OPDI_INTERNAL int opdi_graph_parse_want(opdi_graph_parser *parser, const char *token) {
    return opdi_graph_parse_is(parser, token) ? 0 : opdi_graph_parse_fail(parser, "expected '%s'", token);
}
static int opdi_graph_parse_int(opdi_graph_parser *parser, int64_t *values) {
    char *end;
    opdi_graph_parse_blanks(parser, false);
    if (*parser->at != '-' && (*parser->at < '0' || *parser->at > '9')) {
        return opdi_graph_parse_fail(parser, "expected a number");
    }
    errno = 0;
    *values = strtoll(parser->at, &end, 10);
    if (errno || end == parser->at) { return opdi_graph_parse_fail(parser, "expected a number"); }
    parser->at = end;
    return 0;
}
static size_t opdi_graph_parse_word(const char *at) { return strspn(at, OPDI_GRAPH_NAME); }

static opdi_graph_name *opdi_graph_parse_slot(opdi_graph_parser *parser, const char *name, size_t length) {
    return opdi_graph_name_slot(parser->names, parser->size, name, length);
}
OPDI_INTERNAL int opdi_graph_parse_grow(opdi_graph_parser *parser) {
    const int64_t size = parser->size;
    opdi_graph_name *old = parser->names;
    if (2 * (parser->used + 1) <= size) { return 0; }
    parser->size = OPDI_MAX(64, 2 * size);
    parser->names = (opdi_graph_name *)opdi_scope_alloc((size_t)parser->size * sizeof *parser->names);
    if (!parser->names) {
        parser->names = old;
        parser->size = size;
        return -1;
    }
    memset(parser->names, 0, (size_t)parser->size * sizeof *parser->names);
    for (int64_t i = 0; i < size; i++) {
        if (old[i].name) { *opdi_graph_parse_slot(parser, old[i].name, strlen(old[i].name)) = old[i]; }
    }
    return 0;
}

/* Renames the value in `slot` ("x" becomes "x.1"), because a later value in the text has the same name.  The name then
   means the later value.  Returns 0, or -1 and sets an error. */
static int opdi_graph_parse_rename(opdi_graph_parser *parser, opdi_graph_name *slot) {
    opdi_gvalue *old = slot->value;
    int32_t suffix;
    const int base = opdi_graph_name_base(slot->name, &suffix);
    char *name = (char *)opdi_arena_alloc(&parser->graph->arena, (size_t)base + 13);
    opdi_graph_name *at;
    if (!name) { return -1; }
    suffix = OPDI_MAX(suffix, slot->suffix);  /* begins at the stored suffix, so that not all earlier suffixes are tried
                                                 again */
    do { (void)snprintf(name, (size_t)base + 13, "%.*s.%d", base, slot->name, suffix++); }
    while ((at = opdi_graph_parse_slot(parser, name, strlen(name)))->name);
    slot->suffix = suffix;
    at->name = old->name = name;
    at->value = old;
    parser->used++;
    return 0;
}

/* Enters a new value into the table of names, so that its name means this value from here on in the text.  If the name
   is a number, it becomes the value's number, which no other value may have.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_parse_enter(opdi_graph_parser *parser, opdi_gvalue *value) {
    const char *const name = value->name;
    char *end;
    if (opdi_graph_parse_grow(parser)) { return -1; }
    opdi_graph_name *slot = opdi_graph_parse_slot(parser, name, strlen(name));
    if (slot->name && !slot->value->name) {
        return opdi_graph_parse_fail(parser, "the name %%%.100s is used already", name);
    }
    if (slot->name && opdi_graph_parse_rename(parser, slot)) { return -1; }
    parser->used += !slot->name;
    slot->name = name;
    slot->value = value;
    errno = 0;
    long id = strtol(name, &end, 10);
    value->id = -1;                               /* a value with a name does not need a number */
    if (*name < '0' || *name > '9') { return 0; }
    if (*end || errno || id > 1000000000) { return opdi_graph_parse_fail(parser, "%%%.100s is not a name", name); }
    value->name = NULL;
    value->id = (int32_t)id;
    parser->graph->next_id = OPDI_MAX(parser->graph->next_id, (int32_t)id + 1);
    return 0;
}
/* Reads the "%name" of a new value and makes the value.  The caller then calls opdi_graph_parse_enter.  Returns the
   value, or NULL and sets an error. */
static opdi_gvalue *opdi_graph_parse_new(opdi_graph_parser *parser, opdi_gnode *node) {
    opdi_gvalue *value;
    if (opdi_graph_parse_want(parser, "%")) { return NULL; }
    size_t count = opdi_graph_parse_word(parser->at);
    if (count == 0) {
        (void)opdi_graph_parse_fail(parser, "expected a name");
        return NULL;
    }
    if (!(value = opdi_gvalue_new(parser->graph, node, OPD_TAG_NONE)) ||
        !(value->name = opdi_arena_copy(&parser->graph->arena, parser->at, count))) { return NULL; }
    parser->graph->next_id--;
    parser->at += count;
    return value;
}
/* Reads the "%name" of an existing value.  Returns the value, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_graph_parse_use(opdi_graph_parser *parser) {
    if (opdi_graph_parse_want(parser, "%")) { return NULL; }
    size_t count = opdi_graph_parse_word(parser->at);
    const opdi_graph_name *slot = parser->size ? opdi_graph_parse_slot(parser, parser->at, count) : NULL;
    if (!slot || !slot->value) {
        (void)opdi_graph_parse_fail(parser, "Cannot find a variable with name '%.*s'", (int)OPDI_MIN(count, 100),
                                    parser->at);
        return NULL;
    }
    parser->at += count;
    return slot->value;
}

/* Reads a size or stride: a number, or an expression of open sizes; then *expr is the expression.  Returns 0, or -1 and
   sets an error. */
static int opdi_graph_parse_dim(opdi_graph_parser *parser, int64_t *number, const opdi_gexpr **expr) {
    static const char digits[] = "0123456789";
    opdi_graph_parse_blanks(parser, false);
    const char *const at = parser->at, *const end = at + strspn(at, digits);
    *expr = NULL;
    if (end != at && (*end == ',' || *end == ')' || *end == ']')) { return opdi_graph_parse_int(parser, number); }
    if (*at != '(' && *at != '?' && !strchr(OPDI_GRAPH_NAME "-", *at)) {
        return opdi_graph_parse_int(parser, number);
    }
    *number = 0;
    const char *next = at;
    if ((*expr = opdi_gexpr_read(parser->graph, &next, true)) == NULL) {
        return opd_ok() ? opdi_graph_parse_fail(parser, "expected a number or an expression of sizes") : -1;
    }
    if ((*expr)->kind == OPDI_GEXPR_NUMBER) {
        *number = (*expr)->number;
        *expr = NULL;
    }
    parser->at = next;
    return 0;
}
/* Reads the properties after a dtype, such as "(2, 3, strides=[3, 1], requires_grad=0, device=cpu)", and stores them in
   `value`.  Returns 0, or -1 and sets an error. */
static int opdi_graph_parse_shape(opdi_graph_parser *parser, opdi_gvalue *value) {
    int64_t dims[2 * OPD_MAX_DIMS], x;
    const opdi_gexpr *open[2 * OPD_MAX_DIMS] = {NULL};
    int ndim = 0, count = -1;
    bool known = true;
    if (opdi_graph_parse_want(parser, "(")) { return -1; }
    while (!opdi_graph_parse_is(parser, ")")) {
        if (opdi_graph_parse_is(parser, ",")) { continue; }
        if (opdi_graph_parse_is(parser, "strides=[")) {
            for (count = 0; !opdi_graph_parse_is(parser, "]"); count++) {
                if (count >= ndim) { return opdi_graph_parse_fail(parser, "there are more strides than sizes"); }
                if (count && opdi_graph_parse_want(parser, ",")) { return -1; }
                if (opdi_graph_parse_is(parser, "*")) {
                    known = false;
                    continue;
                }
                if (opdi_graph_parse_dim(parser, &dims[ndim + count], &open[ndim + count])) { return -1; }
            }
        } else if (opdi_graph_parse_is(parser, "requires_grad=")) {
            if (opdi_graph_parse_int(parser, &x)) { return -1; }
            value->requires_grad = x != 0;
        } else if (opdi_graph_parse_is(parser, "device=")) {
            char name[40];
            opd_device device;
            const size_t len = strcspn(parser->at, ",) \n");
            (void)snprintf(name, sizeof name, "%.*s", (int)OPDI_MIN(len, 39), parser->at);
            if (opd_device_parse(name, &device)) { return -1; }
            value->backend = (uint8_t)device.type;
            value->index = (int8_t)device.index;
            parser->at += len;
        } else {
            if (count >= 0) { return opdi_graph_parse_fail(parser, "a size follows the strides"); }
            if (ndim == OPD_MAX_DIMS) {
                return opdi_graph_parse_fail(parser, "there are more than %d dims", OPD_MAX_DIMS);
            }
            if (opdi_graph_parse_is(parser, "*")) {
                known = false;
                ndim++;
            }
            else if (opdi_graph_parse_dim(parser, &dims[ndim], &open[ndim])) { return -1; }
            else { ndim++; }
        }
    }
    if (count >= 0 && count != ndim) {
        return opdi_graph_parse_fail(parser, "there are %d sizes, but %d strides", ndim, count);
    }
    if (!known) {  /* a value without sizes has the type Tensor, and its other properties are dropped */
        value->dtype = -1;
        return 0;
    }
    if (count < 0) { opdi_strides_fill(dims, dims + ndim, ndim); }
    value->ndim = (uint8_t)ndim;
    value->dims = (int64_t *)opdi_graph_alloc(parser->graph, 2 * (size_t)ndim * sizeof *dims);
    if (!value->dims) { return -1; }
    memcpy(value->dims, dims, 2 * (size_t)ndim * sizeof *dims);
    return opdi_gvalue_open_set(parser->graph, value, open, 2 * ndim);
}

/* Reads a type that a tag alone cannot tell, such as a tuple or dict, and makes it the type of `value`.  Returns 0, or
   -1 and sets an error. */
static int opdi_graph_parse_gtype(opdi_graph_parser *parser, opdi_gvalue *value) {
    const char *at = parser->at;
    const opdi_gtype *const type =
        opdi_graph_space(parser->graph) ? opdi_gtype_parse(parser->graph->space, &at) : NULL;
    if (!type) { return opdi_graph_parse_fail(parser, "expected a type"); }
    parser->at = at;
    opdi_gvalue_typed(value, type);
    return 0;
}
/* Reads the type of `value`.  If the type is a list, sets *word to the name of its element type.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_graph_parse_type(opdi_graph_parser *parser, opdi_gvalue *value, const char **word) {
    static const struct { const char *word; int32_t tag, list; } words[] = {
        {"Tensor", OPD_TAG_TENSOR, OPD_TAG_TENSORS}, {"int", OPD_TAG_INT, OPD_TAG_INTS},
        {"float", OPD_TAG_FLOAT, OPD_TAG_FLOATS}, {"bool", OPD_TAG_BOOL, OPD_TAG_BOOLS},
        {"complex", OPD_TAG_COMPLEX, OPD_TAG_LIST}, {"str", OPD_TAG_STR, OPD_TAG_LIST},
        {"Device", OPD_TAG_DEVICE, OPD_TAG_LIST}, {"Scalar", OPD_TAG_INT, OPD_TAG_LIST},
        {"NoneType", OPD_TAG_NONE, OPD_TAG_LIST}, {"Any", OPD_TAG_OBJECT, OPD_TAG_LIST},
        {"Generator", OPD_TAG_OBJECT, OPD_TAG_LIST}};
    opdi_graph_parse_blanks(parser, false);
    const char *const start = parser->at;
    size_t length = opdi_graph_parse_word(parser->at);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].word) != length || memcmp(parser->at, words[i].word, length) != 0) { continue; }
        parser->at += length;
        value->tag = words[i].tag;
        *word = words[i].word;
        const bool optional = opdi_graph_parse_is(parser, "?");
        if (optional && value->tag == OPD_TAG_TENSOR) { *word = "Tensor?"; }
        const bool list = opdi_graph_parse_is(parser, "[]");
        if (list) { value->tag = words[i].list; }
        const bool scalar = strcmp(*word, "Scalar") == 0;
        if (*parser->at == '?' || *parser->at == '[' || (optional && !(list && value->tag == OPD_TAG_TENSORS)) ||
            words[i].tag == OPD_TAG_OBJECT ||
            (list ? value->tag == OPD_TAG_LIST && !scalar : scalar)) {
            parser->at = start;
            return opdi_graph_parse_gtype(parser, value);
        }
        return 0;
    }
    opd_scalar_type dtype = OPD_DTYPE_NONE;
    for (int i = 0; i < 128 && dtype == OPD_DTYPE_NONE; i++) {
        const char *name = opdi_element_size(i) ? opd_dtype_cname((opd_scalar_type)i) : "";
        if (length && strlen(name) == length && memcmp(parser->at, name, length) == 0) { dtype = (opd_scalar_type)i; }
    }
    if (dtype == OPD_DTYPE_NONE && strncmp(parser->at, "INT", 3) == 0) { dtype = opdi_block_named(parser->at, length); }
    if (dtype != OPD_DTYPE_NONE) {
        parser->at += length;
        value->tag = OPD_TAG_TENSOR;
        value->dtype = dtype;
        return opdi_graph_parse_shape(parser, value);
    }
    return opdi_graph_parse_gtype(parser, value);
}
/* Reads "%name : type" and makes the value.  If there is no type, and the value is a result of `node`, its tag is
   OPD_TAG_DEFAULT until the operator of the node is known.  Returns the value, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_graph_parse_declare(opdi_graph_parser *parser, opdi_gnode *node, const char **word) {
    opdi_gvalue *value = opdi_graph_parse_new(parser, node);
    *word = "Tensor";
    if (!value) { return NULL; }
    value->tag = node ? OPD_TAG_DEFAULT : OPD_TAG_TENSOR;
    if (opdi_graph_parse_is(parser, ":") && opdi_graph_parse_type(parser, value, word)) { return NULL; }
    return value;
}

/* Reads a number into *value: an int if it is written as an integer, otherwise a float.  Returns 0, or -1 and sets an
   error. */
static int opdi_graph_parse_number(opdi_graph_parser *parser, opd_value *value) {
    char *end;
    const char *at, *start;
    opdi_graph_parse_blanks(parser, false);
    at = start = parser->at;
    *value = opd_value_double(strtod(at, &end));
    if (end == at) { return opdi_graph_parse_fail(parser, "expected a number"); }
    parser->at = end;
    for (; at < end; at++) {
        if (*at == '.' || *at == 'e' || *at == 'n') { return 0; }
    }
    at = start;
    errno = 0;
    *value = opd_value_int(strtoll(at, NULL, 10));
    return errno ? opdi_graph_parse_fail(parser, "the number is out of range") : 0;
}

/* Reads a complex number such as 1.5-2j into pair[2]. */
static void opdi_graph_parse_complex(opdi_graph_parser *parser, double *pair) {
    for (int i = 0; i < 2; i++) {
        char *end;
        pair[i] = strtod(parser->at, &end);
        parser->at = end;
    }
    (void)opdi_graph_parse_is(parser, "j");
}
/* Returns the dtype of a constant tensor whose declared type does not tell it.  `after` is the text after its elements:
   " CPULongType{2} ]" if it has a dim. */
static opd_scalar_type opdi_graph_tensor_dtype(const opd_value *elements, int64_t count, const char *after) {
    opd_scalar_type dtype = OPD_FLOAT32;
    char word[40];
    for (int64_t i = 0; i < count; i++) {         /* of floats, only six digits are printed */
        const int64_t integer = elements[i].tag == OPD_TAG_INT ? elements[i].u.i : 0;
        if (integer >= 1000000 || integer <= -1000000) { dtype = OPD_INT64; }
    }
    for (int i = 0; i <= OPD_FLOAT8_E8M0FNU; i++) {
        (void)snprintf(word, sizeof word, " CPU%sType{", opd_dtype_cname((opd_scalar_type)i));
        if (strncmp(after, word, strlen(word)) == 0) { dtype = (opd_scalar_type)i; }
    }
    return dtype;
}
/* Reads the name of a tensor of the file beside the text.  Returns the tensor, or NULL and sets an error. */
static opd_tensor *opdi_graph_parse_named(opdi_graph_parser *parser, const opdi_gvalue *type) {
    char name[256];
    const size_t length = opdi_graph_parse_word(parser->at);
    if (!length || length >= sizeof name || (parser->at[length] & 0x80)) {
        (void)opdi_graph_parse_fail(parser, "the name of a constant has letters, digits, '_' and '.', and at most %d "
                                    "of them", (int)sizeof name - 1);
        return NULL;
    }
    memcpy(name, parser->at, length);
    name[length] = 0;
    opd_tensor *const tensor = parser->named(parser, name, type);
    if (tensor) { parser->at += length; }
    return tensor;
}
/* Reads a constant tensor: "{1}", " 1 2 [ CPUFloatType{2} ]", "$3" in a saved graph, or "$weight" in a text beside a
   file of tensors.  Returns the tensor, or NULL and sets an error. */
static opd_tensor *opdi_graph_parse_tensor(opdi_graph_parser *parser, const opdi_gvalue *type) {
    opd_value list[10];
    int64_t count = 0, k;
    const bool braces = opdi_graph_parse_is(parser, "{");
    if (opdi_graph_parse_is(parser, "$")) {
        if (parser->named) { return opdi_graph_parse_named(parser, type); }
        if (opdi_graph_parse_int(parser, &k)) { return NULL; }
        if (k >= 0 && k < parser->nconstants) { return parser->constants[k]; }
        (void)opdi_graph_parse_fail(parser, "there is no constant %lld", (long long)k);
        return NULL;
    }
    if (opdi_graph_parse_is(parser, "<")) {
        (void)opdi_graph_parse_fail(parser, "the text does not contain the data of this tensor; save the graph instead "
                                    "(opd_graph_save, opd_graph_save_text)");
        return NULL;
    }
    for (opdi_graph_parse_blanks(parser, false); *parser->at != '}' && *parser->at != '[';
         opdi_graph_parse_blanks(parser, false)) {
        if (count == 10) {
            (void)opdi_graph_parse_fail(parser, "there are more than 10 elements");
            return NULL;
        }
        if (opdi_graph_parse_number(parser, &list[count++])) { return NULL; }
    }
    if (braces ? count != 1 || opdi_graph_parse_want(parser, "}") : opdi_graph_parse_want(parser, "[")) {
        (void)opdi_graph_parse_fail(parser, "the value is not a tensor");
        return NULL;
    }
    const opd_scalar_type dtype = type->dtype >= 0 ? (opd_scalar_type)type->dtype
        : opdi_graph_tensor_dtype(list, count, parser->at);
    if (!braces) {
        parser->at += strcspn(parser->at, "]\n");
        if (opdi_graph_parse_want(parser, "]")) { return NULL; }
    }
    opd_tensor *tensor = opd_zeros(opd_ints_of(&count, braces ? 0 : 1), dtype);
    for (k = 0; tensor && k < count; k++) {
        opd_tensor *extra = braces ? tensor : opd_select(tensor, 0, k);
        if (!extra || !opd_fill_(extra, list[k])) { return NULL; }
    }
    return tensor;
}

static int opdi_graph_parse_cell(opdi_graph_parser *parser, opd_value *value, const opdi_gtype *type, int depth);
/* Reads a text in quotes.  Sets *out to its characters, which are in the graph's arena.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_graph_parse_quoted(opdi_graph_parser *parser, const char **out) {
    char *text, *to;
    if (opdi_graph_parse_want(parser, "\"")) { return -1; }
    if (!(text = to = (char *)opdi_graph_alloc(parser->graph, strcspn(parser->at, "\n") + 1))) { return -1; }
    for (; *parser->at && *parser->at != '\n' && *parser->at != '"'; parser->at++) {
        if (*parser->at == '\\') {
            static const char from[] = "abfnrtv", what[] = "\a\b\f\n\r\t\v";
            const char *key = parser->at[1] ? strchr(from, parser->at[1]) : NULL;
            parser->at++;
            if (*parser->at >= '0' && *parser->at <= '7') {
                int code = 0, digits = 0;
                while (digits++ < 3 && *parser->at >= '0' && *parser->at <= '7') {
                    code = code * 8 + (*parser->at++ - '0');
                }
                parser->at--;
                *to++ = (char)code;
            } else if (key) { *to++ = what[key - from]; }
            else if (*parser->at && *parser->at != '\n') { *to++ = *parser->at; }
            else { return opdi_graph_parse_fail(parser, "the text ends after a backslash"); }
        } else { *to++ = *parser->at; }
    }
    *to = 0;
    if (opdi_graph_parse_want(parser, "\"")) { return -1; }
    *out = text;
    return 0;
}
OPDI_INTERNAL bool opdi_is_list_tag(int32_t tag) { return tag >= OPD_TAG_INTS && tag <= OPD_TAG_LIST; }
/* Reads an element of a constant list, tuple or dict into *value; `type` is the element's type.  The caller gets a
   reference.  Returns 0, or -1 and sets an error. */
static int opdi_graph_parse_element(opdi_graph_parser *parser, opd_value *value, const opdi_gtype *type, int depth) {
    const opdi_gtype *const plain = opdi_gtype_strip(type);
    const char *text;
    opdi_graph_parse_blanks(parser, false);
    *value = opd_value_none();
    if (strchr("[({", *parser->at) && *parser->at) { return opdi_graph_parse_cell(parser, value, plain, depth + 1); }
    if (*parser->at == '"') {
        opd_device device;
        if (opdi_graph_parse_quoted(parser, &text)) { return -1; }
        if (plain->kind == OPDI_GTYPE_DEVICE) {
            if (opd_device_parse(text, &device)) { return -1; }
            *value = opd_value_device(device);
            return 0;
        }
        *value = opd_value_str(text);
        return opdi_value_hold(value);
    }
    if (opdi_graph_parse_is(parser, "None")) { return 0; }
    if (opdi_graph_parse_is(parser, "True") || opdi_graph_parse_is(parser, "False")) {
        *value = opd_value_bool(parser->at[-4] == 'T');
        return 0;
    }
    if (plain->kind == OPDI_GTYPE_COMPLEX) {
        double pair[2];
        opdi_graph_parse_complex(parser, pair);
        *value = opd_value_complex(pair);
        return opdi_value_hold(value);
    }
    if (opdi_graph_parse_number(parser, value)) { return -1; }
    if (plain->kind == OPDI_GTYPE_FLOAT && value->tag == OPD_TAG_INT) { *value = opd_value_double((double)value->u.i); }
    if (plain->kind == OPDI_GTYPE_BOOL && value->tag == OPD_TAG_INT) { *value = opd_value_bool(value->u.i != 0); }
    return 0;
}
/* Reads a constant list, tuple or dict of type `type` into *value.  Returns 0, or -1 and sets an error. */
static int opdi_graph_parse_cell(opdi_graph_parser *parser, opd_value *value, const opdi_gtype *type, int depth) {
    const bool dict = type->kind == OPDI_GTYPE_DICT, tuple = type->kind == OPDI_GTYPE_TUPLE;
    const char *const close = dict ? "}" : tuple ? ")" : "]";
    if ((!dict && !tuple && type->kind != OPDI_GTYPE_LIST) || depth > 32) {
        return opdi_graph_parse_fail(parser, "the text of a graph cannot contain a constant of this type, or lists "
                                     "nested more than 32 deep");
    }
    if (opdi_graph_parse_want(parser, dict ? "{" : tuple ? "(" : "[")) { return -1; }
    opdi_cell *cell = opdi_cell_new(dict ? OPD_CELL_DICT : tuple ? OPD_CELL_TUPLE : OPD_CELL_LIST,
                                    dict || tuple ? (int32_t)OPD_TAG_LIST : opdi_gtype_tag(type),
                                    tuple ? type->nparts : 0);
    int rc = cell ? 0 : -1;
    while (rc == 0 && !opdi_graph_parse_is(parser, close)) {
        opd_value key = opd_value_none(), element = opd_value_none();
        if (cell->count && (opdi_graph_parse_want(parser, ",") || opdi_graph_parse_is(parser, close))) {
            rc = opd_ok() ? 0 : -1;
            break;
        }
        if (tuple && cell->count == type->nparts) { rc = opdi_graph_parse_fail(parser, "the tuple has more elements"); }
        if (rc == 0 && dict) {
            rc = opdi_graph_parse_element(parser, &key, type->parts[0], depth);
            if (rc == 0) { rc = opdi_graph_parse_want(parser, ":"); }
        }
        if (rc == 0) {
            rc = opdi_graph_parse_element(parser, &element, type->parts[dict ? 1 : tuple ? cell->count : 0], depth);
        }
        if (rc == 0 && tuple) {
            cell->u.values[cell->count++] = element;
            continue;
        }
        if (rc == 0) { rc = dict ? opdi_dict_set(cell, key, element) : opdi_cell_insert(cell, cell->count, element); }
        opdi_value_drop(key);
        opdi_value_drop(element);
    }
    if (rc == 0 && tuple && cell->count != type->nparts) {
        rc = opdi_graph_parse_fail(parser, "the tuple has fewer elements");
    }
    if (rc && cell) { opdi_cell_drop(cell); }
    else { *value = opdi_cell_value(cell); }
    return rc;
}

/* Reads a constant list, tuple or dict into *value, and checks that all elements have the types that `type` requires.
   Returns 0, or -1 and sets an error. */
static int opdi_graph_parse_whole(opdi_graph_parser *parser, opd_value *value, const opdi_gtype *type) {
    if (opdi_graph_parse_cell(parser, value, type, 0)) { return -1; }
    if (opdi_value_is(value, type)) { return 0; }
    opdi_value_drop(*value);
    *value = opd_value_none();
    return opdi_graph_parse_fail(parser, "the constant does not have its type");
}
/* Reads a generator such as torch.Generator(device="cpu", seed=5), which the graph then owns.  A text of this library
   also has the number of words that were drawn ("offset=64").  Returns 0, or -1 and sets an error. */
static int opdi_graph_parse_generator(opdi_graph_parser *parser, opd_value *value) {
    uint64_t state[2] = {0, 0};
    if (opdi_graph_parse_want(parser, "torch.Generator(device=\"cpu\", seed=")) { return -1; }
    for (int i = 0; i < 2; i++) {
        char *end;
        if (i && !opdi_graph_parse_is(parser, ", offset=")) { break; }
        state[i] = strtoull(parser->at, &end, 10);
        if (*parser->at < '0' || *parser->at > '9') { return opdi_graph_parse_fail(parser, "expected a number"); }
        parser->at = end;
    }
    if (opdi_graph_parse_want(parser, ")")) { return -1; }
    opd_generator *const generator = opd_generator_new(state[0]);
    if (!generator) { return -1; }
    opdi_random_set(generator, state);
    *value = opd_value_generator(generator);
    return 0;
}
/* Returns a tensor that stands for a Python number: its dtype does not count in type promotion.  Returns NULL and sets
   an error on failure. */
static opd_tensor *opdi_graph_parse_wrapped(opdi_graph_parser *parser, opd_tensor *tensor) {
    if (tensor->ndim) {
        (void)opdi_graph_parse_fail(parser, "a number must be a tensor without dims");
        return NULL;
    }
    opd_tensor *const copy = opd_clone(opd_detach(tensor));
    if (copy) { copy->flags |= OPDI_WRAPPED; }
    return copy;
}
/* Reads the "[value=...]" of a constant node.  If the type of the constant is not declared, it follows from the text.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_parse_constant(opdi_graph_parser *parser, opdi_gnode *node) {
    opdi_gvalue *value = node->out[0];
    opd_value copy = opd_value_none();
    if (!opdi_graph_parse_is(parser, "[")) {
        value->tag = OPD_TAG_NONE;
        node->constant = copy;
        return 0;
    }
    if (opdi_graph_parse_is(parser, "name=")) {   /* the constant is a function */
        node->constant = copy;
        return opdi_graph_parse_quoted(parser, &node->attribute) ? -1 : opdi_graph_parse_want(parser, "]");
    }
    if (opdi_graph_parse_want(parser, "value=")) { return -1; }
    if (value->type && value->type->kind >= OPDI_GTYPE_NSIMPLE && value->type->kind != OPDI_GTYPE_OPTIONAL) {
        return opdi_graph_parse_whole(parser, &node->constant, value->type) ? -1 : opdi_graph_parse_want(parser, "]");
    }
    if (strncmp(parser->at, "torch.Generator", 15) == 0) {
        opdi_gvalue_typed(value, opdi_gtype_simple(OPDI_GTYPE_GENERATOR));
        return opdi_graph_parse_generator(parser, &node->constant) ? -1 : opdi_graph_parse_want(parser, "]");
    }
    if (opdi_is_list_tag(value->tag)) {
        const opdi_gtype *const type = opdi_gvalue_gtype(parser->graph, value);
        if (!type || opdi_graph_parse_whole(parser, &node->constant, type)) { return -1; }
        value->type = type;
        return opdi_graph_parse_want(parser, "]");
    }
    const bool declared = value->tag != OPD_TAG_DEFAULT;
    if (!declared) {
        const char *const at = parser->at;
        value->tag = *at == '"' ? OPD_TAG_STR : strchr("{ <$", *at) ? OPD_TAG_TENSOR : OPD_TAG_INT;
        if (value->tag == OPD_TAG_INT && opdi_graph_parse_number(parser, &copy) == 0) {
            value->tag = copy.tag;
            parser->at = at;
        }
    }
    switch (value->tag) {
    case OPD_TAG_TENSOR:
        if (parser->lenient && opdi_graph_parse_is(parser, "<Tensor>")) {
            node->attribute = "<Tensor>";         /* the text does not have the elements, so runs get None instead of
                                                     the tensor */
            return opdi_graph_parse_want(parser, "]");
        }
        if (!(copy.u.t = opdi_graph_parse_tensor(parser, value))) { return -1; }
        if (opdi_graph_parse_is(parser, ", number") && !(copy.u.t = opdi_graph_parse_wrapped(parser, copy.u.t))) {
            return -1;
        }
        node->constant.u.t = opdi_keep(copy.u.t);
        node->constant.tag = OPD_TAG_TENSOR;
        if (value->dtype < 0 && declared) { return opdi_graph_parse_want(parser, "]"); }
        return opdi_gvalue_describe(parser->graph, value, node->constant.u.t) ? -1 : opdi_graph_parse_want(parser, "]");
    case OPD_TAG_STR: case OPD_TAG_DEVICE: {
        const char *text;
        if (opdi_graph_parse_quoted(parser, &text)) { return -1; }
        copy = opd_value_str(text);
        if (value->tag == OPD_TAG_DEVICE) {
            opd_device device;
            if (opd_device_parse(text, &device)) { return -1; }
            copy = opd_value_device(device);
        }
        break;
    }
    case OPD_TAG_COMPLEX: {
        double *pair = (double *)opdi_graph_alloc(parser->graph, 2 * sizeof *pair);
        if (!pair) { return -1; }
        opdi_graph_parse_complex(parser, pair);
        copy = opd_value_complex(pair);
        break;
    }
    default:
        if (opdi_graph_parse_number(parser, &copy)) { return -1; }
        if (value->tag == OPD_TAG_FLOAT && copy.tag == OPD_TAG_INT) { copy = opd_value_double((double)copy.u.i); }
        if (value->tag == OPD_TAG_BOOL) { copy = opd_value_bool(copy.u.i != 0); }
        if (value->tag != copy.tag) { return opdi_graph_parse_fail(parser, "the constant does not have its type"); }
    }
    node->constant = copy;
    return opdi_graph_parse_want(parser, "]");
}
