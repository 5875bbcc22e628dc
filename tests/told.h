/* told.h: hears what the library tells, and finds out why a graph was not compiled. */
#ifndef OPD_TESTS_TOLD_H
#define OPD_TESTS_TOLD_H
#include "check.h"

static char told[3000];                           /* what was told since told[0] was set to 0: lines */
static void hear(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    (void)snprintf(told + strlen(told), sizeof told - strlen(told), "%s\n", text);
}
/* Compiles a graph of one input and one output with these flags, and runs it twice.  Writes the last result to *out.
   Returns why the second run was uncompiled, or "". */
OPD_UNUSED static const char *reason_of(const opd_graph *graph, opd_tensor *x, const char *flags, opd_tensor **out) {
    static char why[600];
    opd_compile_options options;
    opd_compiled *compiled;
    int run;
    memset(&options, 0, sizeof options);
    options.flags = flags;
    *out = NULL;
    compiled = opd_graph_compile(graph, &options);
    told[0] = 0;
    opd_log_set(hear, NULL);
    for (run = 0; run < 2 && compiled; run++) { CHECK_INT(opd_compiled_function(compiled, &x, 1, out), 1); }
    opd_log_set(NULL, NULL);
    (void)snprintf(why, sizeof why, "%s", opd_compiled_reason(compiled) ? opd_compiled_reason(compiled) : "");
    opd_compiled_free(compiled);
    return why;
}
#endif /* OPD_TESTS_TOLD_H */
