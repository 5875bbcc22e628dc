#include "../ops.h"

//== operators like nonzero; combinations, cartesian_prod ==============================================================

static int opdi_argwhere_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_nonzero(opd_arg_tensor(call, 0)));
}
static int opdi_nonzero_numpy_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    return opdi_return_list(call, opd_unbind_full(opd_nonzero(self->ndim ? self : opd_unsqueeze(self, 0)), 1));
}
static int opdi_nonzero_static_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    const int64_t size = opd_arg_int(call, 1);
    const int64_t sizes[2] = {size, self->ndim};
    if (size < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "nonzero_static: 'size' must be an non-negative integer"); }
    if (self->backend == OPD_META) { return opd_result(call, 0, sizes, 2, OPD_INT64) ? 0 : -1; }
    opd_tensor *places = opd_nonzero(self);
    if (!places) { return -1; }
    const int64_t pad[4] = {0, 0, 0, size - opdi_sizes(places)[0]};
    return opd_return_tensor(call, pad[3] <= 0 ? opd_contiguous(opd_narrow(places, 0, 0, size))
                             : opd_constant_pad_nd_full(places, opd_ints_of(pad, 4), opd_arg_value(call, 2)));
}
/* opd_argwhere: the coordinates of the nonzero elements, one row for each element */
OPDI_OP(argwhere) {
    op->schema = "argwhere(Tensor self) -> Tensor";
    op->composite = opdi_argwhere_kernel;
    op->tags = OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE;
    op->cases = "[2,3]i2";
}

/* Defines a fold that hashes elements: each is converted to `wide` (double or int64_t), and the 64 bits are combined by
   exclusive or. */
#define OPDI_FOLD_HASH(name, type, wide) \
    static void name(opdi_folded *folded, const void *px, int64_t count, int64_t at, const opdi_reduce *reduce) { \
        const type *const x = (const type *)px; \
        (void)at; \
        (void)reduce; \
        for (int64_t i = 0; i < count; i++) { \
            const wide number = (wide)x[i]; \
            int64_t bits; \
            memcpy(&bits, &number, sizeof bits); \
            folded->i ^= bits; \
        } \
    }
OPDI_FOLD_HASH(opdi_fold_hash_f32, float, double)
OPDI_FOLD_HASH(opdi_fold_hash_f64, double, double)
OPDI_FOLD_HASH(opdi_fold_hash_i64, int64_t, int64_t)
static void opdi_join_hash(opdi_folded *folded, const opdi_folded *with, const opdi_reduce *reduce) {
    (void)reduce;
    folded->i ^= with->i;
}
static const opdi_fold opdi_the_hash = {
    /* step */ {opdi_fold_hash_f32, opdi_fold_hash_f64, opdi_fold_hash_i64},
    /* column */ {NULL, NULL, NULL}, /* side */ {NULL, NULL},
    /* join, finish */ opdi_join_hash, NULL, /* init */ {0, 0, 0, 0},
    /* out, what */ {OPDI_OUT_I, OPDI_OUT_NONE}, "xor_sum_cpu"};
static int opdi_hash_tensor_kernel(opd_call *call) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    const opd_ints dims = opd_arg_ints(call, 1);
    uint64_t mask;
    if (opd_arg_int(call, 3) != 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Unknown hash_tensor mode: %lld", (long long)opd_arg_int(call, 3));
    }
    if (opdi_is_complex(tensor)) { return opdi_dtype_fail("xor_sum_cpu", tensor->dtype); }
    if (call->targets && call->targets[0]->dtype != OPD_UINT64) {
        return opd_fail(OPD_ERROR_DTYPE, "Expected result to be of dtype uint64, but got %s",
                        opd_dtype_name((opd_scalar_type)call->targets[0]->dtype));
    }
    if (opdi_reduce_mask(dims, tensor->ndim, &mask) || opdi_reduce_nonempty(tensor, dims, "hash_tensor")) { return -1; }
    return opdi_reduce_kernel(call, &opdi_the_hash, tensor, mask, opd_arg_bool(call, 2),
                              (opd_scalar_type)tensor->dtype, OPD_UINT64, OPD_DTYPE_NONE, 0);
}
/* opd_hash_tensor: the exclusive or of the elements as 64 bits (floats as doubles), as uint64 */
OPDI_OP(hash_tensor) {
    op->schema = "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor";
    op->cpu = op->fake = opdi_hash_tensor_kernel; op->any = opd_cpu_fallback; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->flops = opdi_flops_elements;
    op->out = "hash_tensor.out";
    op->cases = "[2,3]; [2,3]i5, (1); [2,3,2], (0,-1), keepdim=True";
}

static int opdi_is_true(opd_call *call, bool all) {
    opd_tensor *tensor = opd_arg_tensor(call, 0);
    if (tensor->dtype != OPD_BOOL) {
        return opd_fail(OPD_ERROR_DTYPE, "expected a bool tensor, but got %s",
                        opd_dtype_name((opd_scalar_type)tensor->dtype));
    }
    return opd_return_tensor(call, all ? opd_all(tensor) : opd_any(tensor));
}
static int opdi_is_all_true_kernel(opd_call *call) { return opdi_is_true(call, true); }
static int opdi_is_any_true_kernel(opd_call *call) { return opdi_is_true(call, false); }
/* opd__is_all_true: true if all elements of a bool tensor are true */
OPDI_OP(_is_all_true) {
    op->schema = "_is_all_true(Tensor self) -> Tensor";
    op->composite = opdi_is_all_true_kernel;
    op->cases = "[2,3]b";
}
/* opd__is_any_true: true if any element of a bool tensor is true */
OPDI_OP(_is_any_true) {
    op->schema = "_is_any_true(Tensor self) -> Tensor";
    op->composite = opdi_is_any_true_kernel;
    op->cases = "[2,3]b";
}

static int opdi_unsafe_index_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_index(opd_arg_tensor(call, 0), opd_arg_tensors(call, 1)));
}
static int opdi_unsafe_index_put_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_index_put(opd_arg_tensor(call, 0), opd_arg_tensors(call, 1),
                                                      opd_arg_tensor(call, 2), opd_arg_bool(call, 3)));
}
/* Returns a copy of the index list in which indices out of range are replaced by indices in range for sizes[ndim], so
   that elements which a mask excludes can be read without an error.  On failure, returns a list without data and sets
   an error. */
static opd_tensors opdi_index_within(opd_tensors list, const int64_t *sizes, int ndim) {
    opd_tensor **within = opdi_list_alloc(list.n);
    if (list.n > ndim) {
        (void)opd_fail(OPD_ERROR_INDEX, "too many indices for tensor of dimension %d (got %lld)", ndim,
                       (long long)list.n);
    }
    for (int64_t i = 0; i < list.n && opd_ok(); i++) {
        within[i] = list.data[i] ? opd_clamp(list.data[i], opd_value_int(-sizes[i]), opd_value_int(sizes[i] - 1))
            : NULL;
    }
    return opd_tensors_of(opd_ok() ? within : NULL, list.n);
}
static int opdi_masked_index_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *mask = opd_arg_tensor(call, 1);
    const opd_tensors list = opd_arg_tensors(call, 2);
    const opd_value fill = opd_call_args(call)[3];
    int64_t sizes[OPD_MAX_DIMS];
    for (int dim = 0; dim < self->ndim; dim++) { sizes[dim] = opdi_sizes(self)[dim]; }
    if (self->numel == 0) {                       /* nothing can be read: use a tensor with size 1 in the indexed
                                                     dims */
        for (int dim = 0; dim < self->ndim && dim < list.n; dim++) { if (list.data[dim]) { sizes[dim] = 1; } }
        self = opd_new_full(self, opd_ints_of(sizes, self->ndim), fill);
        if (!self) { return -1; }
    }
    const opd_tensors within = opdi_index_within(list, sizes, self->ndim);
    if (!within.data) { return -1; }
    return opd_return_tensor(call,
                             opd_masked_fill_Scalar(opd_index(self, within), opd_logical_not(mask), fill));
}
static int opdi_masked_index_put_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *mask = opd_arg_tensor(call, 1), *values = opd_arg_tensor(call, 3);
    if (self->numel == 0) { return opd_return_tensor(call, opd_clone(self)); }
    const opd_tensors within = opdi_index_within(opd_arg_tensors(call, 2), opdi_sizes(self), self->ndim);
    if (!within.data) { return -1; }
    values = opd_masked_fill_Scalar(values, opd_logical_not(mask), opd_value_int(0));
    return opd_return_tensor(call, opd_index_put(self, within, values, true));
}
/* opd__unsafe_index_Tensor: the same as index */
OPDI_OP(_unsafe_index_Tensor) {
    op->schema = "_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor";
    op->composite = opdi_unsafe_index_kernel;
    op->cases = "[3,4], {[2]i3}; [3,4,2], {[2,1]i3, [2]i4}";
}
/* opd__unsafe_index_put: the same as index_put */
OPDI_OP(_unsafe_index_put) {
    op->schema = "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor";
    op->composite = opdi_unsafe_index_put_kernel;
    op->cases = "[3,4], {[1]i3}, [4]; [3,4], {[2]i3}, [2,4], True";
}
/* opd__unsafe_masked_index: index where mask is true, fill elsewhere; indices are only checked where mask is true */
OPDI_OP(_unsafe_masked_index) {
    op->schema = "_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor";
    op->composite = opdi_masked_index_kernel;
    op->cases = "[3,4], [2]b, {[2]i5, [2]i5}, 1.5; [2,4], [3,1]b, {[3]i9}, 0";
}
/* opd__unsafe_masked_index_put_accumulate: self, with values added at indices where mask is true */
OPDI_OP(_unsafe_masked_index_put_accumulate) {
    op->schema = "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, Tensor values) -> "
        "Tensor";
    op->composite = opdi_masked_index_put_kernel;
    op->cases = "[3,4], [2]b, {[2]i5, [2]i5}, [2]; [2,4], [3,1]b, {[3]i9}, [3,4]";
}
/* opd_nonzero_numpy: the coordinates of the nonzero elements, one vector for each dim */
OPDI_OP(nonzero_numpy) {
    op->schema = "nonzero_numpy(Tensor self) -> Tensor[]";
    op->composite = opdi_nonzero_numpy_kernel;
    op->cases = "";
}
/* opd_nonzero_static: nonzero with exactly `size` rows: cut off, or filled up with fill_value */
OPDI_OP(nonzero_static) {
    op->schema = "nonzero_static(Tensor self, *, SymInt size, int fill_value=-1) -> Tensor";
    op->any = opdi_nonzero_static_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->out = "nonzero_static.out"; op->tags = OPDI_OPTAG_OUT_APART;
    op->cases = "[2,3]i2, size=2; [4]i2, size=6, fill_value=9";
}

static int opdi_vector_check(const opd_tensor *tensor) {
    char text[256];
    return tensor->ndim == 1 ? 0
        : opd_fail(OPD_ERROR_SHAPE, "Expect a 1D vector, but got shape %s", opdi_shape_text(tensor, text));
}
/* combinations: makes a grid of all r-tuples of positions in self, keeps the tuples that increase (with replacement:
   that do not decrease), and reads self at these positions.  If self is a meta tensor, the positions are still real
   numbers in memory, because the number of kept tuples is computed from them. */
static int opdi_combinations_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *list[OPD_MAX_DIMS], *mask = NULL;
    const int64_t count = opd_arg_int(call, 1), none = 0;
    const bool again = opd_arg_bool(call, 2);
    if (opdi_vector_check(self)) { return -1; }
    if (count < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Expect a non-negative number, but got %lld", (long long)count);
    }
    if (count == 0) { return opd_return_tensor(call, opd_new_empty(self, opd_ints_of(&none, 1))); }
    if (count > OPD_MAX_DIMS) {
        return opd_fail(OPD_ERROR_SHAPE, "r must be at most %d, but got %lld", OPD_MAX_DIMS, (long long)count);
    }
    const bool meta = self->backend == OPD_META;
    const opd_device device = meta ? opd_device_make(OPD_CPU, -1) : opd_tensor_device(self);
    opd_tensor *places = opd_arange_full(opd_value_int(self->numel), opd_value_int(OPD_INT64), OPD_NONE,
                                         opd_value_device(device), OPD_NONE);
    for (int64_t i = 0; i < count; i++) { list[i] = places; }
    opd_tensors grid = opd_meshgrid(opd_tensors_of(list, count));
    if (!opd_ok()) { return -1; }
    memcpy(list, grid.data, (size_t)count * sizeof *list);
    for (int64_t i = 0; i + 1 < count; i++) {
        opd_tensor *grows = again ? opd_le(list[i], list[i + 1]) : opd_lt(list[i], list[i + 1]);
        mask = mask ? opd_logical_and(mask, grows) : grows;
    }
    for (int64_t i = 0; i < count; i++) {
        if (mask) { list[i] = opd_masked_select(list[i], mask); }
        if (meta && list[i]) { list[i] = opd_to_device(list[i], opd_tensor_device(self), OPD_INT64); }
        list[i] = opd_index_select(self, 0, list[i]);
    }
    return opd_return_tensor(call, opd_ok() ? opd_stack(opd_tensors_of(list, count), 1) : NULL);
}
static int opdi_cartesian_prod_kernel(opd_call *call) {
    opd_tensors in = opd_arg_tensors(call, 0);
    const int64_t flat = -1;
    opd_tensor **list = in.n > 0 ? opdi_list_alloc(in.n) : NULL;
    for (int64_t i = 0; i < in.n; i++) {
        if (opdi_vector_check(in.data[i])) { return -1; }
    }
    if (in.n == 1) { return opd_return_tensor(call, opd_clone(in.data[0])); }
    in = opd_meshgrid(in);
    if (!opd_ok() || !list) { return -1; }
    for (int64_t i = 0; i < in.n; i++) { list[i] = opd_reshape(in.data[i], opd_ints_of(&flat, 1)); }
    return opd_return_tensor(call, opd_ok() ? opd_stack(opd_tensors_of(list, in.n), 1) : NULL);
}
/* opd_combinations: all combinations of r elements of self, one row for each */
OPDI_OP(combinations) {
    op->schema = "combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor";
    op->composite = opdi_combinations_kernel;
    op->cases = "[4]; [3], 3; [3], 2, True; [3], 0; [3], 1";
}
/* opd_cartesian_prod: all ways to choose one element of each vector, one row for each */
OPDI_OP(cartesian_prod) {
    op->schema = "cartesian_prod(Tensor[] tensors) -> Tensor";
    op->composite = opdi_cartesian_prod_kernel;
    op->tags = OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING;
    op->cases = "{[2],[3]}; {[3]}; {[2],[1],[2]}";
}
