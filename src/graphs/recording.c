#include "graphs.h"

//== recording =========================================================================================================
//
//  How the calls of a function are recorded.  An indented function is called by the function above it.
//    opdi_trace_once             records the calls of one run of the traced function
//      opdi_trace_inputs           makes the graph's inputs; then the function runs with the Tracer key enabled
//      opdi_tracer_kernel          the kernel at the Tracer key, above autograd, for each call of an operator:
//        opdi_trace_inside           true if a derivative may read intermediate results of the call; then the calls
//                                    that it makes are recorded instead
//        opdi_trace_begin            makes the node; opdi_trace_arg makes an input for each argument: a known value, a
//                                    constant or a list.  Then opd_redispatch runs the kernels, without recording
//        opdi_trace_done             adds the node; opdi_traced_check_results refuses results that are numbers,
//                                    opdi_trace_result makes the value of a result, opdi_trace_waiting packs saved
//                                    values that had to wait for the end of the call (see opdi_tracer.later)
//      opdi_trace_outputs          makes the graph's outputs; then opd_graph_dce removes unused nodes
//  If arguments have tangents, opdi_forward_record_call begins and ends the node, when all levels have seen the call.

/* Returns the recording that is in progress on a thread, or NULL. */
OPDI_INTERNAL opdi_graph_tracer *opdi_tracer_of(const opdi_thread *thread) {
    return (opdi_graph_tracer *)(void *)thread->innermost.tracer;
}
static int64_t opdi_traced_at(const opdi_graph_tracer *tracer, const opd_tensor *tensor) {
    int64_t i = (int64_t)(((uint64_t)(uintptr_t)tensor * 0x9e3779b97f4a7c15u) >> 20) & (tracer->size - 1);
    while (tracer->map[i].tensor && tracer->map[i].tensor != tensor) { i = (i + 1) & (tracer->size - 1); }
    return i;
}
OPDI_INTERNAL opdi_gvalue *opdi_traced_value(const opdi_graph_tracer *tracer, const opd_tensor *tensor) {
    return tracer->size ? tracer->map[opdi_traced_at(tracer, tensor)].value : NULL;
}
/* Stores in the recording that `value` is the value of `tensor`, and takes a reference to the tensor.  Returns 0, or -1
   if memory runs out. */
OPDI_INTERNAL int opdi_traced_put(opdi_graph_tracer *tracer, opd_tensor *tensor, opdi_gvalue *value) {
    if (2 * (tracer->used + 1) > tracer->size) {
        const opdi_graph_tracer old = *tracer;
        tracer->size = OPDI_MAX(64, 2 * old.size);
        tracer->map = (opdi_traced *)opdi_alloc((size_t)tracer->size * sizeof *tracer->map);
        if (!tracer->map) {
            *tracer = old;
            return -1;
        }
        memset(tracer->map, 0, (size_t)tracer->size * sizeof *tracer->map);
        for (int64_t i = 0; i < old.size; i++) {
            if (old.map[i].tensor) { tracer->map[opdi_traced_at(tracer, old.map[i].tensor)] = old.map[i]; }
        }
        opdi_free(old.map, (size_t)old.size * sizeof *old.map);
    }
    int64_t i = opdi_traced_at(tracer, tensor);
    if (!tracer->map[i].tensor) {
        tracer->used++;
        opdi_retain(tensor);
        tracer->map[i].tensor = tensor;
        tensor->flags |= OPDI_TRACED;
    }
    tracer->map[i].value = value;
    tracer->map[i].block = tracer->graph->into;
    return 0;
}
/* The function opdi_tracer.copied, called when `copy` was made as a copy of `tensor`.  If the recording has `tensor`,
   gives the copy the same value.  Returns 0, or -1 if memory runs out. */
static int opdi_trace_copied(opd_tensor *copy, const opd_tensor *tensor) {
    opdi_graph_tracer *tracer = opdi_tracer_of(opdi_self());
    opdi_gvalue *value = opdi_traced_value(tracer, tensor);
    return value ? opdi_traced_put(tracer, copy, value) : 0;
}
/* The function opdi_tracer.later: adds `node` to the list of nodes whose saved values are packed by `packer` after the
   call.  Returns 0, or -1 if memory runs out. */
static int opdi_trace_later(opd_node *node, struct opdi_packer *packer) {
    opdi_graph_tracer *tracer = opdi_tracer_of(opdi_self());
    void *waiting = tracer->waiting;
    if (opdi_grow(&waiting, tracer->nwaiting, &tracer->waiting_cap, sizeof *tracer->waiting)) { return -1; }
    tracer->waiting = (opdi_deferred_pack *)waiting;
    tracer->waiting[tracer->nwaiting].node = opd_node_keep(node);
    tracer->waiting[tracer->nwaiting++].packer = opdi_packer_keep(packer);
    return 0;
}
/* Packs the saved values of the waiting nodes from number `left` on, and removes these nodes from the list.  If `rc` is
   not 0 (an error), only removes them.  Returns `rc`, or -1 if packing failed. */
static int opdi_trace_waiting(opdi_graph_tracer *tracer, int64_t left, int rc) {
    for (int64_t i = left; i < tracer->nwaiting; i++) {
        const opdi_deferred_pack waiting = tracer->waiting[i];
        if (rc == 0) { rc = opdi_node_pack_by(waiting.packer, waiting.node); }
        opdi_packer_release(waiting.packer);
        opd_node_release(waiting.node);
    }
    tracer->nwaiting = left;
    return rc;
}
/* Frees a recording: its waiting nodes and its table.  Releases the tensors in the table. */
static void opdi_tracer_end(opdi_graph_tracer *tracer) {
    (void)opdi_trace_waiting(tracer, 0, -1);
    opdi_free(tracer->waiting, (size_t)tracer->waiting_cap * sizeof *tracer->waiting);
    for (int64_t i = 0; i < tracer->size; i++) {
        if (!tracer->map[i].tensor) { continue; }
        tracer->map[i].tensor->flags &= (uint8_t)~OPDI_TRACED;
        opdi_drop(tracer->map[i].tensor);
    }
    opdi_free(tracer->map, (size_t)tracer->size * sizeof *tracer->map);
    tracer->map = NULL;
    tracer->size = 0;
}

/* Returns true if a value may depend on the graph's inputs: it is neither a constant nor a list of constants. */
OPDI_INTERNAL bool opdi_gvalue_follows(const opdi_gvalue *value) {
    bool follows = false;
    if (!value->node || value->node->kind != OPDI_GNODE_LIST) {
        return !value->node || value->node->kind != OPDI_GNODE_CONSTANT;
    }
    for (int32_t k = 0; k < value->node->nin && !follows; k++) { follows = opdi_gvalue_follows(value->node->in[k]); }
    return follows;
}
/* Handles that C code reads the property `what` of a traced tensor, whose value is `value`: the graph cannot record
   this.  If tracer->allow_constants is set, warns and returns 0; otherwise returns -1 and sets an error. */
static int opdi_traced_escape(const opdi_graph_tracer *tracer, const opdi_gvalue *value, const char *what) {
    const char *const op = value->node && value->node->op ? value->node->op->base_name : "";
    if (tracer->allow_constants) {
        opd_warn("%s of a traced tensor, %s%s, is read: values that are computed from it will be constants of the "
                 "graph", what, *op ? "a result of " : "an input of the graph", op);
        return 0;
    }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s of a traced tensor, %s%s, was read outside of a kernel: values that are "
                    "computed from it would be constants of the graph. Define an operator whose kernel reads it "
                    "(opd_define), and call the operator", what, *op ? "a result of " : "an input of the graph", op);
}
/* The function opdi_tracer.read, called before C code reads the data of `tensor`.  Returns 0, or -1 and sets an error
   if reading is not allowed. */
static int opdi_trace_read(const opd_tensor *tensor) {
    const opdi_thread *thread = opdi_self();
    const opdi_graph_tracer *tracer = opdi_tracer_of(thread);
    const bool recorded = (thread->state.allow & OPD_BIT_OF(OPD_F_TRACER)) != 0;
    const opdi_gvalue *value = recorded ? opdi_traced_value(tracer, tensor) : NULL;
    return value && opdi_gvalue_follows(value) ? opdi_traced_escape(tracer, value, "the data") : 0;
}
/* Checks the results of a recorded call.  Fails if the call made numbers from traced tensors, because the graph does
   not record how they are used.  Operators of PyTorch that read only sizes may return numbers.  Returns 0, or -1 and
   sets an error. */
static int opdi_traced_check_results(const opdi_graph_tracer *tracer, const opd_call *call, const opdi_gnode *node) {
    const opd_op *op = call->op;
    for (int i = 0; i < op->nrets; i++) {
        const int32_t tag = call->rets[i].tag;
        if (tag == OPD_TAG_TENSOR || tag == OPD_TAG_TENSORS || tag == OPD_TAG_NONE ||
            (op->definition && op->definition->lib == opdi_registry.aten &&
             !(opd_op_tags(op) & OPD_OPTAG_DATA_DEPENDENT_OUTPUT))) { continue; }
        for (int k = 0; k < node->nin; k++) {
            const int32_t in = node->in[k]->tag;
            if ((in != OPD_TAG_TENSOR && in != OPD_TAG_TENSORS) || !opdi_gvalue_follows(node->in[k])) { continue; }
            if (opdi_traced_escape(tracer, node->in[k], op->name)) { return -1; }
            break;
        }
    }
    return 0;
}

/* Returns whether the block that is being recorded, or a block around it, has `value`. */
static bool opdi_trace_sees(const opd_graph *graph, const opdi_gvalue *value) {
    const opdi_gblock *const made = opdi_gvalue_block(graph, value);
    const opdi_gblock *block = graph->into ? graph->into : &graph->body;
    while (block != made && block->owner) { block = block->owner->block; }
    return value->graph == graph && block == made;
}
/* In a graph with blocks: checks that `tensor`, whose value is `value`, may be used in the block that is being
   recorded.  Returns 0, or -1 and sets an error. */
static int opdi_trace_check_block(const opdi_graph_tracer *tracer, const opd_tensor *tensor,
                                  const opdi_gvalue *value) {
    if (!opdi_trace_sees(tracer->graph, value)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a tensor that a function of opd_cond, opd_while, opd_scan or opd_map has "
                        "made inside of a trace is used outside of the function: make it an output of the function");
    }
    if (!tracer->graph->into || tracer->map[opdi_traced_at(tracer, tensor)].block == tracer->graph->into ||
        !((tracer->follows && opdi_requires_grad(tensor)) || tensor->storage->duals)) { return 0; }
    return opd_fail(OPD_ERROR_AUTOGRAD, "%s: inside of a trace, a function uses a tensor that requires grad or has a "
                    "tangent, and that is not one of its inputs, so its derivative would be lost: pass the tensor to "
                    "%s (others, operands), and use the input", tracer->control, tracer->control);
}
/* Adds a constant in front of all blocks that are being recorded, because later nodes of other blocks may use it.
   Returns its value, or NULL and sets an error. */
static opdi_gvalue *opdi_trace_constant(const opdi_graph_tracer *tracer, const opd_value *value) {
    opd_graph *const graph = tracer->graph;
    const opdi_graph_insert_point was = {graph->into, graph->at};
    for (const opdi_gblock *block = graph->into; block && block->owner; block = block->owner->block) {
        graph->at = block->owner;
    }
    graph->into = NULL;
    opdi_gvalue *const constant = opdi_graph_constant(graph, value);
    graph->into = was.into;
    graph->at = was.at;
    return constant;
}
/* Returns the value of a tensor argument in the recording.  If it has none, adds the tensor as a constant.  On failure,
   returns NULL and sets an error. */
OPDI_INTERNAL opdi_gvalue *opdi_trace_tensor(opdi_graph_tracer *tracer, opd_tensor *tensor) {
    opdi_gvalue *value = tensor ? opdi_traced_value(tracer, tensor) : NULL;
    opd_value copy = tensor ? opd_value_tensor(tensor) : opd_value_none();
    if (value) { return tracer->blocks && opdi_trace_check_block(tracer, tensor, value) ? NULL : value; }
    if (tensor && tracer->graph->into && (tensor->backend == OPD_META || tensor->flags & OPDI_BATCHED)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: inside of a trace, a function uses a tensor that is not known there: "
                       "it was made without an operator, or belongs to a transform (opd_vmap) around the call.  Pass "
                       "it to %s (others, operands), and use the input", tracer->control, tracer->control);
        return NULL;
    }
    if (tensor && opdi_requires_grad(tensor)) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "Cannot insert a Tensor that requires grad as a constant. Consider making "
                       "it a parameter or input, or detaching the gradient");
        return NULL;
    }
    value = opdi_trace_constant(tracer, &copy);
    if (value && tensor && !(tensor->flags & OPDI_WRAPPED) && opdi_traced_put(tracer, tensor, value)) { return NULL; }
    return value;
}

/* The function opdi_tracer.outside: adds a tensor from outside of the recording as a constant.  Does nothing if the
   tensor requires grad.  Returns 0, or -1 and sets an error. */
static int opdi_trace_outside(opd_tensor *tensor) {
    while (tensor->flags & OPDI_BATCHED) { tensor = opdi_batched_of(tensor)->value; }
    return opdi_requires_grad(tensor) || opdi_trace_tensor(opdi_tracer_of(opdi_self()), tensor) ? 0 : -1;
}

/* Returns true if the backward function of the node reads only the sizes of saved value i. */
static bool opdi_kept_for_sizes(const opd_node *node, int i) {
    const opdi_card *card = node->formula->card;
    for (uint64_t mask = card ? card->save_sizes : 0; mask; mask &= mask - 1) {
        if (card->kept_at[opdi_low_bit(mask)] == i) { return true; }
    }
    return false;
}
/* The function opdi_tracer.saved: checks that the recording has the saved values that a backward function reads.
   Returns 0, or -1 and sets an error. */
static int opdi_trace_saved(const opd_backward_call *bw) {
    const opdi_thread *thread = opdi_self();
    const opdi_graph_tracer *tracer = opdi_tracer_of(thread);
    const opd_node *node = bw->node;
    const opd_value *value = bw->fetched ? bw->fetched : opdi_kept(node);
    if (opdi_node_sequence(node) < tracer->since ||
        node->sequence >> OPDI_SEQUENCE_BITS != opdi_thread_number(thread)) {
        return 0;
    }
    for (int i = 0; i < node->nkept + node->nresults; i++) {
        opd_tensor *const *list = value[i].tag == OPD_TAG_TENSORS ? value[i].u.tensors : &value[i].u.t;
        int32_t count = value[i].tag == OPD_TAG_TENSORS && list ? value[i].n : value[i].tag == OPD_TAG_TENSOR;
        if (opdi_kept_for_sizes(node, i)) { continue; }
        for (int32_t k = 0; k < count; k++) {
            const opd_tensor *tensor = list[k];
            if (!tensor || opdi_packed_saved_at(tensor) ||
                (tensor->flags & (OPDI_TRACED | OPDI_BATCHED | OPDI_WRAPPED))) {
                continue;
            }
            return opd_fail(OPD_ERROR_AUTOGRAD, "%s reads a tensor that was made inside of an operator, but the "
                            "operator is one node of the graph that is being recorded, so the tensor would be a "
                            "constant.  %s", node->formula->name, tracer->parts || node->formula->context
                            ? "Save only arguments and results of the operator, or define it as a composite operator "
                            "(.composite)"
                            : "Set opd_trace_options.parts, or compute the derivative with a transform (opd_grad, "
                            "opd_vjp): then the parts of the operator are recorded");
        }
    }
    return 0;
}

/* Returns the value of the graph for a generator: the constant that holds it.  A generator has one constant in a graph,
   so that a graph that is read from a file also draws all its numbers from one generator.  On failure, returns NULL and
   sets an error. */
static opdi_gvalue *opdi_trace_generator(opdi_graph_tracer *tracer, const opd_value *generator) {
    const opdi_gnode *node = tracer->generator ? tracer->generator->node : NULL;
    if (!node || node->constant.u.object != generator->u.object) {
        for (node = tracer->graph->body.first; node; node = node->next) {
            if (node->kind == OPDI_GNODE_CONSTANT && node->constant.tag == OPD_TAG_OBJECT &&
                node->constant.u.object == generator->u.object) { break; }
        }
        tracer->generator = node ? node->out[0] : opdi_trace_constant(tracer, generator);
    }
    return tracer->generator;
}
/* Returns whether a value that is not a tensor contains a tensor that depends on the graph's inputs. */
static bool opdi_trace_contains(const opdi_graph_tracer *tracer, const opd_value *value, int depth) {
    const opdi_cell *const cell = opdi_cell_of(value);
    if (value->tag == OPD_TAG_TENSOR) {
        const opdi_gvalue *const known = opdi_traced_value(tracer, value->u.t);
        return known && opdi_gvalue_follows(known);
    }
    if (!cell || cell->kind == OPD_CELL_STR || cell->kind == OPD_CELL_COMPLEX) { return false; }
    const int64_t count = cell->kind == OPD_CELL_DICT ? 2 * cell->count : cell->count;
    for (int64_t i = 0; i < count; i++) {
        const opd_value element = cell->kind == OPD_CELL_LIST ? opdi_cell_at(cell, i) : cell->u.values[i];
        if (depth > OPDI_MAX_CELL_DEPTH || opdi_trace_contains(tracer, &element, depth + 1)) { return true; }
    }
    return false;
}
/* Refuses argument `i` of a call, because a graph cannot represent it.  Returns NULL and sets an error. */
static opdi_gvalue *opdi_trace_refuse(const opd_call *call, int i, const char *why) {
    (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_trace: argument '%s' is %s", call->op->schema->args[i].name, why);
    return NULL;
}
/* Returns the word for the elements of a list with the type `type`, whose values have the tag `tag`. */
static const char *opdi_trace_word(const opdi_type *type, int32_t tag) {
    const opdi_type *const plain = opdi_strip_optional(type);
    const opdi_type *const element = plain->kind == OPDI_TYPE_LIST ? opdi_strip_optional(plain->elems[0]) : plain;
    switch (tag) {
    case OPD_TAG_INTS: return "int";
    case OPD_TAG_FLOATS: return "float";
    case OPD_TAG_BOOLS: return "bool";
    case OPD_TAG_TENSORS: return "Tensor";
    default: break;
    }
    return element->kind == OPDI_TYPE_STR ? "str" : element->kind == OPDI_TYPE_DEVICE ? "Device"
        : element->kind == OPDI_TYPE_COMPLEX ? "complex" : "Scalar";
}
/* Returns the value of the graph for `given`, which is argument `i` of a call or a part of it, and has the type `type`:
   the value of a tensor, a constant, or a list of values.  On failure, returns NULL and sets an error. */
static opdi_gvalue *opdi_trace_arg(opdi_graph_tracer *tracer, const opd_call *call, int i, const opd_value *given,
                                   const opdi_type *type) {
    const bool contains = given->tag == OPD_TAG_CELL && opdi_trace_contains(tracer, given, 0);
    const opd_value plain = contains ? opdi_value_plain(given) : *given, *const value = &plain;
    opdi_gvalue **list;
    type = opdi_strip_optional(type);
    if (value->tag == OPD_TAG_TENSOR) { return opdi_trace_tensor(tracer, value->u.t); }
    if (value->tag == OPD_TAG_OBJECT && type->kind == OPDI_TYPE_GENERATOR) {
        return opdi_trace_generator(tracer, value);
    }
    if (value->tag == OPD_TAG_OBJECT) {
        return opdi_trace_refuse(call, i, "an object of the program, which a graph cannot keep.  Give the object to "
                                 "the operator when it is defined (opd_op_desc.user, opd_call_user)");
    }
    if (contains && value->tag == OPD_TAG_CELL) {
        return opdi_trace_refuse(call, i, "a dict or object that contains a traced tensor.  Pass the tensor as an "
                                 "argument of its own, or in a list of tensors");
    }
    if (!opdi_is_list(value)) { return opdi_graph_constant(tracer->graph, value); }
    const char *word = opdi_trace_word(type, value->tag);
    const bool tuple = type->kind == OPDI_TYPE_TUPLE && value->tag == OPD_TAG_LIST;
    if (!(list = (opdi_gvalue **)opdi_scope_alloc(((size_t)value->n + 1) * sizeof *list))) { return NULL; }
    for (int32_t k = 0; k < value->n; k++) {
        const opd_value element = value->tag == OPD_TAG_TENSORS ? opd_value_tensor(value->u.tensors[k])
            : opdi_list_element(value, k);
        const opdi_type *const inner = tuple && k < type->nelems ? type->elems[k]
            : type->kind == OPDI_TYPE_LIST ? type->elems[0] : type;
        if (value->tag == OPD_TAG_TENSORS && !value->u.tensors[k]) { word = "Tensor?"; }
        list[k] = opdi_trace_arg(tracer, call, i, &element, inner);
        if (!list[k]) { return NULL; }
    }
    return opdi_graph_list(tracer->graph, tuple ? OPDI_GNODE_TUPLE : OPDI_GNODE_LIST, value->tag, word, list, value->n);
}

/* Makes the value of result i of a node, and stores in the recording which tensors have this value.  If the result is a
   list of tensors, adds a node that unpacks it.  Returns 0, or -1 and sets an error. */
static int opdi_trace_result(opdi_graph_tracer *tracer, opdi_gnode *node, int i, const opd_value *value) {
    opdi_gvalue *out = opdi_gvalue_new(tracer->graph, node, value->tag);
    opdi_gnode *unpack;
    if (!out) { return -1; }
    node->out[i] = out;
    if (value->tag == OPD_TAG_TENSOR) {
        return opdi_gvalue_describe(tracer->graph, out, value->u.t) ? -1 : opdi_traced_put(tracer, value->u.t, out);
    }
    if (value->tag != OPD_TAG_TENSORS) { return 0; }
    if (!(unpack = opdi_gnode_new(tracer->graph, OPDI_GNODE_UNPACK, 1, value->n))) { return -1; }
    unpack->in[0] = out;
    for (int32_t k = 0; k < value->n; k++) {
        const opd_value element = value->u.tensors[k] ? opd_value_tensor(value->u.tensors[k]) : opd_value_none();
        if (opdi_trace_result(tracer, unpack, k, &element)) { return -1; }
    }
    opdi_gnode_append(tracer->graph, unpack);
    return 0;
}

/* Stores the current call stack in a node; the source location of the call is found from it later.  Returns 0, or -1 if
   memory runs out. */
static int opdi_trace_frames(opd_graph *graph, opdi_gnode *node) {
    void *frames[OPDI_FRAMES];
    node->nframes = opdi_frames(frames, OPDI_FRAMES);
    if (!(node->frames = (void **)opdi_graph_alloc(graph, (size_t)node->nframes * sizeof *frames))) { return -1; }
    memcpy(node->frames, frames, (size_t)node->nframes * sizeof *frames);
    return 0;
}
static int opdi_trace_by_address(const void *first, const void *second) {
    const uintptr_t x = (uintptr_t)*(void *const *)first, y = (uintptr_t)*(void *const *)second;
    return x < y ? -1 : x > y;
}
/* Finds the source locations of all nodes from their call stacks.  Looks up all addresses together, because most of
   them occur in many nodes.  Returns 0, or -1 and sets an error. */
static int opdi_trace_places(opd_graph *graph) {
    opdi_gnode *node;
    char (*places)[OPDI_PLACE];
    void **all;
    int64_t count = 0, unique = 0;
    for (node = graph->body.first; node; node = opdi_gnode_after(node)) { count += node->nframes; }
    if (!(all = (void **)opdi_scope_alloc(((size_t)count + 1) * sizeof *all))) { return -1; }
    for (count = 0, node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int64_t i = 0; i < node->nframes; i++) { all[count++] = node->frames[i]; }
    }
    qsort(all, (size_t)count, sizeof *all, opdi_trace_by_address);
    for (int64_t i = 0; i < count; i++) { if (!unique || all[i] != all[unique - 1]) { all[unique++] = all[i]; } }
    places = (char (*)[OPDI_PLACE])opdi_scope_alloc(((size_t)unique + 1) * sizeof *places);
    if (!places) { return -1; }
    opdi_places(all, (int)unique, places);
    for (node = graph->body.first; node; node = opdi_gnode_after(node)) {
        const char *place = "";
        for (int64_t i = 0; i < node->nframes && !*place; i++) {
            void **at = (void **)bsearch(&node->frames[i], all, (size_t)unique, sizeof *all, opdi_trace_by_address);
            place = places[at - all];
        }
        node->frames = NULL;
        node->nframes = 0;
        if (*place && *place != '?' && !(node->place = opdi_arena_copy(&graph->arena, place, strlen(place)))) {
            return -1;
        }
    }
    return opd_ok() ? 0 : -1;
}

/* The function opdi_tracer.begin: makes the node of a call, with its inputs.  Sets *waiting to the number of nodes that
   wait for packing.  Returns the node, or NULL and sets an error. */
static opdi_gnode *opdi_trace_begin(opd_call *call, int64_t *waiting) {
    opdi_graph_tracer *tracer = opdi_tracer_of(call->th);
    const opd_op *op = call->op;
    opdi_gvalue *in[OPD_MAX_ARGS];
    opdi_gnode *node;
    call->th->state.allow &= ~OPD_BIT_OF(OPD_F_TRACER);
    for (int i = 0; i < op->nargs; i++) {
        if (!(in[i] = opdi_trace_arg(tracer, call, i, &call->args[i], op->schema->args[i].type))) { return NULL; }
    }
    if (!(node = opdi_gnode_new(tracer->graph, OPDI_GNODE_OP, op->nargs, op->nrets))) { return NULL; }
    memcpy(node->in, in, (size_t)op->nargs * sizeof *in);
    node->op = call->op;
    *waiting = tracer->nwaiting;
    return tracer->locations && opdi_trace_frames(tracer->graph, node) ? NULL : node;
}
/* The function opdi_tracer.done: adds the node of a call, which has returned `rc`, and its results to the graph.
   Returns 0, or -1 and sets an error. */
static int opdi_trace_done(opd_call *call, opdi_gnode *node, int64_t waiting, int rc) {
    opdi_graph_tracer *tracer = opdi_tracer_of(call->th);
    if (rc == 0) { rc = opdi_traced_check_results(tracer, call, node); }
    if (rc == 0) { opdi_gnode_append(tracer->graph, node); }
    for (int i = 0; rc == 0 && i < call->op->nrets; i++) { rc = opdi_trace_result(tracer, node, i, &call->rets[i]); }
    return opdi_trace_waiting(tracer, waiting, rc);
}

/* Returns true if a derivative that is computed during the recording may read intermediate results of the call.  If so,
   the calls inside this call are recorded instead of the call itself. */
static bool opdi_trace_inside(opd_call *call, opd_keyset below) {
    const opdi_table *table = OPDI_ACQUIRE(&call->op->table);
    const int backend = opdi_top_bit((below.backends & OPDI_BACKEND_MASK) | 1);
    opdi_slot slot = {NULL, NULL};
    const bool parts = opd_transform_depth() || opdi_tracer_of(call->th)->parts;
    if (!(parts && opdi_call_flags(call)) && !opdi_call_forward(call)) { return false; }
    if (opdi_composite_slot(call->op, &slot)) { return true; }
    if (!opdi_call_forward(call) || (!table && !(table = opdi_table_make(call->op)))) { return false; }
    int key = opdi_key_base[opdi_top_bit((below.functionality & table->masks[16 + backend]) << 1 | 1)];
    opd_kernel fn = table->slots[key >= OPD_KEY_BACKEND_BASE ? key + backend : key].fn;
    return fn == opdi_autograd_kernel || fn == opdi_autograd_inplace_kernel || fn == opdi_autograd_fallback ||
        fn == opdi_autograd_out_kernel || fn == opdi_autograd_registered || fn == opd_autograd_not_implemented;
}
/* For a call that is recorded as one node.  Returns true if the kernels of the call have given a tangent to one of its
   results.  If the operator writes no arguments, a result that is a view of an argument does not count, because it has
   the tangent of the argument. */
static bool opdi_traced_tangents(const opd_call *call) {
    for (int i = 0; i < call->op->nrets; i++) {
        const opd_value *value = &call->rets[i];
        bool view = false;
        for (int k = 0; k < call->op->nargs && !call->op->written_args; k++) {
            const opd_value *arg = &call->args[k];
            view = view ||
                (arg->tag == OPD_TAG_TENSOR && value->tag == OPD_TAG_TENSOR &&
                 arg->u.t->storage == value->u.t->storage);
        }
        if (!view && opdi_level_of(value, 1)) { return true; }
    }
    return false;
}
/* Notes that a call of `op`, whose node is `node`, has failed. */
static void opdi_trace_failed(opdi_trace_failure *failure, const opd_op *op, const opdi_gnode *node) {
    char places[OPDI_FRAMES][OPDI_PLACE];
    failure->op = op;
    failure->place[0] = 0;
    if (!node->nframes || opdi_stack_is_short("opd_graph_trace", OPDI_STACK_FOR(30 << 10))) { return; }
    opdi_places(node->frames, node->nframes, places);
    for (int i = 0; i < node->nframes && !failure->place[0]; i++) {
        if (places[i][0] != '?') { (void)snprintf(failure->place, OPDI_PLACE, "%s", places[i]); }
    }
}
/* The kernel at the Tracer key: records a call as a node.  If arguments have tangents, leaves the recording to forward
   mode (opdi_forward_record_call), so that the computation of the tangents is recorded, too.  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_tracer_kernel(opd_call *call) {
    const opd_keyset below = opd_keyset_and(call->keys, opd_keyset_below(OPD_F_TRACER));
    const bool tangents = call->th->innermost.tracer && opdi_call_forward(call);
    opdi_gnode *node;
    int64_t waiting;
    if (call->th->innermost.tracer && opdi_trace_inside(call, below)) { return opd_redispatch(call, below); }
    if (!call->th->innermost.tracer) {
        call->th->state.allow &= ~OPD_BIT_OF(OPD_F_TRACER);
        return opd_redispatch(call, below);
    }
    opdi_trace_failure *const failure = opdi_tracer_of(call->th)->failure;
    if (!(node = opdi_trace_begin(call, &waiting))) { return -1; }
    int rc = opd_redispatch(call, below);
    if (rc && failure && !failure->op) { opdi_trace_failed(failure, call->op, node); }
    if (rc == 0 && tangents && opdi_traced_tangents(call)) {
        rc = opd_fail(OPD_ERROR_AUTOGRAD, "its kernel at Autograd computes tangents, which cannot become part of the "
                      "graph that is being recorded; give the operator a .backward or a .jvp instead");
    }
    return opdi_trace_done(call, node, waiting, rc);
}

/* Refuses an input that is a wrapper (see opd_tensor_wrap_key) whose key comes before the recording.  The graph would
   not see the calls with the wrapper, but those that its fallback makes with the tensor inside.  Returns 0, or -1 and
   sets an error. */
static int opdi_trace_check_wrapper(const opd_tensor *tensor, int i) {
    const opd_key key = (opd_key)opdi_top_bit(tensor->functionality << 1 | 1);
    if (!tensor->meta || !tensor->meta->inner || key <= OPD_F_TRACER) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_trace: input %d is a wrapper with the key %s, which comes before "
                    "the recording: the graph would see only the tensor inside, which is no input.  Trace with the "
                    "tensor inside (opd_tensor_unwrap_key), and wrap it in the traced function", i, opd_key_name(key));
}
/* Makes the inputs of a graph.  Sets in[i] to the tensor that the traced function gets as input i.  Returns 0, or -1
   and sets an error. */
static int opdi_trace_inputs(opdi_graph_tracer *tracer, opd_tensor *const *inputs, int count,
                             const opd_trace_options *options, opd_tensor **in) {
    opd_graph *graph = tracer->graph;
    if (opdi_graph_reserve_inputs(graph, count)) { return -1; }
    graph->ninputs = count;
    for (int i = 0; i < count; i++) {
        if (!inputs[i]) {
            return opd_fail(OPD_ERROR_ARGUMENT, "opd_graph_trace: input %d is NULL, but each input must be a tensor",
                            i);
        }
        if (opdi_trace_check_wrapper(inputs[i], i) ||
            !(graph->inputs[i] = opdi_gvalue_new(graph, NULL, OPD_TAG_TENSOR))) { return -1; }
        /* The function gets aliases, so a tensor that is passed twice has two values. */
        if (!(in[i] = opd_alias(inputs[i])) || opdi_gvalue_describe(graph, graph->inputs[i], in[i]) ||
            opdi_traced_put(tracer, in[i], graph->inputs[i])) { return -1; }
    }
    for (int i = 0; options && options->names && i < count && i < options->nnames; i++) {
        if (options->names[i] && opd_graph_describe(graph, graph->inputs[i], options->names[i], NULL)) { return -1; }
    }
    return 0;
}

/* Makes the `count` tensors `out` the outputs of the graph: a single value, or, if there are several, a tuple; if
   `list` is true, a list.  Returns 0, or -1 and sets an error. */
static int opdi_trace_outputs(opdi_graph_tracer *tracer, opd_tensor *const *out, int count, bool list) {
    opd_graph *graph = tracer->graph;
    if (count == 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "The traced function didn't return any values! Side-effects are not "
                        "captured in traces, so it would be a no-op.");
    }
    if (!(graph->outputs = (opdi_gvalue **)opdi_graph_alloc(graph, (size_t)count * sizeof *graph->outputs))) {
        return -1;
    }
    graph->noutputs = count;
    for (int i = 0; i < count; i++) {
        char text[200];
        graph->outputs[i] = opdi_traced_value(tracer, out[i]);
        if (graph->outputs[i] && tracer->blocks && opdi_trace_check_block(tracer, out[i], graph->outputs[i])) {
            return -1;
        }
        if (graph->outputs[i]) { continue; }
        return opd_fail(OPD_ERROR_ARGUMENT, "output %d (%s tensor of sizes %s) of traced region did not have "
                        "observable data dependence with trace inputs; this probably indicates your program cannot be "
                        "understood by the tracer.", i, opd_dtype_name((opd_scalar_type)out[i]->dtype),
                        opdi_sizes_text(out[i]->dims, out[i]->ndim, text, sizeof text));
    }
    graph->result = count == 1 && !list ? graph->outputs[0]
        : opdi_graph_list(graph, list ? OPDI_GNODE_LIST : OPDI_GNODE_TUPLE, list ? OPD_TAG_TENSORS : OPD_TAG_LIST,
                          "Tensor",
                          graph->outputs, count);
    return graph->result ? 0 : -1;
}

/* Notes which values of a recording on fakes have sizes that depend on data.  Returns 0, or -1 if memory runs out. */
static int opdi_trace_by_data(const opdi_graph_tracer *tracer) {
    char text[24 * OPD_MAX_DIMS];
    for (int64_t i = 0; i < tracer->size && opd_fake_enabled(); i++) {
        const opd_tensor *const tensor = tracer->map[i].tensor;
        opdi_gvalue *const value = tracer->map[i].value;
        if (!tensor || !(tensor->functionality & OPD_BIT_OF(OPDI_SIZES_KEY))) { continue; }
        const size_t length = opd_fake_shape_print(tensor, text, sizeof text);
        value->by_data = opdi_arena_copy(&tracer->graph->arena, text, OPDI_MIN(length, sizeof text - 1));
        if (!value->by_data) { return -1; }
    }
    return 0;
}

/* The function opdi_tracer.ones. */
static opd_tensor *opdi_trace_ones(const opd_tensor *tensor) {
    const bool was = opd_grad_mode_set(false);
    opd_tensor *const ones = opd_ones_like((opd_tensor *)(uintptr_t)tensor);
    (void)opd_grad_mode_set(was);
    return ones;
}
static const opdi_tracer opdi_tracer_of_graphs = {
    opdi_trace_copied, opdi_trace_read, opdi_trace_outside, opdi_trace_saved, opdi_trace_later, opdi_trace_begin,
    opdi_trace_done, opdi_trace_ones
};
/* Runs the function `fn` and records the calls that it makes.  If a call fails, fills *failure, unless it is NULL.
   Returns the graph, which the caller frees, or NULL and sets an error. */
OPDI_INTERNAL opd_graph *opdi_trace_told(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                                         const opd_trace_options *options, opdi_trace_failure *failure) {
    opdi_thread *thread = opdi_self();
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS];
    opdi_graph_tracer tr;
    memset(&tr, 0, sizeof tr);
    tr.asked = opdi_tracer_of_graphs;
    tr.allow_constants = options && options->allow_constants;
    tr.locations = options && options->locations;
    tr.parts = options && options->parts;
    tr.failure = failure;
    if (!(tr.graph = opdi_graph_new())) { return NULL; }
    opd_scope scope = opd_scope_open();
    opd_tensor **in = opdi_scope_tensors(ninputs);
    int rc = in ? opdi_trace_inputs(&tr, inputs, ninputs, options, in) : -1;
    if (rc == 0) {
        const int depth = thread->innermost.layer ? thread->innermost.layer->level + 1 : 1;
        opdi_visit_frame visit;
        opdi_visit_begin(thread, &visit, "a traced function", /* end, user */ NULL, NULL);
        tr.since = thread->sequence;
        static const opd_kernel kernel = opdi_tracer_kernel;
        opdi_late_fill(OPDI_LATE_TRACER, &kernel, 1);
        thread->innermost.tracer = &tr.asked;
        opd_key_guard guard = opd_keys_include(opd_keyset_make(OPD_BIT_OF(OPD_F_TRACER), 0));
        int count = fn(user, in, ninputs, out);
        opdi_visit_end(&visit);
        count = opdi_outputs_check(count, out, "opd_graph_trace", "the function");
        opdi_layers_end(depth);
        opd_keys_restore(guard);
        thread->innermost.tracer = NULL;
        rc = count < 0 || opdi_trace_by_data(&tr) ? -1
            : opdi_trace_outputs(&tr, out, count, options && options->list_output);
        if (rc == 0 && tr.locations) {
            rc = opdi_stack_short("opd_graph_trace", OPDI_STACK_FOR(30 << 10)) ? -1 : opdi_trace_places(tr.graph);
        }
    }
    opdi_tracer_end(&tr);
    opd_scope_close(&scope);
    if (rc == 0 && opd_graph_dce(tr.graph) >= 0) { return tr.graph; }
    opd_graph_free(tr.graph);
    return NULL;
}

OPDI_INTERNAL opd_graph *opdi_trace_once(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                                         const opd_trace_options *options) {
    return opdi_trace_told(fn, user, inputs, ninputs, options, NULL);
}
