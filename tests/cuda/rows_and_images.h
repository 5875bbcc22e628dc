/* Part of test_cuda.c: sorting long rows, cells of recurrent layers, resampling, detection, ctc_loss. */

/* Returns the largest difference of two tensors' elements, relative to 1 + |a|; NaN is equal to NaN. */
static double furthest(opd_tensor *a, opd_tensor *b) {
    double most = 0;
    if (!a || !b || opd_numel(a) != opd_numel(b)) { return 1e30; }
    a = opd_to_dtype(to_host(a), OPD_FLOAT64); b = opd_to_dtype(to_host(b), OPD_FLOAT64);
    for (int64_t i = 0; a && b && i < opd_numel(a); i++) {
        const double x = case_get(a, i), y = case_get(b, i);
        const double d = x == y || (x != x && y != y) ? 0 : fabs(x - y) / (1 + fabs(x));
        if (!(d <= most)) { most = d == d ? d : 1e30; }
    }
    return a && b ? most : 1e30;
}
static void near(const char *what, opd_tensor *a, opd_tensor *b, double limit) {
    const double d = furthest(a, b);
    CHECK(d <= limit);
    if (!(d <= limit)) { printf("    %s: %g\n", what, d); }
}
static const opd_scalar_type four_floats[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16};
/* The gradient of sum(y * sin(0, 1, 2, ...)) with respect to `leaf`, computed where y is. */
static opd_tensor *slope_of(opd_tensor *y, opd_tensor *leaf) {
    opd_backward_options options;
    opd_tensor *grad, *result = NULL;
    memset(&options, 0, sizeof options);
    if (!y) { return NULL; }
    grad = opd_sin(opd_reshape(opd_arange(opd_value_int(opd_numel(y)), OPD_FLOAT32), opd_ints_of(opd_sizes(y), opd_ndim(y))));
    grad = opd_to_device(grad, opd_tensor_device(y), opd_dtype(y));
    options.grad_outputs = &grad;
    return opd_autograd_grad(&y, 1, &leaf, 1, &options, &result) ? NULL : result;
}
static opd_tensor *leaf_of(opd_tensor *t, bool there_) { return opd_tensor_set_requires_grad(opd_detach(there_ ? to_gpu(t) : t), true); }

/* Rows of one block, of several tiles, and of one element more than a tile; ties, NaN of both signs, -0. */
TEST(long_rows_are_sorted) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16, OPD_INT64, OPD_INT32,
                                             OPD_INT16, OPD_INT8, OPD_UINT8, OPD_BOOL};
    static const int64_t lengths[] = {2049, 4097, 8192, 8193, 20001};
    static const float odd[] = {(float)NAN, -0.0f, 0.0f, -(float)NAN, (float)INFINITY, -(float)INFINITY, 3};
    if (!there()) { SKIP("no GPU"); }
    for (int t = 0; t < 10; t++) {
        for (int l = 0; l < 5; l++) {
            if ((t + l) % 3 && t) { continue; }
            opd_manual_seed((uint64_t)(10 * t + l));
            opd_tensor *x = opd_mul_Scalar(opd_randn(OPD_INTS(2, lengths[l]), OPD_FLOAT32), OPD_V(t == 4 || t == 5 ? 1e8 : 50)), *a[2], *b[2];
            for (int64_t i = 0; i < 2 * lengths[l]; i += 5) { opd_data_f32(x)[i] = t < 4 ? odd[i % 7] : 3; }
            x = opd_to_dtype(t == 9 ? opd_gt_Scalar(x, OPD_V(3)) : x, dtypes[t]);
            for (int down = 0; down < 2; down++) {
                CHECK_INT(opd_sort_stable(a, x, opd_value_bool(true), 1, down), 0);
                CHECK_INT(opd_sort_stable(b, to_gpu(x), opd_value_bool(true), 1, down), 0);
                same_pair("sort", a, b);
            }
        }
    }
    opd_tensor *x = opd_randint(100, OPD_INTS(2, 9000), OPD_FLOAT32), *a[2], *b[2];
    CHECK_INT(opd_mode(a, x), 0);
    CHECK_INT(opd_mode(b, to_gpu(x)), 0);
    same_pair("mode", a, b);
    CHECK_INT(opd_topk_full(a, x, 3000, -1, true, true), 0);      /* too many to select */
    CHECK_INT(opd_topk_full(b, to_gpu(x), 3000, -1, true, true), 0);
    same_pair("topk", a, b);
    CHECK_OK();
}
TEST(long_rows_are_selected) {
    static const int64_t widths[] = {255, 1024, 1030, 4100};
    if (!there()) { SKIP("no GPU"); }
    for (int i = 0; i < 4; i++) {
        opd_tensor *x = opd_randn(OPD_INTS(2, 7, widths[i]), OPD_FLOAT32), *at_ = opd_randint(7, OPD_INTS(11), OPD_INT64);
        near("index_select", opd_index_select(x, 1, at_), opd_index_select(to_gpu(x), 1, to_gpu(at_)), 0);
    }
    opd_tensor *wrong = opd_index_select(to_gpu(opd_ones(OPD_INTS(3, 2048), OPD_FLOAT32)), 0, to_gpu(opd_full(OPD_INTS(2), OPD_V(3), OPD_INT64)));
    CHECK(wrong != NULL);
    CHECK(to_host(wrong) == NULL);
    CHECK(strstr(opd_error_message(), "index_select") != NULL);
    opd_error_clear();
    CHECK_OK();
}

/* Runs two layers of an lstm or gru on the CPU and on the GPU, and compares results and gradients.  Returns the number
   of kernels that the GPU runs, as far as they are counted. */
static void recurrent_layers(bool lstm, opd_scalar_type type, bool packed, int64_t ways, bool twice, double limit) {
    const int64_t steps = 4, rows = 3, width = 5, size = 4, parts = lstm ? 4 : 3, counts[4] = {3, 2, 2, 1};
    opd_tensor *leaf[2][20], *outs[2][3], *grads[2][20], *sizes = opd_tensor_from(counts, OPD_INTS(4), OPD_INT64);
    opd_backward_options options;
    int n = 0;
    memset(&options, 0, sizeof options);
    options.create_graph = twice;
    leaf[0][n++] = opd_randn(packed ? OPD_INTS(8, width) : OPD_INTS(steps, rows, width), OPD_FLOAT32);
    for (int i = 0; i < (lstm ? 2 : 1); i++) { leaf[0][n++] = opd_randn(OPD_INTS(2 * ways, rows, size), OPD_FLOAT32); }
    const int first = n;
    for (int l = 0; l < 2 * ways; l++) {
        leaf[0][n++] = opd_randn(OPD_INTS(parts * size, l < ways ? width : size * ways), OPD_FLOAT32);
        leaf[0][n++] = opd_randn(OPD_INTS(parts * size, size), OPD_FLOAT32);
        for (int i = 0; i < 2; i++) { leaf[0][n++] = opd_randn(OPD_INTS(parts * size), OPD_FLOAT32); }
    }
    for (int d = 0; d < 2; d++) {
        for (int i = 0; i < n; i++) {
            if (d == 0) { leaf[0][i] = opd_to_dtype(leaf[0][i], type); }
            leaf[d][i] = leaf_of(leaf[0][i], d == 1);
        }
        const opd_tensors params = opd_tensors_of(leaf[d] + first, n - first), hx = opd_tensors_of(leaf[d] + 1, 2);
        CHECK_INT(packed && lstm ? opd_lstm_data(outs[d], leaf[d][0], sizes, hx, params, true, 2, 0, true, ways == 2)
            : packed ? opd_gru_data(outs[d], leaf[d][0], sizes, leaf[d][1], params, true, 2, 0, true, ways == 2)
            : lstm ? opd_lstm(outs[d], leaf[d][0], hx, params, true, 2, 0, true, ways == 2, false)
            : opd_gru(outs[d], leaf[d][0], leaf[d][1], params, true, 2, 0, true, ways == 2, false), 0);
        opd_tensor *sum = opd_sum(opd_square(outs[d][0]));
        for (int i = 1; i < (lstm ? 3 : 2); i++) { sum = opd_add(sum, opd_sum(opd_sin(outs[d][i]))); }
        CHECK_INT(opd_autograd_grad(&sum, 1, leaf[d], n, &options, grads[d]), 0);
        if (twice && opd_ok()) {
            for (int i = 0; i < n; i++) { sum = i ? opd_add(sum, opd_sum(opd_square(grads[d][i]))) : opd_sum(opd_square(grads[d][i])); }
            memset(&options, 0, sizeof options);
            CHECK_INT(opd_autograd_grad(&sum, 1, leaf[d], n, &options, grads[d]), 0);
            options.create_graph = true;
        }
        if (!opd_ok()) { return; }
    }
    for (int i = 0; i < (lstm ? 3 : 2); i++) { near(lstm ? "lstm" : "gru", outs[0][i], outs[1][i], limit); }
    for (int i = 0; i < n; i++) { near(lstm ? "lstm's gradient" : "gru's gradient", grads[0][i], grads[1][i], 8 * limit); }
}
TEST(recurrent_layers_on_the_gpu) {
    if (!there()) { SKIP("no GPU"); }
    opd_manual_seed(5);
    const int64_t before = opd_cpu_fallback_count();
    for (int i = 0; i < 4; i++) {
        recurrent_layers(true, OPD_FLOAT32, i & 1, 1 + i / 2, false, 3e-5);
        recurrent_layers(false, OPD_FLOAT32, i & 1, 1 + i / 2, false, 3e-5);
    }
    recurrent_layers(true, OPD_FLOAT64, false, 1, true, 1e-10);
    recurrent_layers(false, OPD_FLOAT64, false, 1, true, 1e-10);
    recurrent_layers(true, OPD_FLOAT64, true, 1, true, 1e-10);
    recurrent_layers(true, OPD_FLOAT16, false, 1, false, 2e-2);
    recurrent_layers(false, OPD_BFLOAT16, true, 1, false, 1.5e-1);
    CHECK_INT(opd_cpu_fallback_count() - before, 0);
    CHECK_OK();
}
/* The launches and the memory of a training step grow as the steps do, not as their square. */
TEST(an_lstm_takes_few_launches) {
    long launches[2] = {0, 0};
    if (!there() || !opd_emu_count) { SKIP("nothing that counts"); }
    for (int k = 0; k < 2; k++) {
        opd_tensor *x = to_gpu(opd_randn(OPD_INTS(8 << k, 2, 3), OPD_FLOAT32)), *states[2], *w[4], *out[3], *grads[4], *sum;
        for (int i = 0; i < 2; i++) { states[i] = to_gpu(opd_zeros(OPD_INTS(1, 2, 4), OPD_FLOAT32)); }
        for (int i = 0; i < 4; i++) { w[i] = leaf_of(i == 0 ? opd_randn(OPD_INTS(16, 3), OPD_FLOAT32) : i == 1 ? opd_randn(OPD_INTS(16, 4), OPD_FLOAT32) : opd_randn(OPD_INTS(16), OPD_FLOAT32), true); }
        opd_backward_options options;
        memset(&options, 0, sizeof options);
        const long before = opd_emu_count("launches");
        CHECK_INT(opd_lstm(out, x, opd_tensors_of(states, 2), opd_tensors_of(w, 4), true, 1, 0, true, false, false), 0);
        sum = opd_sum(out[0]);
        CHECK_INT(opd_autograd_grad(&sum, 1, w, 4, &options, grads), 0);
        launches[k] = opd_emu_count("launches") - before;
    }
    CHECK(launches[0] > 0 && launches[1] - launches[0] <= 8 * 4);        /* 8 more steps: 2 launches and 2 products each */
    if (launches[1] - launches[0] > 8 * 4) { printf("    %ld and %ld launches\n", launches[0], launches[1]); }
    CHECK_OK();
}

static const struct { const char *name; int dims; bool corners; } filters[] = {
    {"upsample_nearest1d", 1, false}, {"upsample_nearest3d", 3, false}, {"_upsample_nearest_exact1d", 1, false},
    {"_upsample_nearest_exact2d", 2, false}, {"_upsample_nearest_exact3d", 3, false}, {"upsample_linear1d", 1, true},
    {"upsample_trilinear3d", 3, true}, {"upsample_bicubic2d", 2, true}, {"_upsample_bilinear2d_aa", 2, true},
    {"_upsample_bicubic2d_aa", 2, true}};
TEST(images_are_resampled_on_the_gpu) {
    static const int64_t sizes[][2] = {{7, 15}, {9, 4}, {5, 5}, {1, 6}, {6, 1}, {4, 8}, {23, 7}};
    static const double limits[] = {2e-5, 1e-12, 2e-3, 1.6e-2};
    if (!there()) { SKIP("no GPU"); }
    const int64_t before = opd_cpu_fallback_count();
    for (int f = 0; f < 10; f++) {
        for (int k = 0; k < 28; k++) {            /* k / 7: align_corners, scales, channels last */
            const int dims = filters[f].dims, t = (k + f) % 4;
            int64_t in[5] = {2, 5}, out[3];
            opd_tensor *y[2], *g[2], *from;
            char name[60];
            opd_op *op;
            for (int d = 0; d < dims; d++) { in[2 + d] = sizes[(k + d) % 7][0]; out[d] = sizes[(k + d) % 7][1]; }
            opd_tensor *x = opd_to_dtype(opd_randn(opd_ints_of(in, 2 + dims), OPD_FLOAT32), four_floats[t]);
            if (k / 7 == 3 && dims == 2) { x = opd_contiguous_full(x, 2); }
            (void)snprintf(name, sizeof name, "aten::%s", filters[f].name);
            op = opd_find(name);
            for (int d = 0; d < 2; d++) {
                opd_value v[8];
                int n = 0;
                v[n++] = opd_value_tensor(from = leaf_of(x, d == 1)); v[n++] = opd_value_ints(out, dims);
                if (filters[f].corners) { v[n++] = opd_value_bool(k / 7 == 1); }
                for (int i = 0; i < dims; i++) { v[n++] = k / 7 == 2 ? opd_value_double((double)out[i] / (double)in[2 + i] * 1.05) : opd_value_none(); }
                y[d] = opd_call_op(op, v, n);
                g[d] = slope_of(y[d], from);
            }
            near(filters[f].name, y[0], y[1], limits[t]);
            near("its gradient", g[0], g[1], 2 * limits[t]);
            for (int d = 0; y[0] && y[1] && d < 2 + dims; d++) { CHECK_INT(opd_strides(y[0])[d], opd_strides(y[1])[d]); }
        }
    }
    CHECK_INT(opd_cpu_fallback_count() - before, 0);
    CHECK_OK();
}
TEST(objects_are_detected_on_the_gpu) {
    static const int64_t counts[] = {1, 63, 64, 65, 200};
    opd_value v[7];
    opd_op *nms = opd_find("torchvision::nms"), *roi = opd_find("torchvision::roi_align");
    if (!there()) { SKIP("no GPU"); }
    const int64_t before = opd_cpu_fallback_count();
    for (int i = 0; i < 10; i++) {
        opd_tensor *two[2] = {opd_mul_Scalar(opd_rand(OPD_INTS(counts[i / 2], 2), OPD_FLOAT32), OPD_V(60)), NULL}, *boxes, *scores, *a;
        two[1] = opd_add(two[0], opd_mul_Scalar(opd_rand(OPD_INTS(counts[i / 2], 2), OPD_FLOAT32), OPD_V(30)));
        boxes = opd_to_dtype(opd_cat(opd_tensors_of(two, 2), 1), i % 2 ? OPD_FLOAT64 : OPD_FLOAT32);
        scores = opd_to_dtype(opd_rand(OPD_INTS(counts[i / 2]), OPD_FLOAT32), opd_dtype(boxes));
        v[0] = opd_value_tensor(boxes); v[1] = opd_value_tensor(scores); v[2] = opd_value_double(0.4);
        a = opd_call_op(nms, v, 3);
        v[0] = opd_value_tensor(to_gpu(boxes)); v[1] = opd_value_tensor(to_gpu(scores));
        near("nms", a, opd_call_op(nms, v, 3), 0);
    }
    for (int k = 0; k < 8; k++) {
        const opd_scalar_type t = k < 4 ? OPD_FLOAT32 : k < 6 ? OPD_FLOAT64 : OPD_FLOAT16;
        opd_tensor *x = opd_to_dtype(opd_randn(OPD_INTS(2, 3, 11, 13), OPD_FLOAT32), t), *y[2], *g[2], *from;
        opd_tensor *regions = opd_mul_Scalar(opd_randn(OPD_INTS(7, 5), OPD_FLOAT32), OPD_V(9));
        for (int64_t i = 0; i < 7; i++) {
            float *p = opd_data_f32(regions) + 5 * i;
            p[0] = (float)(i % 2); p[3] += 12; p[4] += 9;
        }
        if (t == OPD_FLOAT64) { regions = opd_to_dtype(regions, t); }
        for (int d = 0; d < 2; d++) {
            v[0] = opd_value_tensor(from = leaf_of(x, d == 1)); v[1] = opd_value_tensor(d ? to_gpu(regions) : regions);
            v[2] = opd_value_double(0.77); v[3] = opd_value_int(3); v[4] = opd_value_int(2);
            v[5] = opd_value_int(k & 1 ? 2 : 0); v[6] = opd_value_bool(k & 2);
            y[d] = opd_call_op(roi, v, 7);
            g[d] = slope_of(y[d], from);
        }
        near("roi_align", y[0], y[1], t == OPD_FLOAT16 ? 2e-3 : 2e-5);
        near("roi_align's gradient", g[0], g[1], t == OPD_FLOAT16 ? 4e-3 : 3e-5);
    }
    CHECK_INT(opd_cpu_fallback_count() - before, 0);
    opd_data_f32(opd_zeros(OPD_INTS(1), OPD_FLOAT32));
    v[0] = opd_value_tensor(to_gpu(opd_zeros(OPD_INTS(1, 1, 4, 4), OPD_FLOAT32)));
    v[1] = opd_value_tensor(to_gpu(opd_ones(OPD_INTS(1, 5), OPD_FLOAT32)));               /* of image 1, which is not there */
    opd_tensor *wrong = opd_call_op(roi, v, 7);
    CHECK(wrong && !to_host(wrong) && strstr(opd_error_message(), "image"));
    opd_error_clear();
    CHECK_OK();
}
TEST(alignments_are_scored_on_the_gpu) {
    const int64_t inputs[4] = {6, 5, 1, 0}, labels[4] = {3, 2, 2, 0}, given[] = {1, 1, 3, 2, 4, 1, 2};
    if (!there()) { SKIP("no GPU"); }
    const int64_t before = opd_cpu_fallback_count();
    for (int k = 0; k < 4; k++) {
        const opd_scalar_type t = k & 1 ? OPD_FLOAT64 : OPD_FLOAT32;
        opd_tensor *probs = opd_log_softmax(opd_to_dtype(opd_randn(OPD_INTS(6, 4, 5), OPD_FLOAT32), t), 2), *y[2], *g[2], *from;
        opd_tensor *targets = opd_tensor_from(given, OPD_INTS(7), OPD_INT64);
        for (int d = 0; d < 2; d++) {
            from = leaf_of(probs, d == 1);
            y[d] = opd_ctc_loss_IntList_full(from, d ? to_gpu(targets) : targets, opd_ints_of(inputs, 4), opd_ints_of(labels, 4), 0, 0, k / 2);
            g[d] = slope_of(y[d], from);
        }
        near("ctc_loss", y[0], y[1], k & 1 ? 1e-10 : 1e-5);
        near("ctc_loss's gradient", g[0], g[1], k & 1 ? 1e-10 : 2e-5);
    }
    CHECK_INT(opd_cpu_fallback_count() - before, 0);
    CHECK_OK();
}
TEST(mantissas_rows_and_means_on_the_gpu) {
    if (!there()) { SKIP("no GPU"); }
    const int64_t before = opd_cpu_fallback_count();
    for (int t = 0; t < 4; t++) {
        const float odd[] = {0, -0.0f, 1, -3, 1e-3f, (float)NAN, (float)INFINITY, 0.75f};
        opd_tensor *x = opd_to_dtype(opd_tensor_from(odd, OPD_INTS(8), OPD_FLOAT32), four_floats[t]), *a[2], *b[2], *w, *rows;
        CHECK_INT(opd_frexp_Tensor(a, x), 0);
        CHECK_INT(opd_frexp_Tensor(b, to_gpu(x)), 0);
        same_pair("frexp", a, b);
        w = opd_to_dtype(opd_randn(OPD_INTS(6, 5), OPD_FLOAT32), four_floats[t]);
        rows = opd_tensor_from((const int64_t[]){1, 3, 1, 5}, OPD_INTS(4), OPD_INT64);
        near("embedding_renorm", opd_embedding_renorm(w, rows, 1.5, 2), opd_embedding_renorm(to_gpu(w), to_gpu(rows), 1.5, 2), t == 1 ? 1e-12 : t == 0 ? 1e-6 : 1e-2);
        opd_tensor *std = opd_abs(opd_randn(OPD_INTS(3, 5), OPD_FLOAT32)), *mean = opd_to_dtype(opd_randn(OPD_INTS(5), OPD_FLOAT32), four_floats[t]), *drawn[2];
        for (int d = 0; d < 2; d++) { opd_manual_seed(7); drawn[d] = opd_normal_Tensor_Tensor(d ? to_gpu(mean) : mean, d ? to_gpu(std) : std); }
        near("normal", drawn[0], drawn[1], t == 1 ? 1e-6 : t == 0 ? 1e-5 : 1e-2);
        CHECK(drawn[1] && opd_dtype(drawn[1]) == four_floats[t]);
    }
    CHECK_INT(opd_cpu_fallback_count() - before, 0);
    opd_tensor *wrong = opd_normal_float_Tensor(0, to_gpu(opd_full(OPD_INTS(2), OPD_V(-1.0), OPD_FLOAT32)));
    CHECK(wrong && !to_host(wrong) && strstr(opd_error_message(), "std"));
    opd_error_clear();
    CHECK_OK();
}
