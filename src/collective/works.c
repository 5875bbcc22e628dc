#include "collective.h"

//== collective operations that are running (opd_work) =================================================================

static const char *opdi_collective_name(int64_t kind) {
    static const char *const names[] = {"?", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast",
                                        "reduce", "gather", "scatter", "send", "recv", "barrier"};
    return names[kind >= 1 && kind <= OPD_COLLECTIVE_BARRIER ? kind : 0];
}
/* Returns the name of the profiler span in which a transfer is begun or, if `waits` is true, waited for. */
static const char *opdi_collective_span(int64_t kind, bool waits) {
    static const char *const names[][2] = {{"moves ?", "waits for ?"}, {"moves all_reduce", "waits for all_reduce"},
        {"moves all_gather", "waits for all_gather"}, {"moves reduce_scatter", "waits for reduce_scatter"},
        {"moves all_to_all", "waits for all_to_all"}, {"moves broadcast", "waits for broadcast"},
        {"moves reduce", "waits for reduce"}, {"moves gather", "waits for gather"},
        {"moves scatter", "waits for scatter"}, {"moves send", "waits for send"}, {"moves recv", "waits for recv"},
        {"moves barrier", "waits for barrier"}};
    return names[kind >= 1 && kind <= OPD_COLLECTIVE_BARRIER ? kind : 0][waits];
}
/* Returns the number of bytes that this rank sends, or the number that it receives, whichever is larger. */
static int64_t opdi_work_bytes(const opd_work *work) {
    const opd_transfer *const transfer = &work->transfer;
    const int64_t each = (int64_t)opd_dtype_size(transfer->dtype), ranks = work->group->desc.size;
    int64_t sent = 0, taken = 0;
    const bool root = transfer->peer == work->group->desc.rank;
    switch ((int)transfer->kind) {
    case OPD_COLLECTIVE_ALL_GATHER: case OPD_COLLECTIVE_REDUCE_SCATTER: return transfer->count * ranks * each;
    case OPD_COLLECTIVE_GATHER: case OPD_COLLECTIVE_SCATTER: return transfer->count * (root ? ranks : 1) * each;
    case OPD_COLLECTIVE_ALL_TO_ALL:
        for (int64_t i = 0; i < ranks; i++) {
            sent += transfer->send_counts[i];
            taken += transfer->recv_counts[i];
        }
        return OPDI_MAX(sent, taken) * each;
    default: return transfer->count * each;
    }
}
/* Writes a description to buf: "all_reduce, call 3 of process group 'world' (rank 1 of 4)".  Returns buf. */
static const char *opdi_work_text(const opd_work *work, char *buf, size_t cap) {
    (void)snprintf(buf, cap, "%s, call %llu of process group '%s' (rank %d of %d)",
                   opdi_collective_name(work->transfer.kind), (unsigned long long)work->number, work->group->name,
                   (int)work->group->desc.rank, (int)work->group->desc.size);
    return buf;
}
/* Marks a work as failed, sets its error, and returns -1.  If was_ok is true (there was no error before) and an
   error is pending, that error is the reason; otherwise the reason is `why`. */
static int opdi_work_fail(opd_work *work, bool was_ok, const char *why) {
    char name[200], said[200];
    const char *const reason = was_ok && !opd_ok() ? opd_error_message() : why;
    (void)snprintf(said, sizeof said, "%s", reason);
    (void)snprintf(work->message, sizeof work->message, "%s: %s", opdi_work_text(work, name, sizeof name), said);
    if (was_ok) { opd_error_clear(); }
    OPDI_PUBLISH(&work->state, OPDI_WORK_FAILED);
    return opd_fail(OPD_ERROR_KERNEL, "%s", work->message);
}
/* Removes a work from the list and releases its references to memory. */
static void opdi_work_unlist(opd_work *work) {
    bool listed = false;
    opdi_lock(&opdi_groups.lock);
    for (opd_work **at = &opdi_groups.works; *at && work->listed; at = &(*at)->next) {
        if (*at == work) {
            *at = work->next;
            work->listed = false;
            listed = true;
            (void)OPDI_SUB(&opdi_works_running, 1);
            break;
        }
    }
    opdi_storage *const read = listed ? work->read : NULL, *const written = listed ? work->written : NULL;
    if (listed) { work->read = work->written = NULL; }
    opdi_unlock(&opdi_groups.lock);
    if (!listed) { return; }
    opdi_depth_limit_update();
    if (read) { opdi_storage_drop(read); }
    if (written) { opdi_storage_drop(written); }
    opd_work_release(work);
}
/* Divides `data`, a sum over the ranks, by the number of ranks. */
static void opdi_work_average(const opd_work *work, void *data) {
    const int64_t count = work->transfer.count, size = work->group->desc.size;
    switch ((int)work->transfer.dtype) {
    case OPD_FLOAT64: case OPD_COMPLEX128:
        for (int64_t i = 0; i < count << (work->transfer.dtype == OPD_COMPLEX128); i++) {
            ((double *)data)[i] /= (double)size;
        }
        break;
    case OPD_FLOAT32: case OPD_COMPLEX64:
        for (int64_t i = 0; i < count << (work->transfer.dtype == OPD_COMPLEX64); i++) {
            ((float *)data)[i] /= (float)size;
        }
        break;
    case OPD_FLOAT16:
        for (int64_t i = 0; i < count; i++) {
            ((uint16_t *)data)[i] = opdi_f32_to_f16(opdi_f16_to_f32(((uint16_t *)data)[i]) / (float)size);
        }
        break;
    default:
        for (int64_t i = 0; i < count; i++) {
            ((uint16_t *)data)[i] = opdi_f32_to_bf16(opdi_bf16_to_f32(((uint16_t *)data)[i]) / (float)size);
        }
    }
}
/* Computes the mean of a work from its sum, on the device that has the memory.  Returns 0, or -1 and sets an error. */
static int opdi_work_mean(const opd_work *work) {
    const size_t bytes = (size_t)work->transfer.count * opd_dtype_size(work->transfer.dtype);
    const opdi_backend *const backend = work->device.type == OPD_CPU ? NULL : opdi_backend_of(work->device.type);
    const int index = work->device.index;
    if (!backend) { opdi_work_average(work, work->transfer.recv); }
    if (!backend || bytes == 0) { return 0; }
    void *const host = opdi_alloc(bytes);
    int rc = host ? opdi_backend_rc(backend->desc.copy(backend->desc.user, host, -1, work->transfer.recv, index, bytes),
                                    work->device.type, "copy") : -1;
    if (rc == 0) {
        opdi_work_average(work, host);
        rc = opdi_backend_rc(backend->desc.copy(backend->desc.user, work->transfer.recv, index, host, -1, bytes),
                             work->device.type, "copy");
    }
    if (host) { opdi_free(host, bytes); }
    return rc;
}
/* Fails if `group`, whose lock the caller holds, was unregistered or abandoned by this rank.  Returns 0, or -1 and
   sets an error. */
static int opdi_group_stopped(const opd_group *group) {
    if (group->gone) {
        return opd_fail(OPD_ERROR_NOT_FOUND, "process group '%s' has been unregistered (opd_group_unregister)",
                        group->name);
    }
    return group->abandoned[0] ? opd_fail(OPD_ERROR_KERNEL, "%s", group->abandoned) : 0;
}
/* Asks the group's `desc` or `mover` about a running work.  Waits at most wait_us microseconds.  Returns 1 if the
   work is done, 0 if not yet, or -1 if it failed. */
static int opdi_work_poll(opd_work *work, int64_t wait_us) {
    opd_group *const group = work->group;
    if (work->backend == OPD_CPU) {
        return group->desc.test ? group->desc.test(group->desc.user, work->request, wait_us) : 1;
    }
    const int rc = group->mover.test(group->mover.user, work->request);
    return rc > 0 && group->mover.wait(group->mover.user, work->request) ? -1 : rc;
}
static int opdi_handshake_step(opd_work *work, int64_t wait_us);
/* Polls a work once, and waits at most wait_us microseconds.  Returns 1 if it is done, 0 if not yet, or -1 and sets
   an error if it failed. */
static int opdi_work_step(opd_work *work, int64_t wait_us) {
    opd_group *const group = work->group;
    const bool was_ok = opd_ok();
    int rc = 1;
    opdi_lock(&group->lock);
    if (work->state == OPDI_WORK_RUNS && (group->gone || group->abandoned[0])) {
        rc = opdi_group_stopped(group);
    } else if (work->state == OPDI_WORK_RUNS) {
        rc = work->handshake ? opdi_handshake_step(work, wait_us) : opdi_work_poll(work, wait_us);
    }
    if (rc > 0 && work->state == OPDI_WORK_RUNS && work->average && opdi_work_mean(work)) { rc = -1; }
    if (work->state == OPDI_WORK_FAILED) { rc = opd_fail(OPD_ERROR_KERNEL, "%s", work->message); }
    else if (rc < 0) {
        rc = opdi_work_fail(work, was_ok, "a function of the group failed without setting an error (opd_fail)");
    }
    else if (rc > 0 && work->state == OPDI_WORK_RUNS) {
        OPDI_PUBLISH(&work->state, OPDI_WORK_DONE);
    }
    opdi_unlock(&group->lock);
    if (rc > 0) { opdi_work_unlist(work); }
    return rc;
}
static void opdi_work_used(const opd_work *work);
/* Makes the current stream of a device wait for a work.  Returns 0, or -1 and sets an error. */
static int opdi_work_follow(opd_work *work) {
    opd_group *const group = work->group;
    const bool was_ok = opd_ok();
    int rc = 0;
    opdi_lock(&group->lock);
    if (work->state == OPDI_WORK_FAILED) { rc = opd_fail(OPD_ERROR_KERNEL, "%s", work->message); }
    else if (work->state == OPDI_WORK_RUNS) {
        rc = group->gone || group->abandoned[0] ? opdi_group_stopped(group)
            : group->mover.wait(group->mover.user, work->request);
        if (rc) {
            rc = opdi_work_fail(work, was_ok, "a function of the group failed without setting an error (opd_fail)");
        }
        else {
            opdi_work_used(work);
            OPDI_PUBLISH(&work->state, OPDI_WORK_DONE);
        }
    }
    opdi_unlock(&group->lock);
    if (rc == 0) { opdi_work_unlist(work); }
    return rc ? -1 : 0;
}
/* Waits for a work.  Returns 0, or -1 and sets the work's error.  Other threads can call functions of the group in
   the meantime. */
static int opdi_work_await(opd_work *work) {
    const int64_t begun = opdi_clock(), limit = work->timeout_ms ? work->timeout_ms
        : work->group->desc.timeout_ms;
    if (work->backend != OPD_CPU && !work->handshake) { return opdi_work_follow(work); }
    for (int turns = 0;; turns++) {
        char why[100];
        const int rc = opdi_work_step(work, turns < 4 ? 50 : 1000);
        if (rc != 0) { return rc < 0 ? -1 : 0; }
        if ((opdi_clock() - begun) / 1000000 >= limit) {
            (void)snprintf(why, sizeof why, "it did not finish within %.3g s: a rank has ended, or calls another "
                           "operation", (double)limit / 1000);
            return opdi_work_fail(work, opd_ok(), why);
        }
#if !defined(OPD_NO_THREADS)
        if (turns > 4) { (void)sched_yield(); }
#endif
    }
}
static int opdi_work_finish(opd_work *work) {
    opd_span *const span = OPDI_ACQUIRE(&work->state) == OPDI_WORK_RUNS
        ? opd_span_open(opdi_collective_span(work->transfer.kind, true)) : NULL;
    const int rc = opdi_work_await(work);
    opd_span_close(span);
    return rc;
}
static void opdi_handshake_drop(opd_work *work);
void opd_work_release(opd_work *work) {
    while (work && opdi_ref_down(&work->refs) == 0) {
        opd_work *const also = work->also;
        opdi_handshake_drop(work);
        if (work->counts) { opdi_free(work->counts, 2 * (size_t)work->group->desc.size * sizeof *work->counts); }
        opdi_group_release(work->group);
        opdi_free(work, sizeof *work);
        work = also;
    }
}
OPDI_INTERNAL int opdi_works_finish(opd_work *work) {
    int rc = 0;
    for (; work; work = work->also) { if (opdi_work_finish(work)) { rc = -1; } }
    return rc;
}
int opd_work_wait(opd_work *work) {
    if (!work) { return opd_ok() ? opd_fail(OPD_ERROR_ARGUMENT, "opd_work_wait: the work is NULL") : -1; }
    const int rc = opdi_works_finish(work);
    opd_work_release(work);
    return rc;
}
int opd_work_test(opd_work *work) {
    int rc = 1;
    if (!work) { return opd_ok() ? opd_fail(OPD_ERROR_ARGUMENT, "opd_work_test: the work is NULL") : -1; }
    for (; work && rc >= 0; work = work->also) {
        const int one = opdi_work_step(work, 0);
        if (one <= 0) { rc = one; }
    }
    return rc;
}
OPDI_INTERNAL opd_work *opdi_work_joined(opd_work *first, opd_work *others, int64_t timeout_ms) {
    first->also = others;
    first->timeout_ms = timeout_ms;
    return first;
}

//== comparing the calls of all ranks ==================================================================================

/* The properties of a call that ranks compare, in this order. */
enum {
    OPDI_FINGERPRINT_KIND, OPDI_FINGERPRINT_DEVICE, OPDI_FINGERPRINT_DTYPE, OPDI_FINGERPRINT_REDUCTION,
    OPDI_FINGERPRINT_COUNT, OPDI_FINGERPRINT_PEER, OPDI_FINGERPRINT
};
/* Gathers `count` integers of each rank into `all`, in rank order, and waits for them.  Returns 0, or -1 and sets an
   error. */
static int opdi_work_exchange(opd_work *work, const int64_t *mine, int64_t *all, int64_t count) {
    opd_work one = *work;
    memset(&one.transfer, 0, sizeof one.transfer);
    one.average = one.listed = false;
    one.backend = OPD_CPU;
    one.transfer.kind = OPD_COLLECTIVE_ALL_GATHER;
    one.transfer.dtype = OPD_INT64;
    one.transfer.send = mine;
    one.transfer.recv = all;
    one.transfer.count = count;
    const bool was_ok = opd_ok();
    opdi_lock(&work->group->lock);
    int rc = work->group->desc.start(work->group->desc.user, &one.transfer, &one.request);
    if (rc) { rc = opdi_work_fail(&one, was_ok, "the ranks could not compare their calls"); }
    opdi_unlock(&work->group->lock);
    one.transfer.kind = work->transfer.kind;      /* the error names the kind of the actual transfer */
    return rc ? -1 : opdi_work_finish(&one);
}
/* Describes a rank's call in `buf`, with those details that matter if property number `at` differs. */
static void opdi_work_describe(const int64_t *sent, int at, char *buf, size_t cap) {
    static const char *const reductions[] = {"sum", "avg", "product", "min", "max", "band", "bor", "bxor"};
    const char *const name = opdi_collective_name(sent[OPDI_FINGERPRINT_KIND]);
    if (at == OPDI_FINGERPRINT_KIND) {
        (void)snprintf(buf, cap, "%s", name);
    } else if (at == OPDI_FINGERPRINT_DEVICE) {
        (void)snprintf(buf, cap, "%s on %s", name, opdi_device_name((int)sent[at]));
    }
    else if (at == OPDI_FINGERPRINT_DTYPE) {
        (void)snprintf(buf, cap, "%s of %s", name, opd_dtype_name((opd_scalar_type)sent[at]));
    }
    else if (at == OPDI_FINGERPRINT_REDUCTION) { (void)snprintf(buf, cap, "%s by %s", name, reductions[sent[at] & 7]); }
    else if (at == OPDI_FINGERPRINT_COUNT) {
        (void)snprintf(buf, cap, "%s of %lld element(s)", name, (long long)sent[at]);
    }
    else { (void)snprintf(buf, cap, "%s with root %lld", name, (long long)sent[at]); }
}
/* Compares the calls of all ranks, all[size, OPDI_FINGERPRINT].  If they differ, returns -1 and sets an error, which is
   the same on every rank. */
static int opdi_work_compare(const opd_work *work, const int64_t *all) {
    char first[100], other[100];
    for (int at = 0; at < OPDI_FINGERPRINT; at++) {
        for (int rank = 1; rank < work->group->desc.size; rank++) {
            const int64_t *const sent = all + (size_t)rank * OPDI_FINGERPRINT;
            if (sent[at] == all[at]) { continue; }
            opdi_work_describe(all, at, first, sizeof first);
            opdi_work_describe(sent, at, other, sizeof other);
            return opd_fail(OPD_ERROR_ARGUMENT, "ranks of process group '%s' differ in call %llu: rank 0 calls %s, "
                            "rank %d calls %s", work->group->name, (unsigned long long)work->number, first, rank,
                            other);
        }
    }
    return 0;
}
/* Compares the split sizes of an ALL_TO_ALL.  `all` has the counts that each rank sends, then those that it
   receives, [size, 2, size].  Returns 0, or -1 and sets an error. */
static int opdi_work_compare_splits(const opd_work *work, const int64_t *all) {
    const int size = work->group->desc.size;
    for (int from = 0; from < size; from++) {
        for (int to = 0; to < size; to++) {
            const int64_t sent = all[(size_t)(2 * from * size + to)], taken = all[(size_t)((2 * to + 1) * size + from)];
            if (sent == taken) { continue; }
            return opd_fail(OPD_ERROR_ARGUMENT, "ranks of process group '%s' differ in call %llu: all_to_all sends "
                            "%lld element(s) from rank %d to rank %d, which expects %lld", work->group->name,
                            (unsigned long long)work->number, (long long)sent, from, to, (long long)taken);
        }
    }
    return 0;
}
/* In a checked group, lets all ranks compare the transfers that they are about to begin.  Returns 0, or -1 and sets
   an error. */
static int opdi_work_check(opd_work *work) {
    const opd_transfer *const transfer = &work->transfer;
    const int64_t size = work->group->desc.size;
    const bool splits = transfer->kind == OPD_COLLECTIVE_ALL_TO_ALL;
    int64_t sent[OPDI_FINGERPRINT];
    const size_t bytes = (size_t)(size * OPDI_MAX((int)OPDI_FINGERPRINT, 2 * size)) * sizeof(int64_t);
    int64_t *const all = (int64_t *)opdi_alloc(bytes);
    if (!all) { return -1; }
    sent[OPDI_FINGERPRINT_KIND] = transfer->kind;
    sent[OPDI_FINGERPRINT_DEVICE] = work->backend;
    sent[OPDI_FINGERPRINT_DTYPE] = transfer->dtype;
    sent[OPDI_FINGERPRINT_REDUCTION] = work->average ? OPD_REDUCTION_AVG : transfer->reduction;
    sent[OPDI_FINGERPRINT_COUNT] = transfer->count;
    sent[OPDI_FINGERPRINT_PEER] = transfer->peer;
    int rc = opdi_work_exchange(work, sent, all, OPDI_FINGERPRINT);
    if (!rc) { rc = opdi_work_compare(work, all); }
    if (!rc && splits) { rc = opdi_work_exchange(work, work->counts, all, 2 * size); }
    if (!rc && splits) { rc = opdi_work_compare_splits(work, all); }
    opdi_free(all, bytes);
    return rc;
}

//== comparing the calls of two ranks ==================================================================================

static bool opdi_of_two_ranks(const opd_transfer *transfer) {
    return transfer->kind == OPD_COLLECTIVE_SEND || transfer->kind == OPD_COLLECTIVE_RECV;
}
/* Begins to exchange properties with the other rank, before the transfer itself.  The sender's properties have the tag
   2 * tag, and the receiver's properties 2 * tag + 1.  A transfer of host memory gets the tag 2 * tag, too.  The caller
   holds the group's lock.  Returns 0, or -1 and sets an error. */
static int opdi_handshake_begin(opd_work *work) {
    const opd_group_desc *const desc = &work->group->desc;
    const bool sends = work->transfer.kind == OPD_COLLECTIVE_SEND;
    const int32_t tag = 2 * work->transfer.tag;
    opd_transfer handshake = work->transfer;
    opdi_handshake *const say = (opdi_handshake *)opdi_alloc(sizeof *say);
    if (!say) { return -1; }
    memset(say, 0, sizeof *say);
    work->handshake = say;
    say->mine[OPDI_HANDSHAKE_DEVICE] = work->backend;
    say->mine[OPDI_HANDSHAKE_DTYPE] = work->transfer.dtype;
    say->mine[OPDI_HANDSHAKE_COUNT] = work->transfer.count;
    handshake.dtype = OPD_INT64;
    handshake.count = OPDI_HANDSHAKE;
    handshake.kind = OPD_COLLECTIVE_SEND;
    handshake.tag = tag + !sends;
    handshake.send = say->mine;
    handshake.recv = NULL;
    if (desc->start(desc->user, &handshake, &say->sent)) { return -1; }
    handshake.kind = OPD_COLLECTIVE_RECV;
    handshake.tag = tag + sends;
    handshake.send = NULL;
    handshake.recv = say->its;
    if (desc->start(desc->user, &handshake, &say->taken)) { return -1; }
    if (work->backend == OPD_CPU) { work->transfer.tag = tag; }
    return 0;
}
/* Frees work->handshake, unless a message that is still running uses it.  That is only possible after a failure: all
   other works are kept until they are done or their group is unregistered. */
static void opdi_handshake_drop(opd_work *work) {
    if (work->handshake && (work->group->gone || (!work->handshake->sent && !work->handshake->taken))) {
        opdi_free(work->handshake, sizeof *work->handshake);
    }
    work->handshake = NULL;
}
/* Describes a rank's memory in `buf`, with those details that matter if property number `at` differs. */
static void opdi_handshake_describe(const int64_t *sent, int at, char *buf, size_t cap) {
    if (at == OPDI_HANDSHAKE_COUNT) {
        (void)snprintf(buf, cap, "%lld element(s)", (long long)sent[at]);
    } else {
        (void)snprintf(buf, cap, "%s", at == OPDI_HANDSHAKE_DTYPE ? opd_dtype_name((opd_scalar_type)sent[at])
                       : opdi_device_name((int)sent[at]));
    }
}
/* Compares the properties that both ranks exchanged.  Returns 0, or -1 and sets an error, which is the same on both
   ranks. */
static int opdi_handshake_compare(const opd_work *work) {
    const opdi_handshake *const say = work->handshake;
    const bool sends = work->transfer.kind == OPD_COLLECTIVE_SEND;
    const int here = work->group->desc.rank, peer = work->transfer.peer;
    const int tag = work->backend == OPD_CPU ? work->transfer.tag / 2 : work->transfer.tag;
    char sent[60], taken[60];
    for (int at = 0; at < OPDI_HANDSHAKE; at++) {
        if (say->mine[at] == say->its[at]) { continue; }
        opdi_handshake_describe(sends ? say->mine : say->its, at, sent, sizeof sent);
        opdi_handshake_describe(sends ? say->its : say->mine, at, taken, sizeof taken);
        return opd_fail(OPD_ERROR_ARGUMENT, "the ranks differ: rank %d sends %s, but rank %d receives %s (tag %d)",
                        sends ? here : peer, sent, sends ? peer : here, taken, tag);
    }
    return 0;
}
/* Polls a message, and waits at most wait_us microseconds.  Returns 0 if it is still running or done; if it is done,
   *request becomes NULL.  Returns -1 and sets an error if it failed. */
static int opdi_handshake_poll(const opd_work *work, void **request, int64_t wait_us) {
    const int rc = *request ? work->group->desc.test(work->group->desc.user, *request, wait_us) : 0;
    if (rc) { *request = NULL; }
    return rc < 0 ? -1 : 0;
}
/* Polls a work and the exchange of its properties.  Returns 1 if both are done, 0 if not yet, or -1 and sets an
   error. */
static int opdi_handshake_step(opd_work *work, int64_t wait_us) {
    opdi_handshake *const say = work->handshake;
    if (!say->moved) {
        const bool was_ok = opd_ok();
        say->moved = opdi_work_poll(work, wait_us);
        if (say->moved < 0 && was_ok && !opd_ok()) {         /* perhaps because the ranks' calls differ */
            (void)snprintf(say->why, sizeof say->why, "%s", opd_error_message());
            opd_error_clear();
        }
    }
    if (opdi_handshake_poll(work, &say->sent, say->moved ? wait_us : 0) ||
        opdi_handshake_poll(work, &say->taken, say->moved ? wait_us : 0)) { return -1; }
    if (!say->taken && (say->moved || say->mine[OPDI_HANDSHAKE_DEVICE] != say->its[OPDI_HANDSHAKE_DEVICE]) &&
        opdi_handshake_compare(work)) { return -1; }
    if (say->sent || say->taken || say->moved >= 0) { return !say->sent && !say->taken ? say->moved : 0; }
    return opd_fail(OPD_ERROR_KERNEL, "%s", say->why[0] ? say->why
                    : "a function of the group failed without setting an error (opd_fail)");
}

//== beginning a transfer ==============================================================================================

/* Performs a transfer in a group of one process.  Returns 0, or -1 and sets an error. */
static int opdi_work_alone(const opd_work *work) {
    const opd_transfer *const transfer = &work->transfer;
    const size_t bytes = (size_t)transfer->count * opd_dtype_size(transfer->dtype);
    if (!transfer->recv || !transfer->send || transfer->recv == transfer->send || bytes == 0) { return 0; }
    if (work->backend == OPD_CPU) {
        memmove(transfer->recv, transfer->send, bytes);
        return 0;
    }
    const opdi_backend *const backend = opdi_backend_of(work->backend);
    const int index = opdi_backend_current(backend);
    return opdi_backend_rc(backend->desc.copy(backend->desc.user, transfer->recv, index, transfer->send, index, bytes),
                           work->backend, "copy");
}
/* Fails if a transfer is invalid for its group.  Returns 0, or -1 and sets an error. */
static int opdi_transfer_check(const opd_group *group, const opd_transfer *transfer) {
    const bool sum = transfer->kind == OPD_COLLECTIVE_ALL_REDUCE || transfer->kind == OPD_COLLECTIVE_REDUCE_SCATTER ||
        transfer->kind == OPD_COLLECTIVE_REDUCE;
    const bool pair = opdi_of_two_ranks(transfer);
    const char *const name = opdi_collective_name(transfer->kind);
    if (transfer->kind < 1 || transfer->kind > OPD_COLLECTIVE_BARRIER || transfer->count < 0 || transfer->tag < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the kind, count or tag of the transfer is not valid", name);
    }
    if (transfer->peer < 0 || transfer->peer >= group->desc.size) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: rank %d is not in process group '%s', which has %d rank(s)", name,
                        (int)transfer->peer, group->name, (int)group->desc.size);
    }
    if (pair && transfer->peer == group->desc.rank) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: rank %d of process group '%s' is this process, which cannot send to "
                        "itself", name, (int)transfer->peer, group->name);
    }
    if (pair && group->desc.checked && transfer->tag >= 1 << 30) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: in the checked process group '%s', tags must be less than 2^30", name,
                        group->name);
    }
    if (opdi_is_block(transfer->dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: a tensor of %s, stored in blocks, cannot be sent: opd_dequantize makes "
                        "float32 of it", name, opd_dtype_name(transfer->dtype));
    }
    if (!sum) { return 0; }
    const bool floats = opd_dtype_is_floating(transfer->dtype) || opd_dtype_is_complex(transfer->dtype);
    if (opdi_is_stored_dtype(transfer->dtype) ||
        (opd_dtype_is_complex(transfer->dtype) && transfer->reduction > OPD_REDUCTION_PRODUCT) ||
        (floats ? transfer->reduction >= OPD_REDUCTION_BAND : transfer->reduction == OPD_REDUCTION_AVG)) {
        static const char *const reductions[] = {"sum", "avg", "product", "min", "max", "band", "bor", "bxor"};
        return opd_fail(OPD_ERROR_DTYPE, "%s: reduction %s is not possible for %s", name,
                        reductions[transfer->reduction & 7], opd_dtype_name(transfer->dtype));
    }
    return 0;
}
/* Returns true if the group's `desc` itself computes means of host memory. */
OPDI_INTERNAL bool opdi_group_averages(const opd_group *group, const opd_transfer *transfer) {
    return group->desc.averages && group->desc.size > 1 && group->desc.averages(group->desc.user, transfer);
}
static opd_work *opdi_work_new(opd_group *group, const opd_transfer *transfer, int backend) {
    const size_t row = (size_t)group->desc.size * sizeof(int64_t);
    opd_work *const work = (opd_work *)opdi_alloc(sizeof *work);
    if (!work) { return NULL; }
    memset(work, 0, sizeof *work);
    work->refs = 1;
    work->group = group;
    work->backend = (int8_t)backend;
    work->transfer = *transfer;
    opdi_ref_up(&group->refs);
    if (transfer->kind == OPD_COLLECTIVE_ALL_TO_ALL) {
        work->counts = (int64_t *)opdi_alloc(2 * row);
        if (!work->counts) {
            opd_work_release(work);
            return NULL;
        }
        memcpy(work->counts, transfer->send_counts, row);
        memcpy(work->counts + group->desc.size, transfer->recv_counts, row);
        work->transfer.send_counts = work->counts;
        work->transfer.recv_counts = work->counts + group->desc.size;
    }
    work->average = transfer->reduction == OPD_REDUCTION_AVG && backend == OPD_CPU &&
        !opdi_group_averages(group, transfer);
    if (work->average) { work->transfer.reduction = OPD_REDUCTION_SUM; }
    return work;
}
OPDI_INTERNAL opd_work *opdi_work_none(opd_group *group) {
    opd_transfer transfer;
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_BARRIER;
    transfer.dtype = OPD_UINT8;
    opd_work *const work = opdi_work_new(group, &transfer, OPD_CPU);
    if (work) { work->state = OPDI_WORK_DONE; }
    return work;
}
/* Begins a work.  If the group has no `start` function, or has one process and the memory is on a device, finishes the
   work immediately.  Returns 0, or -1 and sets an error. */
static int opdi_work_launch(opd_work *work) {
    opd_group *const group = work->group;
    const bool was_ok = opd_ok();
    opdi_lock(&group->lock);
    work->number = ++group->calls;
    const int stopped = opdi_group_stopped(group);
    opdi_unlock(&group->lock);
    if (stopped) { return -1; }
    if (!group->desc.start || (work->backend != OPD_CPU && group->desc.size == 1)) {
        work->state = OPDI_WORK_DONE;
        return opdi_work_alone(work);
    }
    const bool checks = group->desc.checked, pair = checks && opdi_of_two_ranks(&work->transfer);
    if (checks && !pair && opdi_work_check(work)) { return -1; }
    opdi_lock(&group->lock);
    if (work->backend == OPD_CPU && group->moves && group->mover.flush) { (void)group->mover.flush(group->mover.user); }
    int rc = pair ? opdi_handshake_begin(work) : 0;
    if (!rc) {
        rc = work->backend != OPD_CPU ? group->mover.start(group->mover.user, &work->transfer, &work->request)
            : group->desc.start(group->desc.user, &work->transfer, &work->request);
    }
    if (rc) { rc = opdi_work_fail(work, was_ok, "the group could not start the transfer"); }
    if (work->transfer.kind == OPD_COLLECTIVE_REDUCE && work->transfer.peer != group->desc.rank) {
        work->average = false;                    /* only the root has a sum to divide */
    }
    opdi_unlock(&group->lock);
    return rc ? -1 : 0;
}
/* Begins a work in a profiler span, which counts the moved bytes.  Returns 0, or -1 and sets an error. */
static int opdi_work_begin(opd_work *work) {
    opd_span *const span = opd_span_open(opdi_collective_span(work->transfer.kind, false));
    if (span) { opdi_self()->allocated += opdi_work_bytes(work); }
    const int rc = opdi_work_launch(work);
    opd_span_close(span);
    return rc;
}
/* Finishes works of a group, oldest first, until one is not done yet.  Considers only works to which no caller refers
   any more, and whose written memory no tensor uses any more.  Returns 0, or -1 and sets an error. */
static int opdi_works_reap(const opd_group *group) {
    int rc = OPDI_LOAD(&opdi_works_running) != 0;
    while (rc > 0) {
        opd_work *oldest = NULL;
        opdi_lock(&opdi_groups.lock);
        for (opd_work *work = opdi_groups.works; work; work = work->next) {
            if (work->group == group && OPDI_ACQUIRE(&work->refs) == 1 &&
                OPDI_ACQUIRE(&work->state) != OPDI_WORK_FAILED &&
                (!work->written || OPDI_ACQUIRE(&work->written->refs) == 1)) { oldest = work; }
        }
        if (oldest) { opdi_ref_up(&oldest->refs); }
        opdi_unlock(&opdi_groups.lock);
        rc = oldest ? opdi_work_step(oldest, 0) : 0;
        opd_work_release(oldest);
    }
    return rc;
}
/* Begins a transfer of memory of `backend`: of host memory (CPU), or of the device that the group's mover moves.  For
   device memory that the group's `desc` accepts, `backend` is CPU, too.  `device` is the memory's device.  Returns the
   work, or NULL and sets an error. */
static opd_work *opdi_group_start_on(opd_group *group, const opd_transfer *transfer, int backend, opd_device device) {
    if (opdi_group_lost(group) || opdi_group_none(group, "opd_group_start")) { return NULL; }
    if (!transfer) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_group_start: the transfer is NULL");
        return NULL;
    }
    opd_work *const work = opdi_transfer_check(group, transfer) || opdi_works_reap(group) ? NULL
        : opdi_work_new(group, transfer, backend);
    if (!work) { return NULL; }
    work->device = device;
    if (opdi_work_begin(work) == 0) { return work; }
    opd_work_release(work);
    return NULL;
}

//== the memory that works use =========================================================================================

/* Returns true if a work writes a storage or, if `writes` is true, reads or writes it. */
static bool opdi_work_has(const opd_work *work, const opdi_storage *storage, bool writes) {
    return storage == work->written || (writes && storage == work->read);
}
/* Returns the first work that must finish before a storage is read or, if `writes` is true, written, as a new
   reference.  Returns NULL if there is none. */
OPDI_INTERNAL opd_work *opdi_work_of(const opdi_storage *storage, bool writes) {
    opdi_lock(&opdi_groups.lock);
    opd_work *work = opdi_groups.works;
    while (work && !opdi_work_has(work, storage, writes)) { work = work->next; }
    if (work) { opdi_ref_up(&work->refs); }
    opdi_unlock(&opdi_groups.lock);
    return work;
}
/* Waits until a tensor's memory may be read or, if `writes` is true, written.  Returns 0, or -1 and sets an error. */
static int opdi_tensor_await(const opd_tensor *tensor, bool writes) {
    const opdi_storage *const storage = opdi_storage_root(tensor);
    opd_work *work = opdi_work_of(storage, writes);
    while (work) {
        const int rc = opdi_work_finish(work);
        opd_work_release(work);
        if (rc) { return -1; }
        work = opdi_work_of(storage, writes);
    }
    return 0;
}
/* Waits for works that write the memory of `tensor`, before another work reads it.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_wait_to_send(const opd_tensor *tensor) {
    return OPDI_LOAD(&opdi_works_running) == 0 ? 0 : opdi_tensor_await(tensor, false);
}
OPDI_INTERNAL int opdi_works_use(const opd_tensor *tensor) {
    if (opdi_is_dead(tensor) || !tensor->storage) { return 0; }               /* a number that is copied to a device */
    const opd_tensor *const held = tensor->flags & OPDI_BATCHED ? opdi_batched_of(tensor)->value : tensor;
    return opdi_tensor_await(held, true);
}
/* Waits for works that use the memory of the call's arguments.  An operator that only returns views does not access
   memory, so it does not wait.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_works_call(const opd_call *call) {
    const opd_op *const op = call->op;
    if (opdi_returns_views(op)) { return 0; }
    for (int i = 0; i < op->nargs; i++) {
        const opd_value *const value = &call->args[i];
        const bool writes = op->written_args >> i & 1;
        const int32_t count = value->tag == OPD_TAG_TENSOR ? 1 : value->tag == OPD_TAG_TENSORS ? value->n : 0;
        for (int32_t k = 0; k < count; k++) {
            const opd_tensor *const tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : value->u.tensors[k];
            if (!tensor || opdi_is_dead(tensor) || (tensor->flags & OPDI_BATCHED)) { continue; }
            if (opdi_tensor_await(tensor, writes)) { return -1; }
        }
    }
    return 0;
}
/* Adds `work` to opdi_groups.works, the list of transfers that run or have failed.  The work keeps the storages of
   `read` and `written` alive; either may be NULL. */
static void opdi_work_list(opd_work *work, const opd_tensor *read, const opd_tensor *written) {
    work->read = read ? opdi_storage_root(read) : NULL;
    work->written = written ? opdi_storage_root(written) : NULL;
    if (work->read) { opdi_ref_up(&work->read->refs); }
    if (work->written) { opdi_ref_up(&work->written->refs); }
    opdi_ref_up(&work->refs);
    opdi_lock(&opdi_groups.lock);
    OPDI_PUBLISH(&opdi_works_before_call, &opdi_works_call);     /* before calls can see the work */
    OPDI_PUBLISH(&opdi_works_before_use, &opdi_works_use);
    work->next = opdi_groups.works;
    opdi_groups.works = work;
    work->listed = true;
    (void)OPDI_ADD(&opdi_works_running, 1);
    opdi_unlock(&opdi_groups.lock);
    opdi_depth_limit_update();
}
opd_work *opd_group_start(opd_group *group, const opd_transfer *transfer) {
    opd_work *const work = opdi_group_start_on(group, transfer, OPD_CPU, opd_device_make(OPD_CPU, -1));
    if (work && work->state == OPDI_WORK_RUNS) { opdi_work_list(work, NULL, NULL); }   /* the list keeps a reference */
    return work;
}
/* Records that the current stream uses the memory of a work.  This memory is not reused before the stream has
   finished with it. */
static void opdi_work_used(const opd_work *work) {
    const opdi_backend *const backend = opdi_backend_of(work->backend);
    const int index = work->group->device.index;
    if (!backend || !backend->desc.record_stream || !backend->desc.stream_get) { return; }
    const int64_t stream = backend->desc.stream_get(backend->desc.user, index);
    if (work->read && work->read->data) {
        (void)backend->desc.record_stream(backend->desc.user, index, work->read->data, stream);
    }
    if (work->written && work->written->data) {
        (void)backend->desc.record_stream(backend->desc.user, index, work->written->data, stream);
    }
}
/* Returns true if the group's own `desc` accepts a tensor's device memory for a transfer. */
static bool opdi_table_takes(const opd_group *group, const opd_tensor *tensor, const opd_transfer *transfer) {
    return group->desc.size > 1 && group->desc.takes && !(group->moves && group->device.type == tensor->backend) &&
        group->desc.takes(group->desc.user, opd_tensor_device(tensor), transfer);
}
/* Returns true if a group can move memory on a tensor's device.  In a group of one process, nothing has to be moved. */
OPDI_INTERNAL bool opdi_group_moves(const opd_group *group, const opd_tensor *tensor) {
    if (tensor->backend == OPD_CPU) { return true; }
    return opdi_backend_of(tensor->backend) &&
        (group->desc.size == 1 || (group->moves && group->device.type == tensor->backend) ||
         opdi_table_takes(group, tensor, NULL));
}
/* Returns true if a group can move memory on a tensor's device and supports the transfer there. */
OPDI_INTERNAL bool opdi_group_can_move(opd_group *group, const opd_tensor *tensor, const opd_transfer *transfer) {
    return opdi_group_moves(group, tensor) &&
        (group->desc.size == 1 || tensor->backend == OPD_CPU || opdi_table_takes(group, tensor, transfer) ||
         (group->moves && group->mover.takes(group->mover.user, transfer)));
}
/* Fails if a tensor is on another device than the group.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_group_elsewhere(const opd_group *group, const opd_tensor *tensor) {
    char one[48], two[48];
    const opd_device device = opd_tensor_device(tensor);
    if (group->desc.size == 1 || (group->moves && group->device.type == device.type &&
                                  group->device.index == device.index)) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "process group '%s' moves memory of %s: a tensor on %s cannot be sent: "
                    "add the device with opd_group_device_add", group->name,
                    group->moves ? opdi_device_text(group->device, one, sizeof one) : "the host",
                    opdi_device_text(device, two, sizeof two));
}
/* Begins a transfer of memory on the device of `any`.  Returns the work, or NULL and sets an error. */
OPDI_INTERNAL opd_work *opdi_group_start_for(opd_group *group, const opd_transfer *transfer, const opd_tensor *any) {
    const bool takes = any->backend != OPD_CPU && opdi_table_takes(group, any, transfer);
    const opd_device device = opd_tensor_device(any);
    if (any->backend != OPD_CPU && (takes ? opd_device_synchronize(device) : opdi_group_elsewhere(group, any))) {
        return NULL;
    }
    return opdi_group_start_on(group, transfer, takes ? (int)OPD_CPU : any->backend, device);
}
/* Begins a transfer whose memory belongs to `read` and `written`; either may be NULL.  Later code that uses these
   tensors waits for the transfer.  Returns the work, or NULL and sets an error. */
OPDI_INTERNAL opd_work *opdi_group_move(opd_group *group, const opd_transfer *transfer, const opd_tensor *read,
                                        opd_tensor *written) {
    const opd_tensor *const any = written ? written : read;
    opd_work *const work = opdi_group_start_for(group, transfer, any);
    if (work && work->state == OPDI_WORK_RUNS) { opdi_work_list(work, read, written); }
    return work;
}
int opd_group_unregister(opd_group *group) {
    int rc = 0;
    if (opdi_group_none(group, "opd_group_unregister")) { return -1; }
    (void)opdi_group_lost(group);
    for (;;) {
        opdi_lock(&opdi_groups.lock);
        opd_work *work = opdi_groups.works;
        while (work && (work->group != group || OPDI_ACQUIRE(&work->state) == OPDI_WORK_FAILED)) { work = work->next; }
        if (work) { opdi_ref_up(&work->refs); }
        opdi_unlock(&opdi_groups.lock);
        if (!work) { break; }
        if (opdi_work_finish(work)) { rc = -1; }
        opd_work_release(work);
    }
    opdi_lock(&opdi_groups.lock);
    for (opd_group **at = &opdi_groups.groups; *at; at = &(*at)->next) {
        if (*at == group) {
            *at = group->next;
            break;
        }
    }
    opdi_unlock(&opdi_groups.lock);
    opdi_lock(&group->lock);
    group->gone = true;
    opdi_unlock(&group->lock);
    if (group->moves && group->mover.destroy(group->mover.user)) { rc = -1; }
    if (group->desc.destroy) { group->desc.destroy(group->desc.user); }
    for (;;) {                                    /* removes failed works: nothing else uses their memory */
        opdi_lock(&opdi_groups.lock);
        opd_work *work = opdi_groups.works;
        while (work && work->group != group) { work = work->next; }
        opdi_unlock(&opdi_groups.lock);
        if (!work) { break; }
        opdi_work_unlist(work);
    }
    opdi_group_release(group);
    return rc;
}
