/* scatter, scatter_add and scatter_reduce with an index that is smaller than src, in values and gradients. */
#include "../cases.h"

/* The operators that write src at index, and what each makes of 1 and the first element of src, 3. */
static opd_tensor *scattered(int kind, opd_tensor *self, opd_tensor *index, opd_tensor *src) {
    static const char *const how[] = {"sum", "prod", "mean", "amax", "amin"};
    return kind == 0 ? opd_scatter(self, 0, index, src) : kind == 1 ? opd_scatter_add(self, 0, index, src)
        : opd_scatter_reduce_two(self, 0, index, src, how[kind - 2]);
}
TEST(an_index_without_dims_reads_one_element_of_src) {
    const int64_t one = 1;
    static const double want[] = {3, 4, 4, 3, 2, 3, 1}, by_src[] = {1, 1, 1, 1, 0.5, 1, 0}, numbers[] = {3, 20, 30};
    for (int kind = 0; kind < 7; kind++) {
        for (int form = 0; form < 3; form++) {    /* self and index: 0-dim and 0-dim, [1] and 0-dim, 0-dim and [1] */
            OPD_SCOPED;
            opd_tensor *const self = opd_ones(opd_ints_of(&one, form == 1), OPD_FLOAT64);
            opd_tensor *const index = opd_zeros(opd_ints_of(&one, form == 2), OPD_INT64);
            opd_tensor *const src = opd_tensor_from(numbers, OPD_INTS(3), OPD_FLOAT64);
            (void)opd_tensor_set_requires_grad(src, true);
            opd_tensor *const out = scattered(kind, self, index, src);
            CHECK(out && case_get(out, 0) == want[kind]);
            CHECK(out && opd_backward(opd_sum(out)) == 0);
            opd_tensor *const grad = opd_tensor_grad(src);
            CHECK(grad && opd_numel(grad) == 3 && case_get(grad, 0) == by_src[kind] && case_get(grad, 1) == 0 && case_get(grad, 2) == 0);
            opd_error_clear();
            opd_tensor *const none = opd_zeros(OPD_INTS(0), OPD_FLOAT64);
            CHECK(!scattered(kind, self, index, none) && opd_error_code() == OPD_ERROR_SHAPE);
            opd_error_clear();
        }
    }
}
static int scatter_call(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    static const int64_t places[] = {1, 0, 1, 1};
    opd_tensor *const index = opd_tensor_from(places, OPD_INTS(2, 2), OPD_INT64);
    out[0] = scattered(*(const int *)user, in[0], index, in[1]);
    return n == 2 && out[0] ? 1 : -1;
}
TEST(gradients_of_a_src_that_is_larger_than_index) {
    static const double numbers[] = {1.5, -2, 0.5, 3, 2.5, -1, 4, 0.25, -3, 2, 5, -4};
    for (int kind = 1; kind < 7; kind++) {        /* scatter with an index twice has no derivative */
        OPD_SCOPED;
        opd_gradcheck_options options = opd_gradcheck_defaults();
        opd_tensor *in[2];
        in[0] = opd_tensor_from(numbers, OPD_INTS(2, 3), OPD_FLOAT64);
        in[1] = opd_tensor_from(numbers, OPD_INTS(4, 3), OPD_FLOAT64);
        (void)opd_tensor_set_requires_grad(in[0], true);
        (void)opd_tensor_set_requires_grad(in[1], true);
        options.check_forward_ad = options.check_batched_grad = true;
        const bool right = opd_gradcheck(scatter_call, &kind, in, 2, &options) == 0;
        if (!right) { printf("kind %d: %s\n", kind, opd_error_message()); }
        CHECK(right);
        opd_error_clear();
    }
}
CHECK_MAIN()
