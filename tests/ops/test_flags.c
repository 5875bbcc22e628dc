/* Floating-point exceptions: an operator raises only those that its values justify, so that it runs in programs that trap
   them.  Each operator with sample arguments is called with numbers from 0.1 to 0.9, and with 0, 1, -0.5 and 100, at each
   level of instructions, with several lengths and dtypes.  If its results have the sizes of the arguments and are finite, nothing was invalid, divided
   by zero or too large. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE                  /* for feenableexcept */
#endif
#include "../inside.h"
#include "../cases.h"
#include <fenv.h>

#if defined(FE_INVALID) && defined(FE_DIVBYZERO) && defined(FE_OVERFLOW)
#define FLAGS (FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW)
#endif
#if defined(FLAGS)
/* Replaces the tensors of the arguments by tensors of `count` numbers.  Returns whether all of them were floating-point
   tensors of the same sizes. */
static bool flags_arguments(op_case *c, int64_t count, int numbers) {
    static const double same[] = {0, 1, -0.5, 100};
    const opd_tensor *first = NULL;
    int n = 0;
    for (int i = 0; i < c->nargs; i++) {
        opd_value *const v = &c->args[i];
        if (v->tag == OPD_TAG_TENSORS) { return false; }
        if (v->tag != OPD_TAG_TENSOR || !v->u.t) { continue; }
        if (!opd_dtype_is_floating(opd_dtype(v->u.t)) || (first && !same_shape(v->u.t, first))) { return false; }
        first = v->u.t;
        opd_tensor *x = opd_rand(OPD_INTS(count), OPD_FLOAT32);
        x = opd_add_Scalar(opd_mul_Scalar(x, OPD_V(numbers ? 0 : 0.8)), OPD_V(numbers ? same[numbers - 1] : 0.1));
        *v = opd_value_tensor(opd_to_dtype(x, c->dtype));
        n++;
    }
    return n > 0;
}
/* Returns whether a result has these sizes, and all results are finite. */
static bool flags_finite(const opd_op *op, const opd_value *rets, int64_t count) {
    opd_tensor *out[MOST_RESULTS];
    const int n = results_of(op, rets, out);
    bool pointwise = false;
    for (int i = 0; i < n; i++) {
        if (!out[i]) { continue; }
        pointwise = pointwise || (opd_ndim(out[i]) == 1 && opd_sizes(out[i])[0] == count);
        if (opd_item_i64(opd_all(opd_isfinite(out[i]))) == 0) { return false; }
    }
    return pointwise;
}
static void flags_say(const op_case *c, int64_t count, int numbers, int flags) {
    printf("    %s of %d numbers %d of %s, level %d:%s%s%s\n", opd_op_name(c->op), (int)count, numbers, opd_dtype_name(c->dtype), inside_cpu_level(),
           flags & FE_INVALID ? " invalid" : "", flags & FE_DIVBYZERO ? " divided by zero" : "", flags & FE_OVERFLOW ? " overflow" : "");
}
/* Calls the operator, and looks at the flags.  If none is raised, calls it again with traps, where the C library has them. */
static void flags_call(op_case *c, int64_t count, int numbers) {
    opd_value rets[MOST_RESULTS];
    opd_op *const op = (opd_op *)(uintptr_t)c->op;
    (void)feclearexcept(FLAGS);
    const int rc = opd_call_all(op, rets, c->args, c->nargs), flags = fetestexcept(FLAGS);
    if (rc || !flags_finite(op, rets, count)) { opd_error_clear(); return; }
    CHECK(flags == 0);
    if (flags) { flags_say(c, count, numbers, flags); }
#if defined(__GLIBC__) && defined(__x86_64__)
    if (flags || count != 67) { return; }
    (void)feclearexcept(FLAGS);
    (void)feenableexcept(FLAGS);
    (void)opd_call_all(op, rets, c->args, c->nargs);
    (void)fedisableexcept(FLAGS);
#endif
}
TEST(flags_of_pointwise_operators) {
    static const opd_scalar_type types[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16};
    static const int64_t counts[] = {1, 3, 16, 67};
#if defined(__clang__)
    SKIP("clang moves divisions and conversions to where they raise exceptions (-fno-trapping-math is its default)");
#endif
    inside_cpu_level_set(-1);
    const int most = inside_cpu_level();
    opd_threads_set(1);
    for (int k = 0; k < OPD_OP_COUNT * 80 * (most + 1); k++) {
        OPD_SCOPED;
        op_case c;
        memset(&c, 0, sizeof c);
        c.op = opd_op_builtin((opd_op_id)(k / (80 * (most + 1))));
        c.dtype = types[k / 4 % 4];
        const int numbers = k / 16 % 5;
        if (!c.op || !has_tensor_cases(c.op) || is_random(c.op) || (numbers && k % 4 < 3)) { continue; }
        const char *text = opd_op_card(c.op)->cases;
        if (!case_read_next(&c, &text) || !flags_arguments(&c, counts[k % 4], numbers)) { opd_error_clear(); continue; }
        inside_cpu_level_set(k / 80 % (most + 1));
        flags_call(&c, counts[k % 4], numbers);
        inside_cpu_level_set(most);
    }
    opd_threads_set(0);
}
#else
TEST(flags_of_pointwise_operators) { SKIP("the machine has no floating-point exceptions"); }
#endif
CHECK_MAIN()
