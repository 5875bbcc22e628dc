/* Handles of kernels (opd_kernel_get): a kernel calls the kernel that it replaces.  Each mechanism that a call passes
   through: autograd, forward mode, vmap, traces, fakes, autocast, out= forms, stored dtypes, observers, threads; and
   libraries that are closed in any order.  THREADED. */
#include "../../opdispatch.h"
#include "../check.h"

static int called;                                /* how often `plus_one` ran */
static opd_library *overriding(const char *ns, const char *key) {
    opd_library *lib = opd_library_open(OPD_IMPL, ns, key, "handles.c", 1);
    CHECK(lib != NULL);
    return lib;
}
static opd_tensor *pair_of(double first, double second) {
    double data[2] = {first, second};
    return opd_tensor_from(data, OPD_INTS(2), OPD_FLOAT64);
}
/* The first result of the kernel that is replaced. */
static int pass(opd_call *call) {
    called++;
    return opd_kernel_call((const opd_kernel_handle *)opd_call_user(call), call);
}
/* What the replaced kernel gives for the first argument, plus 1. */
static int plus_one_uncounted(opd_call *call) {
    opd_value ret;
    if (opd_kernel_call_with((const opd_kernel_handle *)opd_call_user(call), &ret, opd_call_args(call), opd_call_nargs(call))) {
        return -1;
    }
    return opd_return_tensor(call, opd_add_Scalar(ret.u.t, opd_value_int(1)));
}
static int plus_one(opd_call *call) {
    called++;
    return plus_one_uncounted(call);
}
/* Registers fn at a key in a new library, with a handle of the kernel that it replaces as its user pointer. */
static opd_library *replace(const char *name, const char *key, opd_kernel fn) {
    char full[80];
    opd_library *lib = overriding("aten", key);
    (void)snprintf(full, sizeof full, "aten::%s", name);
    CHECK_INT(opd_impl_key(lib, name, key, fn, opd_kernel_get(opd_find(full), key), opd_kernel_free), 0);
    called = 0;
    return lib;
}

TEST(an_override_calls_what_it_replaces) {
    opd_library *lib = replace("cosh", "CPU", plus_one);
    CHECK_NEAR(opd_item_f64(opd_cosh(opd_full(OPD_INTS(1), opd_value_double(0), OPD_FLOAT64))), 2, 0);
    CHECK_INT(called, 1);
    opd_library_close(lib);
    lib = replace("cosh", "CPU", pass);
    CHECK_NEAR(opd_item_f64(opd_cosh(opd_full(OPD_INTS(1), opd_value_double(0), OPD_FLOAT64))), 1, 0);
    CHECK_INT(called, 1);
    opd_library_close(lib);
    CHECK_NEAR(opd_item_f64(opd_cosh(opd_full(OPD_INTS(1), opd_value_double(0), OPD_FLOAT64))), 1, 0);
    CHECK_INT(called, 1);
}

TEST(kernels_with_several_results_numbers_and_lists) {
    opd_library *libs[3] = {replace("sort", "CPU", pass), replace("split_with_sizes", "CPU", pass), replace("equal", "CPU", pass)};
    opd_tensor *x = pair_of(2, 1), *both[2];
    opd_value args[2], ret;
    args[0] = opd_value_tensor(x);
    CHECK_INT(opd_call_tensors(opd_find("aten::sort"), both, args, 1), 0);
    CHECK_NEAR(opd_item_f64(opd_select(both[0], 0, 1)), 2, 0);
    CHECK_INT((int)opd_item_f64(opd_select(both[1], 0, 0)), 1);
    const int64_t sizes[2] = {1, 1};
    args[1] = opd_value_ints(sizes, 2);
    CHECK_INT((int)opd_call_list(opd_find("aten::split_with_sizes"), args, 2).n, 2);
    args[1] = args[0];
    CHECK_INT(opd_call_all(opd_find("aten::equal"), &ret, args, 2), 0);
    CHECK_INT((int)ret.u.i, 1);
    CHECK_INT(called, 3);
    for (int i = 0; i < 3; i++) { opd_library_close(libs[i]); }
}

/* Three kernels on top of each other, undone in each order: a handle whose kernel is gone fails, the others work. */
TEST(libraries_are_closed_in_any_order) {
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    for (int turn = 0; turn < 6; turn++) {
        opd_library *libs[3] = {replace("cosh", "CPU", plus_one), replace("cosh", "CPU", plus_one), replace("cosh", "CPU", plus_one)};
        opd_tensor *zero = opd_zeros(OPD_INTS(1), OPD_FLOAT64);
        CHECK_NEAR(opd_item_f64(opd_cosh(zero)), 4, 0);
        bool open[3] = {true, true, true};
        for (int step = 0; step < 3; step++) {
            open[orders[turn][step]] = false;
            opd_library_close(libs[orders[turn][step]]);
            int newest = open[2] ? 2 : open[1] ? 1 : open[0] ? 0 : -1, sum = 1, at = newest;
            for (; at >= 0 && open[at]; at--) { sum++; }
            opd_tensor *y = opd_cosh(zero);
            if (at < 0) { CHECK_NEAR(opd_item_f64(y), sum, 0); }
            else {                                /* the kernel below `at` was closed */
                CHECK(y == NULL);
                CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the kernel of aten::cosh for CPU (registered at handles.c:1) is not registered any more");
            }
        }
    }
}

TEST(a_handle_stays_with_its_kernel) {
    opd_op *op = opd_find("aten::cosh");
    opd_tensor *zero = opd_zeros(OPD_INTS(1), OPD_FLOAT64);
    const opd_value arg = opd_value_tensor(zero);
    opd_kernel_handle *first = opd_kernel_get(op, "CPU"), *second, *again;
    opd_library *lib = replace("cosh", "CPU", plus_one);
    opd_value ret;
    second = opd_kernel_get(op, "CPU");
    CHECK_INT(opd_kernel_call_with(first, &ret, &arg, 1), 0);
    CHECK_NEAR(opd_item_f64(ret.u.t), 1, 0);
    CHECK_INT(opd_kernel_call_with(second, &ret, &arg, 1), 0);
    CHECK_NEAR(opd_item_f64(ret.u.t), 2, 0);
    /* the same library registers again: the older kernel stays registered */
    CHECK_INT(opd_impl_key(lib, "cosh", "CPU", plus_one, opd_kernel_get(op, "CPU"), opd_kernel_free), 0);
    CHECK_NEAR(opd_item_f64(opd_cosh(zero)), 3, 0);
    CHECK_INT(opd_kernel_call_with(second, &ret, &arg, 1), 0);
    CHECK_NEAR(opd_item_f64(ret.u.t), 2, 0);
    again = opd_kernel_get(op, "CPU");
    opd_library_close(lib);
    CHECK_INT(opd_kernel_call_with(second, &ret, &arg, 1), -1);
    CHECK(ret.tag == OPD_TAG_NONE);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "its library was closed: free the handle, and get a new one (opd_kernel_get)");
    CHECK_INT(opd_kernel_call_with(again, &ret, &arg, 1), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "is not registered any more");
    CHECK_INT(opd_kernel_call_with(first, &ret, &arg, 1), 0);
    opd_kernel_free(again);
    opd_kernel_free(first);
    opd_kernel_free(second);
    opd_kernel_free(NULL);
}

static opd_kernel_handle *other_handle;
static int calls_another(opd_call *call) { return opd_kernel_call(other_handle, call); }
static int calls_twice(opd_call *call) {
    const opd_kernel_handle *handle = (const opd_kernel_handle *)opd_call_user(call);
    return opd_kernel_call(handle, call) || opd_kernel_call(handle, call);
}
TEST(what_is_no_kernel_and_no_call) {
    opd_op *op = opd_find("aten::cosh");
    const opd_value arg = opd_value_tensor(pair_of(0, 0));
    opd_value ret;
    CHECK(opd_kernel_get(NULL, "CPU") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "opd_kernel_get: the operator is NULL");
    CHECK(opd_kernel_get(op, "Autograd") == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_kernel_get: Autograd is not the key of a kernel");
    CHECK(opd_kernel_get(op, "Nokey") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "could not parse dispatch key");
    CHECK(opd_kernel_get(op, "XLA") == NULL);
    CHECK_ERROR(OPD_ERROR_NO_KERNEL, "no kernel of aten::cosh runs for XLA. There are these: [");
    CHECK_INT(opd_kernel_call_with(NULL, &ret, &arg, 1), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the handle of a kernel is NULL");
    other_handle = opd_kernel_get(opd_find("aten::sinh"), "CPU");
    CHECK_INT(opd_kernel_call_with(other_handle, &ret, &arg, 0), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "aten::sinh() is missing value for argument 'self'");
    opd_library *lib = replace("cosh", "CPU", calls_another);
    CHECK(opd_cosh(arg.u.t) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "the handle is of a kernel of aten::sinh, but the call is of aten::cosh");
    opd_library_close(lib);
    lib = replace("cosh", "CPU", calls_twice);
    CHECK(opd_cosh(arg.u.t) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "opd_kernel_call was called after the kernel had returned a result");
    opd_library_close(lib);
    opd_kernel_free(other_handle);
}

static int recursing(opd_call *call) {
    opd_value ret;
    return opd_call_at(opd_call_operator(call), "CPU", &ret, opd_call_args(call), 1);
}
TEST(an_override_that_finds_itself_is_told_the_way) {
    opd_library *lib = replace("cosh", "CPU", recursing);
    CHECK(opd_cosh(pair_of(0, 0)) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "or call the kernel that it replaces (opd_kernel_get, before it is registered)");
    opd_library_close(lib);
}

TEST(operators_that_go) {
    opd_library *d = opd_library_open(OPD_DEF, "goes", NULL, "d.c", 1);
    CHECK_INT(opd_def(d, "op(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(d, "op", "CPU", plus_one, opd_kernel_get(opd_find("aten::cosh"), "CPU"), opd_kernel_free), 0);
    opd_op *op = opd_find("goes::op");
    opd_kernel_handle *handle = opd_kernel_get(op, "CPU");
    const opd_value arg = opd_value_tensor(pair_of(0, 0));
    opd_value ret;
    CHECK_INT(opd_kernel_call_with(handle, &ret, &arg, 1), 0);
    opd_library_close(d);
    CHECK_INT(opd_kernel_call_with(handle, &ret, &arg, 1), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the kernel of goes::op for CPU (registered at d.c:1) is not registered any more");
    CHECK(opd_kernel_get(op, "CPU") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "the operator goes::op is not defined any more");
    opd_kernel_free(handle);
}

//-- layers of a call --------------------------------------------------------------------------------------------------

static int f_cosh_sum(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    (void)user;
    (void)ninputs;
    outputs[0] = opd_sum(opd_cosh(inputs[0]));
    return outputs[0] ? 1 : -1;
}
static int f_cosh(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    (void)user;
    (void)ninputs;
    outputs[0] = opd_cosh(inputs[0]);
    return outputs[0] ? 1 : -1;
}
/* Differentiates cosh in each way, and runs it under vmap, in a trace and in fake mode.  `shift` is what the override
   adds to a result. */
static void through_all_layers(double shift) {
    opd_tensor *x = pair_of(0.5, -1), *t = opd_ones(OPD_INTS(2), OPD_FLOAT64), *y = NULL, *dy = NULL, *dx = NULL;
    opd_tensor *leaf = opd_tensor_set_requires_grad(pair_of(0.5, -1), true);
    opd_backward(opd_sum(opd_cosh(leaf)));
    CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(leaf), 0, 1)), sinh(-1), 1e-12);
    CHECK_INT(opd_grad(f_cosh_sum, NULL, &x, 1, NULL, &dx, 1), 1);
    CHECK_NEAR(opd_item_f64(opd_select(dx, 0, 0)), sinh(0.5), 1e-12);
    CHECK_INT(opd_hessian(f_cosh_sum, NULL, &x, 1, NULL, &dx, 1), 1);
    CHECK_NEAR(opd_item_f64(opd_select(opd_select(dx, 0, 0), 0, 0)), cosh(0.5), 1e-12 + fabs(shift));
    CHECK_INT(opd_jvp(f_cosh, NULL, &x, &t, 1, NULL, &y, &dy, 1), 1);
    CHECK_NEAR(opd_item_f64(opd_select(dy, 0, 1)), sinh(-1), 1e-12);
    CHECK_NEAR(opd_item_f64(opd_select(y, 0, 1)), cosh(-1) + shift, 1e-12);
    CHECK_INT(opd_vmap(f_cosh, NULL, &x, 1, NULL, &y, 1), 1);
    CHECK_NEAR(opd_item_f64(opd_select(y, 0, 1)), cosh(-1) + shift, 1e-12);
    char text[600];
    opd_graph *graph = opd_graph_trace(f_cosh, NULL, &x, 1, NULL);
    (void)opd_graph_print(graph, text, sizeof text);
    CHECK(strstr(text, "aten::cosh(") != NULL && strstr(text, "aten::add") == NULL);
    CHECK_INT(opd_graph_run(graph, &x, 1, &y, 1), 1);
    CHECK_NEAR(opd_item_f64(opd_select(y, 0, 1)), cosh(-1) + shift, 1e-12);
    opd_graph_free(graph);
    OPD_FAKE_MODE {
        y = opd_cosh(opd_fake_tensor(x));
        CHECK_INT((int)opd_numel(y), 2);
        opd_scope_return(y);
    }
    CHECK_OK();
}
TEST(each_key_of_a_call) {
    static const char *const keys[] = {"CPU", "Meta", "AutogradCPU", "ADInplaceOrView", "AutocastCPU", "FuncTorchBatched",
        "FuncTorchGradWrapper", "AutogradMeta"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        opd_kernel_handle *handle = opd_kernel_get(opd_find("aten::cosh"), keys[i]);
        if (!handle) {                            /* nothing to replace */
            CHECK_INT(opd_error_code(), OPD_ERROR_NO_KERNEL);
            opd_error_clear();
            continue;
        }
        opd_kernel_free(handle);
        opd_library *lib = replace("cosh", keys[i], pass);
        OPD_SCOPE { through_all_layers(0); }
        if (strcmp(keys[i], "CPU") == 0 || strcmp(keys[i], "AutogradCPU") == 0 || strcmp(keys[i], "Meta") == 0 ||
            strcmp(keys[i], "FuncTorchBatched") == 0) { CHECK(called > 0); }
        if (!opd_ok()) { printf("at %s\n", keys[i]); }
        opd_library_close(lib);
    }
    opd_library *lib = replace("cosh", "CPU", plus_one);
    OPD_SCOPE { through_all_layers(1); }
    opd_library_close(lib);
}

TEST(fallthrough_continues_below) {
    opd_op *op = opd_find("aten::cosh");
    opd_library *lib = overriding("aten", "AutogradCPU");
    CHECK_INT(opd_impl(lib, "cosh", OPD_FALLTHROUGH), 0);
    opd_library *over = replace("cosh", "AutogradCPU", pass);
    opd_kernel_handle *handle = opd_kernel_get(op, "ADInplaceOrView");
    opd_tensor *x = opd_tensor_set_requires_grad(pair_of(0, 0), true), *y = opd_cosh(x);
    CHECK_INT(called, 1);
    CHECK(y && !opd_tensor_requires_grad(y));     /* nothing was recorded */
    CHECK_NEAR(opd_item_f64(opd_select(y, 0, 1)), 1, 0);
    if (handle) {
        const opd_value arg = opd_value_tensor(x);
        opd_value ret;
        CHECK_INT(opd_kernel_call_with(handle, &ret, &arg, 1), 0);
        CHECK_NEAR(opd_item_f64(opd_select(ret.u.t, 0, 1)), 1, 0);
        opd_kernel_free(handle);
    }
    opd_library_close(over);
    opd_library_close(lib);
}

static int answers_two(opd_call *call) { return opd_return_tensor(call, opd_full(OPD_INTS(1), opd_value_int(2), OPD_FLOAT64)); }
TEST(fallbacks_and_composite_kernels) {
    opd_library *d = opd_library_open(OPD_DEF, "whole", NULL, "d.c", 1), *lib;
    const opd_value arg = opd_value_tensor(opd_tensor_set_requires_grad(pair_of(0, 0), true));
    opd_value ret;
    CHECK_INT(opd_def(d, "plain(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl_key(d, "plain", "CPU", answers_two, NULL, NULL), 0);
    CHECK_INT(opd_def(d, "any(Tensor x) -> Tensor"), 0);
    CHECK_INT(opd_impl(d, "any", answers_two), 0);
    /* the fallback for operators without a backward function */
    opd_kernel_handle *fallback = opd_kernel_get(opd_find("whole::plain"), "AutogradCPU");
    CHECK_INT(opd_kernel_call_with(fallback, &ret, &arg, 1), 0);
    CHECK_NEAR(opd_item_f64(ret.u.t), 2, 0);
    /* a composite kernel, which runs at each key */
    opd_kernel_handle *composite = opd_kernel_get(opd_find("whole::any"), "CPU");
    lib = opd_library_open(OPD_IMPL, "whole", "CPU", "handles.c", 2);
    CHECK_INT(opd_impl_key(lib, "any", "CPU", plus_one, composite, NULL), 0);
    CHECK_NEAR(opd_item_f64(opd_call_op(opd_find("whole::any"), &arg, 1)), 3, 0);
    opd_library_close(lib);
    opd_kernel_free(composite);
    opd_kernel_free(fallback);
    opd_library_close(d);
}

static opd_tensor *cosh_into(opd_tensor *out) {
    opd_value args[2];
    args[0] = opd_value_tensor(opd_zeros(OPD_INTS(2), OPD_FLOAT64));
    args[1] = opd_value_tensor(out);
    return opd_call_op(opd_find("aten::cosh.out"), args, 2);
}
TEST(in_place_and_out_forms) {
    opd_library *lib = replace("cosh", "CPU", pass);
    opd_tensor *x = pair_of(0, 0), *out = opd_empty(OPD_INTS(2), OPD_FLOAT64);
    CHECK(opd_cosh_(x) == x);
    CHECK_NEAR(opd_item_f64(opd_select(x, 0, 1)), 1, 0);
    CHECK(cosh_into(out) == out);
    CHECK_NEAR(opd_item_f64(opd_select(out, 0, 1)), 1, 0);
    CHECK_INT(called, 2);
    opd_library_close(lib);
    lib = replace("cosh", "CPU", plus_one);
    CHECK(cosh_into(out) == out);
    CHECK_NEAR(opd_item_f64(opd_select(out, 0, 1)), 2, 0);
    opd_library_close(lib);
    lib = replace("cosh.out", "CPU", pass);
    CHECK(cosh_into(out) == out);
    CHECK_NEAR(opd_item_f64(opd_select(out, 0, 1)), 1, 0);
    CHECK_INT(called, 1);
    opd_library_close(lib);
}

TEST(autocast_by_a_handle) {
    opd_library *lib = replace("mm", "AutocastCPU", pass);
    opd_tensor *a = opd_ones(OPD_INTS(2, 2), OPD_FLOAT32);
    CHECK_INT((int)opd_dtype(opd_mm(a, a)), OPD_FLOAT32);
    OPD_AUTOCAST(OPD_CPU) {
        CHECK_INT((int)opd_dtype(opd_mm(a, a)), OPD_BFLOAT16);
        CHECK(called > 0);
    }
    opd_library_close(lib);
}

/* Built-in kernels get tensors of stored dtypes only through a conversion, also from an override. */
TEST(stored_dtypes_by_a_handle) {
    const uint16_t data[2] = {7, 65535};
    opd_tensor *x = opd_tensor_from(data, OPD_INTS(2), OPD_UINT16);
    opd_tensor *want = opd_flip(x, OPD_INTS(0)), *more = opd_mul(x, x);
    opd_library *libs[2] = {replace("flip", "CPU", pass), replace("mul.Tensor", "CPU", pass)};
    CHECK_INT((int)opd_equal(opd_to_dtype(opd_flip(x, OPD_INTS(0)), OPD_INT64), opd_to_dtype(want, OPD_INT64)), 1);
    CHECK(called > 0);
    CHECK_INT((int)opd_equal(opd_to_dtype(opd_mul(x, x), OPD_INT64), opd_to_dtype(more, OPD_INT64)), 1);
    CHECK_INT((int)opd_dtype(opd_mul(x, x)), OPD_UINT16);
    opd_library_close(libs[1]);
    opd_library_close(libs[0]);
}

static int events;
static void *event_begin(const opd_event *event, void *user) {
    (void)user;
    events += strcmp(event->name, "aten::cosh") == 0;
    return NULL;
}
TEST(a_call_by_a_handle_is_no_event) {
    opd_library *lib = replace("cosh", "CPU", pass);
    opd_observer observer;
    memset(&observer, 0, sizeof observer);
    observer.begin = event_begin;
    events = 0;
    const int64_t handle = opd_observer_add_local(&observer);
    (void)opd_cosh(pair_of(0, 0));
    CHECK(opd_observer_remove(handle));
    CHECK_INT(events, 1);
    CHECK_INT(called, 1);
    opd_library_close(lib);
}

//-- threads -----------------------------------------------------------------------------------------------------------

#if !defined(OPD_NO_THREADS) && !defined(__TINYC__)
#include <pthread.h>
static opd_kernel_handle *shared;
static int stopping, wrong;
static void *calls_by_handle(void *unused) {
    (void)unused;
    while (!__atomic_load_n(&stopping, __ATOMIC_ACQUIRE)) {
        OPD_SCOPE {
            const opd_value arg = opd_value_tensor(opd_zeros(OPD_INTS(1), OPD_FLOAT64));
            opd_value ret;
            if (opd_kernel_call_with(shared, &ret, &arg, 1) == 0) {
                if (fabs(opd_item_f64(ret.u.t) - 2) > 0) { (void)__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED); }
            } else {
                if (opd_error_code() != OPD_ERROR_NOT_FOUND) { (void)__atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED); }
                opd_error_clear();
            }
            (void)opd_cosh(arg.u.t);
            opd_error_clear();
        }
    }
    return NULL;
}
TEST(calls_while_the_library_is_closed) {
    for (int turn = 0; turn < 20; turn++) {
        pthread_t threads[2];
        opd_library *lib = replace("cosh", "CPU", plus_one_uncounted);
        shared = opd_kernel_get(opd_find("aten::cosh"), "CPU");
        __atomic_store_n(&stopping, 0, __ATOMIC_RELEASE);
        for (int i = 0; i < 2; i++) { CHECK_INT(pthread_create(&threads[i], NULL, calls_by_handle, NULL), 0); }
        for (int i = 0; i < 20; i++) { (void)opd_cosh(pair_of(0, 0)); }
        opd_library_close(lib);
        __atomic_store_n(&stopping, 1, __ATOMIC_RELEASE);
        for (int i = 0; i < 2; i++) { CHECK_INT(pthread_join(threads[i], NULL), 0); }
        opd_kernel_free(shared);
    }
    CHECK_INT(wrong, 0);
    opd_library_close(replace("cosh", "CPU", plus_one_uncounted));   /* with nobody inside, gives back what calls held */
}
#endif

CHECK_MAIN()
