#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>compiled_units graphs as C: recording, fusing and writing
//
//  A unit is a recording with its inputs and outputs.  It becomes two texts: C code and a header.  For other programs,
//  the texts are written to two files.  For this process, $CC compiles them as one source, and the result is loaded.
//----------------------------------------------------------------------------------------------------------------------

/* A lock for the first compilation, which registers the lazy device and its kernels. */
OPDI_INTERNAL opdi_mutex opdi_lazy_lock = OPDI_MUTEX_INIT;
static int opdi_lazy_state;                       /* 0: the device is not registered yet; 1: it is registered; -1: other
                                                     code uses the device */
OPDI_INTERNAL int opdi_lazy_open(const char *what) {
    if (sizeof(void *) < 8) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: graphs can only be compiled on machines with 64-bit addresses", what);
    }
    opdi_lock(&opdi_lazy_lock);
    if (!opdi_lazy_state) {
        opd_backend_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.alloc = opdi_lazy_alloc;
        desc.free = opdi_lazy_free;
        desc.copy = opdi_lazy_copy;
        desc.pointwise = opdi_lazy_pointwise;
        opd_library *lib = NULL;
        if (opd_backend_register(OPD_LAZY, &desc) == 0) {
            lib = opd_library_open(OPD_IMPL, "_", "Lazy", "opdispatch.h", __LINE__);
        }
        if (lib && opd_fallback(lib, opdi_lazy_lower) == 0) {
            opdi_lazy_round_set(opdi_lazy_kernel);
            OPDI_PUBLISH(&opdi_on_sequence, &opdi_lower_sequence);
            opdi_lazy_state = 1;
        }
    }
    opdi_unlock(&opdi_lazy_lock);
    if (opdi_lazy_state == 1) { return 0; }
    return opd_ok() ? opd_fail(OPD_ERROR_REGISTER, "%s: the program uses the lazy device itself, so graphs cannot be "
                               "compiled", what) : -1;
}

OPDI_INTERNAL void opdi_inner_free(opdi_inner *inner) {
    for (int i = 0; i < inner->nbodies; i++) { opdi_unit_free(&inner->bodies[i].unit); }
}
OPDI_INTERNAL void opdi_unit_free(opdi_unit *unit) {
    for (opdi_inner *inner = unit->recording.inner; inner; inner = inner->next) { opdi_inner_free(inner); }
    opdi_arena_free(&unit->recording.arena);
}

//== results of conditions and loops in place ==========================================================================

/* A buffer that takes the place of another one in a recording. */
typedef struct opdi_inner_swap { const opdi_buffer *from; opdi_buffer *to; } opdi_inner_swap;
static void opdi_seen_swap(opdi_access *access, void *user) {
    const opdi_inner_swap *const swap = (const opdi_inner_swap *)user;
    if (access->buffer == swap->from) { access->buffer = swap->to; }
}
/* Returns whether a nest copies a whole temporary buffer, in which all elements are at the same places, to an output,
   and the output is not used otherwise. */
static bool opdi_inner_is_copy(const opdi_nest *nest) {
    const opdi_buffer *const to = nest->out.buffer;
    const opdi_access *const load = &nest->value->access;
    if (!to->output || to->writes != 1 || to->reads || nest->reduction || nest->place || nest->follows ||
        nest->value->kind != OPDI_EXPR_LOAD || nest->value->nin || load->dtype != nest->out.dtype || load->offset ||
        nest->out.offset || memcmp(load->strides, nest->out.strides, sizeof load->strides) != 0) { return false; }
    const opdi_buffer *const from = load->buffer;
    return from->role == OPDI_BUFFER_TEMPORARY && !from->output && from->writer && from->writer->id < nest->id &&
        from->dtype == to->dtype && opdi_nest_fills(nest) &&
        from->used <= (size_t)opdi_nest_rounds(nest, nest->ndim) * opd_dtype_size(load->dtype);
}
/* Lets nests write outputs themselves, if copies of their results are outputs.  Does so in the body of a condition or
   loop, and for results of conditions and loops. */
static void opdi_inner_outputs(opdi_recording *recording, bool body) {
    for (opdi_nest *nest = recording->first, *next; nest; nest = next) {
        next = nest->next;
        if (!opdi_inner_is_copy(nest)) { continue; }
        opdi_buffer *const from = nest->value->access.buffer;
        opdi_inner_swap swap = {from, nest->out.buffer};
        bool later = false;
        for (opdi_nest *other = next; other; other = other->next) { later = later || other->out.buffer == from; }
        if (later || (!body && !from->writer->inner)) { continue; }
        opdi_nest_remove(recording, nest);
        for (opdi_nest *other = recording->first; other; other = other->next) {
            opdi_nest_walk(other, opdi_seen_swap, &swap);
            if (other->out.buffer == from) { other->out.buffer = swap.to; }
        }
        swap.to->kept = swap.to->kept || from->kept;
        opdi_fuse_count(recording);
    }
}

//== memory of conditions and loops ====================================================================================

static int64_t opdi_inner_round(int64_t bytes) { return (bytes + 63) / 64 * 64; }
/* Notes that a group writes a result of a condition or loop. */
static void opdi_inner_seen(const opdi_group *group) {
    const opdi_nest *const nest = group->nests[0];
    for (int i = 0; nest->inner && i < nest->inner->nresults; i++) {
        if (nest->inner->results[i].nest == nest) { nest->inner->results[i].unused = -1; }
    }
}
/* Plans the memory of a condition or loop, if the group writes one of its results: gives the first group that does so
   the scratch memory, and lets the results begin there. */
static void opdi_inner_plan(opdi_group *group) {
    opdi_inner *const inner = group->nests[0]->inner;
    int64_t bytes = 0, fixed = 0;
    if (!inner) { return; }
    if (inner->group) {
        opdi_buffer *const buffer = group->nests[0]->out.buffer;
        buffer->first = OPDI_MIN(buffer->first, inner->group->id);
        return;
    }
    inner->group = group;
    for (int i = 0; i < inner->nbodies; i++) {
        bytes = OPDI_MAX(bytes, opdi_inner_round(inner->bodies[i].unit.arena));
        fixed = OPDI_MAX(fixed, opdi_inner_round(inner->bodies[i].unit.fixed));
    }
    inner->fixed = bytes;
    inner->test = bytes + fixed;
    bytes += fixed + 64;
    for (int i = 0; i < inner->nresults; i++) {
        opdi_inner_result *const result = &inner->results[i];
        result->other = bytes;
        bytes += i < inner->ncarried ? opdi_inner_round(result->bytes) : 0;
        if (result->unused < 0) { continue; }
        result->unused = bytes;
        bytes += opdi_inner_round(result->total);
    }
    group->scratch_bytes = bytes;
}

//== recording a unit ==================================================================================================

/* Returns a C name, made of `prefix` and `name`, that this function has not returned before.  On failure, returns NULL
   and sets an error. */
OPDI_INTERNAL const char *opdi_unit_name(opdi_unit *unit, const char *prefix, const char *name) {
    opdi_arena *const arena = &unit->recording.arena;
    char *const text = (char *)opdi_recording_alloc(&unit->recording, 64);
    int length = 0;
    if (!text) { return NULL; }
    length = snprintf(text, 40, "%s", prefix);
    for (; *name && length < 50; name++) { text[length++] = opdi_c_letter(*name) ? *name : '_'; }
    int32_t *const others = (int32_t *)opdi_index_named(&unit->names, text);    /* the number of names made of the same
                                                                                   text */
    while (others && opdi_index_named(&unit->names, text)) {
        (void)snprintf(text + length, (size_t)(64 - length), "_%d", (int)(1 + ++*others));
    }
    int32_t *const count = (int32_t *)opdi_recording_alloc(&unit->recording, sizeof *count);
    return count && opdi_index_set(&unit->names, arena, text, strlen(text), count) == 0 ? text : NULL;
}
/* Returns a stand-in for `tensor`, a tensor on unit->device: a tensor on the lazy device that has the same sizes,
   strides and dtype, and a new buffer as its memory.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_unit_stand_in(opdi_unit *unit, const opd_tensor *tensor, opdi_buffer_role role,
                                      const char *name) {
    int64_t last = 0;
    const opd_device lazy = opd_device_make(OPD_LAZY, 0);
    int each;
    const bool block = opdi_is_block(tensor->dtype), called = unit->here && role == OPDI_BUFFER_CONSTANT;
    if (opd_tensor_device(tensor).type != unit->device.type || (block && !called) ||
        (!unit->recording.calls && !opdi_c_type(opd_dtype(tensor)))) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: %s has dtype %s, or is on another device, which cannot be compiled",
            unit->what, name,
                       opd_dtype_name(opd_dtype(tensor)));
        return NULL;
    }
    for (int i = 0; i < opd_ndim(tensor); i++) { last += opd_strides(tensor)[i] * (opd_sizes(tensor)[i] - 1); }
    const size_t bytes = opd_numel(tensor) ? (size_t)opdi_elements_bytes(tensor->dtype, last + 1) : 0;
    opdi_buffer *const buffer = opdi_buffer_new(&unit->recording, bytes, role);
    if (!buffer || !(buffer->name = name)) { return NULL; }
    buffer->dtype = opdi_nest_unit(opd_dtype(tensor), &each);
    if (role == OPDI_BUFFER_CONSTANT) {
        buffer->data = opd_data((opd_tensor *)(uintptr_t)tensor);
        buffer->tensor = tensor;
    }
    return opd_tensor_wrap_on(opdi_buffer_address(buffer), opd_ints_of(opd_sizes(tensor), opd_ndim(tensor)),
                              opd_strides(tensor), opd_dtype(tensor), lazy, NULL, NULL);
}
static int opdi_unit_port_set(opdi_unit *unit, opdi_unit_port *end, const opd_tensor *tensor) {
    end->buffer = opd_numel(tensor) ? opdi_buffer_at(&unit->recording, opd_device_data(tensor, OPD_LAZY))
        : opdi_buffer_new(&unit->recording, 0, OPDI_BUFFER_TEMPORARY);
    int each;
    if (end->buffer && end->buffer->dtype == OPD_DTYPE_NONE) {
        end->buffer->dtype = opdi_nest_unit(opd_dtype(tensor), &each);
    }
    end->dtype = opd_dtype(tensor);
    end->ndim = opd_ndim(tensor);
    memcpy(end->sizes, opd_sizes(tensor), (size_t)end->ndim * sizeof *end->sizes);
    memcpy(end->strides, opd_strides(tensor), (size_t)end->ndim * sizeof *end->strides);
    return end->buffer ? 0 : -1;
}
/* Adds a stand-in to the list of tensors that the graph must not change (see opdi_unit_check_unchanged).  Returns the
   stand-in. */
static opd_tensor *opdi_unit_note_stand_in(opdi_unit *unit, opd_tensor *lazy, const opd_tensor *tensor) {
    if (!lazy) { return NULL; }
    opdi_lazy_stand_in *const lent = &unit->lent[unit->nlent++];
    lent->lazy = lazy;
    lent->tensor = tensor;
    lent->data = lazy->data;
    return lazy;
}
/* Adds an input with the properties of `tensor`.  Returns its stand-in, or NULL and sets an error. */
static opd_tensor *opdi_unit_input(opdi_unit *unit, const opd_tensor *tensor, const char *name) {
    opd_tensor *const lazy = opdi_unit_stand_in(unit, tensor, OPDI_BUFFER_INPUT, opdi_unit_name(unit, "in_", name));
    if (!lazy) { return NULL; }
    opdi_unit_port *const end = &unit->inputs[unit->ninputs];
    opdi_buffer *const buffer = unit->recording.buffers[unit->recording.nbuffers - 1];
    if (opdi_unit_port_set(unit, end, lazy)) { return NULL; }
    end->buffer = buffer;                         /* set here, because opdi_buffer_at does not find an input without
                                                     elements by its address */
    end->buffer->index = unit->ninputs;
    unit->stand_ins[unit->ninputs++] = lazy;
    return unit->here ? opdi_unit_note_stand_in(unit, lazy, tensor) : lazy;
}
/* Checks that the graph has not changed the sizes, strides or memory of an input or constant, as t_ does: compiled code
   cannot do that.  Returns 0, or -1 and sets an error. */
static int opdi_unit_check_unchanged(const opdi_unit *unit) {
    for (int i = 0; i < unit->nlent; i++) {
        const opd_tensor *const lazy = unit->lent[i].lazy, *const tensor = unit->lent[i].tensor;
        if (lazy->ndim != tensor->ndim || lazy->dtype != tensor->dtype || lazy->data != unit->lent[i].data ||
            memcmp(lazy->dims, tensor->dims, 2 * (size_t)tensor->ndim * sizeof *tensor->dims) != 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: the graph changes the sizes, strides or memory of an input or a "
                            "constant", unit->what);
        }
    }
    return 0;
}
/* Returns whether a recording writes the memory of `tensor`, which is a constant. */
static bool opdi_recording_changes(const opdi_recording *recording, const opd_tensor *tensor) {
    for (const opdi_nest *nest = recording->first; nest; nest = nest->next) {
        const opd_tensor *const written = nest->out.buffer->tensor;
        if (written && written->storage == tensor->storage) { return true; }
    }
    return false;
}
/* Adds a tensor that is not an input of the user.  The tensor becomes a constant or, if the code runs in this process
   and constants are not frozen, an input after the user's inputs.  Constants that the graph writes are never frozen.
   A constant in blocks stays one, but is not frozen: it is passed to called operators as it is (see opdi_extern_hold).
   Inference tensors are never frozen either: writes to them are not counted, so a run could not tell that they have
   changed.  Returns its stand-in, or NULL and sets an error. */
static opd_tensor *opdi_unit_constant(opdi_unit *unit, const opd_tensor *tensor, const char *name) {
    if (!name) { return NULL; }
    const bool written = unit->earlier && opdi_recording_changes(unit->earlier, tensor);
    if (!unit->here || opdi_is_block(tensor->dtype) || (unit->frozen && !written && !opdi_is_inference(tensor))) {
        return opdi_unit_note_stand_in(unit, opdi_unit_stand_in(unit, tensor, OPDI_BUFFER_CONSTANT, name), tensor);
    }
    unit->constants[unit->nconstants++] = tensor;
    return opdi_unit_input(unit, tensor, name);
}
/* Makes space for a unit's inputs and outputs.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_unit_reserve(opdi_unit *unit, int ninputs, int noutputs) {
    opdi_recording *const recording = &unit->recording;
    unit->inputs = (opdi_unit_port *)opdi_recording_alloc(recording, (size_t)ninputs * sizeof *unit->inputs);
    unit->outputs = (opdi_unit_port *)opdi_recording_alloc(recording, (size_t)noutputs * sizeof *unit->outputs);
    unit->stand_ins = (opd_tensor **)opdi_recording_alloc(recording, (size_t)ninputs * sizeof *unit->stand_ins);
    unit->lent = (opdi_lazy_stand_in *)opdi_recording_alloc(recording, (size_t)ninputs * sizeof *unit->lent);
    unit->constants = (const opd_tensor **)opdi_recording_alloc(recording, (size_t)ninputs * sizeof *unit->constants);
    unit->from = (int32_t *)opdi_recording_alloc(recording, (size_t)noutputs * sizeof *unit->from);
    unit->shown = (const opdi_buffer **)opdi_recording_alloc(recording, (size_t)noutputs * sizeof *unit->shown);
    unit->shown_as = (opd_tensor **)opdi_recording_alloc(recording, (size_t)noutputs * sizeof *unit->shown_as);
    unit->numbers = (opd_value *)opdi_recording_alloc(recording, (size_t)noutputs * sizeof *unit->numbers);
    unit->views = (opdi_unit_view *)opdi_recording_alloc(recording, (size_t)noutputs * sizeof *unit->views);
    return unit->inputs && unit->outputs && unit->stand_ins && unit->lent && unit->constants && unit->from &&
        unit->shown && unit->shown_as && unit->numbers && unit->views ? 0 : -1;
}
/* Records a copy of a tensor whose dtype has no C type.  Returns 0, or -1 and sets an error. */
static int opdi_unit_copy_bits(const opd_tensor *to, opd_tensor *from) {
    int64_t sizes[OPDI_NEST_DIMS];
    opdi_access out, in;
    from = opd_resolve_neg(opd_resolve_conj(from));
    if (!from) { return -1; }
    if (opd_numel(to) == 0) { return 0; }
    const int n = opdi_extern_loops(from, sizes, &in);
    opdi_nest *const nest = n < 0 || opdi_extern_loops(to, sizes, &out) < 0 ? NULL : opdi_nest_new(sizes, n, 0);
    opdi_expr *const load = nest ? opdi_expr_new(OPDI_EXPR_LOAD, in.dtype) : NULL;
    if (!load) { return -1; }
    load->access = in;
    nest->out = out;
    return opdi_nest_add(nest, load);
}
/* Adds an output, and records a copy of `tensor` to it.  In C files, outputs are contiguous, because the header does
   not tell their strides.  In code for this process, the output has the strides of `tensor`, if the tensor fills its
   memory.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_unit_output(opdi_unit *unit, opd_tensor *tensor, const char *name) {
    if (opdi_is_block(tensor->dtype) || (!unit->recording.calls && !opdi_c_type(opd_dtype(tensor)))) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: output %s has dtype %s, which cannot be compiled", unit->what, name,
                        opd_dtype_name(opd_dtype(tensor)));
    }
    if (opd_tensor_device(tensor).type == OPD_CPU) {  /* the result depends on no input */
        tensor = opdi_unit_stand_in(unit, opd_contiguous(tensor), OPDI_BUFFER_CONSTANT, opdi_unit_name(unit, "c_",
            name));
    }
    int each;
    const bool bits = tensor && opdi_nest_unit(opd_dtype(tensor), &each) != opd_dtype(tensor);
    opd_tensor *const copy = !tensor ? NULL : unit->here ? opd_empty_like(tensor)
        : opd_empty(opd_ints_of(opd_sizes(tensor), opd_ndim(tensor)), opd_dtype(tensor));
    for (int i = 0; copy && unit->exact && opd_numel(copy) && i < opd_ndim(copy); i++) {
        if (opd_size(copy, i) > 1 && opd_strides(copy)[i] != opd_strides(tensor)[i]) {
            return opd_fail(OPD_ERROR_NO_KERNEL, "%s: result %s does not fill its memory", unit->what, name);
        }
    }
    if (!copy || (bits ? opdi_unit_copy_bits(copy, tensor) : !opd_copy_(copy, tensor))) { return -1; }
    opdi_unit_port *const end = &unit->outputs[unit->noutputs];
    if (opdi_unit_port_set(unit, end, copy)) { return -1; }
    end->buffer->output = true;
    end->buffer->dtype = opdi_nest_unit(end->dtype, &each);
    end->buffer->name = opdi_unit_name(unit, "out_", name);
    unit->noutputs++;
    return 0;
}
/* If `tensor` can be returned as a view of `base`, records that result `at` is such a view.  If `of` is not negative,
   `base` is output `of`, and must fill its buffer; otherwise it is input ~of.  Returns whether the result was
   recorded. */
static bool opdi_unit_is_view(opdi_unit *unit, int at, const opd_tensor *tensor, int32_t of, const opd_tensor *base,
                              const opdi_buffer *buffer) {
    opdi_unit_view *const view = &unit->views[at];
    const int64_t size = OPDI_MAX((int64_t)1, (int64_t)opd_dtype_size(opd_dtype(base)));
    const uintptr_t start = (uintptr_t)opd_device_data(base, OPD_LAZY);
    const uintptr_t here = (uintptr_t)opd_device_data(tensor, OPD_LAZY);
    if (unit->nopen || opd_dtype(tensor) != opd_dtype(base) || opdi_is_block(opd_dtype(base)) ||
        (int64_t)(here - start) % size) { return false; }
    if (of >= 0 && ((void *)start != opdi_buffer_address(buffer) ||
                    (size_t)(opd_numel(base) * size) != buffer->bytes)) { return false; }
    view->of = of;
    view->ndim = opd_ndim(tensor);
    view->offset = (int64_t)(here - start) / size;
    memcpy(view->sizes, opd_sizes(tensor), (size_t)view->ndim * sizeof *view->sizes);
    memcpy(view->strides, opd_strides(tensor), (size_t)view->ndim * sizeof *view->strides);
    unit->from[at] = OPDI_FROM_VIEW;
    return true;
}
/* Adds result `at`.  If the code runs in this process, a result that is an input is returned as this input, and a view
   of an input or of another result is returned as a view.  Fails for other views, because writes to their base would
   not change a new tensor.  Returns 0, or -1 and sets an error. */
static int opdi_unit_result(opdi_unit *unit, int at, opd_tensor *tensor, const char *name) {
    unit->from[at] = unit->noutputs;
    if (!unit->here) { return opdi_unit_output(unit, tensor, name); }
    for (int i = 0; i < unit->ninputs; i++) {
        if (unit->stand_ins[i] != tensor) { continue; }
        unit->from[at] = ~i;
        return 0;
    }
    if (opd_numel(tensor) && opd_tensor_device(tensor).type == OPD_LAZY) {
        const opdi_buffer *const buffer = opdi_buffer_at(&unit->recording, opd_device_data(tensor, OPD_LAZY));
        bool view = !buffer || buffer->role != OPDI_BUFFER_TEMPORARY;
        for (int i = 0; buffer && i < unit->ninputs; i++) {
            if (unit->inputs[i].buffer == buffer &&
                opdi_unit_is_view(unit, at, tensor, ~i, unit->stand_ins[i], buffer)) { return 0; }
        }
        for (int i = 0; i < unit->noutputs; i++) {
            if (unit->shown[i] != buffer) { continue; }
            if (unit->shown_as[i] == tensor) { return (unit->from[at] = i) < 0; }
            if (opdi_unit_is_view(unit, at, tensor, i, unit->shown_as[i], buffer)) { return 0; }
            view = true;
        }
        if (view) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: result %s is a view of a constant or of a part of another result",
                            unit->what, name);
        }
        if (unit->exact && (opd_device_data(tensor, OPD_LAZY) != opdi_buffer_address(buffer) ||
                            (size_t)opd_numel(tensor) * opd_dtype_size(opd_dtype(tensor)) != buffer->bytes)) {
            return opd_fail(OPD_ERROR_NO_KERNEL, "%s: result %s is a part of a value", unit->what, name);
        }
        unit->shown[unit->noutputs] = buffer;
        unit->shown_as[unit->noutputs] = tensor;
    } else if (opd_numel(tensor)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: result %s does not depend on an input", unit->what, name);
    }
    return opdi_unit_output(unit, tensor, name);
}
/* Sets unit->whole if the graph may read elements in front of an input's first element (by as_strided or
   storage_offset). */
static void opdi_unit_look(opdi_unit *unit, const opd_graph *graph) {
    for (const opdi_gnode *node = graph->body.first; node && !unit->looked; node = opdi_gnode_after(node)) {
        const char *const name = node->op ? opd_op_name(node->op) : "";
        unit->whole = unit->whole || strncmp(name, "aten::as_strided", 16) == 0 || strstr(name, "storage_offset");
    }
    unit->looked = true;
}
/* If the graph may read elements in front of an input's first element, sets unit->whole, and checks that the input
   begins at the first byte of its memory.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_unit_begins(opdi_unit *unit, const opd_graph *graph, const opd_tensor *input) {
    opdi_unit_look(unit, graph);
    if (unit->whole && input && input->storage && opd_tensor_device(input).type == unit->device.type &&
        input->data != input->storage->data) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: as_strided of an input or constant that begins inside of its memory "
                        "cannot be compiled: pass a copy (opd_clone)", unit->what);
    }
    return 0;
}
/* Builtins that code for this process cannot have: they have side effects, or their result may differ between inputs of
   the same kind. */
static const char opdi_unit_refused[] =
    " prim::Print prim::SetAttr prim::grad prim::requires_grad aten::warn aten::manual_seed aten::requires_grad_ "
    "profiler::_record_function_enter profiler::_record_function_enter_new profiler::_record_function_exit "
    "aten::is_leaf aten::is_inference aten::is_set_to aten::get_device aten::stride ";
/* If the code runs in this process, checks that no node from `node` on calls a builtin that opdi_unit_refused lists,
   and sets unit->asks if a node reads the grad mode.  Returns 0, or -1 and sets an error. */
static int opdi_unit_check_effects(opdi_unit *unit, const opdi_gnode *node) {
    for (; node && unit->here; node = opdi_gnode_after(node)) {
        char word[72];
        if (node->kind != OPDI_GNODE_BUILTIN) { continue; }
        const char *const name = node->builtin->schema;
        bool refused = strncmp(name, "prim::is_", 9) == 0;
        for (int32_t i = 0; i < node->nin; i++) { refused = refused || node->in[i]->tag == OPD_TAG_DEVICE; }
        (void)snprintf(word, sizeof word, " %.*s ", (int)(strcspn(name, "(.") < 60 ? strcspn(name, "(.") : 60), name);
        unit->asks = unit->asks || strcmp(word, " aten::is_grad_enabled ") == 0;
        if (refused || strstr(opdi_unit_refused, word)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s:%scannot be compiled, because it reads or changes state that "
                            "compiled code does not know", unit->what, word);
        }
    }
    return 0;
}
/* Fuses the recorded nests into fewer nests.  If `folds` is true, also calls opdi_fuse_constants.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_unit_fuse_nests(opdi_unit *unit, bool folds) {
    opdi_recording *const recording = &unit->recording;
    if (opdi_fuse_versions(recording)) { return -1; }
    opdi_fuse_dead(recording);
    for (opdi_nest *nest = recording->first; nest; nest = nest->next) { opdi_nest_order(nest); }
    if (opdi_fuse_values(recording) || (folds && opdi_fuse_constants(recording))) { return -1; }
    for (opdi_nest *nest = recording->first; nest; nest = nest->next) { opdi_nest_order(nest); }
    opdi_fuse_count(recording);
    return opd_ok() ? 0 : -1;
}
/* Fuses the recorded nests and puts them into groups.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_unit_groups(opdi_unit *unit) {
    if (opdi_unit_fuse_nests(unit, true)) { return -1; }
    if (unit->recording.body || unit->recording.inner) { opdi_inner_outputs(&unit->recording, unit->recording.body); }
    if (unit->recording.here && !unit->recording.open && opdi_kernels_find(&unit->recording)) { return -1; }
    if (unit->recording.first && !(unit->groups = opdi_fuse_rows(&unit->recording))) { return -1; }
    for (opdi_group *group = unit->groups; group; group = group->next) { unit->ngroups++; }
    return opd_ok() ? 0 : -1;
}
OPDI_INTERNAL int opdi_plan_memory(opdi_unit *unit);
/* Fuses a recording and plans its memory.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_unit_fuse(opdi_unit *unit) { return opdi_unit_groups(unit) || opdi_plan_memory(unit) ? -1 : 0; }

/* A constant of a graph.  A stand-in replaces it while the graph is recorded. */
typedef struct opdi_replaced_constant { opdi_gnode *node; opd_value constant; } opdi_replaced_constant;
/* Replaces the tensor constants of a graph by stand-ins, and a constant that is unit->device by the lazy device.
   Stores the constants in `lent`.  Returns their number.  On failure, sets an error, and returns the number of
   constants stored before. */
static int opdi_unit_replace_constants(opdi_unit *unit, const opd_graph *graph, opdi_replaced_constant *lent) {
    int count = 0;
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        const bool tensor = node->constant.tag == OPD_TAG_TENSOR;
        unit->nodes += node->kind != OPDI_GNODE_CONSTANT;
        if (node->kind != OPDI_GNODE_CONSTANT || (!tensor && node->constant.tag != OPD_TAG_DEVICE)) { continue; }
        lent[count].node = node;
        lent[count].constant = node->constant;
        char name[32];
        (void)snprintf(name, sizeof name, "%d", (int)node->out[0]->id);
        const bool lends = tensor && !opd_tensor_is_wrapped_number(node->constant.u.t) &&
            opdi_unit_begins(unit, graph, node->constant.u.t) == 0;
        opd_tensor *const lazy = lends
            ? opdi_unit_constant(unit, node->constant.u.t, opdi_unit_name(unit, "c_", name)) : NULL;
        if (lazy) { node->constant = opd_value_tensor(lazy); }
        else if (!tensor && node->constant.u.device.type == unit->device.type) {
            node->constant = opd_value_device(opd_device_make(OPD_LAZY, 0));
        }
        count++;
        if (!opd_ok()) { break; }
    }
    opdi_graph_changed((opd_graph *)(uintptr_t)graph);
    return count;
}
/* The same as opdi_unit_graph, for a graph whose conditions and loops are calls of closed functions. */
static int opdi_unit_graph_closed(opdi_unit *unit, const opd_graph *graph, opd_tensor *const *inputs, int ninputs) {
    int constants = 0;
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        constants += node->kind == OPDI_GNODE_CONSTANT;
    }
    opdi_replaced_constant *const lent = (opdi_replaced_constant *)opdi_recording_alloc(&unit->recording,
                                                                           (size_t)constants * sizeof *lent);
    opd_tensor **const lazy = (opd_tensor **)opdi_scope_alloc((size_t)(ninputs + graph->noutputs + 1) * sizeof *lazy);
    if (!lent || !lazy || opdi_unit_reserve(unit, ninputs + constants, graph->noutputs)) { return -1; }
    for (int i = 0; i < ninputs; i++) {
        const char *const name = graph->inputs[i]->name;
        char number[24];
        if (opdi_unit_begins(unit, graph, inputs[i])) { return -1; }
        (void)snprintf(number, sizeof number, "%d", i);
        if (!(lazy[i] = opdi_unit_input(unit, inputs[i], name ? name : opdi_arena_copy(&unit->recording.arena, number,
                                                                                       strlen(number))))) { return -1; }
    }
    const int count = opdi_unit_replace_constants(unit, graph, lent);
    opdi_guards_off = true;
    const int noutputs = opd_ok() ? opd_graph_run(graph, lazy, ninputs, lazy + ninputs, graph->noutputs) : -1;
    opdi_guards_off = false;
    for (int i = 0; i < count; i++) { lent[i].node->constant = lent[i].constant; }
    opdi_graph_changed((opd_graph *)(uintptr_t)graph);
    if (noutputs >= 0 && opdi_unit_check_unchanged(unit)) { return -1; }
    for (int i = 0; i < noutputs; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "%d", i);
        if (opdi_unit_result(unit, i, lazy[ninputs + i], opdi_arena_copy(&unit->recording.arena, name, strlen(name)))) {
            return -1;
        }
    }
    return noutputs < 0 ? -1 : 0;
}
/* Records a graph whose inputs are tensors.  No other thread may run the graph at the same time.  Returns 0, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_unit_graph(opdi_unit *unit, const opd_graph *graph, opd_tensor *const *inputs, int ninputs) {
    if (opdi_unit_check_effects(unit, graph->body.first)) { return -1; }
    opdi_unit_look(unit, graph);
    opd_graph *const closed = unit->recording.controls ? opdi_graph_closed(graph) : NULL;
    const int rc = opd_ok() ? opdi_unit_graph_closed(unit, closed ? closed : graph, inputs, ninputs) : -1;
    opd_graph_free(closed);
    return rc;
}
#if !defined(OPD_NO_PROGRAMS)
/* Records an exported program, whose graph is `graph`.  The tensors of its module become constants or inputs (see
   opdi_unit_constant).  Returns 0, or -1 and sets an error. */
static int opdi_unit_program_closed(opdi_unit *unit, const opd_program *program, const opd_graph *graph,
                                    const opd_value *inputs) {
    const int64_t tensors = opd_module_count(program->module);
    opd_tensor **const lazy = (opd_tensor **)opdi_scope_alloc((size_t)(tensors + 1) * sizeof *lazy);
    opd_value *const all = (opd_value *)opdi_scope_alloc((size_t)(graph->ninputs + 1) * sizeof *all);
    opd_value *const given = (opd_value *)opdi_scope_alloc((size_t)(program->ninputs + 1) * sizeof *given);
    opd_value *const results = (opd_value *)opdi_scope_alloc((size_t)(graph->noutputs + 1) * sizeof *results);
    if (!lazy || !all || !given || !results || opdi_unit_check_effects(unit, graph->body.first) ||
        opdi_unit_reserve(unit, program->ninputs + (int)tensors, graph->noutputs)) { return -1; }
    for (int i = 0; i < program->ninputs; i++) {
        const bool fixed = program->inputs[i].constant && inputs[i].tag == OPD_TAG_DEFAULT;
        given[i] = fixed ? program->inputs[i].value : inputs[i];
        if (inputs[i].tag == OPD_TAG_TENSOR) {
            opd_tensor *const tensor = opdi_unit_begins(unit, graph, inputs[i].u.t) ? NULL
                : opdi_unit_input(unit, inputs[i].u.t, opd_program_input_name(program, i));
            if (!tensor) { return -1; }
            given[i] = opd_value_tensor(tensor);
        }
    }
    for (int64_t i = 0; i < tensors; i++) {
        const char *const name = opdi_unit_name(unit, "w_", opd_module_name(program->module, i));
        if (opdi_unit_begins(unit, graph, opd_module_at(program->module, i)) ||
            !(lazy[i] = opdi_unit_constant(unit, opd_module_at(program->module, i), name))) { return -1; }
    }
    for (int i = 0; i < graph->ninputs; i++) {
        const opdi_program_place *const from = &program->from[i];
        all[i] = from->kind == OPDI_FROM_MODULE ? opd_value_tensor(lazy[from->at]) : from->kind == OPDI_FROM_USER
            ? given[from->at] : from->kind == OPDI_FROM_NOWHERE ? opd_value_none()
            : opd_value_device(opd_device_make(OPD_LAZY, 0));
    }
    unit->nodes = opd_graph_count(graph, NULL);
    if (opd_graph_run_values(graph, all, graph->ninputs, results, graph->noutputs) < 0 ||
        opdi_unit_check_unchanged(unit)) {
        return -1;
    }
    for (int i = 0; i < graph->noutputs; i++) {
        const opdi_program_place *const to = &program->to[i];
        if (unit->here && to->kind == OPDI_TO_USER && results[i].tag != OPD_TAG_TENSOR) {
            const opd_tag tag = (opd_tag)results[i].tag;
            if ((tag != OPD_TAG_NONE && unit->nopen) ||
                (tag != OPD_TAG_NONE && tag != OPD_TAG_INT && tag != OPD_TAG_FLOAT && tag != OPD_TAG_BOOL)) {
                return opd_fail(OPD_ERROR_ARGUMENT, "%s: result %d is not a tensor", unit->what, (int)to->at);
            }
            unit->from[to->at] = OPDI_FROM_NUMBER;
            unit->numbers[to->at] = results[i];
        }
        if (results[i].tag != OPD_TAG_TENSOR) { continue; }
        opd_tensor *const into = to->kind == OPDI_TO_MODULE ? lazy[to->at] : to->kind == OPDI_TO_INPUT &&
            given[to->at].tag == OPD_TAG_TENSOR ? given[to->at].u.t : NULL;
        if (into && !opd_copy_(into, results[i].u.t)) { return -1; }
        if (to->kind == OPDI_TO_USER &&
            opdi_unit_result(unit, (int)to->at, results[i].u.t, opd_program_output_name(program, (int)to->at))) {
            return -1;
        }
    }
    return 0;
}
OPDI_INTERNAL int opdi_unit_program(opdi_unit *unit, const opd_program *program, const opd_value *inputs) {
    opd_graph *const closed = unit->recording.controls ? opdi_graph_closed(program->graph) : NULL;
    const int rc = opd_ok() ? opdi_unit_program_closed(unit, program, closed ? closed : program->graph, inputs) : -1;
    opd_graph_free(closed);
    return rc;
}
#endif

//== planning memory ===================================================================================================

static bool opdi_buffer_waits(const opdi_buffer *buffer) {
    return buffer->role == OPDI_BUFFER_TEMPORARY && !buffer->output && !buffer->group && buffer->first >= 0;
}
typedef struct opdi_early_check { bool early; } opdi_early_check;
static void opdi_seen_early(opdi_access *access, void *user) {
    const opdi_buffer *const buffer = access->buffer;
    const bool constant = buffer->role == OPDI_BUFFER_CONSTANT && !buffer->writes;
    if (!constant && !buffer->fixed && !buffer->steady) { ((opdi_early_check *)user)->early = false; }
}
/* Finds the groups that read only constants, and results of other such groups.  They run once, and their results are
   fixed. */
static void opdi_plan_early(opdi_unit *unit) {
    for (opdi_group *group = unit->groups; group; group = group->next) {
        opdi_early_check check = {true};
        for (int i = 0; i < group->nnests; i++) {
            const opdi_nest *const nest = group->nests[i];
            const opdi_buffer *const buffer = nest->out.buffer;
            if (buffer->role != OPDI_BUFFER_TEMPORARY || buffer->output || buffer->writes > 1 || nest->open ||
                (nest->called && nest->called->draws) || nest->inner) {
                check.early = false;
            }
        }
        for (int i = 0; i < group->nnests; i++) {
            opdi_nest_walk(group->nests[i], opdi_seen_early, &check);
            if (check.early) { group->nests[i]->out.buffer->fixed = true; }
        }
        group->early = check.early;
        for (int i = 0; i < group->nnests && !check.early; i++) { group->nests[i]->out.buffer->fixed = false; }
    }
}
/* Returns whether the length of the rows that a nest writes depends on an open size.  The first `outer` loops are those
   over the rows. */
static bool opdi_plan_row_open(const opdi_nest *nest, int outer) {
    const uint32_t all = (1u << (nest->ndim - nest->nreduce)) - 1, row = all & ~((1u << outer) - 1);
    return ((nest->open_loops | nest->open_strides) & row) != 0;
}
/* A block of memory that the groups number `first` to `last` use.  *place is set to its offset in the arena. */
typedef struct opdi_plan_block {
    int64_t bytes, *place, best;
    int32_t first, last, number;
    double rank;
} opdi_plan_block;
static int opdi_plan_order(const void *a, const void *b) {
    const opdi_plan_block *const first = (const opdi_plan_block *)a, *const second = (const opdi_plan_block *)b;
    const int order = (first->rank < second->rank) - (first->rank > second->rank);
    return order ? order : (first->number > second->number) - (first->number < second->number);
}
/* The place of a block in the arena, from byte `from` to byte `to` - 1. */
typedef struct opdi_plan_spot { int64_t from, to; int32_t first, last; } opdi_plan_spot;
/* Blocks that have places, in the order of their places. */
typedef struct opdi_plan_spots { opdi_plan_spot *all; int count; } opdi_plan_spots;
/* Returns an offset for `block`.  Of the blocks that have places, only those count that are in use at the same time as
   `block`.  Chooses the smallest gap between them that is large enough; if there is none, the end of the last of them.
   Forgets blocks that are used only before the group `from`, or only after the group `to`. */
static int64_t opdi_plan_place(opdi_plan_spots *spots, const opdi_plan_block *block, int32_t from, int32_t to) {
    int64_t best = -1, least = INT64_MAX, end = 0;
    int kept = 0;
    for (int i = 0; i < spots->count; i++) {
        const opdi_plan_spot spot = spots->all[i];
        if (spot.last < from || spot.first > to) { continue; }
        spots->all[kept++] = spot;
        if (spot.first > block->last || spot.last < block->first) { continue; }
        if (spot.from - end >= block->bytes && spot.from - end < least) {
            best = end;
            least = spot.from - end;
        }
        end = OPDI_MAX(end, spot.to);
    }
    spots->count = kept;
    return best < 0 ? end : best;
}
static void opdi_plan_insert(opdi_plan_spots *spots, const opdi_plan_block *block) {
    int at = spots->count++;
    for (; at && spots->all[at - 1].from > *block->place; at--) { spots->all[at] = spots->all[at - 1]; }
    const opdi_plan_spot spot = {*block->place, *block->place + block->bytes, block->first, block->last};
    spots->all[at] = spot;
}
/* Orders in which blocks are placed. */
typedef enum opdi_plan_way {
    OPDI_PLAN_BYTES, OPDI_PLAN_FIRST, OPDI_PLAN_BYTES_TIME, OPDI_PLAN_TIME, OPDI_PLAN_LAST, OPDI_PLAN_WAYS
} opdi_plan_way;
/* Sets the ranks by which blocks are sorted: by size, by first use, by size times duration, by duration, or by last
   use, the latest first. */
static void opdi_plan_rank(opdi_plan_block *blocks, int count, int way) {
    for (int i = 0; i < count; i++) {
        const double bytes = (double)blocks[i].bytes, time = (double)(blocks[i].last - blocks[i].first + 1);
        blocks[i].rank = way == OPDI_PLAN_BYTES ? bytes : way == OPDI_PLAN_FIRST ? -(double)blocks[i].first
            : way == OPDI_PLAN_BYTES_TIME ? bytes * time : way == OPDI_PLAN_TIME ? time : (double)blocks[i].last;
    }
}
/* Places all blocks, one after another, in the order of their ranks.  `way` is OPDI_PLAN_FIRST or OPDI_PLAN_LAST if
   this is the order of first or last uses; then a block need not be compared with those that are used only before or
   after all further ones.  Returns the number of bytes that the blocks need, and sets *top to the block that ends
   last. */
static int64_t opdi_plan_put(opdi_plan_block *blocks, int count, opdi_plan_spot *spots, int way, int *top) {
    opdi_plan_spots placed = {spots, 0};
    int64_t total = 0;
    qsort(blocks, (size_t)count, sizeof *blocks, opdi_plan_order);
    for (int i = 0; i < count; i++) {
        *blocks[i].place = opdi_plan_place(&placed, &blocks[i], way == OPDI_PLAN_FIRST ? blocks[i].first : INT32_MIN,
                                           way == OPDI_PLAN_LAST ? blocks[i].last : INT32_MAX);
        opdi_plan_insert(&placed, &blocks[i]);
        const int64_t end = *blocks[i].place + blocks[i].bytes;
        if (end > total) { *top = i; }
        total = OPDI_MAX(total, end);
    }
    return total;
}
/* Returns the largest number of bytes that are in use at the same time; no plan needs fewer.  `changes` has room for a
   number for each group and one more. */
static int64_t opdi_plan_bound(const opdi_plan_block *blocks, int count, int64_t *changes, int ngroups) {
    int64_t now = 0, most = 0;
    memset(changes, 0, (size_t)(ngroups + 1) * sizeof *changes);
    for (int i = 0; i < count; i++) {
        changes[blocks[i].first] += blocks[i].bytes;
        changes[blocks[i].last + 1] -= blocks[i].bytes;
    }
    for (int i = 0; i < ngroups; i++) {
        now += changes[i];
        most = OPDI_MAX(most, now);
    }
    return most;
}
/* Places the blocks in several ways, and keeps the result that needs the fewest bytes.  In each way, the block that
   ends last is moved to the front of the order and all blocks are placed again, until the block that ends last is
   already the first.  If there are very many blocks, uses only the two ways whose time does not grow with the square of
   their number.  Returns the number of bytes. */
static int64_t opdi_plan_best(opdi_plan_block *blocks, int count, opdi_plan_spot *spots, int64_t bound) {
    const int tries = count < 300 ? 16 : 1;
    int64_t least = INT64_MAX;
    int top = 0;
    for (int way = 0; way < OPDI_PLAN_WAYS && least > bound; way++) {
        if (count > 4000 && way != OPDI_PLAN_FIRST && way != OPDI_PLAN_LAST) { continue; }
        opdi_plan_rank(blocks, count, way);
        for (int i = 0; i < tries && least > bound; i++) {
            const int64_t bytes = opdi_plan_put(blocks, count, spots, tries == 1 ? way : OPDI_PLAN_WAYS, &top);
            for (int k = 0; k < count && bytes < least; k++) { blocks[k].best = *blocks[k].place; }
            least = OPDI_MIN(least, bytes);
            if (!top) { break; }
            blocks[top].rank = (blocks[0].rank < 0 ? 0 : blocks[0].rank) + 1;
        }
    }
    for (int k = 0; k < count; k++) { *blocks[k].place = blocks[k].best; }
    return least;
}
/* Gives the buffers, and the packed operands of products, offsets in the arena.  Returns 0, or -1 and sets an error. */
static int opdi_plan_places(opdi_unit *unit) {
    opdi_recording *const recording = &unit->recording;
    int count = 0, ngroups = 0;
    for (const opdi_group *group = unit->groups; group; group = group->next) { ngroups++; }
    opdi_plan_block *const blocks = (opdi_plan_block *)opdi_recording_alloc(
        recording, (size_t)(recording->nbuffers + ngroups) * sizeof *blocks);
    opdi_plan_spot *const spots = (opdi_plan_spot *)opdi_recording_alloc(
        recording, (size_t)(recording->nbuffers + ngroups) * sizeof *spots);
    int64_t *const changes = (int64_t *)opdi_recording_alloc(recording, (size_t)(ngroups + 1) * sizeof *changes);
    if (!blocks || !spots || !changes) { return -1; }
    for (int i = 0; i < recording->nbuffers; i++) {
        opdi_buffer *const buffer = recording->buffers[i];
        if (!opdi_buffer_waits(buffer) || buffer->fixed) { continue; }
        opdi_plan_block *const block = &blocks[count];
        block->number = count++;
        block->bytes = ((int64_t)buffer->bytes + 63) / 64 * 64;
        block->place = &buffer->place;
        block->first = buffer->first;
        block->last = buffer->last;
    }
    for (opdi_group *group = unit->groups; group; group = group->next) {
        if (!group->scratch_bytes) { continue; }
        opdi_plan_block *const block = &blocks[count];
        block->number = count++;
        block->bytes = group->scratch_bytes;
        block->place = &group->scratch;
        block->first = block->last = group->id;
    }
    if (count) {
        unit->arena = opdi_plan_best(blocks, count, spots, opdi_plan_bound(blocks, count, changes, ngroups));
    }
    return 0;
}
/* Gives the packed operands of products their memory: of those that a kernel of the library can compute, too, if
   `kernels` is true, else of the others. */
static void opdi_plan_packs(opdi_unit *unit, bool kernels) {
    for (opdi_group *group = unit->groups; group; group = group->next) {
        opdi_nest_kernel *const choice = group->nests[0]->kernel;
        opdi_contraction all;
        if (!opdi_group_contracts(group) || (choice != NULL) != kernels) { continue; }
        opdi_contraction_of(&all, group->nests[0]);
        const int64_t left = opdi_contraction_left(&all), right = opdi_contraction_right(&all), fixed = unit->fixed;
        group->left = all.left_early ? unit->fixed : 0;
        unit->fixed += all.left_early ? left : 0;
        group->right = all.right_early ? unit->fixed : all.left_early ? 0 : left;
        unit->fixed += all.right_early ? right : 0;
        group->scratch_bytes = (all.left_early ? 0 : left) + (all.right_early ? 0 : right);
        if (!choice) { continue; }
        choice->packed = fixed;
        choice->packed_bytes = unit->fixed - fixed;
    }
}
/* Gives each buffer its memory.  If only one group uses a buffer, and only one row of its outer loop at a time, the C
   function of the group declares an array for one row.  The other buffers get a place in the arena or in the fixed
   memory.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_plan_memory(opdi_unit *unit) {
    opdi_recording *const recording = &unit->recording;
    opdi_group_buffers buffers;
    for (int i = 0; i < recording->nbuffers; i++) {
        recording->buffers[i]->first = -1;
        recording->buffers[i]->group = NULL;
    }
    for (opdi_group *group = unit->groups; group; group = group->next) { opdi_inner_seen(group); }
    for (opdi_group *group = unit->groups; group; group = group->next) {
        if (opdi_group_uses(group, &buffers)) { return -1; }
        for (int i = 0; i < buffers.count; i++) {
            opdi_buffer *const buffer = buffers.all[i];
            if (buffer->first < 0) { buffer->first = group->id; }
            buffer->last = group->id;
        }
        opdi_inner_plan(group);
        const opdi_nest_kernel *const kernel = group->nests[0]->kernel;
        if (kernel && kernel->raw) { kernel->raw->first = kernel->raw->last = group->id; }
    }
    opdi_plan_packs(unit, false);
    opdi_plan_packs(unit, true);
    for (opdi_group *group = unit->groups; group; group = group->next) {
        if (opdi_group_uses(group, &buffers)) { return -1; }
        for (int i = 0; i < buffers.count && group->outer; i++) {
            opdi_buffer *const buffer = buffers.all[i];
            int writers = 0;
            int64_t low = 0, high = 0;
            if (!opdi_buffer_waits(buffer) || buffer->first != buffer->last) { continue; }
            for (int k = 0; k < group->nnests; k++) {
                const opdi_nest *const nest = group->nests[k];
                if (nest->out.buffer != buffer) { continue; }
                opdi_access_range(&nest->out, nest, group->outer, nest->ndim - nest->nreduce, &low, &high);
                writers += opdi_plan_row_open(nest, group->outer) ? 2 : 1;
            }
            if (writers == 1 && high - low < 8192) { buffer->group = group; }
        }
    }
    opdi_plan_early(unit);
    for (int i = 0; i < recording->nbuffers; i++) {
        opdi_buffer *const buffer = recording->buffers[i];
        const int64_t size = ((int64_t)buffer->bytes + 63) / 64 * 64;
        const bool state = buffer->role == OPDI_BUFFER_CONSTANT && buffer->writes;
        if (buffer->role == OPDI_BUFFER_CONSTANT && (buffer->first >= 0 || (unit->here && buffer->folded))) {
            buffer->index = unit->weights;
            unit->weights += unit->here ? 1 : size;
        }
        if (state || (opdi_buffer_waits(buffer) && buffer->fixed)) {
            buffer->fixed = true;
            buffer->place = unit->fixed;
            unit->fixed += size;
        }
    }
    return opdi_plan_places(unit);
}
