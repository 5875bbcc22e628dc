#include "script.h"

//== syntax ============================================================================================================

/* Keywords and signs of Python that TorchScript does not accept, with advice for the error. */
static const struct { const char *found, *instead; } opdi_script_not_there[] = {
    {"try", "exceptions cannot be caught, test with `if` before the operation whether it would fail"},
    {"lambda", "write a function (def) and call it"},
    {"global", "a script has no global variables, pass the value as an argument and return the new one"},
    {"nonlocal", "a function cannot set variables of another function, return the values instead"},
    {"yield", "append to a list and return it"},
    {"async", "write torch.jit.fork and torch.jit.wait"},
    {"await", "write torch.jit.fork and torch.jit.wait"},
    {":=", "write the assignment on a separate line"}};

typedef struct opdi_script_parser {
    opdi_arena *arena;
    const opdi_script_text *text;
    const opdi_script_token *tokens;
    size_t at;
    int depth;
    int decorated;               /* the kind (OPDI_METHOD_...) that decorators give to the next def */
} opdi_script_parser;

static const opdi_script_token *opdi_script_token_at(const opdi_script_parser *parser) {
    return &parser->tokens[parser->at];
}
static opdi_syntax *opdi_script_parse_fail(const opdi_script_parser *parser, const char *wanted) {
    const opdi_script_token *token = opdi_script_token_at(parser);
    static const char *const names[] = {"eof", "ident", "number", "number", "number", "string_literal", "newline",
                                        "indent", "dedent"};
    char found[64];
    if (token->kind >= OPDI_SCRIPT_TOKEN_END && token->kind < OPDI_SCRIPT_TOKEN_SIGN &&
        token->kind != OPDI_SCRIPT_TOKEN_NAME) {
        snprintf(found, sizeof found, "%s", names[token->kind - OPDI_SCRIPT_TOKEN_END]);
    } else {
        snprintf(found, sizeof found, "%.*s", (int)OPDI_MIN(token->length, 40), parser->text->text + token->at);
    }
    const char *instead = NULL;
    for (size_t i = 0; i < sizeof opdi_script_not_there / sizeof opdi_script_not_there[0]; i++) {
        if (strcmp(opdi_script_not_there[i].found, found) == 0) { instead = opdi_script_not_there[i].instead; }
    }
    (void)opdi_script_text_fail(parser->text, token->at, token->length, "expected %s but found '%s' here%s%s", wanted,
                                found, instead ? ", which TorchScript does not have; " : "", instead ? instead : "");
    return NULL;
}
static bool opdi_script_parse_is(const opdi_script_parser *parser, int kind) {
    return opdi_script_token_at(parser)->kind == kind;
}
/* Returns whether the next token is the word or sign `word`. */
static bool opdi_script_parse_at(const opdi_script_parser *parser, const char *word) {
    const opdi_script_token *token = opdi_script_token_at(parser);
    return token->length > 0 && parser->text->text[token->at] == *word &&
        (token->kind == OPDI_SCRIPT_TOKEN_NAME || token->kind == OPDI_SCRIPT_TOKEN_SIGN ||
         token->kind < OPDI_SCRIPT_TOKEN_END) &&
        strlen(word) == token->length && memcmp(word, parser->text->text + token->at, token->length) == 0;
}
static bool opdi_script_parse_take(opdi_script_parser *parser, const char *word) {
    if (!opdi_script_parse_at(parser, word)) { return false; }
    parser->at++;
    return true;
}
/* Skips the word or sign `word`, which must be the next token.  Returns 0, or -1 and sets an error. */
static int opdi_script_parse_need(opdi_script_parser *parser, const char *word) {
    if (opdi_script_parse_take(parser, word)) { return 0; }
    opdi_script_parse_fail(parser, word);
    return -1;
}

/* Makes a node that begins at byte `at` of the text and has `nparts` parts.  Returns the node, or NULL if memory runs
   out. */
static opdi_syntax *opdi_syntax_new(opdi_script_parser *parser, opdi_syntax_kind kind, uint32_t at, int nparts) {
    const size_t size = sizeof(opdi_syntax) + (size_t)nparts * sizeof(opdi_syntax *);
    opdi_syntax *node = opdi_node_denied() ? NULL : (opdi_syntax *)opdi_arena_alloc(parser->arena, size);
    if (!node) { return NULL; }
    memset(node, 0, size);
    node->kind = (int16_t)kind;
    node->nparts = nparts;
    node->parts = (opdi_syntax **)(void *)(node + 1);
    node->text = parser->text;
    node->at = at;
    const opdi_script_token *last = parser->at ? &parser->tokens[parser->at - 1] : opdi_script_token_at(parser);
    node->length = last->at + last->length > at ? last->at + last->length - at : 1;
    return node;
}
static opdi_syntax *opdi_syntax_1(opdi_script_parser *parser, opdi_syntax_kind kind, uint32_t at, opdi_syntax *first) {
    opdi_syntax *node = opdi_syntax_new(parser, kind, at, 1);
    if (node) { node->parts[0] = first; }
    return node;
}
static opdi_syntax *opdi_syntax_2(opdi_script_parser *parser, opdi_syntax_kind kind, uint32_t at, opdi_syntax *first,
                                  opdi_syntax *second) {
    opdi_syntax *node = opdi_syntax_new(parser, kind, at, 2);
    if (!node) { return NULL; }
    node->parts[0] = first;
    node->parts[1] = second;
    return node;
}
/* Makes a node whose parts are the nodes in `list`, and empties the list.  If `fine` is false (an error has occurred),
   only empties the list and returns NULL.  Returns the node, or NULL and sets an error. */
static opdi_syntax *opdi_syntax_of(opdi_script_parser *parser, opdi_syntax_kind kind, uint32_t at, opdi_string *list,
                                   bool fine) {
    const int count = (int)(list->length / sizeof(opdi_syntax *));
    opdi_syntax *node = fine && !list->failed ? opdi_syntax_new(parser, kind, at, count) : NULL;
    if (node && count) { memcpy(node->parts, list->data, list->length); }
    opdi_string_free(list);
    return node;
}
static bool opdi_syntax_put(opdi_string *list, opdi_syntax *node) {
    opdi_string_add_n(list, (const char *)(const void *)&node, sizeof node);
    return !list->failed;
}
/* Sets an error for an expression that has more than `most` links: calls (or operators) in a row.  Returns NULL. */
static opdi_syntax *opdi_script_parse_long(const opdi_script_parser *parser, const char *links, int most) {
    (void)opdi_script_text_fail(parser->text, opdi_script_token_at(parser)->at, 1, "an expression has more than %d %s "
                                "in a row: assign a part of it to a variable", most, links);
    return NULL;
}

static opdi_syntax *opdi_script_parse_ternary(opdi_script_parser *parser);
static opdi_syntax *opdi_script_parse_list(opdi_script_parser *parser, const char *end);

/* Adds 1 to the depth of nesting.  Returns false and sets an error if the nesting is too deep. */
static bool opdi_script_parse_enter(opdi_script_parser *parser) {
    const int most = opdi_depth_most(OPDI_SCRIPT_DEPTH);
    if (++parser->depth <= most) { return true; }
    (void)opdi_script_text_fail(parser->text, opdi_script_token_at(parser)->at, 1, "this is nested more than %d deep",
                                most);
    return false;
}

//== names, literals and brackets ======================================================================================

/* Appends the character `code` as UTF-8. */
static void opdi_script_text_utf8(opdi_string *to, uint32_t code) {
    char bytes[4];
    int count = 0;
    if (code < 0x80) { bytes[count++] = (char)code; }
    else if (code < 0x800) {
        bytes[count++] = (char)(0xC0 | code >> 6);
        bytes[count++] = (char)(0x80 | (code & 63));
    } else {
        if (code < 0x10000) { bytes[count++] = (char)(0xE0 | code >> 12); }
        else {
            bytes[count++] = (char)(0xF0 | (code >> 18 & 7));
            bytes[count++] = (char)(0x80 | (code >> 12 & 63));
        }
        bytes[count++] = (char)(0x80 | (code >> 6 & 63));
        bytes[count++] = (char)(0x80 | (code & 63));
    }
    opdi_string_add_n(to, bytes, (size_t)count);
}
/* Appends the character that an escape means.  `text` begins after the backslash and has `left` bytes.  Returns the
   length of the escape without the backslash.  If the text is not an escape, appends the backslash and returns 0. */
static size_t opdi_script_text_escape(opdi_string *to, const char *text, size_t left) {
    static const char letters[] = "abfnrtv\\'\"", values[] = "\a\b\f\n\r\t\v\\'\"";
    const char *found = *text ? strchr(letters, *text) : NULL;
    uint32_t code = 0;
    size_t count = 0;
    if (*text == '\n') { return 1; }
    if (found) {
        opdi_string_add_n(to, &values[found - letters], 1);
        return 1;
    }
    if (*text >= '0' && *text <= '7') {
        for (; count < 3 && count < left && text[count] >= '0' && text[count] <= '7'; count++) {
            code = code * 8 + (uint32_t)(text[count] - '0');
        }
        const char byte = (char)code;
        opdi_string_add_n(to, &byte, 1);           /* an octal escape, with which PyTorch writes bytes */
        return count;
    }
    const size_t digits = *text == 'x' ? 2 : *text == 'u' ? 4 : *text == 'U' ? 8 : 0;
    for (count = 1; digits && count <= digits && count < left && opdi_is_hex(text[count]); count++) {
        const int letter = text[count] | 32;
        code = code * 16 + (uint32_t)(letter <= '9' ? letter - '0' : letter - 'a' + 10);
    }
    if (!digits || count <= digits) {
        opdi_string_add(to, "\\");
        return 0;
    }
    opdi_script_text_utf8(to, code);
    return count;
}
/* Makes a text node with the contents of `bytes`, and frees `bytes`.  Returns the node, or NULL and sets an error. */
static opdi_syntax *opdi_syntax_text(opdi_script_parser *parser, uint32_t at, opdi_string *bytes) {
    opdi_syntax *node = bytes->failed ? NULL : opdi_syntax_new(parser, OPDI_SYNTAX_TEXT, at, 0);
    if (node) {
        node->integer = (int64_t)bytes->length;
        node->word = opdi_arena_copy(parser->arena, bytes->data ? bytes->data : "", bytes->length);
    }
    opdi_string_free(bytes);
    return node && node->word ? node : NULL;
}
static opdi_syntax *opdi_script_parse_within(opdi_script_parser *parser, size_t at, size_t length);
/* Parses an f-string of `length` bytes at `at`.  In the new node, the parts are alternately texts and expressions.
   Returns the node, or NULL and sets an error. */
static opdi_syntax *opdi_script_parse_format(opdi_script_parser *parser, uint32_t from, size_t at, size_t length) {
    const char *text = parser->text->text;
    opdi_string list = {NULL, 0, 0, false}, bytes = {NULL, 0, 0, false};
    const size_t end = at + length;
    bool fine = true;
    while (fine && at < end) {
        if ((text[at] == '{' || text[at] == '}') && at + 1 < end && text[at + 1] == text[at]) {
            opdi_string_add_n(&bytes, text + at, 1);
            at += 2;
        } else if (text[at] == '{') {
            size_t stop = at + 1;
            int nesting = 0;
            for (; stop < end && (nesting || text[stop] != '}'); stop++) {
                nesting += (text[stop] == '(' || text[stop] == '[' || text[stop] == '{') -
                    (text[stop] == ')' || text[stop] == ']' || text[stop] == '}');
            }
            opdi_syntax *before = opdi_syntax_text(parser, from, &bytes);
            memset(&bytes, 0, sizeof bytes);
            opdi_syntax *value = before && stop < end ? opdi_script_parse_within(parser, at + 1, stop - at - 1) : NULL;
            if (before && stop >= end) { opdi_script_text_fail(parser->text, at, 1, "f-string: expecting '}'"); }
            fine = value && opdi_syntax_put(&list, before) && opdi_syntax_put(&list, value);
            at = stop + 1;
        } else if (text[at] == '\\') {
            at++;
            at += opdi_script_text_escape(&bytes, text + at, end - at);
        } else {
            opdi_string_add_n(&bytes, text + at++, 1);
        }
    }
    opdi_syntax *rest = opdi_syntax_text(parser, from, &bytes);
    fine = fine && rest && opdi_syntax_put(&list, rest);
    return opdi_syntax_of(parser, OPDI_SYNTAX_FORMAT, from, &list, fine);
}
/* Parses one or more adjacent strings, which together form one string.  Returns the node, or NULL and sets an error. */
static opdi_syntax *opdi_script_parse_text(opdi_script_parser *parser) {
    const char *text = parser->text->text;
    const uint32_t from = opdi_script_token_at(parser)->at;
    opdi_string bytes = {NULL, 0, 0, false};
    for (; opdi_script_parse_is(parser, OPDI_SCRIPT_TOKEN_TEXT); parser->at++) {
        const opdi_script_token *token = opdi_script_token_at(parser);
        const size_t prefix = (size_t)token->sign, quote = token->at + prefix;
        const bool triple = token->length - prefix >= 6 && text[quote + 1] == text[quote] &&
            text[quote + 2] == text[quote];
        const size_t marks = triple ? 3 : 1, begin = quote + marks, end = token->at + token->length - marks;
        bool raw = false, format = false;
        for (size_t i = token->at; i < quote; i++) {
            raw = raw || (text[i] | 32) == 'r';
            format = format || (text[i] | 32) == 'f';
        }
        if (format) {
            opdi_string_free(&bytes);
            parser->at++;
            if (bytes.length || opdi_script_parse_is(parser, OPDI_SCRIPT_TOKEN_TEXT)) {
                opdi_script_text_fail(parser->text, token->at, token->length,
                                      "an f-string cannot be joined with another "
                                      "string");
                return NULL;
            }
            return opdi_script_parse_format(parser, token->at, begin, end - begin);
        }
        for (size_t i = begin; i < end;) {
            if (raw || text[i] != '\\') { opdi_string_add_n(&bytes, text + i++, 1); }
            else {
                i++;
                i += opdi_script_text_escape(&bytes, text + i, end - i);
            }
        }
    }
    return opdi_syntax_text(parser, from, &bytes);
}
/* Parses a number.  Fails for a decimal integer that does not fit in int64.  Returns the node, or NULL and sets an
   error. */
static opdi_syntax *opdi_script_parse_number(opdi_script_parser *parser) {
    const opdi_script_token *token = opdi_script_token_at(parser);
    char digits[512];
    size_t count = 0;
    char *end;
    if (token->length >= sizeof digits) { return opdi_script_parse_fail(parser, "a shorter number"); }
    for (uint32_t i = 0; i < token->length; i++) {
        const char letter = parser->text->text[token->at + i];
        if (letter != '_') { digits[count++] = letter; }
    }
    digits[count] = 0;
    parser->at++;
    opdi_syntax *node = opdi_syntax_new(parser,
                                        token->kind == OPDI_SCRIPT_TOKEN_INT ? OPDI_SYNTAX_INT
                                        : token->kind == OPDI_SCRIPT_TOKEN_FLOAT
                                        ? OPDI_SYNTAX_FLOAT : OPDI_SYNTAX_IMAGINARY, token->at, 0);
    if (!node) { return NULL; }
    if (token->kind != OPDI_SCRIPT_TOKEN_INT) {
        node->number = opdi_strtod(digits, (int)count - (token->kind == OPDI_SCRIPT_TOKEN_IMAGINARY));
        return node;
    }
    if (count > 1 && digits[0] == '0' && strspn(digits, "0123456789") == count && strspn(digits, "0") < count) {
        opdi_script_text_fail(parser->text, token->at, token->length,
                              "a decimal number must not begin with 0: write 0o for "
                              "an octal number");
        return NULL;
    }
    const int letter = count > 1 ? digits[1] | 32 : 0;
    const int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    errno = 0;
    const unsigned long long value = strtoull(base == 10 ? digits : digits + 2, &end, base);
    if (*end || errno || (value > (unsigned long long)INT64_MAX + 1)) {
        opdi_script_text_fail(parser->text, token->at, token->length, "Integer literal is out of range");
        return NULL;
    }
    node->integer = (int64_t)value;
    node->op = value > INT64_MAX ? OPDI_SIGN_NEEDED : OPDI_SIGN_NONE;
    return node;
}
static opdi_syntax *opdi_script_parse_target(opdi_script_parser *parser);
static opdi_syntax *opdi_script_parse_or(opdi_script_parser *parser);
/* Parses the part "for target in iterated [if condition]" of a comprehension.  Makes a node whose parts are the key
   (only in a dict), the element, and this part.  Returns the node, or NULL and sets an error. */
static opdi_syntax *opdi_script_parse_comprehension(opdi_script_parser *parser, opdi_syntax_kind kind, uint32_t at,
                                                    opdi_syntax *key,
                                                    opdi_syntax *element) {
    const int first = kind == OPDI_SYNTAX_DICTCOMP ? 2 : 1;
    opdi_syntax *node = opdi_syntax_new(parser, kind, at, first + 3);
    if (!node || opdi_script_parse_need(parser, "for")) { return NULL; }
    node->parts[0] = kind == OPDI_SYNTAX_DICTCOMP ? key : element;
    if (kind == OPDI_SYNTAX_DICTCOMP) { node->parts[1] = element; }
    if (!(node->parts[first] = opdi_script_parse_target(parser)) || opdi_script_parse_need(parser, "in") ||
        !(node->parts[first + 1] = opdi_script_parse_or(parser))) { return NULL; }
    if (opdi_script_parse_take(parser, "if") && !(node->parts[first + 2] = opdi_script_parse_or(parser))) {
        return NULL;
    }
    return node;
}
/* Parses an element of a tuple or list, or a target: an expression, which may have a star in front.  Returns the node,
   or NULL and sets an error. */
static opdi_syntax *opdi_script_parse_item(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    if (!opdi_script_parse_take(parser, "*")) { return opdi_script_parse_ternary(parser); }
    opdi_syntax *item = opdi_script_parse_or(parser);
    return item ? opdi_syntax_1(parser, OPDI_SYNTAX_STAR, at, item) : NULL;
}
/* Parses the contents of brackets, and the closing bracket `end`.  Returns the node, or NULL and sets an error. */
static opdi_syntax *opdi_script_parse_brackets(opdi_script_parser *parser, const char *end) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    const bool list = *end == ']';
    opdi_string items = {NULL, 0, 0, false};
    bool comma = false, fine = true;
    parser->at++;
    while (fine && !opdi_script_parse_at(parser, end)) {
        opdi_syntax *item = opdi_script_parse_item(parser);
        if (item && opdi_script_parse_at(parser, "for") && !items.length) {
            item = opdi_script_parse_comprehension(parser, OPDI_SYNTAX_LISTCOMP, at, NULL, item);
            if (item && opdi_script_parse_need(parser, end)) { item = NULL; }
            return item;
        }
        fine = item && opdi_syntax_put(&items, item);
        if (fine && !opdi_script_parse_at(parser, end)) {
            comma = true;
            fine = opdi_script_parse_need(parser, list ? "," : opdi_script_parse_at(parser, ",") ? "," : end) == 0;
        }
    }
    fine = fine && opdi_script_parse_need(parser, end) == 0;
    if (fine && !list && !comma && items.length == sizeof(opdi_syntax *)) {
        opdi_syntax *only = ((opdi_syntax **)(void *)items.data)[0];
        opdi_string_free(&items);
        return only;
    }
    return opdi_syntax_of(parser, list ? OPDI_SYNTAX_LIST : OPDI_SYNTAX_TUPLE, at, &items, fine);
}
static opdi_syntax *opdi_script_parse_braces(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    opdi_string items = {NULL, 0, 0, false};
    opdi_syntax_kind kind = OPDI_SYNTAX_DICT;
    bool fine = true;
    parser->at++;
    while (fine && !opdi_script_parse_at(parser, "}")) {
        opdi_syntax *key = opdi_script_parse_ternary(parser), *value;
        if (key && !opdi_script_parse_at(parser, ":")) {
            kind = OPDI_SYNTAX_SET;
            fine = opdi_syntax_put(&items, key);
        } else {
            value = key && opdi_script_parse_need(parser, ":") == 0 ? opdi_script_parse_ternary(parser) : NULL;
            if (value && opdi_script_parse_at(parser, "for") && !items.length) {
                value = opdi_script_parse_comprehension(parser, OPDI_SYNTAX_DICTCOMP, at, key, value);
                return value && opdi_script_parse_need(parser, "}") == 0 ? value : NULL;
            }
            fine = value && opdi_syntax_put(&items, key) && opdi_syntax_put(&items, value);
        }
        fine = fine && (opdi_script_parse_take(parser, ",") || opdi_script_parse_at(parser, "}") ||
                        opdi_script_parse_need(parser, "}") == 0);
    }
    fine = fine && opdi_script_parse_need(parser, "}") == 0;
    return opdi_syntax_of(parser, kind, at, &items, fine);
}
/* Keywords, which cannot be names. */
static const char opdi_script_keywords[] =
    "and as assert async await break class continue def del elif else except False "
    "finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield ";
static opdi_syntax *opdi_script_parse_atom(opdi_script_parser *parser) {
    const opdi_script_token *token = opdi_script_token_at(parser);
    const char *word = parser->text->text + token->at;
    if (token->kind == OPDI_SCRIPT_TOKEN_TEXT) { return opdi_script_parse_text(parser); }
    if (token->kind >= OPDI_SCRIPT_TOKEN_INT && token->kind <= OPDI_SCRIPT_TOKEN_IMAGINARY) {
        return opdi_script_parse_number(parser);
    }
    if (opdi_script_parse_at(parser, "(")) { return opdi_script_parse_brackets(parser, ")"); }
    if (opdi_script_parse_at(parser, "[")) { return opdi_script_parse_brackets(parser, "]"); }
    if (opdi_script_parse_at(parser, "{")) { return opdi_script_parse_braces(parser); }
    if (opdi_script_parse_at(parser, "...")) {
        parser->at++;
        return opdi_syntax_new(parser, OPDI_SYNTAX_DOTS, token->at, 0);
    }
    if (token->kind != OPDI_SCRIPT_TOKEN_NAME) { return opdi_script_parse_fail(parser, "an expression"); }
    const opdi_syntax_kind kind = opdi_script_parse_at(parser, "True")
        ? OPDI_SYNTAX_TRUE : opdi_script_parse_at(parser, "False")
        ? OPDI_SYNTAX_FALSE
        : opdi_script_parse_at(parser, "None") ? OPDI_SYNTAX_NONE : OPDI_SYNTAX_NAME;
    if (kind == OPDI_SYNTAX_NAME && opdi_word_in(word, (int)token->length, opdi_script_keywords)) {
        return opdi_script_parse_fail(parser, "an expression");
    }
    parser->at++;
    opdi_syntax *node = opdi_syntax_new(parser, kind, token->at, 0);
    if (node && kind == OPDI_SYNTAX_NAME && !(node->word = opdi_arena_copy(parser->arena, word, token->length))) {
        return NULL;
    }
    return node;
}

//== expressions =======================================================================================================

/* Parses the arguments of a call of `called`, after the opening bracket.  Returns the node of the call, or NULL and
   sets an error. */
static opdi_syntax *opdi_script_parse_call(opdi_script_parser *parser, opdi_syntax *called) {
    opdi_string items = {NULL, 0, 0, false};
    bool fine = opdi_syntax_put(&items, called);
    parser->at++;
    while (fine && !opdi_script_parse_at(parser, ")")) {
        const opdi_script_token *token = opdi_script_token_at(parser);
        opdi_syntax *item;
        if (token->kind == OPDI_SCRIPT_TOKEN_NAME && parser->tokens[parser->at + 1].kind == '=') {
            parser->at += 2;
            opdi_syntax *value = opdi_script_parse_ternary(parser);
            item = value ? opdi_syntax_1(parser, OPDI_SYNTAX_KEYWORD, token->at, value) : NULL;
            if (item && !(item->word = opdi_arena_copy(parser->arena, parser->text->text + token->at, token->length))) {
                item = NULL;
            }
        } else if (opdi_script_parse_take(parser, "*")) {
            opdi_syntax *value = opdi_script_parse_ternary(parser);
            item = value ? opdi_syntax_1(parser, OPDI_SYNTAX_STAR, token->at, value) : NULL;
        } else {
            item = opdi_script_parse_ternary(parser);
            if (item && opdi_script_parse_at(parser, "for")) {  /* a generator expression is parsed as a list
                                                                   comprehension */
                item = opdi_script_parse_comprehension(parser, OPDI_SYNTAX_LISTCOMP, token->at, NULL, item);
            }
        }
        fine = item && opdi_syntax_put(&items, item);
        if (fine && !opdi_script_parse_at(parser, ")")) { fine = opdi_script_parse_need(parser, ",") == 0; }
    }
    fine = fine && opdi_script_parse_need(parser, ")") == 0;
    return opdi_syntax_of(parser, OPDI_SYNTAX_CALL, called->at, &items, fine);
}
static opdi_syntax *opdi_script_parse_index(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    opdi_syntax *begin = NULL, *end = NULL, *step = NULL;
    if (!opdi_script_parse_at(parser, ":")) {
        if (!(begin = opdi_script_parse_ternary(parser))) { return NULL; }
        if (!opdi_script_parse_at(parser, ":")) { return begin; }
    }
    parser->at++;
    const bool more = !opdi_script_parse_at(parser, "]") && !opdi_script_parse_at(parser, ",");
    if (more && !opdi_script_parse_at(parser, ":") && !(end = opdi_script_parse_ternary(parser))) { return NULL; }
    if (opdi_script_parse_take(parser, ":") && !opdi_script_parse_at(parser, "]") &&
        !opdi_script_parse_at(parser, ",") &&
        !(step = opdi_script_parse_ternary(parser))) { return NULL; }
    opdi_syntax *node = opdi_syntax_new(parser, OPDI_SYNTAX_SLICE, at, 3);
    if (!node) { return NULL; }
    node->parts[0] = begin;
    node->parts[1] = end;
    node->parts[2] = step;
    return node;
}
static opdi_syntax *opdi_script_parse_subscript(opdi_script_parser *parser, opdi_syntax *value) {
    opdi_string items = {NULL, 0, 0, false};
    bool fine = opdi_syntax_put(&items, value), comma = false;
    parser->at++;
    do {
        opdi_syntax *item = opdi_script_parse_index(parser);
        fine = item && opdi_syntax_put(&items, item);
        if (fine && !opdi_script_parse_at(parser, "]")) {
            comma = true;
            fine = opdi_script_parse_need(parser, ",") == 0;
        }
    } while (fine && !opdi_script_parse_at(parser, "]"));
    fine = fine && opdi_script_parse_need(parser, "]") == 0;
    opdi_syntax *node = opdi_syntax_of(parser, OPDI_SYNTAX_SUBSCRIPT, value->at, &items, fine);
    if (node) { node->op = comma; }
    return node;
}
static opdi_syntax *opdi_script_parse_primary(opdi_script_parser *parser) {
    opdi_syntax *node = opdi_script_parse_atom(parser);
    while (node) {
        if (opdi_script_parse_at(parser, "(")) { node = opdi_script_parse_call(parser, node); }
        else if (opdi_script_parse_at(parser, "[")) { node = opdi_script_parse_subscript(parser, node); }
        else if (opdi_script_parse_take(parser, ".")) {
            const opdi_script_token *token = opdi_script_token_at(parser);
            if (token->kind != OPDI_SCRIPT_TOKEN_NAME) { return opdi_script_parse_fail(parser, "ident"); }
            parser->at++;
            node = opdi_syntax_1(parser, OPDI_SYNTAX_ATTR, node->at, node);
            if (node && !(node->word = opdi_arena_copy(parser->arena, parser->text->text + token->at, token->length))) {
                return NULL;
            }
        } else { break; }
    }
    return node;
}
static opdi_syntax *opdi_syntax_op(opdi_script_parser *parser, opdi_syntax_kind kind, int op, uint32_t at,
                                   opdi_syntax *first, opdi_syntax *second) {
    opdi_syntax *node = opdi_syntax_2(parser, kind, at, first, second);
    if (!node) { return NULL; }
    node->op = (int16_t)op;
    node->nparts = second ? 2 : 1;
    return node;
}
static opdi_syntax *opdi_script_parse_unary(opdi_script_parser *parser);
static opdi_syntax *opdi_script_parse_power(opdi_script_parser *parser) {
    opdi_syntax *base = opdi_script_parse_primary(parser);
    if (!base || !opdi_script_parse_take(parser, "**")) { return base; }
    opdi_syntax *exponent = opdi_script_parse_unary(parser);
    return exponent ? opdi_syntax_op(parser, OPDI_SYNTAX_BINARY, OPDI_SCRIPT_OP_POW, base->at, base, exponent) : NULL;
}
static opdi_syntax *opdi_script_parse_unary(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    const int op = opdi_script_parse_at(parser, "-") ? OPDI_SCRIPT_OP_NEG : opdi_script_parse_at(parser, "+")
        ? OPDI_SCRIPT_OP_POS
        : opdi_script_parse_at(parser, "~") ? OPDI_SCRIPT_OP_INVERT : -1;
    if (op < 0) { return opdi_script_parse_power(parser); }
    if (!opdi_script_parse_enter(parser)) { return NULL; }
    parser->at++;
    opdi_syntax *value = opdi_script_parse_unary(parser);
    parser->depth--;
    if (!value) { return NULL; }
    if (op == OPDI_SCRIPT_OP_NEG && (value->kind == OPDI_SYNTAX_INT || value->kind == OPDI_SYNTAX_FLOAT) &&
        value->at > at && value->op != OPDI_SIGN_WRITTEN) {
        value->integer = (int64_t)(0 - (uint64_t)value->integer);
        value->number = -value->number;
        value->at = at;
        value->op = OPDI_SIGN_WRITTEN;
        return value;
    }
    return opdi_syntax_op(parser, OPDI_SYNTAX_UNARY, op, at, value, NULL);
}
/* The binary operators with their precedence. */
static const struct { const char *sign; int level, op; } opdi_script_binary[] = {
    {"*", 5, OPDI_SCRIPT_OP_MUL}, {"/", 5, OPDI_SCRIPT_OP_DIV}, {"//", 5, OPDI_SCRIPT_OP_FLOORDIV},
    {"%", 5, OPDI_SCRIPT_OP_MOD},
    {"@", 5, OPDI_SCRIPT_OP_MATMUL}, {"+", 4, OPDI_SCRIPT_OP_ADD}, {"-", 4, OPDI_SCRIPT_OP_SUB},
    {"<<", 3, OPDI_SCRIPT_OP_SHL},
    {">>", 3, OPDI_SCRIPT_OP_SHR}, {"&", 2, OPDI_SCRIPT_OP_AND}, {"^", 1, OPDI_SCRIPT_OP_XOR},
    {"|", 0, OPDI_SCRIPT_OP_OR}};
static int opdi_script_parse_sign(const opdi_script_parser *parser, int level) {
    if (!strchr("*/%@+-<>&^|", parser->text->text[opdi_script_token_at(parser)->at])) { return -1; }
    for (size_t i = 0; i < sizeof opdi_script_binary / sizeof opdi_script_binary[0]; i++) {
        if (opdi_script_binary[i].level == level && opdi_script_parse_at(parser, opdi_script_binary[i].sign)) {
            return opdi_script_binary[i].op;
        }
    }
    return -1;
}
static opdi_syntax *opdi_script_parse_binary(opdi_script_parser *parser, int level) {
    opdi_syntax *left = level == 5 ? opdi_script_parse_unary(parser) : opdi_script_parse_binary(parser, level + 1);
    for (int links = 0; left; links++) {
        const int op = opdi_script_parse_sign(parser, level);
        if (op < 0) { return left; }
        if (links > OPDI_SCRIPT_DEPTH) { return opdi_script_parse_long(parser, "operators", OPDI_SCRIPT_DEPTH); }
        parser->at++;
        opdi_syntax *right = level == 5 ? opdi_script_parse_unary(parser) : opdi_script_parse_binary(parser, level + 1);
        left = right ? opdi_syntax_op(parser, OPDI_SYNTAX_BINARY, op, left->at, left, right) : NULL;
    }
    return NULL;
}
/* Skips a comparison operator.  Returns its OPDI_SCRIPT_OP_..., or -1 if the next token is not one. */
static int opdi_script_parse_comparison(opdi_script_parser *parser) {
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">="};
    for (int i = 0; i < 6; i++) { if (opdi_script_parse_take(parser, signs[i])) { return OPDI_SCRIPT_OP_EQ + i; } }
    if (opdi_script_parse_take(parser, "in")) { return OPDI_SCRIPT_OP_IN; }
    if (opdi_script_parse_at(parser, "not")) {
        const opdi_script_token *next = &parser->tokens[parser->at + 1];
        if (next->kind == OPDI_SCRIPT_TOKEN_NAME && next->length == 2 &&
            memcmp(parser->text->text + next->at, "in", 2) == 0) {
            parser->at += 2;
            return OPDI_SCRIPT_OP_NOTIN;
        }
        return -1;
    }
    if (!opdi_script_parse_take(parser, "is")) { return -1; }
    return opdi_script_parse_take(parser, "not") ? OPDI_SCRIPT_OP_ISNOT : OPDI_SCRIPT_OP_IS;
}
/* Parses comparisons; a < b < c means (a < b) and (b < c).  Returns the node, or NULL and sets an error. */
static opdi_syntax *opdi_script_parse_compare(opdi_script_parser *parser) {
    opdi_syntax *left = opdi_script_parse_binary(parser, 0), *all = NULL;
    for (int links = 0; left; links++) {
        const int op = opdi_script_parse_comparison(parser);
        if (op < 0) { return all ? all : left; }
        if (links > OPDI_SCRIPT_DEPTH) { return opdi_script_parse_long(parser, "operators", OPDI_SCRIPT_DEPTH); }
        opdi_syntax *right = opdi_script_parse_binary(parser, 0);
        opdi_syntax *pair = right ? opdi_syntax_op(parser, OPDI_SYNTAX_COMPARE, op, left->at, left, right) : NULL;
        if (!pair) { return NULL; }
        if (!(all = all ? opdi_syntax_2(parser, OPDI_SYNTAX_AND, all->at, all, pair) : pair)) { return NULL; }
        left = right;
    }
    return NULL;
}
static opdi_syntax *opdi_script_parse_not(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    if (!opdi_script_parse_take(parser, "not")) { return opdi_script_parse_compare(parser); }
    if (!opdi_script_parse_enter(parser)) { return NULL; }
    opdi_syntax *value = opdi_script_parse_not(parser);
    parser->depth--;
    return value ? opdi_syntax_1(parser, OPDI_SYNTAX_NOT, at, value) : NULL;
}
static opdi_syntax *opdi_script_parse_and(opdi_script_parser *parser) {
    opdi_syntax *left = opdi_script_parse_not(parser);
    for (int links = 0; left && opdi_script_parse_take(parser, "and"); links++) {
        if (links > OPDI_SCRIPT_DEPTH) { return opdi_script_parse_long(parser, "operators", OPDI_SCRIPT_DEPTH); }
        opdi_syntax *right = opdi_script_parse_not(parser);
        left = right ? opdi_syntax_2(parser, OPDI_SYNTAX_AND, left->at, left, right) : NULL;
    }
    return left;
}
static opdi_syntax *opdi_script_parse_or(opdi_script_parser *parser) {
    opdi_syntax *left = opdi_script_parse_and(parser);
    for (int links = 0; left && opdi_script_parse_take(parser, "or"); links++) {
        if (links > OPDI_SCRIPT_DEPTH) { return opdi_script_parse_long(parser, "operators", OPDI_SCRIPT_DEPTH); }
        opdi_syntax *right = opdi_script_parse_and(parser);
        left = right ? opdi_syntax_2(parser, OPDI_SYNTAX_OR, left->at, left, right) : NULL;
    }
    return left;
}
static opdi_syntax *opdi_script_parse_ternary(opdi_script_parser *parser) {
    if (!opdi_script_parse_enter(parser)) { return NULL; }
    opdi_syntax *value = opdi_script_parse_or(parser);
    if (value && opdi_script_parse_take(parser, "if")) {
        opdi_syntax *condition = opdi_script_parse_or(parser);
        opdi_syntax *otherwise = condition && opdi_script_parse_need(parser, "else") == 0
            ? opdi_script_parse_ternary(parser)
            : NULL;
        opdi_syntax *node = otherwise ? opdi_syntax_new(parser, OPDI_SYNTAX_TERNARY, value->at, 3) : NULL;
        if (node) {
            node->parts[0] = condition;
            node->parts[1] = value;
            node->parts[2] = otherwise;
        }
        value = node;
    }
    parser->depth--;
    return value;
}
/* Parses expressions that are separated by commas, up to the token `end`.  Several expressions, or one with a comma
   after it, form a tuple.  Returns the node, or NULL and sets an error. */
static opdi_syntax *opdi_script_parse_list(opdi_script_parser *parser, const char *end) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    opdi_string items = {NULL, 0, 0, false};
    opdi_syntax *first = NULL;
    bool fine = true, comma = false;
    do {
        opdi_syntax *item = opdi_script_parse_item(parser);
        first = first ? first : item;
        fine = item && opdi_syntax_put(&items, item);
        if (!fine || !opdi_script_parse_take(parser, ",")) { break; }
        comma = true;
    } while (!opdi_script_parse_is(parser, OPDI_SCRIPT_TOKEN_NEWLINE) && !opdi_script_parse_at(parser, end) &&
             !opdi_script_parse_at(parser, "="));
    if (fine && !comma) {
        opdi_string_free(&items);
        return first;
    }
    return opdi_syntax_of(parser, OPDI_SYNTAX_TUPLE, at, &items, fine);
}
static opdi_syntax *opdi_script_parse_target(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    opdi_string items = {NULL, 0, 0, false};
    opdi_syntax *first = NULL;
    bool fine = true, comma = false;
    do {
        opdi_syntax *item = opdi_script_parse_primary(parser);
        first = first ? first : item;
        fine = item && opdi_syntax_put(&items, item);
        if (!fine || !opdi_script_parse_take(parser, ",")) { break; }
        comma = true;
    } while (!opdi_script_parse_at(parser, "in"));
    if (fine && !comma) {
        opdi_string_free(&items);
        return first;
    }
    return opdi_syntax_of(parser, OPDI_SYNTAX_TUPLE, at, &items, fine);
}
/* Parses the expression in the braces of an f-string, which has `length` bytes and begins at byte `at`.  Returns the
   node, or NULL and sets an error. */
static opdi_syntax *opdi_script_parse_within(opdi_script_parser *parser, size_t at, size_t length) {
    opdi_script_text part = *parser->text;
    opdi_script_parser inner = *parser;
    opdi_script_lexer lexer;
    opdi_syntax *node = NULL;
    memset(&lexer, 0, sizeof lexer);
    part.length = at + length;
    lexer.text = &part;
    lexer.at = at;
    lexer.nindents = 1;
    lexer.nesting = 1;
    lexer.pending = true;
    int rc = length ? 0 : opdi_script_text_fail(parser->text, at, 1, "f-string: empty expression not allowed");
    while (!rc && lexer.at < part.length) { rc = opdi_script_lex_step(&lexer); }
    if (!rc && !opdi_script_lex_put(&lexer, OPDI_SCRIPT_TOKEN_END, 0, part.length, 0)) {
        inner.tokens = (const opdi_script_token *)(const void *)lexer.tokens.data;
        inner.at = 0;
        if (opdi_script_parse_enter(&inner)) { node = opdi_script_parse_list(&inner, "}"); }
        if (node && !opdi_script_parse_is(&inner, OPDI_SCRIPT_TOKEN_END)) {
            node = opdi_script_parse_fail(&inner, "}");
        }
    }
    opdi_string_free(&lexer.tokens);
    return node;
}

//== statements ========================================================================================================

static opdi_syntax *opdi_script_parse_block(opdi_script_parser *parser);
static opdi_syntax *opdi_script_parse_statement(opdi_script_parser *parser);

/* Parses `if` or `elif`, a condition and a block.  Returns the node, which has no other block yet, or NULL and sets an
   error. */
static opdi_syntax *opdi_script_parse_branch(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    parser->at++;
    opdi_syntax *const condition = opdi_script_parse_list(parser, ":");
    opdi_syntax *const node = condition ? opdi_syntax_new(parser, OPDI_SYNTAX_IF, at, 3) : NULL;
    if (!node || opdi_script_parse_need(parser, ":")) { return NULL; }
    node->parts[0] = condition;
    node->parts[1] = opdi_script_parse_block(parser);
    node->parts[2] = NULL;
    return node->parts[1] ? node : NULL;
}
/* Parses an `if` with its elif and else.  An `elif` is an `if` in the other block of the one before it.  Returns the
   node, or NULL and sets an error. */
static opdi_syntax *opdi_script_parse_if(opdi_script_parser *parser) {
    if (!opdi_script_parse_enter(parser)) { return NULL; }
    opdi_syntax *const first = opdi_script_parse_branch(parser), *last = first;
    while (last && opdi_script_parse_at(parser, "elif")) {
        opdi_syntax *const next = opdi_script_parse_branch(parser);
        last->parts[2] = next ? opdi_syntax_1(parser, OPDI_SYNTAX_BLOCK, next->at, next) : NULL;
        last = last->parts[2] ? next : NULL;
    }
    if (last && opdi_script_parse_take(parser, "else")) {
        last->parts[2] = opdi_script_parse_need(parser, ":") ? NULL : opdi_script_parse_block(parser);
        if (!last->parts[2]) { return NULL; }
    }
    parser->depth--;
    return last ? first : NULL;
}
static opdi_syntax *opdi_script_parse_while(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    parser->at++;
    opdi_syntax *condition = opdi_script_parse_list(parser, ":"), *body;
    opdi_syntax *node = condition ? opdi_syntax_2(parser, OPDI_SYNTAX_WHILE, at, condition, NULL) : NULL;
    if (!node || opdi_script_parse_need(parser, ":") || !(body = opdi_script_parse_block(parser))) { return NULL; }
    node->parts[1] = body;
    return node;
}
static opdi_syntax *opdi_script_parse_for(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    parser->at++;
    opdi_syntax *target = opdi_script_parse_target(parser);
    opdi_syntax *over = target && opdi_script_parse_need(parser, "in") == 0 ? opdi_script_parse_list(parser, ":")
        : NULL;
    opdi_syntax *node = over ? opdi_syntax_new(parser, OPDI_SYNTAX_FOR, at, 3) : NULL;
    if (!node || opdi_script_parse_need(parser, ":") || !(node->parts[2] = opdi_script_parse_block(parser))) {
        return NULL;
    }
    node->parts[0] = target;
    node->parts[1] = over;
    return node;
}
static opdi_syntax *opdi_script_parse_with(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    parser->at++;
    opdi_syntax *value = opdi_script_parse_ternary(parser), *target = NULL;
    if (!value || (opdi_script_parse_take(parser, "as") && !(target = opdi_script_parse_primary(parser)))) {
        return NULL;
    }
    opdi_syntax *node = opdi_syntax_new(parser, OPDI_SYNTAX_WITH, at, 3);
    if (!node || opdi_script_parse_need(parser, ":") || !(node->parts[2] = opdi_script_parse_block(parser))) {
        return NULL;
    }
    node->parts[0] = value;
    node->parts[1] = target;
    return node;
}
/* Parses one parameter: name [: type] [= default].  Returns the node, or NULL and sets an error. */
static opdi_syntax *opdi_script_parse_param(opdi_script_parser *parser, bool keyword_only) {
    const opdi_script_token *token = opdi_script_token_at(parser);
    if (token->kind != OPDI_SCRIPT_TOKEN_NAME) { return opdi_script_parse_fail(parser, "ident"); }
    parser->at++;
    opdi_syntax *node = opdi_syntax_2(parser, OPDI_SYNTAX_PARAM, token->at, NULL, NULL);
    if (!node || !(node->word = opdi_arena_copy(parser->arena, parser->text->text + token->at, token->length))) {
        return NULL;
    }
    node->op = keyword_only;
    if (opdi_script_parse_take(parser, ":") && !(node->parts[0] = opdi_script_parse_ternary(parser))) { return NULL; }
    if (opdi_script_parse_take(parser, "=") && !(node->parts[1] = opdi_script_parse_ternary(parser))) { return NULL; }
    return node;
}
/* If there is a type comment "# type: (A, B) -> C" between the head and the body of a function, parses it and sets the
   types of the parameters and of the result.  Returns 0, or -1 and sets an error. */
static int opdi_script_parse_comment(opdi_script_parser *parser, opdi_syntax *def, bool method) {
    const char *text = parser->text->text;
    size_t at = parser->tokens[parser->at - 1].at + 1;
    while (at < parser->text->length && strchr(" \t\r\n", text[at])) { at++; }
    size_t end = at;
    while (end < parser->text->length && text[end] != '\n') { end++; }
    if (end - at < 8 || memcmp(text + at, "# type:", 7) != 0) { return 0; }
    size_t arrow = at + 7;
    while (arrow + 1 < end && !(text[arrow] == '-' && text[arrow + 1] == '>')) { arrow++; }
    if (arrow + 2 >= end) { return 0; }
    opdi_syntax *args = opdi_script_parse_within(parser, at + 7, arrow - at - 7);
    opdi_syntax *result = args ? opdi_script_parse_within(parser, arrow + 2, end - arrow - 2) : NULL;
    if (!result) { return -1; }
    const bool single = args->kind != OPDI_SYNTAX_TUPLE;
    const int first = method && def->nparts - 2 > (single ? 1 : args->nparts) ? 1 : 0;
    if (def->nparts - 2 - first != (single ? 1 : args->nparts)) {
        return opdi_script_text_fail(parser->text, at, end - at,
                                     "Number of type annotations for function parameters (%d) "
                                     "does not match the number of parameters on the function (%d)!",
                                     single ? 1 : args->nparts, def->nparts - 2);
    }
    for (int i = 2 + first; i < def->nparts; i++) {
        def->parts[i]->parts[0] = single ? args : args->parts[i - 2 - first];
    }
    def->parts[0] = result;
    return 0;
}
/* Returns the name of the method as which the setter of property `word` is stored.  No other method can have this
   name. */
static const char *opdi_script_parse_setter(opdi_script_parser *parser, const char *word) {
    const size_t length = strlen(word);
    char *name = (char *)opdi_arena_alloc(parser->arena, length + 8);
    return name ? strcat(strcpy(name, word), ".setter") : NULL;
}
static opdi_syntax *opdi_script_parse_def(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    opdi_string items = {NULL, 0, 0, false};
    bool fine = true, keyword_only = false;
    const int decorated = parser->decorated;
    parser->decorated = OPDI_METHOD_PLAIN;
    parser->at++;
    const opdi_script_token *token = opdi_script_token_at(parser);
    if (token->kind != OPDI_SCRIPT_TOKEN_NAME) { return opdi_script_parse_fail(parser, "ident"); }
    parser->at++;
    const char *word = opdi_arena_copy(parser->arena, parser->text->text + token->at, token->length);
    if (!word || opdi_script_parse_need(parser, "(")) { return NULL; }
    fine = opdi_syntax_put(&items, NULL) && opdi_syntax_put(&items, NULL);
    while (fine && !opdi_script_parse_at(parser, ")")) {
        if (opdi_script_parse_take(parser, "*")) { keyword_only = true; }
        else {
            opdi_syntax *param = opdi_script_parse_param(parser, keyword_only);
            fine = param && opdi_syntax_put(&items, param);
        }
        if (fine && !opdi_script_parse_at(parser, ")")) { fine = opdi_script_parse_need(parser, ",") == 0; }
    }
    fine = fine && opdi_script_parse_need(parser, ")") == 0;
    opdi_syntax *node = opdi_syntax_of(parser, OPDI_SYNTAX_DEF, at, &items, fine);
    if (!node) { return NULL; }
    node->word = decorated == OPDI_METHOD_SETTER ? opdi_script_parse_setter(parser, word) : word;
    node->op = (int16_t)decorated;
    if (!node->word) { return NULL; }
    if (opdi_script_parse_take(parser, "->") && !(node->parts[0] = opdi_script_parse_ternary(parser))) { return NULL; }
    const bool method = node->nparts > 2 && strcmp(node->parts[2]->word, "self") == 0;
    if (opdi_script_parse_need(parser, ":") || opdi_script_parse_comment(parser, node, method) ||
        !(node->parts[1] = opdi_script_parse_block(parser))) { return NULL; }
    return node;
}
static opdi_syntax *opdi_script_parse_class(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    opdi_syntax *base = NULL;
    parser->at++;
    const opdi_script_token *token = opdi_script_token_at(parser);
    if (token->kind != OPDI_SCRIPT_TOKEN_NAME) { return opdi_script_parse_fail(parser, "ident"); }
    parser->at++;
    if (opdi_script_parse_take(parser, "(")) {
        if (!opdi_script_parse_at(parser, ")") && !(base = opdi_script_parse_list(parser, ")"))) { return NULL; }
        if (opdi_script_parse_need(parser, ")")) { return NULL; }
    }
    opdi_syntax *node = opdi_syntax_2(parser, OPDI_SYNTAX_CLASS, at, base, NULL);
    if (!node || !(node->word = opdi_arena_copy(parser->arena, parser->text->text + token->at, token->length)) ||
        opdi_script_parse_need(parser, ":") || !(node->parts[1] = opdi_script_parse_block(parser))) { return NULL; }
    return node;
}
/* Skips the sign of an augmented assignment, such as "+=".  Returns its OPDI_SCRIPT_OP_..., or -1 if the next token is
   not one. */
static int opdi_script_parse_augmented(opdi_script_parser *parser) {
    static const char *const signs[] = {"+=", "-=", "*=", "/=", "//=", "%=", "**=", "@=", "&=", "|=", "^=", "<<=",
                                        ">>="};
    for (int i = 0; i < 13; i++) { if (opdi_script_parse_take(parser, signs[i])) { return i; } }
    return -1;
}
/* Parses an expression statement or an assignment.  Returns the node, or NULL and sets an error. */
static opdi_syntax *opdi_script_parse_assignment(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    opdi_syntax *target = opdi_script_parse_list(parser, ":"), *value = NULL;
    if (!target) { return NULL; }
    const int op = opdi_script_parse_augmented(parser);
    if (op >= 0) {
        value = opdi_script_parse_list(parser, ";");
        return value ? opdi_syntax_op(parser, OPDI_SYNTAX_AUGMENTED, op, at, target, value) : NULL;
    }
    if (opdi_script_parse_take(parser, ":")) {
        opdi_syntax *type = opdi_script_parse_ternary(parser);
        if (!type || (opdi_script_parse_take(parser, "=") && !(value = opdi_script_parse_list(parser, ";")))) {
            return NULL;
        }
        opdi_syntax *node = opdi_syntax_new(parser, OPDI_SYNTAX_ANNOTATED, at, 3);
        if (!node) { return NULL; }
        node->parts[0] = target;
        node->parts[1] = type;
        node->parts[2] = value;
        return node;
    }
    if (!opdi_script_parse_at(parser, "=")) { return opdi_syntax_1(parser, OPDI_SYNTAX_EXPR, at, target); }
    opdi_string items = {NULL, 0, 0, false};
    bool fine = opdi_syntax_put(&items, NULL);
    value = target;
    while (fine && opdi_script_parse_take(parser, "=")) {
        fine = opdi_syntax_put(&items, value) && (value = opdi_script_parse_list(parser, ";")) != NULL;
    }
    opdi_syntax *node = opdi_syntax_of(parser, OPDI_SYNTAX_ASSIGN, at, &items, fine);
    if (node) { node->parts[0] = value; }
    return node;
}
/* Parses a simple statement, but not the end of its line.  Returns the node, or NULL and sets an error. */
static opdi_syntax *opdi_script_parse_simple(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    opdi_syntax *first = NULL, *second = NULL;
    if (opdi_script_parse_take(parser, "pass")) { return opdi_syntax_new(parser, OPDI_SYNTAX_PASS, at, 0); }
    if (opdi_script_parse_take(parser, "break")) { return opdi_syntax_new(parser, OPDI_SYNTAX_BREAK, at, 0); }
    if (opdi_script_parse_take(parser, "continue")) { return opdi_syntax_new(parser, OPDI_SYNTAX_CONTINUE, at, 0); }
    const bool is_return = opdi_script_parse_at(parser, "return"), is_raise = opdi_script_parse_at(parser, "raise");
    if (is_return || is_raise) {
        parser->at++;
        if (!opdi_script_parse_is(parser, OPDI_SCRIPT_TOKEN_NEWLINE) && !opdi_script_parse_at(parser, ";") &&
            !(first = opdi_script_parse_list(parser, ";"))) { return NULL; }
        if (is_raise && opdi_script_parse_take(parser, "from") && !opdi_script_parse_ternary(parser)) { return NULL; }
        return opdi_syntax_1(parser, is_return ? OPDI_SYNTAX_RETURN : OPDI_SYNTAX_RAISE, at, first);
    }
    if (opdi_script_parse_take(parser, "assert")) {
        if (!(first = opdi_script_parse_ternary(parser)) ||
            (opdi_script_parse_take(parser, ",") && !(second = opdi_script_parse_ternary(parser)))) { return NULL; }
        return opdi_syntax_2(parser, OPDI_SYNTAX_ASSERT, at, first, second);
    }
    if (opdi_script_parse_take(parser, "del")) {
        first = opdi_script_parse_list(parser, ";");
        return first ? opdi_syntax_1(parser, OPDI_SYNTAX_DELETE, at, first) : NULL;
    }
    return opdi_script_parse_assignment(parser);
}
/* Skips a decorator or an import, if it is next.  Notes the kind that a decorator gives to the next def, in
   parser->decorated.  Imports have no meaning here.  Returns whether it has skipped one. */
static bool opdi_script_parse_ignored(opdi_script_parser *parser) {
    if (!opdi_script_parse_at(parser, "@") && !opdi_script_parse_at(parser, "import") &&
        !opdi_script_parse_at(parser, "from")) {
        return false;
    }
    if (opdi_script_parse_take(parser, "@")) {
        const opdi_script_token *const token = opdi_script_token_at(parser);
        const bool last = token->kind != OPDI_SCRIPT_TOKEN_NAME || token[1].kind != '.' ||
            token[2].kind != OPDI_SCRIPT_TOKEN_NAME ||
            token[2].length != 6 || memcmp(parser->text->text + token[2].at, "setter", 6) != 0;
        parser->decorated = !last ? OPDI_METHOD_SETTER : opdi_script_parse_at(parser, "property") ? OPDI_METHOD_PROPERTY
            : opdi_script_parse_at(parser, "staticmethod") ? OPDI_METHOD_STATIC : parser->decorated;
    }
    while (!opdi_script_parse_is(parser, OPDI_SCRIPT_TOKEN_NEWLINE) &&
           !opdi_script_parse_is(parser, OPDI_SCRIPT_TOKEN_END)) {
        parser->at++;
    }
    if (opdi_script_parse_is(parser, OPDI_SCRIPT_TOKEN_NEWLINE)) { parser->at++; }
    return true;
}
static opdi_syntax *opdi_script_parse_statement(opdi_script_parser *parser) {
    if (opdi_script_parse_at(parser, "if")) { return opdi_script_parse_if(parser); }
    if (opdi_script_parse_at(parser, "while")) { return opdi_script_parse_while(parser); }
    if (opdi_script_parse_at(parser, "for")) { return opdi_script_parse_for(parser); }
    if (opdi_script_parse_at(parser, "with")) { return opdi_script_parse_with(parser); }
    if (opdi_script_parse_at(parser, "def")) { return opdi_script_parse_def(parser); }
    if (opdi_script_parse_at(parser, "class")) { return opdi_script_parse_class(parser); }
    opdi_syntax *node = opdi_script_parse_simple(parser);
    if (!node) { return NULL; }
    if (opdi_script_parse_take(parser, ";")) {
        if (opdi_script_parse_is(parser, OPDI_SCRIPT_TOKEN_NEWLINE)) { parser->at++; }
        return node;
    }
    if (!opdi_script_parse_is(parser, OPDI_SCRIPT_TOKEN_NEWLINE)) { return opdi_script_parse_fail(parser, "newline"); }
    parser->at++;
    return node;
}
/* Parses the statements after a colon: on the same line, or in an indented block.  Returns the node, or NULL and sets
   an error. */
static opdi_syntax *opdi_script_parse_block(opdi_script_parser *parser) {
    const uint32_t at = opdi_script_token_at(parser)->at;
    opdi_string items = {NULL, 0, 0, false};
    bool fine = true;
    if (!opdi_script_parse_is(parser, OPDI_SCRIPT_TOKEN_NEWLINE)) {
        do {
            opdi_syntax *statement = opdi_script_parse_statement(parser);
            fine = statement && opdi_syntax_put(&items, statement);
        } while (fine && parser->tokens[parser->at - 1].kind == ';');
        return opdi_syntax_of(parser, OPDI_SYNTAX_BLOCK, at, &items, fine);
    }
    parser->at++;
    if (!opdi_script_parse_is(parser, OPDI_SCRIPT_TOKEN_INDENT)) { return opdi_script_parse_fail(parser, "indent"); }
    parser->at++;
    while (fine && !opdi_script_parse_is(parser, OPDI_SCRIPT_TOKEN_DEDENT)) {
        if (opdi_script_parse_ignored(parser)) { continue; }
        if (opdi_script_parse_is(parser, OPDI_SCRIPT_TOKEN_END)) {
            fine = opdi_script_parse_fail(parser, "dedent") != NULL;
        }
        else {
            opdi_syntax *statement = opdi_script_parse_statement(parser);
            fine = statement && opdi_syntax_put(&items, statement);
        }
    }
    if (fine) { parser->at++; }
    return opdi_syntax_of(parser, OPDI_SYNTAX_BLOCK, at, &items, fine);
}
/* Sets text->lines, the byte at which each line begins.  Returns 0, or -1 if memory runs out. */
static int opdi_script_text_lines(opdi_arena *arena, opdi_script_text *text) {
    uint32_t count = 1;
    for (size_t i = 0; i < text->length; i++) { count += text->text[i] == '\n'; }
    uint32_t *lines = (uint32_t *)opdi_arena_alloc(arena, (size_t)count * sizeof *lines);
    if (!lines) { return -1; }
    lines[0] = 0;
    text->nlines = 1;
    for (size_t i = 0; i < text->length; i++) {
        if (text->text[i] == '\n') { lines[text->nlines++] = (uint32_t)i + 1; }
    }
    text->lines = lines;
    return 0;
}
/* Parses a text into a syntax tree in `arena`.  The tree refers to `text`, which must live as long as the tree.
   Returns the tree, or NULL and sets an error. */
OPDI_INTERNAL opdi_syntax *opdi_script_parse(opdi_arena *arena, opdi_script_text *text) {
    opdi_script_lexer lexer;
    opdi_script_parser parser;
    opdi_string items = {NULL, 0, 0, false};
    bool fine = opdi_script_lex(&lexer, text) == 0 && opdi_script_text_lines(arena, text) == 0;
    memset(&parser, 0, sizeof parser);
    parser.arena = arena;
    parser.text = text;
    parser.tokens = (const opdi_script_token *)(const void *)lexer.tokens.data;
    const bool shifted = fine && opdi_script_parse_is(&parser, OPDI_SCRIPT_TOKEN_INDENT); /* the whole text is
                                                                                             indented */
    if (shifted) { parser.at++; }
    while (fine && !opdi_script_parse_is(&parser, OPDI_SCRIPT_TOKEN_END)) {
        if (opdi_script_parse_ignored(&parser)) { continue; }
        if (shifted && opdi_script_parse_is(&parser, OPDI_SCRIPT_TOKEN_DEDENT)) {
            parser.at++;
            continue;
        }
        opdi_syntax *statement = opdi_script_parse_statement(&parser);
        fine = statement && opdi_syntax_put(&items, statement);
    }
    opdi_syntax *node = opdi_syntax_of(&parser, OPDI_SYNTAX_BLOCK, 0, &items, fine);
    opdi_string_free(&lexer.tokens);
    return node;
}
