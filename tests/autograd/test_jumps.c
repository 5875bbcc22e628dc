/* Exceptions and longjmp out of hooks, observers, backward functions, and functions to differentiate, to trace or to
   recompute: each is one error at the next use, and then the thread is as before. */
#include "../../opdispatch.h"
#include "../tape.h"

#if !defined(CHECK_SANITIZED) && defined(__GNUC__) && !defined(__TINYC__) && (defined(__linux__) || defined(_WIN32))
#include <setjmp.h>

static jmp_buf way_out;
static bool armed;                                /* the code jumps only once */
static void jump(void) {
    if (!armed) { return; }
    armed = false;
    longjmp(way_out, 1);
}

//-- code that jumps ---------------------------------------------------------------------------------------------------

static opd_tensor *on_tensor(opd_tensor *grad, void *user) { (void)grad; (void)user; jump(); return NULL; }
static int on_leaf(opd_tensor *tensor, void *user) { (void)tensor; (void)user; jump(); return 0; }
static int before_node(opd_tensor **grads, int count, void *user) {
    (void)grads; (void)count; (void)user;
    jump();
    return 0;
}
static int after_node(opd_tensor **out, int nout, opd_tensor *const *grads, int count, void *user) {
    (void)out; (void)nout; (void)grads; (void)count; (void)user;
    jump();
    return 0;
}
static int at_end(void *user) { (void)user; jump(); return 0; }
static opd_tensor *calls_at_end(opd_tensor *grad, void *user) {
    (void)grad; (void)user;
    CHECK_INT(opd_backward_callback(at_end, NULL, NULL), 0);
    return NULL;
}
static void *pack_jumps(opd_tensor *tensor, void *user) { (void)user; jump(); return opd_keep(tensor); }
static void *pack_keeps(opd_tensor *tensor, void *user) { (void)user; return opd_keep(tensor); }
static opd_tensor *unpack_jumps(void *packed, void *user) { (void)user; jump(); return (opd_tensor *)packed; }
static opd_tensor *unpack_keeps(void *packed, void *user) { (void)user; return (opd_tensor *)packed; }
static void drop(void *packed, void *user) { (void)user; opd_release((opd_tensor *)packed); }
static void *on_begin(const opd_event *event, void *user) { (void)event; (void)user; jump(); return NULL; }
static void on_end(const opd_event *event, void *context, void *user) {
    (void)event; (void)context; (void)user;
    jump();
}
static int function(void *user, opd_tensor *const *inputs, int count, opd_tensor **outputs) {
    opd_tensor *squared = opd_mul(inputs[0], inputs[0]);
    (void)user; (void)count;
    jump();
    outputs[0] = opd_sum(squared);
    return 1;
}
static int nested(void *user, opd_tensor *const *inputs, int count, opd_tensor **outputs) {
    (void)user; (void)count;
    return opd_grad(function, NULL, inputs, 1, NULL, outputs);
}
static int custom_forward(opd_context *ctx) {
    jump();
    return opd_context_return(ctx, opd_exp(opd_context_tensor(ctx, 0)));
}
static int custom_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }

//-- the walk ----------------------------------------------------------------------------------------------------------

enum { TENSOR_HOOK, LEAF_HOOK, PRE_HOOK, POST_HOOK, END_OF_BACKWARD, PACK, UNPACK, OBSERVE_BEGIN, OBSERVE_END, VMAP,
       GRAD, JVP, VJP, LINEARIZE, JACOBIAN, NESTED, TRACE, CHECKPOINT, RECOMPUTE, APPLY,
       WAYS };
static const char *const what_left[WAYS] = {
    "a backward function or a hook", "a backward function or a hook", "a backward function or a hook",
    "a backward function or a hook", "a backward function or a hook", "a pack hook", "a backward function or a hook",
    "an observer", "an observer", "the function of a transform", "the function of a transform",
    "the function of a transform", "the function of a transform", "the function of a transform",
    "the function of a transform", "the function of a transform", "a traced function", "the function of a checkpoint",
    "a backward function or a hook", "a function of a custom function"};
static int64_t observer;
static void act(int way) {
    opd_tensor *x = vec(3, way <= UNPACK || way >= CHECKPOINT), *out[8], *tangents[8], *y;
    opd_saved_hooks hooks;
    opd_observer watch;
    opd_derivative *derivative;
    opd_checkpoint_options whole;
    opd_autograd_function custom;
    opd_value value;
    memset(&custom, 0, sizeof custom);
    custom.name = "Custom";
    custom.forward = custom_forward;
    custom.backward = custom_backward;
    memset(&whole, 0, sizeof whole);
    whole.no_early_stop = true;                   /* else the jump is out of a function that has already failed */
    memset(&hooks, 0, sizeof hooks);
    memset(&watch, 0, sizeof watch);
    hooks.pack = way == PACK ? pack_jumps : pack_keeps;
    hooks.unpack = way == UNPACK ? unpack_jumps : unpack_keeps;
    hooks.drop = drop;
    if (way == UNPACK || way == PACK) { CHECK_INT(opd_saved_hooks_begin(&hooks), 0); }
    if (way == PACK) { armed = true; }
    y = opd_mul(x, x);
    if (way == UNPACK) { opd_saved_hooks_end(); }
    if (way == OBSERVE_BEGIN) { watch.begin = on_begin; }
    if (way == OBSERVE_END) { watch.end = on_end; }
    if (watch.begin || watch.end) { observer = opd_observer_add_local(&watch); }
    if (way == TENSOR_HOOK) { CHECK(opd_tensor_hook_add(y, on_tensor, NULL, NULL) != 0); }
    if (way == END_OF_BACKWARD) { CHECK(opd_tensor_hook_add(y, calls_at_end, NULL, NULL) != 0); }
    if (way == LEAF_HOOK) { CHECK(opd_tensor_post_accumulate_hook_add(x, on_leaf, NULL, NULL) != 0); }
    if (way == PRE_HOOK) { CHECK(opd_node_pre_hook_add(opd_tensor_node(y), before_node, NULL, NULL) != 0); }
    if (way == POST_HOOK) { CHECK(opd_node_post_hook_add(opd_tensor_node(y), after_node, NULL, NULL) != 0); }
    tangents[0] = vec(3, false);
    armed = way != RECOMPUTE;
    switch (way) {
    case OBSERVE_BEGIN: case OBSERVE_END: (void)opd_exp(x); break;
    case VMAP: (void)opd_vmap(function, NULL, &x, 1, NULL, out); break;
    case GRAD: (void)opd_grad(function, NULL, &x, 1, NULL, out); break;
    case JVP: (void)opd_jvp(function, NULL, &x, tangents, 1, NULL, out, tangents + 1); break;
    case VJP: (void)opd_vjp(function, NULL, &x, 1, NULL, out, &derivative); break;
    case LINEARIZE: (void)opd_linearize(function, NULL, &x, 1, NULL, out, &derivative); break;
    case JACOBIAN: (void)opd_jacrev(function, NULL, &x, 1, NULL, out); break;
    case NESTED: (void)opd_vmap(nested, NULL, &x, 1, NULL, out); break;
    case TRACE: (void)opd_graph_trace(function, NULL, &x, 1, NULL); break;
    case CHECKPOINT: (void)opd_checkpoint_call(function, NULL, NULL, &x, 1, NULL, out); break;
    case RECOMPUTE:
        CHECK_INT(opd_checkpoint_call(function, NULL, NULL, &x, 1, &whole, out), 1);
        armed = true;
        (void)opd_backward(out[0]);
        break;
    case APPLY:
        value = opd_value_tensor(x);
        (void)opd_autograd_call(&custom, &value, 1);
        break;
    default: (void)opd_backward(opd_sum(y));
    }
}
static void act_deeper(int way, int deeper) {
    volatile char room[3000];
    room[deeper] = 1;
    if (deeper > 0) { act_deeper(way, deeper - 1); }
    else if (setjmp(way_out) == 0) {
        act(way);
        CHECK(!"not left");
    }
    CHECK(room[0] || true);
}
/* One step of training: 2 x for the sum of x * x. */
static void train(void) {
    opd_tensor *x = vec(3, true), *again = vec(3, false), *out[1];
    CHECK_INT(opd_backward(opd_sum(opd_mul(x, x))), 0);
    CHECK(opd_tensor_grad(x) && opd_data_f64(opd_tensor_grad(x))[2] == 6);
    CHECK_INT(opd_grad(function, NULL, &again, 1, NULL, out), 1);
    CHECK(out[0] && opd_data_f64(out[0])[2] == 6);
    CHECK_OK();
}
static void check_way(int way, int deeper, bool scoped) {
    const opd_scope_info before = opd_scope_stats();
    char text[100];
    opd_scope scope = opd_scope_open();
    act_deeper(way, deeper);
    if (scoped) { opd_scope_close(&scope); } else { CHECK(opd_grad_mode_enabled()); }
    snprintf(text, sizeof text, "a longjmp has left %s", what_left[way]);
    if (way == PACK) { CHECK(opd_error_code() == OPD_ERROR_KERNEL); opd_error_clear(); }     /* or a kernel around it */
    else { CHECK_ERROR(OPD_ERROR_KERNEL, text); }
    if (observer) { CHECK(opd_observer_remove(observer)); }
    observer = 0;
    if (way == PACK && opd_saved_hooks_disabled() == NULL) { opd_saved_hooks_end(); }
    CHECK(opd_transform_depth() == 0 && opd_grad_mode_enabled());
    OPD_SCOPE { train(); }
    opd_scope_close(&scope);
    CHECK(opd_scope_stats().depth == before.depth && opd_scope_stats().handles == before.handles);
    OPD_SCOPE { train(); }
}
/* An engine, graph or observer whose code is left is not freed. */
TEST_KEEPS(user_code_that_is_left_is_an_error) {
    int way, deeper;
    for (way = 0; way < WAYS; way++) {
        for (deeper = 0; deeper < 6; deeper += 5) {
            check_way(way, deeper, false);
            check_way(way, deeper, true);
        }
    }
    CHECK_INT(opd_check_invariants(), 0);
}
#else
TEST(user_code_that_is_left_is_an_error) { SKIP("frames of this build are not examined"); }
#endif

CHECK_MAIN()
