#include "tools.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>gradcheck    gradients against finite differences
//
//  A Jacobian is compared along directions of the input (a) and of the output (b).  The directions are all unit vectors
//  or, in fast mode, one random vector for the input and one for the output.  numerical[a][b] = b . (f(x + eps a) - f(x
//  - eps a)) / (2 eps); analytical[a][b] = backward(b) . a, or b . (tangent of f for a).  All numbers are compared as
//  float64 on the CPU; a complex number counts as two numbers.  This section uses only public functions and copies.
//  The checks, their order and their texts follow torch/autograd/gradcheck.py.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_CHECK_INPUTS 256

/* An input or an output as one side of a Jacobian.  An input is changed along the directions of its axis, an output is
   projected on the directions of its axis.  Directions are numbered over all inputs, and over all outputs. */
typedef struct opdi_axis {
    opd_tensor *tensor;
    int which;                                    /* index of the tensor among the inputs or the results */
    int64_t numel;                                /* number of real numbers in the tensor */
    int64_t count, at;                            /* count: number of directions of this axis; at: number of directions
                                                     of all axes before this axis */
    double unit, sum;                             /* the scale and the sum of the elements of the random direction */
    opd_tensor *home;                             /* the values of an input before they are perturbed */
} opdi_axis;

typedef struct opdi_check {
    opd_gradcheck_fn fn;
    void *user;
    opd_tensor *const *inputs;
    int ninputs;
    const opd_gradcheck_options *options;
    bool strict;                                  /* true: outputs without gradients must not depend on the inputs */
    bool fast, forward;                           /* fast: one random direction per axis; forward: forward mode is
                                                     checked now */
    opdi_axis in[OPDI_CHECK_INPUTS], out[OPD_GRADCHECK_OUTPUTS];
    int nin, nout, nresults;                      /* nout: number of checked outputs */
    int64_t rows, columns;                        /* rows: number of directions of all inputs; columns: number of
                                                     directions of all outputs */
    double *numerical, *analytical;               /* [rows][columns] */
    char *report;                                 /* text about the failed check, or "" */
    size_t report_cap;
    bool wrong;                                   /* true: the pending error reports a failed check */
} opdi_check;

/* Returns element `element` of the random direction of axis number i, a number in (0, 1). */
OPDI_INTERNAL double opdi_check_random(int i, int64_t element) {
    uint64_t bits = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u + (uint64_t)element * 0xbf58476d1ce4e5b9u;
    bits ^= bits >> 31;
    bits *= 0x94d049bb133111ebu;
    bits ^= bits >> 29;
    bits *= 0xbf58476d1ce4e5b9u;
    bits ^= bits >> 32;
    return ((double)(bits >> 11) + 0.5) * 1.1102230246251565404e-16;
}
/* Returns element `element` of a direction of an axis, where `side` is 0 for an input and 1 for an output.  The
   direction is a unit vector or, if check->fast, the random direction with length 1. */
static double opdi_check_direction(const opdi_check *check, const opdi_axis *axis, int side, int64_t direction,
                                   int64_t element) {
    if (!check->fast) { return direction == element ? 1 : 0; }
    return opdi_check_random(2 * axis->which + side, element) * axis->unit;
}
/* Returns the component of `values`, the numbers of an axis, along one of its directions.  `side` is 0 for an input,
   1 for an output. */
static double opdi_check_along(const opdi_check *check, const opdi_axis *axis, int side, int64_t direction,
                               const double *values) {
    double sum = 0;
    if (!check->fast) { return values[direction]; }
    for (int64_t k = 0; k < axis->numel; k++) {
        sum += values[k] * opdi_check_direction(check, axis, side, direction, k);
    }
    return sum;
}

/* Returns `count` zeroed doubles that live in the innermost scope, or NULL and sets an error. */
static double *opdi_check_block(int64_t count) {
    opd_tensor *tensor = opdi_own(opdi_tensor_make(&count, NULL, 1, OPD_FLOAT64, OPD_CPU));
    if (tensor && count > 0) { memset(tensor->data, 0, (size_t)count * sizeof(double)); }
    return tensor ? (double *)(void *)tensor->data : NULL;
}
OPDI_INTERNAL int64_t opdi_check_numel(const opd_tensor *tensor) {
    return tensor->numel * (opd_dtype_is_complex((opd_scalar_type)tensor->dtype) ? 2 : 1);
}
/* Returns a float64 or complex128 tensor on the CPU with the sizes of tensor. */
OPDI_INTERNAL opd_tensor *opdi_check_scratch(const opd_tensor *tensor) {
    return opdi_own(opdi_tensor_make(tensor->dims, NULL, tensor->ndim,
                                     opd_dtype_is_complex((opd_scalar_type)tensor->dtype) ? OPD_COMPLEX128
                                     : OPD_FLOAT64, OPD_CPU));
}
/* Returns the numbers of `tensor` as doubles that live in the innermost scope, or NULL and sets an error. */
OPDI_INTERNAL double *opdi_check_read(const opd_tensor *tensor) {
    opd_tensor *scratch = opdi_check_scratch(tensor);
    return !scratch || opdi_copy(scratch, tensor) ? NULL : (double *)(void *)scratch->data;
}
/* Sets `tensor` to `home` (NULL: zeros) plus `step` times a direction of an axis.  `side` is 0 for an input, 1 for
   an output.  Returns 0, or -1 and sets an error. */
static int opdi_check_write(const opdi_check *check, opd_tensor *tensor, const opd_tensor *home, const opdi_axis *axis,
                            int side, int64_t direction, double step) {
    opd_scope scope = opd_scope_open();
    opd_tensor *scratch = opdi_check_scratch(tensor);
    int rc = -1;
    for (int64_t k = 0; scratch && k < axis->numel; k++) {
        const double base = home ? ((const double *)(const void *)home->data)[k] : 0;
        ((double *)(void *)scratch->data)[k] = base + step * opdi_check_direction(check, axis, side, direction, k);
    }
    if (scratch) { rc = opdi_copy(tensor, scratch); }
    opd_scope_close(&scope);
    return rc;
}
/* Returns a tensor like `tensor` that holds direction number `direction` of `axis`, or NULL and sets an error. */
static opd_tensor *opdi_check_vector(const opdi_check *check, const opd_tensor *tensor, const opdi_axis *axis, int side,
                                     int64_t direction) {
    opd_tensor *value = opdi_own(opdi_tensor_make(tensor->dims, NULL, tensor->ndim, (opd_scalar_type)tensor->dtype,
                                                  opdi_place_of(tensor)));
    return value && opdi_check_write(check, value, NULL, axis, side, direction, 1) == 0 ? value : NULL;
}

/* Records that the check failed.  Writes the whole text to the report, and as much of it as fits to the error.
   Returns -1. */
static int opdi_check_fail(opdi_check *check, const char *format, ...) OPD_PRINTF_LIKE(2, 3);
static int opdi_check_fail(opdi_check *check, const char *format, ...) {
    va_list ap;
    if (!opd_ok()) { return -1; }
    va_start(ap, format);
    (void)vsnprintf(check->report, check->report_cap, format, ap);
    va_end(ap);
    check->wrong = true;
    return opd_fail(OPD_ERROR_AUTOGRAD, "%s", check->report);
}

OPDI_INTERNAL bool opdi_check_counts(const opd_tensor *tensor) {
    return tensor &&
        (opd_dtype_is_floating((opd_scalar_type)tensor->dtype) || opd_dtype_is_complex((opd_scalar_type)tensor->dtype));
}
/* Calls the checked function and writes all its results to `results`.  Returns their number, or -1 and sets an
   error. */
static int opdi_check_call(const opdi_check *check, opd_tensor *const *inputs, opd_tensor **results) {
    memset(results, 0, OPD_GRADCHECK_OUTPUTS * sizeof *results);
    int count = check->fn(check->user, inputs, check->ninputs, results);
    if (!opd_ok()) { return -1; }
    if (count < 0) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "gradcheck: the function failed without setting an error (opd_fail)");
    }
    if (count > OPD_GRADCHECK_OUTPUTS) {
        return opd_fail(OPD_ERROR_ARGUMENT, "gradcheck: the function returned %d outputs, but at most %d are allowed",
                        count, OPD_GRADCHECK_OUTPUTS);
    }
    return opdi_any_dead_output(results, count, "gradcheck") ? -1 : count;
}
/* Calls the checked function and writes the outputs that are checked to `outs`.  Their sizes and dtypes must be the
   same as in the first call.  Returns 0, or -1 and sets an error. */
static int opdi_check_outputs(const opdi_check *check, opd_tensor *const *inputs, opd_tensor **outs) {
    opd_tensor *results[OPD_GRADCHECK_OUTPUTS];
    int count = opdi_check_call(check, inputs, results);
    char first[256], second[256];
    if (count < 0) { return -1; }
    if (count != check->nresults) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "gradcheck: the function returned %d outputs, and %d outputs when it was "
                        "called again", check->nresults, count);
    }
    for (int i = 0; i < check->nout; i++) {
        const opd_tensor *was = check->out[i].tensor;
        outs[i] = results[check->out[i].which];
        if (!outs[i] || !opdi_has_sizes(outs[i], was->dims, was->ndim)) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "Expected `func` to return outputs with the same shape when inputs are "
                            "perturbed by %g, but got: shapes %s and %s.", check->options->eps,
                            opdi_sizes_text(was->dims, was->ndim, first, sizeof first), !outs[i] ? "none" :
                            opdi_sizes_text(outs[i]->dims, outs[i]->ndim, second, sizeof second));
        }
        if (outs[i]->dtype != was->dtype) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "Expected `func` to return outputs with the same dtype when inputs are "
                            "perturbed by %g, but got: dtypes %s and %s.", check->options->eps,
                            opd_dtype_name((opd_scalar_type)was->dtype),
                            opd_dtype_name((opd_scalar_type)outs[i]->dtype));
        }
    }
    return 0;
}

//== the two Jacobians =================================================================================================

/* Computes the row of the numerical Jacobian for direction `direction` of the input `axis`, by central differences of
   all outputs.  Returns 0, or -1 and sets an error. */
static int opdi_check_differences(opdi_check *check, const opdi_axis *axis, int64_t direction) {
    opd_tensor *outs[OPD_GRADCHECK_OUTPUTS];
    double *row = check->numerical + (axis->at + direction) * check->columns;
    int rc = 0;
    for (int sign = 1; sign >= -1 && rc == 0; sign -= 2) {
        opd_scope scope = opd_scope_open();
        rc = opdi_check_write(check, axis->tensor, axis->home, axis, 0, direction, sign * check->options->eps);
        if (rc == 0) { rc = opdi_check_outputs(check, check->inputs, outs); }
        for (int i = 0; i < check->nout && rc == 0; i++) {
            const opdi_axis *output = &check->out[i];
            const double *values = opdi_check_read(outs[i]);
            if (!values) { rc = -1; }
            for (int64_t column = 0; column < output->count && rc == 0; column++) {
                const double sum = opdi_check_along(check, output, 1, column, values);
                row[output->at + column] = sign > 0 ? sum
                    : (row[output->at + column] - sum) / (2 * check->options->eps);
            }
        }
        opd_scope_close(&scope);
    }
    if (opdi_copy(axis->tensor, axis->home)) { rc = -1; }  /* restore the input */
    return rc;
}
static int opdi_check_numerical(opdi_check *check) {
    for (int j = 0; j < check->nin; j++) {
        for (int64_t direction = 0; direction < check->in[j].count; direction++) {
            if (opdi_check_differences(check, &check->in[j], direction)) { return -1; }
        }
    }
    return 0;
}

static int opdi_check_grad(opdi_check *check, const opdi_axis *axis, const opd_tensor *grad) {
    if (!opdi_has_sizes(grad, axis->tensor->dims, axis->tensor->ndim)) {
        return opdi_check_fail(check, "Analytical gradient has incorrect size");
    }
    if (check->options->check_grad_dtypes && grad->dtype != axis->tensor->dtype) {
        return opdi_check_fail(check, "Gradient has dtype mismatch");
    }
    return 0;
}
/* Writes the gradients of outs[count] with respect to all inputs to `grads`, and retains the graph.  Returns 0, or
   -1 and sets an error. */
static int opdi_check_backward(const opdi_check *check, opd_tensor *const *outs, int count,
                               opd_tensor *const *grad_outputs, opd_tensor **grads) {
    opd_tensor *in[OPDI_CHECK_INPUTS];
    opd_backward_options options;
    memset(&options, 0, sizeof options);
    options.grad_outputs = grad_outputs;
    options.retain_graph = options.allow_unused = true;
    for (int j = 0; j < check->nin; j++) { in[j] = check->in[j].tensor; }
    return opd_autograd_grad(outs, count, in, check->nin, &options, grads);
}
/* Computes the column of the analytical Jacobian for direction `column` of the output `out`, by a backward pass.  If
   `second` is true, compares the result of the pass with the column instead, and raises *worst to the largest
   difference.  Returns 0, or -1 and sets an error. */
static int opdi_check_column(opdi_check *check, opd_tensor *out, const opdi_axis *output, int64_t column, bool second,
                             double *worst) {
    opd_tensor *grads[OPDI_CHECK_INPUTS], *value = opdi_check_vector(check, out, output, 1, column);
    if (!value || opdi_check_backward(check, &out, 1, &value, grads)) { return -1; }
    for (int j = 0; j < check->nin; j++) {
        const opdi_axis *input = &check->in[j];
        const double *grad = NULL;
        if (grads[j] && opdi_check_grad(check, input, grads[j])) { return -1; }
        if (grads[j] && !(grad = opdi_check_read(grads[j]))) { return -1; }
        for (int64_t row = 0; row < input->count; row++) {
            const double sum = grad ? opdi_check_along(check, input, 0, row, grad) : 0;
            double *to = &check->analytical[(input->at + row) * check->columns + output->at + column];
            if (!second) { *to = sum; }
            else if (!(fabs(*to - sum) <= *worst) && !(*to != *to && sum != sum)) { *worst = fabs(*to - sum); }
        }
    }
    return opd_ok() ? 0 : -1;
}
/* Computes the analytical Jacobian of output i, by two backward passes for each column.  Fails if two passes differ by
   more than nondet_tol.  Returns 0, or -1 and sets an error. */
static int opdi_check_analytical(opdi_check *check, opd_tensor **outs, int i) {
    const opdi_axis *axis = &check->out[i];
    double worst = 0;
    for (int64_t column = 0; column < axis->count; column++) {
        opd_scope scope = opd_scope_open();
        int rc = opdi_check_column(check, outs[i], axis, column, false, &worst);
        if (rc == 0) { rc = opdi_check_column(check, outs[i], axis, column, true, &worst); }
        opd_scope_close(&scope);
        if (rc) { return -1; }
    }
    if (!(worst <= check->options->nondet_tol)) {
        return opdi_check_fail(check,
                               "Backward is not reentrant, i.e., running backward with same input and grad_output "
                               "multiple times gives different values, although analytical gradient matches numerical "
                               "gradient.The tolerance for nondeterminism was %g. (output %d; they differ by %.6g)",
                               check->options->nondet_tol, axis->which, worst);
    }
    return 0;
}

/* Calls the checked function on dual inputs, and writes the tangents of its outputs (NULL if there is none) to
   `tangents`. with[i] is the tangent of input i among the inputs that require grad, or NULL.  Returns 0, or -1 and sets
   an error. */
static int opdi_check_push(const opdi_check *check, opd_tensor *const *with, opd_tensor **tangents) {
    opd_tensor **inputs = (opd_tensor **)opdi_scope_alloc((size_t)check->ninputs * sizeof *inputs);
    opd_tensor *outs[OPD_GRADCHECK_OUTPUTS];
    int level;
    if (!inputs || (level = opd_dual_level_begin()) < 0) { return -1; }
    memcpy(inputs, check->inputs, (size_t)check->ninputs * sizeof *inputs);
    for (int i = 0; i < check->nin; i++) {
        if (with[i]) { inputs[check->in[i].which] = opd_dual_new(check->in[i].tensor, with[i]); }
    }
    int rc = opd_ok() ? opdi_check_outputs(check, inputs, outs) : -1;
    for (int i = 0; i < check->nout && rc == 0; i++) {
        if (!opd_dual_unpack(outs[i], &tangents[i])) { rc = -1; }
    }
    (void)opd_dual_level_end(level);
    return rc;
}
/* Computes the row of the analytical Jacobian for direction `direction` of input j, by forward mode.  Returns 0, or -1
   and sets an error. */
static int opdi_check_tangent(opdi_check *check, int j, int64_t direction) {
    const opdi_axis *input = &check->in[j];
    opd_tensor *with[OPDI_CHECK_INPUTS], *tangents[OPD_GRADCHECK_OUTPUTS];
    memset(with, 0, sizeof with);
    if (!(with[j] = opdi_check_vector(check, input->tensor, input, 0, direction)) ||
        opdi_check_push(check, with, tangents)) {
        return -1;
    }
    for (int i = 0; i < check->nout; i++) {
        const opdi_axis *output = &check->out[i];
        const double *values = tangents[i] ? opdi_check_read(tangents[i]) : NULL;
        if (!opd_ok()) { return -1; }
        if (tangents[i] && check->options->check_grad_dtypes && tangents[i]->dtype != output->tensor->dtype) {
            return opdi_check_fail(check, "Forward AD gradient has dtype mismatch.");
        }
        for (int64_t column = 0; values && column < output->count; column++) {
            check->analytical[(input->at + direction) * check->columns + output->at + column] =
                opdi_check_along(check, output, 1, column, values);
        }
    }
    return 0;
}
static int opdi_check_tangents(opdi_check *check) {
    int rc = 0;
    for (int j = 0; j < check->nin; j++) {
        for (int64_t direction = 0; direction < check->in[j].count && rc == 0; direction++) {
            opd_scope scope = opd_scope_open();
            rc = opdi_check_tangent(check, j, direction);
            opd_scope_close(&scope);
        }
    }
    return rc;
}

//== comparing the two Jacobians =======================================================================================

/* Writes the block of a Jacobian for `input` and `output` to buf, as a tensor [directions of the input, directions of
   the output].  Returns the length of the text. */
static size_t opdi_check_print(const opdi_check *check, const double *jacobian, const opdi_axis *input,
                               const opdi_axis *output, char *buf, size_t cap) {
    opd_scope scope = opd_scope_open();
    int64_t sizes[2];
    size_t length = 0;
    sizes[0] = input->count;
    sizes[1] = output->count;
    opd_tensor *tensor = opdi_own(opdi_tensor_make(sizes, NULL, 2, OPD_FLOAT64, OPD_CPU));
    if (cap) { buf[0] = 0; }
    if (tensor) {
        for (int64_t at = 0; at < input->count && output->count; at++) {
            memcpy((double *)(void *)tensor->data + at * output->count,
                   jacobian + (input->at + at) * check->columns + output->at, (size_t)output->count * sizeof(double));
        }
        length = opd_tensor_print(tensor, buf, cap);
    }
    opd_scope_close(&scope);
    return length;
}

/* Finds the element in the block of an input and an output that exceeds the tolerance most, and sets `at` to its row
   and column.  Returns false if all are within the tolerance. */
static bool opdi_check_worst(const opdi_check *check, const opdi_axis *input, const opdi_axis *output,
                             int64_t *at /*[2]*/) {
    const double atol = check->fast ? check->options->atol * input->sum * output->sum : check->options->atol;
    double most = -1;
    bool found = false;
    for (int64_t row = 0; row < input->count; row++) {
        for (int64_t column = 0; column < output->count; column++) {
            const int64_t k = (input->at + row) * check->columns + output->at + column;
            const double n = check->numerical[k], grad = check->analytical[k];
            double off = fabs(grad - n) - (atol + check->options->rtol * fabs(n));
            if (off <= 0 || (isinf(grad) && isinf(n) && (grad > 0) == (n > 0))) { continue; }
            if (off != off) { off = HUGE_VAL; }
            if (found && !(off > most)) { continue; }
            most = off;
            found = true;
            at[0] = row;
            at[1] = column;
        }
    }
    return found;
}

/* Returns a line that says why the numbers may differ although the derivative is right, or "" if there is no reason. */
static const char *opdi_check_hint(const opdi_check *check, const opdi_axis *input) {
    const int dtype = input->tensor->dtype;
    return dtype == OPD_FLOAT64 || dtype == OPD_COMPLEX128 || check->options->eps > 1e-3 ? ""
        : "The input has few digits, so rounding errors may be the only reason: use float64 or complex128, or eps "
          "1e-2, atol 1e-2 and rtol 1e-2.\n";
}
static int opdi_check_mismatch(opdi_check *check, const opdi_axis *input, const opdi_axis *output, const int64_t *at) {
    const int64_t k = (input->at + at[0]) * check->columns + output->at + at[1];
    /* each of the two texts may be half as long as the larger of the two buffers, error and report */
    const size_t each = OPDI_MAX(check->report_cap / 2, (size_t)800) - 300;
    char *text = (char *)opdi_alloc(2 * each);
    if (!text) { return -1; }
    (void)opdi_check_print(check, check->numerical, input, output, text, each);
    (void)opdi_check_print(check, check->analytical, input, output, text + each, each);
    int rc = opdi_check_fail(check,
                             "Jacobian %smismatch for output %d with respect to input %d,\nworst element: row %lld (of "
                             "the input), column %lld (of the output): numerical %.9g, analytical %.9g\n%s"
                             "numerical:%s\nanalytical:%s\n", check->forward ? "computed with forward mode " : "",
                             output->which,
                             input->which, (long long)at[0], (long long)at[1], check->numerical[k],
                             check->analytical[k], opdi_check_hint(check, input), text, text + each);
    opdi_free(text, 2 * each);
    return rc;
}

/* Numbers the directions of all axes (one direction per axis if `fast` is true), and allocates both Jacobians.
   Returns 0, or -1 and sets an error. */
static int opdi_check_layout(opdi_check *check, bool fast) {
    check->fast = fast;
    for (int side = 0; side < 2; side++) {
        opdi_axis *axes = side ? check->out : check->in;
        int64_t at = 0;
        for (int i = 0; i < (side ? check->nout : check->nin); i++) {
            opdi_axis *axis = &axes[i];
            double squares = 0, sum = 0;
            axis->count = fast ? (axis->numel ? 1 : 0) : axis->numel;
            axis->at = at;
            at += axis->count;
            for (int64_t k = 0; fast && k < axis->numel; k++) {
                const double r = opdi_check_random(2 * axis->which + side, k);
                squares += r * r;
                sum += r;
            }
            axis->unit = squares > 0 ? 1 / sqrt(squares) : 0;
            axis->sum = sum * axis->unit;
        }
        if (side) { check->columns = at; } else { check->rows = at; }
    }
    if (check->columns && check->rows > ((int64_t)1 << 40) / check->columns) {
        return opd_fail(OPD_ERROR_MEMORY, "gradcheck: a Jacobian of %lld times %lld elements does not fit into memory",
                        (long long)check->rows, (long long)check->columns);
    }
    check->numerical = opdi_check_block(check->rows * check->columns);
    check->analytical = opdi_check_block(check->rows * check->columns);
    return opd_ok() ? 0 : -1;
}

/* Reports a mismatch of input j and output i that fast mode found.  First computes both Jacobians in full, so that the
   report can show them.  Returns -1. */
static int opdi_check_again(opdi_check *check, opd_tensor **outs, int i, int j) {
    const double n = check->numerical[check->in[j].at * check->columns + check->out[i].at];
    const double grad = check->analytical[check->in[j].at * check->columns + check->out[i].at];
    int64_t at[2];
    if (opdi_check_layout(check, false) || opdi_check_numerical(check) ||
        (check->forward ? opdi_check_tangents(check) : opdi_check_analytical(check, outs, i))) { return -1; }
    if (opdi_check_worst(check, &check->in[j], &check->out[i], at)) {
        return opdi_check_mismatch(check, &check->in[j], &check->out[i], at);
    }
    return opdi_check_fail(check, "Jacobian %smismatch for output %d with respect to input %d,\nnumerical:%.9g\n"
                           "analytical:%.9g\nThese are projections (fast_mode). Fast gradcheck failed but element-wise "
                           "differences are small: the check might pass without fast_mode.\n%s",
                           check->forward ? "computed with forward mode " : "", check->out[i].which, check->in[j].which,
                           n, grad, opdi_check_hint(check, &check->in[j]));
}

static int opdi_check_compare(opdi_check *check, opd_tensor **outs) {
    int64_t at[2];
    for (int i = 0; i < check->nout; i++) {
        for (int j = 0; j < check->nin; j++) {
            if (!opdi_check_worst(check, &check->in[j], &check->out[i], at)) { continue; }
            if (!opd_tensor_requires_grad(outs[i])) {
                return opdi_check_fail(check,
                                       "Numerical gradient for function expected to be zero (output %d, which does "
                                       "not require grad, with respect to input %d)", check->out[i].which,
                                       check->in[j].which);
            }
            if (check->fast) { return opdi_check_again(check, outs, i, j); }
            return opdi_check_mismatch(check, &check->in[j], &check->out[i], at);
        }
    }
    return 0;
}

static int opdi_check_jacobians(opdi_check *check) {
    opd_tensor *outs[OPD_GRADCHECK_OUTPUTS];
    if (opdi_check_numerical(check) || opdi_check_outputs(check, check->inputs, outs)) { return -1; }
    for (int i = 0; i < check->nout && check->options->check_backward_ad; i++) {
        if (!opd_tensor_requires_grad(outs[i])) { continue; }          /* its part of `analytical` stays 0 */
        if (opdi_check_analytical(check, outs, i)) { return -1; }
    }
    if (check->options->check_backward_ad && opdi_check_compare(check, outs)) { return -1; }
    if (!check->options->check_forward_ad) { return 0; }
    check->forward = true;
    memset(check->analytical, 0, (size_t)(check->rows * check->columns) * sizeof(double));
    return opdi_check_tangents(check) ? -1 : opdi_check_compare(check, outs);
}

//== checks with zero, undefined and batched gradients and tangents ====================================================

/* Returns 1 if every number of tensor is zero, 0 if not, or -1 and sets an error. */
static int opdi_check_is_zero(const opd_tensor *tensor) {
    opd_scope scope = opd_scope_open();
    const double *values = opdi_check_read(tensor);
    int64_t k, count = values ? opdi_check_numel(tensor) : 0;
    for (k = 0; k < count && !(values[k] > 0 || values[k] < 0 || values[k] != values[k]); k++) { }
    opd_scope_close(&scope);
    return opd_ok() ? k == count : -1;
}
/* Calls the function again and writes the outputs that require grad to `outs`.  Returns their number, or -1 and sets
   an error. */
static int opdi_check_recorded(const opdi_check *check, opd_tensor **outs) {
    int count = 0;
    if (opdi_check_outputs(check, check->inputs, outs)) { return -1; }
    for (int i = 0; i < check->nout; i++) { if (opd_tensor_requires_grad(outs[i])) { outs[count++] = outs[i]; } }
    return count;
}
static int opdi_check_zeros(opd_tensor *const *like, int count, opd_tensor **zeros) {
    for (int i = 0; i < count; i++) {
        zeros[i] = opdi_own(opdi_tensor_make(like[i]->dims, NULL, like[i]->ndim, (opd_scalar_type)like[i]->dtype,
                                             opdi_place_of(like[i])));
        if (!zeros[i] || !opd_zero_(zeros[i])) { return -1; }
    }
    return 0;
}

/* Checks backward with zeros as the gradients of the outputs: the gradients of the inputs must be zeros, with the
   inputs' dtype, device and sizes.  Returns 0, or -1 and sets an error. */
static int opdi_check_multiplied(opdi_check *check) {
    opd_tensor *outs[OPD_GRADCHECK_OUTPUTS], *zeros[OPD_GRADCHECK_OUTPUTS], *grads[OPDI_CHECK_INPUTS];
    int zero, count = opdi_check_recorded(check, outs);
    if (count <= 0) { return count; }
    if (opdi_check_zeros(outs, count, zeros) || opdi_check_backward(check, outs, count, zeros, grads)) { return -1; }
    for (int j = 0; j < check->nin; j++) {
        const opd_tensor *grad = grads[j], *tensor = check->in[j].tensor;
        if (!grad) { continue; }
        if ((zero = opdi_check_is_zero(grad)) < 0) { return -1; }
        if (!zero) {
            return opdi_check_fail(check, "backward not multiplied by grad_output (input %d)", check->in[j].which);
        }
        if (grad->dtype != tensor->dtype) {
            return opdi_check_fail(check, "grad is incorrect type (input %d)", check->in[j].which);
        }
        if (opdi_place_of(grad) != opdi_place_of(tensor)) {
            return opdi_check_fail(check, "grad is on incorrect device (input %d)", check->in[j].which);
        }
        if (!opdi_has_sizes(grad, tensor->dims, tensor->ndim)) {
            return opdi_check_fail(check, "grad is incorrect size (input %d)", check->in[j].which);
        }
    }
    return 0;
}

/* A backward function that returns no gradient. */
static int opdi_check_no_gradient(opd_backward_call *bw) { return opd_bw_return(bw, 0, NULL); }

/* Checks a backward pass in which the gradient of output `without` (-1: of every output) is undefined and all other
   gradients are zeros.  All gradients of inputs must be undefined or zero.  Returns 0, or -1 and sets an error. */
static int opdi_check_undefined_one(opdi_check *check, int without) {
    opd_tensor *outs[OPD_GRADCHECK_OUTPUTS], *zeros[OPD_GRADCHECK_OUTPUTS], *grads[OPDI_CHECK_INPUTS];
    int count = opdi_check_recorded(check, outs), zero;
    if (count <= 0) { return count; }
    for (int i = 0; i < count; i++) {
        opd_tensor *tensor = outs[i];
        if (without >= 0 && i != without) { continue; }
        opd_tensor *value = opd_tensor_view(tensor, opd_sizes(tensor), opd_strides(tensor), tensor->ndim,
                                            opd_tensor_offset(tensor));
        if (!value || opd_autograd_record("UndefinedGradBackward", opdi_check_no_gradient, &tensor, 1, NULL, 0, NULL, 0,
                                          &value, 1)) {
            return -1;
        }
        outs[i] = value;
    }
    if (opdi_check_zeros(outs, count, zeros)) { return -1; }
    if (opdi_check_backward(check, outs, count, zeros, grads)) {
        char why[600];
        if (opdi_error_passes()) { return -1; }
        (void)snprintf(why, sizeof why, "%s", opd_error_message());
        opd_error_clear();
        return opdi_check_fail(check, "Expected backward function to handle undefined output grads. opd_bw_grad "
                               "returns NULL for such a gradient. (%s)", why);
    }
    for (int j = 0; j < check->nin; j++) {
        if (!grads[j]) { continue; }
        if ((zero = opdi_check_is_zero(grads[j])) < 0) { return -1; }
        if (!zero) {
            return opdi_check_fail(check, "Expected all input grads to be undefined or zero when all output grads are "
                                   "undefined or zero. (input %d)", check->in[j].which);
        }
    }
    return 0;
}
static int opdi_check_undefined(opdi_check *check) {
    int count = 0, rc = 0;
    for (int i = -1; i < count && rc == 0; i++) {
        opd_scope scope = opd_scope_open();
        if (i < 0) {                              /* the first pass counts the outputs */
            opd_tensor *outs[OPD_GRADCHECK_OUTPUTS];
            count = opdi_check_recorded(check, outs);
            if (count == 1) { count = 0; }
        }
        rc = count < 0 ? -1 : opdi_check_undefined_one(check, i);
        opd_scope_close(&scope);
    }
    return rc;
}

/* Checks that the tangents of the outputs are the same whether input j has a tangent of zeros or no tangent.  Returns
   0, or -1 and sets an error. */
static int opdi_check_undefined_tangent(opdi_check *check, int j) {
    opd_tensor *with[OPDI_CHECK_INPUTS], *zero[OPD_GRADCHECK_OUTPUTS], *none[OPD_GRADCHECK_OUTPUTS];
    for (int i = 0; i < check->nin; i++) {
        if (!(with[i] = opd_zeros_like(check->in[i].tensor))) { return -1; }
        if (i != j && !opd_fill_(with[i], opd_value_double(0.75))) { return -1; }
    }
    if (opdi_check_push(check, with, zero)) { return -1; }
    with[j] = NULL;
    if (opdi_check_push(check, with, none)) { return -1; }
    for (int i = 0; i < check->nout; i++) {
        const double *a = zero[i] ? opdi_check_read(zero[i]) : NULL, *b = none[i] ? opdi_check_read(none[i]) : NULL;
        if (!opd_ok()) { return -1; }
        for (int64_t k = 0; a && b && k < check->out[i].numel; k++) {
            if (fabs(a[k] - b[k]) <= 1e-8 + 1e-5 * fabs(b[k]) || (a[k] != a[k] && b[k] != b[k])) { continue; }
            return opdi_check_fail(check, "Mismatch in tangent values for output with index: %d when input: %d has an "
                                   "undefined tangent value. Got: %.9g but expected: %.9g (element %lld)",
                                   check->out[i].which, check->in[j].which, b[k], a[k], (long long)k);
        }
    }
    return 0;
}
static int opdi_check_undefined_tangents(opdi_check *check) {
    int rc = 0;
    for (int j = 0; j < check->nin && rc == 0; j++) {
        opd_scope scope = opd_scope_open();
        rc = opdi_check_undefined_tangent(check, j);
        opd_scope_close(&scope);
    }
    return rc;
}

/* Sets values[0] and values[1] to two random tensors like `tensor`, and returns them stacked.  On failure, returns NULL
   and sets an error. */
static opd_tensor *opdi_check_pair(opd_tensor *tensor, opd_tensor **values /*[2]*/) {
    tensor = opd_detach(tensor);
    for (int i = 0; i < 2; i++) {
        values[i] = tensor && opdi_is_complex(tensor)
            ? opd_view_as_complex(opd_randn_like(opd_view_as_real(opd_resolve_conj(tensor)))) : opd_randn_like(tensor);
    }
    return opd_stack(opd_tensors_of(values, 2), 0);
}
/* Compares `got`, the result of vmap for two vectors, with `want`, the results for each vector alone.  NULL stands for
   zeros.  Returns 0, or -1 and sets an error. */
static int opdi_check_pair_same(opdi_check *check, opd_tensor *got, opd_tensor *const *want /*[2]*/, int out, int in) {
    for (int i = 0; i < 2; i++) {
        opd_tensor *part = got ? opd_select(opd_detach(got), 0, i) : NULL;
        const double *a = part ? opdi_check_read(part) : NULL, *b = want[i] ? opdi_check_read(want[i]) : NULL;
        const int64_t count = a ? opdi_check_numel(part) : b ? opdi_check_numel(want[i]) : 0;
        if (!opd_ok()) { return -1; }
        for (int64_t k = 0; k < count; k++) {
            const double x = a ? a[k] : 0, y = b ? b[k] : 0;
            if (fabs(x - y) <= 1e-8 + 1e-5 * fabs(y) || (x != x && y != y)) { continue; }
            return opdi_check_fail(check, "For output %d and input %d: gradcheck or gradgradcheck failed while testing "
                                   "batched gradient computation. Got: %.9g, expected: %.9g (vector %d, element %lld)",
                                   out, in, x, y, i, (long long)k);
        }
    }
    return 0;
}
/* Turns an error of vmap into a failed check.  Returns -1. */
static int opdi_check_batched_error(opdi_check *check) {
    char why[600];
    if (opd_ok() || opdi_error_passes()) { return -1; }
    (void)snprintf(why, sizeof why, "%s", opd_error_message());
    opd_error_clear();
    return opdi_check_fail(check, "While computing batched gradients, got: %s (gradcheck or gradgradcheck failed while "
                           "testing batched gradient computation)", why);
}
/* Checks that backward passes under vmap give the same results as separate passes, for two vectors of each output.
   Returns 0, or -1 and sets an error. */
static int opdi_check_batched(opdi_check *check) {
    opd_tensor *outs[OPD_GRADCHECK_OUTPUTS], *in[OPDI_CHECK_INPUTS], *values[2], *both;
    opd_tensor *one[2][OPDI_CHECK_INPUTS], *got[OPDI_CHECK_INPUTS], *want[2];
    opd_backward_options options;
    int count = opdi_check_recorded(check, outs);
    for (int j = 0; j < check->nin; j++) { in[j] = check->in[j].tensor; }
    memset(&options, 0, sizeof options);
    options.retain_graph = options.allow_unused = options.is_grads_batched = true;
    options.grad_outputs = &both;
    for (int i = 0; i < count; i++) {
        if (!(both = opdi_check_pair(outs[i], values)) || opdi_check_backward(check, &outs[i], 1, &values[0], one[0]) ||
            opdi_check_backward(check, &outs[i], 1, &values[1], one[1])) { return -1; }
        if (opd_autograd_grad(&outs[i], 1, in, check->nin, &options, got)) { return opdi_check_batched_error(check); }
        for (int j = 0; j < check->nin; j++) {
            want[0] = one[0][j];
            want[1] = one[1][j];
            if (opdi_check_pair_same(check, got[j], want, i, check->in[j].which)) { return -1; }
        }
    }
    return count < 0 ? -1 : 0;
}

typedef struct opdi_check_push_one { opdi_check *check; int which; } opdi_check_push_one;
/* Calls the function and writes its floating-point and complex outputs to `out`.  Returns their number, or -1 and
   sets an error. */
static int opdi_check_counting(void *user, opd_tensor *const *in, int count, opd_tensor **out) {
    int k = 0;
    (void)count;
    count = opdi_check_call(((opdi_check_push_one *)user)->check, in, out);
    for (int i = 0; i < count; i++) { if (opdi_check_counts(out[i])) { out[k++] = out[i]; } }
    return count < 0 ? -1 : k;
}
/* Computes the tangents of the outputs for the tangent in[0] of the input under test.  Returns the number of tangents,
   or -1 and sets an error. */
static int opdi_check_one_tangent(void *user, opd_tensor *const *in, int count, opd_tensor **out) {
    const opdi_check_push_one *check_push_one = (const opdi_check_push_one *)user;
    opd_tensor *outs[OPD_TRANSFORM_OUTPUTS];
    opd_transform_options options;
    (void)count;
    memset(&options, 0, sizeof options);
    options.argnums = &check_push_one->which;
    options.nargnums = 1;
    return opd_jvp(opdi_check_counting, user, check_push_one->check->inputs, in, check_push_one->check->ninputs,
                   &options, outs, out, OPD_TRANSFORM_OUTPUTS);
}
/* Checks that vmap over two tangents of an input gives the same results as separate forward passes.  Returns 0, or
   -1 and sets an error. */
static int opdi_check_batched_tangents(opdi_check *check) {
    opd_tensor *one[2][OPD_TRANSFORM_OUTPUTS], *got[OPD_TRANSFORM_OUTPUTS], *values[2], *both, *want[2];
    opdi_check_push_one check_push_one;
    int count;
    check_push_one.check = check;
    for (int j = 0; j < check->nin; j++) {
        check_push_one.which = check->in[j].which;
        if (!(both = opdi_check_pair(check->in[j].tensor, values)) ||
            (count = opdi_check_one_tangent(&check_push_one, &values[0], 1, one[0])) < 0 ||
            opdi_check_one_tangent(&check_push_one, &values[1], 1, one[1]) < 0) {
            return -1;
        }
        if (opd_vmap(opdi_check_one_tangent, &check_push_one, &both, 1, NULL, got, OPD_TRANSFORM_OUTPUTS) != count) {
            return opdi_check_batched_error(check);
        }
        for (int i = 0; i < count; i++) {
            want[0] = one[0][i];
            want[1] = one[1][i];
            if (opdi_check_pair_same(check, got[i], want, i, check_push_one.which)) { return -1; }
        }
    }
    return 0;
}

//== running all checks ================================================================================================

/* Collects the inputs that require grad, with copies of their values.  Returns 0, or -1 and sets an error if no
   input requires grad or an input cannot be perturbed. */
static int opdi_check_inputs(opdi_check *check) {
    for (int i = 0; i < check->ninputs; i++) {
        opd_tensor *tensor = check->inputs[i];
        opdi_axis *axis = &check->in[check->nin];
        if (!tensor || !(tensor->flags & OPDI_REQUIRES_GRAD)) { continue; }
        if (check->nin == OPDI_CHECK_INPUTS) {
            return opd_fail(OPD_ERROR_ARGUMENT, "gradcheck: more than %d inputs require grad", OPDI_CHECK_INPUTS);
        }
        if (tensor->dtype != OPD_FLOAT64 && tensor->dtype != OPD_COMPLEX128) {
            opd_warn("gradcheck: input %d is %s. Rounding errors can then look like a wrong derivative: use float64 or "
                     "complex128, or eps 1e-2, atol 1e-2 and rtol 1e-2.", i,
                     opd_dtype_name((opd_scalar_type)tensor->dtype));
        }
        for (int dim = 0; dim < tensor->ndim; dim++) {
            if (opd_strides(tensor)[dim] == 0 && tensor->dims[dim] > 1) {
                return opd_fail(OPD_ERROR_ARGUMENT, "The %dth input has a dimension with stride 0. gradcheck only "
                                "supports inputs that are non-overlapping to be able to compute the numerical "
                                "gradients correctly. You should call opd_contiguous on the input before passing it to "
                                "gradcheck.", i);
            }
        }
        if (tensor->backend == OPD_META) {
            return opd_fail(OPD_ERROR_ARGUMENT, "gradcheck: input %d has no data that can be changed", i);
        }
        axis->tensor = tensor;
        axis->which = i;
        axis->numel = opdi_check_numel(tensor);
        if (!(axis->home = opdi_check_scratch(tensor)) || opdi_copy(axis->home, tensor)) { return -1; }
        check->nin++;
    }
    return check->nin ? 0 : opd_fail(OPD_ERROR_ARGUMENT,
                                     "gradcheck expects at least one input tensor to require gradient, "
                                     "but none of them does (opd_tensor_set_requires_grad).");
}

/* Calls the function and chooses the outputs to check: those that require grad.  If no output requires grad, or in
   strict mode, chooses all outputs.  Returns 0, or -1 and sets an error. */
static int opdi_check_find_outputs(opdi_check *check) {
    opd_tensor *results[OPD_GRADCHECK_OUTPUTS];
    int count = opdi_check_call(check, check->inputs, results);
    bool any = false;
    if (count < 0) { return -1; }
    check->nresults = count;
    for (int i = 0; i < count; i++) { any = any || opd_tensor_requires_grad(results[i]); }
    for (int i = 0; i < count; i++) {
        opd_tensor *tensor = results[i];
        opdi_axis *axis = &check->out[check->nout];
        if (!opdi_check_counts(tensor) || (any && !check->strict && !opd_tensor_requires_grad(tensor))) { continue; }
        if (tensor->backend == OPD_META) {
            return opd_fail(OPD_ERROR_ARGUMENT, "gradcheck: output %d has no data that can be read", i);
        }
        axis->tensor = tensor;
        axis->which = i;
        axis->numel = opdi_check_numel(tensor);
        check->nout++;
    }
    return 0;
}

static int opdi_check_run(opdi_check *check) {
    const opd_gradcheck_options *options = check->options;
    if (opdi_check_inputs(check) || opdi_check_find_outputs(check) || opdi_check_layout(check, options->fast_mode) ||
        opdi_check_jacobians(check)) { return -1; }
    if (options->check_undefined_grad && options->check_forward_ad && opdi_check_undefined_tangents(check)) {
        return -1;
    }
    if (options->check_batched_forward_grad && opdi_check_batched_tangents(check)) { return -1; }
    if (options->check_backward_ad && opdi_check_multiplied(check)) { return -1; }
    if (options->check_batched_grad && opdi_check_batched(check)) { return -1; }
    return options->check_undefined_grad && options->check_backward_ad ? opdi_check_undefined(check) : 0;
}

opd_gradcheck_options opd_gradcheck_defaults(void) {
    opd_gradcheck_options options;
    memset(&options, 0, sizeof options);
    options.eps = 1e-6;
    options.atol = 1e-5;
    options.rtol = 1e-3;
    options.raise_exception = options.check_undefined_grad = options.check_backward_ad = options.check_rev_over_rev =
        true;
    return options;
}

static int opdi_check_options(const opd_gradcheck_options *options, bool backward, bool forward, bool second) {
    if (!(options->eps > 0) || !(options->atol >= 0) || !(options->rtol >= 0) || !(options->nondet_tol >= 0)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "gradcheck: eps must be positive, and tolerances must not be negative "
                        "(opd_gradcheck_defaults fills in the options)");
    }
    if (options->check_batched_grad && !backward) {
        return opd_fail(OPD_ERROR_ARGUMENT, "check_batched_grad requires %s to be true",
                        second ? "check_rev_over_rev" : "check_backward_ad");
    }
    if (options->check_batched_forward_grad && !forward) {
        return opd_fail(OPD_ERROR_ARGUMENT, "check_batched_forward_grad requires %s to be true",
                        second ? "check_fwd_over_rev" : "check_forward_ad");
    }
    return 0;
}

/* Runs all checks that `options` asks for.  Returns 0, or 1 if a check failed and raise_exception is false, or -1 and
   sets an error. */
static int opdi_check_start(opd_gradcheck_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                            const opd_gradcheck_options *options, bool strict) {
    char text[2000];
    opdi_check *check;
    if (!(check = (opdi_check *)opdi_alloc(sizeof *check))) { return -1; }
    memset(check, 0, sizeof *check);
    check->fn = fn;
    check->user = user;
    check->inputs = inputs;
    check->ninputs = ninputs;
    check->options = options;
    check->strict = strict;
    check->report = options->report && options->report_cap > sizeof text ? options->report : text;
    check->report_cap = options->report && options->report_cap > sizeof text ? options->report_cap : sizeof text;
    check->report[0] = 0;
    opd_scope scope = opd_scope_open();
    int rc = opdi_check_run(check);
    opd_scope_close(&scope);
    if (check->wrong && !options->raise_exception) {
        opd_error_clear();
        rc = 1;
    }
    if (check->report == text && options->report && options->report_cap) {
        (void)snprintf(options->report, options->report_cap, "%s", text);
    }
    opdi_free(check, sizeof *check);
    return rc;
}

int opd_gradcheck(opd_gradcheck_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                  const opd_gradcheck_options *options) {
    const opd_gradcheck_options defaults = opd_gradcheck_defaults(), *used = options ? options : &defaults;
    if (!opd_ok()) { return -1; }
    if (!fn || ninputs < 0 || (ninputs && !inputs)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "gradcheck: the function and the array of inputs must not be NULL");
    }
    if (!used->check_forward_ad && !used->check_backward_ad) {
        return opd_fail(OPD_ERROR_ARGUMENT,
                        "Expected at least one of check_forward_ad or check_backward_ad to be true");
    }
    if (opdi_any_dead(inputs, ninputs, "opd_gradcheck") ||
        opdi_check_options(used, used->check_backward_ad, used->check_forward_ad, false)) { return -1; }
    return opdi_check_start(fn, user, inputs, ninputs, used, false);
}

//== second derivatives ================================================================================================

typedef struct opdi_gradients { opd_gradcheck_fn fn; void *user; int ninputs; } opdi_gradients;

/* Calls the function and writes the outputs that require grad to `outs`.  Returns their number, or -1 and sets an
   error. */
static int opdi_gradients_outputs(const opdi_gradients *gradients, opd_tensor *const *inputs, opd_tensor **outs) {
    int i, count;
    memset(outs, 0, OPD_GRADCHECK_OUTPUTS * sizeof *outs);
    int all = gradients->fn(gradients->user, inputs, gradients->ninputs, outs);
    if (!opd_ok() || all < 0 || all > OPD_GRADCHECK_OUTPUTS) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "gradgradcheck: the function fails, or returns more than %d outputs",
                        OPD_GRADCHECK_OUTPUTS);
    }
    if (opdi_any_dead_output(outs, all, "gradgradcheck")) { return -1; }
    for (i = count = 0; i < all; i++) { if (opd_tensor_requires_grad(outs[i])) { outs[count++] = outs[i]; } }
    return count;
}
/* The function that gradgradcheck checks: maps the inputs, followed by gradients of outputs, to those gradients of the
   inputs that are defined.  Returns the number of these gradients, or -1 and sets an error. */
static int opdi_gradients_of(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    const opdi_gradients *gradients = (const opdi_gradients *)user;
    opd_tensor *outs[OPD_GRADCHECK_OUTPUTS], *in[OPD_GRADCHECK_OUTPUTS], *grads[OPD_GRADCHECK_OUTPUTS];
    opd_backward_options options;
    int i, k, count = opdi_gradients_outputs(gradients, inputs, outs), nin = 0;
    if (count < 0) { return -1; }
    if (count != ninputs - gradients->ninputs) {
        return opd_fail(OPD_ERROR_AUTOGRAD, "gradgradcheck: %d outputs require grad, and %d when the function is "
                        "called again", ninputs - gradients->ninputs, count);
    }
    for (i = 0; i < gradients->ninputs; i++) {
        if (!opd_tensor_requires_grad(inputs[i])) { continue; }
        if (nin == OPD_GRADCHECK_OUTPUTS) {
            return opd_fail(OPD_ERROR_ARGUMENT, "gradgradcheck: more than %d inputs require grad",
                            OPD_GRADCHECK_OUTPUTS);
        }
        in[nin++] = inputs[i];
    }
    memset(&options, 0, sizeof options);
    options.grad_outputs = inputs + gradients->ninputs;
    options.create_graph = options.allow_unused = true;
    if (opd_autograd_grad(outs, count, in, nin, &options, grads)) { return -1; }
    for (i = k = 0; i < nin; i++) { if (grads[i]) { outputs[k++] = grads[i]; } }
    return k;
}

/* Writes the gradients of the outputs to `all`, from index ninputs on: grad_outputs or, if that is NULL, random
   numbers.  Returns the number of gradients, or -1 and sets an error. */
static int opdi_gradients_start(const opdi_gradients *gradients, opd_tensor *const *grad_outputs, opd_tensor **all) {
    opd_tensor *outs[OPD_GRADCHECK_OUTPUTS];
    int count = opdi_gradients_outputs(gradients, all, outs);
    for (int i = 0; i < count; i++) {
        opd_tensor *tensor = grad_outputs ? grad_outputs[i] : NULL;
        if (opdi_any_dead(&tensor, 1, "opd_gradgradcheck")) { return -1; }
        if (!grad_outputs) {
            tensor = opdi_own(opdi_tensor_make(outs[i]->dims, NULL, outs[i]->ndim, (opd_scalar_type)outs[i]->dtype,
                                               opdi_place_of(outs[i])));
            const bool pairs = tensor && opdi_is_complex(tensor);
            if (!opd_uniform_(pairs ? opd_view_as_real(tensor) : tensor, -1, 1) ||
                !opd_tensor_set_requires_grad(tensor, true)) { return -1; }
        } else if (!tensor) { return opd_fail(OPD_ERROR_ARGUMENT, "gradgradcheck: gradient %d is NULL", i); }
        all[gradients->ninputs + i] = tensor;
    }
    return count;
}

/* Checks second derivatives, by a gradcheck of the function that computes the gradients of fn.  Returns the result of
   opd_gradcheck. */
int opd_gradgradcheck(opd_gradcheck_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                      opd_tensor *const *grad_outputs, const opd_gradcheck_options *options) {
    const opd_gradcheck_options defaults = opd_gradcheck_defaults(), *used = options ? options : &defaults;
    opd_tensor *all[OPDI_CHECK_INPUTS + OPD_GRADCHECK_OUTPUTS];
    opdi_gradients gradients;
    int rc = -1;
    if (!opd_ok()) { return -1; }
    if (!fn || ninputs < 0 || (ninputs && !inputs) || ninputs > OPDI_CHECK_INPUTS) {
        return opd_fail(OPD_ERROR_ARGUMENT, "gradgradcheck: the function and the array of inputs must not be NULL, and "
                        "at most %d inputs are allowed", OPDI_CHECK_INPUTS);
    }
    if (opdi_any_dead(inputs, ninputs, "opd_gradgradcheck")) { return -1; }
    if (!used->check_fwd_over_rev && !used->check_rev_over_rev) {
        return opd_fail(OPD_ERROR_ARGUMENT,
                        "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be true");
    }
    if (used->check_undefined_grad && !used->check_rev_over_rev) {
        return opd_fail(OPD_ERROR_ARGUMENT,
                        "check_undefined_grad requires check_rev_over_rev to be true");
    }
    if (opdi_check_options(used, used->check_rev_over_rev, used->check_fwd_over_rev, true)) { return -1; }
    opd_gradcheck_options over = *used;
    over.check_forward_ad = used->check_fwd_over_rev;
    over.check_backward_ad = used->check_rev_over_rev;
    gradients.fn = fn;
    gradients.user = user;
    gradients.ninputs = ninputs;
    memcpy(all, inputs, (size_t)ninputs * sizeof *all);
    opd_scope scope = opd_scope_open();
    int count = opdi_gradients_start(&gradients, grad_outputs, all);
    /* no output requires grad: there is nothing to differentiate */
    if (count == 0) { rc = opdi_check_start(fn, user, inputs, ninputs, &over, false); }
    else if (count > 0) { rc = opdi_check_start(opdi_gradients_of, &gradients, all, ninputs + count, &over, true); }
    opd_scope_close(&scope);
    return rc;
}
