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

