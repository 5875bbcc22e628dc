/* Fake modes: programs that compute only shapes, devices that do not exist, sizes that depend on data, and the costs
   of a program. */
#include "../../opdispatch.h"
#include "../cases.h"

static opd_tensor *floats(int64_t a, int64_t b) { return opd_zeros(OPD_INTS(a, b), OPD_FLOAT32); }
static opd_tensor *zeros_on(int64_t n, opd_backend type) {
    return opd_zeros_full(opd_ints_of(&n, 1), OPD_NONE, OPD_NONE, opd_value_device(opd_device_make(type, 0)), OPD_NONE);
}
static bool is_cpu(const opd_tensor *t) { return opd_tensor_device(t).type == OPD_CPU; }

TEST(shapes_dtypes_and_devices) {
    opd_tensor *x = floats(2, 3), *y = NULL, *z = NULL;
    CHECK(!opd_fake_enabled());
    OPD_FAKE_MODE {
        CHECK(opd_fake_enabled());
        y = opd_add(x, floats(3, 3) ? opd_zeros(OPD_INTS(3), OPD_FLOAT64) : NULL);
        CHECK_OK();
        CHECK(opd_ndim(y) == 2 && opd_size(y, 0) == 2 && opd_size(y, 1) == 3 && opd_dtype(y) == OPD_FLOAT64);
        CHECK(is_cpu(y));
        CHECK(opd_data(y) == NULL);
        opd_error_clear();
        z = opd_matmul(opd_transpose(x, 0, 1), x);
        CHECK(opd_size(z, 0) == 3 && opd_size(z, 1) == 3 && is_cpu(z) && is_cpu(opd_ones_like(z)));
        CHECK(opd_tensor_device(opd_ones_like(z)).type == OPD_CPU && opd_data(opd_ones_like(z)) == NULL);
        opd_error_clear();
        CHECK(is_cpu(opd_mul(z, opd_ones(opd_ints_of(NULL, 0), OPD_FLOAT32))));
    }
    CHECK(!opd_fake_enabled());
    CHECK(opd_tensor_device(y).type == OPD_META && opd_tensor_device(opd_ones_like(y)).type == OPD_META);
    CHECK(opd_data(floats(2, 2)) != NULL);
    CHECK_OK();
}
TEST(devices_that_are_not_there) {
    OPD_FAKE_MODE {
        opd_tensor *a = zeros_on(4, OPD_CUDA), *b = opd_add(a, a);
        CHECK_OK();
        CHECK(opd_tensor_device(b).type == OPD_CUDA && opd_tensor_device(b).index == 0);
        CHECK(opd_tensor_device(opd_tensor_new_on(OPD_INTS(2), OPD_FLOAT32, opd_device_make(OPD_XPU, 1))).index == 1);
        CHECK(opd_tensor_device(opd_sum(b)).type == OPD_CUDA);
        CHECK(opd_tensor_device(opd_mul(b, opd_ones(opd_ints_of(NULL, 0), OPD_FLOAT32))).type == OPD_CUDA);
        CHECK(opd_tensor_device(opd_mul(opd_ones(opd_ints_of(NULL, 0), OPD_FLOAT32), b)).type == OPD_CUDA);
        CHECK_OK();
        CHECK(opd_add(a, opd_zeros(OPD_INTS(4), OPD_FLOAT32)) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "two devices, cuda:0 and cpu! (argument 'other')");
    }
}
TEST(real_tensors_are_not_written) {
    const float data[] = {1, 2};
    opd_tensor *x = opd_tensor_from(data, OPD_INTS(2), OPD_FLOAT32), *f;
    opd_value args[2];
    args[0] = args[1] = opd_value_tensor(x);
    OPD_FAKE_MODE {
        CHECK(opd_call_op(opd_find("aten::add_.Tensor"), args, 2) == x);
        CHECK_NEAR(opd_data_f32(x)[0], 1, 0);
        f = opd_fake_tensor(x);
        CHECK(f && f != x && f == opd_fake_tensor(x) && f == opd_fake_tensor(f) && opd_data(f) == NULL);
        opd_error_clear();
        CHECK(opd_call_op(opd_find("aten::unsqueeze_"), args, 1) == NULL);
        opd_error_clear();
        args[1] = opd_value_int(0);
        CHECK(opd_call_op(opd_find("aten::unsqueeze_"), args, 2) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_fake_tensor");
    }
    CHECK(opd_fake_tensor(x) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "opd_fake_begin");
    CHECK_INT(opd_ndim(x), 1);
}

/* A training step with only shapes: gradients have the sizes of the parameters. */
TEST(backward) {
    opd_tensor *w = opd_tensor_set_requires_grad(floats(3, 5), true), *p = NULL, *loss;
    OPD_FAKE_MODE {
        p = opd_fake_tensor(w);
        CHECK(opd_tensor_requires_grad(p) && opd_tensor_is_leaf(p));
        loss = opd_sum(opd_relu(opd_mm(floats(2, 3), p)));
        CHECK(opd_tensor_requires_grad(loss));
        CHECK_INT(opd_backward(loss), 0);
        CHECK_OK();
        CHECK(opd_tensor_grad(p) && opd_size(opd_tensor_grad(p), 1) == 5 && is_cpu(opd_tensor_grad(p)));
    }
    CHECK(opd_tensor_grad(w) == NULL);
}

/* A parameter that is real: its gradient would be a fake. */
TEST(gradients_of_real_parameters) {
    opd_tensor *w = opd_tensor_set_requires_grad(floats(3, 5), true);
    OPD_FAKE_MODE { CHECK_INT(opd_backward(opd_sum(opd_mul(w, w))), -1); }
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "the gradient of a real tensor would be a fake");
    CHECK(opd_tensor_grad(w) == NULL);
}
static int squares(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    out[0] = opd_sum(opd_mul(in[0], in[n - 1]));
    return out[0] ? 1 : -1;
}
TEST(under_transforms_and_recordings) {
    opd_tensor *x = floats(4, 3), *y;
    OPD_FAKE_MODE {
        opd_graph *g;
        CHECK_INT(opd_vmap(squares, NULL, &x, 1, NULL, &y, 1), 1);
        CHECK(opd_ndim(y) == 1 && opd_size(y, 0) == 4 && opd_tensor_device(y).type == OPD_CPU);
        CHECK_INT(opd_grad(squares, NULL, &x, 1, NULL, &y, 1), 1);
        CHECK(opd_ndim(y) == 2 && opd_size(y, 1) == 3);
        g = opd_graph_trace(squares, NULL, &x, 1, NULL);
        CHECK_INT(opd_graph_count(g, "aten::mul"), 1);
        opd_graph_free(g);
        CHECK_OK();
    }
}

/* Regions choose the dtypes of fakes as those of the tensors that they stand for: by their device, there or not. */
static opd_scalar_type product(opd_tensor *a, opd_tensor *b) { return opd_dtype(opd_mm(a, b)); }
TEST(autocast_of_fakes) {
    opd_tensor *x = floats(4, 4), *w = opd_tensor_set_requires_grad(floats(4, 4), true), *half = NULL, *p, *y;
    OPD_FAKE_MODE {
        opd_tensor *f = floats(4, 4), *gpu, *sum;
        p = opd_fake_tensor(w);
        OPD_AUTOCAST(OPD_CPU) {
            CHECK_INT(product(x, x), OPD_BFLOAT16);
            CHECK_INT(product(f, f), OPD_BFLOAT16);
            CHECK_INT(product(x, f), OPD_BFLOAT16);
            CHECK_INT(opd_dtype(opd_add(f, f)), OPD_FLOAT32);
            CHECK_INT(opd_dtype(opd_cat(OPD_TENSORS(opd_mm(f, f), f), 0)), OPD_FLOAT32);      /* the widest */
            y = opd_mm(f, p);
            CHECK(opd_autocast_cast(OPD_BFLOAT16, p) == opd_autocast_cast(OPD_BFLOAT16, p));      /* weights once */
            half = opd_autocast_cast(OPD_BFLOAT16, w);
            CHECK(half && opd_data(half) == NULL);
            opd_error_clear();
            CHECK_INT(opd_backward(opd_sum(y)), 0);
            CHECK_INT(opd_dtype(opd_tensor_grad(p)), OPD_FLOAT32);
            CHECK_INT(opd_autocast_promote(OPD_BFLOAT16, &f, 1), OPD_FLOAT32);
        }
        CHECK_INT(product(f, f), OPD_FLOAT32);
        gpu = opd_reshape(zeros_on(4, OPD_CUDA), OPD_INTS(2, 2));
        OPD_AUTOCAST(OPD_CUDA) {
            sum = opd_mm(gpu, gpu);
            CHECK_INT(opd_dtype(sum), OPD_FLOAT16);
            CHECK_INT(opd_dtype(opd_exp(sum)), OPD_FLOAT32);
            CHECK(opd_tensor_device(opd_exp(sum)).type == OPD_CUDA);
            CHECK_INT(product(f, f), OPD_FLOAT32);            /* of the CPU, whose autocast is off */
        }
    }
    OPD_AUTOCAST(OPD_CPU) {                       /* what a mode has cast is nothing for the calls outside of it */
        OPD_FAKE_MODE { CHECK_INT(product(x, w), OPD_BFLOAT16); }
        CHECK(opd_data(opd_mm(x, w)) != NULL);
        CHECK_INT(product(x, w), OPD_BFLOAT16);
    }
    CHECK_OK();
}

//-- every operator ------------------------------------------------------------------------------------------------------

/* What decides sizes, or gives a number. */
static bool data_decide(const opd_op *op) {
    static const char *const list[] = {"nonzero", "masked_select", "item", "is_nonzero", "_local_scalar_dense", "equal", "repeat_interleave.Tensor",
                                       "repeat_interleave.self_Tensor", "resize_as_", "allclose", "_unique2", "unique_dim",
                                       "unique_consecutive", "unique_dim_consecutive", "bincount", "combinations", "argwhere",
                                       "nonzero_numpy", NULL};
    return named(op, list) || strcmp(opd_op_name(op), "aten::where") == 0;
}
static const char *differs(const opd_tensor *real, const opd_tensor *fake) {
    int d;
    if (!real || !fake) { return real == fake ? NULL : "one is undefined"; }
    if (!same_shape(real, fake)) { return "sizes"; }
    if (opd_dtype(real) != opd_dtype(fake)) { return "dtype"; }
    if (opd_tensor_device(real).type != opd_tensor_device(fake).type) { return "device"; }
    for (d = 0; d < opd_ndim(real) && opd_numel(real); d++) {
        if (opd_sizes(real)[d] > 1 && opd_strides(real)[d] != opd_strides(fake)[d]) { return "strides"; }
    }
    return NULL;
}
/* The arguments as fakes of the mode that is open. */
static void fake_arguments(const op_case *c, opd_value *args) {
    static case_list lists[OPD_MAX_ARGS];
    int i, k;
    for (i = 0; i < c->nargs; i++) {
        args[i] = c->args[i];
        if (args[i].tag == OPD_TAG_TENSOR) { args[i].u.t = opd_fake_tensor(args[i].u.t); }
        if (args[i].tag != OPD_TAG_TENSORS) { continue; }
        for (k = 0; k < args[i].n; k++) {
            opd_tensor *t = c->args[i].u.tensors[k];
            lists[i].tensors[k] = t ? opd_fake_tensor(t) : NULL;
        }
        args[i].u.tensors = lists[i].tensors;
    }
}
/* What a call gives, or refuses. */
static int results(const op_case *c, const opd_value *args, opd_tensor **out) {
    opd_value rets[MOST_RESULTS];
    if (opd_call_all((opd_op *)(uintptr_t)c->op, rets, args, c->nargs) == 0) { return results_of(c->op, rets, out); }
    opd_error_clear();
    return -1;
}
static bool like_the_real_one(const op_case *c) {
    opd_tensor *real[MOST_RESULTS], *fake[MOST_RESULTS];
    opd_value args[OPD_MAX_ARGS];
    opd_fake_block mode = opd_fake_begin();
    const char *why = NULL;
    int i, n, m;
    fake_arguments(c, args);                      /* before the call, which may write */
    m = results(c, args, fake);
    opd_fake_end(&mode);
    n = results(c, c->args, real);
    mode = opd_fake_begin();
    if (n != m) { why = n < 0 ? "only the real one is refused" : m < 0 ? "only the fake is refused" : "number of results"; }
    for (i = 0; i < n && !why; i++) { why = differs(real[i], fake[i]); }
    opd_fake_end(&mode);
    if (why) { printf("    %s, layout %d, %s: %s\n", opd_op_name(c->op), c->layout, opd_dtype_name(c->dtype), why); }
    return !why;
}
/* All cases of all operators, in every layout and floating dtype, those that they refuse too. */
TEST(every_operator_like_the_real_one) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16};
    static op_case c;
    const opd_op *op;
    int k, compared = 0, wrong = 0;
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const char *cases = cases_of(op);
        if (!cases || strncmp(opd_op_name(op), "aten::", 6) != 0 || data_decide(op)) { continue; }
        for (k = 0; k < 4 * CASE_LAYOUTS; k++) {
            const char *text = cases;
            while (*text) {
                opd_scope scope = opd_scope_open();
                c.op = op;
                c.dtype = dtypes[k % 4];
                c.layout = k / 4;
                c.smooth = c.meta = false;
                if (case_read_next(&c, &text)) { compared++; wrong += !like_the_real_one(&c); } else { text = ""; }
                opd_scope_close(&scope);
            }
        }
    }
    CHECK_INT(wrong, 0);
    CHECK(compared > 15000);
}

//-- sizes that data decide ---------------------------------------------------------------------------------------------

static int k_compress(opd_call *call) {           /* at most half of it is left */
    opd_tensor *x = opd_arg_tensor(call, 0);
    const int64_t n = opd_fake_new_size(call, 1, opd_numel(x) / 2);
    return n >= 0 && opd_result(call, 0, &n, 1, opd_dtype(x)) ? 0 : -1;
}
static int k_one(opd_call *call) {
    const int64_t one = 1;
    opd_tensor *y = opd_result(call, 0, &one, 1, OPD_FLOAT32);
    if (y) { opd_data_f32(y)[0] = 0; }
    return y ? 0 : -1;
}
static int k_bounds(opd_call *call) { return opd_fake_new_size(call, 5, 2) < 0 || opd_fake_new_size(call, -1, 2) < 0 ? -1 : 0; }
TEST(sizes_that_data_decide) {
    opd_tensor *x = floats(3, 4), *m = opd_tensor_new_on(OPD_INTS(3, 4), OPD_FLOAT32, opd_device_make(OPD_META, -1)), *y;
    opd_library *lib = opd_library_open(OPD_DEF, "sized", NULL, __FILE__, __LINE__);
    opd_value v = opd_value_tensor(x);
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "compress(Tensor x) -> Tensor";
    d.fake = k_compress;
    d.cpu = k_one;
    CHECK_INT(opd_define(lib, &d), 0);
    d.schema = "bounds(Tensor x) -> Tensor";
    d.fake = k_bounds;
    CHECK_INT(opd_define(lib, &d), 0);
    d.schema = "no_fake(Tensor x) -> Tensor";
    d.fake = NULL;
    CHECK_INT(opd_define(lib, &d), 0);
    OPD_FAKE_MODE {
        y = opd_nonzero(x);
        CHECK(opd_size(y, 0) == 12 && opd_size(y, 1) == 2);
        y = opd_arange(opd_value_int(5), OPD_INT64);
        CHECK(opd_numel(opd_bincount_full(y, NULL, 7)) == 7 && opd_size(opd_one_hot(y, -1), 1) == 1);
        CHECK_INT(opd_numel(opd_multinomial_full(x, 3, true, NULL)), 9);
        CHECK_INT(opd_numel(opd_masked_select(x, opd_gt_Scalar(x, opd_value_int(0)))), 12);
        CHECK_INT(opd_numel(opd_call_op(opd_find("sized::compress"), &v, 1)), 6);
        CHECK_OK();
        CHECK(opd_call_op(opd_find("sized::bounds"), &v, 1) == NULL);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "got min=5 and max=2");
        CHECK(opd_call_op(opd_find("sized::no_fake"), &v, 1) == NULL);
        CHECK_ERROR(OPD_ERROR_NO_KERNEL, "There was no fake impl registered for sized::no_fake");
        (void)opd_item_f64(opd_sum(x));
        CHECK(!opd_ok());
        opd_error_clear();
    }
    CHECK(opd_nonzero(m) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "depends on data");
    v = opd_value_tensor(m);
    CHECK(opd_call_op(opd_find("sized::compress"), &v, 1) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "in a fake mode");
    v = opd_value_tensor(x);
    CHECK_INT(opd_opcheck(opd_find("sized::compress"), &v, 1, NULL), 0);
    CHECK_OK();
    opd_library_close(lib);
}

TEST(modes_nest_and_end_twice) {
    opd_fake_block a = opd_fake_begin(), b = opd_fake_begin();
    CHECK(opd_fake_enabled());
    opd_fake_end(&a);                             /* with b, which is inside */
    CHECK(!opd_fake_enabled());
    opd_fake_end(&b);
    opd_fake_end(&a);
    OPD_FAKE_MODE { CHECK(is_cpu(floats(1, 1))); }
    CHECK(!opd_fake_enabled() && opd_keys_included().functionality == (OPD_BIT_OF(OPD_F_BACKEND_SELECT) | OPD_BIT_OF(OPD_F_AD_INPLACE_OR_VIEW)));
    CHECK(opd_data(floats(1, 1)) != NULL);
}

/* Outside of a mode, meta tensors with others: refused, but for single numbers and indices, as in PyTorch. */
TEST(meta_beside_real) {
    const opd_device meta = opd_device_make(OPD_META, -1);
    const int64_t first[] = {0, 1};
    opd_tensor *m = opd_tensor_new_on(OPD_INTS(2, 2), OPD_FLOAT32, meta), *c = floats(2, 2), *one = opd_tensor_new_on(OPD_INTS(), OPD_FLOAT32, meta);
    opd_tensor *number = opd_full(OPD_INTS(), OPD_V(2.0), OPD_FLOAT32), *ids = opd_tensor_from(first, OPD_INTS(2), OPD_INT64), *list[2];
    CHECK_OK();
    CHECK(!opd_add(m, c)); CHECK_ERROR(OPD_ERROR_ARGUMENT, "at least two devices, meta and cpu! (argument 'other')");
    CHECK(!opd_add(c, m)); CHECK_ERROR(OPD_ERROR_ARGUMENT, "(argument 'self')");
    CHECK(!opd_mm(m, c)); CHECK_ERROR(OPD_ERROR_ARGUMENT, "at least two devices, meta and cpu!");
    CHECK(!opd_mm(c, m)); CHECK_ERROR(OPD_ERROR_ARGUMENT, "at least two devices, meta and cpu!");
    CHECK(!opd_add(c, one)); CHECK_ERROR(OPD_ERROR_ARGUMENT, "at least two devices, meta and cpu!");
    list[0] = m; list[1] = c;
    CHECK(!opd_cat(opd_tensors_of(list, 2), 0)); CHECK_ERROR(OPD_ERROR_ARGUMENT, "(argument 'tensors')");
    CHECK(!opd_addcmul(m, m, c, OPD_V(1))); CHECK_ERROR(OPD_ERROR_ARGUMENT, "(argument 'tensor2')");
    CHECK(opd_add(m, number) && opd_add(number, m) && opd_addcmul(m, number, m, OPD_V(1)));
    CHECK(opd_ndim(opd_index(m, opd_tensors_of(&ids, 1))) == 2);
    CHECK(opd_zero_(opd_empty_like(m)) != NULL);
    CHECK_OK();
}
/* Inside of one meta is a device among others: it stays that of what comes of it. */
TEST(meta_beside_fakes) {
    const opd_device meta = opd_device_make(OPD_META, -1);
    const int64_t first[] = {0, 1};
    opd_tensor *m = opd_tensor_new_on(OPD_INTS(2, 2), OPD_FLOAT32, meta), *real = floats(2, 2);
    OPD_FAKE_MODE {
        opd_tensor *fake = opd_ones(OPD_INTS(2, 2), OPD_FLOAT32), *on = opd_to_device(fake, meta, OPD_FLOAT32);
        opd_tensor *ids = opd_tensor_from(first, OPD_INTS(2), OPD_INT64), *number = opd_full(OPD_INTS(), OPD_V(2.0), OPD_FLOAT32);
        CHECK(!opd_add(m, real)); CHECK_ERROR(OPD_ERROR_ARGUMENT, "two devices, meta and cpu! (argument 'other')");
        CHECK(!opd_mm(fake, m)); CHECK_ERROR(OPD_ERROR_ARGUMENT, "two devices, cpu and meta! (argument 'mat2')");
        CHECK(!opd_add(fake, on)); CHECK_ERROR(OPD_ERROR_ARGUMENT, "two devices, cpu and meta! (argument 'other')");
        CHECK(opd_tensor_device(opd_add(m, number)).type == OPD_META && opd_tensor_device(opd_mm(on, m)).type == OPD_META);
        CHECK(opd_tensor_device(opd_index(m, opd_tensors_of(&ids, 1))).type == OPD_META);
        CHECK(opd_tensor_device(opd_to_device(on, opd_device_make(OPD_CPU, -1), OPD_FLOAT32)).type == OPD_CPU);
        CHECK(opd_to_device(fake, opd_device_make(OPD_CPU, -1), OPD_FLOAT32) == fake);
        CHECK_OK();
    }
}

//-- costs --------------------------------------------------------------------------------------------------------------

TEST(costs_of_products) {
    opd_cost *cost = opd_cost_begin();
    opd_cost_sum sum;
    char text[2000];
    size_t length;
    const int64_t n = 1000000;                    /* 4 TB, of which nothing is allocated */
    const int64_t live = opd_memory_stats().live;
    OPD_SCOPE {
        opd_tensor *a = floats(n, n);
        (void)opd_relu(opd_mm(a, a));
        CHECK(opd_memory_stats().live - live < 100000);
    }
    CHECK_OK();
    sum = opd_cost_total(cost);
    CHECK_NEAR(sum.flops, 2e18 + 1e12, 1e6);
    CHECK_NEAR((double)sum.bytes, 12e12, 0);
    CHECK_NEAR((double)sum.peak, 12e12, 0);
    CHECK_INT(sum.calls, 3);
    CHECK_INT(sum.given, 0);
    opd_cost_end(cost);
    CHECK(!opd_fake_enabled());
    CHECK_STR(opd_op_name(opd_cost_at(cost, 0).op), "aten::mm");
    CHECK(opd_cost_at(cost, 3).op == NULL);
    length = opd_cost_print(cost, text, sizeof text);
    CHECK_INT(length, strlen(text));
    CHECK(strstr(text, "aten::mm                                          1       2.00 E     3.64 TiB") || printf("%s", text) < 0);
    CHECK(strstr(text, "peak memory 10.9 TiB"));
    opd_cost_free(cost);
}
/* A fake mode inside of what is counted counts the same, for every operator; what is given counts once. */
static opd_cost_sum cost_of(const opd_op *op, op_case *c, bool inside) {
    opd_cost *cost = opd_cost_begin();
    opd_value rets[MOST_RESULTS];
    opd_cost_sum sum;
    OPD_SCOPE {
        if (!inside) { (void)opd_call_all((opd_op *)(uintptr_t)op, rets, c->args, c->nargs); }
        else OPD_FAKE_MODE { (void)opd_call_all((opd_op *)(uintptr_t)op, rets, c->args, c->nargs); }
    }
    sum = opd_cost_total(cost);
    CHECK_INT(opd_cost_total(cost).given, sum.given);
    opd_cost_free(cost);
    opd_error_clear();                            /* the shape depends on the data, which a fake tensor lacks */
    return sum;
}
TEST(costs_in_a_fake_mode_inside) {
    const opd_op *op;
    int asked = 0;
    for (op = opd_op_next(NULL); op; op = opd_op_next(op)) {
        const opd_op_desc *card = opd_op_card(op);
        const char *text = card && cases_of(op) ? cases_of(op) : "";
        OPD_SCOPE {
            op_case c;
            memset(&c, 0, sizeof c);
            c.op = op;
            c.dtype = OPD_FLOAT32;
            if (*text && case_read_next(&c, &text)) {
                const opd_cost_sum plain = cost_of(op, &c, false), in = cost_of(op, &c, true);
                if (plain.flops > in.flops || plain.flops < in.flops || plain.bytes != in.bytes ||
                    plain.calls != in.calls || plain.given != in.given || plain.peak != in.peak) {
                    printf("%s: %g flops, %lld bytes; in a mode inside %g, %lld\n", opd_op_name(op), plain.flops,
                           (long long)plain.bytes, in.flops, (long long)in.bytes);
                    CHECK(!"the same");
                }
                asked += plain.flops > 0;
            }
        }
    }
    CHECK(asked > 200);
}
/* 3x3 convolution of 4 to 8 channels at 10x10 without padding, its backward, and what is alive. */
TEST(costs_of_convolutions) {
    opd_tensor *w = opd_tensor_set_requires_grad(opd_zeros(OPD_INTS(8, 4, 3, 3), OPD_FLOAT32), true);
    opd_tensor *x = opd_zeros(OPD_INTS(2, 4, 10, 10), OPD_FLOAT32);
    opd_cost *cost = opd_cost_begin();
    opd_cost_sum sum;
    double one = 2. * 2 * 8 * 8 * 8 * 4 * 9;
    int i;
    OPD_SCOPE {
        opd_tensor *y = opd_conv2d(x, opd_fake_tensor(w), NULL, OPD_INTS(1), OPD_INTS(0));
        CHECK_OK();
        sum = opd_cost_total(cost);
        CHECK_NEAR(sum.flops, one, 0);
        CHECK_INT(sum.bytes, 4 * 2 * 8 * 8 * 8);
        CHECK_INT(sum.given, 4 * (2 * 4 * 100 + 8 * 4 * 9));
        CHECK_INT(sum.peak, sum.bytes + sum.given);
        CHECK_INT(opd_backward(opd_sum(y)), 0);
    }
    CHECK_OK();
    opd_cost_end(cost);
    for (i = 0; opd_cost_at(cost, i).op; i++) {
        if (strcmp(opd_op_name(opd_cost_at(cost, i).op), "aten::convolution_backward") == 0) { CHECK_NEAR(opd_cost_at(cost, i).flops, one, 0); }
    }
    CHECK(opd_cost_total(cost).peak > sum.peak);
    opd_cost_free(cost);
    opd_cost_free(NULL);
}
/* What else counts: an element once, of the largest tensor; nothing for what only moves.  sum, var: what goes in. */
static double flops_of(opd_tensor *(*fn)(opd_tensor *x), opd_tensor *x) {
    opd_cost *cost = opd_cost_begin();
    double flops;
    OPD_SCOPE { (void)fn(x); }
    flops = opd_cost_total(cost).flops;
    opd_cost_free(cost);
    return flops;
}
static opd_tensor *of_sum(opd_tensor *x) { return opd_sum(x); }
static opd_tensor *of_rows(opd_tensor *x) { return opd_mean_dim(x, OPD_INTS(1), false); }
static opd_tensor *of_softmax(opd_tensor *x) { return opd_softmax(x, 1); }
static opd_tensor *of_most(opd_tensor *x) { return opd_argmax(x, OPD_NONE, false); }
static opd_tensor *of_norm(opd_tensor *x) { return opd_layer_norm(x, OPD_INTS(5), NULL, NULL, 1e-5); }
static opd_tensor *of_scan(opd_tensor *x) { return opd_cumsum(x, 0); }
static opd_tensor *of_outer(opd_tensor *x) { return opd_add(x, opd_unsqueeze(opd_unsqueeze(opd_select(x, 1, 0), 1), 2)); }
static opd_tensor *of_copies(opd_tensor *x) { return opd_cat(OPD_TENSORS(opd_clone(opd_t(x)), opd_contiguous(opd_t(x))), 0); }
static opd_tensor *of_pool(opd_tensor *x) { return opd_avg_pool2d(opd_unsqueeze(opd_unsqueeze(x, 0), 0), OPD_INTS(2, 2), opd_ints_of(NULL, 0), OPD_INTS(0)); }
static opd_tensor *of_batches(opd_tensor *x) {                /* two products of [4,5] and [5,4] in one sum */
    opd_tensor *both = opd_stack(OPD_TENSORS(x, x), 0);
    return opd_addbmm(opd_zeros(OPD_INTS(4, 4), OPD_FLOAT32), both, opd_transpose(both, 1, 2));
}
TEST(costs_of_what_is_no_product) {
    opd_tensor *x = floats(4, 5);
    CHECK_NEAR(flops_of(of_sum, x), 20, 0);
    CHECK_NEAR(flops_of(of_rows, x), 20, 0);
    CHECK_NEAR(flops_of(of_softmax, x), 20, 0);
    CHECK_NEAR(flops_of(of_most, x), 20, 0);
    CHECK_NEAR(flops_of(of_norm, x), 20, 0);
    CHECK_NEAR(flops_of(of_scan, x), 20, 0);
    CHECK_NEAR(flops_of(of_outer, x), 80, 0);
    CHECK_NEAR(flops_of(of_copies, x), 0, 0);
    CHECK_NEAR(flops_of(of_pool, x), 20, 0);
    CHECK_NEAR(flops_of(of_batches, x), 2. * 2 * 4 * 4 * 5, 0);
    CHECK_OK();
}
/* A program's own operators: POINTWISE ones count as others do, others by what their card says. */
static int k_like(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    return opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x)) ? 0 : -1;
}
static double hundred(const opd_call *call) {
    const opd_value *ret = opd_call_rets((opd_call *)(uintptr_t)call);
    return (double)opd_arg_int(call, 1) * (double)opd_numel(opd_arg_tensor(call, 0)) + (double)opd_numel(ret->u.t) / 1000;
}
static opd_tensor *of_plain(opd_tensor *x) { return OPD_CALL(opd_find("costs::plain"), x); }
static opd_tensor *of_marked(opd_tensor *x) { return OPD_CALL(opd_find("costs::marked"), x); }
static opd_tensor *of_said(opd_tensor *x) { return OPD_CALL(opd_find("costs::said"), x, 100); }
TEST(costs_of_own_operators) {
    opd_library *lib = opd_library_open(OPD_DEF, "costs", NULL, __FILE__, __LINE__);
    opd_tensor *x = floats(4, 5);
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "plain(Tensor x) -> Tensor";
    d.fake = k_like;
    CHECK_INT(opd_define(lib, &d), 0);
    d.schema = "marked(Tensor x) -> Tensor";
    d.tags = OPD_OPTAG_POINTWISE;
    CHECK_INT(opd_define(lib, &d), 0);
    d.schema = "said(Tensor x, int times) -> Tensor";
    d.flops = hundred;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK_NEAR(flops_of(of_plain, x), 0, 0);
    CHECK_NEAR(flops_of(of_marked, x), 20, 0);
    CHECK_NEAR(flops_of(of_said, x), 2000.02, 1e-9);
    CHECK_OK();
    opd_library_close(lib);
}
/* Of ten results that are freed one after the other, at most two are live. */
TEST(peak_of_what_is_alive) {
    opd_cost *cost = opd_cost_begin();
    opd_tensor *h = NULL;
    int i;
    OPD_SCOPE { (void)opd_assign(&h, floats(100, 100)); }
    for (i = 0; i < 10; i++) { OPD_SCOPE { (void)opd_assign(&h, opd_tanh(h)); } }
    CHECK_INT(opd_cost_total(cost).peak, 2 * 40000);
    CHECK_INT(opd_cost_total(cost).bytes, 11 * 40000);
    opd_cost_free(cost);
    opd_release(h);
}
/* Queries of a fake's device, dtype and layout return the properties of the tensor that it stands for. */
TEST(questions_about_what_a_fake_stands_for) {
    opd_tensor *real = floats(2, 3);
    const opd_value none = opd_value_none(), strided = opd_value_int(0), cpu = opd_value_device(opd_device_make(OPD_CPU, -1));
    OPD_FAKE_MODE {
        opd_tensor *const both[] = {real, opd_add(real, real)};
        for (int i = 0; i < 2; i++) {
            CHECK_INT(opd_assert_tensor_metadata_full(both[i], OPD_INTS(2, 3), OPD_INTS(3, 1), opd_value_int(OPD_FLOAT32),
                                                      cpu, strided), 0);
            CHECK_INT(opd_assert_tensor_metadata_full(both[i], OPD_INTS(2, 3), OPD_INTS(3, 1), none,
                                                      opd_value_device(opd_device_make(OPD_META, -1)), none), -1);
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "Tensor device mismatch! Expected: meta, Got: cpu");
            CHECK_INT(opd_assert_tensor_metadata_full(both[i], OPD_INTS(2, 3), OPD_INTS(3, 1),
                                                      opd_value_int(OPD_FLOAT64), cpu, none), -1);
            CHECK_ERROR(OPD_ERROR_DTYPE, "Tensor dtype mismatch! Expected: float64, Got: float32");
        }
    }
}

/* What a program does to its buffers: a real tensor stands for its fake, also where a fake is written into it. */
TEST(writes_into_real_tensors) {
    OPD_SCOPE {
        opd_tensor *real = floats(2, 3);
        const float was = opd_data_f32(real)[0];
        opd_fake_block b = opd_fake_begin();
        opd_tensor *other = opd_ones(opd_ints_of(opd_sizes(real), 2), OPD_FLOAT32);
        CHECK(opd_add_(real, other) != NULL);
        CHECK_OK();
        opd_fake_end(&b);
        CHECK_NEAR(opd_data_f32(real)[0], was, 0);
    }
}
/* An assert about a device asks for that which a fake stands for. */
TEST(asserts_about_devices) {
    OPD_SCOPE {
        opd_tensor *real = floats(2, 3);
        opd_op *op = opd_find("aten::_assert_tensor_metadata");
        opd_fake_block b = opd_fake_begin();
        opd_value args[6] = {opd_value_tensor(real), opd_value_none(), opd_value_none(), opd_value_int(OPD_FLOAT32),
                            opd_value_device(opd_device_make(OPD_CPU, -1)), opd_value_none()};
        CHECK_INT(opd_call_all(op, NULL, args, 6), 0);
        args[4] = opd_value_device(opd_device_make(OPD_META, -1));
        CHECK_INT(opd_call_all(op, NULL, args, 6), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "device mismatch! Expected: meta, Got: cpu");
        opd_fake_end(&b);
    }
}

static int step(opd_tensor *w) {
    opd_fake_block b = opd_fake_begin();
    opd_tensor *p = opd_fake_tensor(w);
    const int rc = opd_backward(opd_sum(opd_mm(p, p)));
    opd_fake_end(&b);
    return rc;
}
TEST(allocations_that_fail) {
    opd_tensor *w = opd_tensor_set_requires_grad(floats(3, 3), true);
    int rc = -1;
    int64_t n;
    OPD_SCOPE { CHECK_INT(step(w), 0); }
    for (n = 1; rc && n < 1000; n++) {
        OPD_SCOPE {
            (void)opd_memory_fail_at(n, false);
            rc = step(w);
            (void)opd_memory_fail_at(0, false);
            if (rc) { CHECK_ERROR(OPD_ERROR_MEMORY, ""); }
        }
    }
    CHECK_INT(rc, 0);
    CHECK(!opd_fake_enabled());
}

/* In a fake mode, a tangent and its primal may be a fake and a real tensor.  They must stand for the same device. */
static int times_sine(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    (void)n;
    out[0] = opd_mul(in[0], opd_sin(in[0]));
    return 1;
}
TEST(tangents_of_fakes) {
    opd_tensor *const real = opd_ones(OPD_INTS(3, 2), OPD_FLOAT32), *tensors[2], *out[1], *along[1];
    OPD_FAKE_MODE {
        tensors[0] = real;
        tensors[1] = opd_ones(OPD_INTS(3, 2), OPD_FLOAT32);
        for (int i = 0; i < 4; i++) {
            opd_derivative *derivative;
            opd_tensor *const primal = tensors[i % 2], *const tangent = tensors[i / 2];
            CHECK_INT(opd_jvp(times_sine, NULL, &primal, &tangent, 1, NULL, out, along, 1), 1);
            CHECK(opd_size(out[0], 0) == 3 && opd_size(along[0], 0) == 3 && opd_ndim(along[0]) == 2);
            CHECK(!opd_data(along[0]) && opd_tensor_device(along[0]).type == OPD_CPU);
            CHECK_INT(opd_linearize(times_sine, NULL, &primal, 1, NULL, out, 1, &derivative), 1);
            CHECK(opd_derivative_call(derivative, &tangent, 1, 0, along, 1) == 1 && !opd_data(along[0]));
        }
        opd_tensor *const other = opd_tensor_new_on(OPD_INTS(3, 2), OPD_FLOAT32, opd_device_make(OPD_CUDA, 0));
        CHECK_INT(opd_jvp(times_sine, NULL, &other, &other, 1, NULL, out, along, 1), 1);
        CHECK(opd_tensor_device(along[0]).type == OPD_CUDA);
        for (int i = 0; i < 2; i++) {
            CHECK_INT(opd_jvp(times_sine, NULL, &other, &tensors[i], 1, NULL, out, along, 1), -1);
            CHECK_ERROR(OPD_ERROR_ARGUMENT, "jvp: tangent:0 is on another device than the corresponding primal");
        }
    }
}

/* Views of a tensor, by number. */
static opd_tensor *view_of(opd_tensor *x, int which) {
    opd_tensor *const row = opd_select(x, 0, 1);
    switch (which) {
    case 0: return row;
    case 1: return opd_slice(row, 0, opd_value_int(1), OPD_NONE, 2);
    case 2: return opd_transpose(opd_narrow(x, 1, 1, 2), 0, 1);
    case 3: return opd_as_strided_full(x, OPD_INTS(2), OPD_INTS(1), opd_value_int(5));
    case 4: return opd_view_as_real(row);
    case 5: return opd_select(opd_view_as_real(row), 1, 1);
    case 6: return opd_alias(opd_detach(row));
    case 7: return opd_tensor_data(row);
    case 8: return opd_unfold(row, 0, 2, 1);
    case 9: return opd_squeeze(opd_narrow(row, 0, 2, 1));
    case 10: return opd_conj(row);
    default: return opd_diagonal_full(x, 1, 0, 1);
    }
}
TEST(views_of_fakes_have_the_offsets_of_real_views) {
    OPD_SCOPED;
    opd_tensor *const x = opd_ones(OPD_INTS(3, 4), OPD_COMPLEX64);
    int64_t offsets[12];
    for (int i = 0; i < 12; i++) { offsets[i] = opd_tensor_offset(view_of(x, i)); }
    CHECK_OK();
    OPD_FAKE_MODE {
        opd_tensor *const fake = opd_fake_tensor(x);
        for (int i = 0; i < 12; i++) { CHECK_INT(opd_tensor_offset(view_of(fake, i)), offsets[i]); }
    }
    CHECK_OK();
}
CHECK_MAIN()
