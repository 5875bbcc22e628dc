/* Files of torch.save: golden/checkpoints.txt, made by golden/make_checkpoints.py.  Each file is read from memory
   and from disk, truncated everywhere, damaged everywhere, and with each allocation failing. */
#include "../../opdispatch.h"
#include "../check.h"
#include "../python.h"
#include <unistd.h>

static FILE *golden;
static char line[8192];
static unsigned char *bytes;
static size_t size;

static bool next_line(void) {
    if (!fgets(line, sizeof line, golden)) { return false; }
    line[strcspn(line, "\n")] = 0;
    return true;
}
/* Reads `file NAME BYTES` and the bytes; the next line is in line then.  False at the end. */
static bool next_file(char *name) {
    unsigned long count;
    if (!next_line() || sscanf(line, "file %99s %lu", name, &count) != 2) { return false; }
    size = 0;
    bytes = (unsigned char *)malloc(count);
    while (next_line() && size < count) {
        for (size_t i = 0; line[i]; i += 2) {
            unsigned byte;
            CHECK(sscanf(line + i, "%2x", &byte) == 1);
            bytes[size++] = (unsigned char)byte;
        }
    }
    CHECK(size == count);
    return true;
}
static void check_numbers(const char *path, opd_tensor *tensor, const char *numbers) {
    opd_tensor *flat = opd_reshape(tensor, OPD_INTS(-1));
    if (opd_dtype_is_complex(opd_dtype(tensor))) {
        flat = opd_reshape(opd_view_as_real(opd_resolve_neg(opd_resolve_conj(flat))), OPD_INTS(-1));
    }
    int64_t count = 0;
    for (const char *at = numbers; *at; count++) {
        char *end;
        const double want = strtod(at, &end), got = opd_item_f64(opd_select(flat, 0, count));
        if (!opd_ok() || got < want || got > want) {
            printf("%s: element %lld is %g, not %g\n", path, (long long)count, got, want);
            CHECK(!"another number");
            opd_error_clear();
            return;
        }
        at = *end == ',' ? end + 1 : end;
    }
    CHECK_INT(opd_numel(flat), count);
}
/* Compares one entry with its line: path|kind|value. */
static void compare_entry(opd_tensor_file *file, int64_t i) {
    char sizes[200], text[300], *kind = strchr(line, '|'), *value;
    opd_value got;
    *kind++ = 0;
    value = strchr(kind, '|');
    *value++ = 0;
    CHECK_STR(opd_tensor_file_name(file, i), line);
    CHECK_INT(opd_tensor_file_find(file, line), i);
    if (strcmp(kind, "strange") == 0) {
        CHECK(opd_tensor_file_value(file, line, &got) == -1);
        CHECK_ERROR(OPD_ERROR_FILE, value);
        CHECK(opd_tensor_file_at(file, i) == NULL);
        CHECK_ERROR(OPD_ERROR_FILE, value);
    } else if (opd_tensor_file_value(file, line, &got)) {
        printf("%s: %s\n", line, opd_error_message());
        CHECK_OK();
        opd_error_clear();
    } else if (strcmp(kind, "tensor") == 0) {
        CHECK_INT(got.tag, OPD_TAG_TENSOR);
        int n = snprintf(sizes, sizeof sizes, "%s [", opd_dtype_name(opd_dtype(got.u.t)));
        for (int d = 0; d < opd_ndim(got.u.t); d++) {
            n += snprintf(sizes + n, sizeof sizes - (size_t)n, "%s%lld", d ? "," : "", (long long)opd_sizes(got.u.t)[d]);
        }
        (void)snprintf(sizes + n, sizeof sizes - (size_t)n, "] ");
        if (strncmp(value, sizes, strlen(sizes)) != 0) { CHECK_STR(sizes, value); }
        CHECK(opd_tensor_file_at(file, i) != NULL);
        check_numbers(line, got.u.t, value + strlen(sizes));
    } else {
        const char *const kinds[] = {"none", "tensor", "int", "float", "bool", "complex", "text"};
        CHECK_STR(kinds[got.tag], kind);
        if (got.tag == OPD_TAG_INT || got.tag == OPD_TAG_BOOL) { CHECK_INT(got.u.i, strtoll(value, NULL, 10)); }
        if (got.tag == OPD_TAG_FLOAT) { const double want = strtod(value, NULL); CHECK(got.u.d >= want && got.u.d <= want); }
        if (got.tag == OPD_TAG_COMPLEX) {
            char *end;
            CHECK_NEAR(got.u.c[0], strtod(value, &end), 0);
            CHECK_NEAR(got.u.c[1], strtod(end + 1, NULL), 0);
        }
        if (got.tag == OPD_TAG_STR) { CHECK_STR(got.u.s, value); CHECK_INT(got.n, (long long)strlen(value)); }
        CHECK(opd_tensor_file_at(file, i) == NULL);
        (void)snprintf(text, sizeof text, "entry '%s': this is not a tensor", line);
        CHECK_ERROR(OPD_ERROR_FILE, text);
    }
}
/* Reads all of a file, whatever it is; the numbers of errors are not looked at. */
static void read_all(void *data, size_t length) {
    OPD_SCOPE {
        opd_tensor_file *file = opd_tensor_file_parse(data, length, NULL, NULL);
        for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
            opd_value value;
            if (opd_tensor_file_value(file, opd_tensor_file_name(file, i), &value) == 0 && value.tag == OPD_TAG_TENSOR) {
                (void)opd_clone(value.u.t);
            }
            opd_error_clear();
        }
        opd_error_clear();
        opd_tensor_file_close(file);
    }
}
static bool open_golden(void) {
    golden = check_golden("checkpoints.txt");
    return golden != NULL;
}

TEST(what_torch_save_writes) {
    char name[100], path[] = "/tmp/opd_checkpoint_XXXXXX";
    int files = 0, parameters = 0;
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    if (!open_golden()) { return; }
    while (next_file(name)) {
        files++;
        FILE *out = fopen(path, "wb");
        CHECK(out && fwrite(bytes, 1, size, out) == size);
        if (out) { fclose(out); }
        OPD_SCOPE {
            opd_tensor_file *file = opd_tensor_file_parse(bytes, size, NULL, NULL), *again = opd_tensor_file_open(path);
            if (strncmp(line, "bad ", 4) == 0) {
                CHECK(!file && !again);
                CHECK_ERROR(OPD_ERROR_FILE, line + 4);
            } else {
                int64_t i = 0;
                CHECK(file != NULL && again != NULL);
                for (; strcmp(line, "end") != 0; i++, (void)next_line()) {
                    char was[sizeof line];
                    memcpy(was, line, sizeof line);
                    if (file) { compare_entry(file, i); }
                    if (file && strncmp(name, "tied_parameters", 15) == 0) {     /* of five entries, three are Parameters */
                        CHECK_INT(opd_tensor_file_requires_grad(file, i), strcmp(line, "still") != 0 && strcmp(line, "other") != 0);
                        parameters += opd_tensor_file_requires_grad(file, i);
                    }
                    memcpy(line, was, sizeof line);
                    if (again) { compare_entry(again, i); }
                }
                CHECK_INT(opd_tensor_file_count(file), i);
            }
            opd_tensor_file_close(file);
            opd_tensor_file_close(again);
        }
        free(bytes);
    }
    CHECK(parameters > 0 && parameters % 3 == 0);
    CHECK(files >= 50);
    fclose(golden);
    close(fd);
    remove(path);
}

/* Tensors that share a storage in the file share memory.  This memory remains when the file is closed. */
TEST(storages_are_shared) {
    char name[100];
    if (!open_golden()) { return; }
    while (next_file(name)) {
        while (strcmp(line, "end") != 0 && strncmp(line, "bad ", 4) != 0) { (void)next_line(); }
        if (strncmp(name, "views", 5) == 0) {
            OPD_SCOPE {
                opd_tensor_file *file = opd_tensor_file_parse(bytes, size, NULL, NULL);
                opd_tensor *base = opd_tensor_file_get(file, "base"), *part = opd_tensor_file_get(file, "part");
                opd_tensor_file_close(file);
                CHECK((char *)opd_data_f32(part) == (char *)opd_data_f32(base) + 3 * sizeof(float));
                opd_fill_(part, OPD_V(-1));
                CHECK(opd_data_f32(base)[2] > 1 && opd_data_f32(base)[3] < 0 && opd_data_f32(base)[8] < 0);
                CHECK(opd_ok());
            }
        }
        free(bytes);
    }
    fclose(golden);
}

/* Names with the same elements of one storage become one tensor of a module.  A part of these elements, or a tensor
   that does not require grad, becomes another tensor. */
TEST(tied_weights_are_one_tensor) {
    char name[100], path[] = "/tmp/opd_checkpoint_XXXXXX";
    const int fd = mkstemp(path);
    int files = 0;
    CHECK(fd >= 0);
    if (!open_golden()) { return; }
    while (next_file(name)) {
        while (strcmp(line, "end") != 0 && strncmp(line, "bad ", 4) != 0) { (void)next_line(); }
        if (strncmp(name, "tied", 4) == 0) {
            FILE *out = fopen(path, "wb");
            CHECK(out && fwrite(bytes, 1, size, out) == size);
            if (out) { fclose(out); }
            files++;
            opd_module *module = opd_module_open(path, NULL);
            const bool parameters = strncmp(name, "tied_parameters", 15) == 0;
            CHECK_OK();
            CHECK(opd_module_get(module, "embed") == opd_module_get(module, "head"));
            CHECK(opd_tensor_requires_grad(opd_module_get(module, "embed")));
            if (parameters) {
                CHECK(opd_module_get(module, "embed") == opd_module_get(module, "again"));
                CHECK(opd_module_get(module, "still") == opd_module_get(module, "other"));
                CHECK(!opd_tensor_requires_grad(opd_module_get(module, "still")));
                CHECK_INT(opd_module_kind_at(module, opd_module_find(module, "still")), OPD_MODULE_BUFFER);
            } else {
                CHECK(opd_module_get(module, "embed") != opd_module_get(module, "part"));
                CHECK(opd_module_get(module, "embed") != opd_module_get(module, "flat"));
            }
            CHECK_INT(opd_module_parameters(module, NULL, NULL, 0), parameters ? 1 : 3);
            CHECK_INT(opd_module_numel(module, "*e*d*"), 6);
            opd_module_free(module);
        }
        free(bytes);
    }
    CHECK_INT(files, 6);
    fclose(golden);
    close(fd);
    remove(path);
}

/* A module ignores objects of other classes, unless they contain tensors: then loading fails, so that they are not
   missed.  Modules of torch.nn that were saved as a whole are read. */
TEST(modules_beside_other_classes) {
    char name[100], path[] = "/tmp/opd_checkpoint_XXXXXX";
    const int fd = mkstemp(path);
    int files = 0;
    CHECK(fd >= 0);
    if (!open_golden()) { return; }
    while (next_file(name)) {
        while (strcmp(line, "end") != 0 && strncmp(line, "bad ", 4) != 0) { (void)next_line(); }
        const bool settings = strncmp(name, "settings", 8) == 0, foreign = strncmp(name, "foreign", 7) == 0;
        const bool network = strncmp(name, "network", 7) == 0;
        if (settings || foreign || network || strncmp(name, "layer", 5) == 0) {
            FILE *out = fopen(path, "wb");
            CHECK(out && fwrite(bytes, 1, size, out) == size);
            if (out) { fclose(out); }
            files++;
            opd_module *module = opd_module_open(path, NULL);
            if (settings) {
                CHECK_INT(opd_module_count(module), 3);
                CHECK(opd_module_get(module, "model/w") && opd_module_get(module, "ema"));
                CHECK_OK();
            } else if (network) {
                CHECK_INT(opd_module_count(module), 2);
                CHECK(opd_module_get(module, "l/0.weight") && opd_module_get(module, "l/0.bias"));
                CHECK_OK();
            } else {
                CHECK(module == NULL);
                if (foreign) { CHECK_ERROR(OPD_ERROR_FILE, "it contains tensors: save its state_dict()"); }
                else { CHECK_ERROR(OPD_ERROR_NOT_FOUND, "has no tensors"); }
            }
            opd_module_free(module);
            module = foreign ? opd_module_open(path, "list/") : NULL;
            if (foreign) { CHECK_INT(opd_module_count(module), 1); }
            CHECK_OK();
            opd_module_free(module);
        }
        free(bytes);
    }
    CHECK_INT(files, 12);
    fclose(golden);
    close(fd);
    remove(path);
}

/* A file that is truncated or damaged anywhere gives an error or other values, and no memory is lost. */
TEST(damage) {
    char name[100];
    if (!open_golden()) { return; }
    while (next_file(name)) {
        while (strcmp(line, "end") != 0 && strncmp(line, "bad ", 4) != 0) { (void)next_line(); }
        if (strcmp(name, "training") == 0 || strcmp(name, "nested_old") == 0 || strcmp(name, "views_4") == 0 ||
            strcmp(name, "foreign") == 0) {
            unsigned char *copy = (unsigned char *)malloc(size);
            opd_log_set(NULL, NULL);
            for (size_t i = 0; i < size; i++) {
                const unsigned char others[] = {0, 255, (unsigned char)(bytes[i] ^ 1), (unsigned char)(bytes[i] + 1)};
                for (size_t j = 0; j < sizeof others; j++) {
                    memcpy(copy, bytes, size);
                    copy[i] = others[j];
                    read_all(copy, size);
                }
                memcpy(copy, bytes, i);
                read_all(copy, i);
            }
            free(copy);
        }
        free(bytes);
    }
    fclose(golden);
}
static int read_one(void *unused) {
    opd_tensor_file *file = opd_tensor_file_parse(bytes, size, NULL, NULL);
    int rc = file ? 0 : -1;
    (void)unused;
    for (int64_t i = 0; rc == 0 && i < opd_tensor_file_count(file); i++) {
        opd_value value;
        rc = opd_tensor_file_value(file, opd_tensor_file_name(file, i), &value);
    }
    opd_tensor_file_close(file);
    return rc;
}
/* The same of a file whose first entry is one that cannot be read. */
static int read_each(void *unused) {
    opd_tensor_file *file = opd_tensor_file_parse(bytes, size, NULL, NULL);
    opd_value value;
    int rc = file ? 0 : -1;
    if (file && strcmp(opd_tensor_file_name(file, 0), "args") != 0) {
        opd_tensor_file_close(file);
        return read_one(unused);
    }
    for (int64_t i = 1; rc == 0 && i < opd_tensor_file_count(file); i++) { rc = opd_tensor_file_value_at(file, i, &value); }
    opd_tensor_file_close(file);
    return rc;
}
/* Every allocation of opening and reading fails once. */
TEST(without_memory) {
    char name[100];
    if (!open_golden()) { return; }
    while (next_file(name)) {
        while (strcmp(line, "end") != 0 && strncmp(line, "bad ", 4) != 0) { (void)next_line(); }
        if (strncmp(name, "training", 8) == 0 || strncmp(name, "settings", 8) == 0) {
            CHECK(check_allocations_at(read_each, NULL, name, 400, false, __FILE__, __LINE__) > 20);
        }
        free(bytes);
    }
    fclose(golden);
}

//-- trainings of PyTorch that go on here --------------------------------------------------------------------------------

static opd_tensor *loss_of(const opd_module *net, opd_tensor *x) {
    x = opd_tanh(opd_linear(x, opd_module_get(net, "one.weight"), opd_module_get(net, "one.bias")));
    x = opd_tanh(opd_linear(x, opd_module_get(net, "two.weight"), opd_module_get(net, "two.bias")));
    return opd_sum(opd_square(x));
}
static opd_optimizer *optimizer_of(const char *name, const opd_module *net) {
    opd_optimizer *optimizer;
    if (strncmp(name, "go_on_SGD", 9) == 0) {
        opd_sgd_options options = opd_sgd_defaults();
        options.momentum = 0.5;
        return opd_module_sgd(net, NULL, &options);
    }
    if (strcmp(name, "go_on_Adam") == 0) { return opd_module_adam(net, NULL, NULL); }
    optimizer = opd_module_adamw(net, "two.*", NULL);
    opd_tensor *params[2];
    CHECK_INT(opd_module_parameters(net, "one.*", params, 2), 2);
    CHECK_INT(opd_optimizer_add_group(optimizer, params, 2), 1);
    return optimizer;
}
TEST(trainings_go_on) {
    char name[100];
    int trainings = 0;
    if (!open_golden()) { return; }
    while (next_file(name)) {
        while (strcmp(line, "end") != 0 && strncmp(line, "bad ", 4) != 0) { (void)next_line(); }
        if (strncmp(name, "go_on", 5) == 0) {
            OPD_SCOPE {
                opd_tensor_file *file = opd_tensor_file_parse(bytes, size, NULL, NULL);
                opd_module *net = opd_module_new();
                const char *const names[] = {"one.weight", "one.bias", "two.weight", "two.bias"};
                const int64_t sizes[][2] = {{4, 3}, {4, 0}, {2, 4}, {2, 0}};
                trainings++;
                for (int i = 0; i < 4; i++) {
                    opd_tensor *tensor = opd_zeros(opd_ints_of(sizes[i], 2 - i % 2), OPD_FLOAT32);
                    CHECK_INT(opd_module_add(net, names[i], opd_tensor_set_requires_grad(tensor, true), OPD_MODULE_PARAMETER), 0);
                }
                opd_optimizer *optimizer = optimizer_of(name, net);
                CHECK_INT(opd_training_load(file, net, optimizer), 0);
                CHECK_OK();
                for (int step = 0; step < 3; step++) {
                    opd_optimizer_zero_grad(optimizer);
                    CHECK_INT(opd_backward(loss_of(net, opd_tensor_file_get(file, "x"))), 0);
                    CHECK_INT(opd_optimizer_step(optimizer), 0);
                }
                for (int i = 0; i < 4; i++) {
                    char path[40];
                    (void)snprintf(path, sizeof path, "after/%s", names[i]);
                    opd_tensor *want = opd_tensor_file_get(file, path);
                    const double off = opd_item_f64(opd_max(opd_abs(opd_sub(opd_detach(opd_module_at(net, i)), want))));
                    if (off > 2e-6) { printf("%s %s\n", name, path); }
                    CHECK_NEAR(off, 0, 2e-6);
                }
                opd_optimizer_free(optimizer);
                opd_module_free(net);
                opd_tensor_file_close(file);
            }
        }
        free(bytes);
    }
    fclose(golden);
    CHECK_INT(trainings, 4);
}

//-- written here ------------------------------------------------------------------------------------------------------

static char folder[] = "/tmp/opd_checkpoints_XXXXXX";
static const char *in_folder(const char *name) {
    static char path[100];
    if (strstr(folder, "XXXXXX")) { CHECK(mkdtemp(folder) != NULL); }
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}
static void forget(const char *name) {
    (void)remove(in_folder(name));
    (void)rmdir(folder);
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
}
typedef struct paths { const char *names[40]; opd_value values[40]; int count; } paths;
static void put(paths *to, const char *name, opd_value value) {
    to->names[to->count] = name;
    to->values[to->count++] = value;
}
/* What checkpoints.py expects. */
static void put_all(paths *to) {
    static const opd_scalar_type dtypes[] = {OPD_UINT8, OPD_INT8, OPD_INT16, OPD_INT32, OPD_INT64, OPD_FLOAT16,
        OPD_BFLOAT16, OPD_FLOAT32, OPD_FLOAT64, OPD_COMPLEX64, OPD_COMPLEX128, OPD_BOOL};
    static const char *const types[] = {"types/uint8", "types/int8", "types/int16", "types/int32", "types/int64",
        "types/float16", "types/bfloat16", "types/float32", "types/float64", "types/complex64", "types/complex128",
        "types/bool"};
    static const int64_t ints[] = {1, -2, 300, (int64_t)1 << 40}, first[] = {0, 1, 1}, cube[] = {1, 2, 2, 2};
    static const double floats[] = {0.5, INFINITY};
    const int64_t two[] = {2, 3}, four[] = {4, 6}, none[] = {0, 3}, three = 3;
    opd_tensor *base = opd_arange(OPD_V(24), OPD_FLOAT32), *ones = opd_ones(opd_ints_of(two, 2), OPD_FLOAT32);
    opd_tensor *last = opd_empty_full(opd_ints_of(cube, 4), OPD_NONE, OPD_NONE, OPD_NONE, OPD_NONE,
                                      opd_value_int(2));
    to->count = 0;
    put(to, "model/0.weight", opd_value_tensor(opd_tensor_set_requires_grad(ones, true)));
    put(to, "model/0.bias", opd_value_tensor(opd_slice(base, 0, OPD_V(3), OPD_V(9), 2)));
    put(to, "optimizer/state/{0}/step", opd_value_int(4));
    put(to, "model/turned", opd_value_tensor(opd_t(opd_view(base, opd_ints_of(four, 2)))));
    put(to, "model/wide", opd_value_tensor(opd_expand(opd_select(base, 0, 5), opd_ints_of(two, 2))));
    put(to, "model/last", opd_value_tensor(opd_zero_(last)));
    put(to, "model/none", opd_value_tensor(opd_zeros(opd_ints_of(none, 2), OPD_FLOAT32)));
    put(to, "optimizer/state/{-3}/x", opd_value_double(0.25));
    put(to, "optimizer/param_groups/[0]/betas/(0)", opd_value_double(0.9));
    put(to, "optimizer/param_groups/[0]/betas/(1)", opd_value_double(0.999));
    put(to, "optimizer/param_groups/[0]/params/[]", opd_value_none());
    put(to, "optimizer/param_groups/[1]/lr", opd_value_double(-1e300));
    put(to, "epoch", opd_value_int(-7));
    put(to, "name", opd_value_str("h\xc3\xa9llo"));
    put(to, "flag", opd_value_bool(true));
    put(to, "nothing", opd_value_none());
    put(to, "low", opd_value_int(INT64_MIN));
    put(to, "numbers/[0]", opd_value_ints(ints, 4));
    put(to, "numbers/[1]", opd_value_doubles(floats, 2));
    put(to, "empty/{}", opd_value_none());
    put(to, "part", opd_value_tensor(opd_view_dtype(opd_slice(opd_arange(OPD_V(10), OPD_UINT8), 0, OPD_V(0), OPD_V(8), 1),
                                                    OPD_INT32)));
    put(to, "bits", opd_value_tensor(opd_view_dtype(opd_slice(base, 0, OPD_V(0), OPD_V(4), 1), OPD_INT32)));
    for (int i = 0; i < 12; i++) {
        put(to, types[i], opd_value_tensor(opd_to_dtype(opd_tensor_from(first, opd_ints_of(&three, 1), OPD_INT64), dtypes[i])));
    }
}
TEST(what_is_written_is_read) {
    paths all;
    OPD_SCOPE {
        put_all(&all);
        CHECK_INT(opd_checkpoint_file_save(in_folder("values.pt"), all.names, all.values, all.count), 0);
        opd_tensor_file *file = opd_tensor_file_open(in_folder("values.pt"));
        opd_value value;
        CHECK_INT(opd_tensor_file_count(file), all.count - 2 + 3 + 1);   /* without empty ones, lists by item */
        CHECK_STR(opd_tensor_file_name(file, 6), "optimizer/state/0/step");
        for (int i = 0; i < all.count; i++) {
            if (strpbrk(all.names[i], "[{(")) { continue; }
            CHECK_INT(opd_tensor_file_value(file, all.names[i], &value), 0);
            CHECK_INT(value.tag, all.values[i].tag);
            if (value.tag != OPD_TAG_TENSOR) { continue; }
            const opd_tensor *one = value.u.t, *other = all.values[i].u.t;
            CHECK(opd_dtype(one) == opd_dtype(other) && opd_ndim(one) == opd_ndim(other));
            for (int d = 0; d < opd_ndim(one); d++) {
                CHECK(opd_sizes(one)[d] == opd_sizes(other)[d] && opd_strides(one)[d] == opd_strides(other)[d]);
            }
            CHECK(opd_numel(one) == 0 || opd_equal(value.u.t, all.values[i].u.t) ||
                  opd_dtype_is_complex(opd_dtype(one)));
            opd_error_clear();
        }
        CHECK(opd_data(opd_tensor_file_get(file, "bits")) == opd_data(opd_select(opd_t(opd_tensor_file_get(file, "model/turned")), 0, 0)));
        CHECK_INT(opd_tensor_file_value(file, "numbers/0/3", &value), 0);
        CHECK(value.tag == OPD_TAG_INT && value.u.i == (int64_t)1 << 40);
        CHECK_INT(opd_tensor_file_value(file, "numbers/1/1", &value), 0);
        CHECK(value.tag == OPD_TAG_FLOAT && isinf(value.u.d));
        CHECK(!opd_tensor_file_get(file, "turned"));
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "has no tensor 'turned'; did you mean 'model/turned'");
        CHECK_INT(opd_tensor_file_value(file, "optimizer/states/0/step", &value), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "has no entry 'optimizer/states/0/step'; did you mean 'optimizer/state/0/step'");
        CHECK_INT(opd_tensor_file_value(file, "nothing like it", &value), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "; opd_tensor_file_name returns the names that are there");
        opd_tensor_file_close(file);
        value = opd_value_tensor(opd_ones(opd_ints_of(NULL, 0), OPD_INT64));
        const char *whole = "";
        CHECK_INT(opd_checkpoint_file_save(in_folder("values.pt"), &whole, &value, 1), 0);
        file = opd_tensor_file_open(in_folder("values.pt"));
        CHECK_INT(opd_item_i64(opd_tensor_file_get(file, "")), 1);
        opd_tensor_file_close(file);
        CHECK_INT(opd_checkpoint_file_save(in_folder("values.pt"), NULL, NULL, 0), 0);
        file = opd_tensor_file_open(in_folder("values.pt"));
        CHECK(file && opd_tensor_file_count(file) == 0);
        opd_tensor_file_close(file);
    }
    forget("values.pt");
}
TEST(what_pytorch_says_of_it) {
    char said[1000] = "", arguments[200];
    paths all;
    OPD_SCOPE {
        put_all(&all);
        CHECK_INT(opd_checkpoint_file_save(in_folder("values.pt"), all.names, all.values, all.count), 0);
    }
    (void)snprintf(arguments, sizeof arguments, "values '%s'", in_folder("values.pt"));
    const int status = python("checkpoints.py", "torch", arguments, said, sizeof said);
    forget("values.pt");
    if (status == 77) { SKIP_WITHOUT_PYTHON("torch"); }
    if (status) { printf("%s\n", said); }
    CHECK_INT(status, 0);
    CHECK(strstr(said, "checked: 1 files") != NULL);
}
TEST(what_cannot_be_written) {
    static const struct { const char *first, *second, *text; } bad[] = {
        {"a", "a", "two values 'a'"}, {"a/b", "a", "two values 'a'"},
        {"a", "a/b", "goes through a value"}, {"a/b", "a/[0]", "another kind of collection"},
        {"a/[1]", "b", "names item 1, but the next item is 0"}, {"a/[0]", "a/[0]", "the path 'a/[0]'"},
        {"a/{-}", "b", "brackets without a number"}, {"a/{}", "b", "means an empty collection"},
        {"a/{}/c", "b", "means an empty collection"}, {"", "b", "goes through a value"},
        {"a/{1}", "a/{01}", "two values '{"}, {"b\xff", "c", "is not UTF-8"}, {"a", NULL, "a path is NULL"}};
    opd_value values[2] = {opd_value_int(1), opd_value_int(2)};
    OPD_SCOPE {
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            const char *names[2] = {bad[i].first, bad[i].second};
            CHECK_INT(opd_checkpoint_file_save(in_folder("values.pt"), names, values, 2), -1);
            CHECK_ERROR(OPD_ERROR_FILE, bad[i].text);
        }
        char deep[400] = "x";
        const char *names[2] = {"a", deep};
        for (int i = 0; i < 100; i++) { (void)strcat(deep, "/x"); }
        CHECK_INT(opd_checkpoint_file_save(in_folder("values.pt"), names, values, 2), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "more than 100 parts");
        values[0] = opd_value_tensor(opd_empty_full(opd_ints_of(NULL, 0), OPD_NONE, OPD_NONE, opd_value_device(opd_device_make(OPD_META, -1)),
                                                    OPD_NONE, OPD_NONE));
        CHECK_INT(opd_checkpoint_file_save(in_folder("values.pt"), names, values, 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "no data");
        CHECK_INT(opd_checkpoint_file_save(NULL, names, values, 1), -1);
        CHECK_ERROR(OPD_ERROR_ARGUMENT, "the path is NULL");
        CHECK_INT(opd_checkpoint_file_save("/nowhere/at all", names, values + 1, 1), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "cannot be written");
    }
    CHECK(fopen(in_folder("values.pt"), "rb") == NULL);
    forget("values.pt");
}
/* After torch.serialization.set_crc32_options(False), PyTorch writes zeros as checksums. */
TEST(files_without_sums_are_read) {
    static uint8_t bytes[4096];
    const char *const name = "x";
    OPD_SCOPE {
        const opd_value value = opd_value_tensor(opd_arange(OPD_V(5), OPD_FLOAT32));
        CHECK_INT(opd_checkpoint_file_save(in_folder("values.pt"), &name, &value, 1), 0);
        FILE *from = fopen(in_folder("values.pt"), "rb");
        const size_t size = from ? fread(bytes, 1, sizeof bytes, from) : 0;
        if (from) { (void)fclose(from); }
        CHECK_OR_RETURN(size > 100 && size < sizeof bytes);
        for (int other = 1; other >= 0; other--) {
            for (size_t i = 0; i + 20 < size; i++) {
                if (memcmp(bytes + i, "PK\3\4", 4) == 0) { memset(bytes + i + 14, other, 4); }
                if (memcmp(bytes + i, "PK\1\2", 4) == 0) { memset(bytes + i + 16, other, 4); }
            }
            FILE *to = fopen(in_folder("values.pt"), "wb");
            CHECK_OR_RETURN(to && fwrite(bytes, 1, size, to) == size);
            (void)fclose(to);
            opd_tensor_file *file = opd_tensor_file_open(in_folder("values.pt"));
            if (other) {
                CHECK(file == NULL);
                CHECK_ERROR(OPD_ERROR_FILE, "Bad CRC-32");
            } else {
                CHECK_OR_RETURN(file != NULL);
                CHECK(opd_item_f64(opd_select(opd_tensor_file_get(file, "x"), 0, 3)) == 3);
                CHECK_OK();
            }
            opd_tensor_file_close(file);
        }
    }
    forget("values.pt");
}
static int write_one(void *arg) {
    paths *all = (paths *)arg;
    put_all(all);
    return opd_ok() ? opd_checkpoint_file_save(in_folder("values.pt"), all->names, all->values, all->count) : -1;
}
TEST(writing_without_memory) {
    paths all;
    CHECK(check_allocations_at(write_one, &all, "saving", 400, true, __FILE__, __LINE__) > 20);
    forget("values.pt");
}
CHECK_MAIN()
