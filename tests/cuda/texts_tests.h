/* Tests of attention of texts of different lengths on a GPU.  Part of test_cuda.c. */

/* Texts without rows, without keys, with fewer rows than keys, and with more; longer than a tile. */
static const int32_t text_rows[] = {0, 0, 5, 145, 146, 149, 213}, text_keys[] = {0, 3, 8, 208, 208, 210, 274};
enum { TEXTS = 6 };
/* Offsets as int32, int64 and every second int64; on the GPU, or on the host. */
static opd_tensor *offsets_of(const int32_t *from, int how, bool on_device) {
    opd_tensor *t = opd_tensor_from(from, OPD_INTS(TEXTS + 1), OPD_INT32);
    if (how > 0) { t = opd_to_dtype(t, OPD_INT64); }
    if (how > 1) { t = opd_repeat_interleave_full(t, 2, opd_value_int(0), OPD_NONE); }
    if (on_device) { t = to_gpu(t); }
    return how > 1 ? opd_slice(t, 0, opd_value_int(0), opd_value_int(2 * TEXTS + 2), 2) : t;
}
static opd_tensor *texts_attention(opd_tensor *const *in, int how, bool on_device, int64_t left, int64_t right) {
    return opd_varlen_attention(in[0], in[1], in[2], offsets_of(text_rows, how, on_device), offsets_of(text_keys, how, on_device), left,
                                right, opd_value_double(0.3));
}
/* All texts in one kernel forward, beside the one that checks offsets, and in three backward: as each text by itself. */
TEST(attention_of_texts) {
    static const opd_scalar_type types[] = {OPD_FLOAT32, OPD_FLOAT16, OPD_BFLOAT16};
    static const int64_t windows[][2] = {{-1, -1}, {-1, 0}, {20, 0}, {3, 70}, {0, -1}}, depths[] = {8, 20, 64, 120, 200};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 15; k++) {
        if (!check_visits((size_t)k, 15)) { continue; }
        OPD_SCOPE {
            const opd_scalar_type type = types[k % 3];
            const int64_t depth = depths[(k + k / 5) % 5], *const window = windows[k % 5], few = k % 2 ? 1 : 2;
            const bool on_device = k % 4 != 3;
            opd_tensor *in[2][3], *out[2], *grads[2][3], *by = normal_of(OPD_INTS(213, 2, depth), type);
            for (int i = 0; i < 3; i++) {
                in[0][i] = normal_of(OPD_INTS(i ? 274 : 213, i ? few : 2, depth), type);
                if (k % 5 == 2) { in[0][i] = opd_transpose(opd_contiguous(opd_transpose(in[0][i], 0, 1)), 0, 1); }
            }
            for (int at = 0; at < 2; at++) {
                long before = launches();
                for (int i = 0; i < 3; i++) {
                    opd_tensor *const x = at ? to_gpu(opd_detach(in[0][i])) : opd_to_dtype(in[0][i], OPD_FLOAT32);
                    in[at][i] = opd_tensor_set_requires_grad(x, true);
                }
                opd_tensor *const g = at ? to_gpu(by) : opd_to_dtype(by, OPD_FLOAT32);
                if (at) { before = launches(); }
                out[at] = texts_attention(in[at], k % 3, on_device && at, window[0], window[1]);
                opd_tensor *sum = opd_sum(opd_mul(out[at], g));
                if (opd_autograd_grad(&sum, 1, in[at], 3, NULL, grads[at])) { break; }
                if (at) { CHECK(launches() - before <= 20 || getenv("OPD_EMU_SHARED")); }
            }
            (void)snprintf(what, sizeof what, "    texts %d of %s", k, opd_dtype_name(type));
            if (!went_well(opd_ok() ? 0 : -1)) { continue; }
            CHECK(opd_is_contiguous(out[1]));
            for (int i = 0; i < 4; i++) {
                opd_tensor *const want = i ? grads[0][i - 1] : out[0], *const got = opd_to_dtype(to_host(i ? grads[1][i - 1] : out[1]), OPD_FLOAT32);
                const opd_value most = opd_value_double(opd_item_f64(opd_max(opd_abs(want))));
                same_values(opd_div_Scalar(got, most), opd_div_Scalar(want, most), type == OPD_FLOAT32 ? 1e-5 : type == OPD_FLOAT16 ? 4e-3 : 3e-2);
            }
        }
    }
    CHECK_OK();
}
/* Two short texts, with all depths for which there are kernels of their own: each kernel keeps the texts apart. */
TEST(attention_of_short_texts) {
    static const opd_scalar_type types[] = {OPD_FLOAT32, OPD_FLOAT16, OPD_BFLOAT16};
    static const int64_t depths[] = {1, 64, 65, 96, 128, 129, 256};
    static const int32_t rows[] = {0, 3, 8}, keys[] = {0, 7, 9};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 21; k++) {
        OPD_SCOPE {
            const opd_scalar_type type = types[k % 3];
            opd_tensor *in[3], *on[3], *const at = opd_tensor_from(rows, OPD_INTS(3), OPD_INT32), *const from = opd_tensor_from(keys, OPD_INTS(3), OPD_INT32);
            for (int i = 0; i < 3; i++) {
                in[i] = normal_of(OPD_INTS(i ? 9 : 8, i ? 1 : 3, depths[k / 3]), type);
                on[i] = to_gpu(in[i]);
            }
            const opd_value none = opd_value_none();
            (void)snprintf(what, sizeof what, "    short texts %d", k);
            as_on_host(what, opd_varlen_attention(on[0], on[1], on[2], to_gpu(at), to_gpu(from), -1, -1, none),
                       opd_varlen_attention(in[0], in[1], in[2], at, from, -1, -1, none), 4 * rounding(type));
        }
    }
    CHECK_OK();
}
/* The host does not wait for offsets, so that a capture may have the call; second derivatives; float64. */
TEST(attention_of_texts_in_other_mechanisms) {
    opd_capture *c = NULL;
    if (!there()) { SKIP("no GPU"); }
    OPD_SCOPE {
        opd_tensor *x[2], *out[2][3];
        for (int wide = 0; wide < 2; wide++) {
            for (int at = 0; at < 2; at++) {
                const int32_t two[] = {0, 3, 7};
                opd_backward_options again;
                memset(&again, 0, sizeof again);
                again.create_graph = true;
                x[at] = at ? to_gpu(opd_detach(x[0])) : opd_to_dtype(opd_randn(OPD_INTS(7, 2, 8), OPD_FLOAT32), wide ? OPD_FLOAT64 : OPD_FLOAT32);
                x[at] = opd_tensor_set_requires_grad(x[at], true);
                opd_tensor *offsets = opd_tensor_from(two, OPD_INTS(3), OPD_INT32), *y, *sum;
                if (at) { offsets = to_gpu(offsets); }
                y = opd_varlen_attention(x[at], x[at], x[at], offsets, offsets, 2, 1, opd_value_none());
                sum = opd_sum(opd_mul(y, y));
                out[at][0] = y;
                if (opd_autograd_grad(&sum, 1, &x[at], 1, &again, &out[at][1])) { break; }
                sum = opd_sum(opd_mul(out[at][1], out[at][1]));
                if (opd_autograd_grad(&sum, 1, &x[at], 1, NULL, &out[at][2])) { break; }
            }
            for (int i = 0; i < 3 && opd_ok(); i++) { as_on_host("texts with derivatives", opd_detach(out[1][i]), opd_detach(out[0][i]), wide ? 1e-11 : 1e-4); }
        }
        opd_stream s = opd_stream_new(gpu(-1)), was;
        opd_tensor *const q = to_gpu(opd_randn(OPD_INTS(213, 2, 8), OPD_FLOAT32)), *const keys = to_gpu(opd_randn(OPD_INTS(274, 2, 8), OPD_FLOAT32));
        opd_tensor *const at = offsets_of(text_rows, 0, true), *const from = offsets_of(text_keys, 0, true), *y = NULL;
        (void)opd_stream_wait(s, opd_stream_current(gpu(-1)));
        was = opd_stream_set(s);
        for (int i = 0; i < 2; i++) {             /* the first time without a capture */
            if (i) { CHECK_INT(opd_capture_begin(s), 0); }
            y = opd_varlen_attention(q, keys, keys, at, from, -1, 0, opd_value_none());
            if (i) { c = opd_capture_end(s); }
        }
        CHECK(c != NULL);
        CHECK_INT(opd_capture_replay(c, s), 0);
        opd_stream_set(was);
        CHECK_INT(opd_stream_wait(was, s), 0);
        as_on_host("texts of a capture", y, opd_varlen_attention(to_host(q), to_host(keys), to_host(keys), to_host(at), to_host(from), -1, 0, opd_value_none()), 1e-5);
        opd_capture_free(c);
        opd_stream_free(s);
    }
    CHECK_OK();
}
TEST(errors_of_attention_of_texts) {
    static const int32_t wrong[][3] = {{1, 2, 4}, {0, 3, 2}, {0, 5, 4}, {0, 2, 3}, {0, -1, 4}, {0, 2, 2000000000}};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 6; k++) {
        OPD_SCOPE {
            const int32_t fits[] = {0, 2, 4};
            opd_tensor *const x = to_gpu(opd_ones(OPD_INTS(4, 2, 8), OPD_FLOAT32)), *const good = to_gpu(opd_tensor_from(fits, OPD_INTS(3), OPD_INT32));
            opd_tensor *const host = opd_tensor_from(wrong[k], OPD_INTS(3), OPD_INT32), *const bad = to_gpu(host);
            CHECK(!opd_varlen_attention(x, x, x, good, host, -1, -1, opd_value_none()));
            CHECK_ERROR(OPD_ERROR_INDEX, "of offsets_k is");
            (void)opd_varlen_attention(x, x, x, k % 2 ? good : bad, k % 2 ? bad : good, -1, -1, opd_value_none());
            if (opd_ok()) { (void)opd_device_synchronize(gpu(-1)); }
            CHECK_ERROR(OPD_ERROR_INDEX, "offsets_q and offsets_k must begin with 0");
            CHECK(!opd_varlen_attention(x, x, x, good, to_gpu(opd_ones(OPD_INTS(3), OPD_FLOAT32)), -1, -1, opd_value_none()));
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "offsets_k must be int32 or int64");
            CHECK(!opd_varlen_attention(x, to_host(x), x, good, good, -1, -1, opd_value_none()));
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "device");
            CHECK(!opd_varlen_attention(x, x, opd_narrow(x, 1, 0, 1), good, good, -1, -1, opd_value_none()));
            CHECK_ERROR(OPD_ERROR_SHAPE, "key and value must have the same rows and heads");
        }
    }
    CHECK_OK();
}

/* The rotation of pairs of features, and the norm of a sum: one launch each, and their derivatives. */
TEST(rotary_embedding_in_one_kernel) {
    static const opd_scalar_type types[] = {OPD_FLOAT32, OPD_FLOAT16, OPD_BFLOAT16, OPD_FLOAT64};
    static const int64_t depths[][2] = {{64, 32}, {64, 16}, {20, 7}, {8, 4}};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 32; k++) {
        if (!check_visits((size_t)k, 32)) { continue; }
        OPD_SCOPE {
            const opd_scalar_type type = types[k % 4], tables = k % 8 < 4 ? type : type == OPD_FLOAT64 ? OPD_FLOAT64 : OPD_FLOAT32;
            const int64_t depth = depths[k / 8][0], half = depths[k / 8][1];
            opd_tensor *x[2], *t[2][2], *y[2], *grads[2], *seconds[2], *by[2];
            for (int at = 0; at < 2; at++) {
                opd_backward_options again;
                memset(&again, 0, sizeof again);
                again.create_graph = true;
                x[at] = at ? to_gpu(opd_detach(x[0])) : normal_of(OPD_INTS(2, 3, 5, depth), type);
                x[at] = opd_tensor_set_requires_grad(x[at], true);
                by[at] = at ? to_gpu(by[0]) : normal_of(OPD_INTS(2, 3, 5, depth), type);
                for (int i = 0; i < 2; i++) { t[at][i] = at ? to_gpu(t[0][i]) : normal_of(k % 3 ? OPD_INTS(3, 1, half) : OPD_INTS(2, 1, 5, half), tables); }
                opd_tensor *const in = k % 5 == 1 ? opd_transpose(opd_transpose(x[at], 1, 2), 1, 2) : k % 5 == 2 ? opd_narrow(x[at], 0, 1, 1) : x[at];
                opd_tensor *const table = k % 5 == 2 && k % 3 == 0 ? opd_narrow(t[at][1], 0, 1, 1) : t[at][1];
                opd_tensor *const other = k % 5 == 2 && k % 3 == 0 ? opd_narrow(t[at][0], 0, 1, 1) : t[at][0];
                const long before = launches();
                y[at] = opd_rotary_embedding(in, other, table, k % 2 != 0);
                if (at) { CHECK(!opd_emu_count || launches() - before == 1); }
                opd_tensor *sum = opd_sum(opd_mul(opd_mul(y[at], y[at]), k % 5 == 2 ? opd_narrow(by[at], 0, 1, 1) : by[at]));
                if (opd_autograd_grad(&sum, 1, &x[at], 1, &again, &grads[at])) { break; }
                sum = opd_sum(opd_mul(grads[at], by[at]));
                if (opd_autograd_grad(&sum, 1, &x[at], 1, NULL, &seconds[at])) { break; }
            }
            const double near = type == OPD_FLOAT64 ? 1e-12 : type == OPD_FLOAT32 ? 1e-4 : rounding(type) * 100;
            as_on_host("rotation", opd_detach(y[1]), opd_detach(y[0]), type == OPD_FLOAT64 ? 1e-12 : rounding(type));
            as_on_host("its derivative", opd_detach(grads[1]), opd_detach(grads[0]), near);
            as_on_host("its second derivative", opd_detach(seconds[1]), opd_detach(seconds[0]), near * 10);
        }
    }
    OPD_SCOPE {                                   /* floats of 8 bits have no kernel, and are rounded as on the CPU */
        opd_tensor *const x = opd_to_dtype(normal_of(OPD_INTS(3, 8), OPD_FLOAT32), OPD_FLOAT8_E4M3FN), *const t = normal_of(OPD_INTS(3, 4), OPD_FLOAT32);
        opd_tensor *const got = opd_rotary_embedding(to_gpu(x), to_gpu(t), to_gpu(t), false), *const want = opd_rotary_embedding(x, t, t, false);
        CHECK(got && want && opd_dtype(got) == OPD_FLOAT8_E4M3FN);
        as_on_host("rotation of float8", opd_to_dtype(got, OPD_FLOAT32), opd_to_dtype(want, OPD_FLOAT32), 0);
    }
    CHECK_OK();
}
TEST(rms_norm_of_a_sum_in_one_kernel) {
    static const opd_scalar_type types[] = {OPD_FLOAT32, OPD_FLOAT16, OPD_BFLOAT16, OPD_FLOAT64};
    static const int64_t sizes[] = {8, 37, 512, 9000};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 16; k++) {
        if (!check_visits((size_t)k, 16)) { continue; }
        OPD_SCOPE {
            const opd_scalar_type type = types[k % 4];
            const int64_t n = sizes[k / 4];
            opd_tensor *in[2][3], *out[2][2], *grads[2][3], *seconds[2][3], *by[2];
            for (int at = 0; at < 2; at++) {
                opd_backward_options again;
                memset(&again, 0, sizeof again);
                again.create_graph = true;
                for (int i = 0; i < 3; i++) {
                    in[at][i] = at ? to_gpu(opd_detach(in[0][i])) : opd_to_dtype(opd_randn(i < 2 ? OPD_INTS(5, n) : OPD_INTS(n), OPD_FLOAT32), type);
                    in[at][i] = opd_tensor_set_requires_grad(in[at][i], true);
                }
                by[at] = at ? to_gpu(by[0]) : opd_to_dtype(opd_randn(OPD_INTS(5, n), OPD_FLOAT32), type);
                const long before = launches();
                out[at][0] = opd_add_rms_norm(in[at][0], in[at][1], OPD_INTS(n), k % 3 ? in[at][2] : NULL, opd_value_none(), &out[at][1]);
                if (at) { CHECK(!opd_emu_count || launches() - before == 1); }
                opd_tensor *sum = k % 2 ? opd_add(opd_mul(out[at][0], by[at]), opd_sin(out[at][1])) : opd_mul(out[at][0], by[at]);
                sum = opd_sum(sum);
                if (opd_autograd_grad(&sum, 1, in[at], k % 3 ? 3 : 2, k % 4 == 3 ? &again : NULL, grads[at])) { break; }
                if (k % 4 != 3) { continue; }
                sum = opd_sum(opd_mul(grads[at][0], by[at]));
                if (opd_autograd_grad(&sum, 1, in[at], k % 3 ? 3 : 2, NULL, seconds[at])) { break; }
            }
            const double near = type == OPD_FLOAT64 ? 1e-10 : type == OPD_FLOAT32 ? 1e-4 : 5 * rounding(type);
            for (int i = 0; i < 2; i++) { as_on_host("norm of a sum", opd_detach(out[1][i]), opd_detach(out[0][i]), type == OPD_FLOAT64 ? 1e-12 : rounding(type)); }
            for (int i = 0; i < (k % 3 ? 3 : 2) && opd_ok(); i++) {
                as_on_host("its derivative", opd_detach(grads[1][i]), opd_detach(grads[0][i]), near);
                if (k % 4 == 3) { as_on_host("its second derivative", opd_detach(seconds[1][i]), opd_detach(seconds[0][i]), near); }
            }
        }
    }
    /* only the sum has a gradient; what the kernel does not take */
    OPD_SCOPE {
        opd_tensor *x = opd_tensor_set_requires_grad(to_gpu(opd_ones(OPD_INTS(2, 8), OPD_FLOAT32)), true), *sum, *g, *y;
        y = opd_add_rms_norm(x, to_gpu(opd_ones(OPD_INTS(8), OPD_FLOAT32)), OPD_INTS(8), NULL, opd_value_none(), &sum);
        CHECK(y && sum && opd_size(sum, 0) == 2);
        y = opd_add_rms_norm(x, x, OPD_INTS(8), NULL, opd_value_none(), &sum);
        sum = opd_sum(sum);
        CHECK_INT(opd_autograd_grad(&sum, 1, &x, 1, NULL, &g), 0);
        CHECK(opd_equal(to_host(g), opd_full(OPD_INTS(2, 8), opd_value_double(2), OPD_FLOAT32)));
    }
    CHECK_OK();
}
/* The layer norm of a sum: one launch without a derivative; the same numbers with one; what the kernel does not take. */
TEST(layer_norm_of_a_sum_in_one_kernel) {
    static const opd_scalar_type types[] = {OPD_FLOAT32, OPD_FLOAT16, OPD_BFLOAT16, OPD_FLOAT64};
    static const int64_t sizes[] = {1, 8, 37, 512, 2049, 9000};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 24 * 5; k++) {
        OPD_SCOPE {
            const opd_scalar_type type = types[k % 4];
            const int64_t n = sizes[k / 4 % 6];
            const int how = k / 24;               /* 0: weight and bias, 1: neither, 2: weight of float32, 3: bias, 4: at an odd address */
            const opd_scalar_type of = how == 2 && type != OPD_FLOAT64 ? OPD_FLOAT32 : type;
            opd_tensor *in[2][4], *out[2][2], *second, *third;
            for (int at = 0; at < 2; at++) {
                for (int i = 0; i < 4; i++) {
                    const bool none = (how == 1 && i > 1) || (how == 2 && i == 3) || (how == 3 && i == 2);
                    in[at][i] = none ? NULL : at ? to_gpu(in[0][i]) : opd_to_dtype(opd_randn(i < 2 ? OPD_INTS(5, n) : OPD_INTS(n), OPD_FLOAT32), i < 2 ? type : of);
                }
                if (at && how == 4) { in[1][1] = opd_reshape(opd_narrow(opd_copy_(opd_zeros_like(opd_cat(opd_tensors_of((opd_tensor *[]){opd_reshape(in[1][1], OPD_INTS(-1)), opd_reshape(in[1][1], OPD_INTS(-1))}, 2), 0)), opd_repeat(opd_roll(opd_reshape(in[1][1], OPD_INTS(-1)), OPD_INTS(1), OPD_INTS(0)), OPD_INTS(2))), 0, 1, 5 * n), OPD_INTS(5, n)); }
                const long before = launches();
                out[at][0] = opd_add_layer_norm(in[at][0], in[at][1], OPD_INTS(n), in[at][2], in[at][3], 1e-5, &out[at][1]);
                if (at) { CHECK(!opd_emu_count || launches() - before == 1); }
            }
            const double near = type == OPD_FLOAT64 ? 1e-10 : type == OPD_FLOAT32 ? 1e-4 : 4 * rounding(type);
            as_on_host("layer norm of a sum", out[1][0], out[0][0], near);
            as_on_host("the sum", out[1][1], out[0][1], 0);
            second = opd_add_layer_norm(opd_tensor_set_requires_grad(opd_detach(in[1][0]), true), in[1][1], OPD_INTS(n), in[1][2], in[1][3], 1e-5, &third);
            CHECK(second && third && opd_tensor_requires_grad(second) && opd_tensor_requires_grad(third));
            as_on_host("with a derivative", second ? opd_detach(second) : NULL, out[0][0], near);
        }
    }
    OPD_SCOPE {
        opd_tensor *const x = to_gpu(opd_randn(OPD_INTS(2, 3, 8), OPD_FLOAT32)), *const row = to_gpu(opd_ones(OPD_INTS(8), OPD_FLOAT32)), *sum = NULL, *y;
        y = opd_add_layer_norm(x, row, OPD_INTS(8), row, row, 1e-5, &sum);                /* broadcast */
        as_on_host("broadcast", y, opd_layer_norm(opd_add(to_host(x), to_host(row)), OPD_INTS(8), to_host(row), to_host(row), 1e-5), 1e-5);
        y = opd_add_layer_norm(opd_transpose(x, 0, 1), opd_transpose(x, 0, 1), OPD_INTS(8), NULL, NULL, 1e-5, NULL);
        as_on_host("strides", y, opd_layer_norm(opd_add(opd_transpose(to_host(x), 0, 1), opd_transpose(to_host(x), 0, 1)), OPD_INTS(8), NULL, NULL, 1e-5), 1e-5);
        y = opd_add_layer_norm(x, x, OPD_INTS(3, 8), NULL, NULL, 1e-5, NULL);
        as_on_host("two dims", y, opd_layer_norm(opd_add(to_host(x), to_host(x)), OPD_INTS(3, 8), NULL, NULL, 1e-5), 1e-5);
        y = opd_add_layer_norm(opd_narrow(x, 0, 0, 0), opd_narrow(x, 0, 0, 0), OPD_INTS(8), row, row, 1e-5, &sum);
        CHECK(y && opd_numel(y) == 0 && sum && opd_numel(sum) == 0);
        CHECK(!opd_add_layer_norm(x, x, OPD_INTS(7), NULL, NULL, 1e-5, &sum) && !sum);
        CHECK_ERROR(OPD_ERROR_SHAPE, "normalized_shape");
        CHECK(!opd_add_layer_norm(x, x, OPD_INTS(8), to_gpu(opd_ones(OPD_INTS(7), OPD_FLOAT32)), NULL, 1e-5, &sum) && !sum);
        CHECK_ERROR(OPD_ERROR_SHAPE, "weight");
        CHECK(!opd_add_layer_norm(x, opd_zeros(OPD_INTS(2, 3, 8), OPD_FLOAT32), OPD_INTS(8), NULL, NULL, 1e-5, &sum) && !sum);
        CHECK(opd_error_message()[0]);
        opd_error_clear();
    }
    CHECK_OK();
}
/* In an autocast region, norms of sums have the dtypes of the norms by themselves. */
TEST(norms_of_sums_in_autocast) {
    if (!there()) { SKIP("no GPU"); }
    OPD_SCOPE {
        opd_tensor *const x = to_gpu(opd_randn(OPD_INTS(2, 8), OPD_BFLOAT16)), *want, *got, *sum;
        OPD_AUTOCAST(OPD_CUDA) {
            for (int kind = 0; kind < 2; kind++) {
                want = kind ? opd_layer_norm(opd_add(x, x), OPD_INTS(8), NULL, NULL, 1e-5) : opd_rms_norm(opd_add(x, x), OPD_INTS(8), NULL, opd_value_none());
                got = kind ? opd_add_layer_norm(x, x, OPD_INTS(8), NULL, NULL, 1e-5, &sum) : opd_add_rms_norm(x, x, OPD_INTS(8), NULL, opd_value_none(), &sum);
                CHECK(got && want && opd_dtype(got) == opd_dtype(want) && opd_dtype(sum) == OPD_BFLOAT16);
            }
        }
    }
    CHECK_OK();
}
/* Products of float8 with scales of all kinds; on tensor cores, if cublasLt takes them. */
TEST(products_of_float8) {
    static const int64_t sizes[][3] = {{17, 32, 48}, {1, 16, 16}, {5, 24, 16}, {16, 32, 20}, {3, 48, 16}};
    static const opd_scalar_type outs[] = {OPD_FLOAT32, OPD_BFLOAT16, OPD_FLOAT16};
    const bool whole = opd_emu_count && !getenv("OPD_EMU_LT_OLD") && !getenv("OPD_EMU_LT_NO_EIGHT");
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 120; k++) {
        if (!check_visits((size_t)k, 120)) { continue; }
        OPD_SCOPE {
            const int64_t *n = sizes[k / 3 % 5];
            const opd_scalar_type out = outs[k % 3], biases = k % 7 == 2 ? OPD_FLOAT32 : out == OPD_FLOAT16 ? OPD_FLOAT16 : OPD_BFLOAT16;
            const int kinds = k / 15 % 4, scaled = k % 8;       /* scaled: bit 0: rows of a, bit 1: columns of b; bit 2: a bias */
            opd_tensor *a = opd_to_dtype(opd_randn(OPD_INTS(n[0], n[1]), OPD_FLOAT32), kinds & 1 ? OPD_FLOAT8_E5M2 : OPD_FLOAT8_E4M3FN);
            opd_tensor *b = opd_to_dtype(opd_randn(OPD_INTS(n[2], n[1]), OPD_FLOAT32), kinds & 2 ? OPD_FLOAT8_E5M2 : OPD_FLOAT8_E4M3FN);
            opd_tensor *left = opd_add_Scalar(opd_rand(scaled & 1 ? OPD_INTS(n[0], 1) : OPD_INTS(1, 1), OPD_FLOAT32), opd_value_double(0.5));
            opd_tensor *right = opd_add_Scalar(opd_rand(scaled & 2 ? OPD_INTS(1, n[2]) : OPD_INTS(1, 1), OPD_FLOAT32), opd_value_double(0.5));
            opd_tensor *bias = scaled & 4 ? normal_of(OPD_INTS(n[2]), biases) : NULL, *got, *want;
            const bool fits = n[1] % 16 == 0 && n[2] % 16 == 0 && kinds != 3;
            opd_tensor *on[2] = {to_gpu(a), k % 9 == 4 ? opd_t(to_gpu(opd_contiguous(opd_t(b)))) : to_gpu(b)}, *scales[2] = {to_gpu(left), to_gpu(right)}, *g = to_gpu(bias);
            const long before = launches();
            got = opd__scaled_mm_full(on[0], opd_t(on[1]), scales[0], scales[1], g, NULL, opd_value_int(out), k % 2 != 0);
            const long count = launches() - before;
            want = opd__scaled_mm_full(a, opd_t(b), left, right, bias, NULL, opd_value_int(out), false);
            as_on_host("a product of float8", got, want, out == OPD_FLOAT32 ? 1e-5 : rounding(out));
            if (whole && fits && k % 9 != 4 && (scaled == 0 || scaled == 3)) { CHECK_INT(count, 0); }    /* beside the product */
            if (whole && fits && k % 9 != 4) { CHECK(count <= 5); }
        }
    }
    CHECK_OK();
}
TEST(linear_with_relu_in_one_kernel) {
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 3; k++) {
        OPD_SCOPE {
            const opd_scalar_type type = k == 0 ? OPD_FLOAT32 : k == 1 ? OPD_FLOAT16 : OPD_BFLOAT16;
            opd_tensor *bias = normal_of(OPD_INTS(16), type), *a = normal_of(OPD_INTS(5, 8), type), *b = normal_of(OPD_INTS(8, 16), type), *sum, *x, *g[2];
            opd_tensor *on[3] = {to_gpu(bias), to_gpu(a), to_gpu(b)};
            const long before = launches();
            opd_tensor *const got = opd__addmm_activation(on[0], on[1], on[2]);
            CHECK(!opd_emu_count || launches() == before);
            as_on_host("relu of a product", got, opd__addmm_activation(bias, a, b), rounding(type));
            as_on_host("gelu of a product", opd__addmm_activation_full(on[0], on[1], on[2], OPD_V(1), OPD_V(1), true), opd__addmm_activation_full(bias, a, b, OPD_V(1), OPD_V(1), true), rounding(type));
            as_on_host("with factors", opd__addmm_activation_full(on[0], on[1], on[2], OPD_V(0.5), OPD_V(2), false), opd__addmm_activation_full(bias, a, b, OPD_V(0.5), OPD_V(2), false), rounding(type));
            for (int at = 0; at < 2; at++) {
                x = opd_tensor_set_requires_grad(opd_detach(at ? on[1] : a), true);
                sum = opd_sum(opd__addmm_activation(at ? on[0] : bias, x, at ? on[2] : b));
                if (opd_autograd_grad(&sum, 1, &x, 1, NULL, &g[at])) { break; }
            }
            as_on_host("its derivative", g[1], g[0], rounding(type));
        }
    }
    CHECK(!opd__addmm_activation(to_gpu(opd_ones(OPD_INTS(3), OPD_FLOAT32)), to_gpu(opd_ones(OPD_INTS(2, 4), OPD_FLOAT32)), to_gpu(opd_ones(OPD_INTS(5, 3), OPD_FLOAT32))));
    CHECK_ERROR(OPD_ERROR_SHAPE, "cannot be multiplied");
}

/* Discrete Fourier transforms by cuFFT.  OPD_TEST_CUFFT: it is there (1), or the text with which it fails. */
static opd_tensor *transformed(int kind, opd_tensor *x) {
    static const int64_t dims[] = {-1, 0, 1, 2};
    const opd_ints last = opd_ints_of(dims, 1), two = opd_ints_of(dims + 1, 2), all = opd_ints_of(dims + 1, 3);
    opd_tensor *const z = kind < 4 || kind > 8 ? x : opd_fft_c2c(opd_fft_r2c(x, last, 0, false), last, 2, false);
    switch (kind) {
        case 0: return opd_fft_r2c(x, last, 0, true);
        case 1: return opd_fft_r2c(x, two, 1, true);
        case 2: return opd_fft_r2c(x, all, 2, false);
        case 3: return opd_fft_r2c(opd_transpose(x, 0, 2), two, 0, true);
        case 4: return opd_fft_c2c(z, two, 1, true);
        case 5: return opd_fft_c2c(opd_transpose(z, 0, 1), all, 2, false);
        case 6: return opd_fft_c2r(z, last, 2, 5);
        case 7: return opd_fft_c2r(z, two, 1, 4);
        case 8: return opd_fft_c2r(opd_transpose(z, 0, 2), last, 0, 2);
        case 9: return opd_fft_rfft2(x);
        default: return opd_fft_r2c(opd_narrow(x, 0, 0, 0), last, 0, true);
    }
}
TEST(fft_of_all_kinds) {
    const bool quick = getenv("OPD_TEST_CUFFT") != NULL;
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 22; k++) {
        OPD_SCOPE {
            opd_tensor *x = opd_randn(OPD_INTS(3, 5, 6), k % 2 ? OPD_FLOAT64 : OPD_FLOAT32), *g[2], *on = to_gpu(x);
            const int64_t before = opd_cpu_fallback_count();
            opd_tensor *const got = transformed(k / 2, on);
            if (quick && k < 20) { CHECK_INT(opd_cpu_fallback_count(), before); }
            opd_tensor *const want = transformed(k / 2, x);
            const double near = k % 2 ? 1e-12 : 1e-5;
            CHECK(got && want && opd_dtype(got) == opd_dtype(want));
            if (opd_ok() && got && opd_dtype_is_complex(opd_dtype(got))) { as_on_host("a transform", to_gpu(opd_view_as_real(to_host(got))), opd_view_as_real(opd_contiguous(want)), near); }
            else { as_on_host("a transform to real numbers", got, want, near); }
            for (int at = 0; at < 2 && k / 2 != 10; at++) {
                opd_tensor *leaf = opd_tensor_set_requires_grad(opd_detach(at ? on : x), true), *y = transformed(k / 2, leaf);
                opd_tensor *sum = y ? opd_sum(opd_square(opd_dtype_is_complex(opd_dtype(y)) ? opd_view_as_real(y) : y)) : NULL;
                if (!sum || opd_autograd_grad(&sum, 1, &leaf, 1, NULL, &g[at])) { break; }
                if (at) { as_on_host("its derivative", g[1], g[0], 10 * near); }
            }
        }
    }
    CHECK_OK();
}
/* More shapes than plans are kept; other threads; errors of arguments. */
TEST(fft_of_many_sizes) {
    if (!there()) { SKIP("no GPU"); }
    for (int n = 1; n < 140; n++) {
        OPD_SCOPE {
            opd_tensor *x = opd_randn(OPD_INTS(2, n), OPD_FLOAT32);
            const int64_t last = 1;
            as_on_host("one size", opd_fft_c2r(opd_fft_r2c(to_gpu(x), opd_ints_of(&last, 1), 0, true), opd_ints_of(&last, 1), 2, n), x, 1e-4);
        }
    }
    OPD_SCOPE {
        const int64_t twice[] = {0, 0};
        opd_tensor *const x = to_gpu(opd_randn(OPD_INTS(4, 4), OPD_FLOAT32));
        CHECK(!opd_fft_r2c(x, opd_ints_of(twice, 2), 0, true));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "FFT dims must be unique");
        CHECK(!opd_fft_r2c(x, opd_ints_of(twice, 1), 7, true));
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "normalization type 7");
        CHECK(!opd_fft_r2c(opd_to_dtype(x, OPD_INT32), opd_ints_of(twice, 1), 0, true));
        CHECK_ERROR(OPD_ERROR_DTYPE, "floating-point tensor");
        CHECK(!opd_fft_c2r(opd_fft_r2c(x, opd_ints_of(twice, 1), 0, true), opd_ints_of(twice, 1), 0, 0));
        CHECK_ERROR(OPD_ERROR_SHAPE, "Invalid number of data points");
        CHECK(!opd_fft_c2c(to_gpu(opd_to_dtype(opd_randn(OPD_INTS(4, 4), OPD_FLOAT32), OPD_COMPLEX32)), opd_ints_of(twice, 1), 0, true));
        CHECK_ERROR(OPD_ERROR_DTYPE, "not implemented for 'complex32'");
    }
    CHECK_OK();
}
/* A plan that a capture uses is kept as long as the capture could be replayed, however many others are made. */
TEST(fft_plans_of_captures) {
    const int64_t last = 1;
    if (!there() || !getenv("OPD_CUFFT")) { SKIP("no cuFFT that counts"); }
    void *const library = dlopen(getenv("OPD_CUFFT"), RTLD_NOW | RTLD_NOLOAD);
    long (*count)(const char *) = NULL;
    *(void **)(void *)&count = library ? dlsym(library, "opd_emu_cufft_count") : NULL;
    if (!count) { SKIP("no cuFFT that counts"); }
    OPD_SCOPE {
        opd_tensor *const x = to_gpu(opd_randn(OPD_INTS(2, 1001), OPD_FLOAT32)), *const other = to_gpu(opd_randn(OPD_INTS(2, 1003), OPD_FLOAT32));
        opd_stream s = opd_stream_new(gpu(-1)), was;
        CHECK(opd_fft_r2c(x, opd_ints_of(&last, 1), 0, true) && opd_fft_r2c(other, opd_ints_of(&last, 1), 0, true));
        (void)opd_stream_wait(s, opd_stream_current(gpu(-1)));
        was = opd_stream_set(s);
        CHECK_INT(opd_capture_begin(s), 0);
        CHECK(opd_fft_r2c(x, opd_ints_of(&last, 1), 0, true) != NULL);
        opd_capture *const c = opd_capture_end(s);
        opd_stream_set(was);
        for (int n = 1; n < 140; n++) { OPD_SCOPE { (void)opd_fft_r2c(to_gpu(opd_zeros(OPD_INTS(1, n), OPD_FLOAT32)), opd_ints_of(&last, 1), 0, true); } }
        const long before = count("plans");
        CHECK_INT(count("there"), 128);
        CHECK(opd_fft_r2c(x, opd_ints_of(&last, 1), 0, true) != NULL);
        CHECK_INT(count("plans"), before);
        CHECK(opd_fft_r2c(other, opd_ints_of(&last, 1), 0, true) != NULL);
        CHECK_INT(count("plans"), before + 1);
        if (c) { opd_capture_free(c); }
        opd_stream_free(s);
    }
    CHECK_OK();
}
TEST(cufft_that_fails) {
    const char *const text = getenv("OPD_TEST_CUFFT");
    const int64_t last = 1;
    if (!there() || !text || strlen(text) < 2) { SKIP("no cuFFT that fails"); }
    CHECK(!opd_fft_r2c(to_gpu(opd_randn(OPD_INTS(4, 4), OPD_FLOAT32)), opd_ints_of(&last, 1), 0, true));
    CHECK(strstr(opd_error_message(), text) != NULL);
    opd_error_clear();
}
