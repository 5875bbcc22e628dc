/* Dtypes that few operators compute with (uint16, uint32, uint64, complex32 and the 8-bit floats), compared with
   PyTorch (golden/make_stored.py): casts bit by bit, promotion, filling, printing, operators.  Then views, files,
   gradients, vmap and graphs.  No table of dtypes is read past its end. */
#include "../cases.h"

#include <unistd.h>

static const opd_scalar_type dtypes[] = {
    OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64, OPD_FLOAT16, OPD_FLOAT32, OPD_FLOAT64, OPD_COMPLEX32,
    OPD_COMPLEX64, OPD_COMPLEX128, OPD_BOOL, OPD_BFLOAT16, OPD_FLOAT8_E5M2, OPD_FLOAT8_E4M3FN, OPD_FLOAT8_E5M2FNUZ,
    OPD_FLOAT8_E4M3FNUZ, OPD_UINT16, OPD_UINT32, OPD_UINT64, OPD_FLOAT8_E8M0FNU
};
static const opd_scalar_type stored[] = {
    OPD_UINT16, OPD_UINT32, OPD_UINT64, OPD_FLOAT8_E4M3FN, OPD_FLOAT8_E5M2, OPD_FLOAT8_E4M3FNUZ, OPD_FLOAT8_E5M2FNUZ,
    OPD_FLOAT8_E8M0FNU, OPD_COMPLEX32
};
enum { DTYPES = sizeof dtypes / sizeof *dtypes, STORED = sizeof stored / sizeof *stored, WORDS = 40 };

static opd_scalar_type dtype_named(const char *name) {
    int i;
    for (i = 0; i < DTYPES && strcmp(opd_dtype_name(dtypes[i]), name) != 0; i++) { }
    return i < DTYPES ? dtypes[i] : OPD_DTYPE_NONE;
}
/* The bytes that digits say, into out; how many. */
static size_t bytes_of(const char *digits, unsigned char *out) {
    size_t n = 0;
    unsigned byte;
    if (*digits == '-') { return 0; }
    for (; digits[0] && digits[1] && sscanf(digits, "%2x", &byte) == 1; digits += 2) { out[n++] = (unsigned char)byte; }
    return n;
}
static void hex_of(const void *data, size_t n, char *out) {
    size_t i;
    for (i = 0; i < n; i++) { sprintf(out + 2 * i, "%02x", ((const unsigned char *)data)[i]); }
    if (n == 0) { strcpy(out, "-"); }
}
static size_t part_size(opd_scalar_type dtype) {
    return opd_dtype_size(dtype) / (opd_dtype_is_complex(dtype) ? 2 : 1);
}
/* A tensor of these digits; sizes "2,3", "-" for none, NULL: as many as there are. */
static opd_tensor *tensor_of(opd_scalar_type dtype, const char *sizes, const char *digits) {
    static unsigned char raw[1 << 16];
    const size_t n = bytes_of(digits, raw);
    int64_t dims[8];
    int ndim = 0;
    if (!sizes) { dims[ndim++] = (int64_t)(n / opd_dtype_size(dtype)); }
    for (; sizes && *sizes && *sizes != '-'; sizes += strcspn(sizes, ","), sizes += *sizes == ',') { dims[ndim++] = atoll(sizes); }
    check_native(raw, n, part_size(dtype));
    return opd_tensor_from(raw, opd_ints_of(dims, ndim), dtype);
}
/* The digits of a tensor's elements in order. */
static const char *digits_of(opd_tensor *t) {
    static char out[1 << 17];
    static unsigned char raw[1 << 16];
    size_t n;
    t = opd_contiguous(t);
    if (!t) { return "failed"; }
    n = (size_t)opd_numel(t) * opd_dtype_size(opd_dtype(t));
    memcpy(raw, opd_data(t), n);
    check_native(raw, n, part_size(opd_dtype(t)));
    hex_of(raw, n, out);
    return out;
}

/* Calls one for every line that begins with kind, its words cut apart. */
static int each_line(const char *kind, void (*one)(char **words, int count)) {
    static char line[1 << 17];
    FILE *f = check_golden("stored.txt");
    int lines = 0;
    CHECK(f != NULL);
    while (f && fgets(line, sizeof line, f)) {
        char *words[WORDS], *at = line;
        int count = 0;
        line[strcspn(line, "\n")] = 0;
        for (; at && count < WORDS; at = strchr(at, '\t'), at = at ? (*at = 0, at + 1) : NULL) { words[count++] = at; }
        if (strcmp(words[0], kind) != 0) { continue; }
        OPD_SCOPE { one(words, count); }
        lines++;
    }
    if (f) { fclose(f); }
    return lines;
}

/* The end of a message, as long as the one expected: an operator's name may stand in front. */
static const char *last_of(const char *message, const char *want) {
    const size_t all = strlen(message), n = strlen(want);
    return all > n ? message + all - n : message;
}
/* As PyTorch's, but for the payload of a NaN. */
static bool same_element(opd_scalar_type dtype, const unsigned char *got, const unsigned char *want) {
    const size_t size = part_size(dtype);
    double x, y;
    if (memcmp(got, want, size) == 0) { return true; }
    if (opd_dtype_is_integral(dtype, true)) { return false; }
    OPD_SCOPED;
    const opd_scalar_type part = dtype == OPD_COMPLEX32 ? OPD_FLOAT16 : dtype == OPD_COMPLEX64 ? OPD_FLOAT32
        : dtype == OPD_COMPLEX128 ? OPD_FLOAT64 : dtype;
    x = opd_item_f64(opd_tensor_from((void *)(uintptr_t)got, opd_ints_of(NULL, 0), part));
    y = opd_item_f64(opd_tensor_from((void *)(uintptr_t)want, opd_ints_of(NULL, 0), part));
    return x != x && y != y;
}
static void compare(const char *what, opd_tensor *got, const char *want) {
    static unsigned char raw[1 << 16];
    const size_t n = bytes_of(want, raw);
    size_t i, wrong = 0, size;
    CHECK(got != NULL);
    if (!got) { return; }
    got = opd_contiguous(got);
    size = part_size(opd_dtype(got));
    check_native(raw, n, size);
    CHECK_INT((size_t)opd_numel(got) * opd_dtype_size(opd_dtype(got)), n);
    for (i = 0; i + size <= n; i += size) {
        const unsigned char *at = (const unsigned char *)opd_data(got) + i;
        char text[2][40];
        if (same_element(opd_dtype(got), at, raw + i)) { continue; }
        if (wrong++) { continue; }
        hex_of(at, size, text[0]);
        hex_of(raw + i, size, text[1]);
        printf("%s: element %d is %s, not %s\n", what, (int)(i / size), text[0], text[1]);
    }
    CHECK_INT(wrong, 0);
}

static void cast_line(char **words, int count) {
    const opd_scalar_type from = dtype_named(words[1]), to = dtype_named(words[2]);
    char what[100];
    opd_tensor *x, *y, *list[3];
    CHECK_INT(count, 5);
    snprintf(what, sizeof what, "%s to %s", words[1], words[2]);
    x = tensor_of(from, NULL, words[3]);
    compare(what, opd_to_dtype(x, to), words[4]);
    y = opd_new_empty(x, OPD_INTS(opd_numel(x), 2));          /* strided, both ways */
    y = opd_select(opd_to_dtype(y, to), 1, 1);
    CHECK(opd_copy_(y, x) != NULL);
    compare(what, y, words[4]);
    list[0] = list[1] = list[2] = x;
    x = opd_select(opd_stack(opd_tensors_of(list, 3), 1), 1, 1);
    compare(what, opd_to_dtype(x, to), words[4]);
    CHECK_OK();
}
TEST(casts_are_pytorchs) { CHECK_INT(each_line("cast", cast_line), 298); }

static void promote_line(char **words, int count) {
    const opd_scalar_type one = dtype_named(words[1]), two = dtype_named(words[2]);
    CHECK_INT(count, 4);
    CHECK(one != OPD_DTYPE_NONE && two != OPD_DTYPE_NONE);
    if (*words[3] != '!') {
        CHECK_STR(opd_dtype_name(opd_promote_types(one, two)), words[3]);
        CHECK_OK();
        return;
    }
    CHECK_INT(opd_promote_types(one, two), OPD_DTYPE_NONE);
    CHECK_STR(opd_error_message(), words[3] + 1);
    opd_error_clear();
}
TEST(promotion_is_pytorchs) { CHECK_INT(each_line("promote", promote_line), 297); }

static void fill_line(char **words, int count) {
    const opd_scalar_type dtype = dtype_named(words[1]);
    const char *text = words[2];
    double pair[2] = {0, 0};
    opd_value number;
    opd_tensor *got;
    CHECK_INT(count, 4);
    if (strchr(text, 'j')) {
        sscanf(text, "(%lf%lf", &pair[0], &pair[1]);
        number = opd_value_complex(pair);
    } else if (*text == 'T' || *text == 'F') { number = opd_value_bool(*text == 'T'); }
    else if (strpbrk(text, ".ein")) { number = opd_value_double(strtod(text, NULL)); }
    else { number = opd_value_int(atoll(text)); }
    got = opd_full(OPD_INTS(2), number, dtype);
    if (*words[3] == '!') {
        CHECK(!got);
        if (!got) { CHECK_STR(last_of(opd_error_message(), words[3] + 1), words[3] + 1); }
        else { printf("%s %s gives %s\n", words[1], text, digits_of(got)); }
        opd_error_clear();
        return;
    }
    if (!got) { printf("%s %s: %s\n", words[1], text, opd_error_message()); }
    compare(text, got, words[3]);
    opd_error_clear();
}
TEST(filling_is_pytorchs) { CHECK(each_line("fill", fill_line) > 400); }

static void print_line(char **words, int count) {
    char got[4096], *at;
    CHECK_INT(count, 5);
    opd_tensor *x = tensor_of(dtype_named(words[1]), words[2], words[3]);
    CHECK(opd_tensor_print(x, got, sizeof got) < sizeof got);
    for (at = got; *at; at++) { if (*at == '\n') { *at = '|'; } }
    CHECK_STR(got, words[4]);
    CHECK_OK();
}
TEST(printing_is_pytorchs) { CHECK(each_line("print", print_line) > 50); }

/* The arguments behind the tensors of a line: what make_stored.py calls the operator with. */
static int op_arguments(const char *name, opd_tensor **t, int n, opd_value *args) {
    static const int64_t one[] = {1}, pad[] = {1, 1}, twice[] = {2, 1}, three[] = {3, 2};
    static opd_tensor *indices[2];
    const opd_op *op = opd_find(name);
    int i, count = n;
    if (!op) { return -1; }
    for (i = 0; i < n; i++) { args[i] = opd_value_tensor(t[i]); }
    if (strcmp(name, "aten::cat") == 0 || strcmp(name, "aten::stack") == 0) {
        args[0] = opd_value_tensors(t, n);
        args[1] = opd_value_int(strcmp(name, "aten::stack") == 0);
        return 2;
    }
    if (strcmp(name, "aten::embedding") == 0) { return 2; }
    if (strcmp(name, "aten::gather") == 0 || strcmp(name, "aten::index_select") == 0) {
        args[2] = args[1];
        args[1] = opd_value_int(1);
        return 3;
    }
    if (strcmp(name, "aten::index.Tensor") == 0) {
        indices[0] = NULL;
        indices[1] = t[1];
        args[1] = opd_value_tensors(indices, 2);
        return 2;
    }
    if (strcmp(name, "aten::add.Scalar") == 0) { args[count++] = opd_value_double(1.5); }
    if (strcmp(name, "aten::mul.Scalar") == 0) { args[count++] = opd_value_double(2.5); }
    if (strcmp(name, "aten::where.ScalarOther") == 0) { args[count++] = opd_value_int(1); }
    if (strcmp(name, "aten::flip") == 0) { args[count++] = opd_value_ints(one, 1); }
    if (strcmp(name, "aten::roll") == 0) { args[count++] = opd_value_ints(one, 1); args[count++] = opd_value_ints(one, 1); }
    if (strcmp(name, "aten::repeat") == 0) { args[count++] = opd_value_ints(twice, 2); }
    if (strcmp(name, "aten::view") == 0) { args[count++] = opd_value_ints(three, 2); }
    if (strcmp(name, "aten::constant_pad_nd") == 0) { args[count++] = opd_value_ints(pad, 2); args[count++] = opd_value_int(1); }
    if (strcmp(name, "aten::masked_fill.Scalar") == 0 || strcmp(name, "aten::cumsum") == 0) { args[count++] = opd_value_int(1); }
    if (strcmp(name, "aten::select.int") == 0 || strcmp(name, "aten::slice.Tensor") == 0) {
        args[count++] = opd_value_int(1);
        args[count++] = opd_value_int(1);
    }
    return count;
}
static void op_line(char **words, int count) {
    char name[64];
    opd_value args[8], rets[8];
    opd_tensor *t[4];
    const int n = atoi(words[3]);
    int i, at = 4, nargs, rc;
    for (i = 0; i < n; i++, at += 3) { t[i] = tensor_of(dtype_named(words[at]), words[at + 1], words[at + 2]); }
    snprintf(name, sizeof name, "aten::%s", words[1]);
    nargs = op_arguments(name, t, n, args);
    CHECK(nargs > 0);
    rc = opd_call_all(opd_find(name), rets, args, nargs);
    if (*words[at] == '!') {
        const bool refused = strstr(words[at], "not implemented for") != NULL;
        CHECK(rc < 0);
        if (rc == 0) {
            printf("%s works with %s\n", words[1], words[2]);
            return;
        }
        if (refused) { CHECK(strstr(opd_error_message(), "not implemented for '") != NULL); }
        if (strstr(words[at], "Promotion for")) { CHECK_STR(last_of(opd_error_message(), words[at] + 1), words[at] + 1); }
        opd_error_clear();
        return;
    }
    if (rc) {
        printf("%s %s: %s\n", words[1], words[2], opd_error_message());
        opd_error_clear();
        CHECK(rc == 0);
        return;
    }
    for (i = 0; at < count; i++, at += 3) {
        const opd_tensor *got = rets[i].u.t;
        CHECK_STR(opd_dtype_name(opd_dtype(got)), words[at]);
        if (strcmp(opd_dtype_name(opd_dtype(got)), words[at]) == 0) { compare(name, rets[i].u.t, words[at + 2]); }
    }
    CHECK_OK();
}
TEST(operators_are_pytorchs) {
    CHECK(each_line("op", op_line) > 500);
}

/* Views, and operators that only move elements, keep all bits, as for integers of the same size. */
TEST(views_and_moves_keep_bits) {
    static const unsigned char raw[48] = {0x80, 0x7f, 0xff, 0x01, 0x00, 0x7c, 0xfc, 0x38, 0x55, 0xaa, 0x12, 0x9e,
                                          0x80, 0x80, 0x00, 0x00, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4};
    int i;
    for (i = 0; i < STORED; i++) {
        OPD_SCOPED;
        const size_t size = opd_dtype_size(stored[i]);
        const opd_scalar_type bits = size == 1 ? OPD_UINT8 : size == 2 ? OPD_INT16 : size == 4 ? OPD_INT32 : OPD_INT64;
        opd_tensor *x = opd_tensor_from((void *)(uintptr_t)raw, OPD_INTS(2, 3), stored[i]), *list[2], *row;
        opd_tensor *y = opd_tensor_from((void *)(uintptr_t)raw, OPD_INTS(2, 3), bits);
        char got[200];
        list[0] = x;
        list[1] = opd_view_dtype(y, stored[i]);
        CHECK_INT(opd_dtype(list[1]), stored[i]);
        CHECK(opd_data(list[1]) == opd_data(y));
        strcpy(got, digits_of(opd_cat(opd_tensors_of(list, 2), 1)));
        list[0] = list[1] = y;
        CHECK_STR(got, digits_of(opd_cat(opd_tensors_of(list, 2), 1)));
        strcpy(got, digits_of(opd_t(x)));
        CHECK_STR(got, digits_of(opd_t(y)));
        strcpy(got, digits_of(opd_select(x, 1, 1)));
        CHECK_STR(got, digits_of(opd_select(y, 1, 1)));
        strcpy(got, digits_of(opd_reshape(opd_t(x), OPD_INTS(3, 2))));
        CHECK_STR(got, digits_of(opd_reshape(opd_t(y), OPD_INTS(3, 2))));
        strcpy(got, digits_of(opd_clone(opd_t(x))));
        CHECK_STR(got, digits_of(opd_clone(opd_t(y))));
        strcpy(got, digits_of(opd_view_dtype(x, bits)));
        CHECK_STR(got, digits_of(y));
        row = opd_zeros_like(x);
        CHECK(opd_copy_(opd_select(row, 0, 1), opd_select(x, 0, 0)) != NULL);
        strcpy(got, digits_of(opd_select(row, 0, 1)));
        CHECK_STR(got, digits_of(opd_select(y, 0, 0)));
        CHECK_OK();
    }
}
TEST(complex32_has_parts) {
    OPD_SCOPED;
    static const double data[] = {1, 2, -3, 0.5};
    opd_tensor *x = opd_to_dtype(opd_tensor_from((void *)(uintptr_t)data, OPD_INTS(2), OPD_COMPLEX128), OPD_COMPLEX32);
    CHECK_INT(opd_dtype(opd_view_as_real(x)), OPD_FLOAT16);
    CHECK_INT(opd_dtype(opd_view_as_complex(opd_view_as_real(x))), OPD_COMPLEX32);
    CHECK_NEAR(opd_item_f64(opd_select(opd_imag(x), 0, 1)), 0.5, 0);
    CHECK_NEAR(opd_item_f64(opd_select(opd_imag(opd_clone(opd_conj_view(x))), 0, 0)), -2, 0);
    CHECK_NEAR(opd_item_f64(opd_select(opd_abs(x), 0, 1)), 3.041015625, 0);
    CHECK_OK();
}
TEST(uint64_above_int64) {
    OPD_SCOPED;
    opd_tensor *x = opd_full(OPD_INTS(1), opd_value_int(-1), OPD_UINT64);
    CHECK_NEAR(opd_item_f64(x), 18446744073709551616.0, 0);
    CHECK_INT(opd_item_i64(x), 0);
    CHECK(strstr(opd_error_message(), "value cannot be converted to int64 without overflow") != NULL);
    opd_error_clear();
    (void)opd_item(x);
    CHECK(strstr(opd_error_message(), "value cannot be converted to int64 without overflow") != NULL);
    opd_error_clear();
    CHECK_NEAR(opd_item_f64(opd_to_dtype(x, OPD_FLOAT32)), 18446744073709551616.0, 0);
    CHECK_INT(opd_item_i64(opd_to_dtype(opd_full(OPD_INTS(1), opd_value_int(7), OPD_UINT64), OPD_INT32)), 7);
    CHECK_OK();
}
/* Operators with a dtype argument that make tensors. */
TEST(factories_refuse_what_they_do_not_make) {
    int i;
    for (i = 0; i < STORED; i++) {
        OPD_SCOPED;
        CHECK_INT(opd_dtype(opd_zeros_like(opd_empty(OPD_INTS(2), stored[i]))), stored[i]);
        CHECK_INT(opd_dtype(opd_ones(OPD_INTS(2), stored[i])), stored[i]);
        CHECK_NEAR(opd_item_f64(opd_view_dtype(opd_select(opd_ones(OPD_INTS(2), stored[i]), 0, 0), stored[i])), 1, 0);
        CHECK_OK();
        CHECK(!opd_arange_full(opd_value_int(5), opd_value_int(stored[i]), OPD_NONE, OPD_NONE, OPD_NONE));
        CHECK(strstr(opd_error_message(), "\"arange_cpu\" not implemented for '") != NULL);
        opd_error_clear();
        CHECK(!opd_rand_full(OPD_INTS(5), opd_value_int(stored[i]), OPD_NONE, OPD_NONE, OPD_NONE));
        CHECK(strstr(opd_error_message(), "not implemented for '") != NULL);
        opd_error_clear();
    }
}

TEST(unsigned_numbers_are_drawn) {
    int i;
    for (i = 0; i < 3; i++) {
        OPD_SCOPED;
        opd_tensor *x = opd_randint_full(70, OPD_INTS(200), opd_value_int(stored[i]), OPD_NONE, OPD_NONE, OPD_NONE), *y;
        CHECK_INT(opd_dtype(x), stored[i]);
        y = opd_to_dtype(x, OPD_INT64);
        CHECK(opd_item_i64(opd_min(y)) >= 0 && opd_item_i64(opd_max(y)) < 70 && opd_item_i64(opd_max(y)) > 35);
        CHECK_OK();
        CHECK(!opd_randint_low_full(-1, 5, OPD_INTS(2), opd_value_int(stored[i]), OPD_NONE, OPD_NONE, OPD_NONE));
        CHECK(strstr(opd_error_message(), "is out of bounds for ") != NULL);
        opd_error_clear();
    }
}

static void file_line(char **words, int count) {
    static unsigned char raw[1 << 16];
    const size_t n = bytes_of(words[3], raw);
    CHECK_INT(count, 6);
    if (strcmp(words[1], "npy") == 0) {
        compare(words[1], opd_npy_parse(raw, n), words[5]);
        CHECK_OK();
        return;
    }
    opd_tensor_file *file = opd_tensor_file_parse(raw, n, NULL, NULL);
    opd_tensor *x = opd_tensor_file_get(file, "x");
    CHECK_STR(opd_dtype_name(opd_dtype(x)), words[2]);
    compare(words[1], x, words[5]);
    if (strcmp(words[1], "checkpoint") == 0) {
        CHECK_INT(opd_numel(opd_tensor_file_get(file, "y")), 2);
        CHECK(opd_data(opd_tensor_file_get(file, "z")) == opd_data(opd_select(x, 0, 1)));
    }
    opd_tensor_file_close(file);
    CHECK_OK();
}
TEST(files_of_pytorch_and_numpy_are_read) { CHECK_INT(each_line("file", file_line), 20); }

/* Written and read again; kind: 0 checkpoint, 1 safetensors, 2 npy. */
static void write_and_read(int kind, opd_tensor *x, const char *path) {
    static const char *const names[] = {"x"};
    const opd_value value = opd_value_tensor(x);
    char want[200];
    strcpy(want, digits_of(x));
    const int rc = kind == 0 ? opd_checkpoint_file_save(path, names, &value, 1)
        : kind == 1 ? opd_safetensors_save(path, names, opd_tensors_of(&x, 1), NULL) : opd_npy_save(path, x);
    const bool has = kind == 0 || (kind == 1 ? opd_dtype(x) != OPD_COMPLEX32 : opd_dtype_is_integral(opd_dtype(x), false));
    CHECK_INT(rc, has ? 0 : -1);
    if (rc < 0) {
        CHECK(strstr(opd_error_message(), opd_dtype_name(opd_dtype(x))) != NULL);
        opd_error_clear();
        return;
    }
    opd_tensor_file *file = kind == 2 ? NULL : opd_tensor_file_open(path);
    opd_tensor *y = kind == 2 ? opd_npy_load(path) : opd_tensor_file_get(file, "x");
    CHECK_INT(opd_dtype(y), opd_dtype(x));
    CHECK_STR(digits_of(y), want);
    opd_tensor_file_close(file);
    CHECK_OK();
}
TEST(files_are_written) {
    const char *tmp = getenv("RUN_TMP");
    char path[300];
    int i, kind;
    snprintf(path, sizeof path, "%s/stored_%d", tmp ? tmp : "/tmp", (int)getpid());
    for (i = 0; i < STORED; i++) {
        for (kind = 0; kind < 3; kind++) {
            OPD_SCOPED;
            static const double data[] = {1, 2, 3, 0.5, 100, 7};
            opd_tensor *x = opd_tensor_from((void *)(uintptr_t)data, OPD_INTS(3, 2), OPD_FLOAT64);
            write_and_read(kind, opd_select(opd_to_dtype(x, stored[i]), 1, 1), path);
            (void)unlink(path);
        }
    }
}
TEST(dlpack_takes_and_gives_them) {
    int i;
    for (i = 0; i < STORED; i++) {
        OPD_SCOPED;
        unsigned flags;
        opd_tensor *x = opd_full(OPD_INTS(2, 3), opd_value_int(3), stored[i]);
        opd_tensor *y = opd_dlpack_import(opd_dlpack_export(x, 0), &flags);
        CHECK_INT(opd_dtype(y), stored[i]);
        CHECK(opd_data(y) == opd_data(x));
        CHECK_OK();
    }
}

/* An opd_transform_fn: to the dtype of user and back. */
static int there_and_back(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)n;
    out[0] = opd_to_dtype(opd_to_dtype(in[0], *(const opd_scalar_type *)user), OPD_FLOAT32);
    return opd_ok() ? 1 : -1;
}
TEST(casts_have_gradients) {
    int i;
    for (i = 0; i < STORED; i++) {
        OPD_SCOPED;
        static const float data[] = {1, 2, 4, 0.5f};
        opd_tensor *x = opd_tensor_from((void *)(uintptr_t)data, OPD_INTS(4), OPD_FLOAT32), *y;
        opd_tensor_set_requires_grad(x, true);
        y = opd_to_dtype(x, stored[i]);
        CHECK_INT(opd_tensor_requires_grad(y), !opd_dtype_is_integral(stored[i], false));
        if (!opd_tensor_requires_grad(y)) { continue; }
        y = opd_to_dtype(y, stored[i] == OPD_COMPLEX32 ? OPD_COMPLEX64 : OPD_FLOAT32);
        y = stored[i] == OPD_COMPLEX32 ? opd_real(y) : y;
        opd_backward(opd_sum(opd_mul_Scalar(y, opd_value_double(2))));
        CHECK_INT(opd_dtype(opd_tensor_grad(x)), OPD_FLOAT32);
        CHECK_STR(digits_of(opd_tensor_grad(x)), "00000040000000400000004000000040");
        CHECK_OK();
    }
}
TEST(views_have_gradients) {
    OPD_SCOPED;
    opd_tensor *x = opd_ones(OPD_INTS(3, 2), OPD_FLOAT8_E4M3FN), *y;
    opd_tensor_set_requires_grad(x, true);
    y = opd_slice(opd_t(opd_select(opd_view(x, OPD_INTS(2, 3)), 0, 1)), 0, opd_value_int(1), OPD_NONE, 1);
    opd_backward(opd_sum(opd_mul_Scalar(opd_to_dtype(y, OPD_FLOAT32), opd_value_double(3))));
    CHECK_INT(opd_dtype(opd_tensor_grad(x)), OPD_FLOAT8_E4M3FN);
    CHECK_STR(digits_of(opd_tensor_grad(x)), "000000004444");
    CHECK(opd_unsqueeze_(opd_detach(x), 0) != NULL);
    CHECK_OK();
}
TEST(casts_in_vmap_graphs_and_fakes) {
    int i;
    for (i = 0; i < STORED; i++) {
        OPD_SCOPED;
        static const float data[] = {1, 2, 4, 0.5f, 1, 16};
        opd_tensor *x = opd_tensor_from((void *)(uintptr_t)data, OPD_INTS(3, 2), OPD_FLOAT32), *want, *got;
        char text[2000], digits[100];
        opd_scalar_type dtype = stored[i];
        CHECK_INT(there_and_back(&dtype, &x, 1, &want), 1);
        strcpy(digits, digits_of(want));
        CHECK_INT(opd_vmap(there_and_back, &dtype, &x, 1, NULL, &got, 1), 1);
        CHECK_STR(digits_of(got), digits);
        opd_graph *graph = opd_graph_trace(there_and_back, &dtype, &x, 1, NULL);
        CHECK(opd_graph_print(graph, text, sizeof text) > 0);
        CHECK(strstr(text, opd_dtype_cname(dtype)) != NULL);
        CHECK_INT(opd_graph_run(graph, &x, 1, &got, 1), 1);
        CHECK_STR(digits_of(got), digits);
        opd_graph *again = opd_graph_parse(text);
        CHECK_INT(opd_graph_run(again, &x, 1, &got, 1), 1);
        CHECK_STR(digits_of(got), digits);
        opd_graph_free(again);
        opd_graph_free(graph);
        OPD_FAKE_MODE {
            got = opd_to_dtype(opd_empty(OPD_INTS(3), OPD_FLOAT32), dtype);
            CHECK_INT(opd_dtype(got), dtype);
            CHECK_INT(opd_dtype(opd_eq(got, got)), OPD_BOOL);
            CHECK(dtype == OPD_COMPLEX32 ? opd_neg(got) != NULL : !opd_neg(got));
            opd_error_clear();
        }
        CHECK_OK();
    }
}

/* An operator of a program gets what it is called with. */
static int same_cpu(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    opd_tensor *out = opd_result(call, 0, opd_sizes(x), opd_ndim(x), opd_dtype(x));
    if (!opd_ok()) { return -1; }
    memcpy(opd_data(out), opd_data(x), (size_t)opd_numel(x) * opd_dtype_size(opd_dtype(x)));
    return opd_return_tensor(call, out);
}
OPD_LIBRARY(stored_dtypes, lib) {
    opd_op_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.schema = "same(Tensor x) -> Tensor";
    desc.cpu = same_cpu;
    opd_define(lib, &desc);
}
/* Calls an operator of two tensors (add.out: and 1) with one to write behind them. */
static opd_tensor *written(const char *name, opd_tensor *x, opd_tensor *y, opd_tensor *out) {
    opd_value args[4], rets[1];
    int n = 2;
    args[0] = opd_value_tensor(x);
    args[1] = opd_value_tensor(y);
    if (strcmp(name, "aten::add.out") == 0) { args[n++] = opd_value_int(1); }
    if (out) { args[n++] = opd_value_tensor(out); }
    return opd_call_all(opd_find(name), rets, args, n) ? NULL : rets[0].u.t;
}
TEST(programs_and_what_is_written) {
    OPD_SCOPED;
    static const float data[] = {1, 2, 3, 4};
    static const int64_t order[] = {1, 0};
    opd_tensor *f = opd_tensor_from((void *)(uintptr_t)data, OPD_INTS(2, 2), OPD_FLOAT32);
    opd_tensor *x = opd_to_dtype(f, OPD_FLOAT8_E4M3FN), *u = opd_to_dtype(f, OPD_UINT16), *y = opd_clone(x);
    opd_tensor *index = opd_tensor_from((void *)(uintptr_t)order, OPD_INTS(2), OPD_INT64);
    opd_value arg = opd_value_tensor(x), ret;
    CHECK_INT(opd_call_all(opd_find("stored_dtypes::same"), &ret, &arg, 1), 0);
    CHECK_STR(digits_of(ret.u.t), "38404448");
    CHECK(opd_index_put_(y, opd_tensors_of(&index, 1), x, false) == y);
    CHECK_STR(digits_of(y), "44483840");
    y = opd_empty(OPD_INTS(2, 2), OPD_FLOAT8_E5M2);
    CHECK(written("aten::add.out", f, f, y) == y);
    CHECK_STR(digits_of(y), "40444648");
    CHECK_OK();
    CHECK(!written("aten::add.out", f, f, u));
    CHECK(strstr(opd_error_message(), "result type float32 can't be cast to the desired output type uint16") != NULL);
    opd_error_clear();
    y = opd_clone(u);
    CHECK(written("aten::mul_.Tensor", y, u, NULL) == y);
    CHECK_NEAR(opd_item_f64(opd_select(opd_select(y, 0, 1), 0, 1)), 16, 0);
    CHECK(!written("aten::add_.Tensor", y, u, NULL));
    CHECK(strstr(opd_error_message(), "not implemented for 'uint16'") != NULL);
    opd_error_clear();
    CHECK_NEAR(opd_item_f64(opd_select(opd_select(y, 0, 1), 0, 1)), 16, 0);
    CHECK(written("aten::mul_.Tensor", f, u, NULL) == f);
    CHECK_NEAR(opd_item_f64(opd_select(opd_select(f, 0, 1), 0, 1)), 16, 0);
    CHECK_OK();
}

/* Calls an operator's cases with tensors of a stored dtype, or (asked) with that as its dtype, and with the same numbers
   in the dtype that holds it: what works gives the same. */
static bool given_as(op_case *c, const char *text, opd_scalar_type dtype, opd_scalar_type then, bool asked) {
    const int at = arg_named(c->op, "dtype");
    int i, k;
    bool any = false;
    c->dtype = OPD_FLOAT32;
    if (!case_read_next(c, &text) || (asked && at < 0)) { return false; }
    if (asked) {
        c->args[at] = opd_value_int(then == OPD_DTYPE_NONE ? dtype : then);
        return opd_ok();
    }
    for (i = 0; i < c->nargs; i++) {
        opd_value *v = &c->args[i];
        opd_tensor **list = v->tag == OPD_TAG_TENSOR ? &v->u.t : c->lists[i].tensors;
        for (k = 0; k < (v->tag == OPD_TAG_TENSORS ? v->n : v->tag == OPD_TAG_TENSOR); k++) {
            if (!list[k] || opd_dtype(list[k]) != OPD_FLOAT32) { continue; }
            list[k] = opd_to_dtype(opd_abs(list[k]), dtype);
            if (then != OPD_DTYPE_NONE) { list[k] = opd_to_dtype(list[k], then); }
            any = true;
        }
    }
    return opd_ok() && any;
}
static void as_wide(op_case *c, const char *text, opd_scalar_type dtype, bool asked) {
    const opd_scalar_type wide = dtype == OPD_COMPLEX32 ? OPD_COMPLEX64 : opd_dtype_is_floating(dtype) ? OPD_FLOAT32
        : OPD_INT64;
    opd_value rets[MOST_RESULTS];
    opd_tensor *got[MOST_RESULTS], *want[MOST_RESULTS];
    int i, n, m;
    OPD_SCOPED;
    snprintf(what, sizeof what, "    %s \"%.*s\" %s%s", opd_op_name(c->op), (int)strcspn(text, ";"), text,
             asked ? "as its dtype " : "", opd_dtype_name(dtype));
    if (!given_as(c, text, dtype, OPD_DTYPE_NONE, asked) || opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs)) {
        opd_error_clear();
        return;
    }
    n = results_of(c->op, rets, got);
    if (!given_as(c, text, dtype, wide, asked)) { opd_error_clear(); return; }
    if (!say(opd_call_all((opd_op *)(uintptr_t)c->op, rets, c->args, c->nargs) == 0, "works, but not where numbers are wider")) {
        opd_error_clear();
        return;
    }
    m = results_of(c->op, rets, want);
    (void)say(n == m, "another number of results");
    for (i = 0; i < n && i < m; i++) {
        if (!say(same_shape(got[i], want[i]), "another shape")) { continue; }
        if (opd_dtype(got[i]) == dtype) { want[i] = opd_to_dtype(want[i], dtype); }
        if (opd_dtype_is_complex(opd_dtype(got[i]))) { got[i] = opd_to_dtype(got[i], OPD_COMPLEX64); }
        got[i] = opd_to_dtype(got[i], OPD_FLOAT64);
        (void)say(opd_allclose_full(got[i], opd_to_dtype(want[i], OPD_FLOAT64), 1e-3, 1e-4, true), "other numbers");
        (void)say(opd_ok(), opd_error_message());
        opd_error_clear();
    }
}
static void test_operator(void *arg) {
    /* without values; read later; rounded on the way; of bytes */
    static const char *const rest[] = {"empty", "resize", "_neg_view", "matrix_power", "multi_dot", "chain_matmul", "view.dtype",
                                       "view_copy.dtype", NULL};
    static op_case c;
    const opd_op *op = (const opd_op *)arg;
    const char *text = opd_op_card(op)->cases;
    int i;
    CHECK_OR_RETURN(text != NULL);
    c.op = op;
    for (i = 0; rest[i]; i++) { if (strstr(opd_op_name(op), rest[i])) { return; } }
    for (; *text && !is_random(op); text += strcspn(text, ";")) {
        text += *text == ';';
        for (i = 0; i < STORED; i++) {
            as_wide(&c, text, stored[i], false);
            as_wide(&c, text, stored[i], true);
        }
    }
    CHECK_OK();
}
#define STORED_CALL(name, ...) ({ static opd_op *op_; OPD_CALL(OPD_OP(&op_, name), __VA_ARGS__); })
/* Operands are of one dtype before they are widened; numbers are elements, or take unsigned integers to floats. */
TEST(operands_yield_first) {
    const uint64_t large[4] = {UINT64_MAX, 3, (uint64_t)1 << 63, 5};
    const uint16_t few[2] = {1, 2};
    const int64_t none = 0;
    const opd_ints scalar = opd_ints_of(&none, 0);
    opd_tensor *u64 = opd_tensor_from(large, OPD_INTS(4), OPD_UINT64);
    opd_tensor *u16 = opd_tensor_from(few, OPD_INTS(2), OPD_UINT16);
    opd_tensor *minus = opd_full(scalar, OPD_V(-1), OPD_INT64), *got;
    CHECK_OR_RETURN((got = opd_maximum(u64, opd_full(scalar, OPD_V(5), OPD_INT64))) != NULL);
    for (int i = 0; i < 4; i++) {
        CHECK(((const uint64_t *)opd_data(got))[i] == (large[i] > 5 ? large[i] : 5));
    }
    CHECK_OR_RETURN((got = opd_maximum(u16, minus)) != NULL);
    CHECK(((const uint16_t *)opd_data(got))[0] == 65535);
    CHECK_OR_RETURN((got = opd_minimum(u16, minus)) != NULL);
    CHECK(((const uint16_t *)opd_data(got))[1] == 2);
    CHECK_OR_RETURN((got = opd_mul_Scalar(u64, OPD_V(2.0))) != NULL);
    CHECK(opd_dtype(got) == OPD_FLOAT32 && opd_data_f32(got)[0] > 3.6e19f);
    CHECK_NEAR(opd_item_f64(STORED_CALL("aten::sum", u64, OPD_FLOAT32)), 27670116110564327432.0, 1e13);
    CHECK_NEAR(opd_item_f64(opd_select(opd_eq_Scalar(u64, OPD_V(18446744073709551616.0)), 0, 0)), 1, 0);
    CHECK(opd_eq_Scalar(u16, OPD_V(65537)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "without overflow");
    CHECK(opd_clamp_max(u16, OPD_V(-1)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "without overflow");
    CHECK(STORED_CALL("aten::slice_scatter", u16, opd_ones(OPD_INTS(2), OPD_FLOAT32)) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "not implemented for 'uint16'");
    CHECK(STORED_CALL("aten::add.Scalar", u16, 1, 1.5) == NULL);
    CHECK_ERROR(OPD_ERROR_DTYPE, "not implemented for 'uint16'");
}
static void add_operators(void) { add_builtin_operators(test_operator, has_cases); }
CHECK_MAIN_ADD(add_operators)
