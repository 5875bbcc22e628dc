/* vmap: its arguments and errors, levels, chunks, randomness, in-place operators, calls that are refused, rules of
   programs, the form with begin and end, failing calls and allocations, escaped tensors, threads.  THREADED */
#include "../../opdispatch.h"
#include "../tape.h"
#if !defined(OPD_NO_THREADS)
#include <pthread.h>
#endif

//-- helpers -------------------------------------------------------------------------------------------------------------

/* from, from + 1, ... of these sizes, float32. */
static opd_tensor *count_up(double from, opd_ints sizes) {
    float v[512];
    int64_t n = 1;
    int i;
    for (i = 0; i < sizes.n; i++) { n *= sizes.data[i]; }
    for (i = 0; i < n && i < 512; i++) { v[i] = (float)(from + i); }
    return opd_tensor_from(v, sizes, OPD_FLOAT32);
}
static bool shape_is(const opd_tensor *t, opd_ints sizes) {
    return t && opd_ndim(t) == sizes.n && memcmp(opd_sizes(t), sizes.data, (size_t)sizes.n * sizeof(int64_t)) == 0;
}
/* Where the i-th element in reading order is. */
static int64_t case_at(const opd_tensor *t, int64_t i) {
    int64_t at = 0;
    int d;
    for (d = opd_ndim(t) - 1; d >= 0; d--) { at += i % opd_sizes(t)[d] * opd_strides(t)[d]; i /= opd_sizes(t)[d]; }
    return at;
}
static bool same(opd_tensor *a, opd_tensor *b) {
    return a && b && opd_dtype(a) == opd_dtype(b) && shape_is(a, opd_ints_of(opd_sizes(b), opd_ndim(b))) && opd_equal(a, b);
}
static opd_tensor *add_to(opd_tensor *x, opd_tensor *y) { return OPD_CALL(opd_find("aten::add_.Tensor"), x, y); }
static opd_tensor *mul_to(opd_tensor *x, opd_tensor *y) { return OPD_CALL(opd_find("aten::mul_.Tensor"), x, y); }
typedef opd_tensor *(*one_fn)(opd_tensor *const *x);
typedef struct one_user { one_fn fn; int failing; } one_user;
static int call_one(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = ((one_user *)user)->fn(in);
    return out[0] || opd_ok() ? 1 : -1;
}
static opd_vmap_options none_given(void) { opd_vmap_options o; memset(&o, 0, sizeof o); return o; }
/* Returns vmap(fn, in_dims, out_dim)(x, y).  y and in_dims may be NULL. */
static opd_tensor *map2(one_fn fn, opd_tensor *x, opd_tensor *y, const int *in_dims, int out_dim) {
    opd_tensor *in[2], *out[OPD_TRANSFORM_OUTPUTS];
    opd_vmap_options o = none_given();
    one_user u;
    u.fn = fn;
    in[0] = x; in[1] = y;
    o.in_dims = in_dims;
    o.nin_dims = in_dims ? y ? 2 : 1 : 0;
    o.out_dims = &out_dim;
    o.nout_dims = 1;
    return opd_vmap(call_one, &u, in, y ? 2 : 1, &o, out, OPD_TRANSFORM_OUTPUTS) == 1 ? out[0] : NULL;
}
static opd_tensor *map1(one_fn fn, opd_tensor *x) { return map2(fn, x, NULL, NULL, 0); }
/* What must be as before. */
typedef struct around { opd_dispatch_state state; int depth, scopes; } around;
static around around_now(void) {
    around a;
    memset(&a, 0, sizeof a);
    a.state = opd_dispatch_state_get();
    a.depth = opd_transform_depth();
    a.scopes = opd_scope_stats().depth;
    return a;
}
static bool as_before(around a) {
    around b = around_now();
    return memcmp(&a.state, &b.state, sizeof a.state) == 0 && a.depth == b.depth && a.scopes == b.scopes;
}
#define REFUSED(call, text) do { around a_ = around_now(); CHECK(!(call)); CHECK_ERROR(OPD_ERROR_ARGUMENT, text); CHECK(as_before(a_)); } while (0)

static opd_tensor *square(opd_tensor *const *x) { return opd_mul(x[0], x[0]); }
static opd_tensor *add(opd_tensor *const *x) { return opd_add(x[0], x[1]); }
static opd_tensor *dot(opd_tensor *const *x) { return opd_sum(opd_mul(x[0], x[1])); }
static opd_tensor *same_thing(opd_tensor *const *x) { return x[0]; }

//-- arguments and their errors ------------------------------------------------------------------------------------------

static int fail_silently(void *user, opd_tensor *const *in, int n, opd_tensor **out) { (void)user; (void)in; (void)n; (void)out; return -1; }
static int give_none(void *user, opd_tensor *const *in, int n, opd_tensor **out) { (void)user; (void)in; (void)n; out[0] = NULL; return 1; }
static int give_many(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n; out[0] = in[0]; return OPD_TRANSFORM_OUTPUTS + 1;
}
static int give_nothing(void *user, opd_tensor *const *in, int n, opd_tensor **out) { (void)user; (void)in; (void)n; (void)out; return 0; }
static int give_two(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n; out[0] = in[0]; out[1] = opd_mul(in[0], in[0]); return 2;
}
static bool refuse(opd_transform_fn fn, opd_tensor *const *in, int n, const opd_vmap_options *o) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS];
    one_user u;
    u.fn = square;
    return opd_vmap(fn, &u, in, n, o, out, OPD_TRANSFORM_OUTPUTS) >= 0;
}

TEST(inputs_that_do_not_fit) {
    opd_tensor *in[3], *x = count_up(0, OPD_INTS(3, 2)), *y = count_up(0, OPD_INTS(2, 3));
    const int zero[] = {0, 0, 0}, far[] = {2}, deep[] = {-3}, none[] = {OPD_NO_DIM, OPD_NO_DIM}, mixed[] = {0, OPD_NO_DIM};
    opd_vmap_options o = none_given();
    in[0] = x; in[1] = y; in[2] = NULL;
    REFUSED(refuse(call_one, in, 0, NULL), "vmap(fn, in_dims=0, ...)(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no inputs.");
    REFUSED(refuse(call_one, NULL, 1, NULL), "got no inputs");
    REFUSED(refuse(NULL, in, 1, NULL), "function is NULL");
    REFUSED(refuse(call_one, in, 2, NULL), "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes [3, 2] for the mapped dimension");
    o.in_dims = zero; o.nin_dims = 3; o.name = "dot";
    REFUSED(refuse(call_one, in, 2, &o), "vmap(dot, in_dims=(0, 0, 0), ...)(<inputs>): in_dims is not compatible with the structure of `inputs`");
    o.nin_dims = 2;
    REFUSED(refuse(call_one, in + 1, 2, &o), "give OPD_NO_DIM for an input that is not a tensor");
    o.in_dims = far; o.nin_dims = 1;
    REFUSED(refuse(call_one, in, 1, &o), "Got in_dim=2 for some input, but that input is a Tensor of dimensionality 2 so expected in_dim to satisfy -2 <= in_dim < 2");
    o.in_dims = deep;
    REFUSED(refuse(call_one, in, 1, &o), "expected in_dim to satisfy -2 <= in_dim < 2");
    in[0] = opd_sum(x);
    o.in_dims = NULL;
    REFUSED(refuse(call_one, in, 1, &o), "expected in_dim to satisfy -0 <= in_dim < 0");
    in[0] = x;
    o.in_dims = none; o.nin_dims = 2;
    REFUSED(refuse(call_one, in, 2, &o), "vmap(dot, in_dims=(None, None), ...)(<inputs>): vmap: Expected at least one Tensor to vmap over");
    o.in_dims = mixed;
    CHECK(refuse(call_one, in, 2, &o));
    o = none_given();
    o.randomness = (opd_randomness)7;
    REFUSED(refuse(call_one, in, 1, &o), "Only allowed values for randomness are 'error', 'different', or 'same'.");
    o = none_given();
    o.chunk_size = -1;
    REFUSED(refuse(call_one, in, 1, &o), "vmap: chunk_size must be positive, or 0 for no chunks, but is");
}

TEST(outputs_that_do_not_fit) {
    opd_tensor *x = count_up(0, OPD_INTS(3, 2));
    const int zero[] = {0, 0, 0}, none[] = {OPD_NO_DIM}, far[] = {2}, deep[] = {-3};
    opd_vmap_options o = none_given();
    around a = around_now();
    o.name = "f";
    REFUSED(refuse(give_none, &x, 1, &o), "vmap: `f` must only return Tensors, got NULL as output 0");
    CHECK(!refuse(fail_silently, &x, 1, &o));
    CHECK_ERROR(OPD_ERROR_USER, "failed without setting an error");
    REFUSED(refuse(give_many, &x, 1, &o), "returned 65 outputs");
    o.out_dims = zero; o.nout_dims = 3;
    REFUSED(refuse(give_two, &x, 1, &o), "vmap(f, ..., out_dims=...)(<inputs>): out_dims is not compatible with the structure of `outputs`. out_dims has 3 elements but outputs has 2.");
    o.out_dims = none; o.nout_dims = 1;
    REFUSED(refuse(call_one, &x, 1, &o), "needs an out_dim other than OPD_NO_DIM");
    o.out_dims = far;
    CHECK(!refuse(call_one, &x, 1, &o));
    CHECK_ERROR(OPD_ERROR_INDEX, "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
    o.out_dims = deep;
    CHECK(!refuse(call_one, &x, 1, &o));
    CHECK_ERROR(OPD_ERROR_INDEX, "Dimension out of range (expected to be in range of [-2, 1], but got -3)");
    o.out_dims = NULL;
    CHECK(refuse(give_nothing, &x, 1, &o));
    CHECK(as_before(a));
}

TEST(dims_of_inputs_and_outputs) {
    opd_tensor *x = count_up(1, OPD_INTS(2, 3)), *y = count_up(10, OPD_INTS(3, 2)), *r;
    const int both[] = {1, 0}, last[] = {-1, -2}, one[] = {1, OPD_NO_DIM};
    CHECK(same(map2(add, x, y, both, 0), opd_add(opd_t(x), y)));
    CHECK(same(map2(add, x, y, last, 0), opd_add(opd_t(x), y)));
    CHECK(same(map2(add, x, y, both, 1), opd_t(opd_add(opd_t(x), y))));
    CHECK(same(map2(add, x, y, both, -1), opd_t(opd_add(opd_t(x), y))));
    CHECK(same(map2(dot, x, y, both, 0), opd_sum_dim(opd_mul(opd_t(x), y), OPD_INTS(1), false)));
    r = map2(add, x, count_up(0, OPD_INTS(2)), one, 0);
    CHECK(same(r, opd_add(opd_t(x), count_up(0, OPD_INTS(2)))));
    CHECK(same(map1(square, x), opd_mul(x, x)));
    CHECK(same(map1(same_thing, x), x));
    r = map2(same_thing, x, NULL, both, 1);       /* in 1, out 1: itself */
    CHECK(same(r, x));
}

static opd_tensor *outside;
static opd_tensor *give_outside(opd_tensor *const *x) { (void)x; return outside; }
static opd_tensor *add_outside(opd_tensor *const *x) { return opd_add(x[0], outside); }
TEST(tensors_from_outside_are_the_same_for_all) {
    opd_tensor *x = count_up(1, OPD_INTS(2, 3)), *r;
    outside = count_up(5, OPD_INTS(3));
    CHECK(same(map1(add_outside, x), opd_add(x, outside)));
    r = map1(give_outside, x);
    CHECK(same(r, opd_expand(outside, OPD_INTS(2, 3))));
    r = map2(give_outside, x, NULL, NULL, 1);
    CHECK(same(r, opd_t(opd_expand(outside, OPD_INTS(2, 3)))));
    r = map2(give_outside, x, NULL, NULL, OPD_NO_DIM);
    CHECK(r == outside);
}

TEST(many_outputs_each_with_its_dim) {
    opd_tensor *x = count_up(1, OPD_INTS(2, 3)), *out[OPD_TRANSFORM_OUTPUTS];
    const int dims[] = {1, 0};
    opd_vmap_options o = none_given();
    o.out_dims = dims; o.nout_dims = 2;
    CHECK_INT(opd_vmap(give_two, NULL, &x, 1, &o, out, OPD_TRANSFORM_OUTPUTS), 2);
    CHECK(same(out[0], opd_t(x)) && same(out[1], opd_mul(x, x)));
}

//-- levels --------------------------------------------------------------------------------------------------------------

static opd_tensor *outer_x, *outer_seen;
static opd_tensor *inner_mul(opd_tensor *const *y) { return opd_mul(outer_x, y[0]); }
static opd_tensor *each_of_outside(opd_tensor *const *x) { outer_x = x[0]; return map1(inner_mul, outside); }
static opd_tensor *nested_square(opd_tensor *const *x) { return map1(square, x[0]); }
static opd_tensor *nested_last(opd_tensor *const *x) { const int d[] = {1}; return map2(square, x[0], NULL, d, 0); }
static opd_tensor *inner_keeps(opd_tensor *const *y) { (void)y; return outer_x; }
static opd_tensor *inner_of_outer(opd_tensor *const *x) { outer_x = x[0]; return map1(inner_keeps, outside); }
static opd_tensor *depth_here(opd_tensor *const *x) { outer_seen = opd_full(OPD_INTS(1), opd_value_int(opd_transform_depth()), OPD_FLOAT32); return x[0]; }
static opd_tensor *depth_nested(opd_tensor *const *x) { return map1(depth_here, x[0]); }
TEST(levels_nest) {
    opd_tensor *x = count_up(1, OPD_INTS(2, 3)), *big = count_up(0, OPD_INTS(2, 3, 4));
    outside = count_up(1, OPD_INTS(5));
    CHECK(same(map1(each_of_outside, count_up(1, OPD_INTS(3))), opd_mul(opd_unsqueeze(count_up(1, OPD_INTS(3)), 1), outside)));
    CHECK(same(map1(nested_square, x), opd_mul(x, x)));
    CHECK(same(map1(nested_last, big), opd_transpose(opd_mul(big, big), 1, 2)));
    CHECK(same(map1(inner_of_outer, x), opd_expand(opd_unsqueeze(x, 1), OPD_INTS(2, 5, 3))));
    (void)map1(depth_nested, x);
    CHECK_NEAR(opd_item_f64(outer_seen), 2, 0);
    CHECK_INT(opd_transform_depth(), 0);
}

static opd_tensor *depth_by_recursion(opd_tensor *const *x) {
    return opd_ndim(x[0]) ? map1(depth_by_recursion, x[0]) : opd_add_Scalar(x[0], opd_value_double(1));
}
TEST(as_many_levels_as_dims) {
    opd_tensor *x = count_up(1, OPD_INTS(2, 1, 3, 1, 2, 1, 1, 2));
    CHECK(same(map1(depth_by_recursion, x), opd_add_Scalar(x, opd_value_double(1))));
}
TEST(too_many_levels) {
    int level = 0, i;
    around a = around_now();
    OPD_SCOPE {
        for (i = 1; i <= 64; i++) { CHECK_INT(level = opd_vmap_begin(2, OPD_RANDOM_ERROR), i); }
        CHECK_INT(opd_vmap_begin(2, OPD_RANDOM_ERROR), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "transforms are nested deeper than 64");
        CHECK_INT(opd_transform_depth(), 64);
    }
    CHECK(as_before(a));
}

static opd_tensor *look(opd_tensor *const *x) {
    CHECK(opd_tensor_is_batched(x[0]) && opd_ndim(x[0]) == 2 && opd_size(x[0], 0) == 3 && opd_numel(x[0]) == 12);
    CHECK(!opd_tensor_is_batched(outside) && !opd_tensor_is_batched(NULL));
    return opd_unsqueeze(x[0], -1);
}
TEST(one_example_is_what_the_function_sees) {
    opd_tensor *x = count_up(1, OPD_INTS(2, 3, 4));
    outside = x;
    CHECK(shape_is(map1(look, x), OPD_INTS(2, 3, 4, 1)));
}

//-- chunks --------------------------------------------------------------------------------------------------------------

static int64_t calls;
static int sizes_seen(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *one = opd_sum(in[0]);
    (void)user; (void)n;
    calls++;
    out[0] = opd_mul(in[0], one);
    out[1] = one;
    out[2] = outside;
    return 3;
}
TEST(chunks) {
    static const int64_t steps[] = {1, 2, 3, 4, 5, 6, 100};
    const int out_dims[] = {1, 0, OPD_NO_DIM}, in_dims[] = {1};
    opd_tensor *x = count_up(1, OPD_INTS(3, 5)), *whole[OPD_TRANSFORM_OUTPUTS], *out[OPD_TRANSFORM_OUTPUTS];
    opd_vmap_options o = none_given();
    int i;
    outside = count_up(0, OPD_INTS(2));
    o.in_dims = in_dims; o.nin_dims = 1;
    o.out_dims = out_dims; o.nout_dims = 3;
    CHECK_INT(opd_vmap(sizes_seen, NULL, &x, 1, &o, whole, OPD_TRANSFORM_OUTPUTS), 3);
    for (i = 0; i < 7; i++) {
        o.chunk_size = steps[i];
        calls = 0;
        CHECK_INT(opd_vmap(sizes_seen, NULL, &x, 1, &o, out, OPD_TRANSFORM_OUTPUTS), 3);
        CHECK_INT(calls, steps[i] >= 5 ? 1 : (5 + steps[i] - 1) / steps[i]);
        CHECK(same(out[0], whole[0]) && same(out[1], whole[1]) && out[2] == outside);
    }
}
static opd_tensor *noise(opd_tensor *const *x) { return opd_add(x[0], opd_randn(OPD_INTS(3), OPD_FLOAT32)); }
TEST(chunks_draw_the_same) {
    opd_tensor *x = opd_zeros(OPD_INTS(4, 3), OPD_FLOAT32), *out[OPD_TRANSFORM_OUTPUTS];
    opd_vmap_options o = none_given();
    one_user u;
    int i;
    u.fn = noise;
    o.randomness = OPD_RANDOM_SAME;
    o.chunk_size = 2;
    CHECK_INT(opd_vmap(call_one, &u, &x, 1, &o, out, OPD_TRANSFORM_OUTPUTS), 1);
    for (i = 1; i < 4; i++) { CHECK(same(opd_select(out[0], 0, i), opd_select(out[0], 0, 0))); }
    o.randomness = OPD_RANDOM_DIFFERENT;
    CHECK_INT(opd_vmap(call_one, &u, &x, 1, &o, out, OPD_TRANSFORM_OUTPUTS), 1);
    for (i = 1; i < 4; i++) { CHECK(!same(opd_select(out[0], 0, i), opd_select(out[0], 0, 0))); }
}

//-- random numbers ------------------------------------------------------------------------------------------------------

static opd_tensor *draw(opd_tensor *const *x) { (void)x; return opd_randn(OPD_INTS(4), OPD_FLOAT32); }
static opd_tensor *draw_like(opd_tensor *const *x) { return opd_rand_like(x[0]); }
static opd_tensor *draw_in_place(opd_tensor *const *x) { return opd_normal_(opd_clone(x[0]), 0, 1); }
static opd_tensor *drop(opd_tensor *const *x) { return opd_dropout(x[0], 0.5, true); }
static opd_tensor *drop_not(opd_tensor *const *x) { return opd_dropout(x[0], 0.5, false); }
static opd_tensor *outside_in_place(opd_tensor *const *x) { (void)x; return opd_normal_(outside, 0, 1); }
static opd_tensor *mapped_random(one_fn fn, opd_tensor *x, opd_randomness r) {
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS];
    opd_vmap_options o = none_given();
    one_user u;
    u.fn = fn;
    o.randomness = r;
    return opd_vmap(call_one, &u, &x, 1, &o, out, OPD_TRANSFORM_OUTPUTS) == 1 ? out[0] : NULL;
}
TEST(randomness) {
    static const one_fn fns[] = {draw, draw_like, draw_in_place, drop};
    opd_tensor *x = opd_ones(OPD_INTS(3, 4), OPD_FLOAT32), *r;
    int i, k;
    for (i = 0; i < 4; i++) {
        REFUSED(mapped_random(fns[i], x, OPD_RANDOM_ERROR), "vmap: called random operation while in randomness error mode");
        r = mapped_random(fns[i], x, OPD_RANDOM_SAME);
        if (!r) { CHECK_OK(); opd_error_clear(); continue; }
        CHECK(shape_is(r, OPD_INTS(3, 4)));
        for (k = 1; k < 3; k++) { CHECK(same(opd_select(r, 0, k), opd_select(r, 0, 0))); }
        if (i == 3) { continue; }                 /* half the draws of dropout may well be alike */
        r = mapped_random(fns[i], x, OPD_RANDOM_DIFFERENT);
        CHECK(shape_is(r, OPD_INTS(3, 4)));
        for (k = 1; r && k < 3; k++) { CHECK(!same(opd_select(r, 0, k), opd_select(r, 0, 0))); }
    }
    CHECK(same(mapped_random(drop_not, x, OPD_RANDOM_ERROR), x));
    outside = opd_ones(OPD_INTS(4), OPD_FLOAT32);
    REFUSED(mapped_random(outside_in_place, x, OPD_RANDOM_DIFFERENT), "Cannot ask for different inplace randomness on an unbatched tensor");
    CHECK(mapped_random(outside_in_place, x, OPD_RANDOM_SAME) != NULL);
    CHECK_OK();
}

//-- writes in place -----------------------------------------------------------------------------------------------------

static opd_tensor *add_in_place(opd_tensor *const *x) { return add_to(x[0], x[1]); }
static opd_tensor *outside_add(opd_tensor *const *x) { return add_to(outside, x[0]); }
static opd_tensor *outside_copy(opd_tensor *const *x) { return opd_copy_(outside, x[0]); }
static opd_tensor *own_zeros(opd_tensor *const *x) { return add_to(opd_zeros_like(x[0]), x[0]); }
static opd_tensor *flip_in_place(opd_tensor *const *x) { return mul_to(opd_transpose(x[0], 0, 1), opd_transpose(x[0], 0, 1)); }
static opd_tensor *level_two_into_one(opd_tensor *const *x) { return add_to(outer_x, x[0]); }
static opd_tensor *inner_into_outer(opd_tensor *const *x) { outer_x = opd_clone(x[0]); return map1(level_two_into_one, outside); }
TEST(writes_in_place) {
    opd_tensor *x = count_up(1, OPD_INTS(2, 3)), *was = opd_clone(x), *y = count_up(5, OPD_INTS(3)), *r, *big = count_up(0, OPD_INTS(2, 2, 2));
    const int self_only[] = {0, OPD_NO_DIM}, other_only[] = {OPD_NO_DIM, 0};
    r = map2(add_in_place, x, y, self_only, 0);
    CHECK(same(x, opd_add(was, y)) && same(r, x) && opd_data(r) == opd_data(x));
    REFUSED(map2(add_in_place, y, x, other_only, 0), "vmap: aten::add_.Tensor(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args that has more elements than `self`. This happened due to `other` being vmapped over but `self` not being vmapped over at level 1. Please try to use out-of-place operators instead of aten::add_.Tensor.");
    outside = opd_zeros(OPD_INTS(3), OPD_FLOAT32);
    REFUSED(map1(outside_add, x), "is not possible because there exists a Tensor `other` in extra_args");
    REFUSED(map1(outside_copy, x), "is not possible because there exists a Tensor `other` in extra_args");
    CHECK(same(outside, opd_zeros(OPD_INTS(3), OPD_FLOAT32)));
    CHECK(same(map1(own_zeros, x), x));
    was = opd_clone(big);
    CHECK(map1(flip_in_place, big) != NULL && same(big, opd_mul(was, was)));
    outside = count_up(0, OPD_INTS(4, 3));
    REFUSED(map1(inner_into_outer, x), "not being vmapped over at level 2");
}
static opd_tensor *transposed_in_place(opd_tensor *const *x) { opd_tensor *c = opd_clone(x[0]); return opd_transpose_(c, 0, 1) ? mul_to(c, outside) : NULL; }
static opd_tensor *squeezed_in_place(opd_tensor *const *x) { opd_tensor *c = opd_clone(x[0]); return opd_unsqueeze_(c, 0) && opd_unsqueeze_(c, -1) ? c : NULL; }
TEST(views_in_place) {
    opd_tensor *x = count_up(1, OPD_INTS(2, 3, 4));
    outside = count_up(0, OPD_INTS(4, 3));
    CHECK(same(map1(transposed_in_place, x), opd_mul(opd_transpose(x, 1, 2), outside)));
    CHECK(shape_is(map1(squeezed_in_place, x), OPD_INTS(2, 1, 3, 4, 1)));
    CHECK_OK();
}

//-- refused calls -------------------------------------------------------------------------------------------------------

static opd_tensor *item_of(opd_tensor *const *x) { (void)opd_item_f64(opd_sum(x[0])); return x[0]; }
static opd_tensor *item_op(opd_tensor *const *x) {
    opd_value v = opd_value_tensor(opd_sum(x[0])), r;
    return opd_call_all(opd_find("aten::item"), &r, &v, 1) ? NULL : x[0];
}
static opd_tensor *equal_of(opd_tensor *const *x) { (void)opd_equal(x[0], x[0]); return x[0]; }
static opd_tensor *nonzero_of(opd_tensor *const *x) { return opd_nonzero(x[0]); }
static opd_tensor *masked_of(opd_tensor *const *x) { return opd_masked_select(x[0], opd_gt_Scalar(x[0], opd_value_double(2))); }
static opd_tensor *masked_by_outside(opd_tensor *const *x) { return opd_masked_select(x[0], outside); }
static opd_tensor *where_of(opd_tensor *const *x) { opd_tensors l = opd_where(x[0]); return l.n ? l.data[0] : NULL; }
static opd_tensor *bool_index(opd_tensor *const *x) {
    opd_tensor *m = opd_gt_Scalar(x[0], opd_value_double(2));
    return opd_index(x[0], opd_tensors_of(&m, 1));
}
static opd_tensor *data_of(opd_tensor *const *x) { return opd_data(x[0]) ? x[0] : NULL; }
static opd_tensor *typed_data_of(opd_tensor *const *x) { return opd_data_f32(x[0]) ? x[0] : NULL; }
static opd_tensor *data_tensor_of(opd_tensor *const *x) { return opd_tensor_data(x[0]); }
static opd_tensor *view_by_hand(opd_tensor *const *x) { const int64_t one = 1; return opd_tensor_view(x[0], &one, &one, 1, 0); }
static opd_tensor *requires_grad(opd_tensor *const *x) { return opd_tensor_set_requires_grad(x[0], true); }
static opd_tensor *retains_grad(opd_tensor *const *x) { return opd_tensor_retain_grad(x[0]) ? NULL : x[0]; }
static opd_tensor *backs(opd_tensor *const *x) { return opd_backward(opd_sum(x[0])) ? NULL : x[0]; }
static opd_tensor *sets_data(opd_tensor *const *x) { return opd_tensor_set_data(outside, x[0]) ? NULL : x[0]; }
static opd_tensor *gets_data(opd_tensor *const *x) { return opd_tensor_set_data(x[0], outside) ? NULL : x[0]; }
TEST(what_examples_cannot_do) {
    opd_tensor *x = count_up(0, OPD_INTS(2, 4)), *was = opd_clone(x);
    static const char *const item = "vmap: It looks like you're calling .item() on a Tensor", *const sizes = "vmap: We do not support batching operators that can output dynamic shape",
                      *const data = "accessing `data` under vmap transform is not allowed";
    REFUSED(map1(item_of, x), item);
    REFUSED(map1(item_op, x), item);
    REFUSED(map1(equal_of, x), "Batching rule not implemented for aten::equal. We could not generate a fallback.");
    REFUSED(map1(nonzero_of, x), sizes);
    REFUSED(map1(masked_of, x), sizes);
    REFUSED(map1(where_of, x), sizes);
    REFUSED(map1(bool_index, x), sizes);
    REFUSED(map1(data_of, x), data);
    REFUSED(map1(typed_data_of, x), data);
    REFUSED(map1(data_tensor_of, x), data);
    REFUSED(map1(view_by_hand, x), data);
    outside = opd_gt_Scalar(count_up(0, OPD_INTS(4)), opd_value_double(1));
    CHECK(same(map1(masked_by_outside, x), opd_slice(x, 1, opd_value_int(2), opd_value_int(4), 1)));
    outside = count_up(0, OPD_INTS(4));
    CHECK(!map1(sets_data, x));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "incompatible tensor type");
    REFUSED(map1(gets_data, x), "modifying `data` under vmap transform is not allowed");
    CHECK(same(x, was));
}
TEST(no_leaves_and_no_backward_inside) {
    opd_tensor *x = count_up(0, OPD_INTS(2, 4));
    around a = around_now();
    CHECK(!map1(requires_grad, x));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "opd_tensor_set_requires_grad cannot be called inside of a function that opd_grad");
    CHECK(opd_tensor_set_requires_grad(x, true) != NULL);
    CHECK(!map1(retains_grad, x));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "opd_tensor_retain_grad cannot be called inside of a function that opd_grad");
    CHECK(!map1(backs, x));
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "opd_backward cannot be called inside of a function that opd_grad");
    CHECK(as_before(a) && !opd_tensor_grad(x));
}

TEST(examples_are_printed_with_all_of_them) {
    char text[400];
    opd_tensor *x = count_up(1, OPD_INTS(2, 3)), *b;
    int level = opd_vmap_begin(2, OPD_RANDOM_ERROR), inner;
    b = opd_vmap_wrap(x, 0, level);
    CHECK(opd_tensor_print(b, text, sizeof text) == 90);
    CHECK_STR(text, "BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[1., 2., 3.],\n            [4., 5., 6.]])\n)");
    inner = opd_vmap_begin(3, OPD_RANDOM_ERROR);
    CHECK(opd_tensor_print(opd_vmap_wrap(b, 0, inner), text, sizeof text) > 0);
    CHECK_STR(text, "BatchedTensor(lvl=2, bdim=0, value=\n    BatchedTensor(lvl=1, bdim=0, value=\n        tensor([[1., 2., 3.],\n                [4., 5., 6.]])\n    )\n)");
    CHECK_INT(opd_vmap_end(inner), 0);
    CHECK_INT(opd_vmap_end(level), 0);
}

//-- gradients through vmap ----------------------------------------------------------------------------------------------

TEST(backward_through_vmap) {
    opd_tensor *x = opd_tensor_set_requires_grad(count_up(1, OPD_INTS(2, 3)), true), *y = opd_tensor_set_requires_grad(count_up(4, OPD_INTS(3)), true), *r;
    const int dims[] = {0, OPD_NO_DIM};
    r = map2(dot, x, y, dims, 0);
    CHECK(opd_tensor_requires_grad(r) && opd_backward(opd_sum(r)) == 0);
    CHECK(same(opd_tensor_grad(x), opd_contiguous(opd_expand(opd_detach(y), OPD_INTS(2, 3)))));
    CHECK(same(opd_tensor_grad(y), opd_sum_dim(opd_detach(x), OPD_INTS(0), false)));
}

TEST(gradients_in_batches) {
    opd_tensor *x = opd_tensor_set_requires_grad(count_up(1, OPD_INTS(3)), true), *u = opd_tensor_set_requires_grad(count_up(1, OPD_INTS(3)), true),
               *y = opd_mul(opd_mul(x, x), x), *z = opd_sum(x), *in[2], *out[2], *g[2], *got[2], *more;
    opd_backward_options o = options();
    around a = around_now();
    in[0] = x; in[1] = u;
    out[0] = y; out[1] = z;
    g[0] = opd_stack(opd_tensors_of(in, 2), 0);
    g[1] = count_up(1, OPD_INTS(2));
    o.grad_outputs = g;
    o.is_grads_batched = o.allow_unused = o.create_graph = true;
    CHECK_INT(opd_autograd_grad(out, 2, in, 2, &o, got), 0);
    CHECK(got[1] == NULL && same(opd_detach(got[0]), opd_detach(opd_add(opd_mul(g[0], opd_mul_Scalar(opd_mul(x, x), opd_value_int(3))), opd_unsqueeze(g[1], 1)))));
    CHECK(opd_tensor_requires_grad(got[0]));
    o.is_grads_batched = false;
    o.grad_outputs = NULL;
    more = opd_sum(got[0]);
    CHECK_INT(opd_autograd_grad(&more, 1, in, 1, &o, got), 0);          /* through the batch: also by what was given */
    CHECK(same(opd_detach(got[0]), opd_detach(opd_add(opd_mul(opd_mul_Scalar(x, opd_value_int(6)), opd_sum_dim(g[0], OPD_INTS(0), false)), opd_mul_Scalar(opd_mul(x, x), opd_value_int(3))))));
    o.grad_outputs = g;
    o.is_grads_batched = true;
    CHECK_INT(opd_autograd_grad(&y, 1, &u, 1, &o, got), 0);
    CHECK(got[0] == NULL);
    o.materialize_grads = true;
    o.allow_unused = false;
    CHECK_INT(opd_autograd_grad(&y, 1, &u, 1, &o, got), 0);
    CHECK(same(got[0], opd_zeros(OPD_INTS(2, 3), OPD_FLOAT32)));
    CHECK_INT(opd_backward_with(&y, 1, &o), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "is_grads_batched");
    g[0] = x;
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, &o, got), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "With is_grads_batched, the first dimension of each grad_output is the batch dimension.");
    g[0] = NULL;
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, &o, got), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "grad_output[0] is NULL");
    g[0] = count_up(0, OPD_INTS(4, 3));
    CHECK_INT(opd_autograd_grad(out, 2, &x, 1, &o, got), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "same size in the mapped dimension");
    CHECK(as_before(a));
}

/* y = x, of which one element is written: y[1] = exp(y[1]); the sum of squares. */
static opd_tensor *written_part(opd_tensor *x) {
    opd_tensor *y = opd_mul_Scalar(x, opd_value_int(1));
    if (!y || !OPD_CALL(opd_find("aten::exp_"), opd_slice(y, 0, opd_value_int(1), opd_value_int(2), 1))) { return NULL; }
    return opd_sum(opd_mul(y, y));
}
static int written_number(void *user, opd_tensor *const *in, int n, opd_tensor **out) { (void)user; (void)n; return (out[0] = written_part(in[0])) ? 1 : -1; }
static int written_gradient(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    if (opd_grad(written_number, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS) != 1) { return -1; }
    return (out[0] = opd_sum(out[0])) ? 1 : -1;
}
static int written_second(void *user, opd_tensor *const *in, int n, opd_tensor **out) { return opd_grad(written_gradient, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS); }
static double second(opd_tensor *x, int64_t i, int64_t k) {
    const float v = opd_data_f32(x)[i * opd_size(x, 1) + k];
    return k == 1 ? 4 * exp(2 * (double)v) : 2;
}
TEST(second_derivatives_of_writes_into_views) {
    opd_tensor *x = opd_mul_Scalar(count_up(-3, OPD_INTS(2, 3)), opd_value_double(0.25)), *out[OPD_TRANSFORM_OUTPUTS], *g, *y;
    opd_backward_options o = options();
    int level;
    int64_t i;
    CHECK_INT(opd_vmap(written_second, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), 1);
    for (i = 0; i < 6 && opd_ok(); i++) { CHECK_NEAR(opd_data_f32(out[0])[i], second(x, i / 3, i % 3), 1e-4); }
    CHECK_OK();
    opd_error_clear();
    x = opd_tensor_set_requires_grad(x, true);     /* the same on the tape through vmap */
    level = opd_vmap_begin(2, OPD_RANDOM_ERROR);
    y = written_part(opd_vmap_wrap(x, 0, level));
    y = y ? opd_vmap_unwrap(y, 0, level) : NULL;
    CHECK_INT(opd_vmap_end(level), 0);
    CHECK_OR_RETURN(y != NULL);
    y = opd_sum(y);
    o.create_graph = true;
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, &o, &g), 0);
    y = opd_sum(g);
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, NULL, &g), 0);
    for (i = 0; i < 6 && opd_ok(); i++) { CHECK_NEAR(opd_data_f32(g)[i], second(x, i / 3, i % 3), 1e-4); }
}

static void hush(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
static int root(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    return (out[0] = opd_sum(opd_mul_Scalar(opd_sqrt(in[0]), opd_value_int(0)))) ? 1 : -1;
}
static int root_gradient(void *user, opd_tensor *const *in, int n, opd_tensor **out) { return opd_grad(root, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS); }
TEST(anomaly_mode_looks_at_all_examples) {
    opd_tensor *x = count_up(1, OPD_INTS(3, 2)), *out[OPD_TRANSFORM_OUTPUTS];
    around a = around_now();
    opd_log_set(hush, NULL);
    (void)opd_anomaly_set(true, true);
    CHECK_INT(opd_vmap(root_gradient, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), 1);
    opd_data_f32(x)[5] = 0;                       /* of the last example: 0 times infinity */
    CHECK_INT(opd_vmap(root_gradient, NULL, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "returned nan values in its 0th output");
    (void)opd_anomaly_set(false, false);
    opd_log_set(NULL, NULL);
    CHECK(as_before(a));
}

TEST(works_while_its_keys_are_excluded) {
    opd_tensor *x = count_up(1, OPD_INTS(3, 2));
    opd_key_guard guard = opd_keys_exclude(opd_keyset_add(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_BATCHED), OPD_F_VMAP_MODE));
    CHECK(same(map1(square, x), opd_mul(x, x)));
    opd_keys_restore(guard);
}

#if !defined(OPD_NO_THREADS)
static void *run_thread(void *arg) {
    int i;
    for (i = 0; i < 30; i++) {
        OPD_SCOPE {
            opd_tensor *x = count_up(i, OPD_INTS(2, 3, 4));
            CHECK(opd_transform_depth() == 0 && same(map1(nested_square, x), opd_mul(x, x)));
            (void)opd_vmap_begin(2, OPD_RANDOM_ERROR);
        }
    }
    (void)arg;
    return NULL;
}
TEST(each_thread_has_its_layers) {
    pthread_t thread[3];
    int i, level = opd_vmap_begin(5, OPD_RANDOM_ERROR);
    for (i = 0; i < 3; i++) { CHECK_INT(pthread_create(&thread[i], NULL, run_thread, NULL), 0); }
    for (i = 0; i < 3; i++) { (void)pthread_join(thread[i], NULL); }
    CHECK_INT(opd_transform_depth(), 1);
    CHECK_INT(opd_vmap_end(level), 0);
}
#endif

//-- no examples ---------------------------------------------------------------------------------------------------------

static opd_tensor *no_matter(opd_tensor *const *x) { return opd_cumsum(opd_mm(x[0], outside), 0); }
TEST(no_examples) {
    opd_tensor *x = opd_zeros(OPD_INTS(0, 2, 3), OPD_FLOAT32), *r;
    opd_vmap_options o = none_given();
    one_user u;
    opd_tensor *out[OPD_TRANSFORM_OUTPUTS];
    outside = count_up(0, OPD_INTS(3, 5));
    r = map1(no_matter, x);
    CHECK(shape_is(r, OPD_INTS(0, 2, 5)));
    r = map2(square, x, NULL, NULL, -1);
    CHECK(shape_is(r, OPD_INTS(2, 3, 0)));
    o.chunk_size = 2;
    u.fn = square;
    CHECK(opd_vmap(call_one, &u, &x, 1, &o, out, OPD_TRANSFORM_OUTPUTS) == 1 && shape_is(out[0], OPD_INTS(0, 2, 3)));
    CHECK(shape_is(map1(nested_square, opd_zeros(OPD_INTS(0, 3, 2), OPD_FLOAT32)), OPD_INTS(0, 3, 2)));
    CHECK(shape_is(map1(nested_square, opd_zeros(OPD_INTS(3, 0, 2), OPD_FLOAT32)), OPD_INTS(3, 0, 2)));
    CHECK_OK();
}

//-- rules of a program's own --------------------------------------------------------------------------------------------

static int seen_level, rule_calls, kernel_calls;
static int twice_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    opd_tensor *out = opd_result(call, 0, opd_sizes(x), opd_ndim(x), OPD_FLOAT32);
    const float *from = opd_data_f32(x);
    float *to = opd_data_f32(out);
    int64_t i;
    if (!opd_ok()) { return -1; }
    kernel_calls++;
    for (i = 0; i < opd_numel(out); i++) { to[i] = 2 * from[case_at(x, i)]; }
    return opd_return_tensor(call, out);
}
static int twice_rule(opd_call *call) {
    int dim;
    opd_tensor *x = opd_batch_arg(call, 0, &dim);
    rule_calls++;
    CHECK(dim >= 0 && opd_size(x, dim) == opd_batch_size() && opd_batch_randomness() == OPD_RANDOM_ERROR);
    seen_level = opd_transform_depth();
    return opd_batch_return(call, OPD_CALL(opd_call_operator(call), x), dim);
}
static int wrong_rule(opd_call *call) { int dim; opd_tensor *x = opd_batch_arg(call, 0, &dim); return opd_batch_return(call, opd_sum(x), 0); }
static int silent_rule(opd_call *call) { (void)call; return 0; }
static int failing_rule(opd_call *call) { (void)call; return opd_fail(OPD_ERROR_USER, "the rule says no"); }
static int composite_kernel(opd_call *call) { return opd_return_tensor(call, opd_mul(opd_arg_tensor(call, 0), opd_arg_tensor(call, 0))); }
static int pair_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_clone(x)) || opd_return_tensor(call, opd_sum(x));
}
static int number_kernel(opd_call *call) { return opd_return_int(call, opd_numel(opd_arg_tensor(call, 0))); }
static int nothing_kernel(opd_call *call) { (void)call; kernel_calls++; return 0; }
static int write_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    float *p = opd_data_f32(x);
    int64_t i;
    if (!opd_ok()) { return -1; }
    for (i = 0; i < opd_numel(x); i++) { p[case_at(x, i)] += 1; }
    return opd_return_tensor(call, x);
}
static int list_kernel(opd_call *call) {
    opd_tensors l = opd_arg_tensors(call, 0);
    opd_tensor *sum = NULL, *out[8];
    int32_t k;
    for (k = 0; k < l.n; k++) { sum = sum ? opd_add(sum, l.data[k]) : l.data[k]; }
    for (k = 0; k < l.n; k++) { out[k] = opd_mul(l.data[k], sum); }
    return opd_return_tensors(call, out, l.n);
}
static opd_library *own_library(void) {
    opd_library *lib = opd_library_open(OPD_DEF, "vtest", NULL, __FILE__, __LINE__);
    static const struct { const char *schema; opd_kernel cpu, composite; opd_vmap_rule vmap; } ops[] = {
        {"ruled(Tensor x) -> Tensor", twice_kernel, NULL, twice_rule}, {"wrong(Tensor x) -> Tensor", twice_kernel, NULL, wrong_rule},
        {"silent(Tensor x) -> Tensor", twice_kernel, NULL, silent_rule}, {"failing(Tensor x) -> Tensor", twice_kernel, NULL, failing_rule},
        {"pointwise(Tensor x) -> Tensor", twice_kernel, NULL, OPD_BATCH_POINTWISE}, {"composed(Tensor x) -> Tensor", NULL, composite_kernel, NULL},
        {"ruleless(Tensor x) -> Tensor", twice_kernel, NULL, NULL}, {"looped(Tensor x) -> Tensor", twice_kernel, NULL, OPD_BATCH_LOOP},
        {"keyed(Tensor x) -> Tensor", twice_kernel, NULL, NULL}, {"pair(Tensor x) -> (Tensor, Tensor)", pair_kernel, NULL, NULL},
        {"number(Tensor x) -> int", number_kernel, NULL, NULL}, {"nothing(Tensor x) -> ()", nothing_kernel, NULL, NULL},
        {"write_(Tensor(a!) x) -> Tensor(a!)", write_kernel, NULL, NULL}, {"list(Tensor[] x) -> Tensor[]", list_kernel, NULL, NULL}};
    size_t i;
    for (i = 0; lib && i < sizeof ops / sizeof ops[0]; i++) {
        opd_op_desc d;
        memset(&d, 0, sizeof d);
        d.schema = ops[i].schema;
        d.cpu = ops[i].cpu;
        d.composite = ops[i].composite;
        d.vmap = ops[i].vmap;
        if (opd_define(lib, &d)) { break; }
    }
    CHECK_OK();
    return lib;
}
static const char *own_name;
static opd_tensor *own(opd_tensor *const *x) { return OPD_CALL(opd_find(own_name), x[0]); }
static opd_tensor *own_nested(opd_tensor *const *x) { return map1(own, x[0]); }
static opd_tensor *own_list(opd_tensor *const *x) {
    opd_value v = opd_value_tensors(x, 2), r;
    return opd_call_all(opd_find("vtest::list"), &r, &v, 1) ? NULL : opd_add(r.u.tensors[0], r.u.tensors[1]);
}
static opd_tensor *own_pair(opd_tensor *const *x) {
    opd_value v = opd_value_tensor(x[0]), r[2];
    return opd_call_all(opd_find("vtest::pair"), r, &v, 1) ? NULL : opd_add(r[0].u.t, r[1].u.t);
}
static opd_tensor *own_nothing(opd_tensor *const *x) {
    opd_value v = opd_value_tensor(x[0]), r[1];
    return opd_call_all(opd_find("vtest::nothing"), r, &v, 1) ? NULL : x[0];
}
static opd_tensor *own_number(opd_tensor *const *x) {
    opd_value v = opd_value_tensor(x[0]), r[1];
    return opd_call_all(opd_find("vtest::number"), r, &v, 1) ? NULL : x[0];
}
static int warnings;
static char warned[300];
static void count_warnings(void *user, int is_error, const char *text) {
    (void)user;
    if (is_error) { return; }
    warnings++;
    (void)snprintf(warned, sizeof warned, "%s", text);
}
TEST(operators_with_rules) {
    opd_tensor *x = count_up(1, OPD_INTS(3, 4)), *want = opd_add(x, x), *big = count_up(1, OPD_INTS(2, 3, 4));
    opd_library *lib = own_library(), *impl;
    const int last[] = {1};
    rule_calls = kernel_calls = 0;
    own_name = "vtest::ruled";
    CHECK(same(map1(own, x), want));
    CHECK(same(map2(own, x, NULL, last, 1), want));
    CHECK_INT(rule_calls, 2);
    CHECK_INT(kernel_calls, 2);
    CHECK_INT(seen_level, 0);
    CHECK(same(map1(own_nested, big), opd_add(big, big)));
    CHECK_INT(rule_calls, 4);
    CHECK_INT(kernel_calls, 3);
    own_name = "vtest::pointwise";
    CHECK(same(map1(own, x), want));
    CHECK_INT(kernel_calls, 4);
    own_name = "vtest::composed";
    CHECK(same(map1(own, x), opd_mul(x, x)));
    own_name = "vtest::wrong";
    CHECK(!map1(own, x));
    CHECK_ERROR(OPD_ERROR_KERNEL, "the batching rule of vtest::wrong returned a result that does not have the 3 examples at dim 0");
    own_name = "vtest::silent";
    CHECK(!map1(own, x));
    CHECK_ERROR(OPD_ERROR_KERNEL, "vtest::silent");
    own_name = "vtest::failing";
    CHECK(!map1(own, x));
    CHECK_ERROR(OPD_ERROR_USER, "the rule says no");
    impl = opd_library_open(OPD_IMPL, "vtest", "FuncTorchBatched", __FILE__, __LINE__);
    CHECK(impl && opd_impl(impl, "keyed", twice_rule) == 0);
    rule_calls = 0;
    own_name = "vtest::keyed";
    CHECK(same(map1(own, x), want));
    CHECK_INT(rule_calls, 1);
    opd_library_close(impl);
    CHECK(same(map1(own, x), want));              /* example by example now */
    CHECK_INT(rule_calls, 1);
    opd_library_close(lib);
}
TEST(operators_without_rules) {
    opd_tensor *x = count_up(1, OPD_INTS(3, 4)), *want = opd_add(x, x), *pair[2], *out[OPD_TRANSFORM_OUTPUTS];
    opd_library *lib = own_library();
    int64_t count = opd_vmap_fallback_count();
    const int last[] = {1};
    opd_log_set(count_warnings, NULL);
    warnings = kernel_calls = 0;
    own_name = "vtest::ruleless";
    CHECK(same(map1(own, x), want));
    CHECK_INT(kernel_calls, 3);
    CHECK_INT(warnings, 1);
    CHECK(strstr(warned, "There is a performance drop because there is no batching rule for vtest::ruleless: vmap runs it once for each example. Set `.vmap` of opd_op_desc") != NULL);
    CHECK(same(map2(own, x, NULL, last, 1), want));
    CHECK_INT(kernel_calls, 7);
    CHECK_INT(warnings, 1);                       /* once for each operator */
    CHECK_INT(opd_vmap_fallback_count() - count, 2);
    CHECK_INT(opd_vmap_fallback_set(OPD_VMAP_FALLBACK_ERROR), OPD_VMAP_FALLBACK_WARN);
    REFUSED(map1(own, x), "vtest::ruleless hit the vmap fallback which is currently disabled");
    own_name = "vtest::looped";                   /* a loop is its rule: nothing is missing */
    CHECK(same(map1(own, x), want));
    CHECK_INT(warnings, 1);
    {
        opd_library *impl = opd_library_open(OPD_IMPL, "vtest", NULL, "t", 1);
        CHECK_INT(opd_vmap_register(impl, "ruleless", OPD_BATCH_LOOP), 0);
        own_name = "vtest::ruleless";
        CHECK(same(map1(own, x), want));
        opd_library_close(impl);
    }
    CHECK_INT(opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT), OPD_VMAP_FALLBACK_ERROR);
    CHECK(same(map1(own_pair, x), opd_add(x, opd_sum_dim(x, OPD_INTS(1), true))));
    own_name = "vtest::write_";
    want = opd_add_Scalar(x, opd_value_double(1));
    CHECK(same(map2(own, x, NULL, last, 1), want) && same(x, want));
    pair[0] = x; pair[1] = want;
    {
        one_user u;
        u.fn = own_list;
        CHECK(opd_vmap(call_one, &u, pair, 2, NULL, out, OPD_TRANSFORM_OUTPUTS) == 1);
        CHECK(same(out[0], opd_mul(opd_add(x, want), opd_add(x, want))));
    }
    kernel_calls = 0;
    CHECK(same(map1(own_nothing, x), x));
    CHECK_INT(kernel_calls, 3);
    REFUSED(map1(own_number, x), "Batching rule not implemented for vtest::number. We could not generate a fallback.");
    CHECK_INT(opd_vmap_fallback_set(OPD_VMAP_FALLBACK_WARN), OPD_VMAP_FALLBACK_SILENT);
    opd_log_set(NULL, NULL);
    opd_library_close(lib);
}

//-- random programs -----------------------------------------------------------------------------------------------------

/* Four registers of [3,3]; each step computes one of them from two. */
typedef struct step { int op, a, b, to, dim; } step;
#define STEPS 8
enum { PROGRAM_OPS = 24 };
static uint64_t program_state;
static int program_random(int n) {
    program_state = program_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((program_state >> 33) % (uint64_t)n);
}
static opd_tensor *run_step(const step *s, opd_tensor *const *r) {
    opd_tensor *a = r[s->a], *b = r[s->b], *pair[2], *t;
    const int64_t three[] = {3, 3}, back[] = {2, 0, 1}, dim = s->dim;
    pair[0] = a; pair[1] = b;
    switch (s->op) {
    case 0: return opd_add(a, b);
    case 1: return opd_mul(a, opd_sin(b));
    case 2: return opd_tanh(opd_mm(a, b));
    case 3: return opd_t(a);
    case 4: return opd_softmax(a, s->dim);
    case 5: return opd_mul_Scalar(opd_cumsum(a, s->dim), opd_value_double(0.3));
    case 6: return opd_flip(a, OPD_INTS(0, -1));
    case 7: return opd_add(a, opd_sum_dim(b, opd_ints_of(&dim, 1), true));
    case 8: return opd_index_select(a, s->dim, opd_tensor_from(back, OPD_INTS(3), OPD_INT64));
    case 9: return opd_where_self(opd_gt(a, b), a, opd_t(b));
    case 10: return opd_narrow(opd_cat(opd_tensors_of(pair, 2), 0), 0, 1 + s->dim, 3);
    case 11: return opd_select(opd_stack(opd_tensors_of(pair, 2), s->dim), s->dim, 1);
    case 12: t = opd_add(a, opd_zeros_like(b)); return t ? add_to(t, b) : NULL;
    case 13: t = opd_add(a, opd_zeros_like(b)); return t && mul_to(opd_select(t, s->dim, 1), opd_select(b, 0, 2)) ? t : NULL;
    case 14: return opd_reshape(opd_t(a), opd_ints_of(three, 2));
    case 15: return opd_expand(opd_slice(a, s->dim, opd_value_int(1), opd_value_int(2), 1), opd_ints_of(three, 2));
    case 16: return opd_mul(a, opd_sigmoid(opd_sum(b)));
    case 17: return opd_tanh(opd_matmul(a, opd_select(b, 0, 1))) ? opd_mul(a, opd_unsqueeze(opd_matmul(a, opd_select(b, 0, 1)), s->dim)) : NULL;
    case 18: return opd_tril(opd_add(a, b), s->dim);
    case 19: return opd_roll(a, OPD_INTS(1), OPD_INTS(1));
    case 20: return opd_sub(a, opd_mean_dim(b, OPD_INTS(0, 1), true));
    case 21: return opd_copy_(opd_sub(a, b), b);
    case 22: t = opd_unsqueeze(opd_unsqueeze(b, 0), 0);
             return opd_squeeze(opd_tanh(opd_conv2d_full(opd_unsqueeze(opd_unsqueeze(a, 0), 0), t, NULL, OPD_INTS(1, 1), OPD_INTS(1, 1), OPD_INTS(1, 1), 1)));
    default: return opd_layer_norm_full(opd_add(a, b), OPD_INTS(3), NULL, NULL, 1e-3, false);
    }
}
static opd_tensor *run_program(const step *p, opd_tensor *const *in) {
    opd_tensor *r[4];
    int i;
    memcpy(r, in, sizeof r);
    for (i = 0; i < STEPS; i++) { if (!(r[p[i].to] = run_step(&p[i], r))) { return NULL; } }
    return opd_add(opd_add(r[0], r[1]), opd_add(r[2], r[3]));
}
static int program_number(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *r = run_program((const step *)user, in);
    (void)n;
    return r && (out[0] = opd_sum(opd_mul(r, r))) ? 1 : -1;
}
TEST(random_programs) {
    static const bool outer[] = {true, false, true, false}, inner[] = {false, true, true, false};
    int n, k, i, j;
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    program_state = 7;
    for (n = 0; n < 300; n++) {
        static step p[STEPS];
        int od[4], id[4], failures = check_failures;
        for (k = 0; k < STEPS; k++) {
            p[k].op = program_random(PROGRAM_OPS); p[k].a = program_random(4); p[k].b = program_random(4);
            p[k].to = program_random(4); p[k].dim = program_random(2);
        }
        OPD_SCOPE {
            opd_tensor *leaf[4], *x[4], *out[6], *want, *got, *total, *g[2][4], *each[OPD_TRANSFORM_OUTPUTS];
            const int all[] = {0, 1, 2, 3};
            opd_transform_options d;
            opd_backward_options o = options();
            int level, deeper;
            o.allow_unused = o.materialize_grads = true;
            memset(&d, 0, sizeof d);
            d.argnums = all;
            d.nargnums = 4;
            for (k = 0; k < 4; k++) {             /* outer dim first in sizes, unless it is put elsewhere */
                int64_t sizes[4];
                int nd = 2;
                sizes[0] = sizes[1] = 3;
                id[k] = inner[k] ? program_random(nd + 1) : -1;
                if (inner[k]) { memmove(sizes + id[k] + 1, sizes + id[k], (size_t)(nd - id[k]) * sizeof *sizes); sizes[id[k]] = 4; nd++; }
                od[k] = outer[k] ? program_random(nd + 1) : -1;
                if (outer[k]) { memmove(sizes + od[k] + 1, sizes + od[k], (size_t)(nd - od[k]) * sizeof *sizes); sizes[od[k]] = 2; nd++; }
                leaf[k] = opd_tensor_new(opd_ints_of(sizes, nd), OPD_FLOAT64);
                for (i = 0; i < opd_numel(leaf[k]); i++) { opd_data_f64(leaf[k])[i] = program_random(2000) / 1000.0 - 1; }
                (void)opd_tensor_set_requires_grad(leaf[k], true);
            }
            for (i = 0; i < 2; i++) {
                opd_tensor *row[4];
                for (j = 0; j < 4; j++) {
                    for (k = 0; k < 4; k++) {
                        x[k] = leaf[k];
                        if (outer[k]) { x[k] = opd_select(x[k], od[k], i); }
                        if (inner[k]) { x[k] = opd_select(x[k], id[k], j); }
                    }
                    row[j] = run_program(p, x);
                }
                out[i] = opd_ok() ? opd_stack(opd_tensors_of(row, 4), 0) : NULL;
            }
            want = opd_ok() ? opd_stack(opd_tensors_of(out, 2), 0) : NULL;
            total = want ? opd_sum(opd_mul(want, want)) : NULL;
            if (!total || opd_autograd_grad(&total, 1, leaf, 4, &o, g[0])) { CHECK_OK(); }
            level = opd_vmap_begin(2, OPD_RANDOM_ERROR);
            deeper = opd_vmap_begin(4, OPD_RANDOM_ERROR);
            for (k = 0; k < 4; k++) {
                x[k] = leaf[k];
                if (outer[k]) { x[k] = opd_vmap_wrap(x[k], od[k], level); }
                if (inner[k] && x[k]) { x[k] = opd_vmap_wrap(x[k], id[k], deeper); }
            }
            got = opd_ok() ? run_program(p, x) : NULL;
            got = got ? opd_vmap_unwrap(got, 0, deeper) : NULL;
            if (got && opd_grad(program_number, p, x, 4, &d, each, OPD_TRANSFORM_OUTPUTS) != 4) { CHECK_OK(); got = NULL; }
            for (k = 0; k < 4 && got; k++) { each[k] = opd_vmap_unwrap(each[k], 0, deeper); }
            CHECK_INT(opd_vmap_end(deeper), 0);
            for (k = 0; k < 4 && got; k++) { each[k] = opd_vmap_unwrap(each[k], 0, level); }
            got = got ? opd_vmap_unwrap(got, 0, level) : NULL;
            CHECK_INT(opd_vmap_end(level), 0);
            CHECK_OK();
            if (got && want) {
                CHECK_NEAR(opd_item_f64(opd_max(opd_abs(opd_sub(got, want)))), 0, 1e-9);
                for (k = 0; k < 4; k++) {         /* gradients of the examples: in sum those of all */
                    opd_tensor *w = opd_detach(g[0][k]), *e = opd_detach(each[k]);
                    if (outer[k]) { w = opd_movedim(w, od[k], 0); }
                    if (inner[k]) { w = opd_movedim(w, id[k] + outer[k], outer[k]); } else { e = opd_sum_dim(e, OPD_INTS(1), false); }
                    if (!outer[k]) { e = opd_sum_dim(e, OPD_INTS(0), false); }
                    CHECK_NEAR(opd_item_f64(opd_max(opd_abs(opd_sub(w, e)))), 0, 1e-7);
                }
                total = opd_sum(opd_mul(got, got));
                if (opd_autograd_grad(&total, 1, leaf, 4, &o, g[1])) { CHECK_OK(); }
                else { for (k = 0; k < 4; k++) { CHECK_NEAR(opd_item_f64(opd_max(opd_abs(opd_sub(g[0][k], g[1][k])))), 0, 1e-7); } }
            }
        }
        opd_error_clear();
        if (check_failures > failures) {
            printf("  program %d:", n);
            for (k = 0; k < STEPS; k++) { printf(" r%d=op%d(r%d,r%d,%d)", p[k].to, p[k].op, p[k].a, p[k].b, p[k].dim); }
            printf("  dims %d %d %d %d\n", od[0], id[1], od[2], id[2]);
        }
    }
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_WARN);
}

//-- straight code -------------------------------------------------------------------------------------------------------

TEST(straight_code) {
    opd_tensor *x = count_up(1, OPD_INTS(3, 4)), *b, *r;
    around a = around_now();
    int level = opd_vmap_begin(3, OPD_RANDOM_ERROR), inner;
    CHECK_INT(level, 1);
    b = opd_vmap_wrap(x, 0, level);
    CHECK(opd_tensor_is_batched(b) && shape_is(b, OPD_INTS(4)));
    CHECK(opd_vmap_wrap(x, OPD_NO_DIM, level) == x);
    CHECK(!opd_vmap_wrap(x, 1, level));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "same size in the mapped dimension, got sizes [3, 4]");
    CHECK(!opd_vmap_wrap(x, 2, level));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "expected in_dim to satisfy -2 <= in_dim < 2");
    CHECK(!opd_vmap_wrap(x, 0, 2) && !opd_ok());
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "level 2 is not the level of an open vmap");
    CHECK(!opd_vmap_wrap(NULL, 0, level));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_vmap_wrap");
    r = opd_mul(b, b);
    inner = opd_vmap_begin(4, OPD_RANDOM_ERROR);
    CHECK_INT(inner, 2);
    CHECK(opd_vmap_end(level) == -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_vmap_end: the innermost layer is not a vmap of level 1");
    CHECK_INT(opd_vmap_end(inner), 0);
    r = opd_vmap_unwrap(r, 1, level);
    CHECK_INT(opd_vmap_end(level), 0);
    CHECK(same(r, opd_t(opd_mul(x, x))));
    CHECK_INT(opd_vmap_end(level), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_vmap_end");
    CHECK_INT(opd_vmap_begin(-1, OPD_RANDOM_ERROR), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_vmap_begin: the number of examples must be at least 0, not -1");
    CHECK_INT(opd_vmap_begin(1, (opd_randomness)9), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Only allowed values for randomness");
    CHECK(as_before(a));
}

static int leave_early(int how) {
    OPD_SCOPED;
    int level = opd_vmap_begin(3, OPD_RANDOM_ERROR);
    opd_tensor *x = opd_vmap_wrap(count_up(0, OPD_INTS(3, 2)), 0, level);
    if (how == 0) { return 1; }
    OPD_NO_GRAD {
        int inner = opd_vmap_begin(2, OPD_RANDOM_SAME);
        x = opd_vmap_wrap(x, 0, inner);
        if (how == 1) { return 2; }
        OPD_SCOPE {
            (void)opd_vmap_begin(5, OPD_RANDOM_SAME);
            if (how == 2) { return opd_fail(OPD_ERROR_USER, "left"); }
        }
    }
    return opd_numel(x) > 99;
}
TEST(layers_end_with_their_scope) {
    int how;
    around a = around_now();
    for (how = 0; how < 4; how++) {
        (void)leave_early(how);
        opd_error_clear();
        CHECK(as_before(a));
        CHECK(same(map1(square, count_up(1, OPD_INTS(2))), opd_mul(count_up(1, OPD_INTS(2)), count_up(1, OPD_INTS(2)))));
    }
}
/* A kernel that leaves layers open. */
static int leaving_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    const int64_t how = opd_arg_int(call, 1);
    int level = opd_vmap_begin(2, OPD_RANDOM_ERROR);
    CHECK(level > 0 && opd_transform_depth() == level);
    (void)opd_vmap_begin(3, OPD_RANDOM_SAME);
    (void)opd_grad_mode_set(false);
    if (how == 1) { return opd_fail(OPD_ERROR_USER, "left in the middle"); }
    return how == 2 ? -1 : opd_return_tensor(call, x);
}
static int64_t leaving_how;
static opd_tensor *call_leaving(opd_tensor *const *x) {
    opd_value v[2];
    v[0] = opd_value_tensor(x[0]);
    v[1] = opd_value_int(leaving_how);
    return opd_call_op(opd_find("vleave::it"), v, 2);
}
TEST(layers_that_a_kernel_opens_end_with_it) {
    opd_library *lib = opd_library_open(OPD_DEF, "vleave", NULL, __FILE__, __LINE__);
    opd_tensor *x = count_up(1, OPD_INTS(2, 3)), *r;
    around a = around_now();
    CHECK(lib && opd_def(lib, "it(Tensor x, int how) -> Tensor") == 0 && opd_impl_key(lib, "it", "CPU", leaving_kernel, NULL, NULL) == 0);
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    for (leaving_how = 0; leaving_how < 3; leaving_how++) {
        r = call_leaving(&x);
        CHECK(leaving_how ? !r : same(r, x));
        opd_error_clear();
        CHECK(as_before(a));
        r = map1(call_leaving, x);
        CHECK(leaving_how ? !r : same(r, x));
        opd_error_clear();
        CHECK(as_before(a));
    }
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_WARN);
    opd_library_close(lib);
}
TEST(an_end_works_while_an_error_is_pending) {
    around a = around_now();
    int level = opd_vmap_begin(3, OPD_RANDOM_ERROR);
    (void)opd_fail(OPD_ERROR_USER, "something");
    CHECK_INT(opd_vmap_end(level), 0);
    CHECK_ERROR(OPD_ERROR_USER, "something");
    CHECK(as_before(a));
}

//-- escaped tensors -----------------------------------------------------------------------------------------------------

static opd_tensor *escaped;
static opd_tensor *let_escape(opd_tensor *const *x) { opd_release(escaped); escaped = opd_keep(opd_mul(x[0], x[0])); return x[0]; }
static opd_tensor *use_escaped(opd_tensor *const *x) { return opd_mul(x[0], escaped); }
static opd_tensor *escape_from_inside(opd_tensor *const *x) { (void)map1(let_escape, x[0]); return opd_add(x[0], escaped); }
TEST(escaped_tensors) {
    opd_tensor *x = count_up(1, OPD_INTS(2, 3));
    static const char *const text = "Either your tensor may have escaped from inside a function being vmapped";
    around a = around_now();
    escaped = NULL;
    CHECK(map1(let_escape, x) != NULL);
    REFUSED(opd_mul(escaped, x), text);
    REFUSED(opd_sum(escaped), text);
    REFUSED(opd_t(escaped), text);
    REFUSED(add_to(opd_clone(x), escaped), text);
    REFUSED(map1(escape_from_inside, count_up(1, OPD_INTS(2, 3, 4))), text);
    CHECK(!opd_data(escaped));
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "accessing `data` under vmap");
    (void)map1(let_escape, x);
    /* at level 1 again, of another vmap */
    (void)map1(use_escaped, count_up(1, OPD_INTS(5, 3)));
    opd_error_clear();
    CHECK(as_before(a));
    opd_release(escaped);
}

//-- calls and allocations that fail -------------------------------------------------------------------------------------

static int64_t seen, fails_at;
static int failing_mode(opd_call *call) {
    opd_keyset mode = opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_USER_0 + 1);
    if (++seen == fails_at) { return opd_fail(OPD_ERROR_USER, "made to fail"); }
    return opd_redispatch(call, opd_keyset_minus(opd_call_keys(call), mode));
}
static opd_tensor *much(opd_tensor *const *x) {
    opd_tensor *y, *z;
    OPD_NO_GRAD {
        y = opd_softmax(opd_mm(x[0], outside), 0);
    }
    z = opd_cumsum(opd_add(y, opd_mul(x[0], x[0])), 1);
    return opd_sum_dim(add_to(opd_clone(z), y), OPD_INTS(0), false);
}
static opd_tensor *much_nested(opd_tensor *const *x) { return map1(much, x[0]); }
TEST_KEEPS(calls_fail_in_turn) {
    opd_library *lib;
    opd_tensor *x = count_up(0, OPD_INTS(2, 2, 3, 3)), *want, *got;
    int64_t most;
    (void)opd_key_define(OPD_F_USER_0 + 1, "FailingVmap");
    lib = opd_library_open(OPD_IMPL, "_", "FailingVmap", __FILE__, __LINE__);
    CHECK_OR_RETURN(lib && opd_fallback(lib, failing_mode) == 0);
    outside = opd_eye(3, OPD_FLOAT32);
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    fails_at = 0;
    want = map1(much_nested, x);
    CHECK_OK();
    OPD_SCOPE {
        opd_key_guard guard = opd_keys_include(opd_keyset_add(OPD_KEYS_EMPTY, OPD_F_USER_0 + 1));
        around a = around_now();
        seen = 0;
        got = map1(much_nested, x);
        most = seen;
        CHECK(most > 10 && same(got, want));
        for (fails_at = 1; fails_at <= most; fails_at++) {
            int64_t live = opd_memory_stats().live;
            OPD_SCOPE {
                seen = 0;
                CHECK(!map1(much_nested, x));
                CHECK_ERROR(OPD_ERROR_USER, "made to fail");
            }
            CHECK(as_before(a) && opd_memory_stats().live <= live);
        }
        fails_at = 0;
        opd_keys_restore(guard);
    }
    CHECK(same(map1(much_nested, x), want));
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_WARN);
    opd_library_close(lib);
}
TEST(allocations_fail_in_turn) {
    opd_tensor *x = count_up(0, OPD_INTS(2, 2, 3, 3)), *want;
    around a = around_now();
    int64_t n, most;
    outside = opd_eye(3, OPD_FLOAT32);
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    want = map1(much_nested, x);
    (void)opd_memory_fail_at(0, false);
    OPD_SCOPE { CHECK(same(map1(much_nested, x), want)); }
    most = opd_memory_fail_at(0, false);
    for (n = 1; n <= most + 2; n++) {
        int64_t live = opd_memory_stats().live;
        OPD_SCOPE {
            opd_tensor *r;
            (void)opd_memory_fail_at(n, (n & 1) != 0);
            r = map1(much_nested, x);
            (void)opd_memory_fail_at(0, false);
            if (!r) { CHECK_ERROR(OPD_ERROR_MEMORY, ""); } else { CHECK(same(r, want)); }
        }
        CHECK(as_before(a) && opd_memory_stats().live <= live);
    }
    (void)opd_vmap_fallback_set(OPD_VMAP_FALLBACK_WARN);
}

static int counts(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_bincount(in[0]);
    return out[0] ? 1 : -1;
}
static int greatest(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = user ? opd_min(in[0]) : opd_max(in[0]);
    return out[0] ? 1 : -1;
}
TEST(counts_of_each_example) {                    /* of equal sizes, else they cannot be stacked */
    const int64_t v[8] = {0, 1, 2, 2, 2, 0, 0, 1}, other[4] = {0, 1, 3, 0};
    const opd_vmap_fallback was = opd_vmap_fallback_set(OPD_VMAP_FALLBACK_SILENT);
    opd_tensor *x = opd_tensor_from(v, OPD_INTS(2, 4), OPD_INT64), *y = opd_tensor_from(other, OPD_INTS(2, 2), OPD_INT64), *out;
    CHECK_INT(opd_vmap(counts, NULL, &x, 1, NULL, &out, 1), 1);
    CHECK_OR_RETURN(out && opd_numel(out) == 6);
    CHECK(opd_data_i64(out)[0] == 1 && opd_data_i64(out)[2] == 2 && opd_data_i64(out)[3] == 2 && opd_data_i64(out)[5] == 1);
    CHECK_INT(opd_vmap(counts, NULL, &y, 1, NULL, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "stack expects each tensor to be equal size, but got [2] at entry 0 and [4] at entry 1");
    (void)opd_vmap_fallback_set(was);
}
TEST(the_greatest_of_nothing) {                   /* the error names what was called */
    opd_tensor *x = opd_zeros(OPD_INTS(2, 0), OPD_FLOAT64), *out;
    int min = 1;
    CHECK_INT(opd_vmap(greatest, NULL, &x, 1, NULL, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "max(): Expected reduction dim to be specified for input.numel() == 0.");
    CHECK_INT(opd_vmap(greatest, &min, &x, 1, NULL, &out, 1), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "min(): Expected reduction dim to be specified for input.numel() == 0.");
}

#if defined(__cplusplus)
//-- exceptions -----------------------------------------------------------------------------------------------------------

/* Opens a layer, a region, a scope and changes modes, then throws; the exception ends at the kernel's border. */
static void deep_inside(opd_tensor *x) {
    const int level = opd_vmap_begin(2, OPD_RANDOM_SAME);
    (void)opd_grad_mode_set(false);
    OPD_AUTOCAST(OPD_CPU) {
        OPD_SCOPED;
        (void)opd_exp(opd_vmap_wrap(x, 0, level));
        (void)opd_vmap_begin(3, OPD_RANDOM_ERROR);
        throw 7;
    }
}
static int throwing_kernel(opd_call *call) {
    try { deep_inside(opd_arg_tensor(call, 0)); }
    catch (int e) { return opd_fail(OPD_ERROR_USER, "caught %d", e); }
    return opd_return_tensor(call, opd_arg_tensor(call, 0));
}
static int calls_what_throws(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = OPD_CALL((opd_op *)user, in[0]);
    return out[0] ? 1 : -1;
}
TEST(exceptions_that_end_at_a_kernel) {
    opd_library *lib = opd_library_open(OPD_DEF, "vthrow", NULL, "here", 1);
    const opd_dispatch_state before = opd_dispatch_state_get();
    const int depth = opd_scope_stats().depth;
    const int64_t sizes[] = {2, 3}, four[] = {4, 2, 3};
    opd_tensor *x = count_up(1, opd_ints_of(sizes, 2)), *xs = count_up(1, opd_ints_of(four, 3)), *out[4];
    opd_op_desc d = opd_op_desc();
    opd_dispatch_state after;
    opd_op *op;
    int round;
    d.schema = "throws(Tensor x) -> Tensor";
    d.cpu = throwing_kernel;
    d.backward = OPD_NOT_DIFFERENTIABLE;
    d.vmap = OPD_BATCH_LOOP;
    CHECK_INT(opd_define(lib, &d), 0);
    op = opd_find("vthrow::throws");
    for (round = 0; round < 3; round++) {         /* by itself, inside vmap, inside grad inside vmap's place */
        const int n = round == 0 ? calls_what_throws(op, &x, 1, out) : round == 1
            ? opd_vmap(calls_what_throws, op, &xs, 1, NULL, out, 4) : opd_grad(calls_what_throws, op, &x, 1, NULL, out, 4);
        CHECK_INT(n, -1);
        CHECK_ERROR(OPD_ERROR_USER, "caught 7");
        after = opd_dispatch_state_get();
        CHECK(memcmp(&after, &before, sizeof after) == 0);
        CHECK_INT(opd_transform_depth(), 0);
        CHECK_INT(opd_scope_stats().depth, depth);
        CHECK(opd_grad_mode_enabled() && !opd_autocast_enabled(OPD_CPU));
    }
    opd_library_close(lib);
}
#endif

CHECK_MAIN()
