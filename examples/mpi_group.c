/* Process groups over MPI: a table of functions for opd_group_register.  Packages of Debian: libopenmpi-dev and
   openmpi-bin, or libmpich-dev and mpich.
   mpicc -O2 -shared -fPIC -DOPDISPATCH_PLUGIN examples/mpi_group.c -o mpi_group.so

   As a plug-in, the file registers the group "world" of all ranks when it is loaded (opd_plugin_load), and begins MPI
   if the program has not begun it.  A program can also include this file and call mpi_group_begin, or
   mpi_group_register for its own communicators: see examples/digits_mpi.c.

   All transfers use non-blocking functions of MPI.  A transfer makes progress while this process is inside an MPI call,
   for example while it waits.  For large sums of two ranks, the ranks swap halves of the data (mpi_group_halve).  This
   takes a quarter to two thirds of the time of MPI's own sum.  Tensors are in the host's memory, or on GPUs if MPI
   reports that it supports CUDA (OPD_MPI_CUDA=0 or 1 overrides this report).  With opd_group_device_add, NCCL moves the
   memory of GPUs.  The functions below compute the reductions of float16 and bfloat16, in float, because MPI has no
   such types.  These reductions pass through the host's memory.  Threads: with MPI_THREAD_MULTIPLE, any thread may call
   collectives; with MPI_THREAD_SERIALIZED, any thread, one at a time (this file sees to that); otherwise only the main
   thread, and calls of other threads fail.

   In each group, checked or not, each rank computes a hash of its calls.  The ranks compare their hashes after calls 1,
   2, 4, ... 64, 128, 192 and so on, and when mpi_group_end ends the group.  Ranks that called different collectives, or
   the same in another order, get an error some calls later.  MPI itself might have mixed up their data without an
   error.

   A rank that gives up (opd_group_abandon) tells the other ranks, which notice this while they wait.  If the process of
   a rank ends while others wait for it, the ranks on the same machine notice within a second, fail with an error that
   names this rank, and tell the ranks on other machines.  If no rank is left on that machine, the other ranks ask each
   other, shortly before the time limit of the group, who is waiting.  Their error names the ranks that do not answer.
   If the launcher ends the whole job first, nothing of this happens. */
#include "../opdispatch.h"

#include <errno.h>
#include <limits.h>
#include <mpi.h>
#if defined(OPEN_MPI)
#include <mpi-ext.h>                              /* MPIX_Query_cuda_support */
#endif
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Where a rank runs.  place: the machine and the namespace of process numbers; process: its process number. */
typedef struct mpi_peer { char place[128]; long process; int watched; } mpi_peer;
/* Ranks use the communicator `notices` to tell each other that they give up. */
enum { MPI_GROUP_WHY = 300 };
/* A comparison of the calls of all ranks up to some call: this rank's hash and its complement, and the largest of each
   over all ranks. */
typedef struct mpi_sum { struct mpi_sum *next; MPI_Request request; uint64_t mine[2], most[2]; long calls; } mpi_sum;
typedef struct mpi_group {
    struct mpi_group *next;
    char name[64];                                /* "" for subgroups */
    MPI_Comm comm, notices;
    mpi_sum *sums;                                /* the pending ones, the oldest first */
    uint64_t hash;                                /* of all calls */
    /* number of calls; the call of the next comparison; the last call that was equal on all ranks */
    long calls, due, same;
    int differs;                                  /* calls differ, and `why` says so */
    int rank, size;
    long timeout;                                 /* the time limit of waits, in ms; MPI itself has none */
    mpi_peer *peers;
    int halves;   /* the group has two ranks, which may sum by halves: see mpi_group_halve */
    unsigned halved;                              /* number of these sums so far */
    struct mpi_request *running;                  /* the pending ones, the oldest first */
    struct mpi_request *awaited;                  /* receives whose messages have not arrived, the oldest first */
    char *here;                                   /* [size] the ranks that have answered since this rank asked */
    char why[MPI_GROUP_WHY];                      /* the message of a rank that gave up, or "" */
    MPI_Request *told;                            /* [size] this rank's messages to the others, once it gave up */
} mpi_group;
typedef struct mpi_request {
    MPI_Request request;
    double looked, missed;       /* times of the last check, and of the first one that missed a rank, or 0 */
    double begun, told;          /* times when waiting began, and when this process was told to end */
    /* asked: the others were asked whether they wait; only: 1 + the only rank to watch, or 0 to watch all ranks */
    int asked, only;
    int *counts;   /* [4, size] of an all-to-all: counts and offsets of the sent elements, then of the received ones */
    MPI_Datatype type;           /* of a receive: the expected type */
    int count, from;
    void *to;                    /* destination; NULL: MPI writes to it */
    char *other;                 /* memory for a message that does not fit into the destination */
    struct mpi_request *next;    /* of a sum by halves, in the group's list */
    MPI_Request sent;
    MPI_Op op;
    char *data, *part;           /* destination of the result; memory for the other rank's numbers, or NULL when done */
    const char *mine;            /* this rank's numbers */
    int second, tag, code;       /* second: the sums are exchanged; code: MPI's error code */
    int met;                     /* the other rank's message has arrived */
    opd_scalar_type mean;        /* of a mean: float32 or float64, else 0 */
} mpi_request;

static pthread_mutex_t mpi_group_lock = PTHREAD_MUTEX_INITIALIZER;            /* used unless any thread may call MPI */
static int mpi_group_threads = MPI_THREAD_SINGLE;
static MPI_Op mpi_group_ops[4][4];               /* float16, bfloat16: sum, product, min, max; float32, float64 */
static int mpi_group_has_ops, mpi_group_begun;
/* a thread waits; the process was told to end meanwhile */
static volatile sig_atomic_t mpi_group_waits, mpi_group_told;
static volatile long mpi_group_asked;   /* time of the last question of a thread that still waits, in ms, or 0 */
static int mpi_group_listens;                     /* mpi_group_signal handles SIGTERM */
static mpi_group *mpi_groups;                     /* all groups with names */

/* Sets an error with MPI's message.  Returns -1. */
static int mpi_group_error(const char *call, int code) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    (void)MPI_Error_string(code, text, &length);
    return opd_fail(OPD_ERROR_KERNEL, "%s: %s", call, text);
}
/* Returns whether this process prints messages for all while MPI has not begun: it is the first one that mpirun or srun
   started. */
static int mpi_group_speaks(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const rank = getenv(names[i]);
        if (rank) { return strcmp(rank, "0") == 0; }
    }
    return 1;
}
/* Returns the number of processes that the launcher started, or 0 if the launcher does not say. */
static int mpi_group_started(void) {
    static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *const count = getenv(names[i]);
        if (count) { return atoi(count); }
    }
    return 0;
}
/* Enters MPI.  Returns -1 and sets an error if this thread may not call MPI. */
static int mpi_group_enter(void) {
    int main_thread = 1;
    if (mpi_group_threads == MPI_THREAD_MULTIPLE) { return 0; }
    if (mpi_group_threads < MPI_THREAD_SERIALIZED) {
        (void)MPI_Is_thread_main(&main_thread);
        if (!main_thread) {
            return opd_fail(OPD_ERROR_USER, "MPI was initialised with %s, so only the main thread may use it: call "
                            "MPI_Init_thread with MPI_THREAD_SERIALIZED", mpi_group_threads == MPI_THREAD_FUNNELED
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
/* Launchers tell the other ranks to end when one rank has ended.  A waiting rank then reports which rank it waits for. */
static void mpi_group_signal(int number) {
    const long asked = mpi_group_asked;
    if (!mpi_group_told && (mpi_group_waits > 0 || (asked && mpi_group_clock() - asked < 100))) {
        mpi_group_told = 1;
    } else {
        (void)signal(number, SIG_DFL);
        (void)raise(number);
    }
}
/* Tells all ranks of a communicator where each of them runs.  Returns NULL if memory is short or MPI fails: then the
   group does not notice that ranks end. */
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
/* Returns whether a process on this machine has ended, also if its parent has not waited for it. */
static int mpi_group_ended(long process) {
    char path[64], line[400];
    if (kill((pid_t)process, 0) != 0 && errno == ESRCH) { return 1; }
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *const file = fopen(path, "r");
    const char *const state = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    if (file) { (void)fclose(file); }
    return state && state[1] && (state[2] == 'Z' || state[2] == 'X');
}
/* Adds the name of a rank to a list, with its machine if that is another one: "rank 2 (process 4711 on node7)". */
static size_t mpi_group_name(const mpi_group *group, int rank, char *text, size_t used, size_t cap) {
    const mpi_peer *const peer = &group->peers[rank];
    const char *const end = strstr(peer->place, "pid:[");     /* the end of the machine's name */
    if (used + 120 >= cap) { return used; }
    return used + (size_t)snprintf(text + used, cap - used, "%srank %d (process %ld%s%.*s)", used ? ", " : "", rank,
                                   peer->process, peer->watched ? "" : " on ", peer->watched ? 0 : end
                                   ? (int)(end - peer->place) : 60, peer->place);
}
/* Writes the names of the ranks that have ended, such as "rank 2 (process 4711)".  Returns their number. */
static int mpi_group_missing(const mpi_group *group, char *text, size_t cap) {
    int count = 0;
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < group->size && group->peers; i++) {
        if (!group->peers[i].watched || !mpi_group_ended(group->peers[i].process)) { continue; }
        used = mpi_group_name(group, i, text, used, cap);
        count++;
    }
    return count;
}
/* Returns 0, or -1 and sets an error if another rank has given up. */
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
/* Tells all other ranks why this rank gives up. */
static int mpi_group_abandon(void *user, const char *why) {
    mpi_group *const group = (mpi_group *)user;
    const long begun = mpi_group_clock();
    int done = 0;
    group->told = (MPI_Request *)malloc((size_t)group->size * sizeof(MPI_Request));
    if (!group->told || mpi_group_enter()) { return -1; }
    (void)snprintf(group->why, sizeof group->why, "%s", why);
    for (int i = 0; i < group->size; i++) {
        group->told[i] = MPI_REQUEST_NULL;
        const mpi_peer *const peer = group->peers ? &group->peers[i] : NULL;
        if (i != group->rank && !(peer && peer->watched && mpi_group_ended(peer->process))) {
            (void)MPI_Isend(group->why, MPI_GROUP_WHY, MPI_CHAR, i, 0, group->notices, &group->told[i]);
        }
    }
    while (!done && mpi_group_clock() - begun < 1000) {       /* small messages are sent at once */
        if (MPI_Testall(group->size, group->told, &done, MPI_STATUSES_IGNORE) != MPI_SUCCESS) { break; }
    }
    mpi_group_leave();
    return 0;
}
/* Checks pending comparisons.  The caller has entered MPI.  Sets `why` if ranks have called different collectives. */
static void mpi_group_compare(mpi_group *group) {
    int done = 1;
    while (group->sums && done) {
        mpi_sum *const sum = group->sums;
        if (MPI_Test(&sum->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || !done) { return; }
        if (!group->why[0] && (sum->most[0] != sum->mine[0] || sum->most[1] != sum->mine[1])) {
            group->differs = 1;
            (void)snprintf(group->why, sizeof group->why, "ranks have called other collectives, or in another order, "
                           "since call %ld (rank %d: %ld calls): values may be wrong since then; set OPD_MPI_CHECKED=1 "
                           "to find the call", group->same + 1, group->rank, sum->calls);
        }
        group->same = sum->calls;
        group->sums = sum->next;
        free(sum);
    }
}
/* Begins a comparison.  The caller has entered MPI. */
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
/* Tells the ranks on other machines which ranks have ended, because they cannot see it. */
static void mpi_group_pass_on(mpi_group *group, const char *who, int count) {
    char text[MPI_GROUP_WHY], name[100];
    int others = 0;
    for (int i = 0; i < group->size; i++) { others += i != group->rank && !group->peers[i].watched; }
    if (!others || group->why[0]) { return; }
    (void)gethostname(name, sizeof name - 1);
    name[sizeof name - 1] = 0;
    (void)snprintf(text, sizeof text, "%.200s %s ended on %.60s", who, count > 1 ? "have" : "has", name);
    (void)mpi_group_abandon(group, text);
}
enum { MPI_GROUP_ANSWERS = 3 };                   /* the tag of such messages */
static void mpi_group_say(const mpi_group *group, int to, int what) {
    static const int words[2] = {0, 1};           /* "I wait"; "I wait; do you?" */
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Isend((void *)(uintptr_t)&words[what], 1, MPI_INT, to, MPI_GROUP_ANSWERS, group->notices, &request) ==
        MPI_SUCCESS) { (void)MPI_Request_free(&request); }
}
/* Shortly before the time limit, a rank asks all others whether they wait for something, too.  Ranks that wait answer.
   Returns 0, or -1 and sets an error that names the ranks that do not answer. */
static int mpi_group_ask(mpi_group *group, mpi_request *request, double now) {
    const double limit = 1e-3 * (double)group->timeout, most = limit < 4 ? limit / 4 : 1;
    const double left = limit - (now - request->begun);
    char who[300] = "";
    int there = 1, word = 0;
    size_t used = 0;
    MPI_Status status;
    if (!group->here || !group->peers || mpi_group_enter()) { return 0; }
    for (int i = 0; i < group->size && left < most && !request->asked; i++) {
        group->here[i] = i == group->rank || (request->only && i != request->only - 1);
        if (!group->here[i]) { mpi_group_say(group, i, 1); }
    }
    if (left < most) { request->asked = 1; }
    while (there && MPI_Iprobe(MPI_ANY_SOURCE, MPI_GROUP_ANSWERS, group->notices, &there, &status) == MPI_SUCCESS &&
           there && MPI_Recv(&word, 1, MPI_INT, status.MPI_SOURCE, MPI_GROUP_ANSWERS, group->notices,
                             MPI_STATUS_IGNORE) == MPI_SUCCESS) {
        group->here[status.MPI_SOURCE] = 1;
        if (word) { mpi_group_say(group, status.MPI_SOURCE, 0); }
    }
    mpi_group_leave();
    if (!request->asked || left > most / 4) { return 0; }
    for (int i = 0; i < group->size; i++) {
        if (!group->here[i]) { used = mpi_group_name(group, i, who, used, sizeof who); }
    }
    return !used ? 0 : opd_fail(OPD_ERROR_KERNEL, "it did not finish within %.3g s: %s did not answer: it has ended, "
                                "or is busy", limit, who);
}
/* Checks, at most ten times a second, whether other ranks have ended.  Returns -1 and sets an error that names them, if
   they were first found missing half a second ago (until then, their earlier messages may still arrive), or if this
   process was told to end. */
static int mpi_group_look(mpi_group *group, mpi_request *request, double now) {
    char who[300];
    const int told = mpi_group_told;
    if (!told && now - request->looked < 0.1) { return 0; }
    if (request->looked == 0 && !told) {          /* waiting has just begun */
        request->looked = request->begun = now;
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
        mpi_group_pass_on(group, who, count);
        return opd_fail(OPD_ERROR_KERNEL, "%s %s ended", who, count > 1 ? "have" : "has");
    }
    if (told) {                                   /* because of a rank on another machine, or for another reason */
        if (request->told <= 0) { request->told = now; }
        if (now - request->told < 0.7) { return 0; }          /* launchers wait one second before they kill a process */
        (void)signal(SIGTERM, SIG_DFL);
        (void)raise(SIGTERM);
    }
    return request->begun > 0 ? mpi_group_ask(group, request, now) : 0;
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
/* Rounds to the nearest number, and to the even one of two. */
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
/* Returns the maximum or minimum.  The result is NaN if one number is NaN, as in PyTorch. */
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

/* Minimum and maximum of float32 and float64.  MPI's own operations may lose a NaN, and not on all ranks. */
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
    switch (opd_dtype_size(dtype)) {              /* other dtypes are only moved: their size matters */
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
    if (dtype == OPD_BOOL) {                      /* bool: sum is any, product is all */
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

//-- the functions of the table ----------------------------------------------------------------------------------------

/* the least bytes for halves; the first of their tags in `notices` */
enum { MPI_GROUP_HALVES = 65536, MPI_GROUP_TAGS = 16 };
static int mpi_group_bytes(MPI_Datatype type) {
    int bytes = 0;
    (void)MPI_Type_size(type, &bytes);
    return bytes;
}
/* Returns the number of elements in the half of a sum that a rank computes.  Sets *from to the first of them. */
static int mpi_group_half(int count, int rank, int *from) {
    *from = rank * (count / 2);
    return rank ? count - count / 2 : count / 2;
}
/* Looks whether a message has arrived.  If so, sets *message and its number of bytes.  Returns MPI's code.  A
   message is received only when its length is known: over shared memory, Open MPI 4.1 writes a message that is too
   long past the end of the memory. */
static int mpi_group_arrived(MPI_Comm comm, int from, int tag, int *there, MPI_Message *message, int *bytes) {
    MPI_Status status;
    const int code = MPI_Improbe(from, tag, comm, there, message, &status);
    return code != MPI_SUCCESS || !*there ? code : MPI_Get_count(&status, MPI_BYTE, bytes);
}
/* Begins the receives whose messages have arrived.  The caller has entered MPI.  Receives from one rank with one tag
   begin in their order. */
static void mpi_group_match(mpi_group *group) {
    for (mpi_request **at = &group->awaited; *at;) {
        mpi_request *const request = *at;
        MPI_Message message;
        int there = 0, bytes = 0;
        const mpi_request *before = group->awaited;
        while (before != request && (before->from != request->from || before->tag != request->tag)) {
            before = before->next;
        }
        if (before == request) {
            request->code = mpi_group_arrived(group->comm, request->from, request->tag, &there, &message, &bytes);
        }
        if (!there && request->code == MPI_SUCCESS) {
            at = &request->next;
            continue;
        }
        *at = request->next;
        request->met = 1;
        if (request->code != MPI_SUCCESS) { continue; }
        const int fits = bytes <= (int64_t)request->count * mpi_group_bytes(request->type);
        if (!fits) { request->other = (char *)malloc((size_t)bytes); }
        if (!fits && !request->other) { request->code = MPI_ERR_NO_MEM; }
        else {
            request->code = fits ? MPI_Imrecv(request->to, request->count, request->type, &message, &request->request)
                : MPI_Imrecv(request->other, bytes, MPI_BYTE, &message, &request->request);
        }
    }
}
/* Begins to send `sent` elements of `out` to the other of two ranks.  In the second swap of a sum, also begins to
   receive `taken` elements into `in`; in the first swap, mpi_group_meets receives.  Returns MPI's code. */
static int mpi_group_swap(const mpi_group *group, mpi_request *request, const void *out, int sent, void *in,
                          int taken) {
    const int other = 1 - group->rank, tag = request->tag + request->second;
    const int code = request->second
        ? MPI_Irecv(in, taken, request->type, other, tag, group->notices, &request->request) : MPI_SUCCESS;
    return code != MPI_SUCCESS ? code : MPI_Isend((void *)(uintptr_t)out, sent, request->type, other, tag,
                                                  group->notices, &request->sent);
}
/* Begins an all-reduce of large memory of two ranks.  Each rank receives one half of the other's numbers and adds
   its own; then the ranks swap the sums.  So both ranks add, while in MPI's own algorithms for two ranks, one rank
   adds everything.  Over shared memory this takes half as long.  The caller has entered MPI.  Returns MPI's code. */
static int mpi_group_halve(mpi_group *group, const opd_transfer *transfer, mpi_request *out) {
    const MPI_Datatype type = mpi_group_type(transfer->dtype);
    const size_t bytes = (size_t)mpi_group_bytes(type);
    const char *const send = (const char *)transfer->send;
    int from, its, count = mpi_group_half((int)transfer->count, group->rank, &from);
    const int others = mpi_group_half((int)transfer->count, 1 - group->rank, &its);
    mpi_request **end = &group->running;
    out->data = (char *)transfer->recv;
    out->part = send == out->data ? (char *)malloc((size_t)count * bytes) : out->data + (size_t)from * bytes;
    if (!out->part) { return MPI_ERR_NO_MEM; }
    out->mine = send + (size_t)from * bytes;
    out->type = type;
    out->op = mpi_group_op(transfer->reduction, transfer->dtype);
    out->mean = transfer->reduction == OPD_REDUCTION_AVG ? transfer->dtype : (opd_scalar_type)0;
    out->count = (int)transfer->count;
    out->from = 1 - group->rank;
    out->tag = MPI_GROUP_TAGS + 2 * (int)(group->halved++ % 8192);
    out->request = out->sent = MPI_REQUEST_NULL;
    out->code = mpi_group_swap(group, out, send + (size_t)its * bytes, others, out->part, count);
    while (*end) { end = &(*end)->next; }
    *end = out;
    return MPI_SUCCESS;
}
/* Overwrites the second numbers with the means of both.  The loops have blocks, so that compilers vectorise them. */
#define MPI_GROUP_MEAN(name, T) \
    static void name(const void *in, void *out, int count) { \
        const T *const from = (const T *)in; \
        T *const to = (T *)out; \
        int i = 0; \
        for (; i + 32 <= count; i += 32) { \
            for (int k = 0; k < 32; k++) { to[i + k] = (T)0.5 * from[i + k] + (T)0.5 * to[i + k]; } \
        } \
        for (; i < count; i++) { to[i] = (T)0.5 * from[i] + (T)0.5 * to[i]; } \
    }
MPI_GROUP_MEAN(mpi_group_mean_f32, float)
MPI_GROUP_MEAN(mpi_group_mean_f64, double)
/* Adds `count` numbers of `in` to `out` or, for a mean, sets `out` to the means of both.  Returns MPI's code. */
static int mpi_group_add(const mpi_request *request, const void *in, void *out, int count) {
    if (request->mean == OPD_FLOAT32) { mpi_group_mean_f32(in, out, count); }
    else if (request->mean == OPD_FLOAT64) { mpi_group_mean_f64(in, out, count); }
    else { return MPI_Reduce_local((void *)(uintptr_t)in, out, count, request->type, request->op); }
    return MPI_SUCCESS;
}
/* Called when a swap of a sum by halves is complete.  After the first swap, adds the received half and begins to swap
   the sums.  After the second swap, marks the request as done. */
static void mpi_group_halved(const mpi_group *group, mpi_request *request) {
    const size_t bytes = (size_t)mpi_group_bytes(request->type);
    int from, its, count = mpi_group_half(request->count, group->rank, &from);
    const int others = mpi_group_half(request->count, 1 - group->rank, &its);
    char *const here = request->data + (size_t)from * bytes, *const there = request->data + (size_t)its * bytes;
    if (request->second) {
        request->part = NULL;
        return;
    }
    request->second = 1;
    if (request->part == here) {
        request->code = mpi_group_add(request, request->mine, here, count);
    } else {
        request->code = mpi_group_add(request, request->part, here, count);
        free(request->part);
        request->part = here;
    }
    if (request->code == MPI_SUCCESS) { request->code = mpi_group_swap(group, request, here, count, there, others); }
}
/* Receives the other rank's half, if it has arrived and has the right length. */
static void mpi_group_meets(const mpi_group *group, mpi_request *request) {
    int from, bytes = 0;
    const int count = mpi_group_half(request->count, group->rank, &from);
    MPI_Message message;
    request->code = mpi_group_arrived(group->notices, 1 - group->rank, request->tag, &request->met, &message, &bytes);
    if (request->code != MPI_SUCCESS || !request->met) { return; }
    request->code = bytes != (int64_t)count * mpi_group_bytes(request->type) ? MPI_ERR_COUNT
        : MPI_Imrecv(request->part, count, request->type, &message, &request->request);
}
/* Continues all sums by halves.  The caller has entered MPI. */
static void mpi_group_run(mpi_group *group) {
    for (mpi_request **at = &group->running; *at;) {
        mpi_request *const request = *at;
        if (!request->met && request->code == MPI_SUCCESS) { mpi_group_meets(group, request); }
        MPI_Request both[2] = {request->request, request->sent};
        MPI_Status status[2];
        int done = request->code != MPI_SUCCESS, got = 0, from;
        const int expected = mpi_group_half(request->count, request->second ? 1 - group->rank : group->rank, &from);
        if (!done && request->met) {
            const int code = MPI_Testall(2, both, &done, status);
            request->request = both[0];
            request->sent = both[1];
            request->code = code;
            for (int i = 0; i < 2 && code == MPI_ERR_IN_STATUS && request->code == code; i++) {
                const int its = status[i].MPI_ERROR;
                if (its != MPI_SUCCESS && its != MPI_ERR_PENDING) { request->code = its; }
            }
        }
        if (done && request->code == MPI_SUCCESS) {
            (void)MPI_Get_count(&status[0], request->type, &got);
            if (got != expected) { request->code = MPI_ERR_COUNT; } else { mpi_group_halved(group, request); }
        }
        if (request->code != MPI_SUCCESS || !request->part) { *at = request->next; } else { at = &request->next; }
    }
}
/* Sets the counts of an all-to-all as MPI needs them.  Returns 0, or -1 and sets an error. */
static int mpi_group_counts(const mpi_group *group, const opd_transfer *transfer, mpi_request *request) {
    int64_t sent = 0, taken = 0;
    request->counts = (int *)malloc(4 * (size_t)group->size * sizeof *request->counts);
    if (!request->counts) { return opd_fail(OPD_ERROR_MEMORY, "there is no memory for a transfer of MPI"); }
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
/* Returns whether a transfer is computed by halves, by two ranks. */
static int mpi_group_is_halved(const mpi_group *group, const opd_transfer *transfer) {
    return transfer->kind == OPD_COLLECTIVE_ALL_REDUCE && group->halves &&
        transfer->count >= MPI_GROUP_HALVES / (int64_t)opd_dtype_size(transfer->dtype);
}
/* Returns whether a transfer computes means itself: transfers by halves do. */
static bool mpi_group_averages(void *user, const opd_transfer *transfer) {
    return mpi_group_is_halved((const mpi_group *)user, transfer) &&
        (transfer->dtype == OPD_FLOAT32 || transfer->dtype == OPD_FLOAT64);
}
/* Begins a transfer.  Returns MPI's code. */
static int mpi_group_call(mpi_group *group, const opd_transfer *transfer, mpi_request *out) {
    const MPI_Datatype type = mpi_group_type(transfer->dtype);
    const MPI_Op op = mpi_group_op(transfer->reduction, transfer->dtype);
    const int count = (int)transfer->count, root = transfer->peer, here = root == group->rank;
    void *const recv = transfer->recv, *const send = (void *)(uintptr_t)transfer->send;
    void *const from = send == recv ? MPI_IN_PLACE : send;
    const int *const counts = out->counts;
    MPI_Request *const request = &out->request;
    switch (transfer->kind) {
    case OPD_COLLECTIVE_ALL_REDUCE:
        if (mpi_group_is_halved(group, transfer)) { return mpi_group_halve(group, transfer, out); }
        return MPI_Iallreduce(from, recv, count, type, op, group->comm, request);
    case OPD_COLLECTIVE_ALL_GATHER:
        return MPI_Iallgather(send, count, type, recv, count, type, group->comm, request);
    case OPD_COLLECTIVE_REDUCE_SCATTER:
        return MPI_Ireduce_scatter_block(send, recv, count, type, op, group->comm, request);
    case OPD_COLLECTIVE_ALL_TO_ALL:
        return MPI_Ialltoallv(send, counts, counts + group->size, type, recv, counts + 2 * group->size,
                              counts + 3 * group->size, type, group->comm, request);
    case OPD_COLLECTIVE_BROADCAST:
        if (here && send != recv && count) {      /* MPI copies, because it knows the kind of memory */
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
    case OPD_COLLECTIVE_RECV:
        out->to = recv;
        out->tag = transfer->tag;
        for (mpi_request **end = &group->awaited; ; end = &(*end)->next) {
            if (*end) { continue; }
            *end = out;
            break;
        }
        mpi_group_match(group);
        return MPI_SUCCESS;
    default: return MPI_Ibarrier(group->comm, request);
    }
}
/* Returns 0, or -1 and sets an error if a finished receive got fewer or more elements than expected. */
static int mpi_group_received(const mpi_request *request, const MPI_Status *status) {
    int got = 0;
    if (request->type == MPI_DATATYPE_NULL || MPI_Get_count(status, request->type, &got) != MPI_SUCCESS ||
        got == request->count) { return 0; }
    if (got == MPI_UNDEFINED) {
        return opd_fail(OPD_ERROR_SHAPE, "rank %d did not send a whole number of elements", request->from);
    }
    return opd_fail(OPD_ERROR_SHAPE, "rank %d sent %d element(s), but %d are received", request->from, got,
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
        (reduces && transfer->reduction != OPD_REDUCTION_AVG &&
         mpi_group_op(transfer->reduction, transfer->dtype) == MPI_OP_NULL)) {
        return opd_fail(OPD_ERROR_DTYPE, "MPI does not support this operation for %s",
                        opd_dtype_cname(transfer->dtype));
    }
    mpi_request *const request = (mpi_request *)calloc(1, sizeof *request);
    if (!request) { return opd_fail(OPD_ERROR_MEMORY, "there is no memory for a transfer of MPI"); }
    request->type = transfer->kind == OPD_COLLECTIVE_RECV ? mpi_group_type(transfer->dtype) : MPI_DATATYPE_NULL;
    request->count = (int)transfer->count;
    request->from = transfer->peer;
    if (transfer->kind == OPD_COLLECTIVE_SEND || transfer->kind == OPD_COLLECTIVE_RECV) {
        request->only = transfer->peer + 1;
    }
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
    double begun = 0, until = 0;
    int done = 0, code = MPI_SUCCESS, rc = 1;
    MPI_Status status;
    if (wait_us > 0) { mpi_group_waits++; }
    for (bool again = true; again && !done && !failed && code == MPI_SUCCESS;) {
        failed = mpi_group_enter() != 0;
        if (failed) { break; }
        if (group->running) { mpi_group_run(group); }
        if (group->awaited) { mpi_group_match(group); }
        if (request->data) {
            code = request->code;
            done = !request->part;
        } else if (request->to && (!request->met || request->code != MPI_SUCCESS)) { code = request->code; }
        else { code = MPI_Test(&request->request, &done, &status); }
        if (done && group->sums) { mpi_group_compare(group); }
        const double now = wait_us > 0 ? MPI_Wtime() : 0;
        mpi_group_leave();
        if (until == 0) {
            begun = now;
            until = now + 1e-6 * (double)wait_us;
        }
        again = wait_us > 0 && now < until;
        if (!done && again && now - begun > 2e-5) { (void)sched_yield(); }    /* other processes may need the core */
        failed = !done && code == MPI_SUCCESS && wait_us > 0 && mpi_group_look(group, request, now);
    }
    if (code != MPI_SUCCESS && mpi_group_missing(group, who, sizeof who)) {
        (void)mpi_group_error(who, code);
    } else if (request->data && (code == MPI_ERR_COUNT || code == MPI_ERR_TRUNCATE)) {
        (void)opd_fail(OPD_ERROR_SHAPE, "rank %d reduces another number of elements than this rank, which has %d",
                       request->from, request->count);
    } else if (code != MPI_SUCCESS) { (void)mpi_group_error("MPI_Test", code); }
    if (wait_us > 0) {
        mpi_group_asked = done || failed || code != MPI_SUCCESS ? 0 : mpi_group_clock();
        mpi_group_waits--;
    }
    if (!done || failed || code != MPI_SUCCESS) { return failed || code != MPI_SUCCESS ? -1 : 0; }
    if (!request->data && mpi_group_received(request, &status)) { rc = -1; }
    if (group->differs) { rc = opd_fail(OPD_ERROR_KERNEL, "%s", group->why); }
    free(request->counts);
    free(request->other);
    free(request);
    return rc;
}
/* Returns whether MPI supports memory of CUDA devices. */
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
    for (int i = 0; i < 16; i++) {                /* the operations of this file need host memory */
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
    if (group->why[0] || group->sums || group->running || group->awaited) { return; }
    /* otherwise MPI keeps pending requests, and the memory to which they refer */
    if (!finalized) {
        (void)MPI_Comm_free(&group->comm);
        (void)MPI_Comm_free(&group->notices);
    }
    free(group->peers);
    free(group->here);
    free(group);
}
static int mpi_group_split(void *user, const int32_t *ranks, int32_t count, opd_group_desc *out);
/* Fills in a table for a communicator, which it then owns.  Returns 0, or -1 and sets an error. */
static int mpi_group_table(MPI_Comm comm, int64_t timeout_ms, opd_group_desc *desc) {
    mpi_group *const group = (mpi_group *)calloc(1, sizeof *group);
    if (!group) { return opd_fail(OPD_ERROR_MEMORY, "there is no memory for a transfer of MPI"); }
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
    group->here = (char *)calloc((size_t)group->size, 1);     /* if memory is short, no rank is asked */
    int halves = group->size == 2 && !mpi_group_cuda();       /* only in host memory; equal on both ranks */
    if (group->size == 2 && MPI_Allreduce(MPI_IN_PLACE, &halves, 1, MPI_INT, MPI_MIN, comm) == MPI_SUCCESS) {
        group->halves = halves;
    }
    desc->rank = group->rank;
    desc->size = group->size;
    desc->start = mpi_group_start;
    desc->test = mpi_group_test;
    desc->split = mpi_group_split;
    desc->destroy = mpi_group_destroy;
    desc->abandon = mpi_group_abandon;
    desc->takes = mpi_group_takes;
    desc->averages = mpi_group_averages;
    desc->user = group;
    return 0;
}
/* Waits for a request that needs another rank, at most for the group's time limit.  Returns 0, or -1 and sets an
   error. */
static int mpi_group_await(mpi_group *group, MPI_Request *request, int other) {
    mpi_request watched;
    const long begun = mpi_group_clock();
    int done = 0, code = MPI_SUCCESS;
    memset(&watched, 0, sizeof watched);
    watched.only = other + 1;
    while (!done && code == MPI_SUCCESS) {
        if (mpi_group_enter()) { return -1; }
        code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
        const double now = MPI_Wtime();
        mpi_group_leave();
        if (!done && code == MPI_SUCCESS && mpi_group_look(group, &watched, now)) { return -1; }
        if (!done && mpi_group_clock() - begun > group->timeout) {
            return opd_fail(OPD_ERROR_KERNEL, "it did not finish within %.3g s: a rank has ended, or gives other ranks",
                            (double)group->timeout / 1000);
        }
    }
    return code == MPI_SUCCESS ? 0 : mpi_group_error("MPI_Test", code);
}
/* Sends two numbers, or receives them if `to` is -1.  Returns 0, or -1 and sets an error; then MPI keeps their
   memory. */
static int mpi_group_step(mpi_group *group, int to, int from, int tag, int *says) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (mpi_group_enter()) { return -1; }
    const int code = to >= 0 ? MPI_Isend(says, 2, MPI_INT, to, tag, group->notices, &request)
        : MPI_Irecv(says, 2, MPI_INT, from, tag, group->notices, &request);
    mpi_group_leave();
    return code == MPI_SUCCESS ? mpi_group_await(group, &request, to >= 0 ? to : from)
        : mpi_group_error("MPI_Isend", code);
}
/* Before ranks make a group, they ask the first of them whether all name the same ranks: otherwise MPI would wait
   forever.  Returns 0, or -1 and sets an error. */
static int mpi_group_agree(mpi_group *group, const int *chosen, int count) {
    int *const mine = (int *)malloc(4 * sizeof *mine), *const its = mine + 2;
    unsigned hash = 17;                           /* of the ranks, in their order */
    int rc = 0, same = 1;
    if (!mine) { return opd_fail(OPD_ERROR_MEMORY, "there is no memory for a transfer of MPI"); }
    for (int i = 0; i < count; i++) { hash = hash * 31 + (unsigned)chosen[i]; }
    mine[0] = count;
    mine[1] = (int)(hash >> 1);
    if (group->rank != chosen[0]) {
        rc = mpi_group_step(group, chosen[0], -1, 1, mine) || mpi_group_step(group, -1, chosen[0], 2, its);
        same = rc || its[0];
    }
    for (int turn = 0; turn < 2 && group->rank == chosen[0]; turn++) {        /* receives from all, then answers all */
        for (int i = 1; i < count && !rc; i++) {
            its[0] = same;
            rc = turn ? mpi_group_step(group, chosen[i], -1, 2, its) : mpi_group_step(group, -1, chosen[i], 1, its);
            if (!rc && turn == 0 && memcmp(mine, its, 2 * sizeof *mine) != 0) { same = 0; }
        }
    }
    if (rc) { return -1; }
    free(mine);
    return same ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "the ranks give different lists of ranks, or another order");
}
/* Compares all calls of the ranks, before a group ends.  Returns 0, or -1 and sets an error. */
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
            return opd_fail(OPD_ERROR_KERNEL, "the other ranks did not finish within %.3g s",
                            (double)group->timeout / 1000);
        }
    }
    return group->why[0] ? opd_fail(OPD_ERROR_KERNEL, "%s", group->why) : 0;
}
static int mpi_group_split(void *user, const int32_t *ranks, int32_t count, opd_group_desc *out) {
    mpi_group *const group = (mpi_group *)user;
    int *const chosen = (int *)malloc((size_t)count * sizeof *chosen);
    MPI_Group all, some;
    MPI_Comm comm = MPI_COMM_NULL;
    if (!chosen) { return opd_fail(OPD_ERROR_MEMORY, "there is no memory for a transfer of MPI"); }
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

//-- functions for programs --------------------------------------------------------------------------------------------

/* MPI's reductions allocate and free as much memory as they reduce.  By default, glibc gets this memory from the
   system each time, page by page, which takes longer than the reduction.  Once a large block was freed, glibc keeps
   freed blocks of up to twice its size, unless the program or the environment sets M_MMAP_THRESHOLD (see
   mallopt(3)). */
static void mpi_group_keep_memory(void) {
    void *volatile block = malloc(((size_t)32 << 20) - 65536);
    free(block);
}
/* Registers a group of the ranks of a communicator, which the caller continues to own.  All of these ranks must call
   this.  checked: see opd_group_desc.  Returns NULL and sets an error on failure. */
static opd_group *mpi_group_register(const char *name, MPI_Comm comm, bool checked, int64_t timeout_ms) {
    opd_group_desc desc;
    MPI_Comm own = MPI_COMM_NULL;
    memset(&desc, 0, sizeof desc);
    (void)MPI_Query_thread(&mpi_group_threads);
    mpi_group_make_ops();
    mpi_group_keep_memory();
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
/* If a rank ends without mpi_group_end, the others wait, and MPICH's launcher ends them with status 0.  So this
   aborts the job.  The pause lets the launcher read the message: MPICH's launcher loses output in the pipe when a
   rank aborts. */
static inline void mpi_group_left(void) {
    const struct timespec pause = {0, 200000000};
    if (!mpi_group_begun) { return; }
    (void)fprintf(stderr, "a rank (process %ld) ended without mpi_group_end\n", (long)getpid());
    (void)nanosleep(&pause, NULL);
    (void)MPI_Abort(MPI_COMM_WORLD, 1);
}
/* Begins MPI, unless it has begun, and registers all ranks as the group "world".  In the environment,
   OPD_MPI_CHECKED=1 makes the group a checked one, and OPD_MPI_TIMEOUT sets its time limit in seconds.  If this
   function begins MPI, calls of MPI return their errors (MPI_ERRORS_RETURN), also calls by the program.  Returns
   NULL and sets an error on failure. */
static opd_group *mpi_group_begin(void) {
    const char *const checked = getenv("OPD_MPI_CHECKED"), *const seconds = getenv("OPD_MPI_TIMEOUT");
    const double limit = seconds ? atof(seconds) : 0;
    int initialized = 0, level = 0, size = 0;
    (void)MPI_Initialized(&initialized);
    if (!initialized) {
        (void)MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &level);
        mpi_group_begun = 1;
#if !defined(OPDISPATCH_PLUGIN)
        (void)atexit(mpi_group_left);
#endif
        /* in MPICH, this is also needed for errors of requests */
        (void)MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        (void)MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    }
    (void)MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!initialized && size == 1 && mpi_group_started() > 1) {   /* otherwise each process would be a group of one */
        (void)opd_fail(OPD_ERROR_USER, "%d processes were started, but MPI knows only this one: mpirun belongs to "
                       "another MPI than the program (try mpirun.openmpi or mpirun.mpich), or srun needs --mpi=pmix or "
                       "--mpi=pmi2 (srun --mpi=list)", mpi_group_started());
        return NULL;
    }
    if (!mpi_group_listens) {                     /* unless the program handles SIGTERM itself */
        void (*const was)(int) = signal(SIGTERM, mpi_group_signal);
        mpi_group_listens = was == SIG_DFL;
        if (!mpi_group_listens) { (void)signal(SIGTERM, was); }
    }
    return mpi_group_register("world", MPI_COMM_WORLD, checked && *checked == '1',
                              limit > 0 && limit < 1e9 ? (int64_t)(1000 * limit) : 0);
}
/* Gives each rank one of the devices of its machine, and makes it current.  The backend of these devices then moves
   their memory (opd_group_device_add).  All ranks must call this.  Writes the device to *device.  Returns 0, or -1
   and sets an error. */
static inline int mpi_group_device(opd_group *group, opd_device *device) {
    MPI_Comm machine = MPI_COMM_NULL;
    int place = 0;
    if (MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine) == MPI_SUCCESS) {
        (void)MPI_Comm_rank(machine, &place);
        (void)MPI_Comm_free(&machine);
    }
    const int count = opd_device_count((opd_backend)device->type);
    *device = opd_device_make((opd_backend)device->type, count > 0 ? place % count : 0);
    if (count > 0) { (void)opd_device_set(*device); }
    return opd_group_device_add(group, *device);
}
/* Unregisters the group, and ends MPI if mpi_group_begin has begun it.  If an error is pending, ends the job: other
   ranks may wait for calls that this rank will not make. */
static void mpi_group_end(opd_group *group) {
    if (opd_ok() && group) { (void)mpi_group_finish(opd_group_name(group)); }
    if (!opd_ok()) {
        const struct timespec pause = {0, 500000000};         /* lets other ranks report the error, too */
        (void)fprintf(stderr, "rank %d: %s\n", group ? opd_group_rank(group) : -1, opd_error_message());
        (void)fflush(stderr);
        if (group && opd_group_size(group) > 1) { (void)nanosleep(&pause, NULL); }
        mpi_group_begun = 0;
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
/* The operator mpi::ranks shows that the plug-in is loaded.  When the operator is destroyed, the group ends. */
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
