/* Limits, and differences from PyTorch, that the documents mention.  tests/texts.py says which case belongs to
   which sentence of which page.  THREADED */
#include "../../opdispatch.h"
#include "../check.h"
#include <pthread.h>

/* The call fails, with this text in its error. */
#define REFUSED(call, text) do { (void)(call); CHECK(refused(text)); } while (0)

static bool refused(const char *text) {
    const bool right = !opd_ok() && strstr(opd_error_message(), text) != NULL;
    if (!right) { printf("no \"%s\" in \"%s\"\n", text, opd_error_message()); }
    opd_error_clear();
    return right;
}
static opd_tensor *vec(int64_t n) { return opd_to_dtype(opd_arange(OPD_V(n), OPD_INT64), OPD_FLOAT64); }
static opd_tensor *leaf(int64_t n) { return opd_tensor_set_requires_grad(vec(n), true); }
static opd_tensor *complexes(int64_t n) { return opd_to_dtype(opd_randn(OPD_INTS(n, n), OPD_FLOAT64), OPD_COMPLEX128); }
static opd_op_desc card(const char *schema, opd_kernel cpu) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = schema;
    d.cpu = cpu;
    return d;
}
static opd_library *lib_open(const char *ns) { return opd_library_open(OPD_DEF, ns, NULL, __FILE__, __LINE__); }
static opd_library *lib_impl(const char *key) { return opd_library_open(OPD_IMPL, "_", key, __FILE__, __LINE__); }
/* Calls an operator by its name with tensors. */
static opd_tensor *called(const char *name, opd_tensor *a, opd_tensor *b, opd_tensor *c) {
    opd_value args[3];
    args[0] = opd_value_tensor(a);
    args[1] = opd_value_tensor(b);
    args[2] = opd_value_tensor(c);
    return opd_call_op(opd_find(name), args, c ? 3 : b ? 2 : 1);
}
static bool same(opd_tensor *a, opd_tensor *b) { return a && b && opd_equal(a, b); }
static bool on_same_memory(opd_tensor *a, opd_tensor *b) { return opd_data(a) == opd_data(b); }

//-- numbers -----------------------------------------------------------------------------------------------------------

TEST(dimensions_and_bytes) {
    const opd_device meta = opd_device_make(OPD_META, -1);
    int64_t ones[65], size = (int64_t)1 << 60;
    int i;
    for (i = 0; i < 65; i++) { ones[i] = 1; }
    CHECK(opd_zeros(opd_ints_of(ones, 64), OPD_FLOAT32) != NULL);
    REFUSED(opd_zeros(opd_ints_of(ones, 65), OPD_FLOAT32), "a tensor has at most 64 dimensions, not 65");
    REFUSED(opd_tensor_new_on(opd_ints_of(&size, 1), OPD_FLOAT32, meta), "do not fit into memory");
    size--;
    CHECK(opd_tensor_new_on(opd_ints_of(&size, 1), OPD_FLOAT32, meta) != NULL);
}
static void many_of(char *text, size_t cap, const char *name, int nargs, int nrets) {
    size_t n = (size_t)snprintf(text, cap, "%s(", name);
    int i;
    for (i = 0; i < nargs; i++) { n += (size_t)snprintf(text + n, cap - n, "%sint a%d", i ? ", " : "", i); }
    n += (size_t)snprintf(text + n, cap - n, ") -> (");
    for (i = 0; i < nrets; i++) { n += (size_t)snprintf(text + n, cap - n, "%sint", i ? ", " : ""); }
    (void)snprintf(text + n, cap - n, ")");
}
TEST(arguments_and_results) {
    opd_library *lib = lib_open("limits");
    char text[2000];
    many_of(text, sizeof text, "most", 64, 16);
    CHECK_INT(opd_def(lib, text), 0);
    many_of(text, sizeof text, "arguments", 65, 16);
    REFUSED(opd_def(lib, text), "too many arguments, this build only supports 64");
    many_of(text, sizeof text, "results", 64, 17);
    REFUSED(opd_def(lib, text), "an operator has at most 16 results");
    opd_library_close(lib);
}
/* Calls itself so many times more. */
static int deeper(opd_call *call) {
    opd_value args[2];
    const int64_t more = opd_arg_int(call, 1);
    args[0] = opd_value_tensor(opd_arg_tensor(call, 0));
    args[1] = opd_value_int(more - 1);
    return opd_return_tensor(call, more > 1 ? opd_call_op(opd_find("limits::deeper"), args, 2)
                             : opd_arg_tensor(call, 0));
}
TEST(nested_calls) {
    opd_library *lib = lib_open("limits");
    opd_op_desc d = card("deeper(Tensor x, int more) -> Tensor", deeper);
    opd_value args[2];
    CHECK_INT(opd_define(lib, &d), 0);
    args[0] = opd_value_tensor(vec(1));
    args[1] = opd_value_int(400);
    CHECK(opd_call_op(opd_find("limits::deeper"), args, 2) != NULL);
    args[1] = opd_value_int(401);
    REFUSED(opd_call_op(opd_find("limits::deeper"), args, 2), "400 nested calls");
    opd_library_close(lib);
}
TEST(tensors_in_the_lists_of_a_call) {
    enum { MOST = 60000 };
    opd_tensor **list = (opd_tensor **)malloc((MOST + 1) * sizeof *list), *x = leaf(1), *y;
    int i;
    CHECK_OR_RETURN(list != NULL);
    for (i = 0; i <= MOST; i++) { list[i] = x; }
    y = opd_cat(opd_tensors_of(list, MOST), 0);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK_NEAR(opd_data_f64(opd_tensor_grad(x))[0], MOST, 0);
    REFUSED(opd_cat(opd_tensors_of(list, MOST + 1), 0), "more than 60000 input or output tensors");
    free(list);
}
static int nested_grad(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    int *left = (int *)user, now = *left;
    if (now == 0) {
        out[0] = opd_mul(in[0], in[0]);
        return out[0] ? 1 : -1;
    }
    *left = now - 1;
    return opd_grad(nested_grad, user, in, n, NULL, out, OPD_TRANSFORM_OUTPUTS);
}
TEST(nested_transforms) {
    opd_tensor *x = opd_to_dtype(opd_ones(opd_ints_of(NULL, 0), OPD_FLOAT32), OPD_FLOAT64), *out[OPD_TRANSFORM_OUTPUTS];
    int left = 63;
    CHECK_INT(opd_grad(nested_grad, &left, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), 1);
    left = 64;
    REFUSED(opd_grad(nested_grad, &left, &x, 1, NULL, out, OPD_TRANSFORM_OUTPUTS), "nested deeper than 64");
}

//-- dtypes and devices ------------------------------------------------------------------------------------------------

TEST(stored_dtypes) {
    static const opd_scalar_type dtypes[] = {
        OPD_UINT16, OPD_UINT32, OPD_UINT64, OPD_COMPLEX32, OPD_FLOAT8_E4M3FN, OPD_FLOAT8_E5M2, OPD_FLOAT8_E4M3FNUZ,
        OPD_FLOAT8_E5M2FNUZ, OPD_FLOAT8_E8M0FNU};
    const char *folder = getenv("TMPDIR");
    char text[300];
    size_t i;
    for (i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        opd_tensor *x = opd_to_dtype(opd_ones(OPD_INTS(2, 2), OPD_FLOAT32), dtypes[i]);
        CHECK(x && opd_view(x, OPD_INTS(4)) && opd_eq(x, opd_clone(x)) && opd_tensor_print(x, text, sizeof text) > 0);
        CHECK_NEAR(opd_item_f64(opd_select(opd_select(opd_to_dtype(x, OPD_COMPLEX128), 0, 0), 0, 0)), 1, 0);
        CHECK_OK();
        if (dtypes[i] != OPD_COMPLEX32) { REFUSED(opd_add(x, x), "\"add_cpu\" not implemented for '"); }
    }
    (void)snprintf(text, sizeof text, "%s/opd_limits.npy", folder ? folder : "/tmp");
    REFUSED(opd_npy_save(text, opd_to_dtype(vec(1), OPD_FLOAT8_E5M2)), "NumPy has no dtype float8_e5m2");
    REFUSED(opd_npy_save(text, opd_to_dtype(vec(1), OPD_COMPLEX32)), "NumPy has no dtype complex32");
}
TEST(complex_numbers) {
    static const double one_two[] = {1, 2};
    opd_tensor *x = complexes(3), *small = opd_to_dtype(x, OPD_COMPLEX64), *grad, *z, *pair[1];
    CHECK(opd_exp(x) && opd_sum(x) && opd_mm(x, x) && opd_linalg_inv(small) && opd_linalg_eigvals(small));
    pair[0] = opd_unsqueeze(opd_unsqueeze(x, 0), 0);
    CHECK(opd_conv2d(pair[0], pair[0], NULL, OPD_INTS(1), OPD_INTS(0)) != NULL);
    z = opd_tensor_set_requires_grad(opd_full(OPD_INTS(1), opd_value_complex(one_two), OPD_COMPLEX128), true);
    CHECK_INT(opd_backward(opd_sum(opd_abs(z))), 0);      /* z / |z|, which is PyTorch's convention */
    grad = opd_view_as_real(opd_tensor_grad(z));
    CHECK_NEAR(opd_data_f64(grad)[0], 1 / sqrt(5.), 1e-12);
    CHECK_NEAR(opd_data_f64(grad)[1], 2 / sqrt(5.), 1e-12);
}
TEST(zero_to_zero) {
    opd_tensor *zero = opd_zeros(OPD_INTS(1), OPD_COMPLEX64), *power = opd_pow_Tensor_Tensor(zero, zero);
    opd_tensor *real = opd_view_as_real(power);
    CHECK(real && opd_data_f32(real)[0] > 0.99f && opd_data_f32(real)[0] < 1.01f);
    CHECK_NEAR(opd_data_f32(real)[1], 0, 0);
}
TEST(a_conjugate_is_a_view) {
    opd_tensor *x = complexes(2), *y = opd_conj(x);
    CHECK(opd_tensor_is_conj(y) && opd_tensor_base(y) == x);
}
TEST(dividing_the_smallest_integer) {
    opd_tensor *wide = opd_full(OPD_INTS(1), opd_value_int(INT64_MIN), OPD_INT64);
    opd_tensor *narrow = opd_full(OPD_INTS(1), opd_value_int(INT32_MIN), OPD_INT32);
    opd_tensor *wide_one = opd_full(OPD_INTS(1), opd_value_int(-1), OPD_INT64);
    opd_tensor *narrow_one = opd_to_dtype(wide_one, OPD_INT32);
    REFUSED(opd_div_Tensor_mode(wide, wide_one, "trunc"), "the smallest int64 divided by -1 does not fit");
    REFUSED(opd_floor_divide(wide, wide_one), "the smallest int64 divided by -1 does not fit");
    REFUSED(opd_div_Tensor_mode(narrow, narrow_one, "floor"), "the smallest int32 divided by -1 does not fit");
    CHECK(opd_div(wide, wide_one) != NULL);
}
TEST(random_numbers) {
    opd_tensor *one, *four;
    const int threads = opd_threads();
    opd_threads_set(1);
    opd_manual_seed(7);
    one = opd_randn(OPD_INTS(1000, 1000), OPD_FLOAT32);
    opd_threads_set(4);
    opd_manual_seed(7);
    four = opd_randn(OPD_INTS(1000, 1000), OPD_FLOAT32);
    CHECK(same(one, four));
    opd_manual_seed(0);                          /* torch.manual_seed(0); torch.rand(1) is 0.4963 on the CPU */
    CHECK(fabs(opd_item_f64(opd_rand(OPD_INTS(1), OPD_FLOAT32)) - 0.4963) > 1e-3);
    opd_threads_set(threads);
}
static opd_tensor *zeros_on(const char *device) {
    return opd_zeros_full(OPD_INTS(2), OPD_NONE, OPD_NONE, opd_value_str(device), OPD_NONE);
}
TEST(devices) {
    CHECK(zeros_on("meta") != NULL);
    REFUSED(zeros_on("cuda"), "the CUDA plug-in opdispatch_cuda.cu is neither linked nor loaded");
    REFUSED(zeros_on("xla"), "register its memory and copies first");
}

//-- autograd ----------------------------------------------------------------------------------------------------------

static int squared(opd_call *call) {
    return opd_return_tensor(call, opd_mul(opd_arg_tensor(call, 0), opd_arg_tensor(call, 0)));
}
static int squared_backward(opd_backward_call *bw) {
    opd_tensor *x = opd_bw_tensor(bw, 0);
    return opd_bw_return(bw, 0, opd_mul(opd_bw_grad(bw, 0), opd_add(x, x)));
}
static int itself(opd_call *call) { return opd_return_tensor(call, opd_arg_tensor(call, 0)); }
static int itself_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
TEST(derivatives_that_are_missing) {
    opd_library *lib = lib_open("limits");
    opd_op_desc none = card("none(Tensor x) -> Tensor", squared), once = card("once(Tensor x) -> Tensor", squared);
    opd_tensor *x = leaf(2), *y, *grad = NULL;
    opd_backward_options options;
    int level;
    once.backward = squared_backward;
    once.save = "x";
    once.once_differentiable = 1;
    CHECK_INT(opd_define(lib, &none) | opd_define(lib, &once), 0);
    y = called("limits::none", x, NULL, NULL);
    REFUSED(opd_backward(opd_sum(y)), "derivative for limits::none is not implemented");
    memset(&options, 0, sizeof options);
    options.create_graph = true;
    y = opd_sum(called("limits::once", x, NULL, NULL));
    CHECK_INT(opd_autograd_grad(&y, 1, &x, 1, &options, &grad), 0);
    y = opd_sum(grad);
    REFUSED(opd_autograd_grad(&y, 1, &x, 1, NULL, &grad), "trying to differentiate twice");
    level = opd_dual_level_begin();              /* uses the backward function, unless that computes in loops */
    REFUSED(called("limits::once", opd_dual_new(vec(2), vec(2)), NULL, NULL), "limits::once");
    (void)opd_dual_level_end(level);
    opd_error_clear();
    opd_library_close(lib);
}
TEST(an_argument_that_is_returned) {
    opd_library *lib = lib_open("limits");
    opd_op_desc d = card("itself(Tensor x) -> Tensor", itself);
    opd_tensor *x = leaf(2), *y;
    d.backward = itself_backward;
    CHECK_INT(opd_define(lib, &d), 0);
    y = called("limits::itself", x, NULL, NULL);
    CHECK(y && y != x && on_same_memory(x, y));
    opd_library_close(lib);
}
TEST(a_product_with_itself_in_place) {
    opd_tensor *x = leaf(3), *y = opd_mul_Scalar(x, OPD_V(1));
    (void)opd_mul_(y, y);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK(same(opd_tensor_grad(x), opd_mul_Scalar(vec(3), OPD_V(2))));
}
TEST(overwritten_tensors_are_freed) {
    opd_tensor *x = leaf(1000), *y = opd_exp(x);
    const int64_t before = opd_memory_stats().live;
    (void)opd_add_(y, y);                        /* exp saved y; nothing that is saved is valid any more */
    CHECK(opd_memory_stats().live <= before + 4096);
    REFUSED(opd_backward(opd_sum(y)), "modified by an inplace operation");
}
TEST(writes_where_elements_overlap) {
    static const char several[] = "more than one element of the written-to tensor";
    opd_tensor *base = opd_zeros(OPD_INTS(5), OPD_FLOAT32), *m;
    opd_tensor *x = opd_as_strided(base, OPD_INTS(3, 3), OPD_INTS(1, 1));
    opd_tensor *spread = opd_expand(opd_ones(OPD_INTS(1), OPD_FLOAT32), OPD_INTS(3));
    opd_value args[5];
    REFUSED(opd_add_(x, x), several);
    REFUSED(opd_sigmoid_(x), several);
    REFUSED(opd_add_(spread, opd_ones(OPD_INTS(3), OPD_FLOAT32)), several);
    CHECK(opd_fill_(x, OPD_V(1)) && opd_fill_(spread, OPD_V(1)) && opd_normal_(x, 0, 1));
    CHECK(opd_copy_(x, opd_ones(OPD_INTS(3, 3), OPD_FLOAT32)) != NULL);
    m = opd_randn(OPD_INTS(3, 4), OPD_FLOAT32);
    args[0] = opd_value_tensor(m);
    args[1] = opd_value_int(1);
    args[2] = opd_value_bool(false);
    args[3] = args[4] = opd_value_tensor(opd_empty(OPD_INTS(3), OPD_FLOAT32));
    REFUSED(opd_call_op(opd_find("aten::aminmax.out"), args, 5), "two of the written-to tensors share memory");
}
TEST(an_output_that_is_an_input) {
    int64_t n;
    for (n = 4; n < 300; n *= 4) {
        opd_tensor *x = opd_randn(OPD_INTS(n, n), OPD_FLOAT64), *y = opd_randn(OPD_INTS(n, n), OPD_FLOAT64);
        opd_tensor *z = opd_clone(x), *from, *to;
        CHECK(same(called("aten::mm.out", z, y, z), opd_mm(x, y)));
        z = opd_clone(x);
        CHECK(same(called("aten::mm.out", y, z, z), opd_mm(y, x)));
        z = opd_clone(x);
        CHECK(same(called("aten::linalg_inv.out", z, z, NULL), opd_linalg_inv(x)));
        z = opd_clone(x);
        from = opd_slice(z, 0, OPD_V(0), OPD_V(n - 1), 1);
        to = opd_slice(z, 0, OPD_V(1), OPD_V(n), 1);
        REFUSED(called("aten::exp.out", from, to, NULL), "refer to a single memory location");
    }
}
static int passed(opd_call *call) {
    return opd_redispatch(call, opd_keyset_and(opd_call_keys(call), opd_keyset_below(OPD_F_AUTOGRAD_OTHER)));
}
TEST(fallbacks_at_autograd_keys) {
    static const char *const taken[] = {"AutogradCPU", "AutogradCUDA", "AutogradOther", "AutogradXLA"};
    static const char *const free_ones[] = {"AutogradNestedTensor", "AutogradPrivateUse1", "AutogradPrivateUse3"};
    size_t i;
    for (i = 0; i < 4; i++) {
        opd_library *lib = lib_impl(taken[i]);
        REFUSED(opd_fallback(lib, passed), "multiple backend fallbacks for the same dispatch key");
        opd_library_close(lib);
    }
    for (i = 0; i < 3; i++) {
        opd_library *lib = lib_impl(free_ones[i]);
        CHECK_INT(opd_fallback(lib, passed), 0);
        opd_library_close(lib);
    }
}

//-- forward mode, autocast --------------------------------------------------------------------------------------------

static void *look(void *tensor) {
    opd_tensor *tangent = NULL;
    OPD_SCOPE { (void)opd_dual_unpack((opd_tensor *)tensor, &tangent); }
    opd_error_clear();
    return tangent;
}
TEST(levels_of_forward_mode) {
    const int level = opd_dual_level_begin();
    opd_tensor *x = opd_dual_new(vec(2), vec(2)), *w = leaf(2), *t = opd_mul(w, w), *tangent = NULL;
    pthread_t thread;
    void *seen = x;
    REFUSED(opd_dual_level_begin(), "Nested forward mode AD is not supported");
    CHECK_INT(pthread_create(&thread, NULL, look, x), 0);
    CHECK_INT(pthread_join(thread, &seen), 0);
    CHECK(seen == NULL);
    x = opd_dual_new(vec(2), t);                 /* the graph of w holds this tangent */
    (void)opd_exp_(x);
    (void)opd_dual_unpack(x, &tangent);
    CHECK(tangent && !on_same_memory(tangent, t));
    (void)opd_dual_level_end(level);
}
TEST(the_padding_row_of_an_embedding) {
    const int level = opd_dual_level_begin();
    opd_tensor *ones = opd_full(OPD_INTS(3, 2), OPD_V(1), OPD_FLOAT64), *w = opd_dual_new(opd_clone(ones), ones);
    opd_tensor *rows = opd_embedding_full(w, opd_arange(OPD_V(3), OPD_INT64), 1, false, false), *tangent = NULL;
    (void)opd_dual_unpack(rows, &tangent);
    CHECK_OR_RETURN(tangent != NULL);
    CHECK_NEAR(opd_item_f64(opd_sum(opd_select(tangent, 0, 0))), 2, 0);
    CHECK_NEAR(opd_item_f64(opd_sum(opd_select(tangent, 0, 1))), 0, 0);
    (void)opd_dual_level_end(level);
}
TEST(cached_casts) {
    opd_tensor *w = opd_tensor_set_requires_grad(opd_randn(OPD_INTS(2, 2), OPD_FLOAT32), true);
    opd_tensor *x = opd_randn(OPD_INTS(2, 2), OPD_FLOAT32), *y;
    opd_autocast_region region = opd_autocast_begin(OPD_CPU, OPD_BFLOAT16, true, 1);
    bool was = opd_grad_mode_set(false);
    (void)opd_mm(x, w);
    (void)opd_grad_mode_set(was);
    y = opd_mm(x, w);
    CHECK_INT(opd_dtype(y), OPD_BFLOAT16);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    CHECK(opd_tensor_grad(w) != NULL);
    was = opd_grad_mode_set(false);
    (void)opd_fill_(w, OPD_V(0));
    (void)opd_grad_mode_set(was);
    CHECK_NEAR(opd_item_f64(opd_sum(opd_mm(x, w))), 0, 0);
    opd_autocast_end(&region);
    opd_autocast_cache_clear();
}

//-- keys and messages -------------------------------------------------------------------------------------------------

TEST(keys_that_are_not_here) {
    static const char *const names[] = {"Python", "PythonTLSSnapshot", "PythonDispatcher", "Named", "DeferredInit",
        "Batched", "VmapMode", "TESTING_ONLY_GenericWrapper", "TESTING_ONLY_GenericMode"};
    size_t i;
    for (i = 0; i < sizeof names / sizeof *names; i++) {
        REFUSED(opd_key_parse(names[i]), "could not parse dispatch key");
    }
    CHECK(opd_key_parse("FuncTorchBatched") != OPD_KEY_INVALID);
}
TEST(kernels_are_listed_before_fallbacks) {
    opd_library *lib = lib_open("limits");
    opd_op_desc d = card("far(Tensor x) -> Tensor", NULL);
    const char *message;
    d.fake = squared;
    CHECK_INT(opd_define(lib, &d), 0);
    CHECK(!called("limits::far", vec(1), NULL, NULL));
    message = opd_error_message();
    CHECK(strstr(message, "[Meta [registered at") != NULL);
    CHECK(strstr(message, "fallbacks for every operator]") > strstr(message, "[Meta [registered at"));
    opd_error_clear();
    opd_library_close(lib);
}

//-- graphs as C -------------------------------------------------------------------------------------------------------

static int drawn(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_rand_like(in[0]);
    return out[0] ? 1 : -1;
}
static int chosen(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_masked_select(in[0], opd_gt_Scalar(in[0], OPD_V(0)));
    return out[0] ? 1 : -1;
}
static int inverse(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_linalg_inv(in[0]);
    return out[0] ? 1 : -1;
}
static int transformed(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user; (void)n;
    out[0] = opd_real(opd_fft_fft(in[0]));
    return out[0] ? 1 : -1;
}
static int complex_product(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *z = opd_complex(in[0], in[0]);
    (void)user; (void)n;
    out[0] = opd_abs(opd_mul(z, z));
    return out[0] ? 1 : -1;
}
TEST(graphs_without_a_form_in_c) {
    static const struct { opd_transform_fn fn; const char *text; } row[] = {
        {drawn, "random numbers cannot be compiled"}, {chosen, "aten::masked_select cannot be compiled"},
        {inverse, "aten::linalg_inv_ex cannot be compiled"}, {transformed, "aten::_fft_r2c cannot be compiled"},
        {complex_product, "aten::mul"}};
    opd_tensor *x = opd_randn(OPD_INTS(3, 3), OPD_FLOAT32);
    opd_script *script;
    size_t i;
    for (i = 0; i < sizeof row / sizeof *row; i++) {
        opd_graph *graph = opd_graph_trace(row[i].fn, NULL, &x, 1, NULL);
        REFUSED(opd_graph_write_c(graph, &x, 1, "/nowhere", NULL), row[i].text);
        opd_graph_free(graph);
    }
    script = opd_script_compile("def f(x: Tensor) -> Tensor:\n"
                                "    for i in range(int(x.sum())):\n"
                                "        x = x.exp()\n"
                                "    return x.sin()\n", NULL);
    CHECK(opd_graph_write_c(opd_script_graph(script, "f"), &x, 1, "/nowhere", NULL) == -1);
    CHECK(strstr(opd_error_message(), "depend on data cannot be compiled") != NULL);
    opd_error_clear();
    opd_script_free(script);
}
CHECK_MAIN()
