// Fuzz target for the text of graphs: see fuzz.h for how to build and run it.  Input: a text.  An accepted graph is
// printed, and parsed again as the same graph; after passes, it can still be printed.  fuzz_graph_file.c does the same
// with saved graphs.
#include "fuzz.h"

#if !defined(GRAPH_FILE)
static opd_graph *graph_of(const uint8_t *data, size_t n) {
    char *text = (char *)malloc(n + 1);
    opd_graph *g;
    MUST(text);
    memcpy(text, data, n);
    text[n] = 0;
    g = opd_graph_parse(text);
    free(text);
    return g;
}
#else
// A file whose beginning, size and checksum are put right.
static opd_graph *graph_of(const uint8_t *data, size_t n) {
    unsigned char *file = (unsigned char *)malloc(n ? n : 1);
    opd_graph *g;
    MUST(file);
    memcpy(file, data, n);
    if (n >= 40) {
        memcpy(file, "OPDGRAPH", 8);
        (void)opdi_le_put(file + 8, 1, 4);
        (void)opdi_le_put(file + 16, n, 8);
        (void)opdi_le_put(file + 12, crc_of(file + 16, n - 16), 4);
    }
    g = opd_graph_from_bytes(file, n);
    free(file);
    return g;
}
#endif

static char *printed(const opd_graph *g) {
    const size_t n = opd_graph_print(g, NULL, 0) + 1;
    char *text = (char *)malloc(n);
    MUST(text && opd_graph_print(g, text, n) + 1 == n && strlen(text) + 1 == n);
    return text;
}

// Runs it on shapes, with inputs of 2 by 3: nothing large is computed, and what its values are is checked as ever.
static void run(const opd_graph *g) {
    opd_tensor *in[4], *out[4];
    const int n = opd_graph_ninputs(g);
    int i, rc;
    if (n > 4) { return; }
    OPD_SCOPE {
        OPD_FAKE_MODE {
            for (i = 0; i < n; i++) { in[i] = opd_ones(OPD_INTS(2, 3), OPD_FLOAT32); }
            rc = opd_graph_run(g, in, n, out, 4);
            MUST(opd_ok() ? rc == opd_graph_noutputs(g) : rc == -1 && opd_error_message()[0]);
        }
    }
    opd_error_clear();
}

static void one(const uint8_t *data, size_t n) {
    opd_graph *g = graph_of(data, n), *h;
    char *text, *again;
    MUST((g != NULL) == opd_ok());
    if (!g) { MUST(opd_error_message()[0]); return; }
    text = printed(g);
    h = opd_graph_parse(text);
    if (h) {                                      /* not what holds tensors that a text cannot */
        again = printed(h);
        MUST(strcmp(text, again) == 0);
        free(again);
        opd_graph_free(h);
    }
    free(text);
    opd_error_clear();
    MUST((opd_graph_dce(g) >= 0 && opd_graph_cse(g) >= 0) || (fuzz_short && opd_error_code() == OPD_ERROR_MEMORY));
    free(printed(g));
    opd_error_clear();
    run(g);
    opd_graph_free(g);
}
FUZZ(one)
