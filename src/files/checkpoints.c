#include "files.h"

//== checkpoints: files that torch.save writes =========================================================================
//
//  A checkpoint is a zip file with a pickle, data.pkl, of nested dicts, lists and tuples, and with one entry for the
//  bytes of each storage.  The entries of the zip file become "members" here.  Each leaf of the pickle's tree becomes
//  an entry, named by the path to it: "model/0.weight", "epoch".

#define OPDI_MODULE_KEYS 64      /* _parameters and _modules are among the first attributes of a module */
#define OPDI_FOREIGN (-3)        /* a value of opdi_file_entry.strange: the entry is of an unknown class, whose name is
                                    the entry's value (a text) */

static opdi_file_entry *opdi_member_of(const opd_tensor_file *file, int64_t i) {
    return (opdi_file_entry *)(void *)file->members.data + i;
}
/* Returns the index of the zip file's entry that contains the storage with this key, or -1 and sets an error. */
static int64_t opdi_checkpoint_member(opdi_checkpoint_walk *walk, uint32_t key) {
    const opdi_pickle_node *node = opdi_pickle_at(&walk->pickle, key);
    opdi_string name = {NULL, 0, 0, false};
    opdi_string_add_n(&name, walk->root, walk->root_bytes);
    opdi_string_add(&name, walk->folder);
    opdi_string_add_n(&name, (const char *)walk->pickled->data + node->text, (size_t)node->value);
    int64_t i = name.failed ? -1 : opdi_tensor_file_find(walk->file, name.data, name.length);
    if (i < 0 && opd_ok()) {
        (void)opdi_bad(&walk->file->source, OPDI_NOWHERE, "the storage '%.100s' is not in the file", name.data);
    }
    if (i >= 0 && opdi_pickle_work(&walk->pickle, (uint64_t)node->value)) { i = -1; }
    opdi_string_free(&name);
    return i >= 0 && walk->file->zip && opdi_zip_check(&walk->file->source, opdi_file_entry_of(walk->file, i)) ? -1 : i;
}
/* Appends the numbers in a list or tuple to walk->file->dims.  Returns how many numbers there are, or -1 and sets an
   error. */
static int opdi_checkpoint_dims(opdi_checkpoint_walk *walk, uint32_t list) {
    const int64_t count = opdi_pickle_count(&walk->pickle, list);
    if (!opdi_pickle_is(&walk->pickle, list, OPDI_PICKLE_TUPLE) &&
        !opdi_pickle_is(&walk->pickle, list, OPDI_PICKLE_LIST)) {
        return opdi_bad(walk->pickled, OPDI_NOWHERE, "the sizes or strides of a tensor are not a tuple");
    }
    if (count > OPD_MAX_DIMS) {
        return opdi_bad(walk->pickled, OPDI_NOWHERE, "a tensor has %lld dimensions, but at most %d are supported",
                        (long long)count, OPD_MAX_DIMS);
    }
    const opdi_pickle *pickle = &walk->pickle;
    for (uint32_t item = opdi_pickle_first(pickle, list); item; item = opdi_pickle_item_at(pickle, item)->next) {
        const opdi_pickle_node *size = opdi_pickle_at(&walk->pickle, opdi_pickle_item_at(&walk->pickle, item)->node);
        if (size->kind != OPDI_PICKLE_INT || size->value < 0) {
            return opdi_bad(walk->pickled, OPDI_NOWHERE, "a size or stride is not a number, or is negative");
        }
        opdi_string_add_n(&walk->file->dims, (const char *)(const void *)&size->value, sizeof size->value);
    }
    return walk->file->dims.failed ? -1 : (int)count;
}
/* Sets `row` of a member to `bytes`, the size of each number in the member.  (Reversing the byte order needs this
   size.) Returns 0, or -1 and sets an error if the byte order must be reversed and `row` already is another size. */
static int opdi_checkpoint_part(opdi_checkpoint_walk *walk, int64_t member, int bytes) {
    opdi_file_entry *named = opdi_file_entry_of(walk->file, member);
    if (walk->file->swap && named->row && named->row != bytes) {
        return opdi_bad(walk->pickled, OPDI_NOWHERE, "a storage in the other byte order has elements of %d bytes and "
                        "of %d bytes", named->row, bytes);
    }
    named->row = bytes;
    return 0;
}
/* Makes the entry `named` describe the tensor of a node, or a tensor of a whole storage if the node is a storage.
   Checks that the tensor lies within its storage.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_checkpoint_tensor(opdi_checkpoint_walk *walk, uint32_t node, opdi_file_entry *named) {
    const opdi_pickle *pickle = &walk->pickle;
    const bool whole = opdi_pickle_is(pickle, node, OPDI_PICKLE_STORAGE);
    const uint32_t storage = whole ? node : opdi_pickle_get(pickle, node, 0);
    const uint32_t offset = opdi_pickle_get(pickle, node, 1);
    const int64_t type = opdi_pickle_at(pickle, opdi_pickle_get(pickle, storage, 0))->value;
    const int64_t word = whole ? type : opdi_pickle_at(pickle, opdi_pickle_get(pickle, node, 4))->value;
    const int64_t elements = opdi_pickle_at(pickle, opdi_pickle_get(pickle, storage, 2))->value;
    const opd_scalar_type dtype = opdi_pickle_globals[word].dtype;
    const int64_t size = opdi_pickle_globals[word].bytes;
    int64_t at = 0;
    int strides = 1;
    if (!whole && !opdi_pickle_is(pickle, offset, OPDI_PICKLE_INT)) {
        return opdi_bad(walk->pickled, OPDI_NOWHERE, "the offset of a tensor is not a number");
    }
    if ((named->member = opdi_checkpoint_member(walk, opdi_pickle_get(pickle, storage, 1))) < 0) { return -1; }
    named->row = (int)dtype;
    named->strange = dtype == OPD_DTYPE_NONE ? (int)word : 0;
    named->dims = walk->file->dims.length / sizeof(int64_t);
    named->ndim = 1;
    if (whole) {
        const int64_t dims[2] = {elements, 1};
        opdi_string_add_n(&walk->file->dims, (const char *)(const void *)dims, sizeof dims);
    } else {
        at = opdi_pickle_at(pickle, offset)->value;
        named->grad = (opdi_pickle_at(pickle, node)->text & OPDI_TENSOR_GRAD) != 0;
        named->lazy = (unsigned char)(opdi_pickle_at(pickle, node)->text & (OPDI_TENSOR_CONJ | OPDI_TENSOR_NEG));
        if ((named->ndim = opdi_checkpoint_dims(walk, opdi_pickle_get(pickle, node, 2))) < 0) { return -1; }
        strides = opdi_checkpoint_dims(walk, opdi_pickle_get(pickle, node, 3));
    }
    if (walk->file->dims.failed || strides != named->ndim) {
        return !opd_ok() ? -1
            : opdi_bad(walk->pickled, OPDI_NOWHERE, "a tensor has %d sizes, but %d strides", named->ndim, strides);
    }
    const int64_t *dims = named->ndim ? (const int64_t *)(void *)walk->file->dims.data + named->dims : NULL;
    const int64_t reach = dims ? opdi_extent(dims, dims + named->ndim, named->ndim) : 1;
    const uint64_t bytes = opdi_file_entry_of(walk->file, named->member)->full;
    const bool there = elements <= INT64_MAX / 16 &&
        (uint64_t)(elements * opdi_pickle_globals[type].bytes) <= bytes;
    const int64_t available = there ? elements * opdi_pickle_globals[type].bytes / size : 0;
    if (!there || reach < 0 || at < 0 || at > available || reach > available - at) {
        return opdi_bad(walk->pickled, OPDI_NOWHERE,
                        "the tensor '%.200s' reaches beyond its storage of %lld elements in %llu bytes",
                        walk->path.length ? walk->path.data : "", (long long)elements, (unsigned long long)bytes);
    }
    if (bytes - (uint64_t)(elements * opdi_pickle_globals[type].bytes) >= (uint64_t)opdi_pickle_globals[type].bytes) {
        return opdi_bad(walk->pickled, OPDI_NOWHERE, "the tensor '%.200s' has a storage of %lld elements, but the "
                        "storage has %llu bytes in the file", walk->path.length ? walk->path.data : "",
                        (long long)elements, (unsigned long long)bytes);
    }
    named->data = (size_t)(at * size);
    return opdi_checkpoint_part(walk, named->member, (int)size >> opd_dtype_is_complex(dtype));
}
/* Appends `value` to the file's values, and makes the entry `named` refer to the value.  Returns 0, or -1 if memory
   runs out. */
static int opdi_checkpoint_put_value(opdi_checkpoint_walk *walk, opd_value value, opdi_file_entry *named) {
    named->data = walk->file->values.length / sizeof value;
    opdi_string_add_n(&walk->file->values, (const char *)(const void *)&value, sizeof value);
    return walk->file->values.failed ? -1 : 0;
}
/* Appends a text to the file's values, and makes the entry `named` refer to the text.  Returns 0, or -1 if memory runs
   out. */
static int opdi_checkpoint_text(opdi_checkpoint_walk *walk, const void *text, size_t length, opdi_file_entry *named) {
    opd_value value = opd_value_int((int64_t)walk->names.length);
    value.tag = OPD_TAG_STR;
    value.n = (int32_t)length;
    opdi_string_add_n(&walk->names, (const char *)text, length);
    opdi_string_add_n(&walk->names, "", 1);
    return walk->names.failed ? -1 : opdi_checkpoint_put_value(walk, value, named);
}
/* Sets `named` to a device, as a text such as "cuda:1".  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_device(opdi_checkpoint_walk *walk, uint32_t node, opdi_file_entry *named) {
    const opdi_pickle_node *type = opdi_pickle_at(&walk->pickle, opdi_pickle_get(&walk->pickle, node, 0));
    const uint32_t index = opdi_pickle_get(&walk->pickle, node, 1);
    char text[160];
    (void)snprintf(text, sizeof text, "%.*s", (int)OPDI_MIN(type->value, 100),
                   (const char *)walk->pickled->data + type->text);
    if (index) {
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), ":%lld",
                       (long long)opdi_pickle_at(&walk->pickle, index)->value);
    }
    return opdi_checkpoint_text(walk, text, strlen(text), named);
}
/* Sets `named` to a complex number, whose two parts are stored in the file's dims.  Returns 0, or -1 if memory runs
   out. */
static int opdi_checkpoint_complex(opdi_checkpoint_walk *walk, uint32_t node, opdi_file_entry *named) {
    opd_value value = opd_value_int((int64_t)(walk->file->dims.length / sizeof(int64_t)));
    value.tag = OPD_TAG_COMPLEX;
    for (int i = 0; i < 2; i++) {
        const opdi_pickle_node *part = opdi_pickle_at(&walk->pickle, opdi_pickle_get(&walk->pickle, node, i));
        opdi_string_add_n(&walk->file->dims, (const char *)(const void *)&part->value, sizeof part->value);
    }
    return walk->file->dims.failed ? -1 : opdi_checkpoint_put_value(walk, value, named);
}
/* Returns true if a node is a number, True, False or None.  If so, sets *value to this value. */
static bool opdi_checkpoint_plain(const opdi_pickle_node *node, opd_value *value) {
    switch (node->kind) {
    case OPDI_PICKLE_NONE: *value = opd_value_none(); return true;
    case OPDI_PICKLE_BOOL: *value = opd_value_bool(node->value != 0); return true;
    case OPDI_PICKLE_INT: *value = opd_value_int(node->value); return true;
    case OPDI_PICKLE_FLOAT: *value = opd_value_double(opdi_pickle_float_of(node)); return true;
    default: return false;
    }
}

//== checkpoints: keys, as Python prints them ==========================================================================

/* Writes a float to buf as Python does: with as few digits as identify it. */
static void opdi_python_float(double number, char *buf, size_t cap) {
    char text[40];
    int digits = 0;
    if (isnan(number) || isinf(number)) {
        (void)snprintf(buf, cap, "%s", isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
        return;
    }
    do {
        (void)snprintf(text, sizeof text, "%.*e", digits, number);
    } while (digits++ < 16 && strtod(text, NULL) - number != 0);
    const int power = atoi(strchr(text, 'e') + 1), after = OPDI_MAX(1, digits - 1 - power);
    if (power < -4 || power >= 16) { (void)snprintf(buf, cap, "%s", text); }
    else { (void)snprintf(buf, cap, "%.*f", after, number); }
}
/* Appends a text in quotes to `out`, as Python's repr does. */
static void opdi_python_text(const unsigned char *text, int64_t length, opdi_string *out) {
    static const char from[] = "\\\n\r\t", to[] = "\\nrt";
    const bool twice = memchr(text, '\'', (size_t)length) && !memchr(text, '"', (size_t)length);
    const char quote = twice ? '"' : '\'';
    char part[8];
    opdi_string_add_n(out, &quote, 1);
    for (int64_t i = 0; i < length; i++) {
        const char *const at = text[i] ? strchr(from, text[i]) : NULL;
        if (at) { (void)snprintf(part, sizeof part, "\\%c", to[at - from]); }
        else if (text[i] < 32 || text[i] == 127) { (void)snprintf(part, sizeof part, "\\x%02x", text[i]); }
        else { (void)snprintf(part, sizeof part, text[i] == (unsigned char)quote ? "\\%c" : "%c", text[i]); }
        opdi_string_add(out, part);
    }
    opdi_string_add_n(out, &quote, 1);
}
static int opdi_python_write(opdi_pickle *pickle, uint32_t node, int depth, opdi_string *out);
/* Appends the items of a node to `out` as Python prints them, between `open` and `close`.  Returns 0, or -1 and sets an
   error. */
static int opdi_python_items(opdi_pickle *pickle, uint32_t node, const char *open, const char *close, int depth,
                             opdi_string *out) {
    const bool dict = opdi_pickle_is(pickle, node, OPDI_PICKLE_DICT);
    const bool one = opdi_pickle_is(pickle, node, OPDI_PICKLE_TUPLE) && opdi_pickle_count(pickle, node) == 1;
    int64_t i = 0;
    opdi_string_add(out, open);
    for (uint32_t item = opdi_pickle_first(pickle, node); item; i++) {
        if (i) { opdi_string_add(out, dict && i % 2 ? ": " : ", "); }
        if (opdi_python_write(pickle, opdi_pickle_item_at(pickle, item)->node, depth + 1, out)) { return -1; }
        item = opdi_pickle_item_at(pickle, item)->next;
    }
    opdi_string_add(out, one ? ",)" : close);
    return out->failed ? -1 : 0;
}
/* Appends "<class 'MODULE.NAME'>" to `out` for an unknown class or function, or "<MODULE.NAME>" for the result of
   calling one.  Returns 0, or -1 and sets an error. */
static int opdi_python_foreign(opdi_pickle *pickle, uint32_t node, opdi_string *out) {
    const bool called = opdi_pickle_at(pickle, node)->text != 0;
    opdi_string_add(out, called ? "<" : "<class '");
    for (int i = 0; i < 2; i++) {
        const opdi_pickle_node *const text = opdi_pickle_at(pickle, opdi_pickle_get(pickle, node, i));
        if (opdi_pickle_work(pickle, (uint64_t)text->value)) { return -1; }
        if (i) { opdi_string_add(out, "."); }
        opdi_string_add_n(out, (const char *)pickle->source->data + text->text, (size_t)text->value);
    }
    opdi_string_add(out, called ? ">" : "'>");
    return out->failed ? -1 : 0;
}
/* Appends the text that Python's repr would give for a node to `out`.  Returns 0, or -1 and sets an error. */
static int opdi_python_write(opdi_pickle *pickle, uint32_t node, int depth, opdi_string *out) {
    const opdi_pickle_node *const its = opdi_pickle_at(pickle, node);
    const unsigned char *const data = pickle->source->data + its->text;
    char text[200];
    if (depth > 20) { return opdi_bad(pickle->source, OPDI_NOWHERE, "a key of a dict is nested too deep"); }
    if (opdi_pickle_work(pickle, its->kind == OPDI_PICKLE_TEXT ? 4 * (uint64_t)its->value : 4)) { return -1; }
    switch (its->kind) {
    case OPDI_PICKLE_NONE: opdi_string_add(out, "None"); break;
    case OPDI_PICKLE_BOOL: opdi_string_add(out, its->value ? "True" : "False"); break;
    case OPDI_PICKLE_INT:
        (void)snprintf(text, sizeof text, "%lld", (long long)its->value);
        opdi_string_add(out, text);
        break;
    case OPDI_PICKLE_FLOAT:
        opdi_python_float(opdi_pickle_float_of(its), text, sizeof text);
        opdi_string_add(out, text);
        break;
    case OPDI_PICKLE_TEXT: opdi_python_text(data, its->value, out); break;
    case OPDI_PICKLE_TUPLE: return opdi_python_items(pickle, node, "(", ")", depth, out);
    case OPDI_PICKLE_LIST: return opdi_python_items(pickle, node, "[", "]", depth, out);
    case OPDI_PICKLE_DICT: return opdi_python_items(pickle, node, "{", "}", depth, out);
    case OPDI_PICKLE_DEVICE: return opdi_python_items(pickle, node, "device(", ")", depth, out);
    case OPDI_PICKLE_COMPLEX: return opdi_python_items(pickle, node, "complex(", ")", depth, out);
    case OPDI_PICKLE_CALLED:
        return opdi_python_items(pickle, node, opdi_pickle_globals[its->text].name[0] == 's' ? "slice(" : "range(",
                                 ")", depth, out);
    case OPDI_PICKLE_GLOBAL:
        (void)snprintf(text, sizeof text, "%s.%s", opdi_pickle_globals[its->value].module,
                       opdi_pickle_globals[its->value].name);
        opdi_string_add(out, text);
        break;
    case OPDI_PICKLE_FOREIGN: return opdi_python_foreign(pickle, node, out);
    default: opdi_string_add(out, its->kind == OPDI_PICKLE_TENSOR ? "<tensor>" : "<object>"); break;
    }
    return out->failed ? -1 : 0;
}
/* Appends a dict's key to the path.  A text is added as it is, with \x00 for a zero byte; other keys are added as
   Python prints them.  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_key(opdi_checkpoint_walk *walk, uint32_t key) {
    const opdi_pickle_node *const node = opdi_pickle_at(&walk->pickle, key);
    if (node->kind != OPDI_PICKLE_TEXT) { return opdi_python_write(&walk->pickle, key, 0, &walk->path); }
    if (opdi_pickle_work(&walk->pickle, (uint64_t)node->value)) { return -1; }
    const char *at = (const char *)walk->pickled->data + node->text;
    for (const char *const end = at + node->value; at <= end; at++) {
        const char *const zero = (const char *)memchr(at, 0, (size_t)(end - at));
        opdi_string_add_n(&walk->path, at, (size_t)((zero ? zero : end) - at));
        if (zero) { opdi_string_add(&walk->path, "\\x00"); }
        at = zero ? zero : end;
    }
    return walk->path.failed ? -1 : 0;
}

//== checkpoints: making entries from the tree =========================================================================

/* Sets `named` to the text that Python prints for a node.  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_print(opdi_checkpoint_walk *walk, uint32_t node, opdi_file_entry *named) {
    opdi_string text = {NULL, 0, 0, false};
    int rc = opdi_python_write(&walk->pickle, node, 0, &text);
    if (rc == 0) { rc = opdi_checkpoint_text(walk, text.data, text.length, named); }
    opdi_string_free(&text);
    return rc;
}
/* Searches for a tensor in the nodes of `todo` and below them.  Adds the searched nodes to `visited`, and marks them in
   walk->barren.  Returns true if there is a tensor, or if the search is given up because it takes too long or memory
   runs out. */
static bool opdi_checkpoint_search(opdi_checkpoint_walk *walk, opdi_string *todo, opdi_string *visited) {
    const opdi_pickle *const pickle = &walk->pickle;
    while (todo->length) {
        uint32_t node;
        todo->length -= sizeof node;
        memcpy(&node, todo->data + todo->length, sizeof node);
        const opdi_pickle_node *const its = opdi_pickle_at(pickle, node);
        if (walk->barren.data[node]) { continue; }
        walk->barren.data[node] = 1;
        opdi_string_add_n(visited, (const char *)(const void *)&node, sizeof node);
        if (its->kind == OPDI_PICKLE_TENSOR || its->kind == OPDI_PICKLE_STORAGE || its->kind == OPDI_PICKLE_QUANTIZED ||
            (its->kind == OPDI_PICKLE_STRANGE && its->value >= 0 &&
             strncmp(opdi_pickle_globals[its->value].module, "torch", 5) == 0)) { return true; }
        if (its->kind != OPDI_PICKLE_LIST && its->kind != OPDI_PICKLE_TUPLE && its->kind != OPDI_PICKLE_DICT &&
            its->kind != OPDI_PICKLE_FOREIGN) { continue; }
        for (uint32_t item = opdi_pickle_first(pickle, node); item; item = opdi_pickle_item_at(pickle, item)->next) {
            opdi_string_add_n(todo, (const char *)(const void *)&opdi_pickle_item_at(pickle, item)->node, sizeof node);
            if (todo->failed || visited->failed || ++walk->searched > 1000000 + 64 * (uint64_t)pickle->at) {
                return true;
            }
        }
    }
    return false;
}
/* Returns true if a node contains tensors, or if the search for tensors is given up. */
static bool opdi_checkpoint_holds(opdi_checkpoint_walk *walk, uint32_t node) {
    const size_t nodes = walk->pickle.nodes.length / sizeof(opdi_pickle_node);
    opdi_string todo = {NULL, 0, 0, false}, visited = {NULL, 0, 0, false};
    while (walk->barren.length < nodes && !walk->barren.failed) {
        static const char zeros[256] = {0};
        opdi_string_add_n(&walk->barren, zeros, sizeof zeros);
    }
    opdi_string_add_n(&todo, (const char *)(const void *)&node, sizeof node);
    const bool holds = walk->barren.failed || todo.failed || opdi_checkpoint_search(walk, &todo, &visited);
    for (size_t at = 0; holds && at < visited.length; at += sizeof node) {
        memcpy(&node, visited.data + at, sizeof node);
        walk->barren.data[node] = 0;
    }
    opdi_string_free(&todo);
    opdi_string_free(&visited);
    return holds;
}
/* Makes `named` an entry of an unknown class, which cannot be read: sets named->strange, and the entry's value to the
   class's name.  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_foreign(opdi_checkpoint_walk *walk, uint32_t node, opdi_file_entry *named) {
    named->strange = opdi_checkpoint_holds(walk, node) ? OPDI_FOREIGN_TENSORS : OPDI_FOREIGN;
    return opd_ok() ? opdi_checkpoint_print(walk, node, named) : -1;
}
/* Sets `named` to a value that is not a tensor.  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_value(opdi_checkpoint_walk *walk, uint32_t at, opdi_file_entry *named) {
    const opdi_pickle_node *node = opdi_pickle_at(&walk->pickle, at);
    opd_value value;
    named->member = -1;
    if (opdi_checkpoint_plain(node, &value)) { return opdi_checkpoint_put_value(walk, value, named); }
    switch (node->kind) {
    case OPDI_PICKLE_TEXT: case OPDI_PICKLE_NUMPY:
        if (node->value > INT32_MAX) { return opdi_bad(walk->pickled, node->text, "a string has more than 2 GiB"); }
        return opdi_checkpoint_text(walk, walk->pickled->data + node->text, (size_t)node->value, named);
    case OPDI_PICKLE_GLOBAL: {                      /* Python 2's long and unicode are int and str in Python 3 */
        const char *word = opdi_pickle_globals[node->value].name;
        word = strcmp(word, "long") == 0 ? "int" : strcmp(word, "unicode") == 0 ? "str" : word;
        return opdi_checkpoint_text(walk, word, strlen(word), named);
    }
    case OPDI_PICKLE_DEVICE: return opdi_checkpoint_device(walk, at, named);
    case OPDI_PICKLE_COMPLEX: return opdi_checkpoint_complex(walk, at, named);
    case OPDI_PICKLE_STRANGE: named->strange = (int)node->value; return 0;
    case OPDI_PICKLE_QUANTIZED: named->strange = (int)node->text; return 0;
    case OPDI_PICKLE_FOREIGN: return opdi_checkpoint_foreign(walk, at, named);
    default: return opdi_checkpoint_print(walk, at, named);
    }
}
static int opdi_checkpoint_below(opdi_checkpoint_walk *walk, uint32_t node, int depth);
/* Makes entries from `node`.  Their path is walk->path followed by the separator and by the key or, if `key` is 0, by
   the number i; walk->path is restored afterwards.  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_step(opdi_checkpoint_walk *walk, const char *separator, uint32_t key, int64_t i,
                                uint32_t node, int depth) {
    const size_t was = walk->path.length;
    char number[32];
    (void)snprintf(number, sizeof number, "%lld", (long long)i);
    opdi_string_add(&walk->path, separator);
    if (key && opdi_checkpoint_key(walk, key)) { return -1; }
    if (!key) { opdi_string_add(&walk->path, number); }
    if (walk->path.failed || opdi_checkpoint_below(walk, node, depth + 1)) { return -1; }
    walk->path.length = was;
    if (walk->path.data) { walk->path.data[was] = 0; }
    return 0;
}
/* Returns true if a list has at least 8 items, all plain values, so that it becomes a run: a single entry for all its
   items. */
static bool opdi_checkpoint_is_run(const opdi_checkpoint_walk *walk, uint32_t list) {
    const opdi_pickle *const pickle = &walk->pickle;
    opd_value value;
    if (opdi_pickle_count(pickle, list) < 8) { return false; }
    for (uint32_t item = opdi_pickle_first(pickle, list); item; item = opdi_pickle_item_at(pickle, item)->next) {
        const uint32_t node = opdi_pickle_item_at(pickle, item)->node;
        if (!opdi_checkpoint_plain(opdi_pickle_at(pickle, node), &value)) { return false; }
    }
    return true;
}
/* Adds an entry whose name is the path, or for a run, the path and '/'.  Returns 0, or -1 if memory runs out. */
static int opdi_checkpoint_add(opdi_checkpoint_walk *walk, opdi_file_entry *named) {
    named->name = walk->names.length;
    named->where = OPDI_NOWHERE;
    named->begin = (size_t)walk->found;
    walk->found += named->end ? (int64_t)named->end : 1;
    opdi_string_add_n(&walk->names, walk->path.length ? walk->path.data : "", walk->path.length);
    opdi_string_add_n(&walk->names, named->end && walk->depth ? "/" : "", named->end && walk->depth ? 2 : 1);
    opdi_string_add_n(&walk->file->members, (const char *)(const void *)named, sizeof *named);
    return walk->names.failed || walk->file->members.failed ? -1 : 0;
}
/* Adds a run: a single entry for all items of a list.  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_run(opdi_checkpoint_walk *walk, uint32_t list) {
    const opdi_pickle *const pickle = &walk->pickle;
    const int64_t count = opdi_pickle_count(pickle, list);
    opdi_file_entry named, last;
    opd_value value;
    memset(&named, 0, sizeof named);
    named.member = -1;
    named.data = walk->file->values.length / sizeof value;
    named.end = (size_t)count;
    named.dims = (size_t)walk->file->nruns++;
    walk->steps += (uint64_t)count;
    walk->lazy += (uint64_t)count * (walk->path.length + 16);
    for (uint32_t item = opdi_pickle_first(pickle, list); item; item = opdi_pickle_item_at(pickle, item)->next) {
        (void)opdi_checkpoint_plain(opdi_pickle_at(pickle, opdi_pickle_item_at(pickle, item)->node), &value);
        if (opdi_checkpoint_put_value(walk, value, &last)) { return -1; }
    }
    return opdi_checkpoint_add(walk, &named);
}
/* Makes entries from the items of a dict, list or tuple.  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_items(opdi_checkpoint_walk *walk, uint32_t node, bool dict, int depth) {
    uint32_t item = opdi_pickle_first(&walk->pickle, node);
    for (int64_t i = 0; item; i++) {
        const opdi_pickle_item *const first = opdi_pickle_item_at(&walk->pickle, item);
        const opdi_pickle_item *const second = dict ? opdi_pickle_item_at(&walk->pickle, first->next) : first;
        const uint32_t next = second->next;
        if (opdi_checkpoint_step(walk, depth ? "/" : "", dict ? first->node : 0, i, second->node, depth)) { return -1; }
        item = next;
    }
    return 0;
}
/* Returns the dict with the attributes of a module that was saved as a whole, or 0 if the node is another value.  A
   module is an object of an unknown class whose attributes contain _parameters and _modules. */
static uint32_t opdi_checkpoint_attributes(const opdi_pickle *pickle, uint32_t node) {
    const opdi_pickle_node *const its = opdi_pickle_at(pickle, node);
    if (its->kind != OPDI_PICKLE_FOREIGN || !its->text || its->value < 4) { return 0; }
    const uint32_t state = opdi_pickle_item_at(pickle, its->last)->node;
    int found = 0;
    uint32_t item = opdi_pickle_is(pickle, state, OPDI_PICKLE_DICT) ? opdi_pickle_first(pickle, state) : 0;
    for (int i = 0; item && i < 2 * OPDI_MODULE_KEYS; i++, item = opdi_pickle_item_at(pickle, item)->next) {
        const uint32_t key = i % 2 ? 0 : opdi_pickle_item_at(pickle, item)->node;
        found += key && (opdi_pickle_names(pickle, key, "_parameters") || opdi_pickle_names(pickle, key, "_modules"));
    }
    return found == 2 ? state : 0;
}
/* Makes entries from the attributes of a module.  The names of its parameters, buffers and inner modules are those of
   its state_dict, such as "0.weight"; other attributes are named like them.  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_module(opdi_checkpoint_walk *walk, uint32_t attributes, const char *separator, int depth) {
    const opdi_pickle *const pickle = &walk->pickle;
    uint32_t item = opdi_pickle_first(pickle, attributes);
    while (item) {
        const opdi_pickle_item *const key = opdi_pickle_item_at(pickle, item);
        const opdi_pickle_item *const its = opdi_pickle_item_at(pickle, key->next);
        const uint32_t next = its->next, name = key->node, value = its->node;
        const bool inner = opdi_pickle_is(pickle, value, OPDI_PICKLE_DICT) &&
            (opdi_pickle_names(pickle, name, "_parameters") || opdi_pickle_names(pickle, name, "_buffers") ||
             opdi_pickle_names(pickle, name, "_modules"));
        for (uint32_t at = inner ? opdi_pickle_first(pickle, value) : item; at;) {
            const opdi_pickle_item *const first = opdi_pickle_item_at(pickle, at);
            const opdi_pickle_item *const second = opdi_pickle_item_at(pickle, first->next);
            at = inner ? second->next : 0;
            walk->inside = true;
            if (opdi_checkpoint_step(walk, separator, first->node, 0, second->node, depth)) { return -1; }
        }
        item = next;
    }
    return 0;
}
/* Adds an entry for each leaf of the tree from `node` on, `depth` levels below the root.  Returns 0, or -1 and sets an
   error. */
static int opdi_checkpoint_below(opdi_checkpoint_walk *walk, uint32_t node, int depth) {
    const opdi_pickle_node *const its = opdi_pickle_at(&walk->pickle, node);
    const int kind = its->kind;
    const bool list = kind == OPDI_PICKLE_LIST || kind == OPDI_PICKLE_TUPLE;
    const bool run = list && opdi_checkpoint_is_run(walk, node);
    const uint64_t steps = walk->steps + (run ? (uint64_t)its->value : 1);
    const uint64_t text = walk->names.length + walk->lazy +
        (run ? (uint64_t)its->value * (walk->path.length + 16) : 0);
    const char *const separator = walk->inside ? "." : depth ? "/" : "";
    opdi_file_entry named;
    walk->inside = false;
    /* A node that a pickle refers to repeatedly is walked each time.  Without a limit, a small pickle could have an
       unlimited number of entries. */
    const int deepest = opdi_depth_most(OPDI_CHECKPOINT_DEPTH);
    if (opdi_node_denied()) { return -1; }
    if (depth > deepest || steps > 100000 + 4 * (uint64_t)walk->pickle.at ||
        text > 1000000 + 256 * (uint64_t)walk->pickle.at) {
        return opdi_bad(walk->pickled, OPDI_NOWHERE, depth > deepest ? "dicts and lists are nested more than %llu deep"
                        : "a pickle of %llu bytes makes too many objects",
                        depth > deepest ? (unsigned long long)deepest : (unsigned long long)walk->pickle.at);
    }
    walk->steps++;
    walk->depth = depth;
    walk->modules[depth] = 0;
    if (run) { return opdi_checkpoint_run(walk, node); }
    if (list || kind == OPDI_PICKLE_DICT) {
        return opdi_checkpoint_items(walk, node, kind == OPDI_PICKLE_DICT, depth);
    }
    const uint32_t attributes = opdi_checkpoint_attributes(&walk->pickle, node);
    bool again = false;                            /* a module contains itself: it is an entry that cannot be read */
    for (int i = 0; i < depth; i++) { again = again || (attributes && walk->modules[i] == attributes); }
    walk->modules[depth] = attributes;
    if (attributes && !again) { return opdi_checkpoint_module(walk, attributes, separator, depth); }
    memset(&named, 0, sizeof named);
    return (kind == OPDI_PICKLE_TENSOR || kind == OPDI_PICKLE_STORAGE ? opdi_checkpoint_tensor(walk, node, &named)
            : opdi_checkpoint_value(walk, node, &named)) ? -1 : opdi_checkpoint_add(walk, &named);
}

//== opening checkpoints ===============================================================================================

/* Returns the bytes of a member as a tensor of uint8.  The tensor uses the file's memory if the bytes are aligned
   there, not compressed and in this machine's byte order; otherwise it is a copy.  Returns a reference, or NULL and
   sets an error. */
OPDI_INTERNAL opd_tensor *opdi_checkpoint_storage(const opd_tensor_file *file, const opdi_file_entry *member) {
    const bool swap = file->swap && member->row > 1;
    opdi_source source = file->source;
    unsigned char *own = NULL;
    source.data += member->data;
    source.length = (size_t)member->full;
    if (file->zip && opdi_zip_bytes(file, member, member->method != 0, &source, &own)) { return NULL; }
    const int64_t bytes = (int64_t)source.length;
    opd_tensor *tensor;
    if (!own && !swap && (uintptr_t)source.data % sizeof(double) == 0) {
        opdi_ref_up(&file->bytes->refs);
        tensor = opdi_tensor_wrap(file->bytes->data + member->data, opd_ints_of(&bytes, 1), NULL, OPD_UINT8,
                                  opdi_file_buffer_release, file->bytes);
        if (!tensor) { opdi_file_buffer_drop(file->bytes); }
        return tensor;
    }
    tensor = opdi_tensor_make(&bytes, NULL, 1, OPD_UINT8, 0);
    if (tensor && bytes) { memcpy(tensor->data, source.data, source.length); }
    if (tensor && swap) { opdi_swap(tensor->data, source.length, (size_t)member->row); }
    opdi_free(own, source.length);
    return tensor;
}
/* Returns member number i as a tensor of bytes.  The first call makes the tensor, which the file owns.  Any thread may
   call this function.  On failure, returns NULL and sets an error. */
static const opd_tensor *opdi_checkpoint_bytes(const opd_tensor_file *file, int64_t i) {
    opd_tensor *tensor = OPDI_ACQUIRE(&file->storages[i]), *was = NULL;
    if (tensor || !(tensor = opdi_checkpoint_storage(file, opdi_member_of(file, i)))) { return tensor; }
    while (!OPDI_EXCHANGE(&file->storages[i], &was, tensor)) {
        if (!was) { continue; }
        opdi_drop(tensor);                        /* another thread has made it */
        return was;
    }
    return tensor;
}
/* A run is a row of elements with numbered names, in one block of memory.  Returns the position, in bytes, of the name
   of element k.  A name (with its final zero) takes as many bytes as its number has digits, plus `bytes`. */
OPDI_INTERNAL size_t opdi_run_place(size_t k, size_t bytes) {
    size_t place = k * bytes, from = 0;
    for (size_t power = 10, digits = 1; from < k; power *= 10, digits++) {
        const size_t to = OPDI_MIN(k, power);
        place += (to - from) * digits;
        from = to;
    }
    return place;
}
/* Swaps file->entries (until now the entries of the zip file) and file->members (until now the entries made from the
   pickle's tree).  Appends file->text to `names`, the text of the tree's entries, and makes `names` the file's text.
   `found` is the number of names in the tree.  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_replace_entries(opd_tensor_file *file, opdi_string *names, int64_t found) {
    const size_t at = names->length, count = (size_t)file->count;
    opdi_string_add_n(names, file->text.data, file->text.length);   /* the storages' names stay in this text */
    for (size_t i = 0; i < count; i++) { opdi_file_entry_of(file, (int64_t)i)->name += at; }
    const opdi_string members = file->entries, text = file->text;
    const size_t sorted = (size_t)file->count * sizeof *file->sorted;
    opdi_free(file->sorted, file->sorted ? sorted : 0);
    file->sorted = NULL;
    file->storages = names->failed ? NULL : (opd_tensor **)opdi_alloc((count + 1) * sizeof *file->storages);
    if (!file->storages) { return -1; }
    file->nstorages = file->count + 1;
    memset(file->storages, 0, (count + 1) * sizeof *file->storages);
    const int64_t entries = (int64_t)(file->members.length / sizeof(opdi_file_entry));
    file->count = found;
    file->entries = file->members;
    file->members = members;
    file->text = *names;
    *names = text;
    const int64_t runs = file->nruns;
    file->nruns = 0;
    if (runs && (file->runs = (opdi_named_run *)opdi_alloc((size_t)runs * sizeof *file->runs)) == NULL) { return -1; }
    if (runs) { memset(file->runs, 0, (size_t)runs * sizeof *file->runs); }
    file->nruns = runs;
    if (entries && (file->sorted = (opdi_sorted *)opdi_alloc((size_t)entries * sizeof *file->sorted)) == NULL) {
        return -1;
    }
    for (int64_t i = 0; i < entries; i++) {
        const opdi_file_entry *const named = opdi_file_entry_of(file, i);
        file->sorted[i].name = opdi_file_entry_name(file, i);
        file->sorted[i].place = i;
        if (named->end) {
            file->runs[named->dims].bytes = opdi_run_place(named->end, strlen(file->sorted[i].name) + 1) + 1;
        }
    }
    (void)opdi_same_names(file->sorted, entries);  /* only sorts; opdi_checkpoint_index handles equal names */
    return 0;
}
/* Makes the file's entries from the pickle's tree with the root `tree` (0: reading has failed), and frees the walk.
   Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_finish(opdi_checkpoint_walk *walk, uint32_t tree) {
    const int rc = tree && opdi_checkpoint_below(walk, tree, 0) == 0 &&
        opdi_checkpoint_replace_entries(walk->file, &walk->names, walk->found) == 0 ? 0 : -1;
    opdi_pickle_free(&walk->pickle);
    opdi_string_free(&walk->path);
    opdi_string_free(&walk->names);
    opdi_string_free(&walk->barren);
    return rc;
}
/* Reads the zip entry whose name is `root` followed by "byteorder" ("archive/byteorder", for example), if there is one,
   and sets file->swap.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_checkpoint_order(opd_tensor_file *file, const char *root, size_t root_bytes) {
    opdi_string name = {NULL, 0, 0, false};
    opdi_source source;
    unsigned char *own;
    opdi_string_add_n(&name, root, root_bytes);
    opdi_string_add(&name, "byteorder");
    const int64_t i = name.failed ? -1 : opdi_tensor_file_find(file, name.data, name.length);
    opdi_string_free(&name);
    file->swap = opdi_big_endian();
    if (i < 0 || opdi_zip_bytes(file, opdi_file_entry_of(file, i), 1, &source, &own)) { return opd_ok() ? 0 : -1; }
    const bool big = source.length == 3 && memcmp(source.data, "big", 3) == 0;
    const int rc = big || (source.length == 6 && memcmp(source.data, "little", 6) == 0) ? 0
        : opdi_bad(&source, OPDI_NOWHERE, "the byte order is neither little nor big");
    file->swap = big != opdi_big_endian();
    opdi_free(own, source.length);
    return rc;
}
/* Reads the pickle in entry i of a zip file, and makes the file's entries from the pickle.  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_checkpoint_parse(opd_tensor_file *file, int64_t i) {
    const opdi_file_entry *const named = opdi_file_entry_of(file, i);
    opdi_checkpoint_walk walk;
    opdi_source source = file->source;
    unsigned char *own;
    size_t at = 0;
    source.entry = opdi_file_entry_name(file, i);
    if (named->method && named->full / 100 > named->end - named->data) {
        return opdi_bad(&source, named->begin, "a pickle of %llu bytes cannot be compressed to %llu bytes",
                        (unsigned long long)named->full, (unsigned long long)(named->end - named->data));
    }
    if (opdi_zip_bytes(file, named, 1, &source, &own)) { return -1; }
    memset(&walk, 0, sizeof walk);
    file->checkpoint = true;
    walk.file = file;
    walk.pickled = &source;
    walk.root = opdi_file_entry_name(file, i);
    walk.root_bytes = (size_t)(strchr(walk.root, '/') + 1 - walk.root);
    walk.folder = "data/";
    for (int64_t k = 0; k < file->count; k++) { opdi_file_entry_of(file, k)->row = 0; }
    const bool right = opdi_checkpoint_order(file, walk.root, walk.root_bytes) == 0;
    const uint32_t tree = right ? opdi_pickle_read(&walk.pickle, &source, &at) : 0;
    const int rc = opdi_checkpoint_finish(&walk, tree);
    opdi_free(own, source.length);
    return rc;
}
/* Returns the length of the magic number at the beginning of a file that torch.save wrote before PyTorch 1.6, or 0 if
   the file does not begin with it.  Such a file consists of several pickles, and after them the bytes of the storages.
   From pickle protocol 4 on, the magic number is in a frame. */
OPDI_INTERNAL size_t opdi_legacy_magic(const opdi_source *source) {
    static const char magic[] = "\x8a\n\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.";
    const size_t bytes = sizeof magic - 1, frame = source->length > 2 && source->data[2] == 0x95 ? 9 : 0;
    return source->length > 2 + frame + bytes && source->data[0] == 0x80 &&
        memcmp(source->data + 2 + frame, magic, bytes) == 0 ? 2 + frame + bytes : 0;
}
typedef struct opdi_legacy_key { const unsigned char *text; int64_t bytes; uint32_t node; } opdi_legacy_key;
static int opdi_by_key(const void *first, const void *second) {
    const opdi_legacy_key *key = (const opdi_legacy_key *)first, *other = (const opdi_legacy_key *)second;
    return key->bytes != other->bytes ? (key->bytes < other->bytes ? -1 : 1)
        : memcmp(key->text, other->text, (size_t)key->bytes);
}
static opdi_legacy_key opdi_legacy_key_of(const opdi_source *source, const opdi_pickle *pickle, uint32_t text,
                                          uint32_t node) {
    opdi_legacy_key key;
    key.text = source->data + opdi_pickle_at(pickle, text)->text;
    key.bytes = opdi_pickle_at(pickle, text)->value;
    key.node = node;
    return key;
}
/* Adds the keys of all storages of the tree to `keys`, and sorts them.  Returns the number of keys. */
static size_t opdi_legacy_keys(const opdi_checkpoint_walk *walk, opdi_string *keys) {
    const size_t nodes = walk->pickle.nodes.length / sizeof(opdi_pickle_node);
    for (uint32_t i = 1; i < nodes; i++) {
        if (!opdi_pickle_is(&walk->pickle, i, OPDI_PICKLE_STORAGE)) { continue; }
        const opdi_legacy_key key = opdi_legacy_key_of(walk->pickled, &walk->pickle,
                                                       opdi_pickle_get(&walk->pickle, i, 1), i);
        opdi_string_add_n(keys, (const char *)(const void *)&key, sizeof key);
    }
    const size_t count = keys->failed ? 0 : keys->length / sizeof(opdi_legacy_key);
    if (count) { qsort(keys->data, count, sizeof(opdi_legacy_key), opdi_by_key); }
    return count;
}
/* Adds an entry for the storage `key` of an old checkpoint.  The file has, at byte *at, the number of elements (8
   bytes) and then the elements; moves *at past them.  Returns 0, or -1 and sets an error. */
static int opdi_legacy_storage(opdi_checkpoint_walk *walk, const opdi_string *keys, const opdi_legacy_key *key,
                               size_t *at) {
    const opdi_source *source = &walk->file->source;
    const size_t count = keys->length / sizeof *key;
    const opdi_legacy_key *its = count ? (const opdi_legacy_key *)bsearch(key, keys->data, count, sizeof *key,
                                                                        opdi_by_key) : NULL;
    const uint32_t found = its ? its->node : 0;
    opdi_file_entry named;
    if (!found || source->length - *at < 8) {
        return opdi_bad(source, *at, found ? "the file ends before a storage"
                        : "a storage does not belong to a tensor");
    }
    const uint32_t word = opdi_pickle_get(&walk->pickle, found, 0);
    const uint64_t size = (uint64_t)opdi_pickle_globals[opdi_pickle_at(&walk->pickle, word)->value].bytes;
    const uint64_t elements = opdi_le64(source->data + *at);
    *at += 8;
    if (opdi_pickle_work(&walk->pickle, (uint64_t)key->bytes)) { return -1; }
    if (elements > (source->length - *at) / size) {
        return opdi_bad(source, *at, "the file ends within a storage of %llu elements", (unsigned long long)elements);
    }
    memset(&named, 0, sizeof named);
    named.name = walk->file->text.length;
    opdi_string_add_n(&walk->file->text, (const char *)key->text, (size_t)key->bytes);
    opdi_string_add_n(&walk->file->text, "", 1);
    named.where = named.begin = named.data = *at;
    named.full = elements * size;
    named.end = *at += (size_t)named.full;
    return walk->file->text.failed || opdi_file_entry_add(walk->file, &named) ? -1 : 0;
}
/* Reads a file that torch.save wrote before PyTorch 1.6.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_legacy_parse(opd_tensor_file *file) {
    opdi_checkpoint_walk walk;
    opdi_string keys = {NULL, 0, 0, false};
    opdi_pickle other;
    size_t at = opdi_legacy_magic(&file->source);
    memset(&walk, 0, sizeof walk);
    walk.file = file;
    walk.pickled = &file->source;
    walk.root = walk.folder = "";
    file->checkpoint = true;
    file->swap = opdi_big_endian();                /* storages of old files are always little-endian */
    int rc = opdi_text_reserve(file, file->source.length);
    for (int i = 0; i < 2 && rc == 0; i++) {       /* skips the version of the protocol and the sizes of types */
        rc = opdi_pickle_read(&other, &file->source, &at) ? 0 : -1;
        opdi_pickle_free(&other);
    }
    const uint32_t tree = rc == 0 ? opdi_pickle_read(&walk.pickle, &file->source, &at) : 0;
    const uint32_t list = tree ? opdi_pickle_read(&other, &file->source, &at) : 0;
    if (list) { (void)opdi_legacy_keys(&walk, &keys); }
    for (uint32_t item = list ? opdi_pickle_first(&other, list) : 0; item && opd_ok();) {
        const opdi_pickle_item *its = opdi_pickle_item_at(&other, item);
        if (opdi_pickle_is(&other, its->node, OPDI_PICKLE_TEXT)) {
            const opdi_legacy_key key = opdi_legacy_key_of(&file->source, &other, its->node, 0);
            (void)opdi_legacy_storage(&walk, &keys, &key, &at);
        } else {
            (void)opdi_bad(&file->source, at, "the key of a storage is not a string");
        }
        item = its->next;
    }
    if (tree) { opdi_pickle_free(&other); }
    opdi_string_free(&keys);
    if (!opd_ok() || !list || opdi_file_entry_check(file, 0, file->source.length, false)) {
        opdi_pickle_free(&walk.pickle);
        return -1;
    }
    return opdi_checkpoint_finish(&walk, tree);
}
/* Returns the entry of a zip file that is a checkpoint's pickle, ROOT/data.pkl, or -1 if there is none. */
OPDI_INTERNAL int64_t opdi_checkpoint_find(const opd_tensor_file *file) {
    for (int64_t i = 0; i < file->count; i++) {
        const char *slash = strchr(opdi_file_entry_name(file, i), '/');
        if (slash && strcmp(slash, "/data.pkl") == 0) { return i; }
    }
    return -1;
}
/* Sets an error with the reason why an entry cannot be read.  Returns -1. */
OPDI_INTERNAL int opdi_checkpoint_unreadable(const opd_tensor_file *file, const opdi_file_entry *named) {
    const int why = named->strange;
    opdi_source its = file->source;
    const opdi_source *const source = &its;
    its.entry = file->text.data + named->name;
    if (why == OPDI_FOREIGN || why == OPDI_FOREIGN_TENSORS) {
        const opd_value *const value = (const opd_value *)(const void *)file->values.data + named->data;
        return opdi_bad(source, OPDI_NOWHERE, "the value is made by %.300s, which is not one of the classes and "
                        "functions that can be read%s", file->text.data + value->u.i, why == OPDI_FOREIGN
                        ? ": the other entries can be read"
                        : "; it contains tensors: save its state_dict() with PyTorch");
    }
    if (why == OPDI_BIG_INT) { return opdi_bad(source, OPDI_NOWHERE, "the integer has more than 64 bits"); }
    if (strcmp(opdi_pickle_globals[why].name, "_reconstruct") == 0 ||
        strcmp(opdi_pickle_globals[why].name, "_frombuffer") == 0) {
        return opdi_bad(source, OPDI_NOWHERE, "the value is an array of NumPy, which cannot be read: save "
                        "torch.from_numpy(x) instead");
    }
    return opdi_pickle_globals[why].call == OPDI_GLOBAL_WORD
        ? opdi_bad(source, OPDI_NOWHERE, "the dtype %s is not supported", opdi_pickle_globals[why].name)
        : opdi_bad(source, OPDI_NOWHERE, "the value is made by %s.%s, which cannot be read",
                   opdi_pickle_globals[why].module, opdi_pickle_globals[why].name);
}
/* Returns the tensor of an entry of a checkpoint, which may share its storage with tensors of other entries.  If the
   entry is not a tensor, returns NULL and sets an error, which names element k if the entry is a run. */
OPDI_INTERNAL opd_tensor *opdi_checkpoint_read(const opd_tensor_file *file, const opdi_file_entry *named, int64_t k) {
    const int64_t *dims = named->ndim ? (const int64_t *)(void *)file->dims.data + named->dims : NULL;
    const opd_scalar_type dtype = (opd_scalar_type)named->row;
    opdi_source source = file->source;
    source.entry = file->text.data + named->name;
    if (named->strange) {
        (void)opdi_checkpoint_unreadable(file, named);
        return NULL;
    }
    if (named->member < 0) {
        char number[24] = "";
        if (named->end) { (void)snprintf(number, sizeof number, "%lld", (long long)k); }
        (void)opd_fail(OPD_ERROR_FILE, "%s: %.500s, entry '%.300s%s': this is not a tensor: read it with "
                       "opd_tensor_file_value", source.who, source.path, source.entry, number);
        return NULL;
    }
    const opd_tensor *bytes = opdi_checkpoint_bytes(file, named->member);
    if (!bytes || opdi_bools_check(&source, OPDI_NOWHERE, dtype, bytes->data, (size_t)bytes->numel)) { return NULL; }
    opd_tensor *tensor = opdi_tensor_on(bytes->storage, bytes->data ? bytes->data + named->data : NULL, dims,
                                        dims ? dims + named->ndim : NULL, named->ndim, dtype, opdi_place_of(bytes));
    if (!tensor) { return NULL; }
    opdi_ref_up(&bytes->storage->refs);
    tensor = opdi_own(tensor);
    if (named->lazy & OPDI_TENSOR_CONJ) { tensor = opd_conj_view(tensor); }
    if (named->lazy & OPDI_TENSOR_NEG) { tensor = opd__neg_view(tensor); }
    return tensor;
}
