/* Convolutions of codes pack their weight once, and keep the packed form with its memory: results follow each write to
   the weight, views of one memory have forms of their own, and the memory is freed with the weight. */
#include "../../opdispatch.h"
#include "../check.h"
#if !defined(_WIN32) && !defined(OPD_NO_THREADS)
#include <pthread.h>
#endif

static opd_tensor *codes(opd_ints sizes, int seed) {
    opd_tensor *x = opd_tensor_new(sizes, OPD_INT8);
    for (int64_t i = 0; i < opd_numel(x); i++) {
        ((int8_t *)opd_data(x))[i] = (int8_t)((i * 7919 + seed * 31) % 256 - 128);
    }
    return x;
}
/* Returns the convolution of codes x with the scale 0.5 and the zero point 3, and w with the scale 0.25. */
static opd_tensor *layer(opd_tensor *x, opd_tensor *w, int64_t dilation, int64_t groups) {
    const int64_t each[1] = {dilation}, one[1] = {1};
    opd_value v[16];
    for (int i = 0; i < 16; i++) { v[i] = opd_value_none(); }
    v[0] = opd_value_tensor(x);
    v[1] = opd_value_tensor(opd_full(opd_ints_of(NULL, 0), OPD_V(0.5), OPD_FLOAT32));
    v[2] = opd_value_tensor(opd_full(opd_ints_of(NULL, 0), OPD_V(3), OPD_INT64));
    v[3] = opd_value_tensor(w);
    v[4] = opd_value_tensor(opd_full(OPD_INTS(opd_size(w, 0)), OPD_V(0.25), OPD_FLOAT32));
    v[7] = opd_value_ints(one, 1);
    v[8] = opd_value_ints(each, 1);
    v[9] = opd_value_ints(each, 1);
    v[10] = opd_value_int(groups);
    v[11] = opd_value_bool(true);
    v[15] = opd_value_doubles(NULL, 0);
    return opd_call_op(opd_find("opdispatch::quantized_convolution"), v, 16);
}
static opd_tensor *floats(opd_tensor *x, opd_tensor *w, int64_t dilation, int64_t groups) {
    const int64_t each[1] = {dilation}, one[1] = {1};
    x = opd_mul_Scalar(opd_sub_Scalar(opd_to_dtype(x, OPD_FLOAT32), OPD_V(3)), OPD_V(0.5));
    w = opd_mul_Scalar(opd_to_dtype(w, OPD_FLOAT32), OPD_V(0.25));
    return opd_conv2d_full(x, w, NULL, opd_ints_of(one, 1), opd_ints_of(each, 1), opd_ints_of(each, 1), groups);
}
static bool same(opd_tensor *got, opd_tensor *want) {
    opd_tensor *const off = got && want ? opd_max(opd_abs(opd_sub(got, want))) : NULL;
    return off && opd_item_f64(off) <= 1e-6 * opd_item_f64(opd_max(opd_abs(want)));
}
static bool right(opd_tensor *x, opd_tensor *w, int64_t dilation, int64_t groups) {
    return same(layer(x, w, dilation, groups), floats(x, w, dilation, groups));
}

TEST(results_follow_each_write_to_the_weight) {
    for (int deep = 0; deep < 2; deep++) {
        OPD_SCOPED;
        opd_tensor *x = codes(OPD_INTS(2, 40, 9, 7), 1);
        opd_tensor *w = deep ? codes(OPD_INTS(40, 1, 3, 3), 2) : codes(OPD_INTS(33, 40, 3, 3), 2);
        const int64_t groups = deep ? 40 : 1;
        for (int64_t at = 0; at < opd_numel(w); at += at < 70 ? 1 : 97) {      /* no version counts these writes */
            ((int8_t *)opd_data(w))[at] = (int8_t)(((int8_t *)opd_data(w))[at] ^ (at % 3 ? 0x80 : 1));
            if (at % 7 == 0) { CHECK(right(x, w, 1, groups)); } else { CHECK(layer(x, w, 1, groups) != NULL); }
        }
        int8_t *const bytes = (int8_t *)opd_data(w), first = bytes[0];
        bytes[0] = bytes[64]; bytes[64] = first;                               /* the same bytes at other places */
        CHECK(right(x, w, 1, groups));
        const int signs[3] = {7, 64 + 3, 64 + 7};                              /* signs of two words of a hash */
        for (int i = 0; i < 3; i++) { bytes[signs[i]] = (int8_t)(bytes[signs[i]] ^ 0x80); }
        CHECK(right(x, w, 1, groups));
        opd_neg_(w);
        CHECK(right(x, w, 1, groups));
        opd_fill_(w, OPD_V(0));
        CHECK(opd_item_f64(opd_max(opd_abs(layer(x, w, 1, groups)))) <= 0);
        CHECK_OK();
    }
}
/* Views with other sizes, places and strides of the same memory, and other settings. */
TEST(views_of_one_memory_have_forms_of_their_own) {
    opd_tensor *x = codes(OPD_INTS(1, 8, 19, 7), 1), *all = codes(OPD_INTS(16 * 8 * 9 * 4), 2);
    opd_tensor *w[6];
    w[0] = opd_reshape(opd_narrow(all, 0, 0, 16 * 8 * 9), OPD_INTS(16, 8, 3, 3));
    w[1] = opd_reshape(opd_narrow(all, 0, 16 * 8 * 9, 16 * 8 * 9), OPD_INTS(16, 8, 3, 3));
    w[2] = opd_reshape(opd_narrow(all, 0, 0, 16 * 8 * 9), OPD_INTS(16, 8, 9, 1));
    w[3] = opd_reshape(opd_narrow(all, 0, 0, 16 * 8 * 9), OPD_INTS(144, 8, 1, 1));
    w[4] = opd_permute(opd_reshape(opd_narrow(all, 0, 0, 16 * 8 * 9), OPD_INTS(16, 3, 3, 8)), OPD_INTS(0, 3, 1, 2));
    w[5] = opd_reshape(opd_narrow(all, 0, 0, 8 * 9), OPD_INTS(8, 1, 3, 3));
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < 6; i++) {
            for (int64_t dilation = 1; dilation < 3; dilation++) { CHECK(right(x, w[i], dilation, i == 5 ? 8 : 1)); }
        }
    }
    for (int64_t at = 0; at < 200; at++) {                         /* more forms than one memory keeps */
        CHECK(right(x, opd_reshape(opd_narrow(all, 0, at, 64), OPD_INTS(8, 8, 1, 1)), 1, 1));
    }
    CHECK_OK();
}
TEST(packed_forms_are_freed_with_the_weight) {
    opd_tensor *x = codes(OPD_INTS(1, 64, 9, 7), 1);
    OPD_SCOPE { CHECK(layer(x, codes(OPD_INTS(32, 64, 3, 3), 2), 1, 1) != NULL); }
    const int64_t before = opd_memory_stats().live;
    opd_scope scope = opd_scope_open();
    opd_tensor *w = codes(OPD_INTS(32, 64, 3, 3), 3);
    int64_t kept = 0;
    for (int turn = 0; turn < 3; turn++) {
        const int64_t now = opd_memory_stats().live;
        OPD_SCOPE { CHECK(layer(x, w, 1, 1) != NULL); }
        if (!turn) { kept = opd_memory_stats().live - now; }
        else { CHECK_INT(opd_memory_stats().live - now, 0); }
        ((int8_t *)opd_data(w))[5]++;                              /* another weight: its form replaces the first one */
    }
    CHECK(kept == 0 || (kept > 32 * 64 * 9 && kept < 4 * 32 * 64 * 9));      /* 0: this processor packs nothing */
    opd_scope_close(&scope);
    CHECK_INT(opd_memory_stats().live - before, 0);
    CHECK_OK();
}
static int attempt(void *user) {
    int rc = 0;
    OPD_SCOPE {
        opd_tensor *x = codes(OPD_INTS(1, 8, 9, 7), 1), *w = opd_ok() ? codes(OPD_INTS(32, 8, 3, 3), 2) : NULL;
        for (int turn = 0; w && turn < 2; turn++) { rc = rc || !layer(x, w, 1, 1) ? -1 : 0; }
        rc = w ? rc : -1;
    }
    (void)user;
    return rc;
}
TEST(packing_fails_cleanly_if_memory_runs_out) {
    CHECK(check_allocations(attempt, NULL, "packing", 200, false) > 5);
}

//-- products of floats ------------------------------------------------------------------------------------------------

/* Layers of floats with weights of codes, and _weight_int8pack_mm: few and many rows, scales, and writes. */
TEST(products_of_floats_follow_each_write_to_the_weight) {
    static const int64_t rows[] = {1, 7, 8, 33};
    opd_tensor *w = codes(OPD_INTS(37, 300), 2), *scales = opd_arange(opd_value_int(37), OPD_FLOAT32);
    scales = opd_div_Scalar(opd_add_Scalar(scales, OPD_V(1)), OPD_V(300));
    for (int turn = 0; turn < 4; turn++) {
        for (int i = 0; i < 4; i++) {
            OPD_SCOPED;
            opd_tensor *x = opd_to_dtype(codes(OPD_INTS(rows[i], 300), 1), OPD_FLOAT32);
            opd_tensor *want = opd_mm(x, opd_t(opd_to_dtype(w, OPD_FLOAT32)));
            for (int form = 0; form < 3; form++) {
                opd_value v[11];
                for (int at = 0; at < 11; at++) { v[at] = opd_value_none(); }
                v[0] = opd_value_tensor(x);
                v[3] = opd_value_tensor(w);
                if (form) { v[4] = opd_value_tensor(scales); }
                if (form == 2) { v[5] = opd_value_tensor(opd_zeros(OPD_INTS(37), OPD_INT64)); }
                v[10] = opd_value_doubles(NULL, 0);
                opd_tensor *const y = opd_call_op(opd_find("opdispatch::quantized_linear"), v, 11);
                CHECK(form ? opd_allclose_full(y, opd_mul(want, scales), 1e-5, 1e-1, false) : same(y, want));
            }
            CHECK(same(opd__weight_int8pack_mm(x, w, scales), opd_mul(want, scales)));
            opd_tensor *const half = opd_to_dtype(x, OPD_BFLOAT16);
            opd_tensor *const y = opd__weight_int8pack_mm(half, w, opd_to_dtype(scales, OPD_BFLOAT16));
            CHECK(y && opd_dtype(y) == OPD_BFLOAT16);
            want = opd_mm(opd_to_dtype(half, OPD_FLOAT32), opd_t(opd_to_dtype(w, OPD_FLOAT32)));
            want = opd_mul(want, opd_to_dtype(opd_to_dtype(scales, OPD_BFLOAT16), OPD_FLOAT32));
            CHECK(opd_equal(y, opd_to_dtype(want, OPD_BFLOAT16)));
        }
        ((int8_t *)opd_data(w))[turn * 299] ^= 0x55;
    }
    CHECK_OK();
}
static int function_of_x(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const *const rest = (opd_tensor *const *)user;
    (void)n;
    return (out[0] = opd__weight_int8pack_mm(in[0], rest[0], rest[1])) ? 1 : -1;
}
TEST(weight_int8pack_mm_under_transforms) {
    opd_tensor *w = codes(OPD_INTS(5, 24), 2), *scales = opd_full(OPD_INTS(5), OPD_V(0.5), OPD_FLOAT32);
    opd_tensor *rest[2] = {w, scales}, *out = NULL, *tangent = NULL;
    opd_tensor *x = opd_to_dtype(codes(OPD_INTS(3, 9, 24), 1), OPD_FLOAT32);
    opd_tensor *wide = opd_mul_Scalar(opd_to_dtype(w, OPD_FLOAT32), OPD_V(0.5)), *want = opd_matmul(x, opd_t(wide));
    CHECK_INT(opd_vmap(function_of_x, rest, &x, 1, NULL, &out, 1), 1);
    CHECK(same(out, want));
    opd_tensor *first = opd_select(x, 0, 0);
    CHECK_INT(opd_jvp(function_of_x, rest, &first, &first, 1, NULL, &out, &tangent, 1), 1);
    CHECK(same(out, opd_select(want, 0, 0)) && same(tangent, opd_select(want, 0, 0)));
    first = opd_detach(first);
    opd_tensor_set_requires_grad(first, true);
    opd_tensor_set_requires_grad(scales, true);
    opd_backward(opd_sum(opd__weight_int8pack_mm(first, w, scales)));
    CHECK(same(opd_tensor_grad(first), opd_expand(opd_sum_dim(wide, OPD_INTS(0), false), OPD_INTS(9, 24))));
    opd_tensor *const sums = opd_sum_dim(opd_select(want, 0, 0), OPD_INTS(0), false);
    CHECK(same(opd_tensor_grad(scales), opd_mul_Scalar(sums, OPD_V(2))));
    CHECK_OK();
}

//-- compiled graphs ---------------------------------------------------------------------------------------------------

/* A frozen weight that is changed, and codes that are a constant of a layer of another kind. */
TEST(frozen_graphs_see_writes_to_the_weight) {
    opd_tensor *x = codes(OPD_INTS(2, 8, 6, 5), 1), *w = codes(OPD_INTS(16, 8, 3, 3), 2);
    opd_tensor *more = codes(OPD_INTS(16), 3);
    opd_graph *graph = opd_graph_new();
    opd_graph_value *in = opd_graph_input(graph, "x", NULL), *at = opd_graph_constant(graph, opd_value_tensor(w));
    static const char *const back = "quantized_decomposed::dequantize_per_tensor";
    opd_graph_value *wide = OPD_GRAPH_CALL(graph, back, in, 0.5, 3, -128, 127, OPD_INT8);
    at = OPD_GRAPH_CALL(graph, back, at, 0.25, 0, -128, 127, OPD_INT8);
    opd_graph_value *y = OPD_GRAPH_CALL(graph, "aten::conv2d", wide, at, opd_value_none(), OPD_INTS(1), OPD_INTS(1),
                                        OPD_INTS(1), 1);
    y = OPD_GRAPH_CALL(graph, "aten::relu", y);
    opd_graph_value *out[2];
    out[0] = y;
    out[1] = OPD_GRAPH_CALL(graph, "aten::cumsum", opd_graph_constant(graph, opd_value_tensor(more)), 0);
    CHECK_INT(opd_graph_output(graph, out, 2, false), 0);
    CHECK_INT(opd_graph_fuse_quantized(graph), 1);
    opd_compile_options options;
    memset(&options, 0, sizeof options);
    options.frozen = true;
    opd_compiled *compiled = opd_graph_compile(graph, &options);
    for (int turn = 0; compiled && turn < 5; turn++) {
        opd_value in_x = opd_value_tensor(x), got[2] = {opd_value_none(), opd_value_none()};
        CHECK_INT(opd_compiled_run(compiled, &in_x, 1, got, 2), 2);
        CHECK(same(got[0].u.t, opd_relu(floats(x, w, 1, 1))));
        CHECK(got[1].u.t && opd_equal(got[1].u.t, opd_cumsum(more, 0)));
        if (turn == 0) { CHECK_INT(opd_tensor_set_data(w, codes(OPD_INTS(16, 8, 3, 3), 5)), 0); }
        if (turn == 1) { opd_neg_(w); }
        if (turn == 2) { ((int8_t *)opd_data(w))[7] ^= 0x40; }
        if (turn == 3) { opd_neg_(more); }
    }
    CHECK_OK();
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}

//-- threads -----------------------------------------------------------------------------------------------------------

#if !defined(_WIN32) && !defined(OPD_NO_THREADS)
enum { THREADS = 4 };
static opd_tensor *shared[3];
static void *work(void *user) {
    bool *const wrong = (bool *)user;
    for (int i = 0; i < 30; i++) {
        OPD_SCOPE { *wrong = *wrong || !same(layer(shared[0], shared[1], 1, 1), shared[2]); }
    }
    opd_error_clear();
    return NULL;
}
TEST(threads_share_a_packed_weight) {
    pthread_t threads[THREADS];
    bool wrong[THREADS] = {false};
    shared[0] = codes(OPD_INTS(1, 8, 9, 7), 1);
    shared[1] = codes(OPD_INTS(40, 8, 3, 3), 2);
    shared[2] = floats(shared[0], shared[1], 1, 1);
    for (int i = 0; i < THREADS; i++) { CHECK_INT(pthread_create(&threads[i], NULL, work, &wrong[i]), 0); }
    for (int i = 0; i < THREADS; i++) { pthread_join(threads[i], NULL); }
    for (int i = 0; i < THREADS; i++) { CHECK(!wrong[i]); }
    CHECK_OK();
}
#endif
CHECK_MAIN()
