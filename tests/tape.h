/* tape.h: leaves, vectors and options for tests of autograd. */
#ifndef OPD_TESTS_TAPE_H
#define OPD_TESTS_TAPE_H

#include "check.h"

OPD_UNUSED static opd_op *op_named(const char *name) {
    opd_op *op = opd_find(name);
    CHECK(op != NULL);
    return op;
}
OPD_UNUSED static opd_tensor *of(double v) { return opd_tensor_from(&v, opd_ints_of(NULL, 0), OPD_FLOAT64); }
OPD_UNUSED static opd_tensor *leaf(double v) { return opd_tensor_set_requires_grad(of(v), true); }
/* Returns the tensor 1, 2, ... n, with n at most 64. */
OPD_UNUSED static opd_tensor *vec(int64_t n, bool grad) {
    double v[64];
    int i;
    for (i = 0; i < 64; i++) { v[i] = i + 1; }
    return opd_tensor_set_requires_grad(opd_tensor_from(v, opd_ints_of(&n, 1), OPD_FLOAT64), grad);
}
OPD_UNUSED static opd_backward_options options(void) { opd_backward_options o; memset(&o, 0, sizeof o); return o; }

#endif
