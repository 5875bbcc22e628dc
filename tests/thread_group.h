/* thread_group.h: a process group of threads, for tests.  Each rank is a thread with its own name of the group
   ("world0", "world1", ...).  A result is ready once all ranks have begun.  A rank may be late (`pause`), or never
   come. */
#ifndef OPD_TESTS_THREAD_GROUP_H
#define OPD_TESTS_THREAD_GROUP_H

#include "../opdispatch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RANKS_MOST = 8, CALLS_MOST = 4096 };
typedef struct message { struct message *next; int from, to, tag; size_t bytes; } message;
typedef struct thread_world {
    pthread_mutex_t lock;
    int size, users;
    int refuse_at;                                /* this call and all later ones fail; 0: none */
    char abandoned[300];                          /* why a rank gave up */
    opd_transfer posted[RANKS_MOST][CALLS_MOST];
    int begun[CALLS_MOST], read[CALLS_MOST];      /* how many ranks have begun call i, and have read the others' data */
    int calls[RANKS_MOST];
    message *messages;
} thread_world;
typedef struct thread_request {
    struct thread_request *next;
    int call;
    bool has_read, received;
    void *temp;
    size_t bytes;
    opd_transfer transfer;
} thread_request;
typedef struct thread_rank { thread_world *world; int rank; thread_request *requests; } thread_rank;

static inline thread_world *thread_world_new(int size) {
    thread_world *world = (thread_world *)calloc(1, sizeof *world);
    (void)pthread_mutex_init(&world->lock, NULL);
    world->size = size;
    world->users = size;
    return world;
}
static inline void thread_rest(long us) {
    struct timespec rest;
    rest.tv_sec = 0;
    rest.tv_nsec = us * 1000;
    (void)nanosleep(&rest, NULL);
}
/* Computes to = to (op) from for one element, of the few dtypes that tests need. */
#define THREAD_REDUCE(T) do { \
        T *to_ = (T *)to; \
        const T *from_ = (const T *)from; \
        for (int64_t i_ = 0; i_ < count; i_++) { \
            to_[i_] = op == OPD_REDUCTION_MAX ? (from_[i_] > to_[i_] ? from_[i_] : to_[i_]) \
                : op == OPD_REDUCTION_MIN ? (from_[i_] < to_[i_] ? from_[i_] : to_[i_]) \
                : op == OPD_REDUCTION_PRODUCT ? (T)(to_[i_] * from_[i_]) : (T)(to_[i_] + from_[i_]); \
        } \
    } while (0)
static inline void thread_reduce(void *to, const void *from, int64_t count, opd_scalar_type dtype, opd_reduction op) {
    switch (dtype) {
    case OPD_FLOAT64: THREAD_REDUCE(double); break;
    case OPD_INT64: THREAD_REDUCE(int64_t); break;
    case OPD_INT32: THREAD_REDUCE(int32_t); break;
    default: THREAD_REDUCE(float); break;
    }
}

/* Writes this rank's result to temp.  Returns its destination and its number of bytes.  The caller holds the lock. */
static inline void thread_compute(thread_world *world, int me, thread_request *request) {
    const opd_transfer *const mine = &request->transfer;
    const opd_transfer (*const all)[CALLS_MOST] = world->posted;
    const size_t element = opd_dtype_size(mine->dtype), bytes = (size_t)mine->count * element;
    const int call = request->call;
    const bool root = mine->peer == me;
    size_t offset = 0;
    request->bytes = 0;
    switch (mine->kind) {
    case OPD_COLLECTIVE_ALL_REDUCE: case OPD_COLLECTIVE_REDUCE: case OPD_COLLECTIVE_REDUCE_SCATTER: {
        const size_t at = mine->kind == OPD_COLLECTIVE_REDUCE_SCATTER ? (size_t)me * bytes : 0;
        if (mine->kind == OPD_COLLECTIVE_REDUCE && !root) { return; }
        request->temp = malloc(bytes + 1);
        request->bytes = bytes;
        for (int rank = 0; rank < world->size; rank++) {
            const void *const from = (const char *)all[rank][call].send + at;
            if (rank == 0) { memcpy(request->temp, from, bytes); }
            else { thread_reduce(request->temp, from, mine->count, mine->dtype, mine->reduction); }
        }
        return;
    }
    case OPD_COLLECTIVE_ALL_GATHER: case OPD_COLLECTIVE_GATHER:
        if (mine->kind == OPD_COLLECTIVE_GATHER && !root) { return; }
        request->bytes = bytes * (size_t)world->size;
        request->temp = malloc(request->bytes + 1);
        for (int rank = 0; rank < world->size; rank++) {
            memcpy((char *)request->temp + (size_t)rank * bytes, all[rank][call].send, bytes);
        }
        return;
    case OPD_COLLECTIVE_ALL_TO_ALL:
        for (int rank = 0; rank < world->size; rank++) { request->bytes += (size_t)mine->recv_counts[rank] * element; }
        request->temp = malloc(request->bytes + 1);
        for (int rank = 0; rank < world->size; rank++) {
            const opd_transfer *const its = &all[rank][call];
            size_t begin = 0;
            for (int other = 0; other < me; other++) { begin += (size_t)its->send_counts[other] * element; }
            memcpy((char *)request->temp + offset, (const char *)its->send + begin,
                   (size_t)mine->recv_counts[rank] * element);
            offset += (size_t)mine->recv_counts[rank] * element;
        }
        return;
    case OPD_COLLECTIVE_BROADCAST: case OPD_COLLECTIVE_SCATTER:
        request->bytes = bytes;
        request->temp = malloc(bytes + 1);
        memcpy(request->temp, (const char *)all[mine->peer][call].send +
               (mine->kind == OPD_COLLECTIVE_SCATTER ? (size_t)me * bytes : 0), bytes);
        return;
    default: return;
    }
}
static inline int thread_start(void *user, const opd_transfer *transfer, void **out) {
    thread_rank *const its = (thread_rank *)user;
    thread_world *const world = its->world;
    thread_request *const request = (thread_request *)calloc(1, sizeof *request);
    request->transfer = *transfer;
    (void)pthread_mutex_lock(&world->lock);
    if (world->refuse_at && world->calls[its->rank] + 1 >= world->refuse_at) {
        (void)pthread_mutex_unlock(&world->lock);
        free(request);
        return opd_fail(OPD_ERROR_USER, "the cable is cut");
    }
    if (world->abandoned[0]) {
        (void)pthread_mutex_unlock(&world->lock);
        free(request);
        return opd_fail(OPD_ERROR_USER, "%s", world->abandoned);
    }
    if (transfer->kind == OPD_COLLECTIVE_SEND) {
        const size_t bytes = (size_t)transfer->count * opd_dtype_size(transfer->dtype);
        message *const sent = (message *)malloc(sizeof *sent + bytes);
        message **end = &world->messages;
        sent->next = NULL;
        sent->from = its->rank;
        sent->to = transfer->peer;
        sent->tag = transfer->tag;
        sent->bytes = bytes;
        memcpy(sent + 1, transfer->send, bytes);
        while (*end) { end = &(*end)->next; }
        *end = sent;
    } else if (transfer->kind != OPD_COLLECTIVE_RECV) {
        request->call = world->calls[its->rank]++;
        world->posted[its->rank][request->call] = *transfer;
        world->begun[request->call]++;
    }
    request->next = its->requests;
    its->requests = request;
    (void)pthread_mutex_unlock(&world->lock);
    *out = request;
    return 0;
}
/* Gives the messages from a rank with a tag to the requests that wait for them, in their order.  The caller holds the
   lock. */
static inline void thread_deliver(const thread_rank *its, const opd_transfer *asked) {
    for (message **at = &its->world->messages; *at;) {
        message *const sent = *at;
        thread_request *first = NULL;
        for (thread_request *one = its->requests; one; one = one->next) {     /* the newest is first */
            const opd_transfer *const t = &one->transfer;
            if (t->kind == OPD_COLLECTIVE_RECV && t->peer == asked->peer && t->tag == asked->tag && !one->received) {
                first = one;
            }
        }
        if (!first) { return; }
        if (sent->to != its->rank || sent->from != asked->peer || sent->tag != asked->tag) {
            at = &sent->next;
            continue;
        }
        memcpy(first->transfer.recv, sent + 1, sent->bytes);
        first->received = true;
        *at = sent->next;
        free(sent);
    }
}
/* Returns whether a request is done.  The caller holds the lock. */
static inline bool thread_try(const thread_rank *its, thread_request *request) {
    thread_world *const world = its->world;
    if (request->transfer.kind == OPD_COLLECTIVE_SEND) { return true; }
    if (request->transfer.kind == OPD_COLLECTIVE_RECV) {
        thread_deliver(its, &request->transfer);
        return request->received;
    }
    if (world->begun[request->call] < world->size) { return false; }
    if (!request->has_read) {
        thread_compute(world, its->rank, request);
        request->has_read = true;
        world->read[request->call]++;
    }
    if (world->read[request->call] < world->size) { return false; }
    if (request->temp) { memcpy(request->transfer.recv, request->temp, request->bytes); }
    free(request->temp);
    request->temp = NULL;
    return true;
}
/* Returns whether a request can still end after a rank has given up, whose memory may be freed. */
static inline bool thread_may_end(const thread_world *world, const thread_request *request) {
    return request->transfer.kind == OPD_COLLECTIVE_SEND || request->received ||
        (request->has_read && world->read[request->call] == world->size);
}
static int thread_polls;                          /* the number of queries without waiting */
static inline int thread_test(void *user, void *request, int64_t wait_us) {
    thread_rank *const its = (thread_rank *)user;
    if (wait_us == 0) { (void)__atomic_add_fetch(&thread_polls, 1, __ATOMIC_RELAXED); }
    (void)pthread_mutex_lock(&its->world->lock);
    const bool lost = its->world->abandoned[0] && !thread_may_end(its->world, (const thread_request *)request);
    const bool done = lost || thread_try(its, (thread_request *)request);
    if (lost) { (void)opd_fail(OPD_ERROR_USER, "%s", its->world->abandoned); }
    for (thread_request **at = &its->requests; done && *at; at = &(*at)->next) {
        if (*at == (thread_request *)request) {
            *at = (*at)->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&its->world->lock);
    if (lost) { free(((thread_request *)request)->temp); }
    if (done) { free(request); } else if (wait_us > 0) { thread_rest(20); }
    return lost ? -1 : done;
}
static inline int thread_abandon(void *user, const char *why) {
    thread_world *const world = ((thread_rank *)user)->world;
    (void)pthread_mutex_lock(&world->lock);
    if (!world->abandoned[0]) { (void)snprintf(world->abandoned, sizeof world->abandoned, "%s", why); }
    (void)pthread_mutex_unlock(&world->lock);
    return 0;
}
static inline void thread_destroy(void *user) {
    thread_rank *const its = (thread_rank *)user;
    thread_world *const world = its->world;
    (void)pthread_mutex_lock(&world->lock);
    const int left = --world->users;
    (void)pthread_mutex_unlock(&world->lock);
    while (its->requests) {                       /* requests that never ended */
        thread_request *const request = its->requests;
        its->requests = request->next;
        free(request->temp);
        free(request);
    }
    free(its);
    if (left > 0) { return; }
    (void)pthread_mutex_destroy(&world->lock);
    while (world->messages) {
        message *const sent = world->messages;
        world->messages = sent->next;
        free(sent);
    }
    free(world);
}
/* Ranks of a new subgroup find each other by the number of the first of them. */
static struct { pthread_mutex_t lock; thread_world *world; int first, left; } thread_meeting = {
    PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0};
static int thread_split(void *user, const int32_t *ranks, int32_t count, opd_group_desc *out);
static inline opd_group *thread_group_new(thread_world *world, int rank, const char *name, bool checked,
                                          int64_t timeout_ms) {
    opd_group_desc desc;
    thread_rank *const its = (thread_rank *)malloc(sizeof *its);
    its->world = world;
    its->rank = rank;
    its->requests = NULL;
    memset(&desc, 0, sizeof desc);
    desc.name = name;
    desc.rank = rank;
    desc.size = world->size;
    desc.start = thread_start;
    desc.test = thread_test;
    desc.split = thread_split;
    desc.destroy = thread_destroy;
    desc.abandon = thread_abandon;
    desc.user = its;
    desc.checked = checked;
    desc.timeout_ms = timeout_ms;
    return opd_group_register(&desc);
}
static int thread_split(void *user, const int32_t *ranks, int32_t count, opd_group_desc *out) {
    const thread_rank *const old = (const thread_rank *)user;
    thread_rank *const its = (thread_rank *)malloc(sizeof *its);
    (void)pthread_mutex_lock(&thread_meeting.lock);
    while (thread_meeting.world && thread_meeting.first != ranks[0]) {
        (void)pthread_mutex_unlock(&thread_meeting.lock);
        thread_rest(20);
        (void)pthread_mutex_lock(&thread_meeting.lock);
    }
    if (!thread_meeting.world) {
        thread_meeting.world = thread_world_new(count);
        thread_meeting.first = ranks[0];
        thread_meeting.left = count;
    }
    its->world = thread_meeting.world;
    if (--thread_meeting.left == 0) { thread_meeting.world = NULL; }
    (void)pthread_mutex_unlock(&thread_meeting.lock);
    its->requests = NULL;
    its->rank = 0;
    while (ranks[its->rank] != old->rank) { its->rank++; }
    out->start = thread_start;
    out->test = thread_test;
    out->split = thread_split;
    out->destroy = thread_destroy;
    out->abandon = thread_abandon;
    out->user = its;
    return 0;
}

/* The function of a rank.  Its group exists while the function runs. */
typedef struct ranked {
    thread_world *world;
    void (*run)(opd_group *group, int rank, void *user);
    void *user;
    int rank;
    bool checked, keep_error;
    int64_t timeout_ms;
    char message[600];
} ranked;
static inline void *ranked_main(void *arg) {
    ranked *const one = (ranked *)arg;
    char name[32];
    (void)snprintf(name, sizeof name, "world%d", one->rank);
    opd_group *const group = thread_group_new(one->world, one->rank, name, one->checked, one->timeout_ms);
    OPD_SCOPE { one->run(group, one->rank, one->user); }
    (void)snprintf(one->message, sizeof one->message, "%s", opd_ok() ? "" : opd_error_message());
    (void)opd_group_unregister(group);            /* while the error is pending, so that the other ranks get it */
    opd_error_clear();
    return NULL;
}
/* Runs `run` on threads that are the ranks of a group.  messages[rank] gets the error of a rank, or "". */
static inline void run_ranks(int size, void (*run)(opd_group *group, int rank, void *user), void *user, bool checked,
                             int64_t timeout_ms, char messages[][600]) {
    pthread_t threads[RANKS_MOST];
    ranked ranks[RANKS_MOST];
    thread_world *const world = thread_world_new(size);
    memset(ranks, 0, sizeof ranks);
    for (int rank = 0; rank < size; rank++) {
        ranks[rank].world = world;
        ranks[rank].run = run;
        ranks[rank].user = user;
        ranks[rank].rank = rank;
        ranks[rank].checked = checked;
        ranks[rank].timeout_ms = timeout_ms;
        (void)pthread_create(&threads[rank], NULL, ranked_main, &ranks[rank]);
    }
    for (int rank = 0; rank < size; rank++) {
        (void)pthread_join(threads[rank], NULL);
        if (messages) { memcpy(messages[rank], ranks[rank].message, sizeof ranks[rank].message); }
    }
}
static inline const char *world_of(int rank) {
    static const char *const names[] = {"world0", "world1", "world2", "world3", "world4", "world5", "world6", "world7"};
    return names[rank];
}

#endif
