//----------------------------------------------------------------------------------------------------------------------
//  >>api:hooks      nodes from outside, hooks, checkpoints, anomaly mode
//----------------------------------------------------------------------------------------------------------------------

/* Nodes.  A handle is a node of the graph, or for a leaf its AccumulateGrad.  Borrowed: it is there as long as a tensor
   or a node that leads to it, or with opd_node_keep. */
OPD_API opd_node *opd_tensor_node(const opd_tensor *tensor);      /* Tensor.grad_fn: NULL for a leaf */
OPD_API opd_edge opd_gradient_edge(opd_tensor *tensor);           /* node NULL with an error: requires no grad */
OPD_API opd_node *opd_node_keep(opd_node *node);
OPD_API void opd_node_release(opd_node *node);
OPD_API const char *opd_node_name(const opd_node *node);          /* "MulBackward0" */
OPD_API uint64_t opd_node_sequence(const opd_node *node);         /* grows on each thread; UINT64_MAX: AccumulateGrad */
OPD_API opd_op *opd_node_op(const opd_node *node);                /* the forward operator, or NULL */
OPD_API opd_tensor *opd_node_variable(const opd_node *node);      /* AccumulateGrad's leaf, NULL for other nodes */
OPD_API int opd_node_edges(const opd_node *node);
OPD_API opd_edge opd_node_edge(const opd_node *node, int i);      /* node NULL: that gradient is not wanted */
/* The gradients that it takes, one for each result of the forward call, and how they look; n = -1 where undefined. */
OPD_API int opd_node_inputs(const opd_node *node);
OPD_API opd_ints opd_node_sizes(const opd_node *node, int i);
OPD_API opd_scalar_type opd_node_dtype(const opd_node *node, int i);
OPD_API opd_device opd_node_device(const opd_node *node, int i);

/* Hooks.  Order at one node: hooks of its results (tensor hooks); unless it is only asked for its gradient, its
   pre-hooks; retain_grad; the node; a leaf's post-accumulate hooks; post-hooks.  Each kind in the order of adding.
   With create_graph grad mode is on in them.  What is hooked inside of a derivative of a function (opd_grad, opd_vjp)
   belongs to that one, not to what differentiates it in turn.
   A hook stays with the node that the tensor came from when it was added:
   an in-place operation leaves it behind (retain_grad follows).  Gradients are borrowed; what takes the place of one
   must have its sizes, dtype and device.  A hook that returns -1 or leaves an error pending ends the backward.
   Adding gives a handle, or 0 with an error; removing is allowed in hooks and harmless when repeated.  destroy gets
   the user pointer when the hook is removed or its node or leaf freed, and nobody runs it any more.  No other thread
   may run backward through the node while its hooks change. */
/* A gradient in place of `grad`, or NULL: it stays.  Not called where no gradient arrives. */
typedef opd_tensor *(*opd_tensor_hook_fn)(opd_tensor *grad, void *user);
OPD_API int64_t opd_tensor_hook_add(opd_tensor *tensor, opd_tensor_hook_fn fn, void *user, opd_destroy destroy);
/* After leaf's gradient was added to. */
typedef int (*opd_accumulate_hook_fn)(opd_tensor *leaf, void *user);
OPD_API int64_t opd_tensor_post_accumulate_hook_add(opd_tensor *tensor, opd_accumulate_hook_fn fn, void *user,
                                                    opd_destroy destroy);
/* The gradients of a node's results (NULL: undefined), in which it may put others; NULL takes one away. */
typedef int (*opd_node_pre_hook_fn)(opd_tensor **grads, int count, void *user);
OPD_API int64_t opd_node_pre_hook_add(opd_node *node, opd_node_pre_hook_fn fn, void *user, opd_destroy destroy);
/* The same of what it gave (`out`, for each edge), with what it got. */
typedef int (*opd_node_post_hook_fn)(opd_tensor **out, int nout, opd_tensor *const *grads, int count, void *user);
OPD_API int64_t opd_node_post_hook_add(opd_node *node, opd_node_post_hook_fn fn, void *user, opd_destroy destroy);
/* torch.autograd.graph.register_multi_grad_hook: once in a backward, when the gradients of all of the n tensors that it
   reaches have arrived (NULL for the others), or when the first has (alone in `grads`). */
typedef enum opd_multi_mode { OPD_MULTI_ALL = 0, OPD_MULTI_ANY } opd_multi_mode;
typedef int (*opd_multi_hook_fn)(opd_tensor *const *grads, int count, void *user);
OPD_API int64_t opd_multi_hook_add(opd_tensor *const *tensors, int count, opd_multi_mode mode, opd_multi_hook_fn fn,
                                   void *user, opd_destroy destroy);
OPD_API bool opd_hook_remove(int64_t handle);
/* From now on opd_tensor_grad(tensor) gives a result's gradient too, after its tensor hooks.  0, also for a leaf; or
   -1. */
OPD_API int opd_tensor_retain_grad(opd_tensor *tensor);
OPD_API bool opd_tensor_retains_grad(const opd_tensor *tensor);

/* The innermost backward at work on this thread: a number that no other has (-1: none is at work), whether it leaves
   saved tensors, whether a node takes part in it, its nodes in the order of running (the first cap; returns how many
   there are). */
OPD_API int64_t opd_backward_id(void);
OPD_API bool opd_backward_keeps_graph(void);
OPD_API bool opd_backward_will_run(const opd_node *node);
OPD_API int64_t opd_backward_order(opd_node **nodes, int64_t cap);
/* Engine::queue_callback: fn is called when that backward has done everything else, on its thread.  It may add more.
   Not called after an error.  0, or -1 with an error: the user pointer stays the caller's. */
typedef int (*opd_callback_fn)(void *user);
OPD_API int opd_backward_callback(opd_callback_fn fn, void *user, opd_destroy destroy);

/* torch.autograd.graph.saved_tensors_hooks: until the pop, what nodes recorded on this thread save is given to pack,
   and what pack returns is kept in its place.  unpack gives an equal tensor, of the same sizes and dtype, before a
   formula runs that reads it; drop is told when it is not needed any more.  The innermost pair alone is asked.  pack
   gets the tensor without its history (which comes back by itself) and must not write to it; a pending error makes the
   recorded call fail.  Neither records.  destroy gets the user pointer when the pair is popped and all that it packed
   is dropped, on any thread. */
typedef struct opd_saved_hooks {
    void *(*pack)(opd_tensor *tensor, void *user);
    opd_tensor *(*unpack)(void *packed, void *user);
    void (*drop)(void *packed, void *user);       /* may be NULL */
    void *user;
    void (*destroy)(void *user);                  /* may be NULL */
} opd_saved_hooks;
OPD_API int opd_saved_hooks_begin(const opd_saved_hooks *hooks);
OPD_API void opd_saved_hooks_end(void);
/* Makes every push on this thread fail with the message (cut to 255 bytes); NULL allows them again.  -1 with that error
   when a pair is pushed already.  opd_saved_hooks_disabled: the message, or NULL. */
OPD_API int opd_saved_hooks_disable(const char *message);
OPD_API const char *opd_saved_hooks_disabled(void);
/* torch.autograd.graph.allow_mutation_on_saved_tensors: until the end, what nodes recorded on this thread save may be
   written to on this thread; the first write into its memory copies it for the backward, which must come before the
   end.  What writes memory without an operator says so first (opd_context_mark_dirty), else backward fails as ever.
   These are saved-tensor hooks, pushed and popped with the rest.  As a block, left out when it cannot be entered:
   OPD_ALLOW_MUTATION { }.  0, or -1 with an error: one is open already, hooks are switched off. */
OPD_API int opd_allow_mutation_begin(void);
OPD_API void opd_allow_mutation_end(void);
OPD_INLINE int opd_allow_mutation_open(void) { return opd_allow_mutation_begin() == 0; }
OPD_INLINE void opd_allow_mutation_close(int *open) {
    if (*open) {
        *open = 0;
        opd_allow_mutation_end();
    }
}
/* What a node saved, by the name of the argument in the schema, or "result" (grad_fn._saved_self), with its history; of
   a list "tensors[2]"; of a custom function or set-up "saved_tensors[2]".  Of the innermost scope.  NULL without an
   error: None was saved.  And hooks for that one alone, at most once. */
OPD_API opd_tensor *opd_node_saved(opd_node *node, const char *name);
OPD_API int opd_node_saved_hooks(opd_node *node, const char *name, const opd_saved_hooks *hooks);

/* A function that is run again, or transformed: fills outputs (of the innermost scope) and returns how many, at most
   OPD_TRANSFORM_OUTPUTS, or -1 with an error. */
#define OPD_TRANSFORM_OUTPUTS 64
typedef int (*opd_transform_fn)(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
typedef struct opd_checkpoint_options {
    bool no_early_stop;                  /* fn's second call runs to its end (early_stop=False) */
    bool no_preserve_rng_state;          /* in it the default generator goes on from where it is */
    opd_generator *const *generators;    /* further ones that are put back as the default one is, and live as long as */
    int ngenerators;                     /* the graph.  The array is copied. */
} opd_checkpoint_options;
/* torch.utils.checkpoint (use_reentrant=False): calls fn, which fills outputs, but keeps only the inputs of what it
   saves for backward, which calls fn again with equal inputs and the default generator as it was.  fn must do the same
   each time (random numbers: of the default generator, or of those given).  That second call ends early: when all that
   is needed is there, its next operator fails, so fn checks opd_ok() before it reads data, as ever.  Checkpoints may
   be nested, and differentiated twice.  Outputs, room for as many as fn gives, belong to the scope of the caller.
   destroy gets the user pointer when the graph is gone, or at once when fn fails.  options NULL: none.  Returns how
   many outputs there are, or -1 with an error: without a call of fn the user pointer stays the caller's. */
OPD_API int opd_checkpoint_call(opd_transform_fn fn, void *user, opd_destroy destroy, opd_tensor *const *inputs,
                                int ninputs, const opd_checkpoint_options *options, opd_tensor **outputs);
/* The same in the form of version 0.3, which goes with version 0.5: fn has its user pointer last, knows how many
   outputs are wanted, and returns 0, or -1 with an error; so do these, which leave outputs NULL then. */
typedef int (*opd_checkpoint_fn)(opd_tensor *const *inputs, int ninputs, opd_tensor **outputs, int noutputs,
                                 void *user);
OPD_API int opd_checkpoint(opd_checkpoint_fn fn, void *user, opd_destroy destroy, opd_tensor *const *inputs,
                           int ninputs, opd_tensor **outputs, int noutputs);
OPD_API int opd_checkpoint_with(opd_checkpoint_fn fn, void *user, opd_destroy destroy, opd_tensor *const *inputs,
                                int ninputs, opd_tensor **outputs, int noutputs, const opd_checkpoint_options *options);

/* torch.autograd.set_detect_anomaly, for all threads: nodes remember where they were recorded, and a backward that
   fails tells it through the log, with the chain of nodes that were at work then.  With check_nan a formula that gives
   a NaN is an error.  Returns what it was (OPD_ANOMALY_*), to be put back:
   `int was = opd_anomaly_set(true, true); ... opd_anomaly_set(was & OPD_ANOMALY_ON, was & OPD_ANOMALY_NAN);` */
enum { OPD_ANOMALY_ON = 1, OPD_ANOMALY_NAN = 2 };
OPD_API int opd_anomaly_set(bool on, bool check_nan);

