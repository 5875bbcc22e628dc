// Fuzz target for scripts: see fuzz.h for how to build and run it.  Input: the source of a script, which is compiled
// and printed.
#include "fuzz.h"

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
        }
        opd_script_free(script);
    }
    opd_error_clear();
    free(source);
}
FUZZ(one)
