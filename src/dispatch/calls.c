#include "dispatch.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>calls        calls by operator and by base name; arguments and results in a kernel
//
//  A call finds its slot in the operator's table and runs the slot's kernel.  This section reads only the keys and the
//  flags of tensors.  The flags tell if a call can skip the autograd keys, because nothing requires grad.
//----------------------------------------------------------------------------------------------------------------------

//== calls =============================================================================================================
//
//  A call binds its arguments (compares their tags with the schema; opdi_bind converts values of other kinds), combines
//  the key sets of the tensor arguments, finds the slot, runs its kernel in a new scope, and moves the results to the
//  caller's scope.  The table below shows which function calls which function (opdi_call_x is written ..x), and on
//  which condition ("lists" are lists of tensors); a > b means that a calls b.  Every path ends in opdi_invoke_here:
//
//    function            condition                                 calls
//    opd_call_all        all given, no lists, a table ............ ..dispatch > opdi_invoke_here, ..keep_results
//      |                 defaults or lists, no table or no room .. ..with_defaults > ..dispatch
//      |                 other kinds, too many or few ............ ..with_defaults > ..converting > ..binding
//      '                 error, observers, no arrays, new thread . ..off_path > ..if_observed
//    ..off_path          no observer after all, arrays given ..... ..with_defaults
//    ..if_observed       observers, or an array is missing ....... ..observed > ..binding
//    opd_call_keywords   always .................................. ..keywords > ..binding
//    ..binding           the arguments fit ....................... ..bound (calls observers) > ..reserving > ..dispatch
//    opd_overloads_call  for the first overload that fits ........ ..bound
//    opd_call_at         for the slot of the given key ........... ..at_key > opdi_invoke
//    opd_redispatch      in a kernel, for the given keys ......... opdi_redispatch_in > opdi_invoke_here

OPDI_INTERNAL void opdi_ret_block_free(opd_value *value);
OPDI_INTERNAL int opdi_ret_block_own(opdi_thread *thread, opd_value *value);

OPDI_COLD_BEGIN

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
    *out = want == OPD_TAG_INTS ? opd_value_ints(ints, value->n) : want == OPD_TAG_FLOATS ? opd_value_floats(floats,
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
    *out = want == OPDI_TYPE_INT ? opd_value_ints(ints, type->size) : opd_value_floats(floats, type->size);
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
    double *out_row = (double *)opdi_scope_alloc(2 * sizeof *out_row);
    if (!out_row) { return -1; }
    out_row[0] = value->tag == OPD_TAG_FLOAT ? value->u.d : (double)value->u.i;
    out_row[1] = 0;
    *out = opd_value_complex(out_row);
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
            *out = opd_value_float((double)value->u.i);
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
static const char *opdi_null_why(const opdi_type *type) {
    const opdi_type *const plain = opdi_strip_optional(type);
    return plain->kind == OPDI_TYPE_TENSOR ||
        (plain->kind == OPDI_TYPE_LIST && opdi_strip_optional(plain->elems[0])->kind == OPDI_TYPE_TENSOR)
        ? " (a function that fails returns NULL: did a call before this one fail? opd_tensor_grad and opd_arg_tensor "
          "also return NULL if there is no tensor)"
        : " (OPD_NONE), which only an optional argument may be";
}
/* Handles a NULL element in a list of tensors.  Returns 0 if the schema says Tensor?[].  Otherwise returns -1 and sets
   an error. */
OPDI_NOINLINE static int opdi_null_element(const opd_op *op, int i, const opd_value *value) {
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

OPDI_INTERNAL opd_overloads *opdi_overloads_of(const char *name, size_t length);
/* If another overload accepts these arguments, appends its name to the pending error.  Returns -1. */
OPDI_INTERNAL int opdi_fail_overload(const opd_op *op, const opd_value *args, int nargs) {
    opdi_thread *thread = opdi_self();
    const opd_code code = thread->error;
    char said[sizeof thread->message];
    const opd_op *other = NULL;
    memcpy(said, thread->message, sizeof said);
    thread->error = OPD_OK;
    opd_overloads *set = opdi_overloads_of(op->base_name, strlen(op->base_name));
    if (set) { other = opd_overloads_resolve(set, args, nargs, NULL, 0); }
    memcpy(thread->message, said, sizeof said);
    thread->error = code;
    return !other || other == op ? -1 : opdi_fail_more("\n%s takes these arguments", other->name);
}
/* Sets the error for `why`, the reason that opdi_bind returned for the argument (or keyword) with index `at`.  Returns
   -1. */
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
        return given->keywords || given->nkw ? -1 : opdi_fail_overload(op, given->args, given->nargs);
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

OPDI_COLD_END

static inline void opdi_arg_keys_add(opdi_arg_keys *sets, const opd_tensor *tensor) {
    sets->functionality |= tensor->functionality;
    sets->backends |= 1u << tensor->backend;
    sets->flags |= OPDI_LOAD(&tensor->flags);
    sets->backend |= tensor->backend;
}

OPDI_NOINLINE OPDI_INTERNAL int opdi_arg_keys_lists(opdi_arg_keys *sets, const opd_op *op, const opd_value *args) {
    for (uint64_t mask = op->list_args; mask; mask &= mask - 1) {
        int i = opdi_low_bit(mask);
        const opd_value *value = &args[i];
        for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n; k++) {
            if (value->u.tensors && value->u.tensors[k]) { opdi_arg_keys_add(sets, value->u.tensors[k]); }
            else if (opdi_null_element(op, i, value)) { return -1; }
        }
    }
    return 0;
}

OPDI_COLD_BEGIN

/* Combines the keys, backends and flags of bound arguments as opdi_arg_keys_of does, but leaves out tensors for which
   the schema says Any.  Returns 0, 1 or -1, as opdi_arg_keys_of does. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_arg_keys_bound(opdi_arg_keys *sets, const opd_op *op, const opd_value *bound) {
    opd_value shown[OPD_MAX_ARGS];
    if (!op->any_args) { return opdi_arg_keys_of(sets, op, bound); }
    for (int i = 0; i < op->nargs; i++) {
        shown[i] = opdi_takes_all(opdi_strip_optional(op->schema->args[i].type)) ? opd_value_none() : bound[i];
    }
    return opdi_arg_keys_of(sets, op, shown);
}

/* Returns true if an argument is a view whose base requires grad.  The flags of the view itself may not be up to date.
   */
OPDI_NOINLINE OPDI_INTERNAL bool opdi_views_require_grad(const opd_op *op, const opd_value *args) {
    for (uint64_t mask = op->tensor_args | op->list_args; mask; mask &= mask - 1) {
        const opd_value *value = &args[opdi_low_bit(mask)];
        int32_t count = value->tag == OPD_TAG_TENSOR ? 1 : value->tag == OPD_TAG_TENSORS ? value->n : 0;
        for (int32_t k = 0; k < count; k++) {
            const opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : value->u.tensors[k];
            if (tensor && (tensor->flags & OPDI_IS_VIEW) &&
                (opdi_view_record_of(tensor)->base->flags & OPDI_REQUIRES_GRAD)) {
                return true;
            }
        }
    }
    return false;
}
/* Returns 1 if the autograd kernels of a call have something to do, else 0.  Called only if the call has a view or a
   level of forward mode is open. */
OPDI_NOINLINE static int opdi_wants_autograd(const opdi_thread *thread, const opd_call *call, unsigned flags) {
    if (thread->state.forward == OPDI_FORWARD_OPEN) { return 1; }
    return !thread->state.no_grad && ((flags & OPDI_REQUIRES_GRAD) ||
                                      ((flags & OPDI_IS_VIEW) && opdi_views_require_grad(call->op, call->args)));
}

/* Drops the results that a call holds, and sets all results to None. */
OPDI_INTERNAL void opdi_rets_drop(opd_call *call) {
    for (int i = 0; i < call->op->nrets; i++) {
        if (call->owned >> i & 1) {
            opd_value *value = &call->rets[i];
            if (value->tag == OPD_TAG_TENSOR) { opdi_drop(value->u.t); }
            else { opdi_ret_block_free(value); }
        }
        call->rets[i] = opd_value_none();
    }
    call->owned = call->filled = 0;
    call->cursor = 0;
}

/* Drops the results of a kernel that failed or returned too few results, and sets an error if none is pending.  Returns
   -1. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_call_failed(opd_call *call, int rc) {
    if (opd_ok()) {
        if (rc) {
            (void)opd_fail(OPD_ERROR_KERNEL, "%s: its kernel for %s failed without setting an error (opd_fail)",
                           call->op->name, opd_key_name(call->slot));
        }
        else {
            (void)opd_fail(OPD_ERROR_KERNEL, "%s: its kernel for %s returned %d of %d result(s)", call->op->name,
                           opd_key_name(call->slot), call->cursor, call->op->nrets);
        }
    }
    opdi_rets_drop(call);
    return -1;
}

/* Returns a text for error messages: how a kernel at `key` can call the kernels below it. */
static const char *opdi_way_below(opd_key key) {
    const uint64_t bit = opd_keyset_add(OPD_KEYS_EMPTY, key).functionality;
    return bit & OPDI_AUTOGRAD_BITS ? "; to call the kernels below it, exclude its keys first, with "
        "opd_keys_exclude(OPD_KEYS_AUTOGRAD), or call opd_redispatch(call, opd_keyset_and(opd_call_keys(call), "
        "opd_keyset_below(OPD_F_AUTOGRAD_OTHER)))"
        : bit < OPD_BIT_OF(OPD_F_BACKEND_SELECT) ? "; it must compute the results itself, or call other operators, or "
        "call the kernel that it replaces (opd_kernel_get, before it is registered)"
        : "; to call the kernels below it, exclude its key first, with opd_keys_exclude, or call opd_redispatch";
}
/* Sets the error that calls are nested too deep.  If a kernel calls itself, the error names its operator and key.
   Returns -1. */
OPDI_NOINLINE static int opdi_too_deep(const opd_call *call) {
    if (opdi_is_left_at(call->th, call)) { return opdi_forget_left(call->th); }
    for (const opd_call *other = call->outer; other; other = other->outer) {
        if (other->op == call->op && other->slot == call->slot) {
            return opd_fail(OPD_ERROR_KERNEL, "the kernel of %s for %s calls itself without end (%d nested calls)%s",
                            call->op->name, opd_key_name(call->slot), OPDI_MAX_DEPTH, opdi_way_below(call->slot));
        }
    }
    return opd_fail(OPD_ERROR_KERNEL, "%s: calls are nested deeper than %d", call->op->name, OPDI_MAX_DEPTH);
}

/* Writes one line of the dispatch trace for a call.  Calls that the log function makes are not traced. */
static void opdi_trace_dispatch(const opd_call *call) {
    const opd_call *other = call->outer;
    const bool again = other && other->op == call->op && other->args == call->args && other->rets == call->rets;
    char line[512];
    if (call->th->showing) { return; }
    call->th->showing = true;
    (void)snprintf(line, sizeof line, "%*s[%s] op=[%s], key=[%s]", (int)call->depth - 1, "",
                   again ? "redispatch" : "call", call->op->name, opd_key_name(call->slot));
    opdi_log_write(call->th, -1, line, true);
    call->th->showing = false;
}

/* Handles a call whose depth is above opdi_depth_limit, or whose frame is not at a lower address than its caller's.
   Returns -1 and sets an error if the calls are too deep, if too little of the stack is left, or if a collective failed
   that the call waits for.  Otherwise waits for collectives that use the arguments, writes the dispatch trace if it is
   on, and returns 0. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_beyond_limit(const opd_call *call) {
    if (call->depth > OPDI_MAX_DEPTH || opdi_is_left_at(call->th, call)) { return opdi_too_deep(call); }
    if (opdi_stack_is_short(call->op->name, OPDI_STACK_CALL)) { return -1; }
    if (OPDI_LOAD(&opdi_works_running) != 0 && OPDI_ACQUIRE(&opdi_works_before_call)(call)) { return -1; }
    if (OPDI_LOAD(&opdi_calls_shown)) { opdi_trace_dispatch(call); }
    return 0;
}
/* Sets opdi_depth_limit.  A limit of 0 makes all calls pass through opdi_beyond_limit. */
OPDI_INTERNAL void opdi_depth_limit_update(void) {
    opdi_lock(&opdi_threads_lock);
    OPDI_STORE(&opdi_depth_limit, OPDI_LOAD(&opdi_calls_shown) || OPDI_LOAD(&opdi_works_running) ||
               OPDI_LOAD(&opdi_small_stacks) ? 0 : OPDI_QUICK_DEPTH);
    opdi_unlock(&opdi_threads_lock);
}

bool opd_dispatch_trace_set(bool on) {
    const bool was = OPDI_LOAD(&opdi_calls_shown);
    OPDI_STORE(&opdi_calls_shown, on);
    opdi_depth_limit_update();
    return was;
}

OPDI_COLD_END

/* Closes the scopes that a kernel opened and did not close. */
OPDI_NOINLINE OPDI_INTERNAL void opdi_scopes_forgotten(opdi_thread *thread, int32_t depth, int64_t mark) {
    thread->scope_depth = depth;
    thread->scope_mark = OPDI_MIN(thread->scope_mark, mark);
}

/* Releases the tensors that a kernel left in its scope. */
OPDI_NOINLINE OPDI_INTERNAL void opdi_kernel_unwind(opdi_thread *thread, const opd_call *call) {
    thread->ending = opd_op_name(call->op);
    opdi_scope_unwind(thread, call->mark);
    thread->ending = NULL;
}

OPDI_NOINLINE OPDI_INTERNAL int opdi_invoke(opdi_thread *thread, opd_call *call, const opdi_slot *slot) {
    return opdi_invoke_here(thread, call, slot);
}

/* Finds the slot of a call in the rare cases: it has a view or a tensor of a stored dtype (see >>stored_dtypes), or a
   level of forward mode is open. */
OPDI_NOINLINE OPDI_INTERNAL const opdi_slot *opdi_find_slot_slow(const opdi_thread *thread, opd_call *call,
                                                                 const opdi_table *table, opdi_arg_keys sets) {
    const opdi_slot *slot = opdi_slot_for(thread, call, table, &sets,
                                          opdi_wants_autograd(thread, call, sets.flags) ? 16 : 0);
    return sets.flags & OPDI_STORED ? opdi_stored_slot(call, slot) : slot;
}

/* Moves the results of a call to the caller's scope, which must have room for one handle per result.  Returns 0, or -1
   if memory for the tensors of a list runs out. */
static inline int opdi_rets_own(opdi_thread *thread, opd_call *call) {
    int rc = 0;
    for (int i = 0; call->owned; i++, call->owned >>= 1) {
        if (!(call->owned & 1)) { continue; }
        if (OPDI_LIKELY(call->rets[i].tag == OPD_TAG_TENSOR)) { opdi_push_of(thread, call->rets[i].u.t, call->op); }
        else if (opdi_ret_block_own(thread, &call->rets[i])) { rc = -1; }
    }
    return rc;
}

/* Moves results to the caller's scope as opdi_rets_own does, after making room for their handles.  Returns 0, or -1
   with an error and the results dropped. */
OPDI_NOINLINE static int opdi_call_keep_results(opdi_thread *thread, opd_call *call) {
    if (opdi_scope_reserve(thread, OPDI_MAX_RETURNS)) {
        opdi_rets_drop(call);
        return -1;
    }
    return opdi_rets_own(thread, call);
}
/* Runs a call with bound arguments whose keys are in *sets: finds the slot, runs its kernel, and moves the results to
   the caller's scope.  Returns 0, or -1 and sets an error. */
OPDI_FORCE_INLINE static int opdi_call_dispatch(opdi_thread *thread, opd_op *op, const opdi_table *table,
                                                const opdi_arg_keys *sets, opd_value *rets, const opd_value *args) {
    opd_call call;
    call.op = op;
    call.args = args;
    call.rets = rets;
    call.targets = NULL;
    if (opdi_invoke_here(thread, &call, opdi_find_slot(thread, &call, table, sets))) { return -1; }
    if (!call.owned) { return 0; }
    if (call.owned == 1 && OPDI_LIKELY(rets->tag == OPD_TAG_TENSOR && thread->top + OPDI_MAX_RETURNS <= thread->cap)) {
        opdi_push_of(thread, rets->u.t, op);
        return 0;
    }
    return opdi_call_keep_results(thread, &call);
}
/* Runs a call as opdi_call_dispatch does, but is not inlined, and first makes room for the results in the scope. */
OPDI_NOINLINE static int opdi_call_reserving(opdi_thread *thread, opd_op *op, const opdi_table *table,
                                             const opdi_arg_keys *sets, opd_value *rets, const opd_value *args) {
    return opdi_scope_reserve(thread, OPDI_MAX_RETURNS) ? -1 : opdi_call_dispatch(thread, op, table, sets, rets, args);
}

/* Runs a call with bound arguments.  Afterwards releases the wrapped numbers and lists that binding has pushed onto the
   scope stack since `mark`.  If `watched` is true, the call is an event for observers, which see every argument.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_call_bound(opdi_thread *thread, opd_op *op, const opdi_table *table, opd_value *rets,
                                  const opd_value *bound, int64_t mark, bool watched) {
    const int64_t top = thread->top;
    opdi_observing observing;
    opdi_arg_keys sets;
    opd_call call;
    int rc = opdi_arg_keys_bound(&sets, op, bound) < 0 ? -1 : 0;
    if (rc == 0 && watched) {
        call.op = op;
        call.args = bound;
        (void)opdi_find_slot(thread, &call, table, &sets);
        bool recording = (call.keys.functionality & OPDI_AUTOGRAD_BITS) && !thread->state.no_grad;
        observing.event.op = op;
        observing.event.args = bound;
        observing.event.nargs = op->nargs;
        observing.event.forward_thread = 0;
        opdi_observe_begin(thread, &observing, OPD_OBSERVE_CALL, op->base_name,
                           recording ? (int64_t)thread->sequence : -1);
    }
    if (rc == 0) {
        rc = opdi_call_reserving(thread, op, table, &sets, rets, bound);
        if (watched) { opdi_observe_end(thread, &observing, rets, op->nrets); }
    }
    if (top != mark) { opdi_scope_remove(thread, mark, top); }
    return rc;
}

/* Binds the given arguments and runs the call.  Returns 0, or -1 and sets an error if either fails. */
OPDI_NOINLINE static int opdi_call_binding(opdi_thread *thread, opd_op *op, const opdi_table *table, opd_value *rets,
                                           const opdi_given *given, bool watched) {
    opd_value bound[OPD_MAX_ARGS];
    int64_t mark = thread->top;
    int at, rc = opdi_bind(op, given, bound, &at);
    if (rc == OPDI_BOUND) { return opdi_call_bound(thread, op, table, rets, bound, mark, watched); }
    if (thread->top != mark) { opdi_scope_remove(thread, mark, thread->top); }
    return rc < 0 ? -1 : opdi_bind_error(op, given, rc, at);
}
/* Sets the results of a failed call to None and returns -1.  If op is NULL or undefined, sets one result. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_no_rets(const opd_op *op, opd_value *rets) {
    const int count = op && opdi_is_defined(op) ? OPDI_LOAD(&op->nrets) : 1;
    for (int i = 0; rets && i < count; i++) { rets[i] = opd_value_none(); }
    return -1;
}
/* Binds nargs arguments, given by position, to bound.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_bind_all(const opd_op *op, const opd_value *args, int nargs, opd_value *bound) {
    const opdi_given given = {args, /* kw */ NULL, nargs, /* nkw */ 0, /* keywords, numbers */ false, true};
    int at, rc = opdi_bind(op, &given, bound, &at);
    return rc > 0 ? opdi_bind_error(op, &given, rc, at) : rc;
}
/* Runs a call with arguments by position that must be converted or checked.  Returns 0, or -1 and sets an error. */
OPDI_NOINLINE static int opdi_call_converting(opdi_thread *thread, opd_op *op, const opdi_table *table, opd_value *rets,
                                              const opd_value *args, int nargs) {
    const opdi_given given = {args, /* kw */ NULL, nargs, /* nkw */ 0, /* keywords, numbers */ false, true};
    return opdi_call_binding(thread, op, table, rets, &given, false);
}

/* Runs a call in which trailing arguments may be left out (they get their defaults) and lists of tensors may be given,
   or whose table is not made yet.  `was` is the result of opdi_enter; this function calls opdi_leave.  Returns 0, or -1
   and sets an error. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_call_with_defaults(opdi_thread *thread, opd_op *op, opd_value *rets,
                                                        const opd_value *args, int nargs, uint64_t was) {
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    opd_value full[OPD_MAX_ARGS];
    const opd_value *all = args;
    opdi_arg_keys sets;
    int i, rc = 0;
    if ((OPDI_UNLIKELY(!table) && !(table = opdi_table_make(op))) || opdi_scope_reserve(thread, OPDI_MAX_RETURNS)) {
        rc = -1;
    } else if (OPDI_UNLIKELY(nargs > op->nargs || nargs < op->required)) {
        rc = opdi_call_converting(thread, op, table, rets, args, nargs);
    } else {
        if (nargs < op->nargs) {
            for (i = 0; i < nargs; i++) {  /* usually so few that memcpy would be slower */
                full[i] = args[i];
                OPDI_IN_ORDER();
            }
            for (; i < op->nargs; i++) { full[i] = op->schema->args[i].value; }
            all = full;
        }
        if (OPDI_LIKELY((rc = opdi_arg_keys_of(&sets, op, all)) == 0)) {
            rc = opdi_call_dispatch(thread, op, table, &sets, rets, all);
        } else if (rc > 0) {
            rc = opdi_call_converting(thread, op, table, rets, args, nargs);
        }
    }
    opdi_leave(thread, was);
    return rc ? opdi_no_rets(op, rets) : 0;
}

/* Returns true if observers of this thread must be called for this call.  Observers may ask for a random sample of
   calls. */
OPDI_INTERNAL bool opdi_is_watched(opdi_thread *thread, const opd_op *op) {
    if (thread->observing) { (void)opdi_visits_left(thread); }
    if (!OPDI_LOAD(&thread->observed) || !opdi_observe_on(thread) || !op || op->unobserved) { return false; }
    if (OPDI_LOAD(&thread->observed) == OPDI_OBSERVE_SKIP && thread->skip > 0) {
        thread->skip--;
        return false;
    }
    return true;
}
/* Runs a call that observers see, or for which the caller gave no array of arguments or results.  Returns 0, or -1 and
   sets an error. */
OPDI_NOINLINE static int opdi_call_observed(opdi_thread *thread, opd_op *op, opd_value *rets, const opd_value *args,
                                            int nargs, bool watched) {
    const opdi_given given = {args, /* kw */ NULL, nargs, /* nkw */ 0, /* keywords, numbers */ false, true};
    opd_value unwanted[OPDI_MAX_RETURNS];
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    if (!table && !(table = opdi_table_make(op))) { return -1; }
    return opdi_call_binding(thread, op, table, rets ? rets : unwanted, &given, watched);
}
/* Runs a call if observers must see the call, or if the caller gave no array of arguments or results.  Returns 0, or -1
   if an error is pending or the call fails.  Returns 1 without running the call if no observer must see the call and
   both arrays were given. */
OPDI_NOINLINE static int opdi_call_if_observed(opdi_thread *thread, opd_op *op, opd_value *rets, const opd_value *args,
                                               int nargs) {
    if (thread->error != OPD_OK) { return -1; }
    bool watched = opdi_is_watched(thread, op);
    if (!op || (!watched && rets && (args || nargs <= 0))) { return 1; }
    return opdi_call_observed(thread, op, rets, args, nargs, watched);
}

/* Runs a call in the rare cases: the thread's first call, a pending error, observers, or missing arrays.  Returns 0, or
   -1 and sets an error. */
OPDI_NOINLINE static int opdi_call_off_path(opd_op *op, opd_value *rets, const opd_value *args, int nargs) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    int rc = 1;
    if (((int)thread->error | OPDI_LOAD(&thread->observed)) != 0 || !args || !rets) {
        rc = opdi_call_if_observed(thread, op, rets, args, nargs);
    }
    if (!op) { rc = opd_fail(OPD_ERROR_NOT_FOUND, "the operator handle of a call is NULL"); }
    if (rc > 0) { return opdi_call_with_defaults(thread, op, rets, args, nargs, was); }
    opdi_leave(thread, was);
    return rc ? opdi_no_rets(op, rets) : 0;
}

int opd_call_all(opd_op *op, opd_value *rets, const opd_value *args, int nargs) {
    opdi_thread *thread = opdi_thread_self;
    opdi_arg_keys sets;
    if (OPDI_UNLIKELY(!thread || !op || !args || !rets || ((int)thread->error | OPDI_LOAD(&thread->observed)) != 0)) {
        return opdi_call_off_path(op, rets, args, nargs);
    }
    uint64_t was = opdi_enter(thread);
    const opdi_table *table = OPDI_ACQUIRE(&op->table);  /* acquired: other fields of op may be read from here on */
    if (OPDI_UNLIKELY(!table || nargs != op->direct || thread->top + OPDI_MAX_RETURNS > thread->cap) ||
        OPDI_UNLIKELY(opdi_arg_keys_direct(&sets, op, args) != 0)) {
        return opdi_call_with_defaults(thread, op, rets, args, nargs, was);
    }
    int rc = opdi_call_dispatch(thread, op, table, &sets, rets, args);
    opdi_leave(thread, was);
    return OPDI_LIKELY(rc == 0) ? 0 : opdi_no_rets(op, rets);
}

opd_tensor *opd_call_op(opd_op *op, const opd_value *args, int nargs) {
    opd_value rets[OPDI_MAX_RETURNS];
    rets[0].tag = OPD_TAG_NONE;
    if (opd_call_all(op, rets, args, nargs)) { return NULL; }
    return rets[0].tag == OPD_TAG_TENSOR ? rets[0].u.t : NULL;
}

int opd_call_tensors(opd_op *op, opd_tensor **out, const opd_value *args, int nargs) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    opd_value rets[OPDI_MAX_RETURNS];
    int rc = opd_call_all(op, rets, args, nargs);
    if (!op && out) { out[0] = NULL; }
    for (int i = 0; op && out && i < op->nrets; i++) {
        out[i] = rc == 0 && rets[i].tag == OPD_TAG_TENSOR ? rets[i].u.t : NULL;
    }
    opdi_leave(thread, was);
    return rc;
}

OPDI_COLD_BEGIN

/* Combines the keys and flags of the arguments into *sets.  Checks that the kernel of a device other than meta does not
   get a tensor of the meta device, which has no data.  Returns 0, or -1 and sets an error. */
static int opdi_check_at(const opd_op *op, opd_key key, const opd_value *args, opdi_arg_keys *sets) {
    const opd_keyset keys = opdi_keyset_of(key);
    memset(sets, 0, sizeof *sets);
    if (opdi_arg_keys_bound(sets, op, args)) { return -1; }
    if (!keys.backends || keys.backends >> OPD_META & 1 || !(sets->backends >> OPD_META & 1)) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: a call at %s with a tensor of the meta device, which has no data",
                    op->name, opd_key_name(key));
}
/* Binds the arguments and runs the kernel of the slot of `key`, whatever keys the arguments have.  If handle is not
   NULL, runs its kernel instead, which then sees the keys of the arguments up to `key`.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_call_at_key(opdi_thread *thread, opd_op *op, opd_key key, const opd_kernel_handle *handle,
                                   opd_value *rets, const opd_value *args, int nargs) {
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    opd_value bound[OPD_MAX_ARGS], unwanted[OPDI_MAX_RETURNS];
    const int64_t mark = thread->top;
    opd_call call;
    opdi_arg_keys sets;
    opdi_slot made[2];
    int rc = -1;
    if ((table || (table = opdi_table_make(op)) != NULL) && opdi_bind_all(op, args, nargs, bound) == 0 &&
        opdi_check_at(op, key, bound, &sets) == 0 && opdi_scope_reserve(thread, OPDI_MAX_RETURNS) == 0) {
        int64_t top = thread->top;
        memset(&call, 0, sizeof call);
        call.op = op;
        call.args = bound;
        call.rets = rets ? rets : unwanted;
        call.keys = opdi_keyset_of(key);
        call.slot = key;
        call.flags = sets.flags & OPDI_STORED;
        const opd_keyset all = opd_keyset_make((sets.functionality | thread->state.include) & thread->state.allow,
                                               sets.backends);
        const opdi_slot *const slot = handle ? opdi_handle_slot(handle, table, &call, all, made)
            : call.flags ? opdi_stored_slot(&call, &table->slots[key]) : &table->slots[key];
        rc = opdi_invoke(thread, &call, slot);
        if (rc == 0 && opdi_scope_reserve(thread, OPDI_MAX_RETURNS)) {
            opdi_rets_drop(&call);
            rc = -1;
        }
        if (rc == 0) { rc = opdi_rets_own(thread, &call); }
        if (top != mark) { opdi_scope_remove(thread, mark, top); }
    }
    return rc;
}

int opd_call_at(opd_op *op, const char *key, opd_value *rets, const opd_value *args, int nargs) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);
    const opd_key wanted = opd_ok() ? opd_key_parse(key) : (opd_key)OPD_KEY_INVALID;
    int rc = -1;
    if (opdi_any_dead_value(args, nargs, "opd_call_at")) { rc = -1; }
    else if (op && opdi_key_is_runtime(wanted)) { rc = opdi_call_at_key(thread, op, wanted, NULL, rets, args, nargs); }
    else if (op) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_call_at: %s is not the key of a kernel (such as CPU or AutogradCPU)",
                       key);
    }
    else { (void)opd_fail(OPD_ERROR_NOT_FOUND, "opd_call_at: the operator is NULL"); }
    opdi_leave(thread, was);
    return rc ? opdi_no_rets(op, rets) : 0;
}

opd_value opd_call_value(opd_op *op, const opd_value *args, int nargs) {
    opd_value rets[OPDI_MAX_RETURNS];
    rets[0] = opd_value_none();
    return opd_call_all(op, rets, args, nargs) ? opd_value_none() : rets[0];
}

opd_tensors opd_call_list(opd_op *op, const opd_value *args, int nargs) {
    opd_value value = opd_call_value(op, args, nargs);
    return value.tag == OPD_TAG_TENSORS ? opd_tensors_of(value.u.tensors, value.n) : opd_tensors_of(NULL, 0);
}

/* Runs a call with nargs arguments by position and nkw arguments by name.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_call_keywords(opd_op *op, opd_value *rets, const opd_value *args, int nargs,
                                     const opd_keyword *kw, int nkw) {
    const opdi_given given = {args, kw, nargs, nkw, /* keywords, numbers */ true, true};
    opd_value unwanted[OPDI_MAX_RETURNS];
    opdi_thread *thread = opdi_self();
    if (thread->error != OPD_OK) { return -1; }
    if (!op || !opdi_is_defined(op)) {
        return opd_fail(OPD_ERROR_NOT_FOUND, "the operator handle of a call is NULL, or its operator is not defined");
    }
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    if (!table && !(table = opdi_table_make(op))) { return -1; }
    return opdi_call_binding(thread, op, table, rets ? rets : unwanted, &given, opdi_is_watched(thread, op));
}
OPDI_COLD_END
