#include "graphs.h"

//== cells =============================================================================================================

OPDI_INTERNAL opdi_cell *opdi_cell_of(const opd_value *value) {
    return value->tag == OPD_TAG_CELL ? (opdi_cell *)value->u.object : NULL;
}
/* Returns the kind of a value in words, for messages. */
OPDI_INTERNAL const char *opdi_value_kind_name(const opd_value *value) {
    static const char *const names[] = {"nothing", "str", "complex", "List", "Dict", "Tuple", "an object"};
    const opdi_cell *const cell = opdi_cell_of(value);
    return !cell ? opdi_value_kind(value) : cell->kind <= OPD_CELL_OBJECT ? names[cell->kind] : "?";
}
OPDI_INTERNAL opd_value opdi_cell_value(opdi_cell *cell) {
    opd_value value = opd_value_none();
    if (cell) {
        value.tag = OPD_TAG_CELL;
        value.u.object = cell;
    }
    return value;
}
static size_t opdi_cell_element(const opdi_cell *cell) {
    return cell->kind == OPD_CELL_STR || cell->tag == OPD_TAG_BOOLS ? 1 : cell->kind == OPD_CELL_DICT
        ? 2 * sizeof(opd_value) : cell->tag == OPD_TAG_INTS || cell->tag == OPD_TAG_FLOATS ||
        cell->kind == OPD_CELL_COMPLEX ? 8 : cell->tag == OPD_TAG_TENSORS ? sizeof(opd_tensor *) : sizeof(opd_value);
}
static bool opdi_cell_inside(const opdi_cell *cell) {
    return cell->kind != OPD_CELL_LIST && cell->kind != OPD_CELL_DICT;
}
/* Makes a cell with one reference.  If the cell has a fixed size, as a string or tuple does, its `cap` elements follow
   the struct.  Returns the cell, or NULL and sets an error. */
OPDI_INTERNAL opdi_cell *opdi_cell_new(opd_cell_kind kind, int32_t tag, int64_t cap) {
    opdi_cell head;
    memset(&head, 0, sizeof head);
    head.refs = 1;
    head.kind = (uint8_t)kind;
    head.tag = (uint8_t)tag;
    head.cap = cap;
    const size_t bytes = opdi_cell_inside(&head) ? (size_t)cap * opdi_cell_element(&head) : 0;
    opdi_cell *cell = cap < 0 || cap > INT32_MAX ? NULL : (opdi_cell *)opdi_alloc(sizeof *cell + bytes);
    if (!cell) {
        if (opd_ok()) { (void)opd_fail(OPD_ERROR_ARGUMENT, "a value of %lld elements is too long", (long long)cap); }
        return NULL;
    }
    *cell = head;
    if (opdi_cell_inside(cell)) {
        cell->u.data = cell + 1;
        memset(cell + 1, 0, bytes);
    } else {
        cell->cap = 0;
    }
    return cell;
}
OPDI_INTERNAL void opdi_value_drop(opd_value value);
/* Releases the contents of a cell and frees it.  Contained cells that have lost their last reference are added to the
   list `chain` of cells to free.  Returns the new head of the list. */
static opdi_cell *opdi_cell_free(opdi_cell *cell, opdi_cell *chain) {
    const bool values = cell->kind == OPD_CELL_DICT || cell->kind == OPD_CELL_TUPLE || cell->kind == OPD_CELL_OBJECT ||
        (cell->kind == OPD_CELL_LIST && cell->tag == OPD_TAG_LIST);
    const int64_t count = cell->kind == OPD_CELL_DICT ? 2 * cell->count : cell->count;
    for (int64_t i = 0; values && i < count; i++) {
        opdi_cell *inner = opdi_cell_of(&cell->u.values[i]);
        if (!inner) { opdi_value_drop(cell->u.values[i]); }
        else if (opdi_ref_down(&inner->refs) == 0) {
            inner->next = chain;
            chain = inner;
        }
    }
    for (int64_t i = 0; cell->kind == OPD_CELL_LIST && cell->tag == OPD_TAG_TENSORS && i < cell->count; i++) {
        if (cell->u.tensors[i]) { opdi_drop(cell->u.tensors[i]); }
    }
    if (cell->klass) { opdi_gspace_drop(cell->klass->space); }
    if (cell->index) { opdi_free(cell->index, (size_t)cell->index_size * sizeof *cell->index); }
    const size_t bytes = (size_t)cell->cap * opdi_cell_element(cell);
    if (!opdi_cell_inside(cell)) { opdi_free(cell->u.data, bytes); }
    opdi_free(cell, sizeof *cell + (opdi_cell_inside(cell) ? bytes : 0));
    return chain;
}
OPDI_INTERNAL void opdi_cell_drop(opdi_cell *cell) {
    if (opdi_ref_down(&cell->refs) != 0) { return; }
    for (cell->next = NULL; cell;) {              /* a loop instead of a recursion, because chains of objects may be
                                                     long */
        opdi_cell *const rest = cell->next;
        cell = opdi_cell_free(cell, rest);
    }
}
/* Releases a reference to a value, which may be a tensor or a cell. */
OPDI_INTERNAL void opdi_value_drop(opd_value value) {
    if (value.tag == OPD_TAG_TENSOR) { opdi_drop(value.u.t); }
    else if (value.tag == OPD_TAG_CELL) { opdi_cell_drop((opdi_cell *)value.u.object); }
}
OPDI_INTERNAL void opdi_values_drop(opd_value *values, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        opdi_value_drop(values[i]);
        values[i] = opd_value_none();
    }
}

/* Returns a new string of `length` bytes, copied from `text`.  If `text` is NULL, the caller writes the bytes.  On
   failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_cell *opdi_cell_text(const char *text, int64_t length) {
    opdi_cell *cell = opdi_cell_new(OPD_CELL_STR, 0, length < INT32_MAX ? length + 1 : INT64_MAX);
    if (!cell) { return NULL; }
    cell->count = length;
    if (text && length) { memcpy(cell->u.text, text, (size_t)length); }
    return cell;
}
/* Makes space for `count` elements in a list or dict.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_cell_reserve(opdi_cell *cell, int64_t count) {
    const size_t size = opdi_cell_element(cell);
    if (count <= cell->cap) { return 0; }
    if (count > INT32_MAX) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a list of %lld elements is too long", (long long)count);
    }
    const int64_t cap = OPDI_MAX(count, OPDI_MAX(4, OPDI_MIN(2 * cell->cap, INT32_MAX)));
    void *more = opdi_alloc((size_t)cap * size);
    if (!more) { return -1; }
    if (cell->count) { memcpy(more, cell->u.data, (size_t)cell->count * size); }
    opdi_free(cell->u.data, (size_t)cell->cap * size);
    cell->u.data = more;
    cell->cap = cap;
    return 0;
}

static int opdi_value_hold_at(opd_value *value, int depth);
/* Makes a list cell with the elements of a plain list, which only points to its elements.  Returns the cell, or NULL
   and sets an error. */
static opdi_cell *opdi_cell_of_list(const opd_value *list, int depth) {
    opdi_cell *cell = opdi_cell_new(OPD_CELL_LIST, list->tag, 0);
    if (!cell || opdi_cell_reserve(cell, list->n)) {
        if (cell) { opdi_cell_drop(cell); }
        return NULL;
    }
    if (list->tag != OPD_TAG_LIST) {
        for (int32_t i = 0; list->tag == OPD_TAG_TENSORS && i < list->n; i++) {
            if (list->u.tensors[i] && !opdi_keep(list->u.tensors[i])) {
                while (i-- > 0) { opdi_release(list->u.tensors[i]); }
                opdi_cell_drop(cell);
                return NULL;
            }
        }
        if (list->n) { memcpy(cell->u.data, list->u.object, (size_t)list->n * opdi_cell_element(cell)); }
        cell->count = list->n;
        return cell;
    }
    for (int32_t i = 0; i < list->n; i++) {
        opd_value element = list->u.list[i];
        if (opdi_value_hold_at(&element, depth + 1)) {
            opdi_cell_drop(cell);
            return NULL;
        }
        cell->u.values[cell->count++] = element;
    }
    return cell;
}
static int opdi_value_hold_at(opd_value *value, int depth) {
    opdi_cell *cell = NULL;
    if (value->tag == OPD_TAG_TENSOR) { return opdi_keep(value->u.t) ? 0 : -1; }
    if (value->tag == OPD_TAG_CELL) { opdi_ref_up(&opdi_cell_of(value)->refs); }
    if (value->tag != OPD_TAG_STR && value->tag != OPD_TAG_COMPLEX && !opdi_is_list(value)) { return 0; }
    if (depth > OPDI_MAX_CELL_DEPTH) { return opd_fail(OPD_ERROR_ARGUMENT, "lists are nested too deeply"); }
    if (value->tag == OPD_TAG_STR) { cell = opdi_cell_text(value->u.s, (int64_t)strlen(value->u.s)); }
    else if (value->tag == OPD_TAG_COMPLEX) {
        if ((cell = opdi_cell_new(OPD_CELL_COMPLEX, 0, 2)) != NULL) {
            cell->count = 2;
            memcpy(cell->u.pair, value->u.c, 2 * sizeof(double));
        }
    } else { cell = opdi_cell_of_list(value, depth); }
    if (!cell) { return -1; }
    *value = opdi_cell_value(cell);
    return 0;
}
/* Makes *value a reference of the caller.  If it only points to its data (a list or text), replaces it by a cell with a
   copy of the data.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_value_hold(opd_value *value) { return opdi_value_hold_at(value, 0); }

/* Returns a value in the form that operators take.  A list, tuple, string or complex number becomes a plain value that
   points to the cell's data, which is not copied.  Dicts and objects are returned as they are. */
OPDI_INTERNAL opd_value opdi_value_plain(const opd_value *value) {
    const opdi_cell *cell = opdi_cell_of(value);
    opd_value plain = *value;
    if (!cell) { return plain; }
    switch (cell->kind) {
    case OPD_CELL_STR: return opd_value_str(cell->u.text);
    case OPD_CELL_COMPLEX: return opd_value_complex(cell->u.pair);
    case OPD_CELL_LIST:
        plain.tag = cell->tag;
        plain.n = (int32_t)cell->count;
        plain.u.object = cell->u.data;
        return plain;
    case OPD_CELL_TUPLE: return opd_value_list(cell->u.values, cell->count);
    default: return plain;
    }
}

/* Returns element number `place` of a list or tuple, without taking a reference. */
OPDI_INTERNAL opd_value opdi_cell_at(const opdi_cell *cell, int64_t place) {
    switch (cell->tag) {
    case OPD_TAG_INTS: return opd_value_int(cell->u.ints[place]);
    case OPD_TAG_FLOATS: return opd_value_double(cell->u.floats[place]);
    case OPD_TAG_BOOLS: return opd_value_bool(cell->u.bools[place]);
    case OPD_TAG_TENSORS: return opd_value_tensor(cell->u.tensors[place]);
    default: return cell->u.values[place];
    }
}
/* Converts *value to the element type of the list `cell`, and makes it a reference of the caller.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_cell_take(const opdi_cell *cell, opd_value *value) {
    const int32_t tag = value->tag;
    bool fits = true;
    switch (cell->tag) {
    case OPD_TAG_INTS: fits = tag == OPD_TAG_INT; break;
    case OPD_TAG_FLOATS:
        fits = tag == OPD_TAG_FLOAT || tag == OPD_TAG_INT;
        if (tag == OPD_TAG_INT) { *value = opd_value_double((double)value->u.i); }
        break;
    case OPD_TAG_BOOLS: fits = tag == OPD_TAG_BOOL; break;
    case OPD_TAG_TENSORS: fits = tag == OPD_TAG_TENSOR || tag == OPD_TAG_NONE; break;
    default: break;
    }
    return fits ? opdi_value_hold(value)
        : opd_fail(OPD_ERROR_ARGUMENT, "%s cannot be in a list of another type", opdi_value_kind_name(value));
}
/* Stores a value at index `place` of a list, without releasing the value that was there.  The list takes over the
   caller's reference. */
OPDI_INTERNAL void opdi_cell_put(opdi_cell *cell, int64_t place, const opd_value *value) {
    switch (cell->tag) {
    case OPD_TAG_INTS: cell->u.ints[place] = value->u.i; break;
    case OPD_TAG_FLOATS: cell->u.floats[place] = value->u.d; break;
    case OPD_TAG_BOOLS: cell->u.bools[place] = value->u.i != 0; break;
    case OPD_TAG_TENSORS: cell->u.tensors[place] = value->tag == OPD_TAG_TENSOR ? value->u.t : NULL; break;
    default: cell->u.values[place] = *value; break;
    }
}
/* Inserts a value in front of index `place` of a list.  If `place` is the number of elements, appends the value.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_cell_insert(opdi_cell *cell, int64_t place, opd_value value) {
    const size_t size = opdi_cell_element(cell);
    if (opdi_cell_take(cell, &value)) { return -1; }
    if (opdi_cell_reserve(cell, cell->count + 1)) {
        opdi_value_drop(value);
        return -1;
    }
    char *const at = (char *)cell->u.data + (size_t)place * size;
    memmove(at + size, at, (size_t)(cell->count - place) * size);
    cell->count++;
    opdi_cell_put(cell, place, &value);
    return 0;
}
OPDI_INTERNAL int opdi_cell_set(opdi_cell *cell, int64_t place, opd_value value) {
    if (opdi_cell_take(cell, &value)) { return -1; }
    const opd_value old = opdi_cell_at(cell, place);
    opdi_cell_put(cell, place, &value);
    opdi_value_drop(old);
    return 0;
}
/* Removes the elements [from, to) of a list and releases them. */
OPDI_INTERNAL void opdi_cell_remove(opdi_cell *cell, int64_t from, int64_t to) {
    const size_t size = opdi_cell_element(cell);
    for (int64_t i = from; i < to; i++) { opdi_value_drop(opdi_cell_at(cell, i)); }
    char *const at = (char *)cell->u.data;
    if (to < cell->count) {
        memmove(at + (size_t)from * size, at + (size_t)to * size, (size_t)(cell->count - to) * size);
    }
    cell->count -= to - from;
}

//== dicts =============================================================================================================

OPDI_INTERNAL const char *opdi_value_text(const opd_value *value, int64_t *length) {
    const opdi_cell *cell = opdi_cell_of(value);
    if (value->tag == OPD_TAG_STR) {
        *length = (int64_t)strlen(value->u.s);
        return value->u.s;
    }
    if (!cell || cell->kind != OPD_CELL_STR) { return NULL; }
    *length = cell->count;
    return cell->u.text;
}
static bool opdi_key_same(const opd_value *key, const opd_value *other) {
    int64_t count, length;
    const char *const text = opdi_value_text(key, &count);
    if (text) {
        const char *const second = opdi_value_text(other, &length);
        return second && count == length && memcmp(text, second, (size_t)count) == 0;
    }
    if (key->tag != other->tag) { return false; }
    return key->tag == OPD_TAG_FLOAT ? key->u.d >= other->u.d && key->u.d <= other->u.d : key->u.i == other->u.i;
}
static uint64_t opdi_key_hash(const opd_value *key) {
    int64_t count;
    const char *const text = opdi_value_text(key, &count);
    uint64_t bits = text ? opdi_hash(text, (size_t)count) : (uint64_t)key->u.i;
    if (key->tag == OPD_TAG_FLOAT && key->u.d >= 0 && key->u.d <= 0) { bits = 0; }      /* -0. and 0. are equal */
    bits = (bits ^ bits >> 31) * 0x9e3779b97f4a7c15u;
    return bits ^ bits >> 32;
}
static void opdi_dict_enter(opdi_cell *dict, int64_t place) {
    int64_t i = (int64_t)(opdi_key_hash(&dict->u.values[2 * place]) & (uint64_t)(dict->index_size - 1));
    while (dict->index[i]) { i = (i + 1) & (dict->index_size - 1); }
    dict->index[i] = (int32_t)place + 1;
}
/* Rebuilds the hash table of a dict, with space for one more key.  If memory runs out, the dict has no hash table, and
   opdi_dict_find compares the keys one by one. */
static void opdi_dict_index(opdi_cell *dict) {
    int64_t size = 16;
    while (size < 2 * (dict->count + 1)) { size *= 2; }
    if (size != dict->index_size) {
        opdi_free(dict->index, (size_t)dict->index_size * sizeof *dict->index);
        dict->index_size = 0;
        const int mark = opd_error_mark();
        dict->index = (int32_t *)opdi_alloc((size_t)size * sizeof *dict->index);
        if (!dict->index) {
            (void)opd_error_rewind(mark);
            return;
        }
        dict->index_size = size;
    }
    memset(dict->index, 0, (size_t)size * sizeof *dict->index);
    for (int64_t i = 0; i < dict->count; i++) { opdi_dict_enter(dict, i); }
}
/* Returns the number of the pair with the key `key`, or -1 if there is none. */
OPDI_INTERNAL int64_t opdi_dict_find(const opdi_cell *dict, const opd_value *key) {
    if (!dict->index) {
        int64_t place = 0;
        while (place < dict->count && !opdi_key_same(&dict->u.values[2 * place], key)) { place++; }
        return place < dict->count ? place : -1;
    }
    int64_t i = (int64_t)(opdi_key_hash(key) & (uint64_t)(dict->index_size - 1));
    while (dict->index[i] && !opdi_key_same(&dict->u.values[2 * (dict->index[i] - 1)], key)) {
        i = (i + 1) & (dict->index_size - 1);
    }
    return dict->index[i] ? dict->index[i] - 1 : -1;
}
OPDI_INTERNAL int opdi_dict_set(opdi_cell *dict, opd_value key, opd_value value) {
    const int64_t place = opdi_dict_find(dict, &key);
    if (opdi_value_hold(&value)) { return -1; }
    if (place >= 0) {
        const opd_value old = dict->u.values[2 * place + 1];
        dict->u.values[2 * place + 1] = value;
        opdi_value_drop(old);
        return 0;
    }
    if (opdi_cell_reserve(dict, dict->count + 1) || opdi_value_hold(&key)) {
        opdi_value_drop(value);
        return -1;
    }
    dict->u.values[2 * dict->count] = key;
    dict->u.values[2 * dict->count + 1] = value;
    dict->count++;
    if (dict->index && 2 * dict->count <= dict->index_size) { opdi_dict_enter(dict, dict->count - 1); }
    else if (dict->count >= 8) { opdi_dict_index(dict); }
    return 0;
}
OPDI_INTERNAL void opdi_dict_remove(opdi_cell *dict, int64_t place) {
    const opd_value key = dict->u.values[2 * place], value = dict->u.values[2 * place + 1];
    opd_value *const at = dict->u.values + 2 * place;
    memmove(at, at + 2, (size_t)(dict->count - place - 1) * 2 * sizeof *at);
    dict->count--;
    if (dict->index) { opdi_dict_index(dict); }
    opdi_value_drop(key);
    opdi_value_drop(value);
}

/* Returns a new object of a class, with None in all slots, or NULL and sets an error. */
OPDI_INTERNAL opdi_cell *opdi_object_new(opdi_gclass *klass) {
    opdi_cell *cell = opdi_cell_new(OPD_CELL_OBJECT, OPD_TAG_LIST, klass->nattributes);
    if (!cell) { return NULL; }
    cell->count = klass->nattributes;
    cell->klass = klass;
    (void)opdi_gspace_keep(klass->space);
    return cell;
}
/* Returns a new tuple of the `count` values `elements`, with a new reference to each.  `klass` is the class of a named
   tuple, or NULL.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_cell *opdi_tuple_new(const opd_value *elements, int64_t count, opdi_gclass *klass) {
    opdi_cell *cell = opdi_cell_new(OPD_CELL_TUPLE, OPD_TAG_LIST, count);
    if (!cell) { return NULL; }
    if (klass) {
        cell->klass = klass;
        (void)opdi_gspace_keep(klass->space);
    }
    for (; cell->count < count; cell->count++) {
        opd_value element = elements[cell->count];
        if (opdi_value_hold(&element)) {
            opdi_cell_drop(cell);
            return NULL;
        }
        cell->u.values[cell->count] = element;
    }
    return cell;
}

/* Returns the tag (OPD_TAG_...) of values of a type. */
OPDI_INTERNAL int32_t opdi_gtype_tag(const opdi_gtype *type) {
    static const int8_t tags[] = {
        OPD_TAG_OBJECT, OPD_TAG_NONE, OPD_TAG_TENSOR, OPD_TAG_INT, OPD_TAG_FLOAT, OPD_TAG_BOOL, OPD_TAG_COMPLEX,
        OPD_TAG_INT, OPD_TAG_STR, OPD_TAG_DEVICE, OPD_TAG_OBJECT};
    if (type->kind == OPDI_GTYPE_OPTIONAL) { return opdi_gtype_tag(type->parts[0]); }
    if (type->kind == OPDI_GTYPE_LIST) {
        const int kind = opdi_gtype_strip(type->parts[0])->kind;
        const bool optional = type->parts[0]->kind == OPDI_GTYPE_OPTIONAL;
        return kind == OPDI_GTYPE_TENSOR ? OPD_TAG_TENSORS : optional ? OPD_TAG_LIST : kind == OPDI_GTYPE_INT
            ? OPD_TAG_INTS
            : kind == OPDI_GTYPE_FLOAT ? OPD_TAG_FLOATS : kind == OPDI_GTYPE_BOOL ? OPD_TAG_BOOLS : OPD_TAG_LIST;
    }
    return type->kind <= OPDI_GTYPE_GENERATOR ? tags[type->kind] : (int32_t)OPD_TAG_CELL;
}
/* Counts a part of a value in *parts.  Lists that contain one list twice, and so on, have more parts than memory has
   bytes.  Returns true and sets an error if there are too many, or if the run must end. */
static bool opdi_value_is_endless(int64_t *parts) {
    if (++*parts & 0xffff) { return false; }
    if (*parts < (int64_t)1 << 27) { return opdi_run_ends(opdi_self()); }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "a value has more than %lld parts: its lists contain the same lists many times",
                   (long long)*parts);
    return true;
}
/* Does the same as opdi_value_is, for a part that is in `depth` lists.  *parts counts the parts. */
static bool opdi_value_is_part(const opd_value *value, const opdi_gtype *type, int depth, int64_t *parts) {
    const opdi_cell *const cell = opdi_cell_of(value);
    if (depth > OPDI_MAX_GTYPE_DEPTH || opdi_value_is_endless(parts)) { return false; }
    switch (type->kind) {
    case OPDI_GTYPE_ANY: return true;
    case OPDI_GTYPE_NONE: return value->tag == OPD_TAG_NONE;
    case OPDI_GTYPE_TENSOR: return value->tag == OPD_TAG_TENSOR;
    case OPDI_GTYPE_INT: return value->tag == OPD_TAG_INT;
    case OPDI_GTYPE_FLOAT: return value->tag == OPD_TAG_FLOAT;
    case OPDI_GTYPE_BOOL: return value->tag == OPD_TAG_BOOL;
    case OPDI_GTYPE_COMPLEX: return value->tag == OPD_TAG_COMPLEX || (cell && cell->kind == OPD_CELL_COMPLEX);
    case OPDI_GTYPE_NUMBER: return value->tag == OPD_TAG_INT || value->tag == OPD_TAG_FLOAT ||
        value->tag == OPD_TAG_BOOL || value->tag == OPD_TAG_COMPLEX || (cell && cell->kind == OPD_CELL_COMPLEX);
    case OPDI_GTYPE_STR: return value->tag == OPD_TAG_STR || (cell && cell->kind == OPD_CELL_STR);
    case OPDI_GTYPE_DEVICE: return value->tag == OPD_TAG_DEVICE;
    case OPDI_GTYPE_GENERATOR: return value->tag == OPD_TAG_OBJECT;
    case OPDI_GTYPE_OPTIONAL:
        return value->tag == OPD_TAG_NONE || opdi_value_is_part(value, type->parts[0], depth + 1, parts);
    case OPDI_GTYPE_UNION:
        for (int32_t i = 0; i < type->nparts; i++) {
            if (opdi_value_is_part(value, type->parts[i], depth + 1, parts)) { return true; }
        }
        return false;
    case OPDI_GTYPE_CLASS:
        return type->klass->kind == OPDI_CLASS_INTERFACE || (cell && cell->kind == OPD_CELL_OBJECT &&
            (cell->klass == type->klass || strcmp(cell->klass->name, type->klass->name) == 0));
    case OPDI_GTYPE_FUTURE: return opdi_value_is_part(value, type->parts[0], depth + 1, parts);
    case OPDI_GTYPE_ANYLIST: return cell && cell->kind == OPD_CELL_LIST;
    case OPDI_GTYPE_ANYTUPLE: return cell && cell->kind == OPD_CELL_TUPLE;
    default: break;
    }
    if (!cell) {
        return type->kind != OPDI_GTYPE_LIST && type->kind != OPDI_GTYPE_DICT && type->kind != OPDI_GTYPE_TUPLE;
    }
    if (type->kind == OPDI_GTYPE_TUPLE) {
        bool fits = cell->kind == OPD_CELL_TUPLE && cell->count == type->nparts;
        for (int32_t i = 0; fits && i < type->nparts; i++) {
            fits = opdi_value_is_part(&cell->u.values[i], type->parts[i], depth + 1, parts);
        }
        return fits;
    }
    if (type->kind == OPDI_GTYPE_DICT) {
        bool fits = cell->kind == OPD_CELL_DICT;
        for (int64_t i = 0; fits && i < cell->count; i++) {
            fits = opdi_value_is_part(&cell->u.values[2 * i], type->parts[0], depth + 1, parts) &&
                opdi_value_is_part(&cell->u.values[2 * i + 1], type->parts[1], depth + 1, parts);
        }
        return fits;
    }
    bool fits = cell->kind == OPD_CELL_LIST && cell->tag == opdi_gtype_tag(type);
    for (int64_t i = 0; fits && i < cell->count && cell->tag >= OPD_TAG_TENSORS; i++) {
        const opd_value element = opdi_cell_at(cell, i);
        fits = opdi_value_is_part(&element, type->parts[0], depth + 1, parts);
    }
    return fits;
}
/* Returns true if `value` has the type `type`.  Returns false and sets an error if it has too many parts. */
OPDI_INTERNAL bool opdi_value_is(const opd_value *value, const opdi_gtype *type) {
    int64_t parts = 0;
    return opdi_value_is_part(value, type, 0, &parts);
}
