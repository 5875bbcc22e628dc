//----------------------------------------------------------------------------------------------------------------------
//  >>api:control_flow conditions and loops over functions (may change)
//----------------------------------------------------------------------------------------------------------------------

/* Conditions and loops whose condition or whose values are tensors (PyTorch's torch.cond, torch.while_loop, scan and
   map of torch._higher_order_ops).  A function gets its tensors as `inputs` and writes at most OPD_TRANSFORM_OUTPUTS
   results to `outputs` (opd_transform_fn).  It may read other tensors through `user`.  It must do the same in each
   call, and must not depend on how often it is called.
   All four functions write at most `cap` outputs, which belong to the innermost scope, and return their number.  On
   failure they return -1 with an error, and the outputs are NULL.  Grad mode and autocast are as before the call even
   if a function changes them or fails.  Any thread may call them.
   Derivatives: Outside of a trace, the operators that run are recorded as usual, so backward, opd_jvp and all
   transforms work, also repeatedly.  As in PyTorch, the arguments that do not take part (operands of the other side of
   a condition, tensors that no round of a loop reads) have gradients of zeros; so an output depends on all arguments
   that require grad, and is a copy of what the function returned if the function did not read all of them.  Tensors
   that are read through `user`, and the nodes prim::If and prim::Loop of a graph, give only the gradients of the
   operators that ran.
   Under opd_vmap: See opd_cond and opd_while for conditions that differ between the examples.
   In opd_graph_trace: One node with blocks is recorded (prim::If, prim::Loop), which decides in each run of the graph;
   a scan or map takes any number of slices.  The functions run as usual, and each one is called once more with fake
   tensors (see opd_fake_begin).  They may read tensors of the traced function, but must not write into tensors that
   they have not made, and must not store tensors elsewhere.  Derivatives in a trace (opd_grad, opd_jvp, backward with
   options->parts, again and again) are such nodes, too: a loop becomes loops with a fixed number of nodes, whatever its
   length.  For them, pass tensors that require grad as operands or others, not through user; and the data that `user`
   points to must live until the derivative is computed. */

/* Calls then_fn if pred is true, else else_fn (torch.cond).  pred has one element.  Both functions get operands[count].
   If the value of pred is not known (pred is a fake, or inside vmap has a value for each example), both functions run.
   They must then return as many outputs, of the same sizes and dtypes; under vmap, each example gets its own.
       static int halve(void *user, opd_tensor *const *in, int n, opd_tensor **out) { out[0] = opd_div(...); ... }
       count = opd_cond(opd_gt_Scalar(x, OPD_V(10)), halve, triple, NULL, &x, 1, outputs, 1); */
OPD_NEW int opd_cond(opd_tensor *pred, opd_transform_fn then_fn, opd_transform_fn else_fn, void *user,
                     opd_tensor *const *operands, int count, opd_tensor **outputs, int cap);
/* Runs a loop (torch.while_loop).  cond_fn and body_fn get carried[ncarried], then others[nothers].  cond_fn returns a
   tensor with one element.  While it is true, body_fn runs, and returns the new carried tensors, of the same sizes and
   dtypes.  The outputs are the last carried tensors.
   Under vmap, the loop runs until the condition is false for all examples; examples whose condition was false keep
   their values.  If the condition is a fake, body_fn runs once.
       static int smaller(...) { out[0] = opd_lt_Scalar(in[0], OPD_V(100)); return opd_ok() ? 1 : -1; }
       static int doubled(...) { out[0] = opd_add(in[0], in[0]); return opd_ok() ? 1 : -1; }
       count = opd_while(smaller, doubled, NULL, &x, 1, NULL, 0, outputs, 1); */
OPD_NEW int opd_while(opd_transform_fn cond_fn, opd_transform_fn body_fn, void *user, opd_tensor *const *carried,
                      int ncarried, opd_tensor *const *others, int nothers, opd_tensor **outputs, int cap);
/* Options of opd_scan.  Zero is the default of both. */
typedef struct opd_scan_options {
    int dim;                     /* the dim of the xs along which the loop goes; negative dims count from the end */
    bool reverse;                /* begin with the last slice */
} opd_scan_options;
/* Runs a loop over the slices of xs[nxs] along options->dim (scan).  fn gets the carried tensors (first init[ninit]),
   a slice of each of xs, and others[nothers].  It returns the new carried tensors, of the same sizes and dtypes, and
   then any number of results.  The outputs are the last carried tensors, and then, for each result, the results of all
   calls stacked along options->dim (along dim 0 if they have fewer dims), in the order of the slices.  All of xs have
   the same size along the dim, which is not 0.
       static int sums(...) { out[0] = out[1] = opd_add(in[0], in[1]); return opd_ok() ? 2 : -1; }
       count = opd_scan(sums, NULL, &zero, 1, &x, 1, NULL, 0, NULL, outputs, 2);          outputs[1] is cumsum(x, 0) */
OPD_NEW int opd_scan(opd_transform_fn fn, void *user, opd_tensor *const *init, int ninit, opd_tensor *const *xs,
                     int nxs, opd_tensor *const *others, int nothers, const opd_scan_options *options,
                     opd_tensor **outputs, int cap);
/* Calls fn for each slice of xs[nxs] along dim 0 (map).  fn gets a slice of each of xs, and others[nothers].  The
   outputs are the results of all calls, stacked along dim 0.
       static int norms(...) { out[0] = opd_linalg_vector_norm(in[0], ...); return opd_ok() ? 1 : -1; }
       count = opd_map(norms, NULL, &rows, 1, NULL, 0, outputs, 1); */
OPD_NEW int opd_map(opd_transform_fn fn, void *user, opd_tensor *const *xs, int nxs, opd_tensor *const *others,
                    int nothers, opd_tensor **outputs, int cap);

