#include "files.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>pickles      reading pickles, the format of torch.save, as data
//
//  A pickle is a program for a machine with a stack; Python's pickletools describes each opcode.  Here this program
//  only builds a tree.  Calls of the classes and functions in opdi_pickle_globals are carried out; the result of any
//  other call is a node with the name of the function.  This section depends on bytes and errors, but not on tensors.
//----------------------------------------------------------------------------------------------------------------------

OPDI_INTERNAL const opdi_pickle_known opdi_pickle_globals[] = {
    /* row 0 is not used, because opdi_file_entry.strange is 0 for an entry that can be read */
    {"", "", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"collections", "OrderedDict", OPDI_GLOBAL_DICT, OPD_DTYPE_NONE, 0},
    {"collections", "Counter", OPDI_GLOBAL_DICT, OPD_DTYPE_NONE, 0},
    {"collections", "defaultdict", OPDI_GLOBAL_DICT, OPD_DTYPE_NONE, 0},
    {"torch.jit._pickle", "build_intlist", OPDI_GLOBAL_LIST, OPD_DTYPE_NONE, 0},
    {"torch.jit._pickle", "build_tensorlist", OPDI_GLOBAL_LIST, OPD_DTYPE_NONE, 0},
    {"torch.jit._pickle", "build_doublelist", OPDI_GLOBAL_LIST, OPD_DTYPE_NONE, 0},
    {"torch.jit._pickle", "build_boollist", OPDI_GLOBAL_LIST, OPD_DTYPE_NONE, 0},
    {"torch.jit._pickle", "restore_type_tag", OPDI_GLOBAL_FIRST, OPD_DTYPE_NONE, 0},
    {"torch._utils", "_rebuild_tensor_v2", OPDI_GLOBAL_TENSOR, OPD_DTYPE_NONE, 0},
    {"torch._utils", "_rebuild_tensor", OPDI_GLOBAL_TENSOR, OPD_DTYPE_NONE, 0},
    {"torch._utils", "_rebuild_tensor_v3", OPDI_GLOBAL_TENSOR_OF, OPD_DTYPE_NONE, 0},
    {"torch._utils", "_rebuild_parameter", OPDI_GLOBAL_PARAMETER, OPD_DTYPE_NONE, 0},
    {"torch._utils", "_rebuild_parameter_with_state", OPDI_GLOBAL_PARAMETER, OPD_DTYPE_NONE, 0},
    {"torch._tensor", "_rebuild_from_type_v2", OPDI_GLOBAL_TYPED, OPD_DTYPE_NONE, 0},
    {"torch._utils", "_rebuild_qtensor", OPDI_GLOBAL_QUANTIZED, OPD_DTYPE_NONE, 0},
    {"torch._utils", "_rebuild_sparse_tensor", OPDI_GLOBAL_STRANGE, OPD_DTYPE_NONE, 0},
    {"torch._utils", "_rebuild_sparse_csr_tensor", OPDI_GLOBAL_STRANGE, OPD_DTYPE_NONE, 0},
    {"torch._utils", "_rebuild_nested_tensor", OPDI_GLOBAL_STRANGE, OPD_DTYPE_NONE, 0},
    {"torch._utils", "_rebuild_meta_tensor_no_storage", OPDI_GLOBAL_STRANGE, OPD_DTYPE_NONE, 0},
    {"torch._utils", "_rebuild_wrapper_subclass", OPDI_GLOBAL_STRANGE, OPD_DTYPE_NONE, 0},
    {"torch._utils", "_rebuild_device_tensor_from_numpy", OPDI_GLOBAL_STRANGE, OPD_DTYPE_NONE, 0},
    {"torch._utils", "_rebuild_device_tensor_from_cpu_tensor", OPDI_GLOBAL_STRANGE, OPD_DTYPE_NONE, 0},
    {"torch.serialization", "_get_layout", OPDI_GLOBAL_FIRST, OPD_DTYPE_NONE, 0},
    {"torch", "Size", OPDI_GLOBAL_LIST, OPD_DTYPE_NONE, 0},
    {"torch", "device", OPDI_GLOBAL_DEVICE, OPD_DTYPE_NONE, 0},
    {"builtins", "set", OPDI_GLOBAL_LIST, OPD_DTYPE_NONE, 0},
    {"builtins", "frozenset", OPDI_GLOBAL_LIST, OPD_DTYPE_NONE, 0},
    {"builtins", "bytes", OPDI_GLOBAL_FIRST, OPD_DTYPE_NONE, 0},
    {"builtins", "complex", OPDI_GLOBAL_COMPLEX, OPD_DTYPE_NONE, 0},
    {"builtins", "bytearray", OPDI_GLOBAL_FIRST, OPD_DTYPE_NONE, 0},
    {"__builtin__", "set", OPDI_GLOBAL_LIST, OPD_DTYPE_NONE, 0},
    {"__builtin__", "frozenset", OPDI_GLOBAL_LIST, OPD_DTYPE_NONE, 0},
    {"__builtin__", "bytes", OPDI_GLOBAL_FIRST, OPD_DTYPE_NONE, 0},
    {"__builtin__", "complex", OPDI_GLOBAL_COMPLEX, OPD_DTYPE_NONE, 0},
    {"__builtin__", "bytearray", OPDI_GLOBAL_FIRST, OPD_DTYPE_NONE, 0},
    {"_codecs", "encode", OPDI_GLOBAL_BYTES, OPD_DTYPE_NONE, 0},
    {"numpy.core.multiarray", "scalar", OPDI_GLOBAL_SCALAR, OPD_DTYPE_NONE, 0},
    {"numpy.core.multiarray", "_reconstruct", OPDI_GLOBAL_STRANGE, OPD_DTYPE_NONE, 0},
    {"numpy._core.multiarray", "scalar", OPDI_GLOBAL_SCALAR, OPD_DTYPE_NONE, 0},
    {"numpy._core.multiarray", "_reconstruct", OPDI_GLOBAL_STRANGE, OPD_DTYPE_NONE, 0},
    {"numpy.core.numeric", "_frombuffer", OPDI_GLOBAL_STRANGE, OPD_DTYPE_NONE, 0},
    {"numpy._core.numeric", "_frombuffer", OPDI_GLOBAL_STRANGE, OPD_DTYPE_NONE, 0},
    {"numpy", "dtype", OPDI_GLOBAL_NUMPY, OPD_DTYPE_NONE, 0},
    {"numpy", "ndarray", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"builtins", "slice", OPDI_GLOBAL_CALLED, OPD_DTYPE_NONE, 0},
    {"__builtin__", "slice", OPDI_GLOBAL_CALLED, OPD_DTYPE_NONE, 0},
    {"builtins", "range", OPDI_GLOBAL_CALLED, OPD_DTYPE_NONE, 0},
    {"__builtin__", "xrange", OPDI_GLOBAL_CALLED, OPD_DTYPE_NONE, 0},
    {"builtins", "list", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"builtins", "dict", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"builtins", "tuple", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"builtins", "int", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"builtins", "float", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"builtins", "str", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"builtins", "bool", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"__builtin__", "list", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"__builtin__", "dict", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"__builtin__", "tuple", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"__builtin__", "int", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"__builtin__", "long", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"__builtin__", "float", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"__builtin__", "unicode", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"__builtin__", "bool", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"torch", "Tensor", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"torch.nn.parameter", "Parameter", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"torch", "FloatStorage", OPDI_GLOBAL_WORD, OPD_FLOAT32, 4},
    {"torch", "DoubleStorage", OPDI_GLOBAL_WORD, OPD_FLOAT64, 8},
    {"torch", "HalfStorage", OPDI_GLOBAL_WORD, OPD_FLOAT16, 2},
    {"torch", "BFloat16Storage", OPDI_GLOBAL_WORD, OPD_BFLOAT16, 2},
    {"torch", "LongStorage", OPDI_GLOBAL_WORD, OPD_INT64, 8},
    {"torch", "IntStorage", OPDI_GLOBAL_WORD, OPD_INT32, 4},
    {"torch", "ShortStorage", OPDI_GLOBAL_WORD, OPD_INT16, 2},
    {"torch", "CharStorage", OPDI_GLOBAL_WORD, OPD_INT8, 1},
    {"torch", "ByteStorage", OPDI_GLOBAL_WORD, OPD_UINT8, 1},
    {"torch", "BoolStorage", OPDI_GLOBAL_WORD, OPD_BOOL, 1},
    {"torch", "ComplexFloatStorage", OPDI_GLOBAL_WORD, OPD_COMPLEX64, 8},
    {"torch", "ComplexDoubleStorage", OPDI_GLOBAL_WORD, OPD_COMPLEX128, 16},
    {"torch", "QInt8Storage", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "QUInt8Storage", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "QInt32Storage", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 4},
    {"torch", "QUInt4x2Storage", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "QUInt2x4Storage", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch.storage", "UntypedStorage", OPDI_GLOBAL_WORD, OPD_UINT8, 1},
    {"torch", "UntypedStorage", OPDI_GLOBAL_WORD, OPD_UINT8, 1},
    {"torch", "float32", OPDI_GLOBAL_WORD, OPD_FLOAT32, 4}, {"torch", "float64", OPDI_GLOBAL_WORD, OPD_FLOAT64, 8},
    {"torch", "float16", OPDI_GLOBAL_WORD, OPD_FLOAT16, 2}, {"torch", "bfloat16", OPDI_GLOBAL_WORD, OPD_BFLOAT16, 2},
    {"torch", "int64", OPDI_GLOBAL_WORD, OPD_INT64, 8}, {"torch", "int32", OPDI_GLOBAL_WORD, OPD_INT32, 4},
    {"torch", "int16", OPDI_GLOBAL_WORD, OPD_INT16, 2}, {"torch", "int8", OPDI_GLOBAL_WORD, OPD_INT8, 1},
    {"torch", "uint8", OPDI_GLOBAL_WORD, OPD_UINT8, 1}, {"torch", "bool", OPDI_GLOBAL_WORD, OPD_BOOL, 1},
    {"torch", "complex64", OPDI_GLOBAL_WORD, OPD_COMPLEX64, 8},
    {"torch", "complex128", OPDI_GLOBAL_WORD, OPD_COMPLEX128, 16},
    {"torch", "complex32", OPDI_GLOBAL_WORD, OPD_COMPLEX32, 4},
    {"torch", "uint16", OPDI_GLOBAL_WORD, OPD_UINT16, 2},
    {"torch", "uint32", OPDI_GLOBAL_WORD, OPD_UINT32, 4},
    {"torch", "uint64", OPDI_GLOBAL_WORD, OPD_UINT64, 8},
    {"torch", "float8_e4m3fn", OPDI_GLOBAL_WORD, OPD_FLOAT8_E4M3FN, 1},
    {"torch", "float8_e5m2", OPDI_GLOBAL_WORD, OPD_FLOAT8_E5M2, 1},
    {"torch", "float8_e4m3fnuz", OPDI_GLOBAL_WORD, OPD_FLOAT8_E4M3FNUZ, 1},
    {"torch", "float8_e5m2fnuz", OPDI_GLOBAL_WORD, OPD_FLOAT8_E5M2FNUZ, 1},
    {"torch", "float8_e8m0fnu", OPDI_GLOBAL_WORD, OPD_FLOAT8_E8M0FNU, 1},
    {"torch", "float4_e2m1fn_x2", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "quint8", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "qint8", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "qint32", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 4},
    {"torch", "quint4x2", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "quint2x4", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "bits8", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "bits16", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 2},
    {"torch", "bits1x8", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "bits2x4", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "bits4x2", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "per_tensor_affine", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"torch", "per_tensor_symmetric", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"torch", "per_channel_affine", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"torch", "per_channel_symmetric", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"torch", "per_channel_affine_float_qparams", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 0},
    {"torch", "int1", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1}, {"torch", "uint1", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "int2", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1}, {"torch", "uint2", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "int3", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1}, {"torch", "uint3", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "int4", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1}, {"torch", "uint4", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "int5", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1}, {"torch", "uint5", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "int6", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1}, {"torch", "uint6", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1},
    {"torch", "int7", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1}, {"torch", "uint7", OPDI_GLOBAL_WORD, OPD_DTYPE_NONE, 1}};
OPDI_HAS_COUNT(opdi_pickle_globals, OPDI_PICKLE_GLOBALS);

OPDI_INTERNAL opdi_pickle_node *opdi_pickle_at(const opdi_pickle *pickle, uint32_t node) {
    return (opdi_pickle_node *)(void *)pickle->nodes.data + node;
}
OPDI_INTERNAL opdi_pickle_item *opdi_pickle_item_at(const opdi_pickle *pickle, uint32_t item) {
    return (opdi_pickle_item *)(void *)pickle->items.data + item;
}
/* Returns the first item of a node (an index in opdi_pickle.items), or 0 if the node has no items. */
OPDI_INTERNAL uint32_t opdi_pickle_first(const opdi_pickle *pickle, uint32_t node) {
    const opdi_pickle_node *const its = opdi_pickle_at(pickle, node);
    return its->kind >= OPDI_PICKLE_LIST ? its->first : 0;
}
/* Returns how many items a node has. */
OPDI_INTERNAL int64_t opdi_pickle_count(const opdi_pickle *pickle, uint32_t node) {
    const opdi_pickle_node *const its = opdi_pickle_at(pickle, node);
    return its->kind >= OPDI_PICKLE_LIST ? its->value : 0;
}
/* Returns item number i of a node, or 0 if there is none. */
OPDI_INTERNAL uint32_t opdi_pickle_get(const opdi_pickle *pickle, uint32_t node, int64_t i) {
    uint32_t item = opdi_pickle_first(pickle, node);
    for (; item && i > 0; i--) { item = opdi_pickle_item_at(pickle, item)->next; }
    return item ? opdi_pickle_item_at(pickle, item)->node : 0;
}
OPDI_INTERNAL double opdi_pickle_float_of(const opdi_pickle_node *node) {
    double number;
    memcpy(&number, &node->value, sizeof number);
    return number;
}
OPDI_INTERNAL bool opdi_pickle_is(const opdi_pickle *pickle, uint32_t node, int kind) {
    return node && opdi_pickle_at(pickle, node)->kind == kind;
}
/* Pushes a node on the stack.  Returns 0, or -1 if memory runs out. */
static int opdi_pickle_push(opdi_pickle *pickle, uint32_t node) {
    opdi_string_add_n(&pickle->stack, (const char *)(const void *)&node, sizeof node);
    return pickle->stack.failed ? -1 : 0;
}
/* Pops and returns the top node of the stack.  Returns 0 and sets an error if there is no node above the last mark. */
static uint32_t opdi_pickle_pop(opdi_pickle *pickle) {
    const size_t height = pickle->stack.length / sizeof(uint32_t), marks = pickle->marks.length / sizeof(uint32_t);
    const uint32_t floor = marks ? ((const uint32_t *)(void *)pickle->marks.data)[marks - 1] : 0;
    if (height <= floor) {
        (void)opdi_bad(pickle->source, pickle->at, "the pickle takes from an empty stack");
        return 0;
    }
    pickle->stack.length -= sizeof(uint32_t);
    return ((const uint32_t *)(void *)pickle->stack.data)[height - 1];
}
/* Makes a node and pushes it on the stack.  Returns the node, or 0 if memory runs out. */
static uint32_t opdi_pickle_new(opdi_pickle *pickle, int kind, int64_t value) {
    const size_t node = pickle->nodes.length / sizeof(opdi_pickle_node);
    opdi_pickle_node fresh;
    if (opdi_node_denied()) { return 0; }
    memset(&fresh, 0, sizeof fresh);
    fresh.kind = kind;
    fresh.value = value;
    opdi_string_add_n(&pickle->nodes, (const char *)(const void *)&fresh, sizeof fresh);
    return node > UINT32_MAX || pickle->nodes.failed || opdi_pickle_push(pickle, (uint32_t)node) ? 0 : (uint32_t)node;
}
/* Appends `node` to the items of the node `to`.  Returns 0, or -1 if memory runs out. */
static int opdi_pickle_add(opdi_pickle *pickle, uint32_t to, uint32_t node) {
    const opdi_pickle_item item = {node, 0};
    const uint32_t at = (uint32_t)(pickle->items.length / sizeof item);
    opdi_string_add_n(&pickle->items, (const char *)(const void *)&item, sizeof item);
    if (pickle->items.failed) { return -1; }
    opdi_pickle_node *const list = opdi_pickle_at(pickle, to);
    if (list->last) { opdi_pickle_item_at(pickle, list->last)->next = at; } else { list->first = at; }
    list->last = at;
    list->value++;
    return 0;
}
/* Returns the next `count` bytes of the pickle, and skips them.  Returns NULL and sets an error if the pickle ends
   before. */
static const unsigned char *opdi_pickle_take(opdi_pickle *pickle, uint64_t count) {
    if (count > pickle->source->length - pickle->at) {
        (void)opdi_bad(pickle->source, pickle->at, "the pickle ends within an opcode");
        return NULL;
    }
    pickle->at += (size_t)count;
    return pickle->source->data + pickle->at - count;
}
/* Reads a little-endian number of `bytes` bytes.  On failure, returns 0 and sets an error. */
static uint64_t opdi_pickle_number(opdi_pickle *pickle, int bytes) {
    const unsigned char *at = opdi_pickle_take(pickle, (uint64_t)bytes);
    uint64_t value = 0;
    for (int i = bytes; at && i-- > 0;) { value = value << 8 | at[i]; }
    return value;
}
/* Reads a text of `count` bytes, or up to the end of the line if count is negative, and pushes a node for it.  Returns
   0, or -1 and sets an error. */
static int opdi_pickle_text(opdi_pickle *pickle, int64_t count) {
    const size_t begin = pickle->at;
    if (count < 0) {
        const void *end = memchr(pickle->source->data + begin, '\n', pickle->source->length - begin);
        if (!end) { return opdi_bad(pickle->source, begin, "the pickle ends within a line"); }
        count = (int64_t)((size_t)((const unsigned char *)end - pickle->source->data) - begin);
        pickle->at++;
    }
    if (!opd_ok() || !opdi_pickle_take(pickle, (uint64_t)count)) { return -1; }
    if (pickle->at > UINT32_MAX) { return opdi_bad(pickle->source, begin, "the pickle has more than 4 GiB"); }
    const uint32_t node = opdi_pickle_new(pickle, OPDI_PICKLE_TEXT, count);
    if (!node) { return -1; }
    opdi_pickle_at(pickle, node)->text = (uint32_t)begin;
    return 0;
}
/* Pushes a node for an unknown class or function or, if `called` is true, for the result of calling it with `args` (0:
   no arguments).  Returns the node, or 0 if memory runs out. */
static uint32_t opdi_pickle_foreign(opdi_pickle *pickle, uint32_t module, uint32_t name, bool called, uint32_t args) {
    const uint32_t node = opdi_pickle_new(pickle, OPDI_PICKLE_FOREIGN, 0);
    if (!node || opdi_pickle_add(pickle, node, module) || opdi_pickle_add(pickle, node, name) ||
        (args && opdi_pickle_add(pickle, node, args))) { return 0; }
    opdi_pickle_at(pickle, node)->text = called;
    return node;
}
/* Pops a name and a module, and pushes the class or function that they name.  Returns 0, or -1 and sets an error.  In
   scripts, an unknown name is an error, too. */
static int opdi_pickle_global(opdi_pickle *pickle) {
    const uint32_t name = opdi_pickle_pop(pickle), module = name ? opdi_pickle_pop(pickle) : 0;
    if (!module) { return -1; }
    if (!opdi_pickle_is(pickle, name, OPDI_PICKLE_TEXT) || !opdi_pickle_is(pickle, module, OPDI_PICKLE_TEXT)) {
        return opdi_bad(pickle->source, pickle->at, "the name of a class is not a string");
    }
    const opdi_pickle_node *texts[2] = {opdi_pickle_at(pickle, module), opdi_pickle_at(pickle, name)};
    const char *const data = (const char *)pickle->source->data;
    for (int k = 1; k < OPDI_PICKLE_GLOBALS; k++) {
        const char *const words[2] = {opdi_pickle_globals[k].module, opdi_pickle_globals[k].name};
        int same = 0;
        for (int i = 0; i < 2; i++) {
            same += strlen(words[i]) == (size_t)texts[i]->value &&
                memcmp(words[i], data + texts[i]->text, (size_t)texts[i]->value) == 0;
        }
        if (same == 2) { return opdi_pickle_new(pickle, OPDI_PICKLE_GLOBAL, k) ? 0 : -1; }
    }
    if (pickle->script && texts[0]->value >= 9 && memcmp(data + texts[0]->text, "__torch__", 9) == 0) {
        const uint32_t klass = opdi_pickle_new(pickle, OPDI_PICKLE_CLASS, 0);
        return klass && !opdi_pickle_add(pickle, klass, module) ? opdi_pickle_add(pickle, klass, name) : -1;
    }
    const bool script = texts[0]->value >= 9 && memcmp(data + texts[0]->text, "__torch__", 9) == 0;
    if (!pickle->script && !script) { return opdi_pickle_foreign(pickle, module, name, false, 0) ? 0 : -1; }
    return opdi_bad(pickle->source, pickle->at, "the pickle contains %.*s.%.*s, which is not one of the classes and "
                    "functions that can be read%s", (int)OPDI_MIN(texts[0]->value, 100), data + texts[0]->text,
                    (int)OPDI_MIN(texts[1]->value, 100), data + texts[1]->text, script
                    ? " (this is a TorchScript program, not a checkpoint)" : "");
}
/* Replaces the nodes above the last mark by a list, tuple or dict that contains them.  If kind is 0, appends these
   nodes to the node below the mark instead.  Returns 0, or -1 and sets an error. */
static int opdi_pickle_gather(opdi_pickle *pickle, int kind) {
    const size_t marks = pickle->marks.length / sizeof(uint32_t);
    if (!marks) { return opdi_bad(pickle->source, pickle->at, "the pickle has no mark here"); }
    const size_t floor = ((const uint32_t *)(void *)pickle->marks.data)[marks - 1];
    const size_t height = pickle->stack.length / sizeof(uint32_t);
    pickle->marks.length -= sizeof(uint32_t);
    if (!kind && (!floor || pickle->stack.length <= floor * sizeof(uint32_t) - 1)) {
        return opdi_bad(pickle->source, pickle->at, "the pickle has nothing to append to");
    }
    const uint32_t to = kind ? opdi_pickle_new(pickle, kind, 0)
        : ((const uint32_t *)(void *)pickle->stack.data)[floor - 1];
    if (!to) { return -1; }
    const int its = opdi_pickle_at(pickle, to)->kind;
    if (!kind && its != OPDI_PICKLE_LIST && its != OPDI_PICKLE_DICT && its != OPDI_PICKLE_FOREIGN) {
        return opdi_bad(pickle->source, pickle->at, "the pickle appends to a value that is not a list or dict");
    }
    if (its == OPDI_PICKLE_DICT && (height - floor) % 2) {
        return opdi_bad(pickle->source, pickle->at, "a key of a dict has no value");
    }
    for (size_t i = floor; i < height; i++) {
        if (opdi_pickle_add(pickle, to, ((const uint32_t *)(void *)pickle->stack.data)[i])) { return -1; }
    }
    pickle->stack.length = floor * sizeof(uint32_t);
    return kind ? opdi_pickle_push(pickle, to) : 0;
}
/* Replaces the top `count` nodes on the stack by a node of `kind` that contains them.  Returns 0, or -1 and sets an
   error. */
static int opdi_pickle_tuple(opdi_pickle *pickle, int kind, int count) {
    uint32_t parts[4];
    for (int i = count; i-- > 0;) { if ((parts[i] = opdi_pickle_pop(pickle)) == 0) { return -1; } }
    const uint32_t to = opdi_pickle_new(pickle, kind, 0);
    for (int i = 0; to && i < count; i++) { if (opdi_pickle_add(pickle, to, parts[i])) { return -1; } }
    return to ? 0 : -1;
}
/* Appends the top `count` nodes on the stack (1 or 2) to the list or dict below them.  Returns 0, or -1 and sets an
   error. */
static int opdi_pickle_append(opdi_pickle *pickle, int kind, int count) {
    uint32_t parts[2];
    for (int i = count; i-- > 0;) { if ((parts[i] = opdi_pickle_pop(pickle)) == 0) { return -1; } }
    const uint32_t to = opdi_pickle_pop(pickle);
    if (!to) { return -1; }
    if (!opdi_pickle_is(pickle, to, kind) && !opdi_pickle_is(pickle, to, OPDI_PICKLE_FOREIGN)) {
        return opdi_bad(pickle->source, pickle->at, "the value is not a list or dict");
    }
    for (int i = 0; i < count; i++) { if (opdi_pickle_add(pickle, to, parts[i])) { return -1; } }
    return opdi_pickle_push(pickle, to);
}
/* Adds `amount`, about one for each byte or node, to the work that exceeds reading the opcodes' own bytes: a few bytes
   may refer repeatedly to much data.  Returns 0, or -1 and sets an error if the work is too much for the bytes that
   were read. */
OPDI_INTERNAL int opdi_pickle_work(opdi_pickle *pickle, uint64_t amount) {
    pickle->work += amount;
    return pickle->work <= 1000000 + 64 * (uint64_t)pickle->at ? 0
        : opdi_bad(pickle->source, pickle->at, "a pickle of %llu bytes makes too many objects",
                   (unsigned long long)pickle->at);
}
/* Pushes a dict that is made from the list of pairs `from` (0: empty), or `from` itself if it is a dict.  Returns 0, or
   -1 and sets an error. */
static int opdi_pickle_call_dict(opdi_pickle *pickle, uint32_t from) {
    if (opdi_pickle_is(pickle, from, OPDI_PICKLE_DICT)) { return opdi_pickle_push(pickle, from); }
    const uint32_t dict = opdi_pickle_new(pickle, OPDI_PICKLE_DICT, 0);
    uint32_t item = opdi_pickle_first(pickle, from);
    for (; dict && item; item = opdi_pickle_item_at(pickle, item)->next) {
        const uint32_t pair = opdi_pickle_item_at(pickle, item)->node;
        if (opdi_pickle_count(pickle, pair) != 2 || !opdi_pickle_get(pickle, pair, 1)) {
            return opdi_bad(pickle->source, pickle->at, "a dict is not made of pairs");
        }
        if (opdi_pickle_work(pickle, 1) || opdi_pickle_add(pickle, dict, opdi_pickle_get(pickle, pair, 0)) ||
            opdi_pickle_add(pickle, dict, opdi_pickle_get(pickle, pair, 1))) { return -1; }
    }
    return dict ? 0 : -1;
}
OPDI_INTERNAL bool opdi_pickle_names(const opdi_pickle *pickle, uint32_t node, const char *word) {
    const opdi_pickle_node *const text = opdi_pickle_at(pickle, node);
    return text->kind == OPDI_PICKLE_TEXT && (size_t)text->value == strlen(word) &&
        memcmp(pickle->source->data + text->text, word, strlen(word)) == 0;
}
static bool opdi_pickle_is_true(const opdi_pickle *pickle, uint32_t node) {
    return opdi_pickle_is(pickle, node, OPDI_PICKLE_BOOL) && opdi_pickle_at(pickle, node)->value;
}
/* Pushes a tensor that is made from the arguments of _rebuild_tensor_v2 or, if `typed` is true, of _v3, which has a
   dtype in front of the metadata.  Returns 0, or -1 and sets an error. */
static int opdi_pickle_call_tensor(opdi_pickle *pickle, uint32_t args, bool typed) {
    const uint32_t storage = opdi_pickle_get(pickle, args, 0);
    const uint32_t meta = opdi_pickle_get(pickle, args, typed ? 7 : 6);
    if (!opdi_pickle_is(pickle, storage, OPDI_PICKLE_STORAGE) ||
        opdi_pickle_count(pickle, args) < (typed ? 7 : 4)) {
        return opdi_bad(pickle->source, pickle->at, "a tensor is not made of a storage");
    }
    const uint32_t word = typed ? opdi_pickle_get(pickle, args, 6) : opdi_pickle_get(pickle, storage, 0);
    if (!opdi_pickle_is(pickle, word, OPDI_PICKLE_GLOBAL) ||
        !opdi_pickle_globals[opdi_pickle_at(pickle, word)->value].bytes) {
        return opdi_bad(pickle->source, pickle->at, "the dtype of a tensor is not a dtype");
    }
    const uint32_t tensor = opdi_pickle_new(pickle, OPDI_PICKLE_TENSOR, 0);
    for (int64_t i = 0; tensor && i < 4; i++) {
        if (opdi_pickle_add(pickle, tensor, opdi_pickle_get(pickle, args, i))) { return -1; }
    }
    if (!tensor || opdi_pickle_add(pickle, tensor, word)) { return -1; }
    opdi_pickle_node *const node = opdi_pickle_at(pickle, tensor);
    if (opdi_pickle_is_true(pickle, opdi_pickle_get(pickle, args, 4))) { node->text |= OPDI_TENSOR_GRAD; }
    if (opdi_pickle_is(pickle, meta, OPDI_PICKLE_DICT)) {
        uint32_t item = opdi_pickle_first(pickle, meta), key = 0;
        for (; item; item = opdi_pickle_item_at(pickle, item)->next) {
            const uint32_t its = opdi_pickle_item_at(pickle, item)->node;
            if (opdi_pickle_work(pickle, 1)) { return -1; }
            if (key && opdi_pickle_is_true(pickle, its)) {
                node->text |= opdi_pickle_names(pickle, key, "conj") ? OPDI_TENSOR_CONJ
                    : opdi_pickle_names(pickle, key, "neg") ? OPDI_TENSOR_NEG : 0;
            }
            key = key ? 0 : its;
        }
    }
    return 0;
}
/* Pushes a parameter: a copy of the tensor that is the first argument.  The copy requires grad if the second argument
   is true.  If the first argument is a value that cannot be read, pushes this value.  Returns 0, or -1 and sets an
   error. */
static int opdi_pickle_call_parameter(opdi_pickle *pickle, uint32_t args) {
    const uint32_t from = opdi_pickle_get(pickle, args, 0);
    if (!opdi_pickle_is(pickle, from, OPDI_PICKLE_TENSOR)) {
        return opdi_pickle_is(pickle, from, OPDI_PICKLE_STRANGE) || opdi_pickle_is(pickle, from, OPDI_PICKLE_FOREIGN) ||
            opdi_pickle_is(pickle, from, OPDI_PICKLE_QUANTIZED) ? opdi_pickle_push(pickle, from)
            : opdi_bad(pickle->source, pickle->at, "a parameter is not made of a tensor");
    }
    const uint32_t to = opdi_pickle_new(pickle, OPDI_PICKLE_TENSOR, 0);
    if (!to) { return -1; }
    *opdi_pickle_at(pickle, to) = *opdi_pickle_at(pickle, from);
    if (opdi_pickle_is_true(pickle, opdi_pickle_get(pickle, args, 1))) {
        opdi_pickle_at(pickle, to)->text |= OPDI_TENSOR_GRAD;
    }
    return 0;
}
/* Returns the name of the class of plain storages that corresponds to a class of quantized storages, or NULL for other
   classes. */
static const char *opdi_pickle_plain_class(const char *name) {
    return strcmp(name, "QInt8Storage") == 0 ? "CharStorage" : strcmp(name, "QUInt8Storage") == 0 ? "ByteStorage"
        : strcmp(name, "QInt32Storage") == 0 ? "IntStorage" : NULL;
}
/* Pushes a QUANTIZED node for a quantized tensor if its numbers are whole bytes, and otherwise a STRANGE node.  Returns
   0, or -1 and sets an error. */
static int opdi_pickle_call_quantized(opdi_pickle *pickle, int64_t global, uint32_t args) {
    const uint32_t storage = opdi_pickle_get(pickle, args, 0), how = opdi_pickle_get(pickle, args, 4);
    const bool stored = opdi_pickle_is(pickle, storage, OPDI_PICKLE_STORAGE);
    const uint32_t word = stored ? opdi_pickle_get(pickle, storage, 0) : 0;
    const char *const plainly = opdi_pickle_is(pickle, word, OPDI_PICKLE_GLOBAL)
        ? opdi_pickle_plain_class(opdi_pickle_globals[opdi_pickle_at(pickle, word)->value].name) : NULL;
    int64_t chars = 0;
    if (!plainly || !opdi_pickle_is(pickle, how, OPDI_PICKLE_TUPLE)) {
        return opdi_pickle_new(pickle, OPDI_PICKLE_STRANGE, global) ? 0 : -1;
    }
    while (strcmp(opdi_pickle_globals[chars].name, plainly) != 0) { chars++; }
    const uint32_t quantized = opdi_pickle_new(pickle, OPDI_PICKLE_QUANTIZED, 0);
    const uint32_t tensor = quantized && opdi_pickle_new(pickle, OPDI_PICKLE_TENSOR, 0) ? opdi_pickle_pop(pickle) : 0;
    const uint32_t plain = tensor && opdi_pickle_new(pickle, OPDI_PICKLE_GLOBAL, chars) ? opdi_pickle_pop(pickle) : 0;
    for (int64_t i = 0; plain && i < 4; i++) {
        if (opdi_pickle_add(pickle, tensor, opdi_pickle_get(pickle, args, i))) { return -1; }
    }
    if (!plain || opdi_pickle_add(pickle, tensor, plain) || opdi_pickle_add(pickle, quantized, tensor) ||
        opdi_pickle_add(pickle, quantized, how)) { return -1; }
    opdi_pickle_at(pickle, quantized)->text = (uint32_t)global;
    return 0;
}
static int opdi_pickle_call_bytes(opdi_pickle *pickle, uint32_t what, uint32_t text) {
    if (!opdi_pickle_is(pickle, text, OPDI_PICKLE_TEXT)) {
        return opdi_bad(pickle->source, pickle->at, "a bytes object is not made of a string");
    }
    const opdi_pickle_node *node = opdi_pickle_at(pickle, text);
    if (opdi_pickle_work(pickle, (uint64_t)node->value)) { return -1; }
    for (int64_t i = 0; i < node->value; i++) {
        if (pickle->source->data[node->text + (size_t)i] < 0x80) { continue; }
        const uint32_t at = node->text, count = (uint32_t)node->value;
        const uint32_t strange = opdi_pickle_new(pickle, OPDI_PICKLE_STRANGE, opdi_pickle_at(pickle, what)->value);
        if (!strange) { return -1; }
        opdi_pickle_at(pickle, strange)->text = at;
        opdi_pickle_at(pickle, strange)->last = count;
        return 0;
    }
    return opdi_pickle_push(pickle, text);
}
/* Copies the bytes of a node into out.  Returns false unless they are exactly `count` bytes. */
static bool opdi_pickle_bytes(const opdi_pickle *pickle, uint32_t from, unsigned char *out, int count) {
    const opdi_pickle_node *const node = opdi_pickle_at(pickle, from);
    const unsigned char *at = pickle->source->data + node->text;
    int made = 0;
    if (node->kind == OPDI_PICKLE_TEXT && node->value == count) {
        memcpy(out, at, (size_t)count);
        return true;
    }
    if (node->kind != OPDI_PICKLE_STRANGE) { return false; }
    /* the pickle has each byte as a character in UTF-8 (byte 80 is C2 80) */
    for (const unsigned char *const end = at + node->last; at < end && made < count; made++) {
        if (*at >= 0x80 && ((*at & 0xfe) != 0xc2 || end - at < 2)) { return false; }
        out[made] = *at < 0x80 ? *at : (unsigned char)((*at & 3) << 6 | (at[1] & 0x3f));
        at += *at < 0x80 ? 1 : 2;
    }
    return made == count && at == pickle->source->data + node->text + node->last;
}
/* Sets *number to the float of `size` bytes at `bytes`.  Returns false if there are no floats of that size. */
static bool opdi_pickle_number_of(const unsigned char *bytes, int size, double *number) {
    uint16_t half;
    float single;
    if (size == 2) {
        memcpy(&half, bytes, sizeof half);
        *number = (double)opdi_f16_to_f32(half);
    } else if (size == 4) {
        memcpy(&single, bytes, sizeof single);
        *number = (double)single;
    } else if (size == 8) { memcpy(number, bytes, sizeof *number); }
    return size == 2 || size == 4 || size == 8;
}
static int opdi_pickle_new_float(opdi_pickle *pickle, double number) {
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return opdi_pickle_new(pickle, OPDI_PICKLE_FLOAT, bits) ? 0 : -1;
}
/* Pushes a number of NumPy; `letter` is the kind of its dtype ('b', 'i', 'u', 'f', 'c').  Returns 0, or 1 if this kind
   cannot be read, or -1 and sets an error. */
static int opdi_pickle_scalar(opdi_pickle *pickle, char letter, unsigned char *bytes, int size) {
    const bool sign = letter == 'i' && bytes[opdi_big_endian() ? 0 : size - 1] & 0x80;
    uint64_t whole = sign ? UINT64_MAX : 0;
    double number;
    switch (letter) {
    case 'b': return size == 1 && bytes[0] < 2 ? (opdi_pickle_new(pickle, OPDI_PICKLE_BOOL, bytes[0]) ? 0 : -1) : 1;
    case 'i': case 'u':
        for (int i = 0; i < size; i++) { whole = whole << 8 | bytes[opdi_big_endian() ? i : size - 1 - i]; }
        if (size > 8) { return 1; }
        return opdi_pickle_new(pickle, letter == 'u' && whole > INT64_MAX ? OPDI_PICKLE_STRANGE : OPDI_PICKLE_INT,
                               letter == 'u' && whole > INT64_MAX ? OPDI_BIG_INT : (int64_t)whole) ? 0 : -1;
    case 'f': return opdi_pickle_number_of(bytes, size, &number) ? opdi_pickle_new_float(pickle, number) : 1;
    case 'c':
        for (int i = 0; i < 2; i++) {
            if (size < 8 || !opdi_pickle_number_of(bytes + i * (size / 2), size / 2, &number)) { return 1; }
            if (opdi_pickle_new_float(pickle, number)) { return -1; }
        }
        return opdi_pickle_tuple(pickle, OPDI_PICKLE_COMPLEX, 2);
    default: return 1;
    }
}
/* Pushes the number that numpy's scalar(dtype, bytes) makes, or a STRANGE node if it is not a number.  Returns 0, or -1
   and sets an error. */
static int opdi_pickle_call_scalar(opdi_pickle *pickle, int64_t global, uint32_t type, uint32_t from) {
    unsigned char bytes[16];
    if (!opdi_pickle_is(pickle, type, OPDI_PICKLE_NUMPY) || !from) {
        return opdi_bad(pickle->source, pickle->at, "a number of NumPy is not valid");
    }
    const opdi_pickle_node *const node = opdi_pickle_at(pickle, type);
    const char *const word = (const char *)pickle->source->data + node->text;
    int size = node->value > 1 && word[1] >= '1' && word[1] <= '9' ? word[1] - '0' : 0;
    if (node->value == 3 && word[1] == '1' && word[2] == '6') { size = 16; } else if (node->value != 2) { size = 0; }
    if (size && opdi_pickle_bytes(pickle, from, bytes, size)) {
        const int part = word[0] == 'c' ? size / 2 : size;
        const bool swap = (node->last != 0) != opdi_big_endian() && part > 1;
        if (swap) { opdi_swap((char *)bytes, (size_t)size, (size_t)part); }
        const int rc = opdi_pickle_scalar(pickle, word[0], bytes, size);
        if (rc <= 0) { return rc; }
    }
    return opdi_pickle_new(pickle, OPDI_PICKLE_STRANGE, global) ? 0 : -1;
}
/* Pushes the dtype of NumPy that is named by `text`.  Returns 0, or -1 and sets an error. */
static int opdi_pickle_call_numpy(opdi_pickle *pickle, uint32_t text) {
    if (!opdi_pickle_is(pickle, text, OPDI_PICKLE_TEXT)) {
        return opdi_bad(pickle->source, pickle->at, "a dtype of NumPy has no name");
    }
    const opdi_pickle_node its = *opdi_pickle_at(pickle, text);
    const uint32_t node = opdi_pickle_new(pickle, OPDI_PICKLE_NUMPY, its.value);
    if (!node) { return -1; }
    opdi_pickle_at(pickle, node)->text = its.text;
    return 0;
}
static int opdi_pickle_call_called(opdi_pickle *pickle, int64_t global, uint32_t args) {
    const int64_t count = opdi_pickle_count(pickle, args);
    const bool range = opdi_pickle_globals[global].name[0] != 's';
    if (count > 3) { return opdi_bad(pickle->source, pickle->at, "a range or slice has more than 3 numbers"); }
    const uint32_t node = opdi_pickle_new(pickle, OPDI_PICKLE_CALLED, 0);
    if (!node) { return -1; }
    opdi_pickle_at(pickle, node)->text = (uint32_t)global;
    for (int64_t i = 0; i < count; i++) {
        const uint32_t part = opdi_pickle_get(pickle, args, i);
        const bool one = opdi_pickle_is(pickle, part, OPDI_PICKLE_INT) && opdi_pickle_at(pickle, part)->value == 1;
        if (range && i == 2 && one) { continue; }  /* Python does not print a step of 1 */
        if (opdi_pickle_add(pickle, node, part)) { return -1; }
    }
    return 0;
}
/* Pushes the result of calling the unknown class or function `what` with args.  A function of copyreg makes an object
   of the class that is its first argument, so the result gets this class.  Returns 0, or -1 if memory runs out. */
static int opdi_pickle_call_foreign(opdi_pickle *pickle, uint32_t what, uint32_t args) {
    const uint32_t from = opdi_pickle_get(pickle, what, 0), first = opdi_pickle_get(pickle, args, 0);
    if (opdi_pickle_is(pickle, first, OPDI_PICKLE_FOREIGN) &&
        (opdi_pickle_names(pickle, from, "copyreg") || opdi_pickle_names(pickle, from, "copy_reg"))) { what = first; }
    return opdi_pickle_foreign(pickle, opdi_pickle_get(pickle, what, 0), opdi_pickle_get(pickle, what, 1), true, args)
        ? 0 : -1;
}
/* Returns true if a known class or function cannot be called because a necessary argument is of an unknown class. */
static bool opdi_pickle_needs_foreign(const opdi_pickle *pickle, int64_t global, uint32_t args) {
    int64_t count = opdi_pickle_count(pickle, args);
    switch (opdi_pickle_globals[global].call) {
    case OPDI_GLOBAL_DICT: if (strcmp(opdi_pickle_globals[global].name, "defaultdict") == 0) { return false; } break;
    case OPDI_GLOBAL_PARAMETER: case OPDI_GLOBAL_TYPED: case OPDI_GLOBAL_FIRST: case OPDI_GLOBAL_STRANGE:
    case OPDI_GLOBAL_WORD: return false;
    case OPDI_GLOBAL_TENSOR: count = 4; break;    /* later arguments (hooks, metadata) may be of unknown classes */
    default: break;
    }
    uint32_t item = opdi_pickle_first(pickle, args);
    for (; item && count > 0; item = opdi_pickle_item_at(pickle, item)->next, count--) {
        if (opdi_pickle_is(pickle, opdi_pickle_item_at(pickle, item)->node, OPDI_PICKLE_FOREIGN)) { return true; }
    }
    return false;
}
/* If a call makes an object of a Python class that stands for a tensor, such as torchao's quantised weights, returns
   the dict of its attributes, which has the tensors inside of it.  Else returns 0. */
static uint32_t opdi_pickle_inside(const opdi_pickle *pickle, int64_t global, uint32_t args) {
    const uint32_t made = opdi_pickle_get(pickle, args, 0);
    if (opdi_pickle_globals[global].call != OPDI_GLOBAL_TYPED || !opdi_pickle_is(pickle, made, OPDI_PICKLE_GLOBAL) ||
        strcmp(opdi_pickle_globals[opdi_pickle_at(pickle, made)->value].name, "_rebuild_wrapper_subclass") != 0) {
        return 0;
    }
    uint32_t state = opdi_pickle_get(pickle, args, 3);
    if (opdi_pickle_is(pickle, state, OPDI_PICKLE_TUPLE)) { state = opdi_pickle_get(pickle, state, 0); }
    return opdi_pickle_is(pickle, state, OPDI_PICKLE_DICT) ? state : 0;
}
static int opdi_pickle_call_what(opdi_pickle *pickle, uint32_t what, uint32_t args, bool again) {
    if (opdi_pickle_is(pickle, what, OPDI_PICKLE_FOREIGN) && opdi_pickle_is(pickle, args, OPDI_PICKLE_TUPLE)) {
        return opdi_pickle_call_foreign(pickle, what, args);
    }
    if (!opdi_pickle_is(pickle, what, OPDI_PICKLE_GLOBAL) || !opdi_pickle_is(pickle, args, OPDI_PICKLE_TUPLE)) {
        return opdi_bad(pickle->source, pickle->at, "the pickle calls a value that cannot be called");
    }
    const int64_t global = opdi_pickle_at(pickle, what)->value;
    const uint32_t first = opdi_pickle_get(pickle, args, 0);
    const uint32_t inside = opdi_pickle_inside(pickle, global, args);
    if (inside) { return opdi_pickle_push(pickle, inside); }
    if (opdi_pickle_needs_foreign(pickle, global, args)) {
        return opdi_pickle_new(pickle, OPDI_PICKLE_STRANGE, global) ? 0 : -1;
    }
    switch (opdi_pickle_globals[global].call) {
    case OPDI_GLOBAL_DICT:
        return opdi_pickle_call_dict(pickle, opdi_pickle_is(pickle, first, OPDI_PICKLE_FOREIGN) ? 0 : first);
    case OPDI_GLOBAL_TENSOR: return opdi_pickle_call_tensor(pickle, args, false);
    case OPDI_GLOBAL_TENSOR_OF: return opdi_pickle_call_tensor(pickle, args, true);
    case OPDI_GLOBAL_PARAMETER: return opdi_pickle_call_parameter(pickle, args);
    case OPDI_GLOBAL_TYPED:
        return again ? opdi_bad(pickle->source, pickle->at, "a call of _rebuild_from_type_v2 is nested in another one")
            : opdi_pickle_call_what(pickle, first, opdi_pickle_get(pickle, args, 2), true);
    case OPDI_GLOBAL_DEVICE: case OPDI_GLOBAL_COMPLEX: {
        const int kind = opdi_pickle_globals[global].call == OPDI_GLOBAL_DEVICE ? OPDI_PICKLE_DEVICE
            : OPDI_PICKLE_COMPLEX;
        const uint32_t second = opdi_pickle_get(pickle, args, 1);
        const bool right = kind == OPDI_PICKLE_DEVICE
            ? opdi_pickle_is(pickle, first, OPDI_PICKLE_TEXT) &&
                (!second || opdi_pickle_is(pickle, second, OPDI_PICKLE_INT))
            : opdi_pickle_is(pickle, first, OPDI_PICKLE_FLOAT) && opdi_pickle_is(pickle, second, OPDI_PICKLE_FLOAT);
        if (!right) {
            return opdi_bad(pickle->source, pickle->at, "the arguments of %s are not valid",
                            opdi_pickle_globals[global].name);
        }
        const uint32_t node = opdi_pickle_new(pickle, kind, 0);
        if (!node || opdi_pickle_add(pickle, node, first)) { return -1; }
        return second ? opdi_pickle_add(pickle, node, second) : 0;
    }
    case OPDI_GLOBAL_BYTES: return opdi_pickle_call_bytes(pickle, what, first);
    case OPDI_GLOBAL_CALLED: return opdi_pickle_call_called(pickle, global, args);
    case OPDI_GLOBAL_NUMPY: return opdi_pickle_call_numpy(pickle, first);
    case OPDI_GLOBAL_SCALAR: return opdi_pickle_call_scalar(pickle, global, first, opdi_pickle_get(pickle, args, 1));
    case OPDI_GLOBAL_QUANTIZED: return opdi_pickle_call_quantized(pickle, global, args);
    case OPDI_GLOBAL_STRANGE: return opdi_pickle_new(pickle, OPDI_PICKLE_STRANGE, global) ? 0 : -1;
    case OPDI_GLOBAL_WORD:
        return opdi_bad(pickle->source, pickle->at, "the pickle calls a value that cannot be called");
    case OPDI_GLOBAL_LIST: case OPDI_GLOBAL_FIRST: default:
        if (first) { return opdi_pickle_push(pickle, first); }
        return opdi_pickle_new(pickle, opdi_pickle_globals[global].call == OPDI_GLOBAL_LIST ? OPDI_PICKLE_LIST
                               : OPDI_PICKLE_TEXT, 0) ? 0 : -1;
    }
}
/* Pushes an object of the class `klass` of a script.  Returns 0, or -1 and sets an error. */
static int opdi_pickle_new_object(opdi_pickle *pickle, uint32_t klass) {
    const uint32_t module = opdi_pickle_get(pickle, klass, 0), name = opdi_pickle_get(pickle, klass, 1);
    const uint32_t node = opdi_pickle_new(pickle, OPDI_PICKLE_OBJECT, 0);
    return node && !opdi_pickle_add(pickle, node, module) ? opdi_pickle_add(pickle, node, name) : -1;
}
/* Pushes a member of an enum: an object whose state is the member's value.  Returns 0, or -1 and sets an error. */
static int opdi_pickle_enum(opdi_pickle *pickle, uint32_t klass, uint32_t value) {
    if (opdi_pickle_new_object(pickle, klass)) { return -1; }
    const uint32_t node = opdi_pickle_pop(pickle);
    return node && !opdi_pickle_add(pickle, node, value) ? opdi_pickle_push(pickle, node) : -1;
}
/* Pops a tuple of arguments and a function, and pushes the result of the call.  If there is a class of an enum instead
   of a function, and a value instead of arguments, pushes the enum's member with this value.  Returns 0, or -1 and sets
   an error. */
static int opdi_pickle_call(opdi_pickle *pickle) {
    const uint32_t args = opdi_pickle_pop(pickle), what = args ? opdi_pickle_pop(pickle) : 0;
    if (opdi_pickle_is(pickle, what, OPDI_PICKLE_CLASS)) { return opdi_pickle_enum(pickle, what, args); }
    return what ? opdi_pickle_call_what(pickle, what, args, false) : -1;
}
/* Replaces the tuple on top of the stack by the storage that it describes: ('storage', class, key, device, elements).
   Old files have a sixth part, which is None or describes a view of another storage.  Old files also describe classes
   of modules with such a tuple.  Returns 0, or -1 and sets an error. */
static int opdi_pickle_storage(opdi_pickle *pickle) {
    const uint32_t name = opdi_pickle_pop(pickle);
    if (!name) { return -1; }
    const uint32_t what = opdi_pickle_is(pickle, name, OPDI_PICKLE_TUPLE) ? opdi_pickle_get(pickle, name, 0) : 0;
    const uint32_t type = what ? opdi_pickle_get(pickle, name, 1) : 0;
    const uint32_t key = what ? opdi_pickle_get(pickle, name, 2) : 0;
    const uint32_t elements = what ? opdi_pickle_get(pickle, name, 4) : 0;
    if (type && opdi_pickle_is(pickle, type, OPDI_PICKLE_FOREIGN) && opdi_pickle_names(pickle, what, "module")) {
        return opdi_pickle_push(pickle, type);    /* a class of modules with its source code */
    }
    if (!opdi_pickle_is(pickle, what, OPDI_PICKLE_TEXT) || opdi_pickle_at(pickle, what)->value != 7 ||
        memcmp(pickle->source->data + opdi_pickle_at(pickle, what)->text, "storage", 7) != 0 ||
        !opdi_pickle_is(pickle, type, OPDI_PICKLE_GLOBAL) || !opdi_pickle_is(pickle, key, OPDI_PICKLE_TEXT) ||
        !opdi_pickle_is(pickle, elements, OPDI_PICKLE_INT) || opdi_pickle_at(pickle, elements)->value < 0) {
        return opdi_bad(pickle->source, pickle->at, "a persistent id is not the id of a storage");
    }
    if (!opdi_pickle_globals[opdi_pickle_at(pickle, type)->value].bytes) {
        return opdi_bad(pickle->source, pickle->at, "a storage has the class %s.%s, which is not a class of storages",
                        opdi_pickle_globals[opdi_pickle_at(pickle, type)->value].module,
                        opdi_pickle_globals[opdi_pickle_at(pickle, type)->value].name);
    }
    const uint32_t part = opdi_pickle_get(pickle, name, 5);
    if (part && !opdi_pickle_is(pickle, part, OPDI_PICKLE_NONE)) {
        return opdi_bad(pickle->source, pickle->at, "a storage is a part of another storage, which is not supported");
    }
    const uint32_t storage = opdi_pickle_new(pickle, OPDI_PICKLE_STORAGE, 0);
    if (!storage || opdi_pickle_add(pickle, storage, type) || opdi_pickle_add(pickle, storage, key) ||
        opdi_pickle_add(pickle, storage, elements)) { return -1; }
    return 0;
}
/* Stores the node on top of the stack in the memo under `number`.  Returns 0, or -1 and sets an error. */
static int opdi_pickle_keep(opdi_pickle *pickle, uint64_t number) {
    const uint32_t none = 0, node = opdi_pickle_pop(pickle);
    if (!node || opdi_pickle_push(pickle, node)) { return -1; }
    if (number > pickle->at) {
        return opdi_bad(pickle->source, pickle->at, "the memo would have %llu entries after %llu bytes of the pickle",
                        (unsigned long long)number, (unsigned long long)pickle->at);
    }
    while (pickle->memo.length <= (size_t)number * sizeof none && !pickle->memo.failed) {
        opdi_string_add_n(&pickle->memo, (const char *)(const void *)&none, sizeof none);
    }
    if (pickle->memo.failed) { return -1; }
    ((uint32_t *)(void *)pickle->memo.data)[number] = node;
    return 0;
}
static int opdi_pickle_recall(opdi_pickle *pickle, uint64_t number) {
    const uint32_t node = number < pickle->memo.length / sizeof(uint32_t)
        ? ((const uint32_t *)(void *)pickle->memo.data)[number] : 0;
    if (!node) {
        return opdi_bad(pickle->source, pickle->at, "the pickle reads entry %llu of its memo, which does not exist",
                        (unsigned long long)number);
    }
    return opdi_pickle_push(pickle, node);
}
/* Reads an integer of `bytes` bytes in two's complement, and pushes it.  If the integer has more than 64 bits, as the
   seeds of random generators often have, pushes a STRANGE node.  Returns 0, or -1 and sets an error. */
static int opdi_pickle_long(opdi_pickle *pickle, uint64_t bytes) {
    if (!opd_ok()) { return -1; }
    if (bytes > 8) {
        return opdi_pickle_take(pickle, bytes) && opdi_pickle_new(pickle, OPDI_PICKLE_STRANGE, OPDI_BIG_INT) ? 0 : -1;
    }
    uint64_t value = opdi_pickle_number(pickle, (int)bytes);
    if (bytes && bytes < 8 && value >> (8 * bytes - 1)) { value |= ~UINT64_C(0) << (8 * bytes); }
    return opd_ok() && opdi_pickle_new(pickle, OPDI_PICKLE_INT, (int64_t)value) ? 0 : -1;
}
static int opdi_pickle_float(opdi_pickle *pickle) {
    const unsigned char *at = opdi_pickle_take(pickle, 8);
    uint64_t bits = 0;
    for (int i = 0; at && i < 8; i++) { bits = bits << 8 | at[i]; }
    const uint32_t node = at ? opdi_pickle_new(pickle, OPDI_PICKLE_FLOAT, 0) : 0;
    if (!node) { return -1; }
    opdi_pickle_at(pickle, node)->value = (int64_t)bits;
    return 0;
}
/* Pops the attributes on top of the stack (a state), such as _metadata, and gives them to the object below.  Objects of
   scripts and values of unknown classes keep the attributes, a dtype of NumPy takes its byte order from them, and dicts
   and values that cannot be read ignore them.  Returns 0, or -1 and sets an error. */
static int opdi_pickle_build(opdi_pickle *pickle) {
    const uint32_t state = opdi_pickle_pop(pickle), node = state ? opdi_pickle_pop(pickle) : 0;
    if (!node) { return -1; }
    if (opdi_pickle_is(pickle, node, OPDI_PICKLE_OBJECT) && opdi_pickle_count(pickle, node) == 2) {
        return opdi_pickle_add(pickle, node, state) || opdi_pickle_push(pickle, node) ? -1 : 0;
    }
    if (opdi_pickle_is(pickle, node, OPDI_PICKLE_FOREIGN)) {
        return opdi_pickle_add(pickle, node, state) || opdi_pickle_push(pickle, node) ? -1 : 0;
    }
    if (opdi_pickle_is(pickle, node, OPDI_PICKLE_NUMPY)) {
        const uint32_t order = opdi_pickle_get(pickle, state, 1);
        opdi_pickle_at(pickle, node)->last = opdi_pickle_is(pickle, order, OPDI_PICKLE_TEXT) &&
            opdi_pickle_at(pickle, order)->value == 1 &&
            pickle->source->data[opdi_pickle_at(pickle, order)->text] == '>';
    } else if (!opdi_pickle_is(pickle, node, OPDI_PICKLE_DICT) && !opdi_pickle_is(pickle, node, OPDI_PICKLE_STRANGE) &&
               !opdi_pickle_is(pickle, node, OPDI_PICKLE_QUANTIZED)) {
        return opdi_bad(pickle->source, pickle->at, "the pickle sets attributes from a value that is not a dict");
    }
    return opdi_pickle_push(pickle, node);
}
/* Pops a tuple of arguments (if `keywords` is true, first a dict of keyword arguments) and a class, and pushes an
   object of that class or, if the class is a known one, the result of calling it.  Returns 0, or -1 and sets an
   error. */
static int opdi_pickle_object(opdi_pickle *pickle, bool keywords) {
    const uint32_t more = keywords ? opdi_pickle_pop(pickle) : 0;
    const uint32_t args = keywords && !more ? 0 : opdi_pickle_pop(pickle);
    const uint32_t klass = args ? opdi_pickle_pop(pickle) : 0;
    if (!klass) { return -1; }
    if (!pickle->script && !opdi_pickle_is(pickle, args, OPDI_PICKLE_TUPLE)) {
        return opdi_bad(pickle->source, pickle->at, "the pickle makes an object from a value that is not a tuple");
    }
    if (opdi_pickle_is(pickle, klass, OPDI_PICKLE_FOREIGN)) {
        const uint32_t module = opdi_pickle_get(pickle, klass, 0), name = opdi_pickle_get(pickle, klass, 1);
        const uint32_t node = opdi_pickle_foreign(pickle, module, name, true, args);
        return node && (!more || opdi_pickle_add(pickle, node, more) == 0) ? 0 : -1;
    }
    if (opdi_pickle_is(pickle, klass, OPDI_PICKLE_GLOBAL) && !more) {
        return opdi_pickle_call_what(pickle, klass, args, false);
    }
    if (!opdi_pickle_is(pickle, klass, OPDI_PICKLE_CLASS)) {
        return opdi_bad(pickle->source, pickle->at, "the pickle makes an object of a class that is not a class of a "
                        "script");
    }
    return opdi_pickle_new_object(pickle, klass);
}
/* Runs one opcode.  Returns 0, 1 at the end of the pickle, or -1 and sets an error. */
static int opdi_pickle_step(opdi_pickle *pickle) {
    const size_t begin = pickle->at;
    const unsigned char *code = opdi_pickle_take(pickle, 1);
    const uint32_t height = (uint32_t)(pickle->stack.length / sizeof(uint32_t));
    if (!code) { return -1; }
    switch (*code) {
    case 0x80: return opdi_pickle_take(pickle, 1) ? 0 : -1;                    /* PROTO */
    case 0x95: return opdi_pickle_take(pickle, 8) ? 0 : -1;                    /* FRAME */
    case '.': return 1;
    case '(':
        opdi_string_add_n(&pickle->marks, (const char *)(const void *)&height, sizeof height);
        return pickle->marks.failed ? -1 : 0;
    case '0': return opdi_pickle_pop(pickle) ? 0 : -1;
    case 'N': return opdi_pickle_new(pickle, OPDI_PICKLE_NONE, 0) ? 0 : -1;
    case 0x88: return opdi_pickle_new(pickle, OPDI_PICKLE_BOOL, 1) ? 0 : -1;
    case 0x89: return opdi_pickle_new(pickle, OPDI_PICKLE_BOOL, 0) ? 0 : -1;
    case 'K': return opdi_pickle_new(pickle, OPDI_PICKLE_INT, (int64_t)opdi_pickle_number(pickle, 1)) ? 0 : -1;
    case 'M': return opdi_pickle_new(pickle, OPDI_PICKLE_INT, (int64_t)opdi_pickle_number(pickle, 2)) ? 0 : -1;
    case 'J': return opdi_pickle_long(pickle, 4);
    case 0x8a: return opdi_pickle_long(pickle, opdi_pickle_number(pickle, 1));
    case 0x8b: return opdi_pickle_long(pickle, opdi_pickle_number(pickle, 4));
    case 'G': return opdi_pickle_float(pickle);
    case 'X': case 'T': case 'B': return opdi_pickle_text(pickle, (int64_t)opdi_pickle_number(pickle, 4));
    case 0x8c: case 'U': case 'C': return opdi_pickle_text(pickle, (int64_t)opdi_pickle_number(pickle, 1));
    case 0x8d: case 0x8e: case 0x96:
        return opdi_pickle_text(pickle, (int64_t)(opdi_pickle_number(pickle, 8) & INT64_MAX));
    case ')': return opdi_pickle_new(pickle, OPDI_PICKLE_TUPLE, 0) ? 0 : -1;
    case ']': case 0x8f: return opdi_pickle_new(pickle, OPDI_PICKLE_LIST, 0) ? 0 : -1;
    case '}': return opdi_pickle_new(pickle, OPDI_PICKLE_DICT, 0) ? 0 : -1;
    case 0x85: case 0x86: case 0x87: return opdi_pickle_tuple(pickle, OPDI_PICKLE_TUPLE, *code - 0x84);
    case 't': return opdi_pickle_gather(pickle, OPDI_PICKLE_TUPLE);
    case 'l': case 0x91: return opdi_pickle_gather(pickle, OPDI_PICKLE_LIST);
    case 'd': return opdi_pickle_gather(pickle, OPDI_PICKLE_DICT);
    case 'e': case 'u': case 0x90: return opdi_pickle_gather(pickle, 0);
    case 'a': return opdi_pickle_append(pickle, OPDI_PICKLE_LIST, 1);
    case 's': return opdi_pickle_append(pickle, OPDI_PICKLE_DICT, 2);
    case 'q': return opdi_pickle_keep(pickle, opdi_pickle_number(pickle, 1));
    case 'r': return opdi_pickle_keep(pickle, opdi_pickle_number(pickle, 4));
    case 0x94: return opdi_pickle_keep(pickle, pickle->memo.length / sizeof(uint32_t));
    case 'h': return opdi_pickle_recall(pickle, opdi_pickle_number(pickle, 1));
    case 'j': return opdi_pickle_recall(pickle, opdi_pickle_number(pickle, 4));
    case 'c':
        return opdi_pickle_text(pickle, -1) || opdi_pickle_text(pickle, -1) || opdi_pickle_global(pickle) ? -1 : 0;
    case 0x93: return opdi_pickle_global(pickle);
    case 'R': return opdi_pickle_call(pickle);
    case 0x81: case 0x92: return opdi_pickle_object(pickle, *code == 0x92);
    case 'Q': return opdi_pickle_storage(pickle);
    case 'b': return opdi_pickle_build(pickle);
    default: return opdi_bad(pickle->source, begin, "the pickle has the opcode \\x%02x, which torch.save does not "
                             "write", *code);
    }
}
OPDI_INTERNAL void opdi_pickle_free(opdi_pickle *pickle) {
    opdi_string_free(&pickle->nodes);
    opdi_string_free(&pickle->items);
    opdi_string_free(&pickle->stack);
    opdi_string_free(&pickle->marks);
    opdi_string_free(&pickle->memo);
}
/* Reads a pickle from source at byte *at, and sets *at to its end.  If `script` is true, classes of TorchScript are
   allowed, and unknown classes are errors.  Returns the root node of the pickle's tree, or 0 and sets an error.  In
   both cases the caller frees the tree with opdi_pickle_free. */
OPDI_INTERNAL uint32_t opdi_pickle_read_as(opdi_pickle *pickle, const opdi_source *source, size_t *at, bool script) {
    static const opdi_pickle_node nothing = {0, 0, 0, 0, 0};
    int rc = 0;
    memset(pickle, 0, sizeof *pickle);
    pickle->source = source;
    pickle->script = script;
    pickle->at = *at;
    opdi_string_add_n(&pickle->nodes, (const char *)(const void *)&nothing, sizeof nothing);
    opdi_string_add_n(&pickle->items, (const char *)(const void *)&nothing, sizeof(opdi_pickle_item));
    if (pickle->nodes.failed || pickle->items.failed) { return 0; }
    while (rc == 0 && opd_ok()) { rc = opdi_pickle_step(pickle); }
    *at = pickle->at;
    return rc == 1 && opd_ok() ? opdi_pickle_pop(pickle) : 0;
}
OPDI_INTERNAL uint32_t opdi_pickle_read(opdi_pickle *pickle, const opdi_source *source, size_t *at) {
    return opdi_pickle_read_as(pickle, source, at, false);
}
