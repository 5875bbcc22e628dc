/* Type promotion under vmap: each pointwise operator with two or three tensors, of all dtypes, with and without dims,
   batched or not.  A tensor without dims has less weight in type promotion than one with dims, also if its examples are
   in one tensor with a dim.  The result has the dtype and the values of the call with one example. */
#include "../cases.h"

static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_INT64, OPD_UINT8, OPD_BOOL, OPD_COMPLEX64};
enum { DTYPES = 6, MOST = 3 };
typedef struct subject { const opd_op *op; opd_value args[OPD_MAX_ARGS]; int nargs, slots[MOST], n; } subject;

static int call(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    subject *s = (subject *)user;
    opd_value rets[16];
    for (int i = 0; i < n; i++) { s->args[s->slots[i]] = opd_value_tensor(in[i]); }
    if (opd_call_all((opd_op *)(uintptr_t)s->op, rets, s->args, s->nargs)) { return -1; }
    out[0] = rets[0].u.t;
    return 1;
}
static opd_tensor *operand(int number, opd_scalar_type dtype, bool dims) {
    const double values[] = {number ? 2.0 : 1.0, 1, 2};
    const int64_t size = 3;
    opd_tensor *t = opd_tensor_from(values, opd_ints_of(&size, dims ? 1 : 0), OPD_FLOAT64);
    return opd_to_dtype(t, dtype);
}
static void compare(subject *s, opd_tensor **tensors, unsigned batched) {
    static const int no = OPD_NO_DIM;
    opd_tensor *in[MOST], *one[1], *got[1];
    opd_vmap_options options = {0};
    int dims[MOST];
    if (call(s, tensors, s->n, one) < 0) {        /* dtypes that the operator does not take */
        opd_error_clear();
        return;
    }
    for (int i = 0; i < s->n; i++) {
        opd_tensor *both[2];
        both[0] = both[1] = tensors[i];
        in[i] = batched >> i & 1 ? opd_stack(opd_tensors_of(both, 2), 0) : tensors[i];
        dims[i] = batched >> i & 1 ? 0 : no;
    }
    options.in_dims = dims;
    options.nin_dims = s->n;
    if (opd_vmap(call, s, in, s->n, &options, got, 1) != 1) {
        printf("%s: %s\n", opd_op_name(s->op), opd_error_message());
        CHECK(!"works under vmap");
        opd_error_clear();
        return;
    }
    opd_tensor *both[2];
    both[0] = both[1] = one[0];
    if (opd_dtype(got[0]) != opd_dtype(one[0]) || !opd_allclose_full(opd_stack(opd_tensors_of(both, 2), 0), got[0], 1e-5, 1e-6, true)) {
        printf("%s: %s of %s %dD, %s %dD; vmap of %x: %s\n", opd_op_name(s->op), opd_dtype_name(opd_dtype(one[0])),
               opd_dtype_name(opd_dtype(tensors[0])), opd_ndim(tensors[0]), opd_dtype_name(opd_dtype(tensors[1])),
               opd_ndim(tensors[1]), batched, opd_dtype_name(opd_dtype(got[0])));
        CHECK(!"the same as one example");
    }
    opd_error_clear();
}
/* Calls the operator with operands of all dtypes.  Returns false if the operator is of another kind. */
static bool walk(const opd_op *op) {
    static op_case c;
    const char *text = opd_op_card(op) && cases_of(op) ? cases_of(op) : "";
    subject s;
    memset(&c, 0, sizeof c);
    memset(&s, 0, sizeof s);
    c.op = op;
    c.dtype = OPD_FLOAT32;
    if (!*text || opd_schema_is_mutable(opd_op_schema(op)) || !(opd_op_tags(op) & OPD_OPTAG_POINTWISE) ||
        opd_schema_nreturns(opd_op_schema(op)) != 1 || is_random(op) || !case_read_next(&c, &text)) {
        opd_error_clear();
        return false;
    }
    s.op = op;
    s.nargs = c.nargs;
    memcpy(s.args, c.args, sizeof s.args);
    for (int i = 0; i < c.nargs; i++) {
        if (c.args[i].tag == OPD_TAG_TENSORS) { return false; }
        if (c.args[i].tag != OPD_TAG_TENSOR) { continue; }
        if (s.n == MOST) { return false; }
        s.slots[s.n++] = i;
    }
    if (s.n < 2) { return false; }
    for (int pick = 0; pick < (s.n == 2 ? DTYPES * DTYPES : DTYPES * DTYPES * DTYPES) * (1 << s.n); pick++) {
        OPD_SCOPED;
        opd_tensor *tensors[MOST];
        int rest = pick >> s.n;
        for (int i = 0; i < s.n; i++, rest /= DTYPES) {
            tensors[i] = operand(i, dtypes[rest % DTYPES], (pick >> i & 1) != 0);
        }
        for (unsigned batched = 1; batched < 1u << s.n; batched++) { compare(&s, tensors, batched); }
    }
    return true;
}
TEST(tensors_without_dims_keep_their_weight) {
    int count = 0;
    for (const opd_op *op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        OPD_SCOPED;
        if (check_walks(opd_op_name(op))) { count += walk(op); }
        opd_error_clear();
    }
    printf("%d operators\n", count);
    CHECK(getenv("CHECK_PART") || count > 30);
}
CHECK_MAIN_WALKS()
