/* Every operator, with the sample arguments of its descriptor, with one dim of one tensor expanded (its stride is
   0).  The result equals the result of a contiguous copy.  Products also run in sizes for which vector code is used. */
#include "../cases.h"
#include <math.h>

/* The results of a call of the case; how many, or -1 with an error. */
static int results(op_case *c, opd_tensor **out) {
    opd_value rets[MOST_RESULTS];
    opd_manual_seed(1);
    return opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs) ? -1 : results_of(c->op, rets, out);
}
/* Operators whose results are not told by values, or not the same in rows that are the same. */
static bool told_otherwise(const char *name) {
    static const char *const list[] = {"as_strided", "_reshape_alias", "empty", "resize", "stride", "is_contiguous", "svd", "eig",
                                       "qr", "lobpcg",
                                       "view", "batch_norm", NULL};      /* what cannot be viewed or written is refused */
    int i;
    for (i = 0; list[i]; i++) { if (strstr(name, list[i])) { return true; } }
    return false;
}
static bool same(opd_tensor *a, opd_tensor *b, double tolerance) {
    const opd_scalar_type wide = opd_dtype_is_complex(opd_dtype(a)) ? OPD_COMPLEX128 : OPD_FLOAT64;
    if (opd_dtype(a) != opd_dtype(b) || opd_ndim(a) != opd_ndim(b)) { return false; }
    return opd_allclose_full(opd_to_dtype(a, wide), opd_to_dtype(b, wide), tolerance, tolerance, true);
}
/* Calls the case with argument `which` expanded along dim `d` and with its copy; whether there was such a call. */
static bool compare(op_case *c, int which, int d, double tolerance) {
    opd_tensor *const given = c->args[which].u.t, *a[MOST_RESULTS], *b[MOST_RESULTS];
    int i, n, m;
    if (opd_size(given, d) < 2) { return false; }
    opd_tensor *const one = opd_expand(opd_narrow(given, d, 0, 1), opd_ints_of(opd_sizes(given), opd_ndim(given)));
    c->args[which].u.t = opd_contiguous(one);
    n = results(c, a);
    opd_error_clear();
    c->args[which].u.t = one;
    m = results(c, b);
    c->args[which].u.t = given;
    if (n < 0) { opd_error_clear(); return false; }
    if (m != n) { printf("    %s: argument %d, dim %d: %s\n", opd_op_name(c->op), which, d, opd_error_message()); }
    CHECK(m == n);
    for (i = 0; i < n && m == n; i++) {
        if (same(a[i], b[i], tolerance)) { continue; }
        printf("    %s %s: result %d, argument %d, dim %d\n", opd_op_name(c->op), opd_dtype_name(c->dtype), i, which, d);
        CHECK(false);
    }
    opd_error_clear();
    return true;
}
static int walk_case(op_case *c, double tolerance) {
    int i, d, count = 0;
    for (i = 0; i < c->nargs; i++) {
        for (d = 0; c->args[i].tag == OPD_TAG_TENSOR && d < opd_ndim(c->args[i].u.t); d++) {
            OPD_SCOPE { count += compare(c, i, d, tolerance); }
        }
    }
    return count;
}
static double tolerance_of(opd_scalar_type dtype) {
    return dtype == OPD_FLOAT64 || dtype == OPD_COMPLEX128 ? 1e-9 : dtype == OPD_FLOAT16 ? 2e-2
        : dtype == OPD_BFLOAT16 ? 1e-1 : 1e-4;
}
static void read_at(op_case *c, const opd_op *op, opd_scalar_type dtype) {
    memset(c, 0, sizeof *c);
    c->op = op;
    c->dtype = dtype;
}
static void walk(opd_scalar_type dtype, int least) {
    static op_case c;
    const opd_op *op;
    int count = 0;
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const opd_op_desc *const card = opd_op_card(op);
        const char *text = card && cases_of(op) ? cases_of(op) : "";
        if (told_otherwise(opd_op_name(op)) || !check_walks(opd_op_name(op)) || opd_schema_is_mutable(opd_op_schema(op))) { continue; }
        while (*text) {
            OPD_SCOPED;
            read_at(&c, op, dtype);
            if (!case_read_next(&c, &text)) { opd_error_clear(); break; }
            count += walk_case(&c, tolerance_of(dtype));
        }
        opd_error_clear();
    }
    printf("%d calls\n", count);
    CHECK(getenv("CHECK_PART") || count > least);
}
TEST(operators_of_float32) { walk(OPD_FLOAT32, 4400); }
TEST(operators_of_float64) { walk(OPD_FLOAT64, 4400); }
#if !defined(CHECK_SANITIZED)                     /* whose memory is read as that of the others */
TEST(operators_of_bfloat16) { walk(OPD_BFLOAT16, 3800); }
TEST(operators_of_float16) { walk(OPD_FLOAT16, 3800); }
#endif
TEST(operators_of_complex128) { walk(OPD_COMPLEX128, 2200); }
/* Sizes that have whole vectors, blocks and what is left over. */
TEST(products) {
    static const struct { const char *name, *text; } all[] = {
        {"mm", "[67,35] [35,66]; [1,67] [67,33]; [67,33] [33,1]; [5,130] [130,3]"}, {"mv", "[67,35] [35]; [3,130] [130]"},
        {"bmm", "[2,67,35] [2,35,66]; [3,1,67] [3,67,33]; [3,67,33] [3,33,1]"}, {"dot", "[67] [67]"}, {"vdot", "[67] [67]"},
        {"addmm", "[67,66] [67,35] [35,66]; [66] [3,35] [35,66]"}, {"addmv", "[67] [67,35] [35]"}, {"addr", "[67,35] [67] [35]"},
        {"baddbmm", "[2,67,66] [2,67,35] [2,35,66]"}, {"addbmm", "[67,66] [2,67,35] [2,35,66]"}, {"outer", "[67] [35]"},
        {"matmul", "[67,35] [35,66]; [2,67,35] [35,66]; [2,3,67,35] [3,35,66]; [35] [35,66]; [2,67,35] [35]"},
        {"linear", "[67,35] [66,35] [66]; [1,35] [66,35] [66]"}, {"cdist", "[35,20] [33,20]"},
        {"convolution", "[2,16,9,20] [24,16,3,3] [24] (1,1) (1,1) (1,1) False (0,0) 1; [2,16,9,20] [16,1,3,3] [16] (1,1) (1,1) (1,1) False (0,0) 16;"
         "[2,8,67] [16,8,5] [16] (2,) (1,) (1,) False (0,) 1; [2,16,9,20] [16,24,3,3] [24] (2,2) (1,1) (1,1) True (0,0) 1;"
         "[1,40,9,20] [24,40,1,1] [24] (1,1) (0,0) (1,1) False (0,0) 1"},
        {"scaled_dot_product_attention", "[2,3,67,16] [2,3,66,16] [2,3,66,16]; [1,2,1,16] [1,2,66,16] [1,2,66,16]"},
        {"native_layer_norm", "[35,66] (66,) [66] [66] 1e-5"}, {"_softmax", "[35,66] 1 False; [35,66] 0 False"},
        {"sum.dim_IntList", "[35,66] (1,) False; [35,66] (0,) False"}, {"cumsum", "[35,66] 1; [35,66] 0"},
        {"sort", "[35,66] 1"}, {"gather", "[35,66] 1 [35,66]i66"}, {"index_select", "[35,66] 0 [67]i35"},
        {"embedding", "[35,66] [67]i35"}, {"add.Tensor", "[35,66] [35,66]; [35,66] [66]"}, {"mul.Tensor", "[35,66] [35,66]"},
        {"where.self", "[35,66]b [35,66] [35,66]"}, {"max.dim", "[35,66] 1; [35,66] 0"},
        {"native_batch_norm", "[5,16,67] [16] [16] [16] [16]+ False 0.1 1e-5"}, {"avg_pool2d", "[2,4,20,35] (2,2)"},
        {"max_pool2d_with_indices", "[2,4,20,35] (2,2)"}, {"upsample_bilinear2d", "[2,4,20,35] (40,50) False"}, {NULL, NULL}};
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16, OPD_FLOAT16, OPD_COMPLEX128};
    static op_case c;
    size_t k;
    int i, count = 0;
    for (i = 0; all[i].name; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "aten::%s", all[i].name);
        const opd_op *const op = opd_find(name);
        CHECK_OR_RETURN(op != NULL);
        for (k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
            const char *text = all[i].text;
            int here = 0;
            while (*text) {
                OPD_SCOPED;
                read_at(&c, op, dtypes[k]);
                if (!case_read_next(&c, &text)) { break; }
                here += walk_case(&c, tolerance_of(dtypes[k]));
            }
            if (k == 0 && !here) { printf("    %s: %s\n", name, c.wrong ? c.wrong : opd_error_message()); }
            CHECK(k > 0 || here > 0);
            opd_error_clear();
            count += here;
        }
    }
    printf("%d calls\n", count);
}
CHECK_MAIN()
