// Fuzz target of safetensors files (tests/fuzz/run.sh).  What is accepted can be asked everything, every tensor of it
// is read or refused with its name, and nothing is left behind.
#define OPDISPATCH_IMPLEMENTATION
#include "../../opdispatch.h"

#define MUST(cond) do { if (!(cond)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); abort(); } } while (0)

static void log_nothing(void *user, int is_error, const char *text) { (void)user; (void)is_error; (void)text; }
// Every element can be read.
static unsigned sum_of(const opd_tensor *t) {
    const unsigned char *p = (const unsigned char *)opd_data(t);
    const int64_t n = opd_tensor_storage_bytes(t);
    unsigned sum = 0;
    int64_t i;
    for (i = 0; i < n; i++) { sum += p[i]; }
    return sum;
}
// What the first use sets up is nobody's leak.
static int64_t live_at_first(void) {
    static bool begun;
    if (!begun) {
        OPD_SCOPE { (void)opd_tensor_wrapped_number(opd_value_int(1)); }
        begun = true;
    }
    return opd_memory_stats().live;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const int64_t live = live_at_first();
    const size_t n = size;
    uint8_t *mine = (uint8_t *)malloc(n ? n : 1);
    memcpy(mine, data, n);
    opd_log_set(log_nothing, NULL);
    OPD_SCOPE {
        opd_tensor_file *f = opd_tensor_file_parse(mine, n, NULL, NULL);
        int64_t i;
        if (!f) { MUST(opd_error_code() == OPD_ERROR_FILE && strstr(opd_error_message(), "memory")); }
        for (i = 0; f && i < opd_tensor_file_count(f) && i < 100; i++) {
            const char *name = opd_tensor_file_name(f, i);
            const int64_t found = opd_tensor_file_find(f, name);
            MUST(found == i || (found >= 0 && strcmp(opd_tensor_file_name(f, found), name) == 0));
            OPD_SCOPE {
                opd_tensor *t = opd_tensor_file_at(f, i);
                if (t) { MUST(opd_ok()); (void)sum_of(t); }
                else { MUST(opd_error_code() == OPD_ERROR_FILE && strstr(opd_error_message(), "entry '")); }
            }
            opd_error_clear();
        }
        for (i = 0; f && opd_tensor_file_metadata_key(f, i); i++) {
            MUST(opd_tensor_file_metadata(f, opd_tensor_file_metadata_key(f, i)));
        }
        opd_error_clear();
        opd_tensor_file_close(f);
    }
    free(mine);
    MUST(opd_memory_stats().live == live);
    return 0;
}
