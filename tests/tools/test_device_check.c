/* All operators of a device against the CPU (opd_device_check).  The device has the memory of the host, right kernels,
   kernels with mistakes of each kind, and the CPU for all other operators.  Each mistake is found, with its call. */
#include "../../opdispatch.h"
#include "../check.h"

#define BENCH OPD_PRIVATEUSE2
static void *bench_alloc(void *user, int index, size_t bytes) { (void)user, (void)index; return malloc(bytes + 1); }
static void bench_free(void *user, int index, void *data, size_t bytes) {
    (void)user, (void)index, (void)bytes;
    free(data);
}
static int bench_copy(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes) {
    (void)user, (void)to_index, (void)from_index;
    memcpy(to, from, bytes);
    return 0;
}
static opd_device bench(void) {
    opd_device device = opd_device_make(BENCH, 0);
    opd_backend_desc desc;
    if (opd_device_count(BENCH)) { return device; }
    memset(&desc, 0, sizeof desc);
    desc.name = "bench";
    desc.alloc = bench_alloc;
    desc.free = bench_free;
    desc.copy = bench_copy;
    CHECK_INT(opd_backend_register(BENCH, &desc), 0);
    return device;
}

//-- kernels -----------------------------------------------------------------------------------------------------------

enum { RIGHT, STRIDES, NUMBERS, FAILS, WRITES, DTYPE, SIZES };
static bool sound;                                /* no kernel has a mistake: the CPU computes all */
/* Computes one of several functions of float32 numbers, with a mistake of some kind. */
static int compute(opd_call *call, int kind, double (*f)(double x)) {
    opd_tensor *const x = opd_arg_tensor(call, 0), *const plain = kind == STRIDES ? x : opd_contiguous(x);
    const int64_t more[] = {1, 2, 3};
    if (sound || opd_dtype(x) != OPD_FLOAT32) { return opd_cpu_fallback(call); }
    if (kind == FAILS) { return opd_fail(OPD_ERROR_USER, "the unit is hot"); }
    if (kind == SIZES) { return opd_result(call, 0, more, 3, OPD_FLOAT32) ? 0 : -1; }
    if (kind == DTYPE) { return opd_result(call, 0, opd_sizes(x), opd_ndim(x), OPD_FLOAT64) ? 0 : -1; }
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *const out = opd_call_rets(call)[0].u.t, *const to = opd_contiguous(out);
    if (!plain || !to) { return -1; }
    float *const from = (float *)opd_device_data(plain, BENCH), *const y = (float *)opd_device_data(to, BENCH);
    for (int64_t i = 0; i < opd_numel(x); i++) {
        y[i] = (float)f((double)from[i]) + (kind == NUMBERS && i == 1 ? 0.5F : 0);
        if (kind == WRITES && plain == x) { from[i] = 0; }
    }
    return to == out || opd_copy_(out, to) ? 0 : -1;
}
static double minus(double x) { return -x; }
static int bench_neg(opd_call *call) { return compute(call, RIGHT, minus); }
static int bench_exp(opd_call *call) { return compute(call, STRIDES, exp); }
static int bench_sin(opd_call *call) { return compute(call, NUMBERS, sin); }
static int bench_cos(opd_call *call) { return compute(call, FAILS, cos); }
static int bench_tanh(opd_call *call) { return compute(call, WRITES, tanh); }
static int bench_cosh(opd_call *call) { return compute(call, DTYPE, cosh); }
static int bench_sinh(opd_call *call) { return compute(call, SIZES, sinh); }
OPD_LIBRARY_IMPL(aten, PrivateUse2, lib) {
    opd_impl(lib, "neg", bench_neg);
    opd_impl(lib, "exp", bench_exp);
    opd_impl(lib, "sin", bench_sin);
    opd_impl(lib, "cos", bench_cos);
    opd_impl(lib, "tanh", bench_tanh);
    opd_impl(lib, "cosh", bench_cosh);
    opd_impl(lib, "sinh", bench_sinh);
}

//-- the check ---------------------------------------------------------------------------------------------------------

static const struct { const char *name; opd_device_outcome outcome; const char *call, *text; } expected[] = {
    {"aten::neg", OPD_DEVICE_OK, "", ""},
    {"aten::exp", OPD_DEVICE_WRONG, "transposed", "element"},
    {"aten::sin", OPD_DEVICE_WRONG, "float32", "element 1 is"},
    {"aten::cos", OPD_DEVICE_FAILS, "float32", "the unit is hot"},
    {"aten::tanh", OPD_DEVICE_WRONG, "float32", "after the call, tensor argument 0: element"},
    {"aten::cosh", OPD_DEVICE_WRONG, "float32", "result 0 is float64, not float32"},
    {"aten::sinh", OPD_DEVICE_WRONG, "float32", "sizes"},
    {"aten::erf", OPD_DEVICE_ON_CPU, "", ""},
    {"aten::add.Tensor", OPD_DEVICE_ON_CPU, "", ""},
    {"aten::view", OPD_DEVICE_OK, "", ""},
    {"aten::linalg_svd", OPD_DEVICE_SKIPPED, "", "no sample arguments"}};
enum { EXPECTED = sizeof expected / sizeof *expected };
static bool is_expected(void *user, const opd_op *op) {
    int i = 0;
    (void)user;
    while (i < EXPECTED && strcmp(expected[i].name, opd_op_name(op)) != 0) { i++; }
    return i < EXPECTED;
}
static int seen, reported;
static void compare(void *user, const opd_device_finding *finding) {
    CHECK(user == (void *)expected);
    for (int i = 0; i < EXPECTED; i++) {
        if (strcmp(expected[i].name, opd_op_name(finding->op)) != 0) { continue; }
        seen++;
        if (finding->outcome != expected[i].outcome || !strstr(finding->call, expected[i].call) ||
            !strstr(finding->text, expected[i].text)) {
            printf("%s: %d (%s) %s\n", expected[i].name, (int)finding->outcome, finding->call, finding->text);
            CHECK(!"the expected outcome");
        }
        CHECK(finding->number == seen && finding->count == EXPECTED);
        CHECK((finding->calls > 0) == (finding->outcome != OPD_DEVICE_SKIPPED));
        if (strcmp(expected[i].name, "aten::sin") == 0) { CHECK_NEAR(finding->difference, 0.5, 1e-6); }
    }
}
TEST(each_mistake_of_a_kernel_is_found) {
    int counts[OPD_DEVICE_OUTCOMES];
    opd_device_check_options options;
    const opd_device device = bench();
    const bool was = opd_cpu_fallback_set(BENCH, true);
    memset(&options, 0, sizeof options);
    options.wanted = is_expected;
    options.report = compare;
    options.user = (void *)(uintptr_t)expected;
    options.counts = counts;
    seen = 0;
    CHECK_INT(opd_device_check(device, &options), 6);
    CHECK_INT(seen, EXPECTED);
    CHECK_OK();
    CHECK_INT(counts[OPD_DEVICE_OK], 2);
    CHECK_INT(counts[OPD_DEVICE_ON_CPU], 2);
    CHECK_INT(counts[OPD_DEVICE_FAILS], 1);
    CHECK_INT(counts[OPD_DEVICE_WRONG], 5);
    CHECK_INT(counts[OPD_DEVICE_SKIPPED], 1);
    (void)opd_cpu_fallback_set(BENCH, was);
}
static struct { const char *name; opd_device_outcome outcome; } one;
static bool is_one(void *user, const opd_op *op) { return user == &one && strcmp(opd_op_name(op), one.name) == 0; }
static void note(void *user, const opd_device_finding *finding) {
    CHECK(user == &one && finding->count == 1);
    one.outcome = finding->outcome;
    reported++;
}
static opd_device_outcome outcome(opd_device_check_options options, const char *name) {
    one.name = name;
    one.outcome = OPD_DEVICE_OUTCOMES;
    options.wanted = is_one;
    options.report = note;
    options.user = &one;
    CHECK(opd_device_check(bench(), &options) >= 0);
    CHECK_OK();
    return one.outcome;
}
TEST(options_choose_calls_and_tolerances) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT64};
    opd_device_check_options options;
    const opd_device device = bench();
    const bool was = opd_cpu_fallback_set(BENCH, false);
    memset(&options, 0, sizeof options);
    reported = 0;
    CHECK_INT(outcome(options, "aten::log1p"), OPD_DEVICE_MISSING);
    CHECK_INT(reported, 1);
    (void)opd_cpu_fallback_set(BENCH, true);
    CHECK_INT(outcome(options, "aten::exp"), OPD_DEVICE_WRONG);
    options.contiguous = true;
    CHECK_INT(outcome(options, "aten::exp"), OPD_DEVICE_OK);
    CHECK_INT(outcome(options, "aten::sin"), OPD_DEVICE_WRONG);
    options.atol = 0.6;
    CHECK_INT(outcome(options, "aten::sin"), OPD_DEVICE_OK);
    CHECK_INT(outcome(options, "aten::sinh"), OPD_DEVICE_WRONG);
    options.dtypes = dtypes;
    options.ndtypes = 1;
    CHECK_INT(outcome(options, "aten::sinh"), OPD_DEVICE_ON_CPU);
    options.name = "cosh";
    reported = 0;
    CHECK_INT(outcome(options, "aten::sinh"), OPD_DEVICE_OUTCOMES);
    CHECK_INT(reported, 0);
    (void)opd_cpu_fallback_set(BENCH, was);
    CHECK_INT(opd_device_check(opd_device_make(OPD_CPU, -1), NULL), -1);
    opd_error_clear();
    CHECK_INT(opd_device_check(opd_device_make(OPD_PRIVATEUSE3, 0), NULL), -1);
    CHECK(strstr(opd_error_message(), "no device"));
    opd_error_clear();
    const opd_scalar_type bad[] = {OPD_FLOAT32, (opd_scalar_type)77, OPD_DTYPE_NONE, OPD_Q4_0};
    options.name = "aten::sin";
    for (int i = 1; i < 4; i++) {
        const opd_scalar_type pair[] = {bad[0], bad[i]};
        options.dtypes = pair;
        options.ndtypes = 2;
        CHECK_INT(opd_device_check(device, &options), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_device_check: dtypes[1] is");
    }
    options.dtypes = NULL;
    CHECK_INT(opd_device_check(device, &options), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_device_check: dtypes is NULL");
    options.ndtypes = -1;
    CHECK_INT(opd_device_check(device, &options), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_device_check: the number of dtypes is negative");
    options.ndtypes = 0;
    options.atol = -1;
    CHECK_INT(opd_device_check(device, &options), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_device_check: atol and rtol");
    CHECK_INT(device.type, BENCH);
}
static void all_are_right(void *user, const opd_device_finding *finding) {
    (void)user;
    if (finding->outcome == OPD_DEVICE_OK || finding->outcome == OPD_DEVICE_ON_CPU ||
        finding->outcome == OPD_DEVICE_SKIPPED) { return; }
    printf("%s(%s): %d %s\n", opd_op_name(finding->op), finding->call, (int)finding->outcome, finding->text);
    CHECK(!"the CPU's kernels agree with themselves");
}
TEST(all_operators_of_the_fallback_agree) {
    int counts[OPD_DEVICE_OUTCOMES];
    opd_device_check_options options;
    const opd_device device = bench();
    const bool was = opd_cpu_fallback_set(BENCH, true);
    memset(&options, 0, sizeof options);
    options.report = all_are_right;
    options.gradients = true;
    options.counts = counts;
    sound = true;
    opd_manual_seed(3);
    const double before = opd_item_f64(opd_randint(1000000, OPD_INTS(1), OPD_INT64));
    opd_manual_seed(3);
    CHECK_INT(opd_device_check(device, &options), 0);
    CHECK_NEAR(opd_item_f64(opd_randint(1000000, OPD_INTS(1), OPD_INT64)), before, 0);
    CHECK(counts[OPD_DEVICE_OK] > 200 && counts[OPD_DEVICE_ON_CPU] > 700 && counts[OPD_DEVICE_SKIPPED] < 250);
    CHECK_OK();
    sound = false;
    (void)opd_cpu_fallback_set(BENCH, was);
}
static void nothing(void *user, const opd_device_finding *finding) { (void)user, (void)finding; }
static int attempt(void *arg) {
    opd_device_check_options options;
    (void)arg;
    memset(&options, 0, sizeof options);
    options.name = "aten::neg";
    options.report = nothing;
    options.gradients = true;
    return opd_device_check(bench(), &options);
}
TEST(memory_that_runs_out_ends_the_check) {
    const bool was = opd_cpu_fallback_set(BENCH, true);
    CHECK(check_allocations(attempt, NULL, "opd_device_check", 60, false) > 10);
    (void)opd_cpu_fallback_set(BENCH, was);
}
CHECK_MAIN()
