//----------------------------------------------------------------------------------------------------------------------
//  >>api:checking   gradients against finite differences, opcheck, pictures of graphs
//----------------------------------------------------------------------------------------------------------------------

/* A function under test: fills outputs (of the innermost scope) and returns how many, at most OPD_GRADCHECK_OUTPUTS, or
   -1 with an error.  Called many times: the same inputs must give the same results. */
#define OPD_GRADCHECK_OUTPUTS 32
typedef int (*opd_gradcheck_fn)(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs);
typedef struct opd_gradcheck_options {
    double eps, atol, rtol;            /* step of the central differences; |a - n| <= atol + rtol |n| */
    double nondet_tol;                 /* by how much two backward runs may differ */
    bool raise_exception;              /* false: a failed check returns 1, and no error is left */
    bool check_undefined_grad;         /* undefined gradients of outputs must give zero or undefined ones of inputs */
    bool check_grad_dtypes;            /* a gradient must have its input's dtype */
    bool check_backward_ad, check_forward_ad;     /* which modes are checked; at least one */
    bool check_batched_grad, check_batched_forward_grad;      /* two vectors at once, by vmap, give what each gives */
    bool fast_mode;                    /* one random projection of each Jacobian in place of all its elements */
    bool check_fwd_over_rev, check_rev_over_rev;  /* of opd_gradgradcheck */
    char *report; size_t report_cap;   /* NULL, or where the whole text of a failed check goes (a message is short) */
} opd_gradcheck_options;
/* eps 1e-6, atol 1e-5, rtol 1e-3, nondet_tol 0; on: raise_exception, check_undefined_grad, check_backward_ad,
   check_rev_over_rev. */
OPD_API opd_gradcheck_options opd_gradcheck_defaults(void);
/* torch.autograd.gradcheck: compares the gradients of fn by inputs that require grad (float64 leaves; NULLs are passed
   on) with central differences, element by element; then: backward run twice agrees, zero gradients of outputs give
   zero ones of inputs, undefined ones too.  Inputs are perturbed in place and end as they were.  A complex tensor
   counts as its real and imaginary parts.  options NULL: the defaults.  0: right; -1 with an error that prints both
   Jacobians and the worst element; 1 as raise_exception says. */
OPD_API int opd_gradcheck(opd_gradcheck_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                          const opd_gradcheck_options *options);
/* torch.autograd.gradgradcheck: the same of the function (inputs, gradients of the outputs) -> gradients of the inputs,
   by all of them.  grad_outputs: one for each output that requires grad; NULL: random ones in [-1, 1]. */
OPD_API int opd_gradgradcheck(opd_gradcheck_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                              opd_tensor *const *grad_outputs, const opd_gradcheck_options *options);

/* Whether an operator does what its schema and its registrations say, for these arguments.  Sub-tests:
     SCHEMA     what it writes and what shares memory is what the schema says
     AUTOGRAD   results require grad only by a kernel at an autograd key (where an argument requires grad); a formula
                gives the gradients of all such arguments
     FAKE       the fake kernel gives the sizes, strides, dtype and device that the real one gives
     TRACE      recorded into a graph and run it gives the results and gradients that it gives when it is called
     VMAP       under opd_vmap it gives what a loop gives (random operators and sizes that data decide: skipped); the
                second example is made up: the numbers of the first moved on by one, as far as the operator takes them
     MEMORY     results do not depend on strides, nor on what memory held before (elements that are not written, reads
                behind the end), and nothing is written behind the end (on the CPU; random operators: skipped)
   Of an operator with results that are no tensors TRACE, VMAP and MEMORY are skipped: no graph and no batch has them.
   Gradients are compared with each other, not with finite differences: that is opd_gradcheck. */
typedef enum opd_opcheck_test {
    OPD_OPCHECK_SCHEMA = 1, OPD_OPCHECK_AUTOGRAD = 2, OPD_OPCHECK_FAKE = 4, OPD_OPCHECK_TRACE = 8,
    OPD_OPCHECK_VMAP = 16, OPD_OPCHECK_MEMORY = 32, OPD_OPCHECK_ALL = 63
} opd_opcheck_test;
typedef struct opd_opcheck_options {
    unsigned tests;                    /* OPD_OPCHECK_*; 0: all whose tools are not left out */
    double atol, rtol;                 /* of results and gradients; both 0: by dtype, as torch.testing.assert_close */
    uint64_t seed;                     /* of the default generator before each call of a random operator; afterwards
                                          generators are where they were */
    bool same_sizes;                   /* FAKE and TRACE are not repeated with other sizes */
    unsigned *failed;                  /* not NULL: all sub-tests run, this gets those that failed, without an error */
    char *report; size_t report_cap;   /* NULL, or where a line for each sub-test that failed goes */
} opd_opcheck_options;
/* torch.library.opcheck.  Arguments as for opd_call_all, tensors of any layout; they are copied, which of them require
   grad decides what is looked at.  FAKE and TRACE run again with tensors of other sizes, made of the same numbers, as
   far as the operator takes them: a size that is written down in a kernel shows.  options NULL: the defaults.  0, or -1
   with the first failure as an error that says what to fix.  Not inside transforms and recordings. */
OPD_API int opd_opcheck(opd_op *op, const opd_value *args, int nargs, const opd_opcheck_options *options);

/* The backward graph of tensors as Graphviz DOT: a box for each node with the operator's name, the sizes of its results
   and the bytes it has saved; leaves blue, the tensors given green; arrows as the forward computation went.  Text as
   opd_dump's: cut to cap bytes with its zero (cap 0: buf may be NULL), returns the full length, 0 with an error. */
typedef struct opd_graph_options {
    opd_tensor *const *tensors; const char *const *names; int nnames;       /* names of leaves and of outputs */
    const char *title;                 /* NULL: none */
    bool no_saved;                     /* without what is saved */
} opd_graph_options;
OPD_API size_t opd_graph_dot(opd_tensor *const *tensors, int count, const opd_graph_options *options, char *buf,
                             size_t cap);

