/* Derivatives of functions: grad, vjp, jvp, linearize, Jacobians and Hessians, alone, nested, and with vmap, with
   custom functions and custom operators.  The expected values are worked out by hand or by finite differences. */
#include "../../opdispatch.h"
#include "../cases.h"

#define MOST 16

static opd_tensor *vec(const double *v, int64_t n) { return opd_tensor_from(v, opd_ints_of(&n, 1), OPD_FLOAT64); }
static opd_tensor *num(double v) { return opd_tensor_from(&v, opd_ints_of(NULL, 0), OPD_FLOAT64); }
static opd_tensor *mat(const double *v, int64_t m, int64_t n) {
    const int64_t sizes[2] = {m, n};
    return opd_tensor_from(v, opd_ints_of(sizes, 2), OPD_FLOAT64);
}
static double at(opd_tensor *t, int64_t i) {
    if (!t || !opd_ok()) { return NAN; }
    t = opd_reshape(t, OPD_INTS(-1));
    return opd_item_f64(opd_select(t, 0, i));
}
static bool near_all(opd_tensor *a, opd_tensor *b, double tol) {
    int64_t i;
    bool same = a && b && opd_ok() && opd_ndim(a) == opd_ndim(b);
    for (i = 0; same && i < opd_ndim(a); i++) { same = opd_sizes(a)[i] == opd_sizes(b)[i]; }
    for (i = 0; same && i < opd_numel(a); i++) { same = fabs(at(a, i) - at(b, i)) <= tol; }
    return same && opd_ok();
}
/* Checks that rc belongs to a call that failed with this text, and that nothing remains of the call. */
#define FAILS(rc, code, text) \
    do { CHECK_INT(rc, -1); CHECK_ERROR(code, text); CHECK_INT(opd_transform_depth(), 0); CHECK(opd_grad_mode_enabled()); \
         CHECK(opd_saved_hooks_disabled() == NULL); } while (0)

//-- functions ---------------------------------------------------------------------------------------------------------

/* sum(sin(x)) */
static int sum_sin(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_sum(opd_sin(in[0]));
    return out[0] ? 1 : -1;
}
static int grad_sum_sin(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(sum_sin, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
/* x^3, 0-dim */
static int cube(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_mul(in[0], opd_mul(in[0], in[0]));
    return out[0] ? 1 : -1;
}
static int grad_cube(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(cube, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
static int grad_grad_cube(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(grad_cube, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
/* x * user, summed */
static int sum_times(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = opd_sum(opd_mul(in[0], (opd_tensor *)user));
    return out[0] ? 1 : -1;
}
static int grad_times(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(sum_times, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
/* x * y; the product of both, and x + y */
static int product_aux(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_mul(in[0], in[1]);
    out[1] = opd_add(in[0], in[1]);
    return out[1] ? 2 : -1;
}

TEST(grad_of_a_number) {
    const int last_first[] = {-1, 0};
    const opd_transform_options both = {last_first, 2, 1, 0, OPD_RANDOM_ERROR, false};
    opd_tensor *x = num(2), *in[2], *out[MOST];
    in[0] = x;
    CHECK_INT(opd_grad(cube, NULL, in, 1, NULL, out, MOST), 1);
    CHECK_NEAR(at(out[0], 0), 12, 1e-12);
    CHECK(!opd_tensor_requires_grad(out[0]));
    CHECK_INT(opd_grad(grad_cube, NULL, in, 1, NULL, out, MOST), 1);
    CHECK_NEAR(at(out[0], 0), 12, 1e-12);
    CHECK_INT(opd_grad(grad_grad_cube, NULL, in, 1, NULL, out, MOST), 1);
    CHECK_NEAR(at(out[0], 0), 6, 1e-12);
    CHECK(!opd_tensor_requires_grad(out[0]));
    in[1] = num(5);
    CHECK_INT(opd_grad_and_value(product_aux, NULL, in, 2, &both, out, MOST), 4);
    CHECK_NEAR(at(out[0], 0), 2, 0);
    CHECK_NEAR(at(out[1], 0), 5, 0);
    CHECK_NEAR(at(out[2], 0), 10, 0);
    CHECK_NEAR(at(out[3], 0), 7, 0);
    CHECK(!opd_tensor_requires_grad(out[2]) && !opd_tensor_requires_grad(out[3]) && !opd_tensor_grad_fn(out[3]));
    CHECK_INT(opd_transform_depth(), 0);
}

TEST(vmap_of_grad) {
    const double v[] = {0.5, 1, 1.5, 2, 2.5, 3};
    opd_tensor *x = mat(v, 3, 2), *out[MOST], *w = vec(v, 2);
    CHECK_INT(opd_vmap(grad_sum_sin, NULL, &x, 1, NULL, out, MOST), 1);
    CHECK(near_all(out[0], opd_cos(x), 1e-12));
    CHECK(!opd_tensor_requires_grad(out[0]));
    x = vec(v, 6);
    CHECK_INT(opd_vmap(grad_grad_cube, NULL, &x, 1, NULL, out, MOST), 1);
    CHECK(near_all(out[0], opd_mul(x, num(6)), 1e-12));
    /* what is captured is a constant, or followed by the tape outside */
    x = mat(v, 3, 2);
    CHECK_INT(opd_vmap(grad_times, w, &x, 1, NULL, out, MOST), 1);
    CHECK(near_all(out[0], opd_expand(w, OPD_INTS(3, 2)), 0));
    (void)opd_tensor_set_requires_grad(w, true);
    CHECK_INT(opd_vmap(grad_times, w, &x, 1, NULL, out, MOST), 1);
    CHECK(opd_tensor_requires_grad(out[0]));
    CHECK_INT(opd_backward(opd_sum(out[0])), 0);
    CHECK_NEAR(at(opd_tensor_grad(w), 0), 3, 0);
}

static int vmap_sin_summed(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *o[MOST];
    if (opd_vmap(sum_sin, user, in, n, NULL, o, MOST) < 0) { return -1; }
    out[0] = opd_sum(o[0]);
    return out[0] ? 1 : -1;
}
static int grad_cube_summed(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *o[MOST];
    if (opd_vmap(grad_cube, user, in, n, NULL, o, MOST) < 0) { return -1; }
    out[0] = opd_sum(o[0]);
    return out[0] ? 1 : -1;
}
TEST(grad_of_vmap) {
    const double v[] = {0.5, 1, 1.5, 2, 2.5, 3};
    opd_tensor *x = mat(v, 3, 2), *out[MOST];
    CHECK_INT(opd_grad(vmap_sin_summed, NULL, &x, 1, NULL, out, MOST), 1);
    CHECK(near_all(out[0], opd_cos(x), 1e-12));
    x = vec(v, 6);                                /* grad of vmap of grad */
    CHECK_INT(opd_grad(grad_cube_summed, NULL, &x, 1, NULL, out, MOST), 1);
    CHECK(near_all(out[0], opd_mul(x, num(6)), 1e-12));
    CHECK(!opd_tensor_requires_grad(out[0]));
}

static int gives(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    switch (*(const char *)user) {
    case 'v': out[0] = opd_mul(in[0], in[0]); return 1;
    case '2': out[0] = opd_sum(in[0]); out[1] = opd_sum(in[0]); return 2;
    case '0': return 0;
    case '-': return -1;
    case 'N': out[0] = NULL; return 1;
    case 'e': out[0] = opd_matmul(in[0], in[0]); return 1;
    case 'i': out[0] = in[n - 1]; return 1;
    default: out[0] = opd_sum(opd_exp(in[0])); return 1;
    }
}
TEST(grad_refuses) {
    const double v[] = {1, 2, 3};
    opd_transform_options o;
    opd_tensor *in[2], *out[MOST], *ints;
    int a[2] = {0, 2};
    memset(&o, 0, sizeof o);
    in[0] = in[1] = mat(v, 1, 3);
    FAILS(opd_grad(gives, (void *)"v", in, 1, NULL, out, MOST), OPD_ERROR_ARGUMENT,
          "Expected f(*args) to return a scalar Tensor, got tensor with 2 dims");
    FAILS(opd_grad(gives, (void *)"2", in, 1, NULL, out, MOST), OPD_ERROR_ARGUMENT, "got 2 outputs");
    FAILS(opd_grad(gives, (void *)"0", in, 1, NULL, out, MOST), OPD_ERROR_ARGUMENT, "non-empty output");
    FAILS(opd_grad(gives, (void *)"-", in, 1, NULL, out, MOST), OPD_ERROR_USER, "failed without setting an error");
    FAILS(opd_grad(gives, (void *)"N", in, 1, NULL, out, MOST), OPD_ERROR_ARGUMENT, "must only return Tensors");
    FAILS(opd_grad(gives, (void *)"e", in, 1, NULL, out, MOST), OPD_ERROR_SHAPE, "aten::m");
    o.argnums = a; o.nargnums = 2;
    FAILS(opd_grad(gives, (void *)"", in, 2, &o, out, MOST), OPD_ERROR_ARGUMENT, "Got argnum=2, but only 2 positional inputs");
    a[1] = -3;
    FAILS(opd_grad(gives, (void *)"", in, 2, &o, out, MOST), OPD_ERROR_ARGUMENT, "Got argnum=-3, but only 2 positional inputs");
    a[1] = -2;
    FAILS(opd_grad(gives, (void *)"", in, 2, &o, out, MOST), OPD_ERROR_ARGUMENT, "argnums elements must be unique");
    o.nargnums = 0;
    FAILS(opd_grad(gives, (void *)"", in, 2, &o, out, MOST), OPD_ERROR_ARGUMENT, "argnums must be non-empty");
    o.argnums = NULL; o.naux = 1;
    FAILS(opd_grad(gives, (void *)"", in, 2, &o, out, MOST), OPD_ERROR_ARGUMENT, "naux counts");
    FAILS(opd_grad(NULL, NULL, in, 2, &o, out, MOST), OPD_ERROR_ARGUMENT, "the function is NULL");
    ints = opd_to_dtype(in[0], OPD_INT64);
    FAILS(opd_grad(gives, (void *)"", &ints, 1, NULL, out, MOST), OPD_ERROR_AUTOGRAD, "floating point");
    /* what does not count has zeros */
    in[1] = num(4);
    CHECK_INT(opd_grad(gives, (void *)"i", in, 2, NULL, out, MOST), 1);
    CHECK(near_all(out[0], opd_zeros_like(in[0]), 0));
}

//-- several outputs and inputs -----------------------------------------------------------------------------------------

/* sin(x) * y, and x.y^2: both vectors of one size; and one that is passed on */
static int two_of_two(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_mul(opd_sin(in[0]), in[1]);
    out[1] = opd_sum(opd_mul(in[0], opd_mul(in[1], in[1])));
    out[2] = opd_exp(in[0]);
    return out[2] ? 3 : -1;
}
static const int both_inputs[] = {0, 1};
static opd_transform_options options_of(const int *argnums, int nargnums, int naux) {
    opd_transform_options o;
    memset(&o, 0, sizeof o);
    o.argnums = argnums;
    o.nargnums = nargnums;
    o.naux = naux;
    return o;
}
static const double xs[] = {0.3, -0.7, 1.1}, ys[] = {2, 0.5, -1.5};

TEST(vjp_of_several) {
    const opd_transform_options o = options_of(NULL, 0, 1);
    opd_tensor *in[2], *out[MOST], *cot[2], *g[MOST];
    opd_derivative *vjp;
    int i;
    in[0] = vec(xs, 3);
    in[1] = vec(ys, 3);
    CHECK_INT(opd_vjp(two_of_two, NULL, in, 2, &o, out, MOST, &vjp), 3);
    CHECK_INT(opd_transform_depth(), 0);
    CHECK(near_all(out[2], opd_exp(in[0]), 0));
    for (i = 0; i < 3; i++) { CHECK(!opd_tensor_requires_grad(out[i])); }
    cot[0] = vec(ys, 3);
    cot[1] = num(2);
    for (i = 0; i < 2; i++) {                     /* again and again */
        CHECK_INT(opd_derivative_call(vjp, cot, 2, 0, g, MOST), 2);
        CHECK(near_all(g[0], opd_add(opd_mul(opd_mul(opd_cos(in[0]), in[1]), cot[0]),
                                     opd_mul(cot[1], opd_mul(in[1], in[1]))), 1e-12));
        CHECK(near_all(g[1], opd_add(opd_mul(opd_sin(in[0]), cot[0]),
                                     opd_mul(opd_mul(cot[1], num(2)), opd_mul(in[0], in[1]))), 1e-12));
        CHECK(!opd_tensor_requires_grad(g[0]));
    }
    cot[0] = NULL;
    CHECK_INT(opd_derivative_call(vjp, cot, 2, OPD_DERIVATIVE_LAST, g, MOST), 2);
    CHECK(near_all(g[0], opd_mul(cot[1], opd_mul(in[1], in[1])), 1e-12));
    FAILS(opd_derivative_call(vjp, cot, 2, 0, g, MOST), OPD_ERROR_AUTOGRAD, "a second time");
    FAILS(opd_derivative_call(vjp, cot, 1, 0, g, MOST), OPD_ERROR_ARGUMENT, "cotangents: 1, primal output: 2");
    cot[1] = vec(xs, 3);
    FAILS(opd_derivative_call(vjp, cot, 2, 0, g, MOST), OPD_ERROR_AUTOGRAD, "Mismatch in shape");
}

TEST(jvp_of_several) {
    opd_transform_options strictly = {both_inputs, 1, 0, 0, OPD_RANDOM_ERROR, true};
    opd_transform_options o = options_of(NULL, 0, 1);
    opd_tensor *in[2], *t[2], *out[MOST], *dot[MOST];
    opd_derivative *jvp;
    in[0] = vec(xs, 3);
    in[1] = vec(ys, 3);
    t[0] = vec(ys, 3);
    t[1] = vec(xs, 3);
    CHECK_INT(opd_jvp(two_of_two, NULL, in, t, 2, &o, out, dot, MOST), 3);
    CHECK(near_all(out[0], opd_mul(opd_sin(in[0]), in[1]), 1e-12));
    CHECK(near_all(dot[0], opd_add(opd_mul(opd_mul(opd_cos(in[0]), in[1]), t[0]), opd_mul(opd_sin(in[0]), t[1])), 1e-12));
    CHECK_NEAR(at(dot[1], 0), 2 * 4 + 0.5 * 0.25 - 1.5 * 2.25 + 2 * (0.3 * 2 * 0.3 + 0.7 * 0.5 * 0.7 - 1.1 * 1.5 * 1.1), 1e-12);
    CHECK_INT(opd_linearize(two_of_two, NULL, in, 2, &o, out, MOST, &jvp), 3);
    CHECK_INT(opd_derivative_call(jvp, t, 2, 0, dot + 4, MOST - 4), 2);
    CHECK(near_all(dot[4], dot[0], 0) && near_all(dot[5], dot[1], 0));
    t[0] = NULL;
    CHECK_INT(opd_jvp(two_of_two, NULL, in, t, 2, &o, out, dot, MOST), 3);
    CHECK(near_all(dot[0], opd_mul(opd_sin(in[0]), t[1]), 1e-12));
    FAILS(opd_derivative_call(jvp, t, 2, 0, dot, MOST), OPD_ERROR_ARGUMENT, "only contain Tensors");
    FAILS(opd_derivative_call(jvp, t, 1, 0, dot, MOST), OPD_ERROR_ARGUMENT, "primals: 2, tangents: 1");
    t[0] = num(1);
    FAILS(opd_derivative_call(jvp, t, 2, 0, dot, MOST), OPD_ERROR_SHAPE,
          "tangent:0 with shape [] doesn't match the shape [3] of the corresponding primal");
    t[0] = opd_to_dtype(in[0], OPD_FLOAT32);
    FAILS(opd_derivative_call(jvp, t, 2, 0, dot, MOST), OPD_ERROR_DTYPE, "tangent:0 with dtype float32");
    t[0] = opd_to_dtype(in[0], OPD_INT64);
    FAILS(opd_jvp(two_of_two, NULL, in, t, 2, &o, out, dot, MOST), OPD_ERROR_DTYPE, "Expected tangent to be floating point");
    FAILS(opd_jvp(two_of_two, NULL, in, NULL, 2, &o, out, dot, MOST), OPD_ERROR_ARGUMENT, "the tangents are NULL");
    o.naux = 0;
    o.strict = true;
    in[1] = t[0] = num(3);
    FAILS(opd_jvp(gives, (void *)(uintptr_t)"i", in, t, 2, &strictly, out, dot, MOST), OPD_ERROR_SHAPE, "tangent:0");
    in[0] = num(1);
    FAILS(opd_jvp(gives, (void *)(uintptr_t)"i", in, t, 2, &strictly, out, dot, MOST), OPD_ERROR_ARGUMENT, "which the option strict does not allow");
    strictly.strict = false;
    CHECK_INT(opd_jvp(gives, (void *)(uintptr_t)"i", in, t, 2, &strictly, out, dot, MOST), 1);
    CHECK_NEAR(at(dot[0], 0), 0, 0);
}

//-- Jacobians ---------------------------------------------------------------------------------------------------------

/* Computes Jacobians by central differences, in the layout of jacrev. */
static int differences(opd_transform_fn fn, void *user, opd_tensor *const *in, int n, const opd_transform_options *o,
                       opd_tensor **blocks) {
    const double step = 1e-6;
    opd_tensor *out[MOST], *moved[MOST];
    int nout = fn(user, in, n, out) - o->naux, i, k, a, c;
    int64_t e;
    for (a = 0; a < o->nargnums; a++) {
        opd_tensor *columns[MOST][64];
        for (e = 0; e < opd_numel(in[o->argnums[a]]); e++) {
            opd_tensor *side[2][MOST];
            for (k = 0; k < 2; k++) {
                for (i = 0; i < n; i++) { moved[i] = in[i]; }
                moved[o->argnums[a]] = opd_clone(in[o->argnums[a]]);
                opd_data_f64(moved[o->argnums[a]])[e] += k ? -step : step;
                if (fn(user, moved, n, side[k]) < 0) { return -1; }
            }
            for (c = 0; c < nout; c++) {
                columns[c][e] = opd_div(opd_sub(side[0][c], side[1][c]), num(2 * step));
            }
        }
        for (c = 0; c < nout; c++) {
            int64_t sizes[16];
            int d = 0;
            opd_tensor *j = opd_stack(opd_tensors_of(columns[c], e), -1);
            for (i = 0; i < opd_ndim(out[c]); i++) { sizes[d++] = opd_sizes(out[c])[i]; }
            for (i = 0; i < opd_ndim(in[o->argnums[a]]); i++) { sizes[d++] = opd_sizes(in[o->argnums[a]])[i]; }
            blocks[c * o->nargnums + a] = opd_reshape(j, opd_ints_of(sizes, d));
        }
    }
    return nout * o->nargnums;
}
TEST(jacobians) {
    opd_transform_options o = options_of(both_inputs, 2, 1);
    opd_tensor *in[2], *rev[MOST], *fwd[MOST], *num_[MOST];
    int64_t chunk;
    int i;
    in[0] = vec(xs, 3);
    in[1] = vec(ys, 3);
    CHECK_INT(differences(two_of_two, NULL, in, 2, &o, num_), 4);
    for (chunk = 0; chunk < 5; chunk++) {
        o.chunk_size = chunk;
        CHECK_INT(opd_jacrev(two_of_two, NULL, in, 2, &o, rev, MOST), 5);
        CHECK_INT(opd_jacfwd(two_of_two, NULL, in, 2, &o, fwd, MOST), 5);
        for (i = 0; i < 4; i++) {
            CHECK(near_all(rev[i], num_[i], 1e-7));
            CHECK(near_all(fwd[i], rev[i], 1e-12));
            CHECK(!opd_tensor_requires_grad(rev[i]) && !opd_tensor_requires_grad(fwd[i]));
        }
        CHECK(near_all(rev[4], opd_exp(in[0]), 0) && near_all(fwd[4], rev[4], 0));
    }
    o.chunk_size = -1;
    FAILS(opd_jacrev(two_of_two, NULL, in, 2, &o, rev, 4), OPD_ERROR_ARGUMENT, "jacrev: `chunk_size` should be greater than 0.");
}

/* sum(x^3 * y) */
static int cubes(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_sum(opd_mul(opd_mul(in[0], in[0]), opd_mul(in[0], in[1])));
    return out[0] ? 1 : -1;
}
typedef int (*transform)(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                         const opd_transform_options *options, opd_tensor **outputs, int cap);
/* One transform of another of cubes. */
typedef struct nest { transform inner; const opd_transform_options *o; } nest;
static int nested(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const nest *f = (const nest *)user;
    return f->inner(cubes, NULL, in, n, f->o, out, OPD_TRANSFORM_OUTPUTS);
}
TEST(hessians) {
    const opd_transform_options o = options_of(both_inputs, 2, 0);
    const transform kinds[] = {opd_jacrev, opd_jacfwd, opd_grad};
    opd_tensor *in[2], *h[MOST], *other[MOST];
    int i, k, b;
    in[0] = vec(xs, 3);
    in[1] = vec(ys, 3);
    CHECK_INT(opd_hessian(cubes, NULL, in, 2, &o, h, MOST), 4);
    CHECK(near_all(h[0], opd_diag(opd_mul(num(6), opd_mul(in[0], in[1]))), 1e-12));
    CHECK(near_all(h[1], opd_diag(opd_mul(num(3), opd_mul(in[0], in[0]))), 1e-12));
    CHECK(near_all(h[2], h[1], 1e-12) && near_all(h[3], opd_zeros_like(h[0]), 0));
    for (i = 0; i < 3; i++) {
        for (k = 0; k < 2; k++) {
            nest f = {kinds[i], &o};
            CHECK_INT(kinds[k](nested, &f, in, 2, &o, other, MOST), 4);
            for (b = 0; b < 4; b++) { CHECK(near_all(other[b], h[b], 1e-12)); CHECK(!opd_tensor_requires_grad(other[b])); }
        }
    }
}

static int product(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    return opd_hvp(cubes, user, in, in, 2, out, NULL, OPD_TRANSFORM_OUTPUTS);
}
/* Products with a vector are those with the whole Hessian, also inside vmap, with parts of the vector, and recorded. */
TEST(hessian_vector_products) {
    const opd_transform_options o = options_of(both_inputs, 2, 0);
    const double vs[] = {0.5, -2, 3}, ws[] = {1, 0.25, -1};
    opd_tensor *in[2], *v[2], *h[MOST], *out[MOST], *grads[MOST], *want[MOST];
    in[0] = vec(xs, 3), in[1] = vec(ys, 3);
    v[0] = vec(vs, 3), v[1] = vec(ws, 3);
    CHECK_INT(opd_hessian(cubes, NULL, in, 2, &o, h, MOST), 4);
    CHECK_INT(opd_grad(cubes, NULL, in, 2, &o, want, MOST), 2);
    CHECK_INT(opd_hvp(cubes, NULL, in, v, 2, out, grads, MOST), 2);
    for (int i = 0; i < 2; i++) {
        CHECK(near_all(out[i], opd_add(opd_mv(h[2 * i], v[0]), opd_mv(h[2 * i + 1], v[1])), 1e-12));
        CHECK(near_all(grads[i], want[i], 1e-12) && !opd_tensor_requires_grad(out[i]));
    }
    v[1] = NULL;
    CHECK_INT(opd_hvp(cubes, NULL, in, v, 2, out, NULL, MOST), 2);
    for (int i = 0; i < 2; i++) { CHECK(near_all(out[i], opd_mv(h[2 * i], v[0]), 1e-12)); }
    opd_tensor *rows[2] = {opd_stack(OPD_TENSORS(in[0], in[1]), 0), opd_stack(OPD_TENSORS(in[1], in[0]), 0)};
    CHECK_INT(opd_vmap(product, NULL, rows, 2, NULL, out, MOST), 2);
    CHECK_INT(product(NULL, in, 2, want), 2);
    CHECK(near_all(opd_select(out[0], 0, 0), want[0], 1e-12) && near_all(opd_select(out[1], 0, 0), want[1], 1e-12));
    opd_graph *graph = opd_graph_trace(product, NULL, in, 2, NULL);
    CHECK_INT(opd_graph_run(graph, in, 2, out, MOST), 2);
    CHECK(near_all(out[0], want[0], 1e-12) && near_all(out[1], want[1], 1e-12));
    opd_graph_free(graph);
    CHECK_OK();
    CHECK_INT(opd_hvp(cubes, NULL, in, NULL, 2, out, NULL, MOST), -1);
    CHECK(out[0] == NULL);
    opd_error_clear();
    CHECK_INT(opd_hvp(NULL, NULL, in, v, 2, out, NULL, MOST), -1);
    opd_error_clear();
    CHECK_INT(opd_hvp(cubes, NULL, in, v, 0, out, NULL, MOST), -1);
    opd_error_clear();
    CHECK_INT(opd_hvp(cubes, NULL, in, v, 2, NULL, NULL, MOST), -1);
    opd_error_clear();
    CHECK_INT(opd_hvp(cubes, NULL, in, v, 2, out, NULL, 1), -1);      /* no room */
    opd_error_clear();
}

//-- writes, modes ------------------------------------------------------------------------------------------------------

static opd_tensor *mul_to(opd_tensor *a, opd_tensor *b) {
    static opd_op *op;
    return OPD_CALL(OPD_OP(&op, "aten::mul_.Tensor"), a, b);
}
typedef struct writing { char how; opd_tensor *other; transform inner; } writing;
static int writes(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const writing *w = (const writing *)user;
    opd_tensor *t;
    switch (w->how) {
    case 'c': (void)mul_to(w->other, num(2)); break;                       /* what is captured */
    case 'v': (void)mul_to(opd_select(w->other, 0, 0), num(2)); break;     /* a view of it */
    case 'd': (void)mul_to(w->other, in[0]); break;                        /* by what has a derivative */
    case 'e': (void)mul_to(opd_select(w->other, 0, 0), opd_select(in[0], 0, 0)); break;
    case 'i': (void)mul_to(in[n - 1], num(2)); break;                      /* an input */
    case 'm': t = opd_clone(in[0]); (void)mul_to(t, in[0]); out[0] = opd_sum(t); return 1;     /* what is made here: x^2 */
    case 'n': { OPD_NO_GRAD { t = opd_mul(in[0], in[0]); } out[0] = opd_sum(opd_mul(t, in[0])); return 1; }
    case 'r': (void)opd_tensor_set_requires_grad(opd_clone(in[0]), true); break;
    case 'b': (void)opd_backward(opd_sum(in[0])); break;
    case 't': (void)opd_tensor_retain_grad(opd_mul(in[0], in[0])); break;
    default: break;
    }
    out[0] = opd_sum(opd_mul(in[0], w->other));
    return out[0] ? 1 : -1;
}
static int writes_inside(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return ((const writing *)user)->inner(writes, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
/* The sum of exp(x); of (log sigmoid x)^2; of squares of all inputs; no rows of x. */
static int sum_exp(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_sum(opd_exp(in[0]));
    return out[0] ? 1 : -1;
}
static int hessian_exp(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_hessian(sum_exp, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
static int log_sigmoid_squared(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_sum(opd_square(opd_log_sigmoid(in[0])));
    return out[0] ? 1 : -1;
}
static int sum_squares(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_add(opd_sum(opd_square(in[0])), opd_sum(opd_square(in[1])));
    return out[0] ? 1 : -1;
}
static int no_rows(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_narrow(in[0], 0, 0, 0);
    return out[0] ? 1 : -1;
}
TEST(derivatives_through_layers_around) {
    const double v[] = {1.5, -0.5};
    opd_tensor *x = vec(v, 2), *w = vec(v, 2), *in[2], *out[4];
    int64_t i, k;
    /* forward over forward over reverse: views of tangents that have more examples than what they belong to */
    CHECK_INT(opd_jacfwd(hessian_exp, NULL, &x, 1, NULL, out, 4), 1);
    CHECK_INT(opd_ndim(out[0]), 3);
    for (i = 0; i < 8; i++) { CHECK_NEAR(at(out[0], i), i == 0 ? exp(1.5) : i == 7 ? exp(-0.5) : 0, 1e-12); }
    /* the rule of log_sigmoid's derivative keeps to its formula */
    CHECK_INT(opd_hessian(log_sigmoid_squared, NULL, &x, 1, NULL, out, 4), 1);
    for (i = 0; i < 2; i++) {
        const double s = 1 / (1 + exp(-v[i])), y = log(s);
        CHECK_NEAR(at(out[0], 3 * i), 2 * ((1 - s) * (1 - s) - y * s * (1 - s)), 1e-12);
    }
    /* a gradient has a history only where it leads to something outside itself */
    (void)opd_tensor_set_requires_grad(w, true);
    in[0] = x;
    in[1] = w;
    {
        static const int both[] = {0, 1};
        opd_transform_options o;
        memset(&o, 0, sizeof o);
        o.argnums = both;
        o.nargnums = 2;
        CHECK_INT(opd_grad(sum_squares, NULL, in, 2, &o, out, 4), 2);
        CHECK(!opd_tensor_requires_grad(out[0]) && opd_tensor_requires_grad(out[1]));
        CHECK_NEAR(at(out[0], 0), 3, 1e-12);
        CHECK_NEAR(at(out[1], 1), -1, 1e-12);
    }
    /* one by one, of no elements */
    for (k = 0; k < 2; k++) {
        opd_transform_options o;
        memset(&o, 0, sizeof o);
        o.chunk_size = k;
        CHECK_INT(opd_jacrev(no_rows, NULL, &x, 1, &o, out, 4), 1);
        CHECK_INT(opd_ndim(out[0]), 2);
        CHECK(opd_ok() && opd_sizes(out[0])[0] == 0 && opd_sizes(out[0])[1] == 2);
    }
    /* no examples */
    in[0] = opd_narrow(mat(v, 1, 2), 0, 0, 0);
    CHECK_INT(opd_vmap(hessian_exp, NULL, in, 1, NULL, out, 4), 1);
    CHECK_OK();
    CHECK(opd_ok() && opd_ndim(out[0]) == 3 && opd_sizes(out[0])[0] == 0 && opd_sizes(out[0])[2] == 2);
}

TEST(writes_inside) {
    const transform kinds[] = {opd_grad, opd_jacrev, opd_jacfwd};
    const opd_transform_options o = options_of(both_inputs, 1, 0);
    opd_tensor *in[2], *out[MOST], *w = vec(ys, 3);
    writing f = {'c', w, NULL};
    int i, k;
    for (i = 0; i < 3; i++) {
        in[0] = vec(xs, 3);
        in[1] = vec(ys, 3);
        for (k = 0; k < 4; k++) {
            f.how = "cvde"[k];
            f.inner = kinds[i];
            FAILS(kinds[i](writes, &f, in, 1, &o, out, 1), OPD_ERROR_AUTOGRAD, "that would mutate a captured Tensor");
            if (k < 2) { FAILS(opd_vmap(writes_inside, &f, in, 1, NULL, out, MOST), OPD_ERROR_AUTOGRAD, "that would mutate a captured Tensor"); }
        }
        CHECK(near_all(w, vec(ys, 3), 0));
        f.how = 'i';                              /* written, as it is an input */
        CHECK_INT(kinds[i](writes, &f, in, 2, &o, out, 1), 1);
        CHECK(near_all(out[0], w, 1e-12) && near_all(in[1], opd_mul(w, num(2)), 0));
        f.how = 'm';
        CHECK_INT(kinds[i](writes, &f, in, 1, &o, out, 1), 1);
        CHECK(near_all(out[0], opd_mul(in[0], num(2)), 1e-12));
        f.how = 'r';
        FAILS(kinds[i](writes, &f, in, 1, &o, out, 1), OPD_ERROR_AUTOGRAD, "opd_tensor_set_requires_grad cannot be called inside");
        f.how = 'b';
        FAILS(kinds[i](writes, &f, in, 1, &o, out, 1), OPD_ERROR_AUTOGRAD, "opd_backward cannot be called inside of a function that opd_grad");
        f.how = 't';
        FAILS(kinds[i](writes, &f, in, 1, &o, out, 1), OPD_ERROR_AUTOGRAD, "opd_tensor_retain_grad cannot be called inside");
        f.how = 'n';                              /* grad mode off inside is obeyed by tapes, forward mode has its own */
        CHECK_INT(kinds[i](writes, &f, in, 1, &o, out, 1), 1);
        CHECK(near_all(out[0], opd_mul(opd_mul(in[0], in[0]), num(i == 2 ? 3 : 1)), 1e-12));
        OPD_NO_GRAD {                             /* outside it does not matter */
            CHECK_INT(kinds[i](writes, &f, in, 1, &o, out, 1), 1);
            CHECK(!opd_grad_mode_enabled());
        }
        CHECK(near_all(out[0], opd_mul(opd_mul(in[0], in[0]), num(i == 2 ? 3 : 1)), 1e-12));
    }
}

//-- custom functions and custom operators -----------------------------------------------------------------------------

/* user * x^3 with a derivative that says how often it ran; what is saved is an input and the output. */
static int cube_forwards, cube_backwards, cube_rules;
static int cube_forward(opd_context *ctx) {
    opd_tensor *x = opd_context_tensor(ctx, 0);
    cube_forwards++;
    return opd_context_return(ctx, opd_mul(x, opd_mul(x, x)));
}
static int cube_setup(opd_context *ctx) {
    opd_tensor *saved[2];
    saved[0] = opd_context_tensor(ctx, 0);
    saved[1] = opd_context_output(ctx, 0).u.t;
    return opd_context_save_for_backward(ctx, saved, 2) || opd_context_save_for_forward(ctx, saved, 2);
}
static int cube_backward(opd_backward_call *bw) {           /* 3 y / x */
    opd_context *ctx = opd_bw_context(bw);
    cube_backwards++;
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_div(opd_mul_Scalar(opd_context_saved(ctx, 1), OPD_V(3)),
                                                                    opd_context_saved(ctx, 0))));
}
static int cube_jvp(opd_jvp_call *jv) {
    opd_tensor *x = opd_jvp_tensor(jv, 0);
    return opd_jvp_return(jv, 0, opd_mul(opd_jvp_tangent(jv, 0), opd_mul_Scalar(opd_mul(x, x), OPD_V(3))));
}
static int cube_rule(void *user, const opd_value *in, const int *in_dims, int n, opd_value *out, int *out_dims) {
    (void)user;
    CHECK(n == 1 && in_dims[0] >= 0 && opd_batch_size() >= 0);
    cube_rules++;
    out[0] = opd_value_tensor(opd_pow_Tensor_Scalar(in[0].u.t, OPD_V(3)));
    out_dims[0] = in_dims[0];
    return out[0].u.t ? 1 : -1;
}
static opd_autograd_function cube_of(bool rule, bool split) {
    opd_autograd_function f;
    memset(&f, 0, sizeof f);
    f.name = "Cube";
    f.forward = cube_forward;
    f.setup_context = split ? cube_setup : NULL;
    f.backward = cube_backward;
    f.jvp = cube_jvp;
    f.vmap = rule ? cube_rule : NULL;
    return f;
}
/* The sum of it. */
static int cube_sum(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = opd_sum(OPD_APPLY((const opd_autograd_function *)user, in[0]));
    return out[0] ? 1 : -1;
}
static int cube_grad(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(cube_sum, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
static int cube_grad_sum(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    if (cube_grad(user, in, n, out) < 0) { return -1; }
    out[0] = opd_sum(out[0]);
    return out[0] ? 1 : -1;
}
static int cube_hessian_diagonal(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(cube_grad_sum, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
static int cube_all(void *user, opd_tensor *const *in, int n, opd_tensor **out) {      /* of rows: vmap, summed */
    if (opd_vmap(cube_sum, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS) < 0) { return -1; }
    out[0] = opd_sum(out[0]);
    return out[0] ? 1 : -1;
}
static int cube_all_grad_sum(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    if (opd_vmap(cube_grad, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS) < 0) { return -1; }
    out[0] = opd_sum(out[0]);
    return out[0] ? 1 : -1;
}
static int jvp_ones(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *ones = opd_ones_like(in[0]), *y[MOST];
    (void)n;
    return opd_jvp(cube_all, user, in, &ones, 1, NULL, y, out, MOST);
}
static int jvp_each(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *ones = opd_ones_like(in[0]), *y[MOST];
    (void)n;
    return opd_jvp(cube_sum, user, in, &ones, 1, NULL, y, out, MOST);
}
TEST(custom_functions) {
    const double v[] = {0.5, 1, 1.5, 2, 2.5, 3};
    int rule;
    for (rule = 0; rule < 2; rule++) {
        opd_autograd_function f = cube_of(rule != 0, true), whole = cube_of(false, false);
        opd_tensor *x = mat(v, 3, 2), *d1 = opd_mul_Scalar(opd_mul(x, x), OPD_V(3)), *d2 = opd_mul_Scalar(x, OPD_V(6));
        opd_tensor *row = vec(v, 6), *out[MOST];
        cube_forwards = cube_backwards = cube_rules = 0;
        CHECK_INT(opd_grad(cube_sum, &f, &x, 1, NULL, out, MOST), 1);
        CHECK(near_all(out[0], d1, 1e-12));
        CHECK_INT(cube_rules, 0);
        CHECK_INT(opd_vmap(cube_grad, &f, &x, 1, NULL, out, MOST), 1);
        CHECK(near_all(out[0], d1, 1e-12));
        CHECK_INT(cube_forwards, rule ? 1 : 2);
        CHECK_INT(cube_backwards, 2);
        CHECK_INT(cube_rules, rule);
        CHECK_INT(opd_vmap(cube_hessian_diagonal, &f, &x, 1, NULL, out, MOST), 1);
        CHECK(near_all(out[0], d2, 1e-12));
        CHECK_INT(opd_grad(cube_all, &f, &x, 1, NULL, out, MOST), 1);
        CHECK(near_all(out[0], d1, 1e-12));
        CHECK_INT(opd_grad(cube_all_grad_sum, &f, &x, 1, NULL, out, MOST), 1);
        CHECK(near_all(out[0], d2, 1e-12));
        CHECK_INT(opd_jacrev(cube_sum, &f, &x, 1, NULL, out, MOST), 1);
        CHECK(near_all(out[0], d1, 1e-12));
        CHECK_INT(opd_jacfwd(cube_sum, &f, &x, 1, NULL, out, MOST), 1);
        CHECK(near_all(out[0], d1, 1e-12));
        CHECK_INT(opd_hessian(cube_sum, &f, &row, 1, NULL, out, MOST), 1);
        CHECK(near_all(out[0], opd_diag(opd_mul_Scalar(row, OPD_V(6))), 1e-12));
        CHECK_INT(opd_jacfwd(jvp_each, &f, &row, 1, NULL, out, MOST), 1);
        CHECK(near_all(out[0], opd_mul_Scalar(row, OPD_V(6)), 1e-12));
        CHECK_INT(jvp_ones(&f, &x, 1, out), 1);
        CHECK_NEAR(at(out[0], 0), opd_item_f64(opd_sum(d1)), 1e-12);
        CHECK_INT(opd_vmap(jvp_each, &f, &x, 1, NULL, out, MOST), 1);
        CHECK(near_all(out[0], opd_sum_dim(d1, OPD_INTS(1), false), 1e-12));
        FAILS(opd_grad(cube_sum, &whole, &x, 1, NULL, out, MOST), OPD_ERROR_AUTOGRAD, "must have a setup_context");
        FAILS(opd_vmap(cube_sum, &whole, &x, 1, NULL, out, MOST), OPD_ERROR_AUTOGRAD, "must have a setup_context");
        x = opd_zeros(OPD_INTS(0, 2), OPD_FLOAT64);
        CHECK_INT(opd_grad(cube_all, &f, &x, 1, NULL, out, MOST), 1);
        CHECK(near_all(out[0], x, 0));
    }
}

//-- nested transforms -------------------------------------------------------------------------------------------------

/* Steps from the outside in, each a function of the one behind it, for functions that work element by element: g grad of
   the sum, v vjp, j jvp, l linearize, r jacrev, f jacfwd: all give the derivative; m is vmap.  At the end sin. */
static int steps(void *user, opd_tensor *const *in, int n, opd_tensor **out);
static int steps_sum(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    if (steps(user, in, n, out) < 0) { return -1; }
    out[0] = opd_sum(out[0]);
    return out[0] ? 1 : -1;
}
static int steps(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const char *at_ = (const char *)user;
    void *inner = (void *)(uintptr_t)(at_ + 1);
    opd_tensor *y[MOST], *ones = opd_ones_like(in[0]);
    opd_derivative *d;
    switch (*at_) {
    case 'g': return opd_grad(steps_sum, inner, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
    case 'v': return opd_vjp(steps, inner, in, n, NULL, y, MOST, &d) < 0 ? -1 : opd_derivative_call(d, &ones, 1, 0, out, OPD_TRANSFORM_OUTPUTS);
    case 'j': return opd_jvp(steps, inner, in, &ones, n, NULL, y, out, MOST);
    case 'l': return opd_linearize(steps, inner, in, n, NULL, y, MOST, &d) < 0 ? -1 : opd_derivative_call(d, &ones, 1, 0, out, OPD_TRANSFORM_OUTPUTS);
    case 'r': return opd_jacrev(steps_sum, inner, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
    case 'f': return opd_jacfwd(steps_sum, inner, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
    case 'm': return opd_vmap(steps, inner, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
    default: out[0] = opd_sin(in[0]); return out[0] ? 1 : -1;
    }
}
TEST(three_derivatives_and_a_vmap) {
    static const char kinds[] = "gvjlrf";
    const double v[] = {0.5, -1.5};
    opd_tensor *x = vec(v, 2), *want = opd_neg(opd_cos(x)), *w = opd_tensor_set_requires_grad(vec(v, 2), true);
    int i, k;
    for (i = 0; i < 6 * 6 * 6; i++) {
        const int code[3] = {i % 6, i / 6 % 6, i / 36};
        for (k = 0; k < 5; k++) {
            OPD_SCOPE {
                char text[8], *t = text;
                opd_tensor *out[MOST], *g, *sum;
                int j;
                for (j = 0; j < 4; j++) {
                    if (j == k) { *t++ = 'm'; }
                    if (j < 3) { *t++ = kinds[code[j]]; }
                }
                *t = 0;
                if (!(opd_ok() && steps(text, &x, 1, out) == 1 && near_all(out[0], want, 1e-9) && !opd_tensor_requires_grad(out[0]))) {
                    printf("%s: %s\n", text, opd_error_message());
                    CHECK(!"another derivative");
                    opd_error_clear();
                }
                if (i % 7) { continue; }                  /* the tape outside goes on: the fourth */
                sum = steps(text, &w, 1, out) == 1 ? opd_sum(out[0]) : NULL;
                if (!(sum && near_all(out[0], want, 1e-9) && opd_tensor_requires_grad(out[0]) &&
                      opd_autograd_grad(&sum, 1, &w, 1, NULL, &g) == 0 && near_all(g, opd_sin(x), 1e-9))) {
                    printf("%s, tape: %s\n", text, opd_error_message());
                    CHECK(!"another derivative");
                    opd_error_clear();
                }
            }
        }
    }
    CHECK_INT(opd_transform_depth(), 0);
}

//-- failing functions -------------------------------------------------------------------------------------------------

/* The step-th of the steps inside fails. */
typedef struct failing { int step, at; } failing;
static bool step_of(failing *f) { return ++f->at == f->step ? opd_fail(OPD_ERROR_USER, "step %d", f->step) == 0 : opd_ok(); }
static int fails(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    failing *f = (failing *)user;
    opd_autograd_function cube = cube_of(false, true);
    opd_tensor *x = in[0], *y;
    (void)n;
    if (!step_of(f)) { return -1; }
    y = opd_mul(opd_sin(x), x);
    if (!step_of(f)) { return -1; }
    (void)mul_to(y, x);
    if (!step_of(f)) { return -1; }
    y = opd_add(y, OPD_APPLY(&cube, x));
    if (!step_of(f)) { return -1; }
    out[0] = opd_sum(y);
    return out[0] ? 1 : -1;
}
static int fails_grad(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    if (!step_of((failing *)user) || opd_grad(fails, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS) < 0) { return -1; }
    return step_of((failing *)user) ? 1 : -1;
}
static int fails_jvp(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *ones = opd_ones_like(in[0]), *y[MOST];
    if (!ones || !step_of((failing *)user) || opd_jvp(fails_grad, user, in, &ones, n, NULL, y, out, MOST) < 0) { return -1; }
    return step_of((failing *)user) ? 1 : -1;
}
static int fails_all(failing *f, opd_tensor *x, opd_tensor **out) {
    opd_tensor *h[MOST], *v;
    opd_derivative *d;
    f->at = 0;
    if (opd_vmap(fails_jvp, f, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS) < 0 || opd_hessian(fails, f, &x, 1, NULL, h, MOST) < 0) { return -1; }
    if (opd_vjp(fails, f, &x, 1, NULL, h, MOST, &d) < 0 || opd_derivative_call(d, h, 1, 0, &v, 1) < 0) { return -1; }
    return opd_linearize(fails, f, &x, 1, NULL, h, MOST, &d) < 0 || opd_derivative_call(d, &x, 1, 0, &v, 1) < 0 ? -1 : 0;
}
TEST(every_step_fails) {
    const double v[] = {0.5, 1, 1.5, 2};
    failing f = {0, 0};
    opd_tensor *x = mat(v, 2, 2), *out[MOST];
    int steps, i;
    CHECK_INT(fails_all(&f, x, out), 0);
    steps = f.at;
    CHECK(steps > 20);
    for (i = 1; i <= steps; i++) {
        char text[40];
        OPD_SCOPE {
            f.step = i;
            (void)snprintf(text, sizeof text, "step %d", i);
            FAILS(fails_all(&f, x, out), OPD_ERROR_USER, text);
            CHECK(opd_forward_grad_enabled());
            CHECK_INT(opd_dual_level_begin(), 0);       /* no level is open */
            CHECK_INT(opd_dual_level_end(0), 0);
        }
    }
    f.step = 0;
    CHECK_INT(fails_all(&f, x, out), 0);
}
static int fails_none(void *arg) {
    const double v[] = {0.5, 1, 1.5, 2};
    failing f = {0, 0};
    opd_tensor *out[MOST];
    const int rc = fails_all(&f, mat(v, 2, 2), out);
    CHECK(opd_transform_depth() == 0 && opd_grad_mode_enabled() && !opd_saved_hooks_disabled());
    (void)arg;
    return rc;
}
TEST(every_allocation_fails) {
    CHECK_INT(fails_none(NULL), 0);
    CHECK(check_allocations(fails_none, NULL, "every transform", 2000, false) > 500);
}

//-- every operator ----------------------------------------------------------------------------------------------------

/* A call of an operator as a function of the tensors that it is differentiated by. */
typedef struct applied { op_case *c; opd_tensor *in[MOST_INPUTS]; int n; } applied;
static int apply(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const applied *a = (const applied *)user;
    opd_tensor *lists[OPD_MAX_ARGS][CASE_LIST], *r[MOST_RESULTS];
    opd_value args[OPD_MAX_ARGS], rets[MOST_RESULTS];
    int i, j, m, k = 0;
    int32_t e;
    memcpy(args, a->c->args, sizeof args);
    for (i = 0; i < a->c->nargs; i++) {
        for (j = 0; j < n && args[i].tag == OPD_TAG_TENSOR; j++) {
            if (args[i].u.t == a->in[j]) { args[i].u.t = in[j]; break; }
        }
        for (e = 0; args[i].tag == OPD_TAG_TENSORS && e < args[i].n; e++) {
            lists[i][e] = args[i].u.tensors[e];
            for (j = 0; j < n; j++) {
                if (lists[i][e] == a->in[j]) { lists[i][e] = in[j]; break; }
            }
        }
        if (args[i].tag == OPD_TAG_TENSORS) { args[i].u.tensors = lists[i]; }
    }
    if (args[0].tag == OPD_TAG_TENSOR && opd_schema_is_mutable(opd_op_schema(a->c->op))) { args[0].u.t = opd_clone(args[0].u.t); }
    if ((args[0].tag == OPD_TAG_TENSOR && !args[0].u.t) || opd_call_all((opd_op *)(uintptr_t)a->c->op, rets, args, a->c->nargs)) { return -1; }
    m = results_of(a->c->op, rets, r);
    if (m > 1 && first_result_only(a->c->op)) { m = 1; }
    for (i = 0; i < m; i++) {
        if (r[i] && opd_dtype(r[i]) == OPD_FLOAT64) { out[k++] = r[i]; }
    }
    if (k == 0) { out[k++] = opd_zeros(OPD_INTS(1), OPD_FLOAT64); }
    return k;
}
/* jacrev is jacfwd, for whole bases and in chunks; and the tape leaves no trace. */
static void test_operator(void *arg) {
    static op_case c;
    const opd_op *op = (const opd_op *)arg;
    const opd_op_desc *card = opd_op_card(op);
    static const int all[MOST_INPUTS] = {0, 1, 2, 3};
    const char *text;
    int index = 0;
    CHECK_OR_RETURN(card && cases_of(op));
    CHECK(true);
    if (card->backward == OPD_NOT_DIFFERENTIABLE || is_random(op) || opd_schema_is_mutable(opd_op_schema(op))) { return; }
    text = cases_of(op);
    do {
        bool more = false;
        OPD_SCOPE {
            opd_tensor *rev[OPD_TRANSFORM_OUTPUTS], *fwd[OPD_TRANSFORM_OUTPUTS];
            opd_transform_options o;
            applied a;
            int i, n, m;
            int32_t k;
            memset(&a, 0, sizeof a);
            a.c = &c;
            c.op = op;
            c.dtype = OPD_FLOAT64;
            c.layout = CASE_CONTIGUOUS;
            c.smooth = true;
            c.meta = false;
            (void)snprintf(what, sizeof what, "    case %d \"%.*s\"", index, (int)strcspn(text + (*text == ';'), ";"), text + (*text == ';'));
            more = case_read_next(&c, &text);
            for (i = 0; more && i < c.nargs; i++) {
                const opd_value *v = &c.args[i];
                if (constant_argument(op, opd_schema_arg_name(opd_op_schema(op), i))) { continue; }
                for (k = 0; k < (v->tag == OPD_TAG_TENSORS ? v->n : v->tag == OPD_TAG_TENSOR); k++) {
                    opd_tensor *t = v->tag == OPD_TAG_TENSORS ? v->u.tensors[k] : v->u.t;
                    if (t && opd_dtype(t) == OPD_FLOAT64 && a.n < 4) { a.in[a.n++] = t; }
                }
            }
            o = options_of(all, a.n, 0);
            if (more && a.n) {
                n = opd_jacrev(apply, &a, a.in, a.n, &o, rev, OPD_TRANSFORM_OUTPUTS);
                if (went_well(n)) {
                    o.chunk_size = index % 2 ? 3 : 0;
                    m = opd_jacfwd(apply, &a, a.in, a.n, &o, fwd, OPD_TRANSFORM_OUTPUTS);
                    if (went_well(m) && say(m == n, "another number of blocks")) {
                        for (i = 0; i < n; i++) {
                            if (say(same_shape(rev[i], fwd[i]), "another shape")) { same_values(opd_contiguous(rev[i]), opd_contiguous(fwd[i]), 1e-9); }
                            (void)say(!opd_tensor_requires_grad(rev[i]) && !opd_tensor_requires_grad(fwd[i]), "a Jacobian that requires grad");
                        }
                    }
                }
            }
            CHECK_INT(opd_transform_depth(), 0);
            opd_error_clear();
        }
        if (!more) { break; }
        index++;
    } while (*text);
}
//-- tensors from outside --------------------------------------------------------------------------------------------------

static int inner_product(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_sum(opd_mul(opd_exp(in[0]), in[1]));
    return 1;
}
static int of_inner_gradients(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    static const int both[] = {0, 1};
    opd_tensor *o[4];
    opd_transform_options options;
    (void)user;
    memset(&options, 0, sizeof options);
    options.argnums = both;
    options.nargnums = 2;
    if (opd_grad_and_value(inner_product, NULL, in, n, &options, o, 4) < 0) { return -1; }
    out[0] = opd_sum(opd_add(opd_mul(o[0], o[1]), o[2]));
    return 1;
}
TEST(inner_layers_are_nothing_outside) {
    static const int second[] = {1};
    const int64_t three = 3;
    opd_tensor *in[2], *o[4];
    opd_transform_options options;
    int round, i, n;
    memset(&options, 0, sizeof options);
    options.argnums = second;
    options.nargnums = 1;
    in[0] = opd_ones(opd_ints_of(&three, 1), OPD_FLOAT64);
    in[1] = opd_ones(opd_ints_of(&three, 1), OPD_FLOAT64);
    for (round = 0; round < 2; round++) {         /* then with something outside that requires grad */
        (void)opd_tensor_set_requires_grad(in[0], round == 1);
        n = opd_grad_and_value(of_inner_gradients, NULL, in, 2, &options, o, 4);
        CHECK_INT(n, 2);
        for (i = 0; i < n; i++) { CHECK_INT(opd_tensor_requires_grad(o[i]), round); }
    }
}
static int largest_and_exp(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_argmax(in[0], OPD_NONE, false);
    out[1] = opd_exp(in[0]);
    return 2;
}
TEST(integers_have_tangents_of_zeros) {
    const int64_t three = 3;
    opd_tensor *x = opd_ones(opd_ints_of(&three, 1), OPD_FLOAT64), *out[2], *tangents[2];
    CHECK_INT(opd_jvp(largest_and_exp, NULL, &x, &x, 1, NULL, out, tangents, 2), 2);
    CHECK(opd_dtype(tangents[0]) == OPD_INT64 && opd_item_i64(tangents[0]) == 0);
    CHECK_NEAR(opd_item_f64(opd_select(tangents[1], 0, 1)), 2.718281828459045, 1e-12);
}


/* More results than a transform may give are an error before anything is written. */
static int sum_of_squares(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    int i;
    (void)user;
    for (i = 1, out[0] = opd_mul(in[0], in[0]); i < n; i++) { out[0] = opd_add(out[0], opd_mul(in[i], in[i])); }
    out[1] = in[0];
    return 2;
}
TEST(as_many_results_as_a_transform_may_give) {
    static const int counts[] = {1, 62, 63, 64, 65, 80, 200};
    opd_tensor *in[200], *out[200];
    int by[200], i, way;
    size_t c;
    for (i = 0; i < 200; i++) { in[i] = num(i); by[i] = i; }
    for (c = 0; c < sizeof counts / sizeof *counts; c++) {
        for (way = 0; way < 5; way++) {
            const int n = counts[c], most = n + 1 + (way == 1);
            opd_transform_options o;
            int got;
            memset(&o, 0, sizeof o);
            o.argnums = by;
            o.nargnums = n;
            o.naux = 1;
            got = way == 0 ? opd_grad(sum_of_squares, NULL, in, n, &o, out, 200)
                : way == 1 ? opd_grad_and_value(sum_of_squares, NULL, in, n, &o, out, 200)
                : way == 2 ? opd_jacrev(sum_of_squares, NULL, in, n, &o, out, 200)
                : way == 3 ? opd_jacfwd(sum_of_squares, NULL, in, n, &o, out, 200)
                : opd_hessian(sum_of_squares, NULL, in, n, &o, out, 200);
            if (way == 4 ? n > 1 : most > OPD_TRANSFORM_OUTPUTS) {
                CHECK_INT(got, -1);
                CHECK_ERROR(OPD_ERROR_ARGUMENT, "results, but at most 64 are allowed");
                continue;
            }
            CHECK_OK();
            CHECK_INT(got, way == 4 ? 2 : most);
            if (way < 4) { CHECK_NEAR(at(out[n - 1], 0), 2.0 * (n - 1), 0); }
        }
    }
    memset(out, 0, sizeof out);                   /* whose results go to the program has no limit */
    {
        opd_derivative *v = NULL;
        CHECK_INT(opd_vjp(sum_of_squares, NULL, in, 200, NULL, out, 200, &v), 2);
        out[0] = out[1] = num(1);
        in[0] = out[0];
        CHECK_INT(opd_derivative_call(v, in, 2, 0, out, 200), 200);
        CHECK_NEAR(at(out[199], 0), 398, 0);
    }
}

/* A function whose number of outputs changes is told, whichever transform calls it several times. */
static int nchanging;
static int changing(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_sin(in[0]);
    out[1] = opd_cos(in[0]);
    return nchanging++ ? 1 : 2;
}
static int growing(void *user, opd_tensor *const *in, int n, opd_tensor **out) { return 3 - changing(user, in, n, out); }
static int changing_forward(opd_context *ctx) {
    opd_tensor *out[2] = {NULL, NULL}, *in = opd_context_tensor(ctx, 0);
    const int n = changing(NULL, &in, 1, out);
    int i;
    for (i = 0; i < n; i++) { if (opd_context_return(ctx, out[i])) { return -1; } }
    return 0;
}
static int changing_setup(opd_context *ctx) { (void)ctx; return 0; }
static int changing_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
/* Calls a custom function of one tensor with at most 70 outputs.  Sets *out to the first output. */
static int apply_custom(const char *name, opd_setup_fn forward, opd_tensor *in, opd_tensor **out) {
    opd_autograd_function f;
    opd_value v = opd_value_tensor(in), o[70];
    memset(&f, 0, sizeof f);
    f.name = name;
    f.forward = forward;
    f.setup_context = changing_setup;
    f.backward = changing_backward;
    if (opd_autograd_apply(&f, &v, 1, o, 70) < 0) { return -1; }
    *out = o[0].u.t;
    return 1;
}
static int changing_function(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    return apply_custom("Changing", changing_forward, in[0], out);
}
TEST(the_number_of_outputs_changes) {
    const double v[4] = {1, 2, 3, 4};
    opd_tensor *x = vec(v, 4), *w = opd_tensor_set_requires_grad(vec(v, 4), true), *out[MOST];
    opd_transform_options o;
    opd_vmap_options m;
    opd_derivative *d = NULL;
    memset(&o, 0, sizeof o);
    memset(&m, 0, sizeof m);
    o.chunk_size = m.chunk_size = 2;
    nchanging = 0;
    CHECK_INT(opd_jacfwd(changing, NULL, &x, 1, &o, out, MOST), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "returned 2 outputs for one chunk and 1 for another");
    o.chunk_size = 1;
    nchanging = 0;
    CHECK_INT(opd_jacfwd(changing, NULL, &x, 1, &o, out, MOST), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "returned 2 outputs for one chunk and 1 for another");
    nchanging = 0;
    CHECK_INT(opd_vmap(changing, NULL, &x, 1, &m, out, MOST), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "2 outputs for one chunk and 1 for another");
    nchanging = 0;
    CHECK_INT(opd_vmap(changing_function, NULL, &w, 1, NULL, out, MOST), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "Changing returned 2 outputs for one example and 1 for another");
    nchanging = 0;
    CHECK_INT(opd_linearize(growing, NULL, &x, 1, NULL, out, MOST, &d), 1);
    memset(out, 0, sizeof out);
    CHECK_INT(opd_derivative_call(d, &x, 1, 0, out, MOST), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the function returned 1 outputs before, and 2 outputs now");
    CHECK(out[1] == NULL);
}

/* So do outputs of which some examples have none, and more of them than a transform may have. */
static int nsparse;
static bool sparse_many;
static int sparse_forward(opd_context *ctx) {
    int i;
    for (i = 0; i < (sparse_many ? 70 : 1); i++) {
        opd_tensor *y = opd_sin(opd_context_tensor(ctx, 0));
        if (opd_context_return_value(ctx, nsparse++ && !sparse_many ? opd_value_int(7) : opd_value_tensor(y))) { return -1; }
    }
    return 0;
}
static int sparse_function(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    return apply_custom("Sparse", sparse_forward, in[0], out);
}
TEST(outputs_that_some_examples_have) {
    const double v[4] = {1, 2, 3, 4};
    opd_tensor *w = opd_tensor_set_requires_grad(vec(v, 4), true), *out[1];
    nsparse = 0;
    sparse_many = false;
    CHECK_INT(opd_vmap(sparse_function, NULL, &w, 1, NULL, out, 1), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "is a Tensor for one example and not for another");
    sparse_many = true;
    CHECK_INT(opd_vmap(sparse_function, NULL, &w, 1, NULL, out, 1), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "returned 70 outputs, but at most 64 are allowed under vmap");
}

/* Ready-made forward formulas are those of operators. */
static int ready_made(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    static const opd_jvp_fn rules[] = {OPD_JVP_BACKWARD, OPD_JVP_POINTWISE, OPD_JVP_LINEAR};
    opd_autograd_function f;
    opd_value v = opd_value_tensor(in[0]), o[2];
    (void)n;
    memset(&f, 0, sizeof f);
    f.name = "ReadyMade";
    nchanging = 1;
    f.forward = changing_forward;
    f.setup_context = changing_setup;
    f.backward = changing_backward;
    f.jvp = rules[*(int *)user];
    if (opd_autograd_apply(&f, &v, 1, o, 2) < 0) { return -1; }
    out[0] = o[0].u.t;
    return 1;
}
TEST(ready_made_forward_formulas_are_for_operators) {
    opd_tensor *x = num(2), *out[1], *along[1];
    int i;
    for (i = 0; i < 3; i++) {
        CHECK_INT(opd_jvp(ready_made, &i, &x, &x, 1, NULL, out, along, 1), -1);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "are for operators, not for ReadyMade");
    }
}

/* A derivative needs nothing of the options that it was made with. */
static int product_and_sum(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_mul(in[0], in[1]);
    out[1] = opd_add(in[0], in[1]);
    return 2;
}
TEST(options_may_go_when_a_derivative_is_made) {
    int way;
    for (way = 0; way < 2; way++) {
        opd_tensor *in[2], *out[2], *one[1];
        opd_transform_options *o = (opd_transform_options *)calloc(1, sizeof *o);
        int *by = (int *)malloc(sizeof *by);
        opd_derivative *d = NULL;
        in[0] = num(3); in[1] = num(5); one[0] = num(1);
        CHECK_OR_RETURN(o && by);
        *by = -1;
        o->argnums = by;
        o->nargnums = o->naux = 1;
        CHECK_INT(way ? opd_linearize(product_and_sum, NULL, in, 2, o, out, 2, &d) : opd_vjp(product_and_sum, NULL, in, 2, o, out, 2, &d), 2);
        *by = 7;
        memset(o, 0x55, sizeof *o);
        free(by);
        free(o);
        CHECK_INT(opd_derivative_call(d, one, 1, 0, out, 2), 1);
        CHECK_OK();
        CHECK_NEAR(at(out[0], 0), 3, 0);
    }
}

/* What the tape knows of the inputs of a derivative inside of another is the same in anomaly mode. */
static int written_inside(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    if (!opd_add_(in[0], in[0])) { return -1; }
    out[0] = opd_sum(in[0]);
    return 1;
}
static int aux_inside(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    CHECK(opd_tensor_is_leaf(in[0]) && !opd_tensor_grad_fn(in[0]) && opd_tensor_requires_grad(in[0]));
    out[0] = opd_sum(opd_mul(in[0], in[0]));
    out[1] = in[0];
    return 2;
}
static int derived_inside(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_transform_options o;
    opd_tensor *t[2];
    const bool aux = *(int *)user != 0;
    memset(&o, 0, sizeof o);
    o.naux = aux;
    if (opd_grad(aux ? aux_inside : written_inside, NULL, in, n, &o, t, 2) < 0) { return -1; }
    out[0] = opd_sum(aux ? opd_mul(t[0], t[1]) : t[0]);
    return 1;
}
static void say_nothing(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
TEST(inputs_inside_of_a_derivative_in_anomaly_mode) {
    int way, aux;
    opd_log_set(say_nothing, NULL);
    for (way = 0; way < 2; way++) {
        const int was = opd_anomaly_set(way == 1, false);
        opd_tensor *x = num(3), *out[1];
        aux = 0;
        CHECK_INT(opd_grad(derived_inside, &aux, &x, 1, NULL, out, 1), -1);
        CHECK_ERROR(OPD_ERROR_AUTOGRAD, "a leaf tensor that requires grad is being used in an in-place operation");
        aux = 1;
        CHECK_INT(opd_grad(derived_inside, &aux, &x, 1, NULL, out, 1), 1);
        CHECK_NEAR(at(out[0], 0), 12, 0);
        (void)opd_anomaly_set((was & OPD_ANOMALY_ON) != 0, (was & OPD_ANOMALY_NAN) != 0);
    }
    opd_log_set(NULL, NULL);
}

static void add_operators(void) {
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    add_builtin_operators(test_operator, NULL);
}

CHECK_MAIN_ADD(add_operators)
