#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>extern_calls operators that cannot be written as C code: calls from compiled graphs
//
//  A call is recorded as a nest that no pass changes.  The nest reads one buffer, into which the tensors of the call
//  were copied one after the other, and writes another buffer, from which the results are copied.  Other nests are
//  fused with these copies as with all copies.  Arguments of an operator that the program has registered keep their
//  strides; built-in operators get contiguous copies.
//----------------------------------------------------------------------------------------------------------------------

typedef int (*opdi_extern_each)(opd_tensor *tensor, int from, int element, void *user);

/* Sets `sizes` to the sizes of loops over a tensor's elements, and the strides in *access to the strides of these
   loops.  If the tensor's dtype has no C type, each element is visited as one or several elements of a dtype that has
   one.  Returns the number of loops, or -1 and sets an error. */
OPDI_INTERNAL int opdi_extern_loops(const opd_tensor *tensor, int64_t sizes[OPDI_NEST_DIMS], opdi_access *access) {
    int64_t strides[OPDI_NEST_DIMS];
    int each;
    const opd_scalar_type unit = opdi_nest_unit(opd_dtype(tensor), &each);
    const int n = opd_ndim(tensor) + (each > 1);
    if (n > OPDI_NEST_DIMS) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "a tensor of %d dims cannot be compiled", opd_ndim(tensor));
        return -1;
    }
    for (int i = 0; i < opd_ndim(tensor); i++) {
        sizes[i] = opd_sizes(tensor)[i];
        strides[i] = opd_strides(tensor)[i] * each;
    }
    if (each > 1) {
        sizes[n - 1] = each;
        strides[n - 1] = 1;
    }
    return opdi_access_set(access, opd_device_data(tensor, OPD_LAZY), unit, strides, n) ? -1 : n;
}
/* Records a copy of a tensor to `buffer`, from byte slot->place on; if `back` is true, records a copy from there to the
   tensor.  Returns 0, or -1 and sets an error. */
static int opdi_extern_copy(const opdi_extern_tensor *slot, const opd_tensor *tensor, opdi_buffer *buffer, bool back) {
    int64_t sizes[OPDI_NEST_DIMS];
    opdi_access mine, other;
    int each;
    if (opd_numel(tensor) == 0) { return 0; }
    const int n = opdi_extern_loops(tensor, sizes, &mine);
    (void)opdi_nest_unit(opd_dtype(tensor), &each);
    for (int i = 0; i < slot->ndim; i++) { if (slot->laid && slot->strides[i] == 0) { sizes[i] = 1; } }
    opdi_nest *const nest = n < 0 ? NULL : opdi_nest_new(sizes, n, 0);
    opdi_expr *const load = nest ? opdi_expr_new(OPDI_EXPR_LOAD, mine.dtype) : NULL;
    if (!load) { return -1; }
    memset(&other, 0, sizeof other);
    other.buffer = buffer;
    other.dtype = mine.dtype;
    other.offset = slot->place / (int64_t)opd_dtype_size(mine.dtype);
    for (int i = 0; i < n; i++) { other.strides[i] = i < slot->ndim ? slot->strides[i] * each : 1; }
    load->access = back ? other : mine;
    nest->out = back ? mine : other;
    return opdi_nest_add(nest, load);
}
/* Returns whether the arguments of an operator keep their strides.  Without a tag, those of an operator of the program
   do, and those of a built-in operator do not, as in PyTorch; in the mode of same bits they do, because strides may
   decide in which order a kernel adds. */
static bool opdi_extern_is_exact(const opd_op *op) {
    const uint32_t tags = opd_op_tags(op);
    if (opd_same_bits()) { return true; }
    if (tags & (OPD_OPTAG_NEEDS_EXACT_STRIDES | OPD_OPTAG_NEEDS_FIXED_STRIDE_ORDER)) { return true; }
    return !(tags & OPD_OPTAG_FLEXIBLE_LAYOUT) && op->definition && op->definition->lib != opdi_registry.aten;
}
/* Returns whether two elements of a tensor can share memory, except along dims with the stride 0. */
static bool opdi_extern_folds(const opd_tensor *tensor) {
    int64_t end = 0, next = 0;
    for (int64_t from = 0; ; from = next) {       /* visits the strides above 0 in ascending order */
        int at = -1;
        for (int i = 0; i < tensor->ndim; i++) {
            const int64_t stride = opd_strides(tensor)[i];
            if (tensor->dims[i] < 2 || stride <= from) { continue; }
            if (at >= 0 && stride == next) { return true; }
            if (at < 0 || stride < next) {
                at = i;
                next = stride;
            }
        }
        if (at < 0) { return false; }
        if (next <= end) { return true; }
        end += (tensor->dims[at] - 1) * next;
    }
}
/* Fills `slot` with the properties of a tensor, and gives it a place in a buffer, after the tensors that end at byte
   *end.  Advances *end.  If `exact` is true, the elements keep their strides. */
static void opdi_extern_slot(opdi_extern_tensor *slot, const opd_tensor *tensor, bool exact, size_t *end) {
    slot->dtype = opd_dtype(tensor);
    slot->ndim = opd_ndim(tensor);
    slot->place = (int64_t)*end;
    const size_t bytes = (size_t)slot->ndim * sizeof *slot->sizes;
    memcpy(slot->sizes, opd_sizes(tensor), bytes);
    opdi_strides_fill(slot->sizes, slot->strides, slot->ndim);
    slot->laid = exact && opd_numel(tensor) && memcmp(slot->strides, opd_strides(tensor), bytes) != 0;
    if (slot->laid) { memcpy(slot->strides, opd_strides(tensor), bytes); }
    const size_t size = slot->laid ? opdi_span(tensor) : (size_t)opd_numel(tensor) * opd_dtype_size(slot->dtype);
    *end += (size + 63) / 64 * 64;
}
/* Fills `slot` for a part of a constant, which is passed as it is: a tensor in blocks, or frozen codes of 8 bits, of
   which operators may keep a packed form.  Returns 1; 0 if a tensor of codes is no such constant; or -1 and sets an
   error. */
static int opdi_extern_hold(const opdi_extern_call *called, opdi_extern_tensor *slot, const opd_tensor *tensor) {
    const void *const data = opd_device_data(tensor, OPD_LAZY);
    const opdi_buffer *const buffer = data ? opdi_buffer_at(opdi_recording_now, data) : NULL;
    const bool block = opdi_is_block(tensor->dtype), here = opdi_recording_now->here && !called->written;
    if (!block && (!here || (tensor->dtype != OPD_INT8 && tensor->dtype != OPD_UINT8))) { return 0; }
    if (!buffer || buffer->role != OPDI_BUFFER_CONSTANT || !buffer->tensor ||
        buffer->tensor->dtype != tensor->dtype) {
        return !block ? 0 : opd_fail(OPD_ERROR_NO_KERNEL, "%s cannot be compiled: a tensor of %s is not a constant",
                        opd_op_name(called->op), opd_dtype_name(opd_dtype(tensor)));
    }
    slot->place = OPDI_EXTERN_HELD;
    slot->held = buffer->tensor;
    slot->begin = (int64_t)((uintptr_t)data - (uintptr_t)opdi_buffer_address(buffer));
    slot->dtype = opd_dtype(tensor);
    slot->ndim = opd_ndim(tensor);
    memcpy(slot->sizes, opd_sizes(tensor), (size_t)slot->ndim * sizeof *slot->sizes);
    memcpy(slot->strides, opd_strides(tensor), (size_t)slot->ndim * sizeof *slot->strides);
    slot->held_ndim = slot->held->ndim;
    memcpy(slot->held_dims, slot->held->dims, 2 * (size_t)slot->held_ndim * sizeof *slot->held_dims);
    return 1;
}
/* Returns whether the constants that a call gets as they are, are still what they were when it was recorded. */
OPDI_INTERNAL bool opdi_extern_holds(const opdi_extern_call *called) {
    bool holds = true;
    for (int i = 0; i < called->nin && holds; i++) {
        const opdi_extern_tensor *const slot = &called->in[i];
        const opd_tensor *const held = slot->place == OPDI_EXTERN_HELD ? slot->held : NULL;
        holds = !held || ((opd_scalar_type)held->dtype == slot->dtype && held->ndim == slot->held_ndim &&
            memcmp(held->dims, slot->held_dims, 2 * (size_t)held->ndim * sizeof *held->dims) == 0);
    }
    return holds;
}
/* Returns a view of the part of a constant that `slot` describes, or NULL and sets an error. */
static opd_tensor *opdi_extern_held(const opdi_extern_tensor *slot) {
    const opd_tensor *const held = slot->held;
    opd_tensor *const view = opdi_tensor_on(held->storage, held->data + slot->begin, slot->sizes, slot->strides,
                                            slot->ndim, slot->dtype, held->backend);
    if (!view) { return NULL; }
    opdi_share_storage(view, held);
    return opdi_own(view);
}
/* Adds a tensor argument to called->in; NULL means None.  Returns 0, or -1 and sets an error. */
static int opdi_extern_argument(opdi_extern_call *called, const opd_tensor *tensor) {
    opdi_extern_tensor *const slot = &called->in[called->nin++];
    slot->place = -1;
    if (!tensor) { return 0; }
    if (opd_tensor_device(tensor).type == OPD_LAZY) {
        const int held = opdi_extern_hold(called, slot, tensor);
        if (held) { return held < 0 ? -1 : 0; }
        opdi_extern_slot(slot, tensor, opdi_extern_is_exact(called->op), &called->in_bytes);
        return 0;
    }
    if (!opd_tensor_is_wrapped_number(tensor)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s reads a tensor that is neither an input nor a constant of the graph: "
                        "make it an input", opd_op_name(called->op));
    }
    slot->place = OPDI_EXTERN_NUMBER;
    slot->dtype = opd_dtype(tensor);
    memcpy(slot->number, opd_data((opd_tensor *)(uintptr_t)tensor), opd_dtype_size(slot->dtype));
    return 0;
}
/* Returns whether a value can be stored for later runs.  Objects and cells cannot be stored, because they belong to the
   current run. */
static bool opdi_extern_keeps(const opd_value *value) {
    bool keeps = value->tag != OPD_TAG_OBJECT && value->tag != OPD_TAG_CELL;
    for (int32_t i = 0; value->tag == OPD_TAG_LIST && i < value->n; i++) {
        keeps = keeps && opdi_extern_keeps(&value->u.list[i]);
    }
    return keeps;
}
/* Stores the arguments of a call in called->args, for later runs.  Returns 0, or -1 and sets an error. */
static int opdi_extern_arguments(opdi_extern_call *called, const opd_value *args) {
    for (int i = 0; i < called->nargs; i++) {
        const opd_value *const value = &args[i];
        opd_value *const kept = &called->args[i];
        *kept = *value;
        if (value->tag == OPD_TAG_TENSOR) {
            kept->n = called->nin;
            if (opdi_extern_argument(called, value->u.t)) { return -1; }
        } else if (value->tag == OPD_TAG_TENSORS) {
            kept->u.i = called->nin;
            for (int32_t k = 0; k < value->n; k++) {
                if (opdi_extern_argument(called, value->u.tensors[k])) { return -1; }
            }
        } else if (value->tag == OPD_TAG_DEVICE && value->u.device.type == OPD_LAZY) {
            *kept = opd_value_device(opd_device_make(OPD_CPU, -1));
        } else {
            const int64_t bytes = opdi_value_bytes(value, 0);
            if (bytes < 0 || value->tag == OPD_TAG_DEVICE || !opdi_extern_keeps(value)) {
                return opd_fail(OPD_ERROR_ARGUMENT, "%s: the value of argument %d cannot be kept in compiled code",
                                opd_op_name(called->op), i);
            }
            char *const copy = (char *)opdi_recording_alloc(opdi_recording_now, (size_t)bytes);
            if (!copy) { return -1; }
            (void)opdi_value_copy(kept, copy);
        }
    }
    return 0;
}
/* Returns the number of tensors in `count` values, including tensors in lists. */
static int opdi_extern_count(const opd_value *values, int count) {
    int sum = 0;
    for (int i = 0; i < count; i++) {
        sum += values[i].tag == OPD_TAG_TENSOR ? 1 : values[i].tag == OPD_TAG_TENSORS ? values[i].n : 0;
    }
    return sum;
}
/* Calls `each` for every tensor that a call returns or writes, in order.  Returns 0, or the first value other than 0
   that `each` returns. */
static int opdi_extern_outputs(const opd_op *op, const opd_value *args, const opd_value *rets,
                               opdi_extern_each each, void *user) {
    const uint64_t written = opdi_schema_written(op->schema, args);
    int rc = 0;
    for (int i = 0; i < op->nrets + op->nargs && rc == 0; i++) {
        const bool result = i < op->nrets;
        const opd_value *const value = result ? &rets[i] : &args[i - op->nrets];
        if (result ? op->ret_alias[i] >= 0 : !(written >> (i - op->nrets) & 1)) { continue; }
        const int from = result ? i : ~(i - op->nrets);
        if (value->tag == OPD_TAG_TENSOR) { rc = each(value->u.t, from, -1, user); }
        for (int32_t k = 0; value->tag == OPD_TAG_TENSORS && k < value->n && rc == 0; k++) {
            if (value->u.tensors[k]) { rc = each(value->u.tensors[k], from, k, user); }
        }
    }
    return rc;
}
/* The state while the results of a call are recorded: each result gets a place in a buffer, and is then copied from
   there. */
typedef struct opdi_extern_job { opdi_extern_call *called; opdi_buffer *from; int32_t at; } opdi_extern_job;
static int opdi_extern_place(opd_tensor *tensor, int from, int element, void *user) {
    opdi_extern_job *const job = (opdi_extern_job *)user;
    opdi_extern_tensor *const slot = &job->called->out[job->at++];
    slot->from = from;
    slot->element = element;
    if (opd_tensor_device(tensor).type != OPD_LAZY) {
        return opd_fail(OPD_ERROR_NO_KERNEL, "%s cannot be compiled", opd_op_name(job->called->op));
    }
    if (opdi_is_block(tensor->dtype)) {
        return opd_fail(OPD_ERROR_NO_KERNEL, "%s cannot be compiled: its result is stored in blocks",
                        opd_op_name(job->called->op));
    }
    opdi_extern_slot(slot, tensor, false, &job->called->out_bytes);
    return 0;
}
static int opdi_extern_copy_back(opd_tensor *tensor, int from, int element, void *user) {
    (void)from;
    (void)element;
    opdi_extern_job *const job = (opdi_extern_job *)user;
    return opdi_extern_copy(&job->called->out[job->at++], tensor, job->from, true);
}
/* Returns a reason why compiled code cannot make a call, or NULL if it can.  `rets` are the results of the operator's
   fake kernel; NULL: they are not known yet. */
OPDI_INTERNAL const char *opdi_extern_refuses(const opdi_recording *recording, const opd_call *call,
                                              const opd_value *rets) {
    opd_op *const op = opd_call_operator(call);
    if (!recording->calls || recording->open || !op->schema) { return "it"; }
    if (opd_op_tags(op) & (OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE | OPD_OPTAG_DATA_DEPENDENT_OUTPUT |
                           OPD_OPTAG_INPLACE_VIEW)) {
        return "its results depend on data, or it changes sizes in place";
    }
    if (!recording->draws && opdi_call_is_random(op, opd_call_args(call))) { return "it uses random numbers"; }
    if (opdi_returns_view(op)) { return "it returns a view"; }
    for (int i = 0; i < op->nrets; i++) {
        const opdi_alias *const alias = op->schema->returns[i].type->alias;
        if (alias && op->ret_alias[i] < 0) { return "it returns a view"; }
        if (rets && rets[i].tag != OPD_TAG_TENSOR && rets[i].tag != OPD_TAG_TENSORS && rets[i].tag != OPD_TAG_NONE) {
            return "it returns a number";
        }
    }
    return NULL;
}
/* Returns tensor number `at` of the tensors in a call's arguments, or NULL if there are fewer.  Sets *written to true
   if the operator writes the tensor. */
static opd_tensor *opdi_extern_tensor_at(const opd_op *op, const opd_value *args, int at, bool *written) {
    const uint64_t all = opdi_schema_written(op->schema, args);
    for (int i = 0; i < op->nargs; i++) {
        const bool list = args[i].tag == OPD_TAG_TENSORS;
        const int count = list ? args[i].n : args[i].tag == OPD_TAG_TENSOR;
        *written = all >> i & 1;
        for (int k = 0; k < count; k++) {
            opd_tensor *const tensor = list ? args[i].u.tensors[k] : args[i].u.t;
            if (tensor && at-- == 0) { return tensor; }
        }
    }
    return NULL;
}
/* Returns whether the memory of two tensors overlaps. */
static bool opdi_called_overlap(const opd_tensor *a, const opd_tensor *b) {
    const char *const first = (const char *)a->data, *const second = (const char *)b->data;
    return a->numel && b->numel && first && second && first < second + opdi_span(b) && second < first + opdi_span(a);
}
/* Returns a reason why the tensors of a call cannot be passed as copies, or NULL if they can.  A written tensor must
   not overlap itself or another argument, and a result must not be an argument, unless the schema says so. */
static const char *opdi_extern_shares(const opd_op *op, const opd_value *args, const opd_value *rets) {
    const bool exact = opdi_extern_is_exact(op);
    bool written, other;
    opd_tensor *a, *b;
    for (int i = 0; (a = opdi_extern_tensor_at(op, args, i, &written)) != NULL; i++) {
        if (written && opdi_overlaps_itself(a)) { return "a tensor that it writes shares memory with itself"; }
        if (exact && opdi_extern_folds(a)) { return "elements of its argument share memory"; }
        for (int k = 0; written && (b = opdi_extern_tensor_at(op, args, k, &other)) != NULL; k++) {
            if (k != i && opdi_called_overlap(a, b)) {
                return "a tensor that it writes shares memory with another tensor";
            }
        }
        for (int k = 0; k < op->nrets; k++) {
            const int count = rets[k].tag == OPD_TAG_TENSORS ? rets[k].n : rets[k].tag == OPD_TAG_TENSOR;
            for (int n = 0; n < count && op->ret_alias[k] < 0; n++) {
                b = rets[k].tag == OPD_TAG_TENSORS ? rets[k].u.tensors[n] : rets[k].u.t;
                if (a == b) { return "its result is an argument"; }
            }
        }
    }
    return NULL;
}
/* Returns true if each tensor of a call is contiguous or repeats one element.  Some operators generate random numbers
   in the order of a tensor's memory.  The written code passes contiguous copies to such an operator, so it gets the
   same numbers only if this function returns true. */
static bool opdi_extern_rows(const opd_op *op, const opd_value *args) {
    bool written, rows = true;
    const opd_tensor *tensor;
    for (int i = 0; (tensor = opdi_extern_tensor_at(op, args, i, &written)) != NULL; i++) {
        bool one = true;
        for (int k = 0; k < tensor->ndim; k++) { one = one && opd_strides(tensor)[k] == 0; }
        rows = rows && (one || opd_is_contiguous(tensor));
    }
    return rows;
}
/* Records the nest of a call.  It reads the buffer `in` and writes the buffer `out`.  Returns 0, or -1 and sets an
   error. */
static int opdi_extern_nest(opdi_extern_call *called, opdi_buffer *in, opdi_buffer *out) {
    const int64_t sizes[2] = {(int64_t)out->bytes, (int64_t)in->bytes};
    opdi_nest *const nest = opdi_nest_new(sizes, 2, 1);
    opdi_expr *const load = opdi_expr_new(OPDI_EXPR_LOAD, OPD_UINT8);
    if (!nest || !load) { return -1; }
    load->access.buffer = in;
    load->access.dtype = OPD_UINT8;
    load->access.strides[1] = 1;
    nest->out.buffer = out;
    nest->out.dtype = OPD_UINT8;
    nest->out.strides[0] = 1;
    nest->reduction = OPDI_REDUCTION_EXTERN;
    nest->called = called;
    return opdi_nest_add(nest, load);
}
/* Returns a new buffer of `bytes` bytes (at least 64), or NULL and sets an error. */
static opdi_buffer *opdi_extern_buffer(size_t bytes) {
    opdi_buffer *const buffer = opdi_buffer_new(opdi_recording_now, OPDI_MAX(bytes, (size_t)64), OPDI_BUFFER_TEMPORARY);
    if (buffer) { buffer->dtype = OPD_UINT8; }
    return buffer;
}
/* Returns a new call of `op` with the arguments `args`, or NULL and sets an error.  The results of the call are not
   known yet. */
static opdi_extern_call *opdi_extern_new(opd_op *op, const opd_value *args) {
    opdi_recording *const recording = opdi_recording_now;
    opdi_extern_call *const called = (opdi_extern_call *)opdi_recording_alloc(recording, sizeof *called);
    if (!called) { return NULL; }
    called->op = op;
    called->nargs = op->nargs;
    called->written = opdi_schema_written(op->schema, args);
    called->args = (opd_value *)opdi_recording_alloc(recording, (size_t)op->nargs * sizeof *called->args);
    called->in = (opdi_extern_tensor *)opdi_recording_alloc(recording, (size_t)opdi_extern_count(args, op->nargs) *
                                                            sizeof *called->in);
    return called->args && called->in && opdi_extern_arguments(called, args) == 0 ? called : NULL;
}
/* Records the copies of the tensors of a call to its input buffer.  Returns 0, or -1 and sets an error. */
static int opdi_extern_gather(const opdi_extern_call *called, const opd_value *args, opdi_buffer *in) {
    for (int i = 0; i < called->nargs; i++) {
        const opd_value *const kept = &called->args[i];
        const bool list = kept->tag == OPD_TAG_TENSORS;
        const int count = list ? kept->n : kept->tag == OPD_TAG_TENSOR;
        for (int k = 0; k < count; k++) {
            const opdi_extern_tensor *const slot = &called->in[list ? kept->u.i + k : kept->n];
            const opd_tensor *const tensor = list ? args[i].u.tensors[k] : args[i].u.t;
            if (slot->place >= 0 && opdi_extern_copy(slot, tensor, in, false)) { return -1; }
        }
    }
    return 0;
}
/* Removes the results of a call, so that another kernel can make them. */
OPDI_INTERNAL void opdi_extern_forget(opd_call *call) {
    opdi_rets_drop(call);
    call->filled = call->owned = 0;
    call->cursor = 0;
}
/* Removes the nests that were recorded after `last` by a lowering that has failed, and releases the results.  The
   caller then records a call of the operator instead. */
OPDI_INTERNAL void opdi_extern_instead(opd_call *call, opdi_nest *last) {
    opdi_recording *const recording = opdi_recording_now;
    recording->last = last;
    if (last) { last->next = NULL; } else { recording->first = NULL; }
    opdi_extern_forget(call);
}
/* Returns whether a call has arguments that lowerings do not support: complex numbers, or a dtype without a C type. */
OPDI_INTERNAL bool opdi_extern_unfit(const opd_call *call) {
    bool unfit = false;
    int each;
    for (int i = 0; i < opd_call_nargs(call); i++) {
        const opd_value *const value = &opd_call_args(call)[i];
        const bool list = value->tag == OPD_TAG_TENSORS;
        const int count = list ? value->n : value->tag == OPD_TAG_TENSOR;
        unfit = unfit || value->tag == OPD_TAG_COMPLEX;
        for (int k = 0; k < count; k++) {
            const opd_tensor *const tensor = list ? value->u.tensors[k] : value->u.t;
            unfit = unfit || (tensor && opdi_nest_unit(opd_dtype(tensor), &each) != opd_dtype(tensor));
        }
    }
    return unfit;
}
/* Returns an operator's name without its namespace. */
OPDI_INTERNAL const char *opdi_lower_name(const char *name) {
    const char *const end = strstr(name, "::");
    return end ? end + 2 : name;
}
/* The kernel on the lazy device for operators that have no other kernel there.  Records a call of the operator.
   Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_extern_record(opd_call *call) {
    opd_op *const op = opd_call_operator(call);
    opdi_recording *const recording = opdi_recording_now;
    const opd_value *const args = opd_call_args(call);
    if (opdi_extern_refuses(recording, call, NULL)) {
        return opd_fail(OPD_ERROR_NO_KERNEL, "%s cannot be compiled", opd_op_name(op));
    }
    if (opd_results_from_fake(call)) { return -1; }
    const opd_value *const rets = opd_call_rets(call);
    const char *why = opdi_extern_refuses(recording, call, rets);
    if (!why) { why = opdi_extern_shares(op, args, rets); }
    const bool draws = opdi_generator_was_missed() || opdi_call_is_random(op, args);
    if (!why && draws && !opdi_extern_rows(op, args)) {
        why = "it uses random numbers for a tensor that is not contiguous";
    }
    if (!why && draws && opdi_generator_has_sides()) { why = "it uses random numbers on one side of a condition"; }
    if (why) { return opd_fail(OPD_ERROR_NO_KERNEL, "%s cannot be compiled: %s", opd_op_name(op), why); }
    if (recording->draws) { opdi_generator_pause_set(true); }      /* the call uses random numbers */
    opdi_extern_call *const called = opdi_extern_new(op, args);
    if (!called) { return -1; }
    called->draws = draws;
    called->nout = opdi_extern_count(rets, op->nrets) + opdi_extern_count(args, op->nargs);
    called->out = (opdi_extern_tensor *)opdi_recording_alloc(recording, (size_t)called->nout * sizeof *called->out);
    opdi_extern_job job = {called, NULL, 0};
    if (!called->out || opdi_extern_outputs(op, args, rets, opdi_extern_place, &job)) { return -1; }
    called->nout = job.at;
    opdi_buffer *const in = opdi_extern_buffer(called->in_bytes), *const out = opdi_extern_buffer(called->out_bytes);
    if (!in || !out) { return -1; }
    out->kept = called->nout == 0 || draws;       /* the nest must remain even if nothing reads its results */
    called->id = recording->ncalled++;
    called->next = recording->called;
    recording->called = called;
    job.from = out;
    job.at = 0;
    return opdi_extern_gather(called, args, in) || opdi_extern_nest(called, in, out) ||
        opdi_extern_outputs(op, args, rets, opdi_extern_copy_back, &job) ? -1 : 0;
}

//== running called operators ==========================================================================================

/* Returns a copy of a call in the memory of `arena`, or NULL and sets an error. */
OPDI_INTERNAL opdi_extern_call *opdi_extern_keep(opdi_arena *arena, const opdi_extern_call *called) {
    const size_t in = (size_t)called->nin * sizeof *called->in, out = (size_t)called->nout * sizeof *called->out;
    opdi_extern_call *const copy = (opdi_extern_call *)opdi_arena_alloc(arena, sizeof *copy);
    if (!copy) { return NULL; }
    *copy = *called;
    copy->args = (opd_value *)opdi_arena_alloc(arena, (size_t)(called->nargs + 1) * sizeof *copy->args);
    copy->in = (opdi_extern_tensor *)opdi_arena_alloc(arena, in + 8);
    copy->out = (opdi_extern_tensor *)opdi_arena_alloc(arena, out + 8);
    if (!copy->args || !copy->in || !copy->out) { return NULL; }
    memcpy(copy->in, called->in, in);
    memcpy(copy->out, called->out, out);
    for (int i = 0; i < called->nargs; i++) {
        copy->args[i] = called->args[i];
        const opd_tag tag = (opd_tag)copy->args[i].tag;
        const int64_t bytes = tag == OPD_TAG_TENSOR || tag == OPD_TAG_TENSORS ? 0 : opdi_value_bytes(&copy->args[i], 0);
        char *const memory = bytes > 0 ? (char *)opdi_arena_alloc(arena, (size_t)bytes) : NULL;
        if (bytes > 0 && !memory) { return NULL; }
        if (bytes > 0) { (void)opdi_value_copy(&copy->args[i], memory); }
    }
    return copy;
}
/* Returns the number in `slot`, which is an argument of the call instead of a tensor. */
OPDI_INTERNAL opd_value opdi_extern_number(const opdi_extern_tensor *slot) {
    int64_t whole = 0;
    if (slot->dtype == OPD_BOOL) { return opd_value_bool(*(const uint8_t *)slot->number != 0); }
    if (opd_dtype_is_complex(slot->dtype)) { return opd_value_complex(slot->number); }
    if (opd_dtype_is_floating(slot->dtype)) { return opd_value_double(slot->number[0]); }
    memcpy(&whole, slot->number, sizeof whole);
    return opd_value_int(whole);
}
/* Returns the tensor of an argument.  If the operator writes the tensor, it is a copy; otherwise it uses the memory at
   `in`.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_extern_tensor_of(const opdi_extern_tensor *slot, const unsigned char *in, bool written) {
    if (slot->place == OPDI_EXTERN_NUMBER) { return opd_tensor_wrapped_number(opdi_extern_number(slot)); }
    if (slot->place == OPDI_EXTERN_HELD) { return opdi_extern_held(slot); }
    const opd_ints sizes = opd_ints_of(slot->sizes, slot->ndim), strides = opd_ints_of(slot->strides, slot->ndim);
    opd_tensor *const tensor = opd_tensor_wrap((void *)(uintptr_t)(in + slot->place), sizes, strides.data, slot->dtype,
                                               NULL, NULL);
    return written && tensor ? opd_copy_(opd_empty_strided(sizes, strides, slot->dtype), tensor) : tensor;
}
/* The state while the results of a call are copied to the memory at `out`. */
typedef struct opdi_extern_outputs_state {
    const opdi_extern_call *called;
    unsigned char *out;
    int32_t at;
} opdi_extern_outputs_state;
static int opdi_extern_store(opd_tensor *tensor, int from, int element, void *user) {
    opdi_extern_outputs_state *const gives = (opdi_extern_outputs_state *)user;
    const opdi_extern_tensor *const slot = gives->at < gives->called->nout ? &gives->called->out[gives->at] : NULL;
    gives->at++;
    if (!slot || slot->from != from || slot->element != element || opd_dtype(tensor) != slot->dtype ||
        opd_ndim(tensor) != slot->ndim ||
        memcmp(opd_sizes(tensor), slot->sizes, (size_t)slot->ndim * sizeof *slot->sizes) != 0) {
        return opd_fail(OPD_ERROR_KERNEL, "%s: result %d differs from the result of the operator's fake kernel",
                        opd_op_name(gives->called->op), (int)gives->at - 1);
    }
    opd_tensor *const to = opd_tensor_wrap(gives->out + slot->place, opd_ints_of(slot->sizes, slot->ndim), NULL,
                                           slot->dtype, NULL, NULL);
    return to && opd_copy_(to, tensor) ? 0 : -1;
}
/* Sets `args` to the arguments of a call.  The tensors are read from `in` and belong to the innermost scope.  Returns
   0, or -1 and sets an error. */
static int opdi_extern_fill(const opdi_extern_call *called, const unsigned char *in, opd_value *args) {
    for (int i = 0; i < called->nargs; i++) {
        const opd_value *const kept = &called->args[i];
        const bool written = called->written >> i & 1;
        args[i] = *kept;
        if (kept->tag == OPD_TAG_TENSOR) {
            opd_tensor *const tensor = opdi_extern_tensor_of(&called->in[kept->n], in, written);
            if (!tensor) { return -1; }
            args[i] = opd_value_tensor(tensor);
        } else if (kept->tag == OPD_TAG_TENSORS) {
            opd_tensor **const list = (opd_tensor **)opdi_scope_alloc((size_t)(kept->n + 1) * sizeof *list);
            if (!list) { return -1; }
            for (int32_t k = 0; k < kept->n; k++) {
                const opdi_extern_tensor *const slot = &called->in[kept->u.i + k];
                list[k] = slot->place == -1 ? NULL : opdi_extern_tensor_of(slot, in, written);
                if (!list[k] && slot->place != -1) { return -1; }
            }
            args[i] = opd_value_tensors(list, kept->n);
        }
    }
    return 0;
}
/* Returns the sum of the versions of all arguments that the operator must not write, according to its schema.  If the
   operator writes one of them, the sum changes. */
static uint64_t opdi_extern_writes(const opdi_extern_call *called, const opd_value *args) {
    uint64_t sum = 0;
    bool written;
    const opd_tensor *tensor;
    for (int i = 0; (tensor = opdi_extern_tensor_at(called->op, args, i, &written)) != NULL; i++) {
        if (!written && tensor->storage) { sum += OPDI_LOAD(&tensor->storage->version); }
    }
    return sum;
}
/* Calls an operator with `args`, and copies its results to `out`.  Returns 0, or -1 and sets an error. */
static int opdi_extern_now(const opdi_extern_call *called, const opd_value *args, unsigned char *out) {
    opd_value rets[OPDI_MAX_RETURNS];
    opdi_extern_outputs_state gives = {called, out, 0};
    const uint64_t writes = opdi_extern_writes(called, args);
    if (opd_call_all(called->op, rets, args, called->nargs)) { return -1; }
    if (opdi_extern_writes(called, args) != writes) {
        return opd_fail(OPD_ERROR_KERNEL, "%s writes an argument, but its schema does not declare this",
                        opd_op_name(called->op));
    }
    if (opdi_extern_outputs(called->op, args, rets, opdi_extern_store, &gives)) { return -1; }
    return gives.at == called->nout ? 0 : opd_fail(OPD_ERROR_KERNEL, "%s: there are fewer results than from the "
                                                   "operator's fake kernel", opd_op_name(called->op));
}
/* Calls an operator of a compiled graph with the tensors at `in`, and copies its results to `out`.  Returns 0, or 4 and
   sets an error; the compiled code then also returns 4. */
OPDI_INTERNAL int opdi_extern_run(const opdi_extern_call *called, const unsigned char *in, unsigned char *out) {
    opd_scope scope = opd_scope_open();
    const bool was = opd_grad_mode_set(false);
    opd_value args[OPD_MAX_ARGS];
    const int rc = opdi_extern_fill(called, in, args) || opdi_extern_now(called, args, out) || !opd_ok();
    (void)opd_grad_mode_set(was);
    opd_scope_close(&scope);
    return rc ? 4 : 0;
}
