//----------------------------------------------------------------------------------------------------------------------
//  >>api:backends   registering devices; streams, events, captures (may change)
//----------------------------------------------------------------------------------------------------------------------

typedef struct opd_pointwise opd_pointwise;       /* see >>api:formulas */
typedef struct opd_draw opd_draw;
struct opd_group_desc;                            /* see >>api:collectives */
struct opd_group_mover;
/* The functions of a kind of device, for opd_backend_register.  Each gets `user`, and most get the index of a device.
   Functions that return int return 0, or another value on failure, with or without an opd_fail.  Any thread may call
   them.  Functions below "optional" may be NULL: then the device lacks the feature.  If device_count is NULL, there is
   one device.  If stream_new is NULL, there is one stream.  Kernels are registered at the backend's key, as for any
   other backend. */
typedef struct opd_backend_desc {
    const char *name;            /* such as "npu": letters and _; NULL keeps the present name */
    void *(*alloc)(void *user, int index, size_t bytes);                      /* returns NULL if no memory is left */
    void (*free)(void *user, int index, void *data, size_t bytes);
    /* Copies contiguous bytes.  An index of -1 is the host.  The copy is queued on the current stream.  If one side is
       the host, the copy is done when the function returns. */
    int (*copy)(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes);
    /* optional */
    int (*device_count)(void *user);
    int (*device_get)(void *user);                                            /* returns the thread's device */
    int (*device_set)(void *user, int index);                                 /* sets the calling thread's device */
    int (*synchronize)(void *user, int index);                                /* waits for all work of a device */
    int (*stream_new)(void *user, int index, int64_t *stream);                /* stream 0 is always there */
    void (*stream_free)(void *user, int index, int64_t stream);
    int64_t (*stream_get)(void *user, int index);                             /* returns the thread's current stream */
    int (*stream_set)(void *user, int index, int64_t stream);
    /* Makes later work on `stream` wait for the work that is queued on `other` now. */
    int (*stream_wait)(void *user, int index, int64_t stream, int other_index, int64_t other);
    int (*stream_synchronize)(void *user, int index, int64_t stream);
    void *user;
    opd_destroy destroy;                                                      /* called by opd_backend_unregister */
    /* optional, from 0.2 on.  Runs a pointwise formula over memory of the device, queued on the current stream (see
       >>api:formulas).  With this function, all pointwise operators, fill_, and copies that convert or have strides
       work on the device.  A kernel that the program registers at the backend's key has precedence. */
    int (*pointwise)(void *user, int index, const opd_pointwise *pointwise);
    /* Writes random numbers, equal to the CPU's.  If NULL, the host makes and copies them. */
    int (*draw)(void *user, int index, const opd_draw *draw);
    /* Copies as `copy` does, but only queues the copy, even if one side is the host.  The host's memory stays valid
       until the copy is done. */
    int (*copy_async)(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes);
    void *(*host_alloc)(void *user, size_t bytes);                            /* allocates pinned host memory */
    void (*host_free)(void *user, void *data);
    int (*empty_cache)(void *user, int index);                                /* frees memory that was kept by `free` */
    int64_t (*cached)(void *user, int index);                                 /* returns how many bytes `free` kept */
    int (*event_new)(void *user, int index, bool timing, int64_t *event);     /* sets *event to a nonzero number */
    void (*event_free)(void *user, int index, int64_t event);
    int (*event_record)(void *user, int index, int64_t event, int64_t stream);
    int (*event_wait)(void *user, int index, int64_t event, int64_t stream);  /* makes the stream wait for event */
    int (*event_synchronize)(void *user, int index, int64_t event);
    int (*event_done)(void *user, int index, int64_t event);                  /* 1: done, 0: not yet, -1: an error */
    int (*event_elapsed)(void *user, int index, int64_t from, int64_t to, double *milliseconds);
    int (*capture_begin)(void *user, int index, int64_t stream);
    int (*capture_end)(void *user, int index, int64_t stream, int64_t *capture);
    int (*capture_replay)(void *user, int index, int64_t capture, int64_t stream);
    void (*capture_free)(void *user, int index, int64_t capture);
    /* Sets debug mode, in which each operator waits for its kernels.  Returns the previous setting. */
    bool (*debug_set)(void *user, bool on);
    /* Notes that `stream` also uses the block `data`, which `alloc` returned.  After `free`, the block is handed out
       again only when the work that was queued on the stream before `free` is done. */
    int (*record_stream)(void *user, int index, void *data, int64_t stream);
    /* Writes the id of a new group to `id`, which has OPD_GROUP_ID bytes; all ranks of the group share this id.  Called
       by opd_group_device_add.  If `id` is NULL, makes no id, and only returns 0 if this process can have such
       groups. */
    int (*group_id)(void *user, int index, void *id);
    /* Fills in `mover`, which moves memory of the device between the ranks that pass this id.  All ranks call this
       function. */
    int (*group_new)(void *user, int index, const struct opd_group_desc *group, const void *id,
                     struct opd_group_mover *mover);
    /* optional, from 0.9 on.  Compiles parts of graphs for the device: opd_graph_compile and opd_program_compile use it
       in the first run with an input on this device.  Must stay valid until the backend is unregistered, and no
       compiled graph may be run after that. */
    const struct opd_part_compiler *parts;
    /* optional, from 0.9 on.  Computes a call of _scaled_dot_product_flash_attention_for_cpu_backward whose tensors lie
       in memory of the device, and returns its results by opd_return_tensor.  Returns 0, -1 for an error, or 1 if it
       has no kernel for this call.  Then, and if it is NULL, separate operators compute the derivatives. */
    opd_kernel attention_backward;
    /* optional, from 0.9 on.  Operators on lists of tensors (_foreach_..) call it with `on` before their pointwise
       computations, and without afterwards.  In between, computations of the calling thread may be put off, so that
       many of them run as one, but later work and other functions of the backend must find them done or queued.  Calls
       may be nested. */
    int (*gather)(void *user, int index, bool on);
    /* optional, from 0.9 on.  Computes a call of mm, addmm, bmm, baddbmm, mv, embedding, index_select, cat or stack
       with a tensor in blocks (see opd_dtype_block) in memory of the device, and returns its result by
       opd_return_tensor or opd_results_from_fake.  Returns 0, -1 for an error, or 1, before it has made a result, if it
       has no kernel for this call.  Then, and if it is NULL, the call runs on the CPU. */
    opd_kernel blocks;
    /* optional, from 0.9 on.  Copies src to dst, in memory of the device, with the same sizes.  src is in blocks, or
       one of the two has floats of 8 bits; the other one has a floating dtype.  Both are contiguous or, unless src is
       in blocks, have the same strides, without gaps.  Returns 0, -1 for an error, or 1 if it has no kernel for these
       dtypes: then, and if it is NULL, the host converts. */
    int (*convert)(void *user, int index, opd_tensor *dst, opd_tensor *src);
    /* optional, from 0.9 on.  Says that `pointwise` also computes formulas of complex numbers: then its `compute` may
       be complex128.  Otherwise, pointwise operators of complex numbers run on the CPU. */
    bool complex_formulas;
} opd_backend_desc;
/* Registers the devices of a backend: PrivateUse1 to 3, or a backend of PyTorch other than CPU and Meta.  On its
   tensors, empty, zeros, full, copy_, to, clone, item, printing, views, random numbers and autograd then work.  Other
   operators need kernels at the backend's key, or opd_cpu_fallback.
   Only PrivateUse1 to 3 can have a name, which is permanent.  Device strings and key names use the name ("npu",
   "AutogradNpu"); PyTorch's names still work.  desc is copied; size is the size of *desc in the caller's header.
   Returns 0, or -1 with an error if the backend is taken or a function is missing.  Any thread may call this.  Follows
   torch.utils.rename_privateuse1_backend and c10::DeviceGuardImplInterface. */
OPD_NEW int opdi_backend_register_sized(opd_backend backend, const opd_backend_desc *desc, size_t size);
OPD_INLINE int opd_backend_register(opd_backend backend, const opd_backend_desc *desc) {
    return opdi_backend_register_sized(backend, desc, sizeof(opd_backend_desc));     /* a newer header may have a larger
                                                                                       struct */
}
/* Registers a backend for plug-ins that were built before opd_backend_desc grew. */
OPD_NEW int opd_backend_register_first(opd_backend backend, const opd_backend_desc *desc);
/* Undoes opd_backend_register.  Returns 0, or -1 with an error if memory of the device is still in use.  No other
   thread may be using the device. */
OPD_NEW int opd_backend_unregister(opd_backend backend);
/* A kernel for opd_fallback or opd_impl: copies tensors to the CPU, runs the operator there, and copies written
   arguments and results back.  Operators that return views cannot run this way.  Follows at::native::cpu_fallback. */
OPD_NEW int opd_cpu_fallback(opd_call *call);
/* Switches opd_cpu_fallback on or off for operators that have neither a kernel nor a fallback at a backend.  By default
   it is off, and calls of these operators fail.  Kernels that are registered later have precedence.  Returns the
   previous setting.  Any thread may call this.  Follows PYTORCH_ENABLE_MPS_FALLBACK. */
OPD_NEW bool opd_cpu_fallback_set(opd_backend backend, bool on);
/* Returns the number of calls that went through opd_cpu_fallback, of all backends in this process.  Any thread may call
   this. */
OPD_NEW int64_t opd_cpu_fallback_count(void);
/* Returns the address of the first element in the backend's memory, for kernels of the backend.  If the tensor is
   elsewhere, returns NULL with an error that names the argument. (A 0-dim CPU tensor may be given together with tensors
   of a device; read it with opd_item_f64.) */
OPD_NEW void *opd_device_data(const opd_tensor *tensor, opd_backend backend);
/* Makes all results of a call, for a device's kernel.  The operator's Meta kernel checks the arguments and gives sizes,
   strides and dtypes.  The contents are undefined.  Read the results from opd_call_rets.  Works for out= and in-place
   forms, too: a written argument that the operator returns is the result.  Does not work for operators that return
   views, or for operators whose result sizes depend on data.  Returns 0, or -1 with an error. */
OPD_NEW int opd_results_from_fake(opd_call *call);
/* Makes and returns result 0, a copy of the first argument, for a kernel that then changes this copy.  For an in-place
   form the result is the first argument itself, if no other argument uses its memory.  Returns NULL with an error on
   failure. */
OPD_NEW opd_tensor *opd_result_update(opd_call *call);
/* Makes a tensor over memory of a device, as opd_tensor_wrap does for host memory. */
OPD_NEW opd_tensor *opd_tensor_wrap_on(void *data, opd_ints sizes, const int64_t *strides, opd_scalar_type dtype,
                                       opd_device device, opd_deleter deleter, void *user);
/* Returns the number of devices of a backend; 0 if it is not registered, 1 for OPD_CPU. */
OPD_NEW int opd_device_count(opd_backend backend);
/* Returns this thread's current device of a backend.  An opd_device with index -1 means the current device.  While a
   kernel runs, the dispatcher makes the device of the call's tensors the current one. */
OPD_NEW opd_device opd_device_current(opd_backend backend);
/* Sets this thread's current device and returns the previous one:
   `opd_device was = opd_device_set(d); ... opd_device_set(was);` */
OPD_NEW opd_device opd_device_set(opd_device device);
/* Waits for the work of a device (index -1: the current one).  Returns 0, or -1 with an error. */
OPD_NEW int opd_device_synchronize(opd_device device);
/* Returns the memory statistics of a device. */
OPD_NEW opd_memory opd_device_memory(opd_device device);
/* Sets the peak of a device to its present number of live bytes (torch.cuda.reset_peak_memory_stats).  Returns 0, or -1
   with an error. */
OPD_NEW int opd_device_memory_reset_peak(opd_device device);
/* The memory of a device that one place of the program has allocated and still uses. */
typedef struct opd_memory_place {
    const char *op;              /* the operator that allocated it, such as "aten::add"; "" outside of operators */
    const char *scope;           /* "file:line" of the innermost scope around the operator; "" without one */
    int64_t live, blocks;        /* bytes and number of blocks */
} opd_memory_place;
/* Begins or ends to note the place of each block of memory that is allocated on a backend's devices.  Blocks that were
   allocated while this was off have no place.  Returns the previous setting.  Any thread may call this.  Follows
   torch.cuda.memory._record_memory_history. */
OPD_NEW bool opd_device_memory_places_set(opd_backend backend, bool on);
/* Writes the places of the blocks that are in use now, those with the most bytes first, to places[cap].  Returns the
   number of all places, or -1 with an error. */
OPD_NEW int64_t opd_device_memory_places(opd_device device, opd_memory_place *places, int64_t cap);
/* Frees the memory that the device's allocator keeps for reuse.  Returns 0, or -1 with an error. */
OPD_NEW int opd_device_empty_cache(opd_device device);
/* Makes a CPU tensor in pinned memory.  The backend's devices copy from and to such memory at full speed, also while
   other work runs (copy_ with non_blocking=True; opd_stream_synchronize waits for it).  Do not change the contents
   until the copy is done.  The tensor may be freed earlier: its memory is reused only after the copy.  Returns NULL
   with an error on failure. */
OPD_NEW opd_tensor *opd_tensor_new_pinned(opd_ints sizes, opd_scalar_type dtype, opd_backend backend);
/* Sets debug mode: each operator waits for its kernels, so that an error names the failed operator.  Returns the
   previous setting. */
OPD_NEW bool opd_device_debug_set(opd_backend backend, bool on);
/* Sets the reason why this program has no device of a kind ("no driver").  Errors contain the reason.  The text is not
   copied.  Returns 0, or -1 with an error. */
OPD_NEW int opd_backend_missing_set(opd_backend backend, const char *why);
/* A queue of work on a device (torch.cuda.Stream).  The work of one stream runs in order.  Work on two streams, also if
   one is the default stream (id 0), runs in no fixed order unless one stream waits for the other.  Any thread may use
   any stream, and several threads may queue work on the same stream. */
typedef struct opd_stream { opd_device device; int64_t id; } opd_stream;
OPD_NEW opd_stream opd_stream_new(opd_device device);                         /* returns id 0 and sets an error on
                                                                                 failure */
/* Frees a stream when its queued work is done.  No other thread may have it as its current stream.  If it is the
   caller's current stream, the default stream becomes current. */
OPD_NEW void opd_stream_free(opd_stream stream);
/* Returns this thread's current stream of a device. */
OPD_NEW opd_stream opd_stream_current(opd_device device);
/* Makes a stream this thread's current stream of its device.  Returns the previous one. */
OPD_NEW opd_stream opd_stream_set(opd_stream stream);
/* Makes later work on `stream` wait for the work that is queued on `other` now.  Returns 0, or -1 with an error. */
OPD_NEW int opd_stream_wait(opd_stream stream, opd_stream other);
/* Waits until all work on the stream is done.  Returns 0, or -1 with an error. */
OPD_NEW int opd_stream_synchronize(opd_stream stream);
/* Notes that `stream` uses a tensor that was made on another stream (torch.Tensor.record_stream).  Memory belongs to
   the stream that was current when it was allocated, and after the memory is freed, that stream may reuse it
   immediately.  After this call, the memory of the tensor and its views is reused only when the work that was queued on
   `stream` at the time of freeing is done.  Does nothing for memory that is not from the device's allocator.  Returns
   0, or -1 with an error.  Any thread may call this. */
OPD_NEW int opd_tensor_record_stream(opd_tensor *tensor, opd_stream stream);
/* A mark in the work of a stream.  opd_device_event_record adds the event to a stream's queue.  The event is done when
   the work that was queued before it is done.  Events are recorded on streams of their device; any stream may wait for
   them.  Any thread may use an event, but two threads may use one at the same time only to wait.  Functions that return
   int return 0, or -1 with an error. */
typedef struct opd_device_event { opd_device device; int64_t id; } opd_device_event;
/* Makes an event.  Only events with `timing` work with opd_device_event_elapsed.  Returns id 0 with an error if the
   device has no events. */
OPD_NEW opd_device_event opd_device_event_new(opd_device device, bool timing);
OPD_NEW void opd_device_event_free(opd_device_event event);
OPD_NEW int opd_device_event_record(opd_device_event event, opd_stream stream);
/* Makes later work on `stream` wait for an event.  Returns 0, or -1 with an error. */
OPD_NEW int opd_stream_wait_event(opd_stream stream, opd_device_event event);
/* Waits until the event is done.  Returns 0, or -1 with an error. */
OPD_NEW int opd_device_event_synchronize(opd_device_event event);
OPD_NEW int opd_device_event_done(opd_device_event event);                      /* 1: done, 0: not yet, -1: error */
/* Returns the milliseconds from one event to the other, both of which must be done, or -1 with an error. */
OPD_NEW double opd_device_event_elapsed(opd_device_event from, opd_device_event to);
/* Work that is recorded instead of run, and can be replayed any number of times (CUDA graphs, torch.cuda.graph).  The
   stream must not be the default stream, and between opd_capture_begin and opd_capture_end nothing may wait for it.
   The host must not read results of the stream either.  Reading or printing elements, copies to the host or from
   pageable memory, and indexing by bool fail, and then opd_capture_end fails, too.  Before the capture, run the same
   work once on this stream.
   Shapes and addresses are fixed, and memory allocated during the capture belongs to it.  Each replay uses the random
   numbers that uncaptured calls would use at that time, so the generators must live as long as the capture.
   During a capture, other threads may work on other streams.  A capture may be begun, ended, replayed and freed by
   different threads, but only one thread at a time may do so. */
typedef struct opd_capture opd_capture;
/* Begins a capture on a stream.  Returns 0, or -1 with an error. */
OPD_NEW int opd_capture_begin(opd_stream stream);
/* Ends the capture on a stream and returns it.  The caller frees the capture.  Returns NULL with an error on
   failure. */
OPD_NEW opd_capture *opd_capture_end(opd_stream stream);
/* Runs the captured work on a stream.  Returns 0, or -1 with an error. */
OPD_NEW int opd_capture_replay(opd_capture *capture, opd_stream stream);
/* Waits for the last replay and frees the capture. */
OPD_NEW void opd_capture_free(opd_capture *capture);
/* The precision of float32 matrix products and convolutions of a device.  The CPU only knows HIGHEST. */
typedef enum opd_matmul_precision {
    OPD_MATMUL_HIGHEST = 0,      /* the default: rounds as float32 does */
    OPD_MATMUL_HIGH              /* to be faster, a device may round factors to fewer bits (TF32 on a GPU: a mantissa of
                                    10 bits); sums stay float32 */
} opd_matmul_precision;
/* Sets the precision for the process and returns the previous one.  Any thread may call this.  Follows
   torch.set_float32_matmul_precision. */
OPD_NEW opd_matmul_precision opd_float32_matmul_precision_set(opd_matmul_precision precision);
OPD_NEW opd_matmul_precision opd_float32_matmul_precision(void);
/* Sets for the process whether products with a weight in blocks (see opd_dtype_block) multiply activations as they are,
   and returns the previous setting.  If false, the default, such a product of float32, float16 or bfloat16 first rounds
   each row of activations to 8 bits by blocks, as llama.cpp does, which is faster.  This concerns sums along blocks, as
   in x wT of opd_linear.  Sums across blocks, as in x w and the gradients of opd_linear, are never rounded, and neither
   are products of float64, products with OPD_WEIGHT_F16 and OPD_WEIGHT_BF16, and products with integers (see
   opd_dtype_int_blocks) whose groups are not a multiple of 32 elements, or that have 8 bits and zero points.  The CUDA
   plug-in never rounds activations.  Any thread may call this. */
OPD_NEW bool opd_exact_blocks_set(bool exact);
OPD_NEW bool opd_exact_blocks(void);
/* Sets for the process how weights of _weight_int4pack_mm_for_cpu are packed, and returns the previous setting; or -1,
   and sets an error, for other numbers.  PyTorch packs blocks of 32 rows on processors with AVX2 and of 64 rows on
   those with AVX-512, and a file does not say which.  rows: 32 or 64; or 0, the default: the product looks at the
   codes.  Each group of a quantiser has the codes 0 and 15, unless it is symmetric, and a wrong reading mixes groups.
   If that does not decide, the product takes 32.  _convert_weight_to_int4pack_for_cpu packs 64 rows only if that was
   set.  Any thread may call this.
   opd_int4_block: Returns the setting. */
OPD_NEW int opd_int4_block_set(int rows);
OPD_NEW int opd_int4_block(void);
/* Returns a tensor with the sizes of `tensor` whose numbers are stored in blocks of `dtype`, such as OPD_Q8_0, in the
   innermost scope.  The last size of `tensor`, or another size with stride 1, must be whole blocks.  OPD_Q4_0,
   OPD_Q4_1, OPD_Q5_0, OPD_Q5_1 and OPD_Q8_0 get the bytes that llama.cpp writes.  Integers (see opd_dtype_int_blocks)
   get the scales, zero points and codes of torchao's choose_qparams_affine and quantize_affine.  The result has no
   gradient.  A tensor that is in blocks is converted by way of float32.  Returns NULL with an error if `dtype` is not
   in blocks or cannot be written, if blocks would be cut, or if a number is NaN, infinite or too large.  It is
   opd_to_dtype(tensor, dtype); opd_dequantize makes float32 again. */
OPD_NEW opd_tensor *opd_quantize_blocks(opd_tensor *tensor, opd_scalar_type dtype);
/* Makes a weight of integers with scales (see opd_dtype_int_blocks) of parts that exist, such as the parts of a tensor
   of torchao, in the innermost scope.  codes: int8 or uint8 [..., k], which must fit into `bits` bits, 1 to 8.  scales:
   one number; [...], one for each row; or [..., groups], one for each k / groups codes of a row, which must be a
   multiple of 8.  They are float32, float16 or bfloat16.  zero_points: the same sizes, integers or floats; or NULL,
   which stands for 0 if the codes are int8, and for 2^(bits - 1) if they are uint8.  The numbers are (code - zero
   point) * scale.  All tensors are on the CPU, and are copied.  Returns NULL with an error if they do not fit
   together.  Follows torchao's dequantize_affine.
   opd_int_blocks_parts: Sets *codes, *scales and *zero_points to the parts of such a weight, in the innermost scope:
   int8 codes and no zero points (NULL) if it is symmetric, else uint8 codes and zero points.  Scales and zero points
   are float32 [..., groups].  Returns 0, or -1 with an error if the tensor has another dtype, or is transposed. */
OPD_NEW opd_tensor *opd_int_blocks(opd_tensor *codes, opd_tensor *scales, opd_tensor *zero_points, int bits);
OPD_NEW int opd_int_blocks_parts(opd_tensor *tensor, opd_tensor **codes, opd_tensor **scales,
                                 opd_tensor **zero_points);
/* Whether an operator may give a slightly different result in each run, because it adds floats in any order. */
typedef enum opd_deterministic {
    OPD_DETERMINISTIC_OFF = 0,   /* the default: it may, if that is faster */
    OPD_DETERMINISTIC_WARN,      /* operators keep to one order; an operator that cannot warns, once */
    OPD_DETERMINISTIC_ERROR      /* operators keep to one order; an operator that cannot fails */
} opd_deterministic;
/* Sets the mode for the process and returns the previous one.  Any thread may call this.  On the CPU, all operators
   give the same result in each run, also with several threads, and the mode changes nothing.  On CUDA, it makes
   operators slower that add or write at indices which may occur several times (index_add, scatter, index_put).  Random
   numbers depend only on the seed, in every mode.  Follows torch.use_deterministic_algorithms. */
OPD_NEW opd_deterministic opd_deterministic_set(opd_deterministic mode);
OPD_NEW opd_deterministic opd_deterministic_mode(void);
/* For a kernel that is about to compute a result that may differ in each run.  `how` says in which case, such as
   " with reduce='prod'", or is NULL.  Returns 0 if the kernel may go on, perhaps after a warning, or -1 with an error
   that names the operator.  Follows at::Context::alertNotDeterministic. */
OPD_NEW int opd_deterministic_alert(const opd_call *call, const char *how);
/* opd_cuda_available and opd_cuda_empty_cache do the same as torch.cuda.is_available and torch.cuda.empty_cache.
   opd_cuda_debug_set sets debug mode for CUDA. (For torch.cuda.device_count, call opd_device_count.) */
OPD_INLINE bool opd_cuda_available(void) { return opd_device_count(OPD_CUDA) > 0; }
OPD_INLINE int opd_cuda_empty_cache(void) { return opd_device_empty_cache(opd_device_make(OPD_CUDA, -1)); }
OPD_INLINE bool opd_cuda_debug_set(bool on) { return opd_device_debug_set(OPD_CUDA, on); }

