/* In-place operators that write to complex numbers as pairs of real numbers, or to pairs as complex numbers: through
   view_as_complex, view_as_real, real, imag, and conjugated views.  First and second derivatives equal finite
   differences; under vmap, they equal the gradients of each example alone. */
#include "../check.h"
#include <math.h>

enum { PAIRS, SOME_PAIRS, AS_REAL, REAL, IMAG_CONJ, CONJ, REAL_OF_OWN, IMAG_CONJ_OF_OWN, SELECTED, TURNED, VIEWS };
enum { BY_EXP, BY_TANH, BY_MUL, WRITES };
static const char *const names[] = {"view_as_complex", "view_as_complex of a part", "view_as_real", "real", "imag of conj", "conj",
                                    "real of a complex base", "imag of conj of a complex base", "a part of view_as_real", "transposed conj"};
typedef struct program { int view, write; } program;

static opd_tensor *viewed(int view, opd_tensor *x, opd_tensor **whole) {
    opd_tensor *const copy = opd_mul_Scalar(x, opd_value_double(1));
    if (view == PAIRS || view == SOME_PAIRS) {
        *whole = copy;
        return opd_view_as_complex(view == PAIRS ? copy : opd_narrow(copy, 0, 1, 2));
    }
    *whole = view < REAL_OF_OWN ? opd_view_as_complex(copy) : opd_complex(copy, opd_mul_Scalar(x, opd_value_double(0.5)));
    switch (view) {
    case AS_REAL: return opd_view_as_real(*whole);
    case REAL: case REAL_OF_OWN: return opd_real(*whole);
    case IMAG_CONJ: case IMAG_CONJ_OF_OWN: return opd_imag(opd_conj(*whole));
    case CONJ: return opd_conj(*whole);
    case SELECTED: return opd_select(opd_view_as_real(*whole), -1, 1);
    default: return opd_t(opd_conj(*whole));
    }
}
static int run(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const program *p = (const program *)user;
    opd_tensor *whole, *const view = viewed(p->view, in[0], &whole);
    (void)n;
    if (p->write == BY_EXP) { (void)opd_exp_(view); }
    else if (p->write == BY_TANH) { (void)opd_tanh_(view); }
    else { (void)opd_mul_(view, opd_sum(in[0])); }
    opd_tensor *const square = opd_mul(whole, whole), *const cube = opd_mul(square, whole);
    out[0] = opd_sum(opd_dtype_is_complex(opd_dtype(cube)) ? opd_real(cube) : cube);
    return out[0] ? 1 : -1;
}
static int gradient(void *user, opd_tensor *const *in, int n, opd_tensor **out) { return opd_grad(run, user, in, n, NULL, out, 1); }
static int hessian(void *user, opd_tensor *const *in, int n, opd_tensor **out) { return opd_jacrev(gradient, user, in, n, NULL, out, 1); }
static int forward_hessian(void *user, opd_tensor *const *in, int n, opd_tensor **out) { return opd_hessian(run, user, in, n, NULL, out, 1); }
static bool near_to(const char *what, const program *p, opd_tensor *got, opd_tensor *want, double tol) {
    if (got && want && opd_allclose_full(got, want, tol, tol, false)) { return true; }
    printf("%s, write %d: %s: %s\n", names[p->view], p->write, what, opd_error_message());
    opd_error_clear();
    return false;
}
/* Compares derivatives at `x` with differences of `below`, which is fn's derivative of one order less. */
static void compare_differences(const program *p, const char *what, opd_transform_fn fn, opd_transform_fn below, opd_tensor *x) {
    opd_tensor *got[1], *high[1], *low[1];
    if (fn((void *)(uintptr_t)p, &x, 1, got) != 1) { got[0] = NULL; }
    CHECK(near_to(what, p, got[0], got[0], 1));
    for (int64_t i = 0; got[0] && i < opd_numel(x); i++) {
        const double step = 1e-5;
        opd_tensor *up = opd_clone(x), *down = opd_clone(x);
        opd_data_f64(up)[i] += step;
        opd_data_f64(down)[i] -= step;
        CHECK(below((void *)(uintptr_t)p, &up, 1, high) == 1 && below((void *)(uintptr_t)p, &down, 1, low) == 1);
        opd_tensor *const slope = opd_mul_Scalar(opd_sub(high[0], low[0]), opd_value_double(0.5 / step));
        opd_tensor *const flat = opd_reshape(got[0], OPD_INTS(-1, opd_numel(x)));
        CHECK(near_to(what, p, opd_reshape(opd_select(flat, 1, i), OPD_INTS(-1)), opd_reshape(slope, OPD_INTS(-1)), 1e-5));
    }
}
static void compare_examples(const program *p, const char *what, opd_transform_fn fn, opd_tensor *batch) {
    opd_tensor *all[1], *each[2];
    CHECK(opd_vmap(fn, (void *)(uintptr_t)p, &batch, 1, NULL, all, 1) == 1);
    for (int i = 0; i < 2; i++) {
        opd_tensor *const row = opd_select(batch, 0, i);
        CHECK(fn((void *)(uintptr_t)p, &row, 1, &each[i]) == 1);
    }
    CHECK(near_to(what, p, opd_ok() ? all[0] : NULL, opd_ok() ? opd_stack(opd_tensors_of(each, 2), 0) : NULL, 1e-9));
}
TEST(writes_to_pairs_and_to_complex_numbers) {
    static const double numbers[] = {0.3, -0.4, 0.7, 0.1, -0.6, 0.5, 0.2, 0.8, -0.3, -0.7, 0.4, 0.6};
    for (int pick = 0; pick < VIEWS * WRITES; pick++) {
        OPD_SCOPED;
        const program p = {pick / WRITES, pick % WRITES};
        opd_tensor *const batch = opd_tensor_from(numbers, OPD_INTS(2, 3, 2), OPD_FLOAT64);
        compare_differences(&p, "gradient", gradient, run, opd_select(batch, 0, 0));
        compare_differences(&p, "hessian", hessian, gradient, opd_select(batch, 0, 1));
        compare_examples(&p, "vmap of the gradient", gradient, batch);
        compare_examples(&p, "vmap of the hessian", hessian, batch);
        compare_examples(&p, "vmap of the hessian in forward mode", forward_hessian, batch);
    }
}
CHECK_MAIN()
