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
enum { ONE, TWO, NESTED, LATE, CAPTURED, INSIDE, BACKWARD, HOOKS, HOOKS_OUTSIDE, HOOKS_WITHIN, WAYS };
static const char *const ways[WAYS] = {"checkpoint", "two checkpoints", "nested checkpoints", "checkpoint without early stop",
                                       "checkpoint that captures", "checkpoint of a gradient", "checkpoint of a backward",
                                       "hooks", "hooks around a checkpoint", "checkpoint around hooks"};
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
    if (opd_checkpoint_call(segment, user, NULL, &x, 1, NULL, y) < 0) { return -1; }
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
    return opd_grad(sum_of_segment, user, in, n, NULL, out);
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

/* The function of `user`, kept for backward in its way; with `user` plain, the same with no checkpoints and hooks. */
static opd_tensor *run_kept(kept *k, opd_tensor *x, bool plain) {
    static const opd_transform_fn segments[WAYS] = {segment, segment, segment_of_segment, segment, segment_that_captures,
                                                    segment_of_gradient, segment_of_backward, segment, segment, segment_with_hooks};
    void *user = k->way == CAPTURED ? (void *)k : (void *)(uintptr_t)k->text;
    opd_tensor *out[1] = {NULL};
    opd_checkpoint_options options;
    memset(&options, 0, sizeof options);
    options.no_early_stop = k->way == LATE;
    if (k->way == TWO) { x = opd_sin(x); }
    if (plain) {
        if (k->way == HOOKS_WITHIN) { return text_run(k->text, x); }
        if (k->way == NESTED) { x = text_run(k->text, opd_sin(x)); return opd_mul(opd_cos(x), x); }
        if (segments[k->way](user, &x, 1, out) < 0) { return NULL; }
        return k->way == TWO ? text_run(k->text, opd_sin(out[0])) : out[0];
    }
    if ((k->way == HOOKS || k->way == HOOKS_OUTSIDE) && hooks_open()) { return NULL; }
    const int count = k->way == HOOKS ? segment(user, &x, 1, out)
        : opd_checkpoint_call(segments[k->way], user, NULL, &x, 1, &options, out);
    if (k->way == HOOKS || k->way == HOOKS_OUTSIDE) { opd_saved_hooks_end(); }
    if (count < 0 || k->way != TWO) { return count < 0 ? NULL : out[0]; }
    x = opd_sin(out[0]);
    return opd_checkpoint_call(segment, user, NULL, &x, 1, NULL, out) < 0 ? NULL : out[0];
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
TEST(two_transforms_around_it) { walk(2, 17); }
TEST(three_transforms_around_it) { walk(3, 401); }

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
    return opd_linearize(forgets, NULL, &x, 1, NULL, out, &derivative);
}
static int pulls(opd_tensor *x) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS];
    opd_derivative *derivative;
    return opd_vjp(forgets, NULL, &x, 1, NULL, out, &derivative);
}
TEST(an_output_that_has_been_freed_names_the_cure) {
    opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(3), OPD_FLOAT64), true);
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS], *along[OPD_TRANSFORM_OUTPUTS];
    for (int i = 0; i < 11; i++) {
        const int rc = i == 0 ? opd_grad(forgets, NULL, &x, 1, NULL, out) : i == 1 ? opd_vmap(forgets, NULL, &x, 1, NULL, out)
            : i == 2 ? opd_gradcheck(forgets, NULL, &x, 1, NULL) : i == 3 ? opd_gradgradcheck(forgets, NULL, &x, 1, NULL, NULL)
            : i == 4 ? opd_checkpoint_call(forgets, NULL, NULL, &x, 1, NULL, out) : i == 5 ? opd_jvp(forgets, NULL, &x, &x, 1, NULL, out, along)
            : i == 6 ? opd_jacrev(forgets, NULL, &x, 1, NULL, out) : i == 7 ? opd_jacfwd(forgets, NULL, &x, 1, NULL, out)
            : i == 8 ? opd_hessian(forgets, NULL, &x, 1, NULL, out) : i == 9 ? linearizes(x) : pulls(x);
        CHECK(rc < 0);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "output 0 of the function has been freed: the scope that begins at opd_scope_open has ended. Before "
                    "the function returns, move the output out of its scope: out[0] = opd_scope_return(out[0])");
    }
}

CHECK_MAIN()
