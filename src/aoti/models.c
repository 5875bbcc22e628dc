#include "aoti.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>aoti_tensors  compiled models: exported functions, tensors, packed weights
//----------------------------------------------------------------------------------------------------------------------

//== functions that models export, and metadata ========================================================================

OPDI_INTERNAL const opdi_aoti_export opdi_aoti_exports[OPDI_AOTI_FUNCTIONS] = {
    {"AOTInductorModelContainerCreateWithDevice", true}, {"AOTInductorModelContainerDelete", true},
    {"AOTInductorModelContainerRun", true}, {"AOTInductorModelContainerGetNumInputs", true},
    {"AOTInductorModelContainerGetNumOutputs", true}, {"AOTInductorModelContainerGetInputName", true},
    {"AOTInductorModelContainerGetOutputName", true}, {"AOTInductorModelContainerGetNumConstants", true},
    {"AOTInductorModelContainerGetConstantName", true}, {"AOTInductorModelContainerGetConstantOriginalFQN", false},
    {"AOTInductorModelContainerGetConstantDtype", false}, {"AOTInductorModelContainerGetConstantDataSize", false},
    {"AOTInductorModelContainerGetConstantFromFolded", false},
    {"AOTInductorModelContainerGetConstantType", false},
    {"AOTInductorModelContainerUpdateConstantBufferPairs", false},
    {"AOTInductorModelContainerUpdateUserManagedConstantBufferPairs", false},
    {"AOTInductorModelContainerExtractConstantsMapEntries", false},
    {"AOTInductorModelUpdateConstantsFromBlob", false}, {"AOTInductorModelContainerGetConstantsBlobSize", false},
    {"AOTInductorGetLastError", false}
};

OPDI_INTERNAL OPDI_AOTI_THREAD opdi_aoti_frame *opdi_aoti_current;

const char *opd_aoti_metadata(const opd_aoti *model, const char *key) {
    const opd_json *json = model && key ? model->metadata : NULL;
    return json ? opd_json_text(json, opd_json_get(json, 0, key), NULL) : NULL;
}

//== handles ===========================================================================================================
//
//  A compiled model refers to a tensor by a handle: a box (opdi_aoti_handle) that owns a reference to the tensor.  A
//  box without a tensor is undefined, and is filled later.  packed: the tensor is the unpacked weight of a product or
//  convolution that was stored in oneDNN's blocks.

OPDI_INTERNAL int opdi_aoti_no_memory(void) { return opd_fail(OPD_ERROR_MEMORY, "out of memory"); }
/* Returns 0, or 1 if an error is pending, as models expect. */
OPDI_INTERNAL int32_t opdi_aoti_status(void) { return opd_ok() ? 0 : 1; }
/* Makes a box for a reference to `tensor`, and stores the handle in *out.  Returns 0, or 1 if `tensor` is NULL or an
   error is pending. */
OPDI_INTERNAL int32_t opdi_aoti_box(opd_tensor *tensor, void **out) {
    opdi_aoti_handle *handle = NULL;
    if (!opd_ok() || !tensor) { return 1; }
    handle = (opdi_aoti_handle *)calloc(1, sizeof *handle);
    if (!handle) { return (int32_t)-opdi_aoti_no_memory(); }
    handle->tensor = opd_keep(tensor);
    *out = handle;
    return 0;
}
/* Returns the tensor in a box, or NULL and sets an error if the tensor is undefined. */
OPDI_INTERNAL opd_tensor *opdi_aoti_tensor(void *handle) {
    opd_tensor *tensor = handle ? ((opdi_aoti_handle *)handle)->tensor : NULL;
    if (!tensor) { (void)opd_fail(OPD_ERROR_ARGUMENT, "a compiled model uses a tensor that is undefined"); }
    return tensor;
}
OPDI_INTERNAL int32_t opdi_aoti_free_handle(void *box) {
    opdi_aoti_handle *handle = (opdi_aoti_handle *)box;
    if (handle) {
        opd_release(handle->tensor);
        if (handle->gone) { *handle->gone = true; }
        free(handle);
    }
    return 0;
}
/* Returns c10's number of a device type. */
OPDI_INTERNAL int32_t opdi_aoti_device_number(opd_device device) {
    switch (device.type) {
    case OPD_CPU: return 0;
    case OPD_CUDA: return 1;
    case OPD_HIP: return 6;
    case OPD_XLA: return 9;
    case OPD_XPU: return 12;
    case OPD_MPS: return 13;
    case OPD_META: return 14;
    default: return 20;
    }
}
OPDI_INTERNAL opd_device opdi_aoti_device(int64_t number, int64_t index) {
    const opd_backend type = number == 0 ? OPD_CPU : number == 1 ? OPD_CUDA : number == 6 ? OPD_HIP
        : number == 9 ? OPD_XLA : number == 12 ? OPD_XPU : number == 13 ? OPD_MPS : number == 14 ? OPD_META
        : OPD_PRIVATEUSE1;
    return opd_device_make(type, type == OPD_CPU ? -1 : (int)index);
}
/* Returns 0 if `device`, a number of c10, is the CPU; otherwise sets an error and returns -1. */
OPDI_INTERNAL int opdi_aoti_cpu_only(int32_t device) {
    return device == 0 ? 0 : opd_fail(OPD_ERROR_ARGUMENT, "a compiled model uses memory on device type %d, but only "
                                      "models for the CPU can be used", (int)device);
}

