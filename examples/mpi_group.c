/* Process groups over MPI: a table of functions that opd_group_register takes.  Of Debian: libopenmpi-dev and
   openmpi-bin, or libmpich-dev and mpich.
   mpicc -O2 -shared -fPIC -DOPDISPATCH_PLUGIN examples/mpi_group.c -o mpi_group.so

   As a plug-in it registers the group "world" of all ranks when it is loaded (opd_library_load), and begins MPI where
   the program has not.  A program of its own includes this file and calls mpi_group_begin, or mpi_group_register for
   communicators that it has: examples/digits_mpi.c.

   Every call is a non-blocking one of MPI, which moves on while this process is inside of MPI: when it begins something
   or waits.  Memory is the host's, and that of GPUs where MPI says that it is aware of CUDA (OPD_MPI_CUDA=0 or 1 says so
   in its place); reductions by the functions below go by way of the host.  opd_group_device_add has NCCL move that of
   GPUs.  MPI sums float16 and bfloat16 by the functions below, in float.  Threads: with
   MPI_THREAD_MULTIPLE any, with MPI_THREAD_SERIALIZED one after the other (this file sees to that), otherwise the main
   main thread alone, which is an error of the others.

   Checked or not, ranks add up what they call, and compare the sums after calls 1, 2, 4, ... 64, 128, 192 and so on, and
   when mpi_group_end ends a group: those that have called other collectives, or in another order, get an error some calls
   later, where MPI itself may have mixed them up without a word.

   A rank that gives up (opd_group_abandon) tells the others, which look for that while they wait.  One that ends while
   others wait for it: those on its machine see that within a second, and fail with
   its name; those on other machines fail by the group's time limit, unless MPI ends the job before. */
#include "../opdispatch.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>                              /* MPIX_Query_cuda_support */
#endif
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Where a rank runs: machine and namespace of process numbers, and its number. */
typedef struct mpi_peer { char place[128]; long process; int watched; } mpi_peer;
/* Over `notices` ranks tell each other that they give up. */
enum { MPI_GROUP_WHY = 300 };
/* A comparison of what ranks have called, until a call: a hash and its complement, and the largest of all ranks'. */
typedef struct mpi_sum { struct mpi_sum *next; MPI_Request request; uint64_t mine[2], most[2]; long calls; } mpi_sum;
typedef struct mpi_group {
    struct mpi_group *next;
    char name[64];                                /* "" of subgroups */
    MPI_Comm comm, notices;
    mpi_sum *sums;                                /* those that are on their way, the first one first */
    uint64_t hash;                                /* of what was called */
    long calls, due, same;                        /* how many; when they are compared next; were the same until here */
    int differs;                                  /* they are not, which is what `why` says */
    int rank, size;
    long timeout;                                 /* in ms, of what MPI itself would wait for without end */
    mpi_peer *peers;
    char why[MPI_GROUP_WHY];                      /* what a rank says that gave up, or "" */
    MPI_Request *told;                            /* [size] what this one says to each, when it did */
} mpi_group;
typedef struct mpi_request {
    MPI_Request request;
    double looked, missed;       /* when peers were looked at last; since when one is gone, 0: none is */
    int *counts;                 /* [4, size] of an all-to-all: what is sent, where it begins, what is taken, where */
    MPI_Datatype type;           /* of a receive: what is expected of the sender */
    int count, from;
} mpi_request;

static pthread_mutex_t mpi_group_lock = PTHREAD_MUTEX_INITIALIZER;            /* unless MPI may be called by many */
static int mpi_group_threads = MPI_THREAD_SINGLE;
static MPI_Op mpi_group_ops[4][4];               /* float16, bfloat16: sum, product, min, max; float32, float64 */
static int mpi_group_has_ops, mpi_group_begun;
static volatile sig_atomic_t mpi_group_waits, mpi_group_told;         /* somebody waits; was told to end meanwhile */
static volatile long mpi_group_asked;             /* when somebody who still waits asked last, in ms; 0: nobody does */
static int mpi_group_listens;                     /* SIGTERM comes to mpi_group_signal */
static mpi_group *mpi_groups;                     /* those with names */

/* Says what MPI says; -1. */
static int mpi_group_error(const char *call, int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    (void)MPI_Error_string(code, text, &length);
    return opd_fail(OPD_ERROR_KERNEL, "%s: %s", call, text);
}
/* Returns whether this process speaks for all before MPI has begun: the first one that mpirun or srun has started. */
static int mpi_group_speaks(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const rank = getenv(names[i]);
        if (rank) { return strcmp(rank, "0") == 0; }
    }
    return 1;
}
/* Enters MPI; -1 with an error where this thread may not. */
static int mpi_group_enter(void) {
    int main_thread = 1;
    if (mpi_group_threads == MPI_THREAD_MULTIPLE) { return 0; }
    if (mpi_group_threads < MPI_THREAD_SERIALIZED) {
        (void)MPI_Is_thread_main(&main_thread);
        if (!main_thread) {
            return opd_fail(OPD_ERROR_USER, "MPI was begun with %s: only the main thread may use it "
                            "(MPI_Init_thread with MPI_THREAD_SERIALIZED)", mpi_group_threads == MPI_THREAD_FUNNELED
                            ? "MPI_THREAD_FUNNELED" : "MPI_THREAD_SINGLE");
        }
    }
    (void)pthread_mutex_lock(&mpi_group_lock);
    return 0;
}
static void mpi_group_leave(void) {
    if (mpi_group_threads != MPI_THREAD_MULTIPLE) { (void)pthread_mutex_unlock(&mpi_group_lock); }
}

//-- ranks that end ----------------------------------------------------------------------------------------------------

static long mpi_group_clock(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (long)now.tv_sec * 1000 + now.tv_nsec / 1000000 + 1;
}
/* Launchers tell the other ranks to end when one of them has ended: who waits then says for whom. */
static void mpi_group_signal(int number) {
    const long asked = mpi_group_asked;
    if (!mpi_group_told && (mpi_group_waits > 0 || (asked && mpi_group_clock() - asked < 100))) {
        mpi_group_told = 1;
    } else {
        (void)signal(number, SIG_DFL);
        (void)raise(number);
    }
}
/* Tells all ranks of a communicator where each of them runs; NULL without memory, or where MPI fails: nobody is watched
   then. */
static mpi_peer *mpi_group_meet(MPI_Comm comm, int rank, int size) {
    mpi_peer *const peers = (mpi_peer *)calloc((size_t)size, sizeof *peers);
    mpi_peer mine;
    memset(&mine, 0, sizeof mine);
    (void)gethostname(mine.place, 63);
    const size_t length = strlen(mine.place);
    if (readlink("/proc/self/ns/pid", mine.place + length, sizeof mine.place - 1 - length) < 0) {
        mine.place[length] = 0;
    }
    mine.process = (long)getpid();
    mpi_peer *const all = (mpi_peer *)malloc((size_t)size * sizeof *all);
    if (!all || !peers || MPI_Allgather(&mine, (int)sizeof mine, MPI_BYTE, all, (int)sizeof mine, MPI_BYTE,
                                        comm) != MPI_SUCCESS) {
        free(all);
        free(peers);
        return NULL;
    }
    for (int i = 0; i < size; i++) {
        peers[i] = all[i];
        peers[i].watched = i != rank && strcmp(all[i].place, mine.place) == 0 &&
            (kill((pid_t)all[i].process, 0) == 0 || errno == EPERM);
    }
    free(all);
    return peers;
}
/* Whether a process of this machine has ended, also where nobody has taken notice. */
static int mpi_group_ended(long process) {
    char path[64], line[400];
    if (kill((pid_t)process, 0) != 0 && errno == ESRCH) { return 1; }
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *const file = fopen(path, "r");
    const char *const state = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    if (file) { (void)fclose(file); }
    return state && state[1] && (state[2] == 'Z' || state[2] == 'X');
}
/* Writes which ranks have ended, "rank 2 (process 4711)"; how many. */
static int mpi_group_missing(const mpi_group *group, char *text, size_t cap) {
    int count = 0;
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < group->size && group->peers; i++) {
        if (!group->peers[i].watched || !mpi_group_ended(group->peers[i].process)) { continue; }
        if (used + 60 < cap) {
            used += (size_t)snprintf(text + used, cap - used, "%srank %d (process %ld)", count ? ", " : "", i,
                                     group->peers[i].process);
        }
        count++;
    }
    return count;
}
/* Fails where another rank has said that it gives up; 0 where none has. */
static int mpi_group_heard(mpi_group *group) {
    MPI_Status status;
    int here = 0;
    if (!group->why[0] && mpi_group_enter() == 0) {
        if (MPI_Iprobe(MPI_ANY_SOURCE, 0, group->notices, &here, &status) == MPI_SUCCESS && here) {
            (void)MPI_Recv(group->why, MPI_GROUP_WHY, MPI_CHAR, status.MPI_SOURCE, 0, group->notices,
                           MPI_STATUS_IGNORE);
        }
        mpi_group_leave();
    }
    return group->why[0] ? opd_fail(OPD_ERROR_KERNEL, "%s", group->why) : 0;
}
/* Tells all others why this rank gives up. */
static int mpi_group_abandon(void *user, const char *why) {
    mpi_group *const group = (mpi_group *)user;
    const long begun = mpi_group_clock();
    int done = 0;
    group->told = (MPI_Request *)malloc((size_t)group->size * sizeof(MPI_Request));
    if (!group->told || mpi_group_enter()) { return -1; }
    (void)snprintf(group->why, sizeof group->why, "%s", why);
    for (int i = 0; i < group->size; i++) {
        group->told[i] = MPI_REQUEST_NULL;
        if (i != group->rank) {
            (void)MPI_Isend(group->why, MPI_GROUP_WHY, MPI_CHAR, i, 0, group->notices, &group->told[i]);
        }
    }
    while (!done && mpi_group_clock() - begun < 1000) {       /* small messages leave at once */
        if (MPI_Testall(group->size, group->told, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS) { break; }
    }
    mpi_group_leave();
    return 0;
}
/* Looks how far comparisons are, inside of MPI: `why` says whether ranks have called other collectives. */
static void mpi_group_compare(mpi_group *group) {
    int done = 1;
    while (group->sums && done) {
        mpi_sum *const sum = group->sums;
        if (MPI_Test(&sum->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || !done) { return; }
        if (!group->why[0] && (sum->most[0] != sum->mine[0] || sum->most[1] != sum->mine[1])) {
            group->differs = 1;
            (void)snprintf(group->why, sizeof group->why, "ranks have called other collectives, or in another order, "
                           "since call %ld (rank %d: %ld calls): values may be wrong since then; OPD_MPI_CHECKED=1 "
                           "says which", group->same + 1, group->rank, sum->calls);
        }
        group->same = sum->calls;
        group->sums = sum->next;
        free(sum);
    }
}
/* Begins a comparison, inside of MPI. */
static void mpi_group_sum_up(mpi_group *group) {
    mpi_sum *const sum = (mpi_sum *)calloc(1, sizeof *sum), **end = &group->sums;
    if (!sum) { return; }
    sum->calls = group->calls;
    sum->mine[0] = group->hash;
    sum->mine[1] = ~group->hash;
    if (MPI_Iallreduce(sum->mine, sum->most, 2, MPI_UINT64_T, MPI_MAX, group->notices, &sum->request) != MPI_SUCCESS) {
        free(sum);
        return;
    }
    while (*end) { end = &(*end)->next; }
    *end = sum;
}
/* Counts a collective that has begun. */
static void mpi_group_count(mpi_group *group, const opd_transfer *transfer) {
    const uint64_t count = transfer->kind == OPD_COLLECTIVE_ALL_TO_ALL ? 0 : (uint64_t)transfer->count;
    const uint64_t what = (uint64_t)transfer->kind | (uint64_t)transfer->dtype << 8 |
        (uint64_t)transfer->reduction << 16 | (uint64_t)transfer->peer << 24;
    if (transfer->kind == OPD_COLLECTIVE_SEND || transfer->kind == OPD_COLLECTIVE_RECV) { return; }
    group->hash = ((group->hash ^ what) * 1099511628211u ^ count) * 1099511628211u;
    group->hash ^= group->hash >> 29;
    if (group->sums) { mpi_group_compare(group); }
    if (++group->calls < group->due) { return; }
    group->due += group->due < 64 ? group->due : 64;
    mpi_group_sum_up(group);
}
/* Looks whether others have ended, now and then; -1 with an error that names them, when they have been gone for half a
   second, in which what they sent before may still come, or when this process was told to end. */
static int mpi_group_look(mpi_group *group, mpi_request *request, double now) {
    char who[300];
    const int told = mpi_group_told;
    if (!told && now - request->looked < 0.1) { return 0; }
    if (request->looked == 0 && !told) {          /* it has only begun to wait */
        request->looked = now;
        return 0;
    }
    request->looked = now;
    if (group->sums && mpi_group_enter() == 0) {
        mpi_group_compare(group);
        mpi_group_leave();
    }
    if (mpi_group_heard(group)) { return -1; }
    const int count = mpi_group_missing(group, who, sizeof who);
    if (count && request->missed == 0) { request->missed = now; }
    if (count && (told || now - request->missed >= 0.5)) {
        return opd_fail(OPD_ERROR_KERNEL, "%s %s ended", who, count > 1 ? "have" : "has");
    }
    if (told) {                                   /* by somebody who had another reason */
        (void)signal(SIGTERM, SIG_DFL);
        (void)raise(SIGTERM);
    }
    return 0;
}

//-- float16 and bfloat16 ---------------------------------------------------------------------------------------------

static float mpi_group_bits(uint32_t bits) {
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}
static float mpi_group_widen(uint16_t half, int bfloat) {
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, rest = half & 0x7FFFu;
    if (bfloat) { return mpi_group_bits((uint32_t)half << 16); }
    if (rest >= 0x7C00u) { return mpi_group_bits(sign | 0x7F800000u | (rest & 0x3FFu) << 13); }
    if (rest < 0x400u) {                          /* subnormal: rest * 2^-24 */
        const float f = (float)rest * 5.9604644775390625e-8f;
        return sign ? -f : f;
    }
    return mpi_group_bits(sign | ((rest + 0x1C000u) << 13));
}
/* The nearest one, of two the even one. */
static uint16_t mpi_group_narrow(float f, int bfloat) {
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    const uint32_t sign = bits >> 16 & 0x8000u, rest = bits & 0x7FFFFFFFu;
    if (rest > 0x7F800000u) { return (uint16_t)(bfloat ? bits >> 16 | 0x40u : sign | 0x7E00u); }
    if (bfloat) { return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16); }
    if (rest >= 0x477FF000u) { return (uint16_t)(sign | 0x7C00u); }           /* 65520 and more */
    if (rest < 0x38800000u) {                     /* below 2^-14: 0.5 pushes the bits into place and rounds */
        const float moved = mpi_group_bits(rest) + 0.5f;
        memcpy(&bits, &moved, sizeof bits);
        return (uint16_t)(sign | (bits & 0x7FFu));
    }
    return (uint16_t)(sign | ((rest - 0x38000000u + 0xFFFu + (rest >> 13 & 1u)) >> 13));
}
/* NaN wins, as it does in PyTorch. */
static float mpi_group_pick(float a, float b, int most) {
    if (a != a) { return a; }
    if (b != b) { return b; }
    return most == (a > b) ? a : b;
}
static void mpi_group_reduce(void *in, void *out, int count, int op, int bfloat) {
    const uint16_t *const from = (const uint16_t *)in;
    uint16_t *const to = (uint16_t *)out;
    for (int i = 0; i < count; i++) {
        const float a = mpi_group_widen(from[i], bfloat), b = mpi_group_widen(to[i], bfloat);
        to[i] = mpi_group_narrow(op == 0 ? a + b : op == 1 ? a * b : mpi_group_pick(a, b, op == 3), bfloat);
    }
}
#define MPI_GROUP_OP(name, op, bfloat) \
    static void name(void *in, void *out, int *count, MPI_Datatype *type) { \
        (void)type; \
        mpi_group_reduce(in, out, *count, op, bfloat); \
    }
MPI_GROUP_OP(mpi_group_sum_f16, 0, 0)
MPI_GROUP_OP(mpi_group_product_f16, 1, 0)
MPI_GROUP_OP(mpi_group_min_f16, 2, 0)
MPI_GROUP_OP(mpi_group_max_f16, 3, 0)
MPI_GROUP_OP(mpi_group_sum_bf16, 0, 1)
MPI_GROUP_OP(mpi_group_product_bf16, 1, 1)
MPI_GROUP_OP(mpi_group_min_bf16, 2, 1)
MPI_GROUP_OP(mpi_group_max_bf16, 3, 1)

/* Extremes of float32 and float64, of which MPI's own may lose a NaN, and not on all ranks. */
#define MPI_GROUP_EXTREME(name, T, better) \
    static void name(void *in, void *out, int *count, MPI_Datatype *type) { \
        const T *const from = (const T *)in; \
        T *const to = (T *)out; \
        (void)type; \
        for (int i = 0; i < *count; i++) { to[i] = from[i] better to[i] || from[i] != from[i] ? from[i] : to[i]; } \
    }
MPI_GROUP_EXTREME(mpi_group_min_f32, float, <)
MPI_GROUP_EXTREME(mpi_group_max_f32, float, >)
MPI_GROUP_EXTREME(mpi_group_min_f64, double, <)
MPI_GROUP_EXTREME(mpi_group_max_f64, double, >)

static void mpi_group_make_ops(void) {
    MPI_User_function *const all[4][4] = {
        {mpi_group_sum_f16, mpi_group_product_f16, mpi_group_min_f16, mpi_group_max_f16},
        {mpi_group_sum_bf16, mpi_group_product_bf16, mpi_group_min_bf16, mpi_group_max_bf16},
        {NULL, NULL, mpi_group_min_f32, mpi_group_max_f32}, {NULL, NULL, mpi_group_min_f64, mpi_group_max_f64}};
    for (int i = 0; i < 16 && !mpi_group_has_ops; i++) {
        if (all[i / 4][i % 4]) { (void)MPI_Op_create(all[i / 4][i % 4], 1, &mpi_group_ops[i / 4][i % 4]); }
    }
    mpi_group_has_ops = 1;
}

//-- types and reductions ----------------------------------------------------------------------------------------------

static MPI_Datatype mpi_group_type(opd_scalar_type dtype) {
    switch (dtype) {
    case OPD_FLOAT32: return MPI_FLOAT;
    case OPD_FLOAT64: return MPI_DOUBLE;
    case OPD_INT8: return MPI_INT8_T;
    case OPD_INT16: return MPI_INT16_T;
    case OPD_INT32: return MPI_INT32_T;
    case OPD_INT64: return MPI_INT64_T;
    case OPD_COMPLEX64: return MPI_C_FLOAT_COMPLEX;
    case OPD_COMPLEX128: return MPI_C_DOUBLE_COMPLEX;
    default: break;
    }
    switch (opd_dtype_size(dtype)) {              /* others are moved as they lie */
    case 1: return MPI_UINT8_T;
    case 2: return MPI_UINT16_T;
    case 4: return MPI_UINT32_T;
    case 8: return MPI_UINT64_T;
    default: return MPI_DATATYPE_NULL;
    }
}
static MPI_Op mpi_group_op(opd_reduction reduction, opd_scalar_type dtype) {
    if (dtype == OPD_FLOAT16 || dtype == OPD_BFLOAT16) {
        const int bfloat = dtype == OPD_BFLOAT16;
        switch (reduction) {
        case OPD_REDUCTION_SUM: return mpi_group_ops[bfloat][0];
        case OPD_REDUCTION_PRODUCT: return mpi_group_ops[bfloat][1];
        case OPD_REDUCTION_MIN: return mpi_group_ops[bfloat][2];
        case OPD_REDUCTION_MAX: return mpi_group_ops[bfloat][3];
        default: return MPI_OP_NULL;
        }
    }
    if ((dtype == OPD_FLOAT32 || dtype == OPD_FLOAT64) && (reduction == OPD_REDUCTION_MIN ||
                                                           reduction == OPD_REDUCTION_MAX)) {
        return mpi_group_ops[dtype == OPD_FLOAT32 ? 2 : 3][reduction == OPD_REDUCTION_MAX ? 3 : 2];
    }
    if (dtype == OPD_BOOL) {                      /* of truth values: any, all */
        const int all = reduction == OPD_REDUCTION_PRODUCT || reduction == OPD_REDUCTION_MIN ||
            reduction == OPD_REDUCTION_BAND;
        return reduction == OPD_REDUCTION_BXOR ? MPI_BXOR : all ? MPI_LAND : MPI_LOR;
    }
    switch (reduction) {
    case OPD_REDUCTION_SUM: return MPI_SUM;
    case OPD_REDUCTION_PRODUCT: return MPI_PROD;
    case OPD_REDUCTION_MIN: return MPI_MIN;
    case OPD_REDUCTION_MAX: return MPI_MAX;
    case OPD_REDUCTION_BAND: return MPI_BAND;
    case OPD_REDUCTION_BOR: return MPI_BOR;
    case OPD_REDUCTION_BXOR: return MPI_BXOR;
    default: return MPI_OP_NULL;
    }
}

//-- the table ---------------------------------------------------------------------------------------------------------

/* Counts of an all-to-all as MPI takes them; -1 with an error. */
static int mpi_group_counts(const mpi_group *group, const opd_transfer *transfer, mpi_request *request) {
    int64_t sent = 0, taken = 0;
    request->counts = (int *)malloc(4 * (size_t)group->size * sizeof *request->counts);
    if (!request->counts) { return opd_fail(OPD_ERROR_MEMORY, "no memory"); }
    for (int i = 0; i < group->size; i++) {
        int *const counts = request->counts + i;
        if (sent + transfer->send_counts[i] > INT_MAX || taken + transfer->recv_counts[i] > INT_MAX) {
            return opd_fail(OPD_ERROR_SHAPE, "MPI moves at most 2^31 - 1 elements at once");
        }
        counts[0] = (int)transfer->send_counts[i];
        counts[group->size] = (int)sent;
        counts[2 * group->size] = (int)transfer->recv_counts[i];
        counts[3 * group->size] = (int)taken;
        sent += transfer->send_counts[i];
        taken += transfer->recv_counts[i];
    }
    return 0;
}
/* Begins a transfer; what MPI returns. */
static int mpi_group_call(const mpi_group *group, const opd_transfer *transfer, mpi_request *out) {
    const MPI_Datatype type = mpi_group_type(transfer->dtype);
    const MPI_Op op = mpi_group_op(transfer->reduction, transfer->dtype);
    const int count = (int)transfer->count, root = transfer->peer, here = root == group->rank;
    void *const recv = transfer->recv, *const send = (void *)(uintptr_t)transfer->send;
    void *const from = send == recv ? MPI_IN_PLACE : send;
    const int *const counts = out->counts;
    MPI_Request *const request = &out->request;
    switch (transfer->kind) {
    case OPD_COLLECTIVE_ALL_REDUCE: return MPI_Iallreduce(from, recv, count, type, op, group->comm, request);
    case OPD_COLLECTIVE_ALL_GATHER:
        return MPI_Iallgather(send, count, type, recv, count, type, group->comm, request);
    case OPD_COLLECTIVE_REDUCE_SCATTER:
        return MPI_Ireduce_scatter_block(send, recv, count, type, op, group->comm, request);
    case OPD_COLLECTIVE_ALL_TO_ALL:
        return MPI_Ialltoallv(send, counts, counts + group->size, type, recv, counts + 2 * group->size,
                              counts + 3 * group->size, type, group->comm, request);
    case OPD_COLLECTIVE_BROADCAST:
        if (here && send != recv && count) {      /* by MPI, which knows what memory it is */
            (void)MPI_Sendrecv(send, count, type, 0, 0, recv, count, type, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        }
        return MPI_Ibcast(recv, count, type, root, group->comm, request);
    case OPD_COLLECTIVE_REDUCE:
        return MPI_Ireduce(here ? from : send, here ? recv : NULL, count, type, op, root, group->comm, request);
    case OPD_COLLECTIVE_GATHER:
        return MPI_Igather(send, count, type, recv, count, type, root, group->comm, request);
    case OPD_COLLECTIVE_SCATTER:
        return MPI_Iscatter(send, count, type, recv, count, type, root, group->comm, request);
    case OPD_COLLECTIVE_SEND: return MPI_Isend(send, count, type, root, transfer->tag, group->comm, request);
    case OPD_COLLECTIVE_RECV: return MPI_Irecv(recv, count, type, root, transfer->tag, group->comm, request);
    default: return MPI_Ibarrier(group->comm, request);
    }
}
/* Fails where a receive that is done got less than it was to get (more is MPI's own error); 0 or -1. */
static int mpi_group_received(const mpi_request *request, const MPI_Status *status) {
    int got = 0;
    if (request->type == MPI_DATATYPE_NULL || MPI_Get_count(status, request->type, &got) != MPI_SUCCESS ||
        got == request->count) { return 0; }
    if (got == MPI_UNDEFINED) {
        return opd_fail(OPD_ERROR_SHAPE, "rank %d sent no whole number of elements", request->from);
    }
    return opd_fail(OPD_ERROR_SHAPE, "rank %d sent %d element(s), and %d are received", request->from, got,
                    request->count);
}
static int mpi_group_start(void *user, const opd_transfer *transfer, void **out) {
    mpi_group *const group = (mpi_group *)user;
    const bool reduces = transfer->kind == OPD_COLLECTIVE_ALL_REDUCE || transfer->kind == OPD_COLLECTIVE_REDUCE ||
        transfer->kind == OPD_COLLECTIVE_REDUCE_SCATTER;
    if (group->why[0]) { return opd_fail(OPD_ERROR_KERNEL, "%s", group->why); }
    if (transfer->count > INT_MAX / (transfer->kind == OPD_COLLECTIVE_ALL_GATHER ||
                                     transfer->kind == OPD_COLLECTIVE_REDUCE_SCATTER ? group->size : 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "MPI moves at most 2^31 - 1 elements at once");
    }
    if (mpi_group_type(transfer->dtype) == MPI_DATATYPE_NULL ||
        (reduces && mpi_group_op(transfer->reduction, transfer->dtype) == MPI_OP_NULL)) {
        return opd_fail(OPD_ERROR_DTYPE, "MPI cannot do that with %s", opd_dtype_cname(transfer->dtype));
    }
    mpi_request *const request = (mpi_request *)calloc(1, sizeof *request);
    if (!request) { return opd_fail(OPD_ERROR_MEMORY, "no memory"); }
    request->type = transfer->kind == OPD_COLLECTIVE_RECV ? mpi_group_type(transfer->dtype) : MPI_DATATYPE_NULL;
    request->count = (int)transfer->count;
    request->from = transfer->peer;
    int rc = transfer->kind == OPD_COLLECTIVE_ALL_TO_ALL ? mpi_group_counts(group, transfer, request) : 0;
    if (!rc) { rc = mpi_group_enter(); }
    if (!rc) {
        const int code = mpi_group_call(group, transfer, request);
        if (code == MPI_SUCCESS) { mpi_group_count(group, transfer); }
        mpi_group_leave();
        if (code != MPI_SUCCESS) { rc = mpi_group_error("MPI", code); }
    }
    if (rc) {
        free(request->counts);
        free(request);
        return -1;
    }
    *out = request;
    return 0;
}
static int mpi_group_test(void *user, void *its, int64_t wait_us) {
    mpi_group *const group = (mpi_group *)user;
    mpi_request *const request = (mpi_request *)its;
    char who[300];
    bool failed = false;
    double until = 0;
    int done = 0, code = MPI_SUCCESS, rc = 1;
    MPI_Status status;
    if (wait_us > 0) { mpi_group_waits++; }
    for (bool again = true; again && !done && !failed && code == MPI_SUCCESS;) {
        failed = mpi_group_enter() != 0;
        if (failed) { break; }
        code = MPI_Test(&request->request, &done, &status);
        if (done && group->sums) { mpi_group_compare(group); }
        const double now = wait_us > 0 ? MPI_Wtime() : 0;
        mpi_group_leave();
        if (until == 0) { until = now + 1e-6 * (double)wait_us; }
        again = wait_us > 0 && now < until;
        failed = !done && code == MPI_SUCCESS && wait_us > 0 && mpi_group_look(group, request, now);
    }
    if (code != MPI_SUCCESS && mpi_group_missing(group, who, sizeof who)) {
        (void)mpi_group_error(who, code);
    } else if (code != MPI_SUCCESS) { (void)mpi_group_error("MPI_Test", code); }
    if (wait_us > 0) {
        mpi_group_asked = done || failed || code != MPI_SUCCESS ? 0 : mpi_group_clock();
        mpi_group_waits--;
    }
    if (!done || failed || code != MPI_SUCCESS) { return failed || code != MPI_SUCCESS ? -1 : 0; }
    if (mpi_group_received(request, &status)) { rc = -1; }
    if (group->differs) { rc = opd_fail(OPD_ERROR_KERNEL, "%s", group->why); }
    free(request->counts);
    free(request);
    return rc;
}
/* Whether MPI takes memory of CUDA, where it is asked for a GPU's. */
static int mpi_group_cuda(void) {
    const char *const said = getenv("OPD_MPI_CUDA");
    int is = 0;
    if (said && *said) { return *said == '1'; }
#if defined(MPIX_CUDA_AWARE_SUPPORT)
    is = MPIX_Query_cuda_support();
#elif defined(MPIX_GPU_SUPPORT_CUDA)
    if (MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &is) != MPI_SUCCESS) { is = 0; }
#endif
    return is;
}
static bool mpi_group_takes(void *user, opd_device device, const opd_transfer *transfer) {
    static int cuda = -1;
    (void)user;
    if (cuda < 0) { cuda = mpi_group_cuda(); }
    if (device.type != OPD_CUDA || !cuda) { return false; }
    if (!transfer || (transfer->kind != OPD_COLLECTIVE_ALL_REDUCE && transfer->kind != OPD_COLLECTIVE_REDUCE &&
                      transfer->kind != OPD_COLLECTIVE_REDUCE_SCATTER)) { return true; }
    const MPI_Op op = mpi_group_op(transfer->reduction == OPD_REDUCTION_AVG ? OPD_REDUCTION_SUM : transfer->reduction,
                                   transfer->dtype);
    for (int i = 0; i < 16; i++) {                /* those of this file read what the host has */
        if ((i / 4 < 2 || i % 4 > 1) && op == mpi_group_ops[i / 4][i % 4]) { return false; }
    }
    return true;
}
static void mpi_group_destroy(void *user) {
    mpi_group *const group = (mpi_group *)user;
    const long begun = mpi_group_clock();
    int finalized = 0;
    (void)MPI_Finalized(&finalized);
    for (mpi_group **at = &mpi_groups; *at; at = &(*at)->next) {
        if (*at == group) {
            *at = group->next;
            break;
        }
    }
    while (group->sums && !finalized && mpi_group_clock() - begun < 1000) { mpi_group_compare(group); }
    if (group->why[0] || group->sums) { return; } /* what was begun and never ends stays MPI's, with what it names */
    if (!finalized) {
        (void)MPI_Comm_free(&group->comm);
        (void)MPI_Comm_free(&group->notices);
    }
    free(group->peers);
    free(group);
}
static int mpi_group_split(void *user, const int32_t *ranks, int32_t count, opd_group_desc *out);
/* Fills in a table for a communicator, which it takes over; -1 with an error. */
static int mpi_group_table(MPI_Comm comm, int64_t timeout_ms, opd_group_desc *desc) {
    mpi_group *const group = (mpi_group *)calloc(1, sizeof *group);
    if (!group) { return opd_fail(OPD_ERROR_MEMORY, "no memory"); }
    group->comm = comm;
    group->due = 1;
    group->timeout = timeout_ms > 0 ? (long)timeout_ms : 600000;
    (void)MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (MPI_Comm_dup(comm, &group->notices) != MPI_SUCCESS) {
        free(group);
        return opd_fail(OPD_ERROR_KERNEL, "MPI_Comm_dup failed");
    }
    (void)MPI_Comm_rank(comm, &group->rank);
    (void)MPI_Comm_size(comm, &group->size);
    group->peers = mpi_group_meet(comm, group->rank, group->size);
    desc->rank = group->rank;
    desc->size = group->size;
    desc->start = mpi_group_start;
    desc->test = mpi_group_test;
    desc->split = mpi_group_split;
    desc->destroy = mpi_group_destroy;
    desc->abandon = mpi_group_abandon;
    desc->takes = mpi_group_takes;
    desc->user = group;
    return 0;
}
/* Waits for a request, not longer than the group's limit; -1 with an error. */
static int mpi_group_await(mpi_group *group, MPI_Request *request) {
    mpi_request watched;
    const long begun = mpi_group_clock();
    int done = 0, code = MPI_SUCCESS;
    memset(&watched, 0, sizeof watched);
    while (!done && code == MPI_SUCCESS) {
        if (mpi_group_enter()) { return -1; }
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        const double now = MPI_Wtime();
        mpi_group_leave();
        if (!done && code == MPI_SUCCESS && mpi_group_look(group, &watched, now)) { return -1; }
        if (!done && mpi_group_clock() - begun > group->timeout) {
            return opd_fail(OPD_ERROR_KERNEL, "it was not done after %.3g s: a rank has ended, or names other ranks",
                            (double)group->timeout / 1000);
        }
    }
    return code == MPI_SUCCESS ? 0 : mpi_group_error("MPI_Test", code);
}
/* Sends two numbers, or takes them where `to` is -1; -1 with an error, and then their memory stays MPI's. */
static int mpi_group_step(mpi_group *group, int to, int from, int tag, int *says) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (mpi_group_enter()) { return -1; }
    const int code = to >= 0 ? MPI_Isend(says, 2, MPI_INT, to, tag, group->notices, &request)
        : MPI_Irecv(says, 2, MPI_INT, from, tag, group->notices, &request);
    mpi_group_leave();
    return code == MPI_SUCCESS ? mpi_group_await(group, &request) : mpi_group_error("MPI_Isend", code);
}
/* Ranks that are to make a group ask the first of them whether all name the same, as MPI waits without end where they
   do not; -1 with an error. */
static int mpi_group_agree(mpi_group *group, const int *chosen, int count) {
    int *const mine = (int *)malloc(4 * sizeof *mine), *const its = mine + 2;
    unsigned hash = 17;                           /* of which ranks, and in which order */
    int rc = 0, same = 1;
    if (!mine) { return opd_fail(OPD_ERROR_MEMORY, "no memory"); }
    for (int i = 0; i < count; i++) { hash = hash * 31 + (unsigned)chosen[i]; }
    mine[0] = count;
    mine[1] = (int)(hash >> 1);
    if (group->rank != chosen[0]) {
        rc = mpi_group_step(group, chosen[0], -1, 1, mine) || mpi_group_step(group, -1, chosen[0], 2, its);
        same = rc || its[0];
    }
    for (int turn = 0; turn < 2 && group->rank == chosen[0]; turn++) {        /* hears all, then answers all */
        for (int i = 1; i < count && !rc; i++) {
            its[0] = same;
            rc = turn ? mpi_group_step(group, chosen[i], -1, 2, its) : mpi_group_step(group, -1, chosen[i], 1, its);
            if (!rc && turn == 0 && memcmp(mine, its, 2 * sizeof *mine) != 0) { same = 0; }
        }
    }
    if (rc) { return -1; }
    free(mine);
    return same ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "ranks name other ranks, or others first");
}
/* Compares all that ranks have called, before a group ends; 0, or -1 with an error. */
static int mpi_group_finish(const char *name) {
    const long begun = mpi_group_clock();
    mpi_group *group = mpi_groups;
    mpi_request watched;
    memset(&watched, 0, sizeof watched);
    while (group && strcmp(group->name, name) != 0) { group = group->next; }
    if (!group || group->size < 2 || group->why[0]) { return 0; }
    if (mpi_group_enter()) { return -1; }
    group->hash ^= (uint64_t)group->calls;
    mpi_group_sum_up(group);
    mpi_group_leave();
    while (group->sums && !group->why[0]) {
        if (mpi_group_enter()) { return -1; }
        mpi_group_compare(group);
        mpi_group_leave();
        if (mpi_group_look(group, &watched, MPI_Wtime())) { return -1; }
        if (group->sums && mpi_group_clock() - begun > group->timeout) {
            return opd_fail(OPD_ERROR_KERNEL, "the others were not done after %.3g s", (double)group->timeout / 1000);
        }
    }
    return group->why[0] ? opd_fail(OPD_ERROR_KERNEL, "%s", group->why) : 0;
}
static int mpi_group_split(void *user, const int32_t *ranks, int32_t count, opd_group_desc *out) {
    mpi_group *const group = (mpi_group *)user;
    int *const chosen = (int *)malloc((size_t)count * sizeof *chosen);
    MPI_Group all, some;
    MPI_Comm comm = MPI_COMM_NULL;
    if (!chosen) { return opd_fail(OPD_ERROR_MEMORY, "no memory"); }
    for (int32_t i = 0; i < count; i++) { chosen[i] = ranks[i]; }
    int rc = mpi_group_agree(group, chosen, (int)count);
    if (!rc) { rc = mpi_group_enter(); }
    if (!rc) {
        int code = MPI_Comm_group(group->comm, &all);
        if (code == MPI_SUCCESS) {
            code = MPI_Group_incl(all, count, chosen, &some);
            if (code == MPI_SUCCESS) {
                code = MPI_Comm_create_group(group->comm, some, 0, &comm);
                (void)MPI_Group_free(&some);
            }
            (void)MPI_Group_free(&all);
        }
        rc = code == MPI_SUCCESS ? mpi_group_table(comm, group->timeout, out)
            : mpi_group_error("MPI_Comm_create_group", code);
        mpi_group_leave();
    }
    free(chosen);
    return rc;
}

//-- what programs call ------------------------------------------------------------------------------------------------

/* Registers a group of the ranks of a communicator, which stays the caller's: all of them call this.  checked: see
   opd_group_desc.  NULL with an error. */
static opd_group *mpi_group_register(const char *name, MPI_Comm comm, bool checked, int64_t timeout_ms) {
    opd_group_desc desc;
    MPI_Comm own = MPI_COMM_NULL;
    memset(&desc, 0, sizeof desc);
    (void)MPI_Query_thread(&mpi_group_threads);
    mpi_group_make_ops();
    const int code = MPI_Comm_dup(comm, &own);
    if (code != MPI_SUCCESS) {
        (void)mpi_group_error("MPI_Comm_dup", code);
        return NULL;
    }
    desc.name = name;
    desc.checked = checked;
    desc.timeout_ms = timeout_ms;
    if (mpi_group_table(own, timeout_ms, &desc)) { return NULL; }
    opd_group *const group = opd_group_register(&desc);
    mpi_group *const its = (mpi_group *)desc.user;
    if (!group) {
        mpi_group_destroy(its);
        return NULL;
    }
    (void)snprintf(its->name, sizeof its->name, "%s", name);
    its->next = mpi_groups;
    mpi_groups = its;
    return group;
}
/* Begins MPI, unless that has happened, and registers all ranks as the group "world".  OPD_MPI_CHECKED=1 in the
   environment makes it a checked one, OPD_MPI_TIMEOUT is how many seconds something may take.  An MPI that this begins
   returns its errors (MPI_ERRORS_RETURN), also to calls of the program's own.  NULL with an error. */
static opd_group *mpi_group_begin(void) {
    const char *const checked = getenv("OPD_MPI_CHECKED"), *const seconds = getenv("OPD_MPI_TIMEOUT");
    const double limit = seconds ? atof(seconds) : 0;
    int initialized = 0, level = 0;
    (void)MPI_Initialized(&initialized);
    if (!initialized) {
        (void)MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
        mpi_group_begun = 1;
        (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);     /* of requests, too, in MPICH */
        (void)MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    }
    if (!mpi_group_listens) {                     /* unless the program does so itself */
        void (*const was)(int) = signal(SIGTERM, mpi_group_signal);
        mpi_group_listens = was == SIG_DFL;
        if (!mpi_group_listens) { (void)signal(SIGTERM, was); }
    }
    return mpi_group_register("world", MPI_COMM_WORLD, checked && *checked == '1',
                              limit > 0 && limit < 1e9 ? (int64_t)(1000 * limit) : 0);
}
/* Gives each rank one of its machine's devices of a kind, which is the current one from then on, and has the backend
   move its memory (opd_group_device_add): all ranks call it.  Writes which one to *device.  0, or -1 with an error. */
static inline int mpi_group_device(opd_group *group, opd_device *device) {
    MPI_Comm machine = MPI_COMM_NULL;
    int place = 0;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine) == MPI_SUCCESS) {
        (void)MPI_Comm_rank(machine, &place);
        (void)MPI_Comm_free(&machine);
    }
    const int count = opd_device_count((opd_backend)device->type);
    *device = opd_device_of((opd_backend)device->type, count > 0 ? place % count : 0);
    if (count > 0) { (void)opd_device_set(*device); }
    return opd_group_device_add(group, *device);
}
/* Takes the group away, and ends MPI where mpi_group_begin began it.  While an error is pending the other ranks may
   wait for what this one does not do any more: then the job ends. */
static void mpi_group_end(opd_group *group) {
    if (opd_ok() && group) { (void)mpi_group_finish(opd_group_name(group)); }
    if (!opd_ok()) {
        (void)fprintf(stderr, "rank %d: %s\n", group ? opd_group_rank(group) : -1, opd_error_message());
        (void)MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (group) { (void)opd_group_unregister(group); }
    if (mpi_group_listens) { (void)signal(SIGTERM, SIG_DFL); }
    mpi_group_listens = 0;
    for (int i = 0; i < 16 && mpi_group_has_ops; i++) {
        if (i / 4 < 2 || i % 4 > 1) { (void)MPI_Op_free(&mpi_group_ops[i / 4][i % 4]); }
    }
    mpi_group_has_ops = 0;
    if (mpi_group_begun) { (void)MPI_Finalize(); }
    mpi_group_begun = 0;
}

#if defined(OPDISPATCH_PLUGIN)
static opd_group *mpi_group_world;
static void mpi_group_unload(void *user) {
    (void)user;
    mpi_group_end(mpi_group_world);
}
static int mpi_group_ranks(opd_call *call) { return opd_return_int(call, opd_group_size(mpi_group_world)); }
/* The operator mpi::ranks says that the plug-in is there; when it goes, the group goes. */
OPD_LIBRARY(mpi, lib) {
    opd_op_desc desc;
    memset(&desc, 0, sizeof desc);
    mpi_group_world = mpi_group_begin();
    desc.schema = "ranks() -> int";
    desc.any = mpi_group_ranks;
    desc.user = &mpi_group_world;
    desc.destroy = mpi_group_unload;
    if (mpi_group_world) { (void)opd_define(lib, &desc); }
}
#endif
