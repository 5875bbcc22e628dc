/* opd_varlen_attention: equal to attention of each text by itself, with its derivatives; windows; errors. */
#include "../check.h"
#include <math.h>
#include <string.h>

static opd_tensor *ints(const int32_t *from, int64_t n) { return opd_tensor_from(from, OPD_INTS(n), OPD_INT32); }
static const int32_t starts_q[] = {0, 5, 5, 12, 13}, starts_k[] = {0, 5, 8, 17, 18};

/* Attention in double, by its definition. */
static double wanted(opd_tensor **in, int row, int head, int feature, int64_t left, int64_t right, double scale) {
    const double *q = opd_data_f64(in[0]), *k = opd_data_f64(in[1]), *v = opd_data_f64(in[2]);
    const int heads = (int)opd_size(in[0], 1), few = (int)opd_size(in[1], 1), d = (int)opd_size(in[0], 2), dv = (int)opd_size(in[2], 2);
    const int other = head / (heads / few);
    int text = 0;
    double sum = 0, all = 0;
    while (row >= starts_q[text + 1]) { text++; }
    const int at = starts_k[text + 1] - starts_q[text + 1] + row;
    for (int key = starts_k[text]; key < starts_k[text + 1]; key++) {
        double score = 0;
        if ((left >= 0 && key < at - left) || (right >= 0 && key > at + right)) { continue; }
        for (int i = 0; i < d; i++) { score += q[(row * heads + head) * d + i] * k[(key * few + other) * d + i]; }
        sum += exp(score * scale) * v[(key * few + other) * dv + feature];
        all += exp(score * scale);
    }
    return all > 0 ? sum / all : 0;
}
TEST(varlen_attention_by_its_definition) {
    static const int64_t windows[][2] = {{-1, -1}, {-1, 0}, {2, 0}, {1, 1}, {0, 3}};
    for (int w = 0; w < 5; w++) {
        OPD_SCOPE {
            opd_tensor *in[3] = {opd_randn(OPD_INTS(13, 4, 6), OPD_FLOAT64), opd_randn(OPD_INTS(18, 2, 6), OPD_FLOAT64),
                                 opd_randn(OPD_INTS(18, 2, 5), OPD_FLOAT64)};
            opd_tensor *y = opd_varlen_attention(in[0], in[1], in[2], ints(starts_q, 5), ints(starts_k, 5), windows[w][0],
                                                 windows[w][1], w == 3 ? opd_value_double(0.3) : opd_value_none());
            CHECK(y && opd_size(y, 0) == 13 && opd_size(y, 1) == 4 && opd_size(y, 2) == 5);
            y = y ? opd_contiguous(y) : NULL;
            for (int i = 0; y && i < 13 * 4 * 5; i++) {
                CHECK_NEAR(opd_data_f64(y)[i], wanted(in, i / 20, i / 5 % 4, i % 5, windows[w][0], windows[w][1], w == 3 ? 0.3 : 1 / sqrt(6.0)), 1e-12);
            }
        }
    }
    CHECK_OK();
}
TEST(varlen_attention_has_derivatives) {
    OPD_SCOPE {
        opd_tensor *in[3], *grads[3], *alone[3], *sum, *one, *parts[2];
        const int32_t two[] = {0, 3, 7};
        for (int i = 0; i < 3; i++) { in[i] = opd_tensor_set_requires_grad(opd_randn(OPD_INTS(7, 2, 4), OPD_FLOAT64), true); }
        sum = opd_varlen_attention(in[0], in[1], in[2], ints(two, 3), opd_to_dtype(ints(two, 3), OPD_INT64), -1, 0, opd_value_none());
        sum = opd_sum(opd_mul(sum, sum));
        for (int t = 0; t < 2; t++) {
            opd_tensor *x[3];
            for (int i = 0; i < 3; i++) { x[i] = opd_transpose(opd_unsqueeze(opd_narrow(in[i], 0, two[t], two[t + 1] - two[t]), 0), 1, 2); }
            one = opd_scaled_dot_product_attention(x[0], x[1], x[2], NULL, 0, true);
            parts[t] = opd_sum(opd_mul(one, one));
        }
        one = opd_add(parts[0], parts[1]);
        CHECK_NEAR(opd_item_f64(sum), opd_item_f64(one), 1e-12);
        CHECK_INT(opd_autograd_grad(&sum, 1, in, 3, NULL, grads), 0);
        CHECK_INT(opd_autograd_grad(&one, 1, in, 3, NULL, alone), 0);
        for (int i = 0; i < 3 && opd_ok(); i++) { CHECK_NEAR(opd_item_f64(opd_max(opd_abs(opd_sub(grads[i], alone[i])))), 0, 1e-12); }
    }
    CHECK_OK();
}
/* A function of rows, whose offsets are `user`, or input 1. */
static int by_offsets(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const at = n > 1 ? in[1] : (opd_tensor *)user;
    out[0] = opd_varlen_attention(in[0], in[0], in[0], at, at, -1, 0, opd_value_none());
    return out[0] ? 1 : -1;
}
/* Offsets with data are constants in traces and for fake tensors; offsets that a graph gets as an input are an error. */
TEST(varlen_attention_in_other_mechanisms) {
    static const int32_t two[] = {0, 3, 7}, gaps[] = {0, -1, 3, -1, 7, -1};
    OPD_SCOPE {
        opd_tensor *x = opd_randn(OPD_INTS(7, 2, 4), OPD_FLOAT64), *at = ints(two, 3), *want, *got = NULL, *in[2] = {x, at}, *each[3];
        CHECK_INT(by_offsets(at, &x, 1, &want), 1);
        opd_tensor *const wide = opd_select(opd_reshape(ints(gaps, 6), OPD_INTS(3, 2)), 1, 0);
        CHECK(by_offsets(wide, &x, 1, &got) == 1 && opd_equal(got, want));
        opd_graph *graph = opd_graph_trace(by_offsets, at, &x, 1, NULL);
        CHECK_OR_RETURN(graph != NULL);
        x = opd_randn(OPD_INTS(7, 2, 4), OPD_FLOAT64);
        CHECK(by_offsets(at, &x, 1, &want) == 1 && opd_graph_run(graph, &x, 1, &got, 1) == 1 && opd_equal(got, want));
        opd_graph_free(graph);
        CHECK(!opd_graph_trace(by_offsets, NULL, in, 2, NULL));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the data of a traced tensor");
        opd_tensor *const three = opd_randn(OPD_INTS(3, 7, 2, 4), OPD_FLOAT64);
        CHECK_INT(opd_vmap(by_offsets, at, &three, 1, NULL, &got, 1), 1);
        for (int i = 0; i < 3; i++) {
            x = opd_select(three, 0, i);
            CHECK_INT(by_offsets(at, &x, 1, &each[i]), 1);
        }
        CHECK(opd_equal(got, opd_stack(opd_tensors_of(each, 3), 0)));
        OPD_FAKE_MODE {
            opd_tensor *const fake = opd_fake_tensor(x);
            got = opd_varlen_attention(fake, fake, fake, at, at, -1, 0, opd_value_none());
            CHECK(got && opd_size(got, 0) == 7 && opd_size(got, 2) == 4);
            CHECK(!opd_varlen_attention(fake, fake, fake, opd_fake_tensor(at), at, -1, 0, opd_value_none()));
            CHECK(strstr(opd_error_message(), "has no data") != NULL);
            opd_error_clear();
        }
    }
    CHECK_OK();
}
TEST(varlen_attention_without_rows) {
    OPD_SCOPE {
        const int32_t none[] = {0, 0};
        opd_tensor *x = opd_randn(OPD_INTS(0, 2, 4), OPD_FLOAT32);
        opd_tensor *y = opd_varlen_attention(x, x, x, ints(none, 2), ints(none, 2), -1, 0, opd_value_none());
        CHECK(y && opd_size(y, 0) == 0 && opd_size(y, 1) == 2 && opd_size(y, 2) == 4);
        y = opd_varlen_attention(x, x, x, ints(none, 1), ints(none, 1), -1, -1, opd_value_none());
        CHECK(y && opd_numel(y) == 0);
    }
    CHECK_OK();
}
TEST(varlen_attention_refuses_what_does_not_fit) {
    OPD_SCOPE {
        static const int32_t falls[] = {0, 5, 4}, late[] = {1, 4}, short_[] = {0, 3}, fits[] = {0, 4};
        opd_tensor *x = opd_randn(OPD_INTS(4, 2, 4), OPD_FLOAT32), *at = ints(fits, 2);
        const opd_value none = opd_value_none();
        CHECK(!opd_varlen_attention(x, x, x, ints(falls, 3), at, -1, -1, none));
        CHECK_ERROR(OPD_ERROR_INDEX, "element 1 of offsets_q is 5");
        CHECK(!opd_varlen_attention(x, x, x, at, ints(late, 2), -1, -1, none));
        CHECK_ERROR(OPD_ERROR_INDEX, "element 0 of offsets_k is 1");
        CHECK(!opd_varlen_attention(x, x, x, at, ints(short_, 2), -1, -1, none));
        CHECK_ERROR(OPD_ERROR_INDEX, "end with the number of rows, 4");
        CHECK(!opd_varlen_attention(x, x, x, at, x, -1, -1, none));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "offsets_k must be int32 or int64");
        CHECK(!opd_varlen_attention(opd_select(x, 0, 0), x, x, at, at, -1, -1, none));
        CHECK_ERROR(OPD_ERROR_SHAPE, "query must be [rows, heads, features]");
        CHECK(!opd_varlen_attention(x, x, opd_narrow(x, 1, 0, 1), at, at, -1, -1, none));
        CHECK_ERROR(OPD_ERROR_SHAPE, "key and value must have the same rows and heads");
        CHECK(!opd_varlen_attention(x, x, x, at, at, -2, 0, none));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "window_left is -2");
        CHECK(!opd_varlen_attention(x, x, x, opd_tensor_from(falls, OPD_INTS(1), OPD_INT32), at, -1, -1, none));
        CHECK_ERROR(OPD_ERROR_INDEX, "end with the number of rows");
        CHECK(!opd_varlen_attention(NULL, x, x, at, at, -1, -1, none));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_varlen_attention");
    }
    CHECK_OK();
}
CHECK_MAIN()
