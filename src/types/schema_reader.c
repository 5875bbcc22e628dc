#include "types.h"

//== schemas of built-in operators =====================================================================================
//
//  The schemas of built-in operators have no mistakes, and only types, annotations and defaults of the forms below.  So
//  they are read by a few functions, faster than by the parser, and a program that defines no operators does not
//  contain the parser.  The result is the same (tests/types/test_schema.c reads all schemas in both ways).

OPDI_COLD_BEGIN
/* Reading: `at` is the next character.  written: an annotation of the current argument has "!". */
typedef struct opdi_reader { const char *at; opdi_arena *arena; bool written; } opdi_reader;

/* Skips blanks, and a character `letter` after them.  Returns true if there was one. */
static bool opdi_read_if(opdi_reader *reader, char letter) {
    while (*reader->at == ' ') { reader->at++; }
    const bool found = *reader->at == letter;
    reader->at += found;
    return found;
}
/* Skips blanks and returns the length of the word after them, which may be 0. */
static size_t opdi_read_word(opdi_reader *reader) {
    size_t length = 0;
    while (*reader->at == ' ') { reader->at++; }
    while (opdi_is_letter(reader->at[length]) || opdi_is_digit(reader->at[length])) { length++; }
    return length;
}
/* Moves past `length` characters, and returns a copy of them in the arena, or NULL if memory runs out. */
static const char *opdi_read_copy(opdi_reader *reader, size_t length) {
    reader->at += length;
    return opdi_arena_copy(reader->arena, reader->at - length, length);
}
static int64_t opdi_read_integer(opdi_reader *reader) {
    const bool negative = opdi_read_if(reader, '-');
    int64_t number = 0;
    while (opdi_is_digit(*reader->at)) { number = 10 * number + (*reader->at++ - '0'); }
    return negative ? -number : number;
}

/* Reads an alias annotation of one set, such as "(a!)" or "(a -> *)", after the bracket.  Returns a copy of `type` with
   the annotation, or NULL. */
static const opdi_type *opdi_read_alias(opdi_reader *reader, const opdi_type *type) {
    opdi_alias *alias = (opdi_alias *)opdi_arena_alloc(reader->arena, sizeof *alias + 2 * sizeof(const char *));
    opdi_type *marked = (opdi_type *)opdi_arena_alloc(reader->arena, sizeof *marked);
    if (!alias || !marked) { return NULL; }
    const char **const names = (const char **)(alias + 1);
    if (!(names[0] = names[1] = opdi_read_copy(reader, opdi_read_word(reader)))) { return NULL; }
    alias->write = opdi_read_if(reader, '!');
    if (opdi_read_if(reader, '-')) {
        names[1] = opdi_read_if(reader, '>') && opdi_read_if(reader, '*') ? "*" : NULL;
    }
    alias->nbefore = alias->nafter = 1;
    alias->before = names;
    alias->after = names + 1;
    reader->written = reader->written || alias->write;
    *marked = *type;
    marked->alias = alias;
    return names[1] && opdi_read_if(reader, ')') ? marked : NULL;
}
/* Returns the type T[size] or T? for the type T, or NULL if memory runs out. */
static const opdi_type *opdi_read_composite(opdi_reader *reader, opdi_type_kind kind, const opdi_type *elem,
                                            int64_t size) {
    opdi_type *type = (opdi_type *)opdi_arena_alloc(reader->arena, sizeof *type + sizeof elem);
    if (!type) { return NULL; }
    const opdi_type **const elems = (const opdi_type **)(type + 1);
    *elems = elem;
    memset(type, 0, sizeof *type);
    type->kind = (int32_t)kind;
    type->size = (int32_t)size;
    type->nelems = 1;
    type->elems = elems;
    return type;
}
/* Reads a word that is a type, an annotation, and any number of "[]", "[N]" and "?".  Returns NULL on failure. */
static const opdi_type *opdi_read_type(opdi_reader *reader) {
    opdi_token word;
    word.length = (int)opdi_read_word(reader);
    word.text = reader->at;
    const opdi_type *type = word.length ? opdi_base_find(&word) : NULL;
    reader->at += word.length;
    if (type && *reader->at == '(' && opdi_read_if(reader, '(')) { type = opdi_read_alias(reader, type); }
    while (type && (*reader->at == '[' || *reader->at == '?')) {
        if (opdi_read_if(reader, '?')) {
            type = opdi_read_composite(reader, OPDI_TYPE_OPTIONAL, type, -1);
            continue;
        }
        reader->at++;
        type = opdi_read_composite(reader, OPDI_TYPE_LIST, type, *reader->at == ']' ? -1 : opdi_read_integer(reader));
        if (!opdi_read_if(reader, ']')) { return NULL; }
    }
    return type;
}

/* Reads a number, a float if `kind` is float or the text has a point or an exponent. */
static opd_value opdi_read_number_of(opdi_reader *reader, int32_t kind) {
    const bool negative = opdi_read_if(reader, '-');
    const size_t digits = strspn(reader->at, "0123456789");
    size_t length = digits + strspn(reader->at + digits, ".0123456789");
    if (reader->at[length] == 'e' && reader->at[length + 1]) {
        length += 2 + strspn(reader->at + length + 2, "0123456789");
    }
    if (length == digits && kind != OPDI_TYPE_FLOAT) {
        const int64_t number = opdi_read_integer(reader);
        return opd_value_int(negative ? -number : number);
    }
    const double number = opdi_decimal_any(reader->at, (int)length);
    reader->at += length;
    return opd_value_double(negative ? -number : number);
}
/* Reads the default of a list of integers or floats into *out: "[c, c]" or, for a list of `size` elements, one number,
   which is repeated.  Returns 0, or -1. */
static int opdi_read_list(opdi_reader *reader, int32_t kind, int size, opd_value *out) {
    opd_value numbers[8];
    int count = 0;
    const bool brackets = opdi_read_if(reader, '[');
    while (brackets && count < 8 && !opdi_read_if(reader, ']')) {
        if (count) { (void)opdi_read_if(reader, ','); }
        numbers[count++] = opdi_read_number_of(reader, kind);
    }
    if (!brackets) {
        numbers[0] = opdi_read_number_of(reader, kind);
        for (count = 1; count < size && count < 8; count++) { numbers[count] = numbers[0]; }
    }
    int64_t *const data = count ? (int64_t *)opdi_arena_alloc(reader->arena, (size_t)count * sizeof *data) : NULL;
    if (count && !data) { return -1; }
    for (int i = 0; i < count; i++) { memcpy(data + i, &numbers[i].u, sizeof *data); }
    *out = kind == OPDI_TYPE_FLOAT ? opd_value_doubles((const double *)(const void *)data, count)
        : opd_value_ints(data, count);
    return brackets || count == size ? 0 : -1;
}
/* Reads a default into *out: None, True, False, contiguous_format, a text in quotes, a number, or a list of numbers.
   Returns 0, or -1. */
static int opdi_read_default(opdi_reader *reader, const opdi_type *type, opd_value *out) {
    const size_t length = opdi_read_word(reader);
    const char first = *reader->at;
    if (opdi_is_letter(first)) {
        reader->at += length;
        *out = first == 'N' ? opd_value_none() : first == 'c' ? opd_value_int(0) : opd_value_bool(first == 'T');
        return first == 'N' || first == 'c' || first == 'T' || first == 'F' ? 0 : -1;
    }
    if (first == '\'' || first == '"') {
        const char *const end = strchr(++reader->at, first);
        const char *const text = end ? opdi_read_copy(reader, (size_t)(end - reader->at)) : NULL;
        if (!text) { return -1; }
        reader->at++;
        *out = opd_value_str(text);
        out->n = (int32_t)strlen(text);
        return 0;
    }
    if (type->kind == OPDI_TYPE_LIST) { return opdi_read_list(reader, type->elems[0]->kind, type->size, out); }
    *out = opdi_read_number_of(reader, type->kind);
    return 0;
}

/* Reads "type name=default" or, for a return, "type" or "type name".  Returns 0, or -1. */
static int opdi_read_argument(opdi_reader *reader, opdi_arg *arg, bool is_return, bool keyword_only) {
    memset(arg, 0, sizeof *arg);
    reader->written = false;
    if (!(arg->type = opdi_read_type(reader))) { return -1; }
    const size_t length = opdi_read_word(reader);
    arg->name = length ? opdi_read_copy(reader, length) : "";
    arg->value = opd_value_none();
    arg->keyword_only = keyword_only;
    arg->written = reader->written;
    arg->tag = opdi_type_tag(arg->type);
    if (!arg->name || (!length && !is_return)) { return -1; }
    arg->has_default = !is_return && opdi_read_if(reader, '=');
    return arg->has_default ? opdi_read_default(reader, arg->type, &arg->value) : 0;
}
/* Reads the arguments or returns after a bracket, up to the closing bracket.  Returns their number, or -1. */
static int opdi_read_items(opdi_reader *reader, opdi_arg *args, bool returns) {
    int count = 0;
    bool keyword_only = false;
    while (!opdi_read_if(reader, ')')) {
        if (!returns && opdi_read_if(reader, '*')) { keyword_only = true; }
        else if (count == OPD_MAX_ARGS || opdi_read_argument(reader, &args[count++], returns, keyword_only)) {
            return -1;
        }
        (void)opdi_read_if(reader, ',');
    }
    return count;
}
/* Reads a whole schema.  Returns 0, or -1. */
static int opdi_read_schema(opdi_reader *reader, opd_schema *schema, const char *ns) {
    opdi_arg args[OPD_MAX_ARGS];
    schema->ns = opdi_arena_copy(reader->arena, ns, strlen(ns));
    schema->name = opdi_read_copy(reader, opdi_read_word(reader));
    schema->overload = opdi_read_if(reader, '.') ? opdi_read_copy(reader, opdi_read_word(reader)) : "";
    if (!schema->ns || !schema->name || !schema->overload || !opdi_read_if(reader, '(')) { return -1; }
    int count = opdi_read_items(reader, args, false);
    if (count < 0 || opdi_schema_take(reader->arena, args, count, &schema->args, &schema->nargs) ||
        !opdi_read_if(reader, '-') || !opdi_read_if(reader, '>')) { return -1; }
    count = opdi_read_if(reader, '(') ? opdi_read_items(reader, args, true)
        : opdi_read_argument(reader, args, true, false) ? -1 : 1;
    if (count < 0 || opdi_schema_take(reader->arena, args, count, &schema->returns, &schema->nreturns)) { return -1; }
    return *reader->at ? -1 : 0;
}
/* Reads the schema of a built-in operator, as opdi_schema_parse does, with the same parameters.  No built-in schema has
   type variables, so `typevars` changes nothing.  Returns NULL and sets an error if memory runs out, or if the text has
   another form. */
OPDI_INTERNAL opd_schema *opdi_schema_read(const char *text, size_t length, const char *ns, bool typevars) {
    opdi_arena arena;
    opdi_reader reader;
    memset(&arena, 0, sizeof arena);
    reader.at = text;
    reader.arena = &arena;
    if (opdi_arena_grow(&arena, opdi_schema_estimate(text, length)) < 0) { return NULL; }
    opd_schema *schema = (opd_schema *)opdi_arena_alloc(&arena, sizeof *schema);
    if (schema) { memset(schema, 0, sizeof *schema); }
    (void)typevars;
    if (!schema || opdi_read_schema(&reader, schema, ns)) {
        opdi_arena_free(&arena);
        if (opd_ok()) { (void)opd_fail(OPD_ERROR_SCHEMA, "no built-in operator has a schema of this form: %s", text); }
        return NULL;
    }
    schema->arena = arena;
    (void)opdi_schema_was_freed(schema, true);
    return schema;
}
OPDI_COLD_END
