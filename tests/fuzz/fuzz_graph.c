// Fuzz target of graphs' texts and files (tests/fuzz/run.sh).  The first byte says which; of a file the size and the
// checksum are put right.  What is read is printed, and read again as the same; passes keep it printable.
#define OPDISPATCH_IMPLEMENTATION
#include "../../opdispatch.h"

#define MUST(cond) do { if (!(cond)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); abort(); } } while (0)

static void log_nothing(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }

static char *printed(const opd_graph *g) {
    const size_t n = opd_graph_print(g, NULL, 0) + 1;
    char *text = (char *)malloc(n);
    MUST(text && opd_graph_print(g, text, n) + 1 == n && strlen(text) + 1 == n);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    char *copy;
    opd_graph *g;
    if (n < 2) { return 0; }
    opd_log_set(log_nothing, NULL);
    copy = (char *)malloc(n);
    MUST(copy);
    memcpy(copy, data + 1, n - 1);
    copy[n - 1] = 0;
    OPD_SCOPE {
        if (data[0] & 1) {
            if (n - 1 >= 40) {
                memcpy(copy, "OPDGRAPH", 8);
                static opdi_crc table;
                if (!table.rows[0][1]) { opdi_crc_init(&table); }
                (void)opdi_le_put((unsigned char *)copy + 8, 1, 4);
                (void)opdi_le_put((unsigned char *)copy + 16, n - 1, 8);
                (void)opdi_le_put((unsigned char *)copy + 12, opdi_crc_add(&table, 0, copy + 16, n - 17), 4);
            }
            g = opd_graph_from_bytes(copy, n - 1);
        } else { g = opd_graph_parse(copy); }
        MUST((g != NULL) == opd_ok());
        if (g) {
            char *text = printed(g), *again;
            opd_graph *h = opd_graph_parse(text);
            if (h) {                              /* not what holds tensors that a text cannot */
                again = printed(h);
                MUST(strcmp(text, again) == 0);
                free(again);
                opd_graph_free(h);
            }
            opd_error_clear();
            MUST(opd_graph_dce(g) >= 0 && opd_graph_cse(g) >= 0);
            again = printed(g);
            free(again);
            free(text);
            opd_graph_free(g);
        }
        opd_error_clear();
    }
    free(copy);
    return 0;
}
