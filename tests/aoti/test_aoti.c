/* Models that AOTInductor compiled, with aoti/model.c instead of a real model: loading, refused files, runs,
   errors, several models at once, constants, packages.  aoti.py tests real models.  THREADED */
#define OPD_AOTI
#include "../inside.h"
#include "../beside_torch.h"

#if defined(OPDI_AOTI_THERE)
#include <sys/wait.h>
#include <unistd.h>

static const char *model_path(const char *name, const char *flags) {
    return library_of("aoti/model.c", name, false, flags);
}
static opd_aoti *model_of(const char *name, const char *flags) {
    const char *path = model_path(name, flags);
    return path ? opd_aoti_load(path, NULL) : NULL;
}
/* One run of what is asked for; the results are of the innermost scope. */
static int ask(opd_aoti *model, int64_t what, opd_tensor **out) {
    static const float numbers[6] = {1, 2, 3, -4, 5, -6};
    opd_tensor *inputs[2];
    const int64_t sizes[2] = {2, 3};
    inputs[0] = opd_tensor_from(numbers, opd_ints_of(sizes, 2), OPD_FLOAT32);
    inputs[1] = opd_tensor_from(&what, opd_ints_of(NULL, 0), OPD_INT64);
    return opd_aoti_run(model, opd_tensors_of(inputs, 2), out, 2);
}
static void check_numbers(opd_tensor *tensor, const float *want, int count) {
    CHECK_INT(opd_numel(tensor), count);
    tensor = opd_contiguous(tensor);
    for (int i = 0; i < count && opd_data_f32(tensor) && opd_numel(tensor) == count; i++) {
        CHECK_NEAR(opd_data_f32(tensor)[i], want[i], 1e-5);
    }
}

/* What each part of the model gives. */
static void check_runs(opd_aoti *model) {
    static const float product[6] = {12.5f, 46, 100.5f, -50, 115, -201}, middle[6] = {10, 11, 12, 13, 14, 15};
    static const float sorted[6] = {3, 2, 1, 5, -4, -6}, second[2] = {2, 5}, image[6] = {7, 9, 11, -3, 15, -7};
    static const float linear[6] = {1, 4, 9, -2, 10, -9}, x[6] = {1, 2, 3, -4, 5, -6};
    static const float norm[6] = {0.46291f, 0.92582f, 1.38873f, -0.78954f, 0.98692f, -1.18431f};
    const float number = 2.5f, part = 2;
    opd_tensor *out[2];
    const float *const wants[] = {product, middle, sorted, second, image, linear, &number, x, &part, norm};
    const int counts[] = {6, 6, 6, 2, 6, 6, 1, 6, 1, 6};
    for (int what = 0; what < 10; what++) {
        OPD_SCOPED;
        CHECK_INT(ask(model, what, out), 2);
        CHECK_OK();
        check_numbers(out[0], wants[what], counts[what]);
        CHECK_INT(opd_size(out[1], 1), 3);
    }
    OPD_SCOPE {                                   /* what a model does to grad mode ends with its run */
        CHECK_INT(ask(model, 14, out), 2);
        CHECK(opd_grad_mode_enabled());
    }
}
static void check_failures_in(opd_aoti *model) {
    opd_tensor *out[2];
    CHECK_INT(ask(model, 10, out), -1);
    CHECK(out[0] == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "narrow");
    CHECK_INT(ask(model, 11, out), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the model is not content");
    CHECK_INT(ask(model, 12, out), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "load the package (.pt2)");
    CHECK_INT(ask(model, 99, out), -1);
    CHECK_ERROR(OPD_ERROR_KERNEL, "opd_aoti_run");
    CHECK_INT(ask(model, 0, out), 2);             /* and goes on */
    CHECK_OK();
}

TEST(runs) {
    opd_aoti *model = model_of("plain", "");
    if (!model && opd_ok()) { SKIP("no compiler"); }
    CHECK_OR_RETURN(model != NULL);
    CHECK_STR(opd_aoti_name(model), "plain.so");
    CHECK_INT(opd_aoti_ninputs(model), 2);
    CHECK_INT(opd_aoti_noutputs(model), 2);
    CHECK_STR(opd_aoti_input_name(model, 1), "what");
    CHECK_STR(opd_aoti_output_name(model, 0), "output0");
    CHECK(opd_aoti_input_name(model, 2) == NULL && opd_aoti_file_name(model, 1) == NULL);
    CHECK(opd_aoti_metadata(model, "AOTI_CPU_ISA") == NULL);
    check_runs(model);
    check_failures_in(model);
    opd_aoti_free(model);
    opd_aoti_free(NULL);
}
/* Results that are one handle, an input's, a constant's or none. */
static void check_handles(opd_aoti *model) {
    static const float x[6] = {1, 2, 3, -4, 5, -6}, made[6] = {1, 2, 3, 4, 5, 6}, weight[9] = {1, 0, 0, 0, 2, 0, 0, 0, 3}, number = 24;
    const float *const wants[][2] = {{made, made}, {x, x}, {x, made}, {x, x}, {&number, made}, {NULL, made}, {NULL, NULL},
                                     {weight, weight}, {weight, weight}};
    opd_tensor *out[2];
    for (int run = 0; run < 3; run++) {
        for (int what = 20; what < 29; what++) {
            OPD_SCOPED;
            CHECK_INT(ask(model, what, out), what == 26 ? -1 : 2);
            if (what == 26) { CHECK_ERROR(OPD_ERROR_KERNEL, "opd_aoti_run"); }
            CHECK_OK();
            for (int i = 0; i < 2; i++) {
                const float *const want = wants[what - 20][i];
                CHECK((out[i] == NULL) == (want == NULL));
                if (want == &number) { CHECK_INT(opd_item_i64(out[i]), 24); }
                else if (want) { check_numbers(out[i], want, want == weight ? 9 : 6); }
            }
            if (what == 20 || what == 21) {       /* one tensor: what is written into one result is in the other */
                (void)opd_fill_(out[1], OPD_V(7));
                CHECK_NEAR(opd_data_f32(out[0])[3], 7, 0);
            }
        }
    }
    CHECK_INT(ask(model, 0, out), 2);
    CHECK_OK();
}
/* An interruption ends a run before the model's next operator. */
static void *interrupt_begins(const opd_event *event, void *user) {
    const bool product = strcmp(event->name, "aten::addmm") == 0;
    *(int *)user += product;
    if (product) { opd_interrupt(); }
    return NULL;
}
TEST(interrupted) {
    OPD_SCOPED;
    static int calls;
    opd_tensor *out[2];
    opd_observer observer;
    opd_aoti *model = model_of("plain", "");
    if (!model && opd_ok()) { SKIP("no compiler"); }
    CHECK_OR_RETURN(model != NULL);
    memset(&observer, 0, sizeof observer);
    observer.begin = interrupt_begins;
    observer.user = &calls;
    calls = 0;
    const int64_t handle = opd_observer_add_local(&observer);
    CHECK_INT(ask(model, 0, out), -1);
    CHECK_ERROR(OPD_ERROR_INTERRUPTED, "interrupted");
    CHECK_INT(calls, 1);                          /* of two */
    (void)opd_observer_remove(handle);
    opd_interrupt_clear();
    CHECK_INT(ask(model, 0, out), 2);
    opd_aoti_free(model);
}
TEST(handles_that_are_given_back) {
    opd_aoti *model = model_of("plain", "");
    if (!model && opd_ok()) { SKIP("no compiler"); }
    CHECK_OR_RETURN(model != NULL);
    check_handles(model);
    opd_aoti_free(model);
}
/* Layers of codes with packed weights, as in packages of quantised models. */
TEST(codes) {
    static const float linear[4] = {5.5f, 0, 8, 3.1f};
    static const float conv[12] = {-10, -9, -8, -7, -6, -5, 12, 9, 6, 3, 0, -3};
    static const float sum[12] = {0, 0, 0, 0, 0, 0, 18, 16, 14, 12, 10, 8};
    static const uint8_t wants[4] = {48, 39, 93, 94};
    float four[16];
    opd_tensor *out[2];
    opd_aoti *model = model_of("plain", "");
    if (!model && opd_ok()) { SKIP("no compiler"); }
    CHECK_OR_RETURN(model != NULL);
    for (int i = 0; i < 16; i++) { four[i] = 32 * ((float)i + 1.5f); }
    CHECK_INT(ask(model, 15, out), 2);
    check_numbers(out[0], linear, 4);
    CHECK_INT(ask(model, 16, out), 2);
    CHECK(opd_dtype(out[0]) == OPD_UINT8 && memcmp(opd_data(out[0]), wants, 4) == 0);
    CHECK_INT(ask(model, 17, out), 2);
    check_numbers(out[0], conv, 12);
    for (int run = 0; run < 2; run++) {
        CHECK_INT(ask(model, 18, out), 2);
        check_numbers(out[0], sum, 12);
    }
    CHECK_INT(ask(model, 19, out), 2);
    check_numbers(out[0], four, 16);
    CHECK_OK();
    opd_aoti_free(model);
}
/* The model is compiled as C++, so its failures are exceptions. */
TEST(exceptions) {
    const char *path = library_of("aoti/model.c", "exceptions", true, "");
    if (!path) { SKIP("no compiler of C++"); }
#if defined(CHECK_SANITIZED) && !defined(__cplusplus)
    SKIP("the sanitizer knows no exceptions in programs that are not linked with C++");
#endif
    opd_aoti *model = opd_aoti_load(path, NULL);
    CHECK_OR_RETURN(model != NULL);
    check_runs(model);
    check_failures_in(model);
    check_handles(model);
    opd_aoti_free(model);
}
TEST(results_stay) {
    opd_tensor *out[2] = {NULL, NULL};
    opd_aoti *model = model_of("plain", "");
    if (!model && opd_ok()) { SKIP("no compiler"); }
    CHECK_OR_RETURN(model != NULL);
    CHECK_INT(ask(model, 0, out), 2);
    opd_aoti_free(model);
    CHECK_NEAR(opd_data_f32(out[1])[4], 2, 0);    /* was the model's constant */
}
TEST(inputs) {
    opd_tensor *out[2], *inputs[3];
    const int64_t sizes[2] = {2, 3}, others[2] = {3, 2}, examples[3] = {4, 2, 3};
    const int dims[2] = {0, OPD_NO_DIM};
    opd_vmap_options batch;
    opd_aoti *model = model_of("plain", "");
    if (!model && opd_ok()) { SKIP("no compiler"); }
    CHECK_OR_RETURN(model != NULL);
    inputs[0] = opd_ones(opd_ints_of(sizes, 2), OPD_FLOAT32);
    inputs[1] = opd_zeros(opd_ints_of(NULL, 0), OPD_INT64);
    inputs[2] = inputs[0];
    CHECK_INT(opd_aoti_run(model, opd_tensors_of(inputs, 3), out, 2), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "takes 2 inputs, not 3");
    CHECK_INT(opd_aoti_run(model, opd_tensors_of(inputs, 2), out, 1), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "has 2 outputs, but the array has room for 1");
    inputs[0] = NULL;
    CHECK_INT(opd_aoti_run(model, opd_tensors_of(inputs, 2), out, 2), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "input 0 ('x') is NULL");
    inputs[0] = opd_ones(opd_ints_of(others, 2), OPD_FLOAT32);
    CHECK_INT(opd_aoti_run(model, opd_tensors_of(inputs, 2), out, 2), -1);
    CHECK_ERROR(OPD_ERROR_KERNEL, "x has other sizes");
    inputs[0] = opd_tensor_new_on(opd_ints_of(sizes, 2), OPD_FLOAT32, opd_device_make(OPD_META, -1));
    CHECK_INT(opd_aoti_run(model, opd_tensors_of(inputs, 2), out, 2), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "not on the CPU");
    inputs[0] = opd_ones(opd_ints_of(sizes, 2), OPD_FLOAT32);
    opd_tensor_set_requires_grad(inputs[0], true);
    CHECK_INT(opd_aoti_run(model, opd_tensors_of(inputs, 2), out, 2), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "no derivatives");
    OPD_NO_GRAD { CHECK_INT(opd_aoti_function(model, inputs, 2, out), 2); }
    CHECK(!opd_tensor_requires_grad(out[0]));
    inputs[0] = opd_ones(opd_ints_of(examples, 3), OPD_FLOAT32);
    memset(&batch, 0, sizeof batch);
    batch.in_dims = dims;
    batch.nin_dims = 2;
    CHECK_INT(opd_vmap(opd_aoti_function, model, inputs, 2, &batch, out, 2), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "under vmap");
    CHECK_INT(opd_aoti_run(NULL, opd_tensors_of(inputs, 2), out, 2), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the model is NULL");
    opd_aoti_free(model);
}
TEST(constants) {
    static const float other[9] = {2, 0, 0, 0, 2, 0, 0, 0, 2};
    const int64_t sizes[2] = {3, 3};
    const char *const names[2] = {"layer.weight", "layer.bias"};
    opd_aoti_constant constant;
    opd_tensor *out[2];
    opd_aoti *model = model_of("weightless", "-DMODEL_WEIGHTS=1");
    if (!model && opd_ok()) { SKIP("no compiler"); }
    CHECK_OR_RETURN(model != NULL);
    CHECK_INT(opd_aoti_constants(model), 1);
    CHECK_INT(opd_aoti_constant_at(model, 0, &constant), 0);
    CHECK_STR(constant.name, "layer.weight");
    CHECK_STR(constant.symbol, "layer_weight");
    CHECK_INT(constant.bytes, 64);
    CHECK_INT(opd_aoti_constant_at(model, 1, &constant), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "no constant 1");
    CHECK_INT(ask(model, 0, out), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "without its weights");
    CHECK(opd_aoti_constant_get(model, "layer.weight") == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no value");
    CHECK_INT(opd_aoti_update(model, names, opd_tensors_of(NULL, 0)), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "'layer.weight' is not among the given weights");
    opd_tensor *weights[2];
    weights[0] = weights[1] = opd_tensor_from(other, opd_ints_of(sizes, 2), OPD_FLOAT32);
    CHECK_INT(opd_aoti_update(model, names, opd_tensors_of(weights, 2)), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no constant 'layer.bias'");
    weights[1] = opd_ones(opd_ints_of(sizes, 1), OPD_FLOAT64);
    CHECK_INT(opd_aoti_update(model, names, opd_tensors_of(&weights[1], 1)), -1);
    CHECK_ERROR(OPD_ERROR_SHAPE, "float64");
    CHECK_INT(opd_aoti_update(model, names, opd_tensors_of(weights, 1)), 0);
    CHECK_INT(ask(model, 5, out), 2);
    CHECK_NEAR(opd_data_f32(out[0])[5], -6, 0);
    CHECK_NEAR(opd_data_f32(opd_aoti_constant_get(model, "layer_weight"))[8], 2, 0);
    opd_aoti_free(model);
}
TEST(missing) {
    const char *path = model_path("missing", "-DMODEL_ASKS=aoti_torch_cpu_no_such_operator");
    if (!path) { SKIP("no compiler"); }
    CHECK(opd_aoti_load(path, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "needs aoti_torch_cpu_no_such_operator, which is missing");
    path = model_path("elsewhere", "-DMODEL_ASKS=nowhere_at_all");
    CHECK_OR_RETURN(path != NULL);
    CHECK(opd_aoti_load(path, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "nowhere_at_all");
}
/* A model whose code the processor lacks instructions for is refused before it runs; the library alone does not say for
   which processor it was compiled. */
TEST(another_processor) {
    uint32_t all = 0;
    for (uint32_t bit = 1; bit && inside_sets_name(bit); bit <<= 1) { all |= bit; }
    if (!all) { SKIP("machine code is not read here"); }
    const char *const path = model_path("wide", "-DMODEL_WIDE=1");
    if (!path) { SKIP("no compiler"); }
    (void)inside_sets_assume(all & ~1u);
    CHECK(strcmp(inside_sets_name(1), "AVX512") == 0 && opd_aoti_load(path, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "compiled for AVX512, which this processor does not have");
    opd_aoti *model = model_of("plain", "");
    CHECK(model != NULL);
    opd_aoti_free(model);
    (void)inside_sets_assume(all);
    model = opd_aoti_load(path, NULL);
    CHECK(model != NULL);
    opd_aoti_free(model);
    (void)inside_sets_assume(0);
}
TEST(vectors) {
    static const float none[6] = {0, 1, 2, 3, 4, 5};
    opd_tensor *out[2];
#if defined(__x86_64__)                           /* as models are compiled: else clang hands 64 bytes over in two halves */
    opd_aoti *model = model_of("vectors", "-DMODEL_VECTORS=1 -mavx512f");
#else
    opd_aoti *model = model_of("vectors", "-DMODEL_VECTORS=1");
#endif
    if (!model && strstr(opd_error_message(), "AVX512")) {
        opd_error_clear();
        SKIP("no AVX-512");
    }
    if (!model && opd_ok()) { SKIP("no compiler"); }
    CHECK_OR_RETURN(model != NULL);
    CHECK_INT(ask(model, 13, out), 2);
    const float *data = opd_data_f32(out[0]);
    CHECK_NEAR(data[0], 20.0855369, 1e-5);
    CHECK_NEAR(data[4], 1.94591015, 1e-6);
    if (data[1] != none[1]) { CHECK_NEAR(data[1], 0.761594156, 1e-6); }
    if (data[2] != none[2]) { CHECK_NEAR(data[2], 32768, 0.01); }
    if (data[3] != none[3]) { CHECK_NEAR(data[3], 1.42889927, 1e-6); }
    opd_aoti_free(model);
}
/* Several models at the same time, from the same file and from others, loaded and freed in any order. */
TEST(several) {
    opd_aoti *models[6];
    opd_tensor *out[2];
    for (int i = 0; i < 6; i++) {
        models[i] = model_of(i % 2 ? "plain" : "weightless", i % 2 ? "" : "-DMODEL_WEIGHTS=1");
        if (!models[i] && opd_ok()) { SKIP("no compiler"); }
        CHECK_OR_RETURN(models[i] != NULL);
    }
    for (int i = 1; i < 6; i += 2) { OPD_SCOPE { CHECK_INT(ask(models[i], 0, out), 2); } }
    for (int i = 0; i < 6; i++) {
        OPD_SCOPE { if (i % 2) { CHECK_INT(ask(models[i], 3, out), 2); } }
        opd_aoti_free(models[i]);
    }
}

//-- wrong files -------------------------------------------------------------------------------------------------------

static unsigned char *bytes_of(const char *path, size_t *count) {
    FILE *file = fopen(path, "rb");
    unsigned char *data = NULL;
    *count = 0;
    if (file && fseek(file, 0, SEEK_END) == 0) {
        *count = (size_t)ftell(file);
        rewind(file);
        data = (unsigned char *)malloc(*count + 1);
        if (data && fread(data, 1, *count, file) != *count) { *count = 0; }
    }
    if (file) { (void)fclose(file); }
    return data;
}
TEST(damaged) {
    const char *path = model_path("plain", "");
    size_t count;
    if (!path) { SKIP("no compiler"); }
    unsigned char *data = bytes_of(path, &count);
    CHECK_OR_RETURN(data != NULL && count > 1000);
    for (size_t cut = 0; cut < count; cut += count / 37) {
        CHECK(opd_aoti_load(put("bad.so", data, cut), NULL) == NULL);
        CHECK_ERROR(OPD_ERROR_FILE, "opd_aoti_load");
    }
    data[18] ^= 0x40;                             /* the machine */
    CHECK(opd_aoti_load(put("bad.so", data, count), NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "the library is for");
    data[18] ^= 0x40;
    /* its head and tables: an error, or it loads as before; never a crash */
    for (size_t at = 24; at < 64 + 56 * 8; at++) {
        const unsigned char was = data[at];
        data[at] ^= 0x5a;
        opd_aoti *model = opd_aoti_load(put("bad.so", data, count), NULL);
        CHECK(model != NULL || opd_error_code() == OPD_ERROR_FILE);
        opd_error_clear();
        opd_aoti_free(model);
        data[at] = was;
    }
    free(data);
    CHECK(opd_aoti_load("/no/such/model.pt2", NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "No such file");
    CHECK(opd_aoti_load(NULL, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "the path is NULL");
    CHECK(opd_aoti_load(__FILE__, NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "not a shared library");
}

//-- packages ----------------------------------------------------------------------------------------------------------

/* Appends a stored entry; the directory is kept in *list. */
typedef struct zip { unsigned char *data, list[4000]; size_t count, listed; int entries; } zip;
static uint32_t crc_of(const unsigned char *data, size_t count) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < count; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++) { crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0); }
    }
    return ~crc;
}
static void le(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) { at[i] = (unsigned char)(value >> 8 * i); }
}
static void zip_add(zip *z, const char *name, const void *data, size_t count) {
    const size_t length = strlen(name);
    unsigned char *at = z->data + z->count, *l = z->list + z->listed;
    memset(at, 0, 30);
    memcpy(at, "PK\3\4", 4);
    le(at + 14, crc_of((const unsigned char *)data, count), 4);
    le(at + 18, count, 4);
    le(at + 22, count, 4);
    le(at + 26, length, 2);
    memcpy(at + 30, name, length);
    memcpy(at + 30 + length, data, count);
    memset(l, 0, 46);
    memcpy(l, "PK\1\2", 4);
    memcpy(l + 16, at + 14, 14);
    le(l + 42, z->count, 4);
    memcpy(l + 46, name, length);
    z->listed += 46 + length;
    z->count += 30 + length + count;
    z->entries++;
}
static void zip_end(zip *z) {
    unsigned char *at = z->data + z->count;
    memcpy(at, z->list, z->listed);
    at += z->listed;
    memset(at, 0, 22);
    memcpy(at, "PK\5\6", 4);
    le(at + 8, (uint64_t)z->entries, 2);
    le(at + 10, (uint64_t)z->entries, 2);
    le(at + 12, z->listed, 4);
    le(at + 16, z->count, 4);
    z->count += z->listed + 22;
}
static const char *package(const unsigned char *library, size_t count, const char *metadata, const char *version) {
    static const char nodes[] = "{\"nodes\": [{\"name\": \"b\", \"node\": {\"target\": \"aten::roll\", \"inputs\": ["
        "{\"name\": \"self\", \"arg\": {\"as_tensor\": {\"name\": \"x\"}}, \"kind\": 1},"
        "{\"name\": \"shifts\", \"arg\": {\"as_ints\": [1]}, \"kind\": 1}], \"outputs\": ["
        "{\"as_tensor\": {\"name\": \"b\"}}]}}]}";
    zip z;
    memset(&z, 0, sizeof z);
    z.data = (unsigned char *)malloc(2 * count + 20000);
    if (!z.data) { return ""; }
    zip_add(&z, "m/data/aotinductor/model/abc.wrapper.so", library, count);
    zip_add(&z, "m/data/aotinductor/model/abc.wrapper_metadata.json", metadata, strlen(metadata));
    zip_add(&z, "m/data/aotinductor/model/abc.wrapper.json", nodes, sizeof nodes - 1);
    zip_add(&z, "m/data/aotinductor/second/def.wrapper.so", library, count);
    zip_add(&z, "m/archive_format", "pt2", 3);
    zip_add(&z, "m/archive_version", version, strlen(version));
    zip_end(&z);
    const char *path = put("model.pt2", z.data, z.count);
    free(z.data);
    return path;
}
TEST(packages) {
    static const float rolled[6] = {-6, 1, 2, 3, -4, 5};
    static const char *const wrong[][2] = {
        {"{\"AOTI_DEVICE_KEY\": \"cuda\"}", "compiled for cuda"},
        {"{\"AOTI_MACHINE\": \"riscv64\"}", "compiled for riscv64"},
        {"{\"AOTI_PLATFORM\": \"win32\"}", "compiled for win32"}, {"{\"AOTI_CPU_ISA\": \"ZVECTOR\"}", "ZVECTOR"},
        {"{\"AOTI_MACHINE\": ", "line 1"}};
    const char *path = model_path("plain", "");
    opd_tensor *out[2];
    size_t count;
    if (!path) { SKIP("no compiler"); }
    unsigned char *library = bytes_of(path, &count);
    path = package(library, count, "{\"AOTI_DEVICE_KEY\": \"cpu\", \"AOTI_PLATFORM\": \"linux\"}", "0");
    CHECK_INT(opd_file_kind_of(path), OPD_FILE_COMPILED);
    opd_tensor_file *file = opd_tensor_file_open(path);
    CHECK_INT(opd_tensor_file_count(file), 6);
    CHECK_INT(opd_numel(opd_tensor_file_bytes(file, 0)), count);
    CHECK_INT(opd_data_u8(opd_tensor_file_bytes(file, 4))[2], '2');           /* archive_format: pt2 */
    CHECK(opd_tensor_file_bytes(file, 6) == NULL);
    CHECK_ERROR(OPD_ERROR_INDEX, "no entry 6");
    opd_tensor_file_close(file);
    opd_aoti *model = opd_aoti_load(path, NULL);
    CHECK_OR_RETURN(model != NULL);
    CHECK_STR(opd_aoti_name(model), "model");
    CHECK_STR(opd_aoti_file_name(model, 1), "second");
    CHECK(opd_aoti_file_name(model, 2) == NULL);
    CHECK_STR(opd_aoti_metadata(model, "AOTI_PLATFORM"), "linux");
    CHECK(opd_aoti_metadata(model, "nothing") == NULL);
    CHECK_INT(ask(model, 12, out), 2);            /* an operator by its number in the package */
    check_numbers(out[0], rolled, 6);
    opd_aoti_free(model);
    opd_aoti_options options;
    memset(&options, 0, sizeof options);
    options.name = "second";
    model = opd_aoti_load(path, &options);
    CHECK_STR(opd_aoti_name(model), "second");
    opd_aoti_free(model);
    options.name = "third";
    CHECK(opd_aoti_load(path, &options) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "no model 'third'");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK(opd_aoti_load(package(library, count, wrong[i][0], "0"), NULL) == NULL);
        CHECK_ERROR(OPD_ERROR_FILE, wrong[i][1]);
    }
    CHECK(opd_aoti_load(package(library, count, "{}", "1"), NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "of the format, but only version 0");
    /* one byte of it, in the library or the directory: told by the checksum, or by what is written there */
    unsigned char *all;
    size_t size;
    free(library);
    all = bytes_of(path, &size);
    for (size_t at = 50; all && at < size; at += size / 29) {
        all[at] ^= 0x11;
        opd_aoti *loaded = opd_aoti_load(put("bad.pt2", all, size), NULL);
        CHECK(loaded || opd_error_code() == OPD_ERROR_FILE);
        opd_error_clear();
        opd_aoti_free(loaded);
        all[at] ^= 0x11;
    }
    free(all);
}

//-- threads -----------------------------------------------------------------------------------------------------------

typedef struct worker { opd_aoti *model; int what; int wrong; } worker;
static void *work(void *user) {
    worker *self = (worker *)user;
    opd_tensor *out[2];
    for (int i = 0; i < 50; i++) {
        OPD_SCOPED;
        self->wrong += ask(self->model, self->what, out) != 2;
    }
    return NULL;
}
TEST(threads) {
    pthread_t threads[4];
    worker workers[4];
    opd_aoti *model = model_of("plain", "");
    if (!model && opd_ok()) { SKIP("no compiler"); }
    CHECK_OR_RETURN(model != NULL);
    for (int i = 0; i < 4; i++) {
        workers[i].model = model;
        workers[i].what = i;
        workers[i].wrong = 0;
        CHECK_INT(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        (void)pthread_join(threads[i], NULL);
        CHECK_INT(workers[i].wrong, 0);
    }
    opd_aoti_free(model);
}

//-- the table of functions --------------------------------------------------------------------------------------------

/* Operators are found by names in which dots became underscores, and their arguments in C follow from their schemas. */
TEST(rows) {
    static const char *const wants[][2] = {
        {"aoti_torch_cpu_addmm_out", "aten::addmm.out"}, {"aoti_torch_cpu_scatter_src_out", "aten::scatter.src_out"},
        {"aoti_torch_cpu_scatter_reduce_two_out", "aten::scatter_reduce.two_out"},
        {"aoti_torch_cpu_sort_stable", "aten::sort.stable"},
        {"aoti_torch_cpu_sort", "aten::sort"},
        {"aoti_torch_cpu_max_pool2d_with_indices", "aten::max_pool2d_with_indices"},
        {"aoti_torch_cpu_fill__Scalar", "aten::fill_.Scalar"},
        {"aoti_torch_cpu_pow_Tensor_Scalar", "aten::pow.Tensor_Scalar"},
        {"aoti_torch_aten_subtract_Tensor", "aten::subtract.Tensor"}, {"aoti_torch_cpu_nonzero", "aten::nonzero"}};
    opd_aoti model;
    memset(&model, 0, sizeof model);
    for (size_t i = 0; i < sizeof wants / sizeof *wants; i++) {
        const opdi_aoti_row *row = opdi_aoti_row_of(&model, wants[i][0]);
        CHECK_STR(row && row->op ? opd_op_name(row->op) : "none", wants[i][1]);
    }
    CHECK_INT(model.rows[0]->nparams, 6);
    CHECK_INT(model.rows[0]->order[0], 5);        /* out comes first */
    CHECK(!model.rows[0]->returns && model.rows[3]->returns && !model.rows[6]->returns);
    CHECK_INT(model.rows[3]->nrets, 2);
    CHECK(model.rows[3]->params[1].optional && model.rows[3]->params[1].kind == 'b');
    for (size_t i = 0; i < sizeof opdi_aoti_others / sizeof *opdi_aoti_others; i++) {
        CHECK(opdi_aoti_row_of(&model, opdi_aoti_others[i].symbol) != NULL);
    }
    CHECK(opdi_aoti_row_of(&model, "aoti_torch_cpu_") == NULL);
    CHECK(opdi_aoti_row_of(&model, "aoti_torch_cpu_no_such_thing") == NULL);
    for (int64_t i = 0; i < model.nrows; i++) { free(model.rows[i]); }
    free(model.rows);
}
/* A weight [5, 3] in blocks of 4 x 2, in oneDNN's layout. */
TEST(blocks) {
    opdi_aoti_blocks blocks;
    uint8_t bytes[772];
    float packed[32], plain[15];
    int32_t number;
    int64_t word;
    memset(bytes, 0, sizeof bytes);
    number = 2;
    memcpy(bytes + 4, &number, 4);
    memcpy(bytes + 312, &number, 4);
    memcpy(bytes + 416, &number, 4);
    word = 5; memcpy(bytes + 8, &word, 8);
    word = 3; memcpy(bytes + 16, &word, 8);
    word = 8; memcpy(bytes + 112, &word, 8);
    word = 4; memcpy(bytes + 120, &word, 8);
    word = 16; memcpy(bytes + 320, &word, 8);
    word = 8; memcpy(bytes + 328, &word, 8);
    word = 4; memcpy(bytes + 424, &word, 8);
    word = 2; memcpy(bytes + 432, &word, 8);
    word = 1; memcpy(bytes + 528, &word, 8);
    CHECK(opdi_aoti_read_blocks(bytes, 772, &blocks));
    CHECK(!opdi_aoti_read_blocks(bytes, 700, &blocks));
    for (int i = 0; i < 32; i++) { packed[i] = -1; }
    for (int i = 0; i < 5; i++) {
        for (int k = 0; k < 3; k++) { packed[i / 4 * 16 + k / 2 * 8 + i % 4 * 2 + k % 2] = (float)(10 * i + k); }
    }
    opdi_aoti_unpack(&blocks, (const char *)packed, (char *)plain, 4);
    for (int i = 0; i < 15; i++) { CHECK_NEAR(plain[i], 10 * (i / 3) + i % 3, 0); }
    bytes[424] = 0;
    CHECK(!opdi_aoti_read_blocks(bytes, 772, &blocks));
}

/* Where code from files is forbidden, neither models nor extensions are loaded. */
TEST(code_forbidden) {
    const char *const path = model_path("plain", "");
    int status = 1;
    (void)fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        check_failures = 0;
        opd_code_forbid();
        CHECK(!opd_aoti_load(path, NULL));
        CHECK_ERROR(OPD_ERROR_FORBIDDEN, "opd_aoti_load: machine code");
        CHECK_INT(opd_extension_load(path), -1);
        CHECK_ERROR(OPD_ERROR_FORBIDDEN, "opd_extension_load: machine code");
        (void)fflush(stdout);
        CHECK_CHILD_ENDS(check_failures ? 1 : 0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

#else

TEST(elsewhere) {
    opd_tensor *out[1];
    CHECK(opd_aoti_load("model.so", NULL) == NULL);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Linux");
    CHECK_INT(opd_aoti_run(NULL, opd_tensors_of(NULL, 0), out, 1), -1);
    CHECK_ERROR(OPD_ERROR_REGISTER, "Linux");
}

#endif

CHECK_MAIN()
