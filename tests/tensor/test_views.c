/* Factories, random numbers, views and copies, as far as the walk over all operators (test_operators.c) does not
   test them: errors, aliasing, generators, distributions, gradients of lists, memory formats. */
#include "../check.h"

#define FAILS(expr, text) do { \
        CHECK((expr) == NULL); \
        CHECK(strstr(opd_error_message(), text) != NULL); \
        opd_error_clear(); \
    } while (0)

static opd_tensor *counted(opd_ints sizes) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_FLOAT32);
    int64_t i;
    for (i = 0; t && i < opd_numel(t); i++) { opd_data_f32(t)[i] = (float)i; }
    return t;
}
static double value_at(opd_tensor *t, int64_t i) {
    static const int64_t flat[] = {-1};
    return opd_item_f64(opd_select(opd_reshape(t, opd_ints_of(flat, 1)), 0, i));
}
static bool has_sizes(const opd_tensor *t, opd_ints sizes) {
    return t && opd_ndim(t) == sizes.n && (sizes.n == 0 || !memcmp(opd_sizes(t), sizes.data, (size_t)sizes.n * sizeof(int64_t)));
}

TEST(views_share_memory) {
    opd_tensor *x = counted(OPD_INTS(2, 3, 4));
    CHECK(opd_tensor_same_storage(opd_view(x, OPD_INTS(6, -1)), x));
    CHECK(opd_tensor_same_storage(opd_reshape(opd_transpose(x, 0, 1), OPD_INTS(3, 2, 2, 2)), x));
    CHECK(!opd_tensor_same_storage(opd_reshape(opd_transpose(x, 0, 1), OPD_INTS(24)), x));
    CHECK(value_at(opd_select(opd_permute(x, OPD_INTS(2, 0, 1)), 0, 3), 4) == 19);
    CHECK(value_at(opd_slice(x, -1, OPD_V(-3), OPD_V(100), 2), 3) == 7);
    CHECK(opd_contiguous(x) == x);
    CHECK(has_sizes(opd_unfold(x, 2, 2, 1), OPD_INTS(2, 3, 3, 2)));
    CHECK(value_at(opd_diagonal(opd_select(x, 0, 1)), 2) == 22);
    CHECK(opd_fill_(opd_select(x, 0, 0), OPD_V(7)) != NULL);
    CHECK(value_at(x, 11) == 7 && value_at(x, 12) == 12);
}

TEST(views_refuse_what_does_not_fit) {
    opd_tensor *x = counted(OPD_INTS(2, 3));
    int64_t many[OPD_MAX_DIMS + 1], i;
    for (i = 0; i <= OPD_MAX_DIMS; i++) { many[i] = 1; }
    FAILS(opd_view(x, OPD_INTS(4)), "shape '[4]' is invalid for input of size 6");
    FAILS(opd_view(x, OPD_INTS(-1, -1)), "only one dimension can be inferred");
    FAILS(opd_view(x, OPD_INTS(-2, 3)), "invalid shape dimension -2");
    FAILS(opd_view(x, OPD_INTS(INT64_MAX, INT64_MAX)), "is invalid for input of size 6");
    FAILS(opd_view(opd_t(x), OPD_INTS(6)), "view size is not compatible");
    FAILS(opd_view(opd_zeros(OPD_INTS(0, 3), OPD_FLOAT32), OPD_INTS(-1, 0)), "ambiguous");
    FAILS(opd_transpose(x, 0, 2), "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
    FAILS(opd_permute(x, OPD_INTS(0, 0)), "duplicate dims");
    FAILS(opd_permute(x, OPD_INTS(0)), "does not match");
    FAILS(opd_select(x, 1, 3), "index 3 out of range");
    FAILS(opd_select(x, 1, INT64_MIN), "out of range");
    FAILS(opd_slice(x, 0, OPD_V(0), OPD_V(1), 0), "slice step must be positive");
    CHECK(has_sizes(opd_slice(x, 1, OPD_V(INT64_MIN), OPD_V(INT64_MAX), INT64_MAX), OPD_INTS(2, 1)));
    FAILS(opd_expand(x, OPD_INTS(2, 4)), "must match the existing size (3) at non-singleton dimension 1");
    FAILS(opd_expand(x, OPD_INTS(3)), "the number of sizes provided (1) must be greater");
    FAILS(opd_expand(counted(OPD_INTS(1)), OPD_INTS(INT64_MAX, INT64_MAX)), "do not fit into memory");
    FAILS(opd_view(counted(OPD_INTS(1)), opd_ints_of(many, OPD_MAX_DIMS + 1)), "at most");
    FAILS(opd_as_strided(x, OPD_INTS(2, 3), OPD_INTS(3, 2)), "out of bounds for storage");
    FAILS(opd_as_strided_full(x, OPD_INTS(1), OPD_INTS(1), OPD_V(-1)), "out of bounds for storage");
    FAILS(opd_as_strided(x, OPD_INTS(2), OPD_INTS(-1)), "Negative strides");
    FAILS(opd_as_strided(x, OPD_INTS(INT64_MAX), OPD_INTS(INT64_MAX)), "");
    FAILS(opd_diagonal_full(x, 0, 1, -1), "cannot be identical");
    CHECK(opd_numel(opd_diagonal_full(x, INT64_MAX, 0, 1)) == 0 && opd_numel(opd_diagonal_full(x, INT64_MIN, 0, 1)) == 0);
    FAILS(opd_unfold(x, 1, 4, 1), "maximum size for tensor at dimension 1 is 3 but size is 4");
    FAILS(opd_unfold(x, 1, 2, 0), "must be > 0");
    FAILS(opd_unsqueeze(x, 4), "Dimension out of range");
    FAILS(opd_narrow(x, 1, 2, 2), "exceeds dimension size");
    FAILS(opd_narrow(x, 1, 2, INT64_MAX), "exceeds dimension size");
    FAILS(opd_flip(x, OPD_INTS(0, -2)), "appears multiple times");
    FAILS(opd_roll(x, OPD_INTS(1, 2), OPD_INTS(0)), "must align");
    FAILS(opd_repeat(x, OPD_INTS(2)), "can not be smaller");
    FAILS(opd_repeat(x, OPD_INTS(INT64_MAX, 2)), "");
    FAILS(opd_view_dtype(x, OPD_FLOAT64), "must be divisible by 2");
    FAILS(opd_copy_(x, counted(OPD_INTS(2, 2))), "must match");
    FAILS(opd_copy_(opd_expand(counted(OPD_INTS(1)), OPD_INTS(3)), counted(OPD_INTS(3))), "single memory location");
    FAILS(opd_neg_(opd_expand(counted(OPD_INTS(1)), OPD_INTS(3))), "single memory location");
}

TEST(factories_refuse_what_does_not_fit) {
    opd_tensor *x = opd_zeros(OPD_INTS(2), OPD_INT8);
    FAILS(opd_zeros(OPD_INTS(-1), OPD_FLOAT32), "negative dimension");
    FAILS(opd_empty(OPD_INTS(INT64_MAX, 2), OPD_FLOAT32), "do not fit into memory");
    FAILS(opd_zeros(OPD_INTS(2), (opd_scalar_type)63), "not a dtype");
    FAILS(opd_fill_(x, OPD_V(128)), "without overflow");
    FAILS(opd_fill_(x, OPD_V((double)NAN)), "without overflow");
    CHECK(opd_fill_(x, OPD_V(-128)) != NULL && value_at(x, 1) == -128);
    FAILS(opd_arange_start_step(OPD_V(0), OPD_V(1), OPD_V(0), OPD_INT64), "step must be nonzero");
    FAILS(opd_arange_start(OPD_V(1), OPD_V(0), OPD_INT64), "inconsistent with step sign");
    FAILS(opd_arange(OPD_V((double)INFINITY), OPD_FLOAT32), "unsupported range");
    FAILS(opd_arange_start_step(OPD_V(0.0), OPD_V(1e300), OPD_V(1e-300), OPD_FLOAT32), "invalid size");
    FAILS(opd_arange(OPD_V(3), OPD_BOOL), "not implemented for 'bool'");
    FAILS(opd_linspace(OPD_V(0), OPD_V(1), -1, OPD_FLOAT32), "non-negative");
    FAILS(opd_eye(-1, OPD_FLOAT32), "n must be greater or equal to 0");
    FAILS(opd_tril(counted(OPD_INTS(2)), 0), "at least 2 dimensions");
    FAILS(opd_randint(0, OPD_INTS(2), OPD_INT64), "to be less than 'to'");
    FAILS(opd_randint(300, OPD_INTS(2), OPD_INT8), "out of bounds");
    FAILS(opd_normal_(counted(OPD_INTS(2)), 0, -1), "std >= 0.0");
    FAILS(opd_uniform_(counted(OPD_INTS(2)), 2, 1), "[from, to) range");
    FAILS(opd_bernoulli_(counted(OPD_INTS(2)), 1.5), "in [0, 1]");
    FAILS(opd_rand(OPD_INTS(2), OPD_INT64), "not implemented for 'int64'");
    FAILS(opd_empty_full(OPD_INTS(2, 3), OPD_NONE, OPD_NONE, OPD_NONE, OPD_NONE, OPD_V(2)), "required rank 4");
}

TEST(memory_formats) {
    opd_tensor *x = counted(OPD_INTS(2, 3, 4, 5)), *y = opd_contiguous_full(x, 2), *z;
    CHECK(opd_strides(y)[0] == 60 && opd_strides(y)[1] == 1 && opd_strides(y)[2] == 15 && opd_strides(y)[3] == 3);
    z = opd_zeros_like(y);
    CHECK(opd_strides(z)[1] == 1);
    z = opd_clone(y);
    CHECK(opd_strides(z)[1] == 1 && value_at(z, 59) == 59);
    z = opd_clone_full(y, OPD_V(0));
    CHECK(opd_is_contiguous(z) && value_at(z, 77) == 77);
    z = opd_to_dtype(y, OPD_INT64);
    CHECK(opd_strides(z)[1] == 1 && opd_dtype(z) == OPD_INT64);
    CHECK(opd_contiguous_full(y, 2) == y);
}

TEST(generators_repeat_and_differ) {
    opd_generator *g = opd_generator_new(5), *h = opd_generator_new(5);
    opd_tensor *a, *b, *c;
    a = opd_randn_generator(OPD_INTS(1000), g, OPD_FLOAT32);
    b = opd_randn_generator(OPD_INTS(1000), h, OPD_FLOAT32);
    c = opd_randn_generator(OPD_INTS(1000), h, OPD_FLOAT32);
    CHECK(!memcmp(opd_data_f32(a), opd_data_f32(b), 4000));
    CHECK(memcmp(opd_data_f32(a), opd_data_f32(c), 4000) != 0);
    opd_generator_seed(h, 5);
    c = opd_randn_generator(OPD_INTS(1000), h, OPD_FLOAT32);
    CHECK(!memcmp(opd_data_f32(a), opd_data_f32(c), 4000));
    opd_manual_seed(9);
    a = opd_rand(OPD_INTS(70), OPD_FLOAT64);
    opd_manual_seed(9);
    b = opd_rand(OPD_INTS(70), OPD_FLOAT64);
    CHECK(!memcmp(opd_data_f64(a), opd_data_f64(b), 560));
    opd_generator_free(g);
    opd_generator_free(h);
}

static void check_moments(opd_tensor *t, double mean, double deviation, double low, double high) {
    opd_tensor *d = opd_contiguous(opd_to_dtype(t, OPD_FLOAT64));
    const double *p = opd_data_f64(d);
    int64_t i, n = opd_numel(d);
    double sum = 0, squares = 0, least = p[0], most = p[0];
    for (i = 0; i < n; i++) {
        sum += p[i];
        squares += p[i] * p[i];
        least = p[i] < least ? p[i] : least;
        most = p[i] > most ? p[i] : most;
    }
    CHECK(fabs(sum / (double)n - mean) < 6 * deviation / sqrt((double)n));
    CHECK(fabs(sqrt(squares / (double)n - sum / (double)n * (sum / (double)n)) - deviation) < 0.02 * deviation);
    CHECK(least >= low && most <= high);
}
TEST(distributions) {
    static const int64_t sizes[] = {300, 200};
    const opd_ints n = opd_ints_of(sizes, 2);
    opd_manual_seed(1);
    check_moments(opd_rand(n, OPD_FLOAT32), 0.5, sqrt(1 / 12.0), 0, 0.99999998);
    check_moments(opd_rand(n, OPD_FLOAT64), 0.5, sqrt(1 / 12.0), 0, 0.99999999999);
    check_moments(opd_rand(n, OPD_BFLOAT16), 0.5, sqrt(1 / 12.0), 0, 0.999);
    check_moments(opd_rand(n, OPD_FLOAT16), 0.5, sqrt(1 / 12.0), 0, 0.9999);
    check_moments(opd_randn(n, OPD_FLOAT32), 0, 1, -7, 7);
    check_moments(opd_randn(n, OPD_FLOAT64), 0, 1, -7, 7);
    check_moments(opd_normal_(opd_empty(n, OPD_FLOAT32), 3, 2), 3, 2, -12, 18);
    check_moments(opd_uniform_(opd_t(opd_empty(n, OPD_FLOAT32)), -2, 4), 1, sqrt(3.0), -2, 4);
    check_moments(opd_exponential_(opd_empty(n, OPD_FLOAT64), 2), 0.5, 0.5, 0, 20);
    check_moments(opd_bernoulli_(opd_empty(n, OPD_FLOAT32), 0.25), 0.25, sqrt(0.1875), 0, 1);
    check_moments(opd_bernoulli(opd_full(n, OPD_V(0.25), OPD_FLOAT32)), 0.25, sqrt(0.1875), 0, 1);
    check_moments(opd_randint_low(-3, 7, n, OPD_INT64), 1.5, sqrt(99 / 12.0), -3, 6);
    check_moments(opd_random_(opd_empty(n, OPD_UINT8)), 127.5, sqrt(65535 / 12.0), 0, 255);
    check_moments(opd_normal_Tensor_Tensor(opd_full(n, OPD_V(5), OPD_FLOAT32), opd_full(OPD_INTS(1), OPD_V(2), OPD_FLOAT32)), 5, 2, -10, 20);
}

TEST(draws_into_tensors) {                        /* the out= forms, as PyTorch's schemas have them */
    static const int64_t sizes[] = {300, 200};
    const opd_ints n = opd_ints_of(sizes, 2);
    static const char *const text[] = {
        "aten::bernoulli.Tensor_out(Tensor self, Tensor p, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)",
        "aten::bernoulli.float_out(Tensor self, float p=0.5, *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)",
        "aten::normal.out(Tensor self, float mean=0., float std=1., *, Generator? generator=None, Tensor(a!) out) -> Tensor(a!)",
        "aten::linspace.Tensor_Scalar_out(Tensor start, Scalar end, int steps, *, Tensor(a!) out) -> Tensor(a!)",
        "aten::logspace.Tensor_Tensor_out(Tensor start, Tensor end, int steps, float base=10., *, Tensor(a!) out) -> Tensor(a!)"};
    opd_tensor *x = opd_zeros(n, OPD_FLOAT64), *out = opd_empty(OPD_INTS(0), OPD_FLOAT64), *g;
    char name[80], schema[200];
    size_t i;
    for (i = 0; i < sizeof text / sizeof *text; i++) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(text[i], "("), text[i]);
        CHECK_OR_RETURN(opd_find(name) != NULL);
        CHECK(opd_schema_print(opd_op_schema(opd_find(name)), schema, sizeof schema) > 0);
        CHECK_STR(schema, text[i]);
    }
    opd_manual_seed(2);
    CHECK(OPD_CALL(opd_find("aten::bernoulli.Tensor_out"), x, opd_full(OPD_INTS(1), OPD_V(0.25), OPD_FLOAT32), OPD_NONE, out) == out);
    check_moments(out, 0.25, sqrt(0.1875), 0, 1);
    CHECK(OPD_CALL(opd_find("aten::bernoulli.float_out"), x, 0.75, OPD_NONE, out) == out);
    check_moments(out, 0.75, sqrt(0.1875), 0, 1);
    CHECK(OPD_CALL(opd_find("aten::normal.out"), x, 3.0, 2.0, OPD_NONE, out) == out);
    check_moments(out, 3, 2, -12, 18);
    FAILS(OPD_CALL(opd_find("aten::normal.out"), x, 3.0, -2.0, OPD_NONE, out), "normal expects std >= 0.0");
    g = opd_tensor_set_requires_grad(opd_full(n, OPD_V(0.5), OPD_FLOAT64), true);
    check_moments(opd_bernoulli_Tensor(x, g), 0.5, 0.5, 0, 1);
    CHECK_INT(opd_backward(opd_sum(opd_bernoulli_Tensor(x, g))), 0);
    CHECK_NEAR(value_at(opd_tensor_grad(g), 7), 0, 0);
}
TEST(spaces_between_tensors) {                    /* linspace and logspace of 0-dim tensors */
    opd_tensor *a = opd_full(opd_ints_of(NULL, 0), OPD_V(1), OPD_INT64), *b = opd_full(opd_ints_of(NULL, 0), OPD_V(3), OPD_FLOAT64);
    opd_tensor *out = opd_empty(OPD_INTS(0), OPD_FLOAT64), *y;
    CHECK_NEAR(value_at(opd_linspace_Tensor_Tensor(a, b, 5, OPD_FLOAT32), 1), 1.5, 0);
    CHECK_NEAR(value_at(opd_linspace_Tensor_Scalar(b, OPD_V(5), 3, OPD_INT64), 1), 4, 0);
    CHECK_NEAR(value_at(opd_logspace_Scalar_Tensor(OPD_V(1), b, 3, 10, OPD_FLOAT64), 1), 100, 1e-12);
    CHECK(OPD_CALL(opd_find("aten::logspace.Tensor_Tensor_out"), a, b, 3, 2.0, out) == out);
    CHECK(opd_numel(out) == 3 && value_at(out, 2) == 8);
    CHECK(opd_tensor_set_requires_grad(b, true) != NULL);
    y = opd_linspace_Tensor_Tensor(a, b, 5, OPD_FLOAT64);
    CHECK_INT(opd_backward(opd_sum(opd_mul(y, opd_detach(y)))), 0);
    CHECK_NEAR(value_at(opd_tensor_grad(b), 0), 0 + 0.375 + 1 + 0.75 * 2.5 + 3, 1e-12);
    FAILS(opd_linspace_Tensor_Tensor(opd_zeros(OPD_INTS(1), OPD_FLOAT32), b, 5, OPD_FLOAT32),
          "linspace only supports 0-dimensional start and end tensors, but got start with 1 dimension(s) and end with 0 dimension(s).");
    FAILS(opd_logspace_Scalar_Tensor(OPD_V(1), opd_zeros(OPD_INTS(2, 2), OPD_FLOAT32), 5, 10, OPD_FLOAT32),
          "logspace only supports 0-dimensional start and end tensors, but got end with 2 dimension(s).");
}

TEST(randperm_is_a_permutation) {
    opd_tensor *p = opd_randperm(1000, OPD_INT64);
    bool seen[1000] = {false};
    int64_t i, fixed = 0;
    for (i = 0; i < 1000; i++) {
        int64_t k = opd_data_i64(p)[i];
        CHECK_OR_RETURN(k >= 0 && k < 1000 && !seen[k]);
        seen[k] = true;
        fixed += k == i;
    }
    CHECK(fixed < 20);
}

TEST(gradient_of_some_parts_of_a_split) {
    opd_tensor *x = counted(OPD_INTS(5, 2)), *grad;
    opd_tensors parts;
    CHECK(opd_tensor_set_requires_grad(x, true) != NULL);
    parts = opd_split(x, 2, 0);
    CHECK_INT(parts.n, 3);
    CHECK_INT(opd_backward(opd_sum(opd_mul(parts.data[1], parts.data[1]))), 0);
    grad = opd_tensor_grad(x);
    CHECK_OR_RETURN(grad != NULL);
    CHECK(value_at(grad, 3) == 0 && value_at(grad, 4) == 8 && value_at(grad, 8) == 0);
    CHECK_INT(opd_backward(opd_sum(opd_unbind_full(x, 1).data[1])), 0);
    CHECK(value_at(opd_tensor_grad(x), 3) == 1 && value_at(opd_tensor_grad(x), 4) == 8);
}

/* x's elements 1 and 2 lie twice in the window view. */
TEST(gradient_of_overlapping_as_strided) {
    opd_tensor *x = counted(OPD_INTS(4)), *g;
    CHECK(opd_tensor_set_requires_grad(x, true) != NULL);
    CHECK_INT(opd_backward(opd_sum(opd_as_strided(x, OPD_INTS(3, 2), OPD_INTS(1, 1)))), 0);
    g = opd_tensor_grad(x);
    CHECK_OR_RETURN(g != NULL);
    CHECK(value_at(g, 0) == 1 && value_at(g, 1) == 2 && value_at(g, 2) == 2 && value_at(g, 3) == 1);
}

TEST(detach_cuts_and_shares) {
    opd_tensor *x = counted(OPD_INTS(3)), *d;
    CHECK(opd_tensor_set_requires_grad(x, true) != NULL);
    d = opd_detach(x);
    CHECK(!opd_tensor_requires_grad(d) && opd_tensor_same_storage(d, x));
}

TEST(descriptions_written_in_place) {
    opd_tensor *x = counted(OPD_INTS(2, 1, 3));
    CHECK(opd_squeeze_(x) == x && has_sizes(x, OPD_INTS(2, 3)));
    CHECK(opd_t_(x) == x && has_sizes(x, OPD_INTS(3, 2)) && value_at(x, 1) == 3);
    CHECK(opd_unsqueeze_(x, 0) == x && opd_unsqueeze_(x, -1) == x && opd_unsqueeze_(x, 2) == x);
    CHECK(has_sizes(x, OPD_INTS(1, 3, 1, 2, 1)) && value_at(x, 5) == 5);
    CHECK(opd_resize_(x, OPD_INTS(4, 4)) == x && has_sizes(x, OPD_INTS(4, 4)) && opd_is_contiguous(x));
    CHECK(opd_zero_(x) == x && value_at(x, 15) == 0);
    CHECK(opd_as_strided_full(x, OPD_INTS(2), OPD_INTS(8), OPD_V(7)) != NULL);
    CHECK(opd_as_strided_(x, OPD_INTS(2), OPD_INTS(1)) == x && has_sizes(x, OPD_INTS(2)));
}

TEST(complex_pairs) {
    opd_tensor *x = counted(OPD_INTS(2, 2)), *z = opd_view_as_complex(x), *c = opd_conj(z);
    CHECK(opd_dtype(z) == OPD_COMPLEX64 && opd_tensor_same_storage(z, x) && has_sizes(z, OPD_INTS(2)));
    CHECK(value_at(opd_imag(c), 1) == -3 && value_at(opd_real(c), 1) == 2 && value_at(x, 3) == 3);
    CHECK(has_sizes(opd_view_as_real(z), OPD_INTS(2, 2)));
    FAILS(opd_imag(x), "non-complex");
}

TEST(fakes_have_no_memory) {
    const opd_value meta = opd_value_device(opd_device_make(OPD_META, -1));
    opd_tensor *x = opd_zeros_full(OPD_INTS(100000, 100000), OPD_NONE, OPD_NONE, meta, OPD_NONE), *y;
    CHECK(x != NULL && opd_data(x) == NULL);
    y = opd_reshape(opd_t(x), OPD_INTS(-1, 10));
    CHECK(has_sizes(y, OPD_INTS(1000000000, 10)));
    CHECK(opd_fill_(y, OPD_V(1)) == y && opd_randn_like(x) != NULL && opd_flip(x, OPD_INTS(0)) != NULL);
    FAILS(opd_copy_(opd_zeros(OPD_INTS(2), OPD_FLOAT32), opd_empty_full(OPD_INTS(2), OPD_NONE, OPD_NONE, meta, OPD_NONE, OPD_NONE)), "no data");
    CHECK(opd_item(opd_empty_full(OPD_INTS(1), OPD_NONE, OPD_NONE, meta, OPD_NONE, OPD_NONE)).tag == OPD_TAG_NONE);
    opd_error_clear();
}

/* How often each is drawn goes by its probability; without replacement each once. */
TEST(multinomial) {
    static const float p[] = {1, 0, 3, 4};
    static const double want[] = {0.125, 0, 0.375, 0.5};
    opd_tensor *t = opd_tensor_from(p, OPD_INTS(4), OPD_FLOAT32), *counts, *once, *three = opd_narrow(t, 0, 1, 3);
    int i, twos = 0;
    opd_manual_seed(4);
    counts = opd_bincount_full(opd_multinomial_full(t, 20000, true, NULL), NULL, 4);
    CHECK_INT(opd_numel(counts), 4);
    for (i = 0; i < 4; i++) { CHECK_NEAR((double)opd_data_i64(counts)[i] / 20000, want[i], i == 1 ? 0 : 0.015); }
    for (i = 0; i < 200; i++) {
        OPD_SCOPE {
            once = opd_multinomial(t, 3, false);
            CHECK(opd_numel(once) == 3 && opd_item_i64(opd_sum(once)) == 5);  /* 0, 2, 3: never the one that cannot be */
            twos += opd_item_i64(opd_multinomial(three, 1, false)) == 1;             /* of 0, 3, 4 */
        }
    }
    CHECK_NEAR(twos / 200., 3. / 7, 0.12);
    CHECK(opd_multinomial(t, 5, false) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "cannot sample n_sample > prob_dist.size(-1) samples without replacement");
    CHECK(opd_multinomial(opd_neg(t), 1, false) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "probability tensor contains either `inf`, `nan` or element < 0");
    CHECK(opd_multinomial(opd_zeros(OPD_INTS(2), OPD_FLOAT32), 1, false) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "invalid multinomial distribution (sum of probabilities <= 0)");
}

/* Of a permuted tensor with gaps: copies, casts and sorted lines have its order of strides, *_scatter its strides. */
TEST(results_keep_the_order_of_strides) {
    opd_tensor *gaps = opd_diagonal_full(opd_zeros(OPD_INTS(2, 3, 2), OPD_FLOAT32), 0, 0, 2), *sorted[2], *t;
    opd_tensor *part = opd_narrow(opd_t(opd_zeros(OPD_INTS(3, 4), OPD_FLOAT32)), 0, 0, 3), *row = opd_ones(OPD_INTS(3), OPD_FLOAT32);
    t = opd_to_dtype(gaps, OPD_FLOAT64);
    CHECK_INT(opd_strides(t)[0], 1); CHECK_INT(opd_strides(t)[1], 3);
    CHECK_INT(opd_sort(sorted, gaps, -1, false), 0);
    CHECK_INT(opd_strides(sorted[0])[0], 1); CHECK_INT(opd_strides(sorted[0])[1], 3); CHECK_INT(opd_strides(sorted[1])[1], 3);
    t = opd_slice_scatter(part, opd_ones(OPD_INTS(3, 3), OPD_FLOAT32));
    CHECK_INT(opd_strides(t)[0], 1); CHECK_INT(opd_strides(t)[1], 4);
    t = opd_select_scatter(part, row, 0, 1);
    CHECK_INT(opd_strides(t)[0], 1); CHECK_INT(opd_strides(t)[1], 4);
    CHECK(opd_item_f64(opd_sum(t)) == 3);
    t = opd_diagonal_scatter(part, row);
    CHECK_INT(opd_strides(t)[1], 4);
    CHECK(opd_item_f64(opd_sum(t)) == 3);
    /* these results are contiguous instead */
    CHECK_INT(opd_strides(opd_bernoulli(part))[1], 1);
    CHECK_INT(opd_strides(opd_repeat_interleave_full(part, 2, OPD_V(1), OPD_NONE))[1], 1);
    CHECK_OK();
}
CHECK_MAIN()
