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
