/* Checkpoints and saved-tensor hooks inside of transforms: stacks of grad, jvp, vjp, vmap, jacrev, jacfwd, hessian,
   backward inside, levels of forward mode and recordings give the same numbers with and without them.  The functions
   have operators that save several tensors, or whose tangents come from their backward functions.  Environment:
   OPD_STACKS=all runs every stack; otherwise only a part of them runs. */
#include "../../opdispatch.h"
#include "../check.h"
#include "../stacks.h"

static const struct { const char *name; int rows, cols; const char *text; } functions[] = {
    {"exp", 3, 0, "y = exp(x); z = mul(y, y); z"},
    {"mm", 2, 2, "y = mm(x, x); z = mm(y, x); z"},
    {"softmax", 3, 0, "y = softmax(x, 0); z = mul(y, x); z"},
    {"cumprod", 3, 0, "y = cumprod(x, 0); z = sin(y); z"},
    {"logsumexp", 3, 0, "y = logsumexp(x, (0)); z = mul(y, x); z"},
    {"layer_norm", 3, 0, "y = layer_norm(x, (3)); z = mul(y, x); z"},
    {"inverse", 2, 2, "y = linalg_inv(x); z = mm(y, y); z"},
    {"complex", 3, 0, "y = sin(x); z = complex(x, y); w = tanh(z); w = mul(w, z); y = real(w); z = imag(w); w = mul(y, z); w"},
    {"in place", 3, 0, "y = mul(x, x); sin_(y); v = slice(y, 0, 0, 2); u = slice(x, 0, 1, 3); mul_(v, u); z = exp(y); z"},
    {"several results", 3, 0, "y, i = sort(x, 0); z, i = topk(y, 2); w = prod(z); y = mul(w, x); y"},
};
#define FUNCTIONS ((int)(sizeof functions / sizeof *functions))

/* How the function is kept for backward.  CAPTURED: the segment reads a tensor that is not among its inputs.  INSIDE:
   the segment calls a transform.  BACKWARD: the segment runs a backward of its own, whose result has no history. */
enum { ONE, TWO, NESTED, LATE, CAPTURED, INSIDE, BACKWARD, HOOKS, HOOKS_OUTSIDE, HOOKS_WITHIN, SELECTIVE, SELECTIVE_NESTED, WAYS };
static const char *const ways[WAYS] = {"checkpoint", "two checkpoints", "nested checkpoints", "checkpoint without early stop",
                                       "checkpoint that captures", "checkpoint of a gradient", "checkpoint of a backward",
                                       "hooks", "hooks around a checkpoint", "checkpoint around hooks",
                                       "checkpoint that keeps results", "nested checkpoints that keep results"};
typedef struct kept { const char *text; int way; opd_tensor *captured; } kept;

static void *clone_pack(opd_tensor *tensor, void *user) {
    (void)user;
    return opd_keep(opd_clone(tensor));
}
static opd_tensor *clone_unpack(void *packed, void *user) {
    (void)user;
    return opd_clone((opd_tensor *)packed);
}
static void clone_drop(void *packed, void *user) {
    (void)user;
    opd_release((opd_tensor *)packed);
}
static int hooks_open(void) {
    opd_saved_hooks hooks;
    memset(&hooks, 0, sizeof hooks);
    hooks.pack = clone_pack;
    hooks.unpack = clone_unpack;
    hooks.drop = clone_drop;
    return opd_saved_hooks_begin(&hooks);
}

static int segment(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = text_run((const char *)user, in[0]);
    return out[0] ? 1 : -1;
}
static int segment_of_segment(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = opd_sin(in[0]), *y[1];
    (void)n;
    if (opd_checkpoint_call(segment, user, NULL, &x, 1, NULL, y, 1) < 0) { return -1; }
    out[0] = opd_mul(opd_cos(y[0]), y[0]);
    return out[0] ? 1 : -1;
}
static int segment_that_captures(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const kept *k = (const kept *)user;
    (void)n;
    out[0] = text_run(k->text, opd_mul(in[0], opd_sin(k->captured)));
    return out[0] ? 1 : -1;
}
static int sum_of_segment(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    if (segment(user, in, n, out) < 0) { return -1; }
    out[0] = opd_sum(out[0]);
    return out[0] ? 1 : -1;
}
static int segment_of_gradient(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(sum_of_segment, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
static int segment_of_backward(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *z = opd_tensor_set_requires_grad(opd_detach(in[0]), true), *cube = opd_sum(opd_mul(z, opd_mul(z, z))), *grad = NULL;
    if (!cube || opd_autograd_grad(&cube, 1, &z, 1, NULL, &grad) || segment(user, in, n, out) < 0) { return -1; }
    out[0] = opd_mul(out[0], opd_sum(opd_detach(grad)));
    return out[0] ? 1 : -1;
}
static int segment_with_hooks(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    if (hooks_open()) { return -1; }
    const int rc = segment(user, in, n, out);
    opd_saved_hooks_end();
    return rc;
}

/* Keeps the results of about half of the operators, but of no argument that is written later. */
static bool keeps_some(opd_call *call, void *user) {
    const char *const name = opd_op_name(opd_call_operator(call));
    (void)user;
    return strlen(name) % 2 && !strstr(name, "mul") && !strstr(name, "clone");
}
/* The function of `user`, kept for backward in its way; with `user` plain, the same with no checkpoints and hooks. */
static opd_tensor *run_kept(kept *k, opd_tensor *x, bool plain) {
    static const opd_transform_fn segments[WAYS] = {segment, segment, segment_of_segment, segment, segment_that_captures,
                                                    segment_of_gradient, segment_of_backward, segment, segment, segment_with_hooks,
                                                    segment, segment_of_segment};
    void *user = k->way == CAPTURED ? (void *)k : (void *)(uintptr_t)k->text;
    opd_tensor *out[1] = {NULL};
    opd_checkpoint_options options;
    memset(&options, 0, sizeof options);
    options.no_early_stop = k->way == LATE;
    if (k->way >= SELECTIVE) { options.keeps = keeps_some; }
    if (k->way == TWO) { x = opd_sin(x); }
    if (plain) {
        if (k->way == HOOKS_WITHIN) { return text_run(k->text, x); }
        if (k->way == NESTED || k->way == SELECTIVE_NESTED) { x = text_run(k->text, opd_sin(x)); return opd_mul(opd_cos(x), x); }
        if (segments[k->way](user, &x, 1, out) < 0) { return NULL; }
        return k->way == TWO ? text_run(k->text, opd_sin(out[0])) : out[0];
    }
    if ((k->way == HOOKS || k->way == HOOKS_OUTSIDE) && hooks_open()) { return NULL; }
    const int count = k->way == HOOKS ? segment(user, &x, 1, out)
        : opd_checkpoint_call(segments[k->way], user, NULL, &x, 1, &options, out, 1);
    if (k->way == HOOKS || k->way == HOOKS_OUTSIDE) { opd_saved_hooks_end(); }
    if (count < 0 || k->way != TWO) { return count < 0 ? NULL : out[0]; }
    x = opd_sin(out[0]);
    return opd_checkpoint_call(segment, user, NULL, &x, 1, NULL, out, 1) < 0 ? NULL : out[0];
}
static opd_tensor *kept_fn(void *user, opd_tensor *x) { return run_kept((kept *)user, x, false); }
static opd_tensor *plain_fn(void *user, opd_tensor *x) { return run_kept((kept *)user, x, true); }

static bool all_stacks(void) {
    const char *const wanted = getenv("OPD_STACKS");
    return wanted && strcmp(wanted, "all") == 0;
}
/* Compares the stack with the same stack of the plain function, if that can be done. */
static void compare(stack_of *s, int f, int way) {
    const double numbers[4] = {0.9375, -0.4375, 0.6875, 1.25};
    char text[200];
    kept k;
    memset(&k, 0, sizeof k);
    k.text = functions[f].text;
    k.way = way;
    OPD_SCOPE {
        const int64_t sizes[2] = {functions[f].rows, functions[f].cols};
        opd_tensor *x = opd_tensor_from(numbers, opd_ints_of(sizes, functions[f].cols ? 2 : 1), OPD_FLOAT64), *want, *got;
        stack_of plain = *s;
        k.captured = opd_tensor_set_requires_grad(opd_cos(x), true);
        x = stack_input(s, x);
        plain.fn = plain_fn;
        s->fn = kept_fn;
        s->user = plain.user = &k;
        want = stack_run(&plain, x);
        if (!want) { opd_error_clear(); }
        else {
            stack_poison();
            got = stack_run(s, x);
            if (!got || !(stack_apart(got, want) < 1e-9)) {
                printf("%s of %s as %s: %s\n", stack_name(s, text, sizeof text), functions[f].name, ways[way],
                       got ? "another value" : opd_error_message());
            }
            CHECK(got && stack_apart(got, want) < 1e-9);
            opd_error_clear();
        }
    }
}
static void walk(int depth, int every) {
    const int count = depth == 1 ? (int)KINDS : depth == 2 ? KINDS * NESTING : KINDS * NESTING * NESTING;
    int at = 0;
    for (int way = 0; way < WAYS; way++) {
        for (int f = 0; f < FUNCTIONS; f++) {
            for (int i = 0; i < count; i++) {
                stack_of s;
                int rest = i;
                memset(&s, 0, sizeof s);
                s.n = depth;
                for (int d = 0; d < depth; d++) {
                    s.kinds[d] = rest % (d ? (int)NESTING : (int)KINDS);
                    rest /= d ? (int)NESTING : (int)KINDS;
                }
                if (stack_order(&s) > 3 - (way == INSIDE) || (!all_stacks() && at++ % every)) { continue; }
                compare(&s, f, way);
            }
        }
    }
}
TEST(one_transform_around_it) { walk(1, 1); }
TEST(two_transforms_around_it) { walk(2, 37); }
TEST(three_transforms_around_it) { walk(3, 997); }

//-- memory ------------------------------------------------------------------------------------------------------------

#define STEPS 12
#define LENGTH 10000
/* Ten operators, each of which saves a tensor of LENGTH numbers. */
static int one_step(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = in[0];
    (void)user; (void)n;
    for (int i = 0; i < 5 && opd_ok(); i++) { x = opd_sin(opd_mul_Scalar(opd_exp(opd_sin(x)), opd_value_double(0.3))); }
    out[0] = x;
    return x ? 1 : -1;
}
static int steps(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = in[0], *y[OPD_TRANSFORM_OUTPUTS];
    for (int i = 0; i < STEPS; i++) {
        OPD_SCOPE {
            y[0] = NULL;
            if (!user) { (void)one_step(NULL, &x, n, y); }
            else { (void)opd_checkpoint_call(one_step, NULL, NULL, &x, 1, (const opd_checkpoint_options *)user, y, OPD_TRANSFORM_OUTPUTS); }
            x = y[0] ? opd_scope_return(y[0]) : NULL;
        }
        if (!x) { return -1; }
    }
    out[0] = opd_sum(x);
    return out[0] ? 1 : -1;
}
static int steps_gradient(void *user, opd_tensor *const *in, int n, opd_tensor **out) { return opd_grad(steps, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS); }
static int steps_mapped(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    if (opd_vmap(steps, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS) < 0) { return -1; }
    out[0] = opd_sum(out[0]);
    return out[0] ? 1 : -1;
}
/* Computes a gradient in a way: by backward, by opd_grad, opd_grad of opd_vmap, opd_vmap of opd_grad, opd_jvp of opd_grad, backward
   in a level of forward mode.  Returns the most bytes that were alive meanwhile, and the sum of the result. */
static int64_t most_bytes(int way, const opd_checkpoint_options *options, double *sum) {
    const int64_t before = opd_memory_stats().live;
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS], *along[OPD_TRANSFORM_OUTPUTS];
    void *user = (void *)(uintptr_t)options;
    opd_memory_reset_peak();
    OPD_SCOPE {
        opd_tensor *x = opd_linspace(opd_value_double(0.1), opd_value_double(0.9), LENGTH, OPD_FLOAT64), *t = NULL;
        if (way == 2 || way == 3) { x = opd_reshape(x, OPD_INTS(2, LENGTH / 2)); }
        out[0] = along[0] = NULL;
        switch (way) {
        case 0:
        case 5:
            (void)opd_tensor_set_requires_grad(x, true);
            if (way == 5) { CHECK_INT(opd_dual_level_begin(), 0); }
            t = way == 5 ? opd_dual_new(x, opd_cos(opd_detach(x))) : x;
            CHECK_INT(steps(user, &t, 1, out), 1);
            CHECK_INT(opd_autograd_grad(out, 1, &x, 1, NULL, along), 0);
            out[0] = along[0];
            if (way == 5) { (void)opd_dual_unpack(along[0], &out[0]); out[0] = opd_clone(out[0]); CHECK_INT(opd_dual_level_end(0), 0); }
            break;
        case 1: CHECK_INT(opd_grad(steps, user, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), 1); break;
        case 2: CHECK_INT(opd_grad(steps_mapped, user, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), 1); break;
        case 3: CHECK_INT(opd_vmap(steps_gradient, user, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), 1); break;
        default:
            t = opd_cos(x);
            CHECK_INT(opd_jvp(steps_gradient, user, &x, &t, 1, NULL, along, out, OPD_TRANSFORM_OUTPUTS), 1);
            break;
        }
        *sum = out[0] ? opd_item_f64(opd_sum(out[0])) : 0;
    }
    CHECK_OK();
    return opd_memory_stats().peak - before;
}
static bool keeps_exp(opd_call *call, void *user) {
    *(int *)user += 1;
    return strcmp(opd_op_name(opd_call_operator(call)), "aten::exp") == 0;
}
TEST(checkpoints_bound_the_memory_in_all_transforms) {
    for (int way = 0; way < 6; way++) {
        double plain_sum, sum, kept_sum;
        opd_checkpoint_options options;
        int asked = 0;
        memset(&options, 0, sizeof options);
        const int64_t plain = most_bytes(way, NULL, &plain_sum), most = most_bytes(way, &options, &sum);
        options.keeps = keeps_exp;
        options.keeps_user = &asked;
        const int64_t kept = most_bytes(way, &options, &kept_sum);
        if (getenv("OPD_STACKS")) { printf("way %d: %lld bytes, %lld with checkpoints, %lld that keep exp\n", way, (long long)plain, (long long)most, (long long)kept); }
        CHECK_NEAR(sum, plain_sum, 1e-9 * (1 + fabs(plain_sum)));
        CHECK_NEAR(kept_sum, plain_sum, 1e-9 * (1 + fabs(plain_sum)));
        CHECK(2 * most < plain && most < kept && kept < plain);
        CHECK_INT(asked % STEPS, 0);
        CHECK(asked > 0);
    }
}

//-- results that are kept ---------------------------------------------------------------------------------------------

static int squares_run, squares_overwritten;
static int square_cpu(opd_call *call) {
    opd_tensor *x = opd_contiguous(opd_arg_tensor(call, 0)), *out = opd_result(call, 0, opd_sizes(x), opd_ndim(x), OPD_FLOAT64);
    squares_run++;
    for (int64_t i = 0; out && i < opd_numel(x); i++) { opd_data_f64(out)[i] = opd_data_f64(x)[i] * opd_data_f64(x)[i]; }
    return out ? 0 : -1;
}
static int square_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_mul_Scalar(opd_bw_tensor(bw, 0), opd_value_double(2))));
}
OPD_LIBRARY(recomputed, lib) {
    opd_op_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.schema = "square(Tensor x) -> Tensor";
    desc.cpu = square_cpu;
    desc.backward = square_backward;
    desc.save = "x";
    desc.vmap = OPD_BATCH_LOOP;
    (void)opd_define(lib, &desc);
}
static int squares(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = OPD_CALL(opd_find("recomputed::square"), in[0]);
    (void)user; (void)n;
    if (squares_overwritten) { x = opd_mul_(x, opd_ones(OPD_INTS(3), OPD_FLOAT64)); }
    x = OPD_CALL(opd_find("recomputed::square"), opd_mul(opd_dropout(x, 0.5, true), opd_sin(x)));
    out[0] = opd_sum(x);
    return out[0] ? 1 : -1;
}
static bool keeps_squares(opd_call *call, void *user) {
    (void)user;
    return strncmp(opd_op_name(opd_call_operator(call)), "recomputed::", 12) == 0;
}
static bool keeps_nothing(opd_call *call, void *user) { (void)user; (void)call; return false; }
static bool keeps_all(opd_call *call, void *user) { (void)user; (void)call; return true; }
static bool keeps_fails(opd_call *call, void *user) { (void)call; (void)user; (void)opd_fail(OPD_ERROR_USER, "no policy"); return false; }
TEST(kept_results_are_not_computed_again) {
    static const int runs[] = {4, 4, 2, 2};
    double want[3];
    for (int i = 0; i < 4; i++) {
        const double numbers[] = {0.5, 1.5, -0.75};
        opd_tensor *x = opd_tensor_set_requires_grad(opd_tensor_from(numbers, OPD_INTS(3), OPD_FLOAT64), true), *out[OPD_TRANSFORM_OUTPUTS], *grad = NULL;
        opd_checkpoint_options options;
        memset(&options, 0, sizeof options);
        options.no_early_stop = true;
        options.keeps = i == 0 ? NULL : i == 1 ? keeps_nothing : i == 2 ? keeps_squares : keeps_all;
        squares_run = squares_overwritten = 0;
        opd_manual_seed(3);
        CHECK_INT(opd_checkpoint_call(squares, NULL, NULL, &x, 1, &options, out, OPD_TRANSFORM_OUTPUTS), 1);
        CHECK_INT(opd_autograd_grad(out, 1, &x, 1, NULL, &grad), 0);
        CHECK_INT(squares_run, runs[i]);
        CHECK_OK();
        for (int k = 0; grad && k < 3; k++) {
            if (i == 0) { want[k] = opd_data_f64(grad)[k]; } else { CHECK(want[k] == opd_data_f64(grad)[k]); }
        }
    }
}
TEST(kept_results_that_go_wrong) {
    opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(3), OPD_FLOAT64), true), *out[OPD_TRANSFORM_OUTPUTS];
    opd_checkpoint_options options;
    memset(&options, 0, sizeof options);
    options.keeps = keeps_all;
    squares_overwritten = 1;
    CHECK_INT(opd_checkpoint_call(squares, NULL, NULL, &x, 1, &options, out, OPD_TRANSFORM_OUTPUTS), 1);
    CHECK_INT(opd_backward(out[0]), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "opd_checkpoint: a result of recomputed::square, which opd_checkpoint_options.keeps has kept, was overwritten");
    squares_overwritten = 0;
    options.keeps = keeps_fails;
    CHECK_INT(opd_checkpoint_call(squares, NULL, NULL, &x, 1, &options, out, OPD_TRANSFORM_OUTPUTS), -1);
    CHECK_ERROR(OPD_ERROR_USER, "no policy");
    CHECK_INT(opd_backward(opd_sum(opd_exp(x))), 0);
}

#if !defined(CHECK_SANITIZED)                     /* which find it by themselves */
//-- outputs that end with their scope ---------------------------------------------------------------------------------

static int forgets(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_scope scope = opd_scope_open();
    (void)user; (void)n;
    out[0] = opd_sum(opd_mul(in[0], in[0]));
    opd_scope_close(&scope);
    return 1;
}
static int linearizes(opd_tensor *x) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS];
    opd_derivative *derivative;
    return opd_linearize(forgets, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS, &derivative);
}
static int pulls(opd_tensor *x) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS];
    opd_derivative *derivative;
    return opd_vjp(forgets, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS, &derivative);
}
TEST(an_output_that_has_been_freed_names_the_cure) {
    opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(3), OPD_FLOAT64), true);
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS], *along[OPD_TRANSFORM_OUTPUTS];
    for (int i = 0; i < 11; i++) {
        const int rc = i == 0 ? opd_grad(forgets, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS) : i == 1 ? opd_vmap(forgets, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS)
            : i == 2 ? opd_gradcheck(forgets, NULL, &x, 1, NULL) : i == 3 ? opd_gradgradcheck(forgets, NULL, &x, 1, NULL, NULL)
            : i == 4 ? opd_checkpoint_call(forgets, NULL, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS) : i == 5 ? opd_jvp(forgets, NULL, &x, &x, 1, NULL, out, along, OPD_TRANSFORM_OUTPUTS)
            : i == 6 ? opd_jacrev(forgets, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS) : i == 7 ? opd_jacfwd(forgets, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS)
            : i == 8 ? opd_hessian(forgets, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS) : i == 9 ? linearizes(x) : pulls(x);
        CHECK(rc < 0);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "output 0 of the function has been freed: the scope that begins at opd_scope_open has ended. Before "
                    "the function returns, move the output out of its scope: out[0] = opd_scope_return(out[0])");
    }
}
#endif

CHECK_MAIN()
