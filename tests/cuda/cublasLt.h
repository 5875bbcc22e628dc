/* The functions of cuBLASLt that opdispatch_cuda.cu uses: see cublas_v2.h. */
#ifndef OPD_EMU_CUBLASLT_H
#define OPD_EMU_CUBLASLT_H
#include "cublas_v2.h"
#endif
