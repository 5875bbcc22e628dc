/* Files that torch.save writes: golden/checkpoints.txt, made by golden/make_checkpoints.py.  Each is read from memory and
   from a file, cut off everywhere, damaged everywhere, and without memory at each allocation. */
#include "../opdispatch.h"
#include "check.h"
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
        flat = opd_view_dtype(opd_contiguous(flat), opd_dtype(tensor) == OPD_COMPLEX64 ? OPD_FLOAT32 : OPD_FLOAT64);
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
static void check_entry(opd_tensor_file *file, int64_t i) {
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
        (void)snprintf(text, sizeof text, "entry '%s': this is no tensor", line);
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
    golden = check_golden_at(__FILE__, "checkpoints.txt");
    return golden != NULL;
}

TEST(what_torch_save_writes) {
    char name[100], path[] = "/tmp/opd_checkpoint_XXXXXX";
    int files = 0;
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
                    if (file) { check_entry(file, i); }
                    memcpy(line, was, sizeof line);
                    if (again) { check_entry(again, i); }
                }
                CHECK_INT(opd_tensor_file_count(file), i);
            }
            opd_tensor_file_close(file);
            opd_tensor_file_close(again);
        }
        free(bytes);
    }
    CHECK(files >= 50);
    fclose(golden);
    close(fd);
    remove(path);
}

/* Tensors that share a storage share it here; what they are over stays when the file is closed. */
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

/* A file that is cut off or damaged anywhere gives an error or other values, and nothing is lost. */
TEST(damage) {
    char name[100];
    if (!open_golden()) { return; }
    for (int k = 0; k < 4 && next_file(name); ) {
        while (strcmp(line, "end") != 0 && strncmp(line, "bad ", 4) != 0) { (void)next_line(); }
        if (strcmp(name, "training") == 0 || strcmp(name, "nested_old") == 0 || strcmp(name, "views_4") == 0) {
            unsigned char *copy = (unsigned char *)malloc(size);
            k++;
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
/* Every allocation of opening and reading fails once. */
TEST(without_memory) {
    char name[100];
    if (!open_golden()) { return; }
    while (next_file(name)) {
        while (strcmp(line, "end") != 0 && strncmp(line, "bad ", 4) != 0) { (void)next_line(); }
        if (strncmp(name, "training", 8) == 0) {
            CHECK(check_allocations_at(read_one, NULL, name, 400, false, __FILE__, __LINE__) > 20);
        }
        free(bytes);
    }
    fclose(golden);
}
CHECK_MAIN()
