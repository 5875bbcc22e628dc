/* Observers of calls, of backward nodes and of spans; the profiler, its table and its trace file.  THREADED */
#include "../inside.h"
#include "../check.h"

#include <pthread.h>
#include <locale.h>
#include <unistd.h>

/* The events that observers got, in their order. */
enum { SEEN = 4096 };
typedef struct seen { char what; int kind; char name[64]; int64_t sequence; uint64_t id; uint32_t thread, forward; } seen;
static seen log_[SEEN];
static int nlog;
static int log_lock;                              /* some cases have several threads */

static void note(char what, const opd_event *e) {
    seen *s;
    while (__atomic_exchange_n(&log_lock, 1, __ATOMIC_ACQUIRE)) { }
    if (nlog < SEEN) {
        s = &log_[nlog++];
        s->what = what;
        s->kind = e->kind;
        (void)snprintf(s->name, sizeof s->name, "%s", e->name);
        s->sequence = e->sequence;
        s->id = e->id;
        s->thread = e->thread;
        s->forward = e->forward_thread;
    }
    __atomic_store_n(&log_lock, 0, __ATOMIC_RELEASE);
}
/* Returns the begins and ends in their order, such as "(aten::add )", with the letters that observers add */
static const char *story(void) {
    static char text[8192];
    size_t n = 0;
    text[0] = 0;
    for (int i = 0; i < nlog; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%c%s", i ? " " : "", log_[i].what,
                              log_[i].what == ')' || log_[i].what == ']' ? "" : log_[i].name);
        if (n >= sizeof text) { break; }
    }
    nlog = 0;
    return text;
}
static char round_[] = "()", square[] = "[]";
static void *say_begin(const opd_event *e, void *user) { note(((char *)user)[0], e); return (void *)(uintptr_t)e->id; }
static void say_end(const opd_event *e, void *context, void *user) {
    CHECK(context == (void *)(uintptr_t)e->id);
    note(((char *)user)[1], e);
}
static opd_observer sayer(char *letters) {
    opd_observer o;
    memset(&o, 0, sizeof o);
    o.begin = say_begin;
    o.end = say_end;
    o.user = letters;
    return o;
}
static int64_t say(char *letters) { opd_observer o = sayer(letters); nlog = 0; return opd_observer_add_local(&o); }

static opd_tensor *vec(int64_t n, bool grad) {
    return opd_tensor_set_requires_grad(opd_ones(opd_ints_of(&n, 1), OPD_FLOAT32), grad);
}
static void run_thread(void *(*fn)(void *), void *arg) {
    pthread_t id;
    CHECK_INT(pthread_create(&id, NULL, fn, arg), 0);
    CHECK_INT(pthread_join(id, NULL), 0);
}

//-- operators for the cases ----------------------------------------------------------------------------------------

static int id_kernel(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
static int id_above(opd_call *call) {
    return opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_AUTOGRAD_OTHER)));
}
static int two_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_mul(opd_add(x, x), x));
}
static int fail_kernel(opd_call *call) { (void)call; return opd_fail(OPD_ERROR_USER, "on purpose"); }
static int fail_backward(opd_backward_call *bw) { (void)bw; return opd_fail(OPD_ERROR_USER, "formula on purpose"); }

OPD_LIBRARY(watch, lib) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    opd_def(lib, "same(Tensor self, int n=7, *, str s='x') -> Tensor");
    opd_def(lib, "broken(Tensor self) -> Tensor");
    d.schema = "two.overload(Tensor self) -> Tensor";
    d.composite = two_kernel;
    opd_define(lib, &d);
    memset(&d, 0, sizeof d);
    d.schema = "bad_formula(Tensor self) -> Tensor";
    d.cpu = two_kernel;
    d.backward = fail_backward;
    opd_define(lib, &d);
}
OPD_LIBRARY_IMPL(watch, CPU, lib) { opd_impl(lib, "same", id_kernel); opd_impl(lib, "broken", fail_kernel); }
OPD_LIBRARY_IMPL(watch, Autograd, lib) { opd_impl(lib, "same", id_above); }

static opd_tensor *call1(const char *name, opd_tensor *x) {
    opd_value v = opd_value_tensor(x);
    return opd_call_op(opd_find(name), &v, 1);
}

//-- calls ------------------------------------------------------------------------------------------------------------

/* Observers see the operators of a graph in each run, also with gradients. */
TEST(graphs_that_run_are_observed) {
    opd_graph *g = opd_graph_parse("graph(%x : Tensor):\n  %1 : int = prim::Constant[value=1]()\n"
                                   "  %2 : Tensor = aten::add(%x, %x, %1)\n  %3 : Tensor = aten::mul(%2, %x)\n"
                                   "  return (%3)\n");
    opd_tensor *x = vec(2, true), *y[1] = {NULL};
    int64_t h;
    int i;
    CHECK_OR_RETURN(g != NULL);
    h = say(round_);
    for (i = 0; i < 2; i++) {
        CHECK_INT(opd_graph_run(g, &x, 1, y, 1), 1);
        CHECK_STR(story(), "(aten::add ) (aten::mul )");
    }
    CHECK_INT(opd_backward(opd_sum(y[0])), 0);
    CHECK(strstr(story(), "MulBackward0"));
    opd_observer_remove(h);
    opd_graph_free(g);
    CHECK_OK();
}
TEST(calls_nest_and_overloads_are_left_out) {
    opd_tensor *x = vec(2, false);
    int64_t h = say(round_);
    CHECK(h > 0);
    CHECK(call1("watch::two.overload", x) != NULL);
    CHECK_STR(story(), "(watch::two (aten::add ) (aten::mul ) )");
    CHECK(opd_observer_remove(h));
    CHECK(call1("watch::two.overload", x) != NULL);
    CHECK_STR(story(), "");
}

TEST(a_redispatch_is_no_event) {
    opd_tensor *x = vec(2, true);
    int64_t h = say(round_);
    bool was;
    CHECK(call1("watch::same", x) != NULL);
    CHECK(log_[0].sequence >= 0);
    CHECK_STR(story(), "(watch::same )");
    was = opd_grad_mode_set(false);
    CHECK(call1("watch::same", x) != NULL);
    CHECK_INT(log_[0].sequence, -1);
    CHECK_STR(story(), "(watch::same )");
    opd_grad_mode_set(was);
    CHECK(opd_observer_remove(h));
}

static opd_tensor *wanted_arg, *got_ret;
static opd_op *wanted_op;
static int ends;
static void *args_begin(const opd_event *e, void *user) {
    (void)user;
    CHECK_INT(e->kind, OPD_OBSERVE_CALL);
    CHECK(e->op == wanted_op);
    CHECK_INT(e->nargs, 3);
    CHECK(e->args[0].tag == OPD_TAG_TENSOR && e->args[0].u.t == wanted_arg);
    CHECK(e->args[1].tag == OPD_TAG_INT && e->args[1].u.i == 7);
    CHECK(e->args[2].tag == OPD_TAG_STR);
    CHECK_STR(e->args[2].u.s, "x");
    CHECK(e->rets == NULL && e->nrets == 0 && e->error == OPD_OK);
    return user;
}
static void args_end(const opd_event *e, void *context, void *user) {
    CHECK(context == user);
    CHECK_INT(e->nargs, 3);
    CHECK_INT(e->nrets, 1);
    CHECK(e->rets[0].tag == OPD_TAG_TENSOR);
    CHECK_STR(e->message, "");
    got_ret = e->rets[0].u.t;
    ends++;
}
TEST(arguments_are_bound_and_results_there_at_the_end) {
    opd_observer o;
    opd_tensor *y;
    int64_t h;
    memset(&o, 0, sizeof o);
    o.begin = args_begin;
    o.end = args_end;
    o.user = &o;
    wanted_arg = vec(2, false);
    wanted_op = opd_find("watch::same");
    ends = 0;
    h = opd_observer_add_local(&o);
    y = call1("watch::same", wanted_arg);
    CHECK_INT(ends, 1);
    CHECK(y && y == got_ret);
    opd_observer_remove(h);
}

TEST(questions_and_calls_that_do_not_bind_are_no_events) {
    opd_tensor *x = vec(2, false);
    opd_value v[2] = {opd_value_tensor(x), opd_value_str("a")};
    int64_t h = say(round_);
    CHECK_INT(opd_size_int(x, 0).u.i, 2);
    CHECK_STR(story(), "");
    CHECK(opd_call_op(opd_find("watch::same"), v, 2) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Expected a value of type 'int'");
    CHECK(opd_call_op(NULL, v, 2) == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "NULL");
    CHECK_STR(story(), "");
    opd_observer_remove(h);
}

TEST(ids_differ_and_the_end_has_the_one_of_its_begin) {
    opd_tensor *x = vec(2, false);
    int64_t h = say(round_);
    opd_add(x, x);
    opd_add(x, x);
    CHECK_OR_RETURN(nlog == 4);
    CHECK(log_[0].id == log_[1].id && log_[2].id == log_[3].id && log_[0].id != log_[2].id);
    CHECK(log_[0].thread > 0 && log_[0].forward == 0);
    opd_observer_remove(h);
}

/* Observers of all threads are called before observers of this thread, at the begin and at the end of a call. */
TEST(those_of_all_threads_are_told_first) {
    opd_tensor *x = vec(2, false);
    opd_observer o = sayer(round_);
    int64_t local = say(square), global = opd_observer_add(&o);
    opd_add(x, x);
    CHECK_STR(story(), "(aten::add [aten::add ) ]");
    CHECK(opd_observer_enable(global, false));
    opd_add(x, x);
    CHECK_STR(story(), "[aten::add ]");
    CHECK(opd_observer_enable(global, false) && opd_observer_enable(global, true));
    opd_add(x, x);
    CHECK_STR(story(), "(aten::add [aten::add ) ]");
    CHECK(opd_observer_remove(local) && opd_observer_remove(global));
    CHECK(!opd_observer_remove(local) && !opd_observer_remove(global) && !opd_observer_enable(local, true));
    CHECK(!opd_observer_remove(0));
    CHECK_OK();
}

TEST(a_thread_is_observed_or_not) {
    opd_tensor *x = vec(2, false);
    int64_t h = say(round_);
    CHECK(opd_observe_set(false));
    opd_add(x, x);
    CHECK(opd_span_open("span") == NULL);
    CHECK_STR(story(), "");
    CHECK(!opd_observe_set(true));
    opd_add(x, x);
    CHECK_STR(story(), "(aten::add )");
    opd_observer_remove(h);
}

TEST(bad_observers_are_refused) {
    opd_observer o;
    int64_t h[32];
    int i;
    memset(&o, 0, sizeof o);
    CHECK_INT(opd_observer_add(NULL), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "callback");
    CHECK_INT(opd_observer_add(&o), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "callback");
    o = sayer(round_);
    o.kinds = 64;
    CHECK_INT(opd_observer_add(&o), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "kinds");
    o.kinds = 0;
    o.sampling = 1.5;
    CHECK_INT(opd_observer_add_local(&o), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "1.5");
    o.sampling = -0.25;
    CHECK_INT(opd_observer_add_local(&o), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "-0.25");
    o.sampling = (double)NAN;
    CHECK_INT(opd_observer_add_local(&o), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "nan");
    o = sayer(round_);
    for (i = 0; i < 32; i++) { h[i] = i < 16 ? opd_observer_add(&o) : opd_observer_add_local(&o); }
    CHECK_OK();
    nlog = 0;
    opd_ones(OPD_INTS(1), OPD_FLOAT32);
    CHECK(nlog > 0 && nlog % 64 == 0);
    CHECK_INT(opd_observer_add(&o), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "more than 16 observers of all threads");
    CHECK_INT(opd_observer_add_local(&o), 0);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "more than 16 observers of one thread");
    for (i = 0; i < 32; i++) { CHECK(h[i] > 0 && opd_observer_remove(h[i])); }
}

//-- allowed calls in callbacks -------------------------------------------------------------------------------------

static int64_t self_handle, other_handle;
static int destroyed;
static void destroy_counts(void *user) { (void)user; (void)__atomic_add_fetch(&destroyed, 1, __ATOMIC_RELAXED); }
static void *remove_begin(const opd_event *e, void *user) {
    CHECK(opd_observer_remove(self_handle));
    CHECK_INT(destroyed, 0);
    return say_begin(e, user);
}
TEST(removal_in_a_callback_leaves_its_end) {
    opd_tensor *x = vec(2, false);
    opd_observer o = sayer(round_);
    o.begin = remove_begin;
    o.destroy = destroy_counts;
    destroyed = nlog = 0;
    self_handle = opd_observer_add(&o);
    opd_add(x, x);
    CHECK_STR(story(), "(aten::add )");
    CHECK_INT(destroyed, 1);
    opd_add(x, x);
    CHECK_STR(story(), "");
}

static void *switch_begin(const opd_event *e, void *user) {
    opd_observer o = sayer(square);
    if (!other_handle) { other_handle = opd_observer_add_local(&o); }
    return say_begin(e, user);
}
TEST(added_in_a_callback_counts_from_the_next_event) {
    opd_tensor *x = vec(2, false);
    opd_observer o = sayer(round_);
    o.begin = switch_begin;
    other_handle = nlog = 0;
    self_handle = opd_observer_add_local(&o);
    call1("watch::two.overload", x);
    CHECK_STR(story(), "(watch::two (aten::add [aten::add ) ] (aten::mul [aten::mul ) ] )");
    CHECK(opd_observer_remove(self_handle) && opd_observer_remove(other_handle));
}

static opd_tensor *leaf_in_callback;
static void *busy_begin(const opd_event *e, void *user) {
    opd_tensor *x = vec(2, false), *y;
    opd_span *span = opd_span_open("inside");
    CHECK(span == NULL);
    CHECK(!opd_grad_mode_enabled());
    y = opd_mul(opd_add(x, leaf_in_callback), x);
    CHECK(y && !opd_tensor_requires_grad(y));
    CHECK_NEAR(opd_item_f64(opd_sum(y)), 4, 0);
    (void)opd_scope_open();                       /* what follows must not be seen by the call */
    vec(3, false);
    opd_grad_mode_set(true);
    opd_keys_include(opd_keyset_make(OPD_BIT_OF(OPD_F_USER_7), 0));
    opd_keys_exclude(opd_keyset_make(OPD_BIT_OF(OPD_F_AUTOGRAD), 0));
    return say_begin(e, user);
}
static void busy_end(const opd_event *e, void *context, void *user) {
    (void)busy_begin(e, user);
    nlog--;
    say_end(e, context, user);
}
TEST(operators_in_callbacks_are_not_observed_and_leave_no_trace) {
    opd_tensor *x = vec(2, true), *y;
    opd_observer o = sayer(round_);
    opd_scope_info before, after;
    opd_keyset in = opd_keys_included(), ex = opd_keys_excluded();
    int64_t h;
    leaf_in_callback = x;
    o.begin = busy_begin;
    o.end = busy_end;
    nlog = 0;
    h = opd_observer_add_local(&o);
    before = opd_scope_stats();
    y = opd_mul(x, x);
    after = opd_scope_stats();
    CHECK(opd_tensor_requires_grad(y));
    CHECK_STR(opd_tensor_grad_fn(y), "MulBackward0");
    CHECK_STR(story(), "(aten::mul )");
    CHECK_INT(after.depth, before.depth);
    CHECK_INT(after.handles, before.handles + 1);
    CHECK(opd_grad_mode_enabled());
    CHECK(opd_keys_included().functionality == in.functionality && opd_keys_excluded().functionality == ex.functionality);
    opd_observer_remove(h);
    opd_backward(opd_sum(y));
    CHECK_NEAR(opd_item_f64(opd_sum(opd_tensor_grad(x))), 4, 0);
}

static char warned[512];
static int warnings;
static void hear(void *user, int is_error, const char *text) {
    (void)user;
    CHECK(!is_error);
    warnings++;
    (void)snprintf(warned, sizeof warned, "%s", text);
}
static void *failing_begin(const opd_event *e, void *user) {
    note('!', e);
    opd_fail(OPD_ERROR_USER, "begin is broken");
    return user;
}
static void failing_end(const opd_event *e, void *context, void *user) {
    (void)user;
    CHECK(context == NULL);                       /* its begin failed */
    note('?', e);
    opd_fail(OPD_ERROR_USER, "end is broken");
}
TEST(errors_of_callbacks_are_warnings) {
    opd_tensor *x = vec(2, false);
    opd_observer o = sayer(round_);
    int64_t h, g;
    o.begin = failing_begin;
    o.end = failing_end;
    warnings = 0;
    opd_log_set(hear, NULL);
    h = opd_observer_add_local(&o);
    g = say(square);
    CHECK(opd_add(x, x) != NULL);
    opd_log_set(NULL, NULL);
    CHECK_OK();
    CHECK_STR(story(), "!aten::add [aten::add ?aten::add ]");
    CHECK_INT(warnings, 2);
    CHECK_STR(warned, "an observer failed at the end of aten::add: end is broken");
    CHECK(opd_observer_remove(h) && opd_observer_remove(g));
}

static char heard[512];
static opd_code heard_code;
static void hear_end(const opd_event *e, void *context, void *user) {
    (void)context;
    (void)user;
    CHECK(opd_ok());                              /* put aside: operators work here */
    CHECK_NEAR(opd_item_f64(opd_sum(vec(3, false))), 3, 0);
    CHECK(e->rets == NULL && e->nrets == 0);
    heard_code = e->error;
    (void)snprintf(heard, sizeof heard, "%s", e->message);
}
TEST(a_call_that_fails_is_ended_with_its_error) {
    opd_tensor *x = vec(2, false);
    opd_observer o = sayer(round_);
    int64_t h;
    o.begin = NULL;
    o.end = hear_end;
    h = opd_observer_add_local(&o);
    CHECK(call1("watch::broken", x) == NULL);
    CHECK_INT(heard_code, OPD_ERROR_USER);
    CHECK_STR(heard, opd_error_message());
    heard[0] = 0;
    CHECK(call1("watch::broken", x) == NULL);     /* pending: no event */
    CHECK_STR(heard, "");
    CHECK_ERROR(OPD_ERROR_USER, "watch::broken: on purpose");
    o.end = failing_end;                          /* its error does not replace the call's */
    opd_observer_remove(h);
    h = opd_observer_add_local(&o);
    opd_log_set(hear, NULL);
    CHECK(call1("watch::broken", x) == NULL);
    opd_log_set(NULL, NULL);
    CHECK_ERROR(OPD_ERROR_USER, "watch::broken: on purpose");
    opd_observer_remove(h);
}

//-- backward -------------------------------------------------------------------------------------------------------

/* The names and numbers equal those of torch 1.13's profiler for y = (x * x + x).sum(); y.backward(). */
TEST(nodes_have_the_number_of_their_call) {
    opd_tensor *x = vec(3, true);
    opd_observer o = sayer(round_);
    int64_t h, first;
    opd_add(vec(1, false), vec(1, false));
    nlog = 0;
    o.kinds = OPD_OBSERVE_CALL | OPD_OBSERVE_BACKWARD;
    h = opd_observer_add_local(&o);
    opd_backward(opd_sum(opd_add(opd_mul(x, x), x)));
    opd_observer_remove(h);
    CHECK_OR_RETURN(nlog > 12);
    first = log_[0].sequence;
    CHECK_STR(log_[0].name, "aten::mul");
    CHECK(first >= 0);
    CHECK_STR(log_[2].name, "aten::add");
    CHECK_INT(log_[2].sequence, first + 1);
    CHECK_STR(log_[4].name, "aten::sum");
    CHECK_INT(log_[4].sequence, first + 2);
    {
        static const char *const nodes[] = {"SumBackward0", "AddBackward0", "MulBackward0",
                                            "torch::autograd::AccumulateGrad"};
        int i, k = 0, open = 0;
        for (i = 6; i < nlog; i++) {
            if (log_[i].kind == OPD_OBSERVE_CALL) { CHECK_INT(log_[i].sequence, -1); continue; }
            if (log_[i].what == ')') { open--; continue; }
            CHECK_INT(open++, 0);
            CHECK_OR_RETURN(k < 4);
            CHECK_STR(log_[i].name, nodes[k]);
            CHECK_INT(log_[i].sequence, k == 3 ? -1 : first + 2 - k);
            CHECK_INT(log_[i].forward, k == 3 ? 0 : log_[0].thread);
            k++;
        }
        CHECK_INT(k, 4);
    }
}

static int64_t numel_in, numel_out;
static void *grads_begin(const opd_event *e, void *user) {
    CHECK_INT(e->kind, OPD_OBSERVE_BACKWARD);
    CHECK(e->op == NULL);
    CHECK_INT(e->nargs, 1);
    CHECK(e->args[0].tag == OPD_TAG_TENSORS && e->args[0].n == 1);
    numel_in = opd_numel(e->args[0].u.tensors[0]);
    return user;
}
static void grads_end(const opd_event *e, void *context, void *user) {
    (void)context;
    (void)user;
    if (strcmp(e->name, "SumBackward0") != 0) { return; }
    CHECK_INT(numel_in, 1);
    CHECK_INT(e->nrets, 1);
    CHECK(e->rets[0].tag == OPD_TAG_TENSORS && e->rets[0].n == 1);
    numel_out = opd_numel(e->rets[0].u.tensors[0]);
}
TEST(nodes_show_gradients_and_kinds_choose) {
    opd_tensor *x = vec(5, true), *y;
    opd_observer o = sayer(round_);
    int64_t h;
    o.begin = grads_begin;
    o.end = grads_end;
    o.kinds = OPD_OBSERVE_BACKWARD;
    numel_out = 0;
    h = opd_observer_add_local(&o);
    y = opd_sum(x);
    opd_backward(y);
    CHECK_INT(numel_out, 5);
    CHECK(opd_tensor_grad(x) != NULL);
    opd_observer_remove(h);
}

TEST(a_formula_that_fails_is_ended) {
    opd_tensor *x = vec(2, true), *y = opd_sum(call1("watch::bad_formula", x));
    int64_t h = say(round_);
    CHECK_INT(opd_backward(y), -1);
    CHECK_ERROR(OPD_ERROR_USER, "formula on purpose");
    CHECK(strstr(story(), "(BadFormulaBackward0 )") != NULL);
    opd_observer_remove(h);
}

static opd_tensor *made;
static void *forward_elsewhere(void *arg) {
    opd_tensor *x = vec(2, true);
    made = opd_keep(opd_sum(opd_mul(x, x)));
    (void)arg;
    (void)opd_finish();
    return NULL;
}
TEST(nodes_know_the_thread_of_their_call) {
    opd_observer o = sayer(round_);
    uint32_t forward = 0, here = 0;
    int64_t h, i;
    nlog = 0;
    h = opd_observer_add(&o);
    run_thread(forward_elsewhere, NULL);
    opd_backward(made);
    opd_observer_remove(h);
    for (i = 0; i < nlog; i++) {
        if (strcmp(log_[i].name, "aten::mul") == 0 && !forward) { forward = log_[i].thread; }
        if (strcmp(log_[i].name, "MulBackward0") == 0) { CHECK_INT(log_[i].forward, forward); here = log_[i].thread; }
    }
    CHECK(forward != 0 && here != 0 && here != forward);
    opd_release(made);
}

/* Observers must not change how backward uses gradients: the leaf gets the tensor without a copy. */
TEST(observing_changes_no_result) {
    double plain = 0, watched = 0;
    int64_t allocations[2];
    int k;
    for (k = 0; k < 4; k++) {
        int64_t h = k & 1 ? say(round_) : 0, n;
        OPD_SCOPE {
            opd_tensor *x = vec(100, true), *y = opd_sum(opd_mul(opd_exp(x), x));
            n = opd_memory_stats().allocations;
            opd_backward(y);
            allocations[k & 1] = opd_memory_stats().allocations - n;
            if (k & 1) { watched = opd_item_f64(opd_sum(opd_tensor_grad(x))); }
            else { plain = opd_item_f64(opd_sum(opd_tensor_grad(x))); }
        }
        if (h) { opd_observer_remove(h); }
    }
    CHECK_NEAR(plain, watched, 0);
    CHECK_INT(allocations[1], allocations[0]);
}

//-- spans ----------------------------------------------------------------------------------------------------------

TEST(spans) {
    opd_tensor *x = vec(2, false);
    opd_span *a, *b;
    int64_t h;
    CHECK(opd_span_open("nobody observes") == NULL);
    opd_span_close(NULL);
    h = say(round_);
    a = opd_span_open("outer");
    b = opd_span_open("inner");
    opd_add(x, x);
    opd_span_close(b);
    opd_span_close(a);
    CHECK_STR(story(), "(outer (inner (aten::add ) ) )");
    a = opd_span_open(NULL);
    opd_fail(OPD_ERROR_USER, "in between");
    CHECK(opd_span_open("while an error is pending") == NULL);
    opd_span_close(a);
    CHECK_ERROR(OPD_ERROR_USER, "in between");
    CHECK_STR(story(), "( )");
    opd_observer_remove(h);
}

static void *close_elsewhere(void *arg) {
    opd_span_close((opd_span *)arg);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "another thread");
    return NULL;
}
TEST(a_span_is_closed_where_it_was_opened) {
    int64_t h = say(round_);
    opd_span *a = opd_span_open("a");
    CHECK_OR_RETURN(a != NULL);
    run_thread(close_elsewhere, a);
    opd_observer_remove(h);
    opd_span_close(a);
    CHECK_STR(story(), "(a )");
}

//-- sampling -------------------------------------------------------------------------------------------------------

static int begun, ended;
static void *count_begin(const opd_event *e, void *user) { (void)e; (void)user; begun++; return NULL; }
static void count_end(const opd_event *e, void *context, void *user) { (void)e; (void)context; (void)user; ended++; }
static opd_observer counter(double sampling, unsigned kinds) {
    opd_observer o;
    memset(&o, 0, sizeof o);
    o.begin = count_begin;
    o.end = count_end;
    o.sampling = sampling;
    o.kinds = kinds;
    begun = ended = 0;
    return o;
}
static void many_calls(int n) {
    opd_op *op = opd_find("watch::same");
    opd_value v[3], r[1];
    opd_tensor *x = vec(1, false);
    int i;
    v[0] = opd_value_tensor(x);
    v[1] = opd_value_int(1);
    v[2] = opd_value_str("x");
    for (i = 0; i < n; i++) { OPD_SCOPE { CHECK(opd_call_all(op, r, v, 3) == 0); } }
}
/* Checks that a binomial count is within six standard deviations of its mean. */
static void check_sampled(double p, int n, int got) {
    double sigma = sqrt(n * p * (1 - p));
    CHECK(got > n * p - 6 * sigma - 1);
    CHECK(got < n * p + 6 * sigma + 1);
}
TEST(sampling_takes_its_part_of_the_calls) {
    static const double p[] = {0.5, 0.1, 0.01, 0.001};
    size_t k;
    for (k = 0; k < sizeof p / sizeof *p; k++) {
        opd_observer o = counter(p[k], 0);
        int64_t h = opd_observer_add_local(&o);
        many_calls(20000);
        check_sampled(p[k], 20000, begun);
        CHECK_INT(begun, ended);
        opd_observer_remove(h);
    }
}
TEST(sampled_and_other_observers_go_together) {
    opd_observer rare = counter(0.01, OPD_OBSERVE_CALL), all = counter(1, OPD_OBSERVE_CALL);
    opd_observer spans_only = counter(0, OPD_OBSERVE_SPAN);
    int64_t a, b, c;
    c = opd_observer_add_local(&spans_only);
    many_calls(100);
    CHECK_INT(begun, 0);
    opd_span_close(opd_span_open("one"));
    CHECK_INT(begun, 1);
    opd_observer_remove(c);
    begun = 0;
    a = opd_observer_add_local(&rare);
    many_calls(10000);
    check_sampled(0.01, 10000, begun);
    begun = 0;
    b = opd_observer_add(&all);                   /* from the next call on, though the next sample may be far */
    many_calls(10000);
    CHECK(begun >= 10001);
    check_sampled(0.01, 10000, begun - 10001);    /* many_calls makes a tensor too */
    opd_observer_remove(b);
    begun = 0;
    many_calls(10000);
    check_sampled(0.01, 10000, begun);
    opd_observer_remove(a);
    begun = 0;
    many_calls(100);
    CHECK_INT(begun, 0);
}
TEST(spans_and_calls_are_sampled_each_with_the_probability) {
    opd_observer o = counter(0.05, OPD_OBSERVE_CALL | OPD_OBSERVE_SPAN);
    int64_t h = opd_observer_add_local(&o), i;
    for (i = 0; i < 5000; i++) {
        opd_span *s = opd_span_open("s");
        opd_span_close(s);
        many_calls(1);
    }
    CHECK_INT(begun, ended);
    CHECK(begun > 0);
    check_sampled(0.05, 15000, begun);            /* a span, ones, same; and what ones calls */
    opd_observer_remove(h);
}

//-- threads --------------------------------------------------------------------------------------------------------

static void *one_add(void *arg) {
    opd_tensor *x = vec(2, false);
    opd_add(x, x);
    (void)opd_finish();
    return arg;
}
TEST(an_observer_of_all_threads_and_one_of_its_own) {
    opd_observer o = sayer(round_);
    int64_t local = say(square), global = opd_observer_add(&o);
    const char *text;
    run_thread(one_add, NULL);
    text = story();
    CHECK(strstr(text, "(aten::add )") != NULL);
    CHECK(strchr(text, '[') == NULL);
    opd_observer_remove(local);
    opd_observer_remove(global);
    run_thread(one_add, NULL);
    CHECK_STR(story(), "");
}

static void *observes_and_ends(void *arg) {
    opd_observer o = sayer(square);
    o.destroy = destroy_counts;
    CHECK(opd_observer_add_local(&o) > 0);
    *(int64_t *)arg = opd_observer_add_local(&o);
    return one_add(NULL);
}
TEST(a_thread_that_ends_takes_its_observers_with_it) {
    int64_t h = 0;
    destroyed = nlog = 0;
    run_thread(observes_and_ends, &h);
    CHECK_INT(destroyed, 2);
    CHECK(strstr(story(), "[aten::add [aten::add ] ]") != NULL);
    CHECK(!opd_observer_remove(h));
}

static int64_t in_flight, running_threads;
static int stop_threads;
static void *flight_begin(const opd_event *e, void *user) {
    (void)e;
    CHECK(*(int *)user == 4711);                  /* its data is there as long as events are */
    (void)__atomic_add_fetch(&in_flight, 1, __ATOMIC_RELAXED);
    return user;
}
static void flight_end(const opd_event *e, void *context, void *user) {
    (void)e;
    CHECK(context == user && *(int *)user == 4711);
    (void)__atomic_sub_fetch(&in_flight, 1, __ATOMIC_RELAXED);
}
static void flight_destroy(void *user) { *(int *)user = 0; free(user); destroy_counts(NULL); }
static void *works(void *arg) {
    (void)__atomic_add_fetch(&running_threads, 1, __ATOMIC_RELAXED);
    while (!__atomic_load_n(&stop_threads, __ATOMIC_RELAXED)) {
        OPD_SCOPE {
            opd_tensor *x = vec(2, true);
            opd_span *s = opd_span_open("span");
            opd_backward(opd_sum(call1("watch::two.overload", x)));
            opd_span_close(s);
        }
    }
    CHECK_OK();
    return arg;
}
enum { WORKERS = 4 };
static void with_workers(void (*meanwhile)(int round), int rounds) {
    pthread_t id[WORKERS];
    int i;
    running_threads = stop_threads = 0;
    for (i = 0; i < WORKERS; i++) { CHECK_INT(pthread_create(&id[i], NULL, works, NULL), 0); }
    while (__atomic_load_n(&running_threads, __ATOMIC_RELAXED) < WORKERS) { (void)usleep(1000); }
    for (i = 0; i < rounds; i++) { meanwhile(i); }
    __atomic_store_n(&stop_threads, 1, __ATOMIC_RELAXED);
    for (i = 0; i < WORKERS; i++) { CHECK_INT(pthread_join(id[i], NULL), 0); }
}
static int added;
static void come_and_go(int round) {
    opd_observer o = counter(round % 3 == 2 ? 0.1 : 0, 0);
    int64_t h, g;
    int *p = (int *)malloc(sizeof *p), *q = (int *)malloc(sizeof *q);
    *p = *q = 4711;
    o.begin = flight_begin;
    o.end = flight_end;
    o.destroy = flight_destroy;
    o.user = p;
    h = opd_observer_add(&o);
    o.user = q;
    g = opd_observer_add(&o);
    CHECK(h && g);
    added += 2;
    (void)usleep(300);
    CHECK(opd_observer_enable(g, false));
    CHECK(opd_observer_remove(h));
    (void)usleep(100);
    CHECK(opd_observer_enable(g, true));
    (void)usleep(100);
    CHECK(opd_observer_remove(g));
}
TEST(observers_come_and_go_while_threads_call) {
    destroyed = added = 0;
    in_flight = 0;
    with_workers(come_and_go, 60);
    CHECK_INT(in_flight, 0);
    CHECK_INT(destroyed, added);
}
/* While a thread ends, an observer of all threads is removed: it was in that thread's list, which counts no more. */
static void removes(void *user) { CHECK(opd_observer_remove(*(int64_t *)user)); }
static void *ends_removing(void *handle) {
    opd_observer o = sayer(square);
    o.destroy = removes;
    o.user = handle;
    CHECK(opd_observer_add_local(&o) > 0);
    return NULL;
}
TEST(removal_while_a_thread_ends) {
    opd_observer o = sayer(square);
    opd_span *s;
    int64_t h;
    o.destroy = destroy_counts;
    destroyed = nlog = 0;
    h = opd_observer_add(&o);
    s = opd_span_open("around");
    run_thread(ends_removing, &h);
    CHECK_INT(destroyed, 0);                      /* the span still has it */
    opd_span_close(s);
    CHECK_INT(destroyed, 1);
    CHECK(!opd_observer_remove(h));
}
static void profile_once(int round) {
    opd_profiler_options options;
    opd_profile *p;
    int64_t n;
    memset(&options, 0, sizeof options);
    options.shapes = round & 1;
    CHECK_INT(opd_profiler_begin(&options), 0);
    (void)usleep(1000);
    p = opd_profiler_end();
    CHECK(p != NULL);
    (void)opd_profile_rows(p, &n);
    (void)opd_profile_table(p, NULL, 0);
    opd_profile_free(p);
}
TEST(a_profile_is_taken_while_threads_call) { with_workers(profile_once, 20); }

/* An event that begins while the profiler is stopped is not over before its begin. */
static void *spans(void *arg) {
    (void)__atomic_add_fetch(&running_threads, 1, __ATOMIC_RELAXED);
    while (!__atomic_load_n(&stop_threads, __ATOMIC_RELAXED)) { opd_span_close(opd_span_open("span")); }
    return arg;
}
TEST(no_event_ends_before_it_begins) {
    char path[64], line[1000];
    pthread_t id[WORKERS];
    int i, round, wrong = 0;
    FILE *f;
    (void)snprintf(path, sizeof path, "/tmp/opd_trace_%ld.json", (long)getpid());
    running_threads = stop_threads = 0;
    for (i = 0; i < WORKERS; i++) { CHECK_INT(pthread_create(&id[i], NULL, spans, NULL), 0); }
    while (__atomic_load_n(&running_threads, __ATOMIC_RELAXED) < WORKERS) { (void)usleep(1000); }
    for (round = 0; round < 60; round++) {
        opd_profile *p;
        CHECK_INT(opd_profiler_begin(NULL), 0);
        (void)usleep(50);
        p = opd_profiler_end();
        CHECK_INT(opd_profile_write_trace(p, path), 0);
        opd_profile_free(p);
        f = fopen(path, "r");
        while (f && fgets(line, sizeof line, f)) { wrong += strstr(line, ".-") != NULL || strstr(line, ":-") != NULL || strstr(line, ": -") != NULL; }
        CHECK(f != NULL);
        if (f) { (void)fclose(f); }
    }
    __atomic_store_n(&stop_threads, 1, __ATOMIC_RELAXED);
    for (i = 0; i < WORKERS; i++) { CHECK_INT(pthread_join(id[i], NULL), 0); }
    CHECK_INT(wrong, 0);
    (void)remove(path);
}

/* When a plug-in is unloaded, its observers are removed. */
TEST(observers_of_a_plugin_go_with_it) {
    static const char source[] =
        "#include \"opdispatch.h\"\n"
        "static void *begin(const opd_event *e, void *user) { opd_warn(\"saw %s\", e->name); return user; }\n"
        "OPD_LIBRARY(watcher, lib) {\n"
        "    opd_observer o = {.begin = begin};\n"
        "    opd_def(lib, \"nothing(Tensor self) -> Tensor\");\n"
        "    opd_observer_add(&o);\n"
        "}\n";
    char folder[] = "/tmp/opd_observe_XXXXXX", command[600];
    opd_tensor *x = vec(2, false);
    opd_plugin *p;
    if (system("cc --version >/dev/null 2>&1") != 0) { SKIP("no cc"); }
    CHECK_OR_RETURN(mkdtemp(folder) != NULL);
    (void)setenv("XDG_CACHE_HOME", folder, 1);
    (void)setenv("OPD_INCLUDE", check_include(), 0);
    p = opd_compile_and_load_inline("watcher", source, NULL);
    CHECK_OK();
    opd_log_set(hear, NULL);
    warnings = 0;
    opd_add(x, x);
    CHECK_INT(warnings, 1);
    CHECK_STR(warned, "saw aten::add");
    if (p) { CHECK_INT(opd_plugin_unload(p), 0); }
    opd_add(x, x);
    CHECK_INT(warnings, 1);
    opd_log_set(NULL, NULL);
    (void)snprintf(command, sizeof command, "rm -rf %s", folder);
    CHECK_INT(system(command), 0);
}

//-- the profiler ---------------------------------------------------------------------------------------------------

static opd_profiler_options with_order(opd_profile_order order, bool shapes) {
    opd_profiler_options o;
    memset(&o, 0, sizeof o);
    o.order = order;
    o.shapes = shapes;
    o.this_thread = true;
    return o;
}
static const opd_profile_row *row_of(const opd_profile *p, const char *name) {
    int64_t i, n;
    const opd_profile_row *rows = opd_profile_rows(p, &n);
    for (i = 0; i < n; i++) {
        if (strcmp(rows[i].name, name) == 0) { return &rows[i]; }
    }
    return NULL;
}
static opd_profile *profiled(const opd_profiler_options *options) {
    opd_tensor *x, *y;
    opd_span *s, *t;
    int i;
    if (opd_profiler_begin(options)) { return NULL; }
    OPD_SCOPE {
        x = vec(1000, true);
        s = opd_span_open("step");
        for (i = 0; i < 3; i++) { y = call1("watch::two.overload", x); }
        t = opd_span_open("step");
        opd_backward(opd_sum(y));
        opd_span_close(t);
        opd_span_close(s);
    }
    return opd_profiler_end();
}

TEST(rows_add_up) {
    opd_profile *p = profiled(NULL);
    const opd_profile_row *two, *add, *mul, *step, *rows;
    int64_t i, n, self = 0, total = 0, bytes = 0;
    CHECK_OR_RETURN(p != NULL);
    two = row_of(p, "watch::two");
    add = row_of(p, "aten::add");
    mul = row_of(p, "aten::mul");
    step = row_of(p, "step");
    CHECK_OR_RETURN(two && add && mul && step && row_of(p, "MulBackward0") && row_of(p, "SumBackward0"));
    CHECK_INT(two->calls, 3);
    CHECK_INT(step->calls, 2);
    CHECK(two->shapes == NULL);
    CHECK(two->self_ns > 0 && two->self_ns < two->total_ns);
    CHECK(two->bytes >= 3 * 2 * 4000 && add->bytes >= 3 * 4000);
    CHECK(two->self_bytes < two->bytes && add->self_bytes == add->bytes);
    rows = opd_profile_rows(p, &n);
    for (i = 0; i < n; i++) {
        self += rows[i].self_ns;
        bytes += rows[i].self_bytes;
        CHECK(rows[i].self_ns >= 0 && rows[i].self_ns <= rows[i].total_ns);
        if (i > 0) { CHECK(rows[i - 1].self_ns >= rows[i].self_ns); }
        if (strcmp(rows[i].name, "step") == 0 || strncmp(rows[i].name, "aten::ones", 10) == 0) { total += rows[i].total_ns; }
    }
    CHECK(step->total_ns <= self && step->bytes <= bytes);      /* the span inside is not counted twice */
    CHECK_INT(self, total);                       /* ones, then the span: nothing else is at the top */
    opd_profile_free(p);
}

static void *greedy_begin(const opd_event *e, void *user) { (void)e; vec(5000, false); return user; }
static void greedy_end(const opd_event *e, void *context, void *user) { (void)context; (void)greedy_begin(e, user); }
TEST(what_callbacks_allocate_does_not_count) {
    opd_observer o = sayer(round_);
    opd_profile *plain = profiled(NULL), *greedy;
    int64_t h;
    opd_profile_free(plain);                      /* the first profile has allocated memory that is kept */
    plain = profiled(NULL);
    o.begin = greedy_begin;
    o.end = greedy_end;
    h = opd_observer_add_local(&o);
    greedy = profiled(NULL);
    opd_observer_remove(h);
    CHECK_OR_RETURN(plain && greedy && row_of(plain, "watch::two") && row_of(greedy, "watch::two"));
    CHECK_INT(row_of(greedy, "watch::two")->bytes, row_of(plain, "watch::two")->bytes);
    CHECK_INT(row_of(greedy, "step")->bytes, row_of(plain, "step")->bytes);
    opd_profile_free(plain);
    opd_profile_free(greedy);
}

TEST(rows_by_total_calls_and_bytes) {
    static const opd_profile_order orders[] = {OPD_PROFILE_BY_TOTAL, OPD_PROFILE_BY_CALLS, OPD_PROFILE_BY_BYTES};
    int k;
    for (k = 0; k < 3; k++) {
        opd_profiler_options o = with_order(orders[k], false);
        opd_profile *p = profiled(&o);
        int64_t i, n;
        const opd_profile_row *r = opd_profile_rows(p, &n);
        CHECK(n > 5);
        for (i = 1; i < n; i++) {
            CHECK(k == 0 ? r[i - 1].total_ns >= r[i].total_ns : k == 1 ? r[i - 1].calls >= r[i].calls
                                                              : r[i - 1].bytes >= r[i].bytes);
        }
        opd_profile_free(p);
    }
}

TEST(rows_by_shapes) {
    opd_profiler_options o = with_order(OPD_PROFILE_BY_CALLS, true);
    opd_tensor *a = opd_ones(OPD_INTS(2, 3), OPD_FLOAT32), *b = vec(3, false), *list[2];
    opd_profile *p;
    const opd_profile_row *r;
    int64_t i, n, found = 0;
    list[0] = a;
    list[1] = a;
    CHECK_INT(opd_profiler_begin(&o), 0);
    opd_add(a, b);
    opd_add(a, b);
    opd_add(b, b);
    opd_cat(opd_tensors_of(list, 2), 0);
    p = opd_profiler_end();
    CHECK_OR_RETURN(p != NULL);
    r = opd_profile_rows(p, &n);
    for (i = 0; i < n; i++) {
        CHECK(r[i].shapes != NULL);
        if (strcmp(r[i].name, "aten::add") == 0 && r[i].calls == 2) { found++; CHECK_STR(r[i].shapes, "[[2, 3], [3], []]"); }
        if (strcmp(r[i].name, "aten::add") == 0 && r[i].calls == 1) { found++; CHECK_STR(r[i].shapes, "[[3], [3], []]"); }
        if (strcmp(r[i].name, "aten::cat") == 0) { found++; CHECK_STR(r[i].shapes, "[[[2, 3], [2, 3]], []]"); }
    }
    CHECK_INT(found, 3);
    opd_profile_free(p);
}

TEST(the_table_is_aligned) {
    static char text[16384], small[40];
    int shapes;
    for (shapes = 0; shapes < 2; shapes++) {
        opd_profiler_options o = with_order(OPD_PROFILE_BY_SELF, shapes != 0);
        opd_profile *p = profiled(&o);
        size_t n, width = 0, calls_end;
        const char *line, *end, *head;
        CHECK_OR_RETURN(p != NULL);
        n = opd_profile_table(p, text, sizeof text);
        CHECK(n < sizeof text && strlen(text) == n);
        CHECK_INT(opd_profile_table(p, NULL, 0), n);
        CHECK_INT(opd_profile_table(p, small, sizeof small), n);
        CHECK(strlen(small) == sizeof small - 1 && strncmp(small, text, sizeof small - 1) == 0);
        head = strstr(text, "\nName") + 1;
        width = (size_t)(head - text) - 1;
        calls_end = (size_t)(strstr(head, " Calls") - head) + 6;
        for (line = text; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            if (line[0] == '-') { CHECK_INT(end - line, width); }
            else if (strncmp(line, "Profiled for ", 13) != 0) {
                CHECK(shapes ? (size_t)(end - line) <= width : (size_t)(end - line) == width);
                CHECK(line[calls_end - 1] != ' ' && line[calls_end] == ' ');      /* a column is right-aligned */
            }
        }
        CHECK(strstr(text, "\nSum ") && strstr(text, "watch::two ") && strstr(text, "100.00%"));
        CHECK((strstr(text, "[[1000]]") != NULL) == (shapes != 0));
        opd_profile_free(p);
    }
}

TEST(one_profiler_at_a_time) {
    opd_profile *p;
    int64_t n = 1;
    CHECK(opd_profiler_end() == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "no profiler is running");
    CHECK_INT(opd_profiler_begin(NULL), 0);
    CHECK_INT(opd_profiler_begin(NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "already running");
    p = opd_profiler_end();
    CHECK(p != NULL && opd_profile_rows(p, &n) == NULL);
    CHECK_INT(n, 0);
    CHECK(opd_profile_table(p, NULL, 0) > 0);
    opd_profile_free(p);
    opd_profile_free(NULL);
    CHECK(opd_profile_rows(NULL, &n) == NULL && n == 0 && opd_profile_table(NULL, NULL, 0) == 0);
    CHECK_INT(opd_profile_write_trace(NULL, "x"), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the profile or the path is NULL");
}

static void *stops_elsewhere(void *arg) {
    CHECK(opd_profiler_end() == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the profiler was started for another thread");
    return arg;
}
static void *starts_its_own(void *arg) {
    opd_profiler_options options;
    memset(&options, 0, sizeof options);
    options.this_thread = true;
    CHECK_INT(opd_profiler_begin(&options), 0);
    OPD_SCOPE { opd_add(vec(2, false), vec(2, false)); }
    return arg;
}
TEST(a_profile_of_one_thread_is_stopped_there) {
    opd_profile *p;
    (void)starts_its_own(NULL);
    run_thread(stops_elsewhere, NULL);
    p = opd_profiler_end();
    CHECK(p != NULL && row_of(p, "aten::add") != NULL);
    opd_profile_free(p);
    run_thread(starts_its_own, NULL);             /* or when it has ended */
    p = opd_profiler_end();
    CHECK(p != NULL && row_of(p, "aten::add") != NULL);
    opd_profile_free(p);
}

//-- the trace ------------------------------------------------------------------------------------------------------

static char trace_text[1 << 20];
/* Writes p's trace, reads it, and lets Python check it.  Returns false if there is no Python. */
static bool trace(const opd_profile *p) {
    char path[64], command[128];
    size_t n;
    FILE *f;
    int rc;
    (void)snprintf(path, sizeof path, "/tmp/opd_trace_%ld.json", (long)getpid());
    CHECK_INT(opd_profile_write_trace(p, path), 0);
    f = fopen(path, "r");
    CHECK(f != NULL);
    n = f ? fread(trace_text, 1, sizeof trace_text - 1, f) : 0;
    trace_text[n] = 0;
    if (f) { (void)fclose(f); }
    (void)snprintf(command, sizeof command, "python3 -m json.tool %s >/dev/null", path);
    rc = system("python3 -c pass >/dev/null 2>&1") == 0 ? system(command) : -1;
    if (rc >= 0) { CHECK_INT(rc, 0); }
    (void)unlink(path);
    return rc >= 0;
}
static int times(const char *part) {
    int n = 0;
    const char *at = trace_text;
    for (; (at = strstr(at, part)) != NULL; at++) { n++; }
    return n;
}

TEST(what_runs_at_the_stop_ends_there) {
    opd_profile *p;
    opd_span *a, *b, *c;
    const opd_profile_row *outer, *inner, *innermost;
    opd_tensor *x = vec(2, false);
    static char first[4096];
    CHECK_INT(opd_profiler_begin(NULL), 0);
    a = opd_span_open("outer");
    b = opd_span_open("inner");
    c = opd_span_open("innermost");
    opd_span_close(b);                            /* not in order: what comes now is still in the innermost */
    opd_add(x, x);
    p = opd_profiler_end();
    outer = row_of(p, "outer");
    inner = row_of(p, "inner");
    innermost = row_of(p, "innermost");
    CHECK_OR_RETURN(outer && inner && innermost);
    CHECK(outer->total_ns >= inner->total_ns && outer->calls == 1);
    CHECK(innermost->self_ns < innermost->total_ns);
    (void)trace(p);
    memcpy(first, trace_text, sizeof first);
    opd_span_close(c);
    opd_span_close(a);
    (void)trace(p);
    CHECK(memcmp(first, trace_text, sizeof first) == 0 && strlen(trace_text) > 100 && first[sizeof first - 1] == 0);
    opd_profile_free(p);
    CHECK_OK();
}

/* The profiler is stopped between choosing who is told of an event and telling the profiler. */
static opd_profile *stopped;
static void *stops(const opd_event *e, void *user) {
    (void)e;
    if (!stopped) { stopped = opd_profiler_end(); }
    return user;
}
TEST(an_event_that_begins_after_the_stop_is_too_late) {
    opd_tensor *x = vec(2, false);
    opd_observer o;
    int64_t h, n;
    memset(&o, 0, sizeof o);
    o.begin = stops;
    stopped = NULL;
    h = opd_observer_add(&o);
    CHECK_INT(opd_profiler_begin(NULL), 0);
    opd_add(x, x);
    CHECK_OR_RETURN(stopped != NULL);
    CHECK(opd_profile_rows(stopped, NULL) == NULL && opd_profile_rows(stopped, &n) == NULL && n == 0);
    (void)trace(stopped);
    CHECK_INT(times("aten::add"), 0);
    opd_profile_free(stopped);
    CHECK(opd_observer_remove(h));
}

TEST(the_trace_is_json_whatever_names_there_are) {
    opd_profile *p;
    bool judged;
    CHECK_INT(opd_profiler_begin(NULL), 0);
    opd_span_close(opd_span_open("a \"quoted\" \\ name\nwith\ttwo lines\x7f"));
    opd_span_close(opd_span_open("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"));
    opd_span_close(opd_span_open("\xff\xc3(\xe2\x82 \xed\xa0\x80 \xc0\xaf \xf5\x80\x80\x80"));
    (void)setlocale(LC_ALL, "de_DE.UTF-8");       /* whose decimal point is a comma, where it is there */
    p = opd_profiler_end();
    judged = trace(p);
    (void)setlocale(LC_ALL, "C");
    CHECK_INT(times("\"ph\":\"X\""), 3);
    CHECK_INT(times("\"a \\\"quoted\\\" \\\\ name\\u000awith\\u0009two lines\\u007f\""), 1);
    CHECK_INT(times("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"), 1);
    CHECK_INT(times("\"\\ufffd\\ufffd(\\ufffd\\ufffd \\ufffd\\ufffd\\ufffd \\ufffd\\ufffd \\ufffd\\ufffd\\ufffd\\ufffd\""), 1);
    opd_profile_free(p);
    if (!judged) { SKIP("no python3"); }
}

TEST(arrows_go_from_calls_to_their_nodes) {
    opd_profiler_options o = with_order(OPD_PROFILE_BY_SELF, true);
    opd_tensor *x = vec(3, true), *y;
    opd_backward_options keep;
    opd_profile *p;
    memset(&keep, 0, sizeof keep);
    keep.retain_graph = true;
    CHECK_INT(opd_profiler_begin(&o), 0);
    y = opd_sum(call1("watch::two.overload", x));      /* two nodes below two, and sum's */
    opd_eq(x, x);                                 /* would have the next number; makes no node */
    opd_mul(x, x);                                /* a node that nobody runs */
    opd_backward_with(&y, 1, &keep);
    opd_backward(y);
    p = opd_profiler_end();
    (void)trace(p);
    CHECK_INT(times("\"ph\":\"s\""), 6);
    CHECK_INT(times("\"ph\":\"f\""), 6);
    CHECK_INT(times("\"bp\":\"e\""), 6);
    CHECK_INT(times("\"id\":6,"), 2);
    CHECK_INT(times("\"name\":\"SumBackward0\""), 2);
    CHECK(times("\"Input Dims\":[[3], [3], []]") >= 1);         /* add */
    CHECK_INT(times("\"cat\":\"autograd\""), 8);  /* three nodes and the leaf, twice */
    {                                             /* an arrow begins where its call does: at add, not at two */
        const char *call = strstr(trace_text, "\"name\":\"aten::add\""), *ts;
        char at[64];
        CHECK_OR_RETURN(call != NULL);
        ts = strstr(call, "\"ts\":");
        (void)snprintf(at, sizeof at, "%.*s}", (int)strcspn(ts, ",}"), ts);
        CHECK_INT(times(at), 2);
    }
    opd_profile_free(p);
}

TEST(arrows_cross_threads) {
    opd_profile *p;
    CHECK_INT(opd_profiler_begin(NULL), 0);
    run_thread(forward_elsewhere, NULL);
    opd_backward(made);
    p = opd_profiler_end();
    (void)trace(p);
    CHECK_INT(times("\"ph\":\"s\""), 2);
    CHECK_INT(times("\"ph\":\"f\""), 2);
    CHECK_INT(times("thread_name"), 2);
    opd_profile_free(p);
    opd_release(made);
}

TEST(a_trace_that_cannot_be_written_is_an_error) {
    opd_profile *p = profiled(NULL);
    CHECK_INT(opd_profile_write_trace(p, "/nonexistent/folder/trace.json"), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "'/nonexistent/folder/trace.json' cannot be written");
    if (access("/dev/full", W_OK) == 0) {
        CHECK_INT(opd_profile_write_trace(p, "/dev/full"), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "cannot be written");
    }
    opd_profile_free(p);
}

//-- out of memory --------------------------------------------------------------------------------------------------

static int try_all(void) {
    opd_profiler_options options = with_order(OPD_PROFILE_BY_SELF, true);
    opd_observer o = sayer(round_);
    opd_profile *p = NULL;
    int64_t h, rc = -1, open;
    nlog = 0;
    h = opd_observer_add(&o);
    if (h && opd_profiler_begin(&options) == 0) {
        OPD_SCOPE {
            opd_tensor *x = vec(8, true);
            opd_span *s = opd_span_open("span");
            opd_backward(opd_sum(call1("watch::two.overload", x)));
            opd_span_close(s);
        }
        p = opd_profiler_end();
        if (p) { (void)opd_profile_table(p, NULL, 0); rc = opd_profile_write_trace(p, "/dev/null"); }
        opd_profile_free(p);
    }
    if (h) { CHECK(opd_observer_remove(h)); }
    for (open = 0; nlog > 0; nlog--) { open += log_[nlog - 1].what == '(' ? 1 : -1; }
    CHECK_INT(open, 0);                           /* every begin has its end */
    return opd_ok() ? (int)rc : -1;
}
TEST(every_allocation_may_fail) {
    int forever, n, rc;
    int64_t live, seen_;
    CHECK_INT(try_all(), 0);
    CHECK_INT(try_all(), 0);
    CHECK_OK();
    for (forever = 0; forever < 2; forever++) {
        for (n = 1; n < 500; n++) {
            live = opd_memory_stats().live;
            (void)opd_memory_fail_at(n, forever != 0);
            rc = try_all();
            seen_ = opd_memory_fail_at(0, false);
            if (seen_ < n) { break; }
            CHECK(rc == 0 || opd_error_code() == OPD_ERROR_MEMORY);
            opd_error_clear();
            CHECK_INT(opd_memory_stats().live, live);
            CHECK_INT(try_all(), 0);
        }
        CHECK(n > 20 && n < 500);
    }
}

TEST(events_without_memory_are_counted) {
    static char text[16384];
    opd_tensor *x = vec(2, false);
    opd_op *op = opd_find("watch::same");
    opd_value v[3], r[1];
    opd_profile *p;
    const opd_profile_row *same;
    int i, before;
    v[0] = opd_value_tensor(x);
    v[1] = opd_value_int(1);
    v[2] = opd_value_str("x");
    for (before = 0; before < 2; before++) {      /* no memory for the thread's first record; for one of the next */
        const char *missing;
        CHECK_INT(opd_profiler_begin(NULL), 0);
        for (i = 0; i < before; i++) { CHECK_INT(opd_call_all(op, r, v, 3), 0); }
        (void)opd_memory_fail_at(1, true);        /* the call allocates nothing, the record must */
        for (i = 0; i < 50; i++) { CHECK_INT(opd_call_all(op, r, v, 3), 0); }
        (void)opd_memory_fail_at(0, false);
        CHECK_OK();
        p = opd_profiler_end();
        (void)opd_profile_table(p, text, sizeof text);
        missing = strstr(text, " events are missing: out of memory");
        CHECK_OR_RETURN(missing != NULL);
        while (missing[-1] >= '0' && missing[-1] <= '9') { missing--; }
        same = row_of(p, "watch::same");
        CHECK((same != NULL) == (before == 1));
        CHECK_INT(atoi(missing) + (same ? same->calls : 0), 50 + before);
        opd_profile_free(p);
    }
}
/* A full profile counts further events, and reports their number. */
TEST(a_full_profile_counts) {
    static char text[16384];
    opd_tensor *x = vec(2, false);
    opd_profile *p;
    const opd_profile_row *row;
    int i;
    (void)inside_profile_most(10);
    CHECK_INT(opd_profiler_begin(NULL), 0);
    for (i = 0; i < 25; i++) { (void)opd_neg(x); }
    opd_log_set(hear, NULL);
    warnings = 0;
    p = opd_profiler_end();
    CHECK_INT(warnings, 1);
    opd_log_set(NULL, NULL);
    row = row_of(p, "aten::neg");
    CHECK(row && row->calls == 10);
    (void)opd_profile_table(p, text, sizeof text);
    CHECK(strstr(text, "; 15 events are missing: it is full") != NULL);
    opd_profile_free(p);
    (void)inside_profile_most(10000000);
}

CHECK_MAIN()
