#include "transforms.h"

//== transforms of version 0.4 =========================================================================================

/* The functions of this section do not know the length of the caller's array.  They give the largest possible number of
   outputs: a transform writes only the outputs that there are. */

int opdi_old_vmap(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                  const opd_vmap_options *options, opd_tensor **outputs) {
    return opd_vmap(fn, user, inputs, ninputs, options, outputs, OPD_TRANSFORM_OUTPUTS);
}
int opdi_old_grad(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                  const opd_transform_options *options, opd_tensor **outputs) {
    return opd_grad(fn, user, inputs, ninputs, options, outputs, OPD_TRANSFORM_OUTPUTS);
}
int opdi_old_grad_and_value(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                            const opd_transform_options *options, opd_tensor **outputs) {
    return opd_grad_and_value(fn, user, inputs, ninputs, options, outputs, OPD_TRANSFORM_OUTPUTS);
}
int opdi_old_jacrev(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                    const opd_transform_options *options, opd_tensor **outputs) {
    return opd_jacrev(fn, user, inputs, ninputs, options, outputs, OPD_TRANSFORM_OUTPUTS);
}
int opdi_old_jacfwd(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                    const opd_transform_options *options, opd_tensor **outputs) {
    return opd_jacfwd(fn, user, inputs, ninputs, options, outputs, OPD_TRANSFORM_OUTPUTS);
}
int opdi_old_hessian(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                     const opd_transform_options *options, opd_tensor **outputs) {
    return opd_hessian(fn, user, inputs, ninputs, options, outputs, OPD_TRANSFORM_OUTPUTS);
}
int opdi_old_jvp(opd_transform_fn fn, void *user, opd_tensor *const *primals, opd_tensor *const *tangents, int count,
                 const opd_transform_options *options, opd_tensor **outputs, opd_tensor **out_tangents) {
    return opd_jvp(fn, user, primals, tangents, count, options, outputs, out_tangents, OPD_TRANSFORM_OUTPUTS);
}
int opdi_old_vjp(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
                 const opd_transform_options *options, opd_tensor **outputs, opd_derivative **vjp) {
    return opd_vjp(fn, user, primals, count, options, outputs, OPD_TRANSFORM_OUTPUTS, vjp);
}
int opdi_old_linearize(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
                       const opd_transform_options *options, opd_tensor **outputs, opd_derivative **jvp) {
    return opd_linearize(fn, user, primals, count, options, outputs, OPD_TRANSFORM_OUTPUTS, jvp);
}
int opdi_old_derivative_call(opd_derivative *derivative, opd_tensor *const *in, int count, unsigned flags,
                             opd_tensor **outputs) {
    return opd_derivative_call(derivative, in, count, flags, outputs, INT_MAX);
}
int opdi_old_checkpoint_call(opd_transform_fn fn, void *user, opd_destroy destroy, opd_tensor *const *inputs,
                             int ninputs, const opd_checkpoint_options *options, opd_tensor **outputs) {
    return opd_checkpoint_call(fn, user, destroy, inputs, ninputs, options, outputs, OPD_TRANSFORM_OUTPUTS);
}
