#include "script.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>archives     archives of torch.jit.save: objects, their tensors, and the texts of their classes
//
//  An archive is a zip file.  data.pkl has the object, and constants.pkl a tuple of constants; the folders data/ and
//  constants/ have the bytes of their tensors.  code/__torch__.py and similar files have the source text of the
//  classes; they are read when a class is needed.
//----------------------------------------------------------------------------------------------------------------------

enum { OPDI_SCRIPT_VERSION = 10 };                /* the newest version of archives that PyTorch writes */

static void opdi_script_archive_free(opdi_script_archive *archive) {
    if (archive->file) {
        memset(&archive->file->members, 0, sizeof archive->file->members);       /* the members share the memory of
                                                                                    `entries`, which closing the file
                                                                                    frees */
        opd_tensor_file_close(archive->file);
    }
    opdi_arena_free(&archive->arena);
    opdi_free(archive, sizeof *archive);
}
/* Returns the index of the entry `name`, which is relative to the archive's root, or -1 if there is none. */
static int64_t opdi_script_archive_find(const opdi_script_archive *archive, const char *name) {
    char full[1500];
    const int length = snprintf(full, sizeof full, "%s%s", archive->root, name);
    return length > 0 && (size_t)length < sizeof full ? opdi_tensor_file_find(archive->file, full, (size_t)length) : -1;
}
//== source places =====================================================================================================
//
//  For each text CODE.py, an archive has a pickle CODE.py.debug_pkl.  It tells from which places of the original source
//  the positions in CODE.py come.
//
//  The pickle has the form ("FORMAT_WITH_STRING_TABLE", texts, ((at, (source, begin, end), tag), ...)).  `at` is a
//  position in CODE.py; `begin` and `end` are positions in the source.  A source is (pieces, file, line): the indexes
//  of the texts that form the source, the index of the text with its file name, and the number of its first line.

/* The state while a pickle of source places is read. */
typedef struct opdi_script_places {
    opdi_pickle pickle;
    const opdi_source *source;
    uint32_t *texts;                              /* node numbers of the texts */
    int64_t ntexts;
    const opdi_pickle_node *file;                 /* the node of the file name in the place that was read last */
    uint64_t work;                                /* the number of bytes that were searched for line ends, or copied */
} opdi_script_places;
enum { OPDI_SCRIPT_PLACES = 1 << 20 };

/* Returns the node of text number i, or NULL if there is none. */
static const opdi_pickle_node *opdi_script_places_text(const opdi_script_places *places, int64_t i) {
    return i < 0 || i >= places->ntexts ? NULL : opdi_pickle_at(&places->pickle, places->texts[i]);
}
/* Returns item i of a tuple node as a number, or -1 if there is no such item or it is not a number. */
static int64_t opdi_script_places_number(const opdi_script_places *places, uint32_t node, int64_t i) {
    const uint32_t item = node ? opdi_pickle_get(&places->pickle, node, i) : 0;
    return opdi_pickle_is(&places->pickle, item, OPDI_PICKLE_INT) ? opdi_pickle_at(&places->pickle, item)->value : -1;
}
/* Finds the line and column (both from 0) of byte `begin` in the source that is formed by the texts `pieces`.  Returns
   false if the pickle is malformed. */
static bool opdi_script_places_find(opdi_script_places *places, uint32_t pieces, int64_t begin,
                                    opdi_script_place *place) {
    const opdi_pickle *pickle = &places->pickle;
    uint32_t item = opdi_pickle_first(pickle, pieces);
    for (; item && begin >= 0; item = opdi_pickle_item_at(pickle, item)->next) {
        const opdi_pickle_node *number = opdi_pickle_at(pickle, opdi_pickle_item_at(pickle, item)->node);
        const opdi_pickle_node *text =
            opdi_script_places_text(places, number->kind == OPDI_PICKLE_INT ? number->value : -1);
        if (!text) { return false; }
        const char *at = (const char *)places->source->data + text->text;
        const char *const end = at + OPDI_MIN(text->value, begin);
        places->work += 16 + (uint64_t)(end - at);
        if (places->work > OPDI_SCRIPT_TEXT) { return false; }
        for (const char *next; (next = (const char *)memchr(at, '\n', (size_t)(end - at))) != NULL; at = next + 1) {
            place->line++;
            place->column = 0;
        }
        place->column += (uint32_t)(end - at);
        if (begin < text->value) { return true; }
        begin -= text->value;
    }
    return begin == 0;
}
/* Returns a copy of the file name `text` in the script's arena.  If `before`, the place that was read last, has the
   same file name, returns its copy.  Returns NULL if memory runs out or too many bytes were copied. */
static const char *opdi_script_places_file(opd_script *script, opdi_script_places *places, const opdi_pickle_node *text,
                                           const opdi_script_place *before) {
    if (before && places->file == text) { return before->file; }
    places->file = text;
    places->work += (uint64_t)text->value;
    return places->work > OPDI_SCRIPT_TEXT ? NULL
        : opdi_arena_copy(&script->arena, (const char *)places->source->data + text->text, (size_t)text->value);
}
/* Reads a place from the tuple (at, (source, begin, end), tag).  `before` is the place that was read last, or NULL.
   Returns false if the tuple is malformed. */
static bool opdi_script_places_one(opd_script *script, opdi_script_places *places, uint32_t node,
                                   const opdi_script_place *before, opdi_script_place *place) {
    const opdi_pickle *pickle = &places->pickle;
    const int64_t at = opdi_script_places_number(places, node, 0);
    const uint32_t range = opdi_pickle_get(pickle, node, 1), source = range ? opdi_pickle_get(pickle, range, 0) : 0;
    const uint32_t pieces = source ? opdi_pickle_get(pickle, source, 0) : 0;
    const opdi_pickle_node *file = opdi_script_places_text(places, opdi_script_places_number(places, source, 1));
    const int64_t line = opdi_script_places_number(places, source, 2),
        begin = opdi_script_places_number(places, range, 1);
    memset(place, 0, sizeof *place);
    if (!pieces || !file || at < 0 || at > UINT32_MAX || line < 0 || line > INT32_MAX ||
        !opdi_script_places_find(places, pieces, begin, place)) { return false; }
    place->at = (uint32_t)at;
    place->line += (uint32_t)line;
    place->file = opdi_script_places_file(script, places, file, before);
    return place->file && (!before || before->at <= place->at);
}
/* Reads all places from the tree of a pickle into text->places.  Returns false if they are malformed or memory runs
   out. */
static bool opdi_script_places_all(opd_script *script, opdi_script_places *places, uint32_t tree,
                                   opdi_script_text *text) {
    const opdi_pickle *pickle = &places->pickle;
    const uint32_t texts = opdi_pickle_get(pickle, tree, 1), list = opdi_pickle_get(pickle, tree, 2);
    if (!opdi_pickle_is(pickle, texts, OPDI_PICKLE_TUPLE) || !opdi_pickle_is(pickle, list, OPDI_PICKLE_TUPLE)) {
        return false;
    }
    const int64_t ntexts = opdi_pickle_count(pickle, texts), count = opdi_pickle_count(pickle, list);
    if (ntexts > OPDI_SCRIPT_PLACES || count > OPDI_SCRIPT_PLACES) { return false; }
    places->texts = (uint32_t *)opdi_arena_alloc(&script->arena, (size_t)(ntexts + 1) * sizeof *places->texts);
    opdi_script_place *made = (opdi_script_place *)opdi_arena_alloc(&script->arena, (size_t)(count + 1) * sizeof *made);
    if (!places->texts || !made) { return false; }
    for (uint32_t i = opdi_pickle_first(pickle, texts); i; i = opdi_pickle_item_at(pickle, i)->next) {
        const uint32_t node = opdi_pickle_item_at(pickle, i)->node;
        if (!opdi_pickle_is(pickle, node, OPDI_PICKLE_TEXT) || places->ntexts == ntexts) { return false; }
        places->texts[places->ntexts++] = node;
    }
    uint32_t nplaces = 0;
    for (uint32_t i = opdi_pickle_first(pickle, list); i; i = opdi_pickle_item_at(pickle, i)->next) {
        const uint32_t node = opdi_pickle_item_at(pickle, i)->node;
        if (!opdi_pickle_is(pickle, node, OPDI_PICKLE_TUPLE) || nplaces == count ||
            !opdi_script_places_one(script, places, node, nplaces ? &made[nplaces - 1] : NULL, &made[nplaces])) {
            return false;
        }
        nplaces++;
    }
    text->places = made;
    text->nplaces = nplaces;
    return true;
}
/* Reads the source places of the text at `path` in an archive.  If they are missing or damaged, errors show the text of
   the archive instead of the source.  Returns 0, or -1 if memory runs out. */
static int opdi_script_archive_places(opd_script *script, const char *path, opdi_script_text *text) {
    const opdi_script_archive *archive = script->archive;
    char name[1400];
    opdi_script_places places;
    opdi_source source;
    unsigned char *own;
    size_t at = 0;
    (void)snprintf(name, sizeof name, "%s.debug_pkl", path);
    const int64_t i = opdi_script_archive_find(archive, name);
    const int mark = opd_error_mark();
    memset(&places, 0, sizeof places);
    if (i >= 0 && opdi_file_entry_of(archive->file, i)->full <= OPDI_SCRIPT_TEXT &&
        opdi_zip_bytes(archive->file, opdi_file_entry_of(archive->file, i), 1, &source, &own) == 0) {
        places.source = &source;
        const uint32_t tree = opdi_pickle_read_as(&places.pickle, &source, &at, true);
        if (opdi_pickle_is(&places.pickle, tree, OPDI_PICKLE_TUPLE)) {
            (void)opdi_script_places_all(script, &places, tree, text);
        }
        opdi_pickle_free(&places.pickle);
        opdi_free(own, source.length);
    }
    if (opdi_error_passes()) { return -1; }
    (void)opd_error_rewind(mark);
    return 0;
}
/* Returns the text of the archive that defines names such as "prefix.X".  Returns NULL without an error if there is
   none. */
static opdi_script_unit *opdi_script_archive_unit(opd_script *script, const char *prefix) {
    const opdi_script_archive *archive = script->archive;
    char path[1300];
    opdi_source source;
    unsigned char *own;
    if ((size_t)snprintf(path, sizeof path, "code/%s.py", prefix) >= sizeof path) { return NULL; }
    for (char *at = path + 5; *at; at++) { if (*at == '.' && strcmp(at, ".py") != 0) { *at = '/'; } }
    const int64_t i = opdi_script_archive_find(archive, path);
    if (i < 0 || opdi_zip_bytes(archive->file, opdi_file_entry_of(archive->file, i), 1, &source, &own)) { return NULL; }
    opdi_script_unit *unit = opdi_script_unit_add(script, prefix, path, (const char *)source.data, source.length);
    opdi_free(own, source.length);
    return unit && opdi_script_archive_places(script, path, &unit->text) == 0 ? unit : NULL;
}

//== objects ===========================================================================================================

/* The state while values are built from the tree of a pickle. */
typedef struct opdi_script_unpickler {
    opd_script *script;
    opdi_checkpoint_walk walk;
    opd_value *made;                              /* for each node that may be used several times (a list, dict, object
                                                     or tensor): its value */
    size_t nodes;
    uint64_t steps;
} opdi_script_unpickler;
#define OPDI_SCRIPT_BUILD_DEPTH 200

static int opdi_script_unpickle_value(opdi_script_unpickler *build, uint32_t node, const opdi_gtype *type, int depth,
                                      opd_value *value);

/* The value of opd_value.n that marks a value in `made` as not complete: other values must not refer to it yet. */
#define OPDI_SCRIPT_UNPICKLE_BUSY INT32_MAX
static void opdi_script_unpickle_begin(opdi_script_unpickler *build, uint32_t node, const opd_value *value) {
    build->made[node] = *value;
    build->made[node].n = OPDI_SCRIPT_UNPICKLE_BUSY;
}
/* Returns the tag of lists of type `type`. */
static opd_tag opdi_script_list_tag(const opdi_gtype *type) {
    const opdi_gtype *element = type && type->kind == OPDI_GTYPE_LIST ? type->parts[0] : NULL;
    const int kind = !element ? OPDI_GTYPE_ANY : opdi_gtype_strip(element)->kind;
    const bool optional = element && element->kind == OPDI_GTYPE_OPTIONAL;
    return kind == OPDI_GTYPE_TENSOR ? OPD_TAG_TENSORS : optional ? OPD_TAG_LIST : kind == OPDI_GTYPE_INT ? OPD_TAG_INTS
        : kind == OPDI_GTYPE_FLOAT ? OPD_TAG_FLOATS : kind == OPDI_GTYPE_BOOL ? OPD_TAG_BOOLS : OPD_TAG_LIST;
}
/* Sets *value to a list built from a node.  If `type` is NULL, the first element determines the element type.  Returns
   0, or -1 and sets an error. */
static int opdi_script_unpickle_list(opdi_script_unpickler *build, uint32_t node, const opdi_gtype *type, int depth,
                                     opd_value *value) {
    const opdi_pickle *pickle = &build->walk.pickle;
    opd_tag tag = opdi_script_list_tag(type);
    uint32_t item = opdi_pickle_first(pickle, node);
    if (!type && item) {
        const int kind = opdi_pickle_at(pickle, opdi_pickle_item_at(pickle, item)->node)->kind;
        tag = kind == OPDI_PICKLE_INT ? OPD_TAG_INTS : kind == OPDI_PICKLE_FLOAT ? OPD_TAG_FLOATS
            : kind == OPDI_PICKLE_BOOL ? OPD_TAG_BOOLS : kind == OPDI_PICKLE_TENSOR ? OPD_TAG_TENSORS : OPD_TAG_LIST;
    }
    *value = opd_list_new(tag);
    opdi_script_unpickle_begin(build, node, value);
    for (; opd_ok() && item; item = opdi_pickle_item_at(pickle, item)->next) {
        opd_value part;
        if (opdi_script_unpickle_value(build, opdi_pickle_item_at(pickle, item)->node,
                                       type && type->kind == OPDI_GTYPE_LIST ? type->parts[0] : NULL, depth + 1,
                                       &part) ||
            opd_list_append(*value, part)) { return -1; }
    }
    return opd_ok() ? 0 : -1;
}
static int opdi_script_unpickle_dict(opdi_script_unpickler *build, uint32_t node, const opdi_gtype *type, int depth,
                                     opd_value *value) {
    const opdi_pickle *pickle = &build->walk.pickle;
    const bool known = type && type->kind == OPDI_GTYPE_DICT;
    *value = opd_dict_new();
    opdi_script_unpickle_begin(build, node, value);
    for (uint32_t item = opdi_pickle_first(pickle, node); opd_ok() && item;) {
        const opdi_pickle_item *key = opdi_pickle_item_at(pickle, item);
        const opdi_pickle_item *its = key->next ? opdi_pickle_item_at(pickle, key->next) : NULL;
        opd_value parts[2];
        if (!its || opdi_script_unpickle_value(build, key->node, known ? type->parts[0] : NULL, depth + 1, &parts[0]) ||
            opdi_script_unpickle_value(build, its->node, known ? type->parts[1] : NULL, depth + 1, &parts[1]) ||
            opd_dict_set(*value, parts[0], parts[1])) { return -1; }
        item = opdi_pickle_item_at(pickle, key->next)->next;
    }
    return opd_ok() ? 0 : -1;
}
static int opdi_script_unpickle_tuple(opdi_script_unpickler *build, uint32_t node, const opdi_gtype *type, int depth,
                                      opd_value *value) {
    const opdi_pickle *pickle = &build->walk.pickle;
    const int64_t count = opdi_pickle_count(pickle, node);
    const bool known = type && type->kind == OPDI_GTYPE_TUPLE && type->nparts == count;
    opd_value *parts = count < 100000 ? (opd_value *)opdi_scope_alloc((size_t)(count + 1) * sizeof *parts) : NULL;
    int64_t i = 0;
    if (!parts) {
        return !opd_ok() ? -1
            : opd_fail(OPD_ERROR_SCHEMA, "a tuple has %lld elements, but fewer than 100000 are allowed",
                       (long long)count);
    }
    for (uint32_t item = opdi_pickle_first(pickle, node); item; item = opdi_pickle_item_at(pickle, item)->next) {
        if (i >= count ||
            opdi_script_unpickle_value(build, opdi_pickle_item_at(pickle, item)->node, known ? type->parts[i]
                                       : NULL, depth + 1, &parts[i])) { return -1; }
        i++;
    }
    *value = opdi_cell_own(opdi_tuple_new(parts, i, known ? type->klass : NULL));
    return opd_ok() ? 0 : -1;
}
/* Returns the qualified name of the class in a node, copied to the arena, or NULL. */
static const char *opdi_script_unpickle_class(opdi_script_unpickler *build, uint32_t node) {
    const opdi_pickle *pickle = &build->walk.pickle;
    char full[1024];
    size_t length = 0;
    for (int i = 0; i < 2; i++) {
        const opdi_pickle_node *text = opdi_pickle_at(pickle, opdi_pickle_get(pickle, node, i));
        if (length + (size_t)text->value + 2 > sizeof full) { return NULL; }
        if (i) { full[length++] = '.'; }
        memcpy(full + length, build->walk.pickled->data + text->text, (size_t)text->value);
        length += (size_t)text->value;
    }
    return opdi_arena_copy(&build->script->arena, full, length);
}
/* Converts `value` to the type of attribute `slot` of an object, and stores it in the object.  Returns 0, or -1 and
   sets an error. */
static int opdi_script_unpickle_attribute(opdi_cell *object, int32_t slot, opd_value value) {
    const opdi_gattribute *attribute = &object->klass->attributes[slot];
    char said[200];
    if (opdi_value_hold(&value)) { return -1; }
    int rc = opdi_value_fit(&value, attribute->type, 0);
    if (rc > 0) {
        rc = opd_fail(OPD_ERROR_SCHEMA, "%s.%s is not of type %s in the file", object->klass->name, attribute->name,
                      opdi_emit_type_text(attribute->type, said, sizeof said));
    }
    if (rc == 0) { rc = opdi_object_put(object, slot, value); }
    opdi_value_drop(value);
    return rc;
}
/* Adds the attributes that an object's state `state` has to the object's class `gclass`; the archive does not have the
   text of this class.  Returns 0, or -1 and sets an error. */
static int opdi_script_unpickle_names(opdi_script_unpickler *build, uint32_t state, opdi_gclass *gclass) {
    const opdi_pickle *pickle = &build->walk.pickle;
    for (uint32_t item = opdi_pickle_first(pickle, state); item;) {
        const opdi_pickle_item *key = opdi_pickle_item_at(pickle, item);
        const opdi_pickle_node *text = opdi_pickle_at(pickle, key->node);
        if (!key->next || text->kind != OPDI_PICKLE_TEXT || text->value > 255) {
            return opd_fail(OPD_ERROR_SCHEMA, "an object of %s has an attribute without a name", gclass->name);
        }
        const char *copy = opdi_arena_copy(&build->script->space->arena,
                                           (const char *)build->walk.pickled->data + text->text, (size_t)text->value);
        if (!copy || (opdi_gclass_slot(gclass, copy) < 0 &&
                      opdi_gclass_add(gclass, copy, opdi_gtype_simple(OPDI_GTYPE_ANY), 0) < 0)) { return -1; }
        item = opdi_pickle_item_at(pickle, key->next)->next;
    }
    gclass->open = false;
    return 0;
}
/* Sets *value to a member of the enum `klass`: the member whose value is in the node `state`.  Returns 0, or -1 and
   sets an error. */
static int opdi_script_unpickle_enum(opdi_script_unpickler *build, uint32_t state, const opdi_script_class *klass,
                                     int depth, opd_value *value) {
    opd_value its;
    if (!klass || !klass->nmembers) { return opd_fail(OPD_ERROR_SCHEMA, "an enum has no members"); }
    const opdi_gclass *gclass = klass->gclass;
    if (opdi_script_unpickle_value(build, state, gclass->attributes[1].type, depth + 1, &its)) { return -1; }
    for (int32_t i = 0; i < klass->nmembers; i++) {
        build->steps += i % 8 == 7;                /* members that were compared */
        if (opdi_equal(&opdi_cell_of(&klass->members[i])->u.values[1], &its, 0) == 1) {
            opdi_cell *const cell = opdi_script_enum_again(klass, i);
            if (cell) { *value = opdi_cell_own(cell); }
            return cell && opd_ok() ? 0 : -1;
        }
    }
    return opd_ok() ? opd_fail(OPD_ERROR_SCHEMA, "the file has a value that the enum %s does not have",
                               gclass->name) : -1;
}
/* Sets *value to a float32 tensor with the numbers that a quantized tensor represents: (element - zero point) * scale.
   Returns 0, or -1 and sets an error. */
static int opdi_script_unpickle_quantized(opdi_script_unpickler *build, uint32_t node, int depth, opd_value *value) {
    enum { HOW, SCALE, ZERO, AXIS };
    const opdi_pickle *pickle = &build->walk.pickle;
    const uint32_t how = opdi_pickle_get(pickle, node, 1);
    opd_value numbers, part;
    const uint32_t axis_at = opdi_pickle_get(pickle, how, AXIS);
    if (opdi_script_unpickle_value(build, opdi_pickle_get(pickle, node, 0), NULL, depth + 1, &numbers)) { return -1; }
    opd_tensor *floats = opd_to_dtype(numbers.u.t, OPD_FLOAT32);
    for (int i = 2; floats && i > 0; i--) {  /* i 2: subtracts the zero point; i 1: multiplies by the scale */
        if (opdi_script_unpickle_value(build, opdi_pickle_get(pickle, how, i == 2 ? ZERO : SCALE), NULL, depth + 1,
                                       &part)) {
            return -1;
        }
        if (part.tag == OPD_TAG_INT || part.tag == OPD_TAG_FLOAT) {
            part = opd_value_double(part.tag == OPD_TAG_INT ? (double)part.u.i : (double)(float)part.u.d);
            floats = i == 2 ? opd_sub_Scalar(floats, part) : opd_mul_Scalar(floats, part);
            continue;
        }
        const int64_t axis = opdi_pickle_is(pickle, axis_at, OPDI_PICKLE_INT)
            ? opdi_pickle_at(pickle, axis_at)->value : -1;
        opd_tensor *each = part.tag == OPD_TAG_TENSOR ? opd_to_dtype(part.u.t, OPD_FLOAT32) : NULL;
        if (!each || opd_ndim(each) != 1 || axis < 0 || axis >= opd_ndim(floats) ||
            opd_numel(each) != opd_size(floats, (int)axis)) {
            return opd_fail(OPD_ERROR_SCHEMA, "the scales and zero points of a quantized tensor of the script do not "
                            "match its sizes");
        }
        for (int64_t k = opd_ndim(floats) - axis - 1; each && k > 0; k--) { each = opd_unsqueeze(each, -1); }
        floats = !each ? NULL : i == 2 ? opd_sub(floats, each) : opd_mul(floats, each);
    }
    if (!floats) { return -1; }
    *value = opd_value_tensor(floats);
    build->made[node] = *value;
    return opd_ok() ? 0 : -1;
}
/* Reads the state of a packed linear layer into `self`: an int8 weight, scale and zero point (one of each, or one for
   each row), and a bias; or a float weight and a bias.  Returns 0, or -1 and sets an error. */
static int opdi_script_unpickle_packed_linear(opdi_script_unpickler *build, uint32_t state, int depth,
                                              opdi_cell *self) {
    const opdi_pickle *pickle = &build->walk.pickle;
    const uint32_t weight = opdi_pickle_get(pickle, state, 0);
    const bool quantized = opdi_pickle_is(pickle, weight, OPDI_PICKLE_QUANTIZED);
    const uint32_t how = quantized ? opdi_pickle_get(pickle, weight, 1) : 0;
    uint32_t parts[OPDI_PACKED_PARTS];
    if (opdi_pickle_is(pickle, weight, OPDI_PICKLE_STRANGE)) { return 0; }
    parts[OPDI_PACKED_WEIGHT] = quantized ? opdi_pickle_get(pickle, weight, 0) : weight;
    parts[OPDI_PACKED_SCALE] = how ? opdi_pickle_get(pickle, how, 1) : 0;
    parts[OPDI_PACKED_ZERO] = how ? opdi_pickle_get(pickle, how, 2) : 0;
    parts[OPDI_PACKED_BIAS] = opdi_pickle_get(pickle, state, 1);
    for (int32_t i = 0; i < OPDI_PACKED_PARTS; i++) {
        opd_value part = opd_value_none();
        if (parts[i] && opdi_script_unpickle_value(build, parts[i], NULL, depth + 1, &part)) { return -1; }
        if (opdi_script_unpickle_attribute(self, i, part)) { return -1; }
    }
    return 0;
}
/* Reads the settings of a packed convolution into *settings: the number of dimensions, and then the values that
   opdi_quantized_conv lists.  In version 2, the settings are an int16 tensor, in version 3 a list.  For other formats,
   sets *settings to None.  Returns 0, or -1 and sets an error. */
static int opdi_script_unpickle_settings(opdi_script_unpickler *build, uint32_t node, int depth, opd_value *settings) {
    opd_value from;
    *settings = opd_value_none();
    if (!node || opdi_script_unpickle_value(build, node, NULL, depth + 1, &from)) { return node ? -1 : 0; }
    const bool tensor = from.tag == OPD_TAG_TENSOR;
    if (tensor && (opd_ndim(from.u.t) != 1 || opd_dtype(from.u.t) != OPD_INT16)) { return 0; }
    if (!tensor && opd_value_cell(from) != OPD_CELL_LIST) { return 0; }
    const int64_t count = tensor ? opd_numel(from.u.t) : opd_list_count(from);
    const opd_value list = opd_list_new(OPD_TAG_INTS);
    for (int64_t i = 1; i < count && i < 32; i++) {
        const opd_value at = tensor ? opd_value_int((int64_t)opd_item_f64(opd_select(from.u.t, 0, i)))
            : opd_list_at(from, i);
        if (at.tag != OPD_TAG_INT) { return 0; }
        (void)opd_list_append(list, i + 1 < count ? at : opd_value_int(at.u.i & 1));      /* the last setting has flags;
                                                                                             bit 0: transposed */
    }
    *settings = list;
    return opd_ok() ? 0 : -1;
}
/* Reads the weights of one direction of a recurrent layer into `self`.  The state is a list: a name, the biases, an
   empty list, a flag that is true if inputs are quantized to 7 bits, and the packed weights, which also contain the
   biases.  Returns 0, or -1 and sets an error. */
static int opdi_script_unpickle_packed_cell(opdi_script_unpickler *build, uint32_t state, int depth, opdi_cell *self) {
    enum { REDUCE = 3, PACKED = 4 };
    const opdi_pickle *pickle = &build->walk.pickle;
    const uint32_t reduce = opdi_pickle_get(pickle, state, REDUCE), packed = opdi_pickle_get(pickle, state, PACKED);
    opd_value part;
    if (!reduce || !packed || !opdi_pickle_is(pickle, reduce, OPDI_PICKLE_LIST) ||
        !opdi_pickle_is(pickle, packed, OPDI_PICKLE_LIST)) { return 0; }
    const uint32_t nodes[] = {opdi_pickle_get(pickle, packed, 0), opdi_pickle_get(pickle, packed, 1),
                              opdi_pickle_get(pickle, reduce, 0)};
    for (int32_t i = 0; i < 3; i++) {
        if (nodes[i] && (opdi_script_unpickle_value(build, nodes[i], NULL, depth + 1, &part) ||
                         opdi_script_unpickle_attribute(self, i, part))) { return -1; }
    }
    return 0;
}
/* Reads the packed weights of a quantized layer into the object `value`.  If their format is unknown, the object
   remains empty, and using it fails later.  Returns 0, or -1 and sets an error. */
static int opdi_script_unpickle_packed(opdi_script_unpickler *build, uint32_t state, int depth, opd_value value) {
    const opdi_pickle *pickle = &build->walk.pickle;
    opdi_cell *const self = opdi_cell_of(&value);
    const bool rows = strcmp(self->klass->name, OPDI_PACKED_EMBEDDING) == 0;
    const uint32_t second = opdi_pickle_get(pickle, state, 1), third = opdi_pickle_get(pickle, state, 2);
    const bool listed = second && opdi_pickle_is(pickle, second, OPDI_PICKLE_LIST);
    const bool old = listed && (rows || opdi_pickle_is(pickle, opdi_pickle_get(pickle, state, 0), OPDI_PICKLE_TEXT));
    uint32_t weight = 0, bias = 0;
    opd_value settings = opd_value_none(), part;
    if (strcmp(self->klass->name, OPDI_PACKED_LINEAR) == 0) {
        return opdi_script_unpickle_packed_linear(build, state, depth, self);
    }
    if (strcmp(self->klass->name, OPDI_PACKED_CELL) == 0) {
        return opdi_script_unpickle_packed_cell(build, state, depth, self);
    }
    if (!listed) { return 0; }
    if (!rows &&
        opdi_script_unpickle_settings(build, old ? opdi_pickle_get(pickle, second, 0) : second, depth, &settings)) {
        return -1;
    }
    if (old) { weight = opdi_pickle_get(pickle, second, rows ? 0 : 1); }
    if (third && !rows && opdi_pickle_is(pickle, third, OPDI_PICKLE_LIST)) {
        if (!old) { weight = opdi_pickle_get(pickle, third, 1); }
        bias = opdi_pickle_get(pickle, third, old ? 0 : 2);
    }
    if (opdi_script_unpickle_attribute(self, OPDI_PACKED_SETTINGS, settings)) { return -1; }
    if (weight && (opdi_script_unpickle_value(build, weight, NULL, depth + 1, &part) ||
                   opdi_script_unpickle_attribute(self, OPDI_PACKED_WEIGHT, part))) { return -1; }
    return bias && (opdi_script_unpickle_value(build, bias, NULL, depth + 1, &part) ||
                    opdi_script_unpickle_attribute(self, OPDI_PACKED_BIAS, part)) ? -1 : 0;
}
/* Returns true if a builtin only moves values: it takes parts of objects, makes objects of parts, packs the weights of
   quantized layers, or compares settings. */
static bool opdi_script_moves(const char *schema) {
    static const char *const all[] = {
        "prim::GetAttr", "prim::SetAttr", "prim::TupleIndex", "prim::TupleUnpack", "prim::Uninitialized",
        "prim::RaiseException", "aten::__getitem__.t", "aten::__getitem__.Dict_str", "aten::__getitem__.Dict_int",
        "aten::eq.str", "aten::ne.str", "aten::eq.int", "aten::ne.int", "aten::__is__", "aten::__isnot__",
        "aten::__not__"};
    const size_t length = strcspn(schema, "(");
    if (strncmp(schema, "quantized::", 11) == 0) {
        const char *const packs = strstr(schema, "_prepack");
        return packs && packs < schema + length;
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strlen(all[i]) == length && memcmp(all[i], schema, length) == 0) { return true; }
    }
    return false;
}
/* Returns the name of something in a block that does more than move values, or NULL if there is nothing.  Such a block
   has no loop, so running it takes no longer than reading it. */
static const char *opdi_script_computes(const opdi_gblock *block) {
    for (const opdi_gnode *node = block->first; node; node = node->next) {
        const char *inside = NULL;
        switch (node->kind) {
        case OPDI_GNODE_OP: return node->op->name;
        case OPDI_GNODE_LOOP: return "prim::Loop";
        case OPDI_GNODE_FUNCTION: return "a function";
        case OPDI_GNODE_BUILTIN:
            if (!opdi_script_moves(node->builtin->schema)) { return node->builtin->schema; }
            break;
        default: break;
        }
        for (int i = 0; i < node->nblocks && !inside; i++) { inside = opdi_script_computes(&node->blocks[i]); }
        if (inside) { return inside; }
    }
    return NULL;
}
/* Restores an object by the method __setstate__ of its class, as torch.jit.load does.  If the archive does not have the
   text of the class, reads packed weights, if it is a class of packed weights.  Otherwise the object remains
   empty, and later uses of its attributes fail.  Returns 0, or -1 and sets an error. */
static int opdi_script_unpickle_state(opdi_script_unpickler *build, uint32_t state, const opdi_script_class *klass,
                                      int depth, opd_value self) {
    opdi_script_function *function = klass ? opdi_script_function_in(&klass->methods, "__setstate__") : NULL;
    opd_value args[2], gave;
    if (!klass) {
        return opdi_packed_class(opdi_cell_of(&self)->klass->name)
            ? opdi_script_unpickle_packed(build, state, depth, self)
            : 0;
    }
    if (!function || !opdi_script_compiled(build->script, function) || function->nformals != 2) {
        return !opd_ok() ? -1 : opd_fail(OPD_ERROR_SCHEMA, "an object of %s has its own state, but no __setstate__ "
                                         "with one argument", klass->gclass->name);
    }
    const char *const computes = build->script->run_setstate ? NULL : opdi_script_computes(&function->graph->body);
    if (computes) {
        return opd_fail(OPD_ERROR_FORBIDDEN, "an object of %s is restored by a method __setstate__ that calls %.*s.  "
                        "To let loading run code of the archive, set run_setstate of opd_script_load_with",
                        klass->gclass->name, (int)strcspn(computes, "("), computes);
    }
    args[0] = self;
    if (opdi_script_unpickle_value(build, state, function->formals[1].type, depth + 1, &args[1])) { return -1; }
    return opdi_script_call(build->script, function, args, &gave);
}
/* Makes an object of the class that the pickle names, with the attributes in its state, and sets *value to it.  Returns
   0, or -1 and sets an error. */
static int opdi_script_unpickle_object(opdi_script_unpickler *build, uint32_t node, int depth, opd_value *value) {
    const opdi_pickle *pickle = &build->walk.pickle;
    opd_script *script = build->script;
    const char *name = opdi_script_unpickle_class(build, node);
    const uint32_t state = opdi_pickle_get(pickle, node, 2);
    opdi_script_class *klass = name ? opdi_script_class_find(script, name) : NULL;
    if (!opd_ok() || !name || (klass && !opdi_script_class_resolve(script, klass))) { return -1; }
    opdi_gclass *gclass = klass ? klass->gclass : opdi_gclass_find(script->space, name);
    if (!gclass) {
        if (!(gclass = opdi_gclass_new(script->space, name, OPDI_CLASS_OBJECT))) { return -1; }
        gclass->open = true;
    }
    if (gclass->kind == OPDI_CLASS_NAMEDTUPLE) {
        return opd_fail(OPD_ERROR_SCHEMA, "%s is not a class of objects", name);
    }
    if (gclass->kind == OPDI_CLASS_ENUM) { return opdi_script_unpickle_enum(build, state, klass, depth, value); }
    const bool own = (klass && opdi_script_function_in(&klass->methods, "__setstate__")) ||
        !opdi_pickle_is(pickle, state, OPDI_PICKLE_DICT);
    if (own) { gclass->open = false; }
    if (own && !klass && opdi_packed_class(name) && opdi_packed_names(gclass)) { return -1; }
    if (gclass->open && opdi_script_unpickle_names(build, state, gclass)) { return -1; }
    opdi_cell *cell = opdi_object_new(gclass);
    if (!cell) { return -1; }
    *value = opdi_cell_own(cell);
    opdi_script_unpickle_begin(build, node, value);
    if (own) {
        return opd_ok() ? opdi_script_unpickle_state(build, state, klass, depth, *value) : -1;
    }
    for (uint32_t item = opdi_pickle_first(pickle, state); opd_ok() && item;) {
        const opdi_pickle_item *key = opdi_pickle_item_at(pickle, item);
        const opdi_pickle_item *its = key->next ? opdi_pickle_item_at(pickle, key->next) : NULL;
        const opdi_pickle_node *text = opdi_pickle_at(pickle, key->node);
        char word[256];
        opd_value part;
        if (!its || text->kind != OPDI_PICKLE_TEXT || (size_t)text->value >= sizeof word) {
            return opd_fail(OPD_ERROR_SCHEMA, "an object of %s has an attribute without a name", name);
        }
        memcpy(word, build->walk.pickled->data + text->text, (size_t)text->value);
        word[text->value] = 0;
        const int32_t slot = opdi_gclass_slot(gclass, word);
        if (slot < 0 || slot >= cell->count) {
            return opd_fail(OPD_ERROR_SCHEMA, "the class %s has no attribute '%s'", name, word);
        }
        if (opdi_script_unpickle_value(build, its->node, gclass->attributes[slot].type, depth + 1, &part) ||
            opdi_script_unpickle_attribute(cell, slot, part)) { return -1; }
        item = opdi_pickle_item_at(pickle, key->next)->next;
    }
    return opd_ok() ? 0 : -1;
}
static int opdi_script_unpickle_tensor(opdi_script_unpickler *build, uint32_t node, opd_value *value) {
    opdi_file_entry named;
    memset(&named, 0, sizeof named);
    named.where = OPDI_NOWHERE;
    build->walk.path.length = 0;
    if (opdi_checkpoint_tensor(&build->walk, node, &named)) { return -1; }
    opd_tensor *tensor = opdi_checkpoint_read(build->walk.file, &named, 0);
    if (!tensor) { return -1; }
    if (named.grad && opd_dtype_is_floating(opd_dtype(tensor))) { opd_tensor_set_requires_grad(tensor, true); }
    *value = opd_value_tensor(tensor);
    build->made[node] = *value;
    return opd_ok() ? 0 : -1;
}
/* Sets *value to the value of a node.  `type` is the type that the value should have, or NULL.  Returns 0, or -1 and
   sets an error. */
static int opdi_script_unpickle_value(opdi_script_unpickler *build, uint32_t node, const opdi_gtype *type, int depth,
                                      opd_value *value) {
    const opdi_pickle *pickle = &build->walk.pickle;
    *value = opd_value_none();
    if (opdi_node_denied()) { return -1; }
    if (!node || node >= build->nodes || depth > opdi_depth_most(OPDI_SCRIPT_BUILD_DEPTH) ||
        ++build->steps > 10000 + 16 * (uint64_t)pickle->at) {
        return opd_fail(OPD_ERROR_SCHEMA, "the pickle of the script is nested too deep, or makes too many objects");
    }
    if (type && type->kind == OPDI_GTYPE_OPTIONAL) { type = type->parts[0]; }
    if (build->made[node].tag != OPD_TAG_NONE) {
        *value = build->made[node];
        return value->n != OPDI_SCRIPT_UNPICKLE_BUSY
            ? 0 : opd_fail(OPD_ERROR_SCHEMA, "a value of the script contains itself");
    }
    const opdi_pickle_node *its = opdi_pickle_at(pickle, node);
    int rc = -1;
    switch (its->kind) {
    case OPDI_PICKLE_NONE: return 0;
    case OPDI_PICKLE_BOOL: *value = opd_value_bool(its->value != 0); return 0;
    case OPDI_PICKLE_INT:
        *value = type && type->kind == OPDI_GTYPE_FLOAT
            ? opd_value_double((double)its->value) : opd_value_int(its->value);
        return 0;
    case OPDI_PICKLE_FLOAT: *value = opd_value_double(opdi_pickle_float_of(its)); return 0;
    case OPDI_PICKLE_TEXT:
        *value = opd_string_new((const char *)build->walk.pickled->data + its->text, its->value);
        return opd_ok() ? 0 : -1;
    case OPDI_PICKLE_LIST: rc = opdi_script_unpickle_list(build, node, type, depth, value); break;
    case OPDI_PICKLE_TUPLE: return opdi_script_unpickle_tuple(build, node, type, depth, value);
    case OPDI_PICKLE_DICT: rc = opdi_script_unpickle_dict(build, node, type, depth, value); break;
    case OPDI_PICKLE_OBJECT: rc = opdi_script_unpickle_object(build, node, depth, value); break;
    case OPDI_PICKLE_TENSOR: return opdi_script_unpickle_tensor(build, node, value);
    case OPDI_PICKLE_QUANTIZED: return opdi_script_unpickle_quantized(build, node, depth, value);
    case OPDI_PICKLE_DEVICE: *value = opd_value_device(opd_device_make(OPD_CPU, -1)); return 0;
    case OPDI_PICKLE_COMPLEX: {
        double pair[2] = {0, 0};
        for (int i = 0; i < 2; i++) {
            pair[i] = opdi_pickle_float_of(opdi_pickle_at(pickle, opdi_pickle_get(pickle, node, i)));
        }
        opd_value number = opd_value_complex(pair);
        if (opdi_value_hold(&number)) { return -1; }
        *value = opdi_value_own(number);
        return opd_ok() ? 0 : -1;
    }
    default: return opd_fail(OPD_ERROR_SCHEMA, "the script has a value of a kind that is not supported");
    }
    build->made[node].n = 0;
    return rc;
}
/* Reads the pickle `name` of the archive, and sets *value to a new reference to its value.  The tensors of the value
   are in `folder`.  Returns 0, or -1 and sets an error. */
static int opdi_script_archive_pickle(opd_script *script, const char *name, const char *folder, opd_value *value) {
    opdi_script_archive *archive = script->archive;
    const int64_t i = opdi_script_archive_find(archive, name);
    opdi_script_unpickler build;
    opdi_source source;
    unsigned char *own;
    size_t at = 0;
    if (i < 0) { return opdi_bad(&archive->file->source, OPDI_NOWHERE, "there is no %s in the archive", name); }
    if (opdi_zip_bytes(archive->file, opdi_file_entry_of(archive->file, i), 1, &source, &own)) { return -1; }
    memset(&build, 0, sizeof build);
    build.script = script;
    build.walk.file = archive->file;
    build.walk.pickled = &source;
    build.walk.root = archive->root;
    build.walk.root_bytes = strlen(archive->root);
    build.walk.folder = folder;
    const uint32_t tree = opdi_pickle_read_as(&build.walk.pickle, &source, &at, true);
    build.nodes = build.walk.pickle.nodes.length / sizeof(opdi_pickle_node);
    const size_t bytes = (build.nodes + 1) * sizeof *build.made;
    build.made = tree ? (opd_value *)opdi_alloc(bytes) : NULL;
    int rc = build.made ? 0 : -1;
    if (build.made) { memset(build.made, 0, bytes); }
    OPD_SCOPE {
        rc = rc || opdi_script_unpickle_value(&build, tree, NULL, 0, value) ? -1 : 0;
        if (!rc && opdi_value_hold(value)) { *value = opd_value_none(); }
    }
    opdi_free(build.made, build.made ? bytes : 0);
    opdi_pickle_free(&build.walk.pickle);
    opdi_string_free(&build.walk.path);
    opdi_free(own, source.length);
    if (rc) { *value = opd_value_none(); }
    return rc || !opd_ok() ? -1 : 0;
}

//== loading ===========================================================================================================

/* Opens the zip file `source` as an archive.  Returns 0, or -1 and sets an error. */
static int opdi_script_archive_open(opdi_script_archive *archive, opdi_file_buffer *buffer, const opdi_source *source) {
    opd_tensor_file *file = (opd_tensor_file *)opdi_alloc(sizeof *file);
    if (!file) {
        opdi_file_buffer_drop(buffer);
        return -1;
    }
    memset(file, 0, sizeof *file);
    file->bytes = buffer;
    file->source = *source;
    archive->file = file;
    if (!opdi_is_zip(source)) { return opdi_bad(&file->source, 0, "this is not an archive of torch.jit.save"); }
    if (opdi_zip_parse(file)) { return -1; }
    for (int64_t i = 0; i < file->count && !archive->root; i++) {
        const char *name = opdi_file_entry_name(file, i), *slash = strchr(name, '/');
        if (slash && strcmp(slash, "/data.pkl") == 0) {
            archive->root = opdi_arena_copy(&archive->arena, name, (size_t)(slash - name + 1));
            if (!archive->root) { return -1; }
        }
    }
    if (!archive->root) { return opdi_bad(&file->source, OPDI_NOWHERE, "there is no data.pkl in the archive"); }
    for (int64_t k = 0; k < file->count; k++) { opdi_file_entry_of(file, k)->row = 0; }
    file->members = file->entries;                 /* storages are looked up among the members */
    file->storages = (opd_tensor **)opdi_alloc((size_t)(file->count + 1) * sizeof *file->storages);
    if (!file->storages) { return -1; }
    file->nstorages = file->count + 1;
    memset(file->storages, 0, (size_t)(file->count + 1) * sizeof *file->storages);
    return opdi_checkpoint_order(file, archive->root, strlen(archive->root));
}
/* Reads the version of the archive's format.  Returns 0, or -1 and sets an error. */
static int opdi_script_archive_version(opd_script *script) {
    const opdi_script_archive *archive = script->archive;
    int64_t i = opdi_script_archive_find(archive, ".data/version");
    opdi_source source;
    unsigned char *own;
    if (i < 0) { i = opdi_script_archive_find(archive, "version"); }
    script->version = OPDI_SCRIPT_VERSION;
    if (i < 0) { return 0; }
    if (opdi_zip_bytes(archive->file, opdi_file_entry_of(archive->file, i), 1, &source, &own)) { return -1; }
    int64_t version = 0;
    size_t at = 0;
    while (at < source.length && at < 9 && opdi_is_digit((char)source.data[at])) {
        version = 10 * version + (source.data[at++] - '0');
    }
    const bool number = at > 0 && (at == source.length || source.data[at] == '\n');
    opdi_free(own, source.length);
    if (!number) {
        return opdi_bad(&archive->file->source, OPDI_NOWHERE, "the version of the archive is not a number");
    }
    if (version < 1 || version > OPDI_SCRIPT_VERSION) {
        return opdi_bad(&archive->file->source, OPDI_NOWHERE, "the archive has version %lld, but only versions 1 to %d "
                        "can be read", (long long)version, OPDI_SCRIPT_VERSION);
    }
    script->version = (int)version;
    return 0;
}
/* Reads the constants and the object of the archive.  Returns 0, or -1 and sets an error. */
static int opdi_script_read(opd_script *script) {
    opdi_string path = {NULL, 0, 0, false};
    if (opdi_script_archive_version(script)) { return -1; }
    if (opdi_script_archive_find(script->archive, "constants.pkl") >= 0 &&
        opdi_script_archive_pickle(script, "constants.pkl", "constants/", &script->constants)) { return -1; }
    if (opdi_script_archive_pickle(script, "data.pkl", "data/", &script->self)) { return -1; }
    if (opd_value_cell(script->self) != OPD_CELL_OBJECT) {
        return opdi_bad(&script->archive->file->source, OPDI_NOWHERE, "the archive has no module");
    }
    const int rc = opdi_script_bind(script, opdi_cell_of(&script->self), &path, 0);
    opdi_string_free(&path);
    return rc;
}

//== saving ============================================================================================================
//
//  Objects are pickled as torch.jit.save does.  Texts and constants are copied from the file that was loaded.

OPDI_INTERNAL int opdi_script_pickle_value(opdi_script_pickler *saving, const opd_value *value, const opdi_gtype *type,
                                           int depth);
/* If the object `what` was written before, writes a reference to it and returns true.  Otherwise sets *number to the
   number that the object will have, and returns false. */
static bool opdi_script_pickle_again(opdi_script_pickler *saving, const void *what, int64_t *number) {
    const int64_t was = saving->seen.count;
    *number = opdi_pointer_set_add(&saving->seen, (uintptr_t)what);
    if (*number < 0 || *number == was) { return false; }
    opdi_pickle_put_le(&saving->writer, 'j', (uint64_t)*number, 4);
    return true;
}
/* Writes that the last value has the number `number`, so that later values can refer to it.  Returns 0, or -1 and sets
   an error. */
static int opdi_script_pickle_number(opdi_script_pickler *saving, int64_t number) {
    if (number < 0) { return -1; }
    opdi_pickle_put_le(&saving->writer, 'r', (uint64_t)number, 4);
    return saving->writer.pickle.failed ? -1 : 0;
}
OPDI_INTERNAL void opdi_script_pickle_global(opdi_script_pickler *saving, const char *module, size_t length,
                                             const char *name) {
    opdi_pickle_put(&saving->writer, 'c');
    opdi_string_add_n(&saving->writer.pickle, module, length);
    opdi_pickle_put(&saving->writer, '\n');
    opdi_string_add(&saving->writer.pickle, name);
    opdi_pickle_put(&saving->writer, '\n');
}
/* Returns the name of the function in torch.jit._pickle that builds lists of type `type`, or NULL if there is none. */
static const char *opdi_script_pickle_builder(const opdi_cell *cell, const opdi_gtype *type) {
    const opdi_gtype *element = type && type->kind == OPDI_GTYPE_LIST ? type->parts[0] : NULL;
    const int kind = element ? element->kind : cell->tag == OPD_TAG_INTS ? OPDI_GTYPE_INT : cell->tag == OPD_TAG_FLOATS
        ? OPDI_GTYPE_FLOAT : cell->tag == OPD_TAG_BOOLS ? OPDI_GTYPE_BOOL : cell->tag == OPD_TAG_TENSORS
        ? OPDI_GTYPE_TENSOR
        : OPDI_GTYPE_ANY;
    return kind == OPDI_GTYPE_INT ? "build_intlist" : kind == OPDI_GTYPE_FLOAT ? "build_doublelist"
        : kind == OPDI_GTYPE_BOOL ? "build_boollist" : kind == OPDI_GTYPE_TENSOR ? "build_tensorlist" : NULL;
}
/* Writes a list or dict with its type, in the form from which torch.jit._pickle restores it.  Returns 0, or -1 and sets
   an error. */
static int opdi_script_pickle_many(opdi_script_pickler *saving, const opdi_cell *cell, const opdi_gtype *type,
                                   int depth) {
    static const char module[] = "torch.jit._pickle";
    const bool dict = cell->kind == OPD_CELL_DICT,
        known = type && type->kind == (dict ? OPDI_GTYPE_DICT : OPDI_GTYPE_LIST);
    const char *const builder = dict ? NULL : opdi_script_pickle_builder(cell, type);
    opdi_checkpoint_writer *writer = &saving->writer;
    char said[1000];
    if (builder || known) {
        opdi_script_pickle_global(saving, module, sizeof module - 1, builder ? builder : "restore_type_tag");
        opdi_pickle_put(writer, '(');
    }
    opdi_string_add(&writer->pickle, dict ? "}(" : "](");
    for (int64_t i = 0; i < cell->count; i++) {
        const opd_value value = dict ? cell->u.values[2 * i] : opdi_cell_at(cell, i);
        if (opdi_script_pickle_value(saving, &value, known ? type->parts[0] : NULL, depth + 1) ||
            (dict &&
             opdi_script_pickle_value(saving, &cell->u.values[2 * i + 1], known ? type->parts[1] : NULL, depth + 1))) {
            return -1;
        }
    }
    opdi_pickle_put(writer, dict ? 'u' : 'e');
    if (!builder && known) {
        (void)opdi_emit_type_text(type, said, sizeof said);
        if (opdi_pickle_put_text(writer, said, strlen(said))) { return -1; }
    }
    if (builder || known) { opdi_string_add(&writer->pickle, "tR"); }
    return writer->pickle.failed ? -1 : 0;
}
/* Writes the state of an object: the value that the method __getstate__ of its class returns, as torch.jit.save does.
   The value belongs to the innermost scope.  Returns 0, or -1 and sets an error. */
static int opdi_script_pickle_state(opdi_script_pickler *saving, const opdi_cell *cell, opdi_script_function *function,
                                    int depth) {
    opd_value self = opd_value_none(), state;
    self.tag = OPD_TAG_CELL;
    self.u.object = (void *)(uintptr_t)cell;
    if (!opdi_script_compiled(saving->script, function) || function->nformals != 1) {
        return !opd_ok() ? -1 : opd_fail(OPD_ERROR_SCHEMA, "an object of %s cannot be saved: its __getstate__ has "
                                         "arguments", cell->klass->name);
    }
    if (opdi_script_call(saving->script, function, &self, &state) ||
        opdi_script_pickle_value(saving, &state, function->result, depth + 1)) { return -1; }
    opdi_pickle_put(&saving->writer, 'b');
    return saving->writer.pickle.failed ? -1 : 0;
}
/* Writes an object with its attributes or, if its class has __getstate__, with the state that __getstate__ returns.
   Returns 0, or -1 and sets an error. */
static int opdi_script_pickle_object(opdi_script_pickler *saving, const opdi_cell *cell, int depth) {
    const opdi_gclass *gclass = cell->klass;
    const opdi_script_class *klass = (const opdi_script_class *)gclass->user;
    const char *const dot = strrchr(gclass->name, '.');
    opdi_script_function *const own = klass ? opdi_script_function_in(&klass->methods, "__getstate__") : NULL;
    int64_t number;
    if (!dot || (!klass && (!gclass->nattributes || gclass->attributes[0].name[0] == '('))) {
        return opdi_bad(&saving->writer.source, OPDI_NOWHERE, "an object of %s cannot be saved: its class is not known",
                        gclass->name);
    }
    if (opdi_script_pickle_again(saving, cell, &number)) { return 0; }
    opdi_script_pickle_global(saving, gclass->name, (size_t)(dot - gclass->name), dot + 1);
    if (gclass->kind == OPDI_CLASS_ENUM && cell->count == 2) {             /* an enum member is written as its value */
        if (opdi_script_pickle_value(saving, &cell->u.values[1], NULL, depth + 1)) { return -1; }
        opdi_pickle_put(&saving->writer, 'R');
        return opdi_script_pickle_number(saving, number);
    }
    opdi_string_add(&saving->writer.pickle, ")\x81");
    if (opdi_script_pickle_number(saving, number)) { return -1; }
    if (own) { return opdi_script_pickle_state(saving, cell, own, depth); }
    opdi_string_add(&saving->writer.pickle, "}(");
    for (int32_t i = 0; i < gclass->nattributes && i < cell->count; i++) {
        const char *const name = gclass->attributes[i].name;
        const opd_value value = opdi_cell_at(cell, i);
        if (opdi_pickle_put_text(&saving->writer, name, strlen(name)) ||
            opdi_script_pickle_value(saving, &value, gclass->attributes[i].type, depth + 1)) { return -1; }
    }
    opdi_string_add(&saving->writer.pickle, "ub");
    return saving->writer.pickle.failed ? -1 : 0;
}
static int opdi_script_pickle_cell(opdi_script_pickler *saving, const opdi_cell *cell, const opdi_gtype *type,
                                   int depth) {
    opdi_checkpoint_writer *writer = &saving->writer;
    const bool known = type && type->kind == OPDI_GTYPE_TUPLE && type->nparts == cell->count;
    int64_t number;
    switch (cell->kind) {
    case OPD_CELL_STR: return opdi_pickle_put_text(writer, cell->u.text, (size_t)cell->count);
    case OPD_CELL_OBJECT: return opdi_script_pickle_object(saving, cell, depth);
    case OPD_CELL_COMPLEX:
        opdi_string_add(&writer->pickle, "cbuiltins\ncomplex\n(");
        opdi_pickle_put_float(writer, cell->u.pair[0]);
        opdi_pickle_put_float(writer, cell->u.pair[1]);
        opdi_string_add(&writer->pickle, "tR");
        return writer->pickle.failed ? -1 : 0;
    case OPD_CELL_TUPLE:
        opdi_pickle_put(writer, '(');
        for (int64_t i = 0; i < cell->count; i++) {
            const opd_value value = opdi_cell_at(cell, i);
            if (opdi_script_pickle_value(saving, &value, known ? type->parts[i] : NULL, depth + 1)) { return -1; }
        }
        opdi_pickle_put(writer, 't');
        return writer->pickle.failed ? -1 : 0;
    default:
        if (opdi_script_pickle_again(saving, cell, &number)) { return 0; }
        return opdi_script_pickle_many(saving, cell, type, depth) || opdi_script_pickle_number(saving, number) ? -1 : 0;
    }
}
/* Writes a value.  `type` is its static type, or NULL if it is unknown.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_script_pickle_value(opdi_script_pickler *saving, const opd_value *value, const opdi_gtype *type,
                                           int depth) {
    char text[64];
    int64_t number;
    if (type && type->kind == OPDI_GTYPE_OPTIONAL) { type = type->parts[0]; }
    if (depth > OPDI_SCRIPT_BUILD_DEPTH) {
        return opdi_bad(&saving->writer.source, OPDI_NOWHERE, "objects are nested too deep");
    }
    switch ((opd_tag)value->tag) {
    case OPD_TAG_CELL: return opdi_script_pickle_cell(saving, opdi_cell_of(value), type, depth);
    case OPD_TAG_TENSOR:
        if (opdi_script_pickle_again(saving, value->u.t, &number)) { return 0; }
        if (number < 0 || opdi_checkpoint_number(&saving->writer, value->u.t)) { return -1; }
        return opdi_pickle_put_tensor(&saving->writer, value->u.t) || opdi_script_pickle_number(saving, number)
            ? -1 : 0;
    case OPD_TAG_DEVICE:
        (void)opdi_device_text(value->u.device, text, sizeof text);
        opdi_string_add(&saving->writer.pickle, "ctorch\ndevice\n(");
        (void)opdi_pickle_put_text(&saving->writer, text, strlen(text));
        opdi_string_add(&saving->writer.pickle, "tR");
        return saving->writer.pickle.failed ? -1 : 0;
    case OPD_TAG_COMPLEX: case OPD_TAG_INTS: case OPD_TAG_FLOATS: case OPD_TAG_BOOLS: case OPD_TAG_TENSORS:
    case OPD_TAG_LIST: {
        opd_value held = *value;
        if (opdi_value_hold(&held)) { return -1; }
        const int rc = held.tag == OPD_TAG_CELL
            ? opdi_script_pickle_cell(saving, opdi_cell_of(&held), type, depth) : -1;
        opdi_value_drop(held);
        return rc;
    }
    default: return opdi_pickle_put_value(&saving->writer, value);
    }
}
/* Copies those entries of the loaded file to `zip` that are neither objects nor tensors of objects.  Returns 0, or -1
   and sets an error. */
static int opdi_script_copy_entries(const opdi_script_archive *archive, opdi_zip_writer *zip) {
    const size_t root = strlen(archive->root);
    char full[1600];
    for (int64_t i = 0; i < archive->file->count; i++) {
        const char *const name = opdi_file_entry_name(archive->file, i);
        opdi_source source;
        unsigned char *own;
        if (strncmp(name, archive->root, root) != 0 || strcmp(name + root, "data.pkl") == 0 ||
            strncmp(name + root, "data/", 5) == 0 || strcmp(name + root, ".data/serialization_id") == 0) { continue; }
        if ((size_t)snprintf(full, sizeof full, "archive/%s", name + root) >= sizeof full) {
            return opdi_bad(&archive->file->source, OPDI_NOWHERE, "a name is too long");
        }
        if (opdi_zip_bytes(archive->file, opdi_file_entry_of(archive->file, i), 1, &source, &own)) { return -1; }
        const int rc = opdi_zip_add(zip, full, source.data, source.length);
        opdi_free(own, source.length);
        if (rc) { return -1; }
    }
    return 0;
}
/* Writes the pickle, the tensors, and then the text `code` or, if `archive` is not NULL, the entries of this archive.
   Returns 0, or -1 and sets an error. */
static int opdi_script_write_file(const opdi_script_archive *archive, opdi_script_pickler *saving,
                                  const opdi_string *code, opdi_zip_writer *zip) {
    if (opdi_zip_add(zip, "archive/data.pkl", saving->writer.pickle.data, saving->writer.pickle.length)) { return -1; }
    for (int64_t i = 0; i < saving->writer.storages.count; i++) {
        if (opdi_checkpoint_put(zip, (opdi_storage *)saving->writer.storages.at[i], i,
                                ((const int *)(void *)saving->writer.dtypes.data)[i])) { return -1; }
    }
    return archive ? opdi_script_copy_entries(archive, zip) : opdi_script_entries(code, zip);
}
/* Ends a pickle, and writes the file, unless `rc` is -1; see opdi_script_write_file.  Frees the memory of `saving`.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_script_write_all(opdi_script_pickler *saving, const opdi_script_archive *archive,
                                        const opdi_string *code, int rc) {
    opdi_sink sink;
    opdi_pickle_put(&saving->writer, '.');
    for (int64_t i = 0; rc == 0 && i < saving->writer.storages.count; i++) {
        if (((const int *)(void *)saving->writer.dtypes.data)[i] < 0) {
            rc = opdi_bad(&saving->writer.source, OPDI_NOWHERE, "tensors of several dtypes share their memory, or a "
                          "dtype has no class of storages");
        }
    }
    if (rc == 0 && (saving->writer.pickle.failed || code->failed)) { rc = -1; }
    if (rc == 0 && (rc = opdi_sink_open(&sink, saving->writer.source.who, saving->writer.source.path)) == 0) {
        opdi_zip_writer zip;
        opdi_zip_writer_init(&zip, &sink);
        rc = opdi_zip_close(&zip, opdi_script_write_file(archive, saving, code, &zip));
        rc = opdi_sink_close(&sink, rc);
    }
    opdi_string_free(&saving->writer.pickle);
    opdi_string_free(&saving->writer.dtypes);
    opdi_pointer_set_free(&saving->writer.storages);
    opdi_pointer_set_free(&saving->seen);
    return rc ? -1 : 0;
}
/* Writes a script to the file `path`, with the current state of its objects.  The script is a loaded archive, or has a
   module that its source text defines.  Returns 0, or -1 and sets an error. */
static int opdi_script_archive_save(const opd_script *script, const char *path) {
    opdi_string code = {NULL, 0, 0, false};
    opdi_script_pickler saving;
    opd_scope scope = opd_scope_open();            /* owns the values that __getstate__ methods return */
    memset(&saving, 0, sizeof saving);
    saving.script = (opd_script *)(uintptr_t)script;
    saving.writer.source.who = "opd_script_save";
    saving.writer.source.path = path;
    opdi_string_add(&saving.writer.pickle, "\x80\x02");
    int rc = opdi_script_pickle_value(&saving, &script->self, NULL, 0);
    if (rc == 0 && !script->archive) { rc = opdi_script_code(script, NULL, &code); }
    rc = opdi_script_write_all(&saving, script->archive, &code, rc);
    opdi_string_free(&code);
    opd_scope_close(&scope);
    return rc ? -1 : 0;
}
int opd_script_save(const opd_script *script, const char *path) {
    if (!opd_ok()) { return -1; }
    if (!script || !path) { return opd_fail(OPD_ERROR_ARGUMENT, "opd_script_save: the script or path is NULL"); }
    if (script->changed) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_script_save: a graph of the script was changed "
                        "(opd_script_set_graph); only a script as it was loaded or compiled can be saved");
    }
    if (opd_value_cell(script->self) != OPD_CELL_OBJECT) { return opdi_script_save_functions(script, path); }
    return opdi_script_sync((opd_script *)(uintptr_t)script, true) ? -1 : opdi_script_archive_save(script, path);
}
static opd_script *opdi_script_open(opdi_file_buffer *buffer, const opdi_source *source,
                                    const opd_script_options *options) {
    opd_script *script = opdi_script_new();
    opdi_script_archive *archive = script ? (opdi_script_archive *)opdi_alloc(sizeof *archive) : NULL;
    if (!archive) {
        opd_script_free(script);
        opdi_file_buffer_drop(buffer);
        return NULL;
    }
    memset(archive, 0, sizeof *archive);
    script->archive = archive;
    script->run_setstate = options && options->run_setstate;
    script->let_go = opdi_script_archive_free;
    script->find = opdi_script_archive_unit;
    if (opdi_script_archive_open(archive, buffer, source) == 0 && (script->module = opd_module_new()) != NULL &&
        opdi_script_read(script) == 0) { return script; }
    opd_script_free(script);
    return NULL;
}
opd_script *opd_script_load(const char *path) { return opd_script_load_with(path, NULL); }
opd_script *opd_script_load_with(const char *path, const opd_script_options *options) {
    OPDI_NEEDS_ALL();
    opdi_source source;
    opdi_file_buffer *buffer = opdi_file_buffer_open(&source, "opd_script_load", path, opdi_safetensors_length);
    return buffer ? opdi_script_open(buffer, &source, options) : NULL;
}
opd_script *opd_script_from_bytes(const void *data, size_t size) {
    return opd_script_from_bytes_with(data, size, NULL);
}
opd_script *opd_script_from_bytes_with(const void *data, size_t size, const opd_script_options *options) {
    OPDI_NEEDS_ALL();
    opdi_source source = {"opd_script_from_bytes", "memory", /* entry, data, length */ NULL, NULL, 0};
    opdi_file_buffer *buffer = opd_ok() && data ? opdi_file_buffer_new() : NULL;
    if (!buffer) { return NULL; }
    if (opdi_file_buffer_reserve(buffer, size ? size : 1)) {
        opdi_file_buffer_drop(buffer);
        return NULL;
    }
    memcpy(buffer->data, data, size);
    buffer->length = size;
    source.data = buffer->data;
    source.length = size;
    return opdi_script_open(buffer, &source, options);
}
