#include "ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:train     optimizer steps, operators for gradient scalers, operators on lists of tensors (_foreach_..)
//----------------------------------------------------------------------------------------------------------------------

//== fused optimizer steps: SGD, Adam, AdamW ===========================================================================
//
//  A step makes one pass over the memory of each parameter.  The operands of a loop are: the tensors to be written, the
//  same tensors again as inputs, and the gradient.  The order of operations is that of
//  aten/src/ATen/native/cpu/Fused*Kernel.cpp.

typedef struct opdi_adam {
    opdi_params params;                           /* first, because opdi_run passes a pointer to it */
    double sign, l2, decay;                       /* g = sign * g + l2 * x;  x *= decay */
    double w1, beta2, w2;                         /* m += (g - m) * w1;  v = beta2 * v + w2 * g * g */
    double step, scale, eps;                      /* x -= step * m / (scale * sqrt(v) + eps) */
    bool amsgrad;                                 /* uses the largest v so far instead of v */
} opdi_adam;
typedef struct opdi_sgd {
    opdi_params params;
    double sign, l2, momentum, w, lr;             /* b = momentum * b + w * g, but b = g if `first` */
    bool first, nesterov;                         /* x -= lr * b or, if nesterov, x -= lr * (g + momentum * b) */
} opdi_sgd;

static void opdi_adam_f32(void *const *data, int64_t count, const opdi_params *params);
static void opdi_adam_f64(void *const *data, int64_t count, const opdi_params *params);
static void opdi_sgd_f32(void *const *data, int64_t count, const opdi_params *params);
static void opdi_sgd_f64(void *const *data, int64_t count, const opdi_params *params);
static void opdi_unscale_f32(void *const *data, int64_t count, const opdi_params *params);
static void opdi_unscale_f64(void *const *data, int64_t count, const opdi_params *params);
#include "../typed/f32.h"
#include "optimizer_vectors.typed.h"
#include "optimizer_steps.typed.h"
#if defined(OPDI_VECTORS)
#include "../typed/f32_avx2.h"
#include "optimizer_vectors.typed.h"
#endif
#include "../typed/f64.h"
#include "optimizer_vectors.typed.h"
#include "optimizer_steps.typed.h"
#if defined(OPDI_VECTORS)
#include "../typed/f64_avx2.h"
#include "optimizer_vectors.typed.h"
#endif
#include "../typed/end.h"
OPDI_COLD_BEGIN

/* Checks the lists of an optimizer step.  lists[0] has the parameters; all lists k with wanted[k] must be equally long.
   A parameter's tensors must have its dtype, backend and sizes.  A tensor that is written must not partially overlap
   another one.  Returns 0, or -1 and sets an error. */
static int opdi_step_check(const opd_call *call, const opd_tensors *lists, int nlists, const bool *wanted) {
    const opd_tensors *params = &lists[0];
    char first[256], second[256];
    if (params->n == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "Tensor list must have at least one tensor."); }
    for (int k = 1; k < nlists; k++) {
        if (wanted[k] && lists[k].n != params->n) {
            return opd_fail(OPD_ERROR_ARGUMENT, "Tensor lists must have the same number of tensors, got %lld and %lld "
                            "(argument '%s')", (long long)params->n, (long long)lists[k].n,
                            opd_schema_arg_name(call->op->schema, k));
        }
    }
    for (int64_t i = 0; i < params->n; i++) {
        const opd_tensor *input = params->data[i];
        if (!opd_dtype_is_floating((opd_scalar_type)input->dtype)) {
            return opd_fail(OPD_ERROR_DTYPE, "parameter %lld has dtype %s, but must be floating point",
                            (long long)i, opd_dtype_name((opd_scalar_type)input->dtype));
        }
        for (int k = 0; k < nlists; k++) {
            const opd_tensor *tensor = wanted[k] ? lists[k].data[i] : NULL;
            if (!tensor) { continue; }
            if (tensor->dtype != input->dtype || tensor->backend != input->backend || !opdi_same_sizes(tensor, input)) {
                return opd_fail(OPD_ERROR_DTYPE, "params, grads and state must have the same dtype, device and sizes, "
                                "but tensor %lld of argument '%s' is %s%s and its parameter %s%s", (long long)i,
                                opd_schema_arg_name(call->op->schema, k), opd_dtype_name(OPDI_DTYPE(tensor)),
                                opdi_shape_text(tensor, first), opd_dtype_name(OPDI_DTYPE(input)),
                                opdi_shape_text(input, second));
            }
            if (k != 1 && opdi_check_internal_overlap(tensor)) { return -1; }
            for (int j = 0; j < k; j++) {         /* tensors must not partially overlap */
                const opd_tensor *other = wanted[j] ? lists[j].data[i] : NULL;
                if (other && opdi_check_partial_overlap(tensor, other)) { return -1; }
            }
        }
    }
    return 0;
}

/* Reads grad_scale and found_inf, arguments `at` and at + 1, which a gradient scaler passes.  Divides the gradients by
   the scale.  Returns 0, or 1 if this step must be skipped, or -1 and sets an error. */
static int opdi_step_scale(opd_call *call, const opd_tensors *grads, int at) {
    opd_tensor *scale = opd_arg_tensor(call, at), *found = opd_arg_tensor(call, at + 1), *ops[3];
    opdi_params none;
    memset(&none, 0, sizeof none);
    if ((scale && scale->numel != 1) || (found && found->numel != 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "grad_scale and found_inf must have one element each");
    }
    if ((scale && !scale->data) || (found && !found->data)) { return 1; }
    if (found && opd_item_f64(found) == 1.0) { return 1; }
    if (!opd_ok()) { return -1; }
    if (!scale) { return 0; }
    scale = opd_tensor_wrapped_number(opd_value_double(opd_item_f64(scale)));
    if (!scale || !opd_ok()) { return -1; }
    for (int64_t i = 0; i < grads->n; i++) {      /* the gradients themselves are divided */
        ops[0] = ops[1] = grads->data[i];
        ops[2] = scale;
        opd_scalar_type dtype = (opd_scalar_type)ops[0]->dtype;
        if (opdi_run(ops, 3, 1, dtype, opdi_compute_type(dtype), dtype == OPD_FLOAT64 ? opdi_f64_div : opdi_f32_div,
                     &none)) {
            return -1;
        }
    }
    return 0;
}

/* Sets *lr to the learning rate in argument i, a number or a tensor with one element.  Returns 0, or -1 and sets an
   error. */
static int opdi_step_lr(const opd_call *call, int i, double *lr) {
    const opd_value value = opd_arg_value(call, i);
    if (value.tag != OPD_TAG_TENSOR) {
        *lr = opd_arg_double(call, i);
        return 0;
    }
    if (value.u.t->numel != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "lr must have one element, but has %lld", (long long)value.u.t->numel);
    }
    *lr = value.u.t->data ? opd_item_f64(value.u.t) : 0;
    return opd_ok() ? 0 : -1;
}

/* Runs a step for one parameter: the loop f32 or f64 on its `nwritten` tensors, which are read and written, and its
   gradient.  Returns 0, or -1 and sets an error. */
static int opdi_step_run(opd_tensor *const *written, int nwritten, opd_tensor *grad, opdi_loop f32, opdi_loop f64,
                         const opdi_params *params) {
    opd_tensor *ops[9];
    const opd_scalar_type dtype = (opd_scalar_type)written[0]->dtype;
    for (int k = 0; k < nwritten; k++) { ops[k] = ops[nwritten + k] = written[k]; }
    ops[2 * nwritten] = grad;
    return opdi_run(ops, 2 * nwritten + 1, nwritten, dtype, opdi_compute_type(dtype), dtype == OPD_FLOAT64 ? f64 : f32,
                    params);
}

/* Runs a step of Adam or (`decoupled` weight decay) AdamW.  Arguments: self, grads, exp_avgs, exp_avg_sqs,
   max_exp_avg_sqs, state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf.
   state_steps already counts this step. */
static int opdi_adam_step(opd_call *call, bool decoupled) {
    opd_tensors lists[5], steps = opd_arg_tensors(call, 5);
    const double beta1 = opd_arg_double(call, 7), beta2 = opd_arg_double(call, 8), decay = opd_arg_double(call, 9);
    const bool amsgrad = opd_arg_bool(call, 11);
    bool wanted[5];
    opdi_adam adam;
    double lr;
    int rc;
    for (int k = 0; k < 5; k++) {
        lists[k] = opd_arg_tensors(call, k);
        wanted[k] = k < 4 || amsgrad;
    }
    if (opdi_step_check(call, lists, 5, wanted) || opdi_step_lr(call, 6, &lr)) { return -1; }
    if (steps.n != lists[0].n) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Tensor lists must have the same number of tensors, got %lld and %lld "
                        "(argument 'state_steps')", (long long)lists[0].n, (long long)steps.n);
    }
    for (int64_t i = 0; i < steps.n; i++) {
        if (steps.data[i]->numel != 1 || steps.data[i]->backend == OPD_META) {
            if (lists[0].data[0]->backend == OPD_META && steps.data[i]->numel == 1) { continue; }
            return opd_fail(OPD_ERROR_SHAPE, "tensor %lld of argument 'state_steps' must have one element and must "
                            "not be a meta tensor", (long long)i);
        }
    }
    if (lists[0].data[0]->backend == OPD_META) { return 0; }
    memset(&adam, 0, sizeof adam);
    adam.sign = opd_arg_bool(call, 12) ? -1 : 1;
    adam.l2 = decoupled ? 0 : decay;
    adam.decay = decoupled ? 1 - lr * decay : 1;
    adam.w1 = 1 - beta1;
    adam.beta2 = beta2;
    adam.w2 = 1 - beta2;
    adam.eps = opd_arg_double(call, 10);
    adam.amsgrad = amsgrad;
    if ((rc = opdi_step_scale(call, &lists[1], 13)) != 0) { return rc < 0 ? -1 : 0; }
    for (int64_t i = 0; i < lists[0].n; i++) {
        const double step = opd_item_f64(steps.data[i]);
        opd_tensor *written[4];
        written[0] = lists[0].data[i];
        for (int k = 1; k < 4; k++) { written[k] = wanted[k + 1] ? lists[k + 1].data[i] : NULL; }
        adam.step = lr / (1 - opdi_pow_f64(beta1, step));
        adam.scale = 1 / sqrt(1 - opdi_pow_f64(beta2, step));
        if (!opd_ok() || opdi_step_run(written, amsgrad ? 4 : 3, lists[1].data[i], opdi_adam_f32, opdi_adam_f64,
                                       &adam.params)) { return -1; }
    }
    return 0;
}
static int opdi_fused_adam_kernel(opd_call *call) { return opdi_adam_step(call, false); }
static int opdi_fused_adamw_kernel(opd_call *call) { return opdi_adam_step(call, true); }

/* Runs a step of SGD.  Arguments: self, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov,
   maximize, is_first_step, grad_scale, found_inf. */
static int opdi_fused_sgd_kernel(opd_call *call) {
    opd_tensors lists[3];
    bool wanted[3];
    opdi_sgd sgd;
    int rc;
    memset(&sgd, 0, sizeof sgd);
    sgd.l2 = opd_arg_double(call, 3);
    sgd.momentum = opd_arg_double(call, 4);
    sgd.w = 1 - opd_arg_double(call, 6);
    sgd.nesterov = opd_arg_bool(call, 7);
    sgd.sign = opd_arg_bool(call, 8) ? -1 : 1;
    sgd.first = opd_arg_bool(call, 9);
    for (int k = 0; k < 3; k++) {
        lists[k] = opd_arg_tensors(call, k);
        wanted[k] = k < 2 || !(sgd.momentum >= 0 && sgd.momentum <= 0);
    }
    if (opdi_step_check(call, lists, 3, wanted) || opdi_step_lr(call, 5, &sgd.lr)) { return -1; }
    if (lists[0].data[0]->backend == OPD_META) { return 0; }
    if ((rc = opdi_step_scale(call, &lists[1], 10)) != 0) { return rc < 0 ? -1 : 0; }
    for (int64_t i = 0; i < lists[0].n; i++) {
        opd_tensor *written[2];
        written[0] = lists[0].data[i];
        written[1] = wanted[2] ? lists[2].data[i] : NULL;
        if (opdi_step_run(written, wanted[2] ? 2 : 1, lists[1].data[i], opdi_sgd_f32, opdi_sgd_f64, &sgd.params)) {
            return -1;
        }
    }
    return 0;
}

//== operators for gradient scalers (aten/src/ATen/native/cuda/AmpKernels.cu) ==========================================

static int opdi_amp_check(const opd_call *call, int i, bool whole) {
    const opd_tensor *tensor = opd_arg_tensor(call, i);
    const char *name = opd_schema_arg_name(call->op->schema, i);
    if (!tensor || tensor->numel != 1) { return opd_fail(OPD_ERROR_SHAPE, "%s must be a 1-element tensor.", name); }
    return (whole ? tensor->dtype == OPD_INT32 || tensor->dtype == OPD_INT64 : tensor->dtype == OPD_FLOAT32 ||
            tensor->dtype == OPD_FLOAT64) ? 0 : opd_fail(OPD_ERROR_DTYPE, "%s must be %s tensor.", name,
                                                         whole ? "an int" : "a float");
}
static void opdi_amp_put(const opd_tensor *tensor, double v) {
    void *at = tensor->data;
    switch (tensor->dtype) {
    case OPD_INT32: *(int32_t *)at = (int32_t)v; break;
    case OPD_INT64: *(int64_t *)at = (int64_t)v; break;
    case OPD_FLOAT32: *(float *)at = (float)v; break;
    default: *(double *)at = v;
    }
}
/* Multiplies the gradients by inv_scale and sets found_inf.  Arguments: self, found_inf, inv_scale. */
static int opdi_amp_unscale_kernel(opd_call *call) {
    const opd_tensors grads = opd_arg_tensors(call, 0);
    opd_tensor *found = opd_arg_tensor(call, 1), *ops[2];
    int32_t bad = 0;
    opdi_params params;
    if (opdi_amp_check(call, 1, false) || opdi_amp_check(call, 2, false)) { return -1; }
    for (int64_t i = 0; i < grads.n; i++) {
        const opd_tensor *grad = grads.data[i];
        if (!opd_dtype_is_floating((opd_scalar_type)grad->dtype)) {
            return opd_fail(OPD_ERROR_DTYPE, "gradient %lld has dtype %s, but must be floating point to be unscaled",
                            (long long)i, opd_dtype_name((opd_scalar_type)grad->dtype));
        }
        if (opdi_check_internal_overlap(grad) || opdi_check_partial_overlap(grad, found)) { return -1; }
    }
    if (!found->data) { return 0; }
    memset(&params, 0, sizeof params);
    params.f64[0] = opd_item_f64(opd_arg_tensor(call, 2));
    params.zero = &bad;
    for (int64_t i = 0; i < grads.n && opd_ok(); i++) {
        const opd_scalar_type dtype = (opd_scalar_type)grads.data[i]->dtype;
        ops[0] = ops[1] = grads.data[i];
        if (opdi_run(ops, 2, 1, dtype, opdi_compute_type(dtype),
                     dtype == OPD_FLOAT64 ? opdi_unscale_f64 : opdi_unscale_f32, &params)) {
            return -1;
        }
    }
    if (bad) { opdi_amp_put(found, 1); }
    return opd_ok() ? 0 : -1;
}
/* Updates the loss scale, self.  Arguments: self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor,
   growth_interval. */
static int opdi_amp_update_kernel(opd_call *call) {
    opd_tensor *scale = opd_arg_tensor(call, 0), *tracker = opd_arg_tensor(call, 1);
    int64_t successful = 0;
    if (opdi_amp_check(call, 0, false) || opdi_amp_check(call, 1, true) || opdi_amp_check(call, 2, false)) {
        return -1;
    }
    if (!scale->data) { return opd_return_tensor(call, scale); }
    float grown = (float)opd_item_f64(scale);
    if (opd_item_f64(opd_arg_tensor(call, 2)) > 0) { grown *= (float)opd_arg_double(call, 4); }
    else if ((successful = opd_item_i64(tracker) + 1) == opd_arg_int(call, 5)) {
        successful = 0;
        grown *= (float)opd_arg_double(call, 3);
        if (!(grown < OPDI_INF)) { grown = (float)opd_item_f64(scale); }   /* must stay finite in float32 */
    }
    if (!opd_ok()) { return -1; }
    opdi_amp_put(scale, (double)grown);
    opdi_amp_put(tracker, (double)successful);
    return opd_return_tensor(call, scale);
}

/* The autograd kernel of a step, which autograd does not record: fails if a tensor that is written requires grad. */
static int opdi_step_autograd(opd_call *call) {
    for (uint64_t mask = call->th->state.no_grad ? 0 : call->op->written_args; mask; mask &= mask - 1) {
        if (opdi_arg_requires_grad(&call->args[opdi_low_bit(mask)])) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "a leaf tensor that requires grad is being used in an in-place "
                            "operation. Put an optimizer's step into a block OPD_NO_GRAD { }.");
        }
    }
    return opdi_below_autograd(call);
}

/* opd_fused_adam_: one step of Adam for a list of parameters */
OPDI_OP(_fused_adam_) {
    op->schema = "_fused_adam_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] "
        "exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, "
        "float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) "
        "-> ()";
    op->cpu = op->fake = opdi_fused_adam_kernel; op->autograd = opdi_step_autograd;
    op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->flops = opdi_flops_elements;
    op->cases = "{[2,3],[4]}, {[2,3],[4]}, {[2,3],[4]}, {[2,3]+,[4]+}, {}, {[]g,[1]g}, lr=0.1, beta1=0.9, beta2=0.99, "
        "weight_decay=0.1, eps=0.01, amsgrad=False, maximize=False; {[2,3]}, {[2,3]}, {[2,3]}, {[2,3]+}, {[2,3]+}, "
        "{[]g}, lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=0.01, amsgrad=True, maximize=True, "
        "grad_scale=[]g, found_inf=[]u";
}
/* opd_fused_adam_tensor_lr_: one step of Adam for a list of parameters, with the learning rate in a tensor */
OPDI_OP(_fused_adam__tensor_lr) {
    op->schema = "_fused_adam_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] "
        "exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, "
        "float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) "
        "-> ()";
    op->cpu = op->fake = opdi_fused_adam_kernel; op->autograd = opdi_step_autograd;
    op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->flops = opdi_flops_elements;
    op->cases = "{[2,3],[4]}, {[2,3],[4]}, {[2,3],[4]}, {[2,3]+,[4]+}, {}, {[]g,[1]g}, lr=[]u, beta1=0.9, beta2=0.99, "
        "weight_decay=0.1, eps=0.01, amsgrad=False, maximize=False; {[2,3]}, {[2,3]}, {[2,3]}, {[2,3]+}, {[2,3]+}, "
        "{[]g}, lr=[]u, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=0.01, amsgrad=True, maximize=True, "
        "grad_scale=[]g, found_inf=[]u";
}
/* opd_fused_adamw_: one step of AdamW for a list of parameters */
OPDI_OP(_fused_adamw_) {
    op->schema = "_fused_adamw_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] "
        "exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, "
        "float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) "
        "-> ()";
    op->cpu = op->fake = opdi_fused_adamw_kernel; op->autograd = opdi_step_autograd;
    op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->flops = opdi_flops_elements;
    op->cases = "{[2,3],[4]}, {[2,3],[4]}, {[2,3],[4]}, {[2,3]+,[4]+}, {}, {[]g,[1]g}, lr=0.1, beta1=0.9, beta2=0.99, "
        "weight_decay=0.1, eps=0.01, amsgrad=False, maximize=False; {[2,3]}, {[2,3]}, {[2,3]}, {[2,3]+}, {[2,3]+}, "
        "{[]g}, lr=0.1, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=0.01, amsgrad=True, maximize=True, "
        "grad_scale=[]g, found_inf=[]u";
}
/* opd_fused_adamw_tensor_lr_: one step of AdamW for a list of parameters, with the learning rate in a tensor */
OPDI_OP(_fused_adamw__tensor_lr) {
    op->schema = "_fused_adamw_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] exp_avgs, Tensor(d!)[] "
        "exp_avg_sqs, Tensor(e!)[] max_exp_avg_sqs, Tensor[] state_steps, *, Tensor lr, float beta1, float beta2, "
        "float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, Tensor? found_inf=None) "
        "-> ()";
    op->cpu = op->fake = opdi_fused_adamw_kernel; op->autograd = opdi_step_autograd;
    op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->flops = opdi_flops_elements;
    op->cases = "{[2,3],[4]}, {[2,3],[4]}, {[2,3],[4]}, {[2,3]+,[4]+}, {}, {[]g,[1]g}, lr=[]u, beta1=0.9, beta2=0.99, "
        "weight_decay=0.1, eps=0.01, amsgrad=False, maximize=False; {[2,3]}, {[2,3]}, {[2,3]}, {[2,3]+}, {[2,3]+}, "
        "{[]g}, lr=[]u, beta1=0.9, beta2=0.99, weight_decay=0.0, eps=0.01, amsgrad=True, maximize=True, "
        "grad_scale=[]g, found_inf=[]u";
}
/* opd_fused_sgd_: one step of SGD for a list of parameters */
OPDI_OP(_fused_sgd_) {
    op->schema = "_fused_sgd_(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, float "
        "weight_decay, float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, "
        "Tensor? grad_scale=None, Tensor? found_inf=None) -> ()";
    op->cpu = op->fake = opdi_fused_sgd_kernel; op->autograd = opdi_step_autograd;
    op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->flops = opdi_flops_elements;
    op->cases = "{[2,3],[4]}, {[2,3],[4]}, {[2,3],[4]}, weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.1, "
        "nesterov=False, maximize=False, is_first_step=False; {[2,3]}, {[2,3]}, {}, weight_decay=0.0, momentum=0.0, "
        "lr=0.1, dampening=0.0, nesterov=False, maximize=True, is_first_step=True, grad_scale=[]g";
}
/* opd_fused_sgd_tensor_lr_: one step of SGD for a list of parameters, with the learning rate in a tensor */
OPDI_OP(_fused_sgd__tensor_lr) {
    op->schema = "_fused_sgd_.tensor_lr(Tensor(a!)[] self, Tensor(b!)[] grads, Tensor(c!)[] momentum_buffer_list, *, "
        "float weight_decay, float momentum, Tensor lr, float dampening, bool nesterov, bool maximize, bool "
        "is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> ()";
    op->cpu = op->fake = opdi_fused_sgd_kernel; op->autograd = opdi_step_autograd;
    op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->flops = opdi_flops_elements;
    op->cases = "{[2,3],[4]}, {[2,3],[4]}, {[2,3],[4]}, weight_decay=0.1, momentum=0.9, lr=[]u, dampening=0.1, "
        "nesterov=False, maximize=False, is_first_step=False; {[2,3]}, {[2,3]}, {}, weight_decay=0.0, momentum=0.0, "
        "lr=[]u, dampening=0.0, nesterov=False, maximize=True, is_first_step=True, grad_scale=[]g";
}
/* opd_amp_unscale_: multiplies the gradients in self by inv_scale; sets found_inf to 1 if one is not finite */
OPDI_OP(_amp_foreach_non_finite_check_and_unscale_) {
    op->schema = "_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, Tensor "
        "inv_scale) -> ()";
    op->cpu = op->fake = opdi_amp_unscale_kernel; op->autograd = opdi_step_autograd;
    op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP; op->flops = opdi_flops_elements;
    op->cases = "{[2,3],[4]}, [], []u; {}, [], []u";
}
/* opd_amp_update_scale_: updates self, the loss scale: smaller after infinities, larger after growth_interval good
   steps */
OPDI_OP(_amp_update_scale_) {
    op->schema = "_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float "
        "scale_growth_factor, float scale_backoff_factor, int growth_interval) -> Tensor(a!)";
    op->cpu = op->fake = opdi_amp_update_kernel; op->autograd = opdi_step_autograd;
    op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "[]+, []i5, []+, 2.0, 0.5, 3; [1]+, [1]i1, [1]+, 2.0, 0.5, 1";
}
OPDI_COLD_END
OPDI_COLD_BEGIN
//== _foreach_ operators: one operator called for each tensor of a list ================================================
//
//  These are composite operators.  Each has an opdi_foreach, which names the operator that is called once for each
//  tensor of self.  If an argument of the composite operator is a list, each call takes the element at the same index;
//  all other arguments are the same for each call.  Arguments are matched by name, the remaining ones by position.

typedef struct opdi_foreach { const char *name; opd_op *op; } opdi_foreach;
/* Checks that all lists of the call have the same length.  Returns this length, or -1 and sets an error. */
static int32_t opdi_foreach_count(const opd_call *call) {
    const opd_value *args = opd_call_args(call);
    int32_t count = -1;
    for (int i = 0; i < call->op->nargs; i++) {
        const opd_value *value = &args[i];
        if (value->tag == OPD_TAG_TENSORS) {
            if (value->n == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "Tensor list must have at least one tensor."); }
            if (count >= 0 && value->n != count) {
                return opd_fail(OPD_ERROR_ARGUMENT, "Tensor lists must have the same number of tensors, got %d and %d",
                                (int)count, (int)value->n);
            }
            count = value->n;
        } else if (value->tag >= OPD_TAG_INTS && value->tag <= OPD_TAG_LIST && value->n != count) {
            return opd_fail(OPD_ERROR_ARGUMENT, "Tensor list must have same number of elements as scalar list.");
        } else if (value->tag == OPD_TAG_TENSOR) {
            const opd_tensor *tensor = value->u.t;
            if (strcmp(call->op->schema->args[i].name, "scalars") != 0) {
                if (tensor->ndim == 0) { continue; }
                return opd_fail(OPD_ERROR_SHAPE, "scalar tensor expected to be 0 dim but it has %d dimensions and %lld "
                                "elements.", tensor->ndim, (long long)tensor->numel);
            }
            if (tensor->ndim != 1) {
                return opd_fail(OPD_ERROR_SHAPE, "Expected packed scalar Tensor to be of dimension 1. Got %d instead.",
                                tensor->ndim);
            }
            if (opdi_sizes(tensor)[0] != count) {
                return opd_fail(OPD_ERROR_SHAPE, "Expected length of scalars to match input of length %d but got %lld "
                                "instead.", (int)count, (long long)opdi_sizes(tensor)[0]);
            }
        }
    }
    return count;
}
/* Checks, before the first tensor is written, that no written tensor would change its sizes.  `count` is the length of
   the lists.  Returns 0, or -1 and sets an error. */
static int opdi_foreach_sizes(const opd_call *call, int32_t count) {
    const opd_value *args = opd_call_args(call);
    for (int32_t k = 0; k < count; k++) {
        const opd_tensor *self = args[0].u.tensors[k];
        int64_t sizes[OPD_MAX_DIMS];
        int ndim = 0;
        for (int i = 0; i < call->op->nargs; i++) {
            const bool listed = args[i].tag == OPD_TAG_TENSORS;
            if (listed && opdi_broadcast_into(sizes, &ndim, args[i].u.tensors[k])) { return -1; }
        }
        if (ndim != self->ndim || memcmp(sizes, opdi_sizes(self), (size_t)ndim * sizeof *sizes) != 0) {
            char first[256], second[256];
            return opd_fail(OPD_ERROR_SHAPE, "output with shape %s doesn't match the broadcast shape %s",
                            opdi_sizes_text(opdi_sizes(self), self->ndim, first, sizeof first),
                            opdi_sizes_text(sizes, ndim, second, sizeof second));
        }
    }
    return 0;
}
/* Returns the value that argument i has in the call for tensor number k. */
static opd_value opdi_foreach_value(const opd_call *call, int i, int32_t k) {
    const opd_value *value = &opd_call_args(call)[i];
    if (value->tag == OPD_TAG_TENSORS) { return opd_value_tensor(value->u.tensors[k]); }
    if (value->tag >= OPD_TAG_INTS && value->tag <= OPD_TAG_LIST) { return opdi_listed_number(*value, k); }
    return *value;
}
/* Checks, before the first tensor is written, that autograd can record the writes to all `count` tensors.  `recorded`:
   the operator has a backward function.  Returns 0, or -1 and sets an error. */
static int opdi_foreach_writes(const opd_call *call, int32_t count, bool recorded) {
    const opdi_state *state = &call->th->state;
    for (int32_t k = state->no_grad || !(state->allow & OPDI_AUTOGRAD_BITS) ? count : 0; k < count; k++) {
        bool wanted = false;
        for (int i = 0; i < call->op->nargs; i++) {
            const opd_value value = opdi_foreach_value(call, i, k);
            wanted = wanted || (value.tag == OPD_TAG_TENSOR && opdi_requires_grad(value.u.t));
        }
        if (wanted && opdi_check_inplace(opd_call_args(call)[0].u.tensors[k])) { return -1; }
        if (wanted && !recorded) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "derivative for %s is not implemented", call->op->name);
        }
    }
    return 0;
}
/* Returns true if the numbers in the tensor `scalars` can be read now: if no batching, recording or differentiation
   needs to see the tensor itself. */
static bool opdi_foreach_readable(const opd_tensor *scalars) {
    return scalars->backend != OPD_META && !(scalars->flags & (OPDI_BATCHED | OPDI_TRACED)) &&
        !opdi_requires_grad(scalars) && !OPDI_ACQUIRE(&scalars->storage->duals);
}
/* Replaces args[i], a number that is a bound, by a tensor for it.  Fails if the dtype of args[0] cannot represent the
   number.  Returns 0, or -1 and sets an error. */
static int opdi_foreach_bound(opd_value *args, int i) {
    const opd_scalar_type dtype = opd_dtype(args[0].u.t);
    if (opd_dtype_is_floating(dtype) && opdi_number_check(args[i], dtype)) { return -1; }
    args[i] = opd_value_tensor(opd_tensor_wrapped_number(args[i]));
    return opd_ok() ? 0 : -1;
}
/* Sets args[] to the arguments of the operator `op` in the call for tensor number k.  If the numbers are in a tensor
   `scalars`, number k becomes a number argument if it can be read; otherwise the second argument is multiplied by it.
   Returns 0, or -1 and sets an error. */
static int opdi_foreach_args(const opd_call *call, const opd_op *op, int32_t k, opd_value *args) {
    opd_tensor *factor = NULL;
    for (int i = 0; i < op->nargs; i++) {
        const opdi_arg *arg = &op->schema->args[i];
        args[i] = arg->has_default ? arg->value : opd_value_none();
    }
    for (int i = 0; i < call->op->nargs; i++) {
        const char *name = call->op->schema->args[i].name;
        const int same = opdi_arg_index(op->schema, name, strlen(name));
        const opd_value value = opdi_foreach_value(call, i, k);
        if (value.tag == OPD_TAG_TENSOR && strcmp(name, "scalars") == 0) { factor = opd_select(value.u.t, 0, k); }
        else { args[same >= 0 ? same : i] = value; }
    }
    for (int i = 1; i < op->nargs; i++) {
        const bool number = args[i].tag != OPD_TAG_TENSOR && args[i].tag != OPD_TAG_NONE;
        if (number && op->schema->args[i].type->kind == OPDI_TYPE_TENSOR && opdi_foreach_bound(args, i)) { return -1; }
    }
    if (factor && opdi_foreach_readable(factor)) { args[3] = opd_item(factor); }
    else if (factor) { args[1] = opd_value_tensor(opd_mul(args[1].u.t, factor)); }
    return opd_ok() ? 0 : -1;
}
/* Returns true if two numbers are of the same kind, so that an operator accepts both of them or neither. */
static bool opdi_foreach_same_number(const opd_value *first, const opd_value *second) {
    if (first->tag != second->tag) { return false; }
    if (first->tag == OPD_TAG_FLOAT) {
        const double x = first->u.d, y = second->u.d;
        return (x < 0) == (y < 0) && fabs(x) < 128 && fabs(y) < 128;
    }
    return first->tag == OPD_TAG_NONE || first->tag == OPD_TAG_BOOL || (first->tag == OPD_TAG_INT &&
        ((uint64_t)first->u.i < 128) == ((uint64_t)second->u.i < 128) && (uint64_t)second->u.i < 128);
}
/* Returns true if the call for tensor number k has the same dtypes and kinds of numbers as the call for tensor 0, so
   that it fails only if the latter fails, too. */
static bool opdi_foreach_alike(const opd_call *call, int32_t k) {
    for (int i = 0; i < call->op->nargs; i++) {
        const opd_value *value = &opd_call_args(call)[i];
        if (value->tag == OPD_TAG_TENSORS) {
            const opd_tensor *first = value->u.tensors[0], *other = value->u.tensors[k];
            if (first->dtype != other->dtype || (first->ndim == 0) != (other->ndim == 0)) { return false; }
        } else if (value->tag >= OPD_TAG_INTS && value->tag <= OPD_TAG_LIST) {
            const opd_value first = opdi_listed_number(*value, 0), other = opdi_listed_number(*value, k);
            if (!opdi_foreach_same_number(&first, &other)) { return false; }
        } else if (value->tag == OPD_TAG_TENSOR && value->u.t->ndim) { return false; }
    }
    return true;
}
/* Calls the operator on fake tensors, as a trial, for each tensor from number 1 on whose dtypes or kinds of numbers
   differ from those of tensor 0.  So an invalid call fails before anything is written.  Returns 0, or -1 and sets an
   error. */
static int opdi_foreach_rehearse(const opd_call *call, opd_op *op, int32_t count) {
    for (int32_t k = 1; k < count; k++) {
        opd_value args[OPD_MAX_ARGS], got;
        if (opdi_foreach_alike(call, k)) { continue; }
        if (opdi_foreach_args(call, op, k, args)) { return -1; }
        for (int i = 0; i < op->nargs; i++) {
            const opd_tensor *tensor = args[i].tag == OPD_TAG_TENSOR ? args[i].u.t : NULL;
            if (!tensor || tensor->flags & OPDI_WRAPPED) { continue; }
            args[i].u.t = opdi_own(opdi_tensor_make(opdi_sizes(tensor), NULL, tensor->ndim,
                                                    (opd_scalar_type)tensor->dtype, OPD_META));
            if (!args[i].u.t) { return -1; }
        }
        if (opd_call_all(op, &got, args, op->nargs)) { return -1; }
    }
    return 0;
}
static int opdi_foreach_run(opd_call *call, bool recorded) {
    opdi_foreach *row = (opdi_foreach *)call->user;
    opd_op *op = OPD_OP(&row->op, row->name);
    const bool written = call->op->written_args != 0;
    const int32_t count = op ? opdi_foreach_count(call) : -1;
    if (count < 0) { return -1; }
    if (written && (opdi_foreach_sizes(call, count) || opdi_foreach_writes(call, count, recorded) ||
                    opdi_foreach_rehearse(call, op, count))) {
        return -1;
    }
    int listed = 0;
    while (opd_call_args(call)[listed].tag != OPD_TAG_TENSORS) { listed++; }
    opd_tensor **list = opdi_list_alloc(count + 1), *const first = opd_call_args(call)[listed].u.tensors[0];
    if (!list || opdi_gather_device(first, true)) { return -1; }
    int rc = 0;
    for (int32_t k = 0; rc == 0 && k < count; k++) {
        opd_value args[OPD_MAX_ARGS], got;
        rc = opdi_foreach_args(call, op, k, args) || opd_call_all(op, &got, args, op->nargs) ? -1 : 0;
        if (rc == 0) { list[k] = got.u.t; }
    }
    if (opdi_gather_device(first, false) || rc) { return -1; }
    return written ? 0 : opd_return_tensors(call, list, count);
}
static int opdi_foreach_kernel(opd_call *call) { return opdi_foreach_run(call, true); }
static int opdi_foreach_unrecorded_kernel(opd_call *call) { return opdi_foreach_run(call, false); }
static int opdi_foreach_norm_kernel(opd_call *call) {
    const opd_tensors self = opd_arg_tensors(call, 0);
    const opd_value order = opd_arg_value(call, 1);
    const int64_t one = 1;
    opd_tensor *const norms = opd_arg_is_none(call, 2)
        ? opdi_list_norms(self.data, self.n, order.tag == OPD_TAG_FLOAT ? order.u.d : (double)order.u.i) : NULL;
    if (!norms) { return opd_ok() ? opdi_foreach_kernel(call) : -1; }
    opd_tensor **list = opdi_list_alloc((int32_t)self.n);
    for (int64_t k = 0; list && k < self.n; k++) {
        if (!(list[k] = opd_tensor_view(norms, &one, &one, 0, k))) { return -1; }
        opdi_view_untie(list[k]);                 /* a write to one does not change the others */
    }
    return list ? opd_return_tensors(call, list, (int32_t)self.n) : -1;
}
static int opdi_foreach_max_kernel(opd_call *call) {
    const opd_tensors self = opd_arg_tensors(call, 0);
    for (int64_t k = 0; k < self.n; k++) {
        if (self.data[k]->numel == 0) {
            return opd_fail(OPD_ERROR_SHAPE, "_foreach_max cannot compute the maximum of an empty tensor; max over "
                            "zero elements is undefined.");
        }
    }
    return opdi_foreach_kernel(call);
}
static void opdi_foreach_card(opd_op_desc *op, opdi_foreach *row) {
    op->composite = opdi_foreach_kernel; op->user = row;
}
/* The arguments after self in the schema of a _foreach_ operator, and for each a test case. */
#define OPDI_EACH_ALONE ""
#define OPDI_EACH_NUMBER ", Scalar scalar"
#define OPDI_EACH_NUMBERS ", Scalar[] scalars"
#define OPDI_EACH_LIST ", Tensor[] other"
#define OPDI_EACH_LIST_ALPHA ", Tensor[] other, *, Scalar alpha=1"
#define OPDI_EACH_ONE ", Tensor other"
#define OPDI_EACH_ONE_ALPHA ", Tensor other, *, Scalar alpha=1"
#define OPDI_EACH_THREE ", Tensor[] tensor1, Tensor[] tensor2, Scalar value=1"
#define OPDI_EACH_THREE_NUMBERS ", Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars"
#define OPDI_EACH_THREE_PACKED ", Tensor[] tensor1, Tensor[] tensor2, Tensor scalars"
#define OPDI_CASE_ALONE "{[2,3]u,[4]u}"
#define OPDI_CASE_NUMBER "{[2,3]u,[4]u}, 1.5"
#define OPDI_CASE_NUMBERS "{[2,3]u,[4]u}, (2.5, 0.5)"
#define OPDI_CASE_LIST "{[2,3]u,[4]u}, {[2,3]u,[4]u}"
#define OPDI_CASE_LIST_ALPHA "{[2,3]u,[4]u}, {[2,3]u,[1]u}; {[2]u}, {[2]u}, alpha=2"
#define OPDI_CASE_ONE "{[2,3]u,[4]u}, []u"
#define OPDI_CASE_ONE_ALPHA "{[2,3]u,[4]u}, []u; {[2]u}, []u, alpha=2"
#define OPDI_CASE_THREE "{[2,3]u,[4]u}, {[2,3]u,[4]u}, {[2,3]u,[4]u}, 2"
#define OPDI_CASE_THREE_NUMBERS "{[2,3]u,[4]u}, {[2,3]u,[4]u}, {[2,3]u,[4]u}, (2.5, 0.5)"
#define OPDI_CASE_THREE_PACKED "{[2,3]u,[4]u}, {[2,3]u,[4]u}, {[2,3]u,[4]u}, [2]u"
/* Define the descriptor of a _foreach_ operator: `card` is its name, `text` the part of the name after _foreach_,
   `arguments` one of OPDI_EACH_.., `single` the operator that is called for each tensor, `needed` its descriptor.
   OPDI_FOREACH_IN defines an operator that writes self. */
#define OPDI_FOREACH(card, text, arguments, single, needed)                                     \
    OPDI_OP(card) {                                                                     \
        static opdi_foreach row = {"aten::" single, NULL};                              \
        OPDI_NEEDS(needed);                                                             \
        op->schema = "_foreach_" text "(Tensor[] self" OPDI_EACH_##arguments ") -> Tensor[]"; \
        op->cases = OPDI_CASE_##arguments;                                              \
        opdi_foreach_card(op, &row);                                                    \
    }
#define OPDI_FOREACH_IN(card, text, arguments, single, needed)                                  \
    OPDI_OP(card) {                                                                     \
        static opdi_foreach row = {"aten::" single, NULL};                              \
        OPDI_NEEDS(needed);                                                             \
        op->schema = "_foreach_" text "(Tensor(a!)[] self" OPDI_EACH_##arguments ") -> ()"; \
        op->cases = "";                                                                 \
        opdi_foreach_card(op, &row);                                                    \
    }
/* Defines a _foreach_ operator that writes self and has no backward function. */
#define OPDI_FOREACH_UNRECORDED(card, text, arguments, single, needed)                          \
    OPDI_OP(card) {                                                                     \
        static opdi_foreach row = {"aten::" single, NULL};                              \
        OPDI_NEEDS(needed);                                                             \
        op->schema = "_foreach_" text "(Tensor(a!)[] self" OPDI_EACH_##arguments ") -> ()"; \
        op->cases = "";                                                                 \
        opdi_foreach_card(op, &row);                                                    \
        op->composite = opdi_foreach_unrecorded_kernel;                                 \
    }
/* opd_foreach_abs: abs for each tensor of a list */
OPDI_FOREACH(_foreach_abs, "abs", ALONE, "abs", abs)
/* opd_foreach_abs_: abs for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_abs_, "abs_", ALONE, "abs_", abs)
/* opd_foreach_acos: acos for each tensor of a list */
OPDI_FOREACH(_foreach_acos, "acos", ALONE, "acos", acos)
/* opd_foreach_acos_: acos for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_acos_, "acos_", ALONE, "acos_", acos)
/* opd_foreach_add_List: add for each pair of tensors of two lists */
OPDI_FOREACH(_foreach_add_List, "add.List", LIST_ALPHA, "add.Tensor", add_Tensor)
/* opd_foreach_add_Scalar: add for each tensor of a list and one number */
OPDI_FOREACH(_foreach_add_Scalar, "add.Scalar", NUMBER, "add.Scalar", add_Scalar)
/* opd_foreach_add_ScalarList: add for each tensor of a list and its own number */
OPDI_FOREACH(_foreach_add_ScalarList, "add.ScalarList", NUMBERS, "add.Scalar", add_Scalar)
/* opd_foreach_add_Tensor: add for each tensor of a list and one tensor */
OPDI_FOREACH(_foreach_add_Tensor, "add.Tensor", ONE_ALPHA, "add.Tensor", add_Tensor)
/* opd_foreach_add_List_: add for each pair of tensors of two lists, in place */
OPDI_FOREACH_IN(_foreach_add__List, "add_.List", LIST_ALPHA, "add_.Tensor", add_Tensor)
/* opd_foreach_add_Scalar_: add for each tensor of a list and one number, in place */
OPDI_FOREACH_IN(_foreach_add__Scalar, "add_.Scalar", NUMBER, "add_.Scalar", add_Scalar)
/* opd_foreach_add_ScalarList_: add for each tensor of a list and its own number, in place */
OPDI_FOREACH_IN(_foreach_add__ScalarList, "add_.ScalarList", NUMBERS, "add_.Scalar", add_Scalar)
/* opd_foreach_add_Tensor_: add for each tensor of a list and one tensor, in place */
OPDI_FOREACH_IN(_foreach_add__Tensor, "add_.Tensor", ONE_ALPHA, "add_.Tensor", add_Tensor)
/* opd_foreach_addcdiv_Scalar: addcdiv for the tensors of three lists, with one value */
OPDI_FOREACH(_foreach_addcdiv_Scalar, "addcdiv.Scalar", THREE, "addcdiv", addcdiv)
/* opd_foreach_addcdiv_ScalarList: addcdiv for the tensors of three lists, with a value for each */
OPDI_FOREACH(_foreach_addcdiv_ScalarList, "addcdiv.ScalarList", THREE_NUMBERS, "addcdiv", addcdiv)
/* opd_foreach_addcdiv_Tensor: addcdiv for the tensors of three lists, with the values in a tensor */
OPDI_FOREACH(_foreach_addcdiv_Tensor, "addcdiv.Tensor", THREE_PACKED, "addcdiv", addcdiv)
/* opd_foreach_addcdiv_Scalar_: addcdiv for the tensors of three lists, with one value, in place */
OPDI_FOREACH_IN(_foreach_addcdiv__Scalar, "addcdiv_.Scalar", THREE, "addcdiv_", addcdiv)
/* opd_foreach_addcdiv_ScalarList_: addcdiv for the tensors of three lists, with a value for each, in place */
OPDI_FOREACH_IN(_foreach_addcdiv__ScalarList, "addcdiv_.ScalarList", THREE_NUMBERS, "addcdiv_", addcdiv)
/* opd_foreach_addcdiv_Tensor_: addcdiv for the tensors of three lists, with the values in a tensor, in place */
OPDI_FOREACH_IN(_foreach_addcdiv__Tensor, "addcdiv_.Tensor", THREE_PACKED, "addcdiv_", addcdiv)
/* opd_foreach_addcmul_Scalar: addcmul for the tensors of three lists, with one value */
OPDI_FOREACH(_foreach_addcmul_Scalar, "addcmul.Scalar", THREE, "addcmul", addcmul)
/* opd_foreach_addcmul_ScalarList: addcmul for the tensors of three lists, with a value for each */
OPDI_FOREACH(_foreach_addcmul_ScalarList, "addcmul.ScalarList", THREE_NUMBERS, "addcmul", addcmul)
/* opd_foreach_addcmul_Tensor: addcmul for the tensors of three lists, with the values in a tensor */
OPDI_FOREACH(_foreach_addcmul_Tensor, "addcmul.Tensor", THREE_PACKED, "addcmul", addcmul)
/* opd_foreach_addcmul_Scalar_: addcmul for the tensors of three lists, with one value, in place */
OPDI_FOREACH_IN(_foreach_addcmul__Scalar, "addcmul_.Scalar", THREE, "addcmul_", addcmul)
/* opd_foreach_addcmul_ScalarList_: addcmul for the tensors of three lists, with a value for each, in place */
OPDI_FOREACH_IN(_foreach_addcmul__ScalarList, "addcmul_.ScalarList", THREE_NUMBERS, "addcmul_", addcmul)
/* opd_foreach_addcmul_Tensor_: addcmul for the tensors of three lists, with the values in a tensor, in place */
OPDI_FOREACH_IN(_foreach_addcmul__Tensor, "addcmul_.Tensor", THREE_PACKED, "addcmul_", addcmul)
/* opd_foreach_asin: asin for each tensor of a list */
OPDI_FOREACH(_foreach_asin, "asin", ALONE, "asin", asin)
/* opd_foreach_asin_: asin for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_asin_, "asin_", ALONE, "asin_", asin)
/* opd_foreach_atan: atan for each tensor of a list */
OPDI_FOREACH(_foreach_atan, "atan", ALONE, "atan", atan)
/* opd_foreach_atan_: atan for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_atan_, "atan_", ALONE, "atan_", atan)
/* opd_foreach_ceil: ceil for each tensor of a list */
OPDI_FOREACH(_foreach_ceil, "ceil", ALONE, "ceil", ceil)
/* opd_foreach_ceil_: ceil for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_ceil_, "ceil_", ALONE, "ceil_", ceil)
/* opd_foreach_clamp_max_List: clamp_max for each pair of tensors of two lists */
OPDI_FOREACH(_foreach_clamp_max_List, "clamp_max.List", LIST, "clamp_max.Tensor", clamp_max_Tensor)
/* opd_foreach_clamp_max_Scalar: clamp_max for each tensor of a list and one number */
OPDI_FOREACH(_foreach_clamp_max_Scalar, "clamp_max.Scalar", NUMBER, "clamp_max", clamp_max)
/* opd_foreach_clamp_max_ScalarList: clamp_max for each tensor of a list and its own number */
OPDI_FOREACH(_foreach_clamp_max_ScalarList, "clamp_max.ScalarList", NUMBERS, "clamp_max", clamp_max)
/* opd_foreach_clamp_max_List_: clamp_max for each pair of tensors of two lists, in place */
OPDI_FOREACH_IN(_foreach_clamp_max__List, "clamp_max_.List", LIST, "clamp_max_.Tensor", clamp_max_Tensor)
/* opd_foreach_clamp_max_Scalar_: clamp_max for each tensor of a list and one number, in place */
OPDI_FOREACH_IN(_foreach_clamp_max__Scalar, "clamp_max_.Scalar", NUMBER, "clamp_max_", clamp_max)
/* opd_foreach_clamp_max_ScalarList_: clamp_max for each tensor of a list and its own number, in place */
OPDI_FOREACH_IN(_foreach_clamp_max__ScalarList, "clamp_max_.ScalarList", NUMBERS, "clamp_max_", clamp_max)
/* opd_foreach_clamp_min_List: clamp_min for each pair of tensors of two lists */
OPDI_FOREACH(_foreach_clamp_min_List, "clamp_min.List", LIST, "clamp_min.Tensor", clamp_min_Tensor)
/* opd_foreach_clamp_min_Scalar: clamp_min for each tensor of a list and one number */
OPDI_FOREACH(_foreach_clamp_min_Scalar, "clamp_min.Scalar", NUMBER, "clamp_min", clamp_min)
/* opd_foreach_clamp_min_ScalarList: clamp_min for each tensor of a list and its own number */
OPDI_FOREACH(_foreach_clamp_min_ScalarList, "clamp_min.ScalarList", NUMBERS, "clamp_min", clamp_min)
/* opd_foreach_clamp_min_List_: clamp_min for each pair of tensors of two lists, in place */
OPDI_FOREACH_IN(_foreach_clamp_min__List, "clamp_min_.List", LIST, "clamp_min_.Tensor", clamp_min_Tensor)
/* opd_foreach_clamp_min_Scalar_: clamp_min for each tensor of a list and one number, in place */
OPDI_FOREACH_IN(_foreach_clamp_min__Scalar, "clamp_min_.Scalar", NUMBER, "clamp_min_", clamp_min)
/* opd_foreach_clamp_min_ScalarList_: clamp_min for each tensor of a list and its own number, in place */
OPDI_FOREACH_IN(_foreach_clamp_min__ScalarList, "clamp_min_.ScalarList", NUMBERS, "clamp_min_", clamp_min)
/* opd_foreach_cos: cos for each tensor of a list */
OPDI_FOREACH(_foreach_cos, "cos", ALONE, "cos", cos)
/* opd_foreach_cos_: cos for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_cos_, "cos_", ALONE, "cos_", cos)
/* opd_foreach_cosh: cosh for each tensor of a list */
OPDI_FOREACH(_foreach_cosh, "cosh", ALONE, "cosh", cosh)
/* opd_foreach_cosh_: cosh for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_cosh_, "cosh_", ALONE, "cosh_", cosh)
/* opd_foreach_div_List: div for each pair of tensors of two lists */
OPDI_FOREACH(_foreach_div_List, "div.List", LIST, "div.Tensor", div_Tensor)
/* opd_foreach_div_Scalar: div for each tensor of a list and one number */
OPDI_FOREACH(_foreach_div_Scalar, "div.Scalar", NUMBER, "div.Scalar", div_Scalar)
/* opd_foreach_div_ScalarList: div for each tensor of a list and its own number */
OPDI_FOREACH(_foreach_div_ScalarList, "div.ScalarList", NUMBERS, "div.Scalar", div_Scalar)
/* opd_foreach_div_Tensor: div for each tensor of a list and one tensor */
OPDI_FOREACH(_foreach_div_Tensor, "div.Tensor", ONE, "div.Tensor", div_Tensor)
/* opd_foreach_div_List_: div for each pair of tensors of two lists, in place */
OPDI_FOREACH_IN(_foreach_div__List, "div_.List", LIST, "div_.Tensor", div_Tensor)
/* opd_foreach_div_Scalar_: div for each tensor of a list and one number, in place */
OPDI_FOREACH_IN(_foreach_div__Scalar, "div_.Scalar", NUMBER, "div_.Scalar", div_Scalar)
/* opd_foreach_div_ScalarList_: div for each tensor of a list and its own number, in place */
OPDI_FOREACH_IN(_foreach_div__ScalarList, "div_.ScalarList", NUMBERS, "div_.Scalar", div_Scalar)
/* opd_foreach_div_Tensor_: div for each tensor of a list and one tensor, in place */
OPDI_FOREACH_IN(_foreach_div__Tensor, "div_.Tensor", ONE, "div_.Tensor", div_Tensor)
/* opd_foreach_erf: erf for each tensor of a list */
OPDI_FOREACH(_foreach_erf, "erf", ALONE, "erf", erf)
/* opd_foreach_erf_: erf for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_erf_, "erf_", ALONE, "erf_", erf)
/* opd_foreach_erfc: erfc for each tensor of a list */
OPDI_FOREACH(_foreach_erfc, "erfc", ALONE, "erfc", erfc)
/* opd_foreach_erfc_: erfc for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_erfc_, "erfc_", ALONE, "erfc_", erfc)
/* opd_foreach_exp: exp for each tensor of a list */
OPDI_FOREACH(_foreach_exp, "exp", ALONE, "exp", exp)
/* opd_foreach_exp_: exp for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_exp_, "exp_", ALONE, "exp_", exp)
/* opd_foreach_expm1: expm1 for each tensor of a list */
OPDI_FOREACH(_foreach_expm1, "expm1", ALONE, "expm1", expm1)
/* opd_foreach_expm1_: expm1 for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_expm1_, "expm1_", ALONE, "expm1_", expm1)
/* opd_foreach_floor: floor for each tensor of a list */
OPDI_FOREACH(_foreach_floor, "floor", ALONE, "floor", floor)
/* opd_foreach_floor_: floor for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_floor_, "floor_", ALONE, "floor_", floor)
/* opd_foreach_frac: frac for each tensor of a list */
OPDI_FOREACH(_foreach_frac, "frac", ALONE, "frac", frac)
/* opd_foreach_frac_: frac for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_frac_, "frac_", ALONE, "frac_", frac)
/* opd_foreach_lgamma: lgamma for each tensor of a list */
OPDI_FOREACH(_foreach_lgamma, "lgamma", ALONE, "lgamma", lgamma)
/* opd_foreach_lgamma_: lgamma for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_lgamma_, "lgamma_", ALONE, "lgamma_", lgamma)
/* opd_foreach_log: log for each tensor of a list */
OPDI_FOREACH(_foreach_log, "log", ALONE, "log", log)
/* opd_foreach_log10: log10 for each tensor of a list */
OPDI_FOREACH(_foreach_log10, "log10", ALONE, "log10", log10)
/* opd_foreach_log10_: log10 for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_log10_, "log10_", ALONE, "log10_", log10)
/* opd_foreach_log1p: log1p for each tensor of a list */
OPDI_FOREACH(_foreach_log1p, "log1p", ALONE, "log1p", log1p)
/* opd_foreach_log1p_: log1p for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_log1p_, "log1p_", ALONE, "log1p_", log1p)
/* opd_foreach_log2: log2 for each tensor of a list */
OPDI_FOREACH(_foreach_log2, "log2", ALONE, "log2", log2)
/* opd_foreach_log2_: log2 for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_log2_, "log2_", ALONE, "log2_", log2)
/* opd_foreach_log_: log for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_log_, "log_", ALONE, "log_", log)
/* opd_foreach_maximum_List: maximum for each pair of tensors of two lists */
OPDI_FOREACH(_foreach_maximum_List, "maximum.List", LIST, "clamp_min.Tensor", clamp_min_Tensor)
/* opd_foreach_maximum_Scalar: maximum for each tensor of a list and one number */
OPDI_FOREACH(_foreach_maximum_Scalar, "maximum.Scalar", NUMBER, "maximum", maximum)
/* opd_foreach_maximum_ScalarList: maximum for each tensor of a list and its own number */
OPDI_FOREACH(_foreach_maximum_ScalarList, "maximum.ScalarList", NUMBERS, "maximum", maximum)
/* opd_foreach_maximum_List_: maximum for each pair of tensors of two lists, in place */
OPDI_FOREACH_IN(_foreach_maximum__List, "maximum_.List", LIST, "clamp_min_.Tensor", clamp_min_Tensor)
/* opd_foreach_maximum_Scalar_: maximum for each tensor of a list and one number, in place */
OPDI_FOREACH_UNRECORDED(_foreach_maximum__Scalar, "maximum_.Scalar", NUMBER, "clamp_min_", clamp_min)
/* opd_foreach_maximum_ScalarList_: maximum for each tensor of a list and its own number, in place */
OPDI_FOREACH_UNRECORDED(_foreach_maximum__ScalarList, "maximum_.ScalarList", NUMBERS, "clamp_min_", clamp_min)
/* opd_foreach_minimum_List: minimum for each pair of tensors of two lists */
OPDI_FOREACH(_foreach_minimum_List, "minimum.List", LIST, "clamp_max.Tensor", clamp_max_Tensor)
/* opd_foreach_minimum_Scalar: minimum for each tensor of a list and one number */
OPDI_FOREACH(_foreach_minimum_Scalar, "minimum.Scalar", NUMBER, "minimum", minimum)
/* opd_foreach_minimum_ScalarList: minimum for each tensor of a list and its own number */
OPDI_FOREACH(_foreach_minimum_ScalarList, "minimum.ScalarList", NUMBERS, "minimum", minimum)
/* opd_foreach_minimum_List_: minimum for each pair of tensors of two lists, in place */
OPDI_FOREACH_IN(_foreach_minimum__List, "minimum_.List", LIST, "clamp_max_.Tensor", clamp_max_Tensor)
/* opd_foreach_minimum_Scalar_: minimum for each tensor of a list and one number, in place */
OPDI_FOREACH_UNRECORDED(_foreach_minimum__Scalar, "minimum_.Scalar", NUMBER, "clamp_max_", clamp_max)
/* opd_foreach_minimum_ScalarList_: minimum for each tensor of a list and its own number, in place */
OPDI_FOREACH_UNRECORDED(_foreach_minimum__ScalarList, "minimum_.ScalarList", NUMBERS, "clamp_max_", clamp_max)
/* opd_foreach_mul_List: mul for each pair of tensors of two lists */
OPDI_FOREACH(_foreach_mul_List, "mul.List", LIST, "mul.Tensor", mul_Tensor)
/* opd_foreach_mul_Scalar: mul for each tensor of a list and one number */
OPDI_FOREACH(_foreach_mul_Scalar, "mul.Scalar", NUMBER, "mul.Scalar", mul_Scalar)
/* opd_foreach_mul_ScalarList: mul for each tensor of a list and its own number */
OPDI_FOREACH(_foreach_mul_ScalarList, "mul.ScalarList", NUMBERS, "mul.Scalar", mul_Scalar)
/* opd_foreach_mul_Tensor: mul for each tensor of a list and one tensor */
OPDI_FOREACH(_foreach_mul_Tensor, "mul.Tensor", ONE, "mul.Tensor", mul_Tensor)
/* opd_foreach_mul_List_: mul for each pair of tensors of two lists, in place */
OPDI_FOREACH_IN(_foreach_mul__List, "mul_.List", LIST, "mul_.Tensor", mul_Tensor)
/* opd_foreach_mul_Scalar_: mul for each tensor of a list and one number, in place */
OPDI_FOREACH_IN(_foreach_mul__Scalar, "mul_.Scalar", NUMBER, "mul_.Scalar", mul_Scalar)
/* opd_foreach_mul_ScalarList_: mul for each tensor of a list and its own number, in place */
OPDI_FOREACH_IN(_foreach_mul__ScalarList, "mul_.ScalarList", NUMBERS, "mul_.Scalar", mul_Scalar)
/* opd_foreach_mul_Tensor_: mul for each tensor of a list and one tensor, in place */
OPDI_FOREACH_IN(_foreach_mul__Tensor, "mul_.Tensor", ONE, "mul_.Tensor", mul_Tensor)
/* opd_foreach_neg: neg for each tensor of a list */
OPDI_FOREACH(_foreach_neg, "neg", ALONE, "neg", neg)
/* opd_foreach_neg_: neg for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_neg_, "neg_", ALONE, "neg_", neg)
/* opd_foreach_reciprocal: reciprocal for each tensor of a list */
OPDI_FOREACH(_foreach_reciprocal, "reciprocal", ALONE, "reciprocal", reciprocal)
/* opd_foreach_reciprocal_: reciprocal for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_reciprocal_, "reciprocal_", ALONE, "reciprocal_", reciprocal)
/* opd_foreach_round: round for each tensor of a list */
OPDI_FOREACH(_foreach_round, "round", ALONE, "round", round)
/* opd_foreach_round_: round for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_round_, "round_", ALONE, "round_", round)
/* opd_foreach_rsqrt: rsqrt for each tensor of a list */
OPDI_FOREACH(_foreach_rsqrt, "rsqrt", ALONE, "rsqrt", rsqrt)
/* opd_foreach_rsqrt_: rsqrt for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_rsqrt_, "rsqrt_", ALONE, "rsqrt_", rsqrt)
/* opd_foreach_sigmoid: sigmoid for each tensor of a list */
OPDI_FOREACH(_foreach_sigmoid, "sigmoid", ALONE, "sigmoid", sigmoid)
/* opd_foreach_sigmoid_: sigmoid for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_sigmoid_, "sigmoid_", ALONE, "sigmoid_", sigmoid)
/* opd_foreach_sign: sign for each tensor of a list */
OPDI_FOREACH(_foreach_sign, "sign", ALONE, "sign", sign)
/* opd_foreach_sign_: sign for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_sign_, "sign_", ALONE, "sign_", sign)
/* opd_foreach_sin: sin for each tensor of a list */
OPDI_FOREACH(_foreach_sin, "sin", ALONE, "sin", sin)
/* opd_foreach_sin_: sin for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_sin_, "sin_", ALONE, "sin_", sin)
/* opd_foreach_sinh: sinh for each tensor of a list */
OPDI_FOREACH(_foreach_sinh, "sinh", ALONE, "sinh", sinh)
/* opd_foreach_sinh_: sinh for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_sinh_, "sinh_", ALONE, "sinh_", sinh)
/* opd_foreach_sqrt: sqrt for each tensor of a list */
OPDI_FOREACH(_foreach_sqrt, "sqrt", ALONE, "sqrt", sqrt)
/* opd_foreach_sqrt_: sqrt for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_sqrt_, "sqrt_", ALONE, "sqrt_", sqrt)
/* opd_foreach_sub_List: sub for each pair of tensors of two lists */
OPDI_FOREACH(_foreach_sub_List, "sub.List", LIST_ALPHA, "sub.Tensor", sub_Tensor)
/* opd_foreach_sub_Scalar: sub for each tensor of a list and one number */
OPDI_FOREACH(_foreach_sub_Scalar, "sub.Scalar", NUMBER, "sub.Scalar", sub_Scalar)
/* opd_foreach_sub_ScalarList: sub for each tensor of a list and its own number */
OPDI_FOREACH(_foreach_sub_ScalarList, "sub.ScalarList", NUMBERS, "sub.Scalar", sub_Scalar)
/* opd_foreach_sub_List_: sub for each pair of tensors of two lists, in place */
OPDI_FOREACH_IN(_foreach_sub__List, "sub_.List", LIST_ALPHA, "sub_.Tensor", sub_Tensor)
/* opd_foreach_sub_Scalar_: sub for each tensor of a list and one number, in place */
OPDI_FOREACH_IN(_foreach_sub__Scalar, "sub_.Scalar", NUMBER, "sub_.Scalar", sub_Scalar)
/* opd_foreach_sub_ScalarList_: sub for each tensor of a list and its own number, in place */
OPDI_FOREACH_IN(_foreach_sub__ScalarList, "sub_.ScalarList", NUMBERS, "sub_.Scalar", sub_Scalar)
/* opd_foreach_tan: tan for each tensor of a list */
OPDI_FOREACH(_foreach_tan, "tan", ALONE, "tan", tan)
/* opd_foreach_tan_: tan for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_tan_, "tan_", ALONE, "tan_", tan)
/* opd_foreach_tanh: tanh for each tensor of a list */
OPDI_FOREACH(_foreach_tanh, "tanh", ALONE, "tanh", tanh)
/* opd_foreach_tanh_: tanh for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_tanh_, "tanh_", ALONE, "tanh_", tanh)
/* opd_foreach_trunc: trunc for each tensor of a list */
OPDI_FOREACH(_foreach_trunc, "trunc", ALONE, "trunc", trunc)
/* opd_foreach_trunc_: trunc for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_trunc_, "trunc_", ALONE, "trunc_", trunc)
/* opd_foreach_zero: zero for each tensor of a list */
OPDI_FOREACH(_foreach_zero, "zero", ALONE, "zero", zero)
/* opd_foreach_zero_: zero for each tensor of a list, in place */
OPDI_FOREACH_IN(_foreach_zero_, "zero_", ALONE, "zero_", zero_)
/* opd_foreach_clone: clone for each tensor of a list */
OPDI_OP(_foreach_clone) {
    static opdi_foreach row = {"aten::clone", NULL};
    OPDI_NEEDS(clone);
    op->schema = "_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]";
    opdi_foreach_card(op, &row);
    op->cases = "{[2,3]u,[4]u}";
}
/* opd_foreach_copy: copy for each tensor of a list */
OPDI_OP(_foreach_copy) {
    static opdi_foreach row = {"aten::copy", NULL};
    OPDI_NEEDS(copy);
    op->schema = "_foreach_copy(Tensor[] self, Tensor[] src, bool non_blocking=False) -> Tensor[] self_out";
    opdi_foreach_card(op, &row);
    op->cases = "{[2,3]u,[4]u}, {[2,3]u,[4]u}";
}
/* opd_foreach_copy_: copy for each tensor of a list, in place */
OPDI_OP(_foreach_copy_) {
    static opdi_foreach row = {"aten::copy_", NULL};
    OPDI_NEEDS(copy_);
    op->schema = "_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()";
    opdi_foreach_card(op, &row);
    op->cases = "";
}
/* opd_foreach_lerp_List: lerp for each pair of tensors of two lists, with weights in a list of tensors */
OPDI_OP(_foreach_lerp_List) {
    static opdi_foreach row = {"aten::lerp.Tensor", NULL};
    OPDI_NEEDS(lerp_Tensor);
    op->schema = "_foreach_lerp.List(Tensor[] self, Tensor[] tensors1, Tensor[] weights) -> Tensor[]";
    opdi_foreach_card(op, &row);
    op->cases = "{[2,3]u,[4]u}, {[2,3]u,[4]u}, {[2,3]u,[4]u}";
}
/* opd_foreach_lerp_Scalar: lerp for each pair of tensors of two lists, with one weight */
OPDI_OP(_foreach_lerp_Scalar) {
    static opdi_foreach row = {"aten::lerp.Scalar", NULL};
    OPDI_NEEDS(lerp_Scalar);
    op->schema = "_foreach_lerp.Scalar(Tensor[] self, Tensor[] tensors1, Scalar weight) -> Tensor[]";
    opdi_foreach_card(op, &row);
    op->cases = "{[2,3]u,[4]u}, {[2,3]u,[4]u}, 1.5";
}
/* opd_foreach_lerp_ScalarList: lerp for each pair of tensors of two lists, with a weight for each */
OPDI_OP(_foreach_lerp_ScalarList) {
    static opdi_foreach row = {"aten::lerp.Scalar", NULL};
    OPDI_NEEDS(lerp_Scalar);
    op->schema = "_foreach_lerp.ScalarList(Tensor[] self, Tensor[] tensors1, Scalar[] weight) -> Tensor[]";
    opdi_foreach_card(op, &row);
    op->cases = "{[2,3]u,[4]u}, {[2,3]u,[4]u}, (2.5, 0.5)";
}
/* opd_foreach_lerp_List_: lerp for each pair of tensors of two lists, with weights in a list of tensors, in place */
OPDI_OP(_foreach_lerp__List) {
    static opdi_foreach row = {"aten::lerp_.Tensor", NULL};
    OPDI_NEEDS(lerp_Tensor);
    op->schema = "_foreach_lerp_.List(Tensor(a!)[] self, Tensor[] tensors1, Tensor[] weights) -> ()";
    opdi_foreach_card(op, &row);
    op->cases = "";
}
/* opd_foreach_lerp_Scalar_: lerp for each pair of tensors of two lists, with one weight, in place */
OPDI_OP(_foreach_lerp__Scalar) {
    static opdi_foreach row = {"aten::lerp_.Scalar", NULL};
    OPDI_NEEDS(lerp_Scalar);
    op->schema = "_foreach_lerp_.Scalar(Tensor(a!)[] self, Tensor[] tensors1, Scalar weight) -> ()";
    opdi_foreach_card(op, &row);
    op->cases = "";
}
/* opd_foreach_lerp_ScalarList_: lerp for each pair of tensors of two lists, with a weight for each, in place */
OPDI_OP(_foreach_lerp__ScalarList) {
    static opdi_foreach row = {"aten::lerp_.Scalar", NULL};
    OPDI_NEEDS(lerp_Scalar);
    op->schema = "_foreach_lerp_.ScalarList(Tensor(a!)[] self, Tensor[] tensors1, Scalar[] weight) -> ()";
    opdi_foreach_card(op, &row);
    op->cases = "";
}
/* opd_foreach_max: max for each tensor of a list */
OPDI_OP(_foreach_max) {
    static opdi_foreach row = {"aten::max", NULL};
    OPDI_NEEDS(max);
    op->schema = "_foreach_max(Tensor[] self) -> Tensor[]";
    opdi_foreach_card(op, &row);
    op->composite = opdi_foreach_max_kernel;
    op->cases = "{[2,3]u,[4]u}";
}
/* opd_foreach_mm: mm for each tensor of a list */
OPDI_OP(_foreach_mm) {
    static opdi_foreach row = {"aten::mm", NULL};
    OPDI_NEEDS(mm);
    op->schema = "_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]";
    opdi_foreach_card(op, &row);
    op->cases = "{[2,3],[1,4]}, {[3,2],[4,2]}";
}
/* opd_foreach_norm_Scalar: norm for each tensor of a list */
OPDI_OP(_foreach_norm_Scalar) {
    static opdi_foreach row = {"aten::linalg_vector_norm", NULL};
    OPDI_NEEDS(linalg_vector_norm);
    op->schema = "_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]";
    opdi_foreach_card(op, &row);
    op->composite = opdi_foreach_norm_kernel;
    op->out = "_foreach_norm.Scalar_out";
    op->cases = "{[2,3]u,[4]u}";
}
/* opd_foreach_powsum_Scalar: linalg__powsum for each tensor of a list */
OPDI_OP(_foreach_powsum_Scalar) {
    static opdi_foreach row = {"aten::linalg__powsum", NULL};
    OPDI_NEEDS(linalg__powsum);
    op->schema = "_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]";
    opdi_foreach_card(op, &row);
    op->out = "_foreach_powsum.Scalar_out";
    op->cases = "{[2,3]u,[4]u}";
}
/* opd_foreach_pow_List: pow for each pair of tensors of two lists */
OPDI_OP(_foreach_pow_List) {
    static opdi_foreach row = {"aten::pow.Tensor_Tensor", NULL};
    OPDI_NEEDS(pow_Tensor_Tensor);
    op->schema = "_foreach_pow.List(Tensor[] self, Tensor[] exponent) -> Tensor[]";
    opdi_foreach_card(op, &row);
    op->cases = "{[2,3]u,[4]u}, {[2,3]u,[4]u}";
}
/* opd_foreach_pow_Scalar: pow for each tensor of a list and one number */
OPDI_OP(_foreach_pow_Scalar) {
    static opdi_foreach row = {"aten::pow.Tensor_Scalar", NULL};
    OPDI_NEEDS(pow_Tensor_Scalar);
    op->schema = "_foreach_pow.Scalar(Tensor[] self, Scalar exponent) -> Tensor[]";
    opdi_foreach_card(op, &row);
    op->cases = "{[2,3]u,[4]u}, 1.5";
}
/* opd_foreach_pow_ScalarAndTensor: pow of one number for each tensor of a list */
OPDI_OP(_foreach_pow_ScalarAndTensor) {
    static opdi_foreach row = {"aten::pow.Scalar", NULL};
    OPDI_NEEDS(pow_Scalar);
    op->schema = "_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]";
    opdi_foreach_card(op, &row);
    op->cases = "1.5, {[2,3]u,[4]u}";
}
/* opd_foreach_pow_ScalarList: pow for each tensor of a list and its own number */
OPDI_OP(_foreach_pow_ScalarList) {
    static opdi_foreach row = {"aten::pow.Tensor_Scalar", NULL};
    OPDI_NEEDS(pow_Tensor_Scalar);
    op->schema = "_foreach_pow.ScalarList(Tensor[] self, Scalar[] exponent) -> Tensor[]";
    opdi_foreach_card(op, &row);
    op->cases = "{[2,3]u,[4]u}, (2.5, 0.5)";
}
/* opd_foreach_pow_List_: pow for each pair of tensors of two lists, in place */
OPDI_OP(_foreach_pow__List) {
    static opdi_foreach row = {"aten::pow_.Tensor", NULL};
    OPDI_NEEDS(pow_Tensor_Tensor);
    op->schema = "_foreach_pow_.List(Tensor(a!)[] self, Tensor[] exponent) -> ()";
    opdi_foreach_card(op, &row);
    op->cases = "";
}
/* opd_foreach_pow_Scalar_: pow for each tensor of a list and one number, in place */
OPDI_OP(_foreach_pow__Scalar) {
    static opdi_foreach row = {"aten::pow_.Scalar", NULL};
    OPDI_NEEDS(pow_Tensor_Scalar);
    op->schema = "_foreach_pow_.Scalar(Tensor(a!)[] self, Scalar exponent) -> ()";
    opdi_foreach_card(op, &row);
    op->cases = "";
}
/* opd_foreach_pow_ScalarList_: pow for each tensor of a list and its own number, in place */
OPDI_OP(_foreach_pow__ScalarList) {
    static opdi_foreach row = {"aten::pow_.Scalar", NULL};
    OPDI_NEEDS(pow_Tensor_Scalar);
    op->schema = "_foreach_pow_.ScalarList(Tensor(a!)[] self, Scalar[] exponent) -> ()";
    opdi_foreach_card(op, &row);
    op->cases = "";
}
OPDI_COLD_END
