#include "types.h"

//== types =============================================================================================================

#define OPDI_BASE(spelled, kind, word) {spelled, {kind, -1, 0, word, NULL, NULL}}
/* The types that most schemas have come first; OPDI_BASE_SCALAR and OPDI_BASE_INT are the numbers of the first rows. */
OPDI_INTERNAL const opdi_base_type opdi_base_types[] = {
    OPDI_BASE("Scalar", OPDI_TYPE_NUMBER, "Scalar"),
    OPDI_BASE("int", OPDI_TYPE_INT, "int"),
    OPDI_BASE("Tensor", OPDI_TYPE_TENSOR, "Tensor"),
    OPDI_BASE("bool", OPDI_TYPE_BOOL, "bool"),
    OPDI_BASE("SymInt", OPDI_TYPE_INT, "SymInt"),
    OPDI_BASE("float", OPDI_TYPE_FLOAT, "float"),
    OPDI_BASE("str", OPDI_TYPE_STR, "str"),
    OPDI_BASE("Device", OPDI_TYPE_DEVICE, "Device"),
    OPDI_BASE("ScalarType", OPDI_TYPE_INT, "ScalarType"),
    OPDI_BASE("Layout", OPDI_TYPE_INT, "Layout"),
    OPDI_BASE("MemoryFormat", OPDI_TYPE_INT, "MemoryFormat"),
    OPDI_BASE("Any", OPDI_TYPE_OTHER, "Any"),
    OPDI_BASE("AnyClassType", OPDI_TYPE_OTHER, "AnyClassType"),
    OPDI_BASE("AnyEnumType", OPDI_TYPE_OTHER, "AnyEnumType"),
    OPDI_BASE("Capsule", OPDI_TYPE_OTHER, "Capsule"),
    OPDI_BASE("ConstQuantizerPtr", OPDI_TYPE_INT, "int"),
    OPDI_BASE("DeviceIndex", OPDI_TYPE_INT, "int"),
    OPDI_BASE("Dimname", OPDI_TYPE_STR, "str"),
    OPDI_BASE("Generator", OPDI_TYPE_GENERATOR, "Generator"),
    OPDI_BASE("None", OPDI_TYPE_NONE, "NoneType"),
    OPDI_BASE("NoneType", OPDI_TYPE_NONE, "NoneType"),
    OPDI_BASE("QScheme", OPDI_TYPE_OTHER, "QScheme"),
    OPDI_BASE("Quantizer", OPDI_TYPE_OTHER, "Quantizer"),
    OPDI_BASE("Storage", OPDI_TYPE_OTHER, "Storage"),
    OPDI_BASE("Stream", OPDI_TYPE_OTHER, "Stream"),
    OPDI_BASE("SymBool", OPDI_TYPE_BOOL, "SymBool"),
    OPDI_BASE("complex", OPDI_TYPE_COMPLEX, "complex"),
};

OPDI_INTERNAL const opdi_type *opdi_base_find(const opdi_token *tok) {
    const char letter = tok->text[0];
    for (size_t i = 0; i < sizeof opdi_base_types / sizeof *opdi_base_types; i++) {
        if (opdi_base_types[i].spelled[0] == letter && opdi_token_is(tok, opdi_base_types[i].spelled)) {
            return &opdi_base_types[i].type;
        }
    }
    return NULL;
}

static const opdi_type opdi_none_type = {
    OPDI_TYPE_NONE, /* size */ -1, /* nelems */ 0, "NoneType", /* elems, alias */ NULL, NULL};

OPDI_INTERNAL bool opdi_type_is_any(const opdi_type *type) {
    return type->kind == OPDI_TYPE_OTHER && strcmp(type->word, "Any") == 0;
}

/* Returns true if two types are the same.  All type variables are the same type.  The members of unions are sorted, so
   they are compared in order. */
OPDI_INTERNAL bool opdi_type_same(const opdi_type *type, const opdi_type *other) {
    if (type->kind != other->kind || type->nelems != other->nelems) { return false; }
    if (type->kind == OPDI_TYPE_OTHER || type->kind == OPDI_TYPE_CLASS) { return strcmp(type->word, other->word) == 0; }
    for (int i = 0; i < type->nelems; i++) {
        if (!opdi_type_same(type->elems[i], other->elems[i])) { return false; }
    }
    return true;
}

OPDI_INTERNAL bool opdi_union_has_numbers(const opdi_type *const *members, int count) {
    int found = 0;
    for (int i = 0; i < count; i++) {
        const int32_t kind = members[i]->kind;
        found += kind == OPDI_TYPE_INT || kind == OPDI_TYPE_FLOAT || kind == OPDI_TYPE_COMPLEX;
    }
    return found == 3;
}

/* Returns true if every value of type `inner` is a value of type `outer` (isSubtypeOf).  For lists and dictionaries,
   the types of the elements must be the same. */
OPDI_INTERNAL bool opdi_type_fits(const opdi_type *inner, const opdi_type *outer) {
    if (opdi_type_is_any(outer)) { return true; }
    if (inner->kind == OPDI_TYPE_UNION || inner->kind == OPDI_TYPE_OPTIONAL) {
        for (int i = 0; i < inner->nelems; i++) { if (!opdi_type_fits(inner->elems[i], outer)) { return false; } }
        return inner->kind == OPDI_TYPE_UNION || opdi_type_fits(&opdi_none_type, outer);
    }
    if (outer->kind == OPDI_TYPE_OPTIONAL) {
        return inner->kind == OPDI_TYPE_NONE || opdi_type_fits(inner, outer->elems[0]);
    }
    if (outer->kind == OPDI_TYPE_UNION) {
        for (int i = 0; i < outer->nelems; i++) { if (opdi_type_fits(inner, outer->elems[i])) { return true; } }
        return inner->kind == OPDI_TYPE_NUMBER && opdi_union_has_numbers(outer->elems, outer->nelems);
    }
    switch (inner->kind) {
    case OPDI_TYPE_INT: case OPDI_TYPE_FLOAT: case OPDI_TYPE_COMPLEX:
        return outer->kind == OPDI_TYPE_NUMBER || outer->kind == inner->kind;
    case OPDI_TYPE_TUPLE: case OPDI_TYPE_FUTURE: case OPDI_TYPE_RREF: case OPDI_TYPE_AWAIT:
        if (inner->kind != outer->kind || inner->nelems != outer->nelems) { return false; }
        for (int i = 0; i < inner->nelems; i++) {
            if (!opdi_type_fits(inner->elems[i], outer->elems[i])) { return false; }
        }
        return true;
    case OPDI_TYPE_CLASS:
        if (outer->kind == OPDI_TYPE_OTHER && strcmp(outer->word, "AnyClassType") == 0) { return true; }
        break;
    default: break;
    }
    return opdi_type_same(inner, outer);
}

/* The first tokens of composite types, for kinds from OPDI_TYPE_TUPLE on. */
OPDI_INTERNAL const char *const opdi_type_heads[] = {"(", "Dict(", "Union(", "Future(", "RRef(", "Await("};

/* Returns the first token of a type's text.  For a list, returns `list` or, if that is NULL, the first token of its
   element. */
static const char *opdi_type_head(const opdi_type *type, const char *list) {
    while (type->kind == OPDI_TYPE_OPTIONAL || (type->kind == OPDI_TYPE_LIST && list == NULL)) {
        type = type->elems[0];
    }
    return type->kind == OPDI_TYPE_LIST ? list : type->kind >= OPDI_TYPE_TUPLE
        ? opdi_type_heads[type->kind - OPDI_TYPE_TUPLE] : type->word;
}

/* Compares two members of a union: if `by_kind` is true, first by kind, in PyTorch's order of kinds; then by text. */
static int opdi_type_order(const opdi_type *type, const opdi_type *other, bool by_kind) {
    static const char *const kinds[] = {
        "Any", "AnyEnumType", "Tensor", "Storage", "(", "[", "Dict(", "float", "complex", "Future(", "Await(", "RRef(",
        "int", "NoneType", "str", "Generator", "Quantizer", "bool", "", "Device", "Stream", "__", "Capsule", "QScheme",
        "AnyClassType"};
    const char *heads[2];
    int rank[2];
    for (int k = 0; k < 2; k++) {
        const opdi_type *next = k == 0 ? type : other;
        heads[k] = next->kind == OPDI_TYPE_VAR ? "" : next->kind == OPDI_TYPE_CLASS ? "__" : opdi_type_head(next, "[");
        for (rank[k] = 0; rank[k] < 24 && strcmp(kinds[rank[k]], heads[k]) != 0; rank[k]++) { }
    }
    if (by_kind && rank[0] != rank[1]) { return rank[0] - rank[1]; }
    int order = strcmp(opdi_type_head(type, NULL), opdi_type_head(other, NULL));
    for (int i = 0; order == 0 && i < type->nelems && i < other->nelems; i++) {
        order = opdi_type_order(type->elems[i], other->elems[i], false);
    }
    return order;
}

/* Makes a composite type with `count` elements in the arena.  Returns NULL and sets an error if that fails. */
OPDI_INTERNAL opdi_type *opdi_type_new(opdi_parser *parser, opdi_type_kind kind, const opdi_type *const *elems,
                                       int count) {
    const opdi_type **slots;
    if (++parser->nodes > OPDI_MAX_TYPE_NODES) {
        opdi_syntax_error(&parser->lx, &parser->lx.cur, "type has too many parts");
        return NULL;
    }
    opdi_type *type = (opdi_type *)opdi_arena_alloc(parser->arena, sizeof *type + (size_t)count * sizeof *slots);
    if (type == NULL) { return NULL; }
    slots = (const opdi_type **)(type + 1);
    for (int i = 0; i < count; i++) { slots[i] = elems[i]; }
    type->kind = (int32_t)kind;
    type->size = -1;
    type->nelems = count;
    type->word = NULL;
    type->elems = slots;
    type->alias = NULL;
    return type;
}

/* Returns T? for the type T, and T? itself for T?.  Returns NULL and sets an error, at token `at`, for None?. */
OPDI_INTERNAL const opdi_type *opdi_make_optional(opdi_parser *parser, const opdi_type *type, const opdi_token *at) {
    const opdi_type *members[OPDI_MAX_UNION];
    int count = 0;
    if (type->kind == OPDI_TYPE_OPTIONAL) { return type; }
    if (type->kind == OPDI_TYPE_NONE) {
        opdi_syntax_error(&parser->lx, at, "an optional NoneType is only NoneType");
        return NULL;
    }
    for (int i = 0; type->kind == OPDI_TYPE_UNION && i < type->nelems; i++) {
        if (type->elems[i]->kind != OPDI_TYPE_NONE) { members[count++] = type->elems[i]; }
    }
    if (count > 0 && count < type->nelems) {
        opdi_type *rest = opdi_type_new(parser, OPDI_TYPE_UNION, members, count);
        if (rest == NULL) { return NULL; }
        rest->alias = type->alias;
        type = rest;
    }
    return opdi_type_new(parser, OPDI_TYPE_OPTIONAL, &type, 1);
}

/* Adds `type`, or its members if it is a union, to the `count` sorted members of a union.  Removes members that `type`
   includes; does nothing if a member includes `type`.  `at` is the token for errors.  Returns the new number of
   members, or -1 and sets an error. */
OPDI_INTERNAL int opdi_union_add(opdi_parser *parser, const opdi_type **members, int count, const opdi_type *type,
                          const opdi_token *at) {
    static const char *const numbers[] = {"int", "float", "complex"};
    int i, k = 0;
    if (type->kind == OPDI_TYPE_UNION || type->kind == OPDI_TYPE_OPTIONAL) {
        for (i = 0; i < type->nelems && count >= 0; i++) {
            count = opdi_union_add(parser, members, count, type->elems[i], at);
        }
        return count < 0 || type->kind == OPDI_TYPE_UNION ? count : opdi_union_add(parser, members, count,
            &opdi_none_type, at);
    }
    for (i = 0; i < 3 && type->kind == OPDI_TYPE_NUMBER; i++) {
        opdi_token word;
        word.text = numbers[i];
        word.length = (int)strlen(numbers[i]);
        if ((count = opdi_union_add(parser, members, count, opdi_base_find(&word), at)) < 0) { return count; }
    }
    if (type->kind == OPDI_TYPE_NUMBER) { return count; }
    for (i = 0; i < count; i++) {
        if (opdi_type_fits(type, members[i]) && (type->kind != OPDI_TYPE_NONE || !opdi_type_is_any(members[i]))) {
            return count;
        }
        if (!opdi_type_fits(members[i], type) || members[i]->kind == OPDI_TYPE_NONE) { members[k++] = members[i]; }
    }
    if (k == OPDI_MAX_UNION) { return opdi_syntax_error(&parser->lx, at, "too many types in a Union"); }
    for (i = k; i > 0 && opdi_type_order(members[i - 1], type, true) > 0; i--) { members[i] = members[i - 1]; }
    members[i] = type;
    return k + 1;
}

OPDI_INTERNAL const opdi_type *opdi_strip_optional(const opdi_type *type) {
    return type->kind == OPDI_TYPE_OPTIONAL ? type->elems[0] : type;
}

/* Returns true for types that take every value: "Any" and type variables.  A tensor given for such a type takes no part
   in dispatch. */
OPDI_INTERNAL bool opdi_takes_all(const opdi_type *type) {
    return opdi_type_is_any(type) || type->kind == OPDI_TYPE_VAR;
}

/* Returns a bit for each opd_tag whose values need no conversion for an argument of this type. */
OPDI_INTERNAL uint16_t opdi_accepts(const opdi_type *type) {
    const opdi_type *plain = opdi_strip_optional(type);
    const opdi_type *element = plain->kind == OPDI_TYPE_LIST ? plain->elems[0] : NULL;
    unsigned none = type->kind == OPDI_TYPE_OPTIONAL ? 1u << OPD_TAG_NONE : 0,
        number = 1u << OPD_TAG_INT | 1u << OPD_TAG_FLOAT;
    if (element && opdi_strip_optional(element)->kind == OPDI_TYPE_TENSOR) { element = opdi_strip_optional(element); }
    switch (element ? element->kind : plain->kind) {
    case OPDI_TYPE_TENSOR: return (uint16_t)(none | 1u << (element ? OPD_TAG_TENSORS : OPD_TAG_TENSOR));
    case OPDI_TYPE_INT: return (uint16_t)(none | 1u << (element ? OPD_TAG_INTS : OPD_TAG_INT));
    case OPDI_TYPE_FLOAT: return (uint16_t)(none | 1u << (element ? OPD_TAG_FLOATS : OPD_TAG_FLOAT));
    case OPDI_TYPE_BOOL: return (uint16_t)(none | 1u << (element ? OPD_TAG_BOOLS : OPD_TAG_BOOL));
    case OPDI_TYPE_NUMBER:
        return (uint16_t)(none | (element ? 0 : number | 1u << OPD_TAG_BOOL | 1u << OPD_TAG_COMPLEX));
    /* no bit for lists of strings, whose elements must be checked */
    case OPDI_TYPE_STR: return (uint16_t)(none | (element ? 0 : 1u << OPD_TAG_STR));
    case OPDI_TYPE_DEVICE: return (uint16_t)(none | (element ? 0 : 1u << OPD_TAG_DEVICE));
    case OPDI_TYPE_GENERATOR: return (uint16_t)(1u << OPD_TAG_NONE | 1u << OPD_TAG_OBJECT);
    default: return (uint16_t)none;
    }
}
