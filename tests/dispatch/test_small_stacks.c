/* Threads with small stacks: the first use of the library on one, kernels and backward passes that are nested deeply,
   coroutines, and deeply nested texts.  Each gives a result or the error that the stack is too small.
   tests/walks/test_stack_sizes.c does the same for all operators.  C ONLY: pthreads with C function types. */
#include "../check.h"

#if defined(OPD_NO_THREADS) || defined(__TINYC__)
TEST(no_threads) { SKIP("built without threads"); }
CHECK_MAIN()
#elif defined(CHECK_SANITIZED)
TEST(sanitized) { SKIP("sanitizers make frames larger"); }
CHECK_MAIN()
#elif !defined(__linux__)
TEST(other_systems) { SKIP("only Linux has small stacks, and tells where they are"); }
CHECK_MAIN()
#else
#include "../small_stacks.h"

#if defined(__OPTIMIZE__)
#define MOST_KB 128                               /* enough for each kernel */
#else
#define MOST_KB 256
#endif
static const int kilobytes[] = {16, 32, 48, 64, 96, 128, 256};
enum { STACKS = sizeof kilobytes / sizeof *kilobytes };

static int plain(void *fn) { return (*(int (**)(void))fn)(); }
/* Runs fn on a thread with a stack of kb KB.  If the system has no such threads, the result is the error. */
static outcome on_a_stack(int kb, int (*fn)(void)) {
    outcome result;
    if (!on_a_small_stack(kb, plain, &fn, &result)) {
        memset(&result, 0, sizeof result);
        result.rc = -1;
        result.code = OPD_ERROR_MEMORY;
        (void)snprintf(result.message, sizeof result.message, "%s", TOO_SMALL);
    }
    return result;
}
static bool is_small(const outcome *o) {
    return o->rc < 0 && o->code == OPD_ERROR_MEMORY && strstr(o->message, TOO_SMALL) != NULL;
}
/* Runs fn on all stacks.  Returns the smallest one, in KB, on which it worked; 0: none. */
static int least_stack(int (*fn)(void)) {
    int i, least = 0;
    for (i = 0; i < STACKS; i++) {
        const outcome o = on_a_stack(kilobytes[i], fn);
        if (o.rc == 0 && !least) { least = kilobytes[i]; }
        if (o.rc == 0 || is_small(&o)) { continue; }
        printf("%d KB: %s\n", kilobytes[i], o.message);
        CHECK(!"neither a result nor the error of a small stack");
    }
    return least;
}

static int adds(void) {
    opd_tensor *x = opd_ones(OPD_INTS(2, 3), OPD_FLOAT32);
    return x && opd_add(x, x) ? 0 : -1;
}
TEST_KEEPS(the_first_use_on_small_stacks) {       /* must be the first case: it registers operators */
    const int least = least_stack(adds);
    CHECK(least && least < 256);
    CHECK_INT(least_stack(adds), least);
}
TEST(the_error_says_what_to_do) {
    const outcome o = on_a_stack(16, adds);
    if (!strncmp(o.message, TOO_SMALL, sizeof TOO_SMALL - 1)) { SKIP("this system has no stacks of 16 KB"); }
    CHECK_INT(o.code, OPD_ERROR_MEMORY);
    CHECK(strncmp(o.message, "aten::", 6) == 0);
    CHECK(strstr(o.message, ": the stack of this thread is too small: it has ") != NULL);
    CHECK(strstr(o.message, "KB are needed. Start the thread with a stack of at least 256 KB, for example by "
                            "pthread_attr_setstacksize") != NULL);
    CHECK(adds() == 0);                           /* on this thread, all is well */
}

//-- kernels with large frames, which the small sample arguments of operators do not reach --------------------------------

static opd_tensor *numbers(int64_t rows, int64_t columns) {
    opd_tensor *t = opd_arange(OPD_V(rows * columns), OPD_FLOAT64);
    return t ? opd_reshape(opd_remainder(opd_mul(t, opd_full(OPD_INTS(), OPD_V(7919), OPD_FLOAT64)),
                                         opd_full(OPD_INTS(), OPD_V(1009), OPD_FLOAT64)), OPD_INTS(rows, columns)) : NULL;
}
static opd_tensor *large;                         /* [300, 600] */
static int done(const opd_tensor *t) { return t ? 0 : -1; }
static int multiplies_transposed(void) {
    return done(OPD_CALL(opd_find("aten::mul.out"), opd_t(large), opd_t(large), opd_new_empty(large, OPD_INTS(600, 300))));
}
static int copies_transposed(void) { return done(opd_contiguous(opd_t(large))); }
static int adds_columns(void) { return done(opd_sum_dim(large, OPD_INTS(0), false)); }
static int finds_the_largest(void) { return done(opd_amax(large, OPD_INTS(0), false)); }
static int sorts(void) {
    opd_tensor *sorted[2];
    return opd_sort(sorted, large, -1, false) < 0 ? -1 : 0;
}
static int takes_the_largest(void) {
    opd_tensor *largest[2];
    return opd_topk(largest, opd_reshape(large, OPD_INTS(180000)), 5000) < 0 ? -1 : 0;
}
static int transforms_lines(void) { return done(opd_fft_fft(large)); }
static int multiplies_matrices(void) { return done(opd_mm(large, opd_t(large))); }
static int normalises(void) {
    opd_tensor *x = opd_tensor_set_requires_grad(opd_clone(large), true);
    opd_tensor *y = x ? opd_layer_norm(x, OPD_INTS(600), NULL, NULL, 1e-5) : NULL;
    return y ? opd_backward(opd_sum(y)) : -1;
}
TEST(large_tensors_on_small_stacks) {
    static int (*const fns[])(void) = {multiplies_transposed, copies_transposed, adds_columns, finds_the_largest, sorts,
                                       takes_the_largest, transforms_lines, multiplies_matrices, normalises};
    size_t i;
    large = numbers(300, 600);
    for (i = 0; i < sizeof fns / sizeof *fns; i++) {
        const int least = least_stack(fns[i]);
        CHECK(least && least <= MOST_KB);
    }
}

//-- nested calls and backward passes ----------------------------------------------------------------------------------

static int levels;
/* Calls its operator again `levels` times, each time with a large frame. */
static int k_down(opd_call *call) {
    volatile char frame[2000];
    opd_tensor *x = opd_arg_tensor(call, 0);
    frame[0] = 0;
    if (levels-- > 0) { x = opd_call_op(opd_call_operator(call), opd_call_args(call), opd_call_nargs(call)); }
    return x ? opd_return_tensor(call, x) : frame[0] - 1;
}
static int calls_down(void) {
    opd_tensor *x = opd_ones(OPD_INTS(1), OPD_FLOAT32);
    return x && OPD_CALL(opd_find("stacks::down"), x) ? 0 : -1;
}
static int calls_300(void) { levels = 300; return calls_down(); }
static int calls_10(void) { levels = 10; return calls_down(); }
static int k_same(opd_call *call) { return opd_return_tensor(call, opd_clone(opd_arg_tensor(call, 0))); }
static int goes_back(void) {
    opd_tensor *x = opd_tensor_set_requires_grad(opd_ones(OPD_INTS(1), OPD_FLOAT32), true);
    opd_tensor *y = x ? OPD_CALL(opd_find("stacks::back"), x) : NULL;
    return y ? opd_backward(opd_sum(y)) : -1;
}
static int back_backward(opd_backward_call *bw) {
    volatile char frame[4000];
    frame[0] = 0;
    if (levels-- > 0) {
        const bool was = opd_grad_mode_set(true);
        const int rc = goes_back();
        opd_grad_mode_set(was);
        if (rc) { return frame[0] - 1; }
    }
    return opd_bw_return(bw, 0, opd_bw_grad(bw, 0));
}
static int back_50(void) { levels = 50; return goes_back(); }
static opd_library *library(void) {
    opd_library *lib = opd_library_open(OPD_DEF, "stacks", NULL, __FILE__, __LINE__);
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "down(Tensor self) -> Tensor";
    d.cpu = k_down;
    CHECK_INT(opd_define(lib, &d), 0);
    d.schema = "back(Tensor self) -> Tensor";
    d.cpu = k_same;
    d.backward = back_backward;
    CHECK_INT(opd_define(lib, &d), 0);
    return lib;
}
TEST(nested_calls_end_before_the_stack) {
    opd_library *lib = library();
    const outcome o = on_a_stack(256, calls_300);
    CHECK(is_small(&o));
    CHECK(strstr(o.message, "stacks::down") != NULL);
    CHECK_INT(least_stack(calls_300), 0);
    CHECK(least_stack(calls_10) < 256);
    opd_library_close(lib);
}
TEST(nested_backwards_go_to_another_stack) {
    opd_library *lib = library();
    const int least = least_stack(back_50);
    CHECK(least && least <= 256);
    opd_library_close(lib);
}

//-- stacks that the thread itself made --------------------------------------------------------------------------------

#if defined(__GLIBC__) && !defined(__SHSTK__)
#include <ucontext.h>
static ucontext_t home, coroutine;
static int coroutine_rc;
static void transforms(void) {                    /* needs more stack than the thread has */
    coroutine_rc = opd_fft_fft(opd_ones(OPD_INTS(64), OPD_FLOAT64)) ? 0 : -1;
}
static int in_a_coroutine(void) {
    const size_t bytes = (size_t)256 << 10;
    char *const stack = (char *)malloc(bytes);
    (void)getcontext(&coroutine);
    coroutine.uc_stack.ss_sp = stack;
    coroutine.uc_stack.ss_size = bytes;
    coroutine.uc_link = &home;
    makecontext(&coroutine, transforms, 0);
    (void)swapcontext(&home, &coroutine);
    free(stack);
    return coroutine_rc;
}
TEST(coroutines_have_their_own_stacks) {
    const outcome o = on_a_stack(48, in_a_coroutine);
    CHECK_STR(o.message, "");
    CHECK_INT(o.rc, 0);
}
#endif

//-- nested texts ------------------------------------------------------------------------------------------------------

static char text[90000];
/* Writes `count` times `open`, then `inside`, then `count` times `close`. */
static const char *nested(const char *begin, int count, const char *open, const char *inside, const char *close) {
    char *at = text + sprintf(text, "%s", begin);
    int i;
    for (i = 0; i < count; i++) { at += sprintf(at, "%s", open); }
    at += sprintf(at, "%s", inside);
    for (i = 0; i < count; i++) { at += sprintf(at, "%s", close); }
    return text;
}
static int reads_json(void) {
    opd_json *json = opd_json_parse(text, strlen(text));
    opd_json_free(json);
    return json ? 0 : -1;
}
static int compiles(void) {
    opd_script *script = opd_script_compile(text, NULL);
    opd_tensor *x = script ? opd_ones(OPD_INTS(1), OPD_FLOAT32) : NULL;
    opd_value in = opd_value_tensor(x), out;
    const int rc = x ? opd_script_run(script, "f", &in, 1, &out) : -1;
    opd_script_free(script);
    return rc;
}
TEST(nested_texts) {
    char *at;
    int i;
    (void)nested("", 490, "[", "1", "]");
    CHECK(least_stack(reads_json) <= 256);
    (void)nested("def f(x):\n    return ", 95, "(-", "x", ")");
    CHECK(least_stack(compiles) <= 256);
    at = text + sprintf(text, "def f(x):\n    y = x\n");
    for (i = 1; i < 90; i++) { at += sprintf(at, "%*sif bool(y.sum() < 100):\n", i * 4, ""); }
    (void)sprintf(at, "%*sy = y + 1\n    return y\n", i * 4, "");
    CHECK(least_stack(compiles) <= 256);
}
/* A chain of `elif` becomes blocks in blocks: what has too little stack for them says so. */
static opd_script *chosen;
static int runs_chosen(void) {
    opd_value in = opd_value_int(1999), out;
    if (!chosen || opd_script_run(chosen, "f", &in, 1, &out)) { return -1; }
    return out.u.i == 3999 ? 0 : -1;
}
static int prints_chosen(void) {
    const opd_graph *g = chosen ? opd_script_graph(chosen, "f") : NULL;
    char few[8];
    if (g) { (void)opd_graph_print(g, few, sizeof few); }
    return g && opd_ok() ? 0 : -1;
}
TEST(long_chains_of_branches) {
    char *at = text + sprintf(text, "def f(k: int) -> int:\n    if k < 0:\n        y = 0\n");
    int i;
    outcome o;
    for (i = 0; i < 2000; i++) { at += sprintf(at, "    elif k == %d:\n        y = %d\n", i, 2000 + i); }
    (void)sprintf(at, "    else:\n        y = -1\n    return y\n");
    o = on_a_stack(64, compiles);
    CHECK_INT(o.rc, -1);
    CHECK(strstr(o.message, "the stack of this thread is too small") != NULL);
    chosen = opd_script_compile(text, NULL);
    CHECK_OK();
    o = on_a_stack(64, runs_chosen);
    CHECK_INT(o.rc, -1);
    CHECK(strstr(o.message, "the stack of this thread is too small") != NULL);
    CHECK_INT(runs_chosen(), 0);
    o = on_a_stack(64, runs_chosen);              /* the steps of a run are made once */
    CHECK_INT(o.rc, 0);
    o = on_a_stack(64, prints_chosen);
    CHECK_INT(o.rc, -1);
    CHECK(strstr(o.message, "the stack of this thread is too small") != NULL);
    CHECK_INT(prints_chosen(), 0);
    opd_script_free(chosen);
    chosen = NULL;
}
CHECK_MAIN()
#endif
