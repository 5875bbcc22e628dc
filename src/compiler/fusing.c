#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>fusing       making nests fewer: values are computed where they are read, and rows stay in the cache
//
//    opdi_fuse_versions     if a nest overwrites a whole buffer, lets this nest and all later nests use a new buffer
//    opdi_fuse_values       computes the value that a nest stores in the nests that read it (opdi_map_find finds the
//                           element), or moves a nest after a reduction into the reduction (opdi_nest.finish)
//    opdi_fuse_constants    multiplies a product's scale into its constant operand
//    opdi_fuse_rows         puts nests over the same rows into a group, which visits each row once
//----------------------------------------------------------------------------------------------------------------------

/* How the loop indices of one nest are computed from the loop indices of another nest: index of loop j = offset[j] +
   sum over k of by[j][k] * (index of loop k of the other nest). */
typedef struct opdi_map {
    int ndim;
    int64_t offset[OPDI_NEST_DIMS], by[OPDI_NEST_DIMS][OPDI_NEST_DIMS];
} opdi_map;

static void opdi_expr_split(opdi_expr *expr, int dim, int ndim, int64_t inner);
/* Adapts an access of a nest to the splitting of loop `dim` into two loops.  The inner loop has `inner` iterations. */
static void opdi_access_split(opdi_access *access, int dim, int ndim, int64_t inner) {
    memmove(access->strides + dim + 1, access->strides + dim, (size_t)(ndim - dim) * sizeof *access->strides);
    access->strides[dim] *= inner;
}
/* The number of the current walk over an expression.  Each node that is visited gets this number, so that a node that
   is used several times is visited once. */
OPDI_INTERNAL OPDI_TLS int32_t opdi_expr_round;
/* Returns how often an expression rounds in the way of its operator, or 2 if it rounds in another way.  A value that
   several expressions use counts once. */
static int opdi_same_rounds(opdi_expr *expr) {
    if (!expr || expr->round == opdi_expr_round) { return 0; }
    expr->round = opdi_expr_round;
    const int how = expr->kind == OPDI_EXPR_FORMULA ? opdi_c_rounds(expr) : OPDI_ROUNDS_NEVER;
    int sum = how == OPDI_ROUNDS_ELSE ? 2 : how == OPDI_ROUNDS_SAME;
    for (int i = 0; i < expr->nin; i++) { sum += opdi_same_rounds(expr->in[i]); }
    return sum;
}
/* Returns whether the nests that a kernel has recorded after `last` give the bits that the operator gives in the mode
   of same bits: at most one formula rounds, or one operator is called, or the nests are of one operator whose lowering
   vouches for them.  Several could be in another order than in the kernel for the CPU.  The order of zeros with
   different signs is not certain in a maximum. */
OPDI_INTERNAL bool opdi_same_nests(const opdi_recording *recording, const opdi_nest *last) {
    int rounds = 0;
    int32_t vouched = 0;
    for (opdi_nest *nest = last ? last->next : recording->first; nest && rounds < 2; nest = nest->next) {
        const bool number = nest->value && opd_dtype_is_floating(nest->value->dtype);
        if (nest->vouched) {
            rounds += nest->vouched != vouched;
            vouched = nest->vouched;
            continue;
        }
        opdi_expr_round++;
        rounds += nest->reduction == OPDI_REDUCTION_EXTERN;
        rounds += opdi_same_rounds(nest->value) + opdi_same_rounds(nest->finish) + opdi_same_rounds(nest->place);
        if (number && nest->reduction >= OPDI_REDUCTION_SUM && nest->reduction <= OPDI_REDUCTION_MIN) { rounds = 2; }
        if (nest->follows && number) { rounds = 2; }
    }
    return rounds < 2;
}
static void opdi_expr_split(opdi_expr *expr, int dim, int ndim, int64_t inner) {
    if (!expr || expr->round == opdi_expr_round) { return; }
    expr->round = opdi_expr_round;
    if (expr->kind == OPDI_EXPR_LOAD || expr->kind == OPDI_EXPR_COUNT) {
        opdi_access_split(&expr->access, dim, ndim, inner);
    }
    for (int i = 0; i < expr->nin; i++) { opdi_expr_split(expr->in[i], dim, ndim, inner); }
}
/* Splits loop `dim` into two loops.  The inner loop has `inner` iterations; the number of iterations of loop `dim` is a
   multiple of `inner`.  Returns false if the nest already has the maximum number of loops. */
OPDI_INTERNAL bool opdi_nest_split(opdi_nest *nest, int dim, int64_t inner) {
    if (nest->ndim == OPDI_NEST_DIMS) { return false; }
    opdi_expr_round++;
    opdi_access_split(&nest->out, dim, nest->ndim, inner);
    opdi_expr_split(nest->value, dim, nest->ndim, inner);
    opdi_expr_split(nest->finish, dim, nest->ndim, inner);
    opdi_expr_split(nest->place, dim, nest->ndim, inner);
    memmove(nest->sizes + dim + 1, nest->sizes + dim, (size_t)(nest->ndim - dim) * sizeof *nest->sizes);
    nest->sizes[dim] /= inner;
    nest->sizes[dim + 1] = inner;
    if (dim >= nest->ndim - nest->nreduce) { nest->nreduce++; }
    nest->ndim++;
    return true;
}
static void opdi_nest_drop(opdi_nest *nest, int dim);
/* Joins the loops `dim` and dim + 1, which opdi_nest_split has made from one loop. */
OPDI_INTERNAL void opdi_nest_join(opdi_nest *nest, int dim) {
    nest->sizes[dim + 1] *= nest->sizes[dim];
    opdi_nest_drop(nest, dim);
}
/* Returns whether loops with these strides visit each of `count` adjacent elements exactly once. */
static bool opdi_access_dense(const int64_t *sizes, const int64_t *strides, int ndim, int64_t count) {
    int64_t next = 1;
    uint32_t done = 0;
    for (int round = 0; round < ndim; round++) {
        int found = -1;
        for (int i = 0; i < ndim; i++) {
            if (!(done >> i & 1) && (sizes[i] == 1 || strides[i] == next)) {
                found = i;
                if (sizes[i] == 1) { break; }
            }
        }
        if (found < 0) { return false; }
        done |= 1u << found;
        next *= sizes[found];
    }
    return next == count;
}
/* The changes during the search for a map.  `split`: the loops that were split, in order.  `facts`: the number of facts
   before the search. */
typedef struct opdi_map_done { int32_t facts, nsplit; int8_t split[OPDI_NEST_DIMS]; } opdi_map_done;
/* Reverses the changes of a search that failed: removes the new facts, and joins the loops that were split.  Returns
   false. */
static bool opdi_map_not(opdi_nest *consumer, opdi_map_done *done) {
    opdi_recording_now->nfacts = done->facts;
    while (done->nsplit) { opdi_nest_join(consumer, done->split[--done->nsplit]); }
    return false;
}
/* Finds how the loop indices of `producer`, which stores the element `to`, are computed from the loop indices of
   `consumer`, which reads the element `from`.  Treats the loop indices of the producer as digits of the element's
   offset; the value of a digit is the loop's stride.  Splits a loop of the consumer if it spans several digits.
   Considers only the first `count` loops of the producer.  Returns false if it finds no such map. */
static bool opdi_map_find(opdi_map *map, opdi_nest *consumer, const opdi_access *from, const opdi_nest *producer,
                          const opdi_access *to, int count) {
    int64_t most[OPDI_NEST_DIMS] = {0};
    opdi_map_done done = {opdi_recording_now->nfacts, 0, {0}};
again:
    memset(map, 0, sizeof *map);
    map->ndim = count;
    opdi_recording_now->nfacts = done.facts;
    int64_t left = from->offset - to->offset;
    if (left < 0) { return opdi_map_not(consumer, &done); }
    opdi_assume(0, left);
    for (;;) {                                    /* splits the constant offset into digits, from the largest stride to
                                                     the smallest */
        int best = -1;
        for (int j = 0; j < count; j++) {
            if (producer->sizes[j] > 1 && !map->offset[j] && to->strides[j] > 0 && to->strides[j] <= left &&
                (best < 0 || to->strides[j] > to->strides[best])) { best = j; }
        }
        if (best < 0) { break; }
        map->offset[best] = left / to->strides[best];
        if (map->offset[best] >= producer->sizes[best]) { return opdi_map_not(consumer, &done); }
        opdi_assume(0, map->offset[best]);
        opdi_assume(map->offset[best] + 1, producer->sizes[best]);
        left %= to->strides[best];
    }
    if (left) { return opdi_map_not(consumer, &done); }
    for (int j = 0; j < count; j++) { most[j] = map->offset[j]; }
    for (int k = 0; k < consumer->ndim; k++) {
        int64_t stride = from->strides[k];
        if (consumer->sizes[k] == 1 || stride == 0) { continue; }
        if (stride < 0) { return opdi_map_not(consumer, &done); }
        int best = -1;
        for (int j = 0; j < count; j++) {
            if (producer->sizes[j] > 1 && to->strides[j] > 0 && to->strides[j] <= stride &&
                (best < 0 || to->strides[j] > to->strides[best])) { best = j; }
        }
        if (best < 0 || stride % to->strides[best]) { return opdi_map_not(consumer, &done); }
        const int64_t step = stride / to->strides[best], size = producer->sizes[best];
        if (most[best] + step * (consumer->sizes[k] - 1) < size) {
            map->by[best][k] = step;
            most[best] += step * (consumer->sizes[k] - 1);
            opdi_assume(0, step);
            opdi_assume(most[best] + 1, size);
            continue;
        }
        const int64_t inner = size / step;        /* the loop spans several digits: splits the loop, and searches
                                                     again */
        if (size % step || inner < 2 || consumer->sizes[k] % inner || map->offset[best] ||
            !opdi_nest_split(consumer, k, inner)) { return opdi_map_not(consumer, &done); }
        done.split[done.nsplit++] = (int8_t)k;
        goto again;
    }
    return true;
}

/* Returns a copy of an access that depends on the `ndim` loops of another nest instead; `map` tells how. */
static opdi_access opdi_access_mapped(const opdi_access *access, const opdi_map *map, int ndim) {
    opdi_access mapped = *access;
    memset(mapped.strides, 0, sizeof mapped.strides);
    for (int j = 0; j < map->ndim; j++) {
        mapped.offset += access->strides[j] * map->offset[j];
        for (int k = 0; k < ndim; k++) { mapped.strides[k] += access->strides[j] * map->by[j][k]; }
    }
    return mapped;
}
/* Returns a copy of an expression that depends on the `ndim` loops of another nest instead; `map` tells how.  Replaces
   loads of the buffer `instead` by `with`.  Returns NULL and sets an error on failure. */
static opdi_expr *opdi_expr_mapped(const opdi_expr *expr, const opdi_map *map, int ndim, const opdi_buffer *instead,
                                   opdi_expr *with) {
    if (instead && expr->kind == OPDI_EXPR_LOAD && expr->access.buffer == instead) { return with; }
    opdi_expr *const copy = opdi_expr_new(expr->kind, expr->dtype);
    if (!copy) { return NULL; }
    *copy = *expr;
    copy->round = 0;
    if (expr->kind == OPDI_EXPR_LOAD || expr->kind == OPDI_EXPR_COUNT) {
        copy->access = opdi_access_mapped(&expr->access, map, ndim);
    }
    for (int i = 0; i < expr->nin; i++) {
        if (!(copy->in[i] = opdi_expr_mapped(expr->in[i], map, ndim, instead, with))) { return NULL; }
    }
    return copy;
}

//== readers and writers of buffers ====================================================================================

static void opdi_expr_visit(opdi_expr *expr, opdi_access_seen seen, void *user) {
    if (!expr || expr->round == opdi_expr_round) { return; }
    expr->round = opdi_expr_round;
    if (expr->kind == OPDI_EXPR_LOAD) { seen(&expr->access, user); }
    for (int i = 0; i < expr->nin; i++) { opdi_expr_visit(expr->in[i], seen, user); }
}
/* Calls `seen` once for each load in an expression. */
static void opdi_expr_walk(opdi_expr *expr, opdi_access_seen seen, void *user) {
    opdi_expr_round++;
    opdi_expr_visit(expr, seen, user);
}
OPDI_INTERNAL void opdi_nest_walk(opdi_nest *nest, opdi_access_seen seen, void *user) {
    opdi_expr_round++;
    opdi_expr_visit(nest->value, seen, user);
    opdi_expr_visit(nest->finish, seen, user);
    opdi_expr_visit(nest->place, seen, user);
}
OPDI_INTERNAL int64_t opdi_nest_rounds(const opdi_nest *nest, int count) {
    int64_t rounds = 1;
    for (int i = 0; i < count; i++) { rounds *= nest->sizes[i]; }
    return rounds;
}
/* Returns whether a nest overwrites all bytes of its buffer that are used. */
OPDI_INTERNAL bool opdi_nest_fills(const opdi_nest *nest) {
    const int outer = nest->ndim - nest->nreduce;
    const int64_t count = (int64_t)(nest->out.buffer->bytes / opd_dtype_size(nest->out.dtype));
    const int64_t rounds = opdi_nest_rounds(nest, outer);
    const size_t bytes = (size_t)rounds * opd_dtype_size(nest->out.dtype);
    /* Memory is allocated in whole blocks, so bytes after the last used element do not count. */
    const bool fills = !nest->place && nest->out.offset == 0 &&
        opdi_access_dense(nest->sizes, nest->out.strides, outer, rounds) && rounds <= count &&
        bytes >= nest->out.buffer->used;
    if (!fills || !opdi_recording_now->open) { return fills; }
    opdi_assume((int64_t)nest->out.buffer->used, (int64_t)bytes);
    return (bytes + 63) / 64 * 64 >= nest->out.buffer->bytes;
}
typedef struct opdi_reads_count { opdi_recording *recording; opdi_nest *nest; } opdi_reads_count;
static void opdi_seen_reads(opdi_access *access, void *user) {
    const opdi_reads_count *const count = (const opdi_reads_count *)user;
    opdi_buffer *const buffer = access->buffer;
    buffer->reads++;
    if (buffer->readers && buffer->readers->nest == count->nest) { return; }
    opdi_buffer_use *const reader = (opdi_buffer_use *)opdi_recording_alloc(count->recording, sizeof *reader);
    if (!reader) { return; }                      /* the error is set already */
    reader->nest = count->nest;
    reader->next = buffer->readers;
    buffer->readers = reader;
}
/* Counts the readers and writers of each buffer, and lists the readers. */
OPDI_INTERNAL void opdi_fuse_count(opdi_recording *recording) {
    for (int i = 0; i < recording->nbuffers; i++) {
        opdi_buffer *const buffer = recording->buffers[i];
        buffer->reads = buffer->writes = 0;
        buffer->writer = NULL;
        buffer->readers = NULL;
    }
    for (opdi_nest *nest = recording->last; nest; nest = nest->prev) {
        opdi_reads_count count = {recording, nest};
        opdi_buffer *const buffer = nest->out.buffer;
        opdi_nest_walk(nest, opdi_seen_reads, &count);
        buffer->writer = buffer->writes++ ? buffer->writer : nest;
    }
}
OPDI_INTERNAL void opdi_nest_remove(opdi_recording *recording, opdi_nest *nest) {
    if (nest->prev) { nest->prev->next = nest->next; } else { recording->first = nest->next; }
    if (nest->next) { nest->next->prev = nest->prev; } else { recording->last = nest->prev; }
}
static void opdi_seen_unread(opdi_access *access, void *user) {
    (void)user;
    access->buffer->reads--;
}
/* Removes nests whose results are not used, until there is none.  Usually, readers come after writers, so one walk from
   the last nest to the first finds them all. */
OPDI_INTERNAL void opdi_fuse_dead(opdi_recording *recording) {
    bool again = true;
    while (again) {
        again = false;
        opdi_fuse_count(recording);
        for (opdi_nest *nest = recording->last, *prev; nest; nest = prev) {
            prev = nest->prev;
            const opdi_buffer *const buffer = nest->out.buffer;
            if (!buffer->reads && !buffer->output && !buffer->kept && buffer->role == OPDI_BUFFER_TEMPORARY) {
                opdi_nest_walk(nest, opdi_seen_unread, NULL);
                opdi_nest_remove(recording, nest);
                again = true;
            }
        }
    }
}

/* Replaces the buffer of an access by its current version.  `user` is an array with the current version of each
   buffer. */
static void opdi_seen_version(opdi_access *access, void *user) {
    opdi_buffer **const now = (opdi_buffer **)user;
    access->buffer = now[access->buffer->id];
}
/* Extends buffer->used to the bytes that an access of a nest can reach. */
static void opdi_seen_used(opdi_access *access, const opdi_nest *nest, int ndim) {
    int64_t last = access->offset;
    for (int i = 0; i < ndim; i++) { last += OPDI_MAX(access->strides[i], 0) * (nest->sizes[i] - 1); }
    const size_t bytes = (size_t)(last + 1) * opd_dtype_size(access->dtype);
    access->buffer->used = OPDI_MAX(access->buffer->used, bytes);
}
static void opdi_seen_used_by(opdi_access *access, void *user) {
    const opdi_nest *const nest = (const opdi_nest *)user;
    if (access->dtype != OPD_DTYPE_NONE) { opdi_seen_used(access, nest, nest->ndim); }
}
/* If a nest overwrites a whole buffer that was written before, makes this nest and all later nests use a new buffer
   instead.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fuse_versions(opdi_recording *recording) {
    const int count = recording->nbuffers;
    opdi_buffer **const now = (opdi_buffer **)opdi_recording_alloc(recording, (size_t)count * sizeof *now);
    if (!now) { return -1; }
    for (int i = 0; i < count; i++) { now[i] = recording->buffers[i]; }
    for (opdi_nest *nest = recording->first; nest; nest = nest->next) {
        opdi_nest_walk(nest, opdi_seen_used_by, nest);
        opdi_seen_used(&nest->out, nest, nest->ndim - nest->nreduce);
    }
    for (opdi_nest *nest = recording->first; nest; nest = nest->next) {
        opdi_nest_walk(nest, opdi_seen_version, now);
        opdi_buffer *const buffer = nest->out.buffer;
        if (buffer->role == OPDI_BUFFER_TEMPORARY && !buffer->output && buffer->writes && opdi_nest_fills(nest)) {
            opdi_buffer *const fresh = opdi_buffer_new(recording, buffer->bytes, OPDI_BUFFER_TEMPORARY);
            if (!fresh) { return -1; }
            fresh->used = buffer->used;
            fresh->dtype = buffer->dtype;
            now[buffer->id] = fresh;
        }
        nest->out.buffer = now[buffer->id];
        buffer->writes++;
    }
    return 0;
}

typedef struct opdi_reads_check { const opdi_buffer *buffer; bool reads; } opdi_reads_check;
static void opdi_seen_buffer(opdi_access *access, void *user) {
    opdi_reads_check *const check = (opdi_reads_check *)user;
    check->reads = check->reads || access->buffer == check->buffer;
}
OPDI_INTERNAL bool opdi_nest_reads(opdi_nest *nest, const opdi_buffer *buffer) {
    opdi_reads_check check = {buffer, false};
    opdi_nest_walk(nest, opdi_seen_buffer, &check);
    return check.reads;
}

//== computing values where they are read ==============================================================================

/* Returns the cost of an expression: 1 for simple arithmetic, more for functions.  The cost may be less if it is over
   8. */
static int opdi_expr_cost(const opdi_expr *expr) {
    int cost = expr->kind == OPDI_EXPR_FORMULA ? 1 : expr->kind == OPDI_EXPR_LOAD ? 1 + 2 * expr->nin : 0;
    if (expr->kind == OPDI_EXPR_FORMULA && !strchr(opdi_formula_kinds[expr->formula], 'W') &&
        !strchr(opdi_formula_kinds[expr->formula], 'V')) { cost = 8; }
    for (int i = 0; i < expr->nin && cost <= 8; i++) { cost += opdi_expr_cost(expr->in[i]); }
    return cost;
}
static void opdi_seen_written(opdi_access *access, void *user) {
    bool *const bad = (bool *)user;
    *bad = *bad || (access->buffer->writes > 0 && access->buffer->role != OPDI_BUFFER_TEMPORARY) ||
        access->buffer->writes > 1;
}
/* Returns whether no pass may change a nest: its loops must remain in order, and its value must remain a single
   load. */
OPDI_INTERNAL bool opdi_nest_stays(const opdi_nest *nest) {
    return nest->reduction == OPDI_REDUCTION_MOST || nest->reduction == OPDI_REDUCTION_LEAST || nest->called ||
        nest->inner;
}
/* Returns whether a sum of products uses each element of its operands several times: each operand has loops on which
   only it depends. */
static bool opdi_nest_shares(const opdi_nest *nest) {
    const opdi_expr *in[2] = {nest->value->in[0], nest->value->in[1]};
    bool alone[2] = {false, false};
    for (int i = 0; i < 2; i++) { while (in[i]->kind == OPDI_EXPR_CAST) { in[i] = in[i]->in[0]; } }
    for (int i = 0; i < nest->ndim - nest->nreduce; i++) {
        const bool first = in[0]->access.strides[i] != 0, second = in[1]->access.strides[i] != 0;
        alone[0] = alone[0] || (first && !second && nest->sizes[i] > 1);
        alone[1] = alone[1] || (second && !first && nest->sizes[i] > 1);
    }
    return alone[0] && alone[1];
}
/* Returns whether a cast changes no value. */
static bool opdi_expr_cast_exact(const opdi_expr *cast) {
    const opd_scalar_type from = cast->in[0]->dtype, to = cast->dtype;
    if (from == to) { return true; }
    return (to == OPD_FLOAT64 && from != OPD_INT64) ||
        (to == OPD_FLOAT32 && from != OPD_FLOAT64 && from != OPD_INT64 && from != OPD_INT32);
}
/* Returns whether a nest is computed as a matrix product with packed operands: it sums products of two loads, and
   opdi_nest_shares returns true. */
OPDI_INTERNAL bool opdi_nest_contracts(const opdi_nest *nest) {
    const opdi_expr *const value = nest->value;
    if (nest->reduction != OPDI_REDUCTION_SUM || nest->order || value->kind != OPDI_EXPR_FORMULA ||
        value->formula != OPD_FORMULA_mul ||
        (value->dtype != OPD_FLOAT32 && value->dtype != OPD_FLOAT64)) { return false; }
    for (int i = 0; i < 2; i++) {
        const opdi_expr *in = value->in[i];
        if (in->kind == OPDI_EXPR_CAST) { in = in->in[0]; }
        while (in->kind == OPDI_EXPR_CAST) {      /* packing converts only once, so inner casts must not change
                                                     values */
            if (!opdi_expr_cast_exact(in)) { return false; }
            in = in->in[0];
        }
        if (in->kind != OPDI_EXPR_LOAD || in->nin) { return false; }
    }
    return opdi_nest_shares(nest);
}
/* Returns whether a map gives each loop of the producer the index of the same loop of the consumer. */
static bool opdi_map_same(const opdi_map *map) {
    for (int i = 0; i < map->ndim; i++) {
        for (int k = 0; k < OPDI_NEST_DIMS; k++) { if (map->offset[i] || map->by[i][k] != (i == k)) { return false; } }
    }
    return true;
}
static void opdi_expr_move(opdi_expr *expr, const opdi_map *map, int ndim) {
    if (expr->round == opdi_expr_round) { return; }
    expr->round = opdi_expr_round;
    if (expr->kind == OPDI_EXPR_LOAD || expr->kind == OPDI_EXPR_COUNT) {
        expr->access = opdi_access_mapped(&expr->access, map, ndim);
    }
    for (int i = 0; i < expr->nin; i++) { opdi_expr_move(expr->in[i], map, ndim); }
}
/* The replacement of loads of a producer's result, in a nest that reads it, by the producer's value. */
typedef struct opdi_replacing {
    opdi_nest *nest, *producer;
    int done;                                     /* the number of loads replaced; a load that two expressions use
                                                     counts twice */
    bool moves, moved;                            /* moves: there is only one load, which is not in the place of the
                                                     result, so it gets the producer's value itself instead of a copy;
                                                     moved: it has got it */
} opdi_replacing;
static opdi_expr *opdi_expr_replaced(opdi_replacing *all, opdi_expr *expr) {
    for (int i = 0; i < expr->nin; i++) {
        opdi_expr *const in = opdi_expr_replaced(all, expr->in[i]);
        if (!in) { return NULL; }
        expr->in[i] = in;
    }
    opdi_nest *const producer = all->producer;
    if (expr->kind != OPDI_EXPR_LOAD || expr->access.buffer != producer->out.buffer || expr->nin ||
        expr->access.dtype != producer->out.dtype) { return expr; }
    opdi_map map;
    if (!all->moved && !opdi_map_find(&map, all->nest, &expr->access, producer, &producer->out, producer->ndim)) {
        return expr;
    }
    all->done++;
    if (!all->moves) { return opdi_expr_mapped(producer->value, &map, all->nest->ndim, NULL, NULL); }
    if (!all->moved && !opdi_map_same(&map)) {
        opdi_expr_round++;
        opdi_expr_move(producer->value, &map, all->nest->ndim);
    }
    all->moved = true;
    return producer->value;
}
static void opdi_expr_size(const opdi_expr *expr, int32_t *nodes, int32_t *loads) {
    ++*nodes;
    *loads += expr->kind == OPDI_EXPR_LOAD;
    for (int i = 0; i < expr->nin && *nodes <= 8 * OPDI_FUSE_NODES; i++) { opdi_expr_size(expr->in[i], nodes, loads); }
}
OPDI_INTERNAL void opdi_nest_size(opdi_nest *nest) {
    if (nest->nodes) { return; }
    opdi_expr_size(nest->value, &nest->nodes, &nest->loads);
    if (nest->finish) { opdi_expr_size(nest->finish, &nest->nodes, &nest->loads); }
}
/* Returns whether the value of `other` can become a part of `nest`: the result must not be larger than a C function
   should be. */
static bool opdi_nest_room(opdi_nest *nest, opdi_nest *other) {
    const int times = opdi_recording_now->loose ? 4 : 1;
    opdi_nest_size(nest);
    opdi_nest_size(other);
    return nest->nodes + other->nodes <= times * OPDI_FUSE_NODES &&
        nest->loads + other->loads <= times * OPDI_FUSE_LOADS;
}
/* If a nest loads the result of `producer`, replaces these loads by the value that the producer computes.  Returns the
   number of loads replaced, or -1 and sets an error. */
static int opdi_fuse_into(opdi_recording *recording, opdi_nest *nest, opdi_nest *producer) {
    const opdi_buffer *const buffer = producer->out.buffer;
    opdi_reads_check place = {buffer, false};
    if (nest->place) { opdi_expr_walk(nest->place, opdi_seen_buffer, &place); }
    opdi_replacing all = {nest, producer, 0, buffer->reads == 1 && !buffer->output && !place.reads, false};
    const bool contracts = !recording->loose && opdi_nest_contracts(nest);
    const opdi_expr *plain = producer->value;
    if ((contracts && (plain->kind != OPDI_EXPR_LOAD || plain->nin)) || opdi_nest_stays(nest) ||
        !opdi_nest_room(nest, producer) || opdi_nest_reads(producer, nest->out.buffer)) {
        return 0;
    }
    for (int round = 0; round < 8; round++) {     /* tries again after a loop was split, because other maps exist
                                                     then */
        const int ndim = nest->ndim;
        if (!(nest->value = opdi_expr_replaced(&all, nest->value)) ||
            (nest->finish && !(nest->finish = opdi_expr_replaced(&all, nest->finish)))) { return -1; }
        if (ndim == nest->ndim || all.moved) { break; }
    }
    nest->nodes += all.done * (producer->nodes - 1);
    nest->loads += all.done * (producer->loads - 1);
    return all.done;
}
static bool opdi_access_equal(const opdi_access *access, const opdi_access *other, int ndim) {
    return access->buffer == other->buffer && access->offset == other->offset && access->dtype == other->dtype &&
        memcmp(access->strides, other->strides, (size_t)ndim * sizeof *access->strides) == 0;
}
typedef struct opdi_finish_check {
    const opdi_nest *reduction, *nest;
    const opdi_access *first;                     /* the first access found that reads the reduction's result */
    bool bad;
    int32_t count;                                /* the number of loads of the reduction's result */
} opdi_finish_check;
static void opdi_seen_finish(opdi_access *access, void *user) {
    opdi_finish_check *const check = (opdi_finish_check *)user;
    if (access->buffer == check->reduction->out.buffer) {
        check->bad = check->bad || (check->first && !opdi_access_equal(access, check->first, check->nest->ndim)) ||
            access->dtype != check->reduction->out.dtype;
        check->first = access;
        check->count++;
    } else if (access->buffer->writes > 1 || (access->buffer->writer &&
        access->buffer->writer->id > check->reduction->id)) {
        check->bad = true;
    }
}
/* If `nest` is the only reader of a reduction's result and reads it element by element, moves its value into
   reduction->finish and removes the nest.  Returns 1 if it has done so, 0 if that is impossible, or -1 and sets an
   error. */
static int opdi_fuse_finish(opdi_recording *recording, opdi_nest *reduction, opdi_nest *nest) {
    opdi_finish_check check = {reduction, nest, NULL, false, 0};
    const int outer = reduction->ndim - reduction->nreduce;
    opdi_map map;
    if (nest->nreduce || nest->reduction || nest->place || nest->out.buffer == reduction->out.buffer ||
        (nest->out.buffer->writes > 1 && nest->out.buffer->role == OPDI_BUFFER_TEMPORARY && !opdi_nest_fills(nest)) ||
        opdi_nest_rounds(nest, nest->ndim) != opdi_nest_rounds(reduction, outer) ||
        !opdi_nest_room(reduction, nest)) { return 0; }
    opdi_nest_walk(nest, opdi_seen_finish, &check);
    if (check.bad || !check.first || nest->out.buffer->writes > 1) { return 0; }
    for (const opdi_buffer_use *reader = nest->out.buffer->readers; reader; reader = reader->next) {
        const opdi_nest *const other = reader->nest->into ? reader->nest->into : reader->nest;
        if (other->id > reduction->id && other->id < nest->id) { return 0; }      /* that nest would read the new
                                                                                     contents of the buffer */
    }
    const int nreduce = reduction->nreduce;
    if (!opdi_map_find(&map, reduction, &reduction->out, nest, check.first, nest->ndim)) { return 0; }
    if (nreduce != reduction->nreduce) { return 0; }
    const opdi_access out = opdi_access_mapped(&nest->out, &map, reduction->ndim);
    if (opdi_expr_overlaps(reduction->value, &out)) { return 0; }
    opdi_expr *const before = reduction->finish ? reduction->finish : opdi_expr_new(OPDI_EXPR_RESULT,
        reduction->out.dtype);
    if (!before) { return -1; }
    opdi_expr *const finish = opdi_expr_mapped(nest->value, &map, reduction->ndim, reduction->out.buffer, before);
    if (!finish) { return -1; }
    reduction->finish = finish;
    reduction->out = out;
    reduction->what = nest->what && reduction->what && !strstr(reduction->what, nest->what) &&
        strlen(reduction->what) < 40 ? opdi_recording_joined(recording, reduction->what, nest->what) : reduction->what;
    reduction->nodes += nest->nodes - check.count;
    reduction->loads += nest->loads - check.count;
    reduction->out.buffer->writer = reduction;
    nest->into = reduction;
    opdi_nest_remove(recording, nest);
    return 1;
}
typedef struct opdi_first_check { bool first; } opdi_first_check;
static void opdi_seen_first(opdi_access *access, void *user) {
    const opdi_buffer *const buffer = access->buffer;
    opdi_first_check *const check = (opdi_first_check *)user;
    check->first = check->first && (buffer->role == OPDI_BUFFER_TEMPORARY ? buffer->front : !buffer->writes);
}
/* Moves small nests without a reduction to the beginning of the recording, if they read only inputs, constants and
   results of other nests that were moved.  An example is the computation of the scale of a batch norm.  The expression
   `finish` of a product can then use their results. */
static void opdi_fuse_hoist(opdi_recording *recording) {
    opdi_nest *last = NULL;                       /* the last of the nests that were moved */
    int32_t id = 0;
    opdi_fuse_count(recording);
    for (opdi_nest *nest = recording->first, *next; nest; nest = next) {
        opdi_buffer *const buffer = nest->out.buffer;
        opdi_first_check check = {buffer->role == OPDI_BUFFER_TEMPORARY && buffer->writes == 1 && !buffer->output &&
                                  !nest->reduction && opdi_nest_rounds(nest, nest->ndim) <= 65536};
        next = nest->next;
        if (check.first) { opdi_nest_walk(nest, opdi_seen_first, &check); }
        if (!check.first) { continue; }
        buffer->front = true;
        if (nest->prev != last) {
            opdi_nest_remove(recording, nest);
            nest->prev = last;
            nest->next = last ? last->next : recording->first;
            nest->next->prev = nest;
            if (last) { last->next = nest; } else { recording->first = nest; }
        }
        last = nest;
    }
    for (opdi_nest *nest = recording->first; nest; nest = nest->next) { nest->id = id++; }
}
/* Returns the only nest that reads a buffer, or NULL if there is none or more than one. */
static opdi_nest *opdi_buffer_reader(const opdi_buffer *buffer) {
    opdi_nest *only = NULL;
    for (const opdi_buffer_use *reader = buffer->readers; reader; reader = reader->next) {
        opdi_nest *const nest = reader->nest->into ? reader->nest->into : reader->nest;
        if (only && only != nest) { return NULL; }
        only = nest;
    }
    return only;
}
/* If later nests load the result of `producer`, replaces these loads by the value that the producer computes, where
   this is possible and not slower.  Removes the producer if nothing reads its result then.  Returns 0, or -1 and sets
   an error. */
static int opdi_fuse_producer(opdi_recording *recording, opdi_nest *producer) {
    const opdi_buffer *const buffer = producer->out.buffer;
    const opdi_buffer_use *reader = buffer->readers;
    bool bad = false, left = false;
    int fused = 0;
    if (producer->nreduce || buffer->writes != 1 || buffer->role != OPDI_BUFFER_TEMPORARY || !reader ||
        reader->nest->id < producer->id || !opdi_nest_fills(producer)) { return 0; }
    opdi_expr_walk(producer->value, opdi_seen_written, &bad);
    if (bad) { return 0; }
    const int cost = opdi_expr_cost(producer->value);
    const int64_t rounds = opdi_nest_rounds(producer, producer->ndim);
    for (; reader; reader = reader->next) {
        opdi_nest *const nest = reader->nest;
        const bool once = buffer->reads == 1 && (recording->loose || opdi_nest_rounds(nest, nest->ndim) <= rounds);
        const int done = once || cost <= (recording->loose ? 8 : 2) ? opdi_fuse_into(recording, nest, producer) : 0;
        if (done < 0) { return -1; }
        fused += done;
        left = left || opdi_nest_reads(nest, buffer);
    }
    if (fused && !left && !buffer->output) { opdi_nest_remove(recording, producer); }
    return 0;
}
/* Replaces loads of nests' results by the values that these nests compute, and moves nests into reductions, wherever
   possible.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fuse_values(opdi_recording *recording) {
    opdi_fuse_count(recording);
    for (opdi_nest *producer = recording->first, *next; producer; producer = next) {
        next = producer->next;
        if (opdi_fuse_producer(recording, producer)) { return -1; }
    }
    opdi_fuse_dead(recording);
    opdi_fuse_hoist(recording);
    opdi_fuse_count(recording);
    for (opdi_nest *nest = recording->first; nest; nest = nest->next) {
        for (int done = 1; done;) {
            const opdi_buffer *const buffer = nest->out.buffer;
            opdi_nest *const reader = !nest->nreduce || opdi_nest_stays(nest) || buffer->writes != 1 ||
                buffer->output || buffer->role != OPDI_BUFFER_TEMPORARY ? NULL : opdi_buffer_reader(buffer);
            done = reader ? opdi_fuse_finish(recording, nest, reader) : 0;
            if (done < 0) { return -1; }
        }
    }
    opdi_fuse_dead(recording);
    return 0;
}

//== multiplying a scale after a product into the product's constant operand ==========================================
//
//  A batch norm, or another scale and shift by constants, may follow a convolution or product with a constant operand.
//  If scale and shift depend only on loops on which the operand depends, result * scale + shift equals the product with
//  the operand times scale, plus shift.  The new operand and the shift are computed in double when the graph is
//  compiled.

/* The value of an expression at one position, in the form scale * r + shift, where r is the result of the nest. */
typedef struct opdi_fold_pair { double scale, shift; } opdi_fold_pair;
static bool opdi_expr_has_result(const opdi_expr *expr) {
    if (expr->kind == OPDI_EXPR_RESULT) { return true; }
    for (int i = 0; i < expr->nin; i++) { if (opdi_expr_has_result(expr->in[i])) { return true; } }
    return false;
}
/* A position in the loops of a nest: `at` has the index of each loop.  *visits is the number of nodes that may still be
   visited; it is limited, because a node that is used several times is visited several times. */
#define OPDI_FOLD_VISITS 1000
typedef struct opdi_fold_at { const int64_t *at; int ndim, *visits; } opdi_fold_at;
static bool opdi_fold_value(const opdi_expr *expr, opdi_fold_at where, opdi_fold_pair *value);
/* Sets *value to an element of a constant, or of a buffer that is computed from constants.  Returns false if the access
   reads another buffer. */
static bool opdi_fold_load(const opdi_access *access, opdi_fold_at where, opdi_fold_pair *value) {
    const opdi_buffer *const buffer = access->buffer;
    int64_t place = access->offset, inner[OPDI_NEST_DIMS] = {0};
    for (int i = 0; i < where.ndim; i++) { place += access->strides[i] * where.at[i]; }
    if (access->dtype != buffer->dtype || place < 0 ||
        (size_t)(place + 1) * opd_dtype_size(access->dtype) > buffer->bytes) { return false; }
    value->scale = 0;
    if (buffer->role == OPDI_BUFFER_CONSTANT && !buffer->writes && buffer->data) {
        if (access->dtype == OPD_FLOAT64) { value->shift = ((const double *)buffer->data)[place]; }
        else if (access->dtype == OPD_FLOAT32) { value->shift = (double)((const float *)buffer->data)[place]; }
        else { return false; }
        return true;
    }
    const opdi_nest *const nest = buffer->writer;
    if (buffer->role != OPDI_BUFFER_TEMPORARY || buffer->writes != 1 || nest->reduction || nest->nreduce ||
        nest->out.dtype != access->dtype || !opdi_nest_fills(nest)) { return false; }
    for (int64_t left = place, below = INT64_MAX; left;) {     /* splits the offset into digits, the loops' indices,
                                                                  from the largest stride to the smallest */
        int best = -1;
        for (int i = 0; i < nest->ndim; i++) {
            const int64_t stride = nest->out.strides[i];
            if (nest->sizes[i] > 1 && stride < below && stride <= left &&
                (best < 0 || stride > nest->out.strides[best])) { best = i; }
        }
        if (best < 0) { return false; }
        below = nest->out.strides[best];
        inner[best] = left / below;
        left %= below;
        if (inner[best] >= nest->sizes[best]) { return false; }
    }
    where.at = inner;
    where.ndim = nest->ndim;
    return opdi_fold_value(nest->value, where, value);
}
static bool opdi_fold_formula(const opdi_expr *expr, const opdi_fold_pair *x, const opdi_fold_pair *y,
                              opdi_fold_pair *value) {
    const double sign = expr->formula == OPD_FORMULA_sub || expr->formula == OPD_FORMULA_sub_scaled ? -1 : 1;
    const bool scaled = expr->formula == OPD_FORMULA_add_scaled || expr->formula == OPD_FORMULA_sub_scaled;
    const double factor = sign * (scaled ? expr->f64[0] : 1);
    const bool number = x->scale == 0 && y->scale == 0;
    switch (expr->formula) {
    case OPD_FORMULA_add: case OPD_FORMULA_sub: case OPD_FORMULA_add_scaled: case OPD_FORMULA_sub_scaled:
        value->scale = x->scale + factor * y->scale;
        value->shift = x->shift + factor * y->shift;
        return true;
    case OPD_FORMULA_mul:
        if (x->scale != 0 && y->scale != 0) { return false; }
        value->scale = x->scale * y->shift + y->scale * x->shift;
        value->shift = x->shift * y->shift;
        return true;
    case OPD_FORMULA_neg: value->scale = -x->scale; value->shift = -x->shift; return true;
    case OPD_FORMULA_div:
        if (y->scale != 0) { return false; }
        value->scale = x->scale / y->shift;
        value->shift = x->shift / y->shift;
        return true;
    case OPD_FORMULA_rsqrt: value->scale = 0; value->shift = 1 / sqrt(x->shift); return number;
    case OPD_FORMULA_sqrt: value->scale = 0; value->shift = sqrt(x->shift); return number;
    case OPD_FORMULA_reciprocal: value->scale = 0; value->shift = 1 / x->shift; return number;
    default: return false;
    }
}
/* Sets *value to the value of an expression at a position.  Returns false if the value does not have the form scale *
   result + shift, or if too many nodes would be visited. */
static bool opdi_fold_value(const opdi_expr *expr, opdi_fold_at where, opdi_fold_pair *value) {
    opdi_fold_pair in[2] = {{0, 0}, {0, 0}};
    value->scale = value->shift = 0;
    if ((expr->dtype != OPD_FLOAT32 && expr->dtype != OPD_FLOAT64) || --*where.visits < 0 || expr->forms[0] ||
        expr->forms[1]) { return false; }
    if (expr->kind == OPDI_EXPR_RESULT) {
        value->scale = 1;
        return true;
    }
    if (expr->kind == OPDI_EXPR_LOAD) { return !expr->nin && opdi_fold_load(&expr->access, where, value); }
    if (expr->kind == OPDI_EXPR_NUMBER) {
        value->shift = expr->f64[0];
        return true;
    }
    if ((expr->kind != OPDI_EXPR_FORMULA && expr->kind != OPDI_EXPR_CAST) || expr->nin > 2) { return false; }
    for (int i = 0; i < expr->nin; i++) { if (!opdi_fold_value(expr->in[i], where, &in[i])) { return false; } }
    if (expr->kind == OPDI_EXPR_CAST) {
        *value = in[0];
        return true;
    }
    return opdi_fold_formula(expr, &in[0], &in[1], value);
}
/* Adds the loops on which an expression depends to the mask *loops. */
OPDI_INTERNAL void opdi_fold_loops(const opdi_expr *expr, int ndim, uint32_t *loops) {
    for (int i = 0; i < ndim && (expr->kind == OPDI_EXPR_LOAD || expr->kind == OPDI_EXPR_COUNT); i++) {
        if (expr->access.strides[i]) { *loops |= 1u << i; }
    }
    for (int i = 0; i < expr->nin; i++) { opdi_fold_loops(expr->in[i], ndim, loops); }
}
/* The state of a search for the node that has `of` as an operand.  `several` is true if there is more than one such
   node. */
typedef struct opdi_fold_parent { const opdi_expr *of; opdi_expr *parent; bool several; } opdi_fold_parent;
static void opdi_fold_parents(opdi_expr *expr, opdi_fold_parent *find) {
    if (!expr || expr->round == opdi_expr_round) { return; }
    expr->round = opdi_expr_round;
    for (int i = 0; i < expr->nin; i++) {
        const bool same = expr->in[i] == find->of;
        find->several = find->several || (same && find->parent && find->parent != expr) ||
            (expr->in[i]->kind == OPDI_EXPR_RESULT && find->of->kind == OPDI_EXPR_RESULT && !same);
        if (same) { find->parent = expr; }
        opdi_fold_parents(expr->in[i], find);
    }
}
static opdi_expr *opdi_expr_result(opdi_expr *expr) {
    opdi_expr *found = expr->kind == OPDI_EXPR_RESULT ? expr : NULL;
    for (int i = 0; i < expr->nin && !found; i++) { found = opdi_expr_result(expr->in[i]); }
    return found;
}
/* Returns the largest part of nest->finish that contains the result, has the form scale * result + shift, and depends
   only on the loops in the mask `loops`.  Returns NULL if there is none. */
static opdi_expr *opdi_fold_part(const opdi_nest *nest, uint32_t loops) {
    const int64_t at[OPDI_NEST_DIMS] = {0};
    opdi_expr *part = opdi_expr_result(nest->finish);
    bool any = false;
    while (part) {
        opdi_fold_parent find = {part, NULL, false};
        opdi_fold_pair value;
        uint32_t needs = 0;
        int visits = OPDI_FOLD_VISITS;
        const opdi_fold_at where = {at, nest->ndim, &visits};
        opdi_expr_round++;
        opdi_fold_parents(nest->finish, &find);
        opdi_expr *const next = find.parent;
        if (!next || find.several || next->dtype != nest->value->dtype || next->kind != OPDI_EXPR_FORMULA) { break; }
        opdi_fold_loops(next, nest->ndim, &needs);
        int results = 0;
        for (int i = 0; i < next->nin; i++) { results += opdi_expr_has_result(next->in[i]); }
        if (results != 1 || (needs & ~loops) || !opdi_fold_value(next, where, &value)) { break; }
        part = next;
        any = true;
    }
    return any ? part : NULL;
}
/* If a nest is a sum of products in which exactly one factor is a load of a constant, returns this load; else NULL. */
static opdi_expr *opdi_fold_operand(const opdi_nest *nest) {
    opdi_expr *found = NULL;
    const opdi_expr *const value = nest->value;
    if (nest->reduction != OPDI_REDUCTION_SUM || !nest->nreduce || nest->place || value->kind != OPDI_EXPR_FORMULA ||
        value->formula != OPD_FORMULA_mul || (value->dtype != OPD_FLOAT32 && value->dtype != OPD_FLOAT64)) {
        return NULL;
    }
    for (int i = 0; i < 2; i++) {
        opdi_expr *const in = value->in[i];
        const opdi_buffer *const buffer = in->access.buffer;
        if (in->kind != OPDI_EXPR_LOAD || in->nin || buffer->role != OPDI_BUFFER_CONSTANT || buffer->writes ||
            !buffer->data || in->access.dtype != value->dtype || buffer->dtype != value->dtype) { continue; }
        if (found) { return NULL; }
        found = in;
    }
    return found;
}
/* Makes a constant with one element for each iteration of the loops in the mask `loops`.  Its name contains `name`, and
   its elements are not set.  Returns a load of the constant, or NULL and sets an error. */
static opdi_expr *opdi_fold_constant(opdi_recording *recording, const opdi_nest *nest, uint32_t loops,
                                     const char *name) {
    opdi_expr *const load = opdi_expr_new(OPDI_EXPR_LOAD, nest->value->dtype);
    int64_t count = 1;
    if (!load) { return NULL; }
    for (int i = nest->ndim - 1; i >= 0; i--) {
        if (!(loops >> i & 1)) { continue; }
        load->access.strides[i] = count;
        count *= nest->sizes[i];
    }
    const size_t bytes = (size_t)count * opd_dtype_size(load->dtype);
    opdi_buffer *const buffer = opdi_buffer_new(recording, bytes, OPDI_BUFFER_CONSTANT);
    void *const data = buffer ? opdi_recording_alloc(recording, bytes) : NULL;
    char *const text = data ? (char *)opdi_recording_alloc(recording, 64) : NULL;
    if (!text) { return NULL; }
    (void)snprintf(text, 64, "f%d_%.40s", (int)buffer->id, name ? name : "");
    buffer->name = text;
    buffer->data = data;
    buffer->dtype = load->access.dtype = load->dtype;
    load->access.buffer = buffer;
    return load;
}
/* Stores a number as element `place` of the constant that `load` reads.  Returns false if the number is infinite or NaN
   in the constant's dtype. */
static bool opdi_fold_store(const opdi_expr *load, int64_t place, double number) {
    void *const data = (void *)(uintptr_t)load->access.buffer->data;
    if (load->dtype == OPD_FLOAT64) { ((double *)data)[place] = number; }
    else { ((float *)data)[place] = (float)number; }
    return load->dtype == OPD_FLOAT64 ? number - number == 0 : (float)number - (float)number == 0;
}
/* Advances the indices `at` to the next iteration of the loops in the mask `loops`.  Returns false after the last
   iteration. */
static bool opdi_fold_next(const opdi_nest *nest, uint32_t loops, int64_t *at) {
    for (int i = nest->ndim - 1; i >= 0; i--) {
        if (!(loops >> i & 1)) { continue; }
        if (++at[i] < nest->sizes[i]) { return true; }
        at[i] = 0;
    }
    return false;
}
static int64_t opdi_fold_place(const opdi_access *access, int ndim, const int64_t *at) {
    int64_t place = access->offset;
    for (int i = 0; i < ndim; i++) { place += access->strides[i] * at[i]; }
    return place;
}
/* Returns whether a scale of the expression `part`, scale * result + shift, is not 1.  The scales depend on the loops
   in the mask `outer`. */
static bool opdi_fold_scales(const opdi_nest *nest, const opdi_expr *part, uint32_t outer) {
    int64_t at[OPDI_NEST_DIMS] = {0};
    do {
        opdi_fold_pair value;
        int visits = OPDI_FOLD_VISITS;
        const opdi_fold_at where = {at, nest->ndim, &visits};
        if (!opdi_fold_value(part, where, &value)) { return false; }
        if (value.scale != 1) { return true; }
    } while (opdi_fold_next(nest, outer, at));
    return false;
}
/* Computes the elements of the new operand and of the shift.  `part` is the expression scale * result + shift.  The
   shift depends on the loops in the mask `outer`, the old operand `was` on those in `loops`.  Returns false if a number
   is infinite or NaN. */
static bool opdi_fold_fill(const opdi_nest *nest, const opdi_expr *part, const opdi_access *was,
                           const opdi_expr *operand, const opdi_expr *shift, uint32_t loops, uint32_t outer) {
    int64_t at[OPDI_NEST_DIMS] = {0};
    do {
        opdi_fold_pair value;
        int visits = OPDI_FOLD_VISITS;
        const opdi_fold_at where = {at, nest->ndim, &visits};
        if (!opdi_fold_value(part, where, &value) || value.scale - value.scale != 0 ||
            !opdi_fold_store(shift, opdi_fold_place(&shift->access, nest->ndim, at), value.shift)) { return false; }
        do {
            const int64_t place = opdi_fold_place(was, nest->ndim, at);
            const double number = was->dtype == OPD_FLOAT64 ? ((const double *)was->buffer->data)[place]
                : (double)((const float *)was->buffer->data)[place];
            const int64_t to = opdi_fold_place(&operand->access, nest->ndim, at);
            if (!opdi_fold_store(operand, to, number * value.scale)) { return false; }
        } while (opdi_fold_next(nest, loops & ~outer, at));
    } while (opdi_fold_next(nest, outer, at));
    return true;
}
static void opdi_seen_folded(opdi_expr *expr) {
    if (expr->round == opdi_expr_round) { return; }
    expr->round = opdi_expr_round;
    if (expr->kind == OPDI_EXPR_LOAD) {
        opdi_buffer *const buffer = expr->access.buffer;
        if (buffer->role == OPDI_BUFFER_CONSTANT) { buffer->folded = true; }
        else if (buffer->writer) { opdi_seen_folded(buffer->writer->value); }
    }
    for (int i = 0; i < expr->nin; i++) { opdi_seen_folded(expr->in[i]); }
}
/* If a scale follows the sum of a nest and the sum has a constant operand, multiplies the operand by the scale.  The
   addition of a constant then replaces scale and shift.  Does nothing if that is impossible.  Returns 0, or -1 and sets
   an error. */
static int opdi_fold_nest(opdi_recording *recording, opdi_nest *nest) {
    opdi_expr *const operand = nest->finish && !nest->order ? opdi_fold_operand(nest) : NULL;
    uint32_t loops = 0, outer = 0;
    if (!operand) { return 0; }
    opdi_fold_loops(operand, nest->ndim, &loops);
    opdi_expr *const part = opdi_fold_part(nest, loops & ((1u << (nest->ndim - nest->nreduce)) - 1));
    if (!part) { return 0; }
    opdi_fold_loops(part, nest->ndim, &outer);
    if (!opdi_fold_scales(nest, part, outer)) { return 0; }   /* before memory as large as the operand is allocated */
    const opdi_buffer *const was = operand->access.buffer;
    opdi_expr *const fresh = opdi_fold_constant(recording, nest, loops, was->name);
    opdi_expr *const shift = fresh ? opdi_fold_constant(recording, nest, outer, "shift") : NULL;
    if (!shift) { return -1; }
    if (!opdi_fold_fill(nest, part, &operand->access, fresh, shift, loops, outer)) { return 0; }
    opdi_expr_round++;
    opdi_seen_folded(operand);
    opdi_seen_folded(part);
    operand->access = fresh->access;
    opdi_expr *const result = opdi_expr_result(nest->finish);
    part->formula = OPD_FORMULA_add;
    part->in[0] = result;
    part->in[1] = shift;
    part->nin = 2;
    return 0;
}
/* Calls opdi_fold_nest for all nests, and then removes nests that are no longer used.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_fuse_constants(opdi_recording *recording) {
    opdi_fuse_count(recording);
    for (opdi_nest *nest = recording->first; nest; nest = nest->next) {
        if (opdi_fold_nest(recording, nest)) { return -1; }
    }
    opdi_fuse_dead(recording);
    return 0;
}

//== order of loops ====================================================================================================

static void opdi_expr_each(opdi_expr *expr, void (*change)(opdi_access *access, void *user), void *user) {
    if (!expr || expr->round == opdi_expr_round) { return; }
    expr->round = opdi_expr_round;
    if (expr->kind == OPDI_EXPR_LOAD || expr->kind == OPDI_EXPR_COUNT) { change(&expr->access, user); }
    for (int i = 0; i < expr->nin; i++) { opdi_expr_each(expr->in[i], change, user); }
}
/* Calls `change` once for each access of a nest, including its store. */
static void opdi_nest_each(opdi_nest *nest, void (*change)(opdi_access *access, void *user), void *user) {
    opdi_expr_round++;
    change(&nest->out, user);
    opdi_expr_each(nest->value, change, user);
    opdi_expr_each(nest->finish, change, user);
    opdi_expr_each(nest->place, change, user);
}
typedef struct opdi_loops_change { int dim, other; int64_t size; bool fits; } opdi_loops_change;
static void opdi_loops_swap(opdi_access *access, void *user) {
    const opdi_loops_change *const change = (const opdi_loops_change *)user;
    const int64_t stride = access->strides[change->dim];
    access->strides[change->dim] = access->strides[change->other];
    access->strides[change->other] = stride;
}
static void opdi_loops_fit(opdi_access *access, void *user) {
    opdi_loops_change *const change = (opdi_loops_change *)user;
    if (access->strides[change->dim] != access->strides[change->dim + 1] * change->size) { change->fits = false; }
}
static void opdi_loops_drop(opdi_access *access, void *user) {
    const opdi_loops_change *const change = (const opdi_loops_change *)user;
    memmove(access->strides + change->dim, access->strides + change->dim + 1,
            (size_t)(OPDI_NEST_DIMS - 1 - change->dim) * sizeof *access->strides);
    access->strides[OPDI_NEST_DIMS - 1] = 0;
}
static void opdi_nest_drop(opdi_nest *nest, int dim) {
    opdi_loops_change change = {dim, 0, 0, true};
    opdi_nest_each(nest, opdi_loops_drop, &change);
    if (dim >= nest->ndim - nest->nreduce) { nest->nreduce--; }
    memmove(nest->sizes + dim, nest->sizes + dim + 1, (size_t)(nest->ndim - dim - 1) * sizeof *nest->sizes);
    nest->ndim--;
}
typedef struct opdi_across_check { int lane, reduced; bool close, unit, row; } opdi_across_check;
static void opdi_seen_across(opdi_access *access, void *user) {
    opdi_across_check *const check = (opdi_across_check *)user;
    const int64_t stride = access->strides[check->lane];
    check->close = check->close && (stride == 0 || stride == 1);
    check->unit = check->unit || stride == 1;
    check->row = check->row || access->strides[check->reduced] == 1;
}
/* Returns whether adjacent results of a reduction, along loop `lane`, read adjacent elements of the operands.  It is
   then faster to compute several results together. */
static bool opdi_nest_beside(opdi_nest *nest, int lane) {
    opdi_across_check check = {lane, nest->ndim - 1, true, false, false};
    if (nest->sizes[lane] < 4 || opdi_nest_open(nest, lane)) { return false; }
    opdi_expr_walk(nest->value, opdi_seen_across, &check);
    return check.close && check.unit && !(check.row && nest->sizes[check.reduced] >= 32);
}
/* Returns whether a reduction computes several results together, along the last loop that is not reduced. */
OPDI_INTERNAL bool opdi_nest_across(opdi_nest *nest) {
    const int lane = nest->ndim - nest->nreduce - 1;
    const bool sums = nest->reduction == OPDI_REDUCTION_SUM || nest->reduction == OPDI_REDUCTION_MAX ||
        nest->reduction == OPDI_REDUCTION_MIN;
    return sums && nest->order != OPDI_ORDER_ROW && lane >= 0 && nest->nreduce && opdi_nest_beside(nest, lane);
}
/* Moves a loop after all other loops that are not reduced. */
static void opdi_nest_order_last(opdi_nest *nest, int loop) {
    for (int k = loop; k + 1 < nest->ndim - nest->nreduce; k++) {
        opdi_loops_change change = {k, k + 1, 0, true};
        const int64_t size = nest->sizes[k];
        opdi_nest_each(nest, opdi_loops_swap, &change);
        nest->sizes[k] = nest->sizes[k + 1];
        nest->sizes[k + 1] = size;
    }
}
/* Finds a loop along which several results can be computed together, and makes it the last of the loops that are not
   reduced.  In a matrix product, such a loop has at least 16 iterations, and adjacent results are at most 8 elements
   apart. */
static void opdi_nest_order_across(opdi_nest *nest) {
    const int last = nest->ndim - nest->nreduce - 1;
    const bool sums = nest->reduction == OPDI_REDUCTION_SUM || nest->reduction == OPDI_REDUCTION_MAX ||
        nest->reduction == OPDI_REDUCTION_MIN;
    if (!sums || !nest->nreduce || last < 1 || nest->place || opdi_recording_now->open ||
        opdi_recording_now->loose) { return; }
    const bool product = opdi_nest_contracts(nest);
    if (product ? nest->sizes[last] > 4 : opdi_nest_beside(nest, last)) { return; }
    for (int i = last - 1; i >= 0; i--) {
        if (!(product ? nest->sizes[i] >= 16 && nest->out.strides[i] <= 8 : opdi_nest_beside(nest, i))) { continue; }
        opdi_nest_order_last(nest, i);
        return;
    }
}
/* Joins loops that can run as one loop, removes loops with one iteration, and makes the loop over adjacent elements the
   innermost. */
OPDI_INTERNAL void opdi_nest_order(opdi_nest *nest) {
    const opdi_access *const out = &nest->out;
    if (opdi_nest_stays(nest)) { return; }
    for (int i = nest->ndim - 1; i >= 0; i--) {    /* a reduction keeps at least one loop */
        const bool last = nest->nreduce == 1 && i == nest->ndim - 1;
        if (nest->sizes[i] == 1 && !last) { opdi_nest_drop(nest, i); }
    }
    for (int i = 0; i + nest->nreduce < nest->ndim && !nest->place; i++) {
        for (int k = 0; k + 1 + nest->nreduce < nest->ndim; k++) {
            opdi_loops_change change = {k, k + 1, 0, true};
            if (out->strides[k] >= out->strides[k + 1]) { continue; }
            opdi_nest_each(nest, opdi_loops_swap, &change);
            const int64_t size = nest->sizes[k];
            nest->sizes[k] = nest->sizes[k + 1];
            nest->sizes[k + 1] = size;
        }
    }
    for (int i = nest->ndim - 2; i >= 0; i--) {
        opdi_loops_change change = {i, i + 1, nest->sizes[i + 1], true};
        if (i == nest->ndim - nest->nreduce - 1) { continue; }     /* only one of the two loops is reduced, so they
                                                                      cannot be joined */
        opdi_nest_each(nest, opdi_loops_fit, &change);
        if (!change.fits) { continue; }
        nest->sizes[i + 1] *= nest->sizes[i];
        opdi_nest_drop(nest, i);
        if (i + 1 < nest->ndim) { i++; }
    }
    opdi_nest_order_across(nest);
}
