#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>builtin_tensors builtin functions of graphs: functions of tensors, and the table of all builtin functions
//----------------------------------------------------------------------------------------------------------------------

//== tensors ===========================================================================================================

OPDI_INTERNAL int opdi_fn_is_contiguous(opdi_bcall *call) {
    const opd_tensor *const tensor = opdi_call_tensor(call, 0);
    const int64_t format = call->nargs > 1 ? opdi_call_int(call, 1) : 0;
    if (!tensor) { return -1; }
    if (format != 0 && format != 2 && format != 3) {
        return opd_fail(OPD_ERROR_ARGUMENT, "aten::is_contiguous: unsupported memory format %lld", (long long)format);
    }
    return opdi_return_value(call, opd_value_bool(format ? opdi_tensor_channels_last(tensor, (int32_t)format + 2)
                                                  : opd_is_contiguous(tensor)));
}
OPDI_INTERNAL int opdi_fn_requires_grad(opdi_bcall *call) {
    opd_tensor *const tensor = opdi_call_tensor(call, 0);
    if (!tensor || !opd_tensor_set_requires_grad(tensor, opdi_call_int(call, 1) != 0)) { return -1; }
    return opdi_return_borrowed(call, call->args[0]);
}
OPDI_INTERNAL int opdi_fn_promote_types(opdi_bcall *call) {
    const opd_scalar_type first = (opd_scalar_type)opdi_call_int(call, 0);
    const opd_scalar_type second = (opd_scalar_type)opdi_call_int(call, 1);
    return opdi_return_value(call, call->builtin->what ? opd_value_bool(opd_can_cast(first, second))
                             : opd_value_int(opd_promote_types(first, second)));
}
/* Writes into a tensor.  If the builtin's `what` is 'c', runs copy_ of a number.  The others are for functions of
   torch.nn.init, which autograd does not record: 'f' fills the tensor with a number, 'z' with zeros, 'n' and 'u' with
   random numbers of the normal and the uniform distribution.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_written_to(opdi_bcall *call) {
    opd_tensor *const tensor = opdi_call_tensor(call, 0);
    const int what = call->builtin->what;
    if (!tensor) { return -1; }
    if (call->nargs > 3 && !opdi_call_none(call, 3)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: a generator is not supported", call->builtin->schema);
    }
    const bool grad = what == 'c' ? opd_grad_mode_enabled() : opd_grad_mode_set(false);
    const bool drawn = what == 'n' || what == 'u';
    const double first = drawn ? opdi_real_of(&call->args[1]) : 0, second = drawn ? opdi_real_of(&call->args[2]) : 0;
    opd_scope scope = opd_scope_open();
    const opd_value number = what == 'z' || drawn ? opd_value_int(0) : call->args[1];
    const bool done = what == 'n' ? opd_normal_(tensor, first, second) != NULL
        : what == 'u' ? opd_uniform_(tensor, first, second) != NULL : opd_fill_(tensor, number) != NULL;
    opd_scope_close(&scope);
    (void)opd_grad_mode_set(grad);
    return done ? opdi_return_borrowed(call, call->args[0]) : -1;
}
OPDI_INTERNAL int opdi_fn_broadcast_shapes(opdi_bcall *call) {
    opd_value sizes[2];
    int64_t both[OPD_MAX_DIMS];
    int64_t most = 0;
    for (int i = 0; i < 2; i++) {
        sizes[i] = opdi_value_plain(&call->args[i]);
        if (sizes[i].tag != OPD_TAG_INTS || sizes[i].n > OPD_MAX_DIMS) {
            return opd_fail(OPD_ERROR_ARGUMENT, "aten::broadcast_shapes: a shape has more than %d sizes", OPD_MAX_DIMS);
        }
        most = OPDI_MAX(most, sizes[i].n);
    }
    for (int64_t i = 1; i <= most; i++) {          /* from the last dim to the first */
        const int64_t one = i <= sizes[0].n ? sizes[0].u.ints[sizes[0].n - i] : 1;
        const int64_t other = i <= sizes[1].n ? sizes[1].u.ints[sizes[1].n - i] : 1;
        if (one != other && one != 1 && other != 1) {
            return opd_fail(OPD_ERROR_SHAPE, "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                            "non-singleton dimension %lld", (long long)one, (long long)other, (long long)(most - i));
        }
        both[most - i] = one == 1 ? other : one;
    }
    return opdi_return_borrowed(call, opd_value_ints(both, (int)most));
}
OPDI_INTERNAL int opdi_fn_result_type(opdi_bcall *call) {
    opd_tensor numbers[2], *both[2];               /* numbers: stand-ins for numbers; no other members than those set
                                                      here are read */
    memset(numbers, 0, sizeof numbers);
    for (int i = 0; i < 2; i++) {
        const opd_value *const value = &call->args[i];
        numbers[i].flags = OPDI_WRAPPED;
        numbers[i].dtype = (int32_t)(opdi_complex_of(value) ? OPD_COMPLEX128 : value->tag == OPD_TAG_FLOAT ? OPD_FLOAT64
                                    : value->tag == OPD_TAG_BOOL ? OPD_BOOL : OPD_INT64);
        both[i] = value->tag == OPD_TAG_TENSOR ? value->u.t : &numbers[i];
    }
    return opdi_return_value(call, opd_value_int(opdi_result_type_of(both, 2)));
}
OPDI_INTERNAL int opdi_fn_is_set_to(opdi_bcall *call) {
    const opd_tensor *const one = opdi_call_tensor(call, 0), *const other = one ? opdi_call_tensor(call, 1) : NULL;
    if (!other) { return -1; }
    return opdi_return_value(call, opd_value_bool(one->storage == other->storage && one->ndim == other->ndim &&
                                                  one->data == other->data && memcmp(one->dims, other->dims,
                                          2 * (size_t)one->ndim * sizeof *one->dims) == 0));
}
OPDI_INTERNAL int opdi_fn_tensor_property(opdi_bcall *call) {
    opd_tensor *const tensor = opdi_call_tensor(call, 0);
    if (!tensor) { return -1; }
    const opd_device device = opd_tensor_device(tensor);
    const int64_t size = (int64_t)opd_dtype_size(opd_dtype(tensor));
    switch (call->builtin->what) {
    case OPDI_OF_SIZE: return opdi_return_borrowed(call, opd_value_ints(tensor->dims, tensor->ndim));
    case OPDI_OF_STRIDE: return opdi_return_borrowed(call, opd_value_ints(tensor->dims + tensor->ndim, tensor->ndim));
    case OPDI_OF_DTYPE: return opdi_return_value(call, opd_value_int(opd_dtype(tensor)));
    case OPDI_OF_DEVICE: return opdi_return_value(call, opd_value_device(device));
    case OPDI_OF_GRAD: return opdi_return_value(call, opd_value_bool(opdi_requires_grad(tensor)));
    case OPDI_OF_LAYOUT: return opdi_return_value(call, opd_value_int(0));
    case OPDI_OF_ITEMSIZE: return opdi_return_value(call, opd_value_int(size));
    case OPDI_OF_NBYTES:
        return opdi_return_value(call, opd_value_int(opdi_elements_bytes(tensor->dtype, tensor->numel)));
    case OPDI_OF_CPU: return opdi_return_value(call, opd_value_bool(device.type == OPD_CPU));
    case OPDI_OF_CUDA: return opdi_return_value(call, opd_value_bool(device.type == OPD_CUDA));
    case OPDI_OF_META: return opdi_return_value(call, opd_value_bool(device.type == OPD_META));
    case OPDI_OF_LEAF: return opdi_return_value(call, opd_value_bool(opd_tensor_is_leaf(tensor)));
    case OPDI_OF_INDEX: return opdi_return_value(call, opd_value_int(device.type == OPD_CPU ? -1 : device.index));
    case OPDI_OF_DIMS: return opdi_return_value(call, opd_value_int(tensor->ndim));
    case OPDI_OF_NUMBER: return opdi_return_value(call, opd_value_int(tensor->output_nr));
    case OPDI_OF_RETAINS: return opdi_return_value(call, opd_value_bool(opd_tensor_retains_grad(tensor)));
    case OPDI_OF_SIGN:
        return opdi_return_value(call, opd_value_bool(opd_dtype(tensor) != OPD_BOOL && opd_dtype(tensor) != OPD_UINT8));
    default: break;
    }
    opd_scope scope = opd_scope_open();
    const int rc = opdi_return_tensor(call, opd_detach(tensor));
    opd_scope_close(&scope);
    return rc;
}
/* Fails: the builtin is for sparse, quantized or nested tensors or for pinned memory, which the library does not have.
   Returns -1. */
OPDI_INTERNAL int opdi_fn_refused(opdi_bcall *call) {
    static const char *const kinds[] = {
        "for sparse tensors, which are not supported",
        "for quantized tensors, but they are float32 tensors with the dequantized values here",
        "for nested tensors, which are not supported", "not supported, because there is no driver that pins memory"};
    const size_t length = strcspn(call->builtin->schema, "(");
    return opd_fail(OPD_ERROR_NO_KERNEL, "%.*s is %s", (int)length, call->builtin->schema, kinds[call->builtin->what]);
}
OPDI_INTERNAL int opdi_fn_cast(opdi_bcall *call) {
    opd_tensor *const tensor = opdi_call_tensor(call, 0);
    opd_scope scope = opd_scope_open();
    const int rc = tensor ? opdi_return_tensor(call, opd_to_dtype(tensor, (opd_scalar_type)call->builtin->what)) : -1;
    opd_scope_close(&scope);
    return rc;
}
/* Sets the call's result to the tensor's sizes, as a tensor.  If there is a second argument, `dim`, sets the result
   to the numbers 0 to size(dim) - 1 instead.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_shape(opdi_bcall *call) {
    opd_tensor *const tensor = opdi_call_tensor(call, 0);
    if (!tensor) { return -1; }
    const int64_t ndim = tensor->ndim, dim = call->nargs > 1 ? opdi_call_int(call, 1) : 0;
    if (call->nargs > 1 && (dim < -ndim || dim >= ndim)) {
        return opd_fail(OPD_ERROR_SHAPE, "aten::_dim_arange: Dimension out of range (expected to be in range of "
                        "[%lld, %lld], but got %lld)", (long long)-ndim, (long long)ndim - 1, (long long)dim);
    }
    opd_scope scope = opd_scope_open();
    opd_tensor *const out = call->nargs > 1
        ? opd_arange(opd_value_int(tensor->dims[dim < 0 ? dim + ndim : dim]), OPD_INT64)
        : opd_tensor_from(tensor->dims, opd_ints_of(&ndim, 1), OPD_INT64);
    const int rc = opdi_return_tensor(call, out);
    opd_scope_close(&scope);
    return rc;
}
OPDI_INTERNAL int opdi_fn_none(opdi_bcall *call) { return opdi_return_value(call, opd_value_none()); }
/* Sets the call's result to the gradient that backward has stored in a tensor, or to None.  Returns 0, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_fn_grad_of(opdi_bcall *call) {
    const opd_tensor *const tensor = opdi_call_tensor(call, 0);
    if (!tensor) { return -1; }
    opd_scope scope = opd_scope_open();
    opd_tensor *const grad = opd_tensor_grad(tensor);
    const int rc = grad ? opdi_return_tensor(call, grad) : opdi_fn_none(call);
    opd_scope_close(&scope);
    return opd_ok() ? rc : -1;
}
OPDI_INTERNAL int opdi_fn_retain_grad(opdi_bcall *call) {
    opd_tensor *const tensor = opdi_call_tensor(call, 0);
    return tensor ? opd_tensor_retain_grad(tensor) : -1;
}
enum { OPDI_GRADS_MOST = 256 };
/* Writes the tensors of argument i, a tensor or a list of tensors, to `tensors`; None in a list becomes NULL.  Returns
   the number of tensors, or -1 and sets an error. */
static int opdi_call_tensors(const opdi_bcall *call, int i, opd_tensor **tensors) {
    if (opdi_call_none(call, i)) { return 0; }
    tensors[0] = call->args[i].tag == OPD_TAG_TENSOR ? call->args[i].u.t : NULL;
    const opdi_cell *const list = tensors[0] ? NULL : opdi_call_list(call, i);
    if (!list || list->count > OPDI_GRADS_MOST) {
        return tensors[0] ? 1 : !list ? -1 : opd_fail(OPD_ERROR_ARGUMENT, "%s: argument %d has more than %d tensors",
                                                      call->builtin->schema, i, (int)OPDI_GRADS_MOST);
    }
    for (int64_t k = 0; k < list->count; k++) {
        const opd_value value = opdi_cell_at(list, k);
        tensors[k] = value.tag == OPD_TAG_TENSOR ? value.u.t : NULL;
    }
    return (int)list->count;
}
/* Runs torch.autograd.grad or, if the builtin's `what` is 1, torch.autograd.backward or Tensor.backward.  Returns 0, or
   -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_gradients(opdi_bcall *call) {
    opd_tensor *outputs[OPDI_GRADS_MOST], *inputs[OPDI_GRADS_MOST], *given[OPDI_GRADS_MOST], *grads[OPDI_GRADS_MOST];
    const bool only = call->builtin->what == 1;
    const int next = only ? 1 : 2, count = opdi_call_tensors(call, 0, outputs);
    const int ninputs = only || count < 0 ? 0 : opdi_call_tensors(call, 1, inputs);
    const int ngiven = count < 0 || ninputs < 0 ? -1 : opdi_call_tensors(call, next, given);
    opd_backward_options options;
    memset(&options, 0, sizeof options);
    if (ngiven < 0) { return -1; }
    if (ngiven && ngiven != count) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: each of the %d outputs needs a gradient, but %d gradients are given",
                        call->builtin->schema, count, ngiven);
    }
    options.grad_outputs = ngiven ? given : NULL;
    options.create_graph = opdi_call_int(call, next + 2) != 0;
    options.retain_graph = opdi_call_none(call, next + 1) ? options.create_graph : opdi_call_int(call, next + 1) != 0;
    if (only) { return opd_backward_with(outputs, count, &options); }
    options.allow_unused = opdi_call_int(call, 5) != 0;
    opd_scope scope = opd_scope_open();
    const int rc = opd_autograd_grad(outputs, count, inputs, ninputs, &options, grads) ||
        opdi_return_borrowed(call, opd_value_tensors(grads, ninputs)) ? -1 : 0;
    opd_scope_close(&scope);
    return rc;
}
/* Runs x.to(device, dtype), x.to(dtype) or x.to().  If an argument is None, x keeps this property.  The builtin's
   `what` is the index of the argument dtype, or 0 if there is none; -1 for cpu(), and -2 for cuda().  Returns 0, or -1
   and sets an error. */
OPDI_INTERNAL int opdi_fn_to(opdi_bcall *call) {
    opd_tensor *tensor = opdi_call_tensor(call, 0);
    const int at = call->builtin->what;
    if (!tensor) { return -1; }
    const opd_scalar_type dtype = at < 1 || opdi_call_none(call, at) ? opd_dtype(tensor)
        : (opd_scalar_type)opdi_call_int(call, at);
    const bool early = call->nargs > at + 1 && at >= 0 && opdi_call_int(call, at + 1) != 0;
    const bool copy = call->nargs > at + 2 && at >= 0 && opdi_call_int(call, at + 2) != 0;
    opd_device device = opd_tensor_device(tensor);
    if (at == 2 && !opdi_call_none(call, 1)) { device = call->args[1].u.device; }
    else if (at < 0 && opd_device_parse(at == -1 ? "cpu" : "cuda", &device)) { return -1; }
    opd_scope scope = opd_scope_open();
    tensor = at == 2 || at < 0 ? opd_to_device_full(tensor, device, dtype, early, copy, opd_value_none())
        : opd_to_dtype_full(tensor, dtype, early, copy, opd_value_none());
    const int rc = tensor ? opdi_return_tensor(call, tensor) : -1;
    opd_scope_close(&scope);
    return rc;
}
OPDI_INTERNAL int opdi_fn_as_tensor(opdi_bcall *call) {
    opd_tensor *const tensor = opdi_call_tensor(call, 0);
    if (!tensor) { return -1; }
    const opd_scalar_type dtype = opdi_call_none(call, 1) ? opd_dtype(tensor)
        : (opd_scalar_type)opdi_call_int(call, 1);
    const opd_device device = opdi_call_none(call, 2) ? opd_tensor_device(tensor) : call->args[2].u.device;
    opd_scope scope = opd_scope_open();
    opd_tensor *const out = opd_to_device(tensor, device, dtype);
    const int rc = out ? opdi_return_tensor(call, out) : -1;
    opd_scope_close(&scope);
    return rc;
}
OPDI_INTERNAL int opdi_fn_device(opdi_bcall *call) {
    int64_t length;
    opd_device device;
    const char *const text = opdi_call_text(call, 0, &length);
    if (!text || opd_device_parse(text, &device)) { return -1; }
    if (call->nargs > 1) { device.index = (int32_t)opdi_call_int(call, 1); }
    return opdi_return_value(call, opd_value_device(device));
}
OPDI_INTERNAL int opdi_fn_device_property(opdi_bcall *call) {
    char text[40], *colon;
    const opd_device device = call->args[0].u.device;
    if (call->builtin->what) {
        return opdi_return_value(call, device.index < 0 ? opd_value_none() : opd_value_int(device.index));
    }
    (void)opdi_device_text(device, text, sizeof text);
    if ((colon = strchr(text, ':')) != NULL) { *colon = 0; }
    return opdi_return_text(call, text, (int64_t)strlen(text));
}
OPDI_INTERNAL int opdi_fn_num_to_tensor(opdi_bcall *call) {
    opd_scope scope = opd_scope_open();
    const opd_value *const value = &call->args[0];
    const opd_scalar_type dtype = opdi_complex_of(value) ? OPD_COMPLEX128 : value->tag == OPD_TAG_FLOAT ? OPD_FLOAT64
        : value->tag == OPD_TAG_BOOL ? OPD_BOOL : OPD_INT64;
    const int rc = opdi_return_tensor(call, opd_scalar_tensor(opdi_value_plain(value), dtype));
    opd_scope_close(&scope);
    return rc;
}
/* Finds the sizes and the dtype of the tensor that torch.tensor makes from a nested list.  Returns 0, or -1 and sets an
   error. */
static int opdi_nested_sizes(const opd_value *value, int64_t *sizes, int *ndim, opd_scalar_type *dtype) {
    const opdi_cell *cell;
    for (*ndim = 0; (cell = opdi_cell_of(value)) != NULL && cell->kind == OPD_CELL_LIST; (*ndim)++) {
        if (*ndim == OPD_MAX_DIMS) { return opd_fail(OPD_ERROR_ARGUMENT, "a list is nested too deeply for a tensor"); }
        sizes[*ndim] = cell->count;
        if (cell->tag != OPD_TAG_LIST || cell->count == 0) {
            *dtype = cell->tag == OPD_TAG_INTS ? OPD_INT64 : cell->tag == OPD_TAG_BOOLS ? OPD_BOOL : OPD_FLOAT32;
            if (cell->tag == OPD_TAG_TENSORS && cell->count) {
                *dtype = cell->u.tensors[0] ? opd_dtype(cell->u.tensors[0]) : OPD_FLOAT32;
            }
            (*ndim)++;
            return 0;
        }
        value = &cell->u.values[0];
    }
    *dtype = opdi_complex_of(value) ? OPD_COMPLEX64 : value->tag == OPD_TAG_FLOAT ? OPD_FLOAT32
        : value->tag == OPD_TAG_BOOL ? OPD_BOOL : OPD_INT64;
    return 0;
}
/* Writes the numbers of a nested list, which is inside of `dim` other lists, to *at in row-major order, and advances
   *at.  `as` is the dtype in which they are written: complex128, float64 or int64.  Returns 0, or -1 and sets an
   error. */
static int opdi_nested_fill(const opd_value *value, const int64_t *sizes, int ndim, int dim, opd_scalar_type as,
                            char **at) {
    const opdi_cell *const cell = opdi_cell_of(value);
    opd_value number = *value;
    if (ndim > 0) {
        const bool lists = cell && cell->kind == OPD_CELL_LIST;
        if (!lists || cell->count != sizes[0]) {
            return lists ? opd_fail(OPD_ERROR_ARGUMENT, "Expected a list of %lld elements at dim %d, as in the lists "
                                    "before, but got a list of %lld", (long long)sizes[0], dim, (long long)cell->count)
                : opd_fail(OPD_ERROR_ARGUMENT, "Expected a list of %lld elements at dim %d, as in the lists before, "
                           "but got a number", (long long)sizes[0], dim);
        }
        for (int64_t i = 0; i < cell->count; i++) {
            const opd_value element = opdi_cell_at(cell, i);
            if (opdi_nested_fill(&element, sizes + 1, ndim - 1, dim + 1, as, at)) { return -1; }
        }
        return 0;
    }
    if (number.tag == OPD_TAG_TENSOR && opdi_tensor_scalar(number.u.t, &number)) { return -1; }
    const double *const pair = opdi_complex_of(&number), both[2] = {opdi_real_of(&number), pair ? pair[1] : 0};
    const int64_t whole = number.u.i;
    memcpy(*at, as == OPD_INT64 ? (const void *)&whole : both, opd_dtype_size(as));
    *at += opd_dtype_size(as);
    if (number.tag != value->tag) { opdi_value_drop(number); }
    return 0;
}
/* Runs torch.tensor of a number or a nested list.  The arguments are data, dtype, device and requires_grad.  Returns 0,
   or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_tensor(opdi_bcall *call) {
    int64_t sizes[OPD_MAX_DIMS + 1];
    int ndim;
    opd_scalar_type dtype;
    opd_tensor *tensor = NULL;
    if (opdi_nested_sizes(&call->args[0], sizes, &ndim, &dtype)) { return -1; }
    const opd_scalar_type as = opd_dtype_is_complex(dtype) ? OPD_COMPLEX128 : opd_dtype_is_floating(dtype)
        ? OPD_FLOAT64 : OPD_INT64;
    const opd_scalar_type want = opdi_call_none(call, 1) ? dtype : (opd_scalar_type)opdi_call_int(call, 1);
    opd_scope scope = opd_scope_open();
    opd_tensor *wide = opd_tensor_new(opd_ints_of(sizes, ndim), as);
    char *at = wide ? (char *)opd_data(wide) : NULL;
    int rc = wide && opd_numel(wide) ? opdi_nested_fill(&call->args[0], sizes, ndim, 0, as, &at) : wide ? 0 : -1;
    if (rc == 0) { tensor = opd_to_dtype(wide, want); }
    if (tensor && !opdi_call_none(call, 2) && call->args[2].u.device.type != OPD_CPU) {
        tensor = opd_to_device(tensor, call->args[2].u.device, want);
    }
    if (tensor && call->nargs > 3 && opdi_call_int(call, 3)) { tensor = opd_tensor_set_requires_grad(tensor, true); }
    rc = tensor ? opdi_return_tensor(call, tensor) : -1;
    opd_scope_close(&scope);
    return rc;
}
/* Returns a nested list of a tensor's elements.  `tag` is the tag of the innermost lists, `dim` the number of lists
   around this one.  Returns NULL and sets an error on failure. */
static opdi_cell *opdi_tensor_list(opd_tensor *tensor, int32_t tag, int dim) {
    const int64_t count = opd_size(tensor, 0);
    const bool inner = opd_ndim(tensor) > 1;
    opdi_cell *list = opdi_cell_new(OPD_CELL_LIST, inner ? OPD_TAG_LIST : tag, 0);
    int rc = list ? opdi_cell_reserve(list, count) : -1;
    for (int64_t i = 0; i < count && rc == 0; i++) {
        opd_scope scope = opd_scope_open();
        opd_tensor *part = opd_select(tensor, 0, i);
        opd_value element = opd_value_none();
        if (!part) { rc = -1; }
        else if (inner) {
            opdi_cell *cell = opdi_tensor_list(part, tag, dim + 1);
            element = opdi_cell_value(cell);
            rc = cell ? 0 : -1;
        } else { rc = opdi_tensor_scalar(part, &element); }
        if (rc == 0) {
            rc = opdi_cell_insert(list, i, element);
            opdi_value_drop(element);
        }
        opd_scope_close(&scope);
    }
    if (rc && list) { opdi_cell_drop(list); }
    return rc ? NULL : list;
}
/* Runs prim::tolist(tensor, dims, dtype).  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_tolist(opdi_bcall *call) {
    opd_tensor *const tensor = opdi_call_tensor(call, 0);
    const int64_t ndim = call->nargs > 1 ? opdi_call_int(call, 1) : tensor ? opd_ndim(tensor) : 0;
    opd_value value = opd_value_none();
    if (!tensor) { return -1; }
    const opd_scalar_type dtype = opd_dtype(tensor);
    const int64_t have = opd_dtype_is_floating(dtype) ? 1 : dtype == OPD_BOOL ? 2 : 0;
    if (ndim != opd_ndim(tensor)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Output annotation list dimension and runtime tensor dimension must match "
                        "for tolist()");
    }
    if (call->nargs > 2 && opdi_call_int(call, 2) != have) {
        static const char *const kinds[] = {"int", "float", "bool"};
        const int64_t wanted = opdi_call_int(call, 2);
        return opd_fail(OPD_ERROR_DTYPE, "Output annotation element type and runtime tensor element type must match "
                        "for tolist(): %s vs %s", wanted >= 0 && wanted < 3 ? kinds[wanted] : "?",
                        opd_dtype_name(dtype));
    }
    if (ndim == 0) { return opdi_tensor_scalar(tensor, &value) ? -1 : opdi_return_value(call, value); }
    return opdi_return_cell(call, opdi_tensor_list(tensor, have == 1 ? OPD_TAG_FLOATS : have == 2 ? OPD_TAG_BOOLS
                                                   : OPD_TAG_INTS, 0));
}
OPDI_INTERNAL int opdi_fn_infer_size(opdi_bcall *call) {
    const opdi_cell *const first = opdi_call_list(call, 0), *const second = first ? opdi_call_list(call, 1) : NULL;
    const int64_t count = second ? OPDI_MAX(first->count, second->count) : 0;
    opdi_cell *list = second ? opdi_cell_new(OPD_CELL_LIST, OPD_TAG_INTS, 0) : NULL;
    int rc = list ? opdi_cell_reserve(list, count) : -1;
    for (int64_t i = 0; rc == 0 && i < count; i++) {
        const int64_t at = i - (count - first->count), to = i - (count - second->count);
        const int64_t a = at < 0 ? 1 : first->u.ints[at], b = to < 0 ? 1 : second->u.ints[to];
        if (a != b && a != 1 && b != 1) {
            rc = opd_fail(OPD_ERROR_SHAPE, "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                          "non-singleton dimension %lld", (long long)a, (long long)b, (long long)i);
        } else { list->u.ints[list->count++] = a == 1 ? b : a; }
    }
    if (rc && list) { opdi_cell_drop(list); }
    return rc ? -1 : opdi_return_cell(call, list);
}
OPDI_INTERNAL int opdi_fn_dict_construct(opdi_bcall *call) {
    opdi_cell *dict = opdi_cell_new(OPD_CELL_DICT, OPD_TAG_LIST, 0);
    int rc = dict ? 0 : -1;
    for (int i = 0; rc == 0 && i + 1 < call->nargs; i += 2) {
        rc = opdi_dict_set(dict, call->args[i], call->args[i + 1]);
    }
    if (rc && dict) { opdi_cell_drop(dict); }
    return rc ? -1 : opdi_return_cell(call, dict);
}
/* Sets the call's result to true if the value has one of the types that the node has.  Its constant is a tuple type,
   and the parts are these types.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_fn_isinstance(opdi_bcall *call) {
    const opdi_gtype *const types =
        call->node->constant.tag == OPD_TAG_OBJECT ? (const opdi_gtype *)call->node->constant.u.object : NULL;
    bool found = false;
    for (int32_t i = 0; types && i < types->nparts && !found; i++) {
        found = opdi_value_is(&call->args[0], types->parts[i]);
    }
    return opdi_return_value(call, opd_value_bool(found));
}
