/* In-place operators inside of transforms: they write to a tensor from outside, to an input of an inner or outer
   function, to the result of an operator, through a view, through the result of detach, and without grad mode.  The
   results do not depend on whether something outside is differentiated; under vmap, they equal those of each
   example. */
#include "../check.h"

typedef struct program {
    char transforms[3];          /* the outer and the inner one, or one: see apply */
    int to, from, way;
    opd_tensor *outside, *constant, *first, *made;
} program;

enum { TO_CONSTANT, TO_OUTSIDE, TO_MADE, TO_FIRST, TO_INPUT, TO_PRODUCT, TOS };
enum { FROM_NUMBER, FROM_FIRST, FROM_INPUT, FROM_OUTSIDE, FROMS };
enum { BY_MUL, BY_COPY, BY_VIEW, BY_DETACHED, WITHOUT_GRAD, WAYS };

static opd_tensor *times(opd_tensor *t, double by) { return opd_mul_Scalar(t, opd_value_double(by)); }
static void mul_(opd_tensor *to, opd_tensor *from) {
    static opd_op *op;
    opd_value v[2];
    v[0] = opd_value_tensor(to);
    v[1] = opd_value_tensor(from);
    if (opd_ok()) { (void)opd_call_op(OPD_OP(&op, "aten::mul_.Tensor"), v, 2); }
}
static opd_tensor *body(program *p, opd_tensor *x) {
    opd_tensor *to[TOS], *from[FROMS], *t, *f;
    to[TO_CONSTANT] = p->constant;
    to[TO_OUTSIDE] = p->outside;
    to[TO_MADE] = p->made;
    to[TO_FIRST] = p->first;
    to[TO_INPUT] = x;
    to[TO_PRODUCT] = times(x, 1);
    from[FROM_NUMBER] = opd_full(opd_ints_of(NULL, 0), opd_value_double(3), OPD_FLOAT64);
    from[FROM_FIRST] = p->first;
    from[FROM_INPUT] = x;
    from[FROM_OUTSIDE] = p->outside;
    t = to[p->to];
    f = from[p->from];
    switch (p->way) {
    case BY_MUL: mul_(t, f); break;
    case BY_COPY: (void)opd_copy_(t, f); break;
    case BY_VIEW: mul_(opd_view(t, opd_ints_of(opd_sizes(t), opd_ndim(t))), f); break;
    case BY_DETACHED: mul_(opd_detach(t), f); break;
    default: OPD_NO_GRAD { mul_(t, f); } break;
    }
    return opd_add(opd_mul(t, x), opd_sin(t));
}
static int inner(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    return (out[0] = body((program *)user, in[0])) != NULL ? 1 : -1;
}
typedef struct summed { opd_transform_fn fn; void *user; } summed;
static int sum_of(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const summed *s = (const summed *)user;
    if (s->fn(s->user, in, n, out) < 0) { return -1; }
    return (out[0] = opd_sum(opd_sin(out[0]))) != NULL ? 1 : -1;
}
/* g: grad of a sum, r: its jacrev, v: vmap, j: jvp, both of its outputs; l: vmap by a loop. */
static opd_tensor *apply(char transform, opd_transform_fn fn, void *user, opd_tensor *x) {
    opd_tensor *out[1], *tangent[1], *rows[2];
    summed s;
    int i;
    s.fn = fn;
    s.user = user;
    if (!x) { return NULL; }
    switch (transform) {
    case 'g': return opd_grad(sum_of, &s, &x, 1, NULL, out, 1) < 0 ? NULL : out[0];
    case 'r': return opd_jacrev(sum_of, &s, &x, 1, NULL, out, 1) < 0 ? NULL : out[0];
    case 'v': return opd_vmap(fn, user, &x, 1, NULL, out, 1) < 0 ? NULL : out[0];
    case 'j':
        tangent[0] = opd_cos(x);
        if (opd_jvp(fn, user, &x, tangent, 1, NULL, out, tangent, 1) < 0) { return NULL; }
        return tangent[0] ? opd_add(out[0], times(tangent[0], 2)) : out[0];
    default:
        for (i = 0; i < 2; i++) {
            opd_tensor *row = opd_select(x, 0, i);
            if (fn(user, &row, 1, &rows[i]) < 0) { return NULL; }
        }
        return opd_stack(opd_tensors_of(rows, 2), 0);
    }
}
static int outer(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    program *p = (program *)user;
    (void)n;
    p->first = in[0];
    if (!(p->made = times(in[0], 1.5))) { return -1; }
    out[0] = p->transforms[1] ? apply(p->transforms[1], inner, p, times(in[0], 2)) : body(p, in[0]);
    return out[0] ? 1 : -1;
}
/* What the program gives, written to values; how many, or -1: an error. */
static int run(program *p, bool tape, double *values) {
    const double a[] = {0.1, 0.2, 0.3, 0.4}, b[] = {0.5, 0.6, 0.7, 0.8}, c[] = {0.9, 0.8, 0.7, 0.6};
    int i, n = -1;
    OPD_SCOPE {
        opd_tensor *x = opd_tensor_from(b, OPD_INTS(2, 2), OPD_FLOAT64), *y, *parts[3];
        p->outside = opd_tensor_set_requires_grad(opd_tensor_from(a, OPD_INTS(2, 2), OPD_FLOAT64), tape);
        p->outside = times(p->outside, 2);
        p->constant = opd_tensor_from(c, OPD_INTS(2, 2), OPD_FLOAT64);
        x = times(opd_tensor_set_requires_grad(x, tape), 1);
        parts[0] = y = apply(p->transforms[0], outer, p, x);
        parts[1] = x;
        parts[2] = p->outside;
        for (i = 0; i < 3; i++) { parts[i] = opd_reshape(opd_detach(parts[i]), OPD_INTS(-1)); }
        y = opd_cat(opd_tensors_of(parts, 3), 0);
        for (n = 0; y && n < opd_numel(y) && n < 32; n++) { values[n] = opd_data_f64(y)[n]; }
    }
    if (!opd_ok()) { opd_error_clear(); n = -1; }
    return n;
}
/* 1: the same, 0: both fail, -1: neither. */
static int compare(int n, const double *values, program *other, bool tape) {
    double theirs[32];
    const int m = run(other, tape, theirs);
    int i;
    if (n != m || n < 0) { return n < 0 && m < 0 ? 0 : -1; }
    for (i = 0; i < n && fabs(values[i] - theirs[i]) <= 1e-12 * (1 + fabs(theirs[i])); i++) { }
    return i == n ? 1 : -1;
}
static void check(program *p, int *right) {
    double values[32];
    const int n = run(p, false, values);
    program looped = *p;
    int taped = compare(n, values, p, true), loop = 0;
    looped.transforms[0] = 'l';
    if (p->transforms[0] == 'v' && p->to > TO_OUTSIDE) { loop = compare(n, values, &looped, false); }
    if (taped < 0 || loop < 0) {
        printf("    %s, to %d, from %d, way %d: %s\n", p->transforms, p->to, p->from, p->way,
               taped < 0 ? "another value when it is differentiated outside" : "another value than that of a loop");
    }
    CHECK(taped >= 0 && loop >= 0);
    *right += taped > 0;
}
TEST(writes) {
    static const char kinds[] = "gvjr";
    program p;
    int k, right = 0;
    memset(&p, 0, sizeof p);
    for (k = 0; k < 20; k++) {
        p.transforms[0] = kinds[k % 4];
        p.transforms[1] = (char)(k < 4 ? 0 : kinds[k / 4 - 1]);
        for (p.to = 0; p.to < TOS; p.to++) {
            for (p.from = 0; p.from < FROMS; p.from++) {
                for (p.way = 0; p.way < WAYS; p.way++) { check(&p, &right); }
            }
        }
    }
    CHECK(right > 700);
}
CHECK_MAIN()
