#include "autograd.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>tape         nodes, recording, views, in-place writes
//
//  One kernel at the Autograd key serves every operator with a backward function.  It calls the operator again below
//  the Autograd key, saves the values that the operator's descriptor (its opd_op_desc, as registered) names, and makes
//  a node.  This section depends on operator descriptors and tensors.  The only operators that it calls itself are add,
//  sum and copies, through the dispatcher.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_NODE_EVEN 1u        /* all forward results have as many dims as the first result */
static inline int64_t *opdi_node_metas(const opd_node *node) {
    return (int64_t *)(void *)(opdi_saved_results(node) + node->nresults);
}

//== saved results =====================================================================================================
//
//  If a node saves its own result, the references form a cycle (result -> node -> result).  So the result gets the mark
//  OPDI_SAVED_BY_OWN.  When only the node still holds a marked result, the result drops its reference to the node
//  (OPDI_WEAK_NODE); when the result is retained again, it takes a new reference.  Reference counts of marked tensors
//  change under one lock; unmarked tensors do not need the lock.

OPDI_INTERNAL opdi_mutex opdi_own_lock = OPDI_MUTEX_INIT;

OPDI_INTERNAL void opdi_node_release(opd_node *node);
/* Retain and drop a tensor with the mark OPDI_SAVED_BY_OWN; they are the functions `retain` and `drop` of
   opdi_tape_release_hooks.  opdi_saved_drop returns true if it has dropped the last reference; the caller then frees
   the tensor. */
static void opdi_saved_retain(opd_tensor *tensor) {
    opdi_lock(&opdi_own_lock);
    opdi_ref_up(&tensor->refs);
    if (tensor->own & OPDI_WEAK_NODE) {
        OPDI_STORE(&tensor->own, (uint8_t)(tensor->own & ~OPDI_WEAK_NODE));
        opdi_ref_up(&tensor->grad_fn->refs);
    }
    opdi_unlock(&opdi_own_lock);
}
static bool opdi_saved_drop(opd_tensor *tensor) {
    opd_node *node = NULL;
    opdi_lock(&opdi_own_lock);
    int32_t left = opdi_ref_down(&tensor->refs);
    if (left == 1 && (tensor->own & OPDI_SAVED_BY_OWN) && !(tensor->own & OPDI_WEAK_NODE) && tensor->grad_fn) {
        OPDI_STORE(&tensor->own, (uint8_t)(tensor->own | OPDI_WEAK_NODE));
        node = tensor->grad_fn;
    }
    opdi_unlock(&opdi_own_lock);
    if (node) { opdi_node_release(node); }
    return left == 0;
}

/* Drops the reference that a node holds to its own result `tensor`. */
OPDI_INTERNAL void opdi_own_forget(opd_tensor *tensor) {
    opdi_lock(&opdi_own_lock);
    OPDI_STORE(&tensor->own, (uint8_t)(tensor->own & ~OPDI_SAVED_BY_OWN));
    int32_t left = opdi_ref_down(&tensor->refs);
    opdi_unlock(&opdi_own_lock);
    if (left == 0) { opdi_tensor_free(tensor); }
}

//== nodes =============================================================================================================

/* Returns the node that the CopySlices node `node` contains, or NULL if `node` is not a CopySlices node. */
OPDI_INTERNAL opd_node *opdi_slices_inner(const opd_node *node) {
    return node->flags & OPDI_NODE_SLICES ? (opd_node *)opdi_kept(node)->u.object : NULL;
}

/* Returns the descriptor of the operator that recorded `node`, or NULL if no operator recorded it. */
OPDI_INTERNAL const opdi_card *opdi_node_card(const opd_node *node) {
    const opd_node *inner = opdi_slices_inner(node);
    return (inner ? inner : node)->formula->card;
}

/* The nodes of this thread that are to be freed.  They are kept in a list, so that a long chain of nodes is freed
   without recursion. */
static OPDI_TLS opd_node *opdi_nodes_to_free;
static OPDI_TLS bool opdi_nodes_freeing;

/* Drops the tensors of `value`, a kept value of `node`.  The node's own result is dropped with opdi_own_forget. */
OPDI_INTERNAL void opdi_kept_drop(const opd_node *node, opd_value *value) {
    if (value->tag == OPDI_TAG_PACKED) {
        opdi_packed_saved *packed = (opdi_packed_saved *)(uintptr_t)value->u.object;
        packed->packer->drop(packed);
        return;
    }
    if (value->tag == OPD_TAG_TENSOR) {
        if ((OPDI_LOAD(&value->u.t->own) & OPDI_SAVED_BY_OWN) && value->u.t->grad_fn == node) {
            opdi_own_forget(value->u.t);
        }
        else { opdi_drop(value->u.t); }
    } else if (value->tag == OPD_TAG_TENSORS && value->u.tensors) {
        for (int32_t k = 0; k < value->n; k++) {
            opdi_packed_saved *packed = opdi_packed_saved_at(value->u.tensors[k]);
            if (packed) { packed->packer->drop(packed); }
            else if (value->u.tensors[k]) { opdi_drop(value->u.tensors[k]); }
        }
        opdi_free((void *)(uintptr_t)value->u.tensors, (size_t)value->n * (sizeof(opd_tensor *) + sizeof(uint32_t)));
    }
}

/* Returns the number of bytes of memory that a kept value owns; 0 for tensors and plain values. */
static size_t opdi_kept_bytes(const opd_value *value) {
    switch (value->tag) {
    case OPD_TAG_INTS: return (size_t)value->n * sizeof(int64_t);
    case OPD_TAG_FLOATS: return (size_t)value->n * sizeof(double);
    case OPD_TAG_BOOLS: return (size_t)value->n;
    case OPD_TAG_LIST: return (size_t)opdi_value_bytes(value, 0);
    case OPD_TAG_COMPLEX: return 2 * sizeof(double);
    case OPD_TAG_STR: return (size_t)value->n;    /* n is the length in bytes, with the final zero */
    default: return 0;
    }
}

/* Drops the saved tensors of a node.  Lists keep their lengths, and values that are not tensors stay. */
OPDI_INTERNAL void opdi_node_free_saved(opd_node *node) {
    opd_value *value = opdi_kept(node);
    opd_node *inner = opdi_slices_inner(node);
    if (inner) { opdi_node_free_saved(inner); }
    for (int i = 0; i < node->nkept + node->nresults; i++) {
        opd_value old = value[i];
        if (opdi_is_plain(&old)) { continue; }
        if (old.tag == OPD_TAG_TENSOR || old.tag == OPDI_TAG_PACKED) { value[i] = opd_value_none(); }
        else if (old.tag == OPD_TAG_TENSORS) { value[i].u.tensors = NULL; }
        else { continue; }
        opdi_kept_drop(node, &old);
    }
}

/* Marks a node as in use by a backward that reads its saved values.  Returns false, without an error, if the values are
   already freed.  Returns false and sets an error if too many backwards use the node.

   Several backwards may use a node at the same time (on other threads, or nested).  If any of them asks to free the
   values, the backward that leaves last frees them (opdi_saved_leave). */
OPDI_INTERNAL bool opdi_saved_enter(opd_node *node) {
    uint8_t was = OPDI_ACQUIRE(&node->saved);
    do {
        if (was & OPDI_SAVED_FREED) { return false; }
        if (was >= UINT8_MAX - OPDI_SAVED_USER) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "too many backward passes are in one node at the same time") == 0;
        }
    } while (!OPDI_EXCHANGE(&node->saved, &was, (uint8_t)(was + OPDI_SAVED_USER)));
    return true;
}
/* Returns true if a node's saved values are freed and no backward is using the node. */
OPDI_INTERNAL bool opdi_saved_is_freed(const opd_node *node) {
    const uint8_t now = OPDI_ACQUIRE(&node->saved);
    return (now & OPDI_SAVED_FREED) && now < OPDI_SAVED_USER;
}
OPDI_INTERNAL int opdi_fail_freed(const opd_node *node) {
    return opd_fail(OPD_ERROR_AUTOGRAD, "Trying to backward through the graph a second time (or directly access "
                    "saved tensors after they have already been freed). Saved intermediate values of the graph are "
                    "freed when you call opd_backward or opd_autograd_grad. Specify retain_graph if you need to "
                    "backward through the graph a second time or if you need to access saved tensors after calling "
                    "backward. (%s)", node->formula->name);
}
/* Ends the use of a node that opdi_saved_enter began.  If `free` is true, its saved values are no longer needed. */
OPDI_INTERNAL void opdi_saved_leave(opd_node *node, bool free) {
    uint8_t was = OPDI_ACQUIRE(&node->saved), now;
    do {
        now = (uint8_t)((was - OPDI_SAVED_USER) | (free ? OPDI_SAVED_FREED : 0));
    } while (!OPDI_EXCHANGE(&node->saved, &was, now));
    if ((now & OPDI_SAVED_FREED) && now < OPDI_SAVED_USER) { opdi_node_free_saved(node); }
}

/* Releases a kept value of any kind, except objects (such as contexts), which opdi_node_destroy releases. */
static void opdi_kept_release(const opd_node *node, opd_value *value) {
    opd_value old = *value;
    const size_t bytes = opdi_kept_bytes(value);
    if (old.tag == OPD_TAG_OBJECT) { return; }
    *value = opd_value_none();
    if (bytes) { opdi_free(old.u.object, bytes); } else { opdi_kept_drop(node, &old); }
}
OPDI_INTERNAL void opdi_context_free(opd_context *ctx);
/* Frees a node whose last reference is gone, with its kept values, edges, context and hooks, and its reference to a
   plug-in. */
static void opdi_node_destroy(opd_node *node) {
    opdi_edge *edge = opdi_edges(node);
    opd_value *value = opdi_kept(node);
    opd_plugin *plugin = node->formula->plugin;
    opd_node *inner = opdi_slices_inner(node);
    if (OPDI_UNLIKELY(inner != NULL)) { opdi_node_free_saved(inner); }
    for (int i = 0; i < node->nkept + node->nresults; i++) {
        if (!opdi_is_plain(&value[i])) { opdi_kept_release(node, &value[i]); }
    }
    if (OPDI_UNLIKELY(inner != NULL)) { opdi_node_release(inner); }
    if (OPDI_UNLIKELY(node->formula->context) && node->nkept) {
        opdi_context_free((opd_context *)value[node->nkept - 1].u.object);
    }
    for (int i = 0; i < node->nedges; i++) {
        if (edge[i].vertex & OPDI_LEAF) { opdi_drop(opdi_edge_leaf(edge[i].vertex)); }
        else if (edge[i].vertex) { opdi_node_release(opdi_edge_node(edge[i].vertex)); }
    }
    if (OPDI_UNLIKELY(node->flags & OPDI_NODE_EXTRA)) {
        OPDI_ACQUIRE(&opdi_on_release.extra)((struct opdi_extra *)(uintptr_t)node->formula);
    }
    opdi_free(node, node->bytes);
    if (OPDI_UNLIKELY(plugin != NULL)) { opdi_plugin_unpin(plugin); }
}

/* Drops a reference to a node.  If it was the last one, frees the node.  Nodes that lose their last reference while
   another node is being freed wait in a list, so that long chains need no deep stack. */
OPDI_INTERNAL void opdi_node_release(opd_node *node) {
    if (OPDI_ACQUIRE(&node->refs) != 1 && opdi_ref_down(&node->refs) != 0) { return; }
    node->task = (struct opdi_task *)(void *)opdi_nodes_to_free;
    opdi_nodes_to_free = node;
    if (opdi_nodes_freeing) { return; }
    opdi_nodes_freeing = true;
    while (opdi_nodes_to_free) {
        opd_node *dead = opdi_nodes_to_free;
        opdi_nodes_to_free = (opd_node *)(void *)dead->task;
        opdi_node_destroy(dead);
    }
    opdi_nodes_freeing = false;
}

/* Brings the history of tensor up to date if it is a view.  Returns 0, or -1 and sets an error. */

/* Writes a description of each forward result in `outs` into the node: dtype, opdi_place and sizes. */
OPDI_INTERNAL void opdi_node_describe(opd_node *node, opd_tensor *const *outs) {
    int64_t *meta = opdi_node_metas(node);
    bool even = true;
    for (int i = 0; i < node->noutputs; i++) {
        const opd_tensor *tensor = outs[i];
        if (OPDI_UNLIKELY(!tensor)) {
            *meta++ = -1;
            even = false;
            continue;
        }
        even = even && tensor->ndim == outs[0]->ndim;
        *meta++ = tensor->dtype | (int64_t)opdi_place_of(tensor) << 32 | (int64_t)tensor->ndim << 48 |
            (opdi_is_column_major(tensor) ? OPDI_META_COLUMN_MAJOR : 0);
        for (int k = 0; k < tensor->ndim; k++) { *meta++ = tensor->dims[k]; }
    }
    node->flags = (uint8_t)(even ? node->flags | OPDI_NODE_EVEN : node->flags & ~OPDI_NODE_EVEN);
}

OPDI_INTERNAL int opdi_anomaly;                          /* OPD_ANOMALY_*: see opd_anomaly_set */
OPDI_INTERNAL const opdi_anomaly_calls *opdi_on_anomaly;
OPDI_INTERNAL const opdi_forward_calls *opdi_on_forward;
#define OPDI_MAX_EDGES 60000                      /* the most edges, or forward results, that a node can have */
/* Registers the functions that release a tensor's node and saved results.  Called before the first tensor gets a
   node. */
OPDI_NOINLINE OPDI_INTERNAL void opdi_tape_begins(void) {
    static const opdi_tape_release_hooks parting = {opdi_saved_retain, opdi_saved_drop, opdi_node_release};
    OPDI_PUBLISH(&opdi_on_release.tape, &parting);
}
/* Makes a node with nedges edges, nkept kept arguments and nresults saved results, all empty, for the forward results
   `outs`.  The results' description gets `capacity` spare numbers, because a write in place may add dims.  Returns the
   only reference, or NULL and sets an error. */
OPDI_INTERNAL opd_node *opdi_node_make(const opdi_derivative *formula, int nedges, int nkept, int nresults,
                                       opd_tensor *const *outs, int nouts, int capacity) {
    opdi_thread *thread = opdi_self();
    size_t bytes = sizeof(opd_node) + (size_t)nedges * sizeof(opdi_edge) +
        (size_t)(nkept + nresults) * sizeof(opd_value) + (size_t)capacity * sizeof(int64_t);
    for (int i = 0; i < nouts; i++) { bytes += sizeof(int64_t) * (size_t)(1 + (outs[i] ? outs[i]->ndim : 0)); }
    if (nedges > OPDI_MAX_EDGES || nouts > OPDI_MAX_EDGES || bytes > UINT32_MAX) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "%s: a node of the autograd graph cannot have more than %d input or output "
                       "tensors", formula->name, OPDI_MAX_EDGES);
        return NULL;
    }
    opd_node *node = (opd_node *)opdi_alloc(bytes);
    if (!node) { return NULL; }
    memset(node, 0, sizeof *node + (size_t)nedges * sizeof(opdi_edge) + (size_t)(nkept + nresults) * sizeof(opd_value));
    node->refs = 1;
    node->nedges = (uint16_t)nedges;
    node->nkept = (uint8_t)nkept;
    node->nresults = (uint8_t)nresults;
    node->formula = formula;
    node->sequence = thread->sequence++ | (uint64_t)opdi_thread_number(thread) << OPDI_SEQUENCE_BITS;
    node->bytes = (uint32_t)bytes;
    node->noutputs = (uint16_t)nouts;
    if (OPDI_UNLIKELY(!OPDI_LOAD(&opdi_on_release.tape))) { opdi_tape_begins(); }
    if (OPDI_UNLIKELY(formula->plugin != NULL)) { opdi_plugin_pin(formula->plugin); }
    opdi_node_describe(node, outs);
    if (OPDI_UNLIKELY(OPDI_LOAD(&opdi_anomaly) != 0) && OPDI_ACQUIRE(&opdi_on_anomaly)->trace(node)) {
        opdi_node_release(node);
        return NULL;
    }
    return node;
}

/* Returns the description of forward result nr of a node (dtype, backend, ndim; then sizes), or NULL if the result was
   undefined. */
OPDI_INTERNAL const int64_t *opdi_node_meta(const opd_node *node, uint32_t nr) {
    const int64_t *meta = opdi_node_metas(node);
    if (node->flags & OPDI_NODE_EVEN) {
        meta += (int)nr * (1 + opdi_meta_ndim(meta));
        nr = 0;
    }
    for (; nr > 0; nr--) { meta += 1 + (*meta < 0 ? 0 : opdi_meta_ndim(meta)); }
    return *meta < 0 ? NULL : meta;
}

/* Returns the value in which a node keeps `tensor`, its own result: a new reference, with the tensor's version. */
OPDI_INTERNAL opd_value opdi_keep_result(opd_tensor *tensor) {
    opd_value value = opd_value_tensor(tensor);
    opdi_retain(tensor);
    value.n = (int32_t)OPDI_LOAD(&tensor->storage->version);
    return value;
}

/* Returns the tensor that a node keeps for the saved tensor `tensor`.  This is `tensor` itself or, if it is a view, a
   copy that does not refer to its base, because the base may later get a history that leads to the node.  Returns a
   reference, or NULL and sets an error. */
static opd_tensor *opdi_kept_form(opd_tensor *tensor) {
    opd_tensor *copy;
    /* while a transform differentiates (innermost.tape), inference tensors may be saved, too */
    if (OPDI_UNLIKELY(opdi_is_inference(tensor)) && !opdi_self()->innermost.tape) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "Inference tensors cannot be saved for backward. To work around you can "
                       "make a clone to get a normal tensor and use it in autograd.");
        return NULL;
    }
    if (OPDI_LIKELY(!(tensor->flags & OPDI_IS_VIEW)) || ((tensor->flags & OPDI_REQUIRES_GRAD) && !tensor->grad_fn)) {
        opdi_retain(tensor);
        return tensor;
    }
    if (!(copy = opdi_shallow_copy(tensor))) { return NULL; }
    if (tensor->grad_fn) {
        opdi_ref_up(&tensor->grad_fn->refs);
        copy->grad_fn = tensor->grad_fn;
        copy->output_nr = tensor->output_nr;
        copy->flags |= OPDI_REQUIRES_GRAD;
    }
    return copy;
}

/* Returns a tensor without memory that has the sizes and dtype of tensor, or NULL and sets an error. */
static opd_tensor *opdi_sizes_form(const opd_tensor *tensor) {
    opd_tensor *form = opdi_tensor_make(tensor->dims, NULL, tensor->ndim, (opd_scalar_type)tensor->dtype, OPD_META);
    if (form && OPDI_UNLIKELY(tensor->functionality & OPD_BIT_OF(OPDI_SIZES_KEY)) && opdi_family_pass(form, tensor)) {
        opdi_drop(form);
        return NULL;
    }
    return form;
}

/* Writes to *out the form in which a node keeps the argument `value`: a tensor as a reference with its version, other
   values as copies.  If `save` is false, tensors are left out.  If `sizes` is true, only the sizes and dtype of tensors
   are kept.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_keep_form(opd_value *out, const opd_value *value, bool save, bool sizes) {
    if (value->tag == OPD_TAG_TENSOR) {
        opd_tensor *tensor = !save ? NULL : sizes ? opdi_sizes_form(value->u.t) : opdi_kept_form(value->u.t);
        *out = tensor ? opd_value_tensor(tensor) : opd_value_none();
        if (tensor) { out->n = (int32_t)OPDI_LOAD(&tensor->storage->version); }
        return save && !tensor ? -1 : 0;
    }
    *out = *value;
    if (value->tag == OPD_TAG_TENSORS) {          /* the versions follow the pointers in memory */
        uint32_t *versions;
        out->u.tensors = NULL;
        if (!save || value->n == 0) { return 0; }
        opd_tensor **list = (opd_tensor **)opdi_alloc((size_t)value->n * (sizeof *list + sizeof *versions));
        if (!list) {
            out->tag = OPD_TAG_NONE;
            return -1;
        }
        versions = (uint32_t *)(void *)(list + value->n);
        out->u.tensors = list;
        memset(list, 0, (size_t)value->n * (sizeof *list + sizeof *versions));
        for (int32_t k = 0; k < value->n; k++) {
            if (!value->u.tensors[k]) { continue; }
            list[k] = sizes ? opdi_sizes_form(value->u.tensors[k]) : opdi_kept_form(value->u.tensors[k]);
            if (!list[k]) { return -1; }
            versions[k] = OPDI_LOAD(&list[k]->storage->version);
        }
        return 0;
    }
    if (value->tag == OPD_TAG_STR) { out->n = (int32_t)strlen(value->u.s) + 1; }
    /* a list with tensors inside is not kept */
    if (value->tag == OPD_TAG_LIST && opdi_value_bytes(value, 0) < 0) {
        *out = opd_value_none();
        return 0;
    }
    size_t bytes = opdi_kept_bytes(out);
    if (bytes) {
        out->u.object = opdi_alloc(bytes);
        if (!out->u.object) {
            *out = opd_value_none();
            return -1;
        }
        if (value->tag == OPD_TAG_LIST) {
            void *at = out->u.object;
            *out = *value;
            (void)opdi_value_copy(out, (char *)at);
        }
        else { memcpy(out->u.object, value->u.object, bytes); }
    }
    return 0;
}
OPDI_INTERNAL int opdi_keep_value(opd_value *out, const opd_value *value, bool save) {
    return opdi_keep_form(out, value, save, false);
}

//== the history of a tensor ===========================================================================================

/* Makes `node` the history of `tensor`, as the node's result number `nr`; the tensor takes a reference to the node.
   Does nothing if the tensor already has a history, or if its dtype has no gradients. */
OPDI_INTERNAL void opdi_attach(opd_tensor *tensor, opd_node *node, int nr) {
    if (!tensor || tensor->grad_fn ||
        !(opd_dtype_is_floating((opd_scalar_type)tensor->dtype) ||
          opd_dtype_is_complex((opd_scalar_type)tensor->dtype))) {
        return;
    }
    opdi_ref_up(&node->refs);
    tensor->grad_fn = node;
    tensor->output_nr = (uint32_t)nr;
    tensor->flags |= OPDI_REQUIRES_GRAD;
    if (OPDI_UNLIKELY(tensor->meta != NULL) && tensor->meta->retained) { tensor->meta->retained->follow(tensor); }
}

/* Removes the history of self, which was written.  If the old node had saved self as its own result, the node drops the
   saved value, which is no longer valid. */
OPDI_INTERNAL void opdi_leave_node(opd_tensor *self) {
    opd_node *old = self->grad_fn;
    if (!old) { return; }
    if (self->own & OPDI_SAVED_BY_OWN) {
        opd_value *ret = opdi_kept(old);          /* the saved results follow the kept arguments */
        for (int i = 0; i < old->nkept + old->nresults; i++) {
            if (ret[i].tag == OPD_TAG_TENSOR && ret[i].u.t == self) {
                ret[i] = opd_value_none();
                ret[i].n = OPDI_WRITTEN_SINCE;
                opdi_own_forget(self);
            }
        }
    }
    self->grad_fn = NULL;
    opdi_node_release(old);
}

//== vertices and edges ================================================================================================
//
//  In the public interface, an opd_node pointer is the vertex of an edge: the address of a node, or the address of a
//  leaf tensor with bit 0 set.  An address with bit 0 set stands for the AccumulateGrad node of the leaf.

OPDI_INTERNAL uintptr_t opdi_vertex(const opd_node *node) { return (uintptr_t)node; }
OPDI_INTERNAL const opd_node *opdi_plain_node(const opd_node *node) {
    return node && !(opdi_vertex(node) & OPDI_LEAF) ? node : NULL;
}
OPDI_INTERNAL opd_edge opdi_edge_of(opd_tensor *tensor) {
    opd_edge edge;
    memset(&edge, 0, sizeof edge);
    if (opdi_is_none(tensor, "reading the grad_fn") || opdi_refresh(tensor) || !(tensor->flags & OPDI_REQUIRES_GRAD)) {
        return edge;
    }
    edge.node = tensor->grad_fn ? tensor->grad_fn : (opd_node *)((uintptr_t)tensor | OPDI_LEAF);
    edge.nr = tensor->grad_fn ? tensor->output_nr : 0;
    return edge;
}
opd_node *opd_node_keep(opd_node *node) {
    if (opdi_vertex(node) & OPDI_LEAF) { opdi_retain(opdi_edge_leaf(opdi_vertex(node))); }
    else if (node) { opdi_ref_up(&node->refs); }
    return node;
}

void opd_node_release(opd_node *node) {
    if (opdi_vertex(node) & OPDI_LEAF) { opdi_drop(opdi_edge_leaf(opdi_vertex(node))); }
    else if (node) { opdi_node_release(node); }
}
const char *opd_node_name(const opd_node *node) {
    if (!node) { return ""; }
    return opdi_plain_node(node) ? node->formula->name : "torch::autograd::AccumulateGrad";
}
/* Writes the sizes, number of dims, dtype and opdi_place of the tensor at the other end of an edge.  Returns false if
   that tensor's gradient is not needed. */
OPDI_INTERNAL bool opdi_edge_meta(const opdi_edge *edge, const int64_t **sizes, int *ndim, opd_scalar_type *dtype,
                                  int *place) {
    if (edge->vertex & OPDI_LEAF) {
        const opd_tensor *tensor = opdi_edge_leaf(edge->vertex);
        *sizes = tensor->dims;
        *ndim = tensor->ndim;
        *dtype = (opd_scalar_type)tensor->dtype;
        *place = opdi_place_of(tensor);
        return true;
    }
    if (edge->vertex) {
        const int64_t *meta = opdi_node_meta(opdi_edge_node(edge->vertex), edge->nr);
        if (!meta) { return false; }
        *sizes = meta + 1;
        *ndim = opdi_meta_ndim(meta);
        *dtype = opdi_meta_dtype(meta);
        *place = opdi_meta_place(meta);
        if (OPDI_UNLIKELY(opdi_edge_node(edge->vertex)->flags & OPDI_NODE_OPEN)) {
            const opdi_fake *fake = opdi_self()->innermost.fake;
            if (fake) { *sizes = fake->today(opdi_edge_node(edge->vertex), edge->nr, *sizes); }
        }
        return true;
    }
    return false;
}

//== contexts ==========================================================================================================
//
//  A context belongs to one call of a custom function, or of an operator with a setup_context.  The forward or set-up
//  function fills it.  Then the node keeps the context as its last kept value, after the saved tensors.

OPDI_COLD_BEGIN

static void opdi_tensor_array_free(opdi_tensor_array *listed) {
    for (int32_t i = 0; i < listed->count; i++) {
        if (listed->tensors[i]) { opdi_drop(listed->tensors[i]); }
    }
    opdi_free(listed->tensors, (size_t)listed->count * sizeof *listed->tensors);
    listed->tensors = NULL;
    listed->count = 0;
}
/* Replaces the list's tensors from index `keep` on by the `count` tensors in `tensors`.  Returns 0.  On failure,
   returns -1, sets an error and leaves the list unchanged. */
OPDI_INTERNAL int opdi_tensor_array_set(opdi_tensor_array *listed, int32_t keep, opd_tensor *const *tensors,
                                        int32_t count) {
    opdi_tensor_array made;
    made.count = keep + count;
    made.tensors = made.count ? (opd_tensor **)opdi_alloc((size_t)made.count * sizeof *made.tensors) : NULL;
    if (made.count && !made.tensors) { return -1; }
    for (int32_t i = 0; i < made.count; i++) {
        made.tensors[i] = i < keep ? listed->tensors[i] : tensors[i - keep];
        if (made.tensors[i]) { opdi_retain(made.tensors[i]); }
    }
    opdi_tensor_array_free(listed);
    *listed = made;
    return 0;
}
OPDI_INTERNAL bool opdi_tensor_array_has(const opdi_tensor_array *listed, const opd_tensor *tensor) {
    int32_t i;
    for (i = 0; i < listed->count && listed->tensors[i] != tensor; i++) { }
    return i < listed->count;
}

OPDI_INTERNAL opd_context *opdi_context_new(int ninputs, int nfirst) {
    size_t bytes = sizeof(opd_context) + (size_t)nfirst * sizeof(int32_t);
    opd_context *ctx = (opd_context *)opdi_alloc(bytes);
    if (!ctx) { return NULL; }
    memset(ctx, 0, bytes);
    ctx->bytes = (int32_t)bytes;
    ctx->ninputs = ninputs;
    ctx->first = (int32_t *)(void *)(ctx + 1);
    ctx->materialize = true;
    return ctx;
}

OPDI_INTERNAL opd_tensor *opdi_tensor_in(const opd_value *value) {
    return value->tag == OPD_TAG_TENSOR ? value->u.t : NULL;
}
static void opdi_kept_free(opd_value *value) {
    size_t bytes = opdi_kept_bytes(value);
    if (value->tag == OPD_TAG_TENSOR) { opdi_drop(value->u.t); }
    if (bytes) { opdi_free(value->u.object, bytes); }
    *value = opd_value_none();
}

/* Releases the parts of a context that only its call needs: outputs, edges, lists of tensors. */
OPDI_INTERNAL void opdi_context_end_call(opd_context *ctx) {
    for (int32_t i = 0; i < ctx->cap && ctx->outputs; i++) {
        if (i < ctx->noutputs) { opdi_kept_free(&ctx->outputs[i]); }
    }
    if (ctx->cap) { opdi_free(ctx->outputs, (size_t)ctx->cap * sizeof *ctx->outputs); }
    ctx->outputs = NULL;
    ctx->noutputs = ctx->cap = 0;
    ctx->inputs = NULL;
    for (int32_t i = 0; i < ctx->nedges && ctx->edges; i++) {
        uintptr_t vertex = ctx->edges[i].vertex;
        if (vertex & OPDI_LEAF) {
            opdi_drop(opdi_edge_leaf(vertex));
        } else if (vertex) { opdi_node_release(opdi_edge_node(vertex)); }
    }
    if (ctx->edges) { opdi_free(ctx->edges, (size_t)ctx->nedges * sizeof *ctx->edges); }
    ctx->edges = NULL;
    opdi_tensor_array_free(&ctx->save);
    opdi_tensor_array_free(&ctx->save_forward);
    opdi_tensor_array_free(&ctx->dirty);
    opdi_tensor_array_free(&ctx->constant);
}

OPDI_INTERNAL void opdi_context_free(opd_context *ctx) {
    if (!ctx) { return; }
    opdi_context_end_call(ctx);
    while (ctx->attributes) {
        opdi_attribute *attribute = ctx->attributes;
        ctx->attributes = attribute->next;
        opdi_kept_free(&attribute->value);
        opdi_free(attribute, sizeof *attribute + strlen(attribute->name) + 1);
    }
    if (ctx->destroy) { ctx->destroy(ctx->data); }
    opdi_free(ctx, (size_t)ctx->bytes);
}

OPDI_INTERNAL void opdi_packers_leave(opdi_visit *visit);
/* Runs `fn`, a custom function's forward or set-up, in its own scope, with grad mode and forward mode off.  Sets
   *during, a member of ctx, to true while `fn` runs.  `what` is the name of `fn` in messages.  Returns 0, or -1 and
   sets an error that names the function. */
OPDI_INTERNAL int opdi_context_run(opd_context *ctx, int (*fn)(opd_context *), bool *during, const char *what) {
    opdi_thread *thread = opdi_self();
    opdi_frame frame;
    opdi_visit_frame visit;
    opdi_visit_begin(thread, &visit, "a function of a custom function", opdi_packers_leave, NULL);
    opdi_frame_enter(thread, &frame);
    thread->state.no_grad = 1;
    thread->state.forward |= OPDI_FORWARD_OFF;
    *during = true;
    int rc = fn(ctx);
    *during = false;
    opdi_visit_end(&visit);
    opdi_frame_leave(thread, &frame);
    if (rc && opd_ok()) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "the %s of %s failed without setting an error (opd_fail)", what, ctx->name);
    }
    return opd_ok() ? 0 : opdi_fail_more(" [in the %s of %s]", what, ctx->name);
}

/* Returns how many kept values a node needs for the context ctx (which may be NULL): one for each saved tensor, and one
   for the context. */
OPDI_INTERNAL int opdi_context_kept_count(const opd_context *ctx) { return ctx ? ctx->save.count + 1 : 0; }
OPDI_INTERNAL bool opdi_context_constant(const opd_context *ctx, const opd_tensor *tensor) {
    return tensor && opdi_tensor_array_has(&ctx->constant, tensor);
}

/* Puts the context and its saved tensors into the kept values of `node`.  `outs` are the results of the call, which do
   not have the node as their history yet.  Returns 0.  On failure, returns -1; the caller then still owns the
   context. */
OPDI_INTERNAL int opdi_context_keep(opd_context *ctx, opd_node *node, opd_tensor *const *outs, int nouts) {
    opd_value *value = &opdi_kept(node)[node->nkept - 1 - ctx->save.count];
    int32_t i, k;
    for (i = 0; i < ctx->save.count; i++) {
        opd_tensor *tensor = ctx->save.tensors[i];
        const opd_value given = opd_value_tensor(tensor);
        if (!tensor) { continue; }
        for (k = 0; k < i && ctx->save.tensors[k] != tensor; k++) { }
        if (k < i) {
            value[i] = opd_value_int(k);
            continue;
        }
        for (k = 0; k < nouts && outs[k] != tensor; k++) { }
        if (k < nouts) { value[i] = opdi_keep_result(tensor); }
        else if (opdi_keep_value(&value[i], &given, true)) { return -1; }
        node->saved = OPDI_SAVED;
    }
    value[i].tag = OPD_TAG_OBJECT;
    value[i].u.object = ctx;
    ctx->nsaved = ctx->save.count;
    ctx->node = node;
    return 0;
}
/* Marks the saved tensors that are results of the context's own node with OPDI_SAVED_BY_OWN, so that they do not form a
   cycle of references. */
OPDI_INTERNAL void opdi_context_tie(const opd_context *ctx) {
    for (int32_t i = 0; i < ctx->save.count; i++) {
        if (ctx->save.tensors[i] && ctx->save.tensors[i]->grad_fn == ctx->node) {
            ctx->save.tensors[i]->own |= OPDI_SAVED_BY_OWN;
        }
    }
}

/* Makes the context of an operator's call that is being recorded, and lets the operator's setup_context fill it.
   Returns the context, or NULL and sets an error. */
OPDI_INTERNAL opd_context *opdi_context_setup(const opd_op *op, const opdi_card *card, const opd_value *args,
                                              opd_value *rets) {
    opd_context *ctx = opdi_context_new(op->nargs, 0);
    if (!ctx) { return NULL; }
    ctx->name = card->node_name;
    ctx->inputs = args;
    ctx->outputs = rets;
    ctx->noutputs = op->nrets;              /* the call owns the outputs, so `cap` stays 0 */
    int rc = opdi_context_run(ctx, card->desc.setup_context, &ctx->in_setup, "setup_context");
    ctx->outputs = NULL;
    ctx->inputs = NULL;
    ctx->noutputs = 0;
    if (rc) {
        opdi_context_free(ctx);
        return NULL;
    }
    return ctx;
}
OPDI_COLD_END
OPDI_INTERNAL int opdi_context_edge(const opd_context *ctx, int i, int element) {
    if (i < 0 || i >= ctx->ninputs || element < 0) { return -1; }
    return ctx->first[i] + element < ctx->first[i + 1] ? ctx->first[i] + element : -1;
}
opd_value opd_context_input(const opd_context *ctx, int i) {
    return ctx && ctx->inputs && i >= 0 && i < ctx->ninputs ? ctx->inputs[i] : opd_value_none();
}
