/* opd_opcheck: every built-in operator passes with its sample arguments; for each kind of failure, a broken operator
   is caught. */
#include "../../opdispatch.h"
#include "../cases.h"


//-- the built-in operators ---------------------------------------------------------------------------------------------

/* Results are whatever memory held, or are said to depend on it. */
static bool undefined_results(const opd_op *op) {
    static const char *const list[] = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided",
                                       "resize_", "resize_as_", NULL};
    return named(op, list);
}
/* ATen's schemas do not say that these give back the argument, or what looks at its memory. */
static bool aliases_unsaid(const opd_op *op) {
    static const char *const list[] = {"_unsafe_view", "unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk", "conj_physical",
                                       "atleast_1d", "atleast_2d", "atleast_3d", "dropout", "feature_dropout", "alpha_dropout",
                                       "feature_alpha_dropout", NULL};
    return named(op, list);
}
/* These have to do with strides and not with elements. */
static bool reads_strides(const opd_op *op) {
    static const char *const list[] = {"as_strided_", "as_strided_copy", "as_strided_scatter", "_reshape_alias_copy", NULL};
    return named(op, list);
}
/* What detaches an input of a recording, which is a view of the caller's. */
static unsigned left_out(const opd_op *op) {
    static const char *const untraced[] = {"detach_", NULL}, *const unbatched[] = {"where", NULL};
    return (aliases_unsaid(op) ? (unsigned)OPD_OPCHECK_SCHEMA : 0u) | (reads_strides(op) ? (unsigned)OPD_OPCHECK_MEMORY : 0u) | (named(op, untraced) ? (unsigned)OPD_OPCHECK_TRACE : 0u) |
           (named(op, unbatched) && opd_schema_nargs(opd_op_schema(op)) == 1 ? (unsigned)OPD_OPCHECK_VMAP : 0u);
}
static bool read_case(op_case *c, const opd_op *op, const char **text, int k) {
    const char *from = *text;
    c->op = op;
    c->dtype = OPD_FLOAT32;
    c->layout = CASE_CONTIGUOUS;
    c->smooth = true;
    c->meta = false;
    if (!case_read_next(c, text)) { return false; }
    (void)snprintf(what, sizeof what, "    case %d \"%.*s\"", k, (int)strcspn(from + (*from == ';'), ";"), from + (*from == ';'));
    return true;
}
static void require_grad(const op_case *c) {
    int i, j;
    for (i = 0; i < c->nargs; i++) {
        for (j = 0; j < (c->args[i].tag == OPD_TAG_TENSORS ? c->args[i].n : c->args[i].tag == OPD_TAG_TENSOR); j++) {
            opd_tensor *t = c->args[i].tag == OPD_TAG_TENSOR ? c->args[i].u.t : c->args[i].u.tensors[j];
            if (t && opd_dtype_is_floating(opd_dtype(t)) && !constant_argument(c->op, opd_schema_arg_name(opd_op_schema(c->op), i))) {
                (void)opd_tensor_set_requires_grad(t, true);
            }
        }
    }
}
/* The cases of a functional operator are not all ones of its in-place form. */
static bool takes_case(const op_case *c) {
    opd_value args[OPD_MAX_ARGS];
    memcpy(args, c->args, sizeof args);
    if (args[0].tag != OPD_TAG_TENSOR || !opd_schema_is_mutable(opd_op_schema(c->op))) { return true; }
    args[0] = opd_value_tensor(opd_clone(args[0].u.t));
    if (opd_call_all((opd_op *)(uintptr_t)c->op, NULL, args, c->nargs) == 0) { return true; }
    opd_error_clear();
    return false;
}
static void one_operator(void *arg) {
    const opd_op *op = (const opd_op *)arg;
    const opd_op_desc *card = opd_op_card(op);
    static op_case c;
    const char *text = card->cases;
    char report[2000];
    opd_opcheck_options o;
    unsigned failed = 0;
    int k;
    if (undefined_results(op)) { SKIP("results are what memory held"); }
    memset(&o, 0, sizeof o);
    o.tests = OPD_OPCHECK_ALL & ~left_out(op);
    o.failed = &failed;
    o.report = report;
    o.report_cap = sizeof report;
    for (k = 0; *text; k++) {
        OPD_SCOPED;
        if (!read_case(&c, op, &text, k)) { break; }
        CHECK(true);
        if (!takes_case(&c)) { continue; }
        require_grad(&c);
        if (!takes_case(&c)) {                    /* an in-place form without a derivative */
            const char *again = card->cases;
            int i;
            for (i = 0; i <= k; i++) { (void)read_case(&c, op, &again, i); }
        }
        if (went_well(opd_opcheck((opd_op *)(uintptr_t)op, c.args, c.nargs, &o)) && failed) { (void)say(false, report); }
    }
}
static void add_operators(void) {
    const opd_op *op;
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        if (strncmp(opd_op_name(op), "aten::", 6) == 0 && opd_op_card(op) && opd_op_card(op)->cases && *opd_op_card(op)->cases) {
            check_add_with(opd_op_name(op), one_operator, (void *)(uintptr_t)op);
        }
    }
}


//-- one broken operator for each kind of failure ---------------------------------------------------------------------------

static opd_library *lib;
static int calls;                /* state that a kernel must not have */

static opd_tensor *like(opd_call *call, int i) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_result(call, i, opd_sizes(x), opd_ndim(x), opd_dtype(x));
}
/* x * by */
static int times(opd_call *call, float by) {
    opd_tensor *x = opd_contiguous(opd_arg_tensor(call, 0)), *y = like(call, 0);
    int64_t i;
    if (!x || !y) { return -1; }
    for (i = 0; i < opd_numel(x); i++) { opd_data_f32(y)[i] = opd_data_f32(x)[i] * by; }
    return 0;
}
static int k_twice(opd_call *call) { return times(call, 2); }
static int k_fake(opd_call *call) { return like(call, 0) ? 0 : -1; }
static int b_twice(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_mul_Scalar(opd_bw_grad(bw, 0), opd_value_int(2))); }

static int k_writes(opd_call *call) { opd_data_f32(opd_arg_tensor(call, 0))[0] += 1; return times(call, 2); }
static int k_returns(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
static int k_view(opd_call *call) { return opd_return_tensor(call, opd_alias(opd_arg_tensor(call, 0))); }
static int k_pair(opd_call *call) {
    opd_tensor *y = opd_clone(opd_arg_tensor(call, 0));
    return opd_return_tensor(call, y) || opd_return_tensor(call, opd_alias(y)) ? -1 : 0;
}
static int k_records(opd_call *call) { return opd_return_tensor(call, opd_mul(opd_arg_tensor(call, 0), opd_arg_tensor(call, 0))); }
static int k_row(opd_call *call) {                /* the fake of sizes [1] */
    const int64_t one = 1;
    return opd_result(call, 0, &one, 1, OPD_FLOAT32) ? 0 : -1;
}
static int k_two_three(opd_call *call) {
    const int64_t sizes[] = {2, 3};
    return opd_result(call, 0, sizes, 2, OPD_FLOAT32) ? 0 : -1;
}
static int k_double(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_result(call, 0, opd_sizes(x), opd_ndim(x), OPD_FLOAT64) ? 0 : -1;
}
static int k_columns(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    const int64_t strides[] = {1, opd_size(x, 0)};
    return opd_result_strided(call, 0, opd_sizes(x), strides, 2, opd_dtype(x), opd_tensor_device(x)) ? 0 : -1;
}
static int k_two(opd_call *call) { return like(call, 0) && like(call, 1) ? 0 : -1; }
static int k_reads(opd_call *call) {
    float *p = opd_data_f32(opd_arg_tensor(call, 0));
    const int64_t n = p ? (int64_t)p[0] : 0;
    return p && opd_result(call, 0, &n, 1, OPD_FLOAT32) ? 0 : -1;
}
static int k_counts(opd_call *call) { return times(call, (float)++calls); }
static int b_counts(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_mul_Scalar(opd_bw_grad(bw, 0), opd_value_int(++calls)));
}
static int v_wrong(opd_call *call) {
    int dim;
    opd_tensor *x = opd_batch_arg(call, 0, &dim);
    return opd_batch_return(call, opd_mul_Scalar(x, opd_value_int(3)), dim);
}

static void define(const char *schema, opd_kernel cpu, opd_kernel fake, opd_backward_fn backward, opd_vmap_rule vmap) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = schema;
    d.cpu = cpu;
    d.fake = fake;
    d.backward = backward;
    d.vmap = vmap;
    CHECK_INT(opd_define(lib, &d), 0);
}
/* opcheck of broken::name on a float tensor of sizes [2,3] finds this, and says what to fix. */
static void finds(const char *name, unsigned test, const char *text, const char *fix) {
    char full[100], report[3000];
    const float data[6] = {1, 2, 3, 4, 5, 6};
    opd_opcheck_options o;
    unsigned failed = 99;
    opd_value x;
    opd_op *op;
    int rc;
    (void)snprintf(full, sizeof full, "broken::%s", name);
    op = opd_find(full);
    x = opd_value_tensor(opd_tensor_set_requires_grad(opd_tensor_from(data, OPD_INTS(2, 3), OPD_FLOAT32), true));
    rc = opd_opcheck(op, &x, 1, NULL);
    if (!text) { CHECK_OK(); CHECK_INT(rc, 0); opd_error_clear(); }
    else {
        CHECK_INT(rc, -1);
        CHECK(strstr(opd_error_message(), full));
        if (!strstr(opd_error_message(), fix)) { printf("%s\n", opd_error_message()); CHECK(!"says what to fix"); }
        (void)check_error(opd_error_code(), text, __FILE__, __LINE__);
    }
    memset(&o, 0, sizeof o);
    o.failed = &failed;
    o.report = report;
    o.report_cap = sizeof report;
    CHECK_INT(opd_opcheck(op, &x, 1, &o), 0);
    CHECK_INT(failed, text ? test : 0);
    if (text) { CHECK(strstr(report, text)); }
    if (failed != (text ? test : 0)) { printf("%s: %s\n", name, report); }
}
/* What C kernels get wrong: `how` they treat memory. */
enum { NO_STRIDES, UNWRITTEN, READS_BEHIND, WRITES_BEHIND, WRITES_BEHIND_X, READS_SCRATCH, REFUSES, WELL };
static int touches(opd_call *call, int how) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y, *scratch;
    const float *p = opd_data_f32(how == NO_STRIDES ? x : opd_contiguous(x));
    int64_t i, n;
    float *q;
    if (how == REFUSES && !opd_is_contiguous(x)) { return opd_fail(OPD_ERROR_ARGUMENT, "x must be contiguous"); }
    y = like(call, 0);
    scratch = opd_empty(OPD_INTS(8), OPD_FLOAT32);
    if (!opd_ok()) { return -1; }
    q = opd_data_f32(y);
    n = opd_numel(y);
    for (i = 0; i < n - (how == UNWRITTEN); i++) { q[i] = 2 * p[i]; }
    if (how == READS_BEHIND) { for (i = 0; i < n; i++) { q[i] += 0 * p[i + 1]; } }
    if (how == READS_SCRATCH) { q[1] += opd_data_f32(scratch)[3]; }
    if (how == WRITES_BEHIND) { q[n] = 5; }
    if (how == WRITES_BEHIND_X) { opd_data_f32(x)[n + 2] = 5; }
    return 0;
}
static int k_no_strides(opd_call *call) { return touches(call, NO_STRIDES); }
static int k_unwritten(opd_call *call) { return touches(call, UNWRITTEN); }
static int k_reads_behind(opd_call *call) { return touches(call, READS_BEHIND); }
static int k_writes_behind(opd_call *call) { return touches(call, WRITES_BEHIND); }
static int k_writes_behind_x(opd_call *call) { return touches(call, WRITES_BEHIND_X); }
static int k_reads_scratch(opd_call *call) { return touches(call, READS_SCRATCH); }
static int k_refuses(opd_call *call) { return touches(call, REFUSES); }
static int k_well(opd_call *call) { return touches(call, WELL); }
TEST(what_kernels_do_to_memory_is_seen) {
    static const struct { const char *schema; opd_kernel cpu; const char *text; } rows[] = {
        {"no_strides(Tensor x) -> Tensor", k_no_strides, "are different for arguments with other strides: result 0: element 1"},
        {"unwritten(Tensor x) -> Tensor", k_unwritten, "depend on the contents of uninitialised memory: result 0: element 5"},
        {"reads_behind(Tensor x) -> Tensor", k_reads_behind, "depend on the contents of uninitialised memory: result 0: element 5"},
        {"writes_behind(Tensor x) -> Tensor", k_writes_behind, "writes behind the end of result 0"},
        {"writes_behind_x(Tensor x) -> Tensor", k_writes_behind_x, "writes behind the end of argument x"},
        {"reads_scratch(Tensor x) -> Tensor", k_reads_scratch, "depend on the contents of uninitialised memory: result 0: element 1"},
        {"refuses(Tensor x) -> Tensor", k_refuses, NULL},
        {"well(Tensor x) -> Tensor", k_well, NULL},
    };
    const float data[6] = {1, 2, 3, 4, 5, 6};
    opd_tensor *x = opd_tensor_from(data, OPD_INTS(2, 3), OPD_FLOAT32);
    opd_opcheck_options o;
    opd_value v;
    size_t r;
    memset(&o, 0, sizeof o);
    o.tests = OPD_OPCHECK_MEMORY;
    lib = opd_library_open(OPD_DEF, "memory", NULL, __FILE__, __LINE__);
    for (r = 0; r < sizeof rows / sizeof *rows; r++) {
        char name[60];
        define(rows[r].schema, rows[r].cpu, k_fake, NULL, NULL);
        (void)snprintf(name, sizeof name, "memory::%.*s", (int)strcspn(rows[r].schema, "("), rows[r].schema);
        v = opd_value_tensor(x);
        CHECK_INT(opd_opcheck(opd_find(name), &v, 1, &o), rows[r].text ? -1 : 0);
        if (rows[r].text) { CHECK_ERROR(OPD_ERROR_KERNEL, rows[r].text); } else { CHECK_OK(); }
        if (r == 0) {                             /* and when it is given a transposed one */
            v = opd_value_tensor(opd_t(x));
            CHECK_INT(opd_opcheck(opd_find(name), &v, 1, &o), -1);
            CHECK_ERROR(OPD_ERROR_KERNEL, "with other strides");
        }
    }
    opd_library_close(lib);
}
/* Arguments that depend on each other: what opcheck makes up may not fit together, which is no failure. */
static int k_span(opd_call *call) {
    opd_tensor *lo = opd_contiguous(opd_arg_tensor(call, 0)), *hi = opd_contiguous(opd_arg_tensor(call, 1)), *y = like(call, 0);
    int64_t i;
    if (!opd_ok()) { return -1; }
    for (i = 0; i < opd_numel(y); i++) {
        if (opd_data_i64(lo)[i] > opd_data_i64(hi)[i]) { return opd_fail(OPD_ERROR_ARGUMENT, "lo must be at most hi"); }
        opd_data_i64(y)[i] = opd_data_i64(hi)[i] - opd_data_i64(lo)[i];
    }
    return 0;
}
TEST(arguments_that_depend_on_each_other) {
    const int64_t lo[] = {1, 5, 9}, hi[] = {2, 6, 10};
    opd_value v[2];
    lib = opd_library_open(OPD_DEF, "depend", NULL, __FILE__, __LINE__);
    define("span(Tensor lo, Tensor hi) -> Tensor", k_span, k_fake, NULL, NULL);
    v[0] = opd_value_tensor(opd_tensor_from(lo, OPD_INTS(3), OPD_INT64));
    v[1] = opd_value_tensor(opd_tensor_from(hi, OPD_INTS(3), OPD_INT64));
    CHECK_INT(opd_opcheck(opd_find("depend::span"), v, 2, NULL), 0);
    CHECK_OK();
    opd_library_close(lib);
}
#define RIGHT 0, NULL, NULL

/* Another size than its own for what it was given; a list that is longer; a rule that gives up. */
static int k_resizes(opd_call *call) {
    opd_value v[2];
    const int64_t six = 6;
    v[0] = opd_arg_value(call, 0);
    v[1] = opd_value_ints(&six, 1);
    return times(call, 2) || !opd_call_op(opd_find("aten::resize_"), v, 2) ? -1 : 0;
}
static int k_list(opd_call *call) {
    opd_tensor *l[3];
    const int meta = opd_tensor_device(opd_arg_tensor(call, 0)).type == OPD_META || opd_fake_enabled();
    l[0] = opd_clone(opd_arg_tensor(call, 0));
    l[1] = opd_clone(l[0]);
    l[2] = opd_clone(l[0]);
    return opd_return_tensors(call, l, meta ? 3 : 2);
}
static int k_elsewhere(opd_call *call) {          /* the fake on another device */
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_tensor_new_on(opd_ints_of(opd_sizes(x), opd_ndim(x)), OPD_FLOAT32, opd_device_make(OPD_CUDA, 0)));
}
static int v_gives_up(opd_call *call) { (void)call; return opd_fail(OPD_ERROR_USER, "no such rule"); }
static int b_halves(opd_backward_call *bw) {      /* of the wrong size: found by the tape */
    return opd_bw_return(bw, 0, opd_sum(opd_bw_grad(bw, 0)));
}
static int k_inner(opd_call *call) {              /* the same, and leaves its state in the argument's first element */
    opd_data_f32(opd_arg_tensor(call, 0))[1] = 77;
    return times(call, 2);
}

/* Operators with one fault each, and what opcheck says of them. */
typedef struct faulty {
    const char *schema;
    opd_kernel cpu, fake;
    opd_backward_fn backward;
    opd_vmap_rule vmap;
    unsigned test;
    const char *text, *fix;
} faulty;
static const faulty faults[] = {
    {"right(Tensor x) -> Tensor", k_twice, k_fake, b_twice, NULL, 0, NULL, NULL},
    {"writes(Tensor x) -> Tensor", k_writes, k_fake, b_twice, NULL, OPD_OPCHECK_SCHEMA,
     "test_schema failed with Argument x is not defined as mutable but was mutated",
     "Declare in the schema that the operator writes it (Tensor(a!) x), or"},
    {"writes_once(Tensor x) -> Tensor", k_inner, k_fake, b_twice, NULL, OPD_OPCHECK_SCHEMA | OPD_OPCHECK_MEMORY,
     "Argument x is not defined as mutable but was mutated", "(opd_clone)"},
    {"resizes(Tensor x) -> Tensor", k_resizes, k_fake, OPD_NOT_DIFFERENTIABLE, NULL,
     OPD_OPCHECK_SCHEMA | OPD_OPCHECK_AUTOGRAD | OPD_OPCHECK_TRACE,      /* whose argument requires grad: the write is refused */
     "Argument x is not defined as mutable but was mutated", "(opd_clone)"},
    {"returns(Tensor x) -> Tensor", k_returns, k_fake, OPD_NOT_DIFFERENTIABLE, NULL, OPD_OPCHECK_SCHEMA,
     "are not allowed to directly return inputs", "(opd_clone)"},
    {"view(Tensor x) -> Tensor", k_view, k_fake, OPD_NOT_DIFFERENTIABLE, NULL, OPD_OPCHECK_SCHEMA | OPD_OPCHECK_TRACE,
     "Argument x is not defined to alias output but was aliasing", "Tensor(a) x"},
    {"pair(Tensor x) -> (Tensor, Tensor)", k_pair, k_two, OPD_NOT_DIFFERENTIABLE, NULL, OPD_OPCHECK_SCHEMA,
     "Outputs 0 and 1 alias unexpectedly", "(opd_clone)"},
    {"records(Tensor x) -> Tensor", k_records, k_fake, NULL, NULL, OPD_OPCHECK_AUTOGRAD,
     "test_autograd_registration failed with at least one output of this operator has requires_grad=True but",
     "give the operator a backward function"},
    {"no_fake(Tensor x) -> Tensor", k_twice, NULL, b_twice, NULL, OPD_OPCHECK_FAKE,
     "There was no fake impl registered for broken::no_fake", "opd_fake_register"},
    {"fake_sizes(Tensor x) -> Tensor", k_twice, k_row, b_twice, NULL, OPD_OPCHECK_FAKE,
     "the fake kernel gives result 0 the sizes [1], but the real kernel gives it [2, 3]", "from the sizes of the arguments"},
    {"hard_coded(Tensor x) -> Tensor", k_twice, k_two_three, b_twice, NULL, OPD_OPCHECK_FAKE,
     "test_faketensor failed with tensors of other sizes (the first is [3, 3])", "from the sizes of"},
    {"fake_dtype(Tensor x) -> Tensor", k_twice, k_double, b_twice, NULL, OPD_OPCHECK_FAKE,
     "the dtype float64, but the real kernel gives it float32", "Pass the same dtype to opd_result"},
    {"fake_strides(Tensor x) -> Tensor", k_twice, k_columns, b_twice, NULL, OPD_OPCHECK_FAKE,
     "the strides [1, 2], but the real kernel gives it [3, 1]", "opd_result_strided"},
    {"fake_device(Tensor x) -> Tensor", k_twice, k_elsewhere, b_twice, NULL, OPD_OPCHECK_FAKE,
     "the device cuda:0, but the real kernel makes it on cpu", "Make results in both with opd_result"},
    {"fake_list(Tensor x) -> Tensor[]", k_list, k_list, OPD_NOT_DIFFERENTIABLE, NULL, OPD_OPCHECK_FAKE,
     "the fake kernel returns 3 tensors, but the real kernel returns 2", "the same length in both"},
    {"fake_reads(Tensor x) -> Tensor", k_twice, k_reads, b_twice, NULL, OPD_OPCHECK_FAKE,
     "test_faketensor failed with broken::fake_reads: a fake tensor (on cpu) has no data", "opd_fake_register"},
    {"counts(Tensor x) -> Tensor", k_counts, k_fake, b_twice, v_wrong, OPD_OPCHECK_TRACE | OPD_OPCHECK_VMAP | OPD_OPCHECK_MEMORY,
     "are different when it is called twice with the same arguments", "not on state that it keeps between calls"},
    {"gradient_counts(Tensor x) -> Tensor", k_twice, k_fake, b_counts, NULL, OPD_OPCHECK_TRACE,
     "Gradients of the operator are different", "not on state that it keeps between calls"},
    {"gradient_sizes(Tensor x) -> Tensor", k_twice, k_fake, b_halves, NULL, OPD_OPCHECK_TRACE,
     "returned an invalid gradient at index 0", "gradient_sizes"},
    {"wrong_rule(Tensor x) -> Tensor", k_twice, k_fake, b_twice, v_wrong, OPD_OPCHECK_VMAP,
     "Outputs of the operator are different under vmap and in a loop", "Correct its batching rule"},
    {"no_rule(Tensor x) -> Tensor", k_twice, k_fake, b_twice, v_gives_up, OPD_OPCHECK_VMAP,
     "test_vmap failed with", "no such rule"},
};

TEST(each_kind_of_failure_is_found) {
    char name[40];
    size_t i;
    lib = opd_library_open(OPD_DEF, "broken", NULL, __FILE__, __LINE__);
    for (i = 0; i < sizeof faults / sizeof *faults; i++) {
        const faulty *f = &faults[i];
        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(f->schema, "("), f->schema);
        OPD_SCOPE {
            define(f->schema, f->cpu, f->fake, f->backward, f->vmap);
            finds(name, f->test, f->text, f->fix);
        }
    }
    opd_library_close(lib);
}

/* Tolerances are those given; results of halves may differ by more than those of float. */
static int k_noise(opd_call *call) {              /* x plus up to a hundredth, never twice the same */
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_add_Scalar(x, opd_value_double((++calls % 2) * 0.01)));
}
static unsigned noisy(opd_scalar_type dtype, double atol) {
    opd_opcheck_options o;
    unsigned failed = 0;
    opd_value x = opd_value_tensor(opd_ones_full(OPD_INTS(2, 3), opd_value_int(dtype), OPD_NONE, OPD_NONE, OPD_NONE));
    memset(&o, 0, sizeof o);
    o.failed = &failed;
    o.atol = atol;
    calls = 0;
    CHECK_INT(opd_opcheck(opd_find("broken::noise"), &x, 1, &o), 0);
    CHECK_OK();
    return failed;
}
TEST(tolerances) {
    lib = opd_library_open(OPD_DEF, "broken", NULL, __FILE__, __LINE__);
    define("noise(Tensor x) -> Tensor", k_noise, k_fake, OPD_NOT_DIFFERENTIABLE, NULL);
    CHECK(noisy(OPD_FLOAT32, 0) & OPD_OPCHECK_TRACE);
    CHECK(noisy(OPD_FLOAT64, 0.001) & OPD_OPCHECK_TRACE);
    CHECK_INT(noisy(OPD_FLOAT32, 0.02), 0);
    CHECK_INT(noisy(OPD_BFLOAT16, 0), 0);
    opd_library_close(lib);
}

/* What is said is all right: an argument that is written, one that comes back, a view, no tensor at all. */
static const opd_value *two_of(opd_tensor *x) {
    static opd_value args[2];
    args[0] = args[1] = opd_value_tensor(x);
    return args;
}
static int k_add_one(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return x && opd_call_op(opd_find("aten::add_.Tensor"), two_of(x), 2) ? opd_return_tensor(call, x) : -1;
}
static int k_nothing(opd_call *call) { return opd_call_op(opd_find("aten::add_.Tensor"), two_of(opd_arg_tensor(call, 0)), 2) ? 0 : -1; }
static int k_number(opd_call *call) { return opd_return_int(call, opd_arg_int(call, 0) + 1); }
TEST(what_the_schema_says_is_right) {
    lib = opd_library_open(OPD_DEF, "broken", NULL, __FILE__, __LINE__);
    OPD_SCOPE {
        const opd_value two = opd_value_int(2);
        opd_op_desc d;
        memset(&d, 0, sizeof d);
        d.any = k_add_one;
        d.schema = "add_one_(Tensor(a!) x) -> Tensor(a!)";
        CHECK_INT(opd_define(lib, &d), 0);
        finds("add_one_", RIGHT);
        d.any = k_nothing;
        d.schema = "nothing(Tensor(a!) x) -> ()";
        CHECK_INT(opd_define(lib, &d), 0);
        finds("nothing", RIGHT);
        d.any = NULL;
        d.composite = k_view;
        d.schema = "composite_view(Tensor(a) x) -> Tensor(a)";
        CHECK_INT(opd_define(lib, &d), 0);
        finds("composite_view", RIGHT);
        d.composite = NULL;
        d.any = k_number;
        d.schema = "number(int x) -> int";
        CHECK_INT(opd_define(lib, &d), 0);
        CHECK_INT(opd_opcheck(opd_find("broken::number"), &two, 1, NULL), 0);
        CHECK_OK();
    }
    opd_library_close(lib);
}

TEST(options_and_what_is_refused) {
    opd_opcheck_options o;
    opd_op *add = opd_find("aten::add.Tensor"), *rand = opd_find("aten::rand_like");
    opd_value args[2];
    memset(&o, 0, sizeof o);
    o.tests = 64;
    args[0] = args[1] = opd_value_tensor(opd_ones(OPD_INTS(2), OPD_FLOAT32));
    CHECK_INT(opd_opcheck(add, args, 2, &o), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "must be a combination of OPD_OPCHECK_");
    CHECK_INT(opd_opcheck(NULL, args, 2, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the operator is NULL");
    CHECK_INT(opd_opcheck(add, args, 1, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "other");
    args[1] = opd_value_tensor(opd_tensor_new_on(OPD_INTS(2), OPD_FLOAT32, opd_device_make(OPD_META, -1)));
    CHECK_INT(opd_opcheck(add, args, 2, NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "argument other has no memory of its own");
    o.tests = OPD_OPCHECK_TRACE;
    o.seed = 7;
    CHECK_INT(opd_opcheck(rand, args, 1, &o), 0);
    CHECK_OK();
}

/* What is drawn afterwards is what would have been drawn without it; a generator given draws the same in each trial. */
static double drawn(opd_generator *g) {
    opd_value args[6];
    const int64_t one = 1;
    int i;
    args[0] = opd_value_ints(&one, 1);
    args[1] = opd_value_object(g);
    for (i = 2; i < 6; i++) { args[i] = opd_value_none(); }
    return opd_item_f64(opd_call_op(opd_find("aten::rand.generator"), args, 6));
}
static int k_draws(opd_call *call) {              /* a random kernel that does not say so, and draws for its gradient */
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_return_tensor(call, opd_add(opd_mul_Scalar(opd_rand_like(x), opd_value_int(0)), x));
}
TEST(generators_are_where_they_were) {
    opd_generator *g = opd_generator_new(5);
    opd_tensor *x = opd_rand(OPD_INTS(3), OPD_FLOAT32);
    opd_value args[2];
    double before, own;
    opd_op_desc d;
    opd_manual_seed(11);
    (void)opd_rand(OPD_INTS(100), OPD_FLOAT32);
    before = opd_item_f64(opd_rand(OPD_INTS(1), OPD_FLOAT32));
    opd_manual_seed(11);
    (void)opd_rand(OPD_INTS(100), OPD_FLOAT32);
    own = drawn(g);
    opd_generator_seed(g, 5);
    args[0] = opd_value_tensor(x);
    CHECK_INT(opd_opcheck(opd_find("aten::rand_like"), args, 1, NULL), 0);
    args[1] = opd_value_object(g);
    CHECK_INT(opd_opcheck(opd_find("aten::bernoulli"), args, 2, NULL), 0);
    lib = opd_library_open(OPD_DEF, "broken", NULL, __FILE__, __LINE__);
    memset(&d, 0, sizeof d);
    d.schema = "draws(Tensor x) -> Tensor";
    d.any = k_draws;
    d.fake = k_fake;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_INT(opd_opcheck(opd_find("broken::draws"), args, 1, NULL), 0);
    opd_library_close(lib);
    CHECK_OK();
    CHECK_NEAR(opd_item_f64(opd_rand(OPD_INTS(1), OPD_FLOAT32)), before, 0);
    CHECK_NEAR(drawn(g), own, 0);
    opd_generator_free(g);
}

/* The n-th allocation fails: an error of memory, never another, and nothing is lost. */
TEST(allocations_that_fail) {
    opd_op *op = opd_find("aten::addmm");
    opd_value args[3];
    int64_t n;
    int rc = -1;
    args[0] = opd_value_tensor(opd_tensor_set_requires_grad(opd_ones(OPD_INTS(4), OPD_FLOAT32), true));
    args[1] = opd_value_tensor(opd_ones(OPD_INTS(2, 3), OPD_FLOAT32));
    args[2] = opd_value_tensor(opd_tensor_set_requires_grad(opd_ones(OPD_INTS(3, 4), OPD_FLOAT32), true));
    CHECK_INT(opd_opcheck(op, args, 3, NULL), 0);
    for (n = 1; rc && n < 20000; n += 1 + n / 40) {
        (void)opd_memory_fail_at(n, false);
        rc = opd_opcheck(op, args, 3, NULL);
        (void)opd_memory_fail_at(0, false);
        if (rc) { (void)check_error(OPD_ERROR_MEMORY, "", __FILE__, __LINE__); }
    }
    CHECK_INT(rc, 0);
    opd_error_clear();
}

CHECK_MAIN_ADD(add_operators)
