//----------------------------------------------------------------------------------------------------------------------
//  >>api:hooks      graph nodes, hooks, checkpoints, anomaly mode (may change)
//----------------------------------------------------------------------------------------------------------------------

/* Nodes of the autograd graph.  For a leaf, the node is its AccumulateGrad node, which adds gradients to the leaf.
   Pointers to nodes are borrowed.  A node lives as long as its tensor lives, another node has an edge to it, or
   opd_node_keep has added an owner. */
OPD_NEW opd_node *opd_tensor_node(const opd_tensor *tensor);      /* returns Tensor.grad_fn; NULL for a leaf */
OPD_NEW opd_edge opd_gradient_edge(opd_tensor *tensor);           /* returns node NULL and sets an error if the tensor
                                                                     requires no grad */
OPD_NEW opd_node *opd_node_keep(opd_node *node);                  /* adds an owner */
OPD_NEW void opd_node_release(opd_node *node);                    /* removes an owner */
OPD_NEW const char *opd_node_name(const opd_node *node);          /* returns a name such as "MulBackward0" */
OPD_NEW uint64_t opd_node_sequence(const opd_node *node);         /* returns the number of the node in its thread;
                                                                     UINT64_MAX for AccumulateGrad */
OPD_NEW opd_op *opd_node_op(const opd_node *node);                /* the forward operator, or NULL */
OPD_NEW opd_tensor *opd_node_variable(const opd_node *node);      /* the leaf of AccumulateGrad; else NULL */
OPD_NEW int opd_node_edges(const opd_node *node);                 /* the number of edges to next nodes */
OPD_NEW opd_edge opd_node_edge(const opd_node *node, int i);      /* edge i; its node is NULL if gradient i is not
                                                                     needed */
/* The gradients that a node receives, one for each result of the forward call.  opd_node_inputs returns their number.
   The other functions return the sizes, dtype and device of gradient i.  If gradient i is undefined, the sizes have n =
   -1. */
OPD_NEW int opd_node_inputs(const opd_node *node);
OPD_NEW opd_ints opd_node_sizes(const opd_node *node, int i);
OPD_NEW opd_scalar_type opd_node_dtype(const opd_node *node, int i);
OPD_NEW opd_device opd_node_device(const opd_node *node, int i);

/* Hooks of nodes and tensors.  The functions that add a hook return its handle, or 0 and set an error.
   Order: When backward reaches a node, it runs the tensor hooks of the node's results, the node's pre-hooks,
   retain_grad, the node itself, for a leaf its post-accumulate hooks, and the node's post-hooks.  Hooks of one kind run
   in the order in which they were added.  If the backward needs only the gradients that the node receives, pre-hooks
   are skipped.
   Gradients: They are borrowed.  If a hook replaces a gradient, the new gradient must have the same sizes, dtype and
   device.  If the backward has create_graph, grad mode is on in hooks.  A hook that is added while opd_grad or opd_vjp
   runs a function sees only the gradients of that derivative, not the gradients of an enclosing derivative.
   Lifetime: A tensor hook belongs to the node that had computed the tensor when the hook was added.  After an in-place
   write, the tensor has another node, which does not have the hook (retain_grad follows the tensor).  destroy receives
   the user pointer after the hook was removed or its node or leaf was freed, once no thread runs the hook.  Hooks may
   remove hooks, and removing a handle again is harmless.
   A hook that returns -1 or leaves an error pending ends the backward.  While the hooks of a node change, no other
   thread may run backward through the node. */
/* Tensor hook: returns a gradient to use instead of `grad`, or NULL to keep `grad`.  The hook is not called if no
   gradient arrives. */
typedef opd_tensor *(*opd_tensor_hook_fn)(opd_tensor *grad, void *user);
OPD_NEW int64_t opd_tensor_hook_add(opd_tensor *tensor, opd_tensor_hook_fn fn, void *user, opd_destroy destroy);
/* Post-accumulate hook: called after a gradient was added to leaf's gradient.  Returns 0, or -1 to end the backward. */
typedef int (*opd_accumulate_hook_fn)(opd_tensor *leaf, void *user);
OPD_NEW int64_t opd_tensor_post_accumulate_hook_add(opd_tensor *tensor, opd_accumulate_hook_fn fn, void *user,
                                                    opd_destroy destroy);
/* Node pre-hook: grads[count] are the gradients of the node's results (NULL: undefined).  The hook may replace
   elements, also by NULL.  Returns 0, or -1 to end the backward. */
typedef int (*opd_node_pre_hook_fn)(opd_tensor **grads, int count, void *user);
OPD_NEW int64_t opd_node_pre_hook_add(opd_node *node, opd_node_pre_hook_fn fn, void *user, opd_destroy destroy);
/* Node post-hook: out[nout] are the gradients that the node computed, one per edge.  The hook may replace elements.
   grads[count] are the gradients that the node received.  Returns 0, or -1 to end the backward. */
typedef int (*opd_node_post_hook_fn)(opd_tensor **out, int nout, opd_tensor *const *grads, int count, void *user);
OPD_NEW int64_t opd_node_post_hook_add(opd_node *node, opd_node_post_hook_fn fn, void *user, opd_destroy destroy);
/* Adds one hook to `count` tensors together (torch.autograd.graph.register_multi_grad_hook).  The hook runs once per
   backward.  OPD_MULTI_ALL: The hook runs when the gradients of all the tensors that this backward reaches have
   arrived.  `grads` has NULL for the tensors that the backward does not reach.
   OPD_MULTI_ANY: The hook runs when the first gradient has arrived.  All other elements of `grads` are NULL. */
typedef enum opd_multi_mode { OPD_MULTI_ALL = 0, OPD_MULTI_ANY } opd_multi_mode;
typedef int (*opd_multi_hook_fn)(opd_tensor *const *grads, int count, void *user);
OPD_NEW int64_t opd_multi_hook_add(opd_tensor *const *tensors, int count, opd_multi_mode mode, opd_multi_hook_fn fn,
                                   void *user, opd_destroy destroy);
/* Removes a hook by its handle.  Returns false if there is no such hook. */
OPD_NEW bool opd_hook_remove(int64_t handle);
/* Makes backward keep the gradient of a tensor that is not a leaf, so that opd_tensor_grad returns it.  The gradient is
   taken after the tensor's hooks.  Does nothing for a leaf.  Returns 0, or -1 and sets an error.
   opd_tensor_retains_grad: Returns true if opd_tensor_retain_grad was called for the tensor. */
OPD_NEW int opd_tensor_retain_grad(opd_tensor *tensor);
OPD_NEW bool opd_tensor_retains_grad(const opd_tensor *tensor);

/* Queries about the innermost backward that is running on this thread.
   opd_backward_id: Returns a number that no other backward has, or -1 if no backward is running.
   opd_backward_keeps_graph: Returns true if this backward keeps the saved tensors (retain_graph).
   opd_backward_will_run: Returns true if node takes part in the backward.
   opd_backward_order: Writes the first cap nodes to `nodes`, in the order in which they run, and returns how many nodes
   there are. */
OPD_NEW int64_t opd_backward_id(void);
OPD_NEW bool opd_backward_keeps_graph(void);
OPD_NEW bool opd_backward_will_run(const opd_node *node);
OPD_NEW int64_t opd_backward_order(opd_node **nodes, int64_t cap);
/* Calls fn at the end of the running backward, on the thread of that backward (Engine::queue_callback).  fn may add
   more callbacks.  After an error, fn is not called.  Returns 0, or -1 and sets an error.  If opd_backward_callback
   returns -1, the caller still owns the user pointer. */
typedef int (*opd_callback_fn)(void *user);
OPD_NEW int opd_backward_callback(opd_callback_fn fn, void *user, opd_destroy destroy);

/* Hooks that store saved tensors in another form (torch.autograd.graph.saved_tensors_hooks).  opd_saved_hooks_begin
   pushes a pair of hooks and opd_saved_hooks_end pops it.  In between, when a node that is recorded on this thread
   saves a tensor, the tensor is passed to pack, and the node keeps the pointer that pack returns instead.  Only the
   innermost pair is called.
   pack: Gets the tensor without its history, which is restored automatically.  pack must not write to the tensor.  If
   pack leaves an error pending, the recorded call fails.
   unpack: Returns an equal tensor, of the same sizes and dtype.  Called before a backward function that reads the
   tensor runs.
   drop: Called when the packed tensor is not needed any more.
   destroy: Receives the user pointer when the pair is popped and all packed tensors are dropped.  May be called on any
   thread.  Operators called in pack and unpack are not recorded by autograd.  opd_saved_hooks_begin returns 0, or -1
   and sets an error. */
typedef struct opd_saved_hooks {
    void *(*pack)(opd_tensor *tensor, void *user);
    opd_tensor *(*unpack)(void *packed, void *user);
    void (*drop)(void *packed, void *user);       /* may be NULL */
    void *user;
    opd_destroy destroy;                          /* may be NULL */
} opd_saved_hooks;
OPD_NEW int opd_saved_hooks_begin(const opd_saved_hooks *hooks);
OPD_NEW void opd_saved_hooks_end(void);
/* Makes every opd_saved_hooks_begin on this thread fail with message (cut to 255 bytes).  If message is NULL, pushing
   is allowed again.  Returns 0, or -1 and sets an error with that message if a pair of hooks is already pushed.
   opd_saved_hooks_disabled: Returns the message, or NULL. */
OPD_NEW int opd_saved_hooks_disable(const char *message);
OPD_NEW const char *opd_saved_hooks_disabled(void);
/* Allows writing into saved tensors until opd_allow_mutation_end
   (torch.autograd.graph.allow_mutation_on_saved_tensors).  The permission is for tensors that nodes recorded by this
   thread save, and for writes on this thread.  Before the first write into a saved tensor, its memory is copied for
   backward, which must run before the end.
   Code that writes memory without an operator must report the write first (opd_context_mark_dirty), else backward fails
   as usual.  A pair of saved-tensor hooks implements this.  The block form is OPD_ALLOW_MUTATION { }, which is skipped
   if it cannot be opened.  Returns 0, or -1 and sets an error if a block is already open or saved-tensor hooks are
   disabled. */
OPD_NEW int opd_allow_mutation_begin(void);
OPD_NEW void opd_allow_mutation_end(void);
OPD_INLINE int opdi_allow_mutation_open(void) { return opd_allow_mutation_begin() == 0; }
OPD_INLINE void opdi_allow_mutation_close(int *open) {
    if (*open) {
        *open = 0;
        opd_allow_mutation_end();
    }
}
/* Returns a tensor that the node saved, with its history, in the innermost scope (grad_fn._saved_self).  name is the
   argument's name in the schema, or "result".  "tensors[2]" is an element of a list argument.  "saved_tensors[2]" is a
   tensor that a custom function or setup_context saved.  Returns NULL without an error if None was saved.
   opd_node_saved_hooks: Sets hooks for this saved tensor only, and only once.  Returns 0, or -1 and sets an error. */
OPD_NEW opd_tensor *opd_node_saved(opd_node *node, const char *name);
OPD_NEW int opd_node_saved_hooks(opd_node *node, const char *name, const opd_saved_hooks *hooks);

/* A function for opd_checkpoint_call and the transforms (opd_vmap, opd_grad, ...): computes outputs from inputs.
   Writes outputs (of the innermost scope) and returns their number, at most OPD_TRANSFORM_OUTPUTS, or -1 and sets an
   error. */
#define OPD_TRANSFORM_OUTPUTS 64
typedef int (*opd_transform_fn)(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
typedef struct opd_checkpoint_options {
    bool no_early_stop;                  /* when backward calls fn again, fn runs to its end, not only until all needed
                                            tensors are computed (early_stop=False) */
    bool no_preserve_rng_state;          /* backward does not reset the default generator before it calls fn again */
    opd_generator *const *generators;    /* generators to reset besides the default one; they must live as long as the
                                            graph. The array is copied */
    int ngenerators;
    bool (*keeps)(opd_call *call, void *user);   /* returns true if the results of an operator are kept, so that the
                                            operator does not run again; NULL: all operators run again */
    void *keeps_user;                    /* the user pointer for `keeps` */
} opd_checkpoint_options;
/* Calls fn, which writes outputs, and keeps only fn's inputs for backward (torch.utils.checkpoint with
   use_reentrant=False).  Backward calls fn again, with equal inputs and the default generator in its old state, to
   compute the tensors that fn's operators saved.  fn must do the same in both calls.  Random numbers in fn must come
   from the default generator or from options->generators.
   The second call ends early: as soon as it has computed all needed tensors, its next operator fails.  Therefore fn
   must check opd_ok() before it reads data.  Inside a level of forward mode, it does not end early.
   Checkpoints may be nested and differentiated twice.  They work in opd_grad, opd_vmap and the other transforms and in
   levels of forward mode, and fn may call transforms.  If a transform around the checkpoint has ended, its layer is
   opened again for the second call.  Therefore tensors that a transform around the checkpoint has made must be inputs.
   fn may read other tensors only if they are no duals and no examples of opd_vmap, and live as long as the graph.
   options->keeps (torch.utils.checkpoint.create_selective_checkpoint_contexts) is called once for each operator that
   the first call of fn runs, before its kernel.  It can read the operator and its arguments (opd_call_operator,
   opd_arg_tensor, ...).  If it returns true, as for CheckpointPolicy.MUST_SAVE and PREFER_SAVE, the results are kept
   until the graph is freed, and the second call takes them instead of running the kernel.  These operators run again in
   any case: views, operators that write their arguments, random and composite operators, and operators that compute
   tangents.  For a composite operator, `keeps` is called for the operators that it calls.  In nested checkpoints, the
   innermost one with `keeps` decides.  If a kept result is overwritten, backward fails.
   outputs has room for cap tensors, which belong to the caller's scope; if fn returns more, the call fails.  If options
   is NULL, all options are zero.  destroy receives the user pointer when the graph is freed, or immediately if fn
   fails.  Returns the number of outputs.  After a failure, returns -1 with an error, and the outputs are NULL.  If fn
   was not called, the caller still owns the user pointer. */
OPD_NEW int opd_checkpoint_call(opd_transform_fn fn, void *user, opd_destroy destroy, opd_tensor *const *inputs,
                                int ninputs, const opd_checkpoint_options *options, opd_tensor **outputs, int cap);
/* opd_checkpoint and opd_checkpoint_with are opd_checkpoint_call in the form of version 0.3, to be removed in version
   1.0.  fn has its user pointer last, gets the number of outputs, and returns 0, or -1 and sets an error.  The two
   functions also return 0 or -1, and set outputs to NULL after an error. */
typedef int (*opd_checkpoint_fn)(opd_tensor *const *inputs, int ninputs, opd_tensor **outputs, int noutputs,
                                 void *user);
OPD_NEW int opd_checkpoint(opd_checkpoint_fn fn, void *user, opd_destroy destroy, opd_tensor *const *inputs,
                           int ninputs, opd_tensor **outputs, int noutputs);
OPD_NEW int opd_checkpoint_with(opd_checkpoint_fn fn, void *user, opd_destroy destroy, opd_tensor *const *inputs,
                                int ninputs, opd_tensor **outputs, int noutputs, const opd_checkpoint_options *options);

/* Switches anomaly mode on or off for all threads (torch.autograd.set_detect_anomaly).  If `on` is true, nodes remember
   where they were recorded.  A backward that fails then logs that place, with the chain of nodes that were running.  If
   check_nan is true, too, a backward function that returns a NaN fails with an error.  Returns the previous mode
   (OPD_ANOMALY_*), for restoring it:
   `int was = opd_anomaly_set(true, true); ... opd_anomaly_set(was & OPD_ANOMALY_ON, was & OPD_ANOMALY_NAN);`
   OPD_ANOMALY_ON: The mode is on.
   OPD_ANOMALY_NAN: NaNs are checked. */
enum { OPD_ANOMALY_ON = 1, OPD_ANOMALY_NAN = 2 };
OPD_NEW int opd_anomaly_set(bool on, bool check_nan);

