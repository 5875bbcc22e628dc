#include "base.h"

//== memory plans for repeated runs of a graph =========================================================================
//
//  A run of a graph records which blocks of data it allocates, and when each is freed.  If the next run makes the same
//  steps in the same order, the blocks that this run itself frees come from one piece of memory, the region.  Blocks of
//  a region that are not in use at the same time share bytes.  Every allocation and free is compared with the record.
//  From the first difference on, blocks come from opdi_alloc, and the record of this run becomes the plan for the next
//  run.  So blocks that are in use never overlap, however long they are held.  The region is freed with the last of its
//  blocks.

/* If OPDI_PLANNING is 0, all blocks of data come from opdi_alloc. */
#if !defined(OPDI_PLANNING)
#if defined(OPD_NO_CACHE)
#define OPDI_PLANNING 0
#else
#define OPDI_PLANNING 1
#endif
#endif

OPDI_INTERNAL char *opdi_data_alloc(int64_t bytes);
OPDI_INTERNAL void opdi_data_free(char *data, int64_t bytes);

#define OPDI_MAX_LIVE_RANGES 4096                 /* the first 4096 blocks of a run are planned, later blocks are not */
#define OPDI_NEVER INT32_MAX
#define OPDI_MISSES 8                             /* after 8 runs in a row that differ from their plans, no plan is
                                                     made */

/* The header in front of a block's data, in OPDI_DATA_HEADER bytes. */
typedef struct opdi_data_header {
    opdi_region *region;         /* NULL if the block is not in a region */
    uint32_t run;                /* number of the run that asked for the block; 0: none */
    int32_t range;               /* index of the block's range in the plan's `ranges` */
} opdi_data_header;
#define OPDI_DATA_HEADER 16
static opdi_planned opdi_planned_taken;           /* replaces a graph's plan while a run uses the plan */
static uint32_t opdi_runs;

static inline opdi_data_header *opdi_data_header_of(char *data) {
    return (opdi_data_header *)(void *)(data - OPDI_DATA_HEADER);
}
/* Returns how many bytes of a region a block with `bytes` bytes of data takes up.  The data begins at a multiple of 64,
   and the header is in front of the data. */
static inline int64_t opdi_planned_extent(int64_t bytes) {
    return (bytes + (bytes < 8192 ? OPDI_DATA_HEADER : OPDI_DATA_OFFSET) + 63) & ~(int64_t)63;
}
static inline char *opdi_region_data(opdi_region *region, int64_t at) {
    return (char *)(((uintptr_t)(region + 1) + OPDI_DATA_HEADER + 63) & ~(uintptr_t)63) + at;
}
/* Makes a region for blocks that take up `bytes` bytes together.  The bytes of the region count as cached.  Returns
   NULL and sets an error if memory runs out. */
static opdi_region *opdi_region_make(int64_t bytes) {
    const size_t size = (size_t)bytes + sizeof(opdi_region) + OPDI_DATA_HEADER + 64;
    opdi_region *region = (opdi_region *)opdi_fresh(size);
    if (!region) { return NULL; }
    region->bytes = (int64_t)size;
    region->refs = 1;
    (void)OPDI_ADD(&opdi_regions_idle, region->bytes);
    return region;
}
/* Counts the bytes of a region as in use if `live` is true, else as cached. */
static void opdi_region_count(opdi_thread *thread, const opdi_region *region, bool live) {
    (void)OPDI_ADD(&opdi_regions_idle, live ? -region->bytes : region->bytes);
    opdi_live_count(thread, live ? region->bytes : -region->bytes);
}
static void opdi_region_free(opdi_region *region) {
    (void)OPDI_ADD(&opdi_regions_idle, -region->bytes);
    opdi_raw_free(region, (size_t)region->bytes);
}
/* Drops a reference to a region that counts as in use, and frees the region with the last reference. */
static void opdi_region_drop(opdi_region *region) {
    if (opdi_ref_down(&region->refs) != 0) { return; }
    opdi_region_count(opdi_self(), region, false);
    opdi_region_free(region);
}

/* Stops following the plan, because this step of the run differs from the plan.  Forgets the recorded steps that have
   not happened yet. */
static void opdi_planned_leave(opdi_planned *planned) {
    planned->follows = false;
    planned->count = planned->next;
    for (int32_t i = 0; i < planned->count; i++) {
        opdi_live_range *const range = &planned->ranges[i];
        if (range->died >= planned->clock) { range->died = OPDI_NEVER; }
    }
}
/* Makes room for one more record of a block in planned->ranges.  Returns 0, or -1 and sets an error. */
static int opdi_planned_grow(opdi_planned *planned) {
    const int32_t cap = planned->cap ? 2 * planned->cap : 32;
    if (planned->next < planned->cap) { return 0; }
    opdi_live_range *const ranges = (opdi_live_range *)opdi_alloc_fresh((size_t)cap * sizeof *ranges);
    if (!ranges) { return -1; }
    if (planned->count) { memcpy(ranges, planned->ranges, (size_t)planned->count * sizeof *ranges); }
    opdi_free_fresh(planned->ranges, (size_t)planned->cap * sizeof *ranges);
    planned->ranges = ranges;
    planned->cap = cap;
    return 0;
}
/* Returns the live range of the block of `bytes` bytes that a run now asks for: the planned one, or a new one if
   the run differs from the plan.  Returns NULL and sets an error if memory runs out. */
static opdi_live_range *opdi_planned_next(opdi_planned *planned, int64_t bytes) {
    opdi_live_range *range = planned->next < planned->count ? planned->ranges + planned->next : NULL;
    if (planned->follows && (!range || range->born != planned->clock || range->bytes != bytes)) {
        opdi_planned_leave(planned);
    }
    if (!planned->follows) {
        if (opdi_planned_grow(planned)) { return NULL; }
        range = planned->ranges + planned->next;
        range->bytes = bytes;
        range->at = -1;
        range->born = planned->clock;
        range->died = OPDI_NEVER;
        planned->count++;
    }
    planned->clock++;
    planned->next++;
    return range;
}
static void opdi_planned_freed(opdi_planned *planned, int32_t at) {
    opdi_live_range *const range = planned->ranges + at;
    if (planned->follows && range->died != planned->clock) { opdi_planned_leave(planned); }
    range->died = planned->clock++;
}

/* Allocates memory for the data of a tensor, if it has more than OPDI_INLINE_DATA_MAX bytes, or for a kernel's scratch
   data.  Returns NULL and sets an error if memory runs out. */
OPDI_NOINLINE OPDI_INTERNAL char *opdi_data_alloc(int64_t bytes) {
    opdi_thread *const thread = opdi_self();
    opdi_planned *const planned = thread->planned;
    opdi_region *region = NULL;
    opdi_data_header front = {NULL, 0, 0};
    char *data = NULL;
    if (planned && planned->next < OPDI_MAX_LIVE_RANGES) {
        const opdi_live_range *const range = opdi_planned_next(planned, bytes);
        if (!range) { return NULL; }
        front.run = thread->run;
        front.range = planned->next - 1;
        if (planned->follows && range->at >= 0) {
            region = front.region = planned->region;
            data = opdi_region_data(region, range->at);
            opdi_ref_up(&region->refs);
        }
    }
    if (!region) {
        char *const block = (char *)opdi_alloc((size_t)bytes + OPDI_DATA_OFFSET);
        if (!block) { return NULL; }
        data = block + OPDI_DATA_OFFSET;
    }
    *opdi_data_header_of(data) = front;
    return data;
}
OPDI_NOINLINE OPDI_INTERNAL void opdi_data_free(char *data, int64_t bytes) {
    opdi_thread *const thread = opdi_self();
    const opdi_data_header front = *opdi_data_header_of(data);
    if (front.run && front.run == thread->run) { opdi_planned_freed(thread->planned, front.range); }
    if (front.region) { opdi_region_drop(front.region); }
    else { opdi_free(data - OPDI_DATA_OFFSET, (size_t)bytes + OPDI_DATA_OFFSET); }
}

OPDI_COLD_BEGIN

typedef struct opdi_ranked_range { double rank; int32_t range, placed; } opdi_ranked_range;
/* Compares live ranges for qsort: by rank, the highest first, then by time, the earliest first. */
static int opdi_live_range_order(const void *a, const void *b) {
    const opdi_ranked_range *const first = (const opdi_ranked_range *)a, *const second = (const opdi_ranked_range *)b;
    const int order = (first->rank < second->rank) - (first->rank > second->rank);
    return order ? order : (first->range > second->range) - (first->range < second->range);
}
/* Returns the offset at which a block fits best between blocks that already have offsets.  ranked[0 .. count).placed
   lists those blocks in the order of their offsets.  Blocks that are in use at another time are ignored. */
static int64_t opdi_live_range_place(const opdi_live_range *ranges, const opdi_ranked_range *ranked, int32_t count,
                                     const opdi_live_range *range) {
    const int64_t extent = opdi_planned_extent(range->bytes);
    int64_t best = -1, least = INT64_MAX, end = 0;
    for (int32_t i = 0; i < count; i++) {
        const opdi_live_range *const other = &ranges[ranked[i].placed];
        if (other->born >= range->died || range->born >= other->died) { continue; }
        if (other->at - end >= extent && other->at - end < least) {
            best = end;
            least = other->at - end;
        }
        end = OPDI_MAX(end, other->at + opdi_planned_extent(other->bytes));
    }
    return best < 0 ? end : best;
}
/* Gives all blocks that are freed in a run their offsets, one after another, and returns how many bytes they take up
   together.  `way` tells which blocks come first: 0: the largest; 1: those with the largest product of size and time in
   use; 2: those that are in use for the longest time. */
static int64_t opdi_planned_places(opdi_planned *planned, opdi_ranked_range *ranked, int way) {
    opdi_live_range *const ranges = planned->ranges;
    int64_t total = 0;
    int32_t count = 0;
    for (int32_t i = 0; i < planned->count; i++) {
        const double bytes = (double)ranges[i].bytes, time = (double)ranges[i].died - (double)ranges[i].born;
        ranges[i].at = -1;                        /* replaces an offset from an earlier plan */
        if (ranges[i].died == OPDI_NEVER) { continue; }
        ranked[count].rank = way == 0 ? bytes : way == 1 ? bytes * time : time;
        ranked[count++].range = i;
    }
    if (count) { qsort(ranked, (size_t)count, sizeof *ranked, opdi_live_range_order); }
    for (int32_t i = 0, k; i < count; i++) {
        opdi_live_range *const range = &ranges[ranked[i].range];
        range->at = opdi_live_range_place(ranges, ranked, i, range);
        total = OPDI_MAX(total, range->at + opdi_planned_extent(range->bytes));
        for (k = i; k > 0 && ranges[ranked[k - 1].placed].at > range->at; k--) {
            ranked[k].placed = ranked[k - 1].placed;
        }
        ranked[k].placed = ranked[i].range;
    }
    return total;
}

/* Returns the largest number of bytes that are in use at one time of a run.  events[i] is the index of the range that
   begins or ends at step i. */
static int64_t opdi_planned_most(const opdi_planned *planned, const int32_t *events) {
    int64_t sum = 0, most = 0;
    for (int32_t i = 0; i < planned->steps; i++) {
        const opdi_live_range *const range = &planned->ranges[events[i]];
        sum += range->born == i ? range->bytes : -range->bytes;
        most = OPDI_MAX(most, sum);
    }
    return most;
}
/* Gives the blocks offsets, and returns the size of the region.  Tries three orders of the blocks (the ways of
   opdi_planned_places).  An order is accepted if the region, together with the blocks that are not freed in the run,
   needs at most 5% more bytes than are ever in use at one time.  Returns 0 if no order is accepted. */
static int64_t opdi_planned_work(opdi_planned *planned, opdi_ranked_range *ranked, int32_t *events) {
    int64_t others = 0;
    for (int32_t i = 0; i < planned->count; i++) {
        const opdi_live_range *const range = &planned->ranges[i];
        events[range->born] = i;
        if (range->died == OPDI_NEVER) { others += range->bytes; } else { events[range->died] = i; }
    }
    const int64_t most = opdi_planned_most(planned, events);
    for (int way = 0; way < 3; way++) {
        const int64_t bytes = opdi_planned_places(planned, ranked, way);
        if (bytes + others <= most + most / 20) { return bytes; }
    }
    return 0;
}
/* Plans the memory of the next run from the record of this run, if `worth` is true.  Otherwise, or if memory runs out,
   the blocks of the next run get no offsets in a region. */
static void opdi_planned_place(opdi_planned *planned, bool worth) {
    const int mark = opd_error_mark();
    const size_t count = (size_t)planned->count, size = count * (sizeof(opdi_ranked_range) + 2 * sizeof(int32_t));
    opdi_ranked_range *const ranked = worth && count ? (opdi_ranked_range *)opdi_alloc(size) : NULL;
    int64_t bytes = 0;
    if (ranked) { bytes = opdi_planned_work(planned, ranked, (int32_t *)(void *)(ranked + count)); }
    if (ranked) { opdi_free(ranked, size); }
    if (planned->region && planned->bytes != bytes) {
        opdi_region_free(planned->region);
        planned->region = NULL;
    }
    if (bytes && !planned->region && !(planned->region = opdi_region_make(bytes))) { bytes = 0; }
    planned->bytes = bytes;
    planned->placed = worth && opd_ok();
    (void)opd_error_rewind(mark);
    for (int32_t i = 0; i < planned->count && !bytes; i++) { planned->ranges[i].at = -1; }
}

/* Begins a run of a graph on this thread; *home is the graph's plan.  Sets *run to NULL if the run is not planned:
   inside another run, while another run of the same graph is going on, or under opcheck.  Returns 0, or -1 and sets an
   error. */
OPDI_INTERNAL int opdi_planned_begin(opdi_thread *thread, opdi_planned **home, opdi_planned **run) {
    opdi_planned *planned = OPDI_ACQUIRE(home);
    *run = NULL;
    if (thread->planned || thread->poison || !OPDI_PLANNING) { return 0; }
    do {
        if (planned == &opdi_planned_taken) { return 0; }
    } while (!OPDI_EXCHANGE(home, &planned, &opdi_planned_taken));
    opdi_planned *const old = planned;
    if (!planned && (planned = (opdi_planned *)opdi_alloc(sizeof *planned)) != NULL) {
        memset(planned, 0, sizeof *planned);
    }
    if (planned && planned->bytes && !planned->region) { planned->region = opdi_region_make(planned->bytes); }
    if (!planned || (planned->bytes && !planned->region)) {
        OPDI_PUBLISH(home, old);
        return -1;
    }
    if (planned->region) { opdi_region_count(thread, planned->region, true); }
    planned->next = planned->clock = 0;
    planned->follows = true;
    do { thread->run = OPDI_ADD(&opdi_runs, 1); } while (!thread->run);
    thread->planned = *run = planned;
    return 0;
}
/* Ends a run, and plans the next run if this run differed from its plan.  If the run failed, its record is dropped. */
OPDI_INTERNAL void opdi_planned_end(opdi_thread *thread, opdi_planned **home, opdi_planned *planned, bool failed) {
    if (!planned) { return; }
    thread->planned = NULL;
    thread->run = 0;
    if (planned->region && OPDI_ACQUIRE(&planned->region->refs) == 1) {
        opdi_region_count(thread, planned->region, false);
    } else if (planned->region) {
        opdi_region_drop(planned->region);
        planned->region = NULL;
    }
    const bool like = planned->follows && planned->next == planned->count && planned->clock == planned->steps;
    if (failed) {
        planned->count = planned->steps = 0;
        opdi_planned_place(planned, false);
    } else if (!like) {
        if (planned->follows) { opdi_planned_leave(planned); }
        planned->steps = planned->clock;
        opdi_planned_place(planned, planned->misses < OPDI_MISSES);
        planned->misses = OPDI_MIN(planned->misses + 1, OPDI_MISSES);
    } else {
        if (!planned->placed) { opdi_planned_place(planned, true); }
        planned->misses = 0;
    }
    OPDI_PUBLISH(home, planned);
}
OPDI_INTERNAL void opdi_planned_free(opdi_planned *planned) {
    if (!planned || planned == &opdi_planned_taken) { return; }
    if (planned->region) { opdi_region_free(planned->region); }
    opdi_free_fresh(planned->ranges, (size_t)planned->cap * sizeof *planned->ranges);
    opdi_free(planned, sizeof *planned);
}
OPDI_COLD_END

