//----------------------------------------------------------------------------------------------------------------------
//  >>cu:groups      process groups over NCCL
//
//  This is the implementation of opd_group_device_add.  A group has an NCCL communicator and a stream.  On that stream,
//  a collective waits for all earlier work of the current stream.  Before its result is used, the current stream waits
//  for the collective.  Sends and receives are not begun at once, but together with those that follow, between
//  ncclGroupStart and ncclGroupEnd, so that their order does not matter.  They begin when one of them is waited for,
//  another function of the group is called, the host waits for the device or group, or 50 ms have passed.  Each group
//  has a thread that watches its transfers.  If a transfer takes too long or NCCL reports an error, the thread aborts
//  the communicator, so that the work after it on the streams does not hang.  From then on, each wait for the device
//  fails with this error.
//----------------------------------------------------------------------------------------------------------------------

//== functions of NCCL, declared from its manual =======================================================================

typedef struct opdi_cu_nccl_id { char bytes[OPD_GROUP_ID]; } opdi_cu_nccl_id;
/* ncclConfig_t of NCCL 2.14.  The members `size` and `version` tell NCCL which version the struct has. */
typedef struct opdi_cu_nccl_config { size_t size; unsigned magic, version; int blocking; } opdi_cu_nccl_config;
#define OPDI_CU_NCCL_FIRST 21400                 /* version 2.14 */
enum { OPDI_CU_NCCL_INVALID_USAGE = 5, OPDI_CU_NCCL_IN_PROGRESS = 7 };
enum { OPDI_CU_NCCL_SUM = 0, OPDI_CU_NCCL_PROD, OPDI_CU_NCCL_MAX, OPDI_CU_NCCL_MIN, OPDI_CU_NCCL_AVG };
enum {
    OPDI_CU_NCCL_INT8 = 0, OPDI_CU_NCCL_UINT8, OPDI_CU_NCCL_INT32, OPDI_CU_NCCL_UINT32, OPDI_CU_NCCL_INT64,
    OPDI_CU_NCCL_UINT64, OPDI_CU_NCCL_FLOAT16, OPDI_CU_NCCL_FLOAT32, OPDI_CU_NCCL_FLOAT64, OPDI_CU_NCCL_BFLOAT16
};
#define OPDI_CU_NCCL_FUNCTIONS(X) \
    X(GetVersion, (int *version)) \
    X(GetUniqueId, (opdi_cu_nccl_id *id)) \
    X(CommInitRankConfig, (void **comm, int size, opdi_cu_nccl_id id, int rank, opdi_cu_nccl_config *config)) \
    X(CommFinalize, (void *comm)) \
    X(CommDestroy, (void *comm)) \
    X(CommAbort, (void *comm)) \
    X(CommGetAsyncError, (void *comm, int *error)) \
    X(GroupStart, (void)) \
    X(GroupEnd, (void)) \
    X(Send, (const void *from, size_t count, int type, int to, void *comm, cudaStream_t stream)) \
    X(Recv, (void *to, size_t count, int type, int from, void *comm, cudaStream_t stream)) \
    X(AllReduce, (const void *from, void *to, size_t count, int type, int op, void *comm, cudaStream_t stream)) \
    X(ReduceScatter, (const void *from, void *to, size_t count, int type, int op, void *comm, cudaStream_t stream)) \
    X(AllGather, (const void *from, void *to, size_t count, int type, void *comm, cudaStream_t stream)) \
    X(Broadcast, (const void *from, void *to, size_t count, int type, int root, void *comm, cudaStream_t stream)) \
    X(Reduce, (const void *from, void *to, size_t count, int type, int op, int root, void *comm, cudaStream_t stream))
#define OPDI_CU_NCCL_MEMBER(name, parameters) int (*name) parameters;
static struct opdi_cu_nccl_functions {
    OPDI_CU_NCCL_FUNCTIONS(OPDI_CU_NCCL_MEMBER)
    const char *(*GetErrorString)(int result);
    int version;
} opdi_cu_nccl;
static std::mutex opdi_cu_nccl_lock;

/* Returns the address of a function of the library.  If it does not exist, returns NULL and sets *missing to its name,
   unless *missing is set already. */
static void *opdi_cu_nccl_find(void *library, const char *name, const char **missing) {
    void *const found = dlsym(library, name);
    if (!found && !*missing) { *missing = name; }
    return found;
}
/* Loads NCCL, unless it is loaded.  Returns 0, or -1 and sets an error that names the missing part; the next call then
   tries again. */
static int opdi_cu_nccl_load() {
    std::lock_guard<std::mutex> guard(opdi_cu_nccl_lock);
    const char *name = getenv("OPD_NCCL"), *missing = NULL;
    opdi_cu_nccl_functions all;
    if (opdi_cu_nccl.version) { return 0; }
    if (opd_code_forbidden("NCCL")) { return -1; }
    memset(&all, 0, sizeof all);
    if (!name || !*name) { name = "libnccl.so.2"; }
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *const why = dlerror();
        return opd_fail(OPD_ERROR_FILE, "NCCL cannot be loaded: %s. Install NVIDIA's package libnccl2, or set the "
                        "environment variable OPD_NCCL to the path of libnccl.so.2.", why ? why : name);
    }
#define OPDI_CU_NCCL_TAKE(name, parameters) { \
        void *const found = opdi_cu_nccl_find(library, "nccl" #name, &missing); \
        memcpy(&all.name, &found, sizeof found); \
    }
    OPDI_CU_NCCL_FUNCTIONS(OPDI_CU_NCCL_TAKE)
    OPDI_CU_NCCL_TAKE(GetErrorString, )
    const int rc = all.GetVersion ? all.GetVersion(&all.version) : -1;
    if (!missing && rc == 0 && all.version >= OPDI_CU_NCCL_FIRST) {
        opdi_cu_nccl = all;
        return 0;
    }
    if (missing) {
        (void)opd_fail(OPD_ERROR_FILE, "NCCL: %s has no function %s: the file is not NCCL, or is older than 2.14", name,
                       missing);
    } else {
        (void)opd_fail(OPD_ERROR_FILE, "NCCL: %s has version code %d, but 2.14 (%d) or newer is needed", name,
                       rc ? 0 : all.version, OPDI_CU_NCCL_FIRST);
    }
    (void)dlclose(library);
    return -1;
}

//== transfers that NCCL supports ======================================================================================

/* Finds NCCL's type and operation for a reduction of a dtype, and the number of NCCL elements per element: *each is 2
   for complex numbers, otherwise 1.  Returns false if NCCL does not support the reduction.  Bools are reduced by "any"
   or "all". */
static bool opdi_cu_nccl_reduction(opd_scalar_type dtype, opd_reduction reduction, int *type, int *op, int64_t *each) {
    const bool wide = opd_dtype_is_complex(dtype);
    *each = wide ? 2 : 1;
    switch (dtype) {
        case OPD_FLOAT32: case OPD_COMPLEX64: *type = OPDI_CU_NCCL_FLOAT32; break;
        case OPD_FLOAT64: case OPD_COMPLEX128: *type = OPDI_CU_NCCL_FLOAT64; break;
        case OPD_FLOAT16: *type = OPDI_CU_NCCL_FLOAT16; break;
        case OPD_BFLOAT16: *type = OPDI_CU_NCCL_BFLOAT16; break;
        case OPD_INT8: *type = OPDI_CU_NCCL_INT8; break;
        case OPD_UINT8: case OPD_BOOL: *type = OPDI_CU_NCCL_UINT8; break;
        case OPD_INT32: *type = OPDI_CU_NCCL_INT32; break;
        case OPD_INT64: *type = OPDI_CU_NCCL_INT64; break;
        default: return false;
    }
    const bool truth = dtype == OPD_BOOL;
    switch (reduction) {
        case OPD_REDUCTION_SUM: *op = truth ? OPDI_CU_NCCL_MAX : OPDI_CU_NCCL_SUM; return true;
        case OPD_REDUCTION_AVG: *op = OPDI_CU_NCCL_AVG; return wide || opd_dtype_is_floating(dtype);
        case OPD_REDUCTION_PRODUCT: *op = truth ? OPDI_CU_NCCL_MIN : OPDI_CU_NCCL_PROD; return !wide;
        case OPD_REDUCTION_MIN: *op = OPDI_CU_NCCL_MIN; return !wide;
        case OPD_REDUCTION_MAX: *op = OPDI_CU_NCCL_MAX; return !wide;
        case OPD_REDUCTION_BAND: *op = OPDI_CU_NCCL_MIN; return truth;
        case OPD_REDUCTION_BOR: *op = OPDI_CU_NCCL_MAX; return truth;
        default: return false;
    }
}
static bool opdi_cu_nccl_pair(const opd_transfer *t) {
    return t->kind == OPD_COLLECTIVE_SEND || t->kind == OPD_COLLECTIVE_RECV;
}
/* Returns whether NCCL supports a transfer.  NCCL has no tags: messages arrive in the order in which they were sent. */
static bool opdi_cu_group_takes(void *user, const opd_transfer *t) {
    int type, op;
    int64_t each;
    (void)user;
    if (opdi_cu_nccl_pair(t)) { return t->tag == 0; }
    if (t->kind == OPD_COLLECTIVE_BARRIER) { return false; }
    if (t->kind != OPD_COLLECTIVE_ALL_REDUCE && t->kind != OPD_COLLECTIVE_REDUCE &&
        t->kind != OPD_COLLECTIVE_REDUCE_SCATTER) { return true; }
    return opdi_cu_nccl_reduction(t->dtype, t->reduction, &type, &op, &each);
}

//== groups ============================================================================================================

static int64_t opdi_cu_clock() {                  /* returns milliseconds */
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now().time_since_epoch()).count();
}
#define OPDI_CU_KEPT_MS 50                       /* the longest time for which a send or receive is kept back */
/* A transfer that a caller requested. */
typedef struct opdi_cu_move {
    opd_transfer what;
    std::vector<int64_t> counts;                  /* for an all-to-all: the numbers of elements sent to each rank, then
                                                     received */
    cudaEvent_t ready, done;                      /* ready: the event that the transfer waits for; done: the event of
                                                     its end */
    bool queued, passed, held;  /* queued: done was recorded; passed: done has passed; held: a caller may wait for it */
    int64_t asked, begun;        /* asked: time of the request; begun: time when `ready` was first seen to have passed,
                                    or 0 */
    unsigned long long number;
} opdi_cu_move;
typedef struct opdi_cu_group {
    std::mutex lock;                              /* protects all members below */
    std::condition_variable wake;
    std::thread watch;
    char name[64], lost[500];                     /* lost: why the group has ended after an error, or "" */
    int device, rank, size;
    int64_t timeout_ms;
    void *comm;
    cudaStream_t stream;
    unsigned long long count;
    std::list<opdi_cu_move *> kept, running;      /* kept: sends and receives not begun yet; running: transfers on the
                                                     stream */
    bool ends;
} opdi_cu_group;
/* All groups, by device, and the groups that have ended after an error.  Results that are on the devices of ended
   groups may be wrong.  A device's lock may be held while NCCL waits for other ranks. */
static std::mutex opdi_cu_groups_lock[OPDI_CU_MAX_DEVICES], opdi_cu_lost_lock;
static std::list<opdi_cu_group *> *const opdi_cu_groups = new std::list<opdi_cu_group *>[OPDI_CU_MAX_DEVICES];
static std::vector<const opdi_cu_group *> *opdi_cu_lost_groups;

/* If a group of the current device has ended after an error, sets the group's error and returns -1; otherwise returns
   0. */
static int opdi_cu_lost_check() {
    const int device = opdi_cu_current();
    std::lock_guard<std::mutex> guard(opdi_cu_lost_lock);
    for (const opdi_cu_group *g : *opdi_cu_lost_groups) {
        if (g->device == device) {
            return opd_fail(OPD_ERROR_KERNEL, "%s\nResults computed on cuda:%d since then may be wrong. They cannot be "
                            "read until you call opd_group_unregister.", g->lost, device);
        }
    }
    return 0;
}
static void opdi_cu_lost_forget(const opdi_cu_group *g) {
    std::lock_guard<std::mutex> guard(opdi_cu_lost_lock);
    std::vector<const opdi_cu_group *> *all = opdi_cu_lost_groups;
    for (size_t i = 0; all && i < all->size(); i++) {
        if ((*all)[i] != g) { continue; }
        all->erase(all->begin() + (long)i);
        opdi_cu_nlost--;
        return;
    }
}
static const char *opdi_cu_move_name(const opdi_cu_move *m) {
    static const char *const names[] = {"?", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast",
                                        "reduce", "gather", "scatter", "send", "recv", "barrier"};
    return names[m->what.kind <= OPD_COLLECTIVE_BARRIER ? m->what.kind : 0];
}
/* Ends the group after an error: aborts its communicator, so that streams do not hang, and lets it run no more
   transfers.  `m` is the transfer that failed, or NULL.  Called under the group's lock. */
static void opdi_cu_group_lose(opdi_cu_group *g, const opdi_cu_move *m, const char *why) {
    void *const comm = g->comm;
    char which[100] = "";
    if (g->lost[0]) { return; }
    if (m) {
        (void)snprintf(which, sizeof which, "%s, transfer %llu over NCCL of ", opdi_cu_move_name(m), m->number);
    }
    (void)snprintf(g->lost, sizeof g->lost, "%sprocess group '%s' (rank %d of %d): %.300s", which, g->name, g->rank,
                   g->size, why);
    {
        std::lock_guard<std::mutex> guard(opdi_cu_lost_lock);
        if (!opdi_cu_lost_groups) { opdi_cu_lost_groups = new std::vector<const opdi_cu_group *>(); }
        opdi_cu_lost_groups->push_back(g);
        opdi_cu_nlost++;
    }
    g->comm = NULL;
    if (comm) { (void)opdi_cu_nccl.CommAbort(comm); }
}
static int opdi_cu_group_gone(const opdi_cu_group *g) { return opd_fail(OPD_ERROR_KERNEL, "%s", g->lost); }
/* Waits until NCCL has accepted a request for the group.  `result` is what NCCL returned for the request: a result, or
   "in progress".  `m` is the request's transfer, or NULL.  Returns 0, or ends the group and returns -1. */
static int opdi_cu_group_wait_accepted(opdi_cu_group *g, const opdi_cu_move *m, int result) {
    const int64_t begun = opdi_cu_clock();
    char why[200];
    while (result == OPDI_CU_NCCL_IN_PROGRESS && opdi_cu_clock() - begun < g->timeout_ms) {
        int state = 0;
        const int asked = opdi_cu_nccl.CommGetAsyncError(g->comm, &state);
        result = asked ? asked : state;
        if (result == OPDI_CU_NCCL_IN_PROGRESS) { std::this_thread::sleep_for(std::chrono::microseconds(20)); }
    }
    if (result == 0) { return 0; }
    if (result == OPDI_CU_NCCL_IN_PROGRESS) {
        (void)snprintf(why, sizeof why, "not all ranks joined within %.3g s: one has ended, or called another function",
                       (double)g->timeout_ms / 1000);
    } else { (void)snprintf(why, sizeof why, "NCCL: %s", opdi_cu_nccl.GetErrorString(result)); }
    opdi_cu_group_lose(g, m, why);
    return -1;
}

//== transfers =========================================================================================================

/* Passes a transfer to NCCL as sends and receives, for transfers that are not collectives of NCCL.  Returns NCCL's
   first error, or 0. */
static int opdi_cu_move_parts(const opdi_cu_group *g, const opdi_cu_move *m) {
    const opd_transfer *const t = &m->what;
    const size_t size = opd_dtype_size(t->dtype), bytes = (size_t)t->count * size;
    const bool all = t->kind == OPD_COLLECTIVE_ALL_TO_ALL, root = t->peer == g->rank;
    const char *from = (const char *)t->send;
    char *to = (char *)t->recv;
    int result = 0, one;
    auto note = [&](int r) { if (result == 0 && r != OPDI_CU_NCCL_IN_PROGRESS) { result = r; } };
    for (int rank = 0; rank < g->size; rank++) {
        const size_t sent = all ? (size_t)m->counts[(size_t)rank] * size
            : t->kind == OPD_COLLECTIVE_GATHER ? (rank == t->peer ? bytes : 0)
            : t->kind == OPD_COLLECTIVE_SCATTER ? (root ? bytes : 0)
            : t->kind == OPD_COLLECTIVE_SEND && rank == t->peer ? bytes : 0;
        const size_t taken = all ? (size_t)m->counts[(size_t)(g->size + rank)] * size
            : t->kind == OPD_COLLECTIVE_GATHER ? (root ? bytes : 0)
            : t->kind == OPD_COLLECTIVE_SCATTER ? (rank == t->peer ? bytes : 0)
            : t->kind == OPD_COLLECTIVE_RECV && rank == t->peer ? bytes : 0;
        if (sent) {
            one = opdi_cu_nccl.Send(from, sent, OPDI_CU_NCCL_UINT8, rank, g->comm, g->stream);
            note(one);
        }
        if (taken) {
            one = opdi_cu_nccl.Recv(to, taken, OPDI_CU_NCCL_UINT8, rank, g->comm, g->stream);
            note(one);
        }
        if (all || t->kind == OPD_COLLECTIVE_SCATTER) { from += sent; }
        if (all || t->kind == OPD_COLLECTIVE_GATHER) { to += taken; }
    }
    return result;
}
/* If a transfer is a collective of NCCL, passes it to NCCL, sets *result to NCCL's result, and returns true.  Otherwise
   returns false. */
static bool opdi_cu_move_whole(const opdi_cu_group *g, const opdi_cu_move *m, int *result) {
    const opd_transfer *const t = &m->what;
    const size_t bytes = (size_t)t->count * opd_dtype_size(t->dtype);
    int type = OPDI_CU_NCCL_UINT8, op = OPDI_CU_NCCL_SUM;
    int64_t each = 1;
    (void)opdi_cu_nccl_reduction(t->dtype, t->reduction, &type, &op, &each);
    const size_t count = (size_t)(t->count * each);
    switch ((int)t->kind) {
    case OPD_COLLECTIVE_ALL_REDUCE:
        *result = opdi_cu_nccl.AllReduce(t->send, t->recv, count, type, op, g->comm, g->stream);
        return true;
    case OPD_COLLECTIVE_REDUCE_SCATTER:
        *result = opdi_cu_nccl.ReduceScatter(t->send, t->recv, count, type, op, g->comm, g->stream);
        return true;
    case OPD_COLLECTIVE_REDUCE:
        *result = opdi_cu_nccl.Reduce(t->send, t->recv, count, type, op, t->peer, g->comm, g->stream);
        return true;
    case OPD_COLLECTIVE_ALL_GATHER:
        *result = opdi_cu_nccl.AllGather(t->send, t->recv, bytes, OPDI_CU_NCCL_UINT8, g->comm, g->stream);
        return true;
    case OPD_COLLECTIVE_BROADCAST:
        *result = opdi_cu_nccl.Broadcast(t->send, t->recv, bytes, OPDI_CU_NCCL_UINT8, t->peer, g->comm, g->stream);
        return true;
    default: return false;
    }
}
/* Begins transfers together, after the work that each depends on.  Returns 0, or ends the group and returns -1.  Called
   under the group's lock, while the group's device is current. */
static int opdi_cu_group_queue(opdi_cu_group *g, std::list<opdi_cu_move *> &moves) {
    opdi_cu_move *const first = moves.front();
    cudaError_t e = cudaSuccess;
    int result = 0;
    for (const opdi_cu_move *m : moves) { if (e == cudaSuccess) { e = cudaStreamWaitEvent(g->stream, m->ready, 0); } }
    if (e == cudaSuccess && (moves.size() > 1 || !opdi_cu_move_whole(g, first, &result))) {
        result = opdi_cu_nccl.GroupStart();
        for (const opdi_cu_move *m : moves) { if (result == 0) { result = opdi_cu_move_parts(g, m); } }
        const int ended = opdi_cu_nccl.GroupEnd();
        if (result == 0) { result = ended; }
    }
    if (e == cudaSuccess && opdi_cu_group_wait_accepted(g, first, result)) { return -1; }
    for (opdi_cu_move *m : moves) {
        if (e == cudaSuccess) { e = cudaEventRecord(m->done, g->stream); }
        m->queued = e == cudaSuccess;
    }
    if (e != cudaSuccess) {
        (void)cudaGetLastError();
        opdi_cu_group_lose(g, first, cudaGetErrorString(e));
        return -1;
    }
    g->running.splice(g->running.end(), moves);
    g->wake.notify_all();
    return 0;
}
/* Begins the sends and receives that were kept back.  Returns 0, or -1 if the group has ended. */
static int opdi_cu_group_flush(opdi_cu_group *g) {
    std::list<opdi_cu_move *> moves;
    if (g->lost[0]) { return -1; }
    if (g->kept.empty()) { return 0; }
    moves.swap(g->kept);
    const int rc = opdi_cu_group_queue(g, moves);
    if (rc) { g->running.splice(g->running.end(), moves); }   /* opdi_cu_group_free frees them */
    return rc;
}
static int opdi_cu_group_begin(void *user) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    const opdi_cu_on on(g->device);
    std::lock_guard<std::mutex> hold(g->lock);
    return opdi_cu_group_flush(g);
}
static void opdi_cu_groups_flush(int index) {
    if (opdi_cu_ngroups == 0) { return; }
    std::lock_guard<std::mutex> guard(opdi_cu_groups_lock[index]);
    for (opdi_cu_group *g : opdi_cu_groups[index]) { (void)opdi_cu_group_begin(g); }
}
/* Adds a group to its device's list, or removes it from the list if `on` is false. */
static void opdi_cu_group_list(opdi_cu_group *g, bool on) {
    std::lock_guard<std::mutex> guard(opdi_cu_groups_lock[g->device]);
    std::list<opdi_cu_group *> &all = opdi_cu_groups[g->device];
    const size_t before = all.size();
    if (on) { all.push_back(g); } else { all.remove(g); }
    opdi_cu_ngroups += (int)all.size() - (int)before;
}
static void opdi_cu_move_free(opdi_cu_move *m) {
    if (m->ready) { (void)cudaEventDestroy(m->ready); }
    if (m->done) { (void)cudaEventDestroy(m->done); }
    delete m;
}
/* Records that the caller no longer waits for a transfer.  The transfer is freed as soon as it has also finished. */
static void opdi_cu_move_drop(opdi_cu_move *m) {
    m->held = false;
    if (m->passed) { opdi_cu_move_free(m); }
}
static opdi_cu_move *opdi_cu_move_new(opdi_cu_group *g, const opd_transfer *t) {
    opdi_cu_move *const m = new (std::nothrow) opdi_cu_move();
    if (!m) {
        (void)opdi_cu_no_memory("a collective operation");
        return NULL;
    }
    cudaError_t e = cudaEventCreateWithFlags(&m->ready, cudaEventDisableTiming);
    if (e == cudaSuccess) { e = cudaEventCreateWithFlags(&m->done, cudaEventDisableTiming); }
    if (e == cudaSuccess) { e = cudaEventRecord(m->ready, opdi_cu_streams[g->device]); }
    if (e != cudaSuccess) {
        opdi_cu_move_free(m);
        (void)opdi_cu_failed(e, "creating the events of a collective operation");
        return NULL;
    }
    m->what = *t;
    if (t->kind == OPD_COLLECTIVE_ALL_TO_ALL) {
        m->counts.assign(t->send_counts, t->send_counts + g->size);
        m->counts.insert(m->counts.end(), t->recv_counts, t->recv_counts + g->size);
    }
    m->what.send_counts = m->what.recv_counts = NULL;
    m->number = ++g->count;
    m->asked = opdi_cu_clock();
    m->held = true;
    return m;
}
static int opdi_cu_group_start(void *user, const opd_transfer *t, void **request) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    const opdi_cu_on on(g->device);
    std::unique_lock<std::mutex> hold(g->lock);
    if (g->lost[0]) { return opdi_cu_group_gone(g); }
    if (!opdi_cu_group_takes(NULL, t)) {
        return opd_fail(OPD_ERROR_DTYPE, opdi_cu_nccl_pair(t) ? "NCCL supports no tags but 0"
                        : "NCCL does not support this reduction for %s", opd_dtype_name(t->dtype));
    }
    if (opdi_cu_uncaptured(opdi_cu_streams[g->device], "a collective operation")) { return -1; }
    if (!opdi_cu_nccl_pair(t) && opdi_cu_group_flush(g)) { return opdi_cu_group_gone(g); }
    opdi_cu_move *const m = opdi_cu_move_new(g, t);
    if (!m) { return -1; }
    *request = m;
    g->kept.push_back(m);
    if (opdi_cu_nccl_pair(t)) {
        g->wake.notify_all();
        return 0;
    }
    if (opdi_cu_group_flush(g) == 0) { return 0; }
    opdi_cu_move_drop(m);
    return opdi_cu_group_gone(g);
}
static int opdi_cu_group_wait(void *user, void *request) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    opdi_cu_move *const m = (opdi_cu_move *)request;
    const opdi_cu_on on(g->device);
    std::unique_lock<std::mutex> hold(g->lock);
    const cudaStream_t stream = opdi_cu_streams[g->device];
    int rc = m->queued ? 0 : opdi_cu_group_flush(g);
    if (g->lost[0]) { rc = opdi_cu_group_gone(g); }
    else if (!m->passed) {
        const cudaError_t e = cudaStreamWaitEvent(stream, m->done, 0);
        rc = e == cudaSuccess ? 0 : opdi_cu_failed(e, "waiting for a collective operation");
    }
    opdi_cu_move_drop(m);
    return rc;
}
static int opdi_cu_group_test(void *user, void *request) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    opdi_cu_move *const m = (opdi_cu_move *)request;
    const opdi_cu_on on(g->device);
    std::unique_lock<std::mutex> hold(g->lock);
    if (!m->queued && opdi_cu_clock() - m->asked >= OPDI_CU_KEPT_MS / 10) { (void)opdi_cu_group_flush(g); }
    if (g->lost[0]) { return opdi_cu_group_gone(g); }
    if (m->passed || !m->queued) { return m->passed; }
    const cudaError_t e = cudaEventQuery(m->done);
    if (e == cudaSuccess) { return 1; }
    if (e != cudaErrorNotReady) { return opdi_cu_failed(e, "querying a collective operation"); }
    (void)cudaGetLastError();
    return 0;
}

//== watching transfers ================================================================================================

/* Removes transfers that have finished.  Ends the group if NCCL reports an error, or a transfer takes longer than the
   timeout.  Called under the group's lock. */
static void opdi_cu_group_poll(opdi_cu_group *g) {
    const int64_t now = opdi_cu_clock();
    char why[200];
    int state = 0;
    while (!g->running.empty() && !g->lost[0]) {
        opdi_cu_move *const m = g->running.front();
        const cudaError_t e = cudaEventQuery(m->done);
        if (e == cudaErrorNotReady) { break; }
        g->running.pop_front();
        m->passed = true;
        if (!m->held) { opdi_cu_move_free(m); }
    }
    (void)cudaGetLastError();
    if (g->lost[0] || !g->comm) { return; }
    const int asked = opdi_cu_nccl.CommGetAsyncError(g->comm, &state);
    if (asked || (state && state != OPDI_CU_NCCL_IN_PROGRESS)) {
        (void)snprintf(why, sizeof why, "NCCL: %s", opdi_cu_nccl.GetErrorString(asked ? asked : state));
        opdi_cu_group_lose(g, g->running.empty() ? NULL : g->running.front(), why);
        return;
    }
    if (g->running.empty()) { return; }
    opdi_cu_move *const m = g->running.front();
    if (!m->begun && cudaEventQuery(m->ready) == cudaSuccess) { m->begun = now; }
    (void)cudaGetLastError();
    if (m->begun && now - m->begun >= g->timeout_ms) {
        (void)snprintf(why, sizeof why, "it was not done after %.3g s: a rank has ended, or called another function",
                       (double)g->timeout_ms / 1000);
        opdi_cu_group_lose(g, m, why);
    }
}
static void opdi_cu_group_watch(opdi_cu_group *g) {
    std::unique_lock<std::mutex> hold(g->lock);
    (void)cudaSetDevice(g->device);
    while (!g->ends) {
        if (g->lost[0] || (g->kept.empty() && g->running.empty())) {
            (void)g->wake.wait_for(hold, std::chrono::seconds(1));
            if (!g->lost[0]) { opdi_cu_group_poll(g); }
            continue;
        }
        if (!g->kept.empty() && opdi_cu_clock() - g->kept.front()->asked >= OPDI_CU_KEPT_MS) {
            (void)opdi_cu_group_flush(g);
        }
        opdi_cu_group_poll(g);
        hold.unlock();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        hold.lock();
    }
}
static int opdi_cu_group_abandon(void *user, const char *why) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    const opdi_cu_on on(g->device);
    std::lock_guard<std::mutex> hold(g->lock);
    opdi_cu_group_lose(g, NULL, why);
    return 0;
}
/* Waits for the group's transfers, ends its watching thread, and frees the communicator when all ranks have finished
   with it. */
static void opdi_cu_group_leave(opdi_cu_group *g) {
    std::unique_lock<std::mutex> hold(g->lock);
    (void)opdi_cu_group_flush(g);
    while (!g->running.empty() && !g->lost[0]) {
        opdi_cu_group_poll(g);
        hold.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        hold.lock();
    }
    g->ends = true;
    g->wake.notify_all();
    hold.unlock();
    if (g->watch.joinable()) { g->watch.join(); }
    if (!g->lost[0] && g->comm && opdi_cu_group_wait_accepted(g, NULL, opdi_cu_nccl.CommFinalize(g->comm)) == 0) {
        (void)opdi_cu_nccl.CommDestroy(g->comm);
    }
}
static void opdi_cu_group_free(opdi_cu_group *g) {
    for (opdi_cu_move *m : g->kept) { opdi_cu_move_free(m); }
    for (opdi_cu_move *m : g->running) { opdi_cu_move_free(m); }
    if (g->stream) { opdi_cu_stream_free(NULL, g->device, (int64_t)(intptr_t)g->stream); }
    opdi_cu_lost_forget(g);
    delete g;
}
static int opdi_cu_group_destroy(void *user) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    const opdi_cu_on on(g->device);
    opdi_cu_group_list(g, false);
    opdi_cu_group_leave(g);
    const int rc = g->lost[0] ? opdi_cu_group_gone(g) : 0;
    opdi_cu_group_free(g);
    return rc;
}

//== functions of the backend ==========================================================================================

static int opdi_cu_group_id(void *user, int index, void *id) {
    const opdi_cu_on on(index);
    (void)user;
    if (opdi_cu_nccl_load()) { return -1; }
    const int result = id ? opdi_cu_nccl.GetUniqueId((opdi_cu_nccl_id *)id) : 0;
    return result == 0 ? 0 : opd_fail(OPD_ERROR_KERNEL, "ncclGetUniqueId: %s", opdi_cu_nccl.GetErrorString(result));
}
static int opdi_cu_group_ready(void *user) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    const opdi_cu_on on(g->device);
    std::unique_lock<std::mutex> hold(g->lock);
    if (!g->lost[0]) { (void)opdi_cu_group_wait_accepted(g, NULL, OPDI_CU_NCCL_IN_PROGRESS); }
    if (g->lost[0]) { return opdi_cu_group_gone(g); }
    g->watch = std::thread(opdi_cu_group_watch, g);
    hold.unlock();
    opdi_cu_group_list(g, true);
    return 0;
}
/* Begins to join the other ranks in a communicator, whose id is `id`.  Returns 0, or -1 and sets an error. */
static int opdi_cu_group_join(opdi_cu_group *g, const void *id) {
    opdi_cu_nccl_config config;
    opdi_cu_nccl_id key;
    int64_t stream = 0;
    memcpy(&key, id, sizeof key);
    memset(&config, 0, sizeof config);
    config.size = sizeof config;
    config.magic = 0xcafebeefu;                   /* NCCL_API_MAGIC */
    config.version = OPDI_CU_NCCL_FIRST;
    if (opdi_cu_stream_new(NULL, g->device, &stream)) { return -1; }
    g->stream = (cudaStream_t)(intptr_t)stream;
    const int result = opdi_cu_nccl.CommInitRankConfig(&g->comm, g->size, key, g->rank, &config);
    if (result == 0 || result == OPDI_CU_NCCL_IN_PROGRESS) { return 0; }
    return opd_fail(OPD_ERROR_KERNEL, "ncclCommInitRankConfig: %s", opdi_cu_nccl.GetErrorString(result));
}
static int opdi_cu_group_new(void *user, int index, const opd_group_desc *group, const void *id,
                             opd_group_mover *mover) {
    const opdi_cu_on on(index);
    (void)user;
    if (opdi_cu_nccl_load()) { return -1; }
    opdi_cu_group *const g = new (std::nothrow) opdi_cu_group();
    if (!g) { return opdi_cu_no_memory("a process group"); }
    (void)snprintf(g->name, sizeof g->name, "%s", group->name);
    g->device = index;
    g->rank = group->rank;
    g->size = group->size;
    g->timeout_ms = group->timeout_ms;
    if (opdi_cu_group_join(g, id)) {
        opdi_cu_group_free(g);
        return -1;
    }
    mover->ready = opdi_cu_group_ready;
    mover->takes = opdi_cu_group_takes; mover->start = opdi_cu_group_start; mover->wait = opdi_cu_group_wait;
    mover->test = opdi_cu_group_test; mover->flush = opdi_cu_group_begin;
    mover->abandon = opdi_cu_group_abandon; mover->destroy = opdi_cu_group_destroy;
    mover->user = g;
    return 0;
}

