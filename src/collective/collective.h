//----------------------------------------------------------------------------------------------------------------------
//  >>collective_h process groups: types for several files
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_COLLECTIVE_H)
#define OPDI_COLLECTIVE_H
#include "../compiler/compiler.h"

//== groups ============================================================================================================

#if !defined(OPD_NO_COLLECTIVES)
struct opd_group {
    opd_group *next;
    int32_t refs;                                 /* number of references by the registry of groups and by works */
    opdi_mutex lock;                              /* held while a function of `desc` or `mover` runs */
    uint64_t calls;                               /* number of transfers begun so far */
    opd_group_desc desc;
    bool moves;                                   /* true: `mover` moves memory of `device` */
    bool gone;                                    /* true: the group was unregistered; calls that still use the group
                                                     fail */
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
    int8_t backend;                               /* the memory's backend; CPU also if the group's `desc` takes the
                                                     memory of the device */
    opd_device device;                            /* the memory's device */
    opd_group *group;                             /* a reference */
    opd_work *also;                               /* a work that is waited for and released together with this work */
    int64_t timeout_ms;                           /* 0: the time limit of the group */
    void *request;
    opd_transfer transfer;
    int64_t *counts;                              /* ALL_TO_ALL: the counts to send, then those to receive [2 * size] */
    uint64_t number;                              /* number of the transfer among the group's transfers */
    struct opdi_handshake *handshake;             /* only for a SEND or RECV in a checked group; else NULL */
    opdi_storage *read, *written;                 /* references to the storages that are read and written, or NULL */
    char message[400];                            /* the error message, if the transfer failed */
};
typedef struct opdi_group_list {
    opdi_mutex lock; opd_group *groups; opd_work *works;
} opdi_group_list;
#endif

//== collective operations that are running (opd_work) =================================================================

#if !defined(OPD_NO_COLLECTIVES)
/* In a checked group, two ranks that send and receive also exchange the device, dtype and count, without waiting for
   each other.  The sender sends these properties before the data, with the data's tag.  The receiver sends them with
   another tag. */
enum { OPDI_HANDSHAKE_DEVICE, OPDI_HANDSHAKE_DTYPE, OPDI_HANDSHAKE_COUNT, OPDI_HANDSHAKE };
typedef struct opdi_handshake {
    int64_t mine[OPDI_HANDSHAKE], its[OPDI_HANDSHAKE];
    void *sent, *taken;                           /* the running requests that send `mine` and receive `its`; NULL:
                                                     done */
    int moved;                                    /* last result of `test` for the data; 0: not done */
    char why[200];                                /* the error message, if moving the data failed */
} opdi_handshake;
#endif

//== data parallel =====================================================================================================

#if !defined(OPD_NO_COLLECTIVES)
typedef struct opdi_parallel_param {
    opd_parallel *parallel;
    opd_tensor *tensor;          /* a reference */
    int64_t hook, offset;        /* offset: position of the gradient in the bucket */
    int index, bucket;
    bool seen, asked;            /* seen: the gradient has arrived; asked: (sharded) a backward has gathered the
                                    parameter again */
    bool added;                  /* true: has a gradient of a backward without transfers */
    int64_t *sizes, numel, part; /* sharded: the sizes and the number of elements of the whole parameter, and the number
                                    of elements of each part */
    int ndim;
} opdi_parallel_param;
typedef struct opdi_bucket { opd_tensor *flat; opd_work *work; int64_t numel; int count, ready; } opdi_bucket;
typedef struct opdi_sharding_list { opdi_mutex lock; opd_parallel *first; } opdi_sharding_list;
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
    bool even;                                    /* true: all ranks have the same number of samples */
    bool added;                                   /* true: some gradients are old: from backwards without transfers */
    double share;                                 /* this rank's share of all samples, which is the weight of old
                                                     gradients; 0: not known */
    double rescaled;                              /* factor by which old gradients have been multiplied so far */
    int32_t refs;                                 /* sharded: number of references by the caller, by nodes and by
                                                     gathered memory */
    opd_parallel *following;                      /* next in the list of sharded objects */
    opd_work *pending;                            /* sharded: a reference to the newest reduction that is running */
    struct opdi_gathered *kept;                   /* sharded: the newest saved tensor of the list (see opdi_gathered) */
};
#endif

//== sharded data parallel training ====================================================================================

#if !defined(OPD_NO_COLLECTIVES)
/* A tensor saved for backward.  If it is a part of a gathered parameter, only its position is saved, and the parameter
   is gathered again; otherwise `kept` is the tensor. */
typedef struct opdi_gathered {
    opd_tensor *kept;
    opd_parallel *parallel;
    int64_t offset, dims[2 * OPD_MAX_DIMS];
    int index, ndim;
    uint32_t version;            /* version of this rank's part at the time of saving */
    int64_t backward;            /* number of the newest backward that needed the tensor */
    opd_tensor *ahead;           /* a reference to the parameter, if it was gathered ahead; else NULL */
    struct opdi_gathered *before, *after;         /* previous and next saved tensor in the parallel's list */
} opdi_gathered;
#endif

//== operators =========================================================================================================

#if !defined(OPD_NO_COLLECTIVES)
OPDI_INTERNAL int opdi_wait_to_send(const opd_tensor *tensor);
enum { OPDI_C10D_OPS = 22 };
#endif
#include "collective.prototypes.h"
#endif

