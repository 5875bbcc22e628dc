#include "../ops.h"

//== complex tensors as pairs of real numbers ==========================================================================
//
//  conj of a complex tensor is a view that is conjugated when it is read; imag of such a view is a view that is negated
//  when it is read.  These views have the dispatch key Conjugate or Negative.  The fallback of this key
//  (opdi_lazy_fallback) passes computed copies to each kernel that reads such a view.

static int opdi_view_as_real_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (!opd_dtype_is_complex((opd_scalar_type)self->dtype)) {
        return opd_fail(OPD_ERROR_DTYPE, "view_as_real is only supported for complex tensors");
    }
    if (opd_tensor_is_conj(self)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "view_as_real doesn't work on unresolved conjugated tensors. Call "
                        "opd_resolve_conj first; its result does not share memory with self.");
    }
    return opd_return_tensor(call, opdi_pairs_of(self));
}
/* view_as_complex: returns a view of a float tensor [.., 2] of real and imaginary parts as a complex tensor [..].  The
   last stride must be 1; the other strides and the offset must be even. */
static int opdi_view_as_complex_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const int last = self->ndim - 1;
    opdi_geometry geometry;
    if (self->dtype != OPD_FLOAT32 && self->dtype != OPD_FLOAT64 && self->dtype != OPD_FLOAT16) {
        return opd_fail(OPD_ERROR_DTYPE, "view_as_complex is only supported for half, float and double tensors, "
                        "but got a tensor of scalar type: %s", opd_dtype_name((opd_scalar_type)self->dtype));
    }
    if (last < 0) { return opd_fail(OPD_ERROR_SHAPE, "Input tensor must have one or more dimensions"); }
    if (opdi_sizes(self)[last] != 2) {
        return opd_fail(OPD_ERROR_SHAPE, "Tensor must have a last dimension of size 2");
    }
    if (opdi_strides(self)[last] != 1) {
        return opd_fail(OPD_ERROR_SHAPE, "Tensor must have a last dimension with stride 1");
    }
    opdi_geometry_of(&geometry, self);
    opdi_geometry_remove(&geometry, last);
    for (int dim = 0; dim < geometry.ndim; dim++) {
        if (geometry.strides[dim] % 2) {
            return opd_fail(OPD_ERROR_SHAPE, "Tensor must have a stride divisible by 2 for all but last dimension");
        }
        geometry.strides[dim] /= 2;
    }
    if (opd_tensor_offset(self) % 2) {
        return opd_fail(OPD_ERROR_SHAPE, "Tensor must have a storage_offset divisible by 2");
    }
    return opd_return_tensor(call, opdi_view_retyped(self, &geometry, self->dtype == OPD_FLOAT16 ? OPD_COMPLEX32
                             : self->dtype == OPD_FLOAT32 ? OPD_COMPLEX64 : OPD_COMPLEX128));
}
/* Computes the gradient of view_as_real: views grad as complex numbers.  If grad is batched, instead joins its real and
   imaginary parts by opd_complex.  Only then are the tangents of views of these parts found if each example is a single
   number. */
static int opdi_view_as_real_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    if (!grad || !(grad->flags & OPDI_BATCHED)) {
        return opd_bw_return(bw, 0, opd_view_as_complex(opd_contiguous(grad)));
    }
    opd_tensor *const part = opd_select(grad, -1, 0);
    return opd_bw_return(bw, 0, opd_complex(part, opd_select(grad, -1, 1)));
}
static int opdi_view_as_complex_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_view_as_real(opd_bw_grad(bw, 0)));
}
/* opd_view_as_real: complex numbers as a real tensor with a last dim of size 2, without a copy */
OPDI_OP(view_as_real) {
    op->schema = "view_as_real(Tensor(a) self) -> Tensor(a)";
    opdi_pairs_noted();
    op->any = opdi_view_as_real_kernel; op->backward = opdi_view_as_real_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPDI_OPTAG_CONJUGATES;
    op->cases = "";
}
/* opd_view_as_complex: a real tensor with a last dim of size 2 as complex numbers, without a copy */
OPDI_OP(view_as_complex) {
    op->schema = "view_as_complex(Tensor(a) self) -> Tensor(a)";
    opdi_pairs_noted();
    op->any = opdi_view_as_complex_kernel; op->backward = opdi_view_as_complex_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPDI_OPTAG_CONJUGATES; op->autocast = OPD_AUTOCAST_FP32_CPU;
    op->cases = "[3,2]";
}

static int opdi_conj_copy_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_tensor *out = opdi_result_like(call, self, (opd_scalar_type)self->dtype, opd_tensor_device(self),
                                       OPDI_FORMAT_PRESERVE);
    if (!out || !out->data) { return out ? 0 : -1; }
    const opd_scalar_type work = self->dtype == OPD_COMPLEX128 ? OPD_COMPLEX128 : OPD_COMPLEX64;
    const opdi_loop loop = work == OPD_COMPLEX64 ? opdi_c64_conj : opdi_c128_conj;
    opd_tensor *pair[2] = {out, self};
    if (opdi_pairs_alike(pair, 1, work, work)) {
        opdi_pairs_run(loop, pair, 1);
        return 0;
    }
    opd_tensor *tensor = opdi_is_complex(self) ? opdi_random_staging(out, work) : out;
    if (!tensor || opdi_copy_into(tensor, self)) { return -1; }
    pair[0] = pair[1] = tensor;
    if (opdi_is_complex(tensor)) { opdi_pairs_run(loop, pair, 1); }
    return opdi_staging_store(out, tensor);
}
static int opdi_conj_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_conj(opd_bw_grad(bw, 0))); }
/* Computes _conj_physical on another device: copies argument 0 and negates the imaginary parts. */
static int opdi_conj_device_kernel(opd_call *call) {
    opd_tensor *out = opd_clone(opd_arg_tensor(call, 0));
    if (out && opd_dtype_is_complex(opd_dtype(out))) {
        opd_tensor *pairs = opdi_pairs_of(out);
        opd_tensor *im = pairs ? opdi_view(pairs, opdi_sizes(pairs), opdi_strides(pairs), out->ndim, 1) : NULL;
        if (!opd_copy_(im, opd_neg(im))) { return -1; }
    }
    return opd_return_tensor(call, out);
}
/* opd_conj_copy: a copy with complex conjugate elements */
OPDI_OP(_conj_physical) {
    op->schema = "_conj_physical(Tensor self) -> Tensor";
    op->cpu = opdi_conj_copy_kernel; op->fake = op->cpu; op->any = opdi_conj_device_kernel;
    op->backward = opdi_conj_backward;
    op->vmap = OPD_BATCH_POINTWISE;
    op->flops = opdi_flops_none;
    op->tags = OPDI_OPTAG_CONJUGATES | OPDI_OPTAG_OUT_EXACT;
    op->out = "_conj_physical.out";
    op->cases = "[2,3]";
}

/* Returns a view of argument 0 with the same keys, except that `key`, one of OPDI_LAZY_KEYS, is added if argument 0
   does not have it, else removed. */
static int opdi_toggle_lazy_key(opd_call *call, uint64_t key) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_tensor *view = opdi_view(self, opdi_sizes(self), opdi_strides(self), self->ndim, 0);
    if (view) { opdi_set_lazy(view, view->functionality ^ key); }
    return opd_return_tensor(call, view);
}
static int opdi_conj_view_kernel(opd_call *call) {
    return opdi_toggle_lazy_key(call, opdi_is_complex(opd_arg_tensor(call, 0)) ? OPD_BIT_OF(OPD_F_CONJUGATE) : 0);
}
static int opdi_neg_view_kernel(opd_call *call) {
    if (opd_dtype(opd_arg_tensor(call, 0)) == OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "Negation, the `-` operator, on a bool tensor is not supported.");
    }
    return opdi_toggle_lazy_key(call, OPD_BIT_OF(OPD_F_NEGATIVE));
}
/* opd_conj_view: a view of a complex tensor that is conjugated when it is read */
OPDI_OP(_conj) {
    op->schema = "_conj(Tensor(a) self) -> Tensor(a)";
    op->any = opdi_conj_view_kernel; op->backward = opdi_conj_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPDI_OPTAG_CONJUGATES;
    op->cases = "[2,3]";
}
static int opdi_neg_view_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_neg(opd_bw_grad(bw, 0)));
}
/* opd__neg_view: a view that is negated when it is read */
OPDI_OP(_neg_view) {
    op->schema = "_neg_view(Tensor(a) self) -> Tensor(a)";
    op->any = opdi_neg_view_kernel; op->backward = opdi_neg_view_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->cases = "[2,3]";
}
static int opdi_neg_view_copy_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_contiguous(opd_neg(opd_arg_tensor(call, 0))));
}
static int opdi_conj_copied_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_value rows = opd_value_int(OPDI_FORMAT_CONTIGUOUS);
    if (!opdi_is_complex(self)) { return opd_return_tensor(call, opd_clone_full(self, rows)); }
    return opd_return_tensor(call, opd_clone_full(opd_resolve_conj(opd_conj(self)), rows));
}
/* opd_view_as_real_copy: view_as_real that returns a copy */
OPDI_OP(view_as_real_copy) {
    op->schema = "view_as_real_copy(Tensor self) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(view_as_real);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "view_as_real_copy.out";
    op->cases = "";
}
/* opd_view_as_complex_copy: view_as_complex that returns a copy */
OPDI_OP(view_as_complex_copy) {
    op->schema = "view_as_complex_copy(Tensor self) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(view_as_complex);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "view_as_complex_copy.out";
    op->cases = "[3,2]";
}
/* opd__conj_copy: conj that returns a copy */
OPDI_OP(_conj_copy) {
    op->schema = "_conj_copy(Tensor self) -> Tensor";
    op->composite = opdi_conj_copied_kernel;
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "_conj_copy.out";
    op->cases = "[2,3]";
}
/* opd__neg_view_copy: a copy with negated elements */
OPDI_OP(_neg_view_copy) {
    op->schema = "_neg_view_copy(Tensor self) -> Tensor";
    op->composite = opdi_neg_view_copy_kernel;
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "_neg_view_copy.out";
    op->cases = "[2,3]";
}

/* conj: returns a view of a complex tensor that is conjugated when it is read; returns a real tensor itself. */
static int opdi_conj_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opdi_is_complex(self) ? opd_conj_view(self) : self);
}
static int opdi_conj_physical_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opdi_is_complex(self) ? opd_conj_copy(self) : self);
}
/* opd_conj: the complex conjugate: a view that is conjugated when it is read; self if it is real */
OPDI_OP(conj) {
    op->schema = "conj(Tensor(a) self) -> Tensor(a)";
    op->composite = opdi_conj_kernel;
    op->cases = "[2,3]";
}
/* opd_conj_physical: a copy with complex conjugate elements; self if it is real */
OPDI_OP(conj_physical) {
    op->schema = "conj_physical(Tensor self) -> Tensor";
    op->composite = opdi_conj_physical_kernel;
    op->tags = OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING | OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_EXACT | OPDI_OPTAG_OUT_PART;
    op->inplace = "conj_physical_"; op->out = "conj_physical.out";
    op->cases = "[2,3]";
}

/* real and imag: return views of the real and imaginary parts.  real also accepts real tensors and returns them. */
static int opdi_real_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const bool real = strcmp(call->op->schema->name, "real") == 0;
    if (opd_tensor_is_conj(self)) {
        opd_tensor *part = opd_select(opd_view_as_real(opd_conj_view(self)), -1, real ? 0 : 1);
        return opd_return_tensor(call, real ? part : opd__neg_view(part));
    }
    if (opd_dtype_is_complex((opd_scalar_type)self->dtype)) {
        return opd_return_tensor(call, opd_select(opd_view_as_real(self), -1, real ? 0 : 1));
    }
    return real ? opd_return_tensor(call, self)
        : opd_fail(OPD_ERROR_DTYPE, "imag is not implemented for tensors with non-complex dtypes.");
}
static int opdi_positive_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (self->dtype == OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "The `+` operator, on a bool tensor is not supported.");
    }
    return opd_return_tensor(call, self);
}
/* opd_real: the real part, a view; self if it is real */
OPDI_OP(real) {
    op->schema = "real(Tensor(a) self) -> Tensor(a)";
    op->composite = opdi_real_kernel;
    op->cases = "[2,3]";
}
/* opd_imag: the imaginary part, a view */
OPDI_OP(imag) {
    op->schema = "imag(Tensor(a) self) -> Tensor(a)";
    op->composite = opdi_real_kernel;
    op->cases = "";
}
static int opdi_resolve_conj_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_tensor_is_conj(self) ? opd_clone(self) : self);
}
static int opdi_resolve_neg_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_tensor_is_neg(self) ? opd_clone(self) : self);
}
/* opd_resolve_conj: if self is a view that is conjugated when read, a conjugated copy, else self */
OPDI_OP(resolve_conj) {
    op->schema = "resolve_conj(Tensor(a) self) -> Tensor(a)";
    op->composite = opdi_resolve_conj_kernel;
    op->cases = "[2,3]";
}
/* opd_resolve_neg: if self is a view that is negated when read, a negated copy, else self */
OPDI_OP(resolve_neg) {
    op->schema = "resolve_neg(Tensor(a) self) -> Tensor(a)";
    op->composite = opdi_resolve_neg_kernel;
    op->cases = "[2,3]";
}
/* angle: returns the angle of complex numbers.  For real numbers, returns pi if they are negative, 0 if not, and NaN
   for NaN. */
static int opdi_angle_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = (opd_scalar_type)self->dtype;
    if (opdi_is_complex(self)) {
        opd_tensor *const imaginary = opd_imag(self);
        return opd_return_tensor(call, opd_atan2(imaginary, opd_real(self)));
    }
    opd_tensor *below = opd_to_dtype(opd_lt_Scalar(self, opd_value_int(0)),
                                     opd_dtype_is_integral(dtype, true) ? OPD_FLOAT32 : dtype);
    opd_tensor *out = opd_mul_Scalar(below, opd_value_double(3.14159265358979323846));
    return opd_return_tensor(call, opd_dtype_is_integral(dtype, true) ? out
                             : opd_where_self(opd_isnan(self), opd_floor(self), out));   /* NaN, with gradient 0 */
}
/* Returns a complex tensor with the real parts pair[0] and the imaginary parts pair[1], which have the same sizes.  Its
   dims lie in memory in the same order as the dims of the parts.  On failure, returns NULL. */
static opd_tensor *opdi_complex_joined(opd_tensor **pair) {
    const int ndim = pair[0]->ndim;
    int perm[OPD_MAX_DIMS];
    int64_t outward[OPD_MAX_DIMS], back[OPD_MAX_DIMS];
    bool rows = true;
    opdi_dims_order(pair, 2, opdi_sizes(pair[0]), ndim, perm);
    for (int i = 0; i < ndim; i++) {
        outward[i] = perm[ndim - 1 - i];
        back[outward[i]] = i;
        rows = rows && outward[i] == i;
    }
    for (int i = 0; i < 2 && !rows; i++) { pair[i] = opd_permute(pair[i], opd_ints_of(outward, ndim)); }
    opd_tensor *joined = opd_ok() ? opd_view_as_complex(opd_stack(opd_tensors_of(pair, 2), -1)) : NULL;
    return rows || !joined ? joined : opd_permute(joined, opd_ints_of(back, ndim));
}
/* complex or, if `polar` is true, polar: makes a complex tensor from two tensors that are broadcast: real and imaginary
   parts, or absolute values and angles.  Real and imaginary parts are broadcast by subtracting zeros, which keeps -0.
   Returns 0, or -1 and sets an error. */
static int opdi_complex_of_parts(opd_call *call, bool polar) {
    opd_tensor *first = opd_arg_tensor(call, 0), *second = opd_arg_tensor(call, 1), *pair[2];
    for (int i = 0; i < 2; i++) {
        const opd_scalar_type dtype = (opd_scalar_type)(i ? second : first)->dtype;
        if (dtype != OPD_FLOAT32 && dtype != OPD_FLOAT64) {
            return opd_fail(OPD_ERROR_DTYPE, "Expected both inputs to be float16, float32 or float64 tensors but got "
                            "%s and %s", opd_dtype_name((opd_scalar_type)first->dtype),
                            opd_dtype_name((opd_scalar_type)second->dtype));
        }
    }
    if (first->dtype != second->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "Expected object of scalar type %s but got scalar type %s for second argument",
                        opd_dtype_name((opd_scalar_type)first->dtype),
                        opd_dtype_name((opd_scalar_type)second->dtype));
    }
    const bool alike = opdi_same_sizes(first, second);
    pair[0] = polar ? opd_mul(first, opd_cos(second)) : alike ? first : opd_sub(first, opd_zeros_like(second));
    pair[1] = polar ? opd_mul(first, opd_sin(second)) : alike ? second : opd_sub(second, opd_zeros_like(first));
    return opd_return_tensor(call, opd_ok() ? opdi_complex_joined(pair) : NULL);
}
static int opdi_complex_kernel(opd_call *call) { return opdi_complex_of_parts(call, false); }
static int opdi_polar_kernel(opd_call *call) { return opdi_complex_of_parts(call, true); }
static int opdi_isreal_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opdi_is_complex(self) ? opd_eq_Scalar(opd_imag(self), opd_value_int(0))
                             : opd_eq(opd_zeros_like(self), opd_zeros_like(self)));
}
/* opd_angle: the angle of complex numbers; for real numbers pi where they are negative, else 0 */
OPDI_OP(angle) {
    op->schema = "angle(Tensor self) -> Tensor";
    op->composite = opdi_angle_kernel;
    op->tags = OPD_OPTAG_POINTWISE | OPDI_OPTAG_OUT_PART;
    op->out = "angle.out";
    op->cases = "[2,3]; [2,3]i5";
}
/* opd_complex: complex numbers with these real and imaginary parts */
OPDI_OP(complex) {
    op->schema = "complex(Tensor real, Tensor imag) -> Tensor";
    op->composite = opdi_complex_kernel;
    op->tags = OPDI_OPTAG_OUT_EXACT;
    op->out = "complex.out";
    op->cases = "[2,3], [2,3]; [2,3], [3]";
}
/* opd_polar: complex numbers with these absolute values and angles */
OPDI_OP(polar) {
    op->schema = "polar(Tensor abs, Tensor angle) -> Tensor";
    op->composite = opdi_polar_kernel;
    op->autocast = OPD_AUTOCAST_FP32_CPU; op->tags = OPDI_OPTAG_OUT_EXACT;
    op->out = "polar.out";
    op->cases = "[2,3]+, [2,3]";
}
/* opd_isreal: true where the imaginary part is 0 */
OPDI_OP(isreal) {
    op->schema = "isreal(Tensor self) -> Tensor";
    op->composite = opdi_isreal_kernel;
    op->cases = "[2,3]; [2,3]i5";
}
/* opd_positive: self, unchanged; fails for bool */
OPDI_OP(positive) {
    op->schema = "positive(Tensor(a) self) -> Tensor(a)";
    op->composite = opdi_positive_kernel;
    op->tags = OPD_OPTAG_POINTWISE;
    op->cases = "[2,3]";
}
