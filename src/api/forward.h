//----------------------------------------------------------------------------------------------------------------------
//  >>api:forward    forward-mode derivatives: tangents of tensors (may change)
//----------------------------------------------------------------------------------------------------------------------

/* Opens a level of forward mode on this thread (torch.autograd.forward_ad.enter_dual_level).  Until the level is
   closed, results of dual tensors have tangents.  Levels do not nest: only one can be open.  Returns the level's
   number, from 0, or -1 and sets an error. */
OPD_NEW int opd_dual_level_begin(void);
/* Closes the newest level and frees its tangents.  Returns 0, or -1 and sets an error.  Works while an error is
   pending. */
OPD_NEW int opd_dual_level_end(int level);
/* Ends the level of a block OPD_DUAL_LEVEL { ... }, which opens a level and closes it.  The block is skipped if no
   level can be opened. */
OPD_INLINE void opd_dual_end(int *level) {
    if (*level >= 0) {
        (void)opd_dual_level_end(*level);
        *level = -1;
    }
}
/* Returns a dual tensor: a view of primal with a tangent of the same sizes.  The view is differentiable.  A tangent
   with primal's memory layout is used without a copy.  A tangent with another layout is copied differentiably.
   The tangent of a view of a dual tensor is a view of the dual tensor's tangent.  An in-place write into a dual tensor
   or its views also writes into the tangent.  If the autograd graph may have saved the tangent, such a write replaces
   the tangent by a new tensor.  A tensor detached from a dual tensor has no tangent.  Only this thread sees the
   tangents.  On failure returns NULL and sets an error. */
OPD_NEW opd_tensor *opd_dual_new(opd_tensor *primal, opd_tensor *tangent);
/* Splits a dual tensor: returns a view of tensor without tangent, and sets *tangent to the tangent (in the innermost
   scope), or to NULL if tensor has none.  If no level is open, returns `tensor` itself and sets *tangent to NULL.
   On failure returns NULL and sets an error. */
OPD_NEW opd_tensor *opd_dual_unpack(opd_tensor *tensor, opd_tensor **tangent);
/* opd_forward_grad_enabled: Returns true if operators of this thread compute tangents while a level is open.
   opd_forward_grad_set: Switches this computation on or off for the thread.  Returns the previous setting. */
OPD_NEW bool opd_forward_grad_enabled(void);
OPD_NEW bool opd_forward_grad_set(bool on);

/* Forward-mode rules for operator descriptors (the field `jvp`).  If the field is NULL, the rule is OPD_JVP_POINTWISE
   if .vmap is OPD_BATCH_POINTWISE, else OPD_JVP_BACKWARD.  Views need no rule, because their tangents are views.
   Composite operators get their tangents from the operators that they call.
   OPD_JVP_POINTWISE: An element of the result depends only on the same element of the (broadcast) arguments.  Runs
   `backward` on the tangents.
   OPD_JVP_LINEAR: The operator is linear in all tensor arguments together.  Calls the operator on their tangents.
   OPD_JVP_BACKWARD: Any operator with a `backward`.  Differentiates `backward` with respect to the incoming gradient.
   Fails with an error if the backward function has no derivative. */
OPD_NEW int opd_jvp_pointwise(opd_jvp_call *jv);
OPD_NEW int opd_jvp_linear(opd_jvp_call *jv);
OPD_NEW int opd_jvp_backward(opd_jvp_call *jv);
#define OPD_JVP_POINTWISE opd_jvp_pointwise
#define OPD_JVP_LINEAR opd_jvp_linear
#define OPD_JVP_BACKWARD opd_jvp_backward
/* The opd_jvp_* functions below are for use inside a forward-mode rule.  The rule runs after the call.  While it runs,
   tensors have no tangents of the level for which the rule computes tangents; if transforms have opened outer levels,
   tangents of these levels are computed.  The arguments (with their values from before the call) and results are
   the arguments and results of the operator's functional form.  A NULL tangent means zero.  A tangent may be part of
   the autograd graph. */
OPD_NEW opd_value opd_jvp_value(opd_jvp_call *jv, int i);                     /* returns argument i, of any kind */
OPD_NEW opd_tensor *opd_jvp_tensor(opd_jvp_call *jv, int i);                  /* returns tensor argument i, or NULL */
OPD_NEW opd_tensor *opd_jvp_tangent(opd_jvp_call *jv, int i);                 /* returns the tangent of argument i */
OPD_NEW opd_tensor *opd_jvp_tangent_at(opd_jvp_call *jv, int i, int element); /* the tangent of an element of list i */
OPD_NEW opd_tensor *opd_jvp_result(opd_jvp_call *jv, int i);                  /* each list element counts as a result */
/* Sets the tangent of result i, and retains `tangent`.  `tangent` has the sizes of the result.  A result whose
   tangent is not set has none.  Returns 0, or -1.  If the tangent is NULL because an earlier call failed, that error is
   passed on.  The jvp of a custom function sets one tangent for each differentiable output.  If the output is an input
   marked dirty, pass the input's tangent, after writing into it.  If the output is a view of an input, pass the same
   view of that input's tangent. */
OPD_NEW int opd_jvp_return(opd_jvp_call *jv, int i, opd_tensor *tangent);
/* Returns the context of a custom function, or NULL.  Arguments and results are then the function's inputs and outputs.
   */
OPD_NEW opd_context *opd_jvp_context(const opd_jvp_call *jv);

