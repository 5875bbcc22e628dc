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
