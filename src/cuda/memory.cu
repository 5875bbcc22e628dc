//----------------------------------------------------------------------------------------------------------------------
//  >>cu:memory      the caching allocator, pinned memory, copies
//
//  cudaMalloc provides segments, which are cut into blocks.  Neighbouring free blocks are joined.  Free blocks are kept
//  by stream and size.  A block is reused only on the stream that it was allocated on, where the order of the work
//  makes this safe.  While a stream is captured, its memory comes from a pool of the capture, which no other work uses.
//
//  If other streams use a block, too (opd_tensor_record_stream), an event is recorded on each of these streams when the
//  block is freed.  The same is done for pinned memory that copies read or write.  The block can be reused when all its
//  events have passed.
//
//  The lock is only held while these tables are read or changed.  It is released while CUDA allocates or frees memory,
//  or waits for events.
//----------------------------------------------------------------------------------------------------------------------

struct opdi_cu_pool;
typedef struct opdi_cu_use { int device; cudaStream_t stream; } opdi_cu_use;
/* A block of device memory or, if `pool` is NULL, of pinned host memory. */
typedef struct opdi_cu_piece {
    char *at;
    size_t bytes;
    opdi_cu_pool *pool;
    cudaStream_t stream;
    opdi_cu_piece *before, *after;                /* neighbours in the segment, or NULL */
    bool used;
    int marks;                                    /* number of events that the block waits for */
    std::vector<opdi_cu_use> uses;                /* other streams that use the block */
} opdi_cu_piece;
struct opdi_cu_piece_order {
    bool operator()(const opdi_cu_piece *a, const opdi_cu_piece *b) const {
        return a->stream != b->stream ? (uintptr_t)a->stream < (uintptr_t)b->stream
            : a->bytes != b->bytes ? a->bytes < b->bytes : a->at < b->at;
    }
};
/* The random words that a generator provides during a capture.  In a replay, they are counted from the generator's
   position at that time.  `state` is the memory from which the kernels of a replay read the key and this position. */
typedef struct opdi_cu_sequence {
    opd_generator *generator;
    uint64_t key, at;
    int64_t words;
    opdi_cu_piece *state;
} opdi_cu_sequence;
/* The memory of a device, or of a captured graph. */
struct opdi_cu_pool {
    int device;
    bool captures;
    std::set<opdi_cu_piece *, opdi_cu_piece_order> free;
    cudaStream_t stream;                          /* for a capture: its first stream */
    unsigned long long id;                        /* for a capture: CUDA's id */
    const char *broken;                           /* a request that made the capture fail, or NULL */
    std::vector<opdi_cu_sequence> sequences;
};
typedef struct opdi_cu_mark { cudaEvent_t event; opdi_cu_piece *of; } opdi_cu_mark;
static std::mutex opdi_cu_memory_lock;            /* protects the variables below */
typedef std::unique_lock<std::mutex> opdi_cu_hold;
static std::mutex opdi_cu_release_lock;           /* held while memory is given back to CUDA; taken before
                                                     opdi_cu_memory_lock */
static opdi_cu_pool opdi_cu_pools[OPDI_CU_MAX_DEVICES];
static std::unordered_map<void *, opdi_cu_piece *> *opdi_cu_all_pieces;          /* by address; never destroyed */
static std::map<char *, opdi_cu_piece *> *opdi_cu_all_pinned;
static std::multimap<size_t, opdi_cu_piece *> *opdi_cu_free_pinned;
static int64_t opdi_cu_cached_bytes[OPDI_CU_MAX_DEVICES];
static bool opdi_cu_no_cache;                     /* OPD_CUDA_NO_CACHE=1: each block is allocated by cudaMalloc */
static std::vector<opdi_cu_pool *> *opdi_cu_capturing;                           /* pools of the current captures */
static std::atomic<int> opdi_cu_ncapturing;                                      /* number of the current captures */
static std::vector<opdi_cu_mark> *opdi_cu_marks;
static std::vector<opdi_cu_piece *> *opdi_cu_held;            /* blocks whose events are recorded when all captures have
                                                                 ended */
static std::vector<opdi_cu_use> *opdi_cu_idle_streams;        /* freed streams, for reuse */

//== captures of streams ===============================================================================================

/* Returns the pool of the capture that a stream takes part in, or NULL if it is not being captured.  Called under the
   lock. */
static opdi_cu_pool *opdi_cu_capture_pool(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    if (opdi_cu_capturing->empty()) { return NULL; }
    if (cudaStreamGetCaptureInfo(stream, &status, &id) != cudaSuccess) { (void)cudaGetLastError(); }
    for (opdi_cu_pool *pool : *opdi_cu_capturing) {
        if (pool->stream == stream || (status == cudaStreamCaptureStatusActive && pool->id == id)) { return pool; }
    }
    return NULL;
}
static bool opdi_cu_captured(cudaStream_t stream) {
    if (opdi_cu_ncapturing == 0) { return false; }
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    return opdi_cu_capture_pool(stream) != NULL;
}
/* Returns 0 unless the stream is being captured.  If it is, marks its capture as broken, sets an error and returns -1.
   `what` names the request. */
static int opdi_cu_uncaptured(cudaStream_t stream, const char *what) {
    if (opdi_cu_ncapturing == 0) { return 0; }
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    opdi_cu_pool *pool = opdi_cu_capture_pool(stream);
    if (!pool) { return 0; }
    if (!pool->broken) { pool->broken = what; }
    return opd_fail(OPD_ERROR_KERNEL, "CUDA: %s cannot be captured, because captured work runs only when it is "
                    "replayed", what);
}
/* Returns 0 unless a stream of device `index` is being captured.  If there is one, sets an error and returns -1. */
static int opdi_cu_none_captured(int index, const char *what) {
    if (opdi_cu_ncapturing == 0) { return 0; }
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    for (const opdi_cu_pool *pool : *opdi_cu_capturing) {
        if (pool->device == index) {
            return opd_fail(OPD_ERROR_KERNEL, "CUDA: %s is not possible while a stream of cuda:%d is being captured",
                            what, index);
        }
    }
    return 0;
}

//== blocks of memory ==================================================================================================

#define OPDI_CU_SMALL ((size_t)1 << 20)           /* up to this size, blocks are in segments of 2 MiB */
#define OPDI_CU_LARGE ((size_t)10 << 20)          /* from this size on, each block has its own segment; smaller
                                                     blocks are in segments of 20 MiB */
static size_t opdi_cu_segment_bytes(size_t bytes) {
    const size_t mega = (size_t)2 << 20;
    return bytes <= OPDI_CU_SMALL ? mega : bytes < OPDI_CU_LARGE ? 10 * mega : (bytes + mega - 1) / mega * mega;
}
static void opdi_cu_piece_free(opdi_cu_piece *p) {
    opdi_cu_cached_bytes[p->pool->device] += (int64_t)p->bytes;
    p->pool->free.insert(p);
}
static void opdi_cu_piece_take(opdi_cu_piece *p) {
    opdi_cu_cached_bytes[p->pool->device] -= (int64_t)p->bytes;
    p->pool->free.erase(p);
}
/* Returns the smallest free block of the stream with at least this many bytes, or NULL.  Small blocks are not cut from
   large ones.  If `whole` is true, the block must be a whole segment. */
static opdi_cu_piece *opdi_cu_piece_find(opdi_cu_pool *pool, cudaStream_t stream, size_t bytes, bool whole) {
    opdi_cu_piece key = {NULL, bytes, pool, stream, NULL, NULL, false, 0, {}};
    for (auto i = pool->free.lower_bound(&key); i != pool->free.end() && (*i)->stream == stream; ++i) {
        if (bytes <= OPDI_CU_SMALL && (*i)->bytes > (size_t)2 << 20) { break; }
        if (!whole || (!(*i)->before && !(*i)->after)) { return *i; }
    }
    return NULL;
}
static void opdi_cu_release(int device);
/* Returns whether a pool still exists.  (The pool of a capture may be freed while the lock is released.) */
static bool opdi_cu_pool_lives(const opdi_cu_pool *pool) {
    for (const opdi_cu_pool &p : opdi_cu_pools) { if (pool == &p) { return true; } }
    for (const opdi_cu_pool *p : *opdi_cu_capturing) { if (pool == p) { return true; } }
    return false;
}
/* Allocates a segment, and returns it as a block.  Returns NULL if memory is exhausted; if another error occurs,
   returns NULL and sets the error.  Releases the lock while it allocates. */
static opdi_cu_piece *opdi_cu_segment(opdi_cu_hold &hold, opdi_cu_pool *pool, int device, cudaStream_t stream,
                                      size_t bytes) {
    const opdi_cu_on on(device);
    void *at = NULL;
    cudaError_t e;
    hold.unlock();
    if ((e = cudaMalloc(&at, bytes)) == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        opdi_cu_release(device);
        e = cudaMalloc(&at, bytes);
    }
    hold.lock();
    if (e != cudaSuccess) {
        (void)cudaGetLastError();
        if (e != cudaErrorMemoryAllocation) { (void)opdi_cu_failed(e, "cudaMalloc"); }
        return NULL;
    }
    opdi_cu_piece *p = opdi_cu_pool_lives(pool) ? new (std::nothrow) opdi_cu_piece() : NULL;
    if (!p) { (void)cudaFree(at); return NULL; }
    p->at = (char *)at; p->bytes = bytes; p->pool = pool; p->stream = stream;
    (*opdi_cu_all_pieces)[at] = p;
    return p;
}
/* Cuts a block after its first `bytes` bytes, and frees the part after the cut as a separate block, unless that part is
   too small. */
static void opdi_cu_piece_split(opdi_cu_piece *p, size_t bytes) {
    opdi_cu_piece *rest;
    if (p->bytes - bytes < (p->bytes > OPDI_CU_LARGE ? OPDI_CU_SMALL : 512)) { return; }
    if (!(rest = new (std::nothrow) opdi_cu_piece(*p))) { return; }
    rest->at = p->at + bytes; rest->bytes = p->bytes - bytes; rest->before = p; rest->used = false;
    if (p->after) { p->after->before = rest; }
    p->after = rest; p->bytes = bytes;
    (*opdi_cu_all_pieces)[rest->at] = rest;
    opdi_cu_piece_free(rest);
}
/* Joins block p with the block after it in the segment. */
static void opdi_cu_piece_join(opdi_cu_piece *p) {
    opdi_cu_piece *q = p->after;
    p->bytes += q->bytes; p->after = q->after;
    if (q->after) { q->after->before = p; }
    opdi_cu_all_pieces->erase(q->at);
    delete q;
}
/* Frees a block that nothing uses any more. */
static void opdi_cu_block_free(opdi_cu_piece *p) {
    if (!p->pool && opdi_cu_no_cache) {
        opdi_cu_all_pinned->erase(p->at);
        (void)cudaFreeHost(p->at);
        delete p;
        return;
    }
    if (!p->pool) { opdi_cu_free_pinned->insert({p->bytes, p}); return; }
    p->used = false;
    if (p->after && !p->after->used) { opdi_cu_piece_take(p->after); opdi_cu_piece_join(p); }
    if (p->before && !p->before->used) { p = p->before; opdi_cu_piece_take(p); opdi_cu_piece_join(p); }
    opdi_cu_piece_free(p);
}
static void opdi_cu_use_add(opdi_cu_piece *p, int device, cudaStream_t stream) {
    for (const opdi_cu_use &u : p->uses) { if (u.stream == stream && u.device == device) { return; } }
    p->uses.push_back({device, stream});
}
/* Frees a block: at once or, if other streams use it, when the work queued on them is done.  During a capture, no event
   is recorded, because it would become a part of the capture; such blocks are freed later. */
static void opdi_cu_retire(opdi_cu_piece *p) {
    if (!p->uses.empty() && !opdi_cu_capturing->empty()) { opdi_cu_held->push_back(p); return; }
    for (const opdi_cu_use &u : p->uses) {
        const opdi_cu_on on(u.device);
        cudaEvent_t event = NULL;
        if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess &&
            cudaEventRecord(event, u.stream) == cudaSuccess) {
            opdi_cu_marks->push_back({event, p});
            p->marks++;
            continue;
        }
        (void)cudaStreamSynchronize(u.stream);
        if (event) { (void)cudaEventDestroy(event); }
        (void)cudaGetLastError();
    }
    p->uses.clear();
    if (p->marks == 0) { opdi_cu_block_free(p); }
}
static void opdi_cu_mark_passed(const opdi_cu_mark &m) {
    (void)cudaEventDestroy(m.event);
    if (--m.of->marks == 0) { opdi_cu_block_free(m.of); }
}
/* Frees the blocks whose events have passed. */
static void opdi_cu_marks_pass() {
    std::vector<opdi_cu_mark> left;
    for (const opdi_cu_mark &m : *opdi_cu_marks) {
        const cudaError_t e = cudaEventQuery(m.event);
        if (e != cudaSuccess) { (void)cudaGetLastError(); }
        if (e == cudaErrorNotReady) { left.push_back(m); } else { opdi_cu_mark_passed(m); }
    }
    opdi_cu_marks->swap(left);
}
/* Waits for the events of all blocks, and frees the blocks.  Releases the lock while it waits. */
static void opdi_cu_marks_wait(opdi_cu_hold &hold) {
    std::vector<opdi_cu_mark> all;
    all.swap(*opdi_cu_marks);
    hold.unlock();
    for (const opdi_cu_mark &m : all) {
        if (cudaEventSynchronize(m.event) != cudaSuccess) { (void)cudaGetLastError(); }
    }
    hold.lock();
    for (const opdi_cu_mark &m : all) { opdi_cu_mark_passed(m); }
}
/* Called when a stream is freed.  The stream no longer counts as a user of blocks, and blocks that were allocated on it
   move to the default stream. */
static void opdi_cu_stream_forget(int device, cudaStream_t stream) {
    auto forget = [&](opdi_cu_piece *p) {
        for (auto u = p->uses.begin(); u != p->uses.end();) {
            if (u->stream == stream && u->device == device) { u = p->uses.erase(u); } else { ++u; }
        }
        if (!p->pool || p->stream != stream || p->pool->device != device) { return; }
        if (!p->used) { p->pool->free.erase(p); }
        p->stream = NULL;
        if (!p->used) { p->pool->free.insert(p); }
    };
    for (auto &i : *opdi_cu_all_pieces) { forget(i.second); }
    for (auto &i : *opdi_cu_all_pinned) { forget(i.second); }
}

//== functions of the backend: memory ==================================================================================

/* Returns a block of a pool.  `bytes` is a multiple of 512.  Returns NULL if memory is exhausted; if another error
   occurs, returns NULL and sets the error.  Releases the lock while it allocates a segment. */
static opdi_cu_piece *opdi_cu_piece_new(opdi_cu_hold &hold, opdi_cu_pool *pool, cudaStream_t stream, size_t bytes) {
    const int device = pool->device;
    opdi_cu_pool *around = &opdi_cu_pools[device];
    opdi_cu_piece *p;
    if (!opdi_cu_marks->empty()) { opdi_cu_marks_pass(); }
    if ((p = opdi_cu_piece_find(pool, stream, bytes, false)) != NULL) { opdi_cu_piece_take(p); }
    else if (pool->captures && (p = opdi_cu_piece_find(around, stream, bytes, true)) != NULL) {
        opdi_cu_piece_take(p);                    /* moves a whole segment from the device's pool to the capture's */
        p->pool = pool;
    }
    else if (!(p = opdi_cu_segment(hold, pool, device, stream, opdi_cu_segment_bytes(bytes))) &&
             !(p = opdi_cu_segment(hold, pool, device, stream, bytes))) {
        /* while memory was given back, blocks may have become free */
        p = opdi_cu_pool_lives(pool) ? opdi_cu_piece_find(pool, stream, bytes, false) : NULL;
        if (!p) { return NULL; }
        opdi_cu_piece_take(p);
    }
    opdi_cu_piece_split(p, bytes);
    p->used = true;
    return p;
}
static const char *opdi_cu_size_text(char *text /*[32]*/, double bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int k = 0;
    while (bytes >= 1024 && k < 6) { bytes /= 1024; k++; }
    (void)snprintf(text, 32, k ? "%.2f %s" : "%.0f %s", bytes, units[k]);
    return text;
}
static void opdi_cu_out_of_memory(int index, size_t bytes) {
    const opdi_cu_on on(index);
    const opd_memory m = opd_device_memory(opd_device_make(OPD_CUDA, index));
    size_t left = 0, all = 0;
    char text[5][32];
    cudaError_t e;
    if (!opd_ok()) { return; }                    /* another error is pending */
    if ((e = cudaMemGetInfo(&left, &all)) != cudaSuccess) {
        (void)cudaGetLastError();
        (void)opd_fail(OPD_ERROR_MEMORY, "CUDA out of memory: this program cannot use cuda:%d at all: %s (%s). Other "
                       "programs fill its memory, or use it exclusively (nvidia-smi lists them).", index,
                       cudaGetErrorString(e), cudaGetErrorName(e));
        return;
    }
    (void)opd_fail(OPD_ERROR_MEMORY, "CUDA out of memory. Tried to allocate %s. cuda:%d has a total capacity of %s of "
                   "which %s is free. Of the memory of this program %s is allocated, and %s is reserved but "
                   "unallocated.%s",
                   opdi_cu_size_text(text[0], (double)bytes), index, opdi_cu_size_text(text[1], (double)all),
                   opdi_cu_size_text(text[2], (double)left), opdi_cu_size_text(text[3], (double)m.live),
                   opdi_cu_size_text(text[4], (double)m.cached), opdi_cu_ncapturing == 0 ? ""
                   : " Reserved memory is not freed while a stream is being captured.");
}
static void *opdi_cu_alloc(void *user, int index, size_t bytes) {
    const size_t whole = (bytes + 511) & ~(size_t)511;
    void *at = NULL;
    (void)user;
    if (opdi_cu_no_cache && !opdi_cu_captured(opdi_cu_streams[index])) {
        const opdi_cu_on on(index);
        if (cudaMalloc(&at, bytes) != cudaSuccess) { (void)cudaGetLastError(); at = NULL; }
    } else {
        const cudaStream_t stream = opdi_cu_streams[index];
        opdi_cu_hold hold(opdi_cu_memory_lock);
        opdi_cu_pool *pool = opdi_cu_capture_pool(stream);
        if (pool && pool->device != index) {
            (void)opd_fail(OPD_ERROR_KERNEL, "CUDA: memory of cuda:%d cannot be allocated in a capture on cuda:%d",
                           index, pool->device);
            return NULL;
        }
        opdi_cu_piece *p = opdi_cu_piece_new(hold, pool ? pool : &opdi_cu_pools[index], stream, whole);
        at = p ? p->at : NULL;
    }
    if (!at) { opdi_cu_out_of_memory(index, bytes); }
    return at;
}
static void opdi_cu_free(void *user, int index, void *data, size_t bytes) {
    (void)user; (void)index; (void)bytes;
    opdi_cu_gather_flush();
    opdi_cu_hold hold(opdi_cu_memory_lock);
    auto i = opdi_cu_all_pieces->find(data);
    const bool known = i != opdi_cu_all_pieces->end();
    if (known) { opdi_cu_retire(i->second); }
    hold.unlock();
    if (!known && opdi_cu_no_cache) { (void)cudaFree(data); }     /* cudaFree waits for the device */
}
static int opdi_cu_record_stream(void *user, int index, void *data, int64_t stream) {
    const cudaStream_t s = (cudaStream_t)(intptr_t)stream;
    (void)user;
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    auto i = opdi_cu_all_pieces->find(data);
    if (i == opdi_cu_all_pieces->end()) { return 0; }
    if (i->second->stream != s || i->second->pool->device != index) { opdi_cu_use_add(i->second, index, s); }
    return 0;
}
/* Gives the segments in which no block is used back to CUDA.  Only one thread at a time runs this function.  Other
   threads that run out of memory at the same time wait here, and then try again. */
static void opdi_cu_release(int device) {
    std::lock_guard<std::mutex> alone(opdi_cu_release_lock);
    opdi_cu_hold hold(opdi_cu_memory_lock);
    std::vector<opdi_cu_piece *> whole;
    if (opdi_cu_capturing->empty()) { opdi_cu_marks_wait(hold); }
    if (!opdi_cu_capturing->empty()) { return; }
    for (opdi_cu_piece *p : opdi_cu_pools[device].free) { if (!p->before && !p->after) { whole.push_back(p); } }
    for (opdi_cu_piece *p : whole) { opdi_cu_piece_take(p); opdi_cu_all_pieces->erase(p->at); }
    hold.unlock();
    for (opdi_cu_piece *p : whole) { (void)cudaFree(p->at); delete p; }       /* cudaFree waits for work that uses the
                                                                                 memory */
}
static void opdi_cu_release_pinned() {
    std::multimap<size_t, opdi_cu_piece *> all;
    opdi_cu_hold hold(opdi_cu_memory_lock);
    all.swap(*opdi_cu_free_pinned);
    for (auto &i : all) { opdi_cu_all_pinned->erase(i.second->at); }
    hold.unlock();
    for (auto &i : all) { (void)cudaFreeHost(i.second->at); delete i.second; }
}
static int opdi_cu_empty_cache(void *user, int index) {
    const opdi_cu_on on(index);
    (void)user;
    if (opdi_cu_none_captured(index, "emptying the cache")) { return -1; }
    opdi_cu_release(index);
    opdi_cu_release_pinned();
    return 0;
}
static int64_t opdi_cu_cached(void *user, int index) {
    (void)user;
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    return opdi_cu_cached_bytes[index];
}

//== pinned memory =====================================================================================================

/* Rounds a size up to one of a limited number of sizes, by an eighth at most, so that more blocks can be reused. */
static size_t opdi_cu_pinned_bytes(size_t bytes) {
    size_t step = 512;
    while (step <= bytes / 16) { step *= 2; }
    return (bytes + step - 1) / step * step;
}
static void *opdi_cu_host_alloc(void *user, size_t bytes) {
    const size_t whole = opdi_cu_no_cache ? bytes : opdi_cu_pinned_bytes(bytes);
    void *at = NULL;
    (void)user;
    opdi_cu_hold hold(opdi_cu_memory_lock);
    opdi_cu_marks_pass();
    auto found = opdi_cu_free_pinned->find(whole);
    if (found != opdi_cu_free_pinned->end()) {
        at = found->second->at;
        opdi_cu_free_pinned->erase(found);
        return at;
    }
    hold.unlock();
    opdi_cu_piece *p = new (std::nothrow) opdi_cu_piece();
    if (p && cudaHostAlloc(&at, whole, cudaHostAllocPortable) != cudaSuccess) {
        (void)cudaGetLastError();
        opdi_cu_release_pinned();
        if (cudaHostAlloc(&at, whole, cudaHostAllocPortable) != cudaSuccess) { (void)cudaGetLastError(); at = NULL; }
    }
    if (!p || !at) { delete p; return NULL; }
    p->at = (char *)at; p->bytes = whole;
    hold.lock();
    (*opdi_cu_all_pinned)[p->at] = p;
    return at;
}
static void opdi_cu_host_free(void *user, void *data) {
    (void)user;
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    auto i = opdi_cu_all_pinned->find((char *)data);
    if (i != opdi_cu_all_pinned->end()) { opdi_cu_retire(i->second); }
}
/* Returns the pinned block that contains an address, or NULL if the memory is not pinned.  Called under the lock. */
static opdi_cu_piece *opdi_cu_pinned_of(const void *p) {
    auto i = opdi_cu_all_pinned->upper_bound((char *)(uintptr_t)p);
    if (i == opdi_cu_all_pinned->begin()) { return NULL; }
    --i;
    return (const char *)p < i->second->at + i->second->bytes ? i->second : NULL;
}

/* Returns the memory of the host in which kernels note faults; the first call allocates it.  Returns NULL and sets an
   error if it fails. */
static opdi_cu_fault *opdi_cu_fault_make() {
    opdi_cu_fault *f = opdi_cu_the_fault, *none = NULL;
    cudaError_t e;
    if (f) { return f; }
    if ((e = cudaHostAlloc((void **)&f, sizeof *f, cudaHostAllocPortable)) != cudaSuccess) {
        (void)opdi_cu_failed(e, "cudaHostAlloc");
        return NULL;
    }
    memset((void *)f, 0, sizeof *f);
    if (opdi_cu_the_fault.compare_exchange_strong(none, f)) { return f; }
    (void)cudaFreeHost((void *)f);                /* another thread was faster */
    return none;
}

//== copies ============================================================================================================

/* Enables direct copies between two devices, if the machine supports them.  This is tried once per pair. */
static void opdi_cu_peer(int from, int to) {
    static std::atomic<bool> asked[OPDI_CU_MAX_DEVICES][OPDI_CU_MAX_DEVICES];
    const opdi_cu_on on(from);
    int can = 0;
    if (asked[from][to].exchange(true)) { return; }
    if (cudaDeviceCanAccessPeer(&can, from, to) == cudaSuccess && can) { (void)cudaDeviceEnablePeerAccess(to, 0); }
    (void)cudaGetLastError();                     /* an error here means that the copies were enabled already */
}
static int opdi_cu_stream_wait(void *user, int index, int64_t stream, int other_index, int64_t other);
/* Returns the device on whose current stream a copy runs: the source or, if the source is the host, the destination.  A
   negative index means the host. */
static int opdi_cu_copy_index(int to_index, int from_index) { return from_index >= 0 ? from_index : to_index; }
/* Begins a copy between devices, or between a device and the host.  The copy waits for the work queued on the current
   streams of both devices; later work on these streams waits for the copy.  Returns 0, or -1 and sets an error. */
static int opdi_cu_copy_queue(void *to, int to_index, const void *from, int from_index, size_t bytes) {
    const int index = opdi_cu_copy_index(to_index, from_index);
    const opdi_cu_on on(index);
    const cudaStream_t stream = opdi_cu_streams[index];
    opdi_cu_gather_flush();
    const bool across = to_index >= 0 && to_index != index;
    const int64_t here = (int64_t)(intptr_t)stream, there = across ? (int64_t)(intptr_t)opdi_cu_streams[to_index] : 0;
    if (across && opdi_cu_stream_wait(NULL, index, here, to_index, there)) { return -1; }
    if (across) { opdi_cu_peer(index, to_index); }
    OPDI_CU_TRY(across ? cudaMemcpyPeerAsync(to, to_index, from, index, bytes, stream)
                : cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "a copy");
    return across ? opdi_cu_stream_wait(NULL, to_index, there, index, here) : 0;
}
static int opdi_cu_copy_async(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes) {
    const int index = opdi_cu_copy_index(to_index, from_index);
    const cudaStream_t stream = opdi_cu_streams[index];
    bool pinned = true;
    (void)user;
    if (to_index < 0 || from_index < 0) {
        std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
        opdi_cu_piece *p = opdi_cu_pinned_of(to_index < 0 ? to : from);
        if (p) { opdi_cu_use_add(p, index, stream); } else { pinned = false; }
    }
    if (!pinned && opdi_cu_uncaptured(stream, "a copy from or to host memory that is not pinned")) { return -1; }
    return opdi_cu_copy_queue(to, to_index, from, from_index, bytes);
}
static int opdi_cu_copy_bytes(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes) {
    const cudaStream_t stream = opdi_cu_streams[opdi_cu_copy_index(to_index, from_index)];
    const opdi_cu_on on(opdi_cu_copy_index(to_index, from_index));
    (void)user;
    if (to_index >= 0 && from_index >= 0) { return opdi_cu_copy_queue(to, to_index, from, from_index, bytes); }
    if (opdi_cu_uncaptured(stream, to_index < 0 ? "a copy to the host (item, printing, an index by bool)"
                           : "a blocking copy from the host") ||
        opdi_cu_copy_queue(to, to_index, from, from_index, bytes)) { return -1; }
    opdi_cu_groups_flush(opdi_cu_current());
    OPDI_CU_TRY(cudaStreamSynchronize(stream), "a copy");
    return opdi_cu_faults();
}

