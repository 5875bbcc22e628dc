// Fuzz target for archives of torch.jit.save: see fuzz.h for how to build and run it.  Input: a file, whose
// checksums are corrected before it is read; or a pickle (pickle_input), which is put into an archive without source text.
#include "fuzz.h"
#include "fuzz_pickle.h"

static void one(const uint8_t *data, size_t n) {
    static char text[4096];
    size_t size = 0;
    uint8_t *mine = pickle_input(data, n, &size);
    if (opd_ok()) OPD_SCOPE {
        opd_script *script = opd_script_from_bytes(mine, size);
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
