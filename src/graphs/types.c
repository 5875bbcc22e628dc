#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>cells        types of graph values, and cells: values other than tensors and numbers, such as strings and lists
//
//  A static type belongs to a space, which graphs, classes and objects share; equal types of a space have the same
//  address.  A cell is a string, complex number, list, dict, tuple or object.  Cells are reference-counted.  This
//  section depends on tensors and scopes, but not on graphs.
//----------------------------------------------------------------------------------------------------------------------

//== types =============================================================================================================

#define OPDI_GTYPE_SIMPLE(kind) {kind, 0, 0, 0, NULL, NULL, NULL, NULL}
static const opdi_gtype opdi_gtypes[OPDI_GTYPE_NSIMPLE] = {
    OPDI_GTYPE_SIMPLE(OPDI_GTYPE_ANY), OPDI_GTYPE_SIMPLE(OPDI_GTYPE_NONE), OPDI_GTYPE_SIMPLE(OPDI_GTYPE_TENSOR),
    OPDI_GTYPE_SIMPLE(OPDI_GTYPE_INT), OPDI_GTYPE_SIMPLE(OPDI_GTYPE_FLOAT), OPDI_GTYPE_SIMPLE(OPDI_GTYPE_BOOL),
    OPDI_GTYPE_SIMPLE(OPDI_GTYPE_COMPLEX), OPDI_GTYPE_SIMPLE(OPDI_GTYPE_NUMBER), OPDI_GTYPE_SIMPLE(OPDI_GTYPE_STR),
    OPDI_GTYPE_SIMPLE(OPDI_GTYPE_DEVICE), OPDI_GTYPE_SIMPLE(OPDI_GTYPE_GENERATOR), OPDI_GTYPE_SIMPLE(OPDI_GTYPE_STREAM),
    OPDI_GTYPE_SIMPLE(OPDI_GTYPE_ANYLIST), OPDI_GTYPE_SIMPLE(OPDI_GTYPE_ANYTUPLE),
    OPDI_GTYPE_SIMPLE(OPDI_GTYPE_ANYCLASS),
    OPDI_GTYPE_SIMPLE(OPDI_GTYPE_ANYENUM), OPDI_GTYPE_SIMPLE(OPDI_GTYPE_FUNCTION),
    OPDI_GTYPE_SIMPLE(OPDI_GTYPE_STORAGE),
    OPDI_GTYPE_SIMPLE(OPDI_GTYPE_QSCHEME), OPDI_GTYPE_SIMPLE(OPDI_GTYPE_CAPSULE)};
/* The names of simple types in graph texts and in annotations; the index is the kind. */
static const char *const opdi_gtype_words[OPDI_GTYPE_NSIMPLE] = {
    "Any", "NoneType", "Tensor", "int", "float", "bool", "complex", "Scalar", "str", "Device", "Generator", "Stream",
    "list", "tuple", "AnyClassType", "AnyEnumType", "Function", "Storage", "QScheme", "Capsule"};

/* Returns the simple type (a type without parts) of kind `kind`. */
OPDI_INTERNAL const opdi_gtype *opdi_gtype_simple(int kind) { return &opdi_gtypes[kind]; }

/* Makes a space of types.  Returns the only reference, which the caller owns, or NULL if memory runs out. */
OPDI_INTERNAL opdi_gspace *opdi_gspace_new(void) {
    opdi_gspace *space = (opdi_gspace *)opdi_alloc(sizeof *space);
    if (!space) { return NULL; }
    memset(space, 0, sizeof *space);
    space->refs = 1;
    return space;
}
OPDI_INTERNAL opdi_gspace *opdi_gspace_keep(opdi_gspace *space) {
    if (space) { opdi_ref_up(&space->refs); }
    return space;
}
OPDI_INTERNAL void opdi_gspace_drop(opdi_gspace *space) {
    if (!space || opdi_ref_down(&space->refs) != 0) { return; }
    if (space->end) { space->end(space); }
    opdi_arena_free(&space->arena);
    opdi_free(space, sizeof *space);
}

static size_t opdi_gtype_hash(int kind, const opdi_gtype *const *parts, int32_t count, const opdi_gclass *klass) {
    uint64_t hash = ((uint64_t)kind * 31 + (uint64_t)count) ^ (uint64_t)(uintptr_t)klass;
    for (int32_t i = -1; i < count; i++) {
        hash = (hash ^ (i < 0 ? 0 : (uint64_t)(uintptr_t)parts[i] >> 4)) * 0x9e3779b97f4a7c15u;
    }
    return (size_t)(hash >> 32 ^ hash);
}
/* Makes a larger hash table if there are as many types as chains.  Returns 0, or -1 if memory runs out. */
static int opdi_gspace_grow(opdi_gspace *space) {
    if (space->ntypes < space->nchains) { return 0; }
    const size_t more = space->nchains ? 4 * space->nchains : 16;
    opdi_gtype **const chains = (opdi_gtype **)opdi_arena_alloc(&space->arena, more * sizeof *chains);
    if (!chains) { return -1; }
    memset(chains, 0, more * sizeof *chains);
    for (size_t i = 0; i < space->nchains; i++) {
        for (opdi_gtype *type = space->chains[i], *next; type; type = next) {
            const size_t hash = opdi_gtype_hash(type->kind, type->parts, type->nparts, type->klass);
            opdi_gtype **const chain = &chains[hash % more];
            next = type->next;
            type->next = *chain;
            *chain = type;
        }
    }
    space->chains = chains;
    space->nchains = more;
    return 0;
}
/* Sets the members `size` and `depth` of a type.  A few statements may make types whose text would be longer than any
   memory: (a, a) of (b, b) of (c, c) ...  Returns 0, or -1 and sets an error if the type is so large. */
static int opdi_gtype_measure(opdi_gtype *type) {
    const int32_t most = 4096, deepest = 256;
    type->size = type->nparts;
    type->depth = 0;
    for (int32_t i = 0; i < type->nparts && type->size <= most; i++) {
        type->size += type->parts[i]->size;
        type->depth = OPDI_MAX(type->depth, type->parts[i]->depth + 1);
    }
    return type->size <= most && type->depth <= deepest ? 0
        : opd_fail(OPD_ERROR_SCHEMA, "a type has more than %d parts or is nested more than %d deep: use a class",
                   (int)most, (int)deepest);
}
/* Returns the type of the space that has this kind and these parts; makes it if it does not exist.  `klass` is the
   class of a class type or named tuple, else NULL; `word` is the name of a type variable, else NULL.  Returns NULL and
   sets an error if memory runs out or the type is too large. */
OPDI_INTERNAL const opdi_gtype *opdi_gtype_make(opdi_gspace *space, int kind, const opdi_gtype *const *parts,
                                                int32_t count, opdi_gclass *klass, const char *word) {
    if (opdi_gspace_grow(space)) { return NULL; }
    opdi_gtype **const chain = &space->chains[opdi_gtype_hash(kind, parts, count, klass) % space->nchains];
    for (const opdi_gtype *type = *chain; type; type = type->next) {
        if (type->kind != kind || type->nparts != count || type->klass != klass ||
            (word && strcmp(type->word, word) != 0)) { continue; }
        if (!count || memcmp(type->parts, parts, (size_t)count * sizeof *parts) == 0) { return type; }
    }
    opdi_gtype *type = (opdi_gtype *)opdi_arena_alloc(&space->arena, sizeof *type + (size_t)count * sizeof *parts);
    if (!type) { return NULL; }
    if (count) { memcpy(type + 1, parts, (size_t)count * sizeof *parts); }
    type->kind = kind;
    type->nparts = count;
    type->parts = (const opdi_gtype *const *)(const void *)(type + 1);
    if (opdi_gtype_measure(type)) { return NULL; }
    type->klass = klass;
    type->word = NULL;
    if (word && !(type->word = opdi_arena_copy(&space->arena, word, strlen(word)))) { return NULL; }
    type->next = *chain;
    *chain = type;
    space->ntypes++;
    return type;
}
/* Returns the list type with the element type `element`.  Returns NULL if `element` is NULL or memory runs out. */
OPDI_INTERNAL const opdi_gtype *opdi_gtype_list(opdi_gspace *space, const opdi_gtype *element) {
    return element ? opdi_gtype_make(space, OPDI_GTYPE_LIST, &element, 1, NULL, NULL) : NULL;
}
OPDI_INTERNAL const opdi_gtype *opdi_gtype_dict(opdi_gspace *space, const opdi_gtype *key, const opdi_gtype *value) {
    const opdi_gtype *parts[2] = {NULL, NULL};
    parts[0] = key;
    parts[1] = value;
    return key && value ? opdi_gtype_make(space, OPDI_GTYPE_DICT, parts, 2, NULL, NULL) : NULL;
}
OPDI_INTERNAL const opdi_gtype *opdi_gtype_tuple(opdi_gspace *space, const opdi_gtype *const *parts, int32_t count) {
    return opdi_gtype_make(space, OPDI_GTYPE_TUPLE, parts, count, NULL, NULL);
}
OPDI_INTERNAL const opdi_gtype *opdi_gtype_future(opdi_gspace *space, const opdi_gtype *inner) {
    return inner ? opdi_gtype_make(space, OPDI_GTYPE_FUTURE, &inner, 1, NULL, NULL) : NULL;
}
/* Returns the type Optional[inner].  If inner is Any, None, an optional type, or NULL, returns inner itself. */
OPDI_INTERNAL const opdi_gtype *opdi_gtype_optional(opdi_gspace *space, const opdi_gtype *inner) {
    if (!inner || inner->kind == OPDI_GTYPE_OPTIONAL || inner->kind == OPDI_GTYPE_NONE ||
        inner->kind == OPDI_GTYPE_ANY) {
        return inner;
    }
    return opdi_gtype_make(space, OPDI_GTYPE_OPTIONAL, &inner, 1, NULL, NULL);
}
/* Returns the type without Optional: T for T?, otherwise the type itself. */
OPDI_INTERNAL const opdi_gtype *opdi_gtype_strip(const opdi_gtype *type) {
    return type->kind == OPDI_GTYPE_OPTIONAL ? type->parts[0] : type;
}

/* Returns the class named `name` in the space, or NULL if there is none. */
OPDI_INTERNAL opdi_gclass *opdi_gclass_find(const opdi_gspace *space, const char *name) {
    return (opdi_gclass *)opdi_index_named(&space->classes, name);
}
/* Makes a class without attributes.  Also makes its type, except if the class is a named tuple (see
   opdi_gclass_fields).  Returns the class, or NULL if memory runs out. */
OPDI_INTERNAL opdi_gclass *opdi_gclass_new(opdi_gspace *space, const char *name, opdi_gclass_kind kind) {
    opdi_gclass *klass = (opdi_gclass *)opdi_arena_alloc(&space->arena, sizeof *klass);
    if (!klass) { return NULL; }
    memset(klass, 0, sizeof *klass);
    klass->space = space;
    klass->kind = kind;
    if (!(klass->name = opdi_arena_copy(&space->arena, name, strlen(name)))) { return NULL; }
    if (kind != OPDI_CLASS_NAMEDTUPLE &&
        !(klass->type = opdi_gtype_make(space, OPDI_GTYPE_CLASS, NULL, 0, klass, NULL))) { return NULL; }
    return opdi_index_set(&space->classes, &space->arena, klass->name, strlen(name), klass) ? NULL : klass;
}
/* Returns the slot of the attribute named `name`, or -1 if the class has none. */
OPDI_INTERNAL int32_t opdi_gclass_slot(const opdi_gclass *klass, const char *name) {
    return (int32_t)(intptr_t)opdi_index_named(&klass->slots, name) - 1;
}
/* Adds an attribute to a class.  Returns its slot, or -1 if memory runs out. */
OPDI_INTERNAL int32_t opdi_gclass_add(opdi_gclass *klass, const char *name, const opdi_gtype *type, int32_t flags) {
    if (klass->nattributes == klass->capacity) {
        const int32_t capacity = OPDI_MAX(8, 2 * klass->capacity);
        opdi_gattribute *more =
            (opdi_gattribute *)opdi_arena_alloc(&klass->space->arena, (size_t)capacity * sizeof *more);
        if (!more) { return -1; }
        if (klass->nattributes) { memcpy(more, klass->attributes, (size_t)klass->nattributes * sizeof *more); }
        klass->attributes = more;
        klass->capacity = capacity;
    }
    const char *copy = opdi_arena_copy(&klass->space->arena, name, strlen(name));
    if (!copy || (opdi_gclass_slot(klass, name) < 0 &&
                  opdi_index_set(&klass->slots, &klass->space->arena, copy, strlen(copy),
                                 (void *)(intptr_t)(klass->nattributes + 1)))) { return -1; }
    klass->attributes[klass->nattributes].name = copy;
    klass->attributes[klass->nattributes].type = type;
    klass->attributes[klass->nattributes].flags = flags;
    return klass->nattributes++;
}
/* Makes the type of a named tuple, after all its fields were added as attributes.  Returns the type, or NULL if memory
   runs out. */
OPDI_INTERNAL const opdi_gtype *opdi_gclass_fields(opdi_gclass *klass) {
    const opdi_gtype **parts =
        (const opdi_gtype **)opdi_arena_alloc(&klass->space->arena, ((size_t)klass->nattributes + 1) * sizeof *parts);
    if (!parts) { return NULL; }
    for (int32_t i = 0; i < klass->nattributes; i++) { parts[i] = klass->attributes[i].type; }
    return klass->type = opdi_gtype_make(klass->space, OPDI_GTYPE_TUPLE, parts, klass->nattributes, klass, NULL);
}

/* Returns true if two types are the same, even if they belong to different spaces. */
OPDI_INTERNAL bool opdi_gtype_same(const opdi_gtype *type, const opdi_gtype *other) {
    if (type == other) { return true; }
    if (type->kind != other->kind || type->nparts != other->nparts || !type->klass != !other->klass) { return false; }
    if (type->klass && strcmp(type->klass->name, other->klass->name) != 0) { return false; }
    if (type->kind == OPDI_GTYPE_VAR) { return strcmp(type->word, other->word) == 0; }
    for (int32_t i = 0; i < type->nparts; i++) {
        if (!opdi_gtype_same(type->parts[i], other->parts[i])) { return false; }
    }
    return type->kind > OPDI_GTYPE_NSIMPLE || type->kind == other->kind;
}
/* Returns true if every value of type `inner` is also of type `outer` (isSubtypeOf in PyTorch). */
OPDI_INTERNAL bool opdi_gtype_fits(const opdi_gtype *inner, const opdi_gtype *outer) {
    if (inner == outer || outer->kind == OPDI_GTYPE_ANY) { return true; }
    if (inner->kind == OPDI_GTYPE_UNION || inner->kind == OPDI_GTYPE_OPTIONAL) {
        for (int32_t i = 0; i < inner->nparts; i++) {
            if (!opdi_gtype_fits(inner->parts[i], outer)) { return false; }
        }
        return inner->kind == OPDI_GTYPE_UNION || opdi_gtype_fits(opdi_gtype_simple(OPDI_GTYPE_NONE), outer);
    }
    if (outer->kind == OPDI_GTYPE_OPTIONAL) {
        return inner->kind == OPDI_GTYPE_NONE || opdi_gtype_fits(inner, outer->parts[0]);
    }
    for (int32_t i = 0; outer->kind == OPDI_GTYPE_UNION && i < outer->nparts; i++) {
        if (opdi_gtype_fits(inner, outer->parts[i])) { return true; }
    }
    switch (outer->kind) {
    case OPDI_GTYPE_NUMBER:
        return inner->kind == OPDI_GTYPE_INT || inner->kind == OPDI_GTYPE_FLOAT || inner->kind == OPDI_GTYPE_COMPLEX ||
            inner->kind == OPDI_GTYPE_NUMBER;
    case OPDI_GTYPE_ANYLIST: return inner->kind == OPDI_GTYPE_LIST;
    case OPDI_GTYPE_ANYTUPLE: return inner->kind == OPDI_GTYPE_TUPLE;
    case OPDI_GTYPE_ANYCLASS: return inner->kind == OPDI_GTYPE_CLASS;
    case OPDI_GTYPE_ANYENUM: return inner->klass && inner->klass->kind == OPDI_CLASS_ENUM;
    case OPDI_GTYPE_TUPLE: case OPDI_GTYPE_FUTURE:
        if (inner->kind != outer->kind || inner->nparts != outer->nparts) { return false; }
        if (outer->klass && (!inner->klass || strcmp(inner->klass->name, outer->klass->name) != 0)) { return false; }
        for (int32_t i = 0; i < inner->nparts; i++) {
            if (!opdi_gtype_fits(inner->parts[i], outer->parts[i])) { return false; }
        }
        return true;
    default: return opdi_gtype_same(inner, outer);
    }
}

/* Returns a type that contains all values of `type` and `other`: one of the two, or a type made of them, such as an
   optional type (unifyTypes in PyTorch).  Returns NULL if there is none.  Returns NULL and sets an error if memory runs
   out. */
OPDI_INTERNAL const opdi_gtype *opdi_gtype_unify(opdi_gspace *space, const opdi_gtype *type, const opdi_gtype *other) {
    if (opdi_gtype_fits(type, other)) { return other; }
    if (opdi_gtype_fits(other, type)) { return type; }
    if (type->kind == OPDI_GTYPE_NONE) { return opdi_gtype_optional(space, other); }
    if (other->kind == OPDI_GTYPE_NONE) { return opdi_gtype_optional(space, type); }
    if (type->kind == OPDI_GTYPE_OPTIONAL || other->kind == OPDI_GTYPE_OPTIONAL) {
        const opdi_gtype *const first = opdi_gtype_strip(type), *const second = opdi_gtype_strip(other);
        const opdi_gtype *both = opdi_gtype_unify(space, first, second);
        return both ? opdi_gtype_optional(space, both) : NULL;
    }
    if (type->kind == OPDI_GTYPE_TUPLE && other->kind == OPDI_GTYPE_TUPLE && type->nparts == other->nparts &&
        type->nparts <= 64) {
        const opdi_gtype *parts[64];
        for (int32_t i = 0; i < type->nparts; i++) {
            if (!(parts[i] = opdi_gtype_unify(space, type->parts[i], other->parts[i]))) { return NULL; }
        }
        return opdi_gtype_tuple(space, parts, type->nparts);
    }
    return NULL;
}

OPDI_INTERNAL void opdi_gtype_print(opdi_text *text, const opdi_gtype *type, bool annotation);
static void opdi_gtype_print_parts(opdi_text *text, const opdi_gtype *type, const char *open, const char *close,
                                   bool annotation) {
    opdi_text_add(text, "%s", open);
    for (int32_t i = 0; i < type->nparts; i++) {
        opdi_text_add(text, "%s", i ? ", " : "");
        if (type->klass && !annotation) { opdi_text_add(text, "%s : ", type->klass->attributes[i].name); }
        opdi_gtype_print(text, type->parts[i], annotation);
    }
    opdi_text_add(text, "%s", close);
}
/* Writes a type as graphs print it ("int[]", "Tensor?", "Dict(str, Tensor)"); if `annotation` is true, as an annotation
   ("List[int]", "Optional[Tensor]"). */
OPDI_INTERNAL void opdi_gtype_print(opdi_text *text, const opdi_gtype *type, bool annotation) {
    switch (type->kind) {
    case OPDI_GTYPE_LIST: case OPDI_GTYPE_OPTIONAL:
        if (annotation) {
            opdi_gtype_print_parts(text, type, type->kind == OPDI_GTYPE_LIST ? "List[" : "Optional[", "]", true);
            return;
        }
        opdi_gtype_print(text, type->parts[0], false);
        opdi_text_add(text, "%s", type->kind == OPDI_GTYPE_LIST ? "[]" : "?");
        return;
    case OPDI_GTYPE_DICT:
        opdi_gtype_print_parts(text, type, annotation ? "Dict[" : "Dict(", annotation ? "]" : ")", annotation);
        return;
    case OPDI_GTYPE_TUPLE:
        if (type->klass && annotation) { opdi_text_add(text, "%s", type->klass->name); }
        else if (annotation && type->nparts == 0) { opdi_text_add(text, "Tuple[()]"); }
        else {
            opdi_gtype_print_parts(text, type, annotation ? "Tuple[" : type->klass ? "NamedTuple(" : "(",
                                   annotation ? "]" : ")", annotation);
        }
        return;
    case OPDI_GTYPE_UNION: case OPDI_GTYPE_FUTURE:
        opdi_text_add(text, "%s", type->kind == OPDI_GTYPE_UNION ? "Union" : "Future");
        opdi_gtype_print_parts(text, type, annotation ? "[" : "(", annotation ? "]" : ")", annotation);
        return;
    case OPDI_GTYPE_CLASS: {
        const bool plain = annotation || type->klass->kind != OPDI_CLASS_ENUM;
        opdi_text_add(text, plain ? "%s" : "Enum<%s>", type->klass->name);
        return;
    }
    case OPDI_GTYPE_VAR: opdi_text_add(text, "%s", type->word); return;
    case OPDI_GTYPE_NUMBER: opdi_text_add(text, annotation ? "number" : "Scalar"); return;
    case OPDI_GTYPE_DEVICE: opdi_text_add(text, annotation ? "Device" : "Device"); return;
    default: opdi_text_add(text, "%s", opdi_gtype_words[type->kind]); return;
    }
}

/* Converts `type`, a type in a schema, to a type of the space.  Returns the new type, or NULL if memory runs out. */
OPDI_INTERNAL const opdi_gtype *opdi_gtype_from(opdi_gspace *space, const opdi_type *type) {
    const opdi_gtype *parts[64];
    switch (type->kind) {
    case OPDI_TYPE_TENSOR: return opdi_gtype_simple(OPDI_GTYPE_TENSOR);
    case OPDI_TYPE_INT: return opdi_gtype_simple(OPDI_GTYPE_INT);
    case OPDI_TYPE_FLOAT: return opdi_gtype_simple(OPDI_GTYPE_FLOAT);
    case OPDI_TYPE_BOOL: return opdi_gtype_simple(OPDI_GTYPE_BOOL);
    case OPDI_TYPE_COMPLEX: return opdi_gtype_simple(OPDI_GTYPE_COMPLEX);
    case OPDI_TYPE_STR: return opdi_gtype_simple(OPDI_GTYPE_STR);
    case OPDI_TYPE_NUMBER: return opdi_gtype_simple(OPDI_GTYPE_NUMBER);
    case OPDI_TYPE_DEVICE: return opdi_gtype_simple(OPDI_GTYPE_DEVICE);
    case OPDI_TYPE_GENERATOR: return opdi_gtype_simple(OPDI_GTYPE_GENERATOR);
    case OPDI_TYPE_NONE: return opdi_gtype_simple(OPDI_GTYPE_NONE);
    case OPDI_TYPE_VAR: return opdi_gtype_make(space, OPDI_GTYPE_VAR, NULL, 0, NULL, type->word);
    case OPDI_TYPE_OTHER:
        for (int kind = 0; kind < OPDI_GTYPE_NSIMPLE; kind++) {
            if (strcmp(type->word, opdi_gtype_words[kind]) == 0) { return opdi_gtype_simple(kind); }
        }
        return opdi_gtype_simple(OPDI_GTYPE_ANY);
    case OPDI_TYPE_CLASS: {
        opdi_gclass *klass = opdi_gclass_find(space, type->word);
        if (!klass && !(klass = opdi_gclass_new(space, type->word, OPDI_CLASS_OBJECT))) { return NULL; }
        return klass->type;
    }
    default: break;
    }
    for (int32_t i = 0; i < type->nelems && i < 64; i++) {
        if (!(parts[i] = opdi_gtype_from(space, type->elems[i]))) { return NULL; }
    }
    switch (type->kind) {
    case OPDI_TYPE_LIST: return opdi_gtype_list(space, parts[0]);
    case OPDI_TYPE_OPTIONAL: return opdi_gtype_optional(space, parts[0]);
    case OPDI_TYPE_DICT: return opdi_gtype_dict(space, parts[0], parts[1]);
    case OPDI_TYPE_TUPLE: return opdi_gtype_tuple(space, parts, OPDI_MIN(type->nelems, 64));
    case OPDI_TYPE_UNION:
        return opdi_gtype_make(space, OPDI_GTYPE_UNION, parts, OPDI_MIN(type->nelems, 32), NULL, NULL);
    default: return opdi_gtype_make(space, OPDI_GTYPE_FUTURE, parts, 1, NULL, NULL);
    }
}

static const opdi_gtype *opdi_gtype_read(opdi_gspace *space, const char **at, int depth);
static void opdi_gtype_blanks(const char **at) { while (**at == ' ' || **at == '\n') { ++*at; } }
/* Reads types that are separated by commas, up to the character `close`, into *parts.  The array has room for
   OPDI_GTYPE_PARTS types; if there are more, a larger array in the space's memory replaces it.  If `klass` is not NULL,
   the name of a field precedes each type; adds the field to `klass` as an attribute.  Returns the number of types, or
   -1 if the text is not a list of types or memory runs out. */
OPDI_INTERNAL int32_t opdi_gtype_read_parts(opdi_gspace *space, const char **at, char close, const opdi_gtype ***parts,
                                            opdi_gclass *klass, int depth) {
    int32_t count = 0, cap = OPDI_GTYPE_PARTS;
    for (opdi_gtype_blanks(at); **at != close; opdi_gtype_blanks(at)) {
        char name[128] = "";
        if (count && *(*at)++ != ',') { return -1; }
        opdi_gtype_blanks(at);
        if (count && **at == close) { break; }
        if (klass) {
            const size_t length = strcspn(*at, " :,)");
            if (length == 0 || length >= sizeof name) { return -1; }
            memcpy(name, *at, length);
            *at += length;
            opdi_gtype_blanks(at);
            if (**at != ':') { return -1; }
            ++*at;
        }
        if (count == cap) {
            const opdi_gtype **const more =
                (const opdi_gtype **)opdi_arena_alloc(&space->arena, 2 * (size_t)cap * sizeof *more);
            if (!more) { return -1; }
            memcpy(more, *parts, (size_t)cap * sizeof *more);
            *parts = more;
            cap *= 2;
        }
        if (!((*parts)[count] = opdi_gtype_read(space, at, depth + 1))) { return -1; }
        if (klass && opdi_gclass_add(klass, name, (*parts)[count], 0) < 0) { return -1; }
        count++;
    }
    ++*at;
    return count;
}
/* Reads a type at *at, without a suffix such as "[]" or "?".  Returns the type, or NULL if the text is not a type or
   memory runs out. */
static const opdi_gtype *opdi_gtype_read_first(opdi_gspace *space, const char **at, int depth) {
    static const struct { const char *word; int kind; char close; } heads[] = {
        {"(", OPDI_GTYPE_TUPLE, ')'}, {"Tuple[", OPDI_GTYPE_TUPLE, ']'}, {"List[", OPDI_GTYPE_LIST, ']'},
        {"Optional[", OPDI_GTYPE_OPTIONAL, ']'}, {"Dict(", OPDI_GTYPE_DICT, ')'}, {"Dict[", OPDI_GTYPE_DICT, ']'},
        {"Union(", OPDI_GTYPE_UNION, ')'}, {"Union[", OPDI_GTYPE_UNION, ']'}, {"Future(", OPDI_GTYPE_FUTURE, ')'},
        {"Future[", OPDI_GTYPE_FUTURE, ']'}, {"NamedTuple(", OPDI_GTYPE_CLASS, ')'}};
    const opdi_gtype *room[OPDI_GTYPE_PARTS], **parts = room;
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        if (strncmp(*at, heads[i].word, strlen(heads[i].word)) != 0) { continue; }
        const bool named = heads[i].kind == OPDI_GTYPE_CLASS;
        opdi_gclass *klass = named ? opdi_gclass_new(space, "NamedTuple", OPDI_CLASS_NAMEDTUPLE) : NULL;
        *at += strlen(heads[i].word);
        if (named && !klass) { return NULL; }
        const int32_t count = opdi_gtype_read_parts(space, at, heads[i].close, &parts, klass, depth);
        if (count < 0 || (count != 1 && (heads[i].kind == OPDI_GTYPE_LIST || heads[i].kind == OPDI_GTYPE_OPTIONAL ||
                                         heads[i].kind == OPDI_GTYPE_FUTURE)) ||
            (heads[i].kind == OPDI_GTYPE_DICT && count != 2)) { return NULL; }
        return named ? opdi_gclass_fields(klass)
            : heads[i].kind == OPDI_GTYPE_OPTIONAL ? opdi_gtype_optional(space, parts[0])
            : opdi_gtype_make(space, heads[i].kind, parts, count, NULL, NULL);
    }
    const size_t length = strspn(*at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
    char word[512];
    if (length == 0 || length >= sizeof word) { return NULL; }
    memcpy(word, *at, length);
    word[length] = 0;
    *at += length;
    if (**at == '(' && !strchr(word, '.')) {      /* the type of a traced tensor, such as "Float(2, strides=[1],
                                                     device=cpu)" */
        int open = 0;                             /* expressions of open sizes may contain parentheses */
        do {
            open += (**at == '(') - (**at == ')');
            ++*at;
        } while (open && **at && **at != '\n');
        return open ? NULL : opdi_gtype_simple(OPDI_GTYPE_TENSOR);
    }
    for (int kind = 0; kind < OPDI_GTYPE_NSIMPLE; kind++) {
        if (strcmp(word, opdi_gtype_words[kind]) == 0) { return opdi_gtype_simple(kind); }
    }
    if (strcmp(word, "number") == 0) { return opdi_gtype_simple(OPDI_GTYPE_NUMBER); }
    if (strcmp(word, "None") == 0) { return opdi_gtype_simple(OPDI_GTYPE_NONE); }
    if (!strchr(word, '.')) { return NULL; }
    opdi_gclass *klass = opdi_gclass_find(space, word);
    if (!klass && (klass = opdi_gclass_new(space, word, OPDI_CLASS_OBJECT)) != NULL) { klass->open = true; }
    return klass ? klass->type : NULL;
}
static const opdi_gtype *opdi_gtype_read(opdi_gspace *space, const char **at, int depth) {
    if (depth > OPDI_MAX_GTYPE_DEPTH) { return NULL; }
    opdi_gtype_blanks(at);
    const opdi_gtype *type = opdi_gtype_read_first(space, at, depth);
    for (; type; depth++) {
        if (depth > OPDI_MAX_GTYPE_DEPTH) { return NULL; }
        if (**at == '?') {
            type = opdi_gtype_optional(space, type);
            ++*at;
        } else if (strncmp(*at, "[]", 2) == 0) {
            type = opdi_gtype_list(space, type);
            *at += 2;
        } else { break; }
    }
    return type;
}
/* Reads a type at *at, in either spelling (see opdi_gtype_print), and advances *at.  An unknown qualified name becomes
   a class whose definition is not yet known.  Returns the type, or NULL if there is none; sets an error only if memory
   runs out. */
OPD_UNUSED OPDI_INTERNAL const opdi_gtype *opdi_gtype_parse(opdi_gspace *space, const char **at) {
    return opdi_gtype_read(space, at, 0);
}
