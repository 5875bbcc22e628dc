#include "../ops.h"

//== mm, addmm =========================================================================================================

OPDI_COLD_BEGIN

static int opdi_mm_shapes(const opd_tensor *a, const opd_tensor *b) {
    const int64_t *sizes = opdi_sizes(a), *other_sizes = opdi_sizes(b);
    if (sizes[1] == other_sizes[0]) { return 0; }
    return opd_fail(OPD_ERROR_SHAPE, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                    (long long)sizes[0], (long long)sizes[1], (long long)other_sizes[0], (long long)other_sizes[1]);
}
static int opdi_mm_kernel(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    int64_t sizes[2];
    if (a->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "self must be a matrix"); }
    if (b->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "mat2 must be a matrix"); }
    if (opdi_mm_shapes(a, b) != 0 || opdi_same_dtype(a, b) != 0) { return -1; }
    if (opdi_product_dtype(OPDI_DTYPE(a), opdi_product_none(a, b), "addmm_impl_cpu_") < 0) { return -1; }
    sizes[0] = opdi_sizes(a)[0];
    sizes[1] = opdi_sizes(b)[1];
    opd_tensor *out = opd_result(call, 0, sizes, 2, OPDI_DTYPE(a));
    return out ? opdi_product(out, NULL, a, b, opdi_one(), opdi_one()) : -1;
}
/* Returns the gradient of argument number `at`, the first factor of a matrix product whose second factor is number
   at + 1.  A gradient has the layout of its factor, as in PyTorch (mm_mat1_backward): a parameter's gradient then needs
   no copy.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_mm_backward_first(opd_backward_call *bw, int at) {
    opd_tensor *const grad = opd_bw_grad(bw, 0), *const second = opd_bw_tensor(bw, at + 1);
    return opdi_bw_is_column_major(bw, at) ? opdi_mt(opd_mm(second, opdi_mt(grad))) : opd_mm(grad, opdi_mt(second));
}
/* Returns the gradient of argument number `at`, the second factor of a matrix product whose first factor is number
   at - 1.  The gradient has the layout of its factor.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_mm_backward_second(opd_backward_call *bw, int at) {
    opd_tensor *const grad = opd_bw_grad(bw, 0), *const first = opd_bw_tensor(bw, at - 1);
    return opdi_bw_is_column_major(bw, at) ? opdi_mt(opd_mm(opdi_mt(grad), first)) : opd_mm(opdi_mt(first), grad);
}
static int opdi_mm_backward(opd_backward_call *bw) {
    OPDI_BW_RETURN(0, opdi_mm_backward_first(bw, 0));
    OPDI_BW_RETURN(1, opdi_mm_backward_second(bw, 1));
    return 0;
}
/* Computes the tangent of an operator that multiplies arguments number `first` and `second`, and adds argument number c
   (-1: adds nothing).  Calls the operator once for the tangent of each factor; the first call also adds the tangent of
   c.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_bilinear_jvp(opd_jvp_call *jv, int first, int second, int c) {
    opd_tensor *sum = NULL, *added = c < 0 ? NULL : opd_jvp_tensor(jv, c);
    opd_value args[OPD_MAX_ARGS];
    int count = 0;
    for (int k = 0; k < 2; k++) {
        int i = k ? second : first;
        opd_tensor *tensor = opd_jvp_tangent(jv, i);
        if (!tensor && (sum || !k)) { continue; }
        if (!tensor && opdi_is_block(opd_jvp_tensor(jv, i)->dtype)) { i = first; } /* no blocks of zeros exist */
        for (count = 0; count < jv->op->nargs; count++) { args[count] = opd_jvp_value(jv, count); }
        args[i] = opd_value_tensor(tensor ? tensor : opd_zeros_like(opd_jvp_tensor(jv, i)));
        if (added && (sum || !opd_jvp_tangent(jv, c))) { args[c] = opd_value_tensor(opd_zeros_like(added)); }
        else if (added) { args[c] = opd_value_tensor(opd_jvp_tangent(jv, c)); }
        opd_tensor *part = opd_ok() ? opd_call_op(jv->op, args, count) : NULL;
        sum = sum && part ? opd_add(sum, part) : part;
        if (!sum) { return -1; }
    }
    return opd_jvp_return(jv, 0, sum);
}
/* Computes the tangent of an operator that multiplies its last two tensor arguments; if there are three, it adds the
   first. */
static int opdi_product_jvp(opd_jvp_call *jv) {
    return jv->ninputs > 2 ? opdi_bilinear_jvp(jv, 1, 2, 0) : opdi_bilinear_jvp(jv, 0, 1, -1);
}
/* opd_mm: the product of two matrices */
OPDI_OP(mm) {
    op->schema = "mm(Tensor self, Tensor mat2) -> Tensor";
    op->cpu = op->fake = opdi_mm_kernel; op->backward = opdi_mm_backward; op->save = "self(mat2), mat2(self)";
    op->jvp = opdi_product_jvp;
    op->vmap = opdi_product_of_matrices; op->autocast = OPD_AUTOCAST_LOWER; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_product;
    op->out = "mm.out";
    op->cases = "[2,3], [3,4]";
}

static int opdi_addmm_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *a = opd_arg_tensor(call, 1), *b = opd_arg_tensor(call, 2);
    int64_t sizes[2];
    if (self->dtype != b->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "self and mat2 must have the same dtype, but got %s and %s",
                        opd_dtype_name(OPDI_DTYPE(self)), opd_dtype_name(OPDI_DTYPE(b)));
    }
    if (a->dtype != b->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "mat1 and mat2 must have the same dtype, but got %s and %s",
                        opd_dtype_name(OPDI_DTYPE(a)), opd_dtype_name(OPDI_DTYPE(b)));
    }
    if (a->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "mat1 must be a matrix, got %d-D tensor", a->ndim); }
    if (b->ndim != 2) { return opd_fail(OPD_ERROR_SHAPE, "mat2 must be a matrix, got %d-D tensor", b->ndim); }
    if (opdi_mm_shapes(a, b) != 0 ||
        opdi_product_dtype(OPDI_DTYPE(a), opdi_product_none(a, b), "addmm_impl_cpu_") < 0) {
        return -1;
    }
    sizes[0] = opdi_sizes(a)[0];
    sizes[1] = opdi_sizes(b)[1];
    return opdi_product_result(call, self, a, b, sizes, 2, opd_arg_value(call, 3), opd_arg_value(call, 4));
}
static int opdi_addmm_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    const opd_value beta = opd_bw_value(bw, 3), alpha = opd_bw_value(bw, 4);
    OPDI_BW_RETURN(0, opdi_scale(grad, beta));
    OPDI_BW_RETURN(1, opdi_scale(opdi_mm_backward_first(bw, 1), alpha));
    OPDI_BW_RETURN(2, opdi_scale(opdi_mm_backward_second(bw, 2), alpha));
    return 0;
}
/* opd_addmm: beta * self + alpha * mm(mat1, mat2) */
OPDI_OP(addmm) {
    op->schema = "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor";
    op->cpu = op->fake = opdi_addmm_kernel; op->backward = opdi_addmm_backward; op->save = "mat1(mat2), mat2(mat1)";
    op->jvp = opdi_product_jvp;
    op->vmap = opdi_product_of_matrices; op->autocast = OPD_AUTOCAST_LOWER;
    op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_SELF;
    op->flops = opdi_flops_added_product;
    op->inplace = "addmm_"; op->out = "addmm.out";
    op->cases = "[4], [2,3], [3,4]; [2,4], [2,3], [3,4], beta=0.5, alpha=2";
}
static bool opdi_factor_is_one(opd_value v) {
    return v.tag == OPD_TAG_INT ? v.u.i == 1 : v.tag == OPD_TAG_FLOAT && v.u.d == 1;
}
/* Computes relu(bias + a b) in one kernel of a GPU.  Returns NULL if this fails, and also, without an error, if it is
   not possible. */
static opd_tensor *opdi_addmm_relu_in_cuda(const opd_value *args) {
    static opd_op *product;
    const opd_tensor *const bias = args[0].u.t, *const b = args[2].u.t;
    opd_op *const op = bias->backend == OPD_CUDA && opdi_nothing_follows()
        ? opdi_cuda_op(&product, "opd_cuda::linear_relu") : NULL;
    opd_value got;
    for (int i = 0; i < 3 && op; i++) {
        const opd_tensor *const t = args[i].u.t;
        if (!opdi_in_cuda(t) || t->storage->index != bias->storage->index || t->ndim != (i ? 2 : 1) || t->numel == 0 ||
            t->dtype != bias->dtype || !opd_dtype_is_floating(OPDI_DTYPE(t)) ||
            (opd_grad_mode_enabled() && opdi_tracked(t))) { return NULL; }
    }
    const bool plain = op && opdi_factor_is_one(args[3]) && opdi_factor_is_one(args[4]) && opd_is_contiguous(bias) &&
        b->dims[0] == args[1].u.t->dims[1] && b->dims[1] == bias->dims[0];
    return !plain || opd_call_all(op, &got, args, 3) || got.tag != OPD_TAG_TENSOR ? NULL : got.u.t;
}
static int opdi_addmm_activation_kernel(opd_call *call) {
    const opd_value *args = opd_call_args(call);
    opd_tensor *const quick = opd_arg_bool(call, 5) ? NULL : opdi_addmm_relu_in_cuda(args);
    if (quick || !opd_ok()) { return quick ? opd_return_tensor(call, quick) : -1; }
    opd_tensor *sum = opd_addmm_full(args[0].u.t, args[1].u.t, args[2].u.t, args[3], args[4]);
    return opd_return_tensor(call, opd_arg_bool(call, 5) ? opd_gelu(sum) : opd_relu(sum));
}
/* opd__addmm_activation: relu or, if use_gelu is true, gelu of addmm */
OPDI_OP(_addmm_activation) {
    op->schema = "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool "
        "use_gelu=False) -> Tensor";
    op->composite = opdi_addmm_activation_kernel;
    op->autocast = OPD_AUTOCAST_LOWER_CPU;
    op->out = "_addmm_activation.out"; op->tags = OPDI_OPTAG_OUT_SELF;
    op->cases = "[4], [2,3], [3,4]; [2,4], [2,3], [3,4], beta=0.5, alpha=2, use_gelu=True";
}
/* Returns the product of matrices of 8-bit integers, computed without converting them.  Returns NULL if that fails, and
   also, without an error, if another layer has to see the operators that opdi_int_mm_kernel calls, if the shapes do not
   match, or if the processor has no instructions for such products. */
static opd_tensor *opdi_int_mm_at_once(const opd_tensor *a, const opd_tensor *b) {
    const int64_t *const x = opdi_strides(a), *const y = opdi_strides(b), depth = opdi_sizes(a)[1];
    if (!opdi_nothing_follows() || !opdi_in_memory(a) || !opdi_in_memory(b) || depth != opdi_sizes(b)[0]) {
        return NULL;
    }
    const int64_t rows = opdi_sizes(a)[0], count = opdi_sizes(b)[1];
    const opdi_gemm_in left = opdi_gemm_in_of(a->data, a->dtype, x[0], x[1]);
    const opdi_gemm_in right = opdi_gemm_in_of(b->data, b->dtype, y[0], y[1]);
    opd_tensor *const out = opd_empty(OPD_INTS(rows, count), OPD_INT32);
    const bool packed = rows > OPDI_BYTE_FEW && opdi_gemm_bytes_are_fast();
    if (out && a->dtype == OPD_UINT8 && x[1] == 1 && x[0] == depth && y[0] == 1 && !packed) {
        opdi_byte_job job;
        job.m = rows;
        job.n = count;
        job.k = depth;
        job.x = (const uint8_t *)a->data;
        job.w = (const int8_t *)b->data;
        job.w_stride = y[1];
        job.y = (int32_t *)(void *)out->data;
        return opdi_byte_product(&job) ? NULL : out;
    }
    const int done = out ? opdi_gemm_bytes_try(rows, count, depth, &left, &right, (int32_t *)out->data) : 0;
    if (done < 0) { (void)opdi_buffer_fail(); }
    return done > 0 ? out : NULL;
}
static int opdi_int_mm_kernel(opd_call *call) {
    opd_tensor *two[2];
    for (int i = 0; i < 2; i++) {
        opd_tensor *tensor = opd_arg_tensor(call, i);
        if (tensor->ndim != 2) {
            return opd_fail(OPD_ERROR_SHAPE, "_int_mm: %s must be a matrix, got %d-D tensor", i ? "mat2" : "self",
                            tensor->ndim);
        }
        if (tensor->dtype != OPD_INT8 && (i || tensor->dtype != OPD_UINT8)) {
            return opd_fail(OPD_ERROR_DTYPE, "Expected %s to be int8%s, but got %s", i ? "mat2" : "self",
                            i ? "" : " or uint8", opd_dtype_name((opd_scalar_type)tensor->dtype));
        }
        two[i] = tensor;
    }
    opd_tensor *const done = opdi_int_mm_at_once(two[0], two[1]);
    if (done || !opd_ok()) { return opd_return_tensor(call, done); }
    for (int i = 0; i < 2; i++) {
        if (!(two[i] = opd_to_dtype(two[i], OPD_INT32))) { return -1; }
    }
    return opd_return_tensor(call, opd_mm(two[0], two[1]));
}
/* opd__int_mm: the product of two matrices of 8-bit integers, as int32 */
OPDI_OP(_int_mm) {
    op->schema = "_int_mm(Tensor self, Tensor mat2) -> Tensor";
    op->composite = opdi_int_mm_kernel;
    op->out = "_int_mm.out";
    op->cases = "";
}

/* Reads two matrices (if `batches` is true, two batches of matrices), the arguments `from` and from + 1, and out_dtype,
   the next argument.  Sets *dtype to out_dtype, and two[0] and two[1] to the matrices, converted to out_dtype.
   out_dtype must be the dtype of the matrices or, if these are 16-bit floats, float32.  Returns 0, or -1 and sets an
   error. */
static int opdi_product_widened(opd_call *call, int from, bool batches, opd_scalar_type *dtype, opd_tensor **two) {
    const opd_scalar_type have = opd_dtype(opd_arg_tensor(call, from));
    const opd_scalar_type other = opd_dtype(opd_arg_tensor(call, from + 1));
    const opd_scalar_type wanted = (opd_scalar_type)opd_arg_int(call, from + 2);
    if (other != have && !batches && from == 1) {
        return opd_fail(OPD_ERROR_DTYPE, "mat1 and mat2 must have the same dtype, but got %s and %s",
                        opd_dtype_name(have), opd_dtype_name(other));
    }
    if (other != have) {
        return opd_fail(OPD_ERROR_DTYPE, batches ? "batch1 and batch2 must have the same dtype"
                        : "input dtypes must be the same");
    }
    if (wanted != have && !(wanted == OPD_FLOAT32 && (have == OPD_FLOAT16 || have == OPD_BFLOAT16))) {
        return opd_fail(OPD_ERROR_DTYPE, "out_dtype must be the same as input dtype or fp32 for fp16/bf16 inputs");
    }
    for (int i = 0; i < 2; i++) { two[i] = opd_to_dtype(opd_arg_tensor(call, from + i), wanted); }
    *dtype = wanted;
    return two[0] && two[1] ? 0 : -1;
}
static int opdi_mm_dtype_kernel(opd_call *call) {
    opd_tensor *two[2];
    opd_scalar_type dtype;
    return opdi_product_widened(call, 0, false, &dtype, two) ? -1 : opd_return_tensor(call, opd_mm(two[0], two[1]));
}
static int opdi_bmm_dtype_kernel(opd_call *call) {
    opd_tensor *two[2];
    opd_scalar_type dtype;
    return opdi_product_widened(call, 0, true, &dtype, two) ? -1 : opd_return_tensor(call, opd_bmm(two[0], two[1]));
}
static int opdi_added_dtype(opd_call *call, bool batches) {
    opd_tensor *two[2], *self = opd_arg_tensor(call, 0);
    const opd_value *args = opd_call_args(call);
    opd_scalar_type dtype;
    if (opdi_product_widened(call, 1, batches, &dtype, two)) { return -1; }
    if (opd_dtype(self) != dtype && opd_dtype(self) != opd_dtype(opd_arg_tensor(call, 1))) {
        return opd_fail(OPD_ERROR_DTYPE, "self dtype must match either out_dtype or %s dtype",
                        batches ? "batch1" : "mat1");
    }
    self = opd_to_dtype(self, dtype);
    return opd_return_tensor(call, batches ? opd_baddbmm_full(self, two[0], two[1], args[4], args[5])
                             : opd_addmm_full(self, two[0], two[1], args[4], args[5]));
}
static int opdi_addmm_dtype_kernel(opd_call *call) { return opdi_added_dtype(call, false); }
static int opdi_baddbmm_dtype_kernel(opd_call *call) { return opdi_added_dtype(call, true); }
/* opd_mm_dtype: mm of 16-bit floats with a result in float32 or in their own dtype */
OPDI_OP(mm_dtype) {
    op->schema = "mm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor";
    op->composite = opdi_mm_dtype_kernel;
    op->out = "mm.dtype_out";
    op->cases = "";
}
/* opd_bmm_dtype: bmm of 16-bit floats with a result in float32 or in their own dtype */
OPDI_OP(bmm_dtype) {
    op->schema = "bmm.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor";
    op->composite = opdi_bmm_dtype_kernel;
    op->out = "bmm.dtype_out";
    op->cases = "";
}
/* opd_addmm_dtype: addmm of 16-bit floats with a result in float32 or in their own dtype */
OPDI_OP(addmm_dtype) {
    op->schema = "addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar "
        "alpha=1) -> Tensor";
    op->composite = opdi_addmm_dtype_kernel;
    op->out = "addmm.dtype_out";
    op->cases = "";
}
/* opd_baddbmm_dtype: baddbmm of 16-bit floats with a result in float32 or in their own dtype */
OPDI_OP(baddbmm_dtype) {
    op->schema = "baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, "
        "Scalar alpha=1) -> Tensor";
    op->composite = opdi_baddbmm_dtype_kernel;
    op->out = "baddbmm.dtype_out";
    op->cases = "";
}

//== bmm, baddbmm, addbmm ==============================================================================================

static int opdi_bmm_shapes(const opd_tensor *a, const opd_tensor *b) {
    const int64_t *sizes = opdi_sizes(a), *other_sizes = opdi_sizes(b);
    if (a->ndim != 3) { return opd_fail(OPD_ERROR_SHAPE, "batch1 must be a 3D tensor"); }
    if (b->ndim != 3) { return opd_fail(OPD_ERROR_SHAPE, "batch2 must be a 3D tensor"); }
    if (sizes[0] == other_sizes[0] && sizes[2] == other_sizes[1]) { return 0; }
    return opd_fail(OPD_ERROR_SHAPE, "Expected size for first two dimensions of batch2 tensor to be: [%lld, "
                    "%lld] but got: [%lld, %lld].", (long long)sizes[0], (long long)sizes[2], (long long)other_sizes[0],
                    (long long)other_sizes[1]);
}
static int opdi_bmm_any(opd_call *call, opd_tensor *self, int first, opd_value beta, opd_value alpha) {
    opd_tensor *a = opd_arg_tensor(call, first), *b = opd_arg_tensor(call, first + 1);
    int64_t sizes[3];
    if (opdi_bmm_shapes(a, b) != 0 || opdi_same_dtype(a, b) != 0) { return -1; }
    if (self && self->dtype != a->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s",
                        opd_dtype_name(OPDI_DTYPE(self)), opd_dtype_name(OPDI_DTYPE(a)), opd_dtype_name(OPDI_DTYPE(b)));
    }
    if (opdi_product_dtype(OPDI_DTYPE(a), opdi_product_none(a, b), self ? "baddbmm" : "bmm") < 0) { return -1; }
    sizes[0] = opdi_sizes(a)[0];
    sizes[1] = opdi_sizes(a)[1];
    sizes[2] = opdi_sizes(b)[2];
    return opdi_product_result(call, self, a, b, sizes, 3, beta, alpha);
}
static int opdi_bmm_kernel(opd_call *call) { return opdi_bmm_any(call, NULL, 0, opdi_one(), opdi_one()); }
static int opdi_bmm_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, opd_bmm(grad, opdi_mt(opd_bw_tensor(bw, 1))));
    OPDI_BW_RETURN(1, opd_bmm(opdi_mt(opd_bw_tensor(bw, 0)), grad));
    return 0;
}
/* opd_bmm: the product of each pair of matrices of two batches */
OPDI_OP(bmm) {
    op->schema = "bmm(Tensor self, Tensor mat2) -> Tensor";
    op->cpu = op->fake = opdi_bmm_kernel; op->backward = opdi_bmm_backward; op->save = "self(mat2), mat2(self)";
    op->jvp = opdi_product_jvp;
    op->vmap = opdi_product_of_batches; op->autocast = OPD_AUTOCAST_LOWER; op->tags = OPD_OPTAG_CORE;
    op->flops = opdi_flops_product;
    op->out = "bmm.out";
    op->cases = "[2,3,4], [2,4,2]";
}

static int opdi_baddbmm_kernel(opd_call *call) {
    return opdi_bmm_any(call, opd_arg_tensor(call, 0), 1, opd_arg_value(call, 3), opd_arg_value(call, 4));
}
static int opdi_baddbmm_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    const opd_value beta = opd_bw_value(bw, 3), alpha = opd_bw_value(bw, 4);
    OPDI_BW_RETURN(0, opdi_scale(grad, beta));
    OPDI_BW_RETURN(1, opdi_scale(opd_bmm(grad, opdi_mt(opd_bw_tensor(bw, 2))), alpha));
    OPDI_BW_RETURN(2, opdi_scale(opd_bmm(opdi_mt(opd_bw_tensor(bw, 1)), grad), alpha));
    return 0;
}
/* opd_baddbmm: beta * self + alpha * bmm(batch1, batch2) */
OPDI_OP(baddbmm) {
    op->schema = "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor";
    op->cpu = op->fake = opdi_baddbmm_kernel; op->backward = opdi_baddbmm_backward;
    op->save = "batch1(batch2), batch2(batch1)"; op->jvp = opdi_product_jvp;
    op->vmap = opdi_product_of_batches; op->autocast = OPD_AUTOCAST_LOWER; op->flops = opdi_flops_added_product;
    op->inplace = "baddbmm_"; op->out = "baddbmm.out"; op->tags = OPDI_OPTAG_OUT_SELF;
    op->cases = "[2,3,2], [2,3,4], [2,4,2]; [2], [2,3,4], [2,4,2], beta=0.5, alpha=2";
}

/* addbmm: computes beta * self plus alpha times the sum of the products of batch1 [b, n, m] and batch2 [b, m, p].  The
   result is [n, p]. */
static int opdi_addbmm_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *a = opd_arg_tensor(call, 1), *b = opd_arg_tensor(call, 2);
    const int64_t *other_sizes = opdi_sizes(a), *dims = opdi_sizes(b);
    int64_t sizes[2];
    if (a->ndim != 3) { return opd_fail(OPD_ERROR_SHAPE, "batch1 must be a 3D tensor"); }
    if (b->ndim != 3) { return opd_fail(OPD_ERROR_SHAPE, "batch2 must be a 3D tensor"); }
    if (other_sizes[0] != dims[0]) {
        return opd_fail(OPD_ERROR_SHAPE, "batch1 and batch2 must have same number of batches, got %lld and %lld",
                        (long long)other_sizes[0], (long long)dims[0]);
    }
    if (other_sizes[2] != dims[1]) {
        return opd_fail(OPD_ERROR_SHAPE, "Incompatible matrix sizes for bmm (%lldx%lld and %lldx%lld)",
                        (long long)other_sizes[1], (long long)other_sizes[2], (long long)dims[1], (long long)dims[2]);
    }
    if (self->dtype != b->dtype) { return opd_fail(OPD_ERROR_DTYPE, "self and mat2 must have the same dtype"); }
    if (opdi_same_dtype(a, b) != 0 ||
        opdi_product_dtype(OPDI_DTYPE(a), opdi_product_none(a, b), "addmm_impl_cpu_") < 0) {
        return -1;
    }
    sizes[0] = other_sizes[1];
    sizes[1] = dims[2];
    return opdi_product_result(call, self, a, b, sizes, 2, opd_arg_value(call, 3), opd_arg_value(call, 4));
}
static int opdi_addbmm_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *a = opd_bw_tensor(bw, 1), *b = opd_bw_tensor(bw, 2), *wide = grad;
    const opd_value beta = opd_bw_value(bw, 3), alpha = opd_bw_value(bw, 4);
    OPDI_BW_RETURN(0, opdi_scale(grad, beta));
    if (opd_ok() && (a || b)) {
        int64_t sizes[3];
        sizes[0] = opd_size(a ? a : b, 0);
        sizes[1] = opd_size(grad, 0);
        sizes[2] = opd_size(grad, 1);
        wide = opdi_expand_to(grad, sizes, 3);
    }
    OPDI_BW_RETURN(1, opdi_scale(opd_bmm(wide, opdi_mt(b)), alpha));
    OPDI_BW_RETURN(2, opdi_scale(opd_bmm(opdi_mt(a), wide), alpha));
    return 0;
}
/* opd_addbmm: beta * self + alpha * the sum of the products of batch1 and batch2 */
OPDI_OP(addbmm) {
    op->schema = "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor";
    op->cpu = op->fake = opdi_addbmm_kernel; op->backward = opdi_addbmm_backward;
    op->save = "batch1(batch2), batch2(batch1)"; op->jvp = opdi_product_jvp;
    op->vmap = opdi_product_of_sum; op->autocast = OPD_AUTOCAST_LOWER; op->flops = opdi_flops_added_product;
    op->inplace = "addbmm_"; op->out = "addbmm.out"; op->tags = OPDI_OPTAG_OUT_SELF;
    op->cases = "[3,2], [2,3,4], [2,4,2]; [2], [2,3,4], [2,4,2], beta=0.5, alpha=2";
}

//== mv, addmv, dot, vdot ==============================================================================================

/* Computes mv (if self is NULL) or addmv: alpha times the product of the matrix in argument `first` and the vector in
   the next argument, plus beta * self.  The result is [rows].  Returns 0, or -1 and sets an error. */
static int opdi_mv_any(opd_call *call, opd_tensor *self, int first, opd_value beta, opd_value alpha) {
    opd_tensor *a = opd_arg_tensor(call, first), *value = opd_arg_tensor(call, first + 1);
    if (a->ndim != 2 || value->ndim != 1 || (self && self->ndim > 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "vector + matrix @ vector expected, got %d, %d, %d", self ? self->ndim : 1,
                        a->ndim, value->ndim);
    }
    int64_t rows = opdi_sizes(a)[0];
    if (opdi_sizes(a)[1] != opdi_sizes(value)[0] || (self && self->numel != rows && self->numel != 1)) {
        return opd_fail(OPD_ERROR_SHAPE, "size mismatch, got %lld, %lldx%lld,%lld",
                        (long long)(self ? self->numel : rows), (long long)rows, (long long)opdi_sizes(a)[1],
                        (long long)opdi_sizes(value)[0]);
    }
    if (self && (self->dtype != a->dtype || a->dtype != value->dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "addmv input tensors must have the same dtype, but got %s, %s, and %s",
                        opd_dtype_name(OPDI_DTYPE(self)), opd_dtype_name(OPDI_DTYPE(a)),
                        opd_dtype_name(OPDI_DTYPE(value)));
    }
    if (opdi_same_dtype(a, value) != 0 ||
        opdi_product_dtype(OPDI_DTYPE(a), opdi_product_none(a, value), "addmv_impl_cpu") < 0) {
        return -1;
    }
    return opdi_product_result(call, self, a, value, &rows, 1, beta, alpha);
}
static int opdi_mv_kernel(opd_call *call) { return opdi_mv_any(call, NULL, 0, opdi_one(), opdi_one()); }
static int opdi_mv_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, opd_outer(grad, opd_bw_tensor(bw, 1)));
    OPDI_BW_RETURN(1, opd_mv(opdi_mt(opd_bw_tensor(bw, 0)), grad));
    return 0;
}
/* opd_mv: a matrix times a vector */
OPDI_OP(mv) {
    op->schema = "mv(Tensor self, Tensor vec) -> Tensor";
    op->cpu = op->fake = opdi_mv_kernel; op->backward = opdi_mv_backward; op->save = "self(vec), vec(self)";
    op->jvp = opdi_product_jvp;
    op->vmap = opdi_product_of_vector; op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU; op->flops = opdi_flops_product;
    op->out = "mv.out";
    op->cases = "[2,3], [3]";
}

static int opdi_addmv_kernel(opd_call *call) {
    return opdi_mv_any(call, opd_arg_tensor(call, 0), 1, opd_arg_value(call, 3), opd_arg_value(call, 4));
}
static int opdi_addmv_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    const opd_value beta = opd_bw_value(bw, 3), alpha = opd_bw_value(bw, 4);
    OPDI_BW_RETURN(0, opdi_scale(grad, beta));
    OPDI_BW_RETURN(1, opdi_scale(opd_outer(grad, opd_bw_tensor(bw, 2)), alpha));
    OPDI_BW_RETURN(2, opdi_scale(opd_mv(opdi_mt(opd_bw_tensor(bw, 1)), grad), alpha));
    return 0;
}
/* opd_addmv: beta * self + alpha * mv(mat, vec), where vec is a vector */
OPDI_OP(addmv) {
    op->schema = "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor";
    op->cpu = op->fake = opdi_addmv_kernel; op->backward = opdi_addmv_backward; op->save = "mat(vec), vec(mat)";
    op->jvp = opdi_product_jvp;
    op->vmap = opdi_product_of_vector; op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU; op->flops = opdi_flops_added_product;
    op->inplace = "addmv_"; op->out = "addmv.out"; op->tags = OPDI_OPTAG_OUT_SELF;
    op->cases = "[2], [2,3], [3]; [2], [2,3], [3], beta=0.5, alpha=2";
}

/* Adds the product of two complex numbers a and b to sums[4], in float64, as four products of real numbers: re(a) *
   re(b), im(a) * im(b), re(a) * im(b) and im(a) * re(b).  The numbers are complex128 if `wide` is true, else
   complex64. */
OPDI_ALWAYS void opdi_complex_step(const char *a, const char *b, bool wide, double *sums) {
    const double re = wide ? ((const double *)(const void *)a)[0] : (double)((const float *)(const void *)a)[0];
    const double im = wide ? ((const double *)(const void *)a)[1] : (double)((const float *)(const void *)a)[1];
    const double x = wide ? ((const double *)(const void *)b)[0] : (double)((const float *)(const void *)b)[0];
    const double y = wide ? ((const double *)(const void *)b)[1] : (double)((const float *)(const void *)b)[1];
    sums[0] += re * x;
    sums[1] += im * y;
    sums[2] += re * y;
    sums[3] += im * x;
}
/* Sets sums[4] (see opdi_complex_step) to the sums for `count` pairs of numbers, which are `as` and `bs` bytes apart.
   Pairs with even and odd indices are summed separately. */
OPDI_ALWAYS void opdi_complex_sums(const char *a, const char *b, int64_t as, int64_t bs, int64_t count, bool wide,
                                   double *sums) {
    double even[4] = {0, 0, 0, 0}, odd[4] = {0, 0, 0, 0};
    for (int64_t i = 1; i < count; i += 2, a += 2 * as, b += 2 * bs) {
        opdi_complex_step(a, b, wide, even);
        opdi_complex_step(a + as, b + bs, wide, odd);
    }
    if (count & 1) { opdi_complex_step(a, b, wide, even); }
    for (int i = 0; i < 4; i++) { sums[i] = even[i] + odd[i]; }
}
#if defined(OPDI_VECTORS)
OPDI_COLD_END
#define OPDI_LANES(lanes, at) (*(const lanes *)(const void *)(at))
OPDI_LOOPS_BEGIN
/* Adds the sums for `count` pairs of contiguous numbers to sums[4]; computes in float32.  count is a multiple of 8, and
   at least one more number follows.  The elements are an alternating sequence of real and imaginary parts: for even j,
   a[j] * b[j + 1] and a[j + 1] * b[j] are products of a real and an imaginary part, so that no shuffles are needed. */
OPDI_AVX2 static void opdi_complex_dot_f32(const void *x, const void *y, int64_t count, double *sums) {
    enum { WIDTH = (int)(sizeof(OPDI_V_4_1) / sizeof(float)) };
    const float *a = (const float *)x, *b = (const float *)y;
    OPDI_V_4_1 straight[2] = {{0}, {0}}, ahead[2] = {{0}, {0}}, behind[2] = {{0}, {0}};
    for (int64_t i = 0; i < 2 * count; i += 2 * WIDTH) {
        OPDI_UNROLL
        for (int k = 0; k < 2; k++) {
            const OPDI_V_4_1 first = OPDI_LANES(OPDI_V_4_1, a + i + WIDTH * k),
                second = OPDI_LANES(OPDI_V_4_1, b + i + WIDTH * k);
            straight[k] += first * second;
            ahead[k] += first * OPDI_LANES(OPDI_V_4_1, b + i + WIDTH * k + 1);
            behind[k] += OPDI_LANES(OPDI_V_4_1, a + i + WIDTH * k + 1) * second;
        }
    }
    for (int j = 0; j < 2 * WIDTH; j += 2) {
        sums[0] += (double)straight[j / WIDTH][j % WIDTH];
        sums[1] += (double)straight[j / WIDTH][j % WIDTH + 1];
        sums[2] += (double)ahead[j / WIDTH][j % WIDTH];
        sums[3] += (double)behind[j / WIDTH][j % WIDTH];
    }
}
OPDI_AVX2 static void opdi_complex_dot_f64(const void *x, const void *y, int64_t count, double *sums) {
    enum { WIDTH = (int)(sizeof(OPDI_V_8_1) / sizeof(double)) };
    const double *a = (const double *)x, *b = (const double *)y;
    OPDI_V_8_1 straight[2] = {{0}, {0}}, ahead[2] = {{0}, {0}}, behind[2] = {{0}, {0}};
    for (int64_t i = 0; i < 2 * count; i += 2 * WIDTH) {
        OPDI_UNROLL
        for (int k = 0; k < 2; k++) {
            const OPDI_V_8_1 first = OPDI_LANES(OPDI_V_8_1, a + i + WIDTH * k),
                second = OPDI_LANES(OPDI_V_8_1, b + i + WIDTH * k);
            straight[k] += first * second;
            ahead[k] += first * OPDI_LANES(OPDI_V_8_1, b + i + WIDTH * k + 1);
            behind[k] += OPDI_LANES(OPDI_V_8_1, a + i + WIDTH * k + 1) * second;
        }
    }
    for (int j = 0; j < 2 * WIDTH; j += 2) {
        sums[0] += (double)straight[j / WIDTH][j % WIDTH];
        sums[1] += (double)straight[j / WIDTH][j % WIDTH + 1];
        sums[2] += (double)ahead[j / WIDTH][j % WIDTH];
        sums[3] += (double)behind[j / WIDTH][j % WIDTH];
    }
}
OPDI_LOOPS_END
OPDI_COLD_BEGIN
#endif
/* Sets sums[4] (see opdi_complex_step) to the sums for all `count` pairs.  Uses vector instructions if the numbers are
   contiguous. */
static void opdi_complex_all(const char *a, const char *b, int64_t as, int64_t bs, int64_t count, bool wide,
                             double *sums) {
    double rest[4] = {0, 0, 0, 0};
    int64_t eights = 0;
    for (int k = 0; k < 4; k++) { sums[k] = 0; }
#if defined(OPDI_VECTORS)
    const int64_t size = wide ? 16 : 8;
    eights = opdi_cpu_level() > 0 && as == size && bs == size && count > 0 ? (count - 1) & ~(int64_t)7 : 0;
    for (int64_t i = 0; i < eights; i += 1024) {  /* sums of pieces are added up in double */
        (wide ? opdi_complex_dot_f64 : opdi_complex_dot_f32)(a + i * size, b + i * size,
                                                             OPDI_MIN(eights - i, (int64_t)1024), sums);
    }
#endif
    a += eights * as;
    b += eights * bs;
    if (wide) { opdi_complex_sums(a, b, as, bs, count - eights, true, rest); }
    else { opdi_complex_sums(a, b, as, bs, count - eights, false, rest); }
    for (int k = 0; k < 4; k++) { sums[k] += rest[k]; }
}
/* Computes dot of the complex vectors a and b or, if `conjugated`, vdot, in which a is conjugated.  Returns 0, or -1
   and sets an error. */
static int opdi_complex_dot(opd_call *call, const opd_tensor *a, const opd_tensor *b, bool conjugated) {
    const int64_t size = (int64_t)opd_dtype_size(OPDI_DTYPE(a)), as = opdi_strides(a)[0] * size;
    const int64_t bs = opdi_strides(b)[0] * size, count = a->numel;
    const double sign = conjugated ? -1 : 1;
    double sums[4];
    opd_tensor *out = opd_result(call, 0, NULL, 0, OPDI_DTYPE(a));
    if (!out || !out->data) { return out ? 0 : -1; }
    opdi_complex_all(a->data, b->data, as, bs, count, size == 16, sums);
    const double re = sums[0] - sign * sums[1], im = sums[2] + sign * sums[3];
    if (size == 16) {
        ((double *)(void *)out->data)[0] = re;
        ((double *)(void *)out->data)[1] = im;
    } else {
        ((float *)(void *)out->data)[0] = (float)re;
        ((float *)(void *)out->data)[1] = (float)im;
    }
    return 0;
}
static int opdi_dot_any(opd_call *call, const char *name) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    if (a->ndim != 1 || b->ndim != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "1D tensors expected, but got %dD and %dD tensors", a->ndim, b->ndim);
    }
    if (a->dtype != b->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "dot : expected both vectors to have same dtype, but found %s and %s",
                        opd_dtype_name(OPDI_DTYPE(a)), opd_dtype_name(OPDI_DTYPE(b)));
    }
    if (a->numel != b->numel) {
        const long long numel = (long long)a->numel, count = (long long)b->numel;
        return opd_fail(OPD_ERROR_SHAPE, "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the "
                        "same number of elements, but got %lld and %lld elements respectively", numel, count, numel,
                        count);
    }
    if (opdi_product_dtype(OPDI_DTYPE(a), false, name) < 0) { return -1; }
    if (OPDI_DTYPE(a) == OPD_COMPLEX64 || OPDI_DTYPE(a) == OPD_COMPLEX128) {
        return opdi_complex_left_out() ? -1 : opdi_complex_dot(call, a, b, strcmp(name, "vdot") == 0);
    }
    return opdi_product_result(call, NULL, a, b, NULL, 0, opdi_one(), opdi_one());
}
static int opdi_dot_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, opd_mul(grad, opd_bw_tensor(bw, 1)));
    OPDI_BW_RETURN(1, opd_mul(grad, opd_bw_tensor(bw, 0)));
    return 0;
}
/* Computes the gradients of vdot(x, y), the sum of conj(x) * y: conj(g) * y for x and g * x for y. */
static int opdi_vdot_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    OPDI_BW_RETURN(0, opd_mul(opdi_conj(grad), opd_bw_tensor(bw, 1)));
    OPDI_BW_RETURN(1, opd_mul(grad, opd_bw_tensor(bw, 0)));
    return 0;
}
static int opdi_dot_kernel(opd_call *call) { return opdi_dot_any(call, "dot"); }
static int opdi_vdot_kernel(opd_call *call) { return opdi_dot_any(call, "vdot"); }
/* opd_dot: the sum of the products of two vectors */
OPDI_OP(dot) {
    op->schema = "dot(Tensor self, Tensor tensor) -> Tensor";
    op->cpu = op->fake = opdi_dot_kernel; op->backward = opdi_dot_backward; op->save = "self(tensor), tensor(self)";
    op->jvp = opdi_product_jvp;
    op->vmap = opdi_product_of_vectors; op->autocast = OPD_AUTOCAST_PROMOTE_NOT_CPU; op->flops = opdi_flops_product;
    op->out = "dot.out";
    op->cases = "[3], [3]";
}
/* opd_vdot: the sum of conj(self) * other for two vectors */
OPDI_OP(vdot) {
    op->schema = "vdot(Tensor self, Tensor other) -> Tensor";
    op->cpu = op->fake = opdi_vdot_kernel; op->backward = opdi_vdot_backward; op->save = "self(other), other(self)";
    op->jvp = opdi_product_jvp;
    op->vmap = opdi_product_of_vectors;
    op->tags = OPDI_OPTAG_CONJUGATES; op->autocast = OPD_AUTOCAST_PROMOTE_NOT_CPU; op->flops = opdi_flops_product;
    op->out = "vdot.out";
    op->cases = "[3], [3]";
}

//== outer products ====================================================================================================

static int opdi_outer_check(const char *name, const opd_tensor *a, const opd_tensor *b, const char *first) {
    if (a->ndim != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: Expected 1-D argument %s, but got %d-D", name, first, a->ndim);
    }
    if (b->ndim != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: Expected 1-D argument vec2, but got %d-D", name, b->ndim);
    }
    return 0;
}
static int opdi_outer_kernel(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    if (opdi_outer_check("outer", a, b, "self") != 0) { return -1; }
    return opd_return_tensor(call, opd_mul(opdi_unsqueeze_at(a, 1), b));
}
static int opdi_outer_batch(opd_call *call) {
    opdi_factor factor = opdi_factor_of(call, 0), other = opdi_factor_of(call, 1);
    int dim;
    if (factor.dim < 0 || other.dim < 0 || factor.ndim != 1 || other.ndim != 1 ||
        factor.tensor->dtype != other.tensor->dtype || !opd_dtype_is_floating(OPDI_DTYPE(factor.tensor))) {
        return opd_batch_decompose(call);
    }
    factor.tensor = opdi_unsqueeze_at(opd_batch_front(factor.tensor, factor.dim), 2);
    other.tensor = opdi_unsqueeze_at(opd_batch_front(other.tensor, other.dim), 1);
    factor.ndim = other.ndim = 2;
    factor.dim = other.dim = 0;
    return opd_batch_return(call, opdi_batch_product(factor, other, NULL, opdi_one(), opdi_one(), &dim), 0);
}
/* opd_outer: the matrix of the products self_i * vec2_j */
OPDI_OP(outer) {
    op->schema = "outer(Tensor self, Tensor vec2) -> Tensor";
    op->composite = opdi_outer_kernel;
    op->vmap = opdi_outer_batch;
    op->out = "outer.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->cases = "[2], [3]";
}
/* opd_ger: the same as outer */
OPDI_OP(ger) {
    op->schema = "ger(Tensor self, Tensor vec2) -> Tensor";
    op->composite = opdi_outer_kernel;
    op->vmap = opdi_outer_batch;
    op->out = "ger.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->cases = "[2], [3]";
}
OPDI_COLD_END
/* Returns true if addr can be computed as self + vec1 * vec2 in one pass: if both factors are 1, and no gradient may be
   needed.  The gradients of a product of vectors take less time than those of addcmul. */
static bool opdi_addr_is_plain(const opd_tensor *self, const opd_tensor *a, const opd_tensor *b, opd_value beta,
                               opd_value alpha) {
    return self->dtype == a->dtype && a->dtype == b->dtype &&
        (self->dtype == OPD_FLOAT32 || self->dtype == OPD_FLOAT64) && beta.tag != OPD_TAG_COMPLEX &&
        alpha.tag != OPD_TAG_COMPLEX && opdi_number_f64(beta) == 1 && opdi_number_f64(alpha) == 1 &&
        !opd_tensor_requires_grad(self) && !opd_tensor_requires_grad(a) && !opd_tensor_requires_grad(b);
}
/* A call of addr with contiguous tensors: `out` and `self` [rows, count], a [rows], b [count]. */
typedef struct opdi_addr_job {
    const opd_tensor *out, *self, *a, *b;
    opdi_loop loop;                               /* self + number * b for one row */
} opdi_addr_job;
static void opdi_addr_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_addr_job *const job = (const opdi_addr_job *)ctx;
    const int64_t count = job->b->numel, size = (int64_t)opd_dtype_size(OPDI_DTYPE(job->self));
    opdi_params params;
    memset(&params, 0, sizeof params);
    for (int64_t row = begin; row < end; row++) {
        void *data[3];
        if (size == 4) { params.f32[0] = ((const float *)(const void *)job->a->data)[row]; }
        else { params.f64[0] = ((const double *)(const void *)job->a->data)[row]; }
        data[0] = job->out->data + row * count * size;
        data[1] = job->self->data + row * count * size;
        data[2] = job->b->data;
        job->loop(data, count, &params);
    }
}
/* Returns self + vec1 vec2^T for tensors for which opdi_addr_is_plain is true.  If all tensors are contiguous and no
   other layer has to see addcmul, computes row by row, which needs no copies of the elements of `a`. */
static opd_tensor *opdi_addr_plain(const opd_call *call, opd_tensor *self, opd_tensor *a, opd_tensor *b) {
    opdi_addr_job job;
    job.self = self;
    job.a = a;
    job.b = b;
    job.loop = self->dtype == OPD_FLOAT32 ? opdi_f32_add_scaled : opdi_f64_add_scaled;
    if (!opdi_nothing_follows() || !opdi_in_memory(self) || !opdi_in_memory(a) || !opdi_in_memory(b) ||
        opd_call_requires_grad(call) || self->ndim != 2 || self->numel != a->numel * b->numel || self->numel == 0 ||
        !opd_is_contiguous(self) || !opd_is_contiguous(a) || !opd_is_contiguous(b)) {
        return opd_addcmul(self, opdi_unsqueeze_at(a, 1), b, OPD_V(1));
    }
    opd_tensor *const out = opd_empty_like(self);
    job.out = out;
    if (out) { opdi_parallel_for(a->numel, OPDI_MAX((int64_t)1, OPDI_GRAIN / b->numel), opdi_addr_range, &job); }
    return out;
}
/* addr: computes beta * self + alpha * vec1 vec2^T with type promotion (at::native::math_addr). */
static int opdi_addr_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *a = opd_arg_tensor(call, 1), *b = opd_arg_tensor(call, 2);
    const opd_value beta = opd_arg_value(call, 3), alpha = opd_arg_value(call, 4);
    int64_t sizes[2];
    if (opdi_outer_check("addr", a, b, "vec1") != 0) { return -1; }
    sizes[0] = opdi_sizes(a)[0];
    sizes[1] = opdi_sizes(b)[0];
    if (opdi_expand_check(self, sizes, 2) != 0) { return -1; }
    for (int k = 3; k < 5; k++) {
        const char *name = k == 3 ? "beta" : "alpha";
        const opd_value value = opd_arg_value(call, k);
        const bool floats = opd_dtype_is_floating(OPDI_DTYPE(self)) || opd_dtype_is_floating(OPDI_DTYPE(a)) ||
            opd_dtype_is_floating(OPDI_DTYPE(b)) || opdi_is_complex(self) || opdi_is_complex(a) || opdi_is_complex(b);
        if (value.tag == OPD_TAG_BOOL && (self->dtype != OPD_BOOL || a->dtype != OPD_BOOL || b->dtype != OPD_BOOL)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "Boolean %s only supported for Boolean results.", name);
        }
        if (value.tag == OPD_TAG_FLOAT && !floats) {
            return opd_fail(OPD_ERROR_ARGUMENT,
                            "For integral input tensors, argument %s must not be a floating point number.", name);
        }
    }
    if (opdi_addr_is_plain(self, a, b, beta, alpha)) {
        return opd_return_tensor(call, opdi_addr_plain(call, self, a, b));
    }
    opd_tensor *output = opdi_scale(opd_outer(a, b), alpha);
    if (self->dtype == OPD_BOOL && a->dtype == OPD_BOOL && b->dtype == OPD_BOOL) {
        output = opd_mul(opd_outer(a, b), opd_tensor_wrapped_number(opd_value_bool(opdi_number_f64(alpha) != 0)));
        if (opdi_number_f64(beta) != 0) { output = opd_logical_or(output, self); }
        return opd_return_tensor(call, output);
    }
    if (!opdi_number_is_zero(beta)) { output = opd_add(opdi_scale(self, beta), output); }
    return opd_return_tensor(call, output);
}
OPDI_COLD_BEGIN
/* opd_addr: beta * self + alpha * outer(vec1, vec2) */
OPDI_OP(addr) {
    op->schema = "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor";
    op->composite = opdi_addr_kernel;
    op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU;
    op->inplace = "addr_"; op->out = "addr.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3], [2], [3]; [3], [2], [3], beta=0.5, alpha=2";
}

//== matmul, linear ====================================================================================================

/* Let t1 be the operand with more dims, and t2 the other one.  Returns true if matmul treats the batch dims and the
   rows of t1 as one dim (at::native::should_fold): if this needs no copy, or if t2 requires grad or is in blocks. */
static bool opdi_matmul_folds(const opd_tensor *a, const opd_tensor *b) {
    const bool larger = a->ndim >= b->ndim;
    const opd_tensor *t1 = larger ? a : b, *t2 = larger ? b : a;
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS];
    int ndim = t1->ndim;
    if (ndim < 3 || t2->ndim > 2) { return false; }
    if (opdi_is_block(t2->dtype)) { return larger; }
    if (opd_tensor_requires_grad(t2)) { return true; }
    if (a->ndim == 2) { return false; }
    if (t1->numel == 0) { return true; }
    memcpy(sizes, opdi_sizes(t1), sizeof(int64_t) * (size_t)ndim);
    memcpy(strides, opdi_strides(t1), sizeof(int64_t) * (size_t)ndim);
    if (!larger) {
        sizes[ndim - 2] = opdi_sizes(t1)[ndim - 1];
        sizes[ndim - 1] = opdi_sizes(t1)[ndim - 2];
        strides[ndim - 2] = opdi_strides(t1)[ndim - 1];
        strides[ndim - 1] = opdi_strides(t1)[ndim - 2];
    }
    for (int dim = 0; dim < ndim - 2; dim++) {
        if (strides[dim] != strides[dim + 1] * sizes[dim + 1]) { return false; }
    }
    return true;
}
static opd_tensor *opdi_matmul_fold(opd_tensor *a, opd_tensor *b) {
    const bool larger = a->ndim >= b->ndim;
    opd_tensor *t1 = larger ? a : opdi_mt(b), *t2 = larger ? b : a->ndim == 2 ? opdi_mt(a) : a;
    int64_t sizes[OPD_MAX_DIMS], two[2];
    if (!t1 || !t2) { return NULL; }
    int count = t1->ndim;
    memcpy(sizes, opdi_sizes(t1), sizeof(int64_t) * (size_t)count);
    two[1] = sizes[count - 1];
    for (two[0] = 1, count = 0; count < t1->ndim - 1; count++) { two[0] *= sizes[count]; }
    t1 = opdi_reshape_to(t1, two, 2);
    if (t2->ndim == 1) { return opdi_reshape_to(opd_mv(t1, t2), sizes, count); }
    sizes[count] = opdi_sizes(t2)[1];
    opd_tensor *output = opdi_reshape_to(opd_mm(t1, t2), sizes, count + 1);
    return larger ? output : opdi_mt(output);
}
/* Returns the product of a and b, whose batch dims are broadcast against each other, by one call of bmm.  A vector is a
   row as a, and a column as b.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_matmul_batches(opd_tensor *a, opd_tensor *b) {
    opd_tensor *in[2];
    int64_t sizes[OPD_MAX_DIMS], one[OPD_MAX_DIMS], three[3], batch = 1;
    int ndim = 0;
    in[0] = a->ndim == 1 ? opdi_unsqueeze_at(a, 0) : a;
    in[1] = b->ndim == 1 ? opdi_unsqueeze_at(b, 1) : b;
    if (!in[0] || !in[1]) { return NULL; }
    for (int k = 0; k < 2; k++) {
        opdi_number fake;                         /* gets only the batch dims of the tensor */
        memset(&fake, 0, sizeof fake);
        fake.t.ndim = (uint8_t)(in[k]->ndim - 2);
        fake.t.dims = opdi_sizes(in[k]);
        if (opdi_broadcast_into(sizes, &ndim, &fake.t) != 0) { return NULL; }
    }
    for (int dim = 0; dim < ndim; dim++) { batch = opdi_size_times(batch, sizes[dim]); }
    for (int k = 0; k < 2; k++) {
        const int dims_count = in[k]->ndim;
        const bool turned = opdi_is_block(in[k]->dtype) && in[k]->numel && opdi_block_row_dim(in[k]) == dims_count - 2;
        if (turned && !(in[k] = opdi_mt(in[k]))) { return NULL; }    /* a copy has blocks along the same dim */
        memcpy(one, sizes, sizeof(int64_t) * (size_t)ndim);
        three[0] = batch;
        one[ndim] = three[1] = opdi_sizes(in[k])[dims_count - 2];
        one[ndim + 1] = three[2] = opdi_sizes(in[k])[dims_count - 1];
        in[k] = opdi_reshape_to(opdi_expand_to(in[k], one, ndim + 2), three, 3);
        if (in[k] && turned) { in[k] = opdi_mt(in[k]); }
        if (!in[k]) { return NULL; }
    }
    opd_tensor *output = opd_bmm(in[0], in[1]);
    int dim = ndim;
    if (a->ndim > 1) { sizes[dim++] = opd_size(a, -2); }
    if (b->ndim > 1) { sizes[dim++] = opd_size(b, -1); }
    return opdi_reshape_to(output, sizes, dim);
}
static int opdi_matmul_kernel(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1), *output;
    if (a->ndim == 0 || b->ndim == 0) {
        return opd_fail(OPD_ERROR_SHAPE, "both arguments to matmul need to be at least 1D, but they are %dD and %dD",
                        a->ndim, b->ndim);
    }
    if (a->ndim <= 2 && b->ndim <= 2) {
        if (a->ndim == 1 && b->ndim == 1) { output = opd_dot(a, b); }
        else if (b->ndim == 1) { output = opd_mv(a, b); }
        else if (a->ndim == 1) { output = opdi_squeeze_at(opd_mm(opdi_unsqueeze_at(a, 0), b), 0); }
        else { output = opd_mm(a, b); }
    }
    else if (opdi_matmul_folds(a, b)) { output = opdi_matmul_fold(a, b); }
    else { output = opdi_matmul_batches(a, b); }
    return opd_return_tensor(call, output);
}
static int opdi_matmul_batch(opd_call *call) {
    const int na = call->args[0].u.t->ndim, nb = call->args[1].u.t->ndim;
    return na && nb && na <= 2 && nb <= 2 && (na == 2 || nb == 1) ? opdi_product_batch(call, na, nb, false)
        : opd_batch_matmul(call);
}
/* opd_matmul: the product of vectors, matrices or batches of matrices, whose batch dims are broadcast */
OPDI_OP(matmul) {
    op->schema = "matmul(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_matmul_kernel;
    op->vmap = opdi_matmul_batch; op->autocast = OPD_AUTOCAST_LOWER; op->flops = opdi_flops_product;
    op->out = "matmul.out";
    op->cases = "[3], [3]; [2,3], [3]; [3], [3,2]; [2,3], [3,4]; [2,2,3], [3,4]; [2,3], [2,3,4]; [2,1,2,3], [3,3,2]";
}

/* linear: multiplies input by the transposed weight and adds bias.  Uses addmm if input has two dims, or if it has
   three and is contiguous, else matmul and add. */
static int opdi_linear_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0), *weight = opd_arg_tensor(call, 1), *b = opd_arg_tensor(call, 2);
    if (weight->ndim > 2) {
        return opd_fail(OPD_ERROR_SHAPE, "t() expects a tensor with <= 2 dimensions, but self is %dD", weight->ndim);
    }
    opd_tensor *wt = weight->ndim == 2 ? opdi_mt(weight) : weight;
    if (b && input->ndim == 2 && weight->ndim == 2) { return opd_return_tensor(call, opd_addmm(b, input, wt)); }
    if (b && input->ndim == 3 && weight->ndim == 2 && b->ndim == 1 && opd_is_contiguous(input)) {
        int64_t two[2], three[3];
        three[0] = opdi_sizes(input)[0];
        three[1] = opdi_sizes(input)[1];
        three[2] = opdi_sizes(weight)[0];
        two[0] = three[0] * three[1];
        two[1] = opdi_sizes(input)[2];
        return opd_return_tensor(call, opdi_reshape_to(opd_addmm(b, opdi_reshape_to(input, two, 2), wt), three, 3));
    }
    opd_tensor *output = opd_matmul(input, wt);
    return opd_return_tensor(call, b ? opd_add(output, b) : output);
}
/* Batches linear if all examples share weight and bias: the examples are one more dim of input.  Other cases are
   decomposed. */
static int opdi_linear_batch(opd_call *call) {
    int dim[3];
    opd_tensor *tensors[3];
    for (int i = 0; i < 3; i++) { tensors[i] = opd_batch_arg(call, i, &dim[i]); }
    if (dim[1] >= 0 || dim[2] >= 0 || tensors[0]->ndim < 2 || tensors[1]->ndim != 2) {
        return opd_batch_decompose(call);
    }
    return opd_batch_return(call, opd_linear(opd_batch_front(tensors[0], dim[0]), tensors[1], tensors[2]), 0);
}
/* opd_linear(input, weight, bias): the product of input and the transposed weight, plus bias */
OPDI_OP(linear) {
    op->schema = "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor";
    op->composite = opdi_linear_kernel;
    op->vmap = opdi_linear_batch; op->autocast = OPD_AUTOCAST_LOWER; op->flops = opdi_flops_product;
    op->out = "linear.out";
    op->cases = "[2,3], [4,3], [4]; [2,2,3], [4,3], [4]; [2,3], [4,3]";
}
OPDI_COLD_END
