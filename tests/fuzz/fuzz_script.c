// Fuzz target for scripts: see fuzz.h for how to build and run it.  Input: the source of a script, which is compiled
// and printed.  Its functions run with arguments of their types, as long as limits of time and memory allow.
#include "fuzz.h"

static opd_value argument(const char *type) {
    static const int64_t sizes[] = {2, 3};
    if (strcmp(type, "int") == 0) { return opd_value_int(3); }
    if (strcmp(type, "float") == 0) { return opd_value_double(2.5); }
    if (strcmp(type, "bool") == 0) { return opd_value_bool(true); }
    if (strcmp(type, "str") == 0) { return opd_value_str("ab c"); }
    return strcmp(type, "Tensor") == 0 ? opd_value_tensor(opd_ones(opd_ints_of(sizes, 2), OPD_FLOAT32)) : opd_value_none();
}
static void run(opd_script *script, const char *name) {
    const opd_limits limits = {0.1, 1 << 24, 100000, 50};
    opd_value args[8], result = opd_value_none();
    char type[100];
    const int count = opd_script_nargs(script, name);
    for (int i = 0; i < count && i < 8; i++) {
        (void)opd_script_arg_type(script, name, i, type, sizeof type);
        args[i] = argument(type);
    }
    if (count > 8 || !opd_ok()) { return; }
    opd_limits_set(&limits);
    MUST(opd_script_run(script, name, args, count, &result) == 0 ? opd_ok() : opd_error_message()[0] != 0);
    opd_limits_set(NULL);
}
static void one(const uint8_t *data, size_t n) {
    static char text[4096];
    char *source = (char *)malloc(n + 1);
    MUST(source);
    memcpy(source, data, n);
    source[n] = 0;
    OPD_SCOPE {
        opd_script *script = opd_script_compile(source, NULL);
        MUST(script || !opd_ok());
        for (int i = 0; script && i < opd_script_count(script); i++) {
            (void)opd_graph_print(opd_script_graph(script, opd_script_name(script, i)), text, sizeof text);
            opd_error_clear();
            run(script, opd_script_name(script, i));
            opd_error_clear();
        }
        opd_script_free(script);
    }
    opd_error_clear();
    free(source);
}
FUZZ(one)
