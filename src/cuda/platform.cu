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
/* Complex numbers.  A real number is converted to one with the imaginary part 0. */
template <typename T> struct alignas(2 * sizeof(T)) opdi_cu_pair_of {
    T re, im;
    opdi_cu_pair_of() = default;
    __host__ __device__ __forceinline__ opdi_cu_pair_of(T re_, T im_ = 0) : re(re_), im(im_) {}
    template <typename P>
    __host__ __device__ __forceinline__ opdi_cu_pair_of(opdi_cu_pair_of<P> v) : re((T)v.re), im((T)v.im) {}
    __host__ __device__ __forceinline__ opdi_cu_pair_of operator+(opdi_cu_pair_of y) const {
        return opdi_cu_pair_of(re + y.re, im + y.im);
    }
    __host__ __device__ __forceinline__ opdi_cu_pair_of operator*(opdi_cu_pair_of y) const {
        return opdi_cu_pair_of(re * y.re - im * y.im, re * y.im + im * y.re);
    }
    __host__ __device__ __forceinline__ opdi_cu_pair_of &operator+=(opdi_cu_pair_of y) { return *this = *this + y; }
    __host__ __device__ __forceinline__ bool operator==(opdi_cu_pair_of y) const { return re == y.re && im == y.im; }
    __host__ __device__ __forceinline__ bool operator!=(opdi_cu_pair_of y) const { return !(*this == y); }
};
typedef opdi_cu_pair_of<float> opdi_cu_c64;
typedef opdi_cu_pair_of<double> opdi_cu_c128;

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
/* For complex dtypes. */
#define OPDI_CU_COMPLEX(dtype, T, ...) \
    switch (dtype) { OPDI_CU_CASE(OPD_COMPLEX64, opdi_cu_c64, T, __VA_ARGS__) \
        OPDI_CU_CASE(OPD_COMPLEX128, opdi_cu_c128, T, __VA_ARGS__) default: return opdi_cu_no_dtype(dtype); }
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

/* The type in which sums of T are computed: float for float and 16-bit floats, double, int64_t for integers and bool,
   or complex128. */
template <typename T> struct opdi_cu_acc_of { typedef int64_t type; };
template <> struct opdi_cu_acc_of<float> { typedef float type; };
template <> struct opdi_cu_acc_of<double> { typedef double type; };
template <> struct opdi_cu_acc_of<opdi_cu_f16> { typedef float type; };
template <> struct opdi_cu_acc_of<opdi_cu_bf16> { typedef float type; };
template <typename P> struct opdi_cu_acc_of<opdi_cu_pair_of<P> > { typedef opdi_cu_c128 type; };
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

