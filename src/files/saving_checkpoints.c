#include "files.h"

//== writing zip files =================================================================================================
//
//  The entries are as PyTorch writes them: not compressed, and with the checksum after the data, so that the data is
//  read only once.  The data begins at a multiple of 64 bytes.

OPDI_INTERNAL void opdi_zip_writer_init(opdi_zip_writer *zip, opdi_sink *sink) {
    memset(zip, 0, sizeof *zip);
    zip->sink = sink;
    opdi_crc_init(&zip->table);
}
/* Writes the part of an entry's header from its version up to the length of its name (24 bytes).  Returns the address
   after this part. */
static unsigned char *opdi_zip_head(unsigned char *at, bool big, uint32_t crc, uint64_t bytes, size_t name) {
    at = opdi_le_put(at, big ? 45 : 0, 2);
    at = opdi_le_put(at, 0x0808, 2);              /* the checksum follows; the name is UTF-8 */
    at = opdi_le_put(at, 0, 2 + 4);               /* not compressed; no time */
    at = opdi_le_put(at, crc, 4);
    at = opdi_le_put(opdi_le_put(at, bytes, 4), bytes, 4);
    return opdi_le_put(at, name, 2);
}
/* Begins an entry of `bytes` bytes: writes its header.  The caller then writes its data into the sink.  Returns 0, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_zip_begin(opdi_zip_writer *zip, const char *name, uint64_t bytes) {
    const bool big = bytes >= opdi_zip64_from;
    const size_t length = strlen(name), extra = big ? 20 : 0;
    unsigned char head[160], *at = opdi_le_put(head, 0x04034b50u, 4);
    zip->begin = zip->sink->at;
    const size_t pad = (size_t)(64 - (zip->begin + 30 + length + extra + 4) % 64) % 64;
    at = opdi_zip_head(at, big, 0, 0, length);
    if (big) { memset(at - 10, 255, 8); }
    at = opdi_le_put(at, extra + 4 + pad, 2);
    unsigned char *const behind = at;
    if (big) { at = opdi_le_put(opdi_le_put(opdi_le_put(opdi_le_put(at, 1, 2), 16, 2), bytes, 8), bytes, 8); }
    at = opdi_le_put(opdi_le_put(at, 0x4246, 2), pad, 2);
    memset(at, 'Z', pad);
    if (opdi_sink_put(zip->sink, head, (size_t)(behind - head)) || opdi_sink_put(zip->sink, name, length) ||
        opdi_sink_put(zip->sink, behind, (size_t)(at - behind) + pad)) { return -1; }
    zip->data = zip->sink->at;
    zip->sink->table = &zip->table;
    zip->sink->crc = 0;
    return 0;
}
/* Ends the entry that opdi_zip_begin began, and adds it to the directory.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_zip_end_entry(opdi_zip_writer *zip, const char *name, uint64_t bytes) {
    const bool big = bytes >= opdi_zip64_from, late = zip->begin >= opdi_zip64_from;
    const size_t length = strlen(name), extra = big || late ? 4 + 16 * (size_t)big + 8 * (size_t)late : 0;
    unsigned char head[128], *at = opdi_le_put(opdi_le_put(head, 0x08074b50u, 4), zip->sink->crc, 4);
    zip->sink->table = NULL;
    at = opdi_le_put(opdi_le_put(at, bytes, big ? 8 : 4), bytes, big ? 8 : 4);
    if (zip->sink->at - zip->data != bytes) {
        return opdi_bad(&zip->sink->source, OPDI_NOWHERE, "'%.200s' does not have the size that was announced", name);
    }
    if (opdi_sink_put(zip->sink, head, (size_t)(at - head))) { return -1; }
    at = opdi_le_put(opdi_le_put(head, 0x02014b50u, 4), 0, 2);
    at = opdi_zip_head(at, big || late, zip->sink->crc, big ? 0xffffffffu : bytes, length);
    at = opdi_le_put(opdi_le_put(at, extra, 2), 0, 6 + 4);
    at = opdi_le_put(at, late ? 0xffffffffu : zip->begin, 4);
    opdi_string_add_n(&zip->directory, (const char *)head, (size_t)(at - head));
    opdi_string_add_n(&zip->directory, name, length);
    at = extra ? opdi_le_put(opdi_le_put(head, 1, 2), extra - 4, 2) : head;
    if (big) { at = opdi_le_put(opdi_le_put(at, bytes, 8), bytes, 8); }
    if (late) { at = opdi_le_put(at, zip->begin, 8); }
    opdi_string_add_n(&zip->directory, (const char *)head, (size_t)(at - head));
    zip->count++;
    return zip->directory.failed ? -1 : 0;
}
/* Writes a whole entry with the `bytes` bytes at `data`.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_zip_add(opdi_zip_writer *zip, const char *name, const void *data, size_t bytes) {
    return opdi_zip_begin(zip, name, bytes) || opdi_sink_put(zip->sink, data, bytes) ||
        opdi_zip_end_entry(zip, name, bytes) ? -1 : 0;
}
/* Writes the directory if rc is 0, and frees the writer's memory.  Returns rc, or -1 and sets an error. */
OPDI_INTERNAL int opdi_zip_close(opdi_zip_writer *zip, int rc) {
    const uint64_t begin = zip->sink->at;
    zip->sink->table = NULL;
    if (rc == 0) {
        rc = opdi_sink_put(zip->sink, zip->directory.data, zip->directory.length) ||
            opdi_zip_end(zip->sink, begin, zip->count) ? -1 : 0;
    }
    opdi_string_free(&zip->directory);
    return rc;
}

//== writing checkpoints ===============================================================================================
//
//  First a tree is made from the paths of the values, and a pickle from the tree.  Then each storage is written as an
//  entry of the zip file.

enum { OPDI_BRANCH_LEAF, OPDI_BRANCH_DICT, OPDI_BRANCH_LIST, OPDI_BRANCH_TUPLE };
/* A node of the tree, for a part of a path between slashes. */
typedef struct opdi_branch {
    const char *name;            /* the part of the path, `length` bytes, with its brackets */
    size_t length;
    int64_t number;
    char bracket;                /* '[', '(' or '{' around a number; 0: the name is a text */
    int kind;
    int64_t value;               /* index of a leaf's value; of a collection: -1 */
    int64_t first, last, next;   /* indices of the first and last child and the next sibling; 0: none */
    int64_t count;
} opdi_branch;

static opdi_branch *opdi_branch_at(const opdi_checkpoint_writer *writer, int64_t i) {
    return (opdi_branch *)(void *)writer->branches.data + i;
}
/* Sets *branch to one part of a path (`length` bytes at `name`), with its brackets and number.  Returns false if the
   text in brackets is a minus sign without a number. */
static bool opdi_branch_read(opdi_branch *branch, const char *name, size_t length) {
    static const char brackets[] = "[](){}";
    const char *open = length >= 2 ? (const char *)memchr(brackets, name[0], 6) : NULL;
    memset(branch, 0, sizeof *branch);
    branch->name = name;
    branch->length = length;
    if (!open || (open - brackets) % 2 || name[length - 1] != open[1]) { return true; }
    const bool minus = name[1] == '-' && *open == '{';
    for (size_t i = minus ? 2 : 1; i + 1 < length; i++) {
        if (name[i] < '0' || name[i] > '9' || branch->number > (INT64_MAX - 9) / 10) { return true; }
        branch->number = 10 * branch->number + (name[i] - '0');
    }
    if (minus) { branch->number = -branch->number; }
    branch->bracket = *open;
    return length == 2 || !minus || length > 3;
}
static bool opdi_branch_same(const opdi_branch *first, const opdi_branch *second) {
    if (first->bracket != second->bracket) { return false; }
    return first->bracket ? first->number == second->number
        : first->length == second->length && memcmp(first->name, second->name, first->length) == 0;
}
/* Makes the branch `to` the kind of collection (list, tuple or dict) that its child `branch` requires.  Returns 0, or
   -1 and sets an error if `to` already is of another kind. */
static int opdi_branch_hold(opdi_checkpoint_writer *writer, int64_t to, const opdi_branch *branch, const char *path) {
    opdi_branch *const its = opdi_branch_at(writer, to);
    const int kind = branch->bracket == '[' ? OPDI_BRANCH_LIST : branch->bracket == '(' ? OPDI_BRANCH_TUPLE
        : OPDI_BRANCH_DICT;
    if (its->kind != kind && (its->kind || its->value >= 0)) {
        return opdi_bad(&writer->source, OPDI_NOWHERE, "the path '%.300s' goes through %s", path,
                        its->kind ? "another kind of collection" : "a value");
    }
    its->kind = kind;
    return 0;
}
/* Adds a copy of `branch` as the last child of the branch `to`.  Returns its index, or -1 and sets an error. */
static int64_t opdi_branch_add(opdi_checkpoint_writer *writer, int64_t to, const opdi_branch *branch,
                               const char *path) {
    const int64_t at = (int64_t)(writer->branches.length / sizeof *branch);
    if ((branch->bracket == '[' || branch->bracket == '(') && branch->number != opdi_branch_at(writer, to)->count) {
        return opdi_bad(&writer->source, OPDI_NOWHERE, "the path '%.300s' names item %lld, but the next item is %lld",
                        path, (long long)branch->number, (long long)opdi_branch_at(writer, to)->count);
    }
    opdi_string_add_n(&writer->branches, (const char *)(const void *)branch, sizeof *branch);
    if (writer->branches.failed) { return -1; }
    opdi_branch *const its = opdi_branch_at(writer, to);
    opdi_branch_at(writer, at)->value = -1;
    if (its->last) { opdi_branch_at(writer, its->last)->next = at; } else { its->first = at; }
    its->last = at;
    its->count++;
    return at;
}
/* Returns the child of the branch `to` that has the same name as `branch`; adds it if there is none, or if it is to be
   a leaf (opdi_branch_check finds a leaf that is added twice).  writer->named finds the first child by its parent and
   name.  On failure, returns -1 and sets an error. */
static int64_t opdi_branch_enter(opdi_checkpoint_writer *writer, int64_t to, const opdi_branch *branch, bool leaf,
                                 const char *path) {
    const int64_t head[3] = {to, branch->bracket, branch->number};
    const size_t text = branch->bracket ? 0 : branch->length, length = sizeof head + text;
    char *const key = (char *)opdi_arena_alloc(&writer->arena, length);
    if (!key) { return -1; }
    memcpy(key, head, sizeof head);
    if (text) { memcpy(key + sizeof head, branch->name, text); }
    const int64_t found = (int64_t)(intptr_t)opdi_index_get(&writer->named, key, length);
    if (found && !leaf) { return found; }
    const int64_t at = opdi_branch_add(writer, to, branch, path);
    if (at < 0 || found) { return at; }
    return opdi_index_set(&writer->named, &writer->arena, key, length, (void *)(intptr_t)at) == 0 ? at : -1;
}
/* Adds a path and the index of its value to the tree.  Returns 0, or -1 and sets an error. */
static int opdi_branch_path(opdi_checkpoint_writer *writer, const char *path, int64_t value) {
    int64_t to = 0;
    int depth = 0;
    for (const char *at = path, *end; *path; at = end + 1) {
        opdi_branch branch;
        end = strchr(at, '/');
        const size_t length = end ? (size_t)(end - at) : strlen(at);
        if (!opdi_branch_read(&branch, at, length) || ++depth >= OPDI_CHECKPOINT_DEPTH) {
            return opdi_bad(&writer->source, OPDI_NOWHERE, "the path '%.300s' %s", path, depth < OPDI_CHECKPOINT_DEPTH
                            ? "has brackets without a number" : "has more than 100 parts");
        }
        if (opdi_branch_hold(writer, to, &branch, path)) { return -1; }
        const bool none = branch.bracket && length == 2;
        if (none && (end || writer->values[value].tag != OPD_TAG_NONE)) {
            return opdi_bad(&writer->source, OPDI_NOWHERE, "the path '%.300s' means an empty collection, so its value "
                            "must be OPD_NONE", path);
        }
        if (none) { return 0; }
        if ((to = opdi_branch_enter(writer, to, &branch, !end, path)) < 0) { return -1; }
        if (!end) { break; }
    }
    opdi_branch *const leaf = opdi_branch_at(writer, to);
    if (leaf->kind || leaf->value >= 0) {
        return opdi_bad(&writer->source, OPDI_NOWHERE, "the path '%.300s' already exists", path);
    }
    leaf->value = value;
    return 0;
}

OPDI_INTERNAL void opdi_pickle_put(opdi_checkpoint_writer *writer, int code) {
    const char byte = (char)code;
    opdi_string_add_n(&writer->pickle, &byte, 1);
}
OPDI_INTERNAL void opdi_pickle_put_le(opdi_checkpoint_writer *writer, int code, uint64_t value, int bytes) {
    unsigned char text[8];
    (void)opdi_le_put(text, value, bytes);
    opdi_pickle_put(writer, code);
    opdi_string_add_n(&writer->pickle, (const char *)text, (size_t)bytes);
}
static void opdi_pickle_put_int(opdi_checkpoint_writer *writer, int64_t value) {
    if (value >= 0 && value < 256) {
        opdi_pickle_put_le(writer, 'K', (uint64_t)value, 1);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        opdi_pickle_put_le(writer, 'J', (uint64_t)value, 4);
    } else {
        opdi_pickle_put(writer, 0x8a);            /* LONG1 */
        opdi_pickle_put_le(writer, 8, (uint64_t)value, 8);
    }
}
OPDI_INTERNAL void opdi_pickle_put_float(opdi_checkpoint_writer *writer, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    opdi_pickle_put(writer, 'G');
    for (int i = 56; i >= 0; i -= 8) { opdi_pickle_put(writer, (int)(bits >> i & 255)); }
}
OPDI_INTERNAL int opdi_pickle_put_text(opdi_checkpoint_writer *writer, const char *text, size_t length) {
    size_t count = 1;
    for (size_t at = 0; at < length; at += count) {
        if ((count = opdi_utf8((const unsigned char *)text + at, length - at)) == 0) {
            return opdi_bad(&writer->source, OPDI_NOWHERE, "the text '%.100s' is not UTF-8", text);
        }
    }
    if (length > INT32_MAX) { return opdi_bad(&writer->source, OPDI_NOWHERE, "a string has more than 2 GiB"); }
    opdi_pickle_put_le(writer, 'X', length, 4);
    opdi_string_add_n(&writer->pickle, text, length);
    return 0;
}
/* Writes opcode "c", a module and a name: of the dtype if `word` is true, otherwise of the class of storages of that
   dtype (for OPD_DTYPE_NONE: UntypedStorage). */
static void opdi_pickle_put_dtype(opdi_checkpoint_writer *writer, opd_scalar_type dtype, bool word) {
    for (int i = 0; i < OPDI_PICKLE_GLOBALS; i++) {
        const char *const name = opdi_pickle_globals[i].name;
        const bool storage = strstr(name, "Storage") != NULL;
        if (dtype == OPD_DTYPE_NONE ? strcmp(name, "UntypedStorage") != 0
            : opdi_pickle_globals[i].dtype != dtype || storage == word || strstr(name, "Untyped")) { continue; }
        opdi_pickle_put(writer, 'c');
        opdi_string_add(&writer->pickle, opdi_pickle_globals[i].module);
        opdi_pickle_put(writer, '\n');
        opdi_string_add(&writer->pickle, name);
        opdi_pickle_put(writer, '\n');
        return;
    }
}
static void opdi_pickle_put_ints(opdi_checkpoint_writer *writer, const int64_t *numbers, int count) {
    opdi_pickle_put(writer, '(');
    for (int i = 0; i < count; i++) { opdi_pickle_put_int(writer, numbers[i]); }
    opdi_pickle_put(writer, 't');
}
/* Writes a call of _rebuild_tensor_v2, or of _rebuild_tensor_v3 if the storage has tensors of several dtypes.  Returns
   0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_pickle_put_tensor(opdi_checkpoint_writer *writer, const opd_tensor *tensor) {
    const opd_scalar_type dtype = (opd_scalar_type)tensor->dtype;
    const opdi_storage *storage = opdi_storage_root(tensor);
    const int64_t element = (int64_t)opd_dtype_size(dtype);
    const int64_t number = opdi_pointer_set_add(&writer->storages, (uintptr_t)storage);
    if (number < 0) { return -1; }
    const bool several = ((const int *)(void *)writer->dtypes.data)[number] < 0;
    char key[24];
    (void)snprintf(key, sizeof key, "%lld", (long long)number);
    opdi_string_add(&writer->pickle, "ctorch._utils\n_rebuild_tensor_");
    opdi_string_add(&writer->pickle, several ? "v3\n((" : "v2\n((");
    (void)opdi_pickle_put_text(writer, "storage", 7);
    opdi_pickle_put_dtype(writer, several ? OPD_DTYPE_NONE : dtype, false);
    (void)opdi_pickle_put_text(writer, key, strlen(key));
    (void)opdi_pickle_put_text(writer, "cpu", 3);
    opdi_pickle_put_int(writer, several ? storage->bytes : storage->bytes / element);
    opdi_string_add(&writer->pickle, "tQ");
    opdi_pickle_put_int(writer, tensor->data ? (tensor->data - storage->data) / element : 0);
    opdi_pickle_put_ints(writer, tensor->dims, tensor->ndim);
    opdi_pickle_put_ints(writer, tensor->dims + tensor->ndim, tensor->ndim);
    opdi_pickle_put(writer, opd_tensor_requires_grad(tensor) ? 0x88 : 0x89);
    opdi_string_add(&writer->pickle, "ccollections\nOrderedDict\n)R");
    if (several) { opdi_pickle_put_dtype(writer, dtype, true); }
    opdi_string_add(&writer->pickle, "tR");
    return writer->pickle.failed ? -1 : 0;
}
OPDI_INTERNAL int opdi_pickle_put_value(opdi_checkpoint_writer *writer, const opd_value *value) {
    switch ((opd_tag)value->tag) {
    case OPD_TAG_NONE: opdi_pickle_put(writer, 'N'); return 0;
    case OPD_TAG_BOOL: opdi_pickle_put(writer, value->u.i ? 0x88 : 0x89); return 0;
    case OPD_TAG_INT: opdi_pickle_put_int(writer, value->u.i); return 0;
    case OPD_TAG_FLOAT: opdi_pickle_put_float(writer, value->u.d); return 0;
    case OPD_TAG_STR: return opdi_pickle_put_text(writer, value->u.s, strlen(value->u.s));
    case OPD_TAG_TENSOR: return opdi_pickle_put_tensor(writer, value->u.t);
    case OPD_TAG_INTS: case OPD_TAG_FLOATS:
        opdi_pickle_put(writer, ']');
        opdi_pickle_put(writer, '(');
        for (int i = 0; i < value->n; i++) {
            if (value->tag == OPD_TAG_INTS) { opdi_pickle_put_int(writer, value->u.ints[i]); }
            else { opdi_pickle_put_float(writer, value->u.floats[i]); }
        }
        opdi_pickle_put(writer, 'e');
        return 0;
    default: return opdi_bad(&writer->source, OPDI_NOWHERE, "a checkpoint cannot contain a value with tag %d",
                             (int)value->tag);
    }
}
/* Writes a branch with its children.  Recursion is limited, because a path has at most OPDI_CHECKPOINT_DEPTH parts.
   Returns 0, or -1 and sets an error. */
static int opdi_pickle_put_branch(opdi_checkpoint_writer *writer, int64_t at) {
    static const int begins[] = {0, '}', ']', '('}, ends[] = {0, 'u', 'e', 't'};
    const opdi_branch *const branch = opdi_branch_at(writer, at);
    if (branch->value >= 0) { return opdi_pickle_put_value(writer, &writer->values[branch->value]); }
    const int kind = branch->kind ? branch->kind : OPDI_BRANCH_DICT;
    opdi_pickle_put(writer, begins[kind]);
    if (kind != OPDI_BRANCH_TUPLE) { opdi_pickle_put(writer, '('); }
    for (int64_t i = branch->first; i; i = opdi_branch_at(writer, i)->next) {
        const opdi_branch *const its = opdi_branch_at(writer, i);
        if (its->bracket == '{') { opdi_pickle_put_int(writer, its->number); }
        if (!its->bracket && opdi_pickle_put_text(writer, its->name, its->length)) { return -1; }
        if (opdi_pickle_put_branch(writer, i)) { return -1; }
    }
    opdi_pickle_put(writer, ends[kind]);
    return writer->pickle.failed ? -1 : 0;
}
static int opdi_by_branch(const void *first, const void *second) {
    const opdi_branch *branch = *(const opdi_branch *const *)first, *other = *(const opdi_branch *const *)second;
    if (branch->bracket != other->bracket) { return branch->bracket - other->bracket; }
    if (branch->bracket) { return (branch->number > other->number) - (branch->number < other->number); }
    const int order = memcmp(branch->name, other->name, OPDI_MIN(branch->length, other->length));
    return order ? order : (branch->length > other->length) - (branch->length < other->length);
}
/* Checks that the children of a branch have different names.  Returns 0, or -1 and sets an error. */
static int opdi_branch_check(opdi_checkpoint_writer *writer, int64_t at) {
    const size_t count = (size_t)opdi_branch_at(writer, at)->count;
    size_t k = 0;
    const opdi_branch **list = count > 1 ? (const opdi_branch **)opdi_alloc(count * sizeof *list) : NULL;
    if (!list) { return opd_ok() ? 0 : -1; }
    for (int64_t i = opdi_branch_at(writer, at)->first; i; i = opdi_branch_at(writer, i)->next) {
        list[k++] = opdi_branch_at(writer, i);
    }
    qsort(list, count, sizeof *list, opdi_by_branch);
    for (k = 1; k < count && !opdi_branch_same(list[k - 1], list[k]); k++) { }
    if (k < count) {
        (void)opdi_bad(&writer->source, OPDI_NOWHERE, "one collection contains two values '%.*s'",
                       (int)OPDI_MIN(list[k]->length, 300), list[k]->name);
    }
    opdi_free(list, count * sizeof *list);
    return k < count ? -1 : 0;
}

/* Checks that a tensor has memory, gives its storage a number if it has none yet, and notes the storage's dtype.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_checkpoint_number(opdi_checkpoint_writer *writer, const opd_tensor *tensor) {
    void *data;
    if (opdi_memory_of(tensor, writer->source.who, &data) || opdi_blocks_refused(tensor, writer->source.who)) {
        return -1;
    }
    /* stored dtypes have no class of storages */
    const int dtype = opdi_is_stored_dtype(tensor->dtype) ? -1 : tensor->dtype;
    const int64_t was = writer->storages.count;
    const int64_t number = opdi_pointer_set_add(&writer->storages, (uintptr_t)opdi_storage_root(tensor));
    if (number < 0) { return -1; }
    if (number == was) {
        opdi_string_add_n(&writer->dtypes, (const char *)(const void *)&dtype, sizeof dtype);
        return writer->dtypes.failed ? -1 : 0;
    }
    int *const its = (int *)(void *)writer->dtypes.data + number;
    if (*its != dtype) { *its = -1; }
    return 0;
}
/* Writes the entry `name`, whose contents are the elements of `bytes`, a contiguous tensor of bytes on any device.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_zip_put_tensor(opdi_zip_writer *zip, const char *name, opd_tensor *bytes) {
    opd_tensor *const host = opdi_host_of(bytes, zip->sink->source.who);
    const int rc = host ? opdi_zip_add(zip, name, bytes->numel ? host->data : "", (size_t)bytes->numel) : -1;
    if (host) { opdi_drop(host); }
    return rc;
}
/* Writes the entry of storage number `number`, whose tensors have the dtype `dtype` (negative: several dtypes).  An
   incomplete element at the end is left out, as in the pickle.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_checkpoint_put(opdi_zip_writer *zip, opdi_storage *storage, int64_t number, int dtype) {
    const int64_t element = dtype < 0 ? 1 : (int64_t)opd_dtype_size((opd_scalar_type)dtype), stride = 1;
    const int64_t bytes = storage->bytes - storage->bytes % element;
    const int place = storage->device ? storage->device | (storage->index + 1) * 256 : OPD_CPU;
    opd_tensor *tensor = opdi_tensor_on(storage, storage->data, &bytes, &stride, 1, OPD_UINT8, place);
    char name[48];
    if (!tensor) { return -1; }
    opdi_ref_up(&storage->refs);
    (void)snprintf(name, sizeof name, "archive/data/%lld", (long long)number);
    const int rc = opdi_zip_put_tensor(zip, name, tensor);
    opdi_drop(tensor);
    return rc;
}
/* Makes the tree from the paths `names`, and the pickle of their values.  Returns 0, or -1 and sets an error. */
static int opdi_checkpoint_build(opdi_checkpoint_writer *writer, const char *const *names, int64_t count) {
    opdi_branch root;
    memset(&root, 0, sizeof root);
    root.value = -1;
    opdi_string_add_n(&writer->branches, (const char *)(const void *)&root, sizeof root);
    if (writer->branches.failed) { return -1; }
    for (int64_t i = 0; i < count; i++) {
        const opd_value *value = &writer->values[i];
        if (!names[i]) { return opdi_bad(&writer->source, OPDI_NOWHERE, "a path is NULL"); }
        if ((value->tag == OPD_TAG_TENSOR && opdi_checkpoint_number(writer, value->u.t)) ||
            opdi_branch_path(writer, names[i], i)) { return -1; }
    }
    const int64_t branches = (int64_t)(writer->branches.length / sizeof root);
    for (int64_t i = 0; i < branches; i++) { if (opdi_branch_check(writer, i)) { return -1; } }
    opdi_string_add(&writer->pickle, "\x80\x02");
    if (opdi_pickle_put_branch(writer, 0)) { return -1; }
    opdi_pickle_put(writer, '.');
    return writer->pickle.failed ? -1 : 0;
}
/* Writes the entries of the zip file: the pickle, the small entries of the format, and the storages.  Returns 0, or -1
   and sets an error. */
static int opdi_checkpoint_write(const opdi_checkpoint_writer *writer, opdi_zip_writer *zip) {
    const char *const order = opdi_big_endian() ? "big" : "little";
    if (opdi_zip_add(zip, "archive/data.pkl", writer->pickle.data, writer->pickle.length) ||
        opdi_zip_add(zip, "archive/.format_version", "1", 1) ||
        opdi_zip_add(zip, "archive/.storage_alignment", "64", 2) ||
        opdi_zip_add(zip, "archive/byteorder", order, strlen(order))) { return -1; }
    for (int64_t i = 0; i < writer->storages.count; i++) {
        if (opdi_checkpoint_put(zip, (opdi_storage *)writer->storages.at[i], i,
                                ((const int *)(void *)writer->dtypes.data)[i])) { return -1; }
    }
    return opdi_zip_add(zip, "archive/version", "3\n", 2);
}
int opd_checkpoint_file_save(const char *path, const char *const *names, const opd_value *values, int64_t count) {
    opdi_checkpoint_writer writer;
    opdi_sink sink;
    memset(&writer, 0, sizeof writer);
    writer.source.who = "opd_checkpoint_file_save";
    writer.source.path = path;
    writer.values = values;
    if (!opd_ok()) { return -1; }
    if (!path || count < 0 || (count && (!names || !values))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_checkpoint_file_save: the %s NULL", path ? "names or values are"
                        : "path is");
    }
    int rc = opdi_checkpoint_build(&writer, names, count);
    if (rc == 0 && (rc = opdi_sink_open(&sink, writer.source.who, path)) == 0) {
        opdi_zip_writer zip;
        opdi_zip_writer_init(&zip, &sink);
        rc = opdi_zip_close(&zip, opdi_checkpoint_write(&writer, &zip));
        rc = opdi_sink_close(&sink, rc);
    }
    opdi_string_free(&writer.branches);
    opdi_arena_free(&writer.arena);
    opdi_string_free(&writer.pickle);
    opdi_string_free(&writer.dtypes);
    opdi_pointer_set_free(&writer.storages);
    return rc;
}
