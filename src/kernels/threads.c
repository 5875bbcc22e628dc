#include "kernels.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>kernels      threads, vector math
//
//  Loops on raw pointers, with which the kernels of operators are built, and the threads that run them.  This section
//  uses the platform section (allocation, errors) and does not know tensors.  Code for AVX2 and AVX-512 is compiled by
//  target attributes and chosen at run time, so that a plain `cc -O2` reaches full speed.  No result depends on the
//  number of threads.
//----------------------------------------------------------------------------------------------------------------------

//== the level of instructions =========================================================================================

OPDI_LOOPS_BEGIN
OPDI_COLD_BEGIN
#if defined(OPDI_DIVIDED)                           /* kernels.h declares it */
int opdi_cpu_known = -1, opdi_cpu_most = -1;
#endif
static int opdi_same_default = -1;                /* 1 if the environment has OPD_SAME_BITS=1; -1: not read yet */
static OPDI_TLS int8_t opdi_same_chosen;          /* what this thread has set: 0: nothing, 1: false, 2: true */
static int opdi_cpu_same = -1;                   /* the level in the mode of same bits, which ignores OPD_CPU_LEVEL=0 */

#if defined(OPDI_X86)
/* Returns the level of the processor.  (__builtin_cpu_supports would bring 4 KB of code, which knows all processors,
   into each program.)  The operating system must save the registers of the level; macOS does so from the first use of
   AVX-512 on. */
OPDI_INTERNAL int opdi_cpu_features(void) {
    const uint32_t avx512 = 1u << 31 | 1u << 30 | 1u << 17 | 1u << 16;        /* VL, BW, DQ, F */
    uint32_t r[4], saved, high;
    opdi_cpu_leaf(0, 0, r);
    if (r[0] < 7) { return 0; }
    opdi_cpu_leaf(1, 0, r);
    if ((r[2] >> 27 & 3u) != 3 || !(r[2] >> 12 & 1u)) { return 0; }           /* XGETBV and AVX; FMA */
    __asm__ __volatile__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
    opdi_cpu_leaf(7, 0, r);
    if ((saved & 6u) != 6 || !(r[1] >> 5 & 1u)) { return 0; }                 /* AVX2 */
#if !defined(__APPLE__)
    if ((saved & 0xe0u) != 0xe0) { return 1; }
#endif
    return (r[1] & avx512) == avx512 ? 2 : 1;
}
#endif
static int opdi_cpu_find(void) {
    int level = 0;
#if defined(OPDI_X86)
    level = opdi_cpu_features();
#elif defined(OPDI_NEON)
    level = 1;
#endif
#if defined(OPDI_PORTABLE)
    OPDI_STORE(&opdi_cpu_same, 1);
#else
    OPDI_STORE(&opdi_cpu_same, OPDI_MIN(level, 1));
#endif
#if defined(OPDI_VECTORS)
    const char *wish = getenv("OPD_CPU_LEVEL");
    if (wish && wish[0] >= '0' && wish[0] <= '2' && wish[1] == 0 && wish[0] - '0' < level) { level = wish[0] - '0'; }
#endif
    OPDI_STORE(&opdi_cpu_most, level);
    return level;
}
/* Returns the level in the mode of same bits: 1, or 0 if the program has no vector code that this processor runs. */
OPDI_INTERNAL int opdi_cpu_same_level(void) {
    if (OPDI_LOAD(&opdi_cpu_same) < 0) { (void)opdi_cpu_find(); }
    return OPDI_LOAD(&opdi_cpu_same);
}
/* Warns once if the mode of same bits gives other bits than elsewhere. */
static void opdi_same_check(void) {
    static int told;
    if (opdi_cpu_same_level() == 0 && !OPDI_LOAD(&told)) {
        OPDI_STORE(&told, 1);
#if defined(OPDI_VECTORS)
        opd_warn("same bits: this processor has no AVX2, so the bits differ from other processors', unless the "
                 "program is compiled with OPD_NO_SIMD");
#else
        opd_warn("same bits: the bits differ from other programs', because this program is compiled without "
                 "optimisation, or by a compiler without vectors");
#endif
    }
}
static bool opdi_same_by_default(void) {
    int same = OPDI_LOAD(&opdi_same_default);
    if (same < 0) {
        const char *const wish = getenv("OPD_SAME_BITS");
        same = wish && wish[0] == '1' && wish[1] == 0;
        OPDI_STORE(&opdi_same_default, same);
        if (same) { opdi_same_check(); }
    }
    return same != 0;
}
bool opd_same_bits(void) { return opdi_same_chosen ? opdi_same_chosen == 2 : opdi_same_by_default(); }
bool opd_same_bits_set(bool same) {
    const bool was = opd_same_bits();
    opdi_same_chosen = same ? 2 : 1;
    if (same) { opdi_same_check(); }
    if (same != opdi_same_by_default()) { OPDI_STORE(&opdi_cpu_known, OPDI_CPU_BY_THREAD); }
    return was;
}
OPDI_NOINLINE OPDI_INTERNAL int opdi_cpu_detect(void) {
    int unknown = -1, level = OPDI_LOAD(&opdi_cpu_most);
    if (level < 0) { level = opdi_cpu_find(); }
    const int same = opdi_cpu_same_level(), usual = opdi_same_by_default() ? same : level;
    while (OPDI_LOAD(&opdi_cpu_known) == -1 && !OPDI_EXCHANGE(&opdi_cpu_known, &unknown, usual)) { unknown = -1; }
    return opd_same_bits() ? same : level;
}
OPDI_COLD_END

//== threads ===========================================================================================================

#define OPDI_MAX_THREADS 256
#define OPDI_SCRATCH_MAX ((size_t)1 << 28)         /* the largest buffer of a thread in a job, in bytes */

static int opdi_threads_wanted;                   /* 0: not determined yet */

OPDI_COLD_BEGIN
static int opdi_threads_default(void) {
    long count = 1;
#if !defined(OPD_NO_THREADS)
    const char *text = getenv("OPD_NUM_THREADS");
    if (text) { count = strtol(text, NULL, 10); }
#if defined(_WIN32)
    if (!text || count < 1) { count = pthread_num_processors_np(); }
#else
    if (!text || count < 1) { count = sysconf(_SC_NPROCESSORS_ONLN); }
#endif
#endif
    return (int)OPDI_MAX(1, OPDI_MIN(count, OPDI_MAX_THREADS));
}

int opd_threads(void) {
    int count = OPDI_LOAD(&opdi_threads_wanted);
    if (OPDI_LIKELY(count > 0)) { return count; }
    count = opdi_threads_default();
    OPDI_STORE(&opdi_threads_wanted, count);
    return count;
}

int opd_threads_set(int count) {
    const int was = opd_threads();
#if defined(OPD_NO_THREADS)
    count = 1;
#endif
    if (count <= 0) { count = opdi_threads_default(); }
    if (count > OPDI_MAX_THREADS) { count = OPDI_MAX_THREADS; }
    OPDI_STORE(&opdi_threads_wanted, count);
    return was;
}

#if defined(OPD_NO_THREADS)

OPDI_COLD_END
OPDI_INTERNAL void opdi_parallel_for_scratch(int64_t count, int64_t grain, opdi_range_fn fn, void *ctx, size_t bytes) {
    (void)grain;
    (void)bytes;
    if (count > 0) { fn(ctx, 0, count); }
}
OPDI_INTERNAL char *opdi_scratch_alloc(size_t bytes) { return opdi_data_alloc((int64_t)bytes); }
OPDI_INTERNAL void opdi_scratch_free(char *memory, size_t bytes) { opdi_data_free(memory, (int64_t)bytes); }

#else

/* The pool of worker threads runs one job at a time.  The thread that sets `busy` owns the pool.  Workers join an
   open job under the lock and count themselves in `active`, so that the owner knows when the last worker has left. */
typedef struct opdi_pool {
    pthread_mutex_t lock;
    pthread_cond_t wake, done;
    int busy;                                     /* taken with an atomic exchange */
    int threads;                                  /* number of workers */
    int sleeping;                                 /* number of workers that wait for `wake` */
    int open;                                     /* number of workers that may still join the job */
    int active;                                   /* number of workers that work on the job now */
    int joined;                                   /* number of workers that have joined the job */
    uint32_t generation;                          /* counts jobs */
    opdi_range_fn fn;
    void *ctx;
    int64_t count, step, next;                    /* count: items; step: items per range; next: first item of the next
                                                     range */
    char *scratch;                                /* threads * `bytes` of scratch memory, or NULL */
    size_t bytes;
    bool same;                                    /* opd_same_bits() of the owner */
} opdi_pool;

static opdi_pool opdi_the_pool = {
    /* lock, wake, done */ PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER,
    /* busy, threads, sleeping, open, active, joined, generation */ 0, 0, 0, 0, 0, 0, 0,
    /* fn, ctx, count, step, next, scratch, bytes, same */ NULL, NULL, 0, 0, 0, NULL, 0, false};
static pthread_once_t opdi_pool_once = PTHREAD_ONCE_INIT;
static OPDI_TLS int opdi_in_parallel;             /* nonzero: this thread runs part of a job */
static OPDI_TLS char *opdi_thread_scratch, *opdi_scratch_next; /* this thread's part of `scratch`, and the first free
                                                                  byte in it */
static OPDI_TLS size_t opdi_scratch_left;

/* Returns `bytes` bytes of scratch memory for a kernel, or NULL and sets an error if memory runs out.  The caller frees
   the memory by opdi_scratch_free with the same `bytes`.

   Inside a job, the memory comes from the job's buffer (`scratch`) if enough of it is left; blocks from this buffer
   must be freed in reverse order.  Outside of jobs, the memory is allocated like the memory of tensors, so that the
   memory plan of a graph's run includes it. */
OPDI_INTERNAL char *opdi_scratch_alloc(size_t bytes) {
    if (!opdi_in_parallel) { return opdi_data_alloc((int64_t)bytes); }
    bytes = OPDI_MAX(bytes, 1);                   /* gives each block its own address */
    if (OPDI_SCRATCH_BYTES(bytes) > opdi_scratch_left) { return (char *)opdi_alloc(bytes); }
    char *const memory = opdi_scratch_next;
    opdi_scratch_next += OPDI_SCRATCH_BYTES(bytes);
    opdi_scratch_left -= OPDI_SCRATCH_BYTES(bytes);
    return memory;
}
OPDI_INTERNAL void opdi_scratch_free(char *memory, size_t bytes) {
    const bool borrowed = opdi_thread_scratch && (uintptr_t)memory >= (uintptr_t)opdi_thread_scratch &&
        (uintptr_t)memory < (uintptr_t)opdi_scratch_next;
    if (!opdi_in_parallel) {
        opdi_data_free(memory, (int64_t)bytes);
        return;
    }
    bytes = OPDI_MAX(bytes, 1);
    if (!borrowed) { opdi_free(memory, bytes); }
    else {
        opdi_scratch_next = memory;
        opdi_scratch_left += OPDI_SCRATCH_BYTES(bytes);
    }
}
/* Sets this thread's scratch memory to part number `number` of a job's buffer `scratch` (NULL: none).  A part has
   `bytes` bytes. */
static void opdi_scratch_set(char *scratch, size_t bytes, int number) {
    opdi_thread_scratch = opdi_scratch_next = scratch ? scratch + (size_t)number * bytes : NULL;
    opdi_scratch_left = scratch ? bytes : 0;
}

/* Resets the pool in the child process of a fork, where the pool has no workers. */
OPD_UNUSED static void opdi_pool_child(void) {
    opdi_pool *pool = &opdi_the_pool;
    memset(pool, 0, sizeof *pool);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->done, NULL);
}
static void opdi_pool_start(void) { (void)pthread_atfork(NULL, NULL, opdi_pool_child); }

static inline void opdi_pause(void) {
#if defined(OPDI_X86)
    __builtin_ia32_pause();
#elif defined(OPDI_NEON)
    __asm__ volatile("yield");
#endif
}

/* Waits a little for an event.  The caller calls this function with round = 0, 1, 2, ... until the event has happened
   or the result is false.  That is after some 100 us, which is longer than the time between two products of a network:
   to wake a thread that sleeps takes as long as a small product.  After a few us, other threads that wait for this core
   get it first, so that more threads than cores do not slow each other down.  Only this function uses *end. */
static bool opdi_pool_spin(int round, int64_t *end) {
    if (round < 256) {
        opdi_pause();
        return true;
    }
    if (round == 256) { *end = opdi_clock() + 100000; }
    (void)sched_yield();
    return opdi_clock() < *end;
}

static void opdi_pool_work(opdi_range_fn fn, void *ctx, int64_t count, int64_t step) {
    opdi_pool *pool = &opdi_the_pool;
    for (;;) {
        int64_t begin = __atomic_fetch_add(&pool->next, step, __ATOMIC_RELAXED);
        if (begin >= count) { return; }
        fn(ctx, begin, count - begin < step ? count : begin + step);
    }
}

/* Runs a worker, which never returns.  The worker joins each open job that it has not joined before, and counts itself
   in `active` while it takes ranges.  Then it spins a little and sleeps on `wake` until there is another job. */
static void *opdi_pool_worker(void *unused) {
    opdi_pool *pool = &opdi_the_pool;
    uint32_t seen = 0;
    int64_t end = 0;
    (void)unused;
    opdi_in_parallel = 1;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        if (pool->generation != seen && pool->open > 0) {
            seen = pool->generation;
            pool->open--;
            OPDI_STORE(&pool->active, pool->active + 1);
            opdi_range_fn fn = pool->fn;
            void *ctx = pool->ctx;
            int64_t count = pool->count, step = pool->step;
            opdi_scratch_set(pool->scratch, pool->bytes, ++pool->joined);
            opdi_same_chosen = pool->same ? 2 : 1;
            pthread_mutex_unlock(&pool->lock);
            opdi_pool_work(fn, ctx, count, step);
            opdi_scratch_set(NULL, 0, 0);
            if (opdi_thread_self) { opdi_thread_self->error = OPD_OK; }   /* the job itself reports failures */
            pthread_mutex_lock(&pool->lock);
            OPDI_PUBLISH(&pool->active, pool->active - 1);
            if (pool->active == 0) { pthread_cond_signal(&pool->done); }
        }
        seen = pool->generation;
        pthread_mutex_unlock(&pool->lock);
        int tries = 0;
        while (OPDI_LOAD(&pool->generation) == seen && opdi_pool_spin(tries, &end)) { tries++; }
        pthread_mutex_lock(&pool->lock);
        if (pool->generation == seen) {
            pool->sleeping++;
            pthread_cond_wait(&pool->wake, &pool->lock);
            pool->sleeping--;
        }
    }
    return NULL;
}
OPDI_COLD_END

/* Starts workers until there are `want`.  The caller holds the lock.  If the system cannot create a thread, the pool
   has fewer workers. */
static void opdi_pool_grow(opdi_pool *pool, int want) {
    while (pool->threads < want) {
        pthread_t id;
        if (opdi_thread_start(&id, opdi_pool_worker, NULL)) { break; }
        (void)pthread_detach(id);
        pool->threads++;
    }
}

/* Runs a job, in which the calling thread takes part.  The caller has set `busy`.  Opens the job for `workers` workers,
   takes ranges of `step` items until all of [0, count) are taken, closes the job, and waits until the last worker has
   left.  `scratch` has `bytes` bytes of scratch memory for each thread. */
static void opdi_pool_run(opdi_pool *pool, int workers, int64_t count, int64_t step, opdi_range_fn fn, void *ctx,
                          char *scratch, size_t bytes) {
    pthread_once(&opdi_pool_once, opdi_pool_start);
    pthread_mutex_lock(&pool->lock);
    opdi_pool_grow(pool, workers);
    pool->fn = fn;
    pool->ctx = ctx;
    pool->count = count;
    pool->step = step;
    __atomic_store_n(&pool->next, 0, __ATOMIC_RELAXED);
    pool->open = workers;
    pool->joined = 0;
    pool->scratch = scratch;
    pool->bytes = bytes;
    pool->same = opd_same_bits();
    OPDI_STORE(&pool->generation, pool->generation + 1);
    if (pool->sleeping > 0) { pthread_cond_broadcast(&pool->wake); }
    pthread_mutex_unlock(&pool->lock);
    opdi_in_parallel = 1;
    opdi_pool_work(fn, ctx, count, step);
    opdi_in_parallel = 0;
    pthread_mutex_lock(&pool->lock);
    pool->open = 0;                               /* now no worker can join */
    if (pool->active > 0) {
        int64_t end = 0;
        int tries = 0;
        pthread_mutex_unlock(&pool->lock);
        while (OPDI_LOAD(&pool->active) > 0 && opdi_pool_spin(tries, &end)) { tries++; }
        pthread_mutex_lock(&pool->lock);
        while (pool->active > 0) { pthread_cond_wait(&pool->done, &pool->lock); }
    }
    pthread_mutex_unlock(&pool->lock);
}

/* Like opdi_parallel_for, for a function that uses opdi_scratch_alloc.  `fn` uses at most `bytes` bytes of scratch
   memory at a time, in blocks that are rounded up to 64 bytes.  The caller's thread allocates a buffer for all threads,
   so that no other thread has to allocate. */
OPDI_INTERNAL void opdi_parallel_for_scratch(int64_t count, int64_t grain, opdi_range_fn fn, void *ctx, size_t bytes) {
    opdi_pool *pool = &opdi_the_pool;
    const int threads = opd_threads();
    if (count <= 0) { return; }
    if (grain < 1) { grain = 1; }
    const int64_t chunks = (count - 1) / grain + 1;
    const int workers = (int)OPDI_MIN((int64_t)threads - 1, chunks - 1);
    if (workers < 1 || opdi_in_parallel || count > INT64_MAX / 4) {
        fn(ctx, 0, count);
        return;
    }
#if defined(OPD_NO_CACHE)
    bytes = 0;                                    /* allocate each block separately */
#endif
    const size_t parts = (size_t)workers + 1;
    const size_t all = bytes <= OPDI_SCRATCH_MAX && bytes <= SIZE_MAX / 4 / parts ? parts * bytes : 0;
    const int mark = opd_error_mark();
    char *const scratch = all ? opdi_data_alloc((int64_t)all) : NULL;
    (void)opd_error_rewind(mark);
    opdi_scratch_set(scratch, bytes, 0);
    if (__atomic_exchange_n(&pool->busy, 1, __ATOMIC_ACQUIRE)) {
        opdi_in_parallel = 1;
        fn(ctx, 0, count);
        opdi_in_parallel = 0;
    } else {
        /* up to eight ranges per thread, so that an interrupted thread does not delay the other threads */
        const int64_t per = chunks / ((int64_t)threads * 8);
        opdi_pool_run(pool, workers, count, (per < 1 ? 1 : per) * grain, fn, ctx, scratch, bytes);
        OPDI_PUBLISH(&pool->busy, 0);
    }
    opdi_scratch_set(NULL, 0, 0);
    if (scratch) { opdi_data_free(scratch, (int64_t)all); }
}

#endif

/* Runs fn over [0, count) in ranges that begin at multiples of `grain`.  The calling thread takes part.  It does all
   the work if there is only one range, if the call is inside another opdi_parallel_for, or if another thread owns the
   pool. */
OPDI_INTERNAL void opdi_parallel_for(int64_t count, int64_t grain, opdi_range_fn fn, void *ctx) {
    opdi_parallel_for_scratch(count, grain, fn, ctx, 0);
}
OPDI_LOOPS_END
