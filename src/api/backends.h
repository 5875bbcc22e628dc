//----------------------------------------------------------------------------------------------------------------------
//  >>api:backends   devices from outside
//----------------------------------------------------------------------------------------------------------------------

typedef struct opd_pointwise opd_pointwise;       /* see >>api:formulas */
typedef struct opd_draw opd_draw;
struct opd_group_desc;                            /* see >>api:collectives */
struct opd_group_mover;
/* What a program tells about a kind of device.  Every function gets `user` and the index of a device; those that return
   int return 0, or not 0 after opd_fail or without a word.  They are called from any thread.  What is NULL below
   "optional" is not there: one device, one stream.  Kernels are registered at the backend's key, as for any other. */
typedef struct opd_backend_desc {
    const char *name;            /* "npu": letters and _; NULL keeps the name that is there */
    void *(*alloc)(void *user, int index, size_t bytes);                      /* NULL: there is no more memory */
    void (*free)(void *user, int index, void *data, size_t bytes);
    /* Copies bytes that lie in a row; an index of -1 is the host.  Queued on the current stream; where one side is the
       host it has happened when it returns. */
    int (*copy)(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes);
    /* optional */
    int (*device_count)(void *user);
    int (*device_get)(void *user);                                            /* the calling thread's device, */
    int (*device_set)(void *user, int index);                                 /* which this changes */
    int (*synchronize)(void *user, int index);                                /* waits for all work of a device */
    int (*stream_new)(void *user, int index, int64_t *stream);                /* stream 0 is always there */
    void (*stream_free)(void *user, int index, int64_t stream);
    int64_t (*stream_get)(void *user, int index);                             /* the calling thread's on that device */
    int (*stream_set)(void *user, int index, int64_t stream);
    /* Work queued on `stream` from now on begins when what is queued on `other` now is done. */
    int (*stream_wait)(void *user, int index, int64_t stream, int other_index, int64_t other);
    int (*stream_synchronize)(void *user, int index, int64_t stream);
    void *user;
    void (*destroy)(void *user);                                              /* after opd_backend_unregister */
    /* optional, from 0.2 on.  Runs a formula over memory of the device, queued on the current stream (see
       >>api:formulas): with it all pointwise operators, fill_ and copies that convert or have strides work on the
       device; a kernel of the program's own at its key comes first. */
    int (*pointwise)(void *user, int index, const opd_pointwise *pointwise);
    /* Writes random numbers, the same as the CPU's; without it the host makes and copies them. */
    int (*draw)(void *user, int index, const opd_draw *draw);
    /* copy that is queued only, also where one side is the host, whose memory stays until it has happened. */
    int (*copy_async)(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes);
    void *(*host_alloc)(void *user, size_t bytes);                            /* of the host, which it copies fast */
    void (*host_free)(void *user, void *data);
    int (*empty_cache)(void *user, int index);                                /* what free kept is given back */
    int64_t (*cached)(void *user, int index);                                 /* bytes of that */
    int (*event_new)(void *user, int index, bool timing, int64_t *event);     /* not 0 */
    void (*event_free)(void *user, int index, int64_t event);
    int (*event_record)(void *user, int index, int64_t event, int64_t stream);
    int (*event_wait)(void *user, int index, int64_t event, int64_t stream);  /* the stream waits */
    int (*event_synchronize)(void *user, int index, int64_t event);
    int (*event_done)(void *user, int index, int64_t event);                  /* 1, 0, or -1 with an error */
    int (*event_elapsed)(void *user, int index, int64_t from, int64_t to, double *milliseconds);
    int (*capture_begin)(void *user, int index, int64_t stream);
    int (*capture_end)(void *user, int index, int64_t stream, int64_t *capture);
    int (*capture_replay)(void *user, int index, int64_t capture, int64_t stream);
    void (*capture_free)(void *user, int index, int64_t capture);
    bool (*debug_set)(void *user, bool on);                                   /* what it was */
    /* A block of alloc's is used by this stream, too: freed, it is given out again only when that has passed. */
    int (*record_stream)(void *user, int index, void *data, int64_t stream);
    /* For opd_group_device_add.  Makes what all ranks of a new group are to have in common, OPD_GROUP_ID bytes; NULL:
       says only whether this process can have such groups. */
    int (*group_id)(void *user, int index, void *id);
    /* Fills in how memory of the device moves between the ranks that have this id; all of them call it. */
    int (*group_new)(void *user, int index, const struct opd_group_desc *group, const void *id,
                     struct opd_group_mover *mover);
} opd_backend_desc;
/* Makes a backend (PrivateUse1 to 3, or one of PyTorch's but CPU and Meta) a device whose tensors empty, zeros, full,
   copy_, to, clone, item, printing, views, random numbers and autograd work with; other operators need kernels at its
   key, or opd_cpu_fallback.  A name is for ever, and only for PrivateUse1 to 3: device strings, and key names
   ("AutogradNpu", and "npu" itself; PyTorch's are still understood).  desc is copied.  0, or -1 with an error: taken, a
   function missing.  Any thread.  Follows torch.utils.rename_privateuse1_backend, c10::DeviceGuardImplInterface. */
OPD_API int opd_backend_register_sized(opd_backend backend, const opd_backend_desc *desc, size_t size);
OPD_INLINE int opd_backend_register(opd_backend backend, const opd_backend_desc *desc) {
    return opd_backend_register_sized(backend, desc, sizeof(opd_backend_desc));     /* which may grow */
}
/* opd_backend_register as plug-ins call it that were built before opd_backend_desc grew. */
OPD_API int opd_backend_register_first(opd_backend backend, const opd_backend_desc *desc);
/* Undoes opd_backend_register; refused with an error while memory of the device is in use.  No other thread may be
   using the device. */
OPD_API int opd_backend_unregister(opd_backend backend);
/* A kernel for opd_fallback or opd_impl: copies tensors to the CPU, runs the operator there, and copies back what it
   wrote and returned.  Views cannot be had so.  at::native::cpu_fallback. */
OPD_API int opd_cpu_fallback(opd_call *call);
/* Switches on that this happens, instead of an error, for operators that have neither a kernel nor a fallback at a
   backend; returns what it was (off).  Kernels that are registered later come first again.  The count is of all calls
   of all backends that went through opd_cpu_fallback in this process.  Any thread.  PYTORCH_ENABLE_MPS_FALLBACK. */
OPD_API bool opd_cpu_fallback_set(opd_backend backend, bool on);
OPD_API int64_t opd_cpu_fallback_count(void);
/* The first element's address in memory of that backend, for its kernels; NULL with an error that names the argument
   for a tensor that is elsewhere.  (A 0-dim CPU tensor may stand beside tensors of a device: opd_item_f64.) */
OPD_API void *opd_device_data(const opd_tensor *tensor, opd_backend backend);
/* Inside a kernel of a device: makes the results of the call, with the sizes, strides and dtypes that the operator's
   own Meta kernel gives, which also checks the arguments; contents undefined, in opd_call_rets.  Works for out= and
   in-place forms; a written argument that the operator returns is returned.  Not for operators that return views, nor
   for those whose sizes data decide.  0, or -1 with an error. */
OPD_API int opd_results_from_fake(opd_call *call);
/* Makes the result of an operator that changes a copy of its first argument: result 0, which holds what that does.  An
   in-place form gets the argument itself where no other one looks at its memory.  NULL with an error. */
OPD_API opd_tensor *opd_result_update(opd_call *call);
/* opd_tensor_wrap for memory of a device. */
OPD_API opd_tensor *opd_tensor_wrap_on(void *data, opd_ints sizes, const int64_t *strides, opd_scalar_type dtype,
                                       opd_device device, opd_deleter deleter, void *user);
/* The number of devices of a backend; 0 for one that nobody has registered. */
OPD_API int opd_device_count(opd_backend backend);
/* This thread's current device, where tensors of a device without an index go.  opd_device_set returns what it was:
   `opd_device was = opd_device_set(d); ... opd_device_set(was);`  The dispatcher makes the device of a call's tensors
   the current one round every kernel. */
OPD_API opd_device opd_device_current(opd_backend backend);
OPD_API opd_device opd_device_set(opd_device device);
/* Waits for the work of a device (index -1: the current one).  0, or -1 with an error. */
OPD_API int opd_device_synchronize(opd_device device);
/* Bytes of a device. */
OPD_API opd_memory opd_device_memory(opd_device device);
/* Gives memory that the device's allocator keeps for reuse back to the device.  0, or -1 with an error. */
OPD_API int opd_device_empty_cache(opd_device device);
/* A CPU tensor in memory that the backend's devices copy from and to at full speed, and meanwhile (copy_ with
   non_blocking=True; opd_stream_synchronize waits).  Its contents must stay until the copy is done; the tensor may go,
   its memory is used again only then.  NULL with an error. */
OPD_API opd_tensor *opd_tensor_new_pinned(opd_ints sizes, opd_scalar_type dtype, opd_backend backend);
/* Debug mode: each operator waits for its kernels, so that an error names the one that failed.  Returns what it was. */
OPD_API bool opd_device_debug_set(opd_backend backend, bool on);
/* Why this program has no device of a kind ("no driver"): what an error then says; the text is not copied. */
OPD_API void opd_backend_missing_set(opd_backend backend, const char *why);
/* A queue of work.  opd_stream_set makes it the current one of this thread and its device, and returns what was.  Work
   of two streams has an order only where one waits for the other, the default stream (id 0) among them.  Any thread may
   call these for any stream, and several may queue on one; opd_stream_free waits for what is queued, and no thread may
   have the stream as its current one then but the caller, who gets the default one.  torch.cuda.Stream. */
typedef struct opd_stream { opd_device device; int64_t id; } opd_stream;
OPD_API opd_stream opd_stream_new(opd_device device);                         /* id 0 with an error: none there */
OPD_API void opd_stream_free(opd_stream stream);
OPD_API opd_stream opd_stream_current(opd_device device);
OPD_API opd_stream opd_stream_set(opd_stream stream);
OPD_API int opd_stream_wait(opd_stream stream, opd_stream other);             /* later work waits for other's */
OPD_API int opd_stream_synchronize(opd_stream stream);
/* Memory belongs to the stream that was current when it was made: freed, it is given out again there at once.  Where
   another stream uses a tensor, this keeps its memory (all of what its views share) until what is queued there when it
   is freed is done.  0, or -1 with an error; nothing for memory that is not the device's allocator's.  Any thread.
   torch.Tensor.record_stream. */
OPD_API int opd_tensor_record_stream(opd_tensor *tensor, opd_stream stream);
/* A mark in a queue: record puts it there, and it is done when what was queued before is.  timing: elapsed tells the
   milliseconds between two that are done.  An event is recorded on streams of its device, any stream may wait for it.
   Any thread, no two at once for one event but to wait.  Those that return int give 0, or -1 with an error. */
typedef struct opd_device_event { opd_device device; int64_t id; } opd_device_event;
OPD_API opd_device_event opd_device_event_new(opd_device device, bool timing);   /* id 0 with an error: none there */
OPD_API void opd_device_event_free(opd_device_event event);
OPD_API int opd_device_event_record(opd_device_event event, opd_stream stream);
OPD_API int opd_stream_wait_event(opd_stream stream, opd_device_event event); /* later work waits for it */
OPD_API int opd_device_event_synchronize(opd_device_event event);
OPD_API int opd_device_event_done(opd_device_event event);                      /* 1, 0, or -1 with an error */
OPD_API double opd_device_event_elapsed(opd_device_event from, opd_device_event to);     /* -1 with an error */
/* Work that is kept instead of done, and then done again and again at once (CUDA graphs, torch.cuda.graph).  Between
   begin and end nothing may wait for the stream, which is no default one, nor read what it makes (opd_item_f64,
   printing, copies to the host or from pageable memory, indexing by bool): that is an error, and so is the end then.
   Shapes and addresses stay what they are, and memory that was made meanwhile stays the capture's.  Each replay draws
   the random numbers that calls would draw then; the generators must live as long as the capture.  Run what is
   captured once before, on that stream.  Other threads may work meanwhile, on other streams; begin, work and end may
   be different threads', and so may replays and the freeing (which waits for the last replay), one at a time.
   begin, replay: 0, or -1 with an error; end: NULL with an error. */
typedef struct opd_capture opd_capture;
OPD_API int opd_capture_begin(opd_stream stream);
OPD_API opd_capture *opd_capture_end(opd_stream stream);
OPD_API int opd_capture_replay(opd_capture *capture, opd_stream stream);
OPD_API void opd_capture_free(opd_capture *capture);
/* What float32 matrix products and convolutions of a device may cost in exactness: HIGHEST (the default) rounds as
   float32 does; HIGH lets a device that is faster so round their factors shorter (TF32 on a GPU: 10 bits after the
   point), and the sums stay float32.  The CPU knows HIGHEST only.  For the process; returns what it was.  Any thread.
   torch.set_float32_matmul_precision. */
typedef enum opd_matmul_precision { OPD_MATMUL_HIGHEST = 0, OPD_MATMUL_HIGH } opd_matmul_precision;
OPD_API opd_matmul_precision opd_float32_matmul_precision_set(opd_matmul_precision precision);
OPD_API opd_matmul_precision opd_float32_matmul_precision(void);
/* torch.cuda.is_available, device_count, empty_cache, and debug mode. */
OPD_INLINE bool opd_cuda_available(void) { return opd_device_count(OPD_CUDA) > 0; }
OPD_INLINE int opd_cuda_empty_cache(void) { return opd_device_empty_cache(opd_device_of(OPD_CUDA, -1)); }
OPD_INLINE bool opd_cuda_debug_set(bool on) { return opd_device_debug_set(OPD_CUDA, on); }

