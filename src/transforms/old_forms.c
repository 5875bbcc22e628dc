#include "transforms.h"

//== transforms of version 0.4 =========================================================================================

/* The functions of this section call the transforms with an array that has room for all outputs, and copy these to the
   caller's array, whose length is not known. */

/* Copies the outputs `made` to the caller's array.  If the transform has failed (count < 0), writes `least` NULLs.
   Returns count. */
static int opdi_old_return(opd_tensor **outputs, opd_tensor *const *made, int count, int least) {
    for (int i = 0; outputs && i < (count < 0 ? least : count); i++) { outputs[i] = count < 0 ? NULL : made[i]; }
    return count;
}
int opdi_old_vmap(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                 const opd_vmap_options *options, opd_tensor **outputs) {
    opd_tensor *made[OPD_TRANSFORM_OUTPUTS] = {NULL};
    const int count = opd_vmap(fn, user, inputs, ninputs, options, outputs ? made : NULL, OPD_TRANSFORM_OUTPUTS);
    return opdi_old_return(outputs, made, count, options && options->out_dims ? OPDI_MAX(options->nout_dims, 1) : 1);
}
int opdi_old_grad(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                 const opd_transform_options *options, opd_tensor **outputs) {
    opd_tensor *made[OPD_TRANSFORM_OUTPUTS] = {NULL};
    const int count = opd_grad(fn, user, inputs, ninputs, options, outputs ? made : NULL, OPD_TRANSFORM_OUTPUTS);
    return opdi_old_return(outputs, made, count, opdi_least_gradients(options));
}
int opdi_old_grad_and_value(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                           const opd_transform_options *options, opd_tensor **outputs) {
    opd_tensor *made[OPD_TRANSFORM_OUTPUTS] = {NULL};
    const int count = opd_grad_and_value(fn, user, inputs, ninputs, options, outputs ? made : NULL,
                                         OPD_TRANSFORM_OUTPUTS);
    return opdi_old_return(outputs, made, count, opdi_least_gradients(options) + 1);
}
int opdi_old_jacrev(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                   const opd_transform_options *options, opd_tensor **outputs) {
    opd_tensor *made[OPD_TRANSFORM_OUTPUTS] = {NULL};
    const int count = opd_jacrev(fn, user, inputs, ninputs, options, outputs ? made : NULL, OPD_TRANSFORM_OUTPUTS);
    return opdi_old_return(outputs, made, count, opdi_least_gradients(options));
}
int opdi_old_jacfwd(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                   const opd_transform_options *options, opd_tensor **outputs) {
    opd_tensor *made[OPD_TRANSFORM_OUTPUTS] = {NULL};
    const int count = opd_jacfwd(fn, user, inputs, ninputs, options, outputs ? made : NULL, OPD_TRANSFORM_OUTPUTS);
    return opdi_old_return(outputs, made, count, opdi_least_gradients(options));
}
int opdi_old_hessian(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                    const opd_transform_options *options, opd_tensor **outputs) {
    opd_tensor *made[OPD_TRANSFORM_OUTPUTS] = {NULL};
    const int count = opd_hessian(fn, user, inputs, ninputs, options, outputs ? made : NULL, OPD_TRANSFORM_OUTPUTS);
    return opdi_old_return(outputs, made, count, opdi_least_gradients(options));
}
int opdi_old_jvp(opd_transform_fn fn, void *user, opd_tensor *const *primals, opd_tensor *const *tangents, int count,
                const opd_transform_options *options, opd_tensor **outputs, opd_tensor **out_tangents) {
    opd_tensor *made[OPD_TRANSFORM_OUTPUTS] = {NULL}, *along[OPD_TRANSFORM_OUTPUTS] = {NULL};
    const int rc = opd_jvp(fn, user, primals, tangents, count, options, outputs ? made : NULL,
                           out_tangents ? along : NULL, OPD_TRANSFORM_OUTPUTS);
    (void)opdi_old_return(out_tangents, along, rc < 0 || !options ? rc : rc - options->naux, 1);
    return opdi_old_return(outputs, made, rc, opdi_least_outputs(options));
}
int opdi_old_vjp(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
                const opd_transform_options *options, opd_tensor **outputs, opd_derivative **vjp) {
    opd_tensor *made[OPD_TRANSFORM_OUTPUTS] = {NULL};
    const int rc = opd_vjp(fn, user, primals, count, options, outputs ? made : NULL, OPD_TRANSFORM_OUTPUTS, vjp);
    return opdi_old_return(outputs, made, rc, opdi_least_outputs(options));
}
int opdi_old_linearize(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
                      const opd_transform_options *options, opd_tensor **outputs, opd_derivative **jvp) {
    opd_tensor *made[OPD_TRANSFORM_OUTPUTS] = {NULL};
    const int rc = opd_linearize(fn, user, primals, count, options, outputs ? made : NULL, OPD_TRANSFORM_OUTPUTS, jvp);
    return opdi_old_return(outputs, made, rc, opdi_least_outputs(options));
}
int opdi_old_derivative_call(opd_derivative *derivative, opd_tensor *const *in, int count, unsigned flags,
                            opd_tensor **outputs) {
    return opd_derivative_call(derivative, in, count, flags, outputs, INT_MAX);
}
int opdi_old_checkpoint_call(opd_transform_fn fn, void *user, opd_destroy destroy, opd_tensor *const *inputs,
                            int ninputs, const opd_checkpoint_options *options, opd_tensor **outputs) {
    opd_tensor *made[OPD_TRANSFORM_OUTPUTS] = {NULL};
    const int count = opd_checkpoint_call(fn, user, destroy, inputs, ninputs, options, outputs ? made : NULL,
                                          OPD_TRANSFORM_OUTPUTS);
    return opdi_old_return(outputs, made, count, 0);
}
