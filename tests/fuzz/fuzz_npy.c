// Fuzz target for .npy files: see fuzz.h for how to build and run it.  Input: a file.  An accepted tensor has exactly
// the elements of the file, and is the same after it was saved and loaded again.  A refused file gives an error.
#include "fuzz.h"

static const char *const path = "/dev/shm/opd_fuzz_npy";

static void one(const uint8_t *data, size_t n) {
    opd_tensor *t = opd_npy_parse(n ? data : (const uint8_t *)"", n), *u;
    if (!t) { must_say(OPD_ERROR_FILE, "memory"); return; }
    MUST(opd_ok() && opd_numel(t) * (int64_t)opd_dtype_size(opd_dtype(t)) < (int64_t)n);
    (void)sum_of(t);
    if (fuzz_short || crc_of(data, n) % 64 != 1) { return; }
    MUST(opd_npy_save(path, t) == 0);
    u = opd_npy_load(path);
    MUST(u && opd_dtype(u) == opd_dtype(t) && opd_ndim(u) == opd_ndim(t));
    MUST(memcmp(opd_sizes(u), opd_sizes(t), (size_t)opd_ndim(t) * sizeof(int64_t)) == 0);
    t = opd_contiguous(t);
    MUST(opd_numel(t) == 0 || memcmp(opd_data(u), opd_data(t), (size_t)opd_tensor_storage_bytes(u)) == 0);
}
FUZZ(one)
