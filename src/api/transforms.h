//----------------------------------------------------------------------------------------------------------------------
//  >>api:transforms vmap and derivatives of functions
//----------------------------------------------------------------------------------------------------------------------

/* As an element of in_dims or out_dims: the tensor has no dim of examples, and is the same for every example. */
#define OPD_NO_DIM (-2147483647 - 1)
/* How random operators behave inside vmap.
   OPD_RANDOM_ERROR: Random operators fail with an error.
   OPD_RANDOM_DIFFERENT: Different numbers for each example.
   OPD_RANDOM_SAME: The same numbers for all examples, drawn once. */
typedef enum opd_randomness { OPD_RANDOM_ERROR = 0, OPD_RANDOM_DIFFERENT, OPD_RANDOM_SAME } opd_randomness;
typedef struct opd_vmap_options {
    const int *in_dims; int nin_dims;       /* the dim of the examples, for each input; NULL: 0 for all inputs.  If
                                               nin_dims is 1, the dim is for all inputs */
    const int *out_dims; int nout_dims;     /* the dim of the examples, for each output, as for in_dims */
    opd_randomness randomness;
    int64_t chunk_size;                     /* the largest number of examples in one call of fn; 0: all */
    const char *name;                       /* name of the function in errors; NULL: "fn" */
} opd_vmap_options;
/* Vectorizes fn (torch.vmap(fn)(*inputs)).  Calls fn once (with chunk_size: once for each chunk) with inputs that look
   like one example, and computes the outputs of all examples.  fn may call transforms.  Tensors that fn uses, but that
   are not inputs, are the same for every example.  Operators without a batching rule run example by example (see
   opd_vmap_fallback_set).  If options is NULL, dim 0 of all inputs and outputs has the examples.  outputs has room for
   cap tensors.  Writes the outputs (of the innermost scope) and returns their number.  If there are more than cap, or
   after another failure, returns -1 with an error, and the outputs are NULL. */
OPD_API int opd_vmap(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                     const opd_vmap_options *options, opd_tensor **outputs, int cap);
/* vmap for code that is not in a function.
   opd_vmap_begin: Opens a layer for batch_size examples, and returns its level (from 1; layers nest), or -1 and sets an
   error.
   opd_vmap_wrap: Returns a tensor that looks like one example of tensor, whose examples are along in_dim.
   opd_vmap_unwrap: Returns all examples, along out_dim.  A tensor that is the same for all examples is repeated.
   opd_vmap_end: Closes the layer, which must be the innermost one.  The end of the scope around it closes the layer,
   too.  Works while an error is pending.  Afterwards, calls with a tensor of the layer fail. */
OPD_API int opd_vmap_begin(int64_t batch_size, opd_randomness randomness);
OPD_API opd_tensor *opd_vmap_wrap(opd_tensor *tensor, int in_dim, int level);
OPD_API opd_tensor *opd_vmap_unwrap(opd_tensor *tensor, int out_dim, int level);
OPD_API int opd_vmap_end(int level);
/* opd_transform_depth: Returns the number of transform layers that are open on this thread.
   opd_tensor_is_batched: Returns true if tensor holds the examples of an open vmap layer. */
OPD_API int opd_transform_depth(void);
OPD_API bool opd_tensor_is_batched(const opd_tensor *tensor);

/* Sets how operators without a batching rule behave in vmap, for the whole process.  Returns the previous mode.
   OPD_VMAP_FALLBACK_WARN: Operators run example by example, and warn the first time (the default).
   OPD_VMAP_FALLBACK_SILENT: Operators run example by example.
   OPD_VMAP_FALLBACK_ERROR: Operators fail with an error.
   opd_vmap_fallback_count: Returns how many calls ran example by example. */
typedef enum opd_vmap_fallback { OPD_VMAP_FALLBACK_WARN = 0, OPD_VMAP_FALLBACK_SILENT, OPD_VMAP_FALLBACK_ERROR }
    opd_vmap_fallback;
OPD_API opd_vmap_fallback opd_vmap_fallback_set(opd_vmap_fallback mode);
OPD_API int64_t opd_vmap_fallback_count(void);

/* The next functions are for use inside a batching rule: `.vmap` of an operator descriptor, or a kernel registered at
   the key "FuncTorchBatched".  A rule runs if one of the tensors is batched at the innermost vmap layer.  If an
   operator is tagged NONDETERMINISTIC_SEEDED, its rule runs for every call in the layer, unless the layer's randomness
   mode forbids the call.  Operators that a rule calls run in the layers around the vmap layer.
   opd_batch_arg: Returns tensor argument i with all its examples.  Writes the dim that counts the examples to *dim, or
   -1 if the tensor is the same for all examples.  Returns NULL if the argument is None. */
OPD_API opd_tensor *opd_batch_arg(opd_call *call, int i, int *dim);
/* Returns any tensor, such as an element of a list argument, with all its examples, as opd_batch_arg does. */
OPD_API opd_tensor *opd_batch_value(opd_tensor *tensor, int *dim);
/* Returns a view of tensor, whose examples are along dim, with that dim in front.  If dim is -1, the view is expanded
   to the batch size.  If tensor is NULL, returns NULL. */
OPD_API opd_tensor *opd_batch_front(opd_tensor *tensor, int dim);
OPD_API int64_t opd_batch_size(void);
OPD_API opd_randomness opd_batch_randomness(void);
/* Sets the next result of the call.  tensor has the examples along dim, or is the same for all if dim is -1.  If tensor
   is NULL because an earlier call failed, that error is passed on.
   opd_batch_return_list: Sets a result of type Tensor[]. */
OPD_API int opd_batch_return(opd_call *call, opd_tensor *tensor, int dim);
OPD_API int opd_batch_return_list(opd_call *call, opd_tensor *const *list, int64_t count, int dim);

/* Options for derivatives of functions.  Zero is the default of every option.  A function that is differentiated may
   itself call the functions below, so derivatives nest.  For per-example gradients, pass opd_vmap a function whose body
   is `return opd_grad(loss, user, inputs, ninputs, NULL, outputs, OPD_TRANSFORM_OUTPUTS);`.  While the function runs,
   grad mode is on.  Tensors that are not its inputs are constants, and must not be written.  Results have a history
   only if code outside of the derivative differentiates them, too.  An input that does not affect the output has a
   gradient of zeros. */
typedef struct opd_transform_options {
    const int *argnums; int nargnums;       /* indices of the inputs to differentiate with respect to; negative indices
                                               count from the end; NULL: input 0 */
    int naux;                               /* number of trailing outputs that are not differentiated, only written
                                               after the other results (has_aux) */
    int64_t chunk_size;                     /* Jacobians: number of rows computed at once; 0: all; 1: one by one,
                                               without vmap */
    opd_randomness randomness;              /* Jacobians: the randomness of the vmap that computes them */
    bool strict;                            /* opd_jvp, opd_jacfwd, opd_hessian, opd_linearize, for an output that
                                               depends on no input with a tangent: true: fails; false: the tangent of
                                               this output is zeros */
} opd_transform_options;
/* opd_grad: Computes the gradients of fn's 0-dim output (torch.func.grad).  Writes the gradients for the inputs in
   argnums, then the aux outputs.
   opd_grad_and_value: Also writes the output, between gradients and aux outputs (torch.func.grad_and_value).
   outputs has room for cap tensors, as in opd_vmap; this holds for all functions below.
   Both return how many tensors they wrote, or -1 and set an error. */
OPD_API int opd_grad(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                     const opd_transform_options *options, opd_tensor **outputs, int cap);
OPD_API int opd_grad_and_value(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                               const opd_transform_options *options, opd_tensor **outputs, int cap);
/* Compute Jacobians: a tensor for each output of fn and each input in argnums, output by output, then the aux outputs.
   The sizes are the output's sizes, then the input's.  Return how many tensors they wrote, or -1 and set an error.
   opd_jacrev: Runs the backward pass (vjp) under vmap, over all elements of the outputs.
   opd_jacfwd: Runs forward mode (jvp) under vmap, over all elements of the inputs.
   opd_hessian: Computes jacfwd of jacrev. */
OPD_API int opd_jacrev(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                       const opd_transform_options *options, opd_tensor **outputs, int cap);
OPD_API int opd_jacfwd(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                       const opd_transform_options *options, opd_tensor **outputs, int cap);
OPD_API int opd_hessian(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                        const opd_transform_options *options, opd_tensor **outputs, int cap);
/* Computes the product of the Hessian of fn's 0-dim output and a vector, without computing the Hessian: the tangents of
   the gradients (torch.autograd.functional.hvp, in forward-over-reverse mode).  vectors[count] belong to inputs[count];
   a NULL element means zeros.  Writes the product for each input to outputs, and, unless `grads` is NULL, the gradient
   for each input to `grads`; both have room for cap tensors.  Costs about as much as two or three gradients.  Returns
   how many products it wrote, or -1 and sets an error. */
OPD_API int opd_hvp(opd_transform_fn fn, void *user, opd_tensor *const *inputs, opd_tensor *const *vectors, int count,
                    opd_tensor **outputs, opd_tensor **grads, int cap);
/* Computes the outputs of fn (aux outputs last) and their tangents (torch.func.jvp).  tangents[count] belong to
   primals[count].  If a tangent is NULL, the input has none.  If options->argnums is NULL, all inputs are used.
   Returns the number of outputs, or -1 and sets an error. */
OPD_API int opd_jvp(opd_transform_fn fn, void *user, opd_tensor *const *primals, opd_tensor *const *tangents, int count,
                    const opd_transform_options *options, opd_tensor **outputs, opd_tensor **out_tangents, int cap);
/* A derivative of a function at a point, which can be applied repeatedly.  The derivative lives as long as the scope
   that is innermost when it is created.  The data that `user` points to must live as long.  The options are copied.  If
   argnums is NULL, all inputs are used.
   opd_vjp (torch.func.vjp): The derivative maps gradients of the outputs, which are called cotangents (NULL: zeros), to
   gradients of the inputs.
   opd_linearize: The derivative maps tangents of the inputs to tangents of the outputs, by calling fn again.
   Both write fn's outputs and return their number, or -1 and set an error. */
typedef struct opd_derivative opd_derivative;
OPD_API int opd_vjp(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
                    const opd_transform_options *options, opd_tensor **outputs, int cap, opd_derivative **vjp);
OPD_API int opd_linearize(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
                          const opd_transform_options *options, opd_tensor **outputs, int cap, opd_derivative **jvp);
/* Flags for opd_derivative_call, for derivatives of opd_vjp.
   OPD_DERIVATIVE_LAST: Frees the graph (retain_graph=False).
   OPD_DERIVATIVE_DETACHED: The gradients get no history (create_graph=False).  Without the flag, they have a history if
   grad mode is on and something that they depend on requires grad. */
enum { OPD_DERIVATIVE_LAST = 1, OPD_DERIVATIVE_DETACHED = 2 };
/* Applies derivative to in[count], and writes the results to outputs[cap].  Returns their number, or -1 and sets an
   error. */
OPD_API int opd_derivative_call(opd_derivative *derivative, opd_tensor *const *in, int count, unsigned flags,
                                opd_tensor **outputs, int cap);

