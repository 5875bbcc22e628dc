/* Every operator, with the sample arguments of its descriptor, forward and backward, on threads with stacks of 16 KB to
   256 KB.  With 256 KB, each call works as on any thread.  With less, it gives the same result, or the error that the
   stack is too small; it never crashes, and loses no memory.  No call writes more than MOST_KB of its stack.  If
   OPD_TEST_LIST is set in the environment, the test prints how many KB each operator writes, forward and with backward.
   One case per operator.  C ONLY: pthreads with C function types. */
#include "../cases.h"

#if defined(OPD_NO_THREADS) || defined(__TINYC__)
TEST(no_threads) { SKIP("built without threads"); }
CHECK_MAIN()
#elif defined(CHECK_SANITIZED)
TEST(sanitized) { SKIP("sanitizers make frames larger"); }
CHECK_MAIN()
#elif !defined(__linux__) && !defined(__APPLE__) && !defined(_WIN32)
TEST(unknown_stacks) { SKIP("this system does not tell where a thread's stack is"); }
CHECK_MAIN()
#else
#include "../small_stacks.h"
#include <limits.h>

enum { LARGEST = 256 };
static const int kilobytes[] = {16, 64, 96, 128, 192, LARGEST};
enum { STACKS = sizeof kilobytes / sizeof *kilobytes };
#define MOST_KB 128                              /* of a build without optimisation; see the table in tests/README.md */

static bool listing;

typedef struct trial { op_case *c; bool backward; } trial;

/* Calls the operator of a trial, and runs backward from its first result that has a history. */
static int call_and_back(void *user) {
    const trial *const t = (const trial *)user;
    opd_value rets[MOST_RESULTS];
    opd_tensor *out[MOST_RESULTS];
    int i, n;
    if (opd_call_all((opd_op *)(uintptr_t)t->c->op, rets, t->c->args, t->c->nargs)) { return -1; }
    n = results_of(t->c->op, rets, out);
    for (i = 0; i < n && t->backward; i++) {
        if (opd_tensor_node(out[i])) {
            return opd_backward(opd_sum(opd_dtype_is_complex(opd_dtype(out[i])) ? opd_abs(out[i]) : out[i]));
        }
    }
    return 0;
}
/* Runs the trial on the largest stack, and adds to *used how many bytes of it were written, with what the start of a
   thread needs. */
static void on_the_largest(trial *t, outcome *result, size_t *used) {
#if defined(_WIN32)
    (void)used;
    CHECK(on_a_small_stack(LARGEST, call_and_back, t, result));
#else
    static uint64_t stack[LARGEST * 128] __attribute__((aligned(65536)));
    const uint64_t pattern = UINT64_C(0xa5a5a5a5a5a5a5a5);
    pthread_attr_t attr;
    size_t untouched = 0, bytes;
    memset(stack, 0xa5, sizeof stack);
    CHECK_INT(pthread_attr_init(&attr), 0);
    CHECK_INT(pthread_attr_setstack(&attr, stack, sizeof stack), 0);
    CHECK(on_a_thread(&attr, call_and_back, t, result));
    (void)pthread_attr_destroy(&attr);
    while (untouched < sizeof stack / sizeof *stack && stack[untouched] == pattern) { untouched++; }
    bytes = sizeof stack - untouched * sizeof *stack;
    *used = bytes > *used ? bytes : *used;
#endif
}
/* Reads the case; floating-point tensors become copies of leaves that require gradients. */
static bool read_case(op_case *c, const char *text, bool twice) {
    int i;
    c->dtype = twice ? OPD_FLOAT64 : OPD_FLOAT32;
    c->layout = twice ? CASE_TRANSPOSED : CASE_CONTIGUOUS;
    if (!case_read_next(c, &text)) { return false; }
    for (i = 0; i < c->nargs; i++) {
        opd_tensor *const t = c->args[i].tag == OPD_TAG_TENSOR ? c->args[i].u.t : NULL;
        if (t && opd_dtype_is_floating(opd_dtype(t))) { c->args[i].u.t = opd_alias(opd_tensor_set_requires_grad(t, true)); }
    }
    return opd_ok();
}
static void check_outcomes(const opd_op *op, const char *text, const outcome *results, const bool *made) {
    const outcome *const whole = &results[STACKS - 1];
    int i;
    if (whole->too_small) { printf("%s(%s) with %d KB: %s\n", opd_op_name(op), text, LARGEST, whole->message); }
    CHECK(!whole->too_small);
    for (i = 0; i < STACKS; i++) {
        if (!made[i] || results[i].too_small || results[i].code == whole->code) { continue; }
        printf("%s(%s) with %d KB: %s\n", opd_op_name(op), text, kilobytes[i], results[i].message);
        CHECK(!"another error than with a large stack");
    }
}
/* Reads the case and runs it on a stack of kb KB.  Returns false if there is no such case or stack. */
static bool try_case(op_case *c, const char *text, bool twice, bool backward, int kb, outcome *result, size_t *used) {
    trial t;
    bool made = false;
    memset(result, 0, sizeof *result);
    t.c = c;
    t.backward = backward;
    OPD_SCOPE {
        if (read_case(c, text, twice)) {
            made = kb == LARGEST || on_a_small_stack(kb, call_and_back, &t, result);
            if (kb == LARGEST) { on_the_largest(&t, result, used); }
        }
    }
    opd_error_clear();
    return made;
}
static void operator_on_stacks(void *arg) {
    static op_case c;
    const opd_op *const op = (const opd_op *)arg;
    const char *text = opd_op_card(op)->cases;
    outcome results[STACKS];
    bool made[STACKS];
    size_t forward = 0, both = 0;
    int i, twice;
    c.op = op;
    for (; text && *text; text = strchr(text, ';') ? strchr(text, ';') + 1 : NULL) {
        for (twice = 0; twice < 2; twice++) {
            for (i = 0; i < STACKS; i++) {
                made[i] = try_case(&c, text, twice, true, kilobytes[i], &results[i], &both);
            }
            check_outcomes(op, text, results, made);
            if (listing) { (void)try_case(&c, text, twice, false, LARGEST, &results[0], &forward); }
        }
    }
    CHECK(both <= MOST_KB << 10);
    if (listing) { printf("used %d %d %s\n", (int)(forward >> 10), (int)(both >> 10), opd_op_name(op)); }
    CHECK(opd_ok());
}
int main(int argc, char **argv) {
    listing = getenv("OPD_TEST_LIST") != NULL;
    check_source = __FILE__;
    add_builtin_operators(operator_on_stacks, has_cases);
    return check_main(argc, argv, __FILE__);
}
#endif
