#include "transforms.h"

//== gradients of tensors ==============================================================================================

#if !defined(OPD_NO_TRANSFORMS)
/* Computes gradients with the option is_grads_batched: runs backward once for all rows of the given gradients, under a
   vmap.  Returns 0, or -1 and sets an error. */
static int opdi_grad_batched(opd_tensor *const *outputs, int count, opd_tensor *const *inputs, int ninputs,
                             const opd_backward_options *options, opd_tensor **grads) {
    opd_backward_options used = *options;
    opd_tensor **g = opd_ok() && count > 0 && outputs && grads ? opdi_scope_tensors(count) : NULL;
    int rc = 0, level;
    used.is_grads_batched = false;
    if (!g) { return opdi_autograd_grad(outputs, count, inputs, ninputs, &used, false, opdi_serial_of(NULL), grads); }
    for (int i = 0; i < count; i++) {
        const opd_tensor *tensor = outputs[i];
        g[i] = used.grad_outputs ? used.grad_outputs[i] : NULL;
        if (!g[i]) {
            return opd_fail(OPD_ERROR_ARGUMENT, "is_grads_batched: grad_output[%d] is NULL, but each output needs a "
                            "gradient", i);
        }
        if (tensor && (g[i]->ndim != tensor->ndim + 1 ||
                       memcmp(g[i]->dims + 1, tensor->dims, (size_t)tensor->ndim * sizeof *tensor->dims) != 0)) {
            char first[256], second[256];
            return opd_fail(OPD_ERROR_AUTOGRAD, "With is_grads_batched, the first dimension of each grad_output is the "
                            "batch dimension. The sizes of the remaining dimensions are expected to "
                            "match the shape of corresponding output, but a mismatch was detected: grad_output[%d] has "
                            "a shape of %s and output[%d] has a shape of %s. If you only want some tensors in "
                            "`grad_output` to be considered batched, consider using vmap.", i,
                            opdi_sizes_text(g[i]->dims, g[i]->ndim, first, sizeof first), i,
                            opdi_sizes_text(tensor->dims, tensor->ndim, second, sizeof second));
        }
    }
    for (int i = 0; i < ninputs; i++) { grads[i] = NULL; }
    if ((level = opd_vmap_begin(g[0]->ndim ? g[0]->dims[0] : 0, OPD_RANDOM_ERROR)) < 0) { return -1; }
    opdi_visit_frame visit;
    opdi_visit_begin(opdi_self(), &visit, "a backward function or a hook", opdi_layers_leave,
                     opdi_self()->innermost.layer);
    for (int i = 0; i < count && rc == 0; i++) { if (!(g[i] = opd_vmap_wrap(g[i], 0, level))) { rc = -1; } }
    used.grad_outputs = g;
    if (rc == 0) {
        rc = opdi_autograd_grad(outputs, count, inputs, ninputs, &used, false, opdi_serial_of(NULL), grads);
    }
    for (int i = 0; i < ninputs && rc == 0; i++) {
        if (grads[i] && !(grads[i] = opd_vmap_unwrap(grads[i], 0, level))) { rc = -1; }
    }
    opdi_layers_end(level);
    opdi_visit_end(&visit);
    return rc;
}
#endif

int opd_autograd_grad(opd_tensor *const *outputs, int count, opd_tensor *const *inputs, int ninputs,
                      const opd_backward_options *options, opd_tensor **grads) {
    const char *const who = "opd_autograd_grad";
    const bool batched = options && options->is_grads_batched;
    int rc = opdi_any_dead(outputs, count, who) || opdi_any_dead(inputs, ninputs, who) ? -1 : 0;
#if defined(OPD_NO_TRANSFORMS)
    if (rc == 0 && batched) {
        rc = opd_fail(OPD_ERROR_NOT_FOUND, "is_grads_batched is left out: OPD_NO_TRANSFORMS was defined");
    }
#else
    if (rc == 0 && batched) { rc = opdi_grad_batched(outputs, count, inputs, ninputs, options, grads); }
#endif
    if (rc == 0 && !batched) {
        rc = opdi_autograd_grad(outputs, count, inputs, ninputs, options, false, opdi_serial_of(NULL), grads);
    }
    return rc ? opdi_no_tensors(grads, ninputs) : 0;
}
