#include "autograd.h"

//== which nodes the running backward runs, and in which order =========================================================

bool opd_backward_will_run(const opd_node *node) {
    const opdi_engine *engine = opdi_self()->innermost.engine;
    const opdi_task *task = engine && node ? opdi_task_find(engine, opdi_vertex(node)) : NULL;
    return task && task->needed;
}

/* Finds the order in which the current backward runs its nodes.  Simulates the whole run, with separate counters
   (opdi_task.cursor).  Writes the first `cap` nodes in this order to `nodes`.  Returns the number of nodes in the whole
   run, or -1 and sets an error. */
int64_t opd_backward_order(opd_node **nodes, int64_t cap) {
    const opdi_engine *at = opdi_self()->innermost.engine;
    int64_t count = 0;
    int rc = 0;
    if (!opd_ok()) { return -1; }
    if (!at) { return opd_fail(OPD_ERROR_AUTOGRAD, "opd_backward_order: no backward pass is running on this thread"); }
    opdi_engine engine = *at;
    engine.heap = NULL;
    engine.nheap = engine.heap_cap = 0;
    for (opdi_task *task = engine.tasks; task; task = task->next) { task->cursor = 0; }
    for (opdi_task *task = engine.tasks; task; task = task->next) {
        for (int i = 0; task->leads && i < opd_node_edges((opd_node *)task->vertex); i++) {
            opd_edge edge = opd_node_edge((opd_node *)task->vertex, i);
            opdi_task *child = edge.node ? opdi_task_find(&engine, opdi_vertex(edge.node)) : NULL;
            if (child && child->needed) { child->cursor++; }
        }
    }
    for (opdi_task *task = engine.tasks; task && rc == 0; task = task->next) {
        if (task->needed && task->cursor == 0) { rc = opdi_heap_push(&engine, task); }
    }
    while (rc == 0 && engine.nheap) {
        opdi_task *task = opdi_heap_pop(&engine);
        if (count < cap) { nodes[count] = (opd_node *)task->vertex; }
        count++;
        for (int i = 0; task->leads && i < opd_node_edges((opd_node *)task->vertex) && rc == 0; i++) {
            opd_edge edge = opd_node_edge((opd_node *)task->vertex, i);
            opdi_task *child = edge.node ? opdi_task_find(&engine, opdi_vertex(edge.node)) : NULL;
            if (child && child->needed && --child->cursor == 0) { rc = opdi_heap_push(&engine, child); }
        }
    }
    opdi_free(engine.heap, (size_t)engine.heap_cap * sizeof *engine.heap);
    return rc ? -1 : count;
}
