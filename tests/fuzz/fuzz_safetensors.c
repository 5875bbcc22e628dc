// Fuzz target of safetensors files: fuzz.h says how it is built and run.  Input: a file.
#include "fuzz.h"

static void one(const uint8_t *data, size_t n) {
    uint8_t *mine = (uint8_t *)malloc(n ? n : 1);
    MUST(mine);
    memcpy(mine, data, n);
    walk_archive(mine, n);
    free(mine);
}
FUZZ(one)
