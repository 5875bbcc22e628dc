//----------------------------------------------------------------------------------------------------------------------
//  >>cu:streams     streams, events, graphs
//
//  The numbers of streams, events and captures are their addresses; stream 0 is CUDA's default stream.  Freed streams
//  are kept and reused, so that a thread whose current stream was freed by another thread still has a stream.
//----------------------------------------------------------------------------------------------------------------------

static int opdi_cu_find_devices();
/* The first call looks for GPUs, which initialises the driver and takes 100 ms: programs that use only the CPU do not
   call this. */
static int opdi_cu_device_count(void *user) {
    static const int count = opdi_cu_find_devices();
    (void)user;
    return count;
}
static int opdi_cu_device_get(void *user) { (void)user; return opdi_cu_current(); }
static int opdi_cu_device_set(void *user, int index) {
    (void)user;
    OPDI_CU_TRY(cudaSetDevice(index), "cudaSetDevice");
    return 0;
}
static int opdi_cu_synchronize(void *user, int index) {
    const opdi_cu_on on(index);
    (void)user;
    opdi_cu_gather_flush();
    if (opdi_cu_none_captured(index, "waiting for the device")) { return -1; }
    opdi_cu_groups_flush(index);
    OPDI_CU_TRY(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return opdi_cu_faults();
}

static int opdi_cu_stream_new(void *user, int index, int64_t *stream) {
    const opdi_cu_on on(index);
    cudaStream_t s;
    (void)user;
    {
        std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
        for (size_t i = opdi_cu_idle_streams->size(); i-- > 0;) {
            if ((*opdi_cu_idle_streams)[i].device != index) { continue; }
            *stream = (int64_t)(intptr_t)(*opdi_cu_idle_streams)[i].stream;
            opdi_cu_idle_streams->erase(opdi_cu_idle_streams->begin() + (long)i);
            return 0;
        }
    }
    OPDI_CU_TRY(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreate");
    *stream = (int64_t)(intptr_t)s;
    return 0;
}
static void opdi_cu_capture_drop(cudaStream_t stream);
/* Waits for a stream's work, and frees the stream.  Its cached memory then belongs to the default stream. */
static void opdi_cu_stream_free(void *user, int index, int64_t stream) {
    const opdi_cu_on on(index);
    const cudaStream_t s = (cudaStream_t)(intptr_t)stream;
    (void)user;
    opdi_cu_capture_drop(s);
    (void)cudaStreamSynchronize(s);
    (void)cudaGetLastError();
    if (opdi_cu_streams[index] == s) { opdi_cu_streams[index] = NULL; }
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    opdi_cu_stream_forget(index, s);
    opdi_cu_idle_streams->push_back({index, s});
}
static int64_t opdi_cu_stream_get(void *user, int index) {
    (void)user;
    opdi_cu_gather_flush();
    return (int64_t)(intptr_t)opdi_cu_streams[index];
}
static int opdi_cu_stream_set(void *user, int index, int64_t stream) {
    (void)user;
    opdi_cu_gather_flush();
    opdi_cu_streams[index] = (cudaStream_t)(intptr_t)stream;
    return 0;
}
static int opdi_cu_stream_synchronize(void *user, int index, int64_t stream) {
    const opdi_cu_on on(index);
    const cudaStream_t s = (cudaStream_t)(intptr_t)stream;
    (void)user;
    opdi_cu_gather_flush();
    if (opdi_cu_uncaptured(s, "waiting for the stream")) { return -1; }
    opdi_cu_groups_flush(index);
    OPDI_CU_TRY(cudaStreamSynchronize(s), "cudaStreamSynchronize");
    return opdi_cu_faults();
}

static int opdi_cu_event_new(void *user, int index, bool timing, int64_t *event) {
    const opdi_cu_on on(index);
    cudaEvent_t e;
    (void)user;
    OPDI_CU_TRY(cudaEventCreateWithFlags(&e, timing ? cudaEventDefault : cudaEventDisableTiming), "cudaEventCreate");
    *event = (int64_t)(intptr_t)e;
    return 0;
}
static void opdi_cu_event_free(void *user, int index, int64_t event) {
    const opdi_cu_on on(index);
    (void)user;
    (void)cudaEventDestroy((cudaEvent_t)(intptr_t)event);
}
static int opdi_cu_event_record(void *user, int index, int64_t event, int64_t stream) {
    const opdi_cu_on on(index);
    (void)user;
    opdi_cu_gather_flush();
    OPDI_CU_TRY(cudaEventRecord((cudaEvent_t)(intptr_t)event, (cudaStream_t)(intptr_t)stream), "cudaEventRecord");
    return 0;
}
static int opdi_cu_event_wait(void *user, int index, int64_t event, int64_t stream) {
    const opdi_cu_on on(index);
    (void)user;
    OPDI_CU_TRY(cudaStreamWaitEvent((cudaStream_t)(intptr_t)stream, (cudaEvent_t)(intptr_t)event, 0),
                "cudaStreamWaitEvent");
    return 0;
}
static int opdi_cu_event_synchronize(void *user, int index, int64_t event) {
    const opdi_cu_on on(index);
    (void)user;
    opdi_cu_groups_flush(index);
    OPDI_CU_TRY(cudaEventSynchronize((cudaEvent_t)(intptr_t)event), "cudaEventSynchronize");
    return opdi_cu_faults();
}
static int opdi_cu_event_done(void *user, int index, int64_t event) {
    const opdi_cu_on on(index);
    const cudaError_t e = cudaEventQuery((cudaEvent_t)(intptr_t)event);
    (void)user;
    if (e == cudaErrorNotReady) { (void)cudaGetLastError(); return 0; }
    if (opdi_cu_nlost != 0 && opdi_cu_lost_check()) { return -1; }
    return e == cudaSuccess ? 1 : opdi_cu_failed(e, "cudaEventQuery");
}
static int opdi_cu_event_elapsed(void *user, int index, int64_t from, int64_t to, double *milliseconds) {
    const opdi_cu_on on(index);
    float ms = 0;
    (void)user;
    OPDI_CU_TRY(cudaEventElapsedTime(&ms, (cudaEvent_t)(intptr_t)from, (cudaEvent_t)(intptr_t)to),
                "cudaEventElapsedTime");
    *milliseconds = ms;
    return 0;
}
static int opdi_cu_stream_wait(void *user, int index, int64_t stream, int other_index, int64_t other) {
    int64_t event = 0;
    int rc = opdi_cu_event_new(user, other_index, false, &event);
    if (rc == 0) { rc = opdi_cu_event_record(user, other_index, event, other); }
    if (rc == 0) { rc = opdi_cu_event_wait(user, index, event, stream); }
    if (event) { opdi_cu_event_free(user, other_index, event); }
    return rc;
}

//== captures ==========================================================================================================
//
//  During a capture, the random words of a generator are counted from the generator's position at the first draw.  They
//  are given back to the generator when the capture ends, and taken again at each replay.  The replay writes the
//  generator's position to memory on the device, from which the kernels read it.

typedef struct opdi_cu_graph {
    cudaGraphExec_t exec;
    opdi_cu_pool *pool;
    cudaStream_t last;                            /* the stream on which the graph ran last or, before its first run,
                                                     was captured */
    cudaEvent_t done;                             /* recorded after the last run of the graph */
} opdi_cu_graph;

/* Frees the pool of a capture.  Its blocks go to the pool of the device; blocks that are in use can be reused from
   there when they are freed. */
static void opdi_cu_pool_free(opdi_cu_pool *pool) {
    opdi_cu_pool *to = &opdi_cu_pools[pool->device];
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    for (const opdi_cu_sequence &q : pool->sequences) { opdi_cu_block_free(q.state); }
    for (auto &i : *opdi_cu_all_pieces) {
        if (i.second->pool != pool) { continue; }
        i.second->pool = to;
        if (!i.second->used) { to->free.insert(i.second); }
    }
    delete pool;
}
/* Ends the capture of a stream.  Sets *graph, or *e if it fails.  Returns the capture's pool, or NULL if the stream is
   not being captured. */
static opdi_cu_pool *opdi_cu_capture_stop(cudaStream_t stream, cudaGraph_t *graph, cudaError_t *e) {
    opdi_cu_pool *pool = NULL;
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    for (size_t i = 0; i < opdi_cu_capturing->size() && !pool; i++) {
        if ((*opdi_cu_capturing)[i]->stream != stream) { continue; }
        pool = (*opdi_cu_capturing)[i];
        opdi_cu_capturing->erase(opdi_cu_capturing->begin() + (long)i);
        opdi_cu_ncapturing--;
    }
    *graph = NULL;
    if (!pool) { return NULL; }
    *e = cudaStreamEndCapture(stream, graph);
    for (const opdi_cu_sequence &q : pool->sequences) { opd_generator_give_back(q.generator, q.at, q.words); }
    if (opdi_cu_capturing->empty()) {
        std::vector<opdi_cu_piece *> held;
        held.swap(*opdi_cu_held);
        for (opdi_cu_piece *p : held) { opdi_cu_retire(p); }
    }
    return pool;
}
static void opdi_cu_capture_drop(cudaStream_t stream) {
    cudaGraph_t graph = NULL;
    cudaError_t e = cudaSuccess;
    opdi_cu_pool *pool = opdi_cu_ncapturing == 0 ? NULL : opdi_cu_capture_stop(stream, &graph, &e);
    if (graph) { (void)cudaGraphDestroy(graph); }
    if (e != cudaSuccess) { (void)cudaGetLastError(); }
    if (pool) { opdi_cu_pool_free(pool); }
}
static bool opdi_cu_blas_take(cublasStatus_t *s);
/* Begins a capture.  First makes the memory for faults and a cuBLAS handle, which otherwise the first use would make,
   perhaps during the capture.  Returns 0, or -1 and sets an error. */
static int opdi_cu_capture_begin(void *user, int index, int64_t stream) {
    const opdi_cu_on on(index);
    cublasStatus_t blas;
    const cudaStream_t s = (cudaStream_t)(intptr_t)stream;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaError_t e;
    (void)user;
    if (!s) { return opd_fail(OPD_ERROR_ARGUMENT, "the default stream cannot be captured: use opd_stream_new"); }
    if (!opdi_cu_fault_make()) { return -1; }
    (void)opdi_cu_blas_take(&blas);
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    if (opdi_cu_capture_pool(s)) { return opd_fail(OPD_ERROR_ARGUMENT, "this stream is already being captured"); }
    opdi_cu_pool *pool = new (std::nothrow) opdi_cu_pool();
    if (!pool) { return opdi_cu_no_memory("a capture"); }
    pool->device = index; pool->captures = true; pool->stream = s;
    if ((e = cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed)) != cudaSuccess) {
        delete pool;
        return opdi_cu_failed(e, "cudaStreamBeginCapture");
    }
    (void)cudaStreamGetCaptureInfo(s, &status, &pool->id);
    opdi_cu_capturing->push_back(pool);
    opdi_cu_ncapturing++;
    return 0;
}
static int opdi_cu_capture_end(void *user, int index, int64_t stream, int64_t *capture) {
    const opdi_cu_on on(index);
    const cudaStream_t s = (cudaStream_t)(intptr_t)stream;
    cudaGraph_t graph = NULL;
    cudaError_t e = cudaSuccess;
    opdi_cu_pool *pool = opdi_cu_capture_stop(s, &graph, &e);
    opdi_cu_graph *g = pool && !pool->broken && e == cudaSuccess ? new (std::nothrow) opdi_cu_graph() : NULL;
    (void)user;
    if (!pool) { return opd_fail(OPD_ERROR_ARGUMENT, "this stream is not being captured"); }
    if (g && (e = cudaGraphInstantiate(&g->exec, graph, 0)) == cudaSuccess &&
        (e = cudaEventCreateWithFlags(&g->done, cudaEventDisableTiming)) == cudaSuccess) {
        e = cudaEventRecord(g->done, s);
    }
    if (graph) { (void)cudaGraphDestroy(graph); }
    if (g && e == cudaSuccess) {
        g->pool = pool;
        g->last = s;
        *capture = (int64_t)(intptr_t)g;
        return 0;
    }
    if (pool->broken) { (void)opd_fail(OPD_ERROR_KERNEL, "the capture failed: it cannot contain %s", pool->broken); }
    else if (e == cudaSuccess) { (void)opdi_cu_no_memory("a capture"); }
    else {
        (void)opdi_cu_failed(e, "ending a capture: a call in it cannot be captured, or was the first of its kind (make "
                             "the same calls once before the capture)");
    }
    if (g && g->done) { (void)cudaEventDestroy(g->done); }
    if (g && g->exec) { (void)cudaGraphExecDestroy(g->exec); }
    (void)cudaGetLastError();
    delete g;
    opdi_cu_pool_free(pool);
    return -1;
}

/* If the current stream of the device is being captured, sets *state to the memory from which the kernels of a replay
   read the generator's key and position, and makes d->at relative to this position.  Returns 0, or -1 and sets an
   error. */
static int opdi_cu_sequence_of(int index, opd_draw *d, const uint64_t **state) {
    if (opdi_cu_ncapturing == 0) { return 0; }
    opdi_cu_hold hold(opdi_cu_memory_lock);
    opdi_cu_pool *pool = opdi_cu_capture_pool(opdi_cu_streams[index]);
    opdi_cu_sequence *q = NULL;
    if (!pool) { return 0; }
    for (opdi_cu_sequence &other : pool->sequences) { if (other.generator == d->generator) { q = &other; } }
    if (!q) {
        /* not from the capture's memory: kernels of the graph could write to it before it is read */
        opdi_cu_piece *p = opdi_cu_piece_new(hold, &opdi_cu_pools[index], opdi_cu_streams[index], 512);
        if (!p || !opdi_cu_pool_lives(pool)) {
            if (p) { opdi_cu_block_free(p); }
            return opdi_cu_no_memory("the state of a generator");
        }
        pool->sequences.push_back({d->generator, d->key, d->at, 0, p});
        q = &pool->sequences.back();
    }
    if (q->key != d->key) {
        pool->broken = "seeding a generator between two draws";
        return opd_fail(OPD_ERROR_KERNEL, "CUDA: a generator cannot be seeded between two draws of a capture");
    }
    d->at -= q->at;
    if ((int64_t)d->at + d->words > q->words) { q->words = (int64_t)d->at + d->words; }
    *state = (const uint64_t *)q->state->at;
    return 0;
}
__global__ void opdi_cu_set_state(uint64_t *state, uint64_t key, uint64_t at) { state[0] = key; state[1] = at; }
/* Takes the random words for a replay from the generators, and writes their keys and positions to the memory from which
   the replay's kernels read them.  Returns 0, or -1 and sets an error. */
static int opdi_cu_sequences_take(const opdi_cu_pool *pool) {
    for (const opdi_cu_sequence &q : pool->sequences) {
        uint64_t key, at = opd_generator_take(q.generator, q.words, &key);
        if (opdi_cu_launch(opdi_cu_set_state, dim3(1), dim3(1), 0, (uint64_t *)q.state->at, key, at)) { return -1; }
    }
    return 0;
}
/* Replays a graph on a stream.  The replay first waits for the previous replay, even on another stream, because both
   use the same memory.  Returns 0, or -1 and sets an error. */
static int opdi_cu_capture_replay(void *user, int index, int64_t capture, int64_t stream) {
    const opdi_cu_on on(index);
    opdi_cu_graph *g = (opdi_cu_graph *)(intptr_t)capture;
    const cudaStream_t s = (cudaStream_t)(intptr_t)stream, was = opdi_cu_streams[index];
    int rc;
    (void)user;
    if (opdi_cu_uncaptured(s, "a replay")) { return -1; }
    if (s != g->last) { OPDI_CU_TRY(cudaStreamWaitEvent(s, g->done, 0), "cudaStreamWaitEvent"); }
    opdi_cu_streams[index] = s;
    rc = opdi_cu_sequences_take(g->pool);
    opdi_cu_streams[index] = was;
    if (rc) { return -1; }
    OPDI_CU_TRY(cudaGraphLaunch(g->exec, s), "cudaGraphLaunch");
    g->last = s;
    OPDI_CU_TRY(cudaEventRecord(g->done, s), "cudaEventRecord");
    return opdi_cu_debug ? opdi_cu_stream_synchronize(user, index, stream) : 0;
}
static void opdi_cu_capture_free(void *user, int index, int64_t capture) {
    const opdi_cu_on on(index);
    opdi_cu_graph *g = (opdi_cu_graph *)(intptr_t)capture;
    (void)user;
    (void)cudaEventSynchronize(g->done);          /* a replay may still be running */
    (void)cudaGraphExecDestroy(g->exec);
    (void)cudaEventDestroy(g->done);
    (void)cudaGetLastError();
    opdi_cu_pool_free(g->pool);
    delete g;
}

static bool opdi_cu_debug_set(void *user, bool on) {
    const bool was = opdi_cu_debug;
    (void)user;
    opdi_cu_debug = on;
    return was;
}

//== ranges for profilers ==============================================================================================
//
//  With the environment variable OPD_CUDA_NVTX=1, each operator, backward node and span is a range of NVTX, which
//  Nsight Systems shows above its kernels.  NVTX is a header of the CUDA Toolkit: its functions do nothing unless a
//  profiler runs the program.  Spans that do not end in the reverse order of their beginnings are shown wrong.

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
static void *opdi_cu_range_begin(const opd_event *event, void *user) {
    (void)user;
    (void)nvtxRangePushA(event->name);
    return NULL;
}
static void opdi_cu_range_end(const opd_event *event, void *context, void *user) {
    (void)event; (void)context; (void)user;
    (void)nvtxRangePop();
}
static int opdi_cu_ranges_begin() {
    opd_observer observer = opd_observer();
    observer.begin = opdi_cu_range_begin;
    observer.end = opdi_cu_range_end;
    return opd_observer_add(&observer) ? 0 : -1;
}
#else
static int opdi_cu_ranges_begin() {
    opd_warn("OPD_CUDA_NVTX: the CUDA plug-in was compiled without the header nvtx3/nvToolsExt.h");
    return 0;
}
#endif

