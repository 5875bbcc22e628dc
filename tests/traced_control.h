/* Functions with conditions and loops, their derivatives, and their maps over examples, which tests trace. */
#ifndef OPD_TESTS_TRACED_CONTROL_H
#define OPD_TESTS_TRACED_CONTROL_H

#include "control_bodies.h"

OPD_UNUSED static int by(const int *argnums, int nargnums, opd_transform_fn fn, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_transform_options options;
    memset(&options, 0, sizeof options);
    options.argnums = argnums;
    options.nargnums = nargnums;
    return opd_grad(fn, NULL, in, n, &options, out, OPD_TRANSFORM_OUTPUTS);
}
OPD_UNUSED static int over(const int *dims, opd_transform_fn fn, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_vmap_options options;
    memset(&options, 0, sizeof options);
    options.in_dims = dims;
    options.nin_dims = n;
    return opd_vmap(fn, NULL, in, n, &options, out, OPD_TRANSFORM_OUTPUTS);
}

BODY(below) { UNUSED(); out[0] = opd_lt(in[0], in[1]); DONE(1); }
/* Counts in an int64 tensor beside the sum, and returns the input of the round. */
BODY(counted) {
    UNUSED();
    out[0] = opd_add(in[0], opd_mul(in[2], opd_exp(in[0])));
    out[1] = opd_add_Scalar(in[1], OPD_V(1));
    out[2] = in[0];
    DONE(3);
}
BODY(product) { UNUSED(); out[0] = opd_sum(opd_mul(opd_exp(in[0]), in[1])); DONE(1); }
BODY(chooses) { UNUSED(); return opd_cond(opd_gt_Scalar(in[1], OPD_V(1)), squared, doubled, NULL, in, 1, out, 1); }
BODY(chooses_each) { UNUSED(); return opd_cond(opd_gt_Scalar(in[0], OPD_V(1)), squared, doubled, NULL, in, 1, out, 1); }
BODY(grows) { UNUSED(); return opd_while(below, grown, NULL, in, 1, in + 1, 1, out, 1); }
BODY(recurrent) {
    UNUSED();
    opd_tensor *got[2];
    if (opd_scan(step, NULL, in, 1, in + 1, 1, in + 2, 1, NULL, got, 2) != 2) { return -1; }
    out[0] = opd_add(got[0], opd_sum(got[1]));
    DONE(1);
}
/* A reversed scan that also carries an int64 counter. */
BODY(counts) {
    UNUSED();
    opd_tensor *got[3], *init[2];
    const opd_scan_options options = {0, true};
    init[0] = in[0];
    init[1] = opd_zeros(opd_ints_of(NULL, 0), OPD_INT64);
    if (opd_scan(counted, NULL, init, 2, in + 1, 1, NONE, &options, got, 3) != 3) { return -1; }
    out[0] = opd_add(opd_mul(got[0], got[1]), opd_sum(opd_sin(got[2])));
    DONE(1);
}
BODY(maps) {
    UNUSED();
    if (opd_map(product, NULL, in + 1, 1, in + 2, 1, out, 1) != 1) { return -1; }
    out[0] = opd_sum(opd_mul(out[0], out[0]));
    DONE(1);
}
/* A cond in a scan in a cond, with a tensor of the outer function as a closure. */
BODY(inner_branch) { UNUSED(); out[0] = opd_mul(in[0], *(opd_tensor **)user); DONE(1); }
BODY(inner_step) {
    opd_tensor *const sum = opd_add(in[0], in[1]);
    UNUSED();
    if (opd_cond(opd_gt_Scalar(in[1], OPD_V(0.3)), inner_branch, same, user, &sum, 1, out, 1) != 1) { return -1; }
    out[1] = opd_sin(out[0]);
    DONE(2);
}
BODY(outer_branch) {
    UNUSED();
    opd_tensor *got[2];
    if (opd_scan(inner_step, user, in, 1, in + 1, 1, NONE, NULL, got, 2) != 2) { return -1; }
    out[0] = opd_add(got[0], opd_sum(got[1]));
    DONE(1);
}
BODY(nested) {
    UNUSED();
    opd_tensor *closure = opd_add_Scalar(in[2], OPD_V(1));
    return opd_cond(opd_gt_Scalar(in[0], OPD_V(-10)), outer_branch, same, &closure, in, 2, out, 1);
}

static const int firsts[] = {0, 1, 2};
BODY(chooses_by) { UNUSED(); return by(firsts, 1, chooses, in, n, out); }
BODY(grows_by) { UNUSED(); return by(firsts, 1, grows, in, n, out); }
BODY(grows_twice) { UNUSED(); return by(firsts, 1, grows_by, in, n, out); }
BODY(recurrent_by) { UNUSED(); return by(firsts, 3, recurrent, in, n, out); }
BODY(recurrent_by_w) { UNUSED(); return by(firsts + 2, 1, recurrent, in, n, out); }
BODY(recurrent_twice) { UNUSED(); return by(firsts, 3, recurrent_by_w, in, n, out); }
BODY(counts_by) { UNUSED(); return by(firsts, 2, counts, in, n, out); }
BODY(maps_by) { UNUSED(); return by(firsts + 1, 2, maps, in, n, out); }
OPD_UNUSED static int along(opd_transform_fn fn, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *value[1];
    return opd_jvp(fn, NULL, in, in, n, NULL, value, out, 1);
}
BODY(chooses_along) { UNUSED(); return along(chooses, in, n, out); }
BODY(grows_along) { UNUSED(); return along(grows, in, n, out); }
BODY(recurrent_along) { UNUSED(); return along(recurrent, in, n, out); }
static const int two_dims[] = {0, OPD_NO_DIM}, three_dims[] = {0, 0, OPD_NO_DIM};
BODY(chooses_all) { UNUSED(); return over(two_dims, chooses, in, n, out); }
BODY(each_chooses) { UNUSED(); return over(two_dims, chooses_each, in, n, out); }
BODY(grows_all) { UNUSED(); return over(two_dims, grows, in, n, out); }
BODY(grows_all_by) { UNUSED(); return over(two_dims, grows_by, in, n, out); }
BODY(recurrent_all) { UNUSED(); return over(three_dims, recurrent, in, n, out); }
BODY(recurrent_all_by) { UNUSED(); return over(three_dims, recurrent_by, in, n, out); }
BODY(summed) {
    UNUSED();
    if (recurrent_all(NULL, in, n, out) != 1) { return -1; }
    out[0] = opd_sum(out[0]);
    DONE(1);
}
BODY(summed_by) { UNUSED(); return by(firsts, 3, summed, in, n, out); }
OPD_UNUSED static const double x_values[] = {0.5, -1.0, 2.0, 0.25}, y_values[] = {1.5, -0.3, 0.7, 0.1};
#endif
