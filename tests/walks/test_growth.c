/* The temporary memory of operators is at most one byte for each element of the largest operand.  Every operator
   runs with its sample arguments on operands with about 200,000 elements, in dtypes for which there are no kernels. */
#include "../cases.h"

#define GROWTH_ELEMENTS 160000
#define GROWTH_SLACK (192 << 10)  /* blocks, packed panels, the rounding of large allocations */

/* Operators that need more: bytes for each element of the largest operand, and the reason. */
static const struct { const char *name; double bytes; } growth_more[] = {
    /* they unfold their input to columns, one for each position of the filter */
    {"convolution", 60}, {"convolution_backward", 16}, {"im2col", 6},
    /* they convert planes and rows that a filter reads many times to the compute type once */
    {"max_pool2d_with_indices", 10.5}, {"max_pool2d_with_indices_backward", 5}, {"max_pool3d_with_indices", 9},
    {"max_pool3d_with_indices_backward", 3}, {"avg_pool2d", 10.5}, {"avg_pool2d_backward", 5}, {"avg_pool3d", 9.5},
    {"avg_pool3d_backward", 3}, {"_adaptive_avg_pool2d", 4}, {"_adaptive_avg_pool2d_backward", 3.5},
    {"_adaptive_avg_pool3d", 4}, {"_adaptive_avg_pool3d_backward", 3.5}, {"adaptive_max_pool2d", 4},
    {"adaptive_max_pool2d_backward", 3.5}, {"adaptive_max_pool3d", 4}, {"adaptive_max_pool3d_backward", 3.5},
    {"upsample_nearest2d", 3.5}, {"upsample_nearest2d_backward", 8}, {"upsample_bilinear2d", 3.5},
    {"upsample_bilinear2d_backward", 8}, {"grid_sampler_2d", 3.5}, {"grid_sampler_2d_backward", 8},
    /* the same, and where each line looks, and how much: of lines alone, a list as long as what goes in */
    {"upsample_nearest1d", 4.5}, {"_upsample_nearest_exact1d", 4.5}, {"upsample_linear1d", 4.5},
    {"upsample_nearest1d_backward", 15}, {"_upsample_nearest_exact1d_backward", 15}, {"upsample_linear1d_backward", 21},
    {"_upsample_nearest_exact2d", 4.5}, {"_upsample_nearest_exact2d_backward", 8}, {"upsample_bicubic2d", 4.5},
    {"upsample_bicubic2d_backward", 12}, {"_upsample_bilinear2d_aa", 16}, {"_upsample_bilinear2d_aa_backward", 10},
    {"_upsample_bicubic2d_aa", 16}, {"_upsample_bicubic2d_aa_backward", 10}, {"upsample_nearest3d", 4.5},
    {"upsample_nearest3d_backward", 11}, {"_upsample_nearest_exact3d", 4.5},
    {"_upsample_nearest_exact3d_backward", 11}, {"upsample_trilinear3d", 4.5}, {"upsample_trilinear3d_backward", 13},
    /* the same, because each row is read once for each other row */
    {"_cdist_forward", 10}, {"_cdist_backward", 11.5}, {"_pdist_forward", 6.5}, {"_pdist_backward", 1.5},
    {"searchsorted", 8}, {"bucketize", 8},
    /* the same, because statistics of a row or a channel are computed before the row is written */
    {"native_layer_norm", 12.5}, {"native_batch_norm", 17}, {"nll_loss_forward", 7}, {"nll_loss2d_forward", 5},
    /* products of integers and of 16-bit floats: operands and result are converted to the compute type, of 8 bytes
       or 4 */
    {"mm", 14.5}, {"bmm", 19}, {"addmm", 21}, {"addmm_", 1.5}, {"baddbmm", 23.5}, {"baddbmm_", 24.5},
    {"addbmm", 14.5}, {"addbmm_", 14.5}, {"mv", 12.5}, {"addmv", 12.5}, {"addmv_", 12.5}, {"dot", 17}, {"vdot", 17},
    /* scores of a block of rows with all keys, and the output, in the compute type */
    {"_scaled_dot_product_flash_attention_for_cpu", 5},
    /* a key and an index for each element, and memory for merging */
    {"sort", 17}, {"mode", 17},
    /* sums in halves of most of the places are made in float32, as PyTorch makes them; means need counts; lists of
       indices become offsets */
    {"scatter_reduce", 1.5}, {"scatter_reduce_", 1.5}, {"index_reduce", 7}, {"index_reduce_", 7}, {"index_put", 1.5},
    {"index_put_", 1.5}, {"put", 1.5}, {"put_", 1.5}, {"embedding_dense_backward", 8},
    /* logarithms, quotients and products in halves, each rounded as PyTorch rounds it, and masks of what is zero and NaN */
    {"xlogy", 12.5}, {"xlogy_", 12.5}, {"logit", 8.5}, {"logit_", 8.5},
    /* powers of matrices of halves, and their sums, in float32; parts of halves by way of double; rows in float32 */
    {"linalg_matrix_exp", 80}, {"frexp", 16.5}, {"embedding_renorm", 4.5}, {"embedding_renorm_", 4.5},
    {NULL, 1}};
static double growth_bound(const opd_op *op) {
    int i = 0;
    while (growth_more[i].name) {
        const char *const one[] = {growth_more[i].name, NULL};
        if (named(op, one)) { break; }
        i++;
    }
    return growth_more[i].bytes;
}

/* Writes the case's text with larger sizes of tensors: sizes of at least `least` are multiplied; with `lists`,
   numbers in lists, too. */
static void growth_text(const char *text, const char *end, int64_t by, long long least, bool lists, char *out, size_t cap) {
    int square = 0, round = 0;
    size_t n = 0;
    for (; text < end && n + 24 < cap; text++) {
        square += (*text == '[') - (*text == ']');
        round += (*text == '(') - (*text == ')');
        if ((square || (round && lists)) && *text >= '0' && *text <= '9') {
            char *rest;
            const long long v = strtoll(text, &rest, 10);
            n += (size_t)snprintf(out + n, cap - n, "%lld", v >= least && *rest != '.' ? v * (long long)by : v);
            text = rest - 1;
        } else { out[n++] = *text; }
    }
    out[n] = 0;
}
/* The factor for sizes from `least` on, with which the largest tensor gets GROWTH_ELEMENTS, and all sizes that differ
   multiplied 8 times that at most.  0: no tensor with elements.  Gives the largest size. */
static int64_t growth_factor(const char *text, const char *end, long long least, long long *largest) {
    double most = 0, all = 1, by;
    long long seen[CASE_LIST];
    int count = 0, dims = 1, k;
    *largest = 0;
    for (; text < end; text++) {
        double n = 1;
        int ndim = 0;
        char *rest;
        if (*text != '[') { continue; }
        for (text++; text < end && *text != ']'; text = rest + (*rest == ',')) {
            const long long v = strtoll(text, &rest, 10);
            if (rest == text) { break; }
            n *= (double)v;
            ndim += v >= least;
            if (v > *largest) { *largest = v; }
            for (k = 0; k < count && seen[k] != v; k++) { }
            if (k == count && v >= least && count < CASE_LIST) { seen[count++] = v; all *= (double)v; }
        }
        if (n > most) { most = n; dims = ndim ? ndim : 1; }
    }
    if (most < 1) { return 0; }
    by = pow(GROWTH_ELEMENTS / most, 1.0 / dims);
    return (int64_t)fmax(1, fmin(by, count ? pow(8.0 * GROWTH_ELEMENTS / all, 1.0 / count) : by));
}
/* A tensor as the meta one is; numbers between 0.5 and 1, of whole numbers 0 and 1: some, and copies of them. */
static opd_tensor *growth_tensor(const opd_tensor *meta) {
    opd_tensor *t = opd_tensor_new(opd_ints_of(opd_sizes(meta), opd_ndim(meta)), opd_dtype(meta));
    const int64_t n = t ? opd_numel(t) : 0, some = 97 * 2;
    const size_t size = n ? opd_dtype_size(opd_dtype(t)) : 0;
    char *p = t ? (char *)opd_data(t) : NULL;
    int64_t i;
    for (i = 0; i < n && i < some; i++) {
        switch (opd_dtype(t)) {
        case OPD_BFLOAT16: ((uint16_t *)(void *)p)[i] = (uint16_t)(0x3f00 + i % 97); break;
        case OPD_INT64: ((int64_t *)(void *)p)[i] = i % 2; break;
        default: p[i] = (char)(i % 2); break;
        }
    }
    for (i = some; i < n; i += some) {
        memcpy(p + (size_t)i * size, p, (size_t)(n - i < some ? n - i : some) * size);
    }
    return t;
}
static void growth_fill(op_case *c, int64_t *most) {
    int i, k;
    for (i = 0; i < c->nargs; i++) {
        opd_value *v = &c->args[i];
        if (v->tag == OPD_TAG_TENSOR && v->u.t) { v->u.t = growth_tensor(v->u.t); }
        for (k = 0; v->tag == OPD_TAG_TENSORS && k < v->n; k++) {
            if (v->u.tensors[k]) { c->lists[i].tensors[k] = growth_tensor(v->u.tensors[k]); }
        }
        if (v->tag == OPD_TAG_TENSOR && v->u.t && opd_numel(v->u.t) > *most) { *most = opd_numel(v->u.t); }
        for (k = 0; v->tag == OPD_TAG_TENSORS && k < v->n; k++) {
            if (v->u.tensors[k] && opd_numel(v->u.tensors[k]) > *most) { *most = opd_numel(v->u.tensors[k]); }
        }
    }
}
/* What shapes alone say: the operator takes the case, and its results are not much larger than operands. */
static bool growth_is_small(const op_case *c) {
    opd_value rets[MOST_RESULTS];
    opd_tensor *results[MOST_RESULTS];
    int i, n;
    bool small = true;
    if (!opd_ok() || opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs) != 0) { return false; }
    n = results_of(c->op, rets, results);
    for (i = 0; i < n; i++) { small = small && opd_numel(results[i]) <= 8 * GROWTH_ELEMENTS; }
    return small;
}
/* Runs one case.  Returns false if the operator refuses it. */
static bool growth_run(const opd_op *op, const char *text, opd_scalar_type dtype, int *ran) {
    op_case c;
    opd_value rets[MOST_RESULTS];
    opd_tensor *results[MOST_RESULTS];
    int64_t most = 0, extra;
    bool fits = false;
    const char *full = text;
    int i, n;
    memset(&c, 0, sizeof c);
    c.op = op; c.dtype = dtype; c.meta = true;
    OPD_SCOPE {
        if (case_read_next(&c, &text) && growth_is_small(&c)) {
            growth_fill(&c, &most);
            opd_memory_reset_peak();
            if (opd_ok() && opd_call_all((opd_op *)(uintptr_t)op, rets, c.args, c.nargs) == 0) {
                const opd_memory m = opd_memory_stats();
                fits = true;
                n = results_of(op, rets, results);
                for (i = 0; i < n; i++) { if (opd_numel(results[i]) > most) { most = opd_numel(results[i]); } }
                extra = m.peak - m.live;
                ++*ran;
                if ((double)extra > growth_bound(op) * (double)most + GROWTH_SLACK) {
                    printf("%s(%s) of %s: %.1f bytes an element besides its operands\n", opd_op_name(op), full,
                           opd_dtype_name(dtype), (double)extra / (double)most);
                    CHECK((double)extra <= growth_bound(op) * (double)most + GROWTH_SLACK);
                }
            }
        }
        if (!opd_ok()) { opd_error_clear(); }
    }
    return fits;
}
static int growth_case(const opd_op *op, const char *at, const char *end, opd_scalar_type dtype, long long least,
                       long long *largest) {
    char text[1000];
    int ran = 0, lists;
    const int64_t by = growth_factor(at, end, least, largest);
    for (lists = 0; lists < 2 && by > 1; lists++) {
        growth_text(at, end, by, least, lists == 1, text, sizeof text);
        if (growth_run(op, text, dtype, &ran)) { break; }
    }
    return ran;
}
static void growth_walk(opd_scalar_type dtype) {
    const opd_op *op;
    int ran = 0;
    const int threads = opd_threads();
    opd_threads_set(1);
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const opd_op_desc *card = opd_op_card(op);
        const char *at, *end;
        if (!card || !card->cpu || !card->cases || !check_walks(opd_op_name(op))) { continue; }
        for (at = card->cases; *at && (at == card->cases || growth_bound(op) <= 1); at = *end ? end + 1 : end) {
            long long largest;
            end = at + strcspn(at, ";");
            ran += growth_case(op, at, end, dtype, 2, &largest);
            if (largest > 2) { ran += growth_case(op, at, end, dtype, largest, &largest); }   /* one long dim */
        }
    }
    opd_threads_set(threads);
    CHECK(ran > (getenv("CHECK_PART") ? 10 : 100));
}
TEST(operators_on_bytes_need_no_copies_in_wider_numbers) { growth_walk(OPD_UINT8); }
TEST(operators_on_bfloat16_need_no_copies_in_wider_numbers) { growth_walk(OPD_BFLOAT16); }

//-- few indices into a large tensor -------------------------------------------------------------------------------------

static opd_tensor *few_random(int seed, opd_ints sizes, opd_scalar_type dtype) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_FLOAT32);
    int64_t i, n = opd_numel(t);
    for (i = 0; i < n; i++) { opd_data_f32(t)[i] = (float)floor(case_random(seed, i) * 40 - (dtype == OPD_UINT8 ? 0 : 20)) / (dtype == OPD_INT32 || dtype == OPD_UINT8 ? 1 : 7); }
    return opd_to_dtype(t, dtype);
}
static opd_tensor *few_index(int seed, opd_ints sizes, int64_t below) {
    opd_tensor *t = opd_tensor_new(sizes, OPD_INT64);
    int64_t i;
    for (i = 0; i < opd_numel(t); i++) { opd_data_i64(t)[i] = (int64_t)(case_random(seed, i) * (double)below); }
    return t;
}
#define FEW_KINDS 16
/* One of the operators that write at indices, on self [n,8]. */
static opd_tensor *few_call(int kind, opd_tensor *self, int seed) {
    static const char *const how[] = {"sum", "prod", "mean", "amax", "amin"};
    const opd_scalar_type dtype = opd_dtype(self);
    opd_tensor *list = few_index(seed, OPD_INTS(12), 5), *each = few_index(seed, OPD_INTS(12, 8), 5);
    opd_tensor *src = few_random(seed + 1, OPD_INTS(12, 8), dtype), *pair[2];
    if (kind < 10) { return opd_scatter_reduce_two_full(self, 0, kind < 5 ? each : opd_expand_as(opd_reshape(list, OPD_INTS(12, 1)), src), src, how[kind % 5], seed % 2); }
    if (kind == 10) { return opd_index_add_full(self, 0, list, src, opd_value_int(3)); }
    if (kind == 11) { return opd_scatter_add(self, 0, each, src); }
    if (kind == 12) { return opd_index_reduce_full(self, 0, list, src, how[1 + seed % 4], seed % 2); }
    if (kind == 13) { return opd_index_put(self, opd_tensors_of(&list, 1), src, true); }
    pair[0] = few_index(seed, OPD_INTS(3, 4), 5); pair[1] = few_index(seed + 2, OPD_INTS(4), 8);
    if (kind == 14) { return opd_index_put(self, opd_tensors_of(pair, 2), few_random(seed, OPD_INTS(3, 4), dtype), true); }
    return opd_put_full(self, list, opd_reshape(opd_narrow(src, 1, 0, 1), OPD_INTS(12)), true);
}
/* Writes to the first rows give the same as in a tensor that has only these rows. */
TEST(few_indices_write_what_many_would) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16, OPD_FLOAT16, OPD_INT32, OPD_UINT8};
    int d, kind, seed, strided;
    for (d = 0; d < 6; d++) {
        for (kind = 0; kind < FEW_KINDS; kind++) {
            for (seed = 1; seed < 4; seed++) {
                for (strided = 0; strided < 2; strided++) {
                    OPD_SCOPE {
                        opd_tensor *large = few_random(7, OPD_INTS(400, 8), dtypes[d]), *small, *a, *b;
                        if (strided) { large = opd_t(opd_contiguous(opd_t(large))); }
                        small = opd_contiguous(opd_narrow(large, 0, 0, 5));
                        a = opd_narrow(few_call(kind, large, seed), 0, 0, 5);
                        b = few_call(kind, small, seed);
                        if (!opd_ok() || memcmp(opd_data(opd_contiguous(a)), opd_data(b), (size_t)opd_numel(b) * opd_dtype_size(dtypes[d])) != 0) {
                            printf("kind %d of %s, seed %d: %s\n", kind, opd_dtype_name(dtypes[d]), seed, opd_error_message());
                            opd_print(a); opd_print(b);
                            CHECK(opd_ok() && !"the same");
                            opd_error_clear();
                        }
                    }
                }
            }
        }
    }
    CHECK(opd_ok());
}
/* Returns the offset of element (i, j, k) of a tensor of 3 dims, with index x along dim. */
static int64_t walk_at(const opd_tensor *t, const int64_t *at, int dim, int64_t x) {
    int64_t p = 0;
    int d;
    for (d = 0; d < 3; d++) { p += (d == dim ? x : at[d]) * opd_strides(t)[d]; }
    return p;
}
/* gather, scatter and scatter_add in three dims, in all layouts, compared with a loop; small, and large enough for
   several threads. */
TEST(indexed_walks_of_three_dims) {
    static const int orders[3][3] = {{0, 1, 2}, {2, 0, 1}, {1, 2, 0}};
    const int threads = opd_threads();
    int large, dim, o, kind;
    opd_threads_set(3);
    for (large = 0; large < 2; large++) {
        for (dim = 0; dim < 3; dim++) {
            for (o = 0; o < 9; o++) {
                for (kind = 0; kind < 3; kind++) {
                    OPD_SCOPE {
                        const int64_t n[2][3] = {{3, 4, 5}, {30, 40, 60}};
                        const int *p = orders[o % 3], *q = orders[o / 3];
                        const int64_t w[3] = {p[0], p[1], p[2]}, b[3] = {q[0], q[1], q[2]};
                        const opd_ints sizes = opd_ints_of(n[large], 3), way = opd_ints_of(w, 3), back = opd_ints_of(b, 3);
                        opd_tensor *self = opd_permute(few_random(1, sizes, OPD_FLOAT32), way);
                        opd_tensor *index = opd_permute(few_index(2, sizes, large ? 30 : 3), way), *got, *want;
                        opd_tensor *src = few_random(3, OPD_INTS(opd_size(self, 0), opd_size(self, 1), opd_size(self, 2)), OPD_FLOAT32);
                        int64_t at[3], *x = opd_data_i64(index);
                        float *to;
                        if (o >= 3) { src = opd_permute(opd_contiguous(opd_permute(src, back)), OPD_INTS((q[1] == 0) + 2 * (q[2] == 0), (q[1] == 1) + 2 * (q[2] == 1), (q[1] == 2) + 2 * (q[2] == 2))); }
                        want = kind == 0 ? opd_zeros_like(src) : opd_clone(self);
                        got = kind == 0 ? opd_gather(self, dim, index) : kind == 1 ? opd_scatter(self, dim, index, src) : opd_scatter_add(self, dim, index, src);
                        to = opd_data_f32(want);
                        for (at[0] = 0; at[0] < opd_size(self, 0); at[0]++) {
                            for (at[1] = 0; at[1] < opd_size(self, 1); at[1]++) {
                                for (at[2] = 0; at[2] < opd_size(self, 2); at[2]++) {
                                    const int64_t i = x[walk_at(index, at, dim, at[dim])];
                                    const float v = opd_data_f32(src)[walk_at(src, at, dim, at[dim])];
                                    if (kind == 0) { to[walk_at(want, at, dim, at[dim])] = opd_data_f32(self)[walk_at(self, at, dim, i)]; }
                                    if (kind == 1) { to[walk_at(want, at, dim, i)] = v; }
                                    if (kind == 2) { to[walk_at(want, at, dim, i)] += v; }
                                }
                            }
                        }
                        CHECK(opd_ok() && opd_item_f64(opd_max(opd_abs(opd_sub(got, want)))) == 0);
                        opd_error_clear();
                    }
                }
            }
        }
    }
    opd_threads_set(threads);
}
/* An expanded index tensor counts each of its elements. */
TEST(expanded_indices_are_read_by_their_strides) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_BFLOAT16, OPD_UINT8};
    int d, large, k;
    for (d = 0; d < 3; d++) {
        for (large = 0; large < 2; large++) {
            OPD_SCOPE {
                opd_tensor *self = opd_ones(OPD_INTS(large ? 400 : 3, 4), dtypes[d]), *src = opd_full(OPD_INTS(5, 4), opd_value_int(2), dtypes[d]);
                opd_tensor *list = opd_expand(opd_ones(OPD_INTS(1), OPD_INT64), OPD_INTS(5)), *got[4];
                static const double want[] = {11, 2, 32, 1};
                got[0] = opd_index_add(self, 0, list, src);
                got[1] = opd_index_copy(self, 0, list, src);
                got[2] = opd_index_reduce(self, 0, list, src, "prod");
                got[3] = opd_index_select(self, 0, list);
                for (k = 0; k < 4 && opd_ok(); k++) {
                    CHECK(opd_item_f64(opd_min(opd_select(got[k], 0, 1))) == want[k] && opd_item_f64(opd_max(opd_select(got[k], 0, 1))) == want[k]);
                    CHECK(k == 3 || opd_item_f64(opd_max(opd_select(got[k], 0, 0))) == 1);
                }
                CHECK(opd_ok());
                opd_error_clear();
            }
        }
    }
}
TEST(few_indices_need_little_memory) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT64, OPD_BFLOAT16, OPD_INT32, OPD_UINT8};
    int d, kind, strided;
    for (d = 0; d < 4; d++) {
        for (kind = 0; kind < FEW_KINDS; kind++) {
            for (strided = 0; strided < 2; strided++) {
                OPD_SCOPE {
                    opd_tensor *large = opd_zeros(strided ? OPD_INTS(8, 50000) : OPD_INTS(50000, 8), dtypes[d]);
                    opd_memory m;
                    if (strided) { large = opd_t(large); }
                    opd_memory_reset_peak();
                    CHECK(few_call(kind, large, 1));
                    m = opd_memory_stats();
                    if (m.peak - m.live > 30000) { printf("kind %d of %s: %d bytes\n", kind, opd_dtype_name(dtypes[d]), (int)(m.peak - m.live)); }
                    CHECK(m.peak - m.live <= 30000);
                }
            }
        }
    }
    CHECK(opd_ok());
}

//-- in place -------------------------------------------------------------------------------------------------------

/* Random numbers, and sums along a line, are written in place without a copy. */
TEST(writing_in_place_needs_no_copy) {
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_INT32, OPD_INT64, OPD_FLOAT32, OPD_BFLOAT16, OPD_FLOAT16};
    const int threads = opd_threads();
    int d, kind;
    opd_threads_set(1);
    for (d = 0; d < 6; d++) {
        for (kind = 0; kind < 7; kind++) {
            static const char *const names[] = {"aten::random_", "aten::bernoulli_.float", "aten::uniform_", "aten::normal_",
                                                "aten::exponential_", "aten::cumsum_", "aten::cumprod_"};
            if (kind > 1 && kind < 5 && d < 3) { continue; }          /* of floating point only */
            if (kind > 4 && d < 2) { continue; }  /* sums of whole numbers are of int64 */
            OPD_SCOPE {
                opd_tensor *t = opd_ones(OPD_INTS(400, 500), dtypes[d]), *r;
                opd_op *op = opd_find(names[kind]);
                opd_memory m;
                opd_memory_reset_peak();
                r = kind == 0 ? OPD_CALL(op, t) : kind == 1 || kind == 4 ? OPD_CALL(op, t, 0.5)
                    : kind < 4 ? OPD_CALL(op, t, 0.0, 2.0) : OPD_CALL(op, t, 0);
                m = opd_memory_stats();
                CHECK(r == t);
                if (m.peak - m.live > 80000) { printf("%s of %s: %d bytes\n", names[kind], opd_dtype_name(dtypes[d]), (int)(m.peak - m.live)); }
                CHECK(m.peak - m.live <= 80000);
            }
        }
    }
    opd_threads_set(threads);
    CHECK(opd_ok());
}
/* Scans in place give the same as into a new tensor, for any layout of self. */
TEST(scans_in_place_are_scans) {
    static const opd_scalar_type dtypes[] = {OPD_INT64, OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16};
    int d, dim, lies, product;
    for (d = 0; d < 4; d++) {
        for (dim = 0; dim < 2; dim++) {
            for (lies = 0; lies < 4; lies++) {
                for (product = 0; product < 2; product++) {
                    OPD_SCOPE {
                        opd_tensor *t = opd_to_dtype(few_random(3, OPD_INTS(70, 5000), OPD_FLOAT32), dtypes[d]), *want;
                        if (lies == 1) { t = opd_t(t); }
                        if (lies == 2) { t = opd_narrow(t, 1, 7, 300); }
                        if (lies == 3) { t = opd_narrow(t, 0, 1, 1); }
                        want = product ? opd_cumprod(t, dim) : opd_cumsum(t, dim);
                        CHECK(OPD_CALL(opd_find(product ? "aten::cumprod_" : "aten::cumsum_"), t, dim) == t);
                        t = opd_contiguous(t); want = opd_contiguous(want);
                        CHECK(opd_ok() && memcmp(opd_data(t), opd_data(want), (size_t)opd_numel(t) * opd_dtype_size(dtypes[d])) == 0);
                    }
                }
            }
        }
    }
    CHECK(opd_ok());
}

//-- selection ---------------------------------------------------------------------------------------------------------

/* Numbers with many equal ones, and with NaN and zeros of both signs where the dtype has them. */
static opd_tensor *select_numbers(int seed, int64_t n, int range, opd_scalar_type dtype) {
    opd_tensor *t = opd_tensor_new(OPD_INTS(2, n), OPD_FLOAT32);
    int64_t i;
    for (i = 0; i < 2 * n; i++) {
        const double v = floor(case_random(seed, i) * range) - (dtype == OPD_UINT8 ? 0 : range / 2);
        opd_data_f32(t)[i] = (float)(v == 1 && opd_dtype_is_floating(dtype) && seed % 2 ? (double)NAN : v == 0 ? -0.0 * (double)(i % 2) : v);
    }
    return opd_to_dtype(t, dtype);
}
static bool select_same(opd_tensor *const *a, opd_tensor *const *b, size_t size) {
    return opd_ok() && memcmp(opd_data(a[0]), opd_data(opd_contiguous(b[0])), (size_t)opd_numel(a[0]) * size) == 0 &&
           memcmp(opd_data(a[1]), opd_data(opd_contiguous(b[1])), (size_t)opd_numel(a[1]) * 8) == 0;
}
/* topk, kthvalue and the medians give the same elements as a stable sort of the line. */
TEST(selection_gives_what_sorting_would) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16, OPD_INT64, OPD_UINT8};
    static const int64_t lengths[] = {1, 2, 63, 65, 700, 5000};
    int d, l, range, strided;
    for (d = 0; d < 5; d++) {
        for (l = 0; l < 6; l++) {
            for (range = 3; range < 200; range += 95) {
                for (strided = 0; strided < 2; strided++) {
                    const int64_t n = lengths[l], k = 1 + (n * range / 200);
                    const size_t size = opd_dtype_size(dtypes[d]);
                    OPD_SCOPE {
                        opd_tensor *t = select_numbers(l + range, n, range, dtypes[d]), *up[2], *down[2], *got[2], *want[2];
                        int64_t nans = opd_dtype_is_floating(dtypes[d]) ? opd_item_i64(opd_sum(opd_isnan(opd_select(t, 0, 0)))) : 0;
                        if (strided) { t = opd_t(opd_contiguous(opd_t(t))); }
                        CHECK_INT(opd_sort_stable(up, t, opd_value_bool(true), 1, false), 0);
                        CHECK_INT(opd_sort_stable(down, t, opd_value_bool(true), 1, true), 0);
                        CHECK_INT(opd_topk_full(got, t, k, 1, true, true), 0);
                        want[0] = opd_narrow(down[0], 1, 0, k); want[1] = opd_narrow(down[1], 1, 0, k);
                        CHECK(select_same(got, want, size));
                        CHECK_INT(opd_topk_full(got, t, k, 1, false, true), 0);
                        want[0] = opd_narrow(up[0], 1, 0, k); want[1] = opd_narrow(up[1], 1, 0, k);
                        CHECK(select_same(got, want, size));
                        CHECK_INT(opd_kthvalue_full(got, t, k, 1, true), 0);
                        want[0] = opd_narrow(up[0], 1, k - 1, 1); want[1] = opd_narrow(up[1], 1, k - 1, 1);
                        CHECK(select_same(got, want, size));
                        t = opd_narrow(t, 0, 0, 1);
                        CHECK_INT(opd_median_dim(got, t, 1, true), 0);
                        want[0] = opd_narrow(opd_narrow(up[0], 0, 0, 1), 1, nans ? n - nans : (n - 1) / 2, 1);
                        want[1] = opd_narrow(opd_narrow(up[1], 0, 0, 1), 1, nans ? n - nans : (n - 1) / 2, 1);
                        CHECK(select_same(got, want, size));
                        CHECK_INT(opd_nanmedian_dim(got, t, 1, true), 0);
                        want[0] = opd_narrow(opd_narrow(up[0], 0, 0, 1), 1, nans == n ? 0 : (n - nans - 1) / 2, 1);
                        want[1] = opd_narrow(opd_narrow(up[1], 0, 0, 1), 1, nans == n ? 0 : (n - nans - 1) / 2, 1);
                        CHECK(select_same(got, want, size));
                    }
                }
            }
        }
    }
}
/* Whether a stable sort puts element i before element j > i where it does not have to move them: they are equal, or in
   order; NaN is above all. */
static bool sort_in_order(double a, double b, bool descending) {
    if (descending) { return isnan(a) || (!isnan(b) && a >= b); }
    return isnan(b) || (!isnan(a) && a <= b);
}
static bool sort_equal(double a, double b) { return a == b || (isnan(a) && isnan(b)); }
/* The results of sort are in order, equal elements keep their order, and the indices are right. */
TEST(sorting_by_merging_and_by_digits) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16, OPD_FLOAT16, OPD_INT64, OPD_INT32,
                                             OPD_INT16, OPD_INT8, OPD_UINT8, OPD_BOOL};
    static const int64_t lengths[] = {1, 17, 127, 128, 511, 513, 3000};
    for (int d = 0; d < 10; d++) {
        for (int l = 0; l < 7; l++) {
            for (int way = 0; way < 8; way++) {
                const int64_t n = lengths[l];
                const bool descending = way & 1, strided = (way >> 1) & 1;
                const int range = dtypes[d] == OPD_BOOL ? 2 : way & 4 && opd_dtype_size(dtypes[d]) >= 4 ? 1 << 22 : 100;
                OPD_SCOPE {
                    opd_tensor *t = select_numbers(l + way + 1, n, range, dtypes[d]), *got[2];
                    if (way & 4 && dtypes[d] == OPD_INT64) { t = opd_mul(t, opd_full(OPD_INTS(1), OPD_V(1LL << 40), OPD_INT64)); }
                    if (strided) { t = opd_t(opd_contiguous(opd_t(t))); }
                    CHECK_INT(opd_sort_stable(got, t, opd_value_bool(true), 1, descending), 0);
                    if (!opd_ok()) { return; }
                    const double *x = opd_data_f64(opd_contiguous(opd_to_dtype(t, OPD_FLOAT64)));
                    const double *y = opd_data_f64(opd_contiguous(opd_to_dtype(got[0], OPD_FLOAT64)));
                    const int64_t *at = opd_data_i64(opd_contiguous(got[1]));
                    bool right = true;
                    int64_t sum = 0;
                    for (int64_t i = 0; i < 2 * n; i++) {
                        right = right && at[i] >= 0 && at[i] < n && sort_equal(y[i], x[i / n * n + at[i]]);
                        sum += at[i];
                        if (i % n == 0 || !right) { continue; }
                        right = sort_in_order(y[i - 1], y[i], descending) &&
                                (!sort_equal(y[i - 1], y[i]) || at[i - 1] < at[i]);
                    }
                    CHECK(right);
                    CHECK_INT(sum, n * (n - 1));
                }
            }
        }
    }
}
/* In a rising line, each element is at first among the largest ones. */
TEST(topk_of_lines_in_order) {
    for (int falls = 0; falls < 2; falls++) {
        OPD_SCOPE {
            opd_tensor *line = opd_arange(OPD_V(20000), OPD_FLOAT32), *got[2];
            if (falls) { line = opd_flip(line, OPD_INTS(0)); }
            CHECK_INT(opd_topk(got, line, 20), 0);
            for (int i = 0; i < 20; i++) {
                CHECK_INT((int64_t)opd_data_f32(got[0])[i], 19999 - i);
                CHECK_INT(opd_data_i64(got[1])[i], falls ? i : 19999 - i);
            }
        }
    }
}
//-- long rows and columns ----------------------------------------------------------------------------------------------

/* What a function gives, and its gradients, in a dtype. */
enum { WIDE_SOFTMAX, WIDE_LOG_SOFTMAX, WIDE_LAYER_NORM, WIDE_LAYER_NORM_PLAIN, WIDE_GROUP_NORM, WIDE_KINDS };
static int wide_run(int kind, opd_tensor *const *inputs, opd_scalar_type dtype, opd_tensor **out) {
    opd_tensor *in[3], *y, *grad;
    opd_backward_options options;
    memset(&options, 0, sizeof options);
    const int count = kind == WIDE_LAYER_NORM || kind == WIDE_GROUP_NORM ? 3 : 1;
    for (int i = 0; i < count; i++) { in[i] = opd_tensor_set_requires_grad(opd_clone(opd_to_dtype(inputs[i], dtype)), true); }
    switch (kind) {
        case WIDE_SOFTMAX: y = opd_softmax(in[0], 1); break;
        case WIDE_LOG_SOFTMAX: y = opd__log_softmax(in[0], 1, false); break;
        case WIDE_LAYER_NORM: y = opd_layer_norm_full(in[0], OPD_INTS(opd_size(in[0], 2)), in[1], in[2], 1e-5, true); break;
        case WIDE_LAYER_NORM_PLAIN: y = opd_layer_norm(in[0], OPD_INTS(opd_size(in[0], 2)), NULL, NULL, 1e-5); break;
        default: y = opd_group_norm_full(in[0], 3, in[1], in[2], 1e-5, true);
    }
    grad = opd_to_dtype(inputs[3], dtype);
    options.grad_outputs = &grad;
    out[0] = y;
    return y ? opd_autograd_grad(&y, 1, in, count, &options, out + 1) : -1;
}
/* Rows and columns of any length give the same in 16-bit dtypes as in float64, also for adjacent lines. */
TEST(long_rows_and_columns) {
    static const int64_t sizes[][3] = {{2, 21, 40}, {1, 300, 9}, {3, 6, 257}, {2, 3, 15}, {4, 33, 600}, {130, 3, 16}};
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT16, OPD_BFLOAT16};
    static const double most[] = {2e-5, 0.02, 0.15};
    for (int s = 0; s < 6; s++) {
        for (int kind = 0; kind < WIDE_KINDS; kind++) {
            for (int d = 0; d < 3; d++) {
                if (kind == WIDE_GROUP_NORM && sizes[s][1] % 3) { continue; }
                OPD_SCOPE {
                    const int64_t across = kind == WIDE_GROUP_NORM ? sizes[s][1] : sizes[s][2];
                    opd_tensor *in[4], *got[4], *want[4];
                    in[0] = opd_to_dtype(opd_randn(opd_ints_of(sizes[s], 3), OPD_FLOAT32), dtypes[d]);
                    in[1] = opd_to_dtype(opd_randn(OPD_INTS(across), OPD_FLOAT32), dtypes[d]);
                    in[2] = opd_to_dtype(opd_randn(OPD_INTS(across), OPD_FLOAT32), dtypes[d]);
                    in[3] = opd_to_dtype(opd_randn(opd_ints_of(sizes[s], 3), OPD_FLOAT32), dtypes[d]);
                    CHECK_INT(wide_run(kind, in, dtypes[d], got), 0);
                    CHECK_INT(wide_run(kind, in, OPD_FLOAT64, want), 0);
                    for (int i = 0; i < (kind == WIDE_LAYER_NORM || kind == WIDE_GROUP_NORM ? 4 : 2) && opd_ok(); i++) {
                        opd_tensor *delta = opd_abs(opd_sub(opd_to_dtype(got[i], OPD_FLOAT64), want[i]));
                        const double off = opd_item_f64(opd_max(delta)), top = opd_item_f64(opd_max(opd_abs(want[i])));
                        if (!(off <= most[d] * (top + 0.01))) { printf("kind %d sizes %d dtype %d result %d\n", kind, s, d, i); }
                        CHECK(off <= most[d] * (top + 0.01));
                    }
                }
            }
        }
    }
    CHECK(opd_ok());
}
/* Softmax of columns with infinities or a NaN gives the same as softmax of rows. */
TEST(softmax_of_columns_with_infinities) {
    OPD_SCOPE {
        opd_tensor *x = opd_randn(OPD_INTS(20, 33), OPD_FLOAT32);
        for (int i = 0; i < 20; i++) {
            opd_data_f32(x)[i * 33 + 3] = -HUGE_VALF;
            if (i < 19) { opd_data_f32(x)[i * 33 + 17] = -HUGE_VALF; }
        }
        opd_data_f32(x)[5 * 33 + 30] = NAN;
        opd_data_f32(x)[5 * 33 + 31] = HUGE_VALF;
        opd_tensor *columns = opd_softmax(x, 0), *lines = opd_t(opd_softmax(opd_contiguous(opd_t(x)), 1));
        CHECK_INT(opd_item_i64(opd_all(opd_isclose_full(columns, lines, 1e-6, 1e-7, true))), 1);
        CHECK(isnan(opd_data_f32(columns)[3]) && isnan(opd_data_f32(columns)[30]) && isnan(opd_data_f32(columns)[31]));
        CHECK(opd_data_f32(columns)[19 * 33 + 17] == 1);
    }
}
CHECK_MAIN()
