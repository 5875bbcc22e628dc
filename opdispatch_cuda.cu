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
     >>cu:convolution    convolution
     >>cu:attention      attention
     >>cu:recurrent      cells of recurrent layers
     >>cu:lists          lists of tensors
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

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:platform    errors, devices, launches, types, block-wide operations
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_CU_MAX_DEVICES 16
#define OPDI_CU_WARP 32
#define OPDI_CU_ALL_LANES 0xffffffffu

/* The name of an operator and its kernel.  A section's list of kernels ends with {NULL, NULL}. */
typedef struct opdi_cu_registration { const char *name; opd_kernel kernel; } opdi_cu_registration;

static bool opdi_cu_debug;                       /* wait after each launch */

/* Returns whether no CUDA call of this process can succeed after the error e: an uncorrectable error of memory or
   NVLink (214, 220, 226), an illegal address (700), a timeout (702), a failed assertion (710), an error of the hardware
   or of a launch (714 to 719), or a leak of tensor memory (721). */
static bool opdi_cu_sticks(cudaError_t e) {
    const int n = (int)e;
    return n == 214 || n == 220 || n == 226 || n == 700 || n == 702 || n == 710 || (n >= 714 && n <= 719) || n == 721;
}
/* Sets the error that memory of the host ran out.  Returns -1. */
static int opdi_cu_no_memory(const char *what) {
    return opd_fail(OPD_ERROR_MEMORY, "out of memory: %s could not be allocated", what);
}
/* Sets an error that says that `what` failed with e.  Returns -1. */
static int opdi_cu_failed(cudaError_t e, const char *what) {
    (void)cudaGetLastError();                    /* clears an error that is not permanent */
    return opd_fail(e == cudaErrorMemoryAllocation ? OPD_ERROR_MEMORY : OPD_ERROR_KERNEL,
                    "CUDA error: %s (%s in %s)%s%s%s", cudaGetErrorString(e), cudaGetErrorName(e), what,
                    e == cudaErrorNoKernelImageForDevice
                    ? "\nopdispatch_cuda.cu was compiled for other GPUs than this one: compile it with -arch=native."
                    : "",
                    opdi_cu_sticks(e) ? "\nThe CUDA context of this process is lost: all CUDA calls fail until the "
                    "program is started again. Operators on the CPU still work." : "",
                    opdi_cu_debug ? "" : "\nKernels run asynchronously, so an earlier call may have failed. Call "
                    "opd_cuda_debug_set(true) or set OPD_CUDA_DEBUG=1 to find it.");
}
#define OPDI_CU_TRY(call, what) do { \
        cudaError_t opdi_cu_e = (call); \
        if (opdi_cu_e != cudaSuccess) { return opdi_cu_failed(opdi_cu_e, what); } \
    } while (0)

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
#error "opdispatch_cuda.cu: needs compute capability 7.5 (nvcc -arch=sm_75) or newer"
#endif
/* Warns if code was compiled for compute capability 7.5 alone, which is what nvcc without -arch does.
   __CUDA_ARCH_LIST__ lists the versions, oldest first. */
#if defined(__CUDA_ARCH_LIST__) && !defined(__CUDA_ARCH__)
#define OPDI_CU_FIRST(first, ...) first
#define OPDI_CU_SECOND(first, second, ...) second
#define OPDI_CU_OF(which, ...) which(__VA_ARGS__, 0, 0)
#if OPDI_CU_OF(OPDI_CU_SECOND, __CUDA_ARCH_LIST__) == 0 && OPDI_CU_OF(OPDI_CU_FIRST, __CUDA_ARCH_LIST__) < 800
#warning "compiled only for compute capability 7.5: newer GPUs compile the code again when a program starts, and \
convolve bfloat16 more slowly.  Compile with -arch=native or -arch=all-major."
#endif
#endif

//== devices ===========================================================================================================

/* The properties of a device that are needed often. */
typedef struct opdi_cu_device { int multiprocessors, threads, shared, major, minor; } opdi_cu_device;
static opdi_cu_device opdi_cu_devices[OPDI_CU_MAX_DEVICES];
static thread_local cudaStream_t opdi_cu_streams[OPDI_CU_MAX_DEVICES];       /* the current streams of this thread */

static int opdi_cu_current() {
    int d = 0;
    return cudaGetDevice(&d) == cudaSuccess && d < OPDI_CU_MAX_DEVICES ? d : 0;
}
static const opdi_cu_device *opdi_cu_properties() { return &opdi_cu_devices[opdi_cu_current()]; }
static void opdi_cu_gather_flush();             /* see >>cu:lists: launches what this thread has only noted so far */
/* Returns the calling thread's current stream of the current device, for new work. */
static cudaStream_t opdi_cu_stream() {
    opdi_cu_gather_flush();
    return opdi_cu_streams[opdi_cu_current()];
}
/* While an object of this type exists, the calling thread's current device is `index`, or, if this is -1, the device
   that was current before. */
struct opdi_cu_on {
    int was, index;
    opdi_cu_on(int index_) : was(opdi_cu_current()), index(index_ < 0 ? was : index_) {
        if (was != index) { (void)cudaSetDevice(index); }
    }
    ~opdi_cu_on() { if (was != index) { (void)cudaSetDevice(was); } }
    opdi_cu_on(const opdi_cu_on &) = delete;
    opdi_cu_on &operator=(const opdi_cu_on &) = delete;
};

//== faults that kernels find ==========================================================================================
//
//  An index that is out of range is never used as an address.  The kernel notes it as a fault, in memory of the host,
//  and goes on.  The next call that waits for the device fails and names the operator; in debug mode, the launch itself
//  fails.

typedef struct opdi_cu_fault {
    volatile int32_t set;
    const opd_op *op;
    const char *text;                             /* the message; NULL: the message for an index that is out of range */
    int64_t index, size;
} opdi_cu_fault;
static std::atomic<opdi_cu_fault *> opdi_cu_the_fault;     /* pinned memory, allocated for the first kernel that may
                                                              note a fault */
static opdi_cu_fault *opdi_cu_fault_make();

/* The argument with which a kernel notes faults.  opdi_cu_guard_of makes it. */
struct opdi_cu_guard {
    opdi_cu_fault *fault;
    const opd_op *op;
    const char *text;
    __device__ void note(int64_t index, int64_t size) const {
        if (fault->set) { return; }
        fault->op = op; fault->text = text; fault->index = index; fault->size = size;
        __threadfence_system();
        fault->set = 1;
    }
    /* Returns whether 0 <= index < size; notes a fault if not. */
    __device__ __forceinline__ bool inside(int64_t index, int64_t size) const {
        if ((uint64_t)index < (uint64_t)size) { return true; }
        note(index, size);
        return false;
    }
};
/* Makes the guard of a kernel.  If this fails, sets an error; opdi_cu_launch then does not launch the kernel. */
static opdi_cu_guard opdi_cu_guard_of(const opd_call *call, const char *text = NULL) {
    const opdi_cu_guard g = {opdi_cu_fault_make(), opd_call_operator(call), text};
    return g;
}
static std::atomic<int> opdi_cu_nlost;           /* number of process groups that have ended after an error */
static int opdi_cu_lost_check();                 /* fails if one of these is on the current device */
static std::atomic<int> opdi_cu_ngroups;
static void opdi_cu_groups_flush(int index);     /* begins sends and receives, before the host waits for a device */
/* Called after waiting for the device.  If a kernel has noted a fault (which is forgotten now), or a process group of
   the device has ended, sets an error and returns -1; otherwise returns 0. */
static int opdi_cu_faults() {
    opdi_cu_fault *f = opdi_cu_the_fault, found;
    if (opdi_cu_nlost != 0 && opdi_cu_lost_check()) { return -1; }
    if (!f || !f->set) { return 0; }
    found.op = f->op; found.text = f->text; found.index = f->index; found.size = f->size;
    f->set = 0;                                   /* from here on, the next fault can be noted */
    if (found.text) { return opd_fail(OPD_ERROR_INDEX, "%s on CUDA: %s", opd_op_name(found.op), found.text); }
    return opd_fail(OPD_ERROR_INDEX, "%s on CUDA: index %lld is out of bounds for dimension with size %lld",
                    opd_op_name(found.op), (long long)found.index, (long long)found.size);
}

//== launches ==========================================================================================================

static __host__ __device__ __forceinline__ int64_t opdi_cu_ceil(int64_t n, int64_t d) { return (n + d - 1) / d; }
/* Returns the number of blocks for n items, one per thread, for kernels that loop with a step of gridDim.x *
   blockDim.x.  It is at most a few times the number of blocks that run at once. */
static dim3 opdi_cu_grid(int64_t n, int threads) {
    const opdi_cu_device *p = opdi_cu_properties();
    const int64_t most = (int64_t)p->multiprocessors * (p->threads / threads) * 8, want = opdi_cu_ceil(n, threads);
    return dim3((unsigned)(want < 1 ? 1 : want < most ? want : most));
}
/* Returns the number of blocks for n items, one per block, for kernels that loop with a step of gridDim.x. */
static dim3 opdi_cu_grid_rows(int64_t n) { return dim3((unsigned)(n < 1 ? 1 : n < (1 << 20) ? n : (1 << 20))); }

static int opdi_cu_launch_failed(cudaError_t e, const void *kernel) {
    const char *name = "a kernel";
#if !defined(OPD_CUDA_EMULATED)
    if (cudaFuncGetName(&name, kernel) != cudaSuccess) { name = "a kernel"; }
#else
    (void)kernel;
#endif
    return opdi_cu_failed(e, name);
}
static bool opdi_cu_captured(cudaStream_t stream);
/* In debug mode, waits for the work on the stream, unless the stream is being captured. */
static cudaError_t opdi_cu_debug_wait(cudaStream_t stream) {
    return !opdi_cu_debug || opdi_cu_captured(stream) ? cudaSuccess : cudaStreamSynchronize(stream);
}
/* The most bytes of __shared__ variables in a kernel that is launched with more than 47 KiB of shared memory. */
#define OPDI_CU_STATIC_SHARED 1024
/* Runs kernel<<<grid, block, shared>>>(args...) on the current stream.  Returns 0, or -1 and sets an error that names
   the kernel.  If a kernel uses more than 48 KiB of shared memory, its __shared__ variables included, the size must be
   allowed before the launch.  This function allows all that the device has instead of only `shared` bytes, because
   another thread may launch the same kernel with fewer bytes at the same time. */
template <typename... P, typename... A>
static int opdi_cu_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, A... args) {
    cudaLaunchConfig_t config = cudaLaunchConfig_t();
    cudaError_t e = cudaSuccess;
    if (!opd_ok()) { return -1; }                /* for example, opdi_cu_data has failed for a tensor on another
                                                    device */
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = opdi_cu_stream();
    if (shared > 48 * 1024 - OPDI_CU_STATIC_SHARED) {
        e = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 opdi_cu_properties()->shared - OPDI_CU_STATIC_SHARED);
    }
    if (e == cudaSuccess) { e = cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...); }
    if (e == cudaSuccess) { e = opdi_cu_debug_wait(config.stream); }
    if (e == cudaSuccess) { return opdi_cu_debug ? opdi_cu_faults() : 0; }
    return opdi_cu_launch_failed(e, (const void *)kernel);
}

/* OPDI_CU_UNROLL and OPDI_CU_ROLLED say whether the following loop is unrolled; they can also be used in macros.
   OPDI_CU_UNROLL_4 unrolls it 4 times.
   OPDI_CU_NOINLINE: the function is not inlined. */
#if defined(OPD_CUDA_EMULATED)
#define OPDI_CU_UNROLL
#define OPDI_CU_UNROLL_4
#define OPDI_CU_ROLLED
#define OPDI_CU_NOINLINE __attribute__((noinline))
#else
#define OPDI_CU_UNROLL _Pragma("unroll")
#define OPDI_CU_UNROLL_4 _Pragma("unroll 4")
#define OPDI_CU_ROLLED _Pragma("unroll 1")
#define OPDI_CU_NOINLINE __noinline__
#endif
/* In a kernel: `unsigned char *name` is the block's dynamic shared memory, aligned to 16 bytes. */
#if defined(OPD_CUDA_EMULATED)
#define OPDI_CU_SHARED(name) unsigned char *name = opd_cuda_emulated_shared()
#else
extern __shared__ __align__(16) unsigned char opdi_cu_shared_memory[];
#define OPDI_CU_SHARED(name) unsigned char *name = opdi_cu_shared_memory
#endif

//== types =============================================================================================================

typedef __half opdi_cu_f16;
typedef __nv_bfloat16 opdi_cu_bf16;
struct alignas(16) opdi_cu_16 { uint64_t a, b; };                       /* 16 bytes, for moving elements without
                                                                           conversion */

/* Sets an error because no kernel exists for a dtype, and returns -1.  This should not happen: dtypes are checked when
   the result is made. */
static int opdi_cu_no_dtype(opd_scalar_type dtype) {
    return opd_fail(OPD_ERROR_DTYPE, "not implemented for '%s' on CUDA", opd_dtype_name(dtype));
}
/* OPDI_CU_FLOATS(dtype, T, statements) runs the statements with T the C++ type of dtype, in a function that returns
   int.  The macros below do the same for other sets of dtypes. */
#define OPDI_CU_CASE(number, type, T, ...) case number: { typedef type T; __VA_ARGS__; break; }
#define OPDI_CU_CASES_FLOAT(T, ...) \
    OPDI_CU_CASE(OPD_FLOAT32, float, T, __VA_ARGS__) OPDI_CU_CASE(OPD_FLOAT64, double, T, __VA_ARGS__) \
    OPDI_CU_CASE(OPD_FLOAT16, opdi_cu_f16, T, __VA_ARGS__) OPDI_CU_CASE(OPD_BFLOAT16, opdi_cu_bf16, T, __VA_ARGS__)
#define OPDI_CU_CASES_INT(T, ...) \
    OPDI_CU_CASE(OPD_UINT8, uint8_t, T, __VA_ARGS__) OPDI_CU_CASE(OPD_INT8, int8_t, T, __VA_ARGS__) \
    OPDI_CU_CASE(OPD_INT16, int16_t, T, __VA_ARGS__) OPDI_CU_CASE(OPD_INT32, int32_t, T, __VA_ARGS__) \
    OPDI_CU_CASE(OPD_INT64, int64_t, T, __VA_ARGS__)
#define OPDI_CU_FLOATS(dtype, T, ...) \
    switch (dtype) { OPDI_CU_CASES_FLOAT(T, __VA_ARGS__) default: return opdi_cu_no_dtype(dtype); }
/* For all dtypes except the complex ones. */
#define OPDI_CU_ALL(dtype, T, ...) \
    switch (dtype) { OPDI_CU_CASES_FLOAT(T, __VA_ARGS__) OPDI_CU_CASES_INT(T, __VA_ARGS__) \
        OPDI_CU_CASE(OPD_BOOL, bool, T, __VA_ARGS__) default: return opdi_cu_no_dtype(dtype); }
/* For all sizes of elements, for kernels that only move elements: T is uint8_t to uint64_t, or opdi_cu_16. */
#define OPDI_CU_SIZES(dtype, T, ...) \
    switch (opd_dtype_size(dtype)) { \
        OPDI_CU_CASE(1, uint8_t, T, __VA_ARGS__) OPDI_CU_CASE(2, uint16_t, T, __VA_ARGS__) \
        OPDI_CU_CASE(4, uint32_t, T, __VA_ARGS__) OPDI_CU_CASE(8, uint64_t, T, __VA_ARGS__) \
        OPDI_CU_CASE(16, opdi_cu_16, T, __VA_ARGS__) default: return opdi_cu_no_dtype(dtype); }
/* For the dtypes of indices: int32 and int64. */
#define OPDI_CU_INDEX(dtype, T, ...) \
    switch (dtype) { OPDI_CU_CASE(OPD_INT32, int32_t, T, __VA_ARGS__) OPDI_CU_CASE(OPD_INT64, int64_t, T, __VA_ARGS__) \
        default: return opdi_cu_no_dtype(dtype); }

/* The type in which sums of T are computed: float for float and 16-bit floats, double, or int64_t for integers and
   bool. */
template <typename T> struct opdi_cu_acc_of { typedef int64_t type; };
template <> struct opdi_cu_acc_of<float> { typedef float type; };
template <> struct opdi_cu_acc_of<double> { typedef double type; };
template <> struct opdi_cu_acc_of<opdi_cu_f16> { typedef float type; };
template <> struct opdi_cu_acc_of<opdi_cu_bf16> { typedef float type; };
template <typename T> using opdi_cu_acc = typename opdi_cu_acc_of<T>::type;

/* Converts a number to type C: 16-bit floats by way of float; to bool, by comparing with 0. */
template <typename C, typename T> struct opdi_cu_convert {
    static __host__ __device__ __forceinline__ C of(T v) { return static_cast<C>(v); }
};
/* Returns the low bits of v.  Floats are converted to integers of up to 32 bits by way of int64_t. */
template <typename C> __host__ __device__ __forceinline__ C opdi_cu_narrow(int64_t v) { return static_cast<C>(v); }
#define OPDI_CU_CONVERT_NARROW(C) \
    template <> struct opdi_cu_convert<C, float> { \
        static __host__ __device__ __forceinline__ C of(float v) { return opdi_cu_narrow<C>((int64_t)v); } \
    }; \
    template <> struct opdi_cu_convert<C, double> { \
        static __host__ __device__ __forceinline__ C of(double v) { return opdi_cu_narrow<C>((int64_t)v); } \
    };
OPDI_CU_CONVERT_NARROW(uint8_t)
OPDI_CU_CONVERT_NARROW(int8_t)
OPDI_CU_CONVERT_NARROW(int16_t)
OPDI_CU_CONVERT_NARROW(int32_t)
template <typename T> struct opdi_cu_convert<bool, T> {
    static __host__ __device__ __forceinline__ bool of(T v) { return v != T(0); }
};
template <> struct opdi_cu_convert<bool, bool> {
    static __host__ __device__ __forceinline__ bool of(bool v) { return v; }
};
template <typename C> struct opdi_cu_convert<C, opdi_cu_f16> {
    static __host__ __device__ __forceinline__ C of(opdi_cu_f16 v) {
        return opdi_cu_convert<C, float>::of(__half2float(v));
    }
};
template <typename C> struct opdi_cu_convert<C, opdi_cu_bf16> {
    static __host__ __device__ __forceinline__ C of(opdi_cu_bf16 v) {
        return opdi_cu_convert<C, float>::of(__bfloat162float(v));
    }
};
template <typename T> struct opdi_cu_convert<opdi_cu_f16, T> {
    static __host__ __device__ __forceinline__ opdi_cu_f16 of(T v) { return __float2half_rn((float)v); }
};
template <typename T> struct opdi_cu_convert<opdi_cu_bf16, T> {
    static __host__ __device__ __forceinline__ opdi_cu_bf16 of(T v) { return __float2bfloat16_rn((float)v); }
};
#define OPDI_CU_CONVERT_SHORT(C, T, expr) \
    template <> struct opdi_cu_convert<C, T> { \
        static __host__ __device__ __forceinline__ C of(T v) { return expr; } \
    };
OPDI_CU_CONVERT_SHORT(bool, opdi_cu_f16, __half2float(v) != 0.0f)
OPDI_CU_CONVERT_SHORT(bool, opdi_cu_bf16, __bfloat162float(v) != 0.0f)
OPDI_CU_CONVERT_SHORT(opdi_cu_f16, opdi_cu_f16, v)
OPDI_CU_CONVERT_SHORT(opdi_cu_bf16, opdi_cu_bf16, v)
OPDI_CU_CONVERT_SHORT(opdi_cu_f16, opdi_cu_bf16, __float2half_rn(__bfloat162float(v)))
OPDI_CU_CONVERT_SHORT(opdi_cu_bf16, opdi_cu_f16, __float2bfloat16_rn(__half2float(v)))

/* opdi_cu_cast<C>(v) returns v converted to C, opdi_cu_load<C>(p) returns *p converted to C, and opdi_cu_store(p, v)
   stores v in *p. */
template <typename C, typename T> __host__ __device__ __forceinline__ C opdi_cu_cast(T v) {
    return opdi_cu_convert<C, T>::of(v);
}
template <typename C, typename T> __device__ __forceinline__ C opdi_cu_load(const T *p) { return opdi_cu_cast<C>(*p); }
template <typename T, typename C> __device__ __forceinline__ void opdi_cu_store(T *p, C v) { *p = opdi_cu_cast<T>(v); }

/* N elements that are loaded or stored by one instruction.  N * sizeof(T) is at most 16, and addresses must be
   multiples of N * sizeof(T). */
template <typename T, int N> struct alignas(sizeof(T) * N) opdi_cu_vector { T at[N]; };
template <int N, typename T> __device__ __forceinline__ opdi_cu_vector<T, N> opdi_cu_load_vector(const T *p) {
    return *reinterpret_cast<const opdi_cu_vector<T, N> *>(p);
}
template <int N, typename T> __device__ __forceinline__ void opdi_cu_store_vector(T *p, opdi_cu_vector<T, N> v) {
    *reinterpret_cast<opdi_cu_vector<T, N> *>(p) = v;
}
/* Returns element w of a vector, converted to the type C in which the kernel computes.  Two bfloat16 share a register
   until this function makes a float of one of them, by a shift or a mask; as separate elements, each would take a
   register. */
template <typename C, typename T, int W>
__device__ __forceinline__ C opdi_cu_taken(const opdi_cu_vector<T, W> &v, int w) {
    if constexpr (std::is_same<T, opdi_cu_bf16>::value && W % 2 == 0) {
        uint32_t two;
        memcpy(&two, v.at + w / 2 * 2, sizeof two);
        return __uint_as_float(w % 2 ? two & 0xffff0000u : two << 16);
    } else { return opdi_cu_cast<C>(v.at[w]); }
}
static __host__ __device__ __forceinline__ bool opdi_cu_aligned(const void *p) { return ((uintptr_t)p & 15) == 0; }

//== tensors ===========================================================================================================

/* Returns result i of a call whose results were made by opd_results_from_fake, or NULL if the result is undefined. */
static opd_tensor *opdi_cu_result(opd_call *call, int i) {
    const opd_value *v = &opd_call_rets(call)[i];
    return v->tag == OPD_TAG_TENSOR ? v->u.t : NULL;
}
/* Returns the address of a CUDA tensor's first element, or NULL and sets an error if the tensor is on another
   device. */
template <typename T> static T *opdi_cu_data(const opd_tensor *t) {
    return static_cast<T *>(opd_device_data(t, OPD_CUDA));
}
/* Returns a new tensor on the current device, which the innermost scope owns.  Returns NULL and sets an error if it
   fails. */
static opd_tensor *opdi_cu_new(opd_ints sizes, opd_scalar_type dtype) {
    return opd_tensor_new_on(sizes, dtype, opd_device_make(OPD_CUDA, -1));
}
/* Returns scratch memory on the current device, or NULL and sets an error.  Like the memory of each tensor, it may be
   reused by later work on the same stream. */
static void *opdi_cu_scratch(int64_t bytes) {
    const int64_t n = bytes < 1 ? 1 : bytes;
    opd_tensor *t = opdi_cu_new(opd_ints_of(&n, 1), OPD_UINT8);
    return t ? opd_device_data(t, OPD_CUDA) : NULL;
}

//== operations of a warp or block =====================================================================================

/* Returns the value v of another lane: the lane whose number differs in the bits of `mask`.  The size of v is a
   multiple of 4 bytes. */
template <typename A> __device__ __forceinline__ A opdi_cu_shuffle_xor(A v, int mask) {
    static_assert(sizeof(A) % 4 == 0, "whole words");
    union { A v; int w[sizeof(A) / 4]; } u = {v};
#pragma unroll
    for (int i = 0; i < (int)(sizeof(A) / 4); i++) { u.w[i] = __shfl_xor_sync(OPDI_CU_ALL_LANES, u.w[i], mask); }
    return u.v;
}
/* Combines the values v of a warp's lanes by f.  Each lane gets the result. */
template <typename A, typename F> __device__ __forceinline__ A opdi_cu_warp_reduce(A v, F f) {
#pragma unroll
    for (int m = OPDI_CU_WARP / 2; m > 0; m /= 2) { v = f(v, opdi_cu_shuffle_xor(v, m)); }
    return v;
}
/* Combines the values v of all threads of a block by f, whose neutral value is `none`.  The block has only dim x, and
   whole warps.  All threads must call this, and each gets the result. */
template <typename A, typename F> __device__ A opdi_cu_block_reduce(A v, F f, A none) {
    __shared__ __align__(16) unsigned char scratch[OPDI_CU_WARP * sizeof(A)];
    A *parts = reinterpret_cast<A *>(scratch);
    const int lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP;
    v = opdi_cu_warp_reduce(v, f);
    __syncthreads();                              /* `parts` may still be read by a previous call */
    if (lane == 0) { parts[warp] = v; }
    __syncthreads();
    v = lane < (int)blockDim.x / OPDI_CU_WARP ? parts[lane] : none;
    return opdi_cu_warp_reduce(v, f);
}
struct opdi_cu_sum { template <typename A> __device__ __forceinline__ A operator()(A a, A b) const { return a + b; } };

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:memory      the caching allocator, pinned memory, copies
//
//  cudaMalloc provides segments, which are cut into blocks.  Neighbouring free blocks are joined.  Free blocks are kept
//  by stream and size.  A block is reused only on the stream that it was allocated on, where the order of the work
//  makes this safe.  While a stream is captured, its memory comes from a pool of the capture, which no other work uses.
//
//  If other streams use a block, too (opd_tensor_record_stream), an event is recorded on each of these streams when the
//  block is freed.  The same is done for pinned memory that copies read or write.  The block can be reused when all its
//  events have passed.
//
//  The lock is only held while these tables are read or changed.  It is released while CUDA allocates or frees memory,
//  or waits for events.
//----------------------------------------------------------------------------------------------------------------------

struct opdi_cu_pool;
typedef struct opdi_cu_use { int device; cudaStream_t stream; } opdi_cu_use;
/* A block of device memory or, if `pool` is NULL, of pinned host memory. */
typedef struct opdi_cu_piece {
    char *at;
    size_t bytes;
    opdi_cu_pool *pool;
    cudaStream_t stream;
    opdi_cu_piece *before, *after;                /* neighbours in the segment, or NULL */
    bool used;
    int marks;                                    /* number of events that the block waits for */
    std::vector<opdi_cu_use> uses;                /* other streams that use the block */
} opdi_cu_piece;
struct opdi_cu_piece_order {
    bool operator()(const opdi_cu_piece *a, const opdi_cu_piece *b) const {
        return a->stream != b->stream ? (uintptr_t)a->stream < (uintptr_t)b->stream
            : a->bytes != b->bytes ? a->bytes < b->bytes : a->at < b->at;
    }
};
/* The random words that a generator provides during a capture.  In a replay, they are counted from the generator's
   position at that time.  `state` is the memory from which the kernels of a replay read the key and this position. */
typedef struct opdi_cu_sequence {
    opd_generator *generator;
    uint64_t key, at;
    int64_t words;
    opdi_cu_piece *state;
} opdi_cu_sequence;
/* The memory of a device, or of a captured graph. */
struct opdi_cu_pool {
    int device;
    bool captures;
    std::set<opdi_cu_piece *, opdi_cu_piece_order> free;
    cudaStream_t stream;                          /* for a capture: its first stream */
    unsigned long long id;                        /* for a capture: CUDA's id */
    const char *broken;                           /* a request that made the capture fail, or NULL */
    std::vector<opdi_cu_sequence> sequences;
};
typedef struct opdi_cu_mark { cudaEvent_t event; opdi_cu_piece *of; } opdi_cu_mark;
static std::mutex opdi_cu_memory_lock;            /* protects the variables below */
typedef std::unique_lock<std::mutex> opdi_cu_hold;
static std::mutex opdi_cu_release_lock;           /* held while memory is given back to CUDA; taken before
                                                     opdi_cu_memory_lock */
static opdi_cu_pool opdi_cu_pools[OPDI_CU_MAX_DEVICES];
static std::unordered_map<void *, opdi_cu_piece *> *opdi_cu_all_pieces;          /* by address; never destroyed */
static std::map<char *, opdi_cu_piece *> *opdi_cu_all_pinned;
static std::multimap<size_t, opdi_cu_piece *> *opdi_cu_free_pinned;
static int64_t opdi_cu_cached_bytes[OPDI_CU_MAX_DEVICES];
static bool opdi_cu_no_cache;                     /* OPD_CUDA_NO_CACHE=1: each block is allocated by cudaMalloc */
static std::vector<opdi_cu_pool *> *opdi_cu_capturing;                           /* pools of the current captures */
static std::atomic<int> opdi_cu_ncapturing;                                      /* number of the current captures */
static std::vector<opdi_cu_mark> *opdi_cu_marks;
static std::vector<opdi_cu_piece *> *opdi_cu_held;            /* blocks whose events are recorded when all captures have
                                                                 ended */
static std::vector<opdi_cu_use> *opdi_cu_idle_streams;        /* freed streams, for reuse */

//== captures of streams ===============================================================================================

/* Returns the pool of the capture that a stream takes part in, or NULL if it is not being captured.  Called under the
   lock. */
static opdi_cu_pool *opdi_cu_capture_pool(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    unsigned long long id = 0;
    if (opdi_cu_capturing->empty()) { return NULL; }
    if (cudaStreamGetCaptureInfo(stream, &status, &id) != cudaSuccess) { (void)cudaGetLastError(); }
    for (opdi_cu_pool *pool : *opdi_cu_capturing) {
        if (pool->stream == stream || (status == cudaStreamCaptureStatusActive && pool->id == id)) { return pool; }
    }
    return NULL;
}
static bool opdi_cu_captured(cudaStream_t stream) {
    if (opdi_cu_ncapturing == 0) { return false; }
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    return opdi_cu_capture_pool(stream) != NULL;
}
/* Returns 0 unless the stream is being captured.  If it is, marks its capture as broken, sets an error and returns -1.
   `what` names the request. */
static int opdi_cu_uncaptured(cudaStream_t stream, const char *what) {
    if (opdi_cu_ncapturing == 0) { return 0; }
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    opdi_cu_pool *pool = opdi_cu_capture_pool(stream);
    if (!pool) { return 0; }
    if (!pool->broken) { pool->broken = what; }
    return opd_fail(OPD_ERROR_KERNEL, "CUDA: %s cannot be captured, because captured work runs only when it is "
                    "replayed", what);
}
/* Returns 0 unless a stream of device `index` is being captured.  If there is one, sets an error and returns -1. */
static int opdi_cu_none_captured(int index, const char *what) {
    if (opdi_cu_ncapturing == 0) { return 0; }
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    for (const opdi_cu_pool *pool : *opdi_cu_capturing) {
        if (pool->device == index) {
            return opd_fail(OPD_ERROR_KERNEL, "CUDA: %s is not possible while a stream of cuda:%d is being captured",
                            what, index);
        }
    }
    return 0;
}

//== blocks of memory ==================================================================================================

#define OPDI_CU_SMALL ((size_t)1 << 20)           /* up to this size, blocks are in segments of 2 MiB */
#define OPDI_CU_LARGE ((size_t)10 << 20)          /* from this size on, each block has its own segment; smaller
                                                     blocks are in segments of 20 MiB */
static size_t opdi_cu_segment_bytes(size_t bytes) {
    const size_t mega = (size_t)2 << 20;
    return bytes <= OPDI_CU_SMALL ? mega : bytes < OPDI_CU_LARGE ? 10 * mega : (bytes + mega - 1) / mega * mega;
}
static void opdi_cu_piece_free(opdi_cu_piece *p) {
    opdi_cu_cached_bytes[p->pool->device] += (int64_t)p->bytes;
    p->pool->free.insert(p);
}
static void opdi_cu_piece_take(opdi_cu_piece *p) {
    opdi_cu_cached_bytes[p->pool->device] -= (int64_t)p->bytes;
    p->pool->free.erase(p);
}
/* Returns the smallest free block of the stream with at least this many bytes, or NULL.  Small blocks are not cut from
   large ones.  If `whole` is true, the block must be a whole segment. */
static opdi_cu_piece *opdi_cu_piece_find(opdi_cu_pool *pool, cudaStream_t stream, size_t bytes, bool whole) {
    opdi_cu_piece key = {NULL, bytes, pool, stream, NULL, NULL, false, 0, {}};
    for (auto i = pool->free.lower_bound(&key); i != pool->free.end() && (*i)->stream == stream; ++i) {
        if (bytes <= OPDI_CU_SMALL && (*i)->bytes > (size_t)2 << 20) { break; }
        if (!whole || (!(*i)->before && !(*i)->after)) { return *i; }
    }
    return NULL;
}
static void opdi_cu_release(int device);
/* Returns whether a pool still exists.  (The pool of a capture may be freed while the lock is released.) */
static bool opdi_cu_pool_lives(const opdi_cu_pool *pool) {
    for (const opdi_cu_pool &p : opdi_cu_pools) { if (pool == &p) { return true; } }
    for (const opdi_cu_pool *p : *opdi_cu_capturing) { if (pool == p) { return true; } }
    return false;
}
/* Allocates a segment, and returns it as a block.  Returns NULL if memory is exhausted; if another error occurs,
   returns NULL and sets the error.  Releases the lock while it allocates. */
static opdi_cu_piece *opdi_cu_segment(opdi_cu_hold &hold, opdi_cu_pool *pool, int device, cudaStream_t stream,
                                      size_t bytes) {
    const opdi_cu_on on(device);
    void *at = NULL;
    cudaError_t e;
    hold.unlock();
    if ((e = cudaMalloc(&at, bytes)) == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        opdi_cu_release(device);
        e = cudaMalloc(&at, bytes);
    }
    hold.lock();
    if (e != cudaSuccess) {
        (void)cudaGetLastError();
        if (e != cudaErrorMemoryAllocation) { (void)opdi_cu_failed(e, "cudaMalloc"); }
        return NULL;
    }
    opdi_cu_piece *p = opdi_cu_pool_lives(pool) ? new (std::nothrow) opdi_cu_piece() : NULL;
    if (!p) { (void)cudaFree(at); return NULL; }
    p->at = (char *)at; p->bytes = bytes; p->pool = pool; p->stream = stream;
    (*opdi_cu_all_pieces)[at] = p;
    return p;
}
/* Cuts a block after its first `bytes` bytes, and frees the part after the cut as a separate block, unless that part is
   too small. */
static void opdi_cu_piece_split(opdi_cu_piece *p, size_t bytes) {
    opdi_cu_piece *rest;
    if (p->bytes - bytes < (p->bytes > OPDI_CU_LARGE ? OPDI_CU_SMALL : 512)) { return; }
    if (!(rest = new (std::nothrow) opdi_cu_piece(*p))) { return; }
    rest->at = p->at + bytes; rest->bytes = p->bytes - bytes; rest->before = p; rest->used = false;
    if (p->after) { p->after->before = rest; }
    p->after = rest; p->bytes = bytes;
    (*opdi_cu_all_pieces)[rest->at] = rest;
    opdi_cu_piece_free(rest);
}
/* Joins block p with the block after it in the segment. */
static void opdi_cu_piece_join(opdi_cu_piece *p) {
    opdi_cu_piece *q = p->after;
    p->bytes += q->bytes; p->after = q->after;
    if (q->after) { q->after->before = p; }
    opdi_cu_all_pieces->erase(q->at);
    delete q;
}
/* Frees a block that nothing uses any more. */
static void opdi_cu_block_free(opdi_cu_piece *p) {
    if (!p->pool && opdi_cu_no_cache) {
        opdi_cu_all_pinned->erase(p->at);
        (void)cudaFreeHost(p->at);
        delete p;
        return;
    }
    if (!p->pool) { opdi_cu_free_pinned->insert({p->bytes, p}); return; }
    p->used = false;
    if (p->after && !p->after->used) { opdi_cu_piece_take(p->after); opdi_cu_piece_join(p); }
    if (p->before && !p->before->used) { p = p->before; opdi_cu_piece_take(p); opdi_cu_piece_join(p); }
    opdi_cu_piece_free(p);
}
static void opdi_cu_use_add(opdi_cu_piece *p, int device, cudaStream_t stream) {
    for (const opdi_cu_use &u : p->uses) { if (u.stream == stream && u.device == device) { return; } }
    p->uses.push_back({device, stream});
}
/* Frees a block: at once or, if other streams use it, when the work queued on them is done.  During a capture, no event
   is recorded, because it would become a part of the capture; such blocks are freed later. */
static void opdi_cu_retire(opdi_cu_piece *p) {
    if (!p->uses.empty() && !opdi_cu_capturing->empty()) { opdi_cu_held->push_back(p); return; }
    for (const opdi_cu_use &u : p->uses) {
        const opdi_cu_on on(u.device);
        cudaEvent_t event = NULL;
        if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess &&
            cudaEventRecord(event, u.stream) == cudaSuccess) {
            opdi_cu_marks->push_back({event, p});
            p->marks++;
            continue;
        }
        (void)cudaStreamSynchronize(u.stream);
        if (event) { (void)cudaEventDestroy(event); }
        (void)cudaGetLastError();
    }
    p->uses.clear();
    if (p->marks == 0) { opdi_cu_block_free(p); }
}
static void opdi_cu_mark_passed(const opdi_cu_mark &m) {
    (void)cudaEventDestroy(m.event);
    if (--m.of->marks == 0) { opdi_cu_block_free(m.of); }
}
/* Frees the blocks whose events have passed. */
static void opdi_cu_marks_pass() {
    std::vector<opdi_cu_mark> left;
    for (const opdi_cu_mark &m : *opdi_cu_marks) {
        const cudaError_t e = cudaEventQuery(m.event);
        if (e != cudaSuccess) { (void)cudaGetLastError(); }
        if (e == cudaErrorNotReady) { left.push_back(m); } else { opdi_cu_mark_passed(m); }
    }
    opdi_cu_marks->swap(left);
}
/* Waits for the events of all blocks, and frees the blocks.  Releases the lock while it waits. */
static void opdi_cu_marks_wait(opdi_cu_hold &hold) {
    std::vector<opdi_cu_mark> all;
    all.swap(*opdi_cu_marks);
    hold.unlock();
    for (const opdi_cu_mark &m : all) {
        if (cudaEventSynchronize(m.event) != cudaSuccess) { (void)cudaGetLastError(); }
    }
    hold.lock();
    for (const opdi_cu_mark &m : all) { opdi_cu_mark_passed(m); }
}
/* Called when a stream is freed.  The stream no longer counts as a user of blocks, and blocks that were allocated on it
   move to the default stream. */
static void opdi_cu_stream_forget(int device, cudaStream_t stream) {
    auto forget = [&](opdi_cu_piece *p) {
        for (auto u = p->uses.begin(); u != p->uses.end();) {
            if (u->stream == stream && u->device == device) { u = p->uses.erase(u); } else { ++u; }
        }
        if (!p->pool || p->stream != stream || p->pool->device != device) { return; }
        if (!p->used) { p->pool->free.erase(p); }
        p->stream = NULL;
        if (!p->used) { p->pool->free.insert(p); }
    };
    for (auto &i : *opdi_cu_all_pieces) { forget(i.second); }
    for (auto &i : *opdi_cu_all_pinned) { forget(i.second); }
}

//== functions of the backend: memory ==================================================================================

/* Returns a block of a pool.  `bytes` is a multiple of 512.  Returns NULL if memory is exhausted; if another error
   occurs, returns NULL and sets the error.  Releases the lock while it allocates a segment. */
static opdi_cu_piece *opdi_cu_piece_new(opdi_cu_hold &hold, opdi_cu_pool *pool, cudaStream_t stream, size_t bytes) {
    const int device = pool->device;
    opdi_cu_pool *around = &opdi_cu_pools[device];
    opdi_cu_piece *p;
    if (!opdi_cu_marks->empty()) { opdi_cu_marks_pass(); }
    if ((p = opdi_cu_piece_find(pool, stream, bytes, false)) != NULL) { opdi_cu_piece_take(p); }
    else if (pool->captures && (p = opdi_cu_piece_find(around, stream, bytes, true)) != NULL) {
        opdi_cu_piece_take(p);                    /* moves a whole segment from the device's pool to the capture's */
        p->pool = pool;
    }
    else if (!(p = opdi_cu_segment(hold, pool, device, stream, opdi_cu_segment_bytes(bytes))) &&
             !(p = opdi_cu_segment(hold, pool, device, stream, bytes))) {
        /* while memory was given back, blocks may have become free */
        p = opdi_cu_pool_lives(pool) ? opdi_cu_piece_find(pool, stream, bytes, false) : NULL;
        if (!p) { return NULL; }
        opdi_cu_piece_take(p);
    }
    opdi_cu_piece_split(p, bytes);
    p->used = true;
    return p;
}
static const char *opdi_cu_size_text(char *text /*[32]*/, double bytes) {
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int k = 0;
    while (bytes >= 1024 && k < 6) { bytes /= 1024; k++; }
    (void)snprintf(text, 32, k ? "%.2f %s" : "%.0f %s", bytes, units[k]);
    return text;
}
static void opdi_cu_out_of_memory(int index, size_t bytes) {
    const opdi_cu_on on(index);
    const opd_memory m = opd_device_memory(opd_device_make(OPD_CUDA, index));
    size_t left = 0, all = 0;
    char text[5][32];
    cudaError_t e;
    if (!opd_ok()) { return; }                    /* another error is pending */
    if ((e = cudaMemGetInfo(&left, &all)) != cudaSuccess) {
        (void)cudaGetLastError();
        (void)opd_fail(OPD_ERROR_MEMORY, "CUDA out of memory: this program cannot use cuda:%d at all: %s (%s). Other "
                       "programs fill its memory, or use it exclusively (nvidia-smi lists them).", index,
                       cudaGetErrorString(e), cudaGetErrorName(e));
        return;
    }
    (void)opd_fail(OPD_ERROR_MEMORY, "CUDA out of memory. Tried to allocate %s. cuda:%d has a total capacity of %s of "
                   "which %s is free. Of the memory of this program %s is allocated, and %s is reserved but "
                   "unallocated.%s",
                   opdi_cu_size_text(text[0], (double)bytes), index, opdi_cu_size_text(text[1], (double)all),
                   opdi_cu_size_text(text[2], (double)left), opdi_cu_size_text(text[3], (double)m.live),
                   opdi_cu_size_text(text[4], (double)m.cached), opdi_cu_ncapturing == 0 ? ""
                   : " Reserved memory is not freed while a stream is being captured.");
}
static void *opdi_cu_alloc(void *user, int index, size_t bytes) {
    const size_t whole = (bytes + 511) & ~(size_t)511;
    void *at = NULL;
    (void)user;
    if (opdi_cu_no_cache && !opdi_cu_captured(opdi_cu_streams[index])) {
        const opdi_cu_on on(index);
        if (cudaMalloc(&at, bytes) != cudaSuccess) { (void)cudaGetLastError(); at = NULL; }
    } else {
        const cudaStream_t stream = opdi_cu_streams[index];
        opdi_cu_hold hold(opdi_cu_memory_lock);
        opdi_cu_pool *pool = opdi_cu_capture_pool(stream);
        if (pool && pool->device != index) {
            (void)opd_fail(OPD_ERROR_KERNEL, "CUDA: memory of cuda:%d cannot be allocated in a capture on cuda:%d",
                           index, pool->device);
            return NULL;
        }
        opdi_cu_piece *p = opdi_cu_piece_new(hold, pool ? pool : &opdi_cu_pools[index], stream, whole);
        at = p ? p->at : NULL;
    }
    if (!at) { opdi_cu_out_of_memory(index, bytes); }
    return at;
}
static void opdi_cu_free(void *user, int index, void *data, size_t bytes) {
    (void)user; (void)index; (void)bytes;
    opdi_cu_gather_flush();
    opdi_cu_hold hold(opdi_cu_memory_lock);
    auto i = opdi_cu_all_pieces->find(data);
    const bool known = i != opdi_cu_all_pieces->end();
    if (known) { opdi_cu_retire(i->second); }
    hold.unlock();
    if (!known && opdi_cu_no_cache) { (void)cudaFree(data); }     /* cudaFree waits for the device */
}
static int opdi_cu_record_stream(void *user, int index, void *data, int64_t stream) {
    const cudaStream_t s = (cudaStream_t)(intptr_t)stream;
    (void)user;
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    auto i = opdi_cu_all_pieces->find(data);
    if (i == opdi_cu_all_pieces->end()) { return 0; }
    if (i->second->stream != s || i->second->pool->device != index) { opdi_cu_use_add(i->second, index, s); }
    return 0;
}
/* Gives the segments in which no block is used back to CUDA.  Only one thread at a time runs this function.  Other
   threads that run out of memory at the same time wait here, and then try again. */
static void opdi_cu_release(int device) {
    std::lock_guard<std::mutex> alone(opdi_cu_release_lock);
    opdi_cu_hold hold(opdi_cu_memory_lock);
    std::vector<opdi_cu_piece *> whole;
    if (opdi_cu_capturing->empty()) { opdi_cu_marks_wait(hold); }
    if (!opdi_cu_capturing->empty()) { return; }
    for (opdi_cu_piece *p : opdi_cu_pools[device].free) { if (!p->before && !p->after) { whole.push_back(p); } }
    for (opdi_cu_piece *p : whole) { opdi_cu_piece_take(p); opdi_cu_all_pieces->erase(p->at); }
    hold.unlock();
    for (opdi_cu_piece *p : whole) { (void)cudaFree(p->at); delete p; }       /* cudaFree waits for work that uses the
                                                                                 memory */
}
static void opdi_cu_release_pinned() {
    std::multimap<size_t, opdi_cu_piece *> all;
    opdi_cu_hold hold(opdi_cu_memory_lock);
    all.swap(*opdi_cu_free_pinned);
    for (auto &i : all) { opdi_cu_all_pinned->erase(i.second->at); }
    hold.unlock();
    for (auto &i : all) { (void)cudaFreeHost(i.second->at); delete i.second; }
}
static int opdi_cu_empty_cache(void *user, int index) {
    const opdi_cu_on on(index);
    (void)user;
    if (opdi_cu_none_captured(index, "emptying the cache")) { return -1; }
    opdi_cu_release(index);
    opdi_cu_release_pinned();
    return 0;
}
static int64_t opdi_cu_cached(void *user, int index) {
    (void)user;
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    return opdi_cu_cached_bytes[index];
}

//== pinned memory =====================================================================================================

/* Rounds a size up to one of a limited number of sizes, by an eighth at most, so that more blocks can be reused. */
static size_t opdi_cu_pinned_bytes(size_t bytes) {
    size_t step = 512;
    while (step <= bytes / 16) { step *= 2; }
    return (bytes + step - 1) / step * step;
}
static void *opdi_cu_host_alloc(void *user, size_t bytes) {
    const size_t whole = opdi_cu_no_cache ? bytes : opdi_cu_pinned_bytes(bytes);
    void *at = NULL;
    (void)user;
    opdi_cu_hold hold(opdi_cu_memory_lock);
    opdi_cu_marks_pass();
    auto found = opdi_cu_free_pinned->find(whole);
    if (found != opdi_cu_free_pinned->end()) {
        at = found->second->at;
        opdi_cu_free_pinned->erase(found);
        return at;
    }
    hold.unlock();
    opdi_cu_piece *p = new (std::nothrow) opdi_cu_piece();
    if (p && cudaHostAlloc(&at, whole, cudaHostAllocPortable) != cudaSuccess) {
        (void)cudaGetLastError();
        opdi_cu_release_pinned();
        if (cudaHostAlloc(&at, whole, cudaHostAllocPortable) != cudaSuccess) { (void)cudaGetLastError(); at = NULL; }
    }
    if (!p || !at) { delete p; return NULL; }
    p->at = (char *)at; p->bytes = whole;
    hold.lock();
    (*opdi_cu_all_pinned)[p->at] = p;
    return at;
}
static void opdi_cu_host_free(void *user, void *data) {
    (void)user;
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    auto i = opdi_cu_all_pinned->find((char *)data);
    if (i != opdi_cu_all_pinned->end()) { opdi_cu_retire(i->second); }
}
/* Returns the pinned block that contains an address, or NULL if the memory is not pinned.  Called under the lock. */
static opdi_cu_piece *opdi_cu_pinned_of(const void *p) {
    auto i = opdi_cu_all_pinned->upper_bound((char *)(uintptr_t)p);
    if (i == opdi_cu_all_pinned->begin()) { return NULL; }
    --i;
    return (const char *)p < i->second->at + i->second->bytes ? i->second : NULL;
}

/* Returns the memory of the host in which kernels note faults; the first call allocates it.  Returns NULL and sets an
   error if it fails. */
static opdi_cu_fault *opdi_cu_fault_make() {
    opdi_cu_fault *f = opdi_cu_the_fault, *none = NULL;
    cudaError_t e;
    if (f) { return f; }
    if ((e = cudaHostAlloc((void **)&f, sizeof *f, cudaHostAllocPortable)) != cudaSuccess) {
        (void)opdi_cu_failed(e, "cudaHostAlloc");
        return NULL;
    }
    memset((void *)f, 0, sizeof *f);
    if (opdi_cu_the_fault.compare_exchange_strong(none, f)) { return f; }
    (void)cudaFreeHost((void *)f);                /* another thread was faster */
    return none;
}

//== copies ============================================================================================================

/* Enables direct copies between two devices, if the machine supports them.  This is tried once per pair. */
static void opdi_cu_peer(int from, int to) {
    static std::atomic<bool> asked[OPDI_CU_MAX_DEVICES][OPDI_CU_MAX_DEVICES];
    const opdi_cu_on on(from);
    int can = 0;
    if (asked[from][to].exchange(true)) { return; }
    if (cudaDeviceCanAccessPeer(&can, from, to) == cudaSuccess && can) { (void)cudaDeviceEnablePeerAccess(to, 0); }
    (void)cudaGetLastError();                     /* an error here means that the copies were enabled already */
}
static int opdi_cu_stream_wait(void *user, int index, int64_t stream, int other_index, int64_t other);
/* Returns the device on whose current stream a copy runs: the source or, if the source is the host, the destination.  A
   negative index means the host. */
static int opdi_cu_copy_index(int to_index, int from_index) { return from_index >= 0 ? from_index : to_index; }
/* Begins a copy between devices, or between a device and the host.  The copy waits for the work queued on the current
   streams of both devices; later work on these streams waits for the copy.  Returns 0, or -1 and sets an error. */
static int opdi_cu_copy_queue(void *to, int to_index, const void *from, int from_index, size_t bytes) {
    const int index = opdi_cu_copy_index(to_index, from_index);
    const opdi_cu_on on(index);
    const cudaStream_t stream = opdi_cu_streams[index];
    opdi_cu_gather_flush();
    const bool across = to_index >= 0 && to_index != index;
    const int64_t here = (int64_t)(intptr_t)stream, there = across ? (int64_t)(intptr_t)opdi_cu_streams[to_index] : 0;
    if (across && opdi_cu_stream_wait(NULL, index, here, to_index, there)) { return -1; }
    if (across) { opdi_cu_peer(index, to_index); }
    OPDI_CU_TRY(across ? cudaMemcpyPeerAsync(to, to_index, from, index, bytes, stream)
                : cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "a copy");
    return across ? opdi_cu_stream_wait(NULL, to_index, there, index, here) : 0;
}
static int opdi_cu_copy_async(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes) {
    const int index = opdi_cu_copy_index(to_index, from_index);
    const cudaStream_t stream = opdi_cu_streams[index];
    bool pinned = true;
    (void)user;
    if (to_index < 0 || from_index < 0) {
        std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
        opdi_cu_piece *p = opdi_cu_pinned_of(to_index < 0 ? to : from);
        if (p) { opdi_cu_use_add(p, index, stream); } else { pinned = false; }
    }
    if (!pinned && opdi_cu_uncaptured(stream, "a copy from or to host memory that is not pinned")) { return -1; }
    return opdi_cu_copy_queue(to, to_index, from, from_index, bytes);
}
static int opdi_cu_copy_bytes(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes) {
    const cudaStream_t stream = opdi_cu_streams[opdi_cu_copy_index(to_index, from_index)];
    const opdi_cu_on on(opdi_cu_copy_index(to_index, from_index));
    (void)user;
    if (to_index >= 0 && from_index >= 0) { return opdi_cu_copy_queue(to, to_index, from, from_index, bytes); }
    if (opdi_cu_uncaptured(stream, to_index < 0 ? "a copy to the host (item, printing, an index by bool)"
                           : "a blocking copy from the host") ||
        opdi_cu_copy_queue(to, to_index, from, from_index, bytes)) { return -1; }
    opdi_cu_groups_flush(opdi_cu_current());
    OPDI_CU_TRY(cudaStreamSynchronize(stream), "a copy");
    return opdi_cu_faults();
}

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:streams     streams, events, graphs
//
//  The numbers of streams, events and captures are their addresses; stream 0 is CUDA's default stream.  Freed streams
//  are kept and reused, so that a thread whose current stream was freed by another thread still has a stream.
//----------------------------------------------------------------------------------------------------------------------

static int opdi_cu_find_devices();
/* The first call looks for GPUs, which initialises the driver and takes 100 ms: programs that use only the CPU do not
   call this. */
static int opdi_cu_device_count(void *user) {
    static const int count = opdi_cu_find_devices();
    (void)user;
    return count;
}
static int opdi_cu_device_get(void *user) { (void)user; return opdi_cu_current(); }
static int opdi_cu_device_set(void *user, int index) {
    (void)user;
    OPDI_CU_TRY(cudaSetDevice(index), "cudaSetDevice");
    return 0;
}
static int opdi_cu_synchronize(void *user, int index) {
    const opdi_cu_on on(index);
    (void)user;
    opdi_cu_gather_flush();
    if (opdi_cu_none_captured(index, "waiting for the device")) { return -1; }
    opdi_cu_groups_flush(index);
    OPDI_CU_TRY(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return opdi_cu_faults();
}

static int opdi_cu_stream_new(void *user, int index, int64_t *stream) {
    const opdi_cu_on on(index);
    cudaStream_t s;
    (void)user;
    {
        std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
        for (size_t i = opdi_cu_idle_streams->size(); i-- > 0;) {
            if ((*opdi_cu_idle_streams)[i].device != index) { continue; }
            *stream = (int64_t)(intptr_t)(*opdi_cu_idle_streams)[i].stream;
            opdi_cu_idle_streams->erase(opdi_cu_idle_streams->begin() + (long)i);
            return 0;
        }
    }
    OPDI_CU_TRY(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreate");
    *stream = (int64_t)(intptr_t)s;
    return 0;
}
static void opdi_cu_capture_drop(cudaStream_t stream);
/* Waits for a stream's work, and frees the stream.  Its cached memory then belongs to the default stream. */
static void opdi_cu_stream_free(void *user, int index, int64_t stream) {
    const opdi_cu_on on(index);
    const cudaStream_t s = (cudaStream_t)(intptr_t)stream;
    (void)user;
    opdi_cu_capture_drop(s);
    (void)cudaStreamSynchronize(s);
    (void)cudaGetLastError();
    if (opdi_cu_streams[index] == s) { opdi_cu_streams[index] = NULL; }
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    opdi_cu_stream_forget(index, s);
    opdi_cu_idle_streams->push_back({index, s});
}
static int64_t opdi_cu_stream_get(void *user, int index) {
    (void)user;
    opdi_cu_gather_flush();
    return (int64_t)(intptr_t)opdi_cu_streams[index];
}
static int opdi_cu_stream_set(void *user, int index, int64_t stream) {
    (void)user;
    opdi_cu_gather_flush();
    opdi_cu_streams[index] = (cudaStream_t)(intptr_t)stream;
    return 0;
}
static int opdi_cu_stream_synchronize(void *user, int index, int64_t stream) {
    const opdi_cu_on on(index);
    const cudaStream_t s = (cudaStream_t)(intptr_t)stream;
    (void)user;
    opdi_cu_gather_flush();
    if (opdi_cu_uncaptured(s, "waiting for the stream")) { return -1; }
    opdi_cu_groups_flush(index);
    OPDI_CU_TRY(cudaStreamSynchronize(s), "cudaStreamSynchronize");
    return opdi_cu_faults();
}

static int opdi_cu_event_new(void *user, int index, bool timing, int64_t *event) {
    const opdi_cu_on on(index);
    cudaEvent_t e;
    (void)user;
    OPDI_CU_TRY(cudaEventCreateWithFlags(&e, timing ? cudaEventDefault : cudaEventDisableTiming), "cudaEventCreate");
    *event = (int64_t)(intptr_t)e;
    return 0;
}
static void opdi_cu_event_free(void *user, int index, int64_t event) {
    const opdi_cu_on on(index);
    (void)user;
    (void)cudaEventDestroy((cudaEvent_t)(intptr_t)event);
}
static int opdi_cu_event_record(void *user, int index, int64_t event, int64_t stream) {
    const opdi_cu_on on(index);
    (void)user;
    opdi_cu_gather_flush();
    OPDI_CU_TRY(cudaEventRecord((cudaEvent_t)(intptr_t)event, (cudaStream_t)(intptr_t)stream), "cudaEventRecord");
    return 0;
}
static int opdi_cu_event_wait(void *user, int index, int64_t event, int64_t stream) {
    const opdi_cu_on on(index);
    (void)user;
    OPDI_CU_TRY(cudaStreamWaitEvent((cudaStream_t)(intptr_t)stream, (cudaEvent_t)(intptr_t)event, 0),
                "cudaStreamWaitEvent");
    return 0;
}
static int opdi_cu_event_synchronize(void *user, int index, int64_t event) {
    const opdi_cu_on on(index);
    (void)user;
    opdi_cu_groups_flush(index);
    OPDI_CU_TRY(cudaEventSynchronize((cudaEvent_t)(intptr_t)event), "cudaEventSynchronize");
    return opdi_cu_faults();
}
static int opdi_cu_event_done(void *user, int index, int64_t event) {
    const opdi_cu_on on(index);
    const cudaError_t e = cudaEventQuery((cudaEvent_t)(intptr_t)event);
    (void)user;
    if (e == cudaErrorNotReady) { (void)cudaGetLastError(); return 0; }
    if (opdi_cu_nlost != 0 && opdi_cu_lost_check()) { return -1; }
    return e == cudaSuccess ? 1 : opdi_cu_failed(e, "cudaEventQuery");
}
static int opdi_cu_event_elapsed(void *user, int index, int64_t from, int64_t to, double *milliseconds) {
    const opdi_cu_on on(index);
    float ms = 0;
    (void)user;
    OPDI_CU_TRY(cudaEventElapsedTime(&ms, (cudaEvent_t)(intptr_t)from, (cudaEvent_t)(intptr_t)to),
                "cudaEventElapsedTime");
    *milliseconds = ms;
    return 0;
}
static int opdi_cu_stream_wait(void *user, int index, int64_t stream, int other_index, int64_t other) {
    int64_t event = 0;
    int rc = opdi_cu_event_new(user, other_index, false, &event);
    if (rc == 0) { rc = opdi_cu_event_record(user, other_index, event, other); }
    if (rc == 0) { rc = opdi_cu_event_wait(user, index, event, stream); }
    if (event) { opdi_cu_event_free(user, other_index, event); }
    return rc;
}

//== captures ==========================================================================================================
//
//  During a capture, the random words of a generator are counted from the generator's position at the first draw.  They
//  are given back to the generator when the capture ends, and taken again at each replay.  The replay writes the
//  generator's position to memory on the device, from which the kernels read it.

typedef struct opdi_cu_graph {
    cudaGraphExec_t exec;
    opdi_cu_pool *pool;
    cudaStream_t last;                            /* the stream on which the graph ran last or, before its first run,
                                                     was captured */
    cudaEvent_t done;                             /* recorded after the last run of the graph */
} opdi_cu_graph;

/* Frees the pool of a capture.  Its blocks go to the pool of the device; blocks that are in use can be reused from
   there when they are freed. */
static void opdi_cu_pool_free(opdi_cu_pool *pool) {
    opdi_cu_pool *to = &opdi_cu_pools[pool->device];
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    for (const opdi_cu_sequence &q : pool->sequences) { opdi_cu_block_free(q.state); }
    for (auto &i : *opdi_cu_all_pieces) {
        if (i.second->pool != pool) { continue; }
        i.second->pool = to;
        if (!i.second->used) { to->free.insert(i.second); }
    }
    delete pool;
}
/* Ends the capture of a stream.  Sets *graph, or *e if it fails.  Returns the capture's pool, or NULL if the stream is
   not being captured. */
static opdi_cu_pool *opdi_cu_capture_stop(cudaStream_t stream, cudaGraph_t *graph, cudaError_t *e) {
    opdi_cu_pool *pool = NULL;
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    for (size_t i = 0; i < opdi_cu_capturing->size() && !pool; i++) {
        if ((*opdi_cu_capturing)[i]->stream != stream) { continue; }
        pool = (*opdi_cu_capturing)[i];
        opdi_cu_capturing->erase(opdi_cu_capturing->begin() + (long)i);
        opdi_cu_ncapturing--;
    }
    *graph = NULL;
    if (!pool) { return NULL; }
    *e = cudaStreamEndCapture(stream, graph);
    for (const opdi_cu_sequence &q : pool->sequences) { opd_generator_give_back(q.generator, q.at, q.words); }
    if (opdi_cu_capturing->empty()) {
        std::vector<opdi_cu_piece *> held;
        held.swap(*opdi_cu_held);
        for (opdi_cu_piece *p : held) { opdi_cu_retire(p); }
    }
    return pool;
}
static void opdi_cu_capture_drop(cudaStream_t stream) {
    cudaGraph_t graph = NULL;
    cudaError_t e = cudaSuccess;
    opdi_cu_pool *pool = opdi_cu_ncapturing == 0 ? NULL : opdi_cu_capture_stop(stream, &graph, &e);
    if (graph) { (void)cudaGraphDestroy(graph); }
    if (e != cudaSuccess) { (void)cudaGetLastError(); }
    if (pool) { opdi_cu_pool_free(pool); }
}
static bool opdi_cu_blas_take(cublasStatus_t *s);
/* Begins a capture.  First makes the memory for faults and a cuBLAS handle, which otherwise the first use would make,
   perhaps during the capture.  Returns 0, or -1 and sets an error. */
static int opdi_cu_capture_begin(void *user, int index, int64_t stream) {
    const opdi_cu_on on(index);
    cublasStatus_t blas;
    const cudaStream_t s = (cudaStream_t)(intptr_t)stream;
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaError_t e;
    (void)user;
    if (!s) { return opd_fail(OPD_ERROR_ARGUMENT, "the default stream cannot be captured: use opd_stream_new"); }
    if (!opdi_cu_fault_make()) { return -1; }
    (void)opdi_cu_blas_take(&blas);
    std::lock_guard<std::mutex> guard(opdi_cu_memory_lock);
    if (opdi_cu_capture_pool(s)) { return opd_fail(OPD_ERROR_ARGUMENT, "this stream is already being captured"); }
    opdi_cu_pool *pool = new (std::nothrow) opdi_cu_pool();
    if (!pool) { return opdi_cu_no_memory("a capture"); }
    pool->device = index; pool->captures = true; pool->stream = s;
    if ((e = cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed)) != cudaSuccess) {
        delete pool;
        return opdi_cu_failed(e, "cudaStreamBeginCapture");
    }
    (void)cudaStreamGetCaptureInfo(s, &status, &pool->id);
    opdi_cu_capturing->push_back(pool);
    opdi_cu_ncapturing++;
    return 0;
}
static int opdi_cu_capture_end(void *user, int index, int64_t stream, int64_t *capture) {
    const opdi_cu_on on(index);
    const cudaStream_t s = (cudaStream_t)(intptr_t)stream;
    cudaGraph_t graph = NULL;
    cudaError_t e = cudaSuccess;
    opdi_cu_pool *pool = opdi_cu_capture_stop(s, &graph, &e);
    opdi_cu_graph *g = pool && !pool->broken && e == cudaSuccess ? new (std::nothrow) opdi_cu_graph() : NULL;
    (void)user;
    if (!pool) { return opd_fail(OPD_ERROR_ARGUMENT, "this stream is not being captured"); }
    if (g && (e = cudaGraphInstantiate(&g->exec, graph, 0)) == cudaSuccess &&
        (e = cudaEventCreateWithFlags(&g->done, cudaEventDisableTiming)) == cudaSuccess) {
        e = cudaEventRecord(g->done, s);
    }
    if (graph) { (void)cudaGraphDestroy(graph); }
    if (g && e == cudaSuccess) {
        g->pool = pool;
        g->last = s;
        *capture = (int64_t)(intptr_t)g;
        return 0;
    }
    if (pool->broken) { (void)opd_fail(OPD_ERROR_KERNEL, "the capture failed: it cannot contain %s", pool->broken); }
    else if (e == cudaSuccess) { (void)opdi_cu_no_memory("a capture"); }
    else {
        (void)opdi_cu_failed(e, "ending a capture: a call in it cannot be captured, or was the first of its kind (make "
                             "the same calls once before the capture)");
    }
    if (g && g->done) { (void)cudaEventDestroy(g->done); }
    if (g && g->exec) { (void)cudaGraphExecDestroy(g->exec); }
    (void)cudaGetLastError();
    delete g;
    opdi_cu_pool_free(pool);
    return -1;
}

/* If the current stream of the device is being captured, sets *state to the memory from which the kernels of a replay
   read the generator's key and position, and makes d->at relative to this position.  Returns 0, or -1 and sets an
   error. */
static int opdi_cu_sequence_of(int index, opd_draw *d, const uint64_t **state) {
    if (opdi_cu_ncapturing == 0) { return 0; }
    opdi_cu_hold hold(opdi_cu_memory_lock);
    opdi_cu_pool *pool = opdi_cu_capture_pool(opdi_cu_streams[index]);
    opdi_cu_sequence *q = NULL;
    if (!pool) { return 0; }
    for (opdi_cu_sequence &other : pool->sequences) { if (other.generator == d->generator) { q = &other; } }
    if (!q) {
        /* not from the capture's memory: kernels of the graph could write to it before it is read */
        opdi_cu_piece *p = opdi_cu_piece_new(hold, &opdi_cu_pools[index], opdi_cu_streams[index], 512);
        if (!p || !opdi_cu_pool_lives(pool)) {
            if (p) { opdi_cu_block_free(p); }
            return opdi_cu_no_memory("the state of a generator");
        }
        pool->sequences.push_back({d->generator, d->key, d->at, 0, p});
        q = &pool->sequences.back();
    }
    if (q->key != d->key) {
        pool->broken = "seeding a generator between two draws";
        return opd_fail(OPD_ERROR_KERNEL, "CUDA: a generator cannot be seeded between two draws of a capture");
    }
    d->at -= q->at;
    if ((int64_t)d->at + d->words > q->words) { q->words = (int64_t)d->at + d->words; }
    *state = (const uint64_t *)q->state->at;
    return 0;
}
__global__ void opdi_cu_set_state(uint64_t *state, uint64_t key, uint64_t at) { state[0] = key; state[1] = at; }
/* Takes the random words for a replay from the generators, and writes their keys and positions to the memory from which
   the replay's kernels read them.  Returns 0, or -1 and sets an error. */
static int opdi_cu_sequences_take(const opdi_cu_pool *pool) {
    for (const opdi_cu_sequence &q : pool->sequences) {
        uint64_t key, at = opd_generator_take(q.generator, q.words, &key);
        if (opdi_cu_launch(opdi_cu_set_state, dim3(1), dim3(1), 0, (uint64_t *)q.state->at, key, at)) { return -1; }
    }
    return 0;
}
/* Replays a graph on a stream.  The replay first waits for the previous replay, even on another stream, because both
   use the same memory.  Returns 0, or -1 and sets an error. */
static int opdi_cu_capture_replay(void *user, int index, int64_t capture, int64_t stream) {
    const opdi_cu_on on(index);
    opdi_cu_graph *g = (opdi_cu_graph *)(intptr_t)capture;
    const cudaStream_t s = (cudaStream_t)(intptr_t)stream, was = opdi_cu_streams[index];
    int rc;
    (void)user;
    if (opdi_cu_uncaptured(s, "a replay")) { return -1; }
    if (s != g->last) { OPDI_CU_TRY(cudaStreamWaitEvent(s, g->done, 0), "cudaStreamWaitEvent"); }
    opdi_cu_streams[index] = s;
    rc = opdi_cu_sequences_take(g->pool);
    opdi_cu_streams[index] = was;
    if (rc) { return -1; }
    OPDI_CU_TRY(cudaGraphLaunch(g->exec, s), "cudaGraphLaunch");
    g->last = s;
    OPDI_CU_TRY(cudaEventRecord(g->done, s), "cudaEventRecord");
    return opdi_cu_debug ? opdi_cu_stream_synchronize(user, index, stream) : 0;
}
static void opdi_cu_capture_free(void *user, int index, int64_t capture) {
    const opdi_cu_on on(index);
    opdi_cu_graph *g = (opdi_cu_graph *)(intptr_t)capture;
    (void)user;
    (void)cudaEventSynchronize(g->done);          /* a replay may still be running */
    (void)cudaGraphExecDestroy(g->exec);
    (void)cudaEventDestroy(g->done);
    (void)cudaGetLastError();
    opdi_cu_pool_free(g->pool);
    delete g;
}

static bool opdi_cu_debug_set(void *user, bool on) {
    const bool was = opdi_cu_debug;
    (void)user;
    opdi_cu_debug = on;
    return was;
}

//== ranges for profilers ==============================================================================================
//
//  With the environment variable OPD_CUDA_NVTX=1, each operator, backward node and span is a range of NVTX, which
//  Nsight Systems shows above its kernels.  NVTX is a header of the CUDA Toolkit: its functions do nothing unless a
//  profiler runs the program.  Spans that do not end in the reverse order of their beginnings are shown wrong.

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
static void *opdi_cu_range_begin(const opd_event *event, void *user) {
    (void)user;
    (void)nvtxRangePushA(event->name);
    return NULL;
}
static void opdi_cu_range_end(const opd_event *event, void *context, void *user) {
    (void)event; (void)context; (void)user;
    (void)nvtxRangePop();
}
static int opdi_cu_ranges_begin() {
    opd_observer observer = opd_observer();
    observer.begin = opdi_cu_range_begin;
    observer.end = opdi_cu_range_end;
    return opd_observer_add(&observer) ? 0 : -1;
}
#else
static int opdi_cu_ranges_begin() {
    opd_warn("OPD_CUDA_NVTX: the CUDA plug-in was compiled without the header nvtx3/nvToolsExt.h");
    return 0;
}
#endif

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:groups      process groups over NCCL
//
//  This is the implementation of opd_group_device_add.  A group has an NCCL communicator and a stream.  On that stream,
//  a collective waits for all earlier work of the current stream.  Before its result is used, the current stream waits
//  for the collective.  Sends and receives are not begun at once, but together with those that follow, between
//  ncclGroupStart and ncclGroupEnd, so that their order does not matter.  They begin when one of them is waited for,
//  another function of the group is called, the host waits for the device or group, or 50 ms have passed.  Each group
//  has a thread that watches its transfers.  If a transfer takes too long or NCCL reports an error, the thread aborts
//  the communicator, so that the work after it on the streams does not hang.  From then on, each wait for the device
//  fails with this error.
//----------------------------------------------------------------------------------------------------------------------

//== functions of NCCL, declared from its manual =======================================================================

typedef struct opdi_cu_nccl_id { char bytes[OPD_GROUP_ID]; } opdi_cu_nccl_id;
/* ncclConfig_t of NCCL 2.14.  The members `size` and `version` tell NCCL which version the struct has. */
typedef struct opdi_cu_nccl_config { size_t size; unsigned magic, version; int blocking; } opdi_cu_nccl_config;
#define OPDI_CU_NCCL_FIRST 21400                 /* version 2.14 */
enum { OPDI_CU_NCCL_INVALID_USAGE = 5, OPDI_CU_NCCL_IN_PROGRESS = 7 };
enum { OPDI_CU_NCCL_SUM = 0, OPDI_CU_NCCL_PROD, OPDI_CU_NCCL_MAX, OPDI_CU_NCCL_MIN, OPDI_CU_NCCL_AVG };
enum {
    OPDI_CU_NCCL_INT8 = 0, OPDI_CU_NCCL_UINT8, OPDI_CU_NCCL_INT32, OPDI_CU_NCCL_UINT32, OPDI_CU_NCCL_INT64,
    OPDI_CU_NCCL_UINT64, OPDI_CU_NCCL_FLOAT16, OPDI_CU_NCCL_FLOAT32, OPDI_CU_NCCL_FLOAT64, OPDI_CU_NCCL_BFLOAT16
};
#define OPDI_CU_NCCL_FUNCTIONS(X) \
    X(GetVersion, (int *version)) \
    X(GetUniqueId, (opdi_cu_nccl_id *id)) \
    X(CommInitRankConfig, (void **comm, int size, opdi_cu_nccl_id id, int rank, opdi_cu_nccl_config *config)) \
    X(CommFinalize, (void *comm)) \
    X(CommDestroy, (void *comm)) \
    X(CommAbort, (void *comm)) \
    X(CommGetAsyncError, (void *comm, int *error)) \
    X(GroupStart, (void)) \
    X(GroupEnd, (void)) \
    X(Send, (const void *from, size_t count, int type, int to, void *comm, cudaStream_t stream)) \
    X(Recv, (void *to, size_t count, int type, int from, void *comm, cudaStream_t stream)) \
    X(AllReduce, (const void *from, void *to, size_t count, int type, int op, void *comm, cudaStream_t stream)) \
    X(ReduceScatter, (const void *from, void *to, size_t count, int type, int op, void *comm, cudaStream_t stream)) \
    X(AllGather, (const void *from, void *to, size_t count, int type, void *comm, cudaStream_t stream)) \
    X(Broadcast, (const void *from, void *to, size_t count, int type, int root, void *comm, cudaStream_t stream)) \
    X(Reduce, (const void *from, void *to, size_t count, int type, int op, int root, void *comm, cudaStream_t stream))
#define OPDI_CU_NCCL_MEMBER(name, parameters) int (*name) parameters;
static struct opdi_cu_nccl_functions {
    OPDI_CU_NCCL_FUNCTIONS(OPDI_CU_NCCL_MEMBER)
    const char *(*GetErrorString)(int result);
    int version;
} opdi_cu_nccl;
static std::mutex opdi_cu_nccl_lock;

/* Returns the address of a function of the library.  If it does not exist, returns NULL and sets *missing to its name,
   unless *missing is set already. */
static void *opdi_cu_nccl_find(void *library, const char *name, const char **missing) {
    void *const found = dlsym(library, name);
    if (!found && !*missing) { *missing = name; }
    return found;
}
/* Loads NCCL, unless it is loaded.  Returns 0, or -1 and sets an error that names the missing part; the next call then
   tries again. */
static int opdi_cu_nccl_load() {
    std::lock_guard<std::mutex> guard(opdi_cu_nccl_lock);
    const char *name = getenv("OPD_NCCL"), *missing = NULL;
    opdi_cu_nccl_functions all;
    if (opdi_cu_nccl.version) { return 0; }
    if (opd_code_forbidden("NCCL")) { return -1; }
    memset(&all, 0, sizeof all);
    if (!name || !*name) { name = "libnccl.so.2"; }
    void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        const char *const why = dlerror();
        return opd_fail(OPD_ERROR_FILE, "NCCL cannot be loaded: %s. Install NVIDIA's package libnccl2, or set the "
                        "environment variable OPD_NCCL to the path of libnccl.so.2.", why ? why : name);
    }
#define OPDI_CU_NCCL_TAKE(name, parameters) { \
        void *const found = opdi_cu_nccl_find(library, "nccl" #name, &missing); \
        memcpy(&all.name, &found, sizeof found); \
    }
    OPDI_CU_NCCL_FUNCTIONS(OPDI_CU_NCCL_TAKE)
    OPDI_CU_NCCL_TAKE(GetErrorString, )
    const int rc = all.GetVersion ? all.GetVersion(&all.version) : -1;
    if (!missing && rc == 0 && all.version >= OPDI_CU_NCCL_FIRST) {
        opdi_cu_nccl = all;
        return 0;
    }
    if (missing) {
        (void)opd_fail(OPD_ERROR_FILE, "NCCL: %s has no function %s: the file is not NCCL, or is older than 2.14", name,
                       missing);
    } else {
        (void)opd_fail(OPD_ERROR_FILE, "NCCL: %s has version code %d, but 2.14 (%d) or newer is needed", name,
                       rc ? 0 : all.version, OPDI_CU_NCCL_FIRST);
    }
    (void)dlclose(library);
    return -1;
}

//== transfers that NCCL supports ======================================================================================

/* Finds NCCL's type and operation for a reduction of a dtype, and the number of NCCL elements per element: *each is 2
   for complex numbers, otherwise 1.  Returns false if NCCL does not support the reduction.  Bools are reduced by "any"
   or "all". */
static bool opdi_cu_nccl_reduction(opd_scalar_type dtype, opd_reduction reduction, int *type, int *op, int64_t *each) {
    const bool wide = opd_dtype_is_complex(dtype);
    *each = wide ? 2 : 1;
    switch (dtype) {
        case OPD_FLOAT32: case OPD_COMPLEX64: *type = OPDI_CU_NCCL_FLOAT32; break;
        case OPD_FLOAT64: case OPD_COMPLEX128: *type = OPDI_CU_NCCL_FLOAT64; break;
        case OPD_FLOAT16: *type = OPDI_CU_NCCL_FLOAT16; break;
        case OPD_BFLOAT16: *type = OPDI_CU_NCCL_BFLOAT16; break;
        case OPD_INT8: *type = OPDI_CU_NCCL_INT8; break;
        case OPD_UINT8: case OPD_BOOL: *type = OPDI_CU_NCCL_UINT8; break;
        case OPD_INT32: *type = OPDI_CU_NCCL_INT32; break;
        case OPD_INT64: *type = OPDI_CU_NCCL_INT64; break;
        default: return false;
    }
    const bool truth = dtype == OPD_BOOL;
    switch (reduction) {
        case OPD_REDUCTION_SUM: *op = truth ? OPDI_CU_NCCL_MAX : OPDI_CU_NCCL_SUM; return true;
        case OPD_REDUCTION_AVG: *op = OPDI_CU_NCCL_AVG; return wide || opd_dtype_is_floating(dtype);
        case OPD_REDUCTION_PRODUCT: *op = truth ? OPDI_CU_NCCL_MIN : OPDI_CU_NCCL_PROD; return !wide;
        case OPD_REDUCTION_MIN: *op = OPDI_CU_NCCL_MIN; return !wide;
        case OPD_REDUCTION_MAX: *op = OPDI_CU_NCCL_MAX; return !wide;
        case OPD_REDUCTION_BAND: *op = OPDI_CU_NCCL_MIN; return truth;
        case OPD_REDUCTION_BOR: *op = OPDI_CU_NCCL_MAX; return truth;
        default: return false;
    }
}
static bool opdi_cu_nccl_pair(const opd_transfer *t) {
    return t->kind == OPD_COLLECTIVE_SEND || t->kind == OPD_COLLECTIVE_RECV;
}
/* Returns whether NCCL supports a transfer.  NCCL has no tags: messages arrive in the order in which they were sent. */
static bool opdi_cu_group_takes(void *user, const opd_transfer *t) {
    int type, op;
    int64_t each;
    (void)user;
    if (opdi_cu_nccl_pair(t)) { return t->tag == 0; }
    if (t->kind == OPD_COLLECTIVE_BARRIER) { return false; }
    if (t->kind != OPD_COLLECTIVE_ALL_REDUCE && t->kind != OPD_COLLECTIVE_REDUCE &&
        t->kind != OPD_COLLECTIVE_REDUCE_SCATTER) { return true; }
    return opdi_cu_nccl_reduction(t->dtype, t->reduction, &type, &op, &each);
}

//== groups ============================================================================================================

static int64_t opdi_cu_clock() {                  /* returns milliseconds */
    return std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now().time_since_epoch()).count();
}
#define OPDI_CU_KEPT_MS 50                       /* the longest time for which a send or receive is kept back */
/* A transfer that a caller requested. */
typedef struct opdi_cu_move {
    opd_transfer what;
    std::vector<int64_t> counts;                  /* for an all-to-all: the numbers of elements sent to each rank, then
                                                     received */
    cudaEvent_t ready, done;                      /* ready: the event that the transfer waits for; done: the event of
                                                     its end */
    bool queued, passed, held;  /* queued: done was recorded; passed: done has passed; held: a caller may wait for it */
    int64_t asked, begun;        /* asked: time of the request; begun: time when `ready` was first seen to have passed,
                                    or 0 */
    unsigned long long number;
} opdi_cu_move;
typedef struct opdi_cu_group {
    std::mutex lock;                              /* protects all members below */
    std::condition_variable wake;
    std::thread watch;
    char name[64], lost[500];                     /* lost: why the group has ended after an error, or "" */
    int device, rank, size;
    int64_t timeout_ms;
    void *comm;
    cudaStream_t stream;
    unsigned long long count;
    std::list<opdi_cu_move *> kept, running;      /* kept: sends and receives not begun yet; running: transfers on the
                                                     stream */
    bool ends;
} opdi_cu_group;
/* All groups, by device, and the groups that have ended after an error.  Results that are on the devices of ended
   groups may be wrong.  A device's lock may be held while NCCL waits for other ranks. */
static std::mutex opdi_cu_groups_lock[OPDI_CU_MAX_DEVICES], opdi_cu_lost_lock;
static std::list<opdi_cu_group *> *const opdi_cu_groups = new std::list<opdi_cu_group *>[OPDI_CU_MAX_DEVICES];
static std::vector<const opdi_cu_group *> *opdi_cu_lost_groups;

/* If a group of the current device has ended after an error, sets the group's error and returns -1; otherwise returns
   0. */
static int opdi_cu_lost_check() {
    const int device = opdi_cu_current();
    std::lock_guard<std::mutex> guard(opdi_cu_lost_lock);
    for (const opdi_cu_group *g : *opdi_cu_lost_groups) {
        if (g->device == device) {
            return opd_fail(OPD_ERROR_KERNEL, "%s\nResults computed on cuda:%d since then may be wrong. They cannot be "
                            "read until you call opd_group_unregister.", g->lost, device);
        }
    }
    return 0;
}
static void opdi_cu_lost_forget(const opdi_cu_group *g) {
    std::lock_guard<std::mutex> guard(opdi_cu_lost_lock);
    std::vector<const opdi_cu_group *> *all = opdi_cu_lost_groups;
    for (size_t i = 0; all && i < all->size(); i++) {
        if ((*all)[i] != g) { continue; }
        all->erase(all->begin() + (long)i);
        opdi_cu_nlost--;
        return;
    }
}
static const char *opdi_cu_move_name(const opdi_cu_move *m) {
    static const char *const names[] = {"?", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast",
                                        "reduce", "gather", "scatter", "send", "recv", "barrier"};
    return names[m->what.kind <= OPD_COLLECTIVE_BARRIER ? m->what.kind : 0];
}
/* Ends the group after an error: aborts its communicator, so that streams do not hang, and lets it run no more
   transfers.  `m` is the transfer that failed, or NULL.  Called under the group's lock. */
static void opdi_cu_group_lose(opdi_cu_group *g, const opdi_cu_move *m, const char *why) {
    void *const comm = g->comm;
    char which[100] = "";
    if (g->lost[0]) { return; }
    if (m) {
        (void)snprintf(which, sizeof which, "%s, transfer %llu over NCCL of ", opdi_cu_move_name(m), m->number);
    }
    (void)snprintf(g->lost, sizeof g->lost, "%sprocess group '%s' (rank %d of %d): %.300s", which, g->name, g->rank,
                   g->size, why);
    {
        std::lock_guard<std::mutex> guard(opdi_cu_lost_lock);
        if (!opdi_cu_lost_groups) { opdi_cu_lost_groups = new std::vector<const opdi_cu_group *>(); }
        opdi_cu_lost_groups->push_back(g);
        opdi_cu_nlost++;
    }
    g->comm = NULL;
    if (comm) { (void)opdi_cu_nccl.CommAbort(comm); }
}
static int opdi_cu_group_gone(const opdi_cu_group *g) { return opd_fail(OPD_ERROR_KERNEL, "%s", g->lost); }
/* Waits until NCCL has accepted a request for the group.  `result` is what NCCL returned for the request: a result, or
   "in progress".  `m` is the request's transfer, or NULL.  Returns 0, or ends the group and returns -1. */
static int opdi_cu_group_wait_accepted(opdi_cu_group *g, const opdi_cu_move *m, int result) {
    const int64_t begun = opdi_cu_clock();
    char why[200];
    while (result == OPDI_CU_NCCL_IN_PROGRESS && opdi_cu_clock() - begun < g->timeout_ms) {
        int state = 0;
        const int asked = opdi_cu_nccl.CommGetAsyncError(g->comm, &state);
        result = asked ? asked : state;
        if (result == OPDI_CU_NCCL_IN_PROGRESS) { std::this_thread::sleep_for(std::chrono::microseconds(20)); }
    }
    if (result == 0) { return 0; }
    if (result == OPDI_CU_NCCL_IN_PROGRESS) {
        (void)snprintf(why, sizeof why, "not all ranks joined within %.3g s: one has ended, or called another function",
                       (double)g->timeout_ms / 1000);
    } else { (void)snprintf(why, sizeof why, "NCCL: %s", opdi_cu_nccl.GetErrorString(result)); }
    opdi_cu_group_lose(g, m, why);
    return -1;
}

//== transfers =========================================================================================================

/* Passes a transfer to NCCL as sends and receives, for transfers that are not collectives of NCCL.  Returns NCCL's
   first error, or 0. */
static int opdi_cu_move_parts(const opdi_cu_group *g, const opdi_cu_move *m) {
    const opd_transfer *const t = &m->what;
    const size_t size = opd_dtype_size(t->dtype), bytes = (size_t)t->count * size;
    const bool all = t->kind == OPD_COLLECTIVE_ALL_TO_ALL, root = t->peer == g->rank;
    const char *from = (const char *)t->send;
    char *to = (char *)t->recv;
    int result = 0, one;
    auto note = [&](int r) { if (result == 0 && r != OPDI_CU_NCCL_IN_PROGRESS) { result = r; } };
    for (int rank = 0; rank < g->size; rank++) {
        const size_t sent = all ? (size_t)m->counts[(size_t)rank] * size
            : t->kind == OPD_COLLECTIVE_GATHER ? (rank == t->peer ? bytes : 0)
            : t->kind == OPD_COLLECTIVE_SCATTER ? (root ? bytes : 0)
            : t->kind == OPD_COLLECTIVE_SEND && rank == t->peer ? bytes : 0;
        const size_t taken = all ? (size_t)m->counts[(size_t)(g->size + rank)] * size
            : t->kind == OPD_COLLECTIVE_GATHER ? (root ? bytes : 0)
            : t->kind == OPD_COLLECTIVE_SCATTER ? (rank == t->peer ? bytes : 0)
            : t->kind == OPD_COLLECTIVE_RECV && rank == t->peer ? bytes : 0;
        if (sent) {
            one = opdi_cu_nccl.Send(from, sent, OPDI_CU_NCCL_UINT8, rank, g->comm, g->stream);
            note(one);
        }
        if (taken) {
            one = opdi_cu_nccl.Recv(to, taken, OPDI_CU_NCCL_UINT8, rank, g->comm, g->stream);
            note(one);
        }
        if (all || t->kind == OPD_COLLECTIVE_SCATTER) { from += sent; }
        if (all || t->kind == OPD_COLLECTIVE_GATHER) { to += taken; }
    }
    return result;
}
/* If a transfer is a collective of NCCL, passes it to NCCL, sets *result to NCCL's result, and returns true.  Otherwise
   returns false. */
static bool opdi_cu_move_whole(const opdi_cu_group *g, const opdi_cu_move *m, int *result) {
    const opd_transfer *const t = &m->what;
    const size_t bytes = (size_t)t->count * opd_dtype_size(t->dtype);
    int type = OPDI_CU_NCCL_UINT8, op = OPDI_CU_NCCL_SUM;
    int64_t each = 1;
    (void)opdi_cu_nccl_reduction(t->dtype, t->reduction, &type, &op, &each);
    const size_t count = (size_t)(t->count * each);
    switch ((int)t->kind) {
    case OPD_COLLECTIVE_ALL_REDUCE:
        *result = opdi_cu_nccl.AllReduce(t->send, t->recv, count, type, op, g->comm, g->stream);
        return true;
    case OPD_COLLECTIVE_REDUCE_SCATTER:
        *result = opdi_cu_nccl.ReduceScatter(t->send, t->recv, count, type, op, g->comm, g->stream);
        return true;
    case OPD_COLLECTIVE_REDUCE:
        *result = opdi_cu_nccl.Reduce(t->send, t->recv, count, type, op, t->peer, g->comm, g->stream);
        return true;
    case OPD_COLLECTIVE_ALL_GATHER:
        *result = opdi_cu_nccl.AllGather(t->send, t->recv, bytes, OPDI_CU_NCCL_UINT8, g->comm, g->stream);
        return true;
    case OPD_COLLECTIVE_BROADCAST:
        *result = opdi_cu_nccl.Broadcast(t->send, t->recv, bytes, OPDI_CU_NCCL_UINT8, t->peer, g->comm, g->stream);
        return true;
    default: return false;
    }
}
/* Begins transfers together, after the work that each depends on.  Returns 0, or ends the group and returns -1.  Called
   under the group's lock, while the group's device is current. */
static int opdi_cu_group_queue(opdi_cu_group *g, std::list<opdi_cu_move *> &moves) {
    opdi_cu_move *const first = moves.front();
    cudaError_t e = cudaSuccess;
    int result = 0;
    for (const opdi_cu_move *m : moves) { if (e == cudaSuccess) { e = cudaStreamWaitEvent(g->stream, m->ready, 0); } }
    if (e == cudaSuccess && (moves.size() > 1 || !opdi_cu_move_whole(g, first, &result))) {
        result = opdi_cu_nccl.GroupStart();
        for (const opdi_cu_move *m : moves) { if (result == 0) { result = opdi_cu_move_parts(g, m); } }
        const int ended = opdi_cu_nccl.GroupEnd();
        if (result == 0) { result = ended; }
    }
    if (e == cudaSuccess && opdi_cu_group_wait_accepted(g, first, result)) { return -1; }
    for (opdi_cu_move *m : moves) {
        if (e == cudaSuccess) { e = cudaEventRecord(m->done, g->stream); }
        m->queued = e == cudaSuccess;
    }
    if (e != cudaSuccess) {
        (void)cudaGetLastError();
        opdi_cu_group_lose(g, first, cudaGetErrorString(e));
        return -1;
    }
    g->running.splice(g->running.end(), moves);
    g->wake.notify_all();
    return 0;
}
/* Begins the sends and receives that were kept back.  Returns 0, or -1 if the group has ended. */
static int opdi_cu_group_flush(opdi_cu_group *g) {
    std::list<opdi_cu_move *> moves;
    if (g->lost[0]) { return -1; }
    if (g->kept.empty()) { return 0; }
    moves.swap(g->kept);
    const int rc = opdi_cu_group_queue(g, moves);
    if (rc) { g->running.splice(g->running.end(), moves); }   /* opdi_cu_group_free frees them */
    return rc;
}
static int opdi_cu_group_begin(void *user) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    const opdi_cu_on on(g->device);
    std::lock_guard<std::mutex> hold(g->lock);
    return opdi_cu_group_flush(g);
}
static void opdi_cu_groups_flush(int index) {
    if (opdi_cu_ngroups == 0) { return; }
    std::lock_guard<std::mutex> guard(opdi_cu_groups_lock[index]);
    for (opdi_cu_group *g : opdi_cu_groups[index]) { (void)opdi_cu_group_begin(g); }
}
/* Adds a group to its device's list, or removes it from the list if `on` is false. */
static void opdi_cu_group_list(opdi_cu_group *g, bool on) {
    std::lock_guard<std::mutex> guard(opdi_cu_groups_lock[g->device]);
    std::list<opdi_cu_group *> &all = opdi_cu_groups[g->device];
    const size_t before = all.size();
    if (on) { all.push_back(g); } else { all.remove(g); }
    opdi_cu_ngroups += (int)all.size() - (int)before;
}
static void opdi_cu_move_free(opdi_cu_move *m) {
    if (m->ready) { (void)cudaEventDestroy(m->ready); }
    if (m->done) { (void)cudaEventDestroy(m->done); }
    delete m;
}
/* Records that the caller no longer waits for a transfer.  The transfer is freed as soon as it has also finished. */
static void opdi_cu_move_drop(opdi_cu_move *m) {
    m->held = false;
    if (m->passed) { opdi_cu_move_free(m); }
}
static opdi_cu_move *opdi_cu_move_new(opdi_cu_group *g, const opd_transfer *t) {
    opdi_cu_move *const m = new (std::nothrow) opdi_cu_move();
    if (!m) {
        (void)opdi_cu_no_memory("a collective operation");
        return NULL;
    }
    cudaError_t e = cudaEventCreateWithFlags(&m->ready, cudaEventDisableTiming);
    if (e == cudaSuccess) { e = cudaEventCreateWithFlags(&m->done, cudaEventDisableTiming); }
    if (e == cudaSuccess) { e = cudaEventRecord(m->ready, opdi_cu_streams[g->device]); }
    if (e != cudaSuccess) {
        opdi_cu_move_free(m);
        (void)opdi_cu_failed(e, "creating the events of a collective operation");
        return NULL;
    }
    m->what = *t;
    if (t->kind == OPD_COLLECTIVE_ALL_TO_ALL) {
        m->counts.assign(t->send_counts, t->send_counts + g->size);
        m->counts.insert(m->counts.end(), t->recv_counts, t->recv_counts + g->size);
    }
    m->what.send_counts = m->what.recv_counts = NULL;
    m->number = ++g->count;
    m->asked = opdi_cu_clock();
    m->held = true;
    return m;
}
static int opdi_cu_group_start(void *user, const opd_transfer *t, void **request) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    const opdi_cu_on on(g->device);
    std::unique_lock<std::mutex> hold(g->lock);
    if (g->lost[0]) { return opdi_cu_group_gone(g); }
    if (!opdi_cu_group_takes(NULL, t)) {
        return opd_fail(OPD_ERROR_DTYPE, opdi_cu_nccl_pair(t) ? "NCCL supports no tags but 0"
                        : "NCCL does not support this reduction for %s", opd_dtype_name(t->dtype));
    }
    if (opdi_cu_uncaptured(opdi_cu_streams[g->device], "a collective operation")) { return -1; }
    if (!opdi_cu_nccl_pair(t) && opdi_cu_group_flush(g)) { return opdi_cu_group_gone(g); }
    opdi_cu_move *const m = opdi_cu_move_new(g, t);
    if (!m) { return -1; }
    *request = m;
    g->kept.push_back(m);
    if (opdi_cu_nccl_pair(t)) {
        g->wake.notify_all();
        return 0;
    }
    if (opdi_cu_group_flush(g) == 0) { return 0; }
    opdi_cu_move_drop(m);
    return opdi_cu_group_gone(g);
}
static int opdi_cu_group_wait(void *user, void *request) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    opdi_cu_move *const m = (opdi_cu_move *)request;
    const opdi_cu_on on(g->device);
    std::unique_lock<std::mutex> hold(g->lock);
    const cudaStream_t stream = opdi_cu_streams[g->device];
    int rc = m->queued ? 0 : opdi_cu_group_flush(g);
    if (g->lost[0]) { rc = opdi_cu_group_gone(g); }
    else if (!m->passed) {
        const cudaError_t e = cudaStreamWaitEvent(stream, m->done, 0);
        rc = e == cudaSuccess ? 0 : opdi_cu_failed(e, "waiting for a collective operation");
    }
    opdi_cu_move_drop(m);
    return rc;
}
static int opdi_cu_group_test(void *user, void *request) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    opdi_cu_move *const m = (opdi_cu_move *)request;
    const opdi_cu_on on(g->device);
    std::unique_lock<std::mutex> hold(g->lock);
    if (!m->queued && opdi_cu_clock() - m->asked >= OPDI_CU_KEPT_MS / 10) { (void)opdi_cu_group_flush(g); }
    if (g->lost[0]) { return opdi_cu_group_gone(g); }
    if (m->passed || !m->queued) { return m->passed; }
    const cudaError_t e = cudaEventQuery(m->done);
    if (e == cudaSuccess) { return 1; }
    if (e != cudaErrorNotReady) { return opdi_cu_failed(e, "querying a collective operation"); }
    (void)cudaGetLastError();
    return 0;
}

//== watching transfers ================================================================================================

/* Removes transfers that have finished.  Ends the group if NCCL reports an error, or a transfer takes longer than the
   timeout.  Called under the group's lock. */
static void opdi_cu_group_poll(opdi_cu_group *g) {
    const int64_t now = opdi_cu_clock();
    char why[200];
    int state = 0;
    while (!g->running.empty() && !g->lost[0]) {
        opdi_cu_move *const m = g->running.front();
        const cudaError_t e = cudaEventQuery(m->done);
        if (e == cudaErrorNotReady) { break; }
        g->running.pop_front();
        m->passed = true;
        if (!m->held) { opdi_cu_move_free(m); }
    }
    (void)cudaGetLastError();
    if (g->lost[0] || !g->comm) { return; }
    const int asked = opdi_cu_nccl.CommGetAsyncError(g->comm, &state);
    if (asked || (state && state != OPDI_CU_NCCL_IN_PROGRESS)) {
        (void)snprintf(why, sizeof why, "NCCL: %s", opdi_cu_nccl.GetErrorString(asked ? asked : state));
        opdi_cu_group_lose(g, g->running.empty() ? NULL : g->running.front(), why);
        return;
    }
    if (g->running.empty()) { return; }
    opdi_cu_move *const m = g->running.front();
    if (!m->begun && cudaEventQuery(m->ready) == cudaSuccess) { m->begun = now; }
    (void)cudaGetLastError();
    if (m->begun && now - m->begun >= g->timeout_ms) {
        (void)snprintf(why, sizeof why, "it was not done after %.3g s: a rank has ended, or called another function",
                       (double)g->timeout_ms / 1000);
        opdi_cu_group_lose(g, m, why);
    }
}
static void opdi_cu_group_watch(opdi_cu_group *g) {
    std::unique_lock<std::mutex> hold(g->lock);
    (void)cudaSetDevice(g->device);
    while (!g->ends) {
        if (g->lost[0] || (g->kept.empty() && g->running.empty())) {
            (void)g->wake.wait_for(hold, std::chrono::seconds(1));
            if (!g->lost[0]) { opdi_cu_group_poll(g); }
            continue;
        }
        if (!g->kept.empty() && opdi_cu_clock() - g->kept.front()->asked >= OPDI_CU_KEPT_MS) {
            (void)opdi_cu_group_flush(g);
        }
        opdi_cu_group_poll(g);
        hold.unlock();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        hold.lock();
    }
}
static int opdi_cu_group_abandon(void *user, const char *why) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    const opdi_cu_on on(g->device);
    std::lock_guard<std::mutex> hold(g->lock);
    opdi_cu_group_lose(g, NULL, why);
    return 0;
}
/* Waits for the group's transfers, ends its watching thread, and frees the communicator when all ranks have finished
   with it. */
static void opdi_cu_group_leave(opdi_cu_group *g) {
    std::unique_lock<std::mutex> hold(g->lock);
    (void)opdi_cu_group_flush(g);
    while (!g->running.empty() && !g->lost[0]) {
        opdi_cu_group_poll(g);
        hold.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        hold.lock();
    }
    g->ends = true;
    g->wake.notify_all();
    hold.unlock();
    if (g->watch.joinable()) { g->watch.join(); }
    if (!g->lost[0] && g->comm && opdi_cu_group_wait_accepted(g, NULL, opdi_cu_nccl.CommFinalize(g->comm)) == 0) {
        (void)opdi_cu_nccl.CommDestroy(g->comm);
    }
}
static void opdi_cu_group_free(opdi_cu_group *g) {
    for (opdi_cu_move *m : g->kept) { opdi_cu_move_free(m); }
    for (opdi_cu_move *m : g->running) { opdi_cu_move_free(m); }
    if (g->stream) { opdi_cu_stream_free(NULL, g->device, (int64_t)(intptr_t)g->stream); }
    opdi_cu_lost_forget(g);
    delete g;
}
static int opdi_cu_group_destroy(void *user) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    const opdi_cu_on on(g->device);
    opdi_cu_group_list(g, false);
    opdi_cu_group_leave(g);
    const int rc = g->lost[0] ? opdi_cu_group_gone(g) : 0;
    opdi_cu_group_free(g);
    return rc;
}

//== functions of the backend ==========================================================================================

static int opdi_cu_group_id(void *user, int index, void *id) {
    const opdi_cu_on on(index);
    (void)user;
    if (opdi_cu_nccl_load()) { return -1; }
    const int result = id ? opdi_cu_nccl.GetUniqueId((opdi_cu_nccl_id *)id) : 0;
    return result == 0 ? 0 : opd_fail(OPD_ERROR_KERNEL, "ncclGetUniqueId: %s", opdi_cu_nccl.GetErrorString(result));
}
static int opdi_cu_group_ready(void *user) {
    opdi_cu_group *const g = (opdi_cu_group *)user;
    const opdi_cu_on on(g->device);
    std::unique_lock<std::mutex> hold(g->lock);
    if (!g->lost[0]) { (void)opdi_cu_group_wait_accepted(g, NULL, OPDI_CU_NCCL_IN_PROGRESS); }
    if (g->lost[0]) { return opdi_cu_group_gone(g); }
    g->watch = std::thread(opdi_cu_group_watch, g);
    hold.unlock();
    opdi_cu_group_list(g, true);
    return 0;
}
/* Begins to join the other ranks in a communicator, whose id is `id`.  Returns 0, or -1 and sets an error. */
static int opdi_cu_group_join(opdi_cu_group *g, const void *id) {
    opdi_cu_nccl_config config;
    opdi_cu_nccl_id key;
    int64_t stream = 0;
    memcpy(&key, id, sizeof key);
    memset(&config, 0, sizeof config);
    config.size = sizeof config;
    config.magic = 0xcafebeefu;                   /* NCCL_API_MAGIC */
    config.version = OPDI_CU_NCCL_FIRST;
    if (opdi_cu_stream_new(NULL, g->device, &stream)) { return -1; }
    g->stream = (cudaStream_t)(intptr_t)stream;
    const int result = opdi_cu_nccl.CommInitRankConfig(&g->comm, g->size, key, g->rank, &config);
    if (result == 0 || result == OPDI_CU_NCCL_IN_PROGRESS) { return 0; }
    return opd_fail(OPD_ERROR_KERNEL, "ncclCommInitRankConfig: %s", opdi_cu_nccl.GetErrorString(result));
}
static int opdi_cu_group_new(void *user, int index, const opd_group_desc *group, const void *id,
                             opd_group_mover *mover) {
    const opdi_cu_on on(index);
    (void)user;
    if (opdi_cu_nccl_load()) { return -1; }
    opdi_cu_group *const g = new (std::nothrow) opdi_cu_group();
    if (!g) { return opdi_cu_no_memory("a process group"); }
    (void)snprintf(g->name, sizeof g->name, "%s", group->name);
    g->device = index;
    g->rank = group->rank;
    g->size = group->size;
    g->timeout_ms = group->timeout_ms;
    if (opdi_cu_group_join(g, id)) {
        opdi_cu_group_free(g);
        return -1;
    }
    mover->ready = opdi_cu_group_ready;
    mover->takes = opdi_cu_group_takes; mover->start = opdi_cu_group_start; mover->wait = opdi_cu_group_wait;
    mover->test = opdi_cu_group_test; mover->flush = opdi_cu_group_begin;
    mover->abandon = opdi_cu_group_abandon; mover->destroy = opdi_cu_group_destroy;
    mover->user = g;
    return 0;
}

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:pointwise   pointwise formulas
//
//  Each pointwise formula becomes a functor, which three kernels can run.  Contiguous operands of the same dtype are
//  processed 16 bytes at a time.  Operands of the same dtype that have strides or repeated elements are processed in
//  the same way along the innermost dim, if that is possible.  All other operands are processed one element at a time,
//  with dtypes that are known only at run time.
//----------------------------------------------------------------------------------------------------------------------

/* The numbers of a pointwise formula: its parameters a, b, c, and in `in` those operands that are numbers instead of
   tensors. */
template <typename C> struct opdi_cu_pointwise_numbers { C a, b, c, in[3]; };

template <int F, typename C> struct opdi_cu_pointwise_formula;
/* heavy: whether a formula is more than plain arithmetic; the code of heavy formulas is compiled in few variants */
#define OPDI_CU_HEAVY_W 0
#define OPDI_CU_HEAVY_V 0
#define OPDI_CU_HEAVY_S 1
#define OPDI_CU_HEAVY_D 1
#define OPDI_CU_HEAVY_M 1
#define OPDI_CU_HEAVY_N 1
#define OPDI_CU_FORMULA(name, inputs_, kind, formula) \
    template <> struct opdi_cu_pointwise_formula<OPD_FORMULA_##name, OPD_T> { \
        enum { inputs = inputs_, heavy = OPDI_CU_HEAVY_##kind }; \
        static __device__ __forceinline__ OPD_T run(OPD_T x, OPD_T y, OPD_T z, OPD_T a, OPD_T b, OPD_T c) { \
            (void)y; (void)z; (void)a; (void)b; (void)c; \
            return (OPD_T)(formula); \
        } \
    };
#define OPD_FORMULA_QUALIFIERS static __device__ inline
#define OPD_ADD(x, y) ((x) + (y))
#define OPD_SUB(x, y) ((x) - (y))
#define OPD_MUL(x, y) ((x) * (y))
#define OPD_NEG(x) (-(x))
#define OPD_T float
#define OPD_FN(name) name##f
#define OPD_H(name) opdi_cu_f32_##name
#define OPD_FORMULA_HELPERS_FLOAT
#include "opdispatch.h"
OPD_FORMULAS_ALL(OPDI_CU_FORMULA)
OPD_FORMULAS_FLOAT(OPDI_CU_FORMULA)
#undef OPD_T
#undef OPD_FN
#undef OPD_H
#define OPD_T double
#define OPD_FN(name) name
#define OPD_H(name) opdi_cu_f64_##name
#define OPD_FORMULA_HELPERS_FLOAT
#include "opdispatch.h"
OPD_FORMULAS_ALL(OPDI_CU_FORMULA)
OPD_FORMULAS_FLOAT(OPDI_CU_FORMULA)
#undef OPD_T
#undef OPD_FN
#undef OPD_H
#undef OPD_ADD
#undef OPD_SUB
#undef OPD_MUL
#undef OPD_NEG
#define OPD_T int64_t
#define OPD_H(name) opdi_cu_i64_##name
#define OPD_HELPER(name) opdi_cu_i64_##name
#define OPD_ADD(x, y) ((int64_t)((uint64_t)(x) + (uint64_t)(y)))
#define OPD_SUB(x, y) ((int64_t)((uint64_t)(x) - (uint64_t)(y)))
#define OPD_MUL(x, y) ((int64_t)((uint64_t)(x) * (uint64_t)(y)))
#define OPD_NEG(x) ((int64_t)(0 - (uint64_t)(x)))
#define OPD_NOTES
#define OPD_PASS_NOTES
#define OPD_NOTE(k)                               /* notes nothing: the result is 0 where PyTorch's is undefined */
#define OPD_SMALLEST INT64_MIN
#define OPD_FORMULA_HELPERS_INT
#include "opdispatch.h"
OPD_FORMULAS_ALL(OPDI_CU_FORMULA)
OPD_FORMULAS_INT(OPDI_CU_FORMULA)
#undef OPD_T
#undef OPD_H
#undef OPD_HELPER
#undef OPD_ADD
#undef OPD_SUB
#undef OPD_MUL
#undef OPD_NEG
#undef OPD_NOTES
#undef OPD_PASS_NOTES
#undef OPD_NOTE
#undef OPD_SMALLEST

/* Returns whether the fast kernels store bool for pointwise formula f (a comparison, for example), instead of the
   inputs' type.  (`where` reads a bool, but does not store it.) */
__host__ __device__ constexpr bool opdi_cu_asks(int f) {
    return f == OPD_FORMULA_eq || f == OPD_FORMULA_ne || f == OPD_FORMULA_lt || f == OPD_FORMULA_le ||
           f == OPD_FORMULA_gt || f == OPD_FORMULA_ge || f == OPD_FORMULA_logical_not ||
           f == OPD_FORMULA_logical_and || f == OPD_FORMULA_logical_or || f == OPD_FORMULA_logical_xor ||
           f == OPD_FORMULA_isnan || f == OPD_FORMULA_isinf || f == OPD_FORMULA_isfinite ||
           f == OPD_FORMULA_isposinf || f == OPD_FORMULA_isneginf || f == OPD_FORMULA_signbit;
}
template <bool B, typename T> struct opdi_cu_or_bool { typedef T type; };
template <typename T> struct opdi_cu_or_bool<true, T> { typedef bool type; };

//== kernels for contiguous operands ===================================================================================

#define OPDI_CU_BLOCK_SIZE 256

template <typename C> struct opdi_cu_pointwise_flat_args {
    void *out;
    const void *in[3];                            /* NULL: the operand is a number */
    int64_t n;
    int32_t numbers;                              /* bit k: in[k] is NULL */
    opdi_cu_pointwise_numbers<C> s;
};
/* Loads the first `runs` of U runs of N elements, which are `step` apart.  If p is NULL, the operand is a number, and
   nothing is loaded.  A kernel loads the runs of all operands before it uses any, so that all loads are in flight at
   once.  Afterwards, the kernel finds out from the mask `numbers` which operands are numbers; the compiler does not
   know that this is the same condition. */
template <int N, int U, typename T>
__device__ __forceinline__ void opdi_cu_pointwise_fetch(opdi_cu_vector<T, N> *to /*[U]*/, const T *p, int64_t i,
                                                        int step, int runs) {
    if (p) {
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { if (u < runs) { to[u] = opdi_cu_load_vector<N>(p + i + u * step); } }
    }
}
template <typename C, typename T, int N>
__device__ __forceinline__ C opdi_cu_pointwise_taken(const opdi_cu_vector<T, N> &v, int j, bool number, C s) {
    return number ? s : opdi_cu_taken<C>(v, j);
}
/* Returns the number of runs of 16 bytes that a thread computes: enough to keep loads in flight with one or two
   operands, but with few copies of the code of heavy formulas. */
__host__ __device__ constexpr int opdi_cu_pointwise_unrolled(int formula, int inputs, bool heavy, int size) {
    return !heavy ? inputs == 1 ? 4 : 2 : inputs == 1 && (size >= 4 || formula == OPD_FORMULA_gelu ||
        formula == OPD_FORMULA_gelu_tanh || formula == OPD_FORMULA_sigmoid || formula == OPD_FORMULA_silu) ? 2 : 1;
}
template <int F, typename C, typename T> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_pointwise_flat(const opdi_cu_pointwise_flat_args<C> f) {
    typedef opdi_cu_pointwise_formula<F, C> formula;
    typedef typename opdi_cu_or_bool<opdi_cu_asks(F), T>::type R;
    typedef typename opdi_cu_or_bool<F == OPD_FORMULA_where, T>::type X;
    constexpr int N = 16 / sizeof(T), K = formula::inputs, step = OPDI_CU_BLOCK_SIZE * N;
    constexpr int U = opdi_cu_pointwise_unrolled(F, K, formula::heavy, sizeof(T));
    R *out = (R *)f.out;
    const X *xp = (const X *)f.in[0];
    const T *yp = (const T *)f.in[1], *zp = (const T *)f.in[2];
    const int64_t i = (int64_t)blockIdx.x * (step * U) + (int)threadIdx.x * N, left = f.n - i;
    const int runs = left >= step * U ? U : left < N ? 0 : (int)((uint32_t)(left - N) / (uint32_t)step) + 1;
    opdi_cu_vector<X, N> x[U];
    opdi_cu_vector<T, N> y[U], z[U];
    opdi_cu_pointwise_fetch<N, U>(x, xp, i, step, runs);
    if (K > 1) { opdi_cu_pointwise_fetch<N, U>(y, yp, i, step, runs); }
    if (K > 2) { opdi_cu_pointwise_fetch<N, U>(z, zp, i, step, runs); }
    OPDI_CU_UNROLL
    for (int u = 0; u < U; u++) {
        opdi_cu_vector<R, N> r;
        OPDI_CU_UNROLL
        for (int j = 0; j < N; j++) {
            const C a = opdi_cu_pointwise_taken(x[u], j, f.numbers & 1, f.s.in[0]);
            const C b = K > 1 ? opdi_cu_pointwise_taken(y[u], j, f.numbers & 2, f.s.in[1]) : a;
            const C c = K > 2 ? opdi_cu_pointwise_taken(z[u], j, f.numbers & 4, f.s.in[2]) : a;
            r.at[j] = opdi_cu_cast<R>(formula::run(a, b, c, f.s.a, f.s.b, f.s.c));
        }
        if (u < runs) { opdi_cu_store_vector<N>(out + i + u * step, r); }
    }
    const int64_t last = f.n / N * N + threadIdx.x;             /* elements after the last run */
    if (blockIdx.x == gridDim.x - 1 && last < f.n) {
        const C a = xp ? opdi_cu_load<C>(xp + last) : f.s.in[0];
        const C b = K > 1 ? (yp ? opdi_cu_load<C>(yp + last) : f.s.in[1]) : a;
        const C c = K > 2 ? (zp ? opdi_cu_load<C>(zp + last) : f.s.in[2]) : a;
        opdi_cu_store(out + last, formula::run(a, b, c, f.s.a, f.s.b, f.s.c));
    }
}

//== kernels for operands with strides =================================================================================

#define OPDI_CU_POINTWISE_DIMS 12
/* Computes n / d for n below 2^31 as ((n * m >> 32) + n) >> s. */
struct opdi_cu_pointwise_divider {
    uint32_t d, m, s;
    __device__ __forceinline__ uint32_t of(uint32_t n) const { return (__umulhi(n, m) + n) >> s; }
};
static opdi_cu_pointwise_divider opdi_cu_divide_by(uint32_t d) {
    opdi_cu_pointwise_divider r = {d, 0, 0};
    while ((uint64_t)1 << r.s < d) { r.s++; }
    r.m = (uint32_t)((((uint64_t)1 << 32) * (((uint64_t)1 << r.s) - d)) / d + 1);
    return r;
}
/* The layout of up to four operands with fewer than 2^31 elements.  Dim 0 is the innermost; strides are in elements. */
struct opdi_cu_pointwise_walk {
    int32_t ndim, n;
    opdi_cu_pointwise_divider sizes[OPDI_CU_POINTWISE_DIMS];
    int64_t strides[4][OPDI_CU_POINTWISE_DIMS];
    void *data[4];                                /* NULL: the operand is a number */
    int32_t dtype[4];
};
/* Computes the offset of element i in each of K operands. */
template <int K> __device__ __forceinline__ void opdi_cu_pointwise_offsets(const opdi_cu_pointwise_walk &w, uint32_t i,
                                                                           int64_t *at) {
#pragma unroll
    for (int k = 0; k < K; k++) { at[k] = 0; }
#pragma unroll 1
    for (int d = 0; d < w.ndim - 1; d++) {
        const uint32_t q = w.sizes[d].of(i);
        const int64_t r = i - q * w.sizes[d].d;
#pragma unroll
        for (int k = 0; k < K; k++) { at[k] += r * w.strides[k][d]; }
        i = q;
    }
#pragma unroll
    for (int k = 0; k < K; k++) { at[k] += (int64_t)i * w.strides[k][w.ndim - 1]; }
}
/* The arguments of the kernel for operands with strides.  A thread processes element i or, if `run` is true, the N
   elements from i * N on, which are contiguous in each operand, or the same element. */
template <typename C> struct opdi_cu_pointwise_strided_args {
    opdi_cu_pointwise_walk w;
    opdi_cu_pointwise_numbers<C> s;
    int32_t run, numbers;
};
/* Loads the N elements at p + at.  If `stride` is 0, they are the same element, which is only stored as to->at[0]. */
template <int N, typename T>
__device__ __forceinline__ void opdi_cu_pointwise_fetch_run(opdi_cu_vector<T, N> *to, const T *p, int64_t at,
                                                            int64_t stride) {
    if (!p) { return; }
    if (stride) { *to = opdi_cu_load_vector<N>(p + at); } else { to->at[0] = p[at]; }
}
template <int F, typename C, typename T> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_pointwise_strided(const opdi_cu_pointwise_strided_args<C> f) {
    typedef opdi_cu_pointwise_formula<F, C> formula;
    typedef typename opdi_cu_or_bool<opdi_cu_asks(F), T>::type R;
    typedef typename opdi_cu_or_bool<F == OPD_FORMULA_where, T>::type X;
    constexpr int N = 16 / sizeof(T), K = formula::inputs + 1, Y = K > 2 ? 2 : 0, Z = K > 3 ? 3 : 0;
    R *out = (R *)f.w.data[0];
    const X *xp = (const X *)f.w.data[1];
    const T *yp = (const T *)f.w.data[2], *zp = (const T *)f.w.data[3];
    const uint32_t step = gridDim.x * OPDI_CU_BLOCK_SIZE;
    int64_t at[K];
    if (f.run) {
        const bool xs = f.w.strides[1][0] != 0, ys = f.w.strides[2][0] != 0, zs = f.w.strides[3][0] != 0;
        OPDI_CU_ROLLED
        for (uint32_t i = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x; i < (uint32_t)f.w.n; i += step) {
            opdi_cu_vector<X, N> x;
            opdi_cu_vector<T, N> y, z;
            opdi_cu_vector<R, N> r;
            opdi_cu_pointwise_offsets<K>(f.w, i * N, at);
            opdi_cu_pointwise_fetch_run<N>(&x, xp, at[1], f.w.strides[1][0]);
            if (K > 2) { opdi_cu_pointwise_fetch_run<N>(&y, yp, at[Y], f.w.strides[2][0]); }
            if (K > 3) { opdi_cu_pointwise_fetch_run<N>(&z, zp, at[Z], f.w.strides[3][0]); }
            OPDI_CU_UNROLL
            for (int j = 0; j < N; j++) {
                const C a = opdi_cu_cast<C>(xs ? x.at[j] : x.at[0]);
                const C b = opdi_cu_cast<C>(ys ? y.at[j] : y.at[0]), c = opdi_cu_cast<C>(zs ? z.at[j] : z.at[0]);
                const C av = f.numbers & 1 ? f.s.in[0] : a;
                r.at[j] = opdi_cu_cast<R>(formula::run(av, K > 2 ? (f.numbers & 2 ? f.s.in[1] : b) : av,
                                                       K > 3 ? (f.numbers & 4 ? f.s.in[2] : c) : av, f.s.a, f.s.b,
                                                       f.s.c));
            }
            opdi_cu_store_vector<N>(out + at[0], r);
        }
        return;
    }
    OPDI_CU_ROLLED
    for (uint32_t i = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x; i < (uint32_t)f.w.n; i += step) {
        opdi_cu_pointwise_offsets<K>(f.w, i, at);
        const C x = xp ? opdi_cu_load<C>(xp + at[1]) : f.s.in[0];
        const C y = K > 2 ? (yp ? opdi_cu_load<C>(yp + at[Y]) : f.s.in[1]) : x;
        const C z = K > 3 ? (zp ? opdi_cu_load<C>(zp + at[Z]) : f.s.in[2]) : x;
        opdi_cu_store(out + at[0], formula::run(x, y, z, f.s.a, f.s.b, f.s.c));
    }
}

/* Computes a heavy formula in f.run runs of N elements, of which a thread processes U.  If there is only one dim, there
   may be up to N - 1 more elements, which the last block processes. */
template <int F, typename C, typename T> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_pointwise_heavy(const opdi_cu_pointwise_strided_args<C> f) {
    typedef opdi_cu_pointwise_formula<F, C> formula;
    typedef typename opdi_cu_or_bool<opdi_cu_asks(F), T>::type R;
    constexpr int N = 16 / sizeof(T), K = formula::inputs + 1, Y = K > 2 ? 2 : 0, Z = K > 3 ? 3 : 0;
    constexpr int U = opdi_cu_pointwise_unrolled(F, K - 1, true, sizeof(T));
    R *out = (R *)f.w.data[0];
    const T *xp = (const T *)f.w.data[1], *yp = (const T *)f.w.data[2], *zp = (const T *)f.w.data[3];
    const uint32_t first = blockIdx.x * (OPDI_CU_BLOCK_SIZE * U) + threadIdx.x;
    const bool xs = f.w.strides[1][0] != 0, ys = f.w.strides[2][0] != 0, zs = f.w.strides[3][0] != 0;
    opdi_cu_vector<T, N> x[U], y[U], z[U];
    int64_t at[U][K];
    OPDI_CU_UNROLL
    for (int u = 0; u < U; u++) {
        const uint32_t i = first + u * OPDI_CU_BLOCK_SIZE;
        if (i >= (uint32_t)f.run) { break; }
        opdi_cu_pointwise_offsets<K>(f.w, i * N, at[u]);
        opdi_cu_pointwise_fetch_run<N>(&x[u], xp, at[u][1], f.w.strides[1][0]);
        if (K > 2) { opdi_cu_pointwise_fetch_run<N>(&y[u], yp, at[u][Y], f.w.strides[2][0]); }
        if (K > 3) { opdi_cu_pointwise_fetch_run<N>(&z[u], zp, at[u][Z], f.w.strides[3][0]); }
    }
    OPDI_CU_UNROLL
    for (int u = 0; u < U; u++) {
        opdi_cu_vector<R, N> r;
        if (first + u * OPDI_CU_BLOCK_SIZE >= (uint32_t)f.run) { break; }
        OPDI_CU_UNROLL
        for (int j = 0; j < N; j++) {
            const C a = f.numbers & 1 ? f.s.in[0] : opdi_cu_cast<C>(xs ? x[u].at[j] : x[u].at[0]);
            const C b = K < 3 ? a : f.numbers & 2 ? f.s.in[1] : opdi_cu_cast<C>(ys ? y[u].at[j] : y[u].at[0]);
            const C c = K < 4 ? a : f.numbers & 4 ? f.s.in[2] : opdi_cu_cast<C>(zs ? z[u].at[j] : z[u].at[0]);
            r.at[j] = opdi_cu_cast<R>(formula::run(a, b, c, f.s.a, f.s.b, f.s.c));
        }
        opdi_cu_store_vector<N>(out + at[u][0], r);
    }
    const int64_t last = (int64_t)f.run * N + threadIdx.x;
    if (blockIdx.x == gridDim.x - 1 && last < f.w.n) {
        const C a = xp ? opdi_cu_load<C>(xp + (xs ? last : 0)) : f.s.in[0];
        const C b = K < 3 ? a : yp ? opdi_cu_load<C>(yp + (ys ? last : 0)) : f.s.in[1];
        const C c = K < 4 ? a : zp ? opdi_cu_load<C>(zp + (zs ? last : 0)) : f.s.in[2];
        opdi_cu_store(out + last, formula::run(a, b, c, f.s.a, f.s.b, f.s.c));
    }
}

//== kernels for dtypes known at run time ==============================================================================

#define OPDI_CU_EACH_DTYPE(X) \
    X(OPD_FLOAT32, float) X(OPD_FLOAT64, double) X(OPD_FLOAT16, opdi_cu_f16) X(OPD_BFLOAT16, opdi_cu_bf16) \
    X(OPD_UINT8, uint8_t) X(OPD_INT8, int8_t) X(OPD_INT16, int16_t) X(OPD_INT32, int32_t) X(OPD_INT64, int64_t) \
    X(OPD_BOOL, bool)
template <typename C> __device__ OPDI_CU_NOINLINE C opdi_cu_load_as(const void *p, int64_t i, int dtype) {
    switch (dtype) {
#define OPDI_CU_LOAD_CASE(number, T) case number: return opdi_cu_load<C>((const T *)p + i);
        OPDI_CU_EACH_DTYPE(OPDI_CU_LOAD_CASE)
        default: return C(0);
    }
}
template <typename C> __device__ OPDI_CU_NOINLINE void opdi_cu_store_as(void *p, int64_t i, int dtype, C v) {
    switch (dtype) {
#define OPDI_CU_STORE_CASE(number, T) case number: opdi_cu_store((T *)p + i, v); break;
        OPDI_CU_EACH_DTYPE(OPDI_CU_STORE_CASE)
        default: break;
    }
}
/* Returns v converted to `dtype` and back. */
template <typename C> __device__ OPDI_CU_NOINLINE C opdi_cu_through(C v, int dtype) {
    switch (dtype) {
#define OPDI_CU_THROUGH_CASE(number, T) case number: return opdi_cu_cast<C>(opdi_cu_cast<T>(v));
        OPDI_CU_EACH_DTYPE(OPDI_CU_THROUGH_CASE)
        default: return v;
    }
}
/* N numbers of type C: the same three functions for runs of N elements, which are contiguous and aligned to 16 bytes or
   to the size of the run.  The numbers stay in registers. */
template <typename C, int N> struct opdi_cu_many { C at[N]; };
template <int N, typename C, typename T> __device__ __forceinline__ void opdi_cu_load_many(C *to, const T *p) {
    constexpr int P = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
    OPDI_CU_UNROLL
    for (int i = 0; i < N; i += P) {
        const opdi_cu_vector<T, P> v = opdi_cu_load_vector<P>(p + i);
        OPDI_CU_UNROLL
        for (int j = 0; j < P; j++) { to[i + j] = opdi_cu_taken<C>(v, j); }
    }
}
template <int N, typename C, typename T> __device__ __forceinline__ void opdi_cu_store_many(T *p, const C *from) {
    constexpr int P = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
    OPDI_CU_UNROLL
    for (int i = 0; i < N; i += P) {
        opdi_cu_vector<T, P> v;
        OPDI_CU_UNROLL
        for (int j = 0; j < P; j++) { v.at[j] = opdi_cu_cast<T>(from[i + j]); }
        opdi_cu_store_vector<P>(p + i, v);
    }
}
template <typename C, int N>
__device__ OPDI_CU_NOINLINE opdi_cu_many<C, N> opdi_cu_load_run_as(const void *p, int64_t i, int dtype) {
    opdi_cu_many<C, N> r;
    switch (dtype) {
#define OPDI_CU_LOAD_RUN_CASE(number, T) case number: opdi_cu_load_many<N>(r.at, (const T *)p + i); break;
        OPDI_CU_EACH_DTYPE(OPDI_CU_LOAD_RUN_CASE)
        default: OPDI_CU_UNROLL for (int j = 0; j < N; j++) { r.at[j] = C(0); }
    }
    return r;
}
template <typename C, int N>
__device__ OPDI_CU_NOINLINE void opdi_cu_store_run_as(void *p, int64_t i, int dtype, opdi_cu_many<C, N> v) {
    switch (dtype) {
#define OPDI_CU_STORE_RUN_CASE(number, T) case number: opdi_cu_store_many<N>((T *)p + i, v.at); break;
        OPDI_CU_EACH_DTYPE(OPDI_CU_STORE_RUN_CASE)
        default: break;
    }
}
template <typename C, int N>
__device__ OPDI_CU_NOINLINE opdi_cu_many<C, N> opdi_cu_run_through(opdi_cu_many<C, N> v, int dtype) {
    switch (dtype) {
#define OPDI_CU_RUN_THROUGH_CASE(number, T) \
        case number: \
            OPDI_CU_UNROLL \
            for (int j = 0; j < N; j++) { v.at[j] = opdi_cu_cast<C>(opdi_cu_cast<T>(v.at[j])); } \
            break;
        OPDI_CU_EACH_DTYPE(OPDI_CU_RUN_THROUGH_CASE)
        default: break;
    }
    return v;
}
enum { OPDI_CU_GENERAL_RUN = 8 };
/* runs: the number of runs of OPDI_CU_GENERAL_RUN elements with which the walk begins.
   common: the dtype to which inputs of other dtypes are converted first; -1: they are only converted to the compute
   type. */
template <typename C> struct opdi_cu_pointwise_general_args {
    opdi_cu_pointwise_walk w;
    opdi_cu_pointwise_numbers<C> s;
    int32_t runs, common;
};
template <typename C>
__device__ __forceinline__ C opdi_cu_pointwise_general_in(const opdi_cu_pointwise_general_args<C> &f, int k,
                                                          int64_t at) {
    if (!f.w.data[k]) { return f.s.in[k - 1]; }
    const C v = opdi_cu_load_as<C>(f.w.data[k], at, f.w.dtype[k]);
    return f.common < 0 || f.common == f.w.dtype[k] ? v : opdi_cu_through<C>(v, f.common);
}
template <int N, typename C>
__device__ __forceinline__ void opdi_cu_pointwise_general_run(const opdi_cu_pointwise_general_args<C> &f, int k,
                                                              int64_t at, opdi_cu_many<C, N> *to) {
    if (f.w.data[k] && f.w.strides[k][0] != 0) {
        *to = opdi_cu_load_run_as<C, N>(f.w.data[k], at, f.w.dtype[k]);
        if (f.common >= 0 && f.common != f.w.dtype[k]) { *to = opdi_cu_run_through<C, N>(*to, f.common); }
        return;
    }
    const C one = opdi_cu_pointwise_general_in(f, k, at);
    OPDI_CU_UNROLL
    for (int j = 0; j < N; j++) { to->at[j] = one; }
}
/* Moves each number to the place before it, and `last` to the last place.  A loop that is not unrolled can thus read
   and write all places, but keep the numbers in registers. */
template <typename C, int N> __device__ __forceinline__ void opdi_cu_move_on(opdi_cu_many<C, N> *v, C last) {
    OPDI_CU_UNROLL
    for (int j = 0; j + 1 < N; j++) { v->at[j] = v->at[j + 1]; }
    v->at[N - 1] = last;
}
template <int F, typename C> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_pointwise_general(const opdi_cu_pointwise_general_args<C> f) {
    typedef opdi_cu_pointwise_formula<F, C> formula;
    constexpr int K = formula::inputs + 1, Y = K > 2 ? 2 : 0, Z = K > 3 ? 3 : 0, N = OPDI_CU_GENERAL_RUN;
    const uint32_t step = gridDim.x * OPDI_CU_BLOCK_SIZE, first = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x;
    int64_t at[K];
    OPDI_CU_ROLLED
    for (uint32_t i = first; i < (uint32_t)f.runs; i += step) {
        opdi_cu_many<C, N> x, y, z;
        opdi_cu_pointwise_offsets<K>(f.w, i * N, at);
        opdi_cu_pointwise_general_run<N>(f, 1, at[1], &x);
        if (K > 2) { opdi_cu_pointwise_general_run<N>(f, 2, at[Y], &y); }
        if (K > 3) { opdi_cu_pointwise_general_run<N>(f, 3, at[Z], &z); }
        if constexpr (formula::heavy) {
            OPDI_CU_ROLLED
            for (int j = 0; j < N; j++) {
                const C r = formula::run(x.at[0], K > 2 ? y.at[0] : x.at[0], K > 3 ? z.at[0] : x.at[0], f.s.a, f.s.b,
                                         f.s.c);
                if (K > 2) { opdi_cu_move_on(&y, C(0)); }
                if (K > 3) { opdi_cu_move_on(&z, C(0)); }
                opdi_cu_move_on(&x, r);
            }
        } else {
            OPDI_CU_UNROLL
            for (int j = 0; j < N; j++) {
                x.at[j] = formula::run(x.at[j], K > 2 ? y.at[j] : x.at[j], K > 3 ? z.at[j] : x.at[j], f.s.a, f.s.b,
                                       f.s.c);
            }
        }
        opdi_cu_store_run_as<C, N>(f.w.data[0], at[0], f.w.dtype[0], x);
    }
    OPDI_CU_ROLLED
    for (uint32_t i = (uint32_t)f.runs * N + first; i < (uint32_t)f.w.n; i += step) {
        opdi_cu_pointwise_offsets<K>(f.w, i, at);
        const C x = opdi_cu_pointwise_general_in(f, 1, at[1]);
        const C y = K > 2 ? opdi_cu_pointwise_general_in(f, 2, at[Y]) : x;
        const C z = K > 3 ? opdi_cu_pointwise_general_in(f, 3, at[Z]) : x;
        opdi_cu_store_as<C>(f.w.data[0], at[0], f.w.dtype[0], formula::run(x, y, z, f.s.a, f.s.b, f.s.c));
    }
}

//== choosing a kernel =================================================================================================

/* The kernels of a pointwise formula that compute in the type C.  A kernel is NULL if there is none for the dtype or
   formula: heavy formulas have only a strided kernel (opdi_cu_pointwise_heavy), which needs runs. */
template <typename C> struct opdi_cu_pointwise_kernels {
    void (*flat[3])(opdi_cu_pointwise_flat_args<C>); /* by opdi_cu_fast_dtype */
    void (*strided[3])(opdi_cu_pointwise_strided_args<C>);
    void (*general)(opdi_cu_pointwise_general_args<C>);
    int inputs;
    bool heavy;
};
/* Sets the kernels for operands of type T, number `at` of the kernels of their dtypes. */
template <int F, typename T, typename C> static void opdi_cu_kernels_for(opdi_cu_pointwise_kernels<C> *k, int at) {
    if constexpr (opdi_cu_pointwise_formula<F, C>::heavy) { k->strided[at] = opdi_cu_pointwise_heavy<F, C, T>; }
    else {
        k->flat[at] = opdi_cu_pointwise_flat<F, C, T>;
        if constexpr (sizeof(C) == 4 || sizeof(T) == 8) { k->strided[at] = opdi_cu_pointwise_strided<F, C, T>; }
    }
}
template <int F, typename C> static opdi_cu_pointwise_kernels<C> opdi_cu_kernels_start() {
    typedef opdi_cu_pointwise_formula<F, C> formula;
    const opdi_cu_pointwise_kernels<C> k = {{NULL, NULL, NULL}, {NULL, NULL, NULL}, opdi_cu_pointwise_general<F, C>,
                                            formula::inputs, formula::heavy != 0};
    return k;
}
template <int F> static opdi_cu_pointwise_kernels<float> opdi_cu_kernels_f32() {
    opdi_cu_pointwise_kernels<float> k = opdi_cu_kernels_start<F, float>();
    opdi_cu_kernels_for<F, float>(&k, 0);
    opdi_cu_kernels_for<F, opdi_cu_f16>(&k, 1);
    opdi_cu_kernels_for<F, opdi_cu_bf16>(&k, 2);
    return k;
}
template <int F> static opdi_cu_pointwise_kernels<double> opdi_cu_kernels_f64() {
    opdi_cu_pointwise_kernels<double> k = opdi_cu_kernels_start<F, double>();
    opdi_cu_kernels_for<F, double>(&k, 0);
    return k;
}
template <int F> static opdi_cu_pointwise_kernels<int64_t> opdi_cu_kernels_i64() {
    opdi_cu_pointwise_kernels<int64_t> k = opdi_cu_kernels_start<F, int64_t>();
    opdi_cu_kernels_for<F, int64_t>(&k, 0);
    opdi_cu_kernels_for<F, int32_t>(&k, 1);
    return k;
}
#define OPDI_CU_PICK_f32(name, inputs, kind, formula) \
    case OPD_FORMULA_##name: return opdi_cu_kernels_f32<OPD_FORMULA_##name>();
#define OPDI_CU_PICK_f64(name, inputs, kind, formula) \
    case OPD_FORMULA_##name: return opdi_cu_kernels_f64<OPD_FORMULA_##name>();
#define OPDI_CU_PICK_i64(name, inputs, kind, formula) \
    case OPD_FORMULA_##name: return opdi_cu_kernels_i64<OPD_FORMULA_##name>();
static opdi_cu_pointwise_kernels<float> opdi_cu_pointwise_kernels_of(int formula, float) {
    switch (formula) {
        OPD_FORMULAS_ALL(OPDI_CU_PICK_f32) OPD_FORMULAS_FLOAT(OPDI_CU_PICK_f32)
        default: return opdi_cu_pointwise_kernels<float>();
    }
}
static opdi_cu_pointwise_kernels<double> opdi_cu_pointwise_kernels_of(int formula, double) {
    switch (formula) {
        OPD_FORMULAS_ALL(OPDI_CU_PICK_f64) OPD_FORMULAS_FLOAT(OPDI_CU_PICK_f64)
        default: return opdi_cu_pointwise_kernels<double>();
    }
}
static opdi_cu_pointwise_kernels<int64_t> opdi_cu_pointwise_kernels_of(int formula, int64_t) {
    switch (formula) {
        OPD_FORMULAS_ALL(OPDI_CU_PICK_i64) OPD_FORMULAS_INT(OPDI_CU_PICK_i64)
        default: return opdi_cu_pointwise_kernels<int64_t>();
    }
}
/* Returns the index in opdi_cu_pointwise_kernels of the fast kernels for a dtype, or -1 if there are none. */
static int opdi_cu_fast_dtype(opd_scalar_type t, float) {
    return t == OPD_FLOAT32 ? 0 : t == OPD_FLOAT16 ? 1 : t == OPD_BFLOAT16 ? 2 : -1;
}
static int opdi_cu_fast_dtype(opd_scalar_type t, double) { return t == OPD_FLOAT64 ? 0 : -1; }
static int opdi_cu_fast_dtype(opd_scalar_type t, int64_t) { return t == OPD_INT64 ? 0 : t == OPD_INT32 ? 1 : -1; }
/* Returns the dtype of the first tensor among the inputs if inputs are only converted to the compute type, else
   p->common.  The two differ if a 16-bit float is combined with a number that is not rounded to 16 bits. */
static opd_scalar_type opdi_cu_pointwise_dtype(const opd_pointwise *p) {
    for (int k = p->formula == OPD_FORMULA_where ? 2 : 1; k < p->noperands && p->common == p->compute; k++) {
        if (p->operands[k].data) { return p->operands[k].dtype; }
    }
    return p->common;
}
/* Returns the index of the fast kernels for these operands, or -1 if their dtypes differ, or if there are no fast
   kernels for the dtype. */
template <typename C> static int opdi_cu_pointwise_fast(const opd_pointwise *p) {
    const opd_scalar_type dtype = opdi_cu_pointwise_dtype(p);
    const int which = opdi_cu_fast_dtype(dtype, C(0));
    int k;
    if (which < 0 || p->operands[0].dtype != (opdi_cu_asks(p->formula) ? OPD_BOOL : dtype)) { return -1; }
    for (k = 1; k < p->noperands; k++) {
        const opd_operand *o = &p->operands[k];
        if (!o->data) { continue; }
        if (o->dtype != (p->formula == OPD_FORMULA_where && k == 1 ? OPD_BOOL : dtype)) { return -1; }
    }
    return which;
}
static float opdi_cu_pointwise_number(const opd_operand *o, float) { return (float)o->f64[0]; }
static double opdi_cu_pointwise_number(const opd_operand *o, double) { return o->f64[0]; }
static int64_t opdi_cu_pointwise_number(const opd_operand *o, int64_t) { return o->i64; }
static const float *opdi_cu_abc(const opd_pointwise *p, float) { return p->f32; }
static const double *opdi_cu_abc(const opd_pointwise *p, double) { return p->f64; }
static const int64_t *opdi_cu_abc(const opd_pointwise *p, int64_t) { return p->i64; }
template <typename C> static opdi_cu_pointwise_numbers<C> opdi_cu_pointwise_numbers_of(const opd_pointwise *p) {
    const C *abc = opdi_cu_abc(p, C(0));
    opdi_cu_pointwise_numbers<C> s = {abc[0], abc[1], abc[2], {C(0), C(0), C(0)}};
    int k;
    for (k = 1; k < p->noperands; k++) { s.in[k - 1] = opdi_cu_pointwise_number(&p->operands[k], C(0)); }
    return s;
}
/* Returns a mask: bit k - 1 is set if operand k is a number. */
static int32_t opdi_cu_pointwise_which_numbers(const opd_pointwise *p) {
    int32_t bits = 0;
    int k;
    for (k = 1; k < p->noperands; k++) { bits |= p->operands[k].data ? 0 : 1 << (k - 1); }
    return bits;
}
/* Makes a walk over all elements.  Returns false if there are too many elements or dims. */
static bool opdi_cu_pointwise_walk_of(const opd_pointwise *p, opdi_cu_pointwise_walk *w) {
    int k, d;
    if (p->ndim > OPDI_CU_POINTWISE_DIMS || p->numel > INT32_MAX) { return false; }
    memset(w, 0, sizeof *w);
    w->ndim = p->ndim;
    w->n = (int32_t)p->numel;
    for (d = 0; d < p->ndim; d++) { w->sizes[d] = opdi_cu_divide_by((uint32_t)p->sizes[d]); }
    for (k = 0; k < p->noperands; k++) {
        const opd_operand *o = &p->operands[k];
        w->data[k] = o->data;
        w->dtype[k] = o->dtype;
        for (d = 0; o->data && d < p->ndim; d++) { w->strides[k][d] = p->ndim == 1 && p->linear ? 1 : o->strides[d]; }
    }
    return true;
}
/* Returns the number of runs of n elements with which the walk begins: at each multiple of n, the next n elements of an
   operand are contiguous and aligned, or the same element.  If there is more than one dim, the runs have all elements,
   or the number is 0. */
static int32_t opdi_cu_pointwise_in_runs(const opdi_cu_pointwise_walk *w, int nops, int n) {
    int k, d;
    if ((w->ndim > 1 && w->sizes[0].d % (uint32_t)n) || w->strides[0][0] != 1) { return 0; }
    for (k = 0; k < nops; k++) {
        const int64_t size = w->data[k] ? (int64_t)opd_dtype_size((opd_scalar_type)w->dtype[k]) * n : 0;
        if (!w->data[k] || w->strides[k][0] == 0) { continue; }
        if (w->strides[k][0] != 1 || (uintptr_t)w->data[k] % (uintptr_t)(size < 16 ? size : 16)) { return 0; }
        for (d = 1; d < w->ndim; d++) { if (w->strides[k][d] % n) { return 0; } }
    }
    return w->n / n;
}
template <typename C> static int opdi_cu_pointwise_part(const opd_pointwise *p) {
    const opdi_cu_pointwise_kernels<C> kernels = opdi_cu_pointwise_kernels_of(p->formula, C(0));
    const int fast = opdi_cu_pointwise_fast<C>(p);
    const opdi_cu_pointwise_numbers<C> s = opdi_cu_pointwise_numbers_of<C>(p);
    opdi_cu_pointwise_walk w;
    bool aligned = true;
    int k;
    if (!kernels.general) {
        return opd_fail(OPD_ERROR_NO_KERNEL, "the CUDA plug-in lacks pointwise function %d: compile opdispatch_cuda.cu "
                        "with the opdispatch.h of the program", (int)p->formula);
    }
    for (k = 0; k < p->noperands; k++) { aligned = aligned && opdi_cu_aligned(p->operands[k].data); }
    if (p->linear && fast >= 0 && aligned && kernels.flat[fast]) {
        const int size = (int)opd_dtype_size(opdi_cu_pointwise_dtype(p));
        const int per_thread = 16 / size * opdi_cu_pointwise_unrolled(p->formula, kernels.inputs, kernels.heavy, size);
        opdi_cu_pointwise_flat_args<C> f =
            {p->operands[0].data, {NULL, NULL, NULL}, p->numel, opdi_cu_pointwise_which_numbers(p), s};
        for (k = 1; k < p->noperands; k++) { f.in[k - 1] = p->operands[k].data; }
        return opdi_cu_launch(kernels.flat[fast],
                              dim3((unsigned)opdi_cu_ceil(p->numel, OPDI_CU_BLOCK_SIZE * per_thread)),
                              OPDI_CU_BLOCK_SIZE, 0, f);
    }
    if (!opdi_cu_pointwise_walk_of(p, &w)) { return 1; }
    if (fast >= 0 && kernels.strided[fast]) {
        const int size = (int)opd_dtype_size(opdi_cu_pointwise_dtype(p)), n = 16 / size;
        const int32_t runs = opdi_cu_pointwise_in_runs(&w, p->noperands, n);
        opdi_cu_pointwise_strided_args<C> f = {w, s, runs, opdi_cu_pointwise_which_numbers(p)};
        if (kernels.heavy && runs) {
            const int per_block = OPDI_CU_BLOCK_SIZE *
                opdi_cu_pointwise_unrolled(p->formula, kernels.inputs, kernels.heavy, size);
            return opdi_cu_launch(kernels.strided[fast], dim3((unsigned)opdi_cu_ceil(runs, per_block)),
                                  OPDI_CU_BLOCK_SIZE, 0, f);
        }
        if (!kernels.heavy) {
            if (runs * n != w.n) { f.run = 0; }
            if (f.run) { f.w.n /= n; }
            return opdi_cu_launch(kernels.strided[fast], opdi_cu_grid(f.w.n, OPDI_CU_BLOCK_SIZE), OPDI_CU_BLOCK_SIZE,
                                  0, f);
        }
    }
    opdi_cu_pointwise_general_args<C> f = {w, s, opdi_cu_pointwise_in_runs(&w, p->noperands, OPDI_CU_GENERAL_RUN),
                                           p->common == p->compute ? -1 : (int32_t)p->common};
    return opdi_cu_launch(kernels.general, opdi_cu_grid(f.runs ? f.runs : w.n, OPDI_CU_BLOCK_SIZE), OPDI_CU_BLOCK_SIZE,
                          0, f);
}
static int opdi_cu_copy_part(const opd_pointwise *p);
static int opdi_cu_pointwise_one(const opd_pointwise *p) {
    if (p->formula == OPD_FORMULA_copy) { return opdi_cu_copy_part(p); }
    return p->compute == OPD_FLOAT32 ? opdi_cu_pointwise_part<float>(p)
        : p->compute == OPD_FLOAT64 ? opdi_cu_pointwise_part<double>(p) : opdi_cu_pointwise_part<int64_t>(p);
}
/* Computes a pointwise formula.  If there are too many elements or dims for one launch, splits the outermost dim.
   Returns 0, or -1 and sets an error. */
static int opdi_cu_pointwise_split(const opd_pointwise *p) {
    const int rc = opdi_cu_pointwise_one(p), last = p->ndim - 1;
    const int64_t size = p->sizes[last], half_size = opdi_cu_ceil(size, 2);  /* the second half stays aligned */
    const int64_t step = p->ndim > OPDI_CU_POINTWISE_DIMS ? 1
        : size < 32 ? half_size : opdi_cu_ceil(half_size, 16) * 16;
    int64_t sizes[OPD_MAX_DIMS], at;
    opd_pointwise half = *p;
    int k;
    if (rc <= 0) { return rc; }
    memcpy(sizes, p->sizes, (size_t)p->ndim * sizeof *sizes);
    half.sizes = sizes;
    for (at = 0; at < p->sizes[last]; at += step) {
        sizes[last] = p->sizes[last] - at < step ? p->sizes[last] - at : step;
        half.numel = p->numel / p->sizes[last] * sizes[last];
        half.ndim = p->ndim > OPDI_CU_POINTWISE_DIMS ? last : p->ndim;
        for (k = 0; k < p->noperands; k++) {
            const opd_operand *o = &p->operands[k];
            const int64_t stride = p->linear ? 1 : o->strides[last];
            if (o->data) { half.operands[k].data = (char *)o->data + at * stride * (int64_t)opd_dtype_size(o->dtype); }
        }
        if (opdi_cu_pointwise_split(&half)) { return -1; }
    }
    return 0;
}
static bool opdi_cu_gather_add(int index, const opd_pointwise *p);           /* see >>cu:lists */
static int opdi_cu_pointwise(void *user, int index, const opd_pointwise *p) {
    (void)user;
    if (opdi_cu_gather_add(index, p)) { return 0; }
    const opdi_cu_on on(index);
    return opdi_cu_pointwise_split(p);
}

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:copy        strided and converting copies
//----------------------------------------------------------------------------------------------------------------------

/* Complex numbers.  Kernels only copy and convert them. */
template <typename T> struct alignas(2 * sizeof(T)) opdi_cu_pointwise_complex { T re, im; };
typedef opdi_cu_pointwise_complex<float> opdi_cu_c64;
typedef opdi_cu_pointwise_complex<double> opdi_cu_c128;
template <typename To, typename From> struct opdi_cu_pointwise_moved {
    static __device__ __forceinline__ To of(From v) { return opdi_cu_cast<To>(v); }
};
template <typename To, typename P> struct opdi_cu_pointwise_moved<To, opdi_cu_pointwise_complex<P> > {
    static __device__ __forceinline__ To of(opdi_cu_pointwise_complex<P> v) { return opdi_cu_cast<To>(v.re); }
};
template <typename P> struct opdi_cu_pointwise_moved<bool, opdi_cu_pointwise_complex<P> > {
    static __device__ __forceinline__ bool of(opdi_cu_pointwise_complex<P> v) { return v.re != 0 || v.im != 0; }
};
template <typename Q, typename From> struct opdi_cu_pointwise_moved<opdi_cu_pointwise_complex<Q>, From> {
    static __device__ __forceinline__ opdi_cu_pointwise_complex<Q> of(From v) {
        const opdi_cu_pointwise_complex<Q> c = {opdi_cu_cast<Q>(v), Q(0)};
        return c;
    }
};
template <typename Q, typename P> struct opdi_cu_pointwise_moved<opdi_cu_pointwise_complex<Q>,
    opdi_cu_pointwise_complex<P> > {
    static __device__ __forceinline__ opdi_cu_pointwise_complex<Q> of(opdi_cu_pointwise_complex<P> v) {
        const opdi_cu_pointwise_complex<Q> c = {(Q)v.re, (Q)v.im};
        return c;
    }
};

/* Copies elements of one dtype, contiguous or not.  Dtypes of the same size share a type T, from uint8_t to opdi_cu_16.
   If the source is NULL, writes `number` everywhere.  If `run` is true, w.n is the number of runs of 16 bytes; if there
   is only one dim, `rest` single elements follow the runs. */
template <typename T> struct opdi_cu_pointwise_move { opdi_cu_pointwise_walk w; T number; int32_t run, rest; };
template <typename T> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_copy_same(const opdi_cu_pointwise_move<T> m) {
    constexpr int N = 16 / sizeof(T), U = 4;
    T *out = (T *)m.w.data[0];
    const T *in = (const T *)m.w.data[1];
    const uint32_t step = gridDim.x * OPDI_CU_BLOCK_SIZE, n = (uint32_t)m.w.n;
    uint32_t i = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x;
    if (m.run) {
        const bool repeated = m.w.strides[1][0] == 0;
        OPDI_CU_ROLLED
        for (; repeated && i < n; i += step) {
            opdi_cu_vector<T, N> v;
            int64_t at[2];
            opdi_cu_pointwise_offsets<2>(m.w, i * N, at);
            const T one = in ? in[at[1]] : m.number;
            OPDI_CU_UNROLL
            for (int j = 0; j < N; j++) { v.at[j] = one; }
            opdi_cu_store_vector<N>(out + at[0], v);
        }
        OPDI_CU_ROLLED
        for (; !repeated && i < n; i += U * step) {
            uint4 v[U];
            int64_t at[U][2];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                if (i + u * step >= n) { continue; }
                opdi_cu_pointwise_offsets<2>(m.w, (i + u * step) * N, at[u]);
                v[u] = *reinterpret_cast<const uint4 *>(in + at[u][1]);
            }
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                if (i + u * step < n) { *reinterpret_cast<uint4 *>(out + at[u][0]) = v[u]; }
            }
        }
        i = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x;
        if (i < (uint32_t)m.rest) {
            const int64_t last = (int64_t)n * N + i;
            out[last] = !in ? m.number : repeated ? *in : in[last];
        }
        return;
    }
    OPDI_CU_ROLLED
    for (; i < n; i += U * step) {
        T v[U];
        int64_t at[U][2];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) {
            if (i + u * step >= n) { continue; }
            opdi_cu_pointwise_offsets<2>(m.w, i + u * step, at[u]);
            v[u] = in ? in[at[u][1]] : m.number;
        }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { if (i + u * step < n) { out[at[u][0]] = v[u]; } }
    }
}
/* A transposition by tiles through shared memory.  The destination has stride 1 along dim 0, the source along dim 1.
   The other dims are batches.  blockIdx.x counts the tiles along dims 0 and 1, blockIdx.y the batches.  Tiles of short
   elements are larger, so that as many bytes are in flight as with long elements.  A row of a tile is padded by a word
   to avoid bank conflicts. */
__host__ __device__ constexpr int opdi_cu_turned_side(int size) { return size <= 2 ? 64 : 32; }
template <typename T> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE, 4)
opdi_cu_copy_transposed(const opdi_cu_pointwise_walk w, int batches) {
    constexpr int S = opdi_cu_turned_side(sizeof(T)), rows = OPDI_CU_BLOCK_SIZE / S;
    __shared__ T tile[S][S + (sizeof(T) < 4 ? 4 / sizeof(T) : 1)];
    const int x = threadIdx.x % S, y = threadIdx.x / S;
    const uint32_t n0 = w.sizes[0].d, n1 = w.sizes[1].d, across = (n0 + S - 1) / S;
    const uint32_t from0 = blockIdx.x % across * S, from1 = blockIdx.x / across * S;
    for (int batch = blockIdx.y; batch < batches; batch += gridDim.y) {
        int64_t at[2];
        opdi_cu_pointwise_offsets<2>(w, (uint32_t)batch * n0 * n1, at);
        const T *in = (const T *)w.data[1] + at[1] + from0 * w.strides[1][0] + (from1 + x) * w.strides[1][1];
        T *out = (T *)w.data[0] + at[0] + (from0 + x) * w.strides[0][0] + from1 * w.strides[0][1];
        T v[S / rows];
        OPDI_CU_UNROLL
        for (int r = y, k = 0; k < S / rows; r += rows, k++) {
            if (from0 + r < n0 && from1 + x < n1) { v[k] = in[r * w.strides[1][0]]; }
        }
        __syncthreads();
        OPDI_CU_UNROLL
        for (int r = y, k = 0; k < S / rows; r += rows, k++) {
            if (from0 + r < n0 && from1 + x < n1) { tile[r][x] = v[k]; }
        }
        __syncthreads();
        OPDI_CU_UNROLL
        for (int r = y, k = 0; k < S / rows; r += rows, k++) {
            if (from1 + r < n1 && from0 + x < n0) { out[r * w.strides[0][1]] = tile[x][r]; }
        }
    }
}
/* Loads N neighbouring elements, in pieces of at most 16 bytes.  (opdi_cu_store_pieces stores them in the same way.) */
template <int N, typename T> __device__ __forceinline__ void opdi_cu_load_pieces(const T *p, T *to /*[N]*/) {
    constexpr int P = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
    OPDI_CU_UNROLL
    for (int k = 0; k < N; k += P) {
        const opdi_cu_vector<T, P> v = opdi_cu_load_vector<P>(p + k);
        OPDI_CU_UNROLL
        for (int j = 0; j < P; j++) { to[k + j] = v.at[j]; }
    }
}
template <int N, typename T> __device__ __forceinline__ void opdi_cu_store_pieces(T *p, const T *from /*[N]*/) {
    constexpr int P = N * sizeof(T) > 16 ? 16 / sizeof(T) : N;
    OPDI_CU_UNROLL
    for (int k = 0; k < N; k += P) {
        opdi_cu_vector<T, P> v;
        OPDI_CU_UNROLL
        for (int j = 0; j < P; j++) { v.at[j] = from[k + j]; }
        opdi_cu_store_vector<P>(p + k, v);
    }
}
#define OPDI_CU_CONVERTED 8
template <typename To, typename From> __global__ void __launch_bounds__(OPDI_CU_BLOCK_SIZE)
opdi_cu_copy_convert(const opdi_cu_pointwise_walk w, int run, int rest) {
    constexpr int N = OPDI_CU_CONVERTED;
    To *out = (To *)w.data[0];
    const From *in = (const From *)w.data[1];
    const uint32_t step = gridDim.x * OPDI_CU_BLOCK_SIZE, first = blockIdx.x * OPDI_CU_BLOCK_SIZE + threadIdx.x;
    int64_t at[2];
    if constexpr (sizeof(To) <= 4 && sizeof(From) <= 4) {
        if (run) {
            OPDI_CU_ROLLED
            for (uint32_t i = first; i < (uint32_t)w.n; i += step) {
                From v[N];
                To r[N];
                opdi_cu_pointwise_offsets<2>(w, i * N, at);
                opdi_cu_load_pieces<N>(in + at[1], v);
                OPDI_CU_UNROLL
                for (int j = 0; j < N; j++) { r[j] = opdi_cu_pointwise_moved<To, From>::of(v[j]); }
                opdi_cu_store_pieces<N>(out + at[0], r);
            }
            if (first < (uint32_t)rest) {
                const int64_t last = (int64_t)w.n * N + first;
                out[last] = opdi_cu_pointwise_moved<To, From>::of(in[last]);
            }
            return;
        }
    }
    OPDI_CU_ROLLED
    for (uint32_t i = first; i < (uint32_t)w.n; i += step) {
        opdi_cu_pointwise_offsets<2>(w, i, at);
        out[at[0]] = opdi_cu_pointwise_moved<To, From>::of(in[at[1]]);
    }
}
/* Prepares a walk over two operands in runs of n elements, and returns whether this is possible.  If there is only one
   dim, sets *rest to the number of elements after the last run. */
static bool opdi_cu_pointwise_runs(opdi_cu_pointwise_walk *w, int n, int32_t *rest) {
    const opdi_cu_pointwise_divider size = w->sizes[0];
    *rest = 0;
    if (w->ndim == 1 && size.d >= (uint32_t)n) {
        *rest = (int32_t)(size.d % (uint32_t)n);
        w->sizes[0].d = size.d - (uint32_t)*rest;
    }
    if (!opdi_cu_pointwise_in_runs(w, 2, n)) { w->sizes[0] = size; *rest = 0; return false; }
    w->n /= n;
    return true;
}
template <typename To> static int opdi_cu_copy_from(opdi_cu_pointwise_walk w, opd_scalar_type from) {
    const size_t widest = opd_dtype_size((opd_scalar_type)w.dtype[0]) > opd_dtype_size(from)
        ? opd_dtype_size((opd_scalar_type)w.dtype[0]) : opd_dtype_size(from);
    int32_t rest = 0;
    const int run = widest <= 4 && w.strides[1][0] == 1 && opdi_cu_pointwise_runs(&w, OPDI_CU_CONVERTED, &rest);
    void (*kernel)(opdi_cu_pointwise_walk, int, int) = NULL;
    switch ((int)from) {
#define OPDI_CU_FROM_CASE(number, T) case number: kernel = opdi_cu_copy_convert<To, T>; break;
        OPDI_CU_EACH_DTYPE(OPDI_CU_FROM_CASE)
        OPDI_CU_FROM_CASE(OPD_COMPLEX64, opdi_cu_c64) OPDI_CU_FROM_CASE(OPD_COMPLEX128, opdi_cu_c128)
        default: return opdi_cu_no_dtype(from);
    }
    return opdi_cu_launch(kernel, opdi_cu_grid(w.n, OPDI_CU_BLOCK_SIZE), OPDI_CU_BLOCK_SIZE, 0, w, run, rest);
}
/* Moves dim `d` of a walk to position 1, and the dims from 1 to d - 1 up by one position. */
static void opdi_cu_pointwise_walk_move_dim(opdi_cu_pointwise_walk *w, int d) {
    const opdi_cu_pointwise_divider size = w->sizes[d];
    const int64_t a = w->strides[0][d], b = w->strides[1][d];
    for (; d > 1; d--) {
        w->sizes[d] = w->sizes[d - 1];
        w->strides[0][d] = w->strides[0][d - 1];
        w->strides[1][d] = w->strides[1][d - 1];
    }
    w->sizes[1] = size; w->strides[0][1] = a; w->strides[1][1] = b;
}
template <typename T> static int opdi_cu_copy_one_type(opdi_cu_pointwise_walk *w, T number) {
    opdi_cu_pointwise_move<T> m;
    int d;
    for (d = 1; w->data[1] && w->strides[0][0] == 1 && w->strides[1][0] > 1 && d < w->ndim; d++) {
        if (w->strides[1][d] != 1 || w->sizes[d].d < 8 || w->sizes[0].d < 8) { continue; }
        opdi_cu_pointwise_walk_move_dim(w, d);
        const int side = opdi_cu_turned_side(sizeof(T));
        const int64_t tiles = opdi_cu_ceil(w->sizes[0].d, side) * opdi_cu_ceil(w->sizes[1].d, side);
        const int batches = (int)(w->n / ((int64_t)w->sizes[0].d * w->sizes[1].d));
        return opdi_cu_launch(opdi_cu_copy_transposed<T>, dim3((unsigned)tiles, batches < 65535 ? batches : 65535),
                              OPDI_CU_BLOCK_SIZE, 0, *w, batches);
    }
    m.w = *w;
    m.number = number;
    m.rest = 0;
    m.run = sizeof(T) < 16 && opdi_cu_pointwise_runs(&m.w, 16 / (int)sizeof(T), &m.rest);
    return opdi_cu_launch(opdi_cu_copy_same<T>, opdi_cu_grid(opdi_cu_ceil(m.w.n, 4), OPDI_CU_BLOCK_SIZE),
                          OPDI_CU_BLOCK_SIZE, 0, m);
}
/* Writes the number of an operand, as an element of dtype `t`, into the bytes of out[2]. */
template <typename T> static void opdi_cu_pointwise_element_put(double *out, T v) { memcpy(out, &v, sizeof v); }
static void opdi_cu_pointwise_element(const opd_operand *o, opd_scalar_type t, double *out /*[2]*/) {
    const bool whole = opd_dtype_is_integral(o->dtype, true);
    const float pair[2] = {(float)o->f64[0], (float)o->f64[1]};
    out[0] = out[1] = 0;
    switch ((int)t) {
#define OPDI_CU_ELEMENT_CASE(number, T) \
        case number: \
            if (whole) { opdi_cu_pointwise_element_put<T>(out, opdi_cu_cast<T>(o->i64)); } \
            else { opdi_cu_pointwise_element_put<T>(out, opdi_cu_cast<T>(o->f64[0])); } \
            break;
        OPDI_CU_EACH_DTYPE(OPDI_CU_ELEMENT_CASE)
        case OPD_COMPLEX64: memcpy(out, pair, sizeof pair); break;
        case OPD_COMPLEX128: out[0] = o->f64[0]; out[1] = o->f64[1]; break;
        default: break;
    }
}
/* Copies a part of a tensor.  Returns 0, 1 if the part is too large for one launch, or -1 and sets an error. */
static int opdi_cu_copy_part(const opd_pointwise *p) {
    const opd_scalar_type to = p->operands[0].dtype, from = p->operands[1].dtype;
    opdi_cu_pointwise_walk w;
    double element[2];
    if (!opdi_cu_pointwise_walk_of(p, &w)) { return 1; }
    if (!w.data[1] || to == from) {
        opdi_cu_pointwise_element(&p->operands[1], to, element);
        w.dtype[1] = w.dtype[0];
        OPDI_CU_SIZES(to, T, T number; memcpy(&number, element, sizeof number);
                      return opdi_cu_copy_one_type<T>(&w, number))
    }
    switch ((int)to) {
#define OPDI_CU_TO_CASE(number, T) case number: return opdi_cu_copy_from<T>(w, from);
        OPDI_CU_EACH_DTYPE(OPDI_CU_TO_CASE)
        OPDI_CU_TO_CASE(OPD_COMPLEX64, opdi_cu_c64) OPDI_CU_TO_CASE(OPD_COMPLEX128, opdi_cu_c128)
        default: return opdi_cu_no_dtype(to);
    }
}

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:random      random numbers
//
//  Random numbers are computed from a counter, and are the same as on the CPU for the same seed (see opd_draw).
//  Uniform numbers and integers are equal bit for bit.  Numbers that need a logarithm, sine or cosine (normal,
//  exponential) may differ in the last bits, because these functions differ in CUDA.
//----------------------------------------------------------------------------------------------------------------------

/* Computes four random words from a key and a counter, by Philox 4x32-10. */
__device__ __forceinline__ void opdi_cu_philox(uint64_t key, uint64_t counter, uint32_t *out /*[4]*/) {
    uint32_t a = (uint32_t)counter, b = (uint32_t)(counter >> 32), c = 0, d = 0, k0 = (uint32_t)key;
    uint32_t k1 = (uint32_t)(key >> 32);
    OPDI_CU_UNROLL
    for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        const uint64_t x = (uint64_t)a * 0xd2511f53u, y = (uint64_t)c * 0xcd9e8d57u;
        a = (uint32_t)(y >> 32) ^ b ^ k0;
        b = (uint32_t)y;
        c = (uint32_t)(x >> 32) ^ d ^ k1;
        d = (uint32_t)x;
    }
    out[0] = a; out[1] = b; out[2] = c; out[3] = d;
}
/* Returns x * y + z, rounded after each operation, as on the CPU. */
__device__ __forceinline__ float opdi_cu_mul_add(float x, float y, float z) {
#if defined(OPD_CUDA_EMULATED)
    const float p = x * y;
    return p + z;
#else
    return __fadd_rn(__fmul_rn(x, y), z);
#endif
}
__device__ __forceinline__ double opdi_cu_mul_add(double x, double y, double z) {
#if defined(OPD_CUDA_EMULATED)
    const double p = x * y;
    return p + z;
#else
    return __dadd_rn(__dmul_rn(x, y), z);
#endif
}
__device__ __forceinline__ float opdi_cu_log1p(float x) { return log1pf(x); }
__device__ __forceinline__ double opdi_cu_log1p(double x) { return log1p(x); }
/* Converts four random words to numbers: four uniform floats (two doubles) or, if `normal` is true, pairs of normal
   numbers. */
__device__ __forceinline__ void opdi_cu_drawn(const uint32_t *r /*[4]*/, bool normal, float *x /*[4]*/) {
    OPDI_CU_UNROLL
    for (int k = 0; k < 4; k++) { x[k] = (float)(int32_t)(r[k] >> 8) * 5.9604644775390625e-8f; }
    OPDI_CU_UNROLL
    for (int k = 0; normal && k < 4; k += 2) {
        const float radius = sqrtf(-2.0f * logf(x[k] + 2.98023223876953125e-8f));
        float s, c;
        sincospif((float)(int32_t)(r[k + 1] >> 8) * 1.1920928955078125e-7f, &s, &c);
        x[k] = radius * c;
        x[k + 1] = radius * s;
    }
}
__device__ __forceinline__ void opdi_cu_drawn(const uint32_t *r /*[4]*/, bool normal, double *x /*[2]*/) {
    double s, c, radius;
    OPDI_CU_UNROLL
    for (int k = 0; k < 2; k++) {
        x[k] = (double)(((uint64_t)r[2 * k + 1] << 32 | r[2 * k]) >> 11) * 1.1102230246251565404e-16;
    }
    if (!normal) { return; }
    radius = sqrt(-2.0 * log(1.0 - x[0]));
    sincospi(2 * x[1], &s, &c);
    x[0] = radius * c;
    x[1] = radius * s;
}
/* Draws random floats.  state: in a capture, the generator's key and the position from which d.at is counted; if it is
   NULL, d.key and d.at are used.  W: the type in which numbers are computed, float or double.  bits: how many different
   values a uniform number in [0, 1) can have, or 0 for all. */
template <typename T, typename W> __global__ void opdi_cu_draw_floats(opd_draw d, const uint64_t *state, W bits) {
    constexpr int per = 16 / sizeof(W), wide = per * sizeof(T) <= 16 ? per : 16 / sizeof(T);     /* stored at once */
    const int64_t step = (int64_t)gridDim.x * blockDim.x, nblocks = (d.numel + per - 1) / per;
    const W a = (W)d.a, b = (W)d.b, width = (W)(d.b - d.a);
    const uint64_t key = state ? state[0] : d.key, at = d.at + (state ? state[1] : 0);
    T *out = (T *)d.data;
    const bool even = (uintptr_t)out % sizeof(opdi_cu_vector<T, wide>) == 0;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < nblocks; i += step) {
        uint32_t r[4];
        W x[4];
        opdi_cu_vector<T, wide> drawn[per / wide];
        opdi_cu_philox(key, at / 4 + (uint64_t)i, r);
        opdi_cu_drawn(r, d.kind == OPD_DRAW_NORMAL, x);
        OPDI_CU_UNROLL
        for (int k = 0; k < per; k++) {
            W v = x[k];
            if (d.kind == OPD_DRAW_UNIFORM) {
                if (bits > 0) { v = (W)(int32_t)(v * bits) / bits; }
                v = opdi_cu_mul_add(v, width, a);
            }
            else if (d.kind == OPD_DRAW_NORMAL) { v = opdi_cu_mul_add(v, b, a); }
            else if (d.kind == OPD_DRAW_EXPONENTIAL) { v = -opdi_cu_log1p(-v) / a; }
            else { v = v < a ? 1 : 0; }
            drawn[k / wide].at[k % wide] = opdi_cu_cast<T>(v);
        }
        if (even && i * per + per <= d.numel) {
            OPDI_CU_UNROLL
            for (int k = 0; k < per; k += wide) { opdi_cu_store_vector<wide>(out + i * per + k, drawn[k / wide]); }
            continue;
        }
        for (int k = 0; k < per && i * per + k < d.numel; k++) { out[i * per + k] = drawn[k / wide].at[k % wide]; }
    }
}
template <typename T> __global__ void opdi_cu_draw_integers(opd_draw d, const uint64_t *state) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    const uint64_t key = state ? state[0] : d.key, at = d.at + (state ? state[1] : 0);
    T *out = (T *)d.data;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (d.numel + 1) / 2; i += step) {
        uint32_t r[4];
        opdi_cu_philox(key, at / 4 + (uint64_t)i, r);
        for (int k = 0; k < 2 && 2 * i + k < d.numel; k++) {
            const uint32_t low = r[2 * k], high = r[2 * k + 1];
            uint64_t x = (uint64_t)high << 32 | low;
            if (d.range && d.range <= UINT32_MAX) { x = (high * d.range + (low * d.range >> 32)) >> 32; }
            else if (d.range) { x %= d.range; }
            opdi_cu_store(out + 2 * i + k, (int64_t)((uint64_t)d.low + x));
        }
    }
}
static int opdi_cu_draw_on(const opd_draw *d, const uint64_t *state) {
    const dim3 grid = opdi_cu_grid(opdi_cu_ceil(d->numel, 2), 256);
    if (d->kind == OPD_DRAW_INTEGERS) {
        OPDI_CU_ALL(d->dtype, T, return opdi_cu_launch(opdi_cu_draw_integers<T>, grid, 256, 0, *d, state))
    }
    if (d->dtype == OPD_FLOAT64) {
        return opdi_cu_launch(opdi_cu_draw_floats<double, double>, grid, 256, 0, *d, state, 0.0);
    }
    OPDI_CU_ALL(d->dtype, T, return opdi_cu_launch(opdi_cu_draw_floats<T, float>, grid, 256, 0, *d, state,
                d->dtype == OPD_FLOAT16 ? 2048.0f : d->dtype == OPD_BFLOAT16 ? 256.0f : 0.0f))
    return 0;
}
static int opdi_cu_draw(void *user, int index, const opd_draw *d) {
    const opdi_cu_on on(index);
    const uint64_t *state = NULL;
    opd_draw part = *d;
    (void)user;
    if (opdi_cu_sequence_of(index, &part, &state)) { return -1; }
    return opdi_cu_draw_on(&part, state);
}


//== dropout ===========================================================================================================

/* Computes out = x * mask * scale, for contiguous, aligned memory. */
template <typename T> __global__ void opdi_cu_dropout_kernel(const T *x, const bool *mask, T *out, opdi_cu_acc<T> scale,
                                                             int64_t n) {
    typedef opdi_cu_acc<T> A;
    constexpr int W = 16 / sizeof(T);
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < opdi_cu_ceil(n, W); i += step) {
        if (i * W + W > n) {
            for (int64_t k = i * W; k < n; k++) { opdi_cu_store(out + k, opdi_cu_load<A>(x + k) * A(mask[k]) * scale); }
            continue;
        }
        opdi_cu_vector<T, W> v = opdi_cu_load_vector<W>(x + i * W);
        const opdi_cu_vector<bool, W> kept = opdi_cu_load_vector<W>(mask + i * W);
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k++) { v.at[k] = opdi_cu_cast<T>(opdi_cu_cast<A>(v.at[k]) * A(kept.at[k]) * scale); }
        opdi_cu_store_vector<W>(out + i * W, v);
    }
}
/* Draws the mask and computes out = x * mask * scale in one pass, for contiguous, aligned memory.  Draws the same mask
   as opdi_cu_draw_floats: an element is kept if its uniform number is below `keep`.  state, key and at: see
   opdi_cu_draw_floats. */
template <typename T> __global__ void __launch_bounds__(256)
opdi_cu_dropout_drawn_kernel(const T *x, bool *mask, T *out, float keep, float scale, int64_t n, uint64_t key,
                             uint64_t at, const uint64_t *state) {
    constexpr int W = 16 / sizeof(T);
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    if (state) { key = state[0]; at += state[1]; }
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i * W < n; i += step) {
        const bool whole = i * W + W <= n;
        opdi_cu_vector<T, W> v;
        opdi_cu_vector<bool, W> kept;
        if (whole) { v = opdi_cu_load_vector<W>(x + i * W); }
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k += 4) {
            uint32_t r[4];
            float u[4];
            opdi_cu_philox(key, at / 4 + (uint64_t)(i * (W / 4) + k / 4), r);
            opdi_cu_drawn(r, false, u);
            OPDI_CU_UNROLL
            for (int j = 0; j < 4; j++) { kept.at[k + j] = u[j] < keep; }
        }
        if (whole) {
            OPDI_CU_UNROLL
            for (int k = 0; k < W; k++) {
                v.at[k] = opdi_cu_cast<T>(opdi_cu_cast<float>(v.at[k]) * float(kept.at[k]) * scale);
            }
            opdi_cu_store_vector<W>(mask + i * W, kept);
            opdi_cu_store_vector<W>(out + i * W, v);
            continue;
        }
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k++) {
            if (i * W + k < n) {
                mask[i * W + k] = kept.at[k];
                opdi_cu_store(out + i * W + k, opdi_cu_load<float>(x + i * W + k) * float(kept.at[k]) * scale);
            }
        }
    }
}
template <typename T> static int opdi_cu_dropout_drawn(const opd_tensor *x, opd_tensor *mask, opd_tensor *out, double p,
                                                      const opd_draw &d, const uint64_t *state) {
    const int64_t n = opd_numel(x);
    return opdi_cu_launch(opdi_cu_dropout_drawn_kernel<T>, opdi_cu_grid(opdi_cu_ceil(n, 16 / (int64_t)sizeof(T)), 256),
                          dim3(256), 0, opdi_cu_data<T>(x), opdi_cu_data<bool>(mask), opdi_cu_data<T>(out),
                          (float)(1 - p), (float)(1 / (1 - p)), n, d.key, d.at, state);
}
/* Runs native_dropout.  This kernel serves only the usual case.  Other cases, such as float64, which has other random
   numbers, run as on other devices. */
static int opdi_cu_native_dropout(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    const double p = opd_arg_double(call, 1);
    const opd_scalar_type t = opd_dtype(x);
    const uint64_t *state = NULL;
    opd_draw draw;
    if (!(p > 0 && p < 1) || !(opd_arg_is_none(call, 2) || opd_arg_bool(call, 2)) || opd_numel(x) == 0 ||
        (t != OPD_FLOAT32 && t != OPD_FLOAT16 && t != OPD_BFLOAT16) || !opd_is_contiguous(x) ||
        !opdi_cu_aligned(opdi_cu_data<void>(x))) { return opd_op_card(opd_call_operator(call))->any(call); }
    opd_tensor *out = opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), t);
    opd_tensor *mask = opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), OPD_BOOL);
    if (!out || !mask) { return -1; }
    memset(&draw, 0, sizeof draw);
    draw.words = opd_numel(x);
    draw.at = opd_generator_take(draw.generator, draw.words, &draw.key);
    if (opdi_cu_sequence_of(opdi_cu_current(), &draw, &state)) { return -1; }
    if (t == OPD_FLOAT32 ? opdi_cu_dropout_drawn<float>(x, mask, out, p, draw, state)
        : t == OPD_FLOAT16 ? opdi_cu_dropout_drawn<opdi_cu_f16>(x, mask, out, p, draw, state)
                           : opdi_cu_dropout_drawn<opdi_cu_bf16>(x, mask, out, p, draw, state)) { return -1; }
    return opd_return_tensor(call, out) || opd_return_tensor(call, mask) ? -1 : 0;
}
/* Runs native_dropout_backward: argument 0 times the mask times the scale. */
static int opdi_cu_native_dropout_backward(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *mask = opd_arg_tensor(call, 1), *out;
    const double scale = opd_arg_double(call, 2);
    bool plain = opd_dtype_is_floating(opd_dtype(x)) && opd_dtype(mask) == OPD_BOOL && opd_ndim(x) == opd_ndim(mask) &&
        opd_is_contiguous(x) && opd_is_contiguous(mask) && scale - scale == 0;
    for (int d = 0; plain && d < opd_ndim(x); d++) { plain = opd_size(x, d) == opd_size(mask, d); }
    if (!plain || !opdi_cu_aligned(opdi_cu_data<void>(x)) || !opdi_cu_aligned(opdi_cu_data<void>(mask))) {
        return opd_return_tensor(call, opd_mul_Scalar(opd_mul(x, mask), opd_value_double(scale)));
    }
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    OPDI_CU_FLOATS(opd_dtype(x), T, return opdi_cu_launch(opdi_cu_dropout_kernel<T>,
        opdi_cu_grid(opdi_cu_ceil(opd_numel(x), 16 / (int64_t)sizeof(T)), 256), dim3(256), 0, opdi_cu_data<T>(x),
        opdi_cu_data<bool>(mask), opdi_cu_data<T>(out), (opdi_cu_acc<T>)scale, opd_numel(x)))
    return -1;
}
static const opdi_cu_registration opdi_cu_table_random[] = {
    {"native_dropout", opdi_cu_native_dropout}, {"native_dropout_backward", opdi_cu_native_dropout_backward},
    {NULL, NULL}};
//----------------------------------------------------------------------------------------------------------------------
//  >>cu:reductions  sums, extremes, norms
//----------------------------------------------------------------------------------------------------------------------

/* A reduction treats its input as `outer` rows of n elements.  The kept dims and the reduced dims are each sorted by
   stride and joined if possible.  Reduced dims keep their order if the result is an index.  There are two kernels:
     rows     if a reduced dim has the smallest stride: 1 to 256 threads walk along a row, 16 bytes a load
     columns  if a kept dim has it: threads lie along that dim, each with 16 bytes of columns, and walk down the rows
   Few long rows are cut into chunks, whose states a third kernel joins.  The order of additions depends only on the
   sizes, so results are the same each time.  No atomics are used.

   A fold defines the operation: F<C> has a State, and init, take (elements in), join (two states), store (results). */

/* Where results are stored: element at[k] of data[k]. */
typedef struct opdi_cu_results { void *data[2]; int dtype[2]; int64_t at[2]; } opdi_cu_results;
#define OPDI_CU_REDUCE_DIMS 12                    /* after dims were joined; a tensor with more dims is copied first */
typedef struct opdi_cu_reduction {
    const char *x;
    const char *second;                           /* in a reduction of pairs, the second tensor, which has the layout of
                                                     the first; else NULL */
    int dtype, bytes;                             /* dtype: dtype of the input; bytes: bytes of an element */
    bool odd;                                     /* loads of 16 bytes are not possible */
    int nred, nkept;                              /* numbers of reduced and kept dims, at least 1; innermost dims come
                                                     first */
    int64_t rsize[OPDI_CU_REDUCE_DIMS], rstride[OPDI_CU_REDUCE_DIMS];
    opdi_cu_pointwise_divider by[OPDI_CU_REDUCE_DIMS]; /* for division by rsize, if n is below 2^31 */
    bool far;                                     /* n is at least 2^31, and several dims are reduced */
    int64_t ksize[OPDI_CU_REDUCE_DIMS], kstride[OPDI_CU_REDUCE_DIMS], ostride[2][OPDI_CU_REDUCE_DIMS];
    int64_t n, outer;                             /* n: elements of a row; outer: number of rows */
    int64_t chunk;                                /* elements of a chunk of a row */
    int chunks;                                   /* chunks per row; if there are several, their states are stored in
                                                     `states` [chunks][outer] */
    void *states;
    opdi_cu_results out;
} opdi_cu_reduction;

/* Reads elements of type T and converts them to C, the type in which folds compute: one element, or W neighbours at an
   address that is a multiple of W elements.  W elements are first loaded unchanged (as Raw), and converted when all
   loads are in flight. */
template <class T> struct opdi_cu_reader {
    typedef opdi_cu_acc<T> C;
    enum { W = 16 / sizeof(T) };
    typedef opdi_cu_vector<T, W> Raw;
    static __device__ __forceinline__ C one(const char *p, int64_t i, const opdi_cu_reduction &) {
        return opdi_cu_load<C>((const T *)p + i);
    }
    static __device__ __forceinline__ void load(const char *p, int64_t i, const opdi_cu_reduction &, Raw *raw) {
        *raw = opdi_cu_load_vector<W>((const T *)p + i);
    }
    static __device__ __forceinline__ void cast(const Raw &raw, const opdi_cu_reduction &, C *c) {
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k++) { c[k] = opdi_cu_cast<C>(raw.at[k]); }
    }
};
/* For few kernels, some types are distinguished only at run time: float16 and bfloat16 (opdi_cu_halves), and integers
   and bool (opdi_cu_integers). */
struct opdi_cu_halves {};
template <> struct opdi_cu_reader<opdi_cu_halves> {
    typedef float C;
    enum { W = 8 };
    typedef opdi_cu_vector<uint16_t, W> Raw;
    static __device__ __forceinline__ float of(uint16_t v, bool brain) {
        return brain ? __bfloat162float(__ushort_as_bfloat16(v)) : __half2float(__ushort_as_half(v));
    }
    static __device__ __forceinline__ C one(const char *p, int64_t i, const opdi_cu_reduction &r) {
        return of(((const uint16_t *)p)[i], r.dtype == OPD_BFLOAT16);
    }
    static __device__ __forceinline__ void load(const char *p, int64_t i, const opdi_cu_reduction &, Raw *raw) {
        *raw = opdi_cu_load_vector<W>((const uint16_t *)p + i);
    }
    static __device__ __forceinline__ void cast(const Raw &raw, const opdi_cu_reduction &r, C *c) {
        if (r.dtype == OPD_BFLOAT16) {
            OPDI_CU_UNROLL
            for (int k = 0; k < W; k++) { c[k] = of(raw.at[k], true); }
        } else {
            OPDI_CU_UNROLL
            for (int k = 0; k < W; k++) { c[k] = of(raw.at[k], false); }
        }
    }
};
struct opdi_cu_integers {};
template <> struct opdi_cu_reader<opdi_cu_integers> {
    typedef int64_t C;
    enum { W = 4 };
    struct Raw { uint64_t w[W]; };                /* large enough for W elements of each integer type */
    template <class T> static __device__ __forceinline__ void some(const char *p, int64_t i, Raw *raw) {
        const opdi_cu_vector<T, W> v = opdi_cu_load_vector<W>((const T *)p + i);
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k++) { raw->w[k] = v.at[k]; }
    }
    static __device__ __forceinline__ C one(const char *p, int64_t i, const opdi_cu_reduction &r) {
        switch (r.dtype) {
            case OPD_INT64: return ((const int64_t *)p)[i];
            case OPD_INT32: return ((const int32_t *)p)[i];
            case OPD_INT16: return ((const int16_t *)p)[i];
            case OPD_INT8: return ((const int8_t *)p)[i];
            default: return ((const uint8_t *)p)[i];
        }
    }
    static __device__ __forceinline__ void load(const char *p, int64_t i, const opdi_cu_reduction &r, Raw *raw) {
        switch (r.bytes) {
            case 8: {
                const opdi_cu_vector<uint64_t, 2> a = opdi_cu_load_vector<2>((const uint64_t *)p + i),
                    b = opdi_cu_load_vector<2>((const uint64_t *)p + i + 2);
                raw->w[0] = a.at[0]; raw->w[1] = a.at[1]; raw->w[2] = b.at[0]; raw->w[3] = b.at[1];
                break;
            }
            case 4: some<uint32_t>(p, i, raw); break;
            case 2: some<uint16_t>(p, i, raw); break;
            default: some<uint8_t>(p, i, raw);
        }
    }
    static __device__ __forceinline__ void cast(const Raw &raw, const opdi_cu_reduction &r, C *c) {
        const int up = r.dtype == OPD_BOOL || r.dtype == OPD_UINT8 ? 0 : 64 - 8 * r.bytes;      /* sign extension */
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k++) { c[k] = (int64_t)(raw.w[k] << up) >> up; }
    }
};
/* Reads two tensors of T at once, whose elements form pairs. */
template <class A> struct opdi_cu_pair { A x, g; };
template <class T> struct opdi_cu_pairs {};
template <class T> struct opdi_cu_reader<opdi_cu_pairs<T> > {
    typedef opdi_cu_reader<T> R;
    typedef typename R::C A;
    typedef opdi_cu_pair<A> C;
    enum { W = R::W };
    struct Raw { typename R::Raw x, g; };
    static __device__ __forceinline__ const char *second(const char *p, const opdi_cu_reduction &r) {
        return r.second + (p - r.x);
    }
    static __device__ __forceinline__ C one(const char *p, int64_t i, const opdi_cu_reduction &r) {
        const C c = {R::one(p, i, r), R::one(second(p, r), i, r)};
        return c;
    }
    static __device__ __forceinline__ void load(const char *p, int64_t i, const opdi_cu_reduction &r, Raw *raw) {
        R::load(p, i, r, &raw->x);
        R::load(second(p, r), i, r, &raw->g);
    }
    static __device__ __forceinline__ void cast(const Raw &raw, const opdi_cu_reduction &r, C *c) {
        A x[W], g[W];
        R::cast(raw.x, r, x);
        R::cast(raw.g, r, g);
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k++) { c[k].x = x[k]; c[k].g = g[k]; }
    }
};

/* Converts v to a dtype and stores it as element i of the memory at p. */
template <class V> __device__ __forceinline__ void opdi_cu_put(void *p, int dtype, int64_t i, V v) {
    switch (dtype) {
        case OPD_FLOAT32: opdi_cu_store((float *)p + i, v); break;
        case OPD_FLOAT64: opdi_cu_store((double *)p + i, v); break;
        case OPD_FLOAT16: opdi_cu_store((opdi_cu_f16 *)p + i, v); break;
        case OPD_BFLOAT16: opdi_cu_store((opdi_cu_bf16 *)p + i, v); break;
        case OPD_INT64: opdi_cu_store((int64_t *)p + i, v); break;
        case OPD_INT32: opdi_cu_store((int32_t *)p + i, v); break;
        case OPD_INT16: opdi_cu_store((int16_t *)p + i, v); break;
        case OPD_INT8: opdi_cu_store((int8_t *)p + i, v); break;
        case OPD_BOOL: opdi_cu_store((bool *)p + i, v); break;
        default: opdi_cu_store((uint8_t *)p + i, v);
    }
}

/* Joins the states s of `lanes` neighbouring threads; lanes is a power of two.  If lanes > 32, these are all threads of
   the block along x, and only the first warp gets the result.  Otherwise, each thread gets it.  `scratch` has space for
   32 states. */
template <class F> __device__ __forceinline__ void opdi_cu_fold_lanes(const F &f, typename F::State &s, int lanes,
                                                                      typename F::State *scratch) {
    for (int bits = (lanes < 32 ? lanes : 32) / 2; bits > 0; bits /= 2) {
        f.join(s, opdi_cu_shuffle_xor(s, bits));
    }
    if (lanes > 32) {
        const int warp = (int)threadIdx.x / 32, lane = (int)threadIdx.x & 31;
        __syncthreads();
        if (lane == 0) { scratch[warp] = s; }
        __syncthreads();
        if (warp == 0) {
            s = f.init(0);
            if (lane < lanes / 32) { s = scratch[lane]; }
        }
        for (int bits = 16; bits > 0; bits /= 2) {
            const typename F::State other = opdi_cu_shuffle_xor(s, bits);
            if (warp == 0) { f.join(s, other); }
        }
    }
}

/* Same as opdi_cu_put, for floating dtypes only. */
template <class V> __device__ __forceinline__ void opdi_cu_put_float(void *p, int dtype, int64_t i, V v) {
    switch (dtype) {
        case OPD_FLOAT32: opdi_cu_store((float *)p + i, v); break;
        case OPD_FLOAT64: opdi_cu_store((double *)p + i, v); break;
        case OPD_FLOAT16: opdi_cu_store((opdi_cu_f16 *)p + i, v); break;
        default: opdi_cu_store((opdi_cu_bf16 *)p + i, v);
    }
}

//== folds =============================================================================================================

/* The arguments of a fold: p is a number given to the operator, n the number of elements of a row; kind and flag choose
   a variant (see each fold). */
typedef struct opdi_cu_fold { double p; int64_t n; int kind, flag; } opdi_cu_fold;
/* Defines `take` of a fold by its function `one`, which takes a single element. */
#define OPDI_CU_TAKE_EACH                                                                                             \
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t at, int64_t step) const {    \
        OPDI_CU_UNROLL                                                                                               \
        for (int i = 0; i < N; i++) { one(s, x[i], at + i * step); }                                                  \
    }

template <class C> __device__ __forceinline__ C opdi_cu_plus(C a, C b) { return a + b; }
template <> __device__ __forceinline__ int64_t opdi_cu_plus<int64_t>(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
template <class C> __device__ __forceinline__ C opdi_cu_times(C a, C b) { return a * b; }
template <> __device__ __forceinline__ int64_t opdi_cu_times<int64_t>(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
/* The term that a sum adds for x: x itself (opdi_cu_map_same), or (opdi_cu_map_flag), as `flag` says,
   x without NaN (0 instead), |x| or x^2. */
enum { OPDI_CU_NANSUM, OPDI_CU_ABS, OPDI_CU_SQUARE };
struct opdi_cu_map_same {
    template <class C> static __device__ __forceinline__ C of(C x, const opdi_cu_fold &) { return x; }
};
struct opdi_cu_map_flag {
    template <class C> static __device__ __forceinline__ C of(C x, const opdi_cu_fold &how) {
        return how.flag == OPDI_CU_NANSUM ? (x == x ? x : (C)0) : how.flag == OPDI_CU_ABS ? (x < 0 ? -x : x) : x * x;
    }
};
/* Sums.  kind: the result is the sum, the sum divided by n, its square root, or its p-th root. */
enum { OPDI_CU_PLAIN, OPDI_CU_MEAN, OPDI_CU_ROOT, OPDI_CU_ROOT_P };
template <class C_, class MAP> struct opdi_cu_fold_sums {
    typedef C_ C;
    typedef struct State { C v; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const { State s; s.v = 0; return s; }
    /* Adds the N elements pairwise first, which shortens the chain of additions and makes rounding errors smaller. */
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t, int64_t) const {
        C v[N];
        OPDI_CU_UNROLL
        for (int i = 0; i < N; i++) { v[i] = MAP::of(x[i], how); }
        OPDI_CU_UNROLL
        for (int half = N / 2; half > 0; half /= 2) {
            OPDI_CU_UNROLL
            for (int i = 0; i < half; i++) { v[i] = opdi_cu_plus(v[i], v[i + half]); }
        }
        s.v = opdi_cu_plus(s.v, v[0]);
    }
    __device__ __forceinline__ void join(State &s, const State &with) const { s.v = opdi_cu_plus(s.v, with.v); }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        C v = s.v;
        if (how.kind == OPDI_CU_MEAN) { v = v / (C)how.n; }
        if (how.kind == OPDI_CU_ROOT) { v = (C)sqrt((double)v); }
        if (how.kind == OPDI_CU_ROOT_P) { v = (C)pow((double)v, 1.0 / how.p); }
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], v);
    }
};
template <class C> using opdi_cu_fold_sum = opdi_cu_fold_sums<C, opdi_cu_map_same>;
template <class C> using opdi_cu_fold_mapped = opdi_cu_fold_sums<C, opdi_cu_map_flag>;

template <class C_> struct opdi_cu_fold_prod {
    typedef C_ C;
    typedef struct State { C v; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const { State s; s.v = 1; return s; }
    __device__ __forceinline__ void one(State &s, C x, int64_t) const { s.v = opdi_cu_times(s.v, x); }
    OPDI_CU_TAKE_EACH
    __device__ __forceinline__ void join(State &s, const State &with) const { one(s, with.v, 0); }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], s.v);
    }
};

/* Infinity and -infinity for floating types, or the limits of int64_t. */
template <class C> __device__ __forceinline__ C opdi_cu_highest() { return (C)INFINITY; }
template <> __device__ __forceinline__ int64_t opdi_cu_highest<int64_t>() { return INT64_MAX; }
template <class C> __device__ __forceinline__ C opdi_cu_lowest() { return -(C)INFINITY; }
template <> __device__ __forceinline__ int64_t opdi_cu_lowest<int64_t>() { return INT64_MIN; }

/* Finds the largest element (the smallest, if flag is 1), or NaN if there is a NaN.  kind 1: compares absolute values;
   if there are no elements, the result is 0 (infinity, if flag is 1). */
template <class C_> struct opdi_cu_fold_extreme {
    typedef C_ C;
    typedef struct State { C v; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const {
        State s;
        s.v = how.flag ? opdi_cu_highest<C>() : how.kind ? (C)0 : opdi_cu_lowest<C>();
        return s;
    }
    __device__ __forceinline__ void one(State &s, C x, int64_t) const {
        if (how.kind) { x = x < 0 ? -x : x; }
        if ((how.flag ? x < s.v : x > s.v) || x != x) { s.v = x; }
    }
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t, int64_t) const {
        C v = s.v;
        if (how.kind || how.flag) {
            OPDI_CU_UNROLL
            for (int i = 0; i < N; i++) {
                const C a = how.kind && x[i] < 0 ? -x[i] : x[i];
                v = (how.flag ? a < v : a > v) || a != a ? a : v;
            }
        } else {
            OPDI_CU_UNROLL
            for (int i = 0; i < N; i++) { v = x[i] > v || x[i] != x[i] ? x[i] : v; }
        }
        s.v = v;
    }
    __device__ __forceinline__ void join(State &s, const State &with) const { one(s, with.v, 0); }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], s.v);
    }
};
/* Finds the first of the largest elements (the smallest, if flag is 1), or the first NaN, and its index.  kind 1: only
   the index is stored. */
template <class C_> struct opdi_cu_fold_where {
    typedef C_ C;
    typedef struct State { C v; int64_t at; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const { State s; s.v = 0; s.at = -1; return s; }
    __device__ __forceinline__ void one(State &s, C x, int64_t at) const {
        const bool nan = x != x, had = s.v != s.v;
        const bool better = nan == had ? (how.flag ? x < s.v : x > s.v) : nan;
        const bool equal = nan ? had : x == s.v;
        if (at >= 0 && (s.at < 0 || better || (equal && at < s.at))) { s.v = x; s.at = at; }
    }
    /* Finds the best of the N elements first.  Computes its index only if it may be better than the best so far, which
       is rare. */
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t at, int64_t step) const {
        C top = x[0];
        OPDI_CU_UNROLL
        for (int i = 1; i < N; i++) {
            top = top != top ? top : (how.flag ? x[i] < top : x[i] > top) || x[i] != x[i] ? x[i] : top;
        }
        if (s.at >= 0 && s.v == s.v && (how.flag ? top > s.v : top < s.v)) { return; }
        int first = 0;
        OPDI_CU_UNROLL
        for (int i = N - 1; i >= 0; i--) { if (x[i] == top || x[i] != x[i]) { first = i; } }
        OPDI_CU_UNROLL
        for (int i = 1; i < N; i++) { if (i == first) { top = x[i]; } }
        if (first == 0) { top = x[0]; }
        one(s, top, at + first * step);
    }
    __device__ __forceinline__ void join(State &s, const State &with) const { one(s, with.v, with.at); }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        if (how.kind) { ((int64_t *)out.data[0])[out.at[0]] = s.at; return; }
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], s.v);
        ((int64_t *)out.data[1])[out.at[1]] = s.at;
    }
};
/* Counts the elements that are not 0 after their highest `flag` bits (of 64) were dropped.  (Floating types are read as
   integers; the sign of a zero must not count.)  kind 0: the result is the number; 1: whether any element is not 0; 2:
   whether all n are not 0. */
template <class C_> struct opdi_cu_fold_count {
    typedef C_ C;
    typedef struct State { int64_t v; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const { State s; s.v = 0; return s; }
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t, int64_t) const {
        int count = 0;
        OPDI_CU_UNROLL
        for (int i = 0; i < N; i++) { count += (uint64_t)x[i] << how.flag != 0; }
        s.v += count;
    }
    __device__ __forceinline__ void join(State &s, const State &with) const { s.v += with.v; }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        const int64_t v = how.kind == 0 ? s.v : how.kind == 1 ? s.v > 0 : s.v == how.n;
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], v);
    }
};
/* Computes the mean and the sum of squared deviations of chunks, and joins them by the method of Chan, Golub and
   LeVeque.  kind 0: the result is the variance; 1: its square root; 2, 3: the same, and the mean is the second result.
   p: the correction, which is subtracted from the number of elements. */
template <class C_> struct opdi_cu_fold_var {
    typedef C_ C;
    typedef struct State { C mean, squares; int64_t n; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const { State s; s.mean = s.squares = 0; s.n = 0; return s; }
    /* For means a, b and sums of squares of m and k elements, and n = m + k, d = b - a: the joined mean is a + d * k /
       n, and d^2 * m * k / n is added to the sums of squares. */
    static __device__ __forceinline__ void join(State &s, const State &with) {
        if (with.n == 0) { return; }
        const int64_t n = s.n + with.n;
        const C part = (C)with.n / (C)n, d = with.mean - s.mean;
        s.mean += d - d == 0 ? d * part : with.mean;                 /* infinities give the same mean as a sum would */
        s.squares += with.squares + d * d * ((C)s.n * part);
        s.n = n;
    }
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t, int64_t) const {
        State piece;
        piece.mean = 0; piece.squares = 0; piece.n = N;
        OPDI_CU_UNROLL
        for (int i = 0; i < N; i++) { piece.mean += x[i]; }
        piece.mean *= (C)1 / (C)N;
        OPDI_CU_UNROLL
        for (int i = 0; i < N; i++) { const C d = x[i] - piece.mean; piece.squares += d * d; }
        join(s, piece);
    }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        const double n = (double)s.n - how.p;
        double v = (double)s.squares / (n > 0 ? n : 0);
        if (how.kind & 1) { v = sqrt(v); }
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], v);
        if (how.kind >= 2) { opdi_cu_put(out.data[1], out.dtype[1], out.at[1], s.n ? (double)s.mean : (double)NAN); }
    }
};
template <class C> __device__ __forceinline__ C opdi_cu_exp(C x) { return (C)exp(x); }
template <> __device__ __forceinline__ float opdi_cu_exp<float>(float x) { return expf(x); }
/* Computes the logarithm of the sum of exponentials.  `top` is the largest finite element so far, and `sum` is the sum
   of exp(x - top) so far.  Infinities and NaN make the sum infinite or NaN. */
template <class C_> struct opdi_cu_fold_lse {
    typedef C_ C;
    typedef struct State { C top, sum; } State;
    opdi_cu_fold how;
    __device__ __forceinline__ State init(int64_t) const { State s; s.top = opdi_cu_lowest<C>(); s.sum = 0; return s; }
    template <int N> __device__ __forceinline__ void take(State &s, const C *x, int64_t, int64_t) const {
        C top = s.top;
        OPDI_CU_UNROLL
        for (int i = 0; i < N; i++) { if (x[i] > top && x[i] < opdi_cu_highest<C>()) { top = x[i]; } }
        if (top > s.top) {
            if (s.top > opdi_cu_lowest<C>()) { s.sum *= opdi_cu_exp(s.top - top); }
            s.top = top;
        }
        if (!(top > opdi_cu_lowest<C>())) { top = 0; }
        OPDI_CU_UNROLL
        for (int i = 0; i < N; i++) { s.sum += opdi_cu_exp(x[i] - top); }
    }
    __device__ __forceinline__ void join(State &s, const State &with) const {
        const C low = opdi_cu_lowest<C>();
        if (with.top > s.top) {
            s.sum = (s.top > low ? s.sum * opdi_cu_exp(s.top - with.top) : s.sum) + with.sum;
            s.top = with.top;
        } else { s.sum += with.top > low ? with.sum * opdi_cu_exp(with.top - s.top) : with.sum; }
    }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        const C v = (C)log(s.sum) + (s.top > opdi_cu_lowest<C>() ? s.top : (C)0);
        opdi_cu_put(out.data[0], out.dtype[0], out.at[0], v);
    }
};

//== kernels ===========================================================================================================

/* Writes i as a number whose digit d has the radix sizes[d], lowest digit first, and returns the sum of the digits
   times the strides.  Divides in 32 bits if they suffice, and not at all for one dim. */
__device__ __forceinline__ int64_t opdi_cu_offset(int64_t i, const int64_t *sizes, const int64_t *strides, int ndim) {
    int64_t at = 0;
    OPDI_CU_ROLLED
    for (int d = 0; d < ndim - 1; d++) {
        const int64_t q = ((uint64_t)i | (uint64_t)sizes[d]) >> 32 ? i / sizes[d]
            : (int64_t)((uint32_t)i / (uint32_t)sizes[d]);
        at += (i - q * sizes[d]) * strides[d];
        i = q;
    }
    return at + i * strides[ndim - 1];
}
__device__ OPDI_CU_NOINLINE int64_t opdi_cu_far_offset(const opdi_cu_reduction &r, int64_t i) {
    return opdi_cu_offset(i, r.rsize, r.rstride, r.nred);
}
/* Computes the offsets of U elements of a row: elements number first, first + step, and so on. */
template <int U>
__device__ __forceinline__ void opdi_cu_reduce_at(const opdi_cu_reduction &r, int64_t first, int64_t step,
                                                  int64_t *at /*[U]*/) {
    if (r.nred == 1) {
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { at[u] = (first + u * step) * r.rstride[0]; }
    } else if (r.far) {
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { at[u] = opdi_cu_far_offset(r, first + u * step); }
    } else {
        uint32_t i[U];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { i[u] = (uint32_t)(first + u * step); at[u] = 0; }
        OPDI_CU_ROLLED
        for (int d = 0; d < r.nred - 1; d++) {
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                const uint32_t q = r.by[d].of(i[u]);
                at[u] += (int64_t)(i[u] - q * r.by[d].d) * r.rstride[d];
                i[u] = q;
            }
        }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { at[u] += (int64_t)i[u] * r.rstride[r.nred - 1]; }
    }
}
/* Stores the result of a row.  If `part` is true, s is only the state of a chunk, and is stored for
   opdi_cu_reduce_chunks. */
template <class F>
__device__ __forceinline__ void opdi_cu_reduce_put(const opdi_cu_reduction &r, const F &f, int64_t row,
                                                   const typename F::State &s, bool part) {
    opdi_cu_results out = r.out;
    if (part) { ((typename F::State *)r.states)[blockIdx.y * r.outer + row] = s; return; }
    out.at[0] = opdi_cu_offset(row, r.ksize, r.ostride[0], r.nkept);
    out.at[1] = opdi_cu_offset(row, r.ksize, r.ostride[1], r.nkept);
    f.store(s, out);
}
/* Adds elements of the row at x to state s: N elements from each of the positions first, first + step, ... below `end`.
   Loads from four positions at a time. */
template <class T, class F, int N>
__device__ __forceinline__ void opdi_cu_reduce_walk(const opdi_cu_reduction &r, const F &f, const char *x,
                                                    int64_t first, int64_t end, int64_t step, typename F::State &s) {
    typedef opdi_cu_reader<T> R;
    typedef typename R::C C;
    const int U = 4;
    int64_t i = first, at[U];
    OPDI_CU_ROLLED
    for (; i + (U - 1) * step < end; i += U * step) {
        opdi_cu_reduce_at<U>(r, i, step, at);
        if constexpr (N == 1) {
            C c[U];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) { c[u] = R::one(x, at[u], r); }
            f.template take<U>(s, c, i, step);
        } else {
            typename R::Raw raw[U];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) { R::load(x, at[u], r, raw + u); }
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                C c[N];
                R::cast(raw[u], r, c);
                f.template take<N>(s, c, i + u * step, 1);
            }
        }
    }
    OPDI_CU_ROLLED
    for (; i < end; i += step) {
        C c[N];
        opdi_cu_reduce_at<1>(r, i, step, at);
        if constexpr (N == 1) { c[0] = R::one(x, at[0], r); }
        else {
            typename R::Raw raw;
            R::load(x, at[0], r, &raw);
            R::cast(raw, r, c);
        }
        f.template take<N>(s, c, i, 1);
    }
}
/* Adds elements [begin, end) of the row at x to the states of `lanes` threads; the calling thread is number `lane`, and
   its state is s.  Between the first and the last aligned address, loads 16 bytes at a time.  If several dims are
   reduced, rows begin and end at aligned addresses. */
template <class T, class F, bool VEC>
__device__ __forceinline__ void opdi_cu_reduce_part(const opdi_cu_reduction &r, const F &f, const char *x,
                                                    int64_t begin, int64_t end, int lane, int lanes,
                                                    typename F::State &s) {
    typedef opdi_cu_reader<T> R;
    const int W = VEC ? (int)R::W : 1;
    if (VEC && r.nred == 1) {
        int64_t head = (W - (int64_t)((uint64_t)(uintptr_t)x / r.bytes + (uint64_t)begin) % W) % W;
        if (head > end - begin) { head = end - begin; }
        const int64_t whole = begin + head + (end - begin - head) / W * W;
        OPDI_CU_ROLLED
        for (int64_t k = lane; k < head + end - whole; k += lanes) {
            const int64_t i = k < head ? begin + k : whole + k - head;
            const typename R::C c = R::one(x, i, r);
            f.template take<1>(s, &c, i, 1);
        }
        begin += head;
        end = whole;
    }
    opdi_cu_reduce_walk<T, F, W>(r, f, x, begin + (int64_t)lane * W, end, (int64_t)lanes * W, s);
}
/* Reduces rows, with blockDim.x threads per row and blockDim.y rows per block.  blockIdx.y is the number of the chunk
   of each row. */
template <class T, class F, bool VEC> __global__ void
opdi_cu_reduce_rows(const __grid_constant__ opdi_cu_reduction r, const F f) {
    __shared__ __align__(16) unsigned char scratch[OPDI_CU_WARP * sizeof(typename F::State)];
    const int lanes = (int)blockDim.x;
    const int64_t begin = blockIdx.y * r.chunk, end = begin + r.chunk < r.n ? begin + r.chunk : r.n;
    OPDI_CU_ROLLED
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < r.outer; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y;
        typename F::State s = f.init(row < r.outer ? row : 0);
        if (row < r.outer) {
            const char *x = r.x + opdi_cu_offset(row, r.ksize, r.kstride, r.nkept) * r.bytes;
            opdi_cu_reduce_part<T, F, VEC>(r, f, x, begin, end, (int)threadIdx.x, lanes, s);
        }
        opdi_cu_fold_lanes(f, s, lanes, (typename F::State *)scratch);
        if (threadIdx.x == 0 && row < r.outer) { opdi_cu_reduce_put(r, f, row, s, r.chunks > 1); }
    }
}
/* Joins the states of the threads of a block that have the same columns, N per thread.  The threads with threadIdx.y =
   0 get the results. */
template <int N, class F>
__device__ __forceinline__ void opdi_cu_fold_down(const F &f, typename F::State *s /*[N]*/,
                                                  typename F::State *shared) {
    const int wide = (int)blockDim.x, me = (int)threadIdx.x, y = (int)threadIdx.y;
    OPDI_CU_ROLLED
    for (int half = (int)blockDim.y / 2; half > 0; half /= 2) {
        __syncthreads();
        if (y >= half && y < 2 * half) {
            OPDI_CU_UNROLL
            for (int k = 0; k < N; k++) { shared[((y - half) * N + k) * wide + me] = s[k]; }
        }
        __syncthreads();
        if (y < half) {
            OPDI_CU_UNROLL
            for (int k = 0; k < N; k++) { f.join(s[k], shared[(y * N + k) * wide + me]); }
        }
    }
}
/* Reduces columns.  Each of blockDim.x neighbouring threads has N columns.  The rows of these columns are divided among
   blockDim.y threads.  blockIdx.y is the number of the chunk of the rows. */
template <class T, class F, bool VEC> __global__ void
__launch_bounds__(256, std::is_same<T, opdi_cu_halves>::value && sizeof(typename F::State) == 4 ? 3 : 1)
opdi_cu_reduce_columns(const __grid_constant__ opdi_cu_reduction r, const F f) {
    typedef opdi_cu_reader<T> R;
    typedef typename R::C C;
    typedef typename F::State S;
    const int N = VEC ? (int)R::W : 1, U = 4;
    OPDI_CU_SHARED(scratch);
    const int wide = (int)blockDim.x * N, down = (int)blockDim.y, me = (int)threadIdx.x, y = (int)threadIdx.y;
    const int64_t begin = blockIdx.y * r.chunk, end = begin + r.chunk < r.n ? begin + r.chunk : r.n;
    const int64_t tiles = (r.ksize[0] + wide - 1) / wide, items = tiles * (r.outer / r.ksize[0]);
    OPDI_CU_ROLLED
    for (int64_t item = blockIdx.x; item < items; item += gridDim.x) {
        const int64_t column = item % tiles * wide + me * N, first = item / tiles * r.ksize[0];
        const bool in = column < r.ksize[0];      /* if VEC, the number of columns is a multiple of N */
        const char *x = r.x + (opdi_cu_offset(first, r.ksize, r.kstride, r.nkept) + column * r.kstride[0]) * r.bytes;
        S s[N];
        int64_t i = begin + y, at[U];
        OPDI_CU_UNROLL
        for (int k = 0; k < N; k++) { s[k] = f.init(in ? first + column + k : 0); }
        OPDI_CU_ROLLED
        for (; in && i + (U - 1) * down < end; i += U * down) {
            C c[U][N];
            opdi_cu_reduce_at<U>(r, i, down, at);
            if constexpr (VEC) {
                typename R::Raw raw[U];
                OPDI_CU_UNROLL
                for (int u = 0; u < U; u++) { R::load(x, at[u], r, raw + u); }
                OPDI_CU_UNROLL
                for (int u = 0; u < U; u++) { R::cast(raw[u], r, c[u]); }
            } else {
                OPDI_CU_UNROLL
                for (int u = 0; u < U; u++) { c[u][0] = R::one(x, at[u], r); }
            }
            OPDI_CU_UNROLL
            for (int k = 0; k < N; k++) {
                C v[U];
                OPDI_CU_UNROLL
                for (int u = 0; u < U; u++) { v[u] = c[u][k]; }
                f.template take<U>(s[k], v, i, down);
            }
        }
        OPDI_CU_ROLLED
        for (; in && i < end; i += down) {
            C c[N];
            opdi_cu_reduce_at<1>(r, i, down, at);
            if constexpr (VEC) {
                typename R::Raw raw;
                R::load(x, at[0], r, &raw);
                R::cast(raw, r, c);
            } else { c[0] = R::one(x, at[0], r); }
            OPDI_CU_UNROLL
            for (int k = 0; k < N; k++) { f.template take<1>(s[k], c + k, i, 1); }
        }
        opdi_cu_fold_down<N>(f, s, (S *)scratch);
        if (y == 0 && in) {
            OPDI_CU_UNROLL
            for (int k = 0; k < N; k++) { opdi_cu_reduce_put(r, f, first + column + k, s[k], r.chunks > 1); }
        }
    }
}
/* Joins the states of a row's chunks and stores the result, with blockDim.y threads per row.  threadIdx.x runs over
   rows, so that neighbouring threads read adjacent states. */
template <class F> __global__ void __launch_bounds__(512)
opdi_cu_reduce_chunks(const __grid_constant__ opdi_cu_reduction r, const F f) {
    OPDI_CU_SHARED(scratch);
    const typename F::State *states = (const typename F::State *)r.states;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.x; first < r.outer; first += (int64_t)gridDim.x * blockDim.x) {
        const int64_t row = first + threadIdx.x;
        typename F::State s = f.init(row < r.outer ? row : 0);
#pragma unroll 4
        for (int k = (int)threadIdx.y; row < r.outer && k < r.chunks; k += (int)blockDim.y) {
            f.join(s, states[k * r.outer + row]);
        }
        opdi_cu_fold_down<1>(f, &s, (typename F::State *)scratch);
        if (threadIdx.y == 0 && row < r.outer) { opdi_cu_reduce_put(r, f, row, s, false); }
    }
}

//== plans =============================================================================================================

/* Returns a mask with one bit for each reduced dim.  An empty list means that all dims are reduced. */
static uint64_t opdi_cu_dims_mask(opd_ints dims, int ndim) {
    uint64_t mask = dims.n ? 0 : ~(uint64_t)0;
    for (int64_t i = 0; i < dims.n; i++) {
        const int64_t d = dims.data[i];
        mask |= (uint64_t)1 << (d < 0 ? d + ndim : d);
    }
    return mask;
}
/* Lists the dims of x that are in `mask` or, if `in` is false, those that are not, innermost first.  Sorts them by
   stride unless `ordered` is true.  Returns their number. */
static int opdi_cu_dims_order(const opd_tensor *x, uint64_t mask, bool in, bool ordered, int *dims) {
    const int64_t *sizes = opd_sizes(x), *strides = opd_strides(x);
    int n = 0, i;
    for (int d = opd_ndim(x) - 1; d >= 0; d--) {
        if ((mask >> d & 1) != in || sizes[d] == 1) { continue; }
        for (i = n++; i > 0 && !ordered && strides[dims[i - 1]] > strides[d]; i--) { dims[i] = dims[i - 1]; }
        dims[i] = d;
    }
    return n;
}
/* Describes in *r the reduction of the dims of x in `mask`, with the results y0 and y1; y1 may be NULL.  If `ordered`
   is true, the order of the elements stays.  Returns 0, or -1 (without an error) if there are too many dims. */
static int opdi_cu_reduce_plan(opdi_cu_reduction *r, const opd_tensor *x, uint64_t mask, opd_tensor *y0, opd_tensor *y1,
                               bool ordered) {
    const int64_t *sizes = opd_sizes(x), *strides = opd_strides(x);
    opd_tensor *const outs[2] = {y0, y1 ? y1 : y0};
    const bool keep = opd_ndim(y0) == opd_ndim(x);
    int dims[OPD_MAX_DIMS], at[OPD_MAX_DIMS], m, i, k, n = 0;
    memset(r, 0, sizeof *r);
    r->x = opdi_cu_data<char>(x);
    r->dtype = opd_dtype(x);
    r->bytes = (int)opd_dtype_size(opd_dtype(x));
    for (i = 0; i < opd_ndim(x); i++) { at[i] = keep ? i : mask >> i & 1 ? 0 : n++; }
    r->n = r->outer = 1;
    m = opdi_cu_dims_order(x, mask, true, ordered, dims);
    for (i = 0; i < m; i++) {
        const int64_t size = sizes[dims[i]], stride = strides[dims[i]];
        const int last = r->nred - 1;
        r->n *= size;
        if (last >= 0 && r->rstride[last] * r->rsize[last] == stride) { r->rsize[last] *= size; continue; }
        if (r->nred == OPDI_CU_REDUCE_DIMS) { return -1; }
        r->rsize[r->nred] = size; r->rstride[r->nred++] = stride;
    }
    m = opdi_cu_dims_order(x, mask, false, false, dims);
    for (i = 0; i < m; i++) {
        const int64_t size = sizes[dims[i]], stride = strides[dims[i]];
        const int last = r->nkept - 1;
        bool join = last >= 0 && r->kstride[last] * r->ksize[last] == stride;
        r->outer *= size;
        for (k = 0; k < 2 && join; k++) {
            join = r->ostride[k][last] * r->ksize[last] == opd_strides(outs[k])[at[dims[i]]];
        }
        if (join) { r->ksize[last] *= size; continue; }
        if (r->nkept == OPDI_CU_REDUCE_DIMS) { return -1; }
        for (k = 0; k < 2; k++) { r->ostride[k][r->nkept] = opd_strides(outs[k])[at[dims[i]]]; }
        r->ksize[r->nkept] = size; r->kstride[r->nkept++] = stride;
    }
    if (r->nred == 0) { r->rsize[r->nred++] = 1; }
    r->far = r->nred > 1 && r->n > INT32_MAX;
    for (i = 0; i < r->nred && r->nred > 1 && !r->far && r->n > 0; i++) {
        r->by[i] = opdi_cu_divide_by((uint32_t)r->rsize[i]);
    }
    if (r->nkept == 0) { r->ksize[r->nkept++] = 1; }
    for (k = 0; k < 2; k++) { r->out.data[k] = opdi_cu_data<void>(outs[k]); r->out.dtype[k] = opd_dtype(outs[k]); }
    r->chunk = r->n; r->chunks = 1;
    return 0;
}
/* Returns whether each load of W elements begins at a multiple of W.  Loads go along the innermost reduced dim if
   `rows` is true, otherwise along the innermost kept dim; its stride is 1.  Another dim may also have stride 1, if
   elements are used more than once. */
static bool opdi_cu_reduce_even(const opdi_cu_reduction *r, int W, bool rows) {
    bool even = (uintptr_t)r->x / (size_t)r->bytes % (size_t)W == 0 && (rows ? r->rsize : r->ksize)[0] % W == 0;
    for (int d = rows; d < r->nred; d++) { even = even && r->rstride[d] % W == 0; }
    for (int d = !rows; d < r->nkept; d++) { even = even && r->kstride[d] % W == 0; }
    return even;
}
/* If there would be fewer than 512 blocks, cuts rows into chunks, so that there are about 1,024 blocks.  A chunk has at
   least `least` elements. */
static void opdi_cu_reduce_cut(opdi_cu_reduction *r, int64_t blocks, int64_t least) {
    int64_t chunks = blocks < 512 ? 1024 / blocks : 1;
    if (chunks > r->n / least) { chunks = r->n / least; }
    if (chunks <= 1) { return; }
    r->chunk = opdi_cu_ceil(opdi_cu_ceil(r->n, chunks), 16) * 16;
    r->chunks = (int)opdi_cu_ceil(r->n, r->chunk);
}
template <class T, class F> static int opdi_cu_reduce_launch(opdi_cu_reduction *r, F f) {
    typedef typename F::State S;
    const int W = opdi_cu_reader<T>::W, U = 4;
    const bool rows = r->rsize[0] > 1 && (r->rstride[0] == 1 || (r->kstride[0] != 1 && r->rstride[0] <= r->kstride[0])),
        rows1 = rows || r->outer == 1;
    bool vec;
    dim3 grid, block;
    size_t shared = 0;
    if (rows1) {
        int lanes = 1, down;
        vec = !r->odd && r->rstride[0] == 1 &&
            (r->nred == 1 ? r->n >= 2 * W : opdi_cu_reduce_even(r, W, true));
        while (lanes < OPDI_CU_WARP && lanes * 2 * (vec ? W : 1) <= r->n) { lanes *= 2; }
        while (lanes >= OPDI_CU_WARP && lanes < 256 && r->outer * lanes < 512 * 1024 &&
               (int64_t)lanes * 2 * (vec ? W : 1) * U <= r->n) { lanes *= 2; }
        down = lanes < 256 ? 256 / lanes : 1;
        if (lanes > OPDI_CU_WARP) { down = 1; }
        block = dim3((unsigned)lanes, (unsigned)down);
        opdi_cu_reduce_cut(r, opdi_cu_ceil(r->outer, down), (int64_t)lanes * (vec ? W : 1) * U * 2);
        grid = opdi_cu_grid_rows(opdi_cu_ceil(r->outer, down));
    } else {
        int wide = 1, down = 1, N;
        int64_t columns, items;
        vec = !r->odd && r->kstride[0] == 1 && opdi_cu_reduce_even(r, W, false);
        N = vec ? W : 1;
        columns = r->ksize[0] / N;
        while (wide < 32 && wide < columns) { wide *= 2; }
        while (wide * down < 256 && r->n >= (int64_t)down * 2 * U) { down *= 2; }
        while (wide * down < 256 && wide < columns) { wide *= 2; }
        block = dim3((unsigned)wide, (unsigned)down);
        shared = (size_t)(down / 2) * (size_t)(wide * N) * sizeof(S);
        items = opdi_cu_ceil(columns, wide) * (r->outer / r->ksize[0]);
        opdi_cu_reduce_cut(r, items, (int64_t)down * U * 4);
        grid = opdi_cu_grid_rows(items);
    }
    grid.y = (unsigned)r->chunks;
    if (r->chunks > 1 && !(r->states = opdi_cu_scratch(r->outer * r->chunks * (int64_t)sizeof(S)))) { return -1; }
    if (opdi_cu_launch(rows1 ? vec ? opdi_cu_reduce_rows<T, F, true> : opdi_cu_reduce_rows<T, F, false>
                       : vec ? opdi_cu_reduce_columns<T, F, true> : opdi_cu_reduce_columns<T, F, false>,
                       grid, block, shared, *r, f)) { return -1; }
    if (r->chunks == 1) { return 0; }
    block = dim3(1, 1);
    while (block.x < OPDI_CU_WARP && block.x < r->outer) { block.x *= 2; }
    while (block.x * block.y < 512 && (int)block.y < r->chunks) { block.y *= 2; }
    return opdi_cu_launch(opdi_cu_reduce_chunks<F>, opdi_cu_grid_rows(opdi_cu_ceil(r->outer, block.x)), block,
                          block.x * (block.y / 2) * sizeof(S), *r, f);
}
/* The kinds of dtypes that a fold supports: floating, integers, or both.  Other dtypes have been converted before. */
enum { OPDI_CU_F = 1, OPDI_CU_I = 2, OPDI_CU_FI = 3 };
template <template <class> class F, int KINDS> static int opdi_cu_reduce_typed(opdi_cu_reduction *r, opdi_cu_fold how) {
    const bool integers = opd_dtype_is_integral((opd_scalar_type)r->dtype, true);
    if constexpr ((KINDS & OPDI_CU_I) != 0) {
        if (integers) { const F<int64_t> f = {how}; return opdi_cu_reduce_launch<opdi_cu_integers>(r, f); }
    }
    if constexpr ((KINDS & OPDI_CU_F) != 0) {
        switch (r->dtype) {
            case OPD_FLOAT32: { const F<float> f = {how}; return opdi_cu_reduce_launch<float>(r, f); }
            case OPD_FLOAT64: { const F<double> f = {how}; return opdi_cu_reduce_launch<double>(r, f); }
            case OPD_FLOAT16:
            case OPD_BFLOAT16: { const F<float> f = {how}; return opdi_cu_reduce_launch<opdi_cu_halves>(r, f); }
            default: break;
        }
    }
    return opdi_cu_no_dtype((opd_scalar_type)r->dtype);
}
/* Reduces the dims of x in `mask` by the fold F, to the results y0 and y1; y1 may be NULL.  `ordered`: see
   opdi_cu_reduce_plan.  Returns 0, or -1 and sets an error. */
template <template <class> class F, int KINDS>
static int opdi_cu_reduce(opd_tensor *x, uint64_t mask, opd_tensor *y0, opd_tensor *y1, opdi_cu_fold how,
                          bool ordered) {
    opdi_cu_reduction r;
    if (!x || !y0) { return -1; }
    if (opd_numel(y0) == 0) { return 0; }
    if (opdi_cu_reduce_plan(&r, x, mask, y0, y1, ordered)) {
        x = opd_contiguous(x);
        if (!x || opdi_cu_reduce_plan(&r, x, mask, y0, y1, ordered)) {
            return opd_ok() ? opd_fail(OPD_ERROR_SHAPE, "this reduction has too many dimensions for CUDA") : -1;
        }
    }
    how.n = r.n;
    if (KINDS == OPDI_CU_I && !opd_dtype_is_integral((opd_scalar_type)r.dtype, true)) {     /* only the bits are read */
        how.flag = 65 - 8 * r.bytes;
        r.dtype = r.bytes == 8 ? OPD_INT64 : r.bytes == 4 ? OPD_INT32 : OPD_INT16;
    }
    return opdi_cu_reduce_typed<F, KINDS>(&r, how);
}
static opdi_cu_fold opdi_cu_fold_make(int kind, int flag = 0, double p = 0) {
    const opdi_cu_fold how = {p, 0, kind, flag};
    return how;
}
/* Converts x for a fold whose result has dtype `dtype`: for bool, to bool; for an integer result, floats become int64;
   for a floating result, integers become floats.  Returns NULL and sets an error if it fails. */
static opd_tensor *opdi_cu_reduce_input(opd_tensor *x, opd_scalar_type dtype) {
    if (dtype == OPD_BOOL) { return opd_to_dtype(x, OPD_BOOL); }
    const bool whole = x && opd_dtype_is_integral(opd_dtype(x), true);
    if (opd_dtype_is_integral(dtype, true)) { return whole ? x : opd_to_dtype(x, OPD_INT64); }
    if (dtype == OPD_FLOAT64) { return opd_to_dtype(x, OPD_FLOAT64); }
    return whole ? opd_to_dtype(x, OPD_FLOAT32) : x;
}

//== sum, nansum, mean, prod ===========================================================================================

template <template <class> class F, int KINDS = OPDI_CU_FI>
static int opdi_cu_sum_of(opd_call *call, opd_ints dims, int kind) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y;
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    return opdi_cu_reduce<F, KINDS>(opdi_cu_reduce_input(x, opd_dtype(y)), opdi_cu_dims_mask(dims, opd_ndim(x)), y,
                                       NULL, opdi_cu_fold_make(kind), false);
}
static opd_ints opdi_cu_no_dims() { return opd_ints_of(NULL, 0); }
static int opdi_cu_sum_all(opd_call *call) { return opdi_cu_sum_of<opdi_cu_fold_sum>(call, opdi_cu_no_dims(), 0); }
static int opdi_cu_sum_dim(opd_call *call) { return opdi_cu_sum_of<opdi_cu_fold_sum>(call, opd_arg_ints(call, 1), 0); }
static int opdi_cu_nansum(opd_call *call) {
    const opd_scalar_type dtype = opd_dtype(opd_arg_tensor(call, 0));
    if (opd_dtype_is_integral(dtype, true) || opd_dtype_is_integral(opd_arg_dtype(call, 3, dtype), true)) {
        return opdi_cu_sum_dim(call);
    }
    return opdi_cu_sum_of<opdi_cu_fold_mapped, OPDI_CU_F>(call, opd_arg_ints(call, 1), OPDI_CU_PLAIN);
}
static int opdi_cu_mean_all(opd_call *call) {
    return opdi_cu_sum_of<opdi_cu_fold_sum>(call, opdi_cu_no_dims(), OPDI_CU_MEAN);
}
static int opdi_cu_mean_dim(opd_call *call) {
    return opdi_cu_sum_of<opdi_cu_fold_sum>(call, opd_arg_ints(call, 1), OPDI_CU_MEAN);
}
static int opdi_cu_prod_all(opd_call *call) { return opdi_cu_sum_of<opdi_cu_fold_prod>(call, opdi_cu_no_dims(), 0); }
static int opdi_cu_prod_dim(opd_call *call) {
    const int64_t dim = opd_arg_int(call, 1);
    return opdi_cu_sum_of<opdi_cu_fold_prod>(call, opd_ints_of(&dim, 1), 0);
}
/* Runs trace: sums the diagonal, which is a view with one dim. */
static int opdi_cu_trace(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y;
    int64_t n, stride;
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    n = opd_size(x, 0) < opd_size(x, 1) ? opd_size(x, 0) : opd_size(x, 1);
    stride = opd_strides(x)[0] + opd_strides(x)[1];
    x = opd_tensor_view(x, &n, &stride, 1, opd_tensor_offset(x));
    return opdi_cu_reduce<opdi_cu_fold_sum, OPDI_CU_FI>(x, ~(uint64_t)0, y, NULL, opdi_cu_fold_make(0), false);
}

//== var, std ==========================================================================================================

static int opdi_cu_var_of(opd_call *call, int kind) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    const opd_value c = opd_call_args(call)[2];
    const double correction = c.tag == OPD_TAG_NONE ? 1.0 : c.tag == OPD_TAG_FLOAT ? c.u.d : (double)c.u.i;
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_reduce<opdi_cu_fold_var, OPDI_CU_F>(x, opdi_cu_dims_mask(opd_arg_ints(call, 1), opd_ndim(x)),
                                                   opdi_cu_result(call, 0), kind >= 2 ? opdi_cu_result(call, 1) : NULL,
                                                   opdi_cu_fold_make(kind, 0, correction), false);
}
static int opdi_cu_var(opd_call *call) { return opdi_cu_var_of(call, 0); }
static int opdi_cu_std(opd_call *call) { return opdi_cu_var_of(call, 1); }
static int opdi_cu_var_mean(opd_call *call) { return opdi_cu_var_of(call, 2); }
static int opdi_cu_std_mean(opd_call *call) { return opdi_cu_var_of(call, 3); }

//== max, min and their indices ========================================================================================

static int opdi_cu_extreme_of(opd_call *call, opd_ints dims, bool least) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_reduce<opdi_cu_fold_extreme, OPDI_CU_FI>(x, opdi_cu_dims_mask(dims, opd_ndim(x)),
                                                           opdi_cu_result(call, 0), NULL, opdi_cu_fold_make(0, least),
                                                           false);
}
static int opdi_cu_amax(opd_call *call) { return opdi_cu_extreme_of(call, opd_arg_ints(call, 1), false); }
static int opdi_cu_amin(opd_call *call) { return opdi_cu_extreme_of(call, opd_arg_ints(call, 1), true); }
static int opdi_cu_max_all(opd_call *call) { return opdi_cu_extreme_of(call, opdi_cu_no_dims(), false); }
static int opdi_cu_min_all(opd_call *call) { return opdi_cu_extreme_of(call, opdi_cu_no_dims(), true); }
/* Returns argument i, a dim or None for all dims, as a mask of dims. */
static uint64_t opdi_cu_dim_mask(opd_call *call, int i) {
    const int64_t dim = opd_arg_int(call, i);
    return opdi_cu_dims_mask(opd_ints_of(&dim, opd_arg_is_none(call, i) ? 0 : 1), opd_ndim(opd_arg_tensor(call, 0)));
}
static int opdi_cu_where_of(opd_call *call, bool index_only, bool least) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_reduce<opdi_cu_fold_where, OPDI_CU_FI>(x, opdi_cu_dim_mask(call, 1), opdi_cu_result(call, 0),
                                                    index_only ? NULL : opdi_cu_result(call, 1),
                                                    opdi_cu_fold_make(index_only, least), true);
}
static int opdi_cu_max_dim(opd_call *call) { return opdi_cu_where_of(call, false, false); }
static int opdi_cu_min_dim(opd_call *call) { return opdi_cu_where_of(call, false, true); }
static int opdi_cu_argmax(opd_call *call) { return opdi_cu_where_of(call, true, false); }
static int opdi_cu_argmin(opd_call *call) { return opdi_cu_where_of(call, true, true); }
static int opdi_cu_aminmax(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < 2; i++) {
        if (opdi_cu_reduce<opdi_cu_fold_extreme, OPDI_CU_FI>(x, opdi_cu_dim_mask(call, 1), opdi_cu_result(call, i),
                                                                 NULL, opdi_cu_fold_make(0, i == 0),
                                                                 false)) { return -1; }
    }
    return 0;
}

//== any, all, count_nonzero, equal ====================================================================================

/* Counts the elements that are not 0.  kind 0: the result is their number; 1: whether there are any; 2: whether all
   elements are not 0.  Returns 0, or -1 and sets an error. */
static int opdi_cu_count_of(opd_call *call, uint64_t mask, int kind) {
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_reduce<opdi_cu_fold_count, OPDI_CU_I>(opd_arg_tensor(call, 0), mask, opdi_cu_result(call, 0), NULL,
                                                    opdi_cu_fold_make(kind), false);
}
static uint64_t opdi_cu_dims_of(opd_call *call, int i) {
    return opdi_cu_dims_mask(opd_arg_ints(call, i), opd_ndim(opd_arg_tensor(call, 0)));
}
static int opdi_cu_any_all(opd_call *call) { return opdi_cu_count_of(call, ~(uint64_t)0, 1); }
static int opdi_cu_any_dim(opd_call *call) { return opdi_cu_count_of(call, opdi_cu_dim_mask(call, 1), 1); }
static int opdi_cu_any_dims(opd_call *call) { return opdi_cu_count_of(call, opdi_cu_dims_of(call, 1), 1); }
static int opdi_cu_all_all(opd_call *call) { return opdi_cu_count_of(call, ~(uint64_t)0, 2); }
static int opdi_cu_all_dim(opd_call *call) { return opdi_cu_count_of(call, opdi_cu_dim_mask(call, 1), 2); }
static int opdi_cu_all_dims(opd_call *call) { return opdi_cu_count_of(call, opdi_cu_dims_of(call, 1), 2); }
static int opdi_cu_count_dim(opd_call *call) { return opdi_cu_count_of(call, opdi_cu_dim_mask(call, 1), 0); }
static int opdi_cu_count_dims(opd_call *call) { return opdi_cu_count_of(call, opdi_cu_dims_of(call, 1), 0); }
static int opdi_cu_equal(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1), *all;
    bool same = opd_ndim(a) == opd_ndim(b);
    if (opd_dtype(a) != opd_dtype(b)) {
        return opd_fail(OPD_ERROR_DTYPE,
                        "Expected object of data type %s but got data type %s for argument 'other' in call to equal",
                        opd_dtype_name(opd_dtype(a)), opd_dtype_name(opd_dtype(b)));
    }
    for (int d = 0; d < opd_ndim(a) && same; d++) { same = opd_sizes(a)[d] == opd_sizes(b)[d]; }
    if (!same) { return opd_return_bool(call, false); }
    all = opd_all(opd_eq(a, b));
    return all ? opd_return_bool(call, opd_item_i64(all) != 0) : -1;
}

//== norms, logsumexp ==================================================================================================

/* Returns whether argument i is complex.  Kernels that compute in a real type leave such calls to the CPU. */
static bool opdi_cu_is_complex(opd_call *call, int i) {
    return opd_dtype_is_complex(opd_dtype(opd_arg_tensor(call, i)));
}
static int opdi_cu_norm_of(opd_call *call, opd_ints dims) {
    if (opdi_cu_is_complex(call, 0)) { return opd_cpu_fallback(call); }
    opd_tensor *x = opd_arg_tensor(call, 0), *y;
    const opd_value v = opd_call_args(call)[1];
    const double p = v.tag == OPD_TAG_NONE ? 2.0 : v.tag == OPD_TAG_FLOAT ? v.u.d : (double)v.u.i;
    const uint64_t mask = opdi_cu_dims_mask(dims, opd_ndim(x));
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    x = opdi_cu_reduce_input(x, opd_dtype(y));
    if (p == 0) { return opdi_cu_reduce<opdi_cu_fold_count, OPDI_CU_I>(x, mask, y, NULL, opdi_cu_fold_make(0), false); }
    if (p == 1 || p == 2) {
        const opdi_cu_fold how = p == 1 ? opdi_cu_fold_make(OPDI_CU_PLAIN, OPDI_CU_ABS)
            : opdi_cu_fold_make(OPDI_CU_ROOT, OPDI_CU_SQUARE);
        return opdi_cu_reduce<opdi_cu_fold_mapped, OPDI_CU_F>(x, mask, y, NULL, how, false);
    }
    if (p - p != 0) {                             /* p is infinite */
        return opdi_cu_reduce<opdi_cu_fold_extreme, OPDI_CU_FI>(x, mask, y, NULL, opdi_cu_fold_make(1, p < 0), false);
    }
    if (opd_dtype(x) == OPD_FLOAT16 || opd_dtype(x) == OPD_BFLOAT16) { x = opd_to_dtype(x, OPD_FLOAT32); }
    x = x ? opd_pow_Tensor_Scalar(opd_abs(x), opd_value_double(p)) : NULL;
    return opdi_cu_reduce<opdi_cu_fold_sum, OPDI_CU_F>(x, mask, y, NULL, opdi_cu_fold_make(OPDI_CU_ROOT_P, 0, p),
                                                       false);
}
static int opdi_cu_norm_all(opd_call *call) { return opdi_cu_norm_of(call, opdi_cu_no_dims()); }
static int opdi_cu_norm_dims(opd_call *call) { return opdi_cu_norm_of(call, opd_arg_ints(call, 2)); }
static int opdi_cu_logsumexp(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y;
    const uint64_t mask = opdi_cu_dims_of(call, 1);
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    return opdi_cu_reduce<opdi_cu_fold_lse, OPDI_CU_F>(opdi_cu_reduce_input(x, opd_dtype(y)), mask, y, NULL,
                                                       opdi_cu_fold_make(0), false);
}

static const opdi_cu_registration opdi_cu_table_reductions[] = {
    {"sum", opdi_cu_sum_all}, {"sum.dim_IntList", opdi_cu_sum_dim}, {"nansum", opdi_cu_nansum},
    {"mean", opdi_cu_mean_all}, {"mean.dim", opdi_cu_mean_dim}, {"prod", opdi_cu_prod_all},
    {"prod.dim_int", opdi_cu_prod_dim}, {"trace", opdi_cu_trace},
    {"_assert_async", opd_cpu_fallback}, {"_assert_async.msg", opd_cpu_fallback},
    {"_functional_assert_async.msg", opd_cpu_fallback},
    {"var.correction", opdi_cu_var}, {"std.correction", opdi_cu_std}, {"var_mean.correction", opdi_cu_var_mean},
    {"std_mean.correction", opdi_cu_std_mean},
    {"amax", opdi_cu_amax}, {"amin", opdi_cu_amin}, {"max", opdi_cu_max_all}, {"min", opdi_cu_min_all},
    {"max.dim", opdi_cu_max_dim}, {"min.dim", opdi_cu_min_dim}, {"argmax", opdi_cu_argmax}, {"argmin", opdi_cu_argmin},
    {"aminmax", opdi_cu_aminmax},
    {"any", opdi_cu_any_all}, {"any.dim", opdi_cu_any_dim}, {"any.dims", opdi_cu_any_dims},
    {"all", opdi_cu_all_all}, {"all.dim", opdi_cu_all_dim}, {"all.dims", opdi_cu_all_dims},
    {"count_nonzero", opdi_cu_count_dim}, {"count_nonzero.dim_IntList", opdi_cu_count_dims}, {"equal", opdi_cu_equal},
    {"linalg_vector_norm", opdi_cu_norm_dims}, {"norm.Scalar", opdi_cu_norm_all},
    {"norm.ScalarOpt_dtype", opdi_cu_norm_all}, {"norm.ScalarOpt_dim", opdi_cu_norm_dims},
    {"norm.ScalarOpt_dim_dtype", opdi_cu_norm_dims}, {"logsumexp", opdi_cu_logsumexp},
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:softmax     softmax and norms over rows
//----------------------------------------------------------------------------------------------------------------------

//== kernels for rows ==================================================================================================
//
//  These kernels (softmax, layer norm and group norm) process rows of n contiguous elements.  threadIdx.x is the number
//  of a thread (its lane) among the threads that share a row, and threadIdx.y is the row in the block.  Of each lanes *
//  W elements, a thread has W neighbours, called a pack (16 bytes, or one element).  If PACKS > 0, a thread loads its
//  PACKS packs of the row once and keeps them in registers.  If PACKS is 0, it loads them again in each pass, from the
//  cache for rows of this length.

/* Two loops.  OPDI_CU_EACH_PACK(p, i) runs over the packs that a thread keeps in registers: p is the number of a pack,
   and i is its first element, which may be past the end of the row.  OPDI_CU_EACH_ROUND(i) runs over all packs of a
   thread if PACKS is 0. */
#define OPDI_CU_EACH_PACK(p, i)                                                                                       \
    OPDI_CU_UNROLL                                                                                                    \
    for (int p = 0, i = lane * W; p < (PACKS ? PACKS : 1); p++, i += lanes * W)
#define OPDI_CU_EACH_ROUND(i)                                                                                         \
    for (int64_t i = (int64_t)lane * W; in && i < n; i += (int64_t)lanes * W)
/* Loads all packs of this thread before any is used, so that all loads are in flight at once.  Returns how many of the
   packs are in the row. */
template <int W, int PACKS, typename T>
__device__ __forceinline__ int opdi_cu_load_packs(const T *row, int n, int lane, int lanes, bool in,
                                                  opdi_cu_vector<T, W> *v /*[PACKS]*/) {
    int there = 0;
    OPDI_CU_EACH_PACK(p, i) { if (in && i < n) { v[p] = opdi_cu_load_vector<W>(row + i); there = p + 1; } }
    return there;
}

/* Makes the compiler believe that packs of bfloat16 have changed.  The compiler then converts them to float again,
   instead of keeping the floats in registers. */
template <typename T, int W> __device__ __forceinline__ void opdi_cu_opaque(opdi_cu_vector<T, W> *v, int n) {
#if !defined(OPD_CUDA_EMULATED)
    if constexpr (std::is_same<T, opdi_cu_bf16>::value && W % 2 == 0) {
        OPDI_CU_UNROLL
        for (int k = 0; k < n * W / 2; k++) {
            uint32_t two;
            memcpy(&two, v[k / (W / 2)].at + k % (W / 2) * 2, sizeof two);
            asm("" : "+r"(two));
            memcpy(v[k / (W / 2)].at + k % (W / 2) * 2, &two, sizeof two);
        }
    }
#else
    (void)v; (void)n;
#endif
}
template <int W, typename T, typename C> __device__ __forceinline__ void opdi_cu_load_some(const T *p, C *c) {
    const opdi_cu_vector<T, W> v = opdi_cu_load_vector<W>(p);
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) { c[w] = opdi_cu_cast<C>(v.at[w]); }
}
template <int W, typename T, typename C> __device__ __forceinline__ void opdi_cu_store_some(T *p, const C *c) {
    opdi_cu_vector<T, W> v;
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) { v.at[w] = opdi_cu_cast<T>(c[w]); }
    opdi_cu_store_vector<W>(p, v);
}
/* Combines the values v of the threads that share a row by f, whose neutral value is `none`.  Each thread gets the
   result. */
template <typename A, typename F> __device__ __forceinline__ A opdi_cu_row_reduce(A v, F f, A none, int lanes) {
    if (lanes > OPDI_CU_WARP) { return opdi_cu_block_reduce(v, f, none); }
    for (int m = lanes / 2; m > 0; m /= 2) { v = f(v, opdi_cu_shuffle_xor(v, m)); }
    return v;
}
struct opdi_cu_top {
    template <typename A> __device__ __forceinline__ A operator()(A a, A b) const { return a > b ? a : b; }
};
/* The distribution of rows over threads and blocks. */
typedef struct opdi_cu_row_plan { dim3 grid, block; int packs; bool vec; } opdi_cu_row_plan;
/* Plans rows of n elements.  As n grows, there are first up to 32 threads per row with one pack each, then up to `most`
   packs (1, 2 or 4) per thread, then up to 1,024 threads.  For longer rows, `packs` is 0. */
static opdi_cu_row_plan opdi_cu_row_plan_of(int64_t rows, int64_t n, int W, bool vec, int most) {
    opdi_cu_row_plan p;
    int lanes = 1;
    if (!vec) { W = 1; }
    while (lanes < OPDI_CU_WARP && (int64_t)lanes * W < n) { lanes *= 2; }
    p.packs = 1;
    while (p.packs < most && (int64_t)lanes * p.packs * W < n) { p.packs *= 2; }
    while (lanes < 1024 && (int64_t)lanes * p.packs * W < n) { lanes *= 2; }
    if ((int64_t)lanes * p.packs * W < n) { p.packs = 0; }
    if (!vec && p.packs > 0) { p.packs = most; }  /* without vectors, there is only the kernel for `most` packs */
    p.vec = vec;
    p.block = dim3((unsigned)lanes, lanes < 128 ? (unsigned)(128 / lanes) : 1u);
    if (lanes > OPDI_CU_WARP) { p.block.y = 1; }
    p.grid = opdi_cu_grid_rows(opdi_cu_ceil(rows, p.block.y));
    return p;
}
/* Selects the variant of a kernel template <T, W, PACKS> for a plan.  MOST is 2 or 4. */
#define OPDI_CU_ROW_KERNEL(plan, kernel, T, MOST)                                                                     \
    (!(plan).vec ? (plan).packs ? kernel<T, 1, MOST> : kernel<T, 1, 0>                                                \
     : (plan).packs == 1 ? kernel<T, 16 / (int)sizeof(T), 1> : (plan).packs == 2 ? kernel<T, 16 / (int)sizeof(T), 2>  \
     : (plan).packs == 4 ? kernel<T, 16 / (int)sizeof(T), MOST> : kernel<T, 16 / (int)sizeof(T), 0>)
/* Returns contiguous memory in which to compute y: y itself, or a new tensor, which opdi_cu_staging_store then copies
   to y. */
static opd_tensor *opdi_cu_staging(opd_tensor *y) {
    return !y || opd_is_contiguous(y) ? y : opdi_cu_new(opd_ints_of(opd_sizes(y), opd_ndim(y)), opd_dtype(y));
}
static int opdi_cu_staging_store(opd_tensor *y, opd_tensor *staging) {
    return y == staging || opd_copy_(y, staging) ? 0 : -1;
}
static opd_scalar_type opdi_cu_acc_dtype(opd_scalar_type dtype) {
    return dtype == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
}

//== softmax ===========================================================================================================

/* The largest element `top` and the sum of exp(x - top) of the elements read so far.  A row that has only -inf, or an
   inf or NaN, gives NaN. */
template <typename C> struct opdi_cu_exps {
    C top, sum;
    template <int W> __device__ __forceinline__ void take(const C *x) {
        C now = top;
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { now = x[w] > now ? x[w] : now; }
        if (now > top) { sum *= opdi_cu_exp(top - now); top = now; }
        const C shift = top > opdi_cu_lowest<C>() ? top : (C)0;
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { sum += opdi_cu_exp(x[w] - shift); }
    }
    __device__ __forceinline__ C total() const { return top > opdi_cu_lowest<C>() ? sum : (C)NAN; }
    /* Makes a row that has only -inf give zeros.  Then writes top + log(sum) to *lse, unless it is NULL. */
    __device__ __forceinline__ void safe(C *lse) {
        if (!(top > opdi_cu_lowest<C>())) { top = 0; sum = sum == 0 ? (C)1 : sum; }
        if (lse) { *lse = top + (C)log(sum); }
    }
};
struct opdi_cu_exps_join {
    template <typename E> __device__ __forceinline__ E operator()(E a, E b) const {
        if (b.top > a.top) { const E t = a; a = b; b = t; }
        if (a.top > b.top) { b.sum *= opdi_cu_exp(b.top - a.top); }
        a.sum += b.sum;
        return a;
    }
};
/* Writes exp(x - top) / sum or, if `logarithm` is true, x - top - log(sum).  If lse is not NULL, writes top + log(sum)
   of each row to it, and a row that has only -inf gives zeros instead of NaN, and 0 in lse. */
template <typename T, int W, int PACKS>
__global__ void __launch_bounds__(1024) opdi_cu_softmax_rows(const T *x, T *y, int64_t rows, int64_t n,
                                                             bool logarithm, opdi_cu_acc<T> *lse) {
    typedef opdi_cu_acc<T> C;
    const int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < rows; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y;
        const bool in = row < rows;
        const T *from = x + row * n;
        T *to = y + row * n;
        if constexpr (PACKS > 0) {
            opdi_cu_vector<T, W> raw[PACKS];
            C v[PACKS][W], top = opdi_cu_lowest<C>(), sum = 0;
            const int there = opdi_cu_load_packs<W, PACKS>(from, (int)n, lane, lanes, in, raw);
            OPDI_CU_EACH_PACK(p, i) {             /* elements after the row count as -inf */
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) {
                    v[p][w] = p < there ? opdi_cu_cast<C>(raw[p].at[w]) : opdi_cu_lowest<C>();
                    top = v[p][w] > top ? v[p][w] : top;
                }
            }
            top = opdi_cu_row_reduce(top, opdi_cu_top(), opdi_cu_lowest<C>(), lanes);
            if (lse && !(top > opdi_cu_lowest<C>())) { top = 0; }
            OPDI_CU_EACH_PACK(p, i) {
                if (p >= there) { continue; }
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) {
                    const C d = v[p][w] - top, e = opdi_cu_exp(d);
                    sum += e;
                    v[p][w] = logarithm ? d : e;
                }
            }
            sum = opdi_cu_row_reduce(sum, opdi_cu_sum(), (C)0, lanes);
            if (lse && sum == 0) { sum = 1; }
            if (lse && in && lane == 0) { lse[row] = top + (C)log(sum); }
            sum = logarithm ? (C)log(sum) : (C)1 / sum;
            OPDI_CU_EACH_PACK(p, i) {
                if (p >= there) { continue; }
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) { v[p][w] = logarithm ? v[p][w] - sum : v[p][w] * sum; }
                opdi_cu_store_some<W>(to + i, v[p]);
            }
        } else {
            const opdi_cu_exps<C> none = {opdi_cu_lowest<C>(), 0};
            opdi_cu_exps<C> e = none;
            C v[W], sum;
            OPDI_CU_EACH_ROUND(i) {
                opdi_cu_load_some<W>(from + i, v);
                e.template take<W>(v);
            }
            e = opdi_cu_row_reduce(e, opdi_cu_exps_join(), none, lanes);
            if (lse) { e.safe(in && lane == 0 ? lse + row : NULL); }
            sum = logarithm ? (C)log(e.total()) : (C)1 / e.total();
            OPDI_CU_EACH_ROUND(i) {
                opdi_cu_load_some<W>(from + i, v);
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) {
                    v[w] = logarithm ? v[w] - e.top - sum : opdi_cu_exp(v[w] - e.top) * sum;
                }
                opdi_cu_store_some<W>(to + i, v);
            }
        }
    }
}
/* The numbers of aligned packs in a row of n elements, and of the elements before and after them.  A row can begin
   anywhere, so these are up to W - 1 elements at each end. */
template <typename T, int W> struct opdi_cu_long_row {
    int lead, packs, tail;                        /* elements before the packs; packs; elements after them */
    __device__ __forceinline__ opdi_cu_long_row(const T *row, int n) {
        lead = (int)((W - (uintptr_t)row / sizeof(T) % W) % W);
        packs = (n - lead) / W;
        tail = n - lead - packs * W;
    }
};
/* Computes the same as opdi_cu_softmax_rows, for rows that are too long for registers, but fit into shared memory.  x
   and y begin at multiples of 16 bytes.  A block reads each row once: while it writes a row, it loads its next row to
   the same places in shared memory.  So in its first round, it only loads.  A thread uses only packs that it has stored
   itself, so no barrier is needed for them.  It keeps one element of each end of the row in a register (ends). */
template <typename T> __global__ void __launch_bounds__(1024)
opdi_cu_softmax_long_rows(const T *x, T *y, int64_t rows, int n, bool logarithm, opdi_cu_acc<T> *lse) {
    typedef opdi_cu_acc<T> C;
    constexpr int W = 16 / sizeof(T), U = 2;      /* U: packs of a thread in flight */
    const int threads = (int)blockDim.x, thread = (int)threadIdx.x;
    const opdi_cu_exps<C> none = {opdi_cu_lowest<C>(), 0};
    opdi_cu_exps<C> e = none;
    C ends[2] = {0, 0}, sum = 0;
    OPDI_CU_SHARED(scratch);
    T *kept = reinterpret_cast<T *>(scratch);
    for (int64_t row = (int64_t)blockIdx.x - gridDim.x; row < rows; row += gridDim.x) {
        const int64_t next = row + gridDim.x;
        const bool write = row >= 0, read = next < rows;
        T *to = y + row * n;
        const T *from = x + next * n;
        const opdi_cu_long_row<T, W> a(to, n), b(from, n);
        if (write) {
            e = opdi_cu_block_reduce(e, opdi_cu_exps_join(), none);
            if (lse) { e.safe(thread == 0 ? lse + row : NULL); }
            sum = logarithm ? (C)log(e.total()) : (C)1 / e.total();
            if (thread < a.lead) {
                opdi_cu_store(to + thread, logarithm ? ends[0] - e.top - sum : opdi_cu_exp(ends[0] - e.top) * sum);
            }
            if (thread < a.tail) {
                opdi_cu_store(to + n - a.tail + thread,
                              logarithm ? ends[1] - e.top - sum : opdi_cu_exp(ends[1] - e.top) * sum);
            }
        }
        const C top = e.top;
        const int mine = write ? a.packs : 0, theirs = read ? b.packs : 0;
        e = none;
        if (read && thread < b.lead) { ends[0] = opdi_cu_load<C>(from + thread); e.template take<1>(ends); }
        if (read && thread < b.tail) {
            ends[1] = opdi_cu_load<C>(from + n - b.tail + thread);
            e.template take<1>(ends + 1);
        }
        OPDI_CU_ROLLED
        for (int p = thread; p < mine || p < theirs; p += U * threads) {
            opdi_cu_vector<T, W> in[U];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                const int q = p + u * threads;
                if (q < theirs) { in[u] = opdi_cu_load_vector<W>(from + b.lead + q * W); }
            }
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                const int q = p + u * threads;
                C v[W];
                if (q < mine) {
                    opdi_cu_load_some<W>(kept + q * W, v);
                    OPDI_CU_UNROLL
                    for (int w = 0; w < W; w++) {
                        v[w] = logarithm ? v[w] - top - sum : opdi_cu_exp(v[w] - top) * sum;
                    }
                    opdi_cu_store_some<W>(to + a.lead + q * W, v);
                }
                if (q < theirs) {
                    opdi_cu_store_vector<W>(kept + q * W, in[u]);
                    OPDI_CU_UNROLL
                    for (int w = 0; w < W; w++) { v[w] = opdi_cu_cast<C>(in[u].at[w]); }
                    e.template take<W>(v);
                }
            }
        }
    }
}
/* The gradient is y * (g - sum(g * y)) or, if `logarithm` is true, g - exp(y) * sum(g).  This function returns a pack's
   part of sum(g * y) or sum(g); opdi_cu_softmax_gradient writes a pack of the gradient. */
template <typename C, typename T, int W>
__device__ __forceinline__ C opdi_cu_softmax_product(const opdi_cu_vector<T, W> &g, const opdi_cu_vector<T, W> &y,
                                                     bool logarithm) {
    C sum = 0;
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) {
        const C a = opdi_cu_cast<C>(g.at[w]);
        sum += logarithm ? a : a * opdi_cu_cast<C>(y.at[w]);
    }
    return sum;
}
template <typename C, typename T, int W>
__device__ __forceinline__ void opdi_cu_softmax_gradient(T *dx, const opdi_cu_vector<T, W> &g,
                                                         const opdi_cu_vector<T, W> &y, C sum, bool logarithm) {
    C v[W];
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) {
        const C a = opdi_cu_cast<C>(g.at[w]), b = opdi_cu_cast<C>(y.at[w]);
        v[w] = logarithm ? a - opdi_cu_exp(b) * sum : b * (a - sum);
    }
    opdi_cu_store_some<W>(dx, v);
}
template <typename T, int W, int PACKS>
__global__ void __launch_bounds__(1024) opdi_cu_softmax_backward_rows(const T *g, const T *y, T *dx, int64_t rows,
                                                                      int64_t n, bool logarithm) {
    typedef opdi_cu_acc<T> C;
    const int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < rows; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y;
        const bool in = row < rows;
        const int64_t at = row * n;
        opdi_cu_vector<T, W> gs[PACKS ? PACKS : 1], ys[PACKS ? PACKS : 1];
        C sum = 0;
        if constexpr (PACKS > 0) {
            const int there = opdi_cu_load_packs<W, PACKS>(g + at, (int)n, lane, lanes, in, gs);
            (void)opdi_cu_load_packs<W, PACKS>(y + at, (int)n, lane, lanes, in, ys);
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { sum += opdi_cu_softmax_product<C>(gs[p], ys[p], logarithm); } }
            sum = opdi_cu_row_reduce(sum, opdi_cu_sum(), (C)0, lanes);
            OPDI_CU_EACH_PACK(p, i) {
                if (p < there) { opdi_cu_softmax_gradient(dx + at + i, gs[p], ys[p], sum, logarithm); }
            }
        } else {
            OPDI_CU_EACH_ROUND(i) {
                gs[0] = opdi_cu_load_vector<W>(g + at + i);
                ys[0] = opdi_cu_load_vector<W>(y + at + i);
                sum += opdi_cu_softmax_product<C>(gs[0], ys[0], logarithm);
            }
            sum = opdi_cu_row_reduce(sum, opdi_cu_sum(), (C)0, lanes);
            OPDI_CU_EACH_ROUND(i) {
                gs[0] = opdi_cu_load_vector<W>(g + at + i);
                ys[0] = opdi_cu_load_vector<W>(y + at + i);
                opdi_cu_softmax_gradient(dx + at + i, gs[0], ys[0], sum, logarithm);
            }
        }
    }
}
/* Computes softmax along a dim with `inner` elements after it.  threadIdx.x runs over columns.  The elements of a
   column are divided among blockDim.y threads. */
template <typename T> __global__ void opdi_cu_softmax_columns(const T *x, T *y, int64_t outer, int64_t n, int64_t inner,
                                                              bool logarithm) {
    typedef opdi_cu_acc<T> C;
    __shared__ __align__(16) unsigned char scratch[256 * sizeof(opdi_cu_exps<C>)];
    opdi_cu_exps<C> *shared = reinterpret_cast<opdi_cu_exps<C> *>(scratch);
    const int down = (int)blockDim.y, slot = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    const int64_t tiles = opdi_cu_ceil(inner, blockDim.x);
    for (int64_t item = blockIdx.x; item < tiles * outer; item += gridDim.x) {
        const int64_t column = item % tiles * blockDim.x + threadIdx.x, base = item / tiles * n * inner + column;
        const bool in = column < inner;
        opdi_cu_exps<C> e = {opdi_cu_lowest<C>(), 0};
        int64_t i = threadIdx.y;
        for (; in && i + 3 * down < n; i += 4 * down) {
            C v[4];
            OPDI_CU_UNROLL
            for (int k = 0; k < 4; k++) { v[k] = opdi_cu_load<C>(x + base + (i + k * down) * inner); }
            e.template take<4>(v);
        }
        OPDI_CU_ROLLED
        for (; in && i < n; i += down) {
            const C v = opdi_cu_load<C>(x + base + i * inner);
            e.template take<1>(&v);
        }
        shared[slot] = e;
        for (int half = down / 2; half > 0; half /= 2) {
            __syncthreads();
            if ((int)threadIdx.y < half) {
                shared[slot] = opdi_cu_exps_join()(shared[slot], shared[slot + half * (int)blockDim.x]);
            }
        }
        __syncthreads();
        e = shared[threadIdx.x];
        __syncthreads();
        const C sum = logarithm ? (C)log(e.total()) : (C)1 / e.total();
        for (i = threadIdx.y; in && i < n; i += down) {
            const C v = opdi_cu_load<C>(x + base + i * inner);
            opdi_cu_store(y + base + i * inner, logarithm ? v - e.top - sum : opdi_cu_exp(v - e.top) * sum);
        }
    }
}
template <typename T> __global__ void opdi_cu_softmax_backward_columns(const T *g, const T *y, T *dx, int64_t outer,
                                                                       int64_t n, int64_t inner, bool logarithm) {
    typedef opdi_cu_acc<T> C;
    __shared__ __align__(16) unsigned char scratch[256 * sizeof(C)];
    C *shared = reinterpret_cast<C *>(scratch);
    const int down = (int)blockDim.y, slot = (int)(threadIdx.y * blockDim.x + threadIdx.x);
    const int64_t tiles = opdi_cu_ceil(inner, blockDim.x);
    for (int64_t item = blockIdx.x; item < tiles * outer; item += gridDim.x) {
        const int64_t column = item % tiles * blockDim.x + threadIdx.x, base = item / tiles * n * inner + column;
        const bool in = column < inner;
        C sum = 0;
        for (int64_t i = threadIdx.y; in && i < n; i += down) {
            const C a = opdi_cu_load<C>(g + base + i * inner);
            sum += logarithm ? a : a * opdi_cu_load<C>(y + base + i * inner);
        }
        shared[slot] = sum;
        for (int half = down / 2; half > 0; half /= 2) {
            __syncthreads();
            if ((int)threadIdx.y < half) { shared[slot] += shared[slot + half * (int)blockDim.x]; }
        }
        __syncthreads();
        sum = shared[threadIdx.x];
        __syncthreads();
        for (int64_t i = threadIdx.y; in && i < n; i += down) {
            const C a = opdi_cu_load<C>(g + base + i * inner), b = opdi_cu_load<C>(y + base + i * inner);
            opdi_cu_store(dx + base + i * inner, logarithm ? a - opdi_cu_exp(b) * sum : b * (a - sum));
        }
    }
}
/* The product of the sizes before dim, the size of dim, and the product of the sizes after it. */
typedef struct opdi_cu_line { int64_t outer, n, inner; } opdi_cu_line;
static opdi_cu_line opdi_cu_line_of(const opd_tensor *x, int64_t dim) {
    opdi_cu_line l = {1, 1, 1};
    const int at = (int)(dim < 0 ? dim + opd_ndim(x) : dim);
    for (int d = 0; d < opd_ndim(x); d++) { *(d < at ? &l.outer : d == at ? &l.n : &l.inner) *= opd_sizes(x)[d]; }
    return l;
}
/* Returns the sizes of a block: threads in x run along `inner`, and the elements of each column are divided among the
   threads in y. */
static dim3 opdi_cu_column_block(opdi_cu_line l) {
    unsigned wide = 1, down = 1;
    while (wide < 32 && wide < l.inner) { wide *= 2; }
    while (wide * down < 256 && down * 4 < l.n) { down *= 2; }
    while (wide * down < 256 && wide < l.inner) { wide *= 2; }
    return dim3(wide, down);
}
/* Returns whether a row of n elements, and the kernel's own __shared__ variables, fit into shared memory. */
static bool opdi_cu_long_row_fits(int64_t n, size_t size) {
    return n < INT32_MAX && n * (int64_t)size + OPDI_CU_STATIC_SHARED <= opdi_cu_properties()->shared;
}
/* Plans at most as many blocks as run at the same time, and about 1,024 threads for each multiprocessor. */
static opdi_cu_row_plan opdi_cu_long_row_plan(int64_t rows, int64_t n, size_t size) {
    const opdi_cu_device *d = opdi_cu_properties();
    const int64_t fit = d->shared / (n * (int64_t)size + OPDI_CU_STATIC_SHARED);
    const int64_t want = opdi_cu_ceil(rows, d->multiprocessors);
    const int64_t blocks = want < fit ? want : fit, most = (blocks < 8 ? blocks : 8) * d->multiprocessors;
    unsigned threads = 1024;
    opdi_cu_row_plan p;
    while (threads > 128 && threads * blocks > 1024) { threads /= 2; }
    p.packs = 0; p.vec = true;
    p.block = dim3(threads);
    p.grid = dim3((unsigned)(rows < most ? rows : most));
    return p;
}
/* Runs softmax of contiguous rows of n elements.  y may be x.  lse may be NULL, see opdi_cu_softmax_rows. */
template <typename T> static int opdi_cu_softmax_run(const T *x, T *y, int64_t rows, int64_t n, bool logarithm,
                                                     opdi_cu_acc<T> *lse) {
    const int W = 16 / (int)sizeof(T), most = sizeof(T) == 4 ? 4 : 2;                         /* limited by registers */
    const bool aligned = opdi_cu_aligned(x) && opdi_cu_aligned(y);
    const opdi_cu_row_plan p = opdi_cu_row_plan_of(rows, n, W, n % W == 0 && aligned, most);
    if (p.packs == 0 && aligned && opdi_cu_long_row_fits(n, sizeof(T))) {
        const opdi_cu_row_plan q = opdi_cu_long_row_plan(rows, n, sizeof(T));
        return opdi_cu_launch(opdi_cu_softmax_long_rows<T>, q.grid, q.block, (size_t)n * sizeof(T), x, y, rows, (int)n,
                              logarithm, lse);
    }
    return opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_softmax_rows, T, most), p.grid, p.block, 0, x, y, rows, n,
                          logarithm, lse);
}
static int opdi_cu_softmax_of(opd_call *call, bool logarithm) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y, *staging;
    const opdi_cu_line l = opdi_cu_line_of(x, opd_arg_int(call, 1));
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    if (opd_numel(y) == 0) { return 0; }
    x = opd_contiguous(x);
    staging = opdi_cu_staging(y);
    if (!x || !staging) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        const T *from = opdi_cu_data<T>(x);
        T *to = opdi_cu_data<T>(staging);
        if (l.inner == 1) {
            if (opdi_cu_softmax_run<T>(from, to, l.outer, l.n, logarithm, NULL)) { return -1; }
        } else {
            const dim3 block = opdi_cu_column_block(l);
            if (opdi_cu_launch(opdi_cu_softmax_columns<T>, opdi_cu_grid_rows(opdi_cu_ceil(l.inner, block.x) * l.outer),
                               block, 0, from, to, l.outer, l.n, l.inner, logarithm)) { return -1; }
        }
    })
    return opdi_cu_staging_store(y, staging);
}
static int opdi_cu_softmax_backward_of(opd_call *call, bool logarithm) {
    opd_tensor *g = opd_arg_tensor(call, 0), *y = opd_arg_tensor(call, 1), *dx, *staging;
    const opdi_cu_line l = opdi_cu_line_of(g, opd_arg_int(call, 2));
    if (opd_results_from_fake(call)) { return -1; }
    dx = opdi_cu_result(call, 0);
    if (opd_numel(dx) == 0) { return 0; }
    g = opd_contiguous(g);
    y = opd_contiguous(y);
    staging = opdi_cu_staging(dx);
    if (!g || !y || !staging) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(g), T, {
        const T *gs = opdi_cu_data<T>(g), *ys = opdi_cu_data<T>(y);
        T *to = opdi_cu_data<T>(staging);
        const int W = 16 / (int)sizeof(T);
        if (l.inner == 1) {
            const bool vec = l.n % W == 0 && opdi_cu_aligned(gs) && opdi_cu_aligned(ys) && opdi_cu_aligned(to);
            const opdi_cu_row_plan p = opdi_cu_row_plan_of(l.outer, l.n, W, vec, 2);
            if (opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_softmax_backward_rows, T, 2), p.grid, p.block, 0, gs, ys,
                               to, l.outer, l.n, logarithm)) { return -1; }
        } else {
            const dim3 block = opdi_cu_column_block(l),
                grid = opdi_cu_grid_rows(opdi_cu_ceil(l.inner, block.x) * l.outer);
            if (opdi_cu_launch(opdi_cu_softmax_backward_columns<T>, grid, block, 0, gs, ys, to, l.outer, l.n, l.inner,
                               logarithm)) { return -1; }
        }
    })
    return opdi_cu_staging_store(dx, staging);
}
static int opdi_cu_softmax(opd_call *call) { return opdi_cu_softmax_of(call, false); }
static int opdi_cu_log_softmax(opd_call *call) { return opdi_cu_softmax_of(call, true); }
static int opdi_cu_softmax_backward(opd_call *call) { return opdi_cu_softmax_backward_of(call, false); }
static int opdi_cu_log_softmax_backward(opd_call *call) { return opdi_cu_softmax_backward_of(call, true); }

//== norms of channels-last tensors ====================================================================================
//
//  These kernels see a tensor as rows of c channels: [a, rows, c], where a is 1 for a batch norm and the number of
//  images for a group norm.  A thread has W neighbouring channels (16 bytes), whose coefficients stay in registers, and
//  walks down the rows.  A block has blockDim.x such columns and blockDim.y rows at a time.  blockIdx.x counts blocks
//  of columns, blockIdx.y parts of `each` rows, blockIdx.z images.

/* The coefficients of a channel: forward, y = (x - mean) * scale + shift; backward, dx = scale * g - shift - (x - mean)
   * slope. */
template <typename A> struct opdi_cu_channel { A mean, scale, shift, slope; };
struct opdi_cu_last { int64_t rows, c, each, per; int parts; };  /* per: channels that share a mean and rstd */
/* The mean of n numbers, and the sum of the squares of their distances from it. */
template <typename A> struct opdi_cu_spread {
    A mean, squares;
    /* Joins m numbers with n numbers; either may be 0, but not both. */
    __device__ __forceinline__ void join(A n, const opdi_cu_spread &with, A m) {
        const A part = m / (n + m), d = with.mean - mean;
        if (m == 0) { return; }
        if (n == 0) { *this = with; return; }
        mean += d - d == 0 ? d * part : with.mean;                   /* infinities give the same mean as a sum would */
        squares += with.squares + d * d * (n * part);
    }
};
/* Sets parts[a][part][0][c] to the mean of each channel in a part of the rows, and parts[a][part][1][c] to the sum of
   the squares of distances from it. */
template <typename T, int W> __global__ void __launch_bounds__(256)
opdi_cu_last_spread_kernel(const opdi_cu_last k, const T *x, opdi_cu_acc<T> *parts) {
    typedef opdi_cu_acc<T> A;
    typedef opdi_cu_spread<A> S;
    constexpr int U = sizeof(T) == 8 ? 4 : 8;
    OPDI_CU_SHARED(scratch);
    S *const shared = reinterpret_cast<S *>(scratch) + threadIdx.x * W;       /* [down][across][W] */
    const int across = (int)blockDim.x * W, down = (int)blockDim.y, y = (int)threadIdx.y;
    const int64_t column = (int64_t)blockIdx.x * across + threadIdx.x * W, begin = blockIdx.y * k.each;
    const int64_t rows = k.rows - begin < k.each ? k.rows - begin : k.each;
    const bool there = column < k.c;
    const T *from = x + ((int64_t)blockIdx.z * k.rows + begin) * k.c + column;
    S s[W];
    int64_t r = y;
    A n = 0;
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) { s[w].mean = s[w].squares = 0; }
    OPDI_CU_ROLLED
    for (; there && r + (U - 1) * down < rows; r += U * down) {
        opdi_cu_vector<T, W> v[U];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { v[u] = opdi_cu_load_vector<W>(from + (r + u * down) * k.c); }
        /* joins the means of U numbers each with the means of the numbers before, all W with the same count */
        const A part = (A)U / (n + U), m = n * part;
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) {
            A mean = 0, squares = 0;
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) { mean += opdi_cu_taken<A>(v[u], w); }
            mean *= (A)1 / U;
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) { const A d = opdi_cu_taken<A>(v[u], w) - mean; squares += d * d; }
            const A d = mean - s[w].mean;
            s[w].mean += d - d == 0 ? d * part : mean;
            s[w].squares += squares + d * d * m;
        }
        n += U;
    }
    OPDI_CU_ROLLED
    for (; there && r < rows; r += down) {
        const opdi_cu_vector<T, W> v = opdi_cu_load_vector<W>(from + r * k.c);
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) {
            S one;
            one.mean = opdi_cu_taken<A>(v, w); one.squares = 0;
            s[w].join(n, one, 1);
        }
        n += 1;
    }
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) { shared[y * across + w] = s[w]; }
    /* joins the rows of the block in pairs; thread y has the numbers of threads y, y + 1, ... y + 2 * half - 1 */
    for (int half = 1; half < down; half *= 2) {
        __syncthreads();
        if (y % (2 * half) == 0 && y + half < down) {
            A with = 0;
            for (int i = y + half; i < down && i < y + 2 * half; i++) {
                with += i < rows ? (A)((rows - i + down - 1) / down) : (A)0;
            }
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w++) {
                s[w].join(n, shared[(y + half) * across + w], with);
                shared[y * across + w] = s[w];
            }
            n += with;
        }
    }
    if (y == 0 && there) {
        A *to = parts + ((int64_t)blockIdx.z * k.parts + blockIdx.y) * 2 * k.c + column;
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { to[w] = s[w].mean; to[k.c + w] = s[w].squares; }
    }
}
/* Sets parts[a][part][0][c] to the sum over a part of the rows of g * (x - mean), and parts[a][part][1][c] to the sum
   of g. */
template <typename T, int W> __global__ void __launch_bounds__(256)
opdi_cu_last_sums_kernel(const opdi_cu_last k, const T *x, const T *g, const opdi_cu_acc<T> *mean,
                         opdi_cu_acc<T> *parts) {
    typedef opdi_cu_acc<T> A;
    constexpr int U = 4;
    OPDI_CU_SHARED(scratch);
    A *const shared = reinterpret_cast<A *>(scratch) + threadIdx.x * 2 * W;   /* [down][across][2][W] */
    const int across = (int)blockDim.x * W, down = (int)blockDim.y, y = (int)threadIdx.y;
    const int64_t column = (int64_t)blockIdx.x * across + threadIdx.x * W, begin = blockIdx.y * k.each;
    const int64_t rows = k.rows - begin < k.each ? k.rows - begin : k.each;
    const int64_t first = ((int64_t)blockIdx.z * k.rows + begin) * k.c + column;
    const bool there = column < k.c;
    A sums[2][W], middle[W];
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) {
        sums[0][w] = sums[1][w] = 0;
        middle[w] = there ? mean[(blockIdx.z * k.c + column + w) / k.per] : (A)0;
    }
    const auto add = [&](const opdi_cu_vector<T, W> &xv, const opdi_cu_vector<T, W> &gv) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) {
            const A gw = opdi_cu_taken<A>(gv, w);
            sums[0][w] += gw * (opdi_cu_taken<A>(xv, w) - middle[w]);
            sums[1][w] += gw;
        }
    };
    int64_t r = y;
    OPDI_CU_ROLLED
    for (; there && r + (U - 1) * down < rows; r += U * down) {
        opdi_cu_vector<T, W> xv[U], gv[U];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) {
            xv[u] = opdi_cu_load_vector<W>(x + first + (r + u * down) * k.c);
            gv[u] = opdi_cu_load_vector<W>(g + first + (r + u * down) * k.c);
        }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { add(xv[u], gv[u]); }
    }
    OPDI_CU_ROLLED
    for (; there && r < rows; r += down) {
        add(opdi_cu_load_vector<W>(x + first + r * k.c), opdi_cu_load_vector<W>(g + first + r * k.c));
    }
    OPDI_CU_UNROLL
    for (int i = 0; i < 2; i++) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { shared[(y * 2 * across) + i * W + w] = sums[i][w]; }
    }
    __syncthreads();
    for (int half = down / 2; half > 0; half /= 2) {              /* `down` is a power of two */
        for (int e = 0; y < half && e < 2 * W; e++) {
            shared[y * 2 * across + e] += shared[(y + half) * 2 * across + e];
        }
        __syncthreads();
    }
    if (y == 0 && there) {
        A *to = parts + ((int64_t)blockIdx.z * k.parts + blockIdx.y) * 2 * k.c + column;
        for (int w = 0; w < W; w++) { to[w] = shared[w]; to[k.c + w] = shared[W + w]; }
    }
}
/* Joins the parts of each of a * c channels: sets mean and var, or, if rstd is given, the two sums, the first times
   rstd.  A block has 32 channels; each of its 8 rows of threads takes every 8th part. */
template <typename A> __global__ void opdi_cu_last_join_kernel(const opdi_cu_last k, const A *parts, A *first,
                                                               A *second, const A *rstd) {
    __shared__ opdi_cu_spread<A> all[8][32];
    const int64_t c = (int64_t)blockIdx.x * 32 + threadIdx.x;
    const int y = (int)threadIdx.y;
    const bool spread = !rstd;
    const A *from = parts + (int64_t)blockIdx.z * k.parts * 2 * k.c + c;
    opdi_cu_spread<A> s;
    A n = 0;
    s.mean = s.squares = 0;
    const auto count = [&](int p) {
        const int64_t left = k.rows - p * k.each;
        return (A)(left < k.each ? left : k.each);
    };
#pragma unroll 4
    for (int p = y; p < k.parts && c < k.c; p += 8) {
        opdi_cu_spread<A> with;
        with.mean = from[p * 2 * k.c]; with.squares = from[(p * 2 + 1) * k.c];
        if (spread) { s.join(n, with, count(p)); n += count(p); }
        else { s.mean += with.mean; s.squares += with.squares; }
    }
    all[y][threadIdx.x] = s;
    __syncthreads();
    if (y > 0 || c >= k.c) { return; }
    for (int i = 1; i < 8; i++) {
        A m = 0;
        for (int p = i; p < k.parts && spread; p += 8) { m += count(p); }
        if (spread) { s.join(n, all[i][threadIdx.x], m); n += m; }
        else { s.mean += all[i][threadIdx.x].mean; s.squares += all[i][threadIdx.x].squares; }
    }
    first[blockIdx.z * k.c + c] = spread ? s.mean : s.mean * rstd[(blockIdx.z * k.c + c) / k.per];
    second[blockIdx.z * k.c + c] = spread ? s.squares / (A)k.rows : s.squares;
}
/* Applies the coefficients of each channel: y = (x - mean) * scale + shift or, with g, y = g * scale - shift -
   (x - mean) * slope.  With `eval`, the gradient does not read x. */
template <typename T, int W> __global__ void __launch_bounds__(256)
opdi_cu_last_apply_kernel(const opdi_cu_last k, const T *x, const T *g, T *to, const void *channels, bool eval) {
    typedef opdi_cu_acc<T> A;
    constexpr int U = 4;
    const int across = (int)blockDim.x * W, down = (int)blockDim.y;
    const int64_t column = (int64_t)blockIdx.x * across + threadIdx.x * W, begin = blockIdx.y * k.each;
    const int64_t rows = k.rows - begin < k.each ? k.rows - begin : k.each;
    const int64_t first = ((int64_t)blockIdx.z * k.rows + begin) * k.c + column;
    if (column >= k.c) { return; }
    A mean[W], scale[W], shift[W], slope[W];
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) {
        const opdi_cu_channel<A> of = ((const opdi_cu_channel<A> *)channels)[blockIdx.z * k.c + column + w];
        mean[w] = of.mean; scale[w] = of.scale; shift[w] = of.shift; slope[w] = of.slope;
    }
    const auto put = [&](int64_t r, const opdi_cu_vector<T, W> &xv, const opdi_cu_vector<T, W> &gv) {
        opdi_cu_vector<T, W> v;
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) {
            const A d = opdi_cu_taken<A>(xv, w) - mean[w], gw = opdi_cu_taken<A>(gv, w);
            v.at[w] = opdi_cu_cast<T>(!g ? d * scale[w] + shift[w]
                                      : eval ? scale[w] * gw : scale[w] * gw - shift[w] - d * slope[w]);
        }
        opdi_cu_store_vector<W>(to + first + r * k.c, v);
    };
    const T *second = g ? g : x;
    int64_t r = threadIdx.y;
    OPDI_CU_ROLLED
    for (; r + (U - 1) * down < rows; r += U * down) {
        opdi_cu_vector<T, W> xv[U], gv[U];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) {
            if (!g || !eval) { xv[u] = opdi_cu_load_vector<W>(x + first + (r + u * down) * k.c); }
            if (g) { gv[u] = opdi_cu_load_vector<W>(g + first + (r + u * down) * k.c); }
        }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { put(r + u * down, xv[u], gv[u]); }
    }
    OPDI_CU_ROLLED
    for (; r < rows; r += down) {
        put(r, opdi_cu_load_vector<W>(x + first + r * k.c), opdi_cu_load_vector<W>(second + first + r * k.c));
    }
}
static opdi_cu_last opdi_cu_last_of(int64_t rows, int64_t c, int64_t per) {
    const opdi_cu_last k = {rows, c, 0, per, 0};
    return k;
}
/* Sets *k, and the grid and block, for tensors [a, rows, c] of which a thread has W channels. */
static void opdi_cu_last_plan(opdi_cu_last *k, int64_t a, int W, dim3 *grid, dim3 *block) {
    const int64_t chunks = opdi_cu_ceil(k->c, W);
    int across = 1;
    while (across < 32 && across < chunks) { across *= 2; }
    const int down = 256 / across;
    const int64_t wide = opdi_cu_ceil(chunks, across), most = opdi_cu_ceil(k->rows, (int64_t)down * 8),
        want = opdi_cu_ceil((int64_t)opdi_cu_properties()->multiprocessors * 16, wide * a);
    int64_t parts = want < most ? want : most;
    parts = parts < 1 ? 1 : parts > 4096 ? 4096 : parts;
    k->each = opdi_cu_ceil(opdi_cu_ceil(k->rows, parts), down) * down;
    k->parts = (int)opdi_cu_ceil(k->rows, k->each);
    *grid = dim3((unsigned)wide, (unsigned)k->parts, (unsigned)a);
    *block = dim3((unsigned)across, (unsigned)down);
}
template <typename T> static bool opdi_cu_last_vector(const opdi_cu_last *k, const T *x, const T *g, const T *y) {
    return k->c % (16 / (int)sizeof(T)) == 0 && opdi_cu_aligned(x) && opdi_cu_aligned(g) && opdi_cu_aligned(y);
}
/* Computes for each of a * c channels of x [a, rows, c] its mean and variance or, if g is given, the sums of g * (x -
   mean) * rstd and of g.  `first` and `second` are the results, of the type in which sums are computed.  Returns 0, or
   -1 and sets an error. */
template <typename T> static int opdi_cu_last_sums(opdi_cu_last k, int64_t a, const T *x, const T *g,
    const opdi_cu_acc<T> *mean, const opdi_cu_acc<T> *rstd, opdi_cu_acc<T> *first, opdi_cu_acc<T> *second) {
    typedef opdi_cu_acc<T> A;
    const int W = 16 / (int)sizeof(T);
    const bool vector = opdi_cu_last_vector<T>(&k, x, g, NULL);
    dim3 grid, block;
    opdi_cu_last_plan(&k, a, vector ? W : 1, &grid, &block);
    A *parts = static_cast<A *>(opdi_cu_scratch(a * k.parts * 2 * k.c * (int64_t)sizeof(A)));
    const size_t shared = 256 * 2 * sizeof(A) * (size_t)(vector ? W : 1);
    if (!parts) { return -1; }
    if (g ? opdi_cu_launch(vector ? opdi_cu_last_sums_kernel<T, W> : opdi_cu_last_sums_kernel<T, 1>, grid, block,
                           shared, k, x, g, mean, parts)
          : opdi_cu_launch(vector ? opdi_cu_last_spread_kernel<T, W> : opdi_cu_last_spread_kernel<T, 1>, grid, block,
                           shared, k, x, parts)) { return -1; }
    return opdi_cu_launch(opdi_cu_last_join_kernel<A>, dim3((unsigned)opdi_cu_ceil(k.c, 32), 1, (unsigned)a),
                          dim3(32, 8), 0, k, (const A *)parts, first, second, rstd);
}
/* Applies the coefficients of each channel to x or, in a gradient, to g and x.  Returns 0, or -1 and sets an error. */
template <typename T> static int opdi_cu_last_apply(opdi_cu_last k, int64_t a, const T *x, const T *g, T *y,
                                                    const void *channels, bool eval) {
    const int W = 16 / (int)sizeof(T);
    const bool vector = opdi_cu_last_vector<T>(&k, x, g, y);
    dim3 grid, block;
    opdi_cu_last_plan(&k, a, vector ? W : 1, &grid, &block);
    return opdi_cu_launch(vector ? opdi_cu_last_apply_kernel<T, W> : opdi_cu_last_apply_kernel<T, 1>, grid, block, 0,
                          k, x, g, y, channels, eval);
}

/* Returns whether t is stored in channels-last order, as the library's convolutions expect and produce it: dim 1 has
   stride 1; the last dim has the next larger stride, then the dim before it, and so on. */
static bool opdi_cu_is_channels_last(const opd_tensor *t) {
    int64_t next = opd_ndim(t) > 2 ? opd_size(t, 1) : 0;
    if (opd_ndim(t) < 4 || opd_strides(t)[1] != 1) { return false; }
    for (int d = opd_ndim(t) - 1; d > 1; d--) {
        if (opd_strides(t)[d] != next) { return false; }
        next *= opd_size(t, d);
    }
    return opd_strides(t)[0] == next;
}
/* Returns a new tensor with t's sizes in channels-last order, or t itself if it has this order.  If `copied` is true,
   it has t's elements.  Returns NULL and sets an error if it fails. */
static opd_tensor *opdi_cu_as_last(opd_tensor *t, opd_scalar_type dtype, bool copied) {
    int64_t strides[OPD_MAX_DIMS], next = opd_size(t, 1);
    const int nd = opd_ndim(t);
    if (opdi_cu_is_channels_last(t) && opd_dtype(t) == dtype) { return t; }
    for (int d = nd - 1; d > 1; d--) { strides[d] = next; next *= opd_size(t, d); }
    strides[0] = next; strides[1] = 1;
    opd_tensor *to = opdi_cu_new(opd_ints_of(opd_sizes(t), nd), dtype);
    to = to ? opd_tensor_view(to, opd_sizes(t), strides, nd, opd_tensor_offset(to)) : NULL;
    return to && copied && !opd_copy_(to, t) ? NULL : to;
}
static bool opdi_cu_alike(const opd_tensor *a, const opd_tensor *b) {
    bool alike = opd_ndim(a) == opd_ndim(b);
    for (int d = 0; alike && d < opd_ndim(a); d++) { alike = opd_size(a, d) == opd_size(b, d); }
    return alike;
}
//== layer and group norm ==============================================================================================

/* A norm of rows of n elements.  In a layer norm (hw is 0), each element of a row has its own weight.  In a group norm,
   each channel has a weight: there are c channels, and a row has `per` channels of hw elements each. */
typedef struct opdi_cu_norm {
    const void *x, *g, *w, *b;                    /* w, b: NULL, or of x's type; if `wide` is true, of the type in which
                                                     the kernel computes */
    void *y, *save_mean, *save_rstd;              /* the result; the saved statistics, of dtype `stat` */
    const void *mean, *rstd;                      /* saved by the forward pass, in the type in which the kernel
                                                     computes */
    double eps;
    int64_t rows, n, hw, per, c;
    int stat;
    bool wide;
} opdi_cu_norm;
/* Loads the W weights of elements i, i + 1, ... of a row whose first channel is number `channel`. */
template <typename T, int W, typename C, typename I>
__device__ __forceinline__ void opdi_cu_norm_weights(const opdi_cu_norm &k, const void *p, int64_t channel, I i,
                                                     C *c) {
    const int P = W * (int)sizeof(C) > 16 ? 16 / (int)sizeof(C) : W;
    if (k.hw > 0) {
        const int64_t at = channel + (sizeof(I) == 4 ? (int64_t)((uint32_t)i / (uint32_t)k.hw) : (int64_t)i / k.hw);
        const C v = k.wide ? ((const C *)p)[at] : opdi_cu_load<C>((const T *)p + at);
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { c[w] = v; }
    } else if (k.wide) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w += P) { opdi_cu_load_some<P>((const C *)p + i + w, c + w); }
    } else { opdi_cu_load_some<W>((const T *)p + i, c); }
}
struct opdi_cu_var_join {
    template <typename S> __device__ __forceinline__ S operator()(S a, const S &b) const {
        opdi_cu_fold_var<decltype(a.mean)>::join(a, b);
        return a;
    }
};
/* Computes y = (x - mean) * rstd * w + b, for W elements from number i on. */
template <typename T, int W, typename C, typename I>
__device__ __forceinline__ void opdi_cu_norm_put(const opdi_cu_norm &k, T *y, const opdi_cu_vector<T, W> &v, C mean,
                                                 C rstd, int64_t channel, I i) {
    C c[W], a[W], b[W];
    if (k.w) { opdi_cu_norm_weights<T, W>(k, k.w, channel, i, a); }
    if (k.b) { opdi_cu_norm_weights<T, W>(k, k.b, channel, i, b); }
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) {
        c[w] = (opdi_cu_taken<C>(v, w) - mean) * rstd;
        if (k.w) { c[w] *= a[w]; }
        if (k.b) { c[w] += b[w]; }
    }
    opdi_cu_store_some<W>(y + i, c);
}
template <typename T, int W, int PACKS>
__global__ void __launch_bounds__(1024) opdi_cu_norm_rows(const opdi_cu_norm k) {
    typedef opdi_cu_acc<T> C;
    const int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
    const int64_t n = k.n;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < k.rows; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y, channel = k.hw > 0 ? row * k.per % k.c : 0;
        const bool in = row < k.rows;
        const T *x = (const T *)k.x + row * n;
        T *y = (T *)k.y + row * n;
        opdi_cu_vector<T, W> v[PACKS ? PACKS : 1];
        C mean = 0, squares = 0, rstd;
        int there = 0;
        if constexpr (PACKS > 0) {
            there = opdi_cu_load_packs<W, PACKS>(x, (int)n, lane, lanes, in, v);
            OPDI_CU_EACH_PACK(p, i) {
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) { mean += p < there ? opdi_cu_taken<C>(v[p], w) : (C)0; }
            }
            mean = opdi_cu_row_reduce(mean, opdi_cu_sum(), (C)0, lanes) / (C)n;
            opdi_cu_opaque(v, PACKS);
            OPDI_CU_EACH_PACK(p, i) {
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) {
                    const C d = p < there ? opdi_cu_taken<C>(v[p], w) - mean : (C)0;
                    squares += d * d;
                }
            }
            squares = opdi_cu_row_reduce(squares, opdi_cu_sum(), (C)0, lanes);
            opdi_cu_opaque(v, PACKS);
        } else {
            typedef typename opdi_cu_fold_var<C>::State S;
            const S none = opdi_cu_fold_var<C>().init(0);
            S s = none;
            OPDI_CU_EACH_ROUND(i) {
                C c[W];
                opdi_cu_load_some<W>(x + i, c);
                opdi_cu_fold_var<C>().template take<W>(s, c, 0, 0);
            }
            s = opdi_cu_row_reduce(s, opdi_cu_var_join(), none, lanes);
            mean = s.mean; squares = s.squares;
        }
        rstd = (C)1 / (C)sqrt(squares / (C)n + (C)k.eps);
        if (in && lane == 0) {
            opdi_cu_put_float(k.save_mean, k.stat, row, mean);
            opdi_cu_put_float(k.save_rstd, k.stat, row, rstd);
        }
        if constexpr (PACKS > 0) {
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { opdi_cu_norm_put(k, y, v[p], mean, rstd, channel, i); } }
        } else {
            OPDI_CU_EACH_ROUND(i) {
                opdi_cu_norm_put(k, y, opdi_cu_load_vector<W>(x + i), mean, rstd, channel, i);
            }
        }
    }
}
/* Computes dx = rstd * (w * g - mean(w * g) - (x - mean) * rstd^2 * mean(w * g * (x - mean))), with means over a
   row. */
template <typename T, int W, int PACKS>
__global__ void __launch_bounds__(1024) opdi_cu_norm_backward_rows(const opdi_cu_norm k) {
    typedef opdi_cu_acc<T> C;
    const int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
    const int64_t n = k.n;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < k.rows; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y, channel = k.hw > 0 ? row * k.per % k.c : 0;
        const bool in = row < k.rows;
        const T *x = (const T *)k.x + row * n, *g = (const T *)k.g + row * n;
        T *dx = (T *)k.y + row * n;
        const C mean = in ? ((const C *)k.mean)[row] : (C)0, rstd = in ? ((const C *)k.rstd)[row] : (C)0;
        opdi_cu_vector<T, W> xs[PACKS ? PACKS : 1], gs[PACKS ? PACKS : 1];
        C a = 0, b = 0, f[PACKS ? PACKS : 1][W];
        const auto add = [&](const opdi_cu_vector<T, W> &xv, const opdi_cu_vector<T, W> &gv, const C *weights) {
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w++) {
                const C wg = opdi_cu_taken<C>(gv, w) * (k.w ? weights[w] : (C)1);
                a += wg;
                b += wg * (opdi_cu_taken<C>(xv, w) - mean);
            }
        };
        const auto put = [&](T *to, const opdi_cu_vector<T, W> &xv, const opdi_cu_vector<T, W> &gv, const C *weights) {
            C c[W];
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w++) {
                const C wg = opdi_cu_taken<C>(gv, w) * (k.w ? weights[w] : (C)1);
                c[w] = rstd * (wg - a - (opdi_cu_taken<C>(xv, w) - mean) * b);
            }
            opdi_cu_store_some<W>(to, c);
        };
        int there = 0;
        if constexpr (PACKS > 0) {
            there = opdi_cu_load_packs<W, PACKS>(x, (int)n, lane, lanes, in, xs);
            (void)opdi_cu_load_packs<W, PACKS>(g, (int)n, lane, lanes, in, gs);
            OPDI_CU_EACH_PACK(p, i) {
                if (k.w && p < there) { opdi_cu_norm_weights<T, W>(k, k.w, channel, i, f[p]); }
            }
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { add(xs[p], gs[p], f[p]); } }
        } else {
            OPDI_CU_EACH_ROUND(i) {
                if (k.w) { opdi_cu_norm_weights<T, W>(k, k.w, channel, i, f[0]); }
                add(opdi_cu_load_vector<W>(x + i), opdi_cu_load_vector<W>(g + i), f[0]);
            }
        }
        a = opdi_cu_row_reduce(a, opdi_cu_sum(), (C)0, lanes) / (C)n;
        b = opdi_cu_row_reduce(b, opdi_cu_sum(), (C)0, lanes) * rstd * rstd / (C)n;
        if constexpr (PACKS > 0) {
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { put(dx + i, xs[p], gs[p], f[p]); } }
        } else {
            OPDI_CU_EACH_ROUND(i) {
                if (k.w) { opdi_cu_norm_weights<T, W>(k, k.w, channel, i, f[0]); }
                put(dx + i, opdi_cu_load_vector<W>(x + i), opdi_cu_load_vector<W>(g + i), f[0]);
            }
        }
    }
}
/* Computes the sums of g and of g * (x - mean) * rstd.  If `per` is greater than 0, `per` consecutive rows of this
   reduction share a mean and rstd.  If it is 0, the element with index i in a row uses mean[i] and rstd[i]. */
template <class A> struct opdi_cu_fold_pairs {
    typedef opdi_cu_pair<A> C;
    typedef struct State { A gx, g, mean, rstd; } State;
    const A *mean, *rstd;
    int64_t per;
    __device__ __forceinline__ State init(int64_t row) const {
        State s;
        s.gx = s.g = s.mean = s.rstd = 0;
        if (per > 0) { s.mean = mean[row / per]; s.rstd = rstd[row / per]; }
        return s;
    }
    __device__ __forceinline__ void one(State &s, C c, int64_t at) const {
        s.gx += per > 0 ? c.g * (c.x - s.mean) : c.g * (c.x - mean[at]) * rstd[at];
        s.g += c.g;
    }
    OPDI_CU_TAKE_EACH
    __device__ __forceinline__ void join(State &s, const State &with) const { s.gx += with.gx; s.g += with.g; }
    __device__ void store(const State &s, const opdi_cu_results &out) const {
        if (out.data[0]) { opdi_cu_put(out.data[0], out.dtype[0], out.at[0], per > 0 ? s.gx * s.rstd : s.gx); }
        if (out.data[1]) { opdi_cu_put(out.data[1], out.dtype[1], out.at[1], s.g); }
    }
};
/* Returns a view of a contiguous tensor with other sizes, or NULL if t is NULL. */
static opd_tensor *opdi_cu_seen_as(opd_tensor *t, const int64_t *sizes, int ndim) {
    int64_t strides[4], n = 1;
    if (!t) { return NULL; }
    for (int d = ndim - 1; d >= 0; d--) { strides[d] = n; n *= sizes[d]; }
    return opd_tensor_view(t, sizes, strides, ndim, opd_tensor_offset(t));
}
/* Computes the sums of opdi_cu_fold_pairs of x and `second` (g), both [a, c, n], over the dims in `mask`.  The results
   gx and g are contiguous and have the other dims; either may be NULL.  Returns 0, or -1 and sets an error. */
static int opdi_cu_pair_sums(opd_tensor *x, opd_tensor *second, int64_t a, int64_t c, int64_t n, uint64_t mask,
                             opd_tensor *mean, opd_tensor *rstd, int64_t per, opd_tensor *gx, opd_tensor *g) {
    const int64_t sizes[3] = {a, c, n}, left[3] = {mask & 1 ? 1 : a, mask & 2 ? 1 : c, mask & 4 ? 1 : n};
    opd_tensor *outs[2] = {gx, g};
    opdi_cu_reduction r;
    if (!gx && !g) { return 0; }
    x = opdi_cu_seen_as(x, sizes, 3);
    for (int k = 0; k < 2; k++) { if (outs[k] && !(outs[k] = opdi_cu_seen_as(outs[k], left, 3))) { return -1; } }
    if (!x || opdi_cu_reduce_plan(&r, x, mask, outs[0] ? outs[0] : outs[1], outs[1] ? outs[1] : outs[0], false)) {
        return -1;
    }
    for (int k = 0; k < 2; k++) { if (!outs[k]) { r.out.data[k] = NULL; } }
    r.second = opdi_cu_data<char>(second);
    r.odd = ((uintptr_t)r.x ^ (uintptr_t)r.second) & 15;
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        const opdi_cu_fold_pairs<A> f = {opdi_cu_data<A>(mean), opdi_cu_data<A>(rstd), per};
        typedef typename std::conditional<sizeof(T) == 2, opdi_cu_halves, T>::type R;
        return r.outer ? opdi_cu_reduce_launch<opdi_cu_pairs<R> >(&r, f) : 0;
    })
    return 0;
}
/* Returns t as a contiguous tensor of this dtype, or NULL if t is NULL.  Sets *bad to true if it fails. */
static opd_tensor *opdi_cu_norm_in(opd_tensor *t, opd_scalar_type dtype, bool *bad) {
    if (!t) { return NULL; }
    if (opd_dtype(t) != dtype) { t = opd_to_dtype(t, dtype); }
    t = opd_contiguous(t);
    if (!t) { *bad = true; }
    return t;
}
static const void *opdi_cu_norm_data(opd_tensor *t) { return t ? opd_device_data(t, OPD_CUDA) : NULL; }
/* Makes the weight w and the bias b contiguous, and sets w, b and wide of *k.  Returns 0, or -1 and sets an error. */
static int opdi_cu_norm_params(opdi_cu_norm *k, opd_tensor *x, opd_tensor *w, opd_tensor *b) {
    const opd_scalar_type dtype = w ? opd_dtype(w) : b ? opd_dtype(b) : opd_dtype(x);
    bool bad = false;
    w = opdi_cu_norm_in(w, dtype, &bad);
    b = opdi_cu_norm_in(b, dtype, &bad);
    k->w = opdi_cu_norm_data(w);
    k->b = opdi_cu_norm_data(b);
    k->wide = dtype != opd_dtype(x);
    return bad ? -1 : 0;
}
static bool opdi_cu_norm_vector(const opdi_cu_norm *k, int W) {
    return k->n % W == 0 && k->hw % W == 0 && opdi_cu_aligned(k->x) && opdi_cu_aligned(k->y) && opdi_cu_aligned(k->g) &&
        (k->hw || (opdi_cu_aligned(k->w) && opdi_cu_aligned(k->b)));
}
/* Runs the forward pass of the norm *k, in which the caller has set rows, n, hw, per and c.  Returns 0, or -1 and sets
   an error. */
static int opdi_cu_norm_forward(opd_call *call, opd_tensor *x, opd_tensor *w, opd_tensor *b, double eps,
                                opdi_cu_norm *k) {
    opd_tensor *out[3], *staging[3];
    x = opd_contiguous(x);
    if (!x || opdi_cu_norm_params(k, x, w, b)) { return -1; }
    for (int i = 0; i < 3; i++) {
        out[i] = opdi_cu_result(call, i);
        if (!(staging[i] = opdi_cu_staging(out[i]))) { return -1; }
    }
    if (k->rows == 0) { return 0; }
    k->x = opdi_cu_data<char>(x); k->y = opdi_cu_data<char>(staging[0]);
    k->save_mean = opdi_cu_data<char>(staging[1]); k->save_rstd = opdi_cu_data<char>(staging[2]);
    k->stat = opd_dtype(staging[1]);
    k->eps = eps;
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        const int W = 16 / (int)sizeof(T);
        const opdi_cu_row_plan p = opdi_cu_row_plan_of(k->rows, k->n, W, opdi_cu_norm_vector(k, W), 4);
        if (opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_norm_rows, T, 4), p.grid, p.block, 0, *k)) { return -1; }
    })
    for (int i = 0; i < 3; i++) { if (opdi_cu_staging_store(out[i], staging[i])) { return -1; } }
    return 0;
}
/* Computes dx, the gradient with respect to x.  x and g are contiguous; mean and rstd have the dtype in which the
   kernel computes.  Returns 0, or -1 and sets an error. */
static int opdi_cu_norm_dx(opd_tensor *dx, opd_tensor *g, opd_tensor *x, opd_tensor *mean, opd_tensor *rstd,
                           opd_tensor *w, opdi_cu_norm *k) {
    opd_tensor *staging = opdi_cu_staging(dx);
    if (!dx || opd_numel(dx) == 0) { return 0; }
    if (!staging || opdi_cu_norm_params(k, x, w, NULL)) { return -1; }
    k->x = opdi_cu_data<char>(x); k->g = opdi_cu_data<char>(g); k->y = opdi_cu_data<char>(staging);
    k->mean = opdi_cu_data<char>(mean); k->rstd = opdi_cu_data<char>(rstd);
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        const int W = 16 / (int)sizeof(T);
        const opdi_cu_row_plan p = opdi_cu_row_plan_of(k->rows, k->n, W, opdi_cu_norm_vector(k, W), 2);
        if (opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_norm_backward_rows, T, 2), p.grid, p.block, 0, *k)) {
            return -1;
        }
    })
    return opdi_cu_staging_store(dx, staging);
}
static int64_t opdi_cu_count(opd_ints sizes) {
    int64_t n = 1;
    for (int64_t i = 0; i < sizes.n; i++) { n *= sizes.data[i]; }
    return n;
}
static int opdi_cu_layer_norm(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    opdi_cu_norm k = opdi_cu_norm();
    if (opd_results_from_fake(call)) { return -1; }
    k.n = opdi_cu_count(opd_arg_ints(call, 1));
    k.rows = k.n ? opd_numel(x) / k.n : opd_numel(opdi_cu_result(call, 1));
    return opdi_cu_norm_forward(call, x, opd_arg_tensor(call, 2), opd_arg_tensor(call, 3), opd_arg_double(call, 4), &k);
}
static int opdi_cu_layer_norm_backward(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *mean = opd_arg_tensor(call, 3),
        *rstd = opd_arg_tensor(call, 4), *dw, *db, *wstaging, *bstaging;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    opdi_cu_norm k = opdi_cu_norm();
    bool bad = false;
    if (opd_results_from_fake(call)) { return -1; }
    k.n = opdi_cu_count(opd_arg_ints(call, 2));
    k.rows = opd_numel(mean);
    mean = opdi_cu_norm_in(mean, acc, &bad); rstd = opdi_cu_norm_in(rstd, acc, &bad);
    g = opdi_cu_norm_in(g, opd_dtype(x), &bad); x = opdi_cu_norm_in(x, opd_dtype(x), &bad);
    if (bad || opdi_cu_norm_dx(opdi_cu_result(call, 0), g, x, mean, rstd, opd_arg_tensor(call, 5), &k)) { return -1; }
    dw = opdi_cu_result(call, 1); wstaging = opdi_cu_staging(dw);
    db = opdi_cu_result(call, 2); bstaging = opdi_cu_staging(db);
    if (opdi_cu_pair_sums(x, g, k.rows, k.n, 1, 1, mean, rstd, 0, wstaging, bstaging)) { return -1; }
    return opdi_cu_staging_store(dw, wstaging) || opdi_cu_staging_store(db, bstaging) ? -1 : 0;
}
/* Reads N, C, HxW and group, which are the arguments from number `first` on, into *k. */
static void opdi_cu_group_norm_read(opd_call *call, int first, opdi_cu_norm *k) {
    const int64_t groups = opd_arg_int(call, first + 3);
    k->c = opd_arg_int(call, first + 1);
    k->hw = opd_arg_int(call, first + 2);
    k->per = k->c / groups;
    k->rows = opd_arg_int(call, first) * groups;
    k->n = k->per * k->hw;
}
/* Computes the sums over g * (x - mean) * rstd and over g for each of a * c channels of x and g [a, rows, c].  `per`
   channels share a mean and rstd.  Returns 0, or -1 and sets an error. */
static int opdi_cu_last_pair_sums(opd_tensor *x, opd_tensor *g, int64_t a, int64_t c, int64_t per, opd_tensor *mean,
                                  opd_tensor *rstd, opd_tensor *gx, opd_tensor *gs) {
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        return opdi_cu_last_sums<T>(opdi_cu_last_of(opd_numel(x) / c / a, c, per), a, opdi_cu_data<T>(x),
                                    opdi_cu_data<T>(g), opdi_cu_data<A>(mean), opdi_cu_data<A>(rstd),
                                    opdi_cu_data<A>(gx), opdi_cu_data<A>(gs));
    })
    return 0;
}
/* Computes for each group of `per` channels of each image its mean and rstd from means and variances of its channels
   [a, c], and the coefficients of the channels. */
template <typename T> __global__ void opdi_cu_group_channels(const opdi_cu_norm k, const opdi_cu_acc<T> *means,
                                                             const opdi_cu_acc<T> *vars, opdi_cu_acc<T> *channels) {
    typedef opdi_cu_acc<T> A;
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, first = row * k.per;
    A mean = 0, squares = 0;
    if (row >= k.rows) { return; }
    for (int64_t i = 0; i < k.per; i++) { mean += means[first + i]; }
    mean /= (A)k.per;
    for (int64_t i = 0; i < k.per; i++) {
        const A d = means[first + i] - mean;
        squares += vars[first + i] + d * d;
    }
    const A rstd = (A)1 / (A)sqrt(squares / (A)k.per + (A)k.eps);
    opdi_cu_put_float(k.save_mean, k.stat, row, mean);
    opdi_cu_put_float(k.save_rstd, k.stat, row, rstd);
    for (int64_t i = 0; i < k.per; i++) {
        opdi_cu_channel<A> &to = ((opdi_cu_channel<A> *)channels)[first + i];
        const int64_t c = (first + i) % k.c;
        to.mean = mean;
        to.scale = !k.w ? rstd : rstd * (k.wide ? ((const A *)k.w)[c] : opdi_cu_load<A>((const T *)k.w + c));
        to.shift = !k.b ? (A)0 : k.wide ? ((const A *)k.b)[c] : opdi_cu_load<A>((const T *)k.b + c);
        to.slope = 0;
    }
}
/* Computes the coefficients of the channels for the gradient from the sums of opdi_cu_last_sums [a, c]. */
template <typename T> __global__ void opdi_cu_group_backward_channels(const opdi_cu_norm k, const opdi_cu_acc<T> *gx,
                                                                      const opdi_cu_acc<T> *gs,
                                                                      opdi_cu_acc<T> *channels) {
    typedef opdi_cu_acc<T> A;
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, first = row * k.per;
    if (row >= k.rows) { return; }
    const A mean = ((const A *)k.mean)[row], rstd = ((const A *)k.rstd)[row];
    A a = 0, b = 0;
    const auto weight = [&](int64_t i) {
        const int64_t c = (first + i) % k.c;
        return !k.w ? (A)1 : k.wide ? ((const A *)k.w)[c] : opdi_cu_load<A>((const T *)k.w + c);
    };
    for (int64_t i = 0; i < k.per; i++) { a += weight(i) * gs[first + i]; b += weight(i) * gx[first + i]; }
    for (int64_t i = 0; i < k.per; i++) {
        opdi_cu_channel<A> &to = ((opdi_cu_channel<A> *)channels)[first + i];
        to.mean = mean;
        to.scale = rstd * weight(i);
        to.shift = rstd * a / (A)k.n;
        to.slope = rstd * rstd * b / (A)k.n;
    }
}
/* Computes a group norm of x in channels-last order.  Returns 0, or -1 and sets an error. */
static int opdi_cu_group_norm_last(opd_call *call, opd_tensor *x, opdi_cu_norm *k) {
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const int64_t images = opd_size(x, 0), all = images * k->c;
    opd_tensor *y = opdi_cu_result(call, 0), *stats[2], *to = opdi_cu_as_last(y, opd_dtype(y), false), *saved[2],
        *channels[2];
    const int64_t four = 4 * all;
    if (!to || opdi_cu_norm_params(k, x, opd_arg_tensor(call, 1), opd_arg_tensor(call, 2))) { return -1; }
    for (int i = 0; i < 2; i++) {
        stats[i] = opdi_cu_new(opd_ints_of(&all, 1), acc);
        channels[i] = i ? NULL : opdi_cu_new(opd_ints_of(&four, 1), acc);
        saved[i] = opdi_cu_staging(opdi_cu_result(call, 1 + i));
        if (!stats[i] || !saved[i] || !channels[0]) { return -1; }
    }
    k->save_mean = opdi_cu_data<char>(saved[0]); k->save_rstd = opdi_cu_data<char>(saved[1]);
    k->stat = opd_dtype(saved[0]);
    k->eps = opd_arg_double(call, 7);
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        const opdi_cu_last l = opdi_cu_last_of(k->hw, k->c, k->per);
        if (opdi_cu_last_sums<T>(l, images, opdi_cu_data<T>(x), NULL, NULL, NULL, opdi_cu_data<A>(stats[0]),
                                 opdi_cu_data<A>(stats[1])) ||
            opdi_cu_launch(opdi_cu_group_channels<T>, dim3((unsigned)opdi_cu_ceil(k->rows, 64)), dim3(64), 0, *k,
                           opdi_cu_data<A>(stats[0]), opdi_cu_data<A>(stats[1]), opdi_cu_data<A>(channels[0])) ||
            opdi_cu_last_apply<T>(l, images, opdi_cu_data<T>(x), NULL, opdi_cu_data<T>(to),
                                  opdi_cu_data<A>(channels[0]), false)) { return -1; }
    })
    for (int i = 0; i < 2; i++) { if (opdi_cu_staging_store(opdi_cu_result(call, 1 + i), saved[i])) { return -1; } }
    return opdi_cu_staging_store(y, to);
}
/* Returns whether the kernels for channels-last tensors compute a group norm of x. */
static bool opdi_cu_group_norm_is_last(const opd_tensor *x, const opdi_cu_norm *k) {
    return opdi_cu_is_channels_last(x) && opd_numel(x) > 0 && opd_size(x, 0) <= 65535 && opd_size(x, 1) == k->c &&
        opd_size(x, 0) * k->c == k->rows * k->per;
}
static int opdi_cu_group_norm(opd_call *call) {
    opdi_cu_norm k = opdi_cu_norm();
    if (opd_results_from_fake(call)) { return -1; }
    opdi_cu_group_norm_read(call, 3, &k);
    if (opdi_cu_group_norm_is_last(opd_arg_tensor(call, 0), &k)) {
        return opdi_cu_group_norm_last(call, opd_arg_tensor(call, 0), &k);
    }
    return opdi_cu_norm_forward(call, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_tensor(call, 2),
                                opd_arg_double(call, 7), &k);
}
/* Computes dx of a group norm of x in channels-last order, from the sums of opdi_cu_last_pair_sums.  Returns 0, or -1
   and sets an error. */
static int opdi_cu_group_norm_dx_last(opd_call *call, opd_tensor *g, opd_tensor *x, opd_tensor *const *sums,
                                      opdi_cu_norm *k) {
    const int64_t four = 4 * opd_size(x, 0) * k->c;
    opd_tensor *dx = opdi_cu_result(call, 0), *to = dx ? opdi_cu_as_last(dx, opd_dtype(dx), false) : NULL,
        *channels = opdi_cu_new(opd_ints_of(&four, 1), opdi_cu_acc_dtype(opd_dtype(x)));
    if (!dx) { return 0; }
    if (!to || !channels || opdi_cu_norm_params(k, x, opd_arg_tensor(call, 4), NULL)) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        if (opdi_cu_launch(opdi_cu_group_backward_channels<T>, dim3((unsigned)opdi_cu_ceil(k->rows, 64)), dim3(64), 0,
                           *k, opdi_cu_data<A>(sums[0]), opdi_cu_data<A>(sums[1]), opdi_cu_data<A>(channels)) ||
            opdi_cu_last_apply<T>(opdi_cu_last_of(k->hw, k->c, k->per), opd_size(x, 0), opdi_cu_data<T>(x),
                                  opdi_cu_data<T>(g), opdi_cu_data<T>(to), opdi_cu_data<A>(channels), false)) {
            return -1;
        }
    })
    return opdi_cu_staging_store(dx, to);
}
static int opdi_cu_group_norm_backward(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *mean = opd_arg_tensor(call, 2),
        *rstd = opd_arg_tensor(call, 3), *sums[2], *out;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const int64_t a = opd_arg_int(call, 5), sizes[2] = {a, opd_arg_int(call, 6)};
    opdi_cu_norm k = opdi_cu_norm();
    bool bad = false;
    if (opd_results_from_fake(call)) { return -1; }
    opdi_cu_group_norm_read(call, 5, &k);
    mean = opdi_cu_norm_in(mean, acc, &bad); rstd = opdi_cu_norm_in(rstd, acc, &bad);
    const bool last = opdi_cu_group_norm_is_last(x, &k) && opdi_cu_alike(x, g);
    if (last) { g = opdi_cu_as_last(g, opd_dtype(x), true); }
    else { g = opdi_cu_norm_in(g, opd_dtype(x), &bad); x = opdi_cu_norm_in(x, opd_dtype(x), &bad); }
    /* sums over the pixels of each channel, then over the images */
    for (int i = 0; i < 2; i++) {
        sums[i] = last || opdi_cu_result(call, 1 + i) ? opdi_cu_new(opd_ints_of(sizes, 2), acc) : NULL;
        if ((last || opdi_cu_result(call, 1 + i)) && !sums[i]) { return -1; }
    }
    if (bad || !g) { return -1; }
    if (last) {
        k.mean = opdi_cu_norm_data(mean); k.rstd = opdi_cu_norm_data(rstd);
        if (opdi_cu_last_pair_sums(x, g, a, k.c, k.per, mean, rstd, sums[0], sums[1]) ||
            opdi_cu_group_norm_dx_last(call, g, x, sums, &k)) { return -1; }
    } else if (opdi_cu_norm_dx(opdi_cu_result(call, 0), g, x, mean, rstd, opd_arg_tensor(call, 4), &k) ||
               opdi_cu_pair_sums(x, g, a, k.c, k.hw, 4, mean, rstd, k.per, sums[0], sums[1])) { return -1; }
    for (int i = 0; i < 2; i++) {
        out = opdi_cu_result(call, 1 + i);
        if (out && opdi_cu_reduce<opdi_cu_fold_sum, OPDI_CU_FI>(sums[i], 1, out, NULL, opdi_cu_fold_make(0), false)) {
            return -1;
        }
    }
    return 0;
}

//== batch norm ========================================================================================================

typedef struct opdi_cu_batch {
    int64_t c;
    const void *mean, *var, *w, *b;               /* mean, var: of the batch, or running; in the type of the
                                                     computation */
    bool wide, eval;
    const void *run_mean, *run_var;               /* previous running values, or NULL */
    void *new_mean, *new_var, *save_mean, *save_rstd;      /* new running and saved values, of dtype `stat` */
    int stat;
    double eps, momentum, count;
    const void *rstd, *gx, *g;                    /* backward: rstd, and the sums of g * (x - mean) * rstd and of g */
    void *channels;
} opdi_cu_batch;
template <typename T> __global__ void opdi_cu_batch_channels(const opdi_cu_batch k) {
    typedef opdi_cu_acc<T> A;
    const int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    opdi_cu_channel<A> to;
    if (c >= k.c) { return; }
    const double var = (double)((const A *)k.var)[c], now = (double)((const A *)k.mean)[c];
    const A rstd = (A)(1 / sqrt(var + k.eps));
    to.mean = (A)now;
    to.scale = !k.w ? rstd : rstd * (k.wide ? ((const A *)k.w)[c] : opdi_cu_load<A>((const T *)k.w + c));
    to.shift = !k.b ? (A)0 : k.wide ? ((const A *)k.b)[c] : opdi_cu_load<A>((const T *)k.b + c);
    to.slope = 0;
    ((opdi_cu_channel<A> *)k.channels)[c] = to;
    if (k.eval) { return; }
    opdi_cu_put(k.save_mean, k.stat, c, to.mean);
    opdi_cu_put(k.save_rstd, k.stat, c, rstd);
    if (k.new_mean) {
        ((A *)k.new_mean)[c] = (A)(k.momentum * now + (1 - k.momentum) * (double)((const A *)k.run_mean)[c]);
    }
    if (k.new_var) {
        ((A *)k.new_var)[c] = (A)(k.momentum * ((k.count > 0 ? var * k.count : 0) / (k.count - 1)) +
                                  (1 - k.momentum) * (double)((const A *)k.run_var)[c]);
    }
}
/* Computes the coefficients of each channel for the gradient.  With statistics of the batch, shift is the mean of g,
   and slope is the mean of g * (x - mean) * rstd^2, both times scale.  With running statistics (`eval`), both are 0. */
template <typename T> __global__ void opdi_cu_batch_backward_channels(const opdi_cu_batch k) {
    typedef opdi_cu_acc<T> A;
    const int64_t c = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    opdi_cu_channel<A> to;
    if (c >= k.c) { return; }
    const A rstd = ((const A *)k.rstd)[c];
    to.mean = ((const A *)k.mean)[c];
    to.scale = !k.w ? rstd : rstd * (k.wide ? ((const A *)k.w)[c] : opdi_cu_load<A>((const T *)k.w + c));
    to.shift = k.eval ? (A)0 : to.scale * (A)((double)((const A *)k.g)[c] / k.count);
    to.slope = k.eval ? (A)0 : to.scale * (A)((double)((const A *)k.gx)[c] * (double)rstd / k.count);
    ((opdi_cu_channel<A> *)k.channels)[c] = to;
}
/* Applies the coefficients of each channel to x [a, c, hw] or, in the backward pass, to x and g; in the forward pass, g
   is NULL.  If W > 1, hw is a multiple of W, or hw is 1 and c is a multiple of W. */
template <typename T, int W> __global__ void opdi_cu_batch_apply(const T *x, const T *g, T *y, int64_t total, int64_t c,
                                                                 int64_t hw, const void *channels, bool eval) {
    typedef opdi_cu_acc<T> A;
    const opdi_cu_channel<A> *const all = (const opdi_cu_channel<A> *)channels;
    const int64_t step = (int64_t)gridDim.x * blockDim.x * W;
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * W; i < total; i += step) {
        const int64_t q = total >> 32 ? i / hw : (int64_t)((uint32_t)i / (uint32_t)hw);
        const int64_t at = total >> 32 ? q % c : (int64_t)((uint32_t)q % (uint32_t)c);
        const opdi_cu_channel<A> k = all[at];
        A v[W], gs[W];
        if (!g || !eval) { opdi_cu_load_some<W>(x + i, v); }
        if (g) { opdi_cu_load_some<W>(g + i, gs); }
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) {
            v[w] = !g ? (v[w] - k.mean) * k.scale + k.shift
                : eval ? k.scale * gs[w] : k.scale * gs[w] - k.shift - (v[w] - k.mean) * k.slope;
        }
        opdi_cu_store_some<W>(y + i, v);
    }
}
/* Computes mean and variance of each channel of x [rows, c]; x may be in channels-last order.  Returns 0, or -1 and
   sets an error. */
static int opdi_cu_batch_stats(opd_tensor *x, opd_tensor *mean, opd_tensor *var) {
    const int64_t c = opd_size(x, 1);
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        return opdi_cu_last_sums<T>(opdi_cu_last_of(opd_numel(x) / c, c, 1), 1, opdi_cu_data<T>(x), NULL, NULL, NULL,
                                    opdi_cu_data<A>(mean), opdi_cu_data<A>(var));
    })
    return 0;
}
/* Computes y from x or, if g is given, the gradient y, by the coefficients k->channels. x, g and y are [a, c, hw] or,
   if hw is 1, in channels-last order.  Returns 0, or -1 and sets an error. */
static int opdi_cu_batch_run(opd_tensor *x, opd_tensor *g, opd_tensor *y, const opdi_cu_batch *k, int64_t hw) {
    const int64_t total = opd_numel(x);
    if (total == 0) { return 0; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        const int W = 16 / (int)sizeof(T);
        const T *xs = opdi_cu_data<T>(x), *gs = g ? opdi_cu_data<T>(g) : NULL;
        T *ys = opdi_cu_data<T>(y);
        if (hw == 1) {
            return opdi_cu_last_apply<T>(opdi_cu_last_of(total / k->c, k->c, 1), 1, xs, gs, ys, k->channels, k->eval);
        }
        const bool vec = hw % W == 0 && opdi_cu_aligned(xs) && opdi_cu_aligned(gs) && opdi_cu_aligned(ys);
        return opdi_cu_launch(vec ? opdi_cu_batch_apply<T, W> : opdi_cu_batch_apply<T, 1>,
                              opdi_cu_grid(total / (vec ? W : 1), 256), dim3(256), 0, xs, gs, ys, total, k->c, hw,
                              k->channels, k->eval);
    })
    return 0;
}
static int64_t opdi_cu_pixels(const opd_tensor *x) {
    return opdi_cu_count(opd_ints_of(opd_sizes(x) + 2, opd_ndim(x) - 2));
}
static int opdi_cu_batch_norm(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *run[2] = {opd_arg_tensor(call, 3), opd_arg_tensor(call, 4)}, *was[2],
        *now[2] = {NULL, NULL}, *out[3], *staging[3], *mean, *var;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const bool train = opd_arg_bool(call, 5);
    const int64_t c = opd_size(x, 1), hw = opdi_cu_pixels(x), three[3] = {opd_size(x, 0), c, hw};
    const bool last = opdi_cu_is_channels_last(x), rows = (last || hw == 1) && opd_numel(x) != 0;
    opdi_cu_batch k = opdi_cu_batch();
    opdi_cu_norm weights = opdi_cu_norm();
    bool bad = false;
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < 3; i++) {
        out[i] = opdi_cu_result(call, i);
        staging[i] = last && !i ? opdi_cu_as_last(out[i], opd_dtype(out[i]), false) : opdi_cu_staging(out[i]);
        if (!staging[i]) { return -1; }
    }
    x = last ? x : opd_contiguous(x);
    if (c == 0) { return 0; }
    for (int i = 0; i < 2; i++) { was[i] = opdi_cu_norm_in(run[i], acc, &bad); }
    if (!x || bad || opdi_cu_norm_params(&weights, x, opd_arg_tensor(call, 1), opd_arg_tensor(call, 2))) { return -1; }
    mean = train ? opdi_cu_new(opd_ints_of(&c, 1), acc) : was[0];
    var = train ? opdi_cu_new(opd_ints_of(&c, 1), acc) : was[1];
    if (!mean || !var) { return -1; }
    if (train && (rows ? opdi_cu_batch_stats(x, mean, var)
                  : opdi_cu_reduce<opdi_cu_fold_var, OPDI_CU_F>(opdi_cu_seen_as(x, three, 3), 5, var, mean,
                                                                opdi_cu_fold_make(2), false))) { return -1; }
    for (int i = 0; i < 2 && train && opd_numel(x) != 0; i++) {      /* an empty batch does not change the running
                                                                        values */
        if (run[i] && !(now[i] = opdi_cu_new(opd_ints_of(&c, 1), acc))) { return -1; }
    }
    k.c = c; k.count = (double)(three[0] * hw); k.eval = !train;
    k.mean = opdi_cu_norm_data(mean); k.var = opdi_cu_norm_data(var);
    k.w = weights.w; k.b = weights.b; k.wide = weights.wide;
    k.run_mean = opdi_cu_norm_data(was[0]); k.run_var = opdi_cu_norm_data(was[1]);
    k.new_mean = (void *)opdi_cu_norm_data(now[0]); k.new_var = (void *)opdi_cu_norm_data(now[1]);
    k.save_mean = (void *)opdi_cu_norm_data(staging[1]); k.save_rstd = (void *)opdi_cu_norm_data(staging[2]);
    k.stat = opd_dtype(staging[1]);
    k.momentum = opd_arg_double(call, 6); k.eps = opd_arg_double(call, 7);
    k.channels = opdi_cu_scratch(c * 4 * (int64_t)opd_dtype_size(acc));
    if (!k.channels) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        if (opdi_cu_launch(opdi_cu_batch_channels<T>, dim3((unsigned)opdi_cu_ceil(c, 256)), dim3(256), 0, k)) {
            return -1;
        }
    })
    for (int i = 0; i < 2; i++) { if (now[i] && !opd_copy_(run[i], now[i])) { return -1; } }
    if (opdi_cu_batch_run(x, NULL, staging[0], &k, rows ? 1 : hw)) { return -1; }
    for (int i = 0; i < 3; i++) { if (opdi_cu_staging_store(out[i], staging[i])) { return -1; } }
    return 0;
}
static int opdi_cu_batch_norm_backward(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *mean, *rstd, *sums[2], *dx, *staging, *out;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const bool train = opd_arg_bool(call, 7);
    int64_t c;
    opdi_cu_batch k = opdi_cu_batch();
    opdi_cu_norm weights = opdi_cu_norm();
    bool bad = false;
    if (opd_results_from_fake(call)) { return -1; }
    c = opd_size(x, 1);
    mean = opdi_cu_norm_in(opd_arg_tensor(call, train ? 5 : 3), acc, &bad);
    rstd = opdi_cu_norm_in(opd_arg_tensor(call, train ? 6 : 4), acc, &bad);
    if (!train && !bad) {
        rstd = opd_rsqrt(opd_add(rstd, opd_tensor_wrapped_number(opd_value_double(opd_arg_double(call, 8)))));
    }
    const bool last = opdi_cu_is_channels_last(x), rows = (last || opdi_cu_pixels(x) == 1) && opd_numel(x) != 0;
    if (last) { g = opdi_cu_as_last(g, opd_dtype(x), true); }
    else { g = opdi_cu_norm_in(g, opd_dtype(x), &bad); x = opdi_cu_norm_in(x, opd_dtype(x), &bad); }
    for (int i = 0; i < 2; i++) { if (!(sums[i] = opdi_cu_new(opd_ints_of(&c, 1), acc))) { return -1; } }
    if (bad || !g || !rstd || opdi_cu_norm_params(&weights, x, opd_arg_tensor(call, 2), NULL)) { return -1; }
    if (rows ? opdi_cu_last_pair_sums(x, g, 1, c, 1, mean, rstd, sums[0], sums[1])
        : opdi_cu_pair_sums(x, g, opd_size(x, 0), c, opdi_cu_pixels(x), 5, mean, rstd, 1, sums[0], sums[1])) {
        return -1;
    }
    if (opd_numel(x) == 0 && !opd_zero_(sums[0])) { return -1; }             /* the sums are 0, even if the mean is
                                                                                NaN */
    for (int i = 0; i < 2; i++) {
        out = opdi_cu_result(call, 1 + i);
        if (out && !opd_copy_(out, sums[i])) { return -1; }
    }
    dx = opdi_cu_result(call, 0);
    if (!dx || opd_numel(dx) == 0) { return 0; }
    staging = last ? opdi_cu_as_last(dx, opd_dtype(dx), false) : opdi_cu_staging(dx);
    k.c = c; k.count = (double)(opd_numel(x) / c); k.eval = !train;
    k.mean = opdi_cu_norm_data(mean); k.rstd = opdi_cu_norm_data(rstd);
    k.w = weights.w; k.wide = weights.wide;
    k.gx = opdi_cu_norm_data(sums[0]); k.g = opdi_cu_norm_data(sums[1]);
    k.channels = opdi_cu_scratch(c * 4 * (int64_t)opd_dtype_size(acc));
    if (!k.channels || !staging) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        if (opdi_cu_launch(opdi_cu_batch_backward_channels<T>, dim3((unsigned)opdi_cu_ceil(c, 256)), dim3(256), 0, k)) {
            return -1;
        }
    })
    return opdi_cu_batch_run(x, g, staging, &k, rows ? 1 : opdi_cu_pixels(x)) ? -1 : opdi_cu_staging_store(dx, staging);
}

static const opdi_cu_registration opdi_cu_table_softmax[] = {
    {"_softmax", opdi_cu_softmax}, {"_log_softmax", opdi_cu_log_softmax},
    {"_softmax_backward_data", opdi_cu_softmax_backward},
    {"_log_softmax_backward_data", opdi_cu_log_softmax_backward},
    {"native_layer_norm", opdi_cu_layer_norm}, {"native_layer_norm_backward", opdi_cu_layer_norm_backward},
    {"native_group_norm", opdi_cu_group_norm}, {"native_group_norm_backward", opdi_cu_group_norm_backward},
    {"native_batch_norm", opdi_cu_batch_norm}, {"native_batch_norm_backward", opdi_cu_batch_norm_backward},
    {"_native_batch_norm_legit", opdi_cu_batch_norm},
    {NULL, NULL}};


//== rms norm ==========================================================================================================

/* rms norm of rows of n elements: y = x * rstd * w with rstd = 1 / sqrt(mean(x^2) + eps).  w is NULL, or of x's type;
   if `wide` is true, of the type in which the kernel computes.  If r is not NULL, x + r is stored in `sum` and takes
   the place of x.  Backward: y is the gradient dx, to which r is added unless it is NULL, and `parts`, unless it is
   NULL, gets sums of g * x * rstd over rows for dw: a row for each blockIdx.x and threadIdx.y. */
enum { OPDI_CU_RMS_THREADS = 1024 };             /* threads of a multiprocessor in the backward pass */
typedef struct opdi_cu_rms {
    const void *x, *g, *w, *r;
    void *y, *rstd, *parts, *sum;
    double eps;
    int64_t rows, n;
    bool wide;
} opdi_cu_rms;
template <typename T, int W, typename C>
__device__ __forceinline__ void opdi_cu_rms_weights(const opdi_cu_rms &k, int64_t i, C *c) {
    constexpr int P = W * (int)sizeof(C) > 16 ? 16 / (int)sizeof(C) : W;
    if (!k.w) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { c[w] = 1; }
    } else if (k.wide) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w += P) { opdi_cu_load_some<P>((const C *)k.w + i + w, c + w); }
    } else { opdi_cu_load_some<W>((const T *)k.w + i, c); }
}
template <typename T, int W, typename C>
__device__ __forceinline__ void opdi_cu_rms_put(const opdi_cu_rms &k, T *y, const opdi_cu_vector<T, W> &v, C rstd,
                                                int64_t i) {
    C a[W], c[W];
    opdi_cu_rms_weights<T, W>(k, i, a);
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) { c[w] = opdi_cu_taken<C>(v, w) * rstd * a[w]; }
    opdi_cu_store_some<W>(y + i, c);
}
/* Returns x + r from element `at` on, rounded, and stores it in `sum`. */
template <typename T, int W>
__device__ __forceinline__ opdi_cu_vector<T, W> opdi_cu_rms_added(const opdi_cu_rms &k, const opdi_cu_vector<T, W> &x,
                                                                  int64_t at) {
    const opdi_cu_vector<T, W> r = opdi_cu_load_vector<W>((const T *)k.r + at);
    opdi_cu_vector<T, W> sum;
    OPDI_CU_UNROLL
    for (int w = 0; w < W; w++) {
        sum.at[w] = opdi_cu_cast<T>(opdi_cu_taken<opdi_cu_acc<T>>(x, w) + opdi_cu_taken<opdi_cu_acc<T>>(r, w));
    }
    opdi_cu_store_vector<W>((T *)k.sum + at, sum);
    return sum;
}
template <typename T, int W, int PACKS> __global__ void __launch_bounds__(1024) opdi_cu_rms_rows(const opdi_cu_rms k) {
    typedef opdi_cu_acc<T> C;
    const int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
    const int64_t n = k.n;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < k.rows; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y;
        const bool in = row < k.rows;
        const T *x = (const T *)k.x + row * n;
        T *y = (T *)k.y + row * n;
        opdi_cu_vector<T, W> v[PACKS ? PACKS : 1];
        C squares = 0;
        int there = 0;
        const auto add = [&](const opdi_cu_vector<T, W> &pack) {
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w++) { const C a = opdi_cu_taken<C>(pack, w); squares += a * a; }
        };
        if constexpr (PACKS > 0) {
            there = opdi_cu_load_packs<W, PACKS>(x, (int)n, lane, lanes, in, v);
            OPDI_CU_EACH_PACK(p, i) { if (p < there && k.r) { v[p] = opdi_cu_rms_added(k, v[p], row * n + i); } }
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { add(v[p]); } }
        } else {
            OPDI_CU_EACH_ROUND(i) {
                const opdi_cu_vector<T, W> pack = opdi_cu_load_vector<W>(x + i);
                add(k.r ? opdi_cu_rms_added(k, pack, row * n + i) : pack);
            }
            x = k.r ? (const T *)k.sum + row * n : x;         /* what this thread has stored */
        }
        squares = opdi_cu_row_reduce(squares, opdi_cu_sum(), (C)0, lanes);
        const C rstd = (C)1 / (C)sqrt(squares / (C)n + (C)k.eps);
        if (in && lane == 0) { ((C *)k.rstd)[row] = rstd; }
        if constexpr (PACKS > 0) {
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { opdi_cu_rms_put(k, y, v[p], rstd, i); } }
        } else { OPDI_CU_EACH_ROUND(i) { opdi_cu_rms_put(k, y, opdi_cu_load_vector<W>(x + i), rstd, i); } }
    }
}
/* Computes dx = rstd * (w * g - x * rstd^2 * mean(w * g * x)) and, if PACKS > 0, the parts of dw. */
template <typename T, int W, int PACKS>
__global__ void __launch_bounds__(512) opdi_cu_rms_backward_rows(const opdi_cu_rms k) {
    typedef opdi_cu_acc<T> C;
    const int lanes = (int)blockDim.x, lane = (int)threadIdx.x;
    const int64_t n = k.n;
    C dw[PACKS ? PACKS : 1][W];
    OPDI_CU_UNROLL
    for (int p = 0; p < (PACKS ? PACKS : 1); p++) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) { dw[p][w] = 0; }
    }
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < k.rows; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t row = first + threadIdx.y;
        const bool in = row < k.rows;
        const T *x = (const T *)k.x + row * n, *g = (const T *)k.g + row * n;
        T *dx = (T *)k.y + row * n;
        const C rstd = in ? ((const C *)k.rstd)[row] : (C)0;
        opdi_cu_vector<T, W> xs[PACKS ? PACKS : 1], gs[PACKS ? PACKS : 1];
        C sum = 0;
        int there = 0;
        const auto add = [&](const opdi_cu_vector<T, W> &xv, const opdi_cu_vector<T, W> &gv, int64_t i) {
            C a[W];
            opdi_cu_rms_weights<T, W>(k, i, a);
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w++) { sum += a[w] * opdi_cu_taken<C>(gv, w) * opdi_cu_taken<C>(xv, w); }
        };
        const auto put = [&](const opdi_cu_vector<T, W> &xv, const opdi_cu_vector<T, W> &gv, C *to, int64_t i) {
            C a[W];
            opdi_cu_rms_weights<T, W>(k, i, a);
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w++) {
                const C xw = opdi_cu_taken<C>(xv, w), gw = opdi_cu_taken<C>(gv, w);
                to[w] += gw * xw * rstd;
                a[w] = rstd * (a[w] * gw - xw * sum);
            }
            if (k.r) {
                const opdi_cu_vector<T, W> r = opdi_cu_load_vector<W>((const T *)k.r + (dx - (T *)k.y) + i);
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) { a[w] += opdi_cu_taken<C>(r, w); }
            }
            opdi_cu_store_some<W>(dx + i, a);
        };
        if constexpr (PACKS > 0) {
            there = opdi_cu_load_packs<W, PACKS>(x, (int)n, lane, lanes, in, xs);
            (void)opdi_cu_load_packs<W, PACKS>(g, (int)n, lane, lanes, in, gs);
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { add(xs[p], gs[p], i); } }
        } else {
            OPDI_CU_EACH_ROUND(i) { add(opdi_cu_load_vector<W>(x + i), opdi_cu_load_vector<W>(g + i), i); }
        }
        sum = opdi_cu_row_reduce(sum, opdi_cu_sum(), (C)0, lanes) * rstd * rstd / (C)n;
        if constexpr (PACKS > 0) {
            OPDI_CU_EACH_PACK(p, i) { if (p < there) { put(xs[p], gs[p], dw[p], i); } }
        } else {
            OPDI_CU_EACH_ROUND(i) { put(opdi_cu_load_vector<W>(x + i), opdi_cu_load_vector<W>(g + i), dw[0], i); }
        }
    }
    if constexpr (PACKS > 0) {
        constexpr int P = W * (int)sizeof(C) > 16 ? 16 / (int)sizeof(C) : W;
        if (!k.parts) { return; }
        C *parts = (C *)k.parts + ((int64_t)blockIdx.x * blockDim.y + threadIdx.y) * n;
        OPDI_CU_EACH_PACK(p, i) {
            if (i >= n) { continue; }
            OPDI_CU_UNROLL
            for (int w = 0; w < W; w += P) { opdi_cu_store_some<P>(parts + i + w, dw[p] + w); }
        }
    }
}
/* Runs rms_norm(Tensor x, Tensor? w, int n, float eps, Tensor? r) -> (Tensor, Tensor, Tensor): the norm of rows of n
   elements, and rstd of each row, as one dim.  w has n elements, and x's dtype or float32.  If r, with the sizes and
   dtype of x, is not None: the norm of x + r, and third x + r, otherwise None. */
static int opdi_cu_rms_norm(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *w = opd_arg_tensor(call, 1), *r = opd_arg_tensor(call, 4), *y, *rstd,
        *sum = NULL;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    opdi_cu_rms k = opdi_cu_rms();
    bool bad = false;
    k.n = opd_arg_int(call, 2); k.eps = opd_arg_double(call, 3);
    k.rows = k.n > 0 ? opd_numel(x) / k.n : 0;
    x = opdi_cu_norm_in(x, opd_dtype(x), &bad); w = opdi_cu_norm_in(w, w ? opd_dtype(w) : acc, &bad);
    r = opdi_cu_norm_in(r, x ? opd_dtype(x) : acc, &bad);
    if (r && !bad && !(sum = opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), opd_dtype(x)))) { return -1; }
    y = bad ? NULL : opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), opd_dtype(x));
    rstd = y ? opdi_cu_new(opd_ints_of(&k.rows, 1), acc) : NULL;
    if (!rstd) { return -1; }
    k.x = opdi_cu_norm_data(x); k.w = opdi_cu_norm_data(w); k.wide = w && opd_dtype(w) != opd_dtype(x);
    k.y = (void *)opdi_cu_norm_data(y); k.rstd = (void *)opdi_cu_norm_data(rstd);
    k.r = opdi_cu_norm_data(r); k.sum = (void *)opdi_cu_norm_data(sum);
    if (k.rows > 0) {
        OPDI_CU_FLOATS(opd_dtype(x), T, {
            const int W = 16 / (int)sizeof(T), most = sizeof(T) == 8 ? 2 : 4;
            const bool vec = k.n % W == 0 && opdi_cu_aligned(k.x) && opdi_cu_aligned(k.w) && opdi_cu_aligned(k.r);
            const opdi_cu_row_plan p = opdi_cu_row_plan_of(k.rows, k.n, W, vec, most);
            if (opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_rms_rows, T, most), p.grid, p.block, 0, k)) { return -1; }
        })
    }
    return opd_return_tensor(call, y) || opd_return_tensor(call, rstd) ? -1
        : sum ? opd_return_tensor(call, sum) : opd_return_value(call, opd_value_none());
}
/* Computes dx and, if dw is not NULL, dw [n] of the type of the computation. */
template <typename T> static int opdi_cu_rms_backward_of(opdi_cu_rms k, opd_tensor *x, opd_tensor *g, opd_tensor *rstd,
                                                         opd_tensor *dw) {
    const int W = 16 / (int)sizeof(T), most = 2;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const bool vec = k.n % W == 0 && opdi_cu_aligned(k.x) && opdi_cu_aligned(k.g) && opdi_cu_aligned(k.w) &&
        opdi_cu_aligned(k.r);
    opdi_cu_row_plan p = opdi_cu_row_plan_of(k.rows, k.n, W, vec, most);
    if (p.block.x > 512) { p.packs = 0; p.block = dim3(512); }
    if (p.packs == 0 || !dw) {
        opd_tensor *mean = dw ? opd_zeros_like(rstd) : NULL;
        if (dw && !mean) { return -1; }
        return opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_rms_backward_rows, T, most), p.grid, p.block, 0, k) ? -1
            : dw ? opdi_cu_pair_sums(x, g, k.rows, k.n, 1, 1, mean, rstd, 0, dw, NULL) : 0;
    }
    const int64_t at_once = (int64_t)opdi_cu_properties()->multiprocessors *
        (OPDI_CU_RMS_THREADS / (int)(p.block.x * p.block.y));
    p.grid.x = p.grid.x < at_once ? p.grid.x : (unsigned)at_once;
    const int64_t sizes[2] = {(int64_t)p.grid.x * p.block.y, k.n};
    opd_tensor *parts = opdi_cu_new(opd_ints_of(sizes, 2), acc);
    k.parts = (void *)opdi_cu_norm_data(parts);
    if (!parts || opdi_cu_launch(OPDI_CU_ROW_KERNEL(p, opdi_cu_rms_backward_rows, T, most), p.grid, p.block, 0, k)) {
        return -1;
    }
    return opdi_cu_reduce<opdi_cu_fold_sum, OPDI_CU_FI>(parts, 1, dw, NULL, opdi_cu_fold_make(0), false);
}
/* Runs rms_norm_backward(Tensor g, Tensor x, Tensor? w, Tensor rstd, int n, bool need, Tensor? r) -> (Tensor, Tensor?):
   dx, to which r is added unless it is None, and dw [n] in w's dtype if `need` is true, else None. */
static int opdi_cu_rms_norm_backward(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *w = opd_arg_tensor(call, 2),
        *rstd = opd_arg_tensor(call, 3), *r = opd_arg_tensor(call, 6), *dx, *dw = NULL;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const bool need = opd_arg_bool(call, 5) && w;
    opdi_cu_rms k = opdi_cu_rms();
    bool bad = false;
    k.n = opd_arg_int(call, 4);
    k.rows = k.n > 0 ? opd_numel(x) / k.n : 0;
    g = opdi_cu_norm_in(g, opd_dtype(x), &bad); x = opdi_cu_norm_in(x, opd_dtype(x), &bad);
    w = opdi_cu_norm_in(w, w ? opd_dtype(w) : acc, &bad); rstd = opdi_cu_norm_in(rstd, acc, &bad);
    r = opdi_cu_norm_in(r, x ? opd_dtype(x) : acc, &bad);
    dx = bad ? NULL : opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), opd_dtype(x));
    if (!dx || (need && !(dw = opdi_cu_new(opd_ints_of(&k.n, 1), acc)))) { return -1; }
    k.x = opdi_cu_norm_data(x); k.g = opdi_cu_norm_data(g); k.w = opdi_cu_norm_data(w);
    k.wide = w && opd_dtype(w) != opd_dtype(x);
    k.r = opdi_cu_norm_data(r);
    k.y = (void *)opdi_cu_norm_data(dx); k.rstd = (void *)opdi_cu_norm_data(rstd);
    if (k.rows == 0) { if (dw && !opd_zero_(dw)) { return -1; } }
    else { OPDI_CU_FLOATS(opd_dtype(x), T, if (opdi_cu_rms_backward_of<T>(k, x, g, rstd, dw)) { return -1; }) }
    if (dw && opd_dtype(dw) != opd_dtype(w) && !(dw = opd_to_dtype(dw, opd_dtype(w)))) { return -1; }
    return opd_return_tensor(call, dx) ? -1 : dw ? opd_return_tensor(call, dw)
        : opd_return_value(call, opd_value_none());
}

//== rotation of pairs of features =====================================================================================

/* y = x with pairs of features of each row turned by angles: (a, b) becomes (a cos - b sin, a sin + b cos).  A row has
   `depth` features, of which the first 2 half are in pairs: i and half + i, or if `next` is true, 2 i and 2 i + 1.
   Rows have three dims; strides: of x; table: of cos and sin, 0 if they are repeated along a dim.  y is contiguous.
   cos and sin are of x's type; if `wide` is true, of the type in which the kernel computes. */
struct opdi_cu_rotary {
    const void *x, *cos, *sin;
    void *y;
    int64_t sizes[3], strides[3], table[3], depth, half;
    bool wide, next, back;                        /* back: turns by the negative angles */
};
template <typename T, int W, typename C>
__device__ __forceinline__ void opdi_cu_rotary_table(const void *table, bool wide, int64_t at, C *c) {
    constexpr int P = W * (int)sizeof(C) > 16 ? 16 / (int)sizeof(C) : W;
    if (wide) {
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w += P) { opdi_cu_load_some<P>((const C *)table + at + w, c + w); }
    } else { opdi_cu_load_some<W>((const T *)table + at, c); }
}
/* W: how many pairs a thread turns. */
template <typename T, int W> __global__ void opdi_cu_rotary_kernel(const opdi_cu_rotary k) {
    typedef opdi_cu_acc<T> C;
    const int64_t turned = k.half / W, units = (k.depth - k.half) / W;
    const int64_t all = k.sizes[0] * k.sizes[1] * k.sizes[2] * units;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t row = i / units, u = i - row * units, r1 = row / k.sizes[2], r2 = row - r1 * k.sizes[2];
        const int64_t r0 = r1 / k.sizes[1], m = r1 - r0 * k.sizes[1];
        const T *x = (const T *)k.x + r0 * k.strides[0] + m * k.strides[1] + r2 * k.strides[2];
        const int64_t at = r0 * k.table[0] + m * k.table[1] + r2 * k.table[2] + u * W;
        T *y = (T *)k.y + row * k.depth;
        C c[W], s[W], v[2 * W];
        if (u >= turned) {                        /* features that are not turned */
            const int64_t from = u * W + k.half;
            opdi_cu_store_vector<W>(y + from, opdi_cu_load_vector<W>(x + from));
            continue;
        }
        opdi_cu_rotary_table<T, W>(k.cos, k.wide, at, c);
        opdi_cu_rotary_table<T, W>(k.sin, k.wide, at, s);
        const int64_t low = k.next ? 2 * u * W : u * W, high = k.next ? low + W : k.half + low;
        opdi_cu_load_some<W>(x + low, v);
        opdi_cu_load_some<W>(x + high, v + W);
        OPDI_CU_UNROLL
        for (int w = 0; w < W; w++) {
            const C sine = k.back ? -s[w] : s[w];
            if (k.next) {
                const C a = v[2 * w], b = v[2 * w + 1];
                v[2 * w] = a * c[w] - b * sine;
                v[2 * w + 1] = b * c[w] + a * sine;
            } else {
                const C a = v[w], b = v[W + w];
                v[w] = a * c[w] - b * sine;
                v[W + w] = b * c[w] + a * sine;
            }
        }
        opdi_cu_store_some<W>(y + low, v);
        opdi_cu_store_some<W>(y + high, v + W);
    }
}
/* Runs rotary(Tensor x, Tensor cos, Tensor sin, bool next, bool back) -> Tensor.  x has at most four dims and its
   features one after another; cos and sin have the sizes of x, but `half` features, and stride 1 there.  Their dtype is
   that of x, or float32. */
static int opdi_cu_rotary_run(opd_call *call) {
    opd_tensor *const x = opd_arg_tensor(call, 0), *const cos = opd_arg_tensor(call, 1),
        *const sin = opd_arg_tensor(call, 2), *y;
    const int last = opd_ndim(x) - 1;
    opdi_cu_rotary k = opdi_cu_rotary();
    k.depth = opd_size(x, last); k.half = opd_size(cos, last);
    k.next = opd_arg_bool(call, 3); k.back = opd_arg_bool(call, 4);
    k.wide = opd_dtype(cos) != opd_dtype(x);
    if (!(y = opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), opd_dtype(x)))) { return -1; }
    k.x = opdi_cu_data<const void>(x); k.cos = opdi_cu_data<const void>(cos); k.sin = opdi_cu_data<const void>(sin);
    k.y = opdi_cu_data<void>(y);
    const int64_t W = 16 / (int64_t)opd_dtype_size(opd_dtype(x));
    bool vec = k.depth % W == 0 && k.half % W == 0 && opdi_cu_aligned(k.x) && opdi_cu_aligned(k.cos) &&
        opdi_cu_aligned(k.sin) && opdi_cu_aligned(k.y);
    for (int d = 0; d < 3; d++) {
        const int of = last - 3 + d;
        k.sizes[d] = of < 0 ? 1 : opd_size(x, of);
        k.strides[d] = of < 0 || k.sizes[d] == 1 ? 0 : opd_strides(x)[of];
        k.table[d] = of < 0 || k.sizes[d] == 1 ? 0 : opd_strides(cos)[of];
        vec = vec && k.strides[d] % W == 0 && k.table[d] % W == 0;
    }
    if (opd_numel(x) > 0) {
        const int64_t units = k.sizes[0] * k.sizes[1] * k.sizes[2] * (k.depth - k.half);
        OPDI_CU_FLOATS(opd_dtype(x), T, {
            constexpr int P = 16 / (int)sizeof(T);
            if (vec ? opdi_cu_launch(opdi_cu_rotary_kernel<T, P>, opdi_cu_grid(units / P, 256), dim3(256), 0, k)
                    : opdi_cu_launch(opdi_cu_rotary_kernel<T, 1>, opdi_cu_grid(units, 256), dim3(256), 0, k)) {
                return -1;
            }
        })
    }
    return opd_return_tensor(call, y);
}
//----------------------------------------------------------------------------------------------------------------------
//  >>cu:scans       scans and sorting
//----------------------------------------------------------------------------------------------------------------------

//== scans =============================================================================================================
//
//  A line along the dim is processed in tiles, with 4 elements per thread.  Each thread scans its elements, and the
//  totals of the threads are scanned within and across warps.  The total so far is carried to the next tile.  A short
//  line is processed by a warp or, if neighbouring lines are adjacent in memory, by a thread.  If there are few long
//  lines, they are cut into chunks: first, the totals of the chunks are computed, then each chunk is scanned, beginning
//  with the total of the chunks before it.  join(a, b) joins b after a.

template <typename A> __device__ __forceinline__ A opdi_cu_shuffle_up(A v, int by) {
    static_assert(sizeof(A) % 4 == 0, "whole words");
    union { A v; int w[sizeof(A) / 4]; } u = {v};
    OPDI_CU_UNROLL
    for (int i = 0; i < (int)(sizeof(A) / 4); i++) {
        u.w[i] = __shfl_up_sync(OPDI_CU_ALL_LANES, u.w[i], (unsigned)by);
    }
    return u.v;
}
template <typename C> struct opdi_cu_scan_value { C v; };
template <typename C> struct opdi_cu_scan_place { C v; int64_t at; };
template <typename T> struct opdi_cu_scan_sum {
    typedef opdi_cu_acc<T> C;
    typedef opdi_cu_scan_value<C> S;
    static __device__ __forceinline__ S none() { const S s = {0}; return s; }
    static __device__ __forceinline__ S of(C x, int64_t) { const S s = {x}; return s; }
    static __device__ __forceinline__ S join(S a, S b) { a.v = opdi_cu_plus(a.v, b.v); return a; }
    static __device__ __forceinline__ void store(const S &s, T *y, int64_t *, int64_t i) { opdi_cu_store(y + i, s.v); }
};
template <typename T> struct opdi_cu_scan_prod {
    typedef opdi_cu_acc<T> C;
    typedef opdi_cu_scan_value<C> S;
    static __device__ __forceinline__ S none() { const S s = {1}; return s; }
    static __device__ __forceinline__ S of(C x, int64_t) { const S s = {x}; return s; }
    static __device__ __forceinline__ S join(S a, S b) { a.v = opdi_cu_times(a.v, b.v); return a; }
    static __device__ __forceinline__ void store(const S &s, T *y, int64_t *, int64_t i) { opdi_cu_store(y + i, s.v); }
};
/* log(sum exp) in two parts: the largest term m, and the sum of exp(x - m) of the other terms.  Thus, the result is
   rounded only once, at the end. */
template <typename C> struct opdi_cu_scan_terms { C m, others; };
template <typename T> struct opdi_cu_scan_exps {
    typedef opdi_cu_acc<T> C;
    typedef opdi_cu_scan_terms<C> S;
    static __device__ __forceinline__ S none() { const S s = {opdi_cu_lowest<C>(), 0}; return s; }
    static __device__ __forceinline__ S of(C x, int64_t) { const S s = {x, 0}; return s; }
    static __device__ __forceinline__ S join(S a, S b) {
        if (a.m < b.m || b.m != b.m) { const S t = a; a = b; b = t; }
        a.others += (1 + b.others) * (a.m == b.m ? (C)1 : opdi_cu_exp(b.m - a.m));
        return a;
    }
    static __device__ __forceinline__ void store(const S &s, T *y, int64_t *, int64_t i) {
        opdi_cu_store(y + i, s.m + (C)log1p(s.others));
    }
};
/* The largest element so far (the smallest, if LEAST) and its index; of equal elements, the last.  Once there has been
   a NaN, it stays. */
template <typename T, bool LEAST> struct opdi_cu_scan_extreme {
    typedef opdi_cu_acc<T> C;
    typedef opdi_cu_scan_place<C> S;
    static __device__ __forceinline__ S none() { const S s = {0, -1}; return s; }
    static __device__ __forceinline__ S of(C x, int64_t at) { const S s = {x, at}; return s; }
    static __device__ __forceinline__ S join(S a, S b) {
        if (a.at < 0 || (b.at >= 0 && (b.v != b.v || (a.v == a.v && (LEAST ? b.v <= a.v : b.v >= a.v))))) { return b; }
        return a;
    }
    static __device__ __forceinline__ void store(const S &s, T *y, int64_t *index, int64_t i) {
        opdi_cu_store(y + i, s.v);
        index[i] = s.at;
    }
};
template <typename T> using opdi_cu_scan_max = opdi_cu_scan_extreme<T, false>;
template <typename T> using opdi_cu_scan_min = opdi_cu_scan_extreme<T, true>;

/* The plan of a scan of lines [outer, n, inner].  Each line has `chunks` chunks of `chunk` elements.  If there are
   several, a first pass, in which `totals` is true, writes the total of each chunk to `states` [lines][chunks].  Then
   these totals are scanned. */
typedef struct opdi_cu_scan_plan {
    opdi_cu_line l;
    int64_t chunk, chunks;
    void *states;
    bool totals, vector;                          /* vector: four neighbouring elements are loaded at once */
} opdi_cu_scan_plan;
/* Scans chunks, with blockDim.x threads (one warp or several) per chunk, and blockDim.y chunks per block. */
template <typename T, typename L>
__global__ void opdi_cu_scan_lines(const opdi_cu_scan_plan k, const T *x, T *y, int64_t *index) {
    typedef typename L::C C;
    typedef typename L::S S;
    __shared__ __align__(16) unsigned char scratch[OPDI_CU_WARP * sizeof(S)];
    S *warps = reinterpret_cast<S *>(scratch);
    const int lanes = (int)blockDim.x, me = (int)threadIdx.x, lane = me % OPDI_CU_WARP, I = 4;
    const int64_t items = k.l.outer * k.l.inner * k.chunks;
    for (int64_t first = (int64_t)blockIdx.x * blockDim.y; first < items; first += (int64_t)gridDim.x * blockDim.y) {
        const int64_t item = first + threadIdx.y, line = item / k.chunks, c = item % k.chunks;
        const bool in = item < items;
        const int64_t base = line / k.l.inner * k.l.n * k.l.inner + line % k.l.inner, begin = c * k.chunk;
        const int64_t end = !in ? begin : begin + k.chunk < k.l.n ? begin + k.chunk : k.l.n;
        S carry = L::none();
        if (k.chunks > 1 && !k.totals && in && c > 0) { carry = ((const S *)k.states)[item - 1]; }
        for (int64_t tile = begin; tile < begin + k.chunk; tile += (int64_t)lanes * I) {
            const int64_t from = tile + (int64_t)me * I;
            S s[I], all = L::none(), before;
            T v[I];
            if (k.vector && from + I <= end) { opdi_cu_load_pieces<I>(x + base + from, v); }
            else {
                OPDI_CU_UNROLL
                for (int i = 0; i < I; i++) { if (from + i < end) { v[i] = x[base + (from + i) * k.l.inner]; } }
            }
            OPDI_CU_UNROLL
            for (int i = 0; i < I; i++) {
                if (from + i < end) {
                    const S now = L::of(opdi_cu_cast<C>(v[i]), from + i);
                    all = i ? L::join(all, now) : now;
                }
                s[i] = all;
            }
            for (int by = 1; by < OPDI_CU_WARP; by *= 2) {
                const S other = opdi_cu_shuffle_up(all, by);
                if (lane >= by) { all = L::join(other, all); }
            }
            before = opdi_cu_shuffle_up(all, 1);
            if (lane == 0) { before = L::none(); }
            if (lanes > OPDI_CU_WARP) {
                __syncthreads();
                if (lane == OPDI_CU_WARP - 1) { warps[me / OPDI_CU_WARP] = all; }
                __syncthreads();
                S outside = L::none(), total = L::none();
                for (int w = 0; w < lanes / OPDI_CU_WARP; w++) {
                    if (w == me / OPDI_CU_WARP) { outside = total; }
                    total = w ? L::join(total, warps[w]) : warps[0];
                }
                before = L::join(outside, before);
                all = total;
            } else {
                union { S s; int w[sizeof(S) / 4]; } u = {all};
                for (int i = 0; i < (int)(sizeof(S) / 4); i++) {
                    u.w[i] = __shfl_sync(OPDI_CU_ALL_LANES, u.w[i], OPDI_CU_WARP - 1);
                }
                all = u.s;
            }
            before = L::join(carry, before);
            OPDI_CU_UNROLL
            for (int i = 0; i < I; i++) {
                if (k.totals || from + i >= end) { continue; }
                L::store(L::join(before, s[i]), y, index, base + (from + i) * k.l.inner);
            }
            carry = L::join(carry, all);
        }
        if (k.totals && in && me == 0) { ((S *)k.states)[item] = carry; }
    }
}
/* Scans the totals of each line's chunks, of which there are at most 512.  A block processes one line. */
template <typename L> __global__ void __launch_bounds__(512) opdi_cu_scan_totals(typename L::S *states, int chunks) {
    typedef typename L::S S;
    __shared__ __align__(16) unsigned char scratch[512 * sizeof(S)];
    S *all = reinterpret_cast<S *>(scratch);
    const int c = (int)threadIdx.x;
    S s = L::none();
    states += (int64_t)blockIdx.x * chunks;
    if (c < chunks) { s = states[c]; }
    for (int by = 1; by < chunks; by *= 2) {
        all[c] = s;
        __syncthreads();
        if (c >= by) { s = L::join(all[c - by], s); }
        __syncthreads();
    }
    if (c < chunks) { states[c] = s; }
}
/* Scans lines, one per thread.  The threads of a warp have adjacent lines. */
template <typename T, typename L>
__global__ void opdi_cu_scan_columns(const opdi_cu_line l, const T *x, T *y, int64_t *index) {
    typedef typename L::C C;
    const int64_t lines = l.outer * l.inner;
    for (int64_t line = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; line < lines;
         line += (int64_t)gridDim.x * blockDim.x) {
        int64_t at = line / l.inner * l.n * l.inner + line % l.inner;
        typename L::S s = L::none();
        for (int64_t i = 0; i < l.n; i++, at += l.inner) {
            const typename L::S now = L::of(opdi_cu_load<C>(x + at), i);
            s = i ? L::join(s, now) : now;
            L::store(s, y, index, at);
        }
    }
}
template <typename T, typename L> static int opdi_cu_scan_run(opdi_cu_line l, const T *x, T *y, int64_t *index) {
    typedef typename L::S S;
    const int64_t lines = l.outer * l.inner;
    opdi_cu_scan_plan k = {l, l.n, 1, NULL, false, l.inner == 1 && l.n % 4 == 0 && opdi_cu_aligned(x)};
    dim3 block = l.n <= 1024 ? dim3(OPDI_CU_WARP, 4) : dim3(256, 1);
    if (l.n <= 8 || (l.inner >= 16 && lines >= 4096)) {
        return opdi_cu_launch(opdi_cu_scan_columns<T, L>, opdi_cu_grid(lines, 128), dim3(128), 0, l, x, y, index);
    }
    if (lines < 128 && l.n >= 32768) {
        k.chunks = 512 / lines < l.n / 8192 ? 512 / lines : l.n / 8192;
        k.chunk = opdi_cu_ceil(opdi_cu_ceil(l.n, k.chunks), 1024) * 1024;
        k.chunks = opdi_cu_ceil(l.n, k.chunk);
        k.states = opdi_cu_scratch(lines * k.chunks * (int64_t)sizeof(S));
        if (!k.states) { return -1; }
        k.totals = true;
        if (opdi_cu_launch(opdi_cu_scan_lines<T, L>, opdi_cu_grid_rows(lines * k.chunks), block, 0, k, x, y, index) ||
            opdi_cu_launch(opdi_cu_scan_totals<L>, dim3((unsigned)lines), dim3(512), 0, (S *)k.states, (int)k.chunks)) {
            return -1;
        }
        k.totals = false;
    }
    return opdi_cu_launch(opdi_cu_scan_lines<T, L>, opdi_cu_grid_rows(opdi_cu_ceil(lines * k.chunks, block.y)), block,
                          0, k, x, y, index);
}
/* Scans along the dim that argument 1 names.  Writes result 0 and, if `two` is true, the indices as result 1.  Returns
   0, or -1 and sets an error. */
template <template <class> class L, bool INTEGERS> static int opdi_cu_scan_of(opd_call *call, bool two) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y, *index = NULL, *staging, *index_staging = NULL;
    const opdi_cu_line l = opdi_cu_line_of(x, opd_arg_int(call, 1));
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    staging = opdi_cu_staging(y);
    if (two) { index = opdi_cu_result(call, 1); index_staging = opdi_cu_staging(index); }
    if (!staging || (two && !index_staging)) { return -1; }
    if (opd_numel(y) == 0) { return 0; }
    x = opd_contiguous(opd_dtype(x) == opd_dtype(y) ? x : opd_to_dtype(x, opd_dtype(y)));
    if (!x) { return -1; }
#define OPDI_CU_SCAN_RUN(T)                                                                                           \
    if (opdi_cu_scan_run<T, L<T> >(l, opdi_cu_data<T>(x), opdi_cu_data<T>(staging),                                   \
                                   two ? opdi_cu_data<int64_t>(index_staging) : NULL)) { return -1; }
    if constexpr (INTEGERS) { OPDI_CU_ALL(opd_dtype(y), T, OPDI_CU_SCAN_RUN(T)) }
    else { OPDI_CU_FLOATS(opd_dtype(y), T, OPDI_CU_SCAN_RUN(T)) }
#undef OPDI_CU_SCAN_RUN
    return opdi_cu_staging_store(y, staging) || (two && opdi_cu_staging_store(index, index_staging)) ? -1 : 0;
}
static int opdi_cu_cumsum(opd_call *call) { return opdi_cu_scan_of<opdi_cu_scan_sum, true>(call, false); }
static int opdi_cu_cumprod(opd_call *call) { return opdi_cu_scan_of<opdi_cu_scan_prod, true>(call, false); }
static int opdi_cu_logcumsumexp(opd_call *call) { return opdi_cu_scan_of<opdi_cu_scan_exps, false>(call, false); }
static int opdi_cu_cummax(opd_call *call) { return opdi_cu_scan_of<opdi_cu_scan_max, true>(call, true); }
static int opdi_cu_cummin(opd_call *call) { return opdi_cu_scan_of<opdi_cu_scan_min, true>(call, true); }

//== sorting ===========================================================================================================
//
//  Rows of pairs (key, index) are sorted.  Keys are unsigned numbers in the order of the values: NaN is greater than
//  all numbers, -0 equals 0, and all bits are inverted for descending order.  If keys are equal, the index decides, so
//  each sorting method is stable.  Rows of up to 2,048 elements are sorted by a bitonic network in shared memory, as
//  tiles of several rows if they are short.

#define OPDI_CU_SORTED 2048

template <typename T> struct opdi_cu_key_of { typedef uint32_t K; };
template <> struct opdi_cu_key_of<int64_t> { typedef uint64_t K; };
template <> struct opdi_cu_key_of<double> { typedef uint64_t K; };
static __device__ __forceinline__ uint64_t opdi_cu_key(int64_t v) { return (uint64_t)v ^ (uint64_t)1 << 63; }
static __device__ __forceinline__ uint64_t opdi_cu_key(double v) {
    const uint64_t u = (uint64_t)__double_as_longlong(v == 0 ? 0.0 : v);
    return v != v ? ~(uint64_t)0 : u >> 63 ? ~u : u | (uint64_t)1 << 63;
}
static __device__ __forceinline__ uint32_t opdi_cu_key(int32_t v) { return (uint32_t)v ^ 0x80000000u; }
static __device__ __forceinline__ uint32_t opdi_cu_key(float v) {
    const uint32_t u = __float_as_uint(v == 0 ? 0.0f : v);
    return v != v ? ~(uint32_t)0 : u >> 31 ? ~u : u | 0x80000000u;
}
/* The type from which a key is made: float for 16-bit floats, int32_t for bool and integers of up to 32 bits. */
template <typename T> struct opdi_cu_key_from { typedef int32_t type; };
template <> struct opdi_cu_key_from<int64_t> { typedef int64_t type; };
template <> struct opdi_cu_key_from<double> { typedef double type; };
template <> struct opdi_cu_key_from<float> { typedef float type; };
template <> struct opdi_cu_key_from<opdi_cu_f16> { typedef float type; };
template <> struct opdi_cu_key_from<opdi_cu_bf16> { typedef float type; };

/* The arguments for sorting rows of n elements.  Either the first k elements of each row are written to values and
   places [rows][k], or the whole sorted rows are left in keys and index. */
template <typename T> struct opdi_cu_sort {
    typedef typename opdi_cu_key_of<T>::K K;
    const T *x;
    int64_t rows, n, k;
    const uint32_t *picked;                       /* if not NULL, [rows][n] positions in rows of `line` elements: only
                                                     these are sorted */
    int64_t line;
    bool descending;
    K *keys;                                      /* NULL: values and places are written */
    uint32_t *index;
    T *values;
    int64_t *places;
};
template <typename T>
__device__ __forceinline__ typename opdi_cu_key_of<T>::K opdi_cu_key_made(const opdi_cu_sort<T> &s, T v) {
    const typename opdi_cu_key_of<T>::K key = opdi_cu_key(opdi_cu_cast<typename opdi_cu_key_from<T>::type>(v));
    return s.descending ? ~key : key;
}
template <typename T>
__device__ __forceinline__ typename opdi_cu_key_of<T>::K opdi_cu_key_at(const opdi_cu_sort<T> &s, int64_t row,
                                                                        int64_t at) {
    return opdi_cu_key_made(s, s.x[row * s.line + at]);
}
/* Sorts tiles, one per block.  A tile has tile / seg rows of n <= seg elements. */
template <typename T> __global__ void opdi_cu_sort_tiles(const opdi_cu_sort<T> s, int tile, int seg) {
    typedef typename opdi_cu_key_of<T>::K K;
    OPDI_CU_SHARED(scratch);
    K *keys = (K *)scratch;
    uint32_t *index = (uint32_t *)(keys + tile);
    const int64_t rows = tile / seg, tiles = opdi_cu_ceil(s.rows, rows);       /* rows: number of rows per tile */
    for (int64_t t = blockIdx.x; t < tiles; t += gridDim.x) {
        const int64_t row0 = t * rows;
        __syncthreads();
        for (int i = (int)threadIdx.x; i < tile; i += (int)blockDim.x) {
            const int64_t row = row0 + i / seg, at = i % seg;
            keys[i] = ~(K)0; index[i] = ~(uint32_t)0;
            if (row < s.rows && at < s.n) {
                const uint32_t place = s.picked ? s.picked[row * s.n + at] : (uint32_t)at;
                keys[i] = opdi_cu_key_at(s, row, place);
                index[i] = place;
            }
        }
        for (int size = 2; size <= seg; size *= 2) {
            for (int apart = size / 2; apart > 0; apart /= 2) {
                __syncthreads();
                for (int p = (int)threadIdx.x; p < tile / 2; p += (int)blockDim.x) {
                    const int i = 2 * p - (p & (apart - 1)), j = i + apart;       /* apart: a power of two */
                    const K a = keys[i], b = keys[j];
                    const uint32_t c = index[i], d = index[j];
                    const bool later = a > b || (a == b && c > d), up = !(i & size & (seg - 1));
                    if (later == up) { keys[i] = b; keys[j] = a; index[i] = d; index[j] = c; }
                }
            }
        }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < tile; i += (int)blockDim.x) {
            const int64_t row = row0 + i / seg, at = i % seg;
            if (row >= s.rows || at >= s.n) { continue; }
            if (s.keys) { s.keys[row * s.n + at] = keys[i]; s.index[row * s.n + at] = index[i]; }
            else if (at < s.k) {
                s.values[row * s.k + at] = s.x[row * s.line + index[i]];
                s.places[row * s.k + at] = index[i];
            }
        }
    }
}
//== sorting long rows by radix ========================================================================================
//
//  Rows of pairs (element, index) are sorted digit by digit of 8 bits, beginning with the lowest digit; each pass is
//  stable.  An element is stored as an unsigned number of its size, in the order of the values, from which the value
//  can be made again.  Only the digits see -0 as 0 and each NaN as the greatest number, so that ties are decided by the
//  order in which they came.  A row of up to a tile is sorted by one block in shared memory.  Longer rows are cut into
//  tiles.  One kernel counts the digits of all passes.  A pass is one kernel: a block ranks the digits of its tile,
//  publishes its counts, and adds the counts of the tiles before it, which their blocks publish (a tile waits only for
//  tiles whose blocks have begun).

enum { OPDI_CU_RADIX = 256, OPDI_CU_RADIX_THREADS = 512, OPDI_CU_RADIX_WARPS = OPDI_CU_RADIX_THREADS / OPDI_CU_WARP };

/* The unsigned type of so many bytes. */
template <int bytes> struct opdi_cu_radix_bits;
template <> struct opdi_cu_radix_bits<1> { typedef uint8_t type; };
template <> struct opdi_cu_radix_bits<2> { typedef uint16_t type; };
template <> struct opdi_cu_radix_bits<4> { typedef uint32_t type; };
template <> struct opdi_cu_radix_bits<8> { typedef uint64_t type; };
/* Elements as unsigned numbers: `in` makes the number, `out` makes the element again, and `digits` returns the number
   whose digits are sorted. */
template <typename T> struct opdi_cu_radix_key {
    typedef typename opdi_cu_radix_bits<sizeof(T)>::type K;
    static constexpr bool floating = std::is_same<T, float>::value || std::is_same<T, double>::value ||
        std::is_same<T, opdi_cu_f16>::value || std::is_same<T, opdi_cu_bf16>::value;
    static constexpr bool negative = floating || (std::is_signed<T>::value && !std::is_same<T, bool>::value);
    static constexpr K top = (K)((K)1 << (sizeof(K) * 8 - 1));
    /* the largest key of a number that is not NaN: that of infinity */
    static constexpr K last = (K)(top | (sizeof(T) == 8 ? (K)0x7ff0000000000000ull : sizeof(T) == 4 ? (K)0x7f800000u
                                         : std::is_same<T, opdi_cu_f16>::value ? (K)0x7c00u : (K)0x7f80u));
    static __device__ __forceinline__ K in(T v) {
        K k;
        memcpy(&k, &v, sizeof k);
        return !negative ? k : floating && (k & top) ? (K)~k : (K)(k ^ top);
    }
    static __device__ __forceinline__ T out(K k) {
        T v;
        if (negative) { k = floating && !(k & top) ? (K)~k : (K)(k ^ top); }
        memcpy(&v, &k, sizeof v);
        return v;
    }
    static __device__ __forceinline__ K digits(K k, bool descending) {
        if (floating) { k = k > last || k < (K)~last ? (K)~(K)0 : k == (K)(top - 1) ? top : k; }
        return descending ? (K)~k : k;
    }
};
/* How many elements a thread sorts: of a row that fits into a block, and of a tile; and how many blocks with tiles
   share a multiprocessor (two leave 64 registers to a thread; with smaller integers, the compiler needs some more). */
template <typename T> struct opdi_cu_radix_each {
    enum {
        of_row = sizeof(T) == 8 ? 8 : 16, of_tile = sizeof(T) == 8 ? 6 : 12,
        blocks = sizeof(T) == 8 || opdi_cu_radix_key<T>::floating ? 2 : 1
    };
};
/* The memory that a block shares. */
template <typename K, int E> struct opdi_cu_radix_shared {
    uint32_t counts[OPDI_CU_RADIX_WARPS][OPDI_CU_RADIX];      /* of each digit in a warp's elements, then in all warps
                                                                 before */
    uint32_t first[OPDI_CU_RADIX], sums[OPDI_CU_WARP];        /* first: the rank of the first element with a digit */
    uint32_t to[OPDI_CU_RADIX];                               /* where the element of rank 0 would be written, if it had
                                                                 this digit, modulo 2^32 */
    unsigned tile;
    union { K keys[OPDI_CU_RADIX_THREADS * E]; uint32_t index[OPDI_CU_RADIX_THREADS * E]; } u;
};
/* Adds to rank[e], whose low 16 bits are 0, the rank of the thread's element e, with the digit digit_of(e), among the
   block's elements, which are in the order of their positions: element e of lane l of warp w is at
   w * 32 * E + e * 32 + l.  Returns how many elements have the digit threadIdx.x; s->first[threadIdx.x] is the rank of
   the first. */
template <typename K, int E, typename F>
__device__ __forceinline__ uint32_t opdi_cu_radix_rank(opdi_cu_radix_shared<K, E> *s, uint32_t *rank,
                                                       const F &digit_of) {
    const int lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP, me = (int)threadIdx.x;
    uint32_t *counts = s->counts[warp], sum = 0, all;
    for (int d = lane; d < OPDI_CU_RADIX; d += OPDI_CU_WARP) { counts[d] = 0; }
    __syncwarp();
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) {
        const uint32_t digit = digit_of(e);
        unsigned alike = OPDI_CU_ALL_LANES;
        OPDI_CU_UNROLL
        for (int b = 0; b < 8; b++) {
            const unsigned yes = __ballot_sync(OPDI_CU_ALL_LANES, digit >> b & 1);
            alike &= digit >> b & 1 ? yes : ~yes;
        }
        const int before = __popc(alike & ((1u << lane) - 1));
        const uint32_t was = counts[digit];
        __syncwarp();
        if (before == 0) { counts[digit] = was + (uint32_t)__popc(alike); }
        __syncwarp();
        rank[e] += was + (uint32_t)before;
    }
    __syncthreads();
    if (me < OPDI_CU_RADIX) {
        OPDI_CU_UNROLL
        for (int w = 0; w < OPDI_CU_RADIX_WARPS; w++) {
            const uint32_t of = s->counts[w][me];
            s->counts[w][me] = sum;
            sum += of;
        }
    }
    all = sum;
    for (int d = 1; d < OPDI_CU_WARP; d *= 2) {
        const uint32_t left = __shfl_up_sync(OPDI_CU_ALL_LANES, all, d);
        if (lane >= d) { all += left; }
    }
    if (lane == OPDI_CU_WARP - 1) { s->sums[warp] = all; }
    __syncthreads();
    if (me < OPDI_CU_RADIX) {
        for (int w = 0; w < warp; w++) { all += s->sums[w]; }
        s->first[me] = all - sum;
    }
    __syncthreads();
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) { rank[e] += s->first[digit_of(e)] + counts[digit_of(e)]; }
    return sum;
}
/* Writes the element at place `at` of the sorted row `row`, or its key. */
template <typename T>
__device__ __forceinline__ void opdi_cu_radix_put(const opdi_cu_sort<T> &s, int64_t row, int64_t at, T v) {
    if (s.keys) { s.keys[row * s.n + at] = opdi_cu_key_made(s, v); }
    else if (at < s.k) { s.values[row * s.k + at] = v; }
}
/* Writes the index of the element at place `at` of the sorted row `row`. */
template <typename T>
__device__ __forceinline__ void opdi_cu_radix_put_index(const opdi_cu_sort<T> &s, int64_t row, int64_t at, uint32_t i) {
    if (s.keys) { s.index[row * s.n + at] = i; }
    else if (at < s.k) { s.places[row * s.k + at] = i; }
}
/* Sorts rows of at most OPDI_CU_RADIX_THREADS * E elements, one per block. */
template <typename T, int E> __global__ void __launch_bounds__(OPDI_CU_RADIX_THREADS)
opdi_cu_radix_rows(const opdi_cu_sort<T> s) {
    typedef opdi_cu_radix_key<T> R;
    typedef typename R::K K;
    OPDI_CU_SHARED(scratch);
    opdi_cu_radix_shared<K, E> *shared = (opdi_cu_radix_shared<K, E> *)scratch;
    const int lane = threadIdx.x % OPDI_CU_WARP, from = (int)threadIdx.x / OPDI_CU_WARP * OPDI_CU_WARP * E + lane;
    for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
        K key[E];
        uint32_t index[E];                        /* the index of the element in the high half; its rank in the low */
        OPDI_CU_UNROLL
        for (int e = 0; e < E; e++) {
            const int at = from + e * OPDI_CU_WARP;
            index[e] = (uint32_t)at << 16;
            key[e] = at < s.n ? R::in(s.x[row * s.n + at]) : K(0);
        }
        OPDI_CU_ROLLED
        for (int shift = 0; shift < (int)sizeof(K) * 8; shift += 8) {
            (void)opdi_cu_radix_rank<K, E>(shared, index, [&](int e) {            /* places behind the row stay there */
                const uint32_t digit = (uint32_t)(R::digits(key[e], s.descending) >> shift) & 255;
                return from + e * OPDI_CU_WARP < s.n ? digit : 255u;
            });
            OPDI_CU_UNROLL
            for (int e = 0; e < E; e++) { shared->u.keys[index[e] & 0xffff] = key[e]; }
            __syncthreads();
            OPDI_CU_UNROLL
            for (int e = 0; e < E; e++) { key[e] = shared->u.keys[from + e * OPDI_CU_WARP]; }
            __syncthreads();
            OPDI_CU_UNROLL
            for (int e = 0; e < E; e++) { shared->u.index[index[e] & 0xffff] = index[e] & 0xffff0000u; }
            __syncthreads();
            OPDI_CU_UNROLL
            for (int e = 0; e < E; e++) { index[e] = shared->u.index[from + e * OPDI_CU_WARP]; }
        }
        OPDI_CU_UNROLL
        for (int e = 0; e < E; e++) {
            const int at = from + e * OPDI_CU_WARP;
            if (at >= s.n) { continue; }
            opdi_cu_radix_put(s, row, at, R::out(key[e]));
            opdi_cu_radix_put_index(s, row, at, index[e] >> 16);
        }
        __syncthreads();
    }
}
/* The passes over long rows.  keys and index [2][rows][n]: a pass reads one half and writes the other; the first reads
   s.x, the last writes the results of s.  counts: [rows][passes][256], the number of elements with each digit, then
   with smaller digits.  words: [tiles][256], the published counts: the low 32 bits are a count, the high 32 bits are
   2 * pass + 1 if it is the tile's own, 2 * pass + 2 if it includes all tiles of the row before.  tickets: [passes]. */
template <typename T> struct opdi_cu_radix_long {
    opdi_cu_sort<T> s;
    typename opdi_cu_radix_key<T>::K *keys;
    uint32_t *index, *counts, *tickets;
    unsigned long long *words;
    int64_t tiles, chunk;                         /* tiles: of a row; chunk: elements that a block counts */
};
template <typename T> __global__ void __launch_bounds__(OPDI_CU_RADIX_THREADS)
opdi_cu_radix_count(const opdi_cu_radix_long<T> p) {
    typedef opdi_cu_radix_key<T> R;
    const int passes = (int)sizeof(T), step = OPDI_CU_RADIX_THREADS, U = 4;
    __shared__ unsigned counts[sizeof(T) * OPDI_CU_RADIX];
    for (int64_t row = blockIdx.y; row < p.s.rows; row += gridDim.y) {
        const int64_t begin = blockIdx.x * p.chunk, end = begin + p.chunk < p.s.n ? begin + p.chunk : p.s.n;
        __syncthreads();
        for (int i = (int)threadIdx.x; i < passes * OPDI_CU_RADIX; i += step) { counts[i] = 0; }
        __syncthreads();
        OPDI_CU_ROLLED
        for (int64_t at = begin + threadIdx.x; at < end; at += U * step) {
            T v[U];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) { v[u] = p.s.x[row * p.s.n + (at + u * step < end ? at + u * step : at)]; }
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                const typename R::K k = R::digits(R::in(v[u]), p.s.descending);
                OPDI_CU_UNROLL
                for (int i = 0; i < passes; i++) {
                    if (at + u * step < end) { atomicAdd(&counts[i * OPDI_CU_RADIX + (int)(k >> i * 8 & 255)], 1u); }
                }
            }
        }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < passes * OPDI_CU_RADIX; i += step) {
            if (counts[i]) { atomicAdd(&p.counts[row * passes * OPDI_CU_RADIX + i], counts[i]); }
        }
    }
}
/* Replaces the counts of each pass by the number of elements with smaller digits; a block of 256 threads processes one
   pass of a row. */
static __global__ void __launch_bounds__(256) opdi_cu_radix_sums(uint32_t *counts, int64_t n) {
    __shared__ uint32_t sums[OPDI_CU_RADIX / OPDI_CU_WARP];
    const int lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP;
    for (int64_t i = blockIdx.x; i < n; i += gridDim.x) {
        const uint32_t mine = counts[i * OPDI_CU_RADIX + threadIdx.x];
        uint32_t all = mine;
        for (int d = 1; d < OPDI_CU_WARP; d *= 2) {
            const uint32_t left = __shfl_up_sync(OPDI_CU_ALL_LANES, all, d);
            if (lane >= d) { all += left; }
        }
        __syncthreads();
        if (lane == OPDI_CU_WARP - 1) { sums[warp] = all; }
        __syncthreads();
        for (int w = 0; w < warp; w++) { all += sums[w]; }
        counts[i * OPDI_CU_RADIX + threadIdx.x] = all - mine;
    }
}
/* Publishes that `mine` elements of tile number `tile` have the calling thread's digit, and returns how many have it in
   the tiles of the row before it, `before` of them. */
template <typename T>
__device__ __forceinline__ uint32_t opdi_cu_radix_before(const opdi_cu_radix_long<T> &p, int pass, int64_t tile,
                                                         int64_t before, uint32_t mine) {
    volatile unsigned long long *word = p.words + tile * OPDI_CU_RADIX + threadIdx.x;
    const unsigned long long own = (unsigned long long)(2 * pass + 1) << 32, all = own + ((unsigned long long)1 << 32);
    uint32_t sum = 0;
    if (before > 0) { *word = own | mine; }
    for (int64_t k = 1; k <= before; k++) {
        volatile unsigned long long *const other = p.words + (tile - k) * OPDI_CU_RADIX + threadIdx.x;
        unsigned long long got = *other;
        while (got < own) { got = *other; }
        sum += (uint32_t)got;
        if (got >= all) { break; }
    }
    *word = all | (sum + mine);
    return sum;
}
template <typename T, int E> __global__ void
__launch_bounds__(OPDI_CU_RADIX_THREADS, opdi_cu_radix_each<T>::blocks)
opdi_cu_radix_pass(const opdi_cu_radix_long<T> p, int pass) {
    typedef opdi_cu_radix_key<T> R;
    typedef typename R::K K;
    OPDI_CU_SHARED(scratch);
    opdi_cu_radix_shared<K, E> *shared = (opdi_cu_radix_shared<K, E> *)scratch;
    const int lane = threadIdx.x % OPDI_CU_WARP, shift = pass * 8, passes = (int)sizeof(K);
    const int from = (int)threadIdx.x / OPDI_CU_WARP * OPDI_CU_WARP * E + lane, whole = OPDI_CU_RADIX_THREADS * E;
    if (threadIdx.x == 0) { shared->tile = atomicAdd(p.tickets + pass, 1u); }
    __syncthreads();
    const int64_t tile = shared->tile, row = tile / p.tiles, before = tile - row * p.tiles, at0 = before * whole;
    const int64_t half = p.s.rows * p.s.n, base = row * p.s.n + at0, in = base + (pass % 2 ? 0 : half);
    const int many = p.s.n - at0 < whole ? (int)(p.s.n - at0) : whole;
    K key[E];
    uint32_t rank[E];
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) {
        const int at = from + e * OPDI_CU_WARP;
        rank[e] = 0;
        key[e] = at >= many ? K(0) : pass == 0 ? R::in(p.s.x[base + at]) : p.keys[in + at];
    }
    const uint32_t mine = opdi_cu_radix_rank<K, E>(shared, rank, [&](int e) {
        const uint32_t digit = (uint32_t)(R::digits(key[e], p.s.descending) >> shift) & 255;
        return from + e * OPDI_CU_WARP < many ? digit : 255u;                    /* behind the row: ranked last */
    });
    if (threadIdx.x < OPDI_CU_RADIX) {
        const uint32_t others = opdi_cu_radix_before(p, pass, tile, before, mine);
        shared->to[threadIdx.x] = p.counts[(row * passes + pass) * OPDI_CU_RADIX + threadIdx.x] + others -
            shared->first[threadIdx.x];
    }
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) { shared->u.keys[rank[e]] = key[e]; }
    __syncthreads();
    const int64_t out = row * p.s.n + (pass % 2 ? half : 0);
    uint32_t to[E];
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) {                 /* neighbours write to neighbouring places */
        const int at = (int)threadIdx.x + e * OPDI_CU_RADIX_THREADS;
        const K k = shared->u.keys[at];
        to[e] = shared->to[(uint32_t)(R::digits(k, p.s.descending) >> shift) & 255] + (uint32_t)at;
        if (at >= many) { continue; }
        if (pass + 1 < passes) { p.keys[out + to[e]] = k; }
        else { opdi_cu_radix_put(p.s, row, to[e], R::out(k)); }
    }
    __syncthreads();
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) {
        const int at = from + e * OPDI_CU_WARP;
        shared->u.index[rank[e]] = pass == 0 ? (uint32_t)(at0 + at) : at < many ? p.index[in + at] : 0;
    }
    __syncthreads();
    OPDI_CU_UNROLL
    for (int e = 0; e < E; e++) {
        const int at = (int)threadIdx.x + e * OPDI_CU_RADIX_THREADS;
        const uint32_t i = shared->u.index[at];
        if (at >= many) { continue; }
        if (pass + 1 < passes) { p.index[out + to[e]] = i; } else { opdi_cu_radix_put_index(p.s, row, to[e], i); }
    }
}
/* Sorts rows of more than one tile; s->keys, s->index or s->values, s->places have memory for the results.  Returns 0,
   or -1 and sets an error. */
template <typename T, int E> static int opdi_cu_radix_run(const opdi_cu_sort<T> *s) {
    typedef typename opdi_cu_radix_key<T>::K K;
    const int64_t passes = (int64_t)sizeof(T), all = s->rows * s->n, tile = OPDI_CU_RADIX_THREADS * E;
    opdi_cu_radix_long<T> p;
    p.s = *s;
    p.tiles = opdi_cu_ceil(s->n, tile);
    const int64_t words = s->rows * p.tiles * OPDI_CU_RADIX * 8, counts = s->rows * passes * OPDI_CU_RADIX * 4;
    char *zeros = (char *)opdi_cu_scratch(words + counts + passes * 4);
    p.keys = (K *)opdi_cu_scratch(passes > 1 ? 2 * all * (int64_t)sizeof(K) : 1);
    p.index = (uint32_t *)opdi_cu_scratch(passes > 1 ? 2 * all * 4 : 1);
    if (!zeros || !p.keys || !p.index) { return -1; }
    if (s->rows * p.tiles > INT32_MAX) {
        return opd_fail(OPD_ERROR_SHAPE, "sorting %lld elements at once is not implemented on CUDA", (long long)all);
    }
    p.words = (unsigned long long *)zeros;
    p.counts = (uint32_t *)(zeros + words);
    p.tickets = (uint32_t *)(zeros + words + counts);
    OPDI_CU_TRY(cudaMemsetAsync(zeros, 0, (size_t)(words + counts + passes * 4), opdi_cu_stream()), "sort");
    const int64_t chunks = opdi_cu_ceil(1024, s->rows), most = opdi_cu_ceil(s->n, 8192);
    p.chunk = opdi_cu_ceil(s->n, chunks < most ? chunks : most);
    const dim3 grid((unsigned)opdi_cu_ceil(s->n, p.chunk), s->rows < 65535 ? (unsigned)s->rows : 65535u);
    if (opdi_cu_launch(opdi_cu_radix_count<T>, grid, dim3(OPDI_CU_RADIX_THREADS), 0, p) ||
        opdi_cu_launch(opdi_cu_radix_sums, opdi_cu_grid_rows(s->rows * passes), dim3(256), 0, p.counts,
                       s->rows * passes)) { return -1; }
    for (int pass = 0; pass < (int)passes; pass++) {
        if (opdi_cu_launch(opdi_cu_radix_pass<T, E>, dim3((unsigned)(s->rows * p.tiles)), dim3(OPDI_CU_RADIX_THREADS),
                           sizeof(opdi_cu_radix_shared<K, E>), p, pass)) { return -1; }
    }
    return 0;
}
/* Sorts all rows.  If `keep` is true, leaves the sorted rows in s->keys and s->index; otherwise writes s->values and
   s->places.  Returns 0, or -1 and sets an error. */
template <typename T> static int opdi_cu_sort_run(opdi_cu_sort<T> *s, bool keep) {
    typedef typename opdi_cu_key_of<T>::K K;
    enum { E = opdi_cu_radix_each<T>::of_row };
    typedef opdi_cu_radix_shared<typename opdi_cu_radix_key<T>::K, E> shared;
    int seg = 1, tile;
    while (seg < s->n && seg < OPDI_CU_SORTED) { seg *= 2; }
    tile = seg;
    while (tile < OPDI_CU_SORTED && tile / seg < s->rows) { tile *= 2; }
    s->keys = NULL; s->index = NULL;
    if (s->n >= (int64_t)~(uint32_t)0) {
        return opd_fail(OPD_ERROR_SHAPE, "sorting along a dimension of %lld elements is not implemented on CUDA",
                        (long long)s->n);
    }
    if (keep) {
        s->keys = (K *)opdi_cu_scratch(s->rows * s->n * (int64_t)sizeof(K));
        s->index = (uint32_t *)opdi_cu_scratch(s->rows * s->n * (int64_t)sizeof(uint32_t));
        if (!s->keys || !s->index) { return -1; }
    }
    if (s->n > OPDI_CU_RADIX_THREADS * E) { return opdi_cu_radix_run<T, opdi_cu_radix_each<T>::of_tile>(s); }
    if (s->n > OPDI_CU_SORTED) {
        return opdi_cu_launch(opdi_cu_radix_rows<T, E>, opdi_cu_grid_rows(s->rows), dim3(OPDI_CU_RADIX_THREADS),
                              sizeof(shared), *s);
    }
    return opdi_cu_launch(opdi_cu_sort_tiles<T>, opdi_cu_grid_rows(opdi_cu_ceil(s->rows, tile / seg)),
                          dim3(tile / 4 < 64 ? 64 : (unsigned)tile / 4),
                          (size_t)tile * (sizeof(K) + sizeof(uint32_t)), *s, tile, seg);
}
//== selecting the first k elements of long rows, or the k-th ==========================================================
//
//  The k-th element of a row is found without sorting, digit by digit of 11 bits: first the digits of the key, then
//  those of the index.  Because of the index, no two elements are equal, and ties are decided as by a stable sort.  For
//  each digit, a kernel counts the elements whose higher digits match those found so far; if there are few rows,
//  several blocks share a row.  Another kernel then picks the digit of the k-th element.  To get the first k elements,
//  all elements up to the k-th are gathered in any order, and sorted as one tile.  The counts are integers, so results
//  are the same each time.

enum { OPDI_CU_DIGIT_BITS = 11, OPDI_CU_DIGITS = 1 << OPDI_CU_DIGIT_BITS, OPDI_CU_SELECT_THREADS = 512 };
/* The state of the search for a row's k-th element: its highest digits found so far (key, index), and how many elements
   with these digits come before it (before).  done: all elements with these digits are among the first k, so that no
   more digits are needed.  gathered: number of elements gathered. */
typedef struct opdi_cu_found { uint64_t key; uint32_t index, before; int32_t done, gathered; } opdi_cu_found;
enum { OPDI_CU_DIGIT_OF_KEY, OPDI_CU_DIGIT_OF_INDEX, OPDI_CU_DIGIT_NAN };
typedef struct opdi_cu_select {
    opdi_cu_found *found;                         /* [rows] */
    unsigned *counts;                             /* [rows][OPDI_CU_DIGITS]; all 0 before and after each digit */
    uint32_t *picked;                             /* [rows][k] */
    int64_t chunk;                                /* elements of a row that a block processes */
    int what, shift, bits;                        /* what: a member of the enum above; shift, bits: the digit in it */
} opdi_cu_select;

/* Calls f(position, key) for the calling thread's share of the block's chunk of a row. */
template <typename T, typename F>
__device__ __forceinline__ void opdi_cu_select_each(const opdi_cu_sort<T> &s, int64_t row, int64_t chunk, const F &f) {
    const int64_t begin = blockIdx.x * chunk, end = begin + chunk < s.n ? begin + chunk : s.n;
    const int U = 4, step = OPDI_CU_SELECT_THREADS;
    OPDI_CU_ROLLED
    for (int64_t at = begin + threadIdx.x; at < end; at += U * step) {
        T v[U];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { v[u] = s.x[row * s.n + (at + u * step < end ? at + u * step : at)]; }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) {
            if (at + u * step < end) { f((uint32_t)(at + u * step), opdi_cu_key_made(s, v[u])); }
        }
    }
}
template <typename T> __global__ void __launch_bounds__(OPDI_CU_SELECT_THREADS)
opdi_cu_select_count(const opdi_cu_sort<T> s, const opdi_cu_select k) {
    typedef typename opdi_cu_key_of<T>::K K;
    __shared__ unsigned counts[OPDI_CU_DIGITS];
    for (int64_t row = blockIdx.y; row < s.rows; row += gridDim.y) {
        const opdi_cu_found f = k.found[row];
        const int top = k.shift + k.bits;
        const uint64_t key = f.key >> (top < 64 ? top : 0);
        if (f.done) { continue; }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < OPDI_CU_DIGITS; i += OPDI_CU_SELECT_THREADS) { counts[i] = 0; }
        __syncthreads();
        opdi_cu_select_each(s, row, k.chunk, [&](uint32_t at, K of) {
            const uint64_t x = k.what == OPDI_CU_DIGIT_OF_INDEX ? at : of;
            bool alike = top >= 64 || x >> top == key;
            if (k.what == OPDI_CU_DIGIT_OF_INDEX) {
                alike = (uint64_t)of == f.key && (top >= 32 || at >> top == f.index >> top);
            }
            if (k.what == OPDI_CU_DIGIT_NAN) { alike = of == ~(K)0; }
            const uint64_t digit = k.what == OPDI_CU_DIGIT_NAN ? 0 : x >> k.shift & ((1u << k.bits) - 1);
            if (alike) { atomicAdd(&counts[digit], 1u); }
        });
        __syncthreads();
        for (int i = (int)threadIdx.x; i < OPDI_CU_DIGITS; i += OPDI_CU_SELECT_THREADS) {
            if (counts[i]) { atomicAdd(&k.counts[row * OPDI_CU_DIGITS + i], counts[i]); }
        }
    }
}
/* Begins the search for element number kth of each row, counted from 1.  If kth is 0, it is the median, as in
   opdi_cu_sort_pick. */
static __global__ void opdi_cu_select_start(const opdi_cu_select k, int64_t rows, int64_t n, int64_t kth, bool skip) {
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    const opdi_cu_found none = {0, 0, 0, 0, 0};
    if (row >= rows) { return; }
    const int64_t numbers = n - (int64_t)k.counts[row * OPDI_CU_DIGITS];
    k.counts[row * OPDI_CU_DIGITS] = 0;
    k.found[row] = none;
    k.found[row].before = (uint32_t)(kth ? kth - 1 : numbers == n ? (n - 1) / 2 : !skip ? numbers : numbers == 0 ? 0
                                     : (numbers - 1) / 2);
}
/* Picks the digit of the wanted element; a block processes one row.  If `early` is true, the search ends when all
   elements with these digits are among the first k. */
static __global__ void __launch_bounds__(256) opdi_cu_select_digit(const opdi_cu_select k, bool early) {
    __shared__ unsigned warps[8];
    const int each = OPDI_CU_DIGITS / 256, lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP;
    unsigned *counts = k.counts + (int64_t)blockIdx.x * OPDI_CU_DIGITS + threadIdx.x * each;
    opdi_cu_found *f = k.found + blockIdx.x;
    const unsigned before = f->before;
    unsigned mine[each], sum = 0, all, from;
    if (f->done) { return; }
    OPDI_CU_UNROLL
    for (int i = 0; i < each; i++) { mine[i] = counts[i]; sum += mine[i]; counts[i] = 0; }
    all = sum;
    for (int d = 1; d < OPDI_CU_WARP; d *= 2) {
        const unsigned left = __shfl_up_sync(OPDI_CU_ALL_LANES, all, d);
        if (lane >= d) { all += left; }
    }
    if (lane == OPDI_CU_WARP - 1) { warps[warp] = all; }
    __syncthreads();
    from = all - sum;
    for (int w = 0; w < warp; w++) { from += warps[w]; }
    OPDI_CU_UNROLL
    for (int i = 0; i < each; i++) {
        if (before >= from && before - from < mine[i]) {
            const uint64_t digit = (uint64_t)(threadIdx.x * each + i) << k.shift;
            if (k.what == OPDI_CU_DIGIT_OF_KEY) { f->key |= digit; } else { f->index |= (uint32_t)digit; }
            f->before = before - from;
            if (early && before - from + 1 == mine[i]) {
                const uint64_t rest = ((uint64_t)1 << k.shift) - 1;
                f->done = 1;
                if (k.what == OPDI_CU_DIGIT_OF_KEY) { f->key |= rest; f->index = ~(uint32_t)0; }
                else { f->index |= (uint32_t)rest; }
            }
        }
        from += mine[i];
    }
}
template <typename T> __global__ void __launch_bounds__(OPDI_CU_SELECT_THREADS)
opdi_cu_select_gather(const opdi_cu_sort<T> s, const opdi_cu_select k) {
    for (int64_t row = blockIdx.y; row < s.rows; row += gridDim.y) {
        const uint64_t last = k.found[row].key;       /* not the whole struct, as other threads change `gathered` */
        const uint32_t index = k.found[row].index;
        opdi_cu_select_each(s, row, k.chunk, [&](uint32_t at, typename opdi_cu_key_of<T>::K key) {
            if (key < last || (key == last && at <= index)) {
                const int slot = atomicAdd(&k.found[row].gathered, 1);
                if (slot < s.k) { k.picked[row * s.k + slot] = at; }
            }
        });
    }
}
template <typename T> __global__ void opdi_cu_select_emit(const opdi_cu_sort<T> s, const opdi_cu_select k) {
    const int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= s.rows) { return; }
    s.values[row] = s.x[row * s.n + k.found[row].index];
    if (s.places) { s.places[row] = k.found[row].index; }
}
/* Returns the number of bits of v, without leading zeros. */
static int opdi_cu_bits(uint64_t v) {
    int bits = 0;
    for (; v; v >>= 1) { bits++; }
    return bits;
}
/* Returns whether it is less work to select the first k of n elements than to sort all. */
static bool opdi_cu_select_pays(int64_t n, int64_t k) {
    return n >= 8 * OPDI_CU_SORTED && k <= OPDI_CU_SORTED && n < (int64_t)~(uint32_t)0;
}
/* Finds element number kth of each row, counted from 1, or, if kth is 0, the median.  `floating`: there may be NaN.
   `skip`: see opdi_cu_sort_pick; `early`: see opdi_cu_select_digit.  Returns 0, or -1 and sets an error. */
template <typename T> static int opdi_cu_select_run(const opdi_cu_sort<T> *s, opdi_cu_select *k, int64_t kth,
                                                    bool floating, bool skip, bool early) {
    const int64_t chunks = opdi_cu_ceil(2048, s->rows), most = s->n / 8192;
    const int of[2] = {(int)sizeof(typename opdi_cu_key_of<T>::K) * 8, opdi_cu_bits((uint64_t)s->n - 1)};
    k->chunk = opdi_cu_ceil(s->n, chunks < most ? chunks : most);
    k->found = (opdi_cu_found *)opdi_cu_scratch(s->rows * (int64_t)sizeof(opdi_cu_found));
    k->counts = (unsigned *)opdi_cu_scratch(s->rows * OPDI_CU_DIGITS * 4);
    if (!k->found || !k->counts) { return -1; }
    OPDI_CU_TRY(cudaMemsetAsync(k->found, 0, (size_t)s->rows * sizeof(opdi_cu_found), opdi_cu_stream()), "topk");
    OPDI_CU_TRY(cudaMemsetAsync(k->counts, 0, (size_t)s->rows * OPDI_CU_DIGITS * 4, opdi_cu_stream()), "topk");
    const dim3 grid((unsigned)opdi_cu_ceil(s->n, k->chunk), s->rows < 65535 ? (unsigned)s->rows : 65535u);
    k->what = OPDI_CU_DIGIT_NAN; k->shift = k->bits = 0;
    if (kth == 0 && floating &&
        opdi_cu_launch(opdi_cu_select_count<T>, grid, OPDI_CU_SELECT_THREADS, 0, *s, *k)) { return -1; }
    if (opdi_cu_launch(opdi_cu_select_start, (unsigned)opdi_cu_ceil(s->rows, 64), 64, 0, *k, s->rows, s->n, kth,
                       skip)) { return -1; }
    for (k->what = OPDI_CU_DIGIT_OF_KEY; k->what <= OPDI_CU_DIGIT_OF_INDEX; k->what++) {
        for (int left = of[k->what]; left > 0; left = k->shift) {
            k->bits = left < OPDI_CU_DIGIT_BITS ? left : OPDI_CU_DIGIT_BITS;
            k->shift = left - k->bits;
            if (opdi_cu_launch(opdi_cu_select_count<T>, grid, OPDI_CU_SELECT_THREADS, 0, *s, *k) ||
                opdi_cu_launch(opdi_cu_select_digit, (unsigned)s->rows, 256, 0, *k, early)) { return -1; }
        }
    }
    return 0;
}
/* Writes the first s->k elements of each row, sorted, to s->values and s->places.  Returns 0, or -1 and sets an
   error. */
template <typename T> static int opdi_cu_select_first(opdi_cu_sort<T> *s) {
    opdi_cu_select k;
    k.picked = (uint32_t *)opdi_cu_scratch(s->rows * s->k * 4);
    if (!k.picked || opdi_cu_select_run(s, &k, s->k, false, false, true)) { return -1; }
    const dim3 grid((unsigned)opdi_cu_ceil(s->n, k.chunk), s->rows < 65535 ? (unsigned)s->rows : 65535u);
    if (opdi_cu_launch(opdi_cu_select_gather<T>, grid, OPDI_CU_SELECT_THREADS, 0, *s, k)) { return -1; }
    s->picked = k.picked;
    s->n = s->k;
    return opdi_cu_sort_run(s, false);
}
template <typename T> static int opdi_cu_select_one(opdi_cu_sort<T> *s, int64_t kth, bool floating, bool skip) {
    opdi_cu_select k;
    k.picked = NULL;
    if (opdi_cu_select_run(s, &k, kth, floating, skip, false)) { return -1; }
    return opdi_cu_launch(opdi_cu_select_emit<T>, (unsigned)opdi_cu_ceil(s->rows, 64), 64, 0, *s, k);
}
/* Returns t with `dim` as its last dim: as a contiguous tensor if `copy` is true, otherwise as a view. */
static opd_tensor *opdi_cu_dim_last(opd_tensor *t, int64_t dim, bool copy) {
    if (t && opd_ndim(t) > 1) { t = opd_movedim(t, dim, -1); }
    return t && copy ? opd_contiguous(t) : t;
}
/* Writes the first k elements along dim (all, if k < 0), sorted, and their indices to the call's two results.  Returns
   0, or -1 and sets an error. */
static int opdi_cu_sort_of(opd_call *call, int64_t dim, int64_t k, bool descending) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out[2], *last[2], *staging[2];
    if (opd_results_from_fake(call)) { return -1; }
    x = opdi_cu_dim_last(x, dim, true);
    if (!x) { return -1; }
    for (int i = 0; i < 2; i++) {
        out[i] = opdi_cu_result(call, i);
        last[i] = opdi_cu_dim_last(out[i], dim, false);
        if (!last[i] || !(staging[i] = opdi_cu_staging(last[i]))) { return -1; }
    }
    if (opd_numel(out[0]) == 0) { return 0; }
    OPDI_CU_ALL(opd_dtype(x), T, {
        opdi_cu_sort<T> s;
        s.x = opdi_cu_data<T>(x);
        s.n = s.line = opd_ndim(x) ? opd_size(x, -1) : 1;
        s.rows = opd_numel(x) / s.n;
        s.picked = NULL;
        s.k = k < 0 ? s.n : k;
        s.descending = descending;
        s.values = opdi_cu_data<T>(staging[0]); s.places = opdi_cu_data<int64_t>(staging[1]);
        if (opdi_cu_select_pays(s.n, s.k) ? opdi_cu_select_first(&s) : opdi_cu_sort_run(&s, false)) { return -1; }
    })
    return opdi_cu_staging_store(last[0], staging[0]) || opdi_cu_staging_store(last[1], staging[1]) ? -1 : 0;
}
static int opdi_cu_sort_plain(opd_call *call) {
    return opdi_cu_sort_of(call, opd_arg_int(call, 1), -1, opd_arg_bool(call, 2));
}
static int opdi_cu_sort_stable(opd_call *call) {
    return opdi_cu_sort_of(call, opd_arg_int(call, 2), -1, opd_arg_bool(call, 3));
}
static int opdi_cu_topk(opd_call *call) {
    return opdi_cu_sort_of(call, opd_arg_int(call, 2), opd_arg_int(call, 1), opd_arg_bool(call, 3));
}

//== kthvalue, median, mode ============================================================================================

/* Picks element number k of each sorted row, counted from 1.  If k is 0, picks the median (of two, the lower).  The
   median is NaN if the row has a NaN; if `skip` is true, NaN is ignored. */
template <typename T> __global__ void opdi_cu_sort_pick(const opdi_cu_sort<T> s, int64_t k, bool floating, bool skip) {
    typedef typename opdi_cu_key_of<T>::K K;
    for (int64_t row = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; row < s.rows;
         row += (int64_t)gridDim.x * blockDim.x) {
        const K *keys = s.keys + row * s.n;
        int64_t at = k - 1;
        if (k == 0) {
            int64_t low = 0, high = s.n;          /* finds the first NaN */
            while (floating && low < high) {
                const int64_t mid = (low + high) / 2;
                if (keys[mid] == ~(K)0) { high = mid; } else { low = mid + 1; }
            }
            const int64_t numbers = high;
            at = numbers == s.n ? (s.n - 1) / 2 : !skip ? numbers : numbers == 0 ? 0 : (numbers - 1) / 2;
        }
        at = s.index[row * s.n + at];
        s.values[row] = s.x[row * s.n + at];
        if (s.places) { s.places[row] = at; }
    }
}
/* A run of `many` equal elements of a sorted row, which begins at `first`.  The mode is the value of the longest run
   (of several, the smallest value), and its index is that of the run's last element.  A block processes one row. */
typedef struct opdi_cu_run { int64_t many, first; } opdi_cu_run;
struct opdi_cu_run_join {
    __device__ __forceinline__ opdi_cu_run operator()(opdi_cu_run a, opdi_cu_run b) const {
        return b.many > a.many || (b.many == a.many && b.first < a.first) ? b : a;
    }
};
template <typename T> __global__ void opdi_cu_sort_mode(const opdi_cu_sort<T> s) {
    typedef typename opdi_cu_key_of<T>::K K;
    for (int64_t row = blockIdx.x; row < s.rows; row += gridDim.x) {
        const K *keys = s.keys + row * s.n;
        const opdi_cu_run none = {0, 0};
        opdi_cu_run best = none;
        for (int64_t i = threadIdx.x; i < s.n; i += blockDim.x) {
            int64_t low = i + 1, high, step = 1;
            const K key = keys[i];
            if (i > 0 && keys[i - 1] == key) { continue; }
            while (low + step <= s.n && keys[low + step - 1] == key) { low += step; step *= 2; }
            high = low + step - 1 < s.n ? low + step - 1 : s.n;   /* the run ends at a position from low to high */
            while (low < high) {
                const int64_t mid = (low + high) / 2;
                if (keys[mid] == key) { low = mid + 1; } else { high = mid; }
            }
            const opdi_cu_run run = {low - i, i};
            best = best.many == 0 ? run : opdi_cu_run_join()(best, run);
        }
        best = opdi_cu_block_reduce(best, opdi_cu_run_join(), none);
        if (threadIdx.x == 0) {
            const int64_t at = s.index[row * s.n + best.first + best.many - 1];
            s.values[row] = s.x[row * s.n + at];
            s.places[row] = at;
        }
    }
}
enum { OPDI_CU_PICK, OPDI_CU_MODE };
/* Picks one element from each row of x, a contiguous tensor whose last dim holds the rows: if `what` is OPDI_CU_PICK,
   element number k (see opdi_cu_sort_pick), otherwise the mode.  Writes the elements to `values` and, unless it is
   NULL, their indices to `places`.  Returns 0, or -1 and sets an error. */
static int opdi_cu_pick_rows(opd_tensor *x, opd_tensor *values, opd_tensor *places, int what, int64_t k, bool skip) {
    OPDI_CU_ALL(opd_dtype(x), T, {
        opdi_cu_sort<T> s;
        s.x = opdi_cu_data<T>(x);
        s.n = s.line = opd_ndim(x) ? opd_size(x, -1) : 1;
        s.rows = opd_numel(x) / s.n;
        s.picked = NULL;
        s.k = 1;
        s.descending = false;
        s.values = opdi_cu_data<T>(values); s.places = places ? opdi_cu_data<int64_t>(places) : NULL;
        if (what == OPDI_CU_PICK && opdi_cu_select_pays(s.n, 1)) {
            return opdi_cu_select_one(&s, k, opd_dtype_is_floating(opd_dtype(x)), skip);
        }
        if (opdi_cu_sort_run(&s, true)) { return -1; }
        if (what == OPDI_CU_MODE) {
            return opdi_cu_launch(opdi_cu_sort_mode<T>, opdi_cu_grid_rows(s.rows), dim3(s.n < 256 ? 32 : 256), 0, s);
        }
        return opdi_cu_launch(opdi_cu_sort_pick<T>, opdi_cu_grid(s.rows, 64), dim3(64), 0, s, k,
                              opd_dtype_is_floating(opd_dtype(x)), skip);
    })
    return 0;
}
static int opdi_cu_pick_of(opd_call *call, int64_t dim, int what, int64_t k, bool skip) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out[2], *staging[2];
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < 2; i++) {
        out[i] = opdi_cu_result(call, i);
        if (!(staging[i] = opdi_cu_staging(out[i]))) { return -1; }
    }
    if (opd_numel(out[0]) == 0) { return 0; }
    x = opdi_cu_dim_last(x, dim, true);
    if (!x || opdi_cu_pick_rows(x, staging[0], staging[1], what, k, skip)) { return -1; }
    return opdi_cu_staging_store(out[0], staging[0]) || opdi_cu_staging_store(out[1], staging[1]) ? -1 : 0;
}
static int opdi_cu_kthvalue(opd_call *call) {
    return opdi_cu_pick_of(call, opd_arg_int(call, 2), OPDI_CU_PICK, opd_arg_int(call, 1), false);
}
static int opdi_cu_median_dim(opd_call *call) {
    return opdi_cu_pick_of(call, opd_arg_int(call, 1), OPDI_CU_PICK, 0, false);
}
static int opdi_cu_nanmedian_dim(opd_call *call) {
    return opdi_cu_pick_of(call, opd_arg_int(call, 1), OPDI_CU_PICK, 0, true);
}
static int opdi_cu_mode(opd_call *call) {
    return opdi_cu_pick_of(call, opd_arg_int(call, 1), OPDI_CU_MODE, 0, false);
}
/* Computes the median of all elements; `skip`: see opdi_cu_sort_pick.  If there are no elements, the result is NaN for
   floating types, the smallest number for int64 and int32, and 0 for other types.  Returns 0, or -1 and sets an
   error. */
static int opdi_cu_median_all(opd_call *call, bool skip) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y;
    const int64_t n = opd_numel(x);
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    if (n == 0) {
        const opd_scalar_type t = opd_dtype(x);
        return opd_fill_(y, opd_dtype_is_floating(t) ? opd_value_double((double)NAN)
                         : opd_value_int(t == OPD_INT64 ? INT64_MIN : t == OPD_INT32 ? INT32_MIN : 0)) ? 0 : -1;
    }
    x = opdi_cu_seen_as(opd_contiguous(x), &n, 1);
    return x ? opdi_cu_pick_rows(x, y, NULL, OPDI_CU_PICK, 0, skip) : -1;
}
static int opdi_cu_median(opd_call *call) { return opdi_cu_median_all(call, false); }
static int opdi_cu_nanmedian(opd_call *call) { return opdi_cu_median_all(call, true); }

static const opdi_cu_registration opdi_cu_table_scans[] = {
    {"cumsum", opdi_cu_cumsum}, {"cumprod", opdi_cu_cumprod}, {"logcumsumexp", opdi_cu_logcumsumexp},
    {"cummax", opdi_cu_cummax}, {"cummin", opdi_cu_cummin},
    {"sort", opdi_cu_sort_plain}, {"sort.stable", opdi_cu_sort_stable}, {"topk", opdi_cu_topk},
    {"kthvalue", opdi_cu_kthvalue}, {"median.dim", opdi_cu_median_dim}, {"nanmedian.dim", opdi_cu_nanmedian_dim},
    {"mode", opdi_cu_mode}, {"median", opdi_cu_median}, {"nanmedian", opdi_cu_nanmedian},
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:indexing    indexing, joining, scattering
//
//  Nearly all kernels of this section are the same loop over positions, which calls a functor for each position.
//  Elements are moved by their size, so that one kernel per size serves all dtypes.
//----------------------------------------------------------------------------------------------------------------------

//== the loop over positions ===========================================================================================

template <class F> __global__ void opdi_cu_each_kernel(int64_t n, F f) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) { f(i); }
}
template <class F> static int opdi_cu_each(int64_t n, const F &f) {
    const int block = 256;
    return n <= 0 ? 0 : opdi_cu_launch(opdi_cu_each_kernel<F>, opdi_cu_grid(n, block), block, 0, n, f);
}
/* Runs the statements with T the type of a unit of `bytes` bytes. */
#define OPDI_CU_UNITS(bytes, T, ...) \
    switch (bytes) { OPDI_CU_CASE(1, uint8_t, T, __VA_ARGS__) OPDI_CU_CASE(2, uint16_t, T, __VA_ARGS__) \
        OPDI_CU_CASE(4, uint32_t, T, __VA_ARGS__) OPDI_CU_CASE(8, uint64_t, T, __VA_ARGS__) \
        default: { typedef opdi_cu_16 T; __VA_ARGS__; break; } }
/* Returns i / n, and sets *r to the remainder.  Divides in 32 bits if both numbers fit, as they nearly always do. */
static __device__ __forceinline__ int64_t opdi_cu_divide(int64_t i, int64_t n, int64_t *r) {
    if (((uint64_t)(i | n) >> 32) == 0) {
        const uint32_t q = (uint32_t)i / (uint32_t)n;
        *r = (int64_t)((uint32_t)i - q * (uint32_t)n);
        return (int64_t)q;
    }
    const int64_t q = i / n;
    *r = i - q * n;
    return q;
}

/* Sizes, and the strides of K operands in elements. */
template <int K> struct opdi_cu_strided {
    int n;
    int64_t size[OPD_MAX_DIMS], stride[K][OPD_MAX_DIMS];
    /* Computes the offset of position i, in row-major order, in each operand. */
    __device__ __forceinline__ void at(int64_t i, int64_t *offset) const {
        for (int k = 0; k < K; k++) { offset[k] = 0; }
        for (int d = n - 1; d > 0; d--) {
            int64_t r;
            i = opdi_cu_divide(i, size[d], &r);
            for (int k = 0; k < K; k++) { offset[k] += r * stride[k][d]; }
        }
        if (n > 0) { for (int k = 0; k < K; k++) { offset[k] += i * stride[k][0]; } }
    }
    void begin() { n = 0; }
    /* Adds a dim of size s inside the existing dims.  It is joined with the dim before it if that is possible for all
       operands. */
    void add(int64_t s, const int64_t *strides) {
        int k;
        if (s == 1) { return; }
        for (k = 0; n > 0 && k < K && stride[k][n - 1] == strides[k] * s; k++) { }
        if (n > 0 && k == K) { size[n - 1] *= s; } else { size[n++] = s; }
        for (k = 0; k < K; k++) { stride[k][n - 1] = strides[k]; }
    }
};

//== tensors ===========================================================================================================

/* Returns `dim` counted from the front.  A 0-dim tensor counts as if it had one dim. */
static int opdi_cu_dim(int64_t dim, const opd_tensor *t) {
    const int n = opd_ndim(t) > 0 ? opd_ndim(t) : 1;
    return (int)(dim < 0 ? dim + n : dim);
}
/* Returns t as a contiguous tensor of `dtype`; this is t itself if possible. */
static opd_tensor *opdi_cu_as(opd_tensor *t, opd_scalar_type dtype) {
    if (t && opd_dtype(t) != dtype) { t = opd_to_dtype(t, dtype); }
    return t && !opd_is_contiguous(t) ? opd_contiguous(t) : t;
}
/* Returns the dtype in which sums are computed: float32 for float32 and 16-bit floats, float64, or int64 for
   integers. */
static opd_scalar_type opdi_cu_compute_dtype(opd_scalar_type t) {
    return t == OPD_FLOAT64 ? OPD_FLOAT64 : opd_dtype_is_floating(t) ? OPD_FLOAT32 : OPD_INT64;
}
/* Returns contiguous memory of `dtype` in which to compute `out`; this is `out` itself if possible. */
static opd_tensor *opdi_cu_staging(opd_tensor *out, opd_scalar_type dtype) {
    return opd_dtype(out) == dtype
        ? opdi_cu_staging(out) : opdi_cu_new(opd_ints_of(opd_sizes(out), opd_ndim(out)), dtype);
}
/* Same as opdi_cu_staging, but the memory has the contents of `out`.  Returns NULL and sets an error if it fails. */
static opd_tensor *opdi_cu_staging_filled(opd_tensor *out, opd_scalar_type dtype) {
    opd_tensor *d = opdi_cu_staging(out, dtype);
    return d == out || (d && opd_copy_(d, out)) ? d : NULL;
}
/* Returns a number as a 0-dim tensor of `dtype` on the device. */
static opd_tensor *opdi_cu_number(opd_value v, opd_scalar_type dtype) {
    opd_tensor *t = opdi_cu_new(opd_ints_of(NULL, 0), dtype);
    return t ? opd_fill_(t, v) : NULL;
}
/* Returns argument i, a Tensor or a Scalar, as a contiguous tensor on the device with this dtype. */
static opd_tensor *opdi_cu_arg_as(opd_call *call, int i, const opd_tensor *like, opd_scalar_type dtype) {
    const opd_value v = opd_arg_value(call, i);
    if (v.tag != OPD_TAG_TENSOR) { return opdi_cu_number(v, dtype); }
    if (opd_tensor_device(v.u.t).type != OPD_CUDA) {                 /* a number in memory of the host */
        return opdi_cu_as(opd_to_device(v.u.t, opd_tensor_device(like), dtype), dtype);
    }
    return opdi_cu_as(v.u.t, dtype);
}
/* Returns the largest power of two, at most 16, that divides `bytes` and the addresses a and b. */
static int64_t opdi_cu_unit(int64_t bytes, uintptr_t a, uintptr_t b) {
    int64_t u = 16;
    while (((uint64_t)bytes | (uint64_t)a | (uint64_t)b) % (uint64_t)u) { u /= 2; }
    return u;
}
static int64_t opdi_cu_span(const int64_t *sizes, int from, int to) {
    int64_t n = 1;
    for (int d = from; d < to; d++) { n *= sizes[d]; }
    return n;
}

//== gather, scatter, and selecting rows ===============================================================================
//
//  For each position p of `index`, there is an element of b at p, and an element of a at p with the coordinate `dim`
//  replaced by index[p].

enum { OPDI_CU_GATHER = 0, OPDI_CU_SCATTER, OPDI_CU_ADD, OPDI_CU_MUL, OPDI_CU_MAX, OPDI_CU_MIN };

static __device__ __forceinline__ float opdi_cu_bits_to(uint32_t x, float *) { return __uint_as_float(x); }
static __device__ __forceinline__ double opdi_cu_bits_to(unsigned long long x, double *) {
    return __longlong_as_double((long long)x);
}
static __device__ __forceinline__ int64_t opdi_cu_bits_to(unsigned long long x, int64_t *) { return (int64_t)x; }
static __device__ __forceinline__ uint32_t opdi_cu_bits_of(float x) { return __float_as_uint(x); }
static __device__ __forceinline__ unsigned long long opdi_cu_bits_of(double x) {
    return (unsigned long long)__double_as_longlong(x);
}
static __device__ __forceinline__ unsigned long long opdi_cu_bits_of(int64_t x) { return (unsigned long long)x; }

/* Returns a * b; int64_t wraps around. */
static __device__ __forceinline__ int64_t opdi_cu_times(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
static __device__ __forceinline__ float opdi_cu_times(float a, float b) { return a * b; }
static __device__ __forceinline__ double opdi_cu_times(double a, double b) { return a * b; }

static __device__ __forceinline__ void opdi_cu_atomic_add(float *p, float v) { atomicAdd(p, v); }
static __device__ __forceinline__ void opdi_cu_atomic_add(double *p, double v) { atomicAdd(p, v); }
static __device__ __forceinline__ void opdi_cu_atomic_add(int64_t *p, int64_t v) {
    atomicAdd((unsigned long long *)p, (unsigned long long)v);
}
/* opdi_cu_load_common and opdi_cu_store_common load and store a number at an address at which other threads may store
   at the same time.  Numbers of up to 8 bytes are stored by one instruction, so that memory never has a mixture of
   two such numbers. */
template <class T> static __device__ __forceinline__ T opdi_cu_load_common(const T *p) {
    return *(const volatile T *)p;
}
template <class T> static __device__ __forceinline__ void opdi_cu_store_common(T *p, T v) { *(volatile T *)p = v; }
static __device__ __forceinline__ void opdi_cu_store_common(opdi_cu_16 *p, opdi_cu_16 v) {
    opdi_cu_store_common(&p->a, v.a);
    opdi_cu_store_common(&p->b, v.b);
}
/* Replaces *p by the combination of *p and v, in one atomic step.  `how` is the operation.  For a maximum or minimum,
   NaN stays. */
template <class T> static __device__ void opdi_cu_atomic(int how, T *p, T v) {
    if (how == OPDI_CU_ADD) { opdi_cu_atomic_add(p, v); return; }
    auto *at = (decltype(opdi_cu_bits_of(v)) *)p;
    auto seen = opdi_cu_load_common(at);
    for (;;) {
        const T u = opdi_cu_bits_to(seen, (T *)0);
        const T w = how == OPDI_CU_MUL ? opdi_cu_times(u, v)
            : how == OPDI_CU_MAX ? (u > v || !(u <= u) ? u : v) : (u < v || !(u <= u) ? u : v);
        const auto was = atomicCAS(at, seen, opdi_cu_bits_of(w));
        if (was == seen) { return; }
        seen = was;
    }
}

/* The operands of a walk over `index`: index itself, `a` (with stride 0 along `dim`), and b. */
struct opdi_cu_indexed {
    opdi_cu_strided<3> walk;
    const int64_t *index;
    void *a, *b;
    int64_t at, size;                             /* stride and size of a along `dim` */
    double alpha;
    int how;
    bool wrap;                                    /* true: negative indices count from the end */
    opdi_cu_guard guard;
    __device__ __forceinline__ bool place(int64_t i, int64_t *pa, int64_t *pb) const {
        int64_t o[3], k;
        walk.at(i, o);
        k = index[o[0]];
        if (wrap && k < 0) { k += size; }
        *pa = o[1] + k * at; *pb = o[2];
        if ((uint64_t)k < (uint64_t)size) { return true; }
        guard.note(index[o[0]], size);
        return false;
    }
};
template <class T> struct opdi_cu_gather : opdi_cu_indexed {
    explicit opdi_cu_gather(const opdi_cu_indexed &x) : opdi_cu_indexed(x) { }
    __device__ void operator()(int64_t i) const {
        int64_t pa, pb;
        const bool there = place(i, &pa, &pb);
        ((T *)b)[pb] = there ? ((const T *)a)[pa] : T();
    }
};
/* Stores elements of b in a.  If an index occurs twice, either of the two elements may remain. */
template <class T> struct opdi_cu_scatter : opdi_cu_indexed {
    explicit opdi_cu_scatter(const opdi_cu_indexed &x) : opdi_cu_indexed(x) { }
    __device__ void operator()(int64_t i) const {
        int64_t pa, pb;
        if (place(i, &pa, &pb)) { opdi_cu_store_common((T *)a + pa, ((const T *)b)[pb]); }
    }
};
/* Combines elements of b with elements of a atomically.  The order of additions varies, as in PyTorch. */
template <class T> struct opdi_cu_scatter_fold : opdi_cu_indexed {
    explicit opdi_cu_scatter_fold(const opdi_cu_indexed &x) : opdi_cu_indexed(x) { }
    __device__ void operator()(int64_t i) const {
        int64_t pa, pb;
        if (place(i, &pa, &pb)) { opdi_cu_atomic(how, (T *)a + pa, opdi_cu_times((T)alpha, ((const T *)b)[pb])); }
    }
};
static int opdi_cu_indexed_ordered(const opd_call *call, const opdi_cu_indexed &f, int64_t n, opd_tensor *a);
/* Gathers, scatters or combines, as `how` says.  a and b have the same dtype.  b has at least the sizes of index, or is
   one number.  Combining is possible only for float32, float64 and int64, in which kernels compute.  Returns 0, or -1
   and sets an error. */
static int opdi_cu_indexed_run(const opd_call *call, int how, opd_tensor *a, int dim, opd_tensor *index,
                               opd_tensor *b, bool wrap, double alpha) {
    const int nd = opd_ndim(a);
    const int64_t n = opd_numel(index);
    opdi_cu_indexed f;
    if (n == 0) { return opd_ok() ? 0 : -1; }
    if (opd_dtype(index) != OPD_INT64 && !(index = opd_to_dtype(index, OPD_INT64))) { return -1; }
    f.walk.begin();
    for (int d = 0; d < opd_ndim(index); d++) {
        const int64_t s[3] = {opd_strides(index)[d], d == dim || nd == 0 ? 0 : opd_strides(a)[d],
                              opd_ndim(b) == 0 ? 0 : opd_strides(b)[d]};
        f.walk.add(opd_sizes(index)[d], s);
    }
    f.index = opdi_cu_data<int64_t>(index); f.a = opdi_cu_data<void>(a); f.b = opdi_cu_data<void>(b);
    f.at = nd ? opd_strides(a)[dim] : 0; f.size = nd ? opd_sizes(a)[dim] : 1;
    f.alpha = alpha; f.how = how; f.wrap = wrap; f.guard = opdi_cu_guard_of(call);
    if (!opd_ok()) { return -1; }
    if (how == OPDI_CU_GATHER) { OPDI_CU_SIZES(opd_dtype(a), T, return opdi_cu_each(n, opdi_cu_gather<T>(f))) }
    if (opd_deterministic_mode() != OPD_DETERMINISTIC_OFF && n > 1 &&
        (how == OPDI_CU_SCATTER ? opd_numel(b) > 1 : how <= OPDI_CU_MUL && opd_dtype(a) != OPD_INT64)) {
        return opdi_cu_indexed_ordered(call, f, n, a);
    }
    if (how == OPDI_CU_SCATTER) { OPDI_CU_SIZES(opd_dtype(a), T, return opdi_cu_each(n, opdi_cu_scatter<T>(f))) }
    if (opd_dtype(a) == OPD_FLOAT32) { return opdi_cu_each(n, opdi_cu_scatter_fold<float>(f)); }
    if (opd_dtype(a) == OPD_FLOAT64) { return opdi_cu_each(n, opdi_cu_scatter_fold<double>(f)); }
    return opdi_cu_each(n, opdi_cu_scatter_fold<int64_t>(f));
}
/* Runs gather(self, dim, index). */
static int opdi_cu_gather_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2);
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_indexed_run(call, OPDI_CU_GATHER, self, opdi_cu_dim(opd_arg_int(call, 1), self), index,
                               opdi_cu_result(call, 0), false, 1);
}
/* Runs scatter(self, dim, index, src or value), or a variant that combines elements, in the dtype in which kernels
   compute, as `how` says. */
static int opdi_cu_scatter_mode(opd_call *call, int how) {
    if (how != OPDI_CU_SCATTER && opdi_cu_is_complex(call, 0)) { return opd_cpu_fallback(call); }
    opd_tensor *index = opd_arg_tensor(call, 2), *out = opd_result_update(call), *src, *staging = out;
    opd_scalar_type t = opd_dtype(out);
    const int dim = opdi_cu_dim(opd_arg_int(call, 1), out);
    if (!out) { return -1; }
    if (how != OPDI_CU_SCATTER) { t = opdi_cu_compute_dtype(t); }
    if (t != opd_dtype(out)) { staging = opdi_cu_staging_filled(out, t); }
    src = opd_arg_value(call, 3).tag == OPD_TAG_TENSOR && opd_dtype(opd_arg_tensor(call, 3)) == t
        ? opd_arg_tensor(call, 3) : opdi_cu_arg_as(call, 3, out, t);
    if (!staging || !src || opdi_cu_indexed_run(call, how, staging, dim, index, src, false, 1)) { return -1; }
    return opdi_cu_staging_store(out, staging);
}
static int opdi_cu_scatter_kernel(opd_call *call) { return opdi_cu_scatter_mode(call, OPDI_CU_SCATTER); }
static int opdi_cu_scatter_add_kernel(opd_call *call) { return opdi_cu_scatter_mode(call, OPDI_CU_ADD); }
static int opdi_cu_scatter_reduce_kernel(opd_call *call) {
    const char *how = opd_arg_str(call, 4);
    if (strcmp(how, "add") && strcmp(how, "multiply")) {
        return opd_fail(OPD_ERROR_ARGUMENT, "reduce argument must be either add or multiply.");
    }
    return opdi_cu_scatter_mode(call, *how == 'a' ? OPDI_CU_ADD : OPDI_CU_MUL);
}
/* Divides each sum by its count, or by 1 if the count is 0.  Integers are rounded down. */
template <class T> struct opdi_cu_share {
    T *staging;
    const int64_t *count;
    static __device__ float divide(float x, int64_t k) { return x / (float)k; }
    static __device__ double divide(double x, int64_t k) { return x / (double)k; }
    static __device__ int64_t divide(int64_t x, int64_t k) { return x / k - (x % k < 0); }
    __device__ void operator()(int64_t i) const { staging[i] = divide(staging[i], count[i] > 1 ? count[i] : 1); }
};
/* Combines elements of src with elements of out along dim, at the positions in index.  `name` is sum, prod, mean, amax
   or amin.  If `include_self` is false, the previous elements of out do not count.  Returns 0, or -1 and sets an
   error. */
static int opdi_cu_reduce_into(const opd_call *call, opd_tensor *out, int dim, opd_tensor *index, opd_tensor *src,
                               const char *name, bool include_self) {
    const opd_scalar_type t = opdi_cu_compute_dtype(opd_dtype(out));
    const bool whole = t == OPD_INT64, mean = strcmp(name, "mean") == 0;
    const int how = strcmp(name, "prod") == 0 ? OPDI_CU_MUL : strcmp(name, "amax") == 0 ? OPDI_CU_MAX
        : strcmp(name, "amin") == 0 ? OPDI_CU_MIN : OPDI_CU_ADD;
    opd_tensor *staging = opdi_cu_staging_filled(out, t), *count, *one;
    if (opd_dtype(src) != t) { src = opdi_cu_as(src, t); }
    if (!staging || !src) { return -1; }
    if (!include_self) {                          /* positions to be written start from the neutral value */
        const opd_value start = how == OPDI_CU_MUL ? opd_value_int(1) : how == OPDI_CU_ADD ? opd_value_int(0)
            : whole ? opd_value_int(how == OPDI_CU_MAX ? INT64_MIN : INT64_MAX)
            : opd_value_double(how == OPDI_CU_MAX ? -INFINITY : INFINITY);
        opd_tensor *first = opdi_cu_number(start, t);
        if (!first || opdi_cu_indexed_run(call, OPDI_CU_SCATTER, staging, dim, index, first, false, 1)) { return -1; }
    }
    if (opdi_cu_indexed_run(call, how, staging, dim, index, src, false, 1)) { return -1; }
    if (mean && opd_numel(staging) > 0) {
        one = opdi_cu_number(opd_value_int(1), OPD_INT64);
        count = opdi_cu_new(opd_ints_of(opd_sizes(out), opd_ndim(out)), OPD_INT64);
        if (!one || !count || !opd_fill_(count, opd_value_int(include_self)) ||
            opdi_cu_indexed_run(call, OPDI_CU_ADD, count, dim, index, one, false, 1)) {
            return -1;
        }
        const int64_t n = opd_numel(staging), *c = opdi_cu_data<int64_t>(count);
        if (t == OPD_FLOAT32) {
            const opdi_cu_share<float> f = {opdi_cu_data<float>(staging), c};
            if (opdi_cu_each(n, f)) { return -1; }
        } else if (t == OPD_FLOAT64) {
            const opdi_cu_share<double> f = {opdi_cu_data<double>(staging), c};
            if (opdi_cu_each(n, f)) { return -1; }
        } else {
            const opdi_cu_share<int64_t> f = {opdi_cu_data<int64_t>(staging), c};
            if (opdi_cu_each(n, f)) { return -1; }
        }
    }
    return opdi_cu_staging_store(out, staging);
}
static int opdi_cu_scatter_reduce_two_kernel(opd_call *call) {
    if (opdi_cu_is_complex(call, 0)) { return opd_cpu_fallback(call); }
    opd_tensor *out = opd_result_update(call);
    return !out ? -1 : opdi_cu_reduce_into(call, out, opdi_cu_dim(opd_arg_int(call, 1), out), opd_arg_tensor(call, 2),
                                           opd_arg_tensor(call, 3), opd_arg_str(call, 4), opd_arg_bool(call, 5));
}
/* Expands a vector of indices along dim to a tensor of the given sizes.  Returns NULL and sets an error if it fails. */
static opd_tensor *opdi_cu_expand(opd_tensor *index, int dim, const int64_t *sizes, int ndim) {
    int64_t strides[OPD_MAX_DIMS];
    index = opdi_cu_as(index, OPD_INT64);
    for (int d = 0; d < ndim; d++) { strides[d] = d == dim ? 1 : 0; }
    return index ? opd_tensor_view(index, sizes, strides, ndim, opd_tensor_offset(index)) : NULL;
}
/* Adds alpha * v to the four floats at p.  Each addition is atomic. */
static __device__ __forceinline__ void opdi_cu_atomic_add_4(float *p, opdi_cu_vector<float, 4> v, float alpha) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    atomicAdd(reinterpret_cast<float4 *>(p),
              make_float4(alpha * v.at[0], alpha * v.at[1], alpha * v.at[2], alpha * v.at[3]));
#else
    for (int k = 0; k < 4; k++) { opdi_cu_atomic(OPDI_CU_ADD, p + k, alpha * v.at[k]); }
#endif
}
/* Adds alpha * src[outer, m, inner] to out[outer, index[m], inner], for contiguous, aligned float32 tensors, four
   elements of `inner` at a time.  The order of additions varies, as in opdi_cu_scatter_fold. */
struct opdi_cu_index_add {
    opdi_cu_pointwise_divider inner, many;        /* number of packs of four elements in `inner`; of indices */
    uint32_t all;                                 /* number of packs in src */
    int64_t size;                                 /* size of out along the dim */
    float alpha;
    opdi_cu_guard guard;
};
static __global__ void __launch_bounds__(256) opdi_cu_index_add_packs(const opdi_cu_index_add f, const int64_t *index,
                                                                      const float *src, float *out) {
    const uint32_t i = blockIdx.x * 256 + threadIdx.x;
    if (i >= f.all) { return; }
    const opdi_cu_vector<float, 4> v = opdi_cu_load_vector<4>(src + (int64_t)i * 4);
    const uint32_t line = f.inner.of(i), outer = f.many.of(line);
    const int64_t at = index[line - outer * f.many.d];
    if (!f.guard.inside(at, f.size)) { return; }
    opdi_cu_atomic_add_4(out + ((outer * f.size + at) * f.inner.d + (i - line * f.inner.d)) * 4, v, f.alpha);
}
/* Returns whether opdi_cu_index_add_packs can add src to out along dim. */
static bool opdi_cu_index_add_fits(const opd_tensor *out, int dim, const opd_tensor *src) {
    return opd_dtype(out) == OPD_FLOAT32 && opd_dtype(src) == OPD_FLOAT32 && opd_ndim(out) > 0 &&
        opd_ndim(src) == opd_ndim(out) && opd_is_contiguous(out) && opd_is_contiguous(src) && opd_numel(src) > 0 &&
        opd_numel(src) < INT32_MAX && opdi_cu_line_of(src, dim).inner % 4 == 0 &&
        opdi_cu_aligned(opdi_cu_data<void>(out)) && opdi_cu_aligned(opdi_cu_data<void>(src)) &&
        opd_deterministic_mode() == OPD_DETERMINISTIC_OFF;
}
static int opdi_cu_index_add_run(const opd_call *call, opd_tensor *out, int dim, opd_tensor *index, opd_tensor *src,
                                 double alpha) {
    const opdi_cu_line l = opdi_cu_line_of(src, dim);
    opdi_cu_index_add f;
    if (!(index = opdi_cu_as(index, OPD_INT64))) { return -1; }
    f.inner = opdi_cu_divide_by((uint32_t)(l.inner / 4));
    f.many = opdi_cu_divide_by((uint32_t)l.n);
    f.all = (uint32_t)(opd_numel(src) / 4);
    f.size = opd_size(out, dim);
    f.alpha = (float)alpha;
    f.guard = opdi_cu_guard_of(call);
    return opdi_cu_launch(opdi_cu_index_add_packs, dim3((unsigned)opdi_cu_ceil(f.all, 256)), dim3(256), 0, f,
                          opdi_cu_data<int64_t>(index), opdi_cu_data<float>(src), opdi_cu_data<float>(out));
}
/* These functions run index_add and index_copy(self, dim, index, source, ...). */
static int opdi_cu_index_add_kernel(opd_call *call) {
    if (opdi_cu_is_complex(call, 0)) { return opd_cpu_fallback(call); }
    opd_tensor *src = opd_arg_tensor(call, 3), *out = opd_result_update(call), *staging, *index;
    const opd_scalar_type t = opdi_cu_compute_dtype(opd_dtype(out));
    const opd_value alpha = opd_arg_value(call, 4);
    const int dim = opdi_cu_dim(opd_arg_int(call, 1), out);
    const double times = alpha.tag == OPD_TAG_FLOAT ? alpha.u.d : (double)alpha.u.i;
    if (!out) { return -1; }
    if (opdi_cu_index_add_fits(out, dim, src)) {
        return opdi_cu_index_add_run(call, out, dim, opd_arg_tensor(call, 2), src, times);
    }
    staging = t == opd_dtype(out) ? out : opdi_cu_staging_filled(out, t);
    index = opdi_cu_expand(opd_arg_tensor(call, 2), dim, opd_sizes(src), opd_ndim(src));
    if (opd_dtype(src) != t) { src = opdi_cu_as(src, t); }
    if (!staging || !index || !src ||
        opdi_cu_indexed_run(call, OPDI_CU_ADD, staging, dim, index, src, false, times)) {
        return -1;
    }
    return opdi_cu_staging_store(out, staging);
}
static int opdi_cu_index_copy_kernel(opd_call *call) {
    opd_tensor *src = opd_arg_tensor(call, 3), *out = opd_result_update(call), *index;
    const int dim = opdi_cu_dim(opd_arg_int(call, 1), out);
    index = out ? opdi_cu_expand(opd_arg_tensor(call, 2), dim, opd_sizes(src), opd_ndim(src)) : NULL;
    return !index ? -1 : opdi_cu_indexed_run(call, OPDI_CU_SCATTER, out, dim, index, src, false, 1);
}
/* Runs index_fill(self, dim, index, value). */
static int opdi_cu_index_fill_kernel(opd_call *call) {
    opd_tensor *index = opd_arg_tensor(call, 2), *out = opd_result_update(call), *value;
    const int dim = opdi_cu_dim(opd_arg_int(call, 1), out);
    int64_t sizes[OPD_MAX_DIMS];
    if (!out) { return -1; }
    for (int d = 0; d < opd_ndim(out); d++) { sizes[d] = opd_sizes(out)[d]; }
    sizes[dim] = opd_numel(index);
    index = opdi_cu_expand(index, dim, sizes, opd_ndim(out) > 0 ? opd_ndim(out) : 1);
    value = opdi_cu_arg_as(call, 3, out, opd_dtype(out));
    return !index || !value ? -1 : opdi_cu_indexed_run(call, OPDI_CU_SCATTER, out, dim, index, value, true, 1);
}
static int opdi_cu_index_reduce_kernel(opd_call *call) {
    opd_tensor *src = opd_arg_tensor(call, 3), *out = opd_result_update(call), *index;
    const int dim = opdi_cu_dim(opd_arg_int(call, 1), out);
    index = out ? opdi_cu_expand(opd_arg_tensor(call, 2), dim, opd_sizes(src), opd_ndim(src)) : NULL;
    return !index ? -1 : opdi_cu_reduce_into(call, out, dim, index, src, opd_arg_str(call, 4), opd_arg_bool(call, 5));
}

/* Sets b[outer][j][inner] to a[outer][index[j]][inner], in units of T.  If `wrap` is true, negative indices count from
   the end. */
template <class T> struct opdi_cu_select_rows {
    const T *a;
    T *b;
    const int64_t *index;
    int64_t n, size, inner;
    bool wrap;
    opdi_cu_guard guard;
    __device__ void operator()(int64_t i) const {
        int64_t c, j, k;
        const int64_t o = opdi_cu_divide(opdi_cu_divide(i, inner, &c), n, &j);
        k = index[j];
        if (wrap && k < 0) { k += size; }
        b[i] = guard.inside(k, size) ? a[(o * size + k) * inner + c] : T();
    }
};
/* Does the same for long rows.  A block copies a piece of U units per thread of one row, with all loads in flight. */
template <class T, int U> __global__ void __launch_bounds__(256) opdi_cu_select_long(const opdi_cu_select_rows<T> f,
                                                                                     int64_t rows, int64_t pieces) {
    for (int64_t p = blockIdx.x; p < rows * pieces; p += gridDim.x) {
        int64_t piece, j;
        const int64_t row = opdi_cu_divide(p, pieces, &piece), o = opdi_cu_divide(row, f.n, &j);
        const int64_t begin = piece * U * 256 + threadIdx.x;
        int64_t k = f.index[j];
        if (f.wrap && k < 0) { k += f.size; }
        const bool fits = (uint64_t)k < (uint64_t)f.size;
        const T *from = f.a + (o * f.size + (fits ? k : 0)) * f.inner;
        T v[U];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { v[u] = fits && begin + u * 256 < f.inner ? from[begin + u * 256] : T(); }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { if (begin + u * 256 < f.inner) { f.b[row * f.inner + begin + u * 256] = v[u]; } }
        if (!fits && threadIdx.x == 0) { f.guard.note(f.index[j], f.size); }
    }
}
/* Copies the rows of `a` along dim that index lists to `out` [outer, index, inner].  Returns 0, or -1 and sets an
   error. */
static int opdi_cu_rows_select(const opd_call *call, opd_tensor *a, int dim, opd_tensor *index, opd_tensor *out,
                               bool wrap) {
    const int nd = opd_ndim(a);
    const int64_t outer = nd ? opdi_cu_span(opd_sizes(a), 0, dim) : 1, size = nd ? opd_sizes(a)[dim] : 1;
    int64_t bytes = (int64_t)opd_dtype_size(opd_dtype(a)) * (nd ? opdi_cu_span(opd_sizes(a), dim + 1, nd) : 1), unit;
    opd_tensor *staging = opdi_cu_staging(out, opd_dtype(out));
    a = opdi_cu_as(a, opd_dtype(a));
    index = opdi_cu_as(index, OPD_INT64);
    if (!staging || !a || !index) { return -1; }
    if (opd_numel(out) == 0) { return 0; }
    unit = opdi_cu_unit(bytes, (uintptr_t)opdi_cu_data<void>(a), (uintptr_t)opdi_cu_data<void>(staging));
    OPDI_CU_UNITS(unit, T, {
        const opdi_cu_select_rows<T> f = {opdi_cu_data<T>(a), opdi_cu_data<T>(staging), opdi_cu_data<int64_t>(index),
                                   opd_numel(index), size, bytes / unit, wrap, opdi_cu_guard_of(call)};
        const int64_t pieces = opdi_cu_ceil(f.inner, 4 * 256);
        if (f.inner < 256 ? opdi_cu_each(outer * f.n * f.inner, f)
            : opdi_cu_launch(opdi_cu_select_long<T, 4>, opdi_cu_grid_rows(outer * f.n * pieces), dim3(256), 0, f,
                             outer * f.n, pieces)) { return -1; }
    })
    return opdi_cu_staging_store(out, staging);
}
static int opdi_cu_index_select_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_rows_select(call, self, opdi_cu_dim(opd_arg_int(call, 1), self), opd_arg_tensor(call, 2),
                               opdi_cu_result(call, 0), false);
}
static int opdi_cu_embedding_kernel(opd_call *call) {
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_rows_select(call, opd_arg_tensor(call, 0), 0, opd_arg_tensor(call, 1), opdi_cu_result(call, 0),
                               false);
}
/* Returns the elements of t, in row-major order, as a tensor of one dim. */
static opd_tensor *opdi_cu_flat(opd_tensor *t) {
    const int64_t one = 1, n = opd_numel(t);
    t = opdi_cu_as(t, opd_dtype(t));
    return t ? opd_tensor_view(t, &n, &one, 1, opd_tensor_offset(t)) : NULL;
}
static int opdi_cu_take_kernel(opd_call *call) {
    opd_tensor *self;
    if (opd_results_from_fake(call) || !(self = opdi_cu_flat(opd_arg_tensor(call, 0)))) { return -1; }
    return opdi_cu_rows_select(call, self, 0, opd_arg_tensor(call, 1), opdi_cu_result(call, 0), true);
}

//== nonzero, masked_select, masked_scatter ============================================================================
//
//  There are three steps.  The first counts the selected elements of each tile.  The second computes where each tile's
//  results begin, and the total; the host waits for the total if it is the size of the result.  The third goes through
//  the tiles again, now with the position of each selected element in the result.

enum { OPDI_CU_PICK_THREADS = 256, OPDI_CU_PICK_TILE = 2048 };

/* Replaces each x[i] by the sum of the elements before it, and sets x[n] to the total.  Runs in one block. */
static __global__ void opdi_cu_offsets_kernel(int64_t *x, int64_t n) {
    __shared__ int64_t warps[OPDI_CU_WARP];
    const int lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP;
    const int E = 8;                              /* neighbouring elements per thread */
    int64_t carry = 0;
    for (int64_t from = 0; from < n; from += blockDim.x * E) {
        const int64_t i = from + threadIdx.x * E;
        int64_t v[E], mine = 0, before = carry;
        OPDI_CU_UNROLL
        for (int e = 0; e < E; e++) { v[e] = i + e < n ? x[i + e] : 0; mine += v[e]; }
        int64_t sum = mine;
        for (int d = 1; d < OPDI_CU_WARP; d *= 2) {
            const int64_t left = __shfl_up_sync(OPDI_CU_ALL_LANES, sum, d);
            if (lane >= d) { sum += left; }
        }
        if (lane == OPDI_CU_WARP - 1) { warps[warp] = sum; }
        __syncthreads();
        for (int w = 0; w < (int)blockDim.x / OPDI_CU_WARP; w++) {
            if (w < warp) { before += warps[w]; }
            carry += warps[w];
        }
        before += sum - mine;
        OPDI_CU_UNROLL
        for (int e = 0; e < E; e++) { if (i + e < n) { x[i + e] = before; } before += v[e]; }
        __syncthreads();
    }
    if (threadIdx.x == 0) { x[n] = carry; }
}
static int opdi_cu_offsets(int64_t *x, int64_t n) { return opdi_cu_launch(opdi_cu_offsets_kernel, 1, 1024, 0, x, n); }

template <class P> __global__ void opdi_cu_count_kernel(int64_t n, P in, int64_t *counts) {
    const int64_t from = (int64_t)blockIdx.x * OPDI_CU_PICK_TILE + threadIdx.x;
    int c = 0;
    for (int k = 0; k < OPDI_CU_PICK_TILE; k += OPDI_CU_PICK_THREADS) { c += from + k < n && in(from + k); }
    c = opdi_cu_block_reduce(c, opdi_cu_sum(), 0);
    if (threadIdx.x == 0) { counts[blockIdx.x] = c; }
}
/* For every selected element i, calls each(i, number of selected elements before i). */
template <class P, class E> __global__ void opdi_cu_pick_kernel(int64_t n, P in, const int64_t *counts, E each) {
    __shared__ int warps[OPDI_CU_PICK_THREADS / OPDI_CU_WARP];
    const int64_t from = (int64_t)blockIdx.x * OPDI_CU_PICK_TILE + threadIdx.x;
    const int lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP;
    int64_t at = counts[blockIdx.x];
    for (int k = 0; k < OPDI_CU_PICK_TILE; k += OPDI_CU_PICK_THREADS) {
        const bool mine = from + k < n && in(from + k);
        const unsigned all = __ballot_sync(OPDI_CU_ALL_LANES, mine);
        int64_t before = at + __popc(all & ((1u << lane) - 1));
        if (lane == 0) { warps[warp] = __popc(all); }
        __syncthreads();
        for (int w = 0; w < OPDI_CU_PICK_THREADS / OPDI_CU_WARP; w++) {
            if (w < warp) { before += warps[w]; }
            at += warps[w];
        }
        if (mine) { each(from + k, before); }
        __syncthreads();
    }
}
/* Counts the selected elements (for which in(i) is true) of *tiles tiles.  Returns an array with the number of selected
   elements before each tile, then the total.  Returns NULL and sets an error if it fails. */
template <class P> static int64_t *opdi_cu_count(int64_t n, const P &in, int64_t *tiles) {
    *tiles = opdi_cu_ceil(n, OPDI_CU_PICK_TILE);
    int64_t *counts = (int64_t *)opdi_cu_scratch((*tiles + 1) * 8);
    if (!counts || (n > 0 && opdi_cu_launch(opdi_cu_count_kernel<P>, (unsigned)*tiles, OPDI_CU_PICK_THREADS, 0, n, in,
                                            counts)) || opdi_cu_offsets(counts, *tiles)) {
        return NULL;
    }
    return counts;
}
template <class P, class E> static int opdi_cu_pick(int64_t n, const P &in, const int64_t *counts, const E &each) {
    return n <= 0 ? 0 : opdi_cu_launch(opdi_cu_pick_kernel<P, E>, (unsigned)opdi_cu_ceil(n, OPDI_CU_PICK_TILE),
                                       OPDI_CU_PICK_THREADS, 0, n, in, counts, each);
}
/* Waits for a number that kernels have computed, and returns it.  Returns -1 and sets an error if it fails. */
static int64_t opdi_cu_fetch(const int64_t *at) {
    int64_t v = -1;
    return opdi_cu_copy_bytes(NULL, &v, -1, at, opdi_cu_current(), sizeof v) ? -1 : v;
}

template <class T> struct opdi_cu_is_true {
    const T *x;
    __device__ bool operator()(int64_t i) const { return opdi_cu_load<bool>(x + i); }
};
/* Writes the coordinates of element i to row `at` of the result. */
struct opdi_cu_place {
    opdi_cu_strided<1> walk;                         /* only its sizes are used */
    int64_t *out, row, column;
    __device__ void operator()(int64_t i, int64_t at) const {
        for (int d = walk.n - 1; d >= 0; d--) {
            int64_t r;
            i = opdi_cu_divide(i, walk.size[d], &r);
            out[at * row + d * column] = r;
        }
    }
};
template <class T> static int opdi_cu_nonzero_of(opd_call *call, opd_tensor *t) {
    const opdi_cu_is_true<T> in = {opdi_cu_data<T>(t)};
    int64_t tiles, sizes[2], strides[2], *counts = opdi_cu_count(opd_numel(t), in, &tiles);
    opdi_cu_place each;
    opd_tensor *out;
    sizes[0] = counts ? opdi_cu_fetch(counts + tiles) : -1;
    if (sizes[0] < 0) { return -1; }
    sizes[1] = opd_ndim(t); strides[0] = 1; strides[1] = sizes[0] ? sizes[0] : 1;      /* column-major, as in PyTorch */
    out = opd_result_strided(call, 0, sizes, strides, 2, OPD_INT64, opd_tensor_device(t));
    if (!out || opd_numel(out) == 0) { return out ? 0 : -1; }
    each.walk.n = opd_ndim(t);
    for (int d = 0; d < opd_ndim(t); d++) { each.walk.size[d] = opd_sizes(t)[d]; }
    each.out = opdi_cu_data<int64_t>(out); each.row = opd_strides(out)[0]; each.column = opd_strides(out)[1];
    return opdi_cu_pick(opd_numel(t), in, counts, each);
}
static int opdi_cu_nonzero_kernel(opd_call *call) {
    opd_tensor *t = opd_arg_tensor(call, 0);
    if (opd_dtype_is_complex(opd_dtype(t))) {
        return opd_fail(OPD_ERROR_DTYPE, "\"nonzero\" not implemented for '%s'", opd_dtype_name(opd_dtype(t)));
    }
    if (!(t = opdi_cu_as(t, opd_dtype(t)))) { return -1; }
    OPDI_CU_ALL(opd_dtype(t), T, return opdi_cu_nonzero_of<T>(call, t))
}

/* masked_select: list[at] = self[i].  masked_scatter (`back`): self[i] = list[at]. */
template <class T> struct opdi_cu_masked {
    opdi_cu_strided<1> walk;                         /* of self */
    T *self, *list;
    int64_t n;                                    /* length of list */
    bool back;
    opdi_cu_guard guard;
    __device__ void operator()(int64_t i, int64_t at) const {
        int64_t o;
        walk.at(i, &o);
        if (!back) { list[at] = self[o]; return; }
        if (guard.inside(at, n)) { self[o] = list[at]; }
    }
};
/* Returns the mask as a contiguous tensor of these sizes. */
static opd_tensor *opdi_cu_mask(opd_tensor *mask, const int64_t *sizes, int ndim) {
    mask = opd_expand(mask, opd_ints_of(sizes, ndim));
    return mask ? opdi_cu_as(mask, opd_dtype(mask)) : NULL;
}
template <class T> static int opdi_cu_masked_move(opd_call *call, opd_tensor *self, opd_tensor *mask, opd_tensor *src) {
    const opdi_cu_is_true<uint8_t> in = {opdi_cu_data<uint8_t>(mask)};
    int64_t tiles, n, *counts = opdi_cu_count(opd_numel(mask), in, &tiles);
    opdi_cu_masked<T> each;
    opd_tensor *out = src, *staging = src;
    if (!src) {                                   /* masked_select */
        n = counts ? opdi_cu_fetch(counts + tiles) : -1;
        out = n < 0 ? NULL : opd_result(call, 0, &n, 1, opd_dtype(self));
        staging = out ? opdi_cu_staging(out, opd_dtype(out)) : NULL;
    }
    if (!counts || !staging) { return -1; }
    each.walk.begin();
    for (int d = 0; d < opd_ndim(self); d++) { each.walk.add(opd_sizes(self)[d], opd_strides(self) + d); }
    each.self = opdi_cu_data<T>(self); each.list = opdi_cu_data<T>(staging); each.n = opd_numel(staging);
    each.back = src != NULL;
    each.guard = opdi_cu_guard_of(call, "Number of elements of source < number of ones in mask");
    if (opdi_cu_pick(opd_numel(mask), in, counts, each)) { return -1; }
    return src ? 0 : opdi_cu_staging_store(out, staging);
}
static int opdi_cu_masked_select_kernel(opd_call *call) {
    opd_tensor *both[2] = {opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)};
    opd_tensors wide;
    if (opd_dtype(both[1]) != OPD_BOOL && opd_dtype(both[1]) != OPD_UINT8) {
        return opd_fail(OPD_ERROR_DTYPE, "masked_select: expected BoolTensor for mask");
    }
    wide = opd_broadcast_tensors(opd_tensors_of(both, 2));
    if (wide.n != 2 || !(both[1] = opdi_cu_as(wide.data[1], opd_dtype(both[1])))) { return -1; }
    OPDI_CU_SIZES(opd_dtype(both[0]), T, return opdi_cu_masked_move<T>(call, wide.data[0], both[1], NULL))
    return 0;
}
static int opdi_cu_masked_scatter_kernel(opd_call *call) {
    opd_tensor *out = opd_result_update(call), *src = opd_arg_tensor(call, 2), *mask;
    if (!out || !(mask = opdi_cu_mask(opd_arg_tensor(call, 1), opd_sizes(out), opd_ndim(out))) ||
        !(src = opdi_cu_as(src, opd_dtype(src)))) {
        return -1;
    }
    OPDI_CU_SIZES(opd_dtype(out), T, return opdi_cu_masked_move<T>(call, out, mask, src))
    return 0;
}
/* Sets out to `value` where the mask is true, otherwise to self.  The operands of the walk are out, self and mask. */
template <class T> struct opdi_cu_fill_masked {
    opdi_cu_strided<3> walk;
    T *out;
    const T *self, *value;
    const uint8_t *mask;
    __device__ void operator()(int64_t i) const {
        int64_t o[3];
        walk.at(i, o);
        out[o[0]] = mask[o[2]] ? *value : self[o[1]];
    }
};
static int opdi_cu_masked_fill_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *mask = opd_arg_tensor(call, 1), *out, *value;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    const opd_ints sizes = opd_ints_of(opd_sizes(out), opd_ndim(out));
    self = opd_expand(self, sizes);
    mask = opd_expand(mask, sizes);
    value = opdi_cu_arg_as(call, 2, out, opd_dtype(out));
    if (!self || !mask || !value) { return -1; }
    OPDI_CU_SIZES(opd_dtype(out), T, {
        opdi_cu_fill_masked<T> f;
        f.walk.begin();
        for (int d = 0; d < opd_ndim(out); d++) {
            const int64_t s[3] = {opd_strides(out)[d], opd_strides(self)[d], opd_strides(mask)[d]};
            f.walk.add(sizes.data[d], s);
        }
        f.out = opdi_cu_data<T>(out); f.self = opdi_cu_data<T>(self); f.value = opdi_cu_data<T>(value);
        f.mask = opdi_cu_data<uint8_t>(mask);
        return opdi_cu_each(opd_numel(out), f);
    })
    return 0;
}

//== index, index_put, put: lists of index tensors =====================================================================

enum { OPDI_CU_READ = 0, OPDI_CU_WRITE, OPDI_CU_ACCUMULATE };
/* The indexing of `self` by a list of index tensors.  The values are [before][q][after], where q counts the positions
   of the index tensors, and `before` and `after` are the dims of `self` before and after the indexed dims.  If the
   indexed dims are not neighbours, all other dims count as `after`. */
struct opdi_cu_list {
    int n;                                        /* number of indexed dims */
    const int64_t *index[OPD_MAX_DIMS];           /* by indexed dim: [nq] */
    int64_t size[OPD_MAX_DIMS], stride[OPD_MAX_DIMS];
    opdi_cu_strided<1> before, after;
    int64_t nb, nq, na;
    int64_t one;                                  /* stride of values: 1, or 0 if there is only one value */
    opdi_cu_guard guard;
    /* Returns the offset in `self` of position q of the indices, or -1 if an index is out of range. */
    __device__ __forceinline__ int64_t place(int64_t q) const {
        int64_t at = 0;
        for (int d = 0; d < n; d++) {
            int64_t k = index[d][q];
            if (k < 0) { k += size[d]; }
            if ((uint64_t)k >= (uint64_t)size[d]) { guard.note(index[d][q], size[d]); return -1; }
            at += k * stride[d];
        }
        return at;
    }
    __device__ __forceinline__ int64_t rest(int64_t b, int64_t a) const {
        int64_t x, y;
        before.at(b, &x);
        after.at(a, &y);
        return x + y;
    }
};
template <class T> struct opdi_cu_list_move {
    opdi_cu_list list;
    T *self, *values;
    bool back;
    __device__ void operator()(int64_t i) const {
        int64_t a, q;
        const int64_t b = opdi_cu_divide(opdi_cu_divide(i, list.na, &a), list.nq, &q), at = list.place(q);
        if (at < 0) { return; }
        T *p = self + at + list.rest(b, a);
        if (back) { *p = values[i * list.one]; } else { values[i] = *p; }
    }
};
/* Sets keys[q] to the offset in `self` of position q of the indices.  The keys are then sorted. */
struct opdi_cu_list_keys {
    opdi_cu_list list;
    int64_t *keys, skip;                          /* skip: an offset that is ignored, or -1 */
    __device__ void operator()(int64_t q) const {
        const int64_t at = list.place(q);
        keys[q] = skip >= 0 && at == skip ? -1 : at;
    }
};
/* Adds to each element of `self` the sum of its values, always in the same order.  The sorted keys are cut into pieces
   of OPDI_CU_PIECE.  If a key continues in the next piece, the sum so far is stored in `partial`, and joined
   afterwards. */
enum { OPDI_CU_PIECE = 32 };
template <class T> struct opdi_cu_list_sum {
    opdi_cu_list list;
    const int64_t *keys, *order;                  /* [nq] sorted keys, and their positions before sorting */
    T *self;
    const T *values;
    T *partial;                                   /* [nb][pieces][2][na]: sums of the first and of the last key of a
                                                     piece */
    int64_t pieces;
    bool scale;                                   /* divide each sum by the number of its values */
    __device__ __forceinline__ void split(int64_t i, int64_t *b, int64_t *piece, int64_t *a) const {
        *b = opdi_cu_divide(opdi_cu_divide(i, list.na, a), pieces, piece);
    }
    __device__ __forceinline__ T *part(int64_t b, int64_t piece, int64_t a, int last) const {
        return partial + ((b * pieces + piece) * 2 + last) * list.na + a;
    }
    __device__ __forceinline__ int64_t end(int64_t piece) const {
        return piece + 1 < pieces ? (piece + 1) * OPDI_CU_PIECE : list.nq;
    }
    __device__ void put(int64_t key, int64_t b, int64_t a, T sum, int64_t n) const {
        self[key + list.rest(b, a)] += scale ? opdi_cu_share<T>::divide(sum, n) : sum;
    }
    __device__ void operator()(int64_t i) const {
        int64_t a, b, piece;
        split(i, &b, &piece, &a);
        const int64_t begin = piece * OPDI_CU_PIECE, stop = end(piece);
        for (int64_t q = begin, from = q; q < stop; from = q) {
            const int64_t key = keys[q];
            T sum = 0;
            for (; q < stop && keys[q] == key; q++) {
                if (key >= 0) { sum += values[((b * list.nq + order[q]) * list.na + a) * list.one]; }
            }
            const bool before = from == begin && begin > 0 && keys[begin - 1] == key;
            const bool after = q == stop && stop < list.nq && keys[stop] == key;
            if (key < 0) { continue; }
            if (before || after) { *part(b, piece, a, !before) = sum; } else { put(key, b, a, sum, q - from); }
        }
    }
};
/* Joins the sums of a key whose values begin in one piece and continue in the next. */
template <class T> struct opdi_cu_list_join : opdi_cu_list_sum<T> {
    explicit opdi_cu_list_join(const opdi_cu_list_sum<T> &x) : opdi_cu_list_sum<T>(x) { }
    __device__ void operator()(int64_t i) const {
        int64_t a, b, piece;
        this->split(i, &b, &piece, &a);
        const int64_t *keys = this->keys, begin = piece * OPDI_CU_PIECE, stop = this->end(piece);
        int64_t from = stop - 1, q = stop;
        if (stop >= this->list.nq || keys[stop] < 0 || keys[from] != keys[stop]) { return; }
        while (from > begin && keys[from - 1] == keys[stop]) { from--; }
        if (from == begin && begin > 0 && keys[begin - 1] == keys[stop]) { return; }
        T sum = *this->part(b, piece, a, 1);
        for (piece++; piece < this->pieces && keys[piece * OPDI_CU_PIECE] == keys[stop]; piece++) {
            sum += *this->part(b, piece, a, 0);
            q = this->end(piece);
            if (keys[q - 1] != keys[stop]) {
                while (keys[q - 1] != keys[stop]) { q--; }
                break;
            }
        }
        this->put(keys[stop], b, a, sum, q - from);
    }
};
template <class T> static int opdi_cu_list_sums(const opdi_cu_list *p, opd_tensor *const *sorted, opd_tensor *self,
                                                opd_tensor *values, bool scale) {
    opdi_cu_list_sum<T> f;
    f.list = *p;
    f.keys = opdi_cu_data<int64_t>(sorted[0]); f.order = opdi_cu_data<int64_t>(sorted[1]);
    f.self = opdi_cu_data<T>(self); f.values = opdi_cu_data<T>(values); f.scale = scale;
    f.pieces = opdi_cu_ceil(p->nq, OPDI_CU_PIECE);
    const int64_t n = p->nb * f.pieces * p->na;
    f.partial = (T *)opdi_cu_scratch(2 * n * (int64_t)sizeof(T));
    if (!f.partial || !opd_ok()) { return -1; }
    return opdi_cu_each(n, f) || (f.pieces > 1 && opdi_cu_each(n, opdi_cu_list_join<T>(f))) ? -1 : 0;
}
/* The same for the dtype of `self`. */
static int opdi_cu_list_sums_of(const opdi_cu_list *p, opd_tensor *const *sorted, opd_tensor *self,
                                opd_tensor *values, bool scale) {
    return opd_dtype(self) == OPD_FLOAT32 ? opdi_cu_list_sums<float>(p, sorted, self, values, scale)
        : opd_dtype(self) == OPD_FLOAT64 ? opdi_cu_list_sums<double>(p, sorted, self, values, scale)
        : opdi_cu_list_sums<int64_t>(p, sorted, self, values, scale);
}
/* Replaces a mask by an index tensor for each of its dims: the coordinates of the elements that are true.  Returns 0,
   or -1 and sets an error. */
static int opdi_cu_mask_index(opd_tensor *mask, opd_tensor **out) {
    opd_tensor *at = opd_nonzero(mask);
    for (int d = 0; d < opd_ndim(mask); d++) {
        out[d] = opd_select(at, 1, d);
        if (!out[d]) { return -1; }
    }
    return 0;
}
/* Sets index[d] to the index tensor of each dim of `self`, or to NULL for the whole dim (as at::native::expandTensors
   does).  Returns 0, or -1 and sets an error. */
static int opdi_cu_list_expand(const opd_tensor *self, opd_tensors list, opd_tensor **index) {
    const int ndim = opd_ndim(self);
    int n = 0;
    for (int64_t k = 0; k < list.n; k++) {
        opd_tensor *t = list.data[k];
        const bool mask = t && (opd_dtype(t) == OPD_BOOL || opd_dtype(t) == OPD_UINT8);
        const int width = mask ? opd_ndim(t) : 1;
        if (n + width > ndim) {
            return opd_fail(OPD_ERROR_INDEX, "too many indices for tensor of dimension %d (got %lld)", ndim,
                            (long long)(list.n > n + width ? list.n : n + width));
        }
        if (!mask) {
            if (t && opd_dtype(t) == OPD_INT32 && !(t = opd_to_dtype(t, OPD_INT64))) { return -1; }
            if (t && opd_dtype(t) != OPD_INT64) {
                return opd_fail(OPD_ERROR_INDEX, "tensors used as indices must be long, int, byte or bool tensors");
            }
            index[n++] = t;
            continue;
        }
        for (int d = 0; d < width; d++) {
            if (opd_sizes(t)[d] != opd_sizes(self)[n + d]) {
                return opd_fail(OPD_ERROR_INDEX, "The shape of the mask at index %d does not match the shape of the "
                                "indexed tensor at index %d: %lld and %lld", d, n + d, (long long)opd_sizes(t)[d],
                                (long long)opd_sizes(self)[n + d]);
            }
        }
        if (width == 0) {
            return opd_fail(OPD_ERROR_INDEX, "a mask without dimensions is not supported as an index");
        }
        if (opdi_cu_mask_index(t, index + n)) { return -1; }
        n += width;
    }
    for (; n < ndim; n++) { index[n] = NULL; }
    return 0;
}
/* Makes the plan *p of self[list], and writes the sizes of the result to `out`, and their number to *nout.  Returns 0,
   or -1 and sets an error. */
static int opdi_cu_list_make(const opd_call *call, opdi_cu_list *p, const opd_tensor *self, opd_tensors list,
                             int64_t *out, int *nout) {
    const int ndim = opd_ndim(self);
    opd_tensor *index[OPD_MAX_DIMS], *some[OPD_MAX_DIMS];
    const opd_tensor *shape = NULL;
    int first = -1, last = -1, d, k;
    p->n = 0; p->nq = 1; p->one = 1;
    p->guard = opdi_cu_guard_of(call);
    p->before.begin(); p->after.begin();
    if (opdi_cu_list_expand(self, list, index)) { return -1; }
    for (d = 0; d < ndim; d++) {
        if (!index[d]) { continue; }
        if (first < 0) { first = d; }
        last = d;
        p->size[p->n] = opd_sizes(self)[d];
        p->stride[p->n] = opd_strides(self)[d];
        some[p->n++] = index[d];
    }
    if (p->n) {
        const opd_tensors wide = opd_broadcast_tensors(opd_tensors_of(some, p->n));
        for (k = 0; k < p->n; k++) {
            opd_tensor *t = wide.n == p->n ? opdi_cu_as(wide.data[k], OPD_INT64) : NULL;
            p->index[k] = opdi_cu_data<int64_t>(t);
            if (!t || !opd_ok()) { return -1; }
            shape = t;
        }
        p->nq = opd_numel(shape);
        if (last - first + 1 != p->n) { first = 0; }
    } else { first = ndim; }
    if (ndim - p->n + opd_ndim(shape) > OPD_MAX_DIMS) {
        return opd_fail(OPD_ERROR_SHAPE, "a tensor has at most %d dimensions, not %d", OPD_MAX_DIMS,
                        ndim - p->n + opd_ndim(shape));
    }
    *nout = 0;
    p->nb = p->na = 1;
    for (d = 0; d < first; d++) {
        if (index[d]) { break; }
        p->before.add(opd_sizes(self)[d], opd_strides(self) + d);
        p->nb *= out[(*nout)++] = opd_sizes(self)[d];
    }
    for (k = 0; k < opd_ndim(shape); k++) { out[(*nout)++] = opd_sizes(shape)[k]; }
    for (; d < ndim; d++) {
        if (index[d]) { continue; }
        p->after.add(opd_sizes(self)[d], opd_strides(self) + d);
        p->na *= out[(*nout)++] = opd_sizes(self)[d];
    }
    return 0;
}
/* Changes the plan to copy units larger than an element, if all strides and addresses allow it.  Returns the size of a
   unit in bytes. */
static int64_t opdi_cu_list_units(opdi_cu_list *p, int64_t bytes, const void *self, const void *values) {
    int64_t all = bytes, unit, f;
    int d;
    if (p->after.n != 1 || p->after.stride[0][0] != 1 || !p->one) { return bytes; }
    for (d = 0; d < p->n; d++) { all |= p->stride[d] * bytes; }
    for (d = 0; d < p->before.n; d++) { all |= p->before.stride[0][d] * bytes; }
    all = (all & ~bytes) | (p->na * bytes);       /* a row must consist of whole units, an element need not */
    unit = opdi_cu_unit(all, (uintptr_t)self, (uintptr_t)values);
    if (unit <= bytes) { return bytes; }
    f = unit / bytes;
    for (d = 0; d < p->n; d++) { p->stride[d] /= f; }
    for (d = 0; d < p->before.n; d++) { p->before.stride[0][d] /= f; }
    p->na /= f;
    p->after.size[0] = p->na;
    return unit;
}
static int opdi_cu_list_write_ordered(opdi_cu_list *p, opd_tensor *self, opd_tensor *values);
static int opdi_cu_list_run(opdi_cu_list *p, opd_tensor *self, opd_tensor *values, bool back) {
    void *s = opdi_cu_data<void>(self), *v = opdi_cu_data<void>(values);
    if (back && p->nq > 1 && p->one && opd_deterministic_mode() != OPD_DETERMINISTIC_OFF) {
        return opdi_cu_list_write_ordered(p, self, values);
    }
    const int64_t unit = opdi_cu_list_units(p, (int64_t)opd_dtype_size(opd_dtype(self)), s, v);
    OPDI_CU_UNITS(unit, T, {
        const opdi_cu_list_move<T> f = {*p, (T *)s, (T *)v, back};
        return opdi_cu_each(p->nb * p->nq * p->na, f);
    })
    return 0;
}
/* Makes a result.  The order of its dims in memory is that of the dims of `self` and the index tensors, as on the CPU.
   The Meta kernel finds this order.  If there are masks, it cannot, because the number of elements then depends on the
   data; the result is then contiguous.  Returns NULL and sets an error if it fails. */
static opd_tensor *opdi_cu_index_result(opd_call *call, opd_tensor *self, opd_tensors list, const int64_t *sizes,
                                        int n) {
    const opd_device meta = opd_device_make(OPD_META, 0);
    opd_tensor *fakes[OPD_MAX_DIMS], *like = opd_to_device(self, meta, opd_dtype(self));
    for (int64_t i = 0; i < list.n; i++) {
        opd_tensor *const t = list.data[i];
        if (t && (opd_dtype(t) == OPD_BOOL || opd_dtype(t) == OPD_UINT8)) { like = NULL; }
        fakes[i] = t && like ? opd_to_device(t, meta, opd_dtype(t)) : NULL;
    }
    like = like ? opd_index(like, opd_tensors_of(fakes, (int)list.n)) : NULL;
    return opd_result_strided(call, 0, sizes, like ? opd_strides(like) : NULL, n, opd_dtype(self),
                              opd_tensor_device(self));
}
static int opdi_cu_index_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *out, *staging;
    int64_t sizes[OPD_MAX_DIMS];
    opdi_cu_list p;
    int n;
    if (opdi_cu_list_make(call, &p, self, opd_arg_tensors(call, 1), sizes, &n)) { return -1; }
    out = opd_ok() ? opdi_cu_index_result(call, self, opd_arg_tensors(call, 1), sizes, n) : NULL;
    staging = out ? opdi_cu_staging(out, opd_dtype(self)) : NULL;
    return staging && opdi_cu_list_run(&p, self, staging, false) == 0 ? opdi_cu_staging_store(out, staging) : -1;
}
/* Adds `values` to `self` at the listed positions; both have a dtype in which kernels compute (float32, float64 or
   int64).  Values for the offset `skip` are ignored.  If `scale` is true, each sum is divided by the number of its
   values.  Returns 0, or -1 and sets an error. */
static int opdi_cu_list_add(const opdi_cu_list *p, opd_tensor *self, opd_tensor *values, int64_t skip, bool scale) {
    opd_tensor *keys = opdi_cu_new(opd_ints_of(&p->nq, 1), OPD_INT64), *sorted[2];
    const int64_t n = p->nb * p->nq * p->na;
    if (!keys) { return -1; }
    if (n == 0) { return 0; }
    const opdi_cu_list_keys f = {*p, opdi_cu_data<int64_t>(keys), skip};
    if (opdi_cu_each(p->nq, f) || opd_sort_stable(sorted, keys, opd_value_bool(true), 0, false)) { return -1; }
    return opdi_cu_list_sums_of(p, sorted, self, values, scale);
}
/* Writes `values` to the listed positions of `out` or, if `accumulate` is true, adds them.  Returns 0, or -1 and sets
   an error. */
static int opdi_cu_list_put(const opd_call *call, opd_tensor *out, opd_tensors list, opd_tensor *values,
                            bool accumulate) {
    const opd_scalar_type t = accumulate ? opdi_cu_compute_dtype(opd_dtype(out)) : opd_dtype(out);
    opd_tensor *staging = t == opd_dtype(out) ? out : opdi_cu_staging_filled(out, t);
    int64_t sizes[OPD_MAX_DIMS];
    opdi_cu_list p;
    int n;
    if (!staging || opdi_cu_list_make(call, &p, staging, list, sizes, &n)) { return -1; }
    if (opd_tensor_device(values).type != OPD_CUDA) {
        values = opd_to_device(values, opd_tensor_device(out), opd_dtype(values));
    }
    if (values && opd_numel(values) == 1 && opd_ndim(values) == 0) { p.one = 0; }
    else { values = values ? opd_expand(values, opd_ints_of(sizes, n)) : NULL; }
    values = values ? opdi_cu_as(values, t) : NULL;
    if (!values || (accumulate ? opdi_cu_list_add(&p, staging, values, -1, false)
                    : opdi_cu_list_run(&p, staging, values, true))) {
        return -1;
    }
    return opdi_cu_staging_store(out, staging);
}
static int opdi_cu_index_put_kernel(opd_call *call) {
    if (opd_arg_bool(call, 3) && opdi_cu_is_complex(call, 0)) { return opd_cpu_fallback(call); }
    opd_tensor *out = opd_result_update(call);
    return !out ? -1 : opdi_cu_list_put(call, out, opd_arg_tensors(call, 1), opd_arg_tensor(call, 2),
                                        opd_arg_bool(call, 3));
}
/* Runs put(self, index, source, accumulate), which indexes `self` as if it had one dim. */
static int opdi_cu_put_kernel(opd_call *call) {
    if (opd_arg_bool(call, 3) && opdi_cu_is_complex(call, 0)) { return opd_cpu_fallback(call); }
    opd_tensor *out = opd_result_update(call), *staging, *flat, *index, *src;
    staging = !out ? NULL : opd_is_contiguous(out) ? out : opdi_cu_staging_filled(out, opd_dtype(out));
    flat = staging ? opdi_cu_flat(staging) : NULL;
    index = flat ? opdi_cu_flat(opd_arg_tensor(call, 1)) : NULL;
    src = index ? opdi_cu_flat(opd_arg_tensor(call, 2)) : NULL;
    if (!src || opdi_cu_list_put(call, flat, opd_tensors_of(&index, 1), src, opd_arg_bool(call, 3))) { return -1; }
    return opdi_cu_staging_store(out, staging);
}
/* Runs embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq). */
static int opdi_cu_embedding_backward_kernel(opd_call *call) {
    if (opdi_cu_is_complex(call, 0)) { return opd_cpu_fallback(call); }
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *out, *staging;
    int64_t sizes[OPD_MAX_DIMS], skip = opd_arg_int(call, 3);
    opdi_cu_list p;
    int n;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    staging = opdi_cu_staging(out, opdi_cu_compute_dtype(opd_dtype(out)));
    x = staging && opd_zero_(staging) ? opdi_cu_as(x, OPD_INT64) : NULL;
    g = x ? opdi_cu_as(g, opd_dtype(staging)) : NULL;
    if (!g || opdi_cu_list_make(call, &p, staging, opd_tensors_of(&x, 1), sizes, &n)) { return -1; }
    if (opd_numel(staging) == 0) { return 0; }
    skip = skip < 0 ? -1 : skip * opd_strides(staging)[0];
    return opdi_cu_list_add(&p, staging, g, skip, opd_arg_bool(call, 4)) ? -1 : opdi_cu_staging_store(out, staging);
}

//== cat, stack ========================================================================================================

enum { OPDI_CU_PIECES = 64 };
/* Tensors to be joined: tensor k, [outer][len[k]], becomes columns at[k] .. of `out`, [outer][row]. */
template <class T> struct opdi_cu_pieces {
    const T *from[OPDI_CU_PIECES];
    int64_t len[OPDI_CU_PIECES], at[OPDI_CU_PIECES];
    T *out;
    int64_t outer, row;
};
template <class T> __global__ void opdi_cu_join_kernel(opdi_cu_pieces<T> p) {
    const int64_t len = p.len[blockIdx.y], at = p.at[blockIdx.y], n = p.outer * len;
    const T *from = p.from[blockIdx.y];
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        int64_t c;
        const int64_t o = opdi_cu_divide(i, len, &c);
        p.out[o * p.row + at + c] = from[i];
    }
}
/* Copies the *n tensors that were collected, in one launch, and sets *n to 0.  Returns 0, or -1 and sets an error. */
template <class T> static int opdi_cu_join_some(opdi_cu_pieces<T> *p, int *n) {
    int64_t most = 0;
    const int count = *n;
    for (int k = 0; k < count; k++) { most = p->len[k] > most ? p->len[k] : most; }
    *n = 0;
    if (count == 0 || most * p->outer == 0) { return 0; }
    dim3 grid = opdi_cu_grid(most * p->outer, 256);
    grid.y = (unsigned)count;
    return opdi_cu_launch(opdi_cu_join_kernel<T>, grid, 256, 0, *p);
}
static bool opdi_cu_join_skips(const opd_tensor *t, bool stack) {
    return !stack && opd_ndim(t) == 1 && opd_numel(t) == 0;
}
/* Returns the number of positions along the result's dim `dim` that tensor t fills. */
static int64_t opdi_cu_join_size(const opd_tensor *t, int dim, bool stack) { return stack ? 1 : opd_sizes(t)[dim]; }
template <class T> static int opdi_cu_join_units(opd_tensor *out, opd_tensors list, int dim, bool stack) {
    const int64_t bytes = (int64_t)opd_dtype_size(opd_dtype(out));
    int64_t at = 0;
    opdi_cu_pieces<T> p;
    int n = 0;
    p.out = opdi_cu_data<T>(out);
    p.outer = opdi_cu_span(opd_sizes(out), 0, dim);
    p.row = opd_numel(out) / p.outer * bytes / (int64_t)sizeof(T);
    for (int64_t k = 0; k < list.n; k++) {
        const opd_tensor *t = list.data[k];
        if (opdi_cu_join_skips(t, stack)) { continue; }
        p.from[n] = opdi_cu_data<T>(t); p.at[n] = at;
        p.len[n] = opd_numel(t) / p.outer * bytes / (int64_t)sizeof(T);
        at += p.len[n++];
        if (n == OPDI_CU_PIECES && opdi_cu_join_some(&p, &n)) { return -1; }
    }
    return opdi_cu_join_some(&p, &n);
}
static int opdi_cu_join(opd_call *call, bool stack) {
    const opd_tensors list = opd_arg_tensors(call, 0);
    int64_t at = 0, unit = 16, k;
    bool straight;
    opd_tensor *out;
    int dim;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    if (opd_numel(out) == 0) { return 0; }
    dim = opdi_cu_dim(opd_arg_int(call, 1), out);
    straight = opd_is_contiguous(out);
    for (k = 0; k < list.n && straight; k++) {
        const opd_tensor *t = list.data[k];
        const int64_t bytes = (int64_t)opd_dtype_size(opd_dtype(t));
        if (opdi_cu_join_skips(t, stack)) { continue; }
        straight = opd_dtype(t) == opd_dtype(out) && opd_is_contiguous(t);
        if (opd_numel(t) == 0) { continue; }
        const int64_t u = opdi_cu_unit(opd_numel(t) / opdi_cu_span(opd_sizes(out), 0, dim) * bytes,
                                       (uintptr_t)opdi_cu_data<void>(t), (uintptr_t)opdi_cu_data<void>(out));
        unit = u < unit ? u : unit;
    }
    if (straight) { OPDI_CU_UNITS(unit, T, return opdi_cu_join_units<T>(out, list, dim, stack)) }
    for (k = 0; k < list.n; k++) {                /* tensors with other strides or dtypes are copied one by one */
        opd_tensor *t = list.data[k], *piece;
        int64_t strides[OPD_MAX_DIMS];
        if (opdi_cu_join_skips(t, stack)) { continue; }
        for (int d = 0; d < opd_ndim(t); d++) { strides[d] = opd_strides(out)[d + (stack && d >= dim)]; }
        piece = opd_tensor_view(out, opd_sizes(t), strides, opd_ndim(t),
                                opd_tensor_offset(out) + at * opd_strides(out)[dim]);
        if (!piece || !opd_copy_(piece, t)) { return -1; }
        at += opdi_cu_join_size(t, dim, stack);
    }
    return 0;
}
static int opdi_cu_cat_kernel(opd_call *call) { return opdi_cu_join(call, false); }
static int opdi_cu_stack_kernel(opd_call *call) { return opdi_cu_join(call, true); }

//== writing through a view: slice_scatter and similar operators =======================================================

/* Returns a tensor with the strides and contents of `self`, for a view that is defined by positions in memory.  Returns
   `out` itself if it has these strides, or if a dim of `self` has the stride 0.  Returns NULL and sets an error if it
   fails. */
static opd_tensor *opdi_cu_lies_as(opd_tensor *self, opd_tensor *out) {
    const opd_value none = opd_value_none();
    bool same = true;
    opd_tensor *staging;
    for (int d = 0; d < opd_ndim(self); d++) {
        if (opd_sizes(self)[d] > 1 && opd_strides(self)[d] == 0) { return out; }
        same = same && opd_strides(self)[d] == opd_strides(out)[d];
    }
    if (same) { return out; }
    staging = opd_empty_strided_full(opd_ints_of(opd_sizes(self), opd_ndim(self)),
                                     opd_ints_of(opd_strides(self), opd_ndim(self)), opd_value_int(opd_dtype(self)),
                                     none, opd_value_device(opd_tensor_device(self)), none);
    return staging ? opd_copy_(staging, self) : NULL;
}
static int opdi_cu_view_scatter(opd_call *call, const char *view, int nargs, bool flat) {
    opd_tensor *out = opd_result_update(call), *staging, *place;
    opd_value v[6];
    if (!out || !(staging = flat ? opdi_cu_lies_as(opd_arg_tensor(call, 0), out) : out)) { return -1; }
    v[0] = opd_value_tensor(staging);
    for (int i = 1; i < nargs; i++) { v[i] = opd_arg_value(call, i + 1); }
    place = opd_call_op(opd_find(view), v, nargs);
    if (!place || !opd_copy_(place, opd_arg_tensor(call, 1))) { return -1; }
    return staging == out || opd_copy_(out, staging) ? 0 : -1;
}
static int opdi_cu_slice_scatter_kernel(opd_call *call) {
    return opdi_cu_view_scatter(call, "aten::slice.Tensor", 5, false);
}
static int opdi_cu_select_scatter_kernel(opd_call *call) {
    return opdi_cu_view_scatter(call, "aten::select.int", 3, false);
}
static int opdi_cu_diagonal_scatter_kernel(opd_call *call) {
    return opdi_cu_view_scatter(call, "aten::diagonal", 4, false);
}
static int opdi_cu_as_strided_scatter_kernel(opd_call *call) {
    return opdi_cu_view_scatter(call, "aten::as_strided", 4, true);
}

//== one_hot, repeat_interleave, searchsorted, bucketize ===============================================================

struct opdi_cu_one_hot {
    const int64_t *x;
    int64_t *out, n;
    opdi_cu_guard guard;
    __device__ void operator()(int64_t i) const {
        int64_t c;
        const int64_t v = x[opdi_cu_divide(i, n, &c)];
        out[i] = v == c;
        if (c == 0) { (void)guard.inside(v, n); }
    }
};
static int opdi_cu_one_hot_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out, *staging;
    int64_t n = opd_arg_int(call, 1), sizes[OPD_MAX_DIMS];
    if (n == -1 && opd_numel(x) > 0 && opd_ndim(x) < OPD_MAX_DIMS && opd_dtype(x) == OPD_INT64) {
        n = opd_item_i64(opd_max(x)) + 1;         /* waits for the device */
        if (!opd_ok()) { return -1; }
        for (int d = 0; d < opd_ndim(x); d++) { sizes[d] = opd_sizes(x)[d]; }
        sizes[opd_ndim(x)] = n < 1 ? 1 : n;
        out = opd_result(call, 0, sizes, opd_ndim(x) + 1, OPD_INT64);
    } else { out = opd_results_from_fake(call) ? NULL : opdi_cu_result(call, 0); }
    staging = out ? opdi_cu_staging(out, OPD_INT64) : NULL;
    x = staging ? opdi_cu_as(x, OPD_INT64) : NULL;
    if (!x) { return -1; }
    const opdi_cu_one_hot f = {opdi_cu_data<int64_t>(x), opdi_cu_data<int64_t>(staging), opd_sizes(out)[opd_ndim(x)],
                               opdi_cu_guard_of(call, "Class values must be non-negative and smaller than "
                                                "num_classes.")};
    return opdi_cu_each(opd_numel(staging), f) ? -1 : opdi_cu_staging_store(out, staging);
}

template <class T> struct opdi_cu_repeats {       /* ends[i] = repeats[i], or an impossible number if repeats[i] is
                                                     negative */
    const T *x;
    int64_t *ends;
    __device__ void operator()(int64_t i) const {
        const int64_t v = (int64_t)x[i];
        ends[i] = v < 0 ? INT64_MIN / 2 : v;
    }
};
/* Sets out[i] to the number j for which begins[j] <= i < begins[j + 1]. */
template <class T> struct opdi_cu_repeat {
    const int64_t *begins;                        /* [n + 1] */
    int64_t n;
    T *out;
    __device__ void operator()(int64_t i) const {
        int64_t low = 0, high = n;
        while (low < high) {
            const int64_t mid = low + (high - low) / 2;
            if (begins[mid + 1] <= i) { low = mid + 1; } else { high = mid; }
        }
        out[i] = (T)low;
    }
};
template <class T> static int opdi_cu_repeat_of(opd_call *call, opd_tensor *r) {
    const int64_t n = opd_numel(r);
    int64_t *begins = (int64_t *)opdi_cu_scratch((n + 1) * 8), total;
    const opdi_cu_repeats<T> f = {opdi_cu_data<T>(r), begins};
    opd_tensor *out, *staging;
    if (!begins || opdi_cu_each(n, f) || opdi_cu_offsets(begins, n)) { return -1; }
    total = opdi_cu_fetch(begins + n);
    if (!opd_ok()) { return -1; }
    if (total < 0) { return opd_fail(OPD_ERROR_ARGUMENT, "repeats can not be negative"); }
    if (!opd_arg_is_none(call, 1) && opd_arg_int(call, 1) != total) {
        return opd_fail(OPD_ERROR_SHAPE, "allocated size does not match required size");
    }
    out = opd_result(call, 0, &total, 1, opd_dtype(r));
    staging = out ? opdi_cu_staging(out, opd_dtype(r)) : NULL;
    if (!staging) { return -1; }
    const opdi_cu_repeat<T> g = {begins, n, opdi_cu_data<T>(staging)};
    return opdi_cu_each(total, g) ? -1 : opdi_cu_staging_store(out, staging);
}
static int opdi_cu_repeat_interleave_kernel(opd_call *call) {
    opd_tensor *r = opd_arg_tensor(call, 0);
    if (opd_ndim(r) != 1) { return opd_fail(OPD_ERROR_SHAPE, "repeat_interleave only accept 1D vector as repeat"); }
    if (opd_dtype(r) != OPD_INT64 && opd_dtype(r) != OPD_INT32) {
        return opd_fail(OPD_ERROR_DTYPE, "repeats must be an int64 or int32 tensor");
    }
    if (!(r = opdi_cu_as(r, opd_dtype(r)))) { return -1; }
    OPDI_CU_INDEX(opd_dtype(r), T, return opdi_cu_repeat_of<T>(call, r))
}

/* Finds the first position whose number is not less than the value or, if `right` is true, the first whose number is
   greater.  Integers are compared as int64, other numbers as double. */
template <class T, class C, class O> struct opdi_cu_search {
    const T *seq, *values;
    const int64_t *order;
    O *out;
    int64_t n, m;                             /* lengths of a row of seq and of values; m is 0 if seq is one row for all
                                                 values */
    C number;                                     /* the value, if `values` is NULL */
    opdi_cu_guard guard;
    __device__ void operator()(int64_t i, bool right) const {
        const int64_t row = m ? i / m : 0;
        const T *s = seq + row * n;
        const C x = values ? opdi_cu_load<C>(values + i) : number;
        int64_t low = 0, high = n;
        while (low < high) {
            const int64_t mid = low + (high - low) / 2, at = order ? order[row * n + mid] : mid;
            if (!guard.inside(at, n)) { break; }
            const C y = opdi_cu_load<C>(s + at);
            if (right ? !(y > x) : !(y >= x)) { low = mid + 1; } else { high = mid; }
        }
        out[i] = (O)low;
    }
};
template <class F, bool right> struct opdi_cu_search_side : F {
    explicit opdi_cu_search_side(const F &f) : F(f) { }
    __device__ void operator()(int64_t i) const { F::operator()(i, right); }
};
template <class T, class O> static int opdi_cu_search_of(const opd_call *call, opd_tensor *out, opd_tensor *seq,
                                                         opd_tensor *values, opd_value number, opd_tensor *sorter,
                                                         bool right) {
    typedef typename std::conditional<std::is_same<opdi_cu_acc<T>, int64_t>::value, int64_t, double>::type C;
    typedef opdi_cu_search<T, C, O> F;
    F f;
    f.seq = opdi_cu_data<T>(seq); f.values = values ? opdi_cu_data<T>(values) : NULL;
    f.order = sorter ? opdi_cu_data<int64_t>(sorter) : NULL; f.out = opdi_cu_data<O>(out);
    f.n = opd_size(seq, -1); f.m = opd_ndim(seq) > 1 ? opd_size(values, -1) : 0;
    f.number = number.tag == OPD_TAG_FLOAT ? (C)number.u.d : (C)number.u.i;
    f.guard = opdi_cu_guard_of(call, "torch.searchsorted(): sorter index out of range");
    return right ? opdi_cu_each(opd_numel(out), opdi_cu_search_side<F, true>(f))
        : opdi_cu_each(opd_numel(out), opdi_cu_search_side<F, false>(f));
}
static int opdi_cu_search_run(opd_call *call, opd_tensor *seq, opd_value v, opd_tensor *sorter, bool right) {
    opd_tensor *out = opdi_cu_result(call, 0), *staging, *values = v.tag == OPD_TAG_TENSOR ? v.u.t : NULL;
    if (!out || !(staging = opdi_cu_staging(out, opd_dtype(out))) || opd_numel(out) == 0) { return out ? 0 : -1; }
    if (values && opd_tensor_device(values).type != OPD_CUDA) {              /* a value on the host */
        v = opd_dtype_is_floating(opd_dtype(values)) ? opd_value_double(opd_item_f64(values))
            : opd_value_int(opd_item_i64(values));
        values = NULL;
    } else if (values && !(values = opdi_cu_as(values, opd_dtype(seq)))) { return -1; }
    seq = opdi_cu_as(seq, opd_dtype(seq));
    sorter = sorter ? opdi_cu_as(sorter, OPD_INT64) : NULL;
    if (!seq || !opd_ok()) { return -1; }
    if (opd_dtype(out) == OPD_INT32) {
        OPDI_CU_ALL(opd_dtype(seq), T, {
            if (opdi_cu_search_of<T, int32_t>(call, staging, seq, values, v, sorter, right)) { return -1; }
        })
    } else {
        OPDI_CU_ALL(opd_dtype(seq), T, {
            if (opdi_cu_search_of<T, int64_t>(call, staging, seq, values, v, sorter, right)) { return -1; }
        })
    }
    return opdi_cu_staging_store(out, staging);
}
/* Runs searchsorted(sorted_sequence, self, *, out_int32, right, side, sorter). */
static int opdi_cu_searchsorted_kernel(opd_call *call) {
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_search_run(call, opd_arg_tensor(call, 0), opd_arg_value(call, 1), opd_arg_tensor(call, 5),
                              opd_arg_is_none(call, 4) ? opd_arg_bool(call, 3) : *opd_arg_str(call, 4) == 'r');
}
/* Runs bucketize(self, boundaries, *, out_int32, right). */
static int opdi_cu_bucketize_kernel(opd_call *call) {
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_search_run(call, opd_arg_tensor(call, 1), opd_arg_value(call, 0), NULL, opd_arg_bool(call, 3));
}

//== tril, triu, flip ==================================================================================================

template <class T> struct opdi_cu_triangle {
    const T *x;
    T *out;
    int64_t rows, cols, diagonal;
    bool lower;
    __device__ void operator()(int64_t i) const {
        int64_t r, c;
        (void)opdi_cu_divide(opdi_cu_divide(i, cols, &c), rows, &r);
        out[i] = (lower ? c - r <= diagonal : c - r >= diagonal) ? x[i] : T();
    }
};
static int opdi_cu_triangle_run(opd_call *call, bool lower) {
    const int64_t diagonal = opd_arg_int(call, 1);
    opd_tensor *x = opd_arg_tensor(call, 0), *out, *staging;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    staging = opdi_cu_staging(out, opd_dtype(out));
    x = staging ? opdi_cu_as(x, opd_dtype(x)) : NULL;
    if (!x) { return -1; }
    OPDI_CU_SIZES(opd_dtype(x), T, {
        const opdi_cu_triangle<T> f = {opdi_cu_data<T>(x), opdi_cu_data<T>(staging), opd_size(x, -2), opd_size(x, -1),
                                       diagonal, lower};
        if (opdi_cu_each(opd_numel(x), f)) { return -1; }
    })
    return opdi_cu_staging_store(out, staging);
}
static int opdi_cu_tril_kernel(opd_call *call) { return opdi_cu_triangle_run(call, true); }
static int opdi_cu_triu_kernel(opd_call *call) { return opdi_cu_triangle_run(call, false); }

/* Copies x to out.  Flipped dims have negative strides in x. */
template <class T> struct opdi_cu_walk_copy {
    opdi_cu_strided<2> walk;
    T *out;
    const T *x;
    __device__ void operator()(int64_t i) const {
        int64_t o[2];
        walk.at(i, o);
        out[o[0]] = x[o[1]];
    }
};
static int opdi_cu_flip_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out;
    const opd_ints dims = opd_arg_ints(call, 1);
    int64_t strides[OPD_MAX_DIMS], at = 0;
    int order[OPD_MAX_DIMS], d, k;
    const int n = opd_ndim(x);
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    for (d = 0; d < n; d++) { strides[d] = opd_strides(x)[d]; }
    for (k = 0; k < (int)dims.n && n > 0 && opd_numel(x) > 0; k++) {
        d = opdi_cu_dim(dims.data[k], x);
        at += (opd_sizes(x)[d] - 1) * strides[d];
        strides[d] = -strides[d];
    }
    for (d = 0; d < n; d++) {                     /* sorts the dims by their order in out's memory */
        for (k = d; k > 0 && opd_strides(out)[order[k - 1]] < opd_strides(out)[d]; k--) { order[k] = order[k - 1]; }
        order[k] = d;
    }
    OPDI_CU_SIZES(opd_dtype(x), T, {
        opdi_cu_walk_copy<T> f;
        f.walk.begin();
        for (d = 0; d < n; d++) {
            const int64_t s[2] = {opd_strides(out)[order[d]], strides[order[d]]};
            f.walk.add(opd_sizes(x)[order[d]], s);
        }
        f.out = opdi_cu_data<T>(out); f.x = opdi_cu_data<T>(x) + at;
        return opdi_cu_each(opd_numel(out), f);
    })
    return 0;
}

//== embedding_bag =====================================================================================================

/* Each thread computes one element of the result of a bag (a range of indices of rows of w).  mode: 0 sum, 1 mean, 2
   maximum. */
template <typename T> struct opdi_cu_bags {
    int64_t n, bags, offsets, d, rows, skip;      /* n: number of indices; rows: of w; d: length of a row; skip: an
                                                     index that is ignored */
    int mode;
    const T *w, *factors;                         /* factors: NULL, or a factor for each index */
    const int64_t *index, *at;                    /* at [offsets]: where bags begin; the last may be the end */
    T *out;
    int64_t *counts, *most;                       /* counts [bags]; most: NULL, or [bags, d] */
    opdi_cu_guard guard, starts;
    __device__ void operator()(int64_t e) const {
        typedef opdi_cu_acc<T> A;
        const int64_t wide = d ? d : 1, b = e / wide, c = e % wide, end = b + 1 < offsets ? at[b + 1] : n;
        int64_t count = 0, from = 0;
        A s = 0;
        if (at[b] < 0 || end > n || at[b] > end || (b == 0 && at[0] != 0)) { starts.note(at[b], n); return; }
        for (int64_t i = at[b]; i < end; i++) {
            const int64_t r = index[i];
            if (!guard.inside(r, rows) || r == skip) { continue; }
            if (c < d) {
                const A v = opdi_cu_load<A>(w + r * d + c);
                if (mode != 2) { s += factors ? opdi_cu_load<A>(factors + i) * v : v; }
                else if (count == 0 || v > s) { s = v; from = r; }
            }
            count++;
        }
        if (mode == 1 && count > 1) { s /= (A)count; }
        if (c < d) {
            opdi_cu_store(out + e, s);
            if (most) { most[e] = from; }
        }
        if (c == 0) { counts[b] = mode == 0 ? 0 : count; }
    }
};
/* Finds the bag of index number i: the number of offsets that are not greater than i, minus 1. */
struct opdi_cu_bag_of {
    int64_t offsets;
    const int64_t *at;
    int64_t *bags;
    __device__ void operator()(int64_t i) const {
        int64_t a = 0, b = offsets;
        while (a < b) {
            const int64_t mid = (a + b) / 2;
            if (at[mid] <= i) { a = mid + 1; } else { b = mid; }
        }
        bags[i] = a - 1;
    }
};
/* Runs _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
   include_last_offset, padding_idx). */
static int opdi_cu_embedding_bag_kernel(opd_call *call) {
    opd_tensor *w = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *at = opd_arg_tensor(call, 2);
    opd_tensor *factors = opd_arg_tensor(call, 6), *r[4], *staging[4];
    if (opd_results_from_fake(call)) { return -1; }
    const int mode = (int)opd_arg_int(call, 4);
    const int64_t bags = opd_sizes(opdi_cu_result(call, 0))[0];
    w = opdi_cu_as(w, opd_dtype(w));
    x = opdi_cu_as(x, OPD_INT64);
    at = opdi_cu_as(at, OPD_INT64);
    if (!w || !x || !at || (factors && !(factors = opdi_cu_as(factors, opd_dtype(w))))) { return -1; }
    for (int k = 0; k < 4; k++) {
        r[k] = opdi_cu_result(call, k);
        staging[k] = opdi_cu_staging(r[k], k ? OPD_INT64 : opd_dtype(r[k]));
        if (!staging[k] || (k == 2 && !opd_zero_(staging[k]))) { return -1; }
    }
    OPDI_CU_FLOATS(opd_dtype(w), T, {
        const opdi_cu_bags<T> f = {
            opd_numel(x), bags, opd_numel(at), opd_sizes(w)[1], opd_sizes(w)[0], opd_arg_int(call, 8), mode,
            opdi_cu_data<T>(w), factors ? opdi_cu_data<T>(factors) : NULL, opdi_cu_data<int64_t>(x),
            opdi_cu_data<int64_t>(at), opdi_cu_data<T>(staging[0]), opdi_cu_data<int64_t>(staging[2]),
            mode == 2 ? opdi_cu_data<int64_t>(staging[3]) : NULL, opdi_cu_guard_of(call),
            opdi_cu_guard_of(call, "offsets must begin with 0, must not decrease, and must not exceed input's length")};
        if (opdi_cu_each(bags * (f.d ? f.d : 1), f)) { return -1; }
    })
    if (opd_numel(staging[1])) {
        const opdi_cu_bag_of f = {opd_numel(at), opdi_cu_data<int64_t>(at), opdi_cu_data<int64_t>(staging[1])};
        if (opdi_cu_each(opd_numel(staging[1]), f)) { return -1; }
    }
    if (mode != 2 && !opd_copy_(staging[3], staging[2])) { return -1; }
    for (int k = 0; k < 4; k++) { if (opdi_cu_staging_store(r[k], staging[k])) { return -1; } }
    return 0;
}

static const opdi_cu_registration opdi_cu_table_indexing[] = {
    {"gather", opdi_cu_gather_kernel}, {"scatter.src", opdi_cu_scatter_kernel},
    {"scatter.value", opdi_cu_scatter_kernel}, {"scatter.reduce", opdi_cu_scatter_reduce_kernel},
    {"scatter.value_reduce", opdi_cu_scatter_reduce_kernel}, {"scatter_add", opdi_cu_scatter_add_kernel},
    {"scatter_reduce.two", opdi_cu_scatter_reduce_two_kernel}, {"index_select", opdi_cu_index_select_kernel},
    {"index_add", opdi_cu_index_add_kernel}, {"index_copy", opdi_cu_index_copy_kernel},
    {"index_fill.int_Scalar", opdi_cu_index_fill_kernel}, {"index_fill.int_Tensor", opdi_cu_index_fill_kernel},
    {"index_reduce", opdi_cu_index_reduce_kernel}, {"index.Tensor", opdi_cu_index_kernel},
    {"index_put", opdi_cu_index_put_kernel}, {"take", opdi_cu_take_kernel}, {"put", opdi_cu_put_kernel},
    {"masked_select", opdi_cu_masked_select_kernel}, {"masked_scatter", opdi_cu_masked_scatter_kernel},
    {"masked_fill.Tensor", opdi_cu_masked_fill_kernel}, {"nonzero", opdi_cu_nonzero_kernel},
    {"cat", opdi_cu_cat_kernel}, {"stack", opdi_cu_stack_kernel}, {"embedding", opdi_cu_embedding_kernel},
    {"_embedding_bag", opdi_cu_embedding_bag_kernel}, {"_embedding_bag_forward_only", opdi_cu_embedding_bag_kernel},
    {"embedding_dense_backward", opdi_cu_embedding_backward_kernel}, {"one_hot", opdi_cu_one_hot_kernel},
    {"slice_scatter", opdi_cu_slice_scatter_kernel}, {"select_scatter", opdi_cu_select_scatter_kernel},
    {"diagonal_scatter", opdi_cu_diagonal_scatter_kernel},
    {"as_strided_scatter", opdi_cu_as_strided_scatter_kernel},
    {"repeat_interleave.Tensor", opdi_cu_repeat_interleave_kernel},
    {"searchsorted.Tensor", opdi_cu_searchsorted_kernel}, {"searchsorted.Scalar", opdi_cu_searchsorted_kernel},
    {"bucketize.Tensor", opdi_cu_bucketize_kernel}, {"bucketize.Scalar", opdi_cu_bucketize_kernel},
    {"tril", opdi_cu_tril_kernel}, {"triu", opdi_cu_triu_kernel}, {"flip", opdi_cu_flip_kernel},
    {NULL, NULL}};

//== results that are the same in each run =============================================================================
//
//  Kernels that add or write at indices use atomic operations, in any order.  If opd_deterministic_set is on, the
//  functions below do the same in one order: they sort the positions by the place to which each belongs, and keep the
//  order of positions with the same place.

/* Sets keys[i] to the offset in `a` of position i of the indices, or to -1 if the index is out of range, and values[i]
   to the element of b, times alpha if elements are added. */
template <class T, bool adds> struct opdi_cu_order_keys : opdi_cu_indexed {
    int64_t *keys;
    T *values;
    opdi_cu_order_keys(const opdi_cu_indexed &x, int64_t *keys_, T *values_)
        : opdi_cu_indexed(x), keys(keys_), values(values_) { }
    __device__ void operator()(int64_t i) const {
        int64_t pa, pb;
        const bool there = place(i, &pa, &pb);
        const T v = ((const T *)b)[pb];
        keys[i] = there ? pa : -1;
        if constexpr (adds) { values[i] = opdi_cu_times((T)alpha, v); } else { values[i] = v; }
    }
};
/* Writes values [nb, nq, na] to `self`.  If a key occurs several times, the value of its last position remains.  keys
   [nq] are sorted; order[q] is the position of keys[q] before sorting. */
template <class T> struct opdi_cu_order_write {
    opdi_cu_list list;
    const int64_t *keys, *order;
    T *self;
    const T *values;
    __device__ void operator()(int64_t i) const {
        int64_t a, q;
        const int64_t b = opdi_cu_divide(opdi_cu_divide(i, list.na, &a), list.nq, &q), key = keys[q];
        if (key < 0 || (q + 1 < list.nq && keys[q + 1] == key)) { return; }
        self[key + list.rest(b, a)] = values[(b * list.nq + order[q]) * list.na + a];
    }
};
static int opdi_cu_order_write_all(const opdi_cu_list *p, opd_tensor *const *sorted, opd_tensor *self,
                                   opd_tensor *values) {
    OPDI_CU_SIZES(opd_dtype(self), T, {
        const opdi_cu_order_write<T> f = {*p, opdi_cu_data<int64_t>(sorted[0]), opdi_cu_data<int64_t>(sorted[1]),
                                          opdi_cu_data<T>(self), opdi_cu_data<T>(values)};
        return opdi_cu_each(p->nb * p->nq * p->na, f);
    })
    return 0;
}
/* Writes `values` to the positions of `self` that the plan lists, as opdi_cu_list_run does. */
static int opdi_cu_list_write_ordered(opdi_cu_list *p, opd_tensor *self, opd_tensor *values) {
    opd_tensor *const keys = opdi_cu_new(opd_ints_of(&p->nq, 1), OPD_INT64), *sorted[2];
    if (!keys || !opd_ok()) { return -1; }
    const opdi_cu_list_keys f = {*p, opdi_cu_data<int64_t>(keys), -1};
    if (opdi_cu_each(p->nq, f) || opd_sort_stable(sorted, keys, opd_value_bool(true), 0, false)) { return -1; }
    return opdi_cu_order_write_all(p, sorted, self, values);
}
/* Scatters (f.how is OPDI_CU_SCATTER) or adds n elements of f.b to `a`, as opdi_cu_indexed_run does.  Returns 0, or -1
   and sets an error: products (OPDI_CU_MUL) have no fixed order. */
static int opdi_cu_indexed_ordered(const opd_call *call, const opdi_cu_indexed &f, int64_t n, opd_tensor *a) {
    opd_tensor *const keys = opdi_cu_new(opd_ints_of(&n, 1), OPD_INT64), *values, *sorted[2];
    int64_t *const k = opdi_cu_data<int64_t>(keys);
    opdi_cu_list p;
    if (f.how == OPDI_CU_MUL) {
        if (opd_deterministic_alert(call, " of products")) { return -1; }
        return opd_dtype(a) == OPD_FLOAT32 ? opdi_cu_each(n, opdi_cu_scatter_fold<float>(f))
            : opdi_cu_each(n, opdi_cu_scatter_fold<double>(f));
    }
    values = keys ? opdi_cu_new(opd_ints_of(&n, 1), opd_dtype(a)) : NULL;
    if (!values) { return -1; }
    if (f.how == OPDI_CU_SCATTER) {
        OPDI_CU_SIZES(opd_dtype(a), T, {
            if (opdi_cu_each(n, opdi_cu_order_keys<T, false>(f, k, opdi_cu_data<T>(values)))) { return -1; }
        })
    } else if (opd_dtype(a) == OPD_FLOAT32
               ? opdi_cu_each(n, opdi_cu_order_keys<float, true>(f, k, opdi_cu_data<float>(values)))
               : opdi_cu_each(n, opdi_cu_order_keys<double, true>(f, k, opdi_cu_data<double>(values)))) { return -1; }
    if (opd_sort_stable(sorted, keys, opd_value_bool(true), 0, false)) { return -1; }
    p.n = 0; p.nb = p.na = p.one = 1; p.nq = n;
    p.before.begin(); p.after.begin();
    p.guard = f.guard;
    return f.how == OPDI_CU_SCATTER ? opdi_cu_order_write_all(&p, sorted, a, values)
        : opdi_cu_list_sums_of(&p, sorted, a, values, false);
}

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:pooling     pooling, padding, resampling
//----------------------------------------------------------------------------------------------------------------------

//== padding ===========================================================================================================

/* Pads x with a constant: out = x at positions inside of x, otherwise *value. */
template <class T> struct opdi_cu_pad {
    int n;
    int64_t out_size[OPD_MAX_DIMS], size[OPD_MAX_DIMS], low[OPD_MAX_DIMS], stride[OPD_MAX_DIMS];
    const T *x, *value;
    T *out;
    __device__ void operator()(int64_t i) const {
        int64_t rest = i, at = 0, r;
        bool inside = true;
        for (int d = n - 1; d >= 0; d--) {
            rest = opdi_cu_divide(rest, out_size[d], &r);
            r -= low[d];
            inside = inside && r >= 0 && r < size[d];
            at += r * stride[d];
        }
        out[i] = inside ? x[at] : *value;
    }
};
/* Runs constant_pad_nd(self, pad, value). */
static int opdi_cu_constant_pad_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out, *staging, *value;
    const opd_ints pad = opd_arg_ints(call, 1);
    const int n = opd_ndim(x);
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    staging = opdi_cu_staging(out, opd_dtype(out));
    value = staging ? opdi_cu_arg_as(call, 2, out, opd_dtype(out)) : NULL;
    if (!value) { return -1; }
    OPDI_CU_SIZES(opd_dtype(x), T, {
        opdi_cu_pad<T> f;
        f.n = 0;
        for (int d = 0; d < n; d++) {             /* joins a dim without padding with the dim before it */
            const int k = 2 * (n - 1 - d), m = f.n - 1;
            const int64_t low = k < (int)pad.n ? pad.data[k] : 0, size = opd_sizes(x)[d];
            if (m >= 0 && low == 0 && opd_sizes(out)[d] == size && f.stride[m] == opd_strides(x)[d] * size) {
                f.low[m] *= size; f.size[m] *= size; f.out_size[m] *= size; f.stride[m] = opd_strides(x)[d];
                continue;
            }
            f.low[f.n] = low; f.size[f.n] = size; f.out_size[f.n] = opd_sizes(out)[d];
            f.stride[f.n++] = opd_strides(x)[d];
        }
        f.x = opdi_cu_data<T>(x); f.value = opdi_cu_data<T>(value); f.out = opdi_cu_data<T>(staging);
        if (opdi_cu_each(opd_numel(staging), f)) { return -1; }
    })
    return opdi_cu_staging_store(out, staging);
}

/* reflection_pad and replication_pad (if `reflect` is false) of the last three dims.  If fewer dims are padded, the
   first of the three have size 1. */
struct opdi_cu_mirror {
    int64_t in[3], out[3], low[3];
    bool reflect;
    /* Returns the coordinate in x of coordinate i of out. */
    __device__ __forceinline__ int64_t from(int d, int64_t i) const {
        const int64_t n = in[d];
        i -= low[d];
        if (!reflect) { return i < 0 ? 0 : i >= n ? n - 1 : i; }
        return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    }
    /* Finds the coordinates of out that are copies of coordinate i of x, along dim d, in rising order.  Returns copy
       number k, or -1 if there is no copy with this number, or -2 if there are no more. */
    __device__ __forceinline__ int64_t to(int d, int64_t i, int64_t k) const {
        const int64_t n = in[d];
        if (reflect) {
            const int64_t o = k == 0 ? low[d] - i : k == 1 ? low[d] + i : low[d] + 2 * (n - 1) - i;
            if (k > 2) { return -2; }
            return o < 0 || o >= out[d] || (k == 0 && i == 0) || (k == 2 && i == n - 1) ? -1 : o;
        }
        const int64_t first = i == 0 ? 0 : i + low[d], last = i == n - 1 ? out[d] - 1 : i + low[d];
        const int64_t o = (first > 0 ? first : 0) + k;
        return o > last || o >= out[d] ? -2 : o;
    }
};
template <class T> struct opdi_cu_mirror_pad {
    opdi_cu_mirror m;
    const T *x;
    T *out;
    __device__ void operator()(int64_t i) const {
        int64_t c[3], p = i;
        for (int d = 2; d >= 0; d--) { p = opdi_cu_divide(p, m.out[d], &c[d]); }
        out[i] = x[((p * m.in[0] + m.from(0, c[0])) * m.in[1] + m.from(1, c[1])) * m.in[2] + m.from(2, c[2])];
    }
};
/* Each element of x's gradient is the sum of the gradients of its copies in the output. */
template <class T> struct opdi_cu_mirror_pad_backward {
    opdi_cu_mirror m;
    const T *g;
    T *out;
    __device__ void operator()(int64_t i) const {
        opdi_cu_acc<T> sum = 0;
        int64_t c[3], o[3], p = i;
        for (int d = 2; d >= 0; d--) { p = opdi_cu_divide(p, m.in[d], &c[d]); }
        for (int64_t a = 0; (o[0] = m.to(0, c[0], a)) != -2; a++) {
            for (int64_t b = 0; o[0] >= 0 && (o[1] = m.to(1, c[1], b)) != -2; b++) {
                for (int64_t e = 0; o[1] >= 0 && (o[2] = m.to(2, c[2], e)) != -2; e++) {
                    if (o[2] < 0) { continue; }
                    const int64_t at = ((p * m.out[0] + o[0]) * m.out[1] + o[1]) * m.out[2] + o[2];
                    sum += opdi_cu_load<opdi_cu_acc<T> >(g + at);
                }
            }
        }
        opdi_cu_store(out + i, sum);
    }
};
static bool opdi_cu_is_named(const opd_call *call, const char *prefix) {
    return strncmp(opd_op_name(opd_call_operator(call)) + strlen("aten::"), prefix, strlen(prefix)) == 0;
}
/* Computes `out` from `from`: by Forth, which moves elements of any type, or, if `back` is true, by Back, which adds
   floats.  Returns 0, or -1 and sets an error. */
template <template <class> class Forth, template <class> class Back, class P>
static int opdi_cu_forth_or_back(const P &p, opd_tensor *from, opd_tensor *out, bool back) {
    opd_tensor *staging = opdi_cu_staging(out, opd_dtype(out));
    if (!staging || !(from = opdi_cu_as(from, opd_dtype(from)))) { return -1; }
    if (back) {
        OPDI_CU_FLOATS(opd_dtype(from), T, {
            const Back<T> f = {p, opdi_cu_data<T>(from), opdi_cu_data<T>(staging)};
            if (opdi_cu_each(opd_numel(staging), f)) { return -1; }
        })
    } else {
        OPDI_CU_SIZES(opd_dtype(from), T, {
            const Forth<T> f = {p, opdi_cu_data<T>(from), opdi_cu_data<T>(staging)};
            if (opdi_cu_each(opd_numel(staging), f)) { return -1; }
        })
    }
    return opdi_cu_staging_store(out, staging);
}
/* Runs a padding with the arguments (self, padding) or, if `back` is true, its gradient with (grad_output, self,
   padding).  Returns 0, or -1 and sets an error. */
static int opdi_cu_mirror_run(opd_call *call, bool back) {
    opd_tensor *from = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, back), *out, *padded;
    const opd_ints pad = opd_arg_ints(call, 1 + back);
    const int nd = (int)pad.n / 2;
    opdi_cu_mirror m;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    padded = back ? from : out;
    m.reflect = opdi_cu_is_named(call, "reflection");
    for (int d = 0; d < 3; d++) {
        const bool there = 3 - d <= nd;
        m.in[d] = there ? opd_size(x, d - 3) : 1;
        m.out[d] = there ? opd_size(padded, d - 3) : 1;
        m.low[d] = there ? pad.data[2 * (2 - d)] : 0;
    }
    return opdi_cu_forth_or_back<opdi_cu_mirror_pad, opdi_cu_mirror_pad_backward>(m, from, out, back);
}
static int opdi_cu_mirror_pad_kernel(opd_call *call) { return opdi_cu_mirror_run(call, false); }
static int opdi_cu_mirror_pad_backward_kernel(opd_call *call) { return opdi_cu_mirror_run(call, true); }

//== pooling ===========================================================================================================

/* The strides of an image [n, c, z, h, w]. */
struct opdi_cu_image {
    int64_t stride[5];
    __device__ __forceinline__ int64_t at(const int64_t *p, int64_t z, int64_t h, int64_t w) const {
        return p[0] * stride[0] + p[1] * stride[1] + z * stride[2] + h * stride[3] + w * stride[4];
    }
};
/* Pooling windows over x, in up to three dims: their number is out, and k, s, p, d are kernel size, stride, padding and
   dilation. */
struct opdi_cu_windows {
    int64_t n, c, in[3], out[3], k[3], s[3], p[3], d[3], divisor;
    opdi_cu_image x, y, at;                       /* layouts of x and its gradient, y and its gradient, and the
                                                     positions of maxima */
    bool adaptive, include_pad, last;             /* last: channels are adjacent in the tensor that is written */
    opdi_cu_guard guard;
    const char *refused;                          /* not NULL: strays are a fault with this text */
    /* Splits position i of the result into plane[] = {n, c} and the coordinates o[3]. */
    __device__ __forceinline__ void split(int64_t i, const int64_t *size, int64_t *plane, int64_t *o) const {
        if (last) { i = opdi_cu_divide(i, c, &plane[1]); }
        for (int e = 2; e >= 0; e--) { i = opdi_cu_divide(i, size[e], &o[e]); }
        if (last) { plane[0] = i; } else { plane[0] = opdi_cu_divide(i, c, &plane[1]); }
    }
    /* Sets *lo and *hi for window o along dim e: the window covers *lo, *lo + d, ... below *hi.  Returns the divisor
       for an average. */
    __device__ __forceinline__ int64_t window(int e, int64_t o, int64_t *lo, int64_t *hi) const {
        if (adaptive) {
            int64_t r;
            *lo = opdi_cu_divide(o * in[e], out[e], &r);
            *hi = 1 + opdi_cu_divide((o + 1) * in[e] - 1, out[e], &r);
            return *hi - *lo;
        }
        const int64_t begin = o * s[e] - p[e], end = begin + k[e] < in[e] + p[e] ? begin + k[e] : in[e] + p[e];
        *lo = begin;
        *hi = begin + d[e] * (k[e] - 1) + 1;
        if (*lo < 0) { *lo += (d[e] - 1 - *lo) / d[e] * d[e]; }
        if (*hi > in[e]) { *hi = in[e]; }
        return include_pad ? end - begin : *hi - *lo;
    }
    /* Sets *lo and *hi for coordinate i along dim e: windows *lo to *hi - 1 may cover it. */
    __device__ __forceinline__ void windows(int e, int64_t i, int64_t *lo, int64_t *hi) const {
        int64_t r;
        if (adaptive) {
            *lo = opdi_cu_divide(i * out[e], in[e], &r);
            *hi = 1 + opdi_cu_divide((i + 1) * out[e] - 1, in[e], &r);
            return;
        }
        const int64_t first = i + p[e] - d[e] * (k[e] - 1);
        *lo = first <= 0 ? 0 : opdi_cu_divide(first + s[e] - 1, s[e], &r);
        *hi = opdi_cu_divide(i + p[e], s[e], &r) + 1;
        if (*hi > out[e]) { *hi = out[e]; }
    }
};
static __device__ __forceinline__ float opdi_cu_lowest(float) { return -INFINITY; }
static __device__ __forceinline__ double opdi_cu_lowest(double) { return -INFINITY; }
static __device__ __forceinline__ int64_t opdi_cu_lowest(int64_t) { return INT64_MIN; }

template <class T> struct opdi_cu_max_pool {
    opdi_cu_windows v;
    const T *x;
    T *y;
    int64_t *at;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t plane[2], o[3], lo[3], hi[3], best;
        A top = opdi_cu_lowest((A)0);
        v.split(i, v.out, plane, o);
        for (int e = 0; e < 3; e++) { (void)v.window(e, o[e], &lo[e], &hi[e]); }
        best = (lo[0] * v.in[1] + lo[1]) * v.in[2] + lo[2];
        for (int64_t a = lo[0]; a < hi[0]; a += v.d[0]) {
            for (int64_t b = lo[1]; b < hi[1]; b += v.d[1]) {
                for (int64_t c = lo[2]; c < hi[2]; c += v.d[2]) {
                    const A u = opdi_cu_load<A>(x + v.x.at(plane, a, b, c));
                    if (u > top || u != u) { top = u; best = (a * v.in[1] + b) * v.in[2] + c; }
                }
            }
        }
        opdi_cu_store(y + v.y.at(plane, o[0], o[1], o[2]), top);
        at[v.at.at(plane, o[0], o[1], o[2])] = best;
    }
};
/* Max pooling for small windows: two dims, K x K elements, no dilation, contiguous tensors with fewer than 2^31
   elements.  A thread computes several outputs, 256 apart, and loads all of their windows before it compares, so that
   all loads are in flight at once. */
enum { OPDI_CU_POOL_EACH = 2 };                   /* outputs of a thread */
struct opdi_cu_small_windows {
    int in[2], out[2], s[2], p[2];
    uint32_t all;                                 /* number of outputs */
    opdi_cu_pointwise_divider rows, columns;      /* for division by out[0] and out[1] */
};
template <class T, int K> __global__ void __launch_bounds__(256)
opdi_cu_max_pool_small(const opdi_cu_small_windows v, const T *x, T *y, int64_t *at) {
    typedef opdi_cu_acc<T> A;
    constexpr int EACH = OPDI_CU_POOL_EACH;
    const uint32_t first = blockIdx.x * (256 * EACH) + threadIdx.x;
    T u[EACH][K][K];
    int row[EACH], col[EACH];
    if (first >= v.all) { return; }
    OPDI_CU_UNROLL
    for (int e = 0; e < EACH; e++) {
        const uint32_t i = first + e * 256 < v.all ? first + e * 256 : first, line = v.columns.of(i);
        const uint32_t plane = v.rows.of(line);
        row[e] = (int)(line - plane * (uint32_t)v.out[0]) * v.s[0] - v.p[0];
        col[e] = (int)(i - line * (uint32_t)v.out[1]) * v.s[1] - v.p[1];
        const T *from = x + plane * (uint32_t)(v.in[0] * v.in[1]);
        OPDI_CU_UNROLL
        for (int a = 0; a < K; a++) {
            OPDI_CU_UNROLL
            for (int b = 0; b < K; b++) {
                const int h = row[e] + a, w = col[e] + b;
                u[e][a][b] = T(0.0f);
                if ((uint32_t)h < (uint32_t)v.in[0] && (uint32_t)w < (uint32_t)v.in[1]) {
                    u[e][a][b] = from[h * v.in[1] + w];
                }
            }
        }
    }
    OPDI_CU_UNROLL
    for (int e = 0; e < EACH; e++) {
        A top = opdi_cu_lowest((A)0);
        int best = (row[e] < 0 ? 0 : row[e]) * v.in[1] + (col[e] < 0 ? 0 : col[e]);
        OPDI_CU_UNROLL
        for (int a = 0; a < K; a++) {
            OPDI_CU_UNROLL
            for (int b = 0; b < K; b++) {
                const int h = row[e] + a, w = col[e] + b;
                const A now = opdi_cu_cast<A>(u[e][a][b]);
                if ((uint32_t)h < (uint32_t)v.in[0] && (uint32_t)w < (uint32_t)v.in[1] && (now > top || now != now)) {
                    top = now;
                    best = h * v.in[1] + w;
                }
            }
        }
        if (first + e * 256 < v.all) {
            opdi_cu_store(y + first + e * 256, top);
            at[first + e * 256] = best;
        }
    }
}
template <class T> struct opdi_cu_avg_pool {
    opdi_cu_windows v;
    const T *x;
    T *y;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t plane[2], o[3], lo[3], hi[3], n = 1;
        A sum = 0;
        v.split(i, v.out, plane, o);
        for (int e = 0; e < 3; e++) { n *= v.window(e, o[e], &lo[e], &hi[e]); }
        if (v.divisor) { n = v.divisor; }
        for (int64_t a = lo[0]; a < hi[0]; a++) {
            for (int64_t b = lo[1]; b < hi[1]; b++) {
                for (int64_t c = lo[2]; c < hi[2]; c++) { sum += opdi_cu_load<A>(x + v.x.at(plane, a, b, c)); }
            }
        }
        opdi_cu_store(y + v.y.at(plane, o[0], o[1], o[2]), n ? sum / (A)n : (A)0);
    }
};
/* Computes the gradient of x: for each element, adds the gradients y of the windows that may cover it. */
template <class T, bool maximum> struct opdi_cu_pool_backward {
    opdi_cu_windows v;
    const T *y;
    T *x;
    const int64_t *at;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t plane[2], p[3], lo[3], hi[3], l, h;
        A sum = 0;
        v.split(i, v.in, plane, p);
        for (int e = 0; e < 3; e++) { v.windows(e, p[e], &lo[e], &hi[e]); }
        const int64_t me = (p[0] * v.in[1] + p[1]) * v.in[2] + p[2];
        for (int64_t a = lo[0]; a < hi[0]; a++) {
            const int64_t na = maximum ? 1 : v.window(0, a, &l, &h);
            for (int64_t b = lo[1]; b < hi[1]; b++) {
                const int64_t nb = maximum ? 1 : na * v.window(1, b, &l, &h);
                for (int64_t c = lo[2]; c < hi[2]; c++) {
                    const T *g = y + v.y.at(plane, a, b, c);
                    if (maximum) { if (at[v.at.at(plane, a, b, c)] == me) { sum += opdi_cu_load<A>(g); } continue; }
                    const int64_t n = v.divisor ? v.divisor : nb * v.window(2, c, &l, &h);
                    if (n) { sum += opdi_cu_load<A>(g) / (A)n; }
                }
            }
        }
        opdi_cu_store(x + v.x.at(plane, p[0], p[1], p[2]), sum);
    }
};
/* Adds v to *p in one atomic step, for types of 16 bits. */
template <class T> static __device__ void opdi_cu_atomic_add(T *p, T v) {
    unsigned short *at = reinterpret_cast<unsigned short *>(p), seen = opdi_cu_load_common(at), was;
    do {
        union { unsigned short bits; T number; } u = {seen};
        u.number = opdi_cu_cast<T>(opdi_cu_cast<float>(u.number) + opdi_cu_cast<float>(v));
        was = seen;
        seen = atomicCAS(at, was, u.bits);
    } while (seen != was);
}
/* Adds those gradients whose positions lie outside of their window, because opdi_cu_pool_backward does not find them.
   Positions computed by max_pool are always inside. */
template <class T> struct opdi_cu_pool_strays {
    opdi_cu_windows v;
    const T *y;
    T *x;
    const int64_t *at;
    __device__ void operator()(int64_t i) const {
        int64_t plane[2], o[3], p[3], lo, hi, rest;
        bool inside = true;
        v.split(i, v.out, plane, o);
        const int64_t k = at[v.at.at(plane, o[0], o[1], o[2])];
        if (!v.guard.inside(k, v.in[0] * v.in[1] * v.in[2])) { return; }
        rest = opdi_cu_divide(k, v.in[2], &p[2]);
        p[0] = opdi_cu_divide(rest, v.in[1], &p[1]);
        for (int e = 0; e < 3; e++) {
            v.windows(e, p[e], &lo, &hi);
            inside = inside && o[e] >= lo && o[e] < hi;
        }
        if (!inside && v.refused) {
            opdi_cu_guard guard = v.guard;
            guard.text = v.refused;
            guard.note(k, 0);
        } else if (!inside) {
            opdi_cu_atomic_add(x + v.x.at(plane, p[0], p[1], p[2]), y[v.y.at(plane, o[0], o[1], o[2])]);
        }
    }
};
static void opdi_cu_image_of(opdi_cu_image *m, const opd_tensor *t, int nd) {
    const int n = opd_ndim(t);
    m->stride[0] = n == nd + 2 ? opd_strides(t)[0] : 0;
    m->stride[1] = opd_strides(t)[n - nd - 1];
    for (int e = 0; e < 3; e++) { m->stride[2 + e] = e < 3 - nd ? 0 : opd_strides(t)[n - 3 + e]; }
}
/* Reads argument i, an int[nd] or a single number, into the last nd of out[3], and sets the others to `fill`.  If the
   argument is empty and `otherwise` is not NULL, copies `otherwise`. */
static void opdi_cu_pool_list(opd_call *call, int i, int nd, int64_t *out, int64_t fill, const int64_t *otherwise) {
    const opd_ints l = opd_arg_ints(call, i);
    for (int e = 0; e < 3; e++) {
        out[e] = l.n == 0 && otherwise ? otherwise[e] : e < 3 - nd ? fill : l.data[l.n == 1 ? 0 : e - 3 + nd];
    }
}
/* Sets the sizes of the input from x and the number of windows from y, and everything else to its default. */
static void opdi_cu_windows_of(opd_call *call, opdi_cu_windows *v, const opd_tensor *x, const opd_tensor *y, int nd) {
    const int n = opd_ndim(x);
    v->n = n == nd + 2 ? opd_sizes(x)[0] : 1;
    v->c = opd_sizes(x)[n - nd - 1];
    for (int e = 0; e < 3; e++) {
        v->in[e] = e < 3 - nd ? 1 : opd_sizes(x)[n - 3 + e];
        v->out[e] = e < 3 - nd ? 1 : opd_sizes(y)[n - 3 + e];
        v->k[e] = v->s[e] = v->d[e] = 1; v->p[e] = 0;
    }
    opdi_cu_image_of(&v->x, x, nd);
    opdi_cu_image_of(&v->y, y, nd);
    v->divisor = 0;
    v->adaptive = v->include_pad = false;
    v->guard = opdi_cu_guard_of(call, "an element of indices is out of range");
    v->refused = opd_deterministic_mode() == OPD_DETERMINISTIC_ERROR
        ? "indices outside of their windows have no deterministic implementation" : NULL;
}
/* Reads kernel_size, stride and padding, the arguments from number `first` on.  If `maximum` is true, the next argument
   is dilation.  Otherwise, the next arguments are ceil_mode, count_include_pad and divisor_override. */
static void opdi_cu_windows_read(opd_call *call, opdi_cu_windows *v, int first, int nd, bool maximum) {
    opdi_cu_pool_list(call, first, nd, v->k, 1, NULL);
    opdi_cu_pool_list(call, first + 1, nd, v->s, 1, v->k);
    opdi_cu_pool_list(call, first + 2, nd, v->p, 0, NULL);
    if (maximum) { opdi_cu_pool_list(call, first + 3, nd, v->d, 1, NULL); return; }
    v->include_pad = opd_arg_bool(call, first + 4);
    v->divisor = opd_arg_is_none(call, first + 5) ? 0 : opd_arg_int(call, first + 5);
}
/* Returns whether the channels of t are adjacent in memory. */
static bool opdi_cu_channels_last(const opd_tensor *t, int nd) {
    const int n = opd_ndim(t);
    return n == nd + 2 && opd_strides(t)[1] == 1 && opd_sizes(t)[1] > 1 && opd_strides(t)[n - 1] == opd_sizes(t)[1];
}
/* Returns whether opdi_cu_max_pool_small can compute this max pooling. */
static bool opdi_cu_pool_is_small(const opdi_cu_windows *v, const opd_tensor *x, const opd_tensor *y,
                                  const opd_tensor *at) {
    if (v->adaptive || v->in[0] != 1 || v->k[0] != 1 || v->p[0] != 0 || v->k[1] != v->k[2] ||
        (v->k[1] != 2 && v->k[1] != 3) || v->d[1] != 1 || v->d[2] != 1) { return false; }
    return opd_dtype_is_floating(opd_dtype(x)) && opd_is_contiguous(x) && opd_is_contiguous(y) &&
        opd_is_contiguous(at) && opd_numel(x) < INT32_MAX && opd_numel(y) < INT32_MAX;
}
static int opdi_cu_pool_small(const opdi_cu_windows *v, const opd_tensor *x, opd_tensor *y, opd_tensor *at) {
    opdi_cu_small_windows m;
    for (int e = 0; e < 2; e++) {
        m.in[e] = (int)v->in[1 + e]; m.out[e] = (int)v->out[1 + e];
        m.s[e] = (int)v->s[1 + e]; m.p[e] = (int)v->p[1 + e];
    }
    m.all = (uint32_t)opd_numel(y);
    m.rows = opdi_cu_divide_by((uint32_t)m.out[0]);
    m.columns = opdi_cu_divide_by((uint32_t)m.out[1]);
    const dim3 grid((unsigned)opdi_cu_ceil(opd_numel(y), 256 * OPDI_CU_POOL_EACH));
    OPDI_CU_FLOATS(opd_dtype(x), T, return opdi_cu_launch(v->k[1] == 2 ? opdi_cu_max_pool_small<T, 2>
                   : opdi_cu_max_pool_small<T, 3>, grid, dim3(256), 0, m, opdi_cu_data<T>(x), opdi_cu_data<T>(y),
                   opdi_cu_data<int64_t>(at)))
}
static int opdi_cu_pool_forward(opd_call *call, int nd, bool maximum, bool adaptive) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y, *at = NULL;
    opdi_cu_windows v;
    if (opd_results_from_fake(call) || !(y = opdi_cu_result(call, 0)) ||
        (maximum && !(at = opdi_cu_result(call, 1)))) {
        return -1;
    }
    if (opd_numel(y) == 0) { return 0; }
    opdi_cu_windows_of(call, &v, x, y, nd);
    v.adaptive = adaptive;
    if (!adaptive) { opdi_cu_windows_read(call, &v, 1, nd, maximum); }
    v.last = opdi_cu_channels_last(y, nd);
    if (maximum) { opdi_cu_image_of(&v.at, at, nd); }
    if (maximum && opdi_cu_pool_is_small(&v, x, y, at)) { return opdi_cu_pool_small(&v, x, y, at); }
    OPDI_CU_ALL(opd_dtype(x), T, {
        const T *from = opdi_cu_data<T>(x);
        T *to = opdi_cu_data<T>(y);
        if (maximum) {
            const opdi_cu_max_pool<T> f = {v, from, to, opdi_cu_data<int64_t>(at)};
            return opdi_cu_each(opd_numel(y), f);
        }
        const opdi_cu_avg_pool<T> f = {v, from, to};
        return opdi_cu_each(opd_numel(y), f);
    })
}
/* Computes the gradient of a pooling.  The call's arguments are (grad_output, self, ...).  `at` has the positions of
   the maxima, or is NULL for an average.  Returns 0, or -1 and sets an error. */
static int opdi_cu_pool_gradient(opd_call *call, int nd, opd_tensor *at, bool adaptive) {
    opd_tensor *g = opd_arg_tensor(call, 0), *out;
    opdi_cu_windows v;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    if (opd_numel(g) == 0) { return opd_zero_(out) ? 0 : -1; }
    opdi_cu_windows_of(call, &v, out, g, nd);
    v.adaptive = adaptive;
    if (!adaptive) { opdi_cu_windows_read(call, &v, 2, nd, at != NULL); }
    v.last = opdi_cu_channels_last(out, nd);
    if (at) { opdi_cu_image_of(&v.at, at, nd); }
    OPDI_CU_FLOATS(opd_dtype(out), T, {
        const T *from = opdi_cu_data<T>(g);
        T *to = opdi_cu_data<T>(out);
        if (!at) {
            const opdi_cu_pool_backward<T, false> f = {v, from, to, NULL};
            return opdi_cu_each(opd_numel(out), f);
        }
        const int64_t *p = opdi_cu_data<int64_t>(at);
        const opdi_cu_pool_backward<T, true> f = {v, from, to, p};
        const opdi_cu_pool_strays<T> strays = {v, from, to, p};
        return opdi_cu_each(opd_numel(out), f) || opdi_cu_each(opd_numel(g), strays) ? -1 : 0;
    })
}
#define OPDI_CU_POOLS(nd)                                                                                   \
    static int opdi_cu_max_pool##nd##d(opd_call *call) { return opdi_cu_pool_forward(call, nd, true, false); } \
    static int opdi_cu_max_pool##nd##d_backward(opd_call *call) {                                           \
        return opdi_cu_pool_gradient(call, nd, opd_arg_tensor(call, 7), false);                             \
    }                                                                                                       \
    static int opdi_cu_avg_pool##nd##d(opd_call *call) { return opdi_cu_pool_forward(call, nd, false, false); } \
    static int opdi_cu_avg_pool##nd##d_backward(opd_call *call) {                                           \
        return opdi_cu_pool_gradient(call, nd, NULL, false);                                                \
    }                                                                                                       \
    static int opdi_cu_adaptive_avg##nd##d(opd_call *call) { return opdi_cu_pool_forward(call, nd, false, true); } \
    static int opdi_cu_adaptive_avg##nd##d_backward(opd_call *call) {                                       \
        return opdi_cu_pool_gradient(call, nd, NULL, true);                                                 \
    }                                                                                                       \
    static int opdi_cu_adaptive_max##nd##d(opd_call *call) { return opdi_cu_pool_forward(call, nd, true, true); } \
    static int opdi_cu_adaptive_max##nd##d_backward(opd_call *call) {                                       \
        return opdi_cu_pool_gradient(call, nd, opd_arg_tensor(call, 2), true);                              \
    }
OPDI_CU_POOLS(2)
OPDI_CU_POOLS(3)

//== im2col, col2im ====================================================================================================

/* The sizes of an image [n, c, h, w] and of its columns [n, c k[0] k[1], out[0] out[1]]. */
struct opdi_cu_blocks {
    int64_t in[2], out[2], k[2], d[2], p[2], s[2];
};
template <class T> struct opdi_cu_im2col {
    opdi_cu_blocks v;
    const T *x;
    T *col;
    __device__ void operator()(int64_t i) const {
        int64_t o[2], t[2], rest = i;
        rest = opdi_cu_divide(rest, v.out[1], &o[1]);
        rest = opdi_cu_divide(rest, v.out[0], &o[0]);
        rest = opdi_cu_divide(rest, v.k[1], &t[1]);
        rest = opdi_cu_divide(rest, v.k[0], &t[0]);
        const int64_t h = o[0] * v.s[0] - v.p[0] + t[0] * v.d[0], w = o[1] * v.s[1] - v.p[1] + t[1] * v.d[1];
        col[i] = h >= 0 && h < v.in[0] && w >= 0 && w < v.in[1] ? x[(rest * v.in[0] + h) * v.in[1] + w] : T();
    }
};
/* Each pixel is the sum of the elements of the columns that are copies of it. */
template <class T> struct opdi_cu_col2im {
    opdi_cu_blocks v;
    const T *col;
    T *x;
    __device__ void operator()(int64_t i) const {
        opdi_cu_acc<T> sum = 0;
        int64_t p[2], o[2], r;
        const int64_t c = opdi_cu_divide(opdi_cu_divide(i, v.in[1], &p[1]), v.in[0], &p[0]);
        for (int64_t a = 0; a < v.k[0]; a++) {
            const int64_t h = p[0] + v.p[0] - a * v.d[0];
            if (h < 0) { break; }
            o[0] = opdi_cu_divide(h, v.s[0], &r);
            if (r || o[0] >= v.out[0]) { continue; }
            for (int64_t b = 0; b < v.k[1]; b++) {
                const int64_t w = p[1] + v.p[1] - b * v.d[1];
                if (w < 0) { break; }
                o[1] = opdi_cu_divide(w, v.s[1], &r);
                if (r || o[1] >= v.out[1]) { continue; }
                sum += opdi_cu_load<opdi_cu_acc<T> >(
                    col + (((c * v.k[0] + a) * v.k[1] + b) * v.out[0] + o[0]) * v.out[1] + o[1]);
            }
        }
        opdi_cu_store(x + i, sum);
    }
};
/* Runs im2col or, if `back` is true, col2im.  The arguments are (self, kernel_size, dilation, padding, stride); col2im
   has output_size after self.  Returns 0, or -1 and sets an error. */
static int opdi_cu_im2col_run(opd_call *call, bool back) {
    opd_tensor *from = opd_arg_tensor(call, 0), *out;
    opdi_cu_blocks v;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    if (opd_numel(out) == 0) { return 0; }
    for (int e = 0; e < 2; e++) {
        v.in[e] = opd_size(back ? out : from, e - 2);
        v.k[e] = opd_arg_ints(call, 1 + back).data[e];
        v.d[e] = opd_arg_ints(call, 2 + back).data[e];
        v.p[e] = opd_arg_ints(call, 3 + back).data[e];
        v.s[e] = opd_arg_ints(call, 4 + back).data[e];
        v.out[e] = (v.in[e] + 2 * v.p[e] - v.d[e] * (v.k[e] - 1) - 1) / v.s[e] + 1;
    }
    return opdi_cu_forth_or_back<opdi_cu_im2col, opdi_cu_col2im>(v, from, out, back);
}
static int opdi_cu_im2col_kernel(opd_call *call) { return opdi_cu_im2col_run(call, false); }
static int opdi_cu_col2im_kernel(opd_call *call) { return opdi_cu_im2col_run(call, true); }

#define OPDI_CU_PAD_ROWS(name)                                                                              \
    {name, opdi_cu_mirror_pad_kernel}, {name "_backward", opdi_cu_mirror_pad_backward_kernel}
static const opdi_cu_registration opdi_cu_table_pooling[] = {
    {"constant_pad_nd", opdi_cu_constant_pad_kernel},
    OPDI_CU_PAD_ROWS("reflection_pad1d"), OPDI_CU_PAD_ROWS("reflection_pad2d"), OPDI_CU_PAD_ROWS("reflection_pad3d"),
    OPDI_CU_PAD_ROWS("replication_pad1d"), OPDI_CU_PAD_ROWS("replication_pad2d"),
    OPDI_CU_PAD_ROWS("replication_pad3d"),
    {"max_pool2d_with_indices", opdi_cu_max_pool2d}, {"max_pool3d_with_indices", opdi_cu_max_pool3d},
    {"max_pool2d_with_indices_backward", opdi_cu_max_pool2d_backward},
    {"max_pool3d_with_indices_backward", opdi_cu_max_pool3d_backward},
    {"avg_pool2d", opdi_cu_avg_pool2d}, {"avg_pool3d", opdi_cu_avg_pool3d},
    {"avg_pool2d_backward", opdi_cu_avg_pool2d_backward}, {"avg_pool3d_backward", opdi_cu_avg_pool3d_backward},
    {"_adaptive_avg_pool2d", opdi_cu_adaptive_avg2d}, {"_adaptive_avg_pool3d", opdi_cu_adaptive_avg3d},
    {"_adaptive_avg_pool2d_backward", opdi_cu_adaptive_avg2d_backward},
    {"_adaptive_avg_pool3d_backward", opdi_cu_adaptive_avg3d_backward},
    {"adaptive_max_pool2d", opdi_cu_adaptive_max2d}, {"adaptive_max_pool3d", opdi_cu_adaptive_max3d},
    {"adaptive_max_pool2d_backward", opdi_cu_adaptive_max2d_backward},
    {"adaptive_max_pool3d_backward", opdi_cu_adaptive_max3d_backward},
    {"im2col", opdi_cu_im2col_kernel}, {"col2im", opdi_cu_col2im_kernel},
    {NULL, NULL}};

//== resampling ========================================================================================================
//
//  Along each dim, an output reads two inputs, `lo` and the next.  The forward and the backward pass use the same
//  weights.  As `lo` grows with the output's number, the outputs that read an input are neighbours, which a search
//  finds; their gradients are added.

/* A dim to be resampled, from m inputs to n outputs. */
struct opdi_cu_side { int64_t m, n; double scale; bool nearest, corners; };
/* The type in which positions and weights are computed. */
template <typename T> struct opdi_cu_weights_of { typedef float type; };
template <> struct opdi_cu_weights_of<double> { typedef double type; };
struct opdi_cu_taps { int64_t lo, hi; double w[2]; };
template <typename A> __device__ __forceinline__ opdi_cu_taps opdi_cu_taps_of(const opdi_cu_side &s, int64_t i) {
    const A scale = (A)s.scale, to = s.nearest || s.corners ? scale * (A)i : scale * ((A)i + (A)0.5) - (A)0.5;
    const double at = s.m == s.n ? (double)i : s.nearest && s.n == 2 * s.m ? (double)(i / 2)      /* as on the CPU */
        : to > 0 ? (double)to : 0.0;
    opdi_cu_taps l;
    l.lo = (int64_t)at < s.m - 1 ? (int64_t)at : s.m - 1;
    l.hi = l.lo + (l.lo < s.m - 1);
    l.w[1] = s.nearest ? 0 : at - (double)l.lo < 0 ? 0 : at - (double)l.lo > 1 ? 1 : at - (double)l.lo;
    l.w[0] = 1 - l.w[1];
    return l;
}
/* Returns the first output whose `lo` is the given input or a later one. */
template <typename A> __device__ __forceinline__ int64_t opdi_cu_first_tap(const opdi_cu_side &s, int64_t lo) {
    int64_t a = 0, b = s.n;
    while (a < b) {
        const int64_t mid = (a + b) / 2;
        if (opdi_cu_taps_of<A>(s, mid).lo < lo) { a = mid + 1; } else { b = mid; }
    }
    return a;
}
template <typename T> __global__ void opdi_cu_upsample_kernel(const opdi_cu_side r, const opdi_cu_side c, int64_t all,
    const T *x, T *y) {
    typedef typename opdi_cu_weights_of<T>::type A;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const opdi_cu_taps v = opdi_cu_taps_of<A>(r, i / c.n % r.n), h = opdi_cu_taps_of<A>(c, i % c.n);
        const T *p = x + i / c.n / r.n * r.m * c.m, *a = p + v.lo * c.m, *b = p + v.hi * c.m;
        if (r.nearest) { y[i] = a[h.lo]; continue; }
        opdi_cu_store(y + i,
            (A)v.w[0] * ((A)h.w[0] * opdi_cu_load<A>(a + h.lo) + (A)h.w[1] * opdi_cu_load<A>(a + h.hi)) +
            (A)v.w[1] * ((A)h.w[0] * opdi_cu_load<A>(b + h.lo) + (A)h.w[1] * opdi_cu_load<A>(b + h.hi)));
    }
}
/* x[i, j] = the weighted sum of the outputs y that read (i, j) */
template <typename T> __global__ void opdi_cu_upsample_back_kernel(const opdi_cu_side r, const opdi_cu_side c,
    int64_t all, T *x, const T *y) {
    typedef typename opdi_cu_weights_of<T>::type A;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t row = i / c.m % r.m, col = i % c.m, near = r.nearest ? 0 : 1;
        const int64_t r0 = opdi_cu_first_tap<A>(r, row - near), r1 = opdi_cu_first_tap<A>(r, row + 1);
        const int64_t c0 = opdi_cu_first_tap<A>(c, col - near), c1 = opdi_cu_first_tap<A>(c, col + 1);
        const T *p = y + i / c.m / r.m * r.n * c.n;
        A sum = 0;
        for (int64_t a = r0; a < r1; a++) {
            const opdi_cu_taps v = opdi_cu_taps_of<A>(r, a);
            const A wv = (v.lo == row ? (A)v.w[0] : A(0)) + (v.hi == row && !r.nearest ? (A)v.w[1] : A(0));
            for (int64_t b = c0; b < c1; b++) {
                const opdi_cu_taps h = opdi_cu_taps_of<A>(c, b);
                const A wh = (h.lo == col ? (A)h.w[0] : A(0)) + (h.hi == col && !c.nearest ? (A)h.w[1] : A(0));
                sum += wv * wh * opdi_cu_load<A>(p + a * c.n + b);
            }
        }
        opdi_cu_store(x + i, sum);
    }
}
/* Runs an upsampling or, if `back` is true, its gradient.  Argument number `scales` and the next are the scale factors;
   if `nearest` is false, align_corners comes before them.  Returns 0, or -1 and sets an error. */
static int opdi_cu_upsample_of(opd_call *call, bool nearest, bool back) {
    const int scales = 2 + !nearest + back;
    opd_tensor *from = opd_arg_tensor(call, 0), *to, *work;
    opdi_cu_side side[2];
    int rc = -1;
    if (opd_results_from_fake(call)) { return -1; }
    to = opdi_cu_result(call, 0);
    if (opd_numel(to) == 0) { return 0; }
    work = opd_is_contiguous(to) ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), 4), opd_dtype(to));
    if (!work || !(from = opd_contiguous(from))) { return -1; }
    for (int d = 0; d < 2; d++) {
        opdi_cu_side *s = &side[d];
        const double factor = opd_arg_is_none(call, scales + d) ? 0 : opd_arg_double(call, scales + d);
        s->m = opd_size(back ? to : from, 2 + d);
        s->n = opd_size(back ? from : to, 2 + d);
        s->nearest = nearest;
        s->corners = !nearest && opd_arg_bool(call, scales - 1);
        s->scale = s->corners ? s->n > 1 ? (double)(s->m - 1) / (double)(s->n - 1) : 0
            : factor > 0 ? 1 / factor : (double)s->m / (double)s->n;
    }
    const int64_t all = opd_numel(to);
    if (back) {
        OPDI_CU_FLOATS(opd_dtype(to), T, rc =
            opdi_cu_launch(opdi_cu_upsample_back_kernel<T>, opdi_cu_grid(all, 256), dim3(256), 0, side[0],
                                                            side[1], all, opdi_cu_data<T>(work), opdi_cu_data<T>(from)))
    } else {
        OPDI_CU_ALL(opd_dtype(to), T, rc = opdi_cu_launch(opdi_cu_upsample_kernel<T>, opdi_cu_grid(all, 256),
            dim3(256), 0, side[0], side[1],
                                                         all, opdi_cu_data<T>(from), opdi_cu_data<T>(work)))
    }
    return rc || (work != to && !opd_copy_(to, work)) ? -1 : 0;
}
static int opdi_cu_upsample_nearest(opd_call *call) { return opdi_cu_upsample_of(call, true, false); }
static int opdi_cu_upsample_nearest_back(opd_call *call) { return opdi_cu_upsample_of(call, true, true); }
static int opdi_cu_upsample_bilinear(opd_call *call) { return opdi_cu_upsample_of(call, false, false); }
static int opdi_cu_upsample_bilinear_back(opd_call *call) { return opdi_cu_upsample_of(call, false, true); }

//== grid_sampler_2d ===================================================================================================
//
//  As on the CPU, an output reads one, two or four rows and columns of the image.  A thread processes one point of the
//  grid for all channels.  The gradient of the image is added atomically, in any order, as in PyTorch.

/* The sizes and options of a grid sampler.  how: the interpolation mode; outside: the padding mode; corners:
   align_corners. */
struct opdi_cu_grid_params { int64_t n, c, in[2], out[2]; int how, outside; bool corners; };
/* The `count` rows or columns of an image that are read for one coordinate.  at: their indices, or -1 if outside of the
   image; w: their weights; d: the derivatives of the weights with respect to the coordinate. */
template <typename T> struct opdi_cu_lines { int count; int64_t at[4]; T w[4], d[4]; };

template <typename T> __device__ T opdi_cu_grid_inside(const opdi_cu_grid_params &k, T at, int64_t size, T *factor) {
    const T low = k.corners ? (T)0 : (T)-0.5, span = k.corners ? (T)(size - 1) : (T)size;
    if (k.outside == 2) {
        if (!(span > 0)) { *factor = 0; return 0; }
        at -= low;
        if (at < 0) { at = -at; *factor = -*factor; }
        const T times = (T)floor(at / span);
        at = (T)fmod(at, span);
        if (fmod(times, (T)2) > 0) { at = span - at; *factor = -*factor; }
        at += low;
    }
    if (at <= 0) { *factor = 0; return 0; }
    if (at >= (T)(size - 1)) { *factor = 0; return (T)(size - 1); }
    return at;
}
template <typename T> __device__ void opdi_cu_grid_lines(const opdi_cu_grid_params &k, T at, int64_t size,
                                                         opdi_cu_lines<T> *l) {
    T factor = k.corners ? (T)(size - 1) / 2 : (T)size / 2, none = 0;
    at = k.corners ? (at + 1) / 2 * (T)(size - 1) : ((at + 1) * (T)size - 1) / 2;
    if (k.how != 2 && k.outside != 0) { at = opdi_cu_grid_inside(k, at, size, &factor); }
    if (!(at > (T)-1e9 && at < (T)1e9)) { at = -100; }
    l->count = k.how == 1 ? 1 : k.how == 0 ? 2 : 4;
    T first = (T)(l->count == 1 ? rint(at) : floor(at));
    const T t = at - first;
    l->w[0] = 1; l->d[0] = 0;
    if (l->count == 2) { l->w[0] = 1 - t; l->w[1] = t; l->d[0] = -factor; l->d[1] = factor; }
    if (l->count == 4) {
        const T a = (T)-0.75, r = 1 - t, u = t + 1, v = 2 - t;
        first -= 1;
        l->w[0] = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a;
        l->w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
        l->w[2] = ((a + 2) * r - (a + 3)) * r * r + 1;
        l->w[3] = ((a * v - 5 * a) * v + 8 * a) * v - 4 * a;
        l->d[0] = factor * ((3 * a * u - 10 * a) * u + 8 * a);
        l->d[1] = factor * (3 * (a + 2) * t - 2 * (a + 3)) * t;
        l->d[2] = -factor * (3 * (a + 2) * r - 2 * (a + 3)) * r;
        l->d[3] = -factor * ((3 * a * v - 10 * a) * v + 8 * a);
    }
    for (int i = 0; i < l->count; i++) {
        T line = first + (T)i;
        if (l->count == 4 && k.outside != 0) { line = opdi_cu_grid_inside(k, line, size, &none); }
        l->at[i] = line >= 0 && line < (T)size ? (int64_t)line : -1;
    }
}
/* Processes one point of the grid: computes y or, if g is not NULL, the gradients. */
template <typename T> struct opdi_cu_grid_place {
    opdi_cu_grid_params k;
    const T *x, *grid, *g;
    T *y, *dx, *dgrid;                            /* dx: may be NULL */
    __device__ void operator()(int64_t place) const {
        const int64_t area = k.in[0] * k.in[1], points = k.out[0] * k.out[1], n = place / points, p = place % points;
        opdi_cu_lines<T> r, c;
        T along[2] = {0, 0};
        opdi_cu_grid_lines(k, grid[place * 2 + 1], k.in[0], &r);
        opdi_cu_grid_lines(k, grid[place * 2], k.in[1], &c);
        for (int64_t ch = n * k.c; ch < (n + 1) * k.c; ch++) {
            const T *from = x + ch * area, by = g ? g[ch * points + p] : (T)0;
            T s = 0;
            for (int a = 0; a < r.count; a++) {
                for (int b = 0; b < c.count; b++) {
                    const int64_t at = r.at[a] * k.in[1] + c.at[b];
                    if (r.at[a] < 0 || c.at[b] < 0) { continue; }
                    if (!g) { s += r.w[a] * c.w[b] * from[at]; continue; }
                    if (dx) { atomicAdd(dx + ch * area + at, by * r.w[a] * c.w[b]); }
                    along[0] += by * from[at] * r.w[a] * c.d[b];
                    along[1] += by * from[at] * r.d[a] * c.w[b];
                }
            }
            if (!g) { y[ch * points + p] = s; }
        }
        if (g) { dgrid[place * 2] = along[0]; dgrid[place * 2 + 1] = along[1]; }
    }
};
template <typename T> static int opdi_cu_grid_go(const opdi_cu_grid_params &k, opd_tensor *x, opd_tensor *grid,
                                                 opd_tensor *g, opd_tensor *y, opd_tensor *dx, opd_tensor *dgrid) {
    const opdi_cu_grid_place<T> f = {k, opdi_cu_data<T>(x), opdi_cu_data<T>(grid), g ? opdi_cu_data<T>(g) : NULL,
                                     y ? opdi_cu_data<T>(y) : NULL, dx ? opdi_cu_data<T>(dx) : NULL,
                                     dgrid ? opdi_cu_data<T>(dgrid) : NULL};
    return opdi_cu_each(k.n * k.out[0] * k.out[1], f);
}
/* Runs grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners) or, if `back` is true, its
   gradient, which has grad_output in front of these arguments and output_mask after them. */
static int opdi_cu_grid_of(opd_call *call, bool back) {
    opd_tensor *g = back ? opd_arg_tensor(call, 0) : NULL, *x = opd_arg_tensor(call, back);
    opd_tensor *grid = opd_arg_tensor(call, back + 1), *r[2] = {NULL, NULL}, *staging[2] = {NULL, NULL};
    const opd_scalar_type t = opdi_cu_compute_dtype(opd_dtype(x));
    opdi_cu_grid_params k;
    if (opd_results_from_fake(call)) { return -1; }
    const opd_value mask = back ? opd_arg_value(call, 6) : opd_value_none();
    if (back && (!mask.n || mask.u.bools[0]) && opd_deterministic_alert(call, NULL)) { return -1; }
    k.n = opd_sizes(x)[0]; k.c = opd_sizes(x)[1];
    for (int d = 0; d < 2; d++) { k.in[d] = opd_sizes(x)[2 + d]; k.out[d] = opd_sizes(grid)[1 + d]; }
    k.how = (int)opd_arg_int(call, back + 2);
    k.outside = (int)opd_arg_int(call, back + 3);
    k.corners = opd_arg_bool(call, back + 4);
    if (back) {
        const int64_t sizes[4] = {k.n, k.c, k.out[0], k.out[1]};
        g = opd_expand(g, opd_ints_of(sizes, 4));
        if (!g || !(g = opdi_cu_as(g, t))) { return -1; }
    }
    for (int i = 0; i < 1 + back; i++) {
        if (back && i == 0 && mask.n && !mask.u.bools[0]) { continue; }
        r[i] = opdi_cu_result(call, i);
        staging[i] = opdi_cu_staging(r[i], t);
        if (!staging[i] || (back && !opd_zero_(staging[i]))) { return -1; }
    }
    x = opdi_cu_as(x, t);
    grid = opdi_cu_as(grid, t);
    if (!x || !grid) { return -1; }
    if ((t == OPD_FLOAT64
         ? opdi_cu_grid_go<double>(k, x, grid, g, back ? NULL : staging[0], back ? staging[0] : NULL, staging[1])
         : opdi_cu_grid_go<float>(k, x, grid, g, back ? NULL : staging[0], back ? staging[0] : NULL,
                                  staging[1]))) { return -1; }
    for (int i = 0; i < 1 + back; i++) { if (staging[i] && opdi_cu_staging_store(r[i], staging[i])) { return -1; } }
    return 0;
}
static int opdi_cu_grid_kernel(opd_call *call) { return opdi_cu_grid_of(call, false); }
static int opdi_cu_grid_backward_kernel(opd_call *call) { return opdi_cu_grid_of(call, true); }

static const opdi_cu_registration opdi_cu_table_resampling[] = {
    {"grid_sampler_2d", opdi_cu_grid_kernel}, {"grid_sampler_2d_backward", opdi_cu_grid_backward_kernel},
    {"upsample_nearest2d", opdi_cu_upsample_nearest}, {"upsample_nearest2d_backward", opdi_cu_upsample_nearest_back},
    {"upsample_bilinear2d", opdi_cu_upsample_bilinear},
    {"upsample_bilinear2d_backward", opdi_cu_upsample_bilinear_back},
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:resampling  resampling of images, volumes and sequences
//
//  Along each dim, an output is a weighted sum of neighbouring inputs.  A kernel writes these weights to a table for
//  each dim, once per call.  In the same way, the gradient of an input is a weighted sum of neighbouring outputs: those
//  that read it.  So one kernel serves both passes, and no atomic addition is needed.  A thread computes the same place
//  in several planes, because their weights are equal.
//----------------------------------------------------------------------------------------------------------------------

enum { OPDI_CU_NEAREST, OPDI_CU_EXACT, OPDI_CU_LINEAR, OPDI_CU_CUBIC, OPDI_CU_LINEAR_AA, OPDI_CU_CUBIC_AA };
/* A dim to be resampled, from m inputs to n outputs.  Output i reads `count[i]` inputs from number `first[i]` on, with
   the weights weight[i * most ...].  For the gradient, `low[j]` and `high[j]` are the first output that reads input j
   and the one behind the last. */
typedef struct opdi_cu_axis {
    int64_t m, n, most;
    double scale;
    int how, dims;
    bool corners;
    int32_t *first, *count, *low, *high;          /* first is NULL: m and n are 1, and the weight is 1 */
    void *weight;                                 /* doubles or floats */
} opdi_cu_axis;

/* Returns the weight at distance x of the cubic filter with parameter a. */
template <typename A> __device__ __forceinline__ A opdi_cu_cubic(A x, A a) {
    x = x < 0 ? -x : x;
    return x < 1 ? ((a + 2) * x - (a + 3)) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * a : A(0);
}
/* Adds weight w for input `at`, limited to the inputs that there are, to output i. */
template <typename A>
__device__ __forceinline__ void opdi_cu_axis_add(const opdi_cu_axis &s, int64_t i, int64_t at, A w) {
    A *weight = (A *)s.weight + i * s.most;
    at = at < 0 ? 0 : at < s.m - 1 ? at : s.m - 1;
    if (s.count[i] == 0) { s.first[i] = (int32_t)at; }
    const int k = (int)(at - s.first[i]);
    if (k < s.count[i]) { weight[k] += w; } else { weight[k] = w; s.count[i] = k + 1; }
}
/* Writes the row of output i of the table, as the CPU kernel does. */
template <typename A> __device__ void opdi_cu_axis_row(const opdi_cu_axis &s, int64_t i) {
    const A scale = (A)s.scale;
    const bool whole = s.how == OPDI_CU_NEAREST || s.corners;
    const A place = whole ? scale * (A)i : scale * ((A)i + (A)0.5) - (A)0.5;
    s.count[i] = 0;
    if (s.m == s.n && (s.how == OPDI_CU_NEAREST ? s.dims == 2
                       : s.how != OPDI_CU_EXACT && (s.how != OPDI_CU_CUBIC || s.m == 1))) {
        opdi_cu_axis_add(s, i, i, A(1));          /* sizes are equal: the scale does not matter */
    } else if (s.how == OPDI_CU_LINEAR_AA || s.how == OPDI_CU_CUBIC_AA) {
        const A wide = scale >= 1 ? scale : A(1), support = s.how == OPDI_CU_CUBIC_AA ? 2 * wide : wide;
        const A center = scale * ((A)i + (A)0.5);
        const double low = (double)(A)(center - support) + 0.5, high = (double)(A)(center + support) + 0.5;
        const int64_t from = low > 0 ? low < (double)s.m ? (int64_t)low : s.m : 0;
        int64_t many = (high > 0 ? high < (double)s.m ? (int64_t)high : s.m : 0) - from;
        A *weight = (A *)s.weight + i * s.most, sum = 0;
        many = many < s.most ? many : s.most;
        for (int64_t k = 0; k < many; k++) {
            const A x = ((A)(k + from) - center + (A)0.5) / wide, d = x < 0 ? -x : x;
            weight[k] = s.how == OPDI_CU_CUBIC_AA ? opdi_cu_cubic(x, (A)-0.5) : d < 1 ? 1 - d : A(0);
            sum += weight[k];
        }
        for (int64_t k = 0; k < many && sum != 0; k++) { weight[k] /= sum; }
        if (many <= 0) { weight[0] = 0; }
        s.first[i] = (int32_t)(from < s.m - 1 ? from : s.m - 1);
        s.count[i] = (int32_t)(many > 1 ? many : 1);
    } else if (s.how == OPDI_CU_CUBIC) {
        const A held = place < -4 ? A(-4) : place < (A)(s.m - 1) ? place : (A)(s.m - 1);
        const A at = (A)floor(held);
        const A t = place - at < 0 ? A(0) : place - at < 1 ? place - at : A(1);
        for (int k = 0; k < 4; k++) {
            opdi_cu_axis_add(s, i, (int64_t)at + k - 1, opdi_cu_cubic((A)(t + 1 - (A)k), (A)-0.75));
        }
    } else {
        A at = place > 0 ? place : A(0);
        if (s.how == OPDI_CU_NEAREST && s.dims == 2 && s.n == 2 * s.m) { at = (A)(i / 2); }
        if (s.how == OPDI_CU_EXACT) { at += (A)0.5; }
        const int64_t lo = at < (A)(s.m - 1) ? (int64_t)at : s.m - 1;
        const A t = at - (A)lo < 0 ? A(0) : at - (A)lo < 1 ? at - (A)lo : A(1);
        opdi_cu_axis_add(s, i, lo, s.how == OPDI_CU_LINEAR ? 1 - t : A(1));
        if (s.how == OPDI_CU_LINEAR) { opdi_cu_axis_add(s, i, lo + 1, t); }
    }
}
/* The tables of three dims: depth, rows, columns. */
template <typename A> struct opdi_cu_axes {
    opdi_cu_axis s[3];
    __device__ void operator()(int64_t i) const {
        int d = 0;
        for (; d < 2 && i >= s[d].n; d++) { i -= s[d].n; }
        if (s[d].first) { opdi_cu_axis_row<A>(s[d], i); }
    }
};
/* Finds which outputs read each input.  Both ends of what an output reads grow with its number. */
struct opdi_cu_axes_readers {
    opdi_cu_axis s[3];
    __device__ static void find(const opdi_cu_axis &s, int64_t j) {
        int64_t a = 0, b = s.n;
        while (a < b) {
            const int64_t mid = (a + b) / 2;
            if (s.first[mid] + s.count[mid] <= j) { a = mid + 1; } else { b = mid; }
        }
        s.low[j] = (int32_t)a;
        b = s.n;
        while (a < b) {
            const int64_t mid = (a + b) / 2;
            if (s.first[mid] <= j) { a = mid + 1; } else { b = mid; }
        }
        s.high[j] = (int32_t)a;
    }
    __device__ void operator()(int64_t j) const {
        int d = 0;
        for (; d < 2 && j >= s[d].m; d++) { j -= s[d].m; }
        if (s[d].first) { find(s[d], j); }
    }
};
/* What place `at` of a dim reads: `count` places from `first` on, with the weights of(0), of(1), ... */
template <typename A, bool back> struct opdi_cu_read_along {
    const opdi_cu_axis &s;
    int at, first, count;
    __device__ __forceinline__ opdi_cu_read_along(const opdi_cu_axis &s_, int64_t i) : s(s_), at((int)i),
        first(!s.first ? 0 : back ? s.low[i] : s.first[i]),
        count(!s.first ? 1 : back ? s.high[i] - s.low[i] : s.count[i]) { }
    __device__ __forceinline__ A of(int k) const {
        if (!s.first) { return A(1); }
        const int64_t o = back ? first + k : at;
        return ((const A *)s.weight)[o * s.most + (back ? at - s.first[o] : k)];
    }
};
/* The layout of both tensors.  A plane is one channel of one example; it has `from` places in x and `to` in y.  A
   thread computes a group of neighbouring planes.  If `last` is true, channels are the innermost dim in memory, and
   `groups` is the number of groups in an example, otherwise in all. */
struct opdi_cu_planes { int64_t examples, channels, groups, from, to; bool last; };
template <typename T, bool back, int P> __global__ void __launch_bounds__(256)
opdi_cu_resample_kernel(const opdi_cu_axes<typename opdi_cu_weights_of<T>::type> axes, const opdi_cu_planes p,
                        const T *x, T *y) {
    typedef typename opdi_cu_weights_of<T>::type A;
    const opdi_cu_axis &sz = axes.s[0], &sy = axes.s[1], &sx = axes.s[2];
    const int64_t my = back ? sy.n : sy.m, mx = back ? sx.n : sx.m, ny = back ? sy.m : sy.n, nx = back ? sx.m : sx.n;
    const int64_t all = p.groups * p.to * (p.last ? p.examples : 1), step = (int64_t)gridDim.x * blockDim.x;
    const int64_t apart_x = p.last ? 1 : p.from, apart_y = p.last ? 1 : p.to;      /* distance of neighbouring planes */
    const int64_t most = p.last ? p.channels : p.examples * p.channels, wide = p.last ? p.channels : 1;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        int64_t place, group, col, row, example = 0;
        if (p.last) { example = opdi_cu_divide(opdi_cu_divide(i, p.groups, &group), p.to, &place); }
        else { group = opdi_cu_divide(i, p.to, &place); }
        const int64_t plane = group * P;
        const T *const from = x + example * p.from * p.channels + plane * apart_x;
        T *const to = y + example * p.to * p.channels + plane * apart_y + place * wide;
        const int64_t depth = opdi_cu_divide(opdi_cu_divide(place, nx, &col), ny, &row);
        const opdi_cu_read_along<A, back> rz(sz, depth), ry(sy, row), rx(sx, col);
        A sum[P];
        OPDI_CU_UNROLL
        for (int q = 0; q < P; q++) { sum[q] = 0; }
        for (int a = 0; a < rz.count; a++) {
            for (int b = 0; b < ry.count; b++) {
                const A w = rz.of(a) * ry.of(b);
                const T *const line = from + (((rz.first + a) * my + ry.first + b) * mx + rx.first) * wide;
                for (int c = 0; c < rx.count; c++) {
                    const A v = w * rx.of(c);
                    OPDI_CU_UNROLL
                    for (int q = 0; q < P; q++) {
                        if (plane + q < most) { sum[q] += v * opdi_cu_load<A>(line + c * wide + q * apart_x); }
                    }
                }
            }
        }
        OPDI_CU_UNROLL
        for (int q = 0; q < P; q++) { if (plane + q < most) { opdi_cu_store(to + q * apart_y, sum[q]); } }
    }
}
/* Fills in the axes from the sizes of both tensors and the arguments of the call; the scale factors are arguments
   number `scales` and the next.  Returns 0, or -1 and sets an error. */
template <typename A> static int opdi_cu_axes_make(opd_call *call, opdi_cu_axes<A> *axes, const int64_t *in,
                                                   const int64_t *out, int how, int dims, bool corners, int scales,
                                                   bool back) {
    for (int d = 0; d < 3; d++) {
        opdi_cu_axis *s = &axes->s[d];
        const int at = scales + d - 3 + dims, of = d - 3 + dims;
        const double factor = at < scales || opd_arg_is_none(call, at) ? 0 : opd_arg_double(call, at);
        s->m = of < 0 ? 1 : in[2 + of];
        s->n = of < 0 ? 1 : out[2 + of];
        s->how = how; s->dims = dims; s->corners = corners;
        s->first = NULL;
        s->scale = corners ? s->n > 1 ? (double)(s->m - 1) / (double)(s->n - 1) : 0
            : factor > 0 ? 1 / factor : (double)s->m / (double)s->n;
        if (of < 0) { continue; }
        const double scale = sizeof(A) == 4 ? (double)(float)s->scale : s->scale;
        const double most = ceil((how == OPDI_CU_CUBIC_AA ? 2 : 1) * (scale > 1 ? scale : 1)) * 2 + 1;
        s->most = how <= OPDI_CU_EXACT ? 1 : how == OPDI_CU_LINEAR ? 2 : how == OPDI_CU_CUBIC ? 4
            : most < (double)s->m ? (int64_t)most : s->m;
        s->first = (int32_t *)opdi_cu_scratch((2 * s->n + 2 * s->m) * 4);
        s->weight = opdi_cu_scratch(s->n * s->most * (int64_t)sizeof(A));
        if (!s->first || !s->weight) { return -1; }
        s->count = s->first + s->n;
        s->low = s->count + s->n;
        s->high = s->low + s->m;
    }
    const opdi_cu_axes_readers readers = {{axes->s[0], axes->s[1], axes->s[2]}};
    if (opdi_cu_each(axes->s[0].n + axes->s[1].n + axes->s[2].n, *axes)) { return -1; }
    return back ? opdi_cu_each(axes->s[0].m + axes->s[1].m + axes->s[2].m, readers) : 0;
}
template <typename T, int P> static int opdi_cu_resample_go(opd_call *call, const opd_tensor *from, opd_tensor *to,
                                                            int how, int dims, bool corners, int scales, bool back,
                                                            bool last) {
    opdi_cu_axes<typename opdi_cu_weights_of<T>::type> axes;
    opdi_cu_planes p;
    p.examples = opd_size(to, 0); p.channels = opd_size(to, 1); p.last = last;
    p.from = opd_numel(from) / (p.examples * p.channels); p.to = opd_numel(to) / (p.examples * p.channels);
    p.groups = opdi_cu_ceil(last ? p.channels : p.examples * p.channels, P);
    if (opdi_cu_axes_make(call, &axes, opd_sizes(back ? to : from), opd_sizes(back ? from : to), how, dims, corners,
                          scales, back)) { return -1; }
    const dim3 grid = opdi_cu_grid(p.groups * p.to * (last ? p.examples : 1), 256);
    return back ? opdi_cu_launch(opdi_cu_resample_kernel<T, true, P>, grid, dim3(256), 0, axes, p,
                                 opdi_cu_data<T>(from), opdi_cu_data<T>(to))
        : opdi_cu_launch(opdi_cu_resample_kernel<T, false, P>, grid, dim3(256), 0, axes, p, opdi_cu_data<T>(from),
                         opdi_cu_data<T>(to));
}
/* Returns whether t, with channels as dim 1, has channels as the innermost dim in memory. */
static bool opdi_cu_is_last(const opd_tensor *t) {
    int64_t stride = opd_size(t, 1);
    bool last = opd_strides(t)[1] == 1 && opd_size(t, 1) > 1;
    for (int d = opd_ndim(t) - 1; last && d >= 0; d--) {
        if (d == 1) { continue; }
        last = opd_size(t, d) == 1 || opd_strides(t)[d] == stride;
        stride *= opd_size(t, d);
    }
    return last;
}
/* Runs a resampling or, if `back` is true, its gradient.  Returns 0, or -1 and sets an error. */
static int opdi_cu_resample(opd_call *call, int how, int dims, bool back) {
    opd_tensor *from = opd_arg_tensor(call, 0), *to, *work;
    const bool asks = how > OPDI_CU_EXACT;        /* there is an argument align_corners */
    const int scales = 2 + asks + back;
    bool small = opd_dtype_is_floating(opd_dtype(from));
    const opd_ints sizes = opd_arg_ints(call, back ? 2 : 1);
    for (int d = 0; d < opd_ndim(from); d++) { small = small && opd_size(from, d) < (1 << 30); }
    for (int64_t d = 0; d < sizes.n; d++) { small = small && sizes.data[d] < (1 << 30); }
    if (!small) { return opd_cpu_fallback(call); }                     /* images of bytes, for example */
    if (opd_results_from_fake(call)) { return -1; }
    to = opdi_cu_result(call, 0);
    if (opd_numel(to) == 0) { return 0; }
    const bool last = opdi_cu_is_last(from) && opdi_cu_is_last(to);
    const bool corners = asks && opd_arg_bool(call, scales - 1);
    work = last || opd_is_contiguous(to) ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), opd_dtype(to));
    if (!work || (!last && !(from = opd_contiguous(from)))) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(to), T, {
        if (opdi_cu_resample_go<T, 4>(call, from, work, how, dims, corners, scales, back, last)) { return -1; }
    })
    return work != to && !opd_copy_(to, work) ? -1 : 0;
}
#define OPDI_CU_RESAMPLE(name, how, dims) \
    static int opdi_cu_##name(opd_call *call) { return opdi_cu_resample(call, how, dims, false); } \
    static int opdi_cu_##name##_backward(opd_call *call) { return opdi_cu_resample(call, how, dims, true); }
OPDI_CU_RESAMPLE(upsample_nearest1d, OPDI_CU_NEAREST, 1)
OPDI_CU_RESAMPLE(upsample_nearest3d, OPDI_CU_NEAREST, 3)
OPDI_CU_RESAMPLE(upsample_nearest_exact1d, OPDI_CU_EXACT, 1)
OPDI_CU_RESAMPLE(upsample_nearest_exact2d, OPDI_CU_EXACT, 2)
OPDI_CU_RESAMPLE(upsample_nearest_exact3d, OPDI_CU_EXACT, 3)
OPDI_CU_RESAMPLE(upsample_linear1d, OPDI_CU_LINEAR, 1)
OPDI_CU_RESAMPLE(upsample_trilinear3d, OPDI_CU_LINEAR, 3)
OPDI_CU_RESAMPLE(upsample_bicubic2d, OPDI_CU_CUBIC, 2)
OPDI_CU_RESAMPLE(upsample_bilinear2d_aa, OPDI_CU_LINEAR_AA, 2)
OPDI_CU_RESAMPLE(upsample_bicubic2d_aa, OPDI_CU_CUBIC_AA, 2)

#define OPDI_CU_BOTH(name, function) {name, function}, {name "_backward", function##_backward}
static const opdi_cu_registration opdi_cu_table_filters[] = {
    OPDI_CU_BOTH("upsample_nearest1d", opdi_cu_upsample_nearest1d),
    OPDI_CU_BOTH("upsample_nearest3d", opdi_cu_upsample_nearest3d),
    OPDI_CU_BOTH("_upsample_nearest_exact1d", opdi_cu_upsample_nearest_exact1d),
    OPDI_CU_BOTH("_upsample_nearest_exact2d", opdi_cu_upsample_nearest_exact2d),
    OPDI_CU_BOTH("_upsample_nearest_exact3d", opdi_cu_upsample_nearest_exact3d),
    OPDI_CU_BOTH("upsample_linear1d", opdi_cu_upsample_linear1d),
    OPDI_CU_BOTH("upsample_trilinear3d", opdi_cu_upsample_trilinear3d),
    OPDI_CU_BOTH("upsample_bicubic2d", opdi_cu_upsample_bicubic2d),
    OPDI_CU_BOTH("_upsample_bilinear2d_aa", opdi_cu_upsample_bilinear2d_aa),
    OPDI_CU_BOTH("_upsample_bicubic2d_aa", opdi_cu_upsample_bicubic2d_aa),
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:detection   operators of models that detect objects in images
//
//  torchvision's nms and roi_align.  As on the CPU, places and overlaps are computed in the type of the boxes.
//----------------------------------------------------------------------------------------------------------------------

//== non-maximum suppression ===========================================================================================
//
//  The first kernel compares each box with the boxes after it, in the order of falling scores, and writes a bit for
//  each overlap that is too large.  The second goes through the boxes in order, in one block, and keeps those that no
//  kept box covers.  The host waits for their number, which is the size of the result.

enum { OPDI_CU_NMS = 64 };                        /* boxes that a word has bits for */
template <typename A> struct opdi_cu_boxes {
    const A *boxes;                               /* [n][4] */
    const int64_t *order;                         /* [n], by falling scores */
    int64_t n, words;                             /* words: of a row of covers */
    double most;
    unsigned long long *covers;                   /* [n][words]: bit k of word w of row i: box i covers box 64 w + k */
};
/* Returns x * y, which the compiler does not join with a sum. */
template <typename A> __device__ __forceinline__ A opdi_cu_rounded_product(A x, A y) {
    return opdi_cu_mul_add(x, y, A(0));
}
template <typename A> __device__ __forceinline__ bool opdi_cu_overlaps(const A *a, const A *b, double most) {
    const A left = a[0] < b[0] ? b[0] : a[0], right = b[2] < a[2] ? b[2] : a[2];
    const A top = a[1] < b[1] ? b[1] : a[1], bottom = b[3] < a[3] ? b[3] : a[3];
    const A w = right - left > 0 ? right - left : A(0), h = bottom - top > 0 ? bottom - top : A(0);
    const A both = opdi_cu_rounded_product(w, h), one = opdi_cu_rounded_product(a[2] - a[0], a[3] - a[1]);
    const A all = one + opdi_cu_rounded_product(b[2] - b[0], b[3] - b[1]);
    return (double)(both / (all - both)) > most;
}
template <typename A> __global__ void __launch_bounds__(OPDI_CU_NMS) opdi_cu_nms_compare(const opdi_cu_boxes<A> p) {
    __shared__ A others[OPDI_CU_NMS][4];
    for (int64_t t = blockIdx.x; t < p.words * p.words; t += gridDim.x) {
        int64_t w;
        const int64_t row0 = opdi_cu_divide(t, p.words, &w) * OPDI_CU_NMS, at0 = w * OPDI_CU_NMS;
        const int64_t i = row0 + threadIdx.x, other = at0 + threadIdx.x;
        if (at0 < row0) { continue; }
        __syncthreads();
        for (int k = 0; k < 4; k++) { others[threadIdx.x][k] = other < p.n ? p.boxes[p.order[other] * 4 + k] : A(0); }
        __syncthreads();
        if (i >= p.n) { continue; }
        A mine[4];
        unsigned long long bits = 0;
        for (int k = 0; k < 4; k++) { mine[k] = p.boxes[p.order[i] * 4 + k]; }
        const int many = p.n - at0 < OPDI_CU_NMS ? (int)(p.n - at0) : OPDI_CU_NMS;
        for (int k = at0 == row0 ? (int)threadIdx.x + 1 : 0; k < many; k++) {
            if (opdi_cu_overlaps(mine, others[k], p.most)) { bits |= 1ull << k; }
        }
        p.covers[i * p.words + w] = bits;
    }
}
/* Writes the kept boxes to `kept`, and their number to *count.  gone: `words` zeros, the bits of covered boxes. */
static __global__ void __launch_bounds__(1024)
opdi_cu_nms_keep(const unsigned long long *covers, const int64_t *order, int64_t n, int64_t words,
                 unsigned long long *gone, int64_t *kept, int64_t *count) {
    __shared__ unsigned long long now;            /* the bits of the boxes of this word that are kept */
    int64_t many = 0;
    for (int64_t w = 0; w < words; w++) {
        const int64_t first = w * OPDI_CU_NMS, some = n - first < OPDI_CU_NMS ? n - first : OPDI_CU_NMS;
        __shared__ unsigned long long inside[OPDI_CU_NMS];
        __syncthreads();
        if ((int64_t)threadIdx.x < some) { inside[threadIdx.x] = covers[(first + threadIdx.x) * words + w]; }
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned long long lost = gone[w], keep = 0;
            for (int64_t k = 0; k < some; k++) {
                if (lost >> k & 1) { continue; }
                keep |= 1ull << k;
                lost |= inside[k];
                kept[many + __popcll(keep) - 1] = order[first + k];
            }
            now = keep;
        }
        __syncthreads();
        const unsigned long long keep = now;
        many += __popcll(keep);
        for (int64_t v = w + 1 + threadIdx.x; v < words; v += blockDim.x) {
            unsigned long long lost = gone[v], left = keep;
            while (left) {
                const int k = __ffsll((long long)left) - 1;
                left &= left - 1;
                lost |= covers[(first + k) * words + v];
            }
            gone[v] = lost;
        }
    }
    if (threadIdx.x == 0) { *count = many; }
}
template <typename A> static int opdi_cu_nms_run(opd_tensor *boxes, opd_tensor *order, double most,
                                                 unsigned long long *covers, int64_t words, int64_t *kept) {
    const int64_t n = opd_size(boxes, 0);
    const opdi_cu_boxes<A> p = {opdi_cu_data<A>(boxes), opdi_cu_data<int64_t>(order), n, words, most, covers};
    unsigned long long *gone = covers + n * words;
    OPDI_CU_TRY(cudaMemsetAsync(gone, 0, (size_t)words * 8, opdi_cu_stream()), "nms");
    if (opdi_cu_launch(opdi_cu_nms_compare<A>, opdi_cu_grid_rows(words * words), OPDI_CU_NMS, 0, p)) { return -1; }
    return opdi_cu_launch(opdi_cu_nms_keep, dim3(1), dim3(1024), 0, (const unsigned long long *)covers, p.order, n,
                          words, gone, kept + 1, kept);
}
static int opdi_cu_nms(opd_call *call) {
    opd_tensor *boxes = opd_arg_tensor(call, 0), *scores = opd_arg_tensor(call, 1), *sorted[2], *out;
    const opd_scalar_type t = opd_dtype(boxes) == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    const int64_t n = opd_ndim(boxes) == 2 ? opd_size(boxes, 0) : 0, words = opdi_cu_ceil(n, OPDI_CU_NMS);
    if (n == 0 || opd_size(boxes, 1) != 4 || opd_ndim(scores) != 1 || opd_size(scores, 0) != n ||
        opd_dtype(boxes) != opd_dtype(scores) || !opd_dtype_is_floating(opd_dtype(boxes))) {
        return opd_cpu_fallback(call);            /* reports what is wrong */
    }
    if (opd_sort_stable(sorted, scores, opd_value_bool(true), 0, true)) { return -1; }
    const int64_t room = n + 1;
    opd_tensor *order = opdi_cu_as(sorted[1], OPD_INT64), *all = opdi_cu_new(opd_ints_of(&room, 1), OPD_INT64);
    unsigned long long *covers = (unsigned long long *)opdi_cu_scratch((n + 1) * words * 8);
    if (!order || !all || !covers || !(boxes = opdi_cu_as(boxes, t))) { return -1; }
    int64_t *kept = opdi_cu_data<int64_t>(all);
    if (t == OPD_FLOAT64 ? opdi_cu_nms_run<double>(boxes, order, opd_arg_double(call, 2), covers, words, kept)
        : opdi_cu_nms_run<float>(boxes, order, opd_arg_double(call, 2), covers, words, kept)) { return -1; }
    const int64_t count = opd_item_i64(opd_select(all, 0, 0));                    /* waits for the device */
    out = opd_ok() ? opd_narrow(all, 0, 1, count) : NULL;
    return out ? opd_return_tensor(call, opd_clone(out)) : -1;
}

//== roi_align =========================================================================================================
//
//  A bin is the mean of its samples, each of which lies between four pixels.  A thread computes one bin of one channel.
//  In the backward pass, it adds the bin's gradient to the pixels by atomic additions.

template <typename T, typename R> struct opdi_cu_roi {
    const R *rois;                                /* [count][5]: number of the image, x, y, x, y */
    int64_t images, channels, height, width, bins[2], ratio;
    R scale;
    bool aligned;
    opdi_cu_guard image, size;                    /* for numbers of images, and sizes of regions */
    const T *x;                                   /* forward: images; backward: gradients of bins */
    T *y;
    opdi_cu_acc<T> *sums;                         /* backward: gradients of images */
};
/* One axis of a region: its start, the length of a bin, and the number of samples in each bin (-1: too many). */
template <typename R> struct opdi_cu_roi_axis { R start, bin; int samples; };
/* Returns axis 0 (y) or 1 (x) of a region whose corner is box[0] and, two further on, box[2]. */
template <typename T, typename R>
__device__ __forceinline__ opdi_cu_roi_axis<R> opdi_cu_roi_axis_of(const opdi_cu_roi<T, R> &p, const R *box, int axis) {
    const R shift = p.aligned ? R(0.5) : R(0), start = opdi_cu_rounded_product(box[0], p.scale) - shift;
    R length = opdi_cu_rounded_product(box[2], p.scale) - shift - start;
    opdi_cu_roi_axis<R> a;
    if (!p.aligned && !(length > 1)) { length = 1; }
    a.start = start;
    a.bin = length / (R)p.bins[axis];
    const double samples = p.ratio > 0 ? (double)p.ratio : ceil((double)a.bin);
    a.samples = !(samples < 100000) ? -1 : samples > 0 ? (int)samples : 0;
    return a;
}
/* Finds the two rows or columns around sample number `i` of bin `bin`, and their weights.  Returns false if the sample
   is outside of the image, which has `size` rows or columns. */
template <typename R>
__device__ __forceinline__ bool opdi_cu_roi_lines(const opdi_cu_roi_axis<R> &a, int64_t bin, int i, int64_t size,
                                                  int64_t *lines /*[2]*/, R *parts /*[2]*/) {
    R place = a.start + opdi_cu_rounded_product((R)bin, a.bin);
    place += opdi_cu_rounded_product((R)i + R(0.5), a.bin) / (R)a.samples;
    if (!(place >= -1 && place <= (R)size)) { return false; }
    place = place > 0 ? place : R(0);
    lines[0] = (int64_t)place;
    lines[1] = lines[0] + 1;
    if (lines[0] >= size - 1) {
        lines[0] = lines[1] = size - 1;
        place = (R)lines[0];
    }
    parts[1] = place - (R)lines[0];
    parts[0] = 1 - parts[1];
    return true;
}
template <typename T, typename R, bool back> struct opdi_cu_roi_bins {
    opdi_cu_roi<T, R> p;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t column, row, channel;
        const int64_t region = opdi_cu_divide(opdi_cu_divide(opdi_cu_divide(i, p.bins[1], &column), p.bins[0], &row),
                                              p.channels, &channel);
        const R *box = p.rois + 5 * region;
        const bool there = box[0] >= 0 && box[0] < (R)p.images;
        const opdi_cu_roi_axis<R> v = opdi_cu_roi_axis_of(p, box + 2, 0), h = opdi_cu_roi_axis_of(p, box + 1, 1);
        if (!there) { p.image.note(region, p.images); }
        else if (v.samples < 0 || h.samples < 0) { p.size.note(region, p.images); }
        const bool empty = !there || v.samples < 0 || h.samples < 0 || p.height * p.width == 0;
        const int64_t plane = empty ? 0 : ((int64_t)box[0] * p.channels + channel) * p.height * p.width;
        const int64_t many = empty ? 0 : (int64_t)v.samples * h.samples;
        const A share = A(1) / (A)(many > 1 ? many : 1), given = back ? opdi_cu_load<A>(p.x + i) * share : A(0);
        A sum = 0;
        for (int a = 0; many > 0 && a < v.samples; a++) {
            int64_t rows[2], columns[2];
            R up[2], side[2];
            if (!opdi_cu_roi_lines(v, row, a, p.height, rows, up)) { continue; }
            for (int b = 0; b < h.samples; b++) {
                if (!opdi_cu_roi_lines(h, column, b, p.width, columns, side)) { continue; }
                OPDI_CU_UNROLL
                for (int k = 0; k < 4; k++) {
                    const int64_t at = plane + rows[k / 2] * p.width + columns[k % 2];
                    const A w = (A)(up[k / 2] * side[k % 2]);
                    if (back) { opdi_cu_atomic_add(p.sums + at, given * w); }
                    else { sum += w * opdi_cu_load<A>(p.x + at); }
                }
            }
        }
        if (!back) { opdi_cu_store(p.y + i, sum * share); }
    }
};
template <typename T, typename R>
static int opdi_cu_roi_go(opd_call *call, opd_tensor *x, opd_tensor *rois, opd_tensor *y, bool back) {
    const opd_tensor *const image = back ? y : x, *const pooled = back ? x : y;
    const int last = back ? 9 : 5;
    opdi_cu_roi<T, R> p;
    p.rois = opdi_cu_data<R>(rois);
    if (opd_size(image, 0) == 0 && opd_size(rois, 0) > 0) {
        return opd_fail(OPD_ERROR_INDEX, "rois names an image, but there are 0 images");
    }
    p.images = opd_size(image, 0); p.channels = opd_size(image, 1);
    p.height = opd_size(image, 2); p.width = opd_size(image, 3);
    p.bins[0] = opd_size(pooled, 2); p.bins[1] = opd_size(pooled, 3);
    p.ratio = opd_arg_int(call, last); p.aligned = opd_arg_bool(call, last + 1);
    p.scale = (R)opd_arg_double(call, 2);
    p.image = opdi_cu_guard_of(call, "a region names an image that there is not");
    p.size = opdi_cu_guard_of(call, "a region is too large: a bin would have 100000 rows or columns of samples");
    p.x = opdi_cu_data<T>(x); p.y = back ? NULL : opdi_cu_data<T>(y);
    p.sums = back ? opdi_cu_data<opdi_cu_acc<T>>(y) : NULL;
    const opdi_cu_roi_bins<T, R, false> forth = {p};
    const opdi_cu_roi_bins<T, R, true> rear = {p};
    return back ? opdi_cu_each(opd_numel(pooled), rear) : opdi_cu_each(opd_numel(pooled), forth);
}
/* Runs roi_align or, if `back` is true, its gradient. */
static int opdi_cu_roi_align_of(opd_call *call, bool back) {
    opd_tensor *x = opd_arg_tensor(call, 0), *rois = opd_arg_tensor(call, 1), *out, *work;
    if (opd_results_from_fake(call) || (back && opd_deterministic_alert(call, NULL))) { return -1; }
    out = opdi_cu_result(call, 0);
    const opd_scalar_type t = opd_dtype(x), r = opd_dtype(rois) == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
    work = back ? opd_zeros_full(opd_ints_of(opd_sizes(out), opd_ndim(out)), opd_value_int(opdi_cu_compute_dtype(t)),
                                 opd_value_none(), opd_value_device(opd_tensor_device(x)), opd_value_none())
        : opdi_cu_staging(out);
    x = opdi_cu_as(x, t);
    rois = opdi_cu_as(rois, r);
    if (!work || !x || !rois) { return -1; }
    OPDI_CU_FLOATS(t, T, {
        if (r == OPD_FLOAT64 ? opdi_cu_roi_go<T, double>(call, x, rois, work, back)
            : opdi_cu_roi_go<T, float>(call, x, rois, work, back)) { return -1; }
    })
    return back ? opd_copy_(out, work) ? 0 : -1 : opdi_cu_staging_store(out, work);
}
static int opdi_cu_roi_align(opd_call *call) { return opdi_cu_roi_align_of(call, false); }
static int opdi_cu_roi_align_backward(opd_call *call) { return opdi_cu_roi_align_of(call, true); }
static const opdi_cu_registration opdi_cu_table_vision[] = {
    {"nms", opdi_cu_nms}, {"roi_align", opdi_cu_roi_align}, {"_roi_align_backward", opdi_cu_roi_align_backward},
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:losses      losses
//----------------------------------------------------------------------------------------------------------------------

//== nll_loss ==========================================================================================================

/* Input x [n, c, inner] and targets [n, inner].  Targets equal to `ignore` do not count.  Targets that are out of range
   do not count either, and the kernel reports them as a fault. */
template <typename T> struct opdi_cu_nll {
    const T *x, *w;                               /* w: weights of the classes, or NULL */
    const int64_t *target;
    int64_t n, c, inner, ignore;
    opdi_cu_guard guard;
    /* Returns the weight of target i, and sets *at to the position of its element in x, or to -1 if the target does not
       count. */
    __device__ __forceinline__ opdi_cu_acc<T> weight(int64_t i, int64_t *at) const {
        const int64_t t = target[i];
        *at = -1;
        if (t == ignore || !guard.inside(t, c)) { return 0; }
        *at = (i / inner * c + t) * inner + i % inner;
        return w ? opdi_cu_load<opdi_cu_acc<T> >(w + t) : (opdi_cu_acc<T>)1;
    }
};
template <typename T> __global__ void opdi_cu_nll_each(const opdi_cu_nll<T> k, T *y, T *total) {
    typedef opdi_cu_acc<T> A;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < k.n * k.inner;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t at;
        const A w = k.weight(i, &at);
        opdi_cu_store(y + i, at < 0 ? (A)0 : -w * opdi_cu_load<A>(k.x + at));
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) { opdi_cu_store(total, (A)0); }
}
/* Sums the losses and the weights.  parts [2][gridDim.x] gets the sums of each block, which opdi_cu_nll_total then
   adds. */
template <typename T> __global__ void opdi_cu_nll_sums(const opdi_cu_nll<T> k, opdi_cu_acc<T> *parts) {
    typedef opdi_cu_acc<T> A;
    A sum = 0, weights = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < k.n * k.inner;
         i += (int64_t)gridDim.x * blockDim.x) {
        int64_t at;
        const A w = k.weight(i, &at);
        weights += w;
        if (at >= 0) { sum -= w * opdi_cu_load<A>(k.x + at); }
    }
    sum = opdi_cu_block_reduce(sum, opdi_cu_sum(), (A)0);
    weights = opdi_cu_block_reduce(weights, opdi_cu_sum(), (A)0);
    if (threadIdx.x == 0) { parts[blockIdx.x] = sum; parts[gridDim.x + blockIdx.x] = weights; }
}
template <typename T>
__global__ void opdi_cu_nll_total(const opdi_cu_acc<T> *parts, int blocks, bool mean, T *y, T *total) {
    typedef opdi_cu_acc<T> A;
    const int i = (int)threadIdx.x;
    const A sum = opdi_cu_block_reduce(i < blocks ? parts[i] : (A)0, opdi_cu_sum(), (A)0);
    const A weights = opdi_cu_block_reduce(i < blocks ? parts[blocks + i] : (A)0, opdi_cu_sum(), (A)0);
    if (i == 0) { opdi_cu_store(y, mean ? sum / weights : sum); opdi_cu_store(total, weights); }
}
/* Sets *to to the total weight for a backward pass.  If *given is the sum in `parts`, rounded to T, this is the sum,
   because a 16-bit float may not hold a count. */
template <typename T> __global__ void opdi_cu_nll_unrounded(const opdi_cu_acc<T> *parts, int blocks, const T *given,
                                                            opdi_cu_acc<T> *to) {
    typedef opdi_cu_acc<T> A;
    const int i = (int)threadIdx.x;
    const A weights = opdi_cu_block_reduce(i < blocks ? parts[blocks + i] : (A)0, opdi_cu_sum(), (A)0);
    if (i != 0) { return; }
    T rounded;
    opdi_cu_store(&rounded, weights);
    const A total = opdi_cu_load<A>(given);
    *to = opdi_cu_load<A>(&rounded) == total ? weights : total;
}
/* dx [n, c, inner] is -w * g at the target, and 0 elsewhere.  If `one` is true, the same g serves all targets; if also
   `mean` is true, it is divided by the total weight. */
template <typename T> __global__ void opdi_cu_nll_back(const opdi_cu_nll<T> k, const T *g, bool one, bool mean,
                                                       const opdi_cu_acc<T> *total, T *dx) {
    typedef opdi_cu_acc<T> A;
    const A scale = !one ? (A)1 : mean ? opdi_cu_load<A>(g) / *total : opdi_cu_load<A>(g);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < k.n * k.c * k.inner;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t q = i / k.inner, t = q / k.c * k.inner + i % k.inner;
        A v = 0;
        int64_t at;
        if (q % k.c == 0 || k.target[t] == q % k.c) {             /* the thread of the first class also checks the
                                                                     target */
            const A w = k.weight(t, &at);
            if (at == i) { v = -w * (one ? scale : opdi_cu_load<A>(g + t)); }
        }
        opdi_cu_store(dx + i, v);
    }
}
/* Reads the arguments of nll_loss into *k.  Arguments from number `input` on are x, target and weight; argument number
   `first` is the reduction.  Returns 0, or -1 and sets an error. */
template <typename T>
static int opdi_cu_nll_of(opd_call *call, int input, int first, opdi_cu_nll<T> *k) {
    opd_tensor *x = opd_contiguous(opd_arg_tensor(call, input)),
        *target = opd_contiguous(opd_arg_tensor(call, input + 1)),
        *w = opd_arg_tensor(call, input + 2);
    if (!x || !target || (w && !(w = opd_contiguous(w)))) { return -1; }
    k->x = opdi_cu_data<T>(x); k->w = w ? opdi_cu_data<T>(w) : NULL; k->target = opdi_cu_data<int64_t>(target);
    k->n = opd_ndim(x) == 1 ? 1 : opd_size(x, 0);
    k->c = opd_size(x, opd_ndim(x) == 1 ? 0 : 1);
    k->inner = opd_ndim(x) == 4 ? opd_size(x, 2) * opd_size(x, 3) : 1;
    k->ignore = opd_arg_int(call, first + 1);
    k->guard = opdi_cu_guard_of(call);
    return 0;
}
/* Sums the losses and the weights of *blocks blocks, and sets *blocks.  Returns the sums in scratch memory, or NULL and
   sets an error. */
template <typename T> static opdi_cu_acc<T> *opdi_cu_nll_parts(const opdi_cu_nll<T> &k, int *blocks) {
    const int64_t want = opdi_cu_ceil(k.n * k.inner, 1024);
    *blocks = (int)(want < 1 ? 1 : want < 256 ? want : 256);
    opdi_cu_acc<T> *parts = (opdi_cu_acc<T> *)opdi_cu_scratch(2 * *blocks * (int64_t)sizeof *parts);
    return parts && opdi_cu_launch(opdi_cu_nll_sums<T>, dim3((unsigned)*blocks), dim3(256), 0, k, parts) == 0
        ? parts : NULL;
}
static int opdi_cu_nll_forward(opd_call *call) {
    const int64_t reduction = opd_arg_int(call, 3);               /* 0 none, 1 mean, 2 sum */
    opd_tensor *y, *total, *staging;
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0); total = opdi_cu_result(call, 1);
    staging = opdi_cu_staging(y);
    if (!staging) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(y), T, {
        opdi_cu_nll<T> k;
        T *to = opdi_cu_data<T>(staging), *weight = opdi_cu_data<T>(total);
        if (opdi_cu_nll_of<T>(call, 0, 3, &k)) { return -1; }
        if (reduction == 0 && opd_ndim(opd_arg_tensor(call, 0)) > 1) {
            if (opdi_cu_launch(opdi_cu_nll_each<T>, opdi_cu_grid(k.n * k.inner, 256), dim3(256), 0, k, to, weight)) {
                return -1;
            }
        } else {
            int blocks;
            opdi_cu_acc<T> *parts = opdi_cu_nll_parts<T>(k, &blocks);
            if (!parts || opdi_cu_launch(opdi_cu_nll_total<T>, dim3(1), dim3(256), 0, (const opdi_cu_acc<T> *)parts,
                                         blocks, reduction == 1, to, weight)) { return -1; }
        }
    })
    return opdi_cu_staging_store(y, staging);
}
static int opdi_cu_nll_backward(opd_call *call) {
    const int64_t reduction = opd_arg_int(call, 4);
    opd_tensor *g = opd_arg_tensor(call, 0), *total = opd_arg_tensor(call, 6), *dx, *staging;
    bool one;
    if (opd_results_from_fake(call)) { return -1; }
    dx = opdi_cu_result(call, 0);
    if (opd_numel(dx) == 0) { return 0; }
    one = reduction != 0 || opd_ndim(dx) == 1;
    staging = opdi_cu_staging(dx);
    g = opd_contiguous(opd_to_dtype(g, opd_dtype(dx)));
    total = opd_to_dtype(total, opd_dtype(dx));
    if (!staging || !g || !total) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(dx), T, {
        opdi_cu_nll<T> k;
        opdi_cu_acc<T> *weights = (opdi_cu_acc<T> *)opdi_cu_data<void>(total);
        if (opdi_cu_nll_of<T>(call, 1, 4, &k)) { return -1; }
        if (sizeof(T) == 2 && reduction == 1) {
            int blocks;
            opdi_cu_acc<T> *parts = opdi_cu_nll_parts<T>(k, &blocks);
            weights = parts ? (opdi_cu_acc<T> *)opdi_cu_scratch((int64_t)sizeof *weights) : NULL;
            if (!weights || opdi_cu_launch(opdi_cu_nll_unrounded<T>, dim3(1), dim3(256), 0,
                                           (const opdi_cu_acc<T> *)parts, blocks, (const T *)opdi_cu_data<T>(total),
                                           weights)) { return -1; }
        }
        if (opdi_cu_launch(opdi_cu_nll_back<T>, opdi_cu_grid(opd_numel(dx), 256), dim3(256), 0, k,
                           (const T *)opdi_cu_data<T>(g), one, reduction == 1, (const opdi_cu_acc<T> *)weights,
                           opdi_cu_data<T>(staging))) { return -1; }
    })
    return opdi_cu_staging_store(dx, staging);
}

static const opdi_cu_registration opdi_cu_table_losses[] = {
    {"nll_loss_forward", opdi_cu_nll_forward}, {"nll_loss2d_forward", opdi_cu_nll_forward},
    {"nll_loss_backward", opdi_cu_nll_backward}, {"nll_loss2d_backward", opdi_cu_nll_backward},
    {NULL, NULL}};

//== cross entropy =====================================================================================================
//
//  The loss of row x[n] is top - x[target] + rest, with top = max(x) and rest = log(sum(exp(x - top))), so that the
//  logits are read once, and no log_softmax is written.  The gradient is (exp(x - top - rest) - (i == target)) * g.
//  top + rest is never rounded to one number, which would lose the digits of rest for large logits.  Rows whose target
//  is `ignore` have no loss and no gradient.

enum { OPDI_CU_ENTROPY_THREADS = 512 };
template <typename T> struct opdi_cu_entropy {
    typedef opdi_cu_acc<T> A;
    const T *x;
    T *dx;                                        /* backward */
    const int64_t *target;
    int64_t rows, ignore;
    int n;
    A *lse, *loss, *total;                        /* lse [2, rows]: top and rest of each row; loss of each row; total:
                                                     the number of rows that count */
    const A *g;                                   /* of each row or, if `one` is true, of all; with `mean`, divided by
                                                     *total */
    bool one, mean;
    opdi_cu_guard guard;
};
/* A block computes a row in each round. */
template <typename T> __global__ void __launch_bounds__(OPDI_CU_ENTROPY_THREADS)
opdi_cu_entropy_rows(const opdi_cu_entropy<T> k) {
    typedef opdi_cu_acc<T> A;
    constexpr int W = 16 / sizeof(T), U = 2;
    const int threads = (int)blockDim.x, thread = (int)threadIdx.x;
    const opdi_cu_exps<A> none = {opdi_cu_lowest<A>(), 0};
    for (int64_t row = blockIdx.x; row < k.rows; row += gridDim.x) {
        const T *x = k.x + row * k.n;
        const opdi_cu_long_row<T, W> a(x, k.n);
        opdi_cu_exps<A> e = none;
        A v[W];
        if (thread < a.lead && thread < k.n) { v[0] = opdi_cu_load<A>(x + thread); e.template take<1>(v); }
        OPDI_CU_ROLLED
        for (int p = thread; p < a.packs; p += U * threads) {
            opdi_cu_vector<T, W> in[U];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                if (p + u * threads < a.packs) { in[u] = opdi_cu_load_vector<W>(x + a.lead + (p + u * threads) * W); }
            }
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                if (p + u * threads >= a.packs) { continue; }
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) { v[w] = opdi_cu_taken<A>(in[u], w); }
                e.template take<W>(v);
            }
        }
        if (thread < a.tail) { v[0] = opdi_cu_load<A>(x + k.n - a.tail + thread); e.template take<1>(v); }
        e = opdi_cu_block_reduce(e, opdi_cu_exps_join(), none);
        if (thread == 0) {
            const int64_t t = k.target[row];
            const A rest = (A)log(e.total());
            k.lse[row] = e.top;
            k.lse[k.rows + row] = rest;
            k.loss[row] = t != k.ignore && k.guard.inside(t, k.n) ? e.top - opdi_cu_load<A>(x + t) + rest : (A)0;
        }
    }
}
/* Adds the losses of all rows, and counts the rows that count.  y: the sum or, if `mean` is true, the mean. */
template <typename T> __global__ void __launch_bounds__(1024) opdi_cu_entropy_total(const opdi_cu_entropy<T> k,
                                                                                    opdi_cu_acc<T> *y) {
    typedef opdi_cu_acc<T> A;
    A sum = 0, count = 0;
    for (int64_t row = threadIdx.x; row < k.rows; row += blockDim.x) {
        const int64_t t = k.target[row];
        sum += k.loss[row];
        count += t != k.ignore && (uint64_t)t < (uint64_t)k.n ? (A)1 : (A)0;
    }
    sum = opdi_cu_block_reduce(sum, opdi_cu_sum(), (A)0);
    count = opdi_cu_block_reduce(count, opdi_cu_sum(), (A)0);
    if (threadIdx.x == 0) { *k.total = count; *y = k.mean ? sum / count : sum; }
}
template <typename T> __global__ void __launch_bounds__(OPDI_CU_ENTROPY_THREADS)
opdi_cu_entropy_backward(const opdi_cu_entropy<T> k) {
    typedef opdi_cu_acc<T> A;
    constexpr int W = 16 / sizeof(T), U = 2;
    const int threads = (int)blockDim.x, thread = (int)threadIdx.x;
    for (int64_t row = blockIdx.x; row < k.rows; row += gridDim.x) {
        const T *x = k.x + row * k.n;
        T *dx = k.dx + row * k.n;
        const opdi_cu_long_row<T, W> a(x, k.n);
        const int64_t t = k.target[row];
        const bool counts = t != k.ignore && (uint64_t)t < (uint64_t)k.n;
        const A top = k.lse[row], rest = k.lse[k.rows + row];
        const A g = !counts ? (A)0 : !k.one ? k.g[row] : k.mean ? *k.g / *k.total : *k.g;
        const auto put = [&](int i) {
            opdi_cu_store(dx + i, (opdi_cu_exp(opdi_cu_load<A>(x + i) - top - rest) - (A)(i == t)) * g);
        };
        if (thread < a.lead && thread < k.n) { put(thread); }
        OPDI_CU_ROLLED
        for (int p = thread; p < a.packs; p += U * threads) {
            opdi_cu_vector<T, W> in[U];
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                if (p + u * threads < a.packs) { in[u] = opdi_cu_load_vector<W>(x + a.lead + (p + u * threads) * W); }
            }
            OPDI_CU_UNROLL
            for (int u = 0; u < U; u++) {
                const int i = a.lead + (p + u * threads) * W;
                A v[W];
                if (p + u * threads >= a.packs) { continue; }
                OPDI_CU_UNROLL
                for (int w = 0; w < W; w++) {
                    v[w] = (opdi_cu_exp(opdi_cu_taken<A>(in[u], w) - top - rest) - (A)(i + w == t)) * g;
                }
                opdi_cu_store_some<W>(dx + i, v);
            }
        }
        if (thread < a.tail) { put(k.n - a.tail + thread); }
    }
}
/* Reads x [rows, n], which must be contiguous, and its targets [rows] into *k.  x is copied if it does not begin at a
   multiple of 16 bytes. */
template <typename T> static int opdi_cu_entropy_of(opd_call *call, opd_tensor **x, opd_tensor *target,
                                                    opdi_cu_entropy<T> *k) {
    target = opd_contiguous(target);
    *x = opd_contiguous(*x);
    if (*x && !opdi_cu_aligned(opdi_cu_data<T>(*x))) { *x = opd_clone(*x); }
    if (!*x || !target) { return -1; }
    memset(k, 0, sizeof *k);
    k->x = opdi_cu_data<T>(*x); k->target = opdi_cu_data<int64_t>(target);
    k->rows = opd_size(*x, 0); k->n = (int)opd_size(*x, 1);
    k->guard = opdi_cu_guard_of(call);
    return 0;
}
/* Runs cross_entropy(Tensor x, Tensor target, int reduction, int ignore) -> (Tensor, Tensor, Tensor): the loss in the
   type of the computation, top and rest of each row, and the number of rows that count (unless the reduction is 0,
   none). */
static int opdi_cu_cross_entropy(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *loss, *lse, *total, *y;
    const opd_scalar_type acc = opdi_cu_acc_dtype(opd_dtype(x));
    const int64_t reduction = opd_arg_int(call, 2), rows = opd_size(x, 0);
    loss = opdi_cu_new(opd_ints_of(&rows, 1), acc); lse = opdi_cu_new(OPD_INTS(2, rows), acc);
    total = opdi_cu_new(opd_ints_of(NULL, 0), acc); y = reduction ? opdi_cu_new(opd_ints_of(NULL, 0), acc) : loss;
    if (!loss || !lse || !total || !y) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        opdi_cu_entropy<T> k;
        if (opdi_cu_entropy_of<T>(call, &x, opd_arg_tensor(call, 1), &k)) { return -1; }
        k.ignore = opd_arg_int(call, 3); k.mean = reduction == 1;
        k.lse = opdi_cu_data<A>(lse); k.loss = opdi_cu_data<A>(loss); k.total = opdi_cu_data<A>(total);
        if (opdi_cu_launch(opdi_cu_entropy_rows<T>, opdi_cu_grid_rows(rows), OPDI_CU_ENTROPY_THREADS, 0, k) ||
            (reduction && opdi_cu_launch(opdi_cu_entropy_total<T>, dim3(1), dim3(1024), 0, k, opdi_cu_data<A>(y)))) {
            return -1;
        }
    })
    return opd_return_tensor(call, y) || opd_return_tensor(call, lse) ? -1 : opd_return_tensor(call, total);
}
/* Runs cross_entropy_backward(Tensor g, Tensor x, Tensor target, Tensor lse, Tensor total, int reduction, int ignore)
   -> Tensor. */
static int opdi_cu_cross_entropy_backward(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 1), *lse = opd_arg_tensor(call, 3), *total = opd_arg_tensor(call, 4), *dx, *g;
    const int64_t reduction = opd_arg_int(call, 5);
    g = opdi_cu_as(opd_arg_tensor(call, 0), opd_dtype(lse));
    dx = g ? opdi_cu_new(opd_ints_of(opd_sizes(x), 2), opd_dtype(x)) : NULL;
    if (!dx) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        typedef opdi_cu_acc<T> A;
        opdi_cu_entropy<T> k;
        if (opdi_cu_entropy_of<T>(call, &x, opd_arg_tensor(call, 2), &k)) { return -1; }
        k.ignore = opd_arg_int(call, 6); k.one = reduction != 0; k.mean = reduction == 1;
        k.lse = opdi_cu_data<A>(lse); k.total = opdi_cu_data<A>(total); k.g = opdi_cu_data<A>(g);
        k.dx = opdi_cu_data<T>(dx);
        if (opdi_cu_launch(opdi_cu_entropy_backward<T>, opdi_cu_grid_rows(k.rows), OPDI_CU_ENTROPY_THREADS, 0, k)) {
            return -1;
        }
    })
    return opd_return_tensor(call, dx);
}

//== distances between the rows of matrices ============================================================================
//
//  d_ij = (sum_k |x_ik - y_jk|^p)^(1/p).  If there is only one matrix (y is x), the result has the pairs i < j, one
//  after another.  A block computes tiles of 16 x 16 distances, for which it copies rows to shared memory.  For the
//  gradient with respect to an element of x, one thread sums over the rows of y.

enum { OPDI_CU_TILE = 16 };
enum opdi_cu_norm_kind { OPDI_CU_NORM_0, OPDI_CU_NORM_1, OPDI_CU_NORM_2, OPDI_CU_NORM_P, OPDI_CU_NORM_MAX };
/* x is [b, n, k] and y is [b, m, k].  g (gradients) and d (distances) are [b, n, m] or, if `pairs` is true, the pairs
   of one matrix.  out has the sizes of g for distances, or the sizes of x for the gradient. */
template <typename T> struct opdi_cu_distances {
    int64_t b, n, m, k;
    T p;
    bool pairs;
    const T *x, *y, *g, *d;
    T *out;
    __device__ __forceinline__ int64_t at(int64_t b, int64_t i, int64_t j) const {
        if (!pairs) { return (b * n + i) * m + j; }
        return i < j ? i * n - i * (i + 1) / 2 + j - i - 1 : j * n - j * (j + 1) / 2 + i - j - 1;
    }
};
template <int KIND, typename T> __device__ __forceinline__ T opdi_cu_distance_fold(T s, T v, T p) {
    const T size = v < 0 ? -v : v;
    switch (KIND) {
        case OPDI_CU_NORM_0: return s + (T)(v < 0 || v > 0 || !(v <= v));
        case OPDI_CU_NORM_1: return s + size;
        case OPDI_CU_NORM_2: return s + v * v;
        case OPDI_CU_NORM_P: return s + (T)pow(size, p);
        default: return size > s || !(size <= size) ? size : s;
    }
}
template <int KIND, typename T> __global__ void opdi_cu_distances_kernel(const opdi_cu_distances<T> k) {
    __shared__ T xs[OPDI_CU_TILE][OPDI_CU_TILE + 1], ys[OPDI_CU_TILE][OPDI_CU_TILE + 1];
    const int64_t across = opdi_cu_ceil(k.m, OPDI_CU_TILE), down = opdi_cu_ceil(k.n, OPDI_CU_TILE);
    const int u = threadIdx.x % OPDI_CU_TILE, v = threadIdx.x / OPDI_CU_TILE;
    for (int64_t t = blockIdx.x; t < k.b * down * across; t += gridDim.x) {
        const int64_t b = t / across / down, i0 = t / across % down * OPDI_CU_TILE, j0 = t % across * OPDI_CU_TILE;
        const T *x = k.x + (b * k.n + i0 + v) * k.k, *y = k.y + (b * k.m + j0 + v) * k.k;
        T s = 0;
        for (int64_t c = 0; c < k.k; c += OPDI_CU_TILE) {
            xs[v][u] = i0 + v < k.n && c + u < k.k ? x[c + u] : (T)0;
            ys[v][u] = j0 + v < k.m && c + u < k.k ? y[c + u] : (T)0;
            __syncthreads();
            for (int q = 0; q < OPDI_CU_TILE; q++) { s = opdi_cu_distance_fold<KIND>(s, xs[v][q] - ys[u][q], k.p); }
            __syncthreads();
        }
        if (KIND == OPDI_CU_NORM_2) { s = (T)sqrt(s); }
        if (KIND == OPDI_CU_NORM_P) { s = (T)pow(s, 1 / k.p); }
        if (i0 + v < k.n && j0 + u < k.m && (!k.pairs || i0 + v < j0 + u)) { k.out[k.at(b, i0 + v, j0 + u)] = s; }
    }
}
/* Returns the part of the gradient of x that comes from one distance d between two rows.  v is the difference of the
   two elements:  g * sign(v) * |v|^(p-1) / d^(p-1), or 0 if the rows are equal. */
template <int KIND, typename T> __device__ __forceinline__ T opdi_cu_distance_back(T v, T g, T d, T p) {
    const T size = v < 0 ? -v : v, one = (T)((v > 0) - (v < 0));
    switch (KIND) {
        case OPDI_CU_NORM_0: return 0;
        case OPDI_CU_NORM_1: return g * one;
        case OPDI_CU_NORM_2: return d == 0 ? (T)0 : g / d * v;
        case OPDI_CU_NORM_P: return d == 0 || v == 0 ? (T)0 : g / (T)pow(d, p - 1) * one * (T)pow(size, p - 1);
        default: return d == 0 ? (T)0 : g * one * (T)(size == d);
    }
}
template <int KIND, typename T> __global__ void opdi_cu_distances_back_kernel(const opdi_cu_distances<T> k) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x, all = k.b * k.n * k.k;
    for (int64_t e = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; e < all; e += step) {
        const int64_t b = e / k.k / k.n, i = e / k.k % k.n, c = e % k.k;
        const T *y = k.y + b * k.m * k.k + c, x = k.x[e];
        T s = 0;
        for (int64_t j = 0; j < k.m; j++) {
            if (k.pairs && j == i) { continue; }
            const int64_t at = k.at(b, i, j);
            s += opdi_cu_distance_back<KIND>(x - y[j * k.k], k.g[at], k.d[at], k.p);
        }
        k.out[e] = s;
    }
}
template <int KIND, typename T> static int opdi_cu_distances_go(const opdi_cu_distances<T> &k, bool back) {
    const int64_t tiles = k.b * opdi_cu_ceil(k.n, OPDI_CU_TILE) * opdi_cu_ceil(k.m, OPDI_CU_TILE);
    if (back) {
        return opdi_cu_launch(opdi_cu_distances_back_kernel<KIND, T>, opdi_cu_grid(k.b * k.n * k.k, 256), dim3(256), 0,
                              k);
    }
    return opdi_cu_launch(opdi_cu_distances_kernel<KIND, T>, opdi_cu_grid_rows(tiles),
        dim3(OPDI_CU_TILE * OPDI_CU_TILE),
                          0, k);
}
template <typename T> static int opdi_cu_distances_of(opd_tensor *out, opd_tensor *x, opd_tensor *y, opd_tensor *g,
                                                     opd_tensor *d, double p) {
    const int64_t n = opd_size(x, -2), m = opd_size(y ? y : x, -2), k = opd_size(x, -1);
    const opdi_cu_distances<T> f = {
        g ? opd_numel(out) / n / k : !y ? 1 : opd_numel(out) / n / m, n, m, k, (T)p, !y, opdi_cu_data<T>(x),
        opdi_cu_data<T>(y ? y : x), g ? opdi_cu_data<T>(g) : NULL, g ? opdi_cu_data<T>(d) : NULL, opdi_cu_data<T>(out)};
    return p == 0 ? opdi_cu_distances_go<OPDI_CU_NORM_0>(f, g) : p == 1 ? opdi_cu_distances_go<OPDI_CU_NORM_1>(f, g)
        : p == 2 ? opdi_cu_distances_go<OPDI_CU_NORM_2>(f, g)
        : p > 1e300 ? opdi_cu_distances_go<OPDI_CU_NORM_MAX>(f, g) : opdi_cu_distances_go<OPDI_CU_NORM_P>(f, g);
}
/* Computes result 0 of the call: the distances of the rows of x and y or, if y is NULL, of the pairs of rows of x.  If
   g and d are given, computes the gradient with respect to x.  Returns 0, or -1 and sets an error. */
static int opdi_cu_distances_run(opd_call *call, opd_tensor *x, opd_tensor *y, opd_tensor *g, opd_tensor *d, double p) {
    opd_tensor *out = opdi_cu_result(call, 0), *staging;
    const opd_scalar_type t = opdi_cu_compute_dtype(opd_dtype(out));
    if (opd_numel(out) == 0) { return 0; }
    staging = opdi_cu_staging(out, t);
    x = staging ? opdi_cu_as(x, t) : NULL;
    if (!x || (y && !(y = opdi_cu_as(y, t)))) { return -1; }
    if (g && (!(g = opdi_cu_as(g, t)) || !(d = opdi_cu_as(d, t)))) { return -1; }
    return (t == OPD_FLOAT64 ? opdi_cu_distances_of<double>(staging, x, y, g, d, p)
            : opdi_cu_distances_of<float>(staging, x, y, g, d, p)) ? -1 : opdi_cu_staging_store(out, staging);
}
/* Returns t [.., a, b], expanded to the batch dims of out. */
static opd_tensor *opdi_cu_batched_as(opd_tensor *t, const opd_tensor *out) {
    int64_t sizes[OPD_MAX_DIMS];
    const int n = opd_ndim(out);
    memcpy(sizes, opd_sizes(out), (size_t)n * sizeof *sizes);
    sizes[n - 2] = opd_size(t, -2); sizes[n - 1] = opd_size(t, -1);
    return opd_expand(t, opd_ints_of(sizes, n));
}
/* Runs _cdist_forward(x1, x2, p, compute_mode).  If there are many rows and p is 2, uses a matrix product, as on the
   CPU. */
static int opdi_cu_cdist_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *y = opd_arg_tensor(call, 1), *out;
    const int64_t mode = opd_arg_is_none(call, 3) ? 0 : opd_arg_int(call, 3);
    const double p = opd_arg_double(call, 2);
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (opd_numel(out) == 0) { return 0; }
    if (opd_numel(x) == 0) { return opd_zero_(out) ? 0 : -1; }
    if (p == 2 && (mode == 1 || (mode == 0 && (opd_size(x, -2) > 25 || opd_size(y, -2) > 25)))) {
        opd_tensor *d = opd_euclidean_dist(x, y);
        return d && opd_copy_(out, d) ? 0 : -1;
    }
    x = opdi_cu_batched_as(x, out);
    y = opdi_cu_batched_as(y, out);
    return x && y ? opdi_cu_distances_run(call, x, y, NULL, NULL, p) : -1;
}
/* Runs _cdist_backward(grad, x1, x2, p, cdist). */
static int opdi_cu_cdist_backward_kernel(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *y = opd_arg_tensor(call, 2);
    opd_tensor *d = opd_arg_tensor(call, 4), *out;
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (opd_numel(out) == 0 || opd_numel(y) == 0) { return opd_zero_(out) ? 0 : -1; }
    x = opdi_cu_batched_as(x, out);
    y = opdi_cu_batched_as(y, out);
    g = opdi_cu_batched_as(g, out);
    d = opdi_cu_batched_as(d, out);
    return x && y && g && d ? opdi_cu_distances_run(call, x, y, g, d, opd_arg_double(call, 3)) : -1;
}
static int opdi_cu_pdist_kernel(opd_call *call) {
    return opd_results_from_fake(call) ? -1
        : opdi_cu_distances_run(call, opd_arg_tensor(call, 0), NULL, NULL, NULL, opd_arg_double(call, 1));
}
/* Runs _pdist_backward(grad, self, p, pdist). */
static int opdi_cu_pdist_backward_kernel(opd_call *call) {
    return opd_results_from_fake(call) ? -1
        : opdi_cu_distances_run(call, opd_arg_tensor(call, 1), NULL, opd_arg_tensor(call, 0), opd_arg_tensor(call, 3),
                                opd_arg_double(call, 2));
}
static const opdi_cu_registration opdi_cu_table_distances[] = {
    {"_cdist_forward", opdi_cu_cdist_kernel}, {"_cdist_backward", opdi_cu_cdist_backward_kernel},
    {"_pdist_forward", opdi_cu_pdist_kernel}, {"_pdist_backward", opdi_cu_pdist_backward_kernel},
    /* factorizations of matrices run on the CPU, with copies to the host and back */
    {"_linalg_check_errors", opd_cpu_fallback}, {"linalg_cholesky_ex", opd_cpu_fallback},
    {"cholesky_solve", opd_cpu_fallback}, {"cholesky_inverse", opd_cpu_fallback},
    {"linalg_solve_triangular", opd_cpu_fallback}, {"linalg_lu_factor_ex", opd_cpu_fallback},
    {"lu_unpack", opd_cpu_fallback}, {"linalg_lu_solve", opd_cpu_fallback}, {"_linalg_solve_ex", opd_cpu_fallback},
    {"linalg_inv_ex", opd_cpu_fallback}, {"_linalg_det", opd_cpu_fallback}, {"_linalg_slogdet", opd_cpu_fallback},
    {"geqrf", opd_cpu_fallback}, {"linalg_householder_product", opd_cpu_fallback}, {"ormqr", opd_cpu_fallback},
    {"linalg_qr", opd_cpu_fallback}, {"_linalg_eigh", opd_cpu_fallback}, {"_linalg_svd", opd_cpu_fallback},
    {"linalg_matrix_exp", opd_cpu_fallback}, {"linalg_lstsq", opd_cpu_fallback},
    {"linalg_ldl_factor_ex", opd_cpu_fallback}, {"linalg_ldl_solve", opd_cpu_fallback},
    {"linalg_eig", opd_cpu_fallback}, {"_linalg_eigvals", opd_cpu_fallback},
    /* special functions run on the CPU, too */
    {"lgamma", opd_cpu_fallback}, {"digamma", opd_cpu_fallback}, {"polygamma", opd_cpu_fallback},
    {"erfinv", opd_cpu_fallback}, {"special_ndtri", opd_cpu_fallback}, {"special_log_ndtr", opd_cpu_fallback},
    {"special_erfcx", opd_cpu_fallback}, {"special_entr", opd_cpu_fallback}, {"i0", opd_cpu_fallback},
    {"special_i0e", opd_cpu_fallback}, {"special_i1", opd_cpu_fallback}, {"special_i1e", opd_cpu_fallback},
    {"special_modified_bessel_i0", opd_cpu_fallback}, {"special_modified_bessel_i1", opd_cpu_fallback},
    {"special_modified_bessel_k0", opd_cpu_fallback}, {"special_modified_bessel_k1", opd_cpu_fallback},
    {"special_scaled_modified_bessel_k0", opd_cpu_fallback}, {"special_scaled_modified_bessel_k1", opd_cpu_fallback},
    {"special_bessel_j0", opd_cpu_fallback}, {"special_bessel_j1", opd_cpu_fallback},
    {"special_bessel_y0", opd_cpu_fallback}, {"special_bessel_y1", opd_cpu_fallback},
    {"special_spherical_bessel_j0", opd_cpu_fallback}, {"special_airy_ai", opd_cpu_fallback},
    {"igamma", opd_cpu_fallback}, {"igammac", opd_cpu_fallback}, {"special_zeta", opd_cpu_fallback},
    {"_standard_gamma_grad", opd_cpu_fallback},
    {"special_xlog1py", opd_cpu_fallback}, {"special_chebyshev_polynomial_t", opd_cpu_fallback},
    {"special_chebyshev_polynomial_t.x_scalar", opd_cpu_fallback},
    {"special_chebyshev_polynomial_t.n_scalar", opd_cpu_fallback}, {"special_chebyshev_polynomial_u", opd_cpu_fallback},
    {"special_chebyshev_polynomial_u.x_scalar", opd_cpu_fallback},
    {"special_chebyshev_polynomial_u.n_scalar", opd_cpu_fallback}, {"special_chebyshev_polynomial_v", opd_cpu_fallback},
    {"special_chebyshev_polynomial_v.x_scalar", opd_cpu_fallback},
    {"special_chebyshev_polynomial_v.n_scalar", opd_cpu_fallback}, {"special_chebyshev_polynomial_w", opd_cpu_fallback},
    {"special_chebyshev_polynomial_w.x_scalar", opd_cpu_fallback},
    {"special_chebyshev_polynomial_w.n_scalar", opd_cpu_fallback},
    {"special_shifted_chebyshev_polynomial_t", opd_cpu_fallback},
    {"special_shifted_chebyshev_polynomial_t.x_scalar", opd_cpu_fallback},
    {"special_shifted_chebyshev_polynomial_t.n_scalar", opd_cpu_fallback},
    {"special_shifted_chebyshev_polynomial_u", opd_cpu_fallback},
    {"special_shifted_chebyshev_polynomial_u.x_scalar", opd_cpu_fallback},
    {"special_shifted_chebyshev_polynomial_u.n_scalar", opd_cpu_fallback},
    {"special_shifted_chebyshev_polynomial_v", opd_cpu_fallback},
    {"special_shifted_chebyshev_polynomial_v.x_scalar", opd_cpu_fallback},
    {"special_shifted_chebyshev_polynomial_v.n_scalar", opd_cpu_fallback},
    {"special_shifted_chebyshev_polynomial_w", opd_cpu_fallback},
    {"special_shifted_chebyshev_polynomial_w.x_scalar", opd_cpu_fallback},
    {"special_shifted_chebyshev_polynomial_w.n_scalar", opd_cpu_fallback},
    {"special_hermite_polynomial_h", opd_cpu_fallback}, {"special_hermite_polynomial_h.x_scalar", opd_cpu_fallback},
    {"special_hermite_polynomial_h.n_scalar", opd_cpu_fallback}, {"special_hermite_polynomial_he", opd_cpu_fallback},
    {"special_hermite_polynomial_he.x_scalar", opd_cpu_fallback},
    {"special_hermite_polynomial_he.n_scalar", opd_cpu_fallback}, {"special_laguerre_polynomial_l", opd_cpu_fallback},
    {"special_laguerre_polynomial_l.x_scalar", opd_cpu_fallback},
    {"special_laguerre_polynomial_l.n_scalar", opd_cpu_fallback}, {"special_legendre_polynomial_p", opd_cpu_fallback},
    {"special_legendre_polynomial_p.x_scalar", opd_cpu_fallback},
    {"special_legendre_polynomial_p.n_scalar", opd_cpu_fallback},
    {NULL, NULL}};

//== ctc_loss ==========================================================================================================
//
//  As on the CPU, a target of S labels is extended to a row of 2 S + 1 elements, with a blank before, between and after
//  its labels.  A block processes one item of the batch, time by time; its threads compute the elements of the row.
//  The gradients of elements with the same label are added by atomic additions.

template <typename A> struct opdi_cu_ctc {
    int64_t times, count, classes, blank, width;  /* sizes T, N, C; width: 2 * longest target + 1 */
    const A *probs;                               /* [T, N, C] */
    const int64_t *targets;
    const int64_t *lists;                         /* [3][N]: for each item, number of times, number of labels, and where
                                                     its target begins */
    A *loss, *alpha;                              /* loss [N], alpha [N, T, width] */
    const A *grad;                                /* backward: [N] */
    A *beta, *sums;                               /* backward: beta [N, 2, width]; sums [T, N, C], zeros at first */
    bool zero;                                    /* targets that no path spells have the gradient 0 */
    opdi_cu_guard guard;
    __device__ __forceinline__ int64_t inputs(int64_t item) const { return lists[item]; }
    __device__ __forceinline__ int64_t last(int64_t item) const { return 2 * lists[count + item]; }
    __device__ __forceinline__ int64_t label(int64_t item, int64_t place) const {
        if ((place & 1) == 0) { return blank; }
        const int64_t of = targets[lists[2 * count + item] + place / 2];
        return (uint64_t)of < (uint64_t)classes ? of : blank;
    }
    __device__ __forceinline__ A prob(int64_t time, int64_t item, int64_t of) const {
        return probs[(time * count + item) * classes + of];
    }
};
/* Returns log(e^x + e^y), or NaN if x or y is NaN. */
template <typename A> __device__ __forceinline__ A opdi_cu_ctc_add(A x, A y) {
    const A most = x > y || x != x ? x : y;
    return most == -INFINITY ? most : most + log(exp(x - most) + exp(y - most));
}
template <typename A> __global__ void __launch_bounds__(256) opdi_cu_ctc_forward(const opdi_cu_ctc<A> c) {
    for (int64_t item = blockIdx.x; item < c.count; item += gridDim.x) {
        const int64_t times = c.inputs(item), last = c.last(item);
        A *alpha = c.alpha + item * c.times * c.width;
        for (int64_t k = threadIdx.x; k < last / 2; k += blockDim.x) {
            (void)c.guard.inside(c.targets[c.lists[2 * c.count + item] + k], c.classes);
        }
        for (int64_t time = 0; time < c.times; time++) {
            A *now = alpha + time * c.width;
            const A *before = now - c.width;
            for (int64_t place = threadIdx.x; place < c.width; place += blockDim.x) {
                A sum = -INFINITY;
                if (place <= last && time < times) {
                    const int64_t label = c.label(item, place);
                    if (time == 0) { sum = place <= 1 ? A(0) : A(-INFINITY); }
                    else {
                        sum = before[place];
                        if (place > 0) { sum = opdi_cu_ctc_add(sum, before[place - 1]); }
                        if (place > 1 && c.label(item, place - 2) != label) {
                            sum = opdi_cu_ctc_add(sum, before[place - 2]);
                        }
                    }
                    sum += c.prob(time, item, label);
                }
                now[place] = sum;
            }
            __syncthreads();
        }
        if (threadIdx.x == 0) {
            const A *end = alpha + (times - 1) * c.width;
            c.loss[item] = times == 0 ? last ? A(INFINITY) : A(0)
                : last ? -opdi_cu_ctc_add(end[last], end[last - 1]) : -end[0];
        }
    }
}
/* Adds to sums, for each time and label, the share of the paths with this label, of those that spell the target. */
template <typename A> __global__ void __launch_bounds__(256, 2) opdi_cu_ctc_backward(const opdi_cu_ctc<A> c) {
    for (int64_t item = blockIdx.x; item < c.count; item += gridDim.x) {
        const int64_t last = c.last(item);
        const A cost = c.loss[item];
        if (cost == INFINITY) { continue; }       /* no path spells the target */
        for (int64_t time = c.inputs(item) - 1; time >= 0; time--) {
            const A *alpha = c.alpha + (item * c.times + time) * c.width;
            A *now = c.beta + (2 * item + (time & 1)) * c.width;
            const A *next = c.beta + (2 * item + ((time & 1) ^ 1)) * c.width;
            for (int64_t place = threadIdx.x; place <= last; place += blockDim.x) {
                const int64_t label = c.label(item, place);
                const A prob = c.prob(time, item, label);
                A sum = place >= last - 1 ? A(0) : A(-INFINITY);
                if (time < c.inputs(item) - 1) {
                    sum = next[place];
                    if (place < last) { sum = opdi_cu_ctc_add(sum, next[place + 1]); }
                    if (place < last - 1 && c.label(item, place + 2) != label) {
                        sum = opdi_cu_ctc_add(sum, next[place + 2]);
                    }
                }
                now[place] = sum + prob;
                const A both = alpha[place] + now[place];
                A *const to = c.sums + (time * c.count + item) * c.classes + label;
                if (both != -INFINITY) { opdi_cu_atomic_add(to, exp(both + cost - prob)); }
            }
            __syncthreads();
        }
    }
}
/* Replaces sums by grad * (e^log_probs - sums); by 0 from the input length of each item on; for targets that no path
   spells, by 0 or NaN; by NaN for labels whose probability is 0, as on the CPU. */
template <typename A> struct opdi_cu_ctc_slope {
    opdi_cu_ctc<A> c;
    __device__ void operator()(int64_t i) const {
        int64_t label, item;
        const int64_t time = opdi_cu_divide(opdi_cu_divide(i, c.classes, &label), c.count, &item);
        const bool lost = c.loss[item] == INFINITY;
        c.sums[i] = time >= c.inputs(item) || (lost && c.zero) ? A(0) : lost ? A(NAN)
            : c.probs[i] == -INFINITY || c.loss[item] != c.loss[item] ? A(NAN)
            : (exp(c.probs[i]) - c.sums[i]) * c.grad[item];
    }
};
/* Reads the arguments from number `from` on into *c: log_probs, targets, and the two lists of lengths.  Returns false
   if the CPU kernel should run, which reports what is wrong. */
template <typename A> static bool opdi_cu_ctc_read(opd_call *call, int from, int64_t blank, opdi_cu_ctc<A> *c) {
    opd_tensor *probs = opd_arg_tensor(call, from), *targets = opd_arg_tensor(call, from + 1);
    const opd_ints inputs = opd_arg_ints(call, from + 2), labels = opd_arg_ints(call, from + 3);
    int64_t most = 0, sum = 0;
    if (opd_ndim(probs) != 3 || (opd_dtype(targets) != OPD_INT64 && opd_dtype(targets) != OPD_INT32)) { return false; }
    c->times = opd_size(probs, 0); c->count = opd_size(probs, 1); c->classes = opd_size(probs, 2); c->blank = blank;
    const int nd = opd_ndim(targets);
    if (inputs.n != c->count || labels.n != c->count || c->count == 0 || nd < 1 || nd > 2 || blank < 0 ||
        blank >= c->classes || (nd == 2 && opd_size(targets, 0) != c->count)) { return false; }
    const int64_t room = 3 * c->count;
    opd_tensor *lists = opd_tensor_new(opd_ints_of(&room, 1), OPD_INT64);
    int64_t *to = lists ? opd_data_i64(lists) : NULL;
    for (int64_t i = 0; to && i < c->count; i++) {
        const int64_t length = labels.data[i], available = nd == 2 ? opd_size(targets, 1) : opd_numel(targets) - sum;
        if (inputs.data[i] < 0 || inputs.data[i] > c->times || length < 0 || length > available) { return false; }
        to[i] = inputs.data[i];
        to[c->count + i] = length;
        to[2 * c->count + i] = nd == 2 ? i * opd_size(targets, 1) : sum;
        sum += length;
        most = length > most ? length : most;
    }
    if (nd == 1 && sum != opd_numel(targets)) { return false; }
    c->width = 2 * most + 1;
    probs = opdi_cu_as(probs, opd_dtype(probs));
    targets = opdi_cu_as(targets, OPD_INT64);
    lists = lists ? opd_to_device(lists, opd_tensor_device(probs), OPD_INT64) : NULL;
    if (!probs || !targets || !lists) { return false; }
    c->probs = opdi_cu_data<A>(probs); c->targets = opdi_cu_data<int64_t>(targets);
    c->lists = opdi_cu_data<int64_t>(lists);
    c->guard = opdi_cu_guard_of(call);
    return opd_ok();
}
template <typename A> static int opdi_cu_ctc_run(opd_call *call) {
    opdi_cu_ctc<A> c;
    opd_tensor *loss, *alpha;
    if (!opdi_cu_ctc_read(call, 0, opd_arg_int(call, 4), &c)) { return opd_ok() ? opd_cpu_fallback(call) : -1; }
    const int64_t sizes[3] = {c.count, c.times, c.width};
    const opd_scalar_type t = opd_dtype(opd_arg_tensor(call, 0));
    loss = opdi_cu_new(opd_ints_of(sizes, 1), t);
    alpha = opdi_cu_new(opd_ints_of(sizes, 3), t);
    if (!loss || !alpha) { return -1; }
    c.loss = opdi_cu_data<A>(loss); c.alpha = opdi_cu_data<A>(alpha);
    c.grad = NULL; c.beta = c.sums = NULL; c.zero = false;
    if (opdi_cu_launch(opdi_cu_ctc_forward<A>, opdi_cu_grid_rows(c.count), dim3(256), 0, c)) { return -1; }
    return opd_return_tensor(call, loss) || opd_return_tensor(call, alpha) ? -1 : 0;
}
template <typename A> static int opdi_cu_ctc_run_back(opd_call *call) {
    opdi_cu_ctc<A> c;
    opd_tensor *grad = opd_arg_tensor(call, 0), *loss = opd_arg_tensor(call, 5), *alpha = opd_arg_tensor(call, 6);
    const opd_scalar_type t = opd_dtype(opd_arg_tensor(call, 1));
    if (!opdi_cu_ctc_read(call, 1, opd_arg_int(call, 7), &c)) { return opd_ok() ? opd_cpu_fallback(call) : -1; }
    if (opd_numel(grad) != c.count || opd_numel(loss) != c.count || opd_numel(alpha) != c.count * c.times * c.width) {
        return opd_cpu_fallback(call);
    }
    opd_tensor *out = opd_zeros_like(opd_contiguous(opd_arg_tensor(call, 1)));
    grad = opdi_cu_as(grad, t); loss = opdi_cu_as(loss, t); alpha = opdi_cu_as(alpha, t);
    c.beta = (A *)opdi_cu_scratch(c.count * 2 * c.width * (int64_t)sizeof(A));
    if (!out || !grad || !loss || !alpha || !c.beta) { return -1; }
    c.grad = opdi_cu_data<A>(grad); c.loss = opdi_cu_data<A>(loss); c.alpha = opdi_cu_data<A>(alpha);
    c.sums = opdi_cu_data<A>(out); c.zero = opd_arg_bool(call, 8);
    const opdi_cu_ctc_slope<A> f = {c};
    if (opdi_cu_launch(opdi_cu_ctc_backward<A>, opdi_cu_grid_rows(c.count), dim3(256), 0, c) ||
        opdi_cu_each(opd_numel(out), f)) { return -1; }
    return opd_return_tensor(call, out);
}
static int opdi_cu_ctc_loss(opd_call *call) {
    const opd_scalar_type t = opd_dtype(opd_arg_tensor(call, 0));
    return t == OPD_FLOAT32 ? opdi_cu_ctc_run<float>(call) : t == OPD_FLOAT64 ? opdi_cu_ctc_run<double>(call)
        : opd_cpu_fallback(call);
}
static int opdi_cu_ctc_loss_backward(opd_call *call) {
    const opd_scalar_type t = opd_dtype(opd_arg_tensor(call, 1));
    if (opd_deterministic_alert(call, NULL)) { return -1; }
    return t == OPD_FLOAT32 ? opdi_cu_ctc_run_back<float>(call) : t == OPD_FLOAT64 ? opdi_cu_ctc_run_back<double>(call)
        : opd_cpu_fallback(call);
}

//== frexp, embedding_renorm, normal with tensors ======================================================================

template <typename T> struct opdi_cu_frexp {
    const T *x;
    T *mantissa;
    int32_t *exponent;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        const A v = opdi_cu_load<A>(x + i);
        int power = 0;
        opdi_cu_store(mantissa + i, v - v == 0 ? (A)frexp(v, &power) : v);
        exponent[i] = power;
    }
};
static int opdi_cu_frexp_kernel(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *out[2], *staging[2];
    if (opd_results_from_fake(call)) { return -1; }
    for (int i = 0; i < 2; i++) {
        out[i] = opdi_cu_result(call, i);
        if (!(staging[i] = opdi_cu_staging(out[i]))) { return -1; }
    }
    if (!(x = opdi_cu_as(x, opd_dtype(x)))) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(x), T, {
        const opdi_cu_frexp<T> f = {opdi_cu_data<T>(x), opdi_cu_data<T>(staging[0]), opdi_cu_data<int32_t>(staging[1])};
        if (opdi_cu_each(opd_numel(x), f)) { return -1; }
    })
    return opdi_cu_staging_store(out[0], staging[0]) || opdi_cu_staging_store(out[1], staging[1]) ? -1 : 0;
}
/* Runs embedding_renorm: reads the listed rows, scales down those whose norm is above max_norm, and writes them back.
   A row that is listed twice is written twice, with the same values. */
static int opdi_cu_embedding_renorm(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 1), *out, *rows;
    const opd_scalar_type t = opd_dtype(self);
    const int64_t dim = 1, minus = -1;
    const double most = opd_arg_double(call, 2);
    if (!opd_dtype_is_floating(t) || opd_ndim(self) != 2 ||
        (opd_dtype(index) != OPD_INT64 && opd_dtype(index) != OPD_INT32)) { return opd_cpu_fallback(call); }
    if (!(out = opd_result_update(call))) { return -1; }
    if (opd_numel(index) == 0 || opd_numel(self) == 0) { return 0; }
    index = opd_reshape(opdi_cu_as(index, OPD_INT64), opd_ints_of(&minus, 1));
    rows = index ? opd_to_dtype(opd_index_select(out, 0, index), opdi_cu_compute_dtype(t)) : NULL;
    opd_tensor *norm = rows ? opd_linalg_vector_norm_full(rows, opd_value_double(opd_arg_double(call, 3)),
                                                          opd_value_ints(&dim, 1), true, opd_value_none()) : NULL;
    opd_tensor *factor = opd_mul_Scalar(opd_reciprocal(opd_add_Scalar(norm, opd_value_double(1e-7))),
                                        opd_value_double(most));
    factor = opd_masked_fill_Scalar(factor, opd_le_Scalar(norm, opd_value_double(most)), opd_value_int(1));
    rows = opd_to_dtype(opd_mul(rows, factor), t);
    return rows && opd_index_copy_(out, 0, index, rows) ? 0 : -1;
}
struct opdi_cu_not_negative {
    const double *x;
    opdi_cu_guard guard;
    __device__ void operator()(int64_t i) const { if (!(x[i] >= 0)) { guard.note(i, i); } }
};
/* Runs normal with a tensor of means, of deviations, or both: normal numbers, as on the CPU, times std plus mean. */
static int opdi_cu_normal_tensors(opd_call *call) {
    const opd_value v[2] = {opd_arg_value(call, 0), opd_arg_value(call, 1)}, g = opd_arg_value(call, 2);
    opd_tensor *of[2] = {NULL, NULL}, *seen[2], *numbers, *std;
    int many = 0;
    for (int i = 0; i < 2; i++) {
        if (v[i].tag != OPD_TAG_TENSOR) { continue; }
        seen[many++] = of[i] = v[i].u.t;
        if (!opd_dtype_is_floating(opd_dtype(of[i])) || opd_tensor_device(of[i]).type != OPD_CUDA) {
            return opd_op_card(opd_call_operator(call))->any(call);
        }
    }
    if (!of[1] && !(v[1].u.d >= 0)) { return opd_op_card(opd_call_operator(call))->any(call); }
    const opd_tensors wide = opd_broadcast_tensors(opd_tensors_of(seen, many));
    if (wide.n != many) { return -1; }
    const opd_scalar_type t = opd_dtype(of[0] ? of[0] : of[1]);
    numbers = opdi_cu_new(opd_ints_of(opd_sizes(wide.data[0]), opd_ndim(wide.data[0])),
                          t == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32);
    numbers = numbers ? opd_normal_full_(numbers, 0, 1, g.tag == OPD_TAG_OBJECT ? (opd_generator *)g.u.object : NULL)
        : NULL;
    if (of[1] && (std = opdi_cu_as(of[1], OPD_FLOAT64))) {
        const opdi_cu_not_negative f = {opdi_cu_data<double>(std),
                                        opdi_cu_guard_of(call, "normal expects all elements of std >= 0.0")};
        if (opdi_cu_each(opd_numel(std), f)) { return -1; }
    }
    numbers = of[1] ? opd_mul(numbers, of[1]) : opd_mul_Scalar(numbers, v[1]);
    numbers = of[0] ? opd_add(numbers, of[0]) : opd_add_Scalar(numbers, v[0]);
    return opd_return_tensor(call, opd_to_dtype(numbers, t));
}
static const opdi_cu_registration opdi_cu_table_ctc[] = {
    {"_ctc_loss", opdi_cu_ctc_loss}, {"_ctc_loss_backward", opdi_cu_ctc_loss_backward},
    {"frexp.Tensor", opdi_cu_frexp_kernel}, {"embedding_renorm", opdi_cu_embedding_renorm},
    {"normal.Tensor_float", opdi_cu_normal_tensors}, {"normal.float_Tensor", opdi_cu_normal_tensors},
    {"normal.Tensor_Tensor", opdi_cu_normal_tensors},
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:matmul      matrix products
//
//  cuBLAS computes products of floating-point matrices, a simple kernel those of integers.  Each product has the form
//  out[n] = alpha * a[n] * b[n] + beta * out[n], with a [n, m, k], b [n, k, p] and contiguous out [n, m, p].  A vector
//  counts as a row or a column.  For products on one stream, cuBLAS gives the same bits each time.  If a thread
//  computes on several streams at once, the last bits may differ.
//----------------------------------------------------------------------------------------------------------------------

static int opdi_cu_blas_failed(cublasStatus_t s, const char *what) {
    (void)cudaGetLastError();
    return opd_fail(s == CUBLAS_STATUS_ALLOC_FAILED ? OPD_ERROR_MEMORY : OPD_ERROR_KERNEL, "cuBLAS error: %s in %s",
                    cublasGetStatusString(s), what);
}
/* The cuBLAS handles of a thread, one per device.  When the thread ends, other threads may take its handles.  They are
   not destroyed, because that waits for the device, which would break a capture. */
static std::mutex opdi_cu_handles_lock;
static std::vector<cublasHandle_t> *opdi_cu_idle_handles;     /* [OPDI_CU_MAX_DEVICES]; never destroyed */
struct opdi_cu_handles {
    cublasHandle_t at[OPDI_CU_MAX_DEVICES];
    ~opdi_cu_handles() {
        std::lock_guard<std::mutex> guard(opdi_cu_handles_lock);
        for (int i = 0; i < OPDI_CU_MAX_DEVICES; i++) { if (at[i]) { opdi_cu_idle_handles[i].push_back(at[i]); } }
    }
};
static thread_local opdi_cu_handles opdi_cu_blas_handles;
/* If this thread has no handle for the current device, takes an idle handle or makes a new one.  Returns false and sets
   *s if it fails. */
static bool opdi_cu_blas_take(cublasStatus_t *s) {
    const int index = opdi_cu_current();
    cublasHandle_t *h = &opdi_cu_blas_handles.at[index];
    *s = CUBLAS_STATUS_SUCCESS;
    if (*h) { return true; }
    {
        std::lock_guard<std::mutex> guard(opdi_cu_handles_lock);
        std::vector<cublasHandle_t> &idle = opdi_cu_idle_handles[index];
        if (!idle.empty()) { *h = idle.back(); idle.pop_back(); }
    }
    if (!*h && (*s = cublasCreate(h)) != CUBLAS_STATUS_SUCCESS) { (void)cudaGetLastError(); *h = NULL; }
    return *h != NULL;
}
/* Returns the current device's handle, set to the current stream, or NULL and sets an error. */
static cublasHandle_t opdi_cu_blas() {
    cublasHandle_t h = NULL;
    cublasStatus_t s;
    if (opdi_cu_blas_take(&s)) {
        h = opdi_cu_blas_handles.at[opdi_cu_current()];
        s = cublasSetStream(h, opdi_cu_stream());
    }
    if (s == CUBLAS_STATUS_SUCCESS) { return h; }
    (void)opdi_cu_blas_failed(s, "cublasCreate");
    return NULL;
}

/* A batch of matrices [n, rows, cols]; the strides are in elements. */
struct opdi_cu_matrix { const void *data; int64_t batch, row, col; };
/* A batch of n products: out [m, p] = a [m, k] * b [k, p].  The matrices of `out` are contiguous, and out_batch
   elements apart. */
struct opdi_cu_product { int64_t n, m, k, p; opdi_cu_matrix a, b; void *out; int64_t out_batch; };

/* Returns whether cuBLAS can read a matrix without a copy.  Sets *ld to its leading dimension, and *turned to whether
   it is column-major. */
static bool opdi_cu_leading(const opdi_cu_matrix *x, int64_t rows, int64_t cols, int64_t *ld, bool *turned) {
    const int64_t row = rows == 1 ? cols : x->row, col = cols == 1 ? (rows == 1 || row != 1 ? 1 : rows) : x->col;
    *turned = col != 1;
    *ld = *turned ? col : row;
    return *ld <= INT32_MAX && *ld >= (*turned ? rows : cols) && *ld >= 1 && (*turned ? row == 1 : true);
}
static bool opdi_cu_cuda_type(opd_scalar_type t, cudaDataType *type) {
    switch (t) {
        case OPD_FLOAT32: *type = CUDA_R_32F; return true;
        case OPD_FLOAT64: *type = CUDA_R_64F; return true;
        case OPD_FLOAT16: *type = CUDA_R_16F; return true;
        case OPD_BFLOAT16: *type = CUDA_R_16BF; return true;
        default: return false;
    }
}

/* Computes out = alpha * a * b + beta * out.  cuBLAS assumes column-major matrices, so it is asked for out^T = b^T *
   a^T.  out_dtype may be float32 if the factors are 16-bit floats.  out_row: elements from one row of out to the next,
   0 for q->p.  Returns 0, or -1 and sets an error. */
static int opdi_cu_gemm(const opdi_cu_product *q, opd_scalar_type dtype, opd_scalar_type out_dtype, double alpha,
    double beta, int64_t out_row = 0) {
    const float alpha32 = (float)alpha, beta32 = (float)beta;
    const bool wide = dtype == OPD_FLOAT64;
    int64_t lda = 0, ldb = 0;
    bool ta = false, tb = false;
    cudaDataType type = CUDA_R_32F, out_type = CUDA_R_32F;
    cublasHandle_t h = opdi_cu_blas();
    cublasStatus_t s;
    if (!h || !opdi_cu_cuda_type(dtype, &type) || !opdi_cu_cuda_type(out_dtype, &out_type)) { return -1; }
    (void)opdi_cu_leading(&q->a, q->m, q->k, &lda, &ta);
    (void)opdi_cu_leading(&q->b, q->k, q->p, &ldb, &tb);
    s = cublasGemmStridedBatchedEx(h, tb ? CUBLAS_OP_T : CUBLAS_OP_N, ta ? CUBLAS_OP_T : CUBLAS_OP_N, (int)q->p,
        (int)q->m, (int)q->k, wide ? (const void *)&alpha : &alpha32, q->b.data, type, (int)ldb, q->b.batch, q->a.data,
        type, (int)lda,
        q->a.batch, wide ? (const void *)&beta : &beta32, q->out, out_type, (int)(out_row ? out_row : q->p),
        q->out_batch, (int)q->n,
        wide ? CUBLAS_COMPUTE_64F : dtype == OPD_FLOAT32 && opd_float32_matmul_precision() == OPD_MATMUL_HIGH
            ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT);
    if (s != CUBLAS_STATUS_SUCCESS) { return opdi_cu_blas_failed(s, "cublasGemmStridedBatchedEx"); }
    OPDI_CU_TRY(opdi_cu_debug_wait(opdi_cu_stream()), "cublasGemmStridedBatchedEx");
    return opdi_cu_debug ? opdi_cu_faults() : 0;
}
/* What cublasLt needs to choose an algorithm for a product, and the algorithm. */
struct opdi_cu_biased {
    int64_t m, k, p, lda, ldb;
    int32_t ta, tb, types[3], compute, epilogue, bias, scaled, fast, device;
    int32_t aligned[3];                           /* the addresses of a, b and out */
    bool operator<(const opdi_cu_biased &o) const { return memcmp(this, &o, sizeof *this) < 0; }
};
struct opdi_cu_algorithm { bool there; cublasLtMatmulAlgo_t algorithm; size_t scratch; };
static std::mutex opdi_cu_algorithms_lock;
static std::map<opdi_cu_biased, opdi_cu_algorithm> *opdi_cu_algorithms;    /* never destroyed */

static int32_t opdi_cu_alignment(const void *p) {
    int32_t n = 256;
    while ((uintptr_t)p % (uintptr_t)n) { n /= 2; }
    return n;
}
/* Returns the algorithm for a product: the one that cublasLt thought best when it was asked first. */
static opdi_cu_algorithm opdi_cu_algorithm_of(const opdi_cu_biased *key, cublasLtHandle_t h, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t *layouts /*[3]*/) {
    static const cublasLtMatmulPreferenceAttributes_t attributes[4] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const size_t most = (size_t)32 << 20;
    cublasLtMatmulPreferenceOpaque_t preference;
    cublasLtMatmulHeuristicResult_t found;
    opdi_cu_algorithm a = opdi_cu_algorithm();
    int n = 0;
    std::lock_guard<std::mutex> guard(opdi_cu_algorithms_lock);
    if (!opdi_cu_algorithms) { opdi_cu_algorithms = new std::map<opdi_cu_biased, opdi_cu_algorithm>(); }
    auto i = opdi_cu_algorithms->find(*key);
    if (i != opdi_cu_algorithms->end()) { return i->second; }
    bool good = cublasLtMatmulPreferenceInit(&preference) == CUBLAS_STATUS_SUCCESS &&
        cublasLtMatmulPreferenceSetAttribute(&preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                             sizeof most) == CUBLAS_STATUS_SUCCESS;
    for (int k = 0; k < 4; k++) {
        const uint32_t bytes = (uint32_t)key->aligned[k < 2 ? k : 2];
        good = good && cublasLtMatmulPreferenceSetAttribute(&preference, attributes[k], &bytes, sizeof bytes) ==
            CUBLAS_STATUS_SUCCESS;
    }
    a.there = good && cublasLtMatmulAlgoGetHeuristic(h, desc, layouts[0], layouts[1], layouts[2], layouts[2],
                                                     &preference, 1, &found, &n) == CUBLAS_STATUS_SUCCESS && n > 0;
    if (a.there) { a.algorithm = found.algo; a.scratch = found.workspaceSize; }
    (*opdi_cu_algorithms)[*key] = a;
    return a;
}
/* A product for cublasLt: out [m, p] = what the epilogue makes of alpha * a * b, with a bias [p] or NULL.  Factors of
   float8 have scales: one number for each, or if `rows` is true, one for each row of a and each column of b. */
struct opdi_cu_lt {
    const opdi_cu_product *q;
    cudaDataType types[3], bias_type;             /* of a, b and out */
    cublasComputeType_t compute;
    cublasLtEpilogue_t epilogue;
    double alpha;
    const void *bias;
    const float *scales[2];                       /* of a and b, or NULL */
    bool rows, fast;                              /* fast: sums of float8 with fewer bits */
};
template <typename V>
static bool opdi_cu_lt_set(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t a, const V &value) {
    return cublasLtMatmulDescSetAttribute(d, a, &value, sizeof value) == CUBLAS_STATUS_SUCCESS;
}
/* Sets what a product has besides its factors.  Returns false if cublasLt does not know this. */
static bool opdi_cu_lt_describe(const opdi_cu_lt &p, cublasLtMatmulDesc_t d) {
    bool good = opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_EPILOGUE, p.epilogue);
    if (p.bias) {
        good = good && opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias) &&
            opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, p.bias_type);
    }
    if (p.fast) { good = good && opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_FAST_ACCUM, (int8_t)1); }
    if (p.scales[0]) {                            /* cublasLt's first factor is our second: see opdi_cu_gemm */
        good = good && opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, (const void *)p.scales[1]) &&
            opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, (const void *)p.scales[0]);
    }
    if (p.rows) {
#if defined(OPD_CUDA_EMULATED) || (defined(CUBLAS_VERSION) && CUBLAS_VERSION >= 120900)
        const cublasLtMatmulMatrixScale_t each = CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
        good = good && opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, each) &&
            opdi_cu_lt_set(d, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, each);
#else
        good = false;
#endif
    }
    return good;
}
/* Computes a product by cublasLt.  Returns 1, or 0 if cublasLt cannot do this, or -1 and sets an error. */
static int opdi_cu_lt_run(const opdi_cu_lt &p) {
    const opdi_cu_product *const q = p.q;
    const float alpha = (float)p.alpha, zero = 0;
    cublasOperation_t ta, tb;
    bool turned[2] = {false, false};
    opdi_cu_biased key;
    cublasLtMatmulDescOpaque_t desc;
    cublasLtMatrixLayoutOpaque_t layouts[3];
    cublasLtMatrixLayout_t l[3] = {&layouts[0], &layouts[1], &layouts[2]};
    void *scratch = NULL;
    memset(&key, 0, sizeof key);
    (void)opdi_cu_leading(&q->a, q->m, q->k, &key.lda, &turned[0]);
    (void)opdi_cu_leading(&q->b, q->k, q->p, &key.ldb, &turned[1]);
    ta = turned[0] ? CUBLAS_OP_T : CUBLAS_OP_N; tb = turned[1] ? CUBLAS_OP_T : CUBLAS_OP_N;
    key.m = q->m; key.k = q->k; key.p = q->p; key.ta = ta; key.tb = tb; key.compute = p.compute;
    for (int i = 0; i < 3; i++) { key.types[i] = p.types[i]; }
    key.epilogue = p.epilogue; key.bias = p.bias ? (int32_t)p.bias_type + 1 : 0;
    key.scaled = (p.scales[0] != NULL) + p.rows; key.fast = p.fast; key.device = opdi_cu_current();
    key.aligned[0] = opdi_cu_alignment(q->a.data); key.aligned[1] = opdi_cu_alignment(q->b.data);
    key.aligned[2] = opdi_cu_alignment(q->out);
    const cublasLtHandle_t h = (cublasLtHandle_t)opdi_cu_blas();            /* a handle of cuBLAS is one of cublasLt */
    if (!h) { return -1; }
    if (cublasLtMatmulDescInit(&desc, p.compute, CUDA_R_32F) != CUBLAS_STATUS_SUCCESS ||
        !opdi_cu_lt_set(&desc, CUBLASLT_MATMUL_DESC_TRANSA, tb) ||
        !opdi_cu_lt_set(&desc, CUBLASLT_MATMUL_DESC_TRANSB, ta) || !opdi_cu_lt_describe(p, &desc) ||
        cublasLtMatrixLayoutInit(&layouts[0], p.types[1], (uint64_t)(turned[1] ? q->k : q->p),
                                 (uint64_t)(turned[1] ? q->p : q->k), key.ldb) != CUBLAS_STATUS_SUCCESS ||
        cublasLtMatrixLayoutInit(&layouts[1], p.types[0], (uint64_t)(turned[0] ? q->m : q->k),
                                 (uint64_t)(turned[0] ? q->k : q->m), key.lda) != CUBLAS_STATUS_SUCCESS ||
        cublasLtMatrixLayoutInit(&layouts[2], p.types[2], (uint64_t)q->p, (uint64_t)q->m, q->p) !=
        CUBLAS_STATUS_SUCCESS) {
        return 0;
    }
    const opdi_cu_algorithm a = opdi_cu_algorithm_of(&key, h, &desc, l);
    if (!a.there) { (void)cudaGetLastError(); return 0; }
    if (a.scratch > 0 && !(scratch = opdi_cu_scratch((int64_t)a.scratch))) { return -1; }
    const cublasStatus_t s = cublasLtMatmul(h, &desc, &alpha, q->b.data, l[0], q->a.data, l[1], &zero, q->out, l[2],
                                            q->out, l[2], &a.algorithm, scratch, a.scratch, opdi_cu_stream());
    if (s == CUBLAS_STATUS_NOT_SUPPORTED || s == CUBLAS_STATUS_INVALID_VALUE) { (void)cudaGetLastError(); return 0; }
    if (s != CUBLAS_STATUS_SUCCESS) { return opdi_cu_blas_failed(s, "cublasLtMatmul"); }
    OPDI_CU_TRY(opdi_cu_debug_wait(opdi_cu_stream()), "cublasLtMatmul");
    return opdi_cu_debug && opdi_cu_faults() ? -1 : 1;
}
/* Computes out [m, p] = what `epilogue` makes of alpha * a * b + bias [p] by cublasLt, which does this before it stores
   the product.  Returns 1, or 0 if cublasLt cannot do this, or -1 and sets an error. */
static int opdi_cu_gemm_biased(const opdi_cu_product *q, opd_scalar_type dtype, double alpha, const void *bias,
                               cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS) {
    opdi_cu_lt p = opdi_cu_lt();
    cudaDataType type = CUDA_R_32F;
    if (q->n != 1 || q->m < 2 || dtype == OPD_FLOAT64 || !opdi_cu_aligned(bias) || !opdi_cu_cuda_type(dtype, &type)) {
        return 0;
    }
    p.q = q; p.types[0] = p.types[1] = p.types[2] = p.bias_type = type;
    p.compute = dtype == OPD_FLOAT32 && opd_float32_matmul_precision() == OPD_MATMUL_HIGH
        ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    p.epilogue = epilogue; p.alpha = alpha; p.bias = bias;
    return opdi_cu_lt_run(p);
}
/* Computes the product with one thread per element of the result. */
template <typename T> __global__ void opdi_cu_product_kernel(opdi_cu_product q, opdi_cu_acc<T> alpha,
    opdi_cu_acc<T> beta) {
    typedef opdi_cu_acc<T> A;
    const int64_t all = q.n * q.m * q.p, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t j = i % q.p, r = i / q.p % q.m, n = i / q.p / q.m;
        const T *a = static_cast<const T *>(q.a.data) + n * q.a.batch + r * q.a.row;
        const T *b = static_cast<const T *>(q.b.data) + n * q.b.batch + j * q.b.col;
        T *out = static_cast<T *>(q.out) + n * q.out_batch + r * q.p + j;
        A sum = 0;
        for (int64_t l = 0; l < q.k; l++) {
            sum += opdi_cu_load<A>(a + l * q.a.col) * opdi_cu_load<A>(b + l * q.b.row);
        }
        opdi_cu_store(out, beta == A(0) ? alpha * sum : alpha * sum + beta * opdi_cu_load<A>(out));
    }
}
template <typename T> static int opdi_cu_product_plain(const opdi_cu_product *q, opd_value alpha, opd_value beta) {
    typedef opdi_cu_acc<T> A;
    const A al = alpha.tag == OPD_TAG_FLOAT ? (A)alpha.u.d : (A)alpha.u.i,
        be = beta.tag == OPD_TAG_FLOAT ? (A)beta.u.d : (A)beta.u.i;
    return opdi_cu_launch(opdi_cu_product_kernel<T>, opdi_cu_grid(q->n * q->m * q->p, 256), dim3(256), 0, *q, al, be);
}
static double opdi_cu_number(opd_value v) { return v.tag == OPD_TAG_FLOAT ? v.u.d : (double)v.u.i; }
/* Computes a product of any sizes and dtype.  Returns 0, or -1 and sets an error. */
static int opdi_cu_product_run(const opdi_cu_product *q, opd_scalar_type dtype, opd_value alpha, opd_value beta) {
    const bool fits = q->m <= INT32_MAX && q->k <= INT32_MAX && q->p <= INT32_MAX && q->n <= INT32_MAX;
    cudaDataType type;
    if (q->n == 0 || q->m == 0 || q->p == 0) { return 0; }
    if (q->k > 0 && fits && opdi_cu_cuda_type(dtype, &type)) {
        return opdi_cu_gemm(q, dtype, dtype, opdi_cu_number(alpha), opdi_cu_number(beta));
    }
    OPDI_CU_ALL(dtype, T, return opdi_cu_product_plain<T>(q, alpha, beta))
    return -1;
}

/* Reads a factor [rows, cols] or [n, rows, cols] into *x.  A vector becomes a column if `column` is true, otherwise a
   row.  If cuBLAS cannot read the factor, it is copied; `copied` says that this has been done.  Returns 0, or -1 and
   sets an error. */
static int opdi_cu_factor(opd_tensor *t, bool column, opdi_cu_matrix *x, bool copied) {
    const int64_t *sizes = opd_sizes(t), *strides = opd_strides(t);
    const int nd = opd_ndim(t);
    int64_t ld;
    bool turned;
    x->batch = nd == 3 && sizes[0] > 1 ? strides[0] : 0;
    x->row = nd > 1 ? strides[nd - 2] : column ? strides[0] : sizes[0];
    x->col = nd > 1 ? strides[nd - 1] : column ? 1 : strides[0];
    x->data = opd_device_data(t, OPD_CUDA);
    if (!x->data && opd_numel(t)) { return -1; }
    if (copied || opdi_cu_leading(x, nd > 1 ? sizes[nd - 2] : column ? sizes[0] : 1,
        nd > 1 ? sizes[nd - 1] : column ? 1 : sizes[0], &ld, &turned)) {
        return 0;
    }
    t = opd_contiguous(t);
    return t ? opdi_cu_factor(t, column, x, true) : -1;
}
/* Sets result 0 of the call to beta * self + alpha * a * b; self may be NULL.  Returns 0, or -1 and sets an error. */
static int opdi_cu_product_of(opd_call *call, opd_tensor *self, opd_tensor *a, opd_tensor *b, opd_value beta,
    opd_value alpha) {
    opdi_cu_product q;
    opd_tensor *out, *work;
    const int na = opd_ndim(a), nb = opd_ndim(b);
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (opd_numel(out) == 0) { return 0; }
    work = opd_is_contiguous(out) && opd_dtype(out) == opd_dtype(a) ? out
        : opdi_cu_new(opd_ints_of(opd_sizes(out), opd_ndim(out)), opd_dtype(a));
    if (!work || opdi_cu_factor(a, false, &q.a, false) || opdi_cu_factor(b, true, &q.b, false)) { return -1; }
    q.n = na == 3 ? opd_size(a, 0) : 1;
    q.m = na == 1 ? 1 : opd_size(a, na - 2);
    q.k = opd_size(a, na - 1);
    q.p = nb == 1 ? 1 : opd_size(b, nb - 1);
    q.out = opd_device_data(work, OPD_CUDA);
    q.out_batch = q.m * q.p;
    if (!self || opdi_cu_number(beta) == 0) { beta = opd_value_int(0); }
    else if (opdi_cu_number(beta) == 1 && q.k > 0 && q.n == 1 && opd_numel(self) == q.p && opd_ndim(self) > 0 &&
             opd_size(self, -1) == q.p && opd_is_contiguous(self) && opd_dtype(self) == opd_dtype(a)) {
        const int done = opdi_cu_gemm_biased(&q, opd_dtype(a), opdi_cu_number(alpha), opdi_cu_data<void>(self));
        if (done < 0) { return -1; }
        if (done > 0) { return work == out || opd_copy_(out, work) ? 0 : -1; }
        if (!opd_copy_(work, self)) { return -1; }
    }
    else if (work != self && !opd_copy_(work, self)) { return -1; }
    if (opdi_cu_product_run(&q, opd_dtype(a), alpha, beta)) { return -1; }
    return work == out || opd_copy_(out, work) ? 0 : -1;
}
static int opdi_cu_mm(opd_call *call) {
    return opdi_cu_product_of(call, NULL, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_value_int(0),
        opd_value_int(1));
}
static int opdi_cu_addmm(opd_call *call) {
    return opdi_cu_product_of(call, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_tensor(call, 2),
                              opd_arg_value(call, 3), opd_arg_value(call, 4));
}
/* Runs addbmm: adds the products of a batch to the result, one after another. */
static int opdi_cu_addbmm(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *a = opd_arg_tensor(call, 1), *b = opd_arg_tensor(call, 2), *sum = NULL;
    const opd_value alpha = opd_arg_value(call, 4);
    opd_value beta = opd_arg_value(call, 3);
    opd_tensor *out;
    int64_t i;
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (opd_size(a, 0) == 0) {
        const opd_scalar_type t = opd_dtype(out);
        sum = opdi_cu_number(beta) == 0 ? opd_zeros_like(out) : opd_mul_Scalar(self, beta);
        return sum && opd_copy_(out, opd_to_dtype(sum, t)) ? 0 : -1;
    }
    for (i = 0; i < opd_size(a, 0); i++, beta = opd_value_int(1)) {
        sum = opd_addmm_full(sum ? sum : self, opd_select(a, 0, i), opd_select(b, 0, i), beta, alpha);
        if (!sum) { return -1; }
    }
    return opd_copy_(out, sum) ? 0 : -1;
}

/* Computes parts of the dot product, the sum of a[i] * b[i]: each block computes one part.  Another kernel adds the
   parts. */
template <typename T> __global__ void opdi_cu_dot_kernel(const T *a, int64_t sa, const T *b, int64_t sb, int64_t n,
    opdi_cu_acc<T> *parts) {
    typedef opdi_cu_acc<T> A;
    A sum = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
        sum += opdi_cu_load<A>(a + i * sa) * opdi_cu_load<A>(b + i * sb);
    }
    sum = opdi_cu_block_reduce(sum, opdi_cu_sum(), A(0));
    if (threadIdx.x == 0) { parts[blockIdx.x] = sum; }
}
template <typename T> __global__ void opdi_cu_dot_end_kernel(const opdi_cu_acc<T> *parts, int n, T *out) {
    typedef opdi_cu_acc<T> A;
    A sum = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) { sum += parts[i]; }
    sum = opdi_cu_block_reduce(sum, opdi_cu_sum(), A(0));
    if (threadIdx.x == 0) { opdi_cu_store(out, sum); }
}
template <typename T> static int opdi_cu_dot_run(opd_tensor *a, opd_tensor *b, opd_tensor *out) {
    const int64_t n = opd_numel(a), blocks = n < 512 * 1024 ? opdi_cu_ceil(n, 2048) : 512;
    const dim3 grid((unsigned)(blocks < 1 ? 1 : blocks));
    opdi_cu_acc<T> *parts = static_cast<opdi_cu_acc<T> *>(opdi_cu_scratch((int64_t)grid.x * (int64_t)sizeof *parts));
    if (!parts || opdi_cu_launch(opdi_cu_dot_kernel<T>, grid, dim3(256), 0, opdi_cu_data<T>(a), opd_strides(a)[0],
                                 opdi_cu_data<T>(b), opd_strides(b)[0], n, parts)) { return -1; }
    return opdi_cu_launch(opdi_cu_dot_end_kernel<T>, dim3(1), dim3(256), 0, parts, (int)grid.x, opdi_cu_data<T>(out));
}
static int opdi_cu_dot(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1), *out;
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    OPDI_CU_ALL(opd_dtype(a), T, return opdi_cu_dot_run<T>(a, b, out))
    return -1;
}

/* Computes out [m, p] of int32 = a [m, k] * bT [p, k] of int8, which are contiguous, on tensor cores.  Returns 1, or 0
   if cuBLAS cannot, or -1 and sets an error. */
static int opdi_cu_bytes_product(const opd_tensor *a, const opd_tensor *turned, opd_tensor *out) {
    const int64_t m = opd_size(a, 0), k = opd_size(a, 1), p = opd_size(turned, 0);
    const int32_t one = 1, zero = 0;
    if (!opdi_cu_aligned(opdi_cu_data<void>(a)) || !opdi_cu_aligned(opdi_cu_data<void>(turned)) || !opd_ok()) {
        return opd_ok() ? 0 : -1;
    }
    cublasHandle_t h = opdi_cu_blas();
    if (!h) { return -1; }
    const cublasStatus_t s = cublasGemmEx(h, CUBLAS_OP_T, CUBLAS_OP_N, (int)p, (int)m, (int)k, &one,
                                          opdi_cu_data<void>(turned), CUDA_R_8I, (int)k, opdi_cu_data<void>(a),
                                          CUDA_R_8I, (int)k, &zero, opdi_cu_data<void>(out), CUDA_R_32I, (int)p,
                                          CUBLAS_COMPUTE_32I, CUBLAS_GEMM_DEFAULT);
    if (s == CUBLAS_STATUS_NOT_SUPPORTED || s == CUBLAS_STATUS_INVALID_VALUE) { return 0; }
    if (s != CUBLAS_STATUS_SUCCESS) { return opdi_cu_blas_failed(s, "cublasGemmEx"); }
    OPDI_CU_TRY(opdi_cu_debug_wait(opdi_cu_stream()), "cublasGemmEx");
    return 1;
}
/* _int_mm: on tensor cores if the sizes are multiples of 8, else as a product of int32. */
static int opdi_cu_int_mm(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1), *out;
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (opd_numel(out) == 0) { return 0; }
    const int64_t m = opd_size(a, 0), k = opd_size(a, 1), p = opd_size(b, 1);
    if (opd_dtype(a) == OPD_INT8 && k > 0 && k % 8 == 0 && p % 8 == 0 && opd_is_contiguous(out) && m <= INT32_MAX &&
        k <= INT32_MAX && p <= INT32_MAX) {
        opd_tensor *const turned = opd_contiguous(opd_t(b));
        if (!turned || !(a = opd_contiguous(a))) { return -1; }
        const int done = opdi_cu_bytes_product(a, turned, out);
        if (done) { return done < 0 ? -1 : 0; }
    }
    opd_tensor *const product = opd_mm(opd_to_dtype(a, OPD_INT32), opd_to_dtype(b, OPD_INT32));
    return product && opd_copy_(out, product) ? 0 : -1;
}

//== products whose results go on ======================================================================================

/* Returns x as a contiguous tensor at a multiple of 16 bytes, or NULL and sets an error. */
static opd_tensor *opdi_cu_in_lines(opd_tensor *x) {
    opd_tensor *lines = opd_contiguous(x);
    return lines && !opdi_cu_aligned(opdi_cu_data<void>(lines)) ? opd_clone(lines) : lines;
}
/* Runs linear_relu(Tensor bias, Tensor a, Tensor b) -> Tensor?: relu(a b + bias) in one kernel of cublasLt, or None if
   it cannot do this. */
static int opdi_cu_linear_relu(opd_call *call) {
    opd_tensor *const bias = opd_arg_tensor(call, 0), *const a = opd_arg_tensor(call, 1),
        *const b = opd_arg_tensor(call, 2);
    opdi_cu_product q;
    memset(&q, 0, sizeof q);
    opd_tensor *const out = opdi_cu_new(OPD_INTS(opd_size(a, 0), opd_size(b, 1)), opd_dtype(a));
    if (!out || opdi_cu_factor(a, false, &q.a, false) || opdi_cu_factor(b, true, &q.b, false)) { return -1; }
    q.n = 1; q.m = opd_size(a, 0); q.k = opd_size(a, 1); q.p = opd_size(b, 1);
    q.out = opdi_cu_data<void>(out);
    const int done = q.m == 0 || q.k == 0 || q.p == 0 ? 0
        : opdi_cu_gemm_biased(&q, opd_dtype(a), 1, opdi_cu_data<void>(bias), CUBLASLT_EPILOGUE_RELU_BIAS);
    return done < 0 ? -1 : done ? opd_return_tensor(call, out) : opd_return_value(call, opd_value_none());
}
/* Computes out [m, p] of float8 factors, by tensor cores.  rows: a scale for each row and column; scales NULL: none.
   Returns 1, or 0 if cublasLt cannot do this, or -1 and sets an error. */
static int opdi_cu_scaled_run(opdi_cu_lt *p, opd_tensor *const *scales, bool rows, const opd_tensor *bias,
                              opd_scalar_type out_type) {
    const opd_scalar_type fit = out_type == OPD_FLOAT16 ? OPD_FLOAT16 : OPD_BFLOAT16;     /* the dtype of a bias */
    if (!opdi_cu_cuda_type(out_type, &p->types[2]) || (bias && (opd_dtype(bias) != fit || !opd_is_contiguous(bias) ||
                                                                !opdi_cu_aligned(opdi_cu_data<void>(bias))))) {
        return 0;
    }
    p->rows = rows;
    p->bias = bias ? opdi_cu_data<const void>(bias) : NULL;
    p->epilogue = bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    p->bias_type = fit == OPD_FLOAT16 ? CUDA_R_16F : CUDA_R_16BF;
    for (int i = 0; i < 2; i++) { p->scales[i] = scales ? opdi_cu_data<const float>(scales[i]) : NULL; }
    return opdi_cu_lt_run(*p);
}
/* Runs scaled_mm(Tensor a, Tensor b, Tensor left, Tensor right, Tensor? bias, int kinds, int dtype, bool fast) ->
   Tensor?: the product of matrices of float8, which are given as bytes, times the scales `left` (one, or one for each
   row of a) and `right` (one, or one for each column of b), plus the bias.  kinds: bit 0 says that a is float8_e5m2,
   otherwise float8_e4m3fn; bit 1 says this of b.  None if cublasLt cannot do this. */
static int opdi_cu_scaled_mm(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *turned, *scales[2], *const bias = opd_arg_tensor(call, 4), *out, *work;
    const int64_t m = opd_size(a, 0), k = opd_size(a, 1), n = opd_size(opd_arg_tensor(call, 1), 1),
        kinds = opd_arg_int(call, 5);
    const opd_scalar_type type = (opd_scalar_type)opd_arg_int(call, 6);
    opdi_cu_product q;
    opdi_cu_lt p = opdi_cu_lt();
    memset(&q, 0, sizeof q);
    for (int i = 0; i < 2; i++) {
        if (!(scales[i] = opdi_cu_as(opd_arg_tensor(call, 2 + i), OPD_FLOAT32))) { return -1; }
    }
    const bool rows = opd_numel(scales[0]) > 1 || opd_numel(scales[1]) > 1;
    cudaDataType known;
    if (m == 0 || k == 0 || k % 16 || n % 16 || n == 0 || m > INT32_MAX || k > INT32_MAX || n > INT32_MAX ||
        kinds == 3 || type == OPD_FLOAT64 || !opdi_cu_cuda_type(type, &known)) {
        return opd_return_value(call, opd_value_none());
    }
    a = opdi_cu_in_lines(a);
    turned = a ? opdi_cu_in_lines(opd_t(opd_arg_tensor(call, 1))) : NULL;
    if (!turned || !(out = opdi_cu_new(OPD_INTS(m, n), type))) { return -1; }
    q.n = 1; q.m = m; q.k = k; q.p = n;
    const opdi_cu_matrix left = {opdi_cu_data<const void>(a), 0, k, 1};
    const opdi_cu_matrix right = {opdi_cu_data<const void>(turned), 0, 1, k};
    q.a = left; q.b = right; q.out = opdi_cu_data<void>(out);
    p.q = &q; p.alpha = 1; p.compute = CUBLAS_COMPUTE_32F; p.fast = opd_arg_bool(call, 7);
    p.types[0] = kinds & 1 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3; p.types[1] = kinds & 2 ? CUDA_R_8F_E5M2 : CUDA_R_8F_E4M3;
    const bool both = opd_numel(scales[0]) == m && opd_numel(scales[1]) == n;
    int done = !rows || both ? opdi_cu_scaled_run(&p, scales, rows, bias, type) : 0;
    if (done < 0) { return -1; }
    if (done) { return opd_return_tensor(call, out); }
    if (!(work = opdi_cu_new(OPD_INTS(m, n), OPD_FLOAT32))) { return -1; }    /* scales by other kernels */
    q.out = opdi_cu_data<void>(work);
    done = opdi_cu_scaled_run(&p, NULL, false, NULL, OPD_FLOAT32);
    if (done <= 0) { return done < 0 ? -1 : opd_return_value(call, opd_value_none()); }
    work = opd_mul(opd_mul(work, opd_reshape(scales[0], OPD_INTS(-1, 1))), opd_reshape(scales[1], OPD_INTS(1, -1)));
    if (bias) { work = opd_add(work, opd_to_dtype(opd_reshape(bias, OPD_INTS(-1)), OPD_FLOAT32)); }
    work = opd_to_dtype(work, type);
    return work ? opd_return_tensor(call, work) : -1;
}

static const opdi_cu_registration opdi_cu_table_matmul[] = {
    {"mm", opdi_cu_mm}, {"bmm", opdi_cu_mm}, {"mv", opdi_cu_mm}, {"addmm", opdi_cu_addmm}, {"baddbmm", opdi_cu_addmm},
    {"addmv", opdi_cu_addmm}, {"addbmm", opdi_cu_addbmm}, {"dot", opdi_cu_dot}, {"vdot", opdi_cu_dot},
    {"_int_mm", opdi_cu_int_mm},
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:float8      conversions to and from floats of 8 bits
//
//  The results have the CPU's bits: rounded to nearest even, numbers that are too large become infinite or NaN.
//----------------------------------------------------------------------------------------------------------------------

/* See opdi_f8_form in src/types/types.h.  scale: float8_e8m0fnu, an exponent without sign and mantissa. */
struct opdi_cu_f8_form { uint32_t bits, bias, most, beyond, nan; bool unsigned_zero, scale; };
static bool opdi_cu_f8_form_of(opd_scalar_type dtype, opdi_cu_f8_form *form) {
    static const opdi_cu_f8_form e5m2 = {2, 15, 0x7b, 0x7c, 0x7f, false, false},
        e4m3fn = {3, 7, 0x7e, 0x7e, 0x7f, false, false}, e5m2fnuz = {2, 16, 0x7f, 0x80, 0x80, true, false},
        e4m3fnuz = {3, 8, 0x7f, 0x80, 0x80, true, false}, e8m0 = {0, 0, 0, 0, 0, false, true};
    switch (dtype) {
        case OPD_FLOAT8_E5M2: *form = e5m2; return true;
        case OPD_FLOAT8_E4M3FN: *form = e4m3fn; return true;
        case OPD_FLOAT8_E5M2FNUZ: *form = e5m2fnuz; return true;
        case OPD_FLOAT8_E4M3FNUZ: *form = e4m3fnuz; return true;
        case OPD_FLOAT8_E8M0FNU: *form = e8m0; return true;
        default: return false;
    }
}
__device__ __forceinline__ uint32_t opdi_cu_f8_code(float f, const opdi_cu_f8_form &form) {
    const uint32_t bits = __float_as_uint(f), at = bits & 0x7fffffffu, sign = bits >> 24 & 0x80u;
    if (form.scale) {
        const uint32_t exponent = at >> 23, part = at & 0x7fffffu;
        return exponent == 255 ? 255 : exponent + (exponent ? part >= 0x400000u : part > 0x400000u);
    }
    const uint32_t cut = 23 - form.bits, magic = (127 + 24 - form.bias - form.bits) << 23;
    uint32_t code;
    if (at > 0x7f800000u) { return form.unsigned_zero ? form.nan : form.nan | sign; }
    if (at < (128 - form.bias) << 23) {
        code = __float_as_uint(__uint_as_float(at) + __uint_as_float(magic)) - magic;
    } else { code = ((at + (1u << (cut - 1)) - 1 + (at >> cut & 1)) >> cut) - ((127 - form.bias) << form.bits); }
    if (code > form.most) { return form.unsigned_zero ? form.beyond : form.beyond | sign; }
    return code || !form.unsigned_zero ? code | sign : 0;
}
__device__ __forceinline__ float opdi_cu_f8_number(uint32_t code, const opdi_cu_f8_form &form) {
    if (form.scale) { return __uint_as_float(code == 255 ? 0x7fc00000u : code == 0 ? 0x00400000u : code << 23); }
    const uint32_t at = code & 0x7fu, sign = (code & 0x80u) << 24;
    if (form.unsigned_zero && code == form.nan) { return __uint_as_float(0xffc00000u); }
    if (at > form.most) {
        return __uint_as_float(sign | (form.beyond < form.nan && at == form.beyond ? 0x7f800000u : 0x7fc00000u));
    }
    const float value = __uint_as_float(at << (23 - form.bits)) * __uint_as_float((254 - form.bias) << 23);
    return __uint_as_float(__float_as_uint(value) | sign);
}
/* Converts n numbers: x of T to codes, or if TO is false, codes to x.  even: whether four at a time may be loaded. */
template <typename T, bool TO>
__global__ void opdi_cu_f8_kernel(T *x, uint8_t *codes, int64_t n, bool even, const opdi_cu_f8_form form) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x * 4;
    for (int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * 4; i < n; i += step) {
        if (even && i + 4 <= n) {
            if constexpr (TO) {
                const opdi_cu_vector<T, 4> four = opdi_cu_load_vector<4>((const T *)x + i);
                opdi_cu_vector<uint8_t, 4> out;
                OPDI_CU_UNROLL
                for (int k = 0; k < 4; k++) {
                    out.at[k] = (uint8_t)opdi_cu_f8_code(opdi_cu_taken<float>(four, k), form);
                }
                opdi_cu_store_vector<4>(codes + i, out);
            } else {
                const opdi_cu_vector<uint8_t, 4> four = opdi_cu_load_vector<4>((const uint8_t *)codes + i);
                opdi_cu_vector<T, 4> out;
                OPDI_CU_UNROLL
                for (int k = 0; k < 4; k++) { out.at[k] = opdi_cu_cast<T>(opdi_cu_f8_number(four.at[k], form)); }
                opdi_cu_store_vector<4>(x + i, out);
            }
            continue;
        }
        for (int64_t k = i; k < n && k < i + 4; k++) {
            if constexpr (TO) { codes[k] = (uint8_t)opdi_cu_f8_code(opdi_cu_load<float>((const T *)x + k), form); }
            else { opdi_cu_store(x + k, opdi_cu_f8_number(codes[k], form)); }
        }
    }
}
template <typename T> static int opdi_cu_f8_run(T *x, uint8_t *codes, bool to, int64_t n, const opdi_cu_f8_form &form) {
    const dim3 grid = opdi_cu_grid(opdi_cu_ceil(n, 4), 256);
    const bool even = (uintptr_t)codes % 4 == 0 && opdi_cu_aligned(x);
    return to ? opdi_cu_launch(opdi_cu_f8_kernel<T, true>, grid, dim3(256), 0, x, codes, n, even, form)
              : opdi_cu_launch(opdi_cu_f8_kernel<T, false>, grid, dim3(256), 0, x, codes, n, even, form);
}
/* Copies src to dst, of which one has floats of 8 bits, and whose elements lie in the same order.  Returns 0, -1 and
   sets an error, or 1 if there is no kernel. */
static int opdi_cu_float8(opd_tensor *dst, opd_tensor *src) {
    opdi_cu_f8_form form;
    const bool to = opdi_cu_f8_form_of(opd_dtype(dst), &form);
    if (!to && !opdi_cu_f8_form_of(opd_dtype(src), &form)) { return 1; }
    opd_tensor *const numbers = to ? src : dst;
    uint8_t *const codes = opdi_cu_data<uint8_t>(to ? dst : src);
    void *const x = opdi_cu_data<void>(numbers);
    const int64_t n = opd_numel(src);
    if (n == 0) { return 0; }
    if (!codes || !x) { return -1; }
    switch (opd_dtype(numbers)) {
        case OPD_FLOAT32: return opdi_cu_f8_run(static_cast<float *>(x), codes, to, n, form);
        case OPD_FLOAT16: return opdi_cu_f8_run(static_cast<opdi_cu_f16 *>(x), codes, to, n, form);
        case OPD_BFLOAT16: return opdi_cu_f8_run(static_cast<opdi_cu_bf16 *>(x), codes, to, n, form);
        default: return 1;
    }
}
//----------------------------------------------------------------------------------------------------------------------
//  >>cu:blocks      weights in blocks of few bits
//
//  Products with a weight in blocks (see opd_dtype_block), rows of it, and its numbers as floats.  A weight stays in
//  blocks in memory.  If few rows are multiplied, a kernel converts blocks in registers and multiplies at once, so that
//  each block is read once.  For more rows, pieces of the weight become floats, by which cuBLAS multiplies.  Unlike on
//  the CPU, rows are never rounded to 8 bits.
//
//  A unit is 8 elements of a row, one after another; the elements of a block are whole units.
//----------------------------------------------------------------------------------------------------------------------

/* A weight [rows, columns] whose rows are whole blocks.  bits, zero: of the dtypes of integers with scales. */
struct opdi_cu_blocks_of {
    const uint8_t *data;
    int64_t rows, columns, row_bytes, block, bytes;    /* block: elements of a block; bytes: of a block */
    int bits;
    bool zero;
};

//== from a block to numbers ===========================================================================================

static const __device__ int8_t opdi_cu_iq4_numbers[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
static const __device__ int8_t opdi_cu_fp4_numbers[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/* Returns 8 bytes as one word, the first one lowest.  The address is a multiple of ALIGN. */
template <int ALIGN> __device__ __forceinline__ uint64_t opdi_cu_word_of(const uint8_t *p) {
    typedef typename std::conditional<ALIGN >= 8, uint64_t, typename std::conditional<ALIGN == 4, uint32_t,
        typename std::conditional<ALIGN == 2, uint16_t, uint8_t>::type>::type>::type W;
    uint64_t word = 0;
    OPDI_CU_UNROLL
    for (int i = 0; i < 8 / (int)sizeof(W); i++) {
        word |= (uint64_t)reinterpret_cast<const W *>(p)[i] << 8 * (int)sizeof(W) * i;
    }
    return word;
}
__device__ __forceinline__ float opdi_cu_half_of(const uint8_t *p) {
    return __half2float(__ushort_as_half(*reinterpret_cast<const uint16_t *>(p)));
}
__device__ __forceinline__ float opdi_cu_float_of(const uint8_t *p) {
    return __uint_as_float(p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24);
}
__device__ __forceinline__ int opdi_cu_byte_of(uint64_t word, int i) { return (int)(word >> 8 * i & 255); }
/* Returns the low (or high) four bits of each byte as bytes. */
__device__ __forceinline__ uint64_t opdi_cu_nibbles(uint64_t word, bool high) {
    return word >> (high ? 4 : 0) & UINT64_C(0x0f0f0f0f0f0f0f0f);
}
/* Writes d * (code + less) + m for the eight bytes of a word. */
__device__ __forceinline__ void opdi_cu_scaled(uint64_t codes, int less, float d, float m, float *v) {
    OPDI_CU_UNROLL
    for (int i = 0; i < 8; i++) { v[i] = d * (float)(opdi_cu_byte_of(codes, i) + less) + m; }
}
__device__ __forceinline__ void opdi_cu_looked_up(uint64_t codes, const int8_t *table, float d, float *v) {
    OPDI_CU_UNROLL
    for (int i = 0; i < 8; i++) { v[i] = d * (float)table[opdi_cu_byte_of(codes, i)]; }
}
/* Returns the bits of a byte as bytes. */
__device__ __forceinline__ uint64_t opdi_cu_bits_as_bytes(uint32_t byte) {
    const uint64_t spread = byte * UINT64_C(0x0101010101010101) & UINT64_C(0x8040201008040201);
    return (spread + UINT64_C(0x7f7f7f7f7f7f7f7f)) >> 7 & UINT64_C(0x0101010101010101);
}
/* Number b of the eight scales and minima of 6 bits of Q4_K and Q5_K, in 12 bytes. */
__device__ __forceinline__ void opdi_cu_scale_of_k(const uint8_t *at, int b, int *scale, int *minimum) {
    if (b < 4) { *scale = at[b] & 63; *minimum = at[b + 4] & 63; }
    else {
        *scale = (at[b + 4] & 15) | at[b - 4] >> 6 << 4;
        *minimum = at[b + 4] >> 4 | at[b] >> 6 << 4;
    }
}

/* opdi_cu_form<dtype>: what a block of a dtype has, and unit u of it as floats.  Products of a scale with a code
   are exact, so that it does not matter whether they are fused with a sum. */
template <int DTYPE> struct opdi_cu_form;
#define OPDI_CU_FORM(dtype, elements, bytes, ...) \
    template <> struct opdi_cu_form<dtype> { \
        static __host__ __device__ constexpr int block(const opdi_cu_blocks_of &) { return elements; } \
        static __host__ __device__ constexpr int size(const opdi_cu_blocks_of &) { return bytes; } \
        static __device__ __forceinline__ void unit(const opdi_cu_blocks_of &, const uint8_t *at, int u, float *v) { \
            __VA_ARGS__ \
        } \
    };
OPDI_CU_FORM(OPD_WEIGHT_F16, 32, 64,
    const opdi_cu_vector<opdi_cu_f16, 8> x = opdi_cu_load_vector<8>(reinterpret_cast<const opdi_cu_f16 *>(at) + 8 * u);
    OPDI_CU_UNROLL
    for (int i = 0; i < 8; i++) { v[i] = opdi_cu_taken<float>(x, i); })
OPDI_CU_FORM(OPD_WEIGHT_BF16, 32, 64,
    const opdi_cu_bf16 *const from = reinterpret_cast<const opdi_cu_bf16 *>(at);
    const opdi_cu_vector<opdi_cu_bf16, 8> x = opdi_cu_load_vector<8>(from + 8 * u);
    OPDI_CU_UNROLL
    for (int i = 0; i < 8; i++) { v[i] = opdi_cu_taken<float>(x, i); })
OPDI_CU_FORM(OPD_Q4_0, 32, 18,
    opdi_cu_scaled(opdi_cu_nibbles(opdi_cu_word_of<2>(at + 2 + 8 * (u & 1)), u > 1), -8, opdi_cu_half_of(at), 0, v);)
OPDI_CU_FORM(OPD_Q4_1, 32, 20,
    opdi_cu_scaled(opdi_cu_nibbles(opdi_cu_word_of<4>(at + 4 + 8 * (u & 1)), u > 1), 0, opdi_cu_half_of(at),
                   opdi_cu_half_of(at + 2), v);)
OPDI_CU_FORM(OPD_Q5_0, 32, 22,
    const uint64_t low = opdi_cu_nibbles(opdi_cu_word_of<2>(at + 6 + 8 * (u & 1)), u > 1);
    opdi_cu_scaled(low | opdi_cu_bits_as_bytes(at[2 + u]) << 4, -16, opdi_cu_half_of(at), 0, v);)
OPDI_CU_FORM(OPD_Q5_1, 32, 24,
    const uint64_t low = opdi_cu_nibbles(opdi_cu_word_of<8>(at + 8 + 8 * (u & 1)), u > 1);
    opdi_cu_scaled(low | opdi_cu_bits_as_bytes(at[4 + u]) << 4, 0, opdi_cu_half_of(at), opdi_cu_half_of(at + 2), v);)
__device__ __forceinline__ void opdi_cu_signed(uint64_t codes, float d, float *v) {
    OPDI_CU_UNROLL
    for (int i = 0; i < 8; i++) { v[i] = d * (float)(int8_t)opdi_cu_byte_of(codes, i); }
}
OPDI_CU_FORM(OPD_Q8_0, 32, 34, opdi_cu_signed(opdi_cu_word_of<2>(at + 2 + 8 * u), opdi_cu_half_of(at), v);)
OPDI_CU_FORM(OPD_Q8_1, 32, 36, opdi_cu_signed(opdi_cu_word_of<4>(at + 4 + 8 * u), opdi_cu_half_of(at), v);)
OPDI_CU_FORM(OPD_Q8_K, 256, 292, opdi_cu_signed(opdi_cu_word_of<4>(at + 4 + 8 * u), opdi_cu_float_of(at), v);)
OPDI_CU_FORM(OPD_Q1_0, 128, 18, opdi_cu_scaled(opdi_cu_bits_as_bytes(at[2 + u]) << 1, -1, opdi_cu_half_of(at), 0, v);)
OPDI_CU_FORM(OPD_Q2_0, 64, 18,
    const uint64_t low = at[2 + 2 * u] | (uint64_t)at[3 + 2 * u] << 32;
    opdi_cu_scaled((low | low << 6 | low << 12 | low << 18) & UINT64_C(0x0303030303030303), -1, opdi_cu_half_of(at), 0,
                   v);)
OPDI_CU_FORM(OPD_IQ4_NL, 32, 18,
    opdi_cu_looked_up(opdi_cu_nibbles(opdi_cu_word_of<2>(at + 2 + 8 * (u & 1)), u > 1), opdi_cu_iq4_numbers,
                      opdi_cu_half_of(at), v);)
OPDI_CU_FORM(OPD_MXFP4, 32, 17,
    const float d = __uint_as_float(at[0] < 2 ? 0x00200000u << at[0] : (uint32_t)(at[0] - 1) << 23);
    opdi_cu_looked_up(opdi_cu_nibbles(opdi_cu_word_of<1>(at + 1 + 8 * (u & 1)), u > 1), opdi_cu_fp4_numbers, d, v);)
OPDI_CU_FORM(OPD_NVFP4, 64, 36,
    const uint32_t e = at[u / 2];
    const float d = e == 0x7f ? 0.0f : __uint_as_float((e & 0x7fu) << 20) * 6.6461399789245794e35f;
    opdi_cu_looked_up(opdi_cu_nibbles(opdi_cu_word_of<4>(at + 4 + 8 * (u / 2)), u & 1), opdi_cu_fp4_numbers, d, v);)
OPDI_CU_FORM(OPD_Q2_K, 256, 84,
    const uint64_t codes = opdi_cu_word_of<4>(at + 16 + 32 * (u / 16) + 8 * (u % 4)) >> 2 * (u / 4 % 4);
    const int scale = at[u / 2];
    opdi_cu_scaled(codes & UINT64_C(0x0303030303030303), 0, opdi_cu_half_of(at + 80) * (float)(scale & 15),
                   -(opdi_cu_half_of(at + 82) * (float)(scale >> 4)), v);)
OPDI_CU_FORM(OPD_Q3_K, 256, 110,
    const uint64_t codes = opdi_cu_word_of<2>(at + 32 + 32 * (u / 16) + 8 * (u % 4)) >> 2 * (u / 4 % 4);
    const uint64_t third = opdi_cu_word_of<2>(at + 8 * (u % 4)) >> u / 4 & UINT64_C(0x0101010101010101);
    const int k = u / 2;
    const int scale = (at[96 + (k & 7)] >> (k < 8 ? 0 : 4) & 15) | (at[104 + (k & 3)] >> 2 * (k >> 2) & 3) << 4;
    opdi_cu_scaled((codes & UINT64_C(0x0303030303030303)) | third << 2, -4,
                   opdi_cu_half_of(at + 108) * (float)(scale - 32), 0, v);)
OPDI_CU_FORM(OPD_Q4_K, 256, 144,
    int scale, minimum;
    opdi_cu_scale_of_k(at + 4, u / 4, &scale, &minimum);
    const uint64_t codes = opdi_cu_nibbles(opdi_cu_word_of<8>(at + 16 + 32 * (u / 8) + 8 * (u % 4)), u & 4);
    opdi_cu_scaled(codes, 0, opdi_cu_half_of(at) * (float)scale, -(opdi_cu_half_of(at + 2) * (float)minimum), v);)
OPDI_CU_FORM(OPD_Q5_K, 256, 176,
    int scale, minimum;
    opdi_cu_scale_of_k(at + 4, u / 4, &scale, &minimum);
    const uint64_t codes = opdi_cu_nibbles(opdi_cu_word_of<8>(at + 48 + 32 * (u / 8) + 8 * (u % 4)), u & 4);
    const uint64_t fifth = opdi_cu_word_of<8>(at + 16 + 8 * (u % 4)) >> u / 4 & UINT64_C(0x0101010101010101);
    opdi_cu_scaled(codes | fifth << 4, 0, opdi_cu_half_of(at) * (float)scale,
                   -(opdi_cu_half_of(at + 2) * (float)minimum), v);)
OPDI_CU_FORM(OPD_Q6_K, 256, 210,
    const uint64_t low = opdi_cu_nibbles(opdi_cu_word_of<2>(at + 64 * (u / 16) + 8 * (u % 8)), u & 8);
    const uint64_t high = opdi_cu_word_of<2>(at + 128 + 32 * (u / 16) + 8 * (u % 4)) >> 2 * (u / 4 % 4);
    opdi_cu_scaled(low | (high & UINT64_C(0x0303030303030303)) << 4, -32,
                   opdi_cu_half_of(at + 208) * (float)(int8_t)at[192 + u / 2], 0, v);)
OPDI_CU_FORM(OPD_IQ4_XS, 256, 136,
    const int b = u / 4;
    const int high = *reinterpret_cast<const uint16_t *>(at + 2) >> 2 * b & 3;
    const int scale = (at[4 + b / 2] >> 4 * (b & 1) & 15) | high << 4;
    opdi_cu_looked_up(opdi_cu_nibbles(opdi_cu_word_of<8>(at + 8 + 16 * b + 8 * (u & 1)), u & 2), opdi_cu_iq4_numbers,
                      opdi_cu_half_of(at) * (float)(scale - 32), v);)
OPDI_CU_FORM(OPD_TQ2_0, 256, 66,
    const uint64_t codes = opdi_cu_word_of<2>(at + 32 * (u / 16) + 8 * (u % 4)) >> 2 * (u / 4 % 4);
    opdi_cu_scaled(codes & UINT64_C(0x0303030303030303), -1, opdi_cu_half_of(at + 64), 0, v);)
OPDI_CU_FORM(OPD_TQ1_0, 256, 54,
    const float d = opdi_cu_half_of(at + 52);
    OPDI_CU_UNROLL
    for (int i = 0; i < 8; i++) {                 /* a byte is a fraction of 256 with digits of base 3 */
        const int e = 8 * u + i;
        const int from = e < 160 ? e % 32 : e < 240 ? 32 + e % 16 : 48 + e % 4;
        const int digit = e < 160 ? e / 32 : e < 240 ? (e - 160) / 16 : (e - 240) / 4;
        const uint32_t power = digit < 2 ? (digit ? 3 : 1) : digit == 2 ? 9 : digit == 3 ? 27 : 81;
        v[i] = d * (float)((int)((at[from] * power & 255) * 3 >> 8) - 1);
    })
/* Integers with scales. */
template <> struct opdi_cu_form<OPD_INT_BLOCKS> {
    static __host__ __device__ __forceinline__ int block(const opdi_cu_blocks_of &w) { return (int)w.block; }
    static __host__ __device__ __forceinline__ int size(const opdi_cu_blocks_of &w) { return (int)w.bytes; }
    static __device__ __forceinline__ void unit(const opdi_cu_blocks_of &w, const uint8_t *at, int u, float *v) {
        const float d = opdi_cu_float_of(at), zero = w.zero ? opdi_cu_float_of(at + 4) : (float)(1 << (w.bits - 1));
        uint64_t word = 0;
        at += (w.zero ? 8 : 4) + u * w.bits;
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) { if (i < w.bits) { word |= (uint64_t)at[i] << 8 * i; } }
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) { v[i] = ((float)(int)(word >> w.bits * i & ((1u << w.bits) - 1)) - zero) * d; }
    }
};

//== kernels ===========================================================================================================

/* Eight numbers of a tensor of float32, float16 or bfloat16, as `type` says, at a multiple of 16 bytes. */
__device__ __forceinline__ void opdi_cu_eight(const void *x, int type, int64_t at, float *v) {
    if (type == OPD_FLOAT32) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i += 4) {
            const opdi_cu_vector<float, 4> four = opdi_cu_load_vector<4>(static_cast<const float *>(x) + at + i);
            OPDI_CU_UNROLL
            for (int j = 0; j < 4; j++) { v[i + j] = four.at[j]; }
        }
    } else if (type == OPD_FLOAT16) {
        const opdi_cu_vector<opdi_cu_f16, 8> all = opdi_cu_load_vector<8>(static_cast<const opdi_cu_f16 *>(x) + at);
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) { v[i] = opdi_cu_taken<float>(all, i); }
    } else {
        const opdi_cu_vector<opdi_cu_bf16, 8> all = opdi_cu_load_vector<8>(static_cast<const opdi_cu_bf16 *>(x) + at);
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) { v[i] = opdi_cu_taken<float>(all, i); }
    }
}
template <typename T> __device__ __forceinline__ void opdi_cu_eight_to(T *y, const float *v) {
    constexpr int W = 16 / (int)sizeof(T);
    OPDI_CU_UNROLL
    for (int i = 0; i < 8; i += W) {
        opdi_cu_vector<T, W> some;
        OPDI_CU_UNROLL
        for (int j = 0; j < W; j++) { some.at[j] = opdi_cu_cast<T>(v[i + j]); }
        opdi_cu_store_vector<W>(y + i, some);
    }
}
__device__ __forceinline__ void opdi_cu_number_to(void *y, int type, int64_t at, float v) {
    if (type == OPD_FLOAT32) { static_cast<float *>(y)[at] = v; }
    else if (type == OPD_FLOAT16) { opdi_cu_store(static_cast<opdi_cu_f16 *>(y) + at, v); }
    else { opdi_cu_store(static_cast<opdi_cu_bf16 *>(y) + at, v); }
}

/* Rows of a weight as floats: out [count, columns] is rows first, first + 1 ..., or if `index` is not NULL, the rows
   index[count]. */
struct opdi_cu_blocks_floats {
    opdi_cu_blocks_of w;
    const int64_t *index;
    int64_t first, count;
    void *out;
    int type;
    opdi_cu_guard guard;
};
template <int F> __global__ void opdi_cu_blocks_floats_kernel(const opdi_cu_blocks_floats k) {
    typedef opdi_cu_form<F> form;
    const int64_t units = k.w.columns / 8, all = k.count * units;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t line = i / units, u = i - line * units;
        const int each = form::block(k.w) / 8;
        const int64_t row = k.index ? k.index[line] : k.first + line;
        float v[8] = {0, 0, 0, 0, 0, 0, 0, 0};
        if (!k.index || k.guard.inside(row, k.w.rows)) {
            form::unit(k.w, k.w.data + row * k.w.row_bytes + u / each * form::size(k.w), (int)(u % each), v);
        }
        if (k.type == OPD_FLOAT32) { opdi_cu_eight_to(static_cast<float *>(k.out) + i * 8, v); }
        else if (k.type == OPD_FLOAT16) { opdi_cu_eight_to(static_cast<opdi_cu_f16 *>(k.out) + i * 8, v); }
        else { opdi_cu_eight_to(static_cast<opdi_cu_bf16 *>(k.out) + i * 8, v); }
    }
}

/* y [m, w.rows] = x [m, w.columns] wT + bias [w.rows], for m <= M.  bias may be NULL. */
struct opdi_cu_blocks_dots {
    opdi_cu_blocks_of w;
    const void *x, *bias;
    void *y;
    int m, type, out_type;
};
enum { OPDI_CU_DOTS_THREADS = 128, OPDI_CU_DOTS_MOST = 8 };
/* A block computes R columns of y; its threads share the units of these rows of the weight. */
template <int F, int M, int R>
__global__ void __launch_bounds__(OPDI_CU_DOTS_THREADS) opdi_cu_blocks_dots_kernel(const opdi_cu_blocks_dots k) {
    typedef opdi_cu_form<F> form;
    __shared__ float parts[OPDI_CU_DOTS_THREADS / OPDI_CU_WARP][M * R];
    const int each = form::block(k.w) / 8, units = (int)(k.w.columns / 8), warp = threadIdx.x / OPDI_CU_WARP;
    const int64_t first = (int64_t)blockIdx.x * R;
    float sums[M][R];
    OPDI_CU_UNROLL
    for (int m = 0; m < M; m++) {
        OPDI_CU_UNROLL
        for (int r = 0; r < R; r++) { sums[m][r] = 0; }
    }
    for (int u = threadIdx.x; u < units; u += OPDI_CU_DOTS_THREADS) {
        float v[R][8], x[8];
        OPDI_CU_UNROLL
        for (int r = 0; r < R; r++) {
            const int64_t row = first + r < k.w.rows ? first + r : k.w.rows - 1;
            form::unit(k.w, k.w.data + row * k.w.row_bytes + (int64_t)(u / each) * form::size(k.w), u % each, v[r]);
        }
        OPDI_CU_UNROLL
        for (int m = 0; m < M; m++) {
            if (m >= k.m) { break; }
            opdi_cu_eight(k.x, k.type, m * k.w.columns + (int64_t)u * 8, x);
            OPDI_CU_UNROLL
            for (int r = 0; r < R; r++) {
                OPDI_CU_UNROLL
                for (int i = 0; i < 8; i++) { sums[m][r] = fmaf(x[i], v[r][i], sums[m][r]); }
            }
        }
    }
    OPDI_CU_UNROLL
    for (int m = 0; m < M; m++) {
        OPDI_CU_UNROLL
        for (int r = 0; r < R; r++) {
            const float sum = opdi_cu_warp_reduce(sums[m][r], opdi_cu_sum());
            if (threadIdx.x % OPDI_CU_WARP == 0) { parts[warp][m * R + r] = sum; }
        }
    }
    __syncthreads();
    if (threadIdx.x >= M * R) { return; }
    const int m = threadIdx.x / R;
    const int64_t row = first + threadIdx.x % R;
    if (m >= k.m || row >= k.w.rows) { return; }
    float sum = 0;
    for (int i = 0; i < OPDI_CU_DOTS_THREADS / OPDI_CU_WARP; i++) { sum += parts[i][threadIdx.x]; }
    if (k.bias) {
        sum += k.type == OPD_FLOAT32 ? static_cast<const float *>(k.bias)[row]
            : k.type == OPD_FLOAT16 ? opdi_cu_load<float>(static_cast<const opdi_cu_f16 *>(k.bias) + row)
                                    : opdi_cu_load<float>(static_cast<const opdi_cu_bf16 *>(k.bias) + row);
    }
    opdi_cu_number_to(k.y, k.out_type, m * k.w.rows + row, sum);
}

/* Expands to X(dtype, ...) for each dtype; OPDI_CU_FORM_CASE is the X that runs statements with F the dtype. */
#define OPDI_CU_EACH_FORM(X, ...) \
    X(OPD_WEIGHT_F16, __VA_ARGS__) X(OPD_WEIGHT_BF16, __VA_ARGS__) X(OPD_Q4_0, __VA_ARGS__) X(OPD_Q4_1, __VA_ARGS__) \
    X(OPD_Q5_0, __VA_ARGS__) X(OPD_Q5_1, __VA_ARGS__) X(OPD_Q8_0, __VA_ARGS__) X(OPD_Q8_1, __VA_ARGS__) \
    X(OPD_Q8_K, __VA_ARGS__) X(OPD_Q1_0, __VA_ARGS__) X(OPD_Q2_0, __VA_ARGS__) X(OPD_IQ4_NL, __VA_ARGS__) \
    X(OPD_MXFP4, __VA_ARGS__) X(OPD_NVFP4, __VA_ARGS__) X(OPD_Q2_K, __VA_ARGS__) X(OPD_Q3_K, __VA_ARGS__) \
    X(OPD_Q4_K, __VA_ARGS__) X(OPD_Q5_K, __VA_ARGS__) X(OPD_Q6_K, __VA_ARGS__) X(OPD_IQ4_XS, __VA_ARGS__) \
    X(OPD_TQ2_0, __VA_ARGS__) X(OPD_TQ1_0, __VA_ARGS__) X(OPD_INT_BLOCKS, __VA_ARGS__)
#define OPDI_CU_FORM_CASE(dtype, ...) case dtype: { constexpr int F = dtype; __VA_ARGS__; }
static bool opdi_cu_blocks_known(opd_scalar_type dtype) {
    switch (dtype >= OPD_INT_BLOCKS ? OPD_INT_BLOCKS : dtype) {
        OPDI_CU_EACH_FORM(OPDI_CU_FORM_CASE, return F != 0)
        default: return false;
    }
}
static int opdi_cu_blocks_floats_run(opd_scalar_type dtype, const opdi_cu_blocks_floats &k) {
    const dim3 grid = opdi_cu_grid(k.count * (k.w.columns / 8), 256);
    switch (dtype >= OPD_INT_BLOCKS ? OPD_INT_BLOCKS : dtype) {
        OPDI_CU_EACH_FORM(OPDI_CU_FORM_CASE,
                          return opdi_cu_launch(opdi_cu_blocks_floats_kernel<F>, grid, dim3(256), 0, k))
        default: return opdi_cu_no_dtype(dtype);
    }
}
template <int F> static int opdi_cu_blocks_dots_of(const opdi_cu_blocks_dots &k) {
    const dim3 block(OPDI_CU_DOTS_THREADS), fours((unsigned)opdi_cu_ceil(k.w.rows, 4)),
        twos((unsigned)opdi_cu_ceil(k.w.rows, 2));
    return k.m == 1 ? opdi_cu_launch(opdi_cu_blocks_dots_kernel<F, 1, 4>, fours, block, 0, k)
        : k.m <= 4 ? opdi_cu_launch(opdi_cu_blocks_dots_kernel<F, 4, 4>, fours, block, 0, k)
                   : opdi_cu_launch(opdi_cu_blocks_dots_kernel<F, OPDI_CU_DOTS_MOST, 2>, twos, block, 0, k);
}
static int opdi_cu_blocks_dots_run(opd_scalar_type dtype, const opdi_cu_blocks_dots &k) {
    switch (dtype >= OPD_INT_BLOCKS ? OPD_INT_BLOCKS : dtype) {
        OPDI_CU_EACH_FORM(OPDI_CU_FORM_CASE, return opdi_cu_blocks_dots_of<F>(k))
        default: return opdi_cu_no_dtype(dtype);
    }
}

//== products ==========================================================================================================

/* Returns the dim along which the blocks of a tensor lie, or -1. */
static int opdi_cu_blocks_dim(const opd_tensor *t) {
    for (int i = opd_ndim(t); i-- > 0;) {
        if (opd_size(t, i) != 1 && opd_strides(t)[i] == 1) { return i; }
    }
    return -1;
}
/* Returns whether there are kernels for the dtype, the layout and the address of a matrix in blocks, or of each matrix
   of a batch [batch, ...]. */
static bool opdi_cu_blocks_fit(const opd_tensor *t) {
    const int last = opd_ndim(t) - 1, row = opdi_cu_blocks_dim(t);
    int64_t bytes, align = 16;
    (void)opd_dtype_block(opd_dtype(t), &bytes);
    while (bytes % align) { align /= 2; }
    return opdi_cu_blocks_known(opd_dtype(t)) && opd_numel(t) > 0 && last >= 1 && row >= last - 1 &&
        opd_size(t, last) <= INT32_MAX && opd_size(t, last - 1) <= INT32_MAX &&
        (uintptr_t)opdi_cu_data<const void>(t) % (uintptr_t)align == 0 && opd_ok();
}
/* Reads a matrix in blocks; *across says that it is the transpose of the weight. */
static void opdi_cu_blocks_read(const opd_tensor *t, opdi_cu_blocks_of *w, bool *across) {
    const opd_scalar_type dtype = opd_dtype(t);
    const int row = opdi_cu_blocks_dim(t), parts = (int)dtype - (int)OPD_INT_BLOCKS;
    memset(w, 0, sizeof *w);
    w->block = opd_dtype_block(dtype, &w->bytes);
    w->data = opdi_cu_data<const uint8_t>(t);
    w->rows = opd_size(t, 1 - row); w->columns = opd_size(t, row);
    w->row_bytes = opd_strides(t)[1 - row] / w->block * w->bytes;
    if (parts >= 0) { w->bits = parts % 8 + 1; w->zero = (parts & 8) != 0; }
    *across = row == 0;
}
/* Computes the part of y = x w, or of y = x wT if `back` is false, for `count` rows of the weight, as floats.  In x w,
   it is added to the parts before.  Returns 0, or -1 and sets an error. */
static int opdi_cu_blocks_piece(opd_scalar_type dtype, const opdi_cu_blocks_of &w, bool back, opd_tensor *x,
                                opd_tensor *y, int64_t first, int64_t count) {
    const opd_scalar_type type = opd_dtype(x);
    const int64_t m = opd_size(x, 0), bytes = (int64_t)opd_dtype_size(type);
    opdi_cu_blocks_floats k;
    opdi_cu_product q;
    memset(&k, 0, sizeof k);
    k.w = w; k.first = first; k.count = count; k.type = type;
    if (!(k.out = opdi_cu_scratch(count * w.columns * bytes)) || opdi_cu_blocks_floats_run(dtype, k)) { return -1; }
    const opdi_cu_matrix rows = {k.out, 0, back ? w.columns : 1, back ? 1 : w.columns};
    const opdi_cu_matrix left = {opdi_cu_data<const char>(x) + (back ? first * bytes : 0), 0, opd_size(x, 1), 1};
    q.n = 1; q.m = m; q.k = back ? count : w.columns; q.p = back ? w.columns : count;
    q.a = left; q.b = rows;
    q.out = opdi_cu_data<char>(y) + (back ? 0 : first * (int64_t)opd_dtype_size(opd_dtype(y)));
    q.out_batch = 0;
    return opdi_cu_gemm(&q, type, opd_dtype(y), 1, back && first ? 1 : 0, opd_size(y, 1));
}
/* Returns x [m, ...] times a weight, or its transpose if `back` is false, + bias, in the dtype of x if `whole` is true,
   otherwise in float32.  Returns NULL and sets an error if it fails. */
static opd_tensor *opdi_cu_blocks_times(opd_scalar_type dtype, const opdi_cu_blocks_of &w, bool back, opd_tensor *x,
                                        opd_tensor *bias, bool whole) {
    const int64_t m = opd_size(x, 0), most = ((int64_t)1 << 26) / (w.columns * (int64_t)opd_dtype_size(opd_dtype(x)));
    const int64_t count = most < 1 ? 1 : most < w.rows ? most : w.rows;
    const bool dots = !back && m <= OPDI_CU_DOTS_MOST, parts = back && count < w.rows;
    const opd_scalar_type type = opd_dtype(x), out = whole && (dots || (!bias && !parts)) ? type : OPD_FLOAT32;
    opd_tensor *y = opdi_cu_new(OPD_INTS(m, back ? w.columns : w.rows), out);
    if (!y || !(x = opdi_cu_in_lines(x))) { return NULL; }
    if (dots) {
        opdi_cu_blocks_dots k;
        k.w = w; k.x = opdi_cu_data<const void>(x); k.y = opdi_cu_data<void>(y);
        k.bias = bias ? opdi_cu_data<const void>(bias) : NULL;
        k.m = (int)m; k.type = type; k.out_type = out;
        return opdi_cu_blocks_dots_run(dtype, k) ? NULL : y;
    }
    for (int64_t first = 0; first < w.rows; first += count) {
        int rc = -1;
        OPD_SCOPE {
            rc = opdi_cu_blocks_piece(dtype, w, back, x, y, first, count < w.rows - first ? count : w.rows - first);
        }
        if (rc) { return NULL; }
    }
    if (bias && !(y = opd_add(y, opd_to_dtype(bias, OPD_FLOAT32)))) { return NULL; }
    return whole ? opd_to_dtype(y, type) : y;
}
/* Writes beta * self + alpha * a b to `out`, a matrix, where b is in blocks.  self may be NULL.  Returns 0, or -1 and
   sets an error. */
static int opdi_cu_blocks_matrix(opd_tensor *out, opd_tensor *self, opd_tensor *a, opd_tensor *b, opd_value beta,
                                 opd_value alpha) {
    opdi_cu_blocks_of w;
    bool across = false;
    const double scale = opdi_cu_number(alpha), added = self ? opdi_cu_number(beta) : 0;
    if (!opd_ok()) { return -1; }
    opdi_cu_blocks_read(b, &w, &across);
    const bool biased = across && added == 1 && scale == 1 && opd_ndim(self) == 1 && opd_size(self, 0) == w.rows &&
        opd_strides(self)[0] == 1;
    const bool plain = scale == 1 && (biased || added == 0);
    opd_tensor *y = opdi_cu_blocks_times(opd_dtype(b), w, !across, a, biased ? self : NULL, plain);
    if (y && scale != 1) { y = opd_mul_Scalar(y, alpha); }
    if (y && !biased && added != 0) {
        y = opd_add(y, opd_mul_Scalar(opd_to_dtype(self, OPD_FLOAT32), beta));
    }
    return y && opd_copy_(out, y) ? 0 : -1;
}
/* Runs mm, addmm, bmm, baddbmm or mv.  If the first factor is in blocks, the product is transposed. */
static int opdi_cu_blocks_product(opd_call *call, int first) {
    opd_tensor *self = first ? opd_arg_tensor(call, 0) : NULL, *a = opd_arg_tensor(call, first),
        *b = opd_arg_tensor(call, first + 1);
    const bool turned = opd_dtype_block(opd_dtype(a), NULL) > 1;
    const opd_value one = opd_value_int(1), beta = first ? opd_arg_value(call, 3) : one,
        alpha = first ? opd_arg_value(call, 4) : one;
    const opd_tensor *const x = turned ? b : a, *const weight = turned ? a : b;
    if (opd_dtype(x) == OPD_FLOAT64 || !opdi_cu_blocks_fit(weight)) { return opd_ok() ? 1 : -1; }
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *out = opdi_cu_result(call, 0);
    if (opd_numel(out) == 0) { return 0; }
    if (self && (opd_ndim(self) != 1 || turned || opd_ndim(out) == 3)) {
        self = opd_expand(self, opd_ints_of(opd_sizes(out), opd_ndim(out)));
    }
    const bool vector = opd_ndim(b) == 1;
    if (vector) { b = opd_unsqueeze(b, 1); out = opd_unsqueeze(out, 1); }
    if (turned) {
        const int last = opd_ndim(a) - 1;
        opd_tensor *const left = opd_transpose(b, last - 1, last);
        b = opd_transpose(a, last - 1, last);
        a = left;
        out = opd_transpose(out, last - 1, last);
        if (self) { self = opd_transpose(self, last - 1, last); }
    }
    if (!opd_ok()) { return -1; }
    if (opd_ndim(out) == 2) { return opdi_cu_blocks_matrix(out, self, a, b, beta, alpha); }
    for (int64_t i = 0; i < opd_size(out, 0); i++) {
        int rc = -1;
        OPD_SCOPE {
            rc = opdi_cu_blocks_matrix(opd_select(out, 0, i), self ? opd_select(self, 0, i) : NULL,
                                       opd_select(a, 0, i), opd_select(b, 0, i), beta, alpha);
        }
        if (rc) { return -1; }
    }
    return 0;
}
/* embedding: the rows at the indices, as float32. */
static int opdi_cu_blocks_embedding(opd_call *call) {
    opd_tensor *weight = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 1);
    opdi_cu_blocks_floats k;
    bool across = false;
    if (opd_dtype_block(opd_dtype(weight), NULL) == 1 || !opdi_cu_blocks_fit(weight)) { return opd_ok() ? 1 : -1; }
    if (opd_results_from_fake(call)) { return -1; }
    opd_tensor *out = opdi_cu_result(call, 0);
    if (opd_numel(out) == 0) { return 0; }
    memset(&k, 0, sizeof k);
    opdi_cu_blocks_read(weight, &k.w, &across);
    if (!(index = opdi_cu_as(index, OPD_INT64))) { return -1; }
    opd_tensor *work = opd_is_contiguous(out) ? out
        : opdi_cu_new(opd_ints_of(opd_sizes(out), opd_ndim(out)), OPD_FLOAT32);
    k.index = opdi_cu_data<const int64_t>(index);
    k.count = opd_numel(index);
    k.out = work ? opdi_cu_data<void>(work) : NULL;
    k.type = OPD_FLOAT32;
    k.guard = opdi_cu_guard_of(call);
    if (!work || opdi_cu_blocks_floats_run(opd_dtype(weight), k)) { return -1; }
    return work == out || opd_copy_(out, work) ? 0 : -1;
}
/* Runs a call with a tensor in blocks: see opd_backend_desc.blocks. */
static int opdi_cu_blocks(opd_call *call) {
    static const struct { const char *name; int first; } products[] = {
        {"aten::mm", 0}, {"aten::addmm", 1}, {"aten::bmm", 0}, {"aten::baddbmm", 1}, {"aten::mv", 0}};
    const char *name = opd_op_name(opd_call_operator(call));
    int index = -1;                               /* the dispatcher makes no device current for such a call */
    for (int i = 0; i < 2; i++) {
        const opd_value *const v = &opd_call_args(call)[i];
        if (v->tag != OPD_TAG_TENSOR) { continue; }
        const opd_device at = opd_tensor_device(v->u.t);
        if (at.type == OPD_CUDA) { index = at.index; }
    }
    const opdi_cu_on device(index);
    if (strcmp(name, "aten::embedding") == 0) { return opdi_cu_blocks_embedding(call); }
    for (const auto &p : products) {
        const size_t length = strlen(p.name);        /* mm and mm.out */
        if (strncmp(name, p.name, length) == 0 && (name[length] == 0 || name[length] == '.')) {
            return opdi_cu_blocks_product(call, p.first);
        }
    }
    return 1;
}
/* Writes the numbers of src, in blocks along its last dim, to dst, contiguous float32, float16 or bfloat16 of the same
   sizes.  Returns 0, -1 and sets an error, or 1 if there is no kernel. */
static int opdi_cu_decode(opd_tensor *dst, opd_tensor *src) {
    const int last = opd_ndim(src) - 1;
    opdi_cu_blocks_floats k;
    bool across = false;
    const opd_scalar_type type = opd_dtype(dst);
    if (last < 0 || opd_numel(src) == 0 || (type != OPD_FLOAT32 && type != OPD_FLOAT16 && type != OPD_BFLOAT16)) {
        return 1;
    }
    src = opd_view(src, OPD_INTS(-1, opd_size(src, last)));
    if (!src || !opdi_cu_blocks_fit(src) || !opdi_cu_aligned(opdi_cu_data<void>(dst))) { return opd_ok() ? 1 : -1; }
    memset(&k, 0, sizeof k);
    opdi_cu_blocks_read(src, &k.w, &across);
    if (across) { return 1; }
    k.count = k.w.rows;
    k.out = opdi_cu_data<void>(dst);
    k.type = type;
    return opdi_cu_blocks_floats_run(opd_dtype(src), k);
}
/* See opd_backend_desc.convert. */
static int opdi_cu_stored_convert(void *, int index, opd_tensor *dst, opd_tensor *src) {
    const opdi_cu_on device(index);
    return opd_dtype_block(opd_dtype(src), NULL) > 1 ? opdi_cu_decode(dst, src) : opdi_cu_float8(dst, src);
}
//----------------------------------------------------------------------------------------------------------------------
//  >>cu:fft         discrete Fourier transforms
//
//  cuFFT computes them.  It is loaded when the first transform runs; without it, transforms run on the CPU.  The dims
//  of a transform become the last ones of a contiguous tensor.  The plans of cuFFT that were used last are kept, and
//  not destroyed at the end of the program.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_CU_FFT_FUNCTIONS(X) \
    X(Create, (int *plan)) \
    X(Destroy, (int plan)) \
    X(SetStream, (int plan, cudaStream_t stream)) \
    X(SetAutoAllocation, (int plan, int on)) \
    X(SetWorkArea, (int plan, void *work)) \
    X(MakePlanMany64, (int plan, int rank, long long *n, long long *inembed, long long istride, long long idist, \
                       long long *onembed, long long ostride, long long odist, int type, long long batch, \
                       size_t *bytes)) \
    X(ExecC2C, (int plan, void *in, void *out, int direction)) \
    X(ExecZ2Z, (int plan, void *in, void *out, int direction)) \
    X(ExecR2C, (int plan, void *in, void *out)) \
    X(ExecD2Z, (int plan, void *in, void *out)) \
    X(ExecC2R, (int plan, void *in, void *out)) \
    X(ExecZ2D, (int plan, void *in, void *out))
#define OPDI_CU_FFT_MEMBER(name, parameters) int (*name) parameters;
static struct opdi_cu_fft_functions { OPDI_CU_FFT_FUNCTIONS(OPDI_CU_FFT_MEMBER) } opdi_cu_fft;
static std::mutex opdi_cu_fft_lock;
static int opdi_cu_fft_state;                     /* 0: not yet loaded, 1: loaded, -1: it cannot be loaded */

/* Loads a library: the file that the environment variable `variable` names, or else the first of `names` that there is.
   Returns NULL if there is none, or if loading code is forbidden. */
static void *opdi_cu_library(const char *variable, const char *const *names, int n) {
    const char *const given = getenv(variable);
    void *library = NULL;
    if (opd_code_forbidden(variable)) { opd_error_clear(); return NULL; }
    if (given && *given) { return dlopen(given, RTLD_NOW | RTLD_LOCAL); }
#if defined(OPD_CUDA_EMULATED)
    n = 0;                                        /* a real library would look for a GPU */
#endif
    for (int i = 0; i < n && !library; i++) { library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL); }
    return library;
}
/* Returns whether cuFFT is there; loads it if nobody has tried yet. */
static bool opdi_cu_fft_there() {
    static const char *const names[] = {"libcufft.so.12", "libcufft.so.11", "libcufft.so"};
    std::lock_guard<std::mutex> guard(opdi_cu_fft_lock);
    bool whole = true;
    if (opdi_cu_fft_state) { return opdi_cu_fft_state > 0; }
    void *const library = opdi_cu_library("OPD_CUFFT", names, 3);
#define OPDI_CU_FFT_TAKE(name, parameters) { \
        void *const found = library ? dlsym(library, "cufft" #name) : NULL; \
        memcpy(&opdi_cu_fft.name, &found, sizeof found); \
        whole = whole && found; \
    }
    OPDI_CU_FFT_FUNCTIONS(OPDI_CU_FFT_TAKE)
    opdi_cu_fft_state = whole ? 1 : -1;
    return whole;
}
enum {                                            /* cuFFT's names are cufftType and the directions */
    OPDI_CU_R2C = 0x2a, OPDI_CU_C2R = 0x2c, OPDI_CU_C2C = 0x29, OPDI_CU_D2Z = 0x6a, OPDI_CU_Z2D = 0x6c,
    OPDI_CU_Z2Z = 0x69,
    OPDI_CU_FORWARD = -1, OPDI_CU_INVERSE = 1, OPDI_CU_FFT_KEPT = 128
};
/* A transform over the last `rank` dims of a contiguous tensor; n: their sizes, of the real tensor if one is real. */
struct opdi_cu_fft_key {
    int64_t rank, n[3], batch, type, device;
    bool operator==(const opdi_cu_fft_key &o) const { return memcmp(this, &o, sizeof o) == 0; }
};
struct opdi_cu_fft_plan { opdi_cu_fft_key key; int plan; size_t bytes; };
static std::vector<opdi_cu_fft_plan> *opdi_cu_fft_plans;      /* the last used one first */
static int opdi_cu_fft_failed(int rc, const char *what) {
    (void)cudaGetLastError();
    return opd_fail(rc == 2 ? OPD_ERROR_MEMORY : OPD_ERROR_KERNEL, "cuFFT error %d in %s", rc, what);
}
/* Returns the plan of a transform, or NULL and sets an error.  The caller holds the lock. */
static const opdi_cu_fft_plan *opdi_cu_fft_plan_of(const opdi_cu_fft_key &key) {
    if (!opdi_cu_fft_plans) { opdi_cu_fft_plans = new std::vector<opdi_cu_fft_plan>(); }
    std::vector<opdi_cu_fft_plan> &all = *opdi_cu_fft_plans;
    for (size_t i = 0; i < all.size(); i++) {
        if (all[i].key == key) {
            std::rotate(all.begin(), all.begin() + (ptrdiff_t)i, all.begin() + (ptrdiff_t)i + 1);
            return &all[0];
        }
    }
    opdi_cu_fft_plan made = {key, 0, 0};
    long long n[3] = {key.n[0], key.n[1], key.n[2]};
    int rc = opdi_cu_fft.Create(&made.plan);
    if (rc) { (void)opdi_cu_fft_failed(rc, "cufftCreate"); return NULL; }
    rc = opdi_cu_fft.SetAutoAllocation(made.plan, 0);
    if (!rc) {
        rc = opdi_cu_fft.MakePlanMany64(made.plan, (int)key.rank, n, NULL, 1, 0, NULL, 1, 0, (int)key.type, key.batch,
                                        &made.bytes);
    }
    if (rc) {
        (void)opdi_cu_fft.Destroy(made.plan);
        (void)opdi_cu_fft_failed(rc, "cufftMakePlanMany64");
        return NULL;
    }
    if (all.size() == OPDI_CU_FFT_KEPT) { (void)opdi_cu_fft.Destroy(all.back().plan); all.pop_back(); }
    all.insert(all.begin(), made);
    return &all[0];
}
/* Transforms the last `rank` dims of `in`, contiguous and of at least one element, to `out`.  `real` has the sizes of
   the real tensor if one is real.  Returns 0, or -1 and sets an error. */
static int opdi_cu_fft_run(opd_tensor *in, opd_tensor *out, opd_tensor *real, int rank, int type, bool inverse) {
    opdi_cu_fft_key key;
    memset(&key, 0, sizeof key);
    key.rank = rank; key.type = type; key.device = opdi_cu_current(); key.batch = 1;
    for (int i = 0; i < opd_ndim(real); i++) {
        const int at = i - (opd_ndim(real) - rank);
        if (at < 0) { key.batch *= opd_size(real, i); } else { key.n[at] = opd_size(real, i); }
    }
    std::lock_guard<std::mutex> guard(opdi_cu_fft_lock);
    const opdi_cu_fft_plan *const p = opdi_cu_fft_plan_of(key);
    if (!p) { return -1; }
    void *const work = p->bytes ? opdi_cu_scratch((int64_t)p->bytes) : NULL, *const x = opdi_cu_data<void>(in),
        *const y = opdi_cu_data<void>(out);
    if (!x || !y || (p->bytes && !work)) { return -1; }
    int rc = opdi_cu_fft.SetStream(p->plan, opdi_cu_stream());
    if (!rc && work) { rc = opdi_cu_fft.SetWorkArea(p->plan, work); }
    if (!rc) {
        const int direction = inverse ? OPDI_CU_INVERSE : OPDI_CU_FORWARD;
        rc = type == OPDI_CU_C2C ? opdi_cu_fft.ExecC2C(p->plan, x, y, direction)
            : type == OPDI_CU_Z2Z ? opdi_cu_fft.ExecZ2Z(p->plan, x, y, direction)
            : type == OPDI_CU_R2C ? opdi_cu_fft.ExecR2C(p->plan, x, y)
            : type == OPDI_CU_D2Z ? opdi_cu_fft.ExecD2Z(p->plan, x, y)
            : type == OPDI_CU_C2R ? opdi_cu_fft.ExecC2R(p->plan, x, y) : opdi_cu_fft.ExecZ2D(p->plan, x, y);
    }
    if (rc) { return opdi_cu_fft_failed(rc, "a transform"); }
    OPDI_CU_TRY(opdi_cu_debug_wait(opdi_cu_stream()), "cuFFT");
    return 0;
}
/* x = x * scale, for n numbers. */
template <typename T> __global__ void opdi_cu_fft_scale(T *x, T scale, int64_t n) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) { x[i] *= scale; }
}
static int opdi_cu_fft_scaled(opd_tensor *t, double scale) {
    const bool wide = opd_dtype(t) == OPD_COMPLEX128 || opd_dtype(t) == OPD_FLOAT64;
    const int64_t n = opd_numel(t) * (opd_dtype_is_complex(opd_dtype(t)) ? 2 : 1);
    if (scale == 1) { return 0; }
    return wide ? opdi_cu_launch(opdi_cu_fft_scale<double>, opdi_cu_grid(n, 256), dim3(256), 0, opdi_cu_data<double>(t),
                                 scale, n)
                : opdi_cu_launch(opdi_cu_fft_scale<float>, opdi_cu_grid(n, 256), dim3(256), 0, opdi_cu_data<float>(t),
                                 (float)scale, n);
}
/* Sets order to the dims of t, the `count` dims of the transform last.  Returns false if there is no cuFFT, or if it
   does not take the transform. */
static bool opdi_cu_fft_order(const opd_tensor *t, opd_ints dims, int64_t *order) {
    const int nd = opd_ndim(t), count = (int)dims.n;
    bool used[OPD_MAX_DIMS] = {false};
    int at = 0;
    if (count < 1 || count > 3 || nd < 1 || opd_numel(t) == 0 || !opdi_cu_fft_there()) { return false; }
    for (int i = 0; i < count; i++) {
        const int64_t d = dims.data[i] < 0 ? dims.data[i] + nd : dims.data[i];
        if (d < 0 || d >= nd || used[d]) { return false; }
        used[d] = true;
        order[nd - count + i] = d;
    }
    for (int d = 0; d < nd; d++) { if (!used[d]) { order[at++] = d; } }
    return true;
}
/* Moves the dims of t back from `order`. */
static opd_tensor *opdi_cu_fft_back(opd_tensor *t, const int64_t *order) {
    int64_t back[OPD_MAX_DIMS];
    for (int i = 0; i < opd_ndim(t); i++) { back[order[i]] = i; }
    return opd_permute(t, opd_ints_of(back, opd_ndim(t)));
}
static double opdi_cu_fft_factor(const opd_tensor *real, int rank, int64_t norm) {
    double n = 1;
    for (int i = 1; i <= rank; i++) { n *= (double)opd_size(real, -i); }
    return norm == 0 ? 1 : norm == 1 ? 1 / sqrt(n) : 1 / n;
}
/* Returns t with its dims in `order` as a new contiguous tensor, which a transform may overwrite. */
static opd_tensor *opdi_cu_fft_moved(opd_tensor *t, const int64_t *order) {
    opd_tensor *const moved = opd_permute(t, opd_ints_of(order, opd_ndim(t)));
    opd_tensor *const copy = moved ? opdi_cu_new(opd_ints_of(opd_sizes(moved), opd_ndim(t)), opd_dtype(t)) : NULL;
    return copy && opd_copy_(copy, moved) ? copy : NULL;
}
/* y = x as complex numbers. */
template <typename T> __global__ void opdi_cu_fft_widen(const T *x, T *y, int64_t n) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        y[2 * i] = x[i];
        y[2 * i + 1] = 0;
    }
}
static bool opdi_cu_fft_complex(const opd_tensor *t) {        /* others are complex32 and real numbers */
    return opd_dtype(t) == OPD_COMPLEX64 || opd_dtype(t) == OPD_COMPLEX128;
}
/* _fft_c2c */
static int opdi_cu_fft_c2c(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *x, *out;
    const opd_ints dims = opd_arg_ints(call, 1);
    int64_t order[OPD_MAX_DIMS];
    if (!opdi_cu_fft_complex(self) || !opdi_cu_fft_order(self, dims, order)) {
        return opd_cpu_fallback(call);
    }
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (!(x = opdi_cu_fft_moved(self, order)) ||
        opdi_cu_fft_run(x, x, x, (int)dims.n, opd_dtype(x) == OPD_COMPLEX128 ? OPDI_CU_Z2Z : OPDI_CU_C2C,
                        !opd_arg_bool(call, 3)) ||
        opdi_cu_fft_scaled(x, opdi_cu_fft_factor(x, (int)dims.n, opd_arg_int(call, 2)))) { return -1; }
    return opd_copy_(out, opdi_cu_fft_back(x, order)) ? 0 : -1;
}
/* _fft_r2c: if the whole result is wanted, a transform of complex numbers. */
static int opdi_cu_fft_r2c(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *x, *y, *out;
    const opd_ints dims = opd_arg_ints(call, 1);
    const bool wide = opd_dtype(self) == OPD_FLOAT64, half = opd_arg_bool(call, 3);
    const opd_scalar_type type = wide ? OPD_COMPLEX128 : OPD_COMPLEX64;
    int64_t order[OPD_MAX_DIMS], sizes[OPD_MAX_DIMS];
    const int nd = opd_ndim(self), rank = (int)dims.n;
    if ((opd_dtype(self) != OPD_FLOAT32 && !wide) || !opdi_cu_fft_order(self, dims, order)) {
        return opd_cpu_fallback(call);
    }
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (!(x = opdi_cu_fft_moved(self, order))) { return -1; }
    memcpy(sizes, opd_sizes(x), (size_t)nd * sizeof *sizes);
    if (half) { sizes[nd - 1] = sizes[nd - 1] / 2 + 1; }
    if (!(y = opdi_cu_new(opd_ints_of(sizes, nd), type))) { return -1; }
    const dim3 grid = opdi_cu_grid(opd_numel(x), 256);
    if (half ? opdi_cu_fft_run(x, y, x, rank, wide ? OPDI_CU_D2Z : OPDI_CU_R2C, false)
        : (wide ? opdi_cu_launch(opdi_cu_fft_widen<double>, grid, dim3(256), 0, opdi_cu_data<const double>(x),
                                 opdi_cu_data<double>(y), opd_numel(x))
                : opdi_cu_launch(opdi_cu_fft_widen<float>, grid, dim3(256), 0, opdi_cu_data<const float>(x),
                                 opdi_cu_data<float>(y), opd_numel(x))) ||
            opdi_cu_fft_run(y, y, y, rank, wide ? OPDI_CU_Z2Z : OPDI_CU_C2C, false)) { return -1; }
    if (opdi_cu_fft_scaled(y, opdi_cu_fft_factor(x, rank, opd_arg_int(call, 2)))) { return -1; }
    return opd_copy_(out, opdi_cu_fft_back(y, order)) ? 0 : -1;
}
/* _fft_c2r: the other dims are transformed before the last, because cuFFT wants a half of a whole Hermitian tensor. */
static int opdi_cu_fft_c2r(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *x, *y, *out;
    const opd_ints dims = opd_arg_ints(call, 1);
    const bool wide = opd_dtype(self) == OPD_COMPLEX128;
    const int64_t points = opd_arg_int(call, 3);
    int64_t order[OPD_MAX_DIMS], sizes[OPD_MAX_DIMS];
    const int nd = opd_ndim(self), rank = (int)dims.n;
    double factor = 1;
    if (!opdi_cu_fft_complex(self) || !opdi_cu_fft_order(self, dims, order)) {
        return opd_cpu_fallback(call);
    }
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (opd_numel(out) == 0) { return 0; }
    self = opd_narrow(self, (int)order[nd - 1], 0, points / 2 + 1);
    if (rank > 1 && self) { self = opd_fft_c2c(self, opd_ints_of(dims.data, rank - 1), 0, false); }
    if (!self || !(x = opdi_cu_fft_moved(self, order))) { return -1; }
    memcpy(sizes, opd_sizes(x), (size_t)nd * sizeof *sizes);
    sizes[nd - 1] = points;
    if (!(y = opdi_cu_new(opd_ints_of(sizes, nd), wide ? OPD_FLOAT64 : OPD_FLOAT32))) { return -1; }
    factor = opdi_cu_fft_factor(y, rank, opd_arg_int(call, 2));
    if (opdi_cu_fft_run(x, y, y, 1, wide ? OPDI_CU_Z2D : OPDI_CU_C2R, true) || opdi_cu_fft_scaled(y, factor)) {
        return -1;
    }
    return opd_copy_(out, opdi_cu_fft_back(y, order)) ? 0 : -1;
}

static const opdi_cu_registration opdi_cu_table_fft[] = {
    {"_fft_c2c", opdi_cu_fft_c2c}, {"_fft_r2c", opdi_cu_fft_r2c}, {"_fft_c2r", opdi_cu_fft_c2r},
    {NULL, NULL}};
//----------------------------------------------------------------------------------------------------------------------
//  >>cu:convolution convolution
//
//  There are three problems: y = conv(x, w), and the gradients gx and gw with respect to x and w.  A transposed
//  convolution is computed like gx, with x and y exchanged.  For float16 and bfloat16, an implicit matrix product runs
//  on tensor cores, or cuBLAS multiplies, if there is one tap.  If the user allows TF32, y and gx of float32 run on
//  tensor cores, too.  Otherwise, 3 x 3 taps of many channels are computed by Winograd's method, and other y and gx by
//  an implicit product of plain multiply-adds.  In all other cases, patches of the image are stored as columns of a
//  matrix, which cuBLAS multiplies.  Integers, and convolutions with few channels per group, have a simple kernel.
//  There are up to three spatial dims.  If there are fewer, they are the last of the three, and the others have size 1.
//----------------------------------------------------------------------------------------------------------------------

/* The sizes of a convolution of x [n, c, in] with w [oc, c / groups, k] to y [n, oc, out].  s: strides, p: padding, d:
   dilation. */
struct opdi_cu_conv { int64_t n, c, oc, groups; int in[3], out[3], k[3], s[3], p[3], d[3]; };
static __host__ __device__ __forceinline__ int64_t opdi_cu_volume(const int *v) { return (int64_t)v[0] * v[1] * v[2]; }

/* These two functions find the element that a tap of the kernel reads: an element of x to compute y or, if BACK, an
   element of y to compute gx.  opdi_cu_conv_place sets at[3] to the position of element `o` of the result, from which
   its taps are counted.  opdi_cu_conv_reads returns the element that tap[3] reads from there, or -1 if it is outside of
   the image.  In comments, reads(i, t) is the element that tap number t reads for element i. */
template <bool BACK> static __device__ __forceinline__ void opdi_cu_conv_place(const opdi_cu_conv &q, int o, int *at) {
    const int *side = BACK ? q.in : q.out;
    const int line = o / side[2], slice = line / side[1];
    at[0] = slice; at[1] = line - slice * side[1]; at[2] = o - line * side[2];
    OPDI_CU_UNROLL
    for (int d = 0; d < 3; d++) { at[d] = BACK ? at[d] + q.p[d] : at[d] * q.s[d] - q.p[d]; }
}
template <bool BACK>
static __device__ __forceinline__ int opdi_cu_conv_reads(const opdi_cu_conv &q, const int *at, const int *tap) {
    const int *side = BACK ? q.out : q.in;
    int to[3];
    bool inside = true;
    OPDI_CU_UNROLL
    for (int d = 0; d < 3; d++) {
        const int p = BACK ? at[d] - tap[d] * q.d[d] : at[d] + tap[d] * q.d[d];
        to[d] = BACK && q.s[d] != 1 ? p / q.s[d] : p;
        inside = inside && p >= 0 && to[d] < side[d] && (!BACK || q.s[d] == 1 || to[d] * q.s[d] == p);
    }
    return inside ? (to[0] * side[1] + to[1]) * side[2] + to[2] : -1;
}
/* A loop over the taps of q.  Its statement can use the tap's coordinates tap[3] and its number t. */
#define OPDI_CU_TAPS(q, tap, t) \
    for (int tap[3] = {0, 0, 0}, t = 0; tap[0] < (q).k[0]; tap[0]++) \
        for (tap[1] = 0; tap[1] < (q).k[1]; tap[1]++) \
            for (tap[2] = 0; tap[2] < (q).k[2]; tap[2]++, t++)

//== convolutions with few channels per group ==========================================================================

/* Computes to[n, r, i], the sum over c and t of from[n, c, reads(i, t)] * w[...], with one thread per element.
   Computes y from x or, if BACK, gx from y. */
struct opdi_cu_conv_sides { opdi_cu_pointwise_divider area, rows, groups; };
template <typename T, bool BACK>
__global__ void opdi_cu_conv_each_kernel(opdi_cu_conv q, opdi_cu_conv_sides by, const T *from, const T *w, T *to) {
    typedef opdi_cu_acc<T> A;
    const int64_t area = opdi_cu_volume(BACK ? q.in : q.out), image = opdi_cu_volume(BACK ? q.out : q.in),
        taps = opdi_cu_volume(q.k), cg = q.c / q.groups, og = q.oc / q.groups;
    const int64_t rows = BACK ? cg : og, channels = BACK ? og : cg, across = BACK ? cg * taps : taps;
    const uint32_t all = (uint32_t)(q.n * q.groups * rows * area), step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const uint32_t plane = by.area.of(i), ng = by.rows.of(plane), r = plane - ng * (uint32_t)rows;
        const uint32_t g = ng - by.groups.of(ng) * (uint32_t)q.groups;
        const T *xs = from + ng * channels * image, *ws = w + (BACK ? g * og * cg + r : (g * og + r) * cg) * taps;
        int at[3];
        A sum = 0;
        opdi_cu_conv_place<BACK>(q, (int)(i - plane * (uint32_t)area), at);
        OPDI_CU_TAPS(q, tap, t) {
            const int reads = opdi_cu_conv_reads<BACK>(q, at, tap);
            if (reads < 0) { continue; }
            for (int64_t c = 0; c < channels; c++) {
                sum += opdi_cu_load<A>(xs + c * image + reads) * opdi_cu_load<A>(ws + c * across + t);
            }
        }
        opdi_cu_store(to + i, sum);
    }
}
/* Computes y or (BACK) gx.  Launches the kernel several times, each time for as many images as have at most 2^30
   elements in their results. */
template <typename T, bool BACK> static int opdi_cu_conv_each(opdi_cu_conv q, const T *from, const T *w, T *to) {
    const int64_t area = opdi_cu_volume(BACK ? q.in : q.out), channels = BACK ? q.c : q.oc, one = area * channels;
    const int64_t read = opdi_cu_volume(BACK ? q.out : q.in) * (BACK ? q.oc : q.c), images = q.n;
    if (one >= INT32_MAX) {
        return opd_fail(OPD_ERROR_ARGUMENT, "an image of a convolution on CUDA must have fewer than 2^31 - 1 "
                        "elements, but has %lld", (long long)one);
    }
    const opdi_cu_conv_sides by = {opdi_cu_divide_by((uint32_t)area),
                                   opdi_cu_divide_by((uint32_t)(channels / q.groups)),
                                   opdi_cu_divide_by((uint32_t)q.groups)};
    const int64_t most = ((int64_t)1 << 30) / one > 1 ? ((int64_t)1 << 30) / one : 1;
    for (int64_t n = 0; n < images; n += most) {
        q.n = images - n < most ? images - n : most;
        if (opdi_cu_launch(opdi_cu_conv_each_kernel<T, BACK>, opdi_cu_grid(q.n * one, 256), dim3(256), 0, q, by,
                           from + n * read, w, to + n * one)) { return -1; }
    }
    return 0;
}
/* Computes gw[o, c, t], the sum over n and i of y[n, o, i] * x[n, c, reads(i, t)], with one block per element. */
template <typename T> __global__ void __launch_bounds__(256)
    opdi_cu_conv_each_gw_kernel(opdi_cu_conv q, const T *x, const T *y, opdi_cu_acc<T> *w) {
    typedef opdi_cu_acc<T> A;
    const int64_t area = opdi_cu_volume(q.out), image = opdi_cu_volume(q.in), taps = opdi_cu_volume(q.k),
        cg = q.c / q.groups, og = q.oc / q.groups, all = q.oc * cg * taps;
    for (int64_t e = blockIdx.x; e < all; e += gridDim.x) {
        const int t = (int)(e % taps);
        const int64_t o = e / taps / cg, c = o / og * cg + e / taps % cg;
        const int tap[3] = {t / q.k[2] / q.k[1], t / q.k[2] % q.k[1], t % q.k[2]};
        A sum = 0;
        for (int64_t n = 0; n < q.n; n++) {
            const T *xs = x + (n * q.c + c) * image, *ys = y + (n * q.oc + o) * area;
            for (int i = (int)threadIdx.x; i < (int)area; i += 256) {
                int at[3];
                opdi_cu_conv_place<false>(q, i, at);
                const int reads = opdi_cu_conv_reads<false>(q, at, tap);
                if (reads >= 0) { sum += opdi_cu_load<A>(xs + reads) * opdi_cu_load<A>(ys + i); }
            }
        }
        sum = opdi_cu_block_reduce(sum, opdi_cu_sum(), A(0));
        if (threadIdx.x == 0) { w[e] = sum; }
    }
}

//== convolutions as products with a matrix of columns =================================================================

/* The layout of the columns: the element for tap t, output position o, channel c and image n is at n * image + (c *
   taps + t) * row + o. */
struct opdi_cu_columns { int64_t image, row; };
/* Sets col[n, c, t, o] to x[n, c, reads(o, t)] for `images` images, or 0 where a tap reads outside of the image.  A
   thread handles one output position of one channel: it computes the position once, and then writes the elements for
   all taps. */
template <typename T> __global__ void opdi_cu_unfold_kernel(opdi_cu_conv q, int64_t images, const T *x, T *col,
                                                            opdi_cu_columns to) {
    const int64_t area = opdi_cu_volume(q.out), image = opdi_cu_volume(q.in), taps = opdi_cu_volume(q.k);
    const int64_t all = images * q.c * area, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t plane = i / area, n = plane / q.c, c = plane - n * q.c;
        const int o = (int)(i - plane * area);
        const T *from = x + plane * image;
        T *put = col + n * to.image + c * taps * to.row + o;
        int at[3];
        opdi_cu_conv_place<false>(q, o, at);
        OPDI_CU_TAPS(q, tap, t) {
            const int reads = opdi_cu_conv_reads<false>(q, at, tap);
            put[t * to.row] = reads >= 0 ? from[reads] : T(0.0f);
        }
    }
}
/* Sets to[c, n, i] to x[n, c, i]. */
template <typename T> __global__ void opdi_cu_planes_kernel(const T *x, T *to, int64_t images, int64_t channels,
                                                            int64_t area) {
    const int64_t all = images * channels * area, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t plane = i / area, n = plane / channels, c = plane - n * channels;
        to[(c * images + n) * area + (i - plane * area)] = x[i];
    }
}
/* Sets x[n, c, i] to the sum over t of col[n, c, t, reads(i, t)]. */
template <typename T> __global__ void opdi_cu_fold_kernel(opdi_cu_conv q, int64_t images, const T *col, T *x) {
    typedef opdi_cu_acc<T> A;
    const int64_t area = opdi_cu_volume(q.out), image = opdi_cu_volume(q.in), taps = opdi_cu_volume(q.k);
    const int64_t all = images * q.c * image, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t plane = i / image;
        int at[3];
        A sum = 0;
        opdi_cu_conv_place<true>(q, (int)(i - plane * image), at);
        OPDI_CU_TAPS(q, tap, t) {
            const int reads = opdi_cu_conv_reads<true>(q, at, tap);
            if (reads >= 0) { sum += opdi_cu_load<A>(col + (plane * taps + t) * area + reads); }
        }
        opdi_cu_store(x + i, sum);
    }
}
enum { OPDI_CU_CONV_Y, OPDI_CU_CONV_GX, OPDI_CU_CONV_GW };
/* Returns whether the columns are the input itself: the kernel has one tap, the stride is 1, and nothing is padded, not
   even the output of a transposed convolution. */
static bool opdi_cu_conv_is_product(const opdi_cu_conv *q) {
    for (int i = 0; i < 3; i++) {
        if (q->k[i] != 1 || q->s[i] != 1 || q->p[i] != 0 || q->in[i] != q->out[i]) { return false; }
    }
    return true;
}
/* Multiplies the columns [kk, area] of `images` images by the weights.  A batched product covers the images of a group,
   or the groups of an image, whichever are more.  `what` is OPDI_CU_CONV_Y: y = w col, or OPDI_CU_CONV_GX: col = w^T y.
   Returns 0, or -1 and sets an error. */
static int opdi_cu_conv_products(const opdi_cu_conv *q, int what, int64_t images, opd_scalar_type dtype, void *col,
    void *w, void *y) {
    const int64_t area = opdi_cu_volume(q->out), og = q->oc / q->groups, kk = q->c / q->groups * opdi_cu_volume(q->k);
    const int64_t size = (int64_t)opd_dtype_size(dtype);
    const bool by_group = images >= q->groups;
    const int64_t outer = by_group ? q->groups : images, inner = by_group ? images : q->groups;
    for (int64_t i = 0; i < outer; i++) {
        char *c = (char *)col + (by_group ? i * kk : i * q->groups * kk) * area * size;
        char *ys = (char *)y + (by_group ? i * og : i * q->oc) * area * size,
            *ws = (char *)w + (by_group ? i * og * kk : 0) * size;
        const int64_t c_batch = by_group ? q->groups * kk * area : kk * area,
            y_batch = by_group ? q->oc * area : og * area;
        const int64_t w_batch = by_group ? 0 : og * kk;
        opdi_cu_product b;
        opdi_cu_matrix cm = {c, c_batch, area, 1}, wm = {ws, w_batch, kk, 1}, wt = {ws, w_batch, 1, kk},
            ym = {ys, y_batch, area, 1};
        b.n = inner;
        if (what == OPDI_CU_CONV_Y) {
            b.m = og; b.k = kk; b.p = area; b.a = wm; b.b = cm; b.out = ys; b.out_batch = y_batch;
        } else { b.m = kk; b.k = og; b.p = area; b.a = wt; b.b = ym; b.out = c; b.out_batch = c_batch; }
        if (opdi_cu_gemm(&b, dtype, dtype, 1, 0)) { return -1; }
    }
    return 0;
}
/* Computes w = y col^T in w_dtype or, if `add` is true, adds it to w.  There is one product per group, over the
   positions of all images, which follow each other in y [oc, images, area] and col [c * taps, images, area].  Returns
   0, or -1 and sets an error. */
static int opdi_cu_conv_gw_product(const opdi_cu_conv *q, int64_t images, opd_scalar_type dtype, void *col, void *w,
    void *y, opd_scalar_type w_dtype, bool add) {
    const int64_t places = images * opdi_cu_volume(q->out), og = q->oc / q->groups,
        kk = q->c / q->groups * opdi_cu_volume(q->k);
    opdi_cu_product b;
    opdi_cu_matrix ct = {col, kk * places, 1, places}, ym = {y, og * places, places, 1};
    b.n = q->groups; b.m = og; b.k = places; b.p = kk; b.a = ym; b.b = ct; b.out = w; b.out_batch = og * kk;
    return opdi_cu_gemm(&b, dtype, w_dtype, 1, add ? 1 : 0);
}
/* Computes y, gx or gw, as `what` says, with as many images at a time as fit into 256 MiB of columns.  The gradient gw
   of 16-bit floats is computed in float32.  Returns 0, or -1 and sets an error. */
template <typename T> static int opdi_cu_conv_columns(const opdi_cu_conv *q, int what, opd_scalar_type dtype, T *x,
    void *w, T *y) {
    const int64_t area = opdi_cu_volume(q->out), image = opdi_cu_volume(q->in),
        one = q->c * opdi_cu_volume(q->k) * area;
    const bool gw = what == OPDI_CU_CONV_GW, direct = opdi_cu_conv_is_product(q) && (!gw || q->n == 1);
    const int64_t most = ((int64_t)256 << 20) / (one * (int64_t)sizeof(T));
    const int64_t n = most < 1 ? 1 : most < q->n ? most : q->n;
    T *col = direct ? NULL : static_cast<T *>(opdi_cu_scratch(n * one * (int64_t)sizeof(T)));
    T *turned = gw && n > 1 ? static_cast<T *>(opdi_cu_scratch(n * q->oc * area * (int64_t)sizeof(T))) : NULL;
    if ((!direct && !col) || (gw && n > 1 && !turned)) { return -1; }
    for (int64_t i = 0; i < q->n; i += n) {
        const int64_t images = n < q->n - i ? n : q->n - i;
        const opdi_cu_columns to = {gw ? area : one, gw ? images * area : area};
        T *xs = x + i * q->c * image, *ys = y + i * q->oc * area, *c = direct ? xs : col;
        if (!direct && what != OPDI_CU_CONV_GX &&
            opdi_cu_launch(opdi_cu_unfold_kernel<T>, opdi_cu_grid(images * q->c * area, 256), dim3(256), 0, *q, images,
                           xs, c, to)) { return -1; }
        if (gw && images > 1) {
            if (opdi_cu_launch(opdi_cu_planes_kernel<T>, opdi_cu_grid(images * q->oc * area, 256), dim3(256), 0, ys,
                               turned, images, q->oc, area)) { return -1; }
            ys = turned;
        }
        if (gw ? opdi_cu_conv_gw_product(q, images, dtype, c, w, ys, sizeof(T) == 2 ? OPD_FLOAT32 : dtype, i > 0)
               : opdi_cu_conv_products(q, what, images, dtype, c, w, ys)) { return -1; }
        if (!direct && what == OPDI_CU_CONV_GX &&
            opdi_cu_launch(opdi_cu_fold_kernel<T>, opdi_cu_grid(images * q->c * image, 256), dim3(256), 0, *q, images,
                           c, xs)) { return -1; }
    }
    return 0;
}

//== float32 convolutions by multiply-adds =============================================================================
//
//  The product is the same as in the kernel for tensor cores: to [n, rows, places] = weights^T [rows, taps * c] *
//  patches [taps * c, n * places].  A block computes a tile of ROWS channels and 128 places (output positions), of
//  which a thread has 8 x 8 (4 x 8 if ROWS is 32).  The patches are not stored in memory: eight rows of the inner
//  dimension are read into shared memory while the previous eight are multiplied.  A thread reads elements of only one
//  place.  All threads of a warp read the same tap and channel, and the tap's position is computed once for all
//  channels.  The speed is limited by the multiply-adds: 64 for 16 numbers from shared memory.

enum { OPDI_CU_IM_PLACES = 128, OPDI_CU_IM_K = 8 };
#define OPDI_CU_IM_THREADS(rows) ((rows) == 128 ? 256 : 128)
/* The matrix product that the kernel computes. */
struct opdi_cu_im {
    opdi_cu_conv q;
    int channels, rows, padded;                   /* channels: read, per group; rows: channels written, per group;
                                                     padded: rows, rounded up to a multiple of ROWS */
    int tiles;                                    /* tiles of rows, per group */
    int from_area, area, places;                 /* number of positions: from_area: of an image that is read; area: of
                                                    an image that is written; places: of all images that are written */
    bool back;                                    /* true: computes gx from y */
};
/* to[g, t, c, r] is the weight of tap t from input channel c to output channel r.  For r >= `rows`, it is padding and
   0. */
static __global__ void opdi_cu_im_weights_kernel(opdi_cu_im m, const float *w, float *to, int64_t all) {
    const int taps = (int)opdi_cu_volume(m.q.k), cg = m.back ? m.rows : m.channels;
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int r = (int)(i % m.padded);
        const int64_t rest = i / m.padded, g = rest / m.channels / taps;
        const int c = (int)(rest % m.channels), t = (int)(rest / m.channels % taps);
        const int64_t o = g * (m.q.oc / m.q.groups) + (m.back ? c : r);
        to[i] = r < m.rows ? w[(o * cg + (m.back ? r : c)) * taps + t] : 0.0f;
    }
}
template <int ROWS, bool BACK>
__global__ void __launch_bounds__(OPDI_CU_IM_THREADS(ROWS), ROWS == 128 ? 2 : BACK ? 3 : 4)
    opdi_cu_im_kernel(opdi_cu_im m, const float *from, const float *weights, const float *bias, float *to) {
    enum { THREADS = OPDI_CU_IM_THREADS(ROWS), OWN = ROWS == 32 ? 4 : 8, K = OPDI_CU_IM_K, P = OPDI_CU_IM_PLACES };
    enum { LOADS = K * P / THREADS, QUADS = ROWS / 4 };           /* loads of a thread; groups of four in a row of
                                                                     weights */
    typedef opdi_cu_vector<float, 4> quad;
    __shared__ __align__(16) float a[2][K][ROWS], b[2][K][P];
    const int tid = (int)threadIdx.x, group = (int)blockIdx.z;
    const int row = (int)(blockIdx.x % (unsigned)m.tiles) * ROWS, place = (int)(blockIdx.x / (unsigned)m.tiles) * P;
    const int taps = (int)opdi_cu_volume(m.q.k), inner = taps * m.channels;
    /* this thread reads place `mine`, and LOADS of the K rows of a stage, from row `first` on */
    const int mine = place + tid % P, first = tid / P * LOADS;
    const int n = mine / m.area;
    int at[3], tap[3] = {0, 0, 0}, c = first, k = first;
    opdi_cu_conv_place<BACK>(m.q, mine - n * m.area, at);
    const float *source = from + ((int64_t)n * m.q.groups + group) * m.channels * m.from_area;
    const float *weight = weights + (int64_t)group * inner * m.padded + row;
    float held[LOADS], sums[OWN][8];
    quad four = {{0, 0, 0, 0}};
    int reads = -1;
    bool moved = true;                            /* c belongs to a new tap, whose position has not been computed yet */
    const int x = tid % 16, y = tid / 16;        /* this thread has places x * 4 .. and 64 + x * 4 .., and rows y * 4
                                                    .. */
    OPDI_CU_UNROLL
    for (int i = 0; i < OWN; i++) {
        OPDI_CU_UNROLL
        for (int j = 0; j < 8; j++) { sums[i][j] = 0; }
    }
    /* stage s is multiplied while stage s + 1 is read */
    const int stages = (inner + K - 1) / K;
    OPDI_CU_ROLLED
    for (int s = -1; s < stages; s++) {
        const bool more = s + 1 < stages;
        if (more) {
            OPDI_CU_UNROLL
            for (int i = 0; i < LOADS; i++) {
                while (c >= m.channels) {
                    c -= m.channels;
                    moved = true;
                    if (++tap[2] == m.q.k[2]) { tap[2] = 0; if (++tap[1] == m.q.k[1]) { tap[1] = 0; tap[0]++; } }
                }
                if (moved) { reads = mine < m.places ? opdi_cu_conv_reads<BACK>(m.q, at, tap) : -1; moved = false; }
                held[i] = k < inner && reads >= 0 ? source[c * m.from_area + reads] : 0.0f;
                c++; k++;
            }
            c += K - LOADS; k += K - LOADS;
            const int kk = (s + 1) * K + tid / QUADS;
            if (tid < K * QUADS) {
                four = kk < inner ? opdi_cu_load_vector<4>(weight + (int64_t)kk * m.padded + tid % QUADS * 4)
                    : quad{{0, 0, 0, 0}};
            }
        }
        if (s >= 0) {
            const int h = s & 1;
            OPDI_CU_UNROLL
            for (int kk = 0; kk < K; kk++) {
                quad u[OWN / 4], v[2];
                OPDI_CU_UNROLL
                for (int i = 0; i < OWN / 4; i++) { u[i] = opdi_cu_load_vector<4>(&a[h][kk][i * (ROWS / 2) + y * 4]); }
                OPDI_CU_UNROLL
                for (int i = 0; i < 2; i++) { v[i] = opdi_cu_load_vector<4>(&b[h][kk][i * 64 + x * 4]); }
                OPDI_CU_UNROLL
                for (int i = 0; i < OWN; i++) {
                    OPDI_CU_UNROLL
                    for (int j = 0; j < 8; j++) { sums[i][j] += u[i / 4].at[i % 4] * v[j / 4].at[j % 4]; }
                }
            }
        }
        if (more) {
            const int h = (s + 1) & 1;
            OPDI_CU_UNROLL
            for (int i = 0; i < LOADS; i++) { b[h][first + i][tid % P] = held[i]; }
            if (tid < K * QUADS) { opdi_cu_store_vector<4>(&a[h][tid / QUADS][tid % QUADS * 4], four); }
        }
        __syncthreads();
    }
    /* this thread has 4 rows from y * 4 on, 4 more in the lower half of the tile unless ROWS is 32, and 4 places in
       each half */
    const bool whole = m.area % 4 == 0 && opdi_cu_aligned(to);
    OPDI_CU_UNROLL
    for (int j = 0; j < 8; j += 4) {
        const int p = place + j * 16 + x * 4;
        OPDI_CU_UNROLL
        for (int i = 0; i < OWN; i++) {
            const int r = row + i / 4 * (ROWS / 2) + y * 4 + i % 4;
            if (r >= m.rows) { continue; }
            const float more = bias ? bias[group * m.rows + r] : 0.0f;
            if (whole) {
                if (p >= m.places) { continue; }
                const int image = p / m.area;
                float *put = to + (((int64_t)image * m.q.groups + group) * m.rows + r) * m.area + (p - image * m.area);
                quad sum;
                OPDI_CU_UNROLL
                for (int e = 0; e < 4; e++) { sum.at[e] = sums[i][j + e] + more; }
                opdi_cu_store_vector<4>(put, sum);
                continue;
            }
            OPDI_CU_UNROLL
            for (int e = 0; e < 4; e++) {
                const int image = (p + e) / m.area;
                if (p + e >= m.places) { break; }
                to[(((int64_t)image * m.q.groups + group) * m.rows + r) * m.area + (p + e - image * m.area)] =
                    sums[i][j + e] + more;
            }
        }
    }
}
/* Returns the height ROWS of a tile for a product with `rows` output channels. */
static int opdi_cu_im_tile(int64_t rows) { return rows > 64 ? 128 : rows > 32 ? 64 : 32; }
/* Returns whether the float32 kernel is worth using: the product keeps most multiprocessors busy, and its places can be
   counted in 32 bits. */
static bool opdi_cu_im_fits(const opdi_cu_conv *q, int what) {
    const bool back = what == OPDI_CU_CONV_GX;
    const int64_t rows = (back ? q->c : q->oc) / q->groups, channels = (back ? q->oc : q->c) / q->groups;
    const int64_t in = opdi_cu_volume(q->in), out = opdi_cu_volume(q->out), taps = opdi_cu_volume(q->k);
    const int64_t tile = opdi_cu_im_tile(rows);
    const int64_t blocks = opdi_cu_ceil(q->n * (back ? in : out), OPDI_CU_IM_PLACES) * opdi_cu_ceil(rows, tile) *
        q->groups;
    return what != OPDI_CU_CONV_GW && q->groups <= 65535 && rows >= 8 && (channels >= 4 || q->groups == 1) &&
        !opdi_cu_conv_is_product(q) && blocks >= opdi_cu_properties()->multiprocessors &&
        channels * (back ? out : in) < INT32_MAX && q->n * (back ? in : out) < INT32_MAX - OPDI_CU_IM_PLACES &&
        channels * taps < (1 << 24) && blocks / q->groups < INT32_MAX;
}
/* Computes y = conv(x, w) + bias, or gx from gy, as `what` says.  `from` is read and `to` is written; both are
   contiguous.  Returns 0, or -1 and sets an error. */
static int opdi_cu_conv_im(const opdi_cu_conv *q, int what, const float *from, const float *w, const float *bias,
    float *to) {
    opdi_cu_im m;
    m.q = *q;
    m.back = what == OPDI_CU_CONV_GX;
    m.channels = (int)((m.back ? q->oc : q->c) / q->groups);
    m.rows = (int)((m.back ? q->c : q->oc) / q->groups);
    m.from_area = (int)opdi_cu_volume(m.back ? q->out : q->in);
    m.area = (int)opdi_cu_volume(m.back ? q->in : q->out);
    m.places = (int)(q->n * m.area);
    const int tile = opdi_cu_im_tile(m.rows);
    m.tiles = (int)opdi_cu_ceil(m.rows, tile);
    m.padded = m.tiles * tile;
    const int64_t all = q->groups * opdi_cu_volume(q->k) * m.channels * m.padded;
    float *turned = static_cast<float *>(opdi_cu_scratch(all * 4));
    if (!turned || opdi_cu_launch(opdi_cu_im_weights_kernel, opdi_cu_grid(all, 256), dim3(256), 0, m, w, turned, all)) {
        return -1;
    }
    const dim3 grid((unsigned)(opdi_cu_ceil(m.places, OPDI_CU_IM_PLACES) * m.tiles), 1, (unsigned)q->groups);
    return opdi_cu_launch(m.back ? tile == 128 ? opdi_cu_im_kernel<128, true> : tile == 64 ? opdi_cu_im_kernel<64, true>
                                                                                       : opdi_cu_im_kernel<32, true>
                              : tile == 128 ? opdi_cu_im_kernel<128, false> : tile == 64 ? opdi_cu_im_kernel<64, false>
                                                                                         : opdi_cu_im_kernel<32, false>,
                          grid, dim3(OPDI_CU_IM_THREADS(tile)), 0, m, from, (const float *)turned, bias, to);
}

//== convolutions on tensor cores ======================================================================================
//
//  y [pixels, oc] = patches [pixels, taps * c] * w^T, for float16 and bfloat16, and for float32 in TF32.  A block
//  computes a tile of pixels and channels; an opdi_cu_tc_shape has the sizes.  Channels are the last dim, and
//  padded to a multiple of 16 bytes, so that 16 bytes belong to one tap.  A stage is 64 or 128 bytes of the inner
//  dimension.  Stages are copied into shared memory without passing through registers (from compute capability 8.0
//  on), some stages ahead of the one that is multiplied, with zeros for positions outside of the image.  Offsets that
//  are the same for all taps of a pixel are computed before the loop.  Most pixels of a stage have already been read
//  for the previous tap, so they come from L1 or L2.
//
//  A warp multiplies 64 x 64 (or 64 x 32) elements of a tile: for each 16 bytes of the inner dimension, it reads 2 KiB
//  from shared memory for 65,536 operations, so that the tensor cores, not shared memory, limit the speed.

/* Whether products of T were compiled: products of bfloat16 exist only for compute capability 8.0 or newer.  The host
   calls opdi_cu_tc_compiled to find out.  A kernel without compiled products traps. */
template <typename T> struct opdi_cu_tc_there {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    enum { yes = std::is_same<T, opdi_cu_f16>::value };
#else
    enum { yes = true };
#endif
};
#if defined(OPD_CUDA_EMULATED)
#define OPDI_CU_TC_STOP(T) if (!std::is_same<T, opdi_cu_f16>::value && opd_emu::compiled() < 80) { __trap(); }
#else
#define OPDI_CU_TC_STOP(T) if constexpr (!opdi_cu_tc_there<T>::yes) { __trap(); }
#endif
/* opdi_cu_stage_16 begins to copy 16 bytes from device memory to shared memory or, if `there` is false, writes zeros.
   opdi_cu_stages_commit ends a stage.  opdi_cu_stages_wait<n> waits until all stages but the last n have arrived for
   the calling thread. */
__device__ __forceinline__ void opdi_cu_stage_16(void *to, const void *from, bool there) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" : : "r"((unsigned)__cvta_generic_to_shared(to)),
                 "l"(from), "r"(there ? 16 : 0) : "memory");
#else
    const uint4 none = {0, 0, 0, 0};
    *reinterpret_cast<uint4 *>(to) = there ? *reinterpret_cast<const uint4 *>(from) : none;
#endif
}
__device__ __forceinline__ void opdi_cu_stages_commit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}
template <int N> __device__ __forceinline__ void opdi_cu_stages_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" : : "n"(N) : "memory");
#endif
}

/* Packs two 16-bit floats into one word, `a` in the low half. */
__device__ __forceinline__ uint32_t opdi_cu_two(opdi_cu_f16 a, opdi_cu_f16 b) {
    return (uint32_t)__half_as_ushort(b) << 16 | __half_as_ushort(a);
}
__device__ __forceinline__ uint32_t opdi_cu_two(opdi_cu_bf16 a, opdi_cu_bf16 b) {
    return (uint32_t)__bfloat16_as_ushort(b) << 16 | __bfloat16_as_ushort(a);
}
/* Products of 16 x 16 x 16 by a warp: s += a * b, for tiles in shared memory.  a is [m][k] (if TURNED, [k][m]) and b is
   [n][k] (if TURNED, [k][n]); rows are `ld` elements apart.  place_a and place_b return the distance from a tile's
   first element to the element that a lane loads.  From compute capability 8.0 on, the instructions are used directly,
   because CUDA's fragments compute addresses for each load, and load bfloat16 word by word. */
template <typename T, bool TURNED> struct opdi_cu_mma {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    struct Part { uint32_t r[4]; };
    typedef Part A;
    typedef Part B;
    struct S { float x[8]; };                     /* two tiles of 16 x 8 */
    enum { K = 16 };
    static __device__ __forceinline__ int place_a(int ld) {
        const int lane = threadIdx.x % 32, outer = lane / 16 * 8, inner = lane % 16;
        return TURNED ? (outer + lane % 8) * ld + inner / 8 * 8 : inner * ld + outer;
    }
    static __device__ __forceinline__ int place_b(int ld) {
        const int lane = threadIdx.x % 32, outer = lane / 16 * 8, half = lane / 8 % 2 * 8;
        return TURNED ? (half + lane % 8) * ld + outer : (outer + lane % 8) * ld + half;
    }
    static __device__ __forceinline__ void load(Part &p, const T *from, int) {
        const unsigned at = (unsigned)__cvta_generic_to_shared(from);
        if (TURNED) {
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(p.r[0]), "=r"(p.r[1]), "=r"(p.r[2]), "=r"(p.r[3]) : "r"(at) : "memory");
        } else {
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(p.r[0]), "=r"(p.r[1]), "=r"(p.r[2]), "=r"(p.r[3]) : "r"(at) : "memory");
        }
    }
    static __device__ __forceinline__ void zero(S &s) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) { s.x[i] = 0; }
    }
#define OPDI_CU_MMA(type) \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type ".f32 " \
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]) \
                 : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[2 * i]), "r"(b.r[2 * i + 1]));
    template <typename OfB> static __device__ __forceinline__ void add(S &s, const A &a, const OfB &b) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 2; i++) {
            float *x = s.x + 4 * i;
            if (std::is_same<T, opdi_cu_f16>::value) { OPDI_CU_MMA("f16") } else { OPDI_CU_MMA("bf16") }
        }
    }
    /* row(i) and column(i) are the position of element i of a lane's sums; of_two(i) tells in which of the lane's two
       rows it is.  An even element and the next element are neighbours in a row. */
    static __device__ __forceinline__ int row(int i) { return threadIdx.x % 32 / 4 + i / 2 % 2 * 8; }
    static __device__ __forceinline__ int column(int i) { return threadIdx.x % 4 * 2 + i % 2 + i / 4 * 8; }
    static __device__ __forceinline__ constexpr int of_two(int i) { return i / 2 % 2; }
    /* row_most and row_sum return the maximum and the sum of `v` over the lanes that have elements of the same row. */
    static __device__ __forceinline__ float row_most(float v) {
        v = fmaxf(v, __shfl_xor_sync(OPDI_CU_ALL_LANES, v, 1));
        return fmaxf(v, __shfl_xor_sync(OPDI_CU_ALL_LANES, v, 2));
    }
    static __device__ __forceinline__ float row_sum(float v) {
        v += __shfl_xor_sync(OPDI_CU_ALL_LANES, v, 1);
        return v + __shfl_xor_sync(OPDI_CU_ALL_LANES, v, 2);
    }
    /* Stores element (m, n) of the sums in to[m * down + n * across]. */
    static __device__ __forceinline__ void store(float *to, const S &s, int down, int across) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) { to[row(i) * down + column(i) * across] = s.x[i]; }
    }
    /* Rounds the sums to T and makes them the first factor of another product. */
    static __device__ __forceinline__ void turn(A &a, const S &s) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 4; i++) {
            a.r[i] = opdi_cu_two(opdi_cu_cast<T>(s.x[2 * i]), opdi_cu_cast<T>(s.x[2 * i + 1]));
        }
    }
#else
    typedef nvcuda::wmma::row_major R;
    typedef nvcuda::wmma::col_major C;
    typedef typename std::conditional<TURNED, C, R>::type OfA;
    typedef typename std::conditional<TURNED, R, C>::type OfB;
    typedef nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, 16, 16, 16, T, OfA> A;
    typedef nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, 16, 16, 16, T, OfB> B;
    typedef nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> S;
    enum { K = 16 };
    static __device__ __forceinline__ int place_a(int) { return 0; }
    static __device__ __forceinline__ int place_b(int) { return 0; }
    template <typename P> static __device__ __forceinline__ void load(P &p, const T *from, int ld) {
        nvcuda::wmma::load_matrix_sync(p, from, (unsigned)ld);
    }
    static __device__ __forceinline__ void zero(S &s) { nvcuda::wmma::fill_fragment(s, 0.0f); }
    template <typename OtherB> static __device__ __forceinline__ void add(S &s, const A &a, const OtherB &b) {
        nvcuda::wmma::mma_sync(s, a, b, s);
    }
    /* These functions describe the emulation's layout of sums.  They are not called for older GPUs. */
    static __device__ __forceinline__ int row(int) { return threadIdx.x % 32 / 2; }
    static __device__ __forceinline__ int column(int i) { return threadIdx.x % 2 * 8 + i; }
    static __device__ __forceinline__ constexpr int of_two(int) { return 0; }
    static __device__ __forceinline__ float row_most(float v) {
        return fmaxf(v, __shfl_xor_sync(OPDI_CU_ALL_LANES, v, 1));
    }
    static __device__ __forceinline__ float row_sum(float v) { return v + __shfl_xor_sync(OPDI_CU_ALL_LANES, v, 1); }
    static __device__ __forceinline__ void turn(A &a, const S &s) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) { a.x[i] = opdi_cu_cast<T>(s.x[i]); }
    }
    static __device__ __forceinline__ void store(float *to, const S &s, int down, int across) {
        if (across == 1) { nvcuda::wmma::store_matrix_sync(to, s, (unsigned)down, nvcuda::wmma::mem_row_major); }
        else { nvcuda::wmma::store_matrix_sync(to, s, (unsigned)across, nvcuda::wmma::mem_col_major); }
    }
#endif
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/* Products of float32 in TF32: 16 x 16 x 8, with the bytes of a and b in the places where 16-bit floats have them. */
template <> struct opdi_cu_mma<float, false> : opdi_cu_mma<opdi_cu_bf16, false> {
    enum { K = 8 };
    static __device__ __forceinline__ void add(S &s, const A &a, const B &b) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 2; i++) {
            float *x = s.x + 4 * i;
            asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                         "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])
                         : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[2 * i]), "r"(b.r[2 * i + 1]));
        }
    }
};
#endif
/* Rows of BYTES bytes (64, or a multiple of 128) in shared memory.  at(row, chunk) returns where the 16 bytes number
   `chunk` of a row are.  From compute capability 8.0 on, the chunks of a row are permuted by the row's number, so that
   the 16 bytes of eight rows below each other lie in different banks.  Before, rows are padded. */
template <int BYTES> struct opdi_cu_tc_rows {
#if (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800) || defined(OPD_CUDA_EMULATED)
    enum { PITCH = BYTES };
    static __device__ __forceinline__ int swap(int row) { return BYTES == 64 ? row >> 1 & 3 : row & 7; }
#else
    enum { PITCH = BYTES + 16 };
    static __device__ __forceinline__ int swap(int) { return 0; }
#endif
    static __device__ __forceinline__ int at(int row, int chunk) { return row * PITCH + ((chunk ^ swap(row)) << 4); }
};
/* A warp's view of a factor in shared memory, of which it loads parts of 16 x 16 elements (16 x 8 of float32).  The
   rows of the memory are rows of the factor (if TURNED, of the inner dimension).  `first` is the row (if TURNED, the
   column) of the memory at which the warp's part begins, a multiple of 32.  load() loads the part number i below each
   other (if TURNED, beside) and number l of the inner dimension, in a stage that begins `stage` bytes from `memory`. */
template <typename T, bool TURNED, int BYTES, bool B> struct opdi_cu_tc_factor {
    typedef opdi_cu_tc_rows<BYTES> R;
    typedef opdi_cu_mma<T, TURNED> M;
    typedef typename std::conditional<B, typename M::B, typename M::A>::type Part;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    unsigned base;
    int turn;
    __device__ __forceinline__ opdi_cu_tc_factor(const unsigned char *memory, int first) {
        const int lane = threadIdx.x % 32, low = lane % 8, mid = lane / 8 % 2, high = lane / 16;
        const int row = low + 8 * (B != TURNED ? high : mid), half = B != TURNED ? mid : high;
        base = (unsigned)__cvta_generic_to_shared(memory) + (unsigned)((TURNED ? row : row + first) * R::PITCH);
        turn = (half ^ R::swap(row)) << 4;
        if (TURNED) { base += (unsigned)(first / 64 * 128); turn ^= first % 64 * 2; }
    }
    __device__ __forceinline__ void load(Part &p, int stage, int i, int l) const {
        const unsigned at = base + (unsigned)(stage + 16 * (TURNED ? l : i) * R::PITCH) +
            (unsigned)(turn ^ (TURNED ? i : l) << 5);
        if (TURNED) {
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(p.r[0]), "=r"(p.r[1]), "=r"(p.r[2]), "=r"(p.r[3]) : "r"(at) : "memory");
        } else {
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                         : "=r"(p.r[0]), "=r"(p.r[1]), "=r"(p.r[2]), "=r"(p.r[3]) : "r"(at) : "memory");
        }
    }
#else
    const unsigned char *memory;
    int first;
    __device__ __forceinline__ opdi_cu_tc_factor(const unsigned char *memory, int first) :
        memory(memory), first(first) {}
    __device__ __forceinline__ void load(Part &p, int stage, int i, int l) const {
#if defined(OPD_CUDA_EMULATED)
        for (int k = 0; k < 8; k++) {
            const int e = 8 * (int)(threadIdx.x % 32) + k, outer = first + 16 * i + (B ? e % 16 : e / 16),
                inner = 16 * l + (B ? e / 16 : e % 16), row = TURNED ? inner : outer, column = TURNED ? outer : inner;
            const T *chunk = (const T *)(memory + stage + R::at(row, column * (int)sizeof(T) / 16));
            p.x[k] = chunk[column % (16 / (int)sizeof(T))];
        }
#else
        M::load(p, (const T *)(memory + stage + (TURNED ? 16 * l : first + 16 * i) * R::PITCH) +
                (TURNED ? first + 16 * i : 16 * l), R::PITCH / (int)sizeof(T));
#endif
    }
#endif
};
//== layouts for tensor cores ==========================================================================================

/* Returns v as tensor cores read it: a float is rounded to TF32, which has 10 bits of mantissa. */
template <typename T> __device__ __forceinline__ T opdi_cu_tc_rounded(T v) { return v; }
template <> __device__ __forceinline__ float opdi_cu_tc_rounded<float>(float v) {
    const uint32_t bits = __float_as_uint(v);
    return (bits & 0x7f800000u) == 0x7f800000u ? v : __uint_as_float((bits + 0x1000u) & 0xffffe000u);
}
/* Sets to[n, i, g, c] to from[n, g, c, i], or to 0 for c from cg to cp - 1. */
template <typename T> __global__ void __launch_bounds__(256)
opdi_cu_channels_last_kernel(const T *from, T *to, int64_t n, int64_t groups, int64_t cg, int64_t cp, int64_t area) {
    constexpr int S = sizeof(T) == 2 ? 64 : 32, rows = 256 / S;
    __shared__ T tile[S][S + 4 / sizeof(T)];
    const int x = threadIdx.x % S, y = threadIdx.x / S;
    const int64_t tiles_i = opdi_cu_ceil(area, S), tiles_c = opdi_cu_ceil(cp, S), all = n * groups * tiles_i * tiles_c;
    for (int64_t b = blockIdx.x; b < all; b += gridDim.x) {
        const int64_t i0 = b % tiles_i * S, q = b / tiles_i, c0 = q % tiles_c * S, ng = q / tiles_c;
        const T *in = from + (ng * cg + c0) * area + i0 + x;
        T *out = to + ((ng / groups * area + i0) * groups + ng % groups) * cp + c0 + x;
        T v[S / rows];
        OPDI_CU_UNROLL
        for (int k = 0, r = y; k < S / rows; k++, r += rows) {
            v[k] = T(0.0f);
            if (c0 + r < cg && i0 + x < area) { v[k] = opdi_cu_tc_rounded(in[r * area]); }
        }
        __syncthreads();
        OPDI_CU_UNROLL
        for (int k = 0, r = y; k < S / rows; k++, r += rows) { tile[r][x] = v[k]; }
        __syncthreads();
        OPDI_CU_UNROLL
        for (int r = y; r < S; r += rows) {
            if (c0 + x < cp && i0 + r < area) { out[r * groups * cp] = tile[x][r]; }
        }
    }
}
/* Sets to[line, c] to the element c of line number `line`, or to 0 for c from cg to cp - 1.  The line begins at
   from + line / area * image + line % area * pixel, and its elements are `apart` elements from each other.  A thread
   writes 16 bytes. */
struct opdi_cu_padded_lines { int64_t lines, area, image, pixel, apart, cg, cp; };
template <typename T> __global__ void opdi_cu_channels_padded_kernel(const T *from, T *to, opdi_cu_padded_lines l) {
    constexpr int E = 16 / sizeof(T);
    const int64_t step = (int64_t)gridDim.x * blockDim.x, all = l.lines * (l.cp / E);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t line = i / (l.cp / E), c = i % (l.cp / E) * E;
        const T *in = from + line / l.area * l.image + line % l.area * l.pixel + c * l.apart;
        opdi_cu_vector<T, E> v;
        OPDI_CU_UNROLL
        for (int e = 0; e < E; e++) { v.at[e] = c + e < l.cg ? opdi_cu_tc_rounded(in[e * l.apart]) : T(0.0f); }
        opdi_cu_store_vector<E>(to + i * E, v);
    }
}
/* Returns x [n, groups * cg, image] in channels-last order (if `last` is true, x has this order), with each group's
   channels padded to a multiple of 16 bytes: x itself if it needs no change.  Returns NULL and sets an error if it
   fails. */
template <typename T> static const T *opdi_cu_conv_turned(const opdi_cu_conv *q, const T *x, bool last, int64_t cg,
                                                         int64_t image) {
    constexpr int E = 16 / (int)sizeof(T);
    const int64_t cp = opdi_cu_ceil(cg, E) * E, side = sizeof(T) == 2 ? 64 : 32;
    const int64_t tiles = q->n * q->groups * opdi_cu_ceil(image, side) * opdi_cu_ceil(cp, side);
    const opdi_cu_padded_lines l = last ? opdi_cu_padded_lines{q->n * image * q->groups, 1, cg, 0, 1, cg, cp}
        : opdi_cu_padded_lines{q->n * image, image, cg * image, 1, image, cg, cp};
    if (last && cp == cg && sizeof(T) == 2 && opdi_cu_aligned(x)) { return x; }
    T *to = static_cast<T *>(opdi_cu_scratch(q->n * image * q->groups * cp * (int64_t)sizeof(T)));
    if (!to) { return NULL; }
    return (last || (cp == E && q->groups == 1)
            ? opdi_cu_launch(opdi_cu_channels_padded_kernel<T>, opdi_cu_grid(l.lines * (cp / E), 256), dim3(256), 0, x,
                             to, l)
            : opdi_cu_launch(opdi_cu_channels_last_kernel<T>, opdi_cu_grid_rows(tiles), dim3(256), 0, x, to, q->n,
                             q->groups, cg, cp, image)) == 0 ? to : NULL;
}
/* A convolution in the form that the tiles compute.  q is a plain convolution (its q.p may be negative).  Its result's
   position o along dim d is position o * step[d] + first[d] of a result of size full[d]: in the gradient of a strided
   convolution, only every step[d]-th element is computed, by the taps that reach it.  Tap number t of q is tap number
   tap[d] + t * along[d] of the weights (along is negative if taps are reversed). */
struct opdi_cu_tc_job {
    opdi_cu_conv q;
    opdi_cu_pointwise_divider w, h, z;            /* q.out[2], q.out[1], q.out[0] */
    int full[3], step[3], first[3], tap[3], along[3], k[3];                  /* k: taps of the weights */
    int cp, tiles;                                /* channels of a group of x, padded; tiles side by side in y */
    bool spread, back, w_last;                    /* spread: some step is not 1; back: input and output channels of the
                                                     weights are exchanged; w_last: the weights are channels last */
};
/* Sets to[r, t, c] to the weight from input channel c to output channel r, for tap t of the job.  Elements from `inner`
   to cp - 1 are padding and become 0. */
template <typename T> __global__ void opdi_cu_conv_weights_kernel(const __grid_constant__ opdi_cu_tc_job j, const T *w,
                                                                  T *to) {
    const int64_t inner = j.q.c / j.q.groups, outer = j.q.oc / j.q.groups, taps = opdi_cu_volume(j.q.k),
        full = opdi_cu_volume(j.k), all = j.q.oc * taps * j.cp, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t c = i % j.cp, r = i / j.cp / taps;
        const int t = (int)(i / j.cp % taps), w2 = t % j.q.k[2], h = t / j.q.k[2] % j.q.k[1],
            z = t / j.q.k[2] / j.q.k[1];
        const int64_t tap = ((int64_t)(j.tap[0] + z * j.along[0]) * j.k[1] + j.tap[1] + h * j.along[1]) * j.k[2] +
            j.tap[2] + w2 * j.along[2];
        const int64_t o = j.back ? r / outer * inner + c : r, channel = j.back ? r % outer : c,
            channels = j.back ? outer : inner;
        const int64_t at = j.w_last ? (o * full + tap) * channels + channel : (o * channels + channel) * full + tap;
        to[i] = c < inner ? opdi_cu_tc_rounded(w[at]) : T(0.0f);
    }
}

//== tiles of a convolution ============================================================================================

/* The shape of a block's tile: M pixels and N channels, WM and WN of them for a warp; BYTES of the inner dimension in a
   stage; STAGES stages; BLOCKS blocks that fit into a multiprocessor. */
template <int M_, int N_, int WM_, int WN_, int BYTES_, int STAGES_, int BLOCKS_> struct opdi_cu_tc_shape {
    enum { M = M_, N = N_, WM = WM_, WN = WN_, BYTES = BYTES_, STAGES = STAGES_, BLOCKS = BLOCKS_,
           THREADS = M_ / WM_ * (N_ / WN_) * 32 };
    /* Returns the bytes of shared memory for stages or, if it is more, for the tile of sums. */
    static int64_t bytes(bool padded) {
        const int64_t stages = (int64_t)(M + N) * (BYTES + (padded ? 16 : 0)) * STAGES;
        const int64_t last = (int64_t)M * (N + 4) * 4, sums = (int64_t)N * (M + 4) * 4 > last
            ? (int64_t)N * (M + 4) * 4 : last;
        return stages > sums ? stages : sums;
    }
};
/* A row of the matrix of patches: the element that its first tap reads (which may be outside of the image), and a bit
   for each tap that is inside.  Bits 0 to 11 are for the taps along the last dim, 12 to 21 for the dim before, 22 to 30
   for the first. */
#define OPDI_CU_TC_TAPS {9, 10, 12}
struct opdi_cu_pixel { int at; uint32_t inside; };
__device__ __forceinline__ uint32_t opdi_cu_taps_inside(int from, int taps, int apart, int size) {
    uint32_t bits = 0;
    OPDI_CU_ROLLED
    for (int t = 0; t < taps; t++) { bits |= (uint32_t)((unsigned)(from + t * apart) < (unsigned)size) << t; }
    return bits;
}
/* Returns the row of number m; `at` counts pixels of x. */
__device__ __forceinline__ opdi_cu_pixel opdi_cu_pixel_of(const opdi_cu_tc_job &j, uint32_t m, uint32_t pixels) {
    const opdi_cu_conv &q = j.q;
    const uint32_t r = j.w.of(m), plane = j.h.of(r), image = j.z.of(plane);
    const int w = (int)(m - r * j.w.d) * q.s[2] - q.p[2], h = (int)(r - plane * j.h.d) * q.s[1] - q.p[1];
    const int z = (int)(plane - image * j.z.d) * q.s[0] - q.p[0];
    opdi_cu_pixel p;
    p.at = (((int)image * q.in[0] + z) * q.in[1] + h) * q.in[2] + w;
    p.inside = opdi_cu_taps_inside(w, q.k[2], q.d[2], q.in[2]) | opdi_cu_taps_inside(h, q.k[1], q.d[1], q.in[1]) << 12 |
        opdi_cu_taps_inside(z, q.k[0], q.d[0], q.in[0]) << 22;
    if (m >= pixels) { p.inside = 0; }
    return p;
}
/* The position of 16 bytes of channels on their way through the inner dimension: the channel c, the tap z, h, w, the
   distance `at` from the patch's first element to the tap's elements, and the bits of the tap. */
struct opdi_cu_walk {
    int c, z, h, w, at;
    uint32_t bits;
    __device__ __forceinline__ void settle(const opdi_cu_conv &q, int cp, int line) {
        while (c >= cp) {
            c -= cp;
            if (++w == q.k[2]) { w = 0; if (++h == q.k[1]) { h = 0; z++; } }
            at = ((z * q.d[0] * q.in[1] + h * q.d[1]) * q.in[2] + w * q.d[2]) * line;
            bits = 1u << w | 1u << (12 + h) | 1u << (22 + z);
        }
    }
};
/* Packs eight 16-bit floats or four floats into 16 bytes. */
template <typename T> __device__ __forceinline__ uint4 opdi_cu_packed(const T *v) {
    uint4 all;
    if constexpr (sizeof(T) == 2) {
        all.x = opdi_cu_two(v[0], v[1]); all.y = opdi_cu_two(v[2], v[3]);
        all.z = opdi_cu_two(v[4], v[5]); all.w = opdi_cu_two(v[6], v[7]);
    } else {
        all.x = __float_as_uint(v[0]); all.y = __float_as_uint(v[1]);
        all.z = __float_as_uint(v[2]); all.w = __float_as_uint(v[3]);
    }
    return all;
}
template <typename T> __device__ __forceinline__ void opdi_cu_store_16(T *to, uint4 all) {
#if defined(OPD_CUDA_EMULATED)
    *reinterpret_cast<uint4 *>(to) = all;
#else                                             /* assembly, because the compiler would split an ordinary store */
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" : : "l"(__cvta_generic_to_global(to)),
                 "r"(all.x), "r"(all.y), "r"(all.z), "r"(all.w) : "memory");
#endif
}
/* Returns the position in the full result of pixel m of the job's result. */
__device__ __forceinline__ int64_t opdi_cu_tc_place(const opdi_cu_tc_job &j, int m) {
    const uint32_t r = j.w.of((uint32_t)m), plane = j.h.of(r), image = j.z.of(plane);
    const int w = (m - (int)(r * j.w.d)) * j.step[2] + j.first[2];
    const int h = (int)(r - plane * j.h.d) * j.step[1] + j.first[1];
    const int z = (int)(plane - image * j.z.d) * j.step[0] + j.first[0];
    return (((int64_t)image * j.full[0] + z) * j.full[1] + h) * j.full[2] + w;
}
/* Writes a tile of sums, which is in shared memory, to y: `out` is [M][N + 4] if LAST, otherwise [N][M + 4].  Eight (or
   four) neighbouring channels or pixels are written by one store if they are aligned. */
template <typename T, class S, bool LAST>
__device__ __forceinline__ void opdi_cu_tc_put(const opdi_cu_tc_job &j, const float *out, const T *bias, T *y, int m0,
                                               int n0) {
    constexpr int E = 16 / sizeof(T), ld = LAST ? S::N + 4 : S::M + 4, across = (LAST ? S::N : S::M) / E;
    const opdi_cu_conv &q = j.q;
    const int og = (int)(q.oc / q.groups), group = blockIdx.z, pixels = (int)(q.n * opdi_cu_volume(q.out));
    const int area = (int)opdi_cu_volume(j.full);
    const bool whole = opdi_cu_aligned(y) && (LAST ? og % E == 0 : area % E == 0 && !j.spread);
    OPDI_CU_ROLLED
    for (int i = threadIdx.x; i < S::M * S::N / E; i += S::THREADS) {
        const int r = i / across, c = i % across * E, n = n0 + (LAST ? c : r), m = m0 + (LAST ? r : c);
        T v[E];
        if (n >= og || m >= pixels) { continue; }
        OPDI_CU_UNROLL
        for (int k = 0; k < E; k++) {
            const int o = LAST && n + k < og ? n + k : n;
            v[k] = opdi_cu_cast<T>(out[r * ld + c + k] + (bias ? opdi_cu_load<float>(bias + group * og + o) : 0.0f));
        }
        const int64_t o = (int64_t)group * og + n;
        if (whole) {
            const int64_t place = j.spread ? opdi_cu_tc_place(j, m) : m;
            const int image = LAST ? 0 : m / area;
            opdi_cu_store_16(y + (LAST ? place * q.oc + o : (image * q.oc + o) * area + (m - image * area)),
                             opdi_cu_packed(v));
            continue;
        }
        OPDI_CU_UNROLL
        for (int k = 0; k < E; k++) {
            const int pixel = LAST ? m : m + k;
            if (LAST ? n + k >= og : pixel >= pixels) { continue; }
            const int64_t place = j.spread ? opdi_cu_tc_place(j, pixel) : pixel;
            y[LAST ? place * q.oc + o + k : (place / area * q.oc + o) * area + place % area] = v[k];
        }
    }
}
/* Computes a tile of y.  x [n, in, groups, cp] and w [oc, taps, cp] have padded channels.  y is [n, oc, full] or, if
   LAST, [n, full, oc]. */
template <typename T, class S, bool LAST>
__device__ __forceinline__ void opdi_cu_conv_tile(const opdi_cu_tc_job &j, const T *x, const T *w, const T *bias, T *y,
                                                  unsigned char *scratch) {
    typedef opdi_cu_mma<T, false> M;
    typedef opdi_cu_tc_rows<S::BYTES> R;
    constexpr int E = 16 / sizeof(T), K = S::BYTES / sizeof(T), CHUNKS = S::BYTES / 16, ROWS = S::THREADS / CHUNKS,
        A = S::M / ROWS, B = S::N / ROWS, stage = (S::M + S::N) * R::PITCH, I = S::WM / 16, J = S::WN / 16;
    const opdi_cu_conv &q = j.q;
    const int t = threadIdx.x, warp = t / 32, og = (int)(q.oc / q.groups), group = blockIdx.z, cp = j.cp,
        line = (int)q.groups * cp;
    const int m0 = (int)(blockIdx.x / j.tiles) * S::M, n0 = (int)(blockIdx.x % j.tiles) * S::N;
    const int pixels = (int)(q.n * opdi_cu_volume(q.out)), kk = (int)opdi_cu_volume(q.k) * cp;
    const int chunk = t % CHUNKS * E, row = t / CHUNKS;           /* this thread copies rows row, row + ROWS, ... of
                                                                     patches and weights */
    const int wm = warp % (S::M / S::WM) * S::WM, wn = warp / (S::M / S::WM) * S::WN, steps = (kk + K - 1) / K;
    typename M::S sum[I][J];
    opdi_cu_pixel px[A];
    opdi_cu_walk walk = {chunk, 0, 0, 0, 0, 1u | 1u << 12 | 1u << 22};
    const T *wrow = w + (int64_t)(group * og + n0 + row) * kk + chunk;
    unsigned char *to = scratch + R::at(row, t % CHUNKS);         /* this thread's part of the next stage */
    int left = kk - chunk, slot = 0;
    OPDI_CU_UNROLL
    for (int i = 0; i < A; i++) {
        px[i] = opdi_cu_pixel_of(j, (uint32_t)(m0 + row + ROWS * i), (uint32_t)pixels);
        px[i].at = px[i].at * line + group * cp;
    }
    OPDI_CU_UNROLL
    for (int i = 0; i < I; i++) { for (int k = 0; k < J; k++) { M::zero(sum[i][k]); } }
    const auto bring = [&]() {                    /* begins to copy the next stage, if there is one */
        if (left > -K) {
            const bool tap = left > 0;
            walk.settle(q, cp, line);
            const int at = walk.at + walk.c;
            OPDI_CU_UNROLL
            for (int i = 0; i < A; i++) {
                opdi_cu_stage_16(to + ROWS * i * R::PITCH, x + (px[i].at + at),
                                 tap && (px[i].inside & walk.bits) == walk.bits);
            }
            OPDI_CU_UNROLL
            for (int i = 0; i < B; i++) {
                opdi_cu_stage_16(to + (S::M + ROWS * i) * R::PITCH, wrow + ROWS * i * kk,
                                 tap && n0 + row + ROWS * i < og);
            }
            walk.c += K;
            wrow += K;
            left -= K;
        }
        to += stage;
        if (++slot == S::STAGES) { slot = 0; to -= S::STAGES * stage; }
        opdi_cu_stages_commit();
    };
    for (int s = 0; s < S::STAGES - 1; s++) { bring(); }
    const opdi_cu_tc_factor<T, false, S::BYTES, false> as(scratch, wm);
    const opdi_cu_tc_factor<T, false, S::BYTES, true> bs(scratch + S::M * R::PITCH, wn);
    OPDI_CU_ROLLED
    for (int s = 0, at = 0; s < steps; s++) {
        opdi_cu_stages_wait<S::STAGES - 2>();
        __syncthreads();                          /* all parts of the stage have arrived, and the previous stage is
                                                     finished */
        bring();
        OPDI_CU_UNROLL
        for (int l = 0; l < K / M::K; l++) {
            typename M::A fa[I];
            typename M::B fb[J];
            OPDI_CU_UNROLL
            for (int k = 0; k < J; k++) { bs.load(fb[k], at, k, l); }
            OPDI_CU_UNROLL
            for (int i = 0; i < I; i++) { as.load(fa[i], at, i, l); }
            OPDI_CU_UNROLL
            for (int i = 0; i < I; i++) { for (int k = 0; k < J; k++) { M::add(sum[i][k], fa[i], fb[k]); } }
        }
        at = at == (S::STAGES - 1) * stage ? 0 : at + stage;
    }
    opdi_cu_stages_wait<0>();
    __syncthreads();                              /* the sums take the place of the stages */
    float *out = reinterpret_cast<float *>(scratch);
    constexpr int ld = LAST ? S::N + 4 : S::M + 4;
    OPDI_CU_UNROLL
    for (int i = 0; i < I; i++) {
        OPDI_CU_UNROLL
        for (int k = 0; k < J; k++) {
            if (LAST) { M::store(out + (wm + 16 * i) * ld + wn + 16 * k, sum[i][k], ld, 1); }
            else { M::store(out + (wn + 16 * k) * ld + wm + 16 * i, sum[i][k], 1, ld); }
        }
    }
    __syncthreads();
    opdi_cu_tc_put<T, S, LAST>(j, out, bias, y, m0, n0);
}
template <typename T, class S, bool LAST> __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
opdi_cu_conv_tc_kernel(const __grid_constant__ opdi_cu_tc_job j, const T *x, const T *w, const T *bias, T *y) {
    OPDI_CU_SHARED(scratch);
    OPDI_CU_TC_STOP(T)
    if constexpr (opdi_cu_tc_there<T>::yes) { opdi_cu_conv_tile<T, S, LAST>(j, x, w, bias, y, scratch); }
}

//== tiles of the gradient with respect to weights =====================================================================

/* Computes the gradient with respect to w in parts [split][oc, taps * cp].  Each part is a sum over some of the pixels
   of y [pixels, groups, op] and of the patches of x.  A block computes M output channels and N columns of patches
   (channels of one or several taps), in stages of 32 pixels.  The parts are then added in a fixed order. */
#define OPDI_CU_GW_K 32
template <int M_, int N_, int WM_, int WN_, int STAGES_, int BLOCKS_> struct opdi_cu_gw_shape {
    enum { M = M_, N = N_, WM = WM_, WN = WN_, STAGES = STAGES_, BLOCKS = BLOCKS_,
           THREADS = M_ / WM_ * (N_ / WN_) * 32 };
    static int64_t bytes(bool padded) {
        const int64_t stages = (int64_t)OPDI_CU_GW_K * (2 * (M + N) + (padded ? 32 : 0)) * STAGES,
            sums = (int64_t)M * (N + 4) * 4;
        return stages > sums ? stages : sums;
    }
};
struct opdi_cu_gw { opdi_cu_tc_job j; int op, tiles_o, splits; };
template <typename T, class S>
__device__ __forceinline__ void opdi_cu_conv_gw_tile(const opdi_cu_gw &k, const T *x, const T *y, float *parts,
                                                     unsigned char *scratch) {
    typedef opdi_cu_mma<T, true> M;
    typedef opdi_cu_tc_rows<2 * S::M> RY;
    typedef opdi_cu_tc_rows<2 * S::N> RX;
    constexpr int K = OPDI_CU_GW_K, CY = S::M / 8, CX = S::N / 8, Y = K * CY / S::THREADS, X = K * CX / S::THREADS,
        I = S::WM / 16, J = S::WN / 16, stage = K * (RY::PITCH + RX::PITCH);
    const opdi_cu_conv &q = k.j.q;
    const int t = threadIdx.x, warp = t / 32, group = blockIdx.z, cp = k.j.cp, kk = (int)opdi_cu_volume(q.k) * cp;
    const int o0 = (int)blockIdx.x % k.tiles_o * S::M, c0 = (int)blockIdx.x / k.tiles_o * S::N;
    const int pixels = (int)(q.n * opdi_cu_volume(q.out));
    const int each = ((pixels + k.splits - 1) / k.splits + K - 1) / K * K;
    const int64_t begin = (int64_t)blockIdx.y * each, end = begin + each < pixels ? begin + each : pixels;
    const int steps = begin < end ? (int)((end - begin + K - 1) / K) : 0;
    const int wm = warp % (S::M / S::WM) * S::WM, wn = warp / (S::M / S::WM) * S::WN;
    /* this thread copies 16 bytes of one column of y, and of one column of patches, which belongs to one tap */
    const int oy = o0 + t % CY * 8, column = c0 + t % CX * 8, tap = column < kk ? column / cp : 0,
        c = column - tap * cp;
    const int w = tap % q.k[2], h = tap / q.k[2] % q.k[1], z = tap / q.k[2] / q.k[1];
    const uint32_t bits = 1u << w | 1u << (12 + h) | 1u << (22 + z);
    const int moved = (z * q.d[0] * q.in[1] + h * q.d[1]) * q.in[2] + w * q.d[2];
    const bool o_there = oy < k.op, c_there = column < kk;
    typename M::S sum[I][J];
    OPDI_CU_UNROLL
    for (int i = 0; i < I; i++) { for (int n = 0; n < J; n++) { M::zero(sum[i][n]); } }
    const auto bring = [&](int s) {
        unsigned char *ys = scratch + s % S::STAGES * stage, *xs = ys + K * RY::PITCH;
        if (s < steps) {
            const int64_t first = begin + (int64_t)s * K;
            /* each lane computes one pixel; the others get it from there */
            opdi_cu_pixel mine = opdi_cu_pixel_of(k.j, (uint32_t)(first + t % 32 < end ? first + t % 32 : 0),
                                                  (uint32_t)pixels);
            if (first + t % 32 >= end) { mine.inside = 0; }
            OPDI_CU_UNROLL
            for (int i = 0; i < Y; i++) {
                const int row = t / CY + i * (S::THREADS / CY);
                const bool there = first + row < end && o_there;
                opdi_cu_stage_16(ys + RY::at(row, t % CY),
                                 there ? y + ((first + row) * q.groups + group) * k.op + oy : y, there);
            }
            OPDI_CU_UNROLL
            for (int i = 0; i < X; i++) {
                const int row = t / CX + i * (S::THREADS / CX);
                const int64_t at = __shfl_sync(OPDI_CU_ALL_LANES, mine.at, row) + moved;
                const uint32_t inside = __shfl_sync(OPDI_CU_ALL_LANES, mine.inside, row);
                const bool there = c_there && (inside & bits) == bits;
                opdi_cu_stage_16(xs + RX::at(row, t % CX), there ? x + (at * q.groups + group) * cp + c : x, there);
            }
        }
        opdi_cu_stages_commit();
    };
    for (int s = 0; s < S::STAGES - 1; s++) { bring(s); }
    const opdi_cu_tc_factor<T, true, 2 * S::M, false> as(scratch, wm);
    const opdi_cu_tc_factor<T, true, 2 * S::N, true> bs(scratch + K * RY::PITCH, wn);
    OPDI_CU_ROLLED
    for (int s = 0; s < steps; s++) {
        const int at = s % S::STAGES * stage;
        opdi_cu_stages_wait<S::STAGES - 2>();
        __syncthreads();
        bring(s + S::STAGES - 1);
        OPDI_CU_UNROLL
        for (int l = 0; l < K / 16; l++) {
            typename M::A fa[I];
            typename M::B fb[J];
            OPDI_CU_UNROLL
            for (int n = 0; n < J; n++) { bs.load(fb[n], at, n, l); }
            OPDI_CU_UNROLL
            for (int i = 0; i < I; i++) { as.load(fa[i], at, i, l); }
            OPDI_CU_UNROLL
            for (int i = 0; i < I; i++) { for (int n = 0; n < J; n++) { M::add(sum[i][n], fa[i], fb[n]); } }
        }
    }
    opdi_cu_stages_wait<0>();
    __syncthreads();
    float *out = reinterpret_cast<float *>(scratch);
    constexpr int ld = S::N + 4;
    OPDI_CU_UNROLL
    for (int i = 0; i < I; i++) {
        OPDI_CU_UNROLL
        for (int n = 0; n < J; n++) { M::store(out + (wm + 16 * i) * ld + wn + 16 * n, sum[i][n], ld, 1); }
    }
    __syncthreads();
    const int og = (int)(q.oc / q.groups);
    const int64_t base = blockIdx.y * q.oc + (int64_t)group * og;
    for (int i = t; i < S::M * S::N / 4; i += S::THREADS) {
        const int r = i / (S::N / 4), o = o0 + r, at = i % (S::N / 4) * 4;
        if (o < og && c0 + at < kk) {
            opdi_cu_store_vector<4>(parts + (base + o) * kk + c0 + at, opdi_cu_load_vector<4>(out + r * ld + at));
        }
    }
}
template <typename T, class S> __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
opdi_cu_conv_gw_kernel(const __grid_constant__ opdi_cu_gw k, const T *x, const T *y, float *parts) {
    OPDI_CU_SHARED(scratch);
    OPDI_CU_TC_STOP(T)
    if constexpr (opdi_cu_tc_there<T>::yes) { opdi_cu_conv_gw_tile<T, S>(k, x, y, parts, scratch); }
}
/* Sets w[o, c, t] or, if `last`, w[o, t, c] to the sum of parts[split][o, t, c] over all splits. */
template <typename T> __global__ void opdi_cu_conv_gw_end_kernel(const float *parts, T *w, int splits, int64_t cg,
                                                                 int64_t cp, int64_t taps, int64_t all, bool last) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t c = i % cp, t = i / cp % taps, o = i / cp / taps;
        float sum = 0;
#pragma unroll 4
        for (int s = 0; s < splits; s++) { sum += parts[s * all + i]; }
        if (c < cg) { opdi_cu_store(w + (last ? (o * taps + t) * cg + c : (o * cg + c) * taps + t), sum); }
    }
}

//== starting the kernels for tensor cores =============================================================================

/* Returns whether the code for the current device was compiled for compute capability 8.0 or newer.  This may be code
   for this device, or code for an older one that the driver has recompiled.  The answer is cached. */
static __global__ void opdi_cu_tc_probe() {}
static bool opdi_cu_tc_compiled() {
    static std::atomic<signed char> known[OPDI_CU_MAX_DEVICES];       /* 1: yes, -1: no */
    std::atomic<signed char> &k = known[opdi_cu_current()];
    cudaFuncAttributes a;
    if (k == 0) {
        const cudaError_t e = cudaFuncGetAttributes(&a, (const void *)opdi_cu_tc_probe);
        if (e != cudaSuccess) { (void)cudaGetLastError(); return false; }
        k = a.ptxVersion >= 80 ? 1 : -1;
    }
    return k > 0;
}
/* Sets *j to the convolution q itself. */
static void opdi_cu_tc_plain(opdi_cu_tc_job *j, const opdi_cu_conv *q, int64_t cp) {
    *j = opdi_cu_tc_job();
    j->q = *q;
    j->cp = (int)cp;
    for (int d = 0; d < 3; d++) {
        j->full[d] = q->out[d]; j->k[d] = q->k[d];
        j->step[d] = j->along[d] = 1;
    }
}
/* Sets *j to the part of the gradient with respect to x whose elements i have i % q->s[d] = part[d].  Such an element
   reads y[(i + p - t * d) / s] for those taps t for which the division leaves no rest: for a stride of 1 all, else
   every s-th tap.  Returns whether there are such elements. */
static bool opdi_cu_tc_back(opdi_cu_tc_job *j, const opdi_cu_conv *q, int64_t cp, const int *part /*[3]*/) {
    opdi_cu_tc_plain(j, q, cp);
    j->back = true;
    j->q.c = q->oc; j->q.oc = q->c;
    for (int d = 0; d < 3; d++) {
        const int s = q->s[d], t0 = (part[d] + q->p[d]) % s, taps = t0 < q->k[d] ? (q->k[d] - t0 + s - 1) / s : 0;
        if (part[d] >= q->in[d]) { return false; }
        j->q.in[d] = q->out[d];
        j->q.out[d] = (q->in[d] - part[d] + s - 1) / s;
        j->q.k[d] = taps;
        j->q.s[d] = 1;
        j->q.p[d] = q->d[d] * (taps - 1) - (part[d] + q->p[d] - t0) / s;
        j->full[d] = q->in[d];
        j->step[d] = s;
        j->first[d] = part[d];
        j->tap[d] = t0 + (taps - 1) * s;
        j->along[d] = -s;
        j->spread = j->spread || s != 1;
    }
    return true;
}
/* Returns whether the kernels pad rows in shared memory (see opdi_cu_tc_rows). */
static bool opdi_cu_tc_padded() {
#if defined(OPD_CUDA_EMULATED)
    return false;
#else
    return !opdi_cu_tc_compiled();
#endif
}
template <typename T, class S> static int opdi_cu_tc_start(opdi_cu_tc_job j, const T *x, const T *w, const T *bias,
                                                          T *y, bool last) {
    j.w = opdi_cu_divide_by((uint32_t)j.q.out[2]);
    j.h = opdi_cu_divide_by((uint32_t)j.q.out[1]);
    j.z = opdi_cu_divide_by((uint32_t)j.q.out[0]);
    j.tiles = (int)opdi_cu_ceil(j.q.oc / j.q.groups, S::N);
    const int64_t down = opdi_cu_ceil(j.q.n * opdi_cu_volume(j.q.out), S::M);
    return opdi_cu_launch(last ? opdi_cu_conv_tc_kernel<T, S, true> : opdi_cu_conv_tc_kernel<T, S, false>,
                          dim3((unsigned)(down * j.tiles), 1, (unsigned)j.q.groups), dim3(S::THREADS),
                          (size_t)S::bytes(opdi_cu_tc_padded()), j, x, w, bias, y);
}
/* Computes the job with tiles that suit its channels. */
template <typename T> static int opdi_cu_tc_shaped(const opdi_cu_tc_job &j, const T *x, const T *w, const T *bias, T *y,
                                                   bool last) {
    return j.q.oc / j.q.groups <= 64 || !opdi_cu_tc_compiled()
        ? opdi_cu_tc_start<T, opdi_cu_tc_shape<128, 64, 64, 32, 64, 3, 3> >(j, x, w, bias, y, last)
        : opdi_cu_tc_start<T, opdi_cu_tc_shape<128, 128, 64, 64, 64, 4, 2> >(j, x, w, bias, y, last);
}
/* Computes y = conv(x, w) + bias or, if `back` is true, gx from gy, which is then passed as x.  x_last, y_last and
   w_last tell which tensors are in channels-last order.  Returns 0, or -1 and sets an error. */
template <typename T> static int opdi_cu_conv_tc(const opdi_cu_conv *q, const T *x, const T *w, const T *bias, T *y,
    bool x_last, bool y_last, bool w_last, bool back) {
    constexpr int E = 16 / (int)sizeof(T);
    const int64_t rows = back ? q->c : q->oc, cg = (back ? q->oc : q->c) / q->groups, cp = opdi_cu_ceil(cg, E) * E;
    T *wt = static_cast<T *>(opdi_cu_scratch(rows * opdi_cu_volume(q->k) * cp * (int64_t)sizeof(T)));
    if (!wt || !(x = opdi_cu_conv_turned(q, x, x_last, cg, opdi_cu_volume(back ? q->out : q->in)))) { return -1; }
    int part[3] = {0, 0, 0};
    for (int i = 0; i < (back ? q->s[0] * q->s[1] * q->s[2] : 1); i++) {
        opdi_cu_tc_job j;
        part[0] = i / q->s[2] / q->s[1]; part[1] = i / q->s[2] % q->s[1]; part[2] = i % q->s[2];
        if (!back) { opdi_cu_tc_plain(&j, q, cp); } else if (!opdi_cu_tc_back(&j, q, cp, part)) { continue; }
        const int64_t all = rows * opdi_cu_volume(j.q.k) * cp;
        j.w_last = w_last;
        if (opdi_cu_launch(opdi_cu_conv_weights_kernel<T>, opdi_cu_grid(all, 256), dim3(256), 0, j, w, wt) ||
            opdi_cu_tc_shaped<T>(j, x, (const T *)wt, bias, y, y_last)) { return -1; }
        wt += all;
    }
    return 0;
}
template <typename T, class S> static int opdi_cu_gw_start(opdi_cu_gw k, const T *x, const T *y, T *w) {
    const opdi_cu_conv &q = k.j.q;
    const int64_t pixels = q.n * opdi_cu_volume(q.out), taps = opdi_cu_volume(q.k), columns = taps * k.j.cp,
        all = q.oc * columns;
    k.tiles_o = (int)opdi_cu_ceil(q.oc / q.groups, S::M);
    const int64_t tiles = k.tiles_o * opdi_cu_ceil(columns, S::N), most = opdi_cu_ceil(pixels, 512);
    const int64_t want = opdi_cu_ceil((int64_t)opdi_cu_properties()->multiprocessors * S::BLOCKS, tiles * q.groups);
    k.splits = (int)(want < most ? want : most);
    float *parts = static_cast<float *>(opdi_cu_scratch(k.splits * all * 4));
    if (!parts || opdi_cu_launch(opdi_cu_conv_gw_kernel<T, S>,
                                 dim3((unsigned)tiles, (unsigned)k.splits, (unsigned)q.groups), dim3(S::THREADS),
                                 (size_t)S::bytes(opdi_cu_tc_padded()), k, x, y, parts)) { return -1; }
    return opdi_cu_launch(opdi_cu_conv_gw_end_kernel<T>, opdi_cu_grid(all, 256), dim3(256), 0, (const float *)parts, w,
                          k.splits, q.c / q.groups, (int64_t)k.j.cp, taps, all, k.j.w_last);
}
/* Computes gw from x and gy.  Splits the pixels into parts of at least 512, so that the blocks fill the GPU.  Returns
   0, or -1 and sets an error. */
template <typename T> static int opdi_cu_conv_gw(const opdi_cu_conv *q, const T *x, T *w, const T *y, bool x_last,
                                                  bool y_last, bool w_last) {
    const int64_t cg = q->c / q->groups, og = q->oc / q->groups;
    opdi_cu_gw k;
    opdi_cu_tc_plain(&k.j, q, opdi_cu_ceil(cg, 8) * 8);
    k.j.w = opdi_cu_divide_by((uint32_t)q->out[2]);
    k.j.h = opdi_cu_divide_by((uint32_t)q->out[1]);
    k.j.z = opdi_cu_divide_by((uint32_t)q->out[0]);
    k.op = (int)opdi_cu_ceil(og, 8) * 8;
    k.j.w_last = w_last;
    if (!(x = opdi_cu_conv_turned(q, x, x_last, cg, opdi_cu_volume(q->in))) ||
        !(y = opdi_cu_conv_turned(q, y, y_last, og, opdi_cu_volume(q->out)))) { return -1; }
    return og <= 64 || !opdi_cu_tc_compiled()
        ? opdi_cu_gw_start<T, opdi_cu_gw_shape<64, 128, 32, 64, 3, 3> >(k, x, y, w)
        : opdi_cu_gw_start<T, opdi_cu_gw_shape<128, 128, 64, 64, 4, 2> >(k, x, y, w);
}
/* Returns whether the kernels for tensor cores are worth using and their grids are possible.  They compute float32 in
   TF32, if the user allows it, but not its gw. */
static bool opdi_cu_conv_tc_fits(const opdi_cu_conv *q, int what, opd_scalar_type dtype) {
    const int64_t cg = q->c / q->groups, og = q->oc / q->groups, taps = opdi_cu_volume(q->k);
    const int most[3] = OPDI_CU_TC_TAPS;
    if (dtype == OPD_FLOAT32 ? opd_float32_matmul_precision() != OPD_MATMUL_HIGH || what == OPDI_CU_CONV_GW ||
        opdi_cu_conv_is_product(q) : dtype != OPD_FLOAT16 && dtype != OPD_BFLOAT16) { return false; }
    if (dtype != OPD_FLOAT16 && !opdi_cu_tc_compiled()) { return false; }
    if ((q->groups > 1 && (cg < 8 || og < 8)) || (what == OPDI_CU_CONV_GX ? cg : og) < 8 || taps == 0 ||
        q->groups > 65535 || q->n * opdi_cu_volume(q->out) > (1 << 30) || q->n * opdi_cu_volume(q->in) > (1 << 30) ||
        cg * taps > (1 << 24) || og * taps > (1 << 24)) { return false; }
    const int64_t x_all = q->n * q->groups * opdi_cu_volume(q->in) * (cg + 8),
        y_all = q->n * q->groups * opdi_cu_volume(q->out) * (og + 8);
    if (what != OPDI_CU_CONV_GW && (what == OPDI_CU_CONV_Y ? x_all : y_all) > INT32_MAX) { return false; }
    for (int i = 0; i < 3; i++) {
        if (q->k[i] > most[i]) { return false; }
        if (what == OPDI_CU_CONV_GX && q->s[i] != 1 && q->d[i] != 1) { return false; }
    }
    return what != OPDI_CU_CONV_GX || (int64_t)q->s[0] * q->s[1] * q->s[2] <= 8;
}
//== choosing a kernel =================================================================================================

struct opdi_cu_conv_call { opdi_cu_conv v; bool transposed; };
/* Reads stride, padding, dilation, transposed and groups from the arguments from number `first` on, which the Meta
   kernel has checked.  y is the result of the convolution.  Returns 0, or -1 and sets an error. */
static int opdi_cu_conv_read(opd_call *call, int first, const opd_tensor *x, const opd_tensor *w, const opd_tensor *y,
    opdi_cu_conv_call *q) {
    const opd_ints s = opd_arg_ints(call, first), p = opd_arg_ints(call, first + 1), d = opd_arg_ints(call, first + 2);
    const int nd = opd_ndim(w) - 2;
    const opd_tensor *small, *big;
    q->transposed = opd_arg_bool(call, first + 3);
    big = q->transposed ? y : x;
    small = q->transposed ? x : y;
    q->v.groups = opd_arg_int(call, first + 5);
    q->v.n = opd_size(x, 0);
    q->v.c = opd_size(big, 1);
    q->v.oc = opd_size(small, 1);
    for (int i = 0; i < 3; i++) {
        const int j = i - (3 - nd);
        const bool there = j >= 0;
        const int64_t in = there ? opd_size(big, 2 + j) : 1, out = there ? opd_size(small, 2 + j) : 1,
            k = there ? opd_size(w, 2 + j) : 1;
        const int64_t st = there ? s.data[s.n == 1 ? 0 : j] : 1, pd = there ? p.data[p.n == 1 ? 0 : j] : 0,
            di = there ? d.data[d.n == 1 ? 0 : j] : 1;
        if (in > INT32_MAX || out > INT32_MAX || k > INT32_MAX || st > INT32_MAX || pd > INT32_MAX / 4 ||
            di * k > INT32_MAX / 4) {
            return opd_fail(OPD_ERROR_ARGUMENT,
                            "a size, stride, padding or dilation is too large for a convolution on CUDA");
        }
        q->v.in[i] = (int)in; q->v.out[i] = (int)out; q->v.k[i] = (int)k;
        q->v.s[i] = (int)st; q->v.p[i] = (int)pd; q->v.d[i] = (int)di;
    }
    return 0;
}
static bool opdi_cu_wino_fits(const opdi_cu_conv *q, int what);
static int opdi_cu_wino_run(const opdi_cu_conv *q, int what, const float *from, const float *w, const float *bias,
    float *to);
static int opdi_cu_wino_gw(const opdi_cu_conv *q, const float *x, const float *gy, float *gw);
static bool opdi_cu_depthwise_fits(const opdi_cu_conv *q, int what);
template <typename T> static int opdi_cu_depthwise_run(const opdi_cu_conv *q, int what, T *x, void *w, T *y);
/* Computes y or gx, as `what` says, for contiguous tensors of one dtype.  The result must not be empty.  Returns 0, or
   -1 and sets an error. */
template <typename T> static int opdi_cu_conv_typed(const opdi_cu_conv *q, int what, opd_tensor *x, opd_tensor *w,
    opd_tensor *y) {
    T *xs = opdi_cu_data<T>(x), *ws = opdi_cu_data<T>(w), *ys = opdi_cu_data<T>(y);
    const int64_t cg = q->c / q->groups;
    cudaDataType type;
    if constexpr (!std::is_same<opdi_cu_acc<T>, int64_t>::value) {
        if (opdi_cu_depthwise_fits(q, what)) { return opdi_cu_depthwise_run<T>(q, what, xs, ws, ys); }
    }
    if ((cg < 4 && q->groups > 1) || !opdi_cu_cuda_type(opd_dtype(x), &type)) {
        return what == OPDI_CU_CONV_Y ? opdi_cu_conv_each<T, false>(*q, xs, ws, ys)
            : opdi_cu_conv_each<T, true>(*q, ys, ws, xs);
    }
    return opdi_cu_conv_columns<T>(q, what, opd_dtype(x), xs, ws, ys);
}
template <typename T> static int opdi_cu_conv_typed_gw(const opdi_cu_conv *q, opd_tensor *x, opd_tensor *w,
    opd_tensor *y) {
    T *xs = opdi_cu_data<T>(x), *ys = opdi_cu_data<T>(y);
    void *ws = opdi_cu_data<void>(w);             /* of the type in which sums are computed */
    if (q->c / q->groups >= 4 || q->groups == 1) {
        return opdi_cu_conv_columns<T>(q, OPDI_CU_CONV_GW, opd_dtype(x), xs, ws, ys);
    }
    if (opdi_cu_depthwise_fits(q, OPDI_CU_CONV_GW)) { return opdi_cu_depthwise_run<T>(q, OPDI_CU_CONV_GW, xs, ws, ys); }
    return opdi_cu_launch(opdi_cu_conv_each_gw_kernel<T>, opdi_cu_grid_rows(opd_numel(w)), dim3(256), 0, *q, xs, ys,
                          static_cast<opdi_cu_acc<T> *>(ws));
}
/* Computes y, gx or gw of a kernel of one tap as a product of the pixels' channels, for tensors in channels-last order.
   Returns 0, or -1 and sets an error. */
static int opdi_cu_conv_pixels(const opdi_cu_conv *q, int what, opd_scalar_type dtype, void *x, void *w, void *y) {
    const opdi_cu_matrix xs = {x, 0, q->c, 1}, ys = {y, 0, q->oc, 1}, yt = {y, 0, 1, q->oc}, ws = {w, 0, q->c, 1},
        wt = {w, 0, 1, q->c};
    const int64_t pixels = q->n * opdi_cu_volume(q->in);
    opdi_cu_product b;
    b.n = 1; b.out_batch = 0;
    if (what == OPDI_CU_CONV_Y) { b.m = pixels; b.k = q->c; b.p = q->oc; b.a = xs; b.b = wt; b.out = y; }
    else if (what == OPDI_CU_CONV_GX) { b.m = pixels; b.k = q->oc; b.p = q->c; b.a = ys; b.b = ws; b.out = x; }
    else { b.m = q->oc; b.k = pixels; b.p = q->c; b.a = yt; b.b = xs; b.out = w; }
    return opdi_cu_gemm(&b, dtype, dtype, 1, 0);
}
template <typename T> static int opdi_cu_conv_short(const opdi_cu_conv *q, int what, opd_tensor *x, opd_tensor *w,
    opd_tensor *y, opd_tensor *bias) {
    opd_tensor *from = what == OPDI_CU_CONV_Y ? x : y, *to = what == OPDI_CU_CONV_Y ? y : x;
    const bool x_last = opdi_cu_is_channels_last(x), y_last = opdi_cu_is_channels_last(y);
    if (opdi_cu_conv_is_product(q) && q->groups == 1 && !bias && x_last && y_last && q->c % 8 == 0 &&
        q->oc % 8 == 0) {
        return opdi_cu_conv_pixels(q, what, opd_dtype(x), opdi_cu_data<T>(x), opdi_cu_data<T>(w), opdi_cu_data<T>(y));
    }
    if (what == OPDI_CU_CONV_GW) {
        if constexpr (sizeof(T) == 2) {
            return opdi_cu_conv_gw<T>(q, opdi_cu_data<T>(x), opdi_cu_data<T>(w), opdi_cu_data<T>(y), x_last, y_last,
                                      opdi_cu_is_channels_last(w));
        }
    }
    return opdi_cu_conv_tc<T>(q, opdi_cu_data<T>(from), opdi_cu_data<T>(w), bias ? opdi_cu_data<T>(bias) : NULL,
                              opdi_cu_data<T>(to), opdi_cu_is_channels_last(from), opdi_cu_is_channels_last(to),
                              opdi_cu_is_channels_last(w), what == OPDI_CU_CONV_GX);
}
/* Adds b [c] to y [n, c, area]. */
template <typename T> __global__ void opdi_cu_bias_kernel(T *y, const T *b, int64_t c, int64_t area, int64_t all) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        opdi_cu_store(y + i, opdi_cu_load<opdi_cu_acc<T>>(y + i) + opdi_cu_load<opdi_cu_acc<T>>(b + i / area % c));
    }
}
static int opdi_cu_bias(opd_tensor *y, opd_tensor *b) {
    const int64_t c = opd_size(y, 1), all = opd_numel(y);
    if (!(b = opd_contiguous(b))) { return -1; }
    OPDI_CU_ALL(opd_dtype(y), T, return opdi_cu_launch(opdi_cu_bias_kernel<T>, opdi_cu_grid(all, 256), dim3(256), 0,
        opdi_cu_data<T>(y), opdi_cu_data<T>(b), c, all / opd_size(y, 0) / c, all))
    return -1;
}
/* Returns whether y or gx of 16-bit floats is a batch of products of tensors as they are: the kernel has one tap, x and
   y are contiguous, and their rows are multiples of 16 bytes. */
static bool opdi_cu_conv_is_direct(const opdi_cu_conv *q, int what, const opd_tensor *x, const opd_tensor *y) {
    return what != OPDI_CU_CONV_GW && opdi_cu_conv_is_product(q) && opd_dtype_size(opd_dtype(x)) == 2 &&
        opdi_cu_volume(q->in) % 8 == 0 && opd_is_contiguous(x) && opd_is_contiguous(y);
}
/* Computes the result that `what` says: y, gx (in x) or gw (in w).  The tensors may have any strides.  `bias` is added
   to y, unless it is NULL.  Returns 0, or -1 and sets an error. */
static int opdi_cu_conv_run(const opdi_cu_conv *q, int what, opd_tensor *x, opd_tensor *w, opd_tensor *y,
    opd_tensor *bias) {
    opd_tensor *to = what == OPDI_CU_CONV_Y ? y : what == OPDI_CU_CONV_GX ? x : w, *work;
    const opd_scalar_type t = opd_dtype(to);
    const bool shorter = t == OPD_FLOAT16 || t == OPD_BFLOAT16, wino = t == OPD_FLOAT32 && opdi_cu_wino_fits(q, what);
    int rc = -1;
    if (opd_numel(to) == 0) { return 0; }
    if (opd_numel(x) == 0 || opd_numel(w) == 0 || opd_numel(y) == 0) {
        work = opd_is_contiguous(to) ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), t);
        if (!work || !opd_zero_(work) || (bias && opdi_cu_bias(work, bias))) { return -1; }
        return work == to || opd_copy_(to, work) ? 0 : -1;
    }
    if (opdi_cu_conv_tc_fits(q, what, t) && !(opdi_cu_conv_is_direct(q, what, x, y) && !bias)) {
        work = opd_is_contiguous(to) || opdi_cu_is_channels_last(to) ? to
            : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), t);
        x = to == x ? work : opdi_cu_is_channels_last(x) ? x : opd_contiguous(x);
        y = to == y ? work : opdi_cu_is_channels_last(y) ? y : opd_contiguous(y);
        w = to == w ? work : opdi_cu_is_channels_last(w) ? w : opd_contiguous(w);
        bias = bias ? opd_contiguous(bias) : NULL;
        if (!work || !x || !y || !w) { return -1; }
        rc = t == OPD_FLOAT16 ? opdi_cu_conv_short<opdi_cu_f16>(q, what, x, w, y, bias)
            : t == OPD_BFLOAT16 ? opdi_cu_conv_short<opdi_cu_bf16>(q, what, x, w, y, bias)
            : opdi_cu_conv_short<float>(q, what, x, w, y, bias);
        bias = NULL;
    } else if (wino || (t == OPD_FLOAT32 && opdi_cu_im_fits(q, what))) {
        work = opd_is_contiguous(to) ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), t);
        x = to == x ? work : opd_contiguous(x);
        y = to == y ? work : opd_contiguous(y);
        w = to == w ? work : opd_contiguous(w);
        bias = bias ? opd_contiguous(bias) : NULL;
        if (!x || !y || !w || !work) { return -1; }
        float *xs = opdi_cu_data<float>(x), *ys = opdi_cu_data<float>(y), *ws = opdi_cu_data<float>(w);
        rc = what == OPDI_CU_CONV_GW ? opdi_cu_wino_gw(q, xs, ys, ws)
            : (wino ? opdi_cu_wino_run : opdi_cu_conv_im)(q, what, what == OPDI_CU_CONV_GX ? ys : xs, ws,
                                                          bias ? opdi_cu_data<float>(bias) : NULL,
                                                          what == OPDI_CU_CONV_GX ? xs : ys);
        bias = NULL;
    } else {
        const opd_scalar_type sums = what == OPDI_CU_CONV_GW && shorter ? OPD_FLOAT32 : t;
        work = opd_is_contiguous(to) && sums == t ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), sums);
        x = to == x ? work : opd_contiguous(x);
        y = to == y ? work : opd_contiguous(y);
        w = to == w ? work : opd_contiguous(w);
        if (!x || !y || !w || !work) { return -1; }
        if (what == OPDI_CU_CONV_GW) {
            OPDI_CU_FLOATS(opd_dtype(x), T, rc = opdi_cu_conv_typed_gw<T>(q, x, w, y))
        } else { OPDI_CU_ALL(t, T, rc = opdi_cu_conv_typed<T>(q, what, x, w, y)) }
    }
    if (rc || (bias && opdi_cu_bias(work, bias))) { return -1; }
    return work == to || opd_copy_(to, work) ? 0 : -1;
}
static int opdi_cu_convolution(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *w = opd_arg_tensor(call, 1), *bias = opd_arg_tensor(call, 2), *y;
    opdi_cu_conv_call q;
    if (opd_results_from_fake(call)) { return -1; }
    y = opdi_cu_result(call, 0);
    if (opdi_cu_conv_read(call, 3, x, w, y, &q)) { return -1; }
    return opdi_cu_conv_run(&q.v, q.transposed ? OPDI_CU_CONV_GX : OPDI_CU_CONV_Y, q.transposed ? y : x, w,
        q.transposed ? x : y, bias);
}
static int opdi_cu_convolution_backward(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *w = opd_arg_tensor(call, 2);
    opd_tensor *gx, *gw, *gb;
    opdi_cu_conv_call q;
    if (opd_results_from_fake(call)) { return -1; }
    gx = opdi_cu_result(call, 0); gw = opdi_cu_result(call, 1); gb = opdi_cu_result(call, 2);
    if (opdi_cu_conv_read(call, 4, x, w, g, &q)) { return -1; }
    /* tensor cores read gy in channels-last order, for both gradients: it is turned once */
    if (gx && gw && !q.transposed && opd_dtype_size(opd_dtype(g)) == 2 && q.v.groups == 1 && q.v.oc % 8 == 0 &&
        opd_ndim(g) > 3 && opd_numel(g) && opd_numel(x) && !opdi_cu_conv_is_direct(&q.v, OPDI_CU_CONV_GX, gx, g) &&
        opdi_cu_conv_tc_fits(&q.v, OPDI_CU_CONV_GX, opd_dtype(g)) &&
        opdi_cu_conv_tc_fits(&q.v, OPDI_CU_CONV_GW, opd_dtype(g))) {
        g = opdi_cu_as_last(g, opd_dtype(g), true);
        if (!g) { return -1; }
    }
    if (gx && opdi_cu_conv_run(&q.v, q.transposed ? OPDI_CU_CONV_Y : OPDI_CU_CONV_GX, q.transposed ? g : gx, w,
        q.transposed ? gx : g, NULL)) {
        return -1;
    }
    if (gw && opdi_cu_conv_run(&q.v, OPDI_CU_CONV_GW, q.transposed ? g : x, gw, q.transposed ? x : g, NULL)) {
        return -1;
    }
    if (gb && opd_numel(gb)) {
        int64_t dims[5];
        int n = 0;
        for (int d = 0; d < opd_ndim(g); d++) { if (d != 1) { dims[n++] = d; } }
        opd_tensor *sum = opd_size(g, 1) ? opd_sum_dim(g, opd_ints_of(dims, n), false) : NULL;
        if (opd_size(g, 1) ? !sum || !opd_copy_(gb, sum) : !opd_zero_(gb)) { return -1; }
    }
    return 0;
}

static const opdi_cu_registration opdi_cu_table_convolution[] = {
    {"convolution", opdi_cu_convolution}, {"convolution_backward", opdi_cu_convolution_backward},
    {NULL, NULL}};

//== depthwise convolutions ============================================================================================
//
//  These kernels are for groups of one channel of x and one of y, 3 x 3 taps and strides of 1 or 2, in two dims.  A
//  thread computes a strip: a few outputs below each other.  It loads all elements that the strip reads before it
//  multiplies any, and uses an element for up to three outputs.  Threads of neighbouring columns read the same elements
//  from the L1 cache.  A weight, which may be infinite or NaN, is not multiplied by a 0 from outside of the image: rows
//  outside are left out, and columns outside have the weight 0.

enum { OPDI_CU_DEPTHWISE_ROWS = 8 };              /* outputs of a strip */
struct opdi_cu_depthwise {
    int in[2], out[2], p[2];                      /* sizes of the image that is read, and of the outputs; padding */
    uint32_t all;                                 /* number of strips of all channels and images */
    opdi_cu_pointwise_divider columns, strips, channels;      /* out[1]; strips below each other; channels */
    bool turned;                                  /* the weights are read backwards */
};
/* The elements of an image that a strip reads. */
template <typename T, int K, int S> struct opdi_cu_depthwise_strip {
    enum { ROWS = OPDI_CU_DEPTHWISE_ROWS, HIGH = (ROWS - 1) * S + K };
    T v[HIGH][K];
    uint32_t plane;                               /* number of the image */
    int row, column, top, left;                   /* the first output; where v begins */
    __device__ __forceinline__ void load(const opdi_cu_depthwise &q, const T *x, uint32_t i) {
        const uint32_t line = q.columns.of(i);
        plane = q.strips.of(line);
        row = (int)(line - plane * q.strips.d) * ROWS;
        column = (int)(i - line * q.columns.d);
        top = row * S - q.p[0];
        left = column * S - q.p[1];
        x += (int64_t)(plane * (uint32_t)(q.in[0] * q.in[1])) + top * q.in[1] + left;
        OPDI_CU_UNROLL
        for (int h = 0; h < HIGH; h++, x += q.in[1]) {
            OPDI_CU_UNROLL
            for (int b = 0; b < K; b++) {
                v[h][b] = T(0.0f);
                if (row_inside(q, h) && column_inside(q, b)) { v[h][b] = x[b]; }
            }
        }
    }
    __device__ __forceinline__ bool row_inside(const opdi_cu_depthwise &q, int h) const {
        return (uint32_t)(top + h) < (uint32_t)q.in[0];
    }
    __device__ __forceinline__ bool column_inside(const opdi_cu_depthwise &q, int b) const {
        return (uint32_t)(left + b) < (uint32_t)q.in[1];
    }
};
template <typename T, int K, int S> __global__ void __launch_bounds__(256)
opdi_cu_depthwise_kernel(const opdi_cu_depthwise q, const T *x, const T *w, T *y) {
    typedef opdi_cu_acc<T> A;
    typedef opdi_cu_depthwise_strip<T, K, S> strip;
    const uint32_t i = blockIdx.x * 256 + threadIdx.x;
    strip s;
    A tap[K][K], sum[strip::ROWS];
    if (i >= q.all) { return; }
    s.load(q, x, i);
    w += (s.plane - q.channels.of(s.plane) * q.channels.d) * (K * K);
    OPDI_CU_UNROLL
    for (int t = 0; t < K * K; t++) {             /* 0 in columns outside of the image, where v is 0 too */
        tap[t / K][t % K] = s.column_inside(q, t % K) ? opdi_cu_load<A>(w + (q.turned ? K * K - 1 - t : t)) : (A)0;
    }
    OPDI_CU_UNROLL
    for (int r = 0; r < strip::ROWS; r++) { sum[r] = 0; }
    OPDI_CU_UNROLL
    for (int h = 0; h < strip::HIGH; h++) {
        if (!s.row_inside(q, h)) { continue; }
        OPDI_CU_UNROLL
        for (int r = 0; r < strip::ROWS; r++) {
            OPDI_CU_UNROLL
            for (int b = 0; b < K; b++) {
                if (h >= r * S && h < r * S + K) { sum[r] += opdi_cu_cast<A>(s.v[h][b]) * tap[h - r * S][b]; }
            }
        }
    }
    y += s.plane * (uint32_t)(q.out[0] * q.out[1]) + (uint32_t)(s.row * q.out[1] + s.column);
    OPDI_CU_UNROLL
    for (int r = 0; r < strip::ROWS; r++, y += q.out[1]) {
        if (s.row + r < q.out[0]) { opdi_cu_store(y, sum[r]); }
    }
}
/* Computes parts[part][c][t], the sum over i, and over `each` images n, of y[n, c, i] * x[n, c, reads(i, t)].  A block
   computes all taps of channel blockIdx.x, for part blockIdx.y of the images. */
template <typename T, int K, int S> __global__ void __launch_bounds__(256)
opdi_cu_depthwise_gw_kernel(const opdi_cu_depthwise q, const T *x, const T *y, opdi_cu_acc<T> *parts, int each,
                            int images) {
    typedef opdi_cu_acc<T> A;
    typedef opdi_cu_depthwise_strip<T, K, S> strip;
    const uint32_t channels = q.channels.d, c = blockIdx.x, of_image = q.strips.d * q.columns.d;
    const int first = (int)blockIdx.y * each, many = images - first < each ? images - first : each;
    const int lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP;
    __shared__ A warps[256 / OPDI_CU_WARP][K * K];
    A sum[K][K];
    OPDI_CU_UNROLL
    for (int t = 0; t < K * K; t++) { sum[t / K][t % K] = 0; }
    OPDI_CU_ROLLED
    for (uint32_t i = threadIdx.x; i < (uint32_t)many * of_image; i += 256) {
        const uint32_t n = q.strips.of(q.columns.of(i)), plane = ((uint32_t)first + n) * channels + c;
        strip s;
        A g[strip::ROWS];
        s.load(q, x, i - n * of_image + plane * of_image);
        const T *ys = y + plane * (uint32_t)(q.out[0] * q.out[1]) + (uint32_t)(s.row * q.out[1] + s.column);
        OPDI_CU_UNROLL
        for (int r = 0; r < strip::ROWS; r++, ys += q.out[1]) {
            g[r] = s.row + r < q.out[0] ? opdi_cu_load<A>(ys) : (A)0;
        }
        OPDI_CU_UNROLL
        for (int r = 0; r < strip::ROWS; r++) {
            OPDI_CU_UNROLL
            for (int a = 0; a < K; a++) {
                if (s.row + r >= q.out[0] || !s.row_inside(q, r * S + a)) { continue; }
                OPDI_CU_UNROLL
                for (int b = 0; b < K; b++) {
                    sum[a][b] += opdi_cu_cast<A>(s.v[r * S + a][b]) * (s.column_inside(q, b) ? g[r] : (A)0);
                }
            }
        }
    }
    OPDI_CU_UNROLL
    for (int t = 0; t < K * K; t++) {
        const A all = opdi_cu_warp_reduce(sum[t / K][t % K], opdi_cu_sum());
        if (lane == 0) { warps[warp][t] = all; }
    }
    __syncthreads();
    if (threadIdx.x < K * K) {
        A all = 0;
        for (int k = 0; k < 256 / OPDI_CU_WARP; k++) { all += warps[k][threadIdx.x]; }
        parts[((int64_t)blockIdx.y * channels + c) * (K * K) + threadIdx.x] = all;
    }
}
/* Sets w[i] to the sum of parts[k][i] over k. */
template <typename A> __global__ void opdi_cu_depthwise_end_kernel(const A *parts, A *w, int count, int all) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    A sum = 0;
    if (i >= all) { return; }
    for (int k = 0; k < count; k++) { sum += parts[(int64_t)k * all + i]; }
    w[i] = sum;
}
static bool opdi_cu_depthwise_fits(const opdi_cu_conv *q, int what) {
    const int64_t x = q->n * q->c * opdi_cu_volume(q->in), y = q->n * q->c * opdi_cu_volume(q->out);
    return q->groups == q->c && q->c == q->oc && q->in[0] == 1 && q->out[0] == 1 && q->k[0] == 1 && q->p[0] == 0 &&
        q->k[1] == 3 && q->k[2] == 3 && q->d[1] == 1 && q->d[2] == 1 && q->s[1] == q->s[2] &&
        (q->s[1] == 1 || (q->s[1] == 2 && what != OPDI_CU_CONV_GX)) && x < (1 << 30) && y < (1 << 30) &&
        q->c * 9 < (1 << 30);
}
/* Computes y, gx or gw, as `what` says.  w has the type of x or, for gw, the type in which sums are computed. */
template <typename T> static int opdi_cu_depthwise_run(const opdi_cu_conv *q, int what, T *x, void *w, T *y) {
    typedef opdi_cu_acc<T> A;
    const bool back = what == OPDI_CU_CONV_GX;
    opdi_cu_depthwise m;
    for (int e = 0; e < 2; e++) {
        m.in[e] = back ? q->out[1 + e] : q->in[1 + e];
        m.out[e] = back ? q->in[1 + e] : q->out[1 + e];
        m.p[e] = back ? q->k[1 + e] - 1 - q->p[1 + e] : q->p[1 + e];
    }
    const int64_t strips = opdi_cu_ceil(m.out[0], OPDI_CU_DEPTHWISE_ROWS), all = q->n * q->c * strips * m.out[1];
    m.all = (uint32_t)all;
    m.columns = opdi_cu_divide_by((uint32_t)m.out[1]);
    m.strips = opdi_cu_divide_by((uint32_t)strips);
    m.channels = opdi_cu_divide_by((uint32_t)q->c);
    m.turned = back;
    if (what != OPDI_CU_CONV_GW) {
        return opdi_cu_launch(q->s[1] == 1 ? opdi_cu_depthwise_kernel<T, 3, 1> : opdi_cu_depthwise_kernel<T, 3, 2>,
                              dim3((unsigned)opdi_cu_ceil(all, 256)), dim3(256), 0, m, (const T *)(back ? y : x),
                              static_cast<const T *>(w), back ? x : y);
    }
    const int64_t want = opdi_cu_ceil(1024, q->c), each = opdi_cu_ceil(q->n, want < q->n ? want : q->n);
    const int64_t count = opdi_cu_ceil(q->n, each);
    A *parts = count == 1 ? static_cast<A *>(w)
        : static_cast<A *>(opdi_cu_scratch(count * q->c * 9 * (int64_t)sizeof(A)));
    if (!parts || opdi_cu_launch(q->s[1] == 1 ? opdi_cu_depthwise_gw_kernel<T, 3, 1>
                                 : opdi_cu_depthwise_gw_kernel<T, 3, 2>, dim3((unsigned)q->c, (unsigned)count),
                                 dim3(256), 0, m, (const T *)x, (const T *)y, parts, (int)each, (int)q->n)) {
        return -1;
    }
    return count == 1 ? 0 : opdi_cu_launch(opdi_cu_depthwise_end_kernel<A>, dim3((unsigned)opdi_cu_ceil(q->c * 9, 256)),
                                           dim3(256), 0, (const A *)parts, static_cast<A *>(w), (int)count,
                                           (int)(q->c * 9));
}
//== float32 convolutions by Winograd's method =========================================================================
//
//  For 3 x 3 taps, stride 1 and one group, in two dims.  A tile of 4 x 4 results is computed from a patch of 6 x 6
//  elements: the patch and the weights are transformed into 36 numbers each, which are multiplied and summed over the
//  channels, and the sums are transformed into the results.  This takes 36 multiplications instead of 144.  For each of
//  the 36, the sums over the channels are a matrix product, which cuBLAS computes.
//      y  = A^T [(G w G^T) . (B^T x B)] A
//      gx: the same, with gy instead of x and turned weights
//      gw = G^T [(A gy A^T) . (B^T x B)] G
//  Accuracy, for normally distributed numbers, in the emulation: the largest error of y and gx is 2.1e-6 to 2.6e-6 of
//  the largest result, which is 1.2 to 3.7 times as much as with direct sums.  Errors are relative to the largest
//  elements of a tile.  An infinity or NaN would make all results of its tiles NaN, so results that are not finite are
//  computed again, as direct sums.  OPD_WINOGRAD=0 in the environment switches the method off.
//  Follows: A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016, F(4 x 4, 3 x 3).

/* OPDI_CU_WINO_PLACES: the fewest results of a channel, in all images, for which the method is used.
   OPDI_CU_WINO_PRODUCTS: the fewest products of a result and two channels. */
enum { OPDI_CU_WINO_TILE = 4, OPDI_CU_WINO_ALL = 36, OPDI_CU_WINO_PLACES = 512, OPDI_CU_WINO_PRODUCTS = 1 << 24 };
/* Transforms of IN numbers, which are `apart` from each other, into OUT numbers. */
struct opdi_cu_wino_patch {                       /* B^T */
    enum { IN = 6, OUT = 6 };
    static __device__ __forceinline__ void apply(const float *x, int apart, float *y) {
        const float x0 = x[0], x1 = x[apart], x2 = x[2 * apart], x3 = x[3 * apart], x4 = x[4 * apart],
            x5 = x[5 * apart];
        const float even = x4 - 4 * x2, odd = x3 - 4 * x1, far = x4 - x2, near = 2 * (x3 - x1);
        y[0] = 4 * x0 - 5 * x2 + x4;
        y[1] = even + odd; y[2] = even - odd; y[3] = far + near; y[4] = far - near;
        y[5] = 4 * x1 - 5 * x3 + x5;
    }
};
struct opdi_cu_wino_result {                      /* A^T */
    enum { IN = 6, OUT = 4 };
    static __device__ __forceinline__ void apply(const float *x, int apart, float *y) {
        const float x1 = x[apart], x2 = x[2 * apart], x3 = x[3 * apart], x4 = x[4 * apart];
        y[0] = x[0] + (x1 + x2) + (x3 + x4);
        y[1] = (x1 - x2) + 2 * (x3 - x4);
        y[2] = (x1 + x2) + 4 * (x3 + x4);
        y[3] = (x1 - x2) + 8 * (x3 - x4) + x[5 * apart];
    }
};
struct opdi_cu_wino_gradient {                    /* A */
    enum { IN = 4, OUT = 6 };
    static __device__ __forceinline__ void apply(const float *x, int apart, float *y) {
        const float x0 = x[0], x1 = x[apart], x2 = x[2 * apart], x3 = x[3 * apart];
        y[0] = x0;
        y[1] = (x0 + x2) + (x1 + x3); y[2] = (x0 + x2) - (x1 + x3);
        y[3] = (x0 + 4 * x2) + (2 * x1 + 8 * x3); y[4] = (x0 + 4 * x2) - (2 * x1 + 8 * x3);
        y[5] = x3;
    }
};
struct opdi_cu_wino_weights {                     /* G */
    enum { IN = 3, OUT = 6 };
    static __device__ __forceinline__ void apply(const float *x, int apart, float *y) {
        const float x0 = x[0], x1 = x[apart], x2 = x[2 * apart];
        y[0] = x0 / 4;
        y[1] = -(x0 + x2 + x1) / 6; y[2] = -(x0 + x2 - x1) / 6;
        y[3] = x0 / 24 + x2 / 6 + x1 / 12; y[4] = x0 / 24 + x2 / 6 - x1 / 12;
        y[5] = x2;
    }
};
struct opdi_cu_wino_turned {                      /* G^T */
    enum { IN = 6, OUT = 3 };
    static __device__ __forceinline__ void apply(const float *x, int apart, float *y) {
        const float x1 = x[apart], x2 = x[2 * apart], x3 = x[3 * apart], x4 = x[4 * apart];
        y[0] = x[0] / 4 - (x1 + x2) / 6 + (x3 + x4) / 24;
        y[1] = (x2 - x1) / 6 + (x3 - x4) / 12;
        y[2] = (x3 + x4) / 6 - (x1 + x2) / 6 + x[5 * apart];
    }
};
/* Transforms the columns of a matrix, then the rows. */
template <class F> __device__ __forceinline__ void opdi_cu_wino_apply(const float (*x)[F::IN], float (*y)[F::OUT]) {
    float half[F::IN][F::OUT];
    OPDI_CU_UNROLL
    for (int j = 0; j < F::IN; j++) { F::apply(&x[0][j], F::IN, half[j]); }
    OPDI_CU_UNROLL
    for (int i = 0; i < F::OUT; i++) { F::apply(&half[0][i], F::OUT, y[i]); }
}
/* Images, and their division into tiles.  Matrices of transformed tiles are [part][36][channel][place].  A part has the
   tiles of some images: `places` is their number. */
struct opdi_cu_wino {
    int64_t images, of_part, channels, places;    /* images: of all parts */
    int in[2], out[2], p[2];                      /* sizes of the image that is read, and of the image that is divided
                                                     into tiles; padding */
    opdi_cu_pointwise_divider by_places, by_tiles, by_across;     /* places; tiles of an image; tiles side by side */
};
/* Finds the image and the corner of tile number `place` of a part.  Returns false if there is no such image. */
static __device__ __forceinline__ bool opdi_cu_wino_find(const opdi_cu_wino &q, uint32_t part, uint32_t place,
                                                         int64_t *image, int *row, int *column) {
    const uint32_t n = q.by_tiles.of(place), tile = place - n * q.by_tiles.d, line = q.by_across.of(tile);
    *image = part * q.of_part + n;
    *row = (int)line * OPDI_CU_WINO_TILE;
    *column = (int)(tile - line * q.by_across.d) * OPDI_CU_WINO_TILE;
    return *image < q.images;
}
/* Transforms the tiles of x [images, channels, in] by F, which reads F::IN x F::IN elements of each.  Elements outside
   of the image are 0.  A thread transforms one tile of one channel. */
template <class F> __global__ void opdi_cu_wino_spread_kernel(opdi_cu_wino q, const float *x, float *to, uint32_t all) {
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const uint32_t line = q.by_places.of(i), place = i - line * q.by_places.d;
        const uint32_t part = line / (uint32_t)q.channels, channel = line - part * (uint32_t)q.channels;
        int64_t image;
        int row, column;
        float v[F::IN][F::IN], made[6][6];
        const bool there = opdi_cu_wino_find(q, part, place, &image, &row, &column);
        row -= q.p[0]; column -= q.p[1];
        const float *from = x + (image * q.channels + channel) * q.in[0] * q.in[1];
        OPDI_CU_UNROLL
        for (int r = 0; r < F::IN; r++) {
            OPDI_CU_UNROLL
            for (int c = 0; c < F::IN; c++) {
                const bool inside = there && (unsigned)(row + r) < (unsigned)q.in[0] &&
                    (unsigned)(column + c) < (unsigned)q.in[1];
                v[r][c] = inside ? from[(row + r) * q.in[1] + column + c] : 0.0f;
            }
        }
        opdi_cu_wino_apply<F>(v, made);
        float *put = to + ((int64_t)part * OPDI_CU_WINO_ALL * q.channels + channel) * q.places + place;
        OPDI_CU_UNROLL
        for (int e = 0; e < OPDI_CU_WINO_ALL; e++) { put[e * q.channels * q.places] = made[e / 6][e % 6]; }
    }
}
/* Transforms products [36][channels][places] into the images y, and adds the bias, unless it is NULL.  Sets *mend to 1
   if a result is not finite. */
static __global__ void opdi_cu_wino_result_kernel(opdi_cu_wino q, const float *from, const float *bias, float *y,
                                                  float *mend, uint32_t all) {
    const uint32_t step = gridDim.x * blockDim.x;
    for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const uint32_t channel = q.by_places.of(i), place = i - channel * q.by_places.d;
        int64_t image;
        int row, column;
        float v[6][6], made[4][4];
        (void)opdi_cu_wino_find(q, 0, place, &image, &row, &column);
        OPDI_CU_UNROLL
        for (int e = 0; e < OPDI_CU_WINO_ALL; e++) { v[e / 6][e % 6] = from[e * q.channels * q.places + i]; }
        opdi_cu_wino_apply<opdi_cu_wino_result>(v, made);
        const float more = bias ? bias[channel] : 0.0f;
        float *to = y + ((image * q.channels + channel) * q.out[0] + row) * q.out[1] + column;
        OPDI_CU_UNROLL
        for (int r = 0; r < 4; r++) {
            OPDI_CU_UNROLL
            for (int c = 0; c < 4; c++) {
                if (row + r >= q.out[0] || column + c >= q.out[1]) { continue; }
                to[r * q.out[1] + c] = made[r][c] + more;
                if (!isfinite(made[r][c])) { *mend = 1; }
            }
        }
    }
}
/* Computes results that are not finite again, as sums of products with the weights w, if *mend is not 0.  x [images,
   reads, in] is read, and y [images, channels, out] is written. */
static __global__ void opdi_cu_wino_mend_kernel(opdi_cu_wino q, int reads, bool back, const float *x, const float *w,
                                                const float *bias, const float *mend, float *y) {
    const int64_t area = (int64_t)q.out[0] * q.out[1], image = (int64_t)q.in[0] * q.in[1];
    const int64_t all = q.images * q.channels * area, step = (int64_t)gridDim.x * blockDim.x;
    if (*mend == 0) { return; }
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t plane = i / area, n = plane / q.channels, channel = plane - n * q.channels;
        const int row = (int)(i % area / q.out[1]) - q.p[0], column = (int)(i % q.out[1]) - q.p[1];
        float sum = 0;
        if (isfinite(y[i])) { continue; }
        for (int c = 0; c < reads && sum == sum; c++) {
            const float *from = x + (n * reads + c) * image;
            const float *weights = w + 9 * (back ? c * q.channels + channel : channel * reads + c);
            for (int t = 0; t < 9; t++) {
                const int r = row + t / 3, at = column + t % 3;
                if ((unsigned)r >= (unsigned)q.in[0] || (unsigned)at >= (unsigned)q.in[1]) { continue; }
                sum += from[(int64_t)r * q.in[1] + at] * weights[back ? 8 - t : t];
            }
        }
        y[i] = bias ? sum + bias[channel] : sum;
    }
}
/* Transforms the weights w [oc, c, 3, 3] into to[36][rows][channels], and writes a 0 after them.  If `back` is true,
   the rows are the channels c, and the weights are turned by 180 degrees. */
static __global__ void opdi_cu_wino_weights_kernel(const float *w, float *to, int rows, int channels, bool back) {
    const int all = rows * channels, step = (int)(gridDim.x * blockDim.x);
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < all; i += step) {
        const int r = i / channels, c = i - r * channels;
        const float *from = w + 9 * (int64_t)(back ? c * rows + r : i);
        float v[3][3], made[6][6];
        if (i == 0) { to[(int64_t)OPDI_CU_WINO_ALL * all] = 0; }
        OPDI_CU_UNROLL
        for (int t = 0; t < 9; t++) { v[t / 3][t % 3] = from[back ? 8 - t : t]; }
        opdi_cu_wino_apply<opdi_cu_wino_weights>(v, made);
        OPDI_CU_UNROLL
        for (int e = 0; e < OPDI_CU_WINO_ALL; e++) { to[(int64_t)e * all + i] = made[e / 6][e % 6]; }
    }
}
/* Sets w [all, 3, 3] to the transformed sums over all parts of from[part][36][all]. */
static __global__ void opdi_cu_wino_gw_kernel(const float *from, float *w, int parts, int all) {
    const int step = (int)(gridDim.x * blockDim.x);
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < all; i += step) {
        float v[6][6], made[3][3];
        OPDI_CU_UNROLL
        for (int e = 0; e < OPDI_CU_WINO_ALL; e++) { v[e / 6][e % 6] = 0; }
        for (int part = 0; part < parts; part++) {
            OPDI_CU_UNROLL
            for (int e = 0; e < OPDI_CU_WINO_ALL; e++) {
                v[e / 6][e % 6] += from[((int64_t)part * OPDI_CU_WINO_ALL + e) * all + i];
            }
        }
        opdi_cu_wino_apply<opdi_cu_wino_turned>(v, made);
        OPDI_CU_UNROLL
        for (int t = 0; t < 9; t++) { w[(int64_t)i * 9 + t] = made[t / 3][t % 3]; }
    }
}
/* Computes elements of gw [oc, c, 3, 3] that are not finite again, as sums over all images. */
static __global__ void opdi_cu_wino_mend_gw_kernel(opdi_cu_wino q, int64_t oc, const float *x, const float *gy,
                                                   float *gw) {
    const int64_t all = oc * q.channels * 9, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t o = i / 9 / q.channels, c = i / 9 % q.channels;
        const int row = (int)(i % 9) / 3 - q.p[0], column = (int)(i % 3) - q.p[1];
        float sum = 0;
        if (isfinite(gw[i])) { continue; }
        for (int64_t line = 0; line < q.images * q.out[0] && sum == sum; line++) {
            const int64_t n = line / q.out[0], r = line % q.out[0];
            const float *ys = gy + ((n * oc + o) * q.out[0] + r) * q.out[1];
            const float *xs = x + ((n * q.channels + c) * q.in[0] + r + row) * q.in[1] + column;
            if ((uint64_t)(r + row) >= (uint64_t)q.in[0]) { continue; }
            for (int at = 0; at < q.out[1]; at++) {
                if ((unsigned)(at + column) < (unsigned)q.in[1]) { sum += xs[at] * ys[at]; }
            }
        }
        gw[i] = sum;
    }
}
/* OPDI_CU_WINO_BYTES: the bytes of transformed tiles that are computed at a time; in the emulation few, so that small
   tests also compute them in several passes.  OPDI_CU_WINO_PARTS: the fewest products of 64 x 64 sums that keep a GPU
   busy, of 36 each. */
#if defined(OPD_CUDA_EMULATED)
enum { OPDI_CU_WINO_BYTES = 5 << 20 };
#else
enum { OPDI_CU_WINO_BYTES = 128 << 20 };
#endif
enum { OPDI_CU_WINO_PARTS = 16 };
static bool opdi_cu_no_winograd;                  /* OPD_WINOGRAD=0 */
static int64_t opdi_cu_wino_tiles(const int *out) {
    return opdi_cu_ceil(out[1], OPDI_CU_WINO_TILE) * opdi_cu_ceil(out[2], OPDI_CU_WINO_TILE);
}
/* Returns whether the method can compute what `what` says and is worth using: there are enough channels and images, and
   less than half of the tiles' elements are outside of the image. */
static bool opdi_cu_wino_fits(const opdi_cu_conv *q, int what) {
    const int *out = what == OPDI_CU_CONV_GX ? q->in : q->out;
    const int64_t area = (int64_t)out[1] * out[2], tiles = opdi_cu_wino_tiles(out);
    for (int i = 0; i < 3; i++) {
        if (q->k[i] != (i ? 3 : 1) || q->s[i] != 1 || q->d[i] != 1 || q->p[i] > (i ? 2 : 0)) { return false; }
    }
    return !opdi_cu_no_winograd && q->groups == 1 && q->in[0] == 1 && q->c >= 32 && q->oc >= 32 &&
        q->c * q->oc < (1 << 26) && area < (1 << 26) && tiles * (q->c > q->oc ? q->c : q->oc) < (1 << 26) &&
        q->n < (1 << 26) && tiles * OPDI_CU_WINO_TILE * OPDI_CU_WINO_TILE < 2 * area &&
        q->n * area >= OPDI_CU_WINO_PLACES &&
        q->n * area * q->c * q->oc >= OPDI_CU_WINO_PRODUCTS;
}
/* Sets *w to the division of images into parts of `images` images. */
static void opdi_cu_wino_set(opdi_cu_wino *w, const int *in, const int *out, const int *p, int64_t images,
    int64_t all_images, int64_t channels, bool back) {
    const int64_t across = opdi_cu_ceil(out[2], OPDI_CU_WINO_TILE), tiles = opdi_cu_wino_tiles(out);
    w->images = all_images;
    w->of_part = images;
    w->channels = channels;
    w->places = images * tiles;
    for (int i = 0; i < 2; i++) {
        w->in[i] = in[1 + i]; w->out[i] = out[1 + i]; w->p[i] = back ? 2 - p[1 + i] : p[1 + i];
    }
    w->by_places = opdi_cu_divide_by((uint32_t)w->places);
    w->by_tiles = opdi_cu_divide_by((uint32_t)tiles);
    w->by_across = opdi_cu_divide_by((uint32_t)across);
}
template <class F> static int opdi_cu_wino_spread(const opdi_cu_wino &w, int64_t parts, const float *x, float *to) {
    const int64_t all = parts * w.channels * w.places;
    return opdi_cu_launch(opdi_cu_wino_spread_kernel<F>, opdi_cu_grid(all, 256), dim3(256), 0, w, x, to, (uint32_t)all);
}
/* Returns how many images of `one` bytes of transformed tiles are computed at a time. */
static int64_t opdi_cu_wino_images(int64_t images, int64_t one) {
    const int64_t most = OPDI_CU_WINO_BYTES / one;
    return most < 1 ? 1 : most < images ? most : images;
}
/* Computes a batch of products of float32 without TF32, also if the user allows TF32: Winograd's method would enlarge
   its errors.  The matrices of b.a are row-major; those of b.b too, or (`turned`) column-major.  Returns 0, or -1 and
   sets an error. */
static int opdi_cu_wino_product(const opdi_cu_product *b, bool turned, float beta) {
    const float one = 1;
    cublasHandle_t h = opdi_cu_blas();
    if (!h) { return -1; }
    const cublasStatus_t s = cublasGemmStridedBatchedEx(
        h, turned ? CUBLAS_OP_T : CUBLAS_OP_N, CUBLAS_OP_N, (int)b->p, (int)b->m, (int)b->k, &one, b->b.data,
        CUDA_R_32F, (int)(turned ? b->b.col : b->b.row), b->b.batch, b->a.data, CUDA_R_32F, (int)b->a.row, b->a.batch,
        &beta, b->out, CUDA_R_32F, (int)b->p, b->out_batch, (int)b->n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
    if (s != CUBLAS_STATUS_SUCCESS) { return opdi_cu_blas_failed(s, "cublasGemmStridedBatchedEx"); }
    OPDI_CU_TRY(opdi_cu_debug_wait(opdi_cu_stream()), "cublasGemmStridedBatchedEx");
    return opdi_cu_debug ? opdi_cu_faults() : 0;
}
/* Computes y = conv(x, w) + bias, or gx from gy, as `what` says.  `from` is read and `to` is written; both are
   contiguous.  Returns 0, or -1 and sets an error. */
static int opdi_cu_wino_run(const opdi_cu_conv *q, int what, const float *from, const float *w, const float *bias,
    float *to) {
    const bool back = what == OPDI_CU_CONV_GX;
    const int *in = back ? q->out : q->in, *out = back ? q->in : q->out;
    const int64_t channels = back ? q->oc : q->c, rows = back ? q->c : q->oc, tiles = opdi_cu_wino_tiles(out);
    const int64_t n = opdi_cu_wino_images(q->n, OPDI_CU_WINO_ALL * (channels + rows) * tiles * 4);
    float *weights = static_cast<float *>(opdi_cu_scratch((OPDI_CU_WINO_ALL * channels * rows + 1) * 4));
    float *patches = static_cast<float *>(opdi_cu_scratch(OPDI_CU_WINO_ALL * channels * n * tiles * 4));
    float *products = static_cast<float *>(opdi_cu_scratch(OPDI_CU_WINO_ALL * rows * n * tiles * 4));
    if (!weights || !patches || !products ||
        opdi_cu_launch(opdi_cu_wino_weights_kernel, opdi_cu_grid(channels * rows, 128), dim3(128), 0, w, weights,
                       (int)rows, (int)channels, back)) { return -1; }
    float *mend = weights + OPDI_CU_WINO_ALL * channels * rows;
    opdi_cu_wino tile;
    for (int64_t i = 0; i < q->n; i += n) {
        const int64_t images = n < q->n - i ? n : q->n - i, places = images * tiles;
        opdi_cu_wino_set(&tile, in, out, q->p, images, images, channels, back);
        opdi_cu_product b;
        const opdi_cu_matrix wm = {weights, channels * rows, channels, 1}, pm = {patches, channels * places, places, 1};
        b.n = OPDI_CU_WINO_ALL; b.m = rows; b.k = channels; b.p = places; b.a = wm; b.b = pm; b.out = products;
        b.out_batch = rows * places;
        if (opdi_cu_wino_spread<opdi_cu_wino_patch>(tile, 1, from + i * channels * in[1] * in[2], patches) ||
            opdi_cu_wino_product(&b, false, 0)) { return -1; }
        tile.channels = rows;
        if (opdi_cu_launch(opdi_cu_wino_result_kernel, opdi_cu_grid(rows * places, 256), dim3(256), 0, tile,
                           (const float *)products, bias, to + i * rows * out[1] * out[2], mend,
                           (uint32_t)(rows * places))) { return -1; }
    }
    tile.images = q->n;
    return opdi_cu_launch(opdi_cu_wino_mend_kernel, opdi_cu_grid(q->n * rows * out[1] * out[2], 256), dim3(256), 0,
                          tile, (int)channels, back, from, w, bias, (const float *)mend, to);
}
/* Computes gw from x and gy.  So that there are enough products to keep a GPU busy, the images are divided into parts,
   whose sums are added in a fixed order.  Returns 0, or -1 and sets an error. */
static int opdi_cu_wino_gw(const opdi_cu_conv *q, const float *x, const float *gy, float *gw) {
    const int64_t tiles = opdi_cu_wino_tiles(q->out), all = q->c * q->oc;
    const int64_t parts = opdi_cu_ceil(OPDI_CU_WINO_PARTS, opdi_cu_ceil(q->c, 64) * opdi_cu_ceil(q->oc, 64));
    const int64_t images = opdi_cu_wino_images(opdi_cu_ceil(q->n, parts),
                                               parts * OPDI_CU_WINO_ALL * (q->c + q->oc) * tiles * 4);
    const int64_t places = images * tiles, planes = parts * OPDI_CU_WINO_ALL;
    float *patches = static_cast<float *>(opdi_cu_scratch(planes * q->c * places * 4));
    float *gradients = static_cast<float *>(opdi_cu_scratch(planes * q->oc * places * 4));
    float *sums = static_cast<float *>(opdi_cu_scratch(planes * all * 4));
    if (!patches || !gradients || !sums) { return -1; }
    opdi_cu_wino of_x, of_y;
    for (int64_t i = 0; i < q->n; i += parts * images) {
        const int64_t left = q->n - i, some = left < parts * images ? opdi_cu_ceil(left, images) : parts;
        const int no_padding[3] = {0, 0, 0};
        opdi_cu_wino_set(&of_x, q->in, q->out, q->p, images, left, q->c, false);
        opdi_cu_wino_set(&of_y, q->out, q->out, no_padding, images, left, q->oc, false);
        opdi_cu_product b;
        const opdi_cu_matrix ym = {gradients, q->oc * places, places, 1}, xm = {patches, q->c * places, 1, places};
        b.n = some * OPDI_CU_WINO_ALL; b.m = q->oc; b.k = places; b.p = q->c; b.a = ym; b.b = xm;
        b.out = sums; b.out_batch = all;
        if (opdi_cu_wino_spread<opdi_cu_wino_patch>(of_x, some, x + i * q->c * q->in[1] * q->in[2], patches) ||
            opdi_cu_wino_spread<opdi_cu_wino_gradient>(of_y, some, gy + i * q->oc * q->out[1] * q->out[2],
                                                       gradients) ||
            opdi_cu_wino_product(&b, true, i > 0 ? 1.0f : 0.0f)) { return -1; }
    }
    of_x.images = q->n;
    return opdi_cu_launch(opdi_cu_wino_gw_kernel, opdi_cu_grid(all, 128), dim3(128), 0, (const float *)sums, gw,
                          (int)(q->n < parts * images ? opdi_cu_ceil(q->n, images) : parts), (int)all) ||
        opdi_cu_launch(opdi_cu_wino_mend_gw_kernel, opdi_cu_grid(all * 9, 256), dim3(256), 0, of_x, q->oc, x,
                       gy, gw) ? -1 : 0;
}

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:attention   attention
//
//  For float16 and bfloat16, and for float32 if there are more than a few rows, one kernel computes softmax(scale * q
//  k^T + mask) v without storing the scores in memory.  It also stores the logarithm of each row's sum of exponentials
//  (lse), which the derivative reads.  Three kernels compute the derivative.  All other cases are computed by separate
//  operators.  The operators have the names of PyTorch's kernels for the CPU, and the same results.
//
//  With dropout, each kernel computes from a key and a counter which weights are kept, so that no mask is stored.  The
//  random words are the ones that dropout of the weights [batch, head, row, key] would draw.
//----------------------------------------------------------------------------------------------------------------------

//== attention of 16-bit floats in one kernel ==========================================================================
//
//  A block of four warps computes 64 or 128 rows of q (16 or 32 per warp), for 64 keys at a time.  A warp with 32 rows
//  uses each part of k and v twice that it loads from shared memory; for depths over 64, it would need too many
//  registers.  A warp's scores stay in registers, where they become the first factor of the product with v.  For each
//  row, the warp keeps the maximum of the scores so far and the sum of their exponentials.  If the maximum grows, the
//  sum and the product so far are scaled down.  Meanwhile, the next 64 keys and values are copied into shared memory.
//  If the depth (the number of columns of q, k and v) is less than D, it is padded with zeros.

/* OPDI_CU_AT_TILES: the most tiles of 16 rows that a warp computes. */
enum { OPDI_CU_AT_ROWS = 64, OPDI_CU_AT_KEYS = 64, OPDI_CU_AT_THREADS = 128, OPDI_CU_AT_TILES = 2 };
/* The heads of a tensor [batch, head, row, depth].  Strides are in elements; that of the depth is 1. */
struct opdi_cu_heads { void *data; int64_t batch, head, row; };
/* A mask [batch, head, row, key].  Strides are in elements, and 0 along dims in which the mask is repeated.  kind is
   the dtype of its elements, or -1 if there is no mask.  The elements are added to the scores. */
struct opdi_cu_at_mask { const void *data; int64_t batch, head, row, key; int kind; };
/* Dropout of the weights.  keep: the probability that a weight is kept, or 1 without dropout; scale: the factor of kept
   weights.  seed: the key and the position of the first random word, in device memory.  The words of heads and rows
   are `head` and `row` apart. */
struct opdi_cu_at_drop { float keep, scale; const uint64_t *seed; int64_t head, row; };
/* Texts of different lengths, whose rows lie one after another: text i has the rows at[i] to at[i + 1] and the keys
   from[i] to from[i + 1], in device memory.  A row sees the keys from `left` before its position to `right` after it
   (-1: all of them); the last row of a text has the position of its last key.  at is NULL if there are no texts. */
struct opdi_cu_at_texts { const int64_t *at, *from; int count, left, right; };
struct opdi_cu_attention {
    opdi_cu_heads q, k, v, out, lse;              /* lse: [batch, head, row] of float */
    opdi_cu_at_texts texts;
    opdi_cu_at_mask mask;
    opdi_cu_at_drop drop;
    int rows, keys, depth, group;                 /* group: number of heads of q that share a head of k and v */
    float scale;                                  /* greater than 0 */
    bool causal;
    int splits;                                   /* in how many parts the keys are divided; each has a block */
    float *parts, *sums;                          /* if splits > 1: the results [split, batch, head, row, depth] and
                                                     logarithms of sums [split, batch, head, row] of the parts */
};
//  Texts of different lengths are one element of the batch with the rows of all texts.  Blocks of `own` rows (or keys)
//  are numbered so that text i begins with block at[i] / own + i.  So the host, which does not know the offsets, starts
//  rows / own + texts blocks, and a block finds its text by a binary search; some blocks have nothing to do.  A kernel
//  works on a copy of its arguments that describes only the block's text.

/* Turns the attention `a` into that of the text of this block, and sets *row and *key to the text's first row and first
   key.  BY_KEY: the block has `own` keys, otherwise rows.  Returns the first of these in the text, or -1 if the block
   has nothing to do. */
template <typename T, bool BY_KEY>
__device__ __forceinline__ int opdi_cu_at_text(opdi_cu_attention &a, int own, int64_t *row, int64_t *key) {
    const int64_t *const by = BY_KEY ? a.texts.from : a.texts.at;
    int low = 0, high = a.texts.count;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (by[middle] / own + middle <= (int64_t)blockIdx.x) { low = middle; } else { high = middle; }
    }
    const int tile = (int)((int64_t)blockIdx.x - by[low] / own - low);
    *row = a.texts.at[low];
    *key = a.texts.from[low];
    a.rows = (int)(a.texts.at[low + 1] - *row);
    a.keys = (int)(a.texts.from[low + 1] - *key);
    const int tiles = ((BY_KEY ? a.keys : a.rows) + own - 1) / own;
    a.q.data = static_cast<T *>(a.q.data) + *row * a.q.row;
    a.k.data = static_cast<T *>(a.k.data) + *key * a.k.row;
    a.v.data = static_cast<T *>(a.v.data) + *key * a.v.row;
    a.out.data = static_cast<T *>(a.out.data) + *row * a.out.row;
    a.lse.data = static_cast<float *>(a.lse.data) + *row * a.lse.row;
    return tile < tiles ? (tiles - 1 - tile) * own : -1;
}
/* Returns whether a row of a text sees a key. */
__device__ __forceinline__ bool opdi_cu_at_seen(const opdi_cu_attention &a, int row, int key) {
    const int back = row + a.keys - a.rows - key;
    return (a.texts.left < 0 || back <= a.texts.left) && (a.texts.right < 0 || back >= -a.texts.right);
}
/* The first key that rows from `row` on see, and the number of keys up to the last that rows before `row` see. */
__device__ __forceinline__ int opdi_cu_at_begin(const opdi_cu_attention &a, int row) {
    const int64_t at = (int64_t)row + a.keys - a.rows - a.texts.left;
    return a.texts.left < 0 || at < 0 ? 0 : at < a.keys ? (int)at : a.keys;
}
__device__ __forceinline__ int opdi_cu_at_end(const opdi_cu_attention &a, int row) {
    const int64_t at = (int64_t)row + a.keys - a.rows + a.texts.right;
    return a.texts.right < 0 || at > a.keys ? a.keys : at > 0 ? (int)at : 0;
}
/* The first row that sees keys from `key` on, and the number of rows up to the last that sees keys before `key`. */
__device__ __forceinline__ int opdi_cu_at_rows_begin(const opdi_cu_attention &a, int key) {
    const int64_t at = (int64_t)key - a.keys + a.rows - a.texts.right;
    return a.texts.right < 0 || at < 0 ? 0 : at < a.rows ? (int)at : a.rows;
}
__device__ __forceinline__ int opdi_cu_at_rows_end(const opdi_cu_attention &a, int key) {
    const int64_t at = (int64_t)key - a.keys + a.rows + a.texts.left;
    return a.texts.left < 0 || at > a.rows ? a.rows : at > 0 ? (int)at : 0;
}
/* Returns element `at` of a mask as a number to add to a score, times log2(e).  A finite number stays finite, at most
   2e38: many programs hide keys by the smallest float, and a row whose keys are all hidden so sees them all. */
__device__ __forceinline__ float opdi_cu_mask_read(const opdi_cu_at_mask &m, int64_t at) {
    const float x = m.kind == OPD_FLOAT32 ? static_cast<const float *>(m.data)[at]
        : m.kind == OPD_FLOAT16 ? __half2float(static_cast<const opdi_cu_f16 *>(m.data)[at])
                                : __bfloat162float(static_cast<const opdi_cu_bf16 *>(m.data)[at]);
    return fabsf(x) > 1.38e38f && fabsf(x) < INFINITY ? copysignf(2e38f, x) : x * 1.44269504f;
}
/* Returns whether dropout keeps the weight number `e`.  r: four random words; *group: the number of weights before
   these words / 4, or -1.  Computes other words if they are needed. */
__device__ __forceinline__ bool opdi_cu_at_kept(const opdi_cu_at_drop &d, int64_t e, uint32_t *r, int64_t *group) {
    if (e / 4 != *group) {
        *group = e / 4;
        opdi_cu_philox(d.seed[0], d.seed[1] / 4 + (uint64_t)*group, r);
    }
    const uint32_t low = e % 2 ? r[1] : r[0], high = e % 2 ? r[3] : r[2];
    return (float)(int32_t)((e % 4 < 2 ? low : high) >> 8) * 5.9604644775390625e-8f < d.keep;
}
/* Returns the number of a head over all batches.  There are at most 65,535 of each. */
__device__ __forceinline__ uint32_t opdi_cu_at_which(int batch, int head, unsigned heads) {
    return (uint32_t)batch * heads + (uint32_t)head;
}
/* Returns bits that say which weights dropout keeps among a lane's elements of [16 rows, 16 keys] (if BY_KEY, [16 keys,
   16 rows]): bit i for element i.  at: the number of the head's first weight. */
template <class M, bool BY_KEY>
__device__ __forceinline__ uint32_t opdi_cu_at_kept_bits(const opdi_cu_attention &a, int64_t at, int row0, int key0) {
    uint32_t bits = 0, r[4] = {0, 0, 0, 0};
    int64_t group = -1;
    OPDI_CU_ROLLED
    for (int i = 0; i < 8; i++) {
        const int row = row0 + (BY_KEY ? M::column(i) : M::row(i)), key = key0 + (BY_KEY ? M::row(i) : M::column(i));
        bits |= (uint32_t)opdi_cu_at_kept(a.drop, at + row * a.drop.row + key, r, &group) << i;
    }
    return bits;
}
/* Multiplies the scores s [16 rows, 16 keys] by `scale` and adds the mask, if there is one; SURE: there is one; TEXTS:
   there may be texts.  If BY_KEY, s is [16 keys, 16 rows].  `at` is the place of the head in the mask.  For rows and
   keys that do not exist, adds some number of the mask. */
template <class M, bool BY_KEY, bool SURE, bool TEXTS = true>
__device__ __forceinline__ void opdi_cu_mask_add(const opdi_cu_attention &a, int64_t at, typename M::S &s, int row0,
                                                 int key0, float scale) {
    const int64_t same = BY_KEY ? a.mask.key : a.mask.row;        /* 0: the two rows of s in a lane share numbers */
    float m[8];
    OPDI_CU_UNROLL
    for (int i = 0; i < 8; i++) {
        const int row = row0 + (BY_KEY ? M::column(i) : M::row(i)), key = key0 + (BY_KEY ? M::row(i) : M::column(i));
        if (!SURE && a.mask.kind < 0) { m[i] = TEXTS && a.texts.at && !opdi_cu_at_seen(a, row, key) ? -INFINITY : 0; }
        else if (M::of_two(i) && same == 0) { m[i] = m[i ^ 2]; }
        else {
            const int64_t r = row < a.rows ? row : 0, k = key < a.keys ? key : 0;
            m[i] = opdi_cu_mask_read(a.mask, at + r * a.mask.row + k * a.mask.key);
        }
        s.x[i] = s.x[i] * scale + m[i];
    }
}
/* Returns the address of the first element of head number `head` in batch element `batch`. */
template <typename T> __device__ __forceinline__ T *opdi_cu_head(const opdi_cu_heads &h, int64_t batch, int64_t head) {
    return static_cast<T *>(h.data) + batch * h.batch + head * h.head;
}
/* Copies ROWS rows of a tensor, from row `first` on, into shared memory.  Rows from `rows` on and columns from `depth`
   on, which do not exist, become zeros. */
template <typename T, int D, int ROWS = 64>
__device__ __forceinline__ void opdi_cu_load_rows(T *to, const T *from, int64_t stride, int first, int rows,
                                                  int depth) {
    OPDI_CU_UNROLL
    for (int i = 0; i < ROWS * D / 8 / OPDI_CU_AT_THREADS; i++) {
        const int at = i * OPDI_CU_AT_THREADS + (int)threadIdx.x, r = at / (D / 8), c = at % (D / 8) * 8;
        const bool there = first + r < rows && c < depth;
        opdi_cu_stage_16(to + r * (D + 8) + c, there ? from + (first + r) * stride + c : from, there);
    }
}
/* Returns 2 to the power of x, with an error of two units in the last place; 0 instead of denormal results. */
__device__ __forceinline__ float opdi_cu_exp2(float x) {
#if defined(OPD_CUDA_EMULATED)
    return exp2f(x);
#else
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#endif
}
/* Turns the scores s of 16 rows for KEYS keys into exponentials: finds the new maxima, and scales `total` and `sum`
   down if they have grown.  base: the first key; first: the first row; scale: the factor of the scores, times log2(e),
   or 1 if a mask has been added. */
template <class M, int KEYS>
__device__ __forceinline__ void opdi_cu_attention_exps(const opdi_cu_attention &a, typename M::S *s, int base,
                                                       int first, float scale, float *most /*[2]*/,
                                                       float *total /*[2]*/, typename M::S *sum, int sums) {
    float top[2] = {most[0], most[1]}, fade[2];
    if (base + KEYS > a.keys || (a.causal && base + KEYS > first)) {
        OPDI_CU_UNROLL
        for (int n = 0; n < KEYS / 16; n++) {
            OPDI_CU_UNROLL
            for (int i = 0; i < 8; i++) {
                const int key = base + n * 16 + M::column(i);
                if (key >= a.keys || (a.causal && key > first + M::row(i))) { s[n].x[i] = -INFINITY; }
            }
        }
    }
    OPDI_CU_UNROLL
    for (int n = 0; n < KEYS / 16; n++) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) { top[M::of_two(i)] = fmaxf(top[M::of_two(i)], s[n].x[i]); }
    }
    OPDI_CU_UNROLL
    for (int r = 0; r < 2; r++) {
        top[r] = M::row_most(top[r]);
        const float shift = top[r] == -INFINITY ? 0 : top[r] * scale;
        fade[r] = opdi_cu_exp2(most[r] * scale - shift);
        total[r] *= fade[r];
        most[r] = top[r];
        top[r] = shift;
    }
    OPDI_CU_UNROLL
    for (int n = 0; n < KEYS / 16; n++) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) {
            s[n].x[i] = opdi_cu_exp2(s[n].x[i] * scale - top[M::of_two(i)]);
            total[M::of_two(i)] += s[n].x[i];
        }
    }
    OPDI_CU_UNROLL
    for (int d = 0; d < sums; d++) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) { sum[d].x[i] *= fade[M::of_two(i)]; }
    }
}
/* Stores the results of 16 rows, from row `first` on: `sum` divided by `total`. */
template <class M, typename T, int D>
__device__ __forceinline__ void opdi_cu_attention_store(const opdi_cu_attention &a, const typename M::S *sum,
    const float *most, float *total, int first, float scale) {
    const int head = (int)blockIdx.y, batch = (int)blockIdx.z, split = (int)blockIdx.x % a.splits;
    T *out = opdi_cu_head<T>(a.out, batch, head);
    float *lse = opdi_cu_head<float>(a.lse, batch, head);
    const int64_t part = ((int64_t)split * gridDim.z + batch) * gridDim.y + head;
    total[0] = M::row_sum(total[0]); total[1] = M::row_sum(total[1]);
    OPDI_CU_UNROLL
    for (int i = 0; i < 8; i += 2) {
        const int r = M::of_two(i), row = first + M::row(i);
        const float all = total[r], by = all > 0 || all != all ? a.drop.scale / all : 0;
        if (row >= a.rows) { continue; }
        OPDI_CU_UNROLL
        for (int d = 0; d < D / 16; d++) {
            const int c = d * 16 + M::column(i);
            const float x = sum[d].x[i] * by, y = sum[d].x[i + 1] * by;
            if (c >= a.depth) { continue; }
            if (a.splits > 1) {
                const opdi_cu_vector<float, 2> two = {{x, y}};
                opdi_cu_store_vector(a.parts + (part * a.rows + row) * a.depth + c, two);
            } else {
                *reinterpret_cast<uint32_t *>(out + row * a.out.row + c) =
                    opdi_cu_two(opdi_cu_cast<T>(x), opdi_cu_cast<T>(y));
            }
        }
        if (M::column(i) == 0) {
            const float sums = most[r] * scale * 0.693147181f + logf(all);            /* -inf if no key is seen */
            if (a.splits > 1) { a.sums[part * a.rows + row] = all == 0 ? -INFINITY : sums; }
            else { lse[row * a.lse.row] = all == 0 ? 0 : sums; }
        }
    }
}
/* MASKED: whether there is a mask, dropout or texts. */
template <typename T, int D, int TILES, int KEYS, bool MASKED>
__device__ __forceinline__ void opdi_cu_attention_rows(const opdi_cu_attention &all_of, unsigned char *scratch) {
    typedef opdi_cu_mma<T, false> M;
    typedef opdi_cu_mma<T, true> V;               /* v is read column by column */
    constexpr int LD = D + 8, TILE = 64 * LD, SIDE = KEYS * LD, ROWS = TILES * OPDI_CU_AT_ROWS;
    constexpr bool HELD = D <= 128;               /* q stays in registers */
    constexpr bool TEXTS = MASKED && (D < 256 || KEYS < 32);      /* else a lane has no registers for texts */
    typename std::conditional<TEXTS, opdi_cu_attention, const opdi_cu_attention &>::type a = all_of;
    int64_t text[2];
    int first = 0;
    if constexpr (TEXTS) {
        if (a.texts.at && (first = opdi_cu_at_text<T, false>(a, ROWS, &text[0], &text[1])) < 0) { return; }
    }
    const bool texts = TEXTS && a.texts.at;
    const float scale = a.scale * 1.44269504f, of_exps = MASKED ? 1 : scale;          /* log2(e) */
    T *qs = reinterpret_cast<T *>(scratch), *kv = qs + TILES * TILE;          /* rows of q; twice the rows of k and v */
    const int warp = (int)threadIdx.x / 32, head = (int)blockIdx.y, batch = (int)blockIdx.z;
    const int split = (int)blockIdx.x % a.splits, blocks = (int)gridDim.x / a.splits;
    if (!texts) { first = (blocks - 1 - (int)blockIdx.x / a.splits) * ROWS; }       /* if causal, the blocks with most
                                                                                       keys start first */
    const T *k = opdi_cu_head<const T>(a.k, batch, head / a.group);
    const T *v = opdi_cu_head<const T>(a.v, batch, head / a.group);
    const int64_t masked = MASKED ? batch * a.mask.batch + head * a.mask.head : 0;
    const int last = texts ? opdi_cu_at_end(a, first + ROWS)
        : a.causal && first + ROWS < a.keys ? first + ROWS : a.keys, all = (last + KEYS - 1) / KEYS;
    const int begin = texts ? opdi_cu_at_begin(a, first) / KEYS : (int)((int64_t)all * split / a.splits);
    const int end = (int)((int64_t)all * (split + 1) / a.splits);
    const int of_warp = warp * TILES * 16, mine = first + of_warp;
    typename M::S sum[TILES][D / 16];
    typename M::A fq[TILES][HELD ? D / 16 : 1];
    float most[TILES][2], total[TILES][2];
    OPDI_CU_UNROLL
    for (int t = 0; t < TILES; t++) {
        most[t][0] = most[t][1] = -INFINITY;
        total[t][0] = total[t][1] = 0;
        OPDI_CU_UNROLL
        for (int d = 0; d < D / 16; d++) { M::zero(sum[t][d]); }
        opdi_cu_load_rows<T, D>(qs + t * TILE, opdi_cu_head<const T>(a.q, batch, head), a.q.row, first + t * 64, a.rows,
                                a.depth);
    }
    if (begin < end) {
        T *to = kv + begin % 2 * 2 * SIDE;
        opdi_cu_load_rows<T, D, KEYS>(to, k, a.k.row, begin * KEYS, a.keys, a.depth);
        opdi_cu_load_rows<T, D, KEYS>(to + SIDE, v, a.v.row, begin * KEYS, a.keys, a.depth);
    }
    opdi_cu_stages_commit();
    OPDI_CU_ROLLED
    for (int j = begin; j < end; j++) {
        const int base = j * KEYS;
        const T *kt = kv + j % 2 * 2 * SIDE, *vt = kt + SIDE;
        typename M::S s[TILES][KEYS / 16];
        opdi_cu_stages_wait<0>();
        __syncthreads();                          /* this tile has arrived, and all warps have finished the previous
                                                     tile */
        if (HELD && j == begin) {
            OPDI_CU_UNROLL
            for (int i = 0; i < TILES * (D / 16); i++) {
                const int t = i / (D / 16), d = i % (D / 16);
                M::load(fq[t][HELD ? d : 0], qs + (of_warp + t * 16) * LD + d * 16 + M::place_a(LD), LD);
            }
        }
        if (j + 1 < end) {
            T *to = kv + (j + 1) % 2 * 2 * SIDE;
            opdi_cu_load_rows<T, D, KEYS>(to, k, a.k.row, base + KEYS, a.keys, a.depth);
            opdi_cu_load_rows<T, D, KEYS>(to + SIDE, v, a.v.row, base + KEYS, a.keys, a.depth);
        }
        opdi_cu_stages_commit();
        if (mine >= a.rows) { continue; }         /* a warp without rows only helps to load */
        OPDI_CU_UNROLL
        for (int i = 0; i < TILES * (KEYS / 16); i++) { M::zero(s[i / (KEYS / 16)][i % (KEYS / 16)]); }
        OPDI_CU_UNROLL
        for (int d = 0; d < D / 16; d++) {
            OPDI_CU_UNROLL
            for (int t = 0; t < TILES && !HELD; t++) {
                M::load(fq[t][0], qs + (of_warp + t * 16) * LD + d * 16 + M::place_a(LD), LD);
            }
            OPDI_CU_UNROLL
            for (int n = 0; n < KEYS / 16; n++) {
                typename M::B fk;
                M::load(fk, kt + n * 16 * LD + d * 16 + M::place_b(LD), LD);
                OPDI_CU_UNROLL
                for (int t = 0; t < TILES; t++) { M::add(s[t][n], fq[t][HELD ? d : 0], fk); }
            }
        }
        OPDI_CU_UNROLL
        for (int t = 0; t < TILES; t++) {
            OPDI_CU_UNROLL
            for (int n = 0; n < KEYS / 16 && MASKED; n++) {
                opdi_cu_mask_add<M, false, false, TEXTS>(a, masked, s[t][n], mine + t * 16, base + n * 16, scale);
            }
            opdi_cu_attention_exps<M, KEYS>(a, s[t], base, mine + t * 16, of_exps, most[t], total[t], sum[t], D / 16);
            OPDI_CU_UNROLL
            for (int n = 0; n < KEYS / 16 && MASKED && a.drop.keep < 1; n++) {
                const uint32_t kept = opdi_cu_at_kept_bits<M, false>(
                    a, opdi_cu_at_which(batch, head, gridDim.y) * a.drop.head, mine + t * 16, base + n * 16);
                OPDI_CU_UNROLL
                for (int i = 0; i < 8; i++) { s[t][n].x[i] = kept >> i & 1 ? s[t][n].x[i] : 0; }
            }
        }
        OPDI_CU_UNROLL
        for (int n = 0; n < KEYS / 16; n++) {
            typename M::A fp[TILES];
            OPDI_CU_UNROLL
            for (int t = 0; t < TILES; t++) { M::turn(fp[t], s[t][n]); }
            OPDI_CU_UNROLL
            for (int d = 0; d < D / 16; d++) {
                typename V::B fv;
                V::load(fv, vt + n * 16 * LD + d * 16 + V::place_b(LD), LD);
                OPDI_CU_UNROLL
                for (int t = 0; t < TILES; t++) { M::add(sum[t][d], fp[t], fv); }
            }
        }
    }
    OPDI_CU_UNROLL
    for (int t = 0; t < TILES; t++) {
        opdi_cu_attention_store<M, T, D>(a, sum[t], most[t], total[t], mine + t * 16, of_exps);
    }
}
template <typename T, int D, int TILES, int KEYS, bool MASKED> __global__ void __launch_bounds__(OPDI_CU_AT_THREADS)
opdi_cu_attention_kernel(const __grid_constant__ opdi_cu_attention a) {
    OPDI_CU_SHARED(scratch);
    OPDI_CU_TC_STOP(T)
#if defined(OPD_CUDA_EMULATED) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)
    opdi_cu_attention_rows<T, D, TILES, KEYS, MASKED>(a, scratch);
#elif defined(__CUDA_ARCH__)
    __trap();                                     /* not reached: the host calls opdi_cu_tc_compiled first */
#endif
}
/* Combines the results of the parts of the keys.  A warp has one row; gridDim.x * 4 warps. */
template <typename T> __global__ void opdi_cu_attention_join_kernel(const __grid_constant__ opdi_cu_attention a,
                                                                    int64_t heads, int64_t all) {
    const int64_t at = (int64_t)blockIdx.x * 4 + threadIdx.x / 32;
    if (at >= all) { return; }
    const int64_t row = at % a.rows, head = at / a.rows % heads, batch = at / a.rows / heads;
    const int lane = (int)threadIdx.x % 32;
    float most = -INFINITY, total = 0;
    for (int i = 0; i < a.splits; i++) { most = fmaxf(most, a.sums[i * all + at]); }
    const float shift = most == -INFINITY ? 0 : most;
    for (int i = 0; i < a.splits; i++) { total += expf(a.sums[i * all + at] - shift); }
    const float by = total > 0 || total != total ? 1 / total : 0;
    for (int d = lane; d < a.depth; d += 32) {
        float sum = 0;
        OPDI_CU_UNROLL_4
        for (int i = 0; i < a.splits; i++) {
            const float w = expf(a.sums[i * all + at] - shift);
            sum += w == 0 ? 0 : w * a.parts[(i * all + at) * a.depth + d];
        }
        opdi_cu_store(opdi_cu_head<T>(a.out, batch, head) + row * a.out.row + d, sum * by);
    }
    if (lane == 0) { opdi_cu_head<float>(a.lse, batch, head)[row * a.lse.row] = total == 0 ? 0 : shift + logf(total); }
}

//== attention of float32 in one kernel ================================================================================
//
//  A block of 256 threads computes 128 rows of q, for 64 keys at a time, by multiply-adds without tensor cores.  Each
//  thread has 8 rows: 4 scores of each, then D / 16 columns of the result.  The threads of half a warp have the same
//  rows.  q, k and the exponentials are stored in shared memory column by column, so that a thread reads 4 of its rows
//  or keys by one load.  While the exponentials are multiplied with v, the next tile of k is loaded into registers.

/* OPDI_CU_AF_FEWEST: the fewest rows for which the kernel is used. */
enum { OPDI_CU_AF_ROWS = 128, OPDI_CU_AF_KEYS = 64, OPDI_CU_AF_THREADS = 256, OPDI_CU_AF_FEWEST = 33 };
typedef opdi_cu_vector<float, 4> opdi_cu_af_four;
/* Reads 4 numbers. */
__device__ __forceinline__ void opdi_cu_af_read(float *to, const float *from) {
    const opdi_cu_af_four v = *reinterpret_cast<const opdi_cu_af_four *>(from);
    to[0] = v.at[0]; to[1] = v.at[1]; to[2] = v.at[2]; to[3] = v.at[3];
}
/* Returns the bytes of shared memory that the kernel for this depth needs. */
static size_t opdi_cu_af_shared(int64_t depth) {
    const int d = depth <= 64 ? 64 : 128;
    return (size_t)(d * (OPDI_CU_AF_ROWS + 2 * OPDI_CU_AF_KEYS) + OPDI_CU_AF_ROWS * OPDI_CU_AF_KEYS) * sizeof(float);
}
/* Loads the calling thread's share of `side` rows, from row `first` on: 4 columns of one row, several times.  Rows and
   columns that do not exist become zeros. */
template <int D, int SIDE>
__device__ __forceinline__ void opdi_cu_af_load(opdi_cu_af_four *to, const float *from, int64_t stride, int first,
                                                int rows, int depth) {
    constexpr int APART = OPDI_CU_AF_THREADS / SIDE;
    const int r = first + (int)threadIdx.x % SIDE, c = (int)threadIdx.x / SIDE * 4;
    OPDI_CU_UNROLL
    for (int i = 0; i < D / 4 / APART; i++) {
        const int at = c + i * APART * 4;
        const opdi_cu_af_four none = {{0, 0, 0, 0}};
        to[i] = r < rows && at < depth ? *reinterpret_cast<const opdi_cu_af_four *>(from + r * stride + at) : none;
    }
}
/* Stores what opdi_cu_af_load has loaded to to[column][row]. */
template <int D, int SIDE> __device__ __forceinline__ void opdi_cu_af_turn(float *to, const opdi_cu_af_four *from) {
    constexpr int APART = OPDI_CU_AF_THREADS / SIDE;
    float *const mine = to + (int)threadIdx.x / SIDE * 4 * SIDE + (int)threadIdx.x % SIDE;
    OPDI_CU_UNROLL
    for (int i = 0; i < D / 4 / APART; i++) {
        OPDI_CU_UNROLL
        for (int c = 0; c < 4; c++) { mine[(i * APART * 4 + c) * SIDE] = from[i].at[c]; }
    }
}
/* Returns the address of 4 of the exponentials [key][row].  `four` is the number of these rows / 4.  Rows are stored in
   another order for each four keys, so that threads with other keys use other banks. */
__device__ __forceinline__ float *opdi_cu_af_exps(float *ps, int key, int four) {
    return ps + key * OPDI_CU_AF_ROWS + (four ^ (key / 4 % 8)) * 4;
}
/* Adds the mask, whose place for the head is `at`, and does the same as opdi_cu_attention_exps, for the thread's 8
   rows. */
template <int COLUMNS, bool MASKED>
__device__ __forceinline__ void opdi_cu_af_exponentials(const opdi_cu_attention &a, float (*s)[4] /*[8]*/, int base,
    int first, float scale, float *most /*[8]*/, float *total /*[8]*/, float (*sum)[COLUMNS] /*[8]*/, int64_t at) {
    const int row0 = first + (int)threadIdx.x / 16 * 8, key0 = base + (int)threadIdx.x % 16 * 4;
    const bool all = base + OPDI_CU_AF_KEYS <= a.keys && (!a.causal || base + OPDI_CU_AF_KEYS <= first + 1);
    OPDI_CU_UNROLL
    for (int r = 0; r < 8; r++) {
        float top = most[r];
        OPDI_CU_UNROLL
        for (int n = 0; n < 4; n++) {
            if (MASKED) {
                const int64_t row = row0 + r < a.rows ? row0 + r : 0, key = key0 + n < a.keys ? key0 + n : 0;
                s[r][n] = s[r][n] * scale + opdi_cu_mask_read(a.mask, at + row * a.mask.row + key * a.mask.key);
            }
            if (!all && (key0 + n >= a.keys || (a.causal && key0 + n > row0 + r))) { s[r][n] = -INFINITY; }
            top = fmaxf(top, s[r][n]);
        }
        OPDI_CU_UNROLL
        for (int lane = 8; lane > 0; lane /= 2) { top = fmaxf(top, __shfl_xor_sync(OPDI_CU_ALL_LANES, top, lane)); }
        const float by = MASKED ? 1 : scale;
        const float shift = top == -INFINITY ? 0 : top * by, fade = opdi_cu_exp2(most[r] * by - shift);
        total[r] *= fade;
        most[r] = top;
        OPDI_CU_UNROLL
        for (int n = 0; n < 4; n++) {
            s[r][n] = opdi_cu_exp2(s[r][n] * by - shift);
            total[r] += s[r][n];
        }
        OPDI_CU_UNROLL
        for (int c = 0; c < COLUMNS; c++) { sum[r][c] *= fade; }
    }
}
template <int D, bool MASKED> __global__ void __launch_bounds__(OPDI_CU_AF_THREADS, D == 64 && !MASKED ? 2 : 1)
opdi_cu_attention_float_kernel(const __grid_constant__ opdi_cu_attention a) {
    constexpr int ROWS = OPDI_CU_AF_ROWS, KEYS = OPDI_CU_AF_KEYS, COLUMNS = D / 16;
    OPDI_CU_SHARED(scratch);
    float *qs = reinterpret_cast<float *>(scratch), *ks = qs + D * ROWS, *vs = ks + D * KEYS, *ps = vs + KEYS * D;
    const float scale = a.scale * 1.44269504f;    /* log2(e) */
    const int head = (int)blockIdx.y, batch = (int)blockIdx.z;
    const int rows8 = (int)threadIdx.x / 16, of16 = (int)threadIdx.x % 16;
    const int first = (int)(gridDim.x - 1 - blockIdx.x) * ROWS;
    const float *q = opdi_cu_head<const float>(a.q, batch, head);
    const float *k = opdi_cu_head<const float>(a.k, batch, head / a.group);
    const float *v = opdi_cu_head<const float>(a.v, batch, head / a.group);
    const int64_t masked = MASKED ? batch * a.mask.batch + head * a.mask.head : 0;
    const int last = a.causal && first + ROWS < a.keys ? first + ROWS : a.keys;
    float sum[8][COLUMNS], most[8], total[8];
    opdi_cu_af_four next[COLUMNS];
    OPDI_CU_UNROLL
    for (int half = 0; half < 2; half++) {
        opdi_cu_af_load<D / 2, ROWS>(next, q + half * (D / 2), a.q.row, first, a.rows, a.depth - half * (D / 2));
        opdi_cu_af_turn<D / 2, ROWS>(qs + half * (D / 2) * ROWS, next);
    }
    opdi_cu_af_load<D, KEYS>(next, k, a.k.row, 0, a.keys, a.depth);
    opdi_cu_af_turn<D, KEYS>(ks, next);
    OPDI_CU_UNROLL
    for (int r = 0; r < 8; r++) {
        most[r] = -INFINITY;
        total[r] = 0;
        OPDI_CU_UNROLL
        for (int c = 0; c < COLUMNS; c++) { sum[r][c] = 0; }
    }
    OPDI_CU_ROLLED
    for (int base = 0; base < last; base += KEYS) {
        float s[8][4];
        __syncthreads();                          /* k has arrived; all threads have finished the previous tile */
        OPDI_CU_UNROLL
        for (int i = 0; i < COLUMNS; i++) {
            const int at = i * OPDI_CU_AF_THREADS + (int)threadIdx.x, r = at / (D / 4), c = at % (D / 4) * 4;
            const bool there = base + r < a.keys && c < a.depth;
            opdi_cu_stage_16(vs + r * D + c, there ? v + (base + r) * a.v.row + c : v, there);
        }
        opdi_cu_stages_commit();
        OPDI_CU_UNROLL
        for (int i = 0; i < 32; i++) { s[i / 4][i % 4] = 0; }
        OPDI_CU_UNROLL_4
        for (int d = 0; d < D; d++) {
            float x[8], y[4];
            opdi_cu_af_read(x, qs + d * ROWS + rows8 * 8);
            opdi_cu_af_read(x + 4, qs + d * ROWS + rows8 * 8 + 4);
            opdi_cu_af_read(y, ks + d * KEYS + of16 * 4);
            OPDI_CU_UNROLL
            for (int i = 0; i < 32; i++) { s[i / 4][i % 4] = fmaf(x[i / 4], y[i % 4], s[i / 4][i % 4]); }
        }
        opdi_cu_af_exponentials<COLUMNS, MASKED>(a, s, base, first, scale, most, total, sum, masked);
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) {
            const int n = i / 2, r = i % 2 * 4;
            const opdi_cu_af_four exps = {{s[r][n], s[r + 1][n], s[r + 2][n], s[r + 3][n]}};
            *reinterpret_cast<opdi_cu_af_four *>(opdi_cu_af_exps(ps, of16 * 4 + n, rows8 * 2 + i % 2)) = exps;
        }
        if (base + KEYS < last) { opdi_cu_af_load<D, KEYS>(next, k, a.k.row, base + KEYS, a.keys, a.depth); }
        opdi_cu_stages_wait<0>();
        __syncthreads();                          /* v and the exponentials have arrived; k is no longer needed */
        OPDI_CU_UNROLL_4
        for (int key = 0; key < KEYS; key++) {
            float x[8], y[COLUMNS];
            opdi_cu_af_read(x, opdi_cu_af_exps(ps, key, rows8 * 2));
            opdi_cu_af_read(x + 4, opdi_cu_af_exps(ps, key, rows8 * 2 + 1));
            OPDI_CU_UNROLL
            for (int c = 0; c < COLUMNS; c += 4) {
                opdi_cu_af_read(y + c, vs + key * D + c * 16 + of16 * 4);
            }
            OPDI_CU_UNROLL
            for (int r = 0; r < 8; r++) {
                OPDI_CU_UNROLL
                for (int c = 0; c < COLUMNS; c++) { sum[r][c] = fmaf(x[r], y[c], sum[r][c]); }
            }
        }
        if (base + KEYS < last) { opdi_cu_af_turn<D, KEYS>(ks, next); }
    }
    float *out = opdi_cu_head<float>(a.out, batch, head), *lse = opdi_cu_head<float>(a.lse, batch, head);
    OPDI_CU_UNROLL
    for (int r = 0; r < 8; r++) {
        const int row = first + rows8 * 8 + r;
        float all = total[r];
        OPDI_CU_UNROLL
        for (int lane = 8; lane > 0; lane /= 2) { all += __shfl_xor_sync(OPDI_CU_ALL_LANES, all, lane); }
        const float by = all > 0 || all != all ? 1 / all : 0;
        if (row >= a.rows) { continue; }
        OPDI_CU_UNROLL
        for (int c = 0; c < COLUMNS; c++) {
            const int at = c / 4 * 64 + of16 * 4 + c % 4;
            if (at < a.depth) { out[row * a.out.row + at] = sum[r][c] * by; }
        }
        const float by_most = MASKED ? 0.693147181f : a.scale;                /* the logarithm of 2 */
        if (of16 == 0) { lse[row * a.lse.row] = all == 0 ? 0 : most[r] * by_most + logf(all); }
    }
}

//== the derivative of attention of 16-bit floats ======================================================================
//
//   P = exp(scale * q * k^T + mask - lse),  dP = grad * v^T,  dS = P * (dP - delta),  delta = sum(grad * out):
//     dq = scale * dS * k,  dk = scale * dS^T * q,  dv = P^T * grad
//
//  With dropout, P in the formula of dv, and dP, are multiplied by what dropout multiplied the weights by.
//
//  Three kernels.  The first computes delta for each row.  The second has a block for each 64 or 128 rows, goes through
//  the keys and computes dq.  The third has a block for each 64 or 128 keys, goes through the rows of all heads that
//  share these keys, and computes dk and dv.  So P and dP are computed twice, but no sum is divided among blocks, and
//  the results do not depend on the order in which blocks run.  P and dS stay in registers, where they become the first
//  factor of the next product.  For depths over 128, a lane has too few registers for dk and dv, so that the third
//  kernel runs twice.

/* Unrolls the following loop if its first factors stay in registers: otherwise a lane has no registers for it. */
#if defined(OPD_CUDA_EMULATED)
#define OPDI_CU_UNROLL_IF_HELD
#else
#define OPDI_CU_UNROLL_IF_HELD _Pragma("unroll (HELD ? 8 : 1)")
#endif
struct opdi_cu_at_back {
    opdi_cu_attention a;                          /* out and lse: the results of attention */
    opdi_cu_heads grad, dq, dk, dv;
    float *sums;                                  /* [2, batch, head, row]: lse * log2(e), and delta */
    int64_t all;                                  /* batch * heads * rows */
    int heads, rows;                              /* rows: in sums, from one head to the next */
};
/* Turns the arguments into the ones of the text of this block: see opdi_cu_at_text. */
template <typename T, bool BY_KEY> __device__ __forceinline__ int opdi_cu_at_back_text(opdi_cu_at_back &b, int own) {
    int64_t row, key;
    const int first = opdi_cu_at_text<T, BY_KEY>(b.a, own, &row, &key);
    b.grad.data = static_cast<T *>(b.grad.data) + row * b.grad.row;
    b.dq.data = static_cast<T *>(b.dq.data) + row * b.dq.row;
    b.dk.data = static_cast<T *>(b.dk.data) + key * b.dk.row;
    b.dv.data = static_cast<T *>(b.dv.data) + key * b.dv.row;
    b.sums += row;
    return first;
}
/* Computes delta for a row by 16 threads.  The block has 256 threads. */
template <typename T> __global__ void opdi_cu_attention_delta_kernel(const __grid_constant__ opdi_cu_at_back b) {
    constexpr int W = 16 / sizeof(T);
    for (int64_t block = blockIdx.x; block * 16 < b.all; block += gridDim.x) {
        const int64_t at = block * 16 + threadIdx.x / 16, row = at % b.a.rows, head = at / b.a.rows % b.heads;
        const int64_t batch = at / b.a.rows / b.heads;
        float sum = 0;
        if (at < b.all) {
            const T *x = opdi_cu_head<const T>(b.grad, batch, head) + row * b.grad.row;
            const T *y = opdi_cu_head<const T>(b.a.out, batch, head) + row * b.a.out.row;
            for (int c = (int)threadIdx.x % 16 * W; c < b.a.depth; c += 16 * W) {
                const opdi_cu_vector<T, W> g = opdi_cu_load_vector<W>(x + c), o = opdi_cu_load_vector<W>(y + c);
                OPDI_CU_UNROLL
                for (int i = 0; i < W; i++) {
                    sum = fmaf(opdi_cu_taken<float>(g, i), opdi_cu_taken<float>(o, i), sum);
                }
            }
        }
        OPDI_CU_UNROLL
        for (int lane = 8; lane > 0; lane /= 2) { sum += __shfl_xor_sync(OPDI_CU_ALL_LANES, sum, lane); }
        if (at < b.all && threadIdx.x % 16 == 0) {
            b.sums[at] = opdi_cu_head<const float>(b.a.lse, batch, head)[row * b.a.lse.row] * 1.44269504f;
            b.sums[b.all + at] = sum;
        }
    }
}
/* Replaces the products s = q * k^T and d = grad * v^T of 16 rows and 16 keys by P and dS.  If BY_KEY, s and d are
   [key, row], and lse and delta have a number for each of 16 rows; otherwise they have one for each of the lane's
   two rows.  edge: whether some of the pairs do not exist or are hidden by the causal mask.  scale: times log2(e).
   HOW: 0: no mask, 1: a mask, 2: perhaps a mask, dropout or texts.  which: the number of the head, over all batches. */
template <class M, int HOW, bool BY_KEY>
__device__ __forceinline__ void opdi_cu_attention_slopes(const opdi_cu_attention &a, int64_t masked, uint32_t which,
    typename M::S &s, typename M::S &d, int row0, int key0, const float *lse, const float *delta, bool edge,
    float scale) {
    if (HOW > 0) { opdi_cu_mask_add<M, BY_KEY, HOW == 1>(a, masked, s, row0, key0, scale); }
    uint32_t kept = 255;
    if (HOW > 1 && a.drop.keep < 1) { kept = opdi_cu_at_kept_bits<M, BY_KEY>(a, which * a.drop.head, row0, key0); }
    OPDI_CU_UNROLL
    for (int i = 0; i < 8; i++) {
        const int of = BY_KEY ? M::column(i) : M::of_two(i);
        const float by = HOW > 1 ? a.drop.scale : 1;
        const bool none = HOW > 1 && !(kept >> i & 1);
        s.x[i] = opdi_cu_exp2(HOW > 0 ? s.x[i] - lse[of] : fmaf(s.x[i], scale, -lse[of]));
        d.x[i] = s.x[i] * ((none ? 0 : d.x[i] * by) - delta[of]);
        s.x[i] = none ? 0 : s.x[i] * by;
    }
    if (edge) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) {
            const int row = row0 + (BY_KEY ? M::column(i) : M::row(i));
            const int key = key0 + (BY_KEY ? M::row(i) : M::column(i));
            if (row >= a.rows || key >= a.keys || (a.causal && key > row)) { s.x[i] = d.x[i] = 0; }
        }
    }
}
/* Stores 16 rows of a sum, from row `first` on, times `scale`. */
template <class M, typename T, int D>
__device__ __forceinline__ void opdi_cu_attention_grad_store(T *to, int64_t stride, const typename M::S *sum, int first,
                                                             int rows, int depth, float scale) {
    OPDI_CU_UNROLL
    for (int d = 0; d < D / 16; d++) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i += 2) {
            const int row = first + M::row(i), c = d * 16 + M::column(i);
            if (row < rows && c < depth) {
                *reinterpret_cast<uint32_t *>(to + row * stride + c) =
                    opdi_cu_two(opdi_cu_cast<T>(sum[d].x[i] * scale), opdi_cu_cast<T>(sum[d].x[i + 1] * scale));
            }
        }
    }
}
/* Loads D / 16 first factors of products: 16 rows in shared memory, rows LD elements apart. */
template <class M, int D, typename T>
__device__ __forceinline__ void opdi_cu_attention_factors(typename M::A *to, const T *from) {
    OPDI_CU_UNROLL
    for (int d = 0; d < D / 16; d++) { M::load(to[d], from + d * 16 + M::place_a(D + 8), D + 8); }
}
/* STAGES: 2 if the next keys are loaded while these are used, otherwise 1.  If D is at most 128, rows of q and grad
   stay in registers; otherwise they are loaded again for each product. */
template <typename T, int D, int TILES, int KEYS, int STAGES, int HOW>
__device__ __forceinline__ void opdi_cu_attention_dq(const opdi_cu_at_back &all, unsigned char *scratch) {
    typedef opdi_cu_mma<T, false> M;
    typedef opdi_cu_mma<T, true> V;
    constexpr int LD = D + 8, TILE = 64 * LD, SIDE = KEYS * LD, ROWS = TILES * 64;
    constexpr bool HELD = D <= 128;
    typename std::conditional<(HOW > 1), opdi_cu_at_back, const opdi_cu_at_back &>::type b = all;
    int first = (int)(gridDim.x - 1 - blockIdx.x) * ROWS;
    if constexpr (HOW > 1) {
        if (b.a.texts.at && (first = opdi_cu_at_back_text<T, false>(b, ROWS)) < 0) { return; }
    }
    const opdi_cu_attention &a = b.a;
    const bool texts = HOW > 1 && a.texts.at;
    const float scale = a.scale * 1.44269504f;
    T *qs = reinterpret_cast<T *>(scratch), *gs = qs + TILES * TILE, *kv = gs + TILES * TILE;
    const int head = (int)blockIdx.y, batch = (int)blockIdx.z;
    const int of_warp = (int)threadIdx.x / 32 * TILES * 16, mine = first + of_warp;
    const T *k = opdi_cu_head<const T>(a.k, batch, head / a.group);
    const T *v = opdi_cu_head<const T>(a.v, batch, head / a.group);
    const int64_t masked = HOW > 0 ? batch * a.mask.batch + head * a.mask.head : 0;
    const int last = texts ? opdi_cu_at_end(a, first + ROWS)
        : a.causal && first + ROWS < a.keys ? first + ROWS : a.keys;
    const int begin = texts ? opdi_cu_at_begin(a, first) / KEYS * KEYS : 0;
    typename M::S sum[TILES][D / 16];
    typename M::A fq[TILES][HELD ? D / 16 : 1], fg[TILES][HELD ? D / 16 : 1];
    float lse[TILES][2], delta[TILES][2];
    const auto fetch = [&](int key) {             /* begins to load the keys from `key` on, if there are more */
        T *to = kv + key / KEYS % STAGES * 2 * SIDE;
        if (key < last) {
            opdi_cu_load_rows<T, D, KEYS>(to, k, a.k.row, key, a.keys, a.depth);
            opdi_cu_load_rows<T, D, KEYS>(to + SIDE, v, a.v.row, key, a.keys, a.depth);
        }
        opdi_cu_stages_commit();
    };
    OPDI_CU_UNROLL
    for (int t = 0; t < TILES; t++) {
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i++) {
            const int row = mine + t * 16 + M::row(i);
            const int64_t at = ((int64_t)batch * b.heads + head) * b.rows + (row < a.rows ? row : 0);
            lse[t][M::of_two(i)] = b.sums[at];
            delta[t][M::of_two(i)] = b.sums[b.all + at];
        }
        OPDI_CU_UNROLL
        for (int d = 0; d < D / 16; d++) { M::zero(sum[t][d]); }
        opdi_cu_load_rows<T, D>(qs + t * TILE, opdi_cu_head<const T>(a.q, batch, head), a.q.row, first + t * 64, a.rows,
                                a.depth);
        opdi_cu_load_rows<T, D>(gs + t * TILE, opdi_cu_head<const T>(b.grad, batch, head), b.grad.row, first + t * 64,
                                a.rows, a.depth);
    }
    fetch(begin);
    OPDI_CU_ROLLED
    for (int base = begin; base < last; base += KEYS) {
        const T *kt = kv + base / KEYS % STAGES * 2 * SIDE, *vt = kt + SIDE;
        const bool edge = base + KEYS > a.keys || mine + TILES * 16 > a.rows || (a.causal && base + KEYS > mine);
        opdi_cu_stages_wait<0>();
        __syncthreads();
        if constexpr (HELD) {
            OPDI_CU_UNROLL
            for (int t = 0; t < TILES && base == begin; t++) {
                opdi_cu_attention_factors<M, D>(fq[t], qs + (of_warp + t * 16) * LD);
                opdi_cu_attention_factors<M, D>(fg[t], gs + (of_warp + t * 16) * LD);
            }
        }
        if (STAGES == 2) { fetch(base + KEYS); }
        const bool none = mine >= a.rows || (a.causal && base >= mine + TILES * 16);
        OPDI_CU_UNROLL_IF_HELD
        for (int n = 0; n < KEYS / 16 && !none; n++) {
            typename M::S s[TILES], g[TILES];
            typename M::A fs[TILES];
            OPDI_CU_UNROLL
            for (int t = 0; t < TILES; t++) { M::zero(s[t]); M::zero(g[t]); }
            OPDI_CU_UNROLL
            for (int d = 0; d < D / 16; d++) {
                typename M::B fk, fv;
                M::load(fk, kt + n * 16 * LD + d * 16 + M::place_b(LD), LD);
                M::load(fv, vt + n * 16 * LD + d * 16 + M::place_b(LD), LD);
                OPDI_CU_UNROLL
                for (int t = 0; t < TILES; t++) {
                    const int at = (of_warp + t * 16) * LD + d * 16;
                    if (!HELD) { M::load(fq[t][0], qs + at + M::place_a(LD), LD); }
                    if (!HELD) { M::load(fg[t][0], gs + at + M::place_a(LD), LD); }
                    M::add(s[t], fq[t][HELD ? d : 0], fk);
                    M::add(g[t], fg[t][HELD ? d : 0], fv);
                }
            }
            OPDI_CU_UNROLL
            for (int t = 0; t < TILES; t++) {
                opdi_cu_attention_slopes<M, HOW, false>(a, masked, opdi_cu_at_which(batch, head, b.heads), s[t], g[t],
                                                        mine + t * 16, base + n * 16, lse[t], delta[t], edge, scale);
                M::turn(fs[t], g[t]);
            }
            OPDI_CU_UNROLL
            for (int d = 0; d < D / 16; d++) {
                typename V::B fk;
                V::load(fk, kt + n * 16 * LD + d * 16 + V::place_b(LD), LD);
                OPDI_CU_UNROLL
                for (int t = 0; t < TILES; t++) { M::add(sum[t][d], fs[t], fk); }
            }
        }
        if (STAGES == 1) {
            __syncthreads();
            fetch(base + KEYS);
        }
    }
    OPDI_CU_UNROLL
    for (int t = 0; t < TILES; t++) {
        opdi_cu_attention_grad_store<M, T, D>(opdi_cu_head<T>(b.dq, batch, head), b.dq.row, sum[t], mine + t * 16,
                                              a.rows, a.depth, a.scale);
    }
}
/* HELD: how many of k and v stay in registers, k first; the others are loaded again for each product.  STAGES: as for
   dq.  DK and DV: whether dk and dv are computed. */
template <typename T, int D, int TILES, int ROWS, int STAGES, int HELD, bool DK, bool DV, int HOW>
__device__ __forceinline__ void opdi_cu_attention_dkv(const opdi_cu_at_back &all, unsigned char *scratch) {
    typedef opdi_cu_mma<T, false> M;
    typedef opdi_cu_mma<T, true> V;
    constexpr int LD = D + 8, TILE = 64 * LD, SIDE = ROWS * LD, KEYS = TILES * 64;
    typename std::conditional<(HOW > 1), opdi_cu_at_back, const opdi_cu_at_back &>::type b = all;
    int first = (int)blockIdx.x * KEYS;
    if constexpr (HOW > 1) {
        if (b.a.texts.at && (first = opdi_cu_at_back_text<T, true>(b, KEYS)) < 0) { return; }
    }
    const opdi_cu_attention &a = b.a;
    const bool texts = HOW > 1 && a.texts.at;
    const float scale = a.scale * 1.44269504f;
    T *ks = reinterpret_cast<T *>(scratch), *vs = ks + TILES * TILE, *qg = vs + TILES * TILE;
    float *sums = reinterpret_cast<float *>(qg + STAGES * 2 * SIDE);          /* STAGES times: lse and delta */
    const int of_keys = (int)blockIdx.y, batch = (int)blockIdx.z;
    const int of_warp = (int)threadIdx.x / 32 * TILES * 16, mine = first + of_warp;
    const int from = texts ? opdi_cu_at_rows_begin(a, first) / ROWS * ROWS    /* the first row that sees a key */
        : a.causal ? first / ROWS * ROWS : 0, end = texts ? opdi_cu_at_rows_end(a, first + KEYS) : a.rows;
    int head = of_keys * a.group, row0 = from;    /* of the current tile */
    typename M::S dk[DK ? TILES : 1][DK ? D / 16 : 1], dv[DV ? TILES : 1][DV ? D / 16 : 1];
    typename M::A fk[HELD > 0 ? TILES : 1][HELD > 0 ? D / 16 : 1], fv[HELD > 1 ? TILES : 1][HELD > 1 ? D / 16 : 1];
    const auto fetch = [&](int side, int head, int row) {                     /* begins to load a tile */
        T *to = qg + side * 2 * SIDE;
        opdi_cu_load_rows<T, D, ROWS>(to, opdi_cu_head<const T>(a.q, batch, head), a.q.row, row, a.rows, a.depth);
        opdi_cu_load_rows<T, D, ROWS>(to + SIDE, opdi_cu_head<const T>(b.grad, batch, head), b.grad.row, row, a.rows,
                                      a.depth);
        for (int i = (int)threadIdx.x; i < 2 * ROWS; i += OPDI_CU_AT_THREADS) {
            const int r = row + i % ROWS;
            const int64_t at = ((int64_t)batch * b.heads + head) * b.rows + r;
            sums[side * 2 * ROWS + i] = r < a.rows ? b.sums[(i / ROWS) * b.all + at] : 0;
        }
    };
    OPDI_CU_UNROLL
    for (int t = 0; t < TILES; t++) {
        opdi_cu_load_rows<T, D>(ks + t * TILE, opdi_cu_head<const T>(a.k, batch, of_keys), a.k.row, first + t * 64,
                                a.keys, a.depth);
        opdi_cu_load_rows<T, D>(vs + t * TILE, opdi_cu_head<const T>(a.v, batch, of_keys), a.v.row, first + t * 64,
                                a.keys, a.depth);
        OPDI_CU_UNROLL
        for (int d = 0; d < D / 16; d++) {
            if (DK) { M::zero(dk[DK ? t : 0][DK ? d : 0]); }
            if (DV) { M::zero(dv[DV ? t : 0][DV ? d : 0]); }
        }
    }
    if (from < end) { fetch(0, head, from); }
    opdi_cu_stages_commit();
    OPDI_CU_ROLLED
    for (int side = 0; from < end && head < (of_keys + 1) * a.group; side ^= STAGES - 1) {
        const int64_t masked = HOW > 0 ? batch * a.mask.batch + head * a.mask.head : 0;
        const uint32_t which = opdi_cu_at_which(batch, head, b.heads);    /* below, `head` is the next tile's */
        const T *qt = qg + side * 2 * SIDE, *gt = qt + SIDE;
        const float *lse = sums + side * 2 * ROWS, *delta = lse + ROWS;
        const int row = row0;
        const bool edge = row + ROWS > a.rows || mine + TILES * 16 > a.keys || (a.causal && mine + TILES * 16 > row);
        opdi_cu_stages_wait<0>();
        __syncthreads();
        if (row == from && head == of_keys * a.group) {
            OPDI_CU_UNROLL
            for (int t = 0; t < TILES; t++) {
                if constexpr (HELD > 0) { opdi_cu_attention_factors<M, D>(fk[t], ks + (of_warp + t * 16) * LD); }
                if constexpr (HELD > 1) { opdi_cu_attention_factors<M, D>(fv[t], vs + (of_warp + t * 16) * LD); }
            }
        }
        row0 += ROWS;
        if (row0 >= end) { row0 = from; head++; }
        if (STAGES == 2 && head < (of_keys + 1) * a.group) { fetch(side ^ 1, head, row0); }
        opdi_cu_stages_commit();
        const bool none = mine >= a.keys || (a.causal && row + ROWS <= mine);
        OPDI_CU_UNROLL_IF_HELD
        for (int n = 0; n < ROWS / 16 && !none; n++) {
            typename M::S s[TILES], g[TILES];
            typename M::A fp[TILES], fs[TILES];
            OPDI_CU_UNROLL
            for (int t = 0; t < TILES; t++) { M::zero(s[t]); M::zero(g[t]); }
            OPDI_CU_UNROLL
            for (int d = 0; d < D / 16; d++) {
                typename M::B fq, fg;
                M::load(fq, qt + n * 16 * LD + d * 16 + M::place_b(LD), LD);
                if (DK) { M::load(fg, gt + n * 16 * LD + d * 16 + M::place_b(LD), LD); }
                OPDI_CU_UNROLL
                for (int t = 0; t < TILES; t++) {
                    const int at = (of_warp + t * 16) * LD + d * 16;
                    if (HELD < 1) { M::load(fk[0][0], ks + at + M::place_a(LD), LD); }
                    if (DK && HELD < 2) { M::load(fv[0][0], vs + at + M::place_a(LD), LD); }
                    M::add(s[t], fk[HELD > 0 ? t : 0][HELD > 0 ? d : 0], fq);
                    if (DK) { M::add(g[t], fv[HELD > 1 ? t : 0][HELD > 1 ? d : 0], fg); }
                }
            }
            OPDI_CU_UNROLL
            for (int t = 0; t < TILES; t++) {
                opdi_cu_attention_slopes<M, HOW, true>(a, masked, which, s[t], g[t], row + n * 16, mine + t * 16,
                                                       lse + n * 16, delta + n * 16, edge, scale);
                if (DV) { M::turn(fp[t], s[t]); }
                if (DK) { M::turn(fs[t], g[t]); }
            }
            OPDI_CU_UNROLL
            for (int d = 0; d < D / 16; d++) {
                typename V::B fq, fg;
                if (DV) { V::load(fg, gt + n * 16 * LD + d * 16 + V::place_b(LD), LD); }
                if (DK) { V::load(fq, qt + n * 16 * LD + d * 16 + V::place_b(LD), LD); }
                OPDI_CU_UNROLL
                for (int t = 0; t < TILES; t++) {
                    if (DV) { M::add(dv[DV ? t : 0][DV ? d : 0], fp[t], fg); }
                    if (DK) { M::add(dk[DK ? t : 0][DK ? d : 0], fs[t], fq); }
                }
            }
        }
        if (STAGES == 1) {
            __syncthreads();
            if (head < (of_keys + 1) * a.group) { fetch(0, head, row0); }
            opdi_cu_stages_commit();
        }
    }
    OPDI_CU_UNROLL
    for (int t = 0; t < TILES; t++) {
        if constexpr (DK) {
            opdi_cu_attention_grad_store<M, T, D>(opdi_cu_head<T>(b.dk, batch, of_keys), b.dk.row, dk[t], mine + t * 16,
                                                  a.keys, a.depth, a.scale);
        }
        if constexpr (DV) {
            opdi_cu_attention_grad_store<M, T, D>(opdi_cu_head<T>(b.dv, batch, of_keys), b.dv.row, dv[t], mine + t * 16,
                                                  a.keys, a.depth, 1);
        }
    }
}
template <typename T, int D, int TILES, int KEYS, int STAGES, int HOW>
__global__ void __launch_bounds__(OPDI_CU_AT_THREADS)
opdi_cu_attention_dq_kernel(const __grid_constant__ opdi_cu_at_back b) {
    OPDI_CU_SHARED(scratch);
    OPDI_CU_TC_STOP(T)
#if defined(OPD_CUDA_EMULATED) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)
    opdi_cu_attention_dq<T, D, TILES, KEYS, STAGES, HOW>(b, scratch);
#elif defined(__CUDA_ARCH__)
    __trap();                                     /* not reached: the host calls opdi_cu_tc_compiled first */
#endif
}
template <typename T, int D, int TILES, int ROWS, int STAGES, int HELD, bool DK, bool DV, int HOW>
__global__ void __launch_bounds__(OPDI_CU_AT_THREADS)
opdi_cu_attention_dkv_kernel(const __grid_constant__ opdi_cu_at_back b) {
    OPDI_CU_SHARED(scratch);
    OPDI_CU_TC_STOP(T)
#if defined(OPD_CUDA_EMULATED) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)
    opdi_cu_attention_dkv<T, D, TILES, ROWS, STAGES, HELD, DK, DV, HOW>(b, scratch);
#elif defined(__CUDA_ARCH__)
    __trap();                                     /* not reached: the host calls opdi_cu_tc_compiled first */
#endif
}
//== attention of float32: the derivative, and heads of more than 128 elements =========================================
//
//  The formulas are the ones of 16-bit floats.  A block of 256 threads has OWN rows (for dk and dv: keys), and goes
//  through the keys (rows), OTHER at a time.  All tensors are stored in shared memory row by row, D + 4 numbers apart.
//  Thread (y, x) of 16 x 16 computes the scores of the own rows y + 16 i with the other rows x + 16 j, so that the
//  loads of eight threads reach all banks once.  Then P or dS go through shared memory, because the next product sums
//  over the other rows; there, the thread has columns 4 x .. 4 x + 3 of each 64 columns.  While a product is computed,
//  the part of the next tile whose memory is free is loaded.  No sum is divided among blocks.

enum { OPDI_CU_AW_THREADS = 256 };
/* Begins to load ROWS rows of a tensor, from row `first` on.  Rows and columns that do not exist become zeros. */
template <int D, int ROWS>
__device__ __forceinline__ void opdi_cu_aw_load(float *to, const float *from, int64_t stride, int first, int rows,
                                                int depth) {
    OPDI_CU_UNROLL_4
    for (int i = 0; i < ROWS * D / 4 / OPDI_CU_AW_THREADS; i++) {
        const int at = i * OPDI_CU_AW_THREADS + (int)threadIdx.x, r = at / (D / 4), c = at % (D / 4) * 4;
        const bool there = first + r < rows && c < depth;
        opdi_cu_stage_16(to + r * (D + 4) + c, there ? from + (first + r) * stride + c : from, there);
    }
}
/* Computes s[i][j] = the product of own row y + 16 i and other row x + 16 j. */
template <int D, int OWN, int OTHER>
__device__ __forceinline__ void opdi_cu_aw_scores(float (*s)[OTHER / 16], const float *own, const float *other) {
    constexpr int M = OWN / 16, N = OTHER / 16, LD = D + 4;
    const float *a = own + (int)threadIdx.x / 16 * LD, *b = other + (int)threadIdx.x % 16 * LD;
    OPDI_CU_UNROLL
    for (int i = 0; i < M * N; i++) { s[i / N][i % N] = 0; }
    OPDI_CU_ROLLED
    for (int d = 0; d < D; d += 4) {
        float u[M][4], v[N][4];
        OPDI_CU_UNROLL
        for (int i = 0; i < M; i++) { opdi_cu_af_read(u[i], a + i * 16 * LD + d); }
        OPDI_CU_UNROLL
        for (int j = 0; j < N; j++) { opdi_cu_af_read(v[j], b + j * 16 * LD + d); }
        OPDI_CU_UNROLL
        for (int k = 0; k < 4 * M * N; k++) {
            const int i = k / N % M, j = k % N, e = k / N / M;
            s[i][j] = fmaf(u[i][e], v[j][e], s[i][j]);
        }
    }
}
/* Stores a thread's weights in w [OWN, OTHER], whose rows are OTHER + 16 apart. */
template <int OWN, int OTHER>
__device__ __forceinline__ void opdi_cu_aw_store(float *w, float (*s)[OTHER / 16]) {
    constexpr int N = OTHER / 16;
    float *const to = w + (int)threadIdx.x / 16 * (OTHER + 16) + (int)threadIdx.x % 16;
    OPDI_CU_UNROLL
    for (int k = 0; k < OWN / 16 * N; k++) { to[k / N * 16 * (OTHER + 16) + k % N * 16] = s[k / N][k % N]; }
}
/* Adds the product of the weights w [OWN, OTHER] and the other rows to `sum`. */
template <int D, int OWN, int OTHER>
__device__ __forceinline__ void opdi_cu_aw_add(float (*sum)[D / 16], const float *w, const float *other) {
    constexpr int M = OWN / 16, LD = D + 4, LW = OTHER + 16;
    const float *a = w + (int)threadIdx.x / 16 * LW, *b = other + (int)threadIdx.x % 16 * 4;
    OPDI_CU_ROLLED
    for (int o = 0; o < OTHER; o += 4) {
        float u[M][4];
        OPDI_CU_UNROLL
        for (int i = 0; i < M; i++) { opdi_cu_af_read(u[i], a + i * 16 * LW + o); }
        OPDI_CU_UNROLL
        for (int e = 0; e < 4; e++) {
            OPDI_CU_UNROLL
            for (int c = 0; c < D / 16; c += 4) {
                float v[4];
                opdi_cu_af_read(v, b + (o + e) * LD + c * 16);
                OPDI_CU_UNROLL
                for (int k = 0; k < 4 * M; k++) {
                    sum[k / 4][c + k % 4] = fmaf(u[k / 4][e], v[k % 4], sum[k / 4][c + k % 4]);
                }
            }
        }
    }
}
/* Stores the own rows of a sum, from row `first` on; by[i]: the factor of row y + 16 i. */
template <int D, int OWN>
__device__ __forceinline__ void opdi_cu_aw_rows(float *to, int64_t stride, float (*sum)[D / 16], int first,
                                                int rows, int depth, const float *by) {
    OPDI_CU_UNROLL
    for (int i = 0; i < OWN / 16; i++) {
        const int row = first + (int)threadIdx.x / 16 + i * 16;
        OPDI_CU_UNROLL
        for (int c = 0; c < D / 16; c += 4) {
            const int at = c * 16 + (int)threadIdx.x % 16 * 4;
            const opdi_cu_af_four v = {{sum[i][c] * by[i], sum[i][c + 1] * by[i], sum[i][c + 2] * by[i],
                                        sum[i][c + 3] * by[i]}};
            if (row < rows && at < depth) { *reinterpret_cast<opdi_cu_af_four *>(to + row * stride + at) = v; }
        }
    }
}
/* Returns a score times log2(e) with its mask, or -inf if the pair does not exist or is hidden by the causal mask.
   masked: the place of the head in the mask. */
__device__ __forceinline__ float opdi_cu_aw_score(const opdi_cu_attention &a, int64_t masked, float s, int row,
                                                  int key) {
    if (row >= a.rows || key >= a.keys || (a.causal && key > row) || (a.texts.at && !opdi_cu_at_seen(a, row, key))) {
        return -INFINITY;
    }
    s *= a.scale * 1.44269504f;
    return a.mask.kind < 0 ? s : s + opdi_cu_mask_read(a.mask, masked + row * a.mask.row + key * a.mask.key);
}
/* Replaces the products s = q * k^T and g = grad * v^T of own and other rows, from own0 and other0 on, by P and dS.  If
   BY_KEY, own rows are keys.  lse and delta: of the thread's rows of q.  weights: the number of
   the head's first weight. */
template <int OWN, int OTHER, bool BY_KEY>
__device__ __forceinline__ void opdi_cu_aw_slopes(const opdi_cu_attention &a, int64_t masked, int64_t weights,
    float (*s)[OTHER / 16], float (*g)[OTHER / 16], int own0, int other0, const float *lse, const float *delta) {
    constexpr int N = OTHER / 16;
    OPDI_CU_UNROLL
    for (int n = 0; n < OWN / 16 * N; n++) {
        const int i = n / N, j = n % N, of = BY_KEY ? j : i;
        const int own = own0 + (int)threadIdx.x / 16 + 16 * i, other = other0 + (int)threadIdx.x % 16 + 16 * j;
        const int row = BY_KEY ? other : own, key = BY_KEY ? own : other;
        const bool there = row < a.rows && key < a.keys && !(a.causal && key > row);
        const float p = there ? opdi_cu_exp2(opdi_cu_aw_score(a, masked, s[i][j], row, key) - lse[of]) : 0;
        bool kept = true;
        if (a.drop.keep < 1) {
            uint32_t r[4];
            int64_t group = -1;
            kept = opdi_cu_at_kept(a.drop, weights + row * a.drop.row + key, r, &group);
        }
        g[i][j] = there ? p * ((kept ? g[i][j] * a.drop.scale : 0) - delta[of]) : 0;
        s[i][j] = kept ? p * a.drop.scale : 0;
    }
}
/* Reads lse and delta of N rows, 16 apart, of a head; at: the number of the head's first row.  For rows that do not
   exist, reads the numbers of the first row. */
template <int N>
__device__ __forceinline__ void opdi_cu_aw_sums(const opdi_cu_at_back &b, int64_t at, int row, float *lse,
                                                float *delta) {
    OPDI_CU_UNROLL
    for (int i = 0; i < N; i++) {
        const int64_t of = at + (row + 16 * i < b.a.rows ? row + 16 * i : 0);
        lse[i] = b.sums[of];
        delta[i] = b.sums[b.all + of];
    }
}
/* Returns the bytes of shared memory for a block of the kernels below. */
static size_t opdi_cu_aw_shared(int d, int own, int other, bool back) {
    return (size_t)(((back ? 2 : 1) * own + 2 * other) * (d + 4) + own * (other + 16)) * sizeof(float);
}
template <int D, int OWN, int OTHER> __global__ void __launch_bounds__(OPDI_CU_AW_THREADS, D == 64 ? 2 : 1)
opdi_cu_float_dq_kernel(const __grid_constant__ opdi_cu_at_back all) {
    constexpr int LD = D + 4, M = OWN / 16, N = OTHER / 16;
    OPDI_CU_SHARED(scratch);
    opdi_cu_at_back b = all;
    int first = (int)(gridDim.x - 1 - blockIdx.x) * OWN;
    if (b.a.texts.at && (first = opdi_cu_at_back_text<float, false>(b, OWN)) < 0) { return; }
    const opdi_cu_attention &a = b.a;
    float *qs = reinterpret_cast<float *>(scratch), *gs = qs + OWN * LD, *ks = gs + OWN * LD, *vs = ks + OTHER * LD;
    float *ws = vs + OTHER * LD, sum[M][D / 16], lse[M], delta[M], by[M];
    const int head = (int)blockIdx.y, batch = (int)blockIdx.z;
    const int last = a.texts.at ? opdi_cu_at_end(a, first + OWN)
        : a.causal && first + OWN < a.keys ? first + OWN : a.keys;
    const int begin = a.texts.at ? opdi_cu_at_begin(a, first) / OTHER * OTHER : 0;
    const float *k = opdi_cu_head<const float>(a.k, batch, head / a.group);
    const float *v = opdi_cu_head<const float>(a.v, batch, head / a.group);
    const int64_t masked = batch * a.mask.batch + head * a.mask.head, at = (int64_t)batch * b.heads + head;
    opdi_cu_aw_load<D, OWN>(qs, opdi_cu_head<const float>(a.q, batch, head), a.q.row, first, a.rows, a.depth);
    opdi_cu_aw_load<D, OWN>(gs, opdi_cu_head<const float>(b.grad, batch, head), b.grad.row, first, a.rows, a.depth);
    opdi_cu_aw_load<D, OTHER>(ks, k, a.k.row, begin, a.keys, a.depth);
    opdi_cu_aw_load<D, OTHER>(vs, v, a.v.row, begin, a.keys, a.depth);
    opdi_cu_stages_commit();
    opdi_cu_aw_sums<M>(b, at * b.rows, first + (int)threadIdx.x / 16, lse, delta);
    OPDI_CU_UNROLL
    for (int i = 0; i < M; i++) {
        by[i] = a.scale;
        OPDI_CU_UNROLL
        for (int c = 0; c < D / 16; c++) { sum[i][c] = 0; }
    }
    OPDI_CU_ROLLED
    for (int base = begin; base < last; base += OTHER) {
        float s[M][N], g[M][N];
        opdi_cu_stages_wait<0>();
        __syncthreads();
        opdi_cu_aw_scores<D, OWN, OTHER>(s, qs, ks);
        opdi_cu_aw_scores<D, OWN, OTHER>(g, gs, vs);
        opdi_cu_aw_slopes<OWN, OTHER, false>(a, masked, at * a.drop.head, s, g, first, base, lse, delta);
        opdi_cu_aw_store<OWN, OTHER>(ws, g);
        __syncthreads();                          /* dS has arrived; v is no longer needed */
        if (base + OTHER < last) { opdi_cu_aw_load<D, OTHER>(vs, v, a.v.row, base + OTHER, a.keys, a.depth); }
        opdi_cu_aw_add<D, OWN, OTHER>(sum, ws, ks);
        __syncthreads();
        if (base + OTHER < last) { opdi_cu_aw_load<D, OTHER>(ks, k, a.k.row, base + OTHER, a.keys, a.depth); }
        opdi_cu_stages_commit();
    }
    opdi_cu_aw_rows<D, OWN>(opdi_cu_head<float>(b.dq, batch, head), b.dq.row, sum, first, a.rows, a.depth, by);
}
template <int D, int OWN, int OTHER> __global__ void __launch_bounds__(OPDI_CU_AW_THREADS, D == 64 ? 2 : 1)
opdi_cu_float_dkv_kernel(const __grid_constant__ opdi_cu_at_back all) {
    constexpr int LD = D + 4, M = OWN / 16, N = OTHER / 16;
    OPDI_CU_SHARED(scratch);
    opdi_cu_at_back b = all;
    int first = (int)blockIdx.x * OWN;
    if (b.a.texts.at && (first = opdi_cu_at_back_text<float, true>(b, OWN)) < 0) { return; }
    const opdi_cu_attention &a = b.a;
    float *ks = reinterpret_cast<float *>(scratch), *vs = ks + OWN * LD, *qs = vs + OWN * LD, *gs = qs + OTHER * LD;
    float *ws = gs + OTHER * LD, dk[M][D / 16], dv[M][D / 16], by[M], one[M];
    const int of_keys = (int)blockIdx.y, batch = (int)blockIdx.z;
    const int from = a.texts.at ? opdi_cu_at_rows_begin(a, first) / OTHER * OTHER    /* the first row that sees a key */
        : a.causal ? first / OTHER * OTHER : 0;
    const int rows = a.texts.at ? opdi_cu_at_rows_end(a, first + OWN) : a.rows;
    const int end = from < rows ? (of_keys + 1) * a.group : 0;
    int head = of_keys * a.group, row0 = from;
    const auto fetch = [&](float *to, const opdi_cu_heads &of) {  /* begins to load a tile of q or grad */
        if (head < end) {
            opdi_cu_aw_load<D, OTHER>(to, opdi_cu_head<const float>(of, batch, head), of.row, row0, a.rows, a.depth);
        }
    };
    opdi_cu_aw_load<D, OWN>(ks, opdi_cu_head<const float>(a.k, batch, of_keys), a.k.row, first, a.keys, a.depth);
    opdi_cu_aw_load<D, OWN>(vs, opdi_cu_head<const float>(a.v, batch, of_keys), a.v.row, first, a.keys, a.depth);
    fetch(qs, a.q);
    fetch(gs, b.grad);
    opdi_cu_stages_commit();
    OPDI_CU_UNROLL
    for (int i = 0; i < M; i++) {
        by[i] = a.scale;
        one[i] = 1;
        OPDI_CU_UNROLL
        for (int c = 0; c < D / 16; c++) { dk[i][c] = dv[i][c] = 0; }
    }
    OPDI_CU_ROLLED
    while (head < end) {
        const int64_t masked = batch * a.mask.batch + head * a.mask.head, at = (int64_t)batch * b.heads + head;
        const int row = row0;
        float s[M][N], g[M][N], lse[N], delta[N];
        opdi_cu_aw_sums<N>(b, at * b.rows, row + (int)threadIdx.x % 16, lse, delta);
        row0 += OTHER;
        if (row0 >= rows) { row0 = from; head++; }
        opdi_cu_stages_wait<0>();
        __syncthreads();
        opdi_cu_aw_scores<D, OWN, OTHER>(s, ks, qs);
        opdi_cu_aw_scores<D, OWN, OTHER>(g, vs, gs);
        opdi_cu_aw_slopes<OWN, OTHER, true>(a, masked, at * a.drop.head, s, g, first, row, lse, delta);
        opdi_cu_aw_store<OWN, OTHER>(ws, s);
        __syncthreads();
        opdi_cu_aw_add<D, OWN, OTHER>(dv, ws, gs);
        __syncthreads();                          /* P and grad are no longer needed */
        fetch(gs, b.grad);
        opdi_cu_aw_store<OWN, OTHER>(ws, g);
        __syncthreads();
        opdi_cu_aw_add<D, OWN, OTHER>(dk, ws, qs);
        __syncthreads();
        fetch(qs, a.q);
        opdi_cu_stages_commit();
    }
    opdi_cu_aw_rows<D, OWN>(opdi_cu_head<float>(b.dk, batch, of_keys), b.dk.row, dk, first, a.keys, a.depth, by);
    opdi_cu_aw_rows<D, OWN>(opdi_cu_head<float>(b.dv, batch, of_keys), b.dv.row, dv, first, a.keys, a.depth, one);
}
/* Turns the scores s of the thread's rows into exponentials, finds the new maxima, and scales `total` and `sum` down if
   they have grown: see opdi_cu_attention_exps.  With dropout, sets the exponentials of other weights to 0. */
template <int D, int OWN, int OTHER>
__device__ __forceinline__ void opdi_cu_aw_exps(const opdi_cu_attention &a, int64_t masked, int64_t weights,
    float (*s)[OTHER / 16], int first, int base, float *most, float *total, float (*sum)[D / 16]) {
    constexpr int N = OTHER / 16;
    OPDI_CU_UNROLL
    for (int i = 0; i < OWN / 16; i++) {
        const int row = first + (int)threadIdx.x / 16 + 16 * i, key0 = base + (int)threadIdx.x % 16;
        float top = most[i];
        OPDI_CU_UNROLL
        for (int j = 0; j < N; j++) {
            s[i][j] = opdi_cu_aw_score(a, masked, s[i][j], row, key0 + 16 * j);
            top = fmaxf(top, s[i][j]);
        }
        OPDI_CU_UNROLL
        for (int lane = 8; lane > 0; lane /= 2) { top = fmaxf(top, __shfl_xor_sync(OPDI_CU_ALL_LANES, top, lane)); }
        const float shift = top == -INFINITY ? 0 : top, fade = opdi_cu_exp2(most[i] - shift);
        total[i] *= fade;
        most[i] = top;
        OPDI_CU_UNROLL
        for (int j = 0; j < N; j++) {
            s[i][j] = opdi_cu_exp2(s[i][j] - shift);
            total[i] += s[i][j];
            if (a.drop.keep < 1) {
                uint32_t r[4];
                int64_t group = -1;
                const int64_t e = weights + row * a.drop.row + key0 + 16 * j;
                s[i][j] = opdi_cu_at_kept(a.drop, e, r, &group) ? s[i][j] : 0;
            }
        }
        OPDI_CU_UNROLL
        for (int c = 0; c < D / 16; c++) { sum[i][c] *= fade; }
    }
}
/* Computes attention: for heads of more than 128 elements, and with dropout. */
template <int D, int OWN, int OTHER> __global__ void __launch_bounds__(OPDI_CU_AW_THREADS, D == 64 ? 2 : 1)
opdi_cu_float_wide_kernel(const __grid_constant__ opdi_cu_attention all_of) {
    constexpr int LD = D + 4, M = OWN / 16, N = OTHER / 16;
    OPDI_CU_SHARED(scratch);
    opdi_cu_attention a = all_of;
    int64_t text[2];
    int first = (int)(gridDim.x - 1 - blockIdx.x) * OWN;
    if (a.texts.at && (first = opdi_cu_at_text<float, false>(a, OWN, &text[0], &text[1])) < 0) { return; }
    float *qs = reinterpret_cast<float *>(scratch), *ks = qs + OWN * LD, *vs = ks + OTHER * LD;
    float *ws = vs + OTHER * LD, sum[M][D / 16], most[M], total[M], by[M];
    const int head = (int)blockIdx.y, batch = (int)blockIdx.z;
    const int last = a.texts.at ? opdi_cu_at_end(a, first + OWN)
        : a.causal && first + OWN < a.keys ? first + OWN : a.keys;
    const int begin = a.texts.at ? opdi_cu_at_begin(a, first) / OTHER * OTHER : 0;
    const float *k = opdi_cu_head<const float>(a.k, batch, head / a.group);
    const float *v = opdi_cu_head<const float>(a.v, batch, head / a.group);
    const int64_t masked = batch * a.mask.batch + head * a.mask.head;
    opdi_cu_aw_load<D, OWN>(qs, opdi_cu_head<const float>(a.q, batch, head), a.q.row, first, a.rows, a.depth);
    opdi_cu_aw_load<D, OTHER>(ks, k, a.k.row, begin, a.keys, a.depth);
    opdi_cu_aw_load<D, OTHER>(vs, v, a.v.row, begin, a.keys, a.depth);
    opdi_cu_stages_commit();
    OPDI_CU_UNROLL
    for (int i = 0; i < M; i++) {
        most[i] = -INFINITY;
        total[i] = 0;
        OPDI_CU_UNROLL
        for (int c = 0; c < D / 16; c++) { sum[i][c] = 0; }
    }
    OPDI_CU_ROLLED
    for (int base = begin; base < last; base += OTHER) {
        float s[M][N];
        opdi_cu_stages_wait<0>();
        __syncthreads();
        opdi_cu_aw_scores<D, OWN, OTHER>(s, qs, ks);
        opdi_cu_aw_exps<D, OWN, OTHER>(a, masked, opdi_cu_at_which(batch, head, gridDim.y) * a.drop.head, s, first,
                                       base, most, total, sum);
        opdi_cu_aw_store<OWN, OTHER>(ws, s);
        __syncthreads();                          /* the exponentials have arrived; k is no longer needed */
        if (base + OTHER < last) { opdi_cu_aw_load<D, OTHER>(ks, k, a.k.row, base + OTHER, a.keys, a.depth); }
        opdi_cu_aw_add<D, OWN, OTHER>(sum, ws, vs);
        __syncthreads();
        if (base + OTHER < last) { opdi_cu_aw_load<D, OTHER>(vs, v, a.v.row, base + OTHER, a.keys, a.depth); }
        opdi_cu_stages_commit();
    }
    OPDI_CU_UNROLL
    for (int i = 0; i < M; i++) {
        const int row = first + (int)threadIdx.x / 16 + 16 * i;
        float all = total[i];
        OPDI_CU_UNROLL
        for (int lane = 8; lane > 0; lane /= 2) { all += __shfl_xor_sync(OPDI_CU_ALL_LANES, all, lane); }
        by[i] = all > 0 || all != all ? a.drop.scale / all : 0;
        if (threadIdx.x % 16 == 0 && row < a.rows) {
            opdi_cu_head<float>(a.lse, batch, head)[row * a.lse.row] =
                all == 0 ? 0 : most[i] * 0.693147181f + logf(all);              /* the logarithm of 2 */
        }
    }
    opdi_cu_aw_rows<D, OWN>(opdi_cu_head<float>(a.out, batch, head), a.out.row, sum, first, a.rows, a.depth, by);
}
//== the operator ======================================================================================================

/* Sets *h to the heads of t.  If rows of t do not begin at multiples of 16 bytes, copies t and uses the heads of the
   copy.  On failure, returns false and sets an error. */
static bool opdi_cu_heads_of(opd_tensor *t, opdi_cu_heads *h) {
    bool even = opd_strides(t)[3] == 1 && opdi_cu_aligned(opdi_cu_data<void>(t));
    for (int d = 0; d < 3; d++) { even = even && opd_strides(t)[d] * (int64_t)opd_dtype_size(opd_dtype(t)) % 16 == 0; }
    if (!even && !(t = opd_is_contiguous(t) ? opd_clone(t) : opd_contiguous(t))) { return false; }
    h->data = opdi_cu_data<void>(t);
    h->batch = opd_strides(t)[0]; h->head = opd_strides(t)[1]; h->row = opd_strides(t)[2];
    return h->data != NULL;
}
/* Sets *m to a mask [rows, keys] or [batch, heads, rows, keys], whose dims may have size 1; NULL means no mask. */
static bool opdi_cu_mask_of(const opd_tensor *t, opdi_cu_at_mask *m) {
    int64_t strides[4] = {0, 0, 0, 0};
    memset(m, 0, sizeof *m);
    m->kind = -1;
    if (!t) { return true; }
    for (int d = 0, first = 4 - opd_ndim(t); d < opd_ndim(t); d++) {
        strides[first + d] = opd_size(t, d) == 1 ? 0 : opd_strides(t)[d];
    }
    m->batch = strides[0]; m->head = strides[1]; m->row = strides[2]; m->key = strides[3];
    m->kind = (int)opd_dtype(t);
    m->data = opdi_cu_data<void>(t);
    return m->data != NULL;
}
/* Returns the bytes of shared memory that the kernel for 16-bit floats needs. */
static size_t opdi_cu_at_shared(int d, int tiles, int keys) {
    return (size_t)(tiles * OPDI_CU_AT_ROWS + 4 * keys) * (size_t)(d + 8) * 2;
}
/* Returns the bytes of shared memory that the kernels for the derivative of 16-bit floats need at most.  `others`: keys
   for dq or rows for dk and dv that are in memory at once, in one or two stages. */
static size_t opdi_cu_at_back_shared(int d, int tiles, int others) {
    return (size_t)(tiles * 128 + 2 * others) * (size_t)(d + 8) * 2 + (size_t)others * 2 * sizeof(float);
}
/* Tiles of the kernels for float32 in attention_float_wide.cu: see there.  For each depth, the largest comes first. */
static const struct { int depth, own, other; } opdi_cu_aw_tiles[] = {
    {64, 64, 32}, {128, 64, 64}, {128, 32, 32}, {256, 64, 32}, {256, 32, 32}, {256, 16, 16}};
static size_t opdi_cu_shared_most() { return (size_t)opdi_cu_properties()->shared - OPDI_CU_STATIC_SHARED; }
/* Returns the number of the largest tiles that the device has shared memory for, or -1.  back: for the derivative. */
static int opdi_cu_aw_choice(int64_t depth, bool back) {
    for (int i = 0; i < (int)(sizeof opdi_cu_aw_tiles / sizeof *opdi_cu_aw_tiles); i++) {
        const int d = opdi_cu_aw_tiles[i].depth, own = opdi_cu_aw_tiles[i].own, other = opdi_cu_aw_tiles[i].other;
        if (d >= depth && (d == 64 || depth > d / 2) && opdi_cu_aw_shared(d, own, other, back) <=
            opdi_cu_shared_most()) { return i; }
    }
    return -1;
}
/* Returns whether the device has shared memory for the kernels.  back: for the derivative; drop: for dropout. */
static bool opdi_cu_attention_room(opd_scalar_type t, int64_t depth, bool back, bool drop) {
    const int d = depth <= 64 ? 64 : depth <= 128 ? 128 : 256;
    if (t == OPD_FLOAT32) {
        return depth <= 128 && !back && !drop ? opdi_cu_af_shared(depth) <= opdi_cu_shared_most()
            : opdi_cu_aw_choice(depth, back) >= 0;
    }
    return depth <= 256 && (t == OPD_FLOAT16 || t == OPD_BFLOAT16) && opdi_cu_tc_compiled() &&
        (back ? opdi_cu_at_back_shared(d, d == 64 ? 2 : 1, d == 64 ? 128 : d == 128 ? 64 : 16)
              : opdi_cu_at_shared(d, 1, d == 256 ? 16 : 64)) <= opdi_cu_shared_most();
}
/* Returns whether kernels can compute this attention or, if `back`, its derivative.  The scale must not become 0 as a
   float, because the kernels multiply -inf by it.  The kernel for float32 without dropout is not used for few rows,
   because most of its threads would then compute rows that do not exist.  scaled_dot_product_attention
   (src/ops/nn/attention.c) has the same limit. */
static bool opdi_cu_attention_fits(const opd_tensor *q, const opd_tensor *k, double scale, bool back, bool drop) {
    const int64_t rows = opd_size(q, 2);
    return opdi_cu_attention_room(opd_dtype(q), opd_size(q, 3), back, drop) &&
        (opd_dtype(q) != OPD_FLOAT32 || back || drop || rows >= OPDI_CU_AF_FEWEST) &&
        scale > 1e-30 && scale < 1e30 && opd_numel(q) > 0 && opd_numel(k) > 0 &&
        opd_size(q, 0) <= 65535 && opd_size(q, 1) <= 65535 && rows < (1 << 30) && opd_size(k, 2) < (1 << 30);
}
/* Returns t, or a copy in which the last dim is filled up with zeros to a multiple of 16 bytes. */
static opd_tensor *opdi_cu_padded(opd_tensor *t) {
    const int64_t unit = t ? 16 / (int64_t)opd_dtype_size(opd_dtype(t)) : 1, over = t ? opd_size(t, 3) % unit : 0;
    return over ? opd_constant_pad_nd(t, OPD_INTS(0, unit - over)) : t;
}
/* Repeats each head of k or v for all heads of q that use it.  `heads` is the number of heads of q.  Returns NULL and
   sets an error if it fails. */
static opd_tensor *opdi_cu_heads_repeated(opd_tensor *t, int64_t heads) {
    return opd_size(t, 1) == heads ? t
        : opd_repeat_interleave_full(t, heads / opd_size(t, 1), opd_value_int(1), OPD_NONE);
}
/* Computes attention by separate products and a softmax, in the dtype of lse (float32 or float64), and writes `out` and
   `lse`.  `mask` and `hidden` may be NULL.  hidden[row][key] is -inf if the row does not see the key, otherwise NaN, of
   which fmin takes the score.  Returns 0, or -1 and sets an error. */
static int opdi_cu_attention_part(opd_tensor *q, opd_tensor *k, opd_tensor *v, opd_tensor *mask, opd_tensor *hidden,
    opd_tensor *out, opd_tensor *lse) {
    opd_tensor *scores = opd_matmul(q, opd_transpose(k, 2, 3)), *staging = opdi_cu_staging(lse);
    if (mask) { scores = opd_add(scores, mask); }
    if (hidden) { scores = opd_fmin(scores, hidden); }
    if (!staging || !scores || !(scores = opd_contiguous(scores))) { return -1; }
    const int64_t keys = opd_size(scores, 3), rows = opd_numel(scores) / keys;
    if (opd_dtype(lse) == OPD_FLOAT64
        ? opdi_cu_softmax_run<double>(opdi_cu_data<double>(scores), opdi_cu_data<double>(scores), rows, keys, false,
                                      opdi_cu_data<double>(staging))
        : opdi_cu_softmax_run<float>(opdi_cu_data<float>(scores), opdi_cu_data<float>(scores), rows, keys, false,
                                     opdi_cu_data<float>(staging))) { return -1; }
    return opdi_cu_staging_store(lse, staging) || !opd_copy_(out, opd_matmul(scores, v)) ? -1 : 0;
}
/* Returns elements [n, n + count) of the batch and heads [h, h + heads) of a tensor [batch, head, ...], or NULL for
   NULL. */
static opd_tensor *opdi_cu_heads_part(opd_tensor *t, int64_t n, int64_t count, int64_t h, int64_t heads) {
    return t ? opd_narrow(opd_narrow(t, 0, n, count), 1, h, heads) : NULL;
}
enum { OPDI_CU_SCORES = 32 << 20 };               /* bytes of scores that stay in the L2 cache */
/* Calls opdi_cu_attention_part for groups of heads.  The scores of a group have at most OPDI_CU_SCORES bytes, unless
   one head has more.  Returns 0, or -1 and sets an error. */
static int opdi_cu_attention_parts(opd_tensor *q, opd_tensor *k, opd_tensor *v, opd_tensor *mask, double scale,
    bool causal, opd_tensor *out, opd_tensor *lse) {
    const opd_scalar_type work = opd_dtype(lse);
    const int64_t batch = opd_size(q, 0), heads = opd_size(q, 1), rows = opd_size(q, 2), keys = opd_size(k, 2);
    opd_tensor *hidden = NULL;
    if (opd_numel(out) == 0 && opd_numel(lse) == 0) { return 0; }
    if (keys == 0) { return opd_zero_(out) && opd_zero_(lse) ? 0 : -1; }
    q = opd_mul_Scalar(opd_to_dtype(q, work), opd_value_double(scale));
    k = opdi_cu_heads_repeated(opd_to_dtype(k, work), heads);
    v = opdi_cu_heads_repeated(opd_to_dtype(v, work), heads);
    if (mask) { mask = opd_expand(opd_to_dtype(mask, work), OPD_INTS(batch, heads, rows, keys)); }
    if (causal) {
        opd_tensor *all = opd_full_full(OPD_INTS(rows, keys), opd_value_double(-INFINITY), opd_value_int(work),
                                        OPD_NONE, opd_value_device(opd_tensor_device(q)), OPD_NONE);
        hidden = opd_add(opd_triu(all, 1), opd_tril(opd_full_like(all, opd_value_double((double)NAN)), 0));
    }
    if (!opd_ok()) { return -1; }
    const int64_t one = rows * keys * (int64_t)opd_dtype_size(work), fit = OPDI_CU_SCORES / one;
    const int64_t count = fit / heads > 1 ? fit / heads : 1, some = fit < 1 ? 1 : fit < heads ? fit : heads;
    for (int64_t n = 0; n < batch; n += count) {
        for (int64_t h = 0; h < heads; h += some) {
            const int64_t ns = batch - n < count ? batch - n : count, hs = heads - h < some ? heads - h : some;
            int rc = -1;
            OPD_SCOPE {
                rc = opdi_cu_attention_part(opdi_cu_heads_part(q, n, ns, h, hs), opdi_cu_heads_part(k, n, ns, h, hs),
                                            opdi_cu_heads_part(v, n, ns, h, hs), opdi_cu_heads_part(mask, n, ns, h, hs),
                                            hidden, opdi_cu_heads_part(out, n, ns, h, hs),
                                            opdi_cu_heads_part(lse, n, ns, h, hs));
            }
            if (rc) { return -1; }
        }
    }
    return 0;
}
/* Returns whether the weights need more than the causal mask. */
static bool opdi_cu_attention_masked(const opdi_cu_attention &a) {
    return a.mask.kind >= 0 || a.drop.keep < 1 || a.texts.at;
}
/* Returns the number of blocks for `count` rows or keys, if a block has `own` of them. */
static unsigned opdi_cu_at_blocks(const opdi_cu_attention &a, int64_t count, int own) {
    return (unsigned)(a.texts.at ? count / own + a.texts.count : opdi_cu_ceil(count, own));
}
/* Divides the keys of an attention with few blocks, as when one token is generated, among several blocks.  `blocks`:
   the blocks without this; tiles: into how many tiles the keys are divided.  Returns 0, or -1 and sets an error. */
static int opdi_cu_attention_split(opdi_cu_attention *a, int64_t batch, int64_t heads, int64_t blocks, int64_t tiles) {
    const int64_t want = 2 * opdi_cu_properties()->multiprocessors / blocks, most = want < tiles ? want : tiles;
    if (a->causal || a->texts.at || most < 2) { return 0; }
    a->splits = (int)most;
    const int64_t all = most * batch * heads * a->rows;
    a->parts = static_cast<float *>(opdi_cu_scratch(all * (a->depth + 1) * (int64_t)sizeof(float)));
    a->sums = a->parts ? a->parts + all * a->depth : NULL;
    return a->parts ? 0 : -1;
}
/* Runs the kernel.  With a mask or dropout, TILES must be 1: a lane has too few registers for more. */
template <typename T, int D, int TILES, int KEYS>
static int opdi_cu_attention_launch(opdi_cu_attention *a, int64_t batch, int64_t heads) {
    const int64_t blocks = opdi_cu_at_blocks(*a, a->rows, TILES * OPDI_CU_AT_ROWS), all = batch * heads * a->rows;
    if (opdi_cu_attention_split(a, batch, heads, blocks * batch * heads, opdi_cu_ceil(a->keys, KEYS))) { return -1; }
    const dim3 grid((unsigned)(blocks * a->splits), (unsigned)heads, (unsigned)batch);
    if (opdi_cu_launch(!opdi_cu_attention_masked(*a) ? opdi_cu_attention_kernel<T, D, TILES, KEYS, false>
                                        : opdi_cu_attention_kernel<T, D, TILES, KEYS, TILES == 1>,
                       grid, dim3(OPDI_CU_AT_THREADS), opdi_cu_at_shared(D, TILES, KEYS), *a)) { return -1; }
    return a->splits < 2 ? 0 : opdi_cu_launch(opdi_cu_attention_join_kernel<T>, dim3((unsigned)opdi_cu_ceil(all, 4)),
                                              dim3(128), 0, *a, heads, all);
}
/* If there is one row, without dropout, the heads of q that share a head of k become the rows of this head. */
static void opdi_cu_attention_pack(opdi_cu_attention *a, int64_t *heads) {
    opdi_cu_heads *const all[3] = {&a->q, &a->out, &a->lse};
    if (a->rows != 1 || a->drop.keep < 1 || a->texts.at) { return; }
    for (int i = 0; i < 3; i++) {
        all[i]->row = all[i]->head;
        all[i]->head *= a->group;
    }
    a->mask.row = a->mask.head;
    a->mask.head *= a->group;
    *heads /= a->group;
    a->rows = a->group;
    a->group = 1;
    if (a->causal) { a->keys = 1; }               /* the one row sees the first key */
    a->causal = false;
}
template <typename T> static int opdi_cu_attention_run(opdi_cu_attention a, int64_t batch, int64_t heads) {
    opdi_cu_attention_pack(&a, &heads);
    const bool room = opdi_cu_at_shared(256, 1, 32) <= opdi_cu_shared_most() && !a.texts.at;
    const bool few = a.rows <= OPDI_CU_AT_ROWS || opdi_cu_attention_masked(a);
    return a.depth > 128 && room ? opdi_cu_attention_launch<T, 256, 1, 32>(&a, batch, heads)
        : a.depth > 128 ? opdi_cu_attention_launch<T, 256, 1, 16>(&a, batch, heads)
        : a.depth > 64 ? opdi_cu_attention_launch<T, 128, 1, 64>(&a, batch, heads)
        : few ? opdi_cu_attention_launch<T, 64, 1, 64>(&a, batch, heads)
        : opdi_cu_attention_launch<T, 64, OPDI_CU_AT_TILES, 64>(&a, batch, heads);
}
template <int D, int OWN, int OTHER>
static int opdi_cu_attention_wide_run(const opdi_cu_attention &a, int64_t batch, int64_t heads) {
    const dim3 grid(opdi_cu_at_blocks(a, a.rows, OWN), (unsigned)heads, (unsigned)batch);
    return opdi_cu_launch(opdi_cu_float_wide_kernel<D, OWN, OTHER>, grid, dim3(OPDI_CU_AW_THREADS),
                          opdi_cu_aw_shared(D, OWN, OTHER, false), a);
}
static int opdi_cu_attention_wide(const opdi_cu_attention &a, int64_t batch, int64_t heads) {
    switch (opdi_cu_aw_choice(a.depth, false)) {
        case 0: return opdi_cu_attention_wide_run<64, 64, 32>(a, batch, heads);
        case 1: return opdi_cu_attention_wide_run<128, 64, 64>(a, batch, heads);
        case 2: return opdi_cu_attention_wide_run<128, 32, 32>(a, batch, heads);
        case 3: return opdi_cu_attention_wide_run<256, 64, 32>(a, batch, heads);
        case 4: return opdi_cu_attention_wide_run<256, 32, 32>(a, batch, heads);
        default: return opdi_cu_attention_wide_run<256, 16, 16>(a, batch, heads);
    }
}
static int opdi_cu_attention_float(const opdi_cu_attention &a, int64_t batch, int64_t heads) {
    if (a.depth > 128 || a.drop.keep < 1 || a.texts.at) { return opdi_cu_attention_wide(a, batch, heads); }
    const dim3 grid((unsigned)opdi_cu_ceil(a.rows, OPDI_CU_AF_ROWS), (unsigned)heads, (unsigned)batch);
    const bool masked = a.mask.kind >= 0;
    return opdi_cu_launch(a.depth <= 64 ? masked ? opdi_cu_attention_float_kernel<64, true>
                                                 : opdi_cu_attention_float_kernel<64, false>
                          : masked ? opdi_cu_attention_float_kernel<128, true>
                                   : opdi_cu_attention_float_kernel<128, false>,
                          grid, dim3(OPDI_CU_AF_THREADS), opdi_cu_af_shared(a.depth), a);
}
/* Describes an attention to the kernels.  If `out` is NULL, a->out is not set.  Returns 0, or -1 and sets an error. */
static int opdi_cu_attention_of(opdi_cu_attention *a, opd_tensor *q, opd_tensor *k, opd_tensor *v, opd_tensor *out,
                                opd_tensor *lse, opd_tensor *mask, double scale, bool causal) {
    memset(a, 0, sizeof *a);
    if (!opd_ok() || !opdi_cu_heads_of(q, &a->q) || !opdi_cu_heads_of(k, &a->k) || !opdi_cu_heads_of(v, &a->v) ||
        !opdi_cu_mask_of(mask, &a->mask)) { return -1; }
    if (out) {
        a->out.data = opdi_cu_data<void>(out);
        a->out.batch = opd_strides(out)[0]; a->out.head = opd_strides(out)[1]; a->out.row = opd_strides(out)[2];
    }
    a->lse.data = opdi_cu_data<void>(lse);
    a->lse.batch = opd_strides(lse)[0]; a->lse.head = opd_strides(lse)[1]; a->lse.row = opd_strides(lse)[2];
    a->rows = (int)opd_size(q, 2); a->keys = (int)opd_size(k, 2); a->depth = (int)opd_size(q, 3);
    a->group = (int)(opd_size(q, 1) / opd_size(k, 1));
    a->scale = (float)scale;
    a->causal = causal;
    a->splits = 1;
    a->drop.keep = a->drop.scale = 1;
    return 0;
}
/* Adds dropout with probability p to an attention.  seed: [2], the key and the position of the random words. */
static void opdi_cu_attention_drop(opdi_cu_attention *a, double p, const opd_tensor *seed) {
    const float keep = (float)(1 - p);
    a->drop.keep = keep;
    a->drop.scale = (float)(1 / (1 - p));
    a->drop.seed = opdi_cu_data<const uint64_t>(seed);
    a->drop.row = a->keys;
    a->drop.head = (int64_t)a->rows * a->keys;
}
/* Computes attention by a kernel, for which opdi_cu_attention_fits has returned true, and writes `out` and `lse`.
   seed: NULL without dropout.  Returns 0, or -1 and sets an error. */
static int opdi_cu_attention_forward(opd_tensor *q, opd_tensor *k, opd_tensor *v, opd_tensor *mask, double scale,
    bool causal, double p, const opd_tensor *seed, opd_tensor *out, opd_tensor *lse,
    const opdi_cu_at_texts &texts = opdi_cu_at_texts()) {
    const bool whole = opd_size(q, 3) * (int64_t)opd_dtype_size(opd_dtype(q)) % 16 == 0;
    opdi_cu_attention a;
    q = opdi_cu_padded(q); k = opdi_cu_padded(k); v = opdi_cu_padded(v);
    opd_tensor *work = whole && opd_strides(out)[3] == 1 ? out
        : q ? opdi_cu_new(opd_ints_of(opd_sizes(q), 4), opd_dtype(out)) : NULL;
    if (!work || opdi_cu_attention_of(&a, q, k, v, work, lse, mask, scale, causal)) { return -1; }
    a.texts = texts;
    if (seed) { opdi_cu_attention_drop(&a, p, seed); }
    const int64_t batch = opd_size(q, 0), heads = opd_size(q, 1);
    if (opd_dtype(q) == OPD_FLOAT32 ? opdi_cu_attention_float(a, batch, heads)
        : opd_dtype(q) == OPD_FLOAT16 ? opdi_cu_attention_run<opdi_cu_f16>(a, batch, heads)
                                      : opdi_cu_attention_run<opdi_cu_bf16>(a, batch, heads)) { return -1; }
    return work == out || opd_copy_(out, opd_narrow(work, 3, 0, opd_size(out, 3))) ? 0 : -1;
}
static int opdi_cu_flash_attention(opd_call *call) {
    opd_tensor *q = opd_arg_tensor(call, 0), *k = opd_arg_tensor(call, 1), *v = opd_arg_tensor(call, 2),
        *mask = opd_arg_tensor(call, 5), *out, *lse;
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0); lse = opdi_cu_result(call, 1);
    const double scale = opd_arg_is_none(call, 6) ? 1 / sqrt((double)opd_size(q, 3)) : opd_arg_double(call, 6);
    const bool causal = opd_arg_bool(call, 4);
    return opdi_cu_attention_fits(q, k, scale, false, false)
        ? opdi_cu_attention_forward(q, k, v, mask, scale, causal, 0, NULL, out, lse)
        : opdi_cu_attention_parts(q, k, v, mask, scale, causal, out, lse);
}

//== the derivative ====================================================================================================

/* Rows [row, head, depth] as [1, head, row, depth], and back. */
static opd_tensor *opdi_cu_at_heads_of(opd_tensor *t) { return opd_unsqueeze(opd_transpose(t, 0, 1), 0); }
static opd_tensor *opdi_cu_at_rows_of(opd_tensor *t) { return opd_transpose(opd_select(t, 0, 0), 0, 1); }
static opdi_cu_heads opdi_cu_heads_at(const opd_tensor *t) {
    const int64_t *s = opd_strides(t);
    const opdi_cu_heads h = {opdi_cu_data<void>(t), s[0], s[1], s[2]};
    return h;
}
template <typename T, int D, int TILES, int KEYS, int STAGES, int HOW>
static int opdi_cu_attention_dq_run(const opdi_cu_at_back &b, int64_t batch) {
    const dim3 grid(opdi_cu_at_blocks(b.a, b.a.rows, TILES * 64), (unsigned)b.heads, (unsigned)batch);
    return opdi_cu_launch(opdi_cu_attention_dq_kernel<T, D, TILES, KEYS, STAGES, HOW>, grid,
                          dim3(OPDI_CU_AT_THREADS), opdi_cu_at_back_shared(D, TILES, KEYS * STAGES), b);
}
template <typename T, int D, int TILES, int ROWS, int STAGES, int HELD, bool DK, bool DV, int HOW>
static int opdi_cu_attention_dkv_run(const opdi_cu_at_back &b, int64_t batch) {
    const dim3 grid(opdi_cu_at_blocks(b.a, b.a.keys, TILES * 64), (unsigned)(b.heads / b.a.group), (unsigned)batch);
    return opdi_cu_launch(opdi_cu_attention_dkv_kernel<T, D, TILES, ROWS, STAGES, HELD, DK, DV, HOW>, grid,
                          dim3(OPDI_CU_AT_THREADS), opdi_cu_at_back_shared(D, TILES, ROWS * STAGES), b);
}
template <typename T, int OTHERS, int STAGES>
static int opdi_cu_attention_back_256(const opdi_cu_at_back &b, int64_t batch) {
    return opdi_cu_attention_dq_run<T, 256, 1, OTHERS, STAGES, 2>(b, batch) ||
        opdi_cu_attention_dkv_run<T, 256, 1, OTHERS, STAGES, 0, false, true, 2>(b, batch) ||
        opdi_cu_attention_dkv_run<T, 256, 1, OTHERS, STAGES, 0, true, false, 2>(b, batch) ? -1 : 0;
}
/* Runs the kernels for dq, dk and dv.  The sizes of their tiles are the largest for which the registers of a lane and
   the shared memory suffice. */
template <typename T> static int opdi_cu_attention_back_run(const opdi_cu_at_back &b, int64_t batch) {
    const int how = b.a.drop.keep < 1 || b.a.texts.at ? 2 : b.a.mask.kind >= 0 ? 1 : 0;
    if (b.a.depth > 128) {
        return opdi_cu_at_back_shared(256, 1, 64) <= opdi_cu_shared_most()
            ? opdi_cu_attention_back_256<T, 32, 2>(b, batch) : opdi_cu_attention_back_256<T, 16, 1>(b, batch);
    }
    if (b.a.depth <= 64) {
        return (how == 0 ? opdi_cu_attention_dq_run<T, 64, 2, 64, 2, 0>(b, batch)
                : how == 1 ? opdi_cu_attention_dq_run<T, 64, 2, 64, 2, 1>(b, batch)
                           : opdi_cu_attention_dq_run<T, 64, 1, 64, 2, 2>(b, batch)) ? -1
            : how == 0 ? opdi_cu_attention_dkv_run<T, 64, 2, 32, 2, 2, true, true, 0>(b, batch)
                       : opdi_cu_attention_dkv_run<T, 64, 1, 64, 2, 2, true, true, 2>(b, batch);
    }
    return (how == 0 ? opdi_cu_attention_dq_run<T, 128, 1, 32, 2, 0>(b, batch)
                     : opdi_cu_attention_dq_run<T, 128, 1, 32, 2, 2>(b, batch)) ? -1
        : how == 0 ? opdi_cu_attention_dkv_run<T, 128, 1, 32, 2, 1, true, true, 0>(b, batch)
        : how == 1 ? opdi_cu_attention_dkv_run<T, 128, 1, 32, 2, 1, true, true, 1>(b, batch)
                   : opdi_cu_attention_dkv_run<T, 128, 1, 32, 2, 0, true, true, 2>(b, batch);
}
template <int D, int OWN, int OTHER>
static int opdi_cu_attention_back_wide_run(const opdi_cu_at_back &b, int64_t batch) {
    const dim3 rows(opdi_cu_at_blocks(b.a, b.a.rows, OWN), (unsigned)b.heads, (unsigned)batch);
    const dim3 keys(opdi_cu_at_blocks(b.a, b.a.keys, OWN), (unsigned)(b.heads / b.a.group), (unsigned)batch);
    const size_t shared = opdi_cu_aw_shared(D, OWN, OTHER, true);
    return opdi_cu_launch(opdi_cu_float_dq_kernel<D, OWN, OTHER>, rows, dim3(OPDI_CU_AW_THREADS), shared, b) ? -1
        : opdi_cu_launch(opdi_cu_float_dkv_kernel<D, OWN, OTHER>, keys, dim3(OPDI_CU_AW_THREADS), shared, b);
}
static int opdi_cu_attention_back_wide(const opdi_cu_at_back &b, int64_t batch) {
    switch (opdi_cu_aw_choice(b.a.depth, true)) {
        case 0: return opdi_cu_attention_back_wide_run<64, 64, 32>(b, batch);
        case 1: return opdi_cu_attention_back_wide_run<128, 64, 64>(b, batch);
        case 2: return opdi_cu_attention_back_wide_run<128, 32, 32>(b, batch);
        case 3: return opdi_cu_attention_back_wide_run<256, 64, 32>(b, batch);
        case 4: return opdi_cu_attention_back_wide_run<256, 32, 32>(b, batch);
        default: return opdi_cu_attention_back_wide_run<256, 16, 16>(b, batch);
    }
}
template <typename T> static int opdi_cu_attention_delta_run(const opdi_cu_at_back &b) {
    return opdi_cu_launch(opdi_cu_attention_delta_kernel<T>, opdi_cu_grid_rows(opdi_cu_ceil(b.all, 16)), dim3(256), 0,
                          b);
}
/* Computes the derivatives by kernels, for which opdi_cu_attention_fits has returned true, and returns them from the
   call.  in: the gradient of the result, q, k, v and the result.  seed: NULL without dropout.  Returns 0, or -1 and
   sets an error. */
static int opdi_cu_attention_gradients(opd_call *call, opd_tensor **in /*[5]*/, opd_tensor *lse, opd_tensor *mask,
                                       double scale, bool causal, double p, const opd_tensor *seed,
                                       const opdi_cu_at_texts &texts = opdi_cu_at_texts()) {
    const int64_t depth = opd_size(in[1], 3), batch = opd_size(in[1], 0);
    const opd_scalar_type type = opd_dtype(in[1]);
    opd_tensor *grads[3];
    opdi_cu_at_back b;
    for (int i = 0; i < 5; i++) { if (!(in[i] = opdi_cu_padded(in[i]))) { return -1; } }
    for (int i = 0; i < 3; i++) {                 /* [batch, row, head, depth] in memory */
        const int64_t *n = opd_sizes(in[1 + i]);
        grads[i] = opd_transpose(opdi_cu_new(OPD_INTS(n[0], n[2], n[1], n[3]), type), 1, 2);
        if (!grads[i]) { return -1; }
    }
    memset(&b, 0, sizeof b);
    b.heads = (int)opd_size(in[1], 1);
    b.rows = (int)opd_size(in[1], 2);
    b.all = batch * b.heads * b.rows;
    b.sums = static_cast<float *>(opdi_cu_scratch(2 * b.all * (int64_t)sizeof(float)));
    if (!b.sums || opdi_cu_attention_of(&b.a, in[1], in[2], in[3], NULL, lse, mask, scale, causal) ||
        !opdi_cu_heads_of(in[4], &b.a.out) || !opdi_cu_heads_of(in[0], &b.grad)) { return -1; }
    b.a.texts = texts;
    if (seed) { opdi_cu_attention_drop(&b.a, p, seed); }
    b.dq = opdi_cu_heads_at(grads[0]); b.dk = opdi_cu_heads_at(grads[1]); b.dv = opdi_cu_heads_at(grads[2]);
    if (type == OPD_FLOAT32 ? opdi_cu_attention_delta_run<float>(b) || opdi_cu_attention_back_wide(b, batch)
        : type == OPD_FLOAT16 ? opdi_cu_attention_delta_run<opdi_cu_f16>(b) ||
            opdi_cu_attention_back_run<opdi_cu_f16>(b, batch)
        : opdi_cu_attention_delta_run<opdi_cu_bf16>(b) || opdi_cu_attention_back_run<opdi_cu_bf16>(b, batch)) {
        return -1;
    }
    for (int i = 0; i < 3; i++) {
        if (opd_size(grads[i], 3) != depth) { grads[i] = opd_narrow(grads[i], 3, 0, depth); }
        if (texts.at) { grads[i] = opdi_cu_at_rows_of(grads[i]); }
        if (opd_return_tensor(call, grads[i])) { return -1; }
    }
    return 0;
}
/* Computes the derivatives of attention: a call of _scaled_dot_product_flash_attention_for_cpu_backward.  Returns 0, or
   -1 and sets an error; or 1 if there is no kernel for this call, which then has no result. */
static int opdi_cu_attention_backward(opd_call *call) {
    opd_tensor *in[5];
    for (int i = 0; i < 5; i++) { in[i] = opd_arg_tensor(call, i); }
    const double scale = opd_arg_is_none(call, 9) ? 1 / sqrt((double)opd_size(in[1], 3)) : opd_arg_double(call, 9);
    const opdi_cu_on device(opd_tensor_device(in[1]).index);
    return !opdi_cu_attention_fits(in[1], in[2], scale, true, false) ? 1
        : opdi_cu_attention_gradients(call, in, opd_arg_tensor(call, 5), opd_arg_tensor(call, 8), scale,
                                      opd_arg_bool(call, 7), 0, NULL);
}

//== dropout ===========================================================================================================

__global__ void opdi_cu_attention_seed_kernel(uint64_t *seed, uint64_t key, uint64_t at, const uint64_t *state) {
    seed[0] = state ? state[0] : key;
    seed[1] = at + (state ? state[1] : 0);
}
/* Returns the key and the position of the random words for the weights of an attention, [2] of int64, which are taken
   from the generator.  Returns NULL and sets an error if it fails. */
static opd_tensor *opdi_cu_attention_seed(int64_t weights) {
    const int64_t two = 2;
    const uint64_t *state = NULL;
    opd_draw draw;
    opd_tensor *seed = opdi_cu_new(opd_ints_of(&two, 1), OPD_INT64);
    if (!seed) { return NULL; }
    memset(&draw, 0, sizeof draw);
    draw.words = weights;
    draw.at = opd_generator_take(draw.generator, draw.words, &draw.key);
    return opdi_cu_sequence_of(opdi_cu_current(), &draw, &state) ||
        opdi_cu_launch(opdi_cu_attention_seed_kernel, dim3(1), dim3(1), 0, opdi_cu_data<uint64_t>(seed), draw.key,
                       draw.at, state) ? NULL : seed;
}
/* opd_cuda::attention_dropout: attention with dropout, lse and the seed; or None three times if there is no kernel. */
static int opdi_cu_attention_dropout(opd_call *call) {
    opd_tensor *q = opd_arg_tensor(call, 0), *k = opd_arg_tensor(call, 1), *v = opd_arg_tensor(call, 2), *out, *lse;
    const double p = opd_arg_double(call, 4), scale = opd_arg_double(call, 6);
    if (!opdi_cu_attention_fits(q, k, scale, false, true) || !opdi_cu_attention_fits(q, k, scale, true, true)) {
        for (int i = 0; i < 3; i++) { if (opd_return_value(call, opd_value_none())) { return -1; } }
        return 0;
    }
    const int64_t *n = opd_sizes(q);
    opd_tensor *seed = opdi_cu_attention_seed(n[0] * n[1] * n[2] * opd_size(k, 2));
    out = opd_transpose(opdi_cu_new(OPD_INTS(n[0], n[2], n[1], n[3]), opd_dtype(q)), 1, 2);
    lse = opdi_cu_new(OPD_INTS(n[0], n[1], n[2]), OPD_FLOAT32);
    if (!seed || !out || !lse ||
        opdi_cu_attention_forward(q, k, v, opd_arg_tensor(call, 3), scale, opd_arg_bool(call, 5), p, seed, out, lse)) {
        return -1;
    }
    return opd_return_tensor(call, out) || opd_return_tensor(call, lse) || opd_return_tensor(call, seed) ? -1 : 0;
}
static int opdi_cu_attention_dropout_backward(opd_call *call) {
    opd_tensor *in[5];
    for (int i = 0; i < 5; i++) { in[i] = opd_arg_tensor(call, i); }
    return opdi_cu_attention_gradients(call, in, opd_arg_tensor(call, 5), opd_arg_tensor(call, 7),
                                       opd_arg_double(call, 10), opd_arg_bool(call, 9), opd_arg_double(call, 8),
                                       opd_arg_tensor(call, 6));
}
__global__ void opdi_cu_attention_kept_kernel(float *out, opdi_cu_at_drop d, int64_t n) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i * 4 < n; i += step) {
        uint32_t r[4];
        int64_t group = -1;
        for (int64_t k = i * 4; k < n && k < i * 4 + 4; k++) {
            out[k] = opdi_cu_at_kept(d, k, r, &group) ? d.scale : 0;
        }
    }
}
/* opd_cuda::attention_kept: what dropout multiplies the weights by, with the sizes [batch, heads, rows, keys]. */
static int opdi_cu_attention_kept(opd_call *call) {
    opdi_cu_attention a;
    opd_tensor *out = opdi_cu_new(opd_arg_ints(call, 1), OPD_FLOAT32);
    memset(&a, 0, sizeof a);
    opdi_cu_attention_drop(&a, opd_arg_double(call, 2), opd_arg_tensor(call, 0));
    if (!out || opdi_cu_launch(opdi_cu_attention_kept_kernel, opdi_cu_grid(opdi_cu_ceil(opd_numel(out), 4), 256),
                               dim3(256), 0, opdi_cu_data<float>(out), a.drop, opd_numel(out))) { return -1; }
    return opd_return_tensor(call, out);
}

//== texts of different lengths ========================================================================================

struct opdi_cu_at_offsets {
    const void *from[2];
    int64_t step[2], most[2];                     /* step: between offsets; most: the number of rows, keys */
    bool brief[2];                                /* int32, otherwise int64 */
    int64_t *to;                                  /* [2, n] */
    int n;
    opdi_cu_guard guard;
    __device__ int64_t read(int which, int i) const {
        return brief[which] ? static_cast<const int32_t *>(from[which])[i * step[which]]
                            : static_cast<const int64_t *>(from[which])[i * step[which]];
    }
};
/* Copies the offsets of texts.  If some are wrong, notes a fault and writes zeros, so that no text has rows. */
__global__ void opdi_cu_at_offsets_kernel(const opdi_cu_at_offsets o) {
    int good = 1;
    for (int i = (int)threadIdx.x; i < 2 * o.n; i += (int)blockDim.x) {
        const int which = i >= o.n, at = i - which * o.n;
        const int64_t x = o.read(which, at), before = at ? o.read(which, at - 1) : 0;
        if (x < before || x > o.most[which] || (at == 0 && x != 0) || (at + 1 == o.n && x != o.most[which])) {
            good = 0;
            o.guard.note(at, o.n);
        }
    }
    good = __syncthreads_and(good);
    for (int i = (int)threadIdx.x; i < 2 * o.n; i += (int)blockDim.x) {
        o.to[i] = good ? o.read(i >= o.n, i >= o.n ? i - o.n : i) : 0;
    }
}
/* Describes texts to the kernels.  offsets: [2, texts + 1] of int64. */
static opdi_cu_at_texts opdi_cu_at_texts_of(const opd_tensor *offsets, int64_t left, int64_t right) {
    const int64_t n = opd_size(offsets, 1);
    opdi_cu_at_texts t = {opdi_cu_data<const int64_t>(offsets), NULL, (int)(n - 1), -1, -1};
    t.from = t.at + n;
    if (left < 1 << 30) { t.left = (int)left; }
    if (right < 1 << 30) { t.right = (int)right; }
    return t;
}
/* Returns the offsets of rows and keys that arguments 3 and 4 of the call have, as [2, texts + 1] of int64. */
static opd_tensor *opdi_cu_at_offsets_of(opd_call *call) {
    opdi_cu_at_offsets o;
    opd_tensor *offsets = NULL;
    for (int i = 0; i < 2; i++) {
        const opd_tensor *const t = opd_arg_tensor(call, 3 + i);
        o.from[i] = opdi_cu_data<const void>(t);
        o.step[i] = opd_strides(t)[0];
        o.most[i] = opd_size(opd_arg_tensor(call, i), 0);
        o.brief[i] = opd_dtype(t) == OPD_INT32;
        o.n = (int)opd_size(t, 0);
    }
    o.guard = opdi_cu_guard_of(call, "opd_varlen_attention: offsets_q and offsets_k must begin with 0, never fall, and "
                               "end with the number of rows or keys");
    if (!(offsets = opdi_cu_new(OPD_INTS(2, o.n), OPD_INT64))) { return NULL; }
    o.to = opdi_cu_data<int64_t>(offsets);
    return opdi_cu_launch(opdi_cu_at_offsets_kernel, dim3(1), dim3(256), 0, o) ? NULL : offsets;
}
/* Returns whether there are kernels for texts, forward and backward.  The kernel for float32 that takes texts has the
   limits of the one with dropout. */
static bool opdi_cu_at_texts_fit(const opd_tensor *q, const opd_tensor *k, double scale) {
    return opdi_cu_attention_fits(q, k, scale, true, true) && opdi_cu_attention_fits(q, k, scale, false, true);
}
/* opd_cuda::attention_texts: attention of texts of different lengths, lse and offsets; or None three times if there is
   no kernel. */
static int opdi_cu_attention_texts(opd_call *call) {
    opd_tensor *in[3], *rows, *lse, *offsets;
    for (int i = 0; i < 3; i++) {
        if (!(in[i] = opdi_cu_at_heads_of(opd_arg_tensor(call, i)))) { return -1; }
    }
    const double scale = opd_arg_double(call, 7);
    if (!opdi_cu_at_texts_fit(in[0], in[1], scale)) {
        for (int i = 0; i < 3; i++) { if (opd_return_value(call, opd_value_none())) { return -1; } }
        return 0;
    }
    const int64_t *n = opd_sizes(in[0]);
    rows = opdi_cu_new(OPD_INTS(n[2], n[1], n[3]), opd_dtype(in[0]));
    lse = opdi_cu_new(OPD_INTS(1, n[1], n[2]), OPD_FLOAT32);
    offsets = opdi_cu_at_offsets_of(call);
    if (!rows || !lse || !offsets ||
        opdi_cu_attention_forward(in[0], in[1], in[2], NULL, scale, false, 0, NULL, opdi_cu_at_heads_of(rows), lse,
                                  opdi_cu_at_texts_of(offsets, opd_arg_int(call, 5), opd_arg_int(call, 6)))) {
        return -1;
    }
    return opd_return_tensor(call, rows) || opd_return_tensor(call, lse) || opd_return_tensor(call, offsets) ? -1 : 0;
}
static int opdi_cu_attention_texts_backward(opd_call *call) {
    opd_tensor *in[5];
    for (int i = 0; i < 5; i++) {
        if (!(in[i] = opdi_cu_at_heads_of(opd_arg_tensor(call, i)))) { return -1; }
    }
    return opdi_cu_attention_gradients(call, in, opd_arg_tensor(call, 5), NULL, opd_arg_double(call, 9), false, 0, NULL,
                                       opdi_cu_at_texts_of(opd_arg_tensor(call, 6), opd_arg_int(call, 7),
                                                           opd_arg_int(call, 8)));
}

static const opdi_cu_registration opdi_cu_table_attention[] = {
    {"_scaled_dot_product_flash_attention_for_cpu", opdi_cu_flash_attention},
    {NULL, NULL}};
//----------------------------------------------------------------------------------------------------------------------
//  >>cu:recurrent   cells of recurrent layers
//
//  A step of an lstm or gru, after the products: one kernel for the activations of all gates and the new state, and one
//  for their gradients.  A thread computes one element of the state.  Numbers are computed in float (double for
//  float64), and rounded once.
//----------------------------------------------------------------------------------------------------------------------

static __device__ __forceinline__ float opdi_cu_squashed(float x) { return 1.0f / (1.0f + expf(-x)); }
static __device__ __forceinline__ double opdi_cu_squashed(double x) { return 1.0 / (1.0 + exp(-x)); }
static __device__ __forceinline__ float opdi_cu_hyperbolic(float x) { return tanhf(x); }
static __device__ __forceinline__ double opdi_cu_hyperbolic(double x) { return tanh(x); }

/* The tensors of a cell, all contiguous.  n: number of elements of a state, B * H; size: H.  bias[0] and bias[1] may be
   NULL. */
template <typename T> struct opdi_cu_cell {
    int64_t n, size;
    const T *gates[2], *bias[2], *state;          /* gates: [B, parts * H]; state: [B, H] */
    T *h, *c, *acts;                              /* c: only for an lstm; acts: what the backward pass reads */
    /* Returns the sum that gives part `part` of the gates, for element j of the row that begins at `row`. */
    template <typename A> __device__ __forceinline__ A sum(int which, int64_t row, int64_t j, int part) const {
        const int64_t at = part * size + j;
        return opdi_cu_load<A>(gates[which] + row + at) + (bias[which] ? opdi_cu_load<A>(bias[which] + at) : A(0));
    }
};
template <typename T> struct opdi_cu_lstm_forward {
    opdi_cu_cell<T> of;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t j;
        const int64_t row = opdi_cu_divide(i, of.size, &j) * of.size * 4;
        A x[4];
        OPDI_CU_UNROLL
        for (int k = 0; k < 4; k++) { x[k] = of.template sum<A>(0, row, j, k) + of.template sum<A>(1, row, j, k); }
        const A before = opdi_cu_load<A>(of.state + i);
        OPDI_CU_UNROLL
        for (int k = 0; k < 4; k++) { x[k] = k == 2 ? opdi_cu_hyperbolic(x[k]) : opdi_cu_squashed(x[k]); }
        const A c = x[1] * before + x[0] * x[2];
        opdi_cu_store(of.c + i, c);
        opdi_cu_store(of.h + i, x[3] * opdi_cu_hyperbolic(c));
        OPDI_CU_UNROLL
        for (int k = 0; k < 4; k++) { opdi_cu_store(of.acts + row + k * of.size + j, x[k]); }
    }
};
/* The gradients of an lstm's cell.  h and c: the gradients of its results, which may be NULL. */
template <typename T> struct opdi_cu_lstm_backward {
    int64_t size;
    const T *h, *c, *before, *after, *acts;
    T *gates, *state;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t j;
        const int64_t row = opdi_cu_divide(i, size, &j) * size * 4;
        A x[4];
        OPDI_CU_UNROLL
        for (int k = 0; k < 4; k++) { x[k] = opdi_cu_load<A>(acts + row + k * size + j); }
        const A was = opdi_cu_load<A>(before + i), t = opdi_cu_hyperbolic(opdi_cu_load<A>(after + i));
        const A d = h ? opdi_cu_load<A>(h + i) : A(0);
        const A e = (c ? opdi_cu_load<A>(c + i) : A(0)) + d * x[3] * (1 - t * t);
        opdi_cu_store(gates + row + j, e * x[2] * (x[0] * (1 - x[0])));
        opdi_cu_store(gates + row + size + j, e * was * (x[1] * (1 - x[1])));
        opdi_cu_store(gates + row + 2 * size + j, e * x[0] * (1 - x[2] * x[2]));
        opdi_cu_store(gates + row + 3 * size + j, d * t * (x[3] * (1 - x[3])));
        opdi_cu_store(state + i, e * x[1]);
    }
};
template <typename T> struct opdi_cu_gru_forward {
    opdi_cu_cell<T> of;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t j;
        const int64_t b = opdi_cu_divide(i, of.size, &j), row = b * of.size * 3, to = b * of.size * 5 + j;
        const A r = opdi_cu_squashed(of.template sum<A>(0, row, j, 0) + of.template sum<A>(1, row, j, 0));
        const A z = opdi_cu_squashed(of.template sum<A>(0, row, j, 1) + of.template sum<A>(1, row, j, 1));
        const A m = of.template sum<A>(1, row, j, 2), h = opdi_cu_load<A>(of.state + i);
        const A n = opdi_cu_hyperbolic(of.template sum<A>(0, row, j, 2) + r * m);
        opdi_cu_store(of.h + i, (h - n) * z + n);
        opdi_cu_store(of.acts + to, r);
        opdi_cu_store(of.acts + to + of.size, z);
        opdi_cu_store(of.acts + to + 2 * of.size, n);
        opdi_cu_store(of.acts + to + 3 * of.size, h);
        opdi_cu_store(of.acts + to + 4 * of.size, m);
    }
};
template <typename T> struct opdi_cu_gru_backward {
    int64_t size;
    const T *grad, *acts;
    T *gates[2], *state;
    __device__ void operator()(int64_t i) const {
        typedef opdi_cu_acc<T> A;
        int64_t j;
        const int64_t b = opdi_cu_divide(i, size, &j), to = b * size * 3 + j;
        const T *p = acts + b * size * 5 + j;
        const A r = opdi_cu_load<A>(p), z = opdi_cu_load<A>(p + size), n = opdi_cu_load<A>(p + 2 * size);
        const A h = opdi_cu_load<A>(p + 3 * size), m = opdi_cu_load<A>(p + 4 * size), d = opdi_cu_load<A>(grad + i);
        const A fresh = d * (1 - z) * (1 - n * n), keep = d * (h - n) * (z * (1 - z));
        const A reset = fresh * m * (r * (1 - r));
        opdi_cu_store(gates[0] + to, reset);
        opdi_cu_store(gates[0] + to + size, keep);
        opdi_cu_store(gates[0] + to + 2 * size, fresh);
        opdi_cu_store(gates[1] + to, reset);
        opdi_cu_store(gates[1] + to + size, keep);
        opdi_cu_store(gates[1] + to + 2 * size, fresh * r);
        opdi_cu_store(state + i, d * z);
    }
};
/* Returns whether t is a tensor [rows, columns] with the dtype of `like`. */
static bool opdi_cu_cell_is(const opd_tensor *t, const opd_tensor *like, int64_t rows, int64_t columns) {
    return t && opd_ndim(t) == 2 && opd_size(t, 0) == rows && opd_size(t, 1) == columns &&
        opd_dtype(t) == opd_dtype(like) && opd_tensor_device(t).type == OPD_CUDA;
}
/* Runs an operator that a kernel here does not serve, as on other devices, which also reports wrong arguments. */
static int opdi_cu_cell_other(opd_call *call) { return opd_op_card(opd_call_operator(call))->any(call); }
static opd_tensor *opdi_cu_cell_new(const opd_tensor *like, int64_t rows, int64_t columns) {
    const int64_t sizes[2] = {rows, columns};
    return opdi_cu_new(opd_ints_of(sizes, 2), opd_dtype(like));
}
/* Runs the forward pass of a cell with `parts` parts of gates: 4 for an lstm, 3 for a gru. */
static int opdi_cu_cell_forward(opd_call *call, int parts) {
    opd_tensor *in[5], *out[3] = {NULL, NULL, NULL}, *s = opd_arg_tensor(call, 2);
    const bool lstm = parts == 4;
    const int64_t rows = opd_ndim(s) == 2 ? opd_size(s, 0) : 0, size = opd_ndim(s) == 2 ? opd_size(s, 1) : 0;
    bool fits = opd_ndim(s) == 2 && opd_dtype_is_floating(opd_dtype(s)) && opd_numel(s) > 0;
    for (int i = 0; i < 5; i++) {
        in[i] = opd_arg_tensor(call, i);
        fits = fits && (i < 2 ? opdi_cu_cell_is(in[i], s, rows, parts * size) : i == 2 || !in[i] ||
                        (opd_ndim(in[i]) == 1 && opd_numel(in[i]) == parts * size && opd_dtype(in[i]) == opd_dtype(s)));
    }
    if (!fits) { return opdi_cu_cell_other(call); }
    for (int i = 0; i < 5; i++) { if (in[i] && !(in[i] = opdi_cu_as(in[i], opd_dtype(s)))) { return -1; } }
    out[0] = opdi_cu_cell_new(s, rows, size);
    out[1] = lstm ? opdi_cu_cell_new(s, rows, size) : NULL;
    out[2] = opdi_cu_cell_new(s, rows, lstm ? 4 * size : 5 * size);
    if (!out[0] || !out[2] || (lstm && !out[1])) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(s), T, {
        opdi_cu_cell<T> of;
        of.n = opd_numel(s); of.size = size; of.state = opdi_cu_data<T>(in[2]);
        for (int i = 0; i < 2; i++) {
            of.gates[i] = opdi_cu_data<T>(in[i]);
            of.bias[i] = in[3 + i] ? opdi_cu_data<T>(in[3 + i]) : NULL;
        }
        of.h = opdi_cu_data<T>(out[0]); of.c = lstm ? opdi_cu_data<T>(out[1]) : NULL;
        of.acts = opdi_cu_data<T>(out[2]);
        const opdi_cu_lstm_forward<T> f = {of};
        const opdi_cu_gru_forward<T> g = {of};
        if (lstm ? opdi_cu_each(of.n, f) : opdi_cu_each(of.n, g)) { return -1; }
    })
    for (int i = 0; i < 3; i++) { if (out[i] && opd_return_tensor(call, out[i])) { return -1; } }
    return 0;
}
static int opdi_cu_lstm_cell(opd_call *call) { return opdi_cu_cell_forward(call, 4); }
static int opdi_cu_gru_cell(opd_call *call) { return opdi_cu_cell_forward(call, 3); }
/* Returns the sum over the rows of `grad` as the call's next result, or nothing unless `wanted`. */
static int opdi_cu_cell_bias(opd_call *call, opd_tensor *grad, bool wanted) {
    const int64_t dim = 0;
    return wanted ? opd_return_tensor(call, opd_sum_dim(grad, opd_ints_of(&dim, 1), false))
        : opd_return_value(call, opd_value_none());
}
static int opdi_cu_lstm_cell_backward(opd_call *call) {
    opd_tensor *in[5], *c = opd_arg_tensor(call, 2);
    const int64_t rows = opd_ndim(c) == 2 ? opd_size(c, 0) : 0, size = opd_ndim(c) == 2 ? opd_size(c, 1) : 0;
    bool fits = opd_ndim(c) == 2 && opd_dtype_is_floating(opd_dtype(c)) && opd_numel(c) > 0;
    for (int i = 0; i < 5; i++) {
        in[i] = opd_arg_tensor(call, i);
        fits = fits && ((i < 2 && !in[i]) || opdi_cu_cell_is(in[i], c, rows, i == 4 ? 4 * size : size));
    }
    if (!fits || (!in[0] && !in[1])) { return opdi_cu_cell_other(call); }
    for (int i = 0; i < 5; i++) { if (in[i] && !(in[i] = opdi_cu_as(in[i], opd_dtype(c)))) { return -1; } }
    opd_tensor *const gates = opdi_cu_cell_new(c, rows, 4 * size), *const state = opdi_cu_cell_new(c, rows, size);
    if (!gates || !state) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(c), T, {
        const opdi_cu_lstm_backward<T> f = {size, in[0] ? opdi_cu_data<T>(in[0]) : NULL,
            in[1] ? opdi_cu_data<T>(in[1]) : NULL, opdi_cu_data<T>(in[2]), opdi_cu_data<T>(in[3]),
            opdi_cu_data<T>(in[4]), opdi_cu_data<T>(gates), opdi_cu_data<T>(state)};
        if (opdi_cu_each(opd_numel(c), f)) { return -1; }
    })
    if (opd_return_tensor(call, gates) || opd_return_tensor(call, state)) { return -1; }
    return opdi_cu_cell_bias(call, gates, opd_arg_bool(call, 5));
}
static int opdi_cu_gru_cell_backward(opd_call *call) {
    opd_tensor *grad = opd_arg_tensor(call, 0), *acts = opd_arg_tensor(call, 1), *out[3];
    const bool bias = opd_arg_bool(call, 2);
    if (opd_ndim(grad) != 2 || !opd_dtype_is_floating(opd_dtype(grad)) || opd_numel(grad) == 0 ||
        !opdi_cu_cell_is(acts, grad, opd_size(grad, 0), 5 * opd_size(grad, 1))) { return opdi_cu_cell_other(call); }
    const int64_t rows = opd_size(grad, 0), size = opd_size(grad, 1);
    grad = opdi_cu_as(grad, opd_dtype(acts));
    acts = opdi_cu_as(acts, opd_dtype(acts));
    if (!grad || !acts) { return -1; }
    for (int i = 0; i < 3; i++) { out[i] = opdi_cu_cell_new(acts, rows, i < 2 ? 3 * size : size); }
    if (!out[0] || !out[1] || !out[2]) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(acts), T, {
        const opdi_cu_gru_backward<T> f = {size, opdi_cu_data<T>(grad), opdi_cu_data<T>(acts),
            {opdi_cu_data<T>(out[0]), opdi_cu_data<T>(out[1])}, opdi_cu_data<T>(out[2])};
        if (opdi_cu_each(rows * size, f)) { return -1; }
    })
    for (int i = 0; i < 3; i++) { if (opd_return_tensor(call, out[i])) { return -1; } }
    return opdi_cu_cell_bias(call, out[0], bias) || opdi_cu_cell_bias(call, out[1], bias) ? -1 : 0;
}
static const opdi_cu_registration opdi_cu_table_recurrent[] = {
    {"_thnn_fused_lstm_cell", opdi_cu_lstm_cell},
    {"_thnn_fused_lstm_cell_backward_impl", opdi_cu_lstm_cell_backward},
    {"_thnn_fused_gru_cell", opdi_cu_gru_cell}, {"_thnn_fused_gru_cell_backward", opdi_cu_gru_cell_backward},
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:lists       lists of tensors
//
//  A list of tensors is processed in few launches.  A block processes a piece of one tensor, which it finds in a table
//  that is an argument of the kernel.
//----------------------------------------------------------------------------------------------------------------------

enum { OPDI_CU_LIST = 160, OPDI_CU_LIST_PIECE = 16384, OPDI_CU_LIST_THREADS = 256 };
/* A list of up to OPDI_CU_LIST tensors, or of groups of K tensors of the same size. */
template <int K> struct opdi_cu_tensors {
    void *p[OPDI_CU_LIST][K];
    int64_t numel[OPDI_CU_LIST];
    int32_t first[OPDI_CU_LIST + 1];              /* number of each tensor's first block */
    int32_t n;
};
/* Returns the tensor of a block: the last of n whose first block is not after this block. */
__device__ __forceinline__ int opdi_cu_list_at(const int32_t *first, int n, int block) {
    int low = 0, high = n - 1;
    while (low < high) {
        const int mid = (low + high + 1) / 2;
        if (first[mid] <= block) { low = mid; } else { high = mid - 1; }
    }
    return low;
}
/* Adds a group to a list that is not full.  p[K]: the addresses of its elements. */
template <int K> static void opdi_cu_tensors_add(opdi_cu_tensors<K> *list, void *const *p, int64_t numel) {
    const int at = list->n++;
    for (int k = 0; k < K; k++) { list->p[at][k] = p[k]; }
    list->numel[at] = numel;
    if (at == 0) { list->first[0] = 0; }
    list->first[at + 1] = list->first[at] + (int32_t)opdi_cu_ceil(numel, OPDI_CU_LIST_PIECE);
}
/* Returns whether t is dense: it has each element between its first and its last in memory exactly once. */
static bool opdi_cu_dense(const opd_tensor *t) {
    int64_t have = 1;                             /* the elements of the dims that were found so far */
    if (opd_numel(t) == 0) { return true; }
    while (have < opd_numel(t)) {
        int d = 0;
        while (d < opd_ndim(t) && (opd_sizes(t)[d] == 1 || opd_strides(t)[d] != have)) { d++; }
        if (d == opd_ndim(t)) { return false; }
        have *= opd_sizes(t)[d];
    }
    return true;
}

//== pointwise formulas, gathered ======================================================================================
//
//  Between opdi_cu_gather_set(.., true) and opdi_cu_gather_set(.., false), the pointwise computations of a thread are
//  only noted if they fit (opdi_cu_gather_add).  They run as one kernel as soon as one does not fit, or anything else
//  that may depend on them happens (opdi_cu_gather_flush): another launch, a copy, an event, a change of the stream,
//  memory that is freed.  Noted computations do not depend on each other.

/* Copies, for elements of any type with the same size as the unsigned integer C. */
#define OPDI_CU_LISTED_COPY(C) \
    template <> struct opdi_cu_pointwise_formula<OPD_FORMULA_copy, C> { \
        enum { inputs = 1, heavy = 0 }; \
        static __device__ __forceinline__ C run(C x, C, C, C, C, C) { return x; } \
    };
OPDI_CU_LISTED_COPY(uint8_t)
OPDI_CU_LISTED_COPY(uint16_t)
OPDI_CU_LISTED_COPY(uint32_t)
OPDI_CU_LISTED_COPY(uint64_t)
/* The formulas that are gathered, of float32 and 16-bit floats.  Copies of the same dtype are gathered, too. */
#define OPDI_CU_LISTED(X) \
    X(add) X(add_scaled) X(sub) X(sub_scaled) X(mul) X(div) X(addcmul) X(addcdiv) X(sqrt) X(reciprocal) X(neg) X(abs) \
    X(maximum) X(minimum)
/* Operands 1 to K - 1 are inputs: a bit k of `numbers` says that input k is a number, of `ones` that it is one
   element. */
template <typename C, int K> struct opdi_cu_gathered_args {
    opdi_cu_tensors<K> list;
    opdi_cu_pointwise_numbers<C> s;
    int32_t numbers, ones;
};
template <int F, typename C, typename T> __global__ void __launch_bounds__(OPDI_CU_LIST_THREADS)
opdi_cu_gathered_kernel(const opdi_cu_gathered_args<C, opdi_cu_pointwise_formula<F, C>::inputs + 1> f) {
    typedef opdi_cu_pointwise_formula<F, C> formula;
    constexpr int N = 16 / sizeof(T), K = formula::inputs, U = K == 1 ? 4 : 2, step = OPDI_CU_LIST_THREADS * N;
    const int at = opdi_cu_list_at(f.list.first, f.list.n, (int)blockIdx.x);
    const int64_t from = (int64_t)((int)blockIdx.x - f.list.first[at]) * OPDI_CU_LIST_PIECE;
    const int64_t left = f.list.numel[at] - from;
    const int n = left < OPDI_CU_LIST_PIECE ? (int)left : (int)OPDI_CU_LIST_PIECE, numbers = f.numbers | f.ones;
    T *out = (T *)f.list.p[at][0] + from;
    const T *in[3] = {NULL, NULL, NULL};
    C s[3] = {f.s.in[0], f.s.in[1], f.s.in[2]};
    uintptr_t all = (uintptr_t)out;
    OPDI_CU_UNROLL
    for (int k = 0; k < K; k++) {
        const T *p = (const T *)f.list.p[at][k + 1];
        if (f.ones >> k & 1) { s[k] = opdi_cu_load<C>(p); }
        in[k] = numbers >> k & 1 ? NULL : p + from;
        all |= (uintptr_t)in[k];
    }
    const int whole = all % 16 == 0 ? n / N * N : 0;
    OPDI_CU_ROLLED
    for (int i = (int)threadIdx.x * N; i < whole; i += step * U) {
        const int runs = whole - i >= step * U ? U : (whole - i - N) / step + 1;
        opdi_cu_vector<T, N> x[U], y[U], z[U];
        opdi_cu_pointwise_fetch<N, U>(x, in[0], i, step, runs);
        if (K > 1) { opdi_cu_pointwise_fetch<N, U>(y, in[1], i, step, runs); }
        if (K > 2) { opdi_cu_pointwise_fetch<N, U>(z, in[2], i, step, runs); }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) {
            opdi_cu_vector<T, N> r;
            OPDI_CU_UNROLL
            for (int j = 0; j < N; j++) {
                const C a = opdi_cu_pointwise_taken(x[u], j, numbers & 1, s[0]);
                const C b = K > 1 ? opdi_cu_pointwise_taken(y[u], j, numbers & 2, s[1]) : a;
                const C c = K > 2 ? opdi_cu_pointwise_taken(z[u], j, numbers & 4, s[2]) : a;
                r.at[j] = opdi_cu_cast<T>(formula::run(a, b, c, f.s.a, f.s.b, f.s.c));
            }
            if (u < runs) { opdi_cu_store_vector<N>(out + i + u * step, r); }
        }
    }
    for (int i = whole + (int)threadIdx.x; i < n; i += OPDI_CU_LIST_THREADS) {
        const C a = in[0] ? opdi_cu_load<C>(in[0] + i) : s[0];
        const C b = K > 1 ? (in[1] ? opdi_cu_load<C>(in[1] + i) : s[1]) : a;
        const C c = K > 2 ? (in[2] ? opdi_cu_load<C>(in[2] + i) : s[2]) : a;
        opdi_cu_store(out + i, formula::run(a, b, c, f.s.a, f.s.b, f.s.c));
    }
}
/* The noted computations of a thread: n times one formula, with the same dtypes and numbers. */
struct opdi_cu_gathered {
    int depth, device, formula, noperands, n;
    opd_scalar_type dtype;
    opdi_cu_pointwise_numbers<float> s;
    uint64_t element;                             /* copies: the number as an element */
    int32_t numbers, ones;
    void *p[OPDI_CU_LIST][4];
    int64_t numel[OPDI_CU_LIST];
};
static thread_local opdi_cu_gathered *opdi_cu_gather_now;        /* NULL: computations are not noted */

template <int F, typename C, typename T> static int opdi_cu_gathered_launch(const opdi_cu_gathered *g) {
    constexpr int K = opdi_cu_pointwise_formula<F, C>::inputs + 1;
    opdi_cu_gathered_args<C, K> f;
    f.list.n = 0;
    for (int i = 0; i < g->n; i++) { opdi_cu_tensors_add<K>(&f.list, g->p[i], g->numel[i]); }
    f.numbers = g->numbers; f.ones = g->ones;
    if constexpr (F == OPD_FORMULA_copy) {
        const opdi_cu_pointwise_numbers<C> s = {C(0), C(0), C(0), {(C)g->element, C(0), C(0)}};
        f.s = s;
    } else { f.s = g->s; }
    return opdi_cu_launch(opdi_cu_gathered_kernel<F, C, T>, dim3((unsigned)f.list.first[g->n]), OPDI_CU_LIST_THREADS, 0,
                          f);
}
template <typename T> static int opdi_cu_gathered_run_of(const opdi_cu_gathered *g) {
    switch (g->formula) {
#define OPDI_CU_LISTED_CASE(name) \
        case OPD_FORMULA_##name: return opdi_cu_gathered_launch<OPD_FORMULA_##name, float, T>(g);
        OPDI_CU_LISTED(OPDI_CU_LISTED_CASE)
        default: return -1;
    }
}
static int opdi_cu_gathered_run(const opdi_cu_gathered *g) {
    if (g->formula == OPD_FORMULA_copy) {
        switch (opd_dtype_size(g->dtype)) {
            case 1: return opdi_cu_gathered_launch<OPD_FORMULA_copy, uint8_t, uint8_t>(g);
            case 2: return opdi_cu_gathered_launch<OPD_FORMULA_copy, uint16_t, uint16_t>(g);
            case 4: return opdi_cu_gathered_launch<OPD_FORMULA_copy, uint32_t, uint32_t>(g);
            default: return opdi_cu_gathered_launch<OPD_FORMULA_copy, uint64_t, uint64_t>(g);
        }
    }
    return g->dtype == OPD_FLOAT32 ? opdi_cu_gathered_run_of<float>(g)
        : g->dtype == OPD_FLOAT16 ? opdi_cu_gathered_run_of<opdi_cu_f16>(g) : opdi_cu_gathered_run_of<opdi_cu_bf16>(g);
}
/* Runs the noted computations.  If this fails, sets an error. */
static void opdi_cu_gather_flush() {
    opdi_cu_gathered *g = opdi_cu_gather_now;
    if (!g || g->n == 0) { return; }
    const opdi_cu_on on(g->device);
    opdi_cu_gather_now = NULL;                    /* the launch asks for the stream, and would come here again */
    (void)opdi_cu_gathered_run(g);
    opdi_cu_gather_now = g;
    g->n = 0;
}
static bool opdi_cu_listed(int formula) {
    switch (formula) {
#define OPDI_CU_LISTED_TRUE(name) case OPD_FORMULA_##name:
        OPDI_CU_LISTED(OPDI_CU_LISTED_TRUE)
            return true;
        default: return false;
    }
}
/* Fills in the common parts of *g for a computation, and sets g->n to 0.  Returns false if the computation cannot be
   gathered. */
static bool opdi_cu_gather_read(opdi_cu_gathered *g, int device, const opd_pointwise *p) {
    const bool copy = p->formula == OPD_FORMULA_copy;
    double element[2] = {0, 0};
    memset(&g->s, 0, sizeof g->s);
    g->device = device; g->formula = p->formula; g->noperands = p->noperands; g->n = 0;
    g->numbers = opdi_cu_pointwise_which_numbers(p);
    g->ones = 0; g->element = 0;
    if (p->ndim != 1) { return false; }
    for (int k = 0; k < p->noperands && !p->linear; k++) {
        const opd_operand *o = &p->operands[k];
        if (!o->data || o->strides[0] == 1) { continue; }
        if (k == 0 || o->strides[0] != 0) { return false; }
        g->ones |= 1 << (k - 1);
    }
    g->dtype = p->operands[0].dtype;
    if (!copy) {
        if (p->compute != OPD_FLOAT32 || !opdi_cu_listed(p->formula) || opdi_cu_pointwise_fast<float>(p) < 0) {
            return false;
        }
        g->s = opdi_cu_pointwise_numbers_of<float>(p);
        return true;
    }
    if (opd_dtype_size(g->dtype) > 8 || (p->operands[1].data && p->operands[1].dtype != g->dtype)) { return false; }
    if (!p->operands[1].data) { opdi_cu_pointwise_element(&p->operands[1], g->dtype, element); }
    memcpy(&g->element, element, sizeof g->element);
    return true;
}
static bool opdi_cu_overlap(const void *a, int64_t na, const void *b, int64_t nb) {
    return (uintptr_t)a < (uintptr_t)b + (uintptr_t)nb && (uintptr_t)b < (uintptr_t)a + (uintptr_t)na;
}
/* Returns whether a computation with operands p[] must wait for a noted one: one writes what the other reads or
   writes. */
static bool opdi_cu_gather_depends(const opdi_cu_gathered *g, void *const *p, int64_t numel) {
    const int64_t size = (int64_t)opd_dtype_size(g->dtype), mine = numel * size;
    for (int i = 0; i < g->n; i++) {
        const int64_t bytes = g->numel[i] * size;
        if (opdi_cu_overlap(p[0], mine, g->p[i][0], bytes)) { return true; }
        for (int k = 1; k < g->noperands; k++) {
            const bool one = g->ones >> (k - 1) & 1;
            if (g->numbers >> (k - 1) & 1) { continue; }
            if (opdi_cu_overlap(p[0], mine, g->p[i][k], one ? size : bytes) ||
                opdi_cu_overlap(p[k], one ? size : mine, g->p[i][0], bytes)) { return true; }
        }
    }
    return false;
}
/* Notes a computation on device `index`, and returns true, or returns false if it cannot be gathered. */
static bool opdi_cu_gather_add(int index, const opd_pointwise *p) {
    opdi_cu_gathered *g = opdi_cu_gather_now, next;
    void *at[4] = {NULL, NULL, NULL, NULL};
    if (!g || opdi_cu_debug || !opdi_cu_gather_read(&next, index, p)) { return false; }
    for (int k = 0; k < p->noperands; k++) { at[k] = p->operands[k].data; }
    if (g->n > 0 && (g->n == OPDI_CU_LIST || g->device != next.device || g->formula != next.formula ||
                     g->noperands != next.noperands || g->dtype != next.dtype || g->numbers != next.numbers ||
                     g->ones != next.ones || g->element != next.element || memcmp(&g->s, &next.s, sizeof g->s) != 0 ||
                     opdi_cu_gather_depends(g, at, p->numel))) {
        opdi_cu_gather_flush();
    }
    if (g->n == 0) {
        g->device = next.device; g->formula = next.formula; g->noperands = next.noperands; g->dtype = next.dtype;
        g->numbers = next.numbers; g->ones = next.ones; g->element = next.element; g->s = next.s;
    }
    memcpy(g->p[g->n], at, sizeof at);
    g->numel[g->n++] = p->numel;
    return true;
}
/* Begins or ends gathering on this thread.  Returns 0, or -1 and sets an error. */
static int opdi_cu_gather_set(void *user, int index, bool on) {
    opdi_cu_gathered *g = opdi_cu_gather_now;
    (void)user; (void)index;
    if (on) {
        if (!g && !(g = new (std::nothrow) opdi_cu_gathered)) { return opdi_cu_no_memory("a list of tensors"); }
        if (!opdi_cu_gather_now) { g->depth = g->n = 0; opdi_cu_gather_now = g; }
        g->depth++;
        return 0;
    }
    if (!g) { return 0; }
    opdi_cu_gather_flush();
    if (--g->depth == 0) { opdi_cu_gather_now = NULL; delete g; }
    return opd_ok() ? 0 : -1;
}

//== norms =============================================================================================================

enum { OPDI_CU_LIST_ABS, OPDI_CU_LIST_SQUARES, OPDI_CU_LIST_MAX };      /* norms of order 1, 2 and infinity */
template <int KIND> struct opdi_cu_list_fold {
    template <typename A> __device__ __forceinline__ A operator()(A a, A b) const {
        return KIND != OPDI_CU_LIST_MAX ? a + b : a > b || !(a == a) ? a : b;
    }
};
template <int KIND, typename A> __device__ __forceinline__ A opdi_cu_list_term(A x) {
    return KIND == OPDI_CU_LIST_SQUARES ? x * x : x < 0 ? -x : x;
}
/* parts[block] gets the sum or maximum of a block's piece. */
template <int KIND, typename T> __global__ void __launch_bounds__(OPDI_CU_LIST_THREADS)
opdi_cu_list_norm_kernel(const opdi_cu_tensors<1> list, opdi_cu_acc<T> *parts) {
    typedef opdi_cu_acc<T> A;
    constexpr int N = 16 / sizeof(T), U = 4, step = OPDI_CU_LIST_THREADS * N;
    const opdi_cu_list_fold<KIND> fold = opdi_cu_list_fold<KIND>();
    const int at = opdi_cu_list_at(list.first, list.n, (int)blockIdx.x);
    const int64_t from = (int64_t)((int)blockIdx.x - list.first[at]) * OPDI_CU_LIST_PIECE;
    const int64_t left = list.numel[at] - from;
    const int n = left < OPDI_CU_LIST_PIECE ? (int)left : (int)OPDI_CU_LIST_PIECE;
    const T *p = (const T *)list.p[at][0] + from;
    const int whole = (uintptr_t)p % 16 == 0 ? n / N * N : 0;
    A sum = 0;
    OPDI_CU_ROLLED
    for (int i = (int)threadIdx.x * N; i < whole; i += step * U) {
        const int runs = whole - i >= step * U ? U : (whole - i - N) / step + 1;
        opdi_cu_vector<T, N> x[U];
        opdi_cu_pointwise_fetch<N, U>(x, p, i, step, runs);
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) {
            if (u >= runs) { continue; }
            OPDI_CU_UNROLL
            for (int j = 0; j < N; j++) { sum = fold(sum, opdi_cu_list_term<KIND>(opdi_cu_taken<A>(x[u], j))); }
        }
    }
    for (int i = whole + (int)threadIdx.x; i < n; i += OPDI_CU_LIST_THREADS) {
        sum = fold(sum, opdi_cu_list_term<KIND>(opdi_cu_load<A>(p + i)));
    }
    sum = opdi_cu_block_reduce(sum, fold, (A)0);
    if (threadIdx.x == 0) { parts[blockIdx.x] = sum; }
}
/* out[block] gets the norm of tensor number `block` of the list. */
template <int KIND, typename T> __global__ void __launch_bounds__(OPDI_CU_LIST_THREADS)
opdi_cu_list_norm_end(const opdi_cu_tensors<1> list, const opdi_cu_acc<T> *parts, T *out) {
    typedef opdi_cu_acc<T> A;
    const opdi_cu_list_fold<KIND> fold = opdi_cu_list_fold<KIND>();
    A sum = 0;
    const int end = list.first[blockIdx.x + 1];
    for (int i = list.first[blockIdx.x] + (int)threadIdx.x; i < end; i += OPDI_CU_LIST_THREADS) {
        sum = fold(sum, parts[i]);
    }
    sum = opdi_cu_block_reduce(sum, fold, (A)0);
    if (threadIdx.x == 0) { opdi_cu_store(out + blockIdx.x, KIND == OPDI_CU_LIST_SQUARES ? (A)sqrt(sum) : sum); }
}
template <int KIND, typename T> static int opdi_cu_list_norm_flush(opdi_cu_tensors<1> *list, T *out) {
    const int blocks = list->n > 0 ? list->first[list->n] : 0;
    opdi_cu_acc<T> *parts;
    if (list->n == 0) { return 0; }
    parts = (opdi_cu_acc<T> *)opdi_cu_scratch((int64_t)blocks * (int64_t)sizeof *parts);
    if (!parts || (blocks > 0 && opdi_cu_launch(opdi_cu_list_norm_kernel<KIND, T>, dim3((unsigned)blocks),
                                                OPDI_CU_LIST_THREADS, 0, *list, parts)) ||
        opdi_cu_launch(opdi_cu_list_norm_end<KIND, T>, dim3((unsigned)list->n), OPDI_CU_LIST_THREADS, 0, *list,
                       (const opdi_cu_acc<T> *)parts, out)) { return -1; }
    list->n = 0;
    return 0;
}
template <int KIND, typename T> static int opdi_cu_list_norm_of(opd_tensors self, opd_tensor *out) {
    opdi_cu_tensors<1> list;
    int64_t done = 0;
    list.n = 0;
    for (int64_t i = 0; i < self.n; i++) {
        opd_tensor *t = opdi_cu_dense(self.data[i]) ? self.data[i] : opd_contiguous(self.data[i]);
        void *p = t ? opdi_cu_data<void>(t) : NULL;
        if (!t || (!p && opd_numel(t) != 0)) { return -1; }
        opdi_cu_tensors_add<1>(&list, &p, opd_numel(t));
        if (list.n < OPDI_CU_LIST && i + 1 < self.n) { continue; }
        if (opdi_cu_list_norm_flush<KIND, T>(&list, opdi_cu_data<T>(out) + done)) { return -1; }
        done = i + 1;
    }
    return 0;
}
/* Runs list_norm(Tensor[] self, float order): the norm of each tensor, as a tensor with one dim.  The order is 1, 2 or
   infinity.  All tensors have the same dtype, a float. */
static int opdi_cu_list_norm(opd_call *call) {
    const opd_tensors self = opd_arg_tensors(call, 0);
    const double order = opd_arg_double(call, 1);
    opd_tensor *out = opdi_cu_new(opd_ints_of(&self.n, 1), opd_dtype(self.data[0]));
    if (!out) { return -1; }
    OPDI_CU_FLOATS(opd_dtype(out), T, {
        if (order == 2 ? opdi_cu_list_norm_of<OPDI_CU_LIST_SQUARES, T>(self, out)
            : order == 1 ? opdi_cu_list_norm_of<OPDI_CU_LIST_ABS, T>(self, out)
            : opdi_cu_list_norm_of<OPDI_CU_LIST_MAX, T>(self, out)) { return -1; }
    })
    return opd_return_tensor(call, out);
}
//----------------------------------------------------------------------------------------------------------------------
//  >>cu:optimizers  steps of optimizers
//
//  A list of tensors is processed in few launches, as in >>cu:lists.  Numbers on the device (steps, scales, learning
//  rates) are read there, so that a step does not wait for them and can be captured.
//----------------------------------------------------------------------------------------------------------------------

enum { OPDI_CU_STEP_TENSORS = 160, OPDI_CU_STEP_OPERANDS = 5, OPDI_CU_STEP_PIECE = 16384, OPDI_CU_STEP_THREADS = 256 };
/* A number: if `at` is NULL, `value`, otherwise the number at this address on the device. */
struct opdi_cu_scalar {
    const void *at;
    bool wide;                                    /* the number at `at` is float64, otherwise float32 */
    double value;
    __device__ double get() const { return !at ? value : wide ? *(const double *)at : *(const float *)at; }
};
struct opdi_cu_step_table {
    void *p[OPDI_CU_STEP_OPERANDS][OPDI_CU_STEP_TENSORS];
    opdi_cu_scalar step[OPDI_CU_STEP_TENSORS];
    int64_t numel[OPDI_CU_STEP_TENSORS];
    int32_t first[OPDI_CU_STEP_TENSORS + 1];      /* number of each tensor's first block */
    int32_t n;
};
static int opdi_cu_scalar_of(opdi_cu_scalar *s, opd_value v) {
    opd_tensor *t = v.tag == OPD_TAG_TENSOR ? v.u.t : NULL;
    s->at = NULL; s->wide = false;
    s->value = v.tag == OPD_TAG_FLOAT ? v.u.d : v.tag == OPD_TAG_TENSOR ? 0 : (double)v.u.i;
    if (!t) { return 0; }
    if (opd_tensor_device(t).type != OPD_CUDA) { s->value = opd_item_f64(t); return opd_ok() ? 0 : -1; }
    if (opd_dtype(t) != OPD_FLOAT32) { t = opd_to_dtype(t, OPD_FLOAT64); }
    s->wide = opd_dtype(t) == OPD_FLOAT64;
    s->at = t ? opdi_cu_data<void>(t) : NULL;
    return s->at ? 0 : -1;
}
/* Calls S::apply for each element of the tensors.  An element has `operands` values, of which S::apply changes the
   first `written` (and all, if s.back() is true).  A thread of each block calls S::begin, which reads the tensor's step
   count and returns numbers that all threads of the block use. */
template <class T, class S> __global__ void opdi_cu_step_kernel(opdi_cu_step_table table, S s) {
    typedef opdi_cu_acc<T> A;
    enum { N = 16 / sizeof(T), K = S::operands };
    __shared__ __align__(16) unsigned char scratch[sizeof(typename S::numbers)];
    typename S::numbers *shared = reinterpret_cast<typename S::numbers *>(scratch);
    const int low = opdi_cu_list_at(table.first, table.n, (int)blockIdx.x);
    if (threadIdx.x == 0) { *shared = s.begin(table.step[low]); }
    __syncthreads();
    const typename S::numbers q = *shared;
    const int64_t from = (int64_t)((int)blockIdx.x - table.first[low]) * OPDI_CU_STEP_PIECE;
    int64_t n = table.numel[low] - from, i = threadIdx.x, whole = 0;
    T *p[K];
    uintptr_t all = 0;
    if (q.skip) { return; }
    n = n < OPDI_CU_STEP_PIECE ? n : (int64_t)OPDI_CU_STEP_PIECE;
    for (int k = 0; k < K; k++) { p[k] = (T *)table.p[k][low] + from; all |= (uintptr_t)p[k]; }
    if (all % 16 == 0) {
        whole = n / N * N;
        for (i = (int64_t)threadIdx.x * N; i < whole; i += (int64_t)blockDim.x * N) {
            opdi_cu_vector<T, N> v[K];
            for (int k = 0; k < K; k++) { v[k] = opdi_cu_load_vector<N>(p[k] + i); }
            for (int j = 0; j < N; j++) {
                A a[K];
                for (int k = 0; k < K; k++) { a[k] = opdi_cu_cast<A>(v[k].at[j]); }
                s.apply(a, q);
                for (int k = 0; k < K; k++) { v[k].at[j] = opdi_cu_cast<T>(a[k]); }
            }
            for (int k = 0; k < K; k++) { if (k < S::written || s.back()) { opdi_cu_store_vector<N>(p[k] + i, v[k]); } }
        }
        i = whole + threadIdx.x;
    }
    for (; i < n; i += blockDim.x) {
        A a[K];
        for (int k = 0; k < K; k++) { a[k] = opdi_cu_load<A>(p[k] + i); }
        s.apply(a, q);
        for (int k = 0; k < K; k++) { if (k < S::written || s.back()) { opdi_cu_store(p[k] + i, a[k]); } }
    }
}
/* A table that is being filled, and the tensors: `own` as they were given, `row` as the kernel uses them (copies, if
   the layouts differ). */
typedef struct opdi_cu_steps {
    opdi_cu_step_table table;
    opd_tensor *own[OPDI_CU_STEP_OPERANDS][OPDI_CU_STEP_TENSORS], *row[OPDI_CU_STEP_OPERANDS][OPDI_CU_STEP_TENSORS];
    opd_scalar_type dtype;
} opdi_cu_steps;
template <class S> static int opdi_cu_steps_flush(opdi_cu_steps *b, const S &s) {
    const int n = b->table.n, operands = S::operands;
    if (n == 0) { return 0; }
    if (b->table.first[n] > 0) {
        OPDI_CU_FLOATS(b->dtype, T, {
            if (opdi_cu_launch(opdi_cu_step_kernel<T, S>, (unsigned)b->table.first[n], OPDI_CU_STEP_THREADS, 0,
                               b->table, s)) {
                return -1;
            }
        })
    }
    for (int k = 0; k < operands; k++) {
        for (int i = 0; i < n; i++) {
            if (b->row[k][i] != b->own[k][i] && !opd_copy_(b->own[k][i], b->row[k][i])) { return -1; }
        }
    }
    b->table.n = 0;
    return 0;
}
/* Adds a parameter to the table: its operands t, and its step count, or NULL.  Runs the table first if it is full or
   has another dtype.  Returns 0, or -1 and sets an error. */
template <class S> static int opdi_cu_steps_add(opdi_cu_steps *b, const S &s, opd_tensor *const *t, opd_tensor *step) {
    const opd_scalar_type dtype = opd_dtype(t[0]);
    const int operands = S::operands;
    bool alike = opdi_cu_dense(t[0]);
    int k, i;
    if ((b->table.n == OPDI_CU_STEP_TENSORS || (b->table.n && b->dtype != dtype)) && opdi_cu_steps_flush(b, s)) {
        return -1;
    }
    i = b->table.n;
    b->dtype = dtype;
    for (k = 1; k < operands; k++) {
        for (int d = 0; d < opd_ndim(t[0]); d++) { alike = alike && opd_strides(t[k])[d] == opd_strides(t[0])[d]; }
    }
    for (k = 0; k < operands; k++) {
        b->own[k][i] = t[k];
        b->row[k][i] = alike ? t[k] : opdi_cu_as(t[k], dtype);
        b->table.p[k][i] = b->row[k][i] ? opdi_cu_data<void>(b->row[k][i]) : NULL;
    }
    if (opdi_cu_scalar_of(&b->table.step[i], opd_value_tensor(step))) { return -1; }
    b->table.numel[i] = opd_numel(t[0]);
    if (i == 0) { b->table.first[0] = 0; }
    b->table.first[i + 1] = b->table.first[i] + (int32_t)opdi_cu_ceil(opd_numel(t[0]), OPDI_CU_STEP_PIECE);
    b->table.n++;
    return opd_ok() ? 0 : -1;
}

/* The operands are x, m, v, the maximum of v (if amsgrad), and g. */
template <bool amsgrad> struct opdi_cu_adam {
    enum { operands = amsgrad ? 5 : 4, written = amsgrad ? 4 : 3 };
    struct numbers { double decay, step, scale, grad_scale; bool skip; };
    double sign, l2, beta1, beta2, eps, weight_decay;
    opdi_cu_scalar lr, grad_scale, found;
    bool decoupled, scaled;
    __device__ bool back() const { return scaled; }
    __device__ numbers begin(const opdi_cu_scalar &at) const {
        numbers q;
        const double step = at.get(), rate = lr.get();
        q.decay = decoupled ? 1 - rate * weight_decay : 1;
        q.step = rate / (1 - pow(beta1, step));
        q.scale = 1 / sqrt(1 - pow(beta2, step));
        q.grad_scale = grad_scale.get();
        q.skip = found.get() == 1;
        return q;
    }
    static __device__ float root(float x) { return sqrtf(x); }
    static __device__ double root(double x) { return sqrt(x); }
    /* Computes g = sign * g + l2 * x;  m += (g - m) * (1 - beta1);  v = beta2 * v + (1 - beta2) * g * g;
       x = decay * x - step * m / (scale * sqrt(v) + eps). */
    template <class A> __device__ void apply(A *a, const numbers &q) const {
        A *last = a + operands - 1, g, w;
        if (scaled) { *last = *last / (A)q.grad_scale; }
        g = *last * (A)sign;
        if (l2 != 0) { g = g + a[0] * (A)l2; }
        a[1] = a[1] + (g - a[1]) * (A)(1 - beta1);
        w = a[2] = a[2] * (A)beta2 + g * g * (A)(1 - beta2);
        if (amsgrad) { w = a[3] = w > a[3] ? w : a[3]; }
        a[0] = a[0] * (A)q.decay - a[1] * (A)q.step / (root(w) * (A)q.scale + (A)eps);
    }
};
/* The operands are x, b (if `buffer`), and g. */
template <bool buffer> struct opdi_cu_sgd {
    enum { operands = buffer ? 3 : 2, written = buffer ? 2 : 1 };
    struct numbers { double lr, grad_scale; bool skip; };
    double sign, l2, momentum, w;
    opdi_cu_scalar lr, grad_scale, found;
    bool first, nesterov, scaled;
    __device__ bool back() const { return scaled; }
    __device__ numbers begin(const opdi_cu_scalar &) const {
        numbers q;
        q.lr = lr.get();
        q.grad_scale = grad_scale.get();
        q.skip = found.get() == 1;
        return q;
    }
    /* Computes g = sign * g + l2 * x;  b = momentum * b + w * g, or g in the first step;
       x -= lr * b or, if `nesterov` is true, x -= lr * (g + momentum * b). */
    template <class A> __device__ void apply(A *a, const numbers &q) const {
        A *last = a + operands - 1, g;
        if (scaled) { *last = *last / (A)q.grad_scale; }
        g = *last * (A)sign;
        if (l2 != 0) { g = g + a[0] * (A)l2; }
        if (buffer) {
            a[1] = first ? g : a[1] * (A)momentum + g * (A)w;
            g = nesterov ? g + a[1] * (A)momentum : a[1];
        }
        a[0] = a[0] - g * (A)q.lr;
    }
};
/* Multiplies the elements of a tensor by `scale`, and sets *found to 1 if any element is not finite. */
struct opdi_cu_unscale {
    enum { operands = 1, written = 1 };
    struct numbers { double scale; bool skip; };
    opdi_cu_scalar scale;
    void *found;
    bool wide;
    __device__ bool back() const { return false; }
    __device__ numbers begin(const opdi_cu_scalar &) const { const numbers q = {scale.get(), false}; return q; }
    template <class A> __device__ void apply(A *a, const numbers &q) const {
        if (!(a[0] - a[0] == 0)) { if (wide) { *(double *)found = 1; } else { *(float *)found = 1; } }
        a[0] = a[0] * (A)q.scale;
    }
};

/* Runs Adam or, if `decoupled` is true, AdamW.  Arguments: self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs,
   state_steps, lr, beta1, beta2, weight_decay, eps, amsgrad, maximize, grad_scale, found_inf. */
template <bool amsgrad> static int opdi_cu_adam_run(opd_call *call, bool decoupled) {
    const opd_tensors params = opd_arg_tensors(call, 0);
    opdi_cu_adam<amsgrad> s;
    opdi_cu_steps b;
    s.beta1 = opd_arg_double(call, 7); s.beta2 = opd_arg_double(call, 8); s.weight_decay = opd_arg_double(call, 9);
    s.l2 = decoupled ? 0 : s.weight_decay;
    s.eps = opd_arg_double(call, 10);
    s.sign = opd_arg_bool(call, 12) ? -1 : 1;
    s.decoupled = decoupled;
    s.scaled = !opd_arg_is_none(call, 13);
    if (opdi_cu_scalar_of(&s.lr, opd_arg_value(call, 6)) || opdi_cu_scalar_of(&s.grad_scale, opd_arg_value(call, 13)) ||
        opdi_cu_scalar_of(&s.found, opd_arg_value(call, 14))) {
        return -1;
    }
    b.table.n = 0;
    for (int64_t i = 0; i < params.n; i++) {
        opd_tensor *t[5] = {params.data[i], opd_arg_tensors(call, 2).data[i], opd_arg_tensors(call, 3).data[i]};
        if (amsgrad) { t[3] = opd_arg_tensors(call, 4).data[i]; }
        t[amsgrad ? 4 : 3] = opd_arg_tensors(call, 1).data[i];
        if (opdi_cu_steps_add(&b, s, t, opd_arg_tensors(call, 5).data[i])) { return -1; }
    }
    return opdi_cu_steps_flush(&b, s);
}
static int opdi_cu_adam_any(opd_call *call, bool decoupled) {
    if (opd_results_from_fake(call)) { return -1; }                          /* the Meta kernel checks the arguments */
    return opd_arg_bool(call, 11) ? opdi_cu_adam_run<true>(call, decoupled) : opdi_cu_adam_run<false>(call, decoupled);
}
static int opdi_cu_fused_adam_kernel(opd_call *call) { return opdi_cu_adam_any(call, false); }
static int opdi_cu_fused_adamw_kernel(opd_call *call) { return opdi_cu_adam_any(call, true); }

/* Runs SGD; `buffer` is true if there are momentum buffers.  Arguments: self, grads, momentum_buffer_list,
   weight_decay, momentum, lr, dampening, nesterov, maximize, is_first_step, grad_scale, found_inf. */
template <bool buffer> static int opdi_cu_sgd_run(opd_call *call) {
    const opd_tensors params = opd_arg_tensors(call, 0);
    opdi_cu_sgd<buffer> s;
    opdi_cu_steps b;
    s.l2 = opd_arg_double(call, 3); s.momentum = opd_arg_double(call, 4); s.w = 1 - opd_arg_double(call, 6);
    s.nesterov = opd_arg_bool(call, 7);
    s.sign = opd_arg_bool(call, 8) ? -1 : 1;
    s.first = opd_arg_bool(call, 9);
    s.scaled = !opd_arg_is_none(call, 10);
    if (opdi_cu_scalar_of(&s.lr, opd_arg_value(call, 5)) || opdi_cu_scalar_of(&s.grad_scale, opd_arg_value(call, 10)) ||
        opdi_cu_scalar_of(&s.found, opd_arg_value(call, 11))) {
        return -1;
    }
    b.table.n = 0;
    for (int64_t i = 0; i < params.n; i++) {
        opd_tensor *t[3] = {params.data[i]};
        if (buffer) { t[1] = opd_arg_tensors(call, 2).data[i]; }
        t[buffer ? 2 : 1] = opd_arg_tensors(call, 1).data[i];
        if (opdi_cu_steps_add(&b, s, t, NULL)) { return -1; }
    }
    return opdi_cu_steps_flush(&b, s);
}
static int opdi_cu_fused_sgd_kernel(opd_call *call) {
    const double momentum = opd_arg_double(call, 4);
    if (opd_results_from_fake(call)) { return -1; }
    return momentum > 0 || momentum < 0 ? opdi_cu_sgd_run<true>(call) : opdi_cu_sgd_run<false>(call);
}

/* Runs _amp_foreach_non_finite_check_and_unscale_(self, found_inf, inv_scale). */
static int opdi_cu_amp_unscale_kernel(opd_call *call) {
    const opd_tensors grads = opd_arg_tensors(call, 0);
    opd_tensor *found = opd_arg_tensor(call, 1);
    opdi_cu_unscale s;
    opdi_cu_steps b;
    if (opd_results_from_fake(call) || opdi_cu_scalar_of(&s.scale, opd_arg_value(call, 2))) { return -1; }
    s.found = opdi_cu_data<void>(found);
    s.wide = opd_dtype(found) == OPD_FLOAT64;
    b.table.n = 0;
    for (int64_t i = 0; i < grads.n; i++) {
        opd_tensor *t[1] = {grads.data[i]};
        if (opdi_cu_steps_add(&b, s, t, NULL)) { return -1; }
    }
    return opd_ok() ? opdi_cu_steps_flush(&b, s) : -1;
}
/* Multiplies the scale by `backoff` if an element was not finite.  After `interval` steps in which all elements were
   finite, multiplies the scale by `growth`, unless the result would be infinite. */
template <class T, class I> __global__ void opdi_cu_amp_update(T *scale, I *tracker, opdi_cu_scalar found, float growth,
                                                               float backoff, int64_t interval) {
    float grown = (float)*scale;
    int64_t successful = 0;
    if (found.get() > 0) { grown *= backoff; }
    else if ((successful = (int64_t)*tracker + 1) == interval) {
        successful = 0;
        if (grown * growth < INFINITY) { grown *= growth; }                  /* the scale must stay finite */
    }
    *scale = (T)grown;
    *tracker = (I)successful;
}
/* Runs _amp_update_scale_.  Arguments: self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor,
   growth_interval. */
template <class T> static int opdi_cu_amp_update_of(opd_call *call) {
    opd_tensor *scale = opd_arg_tensor(call, 0), *tracker = opd_arg_tensor(call, 1);
    const float growth = (float)opd_arg_double(call, 3), backoff = (float)opd_arg_double(call, 4);
    opdi_cu_scalar found;
    if (opdi_cu_scalar_of(&found, opd_arg_value(call, 2))) { return -1; }
    OPDI_CU_INDEX(opd_dtype(tracker), I, return opdi_cu_launch(opdi_cu_amp_update<T, I>, 1, 1, 0,
        opdi_cu_data<T>(scale),
                                                               opdi_cu_data<I>(tracker), found, growth, backoff,
                                                               opd_arg_int(call, 5)))
}
static int opdi_cu_amp_update_kernel(opd_call *call) {
    if (opd_results_from_fake(call)) { return -1; }
    return opd_dtype(opd_arg_tensor(call, 0)) == OPD_FLOAT64 ? opdi_cu_amp_update_of<double>(call)
        : opdi_cu_amp_update_of<float>(call);
}

static const opdi_cu_registration opdi_cu_table_optimizers[] = {
    {"_fused_adam_", opdi_cu_fused_adam_kernel}, {"_fused_adam_.tensor_lr", opdi_cu_fused_adam_kernel},
    {"_fused_adamw_", opdi_cu_fused_adamw_kernel}, {"_fused_adamw_.tensor_lr", opdi_cu_fused_adamw_kernel},
    {"_fused_sgd_", opdi_cu_fused_sgd_kernel}, {"_fused_sgd_.tensor_lr", opdi_cu_fused_sgd_kernel},
    {"_amp_foreach_non_finite_check_and_unscale_", opdi_cu_amp_unscale_kernel},
    {"_amp_update_scale_", opdi_cu_amp_update_kernel},
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:compiled    parts of compiled graphs
//
//  opd_graph_compile and opd_program_compile give parts of graphs to this plug-in: pointwise operators, norms, softmax,
//  and views between them.  For each kind of inputs (dtypes, sizes, strides), opd_graph_gpu_code writes kernels, and
//  NVRTC, NVIDIA's compiler for run time, compiles them.  A part that cannot be written runs operator by operator, as
//  do all parts if NVRTC is not there.
//----------------------------------------------------------------------------------------------------------------------

//== NVRTC =============================================================================================================

/* The functions of NVRTC that are called, by their names without "nvrtc". */
#define OPDI_CU_NVRTC_FUNCTIONS(X) \
    X(CreateProgram, (void **program, const char *text, const char *name, int count, const char *const *headers, \
                      const char *const *names)) \
    X(DestroyProgram, (void **program)) \
    X(CompileProgram, (void *program, int count, const char *const *options)) \
    X(GetCUBINSize, (void *program, size_t *size)) \
    X(GetCUBIN, (void *program, char *code)) \
    X(GetProgramLogSize, (void *program, size_t *size)) \
    X(GetProgramLog, (void *program, char *log))
#define OPDI_CU_NVRTC_MEMBER(name, parameters) int (*name) parameters;
static struct opdi_cu_nvrtc_functions { OPDI_CU_NVRTC_FUNCTIONS(OPDI_CU_NVRTC_MEMBER) bool loaded, missing; }
    opdi_cu_nvrtc;
static std::mutex opdi_cu_nvrtc_lock;

/* Loads NVRTC, unless it is loaded.  Returns whether it is there.  If it is not, warns the first time. */
static bool opdi_cu_nvrtc_load() {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so"};
    std::lock_guard<std::mutex> guard(opdi_cu_nvrtc_lock);
    const char *const given = getenv("OPD_NVRTC"), *missing = NULL;
    opdi_cu_nvrtc_functions all;
    if (opdi_cu_nvrtc.loaded || opdi_cu_nvrtc.missing) { return opdi_cu_nvrtc.loaded; }
    if (opd_code_forbidden("NVRTC")) {
        opd_error_clear();
        return false;
    }
    memset(&all, 0, sizeof all);
    void *library = given && *given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (int i = 0; i < 2 && !library && !(given && *given); i++) { library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL); }
#define OPDI_CU_NVRTC_TAKE(name, parameters) { \
        void *const found = library ? dlsym(library, "nvrtc" #name) : NULL; \
        if (!found && !missing) { missing = "nvrtc" #name; } \
        memcpy(&all.name, &found, sizeof found); \
    }
    OPDI_CU_NVRTC_FUNCTIONS(OPDI_CU_NVRTC_TAKE)
    if (missing) {
        const char *const why = library ? NULL : dlerror();
        all.missing = true;
        opd_warn("CUDA: compiled graphs run operator by operator, because NVRTC cannot be loaded: %s%s. Install "
                 "NVIDIA's package cuda-nvrtc, or set the environment variable OPD_NVRTC to the path of libnvrtc.so.",
                 why ? why : library ? "it has no function " : given && *given ? given : names[0], library ? missing
                 : "");
        if (library) { (void)dlclose(library); }
    } else { all.loaded = true; }
    opdi_cu_nvrtc = all;
    return all.loaded;
}
/* The libraries that were loaded, by device and text.  They are never unloaded: queued work and captures may use their
   kernels after the graph is freed. */
static std::map<std::pair<int, std::string>, cudaLibrary_t> *opdi_cu_built;
/* Compiles the text of kernels for the current device and loads them, unless that was done before.  Returns 0, or 1
   after a warning if that fails. */
static int opdi_cu_nvrtc_build(const char *text, cudaLibrary_t *library) {
    std::lock_guard<std::mutex> guard(opdi_cu_nvrtc_lock);
    if (!opdi_cu_built) { opdi_cu_built = new std::map<std::pair<int, std::string>, cudaLibrary_t>(); }
    const std::pair<int, std::string> key(opdi_cu_current(), text);
    const auto found = opdi_cu_built->find(key);
    if (found != opdi_cu_built->end()) {
        *library = found->second;
        return 0;
    }
    const opdi_cu_device *const device = opdi_cu_properties();
    char arch[40];
    void *program = NULL;
    size_t size = 0;
    if (opd_code_forbidden("NVRTC")) {
        opd_error_clear();
        return 1;
    }
    (void)snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d%d", device->major, device->minor);
    const char *const options[] = {arch, "--std=c++17"};
    if (opdi_cu_nvrtc.CreateProgram(&program, text, "graph.cu", 0, NULL, NULL)) { return 1; }
    int rc = opdi_cu_nvrtc.CompileProgram(program, 2, options) || opdi_cu_nvrtc.GetCUBINSize(program, &size);
    std::vector<char> code(size + 1);
    if (rc == 0) { rc = opdi_cu_nvrtc.GetCUBIN(program, code.data()); }
    if (rc) {
        size_t length = 0;
        (void)opdi_cu_nvrtc.GetProgramLogSize(program, &length);
        std::vector<char> log(length + 1);
        if (length) { (void)opdi_cu_nvrtc.GetProgramLog(program, log.data()); }
        opd_warn("CUDA: NVRTC cannot compile a part of a graph for %s, so it runs operator by operator: %.600s",
                 arch + strlen("--gpu-architecture="), log.data());
    }
    (void)opdi_cu_nvrtc.DestroyProgram(&program);
    if (rc) { return 1; }
    const cudaError_t e = cudaLibraryLoadData(library, code.data(), NULL, NULL, 0, NULL, NULL, 0);
    if (e != cudaSuccess) {
        (void)cudaGetLastError();
        opd_warn("CUDA: the kernels of a part of a graph cannot be loaded, so it runs operator by operator: %s",
                 cudaGetErrorString(e));
        return 1;
    }
    (*opdi_cu_built)[key] = *library;
    return 0;
}

//== the kernels of a part =============================================================================================

/* The dtype, sizes and strides of an input. */
struct opdi_cu_port {
    opd_scalar_type dtype;
    std::vector<int64_t> sizes, strides;
    opdi_cu_port(const opd_tensor *t) : dtype(opd_dtype(t)), sizes(opd_sizes(t), opd_sizes(t) + opd_ndim(t)),
        strides(opd_strides(t), opd_strides(t) + opd_ndim(t)) {}
    bool fits(const opd_tensor *t) const {
        if (opd_dtype(t) != dtype || (size_t)opd_ndim(t) != sizes.size()) { return false; }
        for (size_t i = 0; i < sizes.size(); i++) {
            if (opd_sizes(t)[i] != sizes[i]) { return false; }
            if (opd_strides(t)[i] != strides[i] && sizes[i] != 1) { return false; }
        }
        return true;
    }
};
/* What was compiled for one kind of inputs on one device.  `code` is NULL if the part cannot be written. */
struct opdi_cu_variant {
    int device;
    std::vector<opdi_cu_port> inputs, constants;
    opd_gpu_code *code;
    cudaLibrary_t library;
    std::vector<cudaKernel_t> kernels;
    opdi_cu_variant() : device(0), code(NULL), library(NULL) {}
    ~opdi_cu_variant() { opd_gpu_code_free(code); }
    opdi_cu_variant(const opdi_cu_variant &) = delete;
    opdi_cu_variant &operator=(const opdi_cu_variant &) = delete;
};
/* The most kinds of inputs for which a part is compiled. */
enum { OPDI_CU_KINDS = 8 };
struct opdi_cu_part {
    opd_graph *graph;                             /* a copy of the part, which only this plug-in uses */
    std::mutex lock;                              /* protects the variants, and the graph while code is written */
    std::list<opdi_cu_variant> variants;
    opdi_cu_part() : graph(NULL) {}
};

static bool opdi_cu_variant_fits(const opdi_cu_variant &variant, int device, opd_tensor *const *inputs, int n) {
    if (variant.device != device || variant.inputs.size() != (size_t)n) { return false; }
    for (int i = 0; i < n; i++) { if (!variant.inputs[(size_t)i].fits(inputs[i])) { return false; } }
    for (size_t i = 0; i < variant.constants.size(); i++) {
        if (!variant.constants[i].fits(variant.code->constants[i])) { return false; }
    }
    return true;
}
/* Writes and compiles the kernels for a new kind of inputs.  If that is impossible, variant->code stays NULL.  Returns
   0, or -1 and sets an error if memory ran out. */
static int opdi_cu_variant_make(opdi_cu_part *part, opdi_cu_variant *variant, opd_tensor *const *inputs, int n) {
    for (int i = 0; i < n; i++) { variant->inputs.push_back(opdi_cu_port(inputs[i])); }
    opd_gpu_code *const code = opd_graph_gpu_code(part->graph, inputs, n);
    if (!code) {
        if (opd_error_code() == OPD_ERROR_MEMORY) { return -1; }
        opd_error_clear();                        /* the part stays as it is */
        return 0;
    }
    const int rc = opdi_cu_nvrtc_build(code->text, &variant->library);
    bool whole = rc == 0;
    for (int i = 0; i < code->ncalls && whole; i++) {
        cudaKernel_t kernel = NULL;
        whole = cudaLibraryGetKernel(&kernel, variant->library, code->calls[i].name) == cudaSuccess;
        variant->kernels.push_back(kernel);
    }
    if (whole) {
        for (int i = 0; i < code->nconstants; i++) { variant->constants.push_back(opdi_cu_port(code->constants[i])); }
        variant->code = code;
        return 0;
    }
    opd_gpu_code_free(code);
    return 0;
}
/* Returns the variant for these inputs, and makes it if it is new.  Returns NULL if there is none: because the stream
   is captured, or there are too many kinds; or with an error. */
static opdi_cu_variant *opdi_cu_variant_of(opdi_cu_part *part, int device, opd_tensor *const *inputs, int n) {
    std::lock_guard<std::mutex> guard(part->lock);
    for (opdi_cu_variant &variant : part->variants) {
        if (opdi_cu_variant_fits(variant, device, inputs, n)) { return &variant; }
    }
    if (part->variants.size() >= OPDI_CU_KINDS || opdi_cu_captured(opdi_cu_stream()) || !opdi_cu_nvrtc_load()) {
        return NULL;
    }
    part->variants.emplace_back();
    opdi_cu_variant *const variant = &part->variants.back();
    variant->device = device;
    if (opdi_cu_variant_make(part, variant, inputs, n) == 0) { return variant; }
    part->variants.pop_back();
    return NULL;
}

//== runs ==============================================================================================================

static opd_tensor *opdi_cu_part_new(const int64_t *sizes, const int64_t *strides, int ndim, opd_scalar_type dtype) {
    return opd_empty_strided_full(opd_ints_of(sizes, ndim), opd_ints_of(strides, ndim), opd_value_int(dtype), OPD_NONE,
                                  opd_value_device(opd_device_make(OPD_CUDA, -1)), OPD_NONE);
}
/* Launches the kernels of a variant in order.  `data` has the addresses of the inputs, of the constants, and of the
   tensors that were made; `memory` is the block for values between kernels.  Returns 0, or -1 and sets an error. */
static int opdi_cu_variant_launch(const opdi_cu_variant &variant, char *const *data, int ninputs, char *memory) {
    const opd_gpu_code *const code = variant.code;
    const int64_t most = (int64_t)opdi_cu_properties()->multiprocessors * 64;
    for (int i = 0; i < code->ncalls; i++) {
        const opd_gpu_call *const call = &code->calls[i];
        std::vector<void *> values((size_t)call->narguments + 1), arguments((size_t)call->narguments + 1);
        for (int k = 0; k < call->narguments; k++) {
            const opd_gpu_argument *const argument = &call->arguments[k];
            values[(size_t)k] = argument->kind == OPD_GPU_INPUT ? data[argument->index]
                : argument->kind == OPD_GPU_OUTPUT ? data[ninputs + argument->index] : memory + argument->offset;
            arguments[(size_t)k] = &values[(size_t)k];
        }
        cudaLaunchConfig_t config = cudaLaunchConfig_t();
        config.gridDim = dim3((unsigned)(call->blocks < 1 ? 1 : call->blocks < most ? call->blocks : most));
        config.blockDim = dim3((unsigned)call->threads);
        config.stream = opdi_cu_stream();
        OPDI_CU_TRY(cudaLaunchKernelExC(&config, (const void *)variant.kernels[(size_t)i], arguments.data()),
                    call->name);
        OPDI_CU_TRY(opdi_cu_debug_wait(config.stream), call->name);
    }
    return 0;
}
/* Returns result `i` of a run: a tensor that the run has made, an input, or a view of one of these. */
static opd_tensor *opdi_cu_variant_result(const opd_gpu_result *result, opd_tensor *const *given,
                                          opd_tensor *const *made) {
    opd_tensor *const base = result->of < 0 ? given[~result->of] : made[result->of];
    if (!result->view) { return base; }
    return opd_as_strided_full(base, opd_ints_of(result->sizes, result->ndim), opd_ints_of(result->strides,
        result->ndim), opd_value_int(opd_storage_offset(base).u.i + result->offset));
}
/* Runs a part.  Follows opd_part_function.run: returns the number of results; 0 if the operators of the part have to
   run instead; or -1 and sets an error. */
static int opdi_cu_part_run(void *user, opd_tensor *const *inputs, int n, opd_tensor **outputs) {
    opdi_cu_part *const part = static_cast<opdi_cu_part *>(user);
    for (int i = 0; i < n; i++) {
        const opd_device first = opd_tensor_device(inputs[0]), device = opd_tensor_device(inputs[i]);
        if (device.type != OPD_CUDA || device.index != first.index) { return 0; }
    }
    if (n < 1) { return 0; }
    const int index = opd_tensor_device(inputs[0]).index;
    const opdi_cu_on on(index);
    const opdi_cu_variant *const variant = opdi_cu_variant_of(part, index, inputs, n);
    if (!opd_ok()) { return -1; }
    if (!variant || !variant->code) { return 0; }
    const opd_gpu_code *const code = variant->code;
    for (int i = 0; i < code->nconstants; i++) {
        const opd_tensor *const t = code->constants[i];
        const opd_device device = opd_tensor_device(t);
        if (device.type != OPD_CUDA || device.index != index || opd_tensor_is_neg(t) || opd_tensor_is_conj(t)) {
            return 0;
        }
    }
    std::vector<opd_tensor *> given(inputs, inputs + n), made;
    std::vector<char *> data;
    given.insert(given.end(), code->constants, code->constants + code->nconstants);
    for (opd_tensor *t : given) { data.push_back(static_cast<char *>(opd_device_data(t, OPD_CUDA))); }
    for (int i = 0; i < code->nmade; i++) {
        const opd_gpu_tensor *const tensor = &code->made[i];
        made.push_back(opdi_cu_part_new(tensor->sizes, tensor->strides, tensor->ndim, tensor->dtype));
        if (!made.back()) { return -1; }
        data.push_back(static_cast<char *>(opd_device_data(made.back(), OPD_CUDA)));
    }
    char *const memory = code->memory ? static_cast<char *>(opdi_cu_scratch((int64_t)code->memory)) : NULL;
    if ((code->memory && !memory) || !opd_ok() ||
        opdi_cu_variant_launch(*variant, data.data(), (int)given.size(), memory)) { return -1; }
    for (int i = 0; i < code->nresults; i++) {
        outputs[i] = opdi_cu_variant_result(&code->results[i], given.data(), made.data());
        if (!outputs[i]) { return -1; }
    }
    return code->nresults;
}

//== choosing parts ====================================================================================================

/* Operators that reduce rows, and views, which may stand in a part beside pointwise operators.  Views of a part of a
   tensor (narrow, select, expand) stay outside, because a part only returns tensors that fill their memory. */
static const char *const opdi_cu_part_rows[] = {
    "aten::layer_norm", "aten::native_layer_norm", "aten::rms_norm", "aten::softmax.int", "aten::_softmax",
    "aten::log_softmax.int", "aten::_log_softmax", "aten::sum.dim_IntList", "aten::mean.dim", "aten::amax",
    "aten::amin", NULL};
static const char *const opdi_cu_part_views[] = {
    "aten::view", "aten::reshape", "aten::_unsafe_view", "aten::unsqueeze", "aten::squeeze.dim",
    "aten::transpose.int", "aten::permute", "aten::t", "aten::alias", "aten::detach", NULL};
static bool opdi_cu_part_named(const opd_graph_node *node, const char *const *names) {
    for (; *names; names++) { if (opd_graph_node_is(node, *names)) { return true; } }
    return false;
}
/* Returns whether a call computes: it is a pointwise operator or reduces rows. */
static bool opdi_cu_part_computes(const opd_graph_node *node) {
    const opd_op *const op = opd_graph_node_op(node);
    if (!op || strncmp(opd_op_name(op), "aten::", 6) != 0 || opd_graph_node_has_effects(node)) { return false; }
    return (opd_op_tags(op) & OPD_OPTAG_POINTWISE) || opdi_cu_part_named(node, opdi_cu_part_rows);
}
static bool opdi_cu_part_takes(void *user, const opd_graph_node *node) {
    (void)user;
    return opdi_cu_part_computes(node) || opdi_cu_part_named(node, opdi_cu_part_views);
}
static void opdi_cu_part_free(void *user) {
    opdi_cu_part *const part = static_cast<opdi_cu_part *>(user);
    part->variants.clear();                       /* their code points to constants of the graph */
    opd_graph_free(part->graph);
    delete part;
}
/* Takes a part with two or more calls that compute.  Follows opd_part_compiler.compile. */
static int opdi_cu_part_compile(void *user, const opd_graph *graph, opd_part_function *function) {
    int count = 0;
    (void)user;
    for (const opd_graph_node *node = opd_graph_first(graph); node; node = opd_graph_next(node)) {
        count += opdi_cu_part_computes(node);
    }
    if (count < 2) { return 1; }
    opdi_cu_part *const part = new (std::nothrow) opdi_cu_part;
    if (!part) { return opdi_cu_no_memory("a part of a graph"); }
    part->graph = opd_graph_copy(graph);
    if (!part->graph) {
        delete part;
        return -1;
    }
    function->name = "cuda";
    function->run = opdi_cu_part_run;
    function->user = part;
    function->destroy = opdi_cu_part_free;
    return 0;
}
static const opd_part_compiler opdi_cu_parts = {opdi_cu_part_takes, opdi_cu_part_compile, 2, NULL};
//----------------------------------------------------------------------------------------------------------------------
//  >>cu:registration registering kernels for operators
//----------------------------------------------------------------------------------------------------------------------

static const opdi_cu_registration *const opdi_cu_rows[] = {
    opdi_cu_table_random, opdi_cu_table_reductions, opdi_cu_table_softmax, opdi_cu_table_scans, opdi_cu_table_indexing,
    opdi_cu_table_pooling, opdi_cu_table_resampling, opdi_cu_table_filters, opdi_cu_table_losses,
    opdi_cu_table_ctc, opdi_cu_table_distances, opdi_cu_table_matmul,
    opdi_cu_table_fft,
    opdi_cu_table_convolution, opdi_cu_table_attention, opdi_cu_table_recurrent, opdi_cu_table_optimizers};

/* Operators that only the library itself calls, of namespace opd_cuda: their schemas and kernels. */
typedef struct opdi_cu_own { const char *name, *schema; opd_kernel kernel; } opdi_cu_own;
static const opdi_cu_own opdi_cu_own_rows[] = {
    {"list_norm", "list_norm(Tensor[] self, float order) -> Tensor", opdi_cu_list_norm},
    {"rms_norm", "rms_norm(Tensor x, Tensor? w, int n, float eps, Tensor? r) -> (Tensor, Tensor, Tensor)",
     opdi_cu_rms_norm},
    {"rms_norm_backward", "rms_norm_backward(Tensor g, Tensor x, Tensor? w, Tensor rstd, int n, bool need, Tensor? r) "
     "-> (Tensor, Tensor)", opdi_cu_rms_norm_backward},
    {"linear_relu", "linear_relu(Tensor bias, Tensor a, Tensor b) -> Tensor", opdi_cu_linear_relu},
    {"scaled_mm", "scaled_mm(Tensor a, Tensor b, Tensor left, Tensor right, Tensor? bias, int kinds, int dtype, bool "
     "fast) -> Tensor", opdi_cu_scaled_mm},
    {"rotary", "rotary(Tensor x, Tensor cos, Tensor sin, bool next, bool back) -> Tensor", opdi_cu_rotary_run},
    {"cross_entropy", "cross_entropy(Tensor x, Tensor target, int reduction, int ignore) -> (Tensor, Tensor, Tensor)",
     opdi_cu_cross_entropy},
    {"cross_entropy_backward", "cross_entropy_backward(Tensor g, Tensor x, Tensor target, Tensor lse, Tensor total, "
     "int reduction, int ignore) -> Tensor", opdi_cu_cross_entropy_backward},
    {"attention_dropout", "attention_dropout(Tensor q, Tensor k, Tensor v, Tensor? mask, float p, bool causal, float "
     "scale) -> (Tensor, Tensor, Tensor)", opdi_cu_attention_dropout},
    {"attention_dropout_backward", "attention_dropout_backward(Tensor g, Tensor q, Tensor k, Tensor v, Tensor out, "
     "Tensor lse, Tensor seed, Tensor? mask, float p, bool causal, float scale) -> (Tensor, Tensor, Tensor)",
     opdi_cu_attention_dropout_backward},
    {"attention_kept", "attention_kept(Tensor seed, int[] size, float p) -> Tensor", opdi_cu_attention_kept},
    {"attention_texts", "attention_texts(Tensor q, Tensor k, Tensor v, Tensor at, Tensor begin, int left, int right, "
     "float scale) -> (Tensor, Tensor, Tensor)", opdi_cu_attention_texts},
    {"attention_texts_backward", "attention_texts_backward(Tensor g, Tensor q, Tensor k, Tensor v, Tensor out, Tensor "
     "lse, Tensor offsets, int left, int right, float scale) -> (Tensor, Tensor, Tensor)",
     opdi_cu_attention_texts_backward}};
static void opdi_cu_own_register() {
    opd_library *lib = opd_library_open(OPD_DEF, "opd_cuda", NULL, __FILE__, __LINE__);
    for (const opdi_cu_own &r : opdi_cu_own_rows) {
        if (!lib || opd_def(lib, r.schema)) { return; }
        (void)opd_impl_key(lib, r.name, "CUDA", r.kernel, NULL, NULL);
    }
}

/* Returns the number of GPUs that can be used.  If it is 0, because there is no GPU or no driver, later errors will say
   so.  Does not make a context on any GPU; the first call that needs a context makes it. */
static int opdi_cu_find_devices() {
    static char why[400];
    int n = 0, i;
    const cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess || n == 0) {
        (void)cudaGetLastError();
        (void)snprintf(why, sizeof why, "the NVIDIA driver of this machine does not work: %s (%s, %d)%s",
                       cudaGetErrorString(e), cudaGetErrorName(e), (int)e, e == cudaErrorSystemNotReady
                       ? "; the GPUs may wait for the fabric manager (systemctl status nvidia-fabricmanager)"
                       : "; nvidia-smi may tell more");
        opd_backend_missing_set(OPD_CUDA, e == cudaErrorInsufficientDriver
            ? "this machine has no NVIDIA driver, or one that is too old for the CUDA plug-in"
            : e == cudaSuccess || e == cudaErrorNoDevice ? "this machine has no GPU, or none is visible "
            "(CUDA_VISIBLE_DEVICES)" : why);
        return 0;
    }
    n = n < OPDI_CU_MAX_DEVICES ? n : OPDI_CU_MAX_DEVICES;
    for (i = 0; i < n; i++) {
        opdi_cu_device *p = &opdi_cu_devices[i];
        (void)cudaDeviceGetAttribute(&p->multiprocessors, cudaDevAttrMultiProcessorCount, i);
        (void)cudaDeviceGetAttribute(&p->threads, cudaDevAttrMaxThreadsPerMultiProcessor, i);
        (void)cudaDeviceGetAttribute(&p->shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, i);
        (void)cudaDeviceGetAttribute(&p->major, cudaDevAttrComputeCapabilityMajor, i);
        (void)cudaDeviceGetAttribute(&p->minor, cudaDevAttrComputeCapabilityMinor, i);
    }
    return n;
}

OPD_LIBRARY_IMPL(aten, CUDA, lib) {
    opd_backend_desc d = opd_backend_desc();
    const char *debug = getenv("OPD_CUDA_DEBUG");
    const char *no_cache = getenv("OPD_CUDA_NO_CACHE");
    const char *winograd = getenv("OPD_WINOGRAD");
    const char *ranges = getenv("OPD_CUDA_NVTX");
    opdi_cu_debug = debug && *debug && *debug != '0';
    opdi_cu_no_cache = no_cache && *no_cache && *no_cache != '0';
    opdi_cu_no_winograd = winograd && *winograd == '0';
    opdi_cu_all_pieces = new std::unordered_map<void *, opdi_cu_piece *>();
    opdi_cu_all_pinned = new std::map<char *, opdi_cu_piece *>();
    opdi_cu_free_pinned = new std::multimap<size_t, opdi_cu_piece *>();
    opdi_cu_capturing = new std::vector<opdi_cu_pool *>();
    opdi_cu_marks = new std::vector<opdi_cu_mark>();
    opdi_cu_held = new std::vector<opdi_cu_piece *>();
    opdi_cu_idle_streams = new std::vector<opdi_cu_use>();
    opdi_cu_idle_handles = new std::vector<cublasHandle_t>[OPDI_CU_MAX_DEVICES];
    for (int i = 0; i < OPDI_CU_MAX_DEVICES; i++) { opdi_cu_pools[i].device = i; }
    d.alloc = opdi_cu_alloc; d.free = opdi_cu_free; d.copy = opdi_cu_copy_bytes;
    d.device_count = opdi_cu_device_count; d.device_get = opdi_cu_device_get; d.device_set = opdi_cu_device_set;
    d.synchronize = opdi_cu_synchronize;
    d.stream_new = opdi_cu_stream_new; d.stream_free = opdi_cu_stream_free;
    d.stream_get = opdi_cu_stream_get; d.stream_set = opdi_cu_stream_set; d.stream_wait = opdi_cu_stream_wait;
    d.stream_synchronize = opdi_cu_stream_synchronize;
    d.pointwise = opdi_cu_pointwise; d.draw = opdi_cu_draw;
    d.copy_async = opdi_cu_copy_async; d.host_alloc = opdi_cu_host_alloc; d.host_free = opdi_cu_host_free;
    d.empty_cache = opdi_cu_empty_cache; d.cached = opdi_cu_cached;
    d.event_new = opdi_cu_event_new; d.event_free = opdi_cu_event_free; d.event_record = opdi_cu_event_record;
    d.event_wait = opdi_cu_event_wait; d.event_synchronize = opdi_cu_event_synchronize;
    d.event_done = opdi_cu_event_done; d.event_elapsed = opdi_cu_event_elapsed;
    d.capture_begin = opdi_cu_capture_begin; d.capture_end = opdi_cu_capture_end;
    d.capture_replay = opdi_cu_capture_replay; d.capture_free = opdi_cu_capture_free;
    d.debug_set = opdi_cu_debug_set; d.record_stream = opdi_cu_record_stream;
    d.group_id = opdi_cu_group_id; d.group_new = opdi_cu_group_new;
    d.parts = &opdi_cu_parts;
    d.attention_backward = opdi_cu_attention_backward;
    d.gather = opdi_cu_gather_set;
    d.blocks = opdi_cu_blocks;
    d.convert = opdi_cu_stored_convert;
    if (opd_backend_register(OPD_CUDA, &d)) { return; }
    opdi_cu_own_register();
    for (size_t s = 0; s < sizeof opdi_cu_rows / sizeof *opdi_cu_rows; s++) {
        for (const opdi_cu_registration *r = opdi_cu_rows[s]; r->name; r++) { (void)opd_impl(lib, r->name, r->kernel); }
    }
    if (ranges && *ranges && *ranges != '0') { (void)opdi_cu_ranges_begin(); }
}

/* torchvision's operators */
OPD_LIBRARY_IMPL(torchvision, CUDA, lib) {
    for (const opdi_cu_registration *r = opdi_cu_table_vision; r->name; r++) {
        (void)opd_impl(lib, r->name, r->kernel);
    }
}
