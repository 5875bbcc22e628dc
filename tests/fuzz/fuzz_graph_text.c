// Fuzz target for texts of graphs with constants in a file beside them: see fuzz.h for how to build and run it.  Input: a
// text, which may name the constants w, b and n.  An accepted graph is saved and loaded as an equal graph, or is refused.
#include "fuzz.h"

static opd_tensor *constant(opdi_graph_parser *parser, const char *name, const opdi_gvalue *type) {
    opd_tensor *const *all = (opd_tensor *const *)parser->user;
    (void)type;
    if (strlen(name) == 1 && strchr("wbn", *name)) { return all[*name == 'w' ? 0 : *name == 'b' ? 1 : 2]; }
    (void)opd_fail(OPD_ERROR_ARGUMENT, "there is no constant %s", name);
    return NULL;
}
static void one(const uint8_t *data, size_t n) {
    char *const text = (char *)malloc(n + 1), path[300], beside[320];
    const char *const folder = getenv("TMPDIR");
    opd_tensor *all[3];
    opd_graph *graph, *again;
    MUST(text);
    memcpy(text, data, n);
    text[n] = 0;
    (void)snprintf(path, sizeof path, "%s/fuzz_text_%d", folder ? folder : "/tmp", (int)getpid());
    (void)snprintf(beside, sizeof beside, "%s.safetensors", path);
    all[0] = opd_ones(OPD_INTS(3, 5), OPD_FLOAT32);
    all[1] = opd_arange(OPD_V(20), OPD_INT64);
    all[2] = opd_full(opd_ints_of(NULL, 0), OPD_V(1.0 / 3), OPD_FLOAT64);
    graph = opd_ok() ? opdi_graph_parse_beside(text, constant, all) : NULL;
    free(text);
    MUST((graph != NULL) == opd_ok());
    if (!graph) { MUST(opd_error_message()[0]); return; }
    if (opd_graph_save_text(graph, path) == 0) {
        again = opd_graph_load_text(path);
        MUST(again ? opd_graph_equal(graph, again) || !opd_ok() : fuzz_short && opd_error_code() == OPD_ERROR_MEMORY);
        opd_error_clear();
        MUST(!again || opd_graph_save_text(again, path) == 0 || fuzz_short);
        opd_graph_free(again);
    } else { MUST(opd_error_message()[0]); }
    (void)remove(path);
    (void)remove(beside);
    opd_error_clear();
    opd_graph_free(graph);
}
FUZZ(one)
