// Fuzz target for safetensors files: see fuzz.h for how to build and run it.  Input: a file.
#include "fuzz.h"

static void one(const uint8_t *data, size_t n) {
    uint8_t *mine = (uint8_t *)malloc(n ? n : 1);
    MUST(mine);
    memcpy(mine, data, n);
    walk_archive(mine, n);
    free(mine);
}
FUZZ(one)
