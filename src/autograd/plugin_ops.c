#include "autograd.h"

//== operators that the CUDA plug-in defines for the library's own use =================================================
//
//  A composite calls such an operator, opd_cuda::.., where one kernel can take the place of many, if no other layer has
//  to see the operators that the kernel stands for.

/* Returns the operator opd_cuda::.. with this full name, which the CUDA plug-in defines for the library's own use, and
   keeps it in *handle.  Returns NULL without an error if there is none. */
OPDI_INTERNAL opd_op *opdi_cuda_op(opd_op **handle, const char *name) {
    opd_op *op = OPDI_HANDLE_READ(handle);
    if (!op && (op = opd_find_quiet(name)) != NULL) { OPDI_HANDLE_WRITE(handle, op); }
    return op;
}
/* Returns the norms of the n tensors in one tensor with one dim, computed on a GPU in few launches.  Returns NULL if
   that fails, and also, without an error, if the tensors are not floats of one dtype in memory of one GPU, if the order
   is not 1, 2 or infinity, or if another layer has to see the norms of the tensors. */
OPDI_INTERNAL opd_tensor *opdi_list_norms(opd_tensor *const *tensors, int64_t n, double order) {
    static opd_op *norm;
    if (n < 1 || (order != 1 && order != 2 && order != OPDI_INF) || opdi_self()->state.autocast ||
        !opdi_only_autocast_follows()) {
        return NULL;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!opdi_in_cuda(tensors[i]) || tensors[i]->dtype != tensors[0]->dtype || tensors[i]->numel == 0 ||
            !opd_dtype_is_floating((opd_scalar_type)tensors[i]->dtype) ||
            tensors[i]->storage->index != tensors[0]->storage->index ||
            (opd_grad_mode_enabled() && opdi_tracked(tensors[i]))) {
            return NULL;
        }
    }
    opd_op *const op = opdi_cuda_op(&norm, "opd_cuda::list_norm");
    opd_value args[2], got;
    args[0] = opd_value_tensors(tensors, (int32_t)n);
    args[1] = opd_value_double(order);
    return op && opd_call_all(op, &got, args, 2) == 0 ? got.u.t : NULL;
}
