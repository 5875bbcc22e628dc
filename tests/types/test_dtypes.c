/* Every operator, with the sample arguments of its descriptor and tensors of every dtype: all tensors together and
   each separately, with and without recording, and with every dtype for a dtype argument.  No call crashes.  It
   gives an error, or results with the dtypes of the fake kernel.  One case per operator. */
#include "../cases.h"

static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64, OPD_FLOAT16, OPD_FLOAT32,
                                         OPD_FLOAT64, OPD_COMPLEX64, OPD_COMPLEX128, OPD_BOOL, OPD_BFLOAT16, OPD_UINT16,
                                         OPD_UINT32, OPD_UINT64, OPD_FLOAT8_E4M3FN, OPD_FLOAT8_E5M2, OPD_FLOAT8_E8M0FNU,
                                         OPD_COMPLEX32};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

/* The arguments of a case; tensor number `only` (-1: every one) with this dtype, NONE: as they are. */
static bool read_with(op_case *c, const opd_op *op, const char *text, int only, opd_scalar_type dtype, bool meta) {
    int i, k, n = 0;
    c->op = op;
    c->dtype = OPD_FLOAT32;
    c->meta = meta;
    if (!case_read_next(c, &text)) { return false; }
    for (i = 0; i < c->nargs && dtype != OPD_DTYPE_NONE; i++) {
        opd_value *v = &c->args[i];
        opd_tensor **list = v->tag == OPD_TAG_TENSOR ? &v->u.t : c->lists[i].tensors;
        for (k = 0; k < (v->tag == OPD_TAG_TENSORS ? v->n : v->tag == OPD_TAG_TENSOR); k++) {
            if (list[k] && (only < 0 || n == only)) { list[k] = opd_to_dtype(list[k], dtype); }
            n++;
        }
    }
    return opd_ok() && (only < 0 || only < n);
}
/* Calls the operator.  Returns the number of results, or -1 after an error with a proper text, which is cleared. */
static int results(const op_case *c, opd_tensor **out) {
    opd_value rets[MOST_RESULTS];
    const int rc = opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs);
    (void)say((rc < 0) == !opd_ok(), "return code and error differ");
    if (rc < 0) { (void)say(opd_error_message()[0] != 0, "an error without words"); opd_error_clear(); return -1; }
    return results_of(c->op, rets, out);
}
/* Both kernels with the same arguments; arg: one that takes this dtype too. */
static void both(op_case *c, const char *text, int only, opd_scalar_type dtype, int arg, opd_scalar_type asked) {
    opd_tensor *real[MOST_RESULTS], *fake[MOST_RESULTS];
    const opd_op *op = c->op;
    int i, m, n;
    OPD_SCOPED;
    (void)snprintf(what, sizeof what, "    %s \"%.*s\" tensor %d %s, dtype=%s", opd_op_name(op), (int)strcspn(text, ";"), text,
                   only, opd_dtype_name(dtype), opd_dtype_name(asked));
    if (!read_with(c, op, text, only, dtype, false)) { opd_error_clear(); return; }
    if (arg >= 0) { c->args[arg] = opd_value_int(asked); }
    n = results(c, real);
    for (i = 0; i < n; i++) { (void)say(opd_numel(real[i]) == 0 || opd_data(real[i]) || !opd_ok(), "a result without data"); opd_error_clear(); }
    if (!read_with(c, op, text, only, dtype, true)) { opd_error_clear(); return; }
    if (arg >= 0) { c->args[arg] = opd_value_int(asked); }
    m = results(c, fake);
    if (strcmp(opd_op_name(op), "aten::cumprod_backward") == 0) { return; }       /* as PyTorch's: zeros decide */
    for (i = 0; i < m && i < n; i++) {
        (void)say(opd_dtype(real[i]) == opd_dtype(fake[i]), "the fake has another dtype");
    }
}
static void recorded(op_case *c, const char *text, opd_scalar_type dtype) {
    opd_tensor *out[MOST_RESULTS];
    int i, k, n;
    OPD_SCOPED;
    if (!read_with(c, c->op, text, -1, dtype, false)) { opd_error_clear(); return; }
    for (i = 0; i < c->nargs; i++) {
        const opd_value *v = &c->args[i];
        if (v->tag == OPD_TAG_TENSOR && opd_dtype_is_floating(opd_dtype(v->u.t))) { (void)opd_tensor_set_requires_grad(v->u.t, true); }
        for (k = 0; v->tag == OPD_TAG_TENSORS && k < v->n; k++) {
            if (v->u.tensors[k] && opd_dtype_is_floating(opd_dtype(v->u.tensors[k]))) {
                (void)opd_tensor_set_requires_grad(v->u.tensors[k], true);
            }
        }
    }
    n = results(c, out);
    for (i = 0; i < n; i++) {
        if (opd_tensor_requires_grad(out[i]) && opd_dtype_is_floating(opd_dtype(out[i]))) { opd_backward(opd_sum(out[i])); }
        opd_error_clear();
    }
}
static void test_case(op_case *c, const char *text, int dtype_arg) {
    int i, only;
    for (i = 0; i < DTYPES; i++) {
        for (only = -1; only < 3; only++) { both(c, text, only, dtypes[i], -1, OPD_DTYPE_NONE); }
        if (dtype_arg >= 0) { both(c, text, -1, OPD_DTYPE_NONE, dtype_arg, dtypes[i]); }
        if (dtype_arg >= 0) { both(c, text, -1, OPD_COMPLEX64, dtype_arg, dtypes[i]); }
        recorded(c, text, dtypes[i]);
    }
}
static void test_operator(void *arg) {
    static op_case c;
    const opd_op *op = (const opd_op *)arg;
    const char *text = cases_of(op);
    CHECK_OR_RETURN(text != NULL);
    c.op = op;
    for (; *text; text += strcspn(text, ";")) {
        text += *text == ';';
        test_case(&c, text, arg_named(op, "dtype"));
    }
    CHECK_OK();
}
static void add_operators(void) { add_builtin_operators(test_operator, has_cases); }
CHECK_MAIN_ADD(add_operators)
