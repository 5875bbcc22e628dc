/* opdispatch_cuda.cu - GPU kernels for opdispatch's operators, at the dispatch key CUDA.

   WHAT IT IS
     One translation unit.  Linked into a program, or loaded by it, it makes "cuda" a device and registers kernels for
     the built-in operators there; nothing else changes.  Where there is no GPU or no driver it registers nothing, and
     asking for a CUDA tensor is an error that says why.

   BUILD, with the CUDA Toolkit (13; compute capability 7.5 and up), linked in:
         nvcc -O3 -arch=all-major -c opdispatch_cuda.cu
         cc -O2 program.c opdispatch_cuda.o -o program -lm -L/usr/local/cuda/lib64 \
             -lcudart_static -lcublas -lcublasLt -lstdc++ -lpthread -ldl -lrt
     or as a plug-in, so that the same program starts where no CUDA library is installed:
         nvcc -O3 -arch=all-major -shared -Xcompiler -fPIC -DOPDISPATCH_PLUGIN opdispatch_cuda.cu \
             -o opdispatch_cuda.so -lcublas -lcublasLt
         ... opd_library_load("./opdispatch_cuda.so") ...
     -arch=sm_90 in place of -arch=all-major makes code for one kind of GPU, in three minutes of one core, and as many
     more for each other kind; --split-compile=0 has all cores work on it, -t 0 on several kinds of GPUs.  Without
     -arch nvcc makes code for compute capability 7.5 alone, which is warned of: newer GPUs run it, after the driver
     has compiled it anew when a program starts, and convolve bfloat16 without tensor cores.
     tests/first_gpu_run.sh builds, tests and measures all of it on a machine with a GPU.

   SEVERAL PROCESSES, a GPU each
     opd_group_device_add(group, device), called by all ranks of a group that there is (over MPI: examples/mpi_group.c),
     has tensors of that device moved by NCCL 2.14 or newer, those of the CPU by the group as before.  NCCL is needed
     only then, and not for compiling: libnccl.so.2 is loaded, or the file that OPD_NCCL names.  Collectives run on a
     stream of the group's own; nobody waits on the host.  NCCL has no reductions of int16, none by bits but of bool, no
     product, min or max of complex numbers, and no tags: these go by way of the host.  What is captured cannot have
     collectives in it.  A transfer that is not done in the group's time, or of which NCCL says that it failed, ends the
     group on this rank: its streams go on, and calls of the group, copies to the host and waiting for the device are
     errors that name it, until opd_group_unregister.

   CONTENTS (search for the anchor)
     >>cu:platform       errors, devices, launches, types, what threads of a block do together
     >>cu:memory         the caching allocator, pinned memory, copies
     >>cu:streams        streams, events, graphs
     >>cu:groups         process groups over NCCL
     >>cu:pointwise      the formulas
     >>cu:copy           strided and converting copies
     >>cu:random         random numbers
     >>cu:reductions     sums, extremes, norms
     >>cu:softmax        softmax and norms over rows
     >>cu:scans          scans and sorting
     >>cu:indexing       indexing, joining, scattering
     >>cu:pooling        pooling, padding, resampling
     >>cu:losses         losses
     >>cu:matmul         matrix products
     >>cu:convolution    convolution
     >>cu:optimizers     steps of optimizers
     >>cu:registration   which kernel is for which operator

   Licence: that of opdispatch.h.
*/
#include "opdispatch.h"

#include <cuda_runtime.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cublas_v2.h>
#include <mma.h>

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <unordered_map>
#include <vector>
#include <type_traits>

