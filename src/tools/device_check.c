#include "tools.h"

//== all operators of a device against the CPU =========================================================================
//
//  Each sample call (see above) runs on the CPU and on the device, with equal arguments.  The results, and all
//  arguments after the call, are compared.  An operator has the worst outcome of its calls.

enum { OPDI_DCHECK_TENSORS = 64 };
/* A call on the CPU or on the device. */
typedef struct opdi_dcall {
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    opd_tensor *in[OPDI_DCHECK_TENSORS], *out[OPDI_DCHECK_TENSORS];
    int nin, nout;
} opdi_dcall;
typedef struct opdi_dcheck {
    const opd_device_check_options *options;
    opd_device device;
    opd_device_finding finding;
    char call[400], text[1000];
    bool tried;                                   /* a call of the operator has run on the device */
    double scale;                                 /* the tolerances are multiplied by it */
    int counts[OPD_DEVICE_OUTCOMES], calls;
} opdi_dcheck;

/* Writes what is wrong with results to `text`.  Returns 1. */
static int opdi_dcheck_differs(char *text, const char *format, ...) OPD_PRINTF_LIKE(2, 3);
static int opdi_dcheck_differs(char *text, const char *format, ...) {
    va_list ap;
    va_start(ap, format);
    (void)vsnprintf(text, 600, format, ap);
    va_end(ap);
    return 1;
}
/* Notes the outcome of a call, if it is the worst so far.  `form` says how the operator was called. */
static void opdi_dcheck_note(opdi_dcheck *check, const opdi_sample *sample, const char *form,
                             opd_device_outcome outcome, const char *text) {
    static const char *const layouts[] = {"", ", transposed", ", with gaps", ", channels last"};
    opd_device_finding *const finding = &check->finding;
    if (outcome <= finding->outcome && (finding->outcome != OPD_DEVICE_SKIPPED || outcome == OPD_DEVICE_SKIPPED)) {
        return;
    }
    if (outcome == OPD_DEVICE_SKIPPED && check->tried) { return; }
    finding->outcome = outcome;
    (void)snprintf(check->call, sizeof check->call, "%.*s%s%s%s%s", (int)OPDI_MIN(sample->length, (size_t)250),
                   sample->from, sample->typed ? "; " : "", sample->typed ? opd_dtype_name(sample->dtype) : "",
                   layouts[sample->layout], form);
    (void)snprintf(check->text, sizeof check->text, "%s", text);
}

//== calls =============================================================================================================

/* Adds the tensors of a value to list[*count]. */
static void opdi_dcall_collect(const opd_value *value, opd_tensor **list, int *count) {
    const int32_t many = value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR;
    for (int32_t i = 0; i < many && *count < OPDI_DCHECK_TENSORS; i++) {
        opd_tensor *const tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : value->u.tensors[i];
        if (tensor) { list[(*count)++] = tensor; }
    }
}
/* Sets the arguments of `op`, a form of the sample's operator, by their names.  Arguments that only the form has are
   the tensors outs[nouts].  Returns false if the form lacks an argument of the sample. */
static bool opdi_dcall_args(const opdi_sample *sample, const opd_op *op, opd_tensor *const *outs, int nouts,
                            opdi_dcall *call) {
    const opd_schema *const from = sample->op->schema, *const to = op->schema;
    int used = 0;
    for (int i = 0; i < OPD_MAX_ARGS; i++) { call->args[i] = opd_value_default(); }
    for (int i = 0; i < sample->op->nargs; i++) {
        const int at = opdi_arg_index(to, from->args[i].name, strlen(from->args[i].name));
        if (at >= 0) { call->args[at] = sample->args[i]; }
        else if (sample->args[i].tag != OPD_TAG_DEFAULT && sample->args[i].tag != OPD_TAG_NONE) { return false; }
    }
    for (int i = 0; i < op->nargs; i++) {
        const bool device = opdi_strip_optional(to->args[i].type)->kind == OPDI_TYPE_DEVICE;
        if (opdi_arg_index(from, to->args[i].name, strlen(to->args[i].name)) < 0) {
            if (used == nouts) { return to->args[i].has_default; }
            call->args[i] = opd_value_tensor(outs[used++]);
        } else if (device && call->args[i].tag == OPD_TAG_DEFAULT) {
            call->args[i] = opd_value_device(sample->device);
        }
    }
    call->nin = 0;
    for (int i = 0; i < op->nargs; i++) { opdi_dcall_collect(&call->args[i], call->in, &call->nin); }
    return used == nouts;
}
static int opdi_dcall_run(const opdi_dcheck *check, opd_op *op, opdi_dcall *call) {
    const uint64_t seed[2] = {check->options->seed, 0};
    opdi_random_set(NULL, seed);
    call->nout = 0;
    if (!opd_ok() || opd_call_all(op, call->rets, call->args, op->nargs)) { return -1; }
    for (int i = 0; i < op->nrets; i++) { opdi_dcall_collect(&call->rets[i], call->out, &call->nout); }
    return 0;
}

//== comparing =========================================================================================================

static bool opdi_dcheck_close(const opdi_dcheck *check, double got, double want, opd_scalar_type dtype) {
    const bool wide = dtype == OPD_FLOAT64 || dtype == OPD_COMPLEX128, number = wide || dtype == OPD_FLOAT32 ||
        dtype == OPD_COMPLEX64 || opd_dtype_is_floating(dtype) || opd_dtype_is_complex(dtype);
    double atol = check->options->atol, rtol = check->options->rtol;
    if (atol <= 0 && rtol <= 0 && number) {
        atol = wide ? 1e-7 : 1e-5;
        rtol = wide ? 1e-7 : dtype == OPD_FLOAT32 || dtype == OPD_COMPLEX64 ? 1e-4
            : dtype == OPD_FLOAT16 ? 2e-3 : 1.6e-2;
    }
    if (isnan(got) || isnan(want)) { return isnan(got) && isnan(want); }
    return !(got < want || got > want) || fabs(got - want) <= check->scale * (atol + rtol * fabs(want));
}
/* Compares the tensor `got` of the device with `want`.  Returns 0; 1 if it differs, and writes how to `text`; or -1 and
   sets an error. */
static int opdi_dcheck_tensor(opdi_dcheck *check, const opd_tensor *got, const opd_tensor *want, const char *what,
                              int i, bool numbers, char *text) {
    char first[24 * OPD_MAX_DIMS], second[24 * OPD_MAX_DIMS];
    const opd_scalar_type dtype = opd_dtype(want);
    if (opd_dtype(got) != dtype) {
        return opdi_dcheck_differs(text, "%s %d is %s, not %s", what, i, opd_dtype_name(opd_dtype(got)),
                                   opd_dtype_name(dtype));
    }
    if (!opdi_has_sizes(got, want->dims, want->ndim)) {
        return opdi_dcheck_differs(text, "%s %d has the sizes %s, not %s", what, i,
                                   opdi_sizes_text(got->dims, got->ndim, first, sizeof first),
                                   opdi_sizes_text(want->dims, want->ndim, second, sizeof second));
    }
    const int64_t *const strides = want->dims + want->ndim, *const now = got->dims + got->ndim;
    for (int d = 0; d < want->ndim && want->numel && !check->options->any_strides; d++) {
        if (want->dims[d] == 1 || strides[d] == now[d]) { continue; }
        return opdi_dcheck_differs(text, "%s %d has the strides %s, not %s", what, i,
                                   opdi_sizes_text(now, got->ndim, first, sizeof first),
                                   opdi_sizes_text(strides, want->ndim, second, sizeof second));
    }
    if (!numbers || want->numel == 0) { return 0; }
    const double *const a = opdi_check_read(got), *const b = opdi_check_read(want);
    const int64_t count = want->numel * (opd_dtype_is_complex(dtype) ? 2 : 1);
    int64_t worst = -1;
    double most = 0;
    if (!a || !b) { return -1; }
    for (int64_t k = 0; k < count; k++) {
        const double by = a[k] < b[k] || a[k] > b[k] ? fabs(a[k] - b[k]) : 0;
        if (by > check->finding.difference) { check->finding.difference = by; }
        if (opdi_dcheck_close(check, a[k], b[k], dtype) || (worst >= 0 && !(by > most))) { continue; }
        worst = k;
        most = by;
    }
    return worst < 0 ? 0 : opdi_dcheck_differs(text, "%s %d: element %lld is %.9g, not %.9g", what, i, (long long)worst,
                                               a[worst], b[worst]);
}
/* Compares which tensors are the same, or share memory.  Returns as opdi_dcheck_tensor does. */
static int opdi_dcheck_aliases(const opdi_dcall *here, const opdi_dcall *there, char *text) {
    for (int i = 0; i < here->nout; i++) {
        for (int k = 0; k < here->nin; k++) {
            const bool same = here->out[i] == here->in[k], now = there->out[i] == there->in[k];
            if (same != now) {
                return opdi_dcheck_differs(text, now ? "result %d is tensor %d of the arguments itself"
                                           : "result %d is not tensor %d of the arguments itself", i, k);
            }
            if (!here->out[i]->numel || !here->in[k]->numel) { continue; }
            const bool shares = opdi_same_memory(here->out[i], here->in[k]);
            if (shares != opdi_same_memory(there->out[i], there->in[k])) {
                return opdi_dcheck_differs(text, shares ? "result %d is not a view of tensor %d of the arguments"
                                           : "result %d is a view of tensor %d of the arguments", i, k);
            }
            if (shares && opd_tensor_offset(here->out[i]) != opd_tensor_offset(there->out[i])) {
                return opdi_dcheck_differs(text, "result %d begins at element %lld of the memory, not %lld", i,
                                           (long long)opd_tensor_offset(there->out[i]),
                                           (long long)opd_tensor_offset(here->out[i]));
            }
        }
    }
    return 0;
}
static int opdi_dcheck_numbers(const opdi_dcheck *check, const opd_op *op, const opdi_dcall *here,
                               const opdi_dcall *there, char *text) {
    for (int i = 0; i < op->nrets; i++) {
        const opd_value *const want = &here->rets[i], *const got = &there->rets[i];
        if (want->tag != got->tag) {
            return opdi_dcheck_differs(text, "result %d is of kind %s, not %s", i, opdi_value_kind(got),
                                       opdi_value_kind(want));
        }
        if (want->tag != OPD_TAG_INT && want->tag != OPD_TAG_FLOAT && want->tag != OPD_TAG_BOOL) { continue; }
        const bool whole = want->tag != OPD_TAG_FLOAT;
        const double a = whole ? (double)got->u.i : got->u.d, b = whole ? (double)want->u.i : want->u.d;
        if (opdi_dcheck_close(check, a, b, whole ? OPD_INT64 : OPD_FLOAT32)) { continue; }
        return opdi_dcheck_differs(text, "result %d is %.9g, not %.9g", i, a, b);
    }
    return 0;
}
/* Returns whether the numbers of results can be compared.  The sample arguments of cumprod_backward do not belong
   together, and then its result depends on the way in which it is computed. */
static bool opdi_dcheck_has_numbers(opd_op *op) {
    return !opdi_op_is_random(op) && !strstr(op->name, "empty") && strcmp(op->name, "aten::cumprod_backward") != 0;
}
/* Compares the calls on the device (`there`) and on the CPU.  Returns as opdi_dcheck_tensor does. */
static int opdi_dcheck_results(opdi_dcheck *check, opd_op *op, const opdi_dcall *here, const opdi_dcall *there,
                               char *text) {
    const bool numbers = opdi_dcheck_has_numbers(op);
    int rc = numbers ? opdi_dcheck_numbers(check, op, here, there, text) : 0;
    if (rc == 0 && here->nout != there->nout) {
        return opdi_dcheck_differs(text, "there are %d result tensors, not %d", there->nout, here->nout);
    }
    for (int i = 0; rc == 0 && i < here->nout; i++) {
        const opd_device at = opd_tensor_device(there->out[i]);
        char name[40] = "";
        if (at.type != check->device.type && opd_device_print(at, name, sizeof name)) {
            return opdi_dcheck_differs(text, "result %d is on %s", i, name);
        }
        rc = opdi_dcheck_tensor(check, there->out[i], here->out[i], "result", i, numbers, text);
    }
    if (rc == 0) { rc = opdi_dcheck_aliases(here, there, text); }
    for (int k = 0; rc == 0 && k < here->nin; k++) {
        rc = opdi_dcheck_tensor(check, there->in[k], here->in[k], "after the call, tensor argument", k, numbers, text);
    }
    return rc;
}

//== gradients =========================================================================================================

/* Computes the gradients of the results with respect to the floating-point arguments.  Returns their number, at most
   OPDI_DCHECK_TENSORS; or -1 and sets an error. */
static int opdi_dcheck_grads(const opdi_dcheck *check, opdi_sample *sample, opdi_dcall *call, opd_tensor **grads) {
    opd_tensor *on[OPDI_DCHECK_TENSORS], *outs[OPDI_DCHECK_TENSORS], *seeds[OPDI_DCHECK_TENSORS];
    opd_backward_options options;
    int non = 0, nouts = 0;
    memset(&options, 0, sizeof options);
    for (int k = 0; k < call->nin; k++) {
        const opd_scalar_type dtype = opd_dtype(call->in[k]);
        if (!opd_dtype_is_floating(dtype) && !opd_dtype_is_complex(dtype)) { continue; }
        if (!(on[non++] = opd_tensor_set_requires_grad(call->in[k], true))) { return -1; }
    }
    if (opdi_dcall_run(check, (opd_op *)(uintptr_t)sample->op, call)) { return -1; }
    for (int i = 0; i < call->nout; i++) {
        opd_tensor *const out = call->out[i];
        if (!opdi_requires_grad(out)) { continue; }
        const int layout = sample->layout;
        sample->layout = OPDI_SAMPLE_CONTIGUOUS;
        sample->seed = 1000 + i;
        seeds[nouts] = opdi_sample_tensor(sample, out->dims, out->ndim, 0, 0, opd_dtype(out));
        sample->layout = layout;
        outs[nouts] = out;
        if (!seeds[nouts++]) { return -1; }
    }
    options.grad_outputs = seeds;
    options.allow_unused = true;
    if (non == 0 || nouts == 0) { return 0; }
    return opd_autograd_grad(outs, nouts, on, non, &options, grads) ? -1 : non;
}
static int opdi_dcheck_same_grads(opdi_dcheck *check, opd_tensor *const *got, opd_tensor *const *want, int count,
                                  char *text) {
    for (int i = 0; i < count; i++) {
        if (!got[i] != !want[i]) {
            return opdi_dcheck_differs(text, "gradient %d is %s", i, got[i] ? "there" : "missing");
        }
        opd_device_check_options options = *check->options;
        const opd_device_check_options *const was = check->options;
        options.any_strides = true;               /* how gradients lie in memory is not a part of the formula */
        check->options = &options;
        check->scale = 4;                         /* sums of many products */
        const int rc = want[i] ? opdi_dcheck_tensor(check, got[i], want[i], "gradient", i, true, text) : 0;
        check->options = was;
        check->scale = 1;
        if (rc) { return rc; }
    }
    return 0;
}

//== an operator =======================================================================================================

/* Handles a failure of a call on the device.  Returns 0, and clears the error; or -1 if the error is none of the
   operator's. */
static int opdi_dcheck_failed(opdi_dcheck *check, const opdi_sample *sample, const char *form, int mark) {
    if (opdi_error_passes()) { return -1; }
    opdi_dcheck_note(check, sample, form, opd_error_code() == OPD_ERROR_NO_KERNEL ? OPD_DEVICE_MISSING
                     : OPD_DEVICE_FAILS, opd_error_message());
    (void)opd_error_rewind(mark);
    return 0;
}
/* Notes that the CPU cannot compute a call, and clears the error.  Returns 0; or -1 if the error is none of the
   operator's. */
static int opdi_dcheck_skipped(opdi_dcheck *check, const opdi_sample *sample, int mark) {
    if (opdi_error_passes()) { return -1; }
    opdi_dcheck_note(check, sample, "", OPD_DEVICE_SKIPPED, opd_error_message());
    (void)opd_error_rewind(mark);
    return 0;
}
/* Reads the call at `text` for a device. */
static int opdi_dcheck_read(const opdi_dcheck *check, opdi_sample *sample, const char *text, bool device) {
    sample->device = device ? check->device : opd_device_make(OPD_CPU, -1);
    return opdi_sample_read(sample, &text);
}
/* Returns a tensor like each result of the CPU, on the device of the sample: for an out= form. */
static int opdi_dcheck_outs(const opdi_sample *sample, const opdi_dcall *base, opd_tensor **outs) {
    for (int i = 0; i < base->nout; i++) {
        outs[i] = opd_tensor_new_on(opd_ints_of(base->out[i]->dims, base->out[i]->ndim), opd_dtype(base->out[i]),
                                    sample->device);
        if (!outs[i]) { return -1; }
    }
    return base->nout;
}
typedef struct opdi_dcheck_memory { opdi_sample samples[2]; opdi_dcall calls[3]; } opdi_dcheck_memory;
/* Compares one call of `op`, a form of the operator.  out: whether it is its out= form.  Returns 0, or -1 and sets an
   error. */
static int opdi_dcheck_form(opdi_dcheck *check, opdi_dcheck_memory *memory, const char *at, opd_op *op,
                            const char *form, bool out) {
    opdi_sample *const here = &memory->samples[0], *const there = &memory->samples[1];
    opdi_dcall *const calls = memory->calls;
    opd_tensor *outs[2][OPDI_DCHECK_TENSORS];
    char text[600];
    const int mark = opd_error_mark();
    int nouts = 0;
    if (opdi_dcheck_read(check, here, at, false) < 0) { return opdi_dcheck_skipped(check, here, mark); }
    if (out) {
        if (!opdi_dcall_args(here, here->op, NULL, 0, &calls[2]) ||
            opdi_dcall_run(check, (opd_op *)(uintptr_t)here->op, &calls[2]) ||
            (nouts = opdi_dcheck_outs(here, &calls[2], outs[0])) < 0 || opdi_dcheck_read(check, here, at, false) < 0) {
            return opdi_dcheck_skipped(check, here, mark);
        }
    }
    if (!opdi_dcall_args(here, op, outs[0], nouts, &calls[0])) { return 0; }
    if (opdi_dcall_run(check, op, &calls[0])) { return opdi_dcheck_skipped(check, here, mark); }
    if (calls[0].nin == 0 && calls[0].nout == 0) { return 0; }
    if (opdi_dcheck_read(check, there, at, true) < 0 || (out && opdi_dcheck_outs(there, &calls[2], outs[1]) < 0)) {
        return opdi_dcheck_failed(check, there, form, mark);
    }
    (void)opdi_dcall_args(there, op, outs[1], nouts, &calls[1]);
    const int64_t before = opd_cpu_fallback_count();
    check->tried = true;
    check->finding.calls++;
    if (opdi_dcall_run(check, op, &calls[1])) { return opdi_dcheck_failed(check, there, form, mark); }
    const bool on_cpu = opd_cpu_fallback_count() != before;
    const int rc = opdi_dcheck_results(check, op, &calls[0], &calls[1], text);
    if (rc < 0) { return opdi_dcheck_failed(check, there, form, mark); }
    if (rc) { opdi_dcheck_note(check, there, form, OPD_DEVICE_WRONG, text); }
    opdi_dcheck_note(check, there, form, on_cpu ? OPD_DEVICE_ON_CPU : OPD_DEVICE_OK, "");
    return 0;
}
static int opdi_dcheck_gradients(opdi_dcheck *check, opdi_dcheck_memory *memory, const char *at) {
    opdi_sample *const here = &memory->samples[0], *const there = &memory->samples[1];
    opd_tensor *want[OPDI_DCHECK_TENSORS], *got[OPDI_DCHECK_TENSORS];
    char text[600];
    const int mark = opd_error_mark();
    if (opdi_dcheck_read(check, here, at, false) < 0 || !opdi_dcall_args(here, here->op, NULL, 0, &memory->calls[0])) {
        return opdi_dcheck_skipped(check, here, mark);
    }
    const int count = opdi_dcheck_grads(check, here, &memory->calls[0], want);
    if (count < 0) { return opdi_dcheck_skipped(check, here, mark); }
    if (count == 0) { return 0; }
    if (opdi_dcheck_read(check, there, at, true) < 0) { return opdi_dcheck_failed(check, there, ", gradients", mark); }
    (void)opdi_dcall_args(there, there->op, NULL, 0, &memory->calls[1]);
    check->finding.calls++;
    if (opdi_dcheck_grads(check, there, &memory->calls[1], got) != count) {
        if (!opd_ok()) { return opdi_dcheck_failed(check, there, ", gradients", mark); }
        opdi_dcheck_note(check, there, ", gradients", OPD_DEVICE_WRONG, "results do not require grad");
        return 0;
    }
    const int rc = opdi_dcheck_same_grads(check, got, want, count, text);
    if (rc < 0) { return opdi_dcheck_failed(check, there, ", gradients", mark); }
    if (rc) { opdi_dcheck_note(check, there, ", gradients", OPD_DEVICE_WRONG, text); }
    return 0;
}
/* Returns the in-place or out= form that the operator's descriptor names; NULL if it has none. */
static opd_op *opdi_dcheck_form_of(const opd_op *op, const char *form) {
    char name[300];
    const size_t ns = strcspn(op->name, ":");
    if (!form || !*form) { return NULL; }
    (void)snprintf(name, sizeof name, "%.*s::%.*s", (int)ns, op->name, (int)strcspn(form, "("), form);
    return opd_find_quiet(name);
}
/* Compares the call at `at` with a dtype and layout, in all forms.  Returns 0, or -1 and sets an error. */
static int opdi_dcheck_call(opdi_dcheck *check, opdi_dcheck_memory *memory, const char *at) {
    opd_op *const op = (opd_op *)(uintptr_t)memory->samples[0].op;
    const opd_op_desc *const card = opd_op_card(op);
    const bool was = opd_grad_mode_set(false), functional = check->options->functional;
    int rc = opdi_dcheck_form(check, memory, at, op, "", false);
    opd_op *const inplace = functional ? NULL : opdi_dcheck_form_of(op, card->inplace);
    opd_op *const out = functional ? NULL : opdi_dcheck_form_of(op, card->out);
    if (rc == 0 && inplace) { rc = opdi_dcheck_form(check, memory, at, inplace, ", in place", false); }
    if (rc == 0 && out) { rc = opdi_dcheck_form(check, memory, at, out, ", out=", true); }
    const bool differentiable = card->backward != OPD_NOT_DIFFERENTIABLE && opdi_dcheck_has_numbers(op);
    if (rc == 0 && check->options->gradients && differentiable) {
        (void)opd_grad_mode_set(true);
        rc = opdi_dcheck_gradients(check, memory, at);
    }
    (void)opd_grad_mode_set(was);
    return rc;
}
/* Compares the call at *at in each layout, and moves *at behind it.  Returns 1; 0 if there is no call; or -1 and sets
   an error. */
static int opdi_dcheck_layouts(opdi_dcheck *check, opdi_dcheck_memory *memory, const char **at) {
    const char *const from = *at;
    opdi_sample *const sample = &memory->samples[0];
    const int mark = opd_error_mark();
    sample->layout = OPDI_SAMPLE_CONTIGUOUS;
    sample->device = opd_device_make(OPD_CPU, -1);
    int rc = opdi_sample_read(sample, at);
    if (rc < 0) { return opdi_dcheck_skipped(check, sample, mark); }
    const bool images = sample->images;
    const int last = check->options->contiguous || !sample->ntensors ? OPDI_SAMPLE_CONTIGUOUS : OPDI_SAMPLE_LAST;
    for (int layout = 0; rc == 1 && layout <= last; layout++) {
        if (layout == OPDI_SAMPLE_LAST && !images) { continue; }
        opd_scope scope = opd_scope_open();
        memory->samples[0].layout = memory->samples[1].layout = layout;
        if (opdi_dcheck_call(check, memory, from)) { rc = -1; }
        opd_scope_close(&scope);
    }
    return rc;
}
static int opdi_dcheck_op(opdi_dcheck *check, const opd_op *op) {
    static const opd_scalar_type floats[] = {OPD_FLOAT32};
    const opd_device_check_options *const options = check->options;
    const opd_scalar_type *const dtypes = options->ndtypes > 0 && options->dtypes ? options->dtypes : floats;
    const int ndtypes = dtypes == floats ? 1 : options->ndtypes;
    const opd_op_desc *const card = opd_op_card(op);
    const bool any = card && card->cases && *card->cases;
    opdi_dcheck_memory *const memory = (opdi_dcheck_memory *)opdi_scope_alloc(sizeof *memory);
    if (!memory) { return -1; }
    check->finding.op = op;
    check->finding.outcome = OPD_DEVICE_SKIPPED;
    check->finding.calls = 0;
    check->finding.difference = 0;
    check->tried = false;
    check->call[0] = 0;
    (void)snprintf(check->text, sizeof check->text, any ? "the sample arguments have no tensors"
                   : "the operator has no sample arguments (`cases` of opd_op_desc)");
    for (int d = 0; d < ndtypes && any; d++) {
        const char *at = card->cases;
        int rc = 1;
        memset(memory, 0, sizeof *memory);
        memory->samples[0].op = memory->samples[1].op = op;
        memory->samples[0].dtype = memory->samples[1].dtype = dtypes[d];
        while (rc == 1) {
            opd_scope scope = opd_scope_open();
            rc = opdi_dcheck_layouts(check, memory, &at);
            opd_scope_close(&scope);
        }
        if (rc < 0) { return -1; }
    }
    return 0;
}

//== the report ========================================================================================================

static const char *const opdi_dcheck_words[] = {"ok", "on the CPU", "missing", "fails", "wrong", "skipped"};
static void opdi_dcheck_report(opdi_dcheck *check) {
    opd_device_finding *const finding = &check->finding;
    const opd_device_outcome outcome = finding->outcome;
    finding->call = check->call;
    finding->text = check->text;
    if (outcome == OPD_DEVICE_OK || outcome == OPD_DEVICE_ON_CPU) { check->text[0] = check->call[0] = 0; }
    check->counts[outcome]++;
    check->calls += finding->calls;
    if (check->options->report) {
        check->options->report(check->options->user, finding);
        return;
    }
    if (outcome >= OPD_DEVICE_MISSING && outcome <= OPD_DEVICE_WRONG) {
        printf("%-8s %s(%s): %s", opdi_dcheck_words[outcome], finding->op->name, finding->call, finding->text);
        if (outcome == OPD_DEVICE_WRONG && finding->difference > 0) {
            printf(" (largest difference: %.3g)", finding->difference);
        }
        printf("\n");
    }
    if (finding->number % 500 == 0) { printf("%d of %d operators\n", finding->number, finding->count); }
    (void)fflush(stdout);
}
static void opdi_dcheck_table(const opdi_dcheck *check) {
    char name[40];
    (void)opd_device_print(check->device, name, sizeof name);
    printf("%s and the CPU: %d operators, %d calls\n", name, check->finding.count, check->calls);
    for (int i = 0; i < OPD_DEVICE_OUTCOMES; i++) { printf("  %-11s %6d\n", opdi_dcheck_words[i], check->counts[i]); }
}
/* Returns whether an operator is checked: derived forms are checked together with their operator. */
static bool opdi_dcheck_wants(const opd_device_check_options *options, const opd_op *op) {
    return op->card && !op->card->base && (!options->name || strstr(op->name, options->name)) &&
        (!options->wanted || options->wanted(options->user, op));
}
static int opdi_dcheck_run(opdi_dcheck *check) {
    const int all = opd_op_list(NULL, NULL, 0);
    opd_op **const ops = all < 0 ? NULL : (opd_op **)opdi_scope_alloc((size_t)(all + 1) * sizeof *ops);
    const int listed = ops ? OPDI_MIN(opd_op_list(NULL, ops, all), all) : 0;
    int count = 0;
    if (!ops) { return -1; }
    for (int i = 0; i < listed; i++) { if (opdi_dcheck_wants(check->options, ops[i])) { ops[count++] = ops[i]; } }
    check->finding.count = count;
    for (int i = 0; i < count; i++) {
        opd_scope scope = opd_scope_open();
        const int rc = opdi_dcheck_op(check, ops[i]);
        check->finding.number = i + 1;
        if (rc == 0) { opdi_dcheck_report(check); }
        opd_scope_close(&scope);
        if (rc || !opd_ok()) { return -1; }
    }
    return check->counts[OPD_DEVICE_FAILS] + check->counts[OPD_DEVICE_WRONG];
}
/* Checks the options that are arrays or numbers.  Returns 0, or -1 and sets an error. */
static int opdi_dcheck_options(const opd_device_check_options *options) {
    if (options->ndtypes < 0 || (options->ndtypes && !options->dtypes)) {
        return opd_fail(OPD_ERROR_ARGUMENT, options->ndtypes < 0 ? "opd_device_check: the number of dtypes is negative"
                        : "opd_device_check: dtypes is NULL");
    }
    for (int i = 0; i < options->ndtypes; i++) {
        if (opd_dtype_size(options->dtypes[i]) > 0) { continue; }
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_device_check: dtypes[%d] is %d, which is no dtype, or one of weights "
                        "in blocks", i, (int)options->dtypes[i]);
    }
    return options->atol >= 0 && options->rtol >= 0 ? 0
        : opd_fail(OPD_ERROR_ARGUMENT, "opd_device_check: atol and rtol must not be negative or NaN");
}
int opd_device_check(opd_device device, const opd_device_check_options *options) {
    opd_device_check_options none;
    uint64_t random[2];
    if (!opd_ok()) { return -1; }
    opd_scope scope = opd_scope_open();
    opdi_dcheck *const check = (opdi_dcheck *)opdi_scope_alloc(sizeof *check);
    int rc = -1;
    if (check && (device.type == OPD_CPU || device.type == OPD_META || device.type < 0 ||
                  device.type >= OPD_BACKEND_COUNT || opd_device_count((opd_backend)device.type) == 0)) {
        char name[40] = "";
        if (device.type >= 0 && device.type < OPD_BACKEND_COUNT) { (void)opd_device_print(device, name, sizeof name); }
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_device_check: there is no device '%s' to compare with the CPU", name);
    } else if (check && (!options || opdi_dcheck_options(options) == 0)) {
        memset(&none, 0, sizeof none);
        memset(check, 0, sizeof *check);
        check->options = options ? options : &none;
        check->device = device;
        check->scale = 1;
        opdi_random_get(NULL, random);
        rc = opdi_dcheck_run(check);
        opdi_random_set(NULL, random);
        if (check->options->counts) { memcpy(check->options->counts, check->counts, sizeof check->counts); }
        if (rc >= 0 && !check->options->report) { opdi_dcheck_table(check); }
    }
    opd_scope_close(&scope);
    return rc;
}
