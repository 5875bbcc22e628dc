#include "autograd.h"

//== hooks =============================================================================================================
//
//  A hook is in the list of the node or leaf that it belongs to.  Code that runs hooks first copies the list, so that
//  hooks may add and remove hooks.  One lock protects the lists and the table of slots; it is not held while user code
//  runs.

OPDI_INTERNAL opdi_mutex opdi_hooks_lock = OPDI_MUTEX_INIT;
/* The table of slots, which finds a hook by its handle.  A handle is (uses << 32 | slot number).  `uses` is the number
   of hooks that the slot has had, so a handle of an earlier hook is not valid for a later hook in the same slot.  The
   table grows and is never freed. */
typedef struct opdi_hook_slot { opdi_hook *hook; uint32_t uses, next_free; } opdi_hook_slot;
static opdi_hook_slot *opdi_hook_slots;
static uint32_t opdi_hook_nslots, opdi_hook_free;  /* slot 0 is not used */

OPDI_INTERNAL void opdi_extra_free(opdi_extra *extra);
/* Returns the opdi_extra of `vertex` (a node or leaf).  Makes the opdi_extra if there is none.  Returns NULL if memory
   runs out.  The caller holds the lock. */
OPDI_INTERNAL opdi_extra *opdi_extra_of(uintptr_t vertex) {
    opd_node *node = vertex & OPDI_LEAF ? NULL : opdi_edge_node(vertex);
    opdi_meta *meta = node ? NULL : opdi_meta_of(opdi_edge_leaf(vertex));
    opdi_extra *extra = node ? (node->flags & OPDI_NODE_EXTRA ? (opdi_extra *)(uintptr_t)node->formula : NULL) : meta
        ? meta->extra : NULL;
    if (extra || (!node && !meta)) { return extra; }
    extra = (opdi_extra *)opdi_alloc(sizeof *extra);
    if (!extra) { return NULL; }
    OPDI_PUBLISH(&opdi_on_release.extra, &opdi_extra_free);
    memset(extra, 0, sizeof *extra);
    extra->last = &extra->hooks;
    if (meta) {
        OPDI_PUBLISH(&meta->extra, extra);
        return extra;
    }
    extra->formula = *node->formula;
    OPDI_PUBLISH(&node->formula, &extra->formula);
    OPDI_PUBLISH(&node->flags, (uint8_t)(node->flags | OPDI_NODE_EXTRA));
    return extra;
}

OPDI_INTERNAL void opdi_hook_release(opdi_hook *hook) {
    if (!hook || OPDI_SUB(&hook->refs, 1) > 0) { return; }
    if (hook->destroy) { hook->destroy(hook->user); }
    if (hook->plugin) { opdi_plugin_unpin(hook->plugin); }
    if (hook->members) { opdi_free(hook->members, (size_t)hook->nmembers * sizeof *hook->members); }
    opdi_hook_release(hook->multi);
    opdi_free(hook, sizeof *hook);
}

static void opdi_hook_slot_free(opdi_hook *hook) {
    if (!hook->slot) { return; }
    opdi_hook_slots[hook->slot].hook = NULL;
    opdi_hook_slots[hook->slot].next_free = opdi_hook_free;
    opdi_hook_free = hook->slot;
    hook->slot = 0;
}

/* Removes a hook from its list and frees its slot.  The caller holds the lock, and takes over the list's reference to
   the hook. */
static void opdi_hook_unlink(opdi_hook *hook) {
    *hook->at = hook->next;
    if (hook->next) { hook->next->at = hook->at; } else { hook->owner->last = hook->at; }
    OPDI_STORE(&hook->removed, true);
    opdi_hook_slot_free(hook);
    if (!hook->multi) { return; }
    hook->multi->members[hook->index] = NULL;
    if (--hook->multi->nlinked == 0) { opdi_hook_slot_free(hook->multi); }
}

/* Appends a hook to the list of `extra`, which takes over the caller's reference.  The caller holds the lock. */
static void opdi_hook_link(opdi_hook *hook, opdi_extra *extra) {
    hook->owner = extra;
    hook->next = NULL;
    hook->at = extra->last;
    *extra->last = hook;
    extra->last = &hook->next;
}

/* Gives hook a slot and returns its handle, or returns 0 and sets an error.  The caller holds the lock. */
static int64_t opdi_hook_handle(opdi_hook *hook) {
    if (!opdi_hook_free) {
        const uint32_t count = opdi_hook_nslots ? 2 * opdi_hook_nslots : 16;
        const size_t size = sizeof *opdi_hook_slots;
        opdi_hook_slot *grown = (opdi_hook_slot *)opdi_alloc(count * size);
        if (!grown) { return 0; }
        memset(grown, 0, count * size);
        if (opdi_hook_nslots) {
            memcpy(grown, opdi_hook_slots, opdi_hook_nslots * size);
            opdi_free(opdi_hook_slots, opdi_hook_nslots * size);
        }
        opdi_hook_slots = grown;
        for (uint32_t i = count - 1; i >= OPDI_MAX(opdi_hook_nslots, 1); i--) {
            opdi_hook_slots[i].next_free = opdi_hook_free;
            opdi_hook_free = i;
        }
        opdi_hook_nslots = count;
    }
    hook->slot = opdi_hook_free;
    opdi_hook_free = opdi_hook_slots[hook->slot].next_free;
    opdi_hook_slots[hook->slot].hook = hook;
    return (int64_t)(++opdi_hook_slots[hook->slot].uses & 0x7fffffff) << 32 | hook->slot;
}

static opdi_hook *opdi_hook_make(int kind, opdi_any_fn fn, void *user, opd_destroy destroy) {
    opdi_hook *hook = (opdi_hook *)opdi_alloc(sizeof *hook);
    if (!hook) { return NULL; }
    memset(hook, 0, sizeof *hook);
    hook->refs = 1;
    hook->kind = kind;
    hook->fn = fn;
    hook->user = user;
    hook->destroy = destroy;
    hook->plugin = fn ? opdi_plugin_hold((uintptr_t)fn) : NULL;
    return hook;
}

/* Adds a hook of kind `kind` for result number `nr` of `to` (a node or leaf), and returns its handle.  On failure,
   returns 0 and sets an error; the caller then still owns the user pointer. */
static int64_t opdi_hook_add(opd_node *to, uint32_t nr, int kind, opdi_any_fn fn, void *user, opd_destroy destroy) {
    opdi_hook *hook;
    if (!fn) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "the function of a hook is NULL");
        return 0;
    }
    if (!(hook = opdi_hook_make(kind, fn, user, destroy))) { return 0; }
    hook->nr = nr;
    hook->serial = opdi_serial_of(to);
    opdi_lock(&opdi_hooks_lock);
    opdi_extra *extra = opdi_extra_of(opdi_vertex(to));
    int64_t handle = extra ? opdi_hook_handle(hook) : 0;
    if (handle) { opdi_hook_link(hook, extra); }
    opdi_unlock(&opdi_hooks_lock);
    if (!handle) {
        hook->destroy = NULL;
        opdi_hook_release(hook);
    }
    return handle;
}

int64_t opd_tensor_hook_add(opd_tensor *tensor, opd_tensor_hook_fn fn, void *user, opd_destroy destroy) {
    opd_edge edge = opdi_edge_of(tensor);
    if (!opd_ok()) { return 0; }
    if (!edge.node) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "cannot register a hook on a variable that doesn't require gradient");
        return 0;
    }
    return opdi_hook_add(edge.node, edge.nr, OPDI_HOOK_TENSOR, (opdi_any_fn)fn, user, destroy);
}

int64_t opd_tensor_post_accumulate_hook_add(opd_tensor *tensor, opd_accumulate_hook_fn fn, void *user,
                                            opd_destroy destroy) {
    opd_edge edge = opdi_edge_of(tensor);
    if (!opd_ok()) { return 0; }
    if (!edge.node) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "cannot register a hook on a variable that doesn't require gradient");
        return 0;
    }
    if (tensor->grad_fn) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "post accumulate grad hooks cannot be registered on non-leaf tensors");
        return 0;
    }
    return opdi_hook_add(edge.node, 0, OPDI_HOOK_ACCUMULATED, (opdi_any_fn)fn, user, destroy);
}

static bool opdi_no_node(const opd_node *node, const char *function) {
    if (!opd_ok() || node) { return !opd_ok(); }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "%s: the node is NULL", function);
    return true;
}
int64_t opd_node_pre_hook_add(opd_node *node, opd_node_pre_hook_fn fn, void *user, opd_destroy destroy) {
    if (opdi_no_node(node, "opd_node_pre_hook_add")) { return 0; }
    return opdi_hook_add(node, 0, OPDI_HOOK_PRE, (opdi_any_fn)fn, user, destroy);
}
int64_t opd_node_post_hook_add(opd_node *node, opd_node_post_hook_fn fn, void *user, opd_destroy destroy) {
    if (opdi_no_node(node, "opd_node_post_hook_add")) { return 0; }
    return opdi_hook_add(node, 0, OPDI_HOOK_POST, (opdi_any_fn)fn, user, destroy);
}

/* Makes a member of the multi-gradient hook `multi` for each of the `count` tensors and appends it to the tensor's hook
   list.  Returns 0, or -1 if memory runs out. */
static int opdi_multi_link(opdi_hook *multi, opd_tensor *const *tensors, int count) {
    for (int i = 0; i < count; i++) {
        opd_edge edge = opdi_edge_of(tensors[i]);
        opdi_hook *hook = opdi_hook_make(OPDI_HOOK_TENSOR, NULL, NULL, NULL);
        if (!hook) { return -1; }
        hook->nr = edge.nr;
        hook->serial = opdi_serial_of(edge.node);
        hook->index = i;
        hook->vertex = opdi_vertex(edge.node);
        opdi_lock(&opdi_hooks_lock);
        opdi_extra *extra = opdi_extra_of(hook->vertex);
        if (extra) {
            hook->multi = multi;
            (void)OPDI_ADD(&multi->refs, 1);
            multi->members[i] = hook;
            multi->nlinked++;
            opdi_hook_link(hook, extra);
        }
        opdi_unlock(&opdi_hooks_lock);
        if (!extra) {
            opdi_hook_release(hook);
            return -1;
        }
    }
    return 0;
}
static void opdi_multi_unlink(opdi_hook *multi) {
    for (int i = 0; i < multi->nmembers; i++) {
        opdi_lock(&opdi_hooks_lock);
        opdi_hook *hook = multi->members[i];
        if (hook) { opdi_hook_unlink(hook); }
        opdi_unlock(&opdi_hooks_lock);
        opdi_hook_release(hook);
    }
}

/* Adds one hook for the gradients of several tensors and returns its handle.  With the mode OPD_MULTI_ALL, the hook
   waits for all gradients; with OPD_MULTI_ANY, for one.  On failure, returns 0 and sets an error; the caller then still
   owns the user pointer. */
int64_t opd_multi_hook_add(opd_tensor *const *tensors, int count, opd_multi_mode mode, opd_multi_hook_fn fn, void *user,
                           opd_destroy destroy) {
    int64_t handle = 0;
    if (!opd_ok()) { return 0; }
    if (mode != OPD_MULTI_ALL && mode != OPD_MULTI_ANY) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "Expects mode to be one of ('all', 'any') but got %d", (int)mode);
        return 0;
    }
    if (!tensors || count < 1 || !fn) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_multi_hook_add: the tensors and the function must not be NULL");
        return 0;
    }
    for (int i = 0; i < count; i++) {
        if (!opdi_edge_of(tensors[i]).node) {
            (void)opd_fail(OPD_ERROR_AUTOGRAD, "cannot register a hook on a variable that doesn't require gradient");
            return 0;
        }
    }
    opdi_hook *multi = opdi_hook_make(OPDI_HOOK_MULTI, (opdi_any_fn)fn, user, destroy);
    if (!multi) { return 0; }
    multi->mode = (int32_t)mode;
    multi->nmembers = count;
    multi->members = (opdi_hook **)opdi_alloc((size_t)count * sizeof *multi->members);
    if (multi->members) {
        memset(multi->members, 0, (size_t)count * sizeof *multi->members);
        opdi_lock(&opdi_hooks_lock);
        handle = opdi_hook_handle(multi);
        opdi_unlock(&opdi_hooks_lock);
    }
    if (handle && opdi_multi_link(multi, tensors, count)) { handle = 0; }
    if (!handle) {
        multi->destroy = NULL;
        if (multi->members) { opdi_multi_unlink(multi); }
        opdi_lock(&opdi_hooks_lock);
        opdi_hook_slot_free(multi);
        opdi_unlock(&opdi_hooks_lock);
    }
    opdi_hook_release(multi);
    return handle;
}

bool opd_hook_remove(int64_t handle) {
    const uint32_t slot = (uint32_t)(handle & 0xffffffff);
    opdi_hook *hook = NULL;
    opdi_lock(&opdi_hooks_lock);
    if (handle > 0 && slot < opdi_hook_nslots && (opdi_hook_slots[slot].uses & 0x7fffffff) == (uint64_t)handle >> 32) {
        hook = opdi_hook_slots[slot].hook;
    }
    if (hook) { (void)OPDI_ADD(&hook->refs, 1); }
    if (hook && hook->kind != OPDI_HOOK_MULTI) { opdi_hook_unlink(hook); }
    opdi_unlock(&opdi_hooks_lock);
    if (!hook) { return false; }
    if (hook->kind == OPDI_HOOK_MULTI) { opdi_multi_unlink(hook); } else { opdi_hook_release(hook); }
    opdi_hook_release(hook);
    return true;
}

//== retain_grad =======================================================================================================

OPDI_INTERNAL void opdi_retained_grad_release(opdi_retained_grad *box) {
    if (OPDI_SUB(&box->refs, 1) > 0) { return; }
    if (box->grad) { opdi_drop(box->grad); }
    opdi_free(box, sizeof *box);
}
/* Removes a box from the list of its node.  Returns true if the box was in a list.  The caller holds the lock, and then
   takes over the node's reference to the box. */
static bool opdi_retained_grad_unlink(opdi_retained_grad *box) {
    if (!box->owner) { return false; }
    *box->at = box->next;
    if (box->next) { box->next->at = box->at; }
    box->owner = NULL;
    return true;
}
/* Removes a box from its node, and drops the node's and the tensor's reference to the box. */
OPDI_INTERNAL void opdi_retained_grad_leave(opdi_retained_grad *box) {
    opdi_lock(&opdi_hooks_lock);
    bool was = opdi_retained_grad_unlink(box);
    opdi_unlock(&opdi_hooks_lock);
    if (was) { opdi_retained_grad_release(box); }
    opdi_retained_grad_release(box);
}
/* Moves the box of `tensor` to the list of the tensor's new node. */
OPDI_INTERNAL void opdi_retained_grad_follow(opd_tensor *tensor) {
    opdi_retained_grad *box = tensor->meta->retained;
    opdi_lock(&opdi_hooks_lock);
    bool was = opdi_retained_grad_unlink(box);
    opdi_extra *extra = opdi_extra_of((uintptr_t)tensor->grad_fn);
    if (extra) {
        box->owner = extra;
        box->nr = tensor->output_nr;
        box->next = extra->boxes;
        if (box->next) { box->next->at = &box->next; }
        box->at = &extra->boxes;
        extra->boxes = box;
        if (!was) { (void)OPDI_ADD(&box->refs, 1); }
    }
    opdi_unlock(&opdi_hooks_lock);
    if (was && !extra) { opdi_retained_grad_release(box); }
}

/* Makes the box that will hold the gradient of tensor, unless tensor is a leaf or has a box.  Returns 0, or -1 and sets
   an error. */
int opd_tensor_retain_grad(opd_tensor *tensor) {
    if (!opd_ok() || opdi_null_tensor(tensor, "opd_tensor_retain_grad") ||
        opdi_inside_transform("opd_tensor_retain_grad cannot be called inside of a function that opd_grad, opd_vjp, "
                              "opd_jvp, opd_vmap or another transform runs. A hook (opd_tensor_hook_add) sees the "
                              "gradient there") || opdi_refresh(tensor)) { return -1; }
    if (!opdi_requires_grad(tensor)) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "can't retain_grad on a tensor that does not require grad");
    }
    if (!tensor->grad_fn || (tensor->meta && tensor->meta->retained)) { return 0; }
    opdi_meta *meta = opdi_meta_of(tensor);
    OPDI_PUBLISH(&opdi_on_release.box, &opdi_retained_grad_leave);
    if (!meta || !(meta->retained = (opdi_retained_grad *)opdi_alloc(sizeof *meta->retained))) { return -1; }
    memset(meta->retained, 0, sizeof *meta->retained);
    meta->retained->refs = 1;
    meta->retained->follow = opdi_retained_grad_follow;
    opdi_retained_grad_follow(tensor);
    if (opd_ok()) { return 0; }
    opdi_retained_grad_release(meta->retained);
    meta->retained = NULL;
    return -1;
}
bool opd_tensor_retains_grad(const opd_tensor *tensor) {
    return !opdi_is_none(tensor, "opd_tensor_retains_grad") && tensor->meta && tensor->meta->retained;
}

OPDI_INTERNAL opd_tensor **opdi_grad_slot(opdi_meta *meta) {
    return meta->retained ? &meta->retained->grad : &meta->grad;
}

/* Frees an opdi_extra with its hooks, boxes and trace. */
OPDI_INTERNAL void opdi_extra_free(opdi_extra *extra) {
    while (extra->hooks || extra->boxes) {
        opdi_lock(&opdi_hooks_lock);
        opdi_hook *hook = extra->hooks;
        opdi_retained_grad *box = extra->boxes;
        if (hook) { opdi_hook_unlink(hook); }
        if (box) { (void)opdi_retained_grad_unlink(box); }
        opdi_unlock(&opdi_hooks_lock);
        opdi_hook_release(hook);
        if (box) { opdi_retained_grad_release(box); }
    }
    if (extra->frames) { opdi_free(extra->frames, (size_t)extra->nframes * sizeof *extra->frames); }
    if (extra->parent) { opdi_node_release(extra->parent); }
    opdi_free(extra, sizeof *extra);
}
