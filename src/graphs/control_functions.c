#include "graphs.h"

//== opd_cond, opd_while, opd_scan, opd_map ============================================================================

static void opdi_control_begin(opdi_control_task *task, const char *who, const char *first, opd_transform_fn fn,
                            const char *second, opd_transform_fn other, void *user) {
    memset(task, 0, sizeof *task);
    task->flow.who = who;
    task->flow.names[0] = first;
    task->flow.names[1] = second;
    task->flow.call = opdi_control_call;
    task->flow.user = &task->functions;
    task->flow.most = OPD_TRANSFORM_OUTPUTS;
    task->flow.strict = true;
    task->functions.fns[0] = fn;
    task->functions.fns[1] = other;
    task->functions.user = user;
}
/* Checks `count` tensors of the argument `name`, and appends them to the arguments.  Returns 0, or -1 and sets an
   error. */
static int opdi_control_add(opdi_control_task *task, const char *name, opd_tensor *const *tensors, int count) {
    if (count < 0 || (count && !tensors)) {
        return opd_fail(OPD_ERROR_ARGUMENT, count < 0 ? "%s: the number of %s is negative" : "%s: %s is NULL",
                        task->flow.who, name);
    }
    if (opdi_any_dead(tensors, count, task->flow.who)) { return -1; }
    opd_value *const more = opdi_control_values(task->nargs + count);
    if (!more) { return -1; }
    if (task->nargs) { memcpy(more, task->args, (size_t)task->nargs * sizeof *more); }
    task->args = more;
    for (int i = 0; i < count; i++) {
        if (!tensors[i]) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s[%d] is NULL, but must be a tensor", task->flow.who, name, i);
        }
        task->args[task->nargs++] = opd_value_tensor(tensors[i]);
    }
    return 0;
}
/* Checks the functions and the array of outputs of a task.  Returns 0, or -1 and sets an error. */
static int opdi_control_ready(const opdi_control_task *task, opd_tensor *const *outputs, int cap) {
    if (opdi_visits_left(opdi_self()) || !opd_ok()) { return -1; }
    for (int i = 0; i < 2; i++) {
        if (task->flow.names[i] && !task->functions.fns[i]) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s is NULL", task->flow.who, task->flow.names[i]);
        }
    }
    if (cap >= 0 && (outputs || cap == 0)) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: the array of outputs is NULL, or its length is negative", task->flow.who);
}
/* Checks the tensors that a loop slices, and moves the dim of the slices to the front.  Returns 0, or -1 and sets an
   error. */
static int opdi_control_align(opdi_control_task *task) {
    int64_t length = -1;
    if (task->nsliced == 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: xs has no tensors; it needs at least one", task->flow.who);
    }
    for (int i = 0; i < task->nsliced; i++) {
        opd_value *const value = &task->args[task->ncarried + i];
        const int ndim = value->u.t->ndim, dim = task->dim < 0 ? task->dim + ndim : task->dim;
        if (dim < 0 || dim >= ndim) {
            return opd_fail(OPD_ERROR_INDEX, "%s: dim %d is out of range for xs[%d], which has %d dims", task->flow.who,
                            task->dim, i, ndim);
        }
        const int64_t size = opd_size(value->u.t, dim);
        if (i == 0) { length = size; }
        if (size == 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: xs[%d] has no slices along dim %d", task->flow.who, i, task->dim);
        }
        if (size != length) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: all xs must have the same size along dim %d, but xs[0] has %lld "
                            "and xs[%d] has %lld", task->flow.who, task->dim, (long long)length, i, (long long)size);
        }
        if (dim && !(value->u.t = opd_movedim(value->u.t, dim, 0))) { return -1; }
    }
    return 0;
}
/* Runs a task.  Writes the outputs, which belong to the innermost scope.  Returns their number, or -1 and sets an
   error. */
static int opdi_control_run(opdi_control_task *task, opd_value *outputs) {
#if !defined(OPD_NO_GRAPHS)
    if (OPDI_UNLIKELY(opdi_self()->innermost.tracer != NULL) && opdi_control_is_recorded(task)) {
        return opdi_control_record(task, outputs);
    }
#endif
    if (task->pred) {
        const opd_value pred = opd_value_tensor(task->pred);
        return opdi_control_cond(&task->flow, &pred, task->args, task->nargs, outputs, task->flow.most);
    }
    if (task->functions.fns[1]) {
        return opdi_control_while(&task->flow, task->args, task->nargs, task->ncarried, outputs) ? -1 : task->ncarried;
    }
    return opdi_control_scan(&task->flow, task->args, task->nargs, task->ncarried, task->nsliced, task->reverse,
                             outputs);
}
/* Runs a task, after its arguments were added (if `rc` is 0).  Moves the outputs to the scope around the innermost
   scope, and writes them to `outputs`, which has room for `cap`.  Returns their number, or -1 and sets an error. */
static int opdi_control_end(opdi_control_task *task, int rc, opd_tensor **outputs, int cap) {
    opd_value values[OPD_TRANSFORM_OUTPUTS];
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS] = {NULL};
    int count = rc ? -1 : opdi_control_run(task, values);
    for (int i = 0; i < count; i++) {
        out[i] = values[i].u.t;
        const int from = task->dim < 0 && task->nsliced ? task->dim + task->args[task->ncarried].u.t->ndim : task->dim;
        if (i >= task->ncarried && task->nsliced && from > 0 && from < out[i]->ndim) {
            out[i] = opd_movedim(out[i], 0, from);
        }
        if (!out[i] || !opd_scope_return(out[i])) { count = -1; }
    }
    return opdi_outputs_return(task->flow.who, outputs, cap, out, count, 1);
}

int opd_cond(opd_tensor *pred, opd_transform_fn then_fn, opd_transform_fn else_fn, void *user,
             opd_tensor *const *operands, int count, opd_tensor **outputs, int cap) {
    opdi_control_task task;
    opdi_control_begin(&task, "opd_cond", "then_fn", then_fn, "else_fn", else_fn, user);
    opd_scope scope = opd_scope_open();
    int rc = opdi_control_ready(&task, outputs, cap);
    if (rc == 0) { rc = opdi_null_tensor(pred, "opd_cond: pred"); }
    task.pred = pred;
    rc = rc || opdi_control_add(&task, "operands", operands, count) ? -1 : 0;
    task.nothers = task.nargs;
    rc = opdi_control_end(&task, rc, outputs, cap);
    opd_scope_close(&scope);
    return rc;
}
int opd_while(opd_transform_fn cond_fn, opd_transform_fn body_fn, void *user, opd_tensor *const *carried, int ncarried,
              opd_tensor *const *others, int nothers, opd_tensor **outputs, int cap) {
    opdi_control_task task;
    opdi_control_begin(&task, "opd_while", "cond_fn", cond_fn, "body_fn", body_fn, user);
    opd_scope scope = opd_scope_open();
    int rc = opdi_control_ready(&task, outputs, cap);
    if (rc == 0 && ncarried < 1) {
        rc = opd_fail(OPD_ERROR_ARGUMENT, "opd_while: there must be at least one carried tensor");
    }
    if (rc == 0 && ncarried > OPD_TRANSFORM_OUTPUTS) {
        rc = opd_fail(OPD_ERROR_ARGUMENT, "opd_while: there are %d carried tensors, but at most %d are allowed",
                      ncarried, OPD_TRANSFORM_OUTPUTS);
    }
    rc = rc || opdi_control_add(&task, "carried", carried, ncarried) ||
        opdi_control_add(&task, "others", others, nothers) ? -1 : 0;
    task.ncarried = ncarried;
    task.nothers = nothers;
    rc = opdi_control_end(&task, rc, outputs, cap);
    opd_scope_close(&scope);
    return rc;
}
/* Runs opd_scan, or opd_map if there are no carried tensors and no options.  `who` is its name. */
static int opdi_control_over(const char *who, opd_transform_fn fn, void *user, opd_tensor *const *init, int ninit,
                          opd_tensor *const *xs, int nxs, opd_tensor *const *others, int nothers,
                          const opd_scan_options *options, opd_tensor **outputs, int cap) {
    opdi_control_task task;
    opdi_control_begin(&task, who, "fn", fn, NULL, NULL, user);
    opd_scope scope = opd_scope_open();
    int rc = opdi_control_ready(&task, outputs, cap);
    rc = rc || opdi_control_add(&task, "init", init, ninit) || opdi_control_add(&task, "xs", xs, nxs) ||
        opdi_control_add(&task, "others", others, nothers) ? -1 : 0;
    task.ncarried = ninit;
    task.nsliced = nxs;
    task.nothers = nothers;
    task.dim = options ? options->dim : 0;
    task.reverse = options && options->reverse;
    rc = opdi_control_end(&task, rc || opdi_control_align(&task) ? -1 : 0, outputs, cap);
    opd_scope_close(&scope);
    return rc;
}
int opd_scan(opd_transform_fn fn, void *user, opd_tensor *const *init, int ninit, opd_tensor *const *xs, int nxs,
             opd_tensor *const *others, int nothers, const opd_scan_options *options, opd_tensor **outputs, int cap) {
    return opdi_control_over("opd_scan", fn, user, init, ninit, xs, nxs, others, nothers, options, outputs, cap);
}
int opd_map(opd_transform_fn fn, void *user, opd_tensor *const *xs, int nxs, opd_tensor *const *others, int nothers,
            opd_tensor **outputs, int cap) {
    return opdi_control_over("opd_map", fn, user, NULL, 0, xs, nxs, others, nothers, NULL, outputs, cap);
}
