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

