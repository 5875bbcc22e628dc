//----------------------------------------------------------------------------------------------------------------------
//  >>api:autograd   the autograd graph: gradients, backward functions, custom functions
//----------------------------------------------------------------------------------------------------------------------

/* Sets whether a leaf requires grad (torch.Tensor.requires_grad_).  Only floating and complex tensors can require grad.
   Returns tensor, or NULL with an error. */
OPD_API opd_tensor *opd_tensor_set_requires_grad(opd_tensor *tensor, bool on);
OPD_API bool opd_tensor_requires_grad(const opd_tensor *tensor);
OPD_API bool opd_tensor_is_leaf(const opd_tensor *tensor);
/* Returns the tensor of which this tensor is a view, made by view operators (torch.Tensor._base), or NULL if it is not
   a view.  The result is borrowed.  After a write into a view or its base, the histories of both include the write. */
OPD_API opd_tensor *opd_tensor_base(const opd_tensor *tensor);
/* Returns the accumulated gradient of a leaf, or of a tensor in `inputs` of opd_backward_with; NULL if it has none.
   The result is borrowed. */
OPD_API opd_tensor *opd_tensor_grad(const opd_tensor *tensor);
/* Sets the gradient of a tensor.  grad must have the sizes, dtype and device of the tensor; NULL removes the gradient.
   Returns 0, or -1 with an error. */
OPD_API int opd_tensor_set_grad(opd_tensor *tensor, opd_tensor *grad);
/* Returns the name of the tensor's node in the autograd graph, such as "MulBackward0", or NULL for a leaf. */
OPD_API const char *opd_tensor_grad_fn(const opd_tensor *tensor);
/* Computes the gradients of a one-element tensor, and adds them to the leaves (torch.autograd.backward).  Backward
   starts with the gradient 1.  Returns 0, or -1 with an error. */
OPD_API int opd_backward(opd_tensor *tensor);
/* A place in the autograd graph to which backward brings a gradient: the gradient with respect to result number `nr` of
   the call that the node records.  See >>api:hooks. */
typedef struct opd_edge { opd_node *node; uint32_t nr; } opd_edge;
/* Options of opd_backward_with and opd_autograd_grad. */
typedef struct opd_backward_options {
    opd_tensor *const *grad_outputs;   /* a gradient for each output; NULL, or a NULL element, means 1 */
    bool retain_graph, create_graph;   /* retain_graph: the graph can run backward again; create_graph: also records the
                                          backward, for second derivatives, and retains the graph */
    bool allow_unused;                 /* opd_autograd_grad: an unused input gets NULL instead of an error */
    opd_tensor *const *inputs; int ninputs;   /* opd_backward_with: adds gradients only to these tensors, which need not
                                                 be leaves */
    bool materialize_grads;            /* opd_autograd_grad: an unused input gets zeros */
    const opd_edge *input_edges;       /* for both functions: ninputs edges, used instead of `inputs` */
    bool is_grads_batched;             /* opd_autograd_grad: grad_outputs and the gradients have one more dim in front,
                                          for several gradients that one vmap of the backward computes at once */
} opd_backward_options;
/* Computes the gradients of outputs and adds them to the leaves.  Any thread may call this, several threads may work on
   one graph, and calls inside a backward function or hook nest to any depth.  Returns 0, or -1 with an error.  After a
   failure, the first error is kept, with the names of the node and the operator.  Leaves that were reached before keep
   their new gradients.  The graph stays, but nodes that have run may have lost their saved tensors. */
OPD_API int opd_backward_with(opd_tensor *const *outputs, int count, const opd_backward_options *options);
/* Computes the gradients of outputs with respect to inputs (torch.autograd.grad).  Writes ninputs tensors of the
   innermost scope to grads.  Returns 0, or -1 with an error. */
OPD_API int opd_autograd_grad(opd_tensor *const *outputs, int count, opd_tensor *const *inputs, int ninputs,
                              const opd_backward_options *options, opd_tensor **grads);
/* Returns true if grad mode is on in this thread.  If a kernel, a backward function or a callback changes the mode, the
   change ends when that function returns.  To carry the mode to another thread, use opd_dispatch_state. */
OPD_API bool opd_grad_mode_enabled(void);
/* Sets the grad mode of this thread and returns the previous one:
   `bool was = opd_grad_mode_set(false); ... opd_grad_mode_set(was);`  As blocks: OPD_NO_GRAD { }, OPD_ENABLE_GRAD { },
   OPD_GRAD_MODE(on) { } (torch.no_grad, enable_grad, set_grad_enabled).  With tcc, a return inside such a block does
   not restore the mode. */
OPD_API bool opd_grad_mode_set(bool on);
typedef struct opd_grad_block { bool was, open; } opd_grad_block;
OPD_INLINE opd_grad_block opdi_grad_begin(bool on) {
    opd_grad_block block;
    block.was = opd_grad_mode_set(on);
    block.open = true;
    return block;
}
OPD_INLINE void opdi_grad_end(opd_grad_block *block) {
    if (block->open) {
        block->open = false;
        (void)opd_grad_mode_set(block->was);
    }
}
/* Sets the inference mode of this thread (c10::InferenceMode); false sets the normal mode.  In inference mode, grad
   mode is off and calls skip the Autograd keys.  New tensors are inference tensors: they have no history and no
   version, are never saved for a backward, and cannot be written outside of the mode.  Views of other tensors are
   normal tensors, but may be written only inside the mode.  Returns the previous state of the thread, which
   opd_dispatch_state_set restores.  As a block: OPD_INFERENCE_MODE(on) { }. */
OPD_API opd_dispatch_state opd_inference_mode_set(bool on);
OPD_API bool opd_inference_mode_enabled(void);
OPD_API bool opd_tensor_is_inference(const opd_tensor *tensor);
typedef struct opd_inference_block { opd_dispatch_state was; bool open; } opd_inference_block;
OPD_INLINE opd_inference_block opd_inference_begin(bool on) {
    opd_inference_block block;
    block.was = opd_inference_mode_set(on);
    block.open = true;
    return block;
}
OPD_INLINE void opd_inference_end(opd_inference_block *block) {
    if (block->open) {
        block->open = false;
        (void)opd_dispatch_state_set(block->was);
    }
}

/* Inside a backward function, the opd_bw_* functions read arguments and results of the forward call.  Tensors that
   `save` of the operator's descriptor does not name are NULL.  Before the backward function runs, the engine fetches
   the saved tensors and checks that they were not changed.  If no gradient is needed, the function is not called.
   An argument that the operator writes and returns counts as a result; if `save` names this argument, the saved tensor
   has the values from before the call.  An argument that the operator writes but does not return gets no history; if
   the argument requires grad, the call fails.  Exception: a first argument that is written gets the history of result
   0, even if it is not returned. */
OPD_API opd_tensor *opd_bw_grad(opd_backward_call *bw, int i);                /* gradient of result i; may be NULL */
OPD_API opd_tensor *opd_bw_tensor(opd_backward_call *bw, int i);              /* saved tensor argument i */
OPD_API opd_tensors opd_bw_tensors(opd_backward_call *bw, int i);             /* saved list argument i */
/* These functions return argument i, which is not a tensor, as opd_arg_int and its neighbours do in a kernel.  None
   gives 0, false, NULL, or an empty list.  If the argument has another type, they set an error and return the same. */
OPD_API int64_t opd_bw_int(opd_backward_call *bw, int i);
OPD_API double opd_bw_double(opd_backward_call *bw, int i);
OPD_API bool opd_bw_bool(opd_backward_call *bw, int i);
OPD_API const char *opd_bw_str(opd_backward_call *bw, int i);
OPD_API opd_ints opd_bw_ints(opd_backward_call *bw, int i);
OPD_API opd_doubles opd_bw_doubles(opd_backward_call *bw, int i);
OPD_API bool opd_bw_is_none(opd_backward_call *bw, int i);
OPD_API opd_value opd_bw_value(opd_backward_call *bw, int i);                 /* of any type, such as Scalar */
OPD_API opd_tensor *opd_bw_result(opd_backward_call *bw, int i);              /* saved result i */
/* Returns true if the gradient of argument i is needed; for a list argument, of any of its elements. */
OPD_API bool opd_bw_needs(const opd_backward_call *bw, int i);
/* Returns true if the gradient of one element of list argument i is needed. */
OPD_API bool opd_bw_needs_at(const opd_backward_call *bw, int i, int element);
/* opd_bw_sizes, opd_bw_dtype and opd_bw_device return sizes, dtype and device of argument i; opd_bw_sizes_at returns
   the sizes of one element of list argument i.  These values are known only if the gradient of the argument is needed.
   Otherwise the sizes have n = -1, and `data` points into a block of zeros: any dim, counted from the start or from the
   end, reads as 0.  So in a backward function of several arguments, call opd_bw_needs first. */
OPD_API opd_ints opd_bw_sizes(const opd_backward_call *bw, int i);
OPD_API opd_ints opd_bw_sizes_at(const opd_backward_call *bw, int i, int element);
OPD_API opd_scalar_type opd_bw_dtype(const opd_backward_call *bw, int i);
OPD_API opd_device opd_bw_device(const opd_backward_call *bw, int i);
/* Sets the gradient of argument i, or NULL if there is no gradient.  The tensor is retained at once.  If the gradient
   is broadcast or has another floating dtype, the engine sums and casts it.  If grad is NULL because a call failed,
   that error is passed on.  Returns 0 or -1.  A backward function must set each gradient that is needed, to a tensor or
   NULL: otherwise backward fails.  A backward function to which opd_bw_grad returned NULL need not set any gradient. */
OPD_API int opd_bw_return(opd_backward_call *bw, int i, opd_tensor *grad);
/* Sets the gradient of one element of list argument i, as opd_bw_return does. */
OPD_API int opd_bw_return_at(opd_backward_call *bw, int i, int element, opd_tensor *grad);

/* Connects results to a backward function in the autograd graph.  A kernel at an Autograd key first calls the operator
   below this key, and then this function.  `inputs` are the tensors whose gradients `backward` gives, in the order of
   opd_bw_return.  `saved` are tensors for opd_bw_tensor, numbered from 0.  `values` are copied for opd_bw_value and
   numbered after the saved tensors; there are at most 255 of both together.  Records nothing if no input requires grad
   or grad mode is off.  If an input has a tangent, computes the tangents of the results by differentiating `backward`.
   Returns 0, or -1 with an error. */
OPD_API int opd_autograd_record(const char *name, opd_backward_fn backward, opd_tensor *const *inputs, int ninputs,
                                opd_tensor *const *saved, int nsaved, const opd_value *values, int nvalues,
                                opd_tensor *const *results, int nresults);
/* Returns true if grad mode is on and a tensor of the call requires grad, or if a tensor of the call has a tangent. */
OPD_API bool opd_call_requires_grad(const opd_call *call);

/* The batching rule of a custom function.  inputs[i] has all examples along dim in_dims[i], or is not batched if
   in_dims[i] is -1; the tensors of a list have the examples along dim 0.  The rule fills outputs and out_dims in the
   same way.  Operators that the rule calls run in the layers outside of the vmap (see opd_batch_size).  Returns the
   number of outputs. */
typedef int (*opd_function_vmap_fn)(void *user, const opd_value *inputs, const int *in_dims, int count,
                                    opd_value *outputs, int *out_dims);
/* A custom function (torch.autograd.Function).  opd_autograd_apply calls `forward`, with grad mode off, to compute the
   outputs.  If grad mode is on and an input requires grad, `backward` later computes the gradients.  Both get the same
   context.  The context is filled by `forward`, or by `setup_context`, which runs after `forward` and sees inputs and
   outputs.  In `backward`, opd_bw_grad(bw, i) is the gradient of output i, and opd_bw_return(bw, i, g) gives the
   gradient of input i, or NULL if it has none.  All three functions return 0, or another number after an error.
   Inside transforms (vmap, grad, ...) a function needs a setup_context.  Under vmap, `vmap` is called if it is set.
   Otherwise `forward` is called with batched tensors.  If an input requires grad or has a tangent outside of the vmap,
   the whole function runs for each example instead. */
typedef struct opd_autograd_function {
    const char *name;            /* its nodes are called NAMEBackward */
    opd_setup_fn forward;
    opd_setup_fn setup_context;  /* may be NULL */
    opd_backward_fn backward;    /* if NULL, backward through the function fails */
    opd_jvp_fn jvp;              /* forward mode (see >>api:forward), runs after `forward`; NULL: calls with tangents
                                    fail */
    void *user;                  /* returned by opd_context_user */
    bool once_differentiable;    /* `backward` runs with grad mode off; second derivatives fail */
    opd_function_vmap_fn vmap;   /* may be NULL; gives at most OPD_TRANSFORM_OUTPUTS outputs */
    void *reserved[1];           /* zero */
} opd_autograd_function;
/* Calls a custom function (Function.apply).  Inputs may be lists of tensors; an output is one tensor or another value.
   Writes the first `cap` outputs, which belong to the innermost scope.  Returns the number of outputs, or -1 with an
   error.  If `forward` returns an input unchanged, the output is a view of this input.  If `forward` returns an input
   twice, marked dirty or not, both outputs are the same tensor.  The struct and its name are copied.  Any thread may
   call this. */
OPD_API int opd_autograd_apply(const opd_autograd_function *fn, const opd_value *inputs, int count, opd_value *outputs,
                               int cap);
/* Calls a custom function and returns its first output, which must be a tensor.  Returns NULL if that fails.
   OPD_APPLY(&fn, x, 2.5) wraps C values as OPD_CALL does. */
OPD_API opd_tensor *opd_autograd_call(const opd_autograd_function *fn, const opd_value *inputs, int count);

/* The opd_context_* functions read and fill the context of a custom function, or of an operator with setup_context
   (torch's ctx).  The context lives as long as the node.
   The functions opd_context_ninputs, opd_context_input, opd_context_tensor and opd_context_output work in `forward` and
   `setup_context`.  Inputs of an operator are its arguments, with defaults filled in.  opd_context_output returns the
   outputs that were added so far. */
OPD_API int opd_context_ninputs(const opd_context *ctx);
OPD_API opd_value opd_context_input(const opd_context *ctx, int i);
OPD_API opd_tensor *opd_context_tensor(const opd_context *ctx, int i);        /* input i; NULL if not a tensor */
OPD_API opd_value opd_context_output(const opd_context *ctx, int i);
/* Adds a tensor to the outputs, in `forward`.  The tensor is retained at once.  If tensor is NULL because a call
   failed, that error is passed on.  Returns 0, or -1 with an error. */
OPD_API int opd_context_return(opd_context *ctx, opd_tensor *tensor);
/* Adds any value to the outputs, as opd_context_return does. */
OPD_API int opd_context_return_value(opd_context *ctx, opd_value value);
/* Returns true if input i requires grad; for a list, if an element does.  Also works in `backward`. */
OPD_API bool opd_context_needs_input_grad(const opd_context *ctx, int i);
/* Saves tensors, at most 190, for `backward`; elements may be NULL.  A second call replaces the first.  Returns 0, or
   -1 with an error. */
OPD_API int opd_context_save_for_backward(opd_context *ctx, opd_tensor *const *tensors, int count);
/* Saves tensors for `jvp`, as opd_context_save_for_backward does for `backward`. */
OPD_API int opd_context_save_for_forward(opd_context *ctx, opd_tensor *const *tensors, int count);
/* Returns the number of tensors saved for `backward`. */
OPD_API int opd_context_nsaved(const opd_context *ctx);
/* Returns saved tensor i, in `backward` or `jvp`.  Returns NULL with an error if the tensor was written to since it was
   saved, or if the graph was freed. */
OPD_API opd_tensor *opd_context_saved(opd_context *ctx, int i);
/* For use in `backward`: frees the saved tensors immediately, if the graph is not retained.  From then on,
   opd_context_saved fails, and tensors that opd_context_saved has returned must not be used.  Returns 0, or -1 with an
   error. */
OPD_API int opd_context_maybe_clear_saved_tensors(opd_context *ctx);
/* Marks an input that `forward` writes into.  A custom function with setup_context marks the input in setup_context,
   after the write.  Increments the tensor's version.  The function must then return the input as an output.  Returns 0,
   or -1 with an error. */
OPD_API int opd_context_mark_dirty(opd_context *ctx, opd_tensor *tensor);
/* Marks an output that never requires grad.  Returns 0, or -1 with an error. */
OPD_API int opd_context_mark_non_differentiable(opd_context *ctx, opd_tensor *tensor);
/* Sets the gradient that `backward` sees for an output that nobody used: zeros if true (the default), else NULL.
   Returns the previous setting. */
OPD_API bool opd_context_set_materialize_grads(opd_context *ctx, bool on);
/* Sets an attribute of the context by name.  The value is copied.  Tensors are not allowed: save them instead.  Returns
   0, or -1 with an error. */
OPD_API int opd_context_set(opd_context *ctx, const char *name, opd_value value);
/* Returns an attribute of the context by name; None if it is not set. */
OPD_API opd_value opd_context_get(const opd_context *ctx, const char *name);
/* Sets the context's pointer.  The destructor `destroy`, which may be NULL, runs when the context ends or another
   pointer is set.  Returns 0, or -1 with an error. */
OPD_API int opd_context_set_data(opd_context *ctx, void *data, opd_destroy destroy);
/* Returns the pointer that opd_context_set_data has set. */
OPD_API void *opd_context_data(const opd_context *ctx);
OPD_API void *opd_context_user(const opd_context *ctx);           /* returns `user` of the opd_autograd_function */
/* Returns the context to which a backward function belongs, or NULL if it has none. */
OPD_API opd_context *opd_bw_context(const opd_backward_call *bw);

/* How the process treats an operator with neither a backward function nor a kernel at Autograd, if an input requires
   grad. */
typedef enum opd_autograd_fallback_mode {
    OPD_AUTOGRAD_FALLBACK_ERROR = 0,   /* the default: backward through the operator fails with an error that names the
                                          operator; a call that writes an argument without returning it fails
                                          immediately */
    OPD_AUTOGRAD_FALLBACK_WARN,        /* PyTorch's default: a warning, and no gradient */
    OPD_AUTOGRAD_FALLBACK_NOTHING      /* results require no grad, unless the kernel records them */
} opd_autograd_fallback_mode;
/* Sets the mode for operators without a derivative, for the whole process.  Returns the previous mode.  Follows
   torch._C._set_autograd_fallback_mode. */
OPD_API opd_autograd_fallback_mode opd_autograd_fallback_set(opd_autograd_fallback_mode mode);
/* A kernel for an Autograd key that acts as OPD_AUTOGRAD_FALLBACK_ERROR does (autogradNotImplementedFallback).  Results
   get a node NotImplemented, whose backward fails.  Arguments that are written and returned get this node, too, after
   the usual checks of in-place writes. */
OPD_API int opd_autograd_not_implemented(opd_call *call);
/* A kernel for the ADInplaceOrView key, used together with opd_autograd_not_implemented
   (autogradNotImplementedInplaceOrViewFallback).  Counts writes, and makes the first result a view of the argument
   whose memory it shares.  Writing into that view fails if a gradient is required. */
OPD_API int opd_inplace_or_view_not_implemented(opd_call *call);

