#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:copy      conversions, repetitions, views as copies, diagonal matrices
//----------------------------------------------------------------------------------------------------------------------

//== to: conversions of dtype and device ===============================================================================

static int opdi_to_device_kernel(opd_call *call) {
    return opdi_to(call, opd_arg_value(call, 2), opd_arg_value(call, 1), opd_arg_bool(call, 4), opd_arg_value(call, 5));
}
static int opdi_to_like(opd_call *call, const opd_tensor *other, bool copy, opd_value format) {
    return opdi_to(call, opd_value_int(other->dtype), opd_value_device(opd_tensor_device(other)), copy, format);
}
static int opdi_to_other_kernel(opd_call *call) {
    return opdi_to_like(call, opd_arg_tensor(call, 1), opd_arg_bool(call, 3), opd_arg_value(call, 4));
}
static int opdi_to_dtype_layout_kernel(opd_call *call) {
    opdi_options options;
    if (opdi_options_read(call, 1, false, OPD_FLOAT32, opdi_usual_device(), &options)) { return -1; }
    return opdi_to(call, opd_arg_value(call, 1), opd_arg_value(call, 3), opd_arg_bool(call, 6), opd_arg_value(call, 7));
}
static int opdi_type_as_kernel(opd_call *call) { return opdi_to_like(call, opd_arg_tensor(call, 1), false, OPD_NONE); }
#define OPDI_TO_TEXT "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)"
/* opd_to_device: self converted to this dtype and device; self itself if nothing changes */
OPDI_OP(to_device) {
    op->schema = "to.device(Tensor(a) self, Device device, ScalarType dtype, " OPDI_TO_TEXT;
    op->composite = opdi_to_device_kernel;
    op->tags = OPDI_OPTAG_NUMBERS;
    op->cases = "";
}
/* opd_to_other: self converted to other's dtype and device; self itself if nothing changes */
OPDI_OP(to_other) {
    op->schema = "to.other(Tensor(a) self, Tensor other, " OPDI_TO_TEXT;
    op->composite = opdi_to_other_kernel;
    op->tags = OPDI_OPTAG_NUMBERS;
    op->cases = "[2,3], [2]i5";
}
/* opd_to_dtype_layout: self converted to this dtype and device; self itself if nothing changes */
OPDI_OP(to_dtype_layout) {
    op->schema = "to.dtype_layout(Tensor(a) self, *, " OPDI_OPTIONS_TEXT ", " OPDI_TO_TEXT;
    op->composite = opdi_to_dtype_layout_kernel;
    op->tags = OPDI_OPTAG_NUMBERS;
    op->cases = "[2,3], dtype=7; [2,3]";
}
/* opd_type_as: self converted to other's dtype */
OPDI_OP(type_as) {
    op->schema = "type_as(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_type_as_kernel;
    op->tags = OPDI_OPTAG_SHARES;
    op->cases = "[2,3], [2]i5";
}
static int opdi_chalf_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_to_dtype_full(opd_arg_tensor(call, 0), OPD_COMPLEX32, false, false,
                                                     opd_call_args(call)[1]));
}
/* opd_chalf: self converted to complex32 */
OPDI_OP(chalf) {
    op->schema = "chalf(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor";
    op->composite = opdi_chalf_kernel;
    op->tags = OPDI_OPTAG_SHARES;
    op->cases = "";
}

static int opdi_same_kernel(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
/* opd_lift_fresh: self; marks a constant tensor in a recorded program */
OPDI_OP(lift_fresh) {
    op->schema = "lift_fresh(Tensor(a) self) -> Tensor(a)";
    op->composite = opdi_same_kernel;
    op->cases = "[2,3]";
}

static int opdi_lift_fresh_copy_kernel(opd_call *call) {
    const opd_value rows = opd_value_int(OPDI_FORMAT_CONTIGUOUS);
    return opd_return_tensor(call, opd_clone_full(opd_arg_tensor(call, 0), rows));
}
/* opd_lift_fresh_copy: a copy of self; see lift_fresh */
OPDI_OP(lift_fresh_copy) {
    op->schema = "lift_fresh_copy(Tensor self) -> Tensor";
    op->composite = opdi_lift_fresh_copy_kernel;
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "lift_fresh_copy.out";
    op->cases = "[2,3]";
}

//== repeat, flip, roll ================================================================================================

/* The dims of a repeated tensor as (r0, s0, r1, s1, ..): for each dim, the number of repeats and the size.  Dims of
   size 1 are left out.  out, in: strides of the result and of the input; sums: numbers of the dims that count repeats,
   over which the gradient is summed. */
typedef struct opdi_tiling {
    int n;
    int64_t sizes[OPD_MAX_DIMS], out[OPD_MAX_DIMS], in[OPD_MAX_DIMS], sums[OPD_MAX_DIMS];
    int nsums;
} opdi_tiling;
static int opdi_tiling_add(opdi_tiling *tiling, int64_t size, int64_t out, int64_t in, bool repeat) {
    if (size == 1) { return 0; }
    if (tiling->n == OPD_MAX_DIMS) { return opdi_dims_fail(tiling->n + 1); }
    if (repeat) { tiling->sums[tiling->nsums++] = tiling->n; }
    tiling->sizes[tiling->n] = size;
    tiling->out[tiling->n] = out;
    tiling->in[tiling->n++] = in;
    return 0;
}
/* Fills *tiling for an input with the sizes `in`, to whose dims the last numbers in `repeats` belong.  in_strides and
   out_strides are the strides of the input and of the result, or NULL if they are not needed.  Returns 0, or -1 and
   sets an error. */
static int opdi_tiling_make(opdi_tiling *tiling, opd_ints in, const int64_t *in_strides, const int64_t *out_strides,
                            opd_ints repeats) {
    tiling->n = tiling->nsums = 0;
    for (int i = 0; i < repeats.n; i++) {
        const int dim = i - (int)(repeats.n - in.n);
        int64_t size = dim >= 0 ? in.data[dim] : 1, step = out_strides ? out_strides[i] : 0;
        if (opdi_tiling_add(tiling, repeats.data[i], step * size, 0, true)) { return -1; }
        if (opdi_tiling_add(tiling, size, step, in_strides && dim >= 0 ? in_strides[dim] : 0, false)) { return -1; }
    }
    return 0;
}
/* repeat: repeats self repeats[i] times along dim i; if there are more repeats than dims, self gets dims of size 1 in
   front.  Makes a single copy between two views, in which repeats have separate dims. */
static int opdi_repeat_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_ints repeats = opd_arg_ints(call, 1);
    int64_t sizes[OPD_MAX_DIMS];
    opdi_tiling tiling;
    if (repeats.n < self->ndim) {
        return opd_fail(OPD_ERROR_SHAPE,
                        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
    }
    if (repeats.n > OPD_MAX_DIMS) { return (int)opdi_count(repeats.data, OPD_MAX_DIMS + 1, 1); }
    for (int i = 0; i < repeats.n; i++) {
        const int dim = i - (int)(repeats.n - self->ndim);
        int64_t size = dim >= 0 ? opdi_sizes(self)[dim] : 1, row = repeats.data[i];
        sizes[i] = row < 0 ? -1 : size && row > INT64_MAX / size ? INT64_MAX : row * size;
    }
    opd_tensor *out = opd_result(call, 0, sizes, (int)repeats.n, (opd_scalar_type)self->dtype);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    if (opdi_tiling_make(&tiling, opdi_sizes_of(self), opdi_strides(self), opdi_strides(out), repeats)) { return -1; }
    opd_tensor *to = opdi_view(out, tiling.sizes, tiling.out, tiling.n, 0);
    opd_tensor *from = to ? opdi_view(self, tiling.sizes, tiling.in, tiling.n, 0) : NULL;
    return from ? opdi_copy(to, from) : -1;
}
static int opdi_repeat_backward(opd_backward_call *bw) {
    opd_value repeats = opd_bw_value(bw, 1);
    opd_ints sizes = opd_bw_sizes(bw, 0);
    opd_tensor *grad = opd_bw_grad(bw, 0);
    opdi_tiling tiling;
    if (opdi_tiling_make(&tiling, sizes, NULL, NULL, opd_ints_of(repeats.u.ints, repeats.n))) { return -1; }
    if (tiling.nsums) {
        grad = opd_reshape(grad, opd_ints_of(tiling.sizes, tiling.n));
        grad = opd_sum_dim(grad, opd_ints_of(tiling.sums, tiling.nsums), false);
    }
    return opd_bw_return(bw, 0, opd_reshape(grad, sizes));
}
static int opdi_repeat_batch(opd_call *call) {
    opd_ints repeats = opd_arg_ints(call, 1);
    int64_t buffer[OPD_MAX_DIMS];
    if (repeats.n < opd_arg_tensor(call, 0)->ndim) { return opdi_batch_unfit(call); }
    return opd_batch_return(call, opd_repeat(opdi_batch_pad(opdi_batch_front_arg(call, 0), (int)repeats.n),
                                             opdi_batch_ints(1, repeats, buffer)), 0);
}
/* opd_repeat: a copy of self, repeated repeats[i] times along dim i */
OPDI_OP(repeat) {
    op->schema = "repeat(Tensor self, SymInt[] repeats) -> Tensor";
    op->any = opdi_repeat_kernel; op->backward = opdi_repeat_backward;
    op->vmap = opdi_repeat_batch; op->tags = OPD_OPTAG_CORE;
    op->out = "repeat.out";
    op->cases = "[2,3], (2,1); [3], (2,2); [2,3], (1,0); [], (2)";
}

static int opdi_tile_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_ints dims = opd_arg_ints(call, 1);
    int64_t repeats[OPD_MAX_DIMS];
    if (dims.n >= self->ndim) { return opd_return_tensor(call, opd_repeat(self, dims)); }
    for (int64_t i = 0; i < self->ndim; i++) {
        repeats[i] = i < self->ndim - dims.n ? 1 : dims.data[i - (self->ndim - dims.n)];
    }
    return opd_return_tensor(call, opd_repeat(self, opd_ints_of(repeats, self->ndim)));
}
/* opd_tile: repeat, with 1 as the number for the first dims of self if dims has fewer numbers */
OPDI_OP(tile) {
    op->schema = "tile(Tensor self, SymInt[] dims) -> Tensor";
    op->composite = opdi_tile_kernel;
    op->cases = "[2,3], (2); [3], (2,2)";
}

/* flip: copies a view of self that begins with the last element of each flipped dim and has negative strides there. */
static int opdi_flip_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_ints dims = opd_arg_ints(call, 1);
    opdi_geometry geometry;
    int64_t flat[2 * OPD_MAX_DIMS], at = 0;
    bool seen[OPD_MAX_DIMS];
    int dim;
    memset(seen, 0, sizeof seen);
    opdi_geometry_of(&geometry, self);
    for (int64_t i = 0; i < dims.n; i++) {
        if ((dim = opdi_dim_of(dims.data[i], self->ndim)) < 0) { return -1; }
        if (seen[dim]) { return opdi_dim_twice_fail(dim); }
        seen[dim] = true;
        if (self->ndim && geometry.sizes[dim] > 1) {
            at += self->numel ? (geometry.sizes[dim] - 1) * geometry.strides[dim] : 0;
            geometry.strides[dim] = -geometry.strides[dim];
        }
    }
    opd_tensor *out = opdi_result_like(call, self, (opd_scalar_type)self->dtype, opd_tensor_device(self),
                                       OPDI_FORMAT_PRESERVE);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    opd_tensor from = *self;
    from.flags = 0;
    from.dims = flat;
    from.data = self->data + at * (int64_t)opd_dtype_size((opd_scalar_type)self->dtype);
    memcpy(flat, geometry.sizes, (size_t)geometry.ndim * sizeof *flat);
    memcpy(flat + geometry.ndim, geometry.strides, (size_t)geometry.ndim * sizeof *flat);
    return opdi_copy(out, &from);
}
static int opdi_flip_backward(opd_backward_call *bw) {
    opd_value dims = opd_bw_value(bw, 1);
    return opd_bw_return(bw, 0, opd_flip(opd_bw_grad(bw, 0), opd_ints_of(dims.u.ints, dims.n)));
}
/* opd_flip: a copy of self with these dims in reverse order */
OPDI_OP(flip) {
    op->schema = "flip(Tensor self, int[] dims) -> Tensor";
    op->cpu = op->fake = opdi_flip_kernel; op->backward = opdi_flip_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE;
    op->out = "flip.out";
    op->cases = "[2,3], (0); [2,3], (0,1); [2,3], ()";
}

static int opdi_flip_one_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int64_t dim = strcmp(call->op->schema->name, "fliplr") == 0;
    if (self->ndim <= dim) { return opd_fail(OPD_ERROR_SHAPE, "Input must be >= %d-d.", (int)dim + 1); }
    return opd_return_tensor(call, opd_flip(self, opd_ints_of(&dim, 1)));
}
/* opd_fliplr: a copy of self with dim 1 in reverse order */
OPDI_OP(fliplr) {
    op->schema = "fliplr(Tensor self) -> Tensor";
    op->composite = opdi_flip_one_kernel;
    op->cases = "[2,3]";
}
/* opd_flipud: a copy of self with dim 0 in reverse order */
OPDI_OP(flipud) {
    op->schema = "flipud(Tensor self) -> Tensor";
    op->composite = opdi_flip_one_kernel;
    op->cases = "[2,3]";
}

/* Sets out to self rolled along one dim by `shift`: the two blocks of the dim are exchanged.  Returns 0, or -1 and sets
   an error. */
static int opdi_roll_one(opd_tensor *out, opd_tensor *self, int dim, int64_t shift) {
    int64_t size = opdi_sizes(self)[dim], cut = shift % size;
    opdi_geometry geometry, other;
    if (cut < 0) { cut += size; }
    opdi_geometry_of(&geometry, self);
    opdi_geometry_of(&other, out);
    for (int k = 0; k < 2; k++) {                 /* [0, size - cut) moves to index cut, the rest to index 0 */
        geometry.sizes[dim] = other.sizes[dim] = k ? cut : size - cut;
        if (geometry.sizes[dim] == 0) { continue; }
        opd_tensor *from = opdi_view(self, geometry.sizes, geometry.strides, geometry.ndim,
                                     k ? (size - cut) * geometry.strides[dim] : 0);
        opd_tensor *to = from
            ? opdi_view(out, other.sizes, other.strides, other.ndim, k ? 0 : cut * other.strides[dim]) : NULL;
        if (!to || opdi_copy(to, from)) { return -1; }
    }
    return 0;
}
/* roll: moves elements along each of dims by its shift; elements that leave at one end enter at the other.  Makes one
   pass per dim, the last one into the result.  If dims is empty, self is rolled as one row. */
static int opdi_roll_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *now, *next;
    opd_ints shifts = opd_arg_ints(call, 1), dims = opd_arg_ints(call, 2);
    int64_t i;
    if (shifts.n == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "`shifts` required"); }
    if (shifts.n != dims.n && (dims.n != 0 || shifts.n != 1)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "shifts and dimensions must align. shifts: %lld, dims:%lld",
                        (long long)shifts.n, (long long)dims.n);
    }
    for (i = 0; i < dims.n; i++) {
        if (self->numel && self->ndim == 0) { return opdi_no_dims_fail(dims.data[i]); }
        if (opdi_dim_of(dims.data[i], self->ndim) < 0) { return -1; }
    }
    opd_tensor *out = opdi_result_like(call, self, opd_dtype(self), opd_tensor_device(self), OPDI_FORMAT_PRESERVE);
    if (!out || !out->data || out->numel == 0) { return out ? 0 : -1; }
    if (dims.n == 0) {
        opd_tensor *flat = opd_reshape(self, opd_ints_of(&self->numel, 1));
        now = flat ? opd_new_empty(self, opd_ints_of(opdi_sizes(self), self->ndim)) : NULL;
        next = now ? opd_view(now, opd_ints_of(&self->numel, 1)) : NULL;
        return next && opdi_roll_one(next, flat, 0, shifts.data[0]) == 0 ? opdi_copy(out, now) : -1;
    }
    for (now = self, i = 0; i < dims.n; i++, now = next) {
        next = i + 1 == dims.n ? out : opd_new_empty(self, opd_ints_of(opdi_sizes(self), self->ndim));
        if (!next || opdi_roll_one(next, now, opdi_dim_of(dims.data[i], self->ndim), shifts.data[i])) { return -1; }
    }
    return 0;
}
static int opdi_roll_backward(opd_backward_call *bw) {
    opd_value shifts = opd_bw_value(bw, 1), dims = opd_bw_value(bw, 2);
    int64_t *back = (int64_t *)opdi_scope_alloc((size_t)OPDI_MAX(shifts.n, 1) * sizeof *back);
    for (int i = 0; back && i < shifts.n; i++) {
        back[i] = shifts.u.ints[i] == INT64_MIN ? INT64_MIN : -shifts.u.ints[i];
    }
    return back ? opd_bw_return(bw, 0, opd_roll(opd_bw_grad(bw, 0), opd_ints_of(back, shifts.n),
                                                     opd_ints_of(dims.u.ints, dims.n))) : -1;
}
/* The batching rule of roll.  If dims is empty, the elements of each example are rolled as one row. */
static int opdi_roll_batch(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_ints shifts = opd_arg_ints(call, 1);
    const int64_t one = 1;
    int64_t buffer[OPD_MAX_DIMS];
    if (opd_arg_ints(call, 2).n || shifts.n != 1) { return opd_batch_shift_dim(call); }
    opd_tensor *all = opd_roll(opdi_batch_flat(opdi_batch_front_arg(call, 0)), shifts, opd_ints_of(&one, 1));
    return opd_batch_return(call, opd_reshape(all, opdi_batch_ints(opd_batch_size(), opdi_sizes_of(self), buffer)), 0);
}
/* opd_roll(self, shifts, dims): self with elements moved by shifts along dims; elements that leave at one end enter at
   the other */
OPDI_OP(roll) {
    op->schema = "roll(Tensor self, SymInt[1] shifts, int[1] dims=[]) -> Tensor";
    op->any = opdi_roll_kernel; op->backward = opdi_roll_backward;
    op->vmap = opdi_roll_batch;
    op->out = "roll.out";
    op->cases = "[2,3], (1); [2,3], (1), (1); [2,3], (1,-1), (0,1)";
}

/* rot90: rotates self k times by 90 degrees from the first of two dims towards the second: a flip and, for an odd k, a
   transposition.  The result is always a copy. */
static int opdi_rot90_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int64_t depth = opd_arg_int(call, 1) % 4;
    opd_ints dims = opd_arg_ints(call, 2);
    const int ndim = self->ndim;
    if (dims.n != 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "expected total rotation dims == 2, but got dims = %lld",
                        (long long)dims.n);
    }
    if (ndim < 2) { return opd_fail(OPD_ERROR_SHAPE, "expected total dims >= 2, but got total dims = %d", ndim); }
    uint64_t apart = dims.data[0] > dims.data[1] ? (uint64_t)dims.data[0] - (uint64_t)dims.data[1]
                                        : (uint64_t)dims.data[1] - (uint64_t)dims.data[0];
    if (apart == 0 || apart == (uint64_t)ndim) {
        return opd_fail(OPD_ERROR_ARGUMENT,
                        "expected rotation dims to be different, but got dim0 = %lld and dim1 = %lld",
                        (long long)dims.data[0], (long long)dims.data[1]);
    }
    if (dims.data[0] >= ndim || dims.data[0] < -ndim) {
        return opd_fail(OPD_ERROR_INDEX, "Rotation dim0 out of range, dim0 = %lld", (long long)dims.data[0]);
    }
    if (dims.data[1] >= ndim || dims.data[1] < -ndim) {
        return opd_fail(OPD_ERROR_INDEX, "Rotation dim1 out of range, dim1 = %lld", (long long)dims.data[1]);
    }
    if (depth < 0) { depth += 4; }
    if (depth == 0) { return opd_return_tensor(call, opd_clone_full(self, opd_value_int(OPDI_FORMAT_CONTIGUOUS))); }
    opd_tensor *tensor = opd_flip(self, depth == 2 ? dims : opd_ints_of(&dims.data[depth == 1], 1));
    return opd_return_tensor(call, depth == 2 ? tensor : opd_transpose(tensor, dims.data[0], dims.data[1]));
}
/* opd_rot90: self rotated k times by 90 degrees in the plane of two dims */
OPDI_OP(rot90) {
    op->schema = "rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor";
    op->composite = opdi_rot90_kernel;
    op->out = "rot90.out";
    op->cases = "[2,3]; [2,3], 2; [2,3,2], 3, (1,2); [2,3], 0";
}

//== in-place forms of views, which change self's sizes and strides ====================================================

static int opdi_redescribed(opd_call *call, opd_tensor *tensor, const opdi_geometry *geometry) {
    return opdi_redescribe(tensor, geometry->sizes, geometry->strides, geometry->ndim, 0) ? -1 : opd_return_tensor(call,
        tensor);
}
static int opdi_transpose__kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const bool plain = call->op->nargs == 1;      /* t_ */
    int dim = plain ? 0 : opdi_dim_of(opd_arg_int(call, 1), self->ndim),
        b = plain ? self->ndim > 1 : dim < 0 ? -1 : opdi_dim_of(opd_arg_int(call, 2), self->ndim);
    opdi_geometry geometry;
    if (dim < 0 || b < 0) { return -1; }
    if (plain && self->ndim > 2) {
        return opd_fail(OPD_ERROR_SHAPE, "t_() expects a tensor with <= 2 dimensions, but self is %dD", self->ndim);
    }
    if (self->ndim == 0) { return opd_return_tensor(call, self); }
    opdi_geometry_of(&geometry, self);
    geometry.sizes[dim] = opdi_sizes(self)[b];
    geometry.sizes[b] = opdi_sizes(self)[dim];
    geometry.strides[dim] = opdi_strides(self)[b];
    geometry.strides[b] = opdi_strides(self)[dim];
    return opdi_redescribed(call, self, &geometry);
}
static int opdi_unsqueeze__kernel(opd_call *call) {
    opdi_geometry geometry;
    return opdi_geometry_unsqueezed(call, &geometry) ? -1 : opdi_redescribed(call, opd_arg_tensor(call, 0), &geometry);
}
static int opdi_squeeze__kernel(opd_call *call) {
    opdi_geometry geometry;
    return opdi_geometry_squeezed(call, &geometry) ? -1 : opdi_redescribed(call, opd_arg_tensor(call, 0), &geometry);
}
static int opdi_as_strided__kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_ints sizes = opd_arg_ints(call, 1), strides = opd_arg_ints(call, 2);
    int64_t own = opd_tensor_offset(self), offset = opd_arg_is_none(call, 3) ? own : opd_arg_int(call, 3);
    if (sizes.n != strides.n) { return opd_fail(OPD_ERROR_SHAPE, "mismatch in length of strides and shape"); }
    /* opd_tensor_view checks the sizes */
    opd_tensor *value = opd_tensor_view(self, sizes.data, strides.data, (int)OPDI_MIN(sizes.n, OPD_MAX_DIMS + 1),
                                        offset);
    if (!value || opdi_redescribe(self, sizes.data, strides.data, (int)sizes.n, offset - own)) { return -1; }
    return opd_return_tensor(call, self);
}
OPDI_INTERNAL int opdi_detach__kernel(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
static int opdi_detach__autograd(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (self->flags & OPDI_IS_VIEW) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "Can't detach views in-place. Use detach() instead.");
    }
    if (opdi_is_dual(self) && opdi_family_new(self)) { return -1; }
    return opdi_detach_inplace(self) ? -1 : opd_return_tensor(call, self);
}
/* opd_detach_: removes the autograd history of self */
OPDI_OP(detach_) {
    op->schema = "detach_(Tensor(a!) self) -> Tensor(a!)";
    op->any = opdi_detach__kernel; op->autograd = opdi_detach__autograd; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_detach_; op->tags = OPD_OPTAG_INPLACE_VIEW;
    op->cases = "[2,3]";
}
/* opd_transpose_: transpose in place: exchanges two dims of self */
OPDI_OP(transpose_) {
    op->schema = "transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)";
    op->any = opdi_transpose__kernel; op->backward = opdi_transpose_backward;
    op->vmap = OPD_BATCH_VIEW; op->tags = OPD_OPTAG_INPLACE_VIEW;
    op->cases = "[2,3], 0, 1";
}
/* opd_t_: t in place: exchanges the two dims of self */
OPDI_OP(t_) {
    op->schema = "t_(Tensor(a!) self) -> Tensor(a!)";
    op->any = opdi_transpose__kernel; op->backward = opdi_t_backward;
    op->vmap = OPD_BATCH_VIEW; op->tags = OPD_OPTAG_INPLACE_VIEW;
    op->cases = "[2,3]";
}
/* opd_unsqueeze_: unsqueeze in place: adds a dim of size 1 to self */
OPDI_OP(unsqueeze_) {
    op->schema = "unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)";
    op->any = opdi_unsqueeze__kernel; op->backward = opdi_unsqueeze_backward;
    op->vmap = OPD_BATCH_VIEW; op->tags = OPD_OPTAG_INPLACE_VIEW;
    op->cases = "[2,3], 1; [2,3], -1";
}
/* opd_squeeze_: squeeze in place: removes the dims of size 1 from self */
OPDI_OP(squeeze_) {
    op->schema = "squeeze_(Tensor(a!) self) -> Tensor(a!)";
    op->any = opdi_squeeze__kernel; op->backward = opdi_view_backward;
    op->vmap = OPD_BATCH_VIEW; op->tags = OPD_OPTAG_INPLACE_VIEW;
    op->cases = "[2,1,3]";
}
/* opd_squeeze_dim_: squeeze in place: removes dim from self if its size is 1 */
OPDI_OP(squeeze__dim) {
    op->schema = "squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)";
    op->any = opdi_squeeze__kernel; op->backward = opdi_view_backward;
    op->vmap = OPD_BATCH_VIEW; op->tags = OPD_OPTAG_INPLACE_VIEW;
    op->cases = "[2,1,3], 1";
}
/* opd_squeeze_dims_: squeeze in place: removes these dims from self if their size is 1 */
OPDI_OP(squeeze__dims) {
    op->schema = "squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)";
    op->any = opdi_squeeze__kernel; op->backward = opdi_view_backward;
    op->vmap = OPD_BATCH_VIEW; op->tags = OPD_OPTAG_INPLACE_VIEW;
    op->cases = "[2,1,3,1], (1,-1)";
}
/* opd_swapaxes_: the same as transpose_ */
OPDI_OP(swapaxes_) {
    op->schema = "swapaxes_(Tensor(a!) self, int axis0, int axis1) -> Tensor(a!)";
    op->any = opdi_transpose__kernel; op->backward = opdi_transpose_backward;
    op->vmap = OPD_BATCH_VIEW; op->tags = OPD_OPTAG_INPLACE_VIEW;
    op->cases = "[2,3], 0, 1";
}
/* opd_swapdims_: the same as transpose_ */
OPDI_OP(swapdims_) {
    op->schema = "swapdims_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)";
    op->any = opdi_transpose__kernel; op->backward = opdi_transpose_backward;
    op->vmap = OPD_BATCH_VIEW; op->tags = OPD_OPTAG_INPLACE_VIEW;
    op->cases = "[2,3], 0, 1";
}
/* opd_as_strided_: as_strided in place: gives self these sizes, strides and offset */
OPDI_OP(as_strided_) {
    op->schema = "as_strided_(Tensor(a!) self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
        "Tensor(a!)";
    op->any = opdi_as_strided__kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_VIEW; op->tags = OPD_OPTAG_INPLACE_VIEW;
    op->cases = "[3,4], (2,2), (4,1)";
}

static int opdi_resize_to(opd_call *call, opd_ints sizes, int64_t format) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int64_t strides[OPD_MAX_DIMS];
    if (opdi_is_dual(self)) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "cannot resize variables that has a forward grad");
    }
    if (sizes.n > OPD_MAX_DIMS) { return (int)opdi_count(sizes.data, OPD_MAX_DIMS + 1, 1); }
    if (opdi_has_sizes(self, sizes.data, (int)sizes.n) && format <= OPDI_FORMAT_CONTIGUOUS) {
        return opd_return_tensor(call, self);
    }
    if (format > OPDI_FORMAT_PRESERVE && opdi_strides_format(sizes.data, (int)sizes.n, format, strides)) { return -1; }
    if (opdi_resize(self, sizes.data, (int)sizes.n)) { return -1; }
    if (format > OPDI_FORMAT_PRESERVE && opdi_redescribe(self, sizes.data, strides, (int)sizes.n, 0)) { return -1; }
    return opd_return_tensor(call, self);
}
static int64_t opdi_resize_format(const opd_call *call) { return opd_arg_is_none(call, 2) ? -1 : opd_arg_int(call, 2); }
static int opdi_resize_kernel(opd_call *call) {
    return opdi_resize_to(call, opd_arg_ints(call, 1), opdi_resize_format(call));
}
static int opdi_resize_as_kernel(opd_call *call) {
    return opdi_resize_to(call, opdi_sizes_of(opd_arg_tensor(call, 1)), opdi_resize_format(call));
}
/* The autograd kernel of resize_ and resize_as_: fails for a tensor that requires grad, because its sizes must match
   its history. */
static int opdi_resize_autograd(opd_call *call) {
    return opdi_requires_grad(opd_arg_tensor(call, 0))
        ? opd_fail(OPD_ERROR_AUTOGRAD, "cannot resize variables that require grad") : opdi_below_autograd(call);
}
/* opd_resize_: gives self these sizes; new elements are not initialized */
OPDI_OP(resize_) {
    op->schema = "resize_(Tensor(a!) self, SymInt[] size, *, MemoryFormat? memory_format=None) -> Tensor(a!)";
    op->any = opdi_resize_kernel; op->autograd = opdi_resize_autograd; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_resize; op->tags = OPD_OPTAG_INPLACE_VIEW | OPD_OPTAG_CORE;
    op->cases = "[2,3], (3,2)";
}
/* opd_resize_as_: gives self the sizes of the_template */
OPDI_OP(resize_as_) {
    /* PyTorch gives this operator no tag */
    op->schema = "resize_as_(Tensor(a!) self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor(a!)";
    op->any = opdi_resize_as_kernel; op->autograd = opdi_resize_autograd; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_resize;
    op->tags = OPD_OPTAG_INPLACE_VIEW;
    op->cases = "[2,3], [3,2]";
}
