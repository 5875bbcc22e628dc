//----------------------------------------------------------------------------------------------------------------------
//  >>api:forward    forward mode: tangents beside values
//----------------------------------------------------------------------------------------------------------------------

/* Opens a level of forward mode on this thread (torch.autograd.forward_ad.enter_dual_level): until it is exited,
   results of dual tensors have tangents.  One at a time.  The level's number, from 0, or -1 with an error. */
OPD_API int opd_dual_level_begin(void);
/* Exits the newest level: its tangents go.  0, or -1 with an error.  Works while an error is pending. */
OPD_API int opd_dual_level_end(int level);
/* Ends the level of a block OPD_DUAL_LEVEL { ... }, which enters one and exits it; the block is left out when none can
   be entered. */
OPD_INLINE void opd_dual_end(int *level) {
    if (*level >= 0) {
        (void)opd_dual_level_end(*level);
        *level = -1;
    }
}
/* A view of primal (differentiable by the tape) with a tangent of its sizes.  A tangent that lies in memory as primal
   does is kept as it is, any other is copied (differentiably).  Views of a dual tensor have views of its tangent;
   writing into any of them in place writes their tangent (which is a new one when the tape may hold the old).  What
   detach gives of it has none.  Only this thread sees the tangents. */
OPD_API opd_tensor *opd_dual_new(opd_tensor *primal, opd_tensor *tangent);
/* The two parts: a view of tensor without tangent, and the tangent (in the innermost scope), or NULL in *tangent when
   tensor has none.  Outside of a level `tensor` itself and NULL.  NULL with an error. */
OPD_API opd_tensor *opd_dual_unpack(opd_tensor *tensor, opd_tensor **tangent);
/* True when this thread computes tangents while a level is open.  opd_forward_grad_set returns what it was. */
OPD_API bool opd_forward_grad_enabled(void);
OPD_API bool opd_forward_grad_set(bool on);

/* Rules for cards.  OPD_JVP_POINTWISE: an element of the result depends on that element of the (broadcast) arguments
   alone; runs `backward` on the tangents.  OPD_JVP_LINEAR: linear in all tensor arguments together; calls the operator
   on their tangents.  OPD_JVP_BACKWARD: any operator with a `backward`, by differentiating it in the incoming gradient;
   an error where the formula has no derivative.  NULL in a card is POINTWISE when .vmap is OPD_BATCH_POINTWISE, else
   BACKWARD.  Views need nothing, their tangents are views; composite operators get theirs from what they call. */
OPD_API int opd_jvp_pointwise(opd_jvp_call *jv);
OPD_API int opd_jvp_linear(opd_jvp_call *jv);
OPD_API int opd_jvp_backward(opd_jvp_call *jv);
#define OPD_JVP_POINTWISE opd_jvp_pointwise
#define OPD_JVP_LINEAR opd_jvp_linear
#define OPD_JVP_BACKWARD opd_jvp_backward
/* Inside such a function, which runs after the call with forward mode off (inside other levels: theirs).  Arguments (as
   they were before it) and results are those of the functional form; a tangent is NULL where there is none (zero), and
   may be on the tape. */
OPD_API opd_value opd_jvp_value(opd_jvp_call *jv, int i);                     /* argument i, of any kind */
OPD_API opd_tensor *opd_jvp_tensor(opd_jvp_call *jv, int i);                  /* tensor argument i, or NULL */
OPD_API opd_tensor *opd_jvp_tangent(opd_jvp_call *jv, int i);                 /* its tangent */
OPD_API opd_tensor *opd_jvp_tangent_at(opd_jvp_call *jv, int i, int element); /* that of element k of a list argument */
OPD_API opd_tensor *opd_jvp_result(opd_jvp_call *jv, int i);                  /* result i; lists count flat */
/* Gives the tangent of result i, of its sizes (kept at once); none given: no tangent.  0, or -1; a NULL after something
   failed passes the error on.  The jvp of a custom function gives one for each differentiable output: of an output that
   is an input marked dirty, the input's tangent, into which it has written; of one that is a view of an input, the
   same view of that one's tangent. */
OPD_API int opd_jvp_return(opd_jvp_call *jv, int i, opd_tensor *tangent);
/* The context of a custom function, or NULL.  Arguments and results are its inputs and outputs there. */
OPD_API opd_context *opd_jvp_context(const opd_jvp_call *jv);

