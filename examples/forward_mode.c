/* Forward mode: derivatives in one direction, computed together with the values.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/forward_mode.c -o forward_mode -lm && ./forward_mode

   1. A column of a Jacobian by one run, and the whole Jacobian.
   2. Newton's method on Rosenbrock's function.  The Hessian is never stored, but only multiplied by vectors: such a
      product is the tangent of the gradient (forward over reverse).  Conjugate gradients solve the equations. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <stdio.h>

static opd_tensor *vector(const double *v, int64_t n) { return opd_tensor_from(v, opd_ints_of(&n, 1), OPD_FLOAT64); }
static double dot(opd_tensor *a, opd_tensor *b) { return opd_item_f64(opd_sum(opd_mul(a, b))); }
static opd_tensor *scaled(opd_tensor *a, double by) { return opd_mul_Scalar(a, OPD_V(by)); }

//-- a Jacobian ------------------------------------------------------------------------------------------------------

/* Polar coordinates: (r, phi) -> (r cos phi, r sin phi). */
static opd_tensor *polar(opd_tensor *p) {
    opd_tensor *r = opd_select(p, 0, 0), *phi = opd_select(p, 0, 1), *xy[2];
    xy[0] = opd_mul(r, opd_cos(phi));
    xy[1] = opd_mul(r, opd_sin(phi));
    return opd_stack(opd_tensors_of(xy, 2), 0);
}
static void jacobian(opd_tensor *p) {
    static const double unit[2][2] = {{1, 0}, {0, 1}};
    int k;
    for (k = 0; k < 2; k++) {
        OPD_DUAL_LEVEL {
            opd_tensor *column;
            (void)opd_dual_unpack(polar(opd_dual_new(p, vector(unit[k], 2))), &column);
            printf("column %d: ", k);
            opd_print(column);
        }
    }
}

//-- Newton's method -------------------------------------------------------------------------------------------------

/* sum of 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2 */
static opd_tensor *rosenbrock(opd_tensor *x) {
    const int64_t n = opd_size(x, 0) - 1;
    opd_tensor *a = opd_narrow(x, 0, 0, n), *b = opd_narrow(x, 0, 1, n);
    opd_tensor *c = opd_sub(b, opd_mul(a, a)), *d = opd_sub(opd_ones_like(a), a);
    return opd_sum(opd_add(scaled(opd_mul(c, c), 100), opd_mul(d, d)));
}
/* Returns the gradient at x.  Sets *hv to the Hessian times v. */
static opd_tensor *gradient(opd_tensor *x, opd_tensor *v, opd_tensor **hv) {
    opd_tensor *g = NULL, *leaf = opd_tensor_set_requires_grad(opd_detach(x), true), *f;
    OPD_DUAL_LEVEL {
        leaf = opd_dual_new(leaf, v);
        f = rosenbrock(leaf);
        if (opd_autograd_grad(&f, 1, &leaf, 1, NULL, &g) == 0) { g = opd_dual_unpack(g, hv); }
    }
    return g;
}
/* Solves H s = -g with at most n steps of conjugate gradients for n unknowns. */
static opd_tensor *newton_step(opd_tensor *x) {
    opd_tensor *hp, *g = gradient(x, opd_zeros_like(x), &hp), *s = opd_zeros_like(x), *r = opd_neg(g), *p = r;
    double rr = dot(r, r);
    const double enough = 1e-16 * rr;
    int64_t k;
    for (k = 0; opd_ok() && k < 2 * opd_numel(x) && rr > enough; k++) {
        double curvature, alpha, next;
        (void)gradient(x, p, &hp);
        curvature = dot(p, hp);
        if (curvature <= 0) { return k ? s : r; }  /* not convex here: returns the solution so far */
        alpha = rr / curvature;
        s = opd_add(s, scaled(p, alpha));
        r = opd_sub(r, scaled(hp, alpha));
        next = dot(r, r);
        p = opd_add(r, scaled(p, next / rr));
        rr = next;
    }
    return s;
}

int main(void) {
    static const double at[] = {2, 0.5}, start[] = {-1.2, 1};
    opd_tensor *x = NULL;
    int k;
    OPD_SCOPE { jacobian(vector(at, 2)); }
    OPD_SCOPE { (void)opd_assign(&x, vector(start, 2)); }
    for (k = 0; opd_ok() && k < 60; k++) {
        OPD_SCOPED;
        opd_tensor *s = newton_step(x), *next = opd_add(x, s);
        const double before = opd_item_f64(rosenbrock(x));
        double by = 1, now = opd_item_f64(rosenbrock(next));
        while (opd_ok() && now > before && by > 1e-6) {      /* too far */
            by /= 2;
            next = opd_add(x, scaled(s, by));
            now = opd_item_f64(rosenbrock(next));
        }
        if (k % 5 == 0 || now < 1e-20) { printf("step %2d: %.3e\n", k, now); }
        (void)opd_assign(&x, next);
        if (now < 1e-20) { break; }
    }
    printf("minimum at ");
    opd_print(x);
    opd_release(x);
    return opd_finish();
}
