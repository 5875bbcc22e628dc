#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>loops_c      conditions and loops of a graph as conditions and loops of C
//
//  Each function of a condition or loop is recorded once, as a unit of its own (opdi_inner_body), with the tensors that
//  it reads as inputs.  In the recording around it, each result of the condition or loop is a nest that no pass
//  changes and that has a load of each tensor that is read.  The C function of the first of these nests has the loop.
//  It reads slices and writes results in place.  A carried value has two buffers, the result and one more, so that the
//  last round writes the result.
//----------------------------------------------------------------------------------------------------------------------

//== recording a body ==================================================================================================

/* Returns the number of the operand that is argument `at` of the functions. */
static int opdi_inner_operand_of(const opdi_inner *inner, int at) { return at + (inner->kind != OPDI_RECORDED_SCAN); }
/* Sets the error that a condition or loop cannot be compiled.  Returns -1. */
static int opdi_inner_fail(const opdi_inner *inner, const char *why) {
    return opd_fail(OPD_ERROR_ARGUMENT, "%s cannot be compiled: %s", inner->what, why);
}
/* Adds an operand, a tensor of the recording around the condition or loop.  Returns 0, or -1 and sets an error. */
static int opdi_inner_add(opdi_inner *inner, opd_tensor *tensor, bool sliced) {
    opdi_inner_operand *const operand = &inner->operands[inner->noperands];
    int each;
    if (!tensor) { return -1; }
    const opd_scalar_type dtype = opd_dtype(tensor);
    if (inner->noperands == OPDI_INNER_OPERANDS) { return opdi_inner_fail(inner, "it reads too many tensors"); }
    if (opd_tensor_device(tensor).type != OPD_LAZY || !opd_numel(tensor) || !opdi_c_type(dtype) ||
        opdi_nest_unit(dtype, &each) != dtype) {
        return opdi_inner_fail(inner, "it reads a tensor without elements, or of another kind");
    }
    const void *const data = opd_device_data(tensor, OPD_LAZY);
    opdi_buffer *const buffer = opdi_buffer_at(opdi_recording_now, data);
    if (!buffer) { return opdi_inner_fail(inner, "it reads a tensor from outside of the graph"); }
    if (buffer->dtype == OPD_DTYPE_NONE) { buffer->dtype = dtype; }
    operand->dtype = dtype;
    operand->place = (int64_t)((uintptr_t)data - (uintptr_t)opdi_buffer_address(buffer));
    operand->step = sliced ? opd_strides(tensor)[0] : 0;
    inner->tensors[inner->noperands++] = tensor;
    return 0;
}
/* Returns a tensor that stands for operand `at`, or for a slice of it, in the recording of a body; or NULL and sets an
   error. */
static opd_tensor *opdi_inner_stand_in(opdi_inner_body *body, const opdi_inner *inner, int at, bool sliced) {
    const opd_tensor *const tensor = inner->tensors[at];
    const int first = sliced;
    const opd_ints sizes = opd_ints_of(opd_sizes(tensor) + first, opd_ndim(tensor) - first);
    const int64_t *const strides = opd_strides(tensor) + first;
    int64_t last = 0;
    char number[16];
    for (int64_t i = 0; i < opd_ndim(tensor) - first; i++) { last += strides[i] * (sizes.data[i] - 1); }
    opdi_buffer *const buffer = opdi_buffer_new(&body->unit.recording, (size_t)(last + 1) *
                                                opd_dtype_size(opd_dtype(tensor)), OPDI_BUFFER_INPUT);
    (void)snprintf(number, sizeof number, "%d", at);
    if (!buffer || !(buffer->name = opdi_unit_name(&body->unit, "in_", number))) { return NULL; }
    buffer->dtype = opd_dtype(tensor);
    buffer->index = body->ninputs;
    body->inputs[body->ninputs] = buffer;
    body->operands[body->ninputs++] = at;
    return opd_tensor_wrap_on(opdi_buffer_address(buffer), sizes, strides, opd_dtype(tensor),
                              opd_device_make(OPD_LAZY, 0), NULL, NULL);
}
/* Returns a bool tensor without dims: whether a condition, which must be a tensor with one element, is not 0.  Returns
   NULL and sets an error on failure. */
static opd_tensor *opdi_inner_truth(const opdi_inner *inner, const opd_value *test) {
    if (test->tag != OPD_TAG_TENSOR || opd_numel(test->u.t) != 1) {
        (void)opdi_inner_fail(inner, "its condition is not a tensor with one element");
        return NULL;
    }
    return opd_ne_Scalar(opd_reshape(test->u.t, opd_ints_of(NULL, 0)), opd_value_int(0));
}
/* Calls the functions of body `which` with args[job->nargs].  Writes the outputs: the carried values, the results, and
   of a while, the next condition.  Returns their number, or -1 and sets an error. */
static int opdi_inner_call(const opdi_inner *inner, const opdi_control_job *job, int which, opd_value *args,
                           opd_value *outputs, int cap) {
    const bool loops = inner->kind == OPDI_RECORDED_WHILE;
    int count = job->flow->call(job->flow, loops ? 1 : which, args, job->nargs, outputs, cap);
    if (count > cap) { return opdi_inner_fail(inner, "it returns too many values"); }
    if (count < 0 || !loops) { return count; }
    if (!job->test) {
        if (count != job->carried) { return opdi_inner_fail(inner, "it returns another number of values"); }
        memcpy(args, outputs, (size_t)count * sizeof *args);
        if (job->flow->call(job->flow, 0, args, job->nargs, outputs + count, 1) != 1) { return -1; }
        count++;
    }
    opd_tensor *const holds = count == job->carried + 1 ? opdi_inner_truth(inner, &outputs[count - 1]) : NULL;
    if (!holds) { return -1; }
    outputs[count - 1] = opd_value_tensor(holds);
    return count;
}
/* Checks the outputs of a body.  Returns 0, or -1 and sets an error. */
static int opdi_inner_check(const opdi_inner *inner, const opdi_control_job *job, const opdi_inner_body *body,
                            const opd_value *outputs, int count) {
    if (count < job->carried || (body != inner->bodies && count != inner->nresults)) {
        return opdi_inner_fail(inner, "it returns another number of values");
    }
    for (int i = 0; i < count; i++) {
        if (outputs[i].tag != OPD_TAG_TENSOR) { return opdi_inner_fail(inner, "it returns a value that is no tensor"); }
        if (i < job->carried && !opdi_control_same(&job->args[i], &outputs[i])) {
            return opdi_inner_fail(inner, "a carried value changes its sizes or dtype");
        }
        const opd_tensor *const tensor = outputs[i].u.t;
        const opdi_buffer *const buffer = opd_tensor_device(tensor).type == OPD_LAZY && opd_numel(tensor)
            ? opdi_buffer_at(opdi_recording_now, opd_device_data(tensor, OPD_LAZY)) : NULL;
        if (job->flow->apart && buffer && buffer->role == OPDI_BUFFER_INPUT) {
            return opdi_inner_fail(inner, "it returns a tensor that it reads, and the graph writes into tensors");
        }
        if (!opdi_c_type(opd_dtype(tensor))) { return opdi_inner_fail(inner, "it returns a dtype without a C type"); }
    }
    return 0;
}
/* Checks that a body writes only memory of its own.  Returns 0, or -1 and sets an error. */
static int opdi_inner_check_writes(const opdi_inner *inner, const opdi_recording *recording) {
    for (const opdi_nest *nest = recording->first; nest; nest = nest->next) {
        if (nest->out.buffer->role == OPDI_BUFFER_TEMPORARY) { continue; }
        return opdi_inner_fail(inner, "it writes into a tensor that it has not made");
    }
    return 0;
}
/* Makes constants that a body has made inputs, so that they are constants of the recording around it.  Returns 0, or
   -1 and sets an error. */
static int opdi_inner_constants(opdi_inner *inner, opdi_inner_body *body, opdi_recording *around) {
    const opdi_recording *const recording = &body->unit.recording;
    for (int i = 0; i < recording->nbuffers; i++) {
        opdi_buffer *const buffer = recording->buffers[i];
        char number[16];
        if (buffer->role != OPDI_BUFFER_CONSTANT) { continue; }
        opdi_buffer *const outer = opdi_buffer_new(around, buffer->bytes, OPDI_BUFFER_CONSTANT);
        (void)snprintf(number, sizeof number, "%d", inner->noperands);
        if (!outer || !(buffer->name = opdi_unit_name(&body->unit, "in_", number))) { return -1; }
        if (inner->noperands == OPDI_INNER_OPERANDS || buffer->dtype == OPD_DTYPE_NONE) {
            return opdi_inner_fail(inner, "it reads too many tensors");
        }
        outer->data = buffer->data;
        outer->dtype = buffer->dtype;
        buffer->role = OPDI_BUFFER_INPUT;
        buffer->data = NULL;
        inner->operands[inner->noperands].dtype = buffer->dtype;
        opd_tensor *const tensor = opd_tensor_wrap_on(opdi_buffer_address(outer), OPD_INTS((int64_t)outer->bytes), NULL,
                                                      OPD_UINT8, opd_device_make(OPD_LAZY, 0), NULL, NULL);
        if (!tensor) { return -1; }
        inner->tensors[inner->noperands] = tensor;
        body->inputs[body->ninputs] = buffer;
        body->operands[body->ninputs++] = inner->noperands++;
    }
    return 0;
}
/* Records a body, in the recording body->unit.recording, which is the current one.  Returns 0, or -1 and sets an
   error. */
static int opdi_inner_fill(opdi_inner *inner, const opdi_control_job *job, int which) {
    opdi_inner_body *const body = &inner->bodies[which];
    const int cap = OPDI_MAX(job->flow->most, job->carried) + 2;
    opd_value *const args = opdi_control_values(job->nargs), *const outputs = opdi_control_values(cap);
    if (!args || !outputs) { return -1; }
    for (int i = 0, at = opdi_inner_operand_of(inner, 0); i < job->nargs; i++) {
        args[i] = job->args[i];
        if (args[i].tag != OPD_TAG_TENSOR || opd_tensor_is_wrapped_number(args[i].u.t)) { continue; }
        const bool sliced = i >= job->carried && i < job->carried + job->sliced;
        args[i] = opd_value_tensor(opdi_inner_stand_in(body, inner, at++, sliced));
        if (!args[i].u.t) { return -1; }
    }
    const int count = opdi_inner_call(inner, job, which, args, outputs, cap - 1);
    if (count < 0 || !opd_ok() || opdi_inner_check(inner, job, body, outputs, count) ||
        opdi_unit_reserve(&body->unit, 0, count)) { return -1; }
    for (int i = 0; i < count; i++) {
        char number[16];
        (void)snprintf(number, sizeof number, "%d", i);
        if (opdi_unit_output(&body->unit, outputs[i].u.t, number)) { return -1; }
    }
    inner->nresults = count;
    return opdi_inner_check_writes(inner, &body->unit.recording);
}
/* Gives all groups of a body its number. */
static void opdi_inner_number(opdi_inner_body *body, bool steady, int first) {
    for (int i = 0; i < body->ninputs && steady; i++) { body->inputs[i]->steady = body->operands[i] >= first; }
    for (opdi_group *group = body->unit.groups; group; group = group->next) { group->inside = body->id; }
}
/* Records body `which`, fuses it and plans its memory.  Returns 0, or -1 and sets an error. */
static int opdi_inner_body_make(opdi_inner *inner, const opdi_control_job *job, int which) {
    opdi_recording *const around = opdi_recording_now;
    opdi_inner_body *const body = &inner->bodies[which];
    opdi_recording *const recording = &body->unit.recording;
    inner->nbodies = which + 1;
    body->unit.what = inner->what;
    body->inputs = (opdi_buffer **)opdi_recording_alloc(around, (OPDI_INNER_OPERANDS + 1) * sizeof *body->inputs);
    body->operands = (int32_t *)opdi_recording_alloc(around, (OPDI_INNER_OPERANDS + 1) * sizeof *body->operands);
    if (!body->inputs || !body->operands) { return -1; }
    recording->calls = around->calls;
    recording->draws = around->draws;
    recording->here = around->here;
    recording->controls = recording->body = true;
    recording->ncalled = around->ncalled;
    recording->called = around->called;
    recording->nkernels = around->nkernels;
    recording->kernels = around->kernels;
    recording->ninner = around->ninner;
    body->id = ++recording->ninner;
    opdi_recording_now = recording;
    opd_scope scope = opd_scope_open();
    int rc = opdi_inner_fill(inner, job, which);
    opd_scope_close(&scope);
    if (rc == 0) {
        opdi_recording_now = around;              /* in which the constants are made */
        rc = opdi_inner_constants(inner, body, around);
        opdi_recording_now = recording;
    }
    if (rc == 0) {
        opdi_inner_number(body, inner->kind != OPDI_RECORDED_COND,
                          opdi_inner_operand_of(inner, job->carried + job->sliced));
        rc = opdi_unit_fuse(&body->unit);
        opdi_inner_number(body, false, 0);
        body->unit.here = recording->here;
    }
    opdi_recording_now = around;
    if (rc) { return -1; }
    for (const opdi_extern_call *called = recording->called; called != around->called; called = called->next) {
        inner->draws = inner->draws || called->draws;
    }
    for (const opdi_inner *other = recording->inner; other; other = other->next) {
        inner->draws = inner->draws || other->draws;
    }
    around->ncalled = recording->ncalled;
    around->called = recording->called;
    around->nkernels = recording->nkernels;
    around->kernels = recording->kernels;
    around->ninner = recording->ninner;
    return 0;
}

//== recording the nests of the results ================================================================================

/* Returns the loads of all operands, as one expression of a nest; or NULL and sets an error. */
static opdi_expr *opdi_inner_loads(const opdi_inner *inner) {
    opdi_expr *value = opdi_expr_number(OPD_UINT8, 0, 0);
    for (int i = inner->noperands - 1; i >= 0 && value; i--) {
        const opd_tensor *const tensor = inner->tensors[i];
        opdi_expr *const load = opdi_expr_new(OPDI_EXPR_LOAD, OPD_UINT8);
        if (!load || opdi_access_set(&load->access, opd_device_data(tensor, OPD_LAZY), OPD_UINT8, NULL, 0)) {
            return NULL;
        }
        load->access.offset += (int64_t)opdi_span(tensor) - 1;
        value = opdi_expr_formula(OPD_FORMULA_add, OPD_UINT8, load, value);
    }
    return value;
}
/* Makes the tensor of result `at`, and records the nest that writes it.  Returns NULL and sets an error on failure. */
static opd_tensor *opdi_inner_result_make(opdi_inner *inner, int at) {
    opdi_inner_result *const result = &inner->results[at];
    const opdi_unit_port *const port = &inner->bodies[0].unit.outputs[at];
    const bool stacked = inner->kind == OPDI_RECORDED_SCAN && at >= inner->ncarried;
    int64_t sizes[OPD_MAX_DIMS + 1], count = 1;
    if (port->ndim + stacked > OPD_MAX_DIMS) {
        (void)opdi_inner_fail(inner, "a result has too many dims");
        return NULL;
    }
    sizes[0] = inner->length;
    for (int i = 0; i < port->ndim; i++) { count *= sizes[i + stacked] = port->sizes[i]; }
    result->dtype = port->dtype;
    result->bytes = count * (int64_t)opd_dtype_size(port->dtype);
    result->step = stacked ? count : 0;
    result->total = stacked ? result->bytes * inner->length : result->bytes;
    opd_tensor *const tensor = opd_empty(opd_ints_of(sizes, port->ndim + stacked), port->dtype);
    if (!tensor || !result->total) { return tensor; }
    const int64_t loops[2] = {result->total, 1}, one = 1;
    opdi_nest *const nest = opdi_nest_new(loops, 2, 1);
    opdi_expr *const value = nest ? opdi_inner_loads(inner) : NULL;
    if (!value || opdi_access_set(&nest->out, opd_device_data(tensor, OPD_LAZY), OPD_UINT8, &one, 1)) { return NULL; }
    nest->out.buffer->dtype = port->dtype;
    nest->out.buffer->kept = inner->draws;
    nest->reduction = OPDI_REDUCTION_EXTERN;
    nest->inner = inner;
    nest->what = inner->what;
    result->nest = nest;
    return opdi_nest_add(nest, value) ? NULL : tensor;
}
/* Makes the results.  Returns their number, or -1 and sets an error. */
static int opdi_inner_results(opdi_inner *inner, opd_value *outputs) {
    opdi_recording *const around = opdi_recording_now;
    const int count = inner->nresults - (inner->kind == OPDI_RECORDED_WHILE);
    inner->results = (opdi_inner_result *)opdi_recording_alloc(around, (size_t)(inner->nresults + 1) *
                                                               sizeof *inner->results);
    if (!inner->results) { return -1; }
    for (int i = 0; i < count; i++) {
        opd_tensor *const tensor = opdi_inner_result_make(inner, i);
        if (!tensor) { return -1; }
        outputs[i] = opd_value_tensor(tensor);
    }
    return count;
}

//== conditions and loops ==============================================================================================

/* Adds the operands, and records the bodies.  Returns 0, or -1 and sets an error. */
static int opdi_inner_bodies(opdi_inner *inner, const opdi_control_job *job) {
    const opdi_control *const flow = job->flow;
    opd_value test = job->test ? *job->test : opd_value_none();
    if (inner->kind == OPDI_RECORDED_WHILE && !job->test && flow->call(flow, 0, job->args, job->nargs, &test, 1) != 1) {
        return -1;
    }
    if (inner->kind == OPDI_RECORDED_WHILE && flow->apart) {
        return opdi_inner_fail(inner, "the graph writes into tensors");
    }
    if (inner->kind != OPDI_RECORDED_SCAN && opdi_inner_add(inner, opdi_inner_truth(inner, &test), false)) {
        return -1;
    }
    for (int i = 0; i < job->nargs; i++) {
        opd_tensor *const tensor = job->args[i].tag == OPD_TAG_TENSOR ? job->args[i].u.t : NULL;
        if (!tensor || opd_tensor_is_wrapped_number(tensor)) {
            if (i >= job->carried + job->sliced) { continue; }
            return opdi_inner_fail(inner, "it carries or slices a number");
        }
        opd_tensor *const plain = opd_resolve_neg(opd_resolve_conj(tensor));
        if (opdi_inner_add(inner, i < job->carried ? opd_contiguous(plain) : plain,
                           i >= job->carried && i < job->carried + job->sliced)) { return -1; }
    }
    return opdi_inner_body_make(inner, job, 0) ||
        (inner->kind == OPDI_RECORDED_COND && opdi_inner_body_make(inner, job, 1)) ? -1 : 0;
}
/* Checks that both sides of a condition return the same sizes and dtypes.  Returns 0, or -1 and sets an error. */
static int opdi_inner_sides(const opdi_inner *inner) {
    for (int i = 0; i < inner->nresults && inner->kind == OPDI_RECORDED_COND; i++) {
        const opdi_unit_port *const first = &inner->bodies[0].unit.outputs[i];
        const opdi_unit_port *const second = &inner->bodies[1].unit.outputs[i];
        if (first->dtype != second->dtype || first->ndim != second->ndim ||
            memcmp(first->sizes, second->sizes, (size_t)first->ndim * sizeof *first->sizes) != 0) {
            return opdi_inner_fail(inner, "its sides return different sizes or dtypes");
        }
    }
    return 0;
}
/* Removes the nests after `last`, and the ids of calls that a condition or loop has taken. */
static void opdi_inner_undo(opdi_recording *recording, const opdi_recording *was) {
    recording->last = was->last;
    if (was->last) { was->last->next = NULL; } else { recording->first = NULL; }
    recording->ncalled = was->ncalled;
    recording->called = was->called;
    recording->nkernels = was->nkernels;
    recording->kernels = was->kernels;
    recording->ninner = was->ninner;
}
/* Records a condition or loop (opdi_control_lower).  If a scan cannot be recorded as a loop, or a condition cannot be
   recorded as one, the caller calls the functions itself. */
OPDI_INTERNAL int opdi_inner_lower(const opdi_control_job *job) {
    opdi_recording *const recording = opdi_recording_now;
    if (!recording || !recording->controls || recording->open ||
        (job->kind == OPDI_RECORDED_SCAN && job->length < 2) || !opd_ok()) { return OPDI_CONTROL_DECLINES; }
    if (job->test && (job->test->tag != OPD_TAG_TENSOR || job->test->u.t->backend != OPD_LAZY)) {
        return OPDI_CONTROL_DECLINES;
    }
    const opdi_recording was = *recording;
    opdi_inner *const inner = (opdi_inner *)opdi_recording_alloc(recording, sizeof *inner);
    if (!inner) { return -1; }
    inner->kind = job->kind;
    inner->what = opdi_lower_name(job->flow->who);
    inner->ncarried = job->carried;
    inner->reverse = job->reverse;
    inner->length = job->length;
    const size_t count = OPDI_INNER_OPERANDS + 1;
    inner->operands = (opdi_inner_operand *)opdi_recording_alloc(recording, count * sizeof *inner->operands);
    inner->tensors = (opd_tensor **)opdi_recording_alloc(recording, count * sizeof *inner->tensors);
    int rc = !inner->operands || !inner->tensors || opdi_inner_bodies(inner, job) || opdi_inner_sides(inner) ? -1
        : opdi_inner_results(inner, job->outputs);
    inner->tensors = NULL;
    if (rc >= 0 && opd_ok()) {
        inner->next = recording->inner;
        recording->inner = inner;
        return rc;
    }
    opdi_inner_free(inner);
    opdi_inner_undo(recording, &was);
    const bool only = job->kind == OPDI_RECORDED_WHILE || (job->kind == OPDI_RECORDED_COND && job->flow->only);
    if (opdi_error_passes() || only) { return -1; }
    opd_error_clear();
    return OPDI_CONTROL_DECLINES;
}
