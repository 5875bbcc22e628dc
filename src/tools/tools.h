//----------------------------------------------------------------------------------------------------------------------
//  >>tools_h      checks, optimizers, modules, the profiler: types for several files
//----------------------------------------------------------------------------------------------------------------------

#if !defined(OPDI_TOOLS_H)
#define OPDI_TOOLS_H
#include "../files/files.h"

//== sample calls ======================================================================================================

#if !defined(OPD_NO_CHECKING)
/* Layouts of the tensors in sample calls.  LAST: channels last, of tensors with 4 or 5 dims. */
typedef enum opdi_sample_layouts {
    OPDI_SAMPLE_CONTIGUOUS, OPDI_SAMPLE_TRANSPOSED, OPDI_SAMPLE_SLICED, OPDI_SAMPLE_LAST, OPDI_SAMPLE_LAYOUTS
} opdi_sample_layouts;
typedef struct opdi_sample {
    const opd_op *op;
    opd_device device;
    opd_scalar_type dtype;                        /* of tensors without a letter for another one */
    int layout;                                   /* an opdi_sample_layouts */
    opd_value args[OPD_MAX_ARGS];                 /* OPD_TAG_DEFAULT: not given */
    const char *from, *at;                        /* the text of this call, and what is not read yet */
    size_t length;
    int seed, ntensors;                           /* the numbers of tensors so far, and in the call */
    bool images, typed;                           /* there is a tensor of 4 or 5 dims, and one of the dtype `dtype` */
} opdi_sample;
#endif

//== optimizers ========================================================================================================

#if !defined(OPD_NO_TRAINING)
struct opd_optimizer {                            /* a group of parameters; the first group is the optimizer */
    struct opd_optimizer *next;                   /* the next group, or NULL */
    int kind, count;
    int32_t refs;                                 /* of the first group: the program has one reference, and each step
                                                     has one */
    uint64_t number;                              /* number of the optimizer in this process, from 1 */
    opd_sgd_options sgd;
    opd_adam_options adam;
    opd_tensor **params;                          /* [n] parameters, then [OPDI_STATES][n] states, which are NULL before
                                                     the first step */
    opd_tensor **lists;                           /* [2 + OPDI_STATES][n]: the arguments of one call of the operator */
    bool *begun;                                  /* [n]: true if the parameter has taken a step */
    size_t bytes;
};
#endif

//== modules ===========================================================================================================

#if !defined(OPD_NO_MODULES)
typedef struct opdi_module_item {
    char *name;
    size_t bytes;                /* length of the name, with its final 0 */
    opd_tensor *tensor;          /* a reference */
    opd_module_kind kind;
} opdi_module_item;
struct opd_module {
    int32_t refs;
    uint32_t changes;            /* how often opd_module_set has replaced a tensor */
    int64_t count, cap;
    opdi_module_item *items;     /* [cap] */
    int64_t *table;              /* [2 * cap]: indices of items by the hash of their names; -1: free */
};
#endif

//== quantising =======================================================================================================

#if !defined(OPD_NO_MODULES)
enum { OPDI_RANGE_MINMAX, OPDI_RANGE_HISTOGRAM, OPDI_RANGE_PERCENTILE };
/* What a text such as "int8, group 32, static, percentile 99.9" says. */
typedef struct opdi_quantize_how {
    opd_scalar_type blocks;      /* the dtype in blocks; OPD_DTYPE_NONE: integers */
    int bits;                    /* of integers: 4 or 8 */
    int64_t group;               /* 0: a scale for each row */
    int64_t least, most;         /* the limits of the integers that are stored */
    bool asymmetric, dynamic, fixed;              /* fixed: static */
    int ranges;                  /* OPDI_RANGE_...; -1: not said */
    double percent;
} opdi_quantize_how;
typedef struct opdi_integers { opd_tensor *codes, *scales, *zeros; } opdi_integers;
/* The numbers that the inputs of a layer had so far.  counts: in a histogram, how many numbers are in each of
   OPDI_RANGE_BINS equal parts from low to high; a reference, or NULL. */
#define OPDI_RANGE_BINS 2048
typedef struct opdi_input_range {
    bool seen;
    float low, high;
    opd_tensor *counts;
} opdi_input_range;
#if !defined(OPD_NO_GRAPHS)
/* A graph to be quantised.  run: runs `graph`, or a changed copy of it, with other tensors of the module, as
   opd_program_run does; NULL: the graph's inputs are the module's tensors and then the inputs.  accept: takes the new
   graph before the module changes, or returns -1 and sets an error; may be NULL. */
typedef struct opdi_quantize_source {
    const char *who;
    const opd_graph *graph;
    opd_module *module;
    int (*run)(void *user, const opd_graph *graph, opd_tensor *const *tensors, const opd_value *inputs, int ninputs,
               opd_value *outputs, int cap);
    int (*accept)(void *user, opd_graph *graph);
    void *user;
} opdi_quantize_source;
/* An input of a graph that is recorded anew: the sizes that it has, and a value with its open sizes. */
typedef struct opdi_again_input {
    const char *name;
    opd_scalar_type dtype;
    int ndim;
    int64_t sizes[OPD_MAX_DIMS];
    const opdi_gvalue *value;
} opdi_again_input;
#endif
#endif

//== profiler ==========================================================================================================

#if !defined(OPD_NO_PROFILER)
/* The time of an event on a device.  from, to: events of the device around it, id 0 if not recorded or freed. */
typedef struct opdi_device_times { opd_device_event from, to; int64_t ns, inner; } opdi_device_times;
typedef struct opdi_trace {
    struct opdi_trace *next, *parent;            /* next: the event that began next; parent: the event around this
                                                    event */
    struct opdi_recorder *of;
    const char *name, *shapes;
    int64_t begin, end, inner;                    /* begin, end: in ns (end: -1 while the event runs); inner: time of
                                                     the events inside this event */
    int64_t bytes, inner_bytes, sequence;
    uint32_t forward_thread;
    int32_t kind;
    opdi_device_times *device;                    /* NULL if not measured */
} opdi_trace;
/* The records of one thread.  Only this thread locks the recorder, until `closed` is set at the end. */
typedef struct opdi_recorder {
    opdi_mutex lock;
    opd_profile *profile;
    opdi_arena arena;
    opdi_trace *first, *last, *open;
    int64_t lost;                                 /* number of events that were not recorded: no memory, or too many
                                                     events */
    uint32_t thread;
    bool closed;
    struct opdi_recorder *next;
} opdi_recorder;
struct opd_profile {
    int32_t refs;                                 /* number of references by the caller and by the observer */
    uint64_t number;                              /* number of the profile in this process; compared with
                                                     opdi_thread.recorder_of */
    opd_profiler_options options;
    int64_t handle, start, stop, lost, events;
    int64_t taken;                                /* number of records that were asked for; counted without a lock */
    opdi_mutex lock;                              /* protects the members below, and `lost` */
    bool closed;                                  /* true: events that begin now are not recorded */
    opdi_recorder *recorders;
    opd_profile_row *rows;
    int64_t *device_ns;                           /* [nrows]: the device's time of each row; NULL if not measured */
    int64_t nrows;
    opd_device device;                            /* valid if `timed` */
    int32_t timed;                                /* 1: times on the device are measured */
    int64_t times;                                /* number of events that were measured on the device */
};
typedef struct opdi_profiler_state {
    opdi_mutex lock; opd_profile *running; uint64_t number;
} opdi_profiler_state;
#endif
#include "tools.prototypes.h"
#endif

