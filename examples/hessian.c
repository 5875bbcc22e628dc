/* Newton's method with the Hessian of a function, printed step by step.
   cc -O2 examples/hessian.c -o hessian -lm && ./hessian

   The function is written for a vector of any length; opd_grad_and_value and opd_hessian (jacfwd of jacrev) make its
   derivatives.  The equations H d = -g are solved by elimination. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <math.h>
#include <stdio.h>

enum { N = 3 };

/* Rosenbrock's valley: sum of 100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2, with its minimum 0 at (1, ..., 1). */
static int rosenbrock(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *a = opd_narrow(in[0], 0, 0, N - 1), *b = opd_narrow(in[0], 0, 1, N - 1);
    opd_tensor *off = opd_sub(b, opd_mul(a, a)), *left = opd_rsub_Scalar(a, OPD_V(1));
    (void)user; (void)n;
    out[0] = opd_sum(opd_add(opd_mul_Scalar(opd_mul(off, off), OPD_V(100)), opd_mul(left, left)));
    return out[0] ? 1 : -1;
}

/* Solves h d = g; h and g are written. */
static void solve(double h[N][N], double *g, double *d) {
    int i, j, k;
    for (i = 0; i < N; i++) {
        int p = i;
        for (j = i + 1; j < N; j++) { if (fabs(h[j][i]) > fabs(h[p][i])) { p = j; } }
        for (k = 0; k < N; k++) { double t = h[i][k]; h[i][k] = h[p][k]; h[p][k] = t; }
        { double t = g[i]; g[i] = g[p]; g[p] = t; }
        for (j = i + 1; j < N; j++) {
            const double f = h[j][i] / h[i][i];
            for (k = i; k < N; k++) { h[j][k] -= f * h[i][k]; }
            g[j] -= f * g[i];
        }
    }
    for (i = N; i-- > 0;) {
        d[i] = g[i];
        for (k = i + 1; k < N; k++) { d[i] -= h[i][k] * d[k]; }
        d[i] /= h[i][i];
    }
}

int main(void) {
    double x[N] = {-1.2, 1, 1};
    int step, i, j;
    for (step = 0; step < 50 && opd_ok(); step++) {
        OPD_SCOPED;
        opd_tensor *at = opd_tensor_from(x, OPD_INTS(N), OPD_FLOAT64);
        opd_tensor *value[OPD_TRANSFORM_OUTPUTS], *hessian[OPD_TRANSFORM_OUTPUTS];
        double h[N][N], g[N], d[N], norm = 0;
        if (opd_grad_and_value(rosenbrock, NULL, &at, 1, NULL, value) < 0) { break; }
        if (opd_hessian(rosenbrock, NULL, &at, 1, NULL, hessian) < 0) { break; }
        for (i = 0; i < N; i++) {
            g[i] = opd_data_f64(value[0])[i];
            norm += g[i] * g[i];
            for (j = 0; j < N; j++) { h[i][j] = opd_data_f64(opd_contiguous(hessian[0]))[i * N + j]; }
        }
        printf("step %2d: f(%8.5f, %8.5f, %8.5f) = %-12.6g |gradient| %.2e\n", step, x[0], x[1], x[2],
               opd_item_f64(value[1]), sqrt(norm));
        if (step == 0) {
            printf("its Hessian there:\n");
            opd_print(hessian[0]);
        }
        if (sqrt(norm) < 1e-12) { break; }
        solve(h, g, d);
        for (i = 0; i < N; i++) { x[i] -= d[i]; }
    }
    if (opd_ok() && fabs(x[0] - 1) + fabs(x[N - 1] - 1) > 1e-9) { printf("that is not the minimum\n"); return 1; }
    return opd_finish();
}
