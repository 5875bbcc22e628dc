#include "script.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>script_parsing parsing the text of scripts: tokens and the syntax tree
//
//  Parses the part of Python that TorchScript accepts.  The syntax tree is allocated in an arena.  This section does
//  not know types or tensors.  Blocks may be nested 100 deep, expressions 200 deep; a text has at most 64 MiB.
//----------------------------------------------------------------------------------------------------------------------

//== tokens ============================================================================================================

/* Signs with several characters.  opdi_script_token.sign is an index into this array.  Signs such as "+=" belong to
   augmented assignments. */
static const char *const opdi_script_signs[] = {"**=", "//=", "<<=", ">>=", "...", "**", "//", "<<", ">>", "==", "!=",
                                                "<=",
    ">=", "->", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "@=", ":="};
enum { OPDI_SCRIPT_SIGNS = sizeof opdi_script_signs / sizeof opdi_script_signs[0] };

/* Appends an excerpt of a text to `to`, in the form of PyTorch's errors: "File NAME, line N", the line with up to three
   lines before it, and marks under the `length` bytes at `at`. */
OPDI_INTERNAL void opdi_script_text_show(const opdi_script_text *text, size_t at, size_t length, opdi_string *to) {
    char head[64];
    size_t line = 1, begin = 0, end = OPDI_MIN(at, text->length);
    at = end;
    for (size_t i = 0; i < at; i++) {
        if (text->text[i] != '\n') { continue; }
        line++;
        begin = i + 1;
    }
    while (end < text->length && text->text[end] != '\n') { end++; }
    const size_t stop = OPDI_MIN(OPDI_MAX(at + length, at + 1), OPDI_MAX(end, at + 1));
    size_t before = begin;
    for (int lines = 0; before > 0 && lines < 3; lines++) {
        before--;
        while (before > 0 && text->text[before - 1] != '\n') { before--; }
    }
    snprintf(head, sizeof head, "\", line %llu\n", (unsigned long long)line);
    opdi_string_add(to, "  File \"");
    opdi_string_add(to, text->name);
    opdi_string_add(to, head);
    opdi_string_add_n(to, text->text + OPDI_MAX(before, begin > 600 ? begin - 600 : 0),
                      begin - OPDI_MAX(before, begin > 600 ? begin - 600 : 0));
    opdi_string_add_n(to, text->text + begin, OPDI_MIN(end - begin, 400));
    opdi_string_add(to, "\n");
    for (size_t i = begin; i < OPDI_MIN(at, begin + 400); i++) { opdi_string_add(to, " "); }
    for (size_t i = at; i < OPDI_MIN(stop, begin + 400); i++) { opdi_string_add(to, "~"); }
    opdi_string_add(to, " <--- HERE");
}
/* Sets an error that shows the `length` bytes at byte `at` of a text.  Returns -1. */
OPDI_INTERNAL int opdi_script_text_fail(const opdi_script_text *text, size_t at, size_t length, const char *format,
                                        ...) OPD_PRINTF_LIKE(4, 5);
OPDI_INTERNAL int opdi_script_text_fail(const opdi_script_text *text, size_t at, size_t length, const char *format,
                                        ...) {
    char what[512];
    opdi_string shown = {NULL, 0, 0, false};
    va_list args;
    if (!opd_ok()) { return -1; }
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    opdi_script_text_show(text, at, length, &shown);
    if (!shown.failed) { opd_fail(OPD_ERROR_SCHEMA, "%s:\n%s", what, shown.data); }
    opdi_string_free(&shown);
    return -1;
}

static int opdi_script_lex_peek(const opdi_script_lexer *lexer, size_t ahead) {
    return lexer->at + ahead < lexer->text->length ? (unsigned char)lexer->text->text[lexer->at + ahead] : 0;
}
static bool opdi_script_lex_in_word(int letter) {
    return opdi_is_digit(letter) || opdi_is_letter((char)letter) || letter >= 128;
}
OPDI_INTERNAL bool opdi_is_hex(char letter) {
    return opdi_is_digit(letter) || ((letter | 32) >= 'a' && (letter | 32) <= 'f');
}
OPDI_INTERNAL int opdi_script_lex_put(opdi_script_lexer *lexer, int kind, int sign, size_t at, size_t length) {
    opdi_script_token token;
    token.kind = (int16_t)kind;
    token.sign = (int16_t)sign;
    token.at = (uint32_t)at;
    token.length = (uint32_t)length;
    opdi_string_add_n(&lexer->tokens, (const char *)(const void *)&token, sizeof token);
    return lexer->tokens.failed ? -1 : 0;
}
/* Begins a line that has tokens and an indentation of `column`.  Adds INDENT or DEDENT tokens if the line before has
   another indentation.  Returns 0, or -1 and sets an error. */
static int opdi_script_lex_indent(opdi_script_lexer *lexer, uint32_t column) {
    const size_t at = lexer->at;
    if (column > lexer->indents[lexer->nindents - 1]) {
        if (lexer->nindents == OPDI_SCRIPT_INDENTS) {
            return opdi_script_text_fail(lexer->text, at, 1, "blocks are nested more than %d deep",
                                         OPDI_SCRIPT_INDENTS);
        }
        lexer->indents[lexer->nindents++] = column;
        return opdi_script_lex_put(lexer, OPDI_SCRIPT_TOKEN_INDENT, 0, at, 0);
    }
    while (column < lexer->indents[lexer->nindents - 1]) {
        lexer->nindents--;
        if (opdi_script_lex_put(lexer, OPDI_SCRIPT_TOKEN_DEDENT, 0, at, 0)) { return -1; }
    }
    return column == lexer->indents[lexer->nindents - 1] ? 0
        : opdi_script_text_fail(lexer->text, at, 1, "invalid indent level %u", column);
}
/* Reads a string as one token.  `prefix` is the length of the string's prefix.  Returns 0, or -1 and sets an error. */
static int opdi_script_lex_text(opdi_script_lexer *lexer, size_t prefix) {
    const size_t begin = lexer->at;
    lexer->at += prefix;
    const int quote = opdi_script_lex_peek(lexer, 0);
    const bool triple = opdi_script_lex_peek(lexer, 1) == quote && opdi_script_lex_peek(lexer, 2) == quote;
    lexer->at += triple ? 3 : 1;
    for (;;) {
        const int letter = opdi_script_lex_peek(lexer, 0);
        if (lexer->at >= lexer->text->length || (!triple && letter == '\n')) {
            return opdi_script_text_fail(lexer->text, begin, 1, "a string does not end");
        }
        if (letter == '\\') {
            lexer->at += 2;
        } else if (letter == quote && (!triple || (opdi_script_lex_peek(lexer, 1) == quote &&
                                                   opdi_script_lex_peek(lexer, 2) == quote))) {
            lexer->at += triple ? 3 : 1;
            break;
        } else {
            lexer->at++;
        }
    }
    if (lexer->at > lexer->text->length) {
        return opdi_script_text_fail(lexer->text, begin, 1, "a string does not end");
    }
    return opdi_script_lex_put(lexer, OPDI_SCRIPT_TOKEN_TEXT, (int)prefix, begin, lexer->at - begin);
}
/* Reads a number as one token.  The number may be decimal, hexadecimal, octal or binary, with _ between digits; a
   decimal number may have a point, an exponent, or a j.  Returns 0, or -1 and sets an error. */
static int opdi_script_lex_number(opdi_script_lexer *lexer) {
    const size_t begin = lexer->at;
    int kind = OPDI_SCRIPT_TOKEN_INT;
    const int letter = opdi_script_lex_peek(lexer, 1) | 32;
    if (opdi_script_lex_peek(lexer, 0) == '0' && (letter == 'x' || letter == 'o' || letter == 'b')) {
        lexer->at += 2;
        while (opdi_script_lex_in_word(opdi_script_lex_peek(lexer, 0))) { lexer->at++; }
        return opdi_script_lex_put(lexer, kind, 0, begin, lexer->at - begin);
    }
    while (opdi_is_digit(opdi_script_lex_peek(lexer, 0)) || opdi_script_lex_peek(lexer, 0) == '_') {
        lexer->at++;
    }
    if (opdi_script_lex_peek(lexer, 0) == '.') {
        kind = OPDI_SCRIPT_TOKEN_FLOAT;
        lexer->at++;
        while (opdi_is_digit(opdi_script_lex_peek(lexer, 0)) || opdi_script_lex_peek(lexer, 0) == '_') {
            lexer->at++;
        }
    }
    const int sign = opdi_script_lex_peek(lexer, 1);
    if ((opdi_script_lex_peek(lexer, 0) | 32) == 'e' &&
        (opdi_is_digit(sign) ||
         ((sign == '-' || sign == '+') && opdi_is_digit(opdi_script_lex_peek(lexer, 2))))) {
        kind = OPDI_SCRIPT_TOKEN_FLOAT;
        lexer->at += 2;
        while (opdi_is_digit(opdi_script_lex_peek(lexer, 0))) { lexer->at++; }
    }
    if (opdi_script_lex_peek(lexer, 0) == 'j') {
        kind = OPDI_SCRIPT_TOKEN_IMAGINARY;
        lexer->at++;
    }
    return opdi_script_lex_put(lexer, kind, 0, begin, lexer->at - begin);
}
/* If a string begins here, returns the length of its prefix, such as 1 for r""; else -1. */
static int opdi_script_lex_prefix(const opdi_script_lexer *lexer) {
    int count = 0;
    while (count < 2 && opdi_script_lex_peek(lexer, (size_t)count) &&
           strchr("rRbBuUfF", opdi_script_lex_peek(lexer, (size_t)count))) { count++; }
    const int letter = opdi_script_lex_peek(lexer, (size_t)count);
    return letter == '"' || letter == '\'' ? count : -1;
}
static int opdi_script_lex_sign(opdi_script_lexer *lexer) {
    const int letter = opdi_script_lex_peek(lexer, 0);
    for (int i = 0; i < OPDI_SCRIPT_SIGNS; i++) {
        const size_t length = *opdi_script_signs[i] == letter ? strlen(opdi_script_signs[i]) : 0;
        if (length && lexer->at + length <= lexer->text->length &&
            memcmp(lexer->text->text + lexer->at, opdi_script_signs[i], length) == 0) {
            lexer->at += length;
            return opdi_script_lex_put(lexer, OPDI_SCRIPT_TOKEN_SIGN, i, lexer->at - length, length);
        }
    }
    if (!letter || !strchr("()[]{}+-*/%&|^~<>=.,:;@", letter)) {
        return opdi_script_text_fail(lexer->text, lexer->at, 1, letter >= 32 && letter < 127
                                     ? "expected a valid token but found '%c' here"
                                     : "expected a valid token but found the byte %d here", letter);
    }
    lexer->nesting += strchr("([{", letter) != NULL;
    if (strchr(")]}", letter) && lexer->nesting) { lexer->nesting--; }
    lexer->at++;
    return opdi_script_lex_put(lexer, letter, 0, lexer->at - 1, 1);
}
/* Skips blanks and comments.  At the end of a line, adds a NEWLINE token and returns 1.  Otherwise returns 0, or -1 and
   sets an error. */
static int opdi_script_lex_blank(opdi_script_lexer *lexer) {
    for (;;) {
        const int letter = opdi_script_lex_peek(lexer, 0);
        if (letter == ' ' || letter == '\t' || letter == '\r' || letter == '\f') {
            lexer->at++;
        } else if (letter == '#') {
            while (lexer->at < lexer->text->length && opdi_script_lex_peek(lexer, 0) != '\n') { lexer->at++; }
        } else if (letter == '\\' && opdi_script_lex_peek(lexer, 1) == '\n') {
            lexer->at += 2;
        } else if (letter == '\n' && lexer->nesting) {
            lexer->at++;
        } else if (letter == '\n') {
            lexer->pending = false;
            return opdi_script_lex_put(lexer, OPDI_SCRIPT_TOKEN_NEWLINE, 0, lexer->at++, 0) ? -1 : 1;
        } else {
            return 0;
        }
    }
}
/* Begins a line.  Skips the line if it is empty; otherwise adds the tokens for its indentation.  Returns 0, or -1 and
   sets an error. */
static int opdi_script_lex_line(opdi_script_lexer *lexer) {
    uint32_t column = 0;
    int letter = opdi_script_lex_peek(lexer, 0);
    for (; letter == ' ' || letter == '\t' || letter == '\r'; letter = opdi_script_lex_peek(lexer, 0)) {
        column = letter == '\t' ? (column / 8 + 1) * 8 : column + 1;     /* a tab extends to the next multiple of 8 */
        lexer->at++;
    }
    if (letter == '#') {
        while (lexer->at < lexer->text->length && opdi_script_lex_peek(lexer, 0) != '\n') { lexer->at++; }
        letter = '\n';
    }
    if (letter == '\n' || lexer->at >= lexer->text->length) {
        lexer->at++;
        return 0;
    }
    lexer->pending = true;
    return opdi_script_lex_indent(lexer, column);
}
/* Reads the next token; at the beginning of a line, reads its indentation instead.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_script_lex_step(opdi_script_lexer *lexer) {
    if (!lexer->pending && !lexer->nesting) { return opdi_script_lex_line(lexer); }
    const int rc = opdi_script_lex_blank(lexer), letter = opdi_script_lex_peek(lexer, 0);
    if (rc || lexer->at >= lexer->text->length) { return rc < 0 ? -1 : 0; }
    const int prefix = opdi_script_lex_prefix(lexer);
    if (prefix >= 0) { return opdi_script_lex_text(lexer, (size_t)prefix); }
    if (opdi_is_digit(letter) || (letter == '.' && opdi_is_digit(opdi_script_lex_peek(lexer, 1)))) {
        return opdi_script_lex_number(lexer);
    }
    if (opdi_script_lex_in_word(letter)) {
        const size_t begin = lexer->at;
        while (opdi_script_lex_in_word(opdi_script_lex_peek(lexer, 0))) { lexer->at++; }
        return opdi_script_lex_put(lexer, OPDI_SCRIPT_TOKEN_NAME, 0, begin, lexer->at - begin);
    }
    return opdi_script_lex_sign(lexer);
}
/* Reads all tokens of a text into lexer->tokens, which the caller frees.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_script_lex(opdi_script_lexer *lexer, const opdi_script_text *text) {
    memset(lexer, 0, sizeof *lexer);
    lexer->text = text;
    lexer->nindents = 1;
    if (text->length > OPDI_SCRIPT_TEXT) {
        return opd_fail(OPD_ERROR_SCHEMA, "the script is too long: it has %llu bytes",
                        (unsigned long long)text->length);
    }
    while (lexer->at < text->length) { if (opdi_script_lex_step(lexer)) { return -1; } }
    if (lexer->pending && opdi_script_lex_put(lexer, OPDI_SCRIPT_TOKEN_NEWLINE, 0, text->length, 0)) { return -1; }
    while (--lexer->nindents > 0) {
        if (opdi_script_lex_put(lexer, OPDI_SCRIPT_TOKEN_DEDENT, 0, text->length, 0)) { return -1; }
    }
    return opdi_script_lex_put(lexer, OPDI_SCRIPT_TOKEN_END, 0, text->length, 0);
}
