// Fuzz target for GGUF files: see fuzz.h for how to build and run it.  Input: a file.
#include "fuzz.h"

/* Each key has a type, each element of its value can be read, and the value as a whole can be read or is refused. */
static void walk_metadata(const opd_tensor_file *f) {
    const char *key;
    int64_t i, k;
    for (i = 0; i < 100 && (key = opd_tensor_file_metadata_key(f, i)) != NULL; i++) {
        const int64_t count = opd_tensor_file_metadata_count(f, key);
        const char *type = opd_tensor_file_metadata_type(f, key);
        opd_value value;
        unsigned sum = 0;
        MUST(type);
        for (k = 0; k < (count < 0 ? 1 : count) && k < 1000; k++) {
            double number;
            size_t length;
            if (strcmp(type, "str") == 0) {
                const char *text = opd_tensor_file_metadata_text(f, key, k, &length);
                MUST(text && text[length] == 0);
                while (length) { sum += (unsigned char)text[--length]; }
            } else {
                MUST(opd_tensor_file_metadata_number(f, key, k, &number) == 0);
            }
        }
        MUST(sum < UINT32_MAX);
        if (opd_tensor_file_metadata_value(f, key, &value)) {
            must_say(OPD_ERROR_DTYPE, "the value of '");
            opd_error_clear();
        }
        MUST(opd_tensor_file_metadata_count(f, key) == count);
    }
}
/* Reads every byte of a tensor, which is contiguous. */
static unsigned sum_of_bytes(const opd_tensor *t) {
    const unsigned char *p = (const unsigned char *)opd_data(t);
    int64_t bytes, i;
    const int64_t block = opd_dtype_block(opd_dtype(t), &bytes), n = opd_numel(t) / block * bytes;
    unsigned sum = 0;
    for (i = 0; i < n; i++) { sum += p[i]; }
    return sum;
}
static void one(const uint8_t *data, size_t n) {
    uint8_t *mine = (uint8_t *)malloc(n ? n : 1);
    opd_tensor_file *f;
    int64_t i;
    MUST(mine);
    memcpy(mine, data, n);
    if (n >= 4) { memcpy(mine, "GGUF", 4); }
    f = opd_tensor_file_parse(mine, n, NULL, NULL);
    if (!f) { must_say(OPD_ERROR_FILE, "memory"); }
    if (f) { walk_metadata(f); }
    for (i = 0; i < opd_tensor_file_count(f) && i < 100; i++) {
        MUST(opd_tensor_file_find(f, opd_tensor_file_name(f, i)) == i);
        OPD_SCOPE {
            opd_tensor *t = opd_tensor_file_at(f, i);
            MUST(t || fuzz_short);
            if (t) { (void)sum_of_bytes(t); }
        }
        opd_error_clear();
    }
    opd_tensor_file_close(f);
    free(mine);
}
FUZZ(one)
