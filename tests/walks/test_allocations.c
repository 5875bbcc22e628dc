/* Failing allocations in every operator, with the sample arguments of its descriptor in float32 and in transposed
   bfloat16, called, recorded and under vmap.  For each n, the n-th allocation fails, either alone or with all later
   ones.  The call fails with an error of memory, or succeeds, and no memory is lost.  The next call succeeds.  One
   case per operator. */
#include "../cases.h"

enum { PLAIN, RECORDED, MAPPED, WAYS };
static const char *const way_names[WAYS] = {"", ", recorded", ", in vmap"};

typedef struct trial {
    op_case *c;
    opd_tensor *in[OPD_MAX_ARGS];                 /* in vmap: of one example each */
    int way, nin;
} trial;

static bool prepare(trial *t, const char *text) {
    op_case *const c = t->c;
    int i;
    t->nin = 0;
    if (!case_read_next(c, &text)) { return false; }
    for (i = 0; i < c->nargs; i++) {
        opd_tensor *const x = c->args[i].tag == OPD_TAG_TENSOR ? c->args[i].u.t : NULL;
        if (!x) { continue; }
        if (t->way == MAPPED) { t->in[t->nin++] = opd_unsqueeze(x, 0); }
        else if (t->way == RECORDED && opd_dtype_is_floating(opd_dtype(x))) { (void)opd_tensor_set_requires_grad(x, true); }
    }
    return opd_ok() && (t->way != MAPPED || t->nin > 0);
}
static int run(trial *t) {
    opd_value rets[MOST_RESULTS];
    opd_tensor *out[MOST_RESULTS];
    return t->way == MAPPED ? opd_vmap(case_call, t->c, t->in, t->nin, NULL, out, MOST_RESULTS)
        : opd_call_all((opd_op *)(uintptr_t)t->c->op, rets, t->c->args, t->c->nargs);
}
/* The n-th allocation fails; true: there were not so many. */
static bool fails(trial *t, const char *text, int64_t n, bool forever) {
    int rc;
    bool last;
    OPD_SCOPED;
    if (!prepare(t, text)) { opd_error_clear(); return true; }
    (void)opd_memory_fail_at(n, forever);
    rc = run(t);
    last = opd_memory_fail_at(0, false) < n;
    (void)say((rc < 0) == !opd_ok(), "return code and error differ");
    (void)say(rc >= 0 || opd_error_code() == OPD_ERROR_MEMORY, opd_error_message());
    (void)say(rc >= 0 || !last, "an error though no allocation failed");
    opd_error_clear();
    return last;
}
static void test_case(trial *t, const char *text) {
    int64_t n;
    bool right;
    (void)snprintf(what, sizeof what, "    %s \"%.*s\" %s%s", opd_op_name(t->c->op), (int)strcspn(text, ";"), text,
                   opd_dtype_name(t->c->dtype), way_names[t->way]);
    OPD_SCOPE { right = prepare(t, text) && run(t) >= 0; }
    opd_error_clear();
    if (!right) { return; }                       /* not of this dtype, or not in vmap */
    for (n = 1; !fails(t, text, n, false) && n < 400; n += n < 40 ? 1 : 7) { (void)fails(t, text, n, true); }
    OPD_SCOPE { (void)say(prepare(t, text) && run(t) >= 0, "fails afterwards"); }
    opd_error_clear();
}
static void test_operator(void *arg) {
    static op_case c;
    const char *text;
    trial t;
    memset(&t, 0, sizeof t);
    c.op = (const opd_op *)arg;
    t.c = &c;
    for (text = cases_of(c.op); *text; text += strcspn(text, ";")) {
        text += *text == ';';
        for (t.way = PLAIN; t.way < WAYS; t.way++) {
            c.dtype = OPD_FLOAT32; c.layout = CASE_CONTIGUOUS;
            test_case(&t, text);
            c.dtype = OPD_BFLOAT16; c.layout = CASE_TRANSPOSED;
            test_case(&t, text);
        }
    }
    CHECK_OK();
}
static void say_nothing(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
static void add_operators(void) {
    opd_op *op;
    opd_log_set(say_nothing, NULL);               /* of slow batching */
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        if (cases_of(op)) { check_add_with(opd_op_name(op), test_operator, op); }
    }
}
CHECK_MAIN_ADD(add_operators)
