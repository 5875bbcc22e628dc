// Fuzz target for archives of torch.jit.save: see fuzz.h for how to build and run it.  Input: a file.  Its checksums
// are corrected before it is read.
#include "fuzz.h"

static void one(const uint8_t *data, size_t n) {
    static char text[4096];
    uint8_t *mine = (uint8_t *)malloc(n ? n : 1);
    MUST(mine);
    memcpy(mine, data, n);
    mend(mine, n);
    OPD_SCOPE {
        opd_script *script = opd_script_from_bytes(mine, n);
        MUST(script || !opd_ok());
        for (int i = 0; script && i < opd_script_count(script); i++) {
            const opd_graph *graph = opd_script_graph(script, opd_script_name(script, i));
            if (graph) { (void)opd_graph_print(graph, text, sizeof text); }
            opd_error_clear();
        }
        opd_script_free(script);
    }
    opd_error_clear();
    free(mine);
}
FUZZ(one)
