#include "kernels.h"

//== products of 8-bit integers with scales for groups =================================================================
//
//  A row of w has a scale for each group of elements.  32 rows of w are packed at a time: a word has four elements of a
//  row, and the words of all rows are side by side.  The sums of a group are exact; they become floats, and are
//  multiplied by the scales.

#if defined(OPDI_X86)
typedef int8_t opdi_v32c __attribute__((vector_size(32), aligned(1), may_alias));
enum { OPDI_GROUP_PANEL = 32, OPDI_GROUP_TILE = 4 };
/* A packed panel: words [k / 4, 32], scales [groups, 32].  together: how many sums of two products can be added without
   overflow of 16 bits. */
typedef struct opdi_group_panel {
    const opdi_group_job *job;
    opdi_word32 *words;
    float *scales, *sums;        /* sums: [m + 1, 32], and room for the rest of a tile */
    int64_t together;
} opdi_group_panel;
/* Computes four rows of sums: the products of rows of x with the panel. */
typedef void opdi_group_tile_fn(const opdi_group_panel *panel, const uint8_t *const *x, float *sums);
#define OPDI_GROUP_ROWS(M) M(0) M(1) M(2) M(3)

OPDI_AVX2 static void opdi_group_tile_avx2(const opdi_group_panel *panel, const uint8_t *const *x, float *sums) {
    const int64_t words = panel->job->group / 4, groups = panel->job->k / panel->job->group;
    opdi_v16h ones;
    for (int lane = 0; lane < 16; lane++) { ones[lane] = 1; }
    for (int half = 0; half < OPDI_GROUP_PANEL; half += 8) {
        const opdi_word32 *at = panel->words + half;
#define OPDI_GROUP_FLOATS(i) s##i = {0},
        opdi_v8f OPDI_GROUP_ROWS(OPDI_GROUP_FLOATS) f, a;
        for (int64_t group = 0, word = 0; group < groups; group++) {
            const opdi_v8f scale = *(const opdi_v8f *)(const void *)(panel->scales + group * OPDI_GROUP_PANEL + half);
            const int64_t end = word + words;
#define OPDI_GROUP_WHOLES(i) c##i = {0},
            opdi_v8u OPDI_GROUP_ROWS(OPDI_GROUP_WHOLES) b;
            while (word < end) {
                const int64_t stop = OPDI_MIN(end, word + panel->together);
#define OPDI_GROUP_HALVES(i) h##i = {0},
                opdi_v16h OPDI_GROUP_ROWS(OPDI_GROUP_HALVES) part;
                for (; word < stop; word++, at += OPDI_GROUP_PANEL) {
                    b = *(const opdi_v8u *)(const void *)at;
#define OPDI_GROUP_ADD(i) \
                    OPDI_ASM_SPLAT("s", a, (const opdi_word32 *)(const void *)(x[i] + 4 * word)); \
                    OPDI_ASM_BYTES(part, a, b); \
                    h##i += part;
                    OPDI_GROUP_ROWS(OPDI_GROUP_ADD)
                }
#define OPDI_GROUP_JOIN(i) OPDI_ASM_JOIN(c##i, h##i, ones)
                OPDI_GROUP_ROWS(OPDI_GROUP_JOIN)
            }
#define OPDI_GROUP_SCALE(i) \
            OPDI_ASM_FLOATS(f, c##i); \
            OPDI_ASM_FMA("ps", s##i, f, scale);
            OPDI_GROUP_ROWS(OPDI_GROUP_SCALE)
        }
#define OPDI_GROUP_STORE(i) *(opdi_v8f *)(void *)(sums + (i) * OPDI_GROUP_PANEL + half) = s##i;
        OPDI_GROUP_ROWS(OPDI_GROUP_STORE)
    }
#undef OPDI_GROUP_FLOATS
#undef OPDI_GROUP_WHOLES
#undef OPDI_GROUP_HALVES
#undef OPDI_GROUP_ADD
#undef OPDI_GROUP_JOIN
#undef OPDI_GROUP_SCALE
#undef OPDI_GROUP_STORE
}
#if defined(OPDI_WORDS)
OPDI_AVX512 static void opdi_group_tile_quads(const opdi_group_panel *panel, const uint8_t *const *x, float *sums) {
    const int64_t words = panel->job->group / 4, groups = panel->job->k / panel->job->group;
    const opdi_word32 *at = panel->words;
#define OPDI_GROUP_FLOATS(i) s##i = {0}, t##i = {0},
    opdi_v16f OPDI_GROUP_ROWS(OPDI_GROUP_FLOATS) f;
    for (int64_t group = 0, word = 0; group < groups; group++) {
        const opdi_v16f *const scale = (const opdi_v16f *)(const void *)(panel->scales + group * OPDI_GROUP_PANEL);
        const int64_t end = word + words;
#define OPDI_GROUP_WHOLES(i) c##i = {0}, d##i = {0},
        opdi_v16u OPDI_GROUP_ROWS(OPDI_GROUP_WHOLES) a;
        for (; word < end; word++, at += OPDI_GROUP_PANEL) {
            const opdi_v16u *const b = (const opdi_v16u *)(const void *)at;
#define OPDI_GROUP_ADD(i) \
            OPDI_ASM_SPLAT("s", a, (const opdi_word32 *)(const void *)(x[i] + 4 * word)); \
            OPDI_ASM_QUADS(c##i, a, b[0]); \
            OPDI_ASM_QUADS(d##i, a, b[1]);
            OPDI_GROUP_ROWS(OPDI_GROUP_ADD)
        }
#define OPDI_GROUP_SCALE(i) \
        OPDI_ASM_FLOATS(f, c##i); \
        OPDI_ASM_FMA("ps", s##i, f, scale[0]); \
        OPDI_ASM_FLOATS(f, d##i); \
        OPDI_ASM_FMA("ps", t##i, f, scale[1]);
        OPDI_GROUP_ROWS(OPDI_GROUP_SCALE)
    }
#define OPDI_GROUP_STORE(i) \
    ((opdi_v16f *)(void *)(sums + (i) * OPDI_GROUP_PANEL))[0] = s##i; \
    ((opdi_v16f *)(void *)(sums + (i) * OPDI_GROUP_PANEL))[1] = t##i;
    OPDI_GROUP_ROWS(OPDI_GROUP_STORE)
#undef OPDI_GROUP_FLOATS
#undef OPDI_GROUP_WHOLES
#undef OPDI_GROUP_ADD
#undef OPDI_GROUP_SCALE
#undef OPDI_GROUP_STORE
}
#endif
#undef OPDI_GROUP_ROWS

/* Returns a number 2^i - 1 such that no element of w is below its negative minus 1, or above it. */
OPDI_AVX2 static int opdi_group_bits(const int8_t *w, int64_t count) {
    opdi_v32c some = {0};
    uint8_t bits = 0;
    int64_t i = 0;
    for (; i + 32 <= count; i += 32) {
        const opdi_v32c codes = *(const opdi_v32c *)(const void *)(w + i);
        some |= codes ^ (codes < 0);
    }
    for (int lane = 0; lane < 32; lane++) { bits |= (uint8_t)some[lane]; }
    for (; i < count; i++) { bits |= (uint8_t)(w[i] < 0 ? ~w[i] : w[i]); }
    for (int shift = 1; shift < 8; shift *= 2) { bits |= (uint8_t)(bits >> shift); }
    return bits;
}
/* Computes columns j .. j + count - 1 of the result. */
OPDI_AVX2 static void opdi_group_ends(const opdi_group_panel *panel, int64_t j, int64_t count) {
    const opdi_group_job *const job = panel->job;
    const float *const all = panel->sums + job->m * OPDI_GROUP_PANEL;        /* the row of ones: the sums of w */
    for (int64_t row = 0; row < job->m; row++) {
        const float scale = job->x_scales[row * job->step], zero = (float)job->x_zeros[row * job->step];
        const float *const sums = panel->sums + row * OPDI_GROUP_PANEL;
        float *const y = job->y + row * job->n + j;
        int64_t i = 0;
        for (; i + 8 <= count; i += 8) {
            const opdi_v8f less = *(const opdi_v8f *)(const void *)(all + i) * zero;
            opdi_v8f v = (*(const opdi_v8f *)(const void *)(sums + i) - less) * scale;
            if (job->bias) { v += *(const opdi_v8f *)(const void *)(job->bias + j + i); }
            *(opdi_v8f *)(void *)(y + i) = v;
        }
        for (; i < count; i++) {
            const float v = (sums[i] - zero * all[i]) * scale;
            y[i] = job->bias ? v + job->bias[j + i] : v;
        }
    }
}
static opdi_group_tile_fn *opdi_group_tile_of(bool *quads) {
#if defined(OPDI_WORDS)
    *quads = (opdi_cpu_words() & OPDI_HAS_QUADS) != 0;
    return *quads ? opdi_group_tile_quads : opdi_group_tile_avx2;
#else
    *quads = false;
    return opdi_group_tile_avx2;
#endif
}
/* Packs rows j .. j + count - 1 of w, and their scales.  The rest of the panel is zero. */
static void opdi_group_pack(const opdi_group_panel *panel, int64_t j, int64_t count) {
    const opdi_group_job *const job = panel->job;
    const int64_t words = job->k / 4, groups = job->k / job->group;
    if (count < OPDI_GROUP_PANEL) {
        memset(panel->words, 0, (size_t)(words * OPDI_GROUP_PANEL) * sizeof *panel->words);
        memset(panel->scales, 0, (size_t)(groups * OPDI_GROUP_PANEL) * sizeof *panel->scales);
    }
    opdi_pack_transposed((const opdi_word32 *)(const void *)(job->w + j * job->k), words, words, count,
                         OPDI_GROUP_PANEL, panel->words);
    opdi_pack_transposed((const opdi_word32 *)(const void *)(job->scales + j * groups), groups, groups, count,
                         OPDI_GROUP_PANEL, (opdi_word32 *)(void *)panel->scales);
}
/* An opdi_range_fn: computes the columns of the result of panels begin .. end - 1. */
static void opdi_group_panels(void *ctx, int64_t begin, int64_t end) {
    opdi_group_job *const job = (opdi_group_job *)ctx;
    const int64_t groups = job->k / job->group, m = job->m;
    const size_t words = (size_t)(job->k / 4 * OPDI_GROUP_PANEL), scales = (size_t)(groups * OPDI_GROUP_PANEL);
    const size_t bytes = 4 * (words + scales + (size_t)((m + OPDI_GROUP_TILE) * OPDI_GROUP_PANEL)) + 64;
    char *const memory = (char *)opdi_alloc(bytes);
    bool quads;
    opdi_group_tile_fn *const tile = opdi_group_tile_of(&quads);
    opdi_group_panel panel;
    if (!memory) {
        OPDI_STORE(&job->failed, 1);
        return;
    }
    panel.job = job;
    panel.words = (opdi_word32 *)(void *)(memory + (64 - (uintptr_t)memory % 64) % 64);
    panel.scales = (float *)(void *)(panel.words + words);
    panel.sums = panel.scales + scales;
    panel.together = job->together;
    for (int64_t at = begin; at < end; at++) {
        const int64_t j = at * OPDI_GROUP_PANEL, count = OPDI_MIN((int64_t)OPDI_GROUP_PANEL, job->n - j);
        opdi_group_pack(&panel, j, count);
        for (int64_t i = 0; i <= m; i += OPDI_GROUP_TILE) {
            const uint8_t *x[OPDI_GROUP_TILE];
            for (int64_t row = 0; row < OPDI_GROUP_TILE; row++) { x[row] = job->x + OPDI_MIN(i + row, m) * job->k; }
            tile(&panel, x, panel.sums + i * OPDI_GROUP_PANEL);
        }
        opdi_group_ends(&panel, j, count);
    }
    opdi_free(memory, bytes);
}
#endif
/* Computes *job.  Returns 1; 0 if the processor or the numbers do not suit it; or -1 if memory runs out. */
OPD_UNUSED OPDI_INTERNAL int opdi_byte_groups_product(opdi_group_job *job) {
#if defined(OPDI_X86)
    bool quads;
    if (opdi_cpu_level() == 0 || job->group % 4 || job->group > 32768) { return 0; }
    (void)opdi_group_tile_of(&quads);
    const int bits = quads ? 0 : opdi_group_bits(job->w, job->n * job->k);
    if (bits > 63) { return 0; }
    job->together = 32767 / (510 * (bits + 1));
    job->failed = 0;
    const int64_t panels = (job->n + OPDI_GROUP_PANEL - 1) / OPDI_GROUP_PANEL;
    const int64_t work = OPDI_MAX(job->k * (job->m + 8) * OPDI_GROUP_PANEL / 8, (int64_t)1);
    opdi_parallel_for(panels, OPDI_MAX((int64_t)1, 65536 / work), opdi_group_panels, job);
    return OPDI_LOAD(&job->failed) ? -1 : 1;
#else
    (void)job;
    return 0;
#endif
}
