#include "transforms.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>checkpoints  running a segment again instead of saving its tensors; gradients of tensors
//
//  A checkpoint keeps the inputs of a segment, and runs the segment again when backward needs the tensors that its
//  nodes save.  This section uses saved-tensor hooks, the stack of layers and forward mode.  It knows no operators.
//----------------------------------------------------------------------------------------------------------------------

//== surroundings of checkpoints =======================================================================================
//
//  A checkpoint's segment runs again when backward needs the tensors that it saves.  By then, layers of transforms and
//  levels of forward mode that were open around the first run may have ended, and others may have begun.  For example,
//  opd_grad of opd_vmap of a segment runs backward after the vmap has ended.  So a checkpoint remembers the layers and
//  levels of the first run, and takes its inputs apart: the values inside of vmap wrappers, and the tangents in each
//  level.  Before the segment runs again, the layers and levels that have ended are opened again, those that have begun
//  since are hidden, and the inputs are put together.

OPDI_INTERNAL void opdi_surroundings_free(opdi_surroundings *around) {
    if (around->list) { opdi_free(around->list, (size_t)around->count * sizeof *around->list); }
    around->list = NULL;
}

static void opdi_surrounding_of_level(opdi_surrounding *one, opdi_level *level) {
    one->level = level;
    one->serial = level->serial;
    one->layer = level->layer;
    one->transform = level->transform;
    one->around.forward = level->around;
}
static void opdi_surrounding_of_layer(opdi_surrounding *one, const opdi_layer *layer) {
    one->serial = layer->serial;
    one->layer = layer->level;
    one->kind = layer->kind;
    one->randomness = layer->randomness;
    one->size = layer->size;
    one->compute = layer->compute;
    one->around = layer->around;
}
/* Writes the layers and levels that are open on this thread to *around.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_surroundings_take(opdi_surroundings *around) {
    const opdi_thread *thread = opdi_self();
    const opdi_layer *layer;
    opdi_level *level;
    int count = 0;
    memset(around, 0, sizeof *around);
    around->thread = opdi_thread_number(thread);
    around->floor = thread->innermost.floor;
    around->levels = thread->innermost.level != NULL;
    for (layer = thread->innermost.layer; layer; layer = layer->outer) { count++; }
    for (level = thread->innermost.level; level; level = level->outer) { count++; }
    if (count == 0) { return 0; }
    if (!(around->list = (opdi_surrounding *)opdi_alloc((size_t)count * sizeof *around->list))) { return -1; }
    memset(around->list, 0, (size_t)count * sizeof *around->list);
    around->count = count;
    layer = thread->innermost.layer;
    level = thread->innermost.level;
    while (count-- > 0) {                         /* the innermost first */
        const bool inside = level && (!layer || level->layer > layer->level ||
            (level->transform && level->layer == layer->level));
        if (inside) {
            opdi_surrounding_of_level(&around->list[count], level);
            level = level->outer;
        } else {
            opdi_surrounding_of_layer(&around->list[count], layer);
            layer = layer->outer;
        }
    }
    return 0;
}

/* Finds the layers and levels of the list that are still open, up to the first that is not.  Writes the innermost of
   them to frame->base and frame->level.  Returns their number. */
static int opdi_surroundings_still_open(const opdi_surroundings *around, opdi_surroundings_frame *frame) {
    const opdi_thread *thread = opdi_self();
    int i;
    frame->base = NULL;
    frame->level = NULL;
    for (i = 0; i < around->count && around->thread == opdi_thread_number(thread); i++) {
        const opdi_surrounding *one = &around->list[i];
        opdi_layer *layer = one->level ? NULL : thread->innermost.layer;
        opdi_level *level = one->level ? thread->innermost.level : NULL;
        while (layer && layer->serial != one->serial) { layer = layer->outer; }
        while (level && level->serial != one->serial) { level = level->outer; }
        if (!layer && !level) { break; }
        if (layer) { frame->base = layer; } else { frame->level = level; }
        frame->levels[i] = level;
    }
    return i;
}
/* Opens a layer or level again.  Writes the level to *level.  Returns 0, or -1 and sets an error. */
static int opdi_surrounding_open(const opdi_surrounding *one, opdi_level **level) {
    opdi_thread *thread = opdi_self();
    if (one->level) {
        if (opdi_level_begin(thread, one->transform)) { return -1; }
        *level = thread->innermost.level;
        (*level)->around = one->around.forward;
        return 0;
    }
    opdi_layer *layer = opdi_layer_push(one->kind, one->size, one->randomness);
    if (!layer) { return -1; }
    layer->around = one->around;
    layer->compute = one->compute;
    return 0;
}
/* Makes the layers and levels in `around` the open ones of this thread.  Saves the previous state in *frame.  Returns
   0, or -1 and sets an error; in both cases, opdi_surroundings_close must follow. */
OPDI_INTERNAL int opdi_surroundings_open(const opdi_surroundings *around, opdi_surroundings_frame *frame) {
    opdi_thread *thread = opdi_self();
    frame->was = thread->innermost;
    frame->base = frame->inner = NULL;
    frame->level = NULL;
    frame->levels = (opdi_level **)opdi_scope_alloc((size_t)(around->count + 1) * sizeof *frame->levels);
    if (!frame->levels) { return -1; }
    memset(frame->levels, 0, (size_t)(around->count + 1) * sizeof *frame->levels);
    int i = opdi_surroundings_still_open(around, frame), rc = 0;
    const opdi_layer *base = frame->base;
    frame->inner = base ? base->inner : NULL;
    thread->innermost.rule = NULL;
    thread->innermost.dual = NULL;
    thread->innermost.tangents = false;
    thread->innermost.level = frame->level;
    thread->innermost.serial = base ? base->serial : 0;
    thread->innermost.tape = !base ? 0 : base->kind == OPDI_LAYER_VMAP ? base->tape : base->serial;
    opdi_layer_set(thread, frame->base);
    for (; i < around->count && rc == 0; i++) { rc = opdi_surrounding_open(&around->list[i], &frame->levels[i]); }
    opdi_forward_at(thread, around->floor);
    return rc;
}
OPDI_INTERNAL void opdi_surroundings_close(const opdi_surroundings_frame *frame) {
    opdi_thread *thread = opdi_self();
    if (!frame->levels) { return; }
    opdi_layers_end(frame->base ? frame->base->level + 1 : 1);
    opdi_levels_end(thread, frame->level);
    if (frame->base) { frame->base->inner = frame->inner; }
    thread->innermost.layer = frame->was.layer;
    thread->innermost.rule = frame->was.rule;
    thread->innermost.level = frame->was.level;
    thread->innermost.dual = frame->was.dual;
    thread->innermost.tangents = frame->was.tangents;
    thread->innermost.floor = frame->was.floor;
    thread->innermost.serial = frame->was.serial;
    thread->innermost.tape = frame->was.tape;
}

//== parts of inputs ===================================================================================================

/* Frees a part of an input, and all parts of it.  `part` may be NULL. */
OPDI_INTERNAL void opdi_input_part_free(opdi_input_part *part) {
    if (!part) { return; }
    opdi_kept_drop(NULL, &part->value);
    opdi_input_part_free(part->inside);
    while (part->tangents) {
        opdi_input_part *tangent = part->tangents;
        part->tangents = tangent->next;
        opdi_input_part_free(tangent);
    }
    opd_node_release(part->edge.node);
    opdi_free(part, sizeof *part);
}

OPDI_INTERNAL opdi_input_part *opdi_input_part_keep(const opdi_surroundings *around, opd_tensor *tensor, int limit);
/* Keeps the tangents of `tensor`, the tensor of `part`, in the first `limit` levels and layers of `around`.  A wrapper
   has no tangents in levels outside of its layer; its value has them.  Returns 0, or -1 and sets an error. */
static int opdi_input_part_keep_tangents(const opdi_surroundings *around, opdi_input_part *part, opd_tensor *tensor,
                                         int limit) {
    opdi_thread *thread = opdi_self();
    const int above = tensor->flags & OPDI_BATCHED ? opdi_batched_of(tensor)->level : 0;
    for (int i = limit; i-- > 0;) {
        opdi_level *level = around->list[i].level;
        opdi_level_frame within;
        if (!level || level->layer <= above) { continue; }
        opdi_level_enter(thread, &within, level);
        opd_tensor *tangent = opdi_tangent_of(tensor);
        opdi_level_leave(thread, &within);
        opdi_input_part *kept = tangent ? opdi_input_part_keep(around, tangent, i) : NULL;
        if (!kept && (tangent || !opd_ok())) { return -1; }
        if (!kept) { continue; }
        kept->at = i;
        kept->next = part->tangents;
        part->tangents = kept;
    }
    return 0;
}
/* Returns the number of elements of `around` before the layer at level `level`, or `limit` if there is none. */
static int opdi_surroundings_before(const opdi_surroundings *around, int level, int limit) {
    int i;
    for (i = 0; i < limit && (around->list[i].level || around->list[i].layer != level); i++) { }
    return i;
}
/* Keeps a plain tensor in the form in which a node keeps a saved tensor, so that hooks of an outer segment can pack it.
   The kept tensor has no history, even if `tensor` gets one later, because the history could lead to the tensors that
   the segment saves.  Returns 0, or -1 and sets an error. */
static int opdi_input_part_keep_plain(opdi_input_part *part, const opd_tensor *tensor) {
    opdi_packer *packer = opdi_self()->innermost.packer;
    opd_tensor *copy = opdi_own(opdi_shallow_copy(tensor));
    if (!copy) { return -1; }
    const opd_value value = opd_value_tensor(copy);
    if (opdi_keep_value(&part->value, &value, true)) { return -1; }
    return packer ? opdi_pack_value(packer, NULL, &part->value, -1) : 0;
}
/* Takes `tensor` apart and keeps the parts, with tangents in the first `limit` levels and layers of `around`.  Keeps
   the histories only if layers or levels are open: without them, the nodes that save tensors of the segment know the
   histories.  Returns NULL and sets an error on failure. */
OPDI_INTERNAL opdi_input_part *opdi_input_part_keep(const opdi_surroundings *around, opd_tensor *tensor, int limit) {
    const opdi_batched *batched = tensor->flags & OPDI_BATCHED ? opdi_batched_of(tensor) : NULL;
    opdi_input_part *part = opdi_refresh(tensor) ? NULL : (opdi_input_part *)opdi_alloc(sizeof *part);
    if (!part) { return NULL; }
    memset(part, 0, sizeof *part);
    part->value = opd_value_none();
    part->wants = opdi_requires_grad(tensor);
    if (part->wants && around->count) {
        part->edge = opdi_edge_of(tensor);
        (void)opd_node_keep(part->edge.node);
    }
    int rc = opdi_input_part_keep_tangents(around, part, tensor, limit);
    if (rc == 0 && batched) {
        part->dim = batched->dim;
        part->level = batched->level;
        limit = opdi_surroundings_before(around, batched->level, limit);
        rc = (part->inside = opdi_input_part_keep(around, batched->value, limit)) ? 0 : -1;
    } else if (rc == 0) { rc = opdi_input_part_keep_plain(part, tensor); }
    if (rc == 0) { return part; }
    opdi_input_part_free(part);
    return NULL;
}

/* Returns an alias of the plain tensor of a part, without history.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_input_part_plain(const opdi_input_part *part) {
    opd_tensor *tensor = part->value.tag == OPDI_TAG_PACKED
        ? opdi_packed_saved_tensor((opdi_packed_saved *)part->value.u.object, false)
        : opdi_unpack(NULL, &part->value, (uint32_t)part->value.n);
    return tensor ? opdi_own(opdi_shallow_copy(tensor)) : NULL;
}
/* Wraps the value of a part for the layer that now has the part's level.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_input_part_wrap(const opdi_input_part *part, opd_tensor *value) {
    const opdi_layer *layer = opdi_self()->innermost.layer;
    while (layer && layer->level != part->level) { layer = layer->outer; }
    if (layer && value) { return opdi_own(opdi_batch_wrap(value, part->dim, part->level, layer->serial)); }
    if (value) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_checkpoint: an input is batched at level %d, by a vmap that is not "
                       "open", part->level);
    }
    return NULL;
}
/* Puts an input together again, for the layers and levels that opdi_surroundings_open has opened.  `levels` are those
   of its frame.  Returns NULL and sets an error on failure. */
OPDI_INTERNAL opd_tensor *opdi_input_part_make(const opdi_input_part *part, opdi_level *const *levels) {
    opdi_thread *thread = opdi_self();
    opd_tensor *tensor = part->inside ? opdi_input_part_wrap(part, opdi_input_part_make(part->inside, levels))
        : opdi_input_part_plain(part);
    if (!tensor || (part->tangents && opdi_family_new(tensor))) { return NULL; }
    if (part->edge.node && !(tensor = opdi_with_history(tensor, part->edge))) { return NULL; }
    if (part->wants) { tensor->flags |= OPDI_REQUIRES_GRAD; }
    for (const opdi_input_part *one = part->tangents; one; one = one->next) {
        opdi_level_frame within;
        opd_tensor *tangent = opdi_input_part_make(one, levels);
        if (!tangent) { return NULL; }
        opdi_level_enter(thread, &within, levels[one->at]);
        const int rc = opdi_tangent_set(tensor, tangent, true);
        opdi_level_leave(thread, &within);
        if (rc) { return NULL; }
    }
    return tensor;
}
