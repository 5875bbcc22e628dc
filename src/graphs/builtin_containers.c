#include "graphs.h"

//== dicts =============================================================================================================

/* Returns the tag of the list that a builtin has to return.  The tag depends on the type of the node's result. */
static int32_t opdi_call_tag(const opdi_bcall *call) {
    const opdi_gtype *const type = call->node && call->nrets ? call->node->out[0]->type : NULL;
    return type && type->kind == OPDI_GTYPE_LIST ? call->node->out[0]->tag : OPD_TAG_LIST;
}
OPDI_INTERNAL int opdi_fn_entries(opdi_bcall *call) {
    const opdi_cell *const dict = opdi_call_cell(call, 0, OPD_CELL_DICT);
    opdi_cell *list = dict ? opdi_cell_new(OPD_CELL_LIST, opdi_call_tag(call), 0) : NULL;
    int rc = list ? opdi_cell_reserve(list, dict->count) : -1;
    for (int64_t i = 0; rc == 0 && i < dict->count; i++) {
        opdi_cell *pair = NULL;
        opd_value element = dict->u.values[2 * i + (call->builtin->what == OPDI_DICT_VALUES)];
        if (call->builtin->what == OPDI_DICT_ITEMS) {
            if (!(pair = opdi_tuple_new(dict->u.values + 2 * i, 2, NULL))) {
                rc = -1;
                break;
            }
            element = opdi_cell_value(pair);
        }
        rc = opdi_cell_insert(list, i, element);
        if (pair) { opdi_cell_drop(pair); }
    }
    if (rc && list) { opdi_cell_drop(list); }
    return rc ? -1 : opdi_return_cell(call, list);
}
OPDI_INTERNAL int opdi_fn_get(opdi_bcall *call) {
    const opdi_cell *const dict = opdi_call_cell(call, 0, OPD_CELL_DICT);
    const int64_t at = dict ? opdi_dict_find(dict, &call->args[1]) : -1;
    if (!dict) { return -1; }
    return opdi_return_borrowed(call, at >= 0 ? dict->u.values[2 * at + 1] : call->nargs > 2 ? call->args[2]
                                : opd_value_none());
}
OPDI_INTERNAL int opdi_fn_setdefault(opdi_bcall *call) {
    opdi_cell *const dict = opdi_call_cell(call, 0, OPD_CELL_DICT);
    if (!dict || (opdi_dict_find(dict, &call->args[1]) < 0 && opdi_dict_set(dict, call->args[1], call->args[2]))) {
        return -1;
    }
    return opdi_return_borrowed(call, dict->u.values[2 * opdi_dict_find(dict, &call->args[1]) + 1]);
}
OPDI_INTERNAL int opdi_fn_dict_pop(opdi_bcall *call) {
    opdi_cell *const dict = opdi_call_cell(call, 0, OPD_CELL_DICT);
    const int64_t at = dict ? opdi_dict_find(dict, &call->args[1]) : -1;
    if (!dict) { return -1; }
    if (at < 0) {
        return call->nargs > 2 ? opdi_return_borrowed(call, call->args[2]) : opdi_no_key(&call->args[1]);
    }
    if (opdi_return_borrowed(call, dict->u.values[2 * at + 1])) { return -1; }
    opdi_dict_remove(dict, at);
    return 0;
}
OPDI_INTERNAL int opdi_fn_popitem(opdi_bcall *call) {
    opdi_cell *const dict = opdi_call_cell(call, 0, OPD_CELL_DICT);
    if (!dict) { return -1; }
    if (dict->count == 0) { return opd_fail(OPD_ERROR_INDEX, "popitem(): dictionary is empty"); }
    opdi_cell *pair = opdi_tuple_new(dict->u.values, 2, NULL);      /* the first pair, as in PyTorch */
    if (pair) { opdi_dict_remove(dict, 0); }
    return opdi_return_cell(call, pair);
}
OPDI_INTERNAL int opdi_fn_update(opdi_bcall *call) {
    opdi_cell *const dict = opdi_call_cell(call, 0, OPD_CELL_DICT);
    const opdi_cell *const more = dict ? opdi_call_cell(call, 1, OPD_CELL_DICT) : NULL;
    for (int64_t i = 0; more && i < more->count; i++) {
        if (opdi_dict_set(dict, more->u.values[2 * i], more->u.values[2 * i + 1])) { return -1; }
    }
    return more ? 0 : -1;
}
/* Runs dict(), dict(list of pairs), or prim::DictConstruct, whose arguments are key, value, key, value, ... Returns 0,
   or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_dict(opdi_bcall *call) {
    const opdi_cell *const list = call->nargs == 1 ? opdi_call_list(call, 0) : NULL;
    opdi_cell *dict = call->nargs == 1 && !list ? NULL : opdi_cell_new(OPD_CELL_DICT, OPD_TAG_LIST, 0);
    int rc = dict ? 0 : -1;
    for (int64_t i = 0; list && rc == 0 && i < list->count; i++) {
        const opdi_cell *const pair = opdi_cell_of(&list->u.values[i]);
        rc = pair && pair->kind == OPD_CELL_TUPLE && pair->count == 2
            ? opdi_dict_set(dict, pair->u.values[0], pair->u.values[1]) : opd_fail(OPD_ERROR_ARGUMENT,
                                                                                   "the value is not a pair");
    }
    for (int i = 0; call->nargs > 1 && rc == 0 && i + 1 < call->nargs; i += 2) {
        rc = opdi_dict_set(dict, call->args[i], call->args[i + 1]);
    }
    if (rc && dict) { opdi_cell_drop(dict); }
    return rc ? -1 : opdi_return_cell(call, dict);
}

//== tuples, objects, control ==========================================================================================

OPDI_INTERNAL int opdi_fn_tuple_unpack(opdi_bcall *call) {
    const opdi_cell *const tuple = opdi_call_cell(call, 0, OPD_CELL_TUPLE);
    if (!tuple) { return -1; }
    if (tuple->count != call->nrets) {
        return opd_fail(OPD_ERROR_ARGUMENT, "prim::TupleUnpack: the tuple has %lld elements, but there are %d values",
                        (long long)tuple->count, (int)call->nrets);
    }
    for (int32_t i = 0; i < call->nrets; i++) {
        opd_value element = tuple->u.values[i];
        if (opdi_value_hold(&element)) { return -1; }
        call->rets[i] = element;
    }
    return 0;
}
OPDI_INTERNAL int opdi_fn_tuple_slice(opdi_bcall *call) {
    const opdi_cell *const tuple = opdi_call_cell(call, 0, OPD_CELL_TUPLE);
    int64_t start, step;
    const int64_t count = tuple ? opdi_slice_range(call, tuple->count, &start, &step) : -1;
    opdi_cell *part = count < 0 ? NULL : opdi_cell_new(OPD_CELL_TUPLE, OPD_TAG_LIST, count);
    for (int64_t i = 0; part && i < count; i++) {
        opd_value element = tuple->u.values[start + i * step];
        if (opdi_value_hold(&element)) {
            opdi_cell_drop(part);
            return -1;
        }
        part->u.values[part->count++] = element;
    }
    return opdi_return_cell(call, part);
}
/* Returns the slot of the attribute whose name is in the call's node.  If the object has none of this name, returns -1
   and sets an error. */
static int32_t opdi_attribute_slot(const opdi_bcall *call, const opdi_cell *object) {
    const int32_t hint = (int32_t)call->node->constant.u.i;
    const char *const name = call->node->attribute ? call->node->attribute : "";
    if (call->node->constant.tag == OPD_TAG_INT && hint >= 0 && hint < object->count &&
        strcmp(object->klass->attributes[hint].name, name) == 0) { return hint; }
    return opdi_object_slot(object, name);
}
OPDI_INTERNAL int opdi_fn_get_attribute(opdi_bcall *call) {
    const opdi_cell *const object = opdi_call_cell(call, 0, OPD_CELL_OBJECT);
    const int32_t slot = object ? opdi_attribute_slot(call, object) : -1;
    return slot < 0 ? -1 : opdi_return_borrowed(call, object->u.values[slot]);
}
/* Sets the call's result to a module: the one at an index of a ModuleList, or at a key of a ModuleDict.  Returns 0, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_module_of(opdi_bcall *call) {
    const opdi_cell *const object = opdi_call_cell(call, 0, OPD_CELL_OBJECT);
    int64_t length;
    char number[32];
    const char *name = opdi_value_text(&call->args[1], &length);
    if (!object) { return -1; }
    if (!name) {
        (void)snprintf(number, sizeof number, "%lld", (long long)opdi_call_int(call, 1));
        name = number;
    }
    const int32_t slot = opdi_gclass_slot(object->klass, name);
    if (slot < 0 || slot >= object->count || opd_value_cell(object->u.values[slot]) != OPD_CELL_OBJECT) {
        return opd_fail(OPD_ERROR_INDEX, "%s has no module '%s'", object->klass->name, name);
    }
    return opdi_return_borrowed(call, object->u.values[slot]);
}
OPDI_INTERNAL int opdi_fn_set_attribute(opdi_bcall *call) {
    opdi_cell *const object = opdi_call_cell(call, 0, OPD_CELL_OBJECT);
    const int32_t slot = object ? opdi_attribute_slot(call, object) : -1;
    return slot < 0 ? -1 : opdi_object_put(object, slot, call->args[1]);
}
OPDI_INTERNAL int opdi_fn_create(opdi_bcall *call) {
    const opdi_gtype *const type = call->node->out[0]->type;
    if (!type || !type->klass) { return opd_fail(OPD_ERROR_ARGUMENT, "prim::CreateObject: the class is missing"); }
    return opdi_return_cell(call, opdi_object_new(type->klass));
}
OPDI_INTERNAL int opdi_fn_same(opdi_bcall *call) {
    return call->nrets ? opdi_return_borrowed(call, call->args[0]) : 0;
}
OPDI_INTERNAL int opdi_fn_unwrap(opdi_bcall *call) {
    if (call->args[0].tag == OPD_TAG_NONE) { return opd_fail(OPD_ERROR_ARGUMENT, "Unwrapping null optional"); }
    return opdi_return_borrowed(call, call->args[0]);
}
OPDI_INTERNAL int opdi_fn_nothing(opdi_bcall *call) {
    (void)call;
    return 0;
}
OPDI_INTERNAL int opdi_fn_raise(opdi_bcall *call) {
    int64_t length = 0, count = 0;
    const char *const text = opdi_value_text(&call->args[0], &length);
    const char *name = call->nargs > 1 ? opdi_value_text(&call->args[1], &count) : NULL;
    const char *const dot = name ? strrchr(name, '.') : NULL;
    name = dot ? dot + 1 : name ? name : "Exception";
    return opd_fail(OPD_ERROR_USER, "%s: %.*s", name, (int)OPDI_MIN(length, 1000), text ? text : "");
}
OPDI_INTERNAL int opdi_fn_print(opdi_bcall *call) {
    opdi_text_builder out = {NULL, 0, 0, false};
    for (int32_t i = 0; i < call->nargs; i++) {
        if (i) { opdi_text_builder_add_text(&out, " "); }
        opdi_value_write(&out, &call->args[i], 0);
    }
    opdi_text_builder_add_text(&out, "\n");
    if (!out.failed) { (void)fwrite(out.text, 1, (size_t)out.length, stdout); }
    const int rc = out.failed ? -1 : 0;
    opdi_text_builder_free(&out);
    return rc;
}
OPDI_INTERNAL int opdi_fn_warn(opdi_bcall *call) {
    int64_t length;
    const char *const text = opdi_call_text(call, 0, &length);
    if (!text) { return -1; }
    opd_warn("%.*s", (int)OPDI_MIN(length, 1000), text);
    return 0;
}
/* A profiler span of a script that is open; its name follows the struct in memory.  A tensor without elements owns the
   span: if an error ends the block early, the tensor is freed, which closes the span. */
typedef struct opdi_script_span {
    opd_span *span;
    size_t size;
} opdi_script_span;

static void opdi_script_span_free(void *data, void *user) {
    opdi_script_span *const open = (opdi_script_span *)user;
    (void)data;
    opd_span_close(open->span);
    opdi_free(open, open->size);
}
static opd_tensor *opdi_script_span_open(const char *text, int64_t length) {
    static char nothing[1];
    const int64_t none = 0;
    const size_t size = sizeof(opdi_script_span) + (size_t)length + 1;
    opdi_script_span *const open = (opdi_script_span *)opdi_alloc(size);
    if (!open) { return NULL; }
    char *const name = (char *)(open + 1);
    memcpy(name, text, (size_t)length);
    name[length] = 0;
    open->size = size;
    open->span = opd_span_open(name);
    return opd_tensor_wrap(nothing, opd_ints_of(&none, 1), NULL, OPD_UINT8, opdi_script_span_free, open);
}
/* Runs torch.autograd.profiler.record_function: begins a span with the name in argument 0.  The result is the tensor
   that owns the span.  If the builtin's `what` is 1, the result is an object with this tensor, of the class that the
   archive declares.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_span_enter(opdi_bcall *call) {
    int64_t length = 0;
    const char *const text = opdi_call_text(call, 0, &length);
    opd_tensor *const span = text ? opdi_script_span_open(text, length) : NULL;
    if (!span) { return -1; }
    if (!call->builtin->what) { return opdi_return_tensor(call, span); }
    const opdi_gtype *const type = call->node->out[0]->type;
    if (!type || !type->klass) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the class is missing", call->builtin->schema);
    }
    if (!type->klass->nattributes &&
        opdi_gclass_add(type->klass, "(span)", opdi_gtype_simple(OPDI_GTYPE_ANY), 0) < 0) { return -1; }
    opdi_cell *const object = opdi_object_new(type->klass);
    const int rc = object ? opdi_object_put(object, 0, opd_value_tensor(span)) : -1;
    if (rc && object) { opdi_cell_drop(object); }
    return rc ? -1 : opdi_return_cell(call, object);
}
OPDI_INTERNAL int opdi_fn_span_exit(opdi_bcall *call) {
    const opdi_cell *const object = call->builtin->what ? opdi_call_cell(call, 0, OPD_CELL_OBJECT) : NULL;
    const opd_value *const value = object && object->count ? &object->u.values[0] : &call->args[0];
    opdi_storage *const storage = value->tag == OPD_TAG_TENSOR ? value->u.t->storage : NULL;
    opdi_foreign *const foreign = storage && storage->block_bytes == -1 ? (opdi_foreign *)(void *)storage : NULL;
    if (!opd_ok()) { return -1; }
    if (!foreign || foreign->deleter != opdi_script_span_free) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the value was not entered before (prim::Enter)",
                        call->builtin->schema);
    }
    opdi_script_span *const open = (opdi_script_span *)foreign->user;
    opd_span_close(open->span);
    open->span = NULL;
    return 0;
}
/* Returns a hint for the error that there is no operator `name`. */
OPDI_INTERNAL const char *opdi_builtin_missing(const char *name) {
    if (strncmp(name, "aten::", 6) == 0 || strncmp(name, "prim::", 6) == 0) { return ""; }
    return ": load the library that defines this operator (opd_plugin_load, or a file with its OPD_LIBRARY block) "
        "before the script is compiled or loaded";
}
OPDI_INTERNAL int opdi_builtin_unknown(opdi_bcall *call) {
    return opd_fail(OPD_ERROR_NOT_FOUND, "there is no function %s%s", call->builtin->schema,
                    opdi_builtin_missing(call->builtin->schema));
}
/* Sets the call's result to the builtin's `what`, as a bool.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_fixed_bool(opdi_bcall *call) {
    return opdi_return_value(call, opd_value_bool(call->builtin->what != 0));
}
/* Sets the call's result to the builtin's `what`, as an int.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_fixed_int(opdi_bcall *call) {
    return opdi_return_value(call, opd_value_int(call->builtin->what));
}
/* Sets the call's result to is_conj (the builtin's `what` is 'c'), is_neg ('n') or is_inference ('i') of a tensor.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_marked(opdi_bcall *call) {
    const opd_tensor *const tensor = opdi_call_tensor(call, 0);
    const int what = call->builtin->what;
    if (!tensor) { return -1; }
    return opdi_return_value(call, opd_value_bool(what == 'c' ? opd_tensor_is_conj(tensor)
                                                  : what == 'n' ? opd_tensor_is_neg(tensor)
                                                  : opd_tensor_is_inference(tensor)));
}
OPDI_INTERNAL int opdi_fn_grad_enabled(opdi_bcall *call) {
    return opdi_return_value(call, opd_value_bool(opd_grad_mode_enabled()));
}
OPDI_INTERNAL int opdi_fn_set_grad_enabled(opdi_bcall *call) {
    (void)opd_grad_mode_set(opdi_call_int(call, 0) != 0);
    return 0;
}
OPDI_INTERNAL int opdi_fn_autocast_enabled(opdi_bcall *call) {
    return opdi_return_value(call, opd_value_bool(opd_autocast_enabled((opd_backend)call->builtin->what)));
}
OPDI_INTERNAL int opdi_fn_autocast_dtype(opdi_bcall *call) {
    int64_t length;
    const char *const device = opdi_call_text(call, 0, &length);
    if (!device) { return -1; }
    const opd_scalar_type dtype = opd_autocast_dtype(strcmp(device, "cuda") == 0 ? OPD_CUDA : OPD_CPU);
    return opdi_return_value(call, opd_value_int(dtype == OPD_DTYPE_NONE ? OPD_FLOAT32 : dtype));
}
/* Begins an autocast region.  The result is a number that opdi_fn_autocast_end takes.  If the run fails,
   opdi_graph_restore ends the region.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_autocast_begin(opdi_bcall *call) {
    int64_t length;
    opd_device device;
    const char *const text = opdi_call_text(call, 0, &length);
    if (!text || opd_device_parse(text, &device)) { return -1; }
    const opd_scalar_type dtype = opdi_call_none(call, 1) ? OPD_DTYPE_NONE
        : (opd_scalar_type)opdi_call_int(call, 1);
    const int cache = opdi_call_none(call, 3) ? -1 : opdi_call_int(call, 3) != 0;
    const opd_autocast_region region = opd_autocast_begin((opd_backend)device.type, dtype,
                                                          opdi_call_int(call, 2) != 0, cache);
    return !opd_ok() ? -1 : opdi_return_value(call, opd_value_int((int64_t)region.was | (int64_t)region.was_on << 16 |
                                                                  (int64_t)region.open << 17));
}
OPDI_INTERNAL int opdi_fn_autocast_end(opdi_bcall *call) {
    const int64_t number = opdi_call_int(call, 0);
    opd_autocast_region region;
    memset(&region, 0, sizeof region);
    region.was = (uint16_t)(number & 0xffff);
    region.was_on = number >> 16 & 1;
    region.open = number >> 17 & 1;
    opd_autocast_end(&region);
    return 0;
}
OPDI_INTERNAL int opdi_fn_seed(opdi_bcall *call) {
    opd_manual_seed((uint64_t)opdi_call_int(call, 0));
    return 0;
}
