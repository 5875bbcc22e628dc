#include "types.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>schemas      comparing schemas, and which arguments and results may share memory
//
//  Functions that compare parsed schemas: whether two schemas are equal, whether calls of an old schema are calls of a
//  new one, and which arguments and results may share memory according to their annotations.
//----------------------------------------------------------------------------------------------------------------------

//== relations =========================================================================================================

/* The alias annotation of an argument or return, taken from its type.  there: the type or the type of its elements is
   annotated.  write: the annotation has "!".  sets: the annotation of the type itself, or NULL.  elem: the type of the
   elements of a list if this type is annotated, else NULL.  If only the elements are annotated, `write` belongs to
   their annotation. */
typedef struct opdi_alias_info { bool there, write; const opdi_alias *sets; const opdi_type *elem; } opdi_alias_info;

static opdi_alias_info opdi_alias_info_of(const opdi_type *type) {
    opdi_alias_info marks = {false, false, NULL, NULL};
    if (type->kind == OPDI_TYPE_OPTIONAL && type->alias == NULL) { type = type->elems[0]; }
    if (type->kind == OPDI_TYPE_LIST && opdi_alias_info_of(type->elems[0]).there) { marks.elem = type->elems[0]; }
    marks.sets = type->alias;
    marks.there = marks.sets != NULL || marks.elem != NULL;
    marks.write = marks.sets != NULL ? marks.sets->write : marks.elem != NULL && opdi_alias_info_of(marks.elem).write;
    return marks;
}

static bool opdi_has_set(const char *const *sets, int count, const char *name) {
    int i;
    for (i = 0; i < count && strcmp(sets[i], name) != 0; i++) { }
    return i < count;
}

/* Returns true if two lists of names are the same set.  No list contains a name twice. */
static bool opdi_sets_same(const char *const *a, int na, const char *const *b, int nb) {
    for (int i = 0; i < na; i++) { if (!opdi_has_set(b, nb, a[i])) { return false; } }
    return na == nb;
}

static bool opdi_alias_info_same(const opdi_type *type, const opdi_type *other) {
    const opdi_alias_info marks = opdi_alias_info_of(type), next = opdi_alias_info_of(other);
    if (marks.there != next.there || marks.write != next.write || (marks.sets != NULL) != (next.sets != NULL)) {
        return false;
    }
    if (marks.sets != NULL &&
        (!opdi_sets_same(marks.sets->before, marks.sets->nbefore, next.sets->before, next.sets->nbefore) ||
         !opdi_sets_same(marks.sets->after, marks.sets->nafter, next.sets->after, next.sets->nafter))) {
        return false;
    }
    if ((marks.elem != NULL) != (next.elem != NULL)) { return false; }
    return marks.elem == NULL || opdi_alias_info_same(marks.elem, next.elem);
}

static int32_t opdi_type_size(const opdi_type *type) {
    return (type->kind == OPDI_TYPE_OPTIONAL ? type->elems[0] : type)->size;
}

static bool opdi_constant_same(const opd_value *first, const opd_value *second) {
    if (first->tag != second->tag) { return false; }
    switch (first->tag) {
    case OPD_TAG_INT: case OPD_TAG_BOOL: return first->u.i == second->u.i;
    case OPD_TAG_FLOAT: return first->u.d == second->u.d;
    case OPD_TAG_COMPLEX: return first->u.c[0] == second->u.c[0] && first->u.c[1] == second->u.c[1];
    case OPD_TAG_STR: return first->n == second->n && memcmp(first->u.s, second->u.s, (size_t)first->n) == 0;
    case OPD_TAG_DEVICE:
        return first->u.device.type == second->u.device.type && first->u.device.index == second->u.device.index;
    case OPD_TAG_INTS: case OPD_TAG_FLOATS: case OPD_TAG_BOOLS: case OPD_TAG_LIST:
        for (int i = 0; i < first->n && i < second->n; i++) {
            const opd_value left = opdi_list_element(first, i), right = opdi_list_element(second, i);
            if (!opdi_constant_same(&left, &right)) { return false; }
        }
        return first->n == second->n;
    default: return true;
    }
}

static bool opdi_default_same(const opdi_arg *arg, const opdi_arg *other) {
    return arg->has_default == other->has_default &&
        (!arg->has_default || opdi_constant_same(&arg->value, &other->value));
}

static bool opdi_args_same(const opdi_arg *arg, const opdi_arg *other, int count) {
    for (int i = 0; i < count; i++) {
        if (strcmp(arg[i].name, other[i].name) != 0 || !opdi_type_same(arg[i].type, other[i].type) ||
            opdi_type_size(arg[i].type) != opdi_type_size(other[i].type) ||
            arg[i].keyword_only != other[i].keyword_only || !opdi_default_same(&arg[i], &other[i]) ||
            !opdi_alias_info_same(arg[i].type, other[i].type)) {
            return false;
        }
    }
    return true;
}

static bool opdi_schema_same_name(const opd_schema *schema, const opd_schema *other) {
    return strcmp(schema->ns, other->ns) == 0 && strcmp(schema->name, other->name) == 0 &&
        strcmp(schema->overload, other->overload) == 0;
}

OPD_API bool opd_schema_equal(const opd_schema *schema, const opd_schema *other) {
    if (schema == NULL || other == NULL) { return schema == other; }
    return opdi_schema_same_name(schema, other) && schema->vararg == other->vararg && schema->varret == other->varret &&
        schema->nargs == other->nargs && schema->nreturns == other->nreturns &&
        opdi_args_same(schema->args, other->args, schema->nargs) && opdi_args_same(schema->returns, other->returns,
        schema->nreturns);
}

/* Returns `hash` mixed with the 8 bytes of `bits` (FNV-1a). */
static uint64_t opdi_schema_hash_bits(uint64_t hash, uint64_t bits) {
    for (int i = 0; i < 64; i += 8) { hash = (hash ^ (bits >> i & 255)) * UINT64_C(0x100000001b3); }
    return hash;
}
OPDI_INTERNAL uint64_t opdi_schema_hash_text(uint64_t hash, const char *text) {
    for (; *text != 0; text++) { hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3); }
    return opdi_schema_hash_bits(hash, 0);
}
static uint64_t opdi_schema_hash_double(uint64_t hash, double d) {
    uint64_t bits = 0;
    if (d != 0.0) { memcpy(&bits, &d, 8); }           /* 0. and -0. are equal */
    return opdi_schema_hash_bits(hash, bits);
}

/* Returns `hash` mixed with a constant: its tag and its value, element by element. */
static uint64_t opdi_schema_hash_constant(uint64_t hash, const opd_value *value) {
    hash = opdi_schema_hash_bits(hash, (uint64_t)value->tag);
    switch (value->tag) {
    case OPD_TAG_INT: case OPD_TAG_BOOL: return opdi_schema_hash_bits(hash, (uint64_t)value->u.i);
    case OPD_TAG_FLOAT: return opdi_schema_hash_double(hash, value->u.d);
    case OPD_TAG_COMPLEX: return opdi_schema_hash_double(opdi_schema_hash_double(hash, value->u.c[0]), value->u.c[1]);
    case OPD_TAG_STR: for (int i = 0; i < value->n;
                           i++) { hash = opdi_schema_hash_bits(hash, (unsigned char)value->u.s[i]); }
    return hash;
    case OPD_TAG_DEVICE:
        return opdi_schema_hash_bits(hash, (uint64_t)((int64_t)value->u.device.type * 65536 + value->u.device.index));
    case OPD_TAG_INTS: case OPD_TAG_FLOATS: case OPD_TAG_BOOLS: case OPD_TAG_LIST:
        for (int i = 0; i < value->n; i++) {
            const opd_value element = opdi_list_element(value, i);
            hash = opdi_schema_hash_constant(hash, &element);
        }
        return hash;
    default: return hash;
    }
}

static uint64_t opdi_schema_hash_type(uint64_t hash, const opdi_type *type) {
    hash = opdi_schema_hash_bits(hash, (uint64_t)type->kind * 65536 + (uint64_t)type->nelems);
    if (type->kind == OPDI_TYPE_OTHER || type->kind == OPDI_TYPE_CLASS) {
        hash = opdi_schema_hash_text(hash, type->word);
    }
    for (int i = 0; i < type->nelems; i++) { hash = opdi_schema_hash_type(hash, type->elems[i]); }
    return hash;
}

/* Returns `hash` mixed with `count` arguments or returns: names, types, alias sets, flags and defaults. */
static uint64_t opdi_schema_hash_args(uint64_t hash, const opdi_arg *args, int count) {
    for (int i = 0; i < count; i++) {
        const opdi_arg *arg = &args[i];
        const opdi_alias_info marks = opdi_alias_info_of(arg->type);
        uint64_t sets = 0;                        /* a sum of hashes: the order of the sets does not matter */
        for (int k = 0; marks.sets != NULL && k < marks.sets->nbefore; k++) {
            sets += opdi_schema_hash_text(1, marks.sets->before[k]);
        }
        for (int k = 0; marks.sets != NULL && k < marks.sets->nafter; k++) {
            sets += opdi_schema_hash_text(2, marks.sets->after[k]);
        }
        hash = opdi_schema_hash_type(opdi_schema_hash_text(hash, arg->name), arg->type);
        hash = opdi_schema_hash_bits(hash, (uint64_t)(int64_t)opdi_type_size(arg->type));
        hash = opdi_schema_hash_bits(hash, sets ^ (uint64_t)arg->keyword_only ^ (uint64_t)marks.write << 1 ^
                                     (uint64_t)arg->has_default << 2);
        if (arg->has_default) { hash = opdi_schema_hash_constant(hash, &arg->value); }
    }
    return hash;
}

OPD_API uint64_t opd_schema_hash(const opd_schema *schema) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    if (schema == NULL) { return 0; }
    hash = opdi_schema_hash_text(opdi_schema_hash_text(opdi_schema_hash_text(hash, schema->ns), schema->name),
                                 schema->overload);
    hash = opdi_schema_hash_bits(hash,
                                 (uint64_t)schema->nargs * 4 + (uint64_t)schema->vararg * 2 + (uint64_t)schema->varret);
    return opdi_schema_hash_args(opdi_schema_hash_args(hash, schema->args, schema->nargs), schema->returns,
                                 schema->nreturns);
}

/* A buffer for the reason why schemas are not compatible. */
typedef struct opdi_why { char *buf; size_t cap; } opdi_why;
static bool opdi_because(const opdi_why *why, const char *format, ...) OPD_PRINTF_LIKE(2, 3);
static bool opdi_because(const opdi_why *why, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    if (why->buf != NULL && why->cap > 0) { vsnprintf(why->buf, why->cap, format, ap); }
    va_end(ap);
    return false;
}

/* Checks the properties that must be equal for both kinds of compatibility: the names, "...", and the number of
   returns.  Returns false and writes the reason if one differs. */
static bool opdi_same_frame(const opd_schema *schema, const opd_schema *old, const opdi_why *why) {
    if (schema == NULL || old == NULL) { return opdi_because(why, "a schema is NULL"); }
    if (!opdi_schema_same_name(schema, old)) { return opdi_because(why, "the names differ"); }
    if (schema->vararg != old->vararg || schema->varret != old->varret) {
        return opdi_because(why, "only one of them has ...");
    }
    if (schema->nreturns != old->nreturns) {
        return opdi_because(why, "The number of returns is different. %d vs %d.", (int)schema->nreturns,
                            (int)old->nreturns);
    }
    return true;
}

/* Returns the reason why argument (or return) `other` cannot replace `arg`, or NULL if it can.  If `narrow` is true,
   the type of `other` must fit the type of `arg`; otherwise the type of `arg` must fit the type of `other`. */
static const char *opdi_arg_differs(const opdi_arg *other, const opdi_arg *arg, bool narrow) {
    if (strcmp(other->name, arg->name) != 0) { return "has another name"; }
    if (opdi_type_size(other->type) != opdi_type_size(arg->type)) { return "has another length"; }
    if (!opdi_alias_info_same(other->type, arg->type)) { return "has another alias annotation"; }
    if (other->keyword_only && !arg->keyword_only) { return "can no longer be given by position"; }
    if (!opdi_type_fits((narrow ? other : arg)->type, (narrow ? arg : other)->type)) {
        return "has a type that does not fit";
    }
    return arg->has_default && !opdi_default_same(other, arg) ? "has lost or changed its default value" : NULL;
}

/* Returns the index of the first out argument (keyword-only and written), or the number of arguments. */
static int opdi_first_out(const opd_schema *schema) {
    int i;
    for (i = 0; i < schema->nargs; i++) {
        if (schema->args[i].keyword_only && opdi_alias_info_of(schema->args[i].type).write) { break; }
    }
    return i;
}

static bool opdi_needs_default(const opdi_arg *arg, const opdi_why *why, const char *form) {
    char type[128];
    if (arg->has_default) { return true; }
    return opdi_because(why, "Function schema %s since the new argument '%s' of type %s did not provide a default "
                        "value.", form, arg->name, opdi_type_print_plain(arg->type, type, sizeof type));
}

/* Returns true if calls made for the schema `old` work with `schema`.  Otherwise writes the reason to `why`. */
OPD_API bool opd_schema_is_backward_compatible_with(const opd_schema *schema, const opd_schema *old, char *why,
                                                    size_t cap) {
    const opdi_why reason = {why, cap};
    const char *differs;
    (void)opdi_because(&reason, "%s", "");
    if (!opdi_same_frame(schema, old, &reason)) { return false; }
    if (schema->nargs < old->nargs) { return opdi_because(&reason, "there are fewer arguments"); }
    for (int i = 0; i < schema->nreturns; i++) {
        if ((differs = opdi_arg_differs(&old->returns[i], &schema->returns[i], false)) != NULL) {
            return opdi_because(&reason, "return %d %s", i, differs);
        }
    }
    int out = opdi_first_out(schema);
    int old_out = opdi_first_out(old);
    for (int i = 0; i < old_out; i++) {
        if ((differs = opdi_arg_differs(&schema->args[i], &old->args[i], false)) != NULL) {
            return opdi_because(&reason, "argument '%s' %s", old->args[i].name, differs);
        }
    }
    for (int i = old_out; i < out; i++) {         /* the arguments inserted before the out arguments */
        if (!opdi_needs_default(&schema->args[i], &reason, "not backward compatible")) { return false; }
    }
    for (int i = old_out; i < old->nargs; i++) {
        const int at = i - old_out + out;
        differs = at < schema->nargs ? opdi_arg_differs(&schema->args[at], &old->args[i], false) : "is no longer there";
        if (differs != NULL) { return opdi_because(&reason, "argument '%s' %s", old->args[i].name, differs); }
    }
    return true;
}

/* Returns true if calls made for `schema` that use nothing new work with the schema `old`.  Otherwise writes the reason
   to `why`. */
OPD_API bool opd_schema_is_forward_compatible_with(const opd_schema *schema, const opd_schema *old, char *why,
                                                   size_t cap) {
    const opdi_why reason = {why, cap};
    char type[128];
    (void)opdi_because(&reason, "%s", "");
    if (!opdi_same_frame(schema, old, &reason)) { return false; }
    int out = opdi_first_out(schema);
    int old_out = opdi_first_out(old);
    if (schema->nargs - out != old->nargs - old_out) {
        return opdi_because(&reason, "Function schema should have the same number of out arguments");
    }
    for (int i = 0; i < OPDI_MIN(out, old_out); i++) {
        if (opdi_arg_differs(&schema->args[i], &old->args[i], true) != NULL ||
            schema->args[i].has_default != old->args[i].has_default) {
            return opdi_because(&reason, "'%s' is not forward compatible with the older version of the schema",
                                schema->args[i].name);
        }
    }
    for (int i = old_out; i < out; i++) {
        const opdi_arg *arg = &schema->args[i];
        if (!opdi_needs_default(arg, &reason, "is not forward compatible")) { return false; }
        if (arg->value.tag >= OPD_TAG_INTS && arg->value.tag <= OPD_TAG_LIST) {
            return opdi_because(&reason,
                                "Function schema is not forward compatible since the new argument '%s' of type %s "
                                "has a container type as its default value.", arg->name,
                                opdi_type_print_plain(arg->type, type, sizeof type));
        }
    }
    for (int i = old_out; i < old->nargs; i++) {
        const opdi_arg *arg = &schema->args[i - old_out + out];
        const char *differs = opdi_arg_differs(arg, &old->args[i], true);
        if (differs != NULL || arg->has_default != old->args[i].has_default) {
            return opdi_because(&reason, "Out argument '%s' is not FC with the older version of the schema", arg->name);
        }
    }
    return true;
}

static bool opdi_args_fit(const opdi_arg *arg, const opdi_arg *other, int first, int count) {
    for (int i = first; i < count; i++) {
        if (strcmp(arg[i].name, other[i].name) != 0 || !opdi_type_fits(arg[i].type, other[i].type)) { return false; }
    }
    return true;
}

OPD_API bool opd_schema_is_subtype_of(const opd_schema *schema, const opd_schema *other, bool as_method) {
    const int skip = as_method ? 1 : 0;
    if (schema == NULL || other == NULL || schema->nargs != other->nargs || schema->nreturns != other->nreturns ||
        schema->nargs < skip) {
        return false;
    }
    return opdi_args_fit(other->args, schema->args, skip, schema->nargs) &&
        opdi_args_fit(schema->returns, other->returns, 0, schema->nreturns);
}

//== arguments and results that may share memory =======================================================================

OPDI_INTERNAL const opdi_arg *opdi_place_arg(const opd_schema *schema, int place) {
    return place >= 0 ? &schema->args[place] : &schema->returns[-1 - place];
}

/* Returns argument number `place` of a schema or, if `place` is negative, result number -1 - place.  Returns NULL and
   sets an error if there is no such argument or result. */
static const opdi_arg *opdi_schema_place(const opd_schema *schema, int place) {
    if (schema != NULL && (place >= 0 ? place < schema->nargs : -1 - place < schema->nreturns)) {
        return opdi_place_arg(schema, place);
    }
    opd_fail(OPD_ERROR_INDEX, "the schema has no %s %d", place < 0 ? "result" : "argument", place < 0 ? -1 - place
             : place);
    return NULL;
}

/* Returns true if values of this type have memory that other values may share. */
static bool opdi_type_has_memory(const opdi_type *type) {
    int i;
    if (type->kind == OPDI_TYPE_TENSOR || type->kind == OPDI_TYPE_LIST || type->kind == OPDI_TYPE_DICT ||
        type->kind == OPDI_TYPE_CLASS) {
        return true;
    }
    if (type->kind != OPDI_TYPE_OPTIONAL && type->kind != OPDI_TYPE_UNION && type->kind != OPDI_TYPE_TUPLE) {
        return opdi_type_is_any(type);
    }
    for (i = 0; i < type->nelems && !opdi_type_has_memory(type->elems[i]); i++) { }
    return i < type->nelems;
}

/* Returns true if a value of one type may have the same memory as a value of the other type. */
static bool opdi_types_may_alias(const opdi_type *type, const opdi_type *other) {
    int i;
    if (type->kind == OPDI_TYPE_OPTIONAL || type->kind == OPDI_TYPE_UNION) {
        for (i = 0; i < type->nelems && !opdi_types_may_alias(type->elems[i], other); i++) { }
        return i < type->nelems;
    }
    if (other->kind == OPDI_TYPE_OPTIONAL || other->kind == OPDI_TYPE_UNION) {
        return opdi_types_may_alias(other, type);
    }
    return opdi_type_has_memory(type) && opdi_type_same(type, other);
}

#define OPDI_MAX_INSIDE 256
/* Appends the types of the elements of `type`, at any depth, to out[OPDI_MAX_INSIDE], which has `count` types.  If
   `top` is true, skips types whose values have no memory, and treats each member of an optional type or union like
   `type`.  Returns the new number of types, or OPDI_MAX_INSIDE + 1 if there are more. */
static int opdi_types_inside(const opdi_type *type, bool top, const opdi_type **out, int count) {
    const bool choice = top && (type->kind == OPDI_TYPE_OPTIONAL || type->kind == OPDI_TYPE_UNION);
    if (top && !opdi_type_has_memory(type)) { return count; }
    for (int i = 0; i < type->nelems && count <= OPDI_MAX_INSIDE; i++) {
        const opdi_type *element = type->elems[i];
        if (top && type->kind == OPDI_TYPE_TUPLE && !opdi_type_has_memory(element)) { continue; }
        if (!choice) {
            if (count == OPDI_MAX_INSIDE) { return count + 1; }
            out[count++] = element;
        }
        count = opdi_types_inside(element, choice, out, count);
    }
    return count;
}

/* Returns true if a value of type `other` may contain a value of type `type`.  If `deep` is true, instead returns true
   if a value of type `other` may contain a value of the type of an element of `type`, at any depth. */
static bool opdi_types_contain(const opdi_type *other, const opdi_type *type, bool deep) {
    const opdi_type *types[OPDI_MAX_INSIDE], *list[OPDI_MAX_INSIDE];
    const int count = opdi_types_inside(other, true, types, 0), m = deep ? opdi_types_inside(type, true, list, 0) : 0;
    if (count > OPDI_MAX_INSIDE || m > OPDI_MAX_INSIDE) { return true; }
    for (int i = 0; i < count; i++) {
        if (!deep && opdi_types_may_alias(types[i], type)) { return true; }
        for (int k = 0; k < m; k++) { if (opdi_type_same(types[i], list[k])) { return true; } }
    }
    return false;
}

/* Returns true if two places (arguments or results, see opdi_schema_place) have an alias set in common after the
   call. */
static bool opdi_places_share(const opd_schema *schema, int first, int second) {
    const opdi_arg *arg = opdi_place_arg(schema, first), *next = opdi_place_arg(schema, second);
    const opdi_alias *alias = opdi_alias_info_of(arg->type).sets, *other = opdi_alias_info_of(next->type).sets;
    int i;
    if (alias == NULL || other == NULL || !opdi_types_may_alias(arg->type, next->type)) { return false; }
    for (i = 0; i < alias->nafter && !opdi_has_set(other->after, other->nafter, alias->after[i]); i++) { }
    return i < alias->nafter;
}

/* Returns true if neither tensor is NULL and they share memory. */
static bool opdi_same_tensors(const opd_tensor *first, const opd_tensor *second) {
    return first && second && opdi_same_memory(first, second);
}
/* Returns true if two values are known (not NULL) and have the same memory. */
static bool opdi_values_alias(const opd_value *value, const opd_value *wrapped) {
    if (value == NULL || wrapped == NULL || value->tag != wrapped->tag) { return false; }
    if (value->tag == OPD_TAG_TENSOR) { return opdi_same_tensors(value->u.t, wrapped->u.t); }
    return value->tag >= OPD_TAG_INTS && value->tag <= OPD_TAG_LIST && value->n > 0 && value->u.list == wrapped->u.list;
}
/* Returns true if `value` has the memory of an element of the list `wrapped`, at any depth.  Returns false if one of
   them is unknown (NULL). */
static bool opdi_value_inside(const opd_value *value, const opd_value *wrapped) {
    if (value == NULL || wrapped == NULL) { return false; }
    for (int i = 0; wrapped->tag == OPD_TAG_TENSORS && value->tag == OPD_TAG_TENSOR && i < wrapped->n; i++) {
        if (opdi_same_tensors(value->u.t, wrapped->u.tensors[i])) { return true; }
    }
    for (int i = 0; wrapped->tag == OPD_TAG_LIST && i < wrapped->n; i++) {
        if (opdi_values_alias(value, &wrapped->u.list[i]) || opdi_value_inside(value, &wrapped->u.list[i])) {
            return true;
        }
    }
    return false;
}
OPDI_INTERNAL const opd_value *opdi_known(const opd_value *values, int i) {
    return values != NULL && values[i].tag != OPD_TAG_DEFAULT ? &values[i] : NULL;
}

/* Returns true if `i` and `element` are the same argument, or if their values have the same memory. */
static bool opdi_inputs_alias(int i, int element, const opd_value *values) {
    return i == element || opdi_values_alias(opdi_known(values, i), opdi_known(values, element));
}

/* Returns true if an argument or result may share memory with any other.  An argument or result may do so if its alias
   set is *, or if the set is annotated at several arguments or several results.  So may an argument that is an element
   of another argument, and a result that shares a set with such an argument. */
static bool opdi_is_wildcard(const opd_schema *schema, int place, const opd_value *values) {
    const opdi_alias *alias = opdi_alias_info_of(opdi_place_arg(schema, place)->type).sets;
    const int nargs = place < 0 ? schema->nreturns : schema->nargs;
    for (int k = 0; alias != NULL && k < alias->nafter; k++) {
        if (strcmp(alias->after[k], "*") == 0) { return true; }
        for (int i = 0; i < nargs; i++) {
            const int other = place < 0 ? -1 - i : i;
            const opdi_alias *next = opdi_alias_info_of(opdi_place_arg(schema, other)->type).sets;
            if (other != place && next != NULL && opdi_has_set(next->after, next->nafter, alias->after[k])) {
                return true;
            }
        }
    }
    for (int i = 0; i < schema->nargs; i++) {
        if (place < 0 && opdi_places_share(schema, i, place) && opdi_is_wildcard(schema, i, values)) { return true; }
        if (place < 0 || i == place) { continue; }
        if (opdi_value_inside(opdi_known(values, place), opdi_known(values, i))) { return true; }
    }
    return false;
}

/* Returns true if the places `first` and `second` of a schema (see opdi_schema_place) may share memory in a call with
   the arguments `values`. */
static bool opdi_may_alias(const opd_schema *schema, int first, int second, const opd_value *values) {
    if (!opdi_types_may_alias(opdi_place_arg(schema, first)->type, opdi_place_arg(schema, second)->type)) {
        return false;
    }
    if (opdi_places_share(schema, first, second) ||
        (opdi_is_wildcard(schema, first, values) && opdi_is_wildcard(schema, second, values))) {
        return true;
    }
    if (first >= 0 && second >= 0) { return opdi_inputs_alias(first, second, values); }
    if (first >= 0) {  /* swaps the two, so that `first` is a result */
        const int kept = first;
        first = second;
        second = kept;
    }
    for (int i = 0; i < schema->nargs; i++) {
        if (!opdi_places_share(schema, i, first)) { continue; }
        for (int k = 0; k < schema->nargs; k++) {
            if (opdi_inputs_alias(i, k, values) && (second >= 0 ? k == second : opdi_places_share(schema, k, second))) {
                return true;
            }
        }
    }
    return false;
}

/* Returns true for the name of an argument that PyTorch's normalisations and rrelu write only in training. */
static bool opdi_written_in_training(const opd_schema *schema, const char *name) {
    const size_t length = strlen(schema->name);
    return strcmp(schema->ns, "aten") == 0 && (length < 9 || strcmp(schema->name + length - 9, "_backward") != 0) &&
           (strcmp(name, "running_mean") == 0 || strcmp(name, "running_var") == 0 || strcmp(name, "noise") == 0);
}

static bool opdi_is_written(const opd_schema *schema, int i, const opd_value *values) {
    static const char *const flags[] = {"training", "train", "use_input_stats"};
    if (schema->args[i].written || !opdi_written_in_training(schema, schema->args[i].name)) {
        return schema->args[i].written;
    }
    for (int k = 0; k < schema->nargs; k++) {
        for (int flag = 0; flag < 3; flag++) {
            if (strcmp(schema->args[k].name, flags[flag]) == 0) {
                return opdi_known(values, k) == NULL || values[k].u.i != 0;
            }
        }
    }
    return strcmp(schema->name, "batch_norm_update_stats") == 0;  /* has no flag, because it always trains */
}

/* Returns the arguments that a call with the arguments `values` writes, as a bit for each.  `values` is as in
   opd_schema_is_mutable_at.  An argument that is None is not written. */
OPDI_INTERNAL uint64_t opdi_schema_written(const opd_schema *schema, const opd_value *values) {
    uint64_t written = 0;
    for (int i = 0; i < schema->nargs; i++) {
        const opd_value *const value = opdi_known(values, i);
        if ((!value || value->tag != OPD_TAG_NONE) && opdi_is_written(schema, i, values)) {
            written |= (uint64_t)1 << i;
        }
    }
    return written;
}
/* Returns false if a call of a random operator with the arguments `values` draws no numbers: it does not train, or the
   probability of dropout is 0.  `values` is as in opd_schema_is_mutable_at. */
OPDI_INTERNAL bool opdi_schema_draws(const opd_schema *schema, const opd_value *values) {
    for (int i = 0; i < schema->nargs; i++) {
        const char *const name = schema->args[i].name;
        const opd_value *const value = opdi_known(values, i);
        if (!value) { continue; }
        if ((strcmp(name, "train") == 0 || strcmp(name, "training") == 0) && value->tag == OPD_TAG_BOOL &&
            value->u.i == 0) { return false; }
        if ((strcmp(name, "dropout") == 0 || strcmp(name, "dropout_p") == 0) && value->tag == OPD_TAG_FLOAT &&
            value->u.d <= 0) { return false; }
    }
    return true;
}

OPD_API bool opd_schema_is_mutable_at(const opd_schema *schema, int place, const opd_value *values) {
    if (opdi_schema_place(schema, place) == NULL) { return false; }
    for (int i = 0; i < schema->nargs; i++) {
        bool same = place >= 0 && opdi_inputs_alias(i, place, values);
        for (int k = 0; place < 0 && k < schema->nargs && !same; k++) {
            same = opdi_places_share(schema, k, place) && opdi_inputs_alias(i, k, values);
        }
        if (same && opdi_is_written(schema, i, values)) { return true; }
    }
    return false;
}

OPD_API bool opd_schema_is_aliasing(const opd_schema *schema, int place) {
    const opdi_arg *arg = opdi_schema_place(schema, place);
    return arg != NULL && opdi_alias_info_of(arg->type).there;
}

OPD_API bool opd_schema_may_alias(const opd_schema *schema, int first, int second, const opd_value *values) {
    return opdi_schema_place(schema, first) != NULL && opdi_schema_place(schema, second) != NULL &&
        opdi_may_alias(schema, first, second, values);
}

OPD_API bool opd_schema_may_contain_alias(const opd_schema *schema, int first, int second, bool both_ways,
                                          const opd_value *values) {
    const opdi_arg *arg = opdi_schema_place(schema, first), *other = opdi_schema_place(schema, second);
    if (arg == NULL || other == NULL) { return false; }
    return opdi_may_alias(schema, first, second, values) || opdi_types_contain(arg->type, other->type, true) ||
           (opdi_types_contain(arg->type, other->type, false) && opdi_is_wildcard(schema, second, values)) ||
           (both_ways && opdi_types_contain(other->type, arg->type, false) && opdi_is_wildcard(schema, first, values));
}
