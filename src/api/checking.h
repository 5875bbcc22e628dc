//----------------------------------------------------------------------------------------------------------------------
//  >>api:checking   checks of gradients and operators, pictures of autograd graphs (may change)
//----------------------------------------------------------------------------------------------------------------------

/* A function under test.  Fills outputs, which belong to the innermost scope, and returns their number, at most
   OPD_GRADCHECK_OUTPUTS (as many as of an opd_transform_fn), or -1 with an error.  Is called many times: equal inputs
   must give equal results. */
#define OPD_GRADCHECK_OUTPUTS 64
typedef int (*opd_gradcheck_fn)(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
/* Options of opd_gradcheck and opd_gradgradcheck. */
typedef struct opd_gradcheck_options {
    double eps, atol, rtol;            /* step of the central differences; tolerances: |analytical - numerical| <= atol
                                          + rtol * |numerical| */
    double nondet_tol;                 /* the largest allowed difference between two backward runs */
    bool raise_exception;              /* false: a failed check returns 1, and no error is left */
    bool check_undefined_grad;         /* undefined gradients of outputs must give zero or undefined gradients of
                                          inputs */
    bool check_grad_dtypes;            /* a gradient must have its input's dtype */
    bool check_backward_ad, check_forward_ad;     /* check backward mode, check forward mode: at least one must be on */
    bool check_batched_grad, check_batched_forward_grad;      /* two gradients that one vmap computes must equal the
                                                                 gradients of two runs */
    bool fast_mode;                    /* compare one random projection of each Jacobian instead of all its elements */
    bool check_fwd_over_rev, check_rev_over_rev;  /* second derivatives: forward over reverse mode, and reverse over
                                                     reverse mode */
    char *report; size_t report_cap;   /* NULL, or a buffer for the whole text of a failed check, which may be too long
                                          for the error message */
} opd_gradcheck_options;
/* Returns the default options: eps 1e-6, atol 1e-5, rtol 1e-3, nondet_tol 0.  Four options are on: raise_exception,
   check_undefined_grad, check_backward_ad, check_rev_over_rev. */
OPD_NEW opd_gradcheck_options opd_gradcheck_defaults(void);
/* Compares the gradients of fn with central differences, element by element (torch.autograd.gradcheck).  Checks
   gradients with respect to the inputs that require grad.  These inputs must be leaves, and should be float64 or
   complex128: for other dtypes there is a warning, because rounding errors are too large.  An input that is NULL is
   passed on to fn.  Then checks that two backward runs agree, and that zero and undefined gradients of outputs give
   zero gradients of inputs.
   Inputs are perturbed in place and restored.  A complex tensor counts as its real and imaginary parts.  If options is
   NULL, defaults are used.  Returns 0 if the gradients are right.  If they are wrong, returns -1 with an error that
   prints both Jacobians and the worst element; if raise_exception is false, returns 1 instead. */
OPD_NEW int opd_gradcheck(opd_gradcheck_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                          const opd_gradcheck_options *options);
/* Checks second derivatives (torch.autograd.gradgradcheck).  The function that is checked takes the inputs and the
   gradients of the outputs, and returns the gradients of the inputs.  This function is checked with respect to all its
   arguments.  grad_outputs has one tensor for each output that requires grad.  If grad_outputs is NULL, random numbers
   in [-1, 1] are used. */
OPD_NEW int opd_gradgradcheck(opd_gradcheck_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                              opd_tensor *const *grad_outputs, const opd_gradcheck_options *options);

/* The sub-tests of opd_opcheck.  If an operator has results that are not tensors, TRACE, VMAP and MEMORY are skipped,
   because graphs and batches have only tensors.  The sub-tests only compare gradients that were computed in different
   ways with each other; opd_gradcheck compares them with finite differences. */
typedef enum opd_opcheck_test {
    OPD_OPCHECK_SCHEMA = 1,      /* the operator writes and shares memory as its schema says */
    OPD_OPCHECK_AUTOGRAD = 2,    /* if an argument requires grad: results require grad only if the operator has a kernel
                                    at an autograd key, and its backward function gives the gradients of all arguments
                                    that require grad */
    OPD_OPCHECK_FAKE = 4,        /* the fake kernel and the real one give the same sizes, strides, dtype and device */
    OPD_OPCHECK_TRACE = 8,       /* a graph with the operator gives the results and gradients of a plain call */
    OPD_OPCHECK_VMAP = 16,       /* opd_vmap of the operator gives the results of a loop.  The second example has the
                                    numbers of the first, shifted by one place, if the operator accepts them.  Skipped
                                    for random operators and sizes that depend on data */
    OPD_OPCHECK_MEMORY = 32,     /* results do not depend on strides, nor on old contents of memory (elements that are
                                    not written, reads past the end); nothing is written past the end.  Only on the CPU,
                                    and not for random operators */
    OPD_OPCHECK_ALL = 63         /* all sub-tests */
} opd_opcheck_test;
/* Options of opd_opcheck. */
typedef struct opd_opcheck_options {
    unsigned tests;                    /* OPD_OPCHECK_*; 0: all that this program is built with */
    double atol, rtol;                 /* tolerances; if both are 0, they depend on the dtype, as in
                                          torch.testing.assert_close */
    uint64_t seed;                     /* seed of the default generator before each call of a random operator;
                                          afterwards generators have their old states again */
    bool same_sizes;                   /* FAKE and TRACE are not repeated with other sizes */
    unsigned *failed;                  /* if not NULL, all sub-tests run, *failed becomes the set of the failed
                                          sub-tests, and failures set no error */
    char *report; size_t report_cap;   /* NULL, or a buffer for a line for each sub-test that failed */
} opd_opcheck_options;
/* Checks that an operator does what its schema and registrations say, for these arguments (torch.library.opcheck).
   Arguments are as for opd_call_all, with tensors of any layout, and are copied.  The gradients of arguments that
   require grad are checked.
   FAKE and TRACE run again with tensors of other sizes, made of the same numbers, if the operator accepts such sizes:
   this finds kernels that contain a fixed size.  If options is NULL, defaults are used.  Returns 0, or -1 with an
   error: the first failure, and how to fix it.  Must not be called inside transforms and recordings. */
OPD_NEW int opd_opcheck(opd_op *op, const opd_value *args, int nargs, const opd_opcheck_options *options);

/* What opd_device_check found out about an operator on a device. */
typedef enum opd_device_outcome {
    OPD_DEVICE_OK,               /* computes what the CPU computes */
    OPD_DEVICE_ON_CPU,           /* does, but a call went through opd_cpu_fallback */
    OPD_DEVICE_MISSING,          /* has no kernel on the device, or calls an operator that has none */
    OPD_DEVICE_FAILS,            /* a call that works on the CPU fails on the device */
    OPD_DEVICE_WRONG,            /* a result differs */
    OPD_DEVICE_SKIPPED,          /* could not be compared: it has no sample arguments, they have no tensor and no
                                    device, or the CPU cannot compute them */
    OPD_DEVICE_OUTCOMES
} opd_device_outcome;
/* The report of opd_device_check about one operator.  The texts are valid until the report function returns. */
typedef struct opd_device_finding {
    const opd_op *op;
    opd_device_outcome outcome;  /* the worst outcome of its calls */
    int calls;                   /* the number of calls that were compared */
    const char *call;            /* the first call with this outcome: arguments as in `cases` of opd_op_desc, dtype,
                                    layout, form; "" if there is none */
    const char *text;            /* what is wrong with this call, or why the operator was skipped; "" if nothing */
    double difference;           /* the largest difference of two numbers in all calls */
    int number, count;           /* of this operator, from 1 on, and of all operators that are checked */
} opd_device_finding;
/* Options of opd_device_check. */
typedef struct opd_device_check_options {
    const char *name;            /* only operators with this text in their names, such as "conv"; NULL: all */
    bool (*wanted)(void *user, const opd_op *op);           /* only operators for which this returns true; NULL: all */
    void (*report)(void *user, const opd_device_finding *finding);            /* called after each operator.  NULL:
                                    prints a line for each operator that is missing, fails or is wrong, and a table */
    void *user;
    const opd_scalar_type *dtypes; int ndtypes;             /* dtypes of tensors for which a sample call gives no other
                                                               dtype; none: float32 */
    double atol, rtol;           /* tolerances; if both are 0, they depend on the dtype: 1e-5 and 1e-4 for float32 */
    bool contiguous;             /* only contiguous arguments; else also transposed ones, ones with gaps between their
                                    elements, and images with the channels last */
    bool functional;             /* leaves out the in-place and out= forms */
    bool any_strides;            /* the strides of results may differ */
    bool gradients;              /* also compares gradients */
    uint64_t seed;               /* of the default generator before each call */
    int *counts;                 /* NULL, or room for OPD_DEVICE_OUTCOMES numbers: how many operators have each
                                    outcome */
} opd_device_check_options;
/* Calls all operators with sample arguments (`cases` of opd_op_desc) on the CPU and on `device`, and compares numbers,
   sizes, dtypes and strides of results, arguments that are written, and which results are views of which arguments.
   The built-in operators have sample arguments.  A program with OPD_LEAN checks the operators that it keeps.  The
   numbers of random results and of uninitialised memory are not compared.  If options is NULL, defaults are used.
   Returns the number of operators that fail or are wrong, so 0 is good; or -1 and sets an error if memory runs out, the
   run is interrupted or the device does not exist.  Errors of operators are reported, and cleared.  The state of the
   default generator stays as it was.  Must not be called inside transforms and recordings. */
OPD_NEW int opd_device_check(opd_device device, const opd_device_check_options *options);

/* Options of opd_graph_dot. */
typedef struct opd_graph_options {
    opd_tensor *const *tensors; const char *const *names; int nnames;       /* names[i] is the label of tensors[i], a
                                                                               leaf or an output */
    const char *title;                 /* NULL: no title */
    bool no_saved;                     /* leaves out the saved bytes */
} opd_graph_options;
/* Writes the backward graph of tensors to buf as Graphviz DOT.  A node is a box with the operator's name, the sizes of
   its results and the bytes it has saved.  Leaves are blue, and the given tensors are green.  Arrows follow the forward
   computation.  The text is cut to `cap` bytes including the final zero, as in opd_dump; with cap 0, buf may be NULL.
   Returns the full length, or 0 with an error. */
OPD_NEW size_t opd_graph_dot(opd_tensor *const *tensors, int count, const opd_graph_options *options, char *buf,
                             size_t cap);

