/* Views and writes in place under autograd: random programs whose answers PyTorch gave (golden/views.txt), and the cases
   one by one. */
#include "check.h"

//-- random programs ----------------------------------------------------------------------------------------------------

#define MAX_TENSORS 64
typedef struct program { opd_tensor *t[MAX_TENSORS]; int n, leaves[MAX_TENSORS], nleaves, at; } program;

static opd_op *aten(const char *name) {
    char full[80];
    snprintf(full, sizeof full, "aten::%s", name);
    return opd_find(full);
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
        const opd_tensors l = op[0] == 's' ? opd_split_full(x, s[0], s[1]) : opd_unbind_full(x, s[0]);
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
    if (!op[0] && n == 1) { (void)opd_grad_set(v[0] != 0); return true; }
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
        "a view of a leaf Variable that requires grad", "a leaf Variable that requires grad", "Can't detach views in-place",
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
            (void)opd_grad_set(true);
        }
        if (!over) { break; }
    }
    fclose(f);
    CHECK_INT(differences, 0);
    CHECK(programs >= 500);
    CHECK(second > 100);
}

CHECK_MAIN()
