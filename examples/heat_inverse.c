/* Finds the conductivity of a plate from its measured temperatures: Newton's method through a simulation.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/heat_inverse.c -o heat_inverse -lm && ./heat_inverse

   The plate has 20 x 20 cells.  A step of the simulation moves heat between neighbouring cells: u += DT flow(u, k), with
   the temperatures u and the conductivities k.  The loops of flow are an operator of this file, with a derivative.
   After each 16 of 192 steps, the temperatures are compared with measured ones.

   1. Backward needs the temperatures of all steps.  With checkpoints, only those of every 16th step are kept, and
      backward computes the steps between them again.  The program prints the memory that a gradient needs, without and
      with checkpoints.
   2. Newton's method finds the logarithms of the conductivities.  Conjugate gradients solve its equations.  They need
      only products of the Hessian and a vector: the tangent of the gradient (forward mode over backward).  The program
      prints the loss of each step, and how far the conductivities are from the true ones. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <math.h>
#include <stdio.h>

enum { SIDE = 20, SEGMENT = 16, SEGMENTS = 12 };  /* SEGMENT: steps between two measurements */
static const double DT = 0.08, ROUGH = 1e-3;      /* ROUGH: the weight of differences between neighbouring cells */

//-- the operators: sums over pairs of neighbouring cells i, j --------------------------------------------------------

typedef void (*pair_fn)(const double *a, const double *b, double *out, int64_t i, int64_t j);

/* What flows from j to i: the mean conductivity times the difference of the temperatures. */
static void flow_pair(const double *u, const double *k, double *out, int64_t i, int64_t j) {
    const double f = 0.5 * (k[i] + k[j]) * (u[j] - u[i]);
    out[i] += f;
    out[j] -= f;
}
/* Half of the product of two differences, for both cells. */
static void slopes_pair(const double *a, const double *b, double *out, int64_t i, int64_t j) {
    const double f = 0.5 * (a[j] - a[i]) * (b[j] - b[i]);
    out[i] += f;
    out[j] += f;
}
/* The kernel of both operators, for float64 [H, W]; it is also the fake kernel. */
static int over_pairs(opd_call *call, pair_fn pair) {
    opd_tensor *a = opd_contiguous(opd_arg_tensor(call, 0)), *b = opd_contiguous(opd_arg_tensor(call, 1));
    if (!opd_ok()) { return -1; }
    OPD_CHECK(opd_ndim(a) == 2 && opd_is_same_size(a, b), "both tensors must be [H, W], with the same sizes");
    opd_tensor *out = opd_result(call, 0, opd_sizes(a), 2, opd_dtype(a));
    if (!out || !opd_data(out)) { return out ? 0 : -1; }
    const int64_t height = opd_size(a, 0), width = opd_size(a, 1);
    const double *x = opd_data_f64(a), *y = opd_data_f64(b);
    double *o = opd_data_f64(out);
    if (!x || !y || !o) { return -1; }
    for (int64_t i = 0; i < height * width; i++) { o[i] = 0; }
    for (int64_t i = 0; i < height * width; i++) {
        if ((i + 1) % width) { pair(x, y, o, i, i + 1); }
        if (i + width < height * width) { pair(x, y, o, i, i + width); }
    }
    return 0;
}
static int flow_cpu(opd_call *call) { return over_pairs(call, flow_pair); }
static int slopes_cpu(opd_call *call) { return over_pairs(call, slopes_pair); }

static opd_op *flow_op, *slopes_op;
static opd_tensor *flow(opd_tensor *u, opd_tensor *k) { return OPD_CALL(OPD_OP(&flow_op, "heat::flow"), u, k); }
static opd_tensor *slopes(opd_tensor *a, opd_tensor *b) { return OPD_CALL(OPD_OP(&slopes_op, "heat::slopes"), a, b); }

/* Both operators are linear in each argument.  For all g, u, k: the sum of g flow(u, k) is minus that of
   k slopes(g, u).  This gives all four gradients. */
static int flow_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *u = opd_bw_tensor(bw, 0), *k = opd_bw_tensor(bw, 1);
    if (opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, flow(grad, k))) { return -1; }
    return opd_bw_needs(bw, 1) ? opd_bw_return(bw, 1, opd_neg(slopes(grad, u))) : 0;
}
static int slopes_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *a = opd_bw_tensor(bw, 0), *b = opd_bw_tensor(bw, 1);
    if (opd_bw_needs(bw, 0) && opd_bw_return(bw, 0, opd_neg(flow(b, grad)))) { return -1; }
    return opd_bw_needs(bw, 1) ? opd_bw_return(bw, 1, opd_neg(flow(a, grad))) : 0;
}
/* The tangent of f(a, b), which is linear in each argument: f(da, b) + f(a, db).  A tangent that is NULL is zero. */
static int tangent(opd_jvp_call *jv, opd_tensor *(*f)(opd_tensor *, opd_tensor *)) {
    opd_tensor *da = opd_jvp_tangent(jv, 0), *db = opd_jvp_tangent(jv, 1);
    opd_tensor *left = da ? f(da, opd_jvp_tensor(jv, 1)) : NULL, *right = db ? f(opd_jvp_tensor(jv, 0), db) : NULL;
    return opd_jvp_return(jv, 0, left && right ? opd_add(left, right) : left ? left : right);
}
static int flow_jvp(opd_jvp_call *jv) { return tangent(jv, flow); }
static int slopes_jvp(opd_jvp_call *jv) { return tangent(jv, slopes); }

OPD_LIBRARY(heat, lib) {
    opd_define(lib, &(opd_op_desc){
        .schema = "flow(Tensor u, Tensor k) -> Tensor", .cpu = flow_cpu, .fake = flow_cpu,
        .backward = flow_backward, .save = "u, k", .jvp = flow_jvp, .vmap = OPD_BATCH_LOOP });
    opd_define(lib, &(opd_op_desc){
        .schema = "slopes(Tensor a, Tensor b) -> Tensor", .cpu = slopes_cpu, .fake = slopes_cpu,
        .backward = slopes_backward, .save = "a, b", .jvp = slopes_jvp, .vmap = OPD_BATCH_LOOP });
}

//-- the simulation and its loss --------------------------------------------------------------------------------------

typedef struct experiment { opd_tensor *start, *measured[SEGMENTS]; bool checkpoints; } experiment;

/* SEGMENT steps.  in: temperatures and conductivities. */
static int segment(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *u = in[0];
    (void)user; (void)n;
    for (int i = 0; i < SEGMENT && opd_ok(); i++) {
        OPD_SCOPE { u = opd_scope_return(opd_add_full(u, flow(u, in[1]), OPD_V(DT))); }
    }
    out[0] = u;
    return opd_ok() ? 1 : -1;
}
/* Simulates all steps.  Writes the temperatures at the end of each segment to `u`. */
static int simulate(const experiment *e, opd_tensor *k, opd_tensor **u) {
    opd_tensor *in[2], *out[1] = {NULL};
    in[0] = e->start;
    in[1] = k;
    for (int i = 0; i < SEGMENTS && opd_ok(); i++) {
        if (e->checkpoints) { (void)opd_checkpoint_call(segment, NULL, NULL, in, 2, NULL, out, 1); }
        else { (void)segment(NULL, in, 2, out); }
        in[0] = u[i] = out[0];
    }
    return opd_ok() ? 0 : -1;
}
/* x: the logarithms of the conductivities, which keep them positive */
static opd_tensor *loss_of(const experiment *e, opd_tensor *x) {
    opd_tensor *u[SEGMENTS], *loss = opd_mul_Scalar(opd_sum(slopes(x, x)), OPD_V(ROUGH));
    if (simulate(e, opd_exp(x), u)) { return NULL; }
    for (int i = 0; i < SEGMENTS; i++) {
        opd_tensor *off = opd_sub(u[i], e->measured[i]);
        loss = opd_add(loss, opd_sum(opd_mul(off, off)));
    }
    return loss;
}
static double dot(opd_tensor *a, opd_tensor *b) { return opd_item_f64(opd_sum(opd_mul(a, b))); }
/* Returns the gradient at x, which requires a gradient. */
static opd_tensor *gradient(const experiment *e, opd_tensor *x) {
    opd_tensor *loss = loss_of(e, x), *g = NULL;
    (void)opd_autograd_grad(&loss, 1, &x, 1, NULL, &g);
    return g;
}
/* Returns the product of the Hessian at x and v: the tangent of the gradient. */
static opd_tensor *hessian_times(const experiment *e, opd_tensor *x, opd_tensor *v) {
    OPD_SCOPED;
    opd_tensor *product = NULL;
    OPD_DUAL_LEVEL { (void)opd_dual_unpack(gradient(e, opd_dual_new(x, v)), &product); }
    return opd_scope_return(product);
}

//-- Newton's method --------------------------------------------------------------------------------------------------

/* Solves H s = -g roughly, by conjugate gradients.  Sets *products to the number of products with H. */
static opd_tensor *newton_step(const experiment *e, opd_tensor *x, opd_tensor *g, int *products) {
    opd_tensor *s = opd_zeros_like(g), *r = opd_neg(g), *p = r;
    double rr = dot(r, r);
    const double enough = rr * fmin(0.01, sqrt(rr));
    for (*products = 0; opd_ok() && rr > enough && *products < 60; ++*products) {
        opd_tensor *hp = hessian_times(e, x, p);
        const double curvature = dot(p, hp), by = rr / curvature, before = rr;
        if (!(curvature > 0)) { return *products ? s : r; }        /* not convex here: what there is so far */
        s = opd_add_full(s, p, OPD_V(by));
        r = opd_add_full(r, hp, OPD_V(-by));
        rr = dot(r, r);
        p = opd_add_full(r, p, OPD_V(rr / before));
    }
    return s;
}
static double loss_at(const experiment *e, opd_tensor *x) {
    double loss = NAN;
    OPD_SCOPE { OPD_NO_GRAD { loss = opd_item_f64(loss_of(e, x)); } }
    return loss;
}
/* Returns the root of the mean square of a - b, which are logarithms, in percent. */
static double apart(opd_tensor *a, opd_tensor *b) {
    double norm = NAN;
    OPD_SCOPE { norm = 100 * opd_item_f64(opd_linalg_vector_norm(opd_sub(a, b))) / SIDE; }
    return norm;
}

/* Makes the true conductivities, the start temperatures, and what is measured: with an error of 1%. */
static opd_tensor *prepare(experiment *e) {
    opd_tensor *x = opd_arange(OPD_V(SIDE), OPD_FLOAT64), *y = opd_unsqueeze(x, 1), *truth;
    truth = opd_mul(opd_sin(opd_mul_Scalar(y, OPD_V(0.3))), opd_cos(opd_mul_Scalar(x, OPD_V(0.25))));
    e->start = opd_add(opd_cos(opd_mul_Scalar(y, OPD_V(0.6))), opd_cos(opd_mul_Scalar(x, OPD_V(0.4))));
    OPD_NO_GRAD {
        (void)simulate(e, opd_exp(truth), e->measured);
        for (int i = 0; i < SEGMENTS; i++) {
            opd_tensor *noise = opd_randn(OPD_INTS(SIDE, SIDE), OPD_FLOAT64);
            e->measured[i] = opd_add_full(e->measured[i], noise, OPD_V(0.01));
        }
    }
    return truth;
}
/* Prints the memory that a gradient needs with and without checkpoints. */
static void compare(experiment *e, opd_tensor *x) {
    double mib[2];
    opd_tensor *g[2];
    for (int i = 0; i < 2; i++) {
        const int64_t before = opd_memory_stats().live;
        e->checkpoints = i == 1;
        opd_memory_reset_peak();
        OPD_SCOPE { g[i] = opd_scope_return(gradient(e, x)); }
        mib[i] = (double)(opd_memory_stats().peak - before) / 1048576;
    }
    if (opd_ok()) {
        printf("a gradient needs %.1f MiB, with checkpoints %.1f MiB; the gradients are %s\n", mib[0], mib[1],
               opd_equal(g[0], g[1]) ? "the same" : "DIFFERENT");
    }
}

int main(void) {
    OPD_USE_LIBRARY(heat);                        /* for compilers without constructors, such as tcc */
    opd_manual_seed(1);
    OPD_SCOPE {
        experiment e = {NULL, {NULL}, true};
        opd_tensor *truth = prepare(&e), *x = NULL;
        (void)opd_assign(&x, opd_tensor_set_requires_grad(opd_zeros_like(truth), true));
        compare(&e, x);
        double loss = loss_at(&e, x), before;
        printf("start:  loss %6.3f, conductivities off by %.0f%%\n", loss, apart(x, truth));
        for (int step = 1; step <= 8 && opd_ok(); step++) {
            OPD_SCOPED;
            int products;
            opd_tensor *s = newton_step(&e, x, gradient(&e, x), &products), *next;
            double by = 2;
            before = loss;
            do {                                  /* shorter steps until the loss falls */
                next = opd_add_full(opd_detach(x), s, OPD_V(by /= 2));
                loss = loss_at(&e, next);
            } while (opd_ok() && !(loss < before) && by > 1e-3);
            (void)opd_assign(&x, opd_tensor_set_requires_grad(next, true));
            printf("step %d: loss %6.3f, conductivities off by %.0f%% (%d products with the Hessian)\n", step, loss,
                   apart(x, truth), products);
        }
        const double off = apart(x, truth);
        (void)opd_assign(&x, NULL);
        if (opd_ok() && !(off < 10)) { return 1; }
    }
    return opd_finish();
}
