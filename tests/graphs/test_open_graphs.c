/* Graphs with open sizes: functions that are traced for many sizes, their texts, their guards, what the errors say, and
   memory that runs out at each allocation. */
#include "../../opdispatch.h"
#include "../check.h"
#include <dlfcn.h>
#include <unistd.h>

static char text[20000], again[20000];

#define FUNCTION(name) static int name(void *user, opd_tensor *const *in, int n, opd_tensor **out)
#define UNUSED (void)user, (void)n

static opd_tensor *numbers(opd_ints sizes) {
    opd_tensor *x = opd_tensor_new(sizes, OPD_FLOAT32);
    for (int64_t i = 0; i < opd_numel(x); i++) { opd_data_f32(x)[i] = (float)((i * 37 + 11) % 101) / 50 - 1; }
    return x;
}
/* Runs a graph and the function with the same inputs, and compares the results. */
static void check_same(const opd_graph *graph, opd_transform_fn fn, opd_tensor *const *in, int n) {
    opd_tensor *out[4], *want[4];
    const int count = fn(NULL, in, n, want);
    CHECK_INT(opd_graph_run(graph, in, n, out, 4), count);
    CHECK_OK();
    for (int i = 0; i < count && opd_ok(); i++) { CHECK(opd_allclose_full(out[i], want[i], 1e-5, 1e-6, true)); }
    opd_error_clear();
}
static void check_shape(const opd_graph *graph, int output, const char *want) {
    char shape[200];
    (void)opd_graph_shape_print(opd_graph_output_at(graph, output), shape, sizeof shape);
    CHECK_STR(shape, want);
}
static const char *path(void) {
    static char name[200];
    const char *folder = getenv("TMPDIR");
    (void)snprintf(name, sizeof name, "%s/opd_open_%ld.graph", folder ? folder : "/tmp", (long)getpid());
    return name;
}
/* A graph that is printed and read again has the same text; so has a copy, and a graph that is saved and loaded, which
   is also equal. */
static void check_text(const opd_graph *graph) {
    (void)opd_graph_print(graph, text, sizeof text);
    opd_graph *parsed = opd_graph_parse(text), *copy = opd_graph_copy(graph);
    CHECK_OK();
    CHECK_INT(opd_graph_save(graph, path()), 0);
    opd_graph *loaded = opd_graph_load(path());
    (void)remove(path());
    CHECK_OK();
    CHECK_OR_RETURN(parsed && copy && loaded);
    (void)opd_graph_print(loaded, again, sizeof again);
    CHECK_STR(again, text);
    CHECK(opd_graph_equal(graph, loaded) && opd_graph_equal(graph, copy));
    (void)opd_graph_print(parsed, again, sizeof again);
    CHECK_STR(again, text);
    CHECK(opd_graph_check(parsed) == 0);
    (void)opd_graph_print(copy, again, sizeof again);
    CHECK_STR(again, text);
    (void)opd_graph_guards_print(graph, text, sizeof text);
    (void)opd_graph_guards_print(copy, again, sizeof again);
    CHECK_STR(again, text);
    (void)opd_graph_guards_print(parsed, again, sizeof again);
    CHECK_STR(again, text);
    opd_graph_free(parsed);
    opd_graph_free(copy);
    opd_graph_free(loaded);
}

//-- expressions -------------------------------------------------------------------------------------------------------

FUNCTION(join) {
    UNUSED;
    opd_tensor *const parts[] = {in[0], in[1]};
    opd_tensor *both = opd_cat(opd_tensors_of((opd_tensor **)(uintptr_t)parts, 2), 1);
    out[0] = opd_reshape(both, OPD_INTS(opd_size(in[0], 0) * opd_size(both, 1), opd_size(both, 2)));
    out[1] = opd_slice(both, 1, opd_value_int(0), opd_value_int(opd_size(both, 1) / 2), 1);
    return 2;
}
TEST(sums_and_products_of_open_sizes) {
    static const char *const sizes[] = {"B, S, _", "B, T, 4"};
    opd_tensor *in[] = {numbers(OPD_INTS(2, 3, 4)), numbers(OPD_INTS(2, 5, 4))};
    opd_graph *graph = opd_graph_trace_open(join, NULL, in, 2, sizes, "2 <= B <= 64, T <= 1024", NULL);
    opd_graph_open_size size;
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    check_shape(graph, 0, "(B*(S + T), 4)");
    check_shape(graph, 1, "(B, (S + T)//2, 4)");
    for (int64_t b = 2; b < 5; b++) {
        for (int64_t s = 2; s < 9; s += 2) {
            for (int64_t t = 3; t < 9; t++) {
                opd_tensor *other[] = {numbers(OPD_INTS(b, s, 4)), numbers(OPD_INTS(b, t, 4))};
                check_same(graph, join, other, 2);
            }
        }
    }
    check_text(graph);
    CHECK_INT(opd_graph_nsizes(graph), 3);
    CHECK(opd_graph_size(graph, 0, &size));
    CHECK_STR(size.name, "B");
    CHECK(size.least == 2 && size.most == 64 && size.multiple_of == 1 && !size.reason);
    CHECK(opd_graph_size(graph, 1, &size));
    CHECK_STR(size.name, "S");
    CHECK(size.least == 2 && size.most == -1);
    CHECK(!opd_graph_size(graph, 3, &size) && !opd_graph_size(NULL, 0, &size));
    opd_graph_free(graph);
}
FUNCTION(halves) {
    UNUSED;
    const int64_t tokens = opd_size(in[0], 1);
    out[0] = opd_slice(in[0], 1, opd_value_int(0), opd_value_int(tokens / 2), 1);
    out[1] = opd_slice(in[0], 1, opd_value_int(tokens / 2), opd_value_none(), 1);
    out[2] = opd_slice(in[0], 1, opd_value_int(1), opd_value_none(), 3);
    out[3] = opd_mul_Scalar(opd_sum(in[0]), opd_value_double(2.0 / (double)opd_numel(in[0])));
    return 4;
}
TEST(quotients_and_floats) {
    static const char *const sizes[] = {"B, T"};
    opd_tensor *in[] = {numbers(OPD_INTS(3, 8))};
    opd_graph *graph = opd_graph_trace_open(halves, NULL, in, 1, sizes, "1 <= B, 1 <= T", NULL);
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    check_shape(graph, 0, "(B, T//2)");
    check_shape(graph, 1, "(B, (T + 1)//2)");
    check_shape(graph, 2, "(B, (T + 1)//3)");
    check_text(graph);
    for (int64_t t = 1; t < 30; t++) {
        opd_tensor *other[] = {numbers(OPD_INTS(1 + t % 3, t))};
        check_same(graph, halves, other, 1);
    }
    opd_graph_free(graph);
}
FUNCTION(transformer) {
    UNUSED;
    const int64_t batch = opd_size(in[0], 0), tokens = opd_size(in[0], 1), width = opd_size(in[0], 2);
    opd_tensor *q = opd_matmul(in[0], in[1]);
    q = opd_transpose(opd_reshape(q, OPD_INTS(batch, tokens, 2, width / 2)), 1, 2);
    opd_tensor *scores = opd_mul_Scalar(opd_matmul(q, opd_transpose(q, -2, -1)), opd_value_double(0.5));
    opd_tensor *mask = opd_tril(opd_ones(OPD_INTS(tokens, tokens), OPD_FLOAT32), 0);
    scores = opd_masked_fill_Scalar(scores, opd_eq_Scalar(mask, opd_value_double(0)), opd_value_double(-1e9));
    opd_tensor *y = opd_contiguous(opd_transpose(opd_matmul(opd_softmax(scores, -1), q), 1, 2));
    y = opd_add(in[0], opd_reshape(y, OPD_INTS(batch, tokens, width)));
    out[0] = opd_gelu(y);
    out[1] = opd_reshape(y, OPD_INTS(batch * tokens, width));
    return 2;
}
TEST(attention_with_open_batch_and_tokens) {
    static const char *const sizes[] = {"B, T, 4", NULL};
    opd_tensor *in[] = {numbers(OPD_INTS(2, 3, 4)), numbers(OPD_INTS(4, 4))};
    opd_graph *graph = opd_graph_trace_open(transformer, NULL, in, 2, sizes, "1 <= B, 1 <= T", NULL);
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    check_shape(graph, 0, "(B, T, 4)");
    check_shape(graph, 1, "(B*T, 4)");
    check_text(graph);
    for (int64_t t = 1; t < 12; t++) {
        opd_tensor *other[] = {numbers(OPD_INTS(1 + t % 4, t, 4)), in[1]};
        check_same(graph, transformer, other, 2);
    }
    opd_graph_free(graph);
}
FUNCTION(layers) {
    UNUSED;
    static const int64_t ones[] = {1, 1}, twos[] = {2, 2};
    const opd_ints one = opd_ints_of(ones, 2), two = opd_ints_of(twos, 2);
    opd_tensor *y = opd_relu(opd_conv2d_full(in[0], in[1], NULL, two, one, one, 1));
    out[0] = opd_flatten(opd_max_pool2d(y, two, two, OPD_INTS(0, 0)), 1, -1);
    return 1;
}
TEST(convolutions_narrow_ranges_that_were_not_given) {
    static const char *const sizes[] = {"B, 3, H, W", NULL};
    opd_tensor *in[] = {numbers(OPD_INTS(2, 3, 9, 8)), numbers(OPD_INTS(4, 3, 3, 3))};
    opd_graph *graph = opd_graph_trace_open(layers, NULL, in, 2, sizes, "W <= 70", NULL), *other;
    opd_graph_open_size size;
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    check_shape(graph, 0, "(B, 4*((H + 1)//4)*((W + 1)//4))");
    check_text(graph);
    for (int64_t h = 3; h < 20; h++) {
        opd_tensor *more[] = {numbers(OPD_INTS(2, 3, h, 30 - h)), in[1]};
        check_same(graph, layers, more, 2);
    }
    CHECK(opd_graph_size(graph, 1, &size));
    CHECK(size.least == 3 && size.reason && strncmp(size.reason, "aten::max_pool2d", 16) == 0);
    in[0] = numbers(OPD_INTS(2, 3, 2, 8));
    opd_tensor *out;
    CHECK_INT(opd_graph_run(graph, in, 2, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "input 0: size 2 is 2, but H must be at least 3, because of aten::max_pool2d");
    in[0] = numbers(OPD_INTS(2, 3, 9, 71));
    CHECK_INT(opd_graph_run(graph, in, 2, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "input 0: size 3 is 71, but W must be at most 70");
    opd_graph_free(graph);
    in[0] = numbers(OPD_INTS(2, 3, 9, 8));
    other = opd_graph_trace_open(layers, NULL, in, 2, sizes, "1 <= H", NULL);
    CHECK(!other);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the function fails, in aten::max_pool2d");
}
FUNCTION(quarters) {
    UNUSED;
    out[0] = opd_view(in[0], OPD_INTS(opd_size(in[0], 0) / 4, 4, opd_size(in[0], 1)));
    return 1;
}
TEST(sizes_that_must_be_multiples) {
    static const char *const sizes[] = {"T, 3"};
    opd_tensor *in[] = {numbers(OPD_INTS(8, 3))}, *out;
    opd_graph *graph = opd_graph_trace_open(quarters, NULL, in, 1, sizes, NULL, NULL);
    opd_graph_open_size size;
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    check_shape(graph, 0, "(T//4, 4, 3)");
    check_text(graph);
    CHECK(opd_graph_size(graph, 0, &size) && size.multiple_of == 4);
    in[0] = numbers(OPD_INTS(12, 3));
    check_same(graph, quarters, in, 1);
    in[0] = numbers(OPD_INTS(10, 3));
    CHECK_INT(opd_graph_run(graph, in, 1, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "input 0: size 0 is 10, but T must be a multiple of 4, because of aten::view");
    opd_graph_free(graph);
    in[0] = numbers(OPD_INTS(8, 3));
    graph = opd_graph_trace_open(quarters, NULL, in, 1, sizes, "T % 4 == 0, 4 <= T <= 400", NULL);
    CHECK_OK();
    CHECK(graph && opd_graph_size(graph, 0, &size) && size.multiple_of == 4 && !size.reason && size.most == 400);
    opd_graph_free(graph);
    graph = opd_graph_trace_open(quarters, NULL, in, 1, sizes, "T % 2 == 0", NULL);
    CHECK(!graph);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the function fails");
}
FUNCTION(add) {
    UNUSED;
    out[0] = opd_add(in[0], in[1]);
    return 1;
}
TEST(sizes_0_and_1) {
    static const char *const same[] = {"S, 3", "S, 3"}, *const different[] = {"S, 3", "T, 3"};
    static const char *const row[] = {"S, 3", NULL};
    opd_tensor *in[] = {numbers(OPD_INTS(5, 3)), numbers(OPD_INTS(5, 3))}, *out;
    opd_graph *graph = opd_graph_trace_open(add, NULL, in, 2, same, "0 <= S", NULL);
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    for (int64_t size = 0; size < 4; size++) {
        in[0] = numbers(OPD_INTS(size, 3)), in[1] = numbers(OPD_INTS(size, 3));
        check_same(graph, add, in, 2);
    }
    in[0] = numbers(OPD_INTS(1, 3));
    CHECK_INT(opd_graph_run(graph, in, 2, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "input 1: size 0 is 3, but S is 1 from size 0 of input 0");
    opd_graph_free(graph);
    in[0] = numbers(OPD_INTS(5, 3)), in[1] = numbers(OPD_INTS(5, 3));
    CHECK(!opd_graph_trace_open(add, NULL, in, 2, different, NULL, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "where only S differs from the inputs, the function fails: aten::add");
    in[1] = numbers(OPD_INTS(1, 3));             /* a row that is broadcast: all sizes work */
    graph = opd_graph_trace_open(add, NULL, in, 2, row, "1 <= S", NULL);
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    in[0] = numbers(OPD_INTS(1, 3));
    check_same(graph, add, in, 2);
    opd_graph_free(graph);
    CHECK(!opd_graph_trace_open(add, NULL, in, 2, row, NULL, NULL));
    CHECK_ERROR(OPD_ERROR_SHAPE, "size 0 is 1, but S must be at least 2");
    /* an open size that is broadcast has 1 in its range: then its sum has the size of the other, or of this one */
    in[0] = numbers(OPD_INTS(1, 3)), in[1] = numbers(OPD_INTS(4, 3));
    CHECK(!opd_graph_trace_open(add, NULL, in, 2, row, "1 <= S", NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the function fails");
}

//-- errors of functions -----------------------------------------------------------------------------------------------

FUNCTION(branch) {
    UNUSED;
    out[0] = opd_size(in[0], 0) > 100 ? opd_tanh(in[0]) : opd_relu(in[0]);
    return 1;
}
FUNCTION(unrolled) {
    UNUSED;
    out[0] = in[0];
    for (int64_t i = 0; i < opd_size(in[0], 0); i++) { out[0] = opd_relu(out[0]); }
    return 1;
}
FUNCTION(clamped) {
    UNUSED;
    out[0] = opd_slice(in[0], 0, opd_value_int(0), opd_value_int(10), 1);
    return 1;
}
FUNCTION(constant) {
    UNUSED;
    opd_tensor *positions = opd_tensor_new(OPD_INTS(opd_size(in[0], 0), 1), OPD_FLOAT32);
    for (int64_t i = 0; i < opd_numel(positions); i++) { opd_data_f32(positions)[i] = (float)i; }
    out[0] = opd_add(in[0], positions);
    return 1;
}
FUNCTION(positions) {
    UNUSED;
    out[0] = opd_add(in[0], opd_unsqueeze(opd_arange(opd_value_int(opd_size(in[0], 0)), OPD_FLOAT32), 1));
    return 1;
}
TEST(functions_that_depend_on_sizes_in_other_ways) {
    static const char *const sizes[] = {"T, 3"};
    opd_tensor *in[] = {numbers(OPD_INTS(5, 3))};
    CHECK(!opd_graph_trace_open(branch, NULL, in, 1, sizes, NULL, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the function does not do the same for all sizes");
    opd_graph *graph = opd_graph_trace_open(branch, NULL, in, 1, sizes, "T <= 100", NULL);
    CHECK_OK();
    CHECK(graph != NULL);
    opd_graph_free(graph);
    CHECK(!opd_graph_trace_open(unrolled, NULL, in, 1, sizes, NULL, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "it calls aten::relu");
    CHECK(!opd_graph_trace_open(clamped, NULL, in, 1, sizes, NULL, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a size of a result of aten::slice");
    in[0] = numbers(OPD_INTS(12, 3));
    graph = opd_graph_trace_open(clamped, NULL, in, 1, sizes, "10 <= T", NULL);
    CHECK_OK();
    CHECK(graph != NULL);
    opd_graph_free(graph);
    CHECK(!opd_graph_trace_open(constant, NULL, in, 1, sizes, NULL, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a constant tensor, before aten::add");
    graph = opd_graph_trace_open(positions, NULL, in, 1, sizes, "0 <= T", NULL);
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    for (int64_t t = 0; t < 4; t++) {
        in[0] = numbers(OPD_INTS(t, 3));
        check_same(graph, positions, in, 1);
    }
    opd_graph_free(graph);
}

//-- sizes that depend on data -----------------------------------------------------------------------------------------

FUNCTION(where) {
    UNUSED;
    out[0] = opd_mul_Scalar(opd_to_dtype(opd_nonzero(in[0]), OPD_FLOAT32), opd_value_double(2));
    return 1;
}
FUNCTION(counted) {
    UNUSED;
    out[0] = opd_ones(OPD_INTS(opd_size(opd_nonzero(in[0]), 0)), OPD_FLOAT32);
    out[0] = opd_mul(opd_sum(out[0]), in[0]);
    return 1;
}
TEST(sizes_that_depend_on_data_have_names) {
    static const char *const sizes[] = {"T, 3"};
    opd_tensor *in[] = {numbers(OPD_INTS(5, 3))};
    opd_data_f32(in[0])[4] = 0;
    opd_graph *graph = opd_graph_trace_open(where, NULL, in, 1, sizes, NULL, NULL);
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    check_shape(graph, 0, "(u0, 2)");
    check_text(graph);
    check_same(graph, where, in, 1);
    in[0] = numbers(OPD_INTS(9, 3));
    check_same(graph, where, in, 1);
    opd_graph_free(graph);
}
FUNCTION(chosen) {
    UNUSED;
    opd_tensor *rows = opd_squeeze_dim(opd_nonzero(opd_gt_Scalar(opd_select(in[0], 1, 0), opd_value_double(0))), 1);
    opd_tensor *const parts[] = {opd_index_select(in[0], 0, rows), in[0]};
    opd_tensor *picked = opd_masked_select(in[0], opd_gt_Scalar(in[0], opd_value_double(0.5)));
    out[0] = opd_cat(opd_tensors_of((opd_tensor **)(uintptr_t)parts, 2), 0);
    out[1] = opd_matmul(parts[0], opd_transpose(in[0], 0, 1));
    out[2] = opd_reshape(opd_expand(opd_unsqueeze(picked, 1), OPD_INTS(-1, opd_size(in[0], 0))), OPD_INTS(-1));
    return 3;
}
FUNCTION(viewed) {
    UNUSED;
    opd_tensor *places = opd_nonzero(in[0]);
    out[0] = opd_reshape(places, OPD_INTS(2 * opd_size(places, 0)));
    return 1;
}
FUNCTION(many_or_few) {
    UNUSED;
    opd_tensor *places = opd_nonzero(in[0]);
    out[0] = opd_size(places, 0) == opd_numel(in[0]) ? opd_relu(places) : opd_neg(places);
    return 1;
}
FUNCTION(counted_mean) {
    UNUSED;
    opd_tensor *picked = opd_masked_select(in[0], opd_gt_Scalar(in[0], opd_value_double(-5)));
    out[0] = opd_mul_Scalar(opd_sum(picked), opd_value_double(1.0 / (double)opd_numel(picked)));
    return 1;
}
TEST(expressions_of_sizes_that_depend_on_data) {
    static const char *const sizes[] = {"T, 3"}, *const taken[] = {"u0, 3"};
    static const struct { opd_transform_fn fn; const char *error; } wrong[] = {
        {counted, "a number that is given to aten::ones depends on a size that depends on data"},
        {viewed, "a number that is given to aten::reshape depends on a size that depends on data"},
        {many_or_few, "opd_graph_trace_open: the call of aten::relu depends on a size that depends on data"},
        {counted_mean, "a number that is given to aten::mul depends on a size that depends on data"}};
    char name[300], shape[100];
    opd_tensor *in[] = {numbers(OPD_INTS(5, 3))}, *want[4];
    opd_graph *graph = opd_graph_trace_open(chosen, NULL, in, 1, sizes, NULL, NULL);
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    check_shape(graph, 0, "(u0 + T, 3)");
    check_shape(graph, 1, "(u0, T)");
    check_shape(graph, 2, "(T*u1)");
    check_text(graph);
    (void)snprintf(name, sizeof name, "%s.pt2", path());
    CHECK_INT(opd_program_save(graph, NULL, name), 0);
    opd_program *program = opd_program_load(name, NULL);
    (void)remove(name);
    CHECK_OK();
    CHECK_OR_RETURN(program);
    CHECK_INT(opd_graph_nsizes(opd_program_graph(program)), 3);
    for (int64_t t = 2; t < 9; t++) {
        in[0] = numbers(OPD_INTS(t, 3));
        check_same(graph, chosen, in, 1);
        opd_value value = opd_value_tensor(in[0]), out[4];
        CHECK_INT(chosen(NULL, in, 1, want), 3);
        CHECK_INT(opd_program_run(program, &value, 1, out, 4), 3);
        for (int i = 0; i < 3 && opd_ok(); i++) { CHECK(opd_allclose(out[i].u.t, want[i])); }
        CHECK_OK();
    }
    opd_program_free(program);
    opd_graph_free(graph);
    /* the inputs are such that the sizes are as large as they can be, so that the numbers look right */
    in[0] = opd_ones(OPD_INTS(5, 3), OPD_FLOAT32);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!opd_graph_trace_open(wrong[i].fn, NULL, in, 1, sizes, NULL, NULL));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, wrong[i].error);
    }
    CHECK(!opd_graph_trace_open(where, NULL, in, 1, taken, NULL, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "names such as u0 are only for sizes that depend on data");
    opd_fake_block block = opd_fake_begin();      /* shapes of fakes, as expressions */
    in[0] = opd_empty(OPD_INTS(4, 3), OPD_FLOAT32);
    graph = opd_graph_trace_open(where, NULL, in, 1, sizes, NULL, NULL);
    opd_fake_end(&block);
    CHECK_OK();
    if (graph) { (void)opd_graph_shape_print(opd_graph_output_at(graph, 0), shape, sizeof shape); }
    CHECK_STR(graph ? shape : "", "(u0, 2)");
    opd_graph_free(graph);
}

//-- texts, guards, and wrong calls ------------------------------------------------------------------------------------

TEST(graphs_with_open_sizes_from_texts) {
    static const char source[] =
        "graph(%x : Float(B, 2*T + 1, strides=[2*T + 1, 1], requires_grad=0, device=cpu),\n"
        "      %y : Float(T, strides=[1], requires_grad=0, device=cpu)):\n"
        "  # size 1 <= B <= 8\n"
        "  # size 1 <= T, T % 2 == 0 # a reason\n"
        "  %z : Float(B, 2*T + 1, strides=[2*T + 1, 1], requires_grad=0, device=cpu) = aten::relu(%x)\n"
        "  return (%z)\n";
    opd_graph *graph = opd_graph_parse(source);
    opd_tensor *in[] = {numbers(OPD_INTS(3, 9)), numbers(OPD_INTS(4))}, *out;
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    (void)opd_graph_print(graph, text, sizeof text);
    CHECK_STR(text, source);
    (void)opd_graph_guards_print(graph, text, sizeof text);
    CHECK_STR(text, "1 <= B <= 8\n1 <= T, T % 2 == 0 # a reason\ninput 0: size 0 == B\ninput 0: size 1 == 2*T + 1\n"
              "input 1: size 0 == T\n");
    CHECK_INT(opd_graph_run(graph, in, 2, &out, 1), 1);
    CHECK_INT(opd_graph_check_sizes(graph, in, 2), 0);
    in[0] = numbers(OPD_INTS(3, 11));
    CHECK_INT(opd_graph_check_sizes(graph, in, 2), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "opd_graph_check_sizes: input 0 (x): size 1 is 11, so T is 5, but T is 4 from size "
        "0 of input 1");
    in[0] = numbers(OPD_INTS(3, 8));
    CHECK_INT(opd_graph_run(graph, in, 2, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "input 0 (x): size 1 is 8, but must be 2*T + 1");
    in[0] = numbers(OPD_INTS(3, 3)), in[1] = numbers(OPD_INTS(1));
    CHECK_INT(opd_graph_run(graph, in, 2, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "size 0 is 1, but T must be a multiple of 2, because of a reason");
    in[0] = numbers(OPD_INTS(3));
    CHECK_INT(opd_graph_run(graph, in, 2, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "input 0 has 1 dims, but must have 2: (B, 2*T + 1)");
    const opd_value values[] = {opd_value_tensor(numbers(OPD_INTS(9, 5))), opd_value_tensor(numbers(OPD_INTS(2)))};
    opd_value result;
    CHECK_INT(opd_graph_run_values(graph, values, 2, &result, 1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "opd_graph_run_values: input 0 (x): size 0 is 9, but B must be at most 8");
    CHECK_INT(opd_graph_check_sizes(NULL, in, 2), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the graph is NULL");
    CHECK_INT(opd_graph_check_sizes(graph, in, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the number of inputs is wrong");
    opd_graph_free(graph);
    CHECK(!opd_graph_parse("graph(%x : Float(B +, 3)):\n  return (%x)\n"));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "line 1 of the graph: expected a number or an expression of sizes");
    CHECK(!opd_graph_parse("graph(%x : Float(B, 3)):\n  # size 5 <= B <= 4\n  return (%x)\n"));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the range of B is empty: 5 to 4");
}
TEST(texts_of_sizes_that_are_wrong) {
    static const struct { const char *sizes, *ranges, *error; } rows[] = {
        {"B", NULL, "input 0 has 2 dims, but 'B' has 1 sizes"},
        {"B, +", NULL, "input 0: the size '+' is not understood"},
        {"B, 4", NULL, "input 0: size 1 is 3, but must be 4"},
        {"B, ?", NULL, "is not understood"},
        {"5, 3", NULL, "no size is open"},
        {"B*T, 3", NULL, "B is not the size of an input"},
        {"B, 2*B", NULL, "input 0: size 1 is 3, but must be 2*B"},
        {"B, B - 2", "B <= 4", "input 0: size 0 is 5, but B must be at most 4"},
        {"B, 3", "6 <= B", "size 0 is 5, but B must be at least 6"},
        {"B, 3", "B % 2 == 0", "B must be a multiple of 2"},
        {"B, 3", "2 <= C", "the range '2 <= C' is not understood"},
        {"B, 3", "B", "the range 'B' is not understood"},
        {"B, 3", "B % 2 == 1", "is not understood"},
        {"B, 3", "9 <= B <= 5", "the range of B is empty"}};
    opd_tensor *in[] = {numbers(OPD_INTS(5, 3)), NULL};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const sizes[] = {rows[i].sizes};
        CHECK(!opd_graph_trace_open(branch, NULL, in, 1, sizes, rows[i].ranges, NULL));
        CHECK(strstr(opd_error_message(), rows[i].error) != NULL);
        if (!strstr(opd_error_message(), rows[i].error)) { printf("%s\n", opd_error_message()); }
        opd_error_clear();
    }
    CHECK(!opd_graph_trace_open(NULL, NULL, in, 1, NULL, NULL, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the function or an input is NULL");
    CHECK(!opd_graph_trace_open(add, NULL, in, 2, NULL, NULL, NULL));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the function or an input is NULL");
}

//-- parts, programs, and compiled graphs ------------------------------------------------------------------------------

TEST(parts_compute_their_own_sizes) {
    static const char *const sizes[] = {"B, T, 4", NULL};
    opd_tensor *in[] = {numbers(OPD_INTS(2, 3, 4)), numbers(OPD_INTS(4, 4))}, *out, *want[2];
    opd_graph *graph = opd_graph_trace_open(transformer, NULL, in, 2, sizes, "1 <= B <= 9", NULL);
    CHECK_OR_RETURN(graph);
    opd_graph_node *node = opd_graph_first(graph);
    while (!opd_graph_node_is(node, "aten::contiguous")) { node = opd_graph_next(node); }
    opd_graph_value *inputs[] = {opd_graph_input_at(graph, 0), opd_graph_node_output(node, 0)};
    opd_graph_value *outputs[] = {opd_graph_output_at(graph, 0)};
    opd_graph *part = opd_graph_extract(graph, inputs, 2, outputs, 1);
    CHECK_OK();
    CHECK_OR_RETURN(part);
    check_text(part);
    check_shape(part, 0, "(B, T, 4)");
    in[0] = numbers(OPD_INTS(3, 5, 4));
    CHECK_INT(transformer(NULL, in, 2, want), 2);
    opd_tensor *inner[] = {in[0], numbers(OPD_INTS(3, 5, 2, 2))};
    CHECK_INT(opd_graph_run(part, inner, 2, &out, 1), 1);
    inner[1] = numbers(OPD_INTS(3, 6, 2, 2));
    CHECK_INT(opd_graph_run(part, inner, 2, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "input 1: size 1 is 6, but T is 5 from size 1 of input 0");
    opd_graph_free(part);
    opd_graph_value *last[] = {opd_graph_node_output(node, 0)};
    part = opd_graph_extract(graph, last, 1, outputs, 1);        /* the first input is missing */
    CHECK(!part);
    opd_error_clear();
    opd_graph_free(graph);
}
TEST(open_sizes_in_exported_programs) {
    static const char *const sizes[] = {"B, 2*T"};
    opd_tensor *in[] = {numbers(OPD_INTS(3, 8))}, *want[4];
    char name[300], type[100];
    opd_graph_open_size size;
    (void)snprintf(name, sizeof name, "%s.pt2", path());
    opd_graph *graph = opd_graph_trace_open(halves, NULL, in, 1, sizes, "2 <= B <= 64, T % 2 == 0, 2 <= T <= 99", NULL);
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    CHECK_INT(opd_program_save(graph, NULL, name), 0);
    opd_program *program = opd_program_load(name, NULL);
    (void)remove(name);
    CHECK_OK();
    CHECK_OR_RETURN(program);
    const opd_graph *read = opd_program_graph(program);
    CHECK_INT(opd_graph_nsizes(read), 2);
    CHECK(opd_graph_size(read, 0, &size) && size.least == 2 && size.most == 64 && size.multiple_of == 1);
    CHECK_STR(size.name, "B");
    CHECK(opd_graph_size(read, 1, &size) && size.least == 2 && size.most == 98 && size.multiple_of == 2);
    CHECK_STR(size.name, "T");
    (void)opd_program_input_type(program, 0, type, sizeof type);
    CHECK(strncmp(type, "float32 [B=2..64, ", 18) == 0);
    for (int64_t t = 2; t < 9; t += 2) {
        opd_value value = opd_value_tensor(in[0] = numbers(OPD_INTS(2 + t, 2 * t))), out[4];
        CHECK_INT(halves(NULL, in, 1, want), 4);
        CHECK_INT(opd_program_run(program, &value, 1, out, 4), 4);
        CHECK_OK();
        for (int i = 0; i < 4; i++) { CHECK(opd_allclose(out[i].u.t, want[i])); }
    }
    opd_graph *copy = opd_graph_copy(read);      /* checks the sizes, as the program does */
    in[0] = numbers(OPD_INTS(70, 8));
    CHECK_INT(opd_graph_run(copy, in, 1, want, 4), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "size 0 is 70, but B must be at most 64");
    in[0] = numbers(OPD_INTS(7, 6));
    CHECK_INT(opd_graph_run(copy, in, 1, want, 4), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "size 1 is 6, so T is 3, but T must be a multiple of 2");
    opd_graph_free(copy);
    opd_program_free(program);
    opd_graph_free(graph);
}
TEST(compiled_graphs_have_the_open_sizes_of_the_graph) {
    static const char *const sizes[] = {"B, T, 4", NULL};
    opd_tensor *in[] = {numbers(OPD_INTS(2, 3, 4)), numbers(OPD_INTS(4, 4))}, *want[2];
    opd_graph *graph = opd_graph_trace_open(transformer, NULL, in, 2, sizes, "1 <= B <= 8, T <= 32", NULL);
    CHECK_OR_RETURN(graph);
    opd_compiled *compiled = opd_graph_compile(graph, NULL);
    for (int64_t t = 3; t < 9; t++) {
        opd_value out[2], given[2];
        in[0] = numbers(OPD_INTS(1 + t % 4, t, 4));
        for (int i = 0; i < 2; i++) { given[i] = opd_value_tensor(in[i]); }
        CHECK_INT(opd_compiled_run(compiled, given, 2, out, 2), 2);
        CHECK_OK();
        if (t > 3 && opd_compiled_reason(compiled)) { printf("%s\n", opd_compiled_reason(compiled)); }
        CHECK(t == 3 || !opd_compiled_reason(compiled) || strstr(opd_compiled_reason(compiled), "compiler"));
        CHECK_INT(transformer(NULL, in, 2, want), 2);
        for (int i = 0; i < 2; i++) { CHECK(opd_allclose(out[i].u.t, want[i])); }
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}

/* Attention of S rows to 2*T + 1 rows of B batches, and rows that are joined and taken in pairs. */
FUNCTION(three_sizes) {
    UNUSED;
    const int64_t batch = opd_size(in[0], 0), rows = opd_size(in[1], 1) / 2;
    opd_tensor *scores = opd_softmax(opd_matmul(in[0], opd_transpose(in[1], 1, 2)), -1);
    opd_tensor *const parts[] = {in[0], in[1]};
    opd_tensor *both = opd_cat(opd_tensors_of((opd_tensor **)(uintptr_t)parts, 2), 1);
    opd_tensor *first = opd_slice(in[1], 1, opd_value_int(0), opd_value_int(rows), 1);
    out[0] = opd_gelu(opd_matmul(scores, in[1]));
    out[1] = opd_mul_Scalar(opd_reshape(both, OPD_INTS(batch * opd_size(both, 1), 4)),
                            opd_value_double(1.0 / (double)opd_size(both, 1)));
    out[2] = opd_relu(opd_reshape(opd_contiguous(first), OPD_INTS(batch, rows / 2, 8)));
    return 3;
}
FUNCTION(four_sizes) {
    UNUSED;
    opd_tensor *x = opd_contiguous(opd_permute(in[0], OPD_INTS(2, 0, 3, 1)));
    out[0] = opd_reshape(opd_tanh(x), OPD_INTS(opd_size(x, 0) * opd_size(x, 1) * opd_size(x, 2) * opd_size(x, 3)));
    out[1] = opd_mean_dim(x, OPD_INTS(0, 3), false);
    return 2;
}
/* Runs a compiled graph and its function with the same inputs, and compares the results. */
static void check_compiled(opd_compiled *compiled, opd_transform_fn fn, opd_tensor *const *in, int n, bool first) {
    opd_value given[4], out[4];
    opd_tensor *want[4];
    const int count = fn(NULL, in, n, want);
    for (int i = 0; i < n; i++) { given[i] = opd_value_tensor(in[i]); }
    CHECK_INT(opd_compiled_run(compiled, given, n, out, 4), count);
    CHECK_OK();
    const char *const reason = opd_compiled_reason(compiled);
    if (reason && !first) { printf("%s\n", reason); }
    CHECK(first || !reason || strstr(reason, "compiler"));
    for (int i = 0; i < count && opd_ok(); i++) { CHECK(opd_allclose_full(out[i].u.t, want[i], 1e-5, 1e-6, true)); }
    opd_error_clear();
}
TEST(compiled_graphs_with_three_and_four_open_sizes) {
    static const char *const sizes[] = {"B, S, 4", "B, 2*T + 1, 4"}, *const four[] = {"A, B, C, D"};
    opd_tensor *in[] = {numbers(OPD_INTS(2, 3, 4)), numbers(OPD_INTS(2, 9, 4))};
    opd_graph *graph = opd_graph_trace_open(three_sizes, NULL, in, 2, sizes,
                                            "1 <= B <= 8, S <= 40, T % 4 == 0, 4 <= T <= 32", NULL);
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    opd_compiled *compiled = opd_graph_compile(graph, NULL);
    check_compiled(compiled, three_sizes, in, 2, true);
    for (int64_t i = 0; i < 40; i++) {
        const int64_t batch = 1 + i % 8, rows = 2 + i * 7 % 39, other = 4 + i * 4 % 32;
        in[0] = numbers(OPD_INTS(batch, rows, 4)), in[1] = numbers(OPD_INTS(batch, 2 * other + 1, 4));
        check_compiled(compiled, three_sizes, in, 2, false);
    }
    opd_value given[2], out[3];
    in[1] = numbers(OPD_INTS(opd_size(in[0], 0), 13, 4));
    for (int i = 0; i < 2; i++) { given[i] = opd_value_tensor(in[i]); }
    CHECK_INT(opd_compiled_run(compiled, given, 2, out, 3), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "input 1: size 1 is 13, so T is 6, but T must be a multiple of 4");
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    in[0] = numbers(OPD_INTS(2, 3, 4, 5));
    graph = opd_graph_trace_open(four_sizes, NULL, in, 1, four, "A <= 9, B <= 9, 1 <= C <= 9, D <= 9", NULL);
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    compiled = opd_graph_compile(graph, NULL);
    check_compiled(compiled, four_sizes, in, 1, true);
    for (int64_t i = 0; i < 20; i++) {
        in[0] = numbers(OPD_INTS(2 + i % 8, 2 + i * 3 % 8, 1 + i * 5 % 9, 9 - i * 7 % 8));
        check_compiled(compiled, four_sizes, in, 1, false);
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}

/* The functions of a written graph, which have three open sizes. */
typedef struct written { const void *weights; void *fixed, *arena; } written;
typedef int (*written_init)(written *model, const void *weights, void *fixed, void *arena);
typedef int (*written_call)(const written *model, ptrdiff_t first, ptrdiff_t second, ptrdiff_t third,
                            void *const *inputs, void *const *outputs);
static void check_written(void *library) {
    static double arena[500000], fixed[8];
    void *const init = dlsym(library, "model_init"), *const call = dlsym(library, "model_call");
    written_init start;
    written_call run;
    written model;
    CHECK_OR_RETURN(init && call);
    memcpy(&start, &init, sizeof start);
    memcpy(&run, &call, sizeof run);
    CHECK_INT(start(&model, NULL, (void *)(((uintptr_t)fixed + 63) / 64 * 64),
                    (void *)(((uintptr_t)arena + 63) / 64 * 64)), 0);
    for (int64_t i = 0; i < 20; i++) {
        const int64_t batch = 1 + i % 8, rows = 2 + i * 7 % 39, other = 1 + i % 8;
        opd_tensor *in[] = {numbers(OPD_INTS(batch, rows, 4)), numbers(OPD_INTS(batch, 8 * other + 1, 4))}, *want[3];
        void *inputs[2], *outputs[3];
        opd_tensor *out[3];
        CHECK_INT(three_sizes(NULL, in, 2, want), 3);
        for (int k = 0; k < 3; k++) { outputs[k] = opd_data(out[k] = opd_zeros_like(want[k])); }
        for (int k = 0; k < 2; k++) { inputs[k] = opd_data(in[k]); }
        CHECK_INT(run(&model, (ptrdiff_t)batch, (ptrdiff_t)rows, (ptrdiff_t)other, inputs, outputs), 0);
        for (int k = 0; k < 3; k++) { CHECK(opd_allclose_full(out[k], want[k], 1e-5, 1e-6, true)); }
        CHECK_INT(run(&model, 9, 2, 1, inputs, outputs), 3);
        CHECK_INT(run(&model, 1, 2, 0, inputs, outputs), 3);
    }
}
TEST(written_graphs_with_three_open_sizes) {
    static const char *const sizes[] = {"B, S, 4", "B, 2*T + 1, 4"};
    static const char *const wrong[] = {"B <= 8, S <= 40, T % 4 == 0", "B <= 8, S <= 40, T % 4 == 0, T <= 7"};
    opd_tensor *in[] = {numbers(OPD_INTS(2, 3, 4)), numbers(OPD_INTS(2, 9, 4))};
    char folder[200], command[1000];
    opd_c_options options;
    memset(&options, 0, sizeof options);
    (void)snprintf(folder, sizeof folder, "%s.c", path());
    (void)snprintf(command, sizeof command, "mkdir '%s'", folder);
    CHECK_OR_RETURN(system(command) == 0);
    opd_graph *graph = opd_graph_trace_open(three_sizes, NULL, in, 2, sizes,
                                            "1 <= B <= 8, S <= 40, T % 4 == 0, 4 <= T <= 32", NULL);
    CHECK_OK();
    CHECK_OR_RETURN(graph);
    CHECK_INT(opd_graph_write_c_open(graph, in, 2, folder, NULL), 0);
    CHECK_OK();
    (void)snprintf(command, sizeof command, "cd '%s' && grep -q 'open_size_3 is T / 4, an argument' model.h && "
                   "grep -q 'in_1, float32 .open_size, (8 . open_size_3 + 1), 4.' model.h", folder);
    CHECK_INT(system(command), 0);
    (void)snprintf(command, sizeof command, "cd '%s' && ${CC:-cc} -std=c99 -Wall -Wextra -Werror -O1 -shared -fPIC "
                   "model.c -lm -o model.so", folder);
    if (!getenv("CC") || !strstr(getenv("CC"), "tcc")) {
        CHECK_INT(system(command), 0);
        (void)snprintf(command, sizeof command, "%s/model.so", folder);
        void *const library = dlopen(command, RTLD_NOW | RTLD_LOCAL);
        CHECK(library != NULL);
        if (library) {
            check_written(library);
            (void)dlclose(library);
        }
    }
    options.calls = true;
    CHECK_INT(opd_graph_write_c_open(graph, in, 2, folder, &options), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "no size can be open");
    in[1] = numbers(OPD_INTS(2, 10, 4));
    CHECK_INT(opd_graph_write_c_open(graph, in, 2, folder, NULL), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "opd_graph_write_c_open: input 1: size 1 is 10, but must be 2*T + 1");
    opd_graph_free(graph);
    in[1] = numbers(OPD_INTS(2, 9, 4));
    for (int i = 0; i < 2; i++) {
        graph = opd_graph_trace_open(three_sizes, NULL, in, 2, sizes, wrong[i], NULL);
        CHECK_OR_RETURN(graph);
        CHECK_INT(opd_graph_write_c_open(graph, in, 2, folder, NULL), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "one to four open sizes, each with several values and an upper bound");
        opd_graph_free(graph);
    }
    (void)snprintf(command, sizeof command, "rm -r '%s'", folder);
    CHECK_INT(system(command), 0);
}

//-- memory that runs out ----------------------------------------------------------------------------------------------

static int trace_and_run(void *arg) {
    static const char *const sizes[] = {"B, S, _", "B, T, 4"};
    opd_tensor *out[2], *const *in = (opd_tensor *const *)arg;
    opd_graph *graph = opd_graph_trace_open(join, NULL, in, 2, sizes, "2 <= B <= 3, S <= 4, T <= 6", NULL);
    const bool done = graph && opd_graph_run(graph, in, 2, out, 2) == 2;
    opd_graph_free(graph);
    return done ? 0 : -1;
}
static int parse_and_copy(void *arg) {
    opd_graph *graph = opd_graph_parse((const char *)arg), *copy = graph ? opd_graph_copy(graph) : NULL;
    const bool done = copy != NULL;
    opd_graph_free(graph);
    opd_graph_free(copy);
    return done ? 0 : -1;
}
TEST(memory_runs_out) {
    opd_tensor *in[] = {numbers(OPD_INTS(2, 3, 4)), numbers(OPD_INTS(2, 5, 4))};
    check_allocations(trace_and_run, in, "opd_graph_trace_open", 300, false);
    static const char source[] =
        "graph(%x : Float(B, 2*T + 1, strides=[2*T + 1, 1], requires_grad=0, device=cpu)):\n"
        "  # size 1 <= T, T % 2 == 0 # a reason\n"
        "  %d : int = prim::Constant[value=1]()\n"
        "  %n : int = aten::sym_size(%x, %d)\n"
        "  return (%x)\n";
    check_allocations(parse_and_copy, (void *)(uintptr_t)source, "opd_graph_parse", 300, false);
}

/* The plan of memory leaves out tensors whose sizes are open.  opd_graph_infer fixes the sizes. */
static int rows_relu(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_relu(in[0]);
    return out[0] ? 1 : -1;
}
TEST(memory_and_types_of_open_graphs) {
    OPD_SCOPED;
    const char *const sizes[] = {"B, 4"};
    opd_tensor *x = opd_ones(OPD_INTS(3, 4), OPD_FLOAT32), *y = opd_ones(OPD_INTS(9, 4), OPD_FLOAT32), *out = NULL;
    opd_graph *const graph = opd_graph_trace_open(rows_relu, NULL, &x, 1, sizes, "B <= 64", NULL);
    opd_graph_memory memory;
    CHECK_OR_RETURN(graph != NULL);
    CHECK_INT(opd_graph_plan_memory(graph, opd_device_make(OPD_CPU, -1), NULL, 0, &memory), 0);
    CHECK_INT(memory.unknown, 1);
    CHECK_INT(opd_graph_infer(graph, &y, 1), 0);
    CHECK_INT(opd_graph_nsizes(graph), 0);
    CHECK_INT(opd_graph_plan_memory(graph, opd_device_make(OPD_CPU, -1), NULL, 0, &memory), 1);
    CHECK_INT(opd_graph_run(graph, &x, 1, &out, 1), 1);
    CHECK(out && opd_equal(out, x));
    CHECK_OK();
    opd_graph_free(graph);
}
/* Gradients inside of an open trace: the gradient of the output is a node of the graph. */
static int loss_of_rows(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user, (void)n;
    out[0] = opd_sum(opd_mul(opd_tanh(in[0]), in[0]));
    return 1;
}
static int grad_of_rows(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    return opd_grad(loss_of_rows, user, in, n, NULL, out, 1);
}
static int backward_of_rows(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const x = opd_tensor_set_requires_grad(opd_detach(in[0]), true);
    if (loss_of_rows(user, &x, n, out) != 1 || opd_backward(out[0])) { return -1; }
    out[0] = opd_tensor_grad(x);
    return 1;
}
TEST(gradients_in_open_traces) {
    static const char *const sizes[] = {"B, 4"};
    const opd_transform_fn all[] = {grad_of_rows, backward_of_rows};
    for (int i = 0; i < 2; i++) {
        opd_tensor *x = opd_randn(OPD_INTS(3, 4), OPD_FLOAT32), *y = opd_randn(OPD_INTS(7, 4), OPD_FLOAT32), *got[1], *want[1];
        opd_graph *graph = opd_graph_trace_open(all[i], NULL, &x, 1, sizes, "2 <= B <= 64", NULL);
        CHECK_OK();
        CHECK_INT(graph ? opd_graph_run(graph, &y, 1, got, 1) : -1, 1);
        CHECK_INT(all[i](NULL, &y, 1, want), 1);
        CHECK(graph && opd_allclose(got[0], want[0]));
        opd_graph_free(graph);
    }
    CHECK_OK();
}
CHECK_MAIN()
