//----------------------------------------------------------------------------------------------------------------------
//  >>collective_h process groups: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_COLLECTIVE_H)
#define OPDI_COLLECTIVE_H
#include "../compiler/compiler.h"

//== groups ============================================================================================================

#if !defined(OPD_NO_COLLECTIVES)
#if defined(OPDI_CORE)
struct opd_group {
    opd_group *next;
    int32_t refs;                                 /* of the registry and of works */
    opdi_mutex lock;                              /* held while a function of the table runs */
    uint64_t calls;                               /* transfers so far */
    opd_group_desc desc;
    bool moves;                                   /* memory of a device by the mover */
    bool gone;                                    /* unregistered: who still holds it is told so */
    opd_device device;
    opd_group_mover mover;
    char name[64], abandoned[300];                /* why this rank does not go on; "": it does */
};
/* The states of a work. */
enum { OPDI_WORK_RUNS = 0, OPDI_WORK_DONE, OPDI_WORK_FAILED };
struct opd_work {
    opd_work *next;                               /* in the list, while it runs or has failed */
    int32_t refs, state;
    bool listed, average;
    int8_t backend;                               /* whose memory it is: CPU also for what the table takes */
    opd_device device;                            /* and where that is */
    opd_group *group;                             /* a reference */
    opd_work *also;                               /* waited for, and given back, with this one */
    int64_t timeout_ms;                           /* 0: the group's */
    void *request;
    opd_transfer transfer;
    int64_t *counts;                              /* [2 * size] of an ALL_TO_ALL */
    uint64_t number;                              /* of the group's transfers */
    struct opdi_told *told;                       /* of a SEND or RECV of a checked group */
    opdi_storage *read, *written;                 /* references, or NULL */
    char message[400];                            /* why it failed */
};
typedef struct opdi_group_list {
    opdi_mutex lock; opd_group *groups; opd_work *works;
} opdi_group_list;
#endif
#endif

//== works =============================================================================================================

#if !defined(OPD_NO_COLLECTIVES)
#if defined(OPDI_CORE)
/* A rank that sends and one that receives tell each other of what, beside the memory itself, for which neither waits:
   the sender before it, under its tag, the receiver under one of its own. */
enum { OPDI_TOLD_DEVICE, OPDI_TOLD_DTYPE, OPDI_TOLD_COUNT, OPDI_TOLD };
typedef struct opdi_told {
    int64_t mine[OPDI_TOLD], its[OPDI_TOLD];
    void *sent, *taken;                           /* requests that run */
    int moved;                                    /* what `test` said of the memory itself: 0: not yet */
    char why[200];                                /* why that failed */
} opdi_told;
#endif
#endif

//== data parallel =====================================================================================================

#if !defined(OPD_NO_COLLECTIVES)
#if defined(OPDI_CORE)
typedef struct opdi_parallel_param {
    opd_parallel *parallel;
    opd_tensor *tensor;          /* a reference */
    int64_t hook, offset;        /* in its bucket, in elements */
    int index, bucket;
    bool seen, asked;            /* its gradient has arrived; sharded: a backward has gathered it again */
    bool added;                  /* one of before has, which did not communicate */
    int64_t *sizes, numel, part; /* sharded: the whole one's sizes; elements of it and of a rank's part */
    int ndim;
} opdi_parallel_param;
typedef struct opdi_bucket { opd_tensor *flat; opd_work *work; int64_t numel; int count, ready; } opdi_bucket;
struct opd_parallel {
    opd_group *group;
    opdi_parallel_param *params;                  /* [count] */
    opdi_bucket *buckets;                         /* [count + 1], of which nbuckets are used */
    int64_t *order;                               /* [count] indices of params, as their gradients arrive */
    opd_tensor **buffers;                         /* [nbuffers] references */
    int count, room, nbuffers, nbuckets, next, arrived;       /* next: the first bucket that is not on its way */
    int missing;                                  /* the first parameter without a gradient, plus one; 0: none is */
    int64_t bucket_bytes, backward, samples, total;
    bool find_unused, sync, ordered, runs, sharded;
    bool even;                                    /* all ranks have as many of the total */
    bool added;                                   /* gradients were added up without communication */
    double share;                                 /* and which part of all examples they count as; 0: nobody said */
    double rescaled;                              /* what those that were added up were multiplied by until now */
    int32_t refs;                                 /* sharded: the caller's, of nodes, of gathered memory */
    opd_parallel *following;                      /* in the list of those sharded */
    opd_work *pending;                            /* sharded: the last gradient that is on its way, held */
    struct opdi_gathered *kept;                   /* sharded: the last tensor that will be gathered again */
};
#endif
#endif

//== sharded ===========================================================================================================

#if !defined(OPD_NO_COLLECTIVES)
#if defined(OPDI_CORE)
/* What is kept of a saved tensor: itself, or how it lies in a parameter that can be gathered again. */
typedef struct opdi_gathered {
    opd_tensor *kept;
    opd_parallel *parallel;
    int64_t offset, dims[2 * OPD_MAX_DIMS];
    int index, ndim;
    uint32_t version;            /* of this rank's part */
    int64_t backward;            /* the last one that has asked for it */
    opd_tensor *ahead;           /* on its way, before it was asked for; a reference */
    struct opdi_gathered *before, *after;         /* of this parallel, in the order in which they were kept */
} opdi_gathered;
#endif
#endif

//== operators =========================================================================================================

#if !defined(OPD_NO_COLLECTIVES)
#if defined(OPDI_OPERATORS)
enum { OPDI_C10D_OPS = 22 };
#endif
#endif
#include "collective.prototypes.h"
#endif

