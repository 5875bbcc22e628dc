/* What opdispatch_cuda.cu uses of cuBLASLt: see cublas_v2.h. */
#ifndef OPD_EMU_CUBLASLT_H
#define OPD_EMU_CUBLASLT_H
#include "cublas_v2.h"
#endif
