/* Autocast: policies, regions, the cache of weights, custom functions, the gradient scaler.  THREADED */
#include "../../opdispatch.h"
#include "../cases.h"
#if !defined(OPD_NO_THREADS) && !defined(__TINYC__)
#include <pthread.h>
#define THREADS 1
#endif

#define NPU OPD_PRIVATEUSE1

static opd_tensor *f32(opd_ints sizes) { return opd_randn(sizes, OPD_FLOAT32); }
static opd_tensor *weight(opd_ints sizes) { return opd_tensor_set_requires_grad(f32(sizes), true); }
static opd_tensor *in(opd_tensor *t, opd_scalar_type dtype) { return opd_to_dtype(t, dtype); }
#define DTYPE(t, d) CHECK_STR(opd_dtype_name(opd_dtype(t)), opd_dtype_name(d))
#define DTYPE_IS(a, b) CHECK_STR(opd_dtype_name(a), opd_dtype_name(b))
static opd_op *named_op(const char *name) { opd_op *op = opd_find(name); CHECK(op != NULL); return op; }
/* Returns 2 if a and b are equal, and 1 if they are nearly equal. */
static int near(opd_tensor *a, opd_tensor *b) {
    double worst = a && b ? opd_item_f64(opd_max(opd_abs(opd_sub(a, b)))) : NAN;
    return worst <= 0 ? 2 : worst < 1e-4;
}
static bool failed_with(const char *text) {
    bool right = strstr(opd_error_message(), text) != NULL;
    if (!right) { printf("    the error is: %s\n", opd_error_message()); }
    opd_error_clear();
    return right;
}

//-- policies of operators ---------------------------------------------------------------------------------------------

/* Writes the dtypes of the results of a call in a region to `have`.  Returns their number, or -1. */
static int dtypes_in_region(const op_case *c, const opd_value *args, char *have, size_t cap) {
    opd_value rets[MOST_RESULTS];
    opd_tensor *out[MOST_RESULTS];
    size_t used = 0;
    int i, n = -1;
    have[0] = 0;
    OPD_AUTOCAST(OPD_CPU) {
        if (opd_call_all((opd_op *)(uintptr_t)c->op, rets, args, c->nargs) == 0) { n = results_of(c->op, rets, out); }
    }
    for (i = 0; i < n; i++) {
        used += (size_t)snprintf(have + used, cap - used, "%s%s", i ? " " : "", opd_dtype_name(opd_dtype(out[i])));
    }
    return n;
}
/* The same with fake tensors. */
static int dtypes_of_fakes(const op_case *c, char *have, size_t cap) {
    static case_list lists[OPD_MAX_ARGS];
    opd_value args[OPD_MAX_ARGS];
    int i, k, n = -1;
    OPD_FAKE_MODE {
        for (i = 0; i < c->nargs; i++) {
            args[i] = c->args[i];
            if (args[i].tag == OPD_TAG_TENSOR) { args[i].u.t = opd_fake_tensor(args[i].u.t); }
            if (args[i].tag != OPD_TAG_TENSORS) { continue; }
            for (k = 0; k < args[i].n; k++) { lists[i].tensors[k] = opd_fake_tensor(c->args[i].u.tensors[k]); }
            args[i].u.tensors = lists[i].tensors;
        }
        n = dtypes_in_region(c, args, have, cap);
    }
    return n;
}
/* Returns whether the operators that this one calls depend on the data: with zeros also prod, which gives float32. */
static bool data_decide(const char *name) { return strcmp(name, "aten::cumprod_backward") == 0; }
/* One line of autocast.txt: operator | case | dtype of the inputs | dtypes of the results. */
static bool same_dtypes(op_case *c, char *line) {
    char *part[4], have[200], fake[200];
    const char *at;
    int i, n = -1, m = -1;
    for (i = 0; i < 4; i++) {
        part[i] = line;
        if ((line = strstr(line, " | ")) != NULL) { *line = 0; line += 3; } else if (i < 3) { return false; }
    }
    c->op = opd_find_quiet(part[0]);
    c->dtype = strcmp(part[2], "bfloat16") == 0 ? OPD_BFLOAT16 : OPD_FLOAT32;
    at = part[1];
    have[0] = fake[0] = 0;
    if (c->op && case_read_next(c, &at)) {
        m = dtypes_of_fakes(c, fake, sizeof fake);
        n = dtypes_in_region(c, c->args, have, sizeof have);
    }
    if (n >= 0 && m == n && strcmp(have, part[3]) == 0 && (data_decide(part[0]) || strcmp(fake, have) == 0)) { return true; }
    printf("    %s | %s | %s: %s, of fakes %s, not %s\n", part[0], part[1], part[2],
           n < 0 ? opd_error_message() : have, m < 0 ? opd_error_message() : fake, part[3]);
    opd_error_clear();
    return false;
}
TEST(dtypes_of_pytorch) {
    static char line[1 << 14];
    static op_case c;
    FILE *f = check_golden("autocast.txt");
    int n = 0, wrong = 0;
    CHECK_OR_RETURN(f != NULL);
    memset(&c, 0, sizeof c);
    while (fgets(line, sizeof line, f)) {
        opd_scope scope = opd_scope_open();
        line[strcspn(line, "\n")] = 0;
        if (!same_dtypes(&c, line)) { wrong++; }
        opd_scope_close(&scope);
        n++;
    }
    (void)fclose(f);
    CHECK_INT(wrong, 0);
    CHECK(n > 1500);
}

/* A device of a program: it uses the host's memory, and the CPU runs every operator. */
static void *npu_alloc(void *user, int unit, size_t bytes) { (void)user; (void)unit; return malloc(bytes); }
static void npu_free(void *user, int unit, void *data, size_t bytes) { (void)user; (void)unit; (void)bytes; free(data); }
static int npu_copy(void *user, void *to, int to_unit, const void *from, int from_unit, size_t bytes) {
    (void)user; (void)to_unit; (void)from_unit;
    memmove(to, from, bytes);
    return 0;
}
static void npu_on(void) {
    static opd_library *fallback;
    opd_backend_desc d;
    if (opd_device_count(NPU) == 0) {
        memset(&d, 0, sizeof d);
        d.name = "npu"; d.alloc = npu_alloc; d.free = npu_free; d.copy = npu_copy;
        CHECK_INT(opd_backend_register(NPU, &d), 0);
    }
    if (!fallback) {
        fallback = opd_library_open(OPD_IMPL, "_", "PrivateUse1", __FILE__, __LINE__);
        CHECK_INT(opd_fallback(fallback, opd_cpu_fallback), 0);
    }
}
static opd_tensor *on(opd_tensor *t, opd_backend device) {
    return opd_to_copy_full(t, OPD_NONE, OPD_NONE, opd_value_device(opd_device_make(device, -1)), OPD_NONE, false, OPD_NONE);
}

/* The arguments of a case, on a device, with floating ones cast to dtype (NONE: as they are). */
static void arguments_as(const op_case *c, opd_backend device, opd_scalar_type dtype, opd_value *args, case_list *lists) {
    int i, k;
    for (i = 0; i < c->nargs; i++) {
        opd_value *v = &args[i];
        const int n = c->args[i].tag == OPD_TAG_TENSORS ? c->args[i].n : c->args[i].tag == OPD_TAG_TENSOR;
        *v = c->args[i];
        for (k = 0; k < n; k++) {
            opd_tensor *t = v->tag == OPD_TAG_TENSORS ? c->args[i].u.tensors[k] : v->u.t;
            if (t && dtype != OPD_DTYPE_NONE && opd_dtype_is_floating(opd_dtype(t))) { t = opd_to_dtype(t, dtype); }
            if (t && device != OPD_CPU) { t = on(t, device); }
            if (v->tag == OPD_TAG_TENSORS) { lists[i].tensors[k] = t; } else { v->u.t = t; }
        }
        if (v->tag == OPD_TAG_TENSORS) { v->u.tensors = lists[i].tensors; }
    }
}
static int dtypes_of_call(const op_case *c, const opd_value *args, opd_scalar_type *out) {
    opd_value rets[MOST_RESULTS];
    opd_tensor *t[MOST_RESULTS];
    int i, n;
    if (opd_call_all((opd_op *)(uintptr_t)c->op, rets, args, c->nargs)) { return -1; }
    n = results_of(c->op, rets, t);
    for (i = 0; i < n; i++) { out[i] = opd_dtype(t[i]); }
    return n;
}
/* In a region the results are what the policy's casts give outside of it.  1: compared; 0: the operator cannot. */
static int policy_holds(op_case *c, opd_backend device, const char *policy, opd_scalar_type input) {
    static case_list lists[2][OPD_MAX_ARGS];
    const opd_scalar_type lower = opd_autocast_dtype(device);
    opd_value args[2][OPD_MAX_ARGS];
    opd_scalar_type want[MOST_RESULTS], have[MOST_RESULTS];
    opd_scalar_type dtype = strcmp(policy, "lower") == 0 ? lower : strcmp(policy, "fp32") == 0 ? OPD_FLOAT32
        : input;                                  /* promote: they are all alike; set_dtype: below */
    int i, n, m = -1;
    arguments_as(c, device, dtype, args[0], lists[0]);
    arguments_as(c, device, input, args[1], lists[1]);
    if (strcmp(policy, "banned") == 0) {
        OPD_AUTOCAST(device) { CHECK_INT(dtypes_of_call(c, args[1], have), -1); }
        CHECK(failed_with("is unsafe to autocast"));
        return 1;
    }
    n = dtypes_of_call(c, args[0], want);
    if (n < 0) { opd_error_clear(); return 0; }
    if (strstr(policy, "_dtype") && opd_dtype_is_floating(opd_dtype(c->args[0].u.t))) { want[0] = OPD_FLOAT32; }
    OPD_AUTOCAST(device) { m = dtypes_of_call(c, args[1], have); }
    CHECK_INT(m, n);
    for (i = 0; i < n && i < m; i++) {
        if (want[i] != have[i]) { printf("    %s, %s: result %d\n", opd_op_name(c->op), policy, i); }
        DTYPE_IS(have[i], want[i]);
    }
    if (!opd_ok()) { printf("    %s: %s\n", opd_op_name(c->op), opd_error_message()); opd_error_clear(); }
    return 1;
}
static int number_of_policy(const char *name) {
    static const char *const names[] = {"?", "keep", "lower", "fp32", "set_dtype", "promote", "banned", "append_dtype"};
    int i;
    for (i = 7; i > 0 && strcmp(names[i], name) != 0; i--) { }
    return i;
}
/* Returns the policy of the list in which PyTorch has an operator, or "keep" if it is in no list. */
static const char *listed(char (*lists)[1 << 12], int nlists, const char *device, const char *name) {
    static char policy[32];
    int i;
    for (i = 0; i < nlists; i++) {
        char *at = lists[i], found_device[16];
        const size_t n = strlen(name);
        if (sscanf(at, "%15s | %31s |", found_device, policy) != 2 || strcmp(found_device, device) != 0) { continue; }
        while ((at = strstr(at, name)) != NULL) {
            if (at[-1] == ' ' && (at[n] == ' ' || at[n] == 0)) { return policy; }
            at += n;
        }
    }
    return "keep";
}
/* Composites that call a listed operator in PyTorch and do its work themselves here. */
static bool stands_for_another(const char *device, const char *name) {
    return strncmp(name, "special_softmax", 15) == 0 || strncmp(name, "special_log_softmax", 19) == 0 ||
           (strcmp(device, "other") == 0 && strncmp(name, "conv", 4) == 0 && strstr(name, ".padding"));
}
TEST_KEEPS(lists_of_pytorch) {
    static char lists[16][1 << 12];
    static op_case c;
    static const char *const devices[] = {"other", "cpu"};
    FILE *f = check_golden("autocast_lists.txt");
    int n = 0, i, k, wrong = 0, compared = 0;
    CHECK_OR_RETURN(f != NULL);
    while (n < 16 && fgets(lists[n], sizeof lists[0], f)) {
        lists[n][strcspn(lists[n], "\n")] = 0;
        if (lists[n][0] != '#') { n++; }
    }
    (void)fclose(f);
    npu_on();
    memset(&c, 0, sizeof c);
    c.dtype = OPD_FLOAT32;
    for (i = 0; i < OPD_OP_COUNT; i++) {
        const opd_op *op = opd_op_builtin((opd_op_id)i);
        const char *name = opd_op_name(op) + 6;
        const int card = (int)opd_op_card(op)->autocast;
        for (k = 0; k < 2; k++) {
            const char *policy = listed(lists, n, devices[k], name), *text = cases_of(op);
            const int have = k == 1 && card >> 4 ? card >> 4 : card & 15;
            if (have != number_of_policy(policy) && !stands_for_another(devices[k], name)) {
                printf("    %s on %s: policy %d, not %s\n", name, devices[k], have, policy);
                wrong++;
            }
            c.op = op;
            if (strcmp(policy, "keep") == 0 || !text) { continue; }
            while (*text) {
                opd_scope scope = opd_scope_open();
                if (!case_read_next(&c, &text)) { opd_scope_close(&scope); break; }
                compared += policy_holds(&c, k ? OPD_CPU : NPU, policy, OPD_FLOAT32);
                compared += policy_holds(&c, k ? OPD_CPU : NPU, policy, opd_autocast_dtype(k ? OPD_CPU : NPU));
                opd_scope_close(&scope);
            }
        }
    }
    CHECK_INT(wrong, 0);
    CHECK(compared > 350);
}

TEST(float64_and_other_devices_are_left_alone) {
    opd_tensor *x = f32(OPD_INTS(2, 3)), *d = in(x, OPD_FLOAT64), *m, *i = opd_ones(OPD_INTS(3, 3), OPD_INT64);
    npu_on();
    m = on(x, NPU);
    OPD_AUTOCAST(OPD_CPU) {
        DTYPE(opd_mm(d, opd_t(d)), OPD_FLOAT64);
        DTYPE(opd_mse_loss(d, d), OPD_FLOAT64);
        DTYPE(opd_mm(m, opd_t(on(x, NPU))), OPD_FLOAT32);     /* its region is off */
        DTYPE(opd_mm(i, i), OPD_INT64);
        CHECK(opd_mm(d, opd_t(x)) == NULL && failed_with("expected scalar type float64 but found bfloat16"));
    }
    OPD_AUTOCAST(NPU) {
        DTYPE(opd_mm(m, opd_t(on(x, NPU))), OPD_FLOAT16);
        DTYPE(opd_mm(x, opd_t(x)), OPD_FLOAT32);
        OPD_AUTOCAST(OPD_CPU) { DTYPE(opd_mm(x, opd_t(x)), OPD_BFLOAT16); DTYPE(opd_exp(on(x, NPU)), OPD_FLOAT32); }
    }
    CHECK_OK();
}
TEST(dtype_arguments_that_are_given_stay) {
    npu_on();
    OPD_AUTOCAST(NPU) {
        opd_tensor *h = on(in(f32(OPD_INTS(2, 3)), OPD_FLOAT16), NPU);
        DTYPE(opd_sum(h), OPD_FLOAT32);
        DTYPE(opd_sum_full(h, opd_value_int(OPD_FLOAT16)), OPD_FLOAT16);
        DTYPE(opd_sum(on(opd_ones(OPD_INTS(3), OPD_INT64), NPU)), OPD_INT64);     /* not eligible */
        DTYPE(opd_softmax(h, 1), OPD_FLOAT32);
        DTYPE(opd_norm_Scalar(h, opd_value_int(2)), OPD_FLOAT32);
        DTYPE(opd_norm_Scalar(on(f32(OPD_INTS(3)), NPU), opd_value_int(2)), OPD_FLOAT32);
        DTYPE(opd_norm_Scalar(on(in(f32(OPD_INTS(3)), OPD_FLOAT64), NPU), opd_value_int(2)), OPD_FLOAT64);
        DTYPE(opd_cross_entropy_loss(h, on(opd_ones(OPD_INTS(2), OPD_INT64), NPU)), OPD_FLOAT32);
    }
    CHECK_OK();
}
TEST(in_place_and_out_forms_are_not_wrapped) {
    static opd_op *mm_out;
    opd_tensor *x = f32(OPD_INTS(3, 3)), *out = f32(OPD_INTS(3, 3)), *y;
    OPD_AUTOCAST(OPD_CPU) {
        CHECK(OPD_CALL(OPD_OP(&mm_out, "aten::mm.out"), x, x, out) == out);
        DTYPE(out, OPD_FLOAT32);
        OPD_AUTOCAST_AS(OPD_CPU, OPD_DTYPE_NONE, false, -1) { CHECK_INT(near(out, opd_mm(x, x)), 2); }
        y = opd_mm(x, x);
        DTYPE(y, OPD_BFLOAT16);
        CHECK(OPD_CALL(named_op("aten::addmm_"), out, y, y) == NULL && failed_with("dtype"));     /* the caller's care */
        DTYPE(opd_addmm(out, y, x), OPD_BFLOAT16);
    }
}

//-- regions -----------------------------------------------------------------------------------------------------------

static int matches(opd_backend device, bool enabled, opd_scalar_type dtype, bool cache) {
    return opd_autocast_enabled(device) == enabled && opd_autocast_dtype(device) == dtype &&
           opd_autocast_cache_enabled() == cache;
}
TEST(state_of_regions) {
    npu_on();
    CHECK(matches(OPD_CPU, false, OPD_BFLOAT16, true));
    CHECK_INT(opd_autocast_dtype(OPD_CUDA), OPD_FLOAT16);
    CHECK_INT(opd_autocast_dtype(OPD_XLA), OPD_BFLOAT16);
    CHECK_INT(opd_autocast_dtype(OPD_META), OPD_DTYPE_NONE);
    CHECK_INT(opd_autocast_dtype((opd_backend)99), OPD_DTYPE_NONE);
    OPD_AUTOCAST_AS(OPD_CPU, OPD_FLOAT16, true, 0) {
        CHECK(matches(OPD_CPU, true, OPD_FLOAT16, false));
        CHECK(matches(NPU, false, OPD_FLOAT16, false));
        OPD_AUTOCAST_AS(OPD_CPU, OPD_DTYPE_NONE, false, 1) {
            CHECK(matches(OPD_CPU, false, OPD_FLOAT16, true));
            DTYPE(opd_mm(f32(OPD_INTS(2, 2)), f32(OPD_INTS(2, 2))), OPD_FLOAT32);
            OPD_AUTOCAST(OPD_CPU) {               /* on again, with the dtype around */
                CHECK(matches(OPD_CPU, true, OPD_FLOAT16, true));
                DTYPE(opd_mm(f32(OPD_INTS(2, 2)), f32(OPD_INTS(2, 2))), OPD_FLOAT16);
            }
            CHECK(matches(OPD_CPU, false, OPD_FLOAT16, true));
        }
        OPD_AUTOCAST_AS(OPD_CPU, OPD_BFLOAT16, true, -1) {
            CHECK(matches(OPD_CPU, true, OPD_BFLOAT16, false));
            DTYPE(opd_mm(f32(OPD_INTS(2, 2)), f32(OPD_INTS(2, 2))), OPD_BFLOAT16);
        }
        OPD_AUTOCAST(NPU) { CHECK(matches(NPU, true, OPD_FLOAT16, false) && opd_autocast_enabled(OPD_CPU)); }
        CHECK(matches(OPD_CPU, true, OPD_FLOAT16, false) && !opd_autocast_enabled(NPU));
    }
    CHECK(matches(OPD_CPU, false, OPD_BFLOAT16, true));
    CHECK_OK();
}
static int leaves_early(int how) {
    int i;
    for (i = 0; i < 3; i++) {
        OPD_AUTOCAST_AS(OPD_CPU, OPD_FLOAT16, true, 0) {
            OPD_AUTOCAST(OPD_CPU) {
                if (how == 0) { return 1; }
                if (how == 1) { goto out; }
                if (how == 2) { continue; }
                if (how == 3) { (void)opd_fail(OPD_ERROR_USER, "inside"); }
            }
            if (!matches(OPD_CPU, true, OPD_FLOAT16, false)) { return -1; }
        }
    }
out:
    return 0;
}
#if defined(__cplusplus)
static void throws(void) { OPD_AUTOCAST(OPD_CPU) { throw 1; } }
#endif
TEST(leaving_a_region_puts_everything_back) {
    int how;
    for (how = 0; how < 5; how++) {
#if defined(__TINYC__)
        if (how < 3) { continue; }                /* a jump leaves it as it is */
#endif
        CHECK_INT(leaves_early(how), how == 0);
        CHECK(matches(OPD_CPU, false, OPD_BFLOAT16, true));
        CHECK_INT(opd_ok(), how != 3);
        opd_error_clear();
    }
#if defined(__cplusplus)
    try { throws(); } catch (int) { CHECK(matches(OPD_CPU, false, OPD_BFLOAT16, true)); }
#endif
    CHECK_INT(opd_dispatch_state_get().autocast, 0);
}
TEST(plain_form) {
    opd_autocast_region a = opd_autocast_begin(OPD_CPU, OPD_FLOAT16, true, 0), b, c;
    CHECK(a.open && matches(OPD_CPU, true, OPD_FLOAT16, false));
    (void)opd_fail(OPD_ERROR_USER, "pending");
    b = opd_autocast_begin(OPD_CPU, OPD_BFLOAT16, true, -1);
    c = opd_autocast_begin(OPD_CPU, OPD_DTYPE_NONE, false, -1);
    opd_autocast_end(&c);
    CHECK(matches(OPD_CPU, true, OPD_BFLOAT16, false));
    opd_autocast_end(&b);
    CHECK(matches(OPD_CPU, true, OPD_FLOAT16, false));
    opd_autocast_end(&b);                         /* twice */
    CHECK(matches(OPD_CPU, true, OPD_FLOAT16, false));
    opd_autocast_end(&a);
    opd_autocast_end(NULL);
    CHECK(matches(OPD_CPU, false, OPD_BFLOAT16, true));
    opd_error_clear();
}
static int forgetful(opd_call *call) {
    (void)opd_autocast_begin(OPD_CPU, OPD_FLOAT16, true, 0);
    return opd_return_tensor(call, opd_mm(opd_arg_tensor(call, 0), opd_arg_tensor(call, 0)));
}
static opd_library *define(const char *schema, opd_kernel composite, opd_autocast policy) {
    opd_library *lib = opd_library_open(OPD_FRAGMENT, "auto", NULL, __FILE__, __LINE__);
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = schema; d.composite = composite; d.autocast = policy;
    CHECK_INT(opd_define(lib, &d), 0);
    return lib;
}
TEST(what_a_kernel_begins_ends_with_it) {
    opd_library *lib = define("forgetful(Tensor self) -> Tensor", forgetful, OPD_AUTOCAST_KEEP);
    opd_tensor *x = f32(OPD_INTS(2, 2));
    DTYPE(OPD_CALL(named_op("auto::forgetful"), x), OPD_FLOAT16);
    CHECK(matches(OPD_CPU, false, OPD_BFLOAT16, true));
    OPD_AUTOCAST(OPD_CPU) {
        DTYPE(OPD_CALL(named_op("auto::forgetful"), x), OPD_FLOAT16);
        CHECK(matches(OPD_CPU, true, OPD_BFLOAT16, true));
    }
    opd_library_close(lib);
    CHECK_OK();
}
/* Each call in a function fails in turn, and the rest of the function still runs: in the end, all state is as
   before. */
static int calls_left;
static int breaks(opd_call *call) {
    if (--calls_left == 0) { return opd_fail(OPD_ERROR_USER, "it broke"); }
    return opd_return_tensor(call, opd_mm(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)));
}
static int calls_in_regions(opd_tensor *x, opd_tensor *w) {
    opd_op *op = opd_find_quiet("auto::breaks");
    opd_tensor *y = OPD_CALL(op, x, w);
    OPD_AUTOCAST(OPD_CPU) {
        y = OPD_CALL(op, y, w);
        if (!y) { return -1; }
        OPD_AUTOCAST_AS(OPD_CPU, OPD_FLOAT16, true, 0) {
            y = OPD_CALL(op, y, w);
            OPD_AUTOCAST_AS(OPD_CPU, OPD_DTYPE_NONE, false, -1) { y = OPD_CALL(op, x, w); }
            y = OPD_CALL(op, y, w);
        }
        y = OPD_CALL(op, y, w);
    }
    return y && opd_backward(opd_sum(y)) == 0 ? 0 : -1;
}
TEST(every_call_in_a_region_fails_in_turn) {
    opd_library *lib = define("breaks(Tensor a, Tensor b) -> Tensor", breaks, OPD_AUTOCAST_LOWER);
    opd_tensor *x = f32(OPD_INTS(2, 2)), *w = weight(OPD_INTS(2, 2));
    const opd_dispatch_state was = opd_dispatch_state_get();
    opd_dispatch_state is;
    int n, rc;
    for (n = 1; n < 8; n++) {
        calls_left = n;
        rc = calls_in_regions(x, w);
        CHECK_INT(rc, n < 7 ? -1 : 0);
        if (n < 7) { CHECK(failed_with("it broke")); }
        is = opd_dispatch_state_get();
        CHECK(is.included == was.included && is.excluded == was.excluded && is.autocast == was.autocast &&
              is.grad_enabled == was.grad_enabled);
    }
    opd_library_close(lib);
    CHECK_OK();
}
TEST(states_travel) {
    opd_dispatch_state in_region, was = opd_dispatch_state_get();
    memset(&in_region, 0, sizeof in_region);
    OPD_AUTOCAST_AS(OPD_CPU, OPD_FLOAT16, true, 0) { in_region = opd_dispatch_state_get(); }
    CHECK(matches(OPD_CPU, false, OPD_BFLOAT16, true));
    (void)opd_dispatch_state_set(in_region);
    CHECK(matches(OPD_CPU, true, OPD_FLOAT16, false));
    DTYPE(opd_mm(f32(OPD_INTS(2, 2)), f32(OPD_INTS(2, 2))), OPD_FLOAT16);
    (void)opd_dispatch_state_set(was);
    CHECK(matches(OPD_CPU, false, OPD_BFLOAT16, true));
    OPD_AUTOCAST(OPD_CPU) {                       /* excluded keys are off, and a region inside is on */
        opd_key_guard g = opd_keys_exclude(opd_keyset_add(OPD_KEYS_EMPTY, opd_key_parse("AutocastCPU")));
        CHECK(!opd_autocast_enabled(OPD_CPU));
        OPD_AUTOCAST(OPD_CPU) { CHECK(opd_autocast_enabled(OPD_CPU)); }
        CHECK(!opd_autocast_enabled(OPD_CPU));
        opd_keys_restore(g);
        CHECK(opd_autocast_enabled(OPD_CPU));
    }
    CHECK_OK();
}

static char said[1000];
static void listen(void *user, int is_error, const char *text) {
    (void)user;
    if (is_error == 0) { (void)snprintf(said, sizeof said, "%s", text); }
}
TEST(errors_and_warnings) {
    static const opd_scalar_type only[] = {OPD_BFLOAT16}, wrong[] = {OPD_INT64};
    opd_autocast_region r = opd_autocast_begin(OPD_META, OPD_DTYPE_NONE, true, -1);
    int entered = 0;
    npu_on();
    CHECK(!r.open && failed_with("User specified an unsupported autocast device_type 'meta'"));
    r = opd_autocast_begin((opd_backend)77, OPD_DTYPE_NONE, false, -1);
    CHECK(!r.open && failed_with("User specified an unsupported autocast device_type '?'"));
    OPD_AUTOCAST(OPD_VE) { entered++; }
    CHECK(!entered && failed_with("unsupported autocast device_type 've'"));
    OPD_AUTOCAST(OPD_PRIVATEUSE2) { entered++; }
    CHECK(!entered && failed_with("is not registered"));
    opd_log_set(listen, NULL);
    said[0] = 0;
    OPD_AUTOCAST(OPD_CUDA) { entered++; CHECK(!opd_autocast_enabled(OPD_CUDA)); }
    CHECK(entered == 1 && strstr(said, "User provided device_type of 'cuda', but it is not available. Disabling autocast."));
    OPD_AUTOCAST_AS(OPD_CPU, OPD_FLOAT32, true, -1) {
        entered++;
        CHECK(!opd_autocast_enabled(OPD_CPU));
        DTYPE(opd_mm(f32(OPD_INTS(2, 2)), f32(OPD_INTS(2, 2))), OPD_FLOAT32);
    }
    CHECK(strstr(said, "In CPU autocast, but the target dtype is not supported. Disabling autocast."));
    CHECK(entered == 2 && strstr(said, "CPU Autocast only supports dtypes of bfloat16, float16 currently."));
    said[0] = 0;
    OPD_AUTOCAST_AS(OPD_CPU, OPD_INT64, true, -1) { entered++; }
    CHECK(entered == 3 && strstr(said, "Disabling autocast."));
    said[0] = 0;
    OPD_AUTOCAST_AS(OPD_CPU, OPD_FLOAT32, false, -1) { entered++; }          /* off anyway */
    CHECK(entered == 4 && !said[0]);
    CHECK_INT(opd_autocast_support(NPU, only, 1), 0);
    OPD_AUTOCAST(NPU) { CHECK(!opd_autocast_enabled(NPU)); }
    CHECK(strstr(said, "In npu autocast, but the target dtype is not supported. Disabling autocast.\n"
                       "npu Autocast only supports dtypes of bfloat16 currently."));
    OPD_AUTOCAST_AS(NPU, OPD_BFLOAT16, true, -1) { CHECK(opd_autocast_enabled(NPU)); }
    opd_log_set(NULL, NULL);
    CHECK_INT(opd_autocast_support(NPU, wrong, 1), -1);
    CHECK(failed_with("int64"));
    CHECK_INT(opd_autocast_support(NPU, only, 0), -1);
    CHECK(failed_with("there are no dtypes"));
    CHECK_INT(opd_autocast_support(OPD_CPU, only, 1), -1);
    CHECK(failed_with("only be set for PrivateUse1 to PrivateUse3"));
    {
        static const opd_scalar_type both[] = {OPD_BFLOAT16, OPD_FLOAT16};
        CHECK_INT(opd_autocast_support(NPU, both, 2), 0);
    }
    CHECK(matches(OPD_CPU, false, OPD_BFLOAT16, true));
}
TEST(promote_and_banned) {
    opd_tensor *x = f32(OPD_INTS(2, 2)), *b = in(x, OPD_BFLOAT16), *h = in(x, OPD_FLOAT16), *t[3];
    npu_on();
    OPD_AUTOCAST(OPD_CPU) {
        t[0] = b; t[1] = b; t[2] = x;
        DTYPE(opd_cat(opd_tensors_of(t, 2), 0), OPD_BFLOAT16);
        DTYPE(opd_cat(opd_tensors_of(t, 3), 0), OPD_FLOAT32);
        DTYPE(opd_stack(opd_tensors_of(t, 3), 0), OPD_FLOAT32);
        t[2] = h;
        CHECK(opd_cat(opd_tensors_of(t, 3), 0) == NULL && failed_with("Unexpected floating ScalarType in at::autocast::prioritize"));
        CHECK_INT(opd_autocast_promote(OPD_BFLOAT16, t, 2), OPD_BFLOAT16);
        t[1] = NULL; t[2] = in(x, OPD_FLOAT64);
        CHECK_INT(opd_autocast_promote(OPD_BFLOAT16, t, 3), OPD_BFLOAT16);
        t[1] = x;
        CHECK_INT(opd_autocast_promote(OPD_BFLOAT16, t, 3), OPD_FLOAT32);
        CHECK_INT(opd_autocast_promote(OPD_FLOAT64, t, 3), OPD_DTYPE_NONE);
        CHECK(failed_with("promote type is double"));
    }
    OPD_AUTOCAST(NPU) {
        opd_tensor *p = on(opd_sigmoid(x), NPU);
        CHECK(opd_binary_cross_entropy(p, p) == NULL);
        CHECK(failed_with("aten::binary_cross_entropy is unsafe to autocast"));
        CHECK(opd_binary_cross_entropy(p, p) == NULL && failed_with("aten::binary_cross_entropy_with_logits is safe"));
        DTYPE(opd_binary_cross_entropy_with_logits(on(h, NPU), p), OPD_FLOAT32);
        OPD_AUTOCAST_AS(NPU, OPD_DTYPE_NONE, false, -1) { CHECK(opd_binary_cross_entropy(p, p) != NULL); }
    }
    OPD_AUTOCAST(OPD_CPU) { DTYPE(opd_binary_cross_entropy(in(opd_sigmoid(x), OPD_BFLOAT16), opd_sigmoid(x)), OPD_FLOAT32); }
    CHECK_OK();
}

//-- custom operators --------------------------------------------------------------------------------------------------

static int same_kernel(opd_call *call) {
    return opd_return_tensor(call, opd_add(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)));
}
TEST(policies_of_own_operators) {
    opd_tensor *x = f32(OPD_INTS(2)), *b = in(x, OPD_BFLOAT16);
    opd_library *lib = define("own(Tensor a, Tensor b) -> Tensor", same_kernel, OPD_AUTOCAST_LOWER), *late;
    opd_op *own = named_op("auto::own");
    static char text[1 << 15];
    DTYPE(OPD_CALL(own, x, b), OPD_FLOAT32);
    OPD_AUTOCAST(OPD_CPU) { DTYPE(OPD_CALL(own, x, b), OPD_BFLOAT16); }
    late = opd_library_open(OPD_IMPL, "auto", NULL, __FILE__, __LINE__);
    CHECK_INT(opd_autocast_register(late, "own", OPD_CPU, OPD_AUTOCAST_FP32), 0);
    OPD_AUTOCAST(OPD_CPU) { DTYPE(OPD_CALL(own, b, b), OPD_FLOAT32); }
    CHECK_INT(opd_check_invariants(), 0);
    CHECK(opd_dump_table(own, text, sizeof text) > 0 && strstr(text, "\nAutocastCUDA: by `autocast` of its opd_op_desc [kernel]\n"));
    opd_library_close(late);
    OPD_AUTOCAST(OPD_CPU) { DTYPE(OPD_CALL(own, x, b), OPD_BFLOAT16); }
    late = opd_library_open(OPD_IMPL, "auto", NULL, __FILE__, __LINE__);
    CHECK_INT(opd_autocast_register(late, "own", OPD_BACKEND_COUNT, OPD_AUTOCAST_LOWER_NOT_CPU), 0);
    OPD_AUTOCAST(OPD_CPU) { DTYPE(OPD_CALL(own, b, b), OPD_BFLOAT16); DTYPE(OPD_CALL(own, x, b), OPD_FLOAT32); }
    CHECK_INT(opd_autocast_register(late, "own", OPD_META, OPD_AUTOCAST_FP32), -1);
    CHECK(failed_with("none of the devices supports autocast"));
    CHECK_INT(opd_autocast_register(late, "own", OPD_CPU, (opd_autocast)15), -1);
    CHECK(failed_with("not a policy of autocast"));
    CHECK_INT(opd_autocast_register(late, NULL, OPD_CPU, OPD_AUTOCAST_FP32), -1);
    CHECK(failed_with("the name is NULL"));
    opd_library_close(late);
    opd_library_close(lib);
    lib = opd_library_open(OPD_FRAGMENT, "auto", NULL, __FILE__, __LINE__);
    {
        opd_op_desc d;
        memset(&d, 0, sizeof d);
        d.schema = "bad(Tensor a) -> Tensor"; d.composite = same_kernel; d.autocast = (opd_autocast)300;
        CHECK_INT(opd_define(lib, &d), -1);
        CHECK(failed_with("300 is not a policy of autocast") && !opd_find_quiet("auto::bad"));
    }
    opd_library_close(lib);
    lib = define("plain(Tensor a, Tensor b) -> Tensor", same_kernel, OPD_AUTOCAST_FP32_APPEND_DTYPE);
    OPD_AUTOCAST(OPD_CPU) { CHECK(OPD_CALL(named_op("auto::plain"), x, x) == NULL && failed_with("there is none")); }
    opd_library_close(lib);
    CHECK_OK();
}
static int written_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *other = opd_arg_tensor(call, 1);
    CHECK(opd_dtype(self) == OPD_FLOAT32 && opd_dtype(other) == OPD_BFLOAT16);
    return opd_copy_(self, other) ? opd_return_tensor(call, self) : -1;
}
TEST(what_is_written_is_not_cast) {
    opd_library *lib = define("write_(Tensor(a!) self, Tensor other) -> Tensor(a!)", written_kernel, OPD_AUTOCAST_LOWER);
    opd_tensor *x = f32(OPD_INTS(2)), *y = f32(OPD_INTS(2));
    OPD_AUTOCAST(OPD_CPU) { CHECK(OPD_CALL(named_op("auto::write_"), x, y) == x); }
    CHECK_INT(near(x, in(in(y, OPD_BFLOAT16), OPD_FLOAT32)), 2);
    opd_library_close(lib);
    CHECK_OK();
}
static int by_hand_calls;
static int by_hand(opd_call *call) {
    opd_keys_exclude(opd_keyset_add(OPD_KEYS_EMPTY, opd_key_parse("AutocastCPU")));
    by_hand_calls++;
    return opd_return_tensor(call, OPD_CALL(opd_call_operator(call),
                                            opd_autocast_cast(OPD_BFLOAT16, opd_arg_tensor(call, 0)),
                                            opd_autocast_cast(OPD_BFLOAT16, opd_arg_tensor(call, 1))));
}
TEST(kernels_at_the_autocast_keys) {
    opd_tensor *x = f32(OPD_INTS(2));
    opd_library *lib = define("own(Tensor a, Tensor b) -> Tensor", same_kernel, OPD_AUTOCAST_KEEP);
    opd_library *late = opd_library_open(OPD_IMPL, "auto", "AutocastCPU", __FILE__, __LINE__);
    opd_op *own = named_op("auto::own");
    const opd_value v[2] = {opd_value_tensor(x), opd_value_tensor(x)};
    opd_value r[1];
    char text[4096];
    CHECK_INT(opd_impl(late, "own", by_hand), 0);
    npu_on();
    by_hand_calls = 0;
    DTYPE(OPD_CALL(own, x, x), OPD_FLOAT32);
    OPD_AUTOCAST(NPU) {                           /* another device's region: passed by */
        DTYPE(OPD_CALL(own, x, x), OPD_FLOAT32);
        CHECK(opd_explain(own, v, 2, text, sizeof text) > 0 && strstr(text, "off for this device"));
    }
    CHECK_INT(by_hand_calls, 0);
    OPD_AUTOCAST(OPD_CPU) { DTYPE(OPD_CALL(own, x, x), OPD_BFLOAT16); }
    CHECK_INT(by_hand_calls, 1);
    CHECK_INT(opd_call_at(own, "AutocastCPU", r, v, 2), 0);          /* at that very key, without a region */
    DTYPE(r[0].u.t, OPD_BFLOAT16);
    CHECK_INT(by_hand_calls, 2);
    opd_library_close(late);
    opd_library_close(lib);
    CHECK_OK();
}

//-- the cache ---------------------------------------------------------------------------------------------------------

TEST(weights_are_cast_once) {
    opd_tensor *w = weight(OPD_INTS(3, 3)), *x = f32(OPD_INTS(3, 3)), *first = NULL, *other;
    opd_memory m;
    CHECK(opd_autocast_cast(OPD_BFLOAT16, w) != opd_autocast_cast(OPD_BFLOAT16, w));          /* no region: nothing clears it */
    OPD_AUTOCAST(OPD_CPU) {
        first = opd_autocast_cast(OPD_BFLOAT16, w);
        DTYPE(first, OPD_BFLOAT16);
        CHECK(opd_autocast_cast(OPD_BFLOAT16, w) == first);
        CHECK(opd_autocast_cast(OPD_BFLOAT16, first) == first && opd_autocast_cast(OPD_BFLOAT16, NULL) == NULL);
        CHECK(opd_autocast_cast(OPD_FLOAT32, w) == w);
        CHECK(opd_autocast_cast(OPD_FLOAT16, w) != opd_autocast_cast(OPD_FLOAT16, w));        /* not the region's dtype */
        CHECK(opd_autocast_cast(OPD_BFLOAT16, x) != opd_autocast_cast(OPD_BFLOAT16, x));      /* no weight */
        CHECK(opd_autocast_cast(OPD_BFLOAT16, opd_t(w)) != opd_autocast_cast(OPD_BFLOAT16, opd_t(w)));
        other = opd_mul(w, w);
        CHECK(opd_autocast_cast(OPD_BFLOAT16, other) != opd_autocast_cast(OPD_BFLOAT16, other));
        OPD_INFERENCE_MODE(true) { CHECK(opd_autocast_cast(OPD_BFLOAT16, w) != first); }
        OPD_AUTOCAST_AS(OPD_CPU, OPD_DTYPE_NONE, true, 0) { CHECK(opd_autocast_cast(OPD_BFLOAT16, w) != first); }
        OPD_AUTOCAST_AS(OPD_CPU, OPD_FLOAT16, true, -1) {
            opd_tensor *h = opd_autocast_cast(OPD_FLOAT16, w);
            DTYPE(h, OPD_FLOAT16);
            CHECK(opd_autocast_cast(OPD_FLOAT16, w) == h);
            DTYPE(opd_mm(w, w), OPD_FLOAT16);
        }
        CHECK(opd_autocast_cast(OPD_BFLOAT16, w) == first);          /* inner regions clear nothing */
        DTYPE(opd_mm(w, w), OPD_BFLOAT16);
        opd_autocast_cache_clear();
        CHECK(opd_autocast_cast(OPD_BFLOAT16, w) != first);
        m = opd_memory_stats();
        (void)opd_mm(x, w);
        (void)opd_mm(x, w);
        first = opd_keep(opd_autocast_cast(OPD_BFLOAT16, w));
    }
    (void)m;
    OPD_AUTOCAST(OPD_CPU) { CHECK(opd_autocast_cast(OPD_BFLOAT16, w) != first); }
    opd_release(first);
    CHECK_OK();
}
/* A cache entry that was made under no_grad can be used by a recorded call, in every order. */
TEST(no_grad_does_not_spoil_the_cache) {
    opd_tensor *x = f32(OPD_INTS(2, 3)), *w = weight(OPD_INTS(3, 4)), *y = NULL, *plain;
    OPD_AUTOCAST(OPD_CPU) {
        OPD_NO_GRAD { y = opd_mm(x, w); CHECK(!opd_tensor_requires_grad(y)); }
        y = opd_mm(x, w);
        CHECK(opd_tensor_requires_grad(y));
        CHECK(opd_autocast_cast(OPD_BFLOAT16, w) == opd_autocast_cast(OPD_BFLOAT16, w));
        OPD_NO_GRAD { CHECK(!opd_tensor_requires_grad(opd_mm(x, w))); }
    }
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_OR_RETURN(opd_tensor_grad(w) != NULL);
    DTYPE(opd_tensor_grad(w), OPD_FLOAT32);
    plain = opd_matmul(in(opd_t(in(x, OPD_BFLOAT16)), OPD_FLOAT32), opd_ones(OPD_INTS(2, 4), OPD_FLOAT32));
    CHECK(near(opd_tensor_grad(w), in(in(plain, OPD_BFLOAT16), OPD_FLOAT32)));
    CHECK_OK();
}
TEST(weights_that_are_written_are_cast_anew) {
    opd_tensor *x = opd_ones(OPD_INTS(1, 1), OPD_FLOAT32), *w = weight(OPD_INTS(1, 1)), *old;
    OPD_AUTOCAST(OPD_CPU) {
        OPD_NO_GRAD { opd_fill_(w, opd_value_double(2)); }
        CHECK_NEAR(opd_item_f64(opd_mm(x, w)), 2, 0);
        old = opd_autocast_cast(OPD_BFLOAT16, w);
        OPD_NO_GRAD { opd_fill_(w, opd_value_double(3)); }
        CHECK_NEAR(opd_item_f64(opd_mm(x, w)), 3, 0);
        CHECK(opd_autocast_cast(OPD_BFLOAT16, w) != old);
        CHECK(opd_autocast_cast(OPD_BFLOAT16, w) == opd_autocast_cast(OPD_BFLOAT16, w));
    }
    CHECK_OK();
}
TEST(several_backwards_through_one_cast) {
    opd_tensor *x = f32(OPD_INTS(2, 3)), *w = weight(OPD_INTS(3, 4)), *one;
    OPD_AUTOCAST(OPD_CPU) {
        CHECK_INT(opd_backward(opd_sum(opd_mm(x, w))), 0);
        one = opd_clone(opd_tensor_grad(w));
        CHECK_INT(opd_backward(opd_sum(opd_mm(x, w))), 0);
    }
    CHECK(near(opd_tensor_grad(w), opd_add(one, one)));
    OPD_AUTOCAST(OPD_CPU) {                       /* both products share the cast, and the gradient is their sum */
        opd_tensor_set_grad(w, NULL);
        CHECK_INT(opd_backward(opd_sum(opd_add(opd_mm(x, w), opd_mm(x, w)))), 0);
    }
    CHECK(near(opd_tensor_grad(w), opd_add(one, one)));
    CHECK_OK();
}
/* Weights are freed while their casts are in the cache: new tensors at the same address must not get these casts. */
TEST(the_cache_holds_what_it_knows) {
    opd_tensor *x = opd_ones(OPD_INTS(1, 1), OPD_FLOAT32);
    int i;
    OPD_AUTOCAST(OPD_CPU) {
        for (i = 0; i < 300; i++) {
            OPD_SCOPED;
            opd_tensor *w = opd_tensor_set_requires_grad(opd_full(OPD_INTS(1, 1), opd_value_double(i), OPD_FLOAT32), true);
            CHECK_NEAR(opd_item_f64(opd_mm(x, w)), i < 257 ? i : opd_item_f64(in(opd_detach(w), OPD_BFLOAT16)), 0);
        }
    }
    CHECK_OK();
}

//-- threads -----------------------------------------------------------------------------------------------------------

#if defined(THREADS)
static opd_tensor *shared_weight, *shared_cast;
static opd_dispatch_state shared_state;
static void *other_thread(void *arg) {
    bool right = matches(OPD_CPU, false, OPD_BFLOAT16, true);       /* a new thread is outside */
    (void)arg;
    OPD_SCOPE {
        OPD_AUTOCAST(OPD_CPU) {                   /* the cache is of all threads, and so is its end */
            right = right && opd_autocast_cast(OPD_BFLOAT16, shared_weight) == shared_cast;
        }
        (void)opd_dispatch_state_set(shared_state);
        right = right && opd_autocast_enabled(OPD_CPU) && opd_dtype(opd_mm(shared_weight, shared_weight)) == OPD_BFLOAT16;
    }
    opd_error_clear();
    return right ? arg : NULL;
}
static void *many_threads(void *arg) {
    int i;
    bool right = true;
    for (i = 0; i < 300; i++) {
        OPD_SCOPED;
        opd_tensor *g, *y = NULL;
        OPD_AUTOCAST_AS(OPD_CPU, i % 7 ? OPD_BFLOAT16 : OPD_FLOAT16, true, -1) {
            y = opd_mm(shared_weight, shared_weight);
            if (i % 5 == 0) { OPD_NO_GRAD { y = opd_mm(shared_weight, y); } }
            y = opd_add(y, opd_mm(shared_weight, shared_weight));
        }
        y = opd_sum(y);
        right = right && opd_autograd_grad(&y, 1, &shared_weight, 1, NULL, &g) == 0 && opd_dtype(g) == OPD_FLOAT32;
    }
    return right ? arg : NULL;
}
TEST(threads) {
    pthread_t t[4];
    void *out;
    int i;
    shared_weight = weight(OPD_INTS(3, 3));
    OPD_AUTOCAST(OPD_CPU) {
        shared_cast = opd_autocast_cast(OPD_BFLOAT16, shared_weight);
        shared_state = opd_dispatch_state_get();
        CHECK_INT(pthread_create(&t[0], NULL, other_thread, &t[0]), 0);
        CHECK_INT(pthread_join(t[0], &out), 0);
        CHECK(out == &t[0]);
        CHECK(opd_autocast_enabled(OPD_CPU));
        CHECK(opd_autocast_cast(OPD_BFLOAT16, shared_weight) != shared_cast);
    }
    for (i = 0; i < 4; i++) { CHECK_INT(pthread_create(&t[i], NULL, many_threads, &t[i]), 0); }
    for (i = 0; i < 4; i++) { CHECK_INT(pthread_join(t[i], &out), 0); CHECK(out == &t[i]); }
    CHECK_OK();
}
#endif

//-- gradients ---------------------------------------------------------------------------------------------------------

/* A small network under autocast has the same bits in values and gradients as with explicit casts. */
static opd_tensor *network(opd_tensor *x, opd_tensor *const *w, bool by_hand) {
    const opd_scalar_type b = OPD_BFLOAT16;
    if (!by_hand) {
        OPD_AUTOCAST(OPD_CPU) {
            return opd_mse_loss(opd_linear(opd_relu(opd_linear(x, w[0], w[1])), w[2], NULL), x);
        }
    }
    x = opd_relu(opd_linear(in(x, b), in(w[0], b), in(w[1], b)));
    x = opd_linear(x, in(w[2], b), NULL);
    return opd_mse_loss(in(x, OPD_FLOAT32), opd_ones_like(in(x, OPD_FLOAT32)));
}
TEST(gradients_are_those_of_the_casts) {
    opd_tensor *x = opd_ones(OPD_INTS(4, 3), OPD_FLOAT32), *w[3], *by_hand[3], *y;
    int i;
    w[0] = weight(OPD_INTS(5, 3)); w[1] = weight(OPD_INTS(5)); w[2] = weight(OPD_INTS(3, 5));
    y = network(x, w, true);
    CHECK_INT(opd_autograd_grad(&y, 1, w, 3, NULL, by_hand), 0);
    CHECK_INT(opd_backward(network(x, w, false)), 0);
    for (i = 0; i < 3; i++) {
        CHECK_OR_RETURN(opd_tensor_grad(w[i]) != NULL);
        DTYPE(opd_tensor_grad(w[i]), OPD_FLOAT32);
        CHECK(near(opd_tensor_grad(w[i]), by_hand[i]) == 2);
    }
    CHECK_NEAR(opd_item_f64(network(x, w, false)), opd_item_f64(y), 0);
    OPD_AUTOCAST(OPD_CPU) {                       /* backward inside of a region: dtypes as well */
        for (i = 0; i < 3; i++) { opd_tensor_set_grad(w[i], NULL); }
        CHECK_INT(opd_backward(network(x, w, false)), 0);
        for (i = 0; i < 3; i++) { DTYPE(opd_tensor_grad(w[i]), OPD_FLOAT32); }
    }
    CHECK_OK();
}
/* A checkpoint computes again in the autocast region of forward.  The casts of this region are freed after it. */
static int checkpointed(opd_tensor *const *inputs, int n, opd_tensor **outputs, int m, void *user) {
    opd_tensor *w = (opd_tensor *)user;
    (void)n; (void)m;
    outputs[0] = opd_mm(opd_tanh(opd_mm(inputs[0], w)), w);
    return opd_ok() ? 0 : -1;
}
TEST(checkpoints) {
    opd_tensor *x = f32(OPD_INTS(3, 3)), *w = weight(OPD_INTS(3, 3)), *y = NULL, *plain;
    int64_t live;
    opd_tensor_set_requires_grad(x, true);
    OPD_AUTOCAST(OPD_CPU) { (void)checkpointed(&x, 1, &y, 1, w); }
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    plain = opd_clone(opd_tensor_grad(w));
    opd_tensor_set_grad(w, NULL);
    OPD_AUTOCAST(OPD_CPU) { CHECK_INT(opd_checkpoint(checkpointed, w, NULL, &x, 1, &y, 1), 0); }
    DTYPE(y, OPD_BFLOAT16);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_INT(near(opd_tensor_grad(w), plain), 2);
    live = opd_memory_stats().live;
    opd_autocast_cache_clear();
    CHECK_INT(opd_memory_stats().live, live);     /* nothing was left */
    CHECK(matches(OPD_CPU, false, OPD_BFLOAT16, true));
    CHECK_OK();
}
static int product(void *user, opd_tensor *const *in_, int n, opd_tensor **out) {
    (void)n;
    out[0] = opd_mm(in_[0], (opd_tensor *)user);
    return out[0] ? 1 : -1;
}
TEST(under_vmap) {
    opd_tensor *x = f32(OPD_INTS(4, 2, 3)), *w = weight(OPD_INTS(3, 3)), *y = NULL;
    OPD_AUTOCAST(OPD_CPU) { CHECK_INT(opd_vmap(product, w, &x, 1, NULL, &y, 1), 1); }
    CHECK_OR_RETURN(y != NULL);
    DTYPE(y, OPD_BFLOAT16);
    CHECK_INT(opd_ndim(y), 3);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_OR_RETURN(opd_tensor_grad(w) != NULL);
    DTYPE(opd_tensor_grad(w), OPD_FLOAT32);
    CHECK_OK();
}
/* Gradients of a function, for each example and in float32; what they were differentiated by is in no cache. */
static int squares(void *user, opd_tensor *const *in_, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_mse_loss(opd_mm(opd_unsqueeze(in_[1], 0), in_[0]), opd_mm(opd_unsqueeze(in_[1], 0), in_[0]));
    return out[0] ? 1 : -1;
}
static int gradients(void *user, opd_tensor *const *in_, int n, opd_tensor **out) {
    return opd_grad(squares, user, in_, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
TEST(under_transforms) {
    const int dims[2] = {OPD_NO_DIM, 0};
    opd_vmap_options o;
    opd_tensor *inputs[2], *y[1] = {NULL};
    opd_graph *g = NULL;
    int64_t live;
    memset(&o, 0, sizeof o);
    o.in_dims = dims; o.nin_dims = 2;
    inputs[0] = weight(OPD_INTS(3, 4)); inputs[1] = f32(OPD_INTS(5, 3));
    OPD_AUTOCAST(OPD_CPU) {
        CHECK_INT(opd_vmap(gradients, NULL, inputs, 2, &o, y, 1), 1);
        CHECK_OR_RETURN(y[0] != NULL);
        DTYPE(y[0], OPD_FLOAT32);
        CHECK_INT(opd_ndim(y[0]), 3);
        CHECK_INT(opd_vmap(product, inputs[0], &inputs[1], 1, NULL, y, 1) < 0, 1);     /* 1-D: mm refuses, all is as it was */
        opd_error_clear();
        CHECK(opd_autocast_enabled(OPD_CPU));
        opd_autocast_cache_clear();               /* the weight that product read */
        inputs[1] = opd_select(inputs[1], 0, 0);
        CHECK_INT(opd_grad(squares, NULL, inputs, 2, NULL, y, 1), 1);
        DTYPE(y[0], OPD_FLOAT32);
        g = opd_graph_trace(squares, NULL, inputs, 2, NULL);
        CHECK_INT(g ? opd_graph_count(g, "aten::_to_copy") : 0, 6);
        opd_graph_free(g);
        live = opd_memory_stats().live;
        opd_autocast_cache_clear();
        CHECK_INT(opd_memory_stats().live, live);
    }
    CHECK_OK();
}

//-- custom functions --------------------------------------------------------------------------------------------------

static opd_scalar_type seen_forward, seen_input, seen_backward;
static bool seen_on, seen_on_backward;
static int mm_inside(opd_context *ctx) {
    opd_tensor *a[2];
    a[0] = opd_context_tensor(ctx, 0);
    a[1] = opd_context_tensor(ctx, 1);
    seen_on = opd_autocast_enabled(OPD_CPU);
    seen_input = opd_dtype(a[0]);
    (void)opd_context_save_for_backward(ctx, a, 2);
    a[0] = opd_mm(a[0], a[1]);
    seen_forward = opd_dtype(a[0]);
    return opd_context_return(ctx, a[0]);
}
static int mm_back(opd_backward_call *bw) {
    opd_context *ctx = opd_bw_context(bw);
    opd_tensor *g = opd_bw_grad(bw, 0), *r = opd_mm(g, opd_t(opd_context_saved(ctx, 1)));
    seen_on_backward = opd_autocast_enabled(OPD_CPU);
    seen_backward = opd_dtype(r);
    return opd_bw_return(bw, 0, r) || opd_bw_return(bw, 1, opd_mm(opd_t(opd_context_saved(ctx, 0)), g));
}
static int mm_forward(opd_context *ctx) { return opd_custom_fwd(ctx, OPD_CPU, OPD_DTYPE_NONE, mm_inside); }
static int mm_forward_f32(opd_context *ctx) { return opd_custom_fwd(ctx, OPD_CPU, OPD_FLOAT32, mm_inside); }
static int mm_forward_f64(opd_context *ctx) { return opd_custom_fwd(ctx, OPD_META, OPD_FLOAT32, mm_inside); }
static int mm_backward(opd_backward_call *bw) { return opd_custom_bwd(bw, mm_back); }
static opd_autograd_function mm_function(opd_setup_fn forward) {
    opd_autograd_function f;
    memset(&f, 0, sizeof f);
    f.name = "MyMM"; f.forward = forward; f.backward = mm_backward;
    return f;
}
TEST(custom_functions) {
    opd_autograd_function plain = mm_function(mm_forward), cast = mm_function(mm_forward_f32), wrong = mm_function(mm_forward_f64);
    opd_tensor *x = weight(OPD_INTS(2, 2)), *h = in(x, OPD_BFLOAT16), *y = NULL;
    opd_value v[2];
    v[0] = opd_value_tensor(x); v[1] = opd_value_tensor(x);
    OPD_AUTOCAST(OPD_CPU) { y = opd_autograd_call(&plain, v, 2); }
    CHECK(seen_on && seen_input == OPD_FLOAT32 && seen_forward == OPD_BFLOAT16);
    CHECK_INT(opd_backward(opd_sum(y)), 0);       /* outside: it runs as forward did */
    CHECK(seen_on_backward && seen_backward == OPD_BFLOAT16);
    DTYPE(opd_tensor_grad(x), OPD_FLOAT32);
    y = opd_autograd_call(&plain, v, 2);
    OPD_AUTOCAST(OPD_CPU) { CHECK_INT(opd_backward(opd_sum(y)), 0); }
    CHECK(!seen_on && !seen_on_backward && seen_backward == OPD_FLOAT32);
    v[0] = opd_value_tensor(h);
    OPD_AUTOCAST(OPD_CPU) { y = opd_autograd_call(&cast, v, 2); CHECK(opd_autocast_enabled(OPD_CPU)); }
    CHECK(!seen_on && seen_input == OPD_FLOAT32 && seen_forward == OPD_FLOAT32);
    OPD_AUTOCAST(OPD_CPU) { CHECK_INT(opd_backward(opd_sum(y)), 0); }
    CHECK(!seen_on_backward && seen_backward == OPD_FLOAT32);
    v[1] = opd_value_tensor(h);
    y = opd_autograd_call(&cast, v, 2);           /* no region: nothing is cast */
    CHECK(y && seen_input == OPD_BFLOAT16 && seen_forward == OPD_BFLOAT16);
    CHECK(opd_autograd_call(&wrong, v, 2) == NULL && failed_with("a device that supports autocast"));
    cast.forward = mm_inside;
    y = opd_sum(opd_autograd_call(&cast, v, 2));
    CHECK(opd_backward(y) != 0 && failed_with("was not called through opd_custom_fwd"));
    CHECK_OK();
}

//-- the gradient scaler -----------------------------------------------------------------------------------------------

static opd_tensor *given(const float *v, int64_t n) { return opd_tensor_from(v, opd_ints_of(&n, 1), OPD_FLOAT32); }
static bool unscale(opd_tensor *t, double inv, double *found) {
    static opd_op *op;
    const float zero = 0, by = (float)inv;
    opd_tensor *f = opd_tensor_from(&zero, opd_ints_of(NULL, 0), OPD_FLOAT32);
    opd_value v[3], r[1];
    v[0] = opd_value_tensors(&t, 1);
    v[1] = opd_value_tensor(f);
    v[2] = opd_value_tensor(opd_tensor_from(&by, opd_ints_of(NULL, 0), OPD_FLOAT32));
    if (opd_call_all(OPD_OP(&op, "aten::_amp_foreach_non_finite_check_and_unscale_"), r, v, 3)) { return false; }
    *found = opd_item_f64(f);
    return true;
}
TEST(unscaling) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16};
    float v[20];
    double found = 0;
    int d, i, bad;
    for (d = 0; d < 4; d++) {
        for (bad = 0; bad < 4; bad++) {           /* nothing, inf, -inf, nan */
            opd_tensor *t;
            for (i = 0; i < 20; i++) { v[i] = 4; }
            if (bad) { v[13] = bad == 3 ? NAN : bad == 1 ? INFINITY : -INFINITY; }
            t = in(given(v, 20), dtypes[d]);
            CHECK(unscale(t, 0.25, &found));
            CHECK_NEAR(found, bad != 0, 0);
            CHECK_NEAR(opd_item_f64(opd_select(t, 0, 2)), 1, 0);
            t = OPD_CALL(named_op("aten::slice.Tensor"), in(given(v, 20), dtypes[d]), 0, OPD_NONE, OPD_NONE, 13);     /* strided: elements 0 and 13 */
            CHECK(unscale(t, 0.25, &found));
            CHECK_NEAR(found, bad != 0, 0);
        }
    }
    CHECK(!unscale(opd_ones(OPD_INTS(2), OPD_INT64), 1, &found) && failed_with("floating point"));
    CHECK_OK();
}
static double updated(double scale, int64_t *tracker, bool found, int64_t interval) {
    static opd_op *op;
    const float s = (float)scale, f = found;
    opd_tensor *count = opd_tensor_from(tracker, opd_ints_of(NULL, 0), OPD_INT64);
    opd_tensor *r = OPD_CALL(OPD_OP(&op, "aten::_amp_update_scale_"), opd_tensor_from(&s, opd_ints_of(NULL, 0), OPD_FLOAT32),
                             count, opd_tensor_from(&f, opd_ints_of(NULL, 0), OPD_FLOAT32), 2.0, 0.25, interval);
    *tracker = opd_item_i64(count);
    return r ? opd_item_f64(r) : -1;
}
TEST(updating) {                                  /* test_grad_scaling_update_scale */
    int64_t tracker = 0;
    CHECK_NEAR(updated(4, &tracker, false, 2), 4, 0);
    CHECK_INT(tracker, 1);
    CHECK_NEAR(updated(4, &tracker, false, 2), 8, 0);
    CHECK_INT(tracker, 0);
    tracker = 1;
    CHECK_NEAR(updated(8, &tracker, true, 2), 2, 0);
    CHECK_INT(tracker, 0);
    CHECK_NEAR(updated(3e38, &tracker, false, 1), (double)3e38f, 0);           /* it does not overflow */
    CHECK_OK();
}
static opd_optimizer *sgd(opd_tensor **w, double lr) {
    opd_sgd_options o = opd_sgd_defaults();
    o.lr = lr;
    return opd_sgd_new(w, 1, &o);
}
TEST(scaler_rounds) {
    opd_scaler_options o = opd_scaler_defaults();
    opd_tensor *w = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
    opd_optimizer *a = sgd(&w, 1);
    opd_scaler *s;
    opd_scaler_state state;
    o.init_scale = 128; o.growth_interval = 2;
    s = opd_scaler_new(&o);
    CHECK_OR_RETURN(a && s);
    CHECK(opd_scaler_step(s, a) == -1 && failed_with("Attempted opd_scaler_step but nothing was scaled"));
    CHECK_INT(opd_backward(opd_scaler_scale(s, opd_sum(w))), 0);
    CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(w), 0, 0)), 128, 0);
    CHECK_INT(opd_scaler_unscale(s, a), 0);
    CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(w), 0, 0)), 1, 0);
    CHECK(opd_scaler_unscale(s, a) == -1 && failed_with("has already been called on this optimizer since the last update."));
    CHECK_INT(opd_scaler_step(s, a), 0);          /* not unscaled again */
    CHECK_NEAR(opd_item_f64(opd_select(opd_detach(w), 0, 0)), 0, 0);
    CHECK(opd_scaler_unscale(s, a) == -1 && failed_with("is being called after opd_scaler_step"));
    CHECK(opd_scaler_step(s, a) == -1 && failed_with("opd_scaler_step has already been called since the last update."));
    CHECK_INT(opd_scaler_update(s, 0), 0);
    CHECK_NEAR(opd_scaler_get(s).scale, 128, 0);
    CHECK_INT(opd_scaler_get(s).growth_tracker, 1);
    CHECK_INT(opd_backward(opd_scaler_scale(s, opd_sum(w))), 0);          /* a second good round: it grows */
    CHECK_INT(opd_scaler_step(s, a), 0);
    CHECK_INT(opd_scaler_update(s, 0), 0);
    CHECK_NEAR(opd_scaler_get(s).scale, 256, 0);
    opd_optimizer_zero_grad(a);
    CHECK_INT(opd_backward(opd_scaler_scale(s, opd_sum(opd_mul_Scalar(w, opd_value_double(3e38))))), 0);
    {
        double was = opd_item_f64(opd_select(opd_detach(w), 0, 0));
        CHECK_INT(opd_scaler_step(s, a), 1);      /* infinite: left out */
        CHECK_NEAR(opd_item_f64(opd_select(opd_detach(w), 0, 0)), was, 0);
    }
    CHECK_INT(opd_scaler_update(s, 0), 0);
    state = opd_scaler_get(s);
    CHECK(state.scale == 128 && state.growth_tracker == 0);
    CHECK(opd_scaler_update(s, 0) == -1 && failed_with("No inf checks were recorded prior to update."));
    CHECK_INT(opd_scaler_update(s, 1000), 0);
    CHECK_NEAR(opd_scaler_get(s).scale, 1000, 0);
    opd_optimizer_zero_grad(a);
    CHECK(opd_scaler_step(s, a) == -1 && failed_with("No inf checks were recorded for this optimizer"));
    state.growth_tracker = 5;
    CHECK_INT(opd_scaler_set(s, state), 0);
    CHECK(opd_scaler_get(s).growth_tracker == 5 && opd_scaler_get(s).scale == 128);
    state.growth_factor = 1;
    CHECK(opd_scaler_set(s, state) == -1 && failed_with("Growth factor must be > 1.0"));
    state.growth_factor = 2; state.backoff_factor = 1;
    CHECK(opd_scaler_set(s, state) == -1 && failed_with("Backoff factor must be < 1.0"));
    state.backoff_factor = 0.5; state.scale = -1;
    CHECK(opd_scaler_set(s, state) == -1 && failed_with("scale (-1)"));
    opd_scaler_free(s);
    opd_optimizer_free(a);
    CHECK_OK();
}
TEST(scaler_off_and_float16) {
    opd_scaler_options o = opd_scaler_defaults();
    opd_tensor *w = opd_tensor_set_requires_grad(in(opd_ones(OPD_INTS(2), OPD_FLOAT32), OPD_FLOAT16), true), *loss;
    opd_optimizer *a = sgd(&w, 1);
    opd_scaler *s = opd_scaler_new(NULL), *off;
    o.enabled = false;
    off = opd_scaler_new(&o);
    CHECK_OR_RETURN(a && s && off);
    CHECK_INT(opd_backward(opd_scaler_scale(s, opd_sum(w))), 0);
    CHECK(opd_scaler_step(s, a) == -1 && failed_with("Attempting to unscale FP16 gradients."));
    loss = opd_sum(w);
    CHECK(opd_scaler_scale(off, loss) == loss);
    CHECK_INT(opd_scaler_unscale(off, a), 0);
    opd_optimizer_zero_grad(a);
    CHECK_INT(opd_backward(loss), 0);
    CHECK_INT(opd_scaler_step(off, a), 0);
    CHECK_INT(opd_scaler_update(off, 0), 0);
    CHECK_NEAR(opd_scaler_get(off).scale, 1, 0);
    CHECK_NEAR(opd_item_f64(opd_select(opd_detach(w), 0, 0)), 0, 0);
    CHECK(opd_scaler_scale(NULL, loss) == NULL && failed_with("the scaler is NULL"));
    CHECK(opd_scaler_scale(s, NULL) == NULL && failed_with("opd_scaler_scale"));
    CHECK(opd_scaler_step(s, NULL) == -1 && failed_with("the optimizer is NULL"));
    o.enabled = true; o.growth_factor = 0.5;
    CHECK(opd_scaler_new(&o) == NULL && failed_with("Growth factor must be > 1.0"));
    opd_scaler_free(NULL);
    opd_scaler_free(s);
    opd_scaler_free(off);
    opd_optimizer_free(a);
    CHECK_OK();
}
TEST(scaler_with_parameters_of_two_devices) {
    opd_scaler *s = opd_scaler_new(NULL);
    opd_sgd_options o = opd_sgd_defaults();
    opd_tensor *w[3];
    opd_optimizer *a;
    npu_on();
    w[0] = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
    w[1] = opd_tensor_set_requires_grad(on(opd_ones(OPD_INTS(2), OPD_FLOAT32), NPU), true);
    w[2] = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(3), OPD_BFLOAT16), true);
    a = opd_sgd_new(w, 3, &o);
    CHECK_OR_RETURN(s && a);
    CHECK_INT(opd_backward(opd_scaler_scale(s, opd_sum(w[0]))), 0);
    CHECK_INT(opd_backward(opd_scaler_scale(s, opd_sum(w[1]))), 0);
    CHECK_INT(opd_backward(opd_scaler_scale(s, opd_sum(w[2]))), 0);
    CHECK_INT(opd_scaler_unscale(s, a), 0);
    CHECK_NEAR(opd_item_f64(opd_select(on(opd_tensor_grad(w[1]), OPD_CPU), 0, 0)), 1, 0);
    CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(w[0]), 0, 0)), 1, 0);
    CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(w[2]), 0, 0)), 1, 0);
    opd_scaler_free(s);
    opd_optimizer_free(a);
    CHECK_OK();
}

//-- memory ------------------------------------------------------------------------------------------------------------

static int everything(void *arg) {
    opd_tensor *x = f32(OPD_INTS(2, 3)), *w[2], *y = NULL;
    opd_autograd_function f = mm_function(mm_forward_f32);
    opd_scaler *s = opd_scaler_new(NULL);
    opd_optimizer *a;
    opd_value v[2];
    int rc = -1;
    w[0] = weight(OPD_INTS(3, 3)); w[1] = weight(OPD_INTS(3, 3));
    a = opd_ok() ? opd_sgd_new(w, 2, NULL) : NULL;
    if (a && s) {
        OPD_AUTOCAST(OPD_CPU) {
            y = opd_mm(x, w[0]);
            v[0] = opd_value_tensor(y); v[1] = opd_value_tensor(w[1]);
            y = opd_ok() ? opd_autograd_call(&f, v, 2) : NULL;
            v[0] = opd_value_tensor(y); v[1] = opd_value_tensor(y);
            y = opd_ok() ? opd_mse_loss(opd_mm(y, w[0]), x) : NULL;
        }
        if (y && opd_backward(opd_scaler_scale(s, y)) == 0 && opd_scaler_step(s, a) >= 0) { rc = opd_scaler_update(s, 0); }
    }
    opd_optimizer_free(a);
    opd_scaler_free(s);
    CHECK(matches(OPD_CPU, false, OPD_BFLOAT16, true));       /* the state is as it was */
    (void)arg;
    return rc;
}
TEST(out_of_memory) {
    int64_t n;
    CHECK_INT(everything(NULL), 0);
    n = check_allocations(everything, NULL, "everything", 2000, true);
    CHECK(n > 50 && n < 2000);
}

//-- a region inside of vmap -----------------------------------------------------------------------------------------------

/* mv is not cast on the CPU; the product that its batching rule calls is, and what comes back to its formula in bfloat16
   meets a matrix in float32. */
static opd_tensor *vmapped_matrix;
static int vmapped_mv(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_sum(opd_sin(opd_to_dtype(opd_mv(vmapped_matrix, in[0]), OPD_FLOAT32)));
    return out[0] ? 1 : -1;
}
static int vmapped_slope(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    int rc = -1;
    OPD_AUTOCAST_AS(OPD_CPU, OPD_DTYPE_NONE, user != NULL, -1) { rc = opd_grad(vmapped_mv, NULL, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS); }
    return rc;
}
TEST(gradient_of_a_product_in_a_region_inside_vmap) {
    const float m[] = {0.5f, -0.25f, 1, 0.75f, 0.5f, -0.5f}, v[] = {0.5f, 1, 1.5f, -1, 0.25f, 2};
    opd_tensor *x = opd_tensor_from(v, OPD_INTS(2, 3), OPD_FLOAT32), *plain[1] = {NULL}, *cast[1] = {NULL};
    vmapped_matrix = opd_tensor_from(m, OPD_INTS(2, 3), OPD_FLOAT32);
    CHECK_INT(opd_vmap(vmapped_slope, NULL, &x, 1, NULL, plain, 1), 1);
    CHECK_INT(opd_vmap(vmapped_slope, &x, &x, 1, NULL, cast, 1), 1);
    CHECK_OK();
    CHECK_OR_RETURN(plain[0] && cast[0]);
    CHECK_INT(opd_dtype(cast[0]), OPD_FLOAT32);
    CHECK(opd_item_f64(opd_max(opd_abs(opd_sub(plain[0], cast[0])))) < 0.02);
}

/* What a scaler knows of an optimizer that is gone is not said of the next one, wherever in memory that is. */
TEST(a_scaler_tells_optimizers_apart) {
    opd_scaler *s = opd_scaler_new(NULL);
    int i;
    CHECK_OR_RETURN(s != NULL);
    for (i = 0; i < 20; i++) {
        opd_tensor *w = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
        opd_optimizer *a = sgd(&w, 1);
        CHECK_INT(opd_backward(opd_scaler_scale(s, opd_sum(w))), 0);
        CHECK_INT(opd_scaler_unscale(s, a), 0);
        CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(w), 0, 0)), 1, 0);
        CHECK_INT(opd_scaler_step(s, a), 0);
        CHECK_OK();
        opd_optimizer_free(a);
    }
    opd_scaler_free(s);
}

/* Products whose kernels do not call mm in PyTorch are not lowered. */
TEST(packed_and_grouped_products_are_not_lowered) {
    OPD_SCOPED;
    opd_tensor *const x = opd_div_Scalar(opd_reshape(opd_arange(opd_value_int(15), OPD_FLOAT32), OPD_INTS(3, 5)),
                                         opd_value_double(7));
    opd_tensor *const weight = opd_to_dtype(opd_mul_Scalar(x, opd_value_double(50)), OPD_INT8);
    opd_tensor *const experts = opd_reshape(opd_t(x), OPD_INTS(1, 5, 3)), *const ends = opd_full(OPD_INTS(1), opd_value_int(3), OPD_INT32);
    opd_tensor *want[2], *got[2] = {NULL, NULL};
    want[0] = opd__weight_int8pack_mm(x, weight, opd_ones(OPD_INTS(3), OPD_FLOAT32));
    want[1] = opd__grouped_mm_full(x, experts, ends, NULL, OPD_NONE);
    OPD_AUTOCAST(OPD_CPU) {
        got[0] = opd__weight_int8pack_mm(x, weight, opd_ones(OPD_INTS(3), OPD_FLOAT32));
        got[1] = opd__grouped_mm_full(x, experts, ends, NULL, OPD_NONE);
    }
    CHECK_OK();
    for (int i = 0; i < 2; i++) { CHECK(got[i] && opd_dtype(got[i]) == OPD_FLOAT32 && opd_equal(got[i], want[i])); }
}
/* The products within an exponential are not lowered; as in PyTorch. */
TEST(autocast_leaves_exponentials_of_matrices) {
    OPD_SCOPED;
    opd_tensor *const x = opd_sin(opd_reshape(opd_arange(opd_value_int(25), OPD_FLOAT32), OPD_INTS(5, 5)));
    opd_tensor *const want = opd_linalg_matrix_exp(x);
    opd_autocast_region region = opd_autocast_begin(OPD_CPU, OPD_BFLOAT16, true, -1);
    opd_tensor *const got = opd_linalg_matrix_exp(x);
    opd_autocast_end(&region);
    CHECK(got && want && opd_equal(got, want));
    CHECK_OK();
}
/* As in PyTorch, inner and tensordot are dot products if only contracted dims are longer than 1, and products of
   matrices otherwise.  Autocast lowers only the latter on the CPU. */
TEST(autocast_lowers_contractions_unless_they_are_dot_products) {
    static const int64_t sizes[][4] = {            /* 1 x k and 1 x k; m x k and n x k */
        {1, 3, 1, 3}, {1, 1, 1, 1}, {1, 0, 1, 0}, {2, 3, 1, 3}, {1, 3, 2, 3}, {2, 1, 2, 1}, {2, 0, 1, 0}};
    OPD_SCOPED;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const bool dot = sizes[i][0] == 1 && sizes[i][2] == 1;
        for (int flat = 0; flat < 2; flat++) {     /* 1: without the dim of size 1 */
            opd_tensor *in[2], *got[3] = {NULL, NULL, NULL};
            for (int k = 0; k < 2; k++) {
                in[k] = opd_ones(opd_ints_of(sizes[i] + 2 * k, 2), OPD_FLOAT32);
                if (flat && sizes[i][2 * k] == 1) { in[k] = opd_select(in[k], 0, 0); }
            }
            const int64_t first = opd_ndim(in[0]) - 1, second = opd_ndim(in[1]) - 1;
            OPD_AUTOCAST(OPD_CPU) {
                got[0] = opd_inner(in[0], in[1]);
                got[1] = opd_tensordot(in[0], in[1], opd_ints_of(&first, 1), opd_ints_of(&second, 1));
                got[2] = opd_tensordot(in[0], opd_t(in[1]), OPD_INTS(-1), OPD_INTS(0));
            }
            CHECK_OK();
            for (int k = 0; k < 3 && got[k]; k++) {
                CHECK_INT(opd_dtype(got[k]), dot ? OPD_FLOAT32 : OPD_BFLOAT16);
                CHECK_INT(opd_numel(got[k]), sizes[i][0] * sizes[i][2]);
                if (opd_numel(got[k])) { CHECK_NEAR(opd_item_f64(opd_amax(got[k], opd_ints_of(NULL, 0), false)), (double)sizes[i][1], 0); }
            }
        }
    }
    OPD_AUTOCAST(OPD_CPU) {                        /* more than one contracted dim, and none */
        opd_tensor *const x = opd_ones(OPD_INTS(1, 2, 3), OPD_FLOAT32), *const y = opd_ones(OPD_INTS(3, 2), OPD_FLOAT32);
        opd_tensor *const z = opd_ones(OPD_INTS(1), OPD_FLOAT32);
        CHECK_INT(opd_dtype(opd_tensordot(x, y, OPD_INTS(2, 1), OPD_INTS(0, 1))), OPD_FLOAT32);
        CHECK_INT(opd_dtype(opd_tensordot(x, y, OPD_INTS(2), OPD_INTS(0))), OPD_BFLOAT16);
        CHECK_INT(opd_dtype(opd_tensordot(z, z, opd_ints_of(NULL, 0), opd_ints_of(NULL, 0))), OPD_FLOAT32);
    }
    CHECK_OK();
}
/* The parts of a vector product are not promoted, which fails for float16 in a region of bfloat16. */
TEST(autocast_leaves_vector_products) {
    OPD_SCOPED;
    opd_tensor *const x = opd_full(OPD_INTS(2, 3), opd_value_double(2), OPD_FLOAT16);
    opd_tensor *got[2] = {NULL, NULL};
    OPD_AUTOCAST(OPD_CPU) {
        got[0] = opd_linalg_cross(x, x);
        got[1] = opd_cross(x, x);
    }
    CHECK_OK();
    for (int i = 0; i < 2; i++) { CHECK(got[i] && opd_dtype(got[i]) == OPD_FLOAT16 && opd_item_f64(opd_sum(opd_abs(got[i]))) == 0); }
}
/* bilinear and its derivative stay in float32, as in PyTorch. */
TEST(autocast_leaves_bilinear) {
    OPD_SCOPED;
    opd_tensor *in[3], *got[2] = {NULL, NULL}, *grads[3], *want[3];
    static const int64_t cube[] = {2, 3, 4}, rows[] = {3, 4}, columns[] = {4, 3};
    for (int i = 0; i < 3; i++) {
        in[i] = opd_sin(opd_add_Scalar(opd_arange(opd_value_int(i == 2 ? 24 : 12), OPD_FLOAT32), opd_value_double(i / 3.)));
        in[i] = opd_reshape(in[i], opd_ints_of(i == 2 ? cube : i ? rows : columns, i == 2 ? 3 : 2));
    }
    in[0] = opd_narrow(in[0], 0, 0, 3);
    for (int i = 0; i < 3; i++) { in[i] = opd_tensor_set_requires_grad(opd_clone(in[i]), true); }
    got[0] = opd_bilinear(in[0], in[1], in[2]);
    OPD_AUTOCAST(OPD_CPU) { got[1] = opd_bilinear(in[0], in[1], in[2]); }
    CHECK_OR_RETURN(got[0] && got[1]);
    CHECK(opd_dtype(got[1]) == OPD_FLOAT32 && opd_equal(got[0], got[1]));
    for (int i = 0; i < 2; i++) {
        opd_tensor *const sum = opd_sum(opd_mul(got[i], got[i]));
        CHECK_INT(opd_autograd_grad(&sum, 1, in, 3, NULL, i ? grads : want), 0);
    }
    for (int i = 0; i < 3 && opd_ok(); i++) { CHECK(opd_equal(grads[i], want[i])); }
    CHECK_OK();
}
CHECK_MAIN()
