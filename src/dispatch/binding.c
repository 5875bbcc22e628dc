#include "dispatch.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>binding      how the arguments of a call become those of the schema
//
//  Binding puts arguments by position and by name in the order of the schema, fills in the defaults, and converts
//  values of other kinds (an int for a float, a number for a tensor).  Calls whose arguments fit as they are do without
//  it.
//----------------------------------------------------------------------------------------------------------------------

//== binding ===========================================================================================================

OPDI_INTERNAL const char *opdi_value_kind(const opd_value *value) {
    static const char *const names[] = {"NoneType", "Tensor", "int", "float", "bool", "complex", "str", "Device",
                                        "Object", "List[int]", "List[float]", "List[bool]", "List[Tensor]",
                                        "List", "default", "a cell"};
    return (unsigned)value->tag >= OPD_TAG_COUNT ? "?"
        : names[value->tag == OPD_TAG_TENSOR && !value->u.t ? OPD_TAG_NONE : value->tag];
}

OPDI_INTERNAL bool opdi_is_number(const opd_value *value) {
    return value->tag == OPD_TAG_INT || value->tag == OPD_TAG_FLOAT || value->tag == OPD_TAG_BOOL ||
        (value->tag == OPD_TAG_COMPLEX && value->u.c);
}

OPDI_INTERNAL int opdi_bind_value(const opdi_type *type, const opd_value *value, opd_value *out);

/* Converts the elements of a list to the type `type`.  `want` is the tag of the new list, which determines how its
   elements are stored.  Returns 0 on success, 1 if an element does not fit the type, or -1 on failure. */
static int opdi_bind_elements(const opdi_type *type, const opd_value *value, opd_tag want, opd_value *out) {
    opd_value one, element, *values = (opd_value *)opdi_scope_alloc((size_t)value->n * sizeof *values);
    int64_t *ints = (int64_t *)(void *)values;    /* reuses the memory: no element is larger than an opd_value */
    double *floats = (double *)(void *)values;
    bool *bools = (bool *)(void *)values;
    int rc;
    if (!values) { return -1; }
    for (int32_t k = 0; k < value->n; k++) {
        element = opdi_list_element(value, k);
        if ((rc = opdi_bind_value(type, &element, &one)) != 0) { return rc; }
        if (want == OPD_TAG_INTS) { ints[k] = one.u.i; }
        else if (want == OPD_TAG_FLOATS) { floats[k] = one.u.d; }
        else if (want == OPD_TAG_BOOLS) { bools[k] = one.u.i != 0; }
        else { values[k] = one; }
    }
    *out = want == OPD_TAG_INTS ? opd_value_ints(ints, value->n) : want == OPD_TAG_FLOATS ? opd_value_doubles(floats,
        value->n) : want == OPD_TAG_BOOLS ? opd_value_bools(bools, value->n) : opd_value_list(values, value->n);
    return 0;
}

/* Binds a single number to a list of numbers with a size: for int[3], 1 becomes [1, 1, 1].  Returns 0 on success,
   1 if the number does not fit, or -1 on failure. */
static int opdi_bind_list(const opdi_type *type, const opd_value *value, opd_value *out) {
    const int32_t want = type->elems[0]->kind;
    opd_value one;
    if (type->size <= 0 || (want != OPDI_TYPE_INT && want != OPDI_TYPE_FLOAT) || value->tag == OPD_TAG_BOOL ||
        opdi_bind_value(type->elems[0], value, &one)) { return 1; }
    int64_t *ints = (int64_t *)opdi_scope_alloc((size_t)type->size * sizeof *ints);
    double *floats = (double *)(void *)ints;
    if (!ints) { return -1; }
    for (int32_t i = 0; i < type->size; i++) {
        if (want == OPDI_TYPE_INT) { ints[i] = one.u.i; } else { floats[i] = one.u.d; }
    }
    *out = want == OPDI_TYPE_INT ? opd_value_ints(ints, type->size) : opd_value_doubles(floats, type->size);
    return 0;
}

OPDI_INTERNAL bool opdi_is_list(const opd_value *value) {
    return value->tag == OPD_TAG_INTS || value->tag == OPD_TAG_FLOATS || value->tag == OPD_TAG_BOOLS ||
        value->tag == OPD_TAG_TENSORS || value->tag == OPD_TAG_LIST;
}

/* Returns true if `value` is a list of tensors that contains NULL although `type` is Tensor[], and not Tensor?[]. */
static bool opdi_has_null(const opdi_type *type, const opd_value *value) {
    const opdi_type *plain = opdi_strip_optional(type);
    int32_t k;
    if (value->tag != OPD_TAG_TENSORS || plain->kind != OPDI_TYPE_LIST || plain->elems[0]->kind != OPDI_TYPE_TENSOR) {
        return false;
    }
    for (k = 0; k < value->n && value->u.tensors && value->u.tensors[k]; k++) { }
    return k < value->n;
}

/* Returns the tag of the lists that kernels get for this type of elements. */
static opd_tag opdi_list_tag(const opdi_type *element) {
    return element->kind == OPDI_TYPE_INT ? OPD_TAG_INTS : element->kind == OPDI_TYPE_FLOAT ? OPD_TAG_FLOATS
        : element->kind == OPDI_TYPE_BOOL ? OPD_TAG_BOOLS
        : opdi_strip_optional(element)->kind == OPDI_TYPE_TENSOR ? OPD_TAG_TENSORS : OPD_TAG_LIST;
}

/* Binds a value to `type`, which is a list type: the value is a list, or a number that is repeated.  An empty list fits
   every type.  Returns 0 on success, 1 if the value does not fit, or -1 on failure. */
static int opdi_bind_as_list(const opdi_type *type, const opd_value *value, opd_value *out) {
    const opd_tag want = opdi_list_tag(type->elems[0]);
    if (!opdi_is_list(value)) { return opdi_bind_list(type, value, out); }
    if (value->n == 0) {
        out->tag = (int32_t)want;
        out->u.object = NULL;
        return 0;
    }
    if (value->tag == (int32_t)want && want != OPD_TAG_LIST) { return opdi_has_null(type, value); }
    return want == OPD_TAG_TENSORS || value->tag == OPD_TAG_TENSORS ? 1 : opdi_bind_elements(type->elems[0], value,
        want, out);
}

static int opdi_bind_complex(const opd_value *value, opd_value *out) {
    if (value->tag == OPD_TAG_COMPLEX) { return 0; }
    if (!opdi_is_number(value)) { return 1; }
    double *pair = (double *)opdi_scope_alloc(2 * sizeof *pair);
    if (!pair) { return -1; }
    pair[0] = value->tag == OPD_TAG_FLOAT ? value->u.d : (double)value->u.i;
    pair[1] = 0;
    *out = opd_value_complex(pair);
    return 0;
}

/* Binds a value to the first type of a Union that accepts it.  Returns 0 on success, 1 if no type accepts it, or
   -1 on failure. */
static int opdi_bind_union(const opdi_type *type, const opd_value *value, opd_value *out) {
    int rc = 1;
    for (int32_t k = 0; k < type->nelems && rc > 0; k++) { rc = opdi_bind_value(type->elems[k], value, out); }
    return rc;
}

/* Returns true if `type` is a class whose objects may be given by their names (see >>op:collective). */
static bool opdi_class_has_names(const opdi_type *type) {
    static const char groups[] = "__torch__.torch.classes.c10d.";
    return strncmp(type->word, groups, sizeof groups - 1) == 0;
}
/* Converts one value to `type`.  Returns 0 on success, 1 if the value does not fit, or -1 on failure. */
OPDI_INTERNAL int opdi_bind_value(const opdi_type *type, const opd_value *value, opd_value *out) {
    const opdi_type *plain = opdi_strip_optional(type);
    *out = *value;
    if (opdi_takes_all(plain)) { return value->tag == OPD_TAG_DEFAULT; }
    if (opdi_is_list(value) && value->n > 0 && !value->u.object) { return 1; }
    if (value->tag == OPD_TAG_NONE) {
        return type->kind == OPDI_TYPE_OPTIONAL || plain->kind == OPDI_TYPE_NONE ||
            plain->kind == OPDI_TYPE_GENERATOR ? 0 : 1;
    }
    switch (plain->kind) {
    case OPDI_TYPE_TENSOR:
        if (value->tag == OPD_TAG_TENSOR) { return value->u.t ? 0 : 1; }
        if (!opdi_is_number(value)) { return 1; }
        out->u.t = opdi_above->wrapped_number(*value);
        out->tag = OPD_TAG_TENSOR;
        out->n = 0;
        return out->u.t ? 0 : -1;
    case OPDI_TYPE_INT:
        if (value->tag == OPD_TAG_BOOL) { out->tag = OPD_TAG_INT; }
        return value->tag == OPD_TAG_INT || value->tag == OPD_TAG_BOOL ? 0 : 1;
    case OPDI_TYPE_FLOAT:
        if (value->tag == OPD_TAG_INT || value->tag == OPD_TAG_BOOL) {
            *out = opd_value_double((double)value->u.i);
            return 0;
        }
        return value->tag == OPD_TAG_FLOAT ? 0 : 1;
    case OPDI_TYPE_BOOL:
        if (value->tag == OPD_TAG_INT && (value->u.i == 0 || value->u.i == 1)) {
            out->tag = OPD_TAG_BOOL;
            return 0;
        }
        return value->tag == OPD_TAG_BOOL ? 0 : 1;
    case OPDI_TYPE_NUMBER: return opdi_is_number(value) ? 0 : 1;
    case OPDI_TYPE_COMPLEX: return opdi_bind_complex(value, out);
    case OPDI_TYPE_STR: return value->tag == OPD_TAG_STR ? 0 : 1;
    case OPDI_TYPE_DEVICE:
        if (value->tag == OPD_TAG_STR) {
            opd_device device;
            if (opd_device_parse(value->u.s, &device)) { return -1; }
            *out = opd_value_device(device);
            return 0;
        }
        return value->tag == OPD_TAG_DEVICE ? 0 : 1;
    case OPDI_TYPE_LIST: return opdi_bind_as_list(plain, value, out);
    case OPDI_TYPE_UNION: return opdi_bind_union(plain, value, out);
    case OPDI_TYPE_TUPLE:
        return (opdi_is_list(value) && value->n == plain->nelems) || value->tag == OPD_TAG_OBJECT ? 0 : 1;
    case OPDI_TYPE_CLASS:                         /* process groups and reductions may be given by name */
        return value->tag == OPD_TAG_OBJECT || (value->tag == OPD_TAG_STR && opdi_class_has_names(plain)) ? 0 : 1;
    default: return value->tag == OPD_TAG_OBJECT ? 0 : 1;
    }
}

/* Returns a hint for error messages about a NULL argument of this type: where the NULL probably comes from. */
OPDI_INTERNAL const char *opdi_null_why(const opdi_type *type) {
    const opdi_type *const plain = opdi_strip_optional(type);
    return plain->kind == OPDI_TYPE_TENSOR ||
        (plain->kind == OPDI_TYPE_LIST && opdi_strip_optional(plain->elems[0])->kind == OPDI_TYPE_TENSOR)
        ? " (a function that fails returns NULL: did a call before this one fail? opd_tensor_grad and opd_arg_tensor "
          "also return NULL if there is no tensor)"
        : " (OPD_NONE), which only an optional argument may be";
}
/* Handles a NULL element in a list of tensors.  Returns 0 if the schema says Tensor?[].  Otherwise returns -1 and sets
   an error. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_null_element(const opd_op *op, int i, const opd_value *value) {
    const opdi_type *type = opdi_strip_optional(op->schema->args[i].type);
    if (value->u.tensors && type->elems[0]->kind == OPDI_TYPE_OPTIONAL) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT,
                    "%s() Expected a value of type 'Tensor[]' for argument '%s' but an element is NULL%s", op->name,
                    op->schema->args[i].name, opdi_null_why(op->schema->args[i].type));
}

/* Returns the value that was given, by position or by name, for argument number `i` (which `arg` describes), or NULL if
   the argument was left out.  If it was given by name, adds 1 to *used. */
static const opd_value *opdi_given_at(const opdi_given *given, const opdi_arg *arg, int i, int *used) {
    if (i < given->nargs && given->args[i].tag != OPD_TAG_DEFAULT) { return &given->args[i]; }
    for (int k = 0; k < given->nkw; k++) {
        if (given->kw[k].name && strcmp(given->kw[k].name, arg->name) == 0) {
            ++*used;
            return &given->kw[k].value;
        }
    }
    return NULL;
}

/* Binds the given arguments in the order of the schema: fills in defaults, converts, and wraps numbers as tensors.
   Writes them to out.  Returns OPDI_BOUND on success, or -1 and sets an error if a conversion fails.  If the
   arguments do not fit, returns the reason (opdi_unbound) without setting an error, and sets *at to the index of the
   argument. */
OPDI_INTERNAL int opdi_bind(const opd_op *op, const opdi_given *given, opd_value *out, int *at) {
    int used = 0;
    *at = 0;
    if ((int64_t)given->nargs + given->nkw > op->nargs) { return OPDI_TOO_MANY; }
    if ((given->nargs > 0 && !given->args) || (given->nkw > 0 && !given->kw)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s(): the call has %d argument(s), but the pointer to them is NULL",
                        op->name, given->args ? given->nkw : given->nargs);
    }
    for (int i = 0; i < op->nargs; i++) {
        const opdi_arg *arg = &op->schema->args[i];
        const opd_value *value = opdi_given_at(given, arg, i, &used);
        *at = i;
        if (given->keywords && i < given->nargs && arg->keyword_only) { return OPDI_BY_POSITION; }
        if (!value && !arg->has_default) { return OPDI_MISSING; }
        if (!value) { value = &arg->value; }
        if ((unsigned)value->tag < OPD_TAG_COUNT && (op->accepts[i] >> value->tag & 1) &&
            (value->tag != OPD_TAG_TENSOR || value->u.t)) {
            if (opdi_has_null(arg->type, value)) { return OPDI_WRONG_TYPE; }
            out[i] = *value;
            continue;
        }
        if (opdi_is_number(value) && opdi_strip_optional(arg->type)->kind == OPDI_TYPE_TENSOR &&
            ((op->written_args >> i & 1) || !op->wraps_numbers || !given->numbers)) {
            return OPDI_WRONG_TYPE;
        }
        int rc = opdi_bind_value(arg->type, value, &out[i]);
        /* a default of another type than the argument is not converted */
        if (rc > 0 && value == &arg->value) {
            out[i] = *value;
            rc = 0;
        }
        if (rc) { return rc > 0 ? OPDI_WRONG_TYPE : -1; }
    }
    for (int i = 0; i < given->nkw && used < given->nkw; i++) {
        int k = given->kw[i].name ? opdi_arg_index(op->schema, given->kw[i].name, strlen(given->kw[i].name)) : -1;
        *at = i;
        if (k < 0) { return OPDI_UNKNOWN_KEYWORD; }
        if (k < given->nargs && given->args[k].tag != OPD_TAG_DEFAULT) { return OPDI_TWICE; }
    }
    return used < given->nkw ? OPDI_TWICE : OPDI_BOUND;
}

/* Writes a value as text for an error message to buf; long lists are shortened.  Returns buf. */
static const char *opdi_value_print(const opd_value *value, char *buf, size_t cap) {
    opdi_writer writer = {buf, cap - 1, 0, false};
    int i;
    if (value->tag == OPD_TAG_TENSOR && value->u.t) { opdi_write_text(&writer, "a tensor"); }
    else if (value->tag == OPD_TAG_STR) {
        opdi_write_quoted(&writer, value->u.s ? value->u.s : "",
                          value->u.s ? (int)OPDI_MIN(strlen(value->u.s), 64) : 0);
    }
    else if (opdi_is_list(value) && value->n > 0 && !value->u.object) { opdi_write_text(&writer, "a list at NULL"); }
    else if (value->tag >= OPD_TAG_INTS && value->tag <= OPD_TAG_LIST && value->tag != OPD_TAG_TENSORS) {
        for (i = 0; i < value->n && i < 16; i++) {
            const opd_value element = opdi_list_element(value, i);
            opdi_write_text(&writer, i ? ", " : "[");
            if (element.tag >= OPD_TAG_OBJECT || element.tag == OPD_TAG_TENSOR) {
                opdi_write_text(&writer, opdi_value_kind(&element));
            }
            else { opdi_write_scalar(&writer, &element); }
        }
        opdi_write_text(&writer, i < value->n ? ", ...]" : i ? "]" : "[]");
    }
    else if (value->tag < OPD_TAG_OBJECT) { opdi_write_scalar(&writer, value); }
    else { opdi_write_text(&writer, opdi_value_kind(value)); }
    buf[OPDI_MIN(writer.length, writer.cap)] = 0;
    return buf;
}

/* Sets the error for `why`, the reason that opdi_bind returned for the argument (or keyword) with index `at`.  Returns
   1 if an argument by position has the wrong type, so that another overload may take the arguments, else -1. */
OPDI_INTERNAL int opdi_bind_error(const opd_op *op, const opdi_given *given, int why, int at) {
    char type[256], value[128], decl[700];
    const opdi_arg *arg = op->nargs ? &op->schema->args[at] : NULL;
    int used = 0;
    (void)opd_schema_print(op->schema, decl, sizeof decl);
    switch (why) {
    case OPDI_TOO_MANY:
        return opd_fail(OPD_ERROR_ARGUMENT,
                        "Expected at most %d argument(s) for operator '%s', but received %d argument(s). "
                        "Declaration: %s", op->nargs, op->name,
                        (int)OPDI_MIN((int64_t)given->nargs + given->nkw, INT32_MAX), decl);
    case OPDI_BY_POSITION:
        return opd_fail(OPD_ERROR_ARGUMENT,
                        "%s() takes %d positional argument(s) but %d was/were given.  Declaration: %s",
                        op->name, at, given->nargs, decl);
    case OPDI_MISSING:
        return opd_fail(OPD_ERROR_ARGUMENT, "%s() is missing value for argument '%s'. Declaration: %s", op->name,
                        arg->name, decl);
    case OPDI_WRONG_TYPE: {
        const opd_value *v = opdi_given_at(given, arg, at, &used);
        if (!v) { v = &arg->value; }
        if (opdi_has_null(arg->type, v)) { return opdi_null_element(op, at, v); }
        if (!opd_ok()) { return -1; }
        const bool is_null = v->tag == OPD_TAG_NONE || (v->tag == OPD_TAG_TENSOR && !v->u.t);
        (void)opd_fail(OPD_ERROR_ARGUMENT,
                       "%s() Expected a value of type '%s' for argument '%s' but instead found %s%s%s.\n"
                       "Position: %d\nValue: %s\nDeclaration: %s", op->name,
                       opdi_type_print(arg->type, type, sizeof type), arg->name, is_null ? "NULL" : "type '",
                       is_null ? "" : opdi_value_kind(v), is_null ? opdi_null_why(arg->type) : "'", at,
                       is_null ? "NULL" : opdi_value_print(v, value, sizeof value), decl);
        return given->keywords || given->nkw ? -1 : 1;
    }
    case OPDI_UNKNOWN_KEYWORD:
        return opd_fail(OPD_ERROR_ARGUMENT, "Unknown keyword argument '%s' for operator '%s'. Declaration: %s",
                        given->kw[at].name ? given->kw[at].name : "", op->name, decl);
    case OPDI_TWICE:
        return opd_fail(OPD_ERROR_ARGUMENT,
                        "Argument '%s' specified both as positional and keyword argument. Declaration: %s",
                        given->kw[at].name ? given->kw[at].name : "", decl);
    default: return -1;
    }
}
