/* opdispatch_cuda.cu - GPU kernels for opdispatch's operators, at the dispatch key CUDA.

   WHAT IT IS
     One translation unit.  When a program links or loads it, "cuda" becomes a device with kernels for the built-in
     operators.  Nothing else changes.  It looks for GPUs when the program first asks for one.  If there is no GPU or no
     driver, asking for a CUDA tensor fails with an error that says why.

   BUILD, with the CUDA Toolkit (13; compute capability 7.5 and up), linked in:
         nvcc -O3 -arch=all-major -c opdispatch_cuda.cu
         cc -O2 program.c opdispatch_cuda.o -o program -lm -L/usr/local/cuda/lib64 \
             -lcudart_static -lcublas -lcublasLt -lstdc++ -lpthread -ldl -lrt
     or as a plug-in, so that the same program starts where no CUDA library is installed:
         nvcc -O3 -arch=all-major -shared -Xcompiler -fPIC -DOPDISPATCH_PLUGIN opdispatch_cuda.cu \
             -o opdispatch_cuda.so -lcublas -lcublasLt
         ... opd_plugin_load("./opdispatch_cuda.so") ...
     -arch=sm_90 instead of -arch=all-major makes code for one kind of GPU.  This takes ten minutes on one core, and as
     many again for each other kind.  --split-compile=0 uses all cores, and -t 0 compiles for several kinds at once.
     For compute capability 9.0 (H100, H200), write -arch=sm_90a instead, or add
     -gencode arch=compute_90a,code=sm_90a to -arch=all-major: convolutions then multiply by warp groups.
     Without -arch, nvcc makes code for compute capability 7.5 alone, and the source warns of this.  Newer GPUs run
     such code after the driver has recompiled it at the start of the program.  Convolutions of bfloat16 then do not
     use tensor cores.
     tests/first_gpu_run.sh builds, tests and measures everything on a machine with a GPU.

   SEVERAL PROCESSES, a GPU each
     All ranks of an existing group call opd_group_device_add(group, device) (over MPI: examples/mpi_group.c).  Then
     NCCL 2.14 or newer moves the tensors of that device.  The group moves CPU tensors as before.  NCCL is only needed
     when it is used, not for compiling: the call loads libnccl.so.2, or the file named by the environment variable
     OPD_NCCL.  Collectives run on a separate stream of the group, and the host does not wait for them.  NCCL has no
     reductions of int16, no bitwise reductions except of bool, no product, min or max of complex numbers, and no tags.
     These transfers go through the host.  A capture cannot contain collectives.

     If a transfer exceeds the group's timeout, or NCCL reports that it failed, the group is ended on this rank.  Its
     communicator is aborted, so that work queued on the streams after it does not hang.  From then until
     opd_group_unregister, calls of the group, copies to the host and waits for the device fail with an error that
     names the group.

   CONTENTS (search for the anchor)
     >>cu:platform       errors, devices, launches, types, block-wide operations
     >>cu:memory         the caching allocator, pinned memory, copies
     >>cu:streams        streams, events, graphs
     >>cu:groups         process groups over NCCL
     >>cu:pointwise      pointwise formulas
     >>cu:copy           strided and converting copies
     >>cu:complex        pointwise formulas of complex numbers
     >>cu:random         random numbers
     >>cu:reductions     sums, extremes, norms
     >>cu:softmax        softmax and norms over rows
     >>cu:scans          scans and sorting
     >>cu:indexing       indexing, joining, scattering
     >>cu:pooling        pooling, padding, resampling
     >>cu:resampling     resampling of images, volumes and sequences
     >>cu:detection      operators of models that detect objects in images
     >>cu:losses         losses
     >>cu:matmul         matrix products
     >>cu:float8         conversions to and from floats of 8 bits
     >>cu:blocks         weights in blocks of few bits
     >>cu:fft            discrete Fourier transforms
     >>cu:solver         factorizations of matrices, linear equations, eigenvalues and singular values
     >>cu:triangles      equations with triangular matrices, and operators that unpack factors
     >>cu:ldl            L D L^T and L D L^H with row and column exchanges
     >>cu:convolution    convolution
     >>cu:attention      attention
     >>cu:recurrent      cells of recurrent layers
     >>cu:lists          lists of tensors
     >>cu:special        special functions
     >>cu:samples        random numbers from distributions, such as Poisson, binomial and gamma
     >>cu:optimizers     steps of optimizers
     >>cu:compiled       parts of compiled graphs
     >>cu:registration   registering kernels for operators

   Licence: that of opdispatch.h.
*/
#include "opdispatch.h"

#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cublas_v2.h>
#include <cublasLt.h>
#include <mma.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
#include <type_traits>

