#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:fft_cards  the operators torch.fft.* for Fourier transforms
//----------------------------------------------------------------------------------------------------------------------

//== the torch.fft operators: fft, rfft, hfft, their inverses, over one or several dims ================================
//
//  These are composites: they cut the input or fill it up with zeros to the number of points, then run one of the
//  transforms _fft_r2c, _fft_c2r and _fft_c2c.  A Hermitian input (equal to the conjugate of its mirror image) is the
//  transform of real numbers, so hfft runs irfft's transform in the other direction.

/* The kinds of transforms, in the order of fft, ifft, rfft, irfft, hfft and ihfft. */
enum {
    OPDI_FFT_FORWARD, OPDI_FFT_INVERSE, OPDI_FFT_REAL, OPDI_FFT_TO_REAL, OPDI_FFT_HERMITE, OPDI_FFT_FROM_HERMITE
};
/* opdi_fft_from_half returns true for kinds of transforms whose input has only half of the last dim; opdi_fft_to_half,
   for kinds whose result has only half of it. */
static bool opdi_fft_from_half(int kind) { return kind == OPDI_FFT_TO_REAL || kind == OPDI_FFT_HERMITE; }
static bool opdi_fft_to_half(int kind) { return kind == OPDI_FFT_REAL || kind == OPDI_FFT_FROM_HERMITE; }
static bool opdi_fft_is_inverse(int kind) {
    return kind == OPDI_FFT_INVERSE || kind == OPDI_FFT_TO_REAL || kind == OPDI_FFT_FROM_HERMITE;
}
/* Returns the factor that argument `norm` asks for, as the number that _fft_c2c takes.  0: no factor; 1: one over
   the root of the number of points; 2: one over the number of points.  On failure, returns -1 and sets an error. */
static int opdi_fft_norm(opd_call *call, int kind) {
    const char *norm = opd_arg_is_none(call, 3) ? "backward" : opd_arg_str(call, 3);
    const bool inverse = opdi_fft_is_inverse(kind);
    if (strcmp(norm, "backward") == 0) { return inverse ? 2 : 0; }
    if (strcmp(norm, "forward") == 0) { return inverse ? 0 : 2; }
    return strcmp(norm, "ortho") == 0 ? 1
        : opd_fail(OPD_ERROR_ARGUMENT, "Invalid normalization mode: \"%s\"", norm);
}
/* Returns self in a dtype that a transform of this kind accepts: integers become float32, and real numbers become
   complex if the transform needs complex input.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_fft_promoted(opd_tensor *self, int kind) {
    if (opd_dtype_is_integral((opd_scalar_type)self->dtype, true)) { self = opd_to_dtype(self, OPD_FLOAT32); }
    if (!self) { return NULL; }
    if (opdi_fft_to_half(kind) && opd_dtype_is_complex((opd_scalar_type)self->dtype)) {
        opd_fail(OPD_ERROR_DTYPE, "%s expects a real input tensor, but got %s",
                 kind == OPDI_FFT_REAL ? "rfft" : "ihfft", opd_dtype_name((opd_scalar_type)self->dtype));
        return NULL;
    }
    if (!opd_dtype_is_complex((opd_scalar_type)self->dtype) && opdi_fft_dtype((opd_scalar_type)self->dtype, false)) {
        return NULL;
    }
    return opdi_fft_from_half(kind) ? opd_to_dtype(self, opd_promote_types(OPDI_DTYPE(self), OPD_COMPLEX64)) : self;
}
/* Returns self with `size` elements along dim `dim`: shortened, or filled up with zeros. */
static opd_tensor *opdi_fft_resized(opd_tensor *self, int dim, int64_t size) {
    int64_t pad[2 * OPD_MAX_DIMS + 2];
    if (!self || opdi_sizes(self)[dim] >= size) { return self ? opd_narrow(self, dim, 0, size) : NULL; }
    const bool pairs = opd_dtype_is_complex((opd_scalar_type)self->dtype);
    const int count = 2 * (self->ndim - dim + pairs);
    for (int i = 0; i < count; i++) { pad[i] = 0; }
    pad[count - 1] = size - opdi_sizes(self)[dim];
    self = opd_constant_pad_nd(pairs ? opd_view_as_real(self) : self, opd_ints_of(pad, count));
    return pairs ? opd_view_as_complex(self) : self;
}
/* Returns the transform of self, which already has the right sizes, along dims[count].  `points` is the number of
   points of the last of these dims. */
static opd_tensor *opdi_fft_run(opd_tensor *self, const int64_t *dims, int64_t count, int64_t points, int kind,
                                int norm) {
    int64_t order[OPD_MAX_DIMS];
    const opd_ints all = opd_ints_of(dims, count), rest = opd_ints_of(dims, count - 1);
    const opd_ints last = opd_ints_of(dims + OPDI_MAX(count - 1, (int64_t)0), 1);
    const bool inverse = opdi_fft_is_inverse(kind);
    switch (kind) {
    case OPDI_FFT_REAL: return opd_fft_r2c(self, all, norm, true);
    case OPDI_FFT_TO_REAL: return opd_fft_c2r(self, all, norm, points);
    case OPDI_FFT_HERMITE:
        if (count > 1) { self = opd_fft_c2c(self, rest, norm, true); }
        return opd_fft_c2r(opd_conj_physical(self), last, norm, points);
    case OPDI_FFT_FROM_HERMITE:
        self = opd_conj_physical(opd_fft_r2c(self, last, norm, true));
        return count > 1 ? opd_fft_c2c(self, rest, norm, false) : self;
    default: break;
    }
    if (!count) { self = opd_to_dtype(self, opd_promote_types((opd_scalar_type)self->dtype, OPD_COMPLEX64)); }
    if (!self) { return NULL; }
    if (opd_dtype_is_complex((opd_scalar_type)self->dtype)) { return opd_fft_c2c(self, all, norm, !inverse); }
    memcpy(order, dims, (size_t)count * sizeof *order);
    opdi_fft_sort(order, count, opdi_strides(self));      /* the result is laid out as that of complex numbers */
    self = opd_fft_r2c(self, opd_ints_of(order, count), norm, false);
    return inverse ? opd_conj_physical(self) : self;
}
/* Runs a transform of the call's self along dims[count].  points[count] has the number of elements used along each
   dim (-1: all of them).  Returns 0, or -1 and sets an error. */
static int opdi_fft_of(opd_call *call, const int64_t *dims, const int64_t *points, int64_t count, int kind) {
    opd_tensor *self = opdi_fft_promoted(opd_arg_tensor(call, 0), kind);
    const int norm = self ? opdi_fft_norm(call, kind) : -1;
    int64_t total = 0;
    uint64_t seen = 0;
    if (norm < 0) { return -1; }
    for (int64_t i = 0; i < count; i++) {
        const int64_t have = opdi_sizes(self)[dims[i]];
        const bool half = i == count - 1 && opdi_fft_from_half(kind);
        if (seen >> dims[i] & 1) { return opd_fail(OPD_ERROR_ARGUMENT, "FFT dims must be unique"); }
        seen |= (uint64_t)1 << dims[i];
        total = points[i] != -1 ? points[i] : half ? 2 * (have - 1) : have;
        if (total < 1) {
            return opd_fail(OPD_ERROR_SHAPE, "Invalid number of data points (%lld) specified", (long long)total);
        }
        if (points[i] != -1 && !(self = opdi_fft_resized(self, (int)dims[i], half ? total / 2 + 1 : total))) {
            return -1;
        }
    }
    if (!count && (opdi_fft_from_half(kind) || opdi_fft_to_half(kind))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s must transform at least one axis", call->op->schema->name);
    }
    return opd_return_tensor(call, opdi_fft_run(self, dims, count, total, kind, norm));
}
static int opdi_fft_one(opd_call *call, int kind) {
    const int64_t points = opd_arg_is_none(call, 1) ? -1 : opd_arg_int(call, 1);
    const int dim = opdi_dim_of(opd_arg_int(call, 2), opd_arg_tensor(call, 0)->ndim);
    const int64_t along = dim;
    if (dim < 0) { return -1; }
    if (opd_arg_tensor(call, 0)->ndim == 0) { return opdi_no_dims_fail(opd_arg_int(call, 2)); }
    if (!opd_arg_is_none(call, 1) && points < 1) {
        return opd_fail(OPD_ERROR_SHAPE, "Invalid number of data points (%lld) specified", (long long)points);
    }
    return opdi_fft_of(call, &along, &points, 1, kind);
}
/* Runs a transform over the dims in argument dim.  If dim is None, uses as many of the last dims as argument s has
   numbers; if s is None too, all dims.  Returns 0, or -1 and sets an error. */
static int opdi_fft_many(opd_call *call, int kind) {
    const opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_ints given = opd_arg_ints(call, 1), named = opd_arg_ints(call, 2);
    const bool sized = !opd_arg_is_none(call, 1), some = !opd_arg_is_none(call, 2);
    const int64_t count = some ? named.n : sized ? given.n : self->ndim;
    int64_t dims[OPD_MAX_DIMS], points[OPD_MAX_DIMS];
    if (sized && some && given.n != named.n) {
        return opd_fail(OPD_ERROR_ARGUMENT, "When given, dim and shape arguments must have the same length");
    }
    if (count > self->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "Got shape with %lld values but input tensor only has %d dimensions.",
                        (long long)count, self->ndim);
    }
    for (int64_t i = 0; i < count; i++) {
        const int dim = opdi_dim_of(some ? named.data[i] : self->ndim - count + i, self->ndim);
        if (dim < 0) { return -1; }
        dims[i] = dim;
        points[i] = sized ? given.data[i] : -1;
        if (points[i] < 1 && points[i] != -1) {
            return opd_fail(OPD_ERROR_SHAPE, "Invalid number of data points (%lld) specified", (long long)points[i]);
        }
    }
    return opdi_fft_of(call, dims, points, count, kind);
}
OPDI_INTERNAL void opdi_fft_card(opd_op_desc *op, opd_kernel kernel, opd_autocast autocast) {
    op->composite = kernel;
    op->autocast = autocast;
}
static int opdi_fft_fft_kernel(opd_call *call) { return opdi_fft_one(call, OPDI_FFT_FORWARD); }
/* opd_fft_fft: Fourier transform along a dim */
OPDI_OP(fft_fft) {
    op->schema = "fft_fft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_fft_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_fft.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[6]; [2,5], 3, 0; [2,3], 4, 1, 'ortho'";
}
static int opdi_fft_ifft_kernel(opd_call *call) { return opdi_fft_one(call, OPDI_FFT_INVERSE); }
/* opd_fft_ifft: inverse of fft along a dim */
OPDI_OP(fft_ifft) {
    op->schema = "fft_ifft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_ifft_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_ifft.out";
    op->cases = "[6]; [2,5], 3, 0; [2,3], 4, 1, 'ortho'";
}
static int opdi_fft_rfft_kernel(opd_call *call) { return opdi_fft_one(call, OPDI_FFT_REAL); }
/* opd_fft_rfft: Fourier transform of real numbers along a dim; only one half, since the other half is its conjugate */
OPDI_OP(fft_rfft) {
    op->schema = "fft_rfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_rfft_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_rfft.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[6]; [2,5], 3, 0; [2,3], 4, 1, 'ortho'";
}
static int opdi_fft_irfft_kernel(opd_call *call) { return opdi_fft_one(call, OPDI_FFT_TO_REAL); }
/* opd_fft_irfft: inverse of rfft along a dim */
OPDI_OP(fft_irfft) {
    op->schema = "fft_irfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_irfft_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_irfft.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[6]; [2,5], 3, 0; [2,3], 4, 1, 'ortho'";
}
static int opdi_fft_hfft_kernel(opd_call *call) { return opdi_fft_one(call, OPDI_FFT_HERMITE); }
/* opd_fft_hfft: Fourier transform along a dim of input with Hermitian symmetry; the result is real */
OPDI_OP(fft_hfft) {
    op->schema = "fft_hfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_hfft_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_hfft.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[6]; [2,5], 3, 0; [2,3], 4, 1, 'ortho'";
}
static int opdi_fft_ihfft_kernel(opd_call *call) { return opdi_fft_one(call, OPDI_FFT_FROM_HERMITE); }
/* opd_fft_ihfft: inverse of hfft along a dim */
OPDI_OP(fft_ihfft) {
    op->schema = "fft_ihfft(Tensor self, SymInt? n=None, int dim=-1, str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_ihfft_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_ihfft.out";
    op->cases = "[6]; [2,5], 3, 0; [2,3], 4, 1, 'ortho'";
}
static int opdi_fft_fftn_kernel(opd_call *call) { return opdi_fft_many(call, OPDI_FFT_FORWARD); }
/* opd_fft_fft2: Fourier transform over two dims */
OPDI_OP(fft_fft2) {
    op->schema = "fft_fft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_fftn_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_fft2.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3,4]; [3,4], (2,5), (0,1), 'forward'";
}
static int opdi_fft_ifftn_kernel(opd_call *call) { return opdi_fft_many(call, OPDI_FFT_INVERSE); }
/* opd_fft_ifft2: inverse of fft over two dims */
OPDI_OP(fft_ifft2) {
    op->schema = "fft_ifft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_ifftn_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_ifft2.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3,4]; [3,4], (2,5), (0,1), 'forward'";
}
static int opdi_fft_rfftn_kernel(opd_call *call) { return opdi_fft_many(call, OPDI_FFT_REAL); }
/* opd_fft_rfft2: Fourier transform of real numbers over two dims; only one half of the last dim */
OPDI_OP(fft_rfft2) {
    op->schema = "fft_rfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_rfftn_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_rfft2.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3,4]; [3,4], (2,5), (0,1), 'forward'";
}
static int opdi_fft_irfftn_kernel(opd_call *call) { return opdi_fft_many(call, OPDI_FFT_TO_REAL); }
/* opd_fft_irfft2: inverse of rfft over two dims */
OPDI_OP(fft_irfft2) {
    op->schema = "fft_irfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_irfftn_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_irfft2.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3,4]; [3,4], (2,5), (0,1), 'forward'";
}
static int opdi_fft_hfftn_kernel(opd_call *call) { return opdi_fft_many(call, OPDI_FFT_HERMITE); }
/* opd_fft_hfft2: Fourier transform over two dims of input with Hermitian symmetry; the result is real */
OPDI_OP(fft_hfft2) {
    op->schema = "fft_hfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_hfftn_kernel, OPD_AUTOCAST_KEEP);
    op->out = "fft_hfft2.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3,4]; [3,4], (2,5), (0,1), 'forward'";
}
static int opdi_fft_ihfftn_kernel(opd_call *call) { return opdi_fft_many(call, OPDI_FFT_FROM_HERMITE); }
/* opd_fft_ihfft2: inverse of hfft over two dims */
OPDI_OP(fft_ihfft2) {
    op->schema = "fft_ihfft2(Tensor self, SymInt[1]? s=None, int[1] dim=[-2,-1], str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_ihfftn_kernel, OPD_AUTOCAST_KEEP);
    op->out = "fft_ihfft2.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[2,3,4]; [3,4], (2,5), (0,1), 'forward'";
}
/* opd_fft_fftn: Fourier transform over dims */
OPDI_OP(fft_fftn) {
    op->schema = "fft_fftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_fftn_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_fftn.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[3,4]; [2,3,4], (3,2); [2,3,4], None, (2,0), 'ortho'";
}
/* opd_fft_ifftn: inverse of fft over dims */
OPDI_OP(fft_ifftn) {
    op->schema = "fft_ifftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_ifftn_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_ifftn.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[3,4]; [2,3,4], (3,2); [2,3,4], None, (2,0), 'ortho'";
}
/* opd_fft_rfftn: Fourier transform of real numbers over dims; only one half of the last dim */
OPDI_OP(fft_rfftn) {
    op->schema = "fft_rfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_rfftn_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_rfftn.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[3,4]; [2,3,4], (3,2); [2,3,4], None, (2,0), 'ortho'";
}
/* opd_fft_irfftn: inverse of rfft over dims */
OPDI_OP(fft_irfftn) {
    op->schema = "fft_irfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_irfftn_kernel, OPD_AUTOCAST_FP32_CPU);
    op->out = "fft_irfftn.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[3,4]; [2,3,4], (3,2); [2,3,4], None, (2,0), 'ortho'";
}
/* opd_fft_hfftn: Fourier transform over dims of input with Hermitian symmetry; the result is real */
OPDI_OP(fft_hfftn) {
    op->schema = "fft_hfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_hfftn_kernel, OPD_AUTOCAST_KEEP);
    op->out = "fft_hfftn.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[3,4]; [2,3,4], (3,2); [2,3,4], None, (2,0), 'ortho'";
}
/* opd_fft_ihfftn: inverse of hfft over dims */
OPDI_OP(fft_ihfftn) {
    op->schema = "fft_ihfftn(Tensor self, SymInt[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_ihfftn_kernel, OPD_AUTOCAST_KEEP);
    op->out = "fft_ihfftn.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "[3,4]; [2,3,4], (3,2); [2,3,4], None, (2,0), 'ortho'";
}

/* Rolls each dim of argument `dim` by (size + more) / 2.  If `more` is 0, this is half of the size, rounded down.  If
   `more` is 1, it is half of the size, rounded up, which undoes the roll with `more` = 0.  Returns 0, or -1 and sets an
   error. */
static int opdi_fft_shift(opd_call *call, int64_t more) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const opd_ints named = opd_arg_ints(call, 1);
    const bool some = !opd_arg_is_none(call, 1);
    const int64_t count = some ? named.n : self->ndim;
    int64_t dims[OPD_MAX_DIMS], shifts[OPD_MAX_DIMS];
    if (count > OPD_MAX_DIMS) {
        return opd_fail(OPD_ERROR_ARGUMENT, "dim has %lld elements, more than a tensor has dimensions",
                        (long long)count);
    }
    if (count == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "`shifts` required"); }
    for (int64_t i = 0; i < count; i++) {
        const int dim = opdi_dim_of(some ? named.data[i] : i, self->ndim);
        if (dim < 0) { return -1; }
        dims[i] = dim;
        shifts[i] = self->ndim ? (opdi_sizes(self)[dim] + more) / 2 : 0;
    }
    return opd_return_tensor(call, self->ndim ? opd_roll(self, opd_ints_of(shifts, count),
                                                              opd_ints_of(dims, count)) : opd_clone(self));
}
static int opdi_fft_fftshift_kernel(opd_call *call) { return opdi_fft_shift(call, 0); }
static int opdi_fft_ifftshift_kernel(opd_call *call) { return opdi_fft_shift(call, 1); }
/* opd_fft_fftshift: moves the first element along dims to the middle */
OPDI_OP(fft_fftshift) {
    op->schema = "fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_fftshift_kernel, OPD_AUTOCAST_KEEP);
    op->cases = "[5]; [2,3], (1,); [3,4]";
}
/* opd_fft_ifftshift: undoes fft_fftshift */
OPDI_OP(fft_ifftshift) {
    op->schema = "fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor";
    opdi_fft_card(op, opdi_fft_ifftshift_kernel, OPD_AUTOCAST_KEEP);
    op->cases = "[5]; [2,3], (1,); [3,4]";
}
