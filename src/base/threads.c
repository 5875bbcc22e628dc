#include "base.h"

//== threads ===========================================================================================================

#if defined(OPDI_DIVIDED)                           /* platform.h declares these variables */
OPDI_TLS opdi_thread *opdi_thread_self;
uint64_t opdi_epoch = 1;
int32_t opdi_depth_limit = OPDI_QUICK_DEPTH;
int opdi_small_stacks;
#endif
OPDI_INTERNAL opdi_thread opdi_main_thread;              /* the first thread's state, which needs no allocation */
OPDI_INTERNAL int opdi_main_taken;
OPDI_INTERNAL opdi_mutex opdi_threads_lock = OPDI_MUTEX_INIT;
OPDI_INTERNAL opdi_thread *opdi_all_threads;
static uint64_t opdi_threads_started;
OPDI_INTERNAL int64_t opdi_live_total, opdi_live_peak, opdi_ended_allocations;
OPDI_INTERNAL int64_t opdi_regions_idle;                 /* bytes that graphs keep for their next run */

OPDI_INTERNAL void opdi_report_pending(opdi_thread *thread) {
    if (thread->error != OPD_OK) {
        thread->error = OPD_OK;
        opdi_log_write(thread, 1, thread->message, false);
    }
}

#if !defined(OPD_NO_THREADS)
OPDI_INTERNAL pthread_key_t opdi_thread_key;             /* its destructor is opdi_thread_end */
#if defined(_WIN32)
OPDI_INTERNAL unsigned long opdi_thread_slot;            /* the same value as for opdi_thread_key, for Windows itself */
#endif
#endif
/* Called for each new thread, under opdi_threads_lock.  NULL while no observer was ever added. */
OPDI_INTERNAL void (*opdi_on_new_thread)(opdi_thread *thread);

/* Reports an error that is still pending at the end of the program.  If the library is a DLL, Windows calls this
   function when the thread-local variables are freed already: only the state of the main thread still exists. */
static void opdi_at_exit(void) {
#if defined(_WIN32)
    opdi_thread *const thread = opdi_main_taken ? &opdi_main_thread : NULL;
#else
    opdi_thread *const thread = opdi_thread_self;
#endif
    if (thread) { opdi_report_pending(thread); }
}

/* Finds out where this thread's stack is, if the system tells. */
static void opdi_stack_find(opdi_thread *thread) {
#if defined(_WIN32)
    opdi_windows_size low = 0, high = 0;
    GetCurrentThreadStackLimits(&low, &high);
    thread->stack_low = (uintptr_t)low;
    thread->stack_bytes = (size_t)(high - low);
#elif defined(__APPLE__) && !defined(OPD_NO_THREADS)
    thread->stack_bytes = pthread_get_stacksize_np(pthread_self());
    thread->stack_low = (uintptr_t)pthread_get_stackaddr_np(pthread_self()) - thread->stack_bytes;
#elif defined(__linux__) && !defined(OPD_NO_THREADS)
    pthread_attr_t attr;
    void *low = NULL;
    if (pthread_getattr_np(pthread_self(), &attr)) { return; }
    if (pthread_attr_getstack(&attr, &low, &thread->stack_bytes)) { thread->stack_bytes = 0; }
    thread->stack_low = (uintptr_t)low;
    (void)pthread_attr_destroy(&attr);
#else
    (void)thread;
#endif
}
/* Returns how many bytes of this thread's stack are left, or SIZE_MAX if this is unknown, as on the stack of a
   coroutine. */
OPDI_NOINLINE OPDI_INTERNAL size_t opdi_stack_left(void) {
    const volatile char here = 0;
    const opdi_thread *const thread = opdi_self();
    return opdi_on_own_stack(thread, (uintptr_t)&here) ? (uintptr_t)&here - thread->stack_low : SIZE_MAX;
}
OPDI_NOINLINE OPDI_INTERNAL bool opdi_stack_is_short(const char *name, size_t need) {
    const size_t left = opdi_stack_left(), all = opdi_self()->stack_bytes;
    if (left >= need) { return false; }
    (void)opd_fail(OPD_ERROR_MEMORY, "%s%sthe stack of this thread is too small: it has %d KB, of which %d KB are "
                   "left, but %d KB are needed. Start the thread with a stack of at least %d KB, for example by "
                   "pthread_attr_setstacksize", name ? name : "", name ? ": " : "", (int)(all >> 10), (int)(left >> 10),
                   (int)(need >> 10), (int)(OPDI_MAX(OPDI_STACK_ENOUGH, 2 * all) >> 10));
    return true;
}

#if !defined(OPD_NO_THREADS)
/* Starts a thread of the library that runs fn(arg).  Its stack has the system's default size, but at least twice
   OPDI_STACK_ENOUGH.  Returns 0, or an error number. */
OPDI_INTERNAL int opdi_thread_start(pthread_t *id, void *(*fn)(void *), void *arg) {
    const size_t least = 2 * OPDI_STACK_ENOUGH;
    pthread_attr_t attr;
    size_t size = 0;
    int rc = pthread_attr_init(&attr);
    if (rc) { return rc; }
    if (pthread_attr_getstacksize(&attr, &size) == 0 && size < least) { (void)pthread_attr_setstacksize(&attr, least); }
    rc = pthread_create(id, &attr, fn, arg);
    (void)pthread_attr_destroy(&attr);
    return rc;
}
#endif

/* Makes the state of this thread, enters it in the list of all threads and returns it.  If memory runs out, returns a
   state with a pending error; all threads in that situation share it. */
OPDI_NOINLINE OPDI_INTERNAL opdi_thread *opdi_thread_make(void) {
    static const opdi_mutex fresh = OPDI_MUTEX_INIT;
    static int at_exit_done;
    opdi_thread *thread;
#if defined(OPD_NO_THREADS)
    opdi_process_begin();
#else
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, opdi_process_begin);
#endif
    opdi_lock(&opdi_threads_lock);
    if (!opdi_main_taken) {
        opdi_main_taken = 1;
        thread = &opdi_main_thread;
        if (!at_exit_done) {
            at_exit_done = 1;
            (void)atexit(opdi_at_exit);
        }
    } else {
        thread = (opdi_thread *)OPD_MALLOC(sizeof *thread);
    }
    if (!thread) {                                /* no memory for the state: all such threads share one */
        static opdi_thread emergency;
        opdi_unlock(&opdi_threads_lock);
        emergency.error = OPD_ERROR_MEMORY;
        strcpy(emergency.message, "out of memory: the state of a thread could not be allocated");
        return &emergency;
    }
    memset(thread, 0, sizeof *thread);
    thread->state.include = OPDI_DEFAULT_INCLUDE;
    thread->state.allow = OPDI_DEFAULT_ALLOW;
    thread->born = ++opdi_threads_started;
    thread->random = 0x9e3779b97f4a7c15u * thread->born;
    thread->observe_lock = fresh;
    opdi_stack_find(thread);
    if (opdi_stack_is_small(thread)) {
        OPDI_STORE(&opdi_small_stacks, opdi_small_stacks + 1);
        OPDI_STORE(&opdi_depth_limit, 0);
    }
    thread->next = opdi_all_threads;
    opdi_all_threads = thread;
    if (opdi_on_new_thread) { opdi_on_new_thread(thread); }
    opdi_unlock(&opdi_threads_lock);
#if !defined(OPD_NO_THREADS)
    if (thread != &opdi_main_thread) {
        (void)pthread_setspecific(opdi_thread_key, thread);
#if defined(_WIN32)
        (void)TlsSetValue(opdi_thread_slot, thread);
#endif
    }
#endif
    opdi_thread_self = thread;
    return thread;
}

//== freeing tables and kernels that no running call can use ===========================================================
//
//  A call writes the epoch into its thread's `inside` when it begins and 0 when it ends: plain stores, no lock and no
//  fence.  When tables and kernels (with their user pointers) are taken out of use, they get the number of the epoch,
//  and then the epoch is increased.  They are freed when every running call began in a later epoch.  A call's store to
//  `inside` must become visible before its next reads.  The freeing thread ensures this, by a barrier that the system
//  sends to all other threads, so that calls need no fence.

#if !defined(OPD_NO_THREADS) && defined(__linux__) && defined(SYS_membarrier)
#if !defined(__cplusplus)
extern long syscall(long number, ...);            /* with -std=c11, the system header does not declare it */
#endif
/* Makes every other thread of the process pass a full barrier.  Returns false if the system cannot do that. */
static bool opdi_barrier(void) {
    static int ready;
    if (OPDI_ALONE) { return true; }
    if (!OPDI_LOAD(&ready)) {                     /* MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED */
        OPDI_STORE(&ready, syscall(SYS_membarrier, 16, 0) == 0 ? 1 : -1);
    }
    return OPDI_LOAD(&ready) > 0 && syscall(SYS_membarrier, 8, 0) == 0;
}
#elif !defined(OPD_NO_THREADS) && defined(_WIN32)
static bool opdi_barrier(void) {
    FlushProcessWriteBuffers();
    return true;
}
#else
static bool opdi_barrier(void) { return OPDI_ALONE != 0; }
#endif

/* Returns the epoch in which the oldest of the running calls began: UINT64_MAX if no call runs, 0 if it is unknown.  A
   thread that has never made a call is not in opdi_all_threads, and must take opdi_threads_lock before its first
   call. */
OPDI_INTERNAL uint64_t opdi_oldest_call(void) {
    const opdi_thread *thread;
    uint64_t oldest = UINT64_MAX;
    opdi_lock(&opdi_threads_lock);
    for (thread = opdi_all_threads; thread && thread == opdi_thread_self; thread = thread->next) { }
    if (thread && !opdi_barrier()) { oldest = 0; }
    for (thread = opdi_all_threads; thread; thread = thread->next) {
        const uint64_t inside = OPDI_ACQUIRE(&thread->inside);
        if (inside && inside < oldest) { oldest = inside; }
    }
    opdi_unlock(&opdi_threads_lock);
    return oldest;
}
