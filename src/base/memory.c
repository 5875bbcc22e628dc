#include "base.h"

//== allocation ========================================================================================================
//
//  Blocks of up to 64 KiB come from the thread's free lists, one for each size class, and larger blocks from shared
//  lists.  Reusing a block that was just freed costs no page faults.  The caller that frees a block passes its size, so
//  blocks have no headers.

#define OPDI_LARGE_CACHE ((int64_t)512 << 20)     /* bytes of large free blocks that are kept in any case */
#define OPDI_ALIGN ((size_t)64)
#define OPDI_HUGE ((size_t)2 << 20)

#if defined(OPDI_DIVIDED)                         /* base.h declares these variables */
int opdi_fail_on, opdi_fail_forever;
#endif
static int64_t opdi_fail_count, opdi_fail_seen;   /* the countdown of opd_memory_fail_at; the number of allocations
                                                     since it was called */

static inline int opdi_large_class(size_t rounded) {
    int power = opdi_top_bit((uint64_t)rounded - 1);
    return ((power - 16) * 8 + (int)(((rounded - 1) >> (power - 3)) & 7)) % (32 * 8);
}
static inline size_t opdi_large_typebytes(int size_class) {
    return (size_t)(9 + size_class % 8) << (13 + size_class / 8);
}

#if !defined(OPD_NO_CACHE)
static bool opdi_large_empty(void);
#endif
/* Allocates `size` bytes by OPD_MALLOC.  Returns NULL, without an error, if memory runs out even after the large free
   blocks are freed.  Blocks over 1 KiB are aligned to a cache line, and blocks of 4 MiB or more to a huge page.  The
   word before an aligned block holds the address that OPD_MALLOC returned. */
OPDI_INTERNAL void *opdi_raw_alloc(size_t size) {
    size_t align = size >= 2 * OPDI_HUGE ? OPDI_HUGE : OPDI_ALIGN;
    if (size <= 1024) { return OPD_MALLOC(size); }
    if (size > SIZE_MAX / 2) { return NULL; }
    char *raw = (char *)OPD_MALLOC(size + align + sizeof(void *));
#if !defined(OPD_NO_CACHE)
    if (!raw && opdi_large_empty()) { raw = (char *)OPD_MALLOC(size + align + sizeof(void *)); }
#endif
    if (!raw) { return NULL; }
    char *at = (char *)(((uintptr_t)raw + sizeof(void *) + align - 1) & ~(uintptr_t)(align - 1));
    memcpy(at - sizeof(void *), &raw, sizeof raw);
#if defined(MADV_HUGEPAGE) && !defined(OPD_NO_CACHE)
    if (align == OPDI_HUGE) { (void)madvise(at, size & ~(OPDI_HUGE - 1), MADV_HUGEPAGE); }
#endif
    return at;
}

OPDI_INTERNAL void opdi_raw_free(void *memory, size_t size) {
    char *raw;
    if (size <= 1024) {
        OPD_FREE(memory);
        return;
    }
    memcpy(&raw, (char *)memory - sizeof(void *), sizeof raw);
    OPD_FREE(raw);
}

/* Gives whole pages of a block back to the system.  Their contents are lost, but the block stays allocated. */
OPDI_INTERNAL void opdi_pages_forget(void *memory, size_t size) {
#if defined(MADV_DONTNEED)
    const uintptr_t page = 65536;                 /* no page is larger */
    const uintptr_t from = ((uintptr_t)memory + page - 1) & ~(page - 1), to = ((uintptr_t)memory + size) & ~(page - 1);
    if (from < to) { (void)madvise((void *)from, to - from, MADV_DONTNEED); }
#else
    (void)memory;
    (void)size;
#endif
}

OPDI_INTERNAL void opdi_live_flush(opdi_thread *thread) {
    int64_t total = OPDI_ADD(&opdi_live_total, thread->live_delta), peak = OPDI_LOAD(&opdi_live_peak);
    thread->live_before += thread->live_delta;
    thread->live_delta = 0;
    if (total > peak) { OPDI_STORE(&opdi_live_peak, total); }
}

OPDI_NOINLINE OPDI_INTERNAL void *opdi_out_of_memory(size_t count) {
    (void)opd_fail(OPD_ERROR_MEMORY, "out of memory: an allocation of %llu bytes failed", (unsigned long long)count);
    return NULL;
}

/* Counts an allocation for opd_memory_fail_at.  Returns true if the test wants this allocation to fail. */
OPDI_NOINLINE OPDI_INTERNAL bool opdi_fail_now(void) {
    (void)OPDI_ADD(&opdi_fail_seen, 1);
    if (OPDI_LOAD(&opdi_fail_count) <= 0) { return OPDI_LOAD(&opdi_fail_count) < 0; }
    int64_t left = OPDI_ADD(&opdi_fail_count, -1);
    if (left == 0 && OPDI_LOAD(&opdi_fail_forever)) { OPDI_STORE(&opdi_fail_count, -1); }
    return left == 0;
}

/* Called for each allocation while opdi_fail_on is not 0.  Returns true and sets an error if the allocation must fail,
   because a test wants this or because the thread's limit is reached. */
OPDI_NOINLINE OPDI_INTERNAL bool opdi_alloc_denied(const opdi_thread *thread, size_t size) {
    const int64_t limit = thread->limits.bytes;
    if ((OPDI_LOAD(&opdi_fail_on) & 1) && opdi_fail_now()) { return opdi_out_of_memory(size) == NULL; }
    if (!limit || (int64_t)size <= limit - thread->live_before - thread->live_delta) { return false; }
    (void)opd_fail(OPD_ERROR_MEMORY, "an allocation of %llu bytes would exceed the limit for the memory of this thread "
                   "(opd_limits_set)", (unsigned long long)size);
    return true;
}

#if !defined(OPD_NO_CACHE)
/* Makes room in a thread's cache for a block of size_class: frees cached blocks of other size classes, one class after
   another, so that blocks of earlier work do not stay for ever. */
OPDI_NOINLINE OPDI_INTERNAL void opdi_cache_evict(opdi_thread *thread, int size_class) {
    opdi_live_flush(thread);
    for (int tried = 0; tried < OPDI_CLASSES && thread->cached > OPDI_THREAD_CACHE / 8 * 7; tried++) {
        const int h = thread->hand = (thread->hand + 1) % OPDI_CLASSES;
        while (h != size_class && thread->free_lists[h]) {
            opdi_free_block *const block = thread->free_lists[h];
            thread->free_lists[h] = block->next;
            thread->cached -= (int64_t)opdi_typebytes(h);
            opdi_raw_free(block, opdi_typebytes(h));
        }
    }
}
OPDI_INTERNAL opdi_large_blocks opdi_large = {
    OPDI_MUTEX_INIT, 0, 0, 0, {NULL}};

/* Removes blocks from the lists, one class after another, until at most `limit` bytes are cached.  Leaves the list of
   `size_class` as it is.  The caller has locked opdi_large.lock, and frees the removed blocks, which it returns, after
   unlocking. */
static opdi_free_block *opdi_large_evict(int size_class, int64_t limit) {
    opdi_free_block *gone = NULL;
    for (int tried = 0; limit >= 0 && opdi_large.cached > limit && tried < 32 * 8; tried++) {
        const int h = opdi_large.hand = (opdi_large.hand + 1) % (32 * 8);
        while (h != size_class && opdi_large.lists[h] && opdi_large.cached > limit) {
            opdi_free_block *const other = opdi_large.lists[h];
            opdi_large.lists[h] = other->next;
            opdi_large.cached -= (int64_t)opdi_large_typebytes(h);
            other->next = gone;
            gone = other;
        }
    }
    return gone;
}
static void opdi_large_drop(opdi_free_block *gone) {
    for (opdi_free_block *block; (block = gone) != NULL;) {
        gone = block->next;
        opdi_raw_free(block, OPDI_MEDIUM + 1);
    }
}
/* Frees all blocks in the lists.  Returns true if there were any. */
static bool opdi_large_empty(void) {
    opdi_lock(&opdi_large.lock);
    opdi_free_block *const gone = opdi_large_evict(-1, 0);
    opdi_unlock(&opdi_large.lock);
    opdi_large_drop(gone);
    return gone != NULL;
}
/* Returns how many bytes of large free blocks may be kept if `live` bytes are in use.  The caller has locked
   opdi_large.lock.  Free blocks and blocks in use together may be OPDI_LARGE_CACHE bytes more than the most that were
   in use at one time lately.  So repeated work finds all of its blocks again, even if it frees nearly all of them in
   between. */
static int64_t opdi_large_limit(int64_t live) {
    opdi_large.peak = OPDI_MAX(opdi_large.peak, live);
    return OPDI_LARGE_CACHE + opdi_large.peak - live;
}

/* Takes a block of `rounded` bytes from the lists.  If there is none, returns NULL, after freeing blocks of other sizes
   to make room for the block that the caller allocates.  This thread has already counted that block as in use. */
OPDI_INTERNAL void *opdi_large_cache_take(size_t rounded) {
    const int size_class = opdi_large_class(rounded);
    const opdi_thread *const thread = opdi_self();
    opdi_free_block *gone = NULL;
    opdi_lock(&opdi_large.lock);
    opdi_free_block *const block = opdi_large.lists[size_class];
    if (block) {
        opdi_large.lists[size_class] = block->next;
        opdi_large.cached -= (int64_t)rounded;
    } else {
        gone = opdi_large_evict(size_class, opdi_large_limit(OPDI_LOAD(&opdi_live_total) + thread->live_delta));
    }
    opdi_unlock(&opdi_large.lock);
    opdi_large_drop(gone);
    return block;
}
/* Puts a large free block of `rounded` bytes into the list of its size, and returns true.  If the cache is full, first
   frees blocks of other sizes, so that blocks of earlier work do not stay for ever.  Returns false if the cache is
   still full; then the block is not kept.  The peak falls slowly: 11,000 freed blocks halve its distance from the bytes
   in use. */
OPDI_INTERNAL bool opdi_large_cache_put(void *memory, size_t rounded) {
    const int size_class = opdi_large_class(rounded);
    const int64_t live = OPDI_LOAD(&opdi_live_total);
    opdi_free_block *const block = (opdi_free_block *)memory;
    opdi_lock(&opdi_large.lock);
    opdi_large.peak -= OPDI_MAX((int64_t)0, opdi_large.peak - live) / 16384;
    const int64_t limit = opdi_large_limit(live) - (int64_t)rounded;
    opdi_free_block *const gone = opdi_large_evict(size_class, limit);
    const bool kept = opdi_large.cached <= limit;
    if (kept) {
        block->next = opdi_large.lists[size_class];
        opdi_large.lists[size_class] = block;
        opdi_large.cached += (int64_t)rounded;
    }
    opdi_unlock(&opdi_large.lock);
    opdi_large_drop(gone);
    return kept;
}
#endif

/* Allocates n bytes for a thread with an opdi_poison: opdi_alloc calls this function during opcheck, which examines
   the bytes that a kernel writes.  Fills the block and the OPDI_GUARD bytes after it with poison->byte.  Returns NULL
   and sets an error if memory runs out. */
#define OPDI_GUARD ((size_t)64)
OPDI_NOINLINE OPDI_INTERNAL void *opdi_alloc_filled(opdi_thread *thread, size_t n) {
    opdi_poison *poison = thread->poison;
    size_t size = n ? n : 1;
    if (size > SIZE_MAX / 4) { return opdi_out_of_memory(n); }
#if !defined(OPD_NO_CACHE)
    size = size <= OPDI_MEDIUM ? opdi_typebytes(opdi_typeof(size)) : opdi_large_bytes(size);
#endif
    void *memory = size <= 1024 ? OPD_MALLOC(size + OPDI_GUARD) : opdi_raw_alloc(size + OPDI_GUARD);
    if (!memory) { return opdi_out_of_memory(n); }
    memset(memory, poison->byte, size + OPDI_GUARD);
    if (poison->count < OPDI_MAX_POISONED) { poison->blocks[poison->count++] = memory; }
    thread->live_delta += (int64_t)(n ? n : 1);
    thread->allocated += (int64_t)size;
    return memory;
}
/* Returns true if a kernel has written past the `size` bytes of a block that opdi_alloc_filled has filled. */
OPDI_INTERNAL bool opdi_is_overrun(const opdi_poison *poison, const void *block, size_t size) {
    const unsigned char *end = (const unsigned char *)block + size;
    int k;
    for (k = 0; k < poison->count && poison->blocks[k] != block; k++) { }
    for (size_t i = 0; k < poison->count && i < OPDI_GUARD; i++) {
        if (end[i] != (unsigned char)poison->byte) { return true; }
    }
    return false;
}

#if !defined(OPD_NO_CACHE)
/* Fills the list in which freed blocks of a size class wait (see opdi_free_quarantined) with new blocks.  From then on
   each block that enters the list pushes one out, so repeated work needs no more blocks than the first time.  If memory
   runs out, the list is shorter. */
OPDI_NOINLINE OPDI_INTERNAL void opdi_quarantine_fill(opdi_thread *thread, int size_class) {
    const size_t bytes = (size_t)(size_class + 1) << 4;       /* opdi_typebytes of a class of small blocks */
    for (int i = 0; i < OPDI_QUARANTINE; i++) {
        if (thread->late[size_class][i]) { continue; }
        thread->late[size_class][i] = opdi_raw_alloc(bytes);
        thread->cached += thread->late[size_class][i] ? (int64_t)bytes : 0;
    }
}
#endif

OPDI_INTERNAL void opdi_live_count(opdi_thread *thread, int64_t bytes) {
    thread->live_delta += bytes;
    if (thread->live_delta > 65536 || thread->live_delta < -65536) { opdi_live_flush(thread); }
}
/* Allocates `size` bytes without using a cache.  Returns NULL and sets an error if memory runs out.  The bytes are not
   added to the thread's counters: the caller does this. */
OPDI_INTERNAL void *opdi_fresh(size_t size) {
    if (OPDI_UNLIKELY(OPDI_LOAD(&opdi_fail_on)) && opdi_alloc_denied(opdi_self(), size)) { return NULL; }
    void *memory = opdi_raw_alloc(size);
    return memory ? memory : opdi_out_of_memory(size);
}
/* Allocates like opdi_alloc, but does not take a cached block.  Use it for objects that are made once and stay: then
   repeated work finds the same number of cached blocks each time. */
OPDI_INTERNAL void *opdi_alloc_fresh(size_t size) {
    opdi_thread *const thread = opdi_self();
    size_t rounded = size ? size : 1;
    if (thread->poison) { return opdi_alloc(size); }
#if !defined(OPD_NO_CACHE)
    rounded = rounded <= OPDI_MEDIUM ? opdi_typebytes(opdi_typeof(rounded)) : opdi_large_bytes(rounded);
#endif
    void *const memory = opdi_fresh(rounded);
    thread->allocations++;
    if (memory) {
        thread->allocated += (int64_t)rounded;
        opdi_live_count(thread, (int64_t)(size ? size : 1));
    }
    return memory;
}
/* Frees a block of opdi_alloc_fresh, and does not put it into a cache.  Otherwise each new block would stay in the
   cache for ever, because the next allocation does not take it from there. */
OPDI_INTERNAL void opdi_free_fresh(void *memory, size_t size) {
    size_t rounded = size ? size : 1;
    if (!memory) { return; }
    opdi_live_count(opdi_self(), -(int64_t)rounded);
#if !defined(OPD_NO_CACHE)
    rounded = rounded <= OPDI_MEDIUM ? opdi_typebytes(opdi_typeof(rounded)) : opdi_large_bytes(rounded);
#endif
    opdi_raw_free(memory, rounded);
}
/* opdi_lists_hide moves the cached blocks of this thread to `lists`, so that long-lived objects do not take them.
   opdi_lists_show moves them back. */
OPDI_INTERNAL void opdi_lists_hide(opdi_thread *thread, opdi_free_block *lists[OPDI_CLASSES]) {
    memcpy(lists, thread->free_lists, sizeof thread->free_lists);
    memset(thread->free_lists, 0, sizeof thread->free_lists);
}
OPDI_INTERNAL void opdi_lists_show(opdi_thread *thread, opdi_free_block *lists[OPDI_CLASSES]) {
    for (int i = 0; i < OPDI_CLASSES; i++) {
        opdi_free_block **end = &thread->free_lists[i];
        while (*end) { end = &(*end)->next; }
        *end = lists[i];
    }
}

OPDI_INTERNAL void opdi_cache_drain(opdi_thread *thread) {
    for (int i = 0; i < OPDI_QUARANTINE_CLASSES * OPDI_QUARANTINE; i++) {
        void **const late = &thread->late[i / OPDI_QUARANTINE][i % OPDI_QUARANTINE];
        if (*late) { opdi_raw_free(*late, opdi_typebytes(i / OPDI_QUARANTINE)); }
        *late = NULL;
    }
    for (int size_class = 0; size_class < OPDI_CLASSES; size_class++) {
        while (thread->free_lists[size_class]) {
            opdi_free_block *block = thread->free_lists[size_class];
            thread->free_lists[size_class] = block->next;
            opdi_raw_free(block, opdi_typebytes(size_class));
        }
    }
    thread->cached = 0;
}

OPDI_COLD_BEGIN

/* Frees the cached blocks of this thread, and the large blocks that are kept for all threads. */
void opd_memory_trim(void) {
    opdi_cache_drain(opdi_self());
#if !defined(OPD_NO_CACHE)
    (void)opdi_large_empty();
    opdi_lock(&opdi_large.lock);
    opdi_large.peak = 0;
    opdi_unlock(&opdi_large.lock);
#endif
}

/* Returns the sums over all threads.  The numbers of other running threads may be slightly old. */
opd_memory opd_memory_stats(void) {
    opd_memory memory;
    opdi_thread *thread = opdi_self();
    opdi_live_flush(thread);
    memset(&memory, 0, sizeof memory);
    opdi_lock(&opdi_threads_lock);
    memory.live = OPDI_LOAD(&opdi_live_total);
    memory.allocations = opdi_ended_allocations;
    for (thread = opdi_all_threads; thread; thread = thread->next) {
        memory.cached += OPDI_LOAD(&thread->cached);
        memory.allocations += OPDI_LOAD(&thread->allocations);
        if (thread != opdi_thread_self) { memory.live += OPDI_LOAD(&thread->live_delta); }
    }
    opdi_unlock(&opdi_threads_lock);
    memory.peak = OPDI_LOAD(&opdi_live_peak);
    memory.cached += OPDI_LOAD(&opdi_regions_idle);
#if !defined(OPD_NO_CACHE)
    opdi_lock(&opdi_large.lock);
    memory.cached += opdi_large.cached;
    opdi_unlock(&opdi_large.lock);
#endif
    return memory;
}

void opd_memory_reset_peak(void) {
    opdi_live_flush(opdi_self());
    OPDI_STORE(&opdi_live_peak, OPDI_LOAD(&opdi_live_total));
}

int64_t opd_memory_fail_at(int64_t count, bool forever) {
    int64_t seen = OPDI_LOAD(&opdi_fail_seen);
    OPDI_STORE(&opdi_fail_seen, 0);
    OPDI_STORE(&opdi_fail_count, count);
    OPDI_STORE(&opdi_fail_forever, forever);
    (void)OPDI_ADD(&opdi_fail_on, (count > 0) - (OPDI_LOAD(&opdi_fail_on) & 1));
    return seen;
}

OPDI_COLD_END

