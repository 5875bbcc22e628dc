#include "types.h"

//== reading types and alias annotations ===============================================================================

/* Reads set := ('*' | IDENT) ('|' IDENT)* into a list in the arena.  Returns the list's length, or -1 and sets an
   error. */
static int opdi_parse_alias_set(opdi_parser *parser, const char *const **out) {
    const char *names[OPDI_MAX_ALIAS_SETS];
    bool wildcard = false;
    int count = 0, i;
    do {
        const char *name = "*";
        opdi_token tok;
        if (opdi_lex_next_if(&parser->lx, '*')) { wildcard = true; }
        else if (wildcard) { break; }                 /* the caller reports the word, which is not ")" */
        else if (opdi_lex_expect(&parser->lx, OPDI_TOKEN_IDENT, &tok) < 0) { return -1; }
        else if ((name = opdi_arena_copy(parser->arena, tok.text, (size_t)tok.length)) == NULL) { return -1; }
        for (i = 0; i < count && strcmp(names[i], name) != 0; i++) { }
        if (i == OPDI_MAX_ALIAS_SETS) { return opdi_syntax_error(&parser->lx, &parser->lx.cur, "too many alias sets"); }
        if (i == count) { names[count++] = name; }
    } while (opdi_lex_next_if(&parser->lx, '|'));
    const char **list = (const char **)opdi_arena_alloc(parser->arena, (size_t)count * sizeof *list);
    if (list == NULL) { return -1; }
    for (i = 0; i < count; i++) { list[i] = names[i]; }
    *out = list;
    return count;
}

/* Fills *alias with the annotation of a bare "!": written, with an anonymous set before the call and none after.
   Returns 0, or -1 and sets an error. */
static int opdi_parse_alias_bare(opdi_parser *parser, opdi_alias *alias) {
    char name[16];
    const char **list = (const char **)opdi_arena_alloc(parser->arena, sizeof *list);
    snprintf(name, sizeof name, "$%d", parser->inside == 0 ? parser->fresh++ : 0);
    if (list == NULL || (*list = opdi_arena_copy(parser->arena, name, strlen(name))) == NULL) { return -1; }
    alias->write = true;
    if (parser->inside == 0) { parser->written = true; }
    alias->nbefore = 1;
    alias->before = list;
    return 0;
}

/* Reads alias := '(' set ['!'] ['->' set] ')' | '!', or nothing.  If there is an annotation, *type becomes a copy of
   the type with the annotation.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_parse_alias(opdi_parser *parser, const opdi_type **type) {
    opdi_lexer *lexer = &parser->lx;
    if (OPDI_LIKELY(lexer->cur.kind != '(' && lexer->cur.kind != '!')) { return 0; }
    opdi_alias *alias = (opdi_alias *)opdi_arena_alloc(parser->arena, sizeof *alias);
    opdi_type *marked = (opdi_type *)opdi_arena_alloc(parser->arena, sizeof *marked);
    if (alias == NULL || marked == NULL) { return -1; }
    *marked = **type;
    if (parser->inside == 0) {
        marked->alias = alias;
        *type = marked;
    }
    memset(alias, 0, sizeof *alias);
    if (opdi_lex_next_if(lexer, '!')) { return opdi_parse_alias_bare(parser, alias); }
    opdi_lex(lexer);
    if ((alias->nbefore = opdi_parse_alias_set(parser, &alias->before)) < 0) { return -1; }
    if (opdi_lex_next_if(lexer, '!')) {
        alias->write = true;
        if (parser->inside == 0) { parser->written = true; }
    }
    alias->after = alias->before;
    alias->nafter = alias->nbefore;
    if (opdi_lex_next_if(lexer, OPDI_TOKEN_ARROW) && (alias->nafter = opdi_parse_alias_set(parser, &alias->after)) <
        0) {
        return -1;
    }
    return opdi_lex_expect(lexer, ')', NULL);
}

OPDI_INTERNAL const opdi_type *opdi_parse_type(opdi_parser *parser);

/* Reads '(' type (',' type)* ')' after a constructor's word such as Union, and returns a type of this kind.  Only a
   tuple may have nothing between the brackets.  `total` is the required number of types; 0 allows any number.  Returns
   NULL and sets an error if that fails. */
static const opdi_type *opdi_parse_composite(opdi_parser *parser, opdi_type_kind kind, int total) {
    const opdi_type **elems = NULL;
    int count = 0, cap = 0;
    if (++parser->nodes > OPDI_MAX_TYPE_NODES) {
        opdi_syntax_error(&parser->lx, &parser->lx.cur, "type has too many parts");
        return NULL;
    }
    if (opdi_lex_expect(&parser->lx, '(', NULL) < 0) { return NULL; }
    parser->inside++;
    while (total > 0 ? count < total : (count > 0 || kind != OPDI_TYPE_TUPLE || parser->lx.cur.kind != ')')) {
        if (count > 0 && total > 0 && opdi_lex_expect(&parser->lx, ',', NULL) < 0) { return NULL; }
        if (count > 0 && kind == OPDI_TYPE_UNION && parser->lx.cur.kind != ')' && parser->lx.cur.kind != ',') {
            opdi_lex_unexpected(&parser->lx, ',');
            return NULL;
        }
        if (count > 0 && total == 0 && !opdi_lex_next_if(&parser->lx, ',')) { break; }
        if (count == cap) {
            const size_t bytes = (size_t)(cap = cap == 0 ? 4 : 2 * cap) * sizeof *elems;
            const opdi_type **more = (const opdi_type **)opdi_arena_alloc(parser->arena, bytes);
            if (more == NULL) { return NULL; }
            if (count > 0) { memcpy(more, elems, (size_t)count * sizeof *elems); }
            elems = more;
        }
        if ((elems[count++] = opdi_parse_type(parser)) == NULL) { return NULL; }
    }
    parser->inside--;
    if (opdi_lex_expect(&parser->lx, ')', NULL) < 0) { return NULL; }
    return opdi_type_new(parser, kind, elems, count);
}

/* Reads (T, U, ...) after the word Union, and returns the union.  A union of one type and None becomes an optional
   type.  Returns NULL and sets an error if that fails. */
static const opdi_type *opdi_parse_union(opdi_parser *parser) {
    const opdi_type *members[OPDI_MAX_UNION + 1];
    const opdi_token at = parser->lx.cur;
    int count;
    if (parser->inside > OPDI_MAX_UNION) {
        opdi_syntax_error(&parser->lx, &at, "type has too many parts");
        return NULL;
    }
    const opdi_type *type = opdi_parse_composite(parser, OPDI_TYPE_UNION, 0);
    if (type == NULL || (count = opdi_union_add(parser, members, 0, type, &at)) < 0) { return NULL; }
    if (count < 2) {
        opdi_syntax_error(&parser->lx, &at, "the types of a Union are one type; use it instead");
        return NULL;
    }
    if (count == 2 && members[1]->kind == OPDI_TYPE_NONE) { return opdi_make_optional(parser, members[0], &at); }
    if (count == 2 && members[0]->kind == OPDI_TYPE_NONE) { return opdi_make_optional(parser, members[1], &at); }
    if (count == 4 && opdi_union_has_numbers(members, count) && members[3]->kind == OPDI_TYPE_NONE) {
        return opdi_make_optional(parser, &opdi_base_types[OPDI_BASE_SCALAR].type, &at);
    }
    return opdi_type_new(parser, OPDI_TYPE_UNION, members, count);
}

/* Makes a type without elements, whose word is the `length` bytes at `text`.  Returns NULL if memory runs out. */
static const opdi_type *opdi_type_word(opdi_parser *parser, opdi_type_kind kind, const char *text, size_t length) {
    opdi_type *type = opdi_type_new(parser, kind, NULL, 0);
    if (type != NULL && (type->word = opdi_arena_copy(parser->arena, text, length)) == NULL) { return NULL; }
    return type;
}

/* Reads the part of __torch__.torch.classes.NS.Cls after the first word, and returns the type.  Returns NULL and sets
   an error if that fails. */
static const opdi_type *opdi_parse_class(opdi_parser *parser) {
    opdi_token part[4];
    char what[160];
    for (int i = 0; i < 4; i++) {
        if (opdi_lex_expect(&parser->lx, '.', NULL) < 0 ||
            opdi_lex_expect(&parser->lx, OPDI_TOKEN_IDENT, &part[i]) < 0) {
            return NULL;
        }
        if (i < 2 && !opdi_token_is(&part[i], i == 0 ? "torch" : "classes")) {
            snprintf(what, sizeof what, "Expected classes namespace but got %.*s",
                     part[i].length < 80 ? part[i].length : 80, part[i].text);
            opdi_syntax_error(&parser->lx, &part[i], what);
            return NULL;
        }
    }
    snprintf(what, sizeof what, "__torch__.torch.classes.%.*s.%.*s", part[2].length, part[2].text, part[3].length,
             part[3].text);
    if (part[2].length + part[3].length > 120) {
        opdi_syntax_error(&parser->lx, &part[3], "class name is too long");
        return NULL;
    }
    return opdi_type_word(parser, OPDI_TYPE_CLASS, what, strlen(what));
}

/* Returns a type variable for a word that is not a type, if type variables are allowed.  Otherwise returns NULL and
   sets an error. */
OPDI_NOINLINE static const opdi_type *opdi_parse_unknown_type(opdi_parser *parser, const opdi_token *tok) {
    const char *what = "unknown type specifier. Common valid schema types include Tensor, SymInt, int, float, bool, "
                       "str, Scalar, Device, ScalarType, Layout, MemoryFormat, Generator; T[] is a list, T? optional";
    if (parser->typevars && tok->text[0] >= 'a' && tok->text[0] <= 'z') {
        return opdi_type_word(parser, OPDI_TYPE_VAR, tok->text, (size_t)tok->length);
    }
    if (opdi_token_is(tok, "double")) {
        what = "unknown type specifier. Use `float` instead of `double` in an operator's schema string";
    } else if (opdi_token_is(tok, "int64_t")) {
        what = "unknown type specifier. Use `SymInt` or `int` instead of `int64_t` in an operator's schema string";
    }
    opdi_syntax_error(&parser->lx, tok, what);
    return NULL;
}

OPDI_INTERNAL const char *opdi_type_print(const opdi_type *type, char *buf, size_t cap);

static const opdi_type *opdi_parse_dict(opdi_parser *parser, const opdi_token *at) {
    const opdi_type *type = opdi_parse_composite(parser, OPDI_TYPE_DICT, 2);
    const int32_t key = type == NULL ? OPDI_TYPE_INT : type->elems[0]->kind;
    if (key > OPDI_TYPE_STR && key != OPDI_TYPE_DEVICE && !opdi_type_is_any(type->elems[0])) {
        char text[80], what[200];
        snprintf(what, sizeof what,
                 "Cannot create dict for key type '%s', only int, float, complex, Tensor, device and "
                 "string keys are supported", opdi_type_print(type->elems[0], text, sizeof text));
        opdi_syntax_error(&parser->lx, at, what);
        return NULL;
    }
    return type;
}

/* Reads a type without the brackets and question marks after it.  An annotation may follow a base type, Dict or Union,
   but no other type.  Returns NULL and sets an error if that fails. */
static const opdi_type *opdi_parse_base_type(opdi_parser *parser) {
    opdi_token tok = parser->lx.cur;
    const opdi_type *type;
    if (tok.kind == '(') { return opdi_parse_composite(parser, OPDI_TYPE_TUPLE, 0); }
    if (tok.kind != OPDI_TOKEN_NONE && tok.kind != OPDI_TOKEN_NONETYPE && tok.kind != OPDI_TOKEN_IDENT) {
        opdi_lex_unexpected(&parser->lx, OPDI_TOKEN_IDENT);
        return NULL;
    }
    opdi_lex(&parser->lx);
    if ((type = opdi_base_find(&tok)) != NULL) {
        if (parser->inside > 0 && type->kind == OPDI_TYPE_INT) { type = &opdi_base_types[OPDI_BASE_INT].type; }
        return opdi_parse_alias(parser, &type) < 0 ? NULL : type;
    }
    if (opdi_token_is(&tok, "Future")) { return opdi_parse_composite(parser, OPDI_TYPE_FUTURE, 1); }
    if (opdi_token_is(&tok, "Await")) { return opdi_parse_composite(parser, OPDI_TYPE_AWAIT, 1); }
    if (opdi_token_is(&tok, "RRef")) { return opdi_parse_composite(parser, OPDI_TYPE_RREF, 1); }
    if (opdi_token_is(&tok, "__torch__")) { return opdi_parse_class(parser); }
    type = opdi_token_is(&tok, "Dict") ? opdi_parse_dict(parser, &tok) : opdi_token_is(&tok, "Union")
        ? opdi_parse_union(parser) : opdi_parse_unknown_type(parser, &tok);
    if (type == NULL) { return NULL; }
    int32_t kind = type->kind == OPDI_TYPE_OPTIONAL ? type->elems[0]->kind : OPDI_TYPE_TUPLE;
    if (kind == OPDI_TYPE_TUPLE || kind == OPDI_TYPE_CLASS || kind >= OPDI_TYPE_FUTURE) {
        return opdi_parse_alias(parser, &type) < 0 ? NULL : type;
    }
    const opdi_type *elem = type->elems[0];       /* Union(T, None)(a) is T(a)?, if (a) can follow T */
    if (opdi_parse_alias(parser, &elem) < 0) { return NULL; }
    return elem != type->elems[0] ? opdi_make_optional(parser, elem, &tok) : type;
}

/* Reads type := base [alias] ( '[' ']' [alias] | '?' )*, and stops at the "[" of a list with a size.  Returns NULL and
   sets an error if that fails. */
OPDI_INTERNAL const opdi_type *opdi_parse_type(opdi_parser *parser) {
    const opdi_type *type = opdi_parse_base_type(parser);
    if (type == NULL) { return NULL; }
    for (;;) {
        if (parser->lx.cur.kind == '[') {
            const opdi_lexer before = parser->lx;
            opdi_lex(&parser->lx);
            if (parser->lx.cur.kind != ']') {
                parser->lx = before;
                return type;
            }
            opdi_lex(&parser->lx);
            if ((type = opdi_type_new(parser, OPDI_TYPE_LIST, &type, 1)) == NULL ||
                opdi_parse_alias(parser, &type) < 0) {
                return NULL;
            }
        } else if (parser->lx.cur.kind == '?') {
            const opdi_token at = parser->lx.cur;
            opdi_lex(&parser->lx);
            if ((type = opdi_make_optional(parser, type, &at)) == NULL) { return NULL; }
        } else { return type; }
    }
}
