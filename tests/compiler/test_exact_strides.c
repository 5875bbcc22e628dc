/* Strides of the tensors that a compiled run passes to an operator of the program: those of an uncompiled run, or those
   of contiguous tensors if the operator has the tag for them. */
#include "../check.h"

static char seen[1000];
static void note(const char *what, const opd_tensor *x) {
    size_t at = strlen(seen);
    at += (size_t)snprintf(seen + at, sizeof seen - at, "%s", what);
    for (int i = 0; i < opd_ndim(x); i++) {
        at += (size_t)snprintf(seen + at, sizeof seen - at, " %d", (int)opd_strides(x)[i]);
    }
    (void)snprintf(seen + at, sizeof seen - at, ";");
}
static int look(opd_call *call) {
    note("look", opd_arg_tensor(call, 0));
    return opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 0)));
}
static int look_fake(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x)) ? 0 : -1;
}
static int triple_(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    note("triple", x);
    return opd_return_tensor(call, opd_add_(x, opd_mul_Scalar(x, opd_value_int(2))));
}
static int triple_fake(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
OPD_LIBRARY(strides, lib) {
    static const struct { const char *schema; uint32_t tags; } all[] = {
        {"exact(Tensor x) -> Tensor", OPD_OPTAG_NEEDS_EXACT_STRIDES},
        {"ordered(Tensor x) -> Tensor", OPD_OPTAG_NEEDS_FIXED_STRIDE_ORDER},
        {"untagged(Tensor x) -> Tensor", 0},
        {"flexible(Tensor x) -> Tensor", OPD_OPTAG_FLEXIBLE_LAYOUT},
        {"triple_(Tensor(a!) x) -> Tensor(a!)", 0}};
    for (int i = 0; i < 5; i++) {
        opd_op_desc desc;
        memset(&desc, 0, sizeof desc);
        desc.schema = all[i].schema;
        desc.tags = all[i].tags;
        desc.cpu = i < 4 ? look : triple_;
        desc.fake = i < 4 ? look_fake : triple_fake;
        desc.backward = OPD_NOT_DIFFERENTIABLE;
        opd_define(lib, &desc);
    }
}
static opd_tensor *call_with(const char *name, opd_tensor *x) {
    opd_value value = opd_value_tensor(x);
    return opd_call_op(opd_find(name), &value, 1);
}
/* Passes tensors of many layouts to the operator with the name `user`. */
static int layouts(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const char *const name = (const char *)user;
    opd_tensor *const x = opd_exp(in[0]), *const row = opd_select(x, 0, 0);
    (void)n;
    out[0] = call_with(name, opd_t(x));
    out[1] = call_with(name, opd_slice(x, 1, OPD_NONE, OPD_NONE, 2));
    out[2] = call_with(name, opd_expand(row, OPD_INTS(4, 5)));
    out[3] = call_with(name, opd_neg(x));
    out[4] = call_with(name, opd_complex(opd_t(x), opd_t(x)));
    out[5] = call_with("strides::triple_", opd_t(opd_neg(x)));
    out[6] = call_with(name, row);
    return 7;
}
static bool same(opd_tensor *a, opd_tensor *b) {
    return a && b && opd_item_f64(opd_max(opd_abs(opd_sub(a, b)))) < 1e-5;
}
TEST(an_operator_gets_the_strides_of_an_uncompiled_run) {
    static char names[4][20] = {"strides::exact", "strides::ordered", "strides::untagged", "strides::flexible"};
    static char eager[1000];
    opd_tensor *x = opd_randn(OPD_INTS(2, 5), OPD_FLOAT32), *want[7];
    opd_value in = opd_value_tensor(x), out[7];
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (int i = 0; i < 4; i++) {
        seen[0] = 0;
        CHECK_INT(layouts(names[i], &x, 1, want), 7);
        (void)snprintf(eager, sizeof eager, "%s", seen);
        CHECK(strncmp(eager, "look 1 5;look 5 2;look 0 1;", 27) == 0);
        opd_graph *g = opd_graph_trace(layouts, names[i], &x, 1, NULL);
        opd_compiled *compiled = g ? opd_graph_compile(g, NULL) : NULL;
        CHECK_OR_RETURN(compiled != NULL);
        for (int k = 0; k < 2; k++) {
            seen[0] = 0;
            CHECK_INT(opd_compiled_run(compiled, &in, 1, out, 7), 7);
            for (int j = 0; j < 7; j++) { CHECK(same(out[j].u.t, want[j])); }
        }
        CHECK(opd_compiled_reason(compiled) == NULL);
        if (i < 3) { CHECK_STR(seen, eager); }
        else { CHECK(strncmp(seen, "look 2 1;look 3 1;look 5 1;", 27) == 0); }
        opd_compiled_free(compiled);
        opd_graph_free(g);
    }
    CHECK(check_cache_end());
    CHECK_OK();
}
static int windows(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = call_with("strides::untagged", opd_unfold(opd_exp(in[0]), 0, 3, 1));
    return 1;
}
TEST(windows_that_share_memory_are_not_compiled) {
    opd_tensor *x = opd_randn(OPD_INTS(6), OPD_FLOAT32);
    opd_value in = opd_value_tensor(x), out;
    if (!check_cache_begin()) { SKIP("no cc"); }
    opd_graph *g = opd_graph_trace(windows, NULL, &x, 1, NULL);
    opd_compiled *compiled = opd_graph_compile(g, NULL);
    CHECK_OR_RETURN(compiled != NULL);
    for (int k = 0; k < 2; k++) {
        seen[0] = 0;
        CHECK_INT(opd_compiled_run(compiled, &in, 1, &out, 1), 1);
        CHECK_STR(seen, "look 1 1;");
    }
    const char *const reason = opd_compiled_reason(compiled);
    CHECK(reason && strstr(reason, "strides::untagged cannot be compiled: elements of its argument share memory"));
    opd_compiled_free(compiled);
    opd_graph_free(g);
    CHECK(check_cache_end());
}
CHECK_MAIN()
