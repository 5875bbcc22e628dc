#include "autograd.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>saved_tensors saved-tensor hooks, anomaly mode
//
//  Instead of saving a tensor itself, a node can keep an object that a pack hook made from the tensor.  In anomaly
//  mode, nodes also store the place in the program where they were recorded.  This section uses the engine.
//----------------------------------------------------------------------------------------------------------------------

//== saved-tensor hooks ================================================================================================

static size_t opdi_packed_saved_bytes(int ndim) { return sizeof(opdi_packed_saved) + (size_t)ndim * sizeof(int64_t); }

static opdi_packed_saved *opdi_pack(opdi_packer *packer, const opd_node *node, opd_tensor *tensor);
static opd_tensor *opdi_unpacked(const opdi_packed_saved *packed);
static void opdi_packed_saved_drop(opdi_packed_saved *packed);
static opdi_packer *opdi_packer_make(const opd_saved_hooks *hooks) {
    if (!hooks || !hooks->pack || !hooks->unpack) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "saved-tensor hooks: both pack and unpack must be given");
        return NULL;
    }
    opdi_packer *packer = (opdi_packer *)opdi_alloc(sizeof *packer);
    if (!packer) { return NULL; }
    packer->refs = 1;
    packer->hooks = *hooks;
    packer->plugin = opdi_plugin_hold((uintptr_t)hooks->pack);
    packer->outer = NULL;
    packer->whole = false;
    packer->pack = opdi_pack;
    packer->unpack = opdi_unpacked;
    packer->drop = opdi_packed_saved_drop;
    return packer;
}

int opd_saved_hooks_begin(const opd_saved_hooks *hooks) {
    opdi_thread *thread = opdi_self();
    (void)opdi_visits_left(thread);
    opdi_packer *packer = opdi_packers_check() ? NULL : opdi_packer_make(hooks);
    if (!packer) { return -1; }
    packer->outer = thread->innermost.packer;
    thread->innermost.packer = packer;
    return 0;
}

static void opdi_packed_saved_drop(opdi_packed_saved *packed) {
    if (packed->packer->hooks.drop) { packed->packer->hooks.drop(packed->data, packed->packer->hooks.user); }
    opdi_packer_release(packed->packer);
    if (!packed->own) { opd_node_release(packed->edge.node); }
    if (packed->like) { opdi_drop(packed->like); }
    opdi_free(packed, opdi_packed_saved_bytes(packed->ndim));
}

/* If `leaf` is the history of the packed tensor `packed`, drops the reference to it. */
OPDI_INTERNAL void opdi_packed_saved_forget(opdi_packed_saved *packed, opd_tensor *leaf) {
    if (opdi_vertex(packed->edge.node) != ((uintptr_t)leaf | OPDI_LEAF)) { return; }
    packed->edge.node = NULL;
    opdi_drop(leaf);
}

/* Packs `tensor`, which `node` saves, with the hooks `packer`.  If `node` is NULL, the caller keeps the tangents and
   the wrappers of the tensor.  Returns the packed tensor, or NULL and sets an error. */
static opdi_packed_saved *opdi_pack(opdi_packer *packer, const opd_node *node, opd_tensor *tensor) {
    opdi_thread *thread = opdi_self();
    opdi_packer *was = thread->innermost.packer;
    opdi_packed_saved *packed = (opdi_packed_saved *)opdi_alloc(opdi_packed_saved_bytes(tensor->ndim));
    opd_tensor *bare = packed ? opdi_shallow_copy(tensor) : NULL;
    const uint32_t version = OPDI_LOAD(&tensor->storage->version);
    opdi_visit_frame visit;
    opdi_frame frame;
    if (!bare) {
        if (packed) { opdi_free(packed, opdi_packed_saved_bytes(tensor->ndim)); }
        return NULL;
    }
    packed->ndim = tensor->ndim;
    packed->dtype = tensor->dtype;
    packed->place = (uint16_t)opdi_place_of(tensor);
    packed->version = version;
    packed->like = NULL;
    memcpy(packed->sizes, tensor->dims, (size_t)tensor->ndim * sizeof *tensor->dims);
    opdi_visit_begin(thread, &visit, "a pack hook", opdi_packers_return, NULL);
    opdi_frame_enter(thread, &frame);
    thread->state.no_grad = 1;
    thread->innermost.packer = NULL;                        /* tensors saved inside pack are not packed */
    if (thread->innermost.tracer) { thread->state.allow |= OPD_BIT_OF(OPD_F_TRACER); }
    packed->packer = opdi_packer_keep(packer);
    packed->data = packer->hooks.pack(bare, packer->hooks.user);
    opdi_visit_end(&visit);
    packed->edge = opdi_edge_of(tensor);
    packed->own = packed->edge.node == node;
    if (!packed->own) { (void)opd_node_keep(packed->edge.node); }
    thread->innermost.packer = was;
    opdi_frame_leave(thread, &frame);
    if (opd_ok() && node && !packer->whole &&
        ((tensor->flags & OPDI_BATCHED) || thread->innermost.level || thread->innermost.dual)) {
        packed->like = bare;
    } else { opdi_drop(bare); }
    if (opd_ok() && OPDI_LOAD(&tensor->storage->version) != version) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "A saved tensor pack hook is modifying its input in place. Tensors provided "
                       "as input to pack hook can not be modified by in-place operations as this can lead to "
                       "unexpected side-effects.");
        opdi_packed_saved_drop(packed);
        return NULL;
    }
    if (opd_ok()) { return packed; }
    opdi_packer_release(packer);                  /* pack has failed, so there is no packed object to drop */
    if (!packed->own) { opd_node_release(packed->edge.node); }
    opdi_free(packed, opdi_packed_saved_bytes(packed->ndim));
    return NULL;
}

/* Returns true if hooks may pack `tensor`, whose version was `version` when it was saved.  While a graph is traced,
   hooks may pack only tensors that the graph contains, because other tensors would become constants of the graph. */
static bool opdi_may_pack(const opd_tensor *tensor, uint32_t version) {
    return !opdi_self()->innermost.tracer || ((tensor->flags & (OPDI_TRACED | OPDI_BATCHED)) &&
                                    OPDI_LOAD(&tensor->storage->version) == version);
}
/* Packs a kept value of a node with the hooks `packer`.  If the value is a list, packs the element with index `only`,
   or all elements if `only` is -1.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_pack_value(opdi_packer *packer, opd_node *node, opd_value *value, int32_t only) {
    opdi_packed_saved *packed;
    if (value->tag == OPD_TAG_TENSOR && !(value->u.t->flags & OPDI_WRAPPED) &&
        opdi_may_pack(value->u.t, (uint32_t)value->n)) {
        opd_value old = *value;
        if (!(packed = packer->pack(packer, node, value->u.t))) { return -1; }
        value->tag = OPDI_TAG_PACKED;
        value->u.object = packed;
        opdi_kept_drop(node, &old);
    }
    for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && value->u.tensors && k < value->n; k++) {
        opd_tensor **at = (opd_tensor **)(uintptr_t)&value->u.tensors[k], *old = *at;
        if (!old || opdi_packed_saved_at(old) || old->backend == OPD_META || (only >= 0 && k != only) ||
            !opdi_may_pack(old, ((const uint32_t *)(const void *)(value->u.tensors + value->n))[k])) { continue; }
        if (!(packed = packer->pack(packer, node, old))) { return -1; }
        *at = (opd_tensor *)((uintptr_t)packed | OPDI_PACKED);
        opdi_drop(old);
    }
    return 0;
}

/* Packs, with the hooks `packer`, all tensors that a node has saved so far.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_node_pack_by(opdi_packer *packer, opd_node *node) {
    int rc = 0;
    (void)opdi_packer_keep(packer);
    for (int i = 0; i < node->nkept + node->nresults && rc == 0; i++) {
        rc = opdi_pack_value(packer, node, &opdi_kept(node)[i], -1);
    }
    opdi_packer_release(packer);
    return rc;
}
/* Packs all tensors that a node has saved, with the thread's hooks.  Does nothing if a tracer is recording the call:
   the tracer packs the tensors later.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_node_pack(opd_node *node) {
    opdi_thread *thread = opdi_self();
    return thread->innermost.tracer && !(thread->state.allow & OPD_BIT_OF(OPD_F_TRACER))
        ? thread->innermost.tracer->later(node, thread->innermost.packer)
        : opdi_node_pack_by(thread->innermost.packer, node);
}

OPDI_NOINLINE static opd_tensor *opdi_fail_unpacked(const opdi_packed_saved *packed, const opd_tensor *tensor) {
    char was[200], now[256], place[64];
    if (tensor->dtype == packed->dtype && opdi_has_sizes(tensor, packed->sizes, packed->ndim)) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "Output of saved tensor unpack_hook is on %s, but the packed tensor was on "
                       "another device; unpack must move it back",
                       opdi_device_text(opd_tensor_device(tensor), place, sizeof place));
        return NULL;
    }
    (void)opd_fail(OPD_ERROR_AUTOGRAD, "Output of saved tensor unpack_hook is %s, but the packed tensor was [%s %s]",
                   opdi_tensor_kind(tensor, now, sizeof now), opd_dtype_name((opd_scalar_type)packed->dtype),
                   opdi_sizes_text(packed->sizes, packed->ndim, was, sizeof was));
    return NULL;
}

/* Returns an alias of `tensor` with the tangents of `like` in `level` and the levels outside of it.  Inside of vmap
   wrappers, the values have the tangents and the history of like's values, too.  Returns NULL and sets an error on
   failure. */
static opd_tensor *opdi_saved_like(opd_tensor *like, opd_tensor *tensor, opdi_level *level) {
    opdi_thread *thread = opdi_self();
    const opdi_batched *from = like->flags & OPDI_BATCHED ? opdi_batched_of(like) : NULL;
    const opdi_batched *to = tensor->flags & OPDI_BATCHED ? opdi_batched_of(tensor) : NULL;
    opd_tensor *value = NULL;
    if (from && (!to || to->level != from->level || to->serial != from->serial)) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "Output of saved tensor unpack_hook is not batched as the packed tensor "
                       "was: inside of vmap, unpack must compute its output from the tensor that pack got");
        return NULL;
    }
    if (from) {
        opdi_level *outside = level;
        while (outside && outside->layer > from->level) { outside = outside->outer; }
        value = to->dim == from->dim ? to->value : opd_movedim(to->value, to->dim, from->dim);
        if (!value || !(value = opdi_saved_like(from->value, value, outside))) { return NULL; }
        const opd_edge edge = opdi_edge_of(from->value);
        if (edge.node && !(value = opdi_with_history(value, edge))) { return NULL; }
        value = opdi_own(opdi_batch_again(like, value));
    } else { value = opdi_own(opdi_shallow_copy(tensor)); }
    if (!value || opdi_family_new(value)) { return NULL; }
    for (; level && !(from && level->layer <= from->level); level = level->outer) {
        opdi_level_frame within;
        opdi_level_enter(thread, &within, level);
        opd_tensor *tangent = opdi_tangent_of(like);
        const int rc = !opd_ok() || (tangent && opdi_tangent_set(value, tangent, true)) ? -1 : 0;
        opdi_level_leave(thread, &within);
        if (rc) { return NULL; }
    }
    return value;
}

/* Returns the tensor that the unpack hook of a saved tensor makes, after checking it.  Returns NULL and sets an error
   on failure. */
static opd_tensor *opdi_unpacked(const opdi_packed_saved *packed) {
    opdi_thread *thread = opdi_self();
    const int16_t no_grad = thread->state.no_grad;
    opdi_packer *packer = thread->innermost.packer;
    opdi_visit_frame visit;
    opdi_visit_begin(thread, &visit, "an unpack hook", opdi_packers_return, NULL);
    thread->state.no_grad = 1;
    thread->innermost.packer = NULL;
    opd_tensor *tensor = packed->packer->hooks.unpack(packed->data, packed->packer->hooks.user);
    opdi_visit_end(&visit);
    thread->innermost.packer = packer;
    thread->state.no_grad = no_grad;
    if (!opd_ok()) { return NULL; }
    if (!tensor) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "Output of saved tensor unpack_hook expected to be a Tensor but got NULL");
        return NULL;
    }
    if (opdi_any_dead(&tensor, 1, "the unpack hook of a saved tensor")) { return NULL; }
    if (tensor->dtype != packed->dtype || !opdi_has_sizes(tensor, packed->sizes, packed->ndim) ||
        opdi_place_of(tensor) != packed->place) {
        return opdi_fail_unpacked(packed, tensor);
    }
    if (!packed->like || !((packed->like->flags & OPDI_BATCHED) || opdi_is_dual(packed->like))) { return tensor; }
    const uint32_t now = OPDI_LOAD(&packed->like->storage->version);
    return now == packed->version ? opdi_saved_like(packed->like, tensor, thread->innermost.level)
        : opdi_fail_written(packed->like, now, packed->version);
}

/* Between opd_allow_mutation_begin and opd_allow_mutation_end, a program may write into saved tensors.  The hooks of
   opd_allow_mutation_begin do not copy a tensor when it is saved.  They list it in a hash table, whose keys are
   storages (opdi_mutation).  Before a storage is written, the listed tensors in that storage are copied. */

OPDI_INTERNAL opdi_mutex opdi_mutation_lock = OPDI_MUTEX_INIT;   /* protects the tables */

static opdi_snapshot **opdi_mutation_row(const opdi_mutation *mutation, const void *key) {
    return &mutation->rows[((uintptr_t)key / 16 * (uintptr_t)0x9E3779B97F4A7C15u >> 20) &
                           (uint64_t)(mutation->nrows - 1)];
}
static void opdi_snapshot_put(const opdi_mutation *mutation, opdi_snapshot *snapshot) {
    snapshot->at = opdi_mutation_row(mutation, snapshot->key);
    snapshot->next = *snapshot->at;
    if (snapshot->next) { snapshot->next->at = &snapshot->next; }
    *snapshot->at = snapshot;
}
static void opdi_snapshot_take(opdi_snapshot *snapshot) {
    *snapshot->at = snapshot->next;
    if (snapshot->next) { snapshot->next->at = snapshot->at; }
}
/* Doubles the number of rows of the table.  Leaves the table unchanged if memory runs out. */
static void opdi_mutation_grow(opdi_mutation *mutation) {
    const int mark = opd_error_mark();
    opdi_mutation wide = *mutation;
    wide.nrows = 2 * mutation->nrows;
    wide.rows = (opdi_snapshot **)opdi_alloc((size_t)wide.nrows * sizeof *wide.rows);
    (void)opd_error_rewind(mark);
    if (!wide.rows) { return; }
    memset(wide.rows, 0, (size_t)wide.nrows * sizeof *wide.rows);
    for (int64_t i = 0; i < mutation->nrows; i++) {
        opdi_snapshot *next;
        for (opdi_snapshot *snapshot = mutation->rows[i]; snapshot; snapshot = next) {
            next = snapshot->next;
            opdi_snapshot_put(&wide, snapshot);
        }
    }
    opdi_free(mutation->rows, (size_t)mutation->nrows * sizeof *mutation->rows);
    *mutation = wide;
}
static bool opdi_snapshot_matches(const opdi_snapshot *snapshot, const opd_tensor *tensor) {
    return snapshot->tensor && snapshot->key == tensor->storage &&
        snapshot->version == OPDI_LOAD(&tensor->storage->version) && snapshot->tensor->data == tensor->data &&
        snapshot->tensor->dtype == tensor->dtype && snapshot->tensor->ndim == tensor->ndim &&
        !((snapshot->tensor->functionality ^ tensor->functionality) & OPDI_LAZY_KEYS) &&
        memcmp(snapshot->tensor->dims, tensor->dims, 2 * (size_t)tensor->ndim * sizeof *tensor->dims) == 0;
}
/* The pack hook: returns the table's entry of a saved tensor, with a new reference to the entry.  Makes the entry if
   the tensor is not listed yet.  Returns NULL if memory runs out. */
static void *opdi_mutation_pack(opd_tensor *tensor, void *user) {
    opdi_mutation *mutation = (opdi_mutation *)user;
    opdi_snapshot *snapshot, *made = (opdi_snapshot *)opdi_alloc(sizeof *made);
    int looked = 0;
    if (!made) { return NULL; }
    opdi_lock(&opdi_mutation_lock);
    for (snapshot = *opdi_mutation_row(mutation, tensor->storage); snapshot && !opdi_snapshot_matches(snapshot, tensor);
         snapshot = ++looked < 8 ? snapshot->next : NULL) { }
    if (snapshot) { snapshot->refs++; }
    else {
        memset(made, 0, sizeof *made);
        made->mode = mutation;
        made->key = tensor->storage;
        made->tensor = opdi_keep(tensor);
        made->version = OPDI_LOAD(&tensor->storage->version);
        made->refs = 1;
        opdi_snapshot_put(mutation, made);
        if (++mutation->count > mutation->nrows) { opdi_mutation_grow(mutation); }
    }
    opdi_unlock(&opdi_mutation_lock);
    if (snapshot) { opdi_free(made, sizeof *made); }
    return snapshot ? snapshot : made;
}
static opd_tensor *opdi_mutation_unpack(void *packed, void *user) {
    const opdi_snapshot *snapshot = (const opdi_snapshot *)packed;
    (void)user;
    opdi_lock(&opdi_mutation_lock);
    opd_tensor *tensor = opdi_keep(snapshot->tensor);
    uint32_t now = tensor && snapshot->key != snapshot ? OPDI_LOAD(&tensor->storage->version) : snapshot->version;
    opdi_unlock(&opdi_mutation_lock);
    if (!tensor) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "Trying to backward outside of the 'allow_mutation_on_saved_tensors' "
                       "context in which the graph was originally recorded.");
        return NULL;
    }
    tensor = opdi_own(tensor);
    return now == snapshot->version ? tensor : opdi_fail_written(tensor, now, snapshot->version);
}
static void opdi_mutation_drop(void *packed, void *user) {
    opdi_snapshot *snapshot = (opdi_snapshot *)packed;
    (void)user;
    opdi_lock(&opdi_mutation_lock);
    int32_t left = --snapshot->refs;
    if (left == 0) {
        opdi_snapshot_take(snapshot);
        snapshot->mode->count--;
    }
    opdi_unlock(&opdi_mutation_lock);
    if (left > 0) { return; }
    opdi_release(snapshot->tensor);
    opdi_free(snapshot, sizeof *snapshot);
}
/* Returns a new reference to an entry of the table whose tensor lies in the storage of `tensor` and was not written
   after it was saved.  Returns NULL if there is none. */
static opdi_snapshot *opdi_mutation_next(const opdi_mutation *mutation, const opd_tensor *tensor) {
    opdi_lock(&opdi_mutation_lock);
    opdi_snapshot *snapshot = *opdi_mutation_row(mutation, tensor->storage);
    while (snapshot &&
           (snapshot->key != tensor->storage || snapshot->version != OPDI_LOAD(&tensor->storage->version))) {
        snapshot = snapshot->next;
    }
    if (snapshot) { snapshot->refs++; }
    opdi_unlock(&opdi_mutation_lock);
    return snapshot;
}
/* Copies the saved tensors that lie in the memory of `tensor`, which is about to be written.  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_mutation_write(opdi_mutation *mutation, const opd_tensor *tensor) {
    opdi_snapshot *snapshot;
    if (tensor->meta && tensor->meta->inner) { return 0; }  /* the write of the inner tensor comes here, too */
    while (opd_ok() && (snapshot = opdi_mutation_next(mutation, tensor)) != NULL) {
        opd_tensor *old = snapshot->tensor, *copy = opdi_bare_copy(old);
        if (copy) {
            opdi_lock(&opdi_mutation_lock);
            snapshot->tensor = copy;
            opdi_snapshot_take(snapshot);
            snapshot->key = snapshot;
            opdi_snapshot_put(mutation, snapshot);
            opdi_unlock(&opdi_mutation_lock);
            copy = old;
        }
        opdi_release(copy);
        opdi_mutation_drop(snapshot, NULL);
    }
    return opd_ok() ? 0 : -1;
}
static void opdi_mutation_free(void *user) {
    opdi_mutation *mutation = (opdi_mutation *)user;
    opdi_free(mutation->rows, (size_t)mutation->nrows * sizeof *mutation->rows);
    opdi_free(mutation, sizeof *mutation);
}

/* Makes a table of saved tensors and pushes the hooks that list saved tensors in it.  Returns 0, or -1 and sets an
   error. */
int opd_allow_mutation_begin(void) {
    opdi_thread *thread = opdi_self();
    opd_saved_hooks hooks;
    if (opdi_visits_left(thread) || !opd_ok()) { return -1; }
    if (thread->innermost.mutation) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "allow_mutation_on_saved_tensors contexts cannot be nested");
    }
    opdi_mutation *mutation = (opdi_mutation *)opdi_alloc(sizeof *mutation);
    if (!mutation) { return -1; }
    memset(mutation, 0, sizeof *mutation);
    memset(&hooks, 0, sizeof hooks);
    hooks.pack = opdi_mutation_pack;
    hooks.unpack = opdi_mutation_unpack;
    hooks.drop = opdi_mutation_drop;
    hooks.user = mutation;
    hooks.destroy = opdi_mutation_free;
    mutation->nrows = 64;
    mutation->rows = (opdi_snapshot **)opdi_alloc((size_t)mutation->nrows * sizeof *mutation->rows);
    if (mutation->rows) { memset(mutation->rows, 0, (size_t)mutation->nrows * sizeof *mutation->rows); }
    if (!mutation->rows || opd_saved_hooks_begin(&hooks)) {
        if (mutation->rows) { opdi_free(mutation->rows, (size_t)mutation->nrows * sizeof *mutation->rows); }
        opdi_free(mutation, sizeof *mutation);
        return -1;
    }
    mutation->packer = thread->innermost.packer;
    thread->innermost.mutation = mutation;
    return 0;
}
/* Pops the hooks of opd_allow_mutation_begin, and drops the saved tensors in their table.  A later backward that needs
   one of these tensors fails with "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context". */
void opd_allow_mutation_end(void) {
    opdi_thread *thread = opdi_self();
    (void)opdi_visits_left(thread);
    opdi_mutation *mutation = thread->innermost.mutation;
    opdi_packer **at;
    opdi_snapshot *snapshot, *over = NULL;
    if (!mutation) { return; }
    thread->innermost.mutation = NULL;
    opdi_packer *packer = mutation->packer;
    opdi_lock(&opdi_mutation_lock);
    for (int64_t i = 0; i < mutation->nrows; i++) {
        for (snapshot = mutation->rows[i]; snapshot; snapshot = snapshot->next) {
            snapshot->refs++;
            snapshot->over = over;
            over = snapshot;
        }
    }
    opdi_unlock(&opdi_mutation_lock);
    while ((snapshot = over) != NULL) {           /* freeing a tensor may run any code, so the lock is not held */
        over = snapshot->over;
        opdi_lock(&opdi_mutation_lock);
        opd_tensor *tensor = snapshot->tensor;
        snapshot->tensor = NULL;
        opdi_unlock(&opdi_mutation_lock);
        opdi_release(tensor);
        opdi_mutation_drop(snapshot, NULL);
    }
    for (at = &thread->innermost.packer; *at && *at != packer; at = &(*at)->outer) { }
    if (*at) {
        *at = packer->outer;
        opdi_packer_release(packer);
    }
}

/* The place of a saved tensor in a node: a kept value, or element number `element` of a kept list.  If `value` is not a
   list, `element` is -1. */
typedef struct opdi_saved_place { opd_value *value; int32_t element; } opdi_saved_place;

/* Returns the value that a node saved under `name`: the name of an argument or of a result in the operator's schema, or
   "result" ("result0", "result1", ... if there are several).  Returns NULL if there is none. */
static opd_value *opdi_saved_named(opd_node *node, const char *name) {
    const opdi_card *card = opdi_plain_node(node) ? node->formula->card : NULL;
    int i, at = 0;
    for (i = 0; card && i < card->nargs; i++) {
        if (!(card->kept_args >> i & 1)) { continue; }
        if (strcmp(card->op->schema->args[i].name, name) == 0) {
            return (card->save_args >> i & 1) ? &opdi_kept(node)[at] : NULL;
        }
        at++;
    }
    for (i = 0, at = 0; card && i < card->op->nrets; i++) {
        const char *given = card->op->schema->returns[i].name;
        char numbered[24];
        snprintf(numbered, sizeof numbered, card->op->nrets == 1 ? "result" : "result%d", i);
        if (!(card->save_results >> i & 1)) { continue; }
        if (strcmp(name, numbered) == 0 || (given && strcmp(name, given) == 0)) {
            return &opdi_saved_results(node)[at];
        }
        at++;
    }
    return NULL;
}
/* Finds tensor number at->element among the tensors that a custom function or a setup_context has saved, and writes its
   place to *at.  Returns false if there is none. */
static bool opdi_saved_in_context(opd_node *node, opdi_saved_place *at) {
    opd_value *kept = opdi_plain_node(node) && node->formula->context && node->nkept ? opdi_kept(node) : NULL;
    const opd_context *ctx = kept ? (const opd_context *)kept[node->nkept - 1].u.object : NULL;
    if (!ctx || at->element >= ctx->nsaved) { return false; }
    kept += node->nkept - 1 - ctx->nsaved;
    at->value = &kept[at->element];
    if (at->value->tag == OPD_TAG_INT) { at->value = &kept[at->value->u.i]; }  /* an int is the index of another kept
                                                                                  value with the same tensor */
    at->element = -1;
    return true;
}
/* Finds the saved tensor that is named "name", "name[2]" or "saved_tensors[2]", and writes its place to *at.  Returns
   false if there is none. */
static bool opdi_saved_find(opd_node *node, const char *name, opdi_saved_place *at) {
    const char *bracket = name ? strchr(name, '[') : NULL;
    char base[80], *end;
    if (!bracket) {
        at->element = -1;
        return name && (at->value = opdi_saved_named(node, name)) != NULL;
    }
    snprintf(base, sizeof base, "%.*s", (int)OPDI_MIN(bracket - name, 79), name);
    at->element = (int32_t)OPDI_MIN(strtoul(bracket + 1, &end, 10), INT32_MAX);
    if (end == bracket + 1 || strcmp(end, "]") != 0) { return false; }
    if (strcmp(base, "saved_tensors") == 0) { return opdi_saved_in_context(node, at); }
    at->value = opdi_saved_named(node, base);
    return at->value && at->value->tag == OPD_TAG_TENSORS && at->element < at->value->n;
}

/* Finds a saved tensor by its name and writes its place to *at.  Also marks the node as in use; the caller calls
   opdi_saved_leave later.  `freed` is the message if the saved tensors were freed (NULL: the usual message).  Returns
   false and sets an error on failure. */
static bool opdi_saved_of(opd_node *node, const char *name, const char *freed, opdi_saved_place *at) {
    if (!opd_ok()) { return false; }
    if (!opdi_saved_find(node, name, at)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s has no saved tensor '%s'", opd_node_name(node),
                        name ? name : "NULL") == 0;
    }
    if (!opdi_saved_enter(node)) {
        if (opd_ok()) { (void)(freed ? opd_fail(OPD_ERROR_AUTOGRAD, "%s", freed) : opdi_fail_freed(node)); }
        return false;
    }
    if (at->element >= 0 || at->value->tag != OPD_TAG_TENSORS) { return true; }
    opdi_saved_leave(node, false);
    return opd_fail(OPD_ERROR_ARGUMENT, "%s has a saved list '%s' of %d tensors: name one of them, as in '%s[0]'",
                    opd_node_name(node), name, at->value->n, name) == 0;
}
/* Returns the saved tensor at a place as a kept value.  Sets *version to the version that the tensor had when it was
   saved. */
static opd_value opdi_saved_value(const opdi_saved_place *at, uint32_t *version) {
    if (at->element < 0) {
        *version = (uint32_t)at->value->n;
        return *at->value;
    }
    *version = ((const uint32_t *)(const void *)(at->value->u.tensors + at->value->n))[at->element];
    struct opdi_packed_saved *packed = opdi_packed_saved_at(at->value->u.tensors[at->element]);
    opd_value value = at->value->u.tensors[at->element]
        ? opd_value_tensor(at->value->u.tensors[at->element]) : opd_value_none();
    if (packed) {
        value.tag = OPDI_TAG_PACKED;
        value.u.object = packed;
    }
    return value;
}

opd_tensor *opd_node_saved(opd_node *node, const char *name) {
    opdi_saved_place at;
    opd_tensor *tensor;
    uint32_t version;
    if (!opdi_saved_of(node, name, NULL, &at)) { return NULL; }
    opd_value value = opdi_saved_value(&at, &version);
    if (value.tag == OPDI_TAG_PACKED) { tensor = opdi_packed_saved_tensor((opdi_packed_saved *)value.u.object, true); }
    else { tensor = opdi_own(opdi_keep(opdi_unpack(node, &value, version))); }
    opdi_saved_leave(node, false);
    return tensor;
}

/* Packs the saved tensor of a node that is named `name` with `hooks`.  Returns 0.  On failure, returns -1 and sets an
   error; the caller then still owns the user pointer. */
int opd_node_saved_hooks(opd_node *node, const char *name, const opd_saved_hooks *hooks) {
    opdi_saved_place at;
    uint32_t version;
    if (!opdi_saved_of(node, name, "Calling register_hooks on a saved tensor after it has been freed. Saved "
                       "intermediate values of the graph are freed when you call opd_backward or opd_autograd_grad. "
                       "Specify retain_graph if you need to backward through the graph a second time or if you need to "
                       "access saved variables after calling backward.", &at)) { return -1; }
    opdi_packer *packer = opdi_packer_make(hooks);
    opd_value value = opdi_saved_value(&at, &version);
    int rc = packer ? 0 : -1;
    if (rc == 0 && value.tag == OPDI_TAG_PACKED) {
        rc = opd_fail(OPD_ERROR_AUTOGRAD, "Calling register_hooks on a saved tensor whose hooks have already been set. "
                      "Hint: only one pair of hooks is allowed at a time.");
    } else if (rc == 0 && value.tag != OPD_TAG_TENSOR) {
        rc = opd_fail(OPD_ERROR_AUTOGRAD, "hooks cannot be registered on a saved tensor that is NULL");
    }
    if (rc == 0) { rc = opdi_unpack(node, &value, version) ? opdi_pack_value(packer, node, at.value, at.element) : -1; }
    if (rc && packer) { packer->hooks.destroy = NULL; }       /* after a failure, the caller still owns the user
                                                                 pointer */
    if (packer) { opdi_packer_release(packer); }
    opdi_saved_leave(node, false);
    return rc;
}
