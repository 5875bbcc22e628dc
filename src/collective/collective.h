//----------------------------------------------------------------------------------------------------------------------
//  >>collective_h process groups: types for several files
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_COLLECTIVE_H)
#define OPDI_COLLECTIVE_H
#include "../compiler/compiler.h"

//== groups ============================================================================================================

#if !defined(OPD_NO_COLLECTIVES)
#if defined(OPDI_CORE)
struct opd_group {
    opd_group *next;
    int32_t refs;                                 /* references of the registry and of works */
    opdi_mutex lock;                              /* held while a function of `desc` or `mover` runs */
    uint64_t calls;                               /* number of transfers begun so far */
    opd_group_desc desc;
    bool moves;                                   /* `mover` moves memory of `device` */
    bool gone;                                    /* unregistered: calls that still use it fail */
    opd_device device;
    opd_group_mover mover;
    char name[64], abandoned[300];                /* abandoned: why this rank stopped, or "" */
};
/* The states of a work, which is a transfer that was begun. */
enum { OPDI_WORK_RUNS = 0, OPDI_WORK_DONE, OPDI_WORK_FAILED };
struct opd_work {
    opd_work *next;                               /* next in the list of works that run or have failed */
    int32_t refs, state;
    bool listed, average;
    int8_t backend;                               /* backend of its memory, or CPU if the group's `desc` takes the
                                                     device's memory */
    opd_device device;                            /* device of its memory */
    opd_group *group;                             /* a reference */
    opd_work *also;                               /* a work that is waited for and released together with this work */
    int64_t timeout_ms;                           /* 0: the group's time limit */
    void *request;
    opd_transfer transfer;
    int64_t *counts;                              /* of an ALL_TO_ALL: [2 * size] */
    uint64_t number;                              /* its number among the group's transfers */
    struct opdi_handshake *handshake;             /* of a SEND or RECV in a checked group; else NULL */
    opdi_storage *read, *written;                 /* references to the memory it uses, or NULL */
    char message[400];                            /* the error, if it failed */
};
typedef struct opdi_group_list {
    opdi_mutex lock; opd_group *groups; opd_work *works;
} opdi_group_list;
#endif
#endif

//== collective operations that are running (opd_work) =================================================================

#if !defined(OPD_NO_COLLECTIVES)
#if defined(OPDI_CORE)
/* In a checked group, two ranks that send and receive also send each other the device, dtype and count, without
   waiting for each other.  The sender sends them before the data, under the data's tag; the receiver uses another
   tag. */
enum { OPDI_HANDSHAKE_DEVICE, OPDI_HANDSHAKE_DTYPE, OPDI_HANDSHAKE_COUNT, OPDI_HANDSHAKE };
typedef struct opdi_handshake {
    int64_t mine[OPDI_HANDSHAKE], its[OPDI_HANDSHAKE];
    void *sent, *taken;                           /* running requests: what this rank sends, receives */
    int moved;                                    /* last result of `test` for the data; 0: not done */
    char why[200];                                /* the error message, if moving the data failed */
} opdi_handshake;
#endif
#endif

//== data parallel =====================================================================================================

#if !defined(OPD_NO_COLLECTIVES)
#if defined(OPDI_CORE)
typedef struct opdi_parallel_param {
    opd_parallel *parallel;
    opd_tensor *tensor;          /* a reference */
    int64_t hook, offset;        /* offset: of its gradient in the bucket */
    int index, bucket;
    bool seen, asked;            /* seen: the gradient has arrived; asked: (sharded) a backward has gathered the
                                    parameter again */
    bool added;                  /* has a gradient of a backward without transfers */
    int64_t *sizes, numel, part; /* sharded: sizes: of the whole parameter; numel: its elements; part: the elements of
                                    each part */
    int ndim;
} opdi_parallel_param;
typedef struct opdi_bucket { opd_tensor *flat; opd_work *work; int64_t numel; int count, ready; } opdi_bucket;
struct opd_parallel {
    opd_group *group;
    opdi_parallel_param *params;                  /* [count] */
    opdi_bucket *buckets;                         /* [count + 1], of which nbuckets are used */
    int64_t *order;                               /* [count]: indices of params, in the order in which gradients
                                                     arrive */
    opd_tensor **buffers;                         /* [nbuffers]: references */
    int count, capacity, nbuffers, nbuckets, next, arrived;   /* next: first bucket that was not sent */
    int missing;                                  /* 1 + the index of the first parameter without a gradient, or 0 */
    int64_t bucket_bytes, backward, samples, total;
    bool find_unused, sync, ordered, runs, sharded;
    bool even;                                    /* all ranks have the same number of samples */
    bool added;                                   /* some gradients are from backwards without transfers */
    double share;                                 /* this rank's share of all samples, the weight of these gradients; 0:
                                                     not known */
    double rescaled;                              /* factor by which these gradients have been multiplied so far */
    int32_t refs;                                 /* sharded: references of the caller, of nodes, and of gathered
                                                     memory */
    opd_parallel *following;                      /* next in the list of sharded objects */
    opd_work *pending;                            /* sharded: a reference to the newest reduction that is running */
    struct opdi_gathered *kept;                   /* sharded: newest saved tensor to gather again */
};
#endif
#endif

//== sharded data parallel training ====================================================================================

#if !defined(OPD_NO_COLLECTIVES)
#if defined(OPDI_CORE)
/* A tensor saved for backward: the tensor itself, or its position in a parameter that can be gathered again. */
typedef struct opdi_gathered {
    opd_tensor *kept;
    opd_parallel *parallel;
    int64_t offset, dims[2 * OPD_MAX_DIMS];
    int index, ndim;
    uint32_t version;            /* version of this rank's part at the time of saving */
    int64_t backward;            /* number of the newest backward that needed it */
    opd_tensor *ahead;           /* the parameter, if gathered ahead; a reference */
    struct opdi_gathered *before, *after;         /* previous and next saved tensor in the list */
} opdi_gathered;
#endif
#endif

//== operators =========================================================================================================

#if !defined(OPD_NO_COLLECTIVES)
OPDI_SHARED int opdi_wait_to_send(const opd_tensor *tensor);
#if defined(OPDI_OPERATORS)
enum { OPDI_C10D_OPS = 22 };
#endif
#endif
#include "collective.prototypes.h"
#endif

