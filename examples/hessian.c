/* Newton's method with the Hessian of a function.  The program prints each step.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/hessian.c -o hessian -lm && ./hessian

   The function takes a vector of any length.  opd_grad_and_value and opd_hessian (jacfwd of jacrev) compute its
   derivatives, and opd_linalg_solve solves H d = g. */
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

int main(void) {
    double x[N] = {-1.2, 1, 1};
    for (int step = 0; step < 50 && opd_ok(); step++) {
        OPD_SCOPED;
        opd_tensor *at = opd_tensor_from(x, OPD_INTS(N), OPD_FLOAT64);
        opd_tensor *value[OPD_TRANSFORM_OUTPUTS], *hessian[OPD_TRANSFORM_OUTPUTS];
        if (opd_grad_and_value(rosenbrock, NULL, &at, 1, NULL, value, OPD_TRANSFORM_OUTPUTS) < 0) { break; }
        if (opd_hessian(rosenbrock, NULL, &at, 1, NULL, hessian, OPD_TRANSFORM_OUTPUTS) < 0) { break; }
        const double norm = opd_item_f64(opd_linalg_vector_norm(value[0]));
        printf("step %2d: f(%8.5f, %8.5f, %8.5f) = %-12.6g |gradient| %.2e\n", step, x[0], x[1], x[2],
               opd_item_f64(value[1]), norm);
        if (step == 0) {
            printf("its Hessian there:\n");
            opd_print(hessian[0]);
        }
        if (norm < 1e-12) { break; }
        const double *d = opd_data_f64(opd_linalg_solve(hessian[0], value[0]));
        for (int i = 0; d && i < N; i++) { x[i] -= d[i]; }
    }
    if (opd_ok() && fabs(x[0] - 1) + fabs(x[N - 1] - 1) > 1e-9) { printf("that is not the minimum\n"); return 1; }
    return opd_finish();
}
