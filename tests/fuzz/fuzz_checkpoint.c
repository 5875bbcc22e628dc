// Fuzz target for files of torch.save: see fuzz.h for how to build and run it.  Input: a file, as a zip (its checksums
// are corrected) or in the legacy format; or 'p' and a pickle, which is put into a zip file with two storages of 64
// bytes.  If the file can be read, it is also loaded into a module and an optimizer.
#include "fuzz.h"

/* Returns the zip file of a pickle, *size bytes to be freed. */
static uint8_t *wrap(const uint8_t *data, size_t n, size_t *size) {
    static const char zeros[64] = {0};
    char *bytes = NULL;
    opdi_zip_writer zip;
    opdi_sink sink;
    memset(&sink, 0, sizeof sink);
    sink.file = open_memstream(&bytes, size);
    MUST(sink.file);
    opdi_zip_writer_init(&zip, &sink);
    const int rc = opdi_zip_add(&zip, "a/data.pkl", data, n) || opdi_zip_add(&zip, "a/data/0", zeros, 64) ||
        opdi_zip_add(&zip, "a/data/1", zeros, 64) ? -1 : 0;
    const bool right = opdi_zip_close(&zip, rc) == 0;
    fclose(sink.file);
    if (!right) { *size = 0; }
    return (uint8_t *)bytes;
}
/* Fills a module and an optimizer from what is there. */
static void fill(uint8_t *data, size_t n) {
    opd_tensor_file *file = opd_tensor_file_parse(data, n, NULL, NULL);
    opd_module *module = file ? opd_module_new() : NULL;
    if (module && opdi_module_take(module, file, "") == 0 && opd_module_parameters(module, NULL, NULL, 0) > 0) {
        opd_optimizer *sgd = opd_module_sgd(module, NULL, NULL), *adam = opd_module_adam(module, NULL, NULL);
        opd_error_clear();
        (void)opd_training_load(file, module, sgd);
        opd_error_clear();
        (void)opd_training_load(file, NULL, adam);
        opd_error_clear();
        (void)opd_module_load(module, file, NULL);
        opd_optimizer_free(sgd);
        opd_optimizer_free(adam);
    }
    opd_error_clear();
    opd_module_free(module);
    opd_tensor_file_close(file);
}
static void values(uint8_t *data, size_t n) {
    opd_tensor_file *file = opd_tensor_file_parse(data, n, NULL, NULL);
    for (int64_t i = 0; i < opd_tensor_file_count(file) && i < 100; i++) {
        opd_value value;
        if (opd_tensor_file_value(file, opd_tensor_file_name(file, i), &value) == 0 && value.tag == OPD_TAG_STR) {
            MUST((int)strlen(value.u.s) <= value.n);
        }
        opd_error_clear();
    }
    opd_error_clear();
    opd_tensor_file_close(file);
}

static void one(const uint8_t *data, size_t n) {
    size_t size = n;
    uint8_t *mine = n && data[0] == 'p' ? wrap(data + 1, n - 1, &size) : (uint8_t *)malloc(n ? n : 1);
    if (opd_ok()) {
        MUST(mine);
        if (!(n && data[0] == 'p')) {
            memcpy(mine, data, n);
            mend(mine, n);
        }
        walk_archive(mine, size);
        opd_error_clear();
        values(mine, size);
        fill(mine, size);
    }
    free(mine);
}
FUZZ(one)
