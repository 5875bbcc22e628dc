#include "graphs.h"

//== values as text ====================================================================================================

OPDI_INTERNAL void opdi_text_builder_free(opdi_text_builder *out) { opdi_free(out->text, (size_t)out->cap); }
OPDI_INTERNAL void opdi_text_builder_add(opdi_text_builder *out, const char *text, int64_t length) {
    if (out->failed) { return; }
    if (length > out->cap - out->length - 1) {
        const int64_t cap = OPDI_MAX(64, 2 * (out->length + length + 1));
        const bool over = cap > 1 << 20 && opdi_run_ends(opdi_self());       /* the text of a value may be exponential
                                                                                in the value's size */
        char *more = over ? NULL : (char *)opdi_alloc((size_t)cap);
        if (!more) {
            out->failed = true;
            return;
        }
        if (out->length) { memcpy(more, out->text, (size_t)out->length); }
        opdi_free(out->text, (size_t)out->cap);
        out->text = more;
        out->cap = cap;
    }
    if (length) { memcpy(out->text + out->length, text, (size_t)length); }
    out->length += length;
    out->text[out->length] = 0;
}
OPDI_INTERNAL void opdi_text_builder_add_text(opdi_text_builder *out, const char *text) {
    opdi_text_builder_add(out, text, (int64_t)strlen(text));
}
/* Writes a float as TorchScript prints it: "2.", "0.10000000000000001", "1e+20". */
static void opdi_float_text(double value, char *buf, size_t cap) {
    if (isnan(value)) { (void)snprintf(buf, cap, "nan"); }
    else if (isinf(value)) { (void)snprintf(buf, cap, "%s", value > 0 ? "inf" : "-inf"); }
    else if (opdi_fits_i64(value) && (double)(int64_t)value >= value && (double)(int64_t)value <= value) {
        (void)snprintf(buf, cap, "%lld.", (long long)value);
    } else { (void)snprintf(buf, cap, "%.17g", value); }
}
OPDI_INTERNAL void opdi_value_write(opdi_text_builder *out, const opd_value *value, int depth);
/* The format in which operator<< of libtorch writes the numbers of a tensor: the width, the letter of the printf
   conversion, and a common factor by which all numbers are divided. */
typedef struct opdi_numbering { int width; char letter; double scale; } opdi_numbering;
/* Returns the format for `count` numbers.  The format depends on the smallest and the largest absolute value, and on
   whether all numbers are integers. */
static opdi_numbering opdi_numbering_of(const double *numbers, int64_t count) {
    opdi_numbering all = {11, 'e', 1};
    double low = 1, high = 1;
    bool whole = true;
    int64_t first = 0;
    for (int64_t i = 0; i < count && whole; i++) {
        whole = !isfinite(numbers[i]) || !(numbers[i] < ceil(numbers[i]) || numbers[i] > ceil(numbers[i]));
    }
    while (first < count && !isfinite(numbers[first])) { first++; }
    if (first < count) { low = high = fabs(numbers[first]); }
    for (int64_t i = first; i < count; i++) {
        const double number = fabs(numbers[i]);
        if (!isfinite(number)) { continue; }
        low = OPDI_MIN(low, number);
        high = OPDI_MAX(high, number);
    }
    low = low > 0 && first < count ? floor(log10(low)) + 1 : 1;
    high = high > 0 && first < count ? floor(log10(high)) + 1 : 1;
    if (whole) {
        if (high > 9) { return all; }
        all.width = OPDI_MAX((int)high, 0) + 1;
        all.letter = 'g';
    } else if (high - low > 4) { all.width = fabs(high) > 99 || fabs(low) > 99 ? 12 : 11; }
    else {
        all.letter = 'f';
        all.width = high > 5 || high <= 0 ? 7 : (int)high + 6;
        if (high > 5 || high < 0) { all.scale = pow(10, high - 1); }
    }
    return all;
}
static void opdi_numbering_write(opdi_text_builder *out, const opdi_numbering *all, double number) {
    char text[400], digits[40];
    number /= all->scale;
    if (all->letter == 'g') {                     /* mingw-w64's printf pads 1100 wrongly if %g has a width */
        (void)snprintf(digits, sizeof digits, "%g", number);
        (void)snprintf(text, sizeof text, "%*s", all->width, digits);
    }
    else if (all->letter == 'e') { (void)snprintf(text, sizeof text, "%*.4e", all->width, number); }
    else { (void)snprintf(text, sizeof text, "%*.4f", all->width, number); }
    opdi_text_builder_add_text(out, text);
}
static void opdi_numbering_scale(opdi_text_builder *out, const opdi_numbering *all) {
    char text[64];
    (void)snprintf(text, sizeof text, all->scale < 1 ? "%.15g *\n" : "%.17g *\n", all->scale);
    opdi_text_builder_add_text(out, text);
}
/* Writes a matrix [rows, columns] in lines of at most 80 characters.  If the matrix is wider, its columns are written
   in groups, one below the other.  If `indent` is true, each line begins with a space. */
static void opdi_matrix_write(opdi_text_builder *out, const double *numbers, int64_t rows, int64_t columns,
                              bool indent) {
    const opdi_numbering all = opdi_numbering_of(numbers, rows * columns);
    const int64_t fit = OPDI_MAX((80 - indent) / (all.width + 1), 1);
    const bool scaled = all.scale < 1 || all.scale > 1;
    char text[80];
    for (int64_t first = 0; first < columns; first += fit) {
        const int64_t end = OPDI_MIN(first + fit, columns);
        if (fit < columns) {
            (void)snprintf(text, sizeof text, "%sColumns %lld to %lld%s", first ? "\n" : "", (long long)first + 1,
                           (long long)end, indent ? " " : "");
            opdi_text_builder_add_text(out, text);
        }
        if (scaled) {
            opdi_numbering_scale(out, &all);
            opdi_text_builder_add_text(out, indent ? " " : "");
        }
        for (int64_t row = 0; row < rows; row++) {
            for (int64_t i = first; i < end; i++) {
                opdi_numbering_write(out, &all, numbers[row * columns + i]);
                opdi_text_builder_add_text(out, i + 1 < end ? " " : "\n");
            }
            if (row + 1 < rows) { opdi_text_builder_add_text(out, scaled ? indent ? "  " : " " : indent ? " " : ""); }
        }
    }
}
/* Writes a tensor of three or more dims as a sequence of matrices, one for each index of the dims before the last
   two. */
static void opdi_matrices_write(opdi_text_builder *out, const opd_tensor *tensor, const double *numbers) {
    const int ndim = opd_ndim(tensor);
    const int64_t rows = opd_sizes(tensor)[ndim - 2], columns = opd_sizes(tensor)[ndim - 1];
    const int64_t count = opd_numel(tensor) / (rows * columns);
    char text[32];
    for (int64_t k = 0; k < count; k++) {          /* the first dim varies fastest */
        int64_t at = 0, left = k;
        opdi_text_builder_add_text(out, k ? "\n(" : "(");
        int64_t strides[OPD_MAX_DIMS], step = rows * columns;
        for (int d = ndim - 3; d >= 0; d--) {
            strides[d] = step;
            step *= opd_sizes(tensor)[d];
        }
        for (int d = 0; d < ndim - 2; d++) {
            const int64_t i = left % opd_sizes(tensor)[d];
            left /= opd_sizes(tensor)[d];
            at += i * strides[d];
            (void)snprintf(text, sizeof text, "%lld,", (long long)i + 1);
            opdi_text_builder_add_text(out, text);
        }
        opdi_text_builder_add_text(out, ".,.) = \n");
        opdi_matrix_write(out, numbers + at, rows, columns, true);
    }
}
/* Writes the elements `numbers` of a tensor, which are contiguous, and the tensor's type. */
static void opdi_numbers_write(opdi_text_builder *out, const opd_tensor *tensor, const double *numbers) {
    const int64_t count = opd_numel(tensor);
    char text[64];
    if (opd_ndim(tensor) == 0) {
        (void)snprintf(text, sizeof text, "%.17g\n", numbers[0]);
        opdi_text_builder_add_text(out, text);
    } else if (opd_ndim(tensor) == 1 && count) {
        const opdi_numbering all = opdi_numbering_of(numbers, count);
        if (all.scale < 1 || all.scale > 1) { opdi_numbering_scale(out, &all); }
        for (int64_t i = 0; i < count; i++) {
            opdi_numbering_write(out, &all, numbers[i]);
            opdi_text_builder_add_text(out, "\n");
        }
    } else if (opd_ndim(tensor) == 2 && count) {
        opdi_matrix_write(out, numbers, opd_sizes(tensor)[0], opd_sizes(tensor)[1], false);
    } else if (count) { opdi_matrices_write(out, tensor, numbers); }
    (void)snprintf(text, sizeof text, "[ CPU%sType{", opd_dtype_cname(opd_dtype(tensor)));
    opdi_text_builder_add_text(out, text);
    for (int d = 0; d < opd_ndim(tensor); d++) {
        (void)snprintf(text, sizeof text, "%s%lld", d ? "," : "", (long long)opd_sizes(tensor)[d]);
        opdi_text_builder_add_text(out, text);
    }
    opdi_text_builder_add_text(out, "} ]");
}
/* Writes a tensor as TorchScript does.  A tensor that is complex, in blocks, lazy or not in the CPU's memory is written
   as opd_tensor_print does. */
static void opdi_value_write_tensor(opdi_text_builder *out, opd_tensor *tensor) {
    const int64_t count = opd_numel(tensor), size = (int64_t)opd_dtype_size(opd_dtype(tensor));
    const bool plain = tensor->backend == OPD_CPU && !opd_dtype_is_complex(opd_dtype(tensor)) &&
        !opdi_is_block(tensor->dtype) && !(tensor->flags & OPDI_LAZY) && opd_data(tensor);
    if (count && !plain) {
        const size_t length = opd_tensor_print(tensor, NULL, 0);
        char *text = (char *)opdi_alloc(length + 1);
        if (text) {
            (void)opd_tensor_print(tensor, text, length + 1);
            opdi_text_builder_add(out, text, (int64_t)length);
            opdi_free(text, length + 1);
        } else { out->failed = true; }
        return;
    }
    double *numbers = (double *)opdi_alloc(((size_t)count + 1) * sizeof *numbers);
    if (!numbers) {
        out->failed = true;
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0, left = i;
        for (int d = opd_ndim(tensor) - 1; d >= 0; d--) {
            at += left % opd_sizes(tensor)[d] * opd_strides(tensor)[d];
            left /= opd_sizes(tensor)[d];
        }
        numbers[i] = opdi_element_f64(tensor, at * size);
    }
    opdi_numbers_write(out, tensor, numbers);
    opdi_free(numbers, ((size_t)count + 1) * sizeof *numbers);
}
static void opdi_value_write_cell(opdi_text_builder *out, const opdi_cell *cell, int depth) {
    char text[300];
    if (depth > OPDI_MAX_CELL_DEPTH) {
        opdi_text_builder_add_text(out, "...");
        return;
    }
    if (cell->kind == OPD_CELL_STR) { opdi_text_builder_add(out, cell->u.text, cell->count); }
    else if (cell->kind == OPD_CELL_OBJECT) {
        (void)snprintf(text, sizeof text, "<%.200s object at %p>", cell->klass->name, (const void *)cell);
        opdi_text_builder_add_text(out, text);
    } else {
        const bool dict = cell->kind == OPD_CELL_DICT, tuple = cell->kind == OPD_CELL_TUPLE;
        opdi_text_builder_add_text(out, dict ? "{" : tuple ? "(" : "[");
        for (int64_t i = 0; i < cell->count && !out->failed; i++) {
            const opd_value element = dict ? cell->u.values[2 * i] : opdi_cell_at(cell, i);
            if (i) { opdi_text_builder_add_text(out, ", "); }
            opdi_value_write(out, &element, depth + 1);
            if (!dict) { continue; }
            opdi_text_builder_add_text(out, ": ");
            opdi_value_write(out, &cell->u.values[2 * i + 1], depth + 1);
        }
        opdi_text_builder_add_text(out, dict ? "}" : tuple ? cell->count == 1 ? ",)" : ")" : "]");
    }
}
/* Writes a value as TorchScript's print and format do.  Named tuples are written without their names. */
OPDI_INTERNAL void opdi_value_write(opdi_text_builder *out, const opd_value *value, int depth) {
    char text[64] = "None";
    switch (value->tag) {
    case OPD_TAG_TENSOR: opdi_value_write_tensor(out, value->u.t); return;
    case OPD_TAG_CELL:
        if (opdi_cell_of(value)->kind != OPD_CELL_COMPLEX) {
            opdi_value_write_cell(out, opdi_cell_of(value), depth);
            return;
        }
        break;
    case OPD_TAG_STR: opdi_text_builder_add_text(out, value->u.s); return;
    case OPD_TAG_INT: (void)snprintf(text, sizeof text, "%lld", (long long)value->u.i); break;
    case OPD_TAG_FLOAT: opdi_float_text(value->u.d, text, sizeof text); break;
    case OPD_TAG_BOOL: (void)snprintf(text, sizeof text, "%s", value->u.i ? "True" : "False"); break;
    case OPD_TAG_DEVICE: (void)opdi_device_text(value->u.device, text, sizeof text); break;
    case OPD_TAG_OBJECT: (void)snprintf(text, sizeof text, "<object at %p>", value->u.object); break;
    case OPD_TAG_INTS: case OPD_TAG_FLOATS: case OPD_TAG_BOOLS: case OPD_TAG_TENSORS: case OPD_TAG_LIST: {
        opd_value held = *value;
        if (opdi_value_hold(&held)) { out->failed = true; }
        else {
            opdi_value_write(out, &held, depth);
            opdi_value_drop(held);
        }
        return;
    }
    default: break;
    }
    if (value->tag == OPD_TAG_COMPLEX || value->tag == OPD_TAG_CELL) {
        const double *const pair = value->tag == OPD_TAG_CELL ? opdi_cell_of(value)->u.pair : value->u.c;
        char part[32];
        opdi_float_text(pair[0], text, 32);
        opdi_text_builder_add_text(out, text);
        opdi_float_text(fabs(pair[1]), part, sizeof part);
        (void)snprintf(text, sizeof text, "%s%sj", signbit(pair[1]) ? "-" : "+", part);
    }
    opdi_text_builder_add_text(out, text);
}

//== public functions for values and cells =============================================================================

/* Drops a scope's reference to a cell when the scope ends. */
static void opdi_cell_release(void *cell) { opdi_cell_drop((opdi_cell *)cell); }
/* Gives the caller's reference to a cell to the innermost scope, which drops it at its end.  Returns the cell as a
   value.  On failure, returns None and sets an error. */
OPDI_INTERNAL opd_value opdi_cell_own(opdi_cell *cell) {
    opdi_ending *ending = cell ? (opdi_ending *)opdi_scope_alloc(sizeof *ending) : NULL;
    if (!ending) {
        if (cell) { opdi_cell_drop(cell); }
        return opd_value_none();
    }
    ending->end = opdi_cell_release;
    ending->what = cell;
    ((opdi_block *)(void *)ending - 1)->bytes |= OPDI_BLOCK_ENDS;
    return opdi_cell_value(cell);
}
/* Gives the caller's reference to `value` to the innermost scope.  Returns the value. */
OPDI_INTERNAL opd_value opdi_value_own(opd_value value) {
    if (value.tag == OPD_TAG_TENSOR) { return opd_value_tensor(opdi_own(value.u.t)); }
    return value.tag == OPD_TAG_CELL ? opdi_cell_own(opdi_cell_of(&value)) : value;
}
/* Returns the cell of a value, which must be of kind `kind` (OPD_CELL_NONE: OPD_CELL_LIST or a later kind).  Otherwise
   returns NULL and sets an error, with the function name `who` and the word `what` for the kind. */
static opdi_cell *opdi_cell_want(const opd_value *value, opd_cell_kind kind, const char *who, const char *what) {
    opdi_cell *cell = opdi_cell_of(value);
    if (cell && (cell->kind == kind || (kind == OPD_CELL_NONE && cell->kind >= OPD_CELL_LIST))) { return cell; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the value must be a %s, but is %s", who, what, opdi_value_kind_name(value));
    return NULL;
}

opd_cell_kind opd_value_cell(opd_value value) {
    const opdi_cell *cell = opdi_cell_of(&value);
    return cell ? (opd_cell_kind)cell->kind : OPD_CELL_NONE;
}
opd_value opd_value_keep(opd_value value) {
    opd_value held = value;
    if (value.tag == OPD_TAG_TENSOR) { return opd_keep_at(value.u.t, "") ? value : opd_value_none(); }
    return opdi_value_hold(&held) ? opd_value_none() : held;
}
void opd_value_release(opd_value value) {
    if (value.tag == OPD_TAG_TENSOR) { opd_release(value.u.t); } else { opdi_value_drop(value); }
}
opd_value opd_string_new(const char *text, int64_t length) {
    if (!text) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_string_new: the text is NULL");
        return opd_value_none();
    }
    return opdi_cell_own(opdi_cell_text(text, length < 0 ? (int64_t)strlen(text) : length));
}
const char *opd_string_text(const opd_value *value, int64_t *length) {
    int64_t count = 0;
    const char *text = value ? opdi_value_text(value, &count) : NULL;
    if (length) { *length = count; }
    return text;
}
opd_value opd_list_new(opd_tag elements) {
    if (elements < OPD_TAG_INTS || elements > OPD_TAG_LIST) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_list_new: %d is not the tag of a list", (int)elements);
        return opd_value_none();
    }
    return opdi_cell_own(opdi_cell_new(OPD_CELL_LIST, (int32_t)elements, 0));
}
int opd_list_append(opd_value list, opd_value element) {
    opdi_cell *cell = opdi_cell_want(&list, OPD_CELL_LIST, "opd_list_append", "list");
    return cell ? opdi_cell_insert(cell, cell->count, element) : -1;
}
static int64_t opdi_list_place(const char *who, int64_t place, int64_t count) {
    const int64_t at = place < 0 ? place + count : place;
    if (at >= 0 && at < count) { return at; }
    return opd_fail(OPD_ERROR_INDEX, "%s: there is no element %lld in a list of %lld elements", who, (long long)place,
                    (long long)count);
}
int opd_list_set(opd_value list, int64_t place, opd_value element) {
    opdi_cell *cell = opdi_cell_want(&list, OPD_CELL_LIST, "opd_list_set", "list");
    if (!cell || (place = opdi_list_place("opd_list_set", place, cell->count)) < 0) { return -1; }
    return opdi_cell_set(cell, place, element);
}
int64_t opd_list_count(opd_value list) {
    if (opdi_is_list(&list)) { return list.n; }
    const opdi_cell *cell = opdi_cell_want(&list, OPD_CELL_NONE, "opd_list_count", "list");
    return cell ? cell->count : -1;
}
opd_value opd_list_at(opd_value list, int64_t place) {
    if (opdi_is_list(&list)) {
        if ((place = opdi_list_place("opd_list_at", place, list.n)) < 0) { return opd_value_none(); }
        return list.tag == OPD_TAG_TENSORS ? opd_value_tensor(list.u.tensors[place])
            : opdi_list_element(&list, (int)place);
    }
    const opdi_cell *cell = opdi_cell_of(&list);
    if (!cell || (cell->kind != OPD_CELL_TUPLE && cell->kind != OPD_CELL_COMPLEX)) {
        cell = opdi_cell_want(&list, OPD_CELL_LIST, "opd_list_at", "list or tuple");
    }
    if (!cell || (place = opdi_list_place("opd_list_at", place, cell->count)) < 0) { return opd_value_none(); }
    return cell->kind == OPD_CELL_COMPLEX ? opd_value_double(cell->u.pair[place]) : opdi_cell_at(cell, place);
}
opd_value opd_tuple_new(const opd_value *elements, int64_t count) {
    if (count < 0 || (count && !elements)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_tuple_new: the pointer to the elements is NULL");
        return opd_value_none();
    }
    return opdi_cell_own(opdi_tuple_new(elements, count, NULL));
}
const char *opd_tuple_name(opd_value tuple, int64_t place) {
    const opdi_cell *cell = opdi_cell_of(&tuple);
    if (!cell || cell->kind != OPD_CELL_TUPLE || !cell->klass || place < 0 || place >= cell->count) { return NULL; }
    return cell->klass->attributes[place].name;
}
opd_value opd_dict_new(void) { return opdi_cell_own(opdi_cell_new(OPD_CELL_DICT, OPD_TAG_LIST, 0)); }
static bool opdi_is_key(const opd_value *key) {
    return key->tag == OPD_TAG_INT || key->tag == OPD_TAG_FLOAT || key->tag == OPD_TAG_BOOL ||
        key->tag == OPD_TAG_STR || key->tag == OPD_TAG_TENSOR ||
        (opdi_cell_of(key) && opdi_cell_of(key)->kind == OPD_CELL_STR);
}
int opd_dict_set(opd_value dict, opd_value key, opd_value value) {
    opdi_cell *cell = opdi_cell_want(&dict, OPD_CELL_DICT, "opd_dict_set", "dict");
    if (!cell) { return -1; }
    if (!opdi_is_key(&key)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_dict_set: %s cannot be a key", opdi_value_kind_name(&key));
    }
    return opdi_dict_set(cell, key, value);
}
int opd_dict_get(opd_value dict, opd_value key, opd_value *value) {
    const opdi_cell *cell = opdi_cell_want(&dict, OPD_CELL_DICT, "opd_dict_get", "dict");
    if (value) { *value = opd_value_none(); }
    if (!cell) { return -1; }
    const int64_t place = opdi_is_key(&key) ? opdi_dict_find(cell, &key) : -1;
    if (place >= 0 && value) { *value = cell->u.values[2 * place + 1]; }
    return place >= 0;
}
static opd_value opdi_dict_at(const opd_value *dict, int64_t place, int which, const char *who) {
    const opdi_cell *cell = opdi_cell_want(dict, OPD_CELL_DICT, who, "dict");
    if (!cell || (place = opdi_list_place(who, place, cell->count)) < 0) { return opd_value_none(); }
    return cell->u.values[2 * place + which];
}
opd_value opd_dict_key_at(opd_value dict, int64_t place) { return opdi_dict_at(&dict, place, 0, "opd_dict_key_at"); }
opd_value opd_dict_value_at(opd_value dict, int64_t place) {
    return opdi_dict_at(&dict, place, 1, "opd_dict_value_at");
}
const char *opd_object_class(opd_value object) {
    const opdi_cell *tuple = opdi_cell_of(&object);
    if (tuple && tuple->kind == OPD_CELL_TUPLE) { return tuple->klass ? tuple->klass->name : NULL; }
    const opdi_cell *cell = opdi_cell_want(&object, OPD_CELL_OBJECT, "opd_object_class", "object");
    return cell ? cell->klass->name : NULL;
}
OPDI_INTERNAL int32_t opdi_object_slot(const opdi_cell *cell, const char *name) {
    const int32_t slot = name ? opdi_gclass_slot(cell->klass, name) : -1;
    if (slot >= 0 && slot < cell->count) { return slot; }
    return opd_fail(OPD_ERROR_NOT_FOUND, "an object of %s has no attribute '%s'", cell->klass->name, name ? name : "");
}
opd_value opd_object_get(opd_value object, const char *name) {
    const opdi_cell *cell = opdi_cell_want(&object, OPD_CELL_OBJECT, "opd_object_get", "object");
    const int32_t slot = cell ? opdi_object_slot(cell, name) : -1;
    return slot < 0 ? opd_value_none() : cell->u.values[slot];
}
/* Sets slot number `slot` of an object to a new reference to `value`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_object_put(opdi_cell *cell, int32_t slot, opd_value value) {
    if (opdi_value_hold(&value)) { return -1; }
    const opd_value old = cell->u.values[slot];
    cell->u.values[slot] = value;
    opdi_value_drop(old);
    return 0;
}
int opd_object_set(opd_value object, const char *name, opd_value value) {
    opdi_cell *cell = opdi_cell_want(&object, OPD_CELL_OBJECT, "opd_object_set", "object");
    if (cell && cell->klass->kind == OPDI_CLASS_ENUM) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_object_set: a member of an enum cannot be changed");
    }
    const int32_t slot = cell ? opdi_object_slot(cell, name) : -1;
    return slot < 0 ? -1 : opdi_object_put(cell, slot, value);
}
size_t opd_value_print(opd_value value, char *buf, size_t cap) {
    opdi_text_builder out = {NULL, 0, 0, false};
    opdi_value_write(&out, &value, 0);
    const size_t length = (size_t)out.length;
    if (buf && cap) {
        const size_t part = OPDI_MIN(length, cap - 1);
        if (part) { memcpy(buf, out.text, part); }
        buf[part] = 0;
    }
    opdi_text_builder_free(&out);
    return length;
}
