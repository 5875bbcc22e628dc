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
/* Adds the products of a stage, which begins `at` bytes from the factors' memory and has STEPS parts of the inner
   dimension, to a warp's sums. */
template <class M, int STEPS, int I, int J, class A, class B>
__device__ __forceinline__ void opdi_cu_tc_multiply(typename M::S (&sum)[I][J], const A &as, const B &bs, int at) {
    OPDI_CU_UNROLL
    for (int l = 0; l < STEPS; l++) {
        typename M::A fa[I];
        typename M::B fb[J];
        OPDI_CU_UNROLL
        for (int k = 0; k < J; k++) { bs.load(fb[k], at, k, l); }
        OPDI_CU_UNROLL
        for (int i = 0; i < I; i++) { as.load(fa[i], at, i, l); }
        OPDI_CU_UNROLL
        for (int i = 0; i < I; i++) { for (int k = 0; k < J; k++) { M::add(sum[i][k], fa[i], fb[k]); } }
    }
}
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

/* The shape of a block's tile: M pixels and N channels, WM and WN of them for a warp (if WIDE, for a warp group); BYTES
   of the inner dimension in a stage; STAGES stages; BLOCKS blocks that fit into a multiprocessor. */
template <int M_, int N_, int WM_, int WN_, int BYTES_, int STAGES_, int BLOCKS_, bool WIDE_ = false>
struct opdi_cu_tc_shape {
    enum { M = M_, N = N_, WM = WM_, WN = WN_, BYTES = BYTES_, STAGES = STAGES_, BLOCKS = BLOCKS_, WIDE = WIDE_,
           THREADS = M_ / WM_ * (N_ / WN_) * (WIDE_ ? 128 : 32) };
    /* Returns the bytes of shared memory for stages or, if it is more, for the tile of sums. */
    static int64_t bytes(bool padded) {
        const int64_t stages = (int64_t)(M + N) * (BYTES + (padded ? 16 : 0)) * STAGES;
        const int64_t last = (int64_t)M * (N + 4) * 4, sums = (int64_t)N * (M + 4) * 4 > last
            ? (int64_t)N * (M + 4) * 4 : last;
        return (stages > sums ? stages : sums) + (WIDE ? OPDI_CU_WG_ALIGN : 0);
    }
};
/* The sums of a block's warps.  multiply(at) adds the products of the stage that begins `at` bytes from the first one.
   At most AHEAD stages may be on their way to shared memory meanwhile, and arrived() comes before the barrier after
   which a stage is multiplied.  finish() waits for the last products.  store() writes the sum of pixel m and channel n
   to out[m * down + n * across]. */
template <typename T, class S> struct opdi_cu_tc_warps {
    typedef opdi_cu_mma<T, false> M;
    typedef opdi_cu_tc_rows<S::BYTES> R;
    enum { AHEAD = S::STAGES - 1, I = S::WM / 16, J = S::WN / 16 };
    const int wm, wn;
    const opdi_cu_tc_factor<T, false, S::BYTES, false> as;
    const opdi_cu_tc_factor<T, false, S::BYTES, true> bs;
    typename M::S sum[I][J];
    __device__ __forceinline__ explicit opdi_cu_tc_warps(const unsigned char *stages) :
        wm((int)threadIdx.x / 32 % (S::M / S::WM) * S::WM), wn((int)threadIdx.x / 32 / (S::M / S::WM) * S::WN),
        as(stages, wm), bs(stages + S::M * R::PITCH, wn) {
        OPDI_CU_UNROLL
        for (int i = 0; i < I; i++) { for (int k = 0; k < J; k++) { M::zero(sum[i][k]); } }
    }
    static __device__ __forceinline__ void arrived() {}
    __device__ __forceinline__ void multiply(int at) {
        opdi_cu_tc_multiply<M, (int)(S::BYTES / sizeof(T)) / M::K>(sum, as, bs, at);
    }
    static __device__ __forceinline__ void finish() {}
    __device__ __forceinline__ void store(float *out, int down, int across) const {
        OPDI_CU_UNROLL
        for (int i = 0; i < I; i++) {
            OPDI_CU_UNROLL
            for (int k = 0; k < J; k++) {
                M::store(out + (wm + 16 * i) * down + (wn + 16 * k) * across, sum[i][k], down, across);
            }
        }
    }
};
/* The same for warp groups, each of which has S::WM pixels and all channels of the tile. */
template <typename T, class S> struct opdi_cu_tc_groups {
    enum { AHEAD = S::STAGES - 2, I = S::WM / 64 };
    static_assert(S::BYTES == 128 && S::WN == S::N, "the order of bytes that opdi_cu_wg_factor_at describes");
    const unsigned char *const a, *const b;
    opdi_cu_wg_sums<S::N> sum[I];
    __device__ __forceinline__ explicit opdi_cu_tc_groups(const unsigned char *stages) :
        a(stages + threadIdx.x / 128 * S::WM * S::BYTES), b(stages + S::M * S::BYTES) {
        OPDI_CU_UNROLL
        for (int i = 0; i < I; i++) { for (int k = 0; k < S::N / 2; k++) { sum[i].x[k] = 0; } }
    }
    static __device__ __forceinline__ void arrived() { opdi_cu_wg_written(); }
    __device__ __forceinline__ void multiply(int at) {
        opdi_cu_wg_begin();
        OPDI_CU_UNROLL
        for (int l = 0; l < S::BYTES; l += 32) {
            OPDI_CU_UNROLL
            for (int i = 0; i < I; i++) {
                opdi_cu_wg_add<T, S::N>(sum[i], opdi_cu_wg_factor_at(a + at + 64 * i * S::BYTES + l),
                                        opdi_cu_wg_factor_at(b + at + l));
            }
        }
        opdi_cu_wg_end();
        opdi_cu_wg_wait<1>();                     /* the next stage but one may take the place of the previous one */
    }
    static __device__ __forceinline__ void finish() { opdi_cu_wg_wait<0>(); }
    __device__ __forceinline__ void store(float *out, int down, int across) const {
        const int t = (int)threadIdx.x, first = t / 128 * S::WM + t % 128 / 32 * 16 + t % 32 / 4, right = t % 4 * 2;
        OPDI_CU_UNROLL
        for (int i = 0; i < I; i++) {
            OPDI_CU_UNROLL
            for (int k = 0; k < S::N / 2; k++) {
                out[(first + 64 * i + k / 2 % 2 * 8) * down + (right + k / 4 * 8 + k % 2) * across] = sum[i].x[k];
            }
        }
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
    typedef opdi_cu_tc_rows<S::BYTES> R;
    typedef typename std::conditional<S::WIDE != 0, opdi_cu_tc_groups<T, S>, opdi_cu_tc_warps<T, S> >::type Sums;
    constexpr int E = 16 / sizeof(T), K = S::BYTES / sizeof(T), CHUNKS = S::BYTES / 16, ROWS = S::THREADS / CHUNKS,
        A = S::M / ROWS, B = S::N / ROWS, stage = (S::M + S::N) * R::PITCH;
    const opdi_cu_conv &q = j.q;
    const int t = threadIdx.x, og = (int)(q.oc / q.groups), group = blockIdx.z, cp = j.cp, line = (int)q.groups * cp;
    const int m0 = (int)(blockIdx.x / j.tiles) * S::M, n0 = (int)(blockIdx.x % j.tiles) * S::N;
    const int pixels = (int)(q.n * opdi_cu_volume(q.out)), kk = (int)opdi_cu_volume(q.k) * cp;
    const int chunk = t % CHUNKS * E, row = t / CHUNKS;           /* this thread copies rows row, row + ROWS, ... of
                                                                     patches and weights */
    const int steps = (kk + K - 1) / K;
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
    for (int s = 0; s < Sums::AHEAD; s++) { bring(); }
    Sums sums(scratch);
    OPDI_CU_ROLLED
    for (int s = 0, at = 0; s < steps; s++) {
        opdi_cu_stages_wait<Sums::AHEAD - 1>();
        Sums::arrived();
        __syncthreads();                          /* all parts of the stage have arrived, and the stage whose place the
                                                     next copies take is finished */
        bring();
        sums.multiply(at);
        at = at == (S::STAGES - 1) * stage ? 0 : at + stage;
    }
    sums.finish();
    opdi_cu_stages_wait<0>();
    __syncthreads();                              /* the sums take the place of the stages */
    float *out = reinterpret_cast<float *>(scratch);
    constexpr int ld = LAST ? S::N + 4 : S::M + 4;
    sums.store(out, LAST ? ld : 1, LAST ? 1 : ld);
    __syncthreads();
    opdi_cu_tc_put<T, S, LAST>(j, out, bias, y, m0, n0);
}
template <typename T, class S, bool LAST> __global__ void __launch_bounds__(S::THREADS, S::BLOCKS)
opdi_cu_conv_tc_kernel(const __grid_constant__ opdi_cu_tc_job j, const T *x, const T *w, const T *bias, T *y) {
    OPDI_CU_SHARED(scratch);
    OPDI_CU_TC_STOP(T)
    if constexpr (S::WIDE != 0 && !OPDI_CU_WARP_GROUPS) { __trap(); }
    else if constexpr (S::WIDE != 0) {
        const uintptr_t past = (uintptr_t)scratch % OPDI_CU_WG_ALIGN;
        opdi_cu_conv_tile<T, S, LAST>(j, x, w, bias, y, scratch + (past ? OPDI_CU_WG_ALIGN - past : 0));
    } else if constexpr (opdi_cu_tc_there<T>::yes) { opdi_cu_conv_tile<T, S, LAST>(j, x, w, bias, y, scratch); }
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
        opdi_cu_tc_multiply<M, K / 16>(sum, as, bs, at);
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
/* Computes the job with tiles that suit its channels.  `wide`: by warp groups. */
template <typename T> static int opdi_cu_tc_shaped(const opdi_cu_tc_job &j, const T *x, const T *w, const T *bias, T *y,
                                                   bool last, bool wide) {
    if (wide) {
        return j.q.oc / j.q.groups <= 64
            ? opdi_cu_tc_start<T, opdi_cu_tc_shape<128, 64, 64, 64, 128, 4, 2, true> >(j, x, w, bias, y, last)
            : opdi_cu_tc_start<T, opdi_cu_tc_shape<128, 128, 64, 128, 128, 3, 2, true> >(j, x, w, bias, y, last);
    }
    return j.q.oc / j.q.groups <= 64 || !opdi_cu_tc_compiled()
        ? opdi_cu_tc_start<T, opdi_cu_tc_shape<128, 64, 64, 32, 64, 3, 3> >(j, x, w, bias, y, last)
        : opdi_cu_tc_start<T, opdi_cu_tc_shape<128, 128, 64, 64, 64, 4, 2> >(j, x, w, bias, y, last);
}
/* Sets element i of x to -1, 0 or 1. */
template <typename T> __global__ void opdi_cu_wg_fill_kernel(T *x, int n, uint32_t seed) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) { opdi_cu_store(x + i, (float)((((uint32_t)i * 2654435761u + seed) >> 16) % 3) - 1.0f); }
}
/* Adds the number of elements that differ to *differences. */
template <typename T> __global__ void opdi_cu_wg_compare_kernel(const T *a, const T *b, int n, int *differences) {
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n && opdi_cu_load<float>(a + i) != opdi_cu_load<float>(b + i)) { atomicAdd(differences, 1); }
}
/* Computes a small convolution with `channels` results by both kinds of products.  Its sums are whole numbers, so all
   bits must be equal.  Returns 1 if they are, 0 if not, or -1 and sets an error. */
template <typename T> static int opdi_cu_wg_compare(int channels) {
    const int side = 13, cp = 72, area = side * side, taps = 9, n = area * channels;
    const opdi_cu_conv q = {1, cp, channels, 1, {1, side, side}, {1, side, side}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1},
                            {1, 1, 1}};
    T *x = static_cast<T *>(opdi_cu_scratch((area * cp + channels * taps * cp + 2 * n) * (int64_t)sizeof(T))),
        *w = x + area * cp, *y = w + channels * taps * cp;
    int *found = static_cast<int *>(opdi_cu_scratch(sizeof(int))), differences = 0;
    opdi_cu_tc_job j;
    opdi_cu_tc_plain(&j, &q, cp);
    if (!x || !found ||
        opdi_cu_launch(opdi_cu_wg_fill_kernel<T>, dim3((unsigned)opdi_cu_ceil(area * cp, 256)), dim3(256), 0, x,
                       area * cp, 1u) ||
        opdi_cu_launch(opdi_cu_wg_fill_kernel<T>, dim3((unsigned)opdi_cu_ceil(channels * taps * cp, 256)), dim3(256), 0,
                       w, channels * taps * cp, 77u) ||
        opdi_cu_tc_shaped<T>(j, x, w, NULL, y, true, false) || opdi_cu_tc_shaped<T>(j, x, w, NULL, y + n, true, true)) {
        return -1;
    }
    OPDI_CU_TRY(cudaMemsetAsync(found, 0, sizeof(int), opdi_cu_stream()), "cudaMemsetAsync");
    if (opdi_cu_launch(opdi_cu_wg_compare_kernel<T>, dim3((unsigned)opdi_cu_ceil(n, 256)), dim3(256), 0, (const T *)y,
                       (const T *)(y + n), n, found)) { return -1; }
    OPDI_CU_TRY(cudaMemcpyAsync(&differences, found, sizeof(int), cudaMemcpyDeviceToHost, opdi_cu_stream()),
                "cudaMemcpyAsync");
    OPDI_CU_TRY(cudaStreamSynchronize(opdi_cu_stream()), "cudaStreamSynchronize");
    return differences == 0;
}
/* Compiled for warp groups, this kernel has shared memory, by which the host knows. */
static __global__ void opdi_cu_wg_probe(int *to) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
    __shared__ int some[4];
    some[threadIdx.x % 4] = to[1];
    __syncthreads();
    to[0] = some[threadIdx.x / 4 % 4];
#else
    (void)to;
#endif
}
static bool opdi_cu_wg_compiled() {
    cudaFuncAttributes a;
    if (opdi_cu_properties()->major != 9) { return false; }
    if (cudaFuncGetAttributes(&a, (const void *)opdi_cu_wg_probe) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
#if defined(OPD_CUDA_EMULATED)
    return a.ptxVersion == 90;
#else
    return a.sharedSizeBytes > 0;
#endif
}
/* Returns whether products of T by warp groups can be used on the current device: they were compiled, and gave right
   results when this was first asked.  While the stream is being captured, the results cannot be read, so the answer
   may be no. */
template <typename T> static bool opdi_cu_wg_usable() {
    static std::atomic<signed char> known[OPDI_CU_MAX_DEVICES];       /* 1: yes, -1: no */
    std::atomic<signed char> &k = known[opdi_cu_current()];
    if (k == 0 && !opdi_cu_wg_compiled()) { k = -1; }
    if (k != 0 || opdi_cu_captured(opdi_cu_stream())) { return k > 0; }
    const int mark = opd_error_mark(), few = opdi_cu_wg_compare<T>(40);
    const int many = few > 0 ? opdi_cu_wg_compare<T>(136) : few;
    if (many == 0) { opd_warn("CUDA: products by warp groups are wrong on this GPU, so convolutions do not use them"); }
    if (opd_error_rewind(mark) != OPD_ERROR_MEMORY) { k = many > 0 ? 1 : -1; }
    return many > 0;
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
            opdi_cu_tc_shaped<T>(j, x, (const T *)wt, bias, y, y_last, opdi_cu_wg_usable<T>())) { return -1; }
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
