//----------------------------------------------------------------------------------------------------------------------
//  >>api:collectives groups of processes, what they send each other, training on all of them
//----------------------------------------------------------------------------------------------------------------------

/* Several processes that run one program: a process group has a name, a rank for each of them, and a table of functions
   that move memory between them, which a program or plug-in registers: examples/mpi_group.c is the one over MPI.  The
   group "self" is always there, of this process alone.  Collectives are operators by PyTorch's schemas, in the
   namespace _c10d_functional: all_reduce, all_gather_into_tensor, reduce_scatter_tensor, all_to_all_single, broadcast,
   isend, irecv, batch_p2p_ops, wait_tensor, wait_tensors; the first three also _coalesced; all_reduce_, broadcast_ and
   all_reduce_coalesced_ in place; all_gather_into_tensor_out and reduce_scatter_tensor_out; and
   _c10d_functional_autograd, the same again.  reduce_op is "sum", "avg", "product", "min", "max", "band", "bor" or
   "bxor"; group_name is a group's name (a str: objects that PyTorch takes there are Python's).  They have derivatives,
   for the sum of what all ranks differentiate (of all_reduce and reduce_scatter_tensor: "sum", "avg", "product", which
   gathers all ranks' numbers, and "min" and "max", shared out among those that have the extreme value; in place "sum"
   and "avg"; isend and irecv have none), rules for vmap (of isend and irecv all examples are one message) and forward
   mode, and are recorded, counted and shown by the profiler like any other, with the bytes that they move.  irecv fills
   its argument and returns it; isend returns a tensor without elements, and graphs keep it.  Every rank calls the same
   ones in the same order.
   The namespace c10d has PyTorch's other set, allreduce_ to recv_, into memory that is there: a ProcessGroup is an
   opd_group (opd_value_object) or its name, a ReduceOp its name, and a Work that comes back is an opd_work, which the
   caller gives to opd_work_wait or opd_work_release.  They have no derivatives, and are not recorded or batched; those
   with a list of what each rank has wait before they return; nothing receives from any rank (recv_any_source_).
   Tensors of a device go by way of the host, or by what moves its memory: opd_group_device_add, opd_group_desc.takes.
   A collective is on its way when the operator returns.  Its result is an ordinary tensor: the first operator that
   reads it, and opd_data, waits; views do not.  What writes the input waits, too; a pointer that the program took
   before does not, and leaves both alone until then.  Where it failed, that is the error of whoever uses the result. */
typedef struct opd_group opd_group;
typedef enum opd_collective {
    OPD_COLLECTIVE_ALL_REDUCE = 1, OPD_COLLECTIVE_ALL_GATHER, OPD_COLLECTIVE_REDUCE_SCATTER, OPD_COLLECTIVE_ALL_TO_ALL,
    OPD_COLLECTIVE_BROADCAST, OPD_COLLECTIVE_REDUCE, OPD_COLLECTIVE_GATHER, OPD_COLLECTIVE_SCATTER,
    OPD_COLLECTIVE_SEND, OPD_COLLECTIVE_RECV, OPD_COLLECTIVE_BARRIER
} opd_collective;
typedef enum opd_reduction {
    OPD_REDUCTION_SUM = 0, OPD_REDUCTION_AVG, OPD_REDUCTION_PRODUCT, OPD_REDUCTION_MIN, OPD_REDUCTION_MAX,
    OPD_REDUCTION_BAND, OPD_REDUCTION_BOR, OPD_REDUCTION_BXOR
} opd_reduction;
/* What is moved.  Memory lies in a row and stays until it is done; send == recv: in place. */
typedef struct opd_transfer {
    opd_collective kind;
    opd_reduction reduction;     /* AVG never comes to a group: it sums, and the sum is divided here */
    opd_scalar_type dtype;
    const void *send;            /* count elements; of REDUCE_SCATTER and of SCATTER's root `count` for each rank */
    void *recv;                  /* count elements; of ALL_GATHER and of GATHER's root `count` from each rank */
    int64_t count;
    const int64_t *send_counts, *recv_counts;     /* ALL_TO_ALL alone: elements to and from each rank, in their order */
    int32_t peer;                /* root, destination or source */
    int32_t tag;                 /* of SEND and RECV, from 0 on */
} opd_transfer;
/* How a group moves memory.  Functions return -1 after opd_fail or without a word.  Those of one group are called by
   one thread at a time, of several groups by several. */
typedef struct opd_group_desc {
    const char *name;            /* letters, digits, anything; at most 63 bytes */
    int32_t rank, size;          /* this process is rank 0 to size - 1 */
    /* Begins to move; *request is what `test` gets.  0 or -1.  NULL only for a group of one. */
    int (*start)(void *user, const opd_transfer *transfer, void **request);
    /* 1: it is done, 0: not yet, -1: it failed; with 1 and -1 the request is gone.  May wait for some microseconds. */
    int (*test)(void *user, void *request, int64_t wait_us);
    /* Makes the table of a group of these ranks, for each of which it is called; fills in start, test, split, destroy
       and user of `out`.  NULL: it has no subgroups but those of one. */
    int (*split)(void *user, const int32_t *ranks, int32_t count, struct opd_group_desc *out);
    void (*destroy)(void *user);                  /* when the group ends; may be NULL */
    void *user;
    int64_t timeout_ms;          /* what waits for longer fails; 0: ten minutes */
    /* Ranks tell each other what they call before it begins: other collectives, sizes, dtypes or an other order are an
       error of all of them that names the first difference.  (A rank that calls nothing is one after timeout_ms.)
       Who sends to another waits until that one receives, and both compare what they say of it, too; `tag` comes to
       the group doubled, and at most 2^30 - 1 before. */
    bool checked;
    /* Tells the other ranks that this one does not go on: from then on their `start` and `test` are -1 with an error
       that says why.  0 or -1.  NULL: they find out by timeout_ms. */
    int (*abandon)(void *user, const char *why);
    /* Whether `start` takes memory of that device for a transfer (NULL: for any), as a library does that is aware of
       GPUs; what was queued on the device is done before.  NULL: it takes the host's alone, and other tensors go by way
       of it, or by opd_group_device_add. */
    bool (*takes)(void *user, opd_device device, const opd_transfer *transfer);
    /* Whether `start` takes this transfer, whose reduction is AVG, as one, in one pass over memory with the sum: the
       same on all ranks.  NULL: none; `start` sees a SUM, and what comes is divided. */
    bool (*averages)(void *user, const opd_transfer *transfer);
} opd_group_desc;
/* Registers a group under its name.  desc is copied.  Belongs to the registry.  NULL with an error. */
OPD_API opd_group *opd_group_register_sized(const opd_group_desc *desc, size_t size);
OPD_INLINE opd_group *opd_group_register(const opd_group_desc *desc) {
    return opd_group_register_sized(desc, sizeof(opd_group_desc));            /* which may grow */
}
/* Waits for what is on its way and takes the group away: calls by its name fail from here on.  0, or -1 with an error
   of what failed; the group is gone in any case, and its pointer with it. */
OPD_API int opd_group_unregister(opd_group *group);
/* Says on every rank that this one does not go on, and why: what the others wait for, and all that they and this one
   call from here on, is an error that has it.  Works while an error is pending, which stays.  Happens by itself where a
   function of this room that takes a group finds that an allocation has failed on this rank and its error is pending.
   0, or -1 with an error. */
OPD_API int opd_group_abandon(opd_group *group, const char *why);
/* The group of that name; NULL with an error that lists those that are there. */
OPD_API opd_group *opd_group_find(const char *name);
OPD_API int opd_group_rank(const opd_group *group);
OPD_API int opd_group_size(const opd_group *group);
OPD_API const char *opd_group_name(const opd_group *group);
/* Makes a group of some ranks of another one, in this order: each of them calls this, in the same order as other
   collectives.  NULL without an error where this process is not among them. */
OPD_API opd_group *opd_group_split(opd_group *group, const char *name, const int32_t *ranks, int32_t count);

/* Tensors of a device go by way of the host.  After this those of one device of this process, each rank's own, do not:
   its backend moves them, "cuda" by NCCL (opdispatch_cuda.cu says more), and the group's own functions the host's, as
   PyTorch's "cpu:gloo,cuda:nccl".  Collectives are then queued beside the device's work, and nobody waits on the host:
   who uses a result makes the current stream wait.  What the backend cannot do (NCCL: bitwise reductions, some dtypes,
   tags other than 0) still goes by way of the host.  All ranks call it; subgroups made later have it, too.  0, or -1
   with the error of the first rank that cannot, on all of them. */
OPD_API int opd_group_device_add(opd_group *group, opd_device device);
enum { OPD_GROUP_ID = 128 };
/* How a backend moves its memory for a rank of a group: what opd_backend_desc.group_new fills in.  Functions are called
   by one thread at a time, and return -1 after opd_fail or without a word. */
typedef struct opd_group_mover {
    /* Waits until all ranks are there, after group_new, which does not. */
    int (*ready)(void *user);
    /* Whether it can; the same on all ranks. */
    bool (*takes)(void *user, const opd_transfer *transfer);
    /* Begins when what is queued on the current stream now is done; AVG comes, too, of floating and complex dtypes. */
    int (*start)(void *user, const opd_transfer *transfer, void **request);
    /* What is queued on the current stream from now on begins when it is done.  0 or -1; the request is gone. */
    int (*wait)(void *user, void *request);
    int (*test)(void *user, void *request);       /* 1, 0 or -1: done, not yet, failed; the request stays */
    int (*flush)(void *user);                     /* begins what `start` kept to begin it with others; may be NULL */
    int (*abandon)(void *user, const char *why);  /* this rank does not go on, and its streams wait for nobody */
    int (*destroy)(void *user);                   /* when all is done, or -1: it was not; with all requests */
    void *user;
} opd_group_mover;

/* Work that is on its way: opd_work_wait waits and gives the handle back, 0 or -1 with an error; NULL is what failed to
   begin, so `opd_work_wait(opd_group_send(...))` is the call that waits.  opd_work_test: 1 done, 0 not yet, -1 failed.
   opd_work_release: gives the handle back and lets it go on.  Tensors that are moved may be used as those of operators:
   who needs them waits. */
typedef struct opd_work opd_work;
OPD_API int opd_work_wait(opd_work *work);
OPD_API int opd_work_test(opd_work *work);
OPD_API void opd_work_release(opd_work *work);
/* What is no operator: tensors that are written into have no gaps and require no grad.  gather's `list` and scatter's
   are one tensor with a dim of all ranks in front, at the root alone (elsewhere NULL).  Any number of sends and
   receives may be begun, in any order, before one is waited for (batch_isend_irecv); of those between two ranks with
   one tag the first sent is the first received.  NULL with an error. */
OPD_API opd_work *opd_group_send(opd_group *group, opd_tensor *tensor, int to, int tag);
OPD_API opd_work *opd_group_recv(opd_group *group, opd_tensor *tensor, int from, int tag);
OPD_API opd_work *opd_group_reduce(opd_group *group, opd_tensor *tensor, const char *reduce_op, int root);
OPD_API opd_work *opd_group_gather(opd_group *group, opd_tensor *tensor, opd_tensor *list, int root);
OPD_API opd_work *opd_group_scatter(opd_group *group, opd_tensor *tensor, opd_tensor *list, int root);
OPD_API opd_work *opd_group_barrier(opd_group *group);
/* Any memory, not watched: nobody who uses it waits but by the handle. */
OPD_API opd_work *opd_group_start(opd_group *group, const opd_transfer *transfer);
/* The operators most used. */
OPD_API opd_tensor *opd_all_reduce(opd_tensor *input, const char *reduce_op, const char *group_name);
OPD_API opd_tensor *opd_all_reduce_(opd_tensor *input, const char *reduce_op, const char *group_name);
OPD_API opd_tensor *opd_all_gather(opd_tensor *input, const char *group_name);
OPD_API opd_tensor *opd_reduce_scatter(opd_tensor *input, const char *reduce_op, const char *group_name);
OPD_API opd_tensor *opd_broadcast(opd_tensor *input, int src, const char *group_name);
OPD_API opd_tensor *opd_broadcast_(opd_tensor *input, int src, const char *group_name);

/* Data parallel training (torch.nn.parallel.DistributedDataParallel): each rank has the same parameters and a part of
   each batch.  Making one writes rank 0's parameters and buffers over everybody's; from then on each backward leaves
   the mean of all ranks' gradients in the parameters, by hooks: gradients go into buckets, in the order in which they
   arrived the first time, and a bucket is on its way as soon as it is full, while backward goes on.  Gradients that a
   backward has made become parts of their buckets (gradient_as_bucket_view); what somebody keeps stays as it was.  One
   of 512 KiB and more on the host is a message of its own, from where it lies.
   Optimizers know nothing of it.  The results are the same from run to run, as far as the group's sums are.
       opd_parallel *parallel = opd_data_parallel(params, count, group, NULL);
       while (opd_parallel_begin(parallel, size of this rank's part) > 0) { forward, backward, step }
   Parameters, buffers and the group live as long as it.  One thread. */
typedef struct opd_parallel opd_parallel;
typedef struct opd_parallel_options {
    int64_t bucket_bytes;                 /* of one message, about; 0: 25 MiB */
    bool find_unused;                     /* a backward may leave parameters out, on some ranks or on all: their
                                             gradients count as zeros, and those that no rank has stay as they are; else
                                             that is an error of every rank */
    opd_tensor *const *buffers;           /* opd_parallel_begin writes rank 0's over everybody's */
    int nbuffers;
} opd_parallel_options;
/* NULL with an error, also where ranks have other numbers, sizes or dtypes of parameters or buffers, or options. */
OPD_API opd_parallel *opd_data_parallel(opd_tensor *const *params, int count, opd_group *group,
                                        const opd_parallel_options *options);
/* Before forward, on every rank, also while gradients only add up (opd_parallel_sync_set): how many examples this rank
   has now.  Returns how many all have; with them gradients are weighted, as one process would have them from the whole
   batch and a mean over it.  A rank that has no more says 0 until 0 comes back: it takes part with zeros, and its
   gradients are the others' mean, for a step like theirs.  -1 with an error.  Without a call there are plain means. */
OPD_API int64_t opd_parallel_begin(opd_parallel *parallel, int64_t samples);
/* False: gradients add up on each rank alone, until a backward while it is true (DDP.no_sync).  An opd_parallel_begin
   holds for all backwards until the next one, each of which may have other parts.  Returns what it was. */
OPD_API bool opd_parallel_sync_set(opd_parallel *parallel, bool on);
/* What was recorded with a sharded one may outlive it. */
OPD_API void opd_parallel_free(opd_parallel *parallel);

/* Sharded training (FullyShardedDataParallel, ZeRO 3): of each parameter a rank has one part in `size of the group`,
   and so of its gradient and of what an optimizer knows of it.  Afterwards params[i] is this rank's part, a leaf of one
   dim and of ceil(numel / ranks) elements (zeros behind the last one), of rank 0's values; forward takes the whole one,
   which is on its way when opd_parallel_full returns.  Backward sums the gradient and leaves this rank's part in the
   parameter.  Optimizers are made afterwards, of the parts.
       opd_parallel *parallel = opd_sharded_parallel(params, count, group, NULL);
       opd_optimizer *adam = opd_adamw_new(params, count, NULL);
       while (opd_parallel_begin(parallel, size of this rank's part of the batch) > 0) {
           ... opd_linear(x, opd_parallel_full(parallel, params[0])) ...; backward, step
       }
   Every rank runs the same forward: the same parameters in the same order.  One that has no more examples says 0 and
   goes on with any others, which count as nothing.  Without opd_parallel_begin gradients are plain means; what it says
   holds until the next one.  Every backward communicates, opd_parallel_sync_set or not, and gradients of several add
   up; bucket_bytes and find_unused have no meaning: a parameter that no rank takes gets no gradient.  params NULL and
   count 0: none yet. */
OPD_API opd_parallel *opd_sharded_parallel(opd_tensor *const *params, int count, opd_group *group,
                                           const opd_parallel_options *options);
/* Splits further parameters: of a model too large for one process those of one layer after the other, each time as soon
   as they are made.  0, or -1 with an error and all of them as they were. */
OPD_API int opd_sharded_add(opd_parallel *parallel, opd_tensor *const *params, int count);
/* The whole parameter, with a history where gradients are recorded; of the innermost scope.  All ranks call it. */
OPD_API opd_tensor *opd_parallel_full(opd_parallel *parallel, opd_tensor *param);
/* Until opd_saved_hooks_end: what is recorded on this thread keeps no whole parameters, which go with their scopes, and
   backward gathers them again, from the second time on each while it works with the one behind it.  These are
   saved-tensor hooks.  A parameter that was changed meanwhile is an error of
   backward.  0, or -1 with an error. */
OPD_API int opd_sharded_hooks_begin(opd_parallel *parallel);
/* opd_clip_grad_norm, of all parts on all ranks: that one would see this rank's alone, and refuses them (as opd_scaler
   does). */
OPD_API opd_tensor *opd_sharded_clip_grad_norm(opd_parallel *parallel, double max_norm);
/* A checkpoint in a folder that is there: each rank writes its parts, rank 0 what is whole, and then an index, `count`
   values under paths in it (opd_checkpoint_file_save; not "sharded...").  Names are the module's, which has all
   parameters that are split; optimizer may be NULL.  Every rank calls it.  Until the new index is there the last
   checkpoint stays as it was, whatever ends the writing.  load: by any number of ranks, of one, too; the module's names
   and whole sizes must be those of the checkpoint.  Files that are missing, cut off or damaged, and what does not fit,
   are errors that name them, of the rank that found it, and of all others, and nothing is changed.  The values are read
   by opd_tensor_file_open("FOLDER/index.pt").  0, or -1 with an error. */
OPD_API int opd_sharded_save(opd_parallel *parallel, const char *folder, const opd_module *module,
                             const opd_optimizer *optimizer, const char *const *names, const opd_value *values,
                             int64_t count);
OPD_API int opd_sharded_load(opd_parallel *parallel, const char *folder, opd_module *module, opd_optimizer *optimizer);

