/* Functions that the tests of conditions and loops pass to opd_cond, opd_while, opd_scan and opd_map. */
#ifndef OPD_TESTS_CONTROL_BODIES_H
#define OPD_TESTS_CONTROL_BODIES_H

#include "../opdispatch.h"
#include "check.h"

#define NONE NULL, 0
#define BODY(name) OPD_UNUSED static int name(void *user, opd_tensor *const *in, int n, opd_tensor **out)
#define UNUSED() ((void)user, (void)in, (void)n, (void)out)
#define DONE(count) return opd_ok() ? (count) : -1
static opd_tensor *number(double value) { return opd_full(opd_ints_of(NULL, 0), opd_value_double(value), OPD_FLOAT64); }
static opd_tensor *numbers(const double *values, int64_t count) {
    return opd_tensor_from(values, opd_ints_of(&count, 1), OPD_FLOAT64);
}
BODY(squared) { UNUSED(); out[0] = opd_mul(in[0], in[0]); DONE(1); }
BODY(doubled) { UNUSED(); out[0] = opd_add(in[0], in[0]); DONE(1); }
BODY(same) { UNUSED(); out[0] = in[0]; return 1; }
BODY(grown) { UNUSED(); out[0] = opd_mul_Scalar(opd_mul(in[0], in[0]), OPD_V(1.1)); DONE(1); }
/* h = tanh(w h + x), y = h^2; w is an additional tensor. */
BODY(step) {
    UNUSED();
    out[0] = opd_tanh(opd_add(opd_mul(in[2], in[0]), in[1]));
    out[1] = opd_mul(out[0], out[0]);
    DONE(2);
}
#endif
