/* fuzz.h: a framework for fuzz targets.

       #include "fuzz.h"

       // `inputs` says what the bytes mean, MUST what must be true for all inputs.
       static void one(const uint8_t *data, size_t n) { ... }
       FUZZ(one)

   FUZZ runs each input in its own scope, and one of eight inputs again with a failing allocation.  A pending error
   is cleared, but memory must not be lost.  run.sh builds and runs the targets.  The files in TARGET/ are the initial
   corpus.  A target can be run again without the script:

       build/fuzz/fuzz_npy -dict=tests/fuzz/npy.dict -max_total_time=60 build/fuzz/npy.corpus
       build/fuzz/fuzz_npy build/fuzz/npy.findings/crash-...               (repeats a finding)

   A target whose input is only a list of choices (next) is also a test.  The test runs FUZZ_SEEDS inputs of
   random bytes, the same inputs in each run.  tests/test_fuzz_TARGET.c consists of these lines:

       #define FUZZ_SEEDS 1000
       #include "fuzz/fuzz_TARGET.c"

   FUZZ_FIRST=n FUZZ_COUNT=n in the environment run other seeds, and print each seed before it runs. */
#ifndef OPD_TESTS_FUZZ_H
#define OPD_TESTS_FUZZ_H

#if defined(FUZZ_SEEDS)
#include "../check.h"
#else
#include "ops/ops.h"                 /* src/: the targets call private functions, too */
#endif

#define MUST(cond) do { if (!(cond)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); abort(); } } while (0)
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The function that libFuzzer calls, or a test. */
#if defined(FUZZ_SEEDS)
#define FUZZ(one) \
    TEST_KEEPS(random_inputs) { fuzz_seeds(one); } \
    int main(int argc, char **argv) { return check_main(argc, argv, __BASE_FILE__); }
#else
#define FUZZ(one) \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n); \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) { fuzz_twice(one, data, n); return 0; }
#endif

static bool fuzz_short;          /* an allocation fails or has failed in this run */

OPD_UNUSED static void log_nothing(void *user, int is_error, const char *text) {
    (void)user; (void)is_error; (void)text;
}

/* The input as a script.  next returns its next byte, or 0 at the end; next_text copies its next characters, up to a
   control character. */
static const uint8_t *at, *end;
OPD_UNUSED static unsigned next(void) { return at < end ? *at++ : 0; }
OPD_UNUSED static const char *next_text(char *buf, size_t cap) {
    size_t n = 0;
    while (at < end && *at >= 32 && n + 1 < cap) { buf[n++] = (char)*at++; }
    buf[n] = 0;
    if (at < end) { at++; }
    return buf;
}

/* Functions that correct the checksums of zip files and saved graphs. */
#if !defined(FUZZ_SEEDS)
OPD_UNUSED static uint32_t crc_of(const void *data, size_t n) {
    static opdi_crc table;
    if (!table.rows[0][1]) { opdi_crc_init(&table); }
    return opdi_crc_add(&table, 0, data, n);
}
/* Writes the right checksum of each zip entry to the directory, at all places that look like a directory. */
OPD_UNUSED static void mend(uint8_t *p, size_t n) {
    static opdi_inflate z;
    static uint8_t out[1 << 16];
    size_t at;
    for (at = 0; n >= 46 && at <= n - 46; at++) {
        const size_t packed = opdi_le32(p + at + 20), full = opdi_le32(p + at + 24), from = opdi_le32(p + at + 42);
        size_t begin;
        uint32_t crc;
        if (opdi_le32(p + at) != 0x02014b50u || from > n - 46) { continue; }
        begin = from + 30 + opdi_le16(p + from + 26) + opdi_le16(p + from + 28);
        if (begin > n || packed > n - begin || full > sizeof out) { continue; }
        if (opdi_le16(p + at + 10) == 8) {
            if (opdi_inflate_all(&z, p + begin, packed, out, full)) { continue; }
            crc = crc_of(out, full);
        } else {
            crc = crc_of(p + begin, full < packed ? full : packed);
        }
        (void)opdi_le_put(p + at + 16, crc, 4);
    }
}
#endif

/* Reads every element.  Returns their sum. */
OPD_UNUSED static unsigned sum_of(const opd_tensor *t) {
    const unsigned char *p = (const unsigned char *)opd_data(t);
    const int64_t n = opd_tensor_storage_bytes(t) - opd_tensor_offset(t) * (int64_t)opd_dtype_size(opd_dtype(t));
    unsigned sum = 0;
    int64_t i;
    for (i = 0; i < n; i++) { sum += p[i]; }
    return sum;
}

/* Tests that the pending error has this code and contains `part`, or that memory ran out. */
OPD_UNUSED static void must_say(opd_code code, const char *part) {
    if (fuzz_short && opd_error_code() == OPD_ERROR_MEMORY) { return; }
    if (opd_error_code() != code || !strstr(opd_error_message(), part)) {
        fprintf(stderr, "error %d: %s\n", (int)opd_error_code(), opd_error_message());
    }
    MUST(opd_error_code() == code && strstr(opd_error_message(), part));
}

/* Opens a file with several tensors in memory.  All queries on an accepted file must work, and each tensor is read or
   refused with its name. */
OPD_UNUSED static void walk_archive(uint8_t *data, size_t n) {
    opd_tensor_file *f = opd_tensor_file_parse(data, n, NULL, NULL);
    int64_t i;
    if (!f) { must_say(OPD_ERROR_FILE, "memory"); return; }
    MUST(opd_ok());
    for (i = 0; i < opd_tensor_file_count(f) && i < 100; i++) {
        const char *name = opd_tensor_file_name(f, i);
        const int64_t found = opd_tensor_file_find(f, name);
        MUST(found < 0 || found == i || strcmp(opd_tensor_file_name(f, found), name) == 0);
        if (found < 0) { must_say(OPD_ERROR_FILE, "entries have this name"); }      /* a dict that has a key twice */
        opd_error_clear();
        OPD_SCOPE {
            opd_tensor *t = opd_tensor_file_at(f, i);
            if (t) { MUST(opd_ok()); (void)sum_of(t); } else { must_say(OPD_ERROR_FILE, "entry '"); }
        }
        opd_error_clear();
    }
    MUST(!opd_tensor_file_name(f, opd_tensor_file_count(f)) && !opd_tensor_file_name(f, -1));
    for (i = 0; i < 100 && opd_tensor_file_metadata_key(f, i); i++) {
        MUST(opd_tensor_file_metadata(f, opd_tensor_file_metadata_key(f, i)));
    }
    opd_tensor_file_close(f);
}

/* Runs the input again if memory grew: memory that grows only once (a registry, a thread's stacks) is not lost. */
OPD_UNUSED static void fuzz_once(void (*one)(const uint8_t *, size_t), const uint8_t *data, size_t n, uint32_t fails) {
    int tries;
    int64_t live = 0;
    for (tries = 0; tries < 3; tries++) {
        live = opd_memory_stats().live;
        fuzz_short = fails != 0;
        OPD_SCOPE {
            if (fails) { (void)opd_memory_fail_at(1 + fails % 32, fails / 32 % 2 != 0); }
            one(data, n);
            (void)opd_memory_fail_at(0, false);
            opd_error_clear();
        }
        if (opd_memory_stats().live <= live) { return; }
    }
    MUST(opd_memory_stats().live <= live);
}
OPD_UNUSED static void fuzz_twice(void (*one)(const uint8_t *, size_t), const uint8_t *data, size_t n) {
    uint32_t h = 2166136261u;
    size_t i;
    for (i = 0; i < n; i++) { h = (h ^ data[i]) * 16777619u; }
    h ^= h >> 15;
    opd_log_set(log_nothing, NULL);
    fuzz_once(one, data, n, 0);
    if (h % 8 == 1) { fuzz_once(one, data, n, h / 8); }
}

#if defined(FUZZ_SEEDS)
static void fuzz_seeds(void (*one)(const uint8_t *, size_t)) {
    const char *from = getenv("FUZZ_FIRST"), *count = getenv("FUZZ_COUNT");
    const uint64_t first = from ? strtoull(from, NULL, 10) : 1;
    const uint64_t last = first + (count ? strtoull(count, NULL, 10) : FUZZ_SEEDS);
    uint64_t seed, x;
    uint8_t data[512];
    for (seed = first; seed < last; seed++) {
        size_t i;
        for (i = 0, x = seed * 0x9e3779b97f4a7c15u; i < sizeof data; i++) {
            x ^= x << 13; x ^= x >> 7; x ^= x << 17;
            data[i] = (uint8_t)(x >> 32);
        }
        if (from) { fprintf(stderr, "seed %llu\n", (unsigned long long)seed); }
        fuzz_twice(one, data, sizeof data);
    }
    opd_log_set(NULL, NULL);
    CHECK(last > first);
}
#endif

#endif /* OPD_TESTS_FUZZ_H */
