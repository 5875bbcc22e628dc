#include "types.h"

//== constants =========================================================================================================

/* Returns the value of the number in the `count` characters at `text`, as strtod reads it, but with "." as the decimal
   point in any locale.  Returns OPDI_INF if the number is too large or the text too long. */
OPDI_NOINLINE static double opdi_strtod_any(const char *text, int count) {
    char buf[512], half[16];
    int k = 0;
    snprintf(half, sizeof half, "%.1f", 0.5);     /* "0", the locale's decimal point, "5" */
    int point = (int)strlen(half) - 2;
    if (count > 480 || point < 1) { return OPDI_INF; }
    for (int i = 0; i < count; i++) {
        if (text[i] == '.') {
            memcpy(buf + k, half + 1, (size_t)point);
            k += point;
        }
        else { buf[k++] = text[i]; }
    }
    buf[k] = 0;
    return strtod(buf, NULL);
}
/* Reads a number as opdi_strtod_any does, but also returns OPDI_INF for a number below DBL_MIN that is not zero. */
OPDI_INTERNAL double opdi_strtod(const char *text, int count) {
    const double number = opdi_strtod_any(text, count);
    for (int i = 0; number < DBL_MIN && i < count && (text[i] | 32) != 'e'; i++) {
        if (text[i] >= '1' && text[i] <= '9') { return OPDI_INF; }
    }
    return number;
}

/* Returns the value of the decimal number in the `count` characters at `text`, or OPDI_INF if it is out of range. */
static double opdi_decimal(const char *text, int count) {
    static const double tens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    int64_t m = 0;
    int i = 0, digits = 0;
    if (count <= 15) {                            /* m and tens[] are exact, so the quotient is correctly rounded */
        for (; i < count && opdi_is_digit(text[i]); i++) { m = 10 * m + (text[i] - '0'); }
        if (i < count && text[i] == '.') {
            for (i++; i < count && opdi_is_digit(text[i]); i++, digits++) { m = 10 * m + (text[i] - '0'); }
        }
        /* only on 64-bit systems: the registers of 32-bit x86 (x87) hold more bits, so the quotient would be rounded
           twice */
        if (i == count && sizeof(void *) == 8) { return (double)m / tens[digits]; }
    }
    return opdi_strtod(text, count);
}
/* Reads a number as opdi_decimal does, but returns a number below DBL_MIN as a denormal number or 0. */
OPDI_INTERNAL double opdi_decimal_any(const char *text, int count) {
    const double number = opdi_decimal(text, count);
    return number <= DBL_MAX ? number : opdi_strtod_any(text, count);
}

/* Reads the number token `tok`, both as an integer and as a double, into *out.  If `negative` is true, a minus sign
   stands before the token.  Returns 0, or -1 and sets an error if the number is out of range. */
OPDI_INTERNAL int opdi_read_number(const opdi_lexer *lexer, const opdi_token *tok, bool negative, opdi_lexed *out) {
    const char *text = tok->text;
    const bool hex = tok->length > 2 && (text[1] | 32) == 'x';
    const uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1u : 0u), base = hex ? 16u : 10u;
    uint64_t bits = 0;
    int count = tok->length;
    out->imaginary = text[count - 1] == 'j';
    if (out->imaginary) { count--; }
    out->integral = true;
    out->overflow = false;
    for (int i = hex ? 2 : 0; i < count; i++) {
        const uint64_t digit = (uint64_t)(opdi_is_digit(text[i]) ? text[i] - '0' : (text[i] | 32) - 'a' + 10);
        if (hex ? text[i] == '.' || (text[i] | 32) == 'p' : !opdi_is_digit(text[i])) {
            out->integral = false;
            break;
        }
        if (bits > (limit - digit) / base) { out->overflow = true; }
        else { bits = base * bits + digit; }
    }
    out->i = negative ? -(int64_t)(bits / 2) - (int64_t)(bits - bits / 2) : (int64_t)bits;
    out->d = hex ? opdi_strtod(text, count) : opdi_decimal(text, count);
    if (!(out->d <= DBL_MAX) || (hex && out->integral && out->overflow)) {
        return opdi_syntax_error(lexer, tok, "number out of range");
    }
    if (negative) { out->d = -out->d; }
    return 0;
}

/* Reads the imaginary part of a number such as "1.+2.j" into *im and returns 1.  Returns 0 if no imaginary part
   follows, or -1 and sets an error. */
static int opdi_parse_imaginary(opdi_parser *parser, double *im) {
    const opdi_lexer before = parser->lx;
    opdi_lexed number;
    if (before.cur.kind != '+' && before.cur.kind != '-') { return 0; }
    opdi_lex(&parser->lx);
    opdi_token tok = parser->lx.cur;
    if (tok.kind != OPDI_TOKEN_NUMBER || tok.text[tok.length - 1] != 'j') {
        parser->lx = before;
        return 0;
    }
    opdi_lex(&parser->lx);
    if (opdi_read_number(&parser->lx, &tok, before.cur.kind == '-', &number) < 0) { return -1; }
    *im = number.d;
    return 1;
}

static int opdi_make_complex(opdi_parser *parser, double re, double im, opd_value *out) {
    double *parts = (double *)opdi_arena_alloc(parser->arena, 2 * sizeof *parts);
    if (parts == NULL) { return -1; }
    parts[0] = re;
    parts[1] = im;
    *out = opd_value_complex(parts);
    return 0;
}

/* Reads ['-'] NUMBER for an argument of type `kind`.  The value is complex if `kind` is complex or the text has a j.
   The value is a double if `kind` is float or the text has a point or an exponent.  Otherwise the value is an integer.
   Returns 0, or -1 and sets an error. */
static int opdi_parse_number(opdi_parser *parser, int32_t kind, opd_value *out) {
    const bool negative = opdi_lex_next_if(&parser->lx, '-');
    opdi_lexed number;
    opdi_token tok;
    double im = 0.0;
    int more;
    if (opdi_lex_expect(&parser->lx, OPDI_TOKEN_NUMBER, &tok) < 0) { return -1; }
    if (opdi_read_number(&parser->lx, &tok, negative, &number) != 0) { return -1; }
    if ((more = number.imaginary ? 0 : opdi_parse_imaginary(parser, &im)) < 0) { return -1; }
    if (kind == OPDI_TYPE_COMPLEX || number.imaginary || more) {
        if (number.imaginary) { return opdi_make_complex(parser, 0.0, number.d, out); }
        return opdi_make_complex(parser, number.d, im, out);
    } else if (kind == OPDI_TYPE_FLOAT || !number.integral) {
        *out = opd_value_double(number.d);
    } else {
        if (number.overflow) { return opdi_syntax_error(&parser->lx, &tok, "number out of range"); }
        *out = opd_value_int(number.i);
    }
    return 0;
}

/* Reads the escape sequence at `text`, which begins after the backslash.  Writes the character to `here` and the length
   of the sequence to *count.  Returns NULL, or the text of an error. */
static const char *opdi_unescape(const char *text, const char *end, char *here, int *count) {
    static const char letters[] = "abfnrtv", codes[] = "\a\b\f\n\r\t\v";
    const char *at = text < end && *text != 0 ? strchr(letters, *text) : NULL;
    int value = 0;
    *count = 1;
    if (at != NULL) {
        *here = codes[at - letters];
        return NULL;
    }
    if (text < end && (*text == '\\' || *text == '\'' || *text == '"' || *text == '\n')) {
        *here = *text;
        return NULL;
    }
    if (text < end && *text == 'x') { return "unsupported hex specifier"; }
    if (text < end && (*text == 'u' || *text == 'U')) { return "unsupported unicode specifier"; }
    for (*count = 0; *count < 3 && text + *count < end && text[*count] >= '0' && text[*count] <= '7'; ++*count) {
        value = 8 * value + (text[*count] - '0');
    }
    if (*count < 3 || value > 255) { return "ill formed octal specifier"; }
    *here = (char)(unsigned char)value;
    return NULL;
}

/* Reads the string token `tok`, which has one or three quotes on each side, into *out: a text in the arena, with the
   escapes resolved.  Returns 0, or -1 and sets an error. */
static int opdi_parse_string(opdi_parser *parser, const opdi_token *tok, opd_value *out) {
    const int q = tok->length >= 6 && tok->text[1] == tok->text[0] && tok->text[2] == tok->text[0] ? 3 : 1;
    const char *string = tok->text + q, *end = tok->text + tok->length - q;
    char *text = opdi_arena_copy(parser->arena, string, (size_t)(end - string)), *to = text;
    if (text == NULL) { return -1; }
    while (string < end) {
        int count;
        if (*string != '\\') {
            *to++ = *string++;
            continue;
        }
        const char *complaint = opdi_unescape(string + 1, end, to++, &count);
        if (complaint != NULL) { return opdi_syntax_error(&parser->lx, tok, complaint); }
        string += 1 + count;
    }
    *to = 0;
    *out = opd_value_str(text);
    out->n = (int32_t)(to - text);
    return 0;
}

/* Words that stand for numbers.  The first six may be used for any type, the names of dtypes only for ScalarType. */
typedef struct opdi_word_number { const char *word; int32_t number; } opdi_word_number;
static const opdi_word_number opdi_word_numbers[] = {
    {"float", 6}, {"long", 4}, {"complex", 9}, {"strided", 0}, {"Mean", 1}, {"contiguous_format", 0},
    {"uint8", 0}, {"int8", 1}, {"int16", 2}, {"short", 2}, {"int32", 3}, {"int", 3}, {"int64", 4}, {"float16", 5},
    {"half", 5}, {"float32", 6}, {"float64", 7}, {"double", 7}, {"complex32", 8}, {"chalf", 8}, {"complex64", 9},
    {"cfloat", 9}, {"complex128", 10}, {"cdouble", 10}, {"bool", 11}, {"qint8", 12}, {"quint8", 13}, {"qint32", 14},
    {"bfloat16", 15}, {"float8_e5m2", 23}, {"float8_e4m3fn", 24}, {"float8_e5m2fnuz", 25}, {"float8_e4m3fnuz", 26},
    {"uint16", 27}, {"uint32", 28}, {"uint64", 29}, {"float8_e8m0fnu", 44},
};

static int opdi_parse_word_constant(opdi_parser *parser, const opdi_type *type, opd_value *out) {
    const opdi_type *inner = type->kind == OPDI_TYPE_OPTIONAL ? type->elems[0] : type;
    const bool dtype = inner->word != NULL && strcmp(inner->word, "ScalarType") == 0;
    const size_t count = dtype ? sizeof opdi_word_numbers / sizeof *opdi_word_numbers : 6;
    const opdi_token tok = parser->lx.cur;
    for (size_t i = 0; i < count; i++) {
        if (opdi_token_is(&tok, opdi_word_numbers[i].word)) {
            opdi_lex(&parser->lx);
            *out = opd_value_int(opdi_word_numbers[i].number);
            return 0;
        }
    }
    return opdi_syntax_error(&parser->lx, &tok, "invalid numeric default value");
}

static int opdi_parse_device(opdi_parser *parser, opd_value *out) {
    opdi_token tok;
    opd_device device = opd_device_make(OPD_CPU, -1);
    if (opdi_lex_expect(&parser->lx, OPDI_TOKEN_STRING, &tok) < 0 || opdi_parse_string(parser, &tok, out) < 0) {
        return -1;
    }
    if (opd_device_parse(out->u.s, &device) < 0) { return -1; }
    *out = opd_value_device(device);
    return 0;
}

/* Reads one constant of any kind into *out.  The text determines the kind; `type` matters only for dtypes, devices and
   numbers (see opdi_parse_number).  Returns 0, or -1 and sets an error. */
static int opdi_parse_constant(opdi_parser *parser, const opdi_type *type, opd_value *out) {
    opdi_token tok = parser->lx.cur;
    switch (tok.kind) {
    case OPDI_TOKEN_TRUE: case OPDI_TOKEN_FALSE:
        *out = opd_value_bool(tok.kind == OPDI_TOKEN_TRUE);
        opdi_lex(&parser->lx);
        return 0;
    case OPDI_TOKEN_NONE:
        *out = opd_value_none();
        opdi_lex(&parser->lx);
        return 0;
    case OPDI_TOKEN_STRING:
        if (type->kind == OPDI_TYPE_OPTIONAL && type->elems[0]->kind == OPDI_TYPE_DEVICE) {
            return opdi_parse_device(parser, out);
        }
        opdi_lex(&parser->lx);
        return opdi_parse_string(parser, &tok, out);
    case OPDI_TOKEN_IDENT: return opdi_parse_word_constant(parser, type, out);
    default: return opdi_parse_number(parser, type->kind, out);
    }
}

/* The default of a list while it is read.  An element is an int64_t, a double, a bool or, for complex numbers, an
   opd_value. */
typedef struct opdi_constants {
    int32_t kind;                                 /* kind of the elements */
    size_t size;                                  /* bytes of one element */
    int count, cap;
    char *data;
    opdi_token wrong;                             /* the first element that is of another kind */
} opdi_constants;

static bool opdi_constants_allowed(int32_t kind) {
    return kind == OPDI_TYPE_INT || kind == OPDI_TYPE_FLOAT || kind == OPDI_TYPE_BOOL || kind == OPDI_TYPE_COMPLEX;
}

/* Adds a value `times` times to a list's default.  If the value is not of the elements' kind, keeps the token `at` in
   `wrong`, for an error that the caller sets.  Returns 0, or -1 and sets an error if memory runs out. */
static int opdi_constants_add(opdi_parser *parser, opdi_constants *constants, opd_value value, int times,
                              const opdi_token *at) {
    const int tag = constants->kind == OPDI_TYPE_INT ? OPD_TAG_INT : constants->kind == OPDI_TYPE_FLOAT ? OPD_TAG_FLOAT
        : constants->kind == OPDI_TYPE_BOOL ? OPD_TAG_BOOL : OPD_TAG_COMPLEX;
    const bool truth = value.u.i != 0;
    const void *from = tag == OPD_TAG_BOOL ? (const void *)&truth : tag == OPD_TAG_COMPLEX ? (const void *)&value
                                                                                         : (const void *)&value.u;
    if (!opdi_constants_allowed(constants->kind)) { return 0; }
    if (value.tag != tag) {
        if (constants->wrong.length == 0) { constants->wrong = *at; }
        return 0;
    }
    if (constants->cap - constants->count < times) {
        constants->cap = OPDI_MAX(OPDI_MAX(2 * constants->cap, 4), constants->count + times);
        char *more = (char *)opdi_arena_alloc(parser->arena, (size_t)constants->cap * constants->size);
        if (more == NULL) { return -1; }
        if (constants->count > 0) { memcpy(more, constants->data, (size_t)constants->count * constants->size); }
        constants->data = more;
    }
    for (; times > 0; times--) {
        memcpy(constants->data + (size_t)constants->count++ * constants->size, from, constants->size);
    }
    return 0;
}

static opd_value opdi_constants_value(const opdi_constants *constants) {
    const void *data = constants->data;
    switch (constants->kind) {
    case OPDI_TYPE_INT: return opd_value_ints((const int64_t *)data, constants->count);
    case OPDI_TYPE_FLOAT: return opd_value_doubles((const double *)data, constants->count);
    case OPDI_TYPE_BOOL: return opd_value_bools((const bool *)data, constants->count);
    default: return opd_value_list((const opd_value *)data, constants->count);
    }
}

/* Reads the default of a list into *out: "[c, c]" or, for a list with a size, one constant, which is repeated.  Returns
   0, or -1 and sets an error. */
static int opdi_parse_list_default(opdi_parser *parser, const opdi_type *type, opd_value *out) {
    const opdi_type *elem = type->elems[0];
    const opdi_token first = parser->lx.cur;
    opdi_constants list;
    opd_value value;
    memset(&list, 0, sizeof list);
    list.kind = elem->kind;
    list.size = elem->kind == OPDI_TYPE_BOOL ? sizeof(bool) : elem->kind == OPDI_TYPE_COMPLEX ? sizeof value : 8;
    if (first.kind == OPDI_TOKEN_IDENT) { return opdi_lex_expect(&parser->lx, OPDI_TOKEN_NONE, NULL); }
    if (type->size >= 0 && first.kind != '[') {
        if (type->size > OPDI_MAX_REPEATED) {
            return opdi_syntax_error(&parser->lx, &first, "list is too long for a repeated default value");
        }
        if (opdi_parse_constant(parser, elem, &value) < 0) { return -1; }
        if (opdi_constants_add(parser, &list, value, type->size, &first) < 0) { return -1; }
    } else {
        if (opdi_lex_expect(&parser->lx, '[', NULL) < 0) { return -1; }
        for (int i = 0; i > 0 || parser->lx.cur.kind != ']'; i++) {
            if (i > 0 && !opdi_lex_next_if(&parser->lx, ',')) { break; }
            opdi_token at = parser->lx.cur;
            if (opdi_parse_constant(parser, elem, &value) < 0 || opdi_constants_add(parser, &list, value, 1, &at) < 0) {
                return -1;
            }
        }
        if (opdi_lex_expect(&parser->lx, ']', NULL) < 0) { return -1; }
    }
    if (!opdi_constants_allowed(list.kind)) {
        return opdi_syntax_error(&parser->lx, &first, "lists are only supported for float, int and complex types");
    }
    if (list.wrong.length > 0) {
        return opdi_syntax_error(&parser->lx, &list.wrong, "default value in a list is not of the list's type");
    }
    *out = opdi_constants_value(&list);
    return 0;
}

/* Reads the default of an argument of this type into *out.  Returns 0, or -1 and sets an error, also for types that
   have no defaults. */
OPDI_INTERNAL int opdi_parse_default(opdi_parser *parser, const opdi_type *type, opd_value *out) {
    switch (type->kind) {
    case OPDI_TYPE_STR: case OPDI_TYPE_OPTIONAL: case OPDI_TYPE_NUMBER: case OPDI_TYPE_INT: case OPDI_TYPE_BOOL:
        return opdi_parse_constant(parser, type, out);
    case OPDI_TYPE_FLOAT: case OPDI_TYPE_COMPLEX:
        if (opdi_parse_constant(parser, type, out) < 0) { return -1; }
        if (out->tag != OPD_TAG_INT) { return 0; }
        /* the integer was written as a word, such as strided */
        if (type->kind == OPDI_TYPE_COMPLEX) { return opdi_make_complex(parser, (double)out->u.i, 0.0, out); }
        *out = opd_value_double((double)out->u.i);
        return 0;
    case OPDI_TYPE_DEVICE: return opdi_parse_device(parser, out);
    case OPDI_TYPE_LIST: return opdi_parse_list_default(parser, type, out);
    default: break;
    }
    if (type->kind != OPDI_TYPE_TENSOR && type->kind != OPDI_TYPE_GENERATOR &&
        !(type->kind == OPDI_TYPE_OTHER && strcmp(type->word, "Quantizer") == 0)) {
        return opdi_syntax_error(&parser->lx, &parser->lx.cur, "unexpected type, no default value can be given for it");
    }
    *out = opd_value_none();
    return opdi_lex_expect(&parser->lx, OPDI_TOKEN_NONE, NULL);
}
