//----------------------------------------------------------------------------------------------------------------------
//  >>cu:attention   attention
//
//  For float16 and bfloat16, and for float32 if there are more than a few rows, one kernel computes softmax(scale * q
//  k^T) v without storing the scores in memory.  It also stores the logarithm of each row's sum of exponentials (lse),
//  which the backward function reads.  All other cases are computed by separate operators.  The operator has the name
//  of PyTorch's kernel for the CPU, and the same results.
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
struct opdi_cu_attention {
    opdi_cu_heads q, k, v, out, lse;              /* lse: [batch, head, row] of float */
    int rows, keys, depth, group;                 /* group: number of heads of q that share a head of k and v */
    float scale;                                  /* greater than 0 */
    bool causal;
};
/* Returns the address of the first element of head number `head` in batch element `batch`. */
template <typename T> __device__ __forceinline__ T *opdi_cu_head(const opdi_cu_heads &h, int64_t batch, int64_t head) {
    return static_cast<T *>(h.data) + batch * h.batch + head * h.head;
}
/* Copies 64 rows of a tensor, from row `first` on, into shared memory.  Rows from `rows` on and columns from `depth`
   on, which do not exist, become zeros. */
template <typename T, int D>
__device__ __forceinline__ void opdi_cu_load_rows(T *to, const T *from, int64_t stride, int first, int rows,
                                                  int depth) {
    OPDI_CU_UNROLL
    for (int i = 0; i < 64 * D / 8 / OPDI_CU_AT_THREADS; i++) {
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
/* Turns the scores s of 16 rows for 64 keys into exponentials: finds the new maxima, and scales `total` and `sum` down
   if they have grown.  base: the first key; first: the first row; scale: the factor of the scores, times log2(e). */
template <class M>
__device__ __forceinline__ void opdi_cu_attention_exps(const opdi_cu_attention &a, typename M::S *s /*[4]*/, int base,
                                                       int first, float scale, float *most /*[2]*/,
                                                       float *total /*[2]*/, typename M::S *sum, int sums) {
    float top[2] = {most[0], most[1]}, fade[2];
    if (base + OPDI_CU_AT_KEYS > a.keys || (a.causal && base + OPDI_CU_AT_KEYS > first)) {
        OPDI_CU_UNROLL
        for (int n = 0; n < 4; n++) {
            OPDI_CU_UNROLL
            for (int i = 0; i < 8; i++) {
                const int key = base + n * 16 + M::column(i);
                if (key >= a.keys || (a.causal && key > first + M::row(i))) { s[n].x[i] = -INFINITY; }
            }
        }
    }
    OPDI_CU_UNROLL
    for (int n = 0; n < 4; n++) {
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
    for (int n = 0; n < 4; n++) {
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
template <typename T, int D, int TILES>
__device__ __forceinline__ void opdi_cu_attention_rows(const opdi_cu_attention &a, unsigned char *scratch) {
    typedef opdi_cu_mma<T, false> M;
    typedef opdi_cu_mma<T, true> V;               /* v is read column by column */
    constexpr int LD = D + 8, TILE = 64 * LD, ROWS = TILES * OPDI_CU_AT_ROWS;
    const float log2e = 1.44269504f, scale = a.scale * log2e;
    T *qs = reinterpret_cast<T *>(scratch), *kv = qs + TILES * TILE;          /* rows of q; twice 64 rows of k and v */
    const int warp = (int)threadIdx.x / 32, head = (int)blockIdx.y, batch = (int)blockIdx.z;
    const int first = (int)(gridDim.x - 1 - blockIdx.x) * ROWS;             /* if causal, the blocks with most keys
                                                                               start first */
    const T *k = opdi_cu_head<const T>(a.k, batch, head / a.group);
    const T *v = opdi_cu_head<const T>(a.v, batch, head / a.group);
    const int last = a.causal && first + ROWS < a.keys ? first + ROWS : a.keys;
    const int tiles = (last + OPDI_CU_AT_KEYS - 1) / OPDI_CU_AT_KEYS;
    const int of_warp = warp * TILES * 16, mine = first + of_warp;
    typename M::S sum[TILES][D / 16];
    typename M::A fq[TILES][D / 16];
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
    opdi_cu_load_rows<T, D>(kv, k, a.k.row, 0, a.keys, a.depth);
    opdi_cu_load_rows<T, D>(kv + TILE, v, a.v.row, 0, a.keys, a.depth);
    opdi_cu_stages_commit();
    OPDI_CU_ROLLED
    for (int j = 0; j < tiles; j++) {
        const int base = j * OPDI_CU_AT_KEYS;
        const T *kt = kv + j % 2 * 2 * TILE, *vt = kt + TILE;
        typename M::S s[TILES][4];
        opdi_cu_stages_wait<0>();
        __syncthreads();                          /* this tile has arrived, and all warps have finished the previous
                                                     tile */
        if (j == 0) {
            OPDI_CU_UNROLL
            for (int i = 0; i < TILES * (D / 16); i++) {
                const int t = i / (D / 16), d = i % (D / 16);
                M::load(fq[t][d], qs + (of_warp + t * 16) * LD + d * 16 + M::place_a(LD), LD);
            }
        }
        if (j + 1 < tiles) {
            T *to = kv + (j + 1) % 2 * 2 * TILE;
            opdi_cu_load_rows<T, D>(to, k, a.k.row, base + OPDI_CU_AT_KEYS, a.keys, a.depth);
            opdi_cu_load_rows<T, D>(to + TILE, v, a.v.row, base + OPDI_CU_AT_KEYS, a.keys, a.depth);
        }
        opdi_cu_stages_commit();
        OPDI_CU_UNROLL
        for (int i = 0; i < TILES * 4; i++) { M::zero(s[i / 4][i % 4]); }
        OPDI_CU_UNROLL
        for (int d = 0; d < D / 16; d++) {
            OPDI_CU_UNROLL
            for (int n = 0; n < 4; n++) {
                typename M::B fk;
                M::load(fk, kt + n * 16 * LD + d * 16 + M::place_b(LD), LD);
                OPDI_CU_UNROLL
                for (int t = 0; t < TILES; t++) { M::add(s[t][n], fq[t][d], fk); }
            }
        }
        OPDI_CU_UNROLL
        for (int t = 0; t < TILES; t++) {
            opdi_cu_attention_exps<M>(a, s[t], base, mine + t * 16, scale, most[t], total[t], sum[t], D / 16);
        }
        OPDI_CU_UNROLL
        for (int n = 0; n < 4; n++) {
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
    T *out = opdi_cu_head<T>(a.out, batch, head);
    float *lse = opdi_cu_head<float>(a.lse, batch, head);
    OPDI_CU_UNROLL
    for (int t = 0; t < TILES; t++) {
        total[t][0] = M::row_sum(total[t][0]); total[t][1] = M::row_sum(total[t][1]);
        OPDI_CU_UNROLL
        for (int i = 0; i < 8; i += 2) {
            const int r = M::of_two(i), row = mine + t * 16 + M::row(i);
            const float all = total[t][r], by = all > 0 || all != all ? 1 / all : 0;
            if (row >= a.rows) { continue; }
            OPDI_CU_UNROLL
            for (int d = 0; d < D / 16; d++) {
                const int c = d * 16 + M::column(i);
                if (c < a.depth) {
                    *reinterpret_cast<uint32_t *>(out + row * a.out.row + c) =
                        opdi_cu_two(opdi_cu_cast<T>(sum[t][d].x[i] * by), opdi_cu_cast<T>(sum[t][d].x[i + 1] * by));
                }
            }
            if (M::column(i) == 0) { lse[row * a.lse.row] = all == 0 ? 0 : most[t][r] * a.scale + logf(all); }
        }
    }
}
template <typename T, int D, int TILES> __global__ void __launch_bounds__(OPDI_CU_AT_THREADS)
opdi_cu_attention_kernel(const __grid_constant__ opdi_cu_attention a) {
    OPDI_CU_SHARED(scratch);
    OPDI_CU_TC_STOP(T)
#if defined(OPD_CUDA_EMULATED) || (defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800)
    opdi_cu_attention_rows<T, D, TILES>(a, scratch);
#elif defined(__CUDA_ARCH__)
    __trap();                                     /* not reached: the host calls opdi_cu_tc_compiled first */
#endif
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
/* Does the same as opdi_cu_attention_exps, for the thread's 8 rows. */
template <int COLUMNS>
__device__ __forceinline__ void opdi_cu_af_exponentials(const opdi_cu_attention &a, float (*s)[4] /*[8]*/, int base,
    int first, float scale, float *most /*[8]*/, float *total /*[8]*/, float (*sum)[COLUMNS] /*[8]*/) {
    const int row0 = first + (int)threadIdx.x / 16 * 8, key0 = base + (int)threadIdx.x % 16 * 4;
    const bool all = base + OPDI_CU_AF_KEYS <= a.keys && (!a.causal || base + OPDI_CU_AF_KEYS <= first + 1);
    OPDI_CU_UNROLL
    for (int r = 0; r < 8; r++) {
        float top = most[r];
        OPDI_CU_UNROLL
        for (int n = 0; n < 4; n++) {
            if (!all && (key0 + n >= a.keys || (a.causal && key0 + n > row0 + r))) { s[r][n] = -INFINITY; }
            top = fmaxf(top, s[r][n]);
        }
        OPDI_CU_UNROLL
        for (int lane = 8; lane > 0; lane /= 2) { top = fmaxf(top, __shfl_xor_sync(OPDI_CU_ALL_LANES, top, lane)); }
        const float shift = top == -INFINITY ? 0 : top * scale, fade = opdi_cu_exp2(most[r] * scale - shift);
        total[r] *= fade;
        most[r] = top;
        OPDI_CU_UNROLL
        for (int n = 0; n < 4; n++) {
            s[r][n] = opdi_cu_exp2(s[r][n] * scale - shift);
            total[r] += s[r][n];
        }
        OPDI_CU_UNROLL
        for (int c = 0; c < COLUMNS; c++) { sum[r][c] *= fade; }
    }
}
template <int D> __global__ void __launch_bounds__(OPDI_CU_AF_THREADS, D == 64 ? 2 : 1)
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
        opdi_cu_af_exponentials<COLUMNS>(a, s, base, first, scale, most, total, sum);
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
        if (of16 == 0) { lse[row * a.lse.row] = all == 0 ? 0 : most[r] * a.scale + logf(all); }
    }
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
/* Returns whether one of the kernels can compute this attention.  The scale must not become 0 as a float, because the
   kernels multiply -inf by it.  The kernel for float32 is not used for few rows, because most of its threads would then
   compute rows that do not exist.  scaled_dot_product_attention (src/ops/nn/attention.c) has the same limit. */
static bool opdi_cu_attention_fits(const opd_tensor *q, const opd_tensor *k, const opd_tensor *mask, double scale) {
    const opd_scalar_type t = opd_dtype(q);
    const int64_t depth = opd_size(q, 3), rows = opd_size(q, 2);
    const bool compiled = t == OPD_FLOAT32
        ? rows >= OPDI_CU_AF_FEWEST &&
            opdi_cu_af_shared(depth) + OPDI_CU_STATIC_SHARED <= (size_t)opdi_cu_properties()->shared
        : (t == OPD_FLOAT16 || t == OPD_BFLOAT16) && opdi_cu_tc_compiled();
    return compiled && !mask && scale > 1e-30 && scale < 1e30 && depth > 0 && depth <= 128 &&
        depth * (int64_t)opd_dtype_size(t) % 16 == 0 && opd_numel(q) > 0 && opd_numel(k) > 0 &&
        opd_size(q, 0) <= 65535 && opd_size(q, 1) <= 65535 && rows < (1 << 30) && opd_size(k, 2) < (1 << 30);
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
template <typename T> static int opdi_cu_attention_run(const opdi_cu_attention &a, int64_t batch, int64_t heads) {
    const int d = a.depth <= 64 ? 64 : 128, tiles = d == 64 && a.rows > OPDI_CU_AT_ROWS ? (int)OPDI_CU_AT_TILES : 1;
    const dim3 grid((unsigned)opdi_cu_ceil(a.rows, tiles * OPDI_CU_AT_ROWS), (unsigned)heads, (unsigned)batch);
    return opdi_cu_launch(d == 128 ? opdi_cu_attention_kernel<T, 128, 1>
                          : tiles == 1 ? opdi_cu_attention_kernel<T, 64, 1>
                                       : opdi_cu_attention_kernel<T, 64, OPDI_CU_AT_TILES>,
                          grid, dim3(OPDI_CU_AT_THREADS), (size_t)((tiles + 4) * 64 * (d + 8)) * sizeof(T), a);
}
static int opdi_cu_attention_float(const opdi_cu_attention &a, int64_t batch, int64_t heads) {
    const dim3 grid((unsigned)opdi_cu_ceil(a.rows, OPDI_CU_AF_ROWS), (unsigned)heads, (unsigned)batch);
    return opdi_cu_launch(a.depth <= 64 ? opdi_cu_attention_float_kernel<64> : opdi_cu_attention_float_kernel<128>,
                          grid, dim3(OPDI_CU_AF_THREADS), opdi_cu_af_shared(a.depth), a);
}
static int opdi_cu_flash_attention(opd_call *call) {
    opd_tensor *q = opd_arg_tensor(call, 0), *k = opd_arg_tensor(call, 1), *v = opd_arg_tensor(call, 2),
        *mask = opd_arg_tensor(call, 5), *out, *lse;
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0); lse = opdi_cu_result(call, 1);
    const double scale = opd_arg_is_none(call, 6) ? 1 / sqrt((double)opd_size(q, 3)) : opd_arg_double(call, 6);
    const bool causal = opd_arg_bool(call, 4);
    opdi_cu_attention a;
    if (!opdi_cu_attention_fits(q, k, mask, scale)) {
        return opdi_cu_attention_parts(q, k, v, mask, scale, causal, out, lse);
    }
    opd_tensor *work = opd_strides(out)[3] == 1 ? out : opdi_cu_new(opd_ints_of(opd_sizes(out), 4), opd_dtype(out));
    if (!work || !opdi_cu_heads_of(q, &a.q) || !opdi_cu_heads_of(k, &a.k) || !opdi_cu_heads_of(v, &a.v)) { return -1; }
    a.out.data = opdi_cu_data<void>(work);
    a.out.batch = opd_strides(work)[0]; a.out.head = opd_strides(work)[1]; a.out.row = opd_strides(work)[2];
    a.lse.data = opdi_cu_data<void>(lse);
    a.lse.batch = opd_strides(lse)[0]; a.lse.head = opd_strides(lse)[1]; a.lse.row = opd_strides(lse)[2];
    a.rows = (int)opd_size(q, 2); a.keys = (int)opd_size(k, 2); a.depth = (int)opd_size(q, 3);
    a.group = (int)(opd_size(q, 1) / opd_size(k, 1));
    a.scale = (float)scale;
    a.causal = causal;
    const int64_t batch = opd_size(q, 0), heads = opd_size(q, 1);
    if (opd_dtype(q) == OPD_FLOAT32 ? opdi_cu_attention_float(a, batch, heads)
        : opd_dtype(q) == OPD_FLOAT16 ? opdi_cu_attention_run<opdi_cu_f16>(a, batch, heads)
                                      : opdi_cu_attention_run<opdi_cu_bf16>(a, batch, heads)) { return -1; }
    return work == out || opd_copy_(out, work) ? 0 : -1;
}

static const opdi_cu_registration opdi_cu_table_attention[] = {
    {"_scaled_dot_product_flash_attention_for_cpu", opdi_cu_flash_attention},
    {NULL, NULL}};
