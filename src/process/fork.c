#include "../ops/ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>fork         the start of the library, the end of a thread or the program, and forks
//
//  Before the library does anything else, lower layers get the functions of higher layers that they call.  When a
//  thread or the program ends, it reports its pending error and releases the objects that it holds.  The child of a
//  fork has only one thread.  Other threads of the parent might have been changing data during the fork.  So that this
//  data is complete in the child, all locks are taken before the fork and released after it.
//----------------------------------------------------------------------------------------------------------------------

OPDI_COLD_BEGIN

/* Ends the thread whose opdi_thread is `arg`, if that is not NULL: reports a pending error, releases objects that the
   thread did not release, and removes its state from the list of threads. */
OPD_UNUSED static void opdi_thread_end(void *arg) {
    opdi_thread *thread = (opdi_thread *)arg;
    if (!thread) { return; }                      /* winpthreads also calls this function for a NULL */
    opdi_thread_self = thread;
    opdi_report_pending(thread);
    if (thread->limits.bytes) { opd_limits_set(NULL); }
    opdi_observers_leave(thread);
    opdi_scope_unwind(thread, 0);
    opdi_levels_end(thread, NULL);
    const opdi_kept_hooks *const kept = OPDI_ACQUIRE(&opdi_on_kept);
    if (kept) { kept->flush(thread); }
    if (thread->handles) { OPD_FREE(thread->handles); }
    thread->handles = NULL;
    thread->cap = 0;
    opdi_cache_drain(thread);
    opdi_live_flush(thread);
    opdi_lock(&opdi_threads_lock);
    for (opdi_thread **threads = &opdi_all_threads; *threads; threads = &(*threads)->next) {
        if (*threads == thread) {
            *threads = thread->next;
            break;
        }
    }
    opdi_ended_allocations += thread->allocations;
    const bool examined = opdi_stack_is_small(thread);
    if (examined) { OPDI_STORE(&opdi_small_stacks, opdi_small_stacks - 1); }
    opdi_unlock(&opdi_threads_lock);
    if (examined) { opdi_depth_limit_update(); }
    opdi_thread_self = NULL;
#if !defined(OPD_NO_THREADS) && defined(_WIN32)
    (void)TlsSetValue(opdi_thread_slot, NULL);
#endif
    if (thread != &opdi_main_thread) { OPD_FREE(thread); }
    else {
        memset(thread, 0, sizeof *thread);
        OPDI_PUBLISH(&opdi_main_taken, 0);
    }
}
#if !defined(OPD_NO_THREADS) && defined(_WIN32)
/* Ends a thread that was not started by pthread_create.  When such a thread ends, the C library of mingw-w64 may free
   its thread-local variables before pthreads calls opdi_thread_end, which uses them.  So Windows itself calls this
   function.  Functions in the section .CRT$XLB are called before the functions of the C library. */
static void __stdcall opdi_windows_thread(void *module, unsigned long reason, void *unused) {
    const bool ends = reason == OPDI_WIN_THREAD_ENDS && OPDI_LOAD(&opdi_main_taken);
    void *const thread = ends ? TlsGetValue(opdi_thread_slot) : NULL;
    (void)module;
    (void)unused;
    if (!thread) { return; }
    (void)pthread_setspecific(opdi_thread_key, NULL);
    opdi_thread_end(thread);
}
__attribute__((section(".CRT$XLB"), used)) static void (__stdcall *const opdi_windows_thread_ends)(
    void *module, unsigned long reason, void *unused) = opdi_windows_thread;
#endif

int opd_finish(void) {
    opdi_thread *thread = opdi_self();
    if ((thread->current || thread->nvisits) && opdi_is_left(thread)) { (void)opdi_forget_left(thread); }
    if (thread->left) {
        thread->inside = 0;
        thread->left = false;
    }
    if (thread->current || thread->nvisits) {
        (void)opd_fail(OPD_ERROR_KERNEL, "opd_finish was called inside of %s: call it at the end of main or of the "
                       "thread", thread->current ? "a kernel"
                       : thread->visits[OPDI_MIN(thread->nvisits, OPDI_VISITS) - 1].what);
        return 1;
    }
    int failed = thread->error != OPD_OK;
    opdi_report_pending(thread);
    opdi_retired_reclaim();
    opdi_scope_unwind(thread, 0);
    opdi_levels_end(thread, NULL);
    thread->scope_depth = 0;
    thread->scope_mark = 0;
    const opdi_kept_hooks *const kept = OPDI_ACQUIRE(&opdi_on_kept);
    if (kept) { kept->report(thread); }
    return failed;
}

#if !defined(OPD_NO_THREADS) && !defined(_WIN32)
static opdi_mutex *const opdi_fork_locks[] = {
    &opdi_registry.start, &opdi_registry.lock, &opdi_threads_lock, &opdi_log.lock, &opdi_key_lock, &opdi_int_lock,
#if !defined(OPD_NO_CACHE)
    &opdi_large.lock,
#endif
    &opdi_meta_lock, &opdi_backend_lock, &opdi_own_lock, &opdi_view_lock, &opdi_accumulate_lock, &opdi_dual_lock,
#if !defined(OPD_NO_GRAPHS)
    &opdi_plan_lock, &opdi_builtin_lock,
#endif
#if !defined(OPD_NO_COMPILER)
    &opdi_lazy_lock,
#if defined(OPDI_COMPILES)
    &opdi_checked_lock,
#endif
#endif
#if !defined(OPD_NO_SCRIPTS)
    &opdi_script_lock,
#endif
#if !defined(OPD_NO_PROFILER)
    &opdi_profiler.lock,
#endif
#if !defined(OPD_NO_AUTOCAST)
    &opdi_autocasts.lock, &opdi_casts.lock,
#endif
#if !defined(OPD_NO_COLLECTIVES)
    &opdi_groups.lock,
#endif
    &opdi_keeping_lock, &opdi_hooks_lock, &opdi_mutation_lock, &opdi_checkpoint_lock, &opdi_generator_lock,
    &opdi_mapping_lock, &opdi_sized_lock};
enum { OPDI_FORK_LOCKS = (int)(sizeof opdi_fork_locks / sizeof *opdi_fork_locks) };
static uint32_t opdi_fork_held;                   /* a bit for each lock that this thread holds for the fork */

static void opdi_fork_release(void) {
    const uint32_t held = opdi_fork_held;
    opdi_fork_held = 0;                           /* cleared before the unlocking: then another thread may fork and set
                                                     it */
    for (int i = OPDI_FORK_LOCKS; i-- > 0;) { if (held >> i & 1) { opdi_unlock(opdi_fork_locks[i]); } }
}
/* Takes all locks before a fork.  Other code may take some of them in another order.  So if another thread has a lock,
   this function releases all locks taken so far and tries again.  In the last try, leaves out locks that other threads
   hold, such as the lock under which library blocks run.  Always leaves out that lock if this thread holds it. */
static void opdi_fork_prepare(void) {
    const int most = 1000000;                     /* the number of tries; each yields the processor */
    uint32_t held = 0, all = ~(uint32_t)0;
    int i;
    if (OPDI_LOAD(&opdi_registry.starter) == opdi_thread_self && opdi_thread_self) { all &= ~(uint32_t)1; }
    for (int tries = 1; tries <= most; tries++) {
        for (i = 0; i < OPDI_FORK_LOCKS; i++) {
            if (!(all >> i & 1)) { continue; }
            if (pthread_mutex_trylock(opdi_fork_locks[i]) == 0) {
                held |= (uint32_t)1 << i;
                continue;
            }
            if (tries == most) { continue; }
            while (i-- > 0) { if (held >> i & 1) { opdi_unlock(opdi_fork_locks[i]); } }
            held = 0;
            (void)sched_yield();
            break;
        }
        if (i == OPDI_FORK_LOCKS) { break; }
    }
    opdi_fork_held = held;
}
/* Cleans up in the child of a fork.  The parent's other threads do not exist here, so they are not in a call and do
   not hold anything. */
static void opdi_fork_child(void) {
    const opdi_mutex fresh = OPDI_MUTEX_INIT;
    opdi_thread *const self = opdi_thread_self;
    const bool starts = self && OPDI_LOAD(&opdi_registry.starter) == self;
    for (opdi_thread *thread = opdi_all_threads; thread; thread = thread->next) {
        if (thread != self) { OPDI_PUBLISH(&thread->inside, 0); }
    }
    opdi_all_threads = self;
    OPDI_STORE(&opdi_small_stacks, self && opdi_stack_is_small(self));
    if (self) {
        self->next = NULL;
        self->observe_lock = fresh;
    }
#if !defined(OPD_NO_PROFILER)
    if (opdi_profiler.running) { opdi_profiler.running->lock = fresh; }
#endif
    for (int i = starts; i < OPDI_FORK_LOCKS; i++) {
        if (!(opdi_fork_held >> i & 1)) { (void)pthread_mutex_init(opdi_fork_locks[i], NULL); }
    }
    if (!starts) {
        OPDI_STORE(&opdi_registry.starter, (opdi_thread *)NULL);
        OPDI_PUBLISH(&opdi_registry.making, 0);
    }
    const opdi_kept_hooks *const kept = OPDI_ACQUIRE(&opdi_on_kept);
    if (kept) { kept->forget(); }
    opdi_fork_release();
    opdi_depth_limit_update();
}
#endif

/* Gives lower layers the functions of higher layers that they call, and asks the system to call opdi_thread_end and the
   functions for forks.  Called once, before the state of the first thread is made. */
OPDI_INTERNAL void opdi_process_begin(void) {
    static const opdi_higher higher = {
        opdi_register_builtins, opdi_register_card, opdi_register_extra, opdi_left_out, opdi_autocast_policy,
        opdi_guard_slot, opd_tensor_wrapped_number, opdi_batch_copy};
    (void)opd_code_forbidden(NULL);               /* the environment may change later */
    opdi_error_in_call = opdi_error_begin;
    opdi_error_after_call = opdi_error_end;
    opdi_above = &higher;
#if !defined(OPD_NO_THREADS)
    (void)pthread_key_create(&opdi_thread_key, opdi_thread_end);
#if defined(_WIN32)
    opdi_thread_slot = TlsAlloc();
#else
    (void)pthread_atfork(opdi_fork_prepare, opdi_fork_release, opdi_fork_child);
#endif
#endif
}
OPDI_COLD_END
