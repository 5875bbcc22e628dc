/* An operator of a program that takes and returns lists of tensors, with a derivative, a forward-mode rule and a batching
   rule: weigh(xs, w) returns x * w for each x. */
#include "../../opdispatch.h"
#include "../check.h"

static int wrong_sizes;
static int weigh_kernel(opd_call *call) {
    const opd_tensors xs = opd_arg_tensors(call, 0);
    opd_tensor *out[4];
    for (int k = 0; k < xs.n; k++) { out[k] = opd_mul(xs.data[k], opd_arg_tensor(call, 1)); }
    return opd_return_tensors(call, out, xs.n);
}
static int weigh_backward(opd_backward_call *bw) {
    const opd_tensors xs = opd_bw_tensors(bw, 0);
    opd_tensor *sum = NULL;
    for (int k = 0; k < xs.n; k++) {
        opd_tensor *const g = opd_bw_grad(bw, k);
        const opd_ints sizes = opd_bw_sizes_at(bw, 0, k);
        wrong_sizes += opd_bw_needs_at(bw, 0, k) && (sizes.n != 1 || sizes.data[0] != opd_numel(xs.data[k]));
        if (!g) { continue; }
        opd_tensor *const part = opd_sum(opd_mul(g, xs.data[k]));
        sum = sum ? opd_add(sum, part) : part;
        if (opd_bw_return_at(bw, 0, k, opd_mul(g, opd_bw_tensor(bw, 1)))) { return -1; }
    }
    wrong_sizes += opd_bw_dtype(bw, 1) != OPD_FLOAT64 || opd_bw_device(bw, 1).type != OPD_CPU;
    return opd_bw_return(bw, 1, sum);
}
static int weigh_jvp(opd_jvp_call *jv) {
    const opd_value xs = opd_jvp_value(jv, 0);
    opd_tensor *const w = opd_jvp_tensor(jv, 1), *const tw = opd_jvp_tangent(jv, 1);
    for (int k = 0; k < xs.n; k++) {
        opd_tensor *const tx = opd_jvp_tangent_at(jv, 0, k);
        opd_tensor *const one = tx ? opd_mul(tx, w) : NULL, *const other = tw ? opd_mul(xs.u.tensors[k], tw) : NULL;
        opd_tensor *const both = one && other ? opd_add(one, other) : one ? one : other;
        if (both && opd_jvp_return(jv, k, both)) { return -1; }
    }
    return 0;
}
/* xs with their examples in front, one after another, times w: its examples are numbers, which get a dim behind */
static int weigh_rule(opd_call *call) {
    const opd_tensors xs = opd_arg_tensors(call, 0);
    opd_tensor *out[4];
    int dim;
    opd_tensor *w = opd_batch_arg(call, 1, &dim);
    if (dim >= 0) { w = opd_unsqueeze(opd_batch_front(w, dim), -1); }
    for (int k = 0; k < xs.n; k++) {
        int at;
        opd_tensor *const x = opd_batch_value(xs.data[k], &at);
        out[k] = opd_mul(opd_batch_front(x, at), w);
    }
    return opd_batch_return_list(call, out, xs.n, 0);
}
static opd_library *library(void) {
    opd_library *lib = opd_library_open(OPD_DEF, "lists", NULL, __FILE__, __LINE__);
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "weigh(Tensor[] xs, Tensor w) -> Tensor[]";
    d.cpu = weigh_kernel;
    d.backward = weigh_backward;
    d.jvp = weigh_jvp;
    d.vmap = weigh_rule;
    d.save = "xs, w";
    CHECK_INT(opd_define(lib, &d), 0);
    return lib;
}
/* Writes the tensors that weigh returns of two tensors and w.  An opd_transform_fn. */
static int weigh(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_value args[2], ret;
    (void)user;
    args[0] = opd_value_tensors(in, n - 1);
    args[1] = opd_value_tensor(in[n - 1]);
    if (opd_call_all(opd_find("lists::weigh"), &ret, args, 2)) { return -1; }
    for (int k = 0; k < n - 1; k++) { out[k] = ret.u.tensors[k]; }
    return n - 1;
}
static int total(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *parts[4];
    if (weigh(user, in, n, parts) < 0) { return -1; }
    out[0] = opd_add(opd_sum(parts[0]), opd_sum(parts[1]));
    return out[0] ? 1 : -1;
}
static opd_tensor *numbers(double first, int n) {
    double p[4];
    for (int i = 0; i < n; i++) { p[i] = first + i; }
    return opd_tensor_from(p, OPD_INTS(n), OPD_FLOAT64);
}
static opd_tensor *number(double x) { return opd_tensor_from(&x, opd_ints_of(NULL, 0), OPD_FLOAT64); }
static double at(const opd_tensor *t, int i) { return t ? opd_data_f64(t)[i] : -1; }

TEST(gradients_of_a_list) {
    OPD_SCOPED;
    opd_library *lib = library();
    opd_tensor *in[3], *g[3];
    opd_transform_options o;
    const int all[] = {0, 1, 2};
    in[0] = numbers(1, 2);
    in[1] = numbers(5, 3);
    in[2] = number(3);
    memset(&o, 0, sizeof o);
    o.argnums = all;
    o.nargnums = 3;
    wrong_sizes = 0;
    CHECK_INT(opd_grad(total, NULL, in, 3, &o, g, 3), 3);
    CHECK_OK();
    CHECK_INT(wrong_sizes, 0);
    CHECK_NEAR(at(g[0], 1), 3, 0);
    CHECK_NEAR(at(g[1], 2), 3, 0);
    CHECK_NEAR(at(g[2], 0), 1 + 2 + 5 + 6 + 7, 0);
    opd_library_close(lib);
}
TEST(tangents_of_a_list) {
    OPD_SCOPED;
    opd_library *lib = library();
    opd_tensor *in[3], *along[3], *y[2], *t[2];
    in[0] = numbers(1, 2);
    in[1] = numbers(5, 3);
    in[2] = number(3);
    along[0] = numbers(1, 2);
    along[1] = opd_zeros_like(in[1]);
    along[2] = number(10);
    CHECK_INT(opd_jvp(weigh, NULL, in, along, 3, NULL, y, t, 2), 2);
    CHECK_OK();
    CHECK_NEAR(at(y[0], 1), 6, 0);
    CHECK_NEAR(at(t[0], 1), 2 * 3 + 2 * 10, 0);   /* tx w + x tw */
    CHECK_NEAR(at(t[1], 2), 7 * 10, 0);
    opd_library_close(lib);
}
TEST(a_batching_rule_that_returns_a_list) {
    OPD_SCOPED;
    opd_library *lib = library();
    opd_tensor *in[3], *out[2];
    opd_vmap_options o;
    const int batched[] = {0, OPD_NO_DIM, 0};
    in[0] = opd_reshape(numbers(1, 4), OPD_INTS(2, 2));
    in[1] = numbers(5, 3);
    in[2] = numbers(10, 2);
    memset(&o, 0, sizeof o);
    o.in_dims = batched;
    o.nin_dims = 3;
    CHECK_INT(opd_vmap(weigh, NULL, in, 3, &o, out, 2), 2);
    CHECK_OR_RETURN(opd_ok());
    CHECK(opd_ndim(out[0]) == 2 && opd_size(out[0], 1) == 2 && opd_ndim(out[1]) == 2 && opd_size(out[1], 1) == 3);
    CHECK_NEAR(at(out[0], 3), 4 * 11, 0);         /* x of the second example times its w */
    CHECK_NEAR(at(out[1], 5), 7 * 11, 0);
    opd_library_close(lib);
}
TEST(an_empty_list_is_none) {
    const int64_t two[] = {3, 4};
    CHECK_INT(opd_value_optional_ints(opd_ints_of(NULL, 0)).tag, OPD_TAG_NONE);
    CHECK(opd_value_optional_ints(opd_ints_of(two, 0)).tag == OPD_TAG_INTS && opd_value_optional_ints(opd_ints_of(two, 2)).n == 2);
}
CHECK_MAIN()
