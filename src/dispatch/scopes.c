#include "dispatch.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>scopes       references to tensors, freed tensors, scopes
//
//  The references to a tensor are counted.  The block of memory that holds a tensor and its storage is freed with the
//  last tensor that uses the storage.  A scope holds the references of the tensors that were made in a block of the
//  program.  Autograd, devices and forward mode set function pointers (opdi_on_release), by which a tensor releases the
//  objects that they gave it.
//----------------------------------------------------------------------------------------------------------------------

//== references ========================================================================================================

OPDI_INTERNAL opdi_release_hooks opdi_on_release;

/* Returns the tensor of which `tensor` is a view, or NULL.  A view of integers or bools, which autograd never uses, has
   a base, too. */
OPDI_INTERNAL opd_tensor *opdi_view_base(const opd_tensor *tensor) {
    const bool whole = !tensor->storage || tensor->storage->block == (const void *)tensor ||
        (tensor->meta && tensor->meta->home);
    return whole ? NULL : opdi_view_record_of(tensor)->base;
}

/* Allocates the data of a storage, whose size is set, in a separate block; on meta, there is no data.  Returns 0, or -1
   if memory runs out. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_data_apart(opdi_storage *storage, int backend) {
    storage->data = NULL;
    if (backend == OPD_META) {
        const opdi_fake *fake = opdi_self()->innermost.fake;
        if (fake) { fake->born(storage); }
        return 0;
    }
    storage->data = opdi_data_alloc(storage->bytes);
    return storage->data ? 0 : -1;
}
OPDI_INTERNAL void opdi_apart_free(opdi_storage *storage) {
    if (opdi_is_apart(storage)) { opdi_data_free(storage->data, storage->bytes); }
}

/* Drops a reference to a storage.  With the last reference, frees the data and the block that contains the storage. */
OPDI_INTERNAL void opdi_storage_drop(opdi_storage *storage) {
    if (OPDI_ACQUIRE(&storage->refs) != 1 && opdi_ref_down(&storage->refs) != 0) { return; }
    if (OPDI_UNLIKELY(OPDI_ACQUIRE(&storage->duals) != NULL)) { OPDI_ACQUIRE(&opdi_on_release.tangents)(storage); }
    if (OPDI_UNLIKELY(OPDI_ACQUIRE(&storage->packed) != NULL)) { OPDI_ACQUIRE(&opdi_on_release.packed)(storage); }
    if (storage->block_bytes < 0) {
        opdi_foreign *foreign = (opdi_foreign *)(void *)storage;
        opd_plugin *plugin = foreign->plugin;
        if (foreign->deleter) { foreign->deleter(storage->data, foreign->user); }
        opdi_free(foreign, sizeof *foreign);
        if (plugin) { opdi_plugin_unpin(plugin); }
    } else {
        if (OPDI_UNLIKELY(storage->device == OPD_META)) { opdi_self()->fake_live -= storage->bytes; }
        else if (OPDI_UNLIKELY(storage->device)) { OPDI_ACQUIRE(&opdi_on_release.device)(storage); }
        else if (storage->bytes > OPDI_INLINE_DATA_MAX) { opdi_apart_free(storage); }
        opdi_free_quarantined(storage->block, (size_t)storage->block_bytes);
    }
}

/* The tensor that is written over a freed tensor.  A program that uses a freed tensor finds this tensor, until the
   memory is reused.  The only key of this tensor, OPDI_DEAD_KEY, runs opdi_dead_argument instead of any kernel.  The
   tensor has no dtype, and its flags lead to the slow paths, which check for freed tensors. */
static opdi_storage opdi_dead_storage = {
    /* refs, version, data, bytes */ 1 << 30, 0, NULL, 0,
    /* block, block_bytes, duals, packed */ NULL, 0, NULL, NULL,
    /* device, index, stands_for, born */ 0, 0, 0, 0
};
static const opd_tensor opdi_dead_tensor = {
    /* refs, dtype */ 0, OPD_DTYPE_NONE,
    /* functionality, storage */ OPD_BIT_OF(OPDI_DEAD_KEY), &opdi_dead_storage,
    /* dims, data, begin, numel */ NULL, NULL, 0, 0,
    /* grad_fn, meta, output_nr */ NULL, NULL, 0,
    /* flags, backend, backend_bit */ OPDI_TRACED, OPD_CPU, 1,
    /* ndim, capacity, own */ 0, 0, OPDI_SAVED_BY_OWN
};
static const char opdi_released[] = "";           /* value of thread->ending while opd_release frees a tensor */
/* The range of addresses of unmapped plug-ins, whose texts must not be read.  Protected by the registry's lock. */
OPDI_INTERNAL uintptr_t opdi_unmapped_begin = UINTPTR_MAX;
OPDI_INTERNAL uintptr_t opdi_unmapped_end;
/* Returns the reason why `tensor` was freed; the text may be in buf.  The reason was in thread->ending when the tensor
   was freed: the place of a scope, an operator whose kernel has returned, or NULL if it is unknown. */
OPDI_INTERNAL const char *opdi_dead_why(const opd_tensor *tensor, char *buf, size_t cap) {
    const uintptr_t at = (uintptr_t)tensor->data;
    if (tensor->data == opdi_released) { return "its last reference was released (opd_release)"; }
    if (!at || (at >= OPDI_LOAD(&opdi_unmapped_begin) && at < OPDI_LOAD(&opdi_unmapped_end))) {
        return "the scope of the tensor has ended, or it was released";
    }
    (void)snprintf(buf, cap, strstr(tensor->data, "::") ? "the scope of a kernel of %s has ended"
                   : "the scope that begins at %s has ended", tensor->data);
    return buf;
}
OPDI_NOINLINE OPDI_INTERNAL int opdi_dead_error(const opd_tensor *tensor, const char *who) {
    char why[512];
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: the tensor " OPDI_DEAD_TEXT, who, opdi_dead_why(tensor, why, sizeof why));
}

/* Called for a tensor that is NULL or was freed: sets an error if it was freed.  `who` is the function in the error.
   Returns true. */
OPDI_NOINLINE OPDI_INTERNAL bool opdi_is_nothing(const opd_tensor *tensor, const char *who) {
    if (tensor) { (void)opdi_dead_error(tensor, who); }
    return true;
}
/* Returns -1 and sets an error if a tensor of a list was freed, else 0. */
OPDI_INTERNAL int opdi_any_dead(opd_tensor *const *list, int64_t count, const char *who) {
    for (int64_t i = 0; list && i < count; i++) {
        if (list[i] && opdi_is_dead(list[i])) { return opdi_dead_error(list[i], who); }
    }
    return 0;
}
/* Returns -1 and sets an error if one of the `count` outputs that a program's function has returned to `who` was freed,
   else 0. */
OPDI_INTERNAL int opdi_any_dead_output(opd_tensor *const *outputs, int count, const char *who) {
    char why[512];
    for (int i = 0; i < count; i++) {
        if (!outputs[i] || !opdi_is_dead(outputs[i])) { continue; }
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: output %d of the function has been freed: %s. Before the function "
                        "returns, move the output out of its scope: out[%d] = opd_scope_return(out[%d])", who, i,
                        opdi_dead_why(outputs[i], why, sizeof why), i, i);
    }
    return 0;
}
OPDI_INTERNAL int opdi_any_dead_value(const opd_value *value, int count, const char *who) {
    int rc = 0;
    for (int i = 0; value && i < count && rc == 0; i++) {
        if (value[i].tag == OPD_TAG_TENSOR) { rc = opdi_any_dead(&value[i].u.t, 1, who); }
        else if (value[i].tag == OPD_TAG_TENSORS) { rc = opdi_any_dead(value[i].u.tensors, value[i].n, who); }
    }
    return rc;
}

/* The slow paths of opdi_retain and opdi_drop_last: for a tensor that was freed, or that its own grad_fn saves. */
OPDI_NOINLINE OPDI_INTERNAL void opdi_own_retain(opd_tensor *tensor) {
    if (opdi_is_dead(tensor)) { (void)opdi_dead_error(tensor, "keeping a tensor"); }
    else { OPDI_ACQUIRE(&opdi_on_release.tape)->retain(tensor); }
}
OPDI_NOINLINE OPDI_INTERNAL bool opdi_own_drop(opd_tensor *tensor) {
    if (!opdi_is_dead(tensor)) { return OPDI_ACQUIRE(&opdi_on_release.tape)->drop(tensor); }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "a tensor was released that has been freed: it was released more often than it "
                   "was kept, or was not kept (opd_keep) when its scope ended");
    return false;
}

static inline bool opdi_drop_last(opd_tensor *tensor);
static void opdi_tensor_release(opd_tensor *tensor);
/* Frees a tensor whose last reference was dropped.  Then drops its gradient and its base, which may be freed, too.  The
   tensor's block stays if it contains a storage that views still use. */
OPDI_NOINLINE OPDI_INTERNAL void opdi_tensor_free(opd_tensor *tensor) {
    opdi_storage *storage;
    opd_tensor *grad = NULL, *base = NULL, *dead = NULL;
again:                                            /* a loop, because gradients of gradients may be a long chain */
    storage = tensor->storage;
    opdi_storage *home = storage->block == tensor ? storage : NULL;
    base = opdi_view_base(tensor);
    if (tensor->flags & OPDI_BATCHED) { opdi_tensor_release(opdi_batched_of(tensor)->value); }
    if (tensor->meta) {
        opdi_meta *meta = tensor->meta;
        grad = meta->grad;
        if (meta->dims) { opdi_free(meta->dims, (size_t)meta->dims_count * sizeof(int64_t)); }
        if (meta->home) { home = meta->home; }
        if (meta->inner) { opdi_tensor_release(meta->inner); }
        if (meta->extra) { OPDI_ACQUIRE(&opdi_on_release.extra)(meta->extra); }
        if (meta->marks) { meta->marks->end(meta->marks); }
        if (meta->retained) { OPDI_ACQUIRE(&opdi_on_release.box)(meta->retained); }
        opdi_free(meta, sizeof *meta);
    }
    if (tensor->grad_fn && !(tensor->own & OPDI_WEAK_NODE)) {
        OPDI_ACQUIRE(&opdi_on_release.tape)->node(tensor->grad_fn);
    }
    size_t bytes = sizeof *tensor + (size_t)tensor->capacity * sizeof(int64_t) + sizeof(opdi_view_record) +
        (tensor->flags & OPDI_BATCHED ? sizeof(opdi_batched) : 0);
    *tensor = opdi_dead_tensor;
    tensor->data = (char *)(uintptr_t)opdi_self()->ending;
    if (!home) { opdi_free_quarantined(tensor, bytes); }
    if (home && home != storage) { opdi_storage_drop(home); }
    opdi_storage_drop(storage);
    if (base && opdi_drop_last(base)) {
        base->data = (char *)dead;
        dead = base;
    }
    if (grad && opdi_drop_last(grad)) {
        grad->data = (char *)dead;
        dead = grad;
    }
    if ((tensor = dead) != NULL) {
        dead = (opd_tensor *)(void *)tensor->data;
        grad = base = NULL;
        goto again;
    }
}

/* Keeps a tensor as opd_keep does, but without a note (see >>kept): for code of the library itself. */
OPDI_INTERNAL opd_tensor *opdi_keep(opd_tensor *tensor) {
    if (tensor && OPDI_UNLIKELY(opdi_is_dead(tensor))) {
        (void)opdi_dead_error(tensor, "opd_keep");
        return NULL;
    }
    if (tensor) { opdi_retain(tensor); }
    return tensor;
}
OPDI_NOINLINE static void opdi_tensor_release(opd_tensor *tensor) { opdi_drop(tensor); }
OPDI_NOINLINE OPDI_INTERNAL void opdi_release_last(opd_tensor *tensor) {
    opdi_thread *thread = opdi_self();
    thread->ending = opdi_released;
    opdi_tensor_free(tensor);
    thread->ending = NULL;
}
OPDI_INTERNAL void opdi_release(opd_tensor *tensor) {
    if (tensor && opdi_drop_last(tensor)) { opdi_release_last(tensor); }
}
/* Sets all `count` elements of `list` to NULL, for a function that could not make these tensors.  Returns -1. */
OPDI_INTERNAL int opdi_no_tensors(opd_tensor **list, int count) {
    for (int i = 0; list && i < count; i++) { list[i] = NULL; }
    return -1;
}

//== scopes ============================================================================================================
//
//  Each handle in the thread's scope stack holds one reference.  A handle is the address of a tensor or, if bit 0 is
//  set, of a block of memory (list results, strings).  Bit 1 is set if opd_scope_return moved the handle to the
//  enclosing scope.

#define OPDI_HANDLE_UP ((uintptr_t)2)

/* Makes room for `count` more handles.  Uses OPD_MALLOC, so that the stack does not count as memory of the program.
   Returns 0, or -1 and sets an error. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_scope_grow(opdi_thread *thread, int64_t count) {
    int64_t cap = thread->cap ? thread->cap * 2 : 256;
    uintptr_t *at;
    while (cap < thread->top + count) { cap *= 2; }
    if (OPDI_UNLIKELY(OPDI_LOAD(&opdi_fail_on) & 1) && opdi_fail_now()) { at = NULL; }
    else { at = (uintptr_t *)OPD_MALLOC((size_t)cap * sizeof *at); }
    if (!at) {
        (void)opdi_out_of_memory((size_t)cap * sizeof *at);
        return -1;
    }
    if (thread->top) { memcpy(at, thread->handles, (size_t)thread->top * sizeof *at); }
    if (thread->handles) { OPD_FREE(thread->handles); }
    thread->handles = at;
    thread->cap = cap;
    return 0;
}

OPDI_COLD_BEGIN
/* Warns once if the innermost scope, or the scope of the running kernel, has OPDI_SCOPE_WARNING tensors.  The last of
   them is a result of `op`, which may be NULL. */
OPDI_NOINLINE OPDI_INTERNAL void opdi_scope_warn(opdi_thread *thread, const opd_op *op) {
    const int32_t depth = thread->scope_depth;
    const opd_call *const call = thread->current;
    const bool in_kernel = call && call->scope_depth == depth;
    const int64_t count = thread->top - (in_kernel ? call->mark : thread->scope_mark);
    const char *const last = op ? opd_op_name(op) : "no operator";
    if (thread->warned_scope || count < OPDI_SCOPE_WARNING) { return; }
    thread->warned_scope = 1;
    if (depth == 0 && !in_kernel) {
        opd_warn("%lld tensors are in the root scope, which frees them only when the thread ends (the last one was "
                 "made by %s): is an OPD_SCOPE missing in a loop?", (long long)count, last);
        return;
    }
    opd_warn("%lld tensors are in the scope %s %s, which frees them only when it ends (the last one was made by %s). "
             "If a loop makes them, begin the body of the loop with OPD_SCOPED;", (long long)count,
             in_kernel ? "of a kernel of" : "that begins at", in_kernel ? opd_op_name(call->op)
             : depth <= OPDI_PLACES ? thread->places[depth - 1] : "an unknown place", last);
}
OPDI_COLD_END

/* Moves a reference to `tensor` to the innermost scope and returns `tensor`.  If memory runs out, drops the reference,
   sets an error and returns NULL. */
OPDI_INTERNAL opd_tensor *opdi_own(opd_tensor *tensor) {
    opdi_thread *thread = opdi_self();
    if (!tensor) { return NULL; }
    if (opdi_scope_reserve(thread, 1)) {
        opdi_drop(tensor);
        return NULL;
    }
    opdi_push(thread, tensor);
    return tensor;
}

/* Returns `size` bytes that live as long as the innermost scope, or NULL and sets an error. */
OPDI_INTERNAL void *opdi_scope_alloc(size_t size) {
    opdi_thread *thread = opdi_self();
    if (opdi_scope_reserve(thread, 1) || size > SIZE_MAX / 2) { return NULL; }
    opdi_block *block = (opdi_block *)opdi_alloc(size + sizeof *block);
    if (!block) { return NULL; }
    block->bytes = size + sizeof *block;
    thread->handles[thread->top++] = (uintptr_t)block | OPDI_HANDLE_BLOCK;
    return block + 1;
}
OPDI_COLD_BEGIN
/* Returns an array of `count` tensors, all NULL, that lives as long as the innermost scope, or NULL and sets an
   error. */
OPDI_INTERNAL opd_tensor **opdi_scope_tensors(int count) {
    opd_tensor **list = (opd_tensor **)opdi_scope_alloc(((size_t)count + 1) * sizeof *list);
    if (list) { memset(list, 0, ((size_t)count + 1) * sizeof *list); }
    return list;
}
OPDI_COLD_END

static void opdi_handle_release(uintptr_t h) {
    uintptr_t p = h & ~(OPDI_HANDLE_BLOCK | OPDI_HANDLE_UP);
    if (h & OPDI_HANDLE_BLOCK) {
        opdi_block *block = (opdi_block *)p;
        if (OPDI_UNLIKELY(block->bytes & OPDI_BLOCK_ENDS)) {
            const opdi_ending *ending = (const opdi_ending *)(const void *)(block + 1);
            ending->end(ending->what);
            block->bytes &= ~OPDI_BLOCK_ENDS;
        }
        opdi_free(block, block->bytes);
    } else {
        opdi_drop((opd_tensor *)p);
    }
}

/* Takes handles `from` to `to` - 1 out of the scope stack and releases them.  These handles were made when the
   arguments of a call were bound, and the call has ended. */
OPDI_INTERNAL void opdi_scope_remove(opdi_thread *thread, int64_t from, int64_t to) {
    uintptr_t gone[8];
    while (to > from) {
        int64_t count = OPDI_MIN(to - from, 8);
        for (int64_t i = 0; i < count; i++) { gone[i] = thread->handles[from + i]; }
        memmove(thread->handles + from, thread->handles + from + count,
                (size_t)(thread->top - from - count) * sizeof *thread->handles);
        thread->top -= count;
        to -= count;
        for (int64_t i = 0; i < count; i++) { opdi_handle_release(gone[i]); }
    }
}

/* Ends the scopes and modes of the blocks above `mark` (see OPDI_BLOCK_ENDS), the innermost first. */
OPDI_INTERNAL void opdi_scope_end_all(opdi_thread *thread, int64_t mark) {
    for (int64_t i = thread->top; i-- > mark;) {
        const uintptr_t h = thread->handles[i];
        if (!(h & OPDI_HANDLE_BLOCK)) { continue; }
        const opdi_block *block = (const opdi_block *)(h & ~(OPDI_HANDLE_BLOCK | OPDI_HANDLE_UP));
        if (block->bytes & OPDI_BLOCK_ENDS) { opdi_scope_remove(thread, i, i + 1); }
    }
}
/* Releases the handles above `mark`, except those that opd_scope_return has marked: they move down to `mark`. */
OPDI_INTERNAL void opdi_scope_unwind(opdi_thread *thread, int64_t mark) {
    int64_t keep = mark;
    for (int64_t i = mark; i < thread->top; i++) {
        uintptr_t h = thread->handles[i];
        if (h & OPDI_HANDLE_UP) {
            thread->handles[i] = thread->handles[keep];
            thread->handles[keep++] = h & ~OPDI_HANDLE_UP;
        }
    }
    while (thread->top > keep) { opdi_handle_release(thread->handles[--thread->top]); }
}

OPDI_COLD_BEGIN
/* Forgets the visits from number `first` on, which were left: ends the scopes and modes that were opened since the
   outermost of them began, and restores the thread's innermost objects and modes. */
static void opdi_visits_forget(opdi_thread *thread, int first) {
    const opdi_visit *const visit = &thread->visits[first];
    int i = (int)OPDI_MIN(thread->nvisits, OPDI_VISITS);
    thread->nvisits = first;                      /* before the loop: `end` may call functions that examine the visits
                                                     */
    while (i-- > first) { if (thread->visits[i].end) { thread->visits[i].end(&thread->visits[i]); } }
    opdi_scope_end_all(thread, visit->top);
    const opdi_innermost now = thread->innermost;
    thread->innermost = visit->innermost;
    thread->innermost.packer = now.packer;
    thread->innermost.layer = now.layer;
    thread->innermost.serials = now.serials;
    thread->innermost.serial = now.serial;
    thread->innermost.tape = now.tape;
    thread->state.autocast = visit->state.autocast;
    thread->state.inference = visit->state.inference;
    thread->state.forward = visit->state.forward;
    thread->observing = visit->observing;
    thread->depth = visit->depth;
    if (thread->scope_depth > visit->scope_depth) {        /* else the scopes have been closed */
        thread->scope_depth = visit->scope_depth;
        thread->scope_mark = visit->scope_mark;
    }
}
/* Forgets the calls and visits that an exception or a longjmp has left, and the state that was set for them.  Returns
   -1 and sets an error. */
OPDI_NOINLINE OPDI_INTERNAL int opdi_forget_left(opdi_thread *thread) {
    const volatile char here = 0;
    const int first = opdi_visit_left_at(thread, &here);
    const char *const what = first < 0 ? "a kernel" : thread->visits[first].what;
    thread->current = first < 0 ? NULL : thread->visits[first].current;
    if (opdi_is_left_at(thread, &here)) { thread->current = NULL; }
    thread->planned = NULL;
    thread->run = 0;
    thread->left = true;
    if (first >= 0) { opdi_visits_forget(thread, first); }
    thread->state.include = OPDI_DEFAULT_INCLUDE;
    thread->state.allow = OPDI_DEFAULT_ALLOW | (thread->state.autocast ? OPD_BIT_OF(OPD_F_AUTOCAST) : 0);
    thread->state.no_grad = 0;
    return opd_fail(OPD_ERROR_KERNEL, "an exception or a longjmp has left %s, but %s must return (in C++, "
                    "OPD_CATCH(%s) turns exceptions into errors); the included and excluded keys and the grad mode "
                    "were reset to their initial state", what, what, first < 0 ? "kernel" : "function");
}
/* Looks whether an exception or a longjmp has left a visit.  If so, forgets the visit, sets an error and returns
   true. */
OPDI_NOINLINE OPDI_INTERNAL bool opdi_visits_examine(opdi_thread *thread) {
    return opdi_is_left(thread) && opdi_forget_left(thread) != 0;
}
OPDI_COLD_END

#define OPDI_OPENED_OUTSIDE 2                     /* value of scope->open: opened while no call was running */
opd_scope opd_scope_open_at(const char *place) {
    opdi_thread *thread = opdi_self();
    opd_scope scope;
    (void)opdi_visits_left(thread);
    scope.mark = thread->top;
    scope.outer = thread->scope_mark;
    scope.depth = ++thread->scope_depth;
    scope.open = thread->inside ? 1 : OPDI_OPENED_OUTSIDE;
    thread->scope_mark = thread->top;
    if (OPDI_LIKELY(scope.depth <= OPDI_PLACES)) { thread->places[scope.depth - 1] = place; }
    return scope;
}
opd_scope opd_scope_open(void) { return opd_scope_open_at("opd_scope_open"); }

/* Closes a scope and releases the objects that it owns.  Does nothing if the scope is closed.  Sets an error if a
   kernel closes a scope that was opened outside of the kernel. */
void opd_scope_close(opd_scope *scope) {
    const volatile char here = 0;                 /* the frames of running kernels are above it */
    opdi_thread *thread = opdi_self();
    if (!scope || !scope->open) { return; }
    (void)opdi_visits_left(thread);
    const opd_call *const call = thread->current;
    if (OPDI_UNLIKELY(call && (scope->depth <= call->scope_depth || (uintptr_t)call <= (uintptr_t)&here))) {
        if (opdi_is_left(thread)) { (void)opdi_forget_left(thread); }
        else if (scope->depth <= call->scope_depth) {
            (void)opd_fail(OPD_ERROR_KERNEL, "a kernel closed a scope that was opened outside of the kernel");
            return;                               /* the scope stays open until its owner closes it */
        }
    }
    if (OPDI_UNLIKELY(thread->nvisits != 0) && scope->depth <= opdi_visit_depth(thread)) {
        (void)opd_fail(OPD_ERROR_KERNEL, "a function that the library calls (a hook, an observer, a function of a "
                       "transform) closed a scope that was opened outside of it");
        return;
    }
    if (OPDI_UNLIKELY(thread->left) && scope->open == OPDI_OPENED_OUTSIDE) {
        thread->inside = 0;
        thread->left = false;
    }
    scope->open = 0;
    if (scope->depth > thread->scope_depth) { return; }  /* an enclosing scope was closed before */
    if (OPDI_LIKELY(thread->top > scope->mark)) {
        thread->ending = scope->depth <= OPDI_PLACES ? thread->places[scope->depth - 1] : NULL;
        opdi_scope_unwind(thread, scope->mark);
        thread->ending = NULL;
    }
    thread->scope_depth = scope->depth - 1;
    thread->scope_mark = scope->outer;
}

opd_tensor *opd_scope_return(opd_tensor *tensor) {
    opdi_thread *thread = opdi_self();
    if (opdi_is_none(tensor, "opd_scope_return")) { return NULL; }
    for (int64_t i = thread->top; i-- > OPDI_MAX(thread->scope_mark, thread->current ? thread->current->mark : 0);) {
        if (thread->handles[i] == (uintptr_t)tensor) {
            thread->handles[i] |= OPDI_HANDLE_UP;
            return tensor;
        }
    }
    if (opdi_scope_reserve(thread, 1)) { return NULL; }
    opdi_retain(tensor);
    thread->handles[thread->top++] = (uintptr_t)tensor | OPDI_HANDLE_UP;
    return tensor;
}

opd_scope_info opd_scope_stats(void) {
    opdi_thread *thread = opdi_self();
    opd_scope_info info;
    info.depth = thread->scope_depth;
    info.handles = thread->top;
    return info;
}
