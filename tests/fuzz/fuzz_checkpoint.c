// Fuzz target for files of torch.save: see fuzz.h for how to build and run it.  Input: a file, as a zip (its checksums
// are corrected) or in the legacy format; or a pickle (pickle_input), which is put into a zip file with two storages of 64
// bytes.  If the file can be read, it is also loaded into a module and an optimizer.
#include "fuzz.h"
#include "fuzz_pickle.h"

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
    size_t size = 0;
    uint8_t *mine = pickle_input(data, n, &size);
    if (opd_ok()) {
        walk_archive(mine, size);
        opd_error_clear();
        values(mine, size);
        fill(mine, size);
    }
    free(mine);
}
FUZZ(one)
