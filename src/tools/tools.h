//----------------------------------------------------------------------------------------------------------------------
//  >>tools_h      checks, optimizers, modules, the profiler: types that several files use
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_TOOLS_H)
#define OPDI_TOOLS_H
#include "../files/files.h"

//== optimizers ========================================================================================================

#if !defined(OPD_NO_TRAINING)
#if defined(OPDI_CORE)
struct opd_optimizer {                            /* a group, the first of which stands for all */
    struct opd_optimizer *next;                   /* its next group, or NULL */
    int kind, count;
    uint64_t number;                              /* in the process, from 1 */
    opd_sgd_options sgd;
    opd_adam_options adam;
    opd_tensor **params;                          /* [n], and [OPDI_STATES][n] state: none before the first step */
    opd_tensor **lists;                           /* [2 + OPDI_STATES][n] room for the arguments of one call */
    bool *begun;                                  /* [n]: has seen a step */
    size_t bytes;
};
#endif
#endif

//== modules ===========================================================================================================

#if !defined(OPD_NO_MODULES)
#if defined(OPDI_CORE)
typedef struct opdi_module_item {
    char *name;
    size_t bytes;                /* of the name, with its zero */
    opd_tensor *tensor;          /* a reference */
    opd_module_kind kind;
} opdi_module_item;
struct opd_module {
    int32_t refs;
    int64_t count, cap;
    opdi_module_item *items;     /* [cap] */
    int64_t *table;              /* [2 * cap] places of items by the hash of their names, -1: free */
};
#endif
#endif

//== profiler ==========================================================================================================

#if !defined(OPD_NO_PROFILER)
#if defined(OPDI_CORE)
typedef struct opdi_trace {
    struct opdi_trace *next, *parent;            /* in the order of their begins; the event around it */
    struct opdi_recorder *of;
    const char *name, *shapes;
    int64_t begin, end, inner;                    /* nanoseconds; inner: of the events inside; end -1: still runs */
    int64_t bytes, inner_bytes, sequence;
    uint32_t forward_thread;
    int32_t kind;
} opdi_trace;
/* The records that one thread writes.  Its lock is its own but at the end, when `closed` is set. */
typedef struct opdi_recorder {
    opdi_mutex lock;
    opd_profile *profile;
    opdi_arena arena;
    opdi_trace *first, *last, *open;
    int64_t lost;                                 /* events for which there was no memory or no room */
    uint32_t thread;
    bool closed;
    struct opdi_recorder *next;
} opdi_recorder;
struct opd_profile {
    int32_t refs;                                 /* the caller's, the observer's */
    uint64_t number;                              /* in the process: th->recorder_of */
    opd_profiler_options options;
    int64_t handle, start, stop, lost, events;
    int64_t taken;                                /* places of opdi_profile_most; counted without a lock */
    opdi_mutex lock;                              /* of what stands below, and of `lost` */
    bool closed;                                  /* an event that was about to begin at the stop comes too late */
    opdi_recorder *recorders;
    opd_profile_row *rows;
    int64_t nrows;
};
typedef struct opdi_profiler_state {
    opdi_mutex lock; opd_profile *running; uint64_t number;
} opdi_profiler_state;
#endif
#endif
#include "tools.prototypes.h"
#endif

