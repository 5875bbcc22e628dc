/* Builtin functions in graphs: the results for numbers, strings, lists and dicts equal PyTorch's
   (golden/builtins.txt). */
#include "../../opdispatch.h"
#include "../check.h"

/* Runs one graph without inputs that returns a text; false if it differs from want ("=...", or "!" for an error). */
static bool gives(const char *text, const char *want) {
    char have[2000] = "!";
    bool same;
    OPD_SCOPE {
        opd_graph *graph = opd_graph_parse(text);
        opd_value out;
        if (!graph) { (void)snprintf(have, sizeof have, "no graph: %s", opd_error_message()); }
        else if (opd_graph_run_values(graph, NULL, 0, &out, 1) == 1) {
            (void)snprintf(have, sizeof have, "=%s", opd_string_text(&out, NULL));
        }
        same = strcmp(have, want) == 0;
        if (!same) { printf("%swant %s\nhave %s\n%s\n", text, want, have, opd_ok() ? "" : opd_error_message()); }
        opd_error_clear();
        opd_graph_free(graph);
    }
    return same;
}

TEST_KEEPS(functions_give_what_pytorch_gives) {       /* schemas that are read stay */
    FILE *golden = fopen("golden/builtins.txt", "r");
    char text[20000] = "", line[4000];
    int count = 0, wrong = 0;
    if (!golden) { golden = fopen("tests/golden/builtins.txt", "r"); }
    CHECK_OR_RETURN(golden != NULL);
    while (fgets(line, sizeof line, golden)) {
        if (*line != '=' && *line != '!') {
            CHECK_OR_RETURN(strlen(text) + strlen(line) < sizeof text);
            (void)strcat(text, line);
            continue;
        }
        line[strcspn(line, "\n")] = 0;
        wrong += !gives(text, line);
        count++;
        text[0] = 0;
    }
    fclose(golden);
    CHECK(count > 1000);
    CHECK_INT(wrong, 0);
}

/* Checks that aten::NAME(x) with a result of `type` prints as `want`, and, if `want` is a float, that 1 with the sign of
   the result prints as `sign`. */
static bool gives_of(const char *name, const char *x, const char *type, const char *want, const char *sign) {
    char text[1000];
    (void)snprintf(text, sizeof text, "graph():\n  %%0 : float = prim::Constant[value=%s]()\n"
                   "  %%1 : float = prim::Constant[value=1.]()\n  %%2 : %s = aten::%s(%%0)\n"
                   "  %%3 : float = aten::copysign(%%1, %%2)\n  %%4 : (%s, float) = prim::TupleConstruct(%%2, %%3)\n"
                   "  %%5 : str = aten::str(%%4)\n  return (%%5)\n", x, type, name, type);
    char all[100];
    (void)snprintf(all, sizeof all, *want == '!' ? "!" : "=(%s, %s)", want, sign);
    return gives(text, all);
}
/* Numbers at which a result has another sign, is out of range, or depends on the order of multiplying and dividing. */
TEST_KEEPS(functions_of_one_number_at_its_limits) {
    CHECK(gives_of("round", "-1e-310", "float", "0.", "-1."));
    CHECK(gives_of("round", "1e-310", "float", "0.", "1."));
    CHECK(gives_of("round", "-0.3", "float", "0.", "-1."));
    CHECK(gives_of("round", "-0.5", "float", "0.", "-1."));
    CHECK(gives_of("round", "-0.", "float", "0.", "-1."));
    CHECK(gives_of("round", "-1.5", "float", "-2.", "-1."));
    CHECK(gives_of("round", "2.5", "float", "2.", "1."));
    CHECK(gives_of("round", "0.49999999999999994", "float", "0.", "1."));
    CHECK(gives_of("round", "4503599627370497.5", "float", "4503599627370498.", "1."));
    CHECK(gives_of("round", "-inf", "float", "-inf", "-1."));
    CHECK(gives_of("floor", "-1e-310", "int", "-1", "-1."));
    CHECK(gives_of("ceil", "-1e-310", "int", "0", "1."));
    CHECK(gives_of("floor", "-9223372036854775808.", "int", "-9223372036854775808", "-1."));
    CHECK(gives_of("floor", "9223372036854775808.", "int", "!", NULL));
    CHECK(gives_of("ceil", "9.25e18", "int", "!", NULL));
    CHECK(gives_of("Int", "9.25e18", "int", "!", NULL));
    CHECK(gives_of("neg", "9223372036854775808.", "float", "-9223372036854775808.", "-1."));
    CHECK(gives_of("neg", "-9223372036854775808.", "float", "9.2233720368547758e+18", "1."));
    CHECK(gives_of("radians", "1.5", "float", "0.026179938779914945", "1."));
    CHECK(gives_of("degrees", "2.75", "float", "157.56339366097637", "1."));
    CHECK(gives_of("angle", "-0.", "float", "3.1415926535897931", "1."));
}
CHECK_MAIN()
