/* Transforms of transforms: every stack of up to three of grad, jvp, vjp, vmap, jacrev, jacfwd and hessian.  The
   functions write in place and to views, index, sort, sum and normalize.  The results equal those of only autograd,
   out of place and example by example (see stacks.h).  A wrong value and an error both fail.  New memory is filled
   with 777.  Environment: OPD_STACKS=all runs every stack of every function and operator; otherwise only a part of
   the deeper ones runs.  OPD_STACKS_ONLY=name runs functions and operators whose names contain this name.
   OPD_STACKS_LIKE="jvp vmap" runs only this stack. */
#include "../../opdispatch.h"
#include "../cases.h"
#include "../stacks.h"

/* As it is written, and the same out of place; NULL: it is out of place. */
typedef struct function { const char *name, *sizes, *text, *plain; } function;
static const function functions[] = {
    {"mul_", "[3]", "y = clone(x); z = sin(x); mul_(y, z); y", "z = sin(x); y = mul(x, z); y"},
    {"sin_", "[3]", "y = clone(x); sin_(y); z = mul(y, x); z", "y = sin(x); z = mul(y, x); z"},
    {"sin_ of a product", "[3]", "y = mul(x, x); sin_(y); y", "z = mul(x, x); y = sin(z); y"},
    {"exp_", "[3]", "y = mul(x, x); exp_(y); y", "z = mul(x, x); y = exp(z); y"},
    {"tanh_", "[3]", "y = clone(x); tanh_(y); y", "y = tanh(x); y"},
    {"sigmoid_", "[3]", "y = clone(x); sigmoid_(y); z = mul(y, y); z", "y = sigmoid(x); z = mul(y, y); z"},
    {"relu_", "[3]", "y = mul(x, x); y = mul(y, x); relu_(y); y", "y = mul(x, x); y = mul(y, x); z = relu(y); z"},
    {"square_", "[3]", "y = clone(x); square_(y); y", "y = mul(x, x); y"},
    {"div_", "[3]+", "y = sin(x); div_(y, x); y", "z = sin(x); y = div(z, x); y"},
    {"pow_", "[3]+", "y = clone(x); pow_(y, x); y", "y = pow(x, x); y"},
    {"addcmul_", "[3]", "y = clone(x); z = cos(x); addcmul_(y, x, z); y", "z = cos(x); w = mul(x, z); y = add(x, w); y"},
    {"sin_ twice", "[3]", "y = clone(x); sin_(y); sin_(y); y", "z = sin(x); y = sin(z); y"},
    {"mul_ of itself", "[3]", "y = sin(x); mul_(y, y); y", "z = sin(x); y = mul(z, z); y"},
    {"write to an element", "[2]", "y = clone(x); v = select(y, 0, 1); u = select(x, 0, 0); mul_(v, u); y",
     "u = select(x, 0, 0); v = select(x, 0, 1); w = mul(u, v); y = stack({u,w}); y"},
    {"write to a slice", "[3]", "y = clone(x); v = slice(y, 0, 0, 2); u = slice(x, 0, 1, 3); mul_(v, u); y",
     "v = slice(x, 0, 0, 2); u = slice(x, 0, 1, 3); v = mul(v, u); y = slice_scatter(x, v, 0, 0, 2); y"},
    {"write to every other", "[3]", "y = clone(x); v = slice(y, 0, 0, 3, 2); u = slice(x, 0, 1, 3); mul_(v, u); y",
     "v = slice(x, 0, 0, 3, 2); u = slice(x, 0, 1, 3); v = mul(v, u); y = slice_scatter(x, v, 0, 0, 3, 2); y"},
    {"copy_ to a slice", "[3]", "y = sin(x); v = slice(y, 0, 1, 3); u = slice(x, 0, 0, 2); copy_(v, u); z = mul(y, x); z",
     "y = sin(x); u = slice(x, 0, 0, 2); y = slice_scatter(y, u, 0, 1, 3); z = mul(y, x); z"},
    {"a diagonal", "[2]", "y = new_zeros(x, (2,2)); v = diagonal(y); copy_(v, x); z = mul(y, y); z",
     "y = diag_embed(x); z = mul(y, y); z"},
    {"exp_ of a slice", "[3]", "y = mul(x, x); v = slice(y, 0, 0, 2); exp_(v); y",
     "y = mul(x, x); v = slice(y, 0, 0, 2); v = exp(v); z = slice_scatter(y, v, 0, 0, 2); z"},
    {"zero_ of a slice", "[3]", "y = mul(x, x); v = slice(y, 0, 1, 2); zero_(v); y",
     "y = mul(x, x); v = slice(y, 0, 1, 2); v = zeros_like(v); z = slice_scatter(y, v, 0, 1, 2); z"},
    {"a view of a view", "[2,2]", "y = clone(x); t = transpose(y, 0, 1); v = select(t, 0, 1); u = select(x, 0, 0); mul_(v, u); y",
     "v = select(x, 1, 1); u = select(x, 0, 0); v = mul(v, u); y = select_scatter(x, v, 1, 1); y"},
    {"the base after its view", "[3]", "y = sin(x); v = slice(y, 0, 0, 2); mul_(y, x); z = sum(v); w = mul(y, z); w",
     "y = sin(x); y = mul(y, x); v = slice(y, 0, 0, 2); z = sum(v); w = mul(y, z); w"},
    {"the view after its base", "[3]", "y = sin(x); v = slice(y, 0, 0, 2); u = slice(x, 0, 1, 3); mul_(v, u); sin_(y); z = mul(v, v); w = sum(z); u = mul(y, w); u",
     "y = sin(x); v = slice(y, 0, 0, 2); u = slice(x, 0, 1, 3); v = mul(v, u); y = slice_scatter(y, v, 0, 0, 2); y = sin(y); v = slice(y, 0, 0, 2); z = mul(v, v); w = sum(z); u = mul(y, w); u"},
    {"two slices", "[3]", "y = clone(x); v = slice(y, 0, 0, 2); u = slice(y, 0, 1, 3); sin_(v); mul_(u, 3.0); exp_(v); y",
     "v = slice(x, 0, 0, 2); v = sin(v); y = slice_scatter(x, v, 0, 0, 2); u = slice(y, 0, 1, 3); u = mul(u, 3.0); y = slice_scatter(y, u, 0, 1, 3); v = slice(y, 0, 0, 2); v = exp(v); y = slice_scatter(y, v, 0, 0, 2); y"},
    {"as_strided", "[3]", "y = clone(x); v = as_strided(y, (2), (2)); mul_(v, 3.0); z = mul(y, x); z",
     "v = slice(x, 0, 0, 3, 2); v = mul(v, 3.0); y = slice_scatter(x, v, 0, 0, 3, 2); z = mul(y, x); z"},
    {"unbound", "[2,2]", "y = mul(x, x); a = select(y, 0, 0); b = select(y, 0, 1); c = exp(b); sin_(b); mul_(a, c); y",
     "y = mul(x, x); a = select(y, 0, 0); b = select(y, 0, 1); c = exp(b); b = sin(b); a = mul(a, c); z = stack({a,b}); z"},
    {"view", "[2,2]", "y = clone(x); v = view(y, (4)); u = slice(v, 0, 1, 3); sin_(u); y",
     "v = reshape(x, (4)); u = slice(v, 0, 1, 3); u = sin(u); v = slice_scatter(v, u, 0, 1, 3); y = reshape(v, (2,2)); y"},
    {"t_", "[2,2]", "y = clone(x); t_(y); v = select(y, 0, 0); u = select(x, 0, 1); mul_(v, u); z = mm(y, x); z",
     "y = t(x); v = select(y, 0, 0); u = select(x, 0, 1); v = mul(v, u); y = select_scatter(y, v, 0, 0); z = mm(y, x); z"},
    {"unsqueeze_", "[3]", "y = sin(x); unsqueeze_(y, 0); mul_(y, x); z = mul(y, y); z", "y = sin(x); y = mul(y, x); y = unsqueeze(y, 0); z = mul(y, y); z"},
    {"expanded", "[2]", "y = expand(x, (2,2)); z = clone(y); v = select(z, 1, 0); mul_(v, x); z",
     "y = expand(x, (2,2)); v = select(y, 1, 0); v = mul(v, x); z = select_scatter(y, v, 1, 0); z"},
    {"index_put_", "[3]", "y = mul(x, x); u = slice(x, 0, 0, 2); index_put_(y, {i[2,0]}, u); z = mul(y, x); z",
     "y = mul(x, x); u = slice(x, 0, 0, 2); y = index_put(y, {i[2,0]}, u); z = mul(y, x); z"},
    {"index_put_, adding", "[3]", "y = mul(x, x); u = sin(x); index_put_(y, {i[1,1,0]}, u, True); z = mul(y, y); z",
     "y = mul(x, x); u = sin(x); y = index_put(y, {i[1,1,0]}, u, True); z = mul(y, y); z"},
    {"masked_fill_", "[3]", "y = mul(x, x); u = select(x, 0, 0); masked_fill_(y, b[0,1,0], u); z = mul(y, x); z",
     "y = mul(x, x); u = select(x, 0, 0); y = where(b[0,1,0], u, y); z = mul(y, x); z"},
    {"scatter_", "[3]", "y = mul(x, x); u = slice(x, 0, 0, 2); scatter_(y, 0, i[2,0], u); z = mul(y, x); z",
     "y = mul(x, x); u = slice(x, 0, 0, 2); y = scatter(y, 0, i[2,0], u); z = mul(y, x); z"},
    {"scatter_add_", "[3]", "y = mul(x, x); u = sin(x); scatter_add_(y, 0, i[2,2,0], u); z = mul(y, y); z",
     "y = mul(x, x); u = sin(x); y = scatter_add(y, 0, i[2,2,0], u); z = mul(y, y); z"},
    {"index_add_", "[3]", "y = mul(x, x); u = slice(x, 0, 0, 2); index_add_(y, 0, i[1,1], u); z = mul(y, y); z",
     "y = mul(x, x); u = slice(x, 0, 0, 2); y = index_add(y, 0, i[1,1], u); z = mul(y, y); z"},
    {"index_copy_", "[3]", "y = mul(x, x); u = sin(x); v = slice(u, 0, 0, 2); index_copy_(y, 0, i[2,0], v); z = mul(y, x); z",
     "y = mul(x, x); u = sin(x); v = slice(u, 0, 0, 2); y = index_copy(y, 0, i[2,0], v); z = mul(y, x); z"},
    {"index_fill_", "[3]", "y = mul(x, x); index_fill_(y, 0, i[1], 2.0); z = mul(y, x); z", "y = mul(x, x); y = index_fill(y, 0, i[1], 2.0); z = mul(y, x); z"},
    {"index", "[3]", "y = index(x, {i[2,0,0]}); z = mul(y, x); z", NULL},
    {"gather", "[3]", "y = sin(x); y = gather(y, 0, i[2,0,0]); z = mul(y, x); z", NULL},
    {"index_select", "[3]", "y = index_select(x, 0, i[2,2]); z = prod(y); w = mul(z, x); w", NULL},
    {"flip and roll", "[3]", "y = flip(x, (0)); z = roll(x, (1)); w = mul(y, z); w", NULL},
    {"cat", "[2]", "y = sin(x); z = cat({x,y}); w = mul(z, z); w", NULL},
    {"norm", "[3]", "y = norm(x, 2); z = mul(x, y); z", NULL},
    {"norm of third order", "[3]+", "y = linalg_vector_norm(x, 3); z = mul(x, y); z", NULL},
    {"prod", "[3]", "y = prod(x); z = mul(y, x); z", NULL},
    {"softmax", "[3]", "y = softmax(x, 0); z = mul(y, x); z", NULL},
    {"log_softmax", "[3]", "y = log_softmax(x, 0); z = mul(y, x); z", NULL},
    {"logsumexp", "[3]", "y = logsumexp(x, (0)); z = mul(y, x); z", NULL},
    {"std", "[3]", "y = std(x); z = mul(y, x); z", NULL},
    {"var", "[3]", "y = var(x, (0)); z = mul(y, x); z", NULL},
    {"layer_norm", "[3]", "y = layer_norm(x, (3)); z = mul(y, x); z", NULL},
    {"sort", "[3]", "y, i = sort(x, 0); z = mul(y, x); z", NULL},
    {"topk", "[3]", "y, i = topk(x, 2); z = prod(y); w = mul(z, x); w", NULL},
    {"max", "[3]", "y = max(x); z = mul(y, x); z", NULL},
    {"min along a dim", "[3]", "y, i = min(x, 0); z = mul(y, x); z", NULL},
    {"median", "[3]", "y = median(x); z = mul(y, x); z", NULL},
    {"cumsum", "[3]", "y = cumsum(x, 0); z = mul(y, y); z", NULL},
    {"cumprod", "[3]", "y = cumprod(x, 0); z = mul(y, x); z", NULL},
    {"logcumsumexp", "[3]", "y = logcumsumexp(x, 0); z = mul(y, x); z", NULL},
    {"cummax", "[3]", "y, i = cummax(x, 0); z = mul(y, x); z", NULL},
    {"mm", "[2,2]", "y = mm(x, x); z = t(y); w = mm(z, x); w", NULL},
    {"mv", "[2]", "y = outer(x, x); z = mv(y, x); z", NULL},
    {"tril", "[2,2]", "y = tril(x); z = mm(y, x); z", NULL},
    {"lerp", "[3]", "y = sin(x); z = lerp(x, y, 0.25); w = mul(z, y); w", NULL},
    {"where", "[3]", "y = sin(x); z = gt(x, y); w = exp(x); w = where(z, w, y); w", NULL},
    {"clamp", "[3]", "y = clamp(x, -0.5, 0.5); z = mul(y, x); z", NULL},
    {"a constant", "[2]", "y = ones_like(x); y", NULL},
};
#define FUNCTIONS ((int)(sizeof functions / sizeof *functions))

static bool all_stacks(void) {
    const char *const wanted = getenv("OPD_STACKS");
    return wanted && strcmp(wanted, "all") == 0;
}

static opd_tensor *example(const char *text) {
    op_case c;
    opd_value v;
    memset(&c, 0, sizeof c);
    c.dtype = OPD_FLOAT64;
    c.smooth = true;
    c.seed = 3;
    c.at = text + 1;
    v = opd_value_tensor(case_read_tensor(&c));
    return v.u.t;
}

static void stack_fails(const stack_of *s, const char *name, const char *why) {
    char text[200];
    printf("FAIL %s of %s: %s\n", stack_name(s, text, sizeof text), name, why);
    CHECK(!"a stack of transforms");
    opd_error_clear();
}

/* The stack, over the function and over what it is out of place; false: the latter cannot be done. */
static bool stack_check(stack_of *s, const stack_of *plain, const char *name, opd_tensor *x) {
    char why[300];
    opd_tensor *want, *got;
    bool fair = true;
    OPD_SCOPE {
        x = stack_input(s, x);
        want = stack_plain(plain, x);
        if (!want) { fair = strcmp(opd_error_message(), STACK_TOO_LARGE) == 0; opd_error_clear(); }
        else {
            stack_poison();
            got = stack_run(s, x);
            if (!got) { (void)snprintf(why, sizeof why, "%.280s", opd_error_message()); stack_fails(s, name, why); }
            else if (!(stack_apart(got, want) < 1e-7)) {
                (void)snprintf(why, sizeof why, "off by %.3g", stack_apart(got, want));
                stack_fails(s, name, why);
            } else { CHECK(true); }
        }
    }
    return fair;
}

/* Stack number k of depth d: its digits are kinds.  The outermost may be one of those that only stand there. */
static bool stack_make(stack_of *s, int d, int k) {
    int i;
    s->n = d;
    s->at = 0;
    for (i = 0; i < d; i++, k /= i == 1 ? KINDS : NESTING) { s->kinds[i] = k % (i == 0 ? (int)KINDS : (int)NESTING); }
    return k == 0 && stack_order(s) <= 3;
}

/* Differentiated three times, its formula is infinity less infinity where a row of the cotangents is zero, as upstream's. */
static bool stack_excepted(const stack_of *s, const char *name) { return strcmp(name, "logcumsumexp") == 0 && stack_order(s) > 2; }

static void walk(int depth) {
    int f, k, done = 0;
    const char *const only = getenv("OPD_STACKS_ONLY"), *const like = getenv("OPD_STACKS_LIKE");
    char text[200];
    for (f = 0; f < FUNCTIONS; f++) {
        const function *fn = &functions[f];
        stack_of s, plain;
        opd_tensor *x = example(fn->sizes);
        if (only && !strstr(fn->name, only)) { continue; }
        memset(&s, 0, sizeof s);
        for (k = 0; k < (depth < 2 ? (int)KINDS : depth < 3 ? KINDS * NESTING : KINDS * NESTING * NESTING); k++) {
            if (!stack_make(&s, depth, k) || stack_excepted(&s, fn->name)) { continue; }
            if (!all_stacks() && ((depth == 3 && (k + 5 * f) % 37) || (depth == 2 && (k + f) % 5))) { continue; }
            if (like && strcmp(stack_name(&s, text, sizeof text), like) != 0) { continue; }
            s.text = fn->text;
            plain = s;
            plain.text = fn->plain ? fn->plain : fn->text;
            done++;
            if (!stack_check(&s, &plain, fn->name, x)) { stack_fails(&s, fn->name, opd_error_message()); }
        }
    }
    if (all_stacks()) { printf("depth %d: %d stacks\n", depth, done); }
}
/* In inference mode, of an inference tensor: what they give elsewhere. */
static void walk_in_inference_mode(int depth) {
    int f, k;
    char text[200];
    for (f = 0; f < FUNCTIONS; f++) {
        for (k = 0; k < (depth < 2 ? (int)NESTING : NESTING * KINDS); k++) {
            stack_of s;
            memset(&s, 0, sizeof s);
            s.text = functions[f].text;
            if (!stack_make(&s, depth, k) || s.kinds[0] >= NESTING || (depth == 2 && (k + f) % 3)) { continue; }
            OPD_SCOPE {
                opd_tensor *x = stack_input(&s, example(functions[f].sizes)), *want = stack_run(&s, x), *got = NULL;
                OPD_INFERENCE_MODE(true) { x = opd_clone(x); got = stack_run(&s, x); }
                if (!got || !(stack_apart(got, want) < 1e-12)) {
                    printf("%s of %s in inference mode: %s\n", stack_name(&s, text, sizeof text), functions[f].name,
                           opd_ok() ? "another value" : opd_error_message());
                }
                CHECK(want && got && stack_apart(got, want) < 1e-12);
                opd_error_clear();
            }
        }
    }
}
TEST_KEEPS(in_inference_mode) { walk_in_inference_mode(1); walk_in_inference_mode(2); }
TEST_KEEPS(one_transform) { walk(1); }
TEST_KEEPS(two_transforms) { walk(2); }
TEST_KEEPS(three_transforms) { walk(3); }

//-- the cards ---------------------------------------------------------------------------------------------------------

/* An operator of one of its arguments; in place, of a copy of it. */
typedef struct of_card { op_case *c; const opd_op *form; int arg; bool inplace; } of_card;
static opd_tensor *card_run(void *user, opd_tensor *x) {
    const of_card *u = (const of_card *)user;
    opd_value args[OPD_MAX_ARGS], rets[MOST_RESULTS];
    opd_tensor *out[MOST_RESULTS], *parts[MOST_RESULTS];
    int i, n, m = 0, rest;
    memcpy(args, u->c->args, sizeof args);
    if (u->inplace && !other_form(u->c, u->form, args, &rest)) { return NULL; }
    args[u->arg] = opd_value_tensor(u->inplace ? opd_mul(x, opd_ones_like(x)) : x);
    if (!args[u->arg].u.t || opd_call_all((opd_op *)(uintptr_t)u->form, rets, args, opd_schema_nargs(opd_op_schema(u->form)))) { return NULL; }
    n = results_of(u->form, rets, out);
    for (i = 0; i < n && (i == 0 || !first_result_only(u->form)); i++) {
        if (opd_dtype(out[i]) == OPD_FLOAT64) { parts[m++] = opd_reshape(out[i], OPD_INTS(-1)); }
    }
    return m && opd_ok() ? opd_cat(opd_tensors_of(parts, m), 0) : NULL;
}
static const int card_stacks[][4] = {
    {GRAD, VMAP, GRAD, -1}, {JVP, VMAP, GRAD, -1}, {GRAD, VMAP_LAST, JVP, -1}, {VMAP, GRAD, JVP, -1}, {TAPE, VMAP, JVP, -1},
    {TRACE, GRAD, -1, -1}, {GRAD, VMAP, VJP, -1}, {TRACE, JVP, -1, -1}, {VMAP, VMAP_LAST, GRAD, -1}, {JVP, JVP, -1, -1},
    {VMAP_AROUND, GRAD, VMAP, -1}, {TRACE, VMAP, GRAD, -1}, {VMAP, JVP, VJP, -1}};
#define CARD_STACKS ((int)(sizeof card_stacks / sizeof *card_stacks))

static void card_check(op_case *c, const opd_op_desc *card, int number) {
    char name[200];
    of_card u, v;
    int i, k, rest;
    for (i = 0; i < c->nargs; i++) {
        opd_tensor *x = c->args[i].tag == OPD_TAG_TENSOR ? c->args[i].u.t : NULL;
        if (!x || opd_dtype(x) != OPD_FLOAT64 || opd_numel(x) > 24 || opd_numel(x) == 0 || (!all_stacks() && i != number % c->nargs && i)) { continue; }
        if (constant_argument(c->op, opd_schema_arg_name(opd_op_schema(c->op), i))) { continue; }
        u.c = c; u.form = c->op; u.arg = i; u.inplace = false;
        v = u;
        v.inplace = i == 0 && card->inplace && *card->inplace;
        if (v.inplace) {
            opd_value args[OPD_MAX_ARGS];
            v.form = form_of(c->op, card->inplace);
            opd_error_clear();
            if (!v.form || !other_form(c, v.form, args, &rest) || !card_run(&v, x)) { v = u; }
            opd_error_clear();
        }
        for (k = 0; k < CARD_STACKS; k++) {
            stack_of s, plain;
            if (!all_stacks() && (k + number) % 5) { continue; }
            memset(&s, 0, sizeof s);
            while (s.n < 4 && card_stacks[k][s.n] >= 0) { s.kinds[s.n] = card_stacks[k][s.n]; s.n++; }
            s.fn = card_run;
            plain = s;
            s.user = &v;
            plain.user = &u;
            (void)snprintf(name, sizeof name, "%s(%s) of argument %d", opd_op_name(v.form), card->cases, i);
            (void)stack_check(&s, &plain, name, x);
            opd_error_clear();
        }
    }
}
TEST_KEEPS(cards) {
    /* what these do depends on where an example lies among others; and forward mode goes through the row of an embedding
       that padding_idx keeps from reverse mode, as upstream's does */
    static const char *const left_out[] = {"as_strided", "as_strided_copy", "as_strided_scatter", "_reshape_alias", "_reshape_alias_copy",
                                           "embedding", NULL};
    static op_case c;
    int id;
    const char *const only = getenv("OPD_STACKS_ONLY");
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    for (id = 0; id < OPD_OP_COUNT; id++) {
        const opd_op *op = opd_op_builtin((opd_op_id)id);
        const opd_op_desc *card = op ? opd_op_card(op) : NULL;
        const char *text = card ? card->cases : NULL;
        bool more = true;
        if (!text || card->backward == OPD_NOT_DIFFERENTIABLE || is_random(op) || opd_schema_is_mutable(opd_op_schema(op)) ||
            strstr(opd_op_name(op), "backward") || named(op, left_out) || (only && !strstr(opd_op_name(op), only))) { continue; }
        while (more) {
            OPD_SCOPE {
                c.op = op;
                c.dtype = OPD_FLOAT64;
                c.layout = CASE_CONTIGUOUS;
                c.smooth = true;
                c.meta = false;
                more = case_read_next(&c, &text);
                if (more) { card_check(&c, card, id); }
                more = more && all_stacks();
            }
            opd_error_clear();
        }
    }
}
//-- custom functions, checkpoints, hooks, autocast ------------------------------------------------------------------------

/* x x sin x, and the same as a custom function. */
static opd_tensor *curve(void *user, opd_tensor *x) { (void)user; return opd_mul(opd_mul(x, x), opd_sin(x)); }
static opd_tensor *curve_slope(opd_tensor *x) {
    return opd_add(opd_mul(opd_mul_Scalar(x, opd_value_double(2)), opd_sin(x)), opd_mul(opd_mul(x, x), opd_cos(x)));
}
static int curve_forward(opd_context *c) { return opd_context_return(c, curve(NULL, opd_context_tensor(c, 0))); }
static int curve_setup(opd_context *c) {
    opd_tensor *x = opd_context_tensor(c, 0);
    return opd_context_save_for_backward(c, &x, 1) || opd_context_save_for_forward(c, &x, 1) ? -1 : 0;
}
static int curve_backward(opd_backward_call *bw) {
    opd_tensor *x = opd_context_saved(opd_bw_context(bw), 0);
    return opd_bw_return(bw, 0, x ? opd_mul(opd_bw_grad(bw, 0), curve_slope(x)) : NULL);
}
static int curve_jvp(opd_jvp_call *jv) {
    opd_tensor *x = opd_context_saved(opd_jvp_context(jv), 0);
    return opd_jvp_return(jv, 0, x ? opd_mul(opd_jvp_tangent(jv, 0), curve_slope(x)) : NULL);
}
static int curve_vmap(void *user, const opd_value *in, const int *dims, int n, opd_value *out, int *out_dims);
enum { PLAIN, ONCE, BOTH, NO_BACKWARD, RULED, ONCE_BOTH, ONCE_RULED, CURVES };
static opd_autograd_function curves[CURVES];
static void curves_make(void) {
    int i;
    memset(curves, 0, sizeof curves);
    for (i = 0; i < CURVES; i++) {
        curves[i].name = "curve";
        curves[i].forward = curve_forward;
        curves[i].setup_context = curve_setup;
        curves[i].backward = i == NO_BACKWARD ? NULL : curve_backward;
        curves[i].jvp = i == PLAIN || i == ONCE ? NULL : curve_jvp;
        curves[i].vmap = i == RULED || i == ONCE_RULED ? curve_vmap : NULL;
        curves[i].once_differentiable = i == ONCE || i == ONCE_BOTH || i == ONCE_RULED;
    }
}
static int curve_vmap(void *user, const opd_value *in, const int *dims, int n, opd_value *out, int *out_dims) {
    opd_tensor *t = opd_autograd_call(&curves[RULED], in, n);
    (void)user;
    if (!t) { return -1; }
    out[0] = opd_value_tensor(t);
    out_dims[0] = dims[0];
    return 1;
}
static opd_tensor *custom(void *user, opd_tensor *x) {
    const opd_value v = opd_value_tensor(x);
    return opd_autograd_call((const opd_autograd_function *)user, &v, 1);
}
static int again(opd_tensor *const *in, int n, opd_tensor **out, int nout, void *user) {
    (void)n; (void)nout;
    out[0] = user ? custom(user, in[0]) : curve(NULL, in[0]);
    return out[0] ? 0 : -1;
}
static opd_tensor *checkpointed(void *user, opd_tensor *x) {
    opd_tensor *y;
    return opd_checkpoint(again, user, NULL, &x, 1, &y, 1) ? NULL : y;
}
static opd_tensor *same(opd_tensor *g, void *user) { (void)user; return opd_mul_Scalar(g, opd_value_double(1)); }
static opd_tensor *hooked(void *user, opd_tensor *x) {
    opd_tensor *y = opd_mul(x, x);
    (void)user;
    if (y && opd_tensor_requires_grad(y) && !opd_tensor_hook_add(y, same, NULL, NULL)) { return NULL; }
    return opd_mul(y, opd_sin(x));
}
/* A matrix product in bfloat16, whose arguments autocast has cast, or not. */
static opd_tensor *product(void *user, opd_tensor *x) {
    opd_tensor *m = opd_unsqueeze(opd_to_dtype(x, OPD_FLOAT32), 0), *y = NULL;
    if (user) { OPD_AUTOCAST(OPD_CPU) { y = opd_mm(m, opd_t(m)); y = opd_mm(y, opd_autocast_cast(OPD_BFLOAT16, m)); } }
    else { m = opd_to_dtype(m, OPD_BFLOAT16); y = opd_mm(opd_mm(m, opd_t(m)), m); }
    return y ? opd_mul(opd_to_dtype(opd_squeeze(y), OPD_FLOAT64), x) : NULL;
}
/* errors: what may be said in place of a value; the first of them only of what is differentiated more than once. */
static const struct { const char *name; stack_fn fn, plain; int curve; double near; const char *errors[3]; } given[] = {
    {"custom", custom, curve, PLAIN, 1e-7, {NULL, "has no `jvp`", NULL}},
    {"once differentiable", custom, curve, ONCE, 1e-7, {"differentiate twice", "has no `jvp`", NULL}},
    {"with a jvp", custom, curve, BOTH, 1e-7, {NULL, NULL, NULL}},
    {"without a backward", custom, curve, NO_BACKWARD, 1e-7, {NULL, "must implement the backward", NULL}},
    {"with a rule", custom, curve, RULED, 1e-7, {NULL, NULL, NULL}},
    {"once differentiable, with a jvp", custom, curve, ONCE_BOTH, 1e-7, {"differentiate twice", NULL, NULL}},
    {"once differentiable, with a rule", custom, curve, ONCE_RULED, 1e-7, {"differentiate twice", NULL, NULL}},
    {"checkpoint", checkpointed, curve, -1, 1e-7, {NULL, NULL, NULL}},
    {"checkpoint of a custom function", checkpointed, curve, RULED, 1e-7, {NULL, NULL, NULL}},
    {"hooked", hooked, curve, -1, 1e-7, {NULL, NULL, NULL}},
    {"autocast", product, product, 0, 0.05, {NULL, NULL, NULL}},
};
/* A checkpoint's second call comes when the layers that were inside of the tape are gone. */
static bool given_error(int f, const stack_of *s, const char *text) {
    const char *const *e = given[f].errors;
    return (e[0] && stack_order(s) > 1 && strstr(text, e[0])) || (e[1] && strstr(text, e[1])) ||
           (e[2] && (strstr(text, e[2]) || strstr(text, "escaped")));
}
static void given_check(int f, stack_of *s) {
    const double start[3] = {0.4375, -0.71875, 1.0625};
    stack_of plain = *s;
    OPD_SCOPE {
        opd_tensor *x = stack_input(s, opd_tensor_from(start, OPD_INTS(3), OPD_FLOAT64)), *want, *got;
        s->fn = given[f].fn;
        s->user = given[f].curve < 0 ? NULL : &curves[given[f].curve];
        plain.fn = given[f].plain;
        if (!(want = stack_plain(&plain, x))) { CHECK(strcmp(opd_error_message(), STACK_TOO_LARGE) == 0); opd_error_clear(); }
        else {
            stack_poison();
            got = stack_run(s, x);
            if (!got && given_error(f, s, opd_error_message())) { CHECK(true); opd_error_clear(); }
            else if (!got) { stack_fails(s, given[f].name, opd_error_message()); }
            else if (!(stack_apart(got, want) < given[f].near)) { stack_fails(s, given[f].name, "another value"); }
            else { CHECK(true); }
        }
    }
}
TEST_KEEPS(functions_of_the_user) {
    const opd_vmap_fallback was = opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    int f, depth, k;
    curves_make();
    for (f = 0; f < (int)(sizeof given / sizeof *given); f++) {
        for (depth = 1; depth <= 3; depth++) {
            for (k = 0; k < (depth < 2 ? (int)KINDS : depth < 3 ? KINDS * NESTING : KINDS * NESTING * NESTING); k++) {
                stack_of s;
                memset(&s, 0, sizeof s);
                if (!stack_make(&s, depth, k) || (depth == 3 && !all_stacks() && (k + 5 * f) % 31)) { continue; }
                if (given[f].near > 0.01 && stack_order(&s) > 1) { continue; }           /* rounded too often to compare */
                given_check(f, &s);
            }
        }
    }
    (void)opd_vmap_fallback_set(was);
}
CHECK_MAIN()
