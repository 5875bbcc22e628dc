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
