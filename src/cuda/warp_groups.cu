//== products by warp groups ===========================================================================================
//
//  Four neighbouring warps, a warp group, multiply tiles that they read from shared memory (wgmma).  Such instructions
//  exist for compute capability 9.0 only, in code that nvcc makes with -arch=sm_90a.  The first use compares their
//  results with the results of the older instructions, see opdi_cu_wg_usable.

#if defined(__CUDA_ARCH_FEAT_SM90_ALL) || defined(OPD_CUDA_EMULATED)
#define OPDI_CU_WARP_GROUPS true
#else
#define OPDI_CU_WARP_GROUPS false
#endif
#define OPDI_CU_WG_ALIGN 1024                     /* tiles begin at multiples of so many bytes of shared memory */

/* Describes a factor in shared memory to the instruction.  The factor has rows of 128 bytes, of which the 16 bytes
   number i of row r are in place i ^ r % 8 (as opdi_cu_tc_rows<128> has them).  `at` is the first byte that the product
   reads, in a row whose number is a multiple of 8.  The word has this address, the distance between eight rows and the
   next eight (1,024), both divided by 16, and 1 for the order of the 16 bytes. */
#if defined(OPD_CUDA_EMULATED)
typedef const unsigned char *opdi_cu_wg_factor;
__device__ __forceinline__ opdi_cu_wg_factor opdi_cu_wg_factor_at(const unsigned char *at) { return at; }
#else
typedef uint64_t opdi_cu_wg_factor;
__device__ __forceinline__ opdi_cu_wg_factor opdi_cu_wg_factor_at(const unsigned char *at) {
    return (uint64_t)1 << 62 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 16 |
        ((uint64_t)__cvta_generic_to_shared(at) & 0x3ffff) >> 4;
}
#endif

/* A lane's sums of 64 rows and N (64 or 128) columns. */
template <int N> struct opdi_cu_wg_sums { float x[N / 2]; };
#define OPDI_CU_WG_REGISTERS_32 \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define OPDI_CU_WG_REGISTERS_64 OPDI_CU_WG_REGISTERS_32 ", " \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define OPDI_CU_WG_8(x, i) \
    "+f"(x[i]), "+f"(x[i + 1]), "+f"(x[i + 2]), "+f"(x[i + 3]), "+f"(x[i + 4]), "+f"(x[i + 5]), "+f"(x[i + 6]), \
    "+f"(x[i + 7])
#define OPDI_CU_WG_32(x, i) OPDI_CU_WG_8(x, i), OPDI_CU_WG_8(x, i + 8), OPDI_CU_WG_8(x, i + 16), OPDI_CU_WG_8(x, i + 24)
/* Adds a product to the sums.  `shape` and `types` name the instruction; `registers` and `places` are the texts of the
   operands, of which the last one says that sums are kept. */
#define OPDI_CU_WG_MMA(shape, types, registers, places, keep, ...) \
    asm volatile("{ .reg .pred p; setp.ne.b32 p, " keep ", 0; wgmma.mma_async.sync.aligned." shape ".f32." types " {" \
                 registers "}, " places ", p, 1, 1" OPDI_CU_WG_ORDER "; }" : __VA_ARGS__ : "l"(a), "l"(b), "r"(1))
#define OPDI_CU_WG_64(shape, types) \
    OPDI_CU_WG_MMA(shape, types, OPDI_CU_WG_REGISTERS_32, "%32, %33", "%34", OPDI_CU_WG_32(s.x, 0))
#define OPDI_CU_WG_128(shape, types) \
    OPDI_CU_WG_MMA(shape, types, OPDI_CU_WG_REGISTERS_64, "%64, %65", "%66", OPDI_CU_WG_32(s.x, 0), \
                   OPDI_CU_WG_32(s.x, 32))

/* Adds to s the product of 64 rows of a and N rows of b (32 bytes of each).  It is under way until opdi_cu_wg_wait. */
#if defined(OPD_CUDA_EMULATED)
template <typename T> static inline float opdi_cu_wg_element(opdi_cu_wg_factor factor, int row, int k) {
    const uintptr_t at = (uintptr_t)factor + (uintptr_t)(row / 8 * 1024 + row % 8 * 128 + k * (int)sizeof(T));
    return opdi_cu_load<float>((const T *)(at ^ (at >> 7 & 7) << 4));
}
template <typename T, int N>
static inline void opdi_cu_wg_add(opdi_cu_wg_sums<N> &s, opdi_cu_wg_factor a, opdi_cu_wg_factor b) {
    for (int i = 0; i < N / 2; i++) {
        const int lane = (int)(threadIdx.x % 32), row = (int)(threadIdx.x % 128) / 32 * 16 + lane / 4 + i / 2 % 2 * 8,
            column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        for (int k = 0; k < 32 / (int)sizeof(T); k++) {
            s.x[i] += opdi_cu_wg_element<T>(a, row, k) * opdi_cu_wg_element<T>(b, column, k) *
                (opd_emu::wrong_groups() ? -1.0f : 1.0f);
        }
    }
}
#elif OPDI_CU_WARP_GROUPS
template <typename T, int N>
__device__ __forceinline__ void opdi_cu_wg_add(opdi_cu_wg_sums<N> &s, opdi_cu_wg_factor a, opdi_cu_wg_factor b) {
    static_assert(N == 64 || N == 128, "the instructions below");
#define OPDI_CU_WG_ORDER ", 0, 0"
    if constexpr (std::is_same<T, opdi_cu_f16>::value) {
        if constexpr (N == 64) { OPDI_CU_WG_64("m64n64k16", "f16.f16"); }
        else { OPDI_CU_WG_128("m64n128k16", "f16.f16"); }
    } else if constexpr (std::is_same<T, opdi_cu_bf16>::value) {
        if constexpr (N == 64) { OPDI_CU_WG_64("m64n64k16", "bf16.bf16"); }
        else { OPDI_CU_WG_128("m64n128k16", "bf16.bf16"); }
    } else {
#undef OPDI_CU_WG_ORDER
#define OPDI_CU_WG_ORDER
        if constexpr (N == 64) { OPDI_CU_WG_64("m64n64k8", "tf32.tf32"); }
        else { OPDI_CU_WG_128("m64n128k8", "tf32.tf32"); }
    }
#undef OPDI_CU_WG_ORDER
}
#else                                             /* the host, and other GPUs: kernels stop before this */
template <typename T, int N>
__device__ __forceinline__ void opdi_cu_wg_add(opdi_cu_wg_sums<N> &, opdi_cu_wg_factor, opdi_cu_wg_factor) {}
#endif
/* opdi_cu_wg_begin comes before products whose sums the warps have changed, opdi_cu_wg_end after some products.
   opdi_cu_wg_wait<n> waits until all products are finished but those of the last n calls of opdi_cu_wg_end.
   opdi_cu_wg_written makes what this thread has written to shared memory visible to products after the next barrier. */
#if OPDI_CU_WARP_GROUPS && !defined(OPD_CUDA_EMULATED)
__device__ __forceinline__ void opdi_cu_wg_begin() { asm volatile("wgmma.fence.sync.aligned;" : : : "memory"); }
__device__ __forceinline__ void opdi_cu_wg_end() { asm volatile("wgmma.commit_group.sync.aligned;" : : : "memory"); }
template <int N> __device__ __forceinline__ void opdi_cu_wg_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" : : "n"(N) : "memory");
}
__device__ __forceinline__ void opdi_cu_wg_written() { asm volatile("fence.proxy.async.shared::cta;" : : : "memory"); }
#else
__device__ __forceinline__ void opdi_cu_wg_begin() {}
__device__ __forceinline__ void opdi_cu_wg_end() {}
template <int N> __device__ __forceinline__ void opdi_cu_wg_wait() {}
__device__ __forceinline__ void opdi_cu_wg_written() {}
#endif
