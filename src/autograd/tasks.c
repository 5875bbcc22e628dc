#include "autograd.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>engine       running the autograd graph backward, from the last node to the first, and hooks
//
//  The engine counts the gradients for which each node waits, and runs a node when all its gradients have arrived.  It
//  adds gradients up and writes them to leaves.
//
//  Data that only few nodes and leaves have, such as hooks, is in an opdi_extra.  A leaf has a pointer to its
//  opdi_extra in its opdi_meta.  If a node has the flag OPDI_NODE_EXTRA, its member `formula` points to the first
//  member of its opdi_extra.  So hooks cost nothing in a graph without hooks.
//----------------------------------------------------------------------------------------------------------------------

//== the tasks of an engine ============================================================================================

/* Returns the address of the field in which the first engine stores the task of a node or leaf. */
OPDI_INTERNAL struct opdi_task **opdi_task_field(uintptr_t vertex) {
    if (!(vertex & OPDI_LEAF)) { return &opdi_edge_node(vertex)->task; }
    return &opdi_edge_leaf(vertex)->meta->task;
}

/* Returns the index in the engine's hash table at which the task of `vertex` is, or would be put. */
static int64_t opdi_hash_slot(const opdi_engine *engine, uintptr_t vertex) {
    uint64_t hash = (uint64_t)vertex * 0x9E3779B97F4A7C15u;
    int64_t i = (int64_t)(hash >> 20) & (engine->hash_cap - 1);
    while (engine->hash[i] && engine->hash[i]->vertex != vertex) { i = (i + 1) & (engine->hash_cap - 1); }
    return i;
}

/* Doubles the engine's hash table.  Returns 0, or -1 if memory runs out. */
static int opdi_hash_grow(opdi_engine *engine) {
    opdi_task **old = engine->hash;
    int64_t old_cap = engine->hash_cap;
    engine->hash_cap = old_cap ? old_cap * 2 : 64;
    engine->hash = (opdi_task **)opdi_alloc((size_t)engine->hash_cap * sizeof *engine->hash);
    if (!engine->hash) {
        engine->hash = old;
        engine->hash_cap = old_cap;
        return -1;
    }
    memset(engine->hash, 0, (size_t)engine->hash_cap * sizeof *engine->hash);
    for (opdi_task *task = engine->tasks; task; task = task->next) {
        engine->hash[opdi_hash_slot(engine, task->vertex)] = task;
    }
    opdi_free(old, (size_t)old_cap * sizeof *old);
    return 0;
}

/* Returns the task of a node or leaf, or NULL if the engine has none. */
OPDI_INTERNAL opdi_task *opdi_task_find(const opdi_engine *engine, uintptr_t vertex) {
    if (!engine->first) { return engine->hash_cap ? engine->hash[opdi_hash_slot(engine, vertex)] : NULL; }
    if ((vertex & OPDI_LEAF) && !OPDI_ACQUIRE(&opdi_edge_leaf(vertex)->meta)) { return NULL; }
    return *opdi_task_field(vertex);
}

/* Allocates a block with space for a task of `bytes` bytes.  Each block is twice as large as the block before, up to a
   limit.  Returns 0, or -1 if memory runs out. */
OPDI_NOINLINE static int opdi_task_block_new(opdi_engine *engine, size_t bytes) {
    size_t size = engine->blocks ? OPDI_MIN(2 * engine->blocks->bytes, (size_t)1 << 18) : 1024;
    opdi_task_block *block;
    size = OPDI_MAX(size, sizeof *block + bytes);
    if (!(block = (opdi_task_block *)opdi_alloc(size))) { return -1; }
    block->next = engine->blocks;
    block->bytes = size;
    engine->blocks = block;
    engine->at = (char *)(block + 1);
    engine->end = (char *)block + size;
    return 0;
}
/* Makes the task of `vertex` (a node or leaf) and adds it to the engine's tasks.  Returns the task, or NULL if memory
   runs out. */
OPDI_INTERNAL opdi_task *opdi_task_make(opdi_engine *engine, uintptr_t vertex) {
    int count = vertex & OPDI_LEAF ? 1 : opdi_edge_node(vertex)->noutputs;
    size_t bytes = sizeof(opdi_task) + (size_t)OPDI_MAX(count - 1, 0) * sizeof(opd_tensor *);
    if ((vertex & OPDI_LEAF) && !opdi_meta_of(opdi_edge_leaf(vertex))) { return NULL; }
    if (!engine->first && 2 * (engine->ntasks + 1) > engine->hash_cap && opdi_hash_grow(engine)) { return NULL; }
    if (OPDI_UNLIKELY((size_t)(engine->end - engine->at) < bytes) && opdi_task_block_new(engine, bytes)) {
        return NULL;
    }
    opdi_task *task = (opdi_task *)(void *)engine->at;
    engine->at += bytes;
    memset(task, 0, sizeof *task);
    if (OPDI_UNLIKELY(count > 1)) { memset(task->grads, 0, (size_t)count * sizeof(opd_tensor *)); }
    task->vertex = vertex;
    task->ngrads = (uint16_t)count;
    task->leads = task->needed = !engine->restricted;
    if (engine->first) {
        *opdi_task_field(vertex) = task;
    } else {
        engine->hash[opdi_hash_slot(engine, vertex)] = task;
    }
    task->next = engine->tasks;
    engine->tasks = task;
    engine->ntasks++;
    return task;
}

/* Stores the gradients of a task in the engine's captures, if the caller asked for them. */
OPDI_INTERNAL void opdi_task_capture(opdi_engine *engine, opdi_task *task) {
    int low = 0, high = engine->ncaptures;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (engine->captures[middle].vertex < task->vertex) { low = middle + 1; } else { high = middle; }
    }
    for (; low < engine->ncaptures && engine->captures[low].vertex == task->vertex; low++) {
        opdi_capture *capture = &engine->captures[low];
        opd_tensor *grad = (int32_t)capture->nr < task->ngrads ? task->grads[capture->nr] : NULL;
        if (!grad || capture->grad) { continue; }
        opdi_retain(grad);
        capture->grad = grad;
    }
}
