//----------------------------------------------------------------------------------------------------------------------
//  >>api:observers  observers, which are called at operator calls; the profiler (may change)
//----------------------------------------------------------------------------------------------------------------------

/* Kinds of events that can be observed.
   OPD_OBSERVE_CALL: Calls of operators (not redispatches).
   OPD_OBSERVE_BACKWARD: Backward nodes.
   OPD_OBSERVE_SPAN: Spans that a program names, and custom functions, which are spans with arguments. */
enum { OPD_OBSERVE_CALL = 1, OPD_OBSERVE_BACKWARD = 2, OPD_OBSERVE_SPAN = 4 };

/* An event, as callbacks receive it.  The event and everything that it points to are valid only during the callback:
   copy the parts that you need later. */
typedef struct opd_event {
    int kind;                    /* OPD_OBSERVE_* */
    const char *name;            /* "aten::add" (no overload), "AddBackward0", or the name of a span */
    opd_op *op;                  /* the operator; NULL for nodes and spans */
    const opd_value *args;       /* the arguments in schema order, with defaults; for a node: one list, of the gradients
                                    that it receives */
    int nargs;
    const opd_value *rets;       /* the results, set at the end of the event; NULL after a failure; for a node: one
                                    list, of the gradients that it computes */
    int nrets;
    opd_code error;              /* set at the end of the event: OPD_OK, or the code of the pending error */
    const char *message;         /* the text of the error; "" without one */
    int64_t sequence;            /* the sequence number of the node or, for a call, of the node that it may record; else
                                    -1 */
    uint64_t id;                 /* number of this event in the process */
    uint32_t thread;             /* number of the thread: 1, 2, ... */
    uint32_t forward_thread;     /* for a node: the thread that recorded it; else 0 */
} opd_event;

/* An observer, like at::RecordFunctionCallback.  The pointer that `begin` returns is passed as `context` to `end` for
   the same event.  `begin` or `end` may be NULL.  Callbacks run on the thread of the call, with grad mode off.
   Operators that a callback calls are not observed.  Key state, scopes and a pending error are restored after a
   callback.  An error in a callback becomes a warning in the log, and the call continues. */
typedef struct opd_observer {
    void *(*begin)(const opd_event *event, void *user);
    void (*end)(const opd_event *event, void *context, void *user);
    void *user;
    opd_destroy destroy;         /* called after removal, when the last event that the observer saw has ended */
    double sampling;             /* probability that an event is observed; 0 or 1: every event */
    unsigned kinds;              /* OPD_OBSERVE_* bits, or 0 for all kinds */
} opd_observer;

/* opd_observer_add adds an observer of all threads.  opd_observer_add_local adds an observer of the calling thread
   until the thread ends.  At most 16 observers of all threads, and 16 of one thread, may exist.  The struct is copied.
   The observer takes effect with the next event.  Observers of all threads are called first, then the observers of the
   calling thread, both in the order in which they were added.  Any thread may call these functions, also in callbacks
   and during calls on other threads.  Both functions return a handle, or 0 and set an error. */
OPD_NEW int64_t opd_observer_add(const opd_observer *observer);
OPD_NEW int64_t opd_observer_add_local(const opd_observer *observer);
/* opd_observer_remove removes an observer.  opd_observer_enable pauses or continues an observer.  If the begin callback
   of an event has run, its end callback still runs afterwards.  Both return false if no observer of this thread or of
   all threads has the handle. */
OPD_NEW bool opd_observer_remove(int64_t handle);
OPD_NEW bool opd_observer_enable(int64_t handle, bool on);
/* Switches observing of this thread's events on or off.  Returns the previous setting. */
OPD_NEW bool opd_observe_set(bool on);
/* Opens a span: a named part of the program that observers see as an event.  The name must live until the span is
   closed.  Close the span on the same thread.  Returns NULL if there is no observer, or with an error if memory runs
   out.  opd_span_close accepts NULL. */
typedef struct opd_span opd_span;
OPD_NEW opd_span *opd_span_open(const char *name);
OPD_NEW void opd_span_close(opd_span *span);

/* Orders of the rows of a profile, largest first.
   OPD_PROFILE_BY_SELF: By self time, which is the time of an event without the events inside it.
   OPD_PROFILE_BY_TOTAL: By total time.
   OPD_PROFILE_BY_CALLS: By number of calls.
   OPD_PROFILE_BY_BYTES: By bytes. */
typedef enum opd_profile_order {
    OPD_PROFILE_BY_SELF = 0, OPD_PROFILE_BY_TOTAL, OPD_PROFILE_BY_CALLS, OPD_PROFILE_BY_BYTES
} opd_profile_order;
typedef struct opd_profiler_options {
    bool shapes;                 /* record the sizes of tensor arguments; the profile then has one row for each name and
                                    sizes */
    bool this_thread;            /* profile only this thread, which must also end the profile */
    opd_profile_order order;
} opd_profiler_options;
/* A row of a profile: all events with one name.  Times are in nanoseconds.  self_ns and self_bytes exclude the events
   inside.  bytes: memory that the allocator gave to the thread during the events.  For spans of collectives ("moves
   all_reduce" and similar): the bytes that this rank transfers. */
typedef struct opd_profile_row {
    const char *name, *shapes;   /* shapes: such as "[[2, 3], [], []]", with [] for arguments that are not tensors; NULL
                                    if not recorded */
    int64_t calls, total_ns, self_ns, bytes, self_bytes;
} opd_profile_row;
typedef struct opd_profile opd_profile;
/* Starts the profiler (torch.profiler).  Only one may run in a process.  If options is NULL, all options are zero.  The
   profiler keeps the first 10 million events (about 1 GB), and counts the events that it could not keep.  Returns 0, or
   -1 and sets an error. */
OPD_NEW int opd_profiler_begin(const opd_profiler_options *options);
/* Stops the profiler and returns the profile, which the caller frees with opd_profile_free.  Events that are still
   running end here.  If events are missing, a warning says how many.  Returns NULL and sets an error if no profiler was
   started or memory runs out.
   opd_profile_rows: Returns the rows of a profile and writes their number to *count. */
OPD_NEW opd_profile *opd_profiler_end(void);
OPD_NEW void opd_profile_free(opd_profile *profile);
OPD_NEW const opd_profile_row *opd_profile_rows(const opd_profile *profile, int64_t *count);
/* Measures times on a device, too, from now until the end of the running profile: records an event of the device before
   and after each operator and node, on the thread's current stream.  The host does not wait until opd_profiler_end.
   Up to 200,000 operators and nodes are measured.  Returns 0, or -1 with an error if no profiler is running or the
   device has no events. */
OPD_NEW int opd_profiler_device(opd_device device);
/* Returns the device's time of row number `row` of opd_profile_rows, in nanoseconds, without the operators inside.  It
   includes time in which the device waits for the host between two kernels of an operator.  Returns 0 for work of
   another device or stream, or in a capture. */
OPD_NEW int64_t opd_profile_device_ns(const opd_profile *profile, int64_t row);
/* Writes the rows as text into buf, cut to `cap` bytes.  Returns the full length.
   opd_profile_print: Prints the rows to stdout. */
OPD_NEW size_t opd_profile_table(const opd_profile *profile, char *buf, size_t cap);
OPD_NEW void opd_profile_print(const opd_profile *profile);
/* Writes a file in Chrome's trace format, for ui.perfetto.dev, with arrows from calls to their backward nodes.  Returns
   0, or -1 and sets an error. */
OPD_NEW int opd_profile_write_trace(const opd_profile *profile, const char *path);

