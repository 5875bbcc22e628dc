/* All compositions of transforms over conditions and loops whose functions have views and write into them: the same
   functions in plain C code, run as usual, traced and compiled, have equal results. */
#include "../../opdispatch.h"
#include "../control_bodies.h"

//-- functions with views and writes -----------------------------------------------------------------------------------

enum { WRITES_ROW, WRITES_STRIDED, READS_STRIDED, COPIES, RETURNS_VIEW, WRITES_TURNED, FILLS, WRITES_TWICE, READS_OPERAND, SWAPS, NBODIES };
static opd_tensor *strided(opd_tensor *t, int64_t size, int64_t stride, int64_t offset) {
    return opd_as_strided_full(t, OPD_INTS(size), OPD_INTS(stride), offset < 0 ? OPD_NONE : OPD_V(offset));
}
/* Computes a new h of size 3 from h and x, of size 3. */
static opd_tensor *cell(int body, opd_tensor *h, opd_tensor *x) {
    opd_tensor *t = NULL;
    switch (body) {
    case WRITES_ROW:
        t = opd_clone(h);
        (void)opd_mul_(opd_select(t, 0, 1), opd_select(x, 0, 2));
        return opd_tanh(t);
    case WRITES_STRIDED:
        t = opd_mul(h, x);
        (void)opd_mul_(strided(t, 2, 2, 0), opd_narrow(x, 0, 0, 2));
        return t;
    case READS_STRIDED:
        t = opd_add(opd_sin(h), x);
        return opd_mul(t, strided(t, 3, 0, 1));
    case COPIES:
        t = opd_zeros_like(h);
        (void)opd_copy_(opd_narrow(t, 0, 1, 2), opd_narrow(opd_mul(h, x), 0, 0, 2));
        return opd_add(t, opd_sin(h));
    case RETURNS_VIEW: return opd_narrow(opd_tanh(opd_cat(OPD_TENSORS(h, x), 0)), 0, 2, 3);
    case WRITES_TURNED:
        t = opd_mul(opd_unsqueeze(h, 1), opd_unsqueeze(x, 0));
        (void)opd_add_(opd_select(opd_transpose(t, 0, 1), 0, 0), opd_mul(h, h));
        return opd_sum_dim(t, OPD_INTS(1), false);
    case FILLS:
        t = opd_mul(opd_sin(h), x);
        (void)opd_masked_fill_Scalar_(opd_narrow(t, 0, 0, 2), opd_gt_Scalar(opd_narrow(x, 0, 0, 2), OPD_V(0.2)), OPD_V(0.3));
        return t;
    case WRITES_TWICE:
        t = opd_mul(h, x);
        (void)opd_add_(opd_narrow(t, 0, 0, 2), opd_narrow(x, 0, 0, 2));
        (void)opd_mul_(opd_narrow(t, 0, 1, 2), opd_narrow(h, 0, 1, 2));
        return t;
    case READS_OPERAND: return opd_add(opd_mul(h, h), opd_sum(strided(x, 2, 1, -1)));
    default:
        t = opd_clone(x);
        (void)opd_copy_(t, opd_sin(h));
        (void)opd_mul_(t, x);
        return opd_reshape(opd_view(t, OPD_INTS(3, 1)), OPD_INTS(3));
    }
}

//-- conditions and loops over them, and the same in C -----------------------------------------------------------------

enum { COND, WHILE, SCAN, MAP, NOPERATORS };
typedef struct walk {
    int op, body;
    bool plain;                                   /* plain C code instead of the operator */
    const char *word;                             /* the transforms, the outermost first; the struct that follows has the
                                                     rest of the word */
} walk;
#define WALK() const walk *const w = (const walk *)user; (void)n
static opd_tensor *halves(const walk *w, opd_tensor *h, opd_tensor *x) {
    opd_tensor *const t = opd_mul_Scalar(cell(w->body, h, x), OPD_V(0.5));
    (void)opd_neg_(opd_select(t, 0, 0));
    return t;
}
BODY(then_cell) { WALK(); out[0] = cell(w->body, in[0], in[1]); DONE(1); }
BODY(else_cell) { WALK(); out[0] = halves(w, in[0], in[1]); DONE(1); }
BODY(map_cell) { WALK(); out[0] = cell(w->body, in[0], in[0]); DONE(1); }
BODY(scan_cell) { WALK(); out[0] = cell(w->body, in[0], in[1]); out[1] = opd_mul(out[0], in[1]); DONE(2); }
BODY(below_three) { UNUSED(); out[0] = opd_lt_Scalar(in[0], OPD_V(3)); DONE(1); }
BODY(while_cell) {
    WALK();
    out[0] = opd_add_Scalar(in[0], OPD_V(1));
    out[1] = cell(w->body, in[1], in[2]);
    DONE(2);
}
/* Takes x, of sizes [4, 3]. */
BODY(base) {
    WALK();
    opd_tensor *got[2], *rows[4], *x = in[0], *h = opd_sin(opd_select(x, 0, 1)), *row = opd_select(x, 0, 2);
    opd_tensor *const operands[] = {h, row}, *const first[] = {opd_zeros(opd_ints_of(NULL, 0), OPD_FLOAT64), h};
    opd_tensor *const pred = opd_gt_Scalar(opd_sum(x), OPD_V(0));
    switch (w->plain ? NOPERATORS : w->op) {
    case COND: return opd_cond(pred, then_cell, else_cell, user, operands, 2, out, 1);
    case WHILE:
        if (opd_while(below_three, while_cell, user, first, 2, &row, 1, got, 2) != 2) { return -1; }
        out[0] = got[1];
        return 1;
    case SCAN:
        if (opd_scan(scan_cell, user, &h, 1, &x, 1, NONE, NULL, got, 2) != 2) { return -1; }
        out[0] = opd_add(got[0], got[1]);
        DONE(1);
    case MAP: return opd_map(map_cell, user, &x, 1, NONE, out, 1);
    default: break;
    }
    if (w->op == COND) { out[0] = opd_where_self(pred, cell(w->body, h, row), halves(w, h, row)); }
    for (int k = 0; k < 3 && w->op == WHILE; k++) { out[0] = h = cell(w->body, h, row); }
    for (int k = 0; k < 4 && w->op >= SCAN; k++) {
        row = opd_select(x, 0, k);
        rows[k] = w->op == MAP ? cell(w->body, row, row) : opd_mul(h = cell(w->body, h, row), row);
    }
    if (w->op >= SCAN) { out[0] = opd_stack(opd_tensors_of(rows, 4), 0); }
    if (w->op == SCAN) { out[0] = opd_add(h, out[0]); }
    DONE(1);
}

//-- transforms --------------------------------------------------------------------------------------------------------

BODY(walked);
BODY(summed) {
    if (walked(user, in, n, out) != 1) { return -1; }
    out[0] = opd_sum(opd_sin(out[0]));
    DONE(1);
}
/* Applies the transforms of the word: V vmap, G gradient of a sum, J tangent, C checkpoint. */
BODY(walked) {
    WALK();
    void *const inner = (void *)(uintptr_t)(w + 1);
    opd_tensor *tangent = NULL, *value[1];
    switch (*w->word) {
    case 0: return base(user, in, n, out);
    case 'V': return opd_vmap(walked, inner, in, 1, NULL, out, 1);
    case 'G': return opd_grad(summed, inner, in, 1, NULL, out, 1);
    case 'J':
        tangent = opd_cos(in[0]);
        return opd_jvp(walked, inner, in, &tangent, 1, NULL, value, out, 1);
    default: return opd_checkpoint_call(walked, inner, NULL, in, 1, NULL, out, 1);
    }
}
static opd_tensor *input(const char *word, double by) {
    const double values[] = {0.3, -0.7, 1.1, 0.9, 0.4, -0.2, 0.6, 1.3, -0.5, 0.8, -1.2, 0.7};
    int64_t sizes[8], count = 12, ndim = 0;
    for (const char *at = word; *at; at++) { if (*at == 'V') { sizes[ndim++] = 2; count *= 2; } }
    sizes[ndim++] = 4;
    sizes[ndim++] = 3;
    opd_tensor *const x = opd_empty(opd_ints_of(sizes, ndim), OPD_FLOAT64);
    for (int64_t i = 0; x && i < count; i++) { opd_data_f64(x)[i] = values[(i * 7 + i / 12) % 12] * (i % 24 < 12 ? by : -by); }
    return x;
}
static int failures;
static void report(const walk *w, const char *form) {
    static const char *const ops[] = {"cond", "while", "scan", "map"};
    CHECK(false);
    if (failures++ < 20) { fprintf(stderr, "%s, %s, body %d, '%s': %s\n", form, ops[w->op], w->body, w->word, opd_error_message()); }
    opd_error_clear();
}
static void fills(walk *w, int op, int body, bool plain, const char *word) {
    for (int i = 0; i < 4; i++) {
        w[i].op = op;
        w[i].body = body;
        w[i].plain = plain;
        w[i].word = word;
        word += *word != 0;
    }
}
static void compares(int op, int body, const char *word) {
    OPD_SCOPED;
    walk w[4], plain[4];
    fills(w, op, body, false, word);
    fills(plain, op, body, true, word);
    opd_tensor *x = input(word, 1), *y = input(word, -0.8), *want[2] = {NULL, NULL}, *got[1];
    bool right = walked(plain, &x, 1, &want[0]) == 1 && walked(plain, &y, 1, &want[1]) == 1;
    if (!right) { report(plain, "plain"); return; }
    right = walked(w, &x, 1, got) == 1 && opd_allclose(got[0], want[0]);
    if (!right) { report(w, "eager"); }
    right = walked(w, &y, 1, got) == 1 && opd_allclose(got[0], want[1]);
    if (!right) { report(w, "eager, other input"); }
    opd_graph *const graph = opd_graph_trace(walked, w, &x, 1, NULL);
    right = graph && opd_graph_run(graph, &x, 1, got, 1) == 1 && opd_allclose(got[0], want[0]);
    if (!right) { report(w, "trace"); }
    if (graph && (opd_graph_run(graph, &y, 1, got, 1) != 1 || !opd_allclose(got[0], want[1]))) { report(w, "trace, other input"); }
    opd_graph_free(graph);
}
TEST(transforms_of_conditions_and_loops_with_views_agree) {
    static const char letters[] = "VGJC";
    for (int code = 0; code < 85; code++) {
        char word[4] = "";
        int length = code > 20 ? 3 : code > 4 ? 2 : code > 0, rest = code - (length == 3 ? 21 : length == 2 ? 5 : length);
        for (int i = 0; i < length; i++, rest /= 4) { word[i] = letters[rest % 4]; }
        for (int op = 0; op < NOPERATORS; op++) {
            for (int body = 0; body < NBODIES; body++) {
                if (length < 3 || (code + op + body) % 3 == 0) { compares(op, body, word); }
            }
        }
    }
    if (failures) { fprintf(stderr, "%d failures\n", failures); }
    CHECK_OK();
}
/* The same for compiled traces. */
static void compiles(int op, int body, const char *word) {
    OPD_SCOPED;
    walk w[4];
    opd_tensor *x = input(word, 1), *y = input(word, -0.8), *want[1], *got[1];
    opd_compile_options options;
    fills(w, op, body, false, word);
    opd_graph *const graph = opd_graph_trace(walked, w, &x, 1, NULL);
    memset(&options, 0, sizeof options);
    options.flags = "-O0";
    opd_compiled *const compiled = opd_graph_compile(graph, &options);
    CHECK_OR_RETURN(compiled != NULL);
    for (int k = 0; k < 2; k++) {
        const bool right = opd_compiled_function(compiled, k ? &y : &x, 1, got) == 1 &&
            walked(w, k ? &y : &x, 1, want) == 1 && opd_allclose(got[0], want[0]);
        CHECK(right);
        if (!right) { report(w, "compiled"); }
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}
TEST(compiled_conditions_and_loops_with_views_agree) {
    static const char *const words[] = {"", "V", "G", "J", "VG", "GV", "GG", "VJ"};
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (int k = 0; k < 8; k++) {
        for (int op = 0; op < NOPERATORS; op++) { compiles(op, (3 * k + 2 * op) % NBODIES, words[k]); }
    }
    CHECK_OK();
}

//-- as_strided_scatter ------------------------------------------------------------------------------------------------

/* Each row, with its first two numbers replaced, by as_strided_scatter or by slice_scatter. */
static opd_tensor *replaced(opd_tensor *x, bool flat) {
    opd_tensor *rows[4];
    for (int k = 0; k < 4; k++) {
        opd_tensor *const row = opd_select(x, 0, k), *const t = opd_mul(row, row), *const src = opd_narrow(row, 0, 1, 2);
        rows[k] = flat ? opd_as_strided_scatter(t, src, OPD_INTS(2), OPD_INTS(1))
            : opd_slice_scatter_full(t, src, 0, OPD_V(0), OPD_V(2), 1);
    }
    return opd_stack(OPD_TENSORS(rows[0], rows[1], rows[2], rows[3]), 0);
}
TEST(gradients_of_as_strided_scatter_may_be_views) {
    opd_tensor *const x = opd_tensor_set_requires_grad(input("", 1), true), *got[2];
    for (int flat = 0; flat < 2; flat++) {
        opd_tensor *loss = opd_sum(opd_mul(replaced(x, flat), opd_detach(opd_sin(x))));
        CHECK_INT(opd_autograd_grad(&loss, 1, &x, 1, NULL, &got[flat]), 0);
    }
    CHECK(opd_allclose(got[0], got[1]));
}
BODY(scatters) {
    opd_tensor *const self = user ? opd_transpose(in[0], 0, 1) : in[0];
    (void)n;
    out[0] = opd_as_strided_scatter(self, opd_narrow(opd_reshape(in[0], OPD_INTS(6)), 0, 3, 2), OPD_INTS(2), OPD_INTS(2));
    DONE(1);
}
TEST(examples_of_as_strided_scatter_keep_their_layout) {
    opd_tensor *const x = opd_reshape(opd_narrow(opd_reshape(input("V", 1), OPD_INTS(24)), 0, 6, 12), OPD_INTS(2, 3, 2));
    for (int turned = 0; turned < 2; turned++) {
        opd_tensor *all[1], *one[2];
        CHECK_INT(opd_vmap(scatters, turned ? &turned : NULL, &x, 1, NULL, all, 1), 1);
        for (int k = 0; k < 2; k++) {
            opd_tensor *const example = opd_clone(opd_select(x, 0, k));
            CHECK_INT(scatters(turned ? &turned : NULL, &example, 1, &one[k]), 1);
        }
        CHECK(opd_allclose(all[0], opd_stack(OPD_TENSORS(one[0], one[1]), 0)));
    }
}
/* A trace has the distance between examples as a constant, so runs with other strides fail. */
BODY(reads_strided) {
    UNUSED();
    out[0] = opd_mul_Scalar(opd_as_strided(in[0], OPD_INTS(2, 2), OPD_INTS(4, 1)), OPD_V(2));
    DONE(1);
}
BODY(all_strided) { (void)user; return opd_vmap(reads_strided, NULL, in, n, NULL, out, 1); }
TEST(traced_views_of_examples_need_the_strides_of_the_trace) {
    opd_tensor *x = opd_randn(OPD_INTS(5, 3, 4), OPD_FLOAT32), *want, *got;
    opd_graph *const graph = opd_graph_trace(all_strided, NULL, &x, 1, NULL);
    CHECK_OK();
    CHECK_INT(opd_graph_dce(graph) >= 0 && opd_graph_cse(graph) >= 0 && opd_graph_fold(graph) >= 0, 1);
    x = opd_neg(x);
    CHECK_INT(all_strided(NULL, &x, 1, &want), 1);
    CHECK_INT(opd_graph_run(graph, &x, 1, &got, 1), 1);
    CHECK(opd_ok() && opd_equal(got, want));
    x = opd_narrow(opd_randn(OPD_INTS(5, 3, 8), OPD_FLOAT32), 2, 0, 4);
    CHECK_INT(opd_graph_run(graph, &x, 1, &got, 1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "Tensor strides mismatch! Expected: [12, 4, 1], Got: [24, 8, 1]");
    opd_graph_free(graph);
}
CHECK_MAIN()
