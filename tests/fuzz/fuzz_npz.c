// Fuzz target of .npz files: fuzz.h says how it is built and run.  Input: a file; its checksums are mended before it is
// read, or hardly any would be right.
#include "fuzz.h"

static void one(const uint8_t *data, size_t n) {
    uint8_t *mine = (uint8_t *)malloc(n ? n : 1);
    MUST(mine);
    memcpy(mine, data, n);
    mend(mine, n);
    walk_archive(mine, n);
    free(mine);
}
FUZZ(one)
