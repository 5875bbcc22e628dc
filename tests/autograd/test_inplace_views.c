/* Views and in-place operators under autograd: random programs with PyTorch's results (golden/views.txt), and single
   cases. */
#include "../check.h"

//-- random programs ----------------------------------------------------------------------------------------------------

#define MAX_TENSORS 64
typedef struct program { opd_tensor *t[MAX_TENSORS]; int n, leaves[MAX_TENSORS], nleaves, at; } program;

static opd_op *aten(const char *name) {
    char full[80];
    snprintf(full, sizeof full, "aten::%s", name);
    return opd_find(full);
}
static opd_tensor *add_out(opd_tensor *self, opd_tensor *other, opd_tensor *out) {
    opd_value v[4];
    v[0] = opd_value_tensor(self);
    v[1] = opd_value_tensor(other);
    v[2] = opd_value_int(1);
    v[3] = opd_value_tensor(out);
    return opd_call_op(aten("add.out"), v, 4);
}
static opd_tensor *make_leaf(program *p, const long *v) {
    int64_t sizes[8];
    opd_tensor *t;
    double d;
    int i;
    for (i = 0; i < v[1]; i++) { sizes[i] = v[2 + i]; }
    t = opd_tensor_new(opd_ints_of(sizes, v[1]), OPD_FLOAT64);
    for (i = 0; t && i < opd_numel(t); i++) {
        d = (i + 1) * 0.61803398875 + p->n * 0.27;
        opd_data_f64(t)[i] = 0.2 + 0.6 * (d - floor(d));
    }
    p->leaves[p->nleaves++] = p->n;
    return opd_tensor_set_requires_grad(t, v[0] != 0);
}
static opd_tensor *make_view(opd_tensor *x, const char *op, const long *v, int n) {
    int64_t s[8];
    int i;
    for (i = 0; i < n && i < 8; i++) { s[i] = v[i]; }
    if (!strcmp(op, "view")) { return opd_view(x, opd_ints_of(s, 1)); }
    if (!strcmp(op, "transpose")) { return opd_transpose(x, s[0], s[1]); }
    if (!strcmp(op, "select")) { return opd_select(x, s[0], s[1]); }
    if (!strcmp(op, "slice")) { return opd_slice(x, s[0], OPD_V(s[1]), OPD_V(s[2]), s[3]); }
    if (!strcmp(op, "unsqueeze")) { return opd_unsqueeze(x, s[0]); }
    if (!strcmp(op, "squeeze")) { return opd_squeeze(x); }
    if (!strcmp(op, "detach")) { return opd_detach(x); }
    if (!strcmp(op, "alias")) { return OPD_CALL(aten("alias"), x); }
    if (!strcmp(op, "expand")) { return opd_expand(x, opd_ints_of(s, n)); }
    if (!strcmp(op, "diagonal")) { return opd_diagonal_full(x, s[0], s[1], s[2]); }
    if (!strcmp(op, "permute")) { return opd_permute(x, opd_ints_of(s, n)); }
    if (!strcmp(op, "unfold")) { return opd_unfold(x, s[0], s[1], s[2]); }
    if (!strcmp(op, "as_strided")) { return opd_as_strided_full(x, opd_ints_of(s, 2), opd_ints_of(s + 2, 2), OPD_V(s[4])); }
    if (!strcmp(op, "split") || !strcmp(op, "unbind")) {
        const opd_tensors l = op[0] == 's' ? opd_split(x, s[0], s[1]) : opd_unbind_full(x, s[0]);
        const int64_t k = s[n - 1];
        if (opd_ok() && k >= l.n) { (void)opd_fail(OPD_ERROR_USER, "list index out of range"); }
        return opd_ok() ? l.data[k] : NULL;
    }
    (void)opd_fail(OPD_ERROR_USER, "view %s?", op);
    return NULL;
}
static opd_tensor *write_into(opd_tensor *x, const char *op, opd_tensor *b) {
    char name[40];
    if (!strcmp(op, "mul_") || !strcmp(op, "add_")) {
        snprintf(name, sizeof name, "%s.Tensor", op);
        return OPD_CALL(aten(name), x, b);
    }
    if (!strcmp(op, "copy_")) { return opd_copy_(x, b); }
    if (!strcmp(op, "fill_")) { return opd_fill_(x, OPD_V(0.5)); }
    if (!strcmp(op, "unsqueeze_")) { return OPD_CALL(aten(op), x, 0); }
    if (!strcmp(op, "transpose_")) { return OPD_CALL(aten(op), x, 0, 1); }
    return OPD_CALL(aten(op), x);
}
static opd_tensor *compute(const char *op, opd_tensor *a, opd_tensor *b) {
    if (!strcmp(op, "mul")) { return opd_mul(a, b); }
    if (!strcmp(op, "add")) { return opd_add(a, b); }
    return OPD_CALL(aten(op), a);
}

/* One step; text is the line without '!'. */
static bool step(program *p, const char *text) {
    char op[32] = "";
    long v[16], id;
    int n = 0, used = 0, more;
    opd_tensor *made = NULL;
    switch (*text) {
    case 'L': case 'G': text++; break;
    case 'F': case 'V':
        sscanf(text, "%*c %ld %31s%n", &id, op, &used);
        text += used;
        break;
    case 'I':
        sscanf(text, "%*c %31s%n", op, &used);
        text += used;
        break;
    default: return false;
    }
    while (n < 16 && sscanf(text, "%ld%n", &v[n], &more) == 1) { text += more; n++; }
    if (!op[0] && n == 1) { (void)opd_grad_mode_set(v[0] != 0); return true; }
    if (!op[0]) { made = make_leaf(p, v + 1); }
    else if (op[strlen(op) - 1] == '_') { return write_into(p->t[v[0]], op, n > 1 ? p->t[v[1]] : NULL) != NULL; }
    else if (!strcmp(op, "mul") || !strcmp(op, "add") || !strcmp(op, "sin") || !strcmp(op, "tanh") || !strcmp(op, "exp") ||
             !strcmp(op, "clone")) {
        made = compute(op, p->t[v[0]], n > 1 ? p->t[v[1]] : NULL);
    }
    else { made = make_view(p->t[v[0]], op, v + 1, n - 1); }
    if (made && p->n < MAX_TENSORS) { p->t[p->n++] = made; }
    return made != NULL;
}

static opd_tensor *loss_of(const program *p) {
    opd_tensor *loss = opd_zeros(opd_ints_of(NULL, 0), OPD_FLOAT64);
    int i;
    for (i = 0; i < p->n; i++) {
        loss = opd_add(loss, opd_sum(opd_mul(opd_mul(p->t[i], opd_full(opd_ints_of(NULL, 0), OPD_V((double)(i + 1)), OPD_FLOAT64)),
                                             p->t[i])));
    }
    return loss;
}

/* Whether PyTorch's first words say the same as the pending error. */
static bool same_refusal(const char *expected) {
    static const char *const kinds[] = {
        "a view of a leaf tensor that requires grad", "a leaf tensor that requires grad", "Can't detach views in-place",
        "one of the variables needed for gradient computation has been modified by an inplace operation",
        "is a view and is being modified inplace. This view is the output of a function that returns multiple views.",
        "is a view and its base or another view of its base has been modified inplace. This view is the output of a function",
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that",
        "A view was created in no_grad mode and its base or another view of its base has been modified inplace with grad",
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. This view is the output",
        "is a view of a view which was created in no_grad mode and is being modified",
        "is a view of a view which was created in no_grad mode and its base",
        "more than one element of the written-to tensor refers to a single memory location"
    };
    size_t i;
    for (i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strstr(expected, kinds[i])) { return strstr(opd_error_message(), kinds[i]) != NULL; }
    }
    return true;
}

static int differences;
static void differs(const program *p, const char *line, const char *what) {
    if (++differences <= 20) { printf("views.txt:%d: %s: %s (%s)\n", p->at, line, what, opd_error_message()); }
}

static void check_state(program *p, const char *line) {
    int id, grad, is_leaf, version;
    if (sscanf(line, "S %d %d %d %d", &id, &grad, &is_leaf, &version) != 4) { return; }
    if (opd_tensor_requires_grad(p->t[id]) != grad) { differs(p, line, "requires_grad"); }
    if (opd_tensor_is_leaf(p->t[id]) != is_leaf) { differs(p, line, "is_leaf"); }
    if ((int)opd_tensor_version(p->t[id]) != version) { differs(p, line, "version"); }
    if (!opd_ok()) { differs(p, line, "an error"); opd_error_clear(); }
}
static void check_values(program *p, const char *line, opd_tensor *g) {
    char *at, *end;
    opd_tensor *c = g ? opd_contiguous(g) : NULL;
    int64_t i;
    (void)strtol(line + 2, &at, 10);
    if (!strcmp(at, " -")) {
        if (g) { differs(p, line, "a gradient"); }
        return;
    }
    if (!g) { differs(p, line, "no gradient"); return; }
    for (i = 0; i < opd_numel(c); i++) {
        const double want = strtod(at, &end), have = opd_data_f64(c)[i];
        if (end == at || fabs(want - have) > 1e-9 * (1 + fabs(want))) {
            differs(p, line, "another gradient");
            return;
        }
        at = end;
    }
}

TEST(random_programs_as_in_pytorch) {
    FILE *f = fopen("tests/golden/views.txt", "r");
    static char line[20000];
    int programs = 0, second = 0;
    if (!f) { f = fopen("golden/views.txt", "r"); }
    CHECK_OR_RETURN(f != NULL);
    differences = 0;
    for (;;) {
        program p;
        opd_tensor *want[MAX_TENSORS], *g[MAX_TENSORS], *h[MAX_TENSORS], *loss, *again;
        opd_backward_options o;
        int n = 0, i, k = 0, nh = 0;
        static int at;
        bool over = false;
        if (feof(f)) { break; }
        if (programs == 0) { at = 0; }
        memset(&p, 0, sizeof p);
        memset(&o, 0, sizeof o);
        o.allow_unused = o.create_graph = true;
        OPD_SCOPE {
            while (!over && fgets(line, sizeof line, f)) {
                const bool refused = line[0] == '!';
                char *text = line + refused, *words = strstr(line, " # ");
                at++;
                p.at = at;
                line[strcspn(line, "\n")] = 0;
                if (words) { *words = 0; words += 3; }
                if (*text == 'E') { over = true; programs++; continue; }
                if (*text == 'S' && !refused) { check_state(&p, text); continue; }
                if (*text == 'S') { continue; }
                if (*text == 'B') {
                    loss = loss_of(&p);
                    for (i = 0; i < p.nleaves; i++) {
                        opd_tensor *t = p.t[p.leaves[i]];
                        if (opd_tensor_is_leaf(t) && opd_tensor_requires_grad(t)) { want[n++] = t; }
                    }
                    if (opd_ok()) { (void)opd_autograd_grad(&loss, 1, want, n, &o, g); }
                    if (refused != !opd_ok() || (refused && !same_refusal(words))) { differs(&p, line, refused ? words : "fails"); }
                    if (!opd_ok()) { opd_error_clear(); for (i = 0; i < n; i++) { g[i] = NULL; } }
                    continue;
                }
                if (*text == 'D') { check_values(&p, text, g[k++]); continue; }
                if (*text == 'H') {
                    if (nh == 0) {
                        again = NULL;
                        for (i = 0; i < n; i++) {
                            opd_tensor *s = g[i] ? opd_sum(opd_mul(g[i], g[i])) : NULL;
                            if (s) { again = again ? opd_add(again, s) : s; }
                        }
                        o.create_graph = false;
                        memset(h, 0, sizeof h);
                        (void)opd_autograd_grad(&again, 1, want, n, &o, h);
                    }
                    if (refused != !opd_ok()) { differs(&p, line, refused ? words : "second gradient fails"); }
                    if (opd_ok() && !refused) { check_values(&p, text, h[nh]); second++; }
                    opd_error_clear();
                    nh++;
                    continue;
                }
                if (step(&p, text) == refused) { differs(&p, line, refused ? words : "fails"); }
                else if (refused && !same_refusal(words)) { differs(&p, line, words); }
                if (*text == 'L' || *text == 'F' || *text == 'V' || *text == 'I') { opd_error_clear(); }
            }
            (void)opd_grad_mode_set(true);
        }
        if (!over) { break; }
    }
    fclose(f);
    CHECK_INT(differences, 0);
    CHECK(programs >= 500);
    CHECK(second > 100);
}

//-- single cases: values and texts are those of PyTorch 1.13 ----------------------------------------------------------

static opd_tensor *numbers(opd_ints sizes, bool grad) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_FLOAT64);
    int64_t i;
    for (i = 0; t && i < opd_numel(t); i++) { opd_data_f64(t)[i] = (double)(i + 1); }
    return opd_tensor_set_requires_grad(t, grad);
}
static opd_tensor *ones(opd_ints sizes, bool grad) {
    return opd_tensor_set_requires_grad(opd_ones(sizes, OPD_FLOAT64), grad);
}
static opd_tensor *times(opd_tensor *a, opd_tensor *b) { return write_into(a, "mul_", b); }
static opd_tensor *plus(opd_tensor *a, opd_tensor *b) { return write_into(a, "add_", b); }
static opd_tensor *non_leaf(opd_tensor *t) { return opd_mul(t, ones(opd_ints_of(NULL, 0), false)); }
static opd_tensor *part(opd_tensor *t, int64_t from, int64_t to) { return opd_slice(t, 0, OPD_V(from), OPD_V(to), 1); }
static void check_all(const opd_tensor *t, const double *want) {
    opd_tensor *c = t ? opd_contiguous((opd_tensor *)(uintptr_t)t) : NULL;
    int64_t i;
    CHECK_OR_RETURN(c != NULL);
    for (i = 0; i < opd_numel(c); i++) { CHECK_NEAR(opd_data_f64(c)[i], want[i], 1e-12); }
}
#define CHECK_GRAD(t, ...) do { const double want_[] = {__VA_ARGS__}; check_all(opd_tensor_grad(t), want_); } while (0)
#define REFUSED(expr, text) do { CHECK((expr) == NULL); CHECK_ERROR(OPD_ERROR_AUTOGRAD, text); } while (0)

#define SAVED_CHANGED "one of the variables needed for gradient computation has been modified by an inplace operation"
#define LEAF "a leaf tensor that requires grad is being used in an in-place operation."
#define VIEW_OF_LEAF "a view of a leaf tensor that requires grad is being used in an in-place operation."

TEST(write_into_a_view_of_a_result) {             /* the base's history follows */
    opd_tensor *root = numbers(OPD_INTS(2, 2), true), *x = non_leaf(root), *v = opd_select(x, 1, 0);
    CHECK(opd_tensor_base(v) == x && opd_tensor_base(x) == NULL && opd_tensor_base(opd_unsqueeze(v, 0)) == x);
    CHECK(times(v, numbers(OPD_INTS(2), false)) == v);
    CHECK_STR(opd_tensor_grad_fn(x), "CopySlices");
    CHECK_STR(opd_tensor_grad_fn(v), "AsStridedBackward0");
    CHECK_INT(opd_backward(opd_sum(opd_mul(x, x))), 0);
    CHECK_GRAD(root, 2, 4, 6 * 4, 8);
}
TEST(write_into_the_base_regenerates_views) {
    opd_tensor *root = numbers(OPD_INTS(4), true), *x = non_leaf(root), *v = part(x, 1, 3), *w = part(v, 1, 2);
    CHECK_STR(opd_tensor_grad_fn(v), "SliceBackward0");
    CHECK(times(x, numbers(OPD_INTS(4), false)) == x);
    CHECK_STR(opd_tensor_grad_fn(v), "AsStridedBackward0");
    CHECK(!opd_tensor_is_leaf(w));
    CHECK_INT(opd_backward(opd_sum(opd_add(v, w))), 0);      /* w broadcasts */
    CHECK_GRAD(root, 0, 2, 3 + 2 * 3, 0);
}
TEST(two_views_and_their_base) {
    opd_tensor *root = numbers(OPD_INTS(4), true), *w = numbers(OPD_INTS(2), true), *x = non_leaf(root);
    opd_tensor *a = part(x, 0, 2), *b = part(x, 1, 3);
    CHECK(plus(a, w) && plus(b, opd_mul(w, w)) && plus(x, root));
    CHECK_INT(opd_backward(opd_sum(opd_add(a, b))), 0);
    CHECK_GRAD(root, 2, 4, 2, 0);
    CHECK_GRAD(w, 1 + 2 * 2, 2 + 4);
}
TEST(a_base_comes_to_require_grad) {              /* test_inplace_on_view_makes_base_require_grad */
    opd_tensor *x = numbers(OPD_INTS(4), false), *w = numbers(OPD_INTS(2), true), *v = part(x, 0, 2), *u = part(x, 2, 4);
    opd_tensor *d = opd_detach(x);
    CHECK(!opd_tensor_requires_grad(u));
    CHECK(times(v, w) == v);
    CHECK(opd_tensor_requires_grad(x) && opd_tensor_requires_grad(v) && opd_tensor_requires_grad(u));
    CHECK_STR(opd_tensor_grad_fn(x), "CopySlices");
    CHECK_STR(opd_tensor_grad_fn(u), "AsStridedBackward0");
    CHECK(!opd_tensor_requires_grad(d) && opd_tensor_base(d) == NULL);
    CHECK_INT(opd_backward(opd_sum(opd_add(opd_sum(x), opd_mul(u, v)))), 0);
    CHECK_GRAD(w, 1 * (2 + 3), 2 * (2 + 4));
}
TEST(backward_goes_only_through_what_is_seen) {   /* test_inplace_on_view_backprop_base, _view_of_view, _of_base */
    opd_tensor *root = ones(OPD_INTS(2, 2), true), *x = non_leaf(root), *v1 = part(x, 0, 1), *v2 = opd_select(v1, 1, 1);
    opd_tensor *w = ones(OPD_INTS(1), true);
    CHECK(times(v2, opd_add(w, w)) == v2);
    CHECK_INT(opd_backward(opd_sum(v1)), 0);
    CHECK_GRAD(root, 1, 2, 0, 0);
    CHECK_GRAD(w, 2);
}
TEST(views_that_must_not_be_written) {
    opd_tensor *x = numbers(OPD_INTS(4), true), *y = non_leaf(x), *w = ones(OPD_INTS(2), true), *v, *u;
    opd_tensors l;
    REFUSED(plus(part(x, 0, 2), w), VIEW_OF_LEAF);
    REFUSED(plus(opd_unsqueeze(part(x, 0, 2), 0), w), VIEW_OF_LEAF);
    REFUSED(plus(x, x), LEAF);
    v = part(numbers(OPD_INTS(4), false), 0, 2);
    CHECK(opd_tensor_set_requires_grad(v, true) == v);
    REFUSED(plus(v, w), VIEW_OF_LEAF);
    l = opd_split(y, 2, 0);
    REFUSED(plus(l.data[1], w), "Output 1 of SplitBackward0 is a view and is being modified inplace. This view is the output of a function "
            "that returns multiple views. Such functions do not allow the output views to be modified inplace. You should replace the inplace "
            "operation by an out-of-place one.");
    REFUSED(plus(part(l.data[1], 0, 1), ones(OPD_INTS(1), false)), "Output 0 of SliceBackward0 is a view and is being modified inplace. This view is");
    REFUSED(plus(opd_unbind(opd_view(numbers(OPD_INTS(4), false), OPD_INTS(2, 2))).data[0], w), "A view was created in no_grad mode and is being "
            "modified inplace with grad mode enabled. This view is the output of a function that returns multiple views.");
    CHECK(opd_tensor_version(y) == 0);
    OPD_NO_GRAD { CHECK(plus(l.data[0], w) != NULL); }
    REFUSED(opd_mul(l.data[0], w), "Output 0 of SplitBackward0 is a view and its base or another view of its base has been modified inplace. This view");
    OPD_NO_GRAD { v = part(y, 0, 2); u = opd_split(y, 2, 0).data[0]; }
    REFUSED(plus(v, ones(OPD_INTS(2), false)), "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that");
    REFUSED(plus(u, w), "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that");
    v = part(v, 0, 1);
    REFUSED(plus(v, ones(OPD_INTS(1), false)), "no_grad mode and is being modified inplace with grad mode enabled. Given that");
    OPD_NO_GRAD { v = part(numbers(OPD_INTS(4), false), 0, 2); }
    CHECK(plus(v, numbers(OPD_INTS(2), false)) == v);          /* nothing requires grad */
    REFUSED(plus(v, w), "A view was created in no_grad mode and is being modified inplace with grad mode enabled. Given that");
    CHECK(add_out(w, w, v) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.");
    OPD_NO_GRAD { CHECK(add_out(w, w, v) == v); }
}
TEST(views_in_no_grad_require_grad_as_their_base) {
    opd_tensor *x = numbers(OPD_INTS(3), true), *v = NULL, *y;
    OPD_NO_GRAD { v = opd_view(x, OPD_INTS(-1)); }
    CHECK(opd_tensor_requires_grad(v) && opd_tensor_is_leaf(v));
    y = opd_sum(opd_mul(v, v));
    CHECK(opd_tensor_requires_grad(y));
    CHECK_INT(opd_backward(y), 0);
    CHECK(opd_tensor_grad(v) == NULL && opd_tensor_grad(x) == NULL);
}
/* Returns a view that is not in the history of its base: no gradient is computed for it. */
static opd_tensor *unknown_view(int how, opd_tensor **base) {
    opd_tensor *x = numbers(OPD_INTS(2, 2), how < 2), *v = NULL;
    *base = how == 0 ? non_leaf(x) : x;
    if (how == 0 || how == 1) { OPD_NO_GRAD { v = opd_view(*base, OPD_INTS(4)); } }
    else if (how == 2) { v = opd_view(*base, OPD_INTS(4)); }
    else { OPD_INFERENCE_MODE(true) { v = opd_view(*base, OPD_INTS(4)); } }
    CHECK(opd_tensor_set_requires_grad(*base, true) == *base);
    return v;
}
TEST(views_that_no_history_knows) {
    int how;
    for (how = 0; how < 4; how++) {
        opd_tensor *base, *v = unknown_view(how, &base), *w = numbers(OPD_INTS(4), true), *s, *g = w, *uses[8];
        opd_backward_options o;
        int i;
        memset(&o, 0, sizeof o);
        CHECK(opd_tensor_requires_grad(v) && opd_tensor_is_leaf(v) && opd_tensor_grad_fn(v) == NULL);
        uses[0] = v; uses[1] = opd_select(v, 0, 1); uses[2] = opd_split(v, 2, 0).data[1]; uses[3] = opd_unbind(v).data[0];
        uses[4] = OPD_CALL(aten("cat"), OPD_TENSORS(v, w), 0); uses[5] = opd_mul(v, w); uses[6] = OPD_CALL(aten("max.dim"), v, 0); uses[7] = opd_exp(v);
        for (i = 0, s = opd_sum(w); i < 8; i++) { s = opd_add(s, opd_sum(uses[i])); }
        o.retain_graph = o.allow_unused = true;
        CHECK_INT(opd_autograd_grad(&s, 1, &v, 1, &o, &g), 0);
        CHECK(g == NULL);
        o.inputs = &v; o.ninputs = 1;
        CHECK_INT(opd_backward_with(&s, 1, &o), 0);
        CHECK(opd_tensor_grad(v) == NULL);
        CHECK_INT(opd_tensor_retain_grad(v), 0);
        CHECK_INT(opd_backward(s), 0);
        CHECK(opd_tensor_grad(v) == NULL && opd_tensor_grad(base) == NULL);
        CHECK_GRAD(w, 3, 4, 5, 6);
        o.allow_unused = false;
        s = opd_sum(v);
        CHECK_INT(opd_autograd_grad(&s, 1, &v, 1, &o, &g), -1);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "appears to not have been used in the graph");
    }
}
TEST(parts_of_tensor_split_may_be_written) {     /* slices, each for itself */
    static const char *const names[] = {"tensor_split.sections", "hsplit.int", "vsplit.int", "dsplit.int"};
    int i;
    for (i = 0; i < 4; i++) {
        opd_tensor *x = i == 0 ? numbers(OPD_INTS(4), true) : i == 3 ? numbers(OPD_INTS(1, 1, 4), true)
            : i == 2 ? numbers(OPD_INTS(4, 1), true) : numbers(OPD_INTS(1, 4), true), *y = non_leaf(x);
        opd_tensor *three = opd_full(OPD_INTS(1), opd_value_double(3), OPD_FLOAT64);
        opd_value parts;
        OPD_CALL_N(aten(names[i]), &parts, y, 2);
        CHECK_INT(parts.n, 2);
        CHECK(times(parts.u.tensors[0], three) == parts.u.tensors[0]);
        CHECK_INT(opd_backward(opd_add(opd_sum(y), opd_sum(parts.u.tensors[1]))), 0);
        CHECK_GRAD(x, 3, 3, 2, 2);
    }
}
TEST(geometry_in_place_leaves_the_base_alone) {  /* also where it changes nothing */
    static const char *const names[] = {"squeeze_", "t_", "squeeze_"};
    int i;
    for (i = 0; i < 3; i++) {
        opd_tensor *x = numbers(OPD_INTS(4), true), *w = non_leaf(x), *s = opd_sum(w), *g, *v;
        v = i == 0 ? opd_view(w, OPD_INTS(2, 2)) : i == 1 ? opd_view(w, OPD_INTS(4)) : opd_view(w, OPD_INTS(1, 4));
        CHECK(OPD_CALL(aten(names[i]), v) == v);
        CHECK_STR(opd_tensor_grad_fn(w), "MulBackward0");
        CHECK_INT(opd_autograd_grad(&s, 1, &w, 1, NULL, &g), 0);
        CHECK_INT(opd_backward(opd_sum(v)), 0);
        CHECK_GRAD(x, 1, 1, 1, 1);
    }
}
TEST(views_of_integers_have_a_base) {
    const int64_t n[6] = {0, 1, 2, 3, 4, 5};
    opd_tensor *x = opd_tensor_from(n, OPD_INTS(6), OPD_INT64), *v = opd_view(x, OPD_INTS(2, 3)), *b, *w, *f = ones(OPD_INTS(2), false);
    CHECK(opd_tensor_base(x) == NULL && opd_tensor_base(v) == x && opd_tensor_base(opd_select(v, 0, 0)) == x);
    CHECK(opd_tensor_base(opd_clone(v)) == NULL && opd_tensor_base(opd_detach(v)) == NULL);
    CHECK(opd_tensor_base(opd_unsafe_split(x, 2).data[0]) == NULL);
    CHECK(opd_tensor_base(OPD_CALL(aten("view.dtype"), f, OPD_INT64)) == NULL);
    b = opd_gt_Scalar(f, opd_value_int(0));
    w = opd_select(b, 0, 1);
    CHECK(opd_tensor_base(w) == b);
    OPD_NO_GRAD { CHECK(opd_tensor_base(opd_select(v, 0, 1)) == x); }
    OPD_INFERENCE_MODE(true) { CHECK(opd_tensor_base(opd_select(opd_clone(x), 0, 0)) == NULL); }
    CHECK_INT(opd_tensor_set_data(v, opd_clone(v)), 0);
    CHECK(OPD_CALL(aten("add_.Scalar"), opd_select(x, 0, 0), 7) != NULL && opd_data_i64(x)[0] == 7);
}
TEST(a_view_of_what_was_detached_stays_one) {
    opd_tensor *x = numbers(OPD_INTS(4), true), *y = non_leaf(x), *v = opd_view(y, OPD_INTS(2, 2));
    CHECK(opd_detach_(y) == y && plus(y, ones(OPD_INTS(4), false)) == y);
    CHECK_STR(opd_tensor_grad_fn(v), "AsStridedBackward0");
    CHECK(opd_tensor_requires_grad(v) && !opd_tensor_requires_grad(y));
    CHECK_INT(opd_backward(opd_sum(v)), 0);
    CHECK(opd_tensor_grad(x) == NULL);
}
TEST(saved_tensors_notice_writes_through_views) {
    opd_tensor *x = numbers(OPD_INTS(4), true), *y = non_leaf(x), *v = part(y, 0, 2), *z = opd_mul(v, v), *d;
    CHECK(plus(part(y, 2, 4), ones(OPD_INTS(2), false)) != NULL);          /* another part, but one counter */
    CHECK_INT(opd_backward(opd_sum(z)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, SAVED_CHANGED);
    y = non_leaf(x); z = opd_exp(y); d = opd_detach(z);
    CHECK(plus(d, ones(OPD_INTS(4), false)) == d);
    CHECK_INT(opd_tensor_version(z), 1);
    CHECK_INT(opd_backward(opd_sum(z)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, SAVED_CHANGED ": [float64 [4]], which is output 0 of ExpBackward0, is at version 1; expected version 0 instead");
    y = non_leaf(x); v = part(y, 0, 2);
    CHECK(OPD_CALL(aten("exp_"), v) == v);        /* saves the result, a part of the base */
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_GRAD(x, exp(1), exp(2), 1, 1);
    y = non_leaf(x); v = part(y, 0, 2);
    CHECK(OPD_CALL(aten("exp_"), v) == v && OPD_CALL(aten("zero_"), part(y, 3, 4)) != NULL);
    CHECK_INT(opd_backward(opd_sum(y)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, SAVED_CHANGED);
    y = non_leaf(x); v = part(y, 0, 2);
    CHECK(times(v, part(y, 0, 2)) == v);          /* saves what it overwrites */
    CHECK_INT(opd_backward(opd_sum(y)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, SAVED_CHANGED);
}
TEST(backward_twice_through_a_written_view) {
    opd_tensor *x = numbers(OPD_INTS(2), true), *y = non_leaf(x), *s;
    opd_backward_options o;
    memset(&o, 0, sizeof o);
    CHECK(OPD_CALL(aten("exp_"), part(y, 0, 1)) != NULL);
    s = opd_sum(y);
    o.retain_graph = true;
    CHECK_INT(opd_backward_with(&s, 1, &o), 0);
    CHECK_INT(opd_backward(s), 0);
    CHECK_GRAD(x, 2 * exp(1), 2);
    CHECK_INT(opd_backward(s), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to backward through the graph a second time");
}
TEST(descriptions_of_views_written_in_place) {    /* the base is not written: its history stays */
    opd_tensor *x = numbers(OPD_INTS(3, 3), true), *y = non_leaf(x), *v = part(opd_slice(y, 1, OPD_V(0), OPD_V(2), 1), 0, 2);
    CHECK(OPD_CALL(aten("t_"), v) == v);
    CHECK_STR(opd_tensor_grad_fn(y), "MulBackward0");
    CHECK_INT(opd_backward(opd_sum(opd_mul(v, numbers(OPD_INTS(2, 2), false)))), 0);
    CHECK_GRAD(x, 1, 3, 0, 2, 4, 0, 0, 0, 0);
    y = non_leaf(x);
    v = part(opd_slice(y, 1, OPD_V(0), OPD_V(2), 1), 0, 2);
    CHECK(OPD_CALL(aten("t_"), v) == v && times(v, numbers(OPD_INTS(2, 2), false)) == v);
    CHECK_STR(opd_tensor_grad_fn(y), "CopySlices");
    CHECK_INT(opd_tensor_set_grad(x, NULL), 0);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_GRAD(x, 1, 3, 1, 2, 4, 1, 1, 1, 1);
}
TEST(unsafe_parts_may_be_written) {
    opd_tensor *x = numbers(OPD_INTS(4), true), *y = non_leaf(x);
    opd_tensors l = opd_unsafe_split(y, 2);
    CHECK(opd_tensor_base(l.data[0]) == NULL);
    CHECK(times(l.data[0], numbers(OPD_INTS(2), false)) == l.data[0]);
    CHECK_INT(opd_backward(opd_sum(opd_add(l.data[0], l.data[1]))), 0);
    CHECK_GRAD(x, 1, 2, 1, 1);
}
TEST(second_derivative_through_a_written_view) {
    opd_tensor *x = numbers(OPD_INTS(2), true), *y = non_leaf(x), *s, *g, *again;
    opd_backward_options o;
    memset(&o, 0, sizeof o);
    o.create_graph = true;
    CHECK(OPD_CALL(aten("exp_"), part(y, 0, 1)) != NULL);
    s = opd_sum(opd_mul(y, y));                   /* e^2a + b^2 */
    CHECK_INT(opd_autograd_grad(&s, 1, &x, 1, &o, &g), 0);
    again = opd_sum(g);
    CHECK_INT(opd_backward(again), 0);
    CHECK_GRAD(x, 4 * exp(2), 2);
}
TEST(complex_pairs_share_history) {
    opd_tensor *x = numbers(OPD_INTS(2, 2), true), *y = non_leaf(x), *z = opd_view_as_complex(y), *r = opd_view_as_real(z);
    CHECK(opd_tensor_base(z) == y && opd_tensor_base(r) == y);
    CHECK(times(opd_select(r, 1, 1), numbers(OPD_INTS(2), false)) != NULL);
    CHECK(opd_tensor_requires_grad(z) && !opd_tensor_is_leaf(z));
    CHECK_INT(opd_backward(opd_sum(opd_view_as_real(z))), 0);
    CHECK_GRAD(x, 1, 1, 1, 2);
    /* real views of complex numbers, too: the write reaches the view */
    x = numbers(OPD_INTS(2, 2), true);
    y = opd_view_as_complex(non_leaf(x));
    z = opd_mul_Scalar(y, OPD_V(1));
    r = opd_view_as_real(z);
    CHECK(times(z, opd_view_as_complex(numbers(OPD_INTS(2, 2), false))) != NULL);
    CHECK_INT(opd_backward(opd_sum(opd_select(r, 1, 0))), 0);  /* real parts of z (1 + 2i) and z (3 + 4i) */
    CHECK_GRAD(x, 1, -2, 3, -4);
}
TEST(detach_in_place) {
    opd_tensor *x = numbers(OPD_INTS(2), true), *y = non_leaf(x), *e = opd_exp(y), *z = opd_mul(e, e), *g;
    opd_backward_options o;
    memset(&o, 0, sizeof o);
    o.create_graph = true;
    CHECK(opd_detach_(y) == y && opd_tensor_is_leaf(y) && !opd_tensor_requires_grad(y));
    CHECK_INT(opd_tensor_version(y), 0);                       /* no write, in no mode */
    OPD_INFERENCE_MODE(true) { CHECK(opd_detach_(y) == y); }
    OPD_NO_GRAD { CHECK(opd_detach_(y) == y); }
    CHECK_INT(opd_tensor_version(y), 0);
    y = non_leaf(x); e = opd_exp(y); z = opd_sum(e);
    CHECK(opd_detach_(e) == e && opd_tensor_is_leaf(e));       /* which its node has saved, and keeps with its history */
    CHECK_INT(opd_autograd_grad(&z, 1, &x, 1, &o, &g), 0);
    CHECK_INT(opd_backward(opd_sum(g)), 0);
    CHECK_GRAD(x, exp(1), exp(2));
    y = non_leaf(x); z = opd_sum(opd_mul(y, y));
    CHECK(opd_detach_(y) == y);
    CHECK_INT(opd_backward(z), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_()");
    REFUSED(opd_detach_(part(non_leaf(x), 0, 1)), "Can't detach views in-place. Use detach() instead.");
}
/* The gradient, at 2, of what() when n took the place of its data behind the forward. */
static double given_other_data(int what) {
    opd_tensor *x = opd_full(OPD_INTS(1), OPD_V(2.), OPD_FLOAT64), *n = opd_full(OPD_INTS(1), OPD_V(10.), OPD_FLOAT64);
    opd_tensor *y, *z;
    opd_tensor_set_requires_grad(x, true);
    y = what == 2 || what == 3 ? opd_exp(x) : what == 1 ? opd_mul(x, opd_ones(OPD_INTS(1), OPD_FLOAT64)) : x;
    z = what == 2 ? y : opd_mul(y, y);
    CHECK_INT(opd_tensor_set_data(y, n), 0);
    CHECK_INT(opd_backward(opd_sum(what == 2 ? y : z)), 0);
    CHECK_INT(opd_tensor_version(y), 0);
    return opd_item_f64(opd_tensor_grad(x));
}
TEST(data_that_is_replaced_between_forward_and_backward) {    /* as in PyTorch: arguments are read from the new data */
    CHECK_NEAR(given_other_data(0), 20, 1e-12);
    CHECK_NEAR(given_other_data(1), 20, 1e-12);
    CHECK_NEAR(given_other_data(2), exp(2), 1e-12);            /* a result that its own node has saved is not */
    CHECK_NEAR(given_other_data(3), 20 * exp(2), 1e-9);
}
TEST(data_counts_its_own_writes) {                /* Tensor.data */
    opd_tensor *root = numbers(OPD_INTS(3), true), *x = non_leaf(root), *y = opd_mul(x, x), *d = opd_tensor_data(x);
    opd_tensor *e = opd_tensor_data(d), *v = part(x, 0, 2);
    CHECK(d && e && opd_data(d) == opd_data(x) && opd_tensor_same_storage(x, d) && opd_tensor_same_storage(v, e));
    CHECK(!opd_tensor_requires_grad(d) && opd_tensor_base(d) == NULL && opd_tensor_version(d) == 0);
    CHECK(times(d, numbers(OPD_INTS(3), false)) == d && plus(e, d) == e);
    CHECK_INT(opd_tensor_version(d), 1);
    CHECK_INT(opd_tensor_version(e), 1);
    CHECK_INT(opd_tensor_version(x), 0);
    CHECK_NEAR(opd_data_f64(x)[2], 18, 0);
    CHECK_INT(opd_backward(opd_sum(y)), 0);       /* no tape knows: the gradient is that of what lies there now */
    CHECK_GRAD(root, 2 * 2, 2 * 8, 2 * 18);
    CHECK(opd_tensor_set_requires_grad(d, true) == d && !opd_tensor_requires_grad(e));
    CHECK(opd_tensor_set_requires_grad(d, false) == d);
    CHECK(plus(part(opd_tensor_data(x), 0, 2), part(x, 1, 3)) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "refer to a single memory location");     /* it is one memory */
    CHECK(opd_tensor_data(NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the tensor is NULL");
    OPD_INFERENCE_MODE(true) { CHECK(opd_tensor_is_inference(opd_tensor_data(ones(OPD_INTS(2), false)))); }
    OPD_INFERENCE_MODE(true) { CHECK(!opd_tensor_is_inference(opd_tensor_data(x))); }
}
TEST(data_outlives_what_it_came_from) {           /* and gives no memory away */
    opd_tensor *d = NULL, *w = ones(OPD_INTS(2), true), *g;
    OPD_SCOPE { opd_assign(&d, opd_tensor_data(numbers(OPD_INTS(2), false))); }
    CHECK_NEAR(opd_data_f64(d)[1], 2, 0);
    g = opd_tensor_data(d);
    CHECK_INT(opd_tensor_set_grad(w, g), 0);
    CHECK_INT(opd_backward(opd_sum(w)), 0);
    opd_assign(&d, NULL);
    CHECK_GRAD(w, 2, 3);
}
TEST(data_is_given) {                             /* x.data = y */
    opd_tensor *w = numbers(OPD_INTS(2), true), *y = opd_ones(OPD_INTS(3, 1), OPD_FLOAT32), *x, *r, *v, *m;
    opd_tensor *g, *out;
    CHECK_INT(opd_backward(opd_sum(w)), 0);
    OPD_NO_GRAD { CHECK(times(w, w) == w); }
    CHECK_INT(opd_tensor_set_data(w, y), 0);
    CHECK(opd_ndim(w) == 2 && opd_size(w, 0) == 3 && opd_dtype(w) == OPD_FLOAT32 && opd_data(w) == opd_data(y));
    CHECK(opd_tensor_requires_grad(w) && opd_tensor_is_leaf(w) && opd_numel(opd_tensor_grad(w)) == 2);
    CHECK_INT(opd_tensor_version(w), 1);          /* its own, as before */
    CHECK_INT(opd_tensor_version(y), 0);
    OPD_NO_GRAD { CHECK(plus(w, w) == w); }
    CHECK_NEAR(opd_data_f32(y)[2], 2, 0);
    CHECK_INT(opd_tensor_set_grad(w, NULL), 0);
    CHECK_INT(opd_backward(opd_sum(opd_mul(w, w))), 0);
    CHECK(opd_size(opd_tensor_grad(w), 0) == 3 && opd_data_f32(opd_tensor_grad(w))[1] == 4);
    CHECK_INT(opd_tensor_set_data(w, numbers(OPD_INTS(2), false)), 0);       /* dims, memory again */
    CHECK_INT(opd_tensor_set_data(w, w), 0);
    CHECK(opd_ndim(w) == 1 && opd_data_f64(w)[1] == 2);
    OPD_NO_GRAD { REFUSED(OPD_CALL(aten("resize_"), w, OPD_INTS(5), OPD_NONE), "cannot resize variables that require grad"); }
    OPD_INFERENCE_MODE(true) { CHECK(OPD_CALL(aten("resize_"), w, OPD_INTS(5), OPD_NONE) == w && opd_data_f64(w)[1] == 2); }

    r = numbers(OPD_INTS(2), true);               /* what its own node has saved stays */
    x = opd_exp(r);
    CHECK_INT(opd_tensor_set_data(x, numbers(OPD_INTS(2), false)), 0);
    CHECK_STR(opd_tensor_grad_fn(x), "ExpBackward0");
    out = opd_sum(opd_mul(x, x));
    CHECK_INT(opd_backward(out), 0);
    CHECK_GRAD(r, 2 * exp(1), 2 * 2 * exp(2));

    x = non_leaf(ones(OPD_INTS(4), true));        /* views and bases part */
    v = part(x, 0, 2);
    CHECK_INT(opd_tensor_set_data(x, numbers(OPD_INTS(4), false)), 0);
    REFUSED(plus(v, v), "a view was modified inplace after its base had been resized");
    x = non_leaf(ones(OPD_INTS(4), true));
    v = part(x, 0, 2);
    CHECK_INT(opd_tensor_set_data(v, numbers(OPD_INTS(2), false)), 0);
    CHECK(opd_tensor_base(v) == NULL && plus(v, ones(OPD_INTS(2), true)) == v);
    CHECK_STR(opd_tensor_grad_fn(x), "MulBackward0");

    m = opd_tensor_new_on(OPD_INTS(2), OPD_FLOAT64, opd_device_make(OPD_META, -1));
    CHECK_INT(opd_tensor_set_data(m, y), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have "
                "incompatible tensor type.");
    CHECK_INT(opd_tensor_set_data(r, opd_ones(OPD_INTS(2), OPD_INT64)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "data set to a tensor that requires gradients must be floating point or complex");
    g = NULL;
    OPD_INFERENCE_MODE(true) { opd_assign(&g, ones(OPD_INTS(2), false)); }
    CHECK_INT(opd_tensor_set_data(r, g), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "either both tensors must be inference tensors, or neither");
    opd_assign(&g, NULL);
    OPD_DUAL_LEVEL {
        x = opd_dual_new(ones(OPD_INTS(2), false), ones(OPD_INTS(2), false));
        CHECK(opd_dual_unpack(opd_tensor_data(x), &g) && g == NULL);
        CHECK_INT(opd_tensor_set_data(x, y), -1);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "forward grad");
    }
    CHECK_INT(opd_tensor_set_data(NULL, y), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the tensor is NULL");
    CHECK_INT(opd_tensor_set_data(r, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the tensor is NULL");
}
//-- writes into other arguments than the first ------------------------------------------------------------------------

/* y *= x */
static int k_mul_into(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y = opd_arg_tensor(call, 1);
    return times(y, x) ? opd_return_tensor(call, y) : -1;
}
static int mul_into_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_bw_grad(bw, 0);
    if (opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, opd_mul(g, opd_bw_tensor(bw, 1)))) { return -1; }
    return opd_bw_needs(bw, 1) ? opd_bw_return(bw, 1, opd_mul(g, opd_bw_tensor(bw, 0))) : 0;
}
/* x, y = x y, x + y */
static int k_mix(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y = opd_arg_tensor(call, 1), *old = opd_clone(x);
    if (!times(x, y) || !plus(y, old)) { return -1; }
    return opd_return_tensor(call, x) || opd_return_tensor(call, y) ? -1 : 0;
}
static int mix_backward(opd_backward_call *bw) {
    opd_tensor *a = opd_bw_grad(bw, 0), *b = opd_bw_grad(bw, 1), *x = opd_bw_tensor(bw, 0), *y = opd_bw_tensor(bw, 1);
    opd_tensor *gx = a ? opd_mul(a, y) : NULL, *gy = a ? opd_mul(a, x) : NULL;
    if (b) { gx = gx ? opd_add(gx, b) : b; gy = gy ? opd_add(gy, b) : b; }
    return opd_bw_return(bw, 0, gx) || opd_bw_return(bw, 1, gy) ? -1 : 0;
}
/* y = exp(x), by what was written */
static int k_exp_into(opd_call *call) {
    opd_tensor *y = opd_arg_tensor(call, 1);
    return write_into(y, "copy_", opd_exp(opd_arg_tensor(call, 0))) ? opd_return_tensor(call, y) : -1;
}
static int exp_into_backward(opd_backward_call *bw) {
    if (opd_bw_needs(bw, 1) && opd_bw_return(bw, 1, opd_zeros_like(opd_bw_grad(bw, 0)))) { return -1; }
    return opd_bw_needs(bw, 0) ? opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_bw_result(bw, 0))) : 0;
}
/* a buffer beside the result */
static int k_counted(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *buffer = opd_arg_tensor(call, 1);
    return plus(buffer, x) ? opd_return_tensor(call, opd_mul(x, x)) : -1;
}
static int counted_backward(opd_backward_call *bw) {
    opd_tensor *x = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_add(x, x)));
}
static int k_silent(opd_call *call) { return times(opd_arg_tensor(call, 1), opd_arg_tensor(call, 0)) ? 0 : -1; }
static void define(opd_library *lib, const char *schema, opd_kernel cpu, opd_backward_fn backward, const char *save) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = schema;
    d.cpu = cpu;
    d.backward = backward;
    d.save = save;
    CHECK_INT(opd_define(lib, &d), 0);
}
static opd_library *writers(void) {
    opd_library *lib = opd_library_open(OPD_DEF, "writes", NULL, "t", 1);
    define(lib, "mul_into(Tensor x, Tensor(a!) y) -> Tensor(a!)", k_mul_into, mul_into_backward, "x(y), y(x)");
    define(lib, "mix(Tensor(a!) x, Tensor(b!) y) -> (Tensor(a!), Tensor(b!))", k_mix, mix_backward, "x, y");
    define(lib, "exp_into(Tensor x, Tensor(a!) y) -> Tensor(a!)", k_exp_into, exp_into_backward, "result");
    define(lib, "counted(Tensor x, Tensor(a!) buffer) -> Tensor", k_counted, counted_backward, "x");
    define(lib, "silent(Tensor x, Tensor(a!) y) -> ()", k_silent, mul_into_backward, "x, y");
    define(lib, "keyword(Tensor x, *, Tensor(a!) out) -> Tensor(a!)", k_mul_into, mul_into_backward, "x");
    return lib;
}
TEST(writes_into_a_later_argument) {
    opd_library *lib = writers();
    opd_op *op = opd_find("writes::mul_into");
    opd_tensor *a = numbers(OPD_INTS(3), true), *b = numbers(OPD_INTS(3), true), *x = opd_mul(a, a), *y = non_leaf(b);
    opd_tensor *g[2], *in[2], *s, *v, *w;
    opd_backward_options o;
    CHECK(OPD_CALL(op, x, y) == y);               /* a^2 b */
    CHECK_INT(opd_tensor_version(y), 1);
    s = opd_sum(opd_mul(y, y));
    memset(&o, 0, sizeof o);
    o.create_graph = true;
    in[0] = a;
    in[1] = b;
    CHECK_INT(opd_autograd_grad(&s, 1, in, 2, &o, g), 0);
    CHECK_NEAR(opd_data_f64(g[0])[2], 4 * 27 * 9, 1e-9);     /* d a^4 b^2 */
    CHECK_NEAR(opd_data_f64(g[1])[2], 2 * 81 * 3, 1e-9);
    s = opd_sum(g[0]);
    CHECK_INT(opd_autograd_grad(&s, 1, in, 2, NULL, g), 0);
    CHECK_NEAR(opd_data_f64(g[0])[2], 12 * 9 * 9, 1e-9);
    CHECK_NEAR(opd_data_f64(g[1])[2], 8 * 27 * 3, 1e-9);

    y = numbers(OPD_INTS(3), false);              /* one that requires no grad comes to */
    CHECK(OPD_CALL(op, a, y) == y && opd_tensor_requires_grad(y));
    CHECK_STR(opd_tensor_grad_fn(y), "MulIntoBackward0");
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_GRAD(a, 1, 2, 3);
    x = numbers(OPD_INTS(3), false);
    CHECK(OPD_CALL(op, numbers(OPD_INTS(3), false), x) == x && opd_tensor_is_leaf(x) && !opd_tensor_requires_grad(x));
    CHECK_INT(opd_tensor_set_grad(a, NULL), 0);

    y = non_leaf(b);                              /* a view: its base follows */
    v = part(y, 1, 3);
    w = part(y, 0, 2);
    CHECK(OPD_CALL(op, part(a, 0, 2), v) == v);
    CHECK_STR(opd_tensor_grad_fn(y), "CopySlices");
    CHECK_INT(opd_backward(opd_sum(opd_mul(w, w))), 0);      /* b0^2 + (a0 b1)^2 */
    CHECK_GRAD(a, 2 * 4, 0, 0);
    CHECK_GRAD(b, 2, 4, 0);
    y = opd_zeros(OPD_INTS(3), OPD_FLOAT64);
    CHECK(OPD_CALL(op, part(a, 0, 2), part(y, 1, 3)) && opd_tensor_requires_grad(y));
    opd_library_close(lib);
}
TEST(writes_into_several_arguments) {
    opd_library *lib = writers();
    opd_op *op = opd_find("writes::mix");
    opd_tensor *a = numbers(OPD_INTS(3), true), *b = opd_mul(numbers(OPD_INTS(3), false), numbers(OPD_INTS(3), false)), *x, *y;
    CHECK(opd_tensor_set_requires_grad(b, true) != NULL);
    x = non_leaf(a);
    y = non_leaf(b);
    CHECK(OPD_CALL(op, x, y) == x);
    CHECK_INT(opd_tensor_version(x), 1);
    CHECK_INT(opd_tensor_version(y), 1);
    CHECK(opd_tensor_node(x) == opd_tensor_node(y));
    CHECK_INT(opd_backward(opd_sum(opd_mul(x, y))), 0);      /* a b (a + b) */
    CHECK_GRAD(a, 2 + 1, 2 * 2 * 4 + 16, 2 * 3 * 9 + 81);
    CHECK_GRAD(b, 1 + 2, 4 + 2 * 2 * 4, 9 + 2 * 3 * 9);
    x = non_leaf(a);
    CHECK(OPD_CALL(op, x, opd_zeros(OPD_INTS(3), OPD_FLOAT64)) == x);
    REFUSED(OPD_CALL(op, a, y), LEAF);
    REFUSED(OPD_CALL(op, y, a), LEAF);
    REFUSED(OPD_CALL(op, part(y, 0, 2), part(x, 0, 2)), "Functions which modify views in-place must return a single tensor");
    opd_library_close(lib);
}
TEST(writes_that_keep_their_result) {             /* and no cycle */
    opd_library *lib = writers();
    opd_op *op = opd_find("writes::exp_into");
    opd_tensor *a = numbers(OPD_INTS(3), true), *y = opd_zeros(OPD_INTS(3), OPD_FLOAT64), *g, *s, *base;
    opd_backward_options o;
    memset(&o, 0, sizeof o);
    o.create_graph = true;
    CHECK(OPD_CALL(op, a, y) == y);
    s = opd_sum(y);
    CHECK_INT(opd_autograd_grad(&s, 1, &a, 1, &o, &g), 0);
    CHECK_NEAR(opd_data_f64(g)[1], exp(2), 1e-12);
    CHECK_INT(opd_backward(opd_sum(g)), 0);
    CHECK_GRAD(a, exp(1), exp(2), exp(3));
    CHECK_INT(opd_tensor_set_grad(a, NULL), 0);
    base = non_leaf(ones(OPD_INTS(4), true));
    y = part(base, 1, 4);
    CHECK(OPD_CALL(op, a, y) == y);
    s = opd_sum(base);
    CHECK_INT(opd_autograd_grad(&s, 1, &a, 1, &o, &g), 0);
    CHECK_NEAR(opd_data_f64(g)[1], exp(2), 1e-12);
    CHECK_INT(opd_backward(opd_sum(g)), 0);
    CHECK_GRAD(a, exp(1), exp(2), exp(3));
    y = opd_zeros(OPD_INTS(3), OPD_FLOAT64);      /* written again: the saved value is void */
    CHECK(OPD_CALL(op, a, y) == y);
    s = opd_sum(y);
    CHECK(plus(y, y) == y);
    CHECK_INT(opd_backward(s), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, SAVED_CHANGED);
    opd_library_close(lib);
}
TEST(writes_that_are_not_returned) {
    opd_library *lib = writers();
    opd_op *op = opd_find("writes::counted");
    opd_tensor *a = numbers(OPD_INTS(3), true), *buffer = opd_zeros(OPD_INTS(3), OPD_FLOAT64), *y = OPD_CALL(op, a, buffer);
    CHECK(!opd_tensor_requires_grad(buffer) && opd_data_f64(buffer)[2] == 3);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_GRAD(a, 2, 4, 6);
    REFUSED(OPD_CALL(op, a, non_leaf(a)), "writes::counted writes its argument 'buffer', which requires grad; autograd can only record "
            "writes into the first argument and into arguments that are returned");
    CHECK(OPD_CALL(opd_find("writes::silent"), a, buffer) == NULL);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "writes::silent writes its argument 'y' and does not return it");
    CHECK_NEAR(opd_data_f64(buffer)[2], 3, 0);
    OPD_NO_GRAD { (void)OPD_CALL(opd_find("writes::silent"), a, buffer); }
    CHECK(opd_ok() && opd_data_f64(buffer)[2] == 9);
    REFUSED(OPD_CALL(opd_find("writes::keyword"), a, buffer), "keyword(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad.");
    OPD_DUAL_LEVEL {
        REFUSED(OPD_CALL(op, opd_dual_new(a, a), buffer), "Trying to use forward AD with");
    }
    opd_library_close(lib);
}
TEST_KEEPS(writes_when_memory_runs_out) {
    opd_library *lib = writers();
    opd_op *ops[3];
    int64_t n;
    int k;
    ops[0] = opd_find("writes::mul_into");
    ops[1] = opd_find("writes::mix");
    ops[2] = opd_find("writes::exp_into");
    for (k = 0; k < 3; k++) {
        for (n = 1; n < 300; n++) {
            OPD_SCOPE {
                opd_tensor *a = non_leaf(numbers(OPD_INTS(3), true)), *y = non_leaf(a);
                if (n % 2 && k != 1) { y = part(y, 0, 3); }
                (void)opd_memory_fail_at(n, false);
                (void)OPD_CALL(ops[k], a, y);
                (void)opd_backward(opd_sum(y));
                (void)opd_memory_fail_at(0, false);
            }
            if (opd_ok() && n % 2) { break; }
            if (!opd_ok()) { CHECK_ERROR(OPD_ERROR_MEMORY, ""); }
        }
        CHECK(n > 5 && n < 300);
    }
    opd_library_close(lib);
}

TEST(states_that_lead_to_themselves_are_freed) {  /* what a write voids holds nothing: the runner counts the memory */
    opd_tensor *w = ones(OPD_INTS(2), true), *h = opd_zeros(OPD_INTS(2), OPD_FLOAT64), *b = opd_zeros(OPD_INTS(3, 2), OPD_FLOAT64);
    int i;
    for (i = 0; i < 3; i++) { CHECK(opd_copy_(h, opd_tanh(opd_mul(h, w))) == h); }
    for (i = 0; i < 2; i++) {
        CHECK(opd_copy_(opd_select(b, 0, i + 1), opd_tanh(opd_mul(opd_select(b, 0, i), w))) != NULL);
    }
    CHECK(times(opd_select(b, 0, 0), opd_select(b, 0, 1)) != NULL);
    CHECK_INT(opd_backward(opd_sum(h)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, SAVED_CHANGED);
    for (i = 0; i < 2; i++) {                     /* a leaf that becomes what was made of it; the second time packed */
        opd_tensor *x = ones(OPD_INTS(2), true), *y;
        if (i) { CHECK_INT(opd_allow_mutation_begin(), 0); }
        y = opd_exp(opd_sin(x));
        CHECK(opd_tensor_set_requires_grad(x, false) == x && plus(x, y) == x);
        CHECK_STR(opd_tensor_grad_fn(x), "AddBackward0");
        if (i) {
            CHECK_INT(opd_backward(opd_sum(x)), 0);
            CHECK(opd_tensor_grad(x) == NULL);
            opd_allow_mutation_end();
        }
    }
}
static opd_tensor *inference_tensor(void);
TEST(lists_of_what_is_written_and_read) {
    opd_tensor *x = numbers(OPD_INTS(2), true), *y = non_leaf(x), *l[2], *v;
    v = part(y, 0, 1);
    l[0] = v; l[1] = part(y, 1, 2);
    CHECK(times(v, ones(OPD_INTS(1), false)) == v);
    v = opd_cat(opd_tensors_of(l, 2), 0);
    CHECK(plus(y, y) == y);                       /* of what is joined only the sizes are read later */
    CHECK_INT(opd_backward(opd_sum(opd_mul(v, numbers(OPD_INTS(2), false)))), 0);
    CHECK_GRAD(x, 1, 2);
    l[0] = inference_tensor();
    l[1] = ones(OPD_INTS(1, 2, 3), true);
    CHECK_INT(opd_backward(opd_sum(opd_cat(opd_tensors_of(l, 2), 0))), 0);
    CHECK(opd_copy_(y, part(opd_tanh(opd_cat(opd_tensors_of(&y, 1), 0)), 0, 2)) == y);
}

//-- a custom operator that returns a view -----------------------------------------------------------------------------

static int k_second_half(opd_call *call) {
    opd_tensor *t = opd_arg_tensor(call, 0);
    const int64_t n = opd_numel(t) / 2, one = 1;
    return opd_return_tensor(call, opd_tensor_view(t, &n, &one, 1, opd_tensor_offset(t) + n));
}
static int k_fill_two(opd_call *call) { return opd_return_tensor(call, opd_fill_(opd_arg_tensor(call, 0), OPD_V(2.0))); }
static int no_gradient(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_zeros_like(opd_bw_grad(bw, 0))); }
static int second_half_backward(opd_backward_call *bw) {
    opd_tensor *g = opd_bw_grad(bw, 0), *l[2];
    l[0] = opd_zeros_like(g);
    l[1] = g;
    return opd_bw_return(bw, 0, opd_cat(opd_tensors_of(l, 2), 0));
}
TEST(views_of_other_operators) {
    opd_library *lib = opd_library_open(OPD_DEF, "vw", NULL, "t", 1), *keys;
    opd_tensor *x = numbers(OPD_INTS(4), true), *y = non_leaf(x), *v;
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "half(Tensor(a) self) -> Tensor(a)";
    d.any = k_second_half;
    d.backward = second_half_backward;
    CHECK_INT(opd_define(lib, &d), 0);
    d.schema = "two_(Tensor(a!) self) -> Tensor(a!)";
    d.any = k_fill_two;
    d.backward = no_gradient;
    CHECK_INT(opd_define(lib, &d), 0);
    v = OPD_CALL(opd_find("vw::half"), y);
    CHECK(opd_tensor_base(v) == y);
    CHECK_STR(opd_tensor_grad_fn(v), "HalfBackward0");
    CHECK(OPD_CALL(opd_find("vw::two_"), part(v, 0, 1)) != NULL);
    CHECK_INT(opd_backward(opd_sum(opd_add(opd_sum(y), v))), 0);
    CHECK_GRAD(x, 2, 2, 0, 2 + 1);
    CHECK_INT(opd_tensor_version(y), 1);
    CHECK_INT(opd_def(lib, "bare(Tensor(a) self) -> Tensor(a)"), 0);      /* no formula */
    CHECK_INT(opd_def(lib, "bare_(Tensor(a!) self) -> Tensor(a!)"), 0);
    keys = opd_library_open(OPD_IMPL, "vw", "CPU", "t", 2);
    CHECK_INT(opd_impl(keys, "bare", k_second_half), 0);
    CHECK_INT(opd_impl(keys, "bare_", k_fill_two), 0);
    CHECK_INT(opd_impl_key(lib, "bare", "Autograd", opd_autograd_not_implemented, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(lib, "bare", "ADInplaceOrView", opd_inplace_or_view_not_implemented, NULL, NULL), 0);
    CHECK_INT(opd_impl_key(lib, "bare_", "ADInplaceOrView", opd_inplace_or_view_not_implemented, NULL, NULL), 0);
    y = numbers(OPD_INTS(4), false);
    CHECK(OPD_CALL(opd_find("vw::bare_"), y) == y);
    CHECK_INT(opd_tensor_version(y), 1);
    y = non_leaf(x);
    v = OPD_CALL(opd_find("vw::bare"), y);
    CHECK(opd_tensor_base(v) == y && opd_tensor_requires_grad(v));
    REFUSED(plus(v, v), "does not have a derivative implemented is forbidden");
    opd_library_close(keys);
    opd_library_close(lib);
}

//-- inference mode: the cases of PyTorch's inference_mode.cpp ---------------------------------------------------------

#define UPDATE_OUTSIDE "Inplace update to inference tensor outside InferenceMode is not allowed."
#define CANNOT_SAVE "Inference tensors cannot be saved for backward."
#define MADE_INSIDE "A view was created in inference mode and is being modified inplace in normal mode."

static opd_tensor *inference_tensor(void) {
    opd_tensor *t = NULL;
    OPD_INFERENCE_MODE(true) { t = ones(OPD_INTS(1, 2, 3), false); }
    return t;
}
static opd_tensor *flat(opd_tensor *t) { return opd_view(t, OPD_INTS(6)); }

TEST(inference_state_and_nesting) {
    opd_tensor *t, *c;
    CHECK(!opd_inference_mode_enabled() && opd_grad_mode_enabled());
    OPD_INFERENCE_MODE(true) {
        CHECK(opd_inference_mode_enabled() && !opd_grad_mode_enabled());
        t = ones(OPD_INTS(2), true);
        CHECK(opd_tensor_is_inference(t) && opd_tensor_requires_grad(t) && opd_tensor_is_leaf(t));
        CHECK(!opd_tensor_requires_grad(opd_mul(t, t)) && opd_tensor_is_inference(opd_mul(t, t)));
        OPD_INFERENCE_MODE(false) {
            CHECK(!opd_inference_mode_enabled() && opd_grad_mode_enabled());
            c = ones(OPD_INTS(2), true);
            CHECK(!opd_tensor_is_inference(c) && opd_tensor_requires_grad(opd_mul(c, c)));
            OPD_INFERENCE_MODE(true) { CHECK(opd_tensor_is_inference(opd_mul(c, c))); }
        }
        CHECK(opd_inference_mode_enabled() && !opd_grad_mode_enabled());
        OPD_ENABLE_GRAD { CHECK(!opd_tensor_requires_grad(opd_mul(t, t))); }
    }
    CHECK(!opd_inference_mode_enabled() && opd_grad_mode_enabled());
    OPD_NO_GRAD {
        OPD_INFERENCE_MODE(true) { CHECK(opd_inference_mode_enabled()); }
        CHECK(!opd_grad_mode_enabled());
    }
    CHECK(!opd_keyset_has(opd_tensor_keys(t), opd_key_parse("AutogradCPU")) && !opd_keyset_has(opd_tensor_keys(t), opd_key_parse("ADInplaceOrView")));
}
TEST(inference_tensors_inside) {
    opd_tensor *t, *s = ones(OPD_INTS(1, 2, 3), true), *n = non_leaf(s), *v, *o;
    OPD_INFERENCE_MODE(true) {
        t = ones(OPD_INTS(1, 2, 3), false);
        CHECK(opd_tensor_is_inference(opd_add(t, t)) && opd_tensor_is_inference(opd_add(t, s)));
        CHECK(plus(t, t) == t && opd_tensor_is_inference(flat(t)) && plus(flat(t), ones(OPD_INTS(1), false)) != NULL);
        CHECK(opd_tensor_base(flat(t)) == NULL);
        o = opd_mul(s, s);
        CHECK(opd_tensor_is_inference(o) && !opd_tensor_requires_grad(o) && opd_tensor_is_leaf(o));
        CHECK_INT(opd_tensor_version(n), 0);
        CHECK(plus(n, n) == n);                   /* a normal tensor stays one and counts */
        CHECK_INT(opd_tensor_version(n), 1);
        v = flat(n);
        CHECK(!opd_tensor_is_inference(v) && opd_tensor_base(v) == n);
        CHECK(plus(v, v) == v);
        CHECK_INT(opd_tensor_version(n), 2);
        CHECK(plus(s, s) == s);                   /* a leaf, too */
    }
    CHECK_STR(opd_tensor_grad_fn(n), "MulBackward0");
    CHECK_INT(opd_tensor_version(s), 1);
    REFUSED(plus(v, ones(OPD_INTS(6), false)), "A view was created in inference mode and is being modified inplace in normal mode. Given that this use "
            "case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the inplace either both inside "
            "the inference_mode block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be tracked).");
    OPD_NO_GRAD { o = flat(v); }
    REFUSED(plus(o, ones(OPD_INTS(6), false)), MADE_INSIDE);
    OPD_INFERENCE_MODE(true) { v = flat(opd_split(n, 1, 0).data[0]); }
    REFUSED(plus(v, ones(OPD_INTS(6), false)), MADE_INSIDE);
    OPD_INFERENCE_MODE(true) { CHECK(plus(v, v) == v); }       /* both inside is right */
}
TEST(inference_tensors_outside) {
    opd_tensor *t = inference_tensor(), *s = ones(OPD_INTS(1, 2, 3), true), *o, *v;
    CHECK(opd_tensor_is_inference(t));
    CHECK(!opd_tensor_is_inference(opd_add(t, t)) && !opd_tensor_is_inference(opd_clone(t)));
    o = opd_add(s, t);                            /* saves nothing */
    CHECK_INT(opd_backward(opd_sum(o)), 0);
    CHECK_NEAR(opd_item_f64(opd_sum(opd_tensor_grad(s))), 6, 0);
    REFUSED(opd_mul(s, t), CANNOT_SAVE);
    OPD_NO_GRAD { CHECK(opd_mul(s, t) != NULL); }
    v = flat(t);
    CHECK(opd_tensor_is_inference(v) && opd_tensor_is_inference(opd_detach(t)) && !opd_tensor_is_inference(opd_reshape(opd_transpose(t, 1, 2), OPD_INTS(6))));
    REFUSED(plus(t, t), UPDATE_OUTSIDE);
    CHECK_NEAR(opd_item_f64(opd_sum(t)), 6, 0);   /* not written */
    REFUSED(plus(v, v), UPDATE_OUTSIDE);
    REFUSED(opd_copy_(t, s), UPDATE_OUTSIDE);
    OPD_NO_GRAD { REFUSED(opd_copy_(t, s), UPDATE_OUTSIDE); }
    REFUSED(add_out(o, o, t), "functions with out=");
    OPD_NO_GRAD { REFUSED(add_out(o, o, t), UPDATE_OUTSIDE); }
    REFUSED(opd_tensor_set_requires_grad(t, true), "an inference tensor cannot require grad outside of inference mode");
    CHECK(opd_tensor_set_requires_grad(t, false) == t);
    CHECK_INT(opd_tensor_version(t), 0);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Inference tensors do not track version counter.");
    o = opd_clone(t);
    CHECK(opd_tensor_set_requires_grad(o, true) == o);
}
TEST(inference_mixed) {
    opd_tensor *t = inference_tensor(), *s = ones(OPD_INTS(1, 2, 3), true), *n, *o, *z;
    n = non_leaf(s);
    CHECK(plus(n, t) == n);                       /* a copy from inference to normal is an ordinary one */
    CHECK(opd_copy_(n, t) == n && !opd_tensor_is_inference(n));
    REFUSED(times(non_leaf(s), t), CANNOT_SAVE);
    n = non_leaf(s);
    o = opd_mul(n, n);                            /* saves n; a write inside is noticed */
    OPD_INFERENCE_MODE(true) { CHECK(plus(n, t) == n); }
    CHECK_INT(opd_backward(opd_sum(o)), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, SAVED_CHANGED);
    n = non_leaf(s);
    OPD_INFERENCE_MODE(true) {                    /* normal mode inside: views are views as usual */
        OPD_INFERENCE_MODE(false) {
            z = flat(n);
            CHECK(plus(z, z) == z);
            CHECK_STR(opd_tensor_grad_fn(n), "CopySlices");
        }
    }
}
static int k_makes(opd_call *call) {
    (void)opd_inference_mode_set(false);               /* ends with the kernel */
    return opd_return_tensor(call, opd_add(opd_arg_tensor(call, 0), opd_arg_tensor(call, 0)));
}
TEST(inference_ends_with_the_kernel) {
    opd_library *lib = opd_library_open(OPD_DEF, "inf", NULL, "t", 1);
    opd_tensor *t = ones(OPD_INTS(2), false);
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "f(Tensor x) -> Tensor";
    d.cpu = k_makes;
    d.backward = OPD_NOT_DIFFERENTIABLE;
    CHECK_INT(opd_define(lib, &d), 0);
    OPD_INFERENCE_MODE(true) {
        CHECK(!opd_tensor_is_inference(OPD_CALL(opd_find("inf::f"), t)));
        CHECK(opd_inference_mode_enabled());
    }
    opd_library_close(lib);
}

//-- out of memory -----------------------------------------------------------------------------------------------------

static double run_without_memory(opd_tensor *root) {
    opd_tensor *x = non_leaf(root), *v = part(x, 0, 2), *g = NULL, *s;
    opd_backward_options o;
    memset(&o, 0, sizeof o);
    o.create_graph = true;
    OPD_CALL(aten("exp_"), v);
    times(part(x, 1, 3), opd_view(opd_mul(v, v), OPD_INTS(2)));
    OPD_CALL(aten("t_"), opd_view(x, OPD_INTS(2, 2)));
    s = opd_sum(opd_mul(x, v ? opd_select(v, 0, 0) : NULL));
    if (!opd_ok() || opd_autograd_grad(&s, 1, &root, 1, &o, &g)) { return 0; }
    return opd_item_f64(opd_sum(opd_mul(g, g)));
}
TEST_KEEPS(every_allocation_fails_once) {
    opd_tensor *root = numbers(OPD_INTS(4), true);
    double want = 0, have = 0;
    int64_t n;
    OPD_SCOPE { want = run_without_memory(root); }
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, SAVED_CHANGED);            /* as in PyTorch: v was read, then x written */
    for (n = 1; n < 2000; n++) {
        OPD_SCOPE {
            (void)opd_memory_fail_at(n, false);
            have = run_without_memory(root);
            (void)opd_memory_fail_at(0, false);
        }
        if (opd_error_code() != OPD_ERROR_MEMORY) { break; }
        opd_error_clear();
    }
    CHECK(n > 40 && n < 2000 && have == want);
    opd_error_clear();
}

CHECK_MAIN()
