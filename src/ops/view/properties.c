#include "../ops.h"

//== properties of tensors =============================================================================================

static int opdi_is_same_size_kernel(opd_call *call) {
    const opd_tensor *first = opd_arg_tensor(call, 0);
    return opd_return_bool(call, opdi_has_sizes(opd_arg_tensor(call, 1), opdi_sizes(first), first->ndim));
}
/* size.int and stride.int: return the size or the stride of a dim. */
static int opdi_size_kernel(opd_call *call) {
    const opd_tensor *tensor = opd_arg_tensor(call, 0);
    int dim = opdi_dim_of(opd_arg_int(call, 1), tensor->ndim);
    if (dim < 0) { return -1; }
    if (tensor->ndim == 0) { return opdi_no_dims_fail(opd_arg_int(call, 1)); }
    return opd_return_int(call, strstr(call->op->schema->name, "size") ? opdi_sizes(tensor)[dim]
                          : opdi_strides(tensor)[dim]);
}
static int opdi_numel_kernel(opd_call *call) { return opd_return_int(call, opd_arg_tensor(call, 0)->numel); }
/* sym_is_contiguous: returns true if self is contiguous in this memory format (row by row, or channels last). */
static int opdi_sym_is_contiguous_kernel(opd_call *call) {
    const opd_tensor *tensor = opd_arg_tensor(call, 0);
    const int64_t format = opd_arg_int(call, 1);
    if (format < 0 || format > 3) {
        return opdi_format_fail(format);
    }
    return opd_return_bool(call, format > 1 ? opdi_tensor_channels_last(tensor, (int32_t)format + 2)
                           : opd_is_contiguous(tensor));
}
static int opdi_dim_kernel(opd_call *call) { return opd_return_int(call, opd_arg_tensor(call, 0)->ndim); }
/* opd_is_same_size: true if self and other have the same sizes */
OPDI_OP(is_same_size) {
    op->schema = "is_same_size(Tensor self, Tensor other) -> bool";
    op->any = opdi_is_same_size_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query;
    op->cases = "[2,3], [2,3]; [2], [3]";
}
/* opd_size_int: the size of dim */
OPDI_OP(size_int) {
    op->schema = "size.int(Tensor self, int dim) -> int";
    op->any = opdi_size_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query;
    op->cases = "[2,3], 1";
}
/* opd_stride_int: the stride of dim */
OPDI_OP(stride_int) {
    op->schema = "stride.int(Tensor self, int dim) -> int";
    op->any = opdi_size_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query;
    op->cases = "[2,3], 0";
}
/* opd_numel_int: the number of elements */
OPDI_OP(numel) {
    op->schema = "numel(Tensor self) -> int";
    op->any = opdi_numel_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query;
    op->cases = "[2,3]";
}
/* opd_dim_int: the number of dims */
OPDI_OP(dim) {
    op->schema = "dim(Tensor self) -> int";
    op->any = opdi_dim_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query;
    op->cases = "[2,3]";
}

static int opdi_storage_offset_kernel(opd_call *call) {
    return opd_return_int(call, opd_tensor_offset(opd_arg_tensor(call, 0)));
}
static int opdi_is_floating_kernel(opd_call *call) {
    return opd_return_bool(call, opd_dtype_is_floating((opd_scalar_type)opd_arg_tensor(call, 0)->dtype));
}
static int opdi_is_complex_kernel(opd_call *call) {
    return opd_return_bool(call, opd_dtype_is_complex((opd_scalar_type)opd_arg_tensor(call, 0)->dtype));
}
/* opd_storage_offset: the index of self's first element in its storage */
OPDI_OP(storage_offset) {
    op->schema = "storage_offset(Tensor self) -> int";
    op->any = opdi_storage_offset_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query;
    op->cases = "[2,3]";
}
/* opd_is_floating_point: true if self's dtype is a floating point dtype */
OPDI_OP(is_floating_point) {
    op->schema = "is_floating_point(Tensor self) -> bool";
    op->any = opdi_is_floating_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query;
    op->cases = "[2,3]; [2]i3";
}
/* opd_is_complex: true if self's dtype is complex */
OPDI_OP(is_complex) {
    op->schema = "is_complex(Tensor self) -> bool";
    op->any = opdi_is_complex_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query;
    op->cases = "[2,3]";
}
/* opd_sym_size: size.int, under the name that exported programs use */
OPDI_OP(sym_size_int) {
    op->schema = "sym_size.int(Tensor self, int dim) -> SymInt";
    op->any = opdi_size_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query; op->tags = OPD_OPTAG_CORE;
    op->cases = "[2,3], 1";
}
/* opd_sym_stride: stride.int, under the name that exported programs use */
OPDI_OP(sym_stride_int) {
    op->schema = "sym_stride.int(Tensor self, int dim) -> SymInt";
    op->any = opdi_size_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query; op->tags = OPD_OPTAG_CORE;
    op->cases = "[2,3], 0";
}
/* opd_sym_numel: numel, under the name that exported programs use */
OPDI_OP(sym_numel) {
    op->schema = "sym_numel(Tensor self) -> SymInt";
    op->any = opdi_numel_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query; op->tags = OPD_OPTAG_CORE;
    op->cases = "[2,3]";
}
/* opd_sym_storage_offset: storage_offset, under the name that exported programs use */
OPDI_OP(sym_storage_offset) {
    op->schema = "sym_storage_offset(Tensor self) -> SymInt";
    op->any = opdi_storage_offset_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query; op->tags = OPD_OPTAG_CORE;
    op->cases = "[2,3]";
}
/* opd_sym_is_contiguous: true if self is contiguous in this memory format; used in exported programs */
OPDI_OP(sym_is_contiguous) {
    op->schema = "sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format) -> SymBool";
    op->any = opdi_sym_is_contiguous_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query; op->tags = OPD_OPTAG_CORE;
    op->cases = "[2,3]; [2,3,2,2], 2; [2,2,1,1,1], 3";
}

//== assertions, which exported programs contain =======================================================================

/* Returns the number in *value, of any tag, as double: of a complex number, its real part. */
OPDI_INTERNAL double opdi_scalar_of(const opd_value *value) {
    return value->tag == OPD_TAG_FLOAT ? value->u.d : value->tag == OPD_TAG_COMPLEX ? value->u.c[0]
        : (double)value->u.i;
}
/* Returns 1 if the tensor's only element is not 0, else 0.  On failure, returns -1 and sets an error. */
static int opdi_truth(opd_tensor *tensor) {
    if (tensor->numel != 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Boolean value of Tensor with %s is ambiguous",
                        tensor->numel ? "more than one value" : "no values");
    }
    const opd_value value = opd_local_scalar_dense(tensor);
    if (!opd_ok()) { return -1; }
    return value.tag == OPD_TAG_COMPLEX ? value.u.c[0] != 0 || value.u.c[1] != 0
        : value.tag == OPD_TAG_FLOAT ? value.u.d != 0 : value.u.i != 0;
}
static int opdi_is_nonzero_kernel(opd_call *call) {
    const int truth = opdi_truth(opd_arg_tensor(call, 0));
    return truth < 0 ? -1 : opd_return_bool(call, truth != 0);
}
/* Ends an assertion that holds.  If the operator has a result (_functional_..), returns a copy of its last argument. */
static int opdi_assert_done(opd_call *call) {
    return call->op->nrets ? opd_return_tensor(call, opd_clone(opd_arg_tensor(call, call->op->nargs - 1))) : 0;
}
static int opdi_assert_async_kernel(opd_call *call) {
    const int truth = opdi_truth(opd_arg_tensor(call, 0));
    if (truth == 0 && call->op->nargs > 1) { return opd_fail(OPD_ERROR_ARGUMENT, "%s", opd_arg_str(call, 1)); }
    if (truth == 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Expected Tensor with single nonzero value, but got zero");
    }
    return truth < 0 ? -1 : opdi_assert_done(call);
}
/* _assert_async of a fake tensor: there is no memory to check. */
static int opdi_assert_async_fake(opd_call *call) { return opdi_assert_done(call); }
/* The batching rule of _assert_async: checks all examples together.  None of their elements may be 0. */
static int opdi_assert_async_batch(opd_call *call) {
    int dim;
    opd_value args[3], rets[1];
    for (int i = 0; i < call->op->nargs; i++) { args[i] = call->args[i]; }
    opd_tensor *tensor = opd_batch_value(args[0].u.t, &dim);
    if (!tensor) { return -1; }
    const bool numbers = dim >= 0 && tensor->numel == opd_size(tensor, dim);
    if (numbers) { tensor = opd_all(opd_ne_Scalar(tensor, opd_value_int(0))); }
    else if (dim >= 0) { tensor = opd_select(tensor, dim, 0); }    /* fails, as each example has several numbers */
    args[0].u.t = tensor;
    if (call->op->nrets) { args[2].u.t = opd_batch_value(args[2].u.t, &dim); }
    if (!tensor || opd_call_all(call->op, rets, args, call->op->nargs)) { return -1; }
    return call->op->nrets ? opd_batch_return(call, rets[0].u.t, dim) : 0;
}
static int opdi_assert_scalar_kernel(opd_call *call) {
    const char *text = opd_arg_str(call, 1);
    if (opdi_scalar_of(&call->args[0]) != 0) { return opdi_assert_done(call); }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s", text && *text ? text : "Assertion is failed");
}
/* sym_constrain_range and sym_constrain_range_for_size: fail unless size is in [min, max]. */
static int opdi_constrain_kernel(opd_call *call) {
    const bool sized = strstr(call->op->schema->name, "for_size") != NULL;
    const opd_value *given = &call->args[0];
    const double number = opdi_scalar_of(given);
    if (given->tag != OPD_TAG_INT && !opdi_fits_i64(number)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "value cannot be converted to int64 without overflow");
    }
    const int64_t size = given->tag == OPD_TAG_INT ? given->u.i : (int64_t)number;
    const int64_t low = opd_arg_is_none(call, 1) ? (sized ? 0 : INT64_MIN) : opd_arg_int(call, 1),
        high = opd_arg_is_none(call, 2) ? INT64_MAX : opd_arg_int(call, 2);
    if (sized && high <= 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Max value to constrain_range_for_size must be greater than 2. got: %lld",
                        (long long)high);
    }
    if (high < low) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Max must be greater than or equal to min. Got min=%lld max=%lld",
                        (long long)low, (long long)high);
    }
    if (size >= low && size <= high) { return opdi_assert_done(call); }
    return opd_fail(OPD_ERROR_ARGUMENT, "Invalid value range for %lld between [%lld, %lld].", (long long)size,
                    (long long)low, (long long)high);
}
/* Fails unless have[count], one of the tensor's lists (sizes or strides), equals the list in argument i, if that is
   given.  `name` is the name of the list for the message.  Returns 0, or -1 and sets an error. */
static int opdi_assert_list(const char *name, opd_call *call, int i, const int64_t *have, int count) {
    const opd_ints list = opd_arg_is_none(call, i) ? opd_ints_of(have, count) : opd_arg_ints(call, i);
    char expected[256], got[256];
    bool same = list.n == count;
    for (int k = 0; same && k < count; k++) { same = list.data[k] == have[k]; }
    return same ? 0 : opd_fail(OPD_ERROR_SHAPE, "Tensor %s mismatch! Expected: %s, Got: %s", name,
                               opdi_sizes_text(list.data, (int)OPDI_MIN(list.n, (int64_t)OPD_MAX_DIMS), expected,
                                               sizeof expected),
                               opdi_sizes_text(have, count, got, sizeof got));
}
static int opdi_assert_metadata_kernel(opd_call *call) {
    const opd_tensor *tensor = opd_arg_tensor(call, 0);
    const opd_value dtype = opd_arg_value(call, 3), device = opd_arg_value(call, 4), layout = opd_arg_value(call, 5);
    if (opdi_assert_list("sizes", call, 1, opdi_sizes(tensor), tensor->ndim) ||
        opdi_assert_list("strides", call, 2, opdi_strides(tensor), tensor->ndim)) {
        return -1;
    }
    if (dtype.tag == OPD_TAG_INT && dtype.u.i != tensor->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "Tensor dtype mismatch! Expected: %s, Got: %s",
                        opd_dtype_name((opd_scalar_type)dtype.u.i), opd_dtype_name((opd_scalar_type)tensor->dtype));
    }
    if (device.tag == OPD_TAG_DEVICE && !opdi_is_at(tensor, device.u.device)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Tensor device mismatch! Expected: %s, Got: %s",
                        opdi_device_name(device.u.device.type), opdi_device_name(opd_tensor_device(tensor).type));
    }
    return layout.tag != OPD_TAG_INT || layout.u.i == 0 ? 0
        : opd_fail(OPD_ERROR_ARGUMENT, "Tensor layout mismatch! Expected: %lld, Got: Strided", (long long)layout.u.i);
}
/* opd_is_nonzero: true if the only element of self is not 0 */
OPDI_OP(is_nonzero) {
    op->schema = "is_nonzero(Tensor self) -> bool";
    op->composite = opdi_is_nonzero_kernel;
    op->cases = "[1]+; []i2";
}
/* opd_assert_async: fails if the only element of self is 0 */
OPDI_OP(_assert_async) {
    op->schema = "_assert_async(Tensor self) -> ()";
    op->cpu = opdi_assert_async_kernel; op->fake = opdi_assert_async_fake; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_assert_async_batch;
    op->cases = "[1]+";
}
/* opd_assert_async_msg: fails with the message assert_msg if the only element of self is 0 */
OPDI_OP(_assert_async_msg) {
    op->schema = "_assert_async.msg(Tensor self, str assert_msg) -> ()";
    op->cpu = opdi_assert_async_kernel; op->fake = opdi_assert_async_fake; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_assert_async_batch;
    op->cases = "[1]+, 'it is not'";
}
/* opd_functional_assert_async_msg: _assert_async.msg that returns a copy of dep_token */
OPDI_OP(_functional_assert_async_msg) {
    op->schema = "_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor";
    op->cpu = opdi_assert_async_kernel; op->fake = opdi_assert_async_fake; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_assert_async_batch;
    op->cases = "[1]+, 'it is not', [2]";
}
/* opd_assert_scalar: fails with the message assert_msg if self is 0 */
OPDI_OP(_assert_scalar) {
    op->schema = "_assert_scalar(Scalar self, str assert_msg) -> ()";
    op->any = opdi_assert_scalar_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "1, 'it is not'";
}
/* opd_functional_assert_scalar: _assert_scalar that returns a copy of dep_token */
OPDI_OP(_functional_assert_scalar) {
    op->schema = "_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor";
    op->any = opdi_assert_scalar_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "1, 'it is not', [2]";
}
/* opd_sym_constrain_range: fails unless size is in [min, max] */
OPDI_OP(sym_constrain_range) {
    op->schema = "sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()";
    op->any = opdi_constrain_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "3, min=1, max=4";
}
/* opd_sym_constrain_range_for_size: sym_constrain_range for the size of a dim */
OPDI_OP(sym_constrain_range_for_size) {
    op->schema = "sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()";
    op->any = opdi_constrain_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "3, min=1, max=4";
}
/* opd_functional_sym_constrain_range: sym_constrain_range that returns a copy of dep_token */
OPDI_OP(_functional_sym_constrain_range) {
    op->schema = "_functional_sym_constrain_range(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor";
    op->any = opdi_constrain_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "3, 1, 4, [2]";
}
/* opd_functional_sym_constrain_range_for_size: sym_constrain_range_for_size that returns a copy of dep_token */
OPDI_OP(_functional_sym_constrain_range_for_size) {
    op->schema = "_functional_sym_constrain_range_for_size(Scalar size, int? min, int? max, Tensor dep_token) -> "
        "Tensor";
    op->any = opdi_constrain_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "3, 1, 4, [2]";
}
/* opd_assert_tensor_metadata: fails unless the tensor has these sizes, strides, dtype and device */
OPDI_OP(_assert_tensor_metadata) {
    op->schema = "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? "
        "dtype=None, *, Device? device=None, Layout? layout=None) -> ()";
    op->any = opdi_assert_metadata_kernel; op->backward = OPD_NOT_DIFFERENTIABLE;
    op->vmap = opdi_batch_query;
    op->cases = "[2,3]; [2,3], (2,3)";
}
