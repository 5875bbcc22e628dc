//----------------------------------------------------------------------------------------------------------------------
//  >>base_h       memory, threads and errors: types and inline functions that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_BASE_H)
#define OPDI_BASE_H
#include "declarations.h"
#include "parts.h"
#include "platform.h"

//== log ===============================================================================================================

typedef struct opdi_log_target {
    opdi_mutex lock; opd_log_fn fn; void *user;
} opdi_log_target;

//== threads ===========================================================================================================

typedef struct opdi_retired {
    struct opdi_retired *next;                    /* oldest first */
    uint64_t stamp;
    void (*give_back)(struct opdi_retired *gone);
} opdi_retired;

//== the stack =========================================================================================================
//
//  The largest calls need about 100 KB of stack.  A thread with a small stack must get an error before its stack
//  overflows.  So functions ask opdi_stack_short before they use much of the stack, and calls ask it in
//  opdi_beyond_limit.

#define OPDI_STACK_ENOUGH ((size_t)256 << 10)     /* threads with smaller stacks are examined */
/* OPDI_STACK_CALL: enough for a call, except for kernels that ask for more.  OPDI_STACK_FOR: enough for arrays of
   `bytes` bytes, and for the functions around them.  Frames are larger in builds without optimisation. */
#if defined(__OPTIMIZE__) && !defined(OPDI_SANITIZED)
#define OPDI_STACK_CALL ((size_t)32 << 10)
#define OPDI_STACK_FOR(bytes) ((size_t)(bytes) + ((size_t)9 << 10))
#else
#define OPDI_STACK_CALL ((size_t)48 << 10)
#define OPDI_STACK_FOR(bytes) ((size_t)(bytes) + ((size_t)24 << 10))
#endif
OPDI_VARIABLE int opdi_small_stacks;              /* how many threads have smaller stacks than OPDI_STACK_ENOUGH */
/* Returns true if the address p lies on the stack that the system gave this thread, and not on the stack of a coroutine
   or a signal handler. */
static inline bool opdi_on_own_stack(const opdi_thread *thread, uintptr_t p) {
    return p - thread->stack_low < thread->stack_bytes;
}
static inline bool opdi_stack_is_small(const opdi_thread *thread) {
    return thread->stack_bytes && thread->stack_bytes < OPDI_STACK_ENOUGH;
}
OPDI_NOINLINE OPDI_INTERNAL size_t opdi_stack_left(void);
OPDI_NOINLINE OPDI_INTERNAL bool opdi_stack_is_short(const char *name, size_t need);
/* Returns true and sets an error if this thread has a small stack, of which less than `need` bytes are left.  The
   message says that `name` needs them; NULL: the running kernel. */
static inline bool opdi_stack_short(const char *name, size_t need) {
    return OPDI_UNLIKELY(OPDI_LOAD(&opdi_small_stacks) != 0) && opdi_stack_is_short(name, need);
}

//== memory ============================================================================================================

#define OPDI_THREAD_CACHE ((int64_t)8 << 20)      /* the most bytes of free blocks that a thread keeps */
#define OPDI_MEDIUM ((size_t)65536)               /* size of the largest blocks that have a size class */
/* opdi_fail_on: not 0 if allocations need extra work: bit 0 is set while opd_memory_fail_at counts them, and each
   opdi_poison and each thread with a limit of bytes adds 2.  opdi_fail_forever: all allocations after the failing one
   fail, too. */
OPDI_VARIABLE int opdi_fail_on, opdi_fail_forever;
/* opdi_typeof returns the size class of a block of `count` bytes, 1 <= count <= OPDI_MEDIUM.  opdi_typebytes returns
   the size in bytes of the blocks of a class. */
static inline int opdi_typeof(size_t count) {
    if (count <= 1024) { return (int)((count - 1) >> 4); }
    int power = opdi_top_bit((uint64_t)count - 1);
    return OPDI_SMALL_CLASSES + (power - 10) * 4 + (int)(((count - 1) >> (power - 2)) & 3);
}
static inline size_t opdi_typebytes(int size_class) {
    if (size_class < OPDI_SMALL_CLASSES) { return (size_t)(size_class + 1) << 4; }
    int power = 10 + (size_class - OPDI_SMALL_CLASSES) / 4;
    return ((size_t)1 << power) + ((size_t)((size_class - OPDI_SMALL_CLASSES) % 4 + 1) << (power - 2));
}
/* Returns the size to which the size `count` of a block larger than OPDI_MEDIUM is rounded up.  Between two powers of
   two there are eight such sizes. */
static inline size_t opdi_large_bytes(size_t count) {
    size_t step = (size_t)1 << (opdi_top_bit((uint64_t)count - 1) - 3);
    return (count + step - 1) & ~(step - 1);
}
#if !defined(OPD_NO_CACHE)
/* The free blocks larger than OPDI_MEDIUM, for all threads: a list for each size.  cached: bytes in the lists.  peak:
   the most bytes that were in use at one time lately, see opdi_large_limit.  hand: the index of the list from which
   blocks were freed last. */
typedef struct opdi_large_blocks {
    opdi_mutex lock; int64_t cached, peak; int hand; opdi_free_block *lists[32 * 8];
} opdi_large_blocks;
#endif
#define OPDI_MAX_POISONED 1024
/* Used by opcheck: new blocks of a thread are filled with `byte` and recorded in blocks[count]. */
typedef struct opdi_poison {
    struct opdi_poison *outer;
    int byte, count;
    const void *blocks[OPDI_MAX_POISONED];
} opdi_poison;
OPDI_INTERNAL void *opdi_raw_alloc(size_t size);
OPDI_INTERNAL void opdi_live_flush(opdi_thread *thread);
OPDI_NOINLINE OPDI_INTERNAL void *opdi_out_of_memory(size_t count);
OPDI_NOINLINE OPDI_INTERNAL bool opdi_fail_now(void);
OPDI_NOINLINE OPDI_INTERNAL bool opdi_alloc_denied(const opdi_thread *thread, size_t size);
#if !defined(OPD_NO_CACHE)
OPDI_INTERNAL void *opdi_large_cache_take(size_t rounded);
#endif
OPDI_NOINLINE OPDI_INTERNAL void *opdi_alloc_filled(opdi_thread *thread, size_t n);
/* Allocates `size` bytes, which the caller frees by opdi_free with the same size.  Returns NULL and sets an error if
   memory runs out. */
static inline void *opdi_alloc(size_t size) {
    opdi_thread *thread = opdi_self();
    const size_t asked = size ? size : 1;
    void *memory = NULL;
    thread->allocations++;
    if (OPDI_UNLIKELY(OPDI_LOAD(&opdi_fail_on))) {
        if (opdi_alloc_denied(thread, size)) { return NULL; }
        if (thread->poison) { return opdi_alloc_filled(thread, size); }
    }
    size = asked;
    thread->live_delta += (int64_t)asked;
#if !defined(OPD_NO_CACHE)
    if (OPDI_LIKELY(size <= OPDI_MEDIUM)) {
        int size_class = opdi_typeof(size);
        opdi_free_block *block = thread->free_lists[size_class];
        size = opdi_typebytes(size_class);
        if (OPDI_LIKELY(block != NULL)) {
            thread->free_lists[size_class] = block->next;
            thread->cached -= (int64_t)size;
            memory = block;
        }
    } else if (size <= SIZE_MAX / 4) {
        size = opdi_large_bytes(size);
        memory = opdi_large_cache_take(size);
    }
#endif
    if (!memory) { memory = opdi_raw_alloc(size); }
    if (OPDI_UNLIKELY(!memory)) {
        thread->live_delta -= (int64_t)asked;
        return opdi_out_of_memory(size);
    }
    thread->allocated += (int64_t)size;
    if (OPDI_UNLIKELY(thread->live_delta > 65536)) { opdi_live_flush(thread); }
    return memory;
}

OPDI_INTERNAL void opdi_raw_free(void *memory, size_t size);
#if !defined(OPD_NO_CACHE)
OPDI_NOINLINE OPDI_INTERNAL void opdi_cache_evict(opdi_thread *thread, int size_class);
OPDI_INTERNAL bool opdi_large_cache_put(void *memory, size_t rounded);
#endif
/* Frees the `size` bytes at `memory`, which opdi_alloc returned.  Unless the cache is full, a block of up to
   OPDI_MEDIUM bytes goes to this thread's free list of its size class, and a larger block to a list for all threads.
   `memory` may be NULL. */
static inline void opdi_free(void *memory, size_t size) {
    if (!memory) { return; }
    opdi_thread *thread = opdi_self();
    if (size == 0) { size = 1; }
    thread->live_delta -= (int64_t)size;
#if !defined(OPD_NO_CACHE)
    if (OPDI_LIKELY(size <= OPDI_MEDIUM)) {
        int size_class = opdi_typeof(size);
        size = opdi_typebytes(size_class);
        if (OPDI_UNLIKELY(thread->cached + (int64_t)size > OPDI_THREAD_CACHE)) { opdi_cache_evict(thread, size_class); }
        if (OPDI_LIKELY(thread->cached + (int64_t)size <= OPDI_THREAD_CACHE)) {
            opdi_free_block *block = (opdi_free_block *)memory;
            block->next = thread->free_lists[size_class];
            thread->free_lists[size_class] = block;
            thread->cached += (int64_t)size;
            return;
        }
    } else {
        size = opdi_large_bytes(size);
        if (thread->live_delta < -65536) { opdi_live_flush(thread); }
        if (opdi_large_cache_put(memory, size)) { return; }
    }
#else
    if (OPDI_UNLIKELY(thread->live_delta < -65536)) { opdi_live_flush(thread); }
#endif
    opdi_raw_free(memory, size);
}
#if !defined(OPD_NO_CACHE)
OPDI_NOINLINE OPDI_INTERNAL void opdi_quarantine_fill(opdi_thread *thread, int size_class);
#endif
/* Frees a block that begins with the header of a tensor.  The block is reused only after other blocks of its class have
   been freed.  So code that still uses the tensor finds the mark of a freed tensor (opdi_dead_tensor), and not another
   tensor. */
static inline void opdi_free_quarantined(void *memory, size_t size) {
#if !defined(OPD_NO_CACHE)
    opdi_thread *thread = opdi_self();
    if (OPDI_LIKELY(size <= OPDI_QUARANTINE_BYTES && thread->cached + OPDI_QUARANTINE_BYTES <= OPDI_THREAD_CACHE)) {
        const int size_class = opdi_typeof(size);
        const unsigned at = thread->late_at[size_class];
        if (OPDI_UNLIKELY(!thread->late[size_class][at])) { opdi_quarantine_fill(thread, size_class); }
        opdi_free_block *block = (opdi_free_block *)thread->late[size_class][at];
        thread->live_delta -= (int64_t)size;
        thread->cached += (int64_t)opdi_typebytes(size_class);
        if (OPDI_LIKELY(block != NULL)) {
            block->next = thread->free_lists[size_class];
            thread->free_lists[size_class] = block;
        }
        thread->late[size_class][at] = memory;
        thread->late_at[size_class] = (uint8_t)((at + 1) & (OPDI_QUARANTINE - 1));
        return;
    }
#endif
    opdi_free(memory, size);
}

//== interruptions and limits ==========================================================================================

OPDI_VARIABLE int opdi_interrupts;                /* 1 after opd_interrupt; a signal handler may write it */
OPDI_NOINLINE OPDI_INTERNAL bool opdi_run_end(const opdi_thread *thread);
/* Returns true and sets an error if the runs of this thread must end.  Runs call it before each operator or node. */
static inline bool opdi_run_ends(const opdi_thread *thread) {
    return OPDI_UNLIKELY(OPDI_LOAD(&opdi_interrupts) || thread->limits.until) && opdi_run_end(thread);
}
OPDI_NOINLINE OPDI_INTERNAL bool opdi_node_count(opdi_thread *thread);
/* Counts a node or value that is made.  Returns true and sets an error if the limit of this thread for nodes or for the
   time is reached, or if the thread's stack is too small. */
static inline bool opdi_node_denied(void) {
    opdi_thread *const thread = opdi_self();
    return OPDI_UNLIKELY(thread->limits.nodes || thread->limits.until || OPDI_LOAD(&opdi_small_stacks)) &&
        opdi_node_count(thread);
}
/* Returns how deep a file may be nested: `most`, or the limit of this thread if that is smaller.  If little of the
   stack is left, returns -1 and sets an error. */
static inline int opdi_depth_most(int most) {
    const int limit = opdi_self()->limits.depth;
    return opdi_stack_is_short(NULL, OPDI_STACK_CALL) ? -1 : limit && limit < most ? limit : most;
}

//== planned memory ====================================================================================================

/* The bytes in front of a block's data.  Without them, data whose size is a power of two would always begin at the same
   offset of a page. */
#define OPDI_DATA_OFFSET 192
typedef struct opdi_live_range {
    int64_t bytes, at;           /* bytes: bytes of data; at: offset in the region, or -1: not in the region */
    int32_t born, died;          /* steps of allocation and free; OPDI_NEVER: not freed in the run */
} opdi_live_range;
typedef struct opdi_region {
    int64_t bytes;               /* the size of this region */
    int32_t refs;                /* one for each block in use in the region, and one for the plan */
} opdi_region;
/* The plan for the memory of a graph's runs.  Only one run at a time uses the plan. */
typedef struct opdi_planned {
    opdi_live_range *ranges;
    int32_t count, cap, next, clock;              /* count: number of ranges; cap: size of the array; next: index of the
                                                     next range in this run; clock: number of the next allocation or
                                                     free */
    int32_t steps;               /* how many allocations and frees the recorded run has made */
    int32_t misses;              /* consecutive runs that differed from the one before */
    bool follows;                /* so far, this run has made the steps of the recorded run */
    bool placed;                 /* the ranges of the recorded run have their offsets */
    opdi_region *region;
    int64_t bytes;               /* size of the region that all ranges share */
} opdi_planned;

//== arenas ============================================================================================================

/* A bump allocator, for many small objects that are freed together.  An arena that is all zero is empty. */
typedef struct opdi_arena_block {
    struct opdi_arena_block *next;
    size_t size;                                  /* the size passed to opdi_alloc */
} opdi_arena_block;
typedef struct opdi_arena {
    opdi_arena_block *blocks;                     /* the newest block first */
    char *at, *end;                               /* the free part of the newest block */
} opdi_arena;
/* A set of pointers: at[0 .. count) in the order in which they were added, and a hash table of their indices. */
typedef struct opdi_pointer_set { uintptr_t *at; int64_t count, cap; int64_t *table; } opdi_pointer_set;

/* A hash table that finds an entry by the bytes of its key.  It does not copy keys.  A table that is all zero is empty.
   Hashes depend on a number that each process chooses, so that no file can contain many keys with equal hashes. */
typedef struct opdi_index_slot { const char *key; size_t length; uint64_t hash; void *entry; } opdi_index_slot;
typedef struct opdi_index { opdi_index_slot *slots; size_t count, cap; } opdi_index;

//== functions of higher layers that this layer calls ==================================================================

OPDI_INTERNAL void opdi_process_begin(void);
#include "base.prototypes.h"
#endif

