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
/* Sets *m to a mask [rows, keys] or [batch, heads, rows, keys], whose dims may have size 1; NULL means no mask. */
static bool opdi_cu_mask_of(const opd_tensor *t, opdi_cu_at_mask *m) {
    int64_t strides[4] = {0, 0, 0, 0};
    memset(m, 0, sizeof *m);
    m->kind = -1;
    if (!t) { return true; }
    for (int d = 0, first = 4 - opd_ndim(t); d < opd_ndim(t); d++) {
        strides[first + d] = opd_size(t, d) == 1 ? 0 : opd_strides(t)[d];
    }
    m->batch = strides[0]; m->head = strides[1]; m->row = strides[2]; m->key = strides[3];
    m->kind = (int)opd_dtype(t);
    m->data = opdi_cu_data<void>(t);
    return m->data != NULL;
}
/* Returns the bytes of shared memory that the kernel for 16-bit floats needs. */
static size_t opdi_cu_at_shared(int d, int tiles, int keys) {
    return (size_t)(tiles * OPDI_CU_AT_ROWS + 4 * keys) * (size_t)(d + 8) * 2;
}
/* Returns the bytes of shared memory that the kernels for the derivative of 16-bit floats need at most.  `others`: keys
   for dq or rows for dk and dv that are in memory at once, in one or two stages. */
static size_t opdi_cu_at_back_shared(int d, int tiles, int others) {
    return (size_t)(tiles * 128 + 2 * others) * (size_t)(d + 8) * 2 + (size_t)others * 2 * sizeof(float);
}
/* Tiles of the kernels for float32 in attention_float_wide.cu: see there.  For each depth, the largest comes first. */
static const struct { int depth, own, other; } opdi_cu_aw_tiles[] = {
    {64, 64, 32}, {128, 64, 64}, {128, 32, 32}, {256, 64, 32}, {256, 32, 32}, {256, 16, 16}};
static size_t opdi_cu_shared_most() { return (size_t)opdi_cu_properties()->shared - OPDI_CU_STATIC_SHARED; }
/* Returns the number of the largest tiles that the device has shared memory for, or -1.  back: for the derivative. */
static int opdi_cu_aw_choice(int64_t depth, bool back) {
    for (int i = 0; i < (int)(sizeof opdi_cu_aw_tiles / sizeof *opdi_cu_aw_tiles); i++) {
        const int d = opdi_cu_aw_tiles[i].depth, own = opdi_cu_aw_tiles[i].own, other = opdi_cu_aw_tiles[i].other;
        if (d >= depth && (d == 64 || depth > d / 2) && opdi_cu_aw_shared(d, own, other, back) <=
            opdi_cu_shared_most()) { return i; }
    }
    return -1;
}
/* Returns whether the device has shared memory for the kernels.  back: for the derivative; drop: for dropout. */
static bool opdi_cu_attention_room(opd_scalar_type t, int64_t depth, bool back, bool drop) {
    const int d = depth <= 64 ? 64 : depth <= 128 ? 128 : 256;
    if (t == OPD_FLOAT32) {
        return depth <= 128 && !back && !drop ? opdi_cu_af_shared(depth) <= opdi_cu_shared_most()
            : opdi_cu_aw_choice(depth, back) >= 0;
    }
    return depth <= 256 && (t == OPD_FLOAT16 || t == OPD_BFLOAT16) && opdi_cu_tc_compiled() &&
        (back ? opdi_cu_at_back_shared(d, d == 64 ? 2 : 1, d == 64 ? 128 : d == 128 ? 64 : 16)
              : opdi_cu_at_shared(d, 1, d == 256 ? 16 : 64)) <= opdi_cu_shared_most();
}
/* Returns whether kernels can compute this attention or, if `back`, its derivative.  The scale must not become 0 as a
   float, because the kernels multiply -inf by it.  The kernel for float32 without dropout is not used for few rows,
   because most of its threads would then compute rows that do not exist.  scaled_dot_product_attention
   (src/ops/nn/attention.c) has the same limit. */
static bool opdi_cu_attention_fits(const opd_tensor *q, const opd_tensor *k, double scale, bool back, bool drop) {
    const int64_t rows = opd_size(q, 2);
    return opdi_cu_attention_room(opd_dtype(q), opd_size(q, 3), back, drop) &&
        (opd_dtype(q) != OPD_FLOAT32 || back || drop || rows >= OPDI_CU_AF_FEWEST) &&
        scale > 1e-30 && scale < 1e30 && opd_numel(q) > 0 && opd_numel(k) > 0 &&
        opd_size(q, 0) <= 65535 && opd_size(q, 1) <= 65535 && rows < (1 << 30) && opd_size(k, 2) < (1 << 30);
}
/* Returns t, or a copy in which the last dim is filled up with zeros to a multiple of 16 bytes. */
static opd_tensor *opdi_cu_padded(opd_tensor *t) {
    const int64_t unit = t ? 16 / (int64_t)opd_dtype_size(opd_dtype(t)) : 1, over = t ? opd_size(t, 3) % unit : 0;
    return over ? opd_constant_pad_nd(t, OPD_INTS(0, unit - over)) : t;
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
/* Returns whether the weights need more than the causal mask. */
static bool opdi_cu_attention_masked(const opdi_cu_attention &a) {
    return a.mask.kind >= 0 || a.drop.keep < 1 || a.texts.at;
}
/* Returns the number of blocks for `count` rows or keys, if a block has `own` of them. */
static unsigned opdi_cu_at_blocks(const opdi_cu_attention &a, int64_t count, int own) {
    return (unsigned)(a.texts.at ? count / own + a.texts.count : opdi_cu_ceil(count, own));
}
/* Divides the keys of an attention with few blocks, as when one token is generated, among several blocks.  `blocks`:
   the blocks without this; tiles: into how many tiles the keys are divided.  Returns 0, or -1 and sets an error. */
static int opdi_cu_attention_split(opdi_cu_attention *a, int64_t batch, int64_t heads, int64_t blocks, int64_t tiles) {
    const int64_t want = 2 * opdi_cu_properties()->multiprocessors / blocks, most = want < tiles ? want : tiles;
    if (a->causal || a->texts.at || most < 2) { return 0; }
    a->splits = (int)most;
    const int64_t all = most * batch * heads * a->rows;
    a->parts = static_cast<float *>(opdi_cu_scratch(all * (a->depth + 1) * (int64_t)sizeof(float)));
    a->sums = a->parts ? a->parts + all * a->depth : NULL;
    return a->parts ? 0 : -1;
}
/* Runs the kernel.  With a mask or dropout, TILES must be 1: a lane has too few registers for more. */
template <typename T, int D, int TILES, int KEYS>
static int opdi_cu_attention_launch(opdi_cu_attention *a, int64_t batch, int64_t heads) {
    const int64_t blocks = opdi_cu_at_blocks(*a, a->rows, TILES * OPDI_CU_AT_ROWS), all = batch * heads * a->rows;
    if (opdi_cu_attention_split(a, batch, heads, blocks * batch * heads, opdi_cu_ceil(a->keys, KEYS))) { return -1; }
    const dim3 grid((unsigned)(blocks * a->splits), (unsigned)heads, (unsigned)batch);
    if (opdi_cu_launch(!opdi_cu_attention_masked(*a) ? opdi_cu_attention_kernel<T, D, TILES, KEYS, false>
                                        : opdi_cu_attention_kernel<T, D, TILES, KEYS, TILES == 1>,
                       grid, dim3(OPDI_CU_AT_THREADS), opdi_cu_at_shared(D, TILES, KEYS), *a)) { return -1; }
    return a->splits < 2 ? 0 : opdi_cu_launch(opdi_cu_attention_join_kernel<T>, dim3((unsigned)opdi_cu_ceil(all, 4)),
                                              dim3(128), 0, *a, heads, all);
}
/* If there is one row, without dropout, the heads of q that share a head of k become the rows of this head. */
static void opdi_cu_attention_pack(opdi_cu_attention *a, int64_t *heads) {
    opdi_cu_heads *const all[3] = {&a->q, &a->out, &a->lse};
    if (a->rows != 1 || a->drop.keep < 1 || a->texts.at) { return; }
    for (int i = 0; i < 3; i++) {
        all[i]->row = all[i]->head;
        all[i]->head *= a->group;
    }
    a->mask.row = a->mask.head;
    a->mask.head *= a->group;
    *heads /= a->group;
    a->rows = a->group;
    a->group = 1;
    if (a->causal) { a->keys = 1; }               /* the one row sees the first key */
    a->causal = false;
}
template <typename T> static int opdi_cu_attention_run(opdi_cu_attention a, int64_t batch, int64_t heads) {
    opdi_cu_attention_pack(&a, &heads);
    const bool room = opdi_cu_at_shared(256, 1, 32) <= opdi_cu_shared_most() && !a.texts.at;
    const bool few = a.rows <= OPDI_CU_AT_ROWS || opdi_cu_attention_masked(a);
    return a.depth > 128 && room ? opdi_cu_attention_launch<T, 256, 1, 32>(&a, batch, heads)
        : a.depth > 128 ? opdi_cu_attention_launch<T, 256, 1, 16>(&a, batch, heads)
        : a.depth > 64 ? opdi_cu_attention_launch<T, 128, 1, 64>(&a, batch, heads)
        : few ? opdi_cu_attention_launch<T, 64, 1, 64>(&a, batch, heads)
        : opdi_cu_attention_launch<T, 64, OPDI_CU_AT_TILES, 64>(&a, batch, heads);
}
template <int D, int OWN, int OTHER>
static int opdi_cu_attention_wide_run(const opdi_cu_attention &a, int64_t batch, int64_t heads) {
    const dim3 grid(opdi_cu_at_blocks(a, a.rows, OWN), (unsigned)heads, (unsigned)batch);
    return opdi_cu_launch(opdi_cu_float_wide_kernel<D, OWN, OTHER>, grid, dim3(OPDI_CU_AW_THREADS),
                          opdi_cu_aw_shared(D, OWN, OTHER, false), a);
}
static int opdi_cu_attention_wide(const opdi_cu_attention &a, int64_t batch, int64_t heads) {
    switch (opdi_cu_aw_choice(a.depth, false)) {
        case 0: return opdi_cu_attention_wide_run<64, 64, 32>(a, batch, heads);
        case 1: return opdi_cu_attention_wide_run<128, 64, 64>(a, batch, heads);
        case 2: return opdi_cu_attention_wide_run<128, 32, 32>(a, batch, heads);
        case 3: return opdi_cu_attention_wide_run<256, 64, 32>(a, batch, heads);
        case 4: return opdi_cu_attention_wide_run<256, 32, 32>(a, batch, heads);
        default: return opdi_cu_attention_wide_run<256, 16, 16>(a, batch, heads);
    }
}
static int opdi_cu_attention_float(const opdi_cu_attention &a, int64_t batch, int64_t heads) {
    if (a.depth > 128 || a.drop.keep < 1 || a.texts.at) { return opdi_cu_attention_wide(a, batch, heads); }
    const dim3 grid((unsigned)opdi_cu_ceil(a.rows, OPDI_CU_AF_ROWS), (unsigned)heads, (unsigned)batch);
    const bool masked = a.mask.kind >= 0;
    return opdi_cu_launch(a.depth <= 64 ? masked ? opdi_cu_attention_float_kernel<64, true>
                                                 : opdi_cu_attention_float_kernel<64, false>
                          : masked ? opdi_cu_attention_float_kernel<128, true>
                                   : opdi_cu_attention_float_kernel<128, false>,
                          grid, dim3(OPDI_CU_AF_THREADS), opdi_cu_af_shared(a.depth), a);
}
/* Describes an attention to the kernels.  If `out` is NULL, a->out is not set.  Returns 0, or -1 and sets an error. */
static int opdi_cu_attention_of(opdi_cu_attention *a, opd_tensor *q, opd_tensor *k, opd_tensor *v, opd_tensor *out,
                                opd_tensor *lse, opd_tensor *mask, double scale, bool causal) {
    memset(a, 0, sizeof *a);
    if (!opd_ok() || !opdi_cu_heads_of(q, &a->q) || !opdi_cu_heads_of(k, &a->k) || !opdi_cu_heads_of(v, &a->v) ||
        !opdi_cu_mask_of(mask, &a->mask)) { return -1; }
    if (out) {
        a->out.data = opdi_cu_data<void>(out);
        a->out.batch = opd_strides(out)[0]; a->out.head = opd_strides(out)[1]; a->out.row = opd_strides(out)[2];
    }
    a->lse.data = opdi_cu_data<void>(lse);
    a->lse.batch = opd_strides(lse)[0]; a->lse.head = opd_strides(lse)[1]; a->lse.row = opd_strides(lse)[2];
    a->rows = (int)opd_size(q, 2); a->keys = (int)opd_size(k, 2); a->depth = (int)opd_size(q, 3);
    a->group = (int)(opd_size(q, 1) / opd_size(k, 1));
    a->scale = (float)scale;
    a->causal = causal;
    a->splits = 1;
    a->drop.keep = a->drop.scale = 1;
    return 0;
}
/* Adds dropout with probability p to an attention.  seed: [2], the key and the position of the random words. */
static void opdi_cu_attention_drop(opdi_cu_attention *a, double p, const opd_tensor *seed) {
    const float keep = (float)(1 - p);
    a->drop.keep = keep;
    a->drop.scale = (float)(1 / (1 - p));
    a->drop.seed = opdi_cu_data<const uint64_t>(seed);
    a->drop.row = a->keys;
    a->drop.head = (int64_t)a->rows * a->keys;
}
/* Computes attention by a kernel, for which opdi_cu_attention_fits has returned true, and writes `out` and `lse`.
   seed: NULL without dropout.  Returns 0, or -1 and sets an error. */
static int opdi_cu_attention_forward(opd_tensor *q, opd_tensor *k, opd_tensor *v, opd_tensor *mask, double scale,
    bool causal, double p, const opd_tensor *seed, opd_tensor *out, opd_tensor *lse,
    const opdi_cu_at_texts &texts = opdi_cu_at_texts()) {
    const bool whole = opd_size(q, 3) * (int64_t)opd_dtype_size(opd_dtype(q)) % 16 == 0;
    opdi_cu_attention a;
    q = opdi_cu_padded(q); k = opdi_cu_padded(k); v = opdi_cu_padded(v);
    opd_tensor *work = whole && opd_strides(out)[3] == 1 ? out
        : q ? opdi_cu_new(opd_ints_of(opd_sizes(q), 4), opd_dtype(out)) : NULL;
    if (!work || opdi_cu_attention_of(&a, q, k, v, work, lse, mask, scale, causal)) { return -1; }
    a.texts = texts;
    if (seed) { opdi_cu_attention_drop(&a, p, seed); }
    const int64_t batch = opd_size(q, 0), heads = opd_size(q, 1);
    if (opd_dtype(q) == OPD_FLOAT32 ? opdi_cu_attention_float(a, batch, heads)
        : opd_dtype(q) == OPD_FLOAT16 ? opdi_cu_attention_run<opdi_cu_f16>(a, batch, heads)
                                      : opdi_cu_attention_run<opdi_cu_bf16>(a, batch, heads)) { return -1; }
    return work == out || opd_copy_(out, opd_narrow(work, 3, 0, opd_size(out, 3))) ? 0 : -1;
}
static int opdi_cu_flash_attention(opd_call *call) {
    opd_tensor *q = opd_arg_tensor(call, 0), *k = opd_arg_tensor(call, 1), *v = opd_arg_tensor(call, 2),
        *mask = opd_arg_tensor(call, 5), *out, *lse;
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0); lse = opdi_cu_result(call, 1);
    const double scale = opd_arg_is_none(call, 6) ? 1 / sqrt((double)opd_size(q, 3)) : opd_arg_double(call, 6);
    const bool causal = opd_arg_bool(call, 4);
    return opdi_cu_attention_fits(q, k, scale, false, false)
        ? opdi_cu_attention_forward(q, k, v, mask, scale, causal, 0, NULL, out, lse)
        : opdi_cu_attention_parts(q, k, v, mask, scale, causal, out, lse);
}

//== the derivative ====================================================================================================

/* Rows [row, head, depth] as [1, head, row, depth], and back. */
static opd_tensor *opdi_cu_at_heads_of(opd_tensor *t) { return opd_unsqueeze(opd_transpose(t, 0, 1), 0); }
static opd_tensor *opdi_cu_at_rows_of(opd_tensor *t) { return opd_transpose(opd_select(t, 0, 0), 0, 1); }
static opdi_cu_heads opdi_cu_heads_at(const opd_tensor *t) {
    const int64_t *s = opd_strides(t);
    const opdi_cu_heads h = {opdi_cu_data<void>(t), s[0], s[1], s[2]};
    return h;
}
template <typename T, int D, int TILES, int KEYS, int STAGES, int HOW>
static int opdi_cu_attention_dq_run(const opdi_cu_at_back &b, int64_t batch) {
    const dim3 grid(opdi_cu_at_blocks(b.a, b.a.rows, TILES * 64), (unsigned)b.heads, (unsigned)batch);
    return opdi_cu_launch(opdi_cu_attention_dq_kernel<T, D, TILES, KEYS, STAGES, HOW>, grid,
                          dim3(OPDI_CU_AT_THREADS), opdi_cu_at_back_shared(D, TILES, KEYS * STAGES), b);
}
template <typename T, int D, int TILES, int ROWS, int STAGES, int HELD, bool DK, bool DV, int HOW>
static int opdi_cu_attention_dkv_run(const opdi_cu_at_back &b, int64_t batch) {
    const dim3 grid(opdi_cu_at_blocks(b.a, b.a.keys, TILES * 64), (unsigned)(b.heads / b.a.group), (unsigned)batch);
    return opdi_cu_launch(opdi_cu_attention_dkv_kernel<T, D, TILES, ROWS, STAGES, HELD, DK, DV, HOW>, grid,
                          dim3(OPDI_CU_AT_THREADS), opdi_cu_at_back_shared(D, TILES, ROWS * STAGES), b);
}
template <typename T, int OTHERS, int STAGES>
static int opdi_cu_attention_back_256(const opdi_cu_at_back &b, int64_t batch) {
    return opdi_cu_attention_dq_run<T, 256, 1, OTHERS, STAGES, 2>(b, batch) ||
        opdi_cu_attention_dkv_run<T, 256, 1, OTHERS, STAGES, 0, false, true, 2>(b, batch) ||
        opdi_cu_attention_dkv_run<T, 256, 1, OTHERS, STAGES, 0, true, false, 2>(b, batch) ? -1 : 0;
}
/* Runs the kernels for dq, dk and dv.  The sizes of their tiles are the largest for which the registers of a lane and
   the shared memory suffice. */
template <typename T> static int opdi_cu_attention_back_run(const opdi_cu_at_back &b, int64_t batch) {
    const int how = b.a.drop.keep < 1 || b.a.texts.at ? 2 : b.a.mask.kind >= 0 ? 1 : 0;
    if (b.a.depth > 128) {
        return opdi_cu_at_back_shared(256, 1, 64) <= opdi_cu_shared_most()
            ? opdi_cu_attention_back_256<T, 32, 2>(b, batch) : opdi_cu_attention_back_256<T, 16, 1>(b, batch);
    }
    if (b.a.depth <= 64) {
        return (how == 0 ? opdi_cu_attention_dq_run<T, 64, 2, 64, 2, 0>(b, batch)
                : how == 1 ? opdi_cu_attention_dq_run<T, 64, 2, 64, 2, 1>(b, batch)
                           : opdi_cu_attention_dq_run<T, 64, 1, 64, 2, 2>(b, batch)) ? -1
            : how == 0 ? opdi_cu_attention_dkv_run<T, 64, 2, 32, 2, 2, true, true, 0>(b, batch)
                       : opdi_cu_attention_dkv_run<T, 64, 1, 64, 2, 2, true, true, 2>(b, batch);
    }
    return (how == 0 ? opdi_cu_attention_dq_run<T, 128, 1, 32, 2, 0>(b, batch)
                     : opdi_cu_attention_dq_run<T, 128, 1, 32, 2, 2>(b, batch)) ? -1
        : how == 0 ? opdi_cu_attention_dkv_run<T, 128, 1, 32, 2, 1, true, true, 0>(b, batch)
        : how == 1 ? opdi_cu_attention_dkv_run<T, 128, 1, 32, 2, 1, true, true, 1>(b, batch)
                   : opdi_cu_attention_dkv_run<T, 128, 1, 32, 2, 0, true, true, 2>(b, batch);
}
template <int D, int OWN, int OTHER>
static int opdi_cu_attention_back_wide_run(const opdi_cu_at_back &b, int64_t batch) {
    const dim3 rows(opdi_cu_at_blocks(b.a, b.a.rows, OWN), (unsigned)b.heads, (unsigned)batch);
    const dim3 keys(opdi_cu_at_blocks(b.a, b.a.keys, OWN), (unsigned)(b.heads / b.a.group), (unsigned)batch);
    const size_t shared = opdi_cu_aw_shared(D, OWN, OTHER, true);
    return opdi_cu_launch(opdi_cu_float_dq_kernel<D, OWN, OTHER>, rows, dim3(OPDI_CU_AW_THREADS), shared, b) ? -1
        : opdi_cu_launch(opdi_cu_float_dkv_kernel<D, OWN, OTHER>, keys, dim3(OPDI_CU_AW_THREADS), shared, b);
}
static int opdi_cu_attention_back_wide(const opdi_cu_at_back &b, int64_t batch) {
    switch (opdi_cu_aw_choice(b.a.depth, true)) {
        case 0: return opdi_cu_attention_back_wide_run<64, 64, 32>(b, batch);
        case 1: return opdi_cu_attention_back_wide_run<128, 64, 64>(b, batch);
        case 2: return opdi_cu_attention_back_wide_run<128, 32, 32>(b, batch);
        case 3: return opdi_cu_attention_back_wide_run<256, 64, 32>(b, batch);
        case 4: return opdi_cu_attention_back_wide_run<256, 32, 32>(b, batch);
        default: return opdi_cu_attention_back_wide_run<256, 16, 16>(b, batch);
    }
}
template <typename T> static int opdi_cu_attention_delta_run(const opdi_cu_at_back &b) {
    return opdi_cu_launch(opdi_cu_attention_delta_kernel<T>, opdi_cu_grid_rows(opdi_cu_ceil(b.all, 16)), dim3(256), 0,
                          b);
}
/* Computes the derivatives by kernels, for which opdi_cu_attention_fits has returned true, and returns them from the
   call.  in: the gradient of the result, q, k, v and the result.  seed: NULL without dropout.  Returns 0, or -1 and
   sets an error. */
static int opdi_cu_attention_gradients(opd_call *call, opd_tensor **in /*[5]*/, opd_tensor *lse, opd_tensor *mask,
                                       double scale, bool causal, double p, const opd_tensor *seed,
                                       const opdi_cu_at_texts &texts = opdi_cu_at_texts()) {
    const int64_t depth = opd_size(in[1], 3), batch = opd_size(in[1], 0);
    const opd_scalar_type type = opd_dtype(in[1]);
    opd_tensor *grads[3];
    opdi_cu_at_back b;
    for (int i = 0; i < 5; i++) { if (!(in[i] = opdi_cu_padded(in[i]))) { return -1; } }
    for (int i = 0; i < 3; i++) {                 /* [batch, row, head, depth] in memory */
        const int64_t *n = opd_sizes(in[1 + i]);
        grads[i] = opd_transpose(opdi_cu_new(OPD_INTS(n[0], n[2], n[1], n[3]), type), 1, 2);
        if (!grads[i]) { return -1; }
    }
    memset(&b, 0, sizeof b);
    b.heads = (int)opd_size(in[1], 1);
    b.rows = (int)opd_size(in[1], 2);
    b.all = batch * b.heads * b.rows;
    b.sums = static_cast<float *>(opdi_cu_scratch(2 * b.all * (int64_t)sizeof(float)));
    if (!b.sums || opdi_cu_attention_of(&b.a, in[1], in[2], in[3], NULL, lse, mask, scale, causal) ||
        !opdi_cu_heads_of(in[4], &b.a.out) || !opdi_cu_heads_of(in[0], &b.grad)) { return -1; }
    b.a.texts = texts;
    if (seed) { opdi_cu_attention_drop(&b.a, p, seed); }
    b.dq = opdi_cu_heads_at(grads[0]); b.dk = opdi_cu_heads_at(grads[1]); b.dv = opdi_cu_heads_at(grads[2]);
    if (type == OPD_FLOAT32 ? opdi_cu_attention_delta_run<float>(b) || opdi_cu_attention_back_wide(b, batch)
        : type == OPD_FLOAT16 ? opdi_cu_attention_delta_run<opdi_cu_f16>(b) ||
            opdi_cu_attention_back_run<opdi_cu_f16>(b, batch)
        : opdi_cu_attention_delta_run<opdi_cu_bf16>(b) || opdi_cu_attention_back_run<opdi_cu_bf16>(b, batch)) {
        return -1;
    }
    for (int i = 0; i < 3; i++) {
        if (opd_size(grads[i], 3) != depth) { grads[i] = opd_narrow(grads[i], 3, 0, depth); }
        if (texts.at) { grads[i] = opdi_cu_at_rows_of(grads[i]); }
        if (opd_return_tensor(call, grads[i])) { return -1; }
    }
    return 0;
}
/* Computes the derivatives of attention: a call of _scaled_dot_product_flash_attention_for_cpu_backward.  Returns 0, or
   -1 and sets an error; or 1 if there is no kernel for this call, which then has no result. */
static int opdi_cu_attention_backward(opd_call *call) {
    opd_tensor *in[5];
    for (int i = 0; i < 5; i++) { in[i] = opd_arg_tensor(call, i); }
    const double scale = opd_arg_is_none(call, 9) ? 1 / sqrt((double)opd_size(in[1], 3)) : opd_arg_double(call, 9);
    const opdi_cu_on device(opd_tensor_device(in[1]).index);
    return !opdi_cu_attention_fits(in[1], in[2], scale, true, false) ? 1
        : opdi_cu_attention_gradients(call, in, opd_arg_tensor(call, 5), opd_arg_tensor(call, 8), scale,
                                      opd_arg_bool(call, 7), 0, NULL);
}

//== dropout ===========================================================================================================

__global__ void opdi_cu_attention_seed_kernel(uint64_t *seed, uint64_t key, uint64_t at, const uint64_t *state) {
    seed[0] = state ? state[0] : key;
    seed[1] = at + (state ? state[1] : 0);
}
/* Returns the key and the position of the random words for the weights of an attention, [2] of int64, which are taken
   from the generator.  Returns NULL and sets an error if it fails. */
static opd_tensor *opdi_cu_attention_seed(int64_t weights) {
    const int64_t two = 2;
    const uint64_t *state = NULL;
    opd_draw draw;
    opd_tensor *seed = opdi_cu_new(opd_ints_of(&two, 1), OPD_INT64);
    if (!seed) { return NULL; }
    memset(&draw, 0, sizeof draw);
    draw.words = weights;
    draw.at = opd_generator_take(draw.generator, draw.words, &draw.key);
    return opdi_cu_sequence_of(opdi_cu_current(), &draw, &state) ||
        opdi_cu_launch(opdi_cu_attention_seed_kernel, dim3(1), dim3(1), 0, opdi_cu_data<uint64_t>(seed), draw.key,
                       draw.at, state) ? NULL : seed;
}
/* opd_cuda::attention_dropout: attention with dropout, lse and the seed; or None three times if there is no kernel. */
static int opdi_cu_attention_dropout(opd_call *call) {
    opd_tensor *q = opd_arg_tensor(call, 0), *k = opd_arg_tensor(call, 1), *v = opd_arg_tensor(call, 2), *out, *lse;
    const double p = opd_arg_double(call, 4), scale = opd_arg_double(call, 6);
    if (!opdi_cu_attention_fits(q, k, scale, false, true) || !opdi_cu_attention_fits(q, k, scale, true, true)) {
        for (int i = 0; i < 3; i++) { if (opd_return_value(call, opd_value_none())) { return -1; } }
        return 0;
    }
    const int64_t *n = opd_sizes(q);
    opd_tensor *seed = opdi_cu_attention_seed(n[0] * n[1] * n[2] * opd_size(k, 2));
    out = opd_transpose(opdi_cu_new(OPD_INTS(n[0], n[2], n[1], n[3]), opd_dtype(q)), 1, 2);
    lse = opdi_cu_new(OPD_INTS(n[0], n[1], n[2]), OPD_FLOAT32);
    if (!seed || !out || !lse ||
        opdi_cu_attention_forward(q, k, v, opd_arg_tensor(call, 3), scale, opd_arg_bool(call, 5), p, seed, out, lse)) {
        return -1;
    }
    return opd_return_tensor(call, out) || opd_return_tensor(call, lse) || opd_return_tensor(call, seed) ? -1 : 0;
}
static int opdi_cu_attention_dropout_backward(opd_call *call) {
    opd_tensor *in[5];
    for (int i = 0; i < 5; i++) { in[i] = opd_arg_tensor(call, i); }
    return opdi_cu_attention_gradients(call, in, opd_arg_tensor(call, 5), opd_arg_tensor(call, 7),
                                       opd_arg_double(call, 10), opd_arg_bool(call, 9), opd_arg_double(call, 8),
                                       opd_arg_tensor(call, 6));
}
__global__ void opdi_cu_attention_kept_kernel(float *out, opdi_cu_at_drop d, int64_t n) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i * 4 < n; i += step) {
        uint32_t r[4];
        int64_t group = -1;
        for (int64_t k = i * 4; k < n && k < i * 4 + 4; k++) {
            out[k] = opdi_cu_at_kept(d, k, r, &group) ? d.scale : 0;
        }
    }
}
/* opd_cuda::attention_kept: what dropout multiplies the weights by, with the sizes [batch, heads, rows, keys]. */
static int opdi_cu_attention_kept(opd_call *call) {
    opdi_cu_attention a;
    opd_tensor *out = opdi_cu_new(opd_arg_ints(call, 1), OPD_FLOAT32);
    memset(&a, 0, sizeof a);
    opdi_cu_attention_drop(&a, opd_arg_double(call, 2), opd_arg_tensor(call, 0));
    if (!out || opdi_cu_launch(opdi_cu_attention_kept_kernel, opdi_cu_grid(opdi_cu_ceil(opd_numel(out), 4), 256),
                               dim3(256), 0, opdi_cu_data<float>(out), a.drop, opd_numel(out))) { return -1; }
    return opd_return_tensor(call, out);
}

//== texts of different lengths ========================================================================================

struct opdi_cu_at_offsets {
    const void *from[2];
    int64_t step[2], most[2];                     /* step: between offsets; most: the number of rows, keys */
    bool brief[2];                                /* int32, otherwise int64 */
    int64_t *to;                                  /* [2, n] */
    int n;
    opdi_cu_guard guard;
    /* Returns an offset.  The arrays get no index that is known only at run time, which would need memory. */
    __device__ __forceinline__ int64_t read(bool keys, int i) const {
        const void *const p = keys ? from[1] : from[0];
        const int64_t at = i * (keys ? step[1] : step[0]);
        return (keys ? brief[1] : brief[0]) ? static_cast<const int32_t *>(p)[at] : static_cast<const int64_t *>(p)[at];
    }
};
/* Copies the offsets of texts.  If some are wrong, notes a fault and writes zeros, so that no text has rows. */
__global__ void opdi_cu_at_offsets_kernel(const opdi_cu_at_offsets o) {
    int good = 1;
    for (int i = (int)threadIdx.x; i < 2 * o.n; i += (int)blockDim.x) {
        const bool keys = i >= o.n;
        const int at = keys ? i - o.n : i;
        const int64_t x = o.read(keys, at), before = at ? o.read(keys, at - 1) : 0, most = keys ? o.most[1] : o.most[0];
        if (x < before || x > most || (at == 0 && x != 0) || (at + 1 == o.n && x != most)) {
            good = 0;
            o.guard.note(at, o.n);
        }
    }
    good = __syncthreads_and(good);
    for (int i = (int)threadIdx.x; i < 2 * o.n; i += (int)blockDim.x) {
        o.to[i] = good ? o.read(i >= o.n, i >= o.n ? i - o.n : i) : 0;
    }
}
/* Describes texts to the kernels.  offsets: [2, texts + 1] of int64. */
static opdi_cu_at_texts opdi_cu_at_texts_of(const opd_tensor *offsets, int64_t left, int64_t right) {
    const int64_t n = opd_size(offsets, 1);
    opdi_cu_at_texts t = {opdi_cu_data<const int64_t>(offsets), NULL, (int)(n - 1), -1, -1};
    t.from = t.at + n;
    if (left < 1 << 30) { t.left = (int)left; }
    if (right < 1 << 30) { t.right = (int)right; }
    return t;
}
/* Returns the offsets of rows and keys that arguments 3 and 4 of the call have, as [2, texts + 1] of int64. */
static opd_tensor *opdi_cu_at_offsets_of(opd_call *call) {
    opdi_cu_at_offsets o;
    opd_tensor *offsets = NULL;
    for (int i = 0; i < 2; i++) {
        const opd_tensor *const t = opd_arg_tensor(call, 3 + i);
        o.from[i] = opdi_cu_data<const void>(t);
        o.step[i] = opd_strides(t)[0];
        o.most[i] = opd_size(opd_arg_tensor(call, i), 0);
        o.brief[i] = opd_dtype(t) == OPD_INT32;
        o.n = (int)opd_size(t, 0);
    }
    o.guard = opdi_cu_guard_of(call, "opd_varlen_attention: offsets_q and offsets_k must begin with 0, never fall, and "
                               "end with the number of rows or keys");
    if (!(offsets = opdi_cu_new(OPD_INTS(2, o.n), OPD_INT64))) { return NULL; }
    o.to = opdi_cu_data<int64_t>(offsets);
    return opdi_cu_launch(opdi_cu_at_offsets_kernel, dim3(1), dim3(256), 0, o) ? NULL : offsets;
}
/* Returns whether there are kernels for texts, forward and backward.  The kernel for float32 that takes texts has the
   limits of the one with dropout. */
static bool opdi_cu_at_texts_fit(const opd_tensor *q, const opd_tensor *k, double scale) {
    return opdi_cu_attention_fits(q, k, scale, true, true) && opdi_cu_attention_fits(q, k, scale, false, true);
}
/* opd_cuda::attention_texts: attention of texts of different lengths, lse and offsets; or None three times if there is
   no kernel. */
static int opdi_cu_attention_texts(opd_call *call) {
    opd_tensor *in[3], *rows, *lse, *offsets;
    for (int i = 0; i < 3; i++) {
        if (!(in[i] = opdi_cu_at_heads_of(opd_arg_tensor(call, i)))) { return -1; }
    }
    const double scale = opd_arg_double(call, 7);
    if (!opdi_cu_at_texts_fit(in[0], in[1], scale)) {
        for (int i = 0; i < 3; i++) { if (opd_return_value(call, opd_value_none())) { return -1; } }
        return 0;
    }
    const int64_t *n = opd_sizes(in[0]);
    rows = opdi_cu_new(OPD_INTS(n[2], n[1], n[3]), opd_dtype(in[0]));
    lse = opdi_cu_new(OPD_INTS(1, n[1], n[2]), OPD_FLOAT32);
    offsets = opdi_cu_at_offsets_of(call);
    if (!rows || !lse || !offsets ||
        opdi_cu_attention_forward(in[0], in[1], in[2], NULL, scale, false, 0, NULL, opdi_cu_at_heads_of(rows), lse,
                                  opdi_cu_at_texts_of(offsets, opd_arg_int(call, 5), opd_arg_int(call, 6)))) {
        return -1;
    }
    return opd_return_tensor(call, rows) || opd_return_tensor(call, lse) || opd_return_tensor(call, offsets) ? -1 : 0;
}
static int opdi_cu_attention_texts_backward(opd_call *call) {
    opd_tensor *in[5];
    for (int i = 0; i < 5; i++) {
        if (!(in[i] = opdi_cu_at_heads_of(opd_arg_tensor(call, i)))) { return -1; }
    }
    return opdi_cu_attention_gradients(call, in, opd_arg_tensor(call, 5), NULL, opd_arg_double(call, 9), false, 0, NULL,
                                       opdi_cu_at_texts_of(opd_arg_tensor(call, 6), opd_arg_int(call, 7),
                                                           opd_arg_int(call, 8)));
}

static const opdi_cu_registration opdi_cu_table_attention[] = {
    {"_scaled_dot_product_flash_attention_for_cpu", opdi_cu_flash_attention},
    {NULL, NULL}};
