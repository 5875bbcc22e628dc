#include "kernels.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>words        products of bfloat16 and of 8-bit integers
//
//  Some processors multiply two bfloat16, or four 8-bit integers, in each 32-bit word of a vector by those of another
//  vector, and add the products to a float or an int32 (AVX512_BF16, AVX512_VNNI).  Intel's AMX does the same with
//  matrices of 16 x 16 words in eight large registers (tiles).  For all of these instructions, both operands are packed
//  as words.  A word has two or four consecutive steps of k.
//----------------------------------------------------------------------------------------------------------------------

#if defined(OPDI_DIVIDED)                           /* kernels.h declares it */
int opdi_words_known = -1;
#endif
#if defined(OPDI_WORDS)
/* Finds out which instructions for words the processor has, and stores the result in opdi_words_known.  If the
   environment has OPD_CPU_LEVEL, tiles and AVX-VNNI are not used. */
OPDI_NOINLINE static int opdi_words_detect(void) {
    const int level = opdi_cpu_features();
    uint32_t first[4], more[4] = {0, 0, 0, 0}, maker[4];
    int has = 0;
    if (level == 0) {
        OPDI_STORE(&opdi_words_known, has);
        return has;
    }
    opdi_cpu_leaf(0, 0, maker);
    opdi_cpu_leaf(7, 0, first);
    if (first[0] > 0) { opdi_cpu_leaf(7, 1, more); }
    if (level == 2 && more[0] >> 5 & 1) {         /* AVX512_BF16; Intel's processors take two cycles for it */
        has |= maker[1] == 0x756e6547 ? OPDI_HAS_PAIRS : OPDI_HAS_PAIRS | OPDI_HAS_FAST_PAIRS;        /* "Genu" */
    }
    if (level == 2 && first[2] >> 11 & 1) { has |= OPDI_HAS_QUADS; }          /* AVX512_VNNI */
#if defined(OPDI_FOURS)
    if (more[0] >> 4 & 1 && !getenv("OPD_CPU_LEVEL")) { has |= OPDI_HAS_FOURS; }
#endif
#if defined(OPDI_AMX)
    if ((first[3] >> 22 & 13u) == 13 && has & OPDI_HAS_PAIRS && has & OPDI_HAS_QUADS && !getenv("OPD_CPU_LEVEL")) {
        has |= OPDI_HAS_TILES;
    }
#endif
    OPDI_STORE(&opdi_words_known, has);
    return has;
}
#endif
#if defined(OPDI_DOT)
/* Finds out if the processor has the instructions of OPDI_ASM_DOT, and stores the result in opdi_words_known. */
OPDI_NOINLINE static int opdi_words_detect(void) {
#if defined(__ARM_FEATURE_DOTPROD)
    const int has = OPDI_HAS_QUADS;
#elif defined(__linux__)
    const int has = getauxval(AT_HWCAP) & 1ul << 20 ? OPDI_HAS_QUADS : 0;         /* HWCAP_ASIMDDP */
#else
    const int has = 0;
#endif
    OPDI_STORE(&opdi_words_known, has);
    return has;
}
#endif
/* Returns which instructions for words the kernels use: a sum of OPDI_HAS_PAIRS and so on. */
OPDI_INTERNAL int opdi_cpu_words(void) {
#if defined(OPDI_WORDS) || defined(OPDI_DOT)
    const int has = OPDI_LOAD(&opdi_words_known);
    return opdi_cpu_level() < OPDI_WIDEST(2, 2, 1) ? 0 : has >= 0 ? has : opdi_words_detect();
#else
    return 0;
#endif
}
/* Returns whether kernels at level 1 use AVX-VNNI (OPDI_ASM_FOURS): not if the environment has OPD_CPU_LEVEL, because
   then level 1 is AVX2. */
OPD_UNUSED OPDI_INTERNAL bool opdi_cpu_fours(void) {
#if defined(OPDI_WORDS) && defined(OPDI_FOURS)
    const int has = OPDI_LOAD(&opdi_words_known);
    return opdi_cpu_level() == 1 && ((has >= 0 ? has : opdi_words_detect()) & OPDI_HAS_FOURS) != 0;
#else
    return false;
#endif
}
/* Returns whether opdi_byte_tile_sums needs words of two int16, because the processor cannot multiply four bytes. */
OPD_UNUSED OPDI_INTERNAL bool opdi_byte_tiles_are_pairs(void) {
#if defined(OPDI_WORDS)
    return opdi_cpu_level() > 0 && !(opdi_cpu_words() & OPDI_HAS_QUADS) && !opdi_cpu_fours();
#else
    return false;
#endif
}
/* Returns true if tiles can be used.  The first call asks Linux for the permission, because a program that has it needs
   larger alternative signal stacks (sigaltstack). */
OPDI_INTERNAL bool opdi_cpu_tiles(void) {
#if defined(OPDI_AMX)
    const int has = opdi_cpu_words();
    long answer = 158;                            /* arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) */
    if (!(has & OPDI_HAS_TILES) || has & OPDI_HAS_PERMISSION) { return (has & OPDI_HAS_TILES) != 0; }
    __asm__ volatile("syscall" : "+a"(answer) : "D"(0x1023L), "S"(18L) : "rcx", "r11", "memory");
    OPDI_STORE(&opdi_words_known, answer == 0 ? has | OPDI_HAS_PERMISSION : has & ~OPDI_HAS_TILES);
    return answer == 0;
#else
    return false;
#endif
}
#if defined(OPDI_WORDS)

//== packing ===========================================================================================================

/* A matrix that is packed as words: of bfloat16, of floats that are representable in it, or of bytes.  Steps of k from
   `depth` on are packed as 0. */
typedef struct opdi_word_matrix {
    opdi_gemm_in in;                              /* the matrix */
    int64_t depth;
    uint32_t flip;                                /* words of bytes are packed as word ^ flip */
    opdi_pack_fn pack;                            /* packs a panel that has `ld` words in each row */
} opdi_word_matrix;

/* Packs elements of two rows of bfloat16.  The first row begins at `at`, the second one at at + rs, and their elements
   are `cs` apart.  out[j] gets element j of both rows, for all j < count.  If steps is 1, only the first row exists. */
OPDI_AVX512 static inline void opdi_pack_pair(const uint16_t *at, int64_t rs, int64_t cs, int64_t steps, int64_t count,
                                              uint32_t *out) {
    int64_t j = 0;
    for (; cs == 1 && steps == 2 && j + 32 <= count; j += 32) {
        uint32_t words[32];
        for (int lane = 0; lane < 32; lane++) { words[lane] = at[j + lane] | (uint32_t)at[j + lane + rs] << 16; }
        for (int lane = 0; lane < 32; lane++) { out[j + lane] = words[lane]; }
    }
    for (; j < count; j++) { out[j] = at[j * cs] | (steps == 2 ? (uint32_t)at[j * cs + rs] << 16 : 0); }
}
/* Does the same as opdi_pack_pair, for four rows of bytes.  Only the first `steps` rows exist. */
OPDI_AVX512 static inline void opdi_pack_quad(const uint8_t *at, int64_t rs, int64_t cs, int64_t steps, int64_t count,
                                              uint32_t *out) {
    int64_t j = 0;
    for (; cs == 1 && steps == 4 && j + 32 <= count; j += 32) {
        uint32_t words[32];
        const uint8_t *const p = at + j, *const p1 = p + rs, *const p2 = p1 + rs, *const p3 = p2 + rs;
        for (int lane = 0; lane < 32; lane++) { words[lane] = p[lane] | (uint32_t)p1[lane] << 8; }
        for (int lane = 0; lane < 32; lane++) { words[lane] |= (uint32_t)p2[lane] << 16 | (uint32_t)p3[lane] << 24; }
        for (int lane = 0; lane < 32; lane++) { out[j + lane] = words[lane]; }
    }
    for (; j < count; j++) {
        uint32_t word = 0;
        for (int64_t step = 0; step < steps; step++) { word |= (uint32_t)at[j * cs + step * rs] << 8 * step; }
        out[j] = word;
    }
}
/* Sets out[j] to word number `number` of column j0 + j, for all j < count. */
OPDI_AVX512 static inline void opdi_pack_word(const opdi_word_matrix *words, int64_t number, int64_t j0, int64_t count,
                                              uint32_t *out) {
    const int64_t rs = words->in.rs, cs = words->in.cs;
    if (words->in.dtype == OPD_BFLOAT16) {
        const int64_t step = 2 * number, steps = OPDI_MIN(2, words->depth - step);
        if (steps > 0) {
            opdi_pack_pair((const uint16_t *)words->in.data + step * rs + j0 * cs, rs, cs, steps, count, out);
            return;
        }
    } else {
        const int64_t step = 4 * number, steps = OPDI_MIN(4, words->depth - step);
        if (steps > 0) {
            opdi_pack_quad((const uint8_t *)words->in.data + step * rs + j0 * cs, rs, cs, steps, count, out);
            return;
        }
    }
    memset(out, 0, (size_t)count * 4);
}
/* An opdi_pack_fn for bfloat16 and bytes.  `ctx` is an opdi_word_matrix.  k0 and kc count words. */
static void opdi_pack_words(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t count, int64_t ld, void *out) {
    const opdi_word_matrix *const words = (const opdi_word_matrix *)ctx;
    const opdi_gemm_in *const in = &words->in;
    const int64_t size = in->dtype == OPD_BFLOAT16 ? 2 : 1, column = in->cs * size;
    uint32_t *const to = (uint32_t *)out;
    int64_t step = 0;
    if (in->rs == 1 && column % 4 == 0 && column != 0 && ((uintptr_t)in->data & 3) == 0) {
        step = OPDI_MIN(kc, words->depth * size / 4 - k0);
        opdi_pack_transposed((const opdi_word32 *)in->data + k0 + j0 * (column / 4), column / 4, step, count, ld,
                             (opdi_word32 *)out);
    }
    for (; step < kc; step++) { opdi_pack_word(words, k0 + step, j0, count, to + step * ld); }
    for (step = 0; words->flip && step < kc; step++) {
        for (int64_t j = 0; j < count; j++) { to[step * ld + j] ^= words->flip; }
    }
}
/* Packs panels `begin` to `end` - 1 of a B with contiguous rows.  Packs eight panels at a time, in order to read longer
   runs of memory. */
static void opdi_pack_word_panels(const opdi_gemm_job *job, int64_t begin, int64_t end) {
    const opdi_word_matrix *const words = (const opdi_word_matrix *)job->b.ctx;
    const int64_t nr = job->mk.nr;
    for (; begin < end; begin += 8) {
        const int64_t stop = OPDI_MIN(begin + 8, end);
        for (int64_t step = 0; step < job->kc; step++) {
            for (int64_t panel = begin; panel < stop; panel++) {
                const int64_t j = panel * nr;
                uint32_t *const to = (uint32_t *)(void *)job->bpack + j * job->kc + step * nr;
                opdi_pack_word(words, job->k0 + step, job->j0 + j, OPDI_MIN(nr, job->nc - j), to);
            }
        }
    }
}
/* An opdi_pack_fn for floats that are all representable in bfloat16.  Packs a few rows of floats first and then joins
   their upper halves to words. */
OPDI_AVX512 static void opdi_pack_exact(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t count, int64_t ld,
                                        void *out) {
    const opdi_word_matrix *const words = (const opdi_word_matrix *)ctx;
    opdi_word32 wide[64 * OPDI_MAX_NR], *to = (opdi_word32 *)out;
    for (int64_t begin = 0; begin < kc; begin += 32) {
        const int64_t part = OPDI_MIN(32, kc - begin), step = 2 * (k0 + begin);
        const int64_t steps = OPDI_MIN(2 * part, OPDI_MAX(0, words->depth - step));
        if (steps > 0) { opdi_pack_panel(&words->in, 4, step, steps, j0, count, ld, wide); }
        memset(wide + steps * ld, 0, (size_t)((2 * part - steps) * ld) * 4);
        for (int64_t word = 0; word < part; word++) {
            const opdi_word32 *first = wide + 2 * word * ld, *second = first + ld;
            for (int64_t j = 0; j < ld; j += 8, to += 8) {            /* ld is a multiple of eight */
                opdi_word32 both[8];
                for (int lane = 0; lane < 8; lane++) {
                    both[lane] = first[j + lane] >> 16 | (second[j + lane] & 0xffff0000u);
                }
                for (int lane = 0; lane < 8; lane++) { to[lane] = both[lane]; }
            }
        }
    }
}
/* Changes the operand *in to an operand of words.  *words must stay unchanged as long as *in is used. */
static void opdi_gemm_pack_as(opdi_gemm_in *in, opdi_word_matrix *words, int64_t depth, uint32_t flip) {
    words->in = *in;
    words->depth = depth;
    words->flip = flip;
    words->pack = in->exact ? opdi_pack_exact : opdi_pack_words;
    in->pack = words->pack;
    in->ctx = words;
    in->at = NULL;
}

//== tiles =============================================================================================================

#if defined(OPDI_AMX)
/* All eight tiles have 16 rows of 64 bytes. */
static const opdi_amx_config opdi_amx_whole = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64},
    {16, 16, 16, 16, 16, 16, 16, 16}};

/* An opdi_pack_fn: packs a panel of 32 rows of A for tiles.  Word number 16 * part + i of row r goes to
   out[(32 * part + r) * 16 + i].  kc is a multiple of 16. */
static void opdi_amx_pack(void *ctx, int64_t k0, int64_t kc, int64_t j0, int64_t count, int64_t ld, void *out) {
    const opdi_word_matrix *const words = (const opdi_word_matrix *)ctx;
    const opdi_gemm_in *const in = &words->in;
    const int64_t size = in->dtype == OPD_BFLOAT16 ? 2 : 1;
    for (int64_t part = 0; part < kc; part += 16) {
        opdi_word32 *const to = (opdi_word32 *)out + part * ld;
        if (in->rs != 1 || in->exact) {
            opdi_word32 turned[16 * OPDI_AMX_ROWS] = {0};
            words->pack(ctx, k0 + part, 16, j0, count, ld, turned);
            opdi_pack_transposed(turned, ld, ld, 16, 16, to);
            continue;
        }
        const int64_t bytes = OPDI_MAX(0, OPDI_MIN(64, words->depth * size - 4 * (k0 + part)));
        for (int64_t row = 0; row < count; row++) {
            const char *const from = (const char *)in->data + (j0 + row) * in->cs * size + 4 * (k0 + part);
            if (bytes == 64) { memcpy(to + 16 * row, from, 64); }
            else {
                memset(to + 16 * row, 0, 64);
                memcpy(to + 16 * row, from, (size_t)bytes);
            }
            for (int i = 0; words->flip && i < 16; i++) { to[16 * row + i] ^= words->flip; }
        }
    }
}
/* Computes 2 x 2 tiles of the current block of C, from row i and column j on.  `count` of their columns exist.  `panel`
   has these columns of B. */
static void opdi_amx_tiles(const opdi_gemm_job *job, int64_t i, int64_t j, int64_t count, const char *panel) {
    float local[OPDI_AMX_ROWS * OPDI_MAX_NR];
    const int64_t rows = OPDI_MIN(OPDI_AMX_ROWS, job->mc - i);
    const bool direct = rows == OPDI_AMX_ROWS && count == OPDI_MAX_NR && job->csc == 1;
    const int64_t step = (direct ? job->rsc : OPDI_MAX_NR) * 4;
    char *const to = direct ? job->c + ((job->i0 + i) * job->rsc + job->j0 + j) * 4 : (char *)local;
    const opdi_word_matrix *const words = (const opdi_word_matrix *)job->a.ctx;
    const int64_t size = words->in.dtype == OPD_BFLOAT16 ? 2 : 1, row = job->apack ? 64 : words->in.cs * size;
    const char *a = job->apack ? job->apack + i * job->kc * 4
        : (const char *)words->in.data + (job->i0 + i) * row + 4 * job->k0;
    if (direct && job->add) {
        OPDI_AMX_LOAD(0, to, step);
        OPDI_AMX_LOAD(1, to + 64, step);
        OPDI_AMX_LOAD(2, to + 16 * step, step);
        OPDI_AMX_LOAD(3, to + 16 * step + 64, step);
    } else {
        OPDI_AMX_ZERO(0);
        OPDI_AMX_ZERO(1);
        OPDI_AMX_ZERO(2);
        OPDI_AMX_ZERO(3);
    }
    /* Hardware does not prefetch so many rows that are read in place. */
    const char *const ahead = job->apack || i + 2 * OPDI_AMX_ROWS > job->mc ? NULL : a + OPDI_AMX_ROWS * row;
    for (int64_t k = 0; k < job->kc; k += 16, a += job->apack ? 2048 : 64, panel += 2048) {
        for (int next = 0; ahead && next < OPDI_AMX_ROWS; next++) { OPDI_PREFETCH(ahead + next * row + 4 * k); }
        OPDI_AMX_LOAD(4, a, row);
        OPDI_AMX_LOAD(5, a + 16 * row, row);
        OPDI_AMX_LOAD(6, panel, (int64_t)128);
        if (count <= 16 && job->dtype != OPD_INT32) {
            OPDI_AMX_PAIRS(0, 4, 6);
            OPDI_AMX_PAIRS(2, 5, 6);
            continue;
        }
        OPDI_AMX_LOAD(7, panel + 64, (int64_t)128);
        if (job->dtype == OPD_INT32) {
            OPDI_AMX_QUADS(0, 4, 6);
            OPDI_AMX_QUADS(1, 4, 7);
            OPDI_AMX_QUADS(2, 5, 6);
            OPDI_AMX_QUADS(3, 5, 7);
        } else {
            OPDI_AMX_PAIRS(0, 4, 6);
            OPDI_AMX_PAIRS(1, 4, 7);
            OPDI_AMX_PAIRS(2, 5, 6);
            OPDI_AMX_PAIRS(3, 5, 7);
        }
    }
    OPDI_AMX_STORE(0, to, step);
    OPDI_AMX_STORE(1, to + 64, step);
    OPDI_AMX_STORE(2, to + 16 * step, step);
    OPDI_AMX_STORE(3, to + 16 * step + 64, step);
    if (!direct) { opdi_gemm_store(job, local, job->i0 + i, job->j0 + j, rows, count); }
}
/* Does the work of opdi_gemm_blocks with tiles. */
static void opdi_amx_blocks(void *ctx, int64_t begin, int64_t end) {
    const opdi_gemm_job *const job = (const opdi_gemm_job *)ctx;
    const int64_t across = (job->nc - 1) / job->nb + 1;
    OPDI_AMX_CONFIGURE(&opdi_amx_whole);
    for (int64_t item = begin; item < end; item++) {
        const int64_t ib = item / across * job->mb, jb = item % across * job->nb;
        const int64_t ie = OPDI_MIN(ib + job->mb, job->mc), je = OPDI_MIN(jb + job->nb, job->nc);
        for (int64_t j = jb; j < je; j += OPDI_MAX_NR) {
            for (int64_t i = ib; i < ie; i += OPDI_AMX_ROWS) {
                opdi_amx_tiles(job, i, j, OPDI_MIN(OPDI_MAX_NR, job->nc - j), job->bpack + j * job->kc * 4);
            }
        }
    }
    OPDI_AMX_RELEASE();
}
#endif

//== products ==========================================================================================================

#if defined(OPDI_AMX)
/* Chooses tiles for *job, whose operands have words of `steps` steps, if the sizes suit them.  If A has few rows, the
   sides change places: the long side is then read once, in memory if possible.  Returns true if it has chosen them. */
static bool opdi_amx_choose(opdi_gemm_job *job, int64_t *rows, int64_t *count, int64_t words) {
    /* Tiles of bytes take A without signs and B with signs, so only pairs can be turned. */
    const bool turned = *rows <= OPDI_AMX_ROWS && *rows < *count && job->a.rs == 1 && job->b.rs == 1 &&
        job->dtype == OPD_FLOAT32;
    if (OPDI_MAX(*rows, *count) < 16 || OPDI_MIN(*rows, *count) <= OPDI_FEW_TILES || words < 16 ||
        (*rows < 16 && !turned) || !opdi_cpu_tiles()) { return false; }
    if (turned) {
        const opdi_gemm_in a = job->a;
        const int64_t n = *rows, rsc = job->rsc;
        job->a = job->b;
        job->b = a;
        job->rsc = job->csc;
        job->csc = rsc;
        *rows = *count;
        *count = n;
    }
    job->mk.mr = OPDI_AMX_ROWS;
    /* 256: a panel of B then fills two thirds of the first cache.  A long side that is read in place is read in longer
       pieces. */
    job->mk.kc = turned ? OPDI_AMX_LONG : 256;
    job->compute = opdi_amx_blocks;
    return true;
}
#endif
/* Computes the product of *job, whose operands are packed as words of `steps` steps.  Words of A are packed as
   word ^ flip.  Returns 1, or 0 if pairs of bfloat16 are slower than floats, or -1 if memory runs out. */
static int opdi_gemm_words(opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth, int steps, uint32_t flip) {
    opdi_word_matrix left, right;
    int64_t words = (depth + steps - 1) / steps;
#if defined(OPDI_AMX)
    const bool tiles = opdi_amx_choose(job, &rows, &count, words);
#else
    const bool tiles = false;
#endif
    if (steps == 2 && !tiles && !(opdi_cpu_words() & OPDI_HAS_FAST_PAIRS)) { return 0; }
    if (!job->b.exact && job->b.cs == 1) { job->pack_panels = opdi_pack_word_panels; }
    opdi_gemm_pack_as(&job->a, &left, depth, flip);
    opdi_gemm_pack_as(&job->b, &right, depth, 0);
#if defined(OPDI_AMX)
    if (tiles) {
        const bool in_place = count <= 64 && rows % OPDI_AMX_ROWS == 0 && depth % (16 * steps) == 0 && !flip &&
            left.in.rs == 1 && !left.in.exact;
        words = opdi_round_up(words, 16);
        job->a.pack = in_place ? NULL : opdi_amx_pack;
    }
#endif
    return opdi_gemm_blocked(job, rows, count, words) ? -1 : 1;
}

/* Adds 32 int8 to as many sums. */
static inline void opdi_byte_add(uint32_t *sums, const int8_t *from) {
    for (int lane = 0; lane < 32; lane++) {
        const int32_t number = from[lane];
        sums[lane] += (uint32_t)number;
    }
}
/* Sets sums[j] to the sum of the int8 in column j of a matrix of `depth` rows, times -128, for all j < count. */
OPDI_AVX512 static void opdi_byte_sums(const opdi_gemm_in *in, int64_t depth, int64_t count, uint32_t *sums) {
    int64_t j = 0;
    for (; in->cs == 1 && j + 32 <= count; j += 32) {
        const int8_t *row = (const int8_t *)in->data + j;
        uint32_t lanes[32] = {0};
        for (int64_t step = 0; step < depth; step++, row += in->rs) { opdi_byte_add(lanes, row); }
        for (int lane = 0; lane < 32; lane++) { sums[j + lane] = lanes[lane] * (uint32_t)-128; }
    }
    for (; j < count; j++) {
        const int8_t *const column = (const int8_t *)in->data + j * in->cs;
        uint32_t lanes[32] = {0};
        int64_t step = 0;
        for (; in->rs == 1 && step + 32 <= depth; step += 32) { opdi_byte_add(lanes, column + step); }
        for (; step < depth; step++) {
            const int32_t number = column[step * in->rs];
            lanes[0] += (uint32_t)number;
        }
        for (int lane = 1; lane < 32; lane++) { lanes[0] += lanes[lane]; }
        sums[j] = lanes[0] * (uint32_t)-128;
    }
}

#define OPDI_QUADS_ROWS(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7)
#define OPDI_QUADS_INIT(i) \
    const opdi_word32 *const p##i = (const opdi_word32 *)rows[i]; \
    opdi_v16u c##i = {0}, d##i = {0};
#define OPDI_QUADS_STEP(i) { \
        opdi_v16u word; \
        OPDI_ASM_SPLAT("s", word, p##i + at); \
        OPDI_ASM_QUADS(c##i, word, b0); \
        OPDI_ASM_QUADS(d##i, word, b1); \
    }
#define OPDI_QUADS_STORE(i) { \
        opdi_v16u *const to = (opdi_v16u *)(void *)((uint32_t *)cv + i * ldc); \
        if (add) { c##i += to[0]; d##i += to[1]; } \
        to[0] = c##i; \
        to[1] = d##i; \
    }
/* An opdi_micro_fn that computes an int32 tile of a product of uint8 and int8. */
OPDI_AVX512 static void opdi_micro_quads(int64_t kc, const void *const *rows, int64_t csa, const void *bv, int64_t ldb,
                                         void *cv, int64_t ldc, int add) {
    const uint32_t *b = (const uint32_t *)bv;
    OPDI_QUADS_ROWS(OPDI_QUADS_INIT)
    for (int64_t step = 0, at = 0; step < kc; step++, at += csa, b += ldb) {
        const opdi_v16u b0 = *(const opdi_v16u *)(const void *)b, b1 = *(const opdi_v16u *)(const void *)(b + 16);
        OPDI_QUADS_ROWS(OPDI_QUADS_STEP)
    }
    OPDI_QUADS_ROWS(OPDI_QUADS_STORE)
}
#undef OPDI_QUADS_ROWS
#undef OPDI_QUADS_INIT
#undef OPDI_QUADS_STEP
#undef OPDI_QUADS_STORE
/* Four rows and 16 columns of sums, in two vectors of AVX2 for each row: OPDI_AVX2_SUMS_FOUR(M) repeats M. */
#define OPDI_AVX2_SUMS_FOUR(M) M(0) M(1) M(2) M(3)
#define OPDI_AVX2_SUMS_INIT(i) \
    const opdi_word32 *const p##i = (const opdi_word32 *)rows[i]; \
    opdi_v8u c##i = {0}, d##i = {0};
#define OPDI_AVX2_SUMS_STORE(i) { \
        opdi_v8u *const to = (opdi_v8u *)(void *)(sums + i * ld); \
        if (add) { c##i += to[0]; d##i += to[1]; } \
        to[0] = c##i; \
        to[1] = d##i; \
    }
/* An opdi_short_sums_fn computes sums of four rows of `words` words and 16 columns, or adds to them: sums [4, ld].  The
   words of the panel are `side` words apart.  sums and the panel are aligned to 32 bytes. */
typedef void opdi_short_sums_fn(int64_t words, const void *const *rows, const void *panel, int64_t side, uint32_t *sums,
                                int64_t ld, bool add);
#if defined(OPDI_FOURS)
#define OPDI_FOURS_STEP(i) { \
        opdi_v8u word; \
        OPDI_ASM_SPLAT("s", word, p##i + step); \
        OPDI_ASM_FOURS(c##i, word, b0); \
        OPDI_ASM_FOURS(d##i, word, b1); \
    }
/* An opdi_short_sums_fn for words of four bytes. */
OPDI_FOURS OPDI_INTERNAL void opdi_micro_fours(int64_t words, const void *const *rows, const void *panel, int64_t side,
                                               uint32_t *sums, int64_t ld, bool add) {
    const uint32_t *b = (const uint32_t *)panel;
    OPDI_AVX2_SUMS_FOUR(OPDI_AVX2_SUMS_INIT)
    for (int64_t step = 0; step < words; step++, b += side) {
        const opdi_v8u b0 = *(const opdi_v8u *)(const void *)b, b1 = *(const opdi_v8u *)(const void *)(b + 8);
        OPDI_AVX2_SUMS_FOUR(OPDI_FOURS_STEP)
    }
    OPDI_AVX2_SUMS_FOUR(OPDI_AVX2_SUMS_STORE)
}
#undef OPDI_FOURS_STEP
#endif
#define OPDI_PAIRS_STEP(i) { \
        opdi_v8u word, part; \
        OPDI_ASM_SPLAT("s", word, p##i + step); \
        OPDI_ASM_WHOLES(part, word, b0); \
        c##i += part; \
        OPDI_ASM_WHOLES(part, word, b1); \
        d##i += part; \
    }
/* An opdi_short_sums_fn for words of two int16. */
OPDI_AVX2 OPDI_INTERNAL void opdi_micro_short_pairs(int64_t words, const void *const *rows, const void *panel,
                                                    int64_t side, uint32_t *sums, int64_t ld, bool add) {
    const uint32_t *b = (const uint32_t *)panel;
    OPDI_AVX2_SUMS_FOUR(OPDI_AVX2_SUMS_INIT)
    for (int64_t step = 0; step < words; step++, b += side) {
        const opdi_v8u b0 = *(const opdi_v8u *)(const void *)b, b1 = *(const opdi_v8u *)(const void *)(b + 8);
        OPDI_AVX2_SUMS_FOUR(OPDI_PAIRS_STEP)
    }
    OPDI_AVX2_SUMS_FOUR(OPDI_AVX2_SUMS_STORE)
}
#undef OPDI_PAIRS_STEP
#undef OPDI_AVX2_SUMS_FOUR
#undef OPDI_AVX2_SUMS_INIT
#undef OPDI_AVX2_SUMS_STORE
/* Does the work of opdi_byte_tile_sums with AVX2: micro multiplies the words of the tile. */
static void opdi_byte_tile_by_fours(const opdi_byte_tile *tile, opdi_short_sums_fn *micro, int32_t *sums) {
    const int8_t *b = tile->b;
    for (int64_t run = 0; run < tile->runs; run++, b += tile->parts * 2048) {
        for (int64_t row = 0; row < OPDI_BYTE_SIDE; row += 4) {
            const void *rows[4];
            uint32_t *const to = (uint32_t *)(void *)sums + row * OPDI_BYTE_SIDE;
            for (int64_t i = 0; i < 4; i++) { rows[i] = tile->a + tile->offsets[run] + tile->places[row + i]; }
            micro(tile->words, rows, b, OPDI_BYTE_SIDE, to, OPDI_BYTE_SIDE, run > 0);
            micro(tile->words, rows, b + 64, OPDI_BYTE_SIDE, to + 16, OPDI_BYTE_SIDE, run > 0);
        }
    }
}
/* Begins and ends the use of opdi_byte_tile_sums by a thread.  Returns whether it uses tiles. */
OPD_UNUSED OPDI_INTERNAL bool opdi_byte_tiles_begin(void) {
#if defined(OPDI_AMX)
    if (opdi_cpu_tiles()) {
        OPDI_AMX_CONFIGURE(&opdi_amx_whole);
        return true;
    }
#endif
    return false;
}
OPD_UNUSED OPDI_INTERNAL void opdi_byte_tiles_end(bool tiles) {
#if defined(OPDI_AMX)
    if (tiles) { OPDI_AMX_RELEASE(); }
#else
    (void)tiles;
#endif
}
/* Sets sums [32, 32], which are aligned to 64 bytes, to the sums of a tile. */
OPD_UNUSED OPDI_INTERNAL void opdi_byte_tile_sums(const opdi_byte_tile *tile, bool tiles, int32_t *sums) {
    const int8_t *b = tile->b;
#if defined(OPDI_AMX)
    if (tiles) {
        OPDI_AMX_ZERO(0);
        OPDI_AMX_ZERO(1);
        OPDI_AMX_ZERO(2);
        OPDI_AMX_ZERO(3);
        for (int64_t run = 0; run < tile->runs; run++) {
            const uint8_t *a = tile->a + tile->offsets[run];
            for (int64_t part = 0; part < tile->parts; part++, a += 64, b += 2048) {
                OPDI_AMX_LOAD(4, a, tile->step);
                OPDI_AMX_LOAD(5, a + 16 * tile->step, tile->step);
                OPDI_AMX_LOAD(6, b, (int64_t)128);
                OPDI_AMX_LOAD(7, b + 64, (int64_t)128);
                OPDI_AMX_QUADS(0, 4, 6);
                OPDI_AMX_QUADS(1, 4, 7);
                OPDI_AMX_QUADS(2, 5, 6);
                OPDI_AMX_QUADS(3, 5, 7);
            }
        }
        OPDI_AMX_STORE(0, sums, (int64_t)128);
        OPDI_AMX_STORE(1, sums + 16, (int64_t)128);
        OPDI_AMX_STORE(2, sums + 512, (int64_t)128);
        OPDI_AMX_STORE(3, sums + 528, (int64_t)128);
        return;
    }
#endif
    (void)tiles;
    if (opdi_byte_tiles_are_pairs()) {
        opdi_byte_tile_by_fours(tile, opdi_micro_short_pairs, sums);
        return;
    }
#if defined(OPDI_FOURS)
    if (opdi_cpu_level() < 2) {
        opdi_byte_tile_by_fours(tile, opdi_micro_fours, sums);
        return;
    }
#endif
    for (int64_t run = 0; run < tile->runs; run++, b += tile->parts * 2048) {
        for (int64_t row = 0; row < OPDI_BYTE_SIDE; row += 8) {
            const void *rows[8];
            for (int64_t i = 0; i < 8; i++) { rows[i] = tile->a + tile->offsets[run] + tile->places[row + i]; }
            opdi_micro_quads(tile->words, rows, 1, b, OPDI_BYTE_SIDE, sums + row * OPDI_BYTE_SIDE, OPDI_BYTE_SIDE,
                             run > 0);
        }
    }
}
static bool opdi_gemm_is_short(const opdi_gemm_in *in, int64_t rows) {
    return (in->dtype == OPD_BFLOAT16 && !in->pack) || (in->exact && rows >= 16);
}
#endif

/* Computes the product of *job with instructions for pairs of bfloat16.  Returns 1, or 0 if the operands or the
   processor do not suit them, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_gemm_pairs_try(opdi_gemm_job *job, int64_t rows, int64_t count, int64_t depth) {
#if defined(OPDI_WORDS)
    if (opdi_gemm_is_short(&job->a, rows) && opdi_gemm_is_short(&job->b, rows) &&
        opdi_cpu_words() & OPDI_HAS_PAIRS) {
        const opdi_micro floats = job->mk;
        job->mk.run = opdi_micro_pairs_avx512_f32;
        const int done = opdi_gemm_words(job, rows, count, depth, 2, 0);
        if (done) { return done; }
        job->mk = floats;
    }
#else
    (void)job;
    (void)rows;
    (void)count;
    (void)depth;
#endif
    return 0;
}
/* Returns whether opdi_gemm_bytes_try computes products. */
OPD_UNUSED OPDI_INTERNAL bool opdi_gemm_bytes_are_fast(void) {
#if defined(OPDI_WORDS)
    return (opdi_cpu_words() & OPDI_HAS_QUADS) != 0;
#else
    return false;
#endif
}
/* Returns whether opdi_byte_tile_sums computes sums.  In the mode of same bits it does not, because other machines have
   no such code, and sums of floats are rounded. */
OPD_UNUSED OPDI_INTERNAL bool opdi_byte_tiles_are_fast(void) {
    return !opd_same_bits() && (opdi_gemm_bytes_are_fast() || opdi_cpu_fours() || opdi_byte_tiles_are_pairs());
}
/* Computes a product of 8-bit integers with instructions for four of them.  `left` [rows, depth] has the dtype int8 or
   uint8, `right` [depth, count] int8.  The result `product` [rows, count] is contiguous; sums wrap.  Returns 1, or 0 if
   the processor lacks these instructions, or -1 if memory runs out. */
OPD_UNUSED OPDI_INTERNAL int opdi_gemm_bytes_try(int64_t rows, int64_t count, int64_t depth, const opdi_gemm_in *left,
                                                 const opdi_gemm_in *right, int32_t *product) {
#if defined(OPDI_WORDS)
    if (!opdi_gemm_bytes_are_fast()) { return 0; }
    if (rows == 0 || count == 0) { return 1; }
    opdi_gemm_job job;
    memset(&job, 0, sizeof job);
    const bool minus = left->dtype == OPD_INT8;
    if (depth == 0 || minus) {
        /* The instructions take A without signs.  So 128 is added to its elements (flipping the highest bit does that),
           and C begins with what this adds to the result, negated. */
        opdi_byte_sums(right, depth, count, (uint32_t *)product);
        for (int64_t i = 1; i < rows; i++) { memcpy(product + i * count, product, (size_t)count * 4); }
        if (depth == 0) { return 1; }
    }
    const opdi_micro quads = {opdi_micro_quads, 8, 32, 576, NULL, NULL};
    job.mk = quads;
    job.dtype = OPD_INT32;
    job.size = 4;
    job.a = *left;
    job.a.rs = left->cs;
    job.a.cs = left->rs;
    job.b = *right;
    job.c = (char *)product;
    job.rsc = count;
    job.csc = 1;
    job.add = minus;
    return opdi_gemm_words(&job, rows, count, depth, 4, minus ? 0x80808080u : 0);
#else
    (void)rows;
    (void)count;
    (void)depth;
    (void)left;
    (void)right;
    (void)product;
    return 0;
#endif
}
