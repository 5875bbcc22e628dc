// Fuzz target of .npy files (tests/fuzz/run.sh).  What is accepted has exactly the file's elements and is written to a
// file that reads back to the same tensor; what is refused says why, and nothing is left behind.
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

static const char *const path = "/dev/shm/opd_fuzz_npy";
// What the first use sets up is nobody's leak.
static int64_t live_at_first(void) {
    static bool begun;
    if (!begun) {
        OPD_SCOPE { (void)opd_contiguous(opd_transpose(opd_tensor_new(OPD_INTS(2, 3), OPD_FLOAT32), 0, 1)); }
        begun = true;
    }
    return opd_memory_stats().live;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const int64_t live = live_at_first();
    opd_log_set(log_nothing, NULL);
    OPD_SCOPE {
        static unsigned writes;
        opd_tensor *t = opd_npy_parse(size ? data : (const uint8_t *)"", size), *u;
        if (!t) { MUST(opd_error_code() == OPD_ERROR_FILE && strstr(opd_error_message(), "memory")); }
        else {
            MUST(opd_ok() && opd_numel(t) * (int64_t)opd_dtype_size(opd_dtype(t)) < (int64_t)size);
            (void)sum_of(t);
            if (writes++ % 64 == 0) {
                MUST(opd_npy_save(path, t) == 0);
                u = opd_npy_load(path);
                MUST(u && opd_dtype(u) == opd_dtype(t) && opd_ndim(u) == opd_ndim(t));
                MUST(memcmp(opd_sizes(u), opd_sizes(t), (size_t)opd_ndim(t) * sizeof(int64_t)) == 0);
                t = opd_contiguous(t);
                MUST(opd_numel(t) == 0 || memcmp(opd_data(u), opd_data(t), (size_t)opd_tensor_storage_bytes(u)) == 0);
            }
        }
        opd_error_clear();
    }
    MUST(opd_memory_stats().live == live);
    return 0;
}
