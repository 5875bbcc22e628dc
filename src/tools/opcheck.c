#include "tools.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>opcheck      checking that an operator does what its schema and registrations say
//
//  A trial is the operator with tensors of certain sizes.  Each sub-test calls it on new copies of these tensors.  A
//  failure of a sub-test sets an error with the names of the operator and the sub-test.  This section uses calls,
//  graphs, vmap and autograd like a program.  The checks and their texts follow torch.library.opcheck.
//----------------------------------------------------------------------------------------------------------------------

/* A trial: the operator with its arguments.  The tensors in the arguments, including those in lists, are numbered in
   order. */
typedef struct opdi_trial {
    opd_op *op;
    const opd_opcheck_options *options;
    opd_value args[OPD_MAX_ARGS];
    int count;
    opd_tensor **inputs;
    int *arg;                                     /* [count]: index of the tensor's argument */
    bool *written;
    bool other_sizes;
    opd_generator *generator;                     /* generator argument, or NULL for the default */
    uint64_t random[2];                           /* initial state of the generators in each call */
    uint64_t random_was[2][2];                    /* previous states of the default generator and of `generator` */
} opdi_trial;

static const char *opdi_trial_arg(const opdi_trial *trial, int element) {
    return trial->op->schema->args[trial->arg[element]].name;
}

/* Sets args to the arguments of the trial, with in[k] instead of tensor k.  Lists are new, in the innermost scope.
   Returns 0, or -1 and sets an error. */
static int opdi_trial_fill(const opdi_trial *trial, opd_tensor *const *in, opd_value *args) {
    int k = 0;
    for (int i = 0; i < trial->op->nargs; i++) {
        args[i] = trial->args[i];
        if (args[i].tag == OPD_TAG_TENSOR) { args[i] = opd_value_tensor(in[k++]); }
        if (args[i].tag == OPD_TAG_TENSORS) {
            opd_tensor **list = opdi_scope_tensors(args[i].n + 1);
            if (!list) { return -1; }
            for (int32_t j = 0; j < args[i].n; j++) { list[j] = trial->args[i].u.tensors[j] ? in[k++] : NULL; }
            args[i].u.tensors = list;
        }
    }
    return 0;
}
/* Seeds the generators of a random operator, so that all calls draw the same numbers.  A graph draws from the
   default generator. */
static void opdi_trial_seed(const opdi_trial *trial) {
    if (!opdi_op_is_random(trial->op)) { return; }
    opdi_random_set(NULL, trial->random);
    opdi_random_set(trial->generator, trial->random);
}
static void opdi_trial_seeded(opdi_trial *trial) {
    opdi_random_get(NULL, trial->random_was[0]);
    opdi_random_get(trial->generator, trial->random_was[1]);
    trial->random[0] = trial->generator ? trial->random_was[1][0] : trial->options->seed;
    trial->random[1] = trial->generator ? trial->random_was[1][1] : 0;
}
static int opdi_trial_call(const opdi_trial *trial, opd_tensor *const *in, opd_value *rets) {
    opd_value args[OPD_MAX_ARGS];
    if (opdi_trial_fill(trial, in, args)) { return -1; }
    opdi_trial_seed(trial);
    return opd_call_all(trial->op, rets, args, trial->op->nargs);
}
/* Collects the tensors in the results, at most `cap`, in `out`.  If `which` is not NULL, sets which[k] to the number
   of the result that contains tensor k.  Returns the number of tensors. */
static int opdi_trial_results(const opd_op *op, const opd_value *rets, opd_tensor **out, int *which, int cap) {
    int count = 0;
    for (int i = 0; i < op->nrets; i++) {
        const opd_value one = rets[i].tag == OPD_TAG_TENSOR ? opd_value_tensors(&rets[i].u.t, 1) : rets[i];
        for (int32_t j = 0; one.tag == OPD_TAG_TENSORS && j < one.n && count < cap; j++) {
            if (!one.u.tensors[j]) { continue; }
            if (which) { which[count] = i; }
            out[count++] = one.u.tensors[j];
        }
    }
    return count;
}
/* Calls the operator as a function of its tensors.  Writes its results to `out`, then the arguments that it has
   written.  Returns the number of tensors in `out`, or -1 and sets an error. */
static int opdi_trial_fn(void *user, opd_tensor *const *in, int total, opd_tensor **out) {
    const opdi_trial *trial = (const opdi_trial *)user;
    opd_value rets[OPDI_MAX_RETURNS];
    if (opdi_trial_call(trial, in, rets)) { return -1; }
    int count = opdi_trial_results(trial->op, rets, out, NULL, OPD_TRANSFORM_OUTPUTS);
    for (int k = 0; k < total && count < OPD_TRANSFORM_OUTPUTS; k++) {
        if (trial->written[k]) { out[count++] = in[k]; }
    }
    return count;
}

/* Returns copies of the trial's tensors with the same strides, or NULL and sets an error.  If `grad` is true, the
   copies of tensors that require grad also require grad, except those that the operator writes. */
static opd_tensor **opdi_trial_copies(const opdi_trial *trial, bool grad) {
    opd_tensor **in = opdi_scope_tensors(trial->count + 1);
    for (int k = 0; in && k < trial->count; k++) {
        opd_tensor *tensor = trial->inputs[k];
        if (tensor->flags & OPDI_WRAPPED) {
            in[k] = tensor;
            continue;
        }
        in[k] = opdi_own(opdi_tensor_make(tensor->dims,
                                          opdi_overlaps_itself(tensor) ? NULL : tensor->dims + tensor->ndim,
                                          tensor->ndim, (opd_scalar_type)tensor->dtype, opdi_place_of(tensor)));
        if (!in[k] || opdi_copy(in[k], tensor)) { return NULL; }
        if (grad && opdi_requires_grad(tensor) && !trial->written[k] && !opd_tensor_set_requires_grad(in[k], true)) {
            return NULL;
        }
    }
    return in;
}
/* Returns a contiguous copy of tensor on the host, or NULL and sets an error.  The copy of blocks is float32. */
static opd_tensor *opdi_trial_bytes(const opd_tensor *tensor) {
    const opd_scalar_type dtype = opdi_is_block(tensor->dtype) ? OPD_FLOAT32 : (opd_scalar_type)tensor->dtype;
    opd_tensor *scratch = opdi_own(opdi_tensor_make(tensor->dims, NULL, tensor->ndim, dtype, OPD_CPU));
    return scratch && opdi_copy(scratch, tensor) == 0 ? scratch : NULL;
}

//== checking the schema ===============================================================================================

static int opdi_opcheck_written(const opdi_trial *trial, opd_tensor *const *in, opd_tensor *const *before,
                                opd_tensor *const *shapes, const opd_value *args) {
    for (int k = 0; k < trial->count; k++) {
        const opd_tensor *now = opdi_trial_bytes(in[k]);
        if (!now) { return -1; }
        bool same = now->numel == before[k]->numel && shapes[k]->ndim == in[k]->ndim &&
                    memcmp(shapes[k]->dims, in[k]->dims, 2 * (size_t)in[k]->ndim * sizeof(int64_t)) == 0 &&
                    memcmp(now->data, before[k]->data, (size_t)now->storage->bytes) == 0;
        if (same || opd_schema_is_mutable_at(trial->op->schema, trial->arg[k], args)) { continue; }
        return opd_fail(OPD_ERROR_KERNEL, "Argument %s is not defined as mutable but was mutated. Declare in the "
                        "schema that the operator writes it (Tensor(a!) %s), or write into a copy (opd_clone)",
                        opdi_trial_arg(trial, k), opdi_trial_arg(trial, k));
    }
    return 0;
}
/* Checks that a result shares memory with an argument or with another result only if the schema says so.  `which`
   has the number of the result that contains each tensor of out[nout].  Returns 0, or -1 and sets an error. */
static int opdi_opcheck_aliases(const opdi_trial *trial, opd_tensor *const *in, const opd_value *args, opd_tensor **out,
                                const int *which, int nout) {
    const opd_schema *schema = trial->op->schema;
    for (int i = 0; i < nout; i++) {
        for (int k = 0; k < trial->count; k++) {
            if (!opdi_same_memory(out[i], in[k]) || (!in[k]->data && out[i] != in[k]) ||
                opd_schema_may_contain_alias(schema, OPD_RESULT(which[i]), trial->arg[k], true, NULL)) { continue; }
            if (out[i] == in[k]) {
                return opd_fail(OPD_ERROR_KERNEL, "Result %d is argument %s itself: operators are not allowed to "
                                "directly return inputs. Return a copy (opd_clone), or declare in the schema that the "
                                "result is the argument: Tensor(a) %s ... -> Tensor(a)", which[i], opdi_trial_arg(trial,
                                                                                                                  k),
                                opdi_trial_arg(trial, k));
            }
            return opd_fail(OPD_ERROR_KERNEL, "Argument %s is not defined to alias output but was aliasing. Return a "
                            "copy (opd_clone), or declare in the schema that result %d is a view of it: Tensor(a) %s "
                            "... -> Tensor(a)", opdi_trial_arg(trial, k), which[i], opdi_trial_arg(trial, k));
        }
        for (int k = 0; k < i; k++) {
            if (which[k] == which[i] || !out[i]->data || !opdi_same_memory(out[i], out[k]) ||
                opd_schema_may_contain_alias(schema, OPD_RESULT(which[k]), OPD_RESULT(which[i]), true, args)) {
                continue;
            }
            return opd_fail(OPD_ERROR_KERNEL, "Outputs %d and %d alias unexpectedly. Return a copy of one of them "
                            "(opd_clone)", which[k], which[i]);
        }
    }
    return 0;
}
static int opdi_opcheck_schema(const opdi_trial *trial) {
    opd_tensor **in = opdi_trial_copies(trial, false), **shapes = opdi_trial_copies(trial, false);
    opd_tensor **before = opdi_scope_tensors(trial->count + 1), *out[OPD_TRANSFORM_OUTPUTS];
    opd_value args[OPD_MAX_ARGS], rets[OPDI_MAX_RETURNS];
    int which[OPD_TRANSFORM_OUTPUTS];
    if (!in || !shapes || !before || opdi_trial_fill(trial, in, args)) { return -1; }
    for (int k = 0; k < trial->count; k++) { if (!(before[k] = opdi_trial_bytes(in[k]))) { return -1; } }
    if (opdi_trial_call(trial, in, rets)) { return -1; }
    return opdi_opcheck_written(trial, in, before, shapes, args) ||
           opdi_opcheck_aliases(trial, in, args, out, which,
                                opdi_trial_results(trial->op, rets, out, which, OPD_TRANSFORM_OUTPUTS)) ? -1 : 0;
}

//== checking the autograd registration ================================================================================

/* Returns true if a call with tensors of this backend that require grad reaches a kernel at an autograd key. */
static bool opdi_opcheck_has_autograd(const opd_op *op, int backend) {
    const opdi_table *table = OPDI_ACQUIRE(&op->table);
    const opdi_slot *slot = table ? &table->slots[OPD_KEY_PER_BACKEND(5, backend)] : NULL;
    return slot && slot->fn != opdi_autograd_fallback && slot->fn != opd_fallthrough && slot->fn != opdi_missing_kernel;
}
static int opdi_opcheck_grads(const opdi_trial *trial, opd_tensor *const *in, opd_tensor *const *outs, int nouts,
                              opd_tensor **grads);
/* Checks that, for each argument that needs a gradient, the backward function of the results either gives one or
   reports that there is none.  Ignores other errors of the backward pass.  Returns 0, or -1 and sets an error. */
static int opdi_opcheck_formula(const opdi_trial *trial, opd_tensor **in, opd_tensor **out, int count) {
    opd_tensor **grads = opdi_scope_tensors(trial->count + 1);
    const int mark = opd_error_mark();
    if (!grads) { return -1; }
    if (opdi_opcheck_grads(trial, in, out, count, grads) == 0) { return 0; }
    if (opdi_error_passes() || strstr(opd_error_message(), OPDI_TOO_FEW)) { return -1; }
    (void)opd_error_rewind(mark);
    return 0;
}
/* Checks that results do not require grad if the operator has no autograd kernel.  If it has one, checks that its
   backward function gives all gradients.  Returns 0, or -1 and sets an error. */
static int opdi_opcheck_autograd(const opdi_trial *trial) {
    opd_tensor **in = opdi_trial_copies(trial, true), *out[OPD_TRANSFORM_OUTPUTS];
    opd_value rets[OPDI_MAX_RETURNS];
    bool any = false;
    for (int k = 0; in && k < trial->count; k++) { any |= opdi_requires_grad(in[k]); }
    if (!in || !any) { return in ? 0 : -1; }
    opd_autograd_fallback_mode was = opd_autograd_fallback_set(OPD_AUTOGRAD_FALLBACK_NOTHING);
    int rc = opdi_trial_call(trial, in, rets);
    (void)opd_autograd_fallback_set(was);
    if (rc) { return -1; }
    int count = opdi_trial_results(trial->op, rets, out, NULL, OPD_TRANSFORM_OUTPUTS);
    for (int i = 0; i < count; i++) {
        bool given = false;
        for (int k = 0; k < trial->count; k++) { given |= out[i] == in[k]; }
        if (given || !opdi_requires_grad(out[i]) || opdi_opcheck_has_autograd(trial->op, out[i]->backend)) { continue; }
        return opd_fail(OPD_ERROR_AUTOGRAD, "at least one output of this operator has requires_grad=True but the "
                        "operator does not have an autograd kernel defined at an autograd key. Its kernel calls "
                        "operators that autograd records: give the operator a backward function (`backward` of "
                        "opd_op_desc, or opd_autograd_register), or register the kernel as `composite`, or call the "
                        "operators in it under OPD_NO_GRAD");
    }
    return opdi_opcheck_formula(trial, in, out, count);
}

//== comparing fake with real tensors ==================================================================================

/* Returns true if a size of a fake result fits the real size: both are equal, or the fake size depends on data and
   its bounds include the real size. */
static bool opdi_opcheck_size(int64_t real, int64_t fake) {
    const opdi_fake_mode *mode = opdi_fake_mode_of(opdi_self());
    for (int i = 0; i < mode->symbols->count && real != fake; i++) {
        const opdi_symbol *symbol = &mode->symbols->symbol[i];
        if (symbol->value == fake && real >= symbol->min && (symbol->max < 0 || real <= symbol->max)) { return true; }
    }
    return real == fake;
}
/* Checks that fake result number i has the sizes, dtype, device and strides of the real result.  Returns 0, or -1
   and sets an error. */
static int opdi_opcheck_same_fake(const opd_tensor *real, const opd_tensor *fake, int i) {
    char first[24 * OPD_MAX_DIMS], second[24 * OPD_MAX_DIMS];
    int dim = 0;
    if (opdi_fake_mode_of(opdi_self())->symbols->count && fake->ndim == real->ndim) {
        while (dim < real->ndim && opdi_opcheck_size(real->dims[dim], fake->dims[dim])) { dim++; }
        if (dim == real->ndim && fake->dtype == real->dtype) { return 0; }
    }
    if (!opdi_has_sizes(fake, real->dims, real->ndim)) {
        return opd_fail(OPD_ERROR_SHAPE, "the fake kernel gives result %d the sizes %s, but the real kernel gives it "
                        "%s. Both must compute the sizes in the same way from the sizes of the arguments", i,
                        opdi_sizes_text(fake->dims, fake->ndim, first, sizeof first), opdi_sizes_text(real->dims,
                                                                                                      real->ndim,
                                                                                                      second,
                                                                                                      sizeof second));
    }
    if (fake->dtype != real->dtype) {
        return opd_fail(OPD_ERROR_DTYPE, "the fake kernel gives result %d the dtype %s, but the real kernel gives it "
                        "%s. Pass the same dtype to opd_result in both", i,
                        opd_dtype_name((opd_scalar_type)fake->dtype), opd_dtype_name((opd_scalar_type)real->dtype));
    }
    if (opd_tensor_device(fake).type != opd_tensor_device(real).type) {
        return opd_fail(OPD_ERROR_KERNEL, "the fake kernel makes result %d on the device %s, but the real kernel makes "
                        "it on %s. Make results in both with opd_result, or on the device of an argument "
                        "(opd_tensor_device)", i, opdi_device_text(opd_tensor_device(fake), first, sizeof first),
                        opdi_device_text(opd_tensor_device(real), second, sizeof second));
    }
    for (dim = 0; dim < real->ndim && real->numel; dim++) {
        if (real->dims[dim] == 1 || opdi_strides(real)[dim] == opdi_strides(fake)[dim]) { continue; }
        return opd_fail(OPD_ERROR_SHAPE, "the fake kernel gives result %d the strides %s, but the real kernel gives it "
                        "%s. Make the result contiguous in both, or give it the same strides in both "
                        "(opd_result_strided)", i, opdi_sizes_text(opdi_strides(fake), fake->ndim, first, sizeof first),
                        opdi_sizes_text(opdi_strides(real), real->ndim, second, sizeof second));
    }
    return 0;
}
/* Calls the operator on fakes, in the current fake mode, and compares its results with the `count` real results.
   Returns 0, or -1 and sets an error. */
static int opdi_opcheck_fake_run(const opdi_trial *trial, opd_tensor *const *real, int count, const int *which) {
    opd_tensor **in = opdi_trial_copies(trial, false), *fake[OPD_TRANSFORM_OUTPUTS];
    opd_value rets[OPDI_MAX_RETURNS];
    for (int k = 0; in && k < trial->count; k++) { if (!(in[k] = opd_fake_tensor(in[k]))) { return -1; } }
    if (!in || opdi_trial_call(trial, in, rets)) { return -1; }
    int m = opdi_trial_results(trial->op, rets, fake, NULL, OPD_TRANSFORM_OUTPUTS);
    if (m != count) {
        return opd_fail(OPD_ERROR_KERNEL, "the fake kernel returns %d tensors, but the real kernel returns %d. Lists "
                        "must have the same length in both", m, count);
    }
    for (int k = 0; k < count; k++) { if (opdi_opcheck_same_fake(real[k], fake[k], which[k])) { return -1; } }
    return 0;
}
/* Returns true if all results are tensors or lists of tensors, which graphs can return and vmap can stack. */
static bool opdi_opcheck_returns_tensors(const opd_op *op) {
    for (int i = 0; i < op->nrets; i++) {
        const opdi_type *type = opdi_strip_optional(op->schema->returns[i].type);
        if (type->kind == OPDI_TYPE_LIST) { type = opdi_strip_optional(type->elems[0]); }
        if (type->kind != OPDI_TYPE_TENSOR) { return false; }
    }
    return true;
}
static int opdi_opcheck_fake(const opdi_trial *trial) {
    opd_tensor **in = opdi_trial_copies(trial, false), *real[OPD_TRANSFORM_OUTPUTS];
    opd_value rets[OPDI_MAX_RETURNS];
    int which[OPD_TRANSFORM_OUTPUTS];
    if (opd_op_tags(trial->op) & OPD_OPTAG_DATA_DEPENDENT_OUTPUT) { return 0; }
    if (opdi_direct(trial->op, OPD_KEY_COMPOSITE_IMPLICIT) && !opdi_opcheck_returns_tensors(trial->op)) {
        return 0;                                 /* a composite kernel that returns numbers is not run on fakes */
    }
    if (!in || opdi_trial_call(trial, in, rets)) { return -1; }
    int count = opdi_trial_results(trial->op, rets, real, which, OPD_TRANSFORM_OUTPUTS);
    opd_fake_block block = opd_fake_begin();
    int rc = opdi_opcheck_fake_run(trial, real, count, which);
    opd_fake_end(&block);
    return rc;
}

//== comparing traced with eager calls, vmap with a loop ===============================================================

/* Compares tensor number i, `got`, with `want` like torch.testing.assert_close.  Returns 0, or -1 and sets an error
   that begins with `what` and ends with `so`. */
static int opdi_opcheck_close(const opdi_trial *trial, const opd_tensor *got, const opd_tensor *want, const char *what,
                              int i, const char *so) {
    const opd_scalar_type dtype = (opd_scalar_type)want->dtype;
    double rtol = trial->options->rtol, atol = trial->options->atol, *a, *b;
    char first[24 * OPD_MAX_DIMS], second[24 * OPD_MAX_DIMS];
    int64_t count = opdi_check_numel(want);
    if (!opdi_has_sizes(got, want->dims, want->ndim) || got->dtype != want->dtype) {
        return opd_fail(OPD_ERROR_KERNEL, "%s %d is %s of sizes %s, not %s of sizes %s. %s", what, i,
                        opd_dtype_name((opd_scalar_type)got->dtype),
                        opdi_sizes_text(got->dims, got->ndim, first, sizeof first), opd_dtype_name(dtype),
                        opdi_sizes_text(want->dims, want->ndim, second, sizeof second), so);
    }
    if (rtol <= 0 && atol <= 0 && opdi_check_counts(want)) {
        rtol = dtype == OPD_FLOAT64 || dtype == OPD_COMPLEX128 ? 1e-7 : dtype == OPD_FLOAT16 ? 1e-3
            : dtype == OPD_BFLOAT16 ? 1.6e-2 : 1.3e-6;
        atol = dtype == OPD_FLOAT64 || dtype == OPD_COMPLEX128 ? 1e-7 : 1e-5;
    }
    if (!(a = opdi_check_read(got)) || !(b = opdi_check_read(want))) { return -1; }
    for (int64_t k = 0; k < count; k++) {
        if ((isnan(a[k]) && isnan(b[k])) || !(a[k] < b[k] || a[k] > b[k] || isnan(a[k]) || isnan(b[k])) ||
            fabs(a[k] - b[k]) <= atol + rtol * fabs(b[k])) { continue; }
        return opd_fail(OPD_ERROR_KERNEL, "%s %d: element %lld is %.9g, not %.9g (atol %g, rtol %g). %s", what, i,
                        (long long)k, a[k], b[k], atol, rtol, so);
    }
    return 0;
}

/* Computes the gradients of `outs`, with random gradients as seeds, with respect to the tensors of `in` that require
   grad.  A missing gradient is NULL.  Returns 0, or -1 and sets an error. */
static int opdi_opcheck_grads(const opdi_trial *trial, opd_tensor *const *in, opd_tensor *const *outs, int nouts,
                              opd_tensor **grads) {
    opd_tensor **to = opdi_scope_tensors(trial->count + 1), **got = opdi_scope_tensors(trial->count + 1);
    opd_tensor *from[OPD_TRANSFORM_OUTPUTS], *seeds[OPD_TRANSFORM_OUTPUTS];
    opd_backward_options options;
    int k, count = 0, m = 0;
    memset(&options, 0, sizeof options);
    if (!to || !got) { return -1; }
    for (k = 0; k < trial->count; k++) {
        grads[k] = NULL;
        if (opdi_requires_grad(in[k])) { to[m++] = in[k]; }
    }
    for (k = 0; k < nouts; k++) {
        opd_tensor *scratch;
        bool leaf = false;
        for (int j = 0; j < trial->count; j++) { leaf |= outs[k] == in[j] && !trial->written[j]; }
        if (leaf || !opdi_requires_grad(outs[k])) { continue; }
        if (!(scratch = opdi_check_scratch(outs[k]))) { return -1; }
        for (int64_t element = 0; element < opdi_check_numel(outs[k]); element++) {
            ((double *)(void *)scratch->data)[element] = opdi_check_random(k, element + (int64_t)trial->options->seed);
        }
        seeds[count] = opdi_own(opdi_tensor_make(outs[k]->dims, NULL, outs[k]->ndim, (opd_scalar_type)outs[k]->dtype,
                                                 opdi_place_of(outs[k])));
        if (!seeds[count] || opdi_copy(seeds[count], scratch)) { return -1; }
        from[count++] = outs[k];
    }
    if (count == 0 || m == 0) { return 0; }
    options.grad_outputs = seeds;
    options.allow_unused = true;
    if (opd_autograd_grad(from, count, to, m, &options, got)) { return -1; }
    for (k = 0, m = 0; k < trial->count; k++) { if (opdi_requires_grad(in[k])) { grads[k] = got[m++]; } }
    return 0;
}
/* Compares the operator with its trace, both run on equal tensors: first the results, then the gradients.  Returns
   0, or -1 and sets an error. */
static int opdi_opcheck_run_traced(const opdi_trial *trial, const opd_graph *graph) {
    opd_tensor **in = opdi_trial_copies(trial, true), **again = opdi_trial_copies(trial, true);
    opd_tensor **da = opdi_scope_tensors(trial->count + 1), **db = opdi_scope_tensors(trial->count + 1);
    opd_tensor *firsts[OPD_TRANSFORM_OUTPUTS], *others[OPD_TRANSFORM_OUTPUTS];
    static const char so[] = "The results of a kernel may depend only on its arguments (not on state that it keeps "
        "between calls), and the schema must declare all arguments that it writes";
    const int mark = opd_error_mark();
    if (!in || !again || !da || !db) { return -1; }
    int count = opdi_trial_fn((void *)(uintptr_t)trial, in, trial->count, firsts);
    if (count < 0) { return -1; }
    opdi_trial_seed(trial);
    if (opd_graph_run(graph, again, trial->count, others, OPD_TRANSFORM_OUTPUTS) != count) {
        return opd_ok() ? opd_fail(OPD_ERROR_KERNEL, "the trace of the operator has another number of outputs than a "
                                   "call, which has %d", count) : -1;
    }
    for (int k = 0; k < count; k++) {
        if (opdi_opcheck_close(trial, others[k], firsts[k],
                               "Outputs of the operator are different when it is called and when its "
                               "trace is run: output", k, so)) {
            return -1;
        }
    }
    for (int k = 0; k < count; k++) {
        if (opdi_requires_grad(firsts[k]) && !opdi_opcheck_has_autograd(trial->op, firsts[k]->backend)) { return 0; }
    }
    if (opdi_opcheck_grads(trial, in, firsts, count, da)) {  /* may only fail if the trial has other sizes */
        if (!trial->other_sizes || opdi_error_passes()) { return -1; }
        return opd_error_rewind(mark) == OPD_OK;
    }
    if (opdi_opcheck_grads(trial, again, others, count, db)) { return -1; }
    for (int k = 0; k < trial->count; k++) {
        if (!da[k] && !db[k]) { continue; }
        if (!da[k] || !db[k]) {
            return opd_fail(OPD_ERROR_AUTOGRAD, "Gradients of the operator are different: that of %s exists only when "
                            "%s. %s", opdi_trial_arg(trial, k), da[k] ? "it is called" : "its trace is run", so);
        }
        if (opdi_opcheck_close(trial, db[k], da[k],
                               "Gradients of the operator are different when it is called and when "
                               "its trace is run: that of tensor", k, so)) {
            return -1;
        }
    }
    return 0;
}

/* Compares the operator with its trace on the tensors of `trial`.  The trace is recorded with the sizes of `first`,
   the caller's trial.  Returns 0, or -1 and sets an error. */
static int opdi_opcheck_trace(const opdi_trial *trial, const opdi_trial *first) {
    opd_tensor **in = opdi_trial_copies(first, true), **copies = opdi_trial_copies(trial, false), **again = in;
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS];
    if (!opdi_opcheck_returns_tensors(trial->op)) { return 0; }
    if (!in || !copies || (trial != first && !(again = opdi_trial_copies(first, false)))) { return -1; }
    int rc = trial->count == 0 ? 0 : opdi_trial_fn((void *)(uintptr_t)trial, copies, trial->count, out);
    if (rc <= 0) { return rc; }                   /* there are no results for a graph to return */
    if (trial != first && opdi_trial_fn((void *)(uintptr_t)first, again, first->count, out) != rc) {
        return opd_ok() ? 0 : -1;                 /* the number of results depends on a size, so the trace cannot be
                                                     compared */
    }
    opd_graph *graph = opd_graph_trace(opdi_trial_fn, (void *)(uintptr_t)first, in, first->count, NULL);
    if (!graph) { return -1; }
    rc = opdi_opcheck_run_traced(trial, graph);
    opd_graph_free(graph);
    return rc;
}

/* Makes two examples of each tensor: its numbers, and its numbers rotated by one place.  If the operator refuses the
   rotated numbers, second[k] is first[k].  Returns 0, or -1 and sets an error. */
static int opdi_opcheck_examples(const opdi_trial *trial, opd_tensor **first, opd_tensor **second) {
    const int mark = opd_error_mark();
    opd_tensor **again = opdi_scope_tensors(trial->count + 1), *out[OPD_TRANSFORM_OUTPUTS];
    for (int k = 0; k < trial->count; k++) {
        if (!(first[k] = opdi_trial_bytes(trial->inputs[k])) || !(second[k] = opdi_trial_bytes(trial->inputs[k]))) {
            return -1;
        }
        if (first[k]->numel) {
            const size_t size = opd_dtype_size((opd_scalar_type)first[k]->dtype);
            const size_t rest = ((size_t)first[k]->numel - 1) * size;
            memcpy(second[k]->data, first[k]->data + size, rest);
            memcpy(second[k]->data + rest, first[k]->data, size);
        }
    }
    for (int k = 0; k < trial->count && again; k++) { again[k] = opdi_trial_bytes(second[k]); }
    if (!again || !opd_ok()) { return -1; }
    (void)opdi_trial_fn((void *)(uintptr_t)trial, again, trial->count, out);
    if (opd_error_rewind(mark) == OPD_OK) { return 0; }
    for (int k = 0; k < trial->count; k++) { second[k] = first[k]; }
    return 0;
}
/* Compares the operator under vmap with a loop over two examples.  Tensors with dims[k] == 0 are batched: they are
   first[k] in one example and second[k] in the other.  All other tensors are the same in both.  Returns 0, or -1 and
   sets an error. */
static int opdi_opcheck_vmap_dims(const opdi_trial *trial, opd_tensor *const *first, opd_tensor *const *second,
                                  const int *dims) {
    opd_tensor **in = opdi_scope_tensors(trial->count + 1), **one = opdi_scope_tensors(trial->count + 1);
    opd_tensor *got[OPD_TRANSFORM_OUTPUTS], *want[2][OPD_TRANSFORM_OUTPUTS];
    opd_vmap_options options;
    int count = 0;
    if (!in || !one) { return -1; }
    for (int example = 0; example < 2; example++) {
        const int mark = opd_error_mark();
        for (int k = 0; k < trial->count; k++) {
            if (!(one[k] = opd_clone(example && dims[k] == 0 ? second[k] : first[k]))) { return -1; }
        }
        count = opdi_trial_fn((void *)(uintptr_t)trial, one, trial->count, want[example]);
        if (count < 0 && example && !opdi_error_passes()) { /* the operator refuses this mix */
            (void)opd_error_rewind(mark);
            return 0;
        }
        if (count < 0) { return -1; }
    }
    for (int k = 0; k < trial->count; k++) {
        opd_tensor *both[2];
        both[0] = first[k];
        both[1] = second[k];
        if (!(in[k] = dims[k] == 0 ? opd_stack(opd_tensors_of(both, 2), 0) : opd_clone(first[k]))) { return -1; }
    }
    memset(&options, 0, sizeof options);
    options.in_dims = dims;
    options.nin_dims = trial->count;
    options.name = trial->op->base_name;
    if (count == 0) { return 0; }
    if (opd_vmap(opdi_trial_fn, (void *)(uintptr_t)trial, in, trial->count, &options, got,
                 OPD_TRANSFORM_OUTPUTS) != count) { return -1; }
    for (int k = 0; k < count; k++) {
        opd_tensor *both[2], *all;
        both[0] = want[0][k];
        both[1] = want[1][k];
        if (!(all = opd_stack(opd_tensors_of(both, 2), 0)) ||
            opdi_opcheck_close(trial, got[k], all, "Outputs of the operator are different under vmap and in a loop "
                               "over the examples: output", k, "Correct its batching rule (`vmap` of opd_op_desc), or "
                               "use OPD_BATCH_LOOP")) {
            return -1;
        }
    }
    return 0;
}
/* Checks vmap with all tensors batched, then with only the first.  Returns 0, also if vmap cannot be checked, or -1
   and sets an error. */
static int opdi_opcheck_vmap(const opdi_trial *trial) {
    opd_tensor **first = opdi_scope_tensors(trial->count + 1), **second = opdi_scope_tensors(trial->count + 1);
    int *dims = (int *)opdi_scope_alloc(((size_t)trial->count + 1) * sizeof *dims), batched = 0, writes = 0;
    if (!first || !second || !dims) { return -1; }
    for (int k = 0; k < trial->count; k++) {
        dims[k] = trial->inputs[k]->flags & OPDI_WRAPPED ? OPD_NO_DIM : 0;
        batched += dims[k] == 0;
        writes += trial->written[k];
    }
    if (!batched || opdi_op_is_random(trial->op) || !opdi_opcheck_returns_tensors(trial->op) ||
        (opd_op_tags(trial->op) & (OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE | OPD_OPTAG_DATA_DEPENDENT_OUTPUT))) { return 0; }
    if (opdi_opcheck_examples(trial, first, second)) { return -1; }
    opd_vmap_fallback was = opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    int rc = opdi_opcheck_vmap_dims(trial, first, second, dims);
    for (int k = 1; k < trial->count; k++) { dims[k] = OPD_NO_DIM; }
    if (rc == 0 && batched > 1 && dims[0] == 0 && !writes) { rc = opdi_opcheck_vmap_dims(trial, first, second, dims); }
    (void)opd_vmap_fallback_set(was);
    return rc;
}

//== checking independence of memory contents and strides ==============================================================

enum { OPDI_LAID_AS_GIVEN, OPDI_LAID_IN_ORDER, OPDI_LAID_ELSEWISE };
/* Returns copies of the trial's tensors: with the given strides, contiguous, or column-major with a gap after each
   element, as `how` says.  On failure, returns NULL and sets an error. */
static opd_tensor **opdi_trial_laid(const opdi_trial *trial, int how) {
    opd_tensor **in = how == OPDI_LAID_AS_GIVEN ? opdi_trial_copies(trial, false)
        : opdi_scope_tensors(trial->count + 1);
    int64_t strides[OPD_MAX_DIMS], count;
    int dim;
    for (int k = 0; in && how != OPDI_LAID_AS_GIVEN && k < trial->count; k++) {
        const opd_tensor *tensor = trial->inputs[k];
        for (dim = 0, count = 2; dim < tensor->ndim; count *= OPDI_MAX(tensor->dims[dim], 1), dim++) {
            strides[dim] = count;
        }
        in[k] = trial->inputs[k];
        if (tensor->flags & OPDI_WRAPPED) { continue; }
        if (opdi_is_block(tensor->dtype)) {       /* other strides would cut blocks */
            if (!(in[k] = opd_clone(trial->inputs[k]))) { return NULL; }
            continue;
        }
        in[k] = opdi_own(opdi_tensor_make(tensor->dims, how == OPDI_LAID_IN_ORDER ? NULL : strides, tensor->ndim,
                                          (opd_scalar_type)tensor->dtype, OPD_CPU));
        if (!in[k] || opdi_copy(in[k], tensor)) { return NULL; }
    }
    return in;
}
static int opdi_opcheck_overrun(const opdi_poison *poison, const opd_tensor *tensor, const char *what,
                                const char *name) {
    const opdi_storage *storage = tensor->storage;
    const bool apart = opdi_is_apart(storage);
    const void *block = apart ? (const void *)(storage->data - OPDI_DATA_OFFSET) : storage->block;
    if (storage->block_bytes <= 0 ||
        !opdi_is_overrun(poison, block, (size_t)(apart ? storage->bytes + OPDI_DATA_OFFSET : storage->block_bytes))) {
        return 0;
    }
    return opd_fail(OPD_ERROR_KERNEL, "The operator writes behind the end of %s %s. Write at most opd_numel elements, "
                    "at the places that the strides give", what, name);
}
/* Calls the operator with new memory filled with `byte`, and with tensors laid out as `how` says.  Writes contiguous
   copies of the results to `out`.  Returns the number of results, or -1 and sets an error. */
static int opdi_trial_with(const opdi_trial *trial, int byte, int how, opd_tensor **out) {
    opdi_thread *thread = opdi_self();
    opdi_poison poison;
    char number[16];
    poison.outer = thread->poison;
    poison.byte = byte;
    poison.count = 0;
    thread->poison = &poison;
    (void)OPDI_ADD(&opdi_fail_on, 2);
    opd_tensor **in = opdi_trial_laid(trial, how);
    int count = in ? opdi_trial_fn((void *)(uintptr_t)trial, in, trial->count, out) : -1;
    (void)OPDI_ADD(&opdi_fail_on, -2);
    thread->poison = poison.outer;
    for (int k = 0; k < count; k++) {
        (void)snprintf(number, sizeof number, "%d", k);
        if (opdi_opcheck_overrun(&poison, out[k], "result", number)) { return -1; }
    }
    for (int k = 0; count >= 0 && k < trial->count; k++) {
        if (opdi_opcheck_overrun(&poison, in[k], "argument", opdi_trial_arg(trial, k))) { return -1; }
    }
    for (int k = 0; k < count; k++) { if (!(out[k] = opdi_trial_bytes(out[k]))) { return -1; } }
    return count;
}
/* Calls the operator as opdi_trial_with does, and compares the results with want[total].  An error begins with
   `what` and ends with `so`.  Returns 0, also if the operator refuses other strides, or -1 and sets an error. */
static int opdi_opcheck_again(const opdi_trial *trial, int byte, int how, opd_tensor *const *want, int total,
                              const char *what, const char *so) {
    opd_tensor *got[OPD_TRANSFORM_OUTPUTS];
    const int mark = opd_error_mark(), count = opdi_trial_with(trial, byte, how, got);
    if (count < 0 && how != OPDI_LAID_AS_GIVEN && !opdi_error_passes()) {
        (void)opd_error_rewind(mark);
        return 0;
    }
    if (count < 0) { return -1; }
    if (count != total) {
        return opd_fail(OPD_ERROR_KERNEL, "%s: there are %d instead of %d. %s", what, count, total, so);
    }
    for (int k = 0; k < total; k++) { if (opdi_opcheck_close(trial, got[k], want[k], what, k, so)) { return -1; } }
    return 0;
}
/* Returns true if a result may be a view, so that its strides depend on those of the arguments. */
static bool opdi_opcheck_returns_views(const opdi_trial *trial) {
    const opd_schema *schema = trial->op->schema;
    for (int i = 0; i < trial->op->nrets; i++) {
        for (int k = 0; k < trial->count; k++) {
            if (!trial->written[k] && opd_schema_may_contain_alias(schema, OPD_RESULT(i), trial->arg[k], true, NULL)) {
                return true;
            }
        }
    }
    return false;
}
static int opdi_opcheck_memory(const opdi_trial *trial) {
    static const char held[] = "Results of the operator (followed by the arguments that it writes) depend on the "
        "contents of uninitialised memory: result";
    static const char write[] = "Write every element of a result (the contents of tensors from opd_result and "
        "opd_empty are undefined), and read nothing behind the end of an argument";
    static const char twice[] = "Results of the operator (followed by the arguments that it writes) are different when "
        "it is called twice with the same arguments: result";
    static const char state[] = "The results of a kernel may depend only on its arguments (not on state that it keeps "
        "between calls); if it uses random numbers, set the tag OPD_OPTAG_NONDETERMINISTIC_SEEDED";
    static const char laid[] = "Results of the operator (followed by the arguments that it writes) are different for "
        "arguments with other strides: result";
    static const char read[] = "Read the elements with the strides of the argument (opd_strides), or read from "
                               "opd_contiguous(x)";
    opd_tensor *want[OPD_TRANSFORM_OUTPUTS];
    if (opdi_op_is_random(trial->op) || !opdi_opcheck_returns_tensors(trial->op)) { return 0; }
    for (int k = 0; k < trial->count; k++) { if (opdi_place_of(trial->inputs[k]) != OPD_CPU) { return 0; } }
    int count = opdi_trial_with(trial, 0, OPDI_LAID_AS_GIVEN, want);
    if (count < 0 || opdi_opcheck_again(trial, 0, OPDI_LAID_AS_GIVEN, want, count, twice, state) ||
        opdi_opcheck_again(trial, 255, OPDI_LAID_AS_GIVEN, want, count, held, write)) { return -1; }
    if (opdi_opcheck_returns_views(trial)) { return 0; }
    return opdi_opcheck_again(trial, 0, OPDI_LAID_IN_ORDER, want, count, laid, read) ||
           opdi_opcheck_again(trial, 0, OPDI_LAID_ELSEWISE, want, count, laid, read) ? -1 : 0;
}

//== trials with other sizes ===========================================================================================

#define OPDI_TRIAL_SIZES 4
/* Collects the distinct sizes above 1 of the trial's tensors, at most OPDI_TRIAL_SIZES, in `sizes`.  Returns their
   number. */
static int opdi_trial_sizes(const opdi_trial *trial, int64_t *sizes) {
    int i, count = 0;
    for (int k = 0; k < trial->count; k++) {
        for (int dim = 0; dim < trial->inputs[k]->ndim; dim++) {
            for (i = 0; i < count && sizes[i] != trial->inputs[k]->dims[dim]; i++) { }
            if (i == count && count < OPDI_TRIAL_SIZES && trial->inputs[k]->dims[dim] > 1) {
                sizes[count++] = trial->inputs[k]->dims[dim];
            }
        }
    }
    return count;
}
/* Returns a copy of `tensor` in which each dim of size `from` is longer by one or, if `from` is 0, all dims are
   doubled.  The numbers of `tensor` are repeated to fill the copy.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_trial_grown(const opd_tensor *tensor, int64_t from) {
    const opd_tensor *old = opdi_trial_bytes(tensor);
    const size_t size = opd_dtype_size((opd_scalar_type)tensor->dtype);
    int64_t dims[OPD_MAX_DIMS];
    opd_tensor *scratch, *out;
    for (int dim = 0; dim < tensor->ndim; dim++) {
        dims[dim] = tensor->dims[dim] + (from == 0 && tensor->dims[dim] > 1 ? tensor->dims[dim]
                                         : tensor->dims[dim] == from);
    }
    if (!old ||
        !(scratch = opdi_own(opdi_tensor_make(dims, NULL, tensor->ndim, (opd_scalar_type)tensor->dtype, OPD_CPU)))) {
        return NULL;
    }
    for (int64_t i = 0; i < scratch->numel && old->numel; i++) {
        memcpy(scratch->data + (size_t)i * size, old->data + (size_t)(i % old->numel) * size, size);
    }
    if (opdi_place_of(tensor) == OPD_CPU) { out = scratch; }
    else {
        out = opdi_own(opdi_tensor_make(dims, NULL, tensor->ndim, (opd_scalar_type)tensor->dtype,
                                        opdi_place_of(tensor)));
        if (!out || opdi_copy(out, scratch)) { return NULL; }
    }
    return opdi_requires_grad(tensor) ? opd_tensor_set_requires_grad(out, true) : out;
}
/* Makes *other a copy of the trial with other sizes, see opdi_trial_grown.  Returns 1, or 0 if the operator refuses
   these sizes, or -1 and sets an error. */
static int opdi_trial_grow(const opdi_trial *trial, int64_t from, opdi_trial *other) {
    const int mark = opd_error_mark();
    opd_tensor **in, *out[OPD_TRANSFORM_OUTPUTS];
    *other = *trial;
    other->other_sizes = true;
    if (!(other->inputs = opdi_scope_tensors(trial->count + 1))) { return -1; }
    for (int k = 0; k < trial->count; k++) {
        if (opdi_is_block(trial->inputs[k]->dtype)) { return 0; }     /* other sizes would cut blocks */
        other->inputs[k] = trial->inputs[k]->flags & OPDI_WRAPPED ? trial->inputs[k]
            : opdi_trial_grown(trial->inputs[k], from);
        if (!other->inputs[k]) { return -1; }
    }
    if (opdi_trial_fill(other, other->inputs, other->args) || !(in = opdi_trial_copies(other, false))) { return -1; }
    (void)opdi_trial_fn(other, in, trial->count, out);
    opd_code code = opd_error_rewind(mark);
    return code == OPD_OK;
}

//== running all sub-tests =============================================================================================

/* The order in which the sub-tests run.  If results depend on the previous contents of memory, the sub-tests of traces
   and examples fail as well, so test_memory comes before them. */
static const int opdi_opcheck_order[] = {0, 1, 2, 5, 3, 4};
static const char *const opdi_opcheck_names[] = {"test_schema", "test_autograd_registration", "test_faketensor",
                                                 "test_trace", "test_vmap", "test_memory"};

static int opdi_opcheck_run(const opdi_trial *trial, const opdi_trial *first, int which) {
    return which == 0 ? opdi_opcheck_schema(trial) : which == 1 ? opdi_opcheck_autograd(trial)
         : which == 2 ? opdi_opcheck_fake(trial) : which == 3 ? opdi_opcheck_trace(trial, first)
         : which == 4 ? opdi_opcheck_vmap(trial) : opdi_opcheck_memory(trial);
}
/* Runs sub-test number `which` of one trial.  Returns 0, or 1 if the sub-test failed (the error is pending), or -1 if
   memory runs out. */
static int opdi_opcheck_one(const opdi_trial *trial, const opdi_trial *first, int which) {
    opd_scope scope = opd_scope_open();
    const int mark = opd_error_mark();
    const bool grad = opd_grad_mode_set(which != 0 && which < 4);
    int rc = opdi_opcheck_run(trial, first, which);
    char text[2000], sizes[24 * OPD_MAX_DIMS];
    opd_code code;
    (void)opd_grad_mode_set(grad);
    opd_scope_close(&scope);
    if (rc == 0 && opd_ok()) { return 0; }
    (void)snprintf(text, sizeof text, "%s", opd_error_message());
    if ((code = opd_error_rewind(mark)) == OPD_ERROR_MEMORY) { return opd_fail(code, "%s", text); }
    (void)opd_fail(code == OPD_OK ? OPD_ERROR_KERNEL : code, "opcheck(%s, ...): %s failed%s%s%s with %s",
                   trial->op->name, opdi_opcheck_names[which],
                   trial->other_sizes ? " with tensors of other sizes (the first is " : "",
                   trial->other_sizes ? opdi_sizes_text(trial->inputs[0]->dims, trial->inputs[0]->ndim, sizes,
                                                        sizeof sizes) : "", trial->other_sizes ? ")" : "",
                   *text ? text : "no error");
    return 1;
}
/* Writes the result `rc` of a sub-test to the report.  Returns 0 to continue.  Returns -1 with the error pending if
   memory runs out or the caller does not collect failures. */
static int opdi_opcheck_report(const opd_opcheck_options *options, opdi_text *report, int which, int rc, int mark) {
    if (rc < 0) { return -1; }
    if (rc == 0) { return 0; }
    opdi_text_add(report, "%s\n", opd_error_message());
    if (!options->failed) { return -1; }
    *options->failed |= 1u << which;
    (void)opd_error_rewind(mark);
    return 0;
}
/* The sub-tests whose tools are compiled in. */
enum {
    OPDI_OPCHECK_HERE = OPD_OPCHECK_ALL
#if defined(OPD_NO_GRAPHS)
                        & ~OPD_OPCHECK_TRACE
#endif
#if defined(OPD_NO_TRANSFORMS)
                        & ~OPD_OPCHECK_VMAP
#endif
};
/* Runs all sub-tests on the caller's tensors, then the sub-tests of fakes and traces on tensors of other sizes.
   Returns 0, or -1 and sets an error. */
static int opdi_opcheck_all(opdi_trial *trial, const opd_opcheck_options *options) {
    const int mark = opd_error_mark();
    const unsigned tests = options->tests ? options->tests : (unsigned)OPDI_OPCHECK_HERE;
    opdi_text report = opdi_text_of(options->report, options->report_cap);
    int64_t sizes[OPDI_TRIAL_SIZES + 1];
    for (int i = 0; i < 6; i++) {
        const int which = opdi_opcheck_order[i];
        const int rc = tests >> which & 1 ? opdi_opcheck_one(trial, trial, which) : 0;
        if (opdi_opcheck_report(options, &report, which, rc, mark)) { return -1; }
    }
    if (options->same_sizes || !(tests & (OPD_OPCHECK_FAKE | OPD_OPCHECK_TRACE)) || trial->count == 0) { return 0; }
    int count = opdi_trial_sizes(trial, sizes);
    if (count > 1) { sizes[count++] = 0; }
    for (int i = 0; i < count; i++) {
        opd_scope scope = opd_scope_open();
        opdi_trial other;
        int rc = opdi_trial_grow(trial, sizes[i], &other);
        for (int which = 2; which < 4 && rc > 0; which++) {
            if (!(tests >> which & 1) || (options->failed && *options->failed >> which & 1)) { continue; }
            if (opdi_opcheck_report(options, &report, which, opdi_opcheck_one(&other, trial, which), mark)) { rc = -1; }
        }
        opd_scope_close(&scope);
        if (rc < 0) { return -1; }
    }
    return 0;
}
/* Numbers the tensors of the arguments.  Returns 0, or -1 and sets an error. */
static int opdi_trial_make(opdi_trial *trial) {
    const uint64_t written = opdi_schema_written(trial->op->schema, trial->args);
    int total = 0;
    for (int i = 0; i < trial->op->nargs; i++) {
        total += trial->args[i].tag == OPD_TAG_TENSORS ? trial->args[i].n : 1;
    }
    trial->inputs = opdi_scope_tensors(total + 1);
    trial->arg = (int *)opdi_scope_alloc(((size_t)total + 1) * sizeof *trial->arg);
    trial->written = (bool *)opdi_scope_alloc((size_t)total + 1);
    if (!trial->inputs || !trial->arg || !trial->written) { return -1; }
    for (int i = 0; i < trial->op->nargs; i++) {
        const opd_value *value = &trial->args[i];
        const int32_t count = value->tag == OPD_TAG_TENSORS ? value->n : value->tag == OPD_TAG_TENSOR;
        if (value->tag == OPD_TAG_OBJECT && opdi_arg_index(trial->op->schema, "generator", 9) == i) {
            trial->generator = (opd_generator *)value->u.object;
        }
        for (int32_t j = 0; j < count; j++) {
            opd_tensor *tensor = value->tag == OPD_TAG_TENSOR ? value->u.t : value->u.tensors[j];
            if (!tensor) { continue; }
            if (tensor->backend == OPD_META || tensor->flags & OPDI_BATCHED || (tensor->meta && tensor->meta->inner)) {
                return opd_fail(OPD_ERROR_ARGUMENT, "opcheck(%s, ...): argument %s has no memory of its own",
                                trial->op->name, trial->op->schema->args[i].name);
            }
            trial->written[trial->count] = (written >> i & 1) != 0;
            trial->arg[trial->count] = i;
            trial->inputs[trial->count++] = tensor;
        }
    }
    return 0;
}

/* Checks options and arguments, makes the trial and runs the sub-tests.  Restores the random generators afterwards.
   Returns 0, or -1 and sets an error. */
static int opdi_opcheck(opdi_thread *thread, opd_op *op, const opd_value *args, int nargs,
                        const opd_opcheck_options *options) {
    opd_opcheck_options used;
    opdi_trial trial;
    if (!opd_ok()) { return -1; }
    memset(&used, 0, sizeof used);
    if (options) { used = *options; }
    if (used.failed) { *used.failed = 0; }
    if (used.report && used.report_cap) { *used.report = 0; }
    if (!op || !op->schema) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_opcheck: %s", op ? "the operator is not defined"
                        : "the operator is NULL");
    }
    if (used.tests & ~(unsigned)OPD_OPCHECK_ALL) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_opcheck: tests is %#x, but must be a combination of OPD_OPCHECK_... "
                        "values", used.tests);
    }
    if (opdi_any_dead_value(args, nargs, "opd_opcheck")) { return -1; }
    if (thread->innermost.tracer || thread->innermost.layer) {
        return opd_fail(OPD_ERROR_ARGUMENT, "opd_opcheck cannot be called inside %s", thread->innermost.tracer
                        ? "a recording" : "a transform");
    }
    memset(&trial, 0, sizeof trial);
    trial.op = op;
    trial.options = &used;
    opd_scope scope = opd_scope_open();
    int rc = opdi_bind_all(op, args, nargs, trial.args) || opdi_trial_make(&trial) ? -1 : 0;
    opdi_trial_seeded(&trial);
    if (!rc) { rc = opdi_opcheck_all(&trial, &used); }
    opdi_random_set(NULL, trial.random_was[0]);
    opdi_random_set(trial.generator, trial.random_was[1]);
    opd_scope_close(&scope);
    return rc;
}
int opd_opcheck(opd_op *op, const opd_value *args, int nargs, const opd_opcheck_options *options) {
    opdi_thread *thread = opdi_self();
    const uint64_t was = opdi_enter(thread);      /* like a call, to keep the schema valid */
    const int rc = opdi_opcheck(thread, op, args, nargs, options);
    opdi_leave(thread, was);
    return rc;
}
