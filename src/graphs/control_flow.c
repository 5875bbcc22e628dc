#include "graphs.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>control_flow conditions and loops over functions: opd_cond, opd_while, opd_scan, opd_map
//
//  The loops of this room call functions, by opdi_control.call, whose arguments and results are values.  The functions
//  are C functions of the program, or graphs of exported programs (see >>program_graphs).  Conditions and loops inside
//  of a trace are recorded in >>recorded_control.
//----------------------------------------------------------------------------------------------------------------------

//== values ============================================================================================================

OPDI_INTERNAL opd_value *opdi_control_values(int count) {
    return (opd_value *)opdi_scope_alloc((size_t)(count + 1) * sizeof(opd_value));
}
/* Returns whether a value is not known now: it is a fake tensor, a tensor in code that is being compiled, or a batched
   tensor, which has one value per example. */
OPDI_INTERNAL bool opdi_control_unknown(const opd_value *value) {
    return value->tag == OPD_TAG_TENSOR &&
        ((value->u.t->flags & OPDI_BATCHED) || value->u.t->backend == OPD_META || value->u.t->backend == OPD_LAZY);
}
static int opdi_control_one_element(const opdi_control *flow, const char *what, const opd_value *value) {
    if (value->tag == OPD_TAG_BOOL || value->tag == OPD_TAG_INT) { return 0; }
    if (value->tag != OPD_TAG_TENSOR) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: the condition is neither a tensor nor a bool", flow->who);
    }
    const int64_t count = opd_numel(value->u.t);
    if (count == 1) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s must be a tensor with one element, not with %lld", flow->who, what,
                    (long long)count);
}
/* Returns 1 if a condition is true, 0 if it is false, or -1 and sets an error. */
static int opdi_control_holds(const opd_value *value) {
    if (value->tag != OPD_TAG_TENSOR) { return value->u.i != 0; }
    const double number = opd_item_f64(value->u.t);
    return opd_ok() ? !(number >= 0 && number <= 0) : -1;        /* NaN is true */
}
/* Returns whether two values are tensors of the same sizes and dtype, or the same number. */
OPDI_INTERNAL bool opdi_control_same(const opd_value *value, const opd_value *other) {
    if (value->tag != other->tag) { return false; }
    switch (value->tag) {
    case OPD_TAG_NONE: return true;
    case OPD_TAG_INT: case OPD_TAG_BOOL: return value->u.i == other->u.i;
    case OPD_TAG_FLOAT: return !(value->u.d < other->u.d || value->u.d > other->u.d);
    case OPD_TAG_TENSOR: break;
    default: return false;
    }
    const opd_tensor *const x = value->u.t, *const y = other->u.t;
    bool same = x->ndim == y->ndim && x->dtype == y->dtype;
    for (int k = 0; same && k < x->ndim; k++) { same = opd_size(x, k) == opd_size(y, k); }
    return same;
}
/* Writes what a value is, such as "a float32 tensor of sizes [2, 3]", to `buf`.  Returns `buf`. */
static const char *opdi_control_text(const opd_value *value, char *buf, size_t cap) {
    char sizes[200];
    if (value->tag != OPD_TAG_TENSOR) {
        (void)snprintf(buf, cap, "not a tensor");
    } else {
        (void)snprintf(buf, cap, "a %s tensor of sizes %s", opd_dtype_name((opd_scalar_type)value->u.t->dtype),
                       opdi_sizes_text(value->u.t->dims, value->u.t->ndim, sizes, sizeof sizes));
    }
    return buf;
}
/* Sets the error that output `i` of the function `name` differs from `want`, which `what` describes.  Returns -1. */
OPDI_INTERNAL int opdi_control_differs(const char *who, const char *name, int i, const opd_value *value,
                                       const char *what, const opd_value *want) {
    char text[300], other[300];
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: output %d of %s is %s, but %s is %s; sizes and dtypes must be the same",
                    who, i, name, opdi_control_text(value, text, sizeof text), what,
                    opdi_control_text(want, other, sizeof other));
}

/* The values that a loop holds by references: `now`, and the results to stack, `made`, of which some may be NULL. */
typedef struct opdi_control_held { opd_value *now; int count; opd_tensor **made; int64_t nmade; } opdi_control_held;

static void opdi_control_hold(opd_value value) { if (value.tag == OPD_TAG_TENSOR) { opdi_retain(value.u.t); } }
static void opdi_control_drop(opd_value value) { if (value.tag == OPD_TAG_TENSOR) { opdi_drop(value.u.t); } }
/* Replaces the first `count` values of a loop, which it holds, by `next`. */
static void opdi_control_take(opd_value *now, const opd_value *next, int count) {
    for (int i = 0; i < count; i++) {
        const opd_value old = now[i];
        opdi_control_hold(now[i] = next[i]);
        opdi_control_drop(old);
    }
}
/* Drops the values that a loop holds. */
static void opdi_control_let_go(opdi_control_held *held) {
    for (int i = 0; i < held->count; i++) { opdi_control_drop(held->now[i]); }
    for (int64_t i = 0; i < held->nmade; i++) { if (held->made[i]) { opdi_drop(held->made[i]); } }
    if (held->made) { opdi_free(held->made, (size_t)held->nmade * sizeof *held->made); }
    memset(held, 0, sizeof *held);
}
static void opdi_control_left(opdi_visit *visit) { opdi_control_let_go((opdi_control_held *)visit->user); }
/* Moves the values that a loop holds to the innermost scope, and writes them to `outputs`.  Returns 0, or -1 and sets
   an error. */
static int opdi_control_give(opdi_control_held *held, opd_value *outputs) {
    for (int i = 0; i < held->count; i++) {
        outputs[i] = held->now[i];
        if (outputs[i].tag == OPD_TAG_TENSOR) { (void)opdi_own(opdi_keep(outputs[i].u.t)); }
    }
    return opd_ok() ? 0 : -1;
}

OPDI_INTERNAL opdi_control_lower opdi_control_lowered;
/* Lets the compiler of graphs compile a condition or loop, if its functions are closed.  Returns what the compiler
   returns (see opdi_control_lower). */
static int opdi_control_compile(const opdi_control_job *job) {
    const opdi_control_lower lower = (opdi_control_lower)OPDI_ACQUIRE(&opdi_control_lowered);
    return job->flow->closed && lower ? lower(job) : OPDI_CONTROL_DECLINES;
}

//== gradients of operands that are not read ===========================================================================

/* The operands of a condition or loop that may have no path to an output in the autograd graph. */
typedef struct opdi_control_ties {
    uint64_t since;                               /* the number of the first node that the functions may have made */
    int count;
    opd_tensor *tensors[OPD_MAX_ARGS];            /* operands that require grad */
    opd_edge edges[OPD_MAX_ARGS];                 /* the edges that point to them */
    bool reached[OPD_MAX_ARGS];                   /* true if the output in question has a path to the operand */
} opdi_control_ties;

/* Returns the edge to the history of a tensor, or of the tensor in its vmap wrappers; without a node if it has none. */
static opd_edge opdi_control_edge(opd_tensor *tensor) {
    while ((tensor->flags & OPDI_BATCHED) && !opdi_requires_grad(tensor)) { tensor = opdi_batched_of(tensor)->value; }
    return opdi_edge_of(tensor);
}
static void opdi_control_ties_find(opdi_control_ties *ties, uint64_t since, const opd_value *args, int nargs) {
    ties->since = since;
    ties->count = 0;
    for (int i = 0; i < nargs && ties->count < OPD_MAX_ARGS; i++) {
        const int k = ties->count;
        if (args[i].tag != OPD_TAG_TENSOR || !opdi_tracked(args[i].u.t)) { continue; }
        ties->tensors[k] = args[i].u.t;
        ties->edges[k] = opdi_control_edge(args[i].u.t);
        ties->count += ties->edges[k].node != NULL;
    }
}
/* Notes that an edge was found.  Adds its node to the nodes to visit, if the functions may have made it.  Returns 0, or
   -1 if memory runs out. */
static int opdi_control_ties_visit(opdi_control_ties *ties, opdi_pointer_set *nodes, opd_edge edge) {
    if (!edge.node) { return 0; }
    for (int k = 0; k < ties->count; k++) {
        if (ties->edges[k].node == edge.node && ties->edges[k].nr == edge.nr) { ties->reached[k] = true; }
    }
    if (!opdi_plain_node(edge.node) || opdi_node_sequence(edge.node) < ties->since) { return 0; }
    return opdi_pointer_set_add(nodes, opdi_vertex(edge.node)) < 0 ? -1 : 0;
}
/* Finds out which operands an output has a path to.  Returns 0, or -1 if memory runs out. */
static int opdi_control_ties_reach(opdi_control_ties *ties, opd_tensor *output) {
    opdi_pointer_set nodes;
    memset(&nodes, 0, sizeof nodes);
    memset(ties->reached, 0, sizeof ties->reached);
    int rc = opdi_control_ties_visit(ties, &nodes, opdi_control_edge(output));
    for (int64_t at = 0; at < nodes.count && rc == 0; at++) {
        const opd_node *const node = opdi_edge_node(nodes.at[at]);
        for (int i = 0; i < node->nedges && rc == 0; i++) {
            rc = opdi_control_ties_visit(ties, &nodes, opd_node_edge(node, i));
        }
    }
    opdi_pointer_set_free(&nodes);
    return rc;
}
/* Returns a zero that depends on those operands to which the output has no path: the sum of none of their elements.  It
   has the dtype of the real part of the output, and its device.  Returns NULL if there is no such operand, or on
   failure. */
static opd_tensor *opdi_control_ties_zero(const opdi_control_ties *ties, const opd_tensor *output) {
    const opd_scalar_type dtype = opdi_is_complex(output) ? (opd_scalar_type)opdi_real_dtype(output->dtype)
        : (opd_scalar_type)output->dtype;
    opd_tensor *zero = NULL;
    for (int k = 0; k < ties->count && opd_ok(); k++) {
        opd_tensor *t = ties->tensors[k];
        if (ties->reached[k]) { continue; }
        if (opdi_is_complex(t)) { t = opd_real(t); }
        t = opd_narrow(t && !t->ndim ? opd_unsqueeze(t, 0) : t, 0, 0, 0);
        t = opd_to_device(opd_sum(t), opd_tensor_device(output), dtype);
        zero = zero ? opd_add(zero, t) : t;
    }
    return zero;
}
/* Gives the operands that an output does not depend on a gradient of zeros, as PyTorch does: subtracts a zero that
   depends on them.  `since` is the number of the first node that the functions may have made.  Returns `count`, the
   number of outputs, or -1 and sets an error. */
OPDI_INTERNAL int opdi_control_tie(uint64_t since, const opd_value *args, int nargs, opd_value *outputs, int count) {
    opdi_control_ties *ties = NULL;
    bool tracked = false;
    for (int i = 0; i < nargs && count > 0 && opd_grad_mode_enabled(); i++) {
        tracked = tracked || (args[i].tag == OPD_TAG_TENSOR && opdi_tracked(args[i].u.t));
    }
    if (!tracked) { return count; }
    if (!(ties = (opdi_control_ties *)opdi_scope_alloc(sizeof *ties))) { return -1; }
    opdi_control_ties_find(ties, since, args, nargs);
    for (int i = 0; i < count; i++) {
        opd_tensor *const output = outputs[i].tag == OPD_TAG_TENSOR ? outputs[i].u.t : NULL;
        if (!output || !opdi_differentiable(output) || opd_dtype_size((opd_scalar_type)output->dtype) < 2) { continue; }
        if (opdi_control_ties_reach(ties, output)) { return -1; }
        opd_tensor *const zero = opdi_control_ties_zero(ties, output);
        if (zero) { outputs[i].u.t = opd_sub(output, zero); }
        if (!opd_ok()) { return -1; }
    }
    return count;
}

//== conditions ========================================================================================================

/* Calls both functions of a condition, and checks that they return values of the same sizes and dtypes.  If the
   condition is a fake, returns the outputs of the first.  If it is batched, where() chooses between the outputs for
   each example; if it is in code that is being compiled, where() chooses in each run of the code.  Returns the number
   of outputs, or -1 and sets an error. */
static int opdi_control_both(const opdi_control *flow, opd_tensor *holds, const opd_value *args, int nargs,
                          opd_value *outputs, int cap) {
    opd_value *const others = opdi_control_values(cap);
    const int count = others ? flow->call(flow, 0, args, nargs, outputs, cap) : -1;
    const int more = count < 0 ? -1 : flow->call(flow, 1, args, nargs, others, cap);
    if (more < 0) { return -1; }
    if (count != more) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s returns %d outputs, but %s returns %d", flow->who, flow->names[0],
                        count, flow->names[1], more);
    }
    const bool choose = (holds->flags & OPDI_BATCHED) || holds->backend == OPD_LAZY;
    if (choose) { holds = opd_ne_Scalar(opd_reshape(holds, opd_ints_of(NULL, 0)), opd_value_int(0)); }
    for (int i = 0; i < count && opd_ok(); i++) {
        if (!opdi_control_same(&outputs[i], &others[i])) {
            char what[100];
            (void)snprintf(what, sizeof what, "that of %s", flow->names[1]);
            return opdi_control_differs(flow->who, flow->names[0], i, &outputs[i], what, &others[i]);
        }
        if (choose && outputs[i].tag == OPD_TAG_TENSOR) {
            outputs[i] = opd_value_tensor(opd_where_self(holds, outputs[i].u.t, others[i].u.t));
        }
    }
    return opd_ok() ? count : -1;
}
/* Calls function 0 of `flow` if `pred` is true, else function 1; both if `pred` is not known.  The arguments are
   args[nargs].  Writes at most `cap` outputs, which belong to the innermost scope.  Returns their number, or -1 and
   sets an error. */
OPDI_INTERNAL int opdi_control_cond(const opdi_control *flow, const opd_value *pred, const opd_value *args, int nargs,
                                 opd_value *outputs, int cap) {
    const uint64_t since = opdi_self()->sequence;
    if (opdi_control_one_element(flow, "pred", pred)) { return -1; }
    if (!opdi_control_unknown(pred)) {
        const int holds = opdi_control_holds(pred);
        const int given = holds < 0 ? -1 : flow->call(flow, !holds, args, nargs, outputs, cap);
        return opdi_control_tie(since, args, nargs, outputs, OPDI_MIN(given, cap)) < 0 ? -1 : given;
    }
    const opdi_control_job job = {flow, OPDI_RECORDED_COND, pred, args, nargs, 0, 0, false, 0, outputs};
    const int lowered = opdi_control_compile(&job);
    if (lowered != OPDI_CONTROL_DECLINES) { return lowered; }
    const bool sides = opdi_generator_sides_set(pred->u.t->backend == OPD_LAZY || opdi_generator_has_sides());
    const int count = opdi_control_both(flow, pred->u.t, args, nargs, outputs, cap);
    (void)opdi_generator_sides_set(sides);
    return opdi_control_tie(since, args, nargs, outputs, OPDI_MIN(count, cap)) < 0 ? -1 : count;
}

//== loops =============================================================================================================

/* Returns 2 if a batched condition is true for all examples, 1 if it is true for some of them, 0 if for none; or -1 and
   sets an error. */
static int opdi_control_holds_for(const opd_tensor *test) {
    while (test->flags & OPDI_BATCHED) { test = opdi_batched_of(test)->value; }
    opd_tensor *const holds = opd_ne_Scalar((opd_tensor *)(uintptr_t)test, opd_value_int(0));
    const bool any = opd_item_i64(opd_any(holds)) != 0, all = any && opd_item_i64(opd_all(holds)) != 0;
    return opd_ok() ? any + all : -1;
}
/* Chooses the values for the next round if a condition is true only for some examples: for the other examples, replaces
   the outputs `next` of the body by the current carried values `now`.  Returns 0, or -1 and sets an error. */
static int opdi_control_select(opd_tensor *test, const opd_value *now, opd_value *next, int count) {
    opd_tensor *const holds = opd_ne_Scalar(opd_reshape(test, opd_ints_of(NULL, 0)), opd_value_int(0));
    for (int i = 0; i < count && opd_ok(); i++) {
        if (next[i].tag != OPD_TAG_TENSOR) { continue; }
        next[i] = opd_value_tensor(opd_where_self(holds, next[i].u.t, now[i].u.t));
    }
    return opd_ok() ? 0 : -1;
}
/* Checks that the outputs `next` of the body have the sizes and dtypes of the carried values `now`.  Returns 0, or -1
   and sets an error. */
static int opdi_control_check(const opdi_control *flow, const char *name, const opd_value *now, const opd_value *next,
                           int count) {
    for (int i = 0; i < count; i++) {
        if (!opdi_control_same(&now[i], &next[i])) {
            return opdi_control_differs(flow->who, name, i, &next[i], "the value that it replaces", &now[i]);
        }
    }
    return 0;
}
/* Runs a round of a loop with the values now[nargs], of which the first `count` are carried.  Returns 1 if there may be
   another round, 0 if not, or -1 and sets an error. */
static int opdi_control_round(const opdi_control *flow, opd_value *now, int nargs, int count) {
    opd_value *const next = opdi_control_values(OPDI_MAX(count, 1));
    if (!next) { return -1; }
    int given = flow->call(flow, 0, now, nargs, next, 1);
    if (given >= 0 && given != 1) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s must return one tensor, not %d", flow->who, flow->names[0], given);
    }
    const opd_value test = next[0];
    if (given < 0 || opdi_control_one_element(flow, "the condition", &test)) { return -1; }
    const bool fake = test.tag == OPD_TAG_TENSOR && test.u.t->backend == OPD_META;
    const bool batched = !fake && test.tag == OPD_TAG_TENSOR && (test.u.t->flags & OPDI_BATCHED);
    const int again = fake ? 2 : batched ? opdi_control_holds_for(test.u.t) : opdi_control_holds(&test);
    if (again <= 0) { return again; }
    if ((given = flow->call(flow, 1, now, nargs, next, count)) < 0) { return -1; }
    if (given != count) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s must return the %d carried tensors, but returns %d", flow->who,
                        flow->names[1], count, given);
    }
    const bool some = batched && again == 1;
    if (((some || flow->strict) && opdi_control_check(flow, flow->names[1], now, next, count)) ||
        (some && opdi_control_select(test.u.t, now, next, count))) { return -1; }
    opdi_control_take(now, next, count);
    return !fake;
}
/* Calls function 1 of `flow` while function 0 returns true.  Both get args[nargs]; function 1 returns new values for
   the first `count`.  If the condition is a fake, function 1 is called once.  Under vmap, the loop goes on while the
   condition is true for any example.  Writes the last carried values, which belong to the innermost scope, to
   outputs[count].  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_control_while(const opdi_control *flow, const opd_value *args, int nargs, int count,
                                  opd_value *outputs) {
    opdi_control_held held = {opdi_control_values(nargs), 0, NULL, 0};
    const uint64_t since = opdi_self()->sequence;
    opdi_visit_frame visit;
    const opdi_control_job job = {flow, OPDI_RECORDED_WHILE, NULL, args, nargs, count, 0, false, 0, outputs};
    int again = opdi_control_compile(&job);
    if (again != OPDI_CONTROL_DECLINES) { return again < 0 ? -1 : 0; }
    again = 1;
    if (!held.now) { return -1; }
    if (nargs) { memcpy(held.now, args, (size_t)nargs * sizeof *args); }
    for (held.count = 0; held.count < count; held.count++) { opdi_control_hold(args[held.count]); }
    opdi_visit_begin(opdi_self(), &visit, "the function of a loop", opdi_control_left, &held);
    while (again > 0) {
        opd_scope scope = opd_scope_open();
        again = opdi_control_round(flow, held.now, nargs, count);
        opd_scope_close(&scope);
        if (!opd_ok()) { again = -1; }
    }
    opdi_visit_end(&visit);
    const int rc = again < 0 ? -1 : opdi_control_give(&held, outputs);
    opdi_control_let_go(&held);
    return rc || opdi_control_tie(since, args, nargs, outputs, count) < 0 ? -1 : 0;
}

/* Makes room for the results of a scan, which are to be stacked: `stacked` in each of `length` calls.  Returns 0, or -1
   and sets an error. */
static int opdi_control_reserve(const opdi_control *flow, opdi_control_held *held, int stacked, int64_t length) {
    if (stacked < 0) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s returns %d outputs, but must return the %d carried tensors first",
                        flow->who, flow->names[0], stacked + held->count, held->count);
    }
    if (stacked > 0 && length > INT32_MAX / stacked) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: there are too many results to stack", flow->who);
    }
    if (stacked == 0) { return 0; }
    if (!(held->made = (opd_tensor **)opdi_alloc((size_t)(stacked * length) * sizeof *held->made))) { return -1; }
    held->nmade = stacked * length;
    memset(held->made, 0, (size_t)held->nmade * sizeof *held->made);
    return 0;
}
/* The loop of opdi_control_scan; `stacked` is the number of results to stack. */
typedef struct opdi_control_slices {
    const opdi_control *flow;
    const opd_value *args;
    int nargs, carried, sliced, stacked;
    int64_t length, calls;
} opdi_control_slices;
/* Calls the function for slice k of the sliced arguments, and keeps the results.  Returns 0, or -1 and sets an
   error. */
static int opdi_control_slice(opdi_control_slices *scan, opdi_control_held *held, int64_t k) {
    const opdi_control *const flow = scan->flow;
    const int carried = scan->carried, most = OPDI_MAX(flow->most, 0);
    opd_value *const next = opdi_control_values(most), *const now = held->now;
    for (int i = carried; i < carried + scan->sliced; i++) {
        now[i] = opd_value_tensor(opd_select(scan->args[i].u.t, 0, k));
    }
    const int count = next && opd_ok() ? flow->call(flow, 0, now, scan->nargs, next, most) : -1;
    if (count < 0 ||
        (scan->calls == 0 && opdi_control_reserve(flow, held, count - carried, scan->length))) { return -1; }
    if (scan->calls++ == 0) { scan->stacked = count - carried; }
    if (count != carried + scan->stacked) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: %s returned %d outputs for one slice and %d for another", flow->who,
                        flow->names[0], carried + scan->stacked, count);
    }
    if (flow->strict && opdi_control_check(flow, flow->names[0], now, next, carried)) { return -1; }
    for (int i = 0; i < scan->stacked; i++) {
        const opd_value *const result = &next[carried + i];
        opd_tensor *const *const first = &held->made[i * scan->length];
        if (result->tag != OPD_TAG_TENSOR) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: a result is not a tensor", flow->who);
        }
        held->made[i * scan->length + k] = opdi_keep(result->u.t);
        const opd_value before = opd_value_tensor(first[0] ? first[0] : first[scan->length - 1]);
        if (flow->strict && !opdi_control_same(&before, result)) {
            return opdi_control_differs(flow->who, flow->names[0], carried + i, result, "the one of the first call",
                                        &before);
        }
    }
    opdi_control_take(now, next, carried);
    return 0;
}
/* Sets scan->length to the size of the sliced arguments along dim 0.  Returns 0, or -1 and sets an error. */
static int opdi_control_length(opdi_control_slices *scan) {
    scan->length = -1;
    for (int i = scan->carried; i < scan->carried + scan->sliced; i++) {
        const opd_value *const value = &scan->args[i];
        const int64_t size = value->tag == OPD_TAG_TENSOR && opd_ndim(value->u.t) ? opd_size(value->u.t, 0) : -1;
        if (size < 1 || (scan->length >= 0 && size != scan->length)) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: the tensors that it slices must have the same size along the dim "
                            "of the slices, which must not be 0", scan->flow->who);
        }
        scan->length = size;
    }
    if (scan->length >= 0) { return 0; }
    return opd_fail(OPD_ERROR_ARGUMENT, "%s: there is no tensor to slice", scan->flow->who);
}
/* Calls function 0 of `flow` for each slice of args[carried], ... (`sliced` of them) along dim 0, which has the size
   `length`, at least 1; if `reverse` is true, beginning with the last.  The function gets `nargs` arguments.  It
   returns new values for the first `carried`, and then results.  Writes the last carried values and the stacked
   results, at most flow->most, which belong to the innermost scope, to `outputs`.  Returns their number, or -1 and sets
   an error. */
OPDI_INTERNAL int opdi_control_rounds(const opdi_control *flow, const opd_value *args, int nargs, int carried,
                                      int sliced, bool reverse, int64_t length, opd_value *outputs) {
    opdi_control_slices scan = {flow, args, nargs, carried, sliced, 0, length, 0};
    const uint64_t since = opdi_self()->sequence;
    opdi_control_held held = {opdi_control_values(nargs), 0, NULL, 0};
    opdi_visit_frame visit;
    const opdi_control_job job = {flow, OPDI_RECORDED_SCAN, NULL, args, nargs, carried, sliced, reverse, length,
                                  outputs};
    const int lowered = opdi_control_compile(&job);
    if (lowered != OPDI_CONTROL_DECLINES) { return lowered; }
    if (!held.now) { return -1; }
    memcpy(held.now, args, (size_t)nargs * sizeof *args);
    for (held.count = 0; held.count < carried; held.count++) { opdi_control_hold(args[held.count]); }
    opdi_visit_begin(opdi_self(), &visit, "the function of a loop", opdi_control_left, &held);
    for (int64_t k = 0; k < scan.length && opd_ok(); k++) {
        opd_scope scope = opd_scope_open();
        if (opdi_control_slice(&scan, &held, reverse ? scan.length - 1 - k : k)) { k = scan.length; }
        opd_scope_close(&scope);
    }
    opdi_visit_end(&visit);
    if (opd_ok()) { (void)opdi_control_give(&held, outputs); }
    for (int i = 0; i < scan.stacked && opd_ok(); i++) {
        outputs[carried + i] = opd_value_tensor(opd_stack(opd_tensors_of(held.made + i * scan.length, scan.length), 0));
    }
    opdi_control_let_go(&held);
    return opd_ok() ? opdi_control_tie(since, args, nargs, outputs, carried + scan.stacked) : -1;
}

/* The same for slices whose size along dim 0 is not known yet. */
OPDI_INTERNAL int opdi_control_scan(const opdi_control *flow, const opd_value *args, int nargs, int carried, int sliced,
                                    bool reverse, opd_value *outputs) {
    opdi_control_slices scan = {flow, args, nargs, carried, sliced, 0, 0, 0};
    return opdi_control_length(&scan) ? -1
        : opdi_control_rounds(flow, args, nargs, carried, sliced, reverse, scan.length, outputs);
}

//== C functions =======================================================================================================

/* Calls one of the C functions of a condition or loop (opdi_control.call).  Ends the transforms that the function
   leaves open, and restores the modes of the thread. */
OPDI_INTERNAL int opdi_control_call(const opdi_control *flow, int which, const opd_value *args, int nargs,
                                    opd_value *outputs, int cap) {
    const opdi_control_functions *const functions = (const opdi_control_functions *)flow->user;
    opdi_thread *const thread = opdi_self();
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS] = {NULL};
    opd_tensor **const in = opdi_scope_tensors(nargs);
    if (!in) { return -1; }
    for (int i = 0; i < nargs; i++) { in[i] = args[i].u.t; }
    const opdi_state state = thread->state;
    const int depth = opd_transform_depth();
    int count = functions->fns[which](functions->user, in, nargs, out);
    opdi_layers_end(depth + 1);
    thread->state = state;
    count = opdi_outputs_check(count, out, flow->who, flow->names[which]);
    for (int i = 0; i < OPDI_MIN(count, cap); i++) { outputs[i] = opd_value_tensor(out[i]); }
    return count;
}
