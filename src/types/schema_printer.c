#include "types.h"

//== printer ===========================================================================================================

static void opdi_write(opdi_writer *writer, const char *text, size_t length) {
    if (writer->length < writer->cap) {
        memcpy(writer->buf + writer->length, text, OPDI_MIN(length, writer->cap - writer->length));
    }
    writer->length += length;
}
OPDI_INTERNAL void opdi_write_text(opdi_writer *writer, const char *text) { opdi_write(writer, text, strlen(text)); }
static void opdi_write_char(opdi_writer *writer, char letter) { opdi_write(writer, &letter, 1); }

static void opdi_write_int(opdi_writer *writer, int64_t i) {
    char buf[24];
    snprintf(buf, sizeof buf, "%lld", (long long)i);
    opdi_write_text(writer, buf);
}

/* Writes `d` as PyTorch does: "1." if it is integral, else with 17 significant digits. */
OPDI_INTERNAL void opdi_write_double(opdi_writer *writer, double d) {
    char buf[48];
    if (d > -9e18 && d < 9e18 && (double)(int64_t)d == d) {
        if (d == 0 && 1 / d < 0) { opdi_write_char(writer, '-'); }
        opdi_write_int(writer, (int64_t)d);
        opdi_write_char(writer, '.');
        return;
    }
    snprintf(buf, sizeof buf, "%.17g", d);
    for (const char *at = buf; *at != 0; at++) {  /* replaces the locale's decimal point, of any length, by "." */
        if (opdi_is_digit(*at) || opdi_is_letter(*at) || *at == '-' || *at == '+') { opdi_write_char(writer, *at); }
        else if (at == buf || opdi_is_digit(at[-1])) { opdi_write_char(writer, '.'); }
    }
}

/* Writes the `count` bytes at `text` in quotes, with escapes. */
OPDI_INTERNAL void opdi_write_quoted(opdi_writer *writer, const char *text, int count) {
    static const char codes[] = "\a\b\f\n\r\t\v\\\"'", letters[] = "abfnrtv\\\"'";
    char octal[8];
    opdi_write_char(writer, '"');
    for (int i = 0; i < count; i++) {
        const unsigned char c = (unsigned char)text[i];
        const char *at = c != 0 ? strchr(codes, c) : NULL;
        if (at != NULL) {
            opdi_write_char(writer, '\\');
            opdi_write_char(writer, letters[at - codes]);
        } else if (c >= 32 && c < 127) {
            opdi_write_char(writer, (char)c);
        } else {
            snprintf(octal, sizeof octal, "\\%03o", (unsigned)c);
            opdi_write_text(writer, octal);
        }
    }
    opdi_write_char(writer, '"');
}

static void opdi_write_device(opdi_writer *writer, opd_device device) {
    char buf[64];
    opdi_write_char(writer, '"');
    opdi_write_text(writer, opdi_device_text(device, buf, sizeof buf));
    opdi_write_char(writer, '"');
}

OPDI_INTERNAL void opdi_write_scalar(opdi_writer *writer, const opd_value *value) {
    switch (value->tag) {
    case OPD_TAG_INT: opdi_write_int(writer, value->u.i); break;
    case OPD_TAG_FLOAT: opdi_write_double(writer, value->u.d); break;
    case OPD_TAG_BOOL: opdi_write_text(writer, value->u.i ? "True" : "False"); break;
    case OPD_TAG_STR: opdi_write_quoted(writer, value->u.s, (int)strlen(value->u.s)); break;
    case OPD_TAG_DEVICE: opdi_write_device(writer, value->u.device); break;
    case OPD_TAG_COMPLEX: {
        const double im = value->u.c[1];
        const bool minus = im < 0.0;
        opdi_write_double(writer, value->u.c[0]);
        opdi_write_char(writer, minus ? '-' : '+');
        opdi_write_double(writer, minus ? -im : im);
        opdi_write_char(writer, 'j');
        break;
    }
    default: opdi_write_text(writer, "None"); break;
    }
}

OPDI_INTERNAL opd_value opdi_list_element(const opd_value *value, int i) {
    switch (value->tag) {
    case OPD_TAG_INTS: return opd_value_int(value->u.ints[i]);
    case OPD_TAG_FLOATS: return opd_value_double(value->u.floats[i]);
    case OPD_TAG_BOOLS: return opd_value_bool(value->u.bools[i]);
    default: return value->u.list[i];
    }
}
/* Writes a default value.  Strings in schemas have a length and may contain zeros. */
static void opdi_write_known(opdi_writer *writer, const opd_value *value) {
    if (value->tag == OPD_TAG_STR) {
        opdi_write_quoted(writer, value->u.s, value->n);
    } else { opdi_write_scalar(writer, value); }
}

/* Writes the default of `arg`.  If an int[N] has N equal numbers, they are written as one number, as in PyTorch. */
static void opdi_write_default(opdi_writer *writer, const opdi_arg *arg) {
    const opd_value *value = &arg->value;
    bool once = arg->type->kind == OPDI_TYPE_LIST && value->tag == OPD_TAG_INTS && value->n > 1 &&
        value->n == arg->type->size && strcmp(arg->type->elems[0]->word, "int") == 0;
    if (value->tag < OPD_TAG_INTS || value->tag > OPD_TAG_LIST) {
        opdi_write_known(writer, value);
        return;
    }
    for (int i = 1; once && i < value->n; i++) { once = value->u.ints[i] == value->u.ints[0]; }
    if (!once) { opdi_write_char(writer, '['); }
    for (int i = 0; i < (once ? 1 : value->n); i++) {
        const opd_value elem = opdi_list_element(value, i);
        if (i > 0) { opdi_write_text(writer, ", "); }
        opdi_write_known(writer, &elem);
    }
    if (!once) { opdi_write_char(writer, ']'); }
}

static bool opdi_alias_same_sets(const opdi_alias *alias) {
    int k;
    for (int i = 0; i < alias->nbefore; i++) {
        for (k = 0; k < alias->nafter && strcmp(alias->before[i], alias->after[k]) != 0; k++) { }
        if (k == alias->nafter) { return false; }
    }
    return alias->nbefore == alias->nafter;
}

static void opdi_write_sets(opdi_writer *writer, const char *const *sets, int count) {
    for (int i = 0; i < count; i++) {
        if (i > 0) { opdi_write_char(writer, '|'); }
        opdi_write_text(writer, sets[i]);
    }
}

static void opdi_write_alias(opdi_writer *writer, const opdi_alias *alias) {
    if (alias == NULL) { return; }
    if (alias->nafter == 0) {
        opdi_write_char(writer, '!');
        return;
    }
    opdi_write_char(writer, '(');
    opdi_write_sets(writer, alias->before, alias->nbefore);
    if (alias->write) { opdi_write_char(writer, '!'); }
    if (!opdi_alias_same_sets(alias)) {
        opdi_write_text(writer, " -> ");
        opdi_write_sets(writer, alias->after, alias->nafter);
    }
    opdi_write_char(writer, ')');
}

/* Writes a type with its annotations, or without them if writer->plain is set. */
static void opdi_write_type(opdi_writer *writer, const opdi_type *type) {
    bool numbers = false;
    int count = 0;
    if (type->kind <= OPDI_TYPE_CLASS) {
        opdi_write_text(writer, writer->plain && type->kind == OPDI_TYPE_INT ? "int" : type->word);
    } else if (type->kind == OPDI_TYPE_LIST) {
        opdi_write_type(writer, type->elems[0]);
        opdi_write_char(writer, '[');
        if (type->size >= 0 && !writer->plain) { opdi_write_int(writer, type->size); }
        opdi_write_char(writer, ']');
    } else if (type->kind == OPDI_TYPE_OPTIONAL) {
        const bool spelled = type->alias != NULL && !writer->plain;  /* see opdi_parse_base_type */
        if (spelled) { opdi_write_text(writer, "Union("); }
        opdi_write_type(writer, type->elems[0]);
        opdi_write_text(writer, spelled ? ", NoneType)" : "?");
    } else {
        opdi_write_text(writer, opdi_type_heads[type->kind - OPDI_TYPE_TUPLE]);
        if (type->kind == OPDI_TYPE_UNION) { numbers = opdi_union_has_numbers(type->elems, type->nelems); }
        for (int i = 0; i < type->nelems; i++) {
            if (numbers && opdi_type_fits(type->elems[i], &opdi_base_types[OPDI_BASE_SCALAR].type)) { continue; }
            if (count++ > 0) { opdi_write_text(writer, ", "); }
            opdi_write_type(writer, type->elems[i]);
        }
        if (numbers) { opdi_write_text(writer, count > 0 ? ", Scalar)" : "Scalar)"); }
        else { opdi_write_char(writer, ')'); }
    }
    if (!writer->plain) { opdi_write_alias(writer, type->alias); }
}

/* Writes the text of a type to buf, cut to `cap` bytes including the final zero.  Returns buf. */
OPDI_INTERNAL const char *opdi_type_print(const opdi_type *type, char *buf, size_t cap) {
    opdi_writer writer = {buf, cap - 1, 0, false};
    opdi_write_type(&writer, type);
    buf[OPDI_MIN(writer.length, cap - 1)] = 0;
    return buf;
}

OPDI_INTERNAL const char *opdi_type_print_plain(const opdi_type *type, char *buf, size_t cap) {
    opdi_writer writer = {buf, cap - 1, 0, true};
    opdi_write_type(&writer, type);
    buf[OPDI_MIN(writer.length, cap - 1)] = 0;
    return buf;
}

OPDI_INTERNAL void opdi_write_argument(opdi_writer *writer, const opdi_arg *arg) {
    opdi_write_type(writer, arg->type);
    if (arg->name[0] != 0) {
        opdi_write_char(writer, ' ');
        opdi_write_text(writer, arg->name);
    }
    if (arg->has_default) {
        opdi_write_char(writer, '=');
        opdi_write_default(writer, arg);
    }
}

/* Writes the returns.  A single return has no brackets around it, unless its own text begins with a bracket, which a
   parser would take for the bracket of the list. */
static void opdi_write_returns(opdi_writer *writer, const opd_schema *schema) {
    bool brackets = schema->nreturns + (schema->varret ? 1 : 0) != 1;
    if (!brackets && schema->nreturns == 1) {
        const opdi_type *type = schema->returns[0].type;
        while (type->kind == OPDI_TYPE_LIST || type->kind == OPDI_TYPE_OPTIONAL) { type = type->elems[0]; }
        brackets = type->kind == OPDI_TYPE_TUPLE;
    }
    if (brackets) { opdi_write_char(writer, '('); }
    for (int i = 0; i < schema->nreturns; i++) {
        if (i > 0) { opdi_write_text(writer, ", "); }
        opdi_write_argument(writer, &schema->returns[i]);
    }
    if (schema->varret) { opdi_write_text(writer, schema->nreturns > 0 ? ", ..." : "..."); }
    if (brackets) { opdi_write_char(writer, ')'); }
}

/* Writes a declaration that can be parsed again. */
static void opdi_write_schema(opdi_writer *writer, const opd_schema *schema) {
    bool star = false;
    if (schema->ns[0] != 0) {
        opdi_write_text(writer, schema->ns);
        opdi_write_text(writer, "::");
    }
    opdi_write_text(writer, schema->name);
    if (schema->overload[0] != 0) {
        opdi_write_char(writer, '.');
        opdi_write_text(writer, schema->overload);
    }
    opdi_write_char(writer, '(');
    for (int i = 0; i < schema->nargs; i++) {
        if (i > 0) { opdi_write_text(writer, ", "); }
        if (schema->args[i].keyword_only && !star) {
            opdi_write_text(writer, "*, ");
            star = true;
        }
        opdi_write_argument(writer, &schema->args[i]);
    }
    if (schema->vararg) { opdi_write_text(writer, schema->nargs > 0 ? ", ..." : "..."); }
    opdi_write_text(writer, ") -> ");
    opdi_write_returns(writer, schema);
}

OPD_API size_t opd_schema_print(const opd_schema *schema, char *buf, size_t cap) {
    opdi_writer writer;
    writer.buf = buf;
    writer.cap = buf == NULL || cap == 0 ? 0 : cap - 1;
    writer.length = 0;
    writer.plain = false;
    if (schema != NULL) { opdi_write_schema(&writer, schema); }
    if (buf != NULL && cap > 0) { buf[OPDI_MIN(writer.length, writer.cap)] = 0; }
    return writer.length;
}

/* Writes an argument as it stands in a schema to buf, cut to `cap` bytes including the final zero.  Returns buf. */
OPDI_INTERNAL const char *opdi_arg_print(const opdi_arg *arg, char *buf, size_t cap) {
    opdi_writer writer = {buf, cap - 1, 0, false};
    opdi_write_argument(&writer, arg);
    buf[OPDI_MIN(writer.length, cap - 1)] = 0;
    return buf;
}
