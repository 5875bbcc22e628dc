/* opd_rotary_embedding, opd_add_rms_norm and opd_add_layer_norm: by their definitions, with derivatives and transforms; errors. */
#include "../check.h"
#include <math.h>
#include <string.h>

TEST(rotary_embedding_by_its_definition) {
    for (int k = 0; k < 4; k++) {
        OPD_SCOPE {
            const bool next = k % 2 != 0;
            const int half = k < 2 ? 3 : 4;           /* of 8 features */
            opd_tensor *x = opd_randn(OPD_INTS(2, 5, 3, 8), OPD_FLOAT64), *angles = opd_randn(OPD_INTS(5, 1, half), OPD_FLOAT64);
            opd_tensor *y = opd_rotary_embedding(x, opd_cos(angles), opd_sin(angles), next);
            CHECK_OR_RETURN(y != NULL && opd_is_contiguous(y));
            for (int row = 0; row < 30; row++) {
                const double *from = opd_data_f64(x) + row * 8, *to = opd_data_f64(y) + row * 8;
                for (int i = 0; i < half; i++) {
                    const int a = next ? 2 * i : i, b = next ? 2 * i + 1 : half + i;
                    const double angle = opd_data_f64(angles)[row / 3 % 5 * half + i];
                    CHECK_NEAR(to[a], from[a] * cos(angle) - from[b] * sin(angle), 1e-12);
                    CHECK_NEAR(to[b], from[b] * cos(angle) + from[a] * sin(angle), 1e-12);
                }
                for (int i = 2 * half; i < 8; i++) { CHECK_NEAR(to[i], from[i], 0); }
            }
        }
    }
    CHECK_OK();
}
static int turned(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = opd_rotary_embedding(in[0], in[1], in[2], user != NULL);
    return out[0] ? 1 : -1;
}
TEST(rotary_embedding_in_other_mechanisms) {
    OPD_SCOPE {
        int yes;
        opd_tensor *in[3] = {opd_randn(OPD_INTS(2, 3, 6), OPD_FLOAT64), opd_randn(OPD_INTS(3, 2), OPD_FLOAT64), opd_randn(OPD_INTS(3, 2), OPD_FLOAT64)};
        opd_tensor *got, *each[2], *x;
        opd_vmap_options only;
        const int dims[3] = {0, OPD_NO_DIM, OPD_NO_DIM};
        for (int i = 0; i < 3; i++) { (void)opd_tensor_set_requires_grad(in[i], true); }
        CHECK_INT(opd_gradcheck(turned, NULL, in, 3, NULL), 0);
        CHECK_INT(opd_gradcheck(turned, &yes, in, 3, NULL), 0);
        memset(&only, 0, sizeof only);
        only.in_dims = dims; only.nin_dims = 3;
        for (int i = 0; i < 3; i++) { in[i] = opd_detach(in[i]); }
        CHECK_INT(opd_vmap(turned, &yes, in, 3, &only, &got, 1), 1);
        for (int i = 0; i < 2; i++) { each[i] = opd_rotary_embedding(opd_select(in[0], 0, i), in[1], in[2], true); }
        CHECK(opd_equal(got, opd_stack(opd_tensors_of(each, 2), 0)));
        opd_graph *graph = opd_graph_trace(turned, NULL, in, 3, NULL);
        CHECK(graph != NULL && opd_graph_run(graph, in, 3, &got, 1) == 1 && opd_equal(got, opd_rotary_embedding(in[0], in[1], in[2], false)));
        opd_graph_free(graph);
        /* 16-bit floats are rounded once; without rows, and without pairs */
        x = opd_to_dtype(in[0], OPD_BFLOAT16);
        got = opd_rotary_embedding(x, opd_to_dtype(in[1], OPD_FLOAT32), opd_to_dtype(in[2], OPD_FLOAT32), false);
        CHECK(opd_equal(got, opd_to_dtype(opd_rotary_embedding(opd_to_dtype(x, OPD_FLOAT32), opd_to_dtype(in[1], OPD_FLOAT32), opd_to_dtype(in[2], OPD_FLOAT32), false), OPD_BFLOAT16)));
        got = opd_rotary_embedding(opd_narrow(in[0], 0, 0, 0), in[1], in[2], false);
        CHECK(got && opd_size(got, 0) == 0 && opd_size(got, 2) == 6);
        got = opd_rotary_embedding(in[0], opd_narrow(in[1], 1, 0, 0), opd_narrow(in[2], 1, 0, 0), true);
        CHECK(got && opd_equal(got, in[0]));
    }
    CHECK_OK();
}
TEST(rotary_embedding_refuses_what_does_not_fit) {
    OPD_SCOPE {
        opd_tensor *x = opd_randn(OPD_INTS(3, 6), OPD_FLOAT32), *t = opd_randn(OPD_INTS(3, 2), OPD_FLOAT32);
        CHECK(!opd_rotary_embedding(opd_ones(OPD_INTS(3, 6), OPD_INT64), t, t, false));
        CHECK_ERROR(OPD_ERROR_DTYPE, "x must be a tensor of floats");
        CHECK(!opd_rotary_embedding(x, opd_randn(OPD_INTS(3, 4), OPD_FLOAT32), t, false));
        CHECK_ERROR(OPD_ERROR_SHAPE, "cosines must be floats [..., half]");
        CHECK(!opd_rotary_embedding(x, t, opd_narrow(t, 1, 0, 1), false));
        CHECK_ERROR(OPD_ERROR_SHAPE, "the same last size, but have 2 and 1");
        CHECK(!opd_rotary_embedding(x, t, opd_randn(OPD_INTS(4, 2), OPD_FLOAT32), false));
        CHECK_ERROR(OPD_ERROR_SHAPE, "expand");
        CHECK(!opd_rotary_embedding(x, t, NULL, false));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_rotary_embedding");
    }
    CHECK_OK();
}
static int normed(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_add_rms_norm(in[0], in[1], OPD_INTS(4), in[2], opd_value_double(1e-5), &out[1]);
    return out[0] ? 2 : -1;
}
TEST(the_rms_norm_of_a_sum) {
    OPD_SCOPE {
        opd_tensor *in[3] = {opd_randn(OPD_INTS(3, 4), OPD_FLOAT64), opd_randn(OPD_INTS(3, 4), OPD_FLOAT64), opd_randn(OPD_INTS(4), OPD_FLOAT64)}, *sum = NULL, *y;
        y = opd_add_rms_norm(in[0], in[1], OPD_INTS(4), in[2], opd_value_none(), &sum);
        CHECK(sum && opd_equal(sum, opd_add(in[0], in[1])) && opd_equal(y, opd_rms_norm(sum, OPD_INTS(4), in[2], opd_value_none())));
        CHECK(opd_equal(y, opd_add_rms_norm(in[0], in[1], OPD_INTS(4), in[2], opd_value_none(), NULL)));
        for (int i = 0; i < 3; i++) { (void)opd_tensor_set_requires_grad(in[i], true); }
        CHECK_INT(opd_gradcheck(normed, NULL, in, 3, NULL), 0);
        sum = y;
        CHECK(!opd_add_rms_norm(in[0], in[1], OPD_INTS(5), NULL, opd_value_none(), &sum) && !sum);
        CHECK_ERROR(OPD_ERROR_SHAPE, "normalized_shape");
        sum = y;
        CHECK(!opd_add_rms_norm(in[0], NULL, OPD_INTS(4), NULL, opd_value_none(), &sum) && !sum);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_add_rms_norm");
    }
    CHECK_OK();
}
static int layer_normed(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_add_layer_norm(in[0], in[1], OPD_INTS(4), in[2], in[3], 1e-5, &out[1]);
    return out[0] ? 2 : -1;
}
TEST(the_layer_norm_of_a_sum) {
    OPD_SCOPE {
        opd_tensor *in[4] = {opd_randn(OPD_INTS(3, 4), OPD_FLOAT64), opd_randn(OPD_INTS(3, 4), OPD_FLOAT64), opd_randn(OPD_INTS(4), OPD_FLOAT64), opd_randn(OPD_INTS(4), OPD_FLOAT64)};
        opd_tensor *sum = NULL, *y = opd_add_layer_norm(in[0], in[1], OPD_INTS(4), in[2], in[3], 1e-3, &sum), *by_hand, *mean, *variance;
        CHECK(sum && opd_equal(sum, opd_add(in[0], in[1])));
        mean = opd_mean_dim(sum, OPD_INTS(-1), true);
        variance = opd_mean_dim(opd_square(opd_sub(sum, mean)), OPD_INTS(-1), true);
        by_hand = opd_add(opd_mul(opd_div(opd_sub(sum, mean), opd_sqrt(opd_add_Scalar(variance, opd_value_double(1e-3)))), in[2]), in[3]);
        CHECK(opd_allclose_full(y, by_hand, 1e-12, 1e-12, false));
        CHECK(opd_equal(y, opd_add_layer_norm(in[0], in[1], OPD_INTS(4), in[2], in[3], 1e-3, NULL)));
        for (int i = 0; i < 4; i++) { (void)opd_tensor_set_requires_grad(in[i], true); }
        CHECK_INT(opd_gradcheck(layer_normed, NULL, in, 4, NULL), 0);
        sum = y;
        CHECK(!opd_add_layer_norm(in[0], in[1], OPD_INTS(5), NULL, NULL, 1e-5, &sum) && !sum);
        CHECK_ERROR(OPD_ERROR_SHAPE, "normalized_shape");
        sum = y;
        CHECK(!opd_add_layer_norm(in[0], NULL, OPD_INTS(4), NULL, NULL, 1e-5, &sum) && !sum);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_add_layer_norm");
    }
    CHECK_OK();
}
CHECK_MAIN()
