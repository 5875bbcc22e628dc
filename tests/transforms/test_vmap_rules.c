/* Batching rules, apart from their values: which matrix products they become, families for custom operators,
   statistics that are written, and calls that are refused. */
#include "../check.h"

#define FN(name, expression) \
    static int name(void *user, opd_tensor *const *in, int n, opd_tensor **out) { \
        (void)user; (void)n; \
        out[0] = expression; \
        return out[0] ? 1 : -1; \
    }
FN(mm, opd_mm(in[0], in[1]))
FN(mv, opd_mv(in[0], in[1]))
FN(dot, opd_dot(in[0], in[1]))
FN(bmm, opd_bmm(in[0], in[1]))
FN(outer, opd_outer(in[0], in[1]))
FN(addmm, opd_addmm(in[2], in[0], in[1]))
FN(linear, opd_linear(in[0], in[1], in[2]))
FN(conv, opd_conv2d(in[0], in[1], NULL, OPD_INTS(1), OPD_INTS(0)))

static opd_tensor *numbers(opd_ints sizes) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_FLOAT32);
    int64_t i;
    for (i = 0; t && i < opd_numel(t); i++) { opd_data_f32(t)[i] = (float)((i * 7 + 3) % 11) / 4 - 1; }
    return t;
}
static opd_tensor *mapped(opd_transform_fn fn, int n, opd_tensor *a, int da, opd_tensor *b, int db, opd_tensor *c) {
    opd_tensor *in[3], *out[OPD_TRANSFORM_OUTPUTS];
    int dims[3];
    opd_vmap_options o;
    memset(&o, 0, sizeof o);
    in[0] = a; in[1] = b; in[2] = c;
    dims[0] = da; dims[1] = db; dims[2] = OPD_NO_DIM;
    o.in_dims = dims; o.nin_dims = n;
    return opd_vmap(fn, NULL, in, n, &o, out, OPD_TRANSFORM_OUTPUTS) < 0 ? NULL : out[0];
}
static bool same(opd_tensor *a, opd_tensor *b) {
    int64_t i;
    if (!a || !b || opd_ndim(a) != opd_ndim(b) || memcmp(opd_sizes(a), opd_sizes(b), (size_t)opd_ndim(a) * sizeof(int64_t))) { return false; }
    a = opd_contiguous(a); b = opd_contiguous(b);
    for (i = 0; i < opd_numel(a); i++) { if (!(fabs((double)opd_data_f32(a)[i] - (double)opd_data_f32(b)[i]) < 1e-5)) { return false; } }
    return opd_ok();
}

//-- which operators run -------------------------------------------------------------------------------------------------

typedef struct seen { char names[512]; } seen;
static void *see(const opd_event *event, void *user) {
    seen *s = (seen *)user;
    if (strcmp(event->name, "aten::mm") == 0 || strcmp(event->name, "aten::bmm") == 0 ||
        strcmp(event->name, "aten::addmm") == 0 || strcmp(event->name, "aten::expand") == 0 ||
        strcmp(event->name, "aten::clone") == 0 || strcmp(event->name, "aten::convolution") == 0 ||
        strcmp(event->name, "aten::add.Tensor") == 0) {
        (void)snprintf(s->names + strlen(s->names), sizeof s->names - strlen(s->names), "%s ", event->name + 6);
    }
    return NULL;
}
/* The names of those of the operators above that are called for the layers around. */
static const char *runs(seen *s, opd_transform_fn fn, int n, opd_tensor *a, int da, opd_tensor *b, int db, opd_tensor *c) {
    opd_observer o;
    int64_t handle;
    const char *inside;
    memset(&o, 0, sizeof o);
    s->names[0] = 0;
    o.begin = see; o.user = s;
    handle = opd_observer_add_local(&o);
    CHECK(mapped(fn, n, a, da, b, db, c) != NULL);
    CHECK(opd_observer_remove(handle));
    inside = strchr(s->names, ' ');               /* the first is the call itself */
    return inside ? inside + 1 : "";
}

TEST(what_is_shared_is_not_repeated) {
    seen s;
    opd_tensor *w = numbers(OPD_INTS(5, 4)), *x = numbers(OPD_INTS(3, 4)), *m = numbers(OPD_INTS(3, 2, 5)), *b = numbers(OPD_INTS(4));
    CHECK_STR(runs(&s, mm, 2, m, 0, w, OPD_NO_DIM, NULL), "mm ");
    CHECK_STR(runs(&s, mm, 2, numbers(OPD_INTS(3, 2, 5)), 0, numbers(OPD_INTS(3, 5, 2)), 0, NULL), "bmm ");
    CHECK_STR(runs(&s, addmm, 3, m, 0, w, OPD_NO_DIM, b), "addmm ");
    CHECK_STR(runs(&s, bmm, 2, numbers(OPD_INTS(3, 2, 2, 5)), 0, numbers(OPD_INTS(2, 5, 2)), OPD_NO_DIM, NULL), "clone bmm ");
    s.names[0] = 0;
    (void)runs(&s, mv, 2, w, OPD_NO_DIM, x, 0, NULL);
    CHECK_STR(s.names, "mm ");
    (void)runs(&s, linear, 3, x, 0, w, OPD_NO_DIM, numbers(OPD_INTS(5)));
    CHECK_STR(s.names, "addmm ");
    (void)runs(&s, dot, 2, x, 0, x, 0, NULL);
    CHECK_STR(s.names, "bmm ");
    (void)runs(&s, outer, 2, x, 0, x, 0, NULL);
    CHECK_STR(s.names, "bmm ");
    CHECK_STR(runs(&s, conv, 2, numbers(OPD_INTS(3, 1, 2, 4, 4)), 0, numbers(OPD_INTS(2, 2, 3, 3)), OPD_NO_DIM, NULL), "convolution ");
}

//-- refused calls -------------------------------------------------------------------------------------------------------

static int said;
static void listen_(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; said++; }

TEST(sizes_are_those_of_an_example) {
    opd_tensor *a = numbers(OPD_INTS(3, 2, 4)), *b = numbers(OPD_INTS(3, 4, 2)), *v = numbers(OPD_INTS(3, 4));
    const int64_t slow = opd_vmap_fallback_count();
    said = 0;
    opd_log_set(listen_, NULL);
    CHECK(!mapped(mm, 2, a, 0, a, 0, NULL));
    CHECK_ERROR(OPD_ERROR_SHAPE, "mat1 and mat2 shapes cannot be multiplied (2x4 and 2x4)");
    CHECK(!mapped(mm, 2, numbers(OPD_INTS(3, 2, 2, 4)), 0, b, 0, NULL));
    CHECK_ERROR(OPD_ERROR_SHAPE, "self must be a matrix");
    CHECK(!mapped(bmm, 2, a, 0, b, 0, NULL));
    CHECK_ERROR(OPD_ERROR_SHAPE, "batch1 must be a 3D tensor");
    CHECK(!mapped(dot, 2, v, 0, numbers(OPD_INTS(3, 5)), 0, NULL));
    CHECK_ERROR(OPD_ERROR_SHAPE, "inconsistent tensor size, expected tensor [4] and src [5]");
    CHECK(!mapped(mv, 2, a, 0, numbers(OPD_INTS(3, 5)), 0, NULL));
    CHECK_ERROR(OPD_ERROR_SHAPE, "size mismatch, got 2, 2x4,5");
    CHECK(!mapped(addmm, 3, a, 0, b, 0, numbers(OPD_INTS(3))));
    CHECK_ERROR(OPD_ERROR_SHAPE, "must match the existing size");
    CHECK(!mapped(mm, 2, a, 0, opd_to_dtype(b, OPD_FLOAT64), 0, NULL));
    CHECK_ERROR(OPD_ERROR_DTYPE, "expected scalar type float32 but found float64");
    CHECK(!mapped(mm, 2, opd_narrow(a, 0, 0, 0), 0, opd_narrow(a, 0, 0, 0), 0, NULL));
    CHECK_ERROR(OPD_ERROR_SHAPE, "mat1 and mat2 shapes cannot be multiplied");
    CHECK(!mapped(conv, 2, numbers(OPD_INTS(3, 1, 2, 4, 4)), 0, numbers(OPD_INTS(3, 2, 1, 3, 3)), 0, NULL));
    CHECK_ERROR(OPD_ERROR_SHAPE, "channels");
    opd_log_set(NULL, NULL);
    CHECK_INT(said, 0);
    CHECK_INT(opd_vmap_fallback_count(), slow);
}

//-- families of custom operators ----------------------------------------------------------------------------------------

static int calls;
/* [N, ...] and [N, ...]: the sums of the samples' products. */
static int sample_dot_cpu(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    calls++;
    if (opd_ndim(a) < 2) { return opd_fail(OPD_ERROR_SHAPE, "samples expected"); }
    return opd_return_tensor(call, opd_sum_dim(opd_flatten(opd_mul(a, b), 1, -1), OPD_INTS(1), false));
}
static int own_matmul_cpu(opd_call *call) {
    calls++;
    return opd_return_tensor(call, opd_matmul(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)));
}
OPD_LIBRARY(vmap_rules, lib) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "sample_dot(Tensor a, Tensor b) -> Tensor"; d.cpu = sample_dot_cpu; d.vmap = OPD_BATCH_FOLD;
    d.backward = OPD_NOT_DIFFERENTIABLE; d.autocast = OPD_AUTOCAST_KEEP;
    opd_define(lib, &d);
    d.schema = "own_matmul(Tensor a, Tensor b) -> Tensor"; d.cpu = own_matmul_cpu; d.vmap = OPD_BATCH_MATMUL;
    opd_define(lib, &d);
}
static int own(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = OPD_CALL(opd_find((const char *)user), in[0], in[1]);
    return out[0] ? 1 : -1;
}
/* By vmap in one call, and by a loop. */
static void own_against_loop(const char *name, opd_tensor *a, int da, opd_tensor *b, int db) {
    opd_tensor *in[2], *out[OPD_TRANSFORM_OUTPUTS], *all[8];
    const int dims[2] = {da, db};
    const int64_t n = opd_size(da == OPD_NO_DIM ? b : a, da == OPD_NO_DIM ? db : da);
    opd_vmap_options o;
    int64_t k;
    memset(&o, 0, sizeof o);
    o.in_dims = dims; o.nin_dims = 2;
    in[0] = a; in[1] = b;
    calls = 0;
    CHECK_OR_RETURN(opd_vmap(own, (void *)(uintptr_t)name, in, 2, &o, out, OPD_TRANSFORM_OUTPUTS) == 1);
    CHECK_INT(calls, 1);
    for (k = 0; k < n; k++) {
        in[0] = da == OPD_NO_DIM ? a : opd_select(a, da, k);
        in[1] = db == OPD_NO_DIM ? b : opd_select(b, db, k);
        CHECK_OR_RETURN(own((void *)(uintptr_t)name, in, 2, &all[k]) == 1);
    }
    CHECK(same(out[0], opd_stack(opd_tensors_of(all, n), 0)));
}
TEST(samples_of_all_examples_are_one_batch) {
    opd_tensor *a = numbers(OPD_INTS(3, 2, 4)), *in[2], *out[OPD_TRANSFORM_OUTPUTS];
    own_against_loop("vmap_rules::sample_dot", a, 0, numbers(OPD_INTS(3, 2, 4)), 0);
    own_against_loop("vmap_rules::sample_dot", numbers(OPD_INTS(2, 3, 2, 2)), 1, numbers(OPD_INTS(2, 2, 2)), OPD_NO_DIM);
    own_against_loop("vmap_rules::sample_dot", numbers(OPD_INTS(3, 0, 4)), 0, numbers(OPD_INTS(0, 4)), OPD_NO_DIM);
    in[0] = in[1] = opd_narrow(a, 0, 0, 0);
    CHECK_INT(opd_vmap(own, (void *)(uintptr_t)"vmap_rules::sample_dot", in, 2, NULL, out, OPD_TRANSFORM_OUTPUTS), 1);
    CHECK_INT(opd_ndim(out[0]), 2);
    CHECK_INT(opd_size(out[0], 1), 2);
    in[0] = in[1] = numbers(OPD_INTS(3, 2));
    CHECK_INT(opd_vmap(own, (void *)(uintptr_t)"vmap_rules::sample_dot", in, 2, NULL, out, OPD_TRANSFORM_OUTPUTS), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "samples expected");
}
TEST(batches_of_factors_broadcast) {
    static const char *const name = "vmap_rules::own_matmul";
    own_against_loop(name, numbers(OPD_INTS(3, 4)), 0, numbers(OPD_INTS(3, 4)), 0);
    own_against_loop(name, numbers(OPD_INTS(2, 3, 4)), 1, numbers(OPD_INTS(4)), OPD_NO_DIM);
    own_against_loop(name, numbers(OPD_INTS(4)), OPD_NO_DIM, numbers(OPD_INTS(5, 4, 2, 3)), 3);
    own_against_loop(name, numbers(OPD_INTS(3, 2, 4)), 0, numbers(OPD_INTS(5, 4, 2)), OPD_NO_DIM);
}

//-- statistics that are written -----------------------------------------------------------------------------------------

/* Batch norm of in[0] that updates in[1] and in[2]. */
FN(normed, opd_batch_norm(in[0], NULL, NULL, in[1], in[2], true, 0.5, 1e-5, false))
/* The same with a weight in[0], of one x for all. */
static int weighted(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = opd_batch_norm((opd_tensor *)user, in[0], NULL, in[1], in[2], true, 0.5, 1e-5, false);
    return out[0] ? 1 : -1;
}
TEST(running_statistics_of_examples) {
    opd_tensor *x = numbers(OPD_INTS(2, 4, 3)), *in[3], *out[OPD_TRANSFORM_OUTPUTS], *want;
    const int dims[3] = {0, 1, 0}, first[3] = {0, OPD_NO_DIM, OPD_NO_DIM};
    opd_vmap_options o;
    int k;
    memset(&o, 0, sizeof o);
    o.in_dims = dims; o.nin_dims = 3;
    in[0] = x; in[1] = opd_full(OPD_INTS(3, 2), opd_value_double(2), OPD_FLOAT32); in[2] = opd_full(OPD_INTS(2, 3), opd_value_double(3), OPD_FLOAT32);
    CHECK_INT(opd_vmap(normed, NULL, in, 3, &o, out, OPD_TRANSFORM_OUTPUTS), 1);
    for (k = 0; k < 2; k++) {
        want = opd_full(OPD_INTS(3), opd_value_double(2), OPD_FLOAT32);
        (void)opd_batch_norm(opd_select(x, 0, k), NULL, NULL, want, opd_full(OPD_INTS(3), opd_value_double(3), OPD_FLOAT32), true, 0.5, 1e-5, false);
        CHECK(same(opd_select(in[1], 1, k), want));
    }
    CHECK(!same(opd_select(in[2], 0, 0), opd_full(OPD_INTS(3), opd_value_double(3), OPD_FLOAT32)));
    o.in_dims = first;
    in[1] = opd_full(OPD_INTS(3), opd_value_double(2), OPD_FLOAT32); in[2] = opd_full(OPD_INTS(3), opd_value_double(3), OPD_FLOAT32);
    CHECK_INT(opd_vmap(normed, NULL, in, 3, &o, out, OPD_TRANSFORM_OUTPUTS), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Batch norm got a batched tensor as input while the running_mean or running_var");
    in[0] = numbers(OPD_INTS(2, 3));              /* only weights differ: the statistics are the same, and written once */
    want = opd_full(OPD_INTS(3), opd_value_double(2), OPD_FLOAT32);
    x = opd_select(x, 0, 0);
    (void)opd_batch_norm(x, NULL, NULL, want, opd_full(OPD_INTS(3), opd_value_double(3), OPD_FLOAT32), true, 0.5, 1e-5, false);
    CHECK_INT(opd_vmap(weighted, x, in, 3, &o, out, OPD_TRANSFORM_OUTPUTS), 1);
    CHECK(same(in[1], want));
}

//-- memory --------------------------------------------------------------------------------------------------------------

static int loss(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *h;
    (void)user; (void)n;
    h = opd_relu(opd_conv2d(in[2], in[0], NULL, OPD_INTS(1), OPD_INTS(0)));
    h = opd_max_pool2d(h, OPD_INTS(2, 2), opd_ints_of(NULL, 0), OPD_INTS(0));
    h = opd_layer_norm(opd_flatten(h, -3, -1), OPD_INTS(2), NULL, NULL, 1e-5);
    out[0] = opd_cross_entropy_loss(opd_linear(h, in[1], NULL), in[3]);
    return out[0] ? 1 : -1;
}
static int gradients(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    static const int both[2] = {0, 1};
    opd_transform_options o;
    memset(&o, 0, sizeof o);
    o.argnums = both; o.nargnums = 2;
    return opd_grad(loss, user, in, n, &o, out, OPD_TRANSFORM_OUTPUTS);
}
TEST(memory_runs_out_in_rules) {
    const int dims[4] = {OPD_NO_DIM, OPD_NO_DIM, 0, 0};
    opd_tensor *in[4], *out[OPD_TRANSFORM_OUTPUTS], *first[2];
    opd_vmap_options o;
    int64_t n, seen;
    int rc = -1, k;
    memset(&o, 0, sizeof o);
    o.in_dims = dims; o.nin_dims = 4;
    in[0] = numbers(OPD_INTS(2, 1, 3, 3)); in[1] = numbers(OPD_INTS(3, 2)); in[2] = numbers(OPD_INTS(3, 1, 4, 4));
    in[3] = opd_arange(opd_value_int(3), OPD_INT64);
    CHECK_OR_RETURN(opd_vmap(gradients, NULL, in, 4, &o, out, OPD_TRANSFORM_OUTPUTS) == 2);
    for (k = 0; k < 2; k++) { first[k] = out[k]; }
    CHECK_INT(opd_ndim(first[0]), 5);
    for (n = 1, seen = 1; seen >= n - 1 && n < 5000; n++) {
        OPD_SCOPE {
            (void)opd_memory_fail_at(n, false);
            rc = opd_vmap(gradients, NULL, in, 4, &o, out, OPD_TRANSFORM_OUTPUTS);
            seen = opd_memory_fail_at(0, false);
            if (rc < 0) { CHECK(opd_error_code() == OPD_ERROR_MEMORY); opd_error_clear(); }
            else { for (k = 0; k < 2; k++) { CHECK(same(out[k], first[k])); } }      /* it can do without some */
            CHECK_INT(opd_transform_depth(), 0);
        }
    }
    CHECK(n > 100 && rc == 2);
}

//-- dims, promotion, where the examples lie -----------------------------------------------------------------------------

/* torch.result_type: a tensor without dims yields to others of its category also where there are many of it. */
TEST(promotion_of_examples_without_dims) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_INT64, OPD_BOOL, OPD_FLOAT16, OPD_INT32};
    static const int64_t three = 3;
    int i, j, k;
    for (i = 0; i < 36; i++) {
        for (j = 0; j < 16; j++) {                /* bits: a, b are batched; a, b have a dim */
            OPD_SCOPE {
                opd_tensor *a, *b, *want, *got, *pair[2];
                int level;
                a = opd_to_dtype(opd_ones(opd_ints_of(&three, j >> 2 & 1), OPD_FLOAT32), dtypes[i % 6]);
                b = opd_to_dtype(opd_ones(opd_ints_of(&three, j >> 3), OPD_FLOAT32), dtypes[i / 6]);
                want = opd_mul(a, b);
                level = opd_vmap_begin(2, OPD_RANDOM_ERROR);
                for (k = 0; k < 2; k++) {
                    opd_tensor **t = k ? &b : &a;
                    pair[0] = pair[1] = *t;
                    if (j >> k & 1) { *t = opd_vmap_wrap(opd_stack(opd_tensors_of(pair, 2), k ? 0 : -1), k ? 0 : -1, level); }
                }
                got = opd_mul(a, b);
                CHECK(got && opd_dtype(got) == opd_dtype(want) && opd_ndim(got) == opd_ndim(want));
                CHECK(opd_vmap_end(level) == 0);
            }
        }
    }
}
FN(relu, opd_relu(in[0]))
FN(rows, opd_view(opd_clone_full(in[0], opd_value_int(0)), OPD_INTS(6)))
FN(in_place, opd_mul(opd_unsqueeze_(in[0], 0), opd_t(opd_squeeze_dim(in[0], 0))))
/* A unary operator leaves the examples where they are, a copy in rows makes rows of each. */
TEST(examples_stay_where_they_are) {
    opd_tensor *x = numbers(OPD_INTS(2, 3, 4)), *t = opd_permute(x, OPD_INTS(2, 0, 1)), *y;
    int level = opd_vmap_begin(4, OPD_RANDOM_ERROR);
    y = opd_vmap_unwrap(opd_relu(opd_vmap_wrap(x, 2, level)), 2, level);
    CHECK(y && opd_is_contiguous(y) && opd_vmap_end(level) == 0);
    CHECK(same(mapped(relu, 1, x, 2, NULL, 0, NULL), opd_relu(t)));
    CHECK(same(mapped(rows, 1, x, 2, NULL, 0, NULL), opd_reshape(t, OPD_INTS(4, 6))));
    /* one example that changes its dims does not change what it is an example of */
    y = numbers(OPD_INTS(4, 3, 3));
    CHECK(same(mapped(in_place, 1, y, 0, NULL, 0, NULL), opd_reshape(opd_mul(y, opd_transpose(y, 1, 2)), OPD_INTS(4, 1, 3, 3))));
    CHECK_INT(opd_ndim(y), 3);
}
FN(all_dims, opd_sum_dim(in[0], OPD_INTS(), true))
FN(last, opd_sum_dim(in[0], OPD_INTS(-3), false))
FN(too_far, opd_sum_dim(in[0], OPD_INTS(2), false))
FN(twice, opd_flip(in[0], OPD_INTS(0, -2)))
FN(no_matrix, opd_tril(opd_select(in[0], 0, 0), 0))
FN(diagonal_of_number, opd_diag_embed(opd_sum(in[0])))
FN(wrong_view, opd_view(in[0], OPD_INTS(4, 2)))
FN(fewer, opd_expand(in[0], OPD_INTS(3)))
/* Dims are those of an example, also in what is said of wrong ones. */
TEST(dims_of_an_example) {
    static const struct { opd_transform_fn fn; const char *says; } wrong[] = {
        {last, "Dimension out of range (expected to be in range of [-2, 1], but got -3)"},
        {too_far, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"},
        {twice, "appears multiple times in the list of dims"},
        {no_matrix, "input tensor must have at least 2 dimensions"},
        {diagonal_of_number, "expected to be in range of [-1, 0], but got -2"},
        {wrong_view, "shape '[4, 2]' is invalid for input of size 6"},
        {fewer, "must be greater or equal to the number of dimensions in the tensor (2)"}};
    opd_tensor *x = numbers(OPD_INTS(3, 2, 4)), *y;
    size_t i;
    y = mapped(all_dims, 1, opd_narrow(x, 2, 0, 3), 0, NULL, 0, NULL);
    CHECK(y && opd_ndim(y) == 3 && opd_numel(y) == 3);
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(!mapped(wrong[i].fn, 1, opd_narrow(x, 2, 0, 3), 0, NULL, 0, NULL));
        CHECK(strstr(opd_error_message(), wrong[i].says));
        opd_error_clear();
    }
}
FN(weights, opd_safe_softmax(in[0], -1))
FN(distances, opd_euclidean_dist(in[0], in[0]))
FN(lengths, opd_norm_dim(in[0], opd_value_double(2), OPD_INTS(-1), false))
/* The gradient of the sum of fn's results over the examples of x, mapped or one by one. */
static opd_tensor *gradient_of(opd_transform_fn fn, opd_tensor *x, bool one_by_one) {
    opd_tensor *leaf = opd_tensor_set_requires_grad(opd_clone(x), true), *sum = NULL, *example, *y;
    int64_t i;
    if (!one_by_one) { sum = opd_sum(mapped(fn, 1, leaf, 0, NULL, 0, NULL)); }
    for (i = 0; one_by_one && i < opd_size(x, 0); i++) {
        example = opd_select(leaf, 0, i);
        y = fn(NULL, &example, 1, &y) == 1 ? opd_sum(y) : NULL;
        sum = sum ? opd_add(sum, y) : y;
    }
    return opd_backward(sum) == 0 ? opd_tensor_grad(leaf) : NULL;
}
/* A derivative taken around vmap is the operator's own where its parts have none: at a row of -inf, at two equal points,
   at a row of zeros. */
TEST(derivatives_around_examples) {
    static const struct { opd_transform_fn fn; double value; } points[] = {{weights, -INFINITY}, {distances, 1}, {lengths, 0}};
    size_t i;
    for (i = 0; i < sizeof points / sizeof *points; i++) {
        opd_tensor *x = opd_full(OPD_INTS(3, 2, 4), opd_value_double(points[i].value), OPD_FLOAT32);
        CHECK(same(gradient_of(points[i].fn, x, false), gradient_of(points[i].fn, x, true)));
        CHECK(same(gradient_of(points[i].fn, x, true), opd_zeros_like(x)));
    }
}
/* A reduction over all dims of each example that keeps them: of sizes [1, 1] as without vmap (torch.vmap(torch.argmax)). */
static int keeps_dims(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_value args[3];
    (void)n;
    args[0] = opd_value_tensor(in[0]);
    args[1] = opd_value_none();
    args[2] = opd_value_bool(true);
    out[0] = opd_call_op(opd_find((const char *)user), args, 3);
    return out[0] ? 1 : -1;
}
TEST(reductions_over_all_dims_that_keep_them) {
    static const struct { const char *name; double first, last; } rows[] = {
        {"aten::argmax", 5, 5}, {"aten::argmin", 0, 0}, {"aten::sum.dim_IntList", 15, 123}, {"aten::mean.dim", 2.5, 20.5}};
    opd_tensor *x = opd_reshape(opd_arange(opd_value_int(24), OPD_FLOAT32), OPD_INTS(4, 2, 3)), *out;
    size_t i;
    for (i = 0; i < sizeof rows / sizeof *rows; i++) {
        CHECK_INT(opd_vmap(keeps_dims, (void *)(uintptr_t)rows[i].name, &x, 1, NULL, &out, 1), 1);
        CHECK_OR_RETURN(out && opd_ndim(out) == 3 && opd_size(out, 0) == 4 && opd_size(out, 1) == 1 && opd_size(out, 2) == 1);
        out = opd_reshape(out, OPD_INTS(4));
        CHECK_NEAR(opd_item_f64(opd_select(out, 0, 0)), rows[i].first, 1e-6);
        CHECK_NEAR(opd_item_f64(opd_select(out, 0, 3)), rows[i].last, 1e-6);
    }
}
/* Copies of examples whose channels are last in memory, and operators that make such copies.  user: the memory format of the copies. */
static int copies_last(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const opd_value format = opd_value_int(*(const int *)user);
    const bool three = opd_ndim(in[0]) == 5;
    (void)n;
    out[0] = opd_clone_full(in[0], format);
    out[1] = opd_contiguous_full(in[0], 0);
    out[2] = opd_contiguous_full(out[1], *(const int *)user);
    out[3] = opd_to_copy_full(in[0], opd_value_dtype(OPD_FLOAT64), OPD_NONE, OPD_NONE, OPD_NONE, false, format);
    if (three || !opd_ok()) { return opd_ok() ? 4 : -1; }
    out[4] = opd_pixel_unshuffle(out[2], 2);
    out[5] = opd_pixel_shuffle(out[2], 2);
    return opd_ok() ? 6 : -1;
}
TEST(copies_with_the_channels_last) {
    for (int three = 0; three < 2; three++) {
        const int format = three ? 3 : 2;
        static const int64_t all[] = {3, 2, 4, 2, 3, 4}, flat[] = {3, 2, 4, 2, 4};
        const opd_ints sizes = opd_ints_of(three ? all : flat, three ? 6 : 5);
        opd_tensor *const x = opd_reshape(opd_arange(opd_value_int(three ? 576 : 192), OPD_FLOAT32), sizes), *out[6], *want[6];
        for (int dim = 0; dim < 2; dim++) {       /* where the examples are */
            opd_vmap_options options = {.in_dims = &dim, .nin_dims = 1};
            opd_tensor *const batch = opd_movedim(x, 0, dim);
            const int count = opd_vmap(copies_last, (void *)(uintptr_t)&format, &batch, 1, &options, out, 6);
            CHECK_INT(count, three ? 4 : 6);
            for (int i = 0; i < 3 && count > 0; i++) {
                opd_tensor *const one = opd_select(x, 0, i);
                CHECK_INT(copies_last((void *)(uintptr_t)&format, &one, 1, want), count);
                for (int k = 0; k < count; k++) {
                    opd_tensor *const got = opd_select(out[k], 0, i);
                    CHECK(opd_dtype(got) == opd_dtype(want[k]) && opd_equal(got, want[k]));
                    for (int d = 0; d < opd_ndim(got); d++) { CHECK_INT(opd_strides(got)[d], opd_strides(want[k])[d]); }
                }
            }
        }
    }
    opd_tensor *const flat = opd_zeros(OPD_INTS(3, 2), OPD_FLOAT32);
    opd_tensor *out[6];
    const int format = 2;
    CHECK_INT(opd_vmap(copies_last, (void *)(uintptr_t)&format, &flat, 1, NULL, out, 6), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "required rank 4 tensor to use channels_last format");
}
/* Products of complex numbers whose parts are neighbours in the input: the Jacobian in forward mode
   is that of backward. */
static int products_of_pairs(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const pairs = opd_view_as_complex(opd_reshape(in[0], OPD_INTS(3, 4, 2)));
    (void)user;
    (void)n;
    out[0] = opd_view_as_real(opd_mul(pairs, opd_narrow(pairs, 1, 1, 1)));
    return out[0] ? 1 : -1;
}
TEST(jacobians_through_pairs_of_numbers) {
    opd_tensor *const x = opd_sin(opd_reshape(opd_arange(opd_value_int(24), OPD_FLOAT32), OPD_INTS(3, 8))), *forward = NULL, *back = NULL;
    CHECK_INT(opd_jacfwd(products_of_pairs, NULL, &x, 1, NULL, &forward, 1), 1);
    CHECK_INT(opd_jacrev(products_of_pairs, NULL, &x, 1, NULL, &back, 1), 1);
    CHECK(forward && back && opd_allclose_full(forward, back, 1e-5, 1e-6, false));
    CHECK_OK();
}
CHECK_MAIN()
