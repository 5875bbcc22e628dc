/* Extensions that use PyTorch's stable interface: extension/extension.c imitates one, extension/stable.cpp is one
   with PyTorch's headers, and torchvision publishes one (golden/torchvision.npz).  THREADED */
#define OPD_AOTI
#include "../../opdispatch.h"
#include "../beside_torch.h"

#if defined(CHECK_SANITIZED) && !defined(__cplusplus)
#define NO_EXCEPTIONS "the sanitizer knows no exceptions in programs that are not linked with C++"
#endif

#if defined(OPDI_AOTI_THERE)

/* Returns the first line that a command prints, or "". */
static const char *output_of(const char *command) {
    static char line[1000];
    FILE *pipe = popen(command, "r");
    line[0] = 0;
    if (pipe && !fgets(line, sizeof line, pipe)) { line[0] = 0; }
    if (pipe && pclose(pipe)) { line[0] = 0; }
    line[strcspn(line, "\n")] = 0;
    return line;
}
static const char *extension_path(const char *name, bool cxx, const char *flags) {
    return library_of("extension/extension.c", name, cxx, flags);
}
static opd_tensor *numbers(void) {
    static const float three[3] = {1, -2, 3};
    const int64_t size = 3;
    return opd_tensor_from(three, opd_ints_of(&size, 1), OPD_FLOAT32);
}
static opd_tensor *call_1(const char *name, opd_tensor *x) {
    opd_value arg = opd_value_tensor(x);
    opd_op *op = opd_find(name);
    return op ? opd_call_op(op, &arg, 1) : NULL;
}
static opd_tensor *scaled(opd_tensor *x, double by) {
    opd_value args[2];
    opd_op *op = opd_find("play::scale");
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_double(by);
    return op ? opd_call_op(op, args, 2) : NULL;
}
static bool near(opd_tensor *first, opd_tensor *second, double most) {
    if (!first || !second || opd_dtype(first) != opd_dtype(second) || opd_ndim(first) != opd_ndim(second) ||
        memcmp(opd_sizes(first), opd_sizes(second), 8 * (size_t)opd_ndim(first)) != 0) {
        return false;
    }
    return opd_numel(first) == 0 || opd_item_f64(opd_max(opd_abs(opd_sub(first, second)))) <= most;
}

TEST(kernels_get_and_give_all_kinds_of_values) {
    OPD_SCOPED;
    const char *path = extension_path("plain", false, "-DPLAY=0");
    if (!path) { SKIP("no compiler"); }
    CHECK_INT(opd_extension_load(path), 7);
    CHECK_OK();
    CHECK_INT(opd_extension_load(path), 7);                   /* does nothing */
    opd_tensor *x = numbers();
    CHECK(near(scaled(x, 2.5), opd_mul_Scalar(x, OPD_V(2.5)), 0));
    CHECK(opd_op_tags(opd_find("play::scale")) == OPD_OPTAG_POINTWISE);

    opd_value args[7], rets[5];
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_int(3);
    CHECK_INT(opd_call_all(opd_find("play::fan"), rets, args, 2), 0);
    CHECK_INT(rets[0].n, 3);
    CHECK(rets[0].tag == OPD_TAG_TENSORS && near(rets[0].u.tensors[2], x, 0));
    CHECK_INT(rets[1].u.i, 3);
    CHECK(rets[2].tag == OPD_TAG_STR && strcmp(rets[2].u.s, "fan out") == 0);
    CHECK(rets[3].tag == OPD_TAG_FLOAT && rets[3].u.d == 0.5);
    CHECK(rets[4].tag == OPD_TAG_INTS && rets[4].n == 3 && rets[4].u.ints[2] == 4);

    opd_tensor *both[2];
    const int64_t sizes[3] = {4, 5, 6};
    both[0] = both[1] = x;
    args[0] = opd_value_tensors(both, 2);
    args[1] = opd_value_tensor(x);
    args[2] = opd_value_ints(sizes, 3);
    args[3] = opd_value_str("four");
    args[4] = opd_value_bool(true);
    args[5] = opd_value_int(OPD_FLOAT64);
    args[6] = opd_value_device(opd_device_make(OPD_CPU, -1));
    CHECK_INT(opd_call_value(opd_find("play::count"), args, 7).u.i, 2134170);
    args[0] = opd_value_tensors(both, 1);
    args[1] = args[2] = args[5] = opd_value_none();
    args[3] = opd_value_str("");
    CHECK_INT(opd_call_value(opd_find("play::count"), args, 7).u.i, 1090190);

    opd_tensor *y = opd_clone(x);
    CHECK(call_1("play::add_one_", y) == y);
    CHECK(near(y, opd_add_Scalar(x, OPD_V(1)), 0));
    CHECK_OK();
    CHECK_INT(opd_extension_unload(path), 0);
    CHECK(opd_find_quiet("play::scale") == NULL || !opd_op_schema(opd_find_quiet("play::scale")));
    CHECK_INT(opd_extension_unload(path), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "is not loaded");
}
TEST(what_is_composed_is_differentiated_and_the_rest_says_so) {
    OPD_SCOPED;
    const char *path = extension_path("plain", false, "-DPLAY=0");
    if (!path) { SKIP("no compiler"); }
    CHECK_INT(opd_extension_load(path), 7);
    opd_tensor *x = opd_tensor_set_requires_grad(numbers(), true);
    opd_tensor *y = call_1("play::composed", x);
    CHECK_INT(opd_backward(opd_sum(y)), 0);
    opd_tensor *grad = opd_tensor_grad(x);
    CHECK(grad && opd_data_f32(grad)[1] == -4 && opd_data_f32(grad)[2] == 6);
    CHECK_INT(opd_backward(opd_sum(scaled(x, 2))), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "play::scale");
    CHECK_INT(opd_extension_unload(path), 0);
    CHECK_OK();
}
TEST(memory_of_an_extension_holds_its_code) {
    const char *path = extension_path("plain", false, "-DPLAY=0");
    if (!path) { SKIP("no compiler"); }
    OPD_SCOPED;
    opd_value x = opd_value_tensor(numbers()), rets[2];
    for (int i = 0; i < 3; i++) {
        CHECK_INT(opd_extension_load(path), 7);
        CHECK_INT(opd_call_all(opd_find("play::blob"), rets, &x, 1), 0);
        CHECK_INT(rets[1].u.i, 1);                /* each is code of its own */
        CHECK_INT(opd_extension_unload(path), 0);
        CHECK(opd_data_f32(rets[0].u.t)[1] == 4);
    }
    CHECK_OK();
}
static int traced(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    (void)user;
    (void)ninputs;
    outputs[0] = opd_relu(scaled(inputs[0], 3));
    return outputs[0] ? 1 : -1;
}
TEST(traced_and_saved) {
    OPD_SCOPED;
    const char *path = extension_path("plain", false, "-DPLAY=0");
    if (!path) { SKIP("no compiler"); }
    CHECK_INT(opd_extension_load(path), 7);
    opd_tensor *x = numbers();
    opd_graph *graph = opd_graph_trace(traced, NULL, &x, 1, 0);
    char file[400];
    snprintf(file, sizeof file, "%s/graph.opd", folder);
    CHECK_INT(opd_graph_save(graph, file), 0);
    opd_graph_free(graph);
    graph = opd_graph_load(file);
    opd_tensor *out = NULL;
    CHECK_INT(opd_graph_run(graph, &x, 1, &out, 1), 1);
    CHECK(near(out, opd_relu(opd_mul_Scalar(x, OPD_V(3))), 0));
    opd_graph_free(graph);
    CHECK_INT(opd_extension_unload(path), 0);
    CHECK_OK();
}
TEST(what_kernels_throw_is_an_error) {
    OPD_SCOPED;
    const char *path = extension_path("throws", true, "-DPLAY=0");
    if (!path) { SKIP("no compiler of C++"); }
#if defined(NO_EXCEPTIONS)
    SKIP(NO_EXCEPTIONS);
#endif
    CHECK_INT(opd_extension_load(path), 8);
    CHECK_OK();
    if (!opd_ok()) { return; }
    opd_value args[2], ret;
    args[0] = opd_value_tensor(numbers());
    for (int round = 0; round < 3; round++) {
        args[1] = opd_value_int(1);
        CHECK_INT(opd_call_all(opd_find("play::throws"), &ret, args, 2), -1);
        CHECK_ERROR(OPD_ERROR_KERNEL, "out of range, says the kernel");
        args[1] = opd_value_int(2);
        CHECK_INT(opd_call_all(opd_find("play::throws"), &ret, args, 2), -1);
        CHECK_ERROR(OPD_ERROR_KERNEL, "play::throws");
        args[1] = opd_value_int(3);
        CHECK_INT(opd_call_all(opd_find("play::throws"), &ret, args, 2), 0);
        CHECK_INT(ret.u.i, 3 * round + 3);        /* destructors have run */
    }
    CHECK(scaled(opd_to_dtype(numbers(), OPD_FLOAT64), 2) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "x must be float32");
    CHECK(call_1("play::wrong", numbers()) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "aten::mm");
    CHECK_INT(opd_extension_unload(path), 0);
    CHECK_OK();
}
/* Nothing is left behind by one that is refused. */
static void refused(const char *name, const char *flags, opd_code code, const char *text) {
    const char *path = extension_path(name, false, flags);
    if (!path) { return; }
    CHECK_INT(opd_extension_load(path), -1);
    CHECK_ERROR(code, text);
    CHECK(opd_find_quiet("play::scale") == NULL || !opd_op_schema(opd_find_quiet("play::scale")));
    CHECK_INT(opd_extension_unload(path), -1);
    opd_error_clear();
}
TEST(what_is_wrong_with_one_is_said) {
    if (!extension_path("plain", false, "-DPLAY=0")) { SKIP("no compiler"); }
    refused("schema", "-DPLAY=1", OPD_ERROR_SCHEMA, "bad(Tensor x -> Tensor");
    refused("twice", "-DPLAY=2", OPD_ERROR_REGISTER, "multiple times");
    refused("missing", "-DPLAY=3", OPD_ERROR_FILE, "torch_function_of_the_future");
    refused("dicts", "-DPLAY=5", OPD_ERROR_SCHEMA, "Dict");
    refused("key", "-DPLAY=6", OPD_ERROR_NOT_FOUND, "NoSuchKey");
    OPD_SCOPED;
    const char *path = extension_path("scalar", false, "-DPLAY=4");
    CHECK_INT(opd_extension_load(path), 8);
    opd_value args[2];
    args[0] = opd_value_tensor(numbers());
    args[1] = opd_value_int(1);
    CHECK(opd_call_op(opd_find("play::scalar"), args, 2) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "Scalar");
    CHECK_INT(opd_extension_unload(path), 0);
    CHECK_OK();
}
TEST(what_is_there_already_stays) {
    OPD_SCOPED;
    char first[400];
    const char *path = extension_path("plain", false, "-DPLAY=0");
    if (!path) { SKIP("no compiler"); }
    snprintf(first, sizeof first, "%s", path);
    CHECK_INT(opd_extension_load(first), 7);
    path = extension_path("again", false, "-DPLAY=0 -DAGAIN");
    CHECK_INT(opd_extension_load(path), -1);
    CHECK(strstr(opd_error_message(), "again.so") != NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "play");
    CHECK(near(scaled(numbers(), 2), opd_mul_Scalar(numbers(), OPD_V(2)), 0));
    CHECK_INT(opd_extension_unload(first), 0);
    CHECK_INT(opd_extension_load(path), 7);
    CHECK_INT(opd_extension_unload(path), 0);
    CHECK_OK();
}

TEST(damaged_libraries) {
    const char *path = extension_path("plain", false, "-DPLAY=0");
    if (!path) { SKIP("no compiler"); }
    FILE *file = fopen(path, "rb");
    unsigned char *data = (unsigned char *)malloc(1 << 20);
    const size_t count = file && data ? fread(data, 1, 1 << 20, file) : 0;
    CHECK(count > 4096);
    if (file) { (void)fclose(file); }
    for (size_t cut = 0; data && cut < count; cut += count / 23) {
        CHECK_INT(opd_extension_load(put("cut.so", data, cut)), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "opd_extension_load");
    }
    for (size_t at = 18; data && at < 64 + 56 * 8; at++) {    /* an error, or it loads as before; never a crash */
        const unsigned char was = data[at];
        data[at] ^= 0x5a;
        path = put("bad.so", data, count);
        if (opd_extension_load(path) >= 0) { CHECK_INT(opd_extension_unload(path), 0); }
        else { CHECK(opd_error_code() == OPD_ERROR_FILE); }
        if (at == 18) { CHECK(strstr(opd_error_message(), "the library is for") != NULL); }
        opd_error_clear();
        data[at] = was;
    }
    free(data);
    CHECK_INT(opd_extension_load("/no/such/extension.so"), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "No such file");
    CHECK_INT(opd_extension_load(NULL), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the path is NULL");
    CHECK_INT(opd_extension_load(__FILE__), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "not a shared library");
    char torch[400];
    snprintf(torch, sizeof torch, "%s/libtorch.so", folder);
    CHECK_INT(opd_extension_load(torch), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "does not register operators");
}

//-- one that was built with PyTorch's headers -------------------------------------------------------------------------

TEST(written_with_the_headers_of_pytorch) {
    OPD_SCOPED;
    char path[400], include[800];
    const char *given = getenv("OPD_TORCH_INCLUDE");
    snprintf(include, sizeof include, "%s", given && *given ? given
             : output_of("python3 -c 'import importlib.util as u; print(u.find_spec(\"torch\")"
                         ".submodule_search_locations[0] + \"/include\")' 2>/dev/null"));
    snprintf(path, sizeof path, "%s/torch/csrc/stable/library.h", include);
    if (!*include || access(path, R_OK) || !make_folder()) {
        SKIP("no torch/csrc/stable/library.h (PyTorch 2.10 or later; $OPD_TORCH_INCLUDE)");
    }
    snprintf(path, sizeof path, "%s/stable.so", folder);
    CHECK(shell("%s -std=c++20 -O1 -w -shared -fPIC -I'%s' '%s/extension/stable.cpp' -L'%s' -Wl,--no-as-needed -ltorch "
                "-o '%s'", compiler(true), include, here(), folder, path));
    CHECK_INT(opd_extension_load(path), 4);
    CHECK_OK();
    if (!opd_ok()) { return; }
    opd_tensor *x = numbers(), *list[2];
    opd_value args[4];
    list[0] = x;
    list[1] = opd_mul_Scalar(x, OPD_V(2));
    args[0] = opd_value_tensors(list, 2);
    args[1] = opd_value_double(0.5);
    args[2] = opd_value_str("sum");
    CHECK(near(opd_call_op(opd_find("stable_test::mix"), args, 3), opd_mul_Scalar(x, OPD_V(1.5)), 1e-6));
#if !defined(NO_EXCEPTIONS)
    args[2] = opd_value_str("product");
    CHECK(opd_call_op(opd_find("stable_test::mix"), args, 3) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "how must be sum");
    CHECK(call_1("stable_test::fails", x) == NULL);
    CHECK_ERROR(OPD_ERROR_SHAPE, "size mismatch");
#endif
    args[0] = opd_value_tensor(x);
    CHECK(near(opd_call_op(opd_find("stable_test::through"), args, 1),
               opd_add_Scalar(opd_sum(opd_mul(x, x)), OPD_V(0)), 1e-6));
    args[1] = opd_value_none();
    CHECK(near(opd_call_op(opd_find("stable_test::either"), args, 2), x, 0));
    args[1] = opd_value_tensor(list[1]);
    CHECK(near(opd_call_op(opd_find("stable_test::either"), args, 2), list[1], 0));
    CHECK_INT(opd_extension_unload(path), 0);
    CHECK_OK();
}

//-- torchvision's -----------------------------------------------------------------------------------------------------

static opd_tensor_file *golden;
static opd_tensor *stored(const char *name, const char *what, int i) {
    char key[80];
    if (i < 0) { snprintf(key, sizeof key, "%s.%s", name, what); }
    else { snprintf(key, sizeof key, "%s.%s%d", name, what, i); }
    return opd_tensor_file_find(golden, key) < 0 ? NULL : opd_tensor_file_get(golden, key);
}
/* The path of torchvision's library; NULL: there is none. */
static const char *vision_path(void) {
    static char path[1000];
    const char *given = getenv("OPD_TORCHVISION");
    if (!*path) {
        snprintf(path, sizeof path, "%s", given && *given ? given
                 : output_of("python3 -c 'import importlib.util as u; print(u.find_spec(\"torchvision\")"
                             ".submodule_search_locations[0] + \"/_C_stable.so\")' 2>/dev/null"));
    }
    return *path && access(path, R_OK) == 0 ? path : NULL;
}
typedef struct vision_case {
    const char *name, *op;
    int tensors, results;
    const char *rest;            /* f, i or b and a number each */
} vision_case;
static const vision_case vision_cases[] = {
    {"nms", "nms", 2, 1, "f0.4"},
    {"roi_align", "roi_align", 2, 1, "f0.5 i3 i4 i2 b1"}, {"roi_align64", "roi_align", 2, 1, "f1 i2 i2 i-1 b0"},
    {"roi_pool", "roi_pool", 2, 2, "f0.5 i3 i3"}, {"ps_roi_align", "ps_roi_align", 2, 2, "f0.5 i2 i2 i2"},
    {"ps_roi_pool", "ps_roi_pool", 2, 2, "f0.5 i2 i2"},
    {"deform_conv2d", "deform_conv2d", 5, 1, "i1 i1 i1 i1 i1 i1 i2 i1 b1"},
    {"box_iou_rotated", "box_iou_rotated", 2, 1, ""}
};
static int vision_args(const vision_case *it, opd_value *args) {
    int count = 0;
    for (; count < it->tensors; count++) { args[count] = opd_value_tensor(stored(it->name, "in", count)); }
    for (const char *at = it->rest; *at; at += strcspn(at, " "), at += strspn(at, " ")) {
        const double number = strtod(at + 1, NULL);
        args[count++] = *at == 'f' ? opd_value_double(number) : *at == 'i' ? opd_value_int((int64_t)number)
            : opd_value_bool(number != 0);
    }
    return count;
}
/* Calls it as torchvision did: results and gradients are the same. */
static void vision_one(const vision_case *it) {
    OPD_SCOPED;
    opd_value args[16];
    opd_tensor *rets[2];
    char name[60];
    const int count = vision_args(it, args);
    snprintf(name, sizeof name, "torchvision::%s", it->op);
    for (int i = 0; i < it->tensors; i++) {
        if (stored(it->name, "grad", i)) { (void)opd_tensor_set_requires_grad(args[i].u.t, true); }
    }
    CHECK_INT(opd_call_tensors(opd_find(name), rets, args, count), 0);
    for (int i = 0; i < it->results; i++) {
        if (!near(rets[i], stored(it->name, "out", i), 1e-5)) { check_complain(name); }
    }
    opd_tensor *weight = stored(it->name, "weight", -1);
    if (weight) { CHECK_INT(opd_backward(opd_sum(opd_mul(rets[0], weight))), 0); }
    for (int i = 0; i < it->tensors && weight; i++) {
        opd_tensor *want = stored(it->name, "grad", i);
        if (want && !near(opd_tensor_grad(args[i].u.t), want, 1e-4)) { check_complain(name); }
    }
    CHECK_OK();
}
static bool vision_begin(void) {
    char path[1000];
    snprintf(path, sizeof path, "%s/golden/torchvision.npz", here());
    golden = opd_tensor_file_open(path);
    return golden != NULL;
}
TEST(torchvision_gives_what_it_gives_in_python) {
    if (!vision_path()) { SKIP("no torchvision with _C_stable.so ($OPD_TORCHVISION)"); }
    CHECK(vision_begin());
    for (int round = 0; round < 2; round++) {
        CHECK_INT(opd_extension_load(vision_path()), 15);
        CHECK_OK();
        for (size_t i = 0; i < sizeof vision_cases / sizeof *vision_cases; i++) { vision_one(&vision_cases[i]); }
        CHECK_INT(opd_extension_unload(vision_path()), 0);
    }
    opd_tensor_file_close(golden);
}
static int vision_traced(void *user, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    const vision_case *it = (const vision_case *)user;
    opd_value args[16];
    char name[60];
    const int count = vision_args(it, args);
    snprintf(name, sizeof name, "torchvision::%s", it->op);
    for (int i = 0; i < ninputs; i++) { args[i] = opd_value_tensor(inputs[i]); }
    return opd_call_tensors(opd_find(name), outputs, args, count) ? -1 : it->results;
}
TEST(torchvision_is_traced_saved_and_faked) {
    OPD_SCOPED;
    if (!vision_path()) { SKIP("no torchvision with _C_stable.so ($OPD_TORCHVISION)"); }
    CHECK(vision_begin() && make_folder());
    CHECK_INT(opd_extension_load(vision_path()), 15);
    for (size_t i = 0; i < sizeof vision_cases / sizeof *vision_cases; i++) {
        const vision_case *it = &vision_cases[i];
        opd_value args[16];
        char file[400];
        opd_tensor *inputs[8], *out[2];
        (void)vision_args(it, args);
        for (int k = 0; k < it->tensors; k++) { inputs[k] = args[k].u.t; }
        opd_graph *graph = opd_graph_trace(vision_traced, (void *)(uintptr_t)it, inputs, it->tensors, 0);
        snprintf(file, sizeof file, "%s/vision.opd", folder);
        CHECK_INT(opd_graph_save(graph, file), 0);
        opd_graph_free(graph);
        graph = opd_graph_load(file);
        CHECK_INT(opd_graph_run(graph, inputs, it->tensors, out, 2), it->results);
        CHECK(near(out[0], stored(it->name, "out", 0), 1e-5));
        opd_graph_free(graph);
        CHECK_OK();
    }
    opd_tensor_file_close(golden);
    CHECK_INT(opd_extension_unload(vision_path()), 0);
    CHECK_OK();
}
/* What the library does where the built-in operators are there before it (listed) and where they are not. */
static void vision_under_autocast(bool listed) {
    const opd_op_filter filter = {"torchvision", NULL, NULL, 0, false};
    if (listed) { CHECK(opd_op_list(&filter, NULL, 0) >= 3); }
    CHECK(vision_begin());
    CHECK_INT(opd_extension_load(vision_path()), 15);
    const vision_case *it = &vision_cases[1];
    opd_value args[16];
    const int count = vision_args(it, args);
    args[0] = opd_value_tensor(opd_to_dtype(args[0].u.t, OPD_BFLOAT16));
    opd_autocast_region region = opd_autocast_begin(OPD_CPU, OPD_BFLOAT16, true, 1);
    opd_tensor *out = opd_call_op(opd_find("torchvision::roi_align"), args, count);
    opd_autocast_end(&region);
    CHECK_OK();
    CHECK(out && opd_dtype(out) == OPD_BFLOAT16 &&
          near(opd_to_dtype(out, OPD_FLOAT32), stored(it->name, "out", 0), 0.02));
    for (int i = 0; i < 7; i++) {                 /* on fake tensors */
        const vision_case *one = &vision_cases[i];
        opd_tensor *rets[2];
        char name[60];
        const int n = vision_args(one, args);
        for (int k = 0; k < one->tensors; k++) {
            args[k] = opd_value_tensor(opd_to_device(args[k].u.t, opd_device_make(OPD_META, -1),
                                                       opd_dtype(args[k].u.t)));
        }
        snprintf(name, sizeof name, "torchvision::%s", one->op);
        const int rc = opd_call_tensors(opd_find(name), rets, args, n);
        CHECK_INT(rc, i == 0 ? -1 : 0);           /* how many boxes nms leaves is not known */
        opd_error_clear();
        for (int k = 0; k < one->results && rc == 0; k++) {
            opd_tensor *want = stored(one->name, "out", k);
            CHECK(opd_dtype(rets[k]) == opd_dtype(want) && opd_ndim(rets[k]) == 4 &&
                  memcmp(opd_sizes(rets[k]), opd_sizes(want), 32) == 0);
        }
    }
    opd_tensor_file_close(golden);
    CHECK_INT(opd_extension_unload(vision_path()), 0);
    CHECK_OK();
}
TEST(torchvision_under_autocast_and_on_fakes) {
    OPD_SCOPED;
    if (!vision_path()) { SKIP("no torchvision with _C_stable.so ($OPD_TORCHVISION)"); }
    vision_under_autocast(false);
    vision_under_autocast(true);
    vision_under_autocast(true);
}
/* The other library of torchvision, which is linked with libraries in the same wheel. */
TEST(torchvision_reads_and_writes_pictures) {
    OPD_SCOPED;
    char path[1000], file[400];
    if (!vision_path()) { SKIP("no torchvision with _C_stable.so ($OPD_TORCHVISION)"); }
    snprintf(path, sizeof path, "%.*simage_stable.so", (int)(strlen(vision_path()) - strlen("_C_stable.so")),
             vision_path());
    CHECK(make_folder());
    CHECK_INT(opd_extension_load(path), 13);
    CHECK_OK();
    if (!opd_ok()) { return; }
    const int64_t sizes[3] = {3, 8, 8};
    opd_tensor *picture = opd_reshape(opd_arange(OPD_V(192), OPD_UINT8), opd_ints_of(sizes, 3));
    opd_value args[3];
    args[0] = opd_value_tensor(picture);
    args[1] = opd_value_int(6);
    opd_tensor *png = opd_call_op(opd_find("image::encode_png"), args, 2);
    snprintf(file, sizeof file, "%s/picture.png", folder);
    args[0] = opd_value_str(file);
    args[1] = opd_value_tensor(png);
    CHECK_INT(opd_call_all(opd_find("image::write_file"), NULL, args, 2), 0);
    opd_tensor *read = opd_call_op(opd_find("image::read_file"), args, 1);
    CHECK(near(read, png, 0));
    args[0] = opd_value_tensor(read);
    args[1] = opd_value_int(0);
    CHECK(near(opd_call_op(opd_find("image::decode_png"), args, 2), picture, 0));
    CHECK_OK();
    CHECK_INT(opd_extension_unload(path), 0);
    CHECK_OK();
}
TEST(torchvision_says_what_is_wrong) {
    OPD_SCOPED;
    if (!vision_path()) { SKIP("no torchvision with _C_stable.so ($OPD_TORCHVISION)"); }
#if defined(NO_EXCEPTIONS)
    SKIP(NO_EXCEPTIONS);
#endif
    CHECK_INT(opd_extension_load(vision_path()), 15);
    opd_value args[3];
    args[0] = args[1] = opd_value_tensor(numbers());
    args[2] = opd_value_double(0.5);
    CHECK(opd_call_op(opd_find("torchvision::nms"), args, 3) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "boxes should be a 2d tensor");
    CHECK_INT(opd_extension_unload(vision_path()), 0);
    CHECK_OK();
}

#else

TEST(extensions_are_refused_where_they_cannot_run) {
    CHECK_INT(opd_extension_load("extension.so"), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Linux");
    CHECK_INT(opd_extension_unload("extension.so"), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Linux");
}

#endif

CHECK_MAIN()
