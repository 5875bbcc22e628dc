#include "types.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>schema       lexer, parser, printer, alias sets
//
//  Converts the text of an operator declaration to an opd_schema and back
//  (torch/csrc/jit/frontend/function_schema_parser.cpp, aten/src/ATen/core/function_schema.cpp).  This section depends
//  only on the base folder.
//----------------------------------------------------------------------------------------------------------------------

/* Deliberate differences from PyTorch 2.6 (PyTorch 1.13 was tested, too).  "There" means in PyTorch.
   PyTorch crashes or stops on an assertion of its own; the parser here sets an error:
   - a positional argument without default after one with default (1.13 crashes);
   - NoneType?, and a Union of one type; an element of a list default that is not of the list's type;
   - a default for a type that can have none ("file a bug report" there); a number out of range (a bare C++ exception).
   PyTorch misreads the text; the parser here reads it right:
   - 0x10 is 16 and 1E3 is 1000 (there 0 and 1), also as N of T[N]; an N that is too large is refused (there 99999999999
     becomes another number);
   - a complex default without j is real: "complex x=12" is 12+0j, not 1j. A word such as `strided` as the default of a
     float argument becomes a float.
   PyTorch prints text that does not parse to the same schema; the printer here prints text that does:
   - several alias sets keep their source order (there: the order of a hash table); equal sets count once;
   - a bare "!" prints as it was written (there "($0! -> )"). Annotations under ? and inside T[][] print where they were
     written ("Tensor?(a!)[]", "Tensor[]()[]");
   - "1.+2.j", which is how complex defaults are printed, can be read;
   - a Device default prints with quotes, and so does any string default (there only of str and str?);
   - an int[] default of equal numbers prints as a list (there as one number), and so does the default of int[N], unless
     it has N numbers;
   - a Union with Scalar and others has its commas (there "Union(, str, Scalar)");
   - Scalar?? is Scalar?, as int?? is int? (there "Union(Scalar)?");
   - UTF-8 in a string default comes back as octal escapes of its bytes (1.13: wrong ones).
   PyTorch refuses the text for reasons that do not exist here:
   - __torch__.torch.classes.NS.Cls is accepted without registration: there are no classes to register;
   - DeviceIndex and Await are accepted (2.6 accepts them, 1.13 does not); a string default of Device? is a device.
   Other differences:
   - an argument counts as written also if only its elements are written ("Tensor(a!)[](b) x");
   - two lists of one alias set may alias (there no two lists do), as may a tuple and itself;
   - "invalid numeric default value" underlines the word and not the text after it;
   - a bad character is shown with all its bytes, never as the blank before it; if a text has two mistakes, the parsers
     may report different ones;
   - limits: OPD_MAX_ARGS arguments and returns, 256 nested types in an argument, 32 alias sets in an annotation, 32
     types in a Union, N of a repeated default up to 65536, 16 MiB of text.
   As in PyTorch:
   - -0. prints as 0.;
   - two arguments may have one name (keywords then reach the first);
   - annotations and words like SymInt inside of tuples, Dict, Union and Future are lost;
   - a default's type is not compared with the argument's ("int x=1.5"), except in lists;
   - type variables are all alike. */

#define OPDI_MAX_SCHEMA_TEXT (1 << 24)

//== lexer =============================================================================================================

static inline char opdi_lex_peek(const opdi_lexer *lexer, int i) {
    return lexer->end - lexer->at > i ? lexer->at[i] : '\0';
}

/* Sets the error "<what>: line L, column C", with the source line (cut if it is long) and a line that underlines the
   token.  Returns -1. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_syntax_error(const opdi_lexer *lexer, const opdi_token *tok, const char *what) {
    const char *begin = tok->text, *stop = tok->text, *at;
    char line[164], mark[84];
    int row = 1, column = 1, pad = 0, count = 0, m = 0;
    for (at = lexer->text; at < tok->text; at++) { row += *at == '\n'; }
    while (begin > lexer->text && begin[-1] != '\n') {
        begin--;
        column += (*begin & 0xC0) != 0x80;
    }
    while (stop < lexer->end && *stop != '\n') { stop++; }
    const char *first = tok->text - begin > 70 ? tok->text - 70 : begin;
    while (first < tok->text && (*first & 0xC0) == 0x80) { first++; }
    for (at = first; at < stop && count < 160; at++) {
        line[count++] = (unsigned char)*at < 32 || *at == 127 ? ' ' : *at;
    }
    while (at < stop && count > 0 && (*at & 0xC0) == 0x80) {  /* removes the first bytes of a character that is cut */
        at--;
        count--;
    }
    line[count] = 0;
    for (at = first; at < tok->text; at++) { pad += (*at & 0xC0) != 0x80; }
    for (at = tok->text; at < tok->text + tok->length && at < stop && m < 80; at++) {
        if ((*at & 0xC0) != 0x80) { mark[m++] = '~'; }
    }
    if (m == 0) { mark[m++] = '^'; }
    mark[m] = 0;
    opd_fail(OPD_ERROR_SCHEMA, "%s: line %d, column %d\n%s\n%*s%s <--- HERE", what, row, column, line, pad, "", mark);
    return -1;
}

/* Returns PyTorch's name of a token, for messages. */
static const char *opdi_token_name(const opdi_token *tok, char *buf, size_t cap) {
    static const char *const names[] = {"eof", "ident", "number", "string_literal", "arrow", "dots", "newline",
                                        "indent", "True", "False", "None", "NoneType"};
    static const char *const operators[] = {"!=", "ne", "==", "eq", "<=", "le", ">=", "ge", "//", "floordiv",
                                            "**", "pow operator", "<=>", "equivalent", "# type:", "type comment"};
    if (tok->kind >= OPDI_TOKEN_EOF && tok->kind <= OPDI_TOKEN_NONETYPE) { return names[tok->kind - OPDI_TOKEN_EOF]; }
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i += 2) {
        if (tok->kind == OPDI_TOKEN_OPERATOR && strlen(operators[i]) == (size_t)tok->length &&
            memcmp(operators[i], tok->text, (size_t)tok->length) == 0) { return operators[i + 1]; }
    }
    if (tok->kind < OPDI_TOKEN_EOF) { snprintf(buf, cap, "%c", tok->kind); }
    else { snprintf(buf, cap, "%.*s", tok->length, tok->text); }
    return buf;
}

/* Sets an error because no token begins at lexer->at. */
OPDI_NOINLINE static void opdi_lex_bad(opdi_lexer *lexer) {
    char what[64], shown[8];
    unsigned char c = (unsigned char)*lexer->at;
    int count = 1, want = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : c >= 0xC2 ? 2 : 1;
    while (count < want && (opdi_lex_peek(lexer, count) & 0xC0) == 0x80) { count++; }
    lexer->cur.kind = OPDI_TOKEN_BAD;
    lexer->cur.text = lexer->at;
    lexer->cur.length = count;
    if (c >= 32 && c < 127) { snprintf(shown, sizeof shown, "%c", c); }
    else if (want > 1 && count == want) { snprintf(shown, sizeof shown, "%.*s", count, lexer->at); }
    else { snprintf(shown, sizeof shown, "\\x%02x", c); }
    snprintf(what, sizeof what, "expected a valid token but found '%s' here", shown);
    opdi_syntax_error(lexer, &lexer->cur, what);
}

/* Skips blanks, comments and, inside brackets, newlines.  Outside of brackets, consecutive newlines are one token: if
   there are any, sets lexer->cur to this token and returns true.  "# type:" does not begin a comment. */
static bool opdi_lex_blank(opdi_lexer *lexer) {
    const char *newline = NULL, *line = lexer->at;
    for (;;) {
        const char letter = opdi_lex_peek(lexer, 0);
        if (letter == ' ' || (letter >= '\t' && letter <= '\r' && letter != '\n')) { lexer->at++; }
        else if (letter == '#' && (lexer->end - lexer->at < 7 || memcmp(lexer->at, "# type:", 7) != 0)) {
            while (lexer->at < lexer->end && *lexer->at != '\n') { lexer->at++; }
            line = lexer->at;
        } else if (letter == '\\' && opdi_lex_peek(lexer, 1) == '\n') { line = lexer->at += 2; }
        else if (letter == '\n') {
            if (lexer->nesting == 0 && newline == NULL) { newline = lexer->at; }
            line = ++lexer->at;
        } else { break; }
    }
    if (newline == NULL) { return false; }
    lexer->cur.kind = OPDI_TOKEN_NEWLINE;
    lexer->cur.text = newline;
    lexer->cur.length = 1;
    if (lexer->at < lexer->end && lexer->at - line > lexer->indent) { lexer->cur.kind = OPDI_TOKEN_INDENT; }
    if (lexer->at < lexer->end && lexer->at - line < lexer->indent) {
        char what[48];
        snprintf(what, sizeof what, "invalid indent level %d", (int)(lexer->at - line));
        lexer->cur.kind = OPDI_TOKEN_BAD;
        opdi_syntax_error(lexer, &lexer->cur, what);
    }
    return true;
}

/* Returns true if the `count` (at least 1) bytes at `word` are a word of `list`, in which each word is followed by a
   space. */
OPDI_INTERNAL bool opdi_word_in(const char *word, int count, const char *list) {
    while (*list != 0) {
        int k = 0;
        while (list[k] != ' ') { k++; }
        if (k == count && memcmp(list, word, (size_t)count) == 0) { return true; }
        list += k + 1;
    }
    return false;
}

/* Returns the kind of a word: an identifier, or one of TorchScript's keywords. */
static int opdi_word_kind(const char *word, int count) {
    const char *keywords = NULL;
    if (count < 2 || count > 8) { return OPDI_TOKEN_IDENT; }
    switch (word[0]) {
    case 'T': return opdi_word_in(word, count, "True ") ? OPDI_TOKEN_TRUE : OPDI_TOKEN_IDENT;
    case 'F': return opdi_word_in(word, count, "False ") ? OPDI_TOKEN_FALSE : OPDI_TOKEN_IDENT;
    case 'N':
        return opdi_word_in(word, count, "None ") ? OPDI_TOKEN_NONE : opdi_word_in(word, count, "NoneType ")
            ? OPDI_TOKEN_NONETYPE : OPDI_TOKEN_IDENT;
    case 'E': keywords = "Ellipsis "; break;
    case 'a': keywords = "and as assert "; break;
    case 'b': keywords = "break "; break;
    case 'c': keywords = "class continue "; break;
    case 'd': keywords = "def del "; break;
    case 'e': keywords = "else elif "; break;
    case 'f': keywords = "for "; break;
    case 'g': keywords = "global "; break;
    case 'i': keywords = "if in is import "; break;
    case 'n': keywords = "not "; break;
    case 'o': keywords = "or "; break;
    case 'p': keywords = "pass "; break;
    case 'r': keywords = "return raise "; break;
    case 'w': keywords = "while with "; break;
    default: return OPDI_TOKEN_IDENT;
    }
    return opdi_word_in(word, count, keywords) ? OPDI_TOKEN_KEYWORD : OPDI_TOKEN_IDENT;
}

/* Returns the address after the exponent at `at`, which begins with `letter`, or returns `at` if there is no
   exponent. */
static const char *opdi_lex_exponent(const char *at, const char *end, char letter) {
    const char *stop = at + 1;
    if (end - at < 2 || (*at | 32) != letter) { return at; }
    if (end - stop > 1 && (*stop == '+' || *stop == '-')) { stop++; }
    if (!opdi_is_digit(*stop)) { return at; }
    while (stop < end && opdi_is_digit(*stop)) { stop++; }
    return stop;
}

/* Returns the length of the number at `text`, or 0 if there is none.  A number has digits, a fraction and an exponent,
   in decimal or, after 0x, hexadecimal; a j at its end marks an imaginary number. */
static int opdi_lex_number(const char *text, const char *end) {
    const char *at = text;
    if (end - text > 2 && text[0] == '0' && (text[1] | 32) == 'x') {
        int points = 0, digits = 0;
        for (at = text + 2; at < end; at++) {
            if (opdi_is_digit(*at) || ((*at | 32) >= 'a' && (*at | 32) <= 'f')) { digits++; }
            else if (*at != '.' || points++ > 0) { break; }
        }
        if (digits > 0) {
            at = opdi_lex_exponent(at, end, 'p');
            return (int)(at - text) + (at < end && *at == 'j');
        }
        at = text;
    }
    while (at < end && opdi_is_digit(*at)) { at++; }
    if (at < end && *at == '.') {
        at++;
        while (at < end && opdi_is_digit(*at)) { at++; }
        if (at == text + 1) { return 0; }
    }
    if (at == text) { return 0; }
    at = opdi_lex_exponent(at, end, 'e');
    if (at < end && *at == 'j') { at++; }
    return (int)(at - text);
}

/* Returns the length of the string literal at `text`, including its quotes, or 0 if it is not closed. */
static int opdi_lex_string(const char *text, const char *end) {
    const char quote = text[0];
    const int q = end - text > 2 && text[1] == quote && text[2] == quote ? 3 : 1;
    const char *at = text + q;
    for (; end - at >= q; at++) {
        if (*at == quote && (q == 1 || (at[1] == quote && at[2] == quote))) { return (int)(at - text) + q; }
        if (*at == '\n' && q == 1) { return 0; }
        if (*at == '\\') { at++; }
    }
    return 0;
}

/* Returns the length of the operator at the lexer's position, and sets *kind.  Returns 0 if there is no operator. */
static int opdi_lex_operator(const opdi_lexer *lexer, int *kind) {
    const char first = opdi_lex_peek(lexer, 0), second = opdi_lex_peek(lexer, 1), third = opdi_lex_peek(lexer, 2);
    *kind = OPDI_TOKEN_OPERATOR;
    if (first == '-' && second == '>') {
        *kind = OPDI_TOKEN_ARROW;
        return 2;
    }
    if (first == '.' && second == '.' && third == '.') {
        *kind = OPDI_TOKEN_DOTS;
        return 3;
    }
    if (first == '<' && second == '=' && third == '>') { return 3; }
    if ((first == '<' || first == '>' || first == '*') && second == first) { return third == '=' ? 3 : 2; }
    if (first == '/' && second == '/') { return 2; }
    if (first == '#') { return 7; }                   /* "# type:" */
    if (second == '=' && first != 0 && strchr("!=<>+-*/%&|^", first) != NULL) { return 2; }
    *kind = (unsigned char)first;
    return first != 0 && strchr("+-*/%@()[]{}:,=<>.?!&|^~", first) != NULL ? 1 : 0;
}

/* Reads the next token into lexer->cur. */
OPDI_INTERNAL void opdi_lex(opdi_lexer *lexer) {
    opdi_token *tok = &lexer->cur;
    if (opdi_lex_blank(lexer)) { return; }
    tok->text = lexer->at;
    tok->length = 0;
    tok->kind = OPDI_TOKEN_EOF;
    if (lexer->at == lexer->end) { return; }
    char letter = *lexer->at;
    if (opdi_is_letter(letter)) {
        const char *word = lexer->at + 1;
        while (word < lexer->end && (opdi_is_letter(*word) || opdi_is_digit(*word))) { word++; }
        tok->length = (int)(word - lexer->at);
        tok->kind = opdi_word_kind(lexer->at, tok->length);
        if (tok->kind == OPDI_TOKEN_KEYWORD && lexer->end - word > 3 &&            /* two words, one token */
            (memcmp(lexer->at, "is not", 6) == 0 || memcmp(lexer->at, "not in", 6) == 0)) { tok->length = 6; }
    } else if (letter == ',' || letter == '(' || letter == ')') {   /* frequent operators first */
        tok->length = 1;
        tok->kind = letter;
    } else if ((opdi_is_digit(letter) || letter == '.') && (tok->length = opdi_lex_number(lexer->at, lexer->end)) > 0) {
        tok->kind = OPDI_TOKEN_NUMBER;
    } else if ((letter == '"' || letter == '\'') && (tok->length = opdi_lex_string(lexer->at, lexer->end)) > 0) {
        tok->kind = OPDI_TOKEN_STRING;
    } else if ((tok->length = opdi_lex_operator(lexer, &tok->kind)) == 0) {
        opdi_lex_bad(lexer);
        return;
    }
    if (tok->kind == '(' || tok->kind == '[' || tok->kind == '{') { lexer->nesting++; }
    if ((tok->kind == ')' || tok->kind == ']' || tok->kind == '}') && lexer->nesting > 0) { lexer->nesting--; }
    lexer->at += tok->length;
}

OPDI_INTERNAL void opdi_lexer_init(opdi_lexer *lexer, const char *text, size_t length) {
    lexer->text = lexer->at = text;
    lexer->end = text + length;
    lexer->nesting = 1;                           /* newlines before the first token are blanks */
    lexer->indent = 0;
    (void)opdi_lex_blank(lexer);
    while (lexer->at - lexer->indent > text && lexer->at[-1 - lexer->indent] != '\n') { lexer->indent++; }
    lexer->nesting = 0;
    opdi_lex(lexer);
}

/* Sets the error "expected X but found 'Y' here", unless the lexer has set an error already.  Returns -1. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_lex_unexpected(const opdi_lexer *lexer, int kind) {
    opdi_token wanted;
    char what[160], first[8], second[64];
    if (lexer->cur.kind == OPDI_TOKEN_BAD) { return -1; }
    wanted.kind = kind;
    wanted.length = 0;
    wanted.text = "";
    snprintf(what, sizeof what, "expected %s but found '%s' here", opdi_token_name(&wanted, first, sizeof first),
             opdi_token_name(&lexer->cur, second, sizeof second));
    return opdi_syntax_error(lexer, &lexer->cur, what);
}

OPDI_INTERNAL bool opdi_token_is(const opdi_token *tok, const char *word) {
    return strlen(word) == (size_t)tok->length && memcmp(tok->text, word, (size_t)tok->length) == 0;
}

//== names =============================================================================================================

/* Reads name := IDENT ['::' IDENT] ['.' IDENT].  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_lex_name(opdi_lexer *lexer, opdi_name *out) {
    opdi_token tok;
    if (opdi_lex_expect(lexer, OPDI_TOKEN_IDENT, &tok) < 0) { return -1; }
    out->ns = out->overload = "";
    out->nns = out->noverload = 0;
    if (opdi_lex_next_if(lexer, ':')) {
        out->ns = tok.text;
        out->nns = tok.length;
        if (opdi_lex_expect(lexer, ':', NULL) < 0 || opdi_lex_expect(lexer, OPDI_TOKEN_IDENT, &tok) < 0) { return -1; }
    }
    out->name = tok.text;
    out->nname = tok.length;
    if (opdi_lex_next_if(lexer, '.')) {
        if (opdi_lex_expect(lexer, OPDI_TOKEN_IDENT, &tok) < 0) { return -1; }
        if (opdi_token_is(&tok, "default") || (tok.length >= 2 && tok.text[0] == '_' && tok.text[1] == '_')) {
            return opd_fail(OPD_ERROR_SCHEMA, "%.*s is not a legal overload name for aten operators",
                            tok.length < 80 ? tok.length : 80, tok.text);
        }
        out->overload = tok.text;
        out->noverload = tok.length;
    }
    return 0;
}

/* Checks that the whole text is an operator's name.  Returns 0, or -1 and sets an error of the parser. */
OPDI_INTERNAL int opdi_check_name(const char *text) {
    opdi_lexer lexer;
    opdi_name name;
    opdi_lexer_init(&lexer, text, strlen(text));
    if (opdi_lex_name(&lexer, &name) < 0 || opdi_lex_expect(&lexer, OPDI_TOKEN_EOF, NULL) < 0) { return -1; }
    if (strpbrk(text, " \t\r\n\\#")) {
        return opd_fail(OPD_ERROR_SCHEMA, "the name of an operator must not contain blanks or comments: '%.80s'", text);
    }
    return 0;
}

OPDI_INTERNAL int opdi_schema_check_text(const char *text, size_t length) {
    if (text == NULL) { return opd_fail(OPD_ERROR_SCHEMA, "the text of the schema is NULL"); }
    if (length > OPDI_MAX_SCHEMA_TEXT) {
        return opd_fail(OPD_ERROR_SCHEMA, "the text of the schema is too long: it has %llu bytes",
                        (unsigned long long)length);
    }
    return 0;
}

/* Splits an operator's name; the parts in *out point into `text`.  Returns 0, or -1 and sets an error, also if `text`
   is a whole schema. */
OPD_UNUSED OPDI_INTERNAL int opdi_name_parse(const char *text, size_t length, opdi_name *out) {
    opdi_lexer lexer;
    if (opdi_schema_check_text(text, length) < 0) { return -1; }
    opdi_lexer_init(&lexer, text, length);
    if (opdi_lex_name(&lexer, out) < 0) { return -1; }
    if (lexer.cur.kind == '(') {
        return opd_fail(OPD_ERROR_SCHEMA, "Tried to parse an operator name but function schema was given: %.*s",
                        length < 200 ? (int)length : 200, text);
    }
    (void)opdi_lex_next_if(&lexer, OPDI_TOKEN_NEWLINE);
    return opdi_lex_expect(&lexer, OPDI_TOKEN_EOF, NULL);
}
