#include "types.h"

//== declarations ======================================================================================================

/* Reads '[' NUMBER ']' [alias] ['?'] after the element type `elem` of an argument or return, and returns the list's
   type.  Returns NULL and sets an error if that fails. */
static const opdi_type *opdi_parse_sized(opdi_parser *parser, const opdi_type *elem) {
    opdi_type *list;
    opdi_lexed number;
    opdi_token tok;
    opdi_lex(&parser->lx);
    if (opdi_lex_expect(&parser->lx, OPDI_TOKEN_NUMBER, &tok) < 0) { return NULL; }
    if (opdi_read_number(&parser->lx, &tok, false, &number) < 0) { return NULL; }
    if (number.d > INT32_MAX || tok.text[0] == '.') {
        opdi_syntax_error(&parser->lx, &tok, "number out of range");
        return NULL;
    }
    if (opdi_lex_expect(&parser->lx, ']', NULL) < 0) { return NULL; }
    if ((list = opdi_type_new(parser, OPDI_TYPE_LIST, &elem, 1)) == NULL) { return NULL; }
    list->size = (int32_t)number.d;
    const opdi_type *type = list;
    if (opdi_parse_alias(parser, &type) < 0) { return NULL; }
    return opdi_lex_next_if(&parser->lx, '?') ? opdi_make_optional(parser, type, &tok) : type;
}

/* Returns the tag of values that need no conversion for an argument of this type.  Returns 0 if there is no such tag.
   */
OPDI_INTERNAL uint8_t opdi_type_tag(const opdi_type *type) {
    if (type->kind == OPDI_TYPE_OPTIONAL) { type = type->elems[0]; }
    switch (type->kind) {
    case OPDI_TYPE_TENSOR: return OPD_TAG_TENSOR;
    case OPDI_TYPE_INT: return OPD_TAG_INT;
    case OPDI_TYPE_FLOAT: return OPD_TAG_FLOAT;
    case OPDI_TYPE_BOOL: return OPD_TAG_BOOL;
    case OPDI_TYPE_STR: return OPD_TAG_STR;
    case OPDI_TYPE_DEVICE: return OPD_TAG_DEVICE;
    case OPDI_TYPE_GENERATOR: return OPD_TAG_OBJECT;
    case OPDI_TYPE_LIST: break;
    default: return 0;
    }
    const opdi_type *elem = type->elems[0];
    if (elem->kind == OPDI_TYPE_INT) { return OPD_TAG_INTS; }
    if (elem->kind == OPDI_TYPE_FLOAT) { return OPD_TAG_FLOATS; }
    if (elem->kind == OPDI_TYPE_BOOL) { return OPD_TAG_BOOLS; }
    if (elem->kind == OPDI_TYPE_OPTIONAL) { elem = elem->elems[0]; }
    return elem->kind == OPDI_TYPE_TENSOR ? OPD_TAG_TENSORS : 0;
}

/* Reads argument := type [sized] IDENT ['=' default], or return := type [sized] [IDENT], into *arg.  Returns 0, or -1
   and sets an error. */
static int opdi_parse_argument(opdi_parser *parser, opdi_arg *arg, bool is_return, bool keyword_only) {
    const opdi_type *type;
    opdi_token tok;
    parser->written = false;
    parser->nodes = parser->inside = 0;
    if ((type = opdi_parse_type(parser)) == NULL) { return -1; }
    if (parser->lx.cur.kind == '[' && (type = opdi_parse_sized(parser, type)) == NULL) { return -1; }
    memset(arg, 0, sizeof *arg);
    arg->type = type;
    arg->name = "";
    arg->value = opd_value_none();
    arg->keyword_only = keyword_only;
    arg->written = parser->written;
    arg->tag = opdi_type_tag(type);
    if (is_return && parser->lx.cur.kind != OPDI_TOKEN_IDENT) { return 0; }
    if (opdi_lex_expect(&parser->lx, OPDI_TOKEN_IDENT, &tok) < 0) { return -1; }
    if ((arg->name = opdi_arena_copy(parser->arena, tok.text, (size_t)tok.length)) == NULL) { return -1; }
    if (is_return || !opdi_lex_next_if(&parser->lx, '=')) { return 0; }
    arg->has_default = true;
    return opdi_parse_default(parser, type, &arg->value);
}

/* Reads '(' [item (',' item)*] ')' into args[OPD_MAX_ARGS].  The items are arguments or, if `returns` is true, returns.
   Sets *dots to true if the last item is "...", which does not count.  Returns the number of items, or -1 and sets an
   error. */
static int opdi_parse_items(opdi_parser *parser, opdi_arg *args, bool returns, bool *dots) {
    bool keyword_only = false;
    int count = 0;
    if (opdi_lex_expect(&parser->lx, '(', NULL) < 0) { return -1; }
    if (opdi_lex_next_if(&parser->lx, ')')) { return 0; }
    do {
        if (*dots) {
            return opdi_syntax_error(&parser->lx, &parser->lx.cur, returns ?
                                     "... must be the last element of the return list" :
                                     "... must be the last element of the argument list");
        }
        if (opdi_lex_next_if(&parser->lx, OPDI_TOKEN_DOTS)) {
            *dots = true;
            continue;
        }
        if (!returns && opdi_lex_next_if(&parser->lx, '*')) {
            keyword_only = true;
            continue;
        }
        if (count == OPD_MAX_ARGS) {
            return opdi_syntax_error(&parser->lx, &parser->lx.cur,
                                     returns ? "too many returns, this build only supports 64"
                                     : "too many arguments, this build only supports 64");
        }
        if (opdi_parse_argument(parser, &args[count], returns, keyword_only) < 0) { return -1; }
        count++;
    } while (opdi_lex_next_if(&parser->lx, ','));
    return opdi_lex_expect(&parser->lx, ')', NULL) < 0 ? -1 : count;
}

/* Checks that no positional argument without a default, unless it is a list, follows an argument with a default, and
   that a schema with "..." has no defaults.  Returns 0, or -1 and sets an error. */
static int opdi_check_defaults(const opdi_parser *parser, const opd_schema *schema) {
    const int length = (int)OPDI_MIN(parser->lx.end - parser->lx.text, 400);
    bool seen = false;
    for (int i = 0; i < schema->nargs; i++) {
        const opdi_arg *arg = &schema->args[i];
        if (arg->has_default) { seen = true; }
        else if (seen && !arg->keyword_only && arg->type->kind != OPDI_TYPE_LIST) {
            return opd_fail(OPD_ERROR_SCHEMA, "Non-default positional argument follows default argument. Parameter "
                            "%.80s in %.*s", arg->name, length, parser->lx.text);
        }
    }
    if (!schema->vararg || !seen) { return 0; }
    return opd_fail(OPD_ERROR_SCHEMA, "schemas with vararg (...) can't have default value args: %.*s", length,
                    parser->lx.text);
}

/* Copies `total` arguments to the arena, and sets *to and *count.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_schema_take(opdi_arena *arena, const opdi_arg *from, int total, opdi_arg **to, int32_t *count) {
    *to = NULL;
    *count = total;
    if (total == 0) { return 0; }
    *to = (opdi_arg *)opdi_arena_alloc(arena, (size_t)total * sizeof *from);
    if (*to == NULL) { return -1; }
    memcpy(*to, from, (size_t)total * sizeof *from);
    return 0;
}

/* Reads arguments '->' returns [NEWLINE] EOF.  Returns 0, or -1 and sets an error. */
static int opdi_parse_signature(opdi_parser *parser, opd_schema *schema) {
    opdi_arg args[OPD_MAX_ARGS];
    int count = opdi_parse_items(parser, args, false, &schema->vararg);
    if (count < 0 || opdi_schema_take(parser->arena, args, count, &schema->args, &schema->nargs) < 0) { return -1; }
    if (opdi_lex_expect(&parser->lx, OPDI_TOKEN_ARROW, NULL) < 0) { return -1; }
    count = 0;
    if (opdi_lex_next_if(&parser->lx, OPDI_TOKEN_DOTS)) { schema->varret = true; }
    else if (parser->lx.cur.kind == '(') { count = opdi_parse_items(parser, args, true, &schema->varret); }
    else { count = opdi_parse_argument(parser, args, true, false) < 0 ? -1 : 1; }
    if (count < 0 || opdi_schema_take(parser->arena, args, count, &schema->returns, &schema->nreturns) < 0) {
        return -1;
    }
    (void)opdi_lex_next_if(&parser->lx, OPDI_TOKEN_NEWLINE);
    return opdi_lex_expect(&parser->lx, OPDI_TOKEN_EOF, NULL) < 0 ? -1 : opdi_check_defaults(parser, schema);
}

static int opdi_schema_set_name(opdi_parser *parser, opd_schema *schema, const opdi_name *name, const char *ns) {
    schema->ns = name->nns > 0 ? opdi_arena_copy(parser->arena, name->ns, (size_t)name->nns)
                          : opdi_arena_copy(parser->arena, ns, strlen(ns));
    schema->name = opdi_arena_copy(parser->arena, name->name, (size_t)name->nname);
    schema->overload = opdi_arena_copy(parser->arena, name->overload, (size_t)name->noverload);
    if (schema->ns == NULL || schema->name == NULL || schema->overload == NULL) { return -1; }
    if (strcmp(schema->ns, "aten") == 0 || strcmp(schema->ns, "prim") == 0) { parser->typevars = true; }
    return 0;
}

/* Estimates how many bytes the parts of a schema take, so that one allocation is usually enough. */
OPDI_INTERNAL size_t opdi_schema_estimate(const char *text, size_t length) {
    size_t commas = 0, brackets = 0;
    for (size_t i = 0; i < length; i++) {
        commas += text[i] == ',' || text[i] == '>';
        brackets += text[i] == '(' || text[i] == '[' || text[i] == '?';
    }
    commas = OPDI_MIN(commas, 2u * OPD_MAX_ARGS);
    brackets = OPDI_MIN(brackets, 4u * OPD_MAX_ARGS);
    return sizeof(opd_schema) + length + 80 + (commas + 1) * (sizeof(opdi_arg) + 8) +
           brackets * (sizeof(opdi_type) + sizeof(opdi_alias) + 16);
}

/* The addresses of the schemas that were freed last.  By these, opd_schema_free detects a second call for one schema.
   The memory at these addresses may have been reused or unmapped. */
#define OPDI_FREED_SCHEMAS 8
static const opd_schema *opdi_freed_schemas[OPDI_FREED_SCHEMAS];
static unsigned opdi_freed_schemas_at;
/* Returns true if the address `schema` is among opdi_freed_schemas.  Removes it if `forget` is true. */
OPDI_INTERNAL bool opdi_schema_was_freed(const opd_schema *schema, bool forget) {
    bool found = false;
    for (int i = 0; i < OPDI_FREED_SCHEMAS; i++) {
        if (OPDI_LOAD(&opdi_freed_schemas[i]) != schema) { continue; }
        found = true;
        if (forget) { OPDI_STORE(&opdi_freed_schemas[i], NULL); }
    }
    return found;
}

/* Parses a declaration.  If the text names no namespace, the namespace is `ns`, or "" if `ns` is NULL.  If `typevars`
   is true, type variables are allowed in all namespaces, not only in aten and prim.  Returns NULL and sets an error if
   that fails. */
OPDI_INTERNAL opd_schema *opdi_schema_parse(const char *text, size_t length, const char *ns, bool typevars) {
    opdi_parser parser;
    opdi_arena arena;
    opdi_name name;
    memset(&arena, 0, sizeof arena);
    if (opdi_schema_check_text(text, length) < 0) { return NULL; }
    opdi_lexer_init(&parser.lx, text, length);
    if (opdi_lex_name(&parser.lx, &name) < 0) { return NULL; }
    bool newline = parser.lx.cur.kind != '(' && opdi_lex_next_if(&parser.lx, OPDI_TOKEN_NEWLINE);
    if (parser.lx.cur.kind == OPDI_TOKEN_EOF) {
        opd_fail(OPD_ERROR_SCHEMA, "Tried to parse a function schema but only the operator name was given: %.*s",
                 length < 200 ? (int)length : 200, text);
        return NULL;
    }
    if (newline || parser.lx.cur.kind != '(') {
        opdi_lex_unexpected(&parser.lx, OPDI_TOKEN_EOF);
        return NULL;
    }
    parser.arena = &arena;
    parser.typevars = typevars;
    parser.fresh = 0;
    if (opdi_arena_grow(&arena, opdi_schema_estimate(text, length)) < 0) { return NULL; }
    opd_schema *schema = (opd_schema *)opdi_arena_alloc(&arena, sizeof *schema);
    if (schema != NULL) { memset(schema, 0, sizeof *schema); }
    if (schema == NULL || opdi_schema_set_name(&parser, schema, &name, ns == NULL ? "" : ns) < 0 ||
        opdi_parse_signature(&parser, schema) < 0) {
        opdi_arena_free(&arena);
        return NULL;
    }
    schema->arena = arena;
    (void)opdi_schema_was_freed(schema, true);
    return schema;
}

OPD_API opd_schema *opd_schema_parse(const char *text) {
    return opdi_schema_parse(text, text == NULL ? 0 : strlen(text), NULL, true);
}

OPD_API void opd_schema_free(opd_schema *schema) {
    if (schema == NULL) { return; }
    if (opdi_schema_was_freed(schema, false)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_schema_free: the schema has been freed already");
        return;
    }
    OPDI_STORE(&opdi_freed_schemas[OPDI_ADD(&opdi_freed_schemas_at, 1) % OPDI_FREED_SCHEMAS], schema);
    opdi_arena arena = schema->arena;             /* the arena that holds the schema itself */
    opdi_arena_free(&arena);
}

OPD_API int opd_schema_nargs(const opd_schema *schema) { return schema == NULL ? 0 : schema->nargs; }
OPD_API int opd_schema_nreturns(const opd_schema *schema) { return schema == NULL ? 0 : schema->nreturns; }

OPD_API const char *opd_schema_arg_name(const opd_schema *schema, int i) {
    if (schema != NULL && i >= 0 && i < schema->nargs) { return schema->args[i].name; }
    opd_fail(OPD_ERROR_INDEX, "the schema has no argument %d", i);
    return NULL;
}

OPD_API bool opd_schema_is_mutable(const opd_schema *schema) {
    for (int i = 0; schema != NULL && i < schema->nargs; i++) {
        if (schema->args[i].written) { return true; }
    }
    return false;
}

/* Returns the index of the argument whose name is the `length` bytes at `name`, or -1. */
OPDI_INTERNAL int opdi_arg_index(const opd_schema *schema, const char *name, size_t length) {
    for (int i = 0; i < schema->nargs; i++) {
        if (strlen(schema->args[i].name) == length && strncmp(schema->args[i].name, name, length) == 0) { return i; }
    }
    return -1;
}
