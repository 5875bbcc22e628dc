#include "tensor.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>random       random numbers, generators
//
//  Random bits by Philox, uniform and normal numbers that are computed from them, and the generators that determine
//  which bits a call takes.
//----------------------------------------------------------------------------------------------------------------------

//== random numbers ====================================================================================================
//
// Philox 4x32-10 (Salmon et al., 2011): each element depends on the key and its index only.

OPD_UNUSED OPDI_INTERNAL void opdi_philox(uint64_t key, uint64_t counter_hi, uint64_t counter_lo, uint32_t out[4]) {
    uint32_t first = (uint32_t)counter_lo, second = (uint32_t)(counter_lo >> 32), third = (uint32_t)counter_hi;
    uint32_t fourth = (uint32_t)(counter_hi >> 32), k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        uint64_t bits = (uint64_t)first * 0xd2511f53u, y = (uint64_t)third * 0xcd9e8d57u;
        first = (uint32_t)(y >> 32) ^ second ^ k0;
        second = (uint32_t)y;
        third = (uint32_t)(bits >> 32) ^ fourth ^ k1;
        fourth = (uint32_t)bits;
    }
    out[0] = first;
    out[1] = second;
    out[2] = third;
    out[3] = fourth;
}

/* Computes the random words of sixteen counters at once: out[4 * i + q] = word q of counter lo + i. */
OPDI_ALWAYS void opdi_philox16_body(uint64_t key, uint64_t lo, uint32_t out[64]) {
    uint32_t first[16], second[16], third[16], fourth[16], k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < 16; i++) {
        first[i] = (uint32_t)(lo + (uint64_t)i);
        second[i] = (uint32_t)((lo + (uint64_t)i) >> 32);
        third[i] = fourth[i] = 0;
    }
    for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        for (int i = 0; i < 16; i++) {
            uint64_t bits = (uint64_t)first[i] * 0xd2511f53u, y = (uint64_t)third[i] * 0xcd9e8d57u;
            first[i] = (uint32_t)(y >> 32) ^ second[i] ^ k0;
            second[i] = (uint32_t)y;
            third[i] = (uint32_t)(bits >> 32) ^ fourth[i] ^ k1;
            fourth[i] = (uint32_t)bits;
        }
    }
    for (int i = 0; i < 16; i++) {
        out[4 * i] = first[i];
        out[4 * i + 1] = second[i];
        out[4 * i + 2] = third[i];
        out[4 * i + 3] = fourth[i];
    }
}
static void opdi_philox16_plain(uint64_t key, uint64_t lo, uint32_t out[64]) { opdi_philox16_body(key, lo, out); }
#if defined(OPDI_X86)
OPDI_AVX512 static void opdi_philox16_avx512(uint64_t key, uint64_t lo, uint32_t out[64]) {
    opdi_philox16_body(key, lo, out);
}
#endif
OPDI_INTERNAL void opdi_philox16(uint64_t key, uint64_t lo, uint32_t out[64]) {
#if defined(OPDI_X86)
    if (opdi_cpu_level() == 2) {
        opdi_philox16_avx512(key, lo, out);
        return;
    }
#endif
    opdi_philox16_plain(key, lo, out);
}

/* Fills `out` with floats in [0, 1), each made of 24 bits of a word. */
static void opdi_uniform_f32(const uint32_t words[64], float out[64]) {
    for (int i = 0; i < 64; i++) { out[i] = (float)(int32_t)(words[i] >> 8) * 5.9604644775390625e-8f; }
}
/* Fills `out` with doubles in [0, 1), each made of 53 bits of two words. */
static void opdi_uniform_f64(const uint32_t words[64], double out[32]) {
    for (int i = 0; i < 32; i++) {
        out[i] = (double)(((uint64_t)words[2 * i + 1] << 32 | words[2 * i]) >> 11) * 1.1102230246251565404e-16;
    }
}
/* Fills `out` with normally distributed numbers by the method of Box and Muller.  Two words give two numbers: sqrt(-2
   log u), u in (0, 1], times the cosine and the sine of an angle. */
static void opdi_normal_f32(const uint32_t words[64], float out[64]) {
    float u[32], angles[32], sines[32];
    for (int i = 0; i < 32; i++) {
        u[i] = (float)(int32_t)(words[2 * i] >> 8) * 5.9604644775390625e-8f + 2.98023223876953125e-8f;
        angles[i] = (float)(int32_t)(words[2 * i + 1] >> 8) * 3.7450704e-7f;
    }
    opdi_vlog_same(32, u, u);
    opdi_vsin_same(32, sines, angles);
    opdi_vcos_same(32, angles, angles);
    for (int i = 0; i < 32; i++) {
        float radius = sqrtf(-2.0f * u[i]);
        out[2 * i] = radius * angles[i];
        out[2 * i + 1] = radius * sines[i];
    }
}
static void opdi_normal_f64(const uint32_t words[64], double out[32]) {
    double u[16], angles[16], sines[16];
    opdi_uniform_f64(words, out);
    for (int i = 0; i < 16; i++) {
        u[i] = 1.0 - out[2 * i];
        angles[i] = 6.28318530717958647693 * out[2 * i + 1];
    }
    opdi_vlog64_same(16, u, u);
    opdi_vsin64_same(16, sines, angles);
    opdi_vcos64_same(16, angles, angles);
    for (int i = 0; i < 16; i++) {
        const double radius = sqrt(-2.0 * u[i]);
        out[2 * i] = radius * angles[i];
        out[2 * i + 1] = radius * sines[i];
    }
}

typedef struct opdi_fill_job { char *out; uint64_t key, offset; int kind; } opdi_fill_job;

/* Fills elements `begin` to `end` - 1 of the job `ctx` with random numbers.  The job's kind is 0 (uniform) or 1
   (normal), plus 2 for doubles.  A block of 64 random words gives 64 floats or 32 doubles, at fixed indices. */
static void opdi_fill_range(void *ctx, int64_t begin, int64_t end) {
    const opdi_fill_job *fill_job = (const opdi_fill_job *)ctx;
    uint32_t words[64];
    double values[64];
    uint64_t per = fill_job->kind >= 2 ? 32 : 64, size = fill_job->kind >= 2 ? 8 : 4;
    for (uint64_t i = (uint64_t)begin; i < (uint64_t)end;) {
        uint64_t at = (fill_job->offset + i) % per, count = OPDI_MIN(per - at, (uint64_t)end - i);
        opdi_philox16(fill_job->key, (fill_job->offset + i) / per * 16, words);
        if (fill_job->kind == 0) { opdi_uniform_f32(words, (float *)(void *)values); }
        else if (fill_job->kind == 1) { opdi_normal_f32(words, (float *)(void *)values); }
        else if (fill_job->kind == 2) { opdi_uniform_f64(words, values); }
        else { opdi_normal_f64(words, values); }
        memcpy(fill_job->out + i * size, (char *)values + at * size, (size_t)(count * size));
        i += count;
    }
}

/* Fills `out` with `count` random numbers of `kind` (see opdi_fill_range).  Number i depends only on the key and on
   `offset` + i. */
OPDI_INTERNAL void opdi_fill_random(int kind, int64_t count, void *out, uint64_t key, uint64_t offset) {
    opdi_fill_job fill_job;
    fill_job.out = (char *)out;
    fill_job.key = key;
    fill_job.offset = offset;
    fill_job.kind = kind;
    opdi_parallel_for(count, 16384, opdi_fill_range, &fill_job);
}

//== generators ========================================================================================================
//
//  A generator is a key and a count of 32-bit words that were used.  A call takes its words under a lock and computes
//  its numbers from these words, so the numbers do not depend on the number of threads or on the device.

OPDI_COLD_BEGIN
OPDI_INTERNAL opdi_mutex opdi_generator_lock = OPDI_MUTEX_INIT;
static opd_generator opdi_generator_default;

void opd_generator_seed(opd_generator *generator, uint64_t seed) {
    if (!generator) { generator = &opdi_generator_default; }
    opdi_lock(&opdi_generator_lock);
    generator->seed = seed;
    generator->used = 0;
    opdi_unlock(&opdi_generator_lock);
}
OPDI_INTERNAL void opdi_random_get(opd_generator *generator, uint64_t state[2]) {
    if (!generator) { generator = &opdi_generator_default; }
    opdi_lock(&opdi_generator_lock);
    state[0] = generator->seed;
    state[1] = generator->used;
    opdi_unlock(&opdi_generator_lock);
}
OPDI_INTERNAL void opdi_random_set(opd_generator *generator, const uint64_t state[2]) {
    if (!generator) { generator = &opdi_generator_default; }
    opdi_lock(&opdi_generator_lock);
    generator->seed = state[0];
    generator->used = state[1];
    opdi_unlock(&opdi_generator_lock);
}
void opd_manual_seed(uint64_t seed) { opd_generator_seed(NULL, seed); }
opd_generator *opd_generator_new(uint64_t seed) {
    opd_generator *generator = (opd_generator *)opdi_alloc(sizeof *generator);
    if (generator) {
        generator->refs = 1;
        opd_generator_seed(generator, seed);
    }
    return generator;
}
void opd_generator_free(opd_generator *generator) {
    if (generator && opdi_ref_down(&generator->refs) == 0) { opdi_free(generator, sizeof *generator); }
}
void opd_generator_give_back(opd_generator *generator, uint64_t at, int64_t words) {
    if (!generator) { generator = &opdi_generator_default; }
    opdi_lock(&opdi_generator_lock);
    if (generator->used == at + ((uint64_t)words + 63) / 64 * 64) { generator->used = at; }
    opdi_unlock(&opdi_generator_lock);
}
OPDI_COLD_END
/* Flags of this thread, set while a graph is recorded to be compiled.  paused: taking random numbers fails.  missed:
   code has tried to take random numbers while `paused` was set.  sides: both sides of a condition are being recorded.
   lazy: factories make tensors on the lazy device. */
static OPDI_TLS bool opdi_generator_paused, opdi_generator_missed, opdi_generator_sides, opdi_usual_lazy;
OPDI_INTERNAL void opdi_generator_pause_set(bool on) {
    opdi_generator_paused = on;
    opdi_generator_missed = false;
}
/* Returns true if code has tried to take random numbers since opdi_generator_pause_set(true). */
OPDI_INTERNAL bool opdi_generator_was_missed(void) { return opdi_generator_missed; }
/* Sets the flag that both sides of a condition are being recorded, and returns the previous setting.  As a run takes
   only one side, random operators cannot be recorded then. */
OPDI_INTERNAL bool opdi_generator_sides_set(bool on) {
    const bool was = opdi_generator_sides;
    opdi_generator_sides = on;
    return was;
}
OPDI_INTERNAL bool opdi_generator_has_sides(void) { return opdi_generator_sides; }
OPDI_INTERNAL bool opdi_usual_lazy_set(bool on) {
    const bool was = opdi_usual_lazy;
    opdi_usual_lazy = on;
    return was;
}
/* Returns the device on which factories make tensors if none is given. */
OPDI_INTERNAL opd_device opdi_usual_device(void) {
    return opdi_usual_lazy ? opd_device_make(OPD_LAZY, 0) : opd_device_make(OPD_CPU, -1);
}
/* Takes words from the generator, in whole blocks of 64 words.  Sets *key to the generator's seed.  Returns the index
   of the first word, or 0 and sets an error. */
uint64_t opd_generator_take(opd_generator *generator, int64_t words, uint64_t *key) {
    if (key) { *key = 0; }
    if (opdi_generator_paused) {
        opdi_generator_missed = true;
        (void)opd_fail(OPD_ERROR_ARGUMENT, "an operator that takes random numbers cannot be compiled");
        return 0;
    }
    if (words < 0) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "opd_generator_take: %lld words cannot be taken", (long long)words);
        return 0;
    }
    if (!generator) { generator = &opdi_generator_default; }
    opdi_lock(&opdi_generator_lock);
    uint64_t at = generator->used;
    generator->used += ((uint64_t)words + 63) / 64 * 64;
    if (key) { *key = generator->seed; }
    opdi_unlock(&opdi_generator_lock);
    return at;
}
