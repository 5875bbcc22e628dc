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
CHECK_MAIN()
