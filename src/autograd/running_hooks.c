#include "autograd.h"

//== running hooks =====================================================================================================

/* Checks the gradient `now`, which a hook has returned to replace the gradient `was`: both must have the same dtype,
   device and sizes.  Returns 0, or -1 and sets an error. */
static int opdi_hook_check(const opdi_hook *hook, const opd_tensor *was, const opd_tensor *now) {
    char name[128], first[64], second[64];
    if (!now) { return 0; }
    if (!was) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "a hook that gets NULL must return NULL: it can't replace a gradient "
                        "that is undefined");
    }
    if (was->dtype != now->dtype || opdi_place_of(was) != opdi_place_of(now)) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "hook '%s' has changed the type of value (was %s on %s, got %s on %s)",
                        opdi_function_name(hook->fn, name, sizeof name), opd_dtype_name((opd_scalar_type)was->dtype),
                        opdi_device_text(opd_tensor_device(was), first, sizeof first),
                        opd_dtype_name((opd_scalar_type)now->dtype),
                        opdi_device_text(opd_tensor_device(now), second, sizeof second));
    }
    if (!opdi_has_sizes(now, was->dims, was->ndim)) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "hook '%s' has changed the size of value",
                        opdi_function_name(hook->fn, name, sizeof name));
    }
    return 0;
}

static int opdi_hook_failed(const opdi_hook *hook, int rc) {
    char name[128];
    if (rc && opd_ok()) {
        (void)opd_fail(OPD_ERROR_AUTOGRAD, "hook '%s' failed without setting an error (opd_fail)",
                       opdi_function_name(hook->fn, name, sizeof name));
    }
    return opd_ok() ? 0 : -1;
}

static size_t opdi_gathering_bytes(const opdi_hook *multi) {
    return sizeof(opdi_gathering) + (size_t)(multi->nmembers - 1) * sizeof(opd_tensor *);
}
OPDI_INTERNAL void opdi_gatherings_drop(opdi_engine *engine) {
    while (engine->gatherings) {
        opdi_gathering *gathering = engine->gatherings;
        engine->gatherings = gathering->next;
        for (int i = 0; i < gathering->multi->nmembers; i++) {
            if (gathering->grads[i]) { opdi_drop(gathering->grads[i]); }
        }
        int i = (int)opdi_gathering_bytes(gathering->multi);
        opdi_hook_release(gathering->multi);
        opdi_free(gathering, (size_t)i);
    }
}
/* Returns true if a hook runs in this backward.  A hook that was added while a transform differentiated a function runs
   only in the backward of that transform. */
static bool opdi_hook_runs(const opdi_engine *engine, const opdi_hook *hook) {
    return !hook->serial || hook->serial == engine->serial;
}
/* Adds `grad`, the gradient of a member, to the gradients that the member's multi-gradient hook has received.  Calls
   the hook when all gradients (or one gradient, depending on its mode) have arrived.  Returns 0, or -1 and sets an
   error. */
static int opdi_multi_run(opdi_engine *engine, const opdi_hook *member, opd_tensor *grad) {
    opdi_hook *multi = member->multi;
    opdi_gathering *gathering = engine->gatherings;
    while (gathering && gathering->multi != multi) { gathering = gathering->next; }
    if (!gathering) {
        gathering = (opdi_gathering *)opdi_alloc(opdi_gathering_bytes(multi));
        if (!gathering) { return -1; }
        memset(gathering, 0, opdi_gathering_bytes(multi));
        (void)OPDI_ADD(&multi->refs, 1);
        gathering->multi = multi;
        gathering->next = engine->gatherings;
        engine->gatherings = gathering;
        opdi_lock(&opdi_hooks_lock);              /* while the lock is held, each member's node or leaf stays alive */
        for (int i = 0; i < multi->nmembers; i++) {
            const opdi_task *task = multi->members[i] ? opdi_task_find(engine, multi->members[i]->vertex) : NULL;
            if (task && task->needed && opdi_hook_runs(engine, multi->members[i])) { gathering->left++; }
        }
        opdi_unlock(&opdi_hooks_lock);
    }
    if (gathering->left < 0) { return 0; }
    opdi_retain(grad);
    if (gathering->grads[member->index]) { opdi_drop(gathering->grads[member->index]); }
    gathering->grads[member->index] = grad;
    if (--gathering->left > 0 && multi->mode == OPD_MULTI_ALL) { return 0; }
    gathering->left = -1;
    int rc = ((opd_multi_hook_fn)multi->fn)(gathering->grads, multi->nmembers, multi->user);
    for (int i = 0; i < multi->nmembers; i++) {
        if (gathering->grads[i]) {
            opdi_drop(gathering->grads[i]);
            gathering->grads[i] = NULL;
        }
    }
    return opdi_hook_failed(multi, rc);
}

/* Runs a hook on the gradient *slot, which the hook may replace.  Returns 0, or -1 and sets an error. */
static int opdi_tensor_hook_run(opdi_engine *engine, const opdi_hook *hook, opd_tensor **slot) {
    if (!*slot) { return 0; }
    if (hook->multi) { return opdi_multi_run(engine, hook, *slot); }
    opd_tensor *now = ((opd_tensor_hook_fn)hook->fn)(*slot, hook->user);
    if (!opd_ok()) { return -1; }
    if (!now || now == *slot) { return 0; }
    if (opdi_hook_check(hook, *slot, now)) { return -1; }
    opdi_retain(now);
    opdi_drop(*slot);
    *slot = now;
    return 0;
}

/* Runs the pre or post hook of a node on the `count` gradients in `list`, which the hook may replace.  A post hook also
   gets `seen`, the gradients that the node received.  Returns 0, or -1 and sets an error. */
static int opdi_list_hook_run(const opdi_hook *hook, opd_tensor **list, int count, opd_tensor *const *seen, int nseen) {
    opd_tensor *few[OPDI_INLINE_EDGES], **was = few;
    if (count > OPDI_INLINE_EDGES && !(was = (opd_tensor **)opdi_alloc((size_t)count * sizeof *was))) { return -1; }
    if (count) { memcpy(was, list, (size_t)count * sizeof *was); }
    int rc = hook->kind == OPDI_HOOK_PRE ? ((opd_node_pre_hook_fn)hook->fn)(list, count, hook->user)
        : ((opd_node_post_hook_fn)hook->fn)(list, count, seen, nseen, hook->user);
    rc = opdi_hook_failed(hook, rc);
    for (int i = 0; i < count && rc == 0; i++) {
        if (list[i] != was[i]) { rc = opdi_hook_check(hook, was[i], list[i]); }
    }
    for (int i = 0; i < count; i++) {
        opd_tensor *now = list[i];
        list[i] = was[i];
        if (rc || now == was[i]) { continue; }
        if (now) { opdi_retain(now); }
        list[i] = now;
        if (was[i]) { opdi_drop(was[i]); }
    }
    if (was != few) { opdi_free(was, (size_t)count * sizeof *was); }
    return rc;
}

/* The data for the hooks of a task: `grads` are the gradients that the task's node receives, `out` the gradients that
   the node's backward function returned. */
typedef struct opdi_hooked {
    opdi_engine *engine;
    opdi_task *task;
    opd_tensor **out, **grads;
    int nout, ngrads;
} opdi_hooked;

static int opdi_hook_run(const opdi_hooked *hooked, const opdi_hook *hook) {
    switch (hook->kind) {
    case OPDI_HOOK_TENSOR: return opdi_tensor_hook_run(hooked->engine, hook, &hooked->grads[hook->nr]);
    case OPDI_HOOK_PRE: return opdi_list_hook_run(hook, hooked->grads, hooked->ngrads, NULL, 0);
    case OPDI_HOOK_POST: return opdi_list_hook_run(hook, hooked->out, hooked->nout, hooked->grads, hooked->ngrads);
    default:
        return opdi_hook_failed(hook,
                                ((opd_accumulate_hook_fn)hook->fn)(opdi_edge_leaf(hooked->task->vertex), hook->user));
    }
}

/* Runs the hooks of kind `kind` that are in the list of extra now, except hooks that another hook removes before they
   are called.  Returns 0, or -1 and sets an error. */
static int opdi_hooks_run(const opdi_hooked *hooked, const opdi_extra *extra, int kind) {
    opdi_hook *few[8], **list = few;
    int count = 0, i = 0, rc = 0;
    opdi_lock(&opdi_hooks_lock);
    for (opdi_hook *hook = extra->hooks; hook; hook = hook->next) { count += hook->kind == kind; }
    if (count > 8) { list = (opdi_hook **)opdi_alloc((size_t)count * sizeof *list); }
    for (opdi_hook *hook = extra->hooks; hook && list; hook = hook->next) {
        if (hook->kind != kind) { continue; }
        (void)OPDI_ADD(&hook->refs, 1);
        list[i++] = hook;
    }
    opdi_unlock(&opdi_hooks_lock);
    if (!list) { return -1; }
    for (i = 0; i < count; i++) {
        if (rc == 0 && !OPDI_LOAD(&list[i]->removed) && opdi_hook_runs(hooked->engine, list[i])) {
            rc = opdi_hook_run(hooked, list[i]);
        }
        opdi_hook_release(list[i]);
    }
    if (list != few) { opdi_free(list, (size_t)count * sizeof *list); }
    return rc;
}
static bool opdi_hooks_any(const opdi_extra *extra, int kind) {
    const opdi_hook *hook;
    opdi_lock(&opdi_hooks_lock);
    for (hook = extra->hooks; hook && hook->kind != kind; hook = hook->next) { }
    opdi_unlock(&opdi_hooks_lock);
    return hook != NULL;
}

/* Adds grad to the gradient in a box.  Returns 0, or -1 and sets an error. */
static int opdi_retained_grad_add(opdi_engine *engine, opdi_retained_grad *box, opd_tensor *grad) {
    const bool entered = opdi_accumulate_enter(opdi_self());
    opd_tensor *old = box->grad, *sum;
    if (old) { sum = opdi_keep(opdi_grad_sum(engine, old, grad)); }
    else { sum = opdi_keep(opd_clone_full(grad, OPD_NONE)); }
    if (sum) {
        box->grad = sum;
        if (old) { opdi_drop(old); }
    }
    opdi_accumulate_leave(entered);
    return sum ? 0 : -1;
}
/* Adds the gradients of the task to the gradients in the boxes of `extra`.  Returns 0, or -1 and sets an error. */
static int opdi_retained_grads_fill(const opdi_hooked *hooked, opdi_extra *extra) {
    opdi_retained_grad *few[8], **list = few;
    int count = 0, i = 0, rc = 0;
    opdi_lock(&opdi_hooks_lock);
    for (opdi_retained_grad *box = extra->boxes; box; box = box->next) { count++; }
    if (count > 8) { list = (opdi_retained_grad **)opdi_alloc((size_t)count * sizeof *list); }
    for (opdi_retained_grad *box = extra->boxes; box && list; box = box->next) {
        (void)OPDI_ADD(&box->refs, 1);
        list[i++] = box;
    }
    opdi_unlock(&opdi_hooks_lock);
    if (!list) { return -1; }
    for (i = 0; i < count; i++) {
        opd_tensor *grad = hooked->grads[list[i]->nr];
        if (rc == 0 && grad) { rc = opdi_retained_grad_add(hooked->engine, list[i], grad); }
        opdi_retained_grad_release(list[i]);
    }
    if (list != few) { opdi_free(list, (size_t)count * sizeof *list); }
    return rc;
}

static opdi_hooked opdi_hooked_of(opdi_engine *engine, opdi_task *task, opd_tensor **out, int nout) {
    opdi_hooked hooked;
    hooked.engine = engine;
    hooked.task = task;
    hooked.out = out;
    hooked.nout = nout;
    hooked.grads = task->grads;
    hooked.ngrads = task->ngrads;
    return hooked;
}

/* Runs the hooks before a node or leaf: first the tensor hooks, then, if the node will run, its pre hooks.  Then adds
   the gradients to the gradients in the boxes.  Returns 0 or -1. */
OPDI_INTERNAL int opdi_hooks_before(opdi_engine *engine, opdi_task *task) {
    const bool leaf = (task->vertex & OPDI_LEAF) != 0;
    opdi_extra *extra = leaf ? opdi_edge_leaf(task->vertex)->meta->extra
        : (opdi_extra *)(uintptr_t)opdi_edge_node(task->vertex)->formula;
    opdi_hooked hooked = opdi_hooked_of(engine, task, NULL, 0);
    if (opdi_hooks_run(&hooked, extra, OPDI_HOOK_TENSOR)) { return -1; }
    if ((leaf ? engine->accumulate : task->leads) && opdi_hooks_run(&hooked, extra, OPDI_HOOK_PRE)) { return -1; }
    return opdi_retained_grads_fill(&hooked, extra);
}
OPDI_INTERNAL int opdi_hooks_after(opdi_engine *engine, opdi_task *task, opd_tensor **out) {
    opd_node *node = opdi_edge_node(task->vertex);
    opdi_hooked hooked = opdi_hooked_of(engine, task, out, node->nedges);
    return opdi_hooks_run(&hooked, (opdi_extra *)(uintptr_t)node->formula, OPDI_HOOK_POST);
}

/* Handles the gradient of a leaf that has hooks: runs the hooks, and captures or accumulates the gradient.  Returns 0,
   or -1 and sets an error. */
OPDI_INTERNAL int opdi_leaf_hooks(opdi_engine *engine, opdi_task *task) {
    opdi_thread *thread = opdi_self();
    opd_tensor *leaf = opdi_edge_leaf(task->vertex);
    opdi_extra *extra = leaf->meta->extra;
    opdi_hooked hooked = opdi_hooked_of(engine, task, NULL, 0);
    opdi_frame frame;
    opdi_frame_enter(thread, &frame);
    thread->state.no_grad = !engine->create;
    int rc = opdi_hooks_before(engine, task);
    opd_tensor *grad = task->grads[0];
    if (rc == 0 && !engine->accumulate) { opdi_task_capture(engine, task); }
    else if (rc == 0 && (leaf->flags & OPDI_REQUIRES_GRAD)) {
        const bool held = grad && opdi_hooks_any(extra, OPDI_HOOK_POST);
        task->grads[0] = NULL;
        if (held) { opdi_retain(grad); }
        if (grad) { rc = opdi_accumulate_any(engine, leaf, grad, held); }
        hooked.grads = &grad;
        if (rc == 0 && grad) { rc = opdi_hooks_run(&hooked, extra, OPDI_HOOK_ACCUMULATED); }
        if (rc == 0 && (held || !grad)) { rc = opdi_hooks_run(&hooked, extra, OPDI_HOOK_POST); }
        if (held) { opdi_drop(grad); }
    }
    if (rc) { (void)opdi_fail_more(" [in torch::autograd::AccumulateGrad]"); }
    opdi_frame_leave(thread, &frame);
    return rc;
}
