//----------------------------------------------------------------------------------------------------------------------
//  >>api:observers  who is told of calls; the profiler
//----------------------------------------------------------------------------------------------------------------------

/* What can be observed: calls of operators (not redispatches), backward nodes, spans that a program names; custom
   functions are spans with arguments. */
enum { OPD_OBSERVE_CALL = 1, OPD_OBSERVE_BACKWARD = 2, OPD_OBSERVE_SPAN = 4 };

/* What a callback is told.  It and all it points to belong to the call: copy what is to stay. */
typedef struct opd_event {
    int kind;                    /* OPD_OBSERVE_* */
    const char *name;            /* "aten::add", without overload; "AddBackward0"; a span's */
    opd_op *op;                  /* what is called; NULL for nodes and spans */
    const opd_value *args;       /* in schema order, defaults filled in; of a node: one list, its gradients */
    int nargs;
    const opd_value *rets;       /* at the end, NULL when it failed; of a node: one list, what it gives */
    int nrets;
    opd_code error;              /* at the end: OPD_OK, or what is pending */
    const char *message;         /* its text, "" without one */
    int64_t sequence;            /* autograd's number: of the node that this call may record, of this node; or -1 */
    uint64_t id;                 /* of this event in the process */
    uint32_t thread;             /* 1, 2, ... */
    uint32_t forward_thread;     /* of a node: the thread that recorded it; 0 otherwise */
} opd_event;

/* Follows at::RecordFunctionCallback.  What begin returns is handed to the end that belongs to it; either may be NULL.
   Callbacks run on the thread of the call with grad mode off; what they do is not observed, and key state, scopes and
   a pending error are as before when they return.  An error of theirs is a warning in the log, and the call goes on. */
typedef struct opd_observer {
    void *(*begin)(const opd_event *event, void *user);
    void (*end)(const opd_event *event, void *context, void *user);
    void *user;
    void (*destroy)(void *user); /* once it is removed and the last event that it saw begin has ended; may be NULL */
    double sampling;             /* probability that an event is observed; 0 or 1: each one */
    unsigned kinds;              /* OPD_OBSERVE_*, or 0: all */
} opd_observer;

/* Adds an observer of every thread, or of the calling one until it ends: at most 16 of each.  The struct is copied.
   Takes effect with the next event; those of all threads are told first, each in the order of adding.  A handle, or 0
   with an error.  Any thread, also in callbacks and under calls of others. */
OPD_API int64_t opd_observer_add(const opd_observer *observer);
OPD_API int64_t opd_observer_add_local(const opd_observer *observer);
/* Takes it away, or lets it rest; an event that it saw begin is still ended.  False: no such handle here. */
OPD_API bool opd_observer_remove(int64_t handle);
OPD_API bool opd_observer_enable(int64_t handle, bool on);
/* Switches on or off that events of this thread are observed.  Returns what it was. */
OPD_API bool opd_observe_set(bool on);
/* A stretch of the program as an event.  The name must stay until the span is closed, on the same thread.  NULL when
   nobody observes, or with an error when memory is out; NULL may be closed. */
typedef struct opd_span opd_span;
OPD_API opd_span *opd_span_open(const char *name);
OPD_API void opd_span_close(opd_span *span);

/* Orders of a profile's rows, largest first. */
typedef enum opd_profile_order {
    OPD_PROFILE_BY_SELF = 0, OPD_PROFILE_BY_TOTAL, OPD_PROFILE_BY_CALLS, OPD_PROFILE_BY_BYTES
} opd_profile_order;
typedef struct opd_profiler_options {
    bool shapes;                 /* sizes of tensor arguments: rows are by name and shapes */
    bool this_thread;            /* not the others; it is stopped there too */
    opd_profile_order order;
} opd_profiler_options;
/* All events with one name.  Times in nanoseconds; self is without the events inside.  bytes: handed out by the
   allocator to the thread meanwhile, and, of spans "moves all_reduce" and the like, which collectives open, what this
   rank moves. */
typedef struct opd_profile_row {
    const char *name, *shapes;   /* "[[2, 3], [], []]", [] for what is no tensor; NULL when not asked for */
    int64_t calls, total_ns, self_ns, bytes, self_bytes;
} opd_profile_row;
typedef struct opd_profile opd_profile;
/* torch.profiler: one at a time in a process.  Options NULL: all zero.  It keeps the first 10 million events (about
   1 GB), and counts those that came later or found no memory.  0, or -1 with an error. */
OPD_API int opd_profiler_begin(const opd_profiler_options *options);
/* Ends it; events that still run end here, and a warning says how many are missing.  The caller frees the profile.
   NULL with an error: none was started, or no memory. */
OPD_API opd_profile *opd_profiler_end(void);
OPD_API void opd_profile_free(opd_profile *profile);
OPD_API const opd_profile_row *opd_profile_rows(const opd_profile *profile, int64_t *count);
/* The rows as text; cut to cap bytes; returns the full length.  opd_profile_print: to stdout. */
OPD_API size_t opd_profile_table(const opd_profile *profile, char *buf, size_t cap);
OPD_API void opd_profile_print(const opd_profile *profile);
/* Chrome's trace format, which ui.perfetto.dev opens, with arrows from calls to their backward nodes.  0, or -1. */
OPD_API int opd_profile_write_trace(const opd_profile *profile, const char *path);

