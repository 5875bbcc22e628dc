//----------------------------------------------------------------------------------------------------------------------
//  >>api:collectives process groups, collectives, parallel training (may change)
//----------------------------------------------------------------------------------------------------------------------

/* A process group: several processes that run one program.  A group has a name, a rank for each process, and a table of
   functions that move memory between them.  A program or plug-in registers the table: examples/mpi_group.c does so for
   MPI.  The group "self" always exists and has this process alone.
   Collectives are operators with PyTorch's schemas, in the namespace _c10d_functional: all_reduce,
   all_gather_into_tensor, reduce_scatter_tensor, all_to_all_single, broadcast, isend, irecv, batch_p2p_ops,
   wait_tensor, wait_tensors.  The first three also exist as _coalesced.  In-place forms are all_reduce_, broadcast_ and
   all_reduce_coalesced_, and out forms are all_gather_into_tensor_out and reduce_scatter_tensor_out.  The namespace
   _c10d_functional_autograd has the same operators.  Every rank calls the same collectives in the same order.
   reduce_op is "sum", "avg", "product", "min", "max", "band", "bor" or "bxor".  The argument group_name is the name of
   a group (PyTorch also takes a Python object).  Operator irecv fills its argument and returns it.  Operator isend
   returns a tensor without elements, and graphs do not drop its calls.
   A collective is still running when the operator returns.  The result is an ordinary tensor: the first operator that
   reads it waits, and so does opd_data; views do not wait.  An operator that writes the input waits, too.  Until then,
   the program must not use an older pointer to the data of the input or the result.  If the collective fails, the first
   use of the result fails with the same error.  Tensors of a device are copied through the host, unless
   opd_group_device_add or opd_group_desc.takes is used.
   Collectives have derivatives.  The differentiated value is the sum of the values that all ranks differentiate.  For
   all_reduce and reduce_scatter_tensor, the reductions "sum", "avg", "product", "min" and "max" have a derivative, in
   place only "sum" and "avg".  The derivative of "product" gathers all ranks' numbers.  For "min" and "max" the
   gradient is divided among the ranks that have the extreme value.  Operators isend and irecv have no derivative.
   Collectives have rules for vmap (isend and irecv move all examples in one message) and for forward mode.  Like other
   operators they are recorded, counted and shown by the profiler, with the bytes that they move.
   The namespace c10d has PyTorch's other set, allreduce_ to recv_, which write into existing memory.  For a
   ProcessGroup, pass an opd_group (opd_value_object) or the name of a group; for a ReduceOp, its name.  A returned Work
   is an opd_work, which the caller must pass to opd_work_wait or opd_work_release.  These operators have no
   derivatives, and are not recorded or batched.  An operator that takes a list with an element per rank returns only
   when the transfer is done.  Receiving from any rank (recv_any_source_) is not supported. */
typedef struct opd_group opd_group;
/* The kinds of transfers. */
typedef enum opd_collective {
    OPD_COLLECTIVE_ALL_REDUCE = 1,
    OPD_COLLECTIVE_ALL_GATHER,
    OPD_COLLECTIVE_REDUCE_SCATTER,
    OPD_COLLECTIVE_ALL_TO_ALL,
    OPD_COLLECTIVE_BROADCAST,
    OPD_COLLECTIVE_REDUCE,
    OPD_COLLECTIVE_GATHER,
    OPD_COLLECTIVE_SCATTER,
    OPD_COLLECTIVE_SEND,
    OPD_COLLECTIVE_RECV,
    OPD_COLLECTIVE_BARRIER
} opd_collective;
/* The reductions; BAND, BOR and BXOR work on bits. */
typedef enum opd_reduction {
    OPD_REDUCTION_SUM = 0, OPD_REDUCTION_AVG, OPD_REDUCTION_PRODUCT, OPD_REDUCTION_MIN, OPD_REDUCTION_MAX,
    OPD_REDUCTION_BAND, OPD_REDUCTION_BOR, OPD_REDUCTION_BXOR
} opd_reduction;
/* A transfer of contiguous memory, which stays valid until the transfer is done.  If send == recv, the transfer is in
   place. */
typedef struct opd_transfer {
    opd_collective kind;
    opd_reduction reduction;     /* `start` gets SUM instead of AVG, and the library divides the sum, unless `averages`
                                    accepts the transfer */
    opd_scalar_type dtype;
    const void *send;            /* memory to read: [count] elements; [ranks, count] elements for REDUCE_SCATTER, and
                                    for SCATTER at the root */
    void *recv;                  /* memory to write: [count] elements; [ranks, count] elements for ALL_GATHER, and for
                                    GATHER at the root */
    int64_t count;
    const int64_t *send_counts, *recv_counts;     /* ALL_TO_ALL only: how many elements go to each rank, and how many
                                                     come from each rank */
    int32_t peer;                /* rank of the root, the destination or the source */
    int32_t tag;                 /* the tag of SEND and RECV, 0 or more */
} opd_transfer;
/* The functions by which a group moves memory.  A function that fails returns -1, with or without an opd_fail.
   Only one thread at a time calls the functions of one group.  Several threads may call functions of different groups
   at once. */
typedef struct opd_group_desc {
    const char *name;            /* any text of 1 to 63 bytes */
    int32_t rank, size;          /* rank: number of this process, 0 to size - 1 */
    /* Begins a transfer, and sets *request for `test`.  Returns 0 or -1.  `start` may be NULL only in a group of one
       process. */
    int (*start)(void *user, const opd_transfer *transfer, void **request);
    /* Returns 1 if the transfer is done, 0 if not yet, -1 if it failed.  If it returns 1 or -1, it frees the request.
       May wait for wait_us microseconds. */
    int (*test)(void *user, void *request, int64_t wait_us);
    /* Makes the table of a subgroup.  Each rank of the subgroup calls this.  Fills in start, test, split, destroy and
       user of `out`.  If split is NULL, only subgroups of one rank are possible. */
    int (*split)(void *user, const int32_t *ranks, int32_t count, struct opd_group_desc *out);
    opd_destroy destroy;                          /* called when the group ends; may be NULL */
    void *user;
    int64_t timeout_ms;          /* a wait that takes longer fails; 0: ten minutes */
    /* If checked is true, ranks compare their calls before a collective begins.  If collectives, sizes, dtypes or the
       order differ, all ranks fail with an error that names the first difference.  If a rank calls nothing, the other
       ranks fail after timeout_ms.  Sends and receives are compared, too, so a send waits until the other rank
       receives.  For each of them, `start` gets an additional send and an additional receive.  The tags that `start`
       gets, for these and for the data, are 2 * tag and 2 * tag + 1, so tag must be less than 2^30. */
    bool checked;
    /* Tells the other ranks that this rank gives up.  From then on, their `start` and `test` return -1 with an error
       that contains `why`.  Returns 0 or -1.  If abandon is NULL, the other ranks fail after timeout_ms. */
    int (*abandon)(void *user, const char *why);
    /* Returns true if `start` accepts memory of that device for a transfer (if `transfer` is NULL: for any transfer),
       as a GPU-aware communication library does.  The library calls `start` after the queued work of the device is
       done.  If takes is NULL, `start` accepts only host memory; other tensors are copied through the host, or moved by
       opd_group_device_add. */
    bool (*takes)(void *user, opd_device device, const opd_transfer *transfer);
    /* Returns true if `start` can do this transfer with reduction AVG: it then adds and divides in one pass over
       memory.  If it returns false, or if averages is NULL, `start` gets a SUM, and the result is divided afterwards.
       The answer must be the same on all ranks. */
    bool (*averages)(void *user, const opd_transfer *transfer);
} opd_group_desc;
/* Registers a group under its name.  desc is copied; size is the size of *desc in the caller's header.  The group
   belongs to the library, and lives until opd_group_unregister.  On failure returns NULL with an error. */
OPD_NEW opd_group *opdi_group_register_sized(const opd_group_desc *desc, size_t size);
OPD_INLINE opd_group *opd_group_register(const opd_group_desc *desc) {
    return opdi_group_register_sized(desc, sizeof(opd_group_desc));            /* a newer header may have a larger
                                                                                 struct */
}
/* Waits for running transfers and removes the group: calls by its name fail from here on.  Returns 0, or -1 with the
   error of a failed transfer.  The group and its pointer are invalid in both cases. */
OPD_NEW int opd_group_unregister(opd_group *group);
/* Tells all ranks that this rank gives up, and why.  Collectives that other ranks wait for, and all later calls of all
   ranks, fail with an error that contains `why`.  May be called while an error is pending; that error stays.  If the
   pending error of this rank is a failed allocation, the functions of this section that take a group call
   opd_group_abandon themselves.  Returns 0, or -1 with an error. */
OPD_NEW int opd_group_abandon(opd_group *group, const char *why);
/* Finds a group by its name.  If there is none, returns NULL with an error that lists the registered groups. */
OPD_NEW opd_group *opd_group_find(const char *name);
/* Return the rank of this process in the group, the group's number of ranks, and its name. */
OPD_NEW int opd_group_rank(const opd_group *group);
OPD_NEW int opd_group_size(const opd_group *group);
OPD_NEW const char *opd_group_name(const opd_group *group);
/* Makes a subgroup of the count ranks in `ranks`, in this order.  Each of these ranks calls this, in the same order as
   other collectives.  If this process is not one of them, returns NULL without an error. */
OPD_NEW opd_group *opd_group_split(opd_group *group, const char *name, const int32_t *ranks, int32_t count);

/* Lets a backend move the tensors of one device of this process, instead of a copy through the host.  Backend "cuda"
   uses NCCL (see opdispatch_cuda.cu).  The group's own functions still move host memory, as in PyTorch's
   "cpu:gloo,cuda:nccl".  Collectives are then queued on the device, where they run in parallel with other work, and the
   host does not wait: an operator that uses a result makes the current stream wait.  Transfers that the backend cannot
   do (NCCL: bitwise reductions, some dtypes, tags other than 0) are still copied through the host.  All ranks call
   this, each with its own device.  Subgroups that are made later use the backend, too.  Returns 0.  If this fails on a
   rank, all ranks return -1 with the error of the first such rank. */
OPD_NEW int opd_group_device_add(opd_group *group, opd_device device);
enum { OPD_GROUP_ID = 128 };
/* The functions by which a backend moves its memory for a rank of a group; opd_backend_desc.group_new fills them in.
   Only one thread at a time calls them.  A function that fails returns -1, with or without an opd_fail. */
typedef struct opd_group_mover {
    /* Waits until all ranks have joined; group_new itself does not wait. */
    int (*ready)(void *user);
    /* Returns true if these functions can do a transfer; the answer must be the same on all ranks. */
    bool (*takes)(void *user, const opd_transfer *transfer);
    /* Begins a transfer, which runs after the work that is now queued on the current stream.  For floating and complex
       dtypes, the reduction may be AVG. */
    int (*start)(void *user, const opd_transfer *transfer, void **request);
    /* Makes later work on the current stream wait for the transfer.  Frees the request.  Returns 0 or -1. */
    int (*wait)(void *user, void *request);
    int (*test)(void *user, void *request);       /* returns 1 if done, 0 if not yet, -1 if failed; keeps the request */
    int (*flush)(void *user);                     /* begins transfers that `start` has only queued; may be NULL */
    int (*abandon)(void *user, const char *why);  /* this rank gives up: its streams no longer wait for other ranks */
    int (*destroy)(void *user);                   /* frees all requests; returns -1 if a transfer had not finished */
    void *user;
} opd_group_mover;

/* A handle of a running transfer.  Tensors that the transfer reads or writes may be used like results of operators: the
   first use that needs them waits. */
typedef struct opd_work opd_work;
/* Waits for work and frees its handle.  Returns 0, or -1 with an error.  If work is NULL, the transfer could not begin,
   and this returns -1.  So `opd_work_wait(opd_group_send(...))` sends and waits. */
OPD_NEW int opd_work_wait(opd_work *work);
/* Returns 1 if work is done, 0 if not yet, -1 if it failed. */
OPD_NEW int opd_work_test(opd_work *work);
/* Frees the handle `work`.  The transfer continues. */
OPD_NEW void opd_work_release(opd_work *work);
/* Functions opd_group_send to opd_group_barrier begin transfers that are not operators, and return the work, or NULL
   with an error.  Tensors that are written into must have no gaps and require no grad.  The `list` of gather and
   scatter is one tensor [ranks, ...] at the root, and NULL elsewhere.  Any number of sends and receives may begin, in
   any order, before the program waits for one (batch_isend_irecv).  Messages between two ranks with the same tag arrive
   in the order in which they were sent. */
OPD_NEW opd_work *opd_group_send(opd_group *group, opd_tensor *tensor, int to, int tag);
OPD_NEW opd_work *opd_group_recv(opd_group *group, opd_tensor *tensor, int from, int tag);
OPD_NEW opd_work *opd_group_reduce(opd_group *group, opd_tensor *tensor, const char *reduce_op, int root);
OPD_NEW opd_work *opd_group_gather(opd_group *group, opd_tensor *tensor, opd_tensor *list, int root);
OPD_NEW opd_work *opd_group_scatter(opd_group *group, opd_tensor *tensor, opd_tensor *list, int root);
OPD_NEW opd_work *opd_group_barrier(opd_group *group);
/* Begins a transfer of any memory.  To wait for the transfer, use the returned handle: operators that use the memory do
   not wait. */
OPD_NEW opd_work *opd_group_start(opd_group *group, const opd_transfer *transfer);
/* The most common collectives as functions.  opd_all_reduce to opd_broadcast_ call the operators that are described
   above, and return the result, or NULL with an error. */
OPD_NEW opd_tensor *opd_all_reduce(opd_tensor *input, const char *reduce_op, const char *group_name);
OPD_NEW opd_tensor *opd_all_reduce_(opd_tensor *input, const char *reduce_op, const char *group_name);
OPD_NEW opd_tensor *opd_all_gather(opd_tensor *input, const char *group_name);
OPD_NEW opd_tensor *opd_reduce_scatter(opd_tensor *input, const char *reduce_op, const char *group_name);
OPD_NEW opd_tensor *opd_broadcast(opd_tensor *input, int src, const char *group_name);
OPD_NEW opd_tensor *opd_broadcast_(opd_tensor *input, int src, const char *group_name);

/* Parallel training on all ranks of a group, made by opd_data_parallel or opd_sharded_parallel. */
typedef struct opd_parallel opd_parallel;
/* Options of opd_data_parallel and opd_sharded_parallel. */
typedef struct opd_parallel_options {
    int64_t bucket_bytes;                 /* the approximate size of one message; 0: 25 MiB */
    bool find_unused;                     /* parameters may be unused in a backward, on some ranks or on all: a missing
                                             gradient counts as zeros; if no rank has the gradient, it stays unchanged.
                                             If false, unused parameters cause an error on every rank */
    opd_tensor *const *buffers;           /* tensors that opd_parallel_begin copies from rank 0 to all ranks */
    int nbuffers;
} opd_parallel_options;
/* Begins data parallel training (torch.nn.parallel.DistributedDataParallel): each rank has all parameters and a part of
   each batch.  Copies rank 0's parameters and buffers to all ranks.  From then on, each backward leaves the mean of all
   ranks' gradients in the parameters.  Optimizers need no change.  Example:
       opd_parallel *parallel = opd_data_parallel(params, count, group, NULL);
       while (opd_parallel_begin(parallel, size of this rank's part) > 0) { forward, backward, step }
   Hooks put the gradients into buckets (messages of bucket_bytes), in the order in which gradients arrived in the first
   backward.  A full bucket is sent immediately, while backward goes on.  Gradients that a backward has made become
   parts of their buckets (gradient_as_bucket_view); gradients that the program keeps are not changed.  A gradient of
   512 KiB or more on the host is a separate message, sent without a copy.
   If the group's sums are the same from run to run, so are the results.  Parameters, buffers and the group must live as
   long as the opd_parallel, which only one thread may use.  On failure returns NULL with an error.  Also fails if the
   options, or the number, sizes or dtypes of parameters or buffers, differ between ranks. */
OPD_NEW opd_parallel *opd_data_parallel(opd_tensor *const *params, int count, opd_group *group,
                                        const opd_parallel_options *options);
/* Begins a step with `samples` examples on this rank.  Every rank calls this before forward, also while communication
   is off (opd_parallel_sync_set).  Returns the number of examples of all ranks, or -1 with an error.  Gradients are
   weighted by these numbers, so that they equal the gradients of one process with the mean over the whole batch.
   Without this call, all ranks have the same weight.
   A rank that has no more examples passes 0 until this returns 0: its gradients count as zeros, and it gets the mean of
   the other ranks' gradients, so that it takes the same step. */
OPD_NEW int64_t opd_parallel_begin(opd_parallel *parallel, int64_t samples);
/* Turns the communication of backward on or off.  While it is off, each rank adds up its own gradients.  The first
   backward after communication is on again sends the sums (DDP.no_sync).  An opd_parallel_begin applies to all
   backwards until the next opd_parallel_begin; the ranks' numbers of examples may differ each time.  Returns the
   previous setting. */
OPD_NEW bool opd_parallel_sync_set(opd_parallel *parallel, bool on);
/* Frees parallel training.  A graph that was recorded during sharded training may outlive `parallel`. */
OPD_NEW void opd_parallel_free(opd_parallel *parallel);

/* Begins sharded training (FullyShardedDataParallel, ZeRO 3).  Each parameter, its gradient and its optimizer state are
   split into as many parts as the group has ranks, and each rank keeps one part.  Afterwards params[i] is this rank's
   part: a leaf of size [ceil(numel / ranks)] with rank 0's values.  Elements after the last value are zeros.  Forward
   gets the whole parameter from opd_parallel_full, which does not wait for the other ranks' parts: the first operator
   that reads its result waits.  Backward computes the mean of all ranks' gradients, and adds this rank's part of it to
   the gradient of params[i].  Make optimizers afterwards, from the parts.
   Example:
       opd_parallel *parallel = opd_sharded_parallel(params, count, group, NULL);
       opd_optimizer *adam = opd_adamw_new(params, count, NULL);
       while (opd_parallel_begin(parallel, size of this rank's part of the batch) > 0) {
           ... opd_linear(x, opd_parallel_full(parallel, params[0]), NULL) ...; backward, step
       }
   Every rank runs the same forward, with the same parameters in the same order.  A rank that has no more examples
   passes 0 to opd_parallel_begin, and continues with any examples, which do not count.
   An opd_parallel_begin applies to all backwards until the next opd_parallel_begin.  Without it, all ranks have the
   same weight.  Every backward communicates, even if opd_parallel_sync_set was called, and gradients of several
   backwards add up.  The options bucket_bytes and find_unused are ignored: a parameter that no rank uses gets no
   gradient.  params may be NULL with count 0, if all parameters are added by opd_sharded_add.  On failure returns NULL
   with an error. */
OPD_NEW opd_parallel *opd_sharded_parallel(opd_tensor *const *params, int count, opd_group *group,
                                           const opd_parallel_options *options);
/* Splits more parameters.  For a model too large for one process, call this for each layer as soon as its parameters
   are made.  Returns 0, or -1 with an error and all parameters unchanged. */
OPD_NEW int opd_sharded_add(opd_parallel *parallel, opd_tensor *const *params, int count);
/* Gathers the whole parameter; `param` is this rank's part.  The result is a tensor of the innermost scope, with a
   history if grad mode is on.  All ranks call this.  Returns NULL with an error on failure. */
OPD_NEW opd_tensor *opd_parallel_full(opd_parallel *parallel, opd_tensor *param);
/* Begins saved-tensor hooks, until opd_saved_hooks_end, that save memory.  Graphs that this thread records do not keep
   whole parameters: a whole parameter is freed with its scope, and backward gathers it again.  From the second backward
   on, gathering the next parameter overlaps with the work on the present one.  If a parameter was changed since
   forward, backward fails.  Returns 0, or -1 with an error. */
OPD_NEW int opd_sharded_hooks_begin(opd_parallel *parallel);
/* Clips the norm of the gradients of all parts on all ranks.  opd_clip_grad_norm and an opd_scaler fail for these
   parameters, because they would see only this rank's parts.  Returns the norm before clipping, a float32 tensor
   without dims, or NULL with an error. */
OPD_NEW opd_tensor *opd_sharded_clip_grad_norm(opd_parallel *parallel, double max_norm);
/* Writes a checkpoint of sharded training into an existing folder.  Every rank calls this.  Each rank writes its parts.
   Rank 0 also writes the tensors that are not split and, at last, the index, FOLDER/index.pt.  The index also contains
   the `count` values, under the paths `names` (see opd_checkpoint_file_save).  No path may begin with "sharded".
   opd_tensor_file_open reads these values.
   `module` must have all split parameters, and gives the names of tensors.  optimizer may be NULL.  The previous
   checkpoint in the folder is valid until the new index is written, even if writing is interrupted.  Returns 0, or -1
   with an error. */
OPD_NEW int opd_sharded_save(opd_parallel *parallel, const char *folder, const opd_module *module,
                             const opd_optimizer *optimizer, const char *const *names, const opd_value *values,
                             int64_t count);
/* Loads a checkpoint of opd_sharded_save, on any number of ranks, also one.  The names and whole sizes of `module` must
   equal the checkpoint's.  If a file is missing, cut off or damaged, or a value does not fit, all ranks fail with an
   error that names the file or value, and nothing is changed.  Returns 0, or -1 with an error. */
OPD_NEW int opd_sharded_load(opd_parallel *parallel, const char *folder, opd_module *module, opd_optimizer *optimizer);

