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
                if (at) { CHECK(launches() - before <= 20); }
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
