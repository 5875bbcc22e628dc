#include "compiler.h"

//== groups of nests over the same rows ================================================================================

/* The sizes that a nest's loops would have after loops were split. */
typedef struct opdi_rows_sizes { int ndim, nreduce; int64_t sizes[OPDI_NEST_DIMS]; } opdi_rows_sizes;
static bool opdi_rows_split(opdi_rows_sizes *one, int dim, int64_t size) {
    if (one->sizes[dim] == size) { return true; }
    if (one->sizes[dim] % size || one->ndim == OPDI_NEST_DIMS) { return false; }
    memmove(one->sizes + dim + 1, one->sizes + dim, (size_t)(one->ndim - dim) * sizeof *one->sizes);
    one->sizes[dim] = size;
    one->sizes[dim + 1] /= size;
    one->ndim++;
    return true;
}
/* Splits the first loops of two nests, so that both nests begin with loops of the same sizes, which together have
   `rows` iterations.  Returns the number of these loops, or -1 if that is impossible. */
static int opdi_rows_align(opdi_rows_sizes *nest, opdi_rows_sizes *other, int64_t rows) {
    int64_t left = rows;
    int i = 0;
    while (left > 1) {
        if (i >= nest->ndim - nest->nreduce || i >= other->ndim - other->nreduce) { return -1; }
        const int64_t most = OPDI_MIN(nest->sizes[i], other->sizes[i]), size = OPDI_MIN(most, left);
        if (size < 2 || left % size || !opdi_rows_split(nest, i, size) || !opdi_rows_split(other, i, size)) {
            return -1;
        }
        left /= size;
        i++;
    }
    return i;
}
typedef struct opdi_rows_test {
    const opdi_nest *reader;
    const opdi_access *written;
    int64_t low, high;                            /* the range of the elements that one row writes */
    int outer;
    bool bad;
} opdi_rows_test;
static void opdi_seen_rows(opdi_access *access, void *user) {
    opdi_rows_test *const check = (opdi_rows_test *)user;
    int64_t low, high;
    if (access->buffer != check->written->buffer) { return; }
    opdi_access_range(access, check->reader, check->outer, check->reader->ndim, &low, &high);
    if (low < check->low || high > check->high || access->dtype != check->written->dtype) { check->bad = true; }
    opdi_assume(check->low, low);
    opdi_assume(high, check->high);
    for (int i = 0; i < check->outer; i++) {
        if (check->reader->sizes[i] > 1 && access->strides[i] != check->written->strides[i]) { check->bad = true; }
    }
}
static void opdi_seen_indexed(opdi_expr *expr, const opdi_buffer *buffer, bool *bad) {
    if (!expr || expr->round == opdi_expr_round) { return; }
    expr->round = opdi_expr_round;
    if (expr->kind == OPDI_EXPR_LOAD && expr->nin && expr->access.buffer == buffer) { *bad = true; }
    for (int i = 0; i < expr->nin; i++) { opdi_seen_indexed(expr->in[i], buffer, bad); }
}
/* Returns whether two nests can run row by row: in each row, `other` uses only those elements of writer->out that
   `writer` writes in the same row.  The first `outer` loops are those over the rows. */
static bool opdi_rows_apart(opdi_nest *writer, opdi_nest *other, int outer) {
    opdi_rows_test check = {other, &writer->out, 0, 0, outer, false};
    int64_t least = INT64_MAX;
    if ((writer->place || other->place) &&
        (opdi_nest_reads(other, writer->out.buffer) || other->out.buffer == writer->out.buffer)) { return false; }
    opdi_access_range(&writer->out, writer, outer, writer->ndim - writer->nreduce, &check.low, &check.high);
    for (int i = 0; i < outer; i++) { least = OPDI_MIN(least, writer->out.strides[i]); }
    if (least <= check.high - check.low) {        /* the rows of `writer` overlap */
        return other->out.buffer != writer->out.buffer && !opdi_nest_reads(other, writer->out.buffer);
    }
    for (int i = 0; i < outer; i++) { opdi_assume(check.high - check.low + 1, writer->out.strides[i]); }
    opdi_nest_walk(other, opdi_seen_rows, &check);
    opdi_expr_round++;
    opdi_seen_indexed(other->value, writer->out.buffer, &check.bad);
    opdi_seen_indexed(other->finish, writer->out.buffer, &check.bad);
    if (other->out.buffer == writer->out.buffer) { opdi_seen_rows(&other->out, &check); }
    return !check.bad;
}
/* Splits loops of the nests of a group and of one more nest, so that all nests begin with loops of the same sizes,
   which together have `rows` iterations.  Returns the number of these loops, and sets split[i] to the mask of the loops
   of nest i that were split.  If that is impossible, returns -1 and changes nothing. */
static int opdi_group_split(opdi_group *group, opdi_nest *nest, int64_t rows, uint32_t *split) {
    opdi_rows_sizes all[OPDI_GROUP_NESTS + 1];
    const int count = group->nnests;
    int outer = -1;
    for (int i = 0; i <= count; i++) {
        const opdi_nest *const one = i < count ? group->nests[i] : nest;
        all[i].ndim = one->ndim;
        all[i].nreduce = one->nreduce;
        memcpy(all[i].sizes, one->sizes, sizeof one->sizes);
    }
    for (int again = 0; again < 2; again++) {
        for (int i = 0; i < count; i++) {
            outer = opdi_rows_align(&all[i], &all[count], rows);
            if (outer < 0) { return -1; }
        }
    }
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < outer; k++) { if (all[i].sizes[k] != all[count].sizes[k]) { return -1; } }
    }
    for (int i = 0; i <= count; i++) {
        opdi_nest *const one = i < count ? group->nests[i] : nest;
        for (int k = 0; k < outer; k++) {
            const int64_t inner = one->sizes[k] / all[i].sizes[k];
            if (inner > 1 && opdi_nest_split(one, k, inner)) { split[i] |= 1u << k; }
        }
    }
    return outer;
}
/* Returns whether a nest can join a group.  The first `outer` loops of all nests already have the same sizes. */
static bool opdi_group_fits(opdi_group *group, opdi_nest *nest, int outer) {
    bool shares = false;
    for (int i = 0; i < group->nnests; i++) {
        opdi_nest *const one = group->nests[i];
        shares = shares || opdi_nest_reads(nest, one->out.buffer);
        if (!opdi_rows_apart(one, nest, outer) || !opdi_rows_apart(nest, one, outer)) { return false; }
    }
    if (!shares) { return false; }
    for (int i = 0; i < group->nnests; i++) {
        for (int k = i + 1; k < group->nnests; k++) {
            if (!opdi_rows_apart(group->nests[i], group->nests[k], outer) ||
                !opdi_rows_apart(group->nests[k], group->nests[i], outer)) { return false; }
        }
    }
    return true;
}
static void opdi_group_buffer(opdi_group_buffers *buffers, opdi_buffer *buffer, bool written) {
    int i = 0;
    while (i < buffers->count && buffers->all[i] != buffer) { i++; }
    if (i == OPDI_GROUP_BUFFERS) { return; }
    if (i == buffers->count) {
        buffers->all[buffers->count] = buffer;
        buffers->written[buffers->count++] = false;
    }
    buffers->written[i] = buffers->written[i] || written;
}
static void opdi_seen_used_here(opdi_access *access, void *user) {
    opdi_group_buffer((opdi_group_buffers *)user, access->buffer, false);
}
/* Lists the buffers that a group reads and writes.  If there are OPDI_GROUP_BUFFERS or more, some are missing. */
OPDI_INTERNAL void opdi_group_find_buffers(opdi_group *group, opdi_group_buffers *buffers) {
    buffers->count = 0;
    for (int i = 0; i < group->nnests; i++) {
        opdi_nest_walk(group->nests[i], opdi_seen_used_here, buffers);
        opdi_group_buffer(buffers, group->nests[i]->out.buffer, true);
    }
}
/* Returns whether a group does not become too large, and does not read and write too many buffers, if a nest joins
   it. */
static bool opdi_group_room(opdi_group *group, opdi_nest *nest) {
    opdi_group_buffers buffers;
    opdi_group larger = *group;
    int32_t nodes = 0;
    larger.nests[larger.nnests++] = nest;
    for (int i = 0; i < larger.nnests; i++) {
        opdi_nest_size(larger.nests[i]);
        nodes += larger.nests[i]->nodes;
    }
    opdi_group_find_buffers(&larger, &buffers);
    return nodes <= 2 * OPDI_FUSE_NODES && buffers.count < OPDI_GROUP_BUFFERS;
}
/* Adds a nest to a group whose outer loops have `rows` iterations, and splits loops if necessary.  If the nest cannot
   join the group, returns false and changes nothing. */
static bool opdi_group_takes(opdi_group *group, opdi_nest *nest, int64_t rows) {
    uint32_t split[OPDI_GROUP_NESTS + 1] = {0};
    const int outer = opdi_group_split(group, nest, rows, split);
    if (outer < 0) { return false; }
    if (opdi_group_fits(group, nest, outer) && opdi_group_room(group, nest)) {
        group->nests[group->nnests++] = nest;
        group->outer = outer;
        return true;
    }
    for (int i = 0; i <= group->nnests; i++) {
        for (int k = outer - 1; k >= 0; k--) {
            if (split[i] >> k & 1) { opdi_nest_join(i < group->nnests ? group->nests[i] : nest, k); }
        }
    }
    return false;
}
/* Puts all nests into groups, in order.  Returns the first group, or NULL and sets an error. */
OPDI_INTERNAL opdi_group *opdi_fuse_rows(opdi_recording *recording) {
    opdi_group *first = NULL, *last = NULL;
    int32_t id = 0;
    for (opdi_nest *nest = recording->first; nest; nest = nest->next) {
        const bool contracts = opdi_nest_contracts(nest) || opdi_nest_stays(nest) || nest->kernel;
        if (last && !contracts && !opdi_nest_stays(last->nests[0]) && last->nnests < OPDI_GROUP_NESTS &&
            !opdi_nest_contracts(last->nests[0]) && !last->nests[0]->kernel) {
            const int64_t mine = opdi_nest_rounds(nest, nest->ndim - nest->nreduce);
            const int64_t others = last->nnests > 1 ? opdi_nest_rounds(last->nests[0], last->outer)
                : opdi_nest_rounds(last->nests[0], last->nests[0]->ndim - last->nests[0]->nreduce);
            const int64_t rows = OPDI_MIN(mine, others);
            const int32_t facts = recording->nfacts;
            if (rows > 1 && opdi_group_takes(last, nest, rows)) { continue; }
            recording->nfacts = facts;
        }
        opdi_group *const group = (opdi_group *)opdi_recording_alloc(recording, sizeof *group);
        if (!group) { return NULL; }
        group->nests[0] = nest;
        group->nnests = 1;
        group->id = id++;
        if (last) { last->next = group; } else { first = group; }
        last = group;
    }
    return first;
}
