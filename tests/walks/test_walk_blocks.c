/* Every operator with sample arguments, in which one tensor is stored in blocks: the operator gives the same as with the
   dequantised tensor, or an error that says how to make float32 of it.  The sizes of the sample arguments are multiplied
   by 32, all or only the last of each tensor, so that rows are whole blocks.  OPD_TEST_LIST in the environment
   prints the operators that have a form. */
#include "../cases.h"

enum { TIMES = 32, MOST_ELEMENTS = 1 << 17 };

static double largest(opd_tensor *t) {
    return opd_numel(t) ? opd_item_f64(opd_max(opd_abs(opd_to_dtype(t, OPD_FLOAT64)))) : 0;
}
static bool near(opd_tensor *got, opd_tensor *want) {
    if (opd_ndim(got) != opd_ndim(want) || memcmp(opd_sizes(got), opd_sizes(want), sizeof(int64_t) * (size_t)opd_ndim(got)) != 0) {
        return false;
    }
    const bool blocks = opd_dtype_size(opd_dtype(got)) == 0;
    got = opd_to_dtype(got, OPD_FLOAT64);
    want = opd_to_dtype(want, OPD_FLOAT64);
    return !opd_numel(want) || largest(opd_sub(got, want)) <= (blocks ? 0.02 : 1e-4) * (1e-6 + largest(want));
}
/* Makes the call of case number `at` of `text`, with argument number `arg` in blocks or dequantised.  Returns the number
   of results, -1 for an error, or -2 if there is no such case or no such argument. */
static int call(const opd_op *op, const char *text, int at, int arg, bool blocks, opd_tensor **out) {
    static op_case both[2];
    op_case *const c = &both[blocks];
    opd_value rets[OPD_MAX_ARGS];
    memset(c, 0, sizeof *c);
    c->op = op;
    c->dtype = OPD_FLOAT32;
    for (int i = 0; i <= at; i++) {
        if (!case_read_next(c, &text)) { return -2; }
    }
    if (!opd_ok() || c->nargs <= arg) { return -2; }
    opd_value *const value = &c->args[arg];
    opd_tensor **const tensor = value->tag == OPD_TAG_TENSOR ? &value->u.t
        : value->tag == OPD_TAG_TENSORS && value->n ? (opd_tensor **)(uintptr_t)&value->u.tensors[0] : NULL;
    if (!tensor || !*tensor || opd_dtype(*tensor) != OPD_FLOAT32 || opd_ndim(*tensor) == 0 || opd_size(*tensor, -1) % TIMES) {
        return -2;
    }
    *tensor = opd_quantize_blocks(*tensor, OPD_Q8_0);
    if (!blocks) { *tensor = opd_dequantize(*tensor); }
    CHECK(*tensor != NULL);
    if (!*tensor) { return -2; }
    return opd_call_all((opd_op *)(uintptr_t)op, rets, c->args, c->nargs) ? -1 : results_of(op, rets, out);
}
static void run_operator(void *user) {
    const opd_op *const op = (const opd_op *)user;
    static char text[1 << 14];
    const bool was = opd_exact_blocks_set(true);
    bool has_form = false;
    for (int all = 0; all < 2; all++) {
        if (!case_enlarge(opd_op_card(op)->cases, text, sizeof text, all != 0, 0, MOST_ELEMENTS)) { continue; }
        for (int at = 0, found = 0; at < 8 && found >= 0; at++) {
            found = -1;
            for (int arg = 0; arg < opd_schema_nargs(opd_op_schema(op)); arg++) {
                OPD_SCOPED;
                opd_tensor *want[MOST_RESULTS], *got[MOST_RESULTS];
                const int floats = call(op, text, at, arg, false, want);
                opd_error_clear();
                if (floats == -2) { continue; }
                found = 0;
                const int count = call(op, text, at, arg, true, got);
                (void)snprintf(what, sizeof what, "%s, case %d, argument %d", opd_op_name(op), at, arg);
                if (count < 0) {
                    const char *const message = opd_ok() ? "no error" : opd_error_message();
                    if (floats >= 0 && !strstr(message, "opd_dequantize")) { printf("%s: %s\n", what, message); }
                    CHECK(floats < 0 || strstr(message, "opd_dequantize") != NULL);
                    opd_error_clear();
                        continue;
                }
                has_form = true;
                if (!say(count == floats || floats < 0, "another number of results")) { continue; }
                for (int i = 0; i < count && i < floats; i++) { (void)say(near(got[i], want[i]), "another result"); }
                CHECK_OK();
            }
        }
    }
    if (has_form && getenv("OPD_TEST_LIST")) { printf("%s has a form for blocks\n", opd_op_name(op)); }
    CHECK_OK();
    (void)opd_exact_blocks_set(was);
}
static bool is_walked(const opd_op *op) { return has_tensor_cases(op) && !is_random(op); }
static void add_operators(void) { add_builtin_operators(run_operator, is_walked); }
CHECK_MAIN_ADD(add_operators)
