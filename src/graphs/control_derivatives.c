#include "graphs.h"

//== derivatives of recorded control flow ==============================================================================
//
//  The backward of a condition is a condition on the same predicate, whose functions compute the vjps of the branches.
//  The backward of a loop is a scan over the stacks of the carried tensors, in the other direction.  It carries the
//  gradients of the carried tensors and the sums of the gradients of the other arguments, and each round calls the vjp
//  of the function.  Forward mode carries tangents beside the tensors.  Under vmap, the functions are vmapped, and a
//  while goes on until no example continues.
//
//  A derived function gets the struct opdi_recorded of its condition or loop as `user`.  recorded->of is the one from
//  which it is derived.

static int opdi_recorded_apply(opdi_recorded *recorded, const opd_value *operands, opd_value *results);

/* Roles of operands and outputs.  PLAIN: it takes no part.  WANTED: an operand whose gradient is wanted, or that has a
   tangent or examples; an output that is differentiable.  GIVEN: an output whose gradient is given. */
enum { OPDI_ROLE_PLAIN, OPDI_ROLE_WANTED, OPDI_ROLE_GIVEN };

static int opdi_roles_count(const int8_t *roles, int count, int least) {
    int found = 0;
    for (int i = 0; i < count; i++) { found += roles[i] >= least; }
    return found;
}
/* Calls function `which` from which a derived function is derived, in the autocast state of the program's call. */
static int opdi_derived_call(const opdi_recorded *recorded, int which, opd_tensor *const *in, int n, opd_tensor **out) {
    opdi_thread *const thread = opdi_self();
    const opdi_recorded *const of = recorded->of;
    thread->state.autocast = of->autocast;
    thread->state.allow = (thread->state.allow & ~OPD_BIT_OF(OPD_F_AUTOCAST)) | of->allow;
    const int count = of->functions.fns[which](of->functions.user, in, n, out);
    return opdi_outputs_check(count, out, of->who, of->names[which]);
}
/* The functions as opd_transform_fn: each calls the function of the same number. */
static int opdi_derived_first(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opdi_derived_call((const opdi_recorded *)user, 0, in, n, out);
}
static int opdi_derived_second(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opdi_derived_call((const opdi_recorded *)user, 1, in, n, out);
}
static opd_transform_fn opdi_derived_fn(int which) { return which ? opdi_derived_second : opdi_derived_first; }

//-- backward ----------------------------------------------------------------------------------------------------------

/* Returns only the differentiable outputs of function `which`. */
static int opdi_pulled_outputs(const opdi_recorded *recorded, int which, opd_tensor *const *in, int n,
                               opd_tensor **out) {
    const int count = opdi_derived_call(recorded, which, in, n, out);
    int kept = 0;
    for (int i = 0; i < count; i++) {
        opd_tensor *const tensor = out[i];
        out[i] = NULL;
        if (opdi_differentiable(tensor)) { out[kept++] = tensor; }
    }
    return count < 0 ? -1 : kept;
}
static int opdi_pulled_outputs_first(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opdi_pulled_outputs((const opdi_recorded *)user, 0, in, n, out);
}
static int opdi_pulled_outputs_second(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opdi_pulled_outputs((const opdi_recorded *)user, 1, in, n, out);
}
/* Computes the gradients of function `which` at `primals`, for the operands that are WANTED.  gradients[] are the
   gradients of the differentiable outputs.  Writes at most OPD_TRANSFORM_OUTPUTS gradients to `out`.  Returns their
   number, or -1 and sets an error. */
static int opdi_pulled_vjp(opdi_recorded *recorded, int which, opd_tensor *const *primals, int count,
                           opd_tensor *const *gradients, int ngradients, opd_tensor **out) {
    opd_tensor *outputs[OPD_TRANSFORM_OUTPUTS];
    opd_derivative *derivative = NULL;
    opd_transform_options options;
    int *const argnums = (int *)opdi_scope_alloc(((size_t)count + 1) * sizeof *argnums);
    if (!argnums) { return -1; }
    memset(&options, 0, sizeof options);
    options.argnums = argnums;
    for (int i = 0; i < count; i++) { if (recorded->roles[i]) { argnums[options.nargnums++] = i; } }
    const int got = opd_vjp(which ? opdi_pulled_outputs_second : opdi_pulled_outputs_first, recorded, primals, count,
                            &options, outputs, OPD_TRANSFORM_OUTPUTS, &derivative);
    if (got >= 0 && got != ngradients) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: a function returned %d differentiable outputs in one call and %d in "
                        "another; it must do the same in each call", recorded->who, ngradients, got);
    }
    return got < 0 ? -1 : opd_derivative_call(derivative, gradients, ngradients, 0, out, OPD_TRANSFORM_OUTPUTS);
}
/* Replaces the gradients made[], which the vjp of a while's function returned, by the gradients of a round in which the
   values stay as they are, if the condition is false at `primals`: by the given gradients gradients[count], and by
   zeros for the other operands.  Returns 0, or -1 and sets an error. */
static int opdi_pulled_mask(const opdi_recorded *recorded, opd_tensor *const *primals, int nprimals,
                            opd_tensor *const *gradients, int count, opd_tensor **made, int nmade) {
    opd_tensor *test[OPD_TRANSFORM_OUTPUTS];
    if (opdi_derived_call(recorded, 0, primals, nprimals, test) != 1) { return -1; }
    opd_tensor *const holds = opd_ne_Scalar(opd_reshape(test[0], opd_ints_of(NULL, 0)), opd_value_int(0));
    for (int i = 0; i < nmade; i++) {
        made[i] = opd_where_self(holds, made[i], i < count ? gradients[i] : opd_zeros_like(made[i]));
    }
    return opd_ok() ? 0 : -1;
}
/* The body of the backward of a loop.  Gets: gradients of the differentiable carried tensors, sums for the other wanted
   arguments; slices of the stacks, of the sliced operands, of the given gradients of results and of stacks; the other
   operands.  Returns the new gradients and sums, then the gradients of the wanted slices. */
static int opdi_pulled_loop(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opdi_recorded *const recorded = (opdi_recorded *)user;
    const opdi_recorded *const of = recorded->of;
    const int ncarried = of->ncarried, nsliced = of->nsliced, count = ncarried + nsliced + of->nothers;
    const int8_t *const roles = recorded->roles, *const given = roles + count;
    const int floats = opdi_roles_count(roles, ncarried, OPDI_ROLE_WANTED);
    const int wanted = opdi_roles_count(roles + ncarried, nsliced, OPDI_ROLE_WANTED);
    opd_tensor **const primals = opdi_scope_tensors(count), *gradients[OPD_TRANSFORM_OUTPUTS];
    opd_tensor *made[OPD_TRANSFORM_OUTPUTS];
    int at = recorded->ncarried + ncarried + nsliced, ngradients = floats;
    if (!primals) { return -1; }
    for (int i = 0; i < ncarried + nsliced; i++) { primals[i] = in[recorded->ncarried + i]; }
    for (int i = 0; i < of->nothers; i++) { primals[ncarried + nsliced + i] = in[n - of->nothers + i]; }
    for (int i = 0; i < floats; i++) { gradients[i] = in[i]; }
    for (int i = 0; i < of->nresults; i++) {
        const int role = given[ncarried + i];
        if (role) { gradients[ngradients++] = role == OPDI_ROLE_GIVEN ? in[at++] : NULL; }
    }
    const int got = opdi_pulled_vjp(recorded, of->kind == OPDI_RECORDED_WHILE, primals, count, gradients, ngradients,
                                    made);
    if (got < 0) { return -1; }
    if (of->masked && opdi_pulled_mask(recorded, primals, count, gradients, floats, made, got)) { return -1; }
    for (int i = 0, k = 0; i < ncarried; i++) {
        if (!roles[i]) { continue; }
        out[k] = given[ncarried + of->nresults + i] == OPDI_ROLE_GIVEN ? opd_add(made[k], in[at++]) : made[k];
        k++;
    }
    for (int k = floats; k < recorded->ncarried; k++) { out[k] = opd_add(in[k], made[wanted + k]); }
    for (int k = 0; k < wanted; k++) { out[recorded->ncarried + k] = made[floats + k]; }
    return opd_ok() ? recorded->ncarried + wanted : -1;
}
/* A branch of the backward of a condition.  Gets the operands, then the given gradients of the outputs. */
static int opdi_pulled_branch(void *user, int which, opd_tensor *const *in, opd_tensor **out) {
    opdi_recorded *const recorded = (opdi_recorded *)user;
    const int count = recorded->of->nothers;
    const int8_t *const given = recorded->roles + count;
    opd_tensor *gradients[OPD_TRANSFORM_OUTPUTS];
    int at = count, ngradients = 0;
    for (int i = 0; i < recorded->of->nresults; i++) {
        if (given[i]) { gradients[ngradients++] = given[i] == OPDI_ROLE_GIVEN ? in[at++] : NULL; }
    }
    return opdi_pulled_vjp(recorded, which, in, count, gradients, ngradients, out);
}
static int opdi_pulled_then(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    return opdi_pulled_branch(user, 0, in, out);
}
static int opdi_pulled_else(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    return opdi_pulled_branch(user, 1, in, out);
}
/* Adds the gradient of output `i` to the operands of a backward, if there is one, and sets the output's role.  Returns
   the number of operands then. */
static int opdi_pulled_give(opd_backward_call *bw, int i, int8_t *role, opd_value *operands, int count) {
    opd_tensor *const gradient = opd_bw_grad(bw, i);
    if (gradient) {
        *role = OPDI_ROLE_GIVEN;
        operands[count++] = opd_value_tensor(gradient);
    }
    return count;
}
/* Fills in the backward of a condition.  Returns the number of its operands. */
static int opdi_pulled_cond(opd_backward_call *bw, opdi_recorded *recorded, opd_value *operands) {
    const opdi_recorded *const of = recorded->of;
    opd_context *const ctx = opd_bw_context(bw);
    int count = 0;
    recorded->functions.fns[0] = opdi_pulled_then;
    recorded->functions.fns[1] = opdi_pulled_else;
    for (int i = 0; i <= of->nothers; i++) {
        operands[count++] = opd_value_tensor(opd_context_saved(ctx, i));
        if (i) { recorded->roles[i - 1] = opd_bw_needs(bw, i) ? OPDI_ROLE_WANTED : OPDI_ROLE_PLAIN; }
    }
    for (int i = 0; i < of->nresults; i++) {
        recorded->roles[of->nothers + i] = of->floats[i];
        count = opdi_pulled_give(bw, i, &recorded->roles[of->nothers + i], operands, count);
    }
    recorded->nothers = count - 1;
    return count;
}
/* Fills in the backward of a loop.  Returns the number of its operands, or -1 and sets an error. */
static int opdi_pulled_scan(opd_backward_call *bw, opdi_recorded *recorded, opd_value *operands) {
    const opdi_recorded *const of = recorded->of;
    opd_context *const ctx = opd_bw_context(bw);
    const int ncarried = of->ncarried, nsliced = of->nsliced, all = ncarried + nsliced + of->nothers;
    int count = 0;
    recorded->kind = OPDI_RECORDED_SCAN;
    recorded->reverse = !of->reverse;
    recorded->masked = false;
    recorded->may_be_empty = of->kind == OPDI_RECORDED_WHILE || of->may_be_empty;
    recorded->functions.fns[0] = opdi_pulled_loop;
    recorded->functions.fns[1] = NULL;
    for (int i = 0; i < all; i++) {
        opd_tensor *const saved = opd_context_saved(ctx, i);
        if (!saved) { return -1; }
        recorded->roles[i] = opdi_differentiable(saved) && (i < ncarried || opd_bw_needs(bw, i));
        if (!recorded->roles[i] || (i >= ncarried && i < ncarried + nsliced)) { continue; }
        opd_tensor *const gradient = i < ncarried ? opd_bw_grad(bw, i) : NULL;
        operands[count++] = opd_value_tensor(gradient ? gradient : opd_zeros_like(saved));
    }
    recorded->ncarried = count;
    for (int i = 0; i < ncarried; i++) {
        operands[count++] = opd_value_tensor(opd_context_saved(ctx, all + i));
    }
    for (int i = 0; i < nsliced; i++) { operands[count++] = opd_value_tensor(opd_context_saved(ctx, ncarried + i)); }
    for (int i = ncarried; i < 2 * ncarried + of->nresults && opd_ok(); i++) {
        int8_t *const role = &recorded->roles[all + i];
        *role = i < ncarried + of->nresults ? of->floats[i - ncarried] : (int8_t)OPDI_ROLE_PLAIN;
        count = opdi_pulled_give(bw, i, role, operands, count);
    }
    recorded->nsliced = count - recorded->ncarried;
    for (int i = ncarried + nsliced; i < all; i++) { operands[count++] = opd_value_tensor(opd_context_saved(ctx, i)); }
    recorded->nothers = of->nothers;
    return opd_ok() ? count : -1;
}
/* The backward of a condition or loop in a trace. */
static int opdi_recorded_backward(opd_backward_call *bw) {
    opdi_recorded *const of = (opdi_recorded *)opd_context_data(opd_bw_context(bw));
    const int noperands = opdi_recorded_noperands(of), noutputs = 2 * of->ncarried + of->nresults;
    opd_value *const operands = opdi_control_values(2 * noperands + 2 * noutputs);
    opd_value *const results = opdi_control_values(2 * OPD_TRANSFORM_OUTPUTS);
    opdi_recorded *const recorded = operands && results ? opdi_recorded_copy(of, of, noperands + noutputs) : NULL;
    if (!recorded) { return -1; }
    recorded->stacks = false;
    const bool cond = of->kind == OPDI_RECORDED_COND;
    int count = cond ? opdi_pulled_cond(bw, recorded, operands) : opdi_pulled_scan(bw, recorded, operands);
    if (count >= 0) { count = opdi_recorded_apply(recorded, operands, results); }
    int at = 0, slice = recorded->ncarried, rc = count < 0 ? -1 : 0;
    for (int i = 0; i + cond < noperands && rc == 0; i++) {
        const bool sliced = !cond && i >= of->ncarried && i < of->ncarried + of->nsliced;
        if (!recorded->roles[i]) { continue; }
        opd_tensor *const gradient = results[sliced ? slice++ : at++].u.t;
        if (opd_bw_needs(bw, i + cond)) { rc = opd_bw_return(bw, i + cond, gradient); }
    }
    opdi_recorded_release(recorded);
    return rc;
}

//-- forward mode ------------------------------------------------------------------------------------------------------

/* Calls function `which` with tensors and tangents, which follow the tensors of their group (carried, slices, others).
   Returns the new carried tensors, their tangents, the results, and their tangents. */
static int opdi_pushed(void *user, int which, opd_tensor *const *in, opd_tensor **out) {
    opdi_recorded *const recorded = (opdi_recorded *)user;
    const opdi_recorded *const of = recorded->of;
    const int sizes[] = {of->ncarried, of->nsliced, of->nothers}, count = sizes[0] + sizes[1] + sizes[2];
    opd_tensor **const primals = opdi_scope_tensors(count), **const tangents = opdi_scope_tensors(count);
    opd_tensor *made[OPD_TRANSFORM_OUTPUTS], *moved[OPD_TRANSFORM_OUTPUTS];
    int at = 0, k = 0;
    if (!primals || !tangents) { return -1; }
    for (int group = 0, from = 0; group < 3; from += sizes[group++]) {
        for (int i = from; i < from + sizes[group]; i++) { primals[i] = in[at++]; }
        for (int i = from; i < from + sizes[group]; i++) { if (recorded->roles[i]) { tangents[i] = in[at++]; } }
    }
    if (of->kind == OPDI_RECORDED_WHILE && which == 0) { return opdi_derived_call(recorded, 0, primals, count, out); }
    const int got = opd_jvp(opdi_derived_fn(which), recorded, primals, tangents, count, NULL, made, moved,
                            OPD_TRANSFORM_OUTPUTS);
    for (int from = 0, to = OPDI_MIN(of->ncarried, got); from < got; from = to, to = got) {
        for (int i = from; i < to && k < OPD_TRANSFORM_OUTPUTS; i++) { out[k++] = made[i]; }
        for (int i = from; i < to && k < OPD_TRANSFORM_OUTPUTS; i++) {
            if (opdi_differentiable(made[i])) { out[k++] = moved[i]; }
        }
        if (to == got) { break; }
    }
    return got < 0 ? -1 : k;
}
static int opdi_pushed_first(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    return opdi_pushed(user, 0, in, out);
}
static int opdi_pushed_second(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    return opdi_pushed(user, 1, in, out);
}
/* Adds a group of `count` operands from number `from` on, and their tangents.  If `carried` is true, tensors without a
   tangent get zeros.  `role` is of the first operand.  Returns the number of operands then. */
static int opdi_pushed_group(opd_jvp_call *jv, int from, int count, bool carried, int8_t *role, opd_value *operands,
                             int at) {
    for (int i = 0; i < count; i++) { operands[at++] = opd_value_tensor(opd_jvp_tensor(jv, from + i)); }
    for (int i = 0; i < count; i++) {
        opd_tensor *const tensor = opd_jvp_tensor(jv, from + i), *tangent = opd_jvp_tangent(jv, from + i);
        if (!tangent && carried && opdi_differentiable(tensor)) { tangent = opd_zeros_like(tensor); }
        role[i] = tangent != NULL;
        if (tangent) { operands[at++] = opd_value_tensor(tangent); }
    }
    return at;
}
/* The forward mode of a condition or loop in a trace. */
static int opdi_recorded_jvp(opd_jvp_call *jv) {
    opd_context *const ctx = opd_jvp_context(jv);
    opdi_recorded *const of = (opdi_recorded *)opd_context_user(ctx);
    const int noperands = opdi_recorded_noperands(of), ncarried = of->ncarried;
    const int cond = of->kind == OPDI_RECORDED_COND;
    const int sizes[] = {ncarried, of->nsliced, of->nothers};
    const int groups[] = {ncarried, of->nresults, of->stacks ? ncarried : 0};
    opd_value *const operands = opdi_control_values(2 * noperands);
    opd_value *const results = opdi_control_values(2 * OPD_TRANSFORM_OUTPUTS);
    opdi_recorded *const recorded = operands && results ? opdi_recorded_copy(of, of, noperands) : NULL;
    int *const counts[] = {recorded ? &recorded->ncarried : NULL, recorded ? &recorded->nsliced : NULL,
                           recorded ? &recorded->nothers : NULL};
    if (!recorded) { return -1; }
    if (cond) { operands[0] = opd_value_tensor(opd_jvp_tensor(jv, 0)); }
    recorded->functions.fns[0] = opdi_pushed_first;
    recorded->functions.fns[1] = of->functions.fns[1] ? opdi_pushed_second : NULL;
    for (int group = 0, from = 0, at = cond; group < 3; from += sizes[group++]) {
        const int next = opdi_pushed_group(jv, cond + from, sizes[group], group == 0, recorded->roles + from, operands,
                                           at);
        *counts[group] = next - at;
        at = next;
    }
    int rc = opd_ok() && opdi_recorded_apply(recorded, operands, results) >= 0 ? 0 : -1;
    for (int group = 0, at = 0, i = 0; group < 3 && rc == 0; group++) {
        at += groups[group];
        for (int k = 0; k < groups[group] && rc == 0; k++, i++) {
            if (opdi_differentiable(opd_jvp_result(jv, i))) { rc = opd_jvp_return(jv, i, results[at++].u.t); }
        }
    }
    opdi_recorded_release(recorded);
    return rc;
}

//-- vmap --------------------------------------------------------------------------------------------------------------

/* Calls function `which` for all examples. */
static int opdi_mapped_call(opdi_recorded *recorded, int which, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_vmap_options options;
    int *const dims = (int *)opdi_scope_alloc(((size_t)n + 1) * sizeof *dims);
    if (!dims) { return -1; }
    memset(&options, 0, sizeof options);
    for (int i = 0; i < n; i++) { dims[i] = recorded->roles[i] ? 0 : OPD_NO_DIM; }
    options.in_dims = dims;
    options.nin_dims = n;
    options.randomness = recorded->randomness;
    options.name = recorded->names[which];
    return opd_vmap(opdi_derived_fn(which), recorded, in, n, &options, out, OPD_TRANSFORM_OUTPUTS);
}
static int opdi_mapped_first(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opdi_recorded *const recorded = (opdi_recorded *)user;
    const int count = opdi_mapped_call(recorded, 0, in, n, out);
    if (count == 1 && recorded->kind == OPDI_RECORDED_WHILE) { out[0] = opd_any(out[0]); }
    return opd_ok() ? count : -1;
}
static int opdi_mapped_second(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opdi_recorded *const recorded = (opdi_recorded *)user;
    opd_tensor *test[OPD_TRANSFORM_OUTPUTS];
    const int count = opdi_mapped_call(recorded, 1, in, n, out);
    if (count < 0 || recorded->kind != OPDI_RECORDED_WHILE) { return count; }
    if (opdi_mapped_call(recorded, 0, in, n, test) != 1) { return -1; }
    test[0] = opd_ne_Scalar(test[0], opd_value_int(0));
    for (int i = 0; i < OPDI_MIN(count, recorded->ncarried); i++) {       /* the others keep their values */
        int64_t sizes[OPD_MAX_DIMS];
        for (int k = 0; k < in[i]->ndim; k++) { sizes[k] = k ? 1 : -1; }
        out[i] = opd_where_self(opd_reshape(test[0], opd_ints_of(sizes, in[i]->ndim)), out[i], in[i]);
    }
    return opd_ok() ? count : -1;
}
/* The batching rule of a condition or loop in a trace.  The carried tensors of a loop get examples even if they had
   none. */
static int opdi_recorded_vmap(void *user, const opd_value *inputs, const int *in_dims, int count,
                                     opd_value *outputs, int *out_dims) {
    opdi_recorded *const of = (opdi_recorded *)user;
    const int cond = of->kind == OPDI_RECORDED_COND, ncarried = of->ncarried;
    opd_value *const operands = opdi_control_values(count);
    opd_value *const results = opdi_control_values(2 * OPD_TRANSFORM_OUTPUTS);
    opdi_recorded *const recorded = operands && results ? opdi_recorded_copy(of, of, count) : NULL;
    if (!recorded) { return -1; }
    recorded->functions.fns[0] = opdi_mapped_first;
    recorded->functions.fns[1] = of->functions.fns[1] ? opdi_mapped_second : NULL;
    recorded->randomness = opd_batch_randomness();
    of->masked = of->masked || of->kind == OPDI_RECORDED_WHILE;
    for (int i = 0; i < count; i++) {
        const bool carried = i < ncarried, sliced = !carried && i < ncarried + of->nsliced;
        opd_tensor *tensor = inputs[i].u.t;
        if (i >= cond) { recorded->roles[i - cond] = in_dims[i] >= 0 || carried; }
        if (in_dims[i] >= 0 || carried) { tensor = opd_batch_front(tensor, in_dims[i]); }
        if (carried && i >= cond) { tensor = opd_contiguous(tensor); }        /* as in later rounds */
        if (in_dims[i] >= 0 && sliced) { tensor = opd_movedim(tensor, 0, 1); }
        operands[i] = opd_value_tensor(tensor);
    }
    int got = opd_ok() ? opdi_recorded_apply(recorded, operands, results) : -1;
    of->nresults = recorded->nresults;
    if (got >= 0 && recorded->stacks && !of->stacks) { got -= ncarried; }
    if (got > OPD_TRANSFORM_OUTPUTS) {
        got = opd_fail(OPD_ERROR_ARGUMENT, "%s: there are %d outputs in opd_vmap in a trace, counted with those that "
                       "its derivative needs, but at most %d are allowed", of->who, got, OPD_TRANSFORM_OUTPUTS);
    }
    for (int i = 0; i < got; i++) {
        outputs[i] = results[i];
        out_dims[i] = cond || i < ncarried ? 0 : 1;
    }
    opdi_recorded_release(recorded);
    return got;
}

//-- calls -------------------------------------------------------------------------------------------------------------

/* Runs a condition or loop: as a node of the trace, or, after the trace, directly.  Writes its outputs, which belong to
   the innermost scope, to `results`, which has room for 2 OPD_TRANSFORM_OUTPUTS.  Returns their number, or -1 and sets
   an error. */
static int opdi_recorded_apply(opdi_recorded *recorded, const opd_value *operands, opd_value *results) {
    static const char *const names[] = {"Cond", "WhileLoop", "Scan"};
    const int noperands = opdi_recorded_noperands(recorded);
    opd_autograd_function fn;
    if (!opdi_filling_is_on(opdi_self())) { return opdi_recorded_compute(recorded, operands, results); }
    for (int i = 0; i < noperands && recorded->kind != OPDI_RECORDED_COND; i++) {
        recorded->stacks = recorded->stacks || (opd_grad_mode_enabled() && opdi_requires_grad(operands[i].u.t));
    }
    recorded->follows = opd_grad_mode_enabled();
    memset(&fn, 0, sizeof fn);
    fn.name = names[recorded->kind];
    fn.forward = opdi_recorded_forward;
    fn.setup_context = opdi_recorded_setup;
    fn.backward = opdi_recorded_backward;
    fn.jvp = opdi_recorded_jvp;
    fn.vmap = opdi_recorded_vmap;
    fn.user = recorded;
    return opd_autograd_apply(&fn, operands, noperands, results, 2 * OPD_TRANSFORM_OUTPUTS);
}

/* Returns whether a task is recorded as a node: the thread records, and the condition is not known now. */
OPDI_INTERNAL bool opdi_control_is_recorded(const opdi_control_task *task) {
    const opdi_thread *const thread = opdi_self();
    if (!opdi_filling_is_on(thread)) { return false; }
    if (!task->pred) { return true; }
    const opdi_gvalue *const value = opdi_traced_value(opdi_tracer_of(thread), task->pred);
    return value && opdi_gvalue_follows(value);
}
/* Runs a task as a node of the trace, and takes over the user pointer of its functions if there is task->destroy.
   Writes its outputs, which belong to the innermost scope.  Returns their number, or -1 and sets an error. */
OPDI_INTERNAL int opdi_control_record(const opdi_control_task *task, opd_value *outputs) {
    const opdi_thread *const thread = opdi_self();
    opd_value *const operands = opdi_control_values(task->nargs + 1);
    opd_value *const results = opdi_control_values(2 * OPD_TRANSFORM_OUTPUTS);
    opdi_recorded from;
    memset(&from, 0, sizeof from);
    from.kind = task->pred ? OPDI_RECORDED_COND : task->functions.fns[1] ? OPDI_RECORDED_WHILE : OPDI_RECORDED_SCAN;
    from.who = task->flow.who;
    from.names[0] = task->flow.names[0];
    from.names[1] = task->flow.names[1];
    from.functions = task->functions;
    from.destroy = task->destroy;
    from.ncarried = task->ncarried;
    from.nsliced = task->nsliced;
    from.nothers = task->nothers;
    from.reverse = task->reverse;
    from.autocast = thread->state.autocast;
    from.allow = thread->state.allow & OPD_BIT_OF(OPD_F_AUTOCAST);
    opdi_recorded *const recorded = operands && results ? opdi_recorded_copy(&from, NULL, 0) : NULL;
    if (!recorded) {
        if (task->destroy) { task->destroy(task->functions.user); }
        return -1;
    }
    if (task->pred) { operands[0] = opd_value_tensor(task->pred); }
    for (int i = 0; i < task->nargs; i++) { operands[i + (task->pred != NULL)] = task->args[i]; }
    int count = opdi_recorded_apply(recorded, operands, results);
    if (count >= 0 && recorded->stacks) { count -= recorded->ncarried; }
    for (int i = 0; i < count; i++) { outputs[i] = results[i]; }
    opdi_recorded_release(recorded);
    return count;
}
