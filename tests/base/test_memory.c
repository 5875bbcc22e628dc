/* Failing allocations: for every n, the n-th allocation fails, either alone or with all later ones.  Each time, the
   call fails with an error or succeeds, no memory is lost, and the library still works. */
#include "../../opdispatch.h"
#include "../check.h"
#if !defined(_WIN32)
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

/* What is tried: 0 when it worked. */
typedef int (*attempt)(void);

static int tried(attempt fn) {
    int rc;
    opd_scope scope = opd_scope_open();
    rc = fn();
    opd_scope_close(&scope);
    return rc;
}
static void every_allocation(attempt fn, int most) {
    int forever, n;
    int64_t live, seen;
    CHECK_INT(tried(fn), 0);                      /* memory that grows only once is allocated here */
    CHECK_INT(tried(fn), 0);
    CHECK_OK();
    live = opd_memory_stats().live;
    CHECK_INT(tried(fn), 0);
    if (opd_memory_stats().live != live) { printf("    %s: the attempt alone loses %d bytes\n", check_current, (int)(opd_memory_stats().live - live)); }
    for (forever = 0; forever < 2; forever++) {
        for (n = 1; n <= most; n++) {
            int rc;
            live = opd_memory_stats().live;
            (void)opd_memory_fail_at(n, forever != 0);
            rc = tried(fn);
            seen = opd_memory_fail_at(0, false);
            if (seen < n) { CHECK(rc == 0 && opd_ok()); opd_error_clear(); break; }
            if (opd_ok() ? rc != 0 : opd_error_code() != OPD_ERROR_MEMORY) {
                printf("    allocation %d%s: rc %d, error %d %s\n", n, forever ? " and after" : "", rc, (int)opd_error_code(), opd_error_message());
                CHECK(!"an error that is not OPD_ERROR_MEMORY");
            }
            opd_error_clear();
            if (opd_memory_stats().live > live) {
                printf("    allocation %d%s: loses %d bytes\n", n, forever ? " and after" : "", (int)(opd_memory_stats().live - live));
                CHECK(!"memory is lost");
            }
            CHECK_INT(tried(fn), 0);              /* and it works again */
            CHECK_OK();
        }
        CHECK(n <= most);
    }
    CHECK_INT(opd_check_invariants(), 0);
}

static opd_tensor *some(int64_t n) {
    static float v[64];
    int i;
    for (i = 0; i < 64; i++) { v[i] = (float)i / 16 + 0.5f; }
    return opd_tensor_from(v, opd_ints_of(&n, 1), OPD_FLOAT32);
}
static opd_tensor *leaf(int64_t n) {
    opd_tensor *t = some(n);
    return t ? opd_tensor_set_requires_grad(t, true) : NULL;
}

//-- schemas and registration ------------------------------------------------------------------------------------------

static int a_parse(void) {
    opd_schema *s = opd_schema_parse("ns::op.ov(Tensor(a!) self, Tensor?[] list, int[2] x=[1,2], *, str s=\"text\", ScalarType? d=None, "
                                     "(int, float)[] t) -> (Tensor(a!) out, Tensor(b -> *)[] more)");
    if (!s) { return -1; }
    opd_schema_free(s);
    return 0;
}
TEST(parse) { every_allocation(a_parse, 1000); }
static int a_bad_parse(void) {
    opd_schema *s = opd_schema_parse("op(Tensor[] a, int[] b=[1, 2, 3], Tensor(a|b) c, foo d) -> ()");
    int code = (int)opd_error_code();
    if (s) { opd_schema_free(s); return -1; }
    if (code == OPD_ERROR_SCHEMA) { opd_error_clear(); return 0; }
    return -1;
}
TEST(parse_of_an_error) { every_allocation(a_bad_parse, 1000); }

static int k_same(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
static void k_destroy(void *user) { ++*(int *)user; }
static int a_library(void) {
    static int gone;
    opd_library *a = opd_library_open(OPD_DEF, "oom", NULL, "m", 1), *b = a ? opd_library_open(OPD_IMPL, "oom", "CPU", "m", 2) : NULL;
    opd_library *c = b ? opd_library_open(OPD_IMPL, "_", "Functionalize", "m", 3) : NULL;
    opd_library *d = c ? opd_library_open(OPD_IMPL, "_", "AutogradPrivateUse1", "m", 3) : NULL;
    opd_tensor *t;
    int rc = -1;
    if (d && opd_def(a, "one(Tensor x, int[] y=[1,2]) -> Tensor") == 0 && opd_impl(b, "one", k_same) == 0 && opd_fallback(c, k_same) == 0 &&
        opd_impl_key(a, "one", "Meta", k_same, &gone, k_destroy) == 0) {
        static opd_op *h;
        t = some(3);
        rc = t && OPD_CALL(OPD_OP(&h, "oom::one"), t) ? 0 : -1;
    }
    opd_library_close(d);
    opd_library_close(c);
    opd_library_close(b);
    opd_library_close(a);
    return rc;
}
TEST(library) { every_allocation(a_library, 1000); }

static int k_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
static int k_twice(opd_call *call) {
    opd_tensor *t = opd_arg_tensor(call, 0), *out = opd_result(call, 0, opd_sizes(t), opd_ndim(t), opd_dtype(t));
    int64_t i;
    for (i = 0; out && opd_data(out) && i < opd_numel(t); i++) { opd_data_f32(out)[i] = 2 * opd_data_f32(t)[i]; }
    return out ? 0 : -1;
}
static int a_define(void) {
    opd_library *a = opd_library_open(OPD_DEF, "oomd", NULL, "m", 1);
    opd_op_desc d;
    int rc;
    memset(&d, 0, sizeof d);
    d.schema = "two(Tensor self) -> Tensor";
    d.cpu = d.fake = k_twice;
    d.backward = k_backward;
    d.save = "self";
    d.inplace = "two_";
    d.out = "two.out";
    d.vmap = OPD_BATCH_LOOP;
    rc = a ? opd_define(a, &d) : -1;
    if (rc == 0) {
        opd_tensor *t = leaf(3), *y = OPD_CALL(opd_find("oomd::two"), t);
        rc = y && opd_backward(opd_sum(y)) == 0 && OPD_CALL(opd_find("oomd::two_"), some(3)) && OPD_CALL(opd_find("oomd::two.out"), some(3), some(3))
             ? 0 : -1;
    }
    opd_library_close(a);
    return rc;
}
TEST(define) { every_allocation(a_define, 2000); }
/* What was registered before a step failed is all that is there; the operator is called after each step. */
static int k_self(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
static int k_wrapped(opd_call *call) {
    opd_value args[OPD_MAX_ARGS], r[1];
    int i;
    for (i = 0; i < opd_call_nargs(call); i++) {
        args[i] = opd_arg_value(call, i);
        if (args[i].tag == OPD_TAG_TENSOR && opd_tensor_unwrap_key(args[i].u.t, OPD_F_GRAD_WRAPPER)) {
            args[i].u.t = opd_tensor_unwrap_key(args[i].u.t, OPD_F_GRAD_WRAPPER);
        }
    }
    if (opd_call_all(opd_call_operator(call), r, args, opd_call_nargs(call))) { return -1; }
    return opd_return_tensor(call, opd_tensor_wrap_key(r[0].u.t, OPD_F_GRAD_WRAPPER));
}
static void told(void *user, opd_op *op) { *(int *)user += opd_op_name(op) != NULL; }
static void mute(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
static int64_t ways_scaled(double x, int64_t n) { return (int64_t)x * n; }
OPD_FUNCTION(ways_scaled_op, ways_scaled, int64_t, double, int64_t)
static int a_registry(void) {
    const bool known = opd_op_list(NULL, NULL, 0) > 0;            /* all that are built in count before */
    const opd_registry_info before = opd_registry_stats();
    opd_library *libs[4] = {NULL, NULL, NULL, NULL};
    opd_def_options again;
    opd_listener *listener = NULL;
    opd_registry_info after;
    opd_value v[2], r[1];
    opd_keyword kw;
    char text[64];
    int heard = 0, rc = -1, i;
    memset(&again, 0, sizeof again);
    again.same_again = 1;
    kw.name = "n"; kw.value = opd_value_double(2);
    opd_log_set(mute, NULL);
    do {
        opd_tensor *x = some(2);
        libs[0] = opd_library_open(OPD_FRAGMENT, "ways", NULL, __FILE__, __LINE__);
        libs[1] = opd_library_open(OPD_FRAGMENT, "ways", NULL, __FILE__, __LINE__);
        libs[2] = opd_library_open(OPD_IMPL, "aten", "CPU", __FILE__, __LINE__);
        libs[3] = opd_library_open(OPD_IMPL, "_", opd_key_name(OPD_F_GRAD_WRAPPER), __FILE__, __LINE__);
        listener = opd_listener_add(told, told, &heard);
        if (!known || !x || !libs[0] || !libs[1] || !libs[2] || !libs[3] || !listener ||
            opd_def_with(libs[0], "op(Tensor self, float[2] n=[1, 2]) -> Tensor", &again) ||
            opd_def_with(libs[1], "op(Tensor self, float[2] n=[1, 2]) -> Tensor", &again) ||
            opd_def(libs[1], "op.more(Tensor self, int[2] n) -> Tensor") ||
            opd_impl_key(libs[0], "op", "CPU", k_self, NULL, NULL) ||
            opd_impl_key(libs[1], "op.more", "CompositeExplicitAutograd", k_self, NULL, NULL) ||
            opd_def_function(libs[0], "scaled", &ways_scaled_op) ||
            opd_impl(libs[2], "neg", k_self) || opd_fallback(libs[3], k_wrapped)) { break; }
        v[0] = opd_value_tensor(x);
        v[1] = opd_value_int(3);
        if (opd_call_all(opd_find("ways::op"), r, v, 2) || opd_call_at(opd_find("ways::op"), "CPU", r, v, 2) ||
            opd_call_keywords(opd_find("ways::op"), r, v, 1, &kw, 1) ||
            opd_overloads_call(opd_overloads_find("ways::op"), r, v, 2, NULL, 0) ||
            !opd_overloads_resolve(opd_overloads_find("ways::op"), v, 1, &kw, 1) || !opd_neg(x) ||
            opd_explain(opd_find("ways::op"), v, 2, text, sizeof text) == 0 ||
            opd_dump(opd_find("ways::op"), text, sizeof text) == 0 ||
            opd_dump_table(opd_find("ways::op"), text, sizeof text) == 0) { break; }
        v[0] = opd_value_tensor(opd_tensor_wrap_key(x, OPD_F_GRAD_WRAPPER));
        if (!v[0].u.t || opd_call_all(opd_find("ways::op"), r, v, 2)) { break; }
        rc = opd_tensor_unwrap_key(r[0].u.t, OPD_F_GRAD_WRAPPER) == x ? 0 : -1;
    } while (0);
    opd_log_set(NULL, NULL);
    opd_listener_remove(listener);
    for (i = 0; i < 4; i++) { opd_library_close(libs[i]); }
    after = opd_registry_stats();
    CHECK_INT(after.kernels, before.kernels);
    CHECK_INT(after.fallbacks, before.fallbacks);
    CHECK_INT(after.libraries, before.libraries);
    CHECK_INT(after.retired, 0);
    CHECK_INT(after.operators, before.operators);
    return rc;
}
TEST(registry) { every_allocation(a_registry, 2000); }

//-- calls -------------------------------------------------------------------------------------------------------------

static int a_ops(void) {
    opd_tensor *a = some(6), *b = some(6), *r;
    r = opd_add(opd_mul(a, b), opd_exp(a));
    r = opd_where_ScalarOther(opd_gt(r, b), r, OPD_V(1));
    r = opd_sum(opd_matmul(opd_view(r, OPD_INTS(2, 3)), opd_view(r, OPD_INTS(3, 2))));
    return r ? 0 : -1;
}
TEST(operators) { every_allocation(a_ops, 1000); }

static int a_views(void) {
    opd_tensor *a = opd_view(some(24), OPD_INTS(2, 3, 4)), *v;
    v = opd_transpose(a, 0, 2);
    v = opd_select(v, 0, 1);
    v = opd_contiguous(opd_expand(opd_unsqueeze(v, 0), OPD_INTS(5, 3, 2)));
    v = opd_reshape(v, OPD_INTS(-1));
    return v && opd_tensor_view(v, NULL, NULL, 0, 0) ? 0 : -1;
}
TEST(views) { every_allocation(a_views, 1000); }

static int a_forms(void) {
    static opd_op *add_out, *exp_;
    opd_tensor *a = some(6), *out = some(2), *wide = opd_tensor_new(opd_ints_of(NULL, 0), OPD_FLOAT64);
    opd_tensor *big = opd_tensor_new(OPD_INTS(1, 1), OPD_FLOAT32);
    if (!OPD_CALL(OPD_OP(&add_out, "aten::add.out"), a, a, 1, out)) { return -1; }
    if (!OPD_CALL(OPD_OP(&add_out, "aten::add.out"), opd_view(a, OPD_INTS(1, 1, 2, 1, 3, 1)), a, 1, wide)) { return -1; }
    if (!OPD_CALL(OPD_OP(&exp_, "aten::exp_"), opd_view(a, OPD_INTS(2, 3)))) { return -1; }
    return OPD_CALL(OPD_OP(&add_out, "aten::add.out"), opd_expand(a, OPD_INTS(50, 6)), a, 1, big) ? 0 : -1;
}
TEST(out_and_inplace) { every_allocation(a_forms, 1000); }

static int a_lists(void) {
    opd_tensor *a = some(10), *all = a ? opd_cat(OPD_TENSORS(a, opd_slice(a, 0, opd_value_int(1), opd_value_int(5), 1), a), 0) : NULL;
    return all && opd_stack(OPD_TENSORS(all, all), 0) ? 0 : -1;
}
TEST(lists) { every_allocation(a_lists, 1000); }

static int a_split(void) {
    opd_tensors parts = opd_split(some(10), 3, 0);
    return parts.n == 4 && opd_cat(parts, 0) ? 0 : -1;
}
TEST(list_results) { every_allocation(a_split, 1000); }

static int a_loss(void) {
    opd_tensor *x = opd_view(leaf(12), OPD_INTS(3, 4)), *target = opd_zeros(OPD_INTS(3), OPD_INT64), *y;
    y = opd_cross_entropy_loss(opd_cumsum(opd_softmax(x, 1), 1), target);
    return y ? opd_backward(y) : -1;
}
TEST(loss) { every_allocation(a_loss, 4000); }

static int k_every_kind(opd_call *call) {
    static const int64_t ints[] = {4, 5};
    static const double c[] = {1, -1};
    opd_tensor *list[2];
    list[0] = some(1);
    list[1] = opd_arg_tensor(call, 0);
    if (!list[0] || opd_return_tensors(call, list, 2) || opd_return_value(call, opd_value_str("text"))) { return -1; }
    if (opd_return_value(call, opd_value_complex(c)) || opd_return_value(call, opd_value_ints(ints, 2))) { return -1; }
    return opd_return_tensor(call, some(2));
}
static opd_op *every_kind;
static int a_kinds(void) {
    opd_value v = opd_value_tensor(some(1)), r[5];
    return opd_call_all(every_kind, r, &v, 1);
}
TEST(results_of_every_kind) {
    opd_library *lib = opd_library_open(OPD_DEF, "oomk", NULL, "m", 1);
    CHECK_INT(opd_def(lib, "op(Tensor x) -> (Tensor[], str, complex, int[], Tensor)"), 0);
    CHECK_INT(opd_impl_key(lib, "op", "CPU", k_every_kind, NULL, NULL), 0);
    every_kind = opd_find("oomk::op");
    every_allocation(a_kinds, 200);
    opd_library_close(lib);
}

static int deleted;
static void deleter(void *data, void *user) { (void)data; (void)user; deleted++; }
static int a_tensors(void) {
    static float data[8];
    opd_tensor *t, *keep = NULL;
    int before = deleted, rc;
    t = opd_tensor_wrap(data, OPD_INTS(2, 4), NULL, OPD_FLOAT32, deleter, NULL);
    rc = t && opd_assign(&keep, t) && opd_tensor_new_on(OPD_INTS(1, 2, 3, 4, 5, 6, 7, 8), OPD_FLOAT32, opd_device_make(OPD_META, -1)) &&
         opd_tensor_new(OPD_INTS(1000, 1000), OPD_FLOAT64) && opd_tensor_wrapped_number(opd_value_double(1)) ? 0 : -1;
    opd_release(keep);
    if (!t) { CHECK_INT(deleted, before + 1); }
    return rc;
}
TEST(tensors) { every_allocation(a_tensors, 100); }

static int a_scopes(void) {                       /* the stack of handles grows */
    opd_scope inner = opd_scope_open();
    opd_tensor *t = some(1);
    int i;
    for (i = 0; t && i < 3000; i++) { t = opd_scope_return(t) ? t : NULL; }
    opd_scope_close(&inner);
    return t ? 0 : -1;
}
TEST(handles) { every_allocation(a_scopes, 100); }

static int a_generator(void) {
    opd_generator *g = opd_generator_new(1);
    if (!g) { return -1; }
    opd_generator_free(g);
    return 0;
}
TEST(generator) { every_allocation(a_generator, 100); }

//-- autograd ----------------------------------------------------------------------------------------------------------

static int a_backward(void) {
    opd_tensor *x = leaf(4), *w = leaf(4), *y;
    y = opd_sum(opd_tanh(opd_add(opd_mul(x, w), opd_mul(x, x))));
    if (!y || opd_backward(y)) { return -1; }
    y = opd_sum(opd_exp(x));
    return y ? opd_backward(y) : -1;              /* accumulates */
}
TEST(backward) { every_allocation(a_backward, 2000); }

static int a_twice(void) {
    opd_tensor *x = leaf(4), *y = opd_sum(opd_mul(opd_mul(x, x), opd_sigmoid(x))), *g = NULL;
    opd_backward_options o;
    memset(&o, 0, sizeof o);
    o.create_graph = true;
    if (!y || opd_autograd_grad(&y, 1, &x, 1, &o, &g)) { return -1; }
    g = opd_sum(g);
    return g ? opd_backward(g) : -1;
}
TEST(create_graph) { every_allocation(a_twice, 3000); }

static int a_fan(void) {                          /* a graph with more vertices than the engine's first table */
    opd_tensor *x = leaf(1), *y = x, *s = x;
    int i;
    for (i = 0; i < 40; i++) { y = opd_sin(y); s = opd_add(s, y); }
    return s ? opd_backward(opd_sum(s)) : -1;
}
TEST(larger_graph) { every_allocation(a_fan, 3000); }

static int a_network(void) {
    opd_tensor *x = opd_view(some(48), OPD_INTS(1, 3, 4, 4)), *w = opd_view(leaf(54), OPD_INTS(2, 3, 3, 3)), *y;
    y = opd_conv2d(x, w, NULL, OPD_INTS(1), OPD_INTS(0));
    y = opd_sum(opd_flatten(opd_relu(y), 0, -1));
    return y ? opd_backward(y) : -1;
}
TEST(network) { every_allocation(a_network, 4000); }

//-- the first use -----------------------------------------------------------------------------------------------------

static int first_use_failures = -1, first_use_tried;
#if !defined(_WIN32) && !defined(OPD_NO_THREADS)
static int first_use(int64_t n, bool forever) {   /* in a child: 0 fine, 1 wrong, 2 n is past the end */
    int64_t seen, live;
    bool ok;
    (void)opd_memory_fail_at(n, forever);
    (void)opd_find("aten::add.Tensor");
    seen = opd_memory_fail_at(0, false);
    ok = opd_ok();
    if (!ok && opd_error_code() != OPD_ERROR_MEMORY) { printf("    first use, allocation %d: %s\n", (int)n, opd_error_message()); return 1; }
    opd_error_clear();
    if (seen < n) { return ok ? 2 : 1; }
    live = opd_memory_stats().live;
    (void)live;
    if (opd_check_invariants() || !opd_find("aten::add.Tensor") || opd_exp(some(2)) == NULL || opd_finish()) {
        printf("    first use, allocation %d: unusable after it\n", (int)n);
        return 1;
    }
    return 0;
}
static void fail_first_uses(void) {
    int64_t n;
    int forever;
    first_use_failures = 0;
    for (forever = 0; forever < 2; forever++) {
        for (n = 1;; n += n < 20 ? 1 : n < 400 ? 37 : 1999) {
            int status = 0;
            pid_t child;
            (void)fflush(stdout);
            child = fork();
            if (child == 0) { int rc = first_use(n, forever != 0); (void)fflush(stdout); CHECK_CHILD_ENDS(rc); }
            if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) == 1 || WEXITSTATUS(status) > 2) {
                first_use_failures++;
                if (first_use_failures > 3) { break; }
            }
            first_use_tried++;
            if (child < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 2)) { break; }
        }
    }
}
#else
static void fail_first_uses(void) {}
#endif
TEST(first_use) {
    if (first_use_failures < 0) { SKIP("needs fork"); }
    CHECK_INT(first_use_failures, 0);
    CHECK(first_use_tried > 40);
}

/* Work whose sizes change: free blocks of earlier sizes make room for new blocks.  Free blocks and blocks in use
   together stay below the most bytes that were in use and 512 MiB. */
TEST(large_blocks_of_changing_sizes) {
    int64_t most = 0;
    opd_memory_trim();
    opd_memory_reset_peak();
    for (int i = 0; i < 6; i++) {
        OPD_SCOPE {
            for (int k = 0; k < 8; k++) {
                CHECK(opd_empty(OPD_INTS((int64_t)(90 + 13 * i + k) << 18), OPD_FLOAT32) != NULL);
                const opd_memory memory = opd_memory_stats();
                if (memory.live + memory.cached - memory.peak > most) {
                    most = memory.live + memory.cached - memory.peak;
                }
            }
        }
    }
    CHECK(most <= (int64_t)520 << 20);
    opd_memory_trim();
}

#if defined(__linux__) && !defined(CHECK_SANITIZED)
/* If the system has no memory for a block, free blocks of other sizes are given up for it. */
TEST(large_block_without_memory) {
    const int64_t some = (int64_t)60 << 18, other = (int64_t)300 << 18;      /* of float32: 60 and 300 MiB */
    int status = -1;
    opd_memory_trim();
    const pid_t child = fork();
    if (child == 0) {
        struct rlimit limit;
        long pages = 0;
        OPD_SCOPE { for (int i = 0; i < 12; i++) { (void)opd_empty(OPD_INTS(some), OPD_FLOAT32); } }
        FILE *const file = fopen("/proc/self/statm", "r");
        if (!file || fscanf(file, "%ld", &pages) != 1) { pages = 0; }
        if (file) { (void)fclose(file); }
        limit.rlim_cur = limit.rlim_max = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + ((rlim_t)64 << 20);
        const bool cached = opd_memory_stats().cached > (int64_t)400 << 20;       /* else built without the cache */
        const bool limited = pages && cached && setrlimit(RLIMIT_AS, &limit) == 0;
        OPD_SCOPE { status = limited && !opd_empty(OPD_INTS(other), OPD_FLOAT32); }
        CHECK_CHILD_ENDS(status);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}
#endif

/* A cache that is full of blocks of one size gives them up for another size.  The cached bytes stay below the limit:
   the most bytes that were in use lately, and 512 MiB.  This limit falls if less is in use for a long time. */
TEST(large_blocks_of_another_size) {
    const int64_t some = (int64_t)60 << 18, other = (int64_t)100 << 18;      /* of float32: 60 and 100 MiB */
    int i, same = 0;
    opd_memory_trim();
    OPD_SCOPE { for (i = 0; i < 12; i++) { CHECK(opd_empty(OPD_INTS(some), OPD_FLOAT32) != NULL); } }
    if (opd_memory_stats().cached < (int64_t)400 << 20) { opd_memory_trim(); SKIP("built without the cache"); }
    CHECK(opd_memory_stats().cached >= (int64_t)720 << 20);           /* the next run of the same work finds all */
    for (i = 0; i < 60000; i++) { OPD_SCOPE { (void)opd_empty(OPD_INTS(40000), OPD_FLOAT32); } }
    CHECK(opd_memory_stats().cached <= (int64_t)560 << 20);
    for (i = 0; i < 5; i++) {
        OPD_SCOPE {
            float *last = opd_data_f32(opd_empty(OPD_INTS(other), OPD_FLOAT32)) + other - 1;
            same += i > 0 && *last > 41.f && *last < 43.f;      /* new memory is zero */
            *last = 42;
        }
        CHECK(opd_memory_stats().cached <= (int64_t)560 << 20);
    }
    CHECK_INT(same, 4);
    opd_memory_trim();
    CHECK(opd_memory_stats().cached < (int64_t)1 << 20);
}

static void only_when_wanted(void) { fail_first_uses(); }
CHECK_MAIN_ADD(only_when_wanted)
