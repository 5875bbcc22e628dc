#include "aoti.h"

//== stubs for platforms without compiled libraries ====================================================================

static int opdi_aoti_without(const char *what) {
    return opd_fail(OPD_ERROR_REGISTER, "%s: compiled libraries can only be used on Linux on x86-64 and aarch64, in "
                    "programs without OPD_NO_PLUGINS", what);
}
opd_aoti *opd_aoti_load(const char *path, const opd_aoti_options *options) {
    (void)path;
    (void)options;
    (void)opdi_aoti_without("opd_aoti_load");
    return NULL;
}
void opd_aoti_free(opd_aoti *model) { (void)model; }
const char *opd_aoti_name(const opd_aoti *model) {
    (void)model;
    return NULL;
}
const char *opd_aoti_file_name(const opd_aoti *model, int i) {
    (void)i;
    return opd_aoti_name(model);
}
const char *opd_aoti_metadata(const opd_aoti *model, const char *key) {
    (void)key;
    return opd_aoti_name(model);
}
int opd_aoti_ninputs(const opd_aoti *model) {
    (void)model;
    return 0;
}
int opd_aoti_noutputs(const opd_aoti *model) { return opd_aoti_ninputs(model); }
const char *opd_aoti_input_name(const opd_aoti *model, int i) { return opd_aoti_file_name(model, i); }
const char *opd_aoti_output_name(const opd_aoti *model, int i) { return opd_aoti_file_name(model, i); }
int opd_aoti_run(opd_aoti *model, opd_tensors inputs, opd_tensor **outputs, int cap) {
    (void)model;
    (void)inputs;
    (void)outputs;
    (void)cap;
    return opdi_aoti_without("opd_aoti_run");
}
int opd_aoti_function(void *model, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    return opd_aoti_run((opd_aoti *)model, opd_tensors_of(inputs, ninputs), outputs, 0);
}
int64_t opd_aoti_constants(const opd_aoti *model) { return opd_aoti_ninputs(model); }
int opd_aoti_constant_at(const opd_aoti *model, int64_t i, opd_aoti_constant *constant) {
    (void)model;
    (void)i;
    (void)constant;
    return opdi_aoti_without("opd_aoti_constant_at");
}
opd_tensor *opd_aoti_constant_get(opd_aoti *model, const char *name) {
    (void)model;
    (void)name;
    (void)opdi_aoti_without("opd_aoti_constant_get");
    return NULL;
}
int opd_aoti_update(opd_aoti *model, const char *const *names, opd_tensors tensors) {
    (void)model;
    (void)names;
    (void)tensors;
    return opdi_aoti_without("opd_aoti_update");
}
int opd_extension_load(const char *path) {
    (void)path;
    return opdi_aoti_without("opd_extension_load");
}
int opd_extension_unload(const char *path) {
    (void)path;
    return opdi_aoti_without("opd_extension_unload");
}

