/* Exceptions and longjmp out of hooks, observers, backward functions, and functions to differentiate, to trace or to
   recompute: each is one error at the next use, and then the thread is as before. */
#include "../../opdispatch.h"
#include "../tape.h"

#if !defined(CHECK_SANITIZED) && defined(__GNUC__) && !defined(__TINYC__) && (defined(__linux__) || defined(_WIN32))
#include <setjmp.h>

static jmp_buf way_out;
static bool armed;                                /* the code jumps only once */
/* What the code opens before it jumps, and does not close. */
enum { NOTHING, GRAD_MODE, INFERENCE, AUTOCAST, FAKE, MAP, LEVEL, HOOKS, HOOKS_OFF, MUTATION, FORWARD_OFF,
       OBSERVERS_OFF, OPENED };
static int opened;
static void open_something(void);
static int skip_jumps;                            /* how many times the code does not yet jump */
static void jump(void) {
    if (!armed || skip_jumps-- > 0) { return; }
    armed = false;
    open_something();
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
static void open_something(void) {
    opd_saved_hooks hooks;
    memset(&hooks, 0, sizeof hooks);
    hooks.pack = pack_keeps;
    hooks.unpack = unpack_keeps;
    hooks.drop = drop;
    switch (opened) {
    case GRAD_MODE: (void)opd_grad_mode_set(false); break;
    case INFERENCE: (void)opd_inference_mode_set(true); break;
    case AUTOCAST: CHECK(opd_autocast_begin(OPD_CPU, OPD_BFLOAT16, true, 1).open); break;
    case FAKE: CHECK(opd_fake_begin().open); break;
    case MAP: CHECK(opd_vmap_begin(2, OPD_RANDOM_ERROR) > 0); break;
    case LEVEL: (void)opd_dual_level_begin(); break;        /* inside of opd_jvp: an error, which is cleared */
    case HOOKS: CHECK_INT(opd_saved_hooks_begin(&hooks), 0); break;
    case HOOKS_OFF: (void)opd_saved_hooks_disable("off"); break;
    case MUTATION: CHECK_INT(opd_allow_mutation_begin(), 0); break;
    case FORWARD_OFF: (void)opd_forward_grad_set(false); break;
    case OBSERVERS_OFF: (void)opd_observe_set(false); break;
    default: return;
    }
    opd_error_clear();
}
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
static int draws(void *user, opd_tensor *const *inputs, int count, opd_tensor **outputs) {
    (void)user; (void)count;
    outputs[0] = opd_sum(opd_mul(opd_exp(inputs[0]), opd_rand_like(inputs[0])));
    jump();
    return 1;
}
/* The gradient of this function runs the segment again, in layers that have ended or that have begun since. */
static int segment(void *user, opd_tensor *const *inputs, int count, opd_tensor **outputs) {
    const bool all = user != NULL;
    opd_checkpoint_options options;
    memset(&options, 0, sizeof options);
    options.no_early_stop = all;
    return opd_checkpoint_call(function, NULL, NULL, inputs, count, &options, outputs, OPD_TRANSFORM_OUTPUTS);
}
static int gradient(void *user, opd_tensor *const *inputs, int count, opd_tensor **outputs) {
    (void)count;
    return opd_grad(segment, user, inputs, 1, NULL, outputs, OPD_TRANSFORM_OUTPUTS);
}
static int mapped(void *user, opd_tensor *const *inputs, int count, opd_tensor **outputs) {
    opd_tensor *rows[8];
    (void)count;
    if (opd_vmap(segment, user, inputs, 1, NULL, rows, 8) < 0) { return -1; }
    outputs[0] = opd_sum(rows[0]);
    return 1;
}
static int hooked(void *user, opd_tensor *const *inputs, int count, opd_tensor **outputs) {
    (void)user; (void)count;
    outputs[0] = opd_mul(inputs[0], inputs[0]);
    return opd_tensor_hook_add(outputs[0], on_tensor, NULL, NULL) ? 1 : -1;
}
static int nested(void *user, opd_tensor *const *inputs, int count, opd_tensor **outputs) {
    (void)user; (void)count;
    return opd_grad(function, NULL, inputs, 1, NULL, outputs, OPD_TRANSFORM_OUTPUTS);
}
static int custom_forward(opd_context *ctx) {
    jump();
    return opd_context_return(ctx, opd_exp(opd_context_tensor(ctx, 0)));
}
static int custom_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }

//-- the walk ----------------------------------------------------------------------------------------------------------

enum { TENSOR_HOOK, LEAF_HOOK, PRE_HOOK, POST_HOOK, END_OF_BACKWARD, PACK, UNPACK, OBSERVE_BEGIN, OBSERVE_END, VMAP,
       GRAD, JVP, VJP, LINEARIZE, JACOBIAN, NESTED, TRACE, CHECKPOINT, RECOMPUTE, APPLY,
       STOPPED, IN_AUTOCAST, MAP_OF_GRAD, GRAD_OF_MAP, JVP_OF_GRAD, REVERSE_ROWS, BATCHED_GRADS, WAYS };
static const char *const what_left[WAYS] = {
    "a backward function or a hook", "a backward function or a hook", "a backward function or a hook",
    "a backward function or a hook", "a backward function or a hook", "a pack hook", "a backward function or a hook",
    "an observer", "an observer", "the function of a transform", "the function of a transform",
    "the function of a transform", "the function of a transform", "the function of a transform",
    "the function of a transform", "the function of a transform", "a traced function", "the function of a checkpoint",
    "a backward function or a hook", "a function of a custom function", "a backward function or a hook",
    "a backward function or a hook", "the function of a transform", "a backward function or a hook",
    "the function of a transform", "the function of a transform", "a backward function or a hook"};
static int64_t observer;
static void act(int way) {
    opd_tensor *x = vec(3, way <= UNPACK || way >= CHECKPOINT), *out[8], *tangents[8], *y, *rows;
    opd_tensor *number = of(2), *one = of(1);
    const int64_t batch_sizes[] = {2, 3};
    opd_backward_options batch;
    opd_autocast_region region;
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
    case VMAP: (void)opd_vmap(function, NULL, &x, 1, NULL, out, 8); break;
    case GRAD: (void)opd_grad(function, NULL, &x, 1, NULL, out, 8); break;
    case JVP: (void)opd_jvp(function, NULL, &x, tangents, 1, NULL, out, tangents + 1, 8); break;
    case VJP: (void)opd_vjp(function, NULL, &x, 1, NULL, out, 8, &derivative); break;
    case LINEARIZE: (void)opd_linearize(function, NULL, &x, 1, NULL, out, 8, &derivative); break;
    case JACOBIAN: (void)opd_jacrev(function, NULL, &x, 1, NULL, out, 8); break;
    case NESTED: (void)opd_vmap(nested, NULL, &x, 1, NULL, out, 8); break;
    case TRACE: (void)opd_graph_trace(function, NULL, &x, 1, NULL); break;
    case CHECKPOINT: (void)opd_checkpoint_call(function, NULL, NULL, &x, 1, NULL, out, 8); break;
    case RECOMPUTE:
        CHECK_INT(opd_checkpoint_call(function, NULL, NULL, &x, 1, &whole, out, 8), 1);
        armed = true;
        (void)opd_backward(out[0]);
        break;
    case APPLY:
        value = opd_value_tensor(x);
        (void)opd_autograd_call(&custom, &value, 1);
        break;
    case STOPPED: case IN_AUTOCAST:
        armed = false;
        region = opd_autocast_begin(OPD_CPU, OPD_BFLOAT16, way == IN_AUTOCAST, 1);
        CHECK_INT(opd_checkpoint_call(draws, NULL, NULL, &x, 1, way == STOPPED ? NULL : &whole, out, 8), 1);
        opd_autocast_end(&region);
        armed = true;
        (void)opd_backward(out[0]);
        break;
    case MAP_OF_GRAD: skip_jumps = 1; (void)opd_vmap(gradient, &whole, &x, 1, NULL, out, 8); break;
    case GRAD_OF_MAP: skip_jumps = 1; (void)opd_grad(mapped, &whole, &x, 1, NULL, out, 8); break;
    case JVP_OF_GRAD: skip_jumps = 1; (void)opd_jvp(gradient, &whole, &number, &one, 1, NULL, out, tangents + 1, 8); break;
    case REVERSE_ROWS: (void)opd_jacrev(hooked, NULL, &x, 1, NULL, out, 8); break;
    case BATCHED_GRADS:
        CHECK(opd_tensor_hook_add(y, on_tensor, NULL, NULL) != 0);
        batch = options();
        rows = opd_ones(opd_ints_of(batch_sizes, 2), OPD_FLOAT64);
        batch.grad_outputs = &rows;
        batch.is_grads_batched = true;
        (void)opd_autograd_grad(&y, 1, &x, 1, &batch, out);
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
    CHECK_INT(opd_grad(function, NULL, &again, 1, NULL, out, 1), 1);
    CHECK(out[0] && opd_data_f64(out[0])[2] == 6);
    CHECK_OK();
}
/* The modes of the thread. */
typedef struct modes {
    opd_dispatch_state state;
    const char *off;
    int depth;
    bool fake, observes;
} modes;
static modes modes_now(void) {
    modes now;
    memset(&now, 0, sizeof now);
    now.state = opd_dispatch_state_get();
    now.off = opd_saved_hooks_disabled();
    now.depth = opd_transform_depth();
    now.fake = opd_fake_enabled();
    now.observes = opd_observe_set(true);
    return now;
}
static void check_modes(const modes *was) {
    const modes now = modes_now();
    CHECK_INT(now.depth, was->depth);
    CHECK(now.fake == was->fake && now.observes == was->observes && now.off == was->off);
    CHECK_INT(now.state.included ^ was->state.included, 0);
    CHECK_INT(now.state.excluded ^ was->state.excluded, 0);
    CHECK(now.state.grad_enabled == was->state.grad_enabled && now.state.inference == was->state.inference);
    CHECK(now.state.no_forward_grad == was->state.no_forward_grad);
    CHECK_INT(now.state.autocast, was->state.autocast);
}
/* Returns the number that a generator with the seed 5 draws after three others. */
static double next_number(bool from_start) {
    if (from_start) {
        const int64_t three = 3;
        opd_manual_seed(5);
        (void)opd_rand(opd_ints_of(&three, 1), OPD_FLOAT64);
    }
    double number = -1;
    OPD_SCOPE {
        const int64_t one = 1;
        const opd_tensor *drawn = opd_rand(opd_ints_of(&one, 1), OPD_FLOAT64);
        if (drawn) { number = opd_data_f64(drawn)[0]; }
    }
    return number;
}
static void check_way(int way, int deeper, bool scoped) {
    const opd_scope_info before = opd_scope_stats();
    const modes was = modes_now();
    char text[100];
    opd_scope scope = opd_scope_open();
    const double number = next_number(true);
    opd_manual_seed(5);
    act_deeper(way, deeper);
    if (scoped) { opd_scope_close(&scope); } else { CHECK(opd_grad_mode_enabled()); }
    snprintf(text, sizeof text, "a longjmp has left %s", what_left[way]);
    if (way == PACK) { CHECK(opd_error_code() == OPD_ERROR_KERNEL); opd_error_clear(); }     /* or a kernel around it */
    else { CHECK_ERROR(OPD_ERROR_KERNEL, text); }
    if (observer) { CHECK(opd_observer_remove(observer)); }
    observer = 0;
    if (way == PACK) { opd_saved_hooks_end(); }
    check_modes(&was);
    if (way == STOPPED || way == IN_AUTOCAST) { CHECK_NEAR(next_number(false), number, 0); }
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
            opened = NOTHING;
            check_way(way, deeper, false);
            check_way(way, deeper, true);
        }
    }
    CHECK_INT(opd_check_invariants(), 0);
}
TEST_KEEPS(modes_that_left_code_has_opened_end) {
    int way;
    for (way = 0; way < WAYS; way++) {
        for (opened = NOTHING + 1; opened < OPENED && way != STOPPED; opened++) { check_way(way, 2, opened % 2 == 0); }
    }
    CHECK_INT(opd_check_invariants(), 0);
}
#else
TEST(user_code_that_is_left_is_an_error) { SKIP("frames of this build are not examined"); }
#endif

CHECK_MAIN()
