#include "tensor.h"

//== what autograd and forward mode keep beside tensors ================================================================
//
//  Forward mode keeps tangents in a list of the storage: one for each open level and each family.  A family is a set of
//  tensors that share memory and tangents (see >>forward).  This file has the functions that are needed when tensors
//  are made, retained and freed.

OPDI_INTERNAL opdi_mutex opdi_dual_lock = OPDI_MUTEX_INIT;       /* protects the lists of all levels and storages */

OPDI_INTERNAL opdi_mutex opdi_meta_lock = OPDI_MUTEX_INIT;   /* several threads may run backward over one leaf */
OPDI_INTERNAL opdi_meta *opdi_meta_of(opd_tensor *tensor) {
    opdi_meta *meta = OPDI_ACQUIRE(&tensor->meta);
    if (meta) { return meta; }
    opdi_meta *fresh = (opdi_meta *)opdi_alloc(sizeof *fresh);
    if (!fresh) { return NULL; }
    memset(fresh, 0, sizeof *fresh);
    opdi_lock(&opdi_meta_lock);
    meta = OPDI_ACQUIRE(&tensor->meta);
    if (!meta) {
        OPDI_PUBLISH(&tensor->meta, fresh);
        meta = fresh;
        fresh = NULL;
    }
    opdi_unlock(&opdi_meta_lock);
    if (fresh) { opdi_free(fresh, sizeof *fresh); }
    return meta;
}

static uint64_t opdi_family_of(const opd_tensor *tensor) {
    const opdi_meta *meta = OPDI_ACQUIRE(&tensor->meta);
    return meta ? OPDI_LOAD(&meta->family) : 0;
}
/* Puts `value`, which shares the memory of `tensor`, into the family of `tensor`.  Returns 0, or -1 if memory runs
   out. */
OPDI_INTERNAL int opdi_family_pass(opd_tensor *value, const opd_tensor *tensor) {
    const uint64_t family = opdi_family_of(tensor);
    opdi_meta *meta = family != opdi_family_of(value) ? opdi_meta_of(value) : NULL;
    if (meta) { OPDI_STORE(&meta->family, family); }
    if (!meta && family != opdi_family_of(value)) { return -1; }
    return tensor->meta && tensor->meta->marks ? tensor->meta->marks->copy(value, tensor->meta->marks) : 0;
}
/* Puts `tensor` into a new family, so that it no longer shares tangents with other tensors over its memory.  Returns 0,
   or -1 if memory runs out. */
OPDI_INTERNAL int opdi_family_new(opd_tensor *tensor) {
    static uint64_t families;
    opdi_meta *meta = opdi_meta_of(tensor);
    if (!meta) { return -1; }
    OPDI_STORE(&meta->family, OPDI_ADD(&families, (uint64_t)1) + 1);
    return 0;
}

/* Returns true if both tensors have the same dtype, or one is complex and the other has the dtype of its parts. */
static bool opdi_same_numbers(const opd_tensor *first, const opd_tensor *second) {
    const int x = OPDI_MIN(first->dtype, second->dtype), y = OPDI_MAX(first->dtype, second->dtype);
    return x == y || (x == OPD_FLOAT32 && y == OPD_COMPLEX64) || (x == OPD_FLOAT64 && y == OPD_COMPLEX128) ||
        (x == OPD_FLOAT16 && y == OPD_COMPLEX32);
}
/* Returns the opdi_dual that holds the tangent of `tensor` in a level, or NULL.  The caller holds opdi_dual_lock. */
OPDI_INTERNAL opdi_dual *opdi_dual_at(const opd_tensor *tensor, const opdi_level *level) {
    const uint64_t family = opdi_family_of(tensor);
    opdi_dual *dual = level ? tensor->storage->duals : NULL;
    while (dual && (dual->level != level || dual->family != family)) { dual = dual->next; }
    return dual && opdi_same_numbers(dual->tangent, tensor) ? dual : NULL;
}
OPDI_INTERNAL opdi_dual *opdi_dual_find(const opd_tensor *tensor) {
    return opdi_dual_at(tensor, opdi_self()->innermost.dual);
}
/* Returns true if tensor has a tangent in any level. */
OPDI_INTERNAL bool opdi_is_dual(const opd_tensor *tensor) {
    const uint64_t family = opdi_family_of(tensor);
    const opdi_dual *dual;
    if (!OPDI_ACQUIRE(&tensor->storage->duals)) { return false; }
    opdi_lock(&opdi_dual_lock);
    for (dual = tensor->storage->duals; dual && dual->family != family; dual = dual->next) { }
    opdi_unlock(&opdi_dual_lock);
    return dual != NULL;
}

/* Takes `dual` out of its level's list.  The caller holds opdi_dual_lock. */
static void opdi_dual_unlink(opdi_dual *dual) {
    *dual->at = dual->after;
    if (dual->after) { dual->after->at = dual->at; }
}

/* Drops all tangents of a storage that is about to be freed. */
static void opdi_duals_drop(opdi_storage *storage) {
    opdi_dual *dual;
    opdi_lock(&opdi_dual_lock);
    for (dual = storage->duals; dual; dual = dual->next) { opdi_dual_unlink(dual); }
    opdi_unlock(&opdi_dual_lock);
    while ((dual = storage->duals) != NULL) {
        storage->duals = dual->next;
        opdi_drop(dual->tangent);
        opdi_free(dual, sizeof *dual);
    }
}

/* Closes the innermost level and drops its tangents. */
OPDI_INTERNAL void opdi_level_end(opdi_thread *thread) {
    opdi_level *level = thread->innermost.level;
    opdi_dual *dual, **duals, *gone;
    opdi_lock(&opdi_dual_lock);
    for (dual = gone = level->duals; dual; dual = dual->after) {
        for (duals = &dual->storage->duals; *duals != dual; duals = &(*duals)->next) { }
        OPDI_PUBLISH(duals, dual->next);
    }
    opdi_unlock(&opdi_dual_lock);
    thread->innermost.level = level->outer;
    if (!thread->innermost.level) { thread->state.forward &= ~OPDI_FORWARD_OPEN; }
    while ((dual = gone) != NULL) {
        gone = dual->after;
        opdi_drop(dual->tangent);
        opdi_free(dual, sizeof *dual);
    }
    opdi_free(level, sizeof *level);
}
/* Closes the levels of the thread that were opened after `level`, or all levels if it is NULL. */
OPDI_INTERNAL void opdi_levels_end(opdi_thread *thread, const opdi_level *level) {
    while (thread->innermost.level && (!level || thread->innermost.level->serial > level->serial)) {
        opdi_level_end(thread);
    }
}

/* Makes `tangent` the tangent of `tensor` in a level.  The level takes a reference to `tangent`.  Returns 0, or -1 if
   memory runs out. */
OPDI_INTERNAL int opdi_dual_put(opdi_level *level, opd_tensor *tensor, opd_tensor *tangent) {
    opdi_dual *dual = (opdi_dual *)opdi_alloc(sizeof *dual);
    if (!dual) { return -1; }
    dual->storage = tensor->storage;
    dual->level = level;
    dual->family = opdi_family_of(tensor);
    dual->tangent = tangent;
    opdi_retain(tangent);
    opdi_lock(&opdi_dual_lock);
    dual->after = level->duals;
    dual->at = &level->duals;
    if (dual->after) { dual->after->at = &dual->after; }
    level->duals = dual;
    dual->next = tensor->storage->duals;
    if (!OPDI_LOAD(&opdi_on_release.tangents)) { OPDI_PUBLISH(&opdi_on_release.tangents, &opdi_duals_drop); }
    OPDI_PUBLISH(&tensor->storage->duals, dual);
    opdi_unlock(&opdi_dual_lock);
    return 0;
}

/* Returns the innermost level in which a tensor among the `count` values has a tangent, or NULL.  Only levels that
   compute tangents in the running call count. */
OPDI_INTERNAL opdi_level *opdi_level_of(const opd_value *args, int count) {
    const opdi_thread *thread = opdi_self();
    opdi_level *level = thread->innermost.level;
    bool found = false;
    while (level && level->layer > thread->innermost.floor) {
        opdi_lock(&opdi_dual_lock);
        for (int i = 0; i < count && !found; i++) {
            for (int32_t k = 0; k < (args[i].tag == OPD_TAG_TENSORS ? args[i].n : args[i].tag == OPD_TAG_TENSOR); k++) {
                const opd_tensor *tensor = args[i].tag == OPD_TAG_TENSOR ? args[i].u.t : args[i].u.tensors ?
                    args[i].u.tensors[k] : NULL;
                found = found || (tensor && tensor->storage->duals && opdi_dual_at(tensor, level));
            }
        }
        opdi_unlock(&opdi_dual_lock);
        if (found) { return level; }
        level = level->around & OPDI_FORWARD_OFF ? NULL : level->outer;
    }
    return NULL;
}
