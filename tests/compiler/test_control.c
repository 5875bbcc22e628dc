/* Graphs with conditions and loops, compiled and written as C: one loop or condition of C, whatever the number of
   rounds, gives the same results as the graph. */
#include "../../opdispatch.h"
#include "../control_bodies.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static opd_tensor *ramp(opd_ints sizes, double scale) {
    opd_tensor *const x = opd_empty(sizes, OPD_FLOAT32);
    for (int64_t i = 0; x && i < opd_numel(x); i++) {
        opd_data_f32(x)[i] = (float)(((double)((i * 7919 + 13) % 101) / 50 - 1) * scale);
    }
    return x;
}
/* h = tanh(h w + x u + b), y = h * 2. */
BODY(cell) {
    UNUSED();
    out[0] = opd_tanh(opd_add(opd_add(opd_mm(in[0], in[2]), opd_mm(in[1], in[3])), in[4]));
    out[1] = opd_mul_Scalar(out[0], OPD_V(2));
    DONE(2);
}
BODY(rnn) { UNUSED(); return opd_scan(cell, NULL, in, 1, in + 1, 1, in + 2, 3, NULL, out, 2); }


static int by(const int *argnums, int nargnums, opd_transform_fn fn, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_transform_options options;
    memset(&options, 0, sizeof options);
    options.argnums = argnums;
    options.nargnums = nargnums;
    return opd_grad(fn, NULL, in, n, &options, out, OPD_TRANSFORM_OUTPUTS);
}
static const int firsts[] = {0, 1, 2, 3, 4};
BODY(rnn_sum) {
    UNUSED();
    opd_tensor *got[2];
    if (rnn(NULL, in, n, got) != 2) { return -1; }
    out[0] = opd_add(opd_sum(got[0]), opd_sum(opd_mul(got[1], got[1])));
    DONE(1);
}
BODY(rnn_by) { UNUSED(); return by(firsts, 5, rnn_sum, in, n, out); }
BODY(rnn_by_w) { UNUSED(); return by(firsts + 2, 1, rnn_sum, in, n, out); }

//-- functions of float64 numbers
static int over(const int *dims, opd_transform_fn fn, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_vmap_options options;
    memset(&options, 0, sizeof options);
    options.in_dims = dims;
    options.nin_dims = n;
    return opd_vmap(fn, NULL, in, n, &options, out, OPD_TRANSFORM_OUTPUTS);
}

//-- functions ---------------------------------------------------------------------------------------------------------

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

BODY(chooses_by) { UNUSED(); return by(firsts, 1, chooses, in, n, out); }
BODY(grows_by) { UNUSED(); return by(firsts, 1, grows, in, n, out); }
BODY(grows_twice) { UNUSED(); return by(firsts, 1, grows_by, in, n, out); }
BODY(recurrent_by) { UNUSED(); return by(firsts, 3, recurrent, in, n, out); }
BODY(recurrent_by_w) { UNUSED(); return by(firsts + 2, 1, recurrent, in, n, out); }
BODY(recurrent_twice) { UNUSED(); return by(firsts, 3, recurrent_by_w, in, n, out); }
BODY(counts_by) { UNUSED(); return by(firsts, 2, counts, in, n, out); }
BODY(maps_by) { UNUSED(); return by(firsts + 1, 2, maps, in, n, out); }
static int along(opd_transform_fn fn, opd_tensor *const *in, int n, opd_tensor **out) {
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


/* Compares a traced function, compiled, with the function, uncompiled. */
static void compares(const char *name, opd_transform_fn fn, opd_tensor *const *in, int n, const char *why) {
    OPD_SCOPED;
    opd_tensor *want[8], *got[8];
    opd_compile_options options;
    opd_graph *const graph = opd_graph_trace(fn, NULL, in, n, NULL);
    memset(&options, 0, sizeof options);
    options.flags = "-O1 -g";
    opd_compiled *const compiled = opd_graph_compile(graph, &options);
    CHECK_OR_RETURN(compiled != NULL);
    for (int round = 0; round < 3; round++) {
        const int count = opd_graph_run(graph, in, n, want, 8);
        CHECK_INT(opd_compiled_function(compiled, in, n, got), count);
        for (int i = 0; i < count && opd_ok(); i++) {
            const bool close = opd_allclose_full(got[i], want[i], 1e-5, 1e-5, false);
            CHECK(close);
            if (!close) { fprintf(stderr, "%s: output %d, round %d\n", name, i, round); }
        }
    }
    if (why) { CHECK(opd_compiled_reason(compiled) && strstr(opd_compiled_reason(compiled), why)); }
    else {
        if (opd_compiled_reason(compiled)) { fprintf(stderr, "%s\n", name); }
        CHECK_STR(opd_compiled_reason(compiled), NULL);
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK_OK();
}

TEST(scans) {
    opd_tensor *in[5];
    if (!check_cache_begin()) { SKIP("no cc"); }
    OPD_SCOPED;
    in[0] = ramp(OPD_INTS(4, 8), 1);
    in[1] = ramp(OPD_INTS(10, 4, 6), 1);
    in[2] = ramp(OPD_INTS(8, 8), 0.3);
    in[3] = ramp(OPD_INTS(6, 8), 0.3);
    in[4] = ramp(OPD_INTS(8), 0.3);
    compares("rnn", rnn, in, 5, NULL);
    compares("rnn_sum", rnn_sum, in, 5, NULL);
    compares("rnn_by", rnn_by, in, 5, NULL);
    compares("rnn_by_w", rnn_by_w, in, 5, NULL);
    opd_graph *const graph = opd_graph_trace(rnn_by, NULL, in, 5, NULL);
    CHECK_INT(opd_graph_write_c(graph, in, 5, "/tmp/h2c", NULL), 0);
    opd_graph_free(graph);
}

TEST(kinds) {
    static const double x_values[] = {0.5, -1.0, 2.0, 0.25};
    static const struct { const char *name; opd_transform_fn fn; int n; const char *why; bool each; } all[] = {
#define ROW(fn, n, why, each) {#fn, fn, n, why, each},
        ROW(chooses, 2, NULL, 0) ROW(grows, 2, NULL, 0) ROW(recurrent, 3, NULL, 0) ROW(counts, 2, NULL, 0)
        ROW(maps, 3, NULL, 0) ROW(nested, 3, NULL, 0)
        ROW(chooses_by, 2, NULL, 0) ROW(recurrent_by, 3, NULL, 0) ROW(recurrent_twice, 3, NULL, 0)
        ROW(counts_by, 2, NULL, 0) ROW(maps_by, 3, NULL, 0) ROW(grows_by, 2, "computed tensor", 0)
        ROW(chooses_along, 2, NULL, 0) ROW(grows_along, 2, NULL, 0) ROW(recurrent_along, 3, NULL, 0)
        ROW(chooses_all, 2, NULL, 1) ROW(each_chooses, 2, NULL, 1) ROW(grows_all, 2, NULL, 1)
        ROW(recurrent_all, 3, NULL, 1) ROW(recurrent_all_by, 3, NULL, 1) ROW(summed_by, 3, NULL, 1)
    };
    if (!check_cache_begin()) { SKIP("no cc"); }
    OPD_SCOPED;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        OPD_SCOPED;
        opd_tensor *in[3] = {number(0.7), numbers(x_values, 4), number(1.3)};
        if (all[i].fn == chooses || all[i].fn == chooses_by || all[i].fn == chooses_along) { in[1] = number(2); }
        if (all[i].fn == grows || all[i].fn == grows_by || all[i].fn == grows_along) { in[0] = number(1.5); in[1] = number(40); }
        if (all[i].each) {
            in[0] = numbers(x_values, 4);
            if (all[i].fn == chooses_all || all[i].fn == each_chooses || all[i].fn == grows_all) { in[1] = number(3); }
            else { in[1] = opd_outer(numbers(x_values, 4), numbers(x_values, 3)); }
        }
        if (all[i].fn == grows_all) { in[0] = opd_add_Scalar(opd_abs(in[0]), OPD_V(1)); }
        compares(all[i].name, all[i].fn, in, all[i].n, all[i].why);
    }
}
CHECK_MAIN()
