/* Every operator that has a derivative, with the sample arguments of its descriptor: second derivatives, composed in six
   ways from reverse mode and forward mode.  The ways agree with each other, and at points where the operator is smooth
   also with finite differences.  The points: usual numbers, zeros, ties, equal numbers, one zero, an empty dim.  The
   operator gets its inputs as they are, or as views of them (reshape, t, slice).  Without --whole and without a name, the
   walk visits one of 40 shares of the points.  OPD_COMPOSITIONS_ONLY=name visits only operators whose names contain this
   name. */
#include "../../opdispatch.h"
#include "../cases.h"
#include <math.h>

//-- an operator as a function -----------------------------------------------------------------------------------------

enum { PLAIN, RESHAPED, TURNED, SLICED, VIEWS };
enum { USUAL, ZEROS, EQUAL, TIES, ONE_ZERO, FIRST_ZERO, OTHERS_ZERO, EMPTY, POINTS };
static const char *const view_names[] = {"", " reshaped", " turned", " sliced"};
static const char *const point_names[] = {"", " at zeros", " at equal numbers", " at ties", " with one zero", " with a first input of zeros",
                                          " with other inputs of zeros", " empty"};

/* A case of an operator as a function of its inputs.  Its value is a sum of the results' real parts, with weights, and
   of the squares of their sizes. */
typedef struct subject {
    op_case *c;
    int view, point, n;
    bool squares;                                 /* false: the results are infinite, and only the weighted sum is taken */
    opd_tensor **slots[MOST_INPUTS];
    opd_tensor *in[MOST_INPUTS], *along[MOST_INPUTS];   /* the point, and the direction in which it is differentiated */
} subject;

static bool floating(const opd_tensor *t) { return opd_dtype(t) == OPD_FLOAT64 || opd_dtype(t) == OPD_COMPLEX128; }
/* Returns numbers between -1 and 1 in a tensor like t. */
static opd_tensor *numbers_like(const opd_tensor *t, int seed) {
    opd_tensor *to = opd_tensor_new(opd_ints_of(opd_sizes(t), opd_ndim(t)), opd_dtype(t));
    int64_t i, n = opd_numel(t) * (opd_dtype_is_complex(opd_dtype(t)) ? 2 : 1);
    double *p = to ? (double *)opd_data(to) : NULL;
    for (i = 0; p && i < n; i++) { p[i] = case_random(seed, i) * 2 - 1; }
    return to;
}
static opd_tensor *real_part(opd_tensor *t) { return t && opd_dtype_is_complex(opd_dtype(t)) ? opd_real(t) : t; }
/* Returns the scalar product of two tensors: of complex numbers its real part. */
static opd_tensor *product(opd_tensor *a, opd_tensor *b) {
    return opd_sum(opd_mul(a, opd_dtype_is_complex(opd_dtype(b)) ? opd_conj_physical(b) : b));
}
/* Returns the view of x that equals `like`, the tensor that x was made from (see unviewed). */
static opd_tensor *viewed(opd_tensor *x, int view, const opd_tensor *like) {
    if (view == RESHAPED) { return opd_reshape(x, opd_ints_of(opd_sizes(like), opd_ndim(like))); }
    if (view == TURNED && opd_ndim(x) > 1) { return opd_transpose(x, -1, -2); }
    if (view == SLICED && opd_ndim(x) > 0 && opd_numel(x) > 0) { return opd_narrow(x, -1, 1, opd_size(like, -1)); }
    return x;
}
/* Returns a new tensor of which x is this view. */
static opd_tensor *unviewed(opd_tensor *x, int view) {
    opd_tensor *parts[2];
    if (view == RESHAPED) { return opd_clone(opd_flatten(x, 0, -1)); }
    if (view == TURNED && opd_ndim(x) > 1) { return opd_contiguous(opd_transpose(x, -1, -2)); }
    if (view != SLICED || opd_ndim(x) == 0 || opd_numel(x) == 0) { return x; }
    parts[1] = x;
    parts[0] = opd_narrow(x, -1, 0, 1);
    return opd_cat(opd_tensors_of(parts, 2), -1);
}
/* Calls the operator.  Returns the number of results, or -1 and sets an error. */
static int call_op(subject *s, opd_tensor *const *in, opd_tensor **out) {
    opd_value rets[MOST_RESULTS];
    int i, k, n;
    opd_tensor *kept[MOST_INPUTS];
    for (i = 0; i < s->n; i++) { kept[i] = *s->slots[i]; }
    for (i = 0; i < s->n; i++) { *s->slots[i] = viewed(in[i], s->view, kept[i]); }
    n = !opd_ok() || opd_call_all((opd_op *)(uintptr_t)s->c->op, rets, s->c->args, s->c->nargs) ? -1 : results_of(s->c->op, rets, out);
    for (i = 0; i < s->n; i++) { *s->slots[i] = kept[i]; }
    if (n > 1 && first_result_only(s->c->op)) { n = 1; }
    for (i = k = 0; i < n; i++) { if (floating(out[i])) { out[k++] = out[i]; } }
    return n < 0 ? -1 : k;
}
/* An opd_transform_fn: the function of a subject. */
static int value(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    subject *s = (subject *)user;
    opd_tensor *r[MOST_RESULTS], *sum = NULL, *part;
    int i, m = call_op(s, in, r);
    (void)n;
    for (i = 0; i < m && opd_ok(); i++) {
        part = real_part(product(r[i], numbers_like(r[i], 300 + i)));
        if (s->squares) { part = opd_add(part, opd_mul_Scalar(real_part(product(r[i], r[i])), opd_value_double(0.25))); }
        sum = sum ? opd_add(sum, part) : part;
    }
    out[0] = sum;
    return m > 0 && opd_ok() ? 1 : -1;
}
/* The gradients of the function. */
static int all_inputs[MOST_INPUTS];
static opd_transform_options options_of(const subject *s) {
    opd_transform_options o;
    int i;
    memset(&o, 0, sizeof o);
    for (i = 0; i < s->n; i++) { all_inputs[i] = i; }
    o.argnums = all_inputs;
    o.nargnums = s->n;
    return o;
}
static int gradient(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const opd_transform_options o = options_of((const subject *)user);
    return opd_grad(value, user, in, n, &o, out, OPD_TRANSFORM_OUTPUTS);
}
/* The derivative of the function in the direction. */
static int slope(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    subject *s = (subject *)user;
    opd_tensor *y[1];
    return opd_jvp(value, user, in, s->along, n, NULL, y, out, 1);
}

//-- the ways ----------------------------------------------------------------------------------------------------------

static int jvp_of_grad(subject *s, opd_tensor **out) {
    opd_tensor *g[MOST_INPUTS];
    return opd_jvp(gradient, s, s->in, s->along, s->n, NULL, g, out, MOST_INPUTS);
}
static int grad_of_jvp(subject *s, opd_tensor **out) {
    const opd_transform_options o = options_of(s);
    return opd_grad(slope, s, s->in, s->n, &o, out, OPD_TRANSFORM_OUTPUTS);
}
static int jvp_of_jvp(subject *s, opd_tensor **out) {
    opd_tensor *g[1];
    return opd_jvp(slope, s, s->in, s->along, s->n, NULL, g, out, 1);
}
/* Writes leaves with the numbers of the point, which require grad. */
static int leaves_of(const subject *s, opd_tensor *const *from, opd_tensor **x) {
    int i;
    for (i = 0; i < s->n; i++) {
        x[i] = opd_detach(opd_clone(from[i]));
        if (!x[i] || !opd_tensor_set_requires_grad(x[i], true)) { return -1; }
    }
    return 0;
}
static opd_backward_options grad_options(bool again) {
    opd_backward_options o;
    memset(&o, 0, sizeof o);
    o.allow_unused = o.materialize_grads = true;
    o.create_graph = again;
    return o;
}
/* Adds the products of g with the direction to *sum. */
static opd_tensor *along_direction(const subject *s, opd_tensor *const *g) {
    opd_tensor *sum = NULL, *part;
    int i;
    for (i = 0; i < s->n; i++) {
        if (!g[i]) { continue; }
        part = real_part(product(g[i], s->along[i]));
        sum = sum ? opd_add(sum, part) : part;
    }
    return sum;
}
static int first(subject *s, opd_tensor *const *at, opd_tensor **out) {
    const opd_backward_options o = grad_options(false);
    opd_tensor *x[MOST_INPUTS], *y;
    if (leaves_of(s, at, x) || value(s, x, s->n, &y) < 0) { return -1; }
    if (!opd_tensor_requires_grad(y)) {
        for (int i = 0; i < s->n; i++) { out[i] = opd_zeros_like(at[i]); }
        return s->n;
    }
    return opd_autograd_grad(&y, 1, x, s->n, &o, out) ? -1 : s->n;
}
static int zeros(subject *s, opd_tensor **out) {
    int i;
    for (i = 0; i < s->n; i++) { out[i] = opd_zeros_like(s->in[i]); }
    return s->n;
}
static int grad_of_grad(subject *s, opd_tensor **out) {
    const opd_backward_options o = grad_options(true), last = grad_options(false);
    opd_tensor *x[MOST_INPUTS], *y, *g[MOST_INPUTS];
    if (leaves_of(s, s->in, x) || value(s, x, s->n, &y) < 0) { return -1; }
    if (!opd_tensor_requires_grad(y)) { return zeros(s, out); }
    if (opd_autograd_grad(&y, 1, x, s->n, &o, g) || !(y = along_direction(s, g))) { return -1; }
    if (!opd_tensor_requires_grad(y)) { return zeros(s, out); }
    return opd_autograd_grad(&y, 1, x, s->n, &last, out) ? -1 : s->n;
}
static int take_grads(subject *s, opd_tensor **x, opd_tensor **out) {
    int i;
    for (i = 0; i < s->n; i++) {
        out[i] = opd_tensor_grad(x[i]);
        if (!out[i]) { out[i] = opd_zeros_like(x[i]); }
    }
    return opd_ok() ? s->n : -1;
}
/* The same, with gradients from .grad. */
static int backward_of_backward(subject *s, opd_tensor **out) {
    const opd_backward_options o = grad_options(true);
    opd_tensor *x[MOST_INPUTS], *y, *g[MOST_INPUTS];
    int i;
    if (leaves_of(s, s->in, x) || value(s, x, s->n, &y) < 0) { return -1; }
    if (!opd_tensor_requires_grad(y)) { return zeros(s, out); }
    if (opd_backward_with(&y, 1, &o)) { return -1; }
    for (i = 0; i < s->n; i++) {
        g[i] = opd_tensor_grad(x[i]);
        if (g[i]) { g[i] = opd_mul_Scalar(g[i], opd_value_double(1)); }
        (void)opd_tensor_set_grad(x[i], NULL);
    }
    y = along_direction(s, g);
    if (!y || !opd_tensor_requires_grad(y)) { return zeros(s, out); }
    return opd_backward(y) ? -1 : take_grads(s, x, out);
}
static int of_hessian(subject *s, opd_tensor **out) {
    const opd_transform_options o = options_of(s);
    opd_tensor *h[OPD_TRANSFORM_OUTPUTS];
    int i, k;
    if (opd_hessian(value, s, s->in, s->n, &o, h, OPD_TRANSFORM_OUTPUTS) < 0) { return -1; }
    for (i = 0; i < s->n; i++) {
        for (k = 0, out[i] = NULL; k < s->n; k++) {
            opd_tensor *rows = opd_reshape(h[i * s->n + k], OPD_INTS(opd_numel(s->in[i]), opd_numel(s->in[k])));
            opd_tensor *part = opd_reshape(opd_mv(rows, opd_flatten(s->along[k], 0, -1)), opd_ints_of(opd_sizes(s->in[i]), opd_ndim(s->in[i])));
            out[i] = out[i] ? opd_add(out[i], part) : part;
        }
    }
    return s->n;
}
/* A dual level: the tangents of the gradients that backward computes from dual tensors. */
static int dual_grads(subject *s, bool from_grad, opd_tensor **out) {
    const opd_backward_options o = grad_options(false);
    opd_tensor *x[MOST_INPUTS], *d[MOST_INPUTS], *y, *g[MOST_INPUTS], *t;
    int i, rc;
    if (leaves_of(s, s->in, x)) { return -1; }
    for (i = 0; i < s->n; i++) { d[i] = opd_dual_new(x[i], s->along[i]); }
    if (value(s, d, s->n, &y) < 0) { return -1; }
    if (!opd_tensor_requires_grad(y)) { return zeros(s, out); }
    rc = from_grad ? opd_backward(y) : opd_autograd_grad(&y, 1, x, s->n, &o, g);
    if (rc || (from_grad && take_grads(s, x, g) < 0)) { return -1; }
    for (i = 0; i < s->n; i++) {
        t = NULL;
        (void)opd_dual_unpack(g[i], &t);
        out[i] = t ? opd_clone(t) : opd_zeros_like(s->in[i]);
    }
    return opd_ok() ? s->n : -1;
}
static int dual_level(subject *s, opd_tensor **out) {
    int n = -1;
    OPD_DUAL_LEVEL { n = dual_grads(s, false, out); }
    return n;
}
static int dual_level_backward(subject *s, opd_tensor **out) {
    int n = -1;
    OPD_DUAL_LEVEL { n = dual_grads(s, true, out); }
    return n;
}
#define STEP 1e-5
static int differences(subject *s, opd_tensor **out) {
    opd_tensor *x[MOST_INPUTS], *g[2][MOST_INPUTS];
    int i, k;
    for (k = 0; k < 2; k++) {
        for (i = 0; i < s->n; i++) { x[i] = opd_add(s->in[i], opd_mul_Scalar(s->along[i], opd_value_double(k ? -STEP : STEP))); }
        if (first(s, x, g[k]) < 0) { return -1; }
    }
    for (i = 0; i < s->n; i++) { out[i] = opd_mul_Scalar(opd_sub(g[0][i], g[1][i]), opd_value_double(0.5 / STEP)); }
    return s->n;
}
/* Returns the derivative of the value along the direction, by finite differences. */
static opd_tensor *difference(subject *s) {
    opd_tensor *x[MOST_INPUTS], *y[2];
    int i, k;
    for (k = 0; k < 2; k++) {
        for (i = 0; i < s->n; i++) { x[i] = opd_add(s->in[i], opd_mul_Scalar(s->along[i], opd_value_double(k ? -STEP : STEP))); }
        if (value(s, x, s->n, &y[k]) < 0) { return NULL; }
    }
    return opd_mul_Scalar(opd_sub(y[0], y[1]), opd_value_double(0.5 / STEP));
}
typedef int (*way)(subject *s, opd_tensor **out);
static const struct { const char *name; way run; } ways[] = {
    {"grad of grad", grad_of_grad}, {"backward of backward", backward_of_backward}, {"jvp of grad", jvp_of_grad},
    {"grad of jvp", grad_of_jvp}, {"dual level with grad", dual_level}, {"dual level with backward", dual_level_backward},
    {"hessian", of_hessian}, {"jvp of jvp", jvp_of_jvp}, {"finite differences", differences}};
enum { HESSIAN = 6, JVP_OF_JVP, DIFFERENCES, WAYS };

//-- one point ---------------------------------------------------------------------------------------------------------

/* What is not compared, and why.  views: only inputs that are views. */
static const struct { const char *name; int point; bool complex_only, views; } listed[] = {
    /* read memory by strides, so that a view has another gradient */
    {"_reshape_alias", -1, false, true}, {"_reshape_alias_copy", -1, false, true}, {"as_strided", -1, false, true},
    {"as_strided_copy", -1, false, true}, {"as_strided_scatter", -1, false, true},
    /* eigenvectors of complex matrices are not unique: an error, as in PyTorch */
    {"_linalg_eigh", -1, true, false}, {"linalg_eigh", -1, true, false},
    /* complex numbers have no backward: an error, as in PyTorch */
    {"silu", -1, true, false},
    /* matrices without full rank, for which these are not differentiable */
    {"linalg_lstsq", EQUAL, false, false}, {"linalg_pinv", EQUAL, false, false}, {"pinverse", EQUAL, false, false},
    {"_linalg_svd", EQUAL, false, false}, {"linalg_svd", EQUAL, false, false}, {"svd", EQUAL, false, false},
    {"_linalg_svd", TIES, false, false}, {"linalg_svd", TIES, false, false}, {"svd", TIES, false, false},
    {"linalg_pinv", TIES, false, false}, {"pinverse", TIES, false, false}, {"linalg_lstsq", TIES, false, false},
    {"linalg_cond", ZEROS, false, false}, {"linalg_cond", FIRST_ZERO, false, false}, {"linalg_cond", EQUAL, false, false}, {"linalg_qr", EQUAL, false, false}, {"linalg_qr", TIES, false, false},
    {"qr", EQUAL, false, false}, {"qr", TIES, false, false}, {"linalg_cond", TIES, false, false},
    /* norms by singular values of matrices without full rank: whether the smallest are 0 or 1e-17 depends on the processor */
    {"linalg_svdvals", EQUAL, false, false}, {"nuclear_norm", EQUAL, false, false}, {"linalg_norm", EQUAL, false, false},
    {"linalg_matrix_norm", EQUAL, false, false},
    /* 0 to the power 1: the derivative by the exponent is masked, as in PyTorch; its own derivative is infinite */
    {"_foreach_pow", TIES, false, false},
    /* quotients by a product of 0 or by 1e-12, which are rounded too often to compare */
    {"binary_cross_entropy_backward", EQUAL, false, false}, {"binary_cross_entropy_backward", TIES, false, false},
    {"binary_cross_entropy_backward", OTHERS_ZERO, false, false},
    /* a norm of order 1.5 beside a 0, where its second derivative is infinite */
    {"embedding_renorm", ONE_ZERO, false, false}};
/* Operators whose derivative is not that of all results, as in PyTorch: factors of matrices, singular values, logsumexp and
   new running statistics are constants, and so are the row padding_idx of embedding and what detach returns. */
static const char *const partly[] = {"_linalg_det", "_linalg_slogdet", "_linalg_solve_ex", "linalg_lstsq", "embedding", "detach_copy",
    "_scaled_dot_product_flash_attention_for_cpu", "_batch_norm_with_update_functional",
    "_native_batch_norm_legit_functional", NULL};
/* What errors of composed derivatives may say: of matrices without an inverse, decompositions without a derivative, complex
   views in forward mode under vmap, and where PyTorch refuses, too. */
static const char *const errors[] = {"is singular", "svd_backward", "forward AD inside vmap with a complex view",
    "is not differentiable when mode='complete'", "depends on Q, which is not computed when mode='r'",
    "double backward of embedding with scale_grad_by_freq is not supported", "is not differentiable with respect to argument 'attn_mask'",
    "'_ctc_loss_backward' is not implemented", "called random operation while in randomness error mode", NULL};
static bool is_listed(const subject *s) {
    size_t i;
    for (i = 0; i < sizeof listed / sizeof *listed; i++) {
        const char *const names[] = {listed[i].name, NULL};
        if (!named(s->c->op, names) || (listed[i].point >= 0 && listed[i].point != s->point)) { continue; }
        if ((!listed[i].complex_only || s->c->kinds[0] == 'C') && (!listed[i].views || s->view != PLAIN)) { return true; }
    }
    return false;
}
static double at(const opd_tensor *t, int64_t i, int part) {
    const double *const p = (const double *)opd_data(t);
    return opd_dtype_is_complex(opd_dtype(t)) ? p[2 * i + part] : part ? 0 : p[i];
}
/* Infinity and NaN count as equal, because some ways multiply infinity by 0. */
static bool close_to(double x, double y, double tol) {
    return (!isfinite(x) && !isfinite(y)) || fabs(x - y) <= tol * (1 + fabs(x) + fabs(y));
}
/* Returns whether two tensors differ, and writes the first numbers that do. */
static bool apart(opd_tensor *a, opd_tensor *b, double tol, double *x, double *y) {
    int64_t i;
    int part;
    a = opd_contiguous(opd_resolve_neg(opd_resolve_conj(a)));
    b = opd_contiguous(opd_resolve_neg(opd_resolve_conj(b)));
    for (i = 0; a && b && i < opd_numel(a); i++) {
        for (part = 0; part < 2; part++) {
            if (!close_to(*x = at(a, i, part), *y = at(b, i, part), tol)) { return true; }
        }
    }
    return !a || !b;
}
static void differ(const char *name, double got, double wanted) {
    char text[200];
    (void)snprintf(text, sizeof text, "%s gives %.9g, not %.9g", name, got, wanted);
    (void)say(false, text);
}
static void went_wrong(const char *name) {
    int i;
    for (i = 0; errors[i]; i++) {
        if (strstr(opd_error_message(), errors[i])) { opd_error_clear(); return; }
    }
    (void)say(false, name);
    (void)went_well(-1);
}
static bool hessian_is_small(const subject *s) {
    int64_t n = 0;
    int i;
    for (i = 0; i < s->n; i++) { n += opd_dtype_is_complex(opd_dtype(s->in[i])) ? 100 : opd_numel(s->in[i]); }
    return n <= 12 && s->n <= 4;
}
/* Compares what way w gives with `want`. */
static void check_way(subject *s, int w, opd_tensor *const *want) {
    opd_tensor *got[MOST_INPUTS];
    double a = 0, b = 0;
    int i;
    OPD_SCOPED;
    if (ways[w].run(s, got) < 0) { went_wrong(ways[w].name); return; }
    if (w == JVP_OF_JVP) {
        if (apart(along_direction(s, want), got[0], 1e-8, &a, &b)) { differ(ways[w].name, b, a); }
        return;
    }
    for (i = 0; i < s->n; i++) {
        if (apart(want[i], got[i], w == DIFFERENCES ? 1e-3 : 1e-8, &a, &b)) { differ(ways[w].name, b, a); return; }
    }
}
static void check_point(subject *s) {
    opd_tensor *want[MOST_INPUTS], *got[1], *y;
    double a = 0, b = 0;
    int w;
    OPD_SCOPED;
    s->squares = true;
    if (is_listed(s)) { return; }
    if (value(s, s->in, s->n, &y) < 0) { opd_error_clear(); return; }      /* no such call: of complex numbers, or empty */
    y = opd_contiguous(y);
    if (isnan(at(y, 0, 0))) { return; }
    s->squares = isfinite(at(y, 0, 0)) != 0;
    if (first(s, s->in, want) < 0) { went_wrong("grad"); return; }
    if (slope(s, s->in, s->n, got) < 0) { went_wrong("jvp"); return; }
    if (apart(along_direction(s, want), got[0], 1e-8, &a, &b)) { differ("the first derivative by jvp", b, a); }
    if (s->point == USUAL && s->squares && !named(s->c->op, partly) && apart(along_direction(s, want), difference(s), 1e-5, &a, &b)) {
        differ("the first derivative by finite differences", b, a);
    }
    if (ways[0].run(s, want) < 0) { went_wrong(ways[0].name); return; }
    for (w = 1; w < WAYS; w++) {
        if ((w == DIFFERENCES && s->point != USUAL) || (w == HESSIAN && !hessian_is_small(s))) { continue; }
        check_way(s, w, want);
    }
}

//-- the walk ----------------------------------------------------------------------------------------------------------

/* Returns number i of an input at a point. */
static double number_at(int point, int input, int64_t i) {
    static const double ties[] = {1, 0.5, 1, -1, 0.5, 0, -1};
    return point == EQUAL ? 1 : point == TIES ? ties[(i + input) % 7] : 0;
}
static bool stays(int point, int input, int64_t i) {
    return point == USUAL || point == EMPTY || (point == ONE_ZERO && i) || (point == FIRST_ZERO && input) ||
           (point == OTHERS_ZERO && !input);
}
/* Finds the inputs of the case, and writes the numbers of the point to them.  Returns false if there are none. */
static bool subject_make(subject *s, op_case *c, int point, int view) {
    int i, k;
    int64_t m;
    s->c = c;
    s->n = 0;
    s->view = view;
    s->point = point;
    for (i = 0; i < c->nargs; i++) {
        opd_value *v = &c->args[i];
        opd_tensor **from = v->tag == OPD_TAG_TENSOR ? &v->u.t : c->lists[i].tensors;
        if (constant_argument(c->op, opd_schema_arg_name(opd_op_schema(c->op), i))) { continue; }
        for (k = 0; k < (v->tag == OPD_TAG_TENSOR ? 1 : v->tag == OPD_TAG_TENSORS ? v->n : 0) && s->n < MOST_INPUTS; k++) {
            if (from[k] && floating(from[k])) { s->slots[s->n++] = &from[k]; }
        }
    }
    for (i = 0; i < s->n; i++) {
        opd_tensor *t = *s->slots[i];
        const bool pairs = opd_dtype_is_complex(opd_dtype(t));
        double *p = (double *)opd_data(t);
        for (m = 0; m < opd_numel(t); m++) {
            if (stays(point, i, m)) { continue; }
            p[pairs ? 2 * m : m] = number_at(point, i, m);
            if (pairs) { p[2 * m + 1] = point == TIES && m % 2 ? 1 : 0; }
        }
        s->in[i] = unviewed(t, view);
        s->along[i] = numbers_like(s->in[i], 700 + i);
    }
    return s->n > 0 && opd_ok();
}
/* Visits one case at one point.  Returns false if there is no further case. */
static bool visit(op_case *c, const opd_op *op, int number, int kind, int point, int view, const char **text) {
    static subject s;
    bool more;
    OPD_SCOPED;
    memset(c, 0, sizeof *c);
    c->op = op;
    c->dtype = OPD_FLOAT64;
    c->layout = point == EMPTY ? CASE_ZERO : CASE_CONTIGUOUS;
    c->smooth = true;
    c->kinds = kind ? "C" : "R";
    (void)snprintf(what, sizeof what, "%s %d%s%s%s", opd_op_name(op), number, kind ? " complex" : "", point_names[point],
                   view_names[view]);
    if (!(more = case_read_next(c, text))) { (void)say(!c->wrong, "the sample arguments are read"); return false; }
    if (check_shares(what, check_compiles_a_share() ? 40 : 1) && subject_make(&s, c, point, view)) { check_point(&s); }
    opd_error_clear();
    return true;
}
static void walk_operator(void *arg) {
    static op_case c;
    const opd_op *op = (const opd_op *)arg;
    const char *text = cases_of(op), *rest = text;
    int kind, point, view, number;
    bool more = true;
    for (number = 0; more && *text; number++, text = rest) {
        for (kind = 0; kind < 2; kind++) {
            for (point = 0; point < POINTS; point++) {
                for (view = 0; view < (point == USUAL || point == TIES ? VIEWS : PLAIN + 1); view++) {
                    rest = text;
                    more = visit(&c, op, number, kind, point, view, &rest) && more;
                }
            }
        }
    }
    CHECK(true);
}
static bool composed(const opd_op *op) {
    const char *const only = getenv("OPD_COMPOSITIONS_ONLY");
    return has_derivative(op) && !opd_schema_is_mutable(opd_op_schema(op)) && (!only || strstr(opd_op_name(op), only));
}
static void quiet(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
static void add_operators(void) {
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    opd_log_set(quiet, NULL);                     /* backward with create_graph warns */
    add_builtin_operators(walk_operator, composed);
}
CHECK_MAIN_ADD(add_operators)
