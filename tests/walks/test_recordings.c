/* Derivatives inside of a recorded function, of every operator, with the sample arguments of its descriptor.  The
   graph runs with other numbers, and gives the results of the function for them.  If this is impossible, recording
   fails.  With and without opd_trace_options.parts. */
#include "../cases.h"

/* Saved-tensor hooks that keep another tensor, half as large: what they compute is recorded, too. */
static bool hooked;
static void *pack(opd_tensor *t, void *user) {
    (void)user;
    t = opd_dtype_is_floating(opd_dtype(t)) ? opd_mul_Scalar(t, opd_value_double(0.5)) : opd_clone(t);
    return t ? opd_keep(t) : NULL;
}
static opd_tensor *unpack(void *packed, void *user) {
    opd_tensor *t = (opd_tensor *)packed;
    (void)user;
    return opd_dtype_is_floating(opd_dtype(t)) ? opd_mul_Scalar(t, opd_value_double(2)) : t;
}
static void drop(void *packed, void *user) { (void)user; opd_release((opd_tensor *)packed); }
static int call_hooked(void *user, opd_tensor *const *in, int n, opd_tensor **results) {
    static const opd_saved_hooks hooks = {pack, unpack, drop, NULL, NULL};
    int count;
    if (!hooked) { return case_call(user, in, n, results); }
    if (opd_saved_hooks_begin(&hooks)) { return -1; }
    count = case_call(user, in, n, results);
    opd_saved_hooks_end();
    return count;
}
/* The gradients, by the tape, of the sum of squares of what the operator gives for the floating ones of in. */
static int derivative(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *results[MOST_RESULTS], *by[OPD_MAX_ARGS], *sum = NULL;
    opd_backward_options o;
    int i, m = 0, count = call_hooked(user, in, n, results);
    memset(&o, 0, sizeof o);
    o.materialize_grads = true;
    for (i = 0; i < count; i++) {
        if (!results[i] || !opd_tensor_requires_grad(results[i])) { continue; }
        results[i] = opd_sum(opd_mul(results[i], results[i]));
        sum = sum ? opd_add(sum, results[i]) : results[i];
    }
    for (i = 0; i < n; i++) { if (opd_tensor_requires_grad(in[i])) { by[m++] = in[i]; } }
    if (count < 0 || !sum || !m) { return -1; }
    return opd_autograd_grad(&sum, 1, by, m, &o, out) < 0 ? -1 : m;
}
static int inputs(const op_case *c, opd_tensor **in) {
    int i, n = 0;
    for (i = 0; i < c->nargs; i++) {
        if (c->args[i].tag != OPD_TAG_TENSOR) { continue; }
        in[n] = c->args[i].u.t;
        if (opd_dtype_is_floating(opd_dtype(in[n]))) { (void)opd_tensor_set_requires_grad(in[n], true); }
        n++;
    }
    return n;
}
static bool read_case(op_case *c, const opd_op *op, const char *text, int first_seed) {
    memset(c, 0, sizeof *c);
    c->op = op;
    c->dtype = OPD_FLOAT64;
    c->smooth = true;
    c->first_seed = first_seed;
    return case_read_next(c, &text);
}
/* 1: recorded and right, 0: refused, -1: there is no derivative. */
static int try_case(const opd_op *op, const char *text, bool parts) {
    static op_case c, other;
    opd_tensor *in[OPD_MAX_ARGS], *others[OPD_MAX_ARGS], *want[OPD_TRANSFORM_OUTPUTS], *got[OPD_TRANSFORM_OUTPUTS];
    opd_trace_options o;
    opd_graph *g;
    int i, n, m, k;
    OPD_SCOPED;
    memset(&o, 0, sizeof o);
    o.parts = parts;
    if (!read_case(&c, op, text, 0) || !read_case(&other, op, text, 40)) { opd_error_clear(); return -1; }
    n = inputs(&c, in);
    (void)inputs(&other, others);
    if (derivative(&c, in, n, want) < 0 || (m = derivative(&other, others, n, want)) < 0 || !opd_ok()) {
        opd_error_clear();
        return -1;
    }
    for (k = 0; k < c.nargs; k++) {               /* what is no input is a constant: the same in both */
        if (c.args[k].tag == OPD_TAG_TENSORS) { return -1; }
    }
    if (!(g = opd_graph_trace(derivative, &c, in, n, &o))) { opd_error_clear(); return 0; }
    if (went_well(opd_graph_run(g, others, n, got, m))) {
        for (i = 0; i < m; i++) { same_values(got[i], want[i], 1e-9); }
    }
    opd_graph_free(g);
    return 1;
}
/* Without parts, derivatives that read what a composite operator made are refused: those are not counted. */
static void walk(bool parts, bool with_hooks, int most_refused) {
    /* sizes that depend on numbers; an output that is not what its input gives, so that two formulas differ */
    static const char *const others[] = {"masked_select", "masked_scatter", "cumprod_backward", NULL};
    const opd_op *op;
    int right = 0, refused = 0;
    hooked = with_hooks;
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const opd_op_desc *card = opd_op_card(op);
        const char *text = card && cases_of(op) && !is_random(op) && !named(op, others) ? cases_of(op) : "";
        for (; *text; text += strcspn(text, ";")) {
            int one;
            text += *text == ';';
            (void)snprintf(what, sizeof what, "    %s \"%.*s\"%s%s", opd_op_name(op), (int)strcspn(text, ";"),
                           text, parts ? ", parts" : "", hooked ? ", hooks" : "");
            one = try_case(op, text, parts);
            right += one == 1;
            refused += one == 0 && (parts || !card->composite);
            if (one == 0 && getenv("OPD_VERBOSE")) { printf("%s refused\n", what); }
        }
    }
    printf("%d right, %d refused\n", right, refused);
    CHECK(right > 500);
    CHECK(refused <= most_refused);
}
TEST(of_operators) { walk(false, false, 8); }
TEST(of_their_parts) { walk(true, false, 0); }
TEST(with_saved_tensor_hooks) { walk(false, true, 8); }
TEST(of_their_parts_with_saved_tensor_hooks) { walk(true, true, 0); }
CHECK_MAIN()
