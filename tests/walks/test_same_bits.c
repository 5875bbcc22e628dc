/* The mode of same bits (opd_same_bits_set): each operator with sample arguments, small and large, gives the same bits
   with AVX2 and AVX-512 and with any number of threads; its gradients, too.  A row, image or query gets the same bits
   alone and in any batch.  With OPD_TEST_LIST in the environment, prints a hash of each call instead, with the level
   and mode that the environment sets, so that machines can be compared. */
#include "../inside.h"
#include "../cases.h"

/* Adds the elements of a tensor to a hash (FNV-1a), which does not depend on the order of bytes, or on signs of NaN. */
static uint64_t hash_add(uint64_t hash, opd_tensor *tensor) {
    if (!tensor || opd_dtype_size(opd_dtype(tensor)) == 0) { return hash; }
    if (opd_dtype_is_complex(opd_dtype(tensor))) { tensor = opd_view_as_real(opd_resolve_conj(tensor)); }
    tensor = opd_contiguous(opd_to_dtype(opd_detach(tensor), OPD_FLOAT64));
    const double *const x = tensor ? opd_data_f64(tensor) : NULL;
    for (int64_t i = 0; x && i < opd_numel(tensor); i++) {
        uint64_t bits = 0x7ff8000000000000u;
        if (x[i] == x[i]) { memcpy(&bits, &x[i], sizeof bits); }
        hash = (hash ^ bits) * 1099511628211u;
        hash ^= hash >> 29;
    }
    return hash;
}
static bool has_gradient(const opd_tensor *tensor) {
    return opd_dtype_is_floating(opd_dtype(tensor)) || opd_dtype_is_complex(opd_dtype(tensor));
}
/* Calls the operator with case number `at` of `text`, and computes gradients.  Returns a hash of the results and
   gradients, 1 if the call fails, or 0 if there is no such case. */
static uint64_t run(const opd_op *op, const char *text, int at, opd_scalar_type dtype) {
    OPD_SCOPED;
    static op_case c;
    opd_value rets[OPD_MAX_ARGS];
    opd_tensor *out[MOST_RESULTS], *leaves[OPD_MAX_ARGS], *grads[OPD_MAX_ARGS], *sum = NULL;
    uint64_t hash = 14695981039346656037u;
    int nleaves = 0;
    memset(&c, 0, sizeof c);
    c.op = op;
    c.dtype = dtype;
    c.smooth = true;
    for (int i = 0; i <= at; i++) { if (!case_read_next(&c, &text)) { return 0; } }
    for (int i = 0; i < c.nargs && !opd_schema_is_mutable(opd_op_schema(op)); i++) {
        opd_tensor *const leaf = c.args[i].tag == OPD_TAG_TENSOR ? c.args[i].u.t : NULL;
        if (leaf && has_gradient(leaf)) { (void)opd_tensor_set_requires_grad(leaves[nleaves++] = leaf, true); }
    }
    const int count = opd_call_all((opd_op *)(uintptr_t)op, rets, c.args, c.nargs) ? -1 : results_of(op, rets, out);
    if (count < 0) { opd_error_clear(); return 1; }
    for (int i = 0; i < count; i++) {
        hash = hash_add(hash, out[i]);
        if (out[i] && opd_tensor_requires_grad(out[i]) && has_gradient(out[i])) {
            opd_tensor *const pairs = opd_dtype_is_complex(opd_dtype(out[i])) ? opd_view_as_real(opd_resolve_conj(out[i])) : out[i];
            opd_tensor *const squares = opd_sum(opd_mul(pairs, pairs));
            sum = sum ? opd_add(sum, opd_to_dtype(squares, opd_dtype(sum))) : squares;
        }
    }
    opd_error_clear();
    if (sum && nleaves && opd_autograd_grad(&sum, 1, leaves, nleaves, NULL, grads) == 0) {
        for (int i = 0; i < nleaves; i++) { hash = hash_add(hash, grads[i]); }
    }
    opd_error_clear();
    return hash | 2;
}
static void run_operator(void *user) {
    const opd_op *const op = (const opd_op *)user;
    enum { KINDS = 5, SIZES = 3 };
    static const opd_scalar_type dtypes[KINDS] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16, OPD_COMPLEX64, OPD_COMPLEX128};
    /* what the test runs: float32; float64 and complex64 of large sizes; complex128 of long ones */
    static const bool tested[SIZES][KINDS] = {{true}, {true, false, false, false, true}, {true, true, false, true}};
    static char text[1 << 14];
    const bool list = getenv("OPD_TEST_LIST") != NULL;
    for (int k = 0; k < SIZES * KINDS; k++) {
        const int size = k / KINDS;                 /* 0: the sample arguments; 1: longer ones; 2: larger ones */
        const opd_scalar_type dtype = dtypes[k % KINDS];
        if (!list && !tested[size][k % KINDS]) { continue; }
        const char *const cases = opd_op_card(op)->cases;
        if (size && !case_enlarge(cases, text, sizeof text, size > 1, 3, 1 << 15)) { continue; }
        const char *const arguments = size ? text : cases;
        for (int at = 0; at < 8; at++) {
            if (list) {
                const uint64_t hash = run(op, arguments, at, dtype);
                if (hash == 0) { break; }
                printf("= %s %d %d %016llx\n", opd_op_name(op), k, at, (unsigned long long)hash);
                continue;
            }
            const bool was = opd_same_bits_set(true);
            const int most = inside_cpu_most();
            const uint64_t hash = run(op, arguments, at, dtype);
            (void)inside_cpu_most_set(most < 1 ? most : 1);
            const bool levels = run(op, arguments, at, dtype) == hash;
            (void)inside_cpu_most_set(most);
            const int threads = opd_threads_set(3);
            const bool threaded = size < 2 || run(op, arguments, at, dtype) == hash;
            (void)opd_threads_set(threads);
            (void)opd_same_bits_set(was);
            if (hash == 0) { break; }
            (void)snprintf(what, sizeof what, "%s, case %d, %s%s", opd_op_name(op), at, opd_dtype_name(dtype),
                           size > 1 ? ", large" : size ? ", long" : "");
            (void)say(levels, "AVX-512 gives other bits");
            (void)say(threaded, "three threads give other bits");
        }
    }
    CHECK_OK();
}

//-- batches -----------------------------------------------------------------------------------------------------------

/* Computes job number `job` for a batch x, whose dim 0 is the batch. */
enum { LINEAR, LINEAR_FEW, LINEAR_ONE, MM, MM_TURNED, BMM, LINEAR_LONG, SOFTMAX, LAYER_NORM, RMS_NORM, GELU, SUM, MEAN, AMAX,
       CUMSUM, LOGSUMEXP, CONV, CONV_BIAS, CONV_DEEP, CONV_STRIDE, CONV_GROUPS, CONV_DEPTHWISE, CONV_POINT, CONV_TURNED, POOL,
       GROUP_NORM, ATTENTION, ATTENTION_CAUSAL, BLOCKS, BLOCKS_LONG, FFT, INVERSE, SVD, EIG, CDIST, COMPLEX, CONV_LINE, CONV_SPACE,
       BATCH_NORM, UPSAMPLE, SORTED, NORM, VAR, GRU, CDIST_FEW, JOBS };
static const char *const names[] = {
    "linear", "linear to 6", "linear to 1", "mm", "mm, turned", "bmm", "linear of 2000", "softmax", "layer_norm", "rms_norm",
    "gelu", "sum", "mean", "amax", "cumsum", "logsumexp", "conv2d", "conv2d with bias", "conv2d of 100 channels",
    "conv2d with strides", "conv2d in groups", "depthwise conv2d", "conv2d 1 x 1", "conv_transpose2d", "avg_pool2d", "group_norm",
    "attention", "causal attention", "linear with Q8_0", "linear with Q4_K", "fft", "inverse", "svd", "eigh", "cdist",
    "complex matmul", "conv1d", "conv3d", "batch_norm", "upsample", "sort", "norm", "var", "gru_cell", "cdist to few"};
static opd_tensor *normal(opd_ints sizes, opd_scalar_type dtype) { return opd_randn(sizes, dtype); }
static opd_tensor *batch_of(int job, int64_t n, opd_scalar_type dtype) {
    opd_manual_seed(3);
    switch (job) {
    case BMM: return normal(OPD_INTS(n, 3, 70), dtype);
    case LINEAR_LONG: return normal(OPD_INTS(n, 2000), dtype);
    case CONV_DEEP: return normal(OPD_INTS(n, 100, 7, 7), dtype);
    case CONV: case CONV_BIAS: case CONV_STRIDE: case CONV_GROUPS: case CONV_DEPTHWISE: case CONV_POINT: case CONV_TURNED: case POOL:
    case GROUP_NORM: return normal(OPD_INTS(n, 32, 12, 12), dtype);
    case ATTENTION: case ATTENTION_CAUSAL: return normal(OPD_INTS(n, 2, 24), dtype);
    case BLOCKS: return normal(OPD_INTS(n, 320), dtype);
    case BLOCKS_LONG: return normal(OPD_INTS(n, 512), dtype);
    case INVERSE: case SVD: case EIG: return normal(OPD_INTS(n, 9, 9), dtype);
    case CONV_LINE: return normal(OPD_INTS(n, 20, 50), dtype);
    case CONV_SPACE: return normal(OPD_INTS(n, 4, 6, 7, 8), dtype);
    case BATCH_NORM: case UPSAMPLE: return normal(OPD_INTS(n, 3, 10, 11), dtype);
    default: return normal(OPD_INTS(n, 300), dtype);
    }
}
static opd_tensor *conv_of(opd_tensor *x, opd_ints sizes, int64_t stride, int64_t groups, bool bias) {
    const opd_scalar_type dtype = opd_dtype(x);
    opd_tensor *const w = normal(sizes, dtype);
    return opd_conv2d_full(x, w, bias ? normal(OPD_INTS(opd_size(w, 0)), dtype) : NULL, OPD_INTS(stride), OPD_INTS(1), OPD_INTS(1),
                           groups);
}
static opd_tensor *named_call(const char *name, opd_tensor *x) { return OPD_CALL(opd_find(name), x); }
static opd_tensor *compute(int job, opd_tensor *x) {
    const opd_scalar_type dtype = opd_dtype(x);
    opd_manual_seed(4);
    switch (job) {
    case LINEAR: return opd_linear(x, normal(OPD_INTS(200, 300), dtype), NULL);
    case LINEAR_FEW: return opd_linear(x, normal(OPD_INTS(6, 300), dtype), NULL);
    case LINEAR_ONE: return opd_linear(x, normal(OPD_INTS(1, 300), dtype), NULL);
    case LINEAR_LONG: return opd_linear(x, normal(OPD_INTS(150, 2000), dtype), normal(OPD_INTS(150), dtype));
    case MM: return opd_mm(x, normal(OPD_INTS(300, 170), dtype));
    case MM_TURNED: return opd_t(opd_mm(opd_t(normal(OPD_INTS(300, 170), dtype)), opd_t(x)));
    case BMM: return opd_matmul(x, normal(OPD_INTS(70, 40), dtype));
    case SOFTMAX: return opd_softmax(x, 1);
    case LAYER_NORM: return opd_layer_norm(x, OPD_INTS(300), NULL, NULL, 1e-5);
    case RMS_NORM: return opd_rms_norm(x, OPD_INTS(300), NULL, opd_value_none());
    case GELU: return opd_gelu(x);
    case SUM: return opd_sum_dim(x, OPD_INTS(1), false);
    case MEAN: return opd_mean_dim(x, OPD_INTS(1), false);
    case AMAX: return opd_amax(x, OPD_INTS(1), false);
    case CUMSUM: return opd_cumsum(x, 1);
    case LOGSUMEXP: return opd_logsumexp(x, OPD_INTS(1), false);
    case CONV: return conv_of(x, OPD_INTS(24, 32, 3, 3), 1, 1, false);
    case CONV_BIAS: return conv_of(x, OPD_INTS(12, 32, 5, 5), 1, 1, true);
    case CONV_DEEP: return conv_of(x, OPD_INTS(8, 100, 3, 3), 1, 1, true);
    case CONV_STRIDE: return conv_of(x, OPD_INTS(24, 32, 3, 3), 2, 1, true);
    case CONV_GROUPS: return conv_of(x, OPD_INTS(32, 16, 3, 3), 1, 2, true);
    case CONV_DEPTHWISE: return conv_of(x, OPD_INTS(32, 1, 3, 3), 1, 32, true);
    case CONV_POINT: return conv_of(x, OPD_INTS(24, 32, 1, 1), 1, 1, true);
    case CONV_TURNED: return opd_conv_transpose2d(x, normal(OPD_INTS(32, 9, 4, 4), dtype), NULL, OPD_INTS(2), OPD_INTS(1));
    case POOL: return opd_avg_pool2d(x, OPD_INTS(3), OPD_INTS(2), OPD_INTS(1));
    case GROUP_NORM: return opd_group_norm(x, 4, NULL, NULL, 1e-5);
    case ATTENTION: case ATTENTION_CAUSAL: {
        opd_tensor *const q = opd_unsqueeze(opd_transpose(x, 0, 1), 0), *const k = normal(OPD_INTS(1, 2, 400, 24), dtype);
        opd_tensor *const v = normal(OPD_INTS(1, 2, 400, 24), dtype);
        opd_tensor *const y = opd_scaled_dot_product_attention_full(q, k, v, NULL, 0.0, job == ATTENTION_CAUSAL, opd_value_none(), false);
        return opd_transpose(opd_squeeze_dim(y, 0), 0, 1);
    }
    case BLOCKS: return opd_linear(x, opd_quantize_blocks(normal(OPD_INTS(70, 320), OPD_FLOAT32), OPD_Q8_0), NULL);
    case BLOCKS_LONG: return opd_linear(x, opd_quantize_blocks(normal(OPD_INTS(70, 512), OPD_FLOAT32), OPD_Q4_K), NULL);
    case FFT: return opd_view_as_real(named_call("aten::fft_rfft", x));
    case INVERSE: return named_call("aten::linalg_inv", x);
    case SVD: return named_call("aten::linalg_svdvals", x);
    case EIG: return named_call("aten::linalg_eigvalsh", x);
    case CDIST: return opd_cdist(x, normal(OPD_INTS(31, 300), dtype), 2);
    case CDIST_FEW: return opd_cdist(x, normal(OPD_INTS(7, 300), dtype), 2);
    case COMPLEX: {
        opd_tensor *const z = opd_complex(x, x);
        return opd_view_as_real(opd_mm(z, opd_complex(normal(OPD_INTS(300, 20), dtype), normal(OPD_INTS(300, 20), dtype))));
    }
    case CONV_LINE: return opd_conv1d(x, normal(OPD_INTS(13, 20, 3), dtype), normal(OPD_INTS(13), dtype), OPD_INTS(1), OPD_INTS(1));
    case CONV_SPACE: return opd_conv3d(x, normal(OPD_INTS(5, 4, 3, 3, 3), dtype), normal(OPD_INTS(5), dtype), OPD_INTS(1), OPD_INTS(1));
    case BATCH_NORM: return opd_batch_norm(x, NULL, NULL, normal(OPD_INTS(3), dtype), opd_abs(normal(OPD_INTS(3), dtype)), false, 0.1,
                                           1e-5, false);
    case UPSAMPLE: return opd_upsample_bilinear2d(x, OPD_INTS(17, 19), false);
    case SORTED: return named_call("aten::sort", x);
    case NORM: return opd_linalg_vector_norm_full(x, opd_value_int(2), opd_value_int(1), false, opd_value_none());
    case VAR: return opd_var_dim(x, OPD_INTS(1), true, false);
    case GRU: return opd_gru_cell_full(x, opd_mul(opd_narrow(x, 1, 0, 40), opd_narrow(x, 1, 0, 40)), normal(OPD_INTS(120, 300), dtype),
                                  normal(OPD_INTS(120, 40), dtype), NULL, NULL);
    default: return NULL;
    }
}
/* Returns whether the first and last rows of a batch of n, and their gradients, have the bits that they have alone. */
static bool same_alone(int job, int64_t n, opd_scalar_type dtype) {
    OPD_SCOPED;
    opd_tensor *const x = batch_of(job, n, dtype), *g = NULL;
    (void)opd_tensor_set_requires_grad(x, true);
    opd_tensor *y = compute(job, x), *sum = y ? opd_sum(opd_mul(y, y)) : NULL;
    if (!y && dtype == OPD_BFLOAT16) { opd_error_clear(); return true; }      /* a dtype that the operator does not have */
    CHECK(sum && opd_autograd_grad(&sum, 1, (opd_tensor *const *)&x, 1, NULL, &g) == 0);
    for (int last = 0; last < 2 && y && g; last++) {
        opd_tensor *const row = opd_contiguous(opd_narrow(opd_detach(x), 0, last ? n - 1 : 0, 1)), *other = NULL;
        (void)opd_tensor_set_requires_grad(row, true);
        opd_tensor *const alone = compute(job, row);
        sum = alone ? opd_sum(opd_mul(alone, alone)) : NULL;
        CHECK(sum && opd_autograd_grad(&sum, 1, (opd_tensor *const *)&row, 1, NULL, &other) == 0);
        if (!other) { return false; }
        const bool causal = job == ATTENTION_CAUSAL && last;  /* alone, the query is the first one */
        if (!causal && (!opd_equal(opd_narrow(opd_detach(y), 0, last ? n - 1 : 0, 1), opd_detach(alone)) ||
                        !opd_equal(opd_narrow(g, 0, last ? n - 1 : 0, 1), other))) { return false; }
    }
    return true;
}
TEST(a_row_has_the_same_bits_in_each_batch) {
    static const int64_t counts[] = {2, 3, 5, 8, 17, 40, 130};
    const bool was = opd_same_bits_set(true);
    for (int job = 0; job < JOBS; job++) {
        for (int k = 0; k < 21; k++) {
            const opd_scalar_type dtype = k < 7 ? OPD_FLOAT32 : k < 14 ? OPD_FLOAT64 : OPD_BFLOAT16;
            const bool same = same_alone(job, counts[k % 7], dtype);
            if (!same) { printf("%s of %s in a batch of %d differs\n", names[job], opd_dtype_name(dtype), (int)counts[k % 7]); }
            CHECK(same);
            CHECK_OK();
            opd_error_clear();
        }
    }
    (void)opd_same_bits_set(was);
}

/* Sums of long rows, which are split if there are few rows. */
static opd_tensor *reduce_long(int job, opd_tensor *x) {
    return job == 0 ? opd_sum_dim(x, OPD_INTS(1), false) : job == 1 ? opd_var_dim(x, OPD_INTS(1), true, false)
        : opd_logsumexp(x, OPD_INTS(1), false);
}
TEST(long_rows_have_the_same_bits_in_each_batch) {
    const bool was = opd_same_bits_set(true);
    for (int k = 0; k < 6; k++) {
        OPD_SCOPED;
        const int64_t n = k < 3 ? 3 : 17;
        opd_manual_seed(5);
        opd_tensor *const x = normal(OPD_INTS(n, 300000), OPD_FLOAT64), *const all = reduce_long(k % 3, x);
        for (int64_t i = 0; i < n; i += n - 1) {
            CHECK(opd_equal(opd_narrow(all, 0, i, 1), reduce_long(k % 3, opd_narrow(x, 0, i, 1))));
        }
    }
    CHECK_OK();
    (void)opd_same_bits_set(was);
}

//-- the mode ----------------------------------------------------------------------------------------------------------

static int twice(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    (void)user;
    (void)ninputs;
    return (outputs[0] = opd_add(inputs[0], inputs[0])) ? 1 : -1;
}
TEST(the_mode_belongs_to_the_thread) {
    const bool was = opd_same_bits_set(true);
    CHECK(opd_same_bits() && opd_same_bits_set(false) && !opd_same_bits());
    (void)inside_cpu_most_set(-1);                /* determines the level again */
    const int level = inside_cpu_level(), most = inside_cpu_most();
    CHECK(level == most && !opd_same_bits_set(true) && inside_cpu_level() == inside_same_level());
    (void)opd_same_bits_set(was);
}
TEST(code_that_was_compiled_in_the_mode_belongs_to_it) {
    OPD_SCOPED;
    if (sizeof(void *) < 8) { SKIP("graphs are compiled only with 64-bit addresses"); }
    const bool was = opd_same_bits_set(true);
    opd_tensor *x = opd_ones(OPD_INTS(3), OPD_FLOAT32);
    opd_graph *const graph = opd_graph_trace(twice, NULL, &x, 1, NULL);
    opd_compiled *const compiled = opd_graph_compile(graph, NULL);
    const opd_value input = opd_value_tensor(x);
    opd_value output;
    CHECK_OR_RETURN(compiled != NULL);
    if (getenv("OPD_TEST_LIST") || !check_cache_begin()) { SKIP("no cc, or in an emulator"); }
    for (int i = 0; i < 4; i++) {                 /* the first run of each mode is uncompiled */
        (void)opd_same_bits_set(i < 2);
        CHECK(opd_compiled_run(compiled, &input, 1, &output, 1) == 1);
        CHECK_INT(opd_compiled_reason(compiled) == NULL, i % 2);
        CHECK(opd_item_f64(opd_sum(output.u.t)) == 6);
    }
    CHECK_OK();
    CHECK(check_cache_end());
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    (void)opd_same_bits_set(was);
}
static bool is_walked(const opd_op *op) {
    static const char *const undefined[] = {"resize_", "resize_as_", NULL};       /* new elements have any contents */
    return has_tensor_cases(op) && !is_random(op) && !named(op, undefined);
}
static void add_operators(void) { add_builtin_operators(run_operator, is_walked); }
CHECK_MAIN_ADD(add_operators)
