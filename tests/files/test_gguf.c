/* GGUF files: golden/gguf has models and vocabularies of some kilobytes, and damaged files with verdicts.
   golden/gguf.txt says what the package gguf reads from them (golden/make_gguf.py). */
#include "../check.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

//-- helpers ----------------------------------------------------------------------------------------------------------

static const char *const models[] = {"gpt2_BF16.gguf", "llama_Q4_0.gguf", "llama_Q4_K_M.gguf", "qwen2_Q8_0.gguf",
                                     "vocab_llama-bpe.gguf"};
#define MODELS ((int)(sizeof models / sizeof *models))

static const char *in_golden(const char *name) {
    static char path[2][1200];
    static int k;
    char below[300];
    k = !k;
    (void)snprintf(below, sizeof below, "golden/gguf/%s", name);
    (void)snprintf(path[k], sizeof path[k], "%s", check_path(below));
    return path[k];
}
static const char *in_folder(const char *name) {
    static char folder[300], path[4][600];
    static int k;
    const char *tmp = getenv("TMPDIR");
    if (!folder[0]) {
        (void)snprintf(folder, sizeof folder, "%s/opd_gguf_XXXXXX", tmp && *tmp ? tmp : "/tmp");
        CHECK(mkdtemp(folder) != NULL);
    }
    if (!name) {
        CHECK(rmdir(folder) == 0);
        folder[0] = 0;
        return NULL;
    }
    k = (k + 1) % 4;
    (void)snprintf(path[k], sizeof path[k], "%s/%s", folder, name);
    return path[k];
}
/* Returns the bytes of a file in memory of exactly this size, so that sanitizers find each byte read behind them. */
static unsigned char *bytes_of(const char *path, size_t *size) {
    FILE *const file = fopen(path, "rb");
    *size = 0;
    CHECK(file != NULL);
    if (!file) { return NULL; }
    CHECK(fseek(file, 0, SEEK_END) == 0);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *const data = (unsigned char *)malloc(*size ? *size : 1);
    CHECK(data && fread(data, 1, *size, file) == *size);
    fclose(file);
    return data;
}
static bool same_bytes(const char *path, const char *other) {
    size_t size, others;
    unsigned char *const data = bytes_of(path, &size), *const second = bytes_of(other, &others);
    const bool same = data && second && size == others && memcmp(data, second, size) == 0;
    free(data);
    free(second);
    return same;
}
/* The hash of golden/gguf.txt. */
static uint64_t hashed(uint64_t hash, const void *data, size_t size) {
    const unsigned char *const bytes = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++) { hash = (hash ^ bytes[i]) * UINT64_C(1099511628211); }
    return hash;
}
static const uint64_t first_hash = UINT64_C(14695981039346656037);
static uint64_t hashed_number(uint64_t hash, double number) {
    uint64_t bits;
    unsigned char bytes[8];
    memcpy(&bits, &number, 8);
    for (int i = 0; i < 8; i++) { bytes[i] = (unsigned char)(bits >> 8 * i & 255); }
    return hashed(hash, bytes, 8);
}
static uint64_t key_hash(const opd_tensor_file *file, const char *key) {
    const int64_t count = opd_tensor_file_metadata_count(file, key), n = count < 0 ? 1 : count;
    const char *const type = opd_tensor_file_metadata_type(file, key);
    uint64_t hash = first_hash;
    for (int64_t i = 0; type && i < n; i++) {
        size_t length;
        double number = 0;
        if (strcmp(type, "str") == 0) {
            const char *const text = opd_tensor_file_metadata_text(file, key, i, &length);
            if (text) { hash = hashed(hash, text, length + 1); }
        } else {
            CHECK_INT(opd_tensor_file_metadata_number(file, key, i, &number), 0);
            hash = hashed_number(hash, number);
        }
    }
    return hash;
}
static uint64_t tensor_hash(opd_tensor *tensor) {
    uint64_t hash = first_hash;
    int64_t part;
    if (opd_dtype_size(opd_dtype(tensor)) == 0) {
        const int64_t block = opd_dtype_block(opd_dtype(tensor), &part);
        return hashed(hash, opd_data(tensor), (size_t)(opd_numel(tensor) / block * part));
    }
    const double *const numbers = (const double *)opd_data(opd_to_dtype(tensor, OPD_FLOAT64));
    for (int64_t i = 0; numbers && i < opd_numel(tensor); i++) { hash = hashed_number(hash, numbers[i]); }
    return hash;
}
/* A file in memory that is written piece by piece. */
static unsigned char made[4096];
static size_t made_size;
static void put(uint64_t number, int bytes) {
    for (; bytes; bytes--, number >>= 8) { made[made_size++] = (unsigned char)(number & 255); }
}
static void put_text(const char *text) {
    put(strlen(text), 8);
    memcpy(made + made_size, text, strlen(text));
    made_size += strlen(text);
}
static void begin_file(uint64_t tensors, uint64_t keys) {
    made_size = 0;
    memcpy(made, "GGUF\3\0\0\0", 8);
    made_size = 8;
    put(tensors, 8);
    put(keys, 8);
}
static void put_tensor(const char *name, uint64_t type, int64_t size, uint64_t offset) {
    put_text(name);
    put(1, 4);
    put((uint64_t)size, 8);
    put(type, 4);
    put(offset, 8);
}
static void pad_file(size_t alignment) {
    while (made_size % alignment) { put(0, 1); }
}
static opd_tensor_file *open_made(void) { return opd_tensor_file_parse(made, made_size, NULL, NULL); }
/* Opens the file that was made, which must be refused with a message that contains `part`. */
static void check_refused(const char *part) {
    CHECK(open_made() == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, part);
}

//-- what is in a file ------------------------------------------------------------------------------------------------

static void check_line(const opd_tensor_file *file, const char *line) {
    char name[200], type[40];
    long long count = 0;
    unsigned long long hash = 0;
    int end = 0;
    if (sscanf(line, "key %199s %39s %lld %llx", name, type, &count, &hash) == 4) {
        CHECK_STR(opd_tensor_file_metadata_type(file, name), type);
        CHECK_INT(opd_tensor_file_metadata_count(file, name), count);
        CHECK(key_hash(file, name) == hash);
    } else if (sscanf(line, "tensor %199s %39s %llx%n", name, type, &hash, &end) == 3) {
        OPD_SCOPE {
            opd_tensor *const tensor = opd_tensor_file_get(file, name);
            CHECK(tensor != NULL);
            CHECK_STR(tensor ? opd_dtype_name(opd_dtype(tensor)) : "", type);
            for (int i = 0; tensor && i < opd_ndim(tensor); i++) {
                int more = 0;
                CHECK(sscanf(line + end, "%lld%n", &count, &more) == 1);
                CHECK_INT(opd_size(tensor, i), count);
                end += more;
            }
            CHECK(tensor && tensor_hash(tensor) == hash);
        }
    } else {
        CHECK(line[0] == 'f');
    }
    CHECK_OK();
}
TEST(contents_are_those_that_another_reader_finds) {
    FILE *const list = check_golden("gguf.txt");
    char line[500];
    opd_tensor_file *file = NULL;
    int64_t keys = 0, tensors = 0, files = 0;
    CHECK_OR_RETURN(list);
    while (fgets(line, sizeof line, list)) {
        line[strcspn(line, "\r\n")] = 0;
        if (strncmp(line, "file ", 5) == 0) {
            CHECK(!file || (!opd_tensor_file_metadata_key(file, keys) && opd_tensor_file_count(file) == tensors));
            opd_tensor_file_close(file);
            CHECK_INT(opd_file_kind_of(in_golden(line + 5)), OPD_FILE_GGUF);
            file = opd_tensor_file_open(in_golden(line + 5));
            keys = tensors = 0;
            files++;
            continue;
        }
        check_line(file, line);
        /* and in the file's order */
        const bool key = line[0] == 'k';
        const char *const name = key ? opd_tensor_file_metadata_key(file, keys++)
            : opd_tensor_file_name(file, tensors++);
        const char *const at = line + (key ? 4 : 7);
        CHECK(name && strncmp(name, at, strlen(name)) == 0 && at[strlen(name)] == ' ');
    }
    CHECK_INT(files, MODELS);
    opd_tensor_file_close(file);
    fclose(list);
}
TEST(values_of_all_types) {
    opd_value value;
    double number;
    size_t length;
    begin_file(0, 15);
    put_text("a8"); put(0, 4); put(255, 1);
    put_text("b8"); put(1, 4); put(0x80, 1);
    put_text("a16"); put(2, 4); put(0xffff, 2);
    put_text("b16"); put(3, 4); put(0x8000, 2);
    put_text("a32"); put(4, 4); put(0xffffffff, 4);
    put_text("b32"); put(5, 4); put(0x80000000, 4);
    put_text("f"); put(6, 4); put(0x3fc00000, 4);
    put_text("yes"); put(7, 4); put(1, 1);
    put_text("text"); put(8, 4); put_text("gr\xc3\xbc\xc3\x9f");
    put_text("a64"); put(10, 4); put(UINT64_MAX, 8);
    put_text("b64"); put(11, 4); put((uint64_t)INT64_MIN, 8);
    put_text("d"); put(12, 4); put(UINT64_C(0x3ff8000000000000), 8);
    put_text("none"); put(9, 4); put(8, 4); put(0, 8);
    put_text("bools"); put(9, 4); put(7, 4); put(3, 8); put(0x010001, 3);
    put_text("texts"); put(9, 4); put(8, 4); put(2, 8); put(3, 8); put(0x620061, 3); put_text("");
    opd_tensor_file *const file = open_made();
    CHECK_OR_RETURN(file);
    static const struct { const char *key; int64_t value; } ints[] = {
        {"a8", 255}, {"b8", -128}, {"a16", 65535}, {"b16", -32768}, {"a32", UINT32_MAX}, {"b32", INT32_MIN},
        {"a64", -1}, {"b64", INT64_MIN}};
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) {
        CHECK_INT(opd_tensor_file_metadata_value(file, ints[i].key, &value), 0);
        CHECK(value.tag == OPD_TAG_INT && value.u.i == ints[i].value);
        CHECK_INT(opd_tensor_file_metadata_count(file, ints[i].key), -1);
        CHECK(!opd_tensor_file_metadata(file, ints[i].key));
    }
    CHECK(opd_tensor_file_metadata_number(file, "a64", 0, &number) == 0 && number == 18446744073709551616.0);
    CHECK(opd_tensor_file_metadata_value(file, "f", &value) == 0 && value.tag == OPD_TAG_FLOAT && value.u.d == 1.5);
    CHECK(opd_tensor_file_metadata_value(file, "d", &value) == 0 && value.tag == OPD_TAG_FLOAT && value.u.d == 1.5);
    CHECK(opd_tensor_file_metadata_value(file, "yes", &value) == 0 && value.tag == OPD_TAG_BOOL && value.u.i == 1);
    CHECK_INT(opd_tensor_file_metadata_value(file, "text", &value), 0);
    CHECK_STR(value.tag == OPD_TAG_STR ? value.u.s : "", "gr\xc3\xbc\xc3\x9f");
    CHECK_STR(opd_tensor_file_metadata(file, "text"), "gr\xc3\xbc\xc3\x9f");
    CHECK(opd_tensor_file_metadata_value(file, "none", &value) == 0 && value.tag == OPD_TAG_LIST && value.n == 0);
    CHECK_INT(opd_tensor_file_metadata_count(file, "none"), 0);
    CHECK_INT(opd_tensor_file_metadata_value(file, "bools", &value), 0);
    CHECK(value.tag == OPD_TAG_BOOLS && value.n == 3 && value.u.bools[0] && !value.u.bools[1] && value.u.bools[2]);
    CHECK_INT(opd_tensor_file_metadata_count(file, "bools"), 3);
    CHECK(opd_tensor_file_metadata_number(file, "bools", 2, &number) == 0 && number == 1);
    const char *const text = opd_tensor_file_metadata_text(file, "texts", 0, &length);
    CHECK(text && length == 3 && memcmp(text, "a\0b", 4) == 0);
    CHECK_STR(opd_tensor_file_metadata_text(file, "texts", 1, NULL), "");
    CHECK_OK();
    CHECK_INT(opd_tensor_file_metadata_value(file, "texts", &value), -1);
    CHECK_ERROR(OPD_ERROR_DTYPE, "has a zero byte inside a string");
    CHECK(!opd_tensor_file_metadata_text(file, "texts", 2, NULL));
    CHECK_ERROR(OPD_ERROR_INDEX, "no element 2: it has 2");
    CHECK(!opd_tensor_file_metadata_text(file, "a8", 0, NULL));
    CHECK_ERROR(OPD_ERROR_DTYPE, "is not a string");
    CHECK_INT(opd_tensor_file_metadata_number(file, "text", 0, &number), -1);
    CHECK_ERROR(OPD_ERROR_DTYPE, "is not a number");
    CHECK_INT(opd_tensor_file_metadata_value(file, "boools", &value), -1);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no key 'boools'; did you mean 'bools'");
    CHECK(!opd_tensor_file_metadata_type(file, "boools") && !opd_tensor_file_metadata(file, "boools"));
    CHECK_INT(opd_tensor_file_metadata_count(file, "boools"), -1);
    CHECK_OK();
    opd_tensor_file_close(file);
}
TEST(metadata_of_safetensors_has_strings) {
    const char *const names[] = {"w"}, *const metadata[] = {"format", "pt", NULL}, *const path = in_folder("a");
    opd_value value;
    double number;
    OPD_SCOPE {
        CHECK_INT(opd_safetensors_save(path, names, OPD_TENSORS(opd_ones(OPD_INTS(2), OPD_FLOAT32)), metadata), 0);
        opd_tensor_file *const file = opd_tensor_file_open(path);
        CHECK(opd_tensor_file_metadata_value(file, "format", &value) == 0 && value.tag == OPD_TAG_STR);
        CHECK_STR(value.u.s, "pt");
        CHECK_STR(opd_tensor_file_metadata_type(file, "format"), "str");
        CHECK_STR(opd_tensor_file_metadata_text(file, "format", 0, NULL), "pt");
        CHECK_INT(opd_tensor_file_metadata_count(file, "format"), -1);
        CHECK_INT(opd_tensor_file_metadata_number(file, "format", 0, &number), -1);
        CHECK_ERROR(OPD_ERROR_DTYPE, "is not a number");
        CHECK_INT(opd_tensor_file_metadata_value(file, "shape", &value), -1);
        CHECK_ERROR(OPD_ERROR_NOT_FOUND, "no key 'shape'");
        opd_tensor_file_close(file);
    }
    CHECK(remove(path) == 0);
    (void)in_folder(NULL);
}
/* 150,000 tokens: each is found in the same time. */
TEST(long_arrays_are_read_by_index) {
    enum { TOKENS = 150000 };
    opd_value *const tokens = (opd_value *)malloc(TOKENS * sizeof *tokens);
    char (*const texts)[12] = (char (*)[12])malloc(TOKENS * sizeof *texts);
    const char *const path = in_folder("tokens.gguf"), *const keys[] = {"tokens"};
    size_t length;
    CHECK_OR_RETURN(tokens && texts);
    for (int i = 0; i < TOKENS; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "t%d", i);
        tokens[i] = opd_value_str(texts[i]);
    }
    const opd_value value = opd_value_list(tokens, TOKENS);
    CHECK_INT(opd_gguf_save(path, NULL, opd_tensors_of(NULL, 0), keys, &value, 1), 0);
    opd_tensor_file *const file = opd_tensor_file_open(path);
    CHECK_INT(opd_tensor_file_metadata_count(file, "tokens"), TOKENS);
    int wrong = 0;
    for (int i = TOKENS - 1; i >= 0; i--) {
        const char *const text = opd_tensor_file_metadata_text(file, "tokens", i, &length);
        wrong += !text || strcmp(text, texts[i]) != 0 || length != strlen(texts[i]);
    }
    CHECK_INT(wrong, 0);
    CHECK_OK();
    opd_tensor_file_close(file);
    free(tokens);
    free(texts);
    CHECK(remove(path) == 0);
    (void)in_folder(NULL);
}

//-- damaged files ----------------------------------------------------------------------------------------------------

/* Reads everything of a file that was accepted. */
static void walk(const opd_tensor_file *file) {
    const char *key;
    opd_value value;
    for (int64_t i = 0; (key = opd_tensor_file_metadata_key(file, i)) != NULL; i++) {
        (void)key_hash(file, key);
        if (opd_tensor_file_metadata_value(file, key, &value)) { opd_error_clear(); }
    }
    for (int64_t i = 0; i < opd_tensor_file_count(file); i++) {
        OPD_SCOPE {
            CHECK_INT(opd_tensor_file_find(file, opd_tensor_file_name(file, i)), i);
            opd_tensor *const tensor = opd_tensor_file_at(file, i);
            CHECK(tensor != NULL);
            if (tensor) { (void)tensor_hash(tensor); }
        }
    }
    CHECK_OK();
}
/* Opens damaged bytes, which must be read or refused with the place of the damage.  Returns true if they were read. */
static bool open_damaged(unsigned char *data, size_t size) {
    opd_tensor_file *const file = opd_tensor_file_parse(data, size, NULL, NULL);
    if (!file) {
        CHECK_ERROR(OPD_ERROR_FILE, ", byte ");
        return false;
    }
    walk(file);
    opd_tensor_file_close(file);
    return true;
}
TEST(damaged_files_end_as_llama_cpp_says) {
    FILE *const list = check_golden("gguf/malformed/verdicts.json");
    char line[200], name[100], verdict[20], below[130];
    int count = 0;
    CHECK_OR_RETURN(list);
    while (fgets(line, sizeof line, list)) {
        if (sscanf(line, " \"%99[^\"]\" : \"%19[^\"]\"", name, verdict) != 2) { continue; }
        (void)snprintf(below, sizeof below, "malformed/%s.gguf", name);
        const char *const path = in_golden(below);
        opd_tensor_file *const file = opd_tensor_file_open(path);
        const bool read = file != NULL, ok = strcmp(verdict, "ok") == 0;
        if (!read) { CHECK_ERROR(OPD_ERROR_FILE, name); }
        if (strcmp(verdict, "either") != 0 && read != ok) { printf("%s: %d\n", name, read); }
        CHECK(strcmp(verdict, "either") == 0 || read == ok);
        if (file) { walk(file); }
        opd_tensor_file_close(file);
        CHECK_INT(opd_file_kind_of(path), read ? OPD_FILE_GGUF : OPD_FILE_NONE);
        opd_error_clear();
        count++;
    }
    CHECK_INT(count, 38);
    fclose(list);
}
TEST(a_file_cut_anywhere_is_refused) {
    static const char *const files[] = {"malformed/good.gguf", "vocab_llama-bpe.gguf"};
    for (int f = 0; f < 2; f++) {
        size_t size;
        unsigned char *const all = bytes_of(in_golden(files[f]), &size);
        CHECK_OR_RETURN(all);
        int read = 0;
        for (size_t end = 0; end < size; end++) {
            unsigned char *const part = (unsigned char *)malloc(end ? end : 1);
            CHECK_OR_RETURN(part);
            memcpy(part, all, end);
            read += open_damaged(part, end);
            free(part);
        }
        CHECK_INT(read, 0);
        CHECK(open_damaged(all, size));
        free(all);
    }
}
TEST(each_bit_of_a_header_may_be_wrong) {
    static const char *const files[] = {"malformed/good.gguf", "vocab_llama-bpe.gguf"};
    for (int f = 0; f < 2; f++) {
        size_t size;
        unsigned char *const data = bytes_of(in_golden(files[f]), &size);
        int read = 0, refused = 0;
        CHECK_OR_RETURN(data);
        for (size_t bit = 0; bit < 8 * size; bit++) {
            data[bit / 8] ^= (unsigned char)(1 << bit % 8);
            if (open_damaged(data, size)) { read++; } else { refused++; }
            data[bit / 8] ^= (unsigned char)(1 << bit % 8);
        }
        CHECK(read > 0 && refused > 100);
        free(data);
    }
}
TEST(a_wrong_letter_of_the_magic_is_told) {
    size_t size;
    const char *const path = in_folder("wrong.gguf");
    unsigned char *const data = bytes_of(in_golden("malformed/good.gguf"), &size);
    CHECK_OR_RETURN(data);
    for (int i = 0; i < 4; i++) {
        data[i] ^= 4;
        FILE *const file = fopen(path, "wb");
        CHECK_OR_RETURN(file);
        CHECK(fwrite(data, 1, size, file) == size);
        fclose(file);
        data[i] ^= 4;
        CHECK_INT(opd_file_kind_of(path), OPD_FILE_NONE);
        CHECK_ERROR(OPD_ERROR_FILE, "nearly right for a GGUF file");
    }
    free(data);
    CHECK(remove(path) == 0);
    (void)in_folder(NULL);
}
TEST(errors_name_key_or_tensor_and_byte) {
    begin_file(0, 1);
    made[4] = 1;
    check_refused("memory, byte 4: this GGUF file has version 1: versions 2 and 3 can be read");
    begin_file(0, 2);
    put_text("a"); put(4, 4); put(1, 4);
    put_text("a"); put(4, 4); put(1, 4);
    check_refused("byte 41: the metadata has the key 'a' twice");
    begin_file(1, 0);
    put_text("w"); put(2, 4); put(UINT64_C(1) << 40, 8); put(UINT64_C(1) << 40, 8); put(0, 4); put(0, 8);
    check_refused("entry 'w', byte 53: the sizes are too large for any memory");
    begin_file(2, 0);                              /* the second overlaps the first */
    put_tensor("v", 0, 16, 0);
    put_tensor("w", 0, 16, 32);
    pad_file(32);
    for (int i = 0; i < 32; i++) { put(0, 4); }
    check_refused("entry 'w', byte 82: its data begins at 32 of all data, but should begin at 64");
    begin_file(1, 0);
    put_tensor("0123456789012345678901234567890123456789012345678901234567890123", 0, 0, 0);
    check_refused("byte 24: the name of a tensor has 64 bytes, but may have at most 63");
    begin_file(1, 0);
    put_tensor("\xff", 0, 0, 0);
    check_refused("the name of a tensor is not UTF-8");
    begin_file(1, 1);
    put_text("general.alignment"); put(4, 4); put(UINT64_C(1) << 31, 4);
    put_tensor("w", 0, 1, 0);
    put(0, 4);
    check_refused("entry 'w', byte 57: its data ends at byte 2147483652, but the file already at byte");
    begin_file(0, 1);
    put_text("split.count"); put(2, 4); put(3, 2);
    check_refused("split.count is 3, but the key split.no is missing");
    begin_file(0, 2);
    put_text("split.no"); put(3, 4); put(0, 2);
    put_text("split.count"); put(2, 4); put(3, 2);
    check_refused("this is the first of 3 files of a model: open it by its path");
    begin_file(0, 2);
    put_text("split.count"); put(2, 4); put(3, 2);
    put_text("split.no"); put(2, 4); put(1, 2);
    check_refused("this is part 2 of a model in 3 files: open the first");
}
/* llama.cpp reads a tensor without dimensions as one number. */
TEST(a_tensor_may_have_no_dimensions) {
    begin_file(1, 0);
    put_text("w"); put(0, 4); put(0, 4); put(0, 8);
    pad_file(32);
    put(0x3fc00000, 4);
    OPD_SCOPE {
        opd_tensor_file *const file = open_made();
        opd_tensor *const number = opd_tensor_file_get(file, "w");
        CHECK(number && opd_ndim(number) == 0 && opd_item_f64(number) == 1.5);
        opd_tensor_file_close(file);
    }
    CHECK_OK();
}
/* An alignment of 1 gives data that kernels cannot read in place: it is copied. */
TEST(unaligned_data_is_copied) {
    static const float numbers[] = {1.5f, -2, 3, 4};
    begin_file(2, 1);
    put_text("general.alignment"); put(4, 4); put(1, 4);
    put_tensor("bytes", 24, 1, 0);
    put_tensor("floats", 0, 4, 1);
    while (made_size % 2 == 0) {                   /* the name decides where the data begins */
        made_size = 0;
        begin_file(2, 1);
        put_text("general.alignment"); put(4, 4); put(1, 4);
        put_tensor("byte", 24, 1, 0);
        put_tensor("floats", 0, 4, 1);
    }
    put(7, 1);
    for (int i = 0; i < 4; i++) {
        uint32_t bits;
        memcpy(&bits, &numbers[i], 4);
        put(bits, 4);
    }
    OPD_SCOPE {
        opd_tensor_file *const file = open_made();
        CHECK(file != NULL);
        opd_tensor *const floats = opd_tensor_file_get(file, "floats"), *const byte = opd_tensor_file_at(file, 0);
        CHECK(floats && (uintptr_t)opd_data(floats) % sizeof(float) == 0);
        for (int i = 0; floats && i < 4; i++) { CHECK(opd_data_f32(floats)[i] == numbers[i]); }
        CHECK(byte && opd_item_i64(byte) == 7);
        opd_tensor_file_close(file);
    }
    CHECK_OK();
}

//-- writing ----------------------------------------------------------------------------------------------------------

/* Writes all that a file holds, with the types of its values, to `path`. */
static int save_again(const opd_tensor_file *file, const char *path) {
    static char texts[64][100];
    const char *keys[64], *names[64];
    opd_value values[64];
    opd_tensor *tensors[64];
    int64_t count = 0, n = opd_tensor_file_count(file);
    if (n > 64) { return -1; }
    for (; count < 64 && opd_tensor_file_metadata_key(file, count); count++) {
        const char *const key = opd_tensor_file_metadata_key(file, count);
        (void)snprintf(texts[count], sizeof texts[count], "%.80s:%s", key, opd_tensor_file_metadata_type(file, key));
        keys[count] = texts[count];
        if (opd_tensor_file_metadata_value(file, key, &values[count])) { return -1; }
    }
    for (int64_t i = 0; i < n; i++) {
        names[i] = opd_tensor_file_name(file, i);
        if ((tensors[i] = opd_tensor_file_at(file, i)) == NULL) { return -1; }
    }
    return opd_gguf_save(path, names, opd_tensors_of(tensors, n), keys, values, count);
}
TEST(a_file_that_is_written_again_is_the_same) {
    for (int m = 0; m < MODELS; m++) {
        const char *const path = in_folder("again.gguf");
        OPD_SCOPE {
            opd_tensor_file *const file = opd_tensor_file_open(in_golden(models[m]));
            CHECK_INT(save_again(file, path), 0);
            CHECK_OK();
            opd_tensor_file_close(file);
            CHECK(same_bytes(path, in_golden(models[m])));
        }
        CHECK(remove(path) == 0);
    }
    (void)in_folder(NULL);
}
TEST(types_are_chosen_by_the_values) {
    static const int64_t small[] = {-1, 2}, large[] = {0, UINT32_MAX}, huge[] = {-1, UINT32_MAX};
    static const double reals[] = {0.5, 1e-5};
    static const bool bools[] = {true, false};
    const opd_value texts[] = {opd_value_str("a"), opd_value_str("")};
    const char *const keys[] = {"count", "below", "large", "real", "flag", "text", "small", "larges", "huge", "reals",
                                "bools", "texts", "none", "named:u8", "exact:f64", "a:b:str", "whole:f32", "bits:u64"};
    const opd_value values[] = {
        opd_value_int(7), opd_value_int(-7), opd_value_int(INT64_C(1) << 40), opd_value_double(0.1),
        opd_value_bool(true), opd_value_str("words"), opd_value_ints(small, 2), opd_value_ints(large, 2),
        opd_value_ints(huge, 2), opd_value_doubles(reals, 2), opd_value_bools(bools, 2), opd_value_list(texts, 2),
        opd_value_list(NULL, 0), opd_value_int(255), opd_value_double(0.1), opd_value_str("c"), opd_value_int(3),
        opd_value_uint(UINT64_MAX)};
    static const char *const types[] = {"u32", "i32", "i64", "f32", "bool", "str", "i32", "u32", "i64", "f32", "bool",
                                        "str", "str", "u8", "f64", "str", "f32", "u64"};
    const int count = (int)(sizeof keys / sizeof *keys);
    const char *const path = in_folder("types.gguf");
    double number;
    CHECK_INT(opd_gguf_save(path, NULL, opd_tensors_of(NULL, 0), keys, values, count), 0);
    CHECK_OK();
    opd_tensor_file *const file = opd_tensor_file_open(path);
    CHECK_OR_RETURN(file);
    for (int i = 0; i < count; i++) {
        const char *const key = opd_tensor_file_metadata_key(file, i);
        CHECK(key && strncmp(key, keys[i], strlen(key)) == 0);
        CHECK_STR(opd_tensor_file_metadata_type(file, key), types[i]);
    }
    CHECK(opd_tensor_file_metadata_key(file, count) == NULL);
    CHECK(opd_tensor_file_metadata_number(file, "real", 0, &number) == 0 && number == (double)0.1f);
    CHECK(opd_tensor_file_metadata_number(file, "exact", 0, &number) == 0 && number == 0.1);
    CHECK(opd_tensor_file_metadata_number(file, "reals", 1, &number) == 0 && number == (double)1e-5f);
    CHECK(opd_tensor_file_metadata_number(file, "huge", 1, &number) == 0 && number == UINT32_MAX);
    CHECK(opd_tensor_file_metadata_number(file, "below", 0, &number) == 0 && number == -7);
    CHECK_STR(opd_tensor_file_metadata(file, "a:b"), "c");
    opd_tensor_file_close(file);
    CHECK(remove(path) == 0);
    (void)in_folder(NULL);
}
static void check_unwritten(const char *key, opd_value value, const char *part) {
    const char *const path = in_folder("none.gguf");
    CHECK_INT(opd_gguf_save(path, NULL, opd_tensors_of(NULL, 0), &key, &value, 1), -1);
    CHECK_ERROR(OPD_ERROR_FILE, part);
    CHECK(access(path, F_OK) != 0);
}
TEST(what_the_format_lacks_is_refused) {
    const char *const path = in_folder("none.gguf"), *const name = "w", *const twice[] = {"k:u8", "k"};
    const char *const long_name = "0123456789012345678901234567890123456789012345678901234567890123";
    const opd_value values[] = {opd_value_int(1), opd_value_int(2)}, mixed[] = {opd_value_str("a"), opd_value_int(1)};
    check_unwritten("k:u8", opd_value_int(256), "entry 'k:u8': 256 does not fit the type u8");
    check_unwritten("k:u32", opd_value_int(-1), "-1 does not fit the type u32");
    check_unwritten("k:i8", opd_value_int(-129), "-129 does not fit the type i8");
    check_unwritten("k:u8", opd_value_double(1), "cannot be written with the type u8");
    check_unwritten("k:bool", opd_value_int(1), "cannot be written with the type bool");
    check_unwritten("k", opd_value_double(1e300), "1e+300 is too large for the type f32");
    check_unwritten("k", opd_value_none(), "GGUF has no values of this kind");
    check_unwritten("k", opd_value_list(mixed, 2), "cannot be written with the type str");
    check_unwritten("k\xff", opd_value_int(1), "is not UTF-8");
    check_unwritten("general.alignment", opd_value_int(24), "a power of two");
    check_unwritten("", opd_value_int(1), "the key is empty");
    check_unwritten("k:U32", opd_value_int(1), "must be a type");
    check_unwritten("k:f64", opd_value_int(INT64_MAX), "cannot be written exactly with the type f64");
    check_unwritten("k:f32", opd_value_int(16777217), "cannot be written exactly with the type f32");
    check_unwritten("k", opd_value_ints(NULL, 3), "is NULL");
    check_unwritten("k", opd_value_ints(NULL, -5), "of negative length");
    check_unwritten("k", opd_value_str(NULL), "GGUF has no values of this kind");
    check_unwritten("general.alignment:u64", opd_value_int(32), "with the type u32");
    CHECK_INT(opd_gguf_save(path, NULL, opd_tensors_of(NULL, 0), twice, values, 2), -1);
    CHECK_ERROR(OPD_ERROR_FILE, "the key 'k' is given twice");
    CHECK_INT(opd_gguf_save(path, NULL, opd_tensors_of(NULL, 0), NULL, values, 2), -1);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "NULL");
    OPD_SCOPE {
        CHECK_INT(opd_gguf_save(path, &name, OPD_TENSORS(opd_ones(OPD_INTS(2), OPD_BOOL)), NULL, NULL, 0), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "entry 'w': GGUF has no dtype bool");
        CHECK_INT(opd_gguf_save(path, &name, OPD_TENSORS(opd_ones(OPD_INTS(1, 1, 1, 1, 1), OPD_INT8)), NULL, NULL, 0),
                  -1);
        CHECK_ERROR(OPD_ERROR_FILE, "it has 5 dimensions, but GGUF allows 4");
        CHECK_INT(opd_gguf_save(path, &long_name, OPD_TENSORS(opd_ones(OPD_INTS(2), OPD_INT8)), NULL, NULL, 0), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "the name has 64 bytes, but GGUF allows 63");
        CHECK(access(path, F_OK) != 0);
    }
    (void)in_folder(NULL);
}
TEST(tensors_of_all_dtypes_are_written) {
    static const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT16, OPD_BFLOAT16, OPD_FLOAT64, OPD_INT8, OPD_INT16,
                                             OPD_INT32, OPD_INT64};
    enum { N = sizeof dtypes / sizeof *dtypes };
    char texts[N + 2][20];
    const char *names[N + 2], *const keys[] = {"general.alignment"};
    opd_tensor *tensors[N + 2];
    const opd_value value = opd_value_int(64);
    const char *const path = in_folder("all.gguf");
    OPD_SCOPE {
        opd_tensor *const numbers = opd_sub_Scalar(opd_reshape(opd_arange(OPD_V(24), OPD_FLOAT32), OPD_INTS(2, 3, 4)),
                                                   OPD_V(7));
        for (int i = 0; i < N + 2; i++) {
            names[i] = texts[i];
            (void)snprintf(texts[i], sizeof texts[i], "t%d", i);
            /* every second with other strides */
            if (i < N) { tensors[i] = opd_to_dtype(i % 2 ? opd_transpose(numbers, 0, 2) : numbers, dtypes[i]); }
            if (i < N && i % 2) { tensors[i] = opd_transpose(opd_contiguous(opd_transpose(tensors[i], 1, 2)), 1, 2); }
        }
        tensors[N] = opd_full(opd_ints_of(NULL, 0), OPD_V(2.5), OPD_FLOAT32);
        tensors[N + 1] = opd_ones(OPD_INTS(0, 3), OPD_FLOAT32);
        CHECK_INT(opd_gguf_save(path, names, opd_tensors_of(tensors, N + 2), keys, &value, 1), 0);
        opd_tensor_file *const file = opd_tensor_file_open(path);
        CHECK_OK();
        CHECK_INT(opd_tensor_file_count(file), N + 2);
        for (int i = 0; file && i < N + 2; i++) {
            opd_tensor *const tensor = opd_tensor_file_at(file, i);
            CHECK(tensor && opd_dtype(tensor) == opd_dtype(tensors[i]));
            CHECK(!tensor || (uintptr_t)opd_data(tensor) % 64 == 0);
            if (i == N) { CHECK(opd_ndim(tensor) == 1 && opd_item_f64(tensor) == 2.5); }
            else { CHECK(tensor && opd_item_i64(opd_all(opd_eq(tensor, tensors[i]))) == 1); }
            CHECK(opd_ndim(tensor) == (i == N ? 1 : opd_ndim(tensors[i])));
        }
        opd_tensor_file_close(file);
        CHECK_OK();
    }
    CHECK(remove(path) == 0);
    (void)in_folder(NULL);
}

/* Rows of a tensor in blocks are written with their blocks; columns cannot be. */
TEST(rows_of_blocks_are_written) {
    const char *const path = in_folder("rows.gguf"), *const names[] = {"rows", "all"};
    OPD_SCOPE {
        opd_tensor_file *const file = opd_tensor_file_open(in_golden("qwen2_Q8_0.gguf"));
        opd_tensor *const weight = opd_tensor_file_get(file, "token_embd.weight");
        CHECK(weight && opd_dtype(weight) == OPD_Q8_0 && opd_size(weight, 0) == 319 && opd_size(weight, 1) == 64);
        opd_tensor_file_close(file);
        opd_tensor *const rows = opd_slice(weight, 0, OPD_V(1), OPD_V(8), 3);
        CHECK_INT(opd_gguf_save(path, names, OPD_TENSORS(rows, weight), NULL, NULL, 0), 0);
        CHECK_OK();
        opd_tensor_file *const again = opd_tensor_file_open(path);
        opd_tensor *const read = opd_tensor_file_get(again, "rows"), *const all = opd_tensor_file_get(again, "all");
        CHECK(read && opd_dtype(read) == OPD_Q8_0 && opd_size(read, 0) == 3 && opd_size(read, 1) == 64);
        const size_t row = 2 * 34;
        for (size_t i = 0; read && i < 3; i++) {
            CHECK(memcmp((const char *)opd_data(read) + i * row, (const char *)opd_data(weight) + (1 + 3 * i) * row,
                         row) == 0);
        }
        CHECK(all && memcmp(opd_data(all), opd_data(weight), 319 * row) == 0);
        CHECK_INT(opd_gguf_save(path, names, OPD_TENSORS(opd_quantize_blocks(all, OPD_WEIGHT_BF16),
                                                         opd_quantize_blocks(all, OPD_WEIGHT_F16)), NULL, NULL, 0), 0);
        opd_tensor_file *const halves = opd_tensor_file_open(path);
        CHECK(opd_equal(opd_tensor_file_get(halves, "rows"), opd_to_dtype(all, OPD_BFLOAT16)));
        CHECK(opd_equal(opd_tensor_file_get(halves, "all"), opd_to_dtype(all, OPD_FLOAT16)));
        opd_tensor_file_close(halves);
        opd_tensor_file_close(again);
        CHECK_INT(opd_gguf_save(path, names, OPD_TENSORS(opd_transpose(weight, 0, 1)), NULL, NULL, 0), -1);
        CHECK_ERROR(OPD_ERROR_FILE, "entry 'rows': its last dim, with the elements of a row, is not stored in whole");
    }
    CHECK(remove(path) == 0);
    (void)in_folder(NULL);
}

//-- parts, threads, lifetimes, memory --------------------------------------------------------------------------------

/* Writes part i of 3, whose tensor t<i> has the elements i; `all` is split.tensors.count. */
static void save_part(int i, int split, int count, int all, const char *name) {
    static const char *const keys[] = {"split.no:u16", "split.count:u16", "split.tensors.count:i32", "general.name"};
    const opd_value values[] = {opd_value_int(split), opd_value_int(count), opd_value_int(all),
                                opd_value_str("joined")};
    char file[60];
    (void)snprintf(file, sizeof file, "m-%05d-of-00003.gguf", i + 1);
    OPD_SCOPE {
        CHECK_INT(opd_gguf_save(in_folder(file), &name, OPD_TENSORS(opd_full(OPD_INTS(3), OPD_V(i), OPD_FLOAT32)), keys,
                                values, i ? 3 : 4), 0);
    }
}
static void check_parts(const char *part) {
    CHECK(opd_tensor_file_open(in_folder("m-00001-of-00003.gguf")) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, part);
}
TEST(a_model_in_parts_is_one_file) {
    static const char *const names[] = {"t0", "t1", "t2"};
    for (int i = 0; i < 3; i++) { save_part(i, i, 3, 3, names[i]); }
    CHECK_INT(opd_file_kind_of(in_folder("m-00002-of-00003.gguf")), OPD_FILE_GGUF);
    OPD_SCOPE {
        opd_tensor *tensors[3] = {NULL, NULL, NULL};
        opd_tensor_file *const file = opd_tensor_file_open(in_folder("m-00001-of-00003.gguf"));
        CHECK_INT(opd_tensor_file_count(file), 3);
        for (int i = 2; i >= 0; i--) {
            CHECK_STR(opd_tensor_file_name(file, i), names[i]);
            CHECK_INT(opd_tensor_file_find(file, names[i]), i);
            tensors[i] = opd_tensor_file_get(file, names[i]);
        }
        CHECK_STR(opd_tensor_file_metadata(file, "general.name"), "joined");
        opd_tensor_file_close(file);
        for (int i = 0; i < 3; i++) { CHECK(tensors[i] && opd_data_f32(tensors[i])[2] == (float)i); }
        CHECK_OK();
    }
    CHECK(opd_tensor_file_open(in_folder("m-00002-of-00003.gguf")) == NULL);
    CHECK_ERROR(OPD_ERROR_FILE, "this is part 2 of a model in 3 files: open the first");
    save_part(1, 1, 3, 3, "t0");
    check_parts("entry 't0'");
    save_part(1, 2, 3, 3, "t1");
    check_parts("this should be part 2 of 3, but split.no is 2 and split.count 3");
    save_part(1, 1, 3, 3, "t1");
    save_part(0, 0, 3, 4, "t0");
    check_parts("split.tensors.count is 4, but the parts have 3 tensors");
    save_part(0, 0, 4, 4, "t0");
    check_parts("its name must end with '-00001-of-00004.gguf'");
    save_part(0, 0, 3, 3, "t0");
    CHECK(remove(in_folder("m-00003-of-00003.gguf")) == 0);
    check_parts("m-00003-of-00003.gguf: cannot be read");
    CHECK(remove(in_folder("m-00002-of-00003.gguf")) == 0);
    CHECK(remove(in_folder("m-00001-of-00003.gguf")) == 0);
    (void)in_folder(NULL);
}
TEST(tensors_outlive_their_file) {
    OPD_SCOPE {
        opd_tensor_file *const file = opd_tensor_file_open(in_golden("gpt2_BF16.gguf"));
        opd_tensor *const first = opd_tensor_file_at(file, 0), *const other = opd_tensor_file_at(file, 0);
        CHECK(first && other && opd_data(first) == opd_data(other));
        const uint64_t before = first ? tensor_hash(first) : 0;
        opd_tensor_file_close(file);
        CHECK(other && tensor_hash(other) == before);
    }
    CHECK_OK();
}
/* Weights in blocks are buffers of a module, since they have no gradient. */
TEST(a_module_of_a_gguf_file) {
    opd_module *const module = opd_module_open(in_golden("llama_Q4_0.gguf"), NULL);
    CHECK_OK();
    CHECK_INT(opd_module_count(module), 21);
    for (int64_t i = 0; i < opd_module_count(module); i++) {
        const bool block = opd_dtype(opd_module_at(module, i)) == OPD_Q4_0;
        CHECK(block || opd_dtype(opd_module_at(module, i)) == OPD_FLOAT32);
        CHECK_INT(opd_module_kind_at(module, i), block ? OPD_MODULE_BUFFER : OPD_MODULE_PARAMETER);
        CHECK(opd_tensor_requires_grad(opd_module_at(module, i)) == !block);
    }
    opd_module_free(module);
}
static void *read_values(void *user) {
    const opd_tensor_file *const file = (const opd_tensor_file *)user;
    opd_value value;
    for (int round = 0; round < 20; round++) {
        OPD_SCOPE {
            if (opd_tensor_file_metadata_value(file, "tokenizer.ggml.tokens", &value) || value.n != 319 ||
                strcmp(value.u.list[35].u.s, "$") == 0) { return NULL; }
            if (opd_tensor_file_metadata_value(file, "tokenizer.ggml.token_type", &value) || value.u.ints[0] != 1) {
                return NULL;
            }
            if (!opd_tensor_file_get(file, "token_embd.weight")) { return NULL; }
        }
    }
    return opd_ok() ? user : NULL;
}
TEST(threads_read_one_file) {
    opd_tensor_file *const file = opd_tensor_file_open(in_golden("gpt2_BF16.gguf"));
    pthread_t threads[4];
    CHECK_OR_RETURN(file);
    for (int i = 0; i < 4; i++) { CHECK(pthread_create(&threads[i], NULL, read_values, file) == 0); }
    for (int i = 0; i < 4; i++) {
        void *right = NULL;
        CHECK(pthread_join(threads[i], &right) == 0 && right == file);
    }
    opd_tensor_file_close(file);
}
static int attempt_read(void *user) {
    opd_value value;
    opd_tensor_file *const file = opd_tensor_file_open((const char *)user);
    const int rc = !file || !opd_tensor_file_at(file, 0) ||
        opd_tensor_file_metadata_value(file, "tokenizer.ggml.tokens", &value) ||
        opd_tensor_file_metadata_value(file, "tokenizer.ggml.token_type", &value) ? -1 : 0;
    opd_tensor_file_close(file);
    return rc;
}
static int attempt_parts(void *user) {
    opd_tensor_file *const file = opd_tensor_file_open((const char *)user);
    opd_tensor_file_close(file);
    return file ? 0 : -1;
}
static int attempt_write(void *user) {
    const opd_tensor_file *const file = (const opd_tensor_file *)user;
    return save_again(file, in_folder("written.gguf"));
}
TEST(memory_may_run_out) {
    static const char *const names[] = {"t0", "t1", "t2"};
    (void)check_allocations(attempt_read, (void *)(uintptr_t)in_golden("gpt2_BF16.gguf"), "reading", 60, true);
    for (int i = 0; i < 3; i++) { save_part(i, i, 3, 3, names[i]); }
    (void)check_allocations(attempt_parts, (void *)(uintptr_t)in_folder("m-00001-of-00003.gguf"), "parts", 60, true);
    CHECK(remove(in_folder("m-00003-of-00003.gguf")) == 0);
    CHECK(remove(in_folder("m-00002-of-00003.gguf")) == 0);
    CHECK(remove(in_folder("m-00001-of-00003.gguf")) == 0);
    opd_tensor_file *const file = opd_tensor_file_open(in_golden("gpt2_BF16.gguf"));
    (void)check_allocations(attempt_write, file, "writing", 60, true);
    opd_tensor_file_close(file);
    CHECK(remove(in_folder("written.gguf")) == 0);
    (void)in_folder(NULL);
}
CHECK_MAIN()
