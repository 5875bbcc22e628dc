/* The CUDA half of ops.c, in its own file.  Registering it does not need a device. */
#include "opdispatch.h"

static int square_plus_cuda(opd_call *call) {
    (void)call;
    return opd_fail(OPD_ERROR_USER, "the CUDA half was called");
}
#ifdef __cplusplus
extern "C"
#endif
OPD_EXPORT void linkage_cuda_use(void);

OPD_LIBRARY_IMPL(linkage, CUDA, lib) { opd_impl(lib, "square_plus", square_plus_cuda); }
void linkage_cuda_use(void) { OPD_USE_LIBRARY(linkage_CUDA); }
