#include "aoti.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>extensions    extensions of PyTorch: additions for torchvision, loading
//----------------------------------------------------------------------------------------------------------------------

//== extensions: additions for torchvision =============================================================================

//  The compiled library of torchvision has the kernels of its operators and of their derivatives.  Its Python code says
//  which derivative belongs to which operator, which sizes results have, and how autocast acts.  This file says the
//  same for the operators with exactly these schemas.

/* Calls the operator `name`, which computes the gradient of the first argument.  Its arguments are the gradient of the
   result, the saved tensors, `before` arguments from number 2 on, the sizes of the first argument, and the next `after`
   arguments.  Returns 0, or -1 and sets an error. */
static int opdi_ext_roi_backward(opd_backward_call *bw, const char *name, int before, int after) {
    opd_context *ctx = opd_bw_context(bw);
    opd_value args[16];
    opd_tensor *grad = opd_bw_grad(bw, 0);
    int count = 0;
    if (!opd_bw_needs(bw, 0) || !grad) { return 0; }
    const opd_ints sizes = opd_bw_sizes(bw, 0);
    args[count++] = opd_value_tensor(opd_contiguous(grad));
    for (int i = 0; i < opd_context_nsaved(ctx); i++) { args[count++] = opd_value_tensor(opd_context_saved(ctx, i)); }
    for (int i = 0; i < before; i++) { args[count++] = opd_bw_value(bw, 2 + i); }
    for (int i = 0; i < 4; i++) { args[count++] = opd_value_int(i < sizes.n ? sizes.data[i] : 0); }
    for (int i = 0; i < after; i++) { args[count++] = opd_bw_value(bw, 2 + before + i); }
    opd_op *op = opd_ok() ? opd_find(name) : NULL;
    return op ? opd_bw_return(bw, 0, opd_call_op(op, args, count)) : -1;
}
static int opdi_ext_roi_align_backward(opd_backward_call *bw) {
    return opdi_ext_roi_backward(bw, "torchvision::_roi_align_backward", 3, 2);
}
static int opdi_ext_roi_pool_backward(opd_backward_call *bw) {
    return opdi_ext_roi_backward(bw, "torchvision::_roi_pool_backward", 3, 0);
}
static int opdi_ext_ps_roi_align_backward(opd_backward_call *bw) {
    return opdi_ext_roi_backward(bw, "torchvision::_ps_roi_align_backward", 4, 0);
}
static int opdi_ext_ps_roi_pool_backward(opd_backward_call *bw) {
    return opdi_ext_roi_backward(bw, "torchvision::_ps_roi_pool_backward", 3, 0);
}
/* Saves the regions (argument 1) and, if there is one, the second result, which says where the elements of the first
   result come from.  Returns 0, or -1 and sets an error. */
static int opdi_ext_roi_setup(opd_context *ctx) {
    opd_tensor *saved[2];
    const opd_value second = opd_context_output(ctx, 1);
    int count = 0;
    saved[count++] = opd_context_tensor(ctx, 1);
    if (second.tag == OPD_TAG_TENSOR) {
        saved[count++] = second.u.t;
        (void)opd_context_mark_non_differentiable(ctx, second.u.t);
    }
    return opd_context_save_for_backward(ctx, saved, count);
}
static int opdi_ext_deform_setup(opd_context *ctx) {
    opd_tensor *saved[5];
    for (int i = 0; i < 5; i++) { saved[i] = opd_context_tensor(ctx, i); }
    return opd_context_save_for_backward(ctx, saved, 5);
}
static int opdi_ext_deform_backward(opd_backward_call *bw) {
    static opd_op *backward;
    opd_context *ctx = opd_bw_context(bw);
    opd_tensor *grads[5], *grad = opd_bw_grad(bw, 0);
    opd_value args[15];
    if (!grad) { return 0; }
    args[0] = opd_value_tensor(opd_contiguous(grad));
    for (int i = 0; i < 5; i++) { args[1 + i] = opd_value_tensor(opd_context_saved(ctx, i)); }
    for (int i = 5; i < 14; i++) { args[1 + i] = opd_bw_value(bw, i); }
    if (!opd_ok() || opd_call_tensors(OPD_OP(&backward, "torchvision::_deform_conv2d_backward"), grads, args, 15)) {
        return -1;
    }
    for (int i = 0; i < 5; i++) {
        if (opd_bw_needs(bw, i)) { (void)opd_bw_return(bw, i, grads[i]); }
    }
    return opd_ok() ? 0 : -1;
}

static int opdi_ext_roi_check(opd_call *call) {
    const opd_tensor *input = opd_arg_tensor(call, 0), *rois = opd_arg_tensor(call, 1);
    OPD_CHECK(opd_ndim(input) == 4, "input must have 4 dims, not %d", opd_ndim(input));
    OPD_CHECK(opd_ndim(rois) == 2 && opd_size(rois, 1) == 5, "rois must have shape as Tensor[K, 5]");
    OPD_CHECK(opd_dtype(input) == opd_dtype(rois), "Expected tensor for input to have the same type as tensor for "
              "rois; but type %s does not equal %s", opd_dtype_name(opd_dtype(input)),
              opd_dtype_name(opd_dtype(rois)));
    return opd_ok() ? 0 : -1;
}
/* Computes the sizes of the results: one row for each region.  If `divided` is true, the channels are divided among the
   cells of the region.  `second` is true if there are two results.  Returns 0, or -1 and sets an error. */
static int opdi_ext_roi_shape(opd_call *call, bool second, bool divided) {
    int64_t sizes[4];
    if (opdi_ext_roi_check(call)) { return -1; }
    sizes[0] = opd_size(opd_arg_tensor(call, 1), 0);
    sizes[1] = opd_size(opd_arg_tensor(call, 0), 1);
    sizes[2] = opd_arg_int(call, 3);
    sizes[3] = opd_arg_int(call, 4);
    OPD_CHECK(sizes[2] > 0 && sizes[3] > 0, "the size of the result must be positive");
    if (divided) {
        OPD_CHECK(sizes[1] % (sizes[2] * sizes[3]) == 0,
                  "input channels must be a multiple of pooling height * pooling width");
        sizes[1] /= sizes[2] * sizes[3];
    }
    (void)opd_result(call, 0, sizes, 4, opd_dtype(opd_arg_tensor(call, 0)));
    if (second) { (void)opd_result(call, 1, sizes, 4, OPD_INT32); }
    return opd_ok() ? 0 : -1;
}
static int opdi_ext_roi_align_fake(opd_call *call) { return opdi_ext_roi_shape(call, false, false); }
static int opdi_ext_roi_pool_fake(opd_call *call) { return opdi_ext_roi_shape(call, true, false); }
static int opdi_ext_ps_roi_fake(opd_call *call) { return opdi_ext_roi_shape(call, true, true); }
static int opdi_ext_roi_grad_shape(opd_call *call, int first) {
    int64_t sizes[4];
    for (int i = 0; i < 4; i++) { sizes[i] = opd_arg_int(call, first + i); }
    (void)opd_result(call, 0, sizes, 4, opd_dtype(opd_arg_tensor(call, 0)));
    return opd_ok() ? 0 : -1;
}
static int opdi_ext_roi_align_grad_fake(opd_call *call) { return opdi_ext_roi_grad_shape(call, 5); }
static int opdi_ext_roi_pool_grad_fake(opd_call *call) { return opdi_ext_roi_grad_shape(call, 6); }
static int opdi_ext_ps_align_grad_fake(opd_call *call) { return opdi_ext_roi_grad_shape(call, 7); }
static int opdi_ext_deform_fake(opd_call *call) {
    const opd_tensor *input = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 1);
    int64_t sizes[4];
    OPD_CHECK(opd_ndim(input) == 4 && opd_ndim(weight) == 4, "input and weight must have 4 dims");
    sizes[0] = opd_size(input, 0);
    sizes[1] = opd_size(weight, 0);
    for (int i = 0; i < 2; i++) {
        const int64_t stride = opd_arg_int(call, 5 + i);
        const int64_t reach = opd_arg_int(call, 9 + i) * (opd_size(weight, 2 + i) - 1);
        OPD_CHECK(stride > 0, "the stride must be positive");
        sizes[2 + i] = (opd_size(input, 2 + i) + 2 * opd_arg_int(call, 7 + i) - reach - 1) / stride + 1;
    }
    (void)opd_result(call, 0, sizes, 4, opd_dtype(input));
    return opd_ok() ? 0 : -1;
}
static int opdi_ext_deform_grad_fake(opd_call *call) {
    for (int i = 0; i < 5; i++) {
        const opd_tensor *like = opd_arg_tensor(call, 1 + i);
        (void)opd_result(call, i, opd_sizes(like), opd_ndim(like), opd_dtype(like));
    }
    return opd_ok() ? 0 : -1;
}
/* The kernel at AutocastCPU: computes in float32, and returns a tensor of the input's dtype. */
static int opdi_ext_roi_align_autocast(opd_call *call) {
    static opd_op *roi_align;
    opd_value args[7];
    const opd_key_guard guard = opd_keys_exclude(opd_keyset_add(opd_keyset_make(0, 0), OPD_KEY_AUTOCAST_CPU));
    memcpy(args, opd_call_args(call), sizeof args);
    for (int i = 0; i < 2; i++) {
        args[i] = opd_value_tensor(opd_autocast_cast(OPD_FLOAT32, opd_arg_tensor(call, i)));
    }
    opd_tensor *out = opd_ok() ? opd_call_op(OPD_OP(&roi_align, "torchvision::roi_align"), args, 7) : NULL;
    if (out) { out = opd_to_dtype(out, opd_dtype(opd_arg_tensor(call, 0))); }
    opd_keys_restore(guard);
    return opd_return_tensor(call, out);
}

typedef struct opdi_ext_vision_op {
    const char *schema;          /* the schema as torchvision defines it */
    opd_kernel fake;
    opd_backward_fn backward;
    opd_setup_fn setup;
} opdi_ext_vision_op;
static const opdi_ext_vision_op opdi_ext_vision_ops[] = {
    {"roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
     "int sampling_ratio, bool aligned) -> Tensor",
     opdi_ext_roi_align_fake, opdi_ext_roi_align_backward, opdi_ext_roi_setup},
    {"_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
     "SymInt batch_size, SymInt channels, SymInt height, SymInt width, int sampling_ratio, bool aligned) -> Tensor",
     opdi_ext_roi_align_grad_fake, NULL, NULL},
    {"roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> "
     "(Tensor, Tensor)", opdi_ext_roi_pool_fake, opdi_ext_roi_pool_backward, opdi_ext_roi_setup},
    {"_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax, float spatial_scale, SymInt pooled_height, "
     "SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) -> Tensor",
     opdi_ext_roi_pool_grad_fake, NULL, NULL},
    {"ps_roi_align(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width, "
     "int sampling_ratio) -> (Tensor, Tensor)",
     opdi_ext_ps_roi_fake, opdi_ext_ps_roi_align_backward, opdi_ext_roi_setup},
    {"_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, "
     "SymInt pooled_height, SymInt pooled_width, int sampling_ratio, SymInt batch_size, SymInt channels, "
     "SymInt height, SymInt width) -> Tensor", opdi_ext_ps_align_grad_fake, NULL, NULL},
    {"ps_roi_pool(Tensor input, Tensor rois, float spatial_scale, SymInt pooled_height, SymInt pooled_width) -> "
     "(Tensor, Tensor)", opdi_ext_ps_roi_fake, opdi_ext_ps_roi_pool_backward, opdi_ext_roi_setup},
    {"_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float spatial_scale, "
     "SymInt pooled_height, SymInt pooled_width, SymInt batch_size, SymInt channels, SymInt height, SymInt width) "
     "-> Tensor", opdi_ext_roi_pool_grad_fake, NULL, NULL},
    {"deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, "
     "SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, "
     "SymInt offset_groups, bool use_mask) -> Tensor",
     opdi_ext_deform_fake, opdi_ext_deform_backward, opdi_ext_deform_setup},
    {"_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, "
     "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, "
     "SymInt groups, SymInt offset_groups, bool use_mask) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
     opdi_ext_deform_grad_fake, NULL, NULL}
};
/* Adds the behaviour of an operator that torchvision defines in Python.  If `builtin` is true, opdispatch.h has defined
   the operator, and only the behaviour under autocast is added. */
static void opdi_ext_vision_add(opdi_ext *ext, const char *schema, bool builtin) {
    char name[60];
    const opdi_ext_vision_op *known = NULL;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(schema, "("), schema);
    for (size_t i = 0; i < sizeof opdi_ext_vision_ops / sizeof *opdi_ext_vision_ops; i++) {
        if (strcmp(opdi_ext_vision_ops[i].schema, schema) == 0) { known = &opdi_ext_vision_ops[i]; }
    }
    const bool nms = strcmp(schema, "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor") == 0;
    if ((known || nms) && !ext->derivatives) {
        ext->derivatives = opd_library_open(OPD_IMPL, "torchvision", NULL, "opdispatch.h", 0);
    }
    if (!ext->derivatives) { return; }
    if (nms) { (void)opd_autocast_register(ext->derivatives, name, OPD_CPU, OPD_AUTOCAST_FP32); }
    if (known && !builtin) { (void)opd_fake_register(ext->derivatives, name, known->fake); }
    if (known && known->backward && !builtin) {
        (void)opd_autograd_register(ext->derivatives, name, known->backward, known->setup);
    }
    if (strcmp(name, "roi_align") == 0 && known) {
        (void)opd_impl_key(ext->derivatives, name, "AutocastCPU", opdi_ext_roi_align_autocast, NULL, NULL);
    }
}
OPDI_INTERNAL int opdi_ext_vision(opdi_ext *ext) {
    for (const opdi_ext_library *library = ext->libraries; library; library = library->next) {
        if (strcmp(library->ns, "torchvision") != 0) { continue; }
        for (const opdi_ext_entry *entry = library->entries; entry && opd_ok(); entry = entry->next) {
            if (!entry->fn) { opdi_ext_vision_add(ext, entry->text, entry->builtin); }
        }
    }
    return opd_ok() ? 0 : -1;
}

