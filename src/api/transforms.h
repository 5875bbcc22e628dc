//----------------------------------------------------------------------------------------------------------------------
//  >>api:transforms vmap and derivatives of functions
//----------------------------------------------------------------------------------------------------------------------

/* In in_dims and out_dims: no dim, the whole tensor is for every example. */
#define OPD_NO_DIM (-2147483647 - 1)
/* What random operators do inside vmap: refuse, draw for each example, draw once for all. */
typedef enum opd_randomness { OPD_RANDOM_ERROR = 0, OPD_RANDOM_DIFFERENT, OPD_RANDOM_SAME } opd_randomness;
typedef struct opd_vmap_options {
    const int *in_dims; int nin_dims;       /* of each input the dim of the examples; NULL: all 0; one: of all inputs */
    const int *out_dims; int nout_dims;     /* where the outputs have them; the same */
    opd_randomness randomness;
    int64_t chunk_size;                     /* at most so many examples at once; 0: all */
    const char *name;                       /* of the function, in errors; NULL: "fn" */
} opd_vmap_options;
/* torch.vmap(fn)(*inputs): calls fn once with inputs that look like one example, and gives the outputs of all of them.
   fn may be transformed again, and use tensors from outside, which are the same for every example.  Operators without a
   batching rule run example by example, see opd_vmap_fallback_set.  options NULL: dim 0 of everything.  Writes the
   outputs (of the innermost scope) and returns how many, or -1 with an error. */
OPD_API int opd_vmap(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                     const opd_vmap_options *options, opd_tensor **outputs);
/* vmap for straight code: between begin and end, tensors that wrap has made look like one example of tensor, taken
   along in_dim; unwrap gives all examples along out_dim; a tensor that is the same for all of them is repeated.  begin
   gives the layer's level (from 1; layers nest), -1 with an error. end, and the end of the scope around, take the layer
   away; end works while an error is pending.  What was made inside is an error to use afterwards. */
OPD_API int opd_vmap_begin(int64_t batch_size, opd_randomness randomness);
OPD_API opd_tensor *opd_vmap_wrap(opd_tensor *tensor, int in_dim, int level);
OPD_API opd_tensor *opd_vmap_unwrap(opd_tensor *tensor, int out_dim, int level);
OPD_API int opd_vmap_end(int level);
/* The number of layers of transforms that are open on this thread; true when a tensor holds the examples
   of an open vmap layer. */
OPD_API int opd_transform_depth(void);
OPD_API bool opd_tensor_is_batched(const opd_tensor *tensor);

/* What an operator without a batching rule does: it runs example by example and warns the first time (the default), or
   silently, or it is an error.  For the process; returns what it was.  opd_vmap_fallback_count: how many calls did. */
typedef enum opd_vmap_fallback { OPD_VMAP_FALLBACK_WARN = 0, OPD_VMAP_FALLBACK_SILENT, OPD_VMAP_FALLBACK_ERROR }
    opd_vmap_fallback;
OPD_API opd_vmap_fallback opd_vmap_fallback_set(opd_vmap_fallback mode);
OPD_API int64_t opd_vmap_fallback_count(void);

/* Inside a batching rule: `.vmap` of a card, or a kernel registered at the key "FuncTorchBatched".  It runs when one of
   the tensors is batched at the innermost vmap layer, that of an operator tagged NONDETERMINISTIC_SEEDED for every call
   there is that randomness allows; operators that it calls belong to the layers around.  A tensor argument with all its
   examples; *dim is which of its dims counts them, -1: it is the same for all.  NULL: none. */
OPD_API opd_tensor *opd_batch_arg(opd_call *call, int i, int *dim);
/* opd_batch_arg of any tensor, such as an element of a list. */
OPD_API opd_tensor *opd_batch_value(opd_tensor *tensor, int *dim);
/* The tensor, whose examples are along dim, as a view with that dim in front; of dim -1 expanded to the batch size.
   Passes NULL on. */
OPD_API opd_tensor *opd_batch_front(opd_tensor *tensor, int dim);
OPD_API int64_t opd_batch_size(void);
OPD_API opd_randomness opd_batch_randomness(void);
/* Gives the next result of the call: tensor has the examples along dim; dim -1: it is the same for all.  NULL passes an
   error on.  list: a result Tensor[]. */
OPD_API int opd_batch_return(opd_call *call, opd_tensor *tensor, int dim);
OPD_API int opd_batch_return_list(opd_call *call, opd_tensor *const *list, int64_t count, int dim);

/* Derivatives of functions.  They nest by a function that calls one: for per-example gradients opd_vmap gets a function
   whose body is `return opd_grad(loss, user, inputs, ninputs, NULL, outputs);`.  Inside grad mode is on, whatever it is
   outside; tensors from outside are constants, and may not be written.  What comes back has a history only where
   something outside is differentiated, too.  An input that does not count has a gradient of zeros.  Zero: default. */
typedef struct opd_transform_options {
    const int *argnums; int nargnums;       /* inputs that are differentiated by, from the end if < 0; NULL: input 0 */
    int naux;                               /* so many outputs at the end are no such but passed on (has_aux) */
    int64_t chunk_size;                     /* Jacobians: so many rows at once; 0: all; 1: one by one, without vmap */
    opd_randomness randomness;              /* Jacobians: of the vmap in them */
    bool strict;                            /* opd_jvp: an output that does not depend on an input is an error */
} opd_transform_options;
/* torch.func.grad: fn gives one 0-dim output; writes its gradients by the inputs of argnums, then the aux outputs.  The
   second (torch.func.grad_and_value) has the output between them.  How many, or -1 with an error. */
OPD_API int opd_grad(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                     const opd_transform_options *options, opd_tensor **outputs);
OPD_API int opd_grad_and_value(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                               const opd_transform_options *options, opd_tensor **outputs);
/* Jacobians: for each output of fn and each input of argnums a tensor of the sizes of the output and then those of the
   input, output by output; then the aux outputs.  jacrev runs a vmap of the vjp over all elements of the outputs,
   jacfwd one of the jvp over those of the inputs; hessian is jacfwd of jacrev.  How many, or -1 with an error. */
OPD_API int opd_jacrev(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                       const opd_transform_options *options, opd_tensor **outputs);
OPD_API int opd_jacfwd(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                       const opd_transform_options *options, opd_tensor **outputs);
OPD_API int opd_hessian(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                        const opd_transform_options *options, opd_tensor **outputs);
/* torch.func.jvp: the outputs of fn (aux ones at the end), and the tangents that they have when the primals have these;
   a NULL among them: none.  argnums as above, but NULL: all.  How many outputs, or -1 with an error. */
OPD_API int opd_jvp(opd_transform_fn fn, void *user, opd_tensor *const *primals, opd_tensor *const *tangents, int count,
                    const opd_transform_options *options, opd_tensor **outputs, opd_tensor **out_tangents);
/* The derivative of a function at a place, which can be applied again and again: of opd_vjp (torch.func.vjp) from
   cotangents of the outputs (NULL: zeros) to gradients of the inputs; of opd_linearize from tangents of the inputs to
   those of the outputs, by another call of fn.  It lives as long as the innermost scope at the time, and so long must
   what `user` points to; the options are copied.  argnums NULL: all inputs. */
typedef struct opd_derivative opd_derivative;
OPD_API int opd_vjp(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
                    const opd_transform_options *options, opd_tensor **outputs, opd_derivative **vjp);
OPD_API int opd_linearize(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
                          const opd_transform_options *options, opd_tensor **outputs, opd_derivative **jvp);
/* Of a vjp: the graph is let go of (retain_graph=False); the gradients get no history (create_graph=False), which else
   they have while grad mode is on, where it leads to something. */
enum { OPD_DERIVATIVE_LAST = 1, OPD_DERIVATIVE_DETACHED = 2 };
OPD_API int opd_derivative_call(opd_derivative *derivative, opd_tensor *const *in, int count, unsigned flags,
                                opd_tensor **out);

