/* The time of the first compiled run: equal layers share their C functions, and a long C text is compiled in parts. */
#include "../check.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LAYERS = 6, WIDTH = 24 };
static opd_tensor *weights[LAYERS], *scales[LAYERS];           /* constants of the graph */

/* Layers that differ only in their weights. */
static int layers(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = in[0];
    (void)user;
    (void)n;
    for (int i = 0; i < LAYERS; i++) {
        x = opd_relu(opd_matmul(x, weights[i]));
        x = opd_mul(opd_softmax(x, -1), scales[i]);
    }
    out[0] = x;
    return 1;
}
/* The same two operations with the operands exchanged. */
static int exchanged(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_sum(opd_sub(in[0], in[1]));
    out[1] = opd_sum(opd_sub(in[1], in[0]));
    out[2] = opd_sum(opd_sub(in[0], in[0]));
    return 3;
}
static opd_tensor *numbers(opd_ints sizes, int from) {
    opd_tensor *const x = opd_empty(sizes, OPD_FLOAT32);
    for (int64_t i = 0; x && i < opd_numel(x); i++) { opd_data_f32(x)[i] = (float)((from + 7 * i) % 11) / 8 - 0.5f; }
    return x;
}
static bool near(opd_tensor *a, opd_tensor *b) {
    return opd_item_f64(opd_amax(opd_abs(opd_sub(a, b)), opd_ints_of(NULL, 0), false)) < 1e-4;
}
/* Returns how often `word` is in the file NAME.c in the folder check_cache. */
static int words_in(const char *name, const char *word) {
    char path[600], line[4096];
    int count = 0;
    (void)snprintf(path, sizeof path, "%s/%s.c", check_cache, name);
    FILE *const file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) { count += strstr(line, word) != NULL; }
    if (file) { (void)fclose(file); }
    return count;
}
static void make_layers(void) {
    for (int i = 0; i < LAYERS; i++) {
        weights[i] = numbers(OPD_INTS(WIDTH, WIDTH), i);
        scales[i] = numbers(OPD_INTS(WIDTH), 3 * i);
    }
}
TEST(equal_layers_share_functions) {
    opd_tensor *x, *want[1], *got[1];
    opd_c_options options;
    opd_compile_options compile;
    if (!check_cache_begin()) { SKIP("no cc"); }
    OPD_SCOPED;
    make_layers();
    x = numbers(OPD_INTS(5, WIDTH), 1);
    opd_graph *const graph = opd_graph_trace(layers, NULL, &x, 1, NULL);
    memset(&options, 0, sizeof options);
    options.name = "layers";
    CHECK_INT(opd_graph_write_c(graph, &x, 1, check_cache, &options), 0);
    const int functions = words_in("layers", "APART static int k"), calls = words_in("layers", "FRESH; if ((rc = k");
    CHECK(functions > 0 && 2 * functions <= calls);            /* not one function for each layer */
    CHECK(calls >= 2 * LAYERS);
    memset(&compile, 0, sizeof compile);
    opd_compiled *const compiled = opd_graph_compile(graph, &compile);
    for (int run = 0; run < 2; run++) {
        CHECK_INT(opd_graph_run(graph, &x, 1, want, 1), 1);
        CHECK_INT(opd_compiled_function(compiled, &x, 1, got), 1);
        CHECK(near(got[0], want[0]));
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK(opd_ok());
}
TEST(other_operands_do_not_share) {
    opd_tensor *in[2], *want[3], *got[3];
    opd_compile_options compile;
    if (!check_cache_begin()) { SKIP("no cc"); }
    OPD_SCOPED;
    in[0] = numbers(OPD_INTS(WIDTH, WIDTH), 1);
    in[1] = numbers(OPD_INTS(WIDTH, WIDTH), 4);
    opd_graph *const graph = opd_graph_trace(exchanged, NULL, in, 2, NULL);
    memset(&compile, 0, sizeof compile);
    opd_compiled *const compiled = opd_graph_compile(graph, &compile);
    for (int run = 0; run < 2; run++) {
        CHECK_INT(opd_graph_run(graph, in, 2, want, 3), 3);
        CHECK_INT(opd_compiled_function(compiled, in, 2, got), 3);
        for (int i = 0; i < 3; i++) { CHECK(near(got[i], want[i])); }
    }
    CHECK_STR(opd_compiled_reason(compiled) ? opd_compiled_reason(compiled) : "", "");
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK(opd_ok());
}
/* Many different loops: a text that is long enough for several parts. */
enum { ROWS = 90 };
static int different(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    for (int i = 0; i < 60; i++) {
        opd_tensor *const x = opd_narrow(in[0], 0, 0, i + 2);
        opd_tensor *const y = opd_softmax(opd_mul_Scalar(x, opd_value_double(0.25 * i)), -1);
        out[i] = opd_cumsum(opd_matmul(y, weights[i % LAYERS]), 0);
    }
    return 60;
}
/* Returns the number of files in the cache whose names contain `first` and `second`. */
static int files_in_cache(const char *first, const char *second) {
    char command[300], line[300];
    int count = 0;
    (void)snprintf(command, sizeof command, "ls '%s/opdispatch'", check_cache);
    FILE *const list = popen(command, "r");
    while (list && fgets(line, sizeof line, list)) { count += strstr(line, first) && strstr(line, second); }
    if (list) { (void)pclose(list); }
    return count;
}
static void run_parts(const char *name, const char *why) {
    opd_tensor *x, *want[60], *got[60];
    opd_compile_options compile;
    OPD_SCOPED;
    make_layers();
    x = numbers(OPD_INTS(ROWS, WIDTH), 1);
    opd_graph *const graph = opd_graph_trace(different, NULL, &x, 1, NULL);
    memset(&compile, 0, sizeof compile);
    compile.name = name;
    opd_compiled *const compiled = opd_graph_compile(graph, &compile);
    for (int run = 0; run < 2; run++) {
        CHECK_INT(opd_graph_run(graph, &x, 1, want, 60), 60);
        CHECK_INT(opd_compiled_function(compiled, &x, 1, got), 60);
        for (int i = 0; i < 60; i++) { CHECK(near(got[i], want[i])); }
    }
    const char *const reason = opd_compiled_reason(compiled);
    CHECK(why ? reason && strstr(reason, why) != NULL : !reason);
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK_OK();
}
TEST(long_texts_are_compiled_in_parts) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 1);
    run_parts("parted", NULL);
    const int parts = files_in_cache("parted-", ".c");
    CHECK(parts >= (sysconf(_SC_NPROCESSORS_ONLN) > 1 ? 2 : 1) && parts <= 8);
    CHECK_INT(files_in_cache("parted-", ".so"), 1);
    CHECK_INT(files_in_cache("tmp.", ""), 0);
    run_parts("parted", NULL);                     /* from the cache */
    CHECK_INT(files_in_cache("parted-", ".so"), 1);
}
static void ignore_log(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    (void)text;
}
/* A compiler that fails for one part: the others are waited for, and no file is left. */
TEST(a_part_fails) {
    char path[200], command[300], cc[300];
    const char *const real = getenv("CC");
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)snprintf(cc, sizeof cc, "%s", real ? real : "");
    (void)snprintf(path, sizeof path, "%s/half-cc", check_cache);
    FILE *const script = fopen(path, "w");
    CHECK_OR_RETURN(script != NULL);
    fprintf(script, "#!/bin/sh\nmkdir '%s/first' 2>/dev/null && exec %s \"$@\"\necho 'the second fails' >&2\nexit 1\n",
            check_cache, *cc ? cc : "cc");
    CHECK_INT(fclose(script), 0);
    (void)snprintf(command, sizeof command, "chmod +x '%s'", path);
    CHECK_INT(system(command), 0);
    (void)setenv("CC", path, 1);
    opd_log_set(ignore_log, NULL);
    run_parts("halved", "the second fails");
    opd_log_set(NULL, NULL);
    CHECK_INT(files_in_cache("halved-", ".so"), 0);
    CHECK_INT(files_in_cache("tmp.", ""), 0);
    if (*cc) { (void)setenv("CC", cc, 1); } else { (void)unsetenv("CC"); }
}
/* Two processes that compile the same graph at the same time. */
TEST(two_processes) {
    int status = 1;
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)fflush(NULL);
    const pid_t child = fork();
    CHECK_OR_RETURN(child >= 0);
    run_parts("twice", NULL);
    if (child == 0) { _exit(opd_ok() && files_in_cache("twice-", ".so") >= 1 ? 0 : 1); }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK_INT(files_in_cache("twice-", ".so"), 1);
    CHECK_INT(files_in_cache("tmp.", ""), 0);
}
#if !defined(OPD_NO_THREADS)
/* Makes a compiler that writes `text` if there is one, and fails; or else waits until there is a file "go", for at most 20
   seconds.  It writes its arguments to a file "calls". */
static void use_compiler(const char *real, const char *text) {
    char path[200], command[400];
    (void)snprintf(path, sizeof path, "%s/own-cc%s", check_cache, text ? "-fails" : "");
    FILE *const script = fopen(path, "w");
    CHECK_OR_RETURN(script != NULL);
    if (text) { fprintf(script, "#!/bin/sh\necho '%s' >&2\nexit 1\n", text); }
    else {
        fprintf(script, "#!/bin/sh\necho \"$@\" >>'%s/calls'\nn=0\nwhile [ ! -f '%s/go' ] && [ $n -lt 400 ]; do sleep 0.05; n=$((n + 1)); done\n"
                "exec %s \"$@\"\n", check_cache, check_cache, real);
    }
    CHECK_INT(fclose(script), 0);
    (void)snprintf(command, sizeof command, "chmod +x '%s'; rm -f '%s/go' '%s/calls'", path, check_cache, check_cache);
    CHECK_INT(system(command), 0);
    (void)setenv("CC", path, 1);
}
static void let_it_go(void) {
    char path[200];
    (void)snprintf(path, sizeof path, "%s/go", check_cache);
    FILE *const file = fopen(path, "w");
    CHECK_OR_RETURN(file != NULL);
    CHECK_INT(fclose(file), 0);
}
/* Runs a graph until the compiler is done.  Returns the reason for which the last run was uncompiled. */
static const char *run_until_done(opd_compiled *compiled, opd_tensor *x, opd_tensor *want, bool uncompiled) {
    const char *reason = "";
    for (int i = 0; i < 1200 && reason; i++) {
        opd_tensor *got;
        OPD_SCOPED;
        CHECK_INT(opd_compiled_function(compiled, &x, 1, &got), 1);
        CHECK(near(got, want));
        reason = opd_compiled_reason(compiled);
        if (reason && uncompiled && !strstr(reason, "background") && !strstr(reason, "new")) { break; }
        if (reason) { (void)usleep(50000); }
    }
    return reason;
}
/* While the compiler waits, runs are uncompiled.  A child of a fork, and a graph that is freed, need no compiler. */
TEST(the_compiler_works_in_the_background) {
    static const char *const names[] = {"behind", "freed", "failing"};
    char cc[300];
    const char *const real = getenv("CC");
    opd_tensor *x, *want, *got;
    opd_compiled *all[3];
    opd_compile_options options;
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)snprintf(cc, sizeof cc, "%s", real ? real : "");
    make_layers();
    x = numbers(OPD_INTS(3, WIDTH), 1);
    opd_graph *const graph = opd_graph_trace(layers, NULL, &x, 1, NULL);
    CHECK_INT(opd_graph_run(graph, &x, 1, &want, 1), 1);
    use_compiler(*cc ? cc : "cc", NULL);
    memset(&options, 0, sizeof options);
    options.background = true;
    for (int i = 0; i < 3; i++) {
        options.name = names[i];
        all[i] = opd_graph_compile(graph, &options);
        CHECK_OR_RETURN(all[i] != NULL);
    }
    for (int i = 0; i < 6; i++) {
        CHECK_INT(opd_compiled_function(all[i / 3], &x, 1, &got), 1);
        CHECK(near(got, want));
        CHECK(opd_compiled_reason(all[i / 3]) && strstr(opd_compiled_reason(all[i / 3]), "background"));
    }
    let_it_go();
#if !defined(CHECK_SANITIZED)
    int status = 1;
    (void)fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        const bool done = !run_until_done(all[0], x, want, false);
        opd_compiled_free(all[1]);
        _exit(done && opd_ok() ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
#endif
    opd_compiled_free(all[1]);
    CHECK_STR(run_until_done(all[0], x, want, false), NULL);
    opd_compiled_free(all[0]);
    use_compiler(cc, "the compiler says no");
    opd_log_set(ignore_log, NULL);
    const char *const reason = run_until_done(all[2], x, want, true);
    CHECK(reason && strstr(reason, "the compiler says no"));
    opd_log_set(NULL, NULL);
    opd_compiled_free(all[2]);
    opd_graph_free(graph);
    if (*cc) { (void)setenv("CC", cc, 1); } else { (void)unsetenv("CC"); }
}
/* In the mode of same bits, the thread compiles the code of the mode, and no later run compiles it again. */
TEST(the_background_has_the_mode_of_the_run) {
    char cc[300], command[300];
    const char *const real = getenv("CC");
    opd_tensor *x, *want;
    opd_compile_options options;
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)snprintf(cc, sizeof cc, "%s", real ? real : "");
    make_layers();
    x = numbers(OPD_INTS(3, WIDTH), 1);
    const bool was = opd_same_bits_set(true);
    opd_graph *const graph = opd_graph_trace(layers, NULL, &x, 1, NULL);
    CHECK_INT(opd_graph_run(graph, &x, 1, &want, 1), 1);
    use_compiler(*cc ? cc : "cc", NULL);
    let_it_go();
    memset(&options, 0, sizeof options);
    options.background = true;
    options.name = "same";
    opd_compiled *const compiled = opd_graph_compile(graph, &options);
    CHECK_OR_RETURN(compiled != NULL);
    CHECK_STR(run_until_done(compiled, x, want, false), NULL);
    (void)snprintf(command, sizeof command, "grep -q . '%s/calls' && ! grep -v -e -ffp-contract=off '%s/calls'", check_cache, check_cache);
    CHECK_INT(system(command), 0);
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    (void)opd_same_bits_set(was);
    if (*cc) { (void)setenv("CC", cc, 1); } else { (void)unsetenv("CC"); }
}
/* Kinds that take turns: no run of a kind waits for the compiler because the code of another kind is done, and all are
   compiled in the end. */
TEST(kinds_take_turns_in_the_background) {
    enum { KINDS = 3 };
    static int times;
    char cc[300], command[300], name[20];
    const char *const real = getenv("CC");
    opd_tensor *x[KINDS], *got;
    opd_compile_options options;
    int left = KINDS;
    if (!check_cache_begin()) { SKIP("no cc"); }
    OPD_SCOPED;
    (void)snprintf(cc, sizeof cc, "%s", real ? real : "");
    make_layers();
    for (int i = 0; i < KINDS; i++) { x[i] = numbers(OPD_INTS(i + 2, WIDTH), i); }
    opd_graph *const graph = opd_graph_trace(layers, NULL, x, 1, NULL);
    use_compiler(*cc ? cc : "cc", NULL);
    let_it_go();
    memset(&options, 0, sizeof options);
    options.background = true;
    (void)snprintf(name, sizeof name, "turns%d", times++);         /* nothing is in the cache, also if the case is repeated */
    options.name = name;
    opd_compiled *const compiled = opd_graph_compile(graph, &options);
    CHECK_OR_RETURN(compiled != NULL);
    CHECK_INT(opd_compiled_function(compiled, &x[0], 1, &got), 1);
    for (int i = 0; i < 1200 && !files_in_cache(name, ".so"); i++) { (void)usleep(50000); }
    (void)snprintf(command, sizeof command, "rm '%s/go'", check_cache);
    CHECK_INT(system(command), 0);
    for (int i = 0; i < 40; i++) {                /* the code of kind 0 is done, and the compiler waits */
        CHECK_INT(opd_compiled_function(compiled, &x[1], 1, &got), 1);
        CHECK(opd_compiled_reason(compiled) && strstr(opd_compiled_reason(compiled), "background"));
        (void)usleep(5000);
    }
    let_it_go();
    for (int i = 0, turn = 0; i < 1200 && left; i++) {
        left = 0;
        for (int k = 0; k < KINDS; k++) {
            OPD_SCOPED;
            turn = (turn + 2) % KINDS;
            CHECK_INT(opd_compiled_function(compiled, &x[turn], 1, &got), 1);
            left += opd_compiled_reason(compiled) != NULL;
            (void)usleep(10000);
        }
    }
    CHECK_INT(left, 0);
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    if (*cc) { (void)setenv("CC", cc, 1); } else { (void)unsetenv("CC"); }
    CHECK_OK();
}
#endif
/* The last test: removes the folder. */
TEST(the_folder_is_removed) {
    if (!check_cache_end()) { SKIP("nothing was compiled"); }
}
CHECK_MAIN()
