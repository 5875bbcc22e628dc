/* An emulation of NCCL for machines without a GPU, with the functions that opdispatch_cuda.cu uses: a library that
   the CUDA plug-in loads (OPD_NCCL), for the emulation in cuda_runtime.h.  Ranks are threads of one process.  Data
   is moved when the streams of all ranks have reached the call.

     g++ -std=c++17 -shared -fPIC -Itests/cuda tests/cuda/nccl.cpp -o nccl.so;  OPD_EMU_ASYNC=1 to 3

   With -DNCCL_OVER_MPI, ranks are processes for which MPI was started (MPI_THREAD_MULTIPLE), and MPI moves the data.
   Compile it with mpicxx, or so that the compiler finds mpi.h.

   As in NCCL: a communicator that does not block returns ncclInProgress, and a call is on its stream only once
   ncclCommGetAsyncError returns ncclSuccess.  Messages between two ranks arrive in the order of their calls.  A send
   waits for its receiver.  Ranks that call different functions, or use different counts, wait forever.  After a
   communicator was aborted, its streams continue, with undefined contents of the receiving memory.

   Environment: OPD_EMU_NCCL_VERSION=22000 sets the version that the library reports.
   For tests: opd_emu_nccl_fail(rank, result) makes all later calls of a rank's communicators return this result. */
#include "cuda_runtime.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"

#if defined(NCCL_OVER_MPI)
#include <mpi.h>
#endif
#include <atomic>
#include <set>
#include <string>

#define API extern "C" __attribute__((visibility("default")))

namespace {

enum { SUCCESS = 0, INTERNAL = 3, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, IN_PROGRESS = 7 };
enum Kind { ALL_REDUCE, REDUCE_SCATTER, REDUCE, ALL_GATHER, BROADCAST, SEND, RECV };
struct Id { char bytes[128]; };
struct Config { size_t size; unsigned magic, version; int blocking; };
/* What one rank has asked for. */
struct Part { Kind kind; const void *from; void *to; size_t count; int type, op, peer; };
struct World;
struct Comm {
    std::shared_ptr<World> world;
    int rank;
    std::atomic<bool> dead;
    std::atomic<int> polls;                       // how often to say "in progress" yet
    unsigned long calls;                          // collectives so far
    std::deque<std::pair<void *, int (*)(void *)>> given;     // pieces for the stream
    void *stream;
    std::vector<Part> group;
};
struct Meeting { std::vector<Part> parts; int came, read; };
struct World {
    int size, joined;
#if defined(NCCL_OVER_MPI)
    MPI_Comm mpi;
#endif
    std::map<unsigned long, Meeting> meetings;    // of collectives, by their number
    std::map<std::pair<int, int>, std::deque<struct Message *>> sent;         // that nobody has taken, by who sends to whom
};
struct Message { const void *from; size_t bytes; bool taken; };

std::recursive_mutex lock;
std::map<std::string, std::weak_ptr<World>> &worlds = *new std::map<std::string, std::weak_ptr<World>>();
std::map<int, int> failures;                      // by rank
long made;
std::vector<Comm *> &comms = *new std::vector<Comm *>();     // they stay: pieces on streams may look at them
thread_local int depth;
thread_local std::set<Comm *> *grouped;

size_t size_of(int type) {
    static const size_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return type >= 0 && type < 10 ? sizes[type] : 0;
}
template <class T> T reduced(T a, T b, int op) { return op == 1 ? (T)(a * b) : op == 2 ? (a > b ? a : b) : op == 3 ? (a < b ? a : b) : (T)(a + b); }
template <class T> void reduce_as(void *to, const void *from, size_t n, int op) {
    for (size_t i = 0; i < n; i++) { ((T *)to)[i] = reduced(((T *)to)[i], ((const T *)from)[i], op); }
}
void reduce(void *to, const void *from, size_t n, int type, int op) {
    switch (type) {
    case 0: reduce_as<int8_t>(to, from, n, op); break;
    case 1: reduce_as<uint8_t>(to, from, n, op); break;
    case 2: reduce_as<int32_t>(to, from, n, op); break;
    case 3: reduce_as<uint32_t>(to, from, n, op); break;
    case 4: reduce_as<int64_t>(to, from, n, op); break;
    case 5: reduce_as<uint64_t>(to, from, n, op); break;
    case 7: reduce_as<float>(to, from, n, op); break;
    case 8: reduce_as<double>(to, from, n, op); break;
    case 6: for (size_t i = 0; i < n; i++) {
        ((__half *)to)[i] = __float2half_rn(reduced(__half2float(((__half *)to)[i]), __half2float(((const __half *)from)[i]), op)); } break;
    default: for (size_t i = 0; i < n; i++) {
        ((__nv_bfloat16 *)to)[i] = __float2bfloat16_rn(reduced(__bfloat162float(((__nv_bfloat16 *)to)[i]),
                                                               __bfloat162float(((const __nv_bfloat16 *)from)[i]), op)); }
    }
}
void divide(void *to, size_t n, int type, int by) {
    for (size_t i = 0; i < n; i++) {
        if (type == 7) { ((float *)to)[i] /= (float)by; }
        else if (type == 8) { ((double *)to)[i] /= by; }
        else if (type == 6) { ((__half *)to)[i] = __float2half_rn(__half2float(((__half *)to)[i]) / (float)by); }
        else { ((__nv_bfloat16 *)to)[i] = __float2bfloat16_rn(__bfloat162float(((__nv_bfloat16 *)to)[i]) / (float)by); }
    }
}

/* A collective on its stream: it comes, reads what the others have when all have come, and ends when all have read. */
struct Collective {
    std::shared_ptr<World> world;
    Comm *comm;
    unsigned long number;
    Part part;
    bool came, has_read;
    std::vector<char> result;
};
void compute(Collective *c, const Meeting &m) {
    const Part &p = c->part;
    const size_t size = size_of(p.type), bytes = p.count * size;
    const int ranks = c->world->size;
    if (p.kind == ALL_GATHER) {
        for (const Part &other : m.parts) { c->result.insert(c->result.end(), (const char *)other.from, (const char *)other.from + bytes); }
        return;
    }
    if (p.kind == BROADCAST) {
        const char *from = (const char *)m.parts[(size_t)p.peer].from;
        c->result.assign(from, from + bytes);
        return;
    }
    if (p.kind == REDUCE && p.peer != c->comm->rank) { return; }
    const size_t at = p.kind == REDUCE_SCATTER ? (size_t)c->comm->rank * bytes : 0;
    const char *first = (const char *)m.parts[0].from + at;
    c->result.assign(first, first + bytes);
    for (int r = 1; r < ranks; r++) { reduce(c->result.data(), (const char *)m.parts[(size_t)r].from + at, p.count, p.type, p.op); }
    if (p.op == 4) { divide(c->result.data(), p.count, p.type, ranks); }
}
bool alike(const Meeting &m) {
    for (const Part &p : m.parts) {
        const Part &q = m.parts[0];
        if (p.kind != q.kind || p.count != q.count || p.type != q.type || p.op != q.op || p.peer != q.peer) { return false; }
    }
    return true;
}
#if defined(NCCL_OVER_MPI)
/* All send everybody what they have; then each computes as ranks that are threads do. */
struct Gathered { Collective *c; MPI_Request request; Meeting all; std::vector<char> from; };
int collective_step(void *arg) {
    Gathered *g = (Gathered *)arg;
    Collective *c = g->c;
    const Part &p = c->part;
    const size_t ranks = (size_t)c->world->size, bytes = p.count * size_of(p.type) * (p.kind == REDUCE_SCATTER ? ranks : 1);
    int done = 0;
    if (c->comm->dead) { return 1; }
    if (!c->came) {
        g->from.resize(ranks * bytes + 1);
        MPI_Iallgather(p.kind == BROADCAST && p.peer != c->comm->rank ? p.to : p.from, (int)bytes, MPI_BYTE, g->from.data(), (int)bytes,
                       MPI_BYTE, c->world->mpi, &g->request);
        c->came = true;
    }
    MPI_Test(&g->request, &done, MPI_STATUS_IGNORE);
    if (!done) { return 0; }
    for (size_t r = 0; r < ranks; r++) {
        g->all.parts.push_back(p);
        g->all.parts.back().from = g->from.data() + r * bytes;
    }
    compute(c, g->all);
    if (!c->result.empty()) { memcpy(p.to, c->result.data(), c->result.size()); }
    delete c;
    delete g;
    return 1;
}
struct Together { std::shared_ptr<World> world; Comm *comm; std::vector<Part> parts; std::vector<MPI_Request> requests; bool came; };
int together_step(void *arg) {
    Together *t = (Together *)arg;
    int done = 0;
    if (t->comm->dead) { return 1; }
    for (size_t i = 0; i < t->parts.size() && !t->came; i++) {
        const Part &p = t->parts[i];
        const int bytes = (int)(p.count * size_of(p.type));
        t->requests.push_back(MPI_REQUEST_NULL);
        if (p.kind == SEND) { MPI_Issend(p.from, bytes, MPI_BYTE, p.peer, 0, t->world->mpi, &t->requests.back()); }
        else { MPI_Irecv(p.to, bytes, MPI_BYTE, p.peer, 0, t->world->mpi, &t->requests.back()); }
    }
    t->came = true;
    MPI_Testall((int)t->requests.size(), t->requests.data(), &done, MPI_STATUSES_IGNORE);
    if (!done) { return 0; }
    delete t;
    return 1;
}
/* The communicator of these ranks: the first one, whose place in the job the id has, tells the others who they are. */
void join(World *world, const Id &id, int rank) {
    int here, first = 0, tag = 0;
    std::vector<int> places((size_t)world->size);
    sscanf(id.bytes, "world %d %d", &first, &tag);
    tag += 1000;
    MPI_Comm_rank(MPI_COMM_WORLD, &here);
    int mine[2] = {rank, here};
    MPI_Group all, some;
    if (rank == 0) {
        places[0] = here;
        for (int i = 1; i < world->size; i++) {
            int its[2];
            MPI_Recv(its, 2, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            places[(size_t)its[0]] = its[1];
        }
        for (int i = 1; i < world->size; i++) { MPI_Send(places.data(), world->size, MPI_INT, places[(size_t)i], tag, MPI_COMM_WORLD); }
    } else {
        MPI_Send(mine, 2, MPI_INT, first, tag, MPI_COMM_WORLD);
        MPI_Recv(places.data(), world->size, MPI_INT, first, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, world->size, places.data(), &some);
    MPI_Comm_create_group(MPI_COMM_WORLD, some, tag, &world->mpi);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}
#else
int collective_step(void *arg) {
    Collective *c = (Collective *)arg;
    std::lock_guard<std::recursive_mutex> guard(lock);
    Meeting &m = c->world->meetings[c->number];
    if (c->comm->dead) { delete c; return 1; }
    if (!c->came) {
        if (m.parts.empty()) { m.parts.resize((size_t)c->world->size); }
        m.parts[(size_t)c->comm->rank] = c->part;
        m.came++;
        c->came = true;
    }
    if (m.came < c->world->size || !alike(m)) { return 0; }
    if (!c->has_read) {
        compute(c, m);
        m.read++;
        c->has_read = true;
    }
    if (m.read < c->world->size) { return 0; }
    if (!c->result.empty()) { memcpy(c->part.to, c->result.data(), c->result.size()); }
    delete c;
    return 1;
}

/* Sends and receives that were begun together. */
struct Together {
    std::shared_ptr<World> world;
    Comm *comm;
    std::vector<Part> parts;
    std::vector<Message *> messages;              // of the sends; NULL: of a receive that is done
    bool came;
};
int together_step(void *arg) {
    Together *t = (Together *)arg;
    std::lock_guard<std::recursive_mutex> guard(lock);
    bool all = true;
    if (t->comm->dead) { delete t; return 1; }
    for (size_t i = 0; i < t->parts.size() && !t->came; i++) {
        const Part &p = t->parts[i];
        t->messages.push_back(new Message{p.from, p.count * size_of(p.type), false});
        if (p.kind == SEND) { t->world->sent[{t->comm->rank, p.peer}].push_back(t->messages.back()); }
    }
    t->came = true;
    for (size_t i = 0; i < t->parts.size(); i++) {
        const Part &p = t->parts[i];
        Message *&own = t->messages[i];
        if (p.kind == RECV && own) {
            std::deque<Message *> &box = t->world->sent[{p.peer, t->comm->rank}];
            bool earlier = false;                 // one from the same rank comes first
            for (size_t k = 0; k < i; k++) { earlier = earlier || (t->parts[k].kind == RECV && t->messages[k] && t->parts[k].peer == p.peer); }
            if (!earlier && !box.empty() && box.front()->bytes == p.count * size_of(p.type)) {
                memcpy(p.to, box.front()->from, box.front()->bytes);
                box.front()->taken = true;
                box.pop_front();
                delete own;
                own = NULL;
            }
            all = all && !own;
        }
        if (p.kind == SEND) { all = all && own->taken; }
    }
    if (!all) { return 0; }
    for (Message *m : t->messages) { delete m; }
    delete t;
    return 1;
}
#endif
int submit(Comm *comm, void *piece, int (*step)(void *)) {
    std::lock_guard<std::recursive_mutex> guard(lock);
    comm->given.push_back({piece, step});
    comm->polls = 2;
    return IN_PROGRESS;
}
int failure(Comm *comm) {
    std::lock_guard<std::recursive_mutex> guard(lock);
    auto at = failures.find(comm->rank);
    return at == failures.end() ? SUCCESS : at->second;
}
int ask(void *its, const Part &part, void *stream) {
    Comm *comm = (Comm *)its;
    if (!comm || !stream || !size_of(part.type) || part.peer < 0 || part.peer >= comm->world->size) { return INVALID_ARGUMENT; }
    if (failure(comm)) { return failure(comm); }
    comm->stream = stream;
    if (part.kind == SEND || part.kind == RECV) {
        if (!depth) { return INVALID_USAGE; }     // alone they would do, but not for what this is to show
        comm->group.push_back(part);
        grouped->insert(comm);
        return comm->group.size() > 1 ? IN_PROGRESS : SUCCESS;
    }
    Collective *c = new Collective{comm->world, comm, comm->calls++, part, false, false, {}};
#if defined(NCCL_OVER_MPI)
    return submit(comm, new Gathered{c, MPI_REQUEST_NULL, Meeting(), {}}, collective_step);
#else
    return submit(comm, c, collective_step);
#endif
}

}  // namespace

API int ncclGetVersion(int *version) { *version = (int)opd_emu::setting("OPD_EMU_NCCL_VERSION", 22000); return SUCCESS; }
API const char *ncclGetErrorString(int result) {
    return result == 0 ? "no error" : result == 6 ? "remote process exited or there was a network error" : "something is wrong";
}
API int ncclGetUniqueId(Id *id) {
    std::lock_guard<std::recursive_mutex> guard(lock);
    memset(id, 0x5a, sizeof *id);
#if defined(NCCL_OVER_MPI)
    int here;
    MPI_Comm_rank(MPI_COMM_WORLD, &here);
    snprintf(id->bytes, 32, "world %d %ld", here, ++made);
#else
    snprintf(id->bytes, 32, "world %ld", ++made);
#endif
    return SUCCESS;
}
API int ncclCommInitRankConfig(void **out, int size, Id id, int rank, Config *config) {
    std::lock_guard<std::recursive_mutex> guard(lock);
    if (config->magic != 0xcafebeef || config->size != sizeof *config || config->version != 21400 || config->blocking ||
        rank < 0 || rank >= size || id.bytes[127] != 0x5a) {
        return INVALID_ARGUMENT;
    }
    std::shared_ptr<World> world = worlds[id.bytes].lock();
    if (!world) { worlds[id.bytes] = world = std::make_shared<World>(); world->size = size; world->joined = 0; }
    if (failures.count(rank)) { return failures[rank]; }
    Comm *comm = new Comm();
    comm->world = world; comm->rank = rank; comm->dead = false; comm->polls = 2; comm->calls = 0;
    world->joined++;
#if defined(NCCL_OVER_MPI)
    world->joined = size;
    join(world.get(), id, rank);
#endif
    comms.push_back(comm);
    *out = comm;
    return IN_PROGRESS;
}
API int ncclCommGetAsyncError(void *its, int *result) {
    Comm *comm = (Comm *)its;
    std::deque<std::pair<void *, int (*)(void *)>> given;
    std::unique_lock<std::recursive_mutex> guard(lock);
    *result = failure(comm);
    if (*result) { return SUCCESS; }
    if (comm->world->joined < comm->world->size || comm->polls > 0) {
        if (comm->world->joined >= comm->world->size) { comm->polls--; }
        *result = IN_PROGRESS;
        return SUCCESS;
    }
    given.swap(comm->given);
    guard.unlock();                               /* the machine's lock comes before this one */
    for (auto &next : given) {
        const opd_emu::Hooks *hooks = *(const opd_emu::Hooks *const *)comm->stream;
        if (hooks->until(comm->stream, next.second, next.first)) { *result = INTERNAL; }
    }
    return SUCCESS;
}
API int ncclCommFinalize(void *its) { ((Comm *)its)->polls = 2; return IN_PROGRESS; }
API int ncclCommDestroy(void *its) { (void)its; return SUCCESS; }
API int ncclCommAbort(void *its) { ((Comm *)its)->dead = true; return SUCCESS; }
API int ncclGroupStart() {
    if (!grouped) { grouped = new std::set<Comm *>(); }
    depth++;
    return SUCCESS;
}
API int ncclGroupEnd() {
    int result = SUCCESS;
    if (--depth > 0) { return SUCCESS; }
    for (Comm *comm : *grouped) {
        Together *t = new Together{comm->world, comm, {}, {}, false};
        t->parts.swap(comm->group);
        result = submit(comm, t, together_step);
    }
    delete grouped;
    grouped = NULL;
    return result;
}
API int ncclSend(const void *from, size_t count, int type, int to, void *comm, void *stream) {
    return ask(comm, Part{SEND, from, NULL, count, type, 0, to}, stream);
}
API int ncclRecv(void *to, size_t count, int type, int from, void *comm, void *stream) {
    return ask(comm, Part{RECV, NULL, to, count, type, 0, from}, stream);
}
API int ncclAllReduce(const void *from, void *to, size_t count, int type, int op, void *comm, void *stream) {
    return ask(comm, Part{ALL_REDUCE, from, to, count, type, op, 0}, stream);
}
API int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op, void *comm, void *stream) {
    return ask(comm, Part{REDUCE_SCATTER, from, to, count, type, op, 0}, stream);
}
API int ncclAllGather(const void *from, void *to, size_t count, int type, void *comm, void *stream) {
    return ask(comm, Part{ALL_GATHER, from, to, count, type, 0, 0}, stream);
}
API int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, void *comm, void *stream) {
    return ask(comm, Part{BROADCAST, from, to, count, type, 0, root}, stream);
}
API int ncclReduce(const void *from, void *to, size_t count, int type, int op, int root, void *comm, void *stream) {
    return ask(comm, Part{REDUCE, from, to, count, type, op, root}, stream);
}

API void opd_emu_nccl_fail(int rank, int result) {
    std::lock_guard<std::recursive_mutex> guard(lock);
    if (result) { failures[rank] = result; } else { failures.erase(rank); }
}
