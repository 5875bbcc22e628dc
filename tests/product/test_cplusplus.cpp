/* Features of the header that only C++ has: brace lists in variables, and scopes that exceptions and jumps leave. */
#include "../check.h"
#include <stdexcept>

static bool is_2_by_3(const opd_tensor *t) { return t && opd_ndim(t) == 2 && opd_size(t, 0) == 2 && opd_size(t, 1) == 3; }
/* Writes over what the stack below held. */
static int dirty() {
    volatile char junk[4096];
    for (size_t i = 0; i < sizeof junk; i++) { junk[i] = 0x5a; }
    return junk[17];
}

TEST(brace_lists_in_variables) {
    auto sizes = OPD_INTS(2, 3);
    auto numbers = OPD_DOUBLES(1.5, 2.5);
    opd_tensor *a = opd_ones(sizes, OPD_FLOAT32);
    auto list = OPD_TENSORS(a, a, NULL);
    const auto none = OPD_INTS();
    CHECK(dirty() == 0x5a);
    CHECK(is_2_by_3(opd_zeros(sizes, OPD_FLOAT32)) && is_2_by_3(a));
    opd_ints i = sizes;
    opd_doubles f = numbers;
    opd_tensors t = list;
    CHECK(i.n == 2 && i.data[1] == 3 && f.n == 2 && f.data[0] == 1.5 && t.n == 3 && t.data[1] == a && !t.data[2]);
    CHECK(none.n == 0);
    CHECK_INT(opd_size(opd_cat(OPD_TENSORS(a, a), 0), 0), 4);
    CHECK_INT(opd_ndim(opd_sum_dim(a, OPD_INTS(0), false)), 1);
    const int64_t three = 3;
    CHECK(is_2_by_3(opd_zeros(OPD_INTS(2, three), OPD_FLOAT32)));
    opd_value v = OPD_V(sizes);
    CHECK(v.tag == OPD_TAG_INTS && v.n == 2 && v.u.ints[0] == 2);
    CHECK_INT(opd_ndim(OPD_CALL(opd_find("aten::sum.dim_IntList"), a, OPD_INTS(0, 1), false)), 0);
}

static void thrown_out_of(int how) {
    switch (how) {
    case 0: OPD_SCOPE { (void)opd_ones(OPD_INTS(2), OPD_FLOAT32); throw std::runtime_error("out"); } break;
    case 1: OPD_NO_GRAD { throw std::runtime_error("out"); } break;
    case 2: OPD_AUTOCAST(OPD_CPU) { throw std::runtime_error("out"); } break;
    case 3: OPD_DUAL_LEVEL { throw std::runtime_error("out"); } break;
    default: OPD_FAKE_MODE { throw std::runtime_error("out"); }
    }
}
TEST(exceptions_leave_blocks) {
    const opd_scope_info before = opd_scope_stats();
    for (int how = 0; how < 5; how++) {
        bool caught = false;
        try { thrown_out_of(how); } catch (const std::runtime_error &) { caught = true; }
        CHECK(caught && opd_grad_mode_enabled() && !opd_autocast_enabled(OPD_CPU) && !opd_fake_enabled());
        CHECK(opd_scope_stats().depth == before.depth && opd_scope_stats().handles == before.handles);
        CHECK(opd_dual_level_begin() == 0 && opd_dual_level_end(0) == 0);
    }
}
#if !defined(CHECK_SANITIZED) && (defined(__x86_64__) || defined(__aarch64__))
static int k_throws(opd_call *call) {
    (void)opd_exp(opd_arg_tensor(call, 0));
    throw std::runtime_error("boom");
}
static int k_catches(opd_call *call) {            /* and goes on */
    opd_tensor *x = opd_arg_tensor(call, 0);
    try { (void)OPD_CALL(opd_find("throws::f"), x); } catch (const std::runtime_error &) { }
    return opd_return_tensor(call, opd_exp(x));
}
TEST(an_exception_out_of_a_kernel_is_an_error) {
    opd_library *lib = opd_library_open(OPD_DEF, "throws", NULL, __FILE__, __LINE__);
    opd_op_desc d = opd_op_desc();
    d.schema = "f(Tensor x) -> Tensor"; d.cpu = k_throws;
    CHECK_INT(opd_define(lib, &d), 0);
    d.schema = "g(Tensor x) -> Tensor"; d.cpu = k_catches;
    CHECK_INT(opd_define(lib, &d), 0);
    d.schema = "h(Tensor x) -> Tensor"; d.cpu = OPD_CATCH(k_throws);
    CHECK_INT(opd_define(lib, &d), 0);
    bool caught = false;
    OPD_SCOPE {
        opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
        try { (void)OPD_CALL(opd_find("throws::f"), opd_detach(x)); } catch (const std::runtime_error &) { caught = true; }
        CHECK(caught);
        (void)opd_add(x, x);
    }
    CHECK_ERROR(OPD_ERROR_KERNEL, "an exception or a longjmp has left a kernel");
    OPD_SCOPE {                                   /* found, or over with the kernel that caught it */
        if (OPD_CALL(opd_find("throws::g"), opd_ones(OPD_INTS(2), OPD_FLOAT32))) { CHECK_OK(); }
        else { CHECK_ERROR(OPD_ERROR_KERNEL, "an exception or a longjmp has left a kernel"); }
    }
    OPD_SCOPE {                                   /* the second call's frame lies where the first one's was */
        opd_op *f = opd_find("throws::f");
        opd_tensor *x = opd_ones(OPD_INTS(2), OPD_FLOAT32);
        int thrown = 0;
        for (int i = 0; i < 1000; i++) { try { (void)OPD_CALL(f, x); } catch (const std::runtime_error &) { thrown++; } }
        CHECK_INT(thrown, 1);
    }
    CHECK_ERROR(OPD_ERROR_KERNEL, "an exception or a longjmp has left a kernel");
    OPD_SCOPE { CHECK(!OPD_CALL(opd_find("throws::h"), opd_ones(OPD_INTS(2), OPD_FLOAT32))); }
    CHECK_ERROR(OPD_ERROR_USER, "boom");
    opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
    CHECK_INT(opd_backward(opd_sum(opd_mul(x, x))), 0);
    CHECK_NEAR(opd_item_f64(opd_select(opd_tensor_grad(x), 0, 0)), 2, 0);
    opd_library_close(lib);
}
#endif
/* OPD_CATCH wraps functions of every result type: the exception is an error of the call during which it was thrown. */
static bool armed;
static void boom() {
    if (!armed) { return; }
    armed = false;
    throw std::runtime_error("boom");
}
static opd_tensor *hook_throws(opd_tensor *, void *) { boom(); return NULL; }
static int leaf_throws(opd_tensor *, void *) { boom(); return 0; }
static void *pack_throws(opd_tensor *x, void *) { boom(); return opd_keep(x); }
static opd_tensor *unpack_throws(void *packed, void *) { boom(); return static_cast<opd_tensor *>(packed); }
static void drop_throws(void *packed, void *) { opd_release(static_cast<opd_tensor *>(packed)); boom(); }
static void *begin_throws(const opd_event *, void *) { boom(); return NULL; }
static void end_throws(const opd_event *, void *, void *) { boom(); }
static int function_throws(void *, opd_tensor *const *in, int, opd_tensor **out) {
    boom();
    out[0] = opd_sum(opd_mul(in[0], in[0]));
    return 1;
}
static int function_without(void *, opd_tensor *const *in, int, opd_tensor **out) noexcept {
    out[0] = opd_sum(opd_mul(in[0], in[0]));
    return 1;
}
static bool warned;
static void hear(void *, int, const char *text) { warned = warned || strstr(text, "boom"); }
static void act(int way, opd_tensor *x) {
    opd_tensor *out[8], *y = opd_mul(x, x);
    opd_observer watch = opd_observer();
    int64_t handle = 0;
    switch (way) {
    case 0: CHECK(opd_tensor_hook_add(y, OPD_CATCH(hook_throws), NULL, NULL) != 0); break;
    case 1: CHECK(opd_tensor_post_accumulate_hook_add(x, OPD_CATCH(leaf_throws), NULL, NULL) != 0); break;
    case 2: watch.begin = OPD_CATCH(begin_throws); break;
    case 3: watch.end = OPD_CATCH(end_throws); break;
    case 4: CHECK_INT(opd_grad(OPD_CATCH(function_throws), NULL, &x, 1, NULL, out, 8), -1); return;
    case 5: CHECK(!opd_graph_trace(OPD_CATCH(function_throws), NULL, &x, 1, NULL)); return;
    case 6: CHECK_INT(opd_checkpoint_call(OPD_CATCH(function_throws), NULL, NULL, &x, 1, NULL, out, 8), -1); return;
    default: CHECK_INT(opd_grad(OPD_CATCH(function_without), NULL, &x, 1, NULL, out, 8), 1); return;
    }
    if (watch.begin || watch.end) { handle = opd_observer_add_local(&watch); }
    CHECK(opd_backward(opd_sum(y)) == (handle ? 0 : -1));
    if (handle) { CHECK(opd_observer_remove(handle)); }
}
TEST(every_callback_can_be_caught) {
    for (int way = 0; way < 8; way++) {
        OPD_SCOPE {
            armed = true;
            warned = false;
            opd_log_set(hear, NULL);              /* an error of an observer is a warning */
            act(way, opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), way != 5));
            opd_log_set(NULL, NULL);
            CHECK(warned == (way == 2 || way == 3));
            if (way != 2 && way != 3 && way != 7) { CHECK_ERROR(OPD_ERROR_USER, "boom"); }
            CHECK(opd_ok() && opd_grad_mode_enabled() && opd_transform_depth() == 0);
        }
    }
}
TEST(hooks_of_saved_tensors_can_be_caught) {
    for (int way = 0; way < 3; way++) {
        OPD_SCOPE {
            opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(2), OPD_FLOAT32), true);
            opd_saved_hooks hooks = opd_saved_hooks();
            hooks.pack = OPD_CATCH(pack_throws);
            hooks.unpack = OPD_CATCH(unpack_throws);
            hooks.drop = OPD_CATCH(drop_throws);
            armed = way == 0;
            CHECK_INT(opd_saved_hooks_begin(&hooks), 0);
            opd_tensor *y = opd_exp(x);
            opd_saved_hooks_end();
            if (way == 0) { CHECK(!y); }
            else {
                armed = true;
                (void)opd_backward(opd_sum(y));
            }
            CHECK_ERROR(OPD_ERROR_USER, "boom");
            CHECK(opd_grad_mode_enabled());
            armed = false;
        }
    }
}
/* break and continue are the loop's, through several blocks. */
TEST(jumps_are_the_loops) {
    int behind = 0, bodies = 0;
    for (int i = 0; i < 10; i++) {
        OPD_SCOPE { OPD_NO_GRAD { if (i == 2) { continue; } if (i == 5) { break; } bodies++; } }
        behind++;
    }
    CHECK(behind == 4 && bodies == 4 && opd_grad_mode_enabled());
    for (bodies = 0; bodies < 10; bodies++) OPD_SCOPE { if (bodies == 3) { break; } }
    CHECK_INT(bodies, 3);
}

CHECK_MAIN()
