/* The check of the C compiler: compiled graphs do not use flags with which it gives wrong numbers.  The compiler is a
   script, which makes the check fail with some flags, and counts how often the check is compiled. */
#include "../check.h"
#include "../../opdispatch.h"
#include "../told.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__unix__) && !defined(OPD_NO_PLUGINS) && !defined(OPD_NO_COMPILER)
#include <sys/stat.h>
#include <unistd.h>

static char real[300], path[400];                 /* the compiler, and the script */

/* Writes the script: with flags that `pattern` fits, the check finds wrong numbers.  Returns false without a
   compiler. */
static bool begin(const char *pattern) {
    static int scripts;
    if (!*real) {
        if (!check_cache_begin()) { return false; }
        const char *const cc = getenv("CC");
        (void)snprintf(real, sizeof real, "%s", cc && *cc ? cc : "cc");
    }
    (void)snprintf(path, sizeof path, "%s/script%d", check_cache, ++scripts);
    FILE *const file = fopen(path, "w");
    if (!file) { return false; }
    (void)fprintf(file, "#!/bin/sh\ncase \"$*\" in *compiler_check*-c*|*-c*compiler_check*) echo one >>'%s/log' ;; esac\n"
                  "case \"$*\" in %s) exec %s -DWRONG=1 \"$@\" -O0 ;; esac\nexec %s \"$@\" -O0\n", check_cache, pattern, real, real);
    CHECK(fclose(file) == 0 && chmod(path, 0700) == 0);
    (void)setenv("CC", path, 1);
    return true;
}
static int checks(void) {
    char log[100];
    (void)snprintf(log, sizeof log, "%s/log", check_cache);
    FILE *const file = fopen(log, "r");
    int count = 0, letter;
    while (file && (letter = getc(file)) != EOF) { count += letter == '\n'; }
    if (file) { (void)fclose(file); }
    (void)remove(log);
    return count;
}
static double factor;
static int multiplies(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_mul_Scalar(in[0], opd_value_double(factor));
    return out[0] ? 1 : -1;
}
/* Compiles a graph and runs it twice.  Returns why the second run was uncompiled, or "". */
static const char *reason(const char *flags) {
    static const float numbers[] = {1, 2, 3, 4};
    const int64_t four = 4;
    opd_tensor *x = opd_tensor_from(numbers, opd_ints_of(&four, 1), OPD_FLOAT32), *out;
    factor++;
    opd_graph *const graph = opd_graph_trace(multiplies, NULL, &x, 1, NULL);
    const char *const why = reason_of(graph, x, flags, &out);
    CHECK(out && (double)opd_data_f32(out)[3] == 4 * factor);
    opd_graph_free(graph);
    return why;
}
TEST(compiler_that_is_right) {
    if (!begin("nothing")) { SKIP("no cc"); }
    CHECK_STR(reason(NULL), "");
    CHECK_STR(reason(NULL), "");
    CHECK_INT(checks(), 1);
    CHECK_STR(reason("-O1"), "");                 /* other flags are checked, too */
    CHECK_STR(reason("-O1"), "");
    CHECK_STR(told, "");
    CHECK_INT(checks(), 1);
}
TEST(compiler_whose_vectoriser_is_wrong) {
    if (!begin("*-fno-tree-vectorize*) ;; *-O3*")) { SKIP("no cc"); }
    CHECK_STR(reason(NULL), "");
    CHECK(strstr(told, "wrong numbers with the flags '-O3") && strstr(told, "is compiled with -fno-tree-vectorize"));
    CHECK_INT(checks(), 2);
    CHECK_STR(reason(NULL), "");
    CHECK_INT(checks(), 0);                       /* the results are in the cache */
    CHECK_STR(reason("-O3"), "");
    CHECK(strstr(told, "is compiled with -fno-tree-vectorize") != NULL);
}
TEST(compiler_that_is_right_at_o2) {
    if (!begin("*-O3*")) { SKIP("no cc"); }
    CHECK_STR(reason(NULL), "");
    CHECK(strstr(reason("-O3"), "gives wrong numbers with the flags '-O3 -fno-tree-vectorize'") != NULL);
}
TEST(compiler_that_is_wrong) {
    if (!begin("*")) { SKIP("no cc"); }
    CHECK(strstr(reason(NULL), "gives wrong numbers with the flags '-O2': a check has") != NULL);
    CHECK(strstr(told, "runs uncompiled") && strstr(told, "set $CC to another compiler"));
    CHECK_OK();
}
TEST(the_cache_goes) {
    if (!check_cache_end()) { SKIP("no cc"); }
}
#else
TEST(no_compiler) { SKIP("no compiler here"); }
#endif

CHECK_MAIN()
