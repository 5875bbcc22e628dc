/* The functions that unpack one block of weights (opdi_block_unpack_fn), and a row of such blocks. */

/* Returns the float16 in the two bytes at `at`. */
OPDI_TARGET OPDI_ALWAYS float OPDI_WIDE(block_half)(const uint8_t *at) {
#if OPDI_LEVEL > 0 && defined(OPDI_X86)
    const opdi_v4i half = {(int)opdi_u16_at(at), 0, 0, 0};
    opdi_v4f wide;
    __asm__("vcvtph2ps {%1, %0|%0, %1}" : "=x"(wide) : "x"(half));
    return wide[0];
#else
    return opdi_f16_at(at);
#endif
}
/* Unpacks 32 codes of four bits: the low bits of 16 bytes, then their high bits. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(unpack_nibbles)(const uint8_t *from, uint8_t *codes) {
    const uint64_t mask = UINT64_C(0x0f0f0f0f0f0f0f0f);
    uint64_t low[2], high[2];                     /* copied one by one: a load of both would wait for both stores */
    memcpy(low, from, sizeof low);
    for (int i = 0; i < 2; i++) { high[i] = low[i] >> 4 & mask; }
    for (int i = 0; i < 2; i++) { low[i] &= mask; }
    memcpy(codes, low, sizeof low);
    memcpy(codes + 16, high, sizeof high);
}
OPDI_TARGET static void OPDI_WIDE(unpack_q4_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    OPDI_WIDE(unpack_nibbles)(block + 2, codes);
    scales[0] = OPDI_WIDE(block_half)(block);
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_q4_1)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    OPDI_WIDE(unpack_q4_0)(block + 2, codes, scales, mins);
    scales[0] = OPDI_WIDE(block_half)(block);
    mins[0] = OPDI_WIDE(block_half)(block + 2);
}
/* Unpacks codes of five bits: the fifth bits are at `high`, the other bits at `low`.  Each byte of `high` is copied to
   eight bytes, of which each keeps its own bit, and becomes 16 if it is set. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(unpack_fives)(const uint8_t *high, const uint8_t *low, uint8_t *codes) {
    const uint64_t mask = UINT64_C(0x0f0f0f0f0f0f0f0f);
    uint64_t q[2], some[2], bits[4];
    memcpy(q, low, sizeof q);
#if OPDI_LEVEL > 0 && defined(OPDI_X86)
    const opdi_v8u places = {0, 0, 0x01010101u, 0x01010101u, 0x02020202u, 0x02020202u, 0x03030303u, 0x03030303u};
    const opdi_v4w each = {OPDI_BIT_OF_BYTE, OPDI_BIT_OF_BYTE, OPDI_BIT_OF_BYTE, OPDI_BIT_OF_BYTE};
    opdi_v8u spread;
    __asm__("vpbroadcastd {%1, %0|%0, %1}" : "=x"(spread) : "m"(*(const opdi_word32 *)(const void *)high));
    OPDI_ASM_LOOK_UP(spread, spread, places);
    const opdi_v32b set = (opdi_v32b)((opdi_v32b)(spread & (opdi_v8u)each) == (opdi_v32b)each) & 16;
    memcpy(bits, &set, sizeof bits);
#else
    for (int i = 0; i < 4; i++) {
        bits[i] = (high[i] * UINT64_C(0x0101010101010101) & OPDI_BIT_OF_BYTE) + UINT64_C(0x7f7f7f7f7f7f7f7f);
        bits[i] = bits[i] >> 3 & UINT64_C(0x1010101010101010);
    }
#endif
    for (int i = 0; i < 2; i++) { some[i] = (q[i] & mask) | bits[i]; }
    memcpy(codes, some, sizeof some);
    for (int i = 0; i < 2; i++) { some[i] = (q[i] >> 4 & mask) | bits[2 + i]; }
    memcpy(codes + 16, some, sizeof some);
}
OPDI_TARGET static void OPDI_WIDE(unpack_q5_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    OPDI_WIDE(unpack_fives)(block + 2, block + 6, codes);
    scales[0] = OPDI_WIDE(block_half)(block);
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_q5_1)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    OPDI_WIDE(unpack_fives)(block + 4, block + 8, codes);
    scales[0] = OPDI_WIDE(block_half)(block);
    mins[0] = OPDI_WIDE(block_half)(block + 2);
}
OPDI_TARGET static void OPDI_WIDE(unpack_q8_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    uint8_t out[32];
    memcpy(out, block + 2, sizeof out);
    for (int j = 0; j < 32; j++) { out[j] ^= 128; }
    memcpy(codes, out, sizeof out);
    scales[0] = OPDI_WIDE(block_half)(block);
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_q1_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    for (int i = 0; i < 16; i++) {
        const uint64_t bits = (block[2 + i] * UINT64_C(0x0101010101010101) & OPDI_BIT_OF_BYTE) +
            UINT64_C(0x7f7f7f7f7f7f7f7f), twos = bits >> 6 & UINT64_C(0x0202020202020202);
        memcpy(codes + 8 * i, &twos, sizeof twos);
    }
    for (int i = 0; i < 4; i++) { scales[i] = OPDI_WIDE(block_half)(block); }
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_q2_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    const int big = 1 - (int)(OPDI_BIT_OF_BYTE >> 63);       /* 1: the lowest address has the highest bits */
    for (int i = 0; i < 8; i++) {                 /* a byte in each half: its nibbles move apart, then their pairs */
        uint64_t pairs = block[2 + 2 * i + big] | (uint64_t)block[3 + 2 * i - big] << 32;
        pairs = (pairs >> 4 * big | pairs << (12 + 4 * big)) & UINT64_C(0x000f000f000f000f);
        pairs = (pairs >> 2 * big | pairs << (6 + 2 * big)) & UINT64_C(0x0303030303030303);
        memcpy(codes + 8 * i, &pairs, sizeof pairs);
    }
    for (int i = 0; i < 2; i++) { scales[i] = OPDI_WIDE(block_half)(block); }
    (void)mins;
}
/* Replaces `count` codes of four bits, a multiple of 16, by the codes of a table. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(unpack_by_table)(const uint8_t *table, int count, uint8_t *codes) {
#if OPDI_LEVEL > 0
    opdi_v16b all, some;
    memcpy(&all, table, sizeof all);
    for (int j = 0; j < count; j += 16) {
        memcpy(&some, codes + j, sizeof some);
        OPDI_ASM_LOOK_UP(some, all, some);
        memcpy(codes + j, &some, sizeof some);
    }
#else
    for (int j = 0; j < count; j++) { codes[j] = table[codes[j]]; }
#endif
}
OPDI_TARGET static void OPDI_WIDE(unpack_iq4_nl)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    OPDI_WIDE(unpack_q4_0)(block, codes, scales, mins);
    OPDI_WIDE(unpack_by_table)(opdi_block_curve, 32, codes);
}
OPDI_TARGET static void OPDI_WIDE(unpack_mxfp4)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    uint8_t whole[18] = {0};
    memcpy(whole + 2, block + 1, 16);
    OPDI_WIDE(unpack_q4_0)(whole, codes, scales, mins);
    OPDI_WIDE(unpack_by_table)(opdi_block_e2m1, 32, codes);
    scales[0] = opdi_mxfp4_scale(block[0]);
}
OPDI_TARGET static void OPDI_WIDE(unpack_nvfp4)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    const uint64_t mask = UINT64_C(0x0f0f0f0f0f0f0f0f);
    for (int group = 0; group < 4; group++) {
        uint64_t low;
        memcpy(&low, block + 4 + 8 * group, sizeof low);
        const uint64_t high = low >> 4 & mask;
        low &= mask;
        memcpy(codes + 16 * group, &low, sizeof low);
        memcpy(codes + 16 * group + 8, &high, sizeof high);
        scales[group] = opdi_nvfp4_scale(block[group]);
    }
    OPDI_WIDE(unpack_by_table)(opdi_block_e2m1, 64, codes);
    (void)mins;
}

/* Unpacks 256 codes of two bits. */
OPDI_TARGET static void OPDI_WIDE(unpack_twos)(const uint8_t *from, uint8_t *codes) {
    for (int half = 0; half < 2; half++) {
        uint8_t q[32], out[32];
        memcpy(q, from + 32 * half, sizeof q);
        for (int part = 0; part < 4; part++) {
            for (int j = 0; j < 32; j++) { out[j] = q[j] & 3; }
            for (int j = 0; j < 32; j++) { q[j] = q[j] >> 2; }
            memcpy(codes + 128 * half + 32 * part, out, sizeof out);
        }
    }
}
OPDI_TARGET static void OPDI_WIDE(unpack_q2_k)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    const float d = OPDI_WIDE(block_half)(block + 80), dmin = OPDI_WIDE(block_half)(block + 82);
    OPDI_WIDE(unpack_twos)(block + 16, codes);
    for (int i = 0; i < 16; i++) { scales[i] = d * (float)(block[i] & 15); }
    for (int i = 0; i < 16; i++) { mins[i] = -(dmin * (float)(block[i] >> 4)); }
}
OPDI_TARGET static void OPDI_WIDE(unpack_q3_k)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    const float d = OPDI_WIDE(block_half)(block + 108);
    uint8_t high[32], out[32];
    int8_t six[16];
    OPDI_WIDE(unpack_twos)(block + 32, codes);
    memcpy(high, block, sizeof high);
    for (int i = 0; i < 256; i += 32) {
        memcpy(out, codes + i, sizeof out);
        for (int j = 0; j < 32; j++) { out[j] |= (uint8_t)((high[j] & 1) << 2); }
        for (int j = 0; j < 32; j++) { high[j] = (uint8_t)(high[j] >> 1); }
        memcpy(codes + i, out, sizeof out);
    }
    opdi_q3_K_scales(block + 96, six);
    for (int i = 0; i < 16; i++) { scales[i] = d * (float)six[i]; }
    (void)mins;
}
/* Unpacks the scales and minima of Q4_K and Q5_K. */
OPDI_TARGET static void OPDI_WIDE(unpack_sixes)(const uint8_t *block, float *scales, float *mins) {
    const float d = OPDI_WIDE(block_half)(block), dmin = OPDI_WIDE(block_half)(block + 2);
    uint8_t all[16];
    opdi_q4_K_scales(block + 4, all, all + 8);
    for (int i = 0; i < 8; i++) { scales[i] = d * (float)all[i]; }
    for (int i = 0; i < 8; i++) { mins[i] = -(dmin * (float)all[8 + i]); }
}
/* Unpacks 256 codes of four bits: the low bits of 32 bytes, then their high bits, and so on. */
OPDI_TARGET static void OPDI_WIDE(unpack_fours)(const uint8_t *from, uint8_t *codes) {
    const uint64_t mask = UINT64_C(0x0f0f0f0f0f0f0f0f);
    for (int i = 0; i < 16; i++) {
        uint8_t *const to = codes + 64 * (i / 4) + 8 * (i % 4);
        uint64_t q;
        memcpy(&q, from + 8 * i, sizeof q);
        const uint64_t low = q & mask, high = q >> 4 & mask;
        memcpy(to, &low, sizeof low);
        memcpy(to + 32, &high, sizeof high);
    }
}
OPDI_TARGET static void OPDI_WIDE(unpack_q4_k)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    OPDI_WIDE(unpack_fours)(block + 16, codes);
    OPDI_WIDE(unpack_sixes)(block, scales, mins);
}
OPDI_TARGET static void OPDI_WIDE(unpack_q5_k)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    uint8_t high[32], out[32];
    OPDI_WIDE(unpack_fours)(block + 48, codes);
    memcpy(high, block + 16, sizeof high);
    for (int i = 0; i < 256; i += 32) {
        memcpy(out, codes + i, sizeof out);
        for (int j = 0; j < 32; j++) { out[j] |= (uint8_t)((high[j] & 1) << 4); }
        for (int j = 0; j < 32; j++) { high[j] = (uint8_t)(high[j] >> 1); }
        memcpy(codes + i, out, sizeof out);
    }
    OPDI_WIDE(unpack_sixes)(block, scales, mins);
}
OPDI_TARGET static void OPDI_WIDE(unpack_q6_k)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    const float d = OPDI_WIDE(block_half)(block + 208);
    const uint64_t fours = UINT64_C(0x0f0f0f0f0f0f0f0f), twos = UINT64_C(0x3030303030303030);
    for (int i = 0; i < 8; i++) {
        const uint8_t *const from = block + 64 * (i / 4) + 8 * (i % 4);
        uint8_t *const to = codes + 128 * (i / 4) + 8 * (i % 4);
        uint64_t first, second, h;
        memcpy(&first, from, sizeof first);
        memcpy(&second, from + 32, sizeof second);
        memcpy(&h, block + 128 + 8 * i, sizeof h);
        const uint64_t out[4] = {(first & fours) | (h << 4 & twos), (second & fours) | (h << 2 & twos),
            (first >> 4 & fours) | (h & twos), (second >> 4 & fours) | (h >> 2 & twos)};
        for (int part = 0; part < 4; part++) { memcpy(to + 32 * part, &out[part], sizeof out[part]); }
    }
    for (int i = 0; i < 16; i++) { scales[i] = d * (float)(int8_t)block[192 + i]; }
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_iq4_xs)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    const float d = OPDI_WIDE(block_half)(block);
    int8_t six[8];
    opdi_iq4_xs_scales(block, six);
    for (int i = 0; i < 8; i++) {
        OPDI_WIDE(unpack_nibbles)(block + 8 + 16 * i, codes + 32 * i);
        scales[i] = d * (float)six[i];
    }
    OPDI_WIDE(unpack_by_table)(opdi_block_curve, 256, codes);
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_tq2_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    OPDI_WIDE(unpack_twos)(block, codes);
    for (int i = 0; i < 8; i++) { scales[i] = OPDI_WIDE(block_half)(block + 64); }
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_tq1_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    uint8_t rest[64] = {0}, digits[64];
    memcpy(rest, block, 52);
    for (int n = 0; n < 5; n++) {                 /* the highest digit of a byte b is 3 b >> 8 */
        for (int j = 0; j < 64; j++) { digits[j] = (uint8_t)((rest[j] > 85) + (rest[j] > 170)); }
        for (int j = 0; j < 64; j++) { rest[j] = (uint8_t)(rest[j] + rest[j] + rest[j]); }
        memcpy(codes + 32 * n, digits, 32);
        memcpy(codes + 160 + 16 * n, digits + 32, 16);
        if (n < 4) { memcpy(codes + 240 + 4 * n, digits + 48, 4); }
    }
    for (int i = 0; i < 8; i++) { scales[i] = OPDI_WIDE(block_half)(block + 52); }
    (void)mins;
}

/* An opdi_block_floats_fn. */
OPDI_TARGET static void OPDI_WIDE(block_floats)(const opdi_block_form *form, const uint8_t *blocks, int64_t count,
                                                float *out) {
    const int shift = form->sub == 32 ? 5 : 4, off = form->offset;
    for (int64_t at = 0; at < count; at += form->elements, blocks += form->bytes) {
        uint8_t codes[256];
        float scales[16], mins[16] = {0};
        form->unpack(blocks, codes, scales, mins);
#if OPDI_LEVEL > 0 && defined(OPDI_X86)
        enum { LANES = sizeof(OPDI_V) / sizeof(float) };
        for (int i = 0; i < form->elements; i += LANES) {
            OPDI_V_INT some;
            OPDI_V f;
#if OPDI_LEVEL == 2
            __asm__("vpmovzxbd {%1, %0|%0, %1}" : "=v"(some) : "m"(*(const opdi_v16b *)(codes + i)));
#else
            __asm__("vpmovzxbd {%1, %0|%0, %1}" : "=x"(some) : "m"(*(const opdi_word64 *)(const void *)(codes + i)));
#endif
            some -= off;
            OPDI_ASM_FLOATS(f, some);
            *(OPDI_V *)(void *)(out + at + i) = f * scales[i >> shift] + mins[i >> shift];
        }
#else
        for (int i = 0; i < form->elements; i += 16) {
            const float scale = scales[i >> shift], min = mins[i >> shift];
            float to[16];
            for (int j = 0; j < 16; j++) { to[j] = (float)(codes[i + j] - off); }
            for (int j = 0; j < 16; j++) { to[j] = to[j] * scale + min; }
            memcpy(out + at + i, to, sizeof to);
        }
#endif
    }
}
/* An opdi_block_row_fn. */
OPDI_TARGET static float OPDI_WIDE(block_row_unpacked)(const opdi_block_form *form, int64_t k,
                                                       const opdi_block_row *row, const uint8_t *w) {
    float sum = 0, lanes[16] = {0};
    for (int64_t at = 0; at < k; at += form->elements, w += form->bytes) {
        uint8_t codes[256];
        float scales[16], mins[16];
        form->unpack(w, codes, scales, mins);
        for (int i = 0; i < form->elements; i += form->sub) {
            const int64_t sub = (at + i) / form->sub;
            const float d = row->d[(at + i) / form->chunk], scale = scales[i / form->sub] * d;
            int32_t whole[16];
            uint8_t some[16];
            int8_t q[16];
            memcpy(some, codes + i, sizeof some);
            memcpy(q, row->q + at + i, sizeof q);
            for (int j = 0; j < 16; j++) { whole[j] = (int16_t)(some[j] * q[j]); }
            if (form->sub == 32) {
                memcpy(some, codes + i + 16, sizeof some);
                memcpy(q, row->q + at + i + 16, sizeof q);
                for (int j = 0; j < 16; j++) { whole[j] += (int16_t)(some[j] * q[j]); }
            }
            for (int j = 0; j < 16; j++) { lanes[j] += (float)whole[j] * scale; }
            if (form->mins) { sum += mins[i / form->sub] * d * opdi_float(row->sums[sub]); }
            else { sum += (float)(int32_t)row->sums[sub] * scale; }
        }
    }
    for (int step = 8; step > 0; step /= 2) {
        for (int lane = 0; lane < step; lane++) { lanes[lane] += lanes[lane + step]; }
    }
    return lanes[0] + sum;
}

/* See opdi_block_form.  The rows have the order of opdi_block_forms_plain. */
#define OPDI_FORM(unpack) OPDI_WIDE(unpack), OPDI_WIDE(block_floats), OPDI_WIDE(block_row_unpacked)
static const opdi_block_form OPDI_WIDE(block_forms)[] = {
    /* dtype, elements, bytes, sub, chunk, offset, mins, together, functions */
    {OPD_Q8_0, 32, 34, 32, 32, 128, false, 1, OPDI_FORM(unpack_q8_0)},
    {OPD_Q4_0, 32, 18, 32, 32, 8, false, 8, OPDI_FORM(unpack_q4_0)},
    {OPD_Q4_1, 32, 20, 32, 32, 0, true, 8, OPDI_FORM(unpack_q4_1)},
    {OPD_Q5_0, 32, 22, 32, 32, 16, false, 4, OPDI_FORM(unpack_q5_0)},
    {OPD_Q5_1, 32, 24, 32, 32, 0, true, 4, OPDI_FORM(unpack_q5_1)},
    {OPD_Q1_0, 128, 18, 32, 32, 1, false, 8, OPDI_FORM(unpack_q1_0)},
    {OPD_Q2_0, 64, 18, 32, 32, 1, false, 8, OPDI_FORM(unpack_q2_0)},
    {OPD_IQ4_NL, 32, 18, 32, 32, 128, false, 1, OPDI_FORM(unpack_iq4_nl)},
    {OPD_MXFP4, 32, 17, 32, 32, 12, false, 4, OPDI_FORM(unpack_mxfp4)},
    {OPD_NVFP4, 64, 36, 16, 32, 12, false, 4, OPDI_FORM(unpack_nvfp4)},
    {OPD_Q2_K, 256, 84, 16, 256, 0, true, 4, OPDI_FORM(unpack_q2_k)},
    {OPD_Q3_K, 256, 110, 16, 256, 4, false, 4, OPDI_FORM(unpack_q3_k)},
    {OPD_Q4_K, 256, 144, 32, 256, 0, true, 8, OPDI_FORM(unpack_q4_k)},
    {OPD_Q5_K, 256, 176, 32, 256, 0, true, 4, OPDI_FORM(unpack_q5_k)},
    {OPD_Q6_K, 256, 210, 16, 256, 32, false, 2, OPDI_FORM(unpack_q6_k)},
    {OPD_IQ4_XS, 256, 136, 32, 256, 128, false, 1, OPDI_FORM(unpack_iq4_xs)},
    {OPD_TQ1_0, 256, 54, 32, 256, 1, false, 8, OPDI_FORM(unpack_tq1_0)},
    {OPD_TQ2_0, 256, 66, 32, 256, 1, false, 8, OPDI_FORM(unpack_tq2_0)}
};
#undef OPDI_FORM
