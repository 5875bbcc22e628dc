/* Tests of what one kernel computes for several operators or tensors: lists of tensors, pointwise formulas of different
   dtypes, rms_norm, cross entropy, products with a bias.  Part of test_cuda.c. */

/* Compares a result on the GPU with the one on the CPU: dtype, sizes, and elements, relative to the largest. */
static void as_on_host(const char *name, opd_tensor *on_gpu_, opd_tensor *on_host, double tolerance) {
    snprintf(what, sizeof what, "%s", name);
    if (!went_well(on_gpu_ && on_host ? 0 : -1)) { return; }
    (void)say(opd_dtype(on_gpu_) == opd_dtype(on_host), "another dtype");
    if (!say(opd_tensor_device(on_gpu_).type == OPD_CUDA && same_shape(on_gpu_, on_host), "other sizes") || opd_numel(on_host) == 0) {
        return;
    }
    opd_tensor *a = opd_to_dtype(to_host(on_gpu_), OPD_FLOAT64), *b = opd_to_dtype(on_host, OPD_FLOAT64);
    const double most = opd_item_f64(opd_max(opd_abs(b))), gap = opd_item_f64(opd_max(opd_abs(opd_sub(a, b))));
    if (!(gap <= tolerance * (most + 1e-30))) { printf("%s: a difference of %g in %g\n", what, gap, most); }
    CHECK(gap <= tolerance * (most + 1e-30));
}
static double rounding(opd_scalar_type t) {
    return t == OPD_BFLOAT16 ? 1e-2 : t == OPD_FLOAT16 ? 2e-3 : t == OPD_FLOAT32 ? 1e-5 : 1e-12;
}
static opd_tensor *normal_of(opd_ints sizes, opd_scalar_type t) { return opd_to_dtype(opd_mul_Scalar(opd_randn(sizes, OPD_FLOAT32), OPD_V(2)), t); }
static long launches(void) { return opd_emu_count ? opd_emu_count("launches") : 0; }

static const opd_scalar_type mixed[][2] = {
    {OPD_FLOAT32, OPD_BFLOAT16}, {OPD_FLOAT16, OPD_FLOAT32}, {OPD_FLOAT16, OPD_BFLOAT16}, {OPD_BFLOAT16, OPD_INT32}, {OPD_BOOL, OPD_UINT8},
    {OPD_UINT8, OPD_UINT8}, {OPD_INT8, OPD_UINT8}, {OPD_INT16, OPD_INT8}, {OPD_BOOL, OPD_BOOL}, {OPD_INT32, OPD_INT64}, {OPD_FLOAT64, OPD_FLOAT32}};
TEST(pointwise_formulas_of_two_dtypes) {
    if (!there()) { SKIP("no GPU"); }
    for (size_t k = 0; k < sizeof mixed / sizeof *mixed; k++) {
        /* whole, with a rest, broadcast rows and columns, parts that are and are not aligned, transposed */
        for (int view = 0; view < 7; view++) {
            OPD_SCOPE {
                opd_tensor *h[2], *g[2];
                for (int i = 0; i < 2; i++) {
                    h[i] = view == 1 ? normal_of(OPD_INTS(41), mixed[k][i]) : normal_of(OPD_INTS(5, 48), mixed[k][i]);
                    g[i] = to_gpu(h[i]);
                    for (int on = 0; on < 2; on++) {
                        opd_tensor **t = on ? &g[i] : &h[i];
                        if (view == 2 && i) { *t = opd_select(*t, 0, 1); }
                        if (view == 3 && i) { *t = opd_narrow(*t, 1, 3, 1); }
                        if (view == 4) { *t = opd_narrow(*t, 1, 16 * i + 16, 16); }
                        if (view == 5) { *t = opd_narrow(*t, 1, 3, 16 + 8 * i - 8 * i); }
                        if (view == 6 && i) { *t = opd_t(opd_contiguous(opd_t(*t))); }
                    }
                }
                char name[60];
                snprintf(name, sizeof name, "dtypes %d, view %d", (int)k, view);
                as_on_host(name, opd_add(g[0], g[1]), opd_add(h[0], h[1]), 0);
                as_on_host(name, opd_mul(g[1], g[0]), opd_mul(h[1], h[0]), 0);
                as_on_host(name, opd_lt(g[0], g[1]), opd_lt(h[0], h[1]), 0);
                as_on_host(name, opd_logical_and(g[0], g[1]), opd_logical_and(h[0], h[1]), 0);
                as_on_host(name, opd_where_self(opd_gt(g[0], g[1]), g[0], g[1]), opd_where_self(opd_gt(h[0], h[1]), h[0], h[1]), 0);
                as_on_host(name, opd_silu(opd_to_dtype(g[0], OPD_BFLOAT16)), opd_silu(opd_to_dtype(h[0], OPD_BFLOAT16)), 1e-2);
                as_on_host(name, opd_atan2(g[0], g[1]), opd_atan2(h[0], h[1]), 1e-2);
            }
        }
    }
    CHECK_OK();
}
TEST(heavy_formulas_of_parts) {
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 4; k++) {
        OPD_SCOPE {
            const opd_scalar_type t = k == 0 ? OPD_FLOAT32 : k == 1 ? OPD_FLOAT16 : k == 2 ? OPD_BFLOAT16 : OPD_FLOAT64;
            opd_tensor *h = normal_of(OPD_INTS(2, 7, 64), t), *g = to_gpu(h);
            for (int view = 0; view < 5; view++) {
                /* halves of rows, unaligned parts, every other element, one element for many, and a dim in the middle */
                opd_tensor *x[2] = {h, g};
                for (int i = 0; i < 2; i++) {
                    x[i] = view == 0 ? opd_narrow(x[i], 2, 32, 32) : view == 1 ? opd_narrow(x[i], 2, 3, 33)
                        : view == 2 ? opd_slice(x[i], 2, OPD_V(0), OPD_V(64), 2) : view == 3 ? opd_expand(opd_narrow(x[i], 2, 0, 1), OPD_INTS(2, 7, 64))
                        : opd_narrow(x[i], 1, 2, 3);
                }
                as_on_host("gelu", opd_gelu(x[1]), opd_gelu(x[0]), rounding(t));
                as_on_host("silu", opd_silu(x[1]), opd_silu(x[0]), rounding(t));
                as_on_host("tanh", opd_tanh(x[1]), opd_tanh(x[0]), rounding(t));
                as_on_host("sigmoid", opd_sigmoid(x[1]), opd_sigmoid(x[0]), rounding(t));
                as_on_host("silu_backward", opd_silu_backward(x[1], x[1]), opd_silu_backward(x[0], x[0]), rounding(t));
                as_on_host("logical_not", opd_logical_not(x[1]), opd_logical_not(x[0]), 0);
            }
        }
    }
    CHECK_OK();
}

enum { LISTED = 170 };
/* A list of parameters: many small ones, one that begins at an odd place, a large one, one with strides, an empty one. */
static void list_of(opd_tensor **h, opd_tensor **g, opd_scalar_type t) {
    for (int i = 0; i < LISTED; i++) {
        h[i] = normal_of(i == 7 ? OPD_INTS(20000) : i == 9 ? OPD_INTS(0) : i % 3 ? OPD_INTS(i % 5 + 1, 3) : OPD_INTS(17 + i % 4), t);
        if (i == 5) { h[i] = normal_of(OPD_INTS(50), t); }
        if (i == 8) { h[i] = opd_t(normal_of(OPD_INTS(6, 5), t)); }
        g[i] = to_gpu(h[i]);
        if (i == 5) { h[i] = opd_narrow(h[i], 0, 3, 40); g[i] = opd_narrow(g[i], 0, 3, 40); }
    }
}
static void as_lists(const char *name, opd_tensor *const *g, opd_tensor *const *h, double tolerance) {
    for (int i = 0; i < LISTED; i++) { OPD_SCOPE { as_on_host(name, g[i], h[i], tolerance); } }
}
TEST(lists_of_tensors_take_few_launches) {
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 4; k++) {
        OPD_SCOPE {
            const opd_scalar_type t = k == 0 ? OPD_FLOAT32 : k == 1 ? OPD_FLOAT16 : k == 2 ? OPD_BFLOAT16 : OPD_FLOAT64;
            opd_tensor *h[2][LISTED], *g[2][LISTED];
            const long most = k < 3 ? 12 : 400;   /* tensors of float64 and with strides have their own launches */
            list_of(h[0], g[0], t);
            list_of(h[1], g[1], t);
#define LISTS(call, tolerance) do { \
            long before_ = launches(); \
            opd_tensor **x = g[0], **y = g[1]; \
            call; \
            if (launches() - before_ > most) { printf("%s: %ld launches\n", #call, launches() - before_); } \
            CHECK(launches() - before_ <= most); \
            x = h[0]; y = h[1]; \
            call; \
            (void)y; \
            as_lists(#call, g[0], h[0], tolerance); \
        } while (0)
            LISTS((void)opd_foreach_mul_Scalar_(opd_tensors_of(x, LISTED), OPD_V(0.5)), 0);
            LISTS((void)opd_foreach_add_List_(opd_tensors_of(x, LISTED), opd_tensors_of(y, LISTED)), 0);
            LISTS((void)opd_foreach_abs_(opd_tensors_of(x, LISTED)), 0);
            LISTS((void)opd_foreach_addcmul_Scalar_(opd_tensors_of(x, LISTED), opd_tensors_of(y, LISTED), opd_tensors_of(y, LISTED)), rounding(t));
            LISTS((void)opd_foreach_copy_(opd_tensors_of(x, LISTED), opd_tensors_of(y, LISTED)), 0);
            LISTS((void)opd_foreach_zero_(opd_tensors_of(x, LISTED)), 0);
        }
    }
    CHECK_OK();
}
/* What a list computes may depend on what it has computed before. */
TEST(lists_whose_tensors_overlap) {
    opd_tensor *x, *list[4], *other[4], *sums[4];
    if (!there()) { SKIP("no GPU"); }
    x = on_gpu(four, 4);
    for (int i = 0; i < 4; i++) { list[i] = opd_narrow(x, 0, i < 2 ? 0 : 2, 2); other[i] = opd_narrow(x, 0, i < 2 ? 2 : 0, 2); }
    OPD_NO_GRAD { (void)opd_foreach_add_List_(opd_tensors_of(list, 4), opd_tensors_of(other, 4)); }
    /* the first half gets 4 -1.5, then 7 -1, the second half 10 -0.5, then 17 -1.5 */
    CHECK_NEAR(at(x, 0), 7, 0); CHECK_NEAR(at(x, 1), -1, 0); CHECK_NEAR(at(x, 2), 17, 0); CHECK_NEAR(at(x, 3), -1.5, 0);
    /* gradients of a list are recorded like gradients of single tensors */
    for (int i = 0; i < 4; i++) { list[i] = opd_tensor_set_requires_grad(on_gpu(four, 4), true); }
    opd_tensors made = opd_foreach_mul_List(opd_tensors_of(list, 4), opd_tensors_of(list, 4));
    for (int i = 0; i < 4; i++) { sums[i] = made.n == 4 ? opd_sum(made.data[i]) : NULL; }
    (void)opd_backward(opd_sum(opd_stack(opd_tensors_of(sums, 4), 0)));
    CHECK_NEAR(at(opd_tensor_grad(list[3]), 2), 6, 0);
    CHECK_OK();
}
TEST(norms_of_lists_and_clipping) {
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 12; k++) {
        OPD_SCOPE {
            const opd_scalar_type t = k % 4 == 0 ? OPD_FLOAT32 : k % 4 == 1 ? OPD_FLOAT16 : k % 4 == 2 ? OPD_BFLOAT16 : OPD_FLOAT64;
            const double order = k / 4 == 0 ? 2 : k / 4 == 1 ? 1 : INFINITY;
            opd_tensor *h[2][LISTED], *g[2][LISTED], *total[2];
            list_of(h[0], g[0], t);
            list_of(h[1], g[1], t);
            h[0][9] = normal_of(OPD_INTS(3), t); g[0][9] = to_gpu(h[0][9]);                  /* the norms need elements */
            opd_tensors norms[2] = {opd_foreach_norm_Scalar_full(opd_tensors_of(h[0], LISTED), opd_value_double(order), opd_value_none()),
                                    opd_foreach_norm_Scalar_full(opd_tensors_of(g[0], LISTED), opd_value_double(order), opd_value_none())};
            if (norms[0].n == LISTED && norms[1].n == LISTED) { as_lists("norm", norms[1].data, norms[0].data, rounding(t)); }
            else { (void)went_well(-1); }
            for (int i = 0; i < LISTED; i++) {
                h[1][i] = opd_tensor_set_requires_grad(opd_zeros_like(h[0][i]), true);
                g[1][i] = opd_tensor_set_requires_grad(opd_zeros_like(g[0][i]), true);
                (void)opd_tensor_set_grad(h[1][i], h[0][i]);
                (void)opd_tensor_set_grad(g[1][i], g[0][i]);
            }
            const long before = launches();
            total[1] = opd_clip_grad_norm(g[1], LISTED, 0.5, order, false);
            CHECK(launches() - before <= (t == OPD_FLOAT64 ? 400 : 14));     /* 170 tensors, one of them with strides */
            total[0] = opd_clip_grad_norm(h[1], LISTED, 0.5, order, false);
            as_on_host("total norm", total[1], total[0], rounding(t));
            as_lists("clipped", g[0], h[0], 2 * rounding(t));
        }
    }
    CHECK_OK();
}

/* Sets out[0] to the norm, out[1] and out[2] to the gradients of input and weight, out[3] to one of a second derivative. */
static void rms_of(opd_tensor *x, opd_tensor *w, opd_tensor *g, opd_tensor **out) {
    opd_tensor *leaves[2] = {opd_tensor_set_requires_grad(opd_detach(x), true), w ? opd_tensor_set_requires_grad(opd_detach(w), true) : NULL};
    opd_backward_options options;
    opd_tensor *grads[2] = {NULL, NULL}, *sum;
    const int64_t n = opd_size(x, -1);
    memset(&options, 0, sizeof options);
    options.grad_outputs = &g;
    options.create_graph = true;
    out[0] = opd_rms_norm(leaves[0], opd_ints_of(&n, 1), leaves[1], opd_value_double(1e-5));
    if (!out[0] || opd_autograd_grad(&out[0], 1, leaves, w ? 2 : 1, &options, grads)) { return; }
    sum = opd_sum(opd_square(grads[0]));
    options.grad_outputs = NULL; options.create_graph = false; options.retain_graph = true;
    if (opd_autograd_grad(&sum, 1, leaves, 1, &options, &out[3])) { return; }
    options.grad_outputs = &g; options.retain_graph = false;
    (void)opd_autograd_grad(&out[0], 1, leaves, w ? 2 : 1, &options, &out[1]);
}
TEST(rms_norm_in_one_kernel) {
    static const int64_t lengths[] = {1, 7, 40, 256, 1032, 9000};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 6 * 4 * 3; k++) {         /* weight: none, of the input's dtype, float32 */
        OPD_SCOPE {
            const int weight = k / 24;
            const opd_scalar_type t = k % 4 == 0 ? OPD_FLOAT32 : k % 4 == 1 ? OPD_FLOAT16 : k % 4 == 2 ? OPD_BFLOAT16 : OPD_FLOAT64;
            const int64_t n = lengths[k / 4 % 6];
            opd_tensor *x = normal_of(OPD_INTS(2, 3, n), t), *g = normal_of(OPD_INTS(2, 3, n), t), *out[2][4];
            opd_tensor *w = !weight ? NULL : normal_of(OPD_INTS(n), weight == 2 && opd_dtype_size(t) == 2 ? OPD_FLOAT32 : t);
            memset(out, 0, sizeof out);
            rms_of(x, w, g, out[0]);
            rms_of(to_gpu(x), to_gpu(w), to_gpu(g), out[1]);
            for (int i = 0; i < 4; i++) {
                static const char *const names[] = {"rms_norm", "its gradient", "the weight's gradient", "its second derivative"};
                const bool zero = n == 1 && i % 2;  /* the gradient with respect to one element is almost 0 */
                if ((i != 2 || w) && !zero) { as_on_host(names[i], out[1][i], out[0][i], (i == 3 ? 40 : 2) * rounding(t)); }
            }
        }
    }
    CHECK_OK();
}
static int rms_of_rows(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int64_t size = opd_size(in[0], -1);
    (void)user; (void)n;
    out[0] = opd_rms_norm(in[0], opd_ints_of(&size, 1), in[1], opd_value_none());
    return out[0] ? 1 : -1;
}
TEST(rms_norm_in_transforms) {
    opd_tensor *x[2], *g[2], *y[4] = {NULL, NULL, NULL, NULL}, *z[4] = {NULL, NULL, NULL, NULL};
    if (!there()) { SKIP("no GPU"); }
    for (int i = 0; i < 2; i++) { x[i] = normal_of(OPD_INTS(3, 8), OPD_FLOAT32); g[i] = to_gpu(x[i]); }
    CHECK_INT(opd_vmap(rms_of_rows, NULL, x, 2, NULL, y, 1), 1);
    CHECK_INT(opd_vmap(rms_of_rows, NULL, g, 2, NULL, z, 1), 1);
    as_on_host("rms_norm, batched", z[0], y[0], 1e-5);
    x[1] = opd_select(x[1], 0, 0); g[1] = opd_select(g[1], 0, 0);
    CHECK_INT(opd_jvp(rms_of_rows, NULL, x, x, 2, NULL, y, y + 1, 1), 1);
    CHECK_INT(opd_jvp(rms_of_rows, NULL, g, g, 2, NULL, z, z + 1, 1), 1);
    as_on_host("rms_norm, its tangent", z[1], y[1], 1e-4);
    for (int on = 0; on < 2; on++) {
        opd_tensor *two[2] = {NULL, NULL};
        const int64_t n = 8;
        opd_value args[4], rets[2];
        static opd_op *op;
        args[0] = opd_value_tensor(on ? g[0] : x[0]); args[1] = opd_value_ints(&n, 1);
        args[2] = opd_value_none(); args[3] = opd_value_none();
        if (opd_call_all(OPD_OP(&op, "aten::_fused_rms_norm"), rets, args, 4) == 0) { two[0] = rets[0].u.t; two[1] = rets[1].u.t; }
        for (int i = 0; i < 2; i++) { (on ? z : y)[i] = two[i]; }
    }
    as_on_host("_fused_rms_norm", z[0], y[0], 1e-5);
    as_on_host("_fused_rms_norm, the factors", z[1], y[1], 1e-5);
    CHECK_OK();
}

/* Sets out[0] to the loss, out[1] to the gradient of x, out[2] to one of a second derivative. */
static void entropy_of(opd_tensor *x, opd_tensor *target, int reduction, opd_tensor *g, opd_tensor **out) {
    opd_tensor *leaf = opd_tensor_set_requires_grad(opd_detach(x), true), *grad = NULL, *sum;
    opd_backward_options options;
    memset(&options, 0, sizeof options);
    options.grad_outputs = &g;
    options.create_graph = true;
    out[0] = opd_cross_entropy_loss_full(leaf, target, NULL, reduction, 5, 0);
    if (!out[0] || opd_autograd_grad(&out[0], 1, &leaf, 1, &options, &grad)) { return; }
    sum = opd_sum(opd_square(grad));
    options.grad_outputs = NULL; options.create_graph = false; options.retain_graph = true;
    if (opd_autograd_grad(&sum, 1, &leaf, 1, &options, &out[2])) { return; }
    options.grad_outputs = &g; options.retain_graph = false;
    (void)opd_autograd_grad(&out[0], 1, &leaf, 1, &options, &out[1]);
}
TEST(cross_entropy_reads_the_logits_once) {
    static const int64_t classes[] = {256, 257, 1003, 4100};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 4 * 4 * 3; k++) {
        OPD_SCOPE {
            const opd_scalar_type t = k % 4 == 0 ? OPD_FLOAT32 : k % 4 == 1 ? OPD_FLOAT16 : k % 4 == 2 ? OPD_BFLOAT16 : OPD_FLOAT64;
            const int64_t c = classes[k / 4 % 4];
            const int reduction = k / 16;
            opd_tensor *x = normal_of(OPD_INTS(9, c), t), *out[2][3], *g = opd_to_dtype(reduction ? opd_mean(opd_ones(OPD_INTS(3), OPD_FLOAT32)) : opd_rand(OPD_INTS(9), OPD_FLOAT32), t);
            opd_tensor *target = opd_randint(c, OPD_INTS(9), OPD_INT64);
            (void)opd_fill_(opd_select(target, 0, 4), OPD_V(5));                             /* is ignored */
            (void)opd_fill_(opd_select(target, 0, 5), opd_value_int(c - 1));
            memset(out, 0, sizeof out);
            entropy_of(x, target, reduction, g, out[0]);
            entropy_of(to_gpu(x), to_gpu(target), reduction, to_gpu(g), out[1]);
            as_on_host("cross_entropy", out[1][0], out[0][0], rounding(t));
            as_on_host("its gradient", out[1][1], out[0][1], 3 * rounding(t));
            as_on_host("its second derivative", out[1][2], out[0][2], 40 * rounding(t));
        }
    }
    CHECK_OK();
}
TEST(cross_entropy_of_unusual_logits) {
    opd_tensor *x, *y = NULL, *target;
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 4; k++) {                 /* all -inf; one inf; a NaN; -inf at the target */
        OPD_SCOPE {
            x = opd_zeros(OPD_INTS(3, 300), OPD_FLOAT32);
            (void)opd_fill_(k ? opd_select(opd_select(x, 0, 1), 0, 7) : opd_select(x, 0, 1), OPD_V(k == 0 || k == 3 ? -INFINITY : k == 1 ? INFINITY : NAN));
            target = opd_full(OPD_INTS(3), OPD_V(7), OPD_INT64);
            for (int64_t row = 0; row < 3; row++) {
                const double h = case_get(opd_to_dtype(opd_cross_entropy_loss_full(x, target, NULL, 0, -100, 0), OPD_FLOAT64), row);
                const double g = at(opd_cross_entropy_loss_full(to_gpu(x), to_gpu(target), NULL, 0, -100, 0), row);
                CHECK((isnan(h) && isnan(g)) || h == g || fabs(h - g) < 1e-5);
            }
        }
    }
    target = to_gpu(opd_full(OPD_INTS(2), OPD_V(-100), OPD_INT64));          /* no row counts: 0 / 0 */
    CHECK(isnan(at(opd_cross_entropy_loss(to_gpu(opd_zeros(OPD_INTS(2, 300), OPD_FLOAT32)), target), 0)));
    found_wrong(opd_cross_entropy_loss(to_gpu(opd_zeros(OPD_INTS(2, 300), OPD_FLOAT32)), to_gpu(opd_full(OPD_INTS(2), OPD_V(300), OPD_INT64))),
                "cross_entropy", "index 300 is out of bounds for dimension with size 300");
    x = opd_tensor_set_requires_grad(to_gpu(normal_of(OPD_INTS(4, 260), OPD_BFLOAT16)), true);
    OPD_AUTOCAST_AS(OPD_CUDA, OPD_BFLOAT16, true, -1) { y = opd_cross_entropy_loss(x, to_gpu(opd_full(OPD_INTS(4), OPD_V(3), OPD_INT64))); }
    CHECK(y && opd_dtype(y) == OPD_FLOAT32);
    (void)opd_backward(y);
    CHECK(opd_tensor_grad(x) && opd_dtype(opd_tensor_grad(x)) == OPD_BFLOAT16);
    CHECK_OK();
}
TEST(products_with_a_bias) {
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 4 * 6; k++) {
        OPD_SCOPE {
            const opd_scalar_type t = k % 4 == 0 ? OPD_FLOAT32 : k % 4 == 1 ? OPD_FLOAT16 : k % 4 == 2 ? OPD_BFLOAT16 : OPD_FLOAT64;
            const int kind = k / 4;               /* even sizes, odd ones, one row, an unaligned bias, turned factors, a part of a matrix */
            const int64_t m = kind == 1 ? 5 : kind == 2 ? 1 : 16, n = kind == 1 ? 7 : 24, p = kind == 1 ? 3 : 32;
            opd_tensor *a = normal_of(kind == 5 ? OPD_INTS(m, n + 3) : OPD_INTS(m, n), t), *b = normal_of(OPD_INTS(n, p), t);
            opd_tensor *bias = normal_of(OPD_INTS(p + 3), t), *in[2][3] = {{a, b, bias}, {to_gpu(a), to_gpu(b), to_gpu(bias)}}, *out[2][3];
            for (int on = 0; on < 2; on++) {
                opd_tensor **x = in[on];
                x[2] = opd_narrow(x[2], 0, kind == 3 ? 1 : 0, p);
                if (kind == 4) { x[0] = opd_t(opd_contiguous(opd_t(x[0]))); x[1] = opd_t(opd_contiguous(opd_t(x[1]))); }
                if (kind == 5) { x[0] = opd_narrow(x[0], 1, 2, n); }
                const long before = launches();
                out[on][0] = opd_addmm(x[2], x[0], x[1]);
                if (on && (kind == 0 || kind == 4) && t != OPD_FLOAT64) { CHECK_INT(launches() - before, 0); }      /* nothing copies the bias */
                out[on][1] = opd_addmm_full(x[2], x[0], x[1], OPD_V(0.5), OPD_V(2.0));
                out[on][2] = opd_addmm_full(x[2], x[0], x[1], OPD_V(1), OPD_V(-2));
            }
            for (int i = 0; i < 3; i++) { as_on_host("addmm", out[1][i], out[0][i], 2 * rounding(t)); }
        }
    }
    CHECK_OK();
}
/* Attention of texts that lie one after another: a kernel for each text, and derivatives, also in bfloat16. */
TEST(attention_of_texts_of_different_lengths) {
    static const int32_t starts[] = {0, 70, 70, 101, 102};
    if (!there()) { SKIP("no GPU"); }
    for (int k = 0; k < 6; k++) {
        OPD_SCOPE {
            const opd_scalar_type type = k % 2 ? OPD_BFLOAT16 : OPD_FLOAT32;
            opd_tensor *h[3], *g[3], *out[2][4], *at = opd_tensor_from(starts, OPD_INTS(5), OPD_INT32);
            for (int i = 0; i < 3; i++) {
                h[i] = opd_tensor_set_requires_grad(opd_to_dtype(opd_randn(OPD_INTS(102, i ? 2 : 4, 24), OPD_FLOAT32), type), true);
                g[i] = opd_tensor_set_requires_grad(to_gpu(opd_detach(h[i])), true);
            }
            for (int on = 0; on < 2; on++) {
                opd_tensor **x = on ? g : h, *sum;
                out[on][3] = opd_varlen_attention(x[0], x[1], x[2], on && k > 2 ? to_gpu(at) : at, at, k % 3 == 2 ? 9 : -1, k % 3 ? 0 : -1, opd_value_none());
                sum = opd_sum(opd_mul(out[on][3], out[on][3]));
                (void)opd_autograd_grad(&sum, 1, x, 3, NULL, out[on]);
            }
            for (int i = 0; i < 4; i++) { as_on_host("attention of several texts", out[1][i], opd_detach(out[0][i]), type == OPD_FLOAT32 ? 1e-5 : 3e-2); }
        }
    }
    CHECK_OK();
}
