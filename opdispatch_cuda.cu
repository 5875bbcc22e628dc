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
         ... opd_load_library("./opdispatch_cuda.so") ...
     -arch=sm_90 in place of -arch=all-major makes code for one kind of GPU in a fraction of the time.

   CONTENTS (search for the anchor)
     >>cu:platform       errors, devices, launches, types, what threads of a block do together
     >>cu:memory         the caching allocator, pinned memory, copies
     >>cu:streams        streams, events, graphs
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

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:platform    errors, devices, launches, types, what threads of a block do together
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_CU_MAX_DEVICES 16
#define OPDI_CU_WARP 32
#define OPDI_CU_ALL_LANES 0xffffffffu
#define OPDI_CU_GRID 0x7fffffff                  /* blocks there can be in x */

/* A row of the list of kernels; a section's list ends with {NULL, NULL}. */
typedef struct opdi_cu_row { const char *name; opd_kernel kernel; } opdi_cu_row;

static bool opdi_cu_debug;                       /* synchronise after each launch */

/* 0, or -1 with an error that says what failed. */
static int opdi_cu_failed(cudaError_t e, const char *what) {
    (void)cudaGetLastError();                    /* one that does not stick is forgotten */
    return opd_fail(e == cudaErrorMemoryAllocation ? OPD_ERROR_MEMORY : OPD_ERROR_KERNEL, "CUDA error: %s (%s in %s)%s",
                    cudaGetErrorString(e), cudaGetErrorName(e), what,
                    opdi_cu_debug ? "" : "\nKernels run asynchronously: the call that is named may be a later one than "
                    "the one that failed. opd_cuda_debug_set(true), or OPD_CUDA_DEBUG=1, names it.");
}
#define OPDI_CU_TRY(call, what) \
    do { cudaError_t opdi_cu_e = (call); if (opdi_cu_e != cudaSuccess) return opdi_cu_failed(opdi_cu_e, what); } while (0)

//-- devices -----------------------------------------------------------------------------------------------------------

static int opdi_cu_ndevices;                     /* found at the start */
/* What is asked of a device again and again. */
typedef struct opdi_cu_device { int multiprocessors, threads, shared, major, minor; } opdi_cu_device;
static opdi_cu_device opdi_cu_devices[OPDI_CU_MAX_DEVICES];
static thread_local cudaStream_t opdi_cu_streams[OPDI_CU_MAX_DEVICES];       /* this thread's current ones */

static int opdi_cu_current() {
    int d = 0;
    return cudaGetDevice(&d) == cudaSuccess && d < OPDI_CU_MAX_DEVICES ? d : 0;
}
static const opdi_cu_device *opdi_cu_properties() { return &opdi_cu_devices[opdi_cu_current()]; }
/* The stream that kernels and copies of this thread go to. */
static cudaStream_t opdi_cu_stream() { return opdi_cu_streams[opdi_cu_current()]; }

//-- what kernels find wrong -------------------------------------------------------------------------------------------
//
//  An index out of range is never followed.  The kernel notes it in memory of the host and goes on; the next call that
//  waits for the device, or in debug mode the launch itself, is the one that fails, and names the operator.

typedef struct opdi_cu_fault {
    volatile int32_t set;
    const opd_op *op;
    const char *text;                             /* NULL: of an index */
    int64_t index, size;
} opdi_cu_fault;
static opdi_cu_fault *opdi_cu_the_fault;         /* pinned */

/* What a kernel notes it with: an argument of the kernel, made by opdi_cu_guard_of. */
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
    /* Whether an index is inside; notes one that is not. */
    __device__ __forceinline__ bool inside(int64_t index, int64_t size) const {
        if ((uint64_t)index < (uint64_t)size) { return true; }
        note(index, size);
        return false;
    }
};
static opdi_cu_guard opdi_cu_guard_of(const opd_call *call, const char *text = NULL) {
    const opdi_cu_guard g = {opdi_cu_the_fault, opd_call_operator(call), text};
    return g;
}
/* 0, or -1 with the error of what a kernel noted, which is forgotten then.  The device has been waited for. */
static int opdi_cu_faults() {
    opdi_cu_fault *f = opdi_cu_the_fault;
    if (!f || !f->set) { return 0; }
    f->set = 0;
    if (f->text) {
        return opd_fail(OPD_ERROR_INDEX, "%s on CUDA: %s", opd_op_name(f->op), f->text);
    }
    return opd_fail(OPD_ERROR_INDEX, "%s on CUDA: index %lld is out of bounds for dimension with size %lld",
                    opd_op_name(f->op), (long long)f->index, (long long)f->size);
}

//-- launches ----------------------------------------------------------------------------------------------------------

static __host__ __device__ __forceinline__ int64_t opdi_cu_ceil(int64_t n, int64_t d) { return (n + d - 1) / d; }
/* Blocks for n pieces of work of one thread each, in kernels that loop until all is done (by gridDim.x * blockDim.x):
   as many as run at once, a few times over. */
static dim3 opdi_cu_grid(int64_t n, int threads) {
    const opdi_cu_device *p = opdi_cu_properties();
    const int64_t most = (int64_t)p->multiprocessors * (p->threads / threads) * 8, want = opdi_cu_ceil(n, threads);
    return dim3((unsigned)(want < 1 ? 1 : want < most ? want : most));
}
/* Blocks for n pieces of work of one block each, in kernels that loop by gridDim.x. */
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
/* Runs kernel<<<grid, block, shared>>>(args...) on the current stream; 0, or -1 with an error that names it. */
template <typename... P, typename... A>
static int opdi_cu_launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, A... args) {
    cudaLaunchConfig_t config = cudaLaunchConfig_t();
    cudaError_t e = cudaSuccess;
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = opdi_cu_stream();
    if (shared > 48 * 1024) {
        e = cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared);
    }
    if (e == cudaSuccess) { e = cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...); }
    if (e == cudaSuccess && opdi_cu_debug) { e = cudaStreamSynchronize(config.stream); }
    return e != cudaSuccess ? opdi_cu_launch_failed(e, (const void *)kernel) : opdi_cu_debug ? opdi_cu_faults() : 0;
}

/* In a kernel: `unsigned char *name` is the block's dynamic shared memory, aligned to 16 bytes. */
#if defined(OPD_CUDA_EMULATED)
#define OPDI_CU_SHARED(name) unsigned char *name = opd_cuda_emulated_shared()
#else
extern __shared__ __align__(16) unsigned char opdi_cu_shared_memory[];
#define OPDI_CU_SHARED(name) unsigned char *name = opdi_cu_shared_memory
#endif

//-- types -------------------------------------------------------------------------------------------------------------

typedef __half opdi_cu_f16;
typedef __nv_bfloat16 opdi_cu_bf16;
struct alignas(16) opdi_cu_16 { uint64_t a, b; };                            /* 16 bytes that are moved as they are */

/* Dtype checks have happened where the result was made; this is for what no kernel is written for. */
static int opdi_cu_no_dtype(opd_scalar_type dtype) {
    return opd_fail(OPD_ERROR_DTYPE, "not implemented for '%s' on CUDA", opd_dtype_cname(dtype));
}
/* OPDI_CU_FLOATS(dtype, T, body): runs body with T the type of dtype, in a function that returns int. */
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
#define OPDI_CU_INTS(dtype, T, ...) \
    switch (dtype) { OPDI_CU_CASES_INT(T, __VA_ARGS__) default: return opdi_cu_no_dtype(dtype); }
/* All but complex ones. */
#define OPDI_CU_ALL(dtype, T, ...) \
    switch (dtype) { OPDI_CU_CASES_FLOAT(T, __VA_ARGS__) OPDI_CU_CASES_INT(T, __VA_ARGS__) \
        OPDI_CU_CASE(OPD_BOOL, bool, T, __VA_ARGS__) default: return opdi_cu_no_dtype(dtype); }
/* By the size of an element, for what only moves them: uint8_t to uint64_t, and 16 bytes. */
#define OPDI_CU_SIZES(dtype, T, ...) \
    switch (opd_dtype_size(dtype)) { OPDI_CU_CASE(1, uint8_t, T, __VA_ARGS__) OPDI_CU_CASE(2, uint16_t, T, __VA_ARGS__) \
        OPDI_CU_CASE(4, uint32_t, T, __VA_ARGS__) OPDI_CU_CASE(8, uint64_t, T, __VA_ARGS__) \
        OPDI_CU_CASE(16, opdi_cu_16, T, __VA_ARGS__) default: return opdi_cu_no_dtype(dtype); }
/* int32 and int64, of indices. */
#define OPDI_CU_INDEX(dtype, T, ...) \
    switch (dtype) { OPDI_CU_CASE(OPD_INT32, int32_t, T, __VA_ARGS__) OPDI_CU_CASE(OPD_INT64, int64_t, T, __VA_ARGS__) \
        default: return opdi_cu_no_dtype(dtype); }

/* What sums of T are computed in: float for the short floats, int64_t for integers and bool. */
template <typename T> struct opdi_cu_acc_of { typedef int64_t type; };
template <> struct opdi_cu_acc_of<float> { typedef float type; };
template <> struct opdi_cu_acc_of<double> { typedef double type; };
template <> struct opdi_cu_acc_of<opdi_cu_f16> { typedef float type; };
template <> struct opdi_cu_acc_of<opdi_cu_bf16> { typedef float type; };
template <typename T> using opdi_cu_acc = typename opdi_cu_acc_of<T>::type;

/* A number of one type as another: the short floats by way of float; bool is "not zero". */
template <typename C, typename T> struct opdi_cu_convert {
    static __host__ __device__ __forceinline__ C of(T v) { return static_cast<C>(v); }
};
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

/* opdi_cu_cast<float>(v), opdi_cu_load<float>(p): *p as a float; opdi_cu_store(p, v): v as what p points to. */
template <typename C, typename T> __host__ __device__ __forceinline__ C opdi_cu_cast(T v) {
    return opdi_cu_convert<C, T>::of(v);
}
template <typename C, typename T> __device__ __forceinline__ C opdi_cu_load(const T *p) { return opdi_cu_cast<C>(*p); }
template <typename T, typename C> __device__ __forceinline__ void opdi_cu_store(T *p, C v) { *p = opdi_cu_cast<T>(v); }

/* N elements that are loaded and stored at once; N * sizeof(T) is 16 at most, and p aligned to it. */
template <typename T, int N> struct alignas(sizeof(T) * N) opdi_cu_vector { T at[N]; };
template <int N, typename T> __device__ __forceinline__ opdi_cu_vector<T, N> opdi_cu_load_vector(const T *p) {
    return *reinterpret_cast<const opdi_cu_vector<T, N> *>(p);
}
template <int N, typename T> __device__ __forceinline__ void opdi_cu_store_vector(T *p, opdi_cu_vector<T, N> v) {
    *reinterpret_cast<opdi_cu_vector<T, N> *>(p) = v;
}
static bool opdi_cu_aligned(const void *p) { return ((uintptr_t)p & 15) == 0; }

//-- tensors -----------------------------------------------------------------------------------------------------------

/* Result i of a call whose results are made (opd_results_from_fake); NULL: undefined. */
static opd_tensor *opdi_cu_result(opd_call *call, int i) {
    const opd_value *v = &opd_call_rets(call)[i];
    return v->tag == OPD_TAG_TENSOR ? v->u.t : NULL;
}
/* The first element of a CUDA tensor, typed; NULL with an error when it is elsewhere. */
template <typename T> static T *opdi_cu_data(const opd_tensor *t) {
    return static_cast<T *>(opd_device_data(t, OPD_CUDA));
}
/* A tensor of this device for a kernel's own use; it belongs to the kernel's scope.  NULL with an error. */
static opd_tensor *opdi_cu_new(opd_ints sizes, opd_scalar_type dtype) {
    return opd_tensor_new_on(sizes, dtype, opd_device_of(OPD_CUDA, -1));
}
/* Bytes of scratch memory; stream-ordered as every tensor.  NULL with an error. */
static void *opdi_cu_scratch(int64_t bytes) {
    const int64_t n = bytes < 1 ? 1 : bytes;
    opd_tensor *t = opdi_cu_new(opd_ints_of(&n, 1), OPD_UINT8);
    return t ? opd_device_data(t, OPD_CUDA) : NULL;
}

//-- what threads do together ------------------------------------------------------------------------------------------

/* Any value of 4, 8, 12, ... bytes from the lane `mask` away, or `delta` further up. */
template <typename A> __device__ __forceinline__ A opdi_cu_shuffle_xor(A v, int mask) {
    static_assert(sizeof(A) % 4 == 0, "whole words");
    union { A v; int w[sizeof(A) / 4]; } u = {v};
#pragma unroll
    for (int i = 0; i < (int)(sizeof(A) / 4); i++) { u.w[i] = __shfl_xor_sync(OPDI_CU_ALL_LANES, u.w[i], mask); }
    return u.v;
}
/* f over the values of a warp's lanes; every lane has the result. */
template <typename A, typename F> __device__ __forceinline__ A opdi_cu_warp_reduce(A v, F f) {
#pragma unroll
    for (int m = OPDI_CU_WARP / 2; m > 0; m /= 2) { v = f(v, opdi_cu_shuffle_xor(v, m)); }
    return v;
}
/* f over the values of a block's threads (x only, whole warps); `none` is its neutral value; every thread has the
   result.  Every thread takes part. */
template <typename A, typename F> __device__ A opdi_cu_block_reduce(A v, F f, A none) {
    __shared__ __align__(16) unsigned char room[OPDI_CU_WARP * sizeof(A)];
    A *parts = reinterpret_cast<A *>(room);
    const int lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP;
    v = opdi_cu_warp_reduce(v, f);
    __syncthreads();                              /* parts may still be read from the last time */
    if (lane == 0) { parts[warp] = v; }
    __syncthreads();
    v = lane < (int)blockDim.x / OPDI_CU_WARP ? parts[lane] : none;
    return opdi_cu_warp_reduce(v, f);
}
struct opdi_cu_sum { template <typename A> __device__ __forceinline__ A operator()(A a, A b) const { return a + b; } };
/* NaN wins, as in max and min of PyTorch. */
struct opdi_cu_max {
    template <typename A> __device__ __forceinline__ A operator()(A a, A b) const { return a > b || a != a ? a : b; }
};
struct opdi_cu_min {
    template <typename A> __device__ __forceinline__ A operator()(A a, A b) const { return a < b || a != a ? a : b; }
};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:memory      the caching allocator, pinned memory, copies
//----------------------------------------------------------------------------------------------------------------------

static void *opdi_cu_alloc(void *user, int index, size_t bytes) {
    void *p = NULL;
    int was = opdi_cu_current();
    (void)user;
    if (index != was) { (void)cudaSetDevice(index); }
    if (cudaMalloc(&p, bytes) != cudaSuccess) { (void)cudaGetLastError(); p = NULL; }
    if (index != was) { (void)cudaSetDevice(was); }
    return p;
}
static void opdi_cu_free(void *user, int index, void *data, size_t bytes) {
    (void)user; (void)index; (void)bytes;
    (void)cudaFree(data);
}
static int opdi_cu_copy_bytes(void *user, void *to, int to_index, const void *from, int from_index, size_t bytes) {
    cudaStream_t stream = opdi_cu_stream();
    (void)user;
    OPDI_CU_TRY(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "a copy");
    if (to_index >= 0 && from_index >= 0) { return 0; }
    OPDI_CU_TRY(cudaStreamSynchronize(stream), "a copy");
    return opdi_cu_faults();
}

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:streams     streams, events, graphs
//----------------------------------------------------------------------------------------------------------------------

static int opdi_cu_device_count(void *user) { (void)user; return opdi_cu_ndevices; }
static int opdi_cu_device_get(void *user) { (void)user; return opdi_cu_current(); }
static int opdi_cu_device_set(void *user, int index) {
    (void)user;
    OPDI_CU_TRY(cudaSetDevice(index), "cudaSetDevice");
    return 0;
}
static int opdi_cu_synchronize(void *user, int index) {
    const int was = opdi_cu_current();
    cudaError_t e;
    (void)user;
    if (index != was) { (void)cudaSetDevice(index); }
    e = cudaDeviceSynchronize();
    if (index != was) { (void)cudaSetDevice(was); }
    return e == cudaSuccess ? opdi_cu_faults() : opdi_cu_failed(e, "cudaDeviceSynchronize");
}

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:pointwise   the formulas
//----------------------------------------------------------------------------------------------------------------------

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:copy        strided and converting copies
//----------------------------------------------------------------------------------------------------------------------

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:random      random numbers
//----------------------------------------------------------------------------------------------------------------------

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:reductions  sums, extremes, norms
//----------------------------------------------------------------------------------------------------------------------

static const opdi_cu_row opdi_cu_rows_reductions[] = {
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:softmax     softmax and norms over rows
//----------------------------------------------------------------------------------------------------------------------

static const opdi_cu_row opdi_cu_rows_softmax[] = {
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:scans       scans and sorting
//----------------------------------------------------------------------------------------------------------------------

static const opdi_cu_row opdi_cu_rows_scans[] = {
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:indexing    indexing, joining, scattering
//----------------------------------------------------------------------------------------------------------------------

static const opdi_cu_row opdi_cu_rows_indexing[] = {
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:pooling     pooling, padding, resampling
//----------------------------------------------------------------------------------------------------------------------

static const opdi_cu_row opdi_cu_rows_pooling[] = {
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:losses      losses
//----------------------------------------------------------------------------------------------------------------------

static const opdi_cu_row opdi_cu_rows_losses[] = {
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:matmul      matrix products
//
//  cuBLAS for numbers with a point, a plain kernel for integers.  All of them are out[n] = alpha a[n] b[n] + beta out[n]
//  with a [n, m, k], b [n, k, p] and out [n, m, p] in rows; a vector is a row or a column.
//----------------------------------------------------------------------------------------------------------------------

static int opdi_cu_blas_failed(cublasStatus_t s, const char *what) {
    (void)cudaGetLastError();
    return opd_fail(s == CUBLAS_STATUS_ALLOC_FAILED ? OPD_ERROR_MEMORY : OPD_ERROR_KERNEL, "cuBLAS error: %s in %s",
                    cublasGetStatusString(s), what);
}
/* A thread's handles, one for each device. */
struct opdi_cu_handles {
    cublasHandle_t at[OPDI_CU_MAX_DEVICES];
    ~opdi_cu_handles() { for (cublasHandle_t h : at) { if (h) { (void)cublasDestroy(h); } } }
};
static thread_local opdi_cu_handles opdi_cu_blas_handles;
/* The current device's handle on the current stream; NULL with an error. */
static cublasHandle_t opdi_cu_blas() {
    cublasHandle_t *h = &opdi_cu_blas_handles.at[opdi_cu_current()];
    cublasStatus_t s = *h ? CUBLAS_STATUS_SUCCESS : cublasCreate(h);
    if (s == CUBLAS_STATUS_SUCCESS) { s = cublasSetStream(*h, opdi_cu_stream()); }
    if (s == CUBLAS_STATUS_SUCCESS) { return *h; }
    (void)opdi_cu_blas_failed(s, "cublasCreate");
    return NULL;
}

/* A batch of matrices [n, rows, cols]: strides in elements. */
struct opdi_cu_matrix { const void *data; int64_t batch, row, col; };
struct opdi_cu_product { int64_t n, m, k, p; opdi_cu_matrix a, b; void *out; int64_t out_batch; };

/* Whether cuBLAS can read it as it is; *turned: by columns. */
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
static bool opdi_cu_tf32;                         /* float32 products may round their factors to TF32 */

/* out = alpha a b + beta out.  Rows are columns to cuBLAS: out^T = b^T a^T.  out_type: float32 may stand for shorter. */
static int opdi_cu_gemm(const opdi_cu_product *q, opd_scalar_type dtype, opd_scalar_type out_dtype, double alpha, double beta) {
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
    s = cublasGemmStridedBatchedEx(h, tb ? CUBLAS_OP_T : CUBLAS_OP_N, ta ? CUBLAS_OP_T : CUBLAS_OP_N, (int)q->p, (int)q->m,
        (int)q->k, wide ? (const void *)&alpha : &alpha32, q->b.data, type, (int)ldb, q->b.batch, q->a.data, type, (int)lda,
        q->a.batch, wide ? (const void *)&beta : &beta32, q->out, out_type, (int)q->p, q->out_batch, (int)q->n,
        wide ? CUBLAS_COMPUTE_64F : dtype == OPD_FLOAT32 && opdi_cu_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
        CUBLAS_GEMM_DEFAULT);
    if (s != CUBLAS_STATUS_SUCCESS) { return opdi_cu_blas_failed(s, "cublasGemmStridedBatchedEx"); }
    return opdi_cu_debug ? opdi_cu_synchronize(NULL, -1) : 0;
}
/* One thread for each element of the result. */
template <typename T> __global__ void opdi_cu_product_kernel(opdi_cu_product q, opdi_cu_acc<T> alpha, opdi_cu_acc<T> beta) {
    typedef opdi_cu_acc<T> A;
    const int64_t all = q.n * q.m * q.p, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t j = i % q.p, r = i / q.p % q.m, n = i / q.p / q.m;
        const T *a = static_cast<const T *>(q.a.data) + n * q.a.batch + r * q.a.row;
        const T *b = static_cast<const T *>(q.b.data) + n * q.b.batch + j * q.b.col;
        T *out = static_cast<T *>(q.out) + n * q.out_batch + r * q.p + j;
        A sum = 0;
        for (int64_t l = 0; l < q.k; l++) { sum += opdi_cu_load<A>(a + l * q.a.col) * opdi_cu_load<A>(b + l * q.b.row); }
        opdi_cu_store(out, beta == A(0) ? alpha * sum : alpha * sum + beta * opdi_cu_load<A>(out));
    }
}
template <typename T> static int opdi_cu_product_plain(const opdi_cu_product *q, opd_value alpha, opd_value beta) {
    typedef opdi_cu_acc<T> A;
    const A al = alpha.tag == OPD_TAG_FLOAT ? (A)alpha.u.d : (A)alpha.u.i, be = beta.tag == OPD_TAG_FLOAT ? (A)beta.u.d : (A)beta.u.i;
    return opdi_cu_launch(opdi_cu_product_kernel<T>, opdi_cu_grid(q->n * q->m * q->p, 256), dim3(256), 0, *q, al, be);
}
static double opdi_cu_number(opd_value v) { return v.tag == OPD_TAG_FLOAT ? v.u.d : (double)v.u.i; }
/* The same for any sizes and dtype. */
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

/* A factor [rows, cols] or [n, rows, cols], of a vector a row or a column; copied when cuBLAS could not read it. */
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
    if (copied || opdi_cu_leading(x, nd > 1 ? sizes[nd - 2] : column ? sizes[0] : 1, nd > 1 ? sizes[nd - 1] : column ? 1 : sizes[0], &ld, &turned)) {
        return 0;
    }
    t = opd_contiguous(t);
    return t ? opdi_cu_factor(t, column, x, true) : -1;
}
/* Result 0 = beta self + alpha a b; self is NULL where there is none. */
static int opdi_cu_product_of(opd_call *call, opd_tensor *self, opd_tensor *a, opd_tensor *b, opd_value beta, opd_value alpha) {
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
    else if (work != self && !opd_copy_(work, self)) { return -1; }
    if (opdi_cu_product_run(&q, opd_dtype(a), alpha, beta)) { return -1; }
    return work == out || opd_copy_(out, work) ? 0 : -1;
}
static int opdi_cu_mm(opd_call *call) {
    return opdi_cu_product_of(call, NULL, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_value_int(0), opd_value_int(1));
}
static int opdi_cu_addmm(opd_call *call) {
    return opdi_cu_product_of(call, opd_arg_tensor(call, 0), opd_arg_tensor(call, 1), opd_arg_tensor(call, 2),
                              opd_arg_value(call, 3), opd_arg_value(call, 4));
}
/* The products of a batch one after another, each added to what is there. */
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

/* Parts of sum a[i] b[i]: one for each block, and then the sum of those. */
template <typename T> __global__ void opdi_cu_dot_kernel(const T *a, int64_t sa, const T *b, int64_t sb, int64_t n, opdi_cu_acc<T> *parts) {
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

static const opdi_cu_row opdi_cu_rows_matmul[] = {
    {"mm", opdi_cu_mm}, {"bmm", opdi_cu_mm}, {"mv", opdi_cu_mm}, {"addmm", opdi_cu_addmm}, {"baddbmm", opdi_cu_addmm},
    {"addmv", opdi_cu_addmm}, {"addbmm", opdi_cu_addbmm}, {"dot", opdi_cu_dot}, {"vdot", opdi_cu_dot},
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:convolution convolution
//
//  Three problems: y = conv(x, w), its gradient gx by x, its gradient gw by w; a transposed convolution trades x and y.
//  float16 and bfloat16 go to one implicit matrix product on tensor cores; else the patches are laid out as columns for
//  cuBLAS; few channels a group, and integers, have a plain kernel.  Up to three spatial dims; fewer lie in the last.
//----------------------------------------------------------------------------------------------------------------------

/* x [n, c, in], w [oc, c / groups, k], y [n, oc, out] */
struct opdi_cu_conv { int64_t n, c, oc, groups; int in[3], out[3], k[3], s[3], p[3], d[3]; };
static __host__ __device__ __forceinline__ int64_t opdi_cu_volume(const int *v) { return (int64_t)v[0] * v[1] * v[2]; }

/* Where tap t reads for output position o: the place in the input, or -1 outside of it. */
static __device__ __forceinline__ int64_t opdi_cu_conv_reads(const opdi_cu_conv &q, int64_t o, int64_t t) {
    const int w = (int)(o % q.out[2]) * q.s[2] - q.p[2] + (int)(t % q.k[2]) * q.d[2];
    const int h = (int)(o / q.out[2] % q.out[1]) * q.s[1] - q.p[1] + (int)(t / q.k[2] % q.k[1]) * q.d[1];
    const int z = (int)(o / q.out[2] / q.out[1]) * q.s[0] - q.p[0] + (int)(t / q.k[2] / q.k[1]) * q.d[0];
    if (w < 0 || w >= q.in[2] || h < 0 || h >= q.in[1] || z < 0 || z >= q.in[0]) { return -1; }
    return ((int64_t)z * q.in[1] + h) * q.in[2] + w;
}
/* Which output position reads input position i through tap t; -1: none. */
static __device__ __forceinline__ int64_t opdi_cu_conv_writes(const opdi_cu_conv &q, int64_t i, int64_t t) {
    const int w = (int)(i % q.in[2]) + q.p[2] - (int)(t % q.k[2]) * q.d[2];
    const int h = (int)(i / q.in[2] % q.in[1]) + q.p[1] - (int)(t / q.k[2] % q.k[1]) * q.d[1];
    const int z = (int)(i / q.in[2] / q.in[1]) + q.p[0] - (int)(t / q.k[2] / q.k[1]) * q.d[0];
    if (w < 0 || h < 0 || z < 0 || w % q.s[2] || h % q.s[1] || z % q.s[0]) { return -1; }
    if (w / q.s[2] >= q.out[2] || h / q.s[1] >= q.out[1] || z / q.s[0] >= q.out[0]) { return -1; }
    return ((int64_t)(z / q.s[0]) * q.out[1] + h / q.s[1]) * q.out[2] + w / q.s[2];
}

//-- one thread for each element of the result -------------------------------------------------------------------------

/* y[n, o] = sum over c, t of x[n, c, reads(t)] w[o, c, t] */
template <typename T> __global__ void opdi_cu_conv_y_kernel(opdi_cu_conv q, const T *x, const T *w, T *y) {
    typedef opdi_cu_acc<T> A;
    const int64_t area = opdi_cu_volume(q.out), image = opdi_cu_volume(q.in), taps = opdi_cu_volume(q.k), cg = q.c / q.groups;
    const int64_t og = q.oc / q.groups, all = q.n * q.oc * area, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t pos = i % area, o = i / area % q.oc, n = i / area / q.oc;
        const T *xs = x + (n * q.c + o / og * cg) * image, *ws = w + o * cg * taps;
        A sum = 0;
        for (int64_t t = 0; t < taps; t++) {
            const int64_t at = opdi_cu_conv_reads(q, pos, t);
            if (at < 0) { continue; }
            for (int64_t c = 0; c < cg; c++) { sum += opdi_cu_load<A>(xs + c * image + at) * opdi_cu_load<A>(ws + c * taps + t); }
        }
        opdi_cu_store(y + i, sum);
    }
}
/* gx[n, c] = sum over o, t of y[n, o, writes(t)] w[o, c, t] */
template <typename T> __global__ void opdi_cu_conv_gx_kernel(opdi_cu_conv q, T *x, const T *w, const T *y) {
    typedef opdi_cu_acc<T> A;
    const int64_t area = opdi_cu_volume(q.out), image = opdi_cu_volume(q.in), taps = opdi_cu_volume(q.k), cg = q.c / q.groups;
    const int64_t og = q.oc / q.groups, all = q.n * q.c * image, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t pos = i % image, c = i / image % q.c, n = i / image / q.c, first = c / cg * og;
        const T *ys = y + (n * q.oc + first) * area, *ws = w + (first * cg + c % cg) * taps;
        A sum = 0;
        for (int64_t t = 0; t < taps; t++) {
            const int64_t at = opdi_cu_conv_writes(q, pos, t);
            if (at < 0) { continue; }
            for (int64_t o = 0; o < og; o++) { sum += opdi_cu_load<A>(ys + o * area + at) * opdi_cu_load<A>(ws + o * cg * taps + t); }
        }
        opdi_cu_store(x + i, sum);
    }
}

//-- by columns --------------------------------------------------------------------------------------------------------

/* col[n, c, t, o] = x[n, c, reads(o, t)] of `images` images, 0 outside */
template <typename T> __global__ void opdi_cu_unfold_kernel(opdi_cu_conv q, int64_t images, const T *x, T *col) {
    const int64_t area = opdi_cu_volume(q.out), image = opdi_cu_volume(q.in), taps = opdi_cu_volume(q.k);
    const int64_t all = images * q.c * taps * area, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t at = opdi_cu_conv_reads(q, i % area, i / area % taps);
        col[i] = at < 0 ? T(0.0f) : x[i / area / taps * image + at];
    }
}
/* x[n, c, i] = sum over t of col[n, c, t, writes(i, t)] */
template <typename T> __global__ void opdi_cu_fold_kernel(opdi_cu_conv q, int64_t images, const T *col, T *x) {
    typedef opdi_cu_acc<T> A;
    const int64_t area = opdi_cu_volume(q.out), image = opdi_cu_volume(q.in), taps = opdi_cu_volume(q.k);
    const int64_t all = images * q.c * image, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        A sum = 0;
        for (int64_t t = 0; t < taps; t++) {
            const int64_t at = opdi_cu_conv_writes(q, i % image, t);
            if (at >= 0) { sum += opdi_cu_load<A>(col + (i / image * taps + t) * area + at); }
        }
        opdi_cu_store(x + i, sum);
    }
}
enum { OPDI_CU_CONV_Y, OPDI_CU_CONV_GX, OPDI_CU_CONV_GW };
/* The patches are the input itself. */
static bool opdi_cu_conv_is_product(const opdi_cu_conv *q) {
    for (int i = 0; i < 3; i++) { if (q->k[i] != 1 || q->s[i] != 1 || q->p[i] != 0) { return false; } }
    return true;
}
/* Products of a few images' columns [kk, area] a group: in one batch the images of a group, or the groups of an image,
   whichever are more.  what: y = w col;  col = w^T y;  w (in `out_dtype`) += y col^T, whose images never are one batch. */
static int opdi_cu_conv_products(const opdi_cu_conv *q, int what, int64_t images, opd_scalar_type dtype, void *col, void *w, void *y,
                                 opd_scalar_type w_dtype, bool add) {
    const int64_t area = opdi_cu_volume(q->out), og = q->oc / q->groups, kk = q->c / q->groups * opdi_cu_volume(q->k);
    const int64_t size = (int64_t)opd_dtype_size(dtype), wsize = (int64_t)opd_dtype_size(w_dtype);
    const bool by_group = what != OPDI_CU_CONV_GW && images >= q->groups;
    const int64_t outer = by_group ? q->groups : images, inner = by_group ? images : q->groups;
    for (int64_t i = 0; i < outer; i++) {
        char *c = (char *)col + (by_group ? i * kk : i * q->groups * kk) * area * size;
        char *ys = (char *)y + (by_group ? i * og : i * q->oc) * area * size, *ws = (char *)w + (by_group ? i * og * kk : 0) * wsize;
        const int64_t c_batch = by_group ? q->groups * kk * area : kk * area, y_batch = by_group ? q->oc * area : og * area;
        const int64_t w_batch = by_group ? 0 : og * kk;
        opdi_cu_product b;
        opdi_cu_matrix cm = {c, c_batch, area, 1}, wm = {ws, w_batch, kk, 1}, wt = {ws, w_batch, 1, kk}, ym = {ys, y_batch, area, 1};
        opdi_cu_matrix ct = {c, c_batch, 1, area};
        b.n = inner;
        if (what == OPDI_CU_CONV_Y) { b.m = og; b.k = kk; b.p = area; b.a = wm; b.b = cm; b.out = ys; b.out_batch = y_batch; }
        else if (what == OPDI_CU_CONV_GX) { b.m = kk; b.k = og; b.p = area; b.a = wt; b.b = ym; b.out = c; b.out_batch = c_batch; }
        else { b.m = og; b.k = area; b.p = kk; b.a = ym; b.b = ct; b.out = ws; b.out_batch = w_batch; }
        if (opdi_cu_gemm(&b, dtype, what == OPDI_CU_CONV_GW ? w_dtype : dtype, 1, what == OPDI_CU_CONV_GW && (add || i) ? 1 : 0)) {
            return -1;
        }
    }
    return 0;
}
/* As many images at a time as columns of 256 MiB hold.  gw of short floats is summed in float32. */
template <typename T> static int opdi_cu_conv_columns(const opdi_cu_conv *q, int what, opd_scalar_type dtype, T *x, void *w, T *y) {
    const int64_t area = opdi_cu_volume(q->out), image = opdi_cu_volume(q->in), one = q->c * opdi_cu_volume(q->k) * area;
    const bool direct = opdi_cu_conv_is_product(q), turned = what == OPDI_CU_CONV_GW && sizeof(T) == 2;
    const opd_scalar_type w_dtype = turned ? OPD_FLOAT32 : dtype;
    int64_t most = ((int64_t)256 << 20) / (one * (int64_t)sizeof(T));
    const int64_t n = most < 1 ? 1 : most < q->n ? most : q->n;
    T *col = direct ? NULL : static_cast<T *>(opdi_cu_scratch(n * one * (int64_t)sizeof(T)));
    if (!direct && !col) { return -1; }
    for (int64_t i = 0; i < q->n; i += n) {
        const int64_t images = n < q->n - i ? n : q->n - i;
        T *xs = x + i * q->c * image, *ys = y + i * q->oc * area, *c = direct ? xs : col;
        if (!direct && what != OPDI_CU_CONV_GX &&
            opdi_cu_launch(opdi_cu_unfold_kernel<T>, opdi_cu_grid(images * one, 256), dim3(256), 0, *q, images, xs, c)) { return -1; }
        if (opdi_cu_conv_products(q, what, images, dtype, c, w, ys, w_dtype, i > 0)) { return -1; }
        if (!direct && what == OPDI_CU_CONV_GX &&
            opdi_cu_launch(opdi_cu_fold_kernel<T>, opdi_cu_grid(images * q->c * image, 256), dim3(256), 0, *q, images, c, xs)) { return -1; }
    }
    return 0;
}

//-- on tensor cores ---------------------------------------------------------------------------------------------------
//
//  y [pixels, oc] = patches [pixels, taps c] w^T, a tile of 128 pixels and 64 channels a block, 32 of the inner dimension
//  at a time, which are fetched into registers while the ones before are multiplied.  Channels lie last and are filled
//  up to a multiple of 8, so that 16 bytes are one tap's.  Eight warps, four by two, of 32 x 32 each.

#define OPDI_CU_TC_M 128
#define OPDI_CU_TC_N 64
#define OPDI_CU_TC_K 32
#define OPDI_CU_TC_LD (OPDI_CU_TC_K + 8)          /* of a row in shared memory: no two rows begin in one bank */

/* to[n, i, g, c] = from[n, g, c, i], 0 from cg to cp */
template <typename T> __global__ void opdi_cu_channels_last_kernel(const T *from, T *to, int64_t n, int64_t groups, int64_t cg, int64_t cp, int64_t area) {
    __shared__ T tile[32][33];
    const int64_t tiles_i = opdi_cu_ceil(area, 32), tiles_c = opdi_cu_ceil(cp, 32), all = n * groups * tiles_i * tiles_c;
    for (int64_t b = blockIdx.x; b < all; b += gridDim.x) {
        const int64_t i0 = b % tiles_i * 32, c0 = b / tiles_i % tiles_c * 32, ng = b / tiles_i / tiles_c, g = ng % groups, m = ng / groups;
        __syncthreads();
        for (int r = threadIdx.y; r < 32; r += blockDim.y) {
            const int64_t c = c0 + r, i = i0 + threadIdx.x;
            tile[r][threadIdx.x] = c < cg && i < area ? from[(ng * cg + c) * area + i] : T(0.0f);
        }
        __syncthreads();
        for (int r = threadIdx.y; r < 32; r += blockDim.y) {
            const int64_t c = c0 + threadIdx.x, i = i0 + r;
            if (c < cp && i < area) { to[((m * area + i) * groups + g) * cp + c] = tile[threadIdx.x][r]; }
        }
    }
}
/* A row of patches: where a pixel's first tap reads. */
struct opdi_cu_pixel { int64_t image; int z, h, w; };
/* The inner dimension as a chunk of eight channels walks over it. */
struct opdi_cu_walk {
    int c, z, h, w;
    __device__ __forceinline__ void settle(const opdi_cu_conv &q, int cp) {
        while (c >= cp) {
            c -= cp;
            if (++w == q.k[2]) { w = 0; if (++h == q.k[1]) { h = 0; z++; } }
        }
    }
};
template <typename T> __device__ __forceinline__ uint4 opdi_cu_patch(const opdi_cu_conv &q, const T *x, int cp, int64_t group, const opdi_cu_pixel &p,
                                                                     const opdi_cu_walk &k) {
    const int z = p.z + k.z * q.d[0], h = p.h + k.h * q.d[1], w = p.w + k.w * q.d[2];
    const uint4 none = {0, 0, 0, 0};
    if (p.image < 0 || k.z >= q.k[0] || z < 0 || z >= q.in[0] || h < 0 || h >= q.in[1] || w < 0 || w >= q.in[2]) { return none; }
    const int64_t at = ((p.image * q.in[0] + z) * q.in[1] + h) * q.in[2] + w;
    return *reinterpret_cast<const uint4 *>(x + (at * q.groups + group) * cp + k.c);
}
/* x [n, in, groups, cp], w [oc, taps, cp], both as above; y [n, oc, out], or channels last */
template <typename T, bool LAST> __global__ void __launch_bounds__(256)
opdi_cu_conv_tc_kernel(opdi_cu_conv q, const T *x, const T *w, const T *bias, T *y, int cp) {
    using namespace nvcuda::wmma;
    __shared__ __align__(16) unsigned char room[OPDI_CU_TC_N * (OPDI_CU_TC_M + 4) * 4];
    T *tiles = reinterpret_cast<T *>(room);       /* two of each: patches [128][40], then weights [64][40] */
    const int stage = (OPDI_CU_TC_M + OPDI_CU_TC_N) * OPDI_CU_TC_LD, t = threadIdx.x, warp = t / 32;
    const int64_t area = opdi_cu_volume(q.out), pixels = q.n * area, og = q.oc / q.groups, group = blockIdx.z;
    const int64_t kk = opdi_cu_volume(q.k) * cp, m0 = (int64_t)blockIdx.x * OPDI_CU_TC_M, n0 = (int64_t)blockIdx.y * OPDI_CU_TC_N;
    const int chunk = t % 4 * 8, row = t / 4;     /* this thread's: rows `row` and `row + 64` of patches, `row` of weights */
    const int wm = warp % 4 * 32, wn = warp / 4 * 32;
    fragment<accumulator, 16, 16, 16, float> sum[2][2];
    opdi_cu_pixel px[2];
    opdi_cu_walk walk = {chunk, 0, 0, 0};
    uint4 a0, a1, b0;
    const uint4 none = {0, 0, 0, 0};
    const T *wrow = w + (group * og + n0 + row) * kk + chunk;
    const bool wthere = n0 + row < og;
    for (int i = 0; i < 2; i++) {
        const int64_t m = m0 + row + 64 * i, pos = m % area;
        px[i].image = m < pixels ? m / area : -1;
        px[i].z = (int)(pos / q.out[2] / q.out[1]) * q.s[0] - q.p[0];
        px[i].h = (int)(pos / q.out[2] % q.out[1]) * q.s[1] - q.p[1];
        px[i].w = (int)(pos % q.out[2]) * q.s[2] - q.p[2];
    }
    for (int i = 0; i < 2; i++) { for (int j = 0; j < 2; j++) { fill_fragment(sum[i][j], 0.0f); } }
    walk.settle(q, cp);
    a0 = opdi_cu_patch(q, x, cp, group, px[0], walk);
    a1 = opdi_cu_patch(q, x, cp, group, px[1], walk);
    b0 = wthere && chunk < kk ? *reinterpret_cast<const uint4 *>(wrow) : none;
    for (int64_t k = 0, at = 0; k < kk; k += OPDI_CU_TC_K, at ^= 1) {
        T *as = tiles + at * stage, *bs = as + OPDI_CU_TC_M * OPDI_CU_TC_LD;
        *reinterpret_cast<uint4 *>(as + row * OPDI_CU_TC_LD + chunk) = a0;
        *reinterpret_cast<uint4 *>(as + (row + 64) * OPDI_CU_TC_LD + chunk) = a1;
        *reinterpret_cast<uint4 *>(bs + row * OPDI_CU_TC_LD + chunk) = b0;
        __syncthreads();
        if (k + OPDI_CU_TC_K < kk) {
            walk.c += OPDI_CU_TC_K;
            walk.settle(q, cp);
            a0 = opdi_cu_patch(q, x, cp, group, px[0], walk);
            a1 = opdi_cu_patch(q, x, cp, group, px[1], walk);
            b0 = wthere && k + OPDI_CU_TC_K + chunk < kk ? *reinterpret_cast<const uint4 *>(wrow + k + OPDI_CU_TC_K) : none;
        }
#pragma unroll
        for (int l = 0; l < OPDI_CU_TC_K; l += 16) {
            fragment<matrix_a, 16, 16, 16, T, row_major> fa[2];
            fragment<matrix_b, 16, 16, 16, T, col_major> fb[2];
            for (int i = 0; i < 2; i++) {
                load_matrix_sync(fa[i], as + (wm + 16 * i) * OPDI_CU_TC_LD + l, OPDI_CU_TC_LD);
                load_matrix_sync(fb[i], bs + (wn + 16 * i) * OPDI_CU_TC_LD + l, OPDI_CU_TC_LD);
            }
            for (int i = 0; i < 2; i++) { for (int j = 0; j < 2; j++) { mma_sync(sum[i][j], fa[i], fb[j], sum[i][j]); } }
        }
    }
    __syncthreads();                              /* the sums take the tiles' place: [64][132], or [128][68] */
    float *out = reinterpret_cast<float *>(room);
    const int ld = LAST ? OPDI_CU_TC_N + 2 : OPDI_CU_TC_M + 4;
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2; j++) {
            float *to = LAST ? out + (wm + 16 * i) * ld + wn + 16 * j : out + (wn + 16 * j) * ld + wm + 16 * i;
            store_matrix_sync(to, sum[i][j], ld, LAST ? mem_row_major : mem_col_major);
        }
    }
    __syncthreads();
    for (int i = t; i < OPDI_CU_TC_M * OPDI_CU_TC_N; i += 256) {
        const int n = LAST ? i % OPDI_CU_TC_N : i / OPDI_CU_TC_M, m = LAST ? i / OPDI_CU_TC_N : i % OPDI_CU_TC_M;
        const int64_t o = group * og + n0 + n, pixel = m0 + m;
        if (n0 + n >= og || pixel >= pixels) { continue; }
        const float v = (LAST ? out[m * ld + n] : out[n * ld + m]) + (bias ? opdi_cu_load<float>(bias + o) : 0.0f);
        opdi_cu_store(y + (LAST ? pixel * q.oc + o : (pixel / area * q.oc + o) * area + pixel % area), v);
    }
}
/* to[o, t, c] = w[o, c, t], or for gradients, where channels trade places and taps turn round:
   to[g, c, t, o] = w[g, o, c, taps - 1 - t]; 0 from `from_c` to cp. */
template <typename T> __global__ void opdi_cu_conv_weights_kernel(opdi_cu_conv q, const T *w, T *to, int cp, bool back) {
    const int64_t taps = opdi_cu_volume(q.k), cg = q.c / q.groups, og = q.oc / q.groups, rows = back ? q.c : q.oc, inner = back ? og : cg;
    const int64_t all = rows * taps * cp, step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t c = i % cp, t = i / cp % taps, r = i / cp / taps;
        const int64_t at = back ? ((r / cg * og + c) * cg + r % cg) * taps + taps - 1 - t : (r * cg + c) * taps + t;
        to[i] = c < inner ? w[at] : T(0.0f);
    }
}
template <typename T> static int opdi_cu_conv_tc(opdi_cu_conv q, const T *x, const T *w, const T *bias, T *y, bool x_last, bool y_last, bool back) {
    const int64_t rows = back ? q.c : q.oc, cg = back ? q.oc / q.groups : q.c / q.groups, cp = opdi_cu_ceil(cg, 8) * 8;
    const int64_t taps = opdi_cu_volume(q.k), image = opdi_cu_volume(back ? q.out : q.in);
    const bool as_is = x_last && q.groups == 1 && cp == cg && opdi_cu_aligned(x);
    T *wt = static_cast<T *>(opdi_cu_scratch(rows * taps * cp * (int64_t)sizeof(T)));
    T *xt = as_is ? NULL : static_cast<T *>(opdi_cu_scratch(q.n * image * q.groups * cp * (int64_t)sizeof(T)));
    const int64_t tiles = q.n * q.groups * opdi_cu_ceil(image, 32) * opdi_cu_ceil(cp, 32);
    if (!wt || (!as_is && !xt)) { return -1; }
    if (opdi_cu_launch(opdi_cu_conv_weights_kernel<T>, opdi_cu_grid(rows * taps * cp, 256), dim3(256), 0, q, w, wt, (int)cp, back)) { return -1; }
    if (!as_is && opdi_cu_launch(opdi_cu_channels_last_kernel<T>, opdi_cu_grid_rows(tiles), dim3(32, 8), 0, x, xt, q.n, q.groups, cg, cp, image)) {
        return -1;
    }
    if (back) {                                   /* gx = conv(gy, turned weights) with a stride of 1 */
        opdi_cu_conv b = q;
        b.c = q.oc; b.oc = q.c;
        for (int i = 0; i < 3; i++) { b.in[i] = q.out[i]; b.out[i] = q.in[i]; b.p[i] = q.d[i] * (q.k[i] - 1) - q.p[i]; }
        q = b;
    }
    const dim3 grid((unsigned)opdi_cu_ceil(q.n * opdi_cu_volume(q.out), OPDI_CU_TC_M), (unsigned)opdi_cu_ceil(q.oc / q.groups, OPDI_CU_TC_N),
                    (unsigned)q.groups);
    return opdi_cu_launch(y_last ? opdi_cu_conv_tc_kernel<T, true> : opdi_cu_conv_tc_kernel<T, false>, grid, dim3(256), 0, q,
                          as_is ? x : xt, wt, bias, y, (int)cp);
}
/* Whether the product is worth it, and its grid possible. */
static bool opdi_cu_conv_tc_fits(const opdi_cu_conv *q, bool back) {
    const int64_t cg = q->c / q->groups, og = q->oc / q->groups;
    if (cg < 8 || og < 8 || q->groups > 65535 || og > 65535 * 64 || cg > 65535 * 64) { return false; }
    for (int i = 0; i < 3 && back; i++) { if (q->s[i] != 1 || q->d[i] * (q->k[i] - 1) < q->p[i]) { return false; } }
    return true;
}

//-- which of them -----------------------------------------------------------------------------------------------------

struct opdi_cu_conv_call { opdi_cu_conv v; bool transposed; };
/* Reads stride, padding, dilation, transposed, output_padding, groups from argument `first` on; the Meta kernel has
   checked them.  y: what the convolution gives. */
static int opdi_cu_conv_read(opd_call *call, int first, const opd_tensor *x, const opd_tensor *w, const opd_tensor *y, opdi_cu_conv_call *q) {
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
        const int64_t in = there ? opd_size(big, 2 + j) : 1, out = there ? opd_size(small, 2 + j) : 1, k = there ? opd_size(w, 2 + j) : 1;
        const int64_t st = there ? s.data[s.n == 1 ? 0 : j] : 1, pd = there ? p.data[p.n == 1 ? 0 : j] : 0, di = there ? d.data[d.n == 1 ? 0 : j] : 1;
        if (in > INT32_MAX || out > INT32_MAX || k > INT32_MAX || st > INT32_MAX || pd > INT32_MAX / 4 || di * k > INT32_MAX / 4) {
            return opd_fail(OPD_ERROR_ARGUMENT, "convolution: sizes too large for CUDA");
        }
        q->v.in[i] = (int)in; q->v.out[i] = (int)out; q->v.k[i] = (int)k; q->v.s[i] = (int)st; q->v.p[i] = (int)pd; q->v.d[i] = (int)di;
    }
    return 0;
}
/* Channels last, as opdispatch's convolutions leave and take them: dims 1 apart, then the last, ... */
static bool opdi_cu_is_channels_last(const opd_tensor *t) {
    int64_t next = opd_ndim(t) > 2 ? opd_size(t, 1) : 0;
    if (opd_ndim(t) < 4 || opd_strides(t)[1] != 1) { return false; }
    for (int d = opd_ndim(t) - 1; d > 1; d--) {
        if (opd_strides(t)[d] != next) { return false; }
        next *= opd_size(t, d);
    }
    return opd_strides(t)[0] == next;
}
/* One of the three for tensors in rows of one dtype; bias [oc] or NULL is added to y.  What is computed has elements. */
template <typename T> static int opdi_cu_conv_typed(const opdi_cu_conv *q, int what, opd_tensor *x, opd_tensor *w, opd_tensor *y) {
    T *xs = opdi_cu_data<T>(x), *ws = opdi_cu_data<T>(w), *ys = opdi_cu_data<T>(y);
    const int64_t cg = q->c / q->groups;
    cudaDataType type;
    if ((cg < 4 && q->groups > 1) || !opdi_cu_cuda_type(opd_dtype(x), &type)) {
        if (what == OPDI_CU_CONV_Y) {
            return opdi_cu_launch(opdi_cu_conv_y_kernel<T>, opdi_cu_grid(opd_numel(y), 256), dim3(256), 0, *q, xs, ws, ys);
        }
        if (what == OPDI_CU_CONV_GX) {
            return opdi_cu_launch(opdi_cu_conv_gx_kernel<T>, opdi_cu_grid(opd_numel(x), 256), dim3(256), 0, *q, xs, ws, ys);
        }
    }
    return opdi_cu_conv_columns<T>(q, what, opd_dtype(x), xs, ws, ys);
}
template <typename T> static int opdi_cu_conv_short(const opdi_cu_conv *q, int what, opd_tensor *x, opd_tensor *w, opd_tensor *y, opd_tensor *bias) {
    opd_tensor *from = what == OPDI_CU_CONV_Y ? x : y, *to = what == OPDI_CU_CONV_Y ? y : x;
    return opdi_cu_conv_tc<T>(*q, opdi_cu_data<T>(from), opdi_cu_data<T>(w), bias ? opdi_cu_data<T>(bias) : NULL, opdi_cu_data<T>(to),
                              opdi_cu_is_channels_last(from), opdi_cu_is_channels_last(to), what == OPDI_CU_CONV_GX);
}
static opd_tensor *opdi_cu_rows_of(opd_tensor *t) { return opd_is_contiguous(t) ? t : opd_contiguous(t); }
/* y [n, c, area] += b [c] */
template <typename T> __global__ void opdi_cu_bias_kernel(T *y, const T *b, int64_t c, int64_t area, int64_t all) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        opdi_cu_store(y + i, opdi_cu_load<opdi_cu_acc<T>>(y + i) + opdi_cu_load<opdi_cu_acc<T>>(b + i / area % c));
    }
}
static int opdi_cu_bias(opd_tensor *y, opd_tensor *b) {
    const int64_t c = opd_size(y, 1), all = opd_numel(y);
    if (!(b = opdi_cu_rows_of(b))) { return -1; }
    OPDI_CU_ALL(opd_dtype(y), T, return opdi_cu_launch(opdi_cu_bias_kernel<T>, opdi_cu_grid(all, 256), dim3(256), 0, opdi_cu_data<T>(y),
                                                      opdi_cu_data<T>(b), c, all / opd_size(y, 0) / c, all))
    return -1;
}
/* Computes `to` (y, x or w by `what`), in any layout. */
static int opdi_cu_conv_run(const opdi_cu_conv *q, int what, opd_tensor *x, opd_tensor *w, opd_tensor *y, opd_tensor *bias) {
    opd_tensor *to = what == OPDI_CU_CONV_Y ? y : what == OPDI_CU_CONV_GX ? x : w, *from = what == OPDI_CU_CONV_Y ? x : y, *work;
    const opd_scalar_type t = opd_dtype(to);
    const bool shorter = t == OPD_FLOAT16 || t == OPD_BFLOAT16;
    int rc = -1;
    if (opd_numel(to) == 0) { return 0; }
    if (opd_numel(x) == 0 || opd_numel(w) == 0 || opd_numel(y) == 0) {
        work = opd_is_contiguous(to) ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), t);
        if (!work || !opd_zero_(work) || (bias && opdi_cu_bias(work, bias))) { return -1; }
        return work == to || opd_copy_(to, work) ? 0 : -1;
    }
    if (shorter && what != OPDI_CU_CONV_GW && opdi_cu_conv_tc_fits(q, what == OPDI_CU_CONV_GX)) {
        work = opd_is_contiguous(to) || opdi_cu_is_channels_last(to) ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), t);
        if (!opdi_cu_is_channels_last(from)) { from = opdi_cu_rows_of(from); }
        w = opdi_cu_rows_of(w);
        bias = bias ? opdi_cu_rows_of(bias) : NULL;
        if (!work || !from || !w) { return -1; }
        if (what == OPDI_CU_CONV_Y) { x = from; y = work; } else { y = from; x = work; }
        rc = t == OPD_FLOAT16 ? opdi_cu_conv_short<opdi_cu_f16>(q, what, x, w, y, bias) : opdi_cu_conv_short<opdi_cu_bf16>(q, what, x, w, y, bias);
        bias = NULL;
    } else {
        const opd_scalar_type sums = what == OPDI_CU_CONV_GW && shorter ? OPD_FLOAT32 : t;
        work = opd_is_contiguous(to) && sums == t ? to : opdi_cu_new(opd_ints_of(opd_sizes(to), opd_ndim(to)), sums);
        x = to == x ? work : opdi_cu_rows_of(x);
        y = to == y ? work : opdi_cu_rows_of(y);
        w = to == w ? work : opdi_cu_rows_of(w);
        if (!x || !y || !w || !work) { return -1; }
        if (what == OPDI_CU_CONV_GW) {
            OPDI_CU_FLOATS(opd_dtype(x), T, rc = opdi_cu_conv_columns<T>(q, what, opd_dtype(x), opdi_cu_data<T>(x),
                                                                        opd_device_data(w, OPD_CUDA), opdi_cu_data<T>(y)))
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
    return opdi_cu_conv_run(&q.v, q.transposed ? OPDI_CU_CONV_GX : OPDI_CU_CONV_Y, q.transposed ? y : x, w, q.transposed ? x : y, bias);
}
static int opdi_cu_convolution_backward(opd_call *call) {
    opd_tensor *g = opd_arg_tensor(call, 0), *x = opd_arg_tensor(call, 1), *w = opd_arg_tensor(call, 2);
    opd_tensor *gx, *gw, *gb;
    opdi_cu_conv_call q;
    if (opd_results_from_fake(call)) { return -1; }
    gx = opdi_cu_result(call, 0); gw = opdi_cu_result(call, 1); gb = opdi_cu_result(call, 2);
    if (opdi_cu_conv_read(call, 4, x, w, g, &q)) { return -1; }
    if (gx && opdi_cu_conv_run(&q.v, q.transposed ? OPDI_CU_CONV_Y : OPDI_CU_CONV_GX, q.transposed ? g : gx, w, q.transposed ? gx : g, NULL)) {
        return -1;
    }
    if (gw && opdi_cu_conv_run(&q.v, OPDI_CU_CONV_GW, q.transposed ? g : x, gw, q.transposed ? x : g, NULL)) { return -1; }
    if (gb && opd_numel(gb)) {
        int64_t dims[5];
        int n = 0;
        for (int d = 0; d < opd_ndim(g); d++) { if (d != 1) { dims[n++] = d; } }
        opd_tensor *sum = opd_sum_dim(g, opd_ints_of(dims, n), false);
        if (!sum || !opd_copy_(gb, sum)) { return -1; }
    }
    return 0;
}

static const opdi_cu_row opdi_cu_rows_convolution[] = {
    {"convolution", opdi_cu_convolution}, {"convolution_backward", opdi_cu_convolution_backward},
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:optimizers  steps of optimizers
//----------------------------------------------------------------------------------------------------------------------

static const opdi_cu_row opdi_cu_rows_optimizers[] = {
    {NULL, NULL}};

//----------------------------------------------------------------------------------------------------------------------
//  >>cu:registration which kernel is for which operator
//----------------------------------------------------------------------------------------------------------------------

static const opdi_cu_row *const opdi_cu_rows[] = {
    opdi_cu_rows_reductions, opdi_cu_rows_softmax, opdi_cu_rows_scans, opdi_cu_rows_indexing, opdi_cu_rows_pooling,
    opdi_cu_rows_losses, opdi_cu_rows_matmul, opdi_cu_rows_convolution, opdi_cu_rows_optimizers};

/* The GPUs of this machine: how many; 0: none, or no driver. */
static int opdi_cu_find_devices() {
    int n = 0, i;
    if (cudaGetDeviceCount(&n) != cudaSuccess) { (void)cudaGetLastError(); return 0; }
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
    opdi_cu_debug = debug && *debug && *debug != '0';
    opdi_cu_ndevices = opdi_cu_find_devices();
    if (opdi_cu_ndevices == 0) { return; }
    if (cudaHostAlloc((void **)&opdi_cu_the_fault, sizeof *opdi_cu_the_fault, cudaHostAllocPortable) != cudaSuccess) {
        (void)opdi_cu_failed(cudaGetLastError(), "cudaHostAlloc");
        return;
    }
    memset((void *)opdi_cu_the_fault, 0, sizeof *opdi_cu_the_fault);
    d.alloc = opdi_cu_alloc; d.free = opdi_cu_free; d.copy = opdi_cu_copy_bytes;
    d.device_count = opdi_cu_device_count; d.device_get = opdi_cu_device_get; d.device_set = opdi_cu_device_set;
    d.synchronize = opdi_cu_synchronize;
    if (opd_backend_register(OPD_CUDA, &d)) { return; }
    for (size_t s = 0; s < sizeof opdi_cu_rows / sizeof *opdi_cu_rows; s++) {
        for (const opdi_cu_row *r = opdi_cu_rows[s]; r->name; r++) { (void)opd_impl(lib, r->name, r->kernel); }
    }
}
