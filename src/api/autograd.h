//----------------------------------------------------------------------------------------------------------------------
//  >>api:autograd   the tape
//----------------------------------------------------------------------------------------------------------------------

/* torch.Tensor.requires_grad_: only floating tensors, only leaves.  Returns tensor, or NULL with an error. */
OPD_API opd_tensor *opd_tensor_set_requires_grad(opd_tensor *tensor, bool on);
OPD_API bool opd_tensor_requires_grad(const opd_tensor *tensor);
OPD_API bool opd_tensor_is_leaf(const opd_tensor *tensor);
/* torch.Tensor._base: the tensor of which this one, made by view operators, is a view; borrowed.  NULL: it is no view.
   What is written into either, the other's history follows. */
OPD_API opd_tensor *opd_tensor_base(const opd_tensor *tensor);
/* The accumulated gradient of a leaf, or of what was given as `inputs`: borrowed, NULL when there is none. */
OPD_API opd_tensor *opd_tensor_grad(const opd_tensor *tensor);
OPD_API int opd_tensor_set_grad(opd_tensor *tensor, opd_tensor *grad);        /* NULL takes it away */
OPD_API const char *opd_tensor_grad_fn(const opd_tensor *tensor);             /* "MulBackward0", or NULL for a leaf */
/* torch.autograd.backward of one tensor, with an implicit gradient of one for a one-element tensor. */
OPD_API int opd_backward(opd_tensor *tensor);
/* A place in the graph: input nr of a node, which is where the gradient of its result nr goes.  See >>api:hooks. */
typedef struct opd_edge { opd_node *node; uint32_t nr; } opd_edge;
typedef struct opd_backward_options {
    opd_tensor *const *grad_outputs;   /* one for each output, or NULL; elements may be NULL */
    bool retain_graph, create_graph;   /* create_graph retains too */
    bool allow_unused;                 /* opd_autograd_grad: an input that was not used gives NULL, not an error */
    opd_tensor *const *inputs; int ninputs;   /* opd_backward_with: accumulate into these only, leaves or not */
    bool materialize_grads;            /* opd_autograd_grad: an input that was not used gives zeros */
    const opd_edge *input_edges;       /* ninputs of them, in place of `inputs` (of both functions) */
    bool is_grads_batched;             /* opd_autograd_grad: grad_outputs have a dim in front that counts several of
                                          them, and so have the gradients: one vmap of the backward */
} opd_backward_options;
/* Any thread; several may work on one graph.  Nested in a formula or hook it may go to any depth.  When it fails the
   first error is kept with the node's and the operator's name; leaves reached before keep what was added to them, the
   graph stays as it is but for saved tensors of nodes that have run. */
OPD_API int opd_backward_with(opd_tensor *const *outputs, int count, const opd_backward_options *options);
/* torch.autograd.grad: gradients of outputs with respect to inputs, into grads (of the innermost scope). */
OPD_API int opd_autograd_grad(opd_tensor *const *outputs, int count, opd_tensor *const *inputs, int ninputs,
                              const opd_backward_options *options, opd_tensor **grads);
/* Grad mode of this thread.  opd_grad_mode_set returns what it was:
   `bool was = opd_grad_mode_set(false); ... opd_grad_mode_set(was);`  As blocks: OPD_NO_GRAD { }, OPD_ENABLE_GRAD { },
   OPD_GRAD_MODE(on) { } (torch.no_grad, enable_grad, set_grad_enabled).  What a kernel, a formula or a callback changes
   ends with it; opd_dispatch_state carries the mode to another thread. */
OPD_API bool opd_grad_mode_enabled(void);
OPD_API bool opd_grad_mode_set(bool on);
typedef struct opd_grad_block { bool was, open; } opd_grad_block;
OPD_INLINE opd_grad_block opd_grad_begin(bool on) {
    opd_grad_block block;
    block.was = opd_grad_mode_set(on);
    block.open = true;
    return block;
}
OPD_INLINE void opd_grad_end(opd_grad_block *block) {
    if (block->open) {
        block->open = false;
        (void)opd_grad_mode_set(block->was);
    }
}
/* Inference mode of this thread (c10::InferenceMode): no grad mode, calls pass by the Autograd keys, and tensors
   made in it are inference tensors: without history and version, never saved for a backward and not written outside.
   Views of other tensors stay such, but may be written only inside.  Returns the thread's whole state before, which
   opd_dispatch_state_set puts back; as a block: OPD_INFERENCE_MODE(on) { }.  `false` inside gives the normal mode. */
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

/* Inside a formula.  Arguments and results are those of the forward call; only what the card's `save` names is there
   (NULL for other tensors); it was fetched, and found as it was saved, before the formula runs, which it does not where
   no gradient is wanted.  Of an operator that writes arguments those that it returns are results, and are saved as
   they were before it; what it writes without returning it gets no history (the first argument does, as result 0), and
   an error when it has one. */
OPD_API opd_tensor *opd_bw_grad(opd_backward_call *bw, int i);                /* gradient of result i, or NULL */
OPD_API opd_tensor *opd_bw_tensor(opd_backward_call *bw, int i);              /* saved tensor argument i */
OPD_API opd_tensors opd_bw_tensors(opd_backward_call *bw, int i);             /* saved list argument i */
OPD_API opd_value opd_bw_value(opd_backward_call *bw, int i);                 /* any argument that is no tensor */
OPD_API opd_tensor *opd_bw_result(opd_backward_call *bw, int i);              /* saved result i */
/* Whether argument i's gradient is wanted; for a list argument, of its element k (bw_needs: of any). */
OPD_API bool opd_bw_needs(const opd_backward_call *bw, int i);
OPD_API bool opd_bw_needs_at(const opd_backward_call *bw, int i, int element);
/* Sizes, dtype and device of argument i (element k of a list), where its gradient is wanted; elsewhere n = -1, and data
   that reads as zeros, before and behind it: a formula of several arguments asks opd_bw_needs first. */
OPD_API opd_ints opd_bw_sizes(const opd_backward_call *bw, int i);
OPD_API opd_ints opd_bw_sizes_at(const opd_backward_call *bw, int i, int element);
OPD_API opd_scalar_type opd_bw_dtype(const opd_backward_call *bw, int i);
OPD_API opd_device opd_bw_device(const opd_backward_call *bw, int i);
/* Gives argument i's gradient (kept at once); NULL: there is none.  A NULL after something failed passes the error on;
   returns 0 or -1.  A gradient that is broadcast or of another floating dtype is summed down and cast by the engine.
   A formula that returns without a word about an argument whose gradient is wanted is an error, but where the gradient
   of a result that it asked for was NULL. */
OPD_API int opd_bw_return(opd_backward_call *bw, int i, opd_tensor *grad);
OPD_API int opd_bw_return_at(opd_backward_call *bw, int i, int element, opd_tensor *grad);

/* Autograd by hand, in a kernel at an Autograd key: call the operator below, then tie its results to a formula.
   `inputs` are the tensors whose gradients the formula gives (in the order of opd_bw_return), `saved` the tensors it
   reads with opd_bw_tensor (first) and `values` what it reads with opd_bw_value (numbered after them; copied).  At most
   255 of both.  Nothing happens when no input requires grad or grad mode is off.  0, or -1 with an error. */
OPD_API int opd_autograd_record(const char *name, opd_backward_fn backward, opd_tensor *const *inputs, int ninputs,
                                opd_tensor *const *saved, int nsaved, const opd_value *values, int nvalues,
                                opd_tensor *const *results, int nresults);
/* True when grad mode is on and one of the call's tensors requires grad, or when one has a tangent. */
OPD_API bool opd_call_requires_grad(const opd_call *call);

/* A custom function (torch.autograd.Function): `forward` computes, with grad mode off, what opd_autograd_apply returns;
   when grad mode is on and an input requires grad, `backward` is its formula.  What they share is in the context:
   forward fills it itself, or leaves that to `setup_context`, which runs behind it and sees inputs and outputs.  In the
   formula opd_bw_grad(bw, i) is the gradient of output i, opd_bw_return(bw, i, g) gives that of input i, and with NULL
   says that it has none.  All three return 0, or not 0 after an error.
   Inside transforms (vmap, grad, ...) a function needs a setup_context.  Under vmap it calls `vmap`, if that is there:
   inputs with all their examples along in_dims (-1: not batched; of a list dim 0) to outputs and theirs, by operators
   and functions of the layers around (see opd_batch_size); it returns how many.  Else forward itself runs batched, or,
   where a tape or forward mode outside of the vmap follows an input, the whole function for each example. */
typedef int (*opd_function_vmap_fn)(void *user, const opd_value *inputs, const int *in_dims, int count,
                                    opd_value *outputs, int *out_dims);
typedef struct opd_autograd_function {
    const char *name;            /* its nodes are NAMEBackward */
    opd_setup_fn forward;
    opd_setup_fn setup_context;  /* or NULL */
    opd_backward_fn backward;    /* NULL: an error when backward comes to it */
    opd_jvp_fn jvp;              /* forward mode (see >>api:forward), after forward; NULL: inputs have no tangents */
    void *user;                  /* opd_context_user */
    bool once_differentiable;    /* the formula runs with grad mode off; a second derivative is refused */
    opd_function_vmap_fn vmap;   /* at most OPD_TRANSFORM_OUTPUTS outputs; or NULL */
    void *reserved[1];           /* zero */
} opd_autograd_function;
/* Function.apply.  Writes the first cap outputs (tensors and lists of the innermost scope) and returns how many there
   are, or -1 with an error.  An input that is returned as it is comes back as a view of it; one that is returned twice,
   marked dirty or not, is the same tensor twice.  Inputs may be lists of tensors; outputs are single tensors and other
   values.  The struct is copied, its name too.  Any thread. */
OPD_API int opd_autograd_apply(const opd_autograd_function *fn, opd_value *outputs, int cap, const opd_value *inputs,
                               int count);
/* The first output, a tensor; NULL: failed.  OPD_APPLY(&fn, x, 2.5) wraps C values as OPD_CALL does. */
OPD_API opd_tensor *opd_autograd_call(const opd_autograd_function *fn, const opd_value *inputs, int count);

/* The context of a custom function or of an operator with a set-up (torch's ctx); it lives as long as the node.  In
   forward and set-up: the inputs (of an operator: its arguments, defaults filled in), and the outputs so far. */
OPD_API int opd_context_ninputs(const opd_context *ctx);
OPD_API opd_value opd_context_input(const opd_context *ctx, int i);
OPD_API opd_tensor *opd_context_tensor(const opd_context *ctx, int i);        /* NULL: not there, or no tensor */
OPD_API opd_value opd_context_output(const opd_context *ctx, int i);
/* In forward: give the next output; take hold of it at once.  NULL: the error passes on. */
OPD_API int opd_context_return(opd_context *ctx, opd_tensor *tensor);
OPD_API int opd_context_return_value(opd_context *ctx, opd_value value);
/* Whether input i (an element of the list i) requires grad; in the formula too. */
OPD_API bool opd_context_needs_input_grad(const opd_context *ctx, int i);
/* Tensors that the formula reads with opd_context_saved, at most 190; elements may be NULL.  A second call replaces the
   first.  An error when one was written to meanwhile, or the graph was freed. */
OPD_API int opd_context_save_for_backward(opd_context *ctx, opd_tensor *const *tensors, int count);
/* Saves tensors for the jvp, as opd_context_save_for_backward does for the formula. */
OPD_API int opd_context_save_for_forward(opd_context *ctx, opd_tensor *const *tensors, int count);
OPD_API int opd_context_nsaved(const opd_context *ctx);
OPD_API opd_tensor *opd_context_saved(opd_context *ctx, int i);
/* In the formula: frees what was saved now and not after it, when the backward does not retain the graph.  What
   opd_context_saved gave may be gone, and it fails from here on. */
OPD_API int opd_context_maybe_clear_saved_tensors(opd_context *ctx);
/* Says that forward writes, or in the set-up of a custom function: has written, into an input, which must be returned
   then; counts its version up. */
OPD_API int opd_context_mark_dirty(opd_context *ctx, opd_tensor *tensor);
/* Says that an output never requires grad. */
OPD_API int opd_context_mark_non_differentiable(opd_context *ctx, opd_tensor *tensor);
/* true, the default: an output that nobody used has a gradient of zeros in the formula; false: NULL. */
OPD_API void opd_context_set_materialize_grads(opd_context *ctx, bool on);
/* Attributes by name; values are copied (no tensors: those are saved).  NONE when there is no such one. */
OPD_API int opd_context_set(opd_context *ctx, const char *name, opd_value value);
OPD_API opd_value opd_context_get(const opd_context *ctx, const char *name);
/* A pointer with its destructor (may be NULL), called when the context ends or another takes its place. */
OPD_API int opd_context_set_data(opd_context *ctx, void *data, opd_destroy destroy);
OPD_API void *opd_context_data(const opd_context *ctx);
OPD_API void *opd_context_user(const opd_context *ctx);           /* of a custom function: its struct's `user` */
/* Inside a formula: its context, or NULL. */
OPD_API opd_context *opd_bw_context(const opd_backward_call *bw);

/* What an operator does that has neither a formula nor a kernel at Autograd when an input requires grad: backward
   through it is an error that names it (the default; one that writes an argument and does not return it is refused at
   once); or a warning and no gradient (PyTorch's default); or nothing: its results require no grad unless its kernel
   records.  For the whole process; returns what it was.  torch._C._set_autograd_fallback_mode. */
typedef enum opd_autograd_fallback_mode {
    OPD_AUTOGRAD_FALLBACK_ERROR = 0, OPD_AUTOGRAD_FALLBACK_WARN, OPD_AUTOGRAD_FALLBACK_NOTHING
} opd_autograd_fallback_mode;
OPD_API opd_autograd_fallback_mode opd_autograd_fallback_set(opd_autograd_fallback_mode mode);
/* The error of the default mode as a kernel to register at an Autograd key (autogradNotImplementedFallback): results
   get a node NotImplemented, what is written and returned too, after the checks of every write in place. */
OPD_API int opd_autograd_not_implemented(opd_call *call);
/* The companion of opd_autograd_not_implemented for the ADInplaceOrView key
   (autogradNotImplementedInplaceOrViewFallback): counts writes, and ties the first result to the argument whose memory
   it shares.  Writing into such a view is an error while something requires grad. */
OPD_API int opd_inplace_or_view_not_implemented(opd_call *call);

