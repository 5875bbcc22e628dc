/* The dtypes that few operators compute with - uint16, uint32, uint64, complex32 and the floats of eight bits - against
   PyTorch (golden/make_stored.py): casts bit by bit, promotion, filling, printing, operators; then views, files,
   gradients, vmap, graphs, and that no table of dtypes is read beyond its end. */
#include "../opdispatch.h"
#include "check.h"

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
    x = opd_select(opd_stack_full(opd_tensors_of(list, 3), 1), 1, 1);
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
    else if (strpbrk(text, ".ein")) { number = opd_value_float(atof(text)); }
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
static int beyond;               /* calls that work here and not there */
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
        if (rc == 0) { beyond++; printf("works here: %s %s: %s\n", words[1], words[2], words[at]); return; }
        if (refused) { CHECK(strstr(opd_error_message(), "not implemented for '") != NULL); }
        if (strstr(words[at], "Promotion for")) { CHECK_STR(last_of(opd_error_message(), words[at] + 1), words[at] + 1); }
        if (refused && !strstr(opd_error_message(), "not implemented for '")) { printf("%s %s: %s\n", words[1], words[2], opd_error_message()); }
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
    beyond = 0;
    CHECK(each_line("op", op_line) > 500);
    CHECK_INT(beyond, 0);
}
CHECK_MAIN()
