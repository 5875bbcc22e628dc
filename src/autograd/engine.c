#include "autograd.h"

//== the engine ========================================================================================================
//
//  The engine makes a task for each node and leaf that it can reach, by a depth-first search with its own stack.  It
//  counts for each task the edges that lead to it, then runs the nodes whose count is down to zero, the youngest node
//  first.  A task holds the gradients that have arrived.  The first engine that runs in the process stores its tasks in
//  the nodes and leaves (`task`).  Any other engine (a nested backward, another thread) finds its tasks through a hash
//  table, so engines do not disturb each other.  All gradients of one node are checked before any of them is sent on or
//  added to a leaf.
//
//  An indented function is called by the function above it.
//    opd_backward_with, opdi_autograd_grad   check their arguments
//      opdi_captures_make                      lists the gradients that are asked for
//      opdi_engine_run                         sets the options; then calls one of:
//        opdi_engine_on_thread                   if backwards are nested too deep: runs the engine on another thread
//        opdi_engine_here                        runs the engine on this thread
//          opdi_engine_start
//            opdi_discover                           makes the tasks
//            opdi_root_grad                          returns the gradient from which backward starts
//            opdi_count_deps                         counts edges, if only some tasks are needed
//          opdi_run_task                           runs a ready task; called until none is ready
//            opdi_hooks_before, opdi_hooks_after     call the hooks of the node
//            opdi_task_capture                       keeps the gradients that are asked for
//            opdi_run_formula                        calls the backward function (opdi_call_formula, opdi_run_fn), then
//              opdi_validate_all                       makes its gradients fit the edges
//            opdi_send                               sends the gradients along the edges
//              opdi_task_add                           adds a gradient to the gradients that have arrived
//              opdi_task_done                          if all have arrived: a node becomes ready, a leaf accumulates
//          opdi_finals_run                         calls the callbacks for the end
//          opdi_engine_end                         frees what the engine has made
//      opdi_captures_end                       hands out the gradients that are asked for

static int opdi_engines;                          /* number of running engines */

static bool opdi_leaf_hooked(const opd_tensor *tensor) {
    return OPDI_UNLIKELY(OPDI_ACQUIRE(&tensor->meta->extra) != NULL);
}

static inline opdi_task *opdi_task_at(opdi_engine *engine, uintptr_t vertex) {
    opdi_task *task = opdi_task_find(engine, vertex);
    return task ? task : opdi_task_make(engine, vertex);
}

/* Makes the tasks of all vertices that can be reached from the vertex `root`, depth-first.  If inputs are given
   (engine->restricted), a task is needed only if it is captured or leads to a needed task.  Otherwise all tasks are
   needed, and the search also counts, for each task, the edges that lead to it (`deps`).  Returns 0 or -1. */
static int opdi_discover(opdi_engine *engine, uintptr_t root) {
    opdi_task *task = opdi_task_at(engine, root);
    if (!task) { return -1; }
    if (task->seen) { return 0; }
    task->seen = true;
    while (task) {
        opd_node *node = task->vertex & OPDI_LEAF ? NULL : opdi_edge_node(task->vertex);
        if (node && task->cursor < node->nedges) {
            uintptr_t vertex = opdi_edges(node)[task->cursor++].vertex;
            opdi_task *child = vertex ? opdi_task_at(engine, vertex) : NULL;
            if (!vertex) { continue; }
            if (!child) { return -1; }
            child->deps += !engine->restricted;
            if (child->seen) {
                task->leads |= child->needed;
                continue;
            }
            child->seen = true;
            child->up = task;
            task = child;
            continue;
        }
        if (engine->restricted) {
            task->needed = task->leads | task->captured;
            if (task->up) { task->up->leads |= task->needed; }
        }
        task = task->up;
    }
    return 0;
}

/* Counts, for each needed task, the edges that lead to it from needed tasks. */
static void opdi_count_deps(opdi_engine *engine) {
    for (opdi_task *task = engine->tasks; task; task = task->next) {
        const opd_node *node = task->vertex & OPDI_LEAF ? NULL : opdi_edge_node(task->vertex);
        for (int i = 0; node && task->needed && i < node->nedges; i++) {
            opdi_task *child = opdi_edges(node)[i].vertex ? opdi_task_find(engine, opdi_edges(node)[i].vertex) : NULL;
            if (child && child->needed) { child->deps++; }
        }
    }
}

/* Returns the priority of a ready task.  The engine runs the ready task with the highest priority: leaves before nodes,
   and younger nodes before older nodes. */
static uint64_t opdi_task_order(const opdi_task *task) {
    return task->vertex & OPDI_LEAF ? UINT64_MAX : opdi_node_sequence(opdi_edge_node(task->vertex));
}

OPDI_INTERNAL int opdi_heap_push(opdi_engine *engine, opdi_task *task) {
    int64_t i;
    if (engine->nheap == engine->heap_cap) {
        int64_t cap = engine->heap_cap ? engine->heap_cap * 2 : 32;
        opdi_task **tasks = (opdi_task **)opdi_alloc((size_t)cap * sizeof *tasks);
        if (!tasks) { return -1; }
        if (engine->nheap) { memcpy(tasks, engine->heap, (size_t)engine->nheap * sizeof *tasks); }
        opdi_free(engine->heap, (size_t)engine->heap_cap * sizeof *tasks);
        engine->heap = tasks;
        engine->heap_cap = cap;
    }
    for (i = engine->nheap++; i > 0 && opdi_task_order(engine->heap[(i - 1) / 2]) < opdi_task_order(task);
         i = (i - 1) / 2) {
        engine->heap[i] = engine->heap[(i - 1) / 2];
    }
    engine->heap[i] = task;
    return 0;
}

OPDI_INTERNAL opdi_task *opdi_heap_pop(opdi_engine *engine) {
    opdi_task *top = engine->heap[0], *last = engine->heap[--engine->nheap];
    int64_t i = 0, c;
    while ((c = 2 * i + 1) < engine->nheap) {
        if (c + 1 < engine->nheap && opdi_task_order(engine->heap[c + 1]) > opdi_task_order(engine->heap[c])) { c++; }
        if (opdi_task_order(engine->heap[c]) <= opdi_task_order(last)) { break; }
        engine->heap[i] = engine->heap[c];
        i = c;
    }
    engine->heap[i] = last;
    return top;
}

/* Adds a task to the ready tasks.  A single ready task stays outside the heap, so most chains never use the heap.
   Returns 0 or -1. */
static inline int opdi_ready_push(opdi_engine *engine, opdi_task *task) {
    if (engine->ready) { return opdi_heap_push(engine, task); }
    engine->ready = task;
    return 0;
}
static inline opdi_task *opdi_ready_pop(opdi_engine *engine) {
    opdi_task *task = engine->ready;
    if (engine->nheap && (!task || opdi_task_order(engine->heap[0]) > opdi_task_order(task))) {
        return opdi_heap_pop(engine);
    }
    engine->ready = NULL;
    return task;
}

/* Adds `grad`, which has arrived, to the gradient number `nr` of a task, and takes over the reference to `grad`.  If
   the sum cannot be written to the gradient that arrived first, it is written to `grad` if possible.  Returns 0, or -1
   and sets an error. */
static int opdi_task_add(opdi_engine *engine, opdi_task *task, uint32_t nr, opd_tensor *grad) {
    opd_tensor *const first = task->grads[nr];
    if (!first) {
        task->grads[nr] = grad;
        return 0;
    }
    const bool own = opdi_grad_own(engine, first, grad);
    const bool turned = !own && opdi_same_layout(first, grad) && opdi_grad_own(engine, grad, first);
    opd_tensor *const sum = turned ? opdi_grad_add(grad, first, true) : opdi_grad_add(first, grad, own);
    if (sum && sum != first) {
        opdi_retain(sum);
        opdi_drop(first);
        task->grads[nr] = sum;
    }
    opdi_drop(grad);
    return sum ? 0 : -1;
}

static int opdi_compare_captures(const void *first, const void *second) {
    const opdi_capture *capture = (const opdi_capture *)first, *other = (const opdi_capture *)second;
    if (capture->vertex != other->vertex) { return capture->vertex < other->vertex ? -1 : 1; }
    return capture->index < other->index ? -1 : capture->index > other->index;
}
/* Handles a task whose gradients have all arrived: a leaf accumulates immediately, and a node becomes ready.  Returns
   0, or -1 and sets an error. */
static int opdi_task_done(opdi_engine *engine, opdi_task *task) {
    opd_tensor *grad = task->grads[0];
    if (!(task->vertex & OPDI_LEAF)) { return opdi_ready_push(engine, task); }
    if (opdi_leaf_hooked(opdi_edge_leaf(task->vertex))) { return opdi_leaf_hooks(engine, task); }
    if (!grad) { return 0; }
    if (!engine->accumulate) {
        opdi_task_capture(engine, task);
        return 0;
    }
    if (!(opdi_edge_leaf(task->vertex)->flags & OPDI_REQUIRES_GRAD)) { return 0; }    /* no longer requires grad */
    task->grads[0] = NULL;
    return opdi_accumulate_any(engine, opdi_edge_leaf(task->vertex), grad, 0);
}

/* Makes all gradients in `out`, which the backward function of `node` returned, fit their edges: replaces each
   reference in `out` by a reference to the converted gradient.  Returns 0, or -1 and sets an error. */
static int opdi_validate_all(const opd_node *node, opd_tensor **out) {
    for (int i = 0; i < node->nedges; i++) {
        opd_tensor *grad = out[i] ? opdi_validate(node, i, out[i]) : NULL;
        if (grad == out[i]) { continue; }
        if (!grad) { return -1; }
        opdi_retain(grad);
        opdi_drop(out[i]);
        out[i] = grad;
    }
    return 0;
}

/* Sends the gradients in `out` along the edges of `node` to the tasks at their ends.  A gradient for a needed task
   moves from `out` to the task.  Returns 0 or -1. */
static int opdi_send(opdi_engine *engine, const opd_node *node, opd_tensor **out) {
    int rc = 0;
    for (int i = 0; i < node->nedges && rc == 0; i++) {
        const opdi_edge *edge = &opdi_edges(node)[i];
        opdi_task *child = edge->vertex ? opdi_task_find(engine, edge->vertex) : NULL;
        opd_tensor *grad = out[i];
        if (!child || !child->needed) { continue; }
        out[i] = NULL;
        if (grad) { rc = opdi_task_add(engine, child, edge->nr, grad); }
        if (rc == 0 && --child->deps == 0) { rc = opdi_task_done(engine, child); }
    }
    return rc;
}

OPDI_INTERNAL int opdi_call_formula(opd_backward_call *bw) {
    int rc = opdi_run_fn(bw);
    if (rc && opd_ok()) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "the backward function of %s failed without setting an error (opd_fail)",
                       bw->node->formula->name);
    }
    return opd_ok() ? 0 : -1;
}

OPDI_COLD_BEGIN
/* Runs the backward function of a node and reports it to observers.  Returns 0, or -1 and sets an error. */
OPDI_NOINLINE static int opdi_formula_observed(opd_backward_call *bw) {
    const opd_value grads = opd_value_tensors(bw->grads, bw->node->noutputs);
    const opd_value out = opd_value_tensors(bw->out, bw->node->nedges);
    opdi_thread *thread = opdi_self();
    opdi_observing observing;
    if (!opdi_observe_on(thread)) { return opdi_call_formula(bw); }
    observing.event.op = NULL;
    observing.event.args = &grads;
    observing.event.nargs = 1;
    observing.event.forward_thread = (uint32_t)(bw->node->sequence >> OPDI_SEQUENCE_BITS);
    opdi_observe_begin(thread, &observing, OPD_OBSERVE_BACKWARD, bw->node->formula->name,
                       (int64_t)opdi_node_sequence(bw->node));
    int rc = opdi_call_formula(bw);
    opdi_observe_end(thread, &observing, &out, 1);
    return rc;
}
OPDI_COLD_END

/* Runs the backward function of a node for the gradients `grads`, and makes the gradients that it writes to `out` fit
   their edges.  Then frees the saved values, unless the graph is retained.  Returns 0, or -1 and sets an error. */
static int opdi_run_formula(opdi_engine *engine, opd_node *node, opd_tensor **grads, opd_tensor **out) {
    const bool saved = OPDI_LOAD(&node->saved) != OPDI_NOTHING_SAVED;
    opd_backward_call bw;
    if (saved && !opdi_saved_enter(node)) { return opdi_fail_freed(node); }
    bw.node = node;
    bw.base = NULL;
    bw.grads = grads;
    bw.out = out;
    bw.plain = false;
    int rc = OPDI_LOAD(&opdi_self()->observed) ? opdi_formula_observed(&bw) : opdi_call_formula(&bw);
    if (rc == 0) { rc = opdi_validate_all(node, out); }
    if (rc == 0 && OPDI_UNLIKELY(OPDI_LOAD(&opdi_anomaly) & OPD_ANOMALY_NAN)) {
        rc = OPDI_ACQUIRE(&opdi_on_anomaly)->find_nan(node, out);
    }
    if (saved) { opdi_saved_leave(node, rc == 0 && !engine->retain); }
    return rc;
}

OPDI_COLD_BEGIN
/* Appends the name of the node to the pending error, and in anomaly mode reports where the node was recorded.  Returns
   -1. */
OPDI_NOINLINE static int opdi_node_failed(const opd_node *node) {
    const opdi_card *card = opdi_node_card(node);
    (void)opdi_fail_more(card ? " [in %s of %s]" : " [in %s]", node->formula->name, card ? card->op->name : "");
    if (OPDI_LOAD(&opdi_anomaly)) { OPDI_ACQUIRE(&opdi_on_anomaly)->report(node); }
    return -1;
}
OPDI_COLD_END

/* Runs one task in a separate scope: calls the hooks and the backward function of its node, stores captures, and sends
   the gradients on.  Returns 0 or -1. */
static int opdi_run_task(opdi_engine *engine, opdi_task *task) {
    opdi_thread *thread = opdi_self();
    opd_node *node = opdi_edge_node(task->vertex);
    const bool hooked = OPDI_UNLIKELY(OPDI_ACQUIRE(&node->flags) & OPDI_NODE_EXTRA);
    opd_tensor *few[OPDI_INLINE_EDGES], **out = few;
    opdi_frame frame;
    int rc = 0;
    bool any = false;
    for (int i = 0; i < OPDI_MIN(node->nedges, 2); i++) {        /* prefetch the nodes that are likely to run next */
        const char *next = (const char *)opdi_edges(node)[i].vertex;
        if (next) {
            OPDI_PREFETCH(next);
            OPDI_PREFETCH(next + 64);
            OPDI_PREFETCH(next + 128);
        }
    }
    opdi_frame_enter(thread, &frame);
    thread->innermost.node = node;
    thread->state.no_grad = !engine->create;
    if (hooked) { rc = opdi_hooks_before(engine, task); }
    if (rc == 0 && task->captured && !engine->accumulate) { opdi_task_capture(engine, task); }
    if (rc == 0 && task->leads) {                 /* otherwise, only the captured gradient is needed */
        for (int i = 0; i < task->ngrads; i++) { any = any || task->grads[i]; }
        if (node->nedges > OPDI_INLINE_EDGES) { out = (opd_tensor **)opdi_alloc((size_t)node->nedges * sizeof *out); }
        rc = out ? 0 : -1;
        if (out) { memset(out, 0, (size_t)node->nedges * sizeof *out); }
        if (rc == 0 && (any || node->formula->context)) { rc = opdi_run_formula(engine, node, task->grads, out); }
        else if (rc == 0 && !engine->retain && OPDI_LOAD(&node->saved) && opdi_saved_enter(node)) {
            opdi_saved_leave(node, true);
        }
        thread->state = frame.state;
        thread->state.no_grad = !engine->create;
        if (rc == 0 && hooked) { rc = opdi_hooks_after(engine, task, out); }
        for (int i = 0; i < task->ngrads; i++) {  /* drops the task's references before the gradients are sent */
            if (task->grads[i]) {
                opdi_drop(task->grads[i]);
                task->grads[i] = NULL;
            }
        }
        if (thread->top != frame.mark) { opdi_scope_unwind(thread, frame.mark); }
        if (rc == 0) { rc = opdi_send(engine, node, out); }
        for (int i = 0; out && i < node->nedges; i++) {
            if (out[i]) { opdi_drop(out[i]); }
        }
        if (out && out != few) { opdi_free(out, (size_t)node->nedges * sizeof *out); }
    }
    if (OPDI_UNLIKELY(rc)) { rc = opdi_node_failed(node); }
    for (int i = 0; i < task->ngrads; i++) {
        if (task->grads[i]) {
            opdi_drop(task->grads[i]);
            task->grads[i] = NULL;
        }
    }
    opdi_frame_leave(thread, &frame);
    return rc;
}

/* Frees everything that an engine has made: task pointers in nodes and leaves, gradients, tasks, tables, and callbacks
   that have not run. */
static void opdi_engine_end(opdi_engine *engine) {
    for (opdi_task *task = engine->tasks; task; task = task->next) {
        if (task->next) { OPDI_PREFETCH(task->next->vertex & ~OPDI_LEAF); }
        if (engine->first) { *opdi_task_field(task->vertex) = NULL; }
        for (int i = 0; i < task->ngrads; i++) {
            if (task->grads[i]) { opdi_drop(task->grads[i]); }
        }
    }
    while (engine->blocks) {
        opdi_task_block *block = engine->blocks;
        engine->blocks = block->next;
        opdi_free(block, block->bytes);
    }
    opdi_free(engine->heap, (size_t)engine->heap_cap * sizeof *engine->heap);
    opdi_free(engine->hash, (size_t)engine->hash_cap * sizeof *engine->hash);
    (void)OPDI_SUB(&opdi_engines, 1);
    if (engine->finals) { opdi_finals_drop(engine); }
    if (engine->gatherings) { opdi_gatherings_drop(engine); }
}

OPDI_COLD_BEGIN
/* Returns the gradient from which backward starts at root number `i`, the output `tensor`.  This is `given` after a
   check; if `given` is NULL and the tensor has one element, it is a 1.  Returns a reference, or NULL and sets an
   error. */
static opd_tensor *opdi_root_grad(const opd_tensor *tensor, opd_tensor *given, int i) {
    if (given) {
        char first[256], second[256];
        if (!opdi_has_sizes(given, tensor->dims, tensor->ndim)) {
            (void)opd_fail(OPD_ERROR_AUTOGRAD,
                           "Mismatch in shape: grad_output[%d] has a shape of %s and output[%d] has a shape of %s.", i,
                           opdi_sizes_text(given->dims, given->ndim, first, sizeof first), i,
                           opdi_sizes_text(tensor->dims, tensor->ndim, second, sizeof second));
            return NULL;
        }
        if (opd_dtype_is_complex((opd_scalar_type)given->dtype) !=
            opd_dtype_is_complex((opd_scalar_type)tensor->dtype)) {
            (void)opd_fail(OPD_ERROR_AUTOGRAD, "For complex Tensors, both grad_output and output are required to have "
                           "the same dtype. Mismatch in dtype: grad_output[%d] has a dtype of %s and output[%d] has a "
                           "dtype of %s.", i, opd_dtype_name((opd_scalar_type)given->dtype), i,
                           opd_dtype_name((opd_scalar_type)tensor->dtype));
            return NULL;
        }
        if (opdi_place_of(given) != opdi_place_of(tensor) && !opdi_self()->innermost.fake) {
            (void)opd_fail(OPD_ERROR_AUTOGRAD, "grad_output[%d] is of an invalid kind - expected device %s but got %s",
                           i, opdi_device_text(opd_tensor_device(tensor), first, sizeof first),
                           opdi_device_text(opd_tensor_device(given), second, sizeof second));
            return NULL;
        }
        opdi_retain(given);
        return given;
    }
    if (tensor->numel != 1) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "grad can be implicitly created only for scalar outputs");
        return NULL;
    }
    if (opd_dtype_is_complex((opd_scalar_type)tensor->dtype)) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "grad can be implicitly created only for real scalar outputs but got %s",
                       opd_dtype_name((opd_scalar_type)tensor->dtype));
        return NULL;
    }
    const opdi_tracer *const tracer = opdi_self()->innermost.tracer;
    if (tracer) {                                 /* a node of the graph, not a constant on one device */
        opd_tensor *const ones = tracer->ones(tensor);
        if (ones) { opdi_retain(ones); }
        return ones;
    }
    opd_tensor *grad = opdi_tensor_make(tensor->dims, NULL, tensor->ndim, (opd_scalar_type)tensor->dtype,
                                        opdi_place_of(tensor));
    opd_tensor *one = grad ? opd_tensor_wrapped_number(opd_value_int(1)) : NULL;
    if (!one || opdi_copy(grad, one)) {
        opdi_release(grad);
        return NULL;
    }
    return grad;
}
OPDI_COLD_END

static uintptr_t opdi_root_vertex(const opd_tensor *tensor) {
    return tensor->grad_fn ? (uintptr_t)tensor->grad_fn : (uintptr_t)tensor | OPDI_LEAF;
}
/* Makes all tasks that can be reached from the roots (the outputs), stores the roots' gradients, and adds the tasks
   that can begin to the ready tasks.  Returns 0 or -1. */
static int opdi_engine_start(opdi_engine *engine, opd_tensor *const *outputs, int count, opd_tensor *const *grads) {
    for (int i = 0; i < count; i++) {
        opd_tensor *out = outputs[i];
        if (out && opdi_refresh(out)) { return -1; }
        if (!out || !(out->flags & OPDI_REQUIRES_GRAD)) {
            return opd_fail(OPD_ERROR_AUTOGRAD,
                            "element %d of tensors does not require grad and does not have a grad_fn", i);
        }
        if (opdi_discover(engine, opdi_root_vertex(out))) { return -1; }
    }
    for (int i = 0; i < count; i++) {
        opd_tensor *out = outputs[i], *grad = opdi_root_grad(out, grads ? grads[i] : NULL, i);
        opdi_task *task = opdi_task_find(engine, opdi_root_vertex(out));
        if (!grad || opdi_task_add(engine, task, out->grad_fn ? out->output_nr : 0, grad)) { return -1; }
    }
    if (engine->restricted) { opdi_count_deps(engine); }
    for (int i = 0; i < count; i++) {             /* only roots can be ready now: edges lead to all other tasks */
        opdi_task *task = opdi_task_find(engine, opdi_root_vertex(outputs[i]));
        task->counted = task->deps == 0;
    }
    for (int i = count; i-- > 0;) {
        opdi_task *task = opdi_task_find(engine, opdi_root_vertex(outputs[i]));
        if (!task->counted || !task->needed) { continue; }
        task->counted = false;
        if (opdi_task_done(engine, task)) { return -1; }
    }
    return 0;
}

OPDI_COLD_BEGIN
/* Lists the gradients that the caller asks for, by the tensors `inputs` or by `edges`, in engine->captures.  Returns 0,
   or -1 and sets an error. */
static int opdi_captures_make(opdi_engine *engine, opd_tensor *const *inputs, const opd_edge *edges, int count) {
    engine->restricted = true;
    engine->captures = (opdi_capture *)opdi_alloc((size_t)count * sizeof *engine->captures);
    if (!engine->captures) { return -1; }
    memset(engine->captures, 0, (size_t)count * sizeof *engine->captures);
    engine->ncaptures = count;
    for (int i = 0; i < count; i++) {
        opd_tensor *tensor = edges ? NULL : inputs[i];
        opd_edge edge = edges ? edges[i] : opdi_edge_of(tensor);
        if (!edge.node && opd_ok() && opdi_requires_grad(tensor)) {  /* only the base of this view requires grad, so no
                                                                        edge leads to the view */
            edge.node = (opd_node *)((uintptr_t)tensor | OPDI_LEAF);
        }
        if (!edge.node || (int64_t)edge.nr >= opd_node_inputs(edge.node)) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "One of the differentiated Tensors does not require grad");
        }
        if (engine->accumulate && tensor && opd_tensor_retain_grad(tensor)) { return -1; }
        engine->captures[i].vertex = (uintptr_t)edge.node;
        engine->captures[i].nr = edge.nr;
        engine->captures[i].index = i;
    }
    qsort(engine->captures, (size_t)count, sizeof *engine->captures, opdi_compare_captures);
    return 0;
}

/* If ok is true, moves the captured gradients to the innermost scope and writes them to grads; if false, drops them.
   Returns 0 if they were moved, else -1. */
static int opdi_captures_end(opdi_engine *engine, opd_tensor **grads, bool ok) {
    for (int i = 0; i < engine->ncaptures; i++) {
        opdi_capture *capture = &engine->captures[i];
        if (capture->grad && grads && ok) {
            grads[capture->index] = opdi_own(capture->grad);
            ok = grads[capture->index] != NULL;
        }
        else if (capture->grad) { opdi_drop(capture->grad); }
    }
    opdi_free(engine->captures, (size_t)engine->ncaptures * sizeof *engine->captures);
    return ok ? 0 : -1;
}
OPDI_COLD_END

/* Runs an engine on this thread from start to end.  The roots are the `count` tensors `outputs`, with the gradients
   `grads`.  Returns 0, or -1 and sets an error. */
static int opdi_engine_here(opdi_engine *engine, opd_tensor *const *outputs, int count, opd_tensor *const *grads) {
    opdi_thread *thread = opdi_self();
    struct opdi_engine *outer = thread->innermost.engine;
    opdi_frame frame;
    opdi_visit_frame visit;
    opdi_task *task;
    int rc = 0;
    opdi_visit_begin(thread, &visit, "a backward function or a hook", opdi_packers_leave, NULL);
    /* adds 1.  As the addition is atomic and orders memory, the task pointers of the engine that ended last are seen as
       cleared. */
    engine->first = OPDI_SUB(&opdi_engines, -1) == 1;
    thread->innermost.engine = engine;
    thread->depth++;
    opdi_frame_enter(thread, &frame);
    thread->state.no_grad = !engine->create;
    for (int i = 0; i < engine->ncaptures && rc == 0; i++) {
        task = opdi_task_at(engine, engine->captures[i].vertex);
        if (task) { task->captured = true; } else { rc = -1; }
    }
    if (rc == 0) { rc = opdi_engine_start(engine, outputs, count, grads); }
    while (rc == 0 && (task = opdi_ready_pop(engine)) != NULL) {
        rc = opdi_run_ends(thread) ? -1 : opdi_run_task(engine, task);
    }
    if (rc == 0 && engine->finals) { rc = opdi_finals_run(engine); }
    opdi_visit_end(&visit);
    opdi_frame_leave(thread, &frame);
    thread->depth--;
    opdi_engine_end(engine);
    thread->innermost.engine = outer;
    return rc;
}

/* The depth at which nested backwards move to another thread.  A backward inside a backward is a nested call; at this
   depth, or if less than OPDI_STACK_NESTED bytes of the stack are left, it runs on the stack of a helper thread. */
#define OPDI_NESTED_HERE 60
#define OPDI_STACK_NESTED (OPDI_STACK_ENOUGH / 2)
#if defined(OPD_NO_THREADS)
static int opdi_engine_on_thread(opdi_engine *engine, opd_tensor *const *outputs, int count, opd_tensor *const *grads) {
    (void)engine;
    (void)outputs;
    (void)count;
    (void)grads;
    return opd_fail(OPD_ERROR_AUTOGRAD, "more than %d nested backward passes need threads, but this build has none "
                    "(OPD_NO_THREADS)", OPDI_NESTED_HERE);
}
#else
OPDI_COLD_BEGIN
typedef struct opdi_engine_thread_args {
    opdi_engine *engine;
    opdi_thread *from;
    opd_tensor *const *outputs, *const *grads;
    int count, rc;
    bool same_bits;
    opd_limits limits;
} opdi_engine_thread_args;

/* Runs an engine on a helper thread with the state of the waiting thread, and passes an error on to that thread.
   Returns NULL. */
static void *opdi_engine_thread(void *arg) {
    opdi_engine_thread_args *elsewhere = (opdi_engine_thread_args *)arg;
    opdi_thread *thread = opdi_self(), *from = elsewhere->from;
    if (thread->error == OPD_OK) {                /* else no state could be allocated */
        thread->state = from->state;
        thread->innermost = from->innermost;
        opd_limits_set(&elsewhere->limits);
        (void)opd_same_bits_set(elsewhere->same_bits);
        elsewhere->rc = opdi_engine_here(elsewhere->engine, elsewhere->outputs, elsewhere->count, elsewhere->grads);
        memset(&thread->innermost, 0, sizeof thread->innermost);
    }
    if (thread->error != OPD_OK) {
        from->error = thread->error;
        memcpy(from->message, thread->message, sizeof from->message);
        thread->error = OPD_OK;
        elsewhere->rc = -1;
    }
    return NULL;
}

static int opdi_engine_on_thread(opdi_engine *engine, opd_tensor *const *outputs, int count, opd_tensor *const *grads) {
    opdi_engine_thread_args elsewhere;
    pthread_t thread;
    elsewhere.engine = engine;
    elsewhere.from = opdi_self();
    elsewhere.limits = opd_limits_left();
    elsewhere.same_bits = opd_same_bits();
    elsewhere.outputs = outputs;
    elsewhere.grads = grads;
    elsewhere.count = count;
    elsewhere.rc = -1;
    if (opdi_thread_start(&thread, opdi_engine_thread, &elsewhere)) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "%d backward passes are nested, and no thread could be started for another "
                        "one", elsewhere.from->depth);
    }
    (void)pthread_join(thread, NULL);
    return elsewhere.rc;
}
OPDI_COLD_END
#endif

static int opdi_engine_run(opdi_engine *engine, opd_tensor *const *outputs, int count,
                           const opd_backward_options *options) {
    static int64_t engines;
    opd_tensor *const *grads = options ? options->grad_outputs : NULL;
    engine->create = options && options->create_graph;
    engine->retain = options && (options->retain_graph || (options->create_graph && !engine->once));
    engine->id = OPDI_ADD(&engines, 1) - 1;
    const int depth = opdi_self()->depth;
    if (OPDI_UNLIKELY(depth >= OPDI_NESTED_HERE || (depth && opdi_stack_left() < OPDI_STACK_NESTED))) {
        return opdi_engine_on_thread(engine, outputs, count, grads);
    }
    return opdi_stack_short("backward", OPDI_STACK_CALL) ? -1 : opdi_engine_here(engine, outputs, count, grads);
}

OPDI_COLD_BEGIN

/* Runs backward from `outputs` and accumulates the gradients into all leaves, or only into options->inputs.  Returns 0,
   or -1 and sets an error. */
int opd_backward_with(opd_tensor *const *outputs, int count, const opd_backward_options *options) {
    opdi_engine engine;
    int rc = 0;
    if (opdi_visits_left(opdi_self()) || !opd_ok()) { return -1; }
    memset(&engine, 0, sizeof engine);
    engine.accumulate = true;
    if (count < 1 || !outputs) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "opd_backward_with: at least one tensor is needed");
    }
    if (opdi_any_dead(outputs, count, "opd_backward")) { return -1; }
    if (opdi_inside_transform("opd_backward cannot be called inside of a function that opd_grad, opd_vjp, opd_jvp, "
                              "opd_vmap or another transform runs. Use opd_grad or opd_vjp there, or call "
                              "opd_backward outside of the transform")) { return -1; }
    if (options && options->is_grads_batched) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_backward_with: is_grads_batched is an option of opd_autograd_grad "
                        "only");
    }
    if (options && options->create_graph) {
        static int warned;
        if (OPDI_ADD(&warned, 1) == 1) {
            opd_warn("opd_backward_with with create_graph makes a reference cycle between a parameter and its "
                     "gradient, so that both are never freed. Use opd_autograd_grad instead, or break the cycle "
                     "afterwards by opd_tensor_set_grad(parameter, NULL).");
        } else { OPDI_STORE(&warned, 1); }
    }
    if (options && (options->inputs || options->input_edges)) {
        if (options->ninputs < 1) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "'inputs' argument to backward cannot be empty.");
        }
        rc = opdi_captures_make(&engine, options->inputs, options->input_edges, options->ninputs);
    }
    if (rc == 0) { rc = opdi_engine_run(&engine, outputs, count, options); }
    (void)opdi_captures_end(&engine, NULL, false);
    return rc;
}

int opd_backward(opd_tensor *tensor) {
    if (!opd_ok()) { return -1; }
    if (!tensor) { return opd_fail(OPD_ERROR_AUTOGRAD, "opd_backward: the tensor is NULL"); }
    return opd_backward_with(&tensor, 1, NULL);
}

/* Returns zeros for a capture that got no gradient, with the sizes, dtype and device of the tensor.  Returns NULL and
   sets an error on failure. */
static opd_tensor *opdi_capture_zeros(const opdi_capture *capture) {
    const int64_t *sizes;
    opd_scalar_type dtype;
    opdi_edge edge;
    int ndim, place;
    edge.vertex = capture->vertex;
    edge.nr = capture->nr;
    if (!opdi_edge_meta(&edge, &sizes, &ndim, &dtype, &place)) { return NULL; }
    return opd_zeros_like(opdi_own(opdi_tensor_make(sizes, NULL, ndim, dtype, place)));
}

/* Computes the gradients of `inputs` (or options->input_edges) and writes them to `grads`.  If `once` is true,
   create_graph does not imply retain_graph: the gradients are recorded, but the saved values of the differentiated
   graph are freed.  `serial` is the number of the transform layer whose derivative is computed, or 0.  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_autograd_grad(opd_tensor *const *outputs, int count, opd_tensor *const *inputs, int ninputs,
                                     const opd_backward_options *options, bool once, uint32_t serial,
                                     opd_tensor **grads) {
    const opd_edge *edges = options ? options->input_edges : NULL;
    const bool zeros = options && options->materialize_grads;
    opdi_engine engine;
    if (opdi_visits_left(opdi_self()) || !opd_ok()) { return -1; }
    memset(&engine, 0, sizeof engine);
    engine.once = once;
    engine.serial = serial;
    if (ninputs < 1) { return opd_fail(OPD_ERROR_AUTOGRAD, "grad requires non-empty inputs."); }
    if (count < 1 || !outputs) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "opd_autograd_grad: at least one output is needed");
    }
    if ((!inputs && !edges) || !grads) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_autograd_grad: an array is NULL");
    }
    for (int i = 0; i < ninputs; i++) { grads[i] = NULL; }
    int rc = opdi_captures_make(&engine, inputs, edges, ninputs);
    if (rc == 0) { rc = opdi_engine_run(&engine, outputs, count, options); }
    for (int i = 0; i < ninputs && rc == 0; i++) {
        opdi_capture *capture = &engine.captures[i];
        if (capture->grad || (!zeros && options && options->allow_unused)) { continue; }
        if (zeros) { capture->grad = opdi_keep(opdi_capture_zeros(capture)); }
        else {
            (void)opd_fail(OPD_ERROR_AUTOGRAD, "One of the differentiated Tensors appears to not have been used in the "
                           "graph. Set allow_unused if this is the desired behavior.");
        }
        rc = opd_ok() ? 0 : -1;
    }
    return opdi_captures_end(&engine, grads, rc == 0);
}
OPDI_COLD_END
