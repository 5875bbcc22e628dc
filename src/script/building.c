#include "script.h"

//== adding nodes to the graph =========================================================================================

/* Returns the source place of byte `at` of a text, or NULL if it is unknown. */
static const opdi_script_place *opdi_script_text_place(const opdi_script_text *text, uint32_t at) {
    uint32_t low = 0, high = text->nplaces;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (text->places[middle].at <= at) { low = middle + 1; } else { high = middle; }
    }
    return low ? &text->places[low - 1] : NULL;
}
/* Writes the current place as "FILE:LINE:COLUMN" to buf[cap], and returns `buf`.  Returns NULL if task->nowhere is set,
   because PyTorch gives no place to the nodes that are added now. */
OPDI_INTERNAL const char *opdi_emit_place(const opdi_emitter *task, char *buf, size_t cap) {
    const opdi_script_text *text = task->at->text;
    if (task->nowhere) { return NULL; }
    const opdi_script_place *place = opdi_script_text_place(text, task->at->at);
    if (place) {
        snprintf(buf, cap, "%s:%u:%u", place->file, place->line, place->column);
        return buf;
    }
    uint32_t low = 0, high = text->nlines;
    while (high - low > 1) {                       /* lines[i] is the byte at which line i begins */
        const uint32_t middle = low + (high - low) / 2;
        if (text->lines[middle] <= task->at->at) { low = middle; } else { high = middle; }
    }
    snprintf(buf, cap, "%s:%u:%u", text->name, low + 1, task->at->at - (text->nlines ? text->lines[low] : 0));
    return buf;
}
/* Returns the first node of a function, or NULL if the function has no nodes. */
OPDI_INTERNAL opdi_gnode *opdi_script_body_first(const opdi_script_body *body) {
    return body->before ? body->before->next : body->block->first;
}
/* Returns the node that follows `node` in the text of the function.  In the text, the nodes of a node's blocks follow
   directly after the node.  Returns NULL after the last node. */
OPDI_INTERNAL opdi_gnode *opdi_script_body_after(const opdi_script_body *body, const opdi_gnode *node) {
    for (int32_t i = 0; i < node->nblocks; i++) { if (node->blocks[i].first) { return node->blocks[i].first; } }
    while (!node->next && node->block != body->block) {
        const opdi_gnode *const owner = node->block->owner;
        for (int32_t i = (int32_t)(node->block - owner->blocks) + 1; i < owner->nblocks; i++) {
            if (owner->blocks[i].first) { return owner->blocks[i].first; }
        }
        node = owner;
    }
    return node->next;
}
/* Returns the inlined call in `body` whose nodes have made a value.  Returns NULL if a node of the function itself has
   made it. */
OPDI_INTERNAL opdi_inlined_call *opdi_script_body_call(const opdi_script_body *body, const opdi_gvalue *value) {
    int32_t low = 0, high = body->ncalled;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (body->called[middle]->to <= value->id) { low = middle + 1; } else { high = middle; }
    }
    return low < body->ncalled && body->called[low]->from <= value->id ? body->called[low] : NULL;
}
/* An insertion point for nodes.  opdi_emit_top moves the insertion point of the graph in front of the function's first
   node, and returns the previous one.  opdi_emit_back restores the previous one. */
typedef struct opdi_insert_point { opdi_gblock *into; opdi_gnode *at; } opdi_insert_point;
static opdi_insert_point opdi_emit_top(opdi_emitter *task) {
    opdi_insert_point spot;
    spot.into = task->graph->into;
    spot.at = task->graph->at;
    task->graph->into = task->body->block == &task->graph->body ? NULL : task->body->block;
    task->graph->at = opdi_script_body_first(task->body);
    return spot;
}
static void opdi_emit_back(opdi_emitter *task, opdi_insert_point spot) {
    task->graph->into = spot.into;
    task->graph->at = spot.at;
}
/* Writes the bytes that equal constants have in common to `key`, and returns it.  Returns NULL if constants of this
   kind are never merged, or if memory runs out. */
OPDI_INTERNAL const char *opdi_emit_constant_key(opdi_emitter *task, const opd_value *value, const opdi_gtype *type,
                                                 const char *attribute, size_t *length) {
    struct { const void *type, *attribute, *what; int32_t tag, n; uint64_t bits; } key;
    const char *const text = value->tag == OPD_TAG_STR ? value->u.s : "";
    memset(&key, 0, sizeof key);
    key.type = type;
    key.attribute = attribute;
    key.tag = value->tag;
    key.n = value->n;
    switch (value->tag) {
    case OPD_TAG_NONE: case OPD_TAG_STR: break;
    case OPD_TAG_INT: case OPD_TAG_BOOL: key.bits = (uint64_t)value->u.i; break;
    case OPD_TAG_FLOAT: memcpy(&key.bits, &value->u.d, sizeof value->u.d); break;
    case OPD_TAG_TENSOR: key.what = value->u.t; break;
    case OPD_TAG_CELL: key.what = opdi_cell_of(value); break;
    case OPD_TAG_DEVICE: memcpy(&key.bits, &value->u.device, OPDI_MIN(sizeof key.bits, sizeof value->u.device)); break;
    default: return NULL;
    }
    char *const bytes = (char *)opdi_emit_alloc(task, *length = sizeof key + strlen(text));
    if (!bytes) { return NULL; }
    memcpy(bytes, &key, sizeof key);
    memcpy(bytes + sizeof key, text, strlen(text));
    return bytes;
}
/* Adds a constant at the insertion point and returns its value.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_constant(opdi_emitter *task, opd_value value, const opdi_gtype *type) {
    char place[400];
    opdi_gvalue *out = type ? opdi_append_constant(task->graph, value, type, opdi_emit_place(task, place, sizeof place))
        : NULL;
    if (out && value.tag == OPD_TAG_TENSOR) { out->dtype = -1; }                /* the type is Tensor, without a
                                                                                   dtype */
    return out;
}
/* Adds `value` to the front of a list and returns it.  Returns NULL if memory runs out. */
static opdi_gvalue *opdi_emit_keep(opdi_emitter *task, opdi_value_entry **list, opdi_gvalue *value) {
    opdi_value_entry *pooled = value ? (opdi_value_entry *)opdi_emit_alloc(task, sizeof *pooled) : NULL;
    if (!pooled) { return NULL; }
    pooled->value = value;
    pooled->next = *list;
    *list = pooled;
    return value;
}
/* Returns a constant for a number in the text.  Equal numbers share a constant, which stands in front of the function's
   nodes.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_literal(opdi_emitter *task, opd_value value, const opdi_gtype *type) {
    size_t length = 0;
    const char *const key = opdi_emit_constant_key(task, &value, NULL, NULL, &length);
    opdi_gvalue *out = key ? (opdi_gvalue *)opdi_index_get(&task->body->literals, key, length) : NULL;
    if (out || !opd_ok()) { return out; }
    const opdi_insert_point spot = opdi_emit_top(task);
    out = opdi_emit_constant(task, value, type);
    opdi_emit_back(task, spot);
    return out && key && opdi_index_set(&task->body->literals, task->arena, key, length, out) ? NULL : out;
}
/* Returns the constant `value` for flags that the compiler adds.  Such flags tell at run time how statements have
   ended.  The constant is not shared with constants of the text. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_flag_value(opdi_emitter *task, bool value) {
    opdi_gvalue **at = &task->body->flags[value];
    if (*at) { return *at; }
    const opdi_insert_point spot = opdi_emit_top(task);
    *at = opdi_append_constant(task->graph, opd_value_bool(value), opdi_gtype_simple(OPDI_GTYPE_BOOL), NULL);
    opdi_emit_back(task, spot);
    return *at;
}
/* Makes `value` the placeholder of type `type`, if the function has none yet.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_emit_unset_of(opdi_emitter *task, const opdi_gtype *type, opdi_gvalue *value) {
    const opdi_gtype **const key = (const opdi_gtype **)opdi_emit_alloc(task, sizeof *key);
    if (!key) { return -1; }
    *key = type;
    const char *const bytes = (const char *)(void *)key;
    return opdi_index_get(&task->body->unsets, bytes, sizeof *key) ? 0
        : opdi_index_set(&task->body->unsets, task->arena, bytes, sizeof *key, value);
}
/* Returns a placeholder of type `type`, for a variable that is not set. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_unset(opdi_emitter *task, const opdi_gtype *type) {
    const bool none = type->kind == OPDI_GTYPE_NONE;
    const bool shared = type->kind != OPDI_GTYPE_ANY;
    const char *const key = (const char *)(const void *)&type;
    opdi_gvalue *out = shared ? (opdi_gvalue *)opdi_index_get(&task->body->unsets, key, sizeof type) : NULL;
    if (out) { return out; }
    const opdi_insert_point spot = opdi_emit_top(task);
    opdi_gnode *node = none ? NULL : opdi_append_builtin(task->graph, "prim::Uninitialized", NULL, 0, &type, 1, NULL);
    out = none ? opdi_append_constant(task->graph, opd_value_none(), type, NULL) : node ? node->out[0] : NULL;
    opdi_emit_back(task, spot);
    return out && opdi_emit_unset_of(task, type, out) ? NULL : out;
}
/* Returns the value (0 or 1) of a bool that is known at compile time, or -1 if it is not known. */
OPDI_INTERNAL int opdi_emit_known_bool(const opdi_gvalue *value) {
    const opdi_gnode *node = value->node;
    return node && node->kind == OPDI_GNODE_CONSTANT && node->constant.tag == OPD_TAG_BOOL
        ? node->constant.u.i != 0 : -1;
}
OPDI_INTERNAL bool opdi_emit_known_int(const opdi_gvalue *value, int64_t *number) {
    const opdi_gnode *node = value->node;
    if (!node || node->kind != OPDI_GNODE_CONSTANT || node->constant.tag != OPD_TAG_INT) { return false; }
    *number = node->constant.u.i;
    return true;
}
/* If a node makes `value`, a tuple or list (`kind` tells which), from its elements, returns the elements; else NULL. */
OPDI_INTERNAL opdi_gvalue *const *opdi_emit_constructed(const opdi_gvalue *value, opdi_gkind kind) {
    return value->node && value->node->kind == kind ? value->node->in : NULL;
}
/* Makes the end of `block` the insertion point.  Returns the block that had the previous insertion point. */
OPDI_INTERNAL opdi_gblock *opdi_emit_goto(opdi_emitter *task, opdi_gblock *block) {
    opdi_gblock *const before = task->graph->into;
    task->graph->into = block == &task->graph->body ? NULL : block;
    task->graph->at = NULL;
    return before ? before : &task->graph->body;
}
/* Appends `value` to an array in the graph's arena.  A full array is replaced by one of twice the size.  Returns 0, or
   -1 if memory runs out. */
static int opdi_emit_append(opdi_emitter *task, opdi_gvalue ***values, int32_t *count, opdi_gvalue *value) {
    if (!value) { return -1; }
    if ((*count & (*count - 1)) == 0) {            /* if the count is 0, 1, 2, 4, ..., the array is full */
        opdi_gvalue **more = (opdi_gvalue **)opdi_graph_alloc(task->graph, (size_t)OPDI_MAX(2 * *count, 1) *
                                                              sizeof *more);
        if (!more) { return -1; }
        if (*count) { memcpy(more, *values, (size_t)*count * sizeof *more); }
        *values = more;
    }
    (*values)[(*count)++] = value;
    return 0;
}
OPDI_INTERNAL int opdi_emit_output(opdi_emitter *task, opdi_gblock *block, opdi_gvalue *value) {
    return opdi_emit_append(task, &block->outputs, &block->noutputs, value);
}
/* Adds a result of type `type` to a branch or loop and returns it.  The blocks already have an output for the result.
   Returns NULL if memory runs out. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_out(opdi_emitter *task, opdi_gnode *node, const opdi_gtype *type) {
    opdi_gvalue *value = opdi_gvalue_new(task->graph, node, OPD_TAG_NONE);
    if (value) { opdi_gvalue_typed(value, type); }
    return opdi_emit_append(task, &node->out, &node->nout, value) ? NULL : value;
}
OPDI_INTERNAL opdi_script_value_name *opdi_emit_named_as(opdi_emitter *task, const char *name, size_t length) {
    opdi_index *const names = &task->body->names;
    opdi_script_value_name *named = (opdi_script_value_name *)opdi_index_get(names, name, length);
    if (named || !(named = (opdi_script_value_name *)opdi_emit_alloc(task, sizeof *named))) { return named; }
    if (!(named->name = opdi_arena_copy(&task->graph->arena, name, length))) { return NULL; }
    return opdi_index_set(names, task->arena, named->name, length, named) ? NULL : named;
}
/* Gives `value` the name `name`.  If another value has this name, that value is renamed to x.1, x.3, and so on (where
   `name` is x), as in TorchScript.  If `value` is NULL, only marks the name as taken: TorchScript makes a value with
   this name and later removes it. */
OPDI_INTERNAL void opdi_emit_take(opdi_emitter *task, const char *name, opdi_gvalue *value) {
    char numbered[300];
    int32_t suffix;
    opdi_script_value_name *named = opdi_emit_named_as(task, name, strlen(name)), *other = NULL;
    if (named && named->taken) {
        const int base = opdi_graph_name_base(name, &suffix);
        opdi_script_value_name *counter = opdi_emit_named_as(task, name, (size_t)base);
        if (!counter) { return; }
        suffix = OPDI_MAX(suffix, counter->suffix ? counter->suffix + 1 : 0);
        do {
            snprintf(numbered, sizeof numbered, "%.*s.%d", OPDI_MIN(base, 250), name, (int)suffix++);
            other = opdi_emit_named_as(task, numbered, strlen(numbered));
        } while (other && other->taken);
        counter->suffix = suffix;
        if (other && named->value) {
            other->taken = true;
            other->value = named->value;
            other->value->name = other->name;
        }
    }
    if (!named) { return; }
    named->taken = true;
    named->value = value;
    if (value) { value->name = named->name; }
}
/* Returns whether `name` can be the name of a value.  Temporary names such as _0, and the names of the compiler's flags
   ($...), cannot. */
OPDI_INTERNAL bool opdi_emit_means(const char *name) {
    return *name && *name != '$' && !(*name == '_' && strspn(name + 1, "0123456789") == strlen(name + 1));
}
/* Gives a value the name of the variable or attribute to which it is assigned.  Does nothing if the value already has a
   name, or comes from another block. */
OPDI_INTERNAL void opdi_emit_name(opdi_emitter *task, opdi_gvalue *value, const char *name) {
    char numbered[80];
    const opdi_script_body *const body = task->body;
    const opdi_gblock *const here = task->graph->into ? task->graph->into : &task->graph->body;
    if (task->quiet || !opdi_emit_means(name) || opdi_gvalue_block(task->graph, value) != here) { return; }
    const opdi_inlined_call *called = opdi_script_body_call(body, value);
    if (called) {
        if (called->result != value) { return; }
        value = called->call;                      /* the name that the value has inside of the called function does not
                                                      matter */
    }
    if (value->first || value->name || value->id < body->from) { return; }
    if (opdi_is_digit(*name) && strlen(name) < 64) {
        snprintf(numbered, sizeof numbered, "_%s", name);
        name = numbered;
    }
    opdi_emit_take(task, name, value);
    if (task->moved) { (void)opdi_emit_keep(task, &task->body->moved, value); }
}
/* Called when a variable is read: marks its name as taken, because TorchScript makes a value with this name. */
OPDI_INTERNAL void opdi_emit_loaded(opdi_emitter *task, const char *name) {
    if (!task->quiet && opdi_emit_means(name)) { opdi_emit_take(task, name, NULL); }
}
/* When the function is complete, gives `value` the name `name`; if `name` is NULL, removes the value's name.  If
   `value` is NULL, only marks the name as taken (see opdi_emit_take). */
OPDI_INTERNAL void opdi_emit_name_later(opdi_emitter *task, opdi_gvalue *value, const char *name) {
    opdi_deferred_name *later = !name || opdi_emit_means(name)
        ? (opdi_deferred_name *)opdi_emit_alloc(task, sizeof *later) : NULL;
    if (!later) { return; }
    if (value && name) { value->first = true; }
    later->name = name;
    later->value = value;
    *task->body->last = later;
    task->body->last = &later->next;
}

/* Returns an empty list (if `dict` is true, an empty dict) whose element type is not known yet. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_empty(opdi_emitter *task, bool dict) {
    const opdi_gtype *const tensor = opdi_gtype_simple(OPDI_GTYPE_TENSOR);
    opdi_value_entry *pooled = (opdi_value_entry *)opdi_emit_alloc(task, sizeof *pooled);
    if (!pooled) { return NULL; }
    pooled->value = dict ? opdi_append_dict(task->graph, opdi_gtype_simple(OPDI_GTYPE_STR), tensor, NULL, 0, NULL)
        : opdi_append_list(task->graph, tensor, NULL, 0, NULL);
    pooled->next = task->empty;
    task->empty = pooled;
    return pooled->value;
}
OPDI_INTERNAL bool opdi_emit_untyped(const opdi_emitter *task, const opdi_gvalue *value) {
    if (!value->node || value->node->nin) { return false; }
    for (const opdi_value_entry *pooled = task->empty; pooled; pooled = pooled->next) {
        if (pooled->value == value) { return true; }
    }
    return false;
}
/* Sets the type of a list or dict that opdi_emit_empty has made. */
OPDI_INTERNAL void opdi_emit_retype(opdi_emitter *task, opdi_gvalue *value, const opdi_gtype *type) {
    if (!type) { return; }
    opdi_gvalue_typed(value, type);
    if (type->kind == OPDI_GTYPE_LIST && value->node) {
        value->node->word = type->parts[0]->kind == OPDI_GTYPE_OPTIONAL ? "Tensor?" : "Tensor";
    }
    for (opdi_value_entry **at = &task->empty; *at; at = &(*at)->next) {
        if ((*at)->value == value) {
            *at = (*at)->next;
            return;
        }
    }
}

/* Returns whether there is an operator or builtin named `name`, which may include the name of an overload.  Returns
   false and sets an error if memory runs out. */
OPDI_INTERNAL bool opdi_emit_has(const char *name) {
    if (opdi_builtin_next(name, -1) >= 0) { return true; }
    const char *const colons = strstr(name, "::");
    opd_overloads *set = colons && !strchr(colons, '.') ? opdi_overloads_quiet(name) : NULL;
    opd_op *op = colons && strchr(colons, '.') ? opd_find_quiet(name) : NULL;
    return set || op;
}
OPDI_INTERNAL void opdi_emit_type_set(opdi_gvalue *value, const opdi_gtype *type) { opdi_gvalue_typed(value, type); }
/* If an opdi_append_... function has set an error, adds the current place in the script to the message. */
OPDI_INTERNAL void opdi_emit_placed(opdi_emitter *task) {
    char text[1800];
    if (opd_ok() || opdi_error_passes()) { return; }
    snprintf(text, sizeof text, "%s", opd_error_message());
    opd_error_clear();
    opdi_string shown = {NULL, 0, 0, false};
    opdi_script_text_show(task->at->text, task->at->at, task->at->length, &shown);
    if (!shown.failed) { opd_fail(OPD_ERROR_SCHEMA, "%s\n:\n%s", text, shown.data); }
    opdi_string_free(&shown);
}
/* Adds a call of the first builtin named `name`.  The call has one result of type `type`, or no result if `type` is
   NULL.  Returns the node, or NULL and sets an error. */
OPDI_INTERNAL opdi_gnode *opdi_emit_builtin(opdi_emitter *task, const char *name, opdi_gvalue *const *args, int count,
                                            const opdi_gtype *type) {
    char place[400];
    const bool nowhere = strcmp(name, "prim::unchecked_cast") == 0 || strcmp(name, "prim::TupleIndex") == 0;
    opdi_gnode *node = opdi_append_builtin(task->graph, name, args, count, &type, type != NULL,
                                           nowhere ? NULL : opdi_emit_place(task, place, sizeof place));
    if (!node) { opdi_emit_placed(task); }
    return node;
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_builtin_1(opdi_emitter *task, const char *name, opdi_gvalue *arg,
                                               const opdi_gtype *type) {
    opdi_gnode *node = arg ? opdi_emit_builtin(task, name, &arg, 1, type) : NULL;
    return node ? node->out[0] : NULL;
}
/* Adds a call of isinstance(value, type).  Returns its result, or NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_isinstance(opdi_emitter *task, opdi_gvalue *value, const opdi_gtype *type) {
    opdi_gnode *node = opdi_emit_builtin(task, "prim::isinstance", &value, 1, opdi_gtype_simple(OPDI_GTYPE_BOOL));
    const opdi_gtype *types = opdi_gtype_tuple(task->space, &type, 1);
    if (!node || !types) { return NULL; }
    node->constant = opd_value_object((void *)(uintptr_t)types);
    return node->out[0];
}
OPDI_INTERNAL opdi_gvalue *opdi_emit_none(opdi_emitter *task) {
    return opdi_emit_constant(task, opd_value_none(), opdi_gtype_simple(OPDI_GTYPE_NONE));
}
/* Adds a tuple and returns it.  `klass` is the class of a named tuple, or NULL.  Returns NULL and sets an error on
   failure. */
static opdi_gvalue *opdi_emit_tuple_of(opdi_emitter *task, opdi_gclass *klass, opdi_gvalue *const *values, int count) {
    char place[400];
    return opdi_append_tuple(task->graph, klass, values, count, opdi_emit_place(task, place, sizeof place));
}
/* Returns whether a value is the result of a function that the library does not have.  Such a value fits any type,
   because running the function fails. */
OPDI_INTERNAL bool opdi_emit_is_unknown(const opdi_gvalue *value) {
    return value->node && value->node->kind == OPDI_GNODE_BUILTIN && value->node->builtin &&
        value->node->builtin->run == opdi_builtin_unknown;
}
/* Returns whether a value is a tensor and `name` is a function of PyTorch that the library has for numbers, but not for
   tensors.  The tensor must not be converted to a number then. */
static bool opdi_emit_absent(const char *name, opdi_gvalue *const *values, int count) {
    static const char *const operators[] = {"aten::angle", "aten::lgamma", "aten::frexp.Tensor"};
    for (size_t i = 0; i < sizeof operators / sizeof operators[0]; i++) {
        const size_t length = strcspn(operators[i], ".");
        if (strncmp(operators[i], name, length) != 0 || name[length]) { continue; }
        const opd_op *const op = opd_find_quiet(operators[i]);
        for (int k = 0; !op && k < count; k++) { if (opdi_emit_is(values[k], OPDI_GTYPE_TENSOR)) { return true; } }
    }
    return false;
}
/* Returns the wrapped number for a traced number (see opdi_script_wrapped_number); makes it in the first call.  On
   failure, returns NULL and sets an error. */
static opd_tensor *opdi_script_number(opd_script *script, const opd_tensor *traced) {
    const opd_scalar_type dtype = (opd_scalar_type)traced->dtype;
    opdi_script_wrapped_number *made = (opdi_script_wrapped_number *)opdi_index_get(&script->numbers_of,
        (const char *)(const void *)&traced, sizeof traced);
    if (made) { return made->number; }
    if (!(made = (opdi_script_wrapped_number *)opdi_arena_alloc(&script->arena, sizeof *made))) { return NULL; }
    opd_scope scope = opd_scope_open();
    made->number = opdi_keep(opd_tensor_wrapped_number(
        opd_dtype_is_floating(dtype) ? opd_value_double(opdi_element_f64(traced, 0)) : dtype == OPD_BOOL
        ? opd_value_bool(opdi_element_i64(traced, 0) != 0) : opd_value_int(opdi_element_i64(traced, 0))));
    opd_scope_close(&scope);
    if (!made->number) { return NULL; }
    made->traced = traced;
    made->next = script->numbers;
    script->numbers = made;
    return opdi_index_set(&script->numbers_of, &script->arena, (const char *)(const void *)&made->traced,
                          sizeof made->traced, made) ? NULL : made->number;
}
/* If the second operand of an add, sub, mul or div is a constant tensor without dims, replaces this tensor by a wrapped
   number, which does not take part in type promotion.  torch.jit.trace stores numbers as such tensors, and PyTorch's
   executor converts them to numbers again.  Returns 0, or -1 and sets an error. */
static int opdi_emit_take_number(opdi_emitter *task, opdi_gnode *node) {
    static const char *const names[] = {"aten::add.Tensor", "aten::sub.Tensor", "aten::mul.Tensor", "aten::div.Tensor"};
    const opdi_gnode *const from = node->op && node->nin > 1 && node->in[1] ? node->in[1]->node : NULL;
    const opd_value *const held = from && from->kind == OPDI_GNODE_CONSTANT ? &from->constant : NULL;
    bool takes = held && held->tag == OPD_TAG_TENSOR && held->u.t->ndim == 0 && held->u.t->backend == OPD_CPU &&
        !opd_dtype_is_complex((opd_scalar_type)held->u.t->dtype) && !(held->u.t->flags & OPDI_WRAPPED);
    for (int i = 0; takes && strcmp(names[i], node->op->name) != 0; i++) { takes = i < 3; }
    opd_tensor *number = takes ? opdi_script_number(task->script, held->u.t) : NULL;
    if (!number) { return takes ? -1 : 0; }
    opdi_gnode *const at = task->graph->at;
    task->graph->at = node;
    opdi_gvalue *value = opdi_emit_constant(task, opd_value_tensor(number), opdi_gtype_simple(OPDI_GTYPE_TENSOR));
    task->graph->at = at;
    if (!value) { return -1; }
    node->in[1] = value;
    return 0;
}
/* The function opdi_gclass.less: compares two objects by the method __lt__ of their class.  Returns 1 if `first` is
   less than `second`, 0 if not, or -1 and sets an error. */
static int opdi_emit_less(const opdi_gclass *klass, const opd_value *first, const opd_value *second) {
    opd_value both[2], less;
    both[0] = *first;
    both[1] = *second;
    opd_scope scope = opd_scope_open();
    const int count = opd_graph_run_values(klass->lt, both, 2, &less, 1), rc = count == 1 ? less.u.i != 0 : -1;
    opd_scope_close(&scope);
    return opd_ok() ? rc : -1;
}
/* Compiles the methods __lt__ of the classes in `type`, except those that are already being compiled.  If a method
   takes an object of its class and returns a bool, sets the members `less` and `lt` of the class, so that objects of
   the class can be sorted.  Returns 0, or -1 and sets an error. */
static int opdi_emit_ordered(opdi_emitter *task, const opdi_gtype *type) {
    int rc = 0;
    for (int32_t i = 0; type->kind == OPDI_GTYPE_TUPLE && rc == 0 && i < type->nparts; i++) {
        rc = opdi_emit_ordered(task, type->parts[i]);
    }
    opdi_script_class *const klass = type->kind == OPDI_GTYPE_CLASS ? (opdi_script_class *)type->klass->user : NULL;
    if (rc || !klass || type->klass->less || !opdi_script_class_resolve(task->script, klass)) {
        return opd_ok() ? rc : -1;
    }
    opdi_script_function *const less = opdi_script_function_in(&klass->methods, "__lt__");
    opd_graph *const graph = less && !less->busy ? task->script->work->compiled(task->script, less) : NULL;
    if (graph && less->nformals == 2 && opdi_gtype_fits(type, less->formals[1].type) &&
        opdi_gvalue_gtype(graph, graph->outputs[0])->kind == OPDI_GTYPE_BOOL) {
        type->klass->less = opdi_emit_less;
        type->klass->lt = graph;
    }
    return opd_ok() ? 0 : -1;
}
/* Adds a call of an operator or builtin, with the overload that PyTorch would choose.  Of the `count` values, the last
   `nkw` are keyword arguments with the names `names`.  Returns the result: a tuple if there are several results, None
   if there is none.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_emit_op(opdi_emitter *task, const char *name, opdi_gvalue *const *values, int count,
                                        const char *const *names, int nkw) {
    char place[400];
    opdi_graph_args args;
    opdi_gnode *node;
    memset(&args, 0, sizeof args);
    args.in = values;
    args.count = count - nkw;
    args.named = nkw ? values + (count - nkw) : NULL;
    args.names = names;
    args.nnamed = nkw;
    if (!(args.empty = (opdi_gvalue **)opdi_emit_alloc(task, (size_t)count * sizeof *args.empty))) { return NULL; }
    for (int i = 0; i < count; i++) {
        if (opdi_emit_untyped(task, values[i])) { args.empty[args.nempty++] = values[i]; }
    }
    const char *const where = opdi_emit_place(task, place, sizeof place);
    const bool known = opdi_emit_has(name) && !opdi_emit_absent(name, values, count);
    if (!opd_ok()) { return NULL; }
    const bool sorts = strcmp(name, "aten::sort") == 0 || strcmp(name, "aten::sorted") == 0;
    if (sorts && count && opdi_emit_is(values[0], OPDI_GTYPE_LIST) &&
        opdi_emit_ordered(task, opdi_emit_type(values[0])->parts[0])) { return NULL; }
    if (!known) {
        const opdi_gtype *type = opdi_gtype_simple(OPDI_GTYPE_TENSOR);
        node = opdi_append_unknown(task->graph, name, values, count, &type, 1, where);
    } else {
        node = opdi_append_call(task->graph, name, &args, where);
        bool unknown = false;                      /* true if an argument is the result of an unknown function; the
                                                      result of this call is then unknown, too */
        for (int i = 0; !node && i < count; i++) { unknown = unknown || opdi_emit_is_unknown(values[i]); }
        if (unknown) {
            const opdi_gtype *type = opdi_gtype_simple(OPDI_GTYPE_TENSOR);
            opd_error_clear();
            node = opdi_append_unknown(task->graph, name, values, count, &type, 1, where);
        }
    }
    if (!node || opdi_emit_take_number(task, node)) {
        opdi_emit_placed(task);
        return NULL;
    }
    return node->nout == 0 ? opdi_emit_none(task) : node->nout == 1 ? node->out[0]
        : opdi_emit_tuple_of(task, NULL, node->out, node->nout);
}
