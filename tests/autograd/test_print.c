/* The text of dtypes, devices and tensors equals PyTorch's (golden/make_print.py). */
#include "../../opdispatch.h"
#include "../check.h"

static const opd_scalar_type dtypes[] = {
    OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64, OPD_FLOAT16, OPD_FLOAT32, OPD_FLOAT64, OPD_COMPLEX64,
    OPD_COMPLEX128, OPD_BOOL, OPD_BFLOAT16
};

TEST(dtype_table) {
    static const char *const names[] = {"uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64",
                                        "complex64", "complex128", "bool", "bfloat16"};
    static const char *const cnames[] = {"Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double",
                                         "ComplexFloat", "ComplexDouble", "Bool", "BFloat16"};
    static const int sizes[] = {1, 1, 2, 4, 8, 2, 4, 8, 8, 16, 1, 2};
    int i;
    for (i = 0; i < 12; i++) {
        CHECK_STR(opd_dtype_name(dtypes[i]), names[i]);
        CHECK_STR(opd_dtype_cname(dtypes[i]), cnames[i]);
        CHECK_INT(opd_dtype_size(dtypes[i]), sizes[i]);
        CHECK_INT(opd_dtype_is_integral(dtypes[i], false), i < 5);
        CHECK_INT(opd_dtype_is_integral(dtypes[i], true), i < 5 || i == 10);
        CHECK_INT(opd_dtype_is_floating(dtypes[i]), (i >= 5 && i < 8) || i == 11);
        CHECK_INT(opd_dtype_is_complex(dtypes[i]), i == 8 || i == 9);
    }
    CHECK_STR(opd_dtype_name(OPD_DTYPE_NONE), "?");
    CHECK_STR(opd_dtype_cname((opd_scalar_type)12), "?");
    CHECK_INT(opd_dtype_size((opd_scalar_type)14), 0);
    CHECK_STR(opd_dtype_name((opd_scalar_type)1000), "?");
    CHECK(opd_ok());
}

TEST(promotion_is_pytorchs) {
    FILE *f = check_golden("promote.txt");
    int a, b, type, cast, n = 0;
    CHECK(f != NULL);
    if (!f) { return; }
    while (fscanf(f, "%d %d %d %d", &a, &b, &type, &cast) == 4) {
        CHECK_INT(opd_promote_types((opd_scalar_type)a, (opd_scalar_type)b), type);
        CHECK_INT(opd_can_cast((opd_scalar_type)a, (opd_scalar_type)b), cast);
        n++;
    }
    fclose(f);
    CHECK_INT(n, 144);
    CHECK(opd_ok());
    CHECK_INT(opd_promote_types(OPD_FLOAT32, (opd_scalar_type)13), OPD_DTYPE_NONE);
    CHECK_INT(opd_error_code(), OPD_ERROR_DTYPE);
    opd_error_clear();
    CHECK(!opd_can_cast(OPD_DTYPE_NONE, OPD_INT32) && !opd_can_cast(OPD_INT32, OPD_DTYPE_NONE));
}

TEST(devices_are_pytorchs) {
    FILE *f = check_golden("devices.txt");
    char line[256], out[64];
    CHECK(f != NULL);
    if (!f) { return; }
    while (fgets(line, sizeof(line), f)) {
        char *want = strchr(line, '|');
        opd_device d = opd_device_make(OPD_META, 77);
        line[strcspn(line, "\n")] = 0;
        CHECK(want != NULL);
        if (!want) { break; }
        *want++ = 0;
        if (*want == '!') {
            CHECK_INT(opd_device_parse(line, &d), -1);
            CHECK_STR(opd_error_message(), want + 1);
            CHECK(d.type == OPD_META && d.index == 77);
            opd_error_clear();
        } else {
            CHECK_INT(opd_device_parse(line, &d), 0);
            CHECK_INT(opd_device_print(d, out, sizeof out), strlen(want));
            CHECK_STR(out, want);
        }
    }
    fclose(f);
    CHECK(opd_ok());
}

TEST(devices_unknown) {
    opd_device d;
    char small[5];
    CHECK_INT(opd_device_parse("foo", &d), -1);
    CHECK_STR(opd_error_message(), "Expected one of cpu, cuda, hip, xla, mps, ipu, xpu, hpu, ve, lazy, mtia, "
              "privateuseone, privateusetwo, privateusethree, meta device type at start of device string: foo "
              "(opd_backend_register gives a custom device its name)");
    opd_error_clear();
    CHECK_INT(opd_device_parse("", &d), -1);
    CHECK_STR(opd_error_message(), "Device string must not be empty");
    opd_error_clear();
    CHECK_INT(opd_device_parse(NULL, &d), -1);
    opd_error_clear();
    CHECK_INT(opd_device_parse("cuda:128", &d), -1);
    opd_error_clear();
    CHECK_INT(opd_device_print(opd_device_make(OPD_CUDA, 3), small, sizeof small), strlen("cuda:3"));
    CHECK_STR(small, "cuda");
    d.type = 99;
    d.index = -1;
    CHECK_INT(opd_device_print(d, small, sizeof small), 1);
    CHECK_STR(small, "?");
}

/* One case of print.txt. */
typedef struct print_case {
    int dtype, ndim, grad, lines;
    int64_t sizes[64], strides[64], offset, elements;
    char *data, device[16];
} print_case;

static int64_t read_int(FILE *f) {
    long long v = 0;
    CHECK(fscanf(f, "%lld", &v) == 1);
    return v;
}

static int hex_digit(int c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/* The storage: `bytes` bytes, the pattern over and over. */
static char *read_storage(FILE *f, size_t bytes) {
    char *data = (char *)calloc(bytes + 16, 1);
    size_t n = 0, i;
    int c = fgetc(f), high;
    while (c == ' ') { c = fgetc(f); }
    if (c == '-') { return data; }
    while ((high = hex_digit(c)) >= 0) {
        char byte = (char)(high * 16 + hex_digit(fgetc(f)));
        if (n < bytes) { data[n] = byte; }
        n++;
        c = fgetc(f);
    }
    for (i = n; i < bytes && n > 0; i++) { data[i] = data[i - n]; }
    return data;
}

static bool read_case(FILE *f, print_case *c) {
    char word[8];
    int i;
    if (fscanf(f, "%7s", word) != 1) { return false; }
    CHECK_STR(word, "case");
    c->dtype = (int)read_int(f);
    c->ndim = (int)read_int(f);
    for (i = 0; i < c->ndim; i++) { c->sizes[i] = read_int(f); }
    for (i = 0; i < c->ndim; i++) { c->strides[i] = read_int(f); }
    c->offset = read_int(f);
    c->elements = read_int(f);
    c->data = read_storage(f, (size_t)c->elements * opd_dtype_size((opd_scalar_type)c->dtype));
    check_native(c->data, (size_t)c->elements * opd_dtype_size((opd_scalar_type)c->dtype),
                 opd_dtype_size((opd_scalar_type)c->dtype) >> opd_dtype_is_complex((opd_scalar_type)c->dtype));
    CHECK(fscanf(f, "%15s", c->device) == 1);
    c->grad = (int)read_int(f);
    c->lines = (int)read_int(f);
    CHECK(fgetc(f) == '\n');
    return true;
}

static void read_text(FILE *f, int lines, char *text, size_t cap) {
    size_t n = 0;
    int c;
    while (lines > 0 && (c = fgetc(f)) != EOF) {
        if (c == '\n') { lines--; }
        if (n + 1 < cap) { text[n++] = (char)c; }
    }
    text[n > 0 ? n - 1 : 0] = 0;
}

static opd_tensor *make_case(print_case *c) {
    opd_scalar_type dtype = (opd_scalar_type)c->dtype;
    opd_ints sizes = opd_ints_of(c->sizes, c->ndim);
    opd_tensor *t;
    if (strcmp(c->device, "meta") == 0) { return opd_tensor_new_on(sizes, dtype, opd_device_make(OPD_META, -1)); }
    t = opd_tensor_wrap(c->data + c->offset * (int64_t)opd_dtype_size(dtype), sizes, c->strides, dtype, NULL, NULL);
    if (c->grad > 0) { t = opd_tensor_set_requires_grad(t, true); }
    return c->grad == 2 ? opd_mul(t, opd_tensor_wrapped_number(opd_value_double(1))) : t;
}

TEST(text_is_pytorchs) {
    static char want[200000], got[200000];
    FILE *f = check_golden("print.txt");
    print_case c;
    int n = 0;
    CHECK(f != NULL);
    if (!f) { return; }
    while (read_case(f, &c)) {
        opd_scope scope = opd_scope_open();
        opd_tensor *t = make_case(&c);
        size_t length = opd_tensor_print(t, got, sizeof(got));
        read_text(f, c.lines, want, sizeof(want));
        CHECK_STR(got, want);
        CHECK_INT(length, strlen(want));
        opd_scope_close(&scope);
        free(c.data);
        n++;
    }
    fclose(f);
    CHECK(n > 1400);
    CHECK(opd_ok());
}

TEST(text_is_cut) {
    static const float data[] = {1.5f, -2, 3.25f};
    const int64_t sizes[] = {3};
    opd_scope scope = opd_scope_open();
    opd_tensor *t = opd_tensor_from(data, opd_ints_of(sizes, 1), OPD_FLOAT32);
    const char *text = "tensor([ 1.5000, -2.0000,  3.2500])";
    char buf[64];
    size_t cap;
    for (cap = 1; cap < sizeof(buf); cap++) {
        char want[64];
        memset(buf, 'x', sizeof(buf));
        CHECK_INT(opd_tensor_print(t, buf, cap), strlen(text));
        snprintf(want, cap, "%s", text);
        CHECK_STR(buf, want);
        CHECK(strlen(text) < cap || buf[cap - 1] == 0);
        CHECK(cap == sizeof(buf) - 1 || buf[cap] == 'x');
    }
    CHECK_INT(opd_tensor_print(t, NULL, 0), strlen(text));
    CHECK_INT(opd_tensor_print(NULL, buf, sizeof(buf)), 4);
    CHECK_STR(buf, "None");
    opd_scope_close(&scope);
}

CHECK_MAIN()
