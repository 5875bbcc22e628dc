/* Operators that read or write by indices, with an index that occurs twice: values, gradients (of results weighted
   by 1, 2, 3, ...) and tangents (of inputs moved by 1, 2, 3, ...), as in PyTorch 2.15. */
#include "../cases.h"

static const struct repeat {
    const char *name, *args;                      /* the index is 1, 1, 0; the first input 1, 2, 3, ... */
    double second[3], result[6], first_grad[6], second_grad[3], tangent[6];     /* of the second input, where there is one */
} repeats[] = {
    {"aten::index_fill.int_Tensor", "[4], 0, [3]i2, []", {5}, {5, 5, 3, 4}, {0, 0, 3, 4}, {3}, {1, 1, 3, 4}},
    {"aten::index_copy", "[4], 0, [3]i2, [3]", {7, 8, 9}, {9, 8, 3, 4}, {0, 0, 3, 4}, {2, 2, 1}, {3, 2, 3, 4}},
    {"aten::index_put", "[4], {[3]i2}, [3]", {7, 8, 9}, {9, 8, 3, 4}, {0, 0, 3, 4}, {2, 2, 1}, {3, 2, 3, 4}},
    {"aten::index_put", "[4], {[3]i2}, [1]", {7}, {7, 7, 3, 4}, {0, 0, 3, 4}, {5}, {1, 1, 3, 4}},
    {"aten::index_put", "[4], {[3]i2}, [3], True", {7, 8, 9}, {10, 17, 3, 4}, {1, 2, 3, 4}, {2, 2, 1}, {4, 5, 3, 4}},
    {"aten::scatter.src", "[4], 0, [3]i2, [3]", {7, 8, 9}, {9, 8, 3, 4}, {0, 0, 3, 4}, {2, 2, 1}, {3, 2, 3, 4}},
    {"aten::scatter_add", "[4], 0, [3]i2, [3]", {7, 8, 9}, {10, 17, 3, 4}, {1, 2, 3, 4}, {2, 2, 1}, {4, 5, 3, 4}},
    {"aten::index_add", "[4], 0, [3]i2, [3], alpha=2", {7, 8, 9}, {19, 32, 3, 4}, {1, 2, 3, 4}, {4, 4, 2}, {7, 8, 3, 4}},
    {"aten::put", "[4], [3]i2, [3]", {7, 8, 9}, {9, 8, 3, 4}, {0, 0, 3, 4}, {2, 2, 1}, {3, 2, 3, 4}},
    {"aten::put", "[4], [3]i2, [3], True", {7, 8, 9}, {10, 17, 3, 4}, {1, 2, 3, 4}, {2, 2, 1}, {4, 5, 3, 4}},
    {"aten::take", "[4], [3]i2", {0}, {2, 2, 1}, {3, 3, 0, 0}, {0}, {2, 2, 1}},
    {"aten::gather", "[4], 0, [3]i2", {0}, {2, 2, 1}, {3, 3, 0, 0}, {0}, {2, 2, 1}},
    {"aten::index_select", "[4], 0, [3]i2", {0}, {2, 2, 1}, {3, 3, 0, 0}, {0}, {2, 2, 1}},
    {"aten::index.Tensor", "[4], {[3]i2}", {0}, {2, 2, 1}, {3, 3, 0, 0}, {0}, {2, 2, 1}},
    {"aten::take_along_dim", "[4], [3]i2, 0", {0}, {2, 2, 1}, {3, 3, 0, 0}, {0}, {2, 2, 1}},
    {"aten::embedding", "[4,1], [3]i2", {0}, {2, 2, 1}, {3, 3, 0, 0}, {0}, {2, 2, 1}},
    /* PyTorch gives the row of the padding a tangent, but no gradient; here both modes agree */
    {"aten::embedding", "[4,1], [3]i2, 0", {0}, {2, 2, 1}, {0, 3, 0, 0}, {0}, {2, 2, 0}},
    {"aten::scatter_reduce.two", "[4], 0, [3]i2, [3], 'sum', include_self=False", {2, 2, 9}, {9, 4, 3, 4}, {0, 0, 3, 4},
     {2, 2, 1}, {3, 3, 3, 4}},
    {"aten::scatter_reduce.two", "[4], 0, [3]i2, [3], 'mean'", {2, 2, 9}, {5, 2, 3, 4}, {.5, 2 / 3., 3, 4}, {2 / 3., 2 / 3., .5},
     {2, 5 / 3., 3, 4}},
    {"aten::scatter_reduce.two", "[4], 0, [3]i2, [3], 'mean', include_self=False", {2, 2, 9}, {9, 2, 3, 4}, {0, 0, 3, 4},
     {1, 1, 1}, {3, 1.5, 3, 4}},
    {"aten::scatter_reduce.two", "[4], 0, [3]i2, [3], 'amax'", {2, 2, 9}, {9, 2, 3, 4}, {0, 2 / 3., 3, 4}, {2 / 3., 2 / 3., 1},
     {3, 5 / 3., 3, 4}},
    {"aten::scatter_reduce.two", "[4], 0, [3]i2, [3], 'amin', include_self=False", {3, 3, 9}, {9, 3, 3, 4}, {0, 0, 3, 4},
     {1, 1, 1}, {3, 1.5, 3, 4}},
    {"aten::index_reduce", "[4], 0, [3]i2, [3], 'amin'", {2, 2, 9}, {1, 2, 3, 4}, {1, 2 / 3., 3, 4}, {2 / 3., 2 / 3., 0},
     {1, 5 / 3., 3, 4}},
    {"aten::index_reduce", "[4], 0, [3]i2, [3], 'prod', False", {2, 2, 9}, {9, 4, 3, 4}, {0, 0, 3, 4}, {4, 4, 1}, {3, 6, 3, 4}},
};

static opd_tensor *counted(const opd_tensor *like) {
    opd_tensor *t = opd_tensor_new(opd_ints_of(opd_sizes(like), opd_ndim(like)), OPD_FLOAT32);
    int64_t i;
    for (i = 0; t && i < opd_numel(t); i++) { opd_data_f32(t)[i] = (float)(i + 1); }
    return t;
}
static void are(const char *which, const opd_tensor *t, const double *want) {
    int64_t i;
    for (i = 0; t && i < opd_numel(t); i++) {
        const double got = case_get(t, i);
        if (fabs(got - want[i]) > 1e-5 || isnan(got)) { printf("%s: %s %d is %g, not %g\n", what, which, (int)i, got, want[i]); CHECK(false); }
    }
    CHECK(t != NULL);
}
static void try_one(const struct repeat *r) {
    static op_case c;
    const char *text = r->args;
    opd_tensor *in[2], *g[2], *y, *sum, *tangent = NULL;
    int i, k, n = 0;
    c.op = opd_find(r->name);
    c.dtype = OPD_FLOAT32;
    (void)snprintf(what, sizeof what, "%s(%s)", r->name, r->args);
    CHECK_OR_RETURN(c.op && case_read_next(&c, &text));
    for (i = 0; i < c.nargs; i++) {
        opd_value *v = &c.args[i];
        opd_tensor *t = v->tag == OPD_TAG_TENSOR ? v->u.t : v->tag == OPD_TAG_TENSORS ? c.lists[i].tensors[0] : NULL;
        if (!t) { continue; }
        for (k = 0; k < opd_numel(t); k++) { case_put(t, k, opd_dtype(t) == OPD_INT64 ? k < 2 : n ? r->second[k] : k + 1); }
        if (opd_dtype(t) == OPD_FLOAT32) { (void)opd_tensor_set_requires_grad(in[n++] = t, true); }
    }
    y = opd_call_op((opd_op *)(uintptr_t)c.op, c.args, c.nargs);
    are("result", y, r->result);
    sum = y ? opd_sum(opd_mul(y, counted(y))) : NULL;
    if (!sum || opd_autograd_grad(&sum, 1, in, n, NULL, g)) { (void)went_well(-1); return; }
    are("first gradient", g[0], r->first_grad);
    if (n > 1) { are("second gradient", g[1], r->second_grad); }
    OPD_NO_GRAD { OPD_DUAL_LEVEL {
        for (i = 0, n = 0; i < c.nargs; i++) {
            opd_value *v = &c.args[i];
            if (v->tag == OPD_TAG_TENSOR && opd_dtype(v->u.t) == OPD_FLOAT32) {
                v->u.t = opd_dual_new(opd_detach(v->u.t), counted(v->u.t));
            }
        }
        y = opd_call_op((opd_op *)(uintptr_t)c.op, c.args, c.nargs);
        if (y) { (void)opd_dual_unpack(y, &tangent); }
        are("tangent", tangent, r->tangent);
    } }
    (void)went_well(0);
}
TEST(repeated_indices) {
    size_t i;
    for (i = 0; i < sizeof repeats / sizeof *repeats; i++) { OPD_SCOPE { try_one(&repeats[i]); } }
}
CHECK_MAIN()
