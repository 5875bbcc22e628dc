#include "autograd.h"

//== the histories of tensors that were written ========================================================================

/* Removes references to `tensor` from nodes that `node` leads to.  `tensor` is about to get a history that begins with
   `node`.  A node that had saved `tensor` would then hold itself through the tensor, and the write has made the saved
   value invalid anyway.  For the same reason, edges to `tensor`, until now a leaf, are removed.  Visits only the
   nearest OPDI_NEAR nodes, because such a graph is a mistake of the program. */
#define OPDI_NEAR 64
OPDI_INTERNAL void opdi_void_saved(const opd_node *node, opd_tensor *tensor) {
    const opd_node *seen[OPDI_NEAR + 1], *at = node;
    int count = 0, i = -1, j;
    if (OPDI_LOAD(&tensor->refs) == 1) { return; }
    for (; i < count; at = seen[++i]) {
        opdi_edge *edge = opdi_edges(at);
        for (int k = 0; i >= 0 && k < at->nkept + at->nresults; k++) {
            opd_value *value = &opdi_kept(at)[k], old = *value;
            if (value->tag == OPDI_TAG_PACKED) {
                opdi_packed_saved_forget((struct opdi_packed_saved *)value->u.object, tensor);
            }
            if (value->tag != OPD_TAG_TENSOR || value->u.t != tensor || tensor->grad_fn == at) { continue; }
            *value = opd_value_none();
            value->n = OPDI_WRITTEN_SINCE;
            opdi_kept_drop(at, &old);
        }
        for (int k = i < 0; k < at->nedges && count < OPDI_NEAR; k++) {   /* skips edge 0 of `node`, which leads to
                                                                             `tensor` */
            if (edge[k].vertex == ((uintptr_t)tensor | OPDI_LEAF)) {
                edge[k].vertex = 0;
                opdi_drop(tensor);
            }
            if (!edge[k].vertex || (edge[k].vertex & OPDI_LEAF)) { continue; }
            for (j = 0; j < count && seen[j] != opdi_edge_node(edge[k].vertex); j++) { }
            if (j == count) { seen[count++] = opdi_edge_node(edge[k].vertex); }
        }
        seen[count] = NULL;
    }
}

/* Makes the CopySlices node of the base, for a write into its view self.  `node` is the operator's own node, and its
   edge number `edge` leads to self.  In the new node, edge 0 leads to the base, and its `spare` is `edge`.  The other
   edges are copies of the edges of `node`, except that edge number `edge` is a copy of edge 0 of `node`.  Returns a
   reference, or NULL. */
OPDI_INTERNAL opd_node *opdi_slices_make(opd_tensor *self, opd_node *node, int edge) {
    opd_tensor *base = opdi_view_record_of(self)->base;
    int64_t at[OPDI_MAX_SLICE];
    const opd_value geometry = opd_value_ints(at, opdi_slice_pack(self, base, at));
    opd_node *slices = opdi_node_make(&opdi_slices_formula, node->nedges, 2, 0, &base, 1, 0);
    if (!slices) { return NULL; }
    opdi_ref_up(&node->refs);
    opdi_kept(slices)->tag = OPD_TAG_OBJECT;
    opdi_kept(slices)->u.object = node;
    slices->flags |= OPDI_NODE_SLICES;
    opdi_edge_to(&opdi_edges(slices)[0], base);
    opdi_edges(slices)[0].spare = (uint32_t)edge;
    for (int i = 1; i < node->nedges; i++) {
        opdi_edge *to = &opdi_edges(slices)[i];
        *to = opdi_edges(node)[i == edge ? 0 : i];
        if (to->vertex & OPDI_LEAF) { opdi_retain(opdi_edge_leaf(to->vertex)); }
        else if (to->vertex) { opdi_ref_up(&opdi_edge_node(to->vertex)->refs); }
    }
    if (opdi_keep_value(&opdi_kept(slices)[1], &geometry, true)) {
        opdi_node_release(slices);
        return NULL;
    }
    slices->saved = node->saved;
    return slices;
}
/* Makes `slices`, a CopySlices node, the history of the base of the view self, after the write.  `node` is the node
   inside `slices`. */
OPDI_INTERNAL void opdi_slices_attach(opd_tensor *self, opd_node *slices, opd_node *node) {
    opdi_view_record *record = opdi_view_record_of(self);
    const uint32_t version = OPDI_LOAD(&self->storage->version);
    opdi_leave_node(record->base);
    opdi_void_saved(slices, record->base);
    opdi_attach(record->base, slices, 0);
    self->flags |= OPDI_REQUIRES_GRAD;
    record->version = version - 1;
    for (int i = 0; i < node->nresults; i++) { opdi_saved_results(node)[i].n = (int32_t)version; }
}

/* Makes `node` the history of `tensor`, which was written, as the node's result number `nr`.  Edge number `edge` of
   `node` leads to the old history.  If `tensor` is a view, a CopySlices node becomes the history of its base instead.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_rebase_to(opd_tensor *tensor, opd_node *node, int nr, int edge) {
    opd_node *slices;
    if (!(tensor->flags & OPDI_IS_VIEW)) {
        opdi_leave_node(tensor);
        opdi_void_saved(node, tensor);
        opdi_attach(tensor, node, nr);
        return 0;
    }
    if (!(slices = opdi_slices_make(tensor, node, edge))) { return -1; }
    opdi_slices_attach(tensor, slices, node);
    opdi_node_release(slices);
    return 0;
}
