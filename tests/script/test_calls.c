/* Calls in Python syntax, run as scripts: their results, or the text of the error (golden/calls.txt, made by
   golden/make_calls.py). */
#include "../check.h"

enum { CALL_LONGEST = 4000 };
static char call_source[2 * CALL_LONGEST];        /* room for what stands before each statement */

/* Statements with "; " between them, of which the last is the result, as a function f. */
static void write_source(const char *statements) {
    const char *at = statements, *end;
    char *to = call_source;
    to += sprintf(to, "def f():\n");
    for (; (end = strstr(at, "; ")) != NULL; at = end + 2) { to += sprintf(to, "    %.*s\n", (int)(end - at), at); }
    (void)sprintf(to, "    %s%s\n", strncmp(at, "return ", 7) == 0 ? "" : "return ", at);
}
/* The elements of t are these, written with spaces between them. */
static bool are_numbers(opd_tensor *t, const char *numbers) {
    const double *have = t ? opd_data_f64(t) : NULL;
    int64_t i;
    if (!have) { return false; }
    for (i = 0; i < opd_numel(t); i++) {
        char *end;
        const double want = strtod(numbers, &end);
        const bool same = isnan(want) ? isnan(have[i]) : isinf(want) ? isinf(have[i]) && (have[i] > 0) == (want > 0)
                          : fabs(have[i] - want) <= 1e-5 * (1 + fabs(want));
        if (end == numbers || !same) { return false; }
        numbers = end;
    }
    return *numbers == 0;
}
static void check_call(const char *statements, const char *want) {
    opd_script *script;
    opd_value result;
    bool right;
    write_source(statements);
    script = opd_script_compile(call_source, NULL);
    memset(&result, 0, sizeof result);
    if (script) { (void)opd_script_run(script, "f", NULL, 0, &result); }
    if (*want == '!') { right = !opd_ok() && strstr(opd_error_message(), want + 1) != NULL; }
    else {
        opd_tensor *t = opd_ok() && result.tag == OPD_TAG_TENSOR ? opd_detach(result.u.t) : NULL;
        right = are_numbers(t ? opd_contiguous(opd_to_dtype(t, OPD_FLOAT64)) : NULL, want + 1);
    }
    if (!right) { printf("%s\n  expected %s\n  error \"%s\"\n", statements, want, opd_error_message()); }
    CHECK(right);
    opd_error_clear();
    if (script) { opd_script_free(script); }
}

TEST(calls_give_what_pytorch_gives) {
    static char statements[CALL_LONGEST], want[CALL_LONGEST];
    FILE *golden = check_golden("calls.txt");
    int count = 0;
    CHECK_OR_RETURN(golden != NULL);
    while (fgets(statements, sizeof statements, golden) && fgets(want, sizeof want, golden)) OPD_SCOPE {
        CHECK(strchr(statements, '\n') && (*want == '=' || *want == '!'));
        statements[strcspn(statements, "\n")] = 0;
        want[strcspn(want, "\n")] = 0;
        check_call(statements, want);
        count++;
    }
    fclose(golden);
    CHECK(count > 150);
}
CHECK_MAIN()
