// Fuzz target for exported programs: see fuzz.h for how to build and run it.  Input: the JSON text of a program, or
// this text, a zero byte and the JSON text of its weights.  Both are put into a zip file with 64 bytes for each of two
// weights.
#include "fuzz.h"

static unsigned char file[200000];
static size_t length;
static struct { const char *name; const void *data; size_t n, at; } entries[8];
static int count;
static void put(const void *data, size_t n) { memcpy(file + length, data, n); length += n; }
static void put_number(uint32_t number, int bytes) {
    for (; bytes; bytes--, number >>= 8) { file[length++] = (unsigned char)number; }
}
static void entry(const char *name, const void *data, size_t n) {
    entries[count].name = name;
    entries[count].data = data;
    entries[count].n = n;
    entries[count++].at = length;
    put("PK\3\4\24\0\0\0\0\0\0\0\0\0", 14);
    put_number(crc_of(data, n), 4);
    put_number((uint32_t)n, 4);
    put_number((uint32_t)n, 4);
    put_number((uint32_t)strlen(name), 2);
    put_number((8 - (length + 2 + strlen(name)) % 8) % 8, 2);
    put(name, strlen(name));
    while (length % 8) { put("", 1); }
    put(data, n);
}
static void finish(void) {
    const size_t begin = length;
    for (int i = 0; i < count; i++) {
        put("PK\1\2\24\0\24\0\0\0\0\0\0\0\0\0", 16);
        put_number(crc_of(entries[i].data, entries[i].n), 4);
        put_number((uint32_t)entries[i].n, 4);
        put_number((uint32_t)entries[i].n, 4);
        put_number((uint32_t)strlen(entries[i].name), 2);
        for (int k = 0; k < 12; k++) { put("", 1); }
        put_number((uint32_t)entries[i].at, 4);
        put(entries[i].name, strlen(entries[i].name));
    }
    const size_t size = length - begin;
    put("PK\5\6\0\0\0\0", 8);
    put_number((uint32_t)count, 2);
    put_number((uint32_t)count, 2);
    put_number((uint32_t)size, 4);
    put_number((uint32_t)begin, 4);
    put_number(0, 2);
}
static void one(const uint8_t *data, size_t n) {
    static const unsigned char weight[64] = {0, 0, 128, 63, 0, 0, 0, 64};
    const uint8_t *zero = (const uint8_t *)memchr(data, 0, n);
    const size_t first = zero ? (size_t)(zero - data) : n;
    length = 0;
    count = 0;
    if (n > 100000) { return; }
    entry("m/models/model.json", data, first);
    if (zero) { entry("m/data/weights/model_weights_config.json", zero + 1, n - first - 1); }
    entry("m/data/weights/weight_0", weight, sizeof weight);
    entry("m/data/weights/weight_1", weight, sizeof weight);
    finish();
    unsigned char *mine = (unsigned char *)malloc(length);
    MUST(mine);
    memcpy(mine, file, length);
    opd_program *program = opd_program_parse(mine, length, NULL);
    if (!program) { MUST(!opd_ok()); }
    else {
        opd_value inputs[16], outputs[4];
        const int ninputs = opd_program_ninputs(program) < 16 ? opd_program_ninputs(program) : 0;
        for (int i = 0; i < ninputs; i++) {
            const int64_t sizes[] = {3, 4};
            char type[100];
            (void)opd_program_input_type(program, i, type, sizeof type);
            inputs[i] = strstr(type, "int") == type && type[3] == 0 ? opd_value_int(3)
                : opd_value_tensor(opd_ones(opd_ints_of(sizes, 2), OPD_FLOAT32));
        }
        (void)opd_program_print(program, NULL, 0);
        MUST(opd_program_run(program, inputs, ninputs, outputs, 4) >= 0 || !opd_ok());
        opd_program_free(program);
    }
    free(mine);
}
FUZZ(one)
