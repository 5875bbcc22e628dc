/* The functions that unpack one block of weights (opdi_block_unpack_fn), and a row of such blocks. */

OPDI_TARGET static void OPDI_WIDE(unpack_q4_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    uint8_t q[16], out[32];
    memcpy(q, block + 2, sizeof q);
    for (int j = 0; j < 16; j++) { out[j] = q[j] & 15; }
    for (int j = 0; j < 16; j++) { out[16 + j] = (uint8_t)(q[j] >> 4); }
    memcpy(codes, out, sizeof out);
    scales[0] = opdi_f16_at(block);
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_q4_1)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    OPDI_WIDE(unpack_q4_0)(block + 2, codes, scales, mins);
    scales[0] = opdi_f16_at(block);
    mins[0] = opdi_f16_at(block + 2);
}
/* Unpacks codes of five bits: the fifth bits are at `high`, the other bits at `low`. */
OPDI_TARGET static void OPDI_WIDE(unpack_fives)(const uint8_t *high, const uint8_t *low, uint8_t *codes) {
    uint8_t q[16], h[4], bits[32], out[32];
    memcpy(q, low, sizeof q);
    memcpy(h, high, sizeof h);
    for (int j = 0; j < 32; j++) { bits[j] = h[j / 8]; }
    for (int j = 0; j < 32; j++) { bits[j] &= (uint8_t)(1 << (j & 7)); }
    for (int j = 0; j < 32; j++) { bits[j] = bits[j] ? 16 : 0; }
    for (int j = 0; j < 16; j++) { out[j] = (uint8_t)((q[j] & 15) | bits[j]); }
    for (int j = 0; j < 16; j++) { out[16 + j] = (uint8_t)(q[j] >> 4 | bits[16 + j]); }
    memcpy(codes, out, sizeof out);
}
OPDI_TARGET static void OPDI_WIDE(unpack_q5_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    OPDI_WIDE(unpack_fives)(block + 2, block + 6, codes);
    scales[0] = opdi_f16_at(block);
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_q5_1)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    OPDI_WIDE(unpack_fives)(block + 4, block + 8, codes);
    scales[0] = opdi_f16_at(block);
    mins[0] = opdi_f16_at(block + 2);
}
OPDI_TARGET static void OPDI_WIDE(unpack_q8_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    uint8_t out[32];
    memcpy(out, block + 2, sizeof out);
    for (int j = 0; j < 32; j++) { out[j] ^= 128; }
    memcpy(codes, out, sizeof out);
    scales[0] = opdi_f16_at(block);
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_q1_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    for (int i = 0; i < 128; i++) { codes[i] = (uint8_t)((block[2 + i / 8] >> i % 8 & 1) << 1); }
    for (int i = 0; i < 4; i++) { scales[i] = opdi_f16_at(block); }
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_q2_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    for (int i = 0; i < 64; i++) { codes[i] = block[2 + i / 4] >> 2 * (i % 4) & 3; }
    for (int i = 0; i < 2; i++) { scales[i] = opdi_f16_at(block); }
    (void)mins;
}
/* Replaces `count` codes of four bits, a multiple of 32, by those of a table. */
OPDI_TARGET static void OPDI_WIDE(unpack_by_table)(const uint8_t *table, int count, uint8_t *codes) {
    for (int j = 0; j < count; j++) { codes[j] = table[codes[j]]; }
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
    for (int group = 0; group < 4; group++) {
        for (int j = 0; j < 8; j++) {
            codes[16 * group + j] = opdi_block_e2m1[block[4 + 8 * group + j] & 15];
            codes[16 * group + 8 + j] = opdi_block_e2m1[block[4 + 8 * group + j] >> 4];
        }
        scales[group] = opdi_nvfp4_scale(block[group]);
    }
    (void)mins;
}

/* Unpacks 256 codes of two bits. */
OPDI_TARGET static void OPDI_WIDE(unpack_twos)(const uint8_t *from, uint8_t *codes) {
    for (int half = 0; half < 2; half++) {
        uint8_t q[32], out[128];
        memcpy(q, from + 32 * half, sizeof q);
        for (int j = 0; j < 32; j++) { out[j] = q[j] & 3; }
        for (int j = 0; j < 32; j++) { out[32 + j] = q[j] >> 2 & 3; }
        for (int j = 0; j < 32; j++) { out[64 + j] = q[j] >> 4 & 3; }
        for (int j = 0; j < 32; j++) { out[96 + j] = (uint8_t)(q[j] >> 6); }
        memcpy(codes + 128 * half, out, sizeof out);
    }
}
OPDI_TARGET static void OPDI_WIDE(unpack_q2_k)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    const float d = opdi_f16_at(block + 80), dmin = opdi_f16_at(block + 82);
    OPDI_WIDE(unpack_twos)(block + 16, codes);
    for (int i = 0; i < 16; i++) { scales[i] = d * (float)(block[i] & 15); }
    for (int i = 0; i < 16; i++) { mins[i] = -(dmin * (float)(block[i] >> 4)); }
}
OPDI_TARGET static void OPDI_WIDE(unpack_q3_k)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    const float d = opdi_f16_at(block + 108);
    uint8_t high[32], out[256];
    int8_t six[16];
    OPDI_WIDE(unpack_twos)(block + 32, out);
    memcpy(high, block, sizeof high);
    for (int i = 0; i < 256; i += 32) {
        for (int j = 0; j < 32; j++) { out[i + j] |= (uint8_t)((high[j] & 1) << 2); }
        for (int j = 0; j < 32; j++) { high[j] = (uint8_t)(high[j] >> 1); }
    }
    memcpy(codes, out, sizeof out);
    opdi_q3_K_scales(block + 96, six);
    for (int i = 0; i < 16; i++) { scales[i] = d * (float)six[i]; }
    (void)mins;
}
/* Unpacks the scales and minima of Q4_K and Q5_K. */
OPDI_TARGET static void OPDI_WIDE(unpack_sixes)(const uint8_t *block, float *scales, float *mins) {
    const float d = opdi_f16_at(block), dmin = opdi_f16_at(block + 2);
    uint8_t all[16];
    opdi_q4_K_scales(block + 4, all, all + 8);
    for (int i = 0; i < 8; i++) { scales[i] = d * (float)all[i]; }
    for (int i = 0; i < 8; i++) { mins[i] = -(dmin * (float)all[8 + i]); }
}
/* Unpacks 256 codes of four bits: the low bits of 32 bytes, then their high bits, and so on. */
OPDI_TARGET static void OPDI_WIDE(unpack_fours)(const uint8_t *from, uint8_t *codes) {
    for (int i = 0; i < 4; i++) {
        uint8_t q[32], out[64];
        memcpy(q, from + 32 * i, sizeof q);
        for (int j = 0; j < 32; j++) { out[j] = q[j] & 15; }
        for (int j = 0; j < 32; j++) { out[32 + j] = (uint8_t)(q[j] >> 4); }
        memcpy(codes + 64 * i, out, sizeof out);
    }
}
OPDI_TARGET static void OPDI_WIDE(unpack_q4_k)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    OPDI_WIDE(unpack_fours)(block + 16, codes);
    OPDI_WIDE(unpack_sixes)(block, scales, mins);
}
OPDI_TARGET static void OPDI_WIDE(unpack_q5_k)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    uint8_t high[32], out[256];
    OPDI_WIDE(unpack_fours)(block + 48, out);
    memcpy(high, block + 16, sizeof high);
    for (int i = 0; i < 256; i += 32) {
        for (int j = 0; j < 32; j++) { out[i + j] |= (uint8_t)((high[j] & 1) << 4); }
        for (int j = 0; j < 32; j++) { high[j] = (uint8_t)(high[j] >> 1); }
    }
    memcpy(codes, out, sizeof out);
    OPDI_WIDE(unpack_sixes)(block, scales, mins);
}
OPDI_TARGET static void OPDI_WIDE(unpack_q6_k)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    const float d = opdi_f16_at(block + 208);
    for (int half = 0; half < 2; half++) {
        uint8_t l[64], h[32], out[128];
        memcpy(l, block + 64 * half, sizeof l);
        memcpy(h, block + 128 + 32 * half, sizeof h);
        for (int j = 0; j < 32; j++) { out[j] = (uint8_t)((l[j] & 15) | (h[j] & 3) << 4); }
        for (int j = 0; j < 32; j++) { out[32 + j] = (uint8_t)((l[32 + j] & 15) | (h[j] & 12) << 2); }
        for (int j = 0; j < 32; j++) { out[64 + j] = (uint8_t)(l[j] >> 4 | (h[j] & 48)); }
        for (int j = 0; j < 32; j++) { out[96 + j] = (uint8_t)(l[32 + j] >> 4 | (h[j] & 192) >> 2); }
        memcpy(codes + 128 * half, out, sizeof out);
    }
    for (int i = 0; i < 16; i++) { scales[i] = d * (float)(int8_t)block[192 + i]; }
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_iq4_xs)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    const float d = opdi_f16_at(block);
    int8_t six[8];
    opdi_iq4_xs_scales(block, six);
    for (int i = 0; i < 8; i++) {
        for (int j = 0; j < 16; j++) { codes[32 * i + j] = block[8 + 16 * i + j] & 15; }
        for (int j = 0; j < 16; j++) { codes[32 * i + 16 + j] = (uint8_t)(block[8 + 16 * i + j] >> 4); }
        scales[i] = d * (float)six[i];
    }
    OPDI_WIDE(unpack_by_table)(opdi_block_curve, 256, codes);
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_tq2_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    OPDI_WIDE(unpack_twos)(block, codes);
    for (int i = 0; i < 8; i++) { scales[i] = opdi_f16_at(block + 64); }
    (void)mins;
}
OPDI_TARGET static void OPDI_WIDE(unpack_tq1_0)(const uint8_t *block, uint8_t *codes, float *scales, float *mins) {
    static const uint8_t powers[5] = {1, 3, 9, 27, 81};
    for (int n = 0; n < 5; n++) {
        for (int j = 0; j < 32; j++) { codes[32 * n + j] = opdi_block_digit((uint8_t)(block[j] * powers[n])); }
        for (int j = 0; j < 16; j++) { codes[160 + 16 * n + j] = opdi_block_digit((uint8_t)(block[32 + j] * powers[n])); }
        for (int j = 0; j < 4 && n < 4; j++) {
            codes[240 + 4 * n + j] = opdi_block_digit((uint8_t)(block[48 + j] * powers[n]));
        }
    }
    for (int i = 0; i < 8; i++) { scales[i] = opdi_f16_at(block + 52); }
    (void)mins;
}

/* See opdi_block_form.  The rows have the order of opdi_block_forms_plain. */
static const opdi_block_form OPDI_WIDE(block_forms)[] = {
    /* dtype, elements, bytes, sub, chunk, offset, mins, together, unpack */
    {OPD_Q8_0, 32, 34, 32, 32, 128, false, 1, OPDI_WIDE(unpack_q8_0)},
    {OPD_Q4_0, 32, 18, 32, 32, 8, false, 8, OPDI_WIDE(unpack_q4_0)},
    {OPD_Q4_1, 32, 20, 32, 32, 0, true, 8, OPDI_WIDE(unpack_q4_1)},
    {OPD_Q5_0, 32, 22, 32, 32, 16, false, 4, OPDI_WIDE(unpack_q5_0)},
    {OPD_Q5_1, 32, 24, 32, 32, 0, true, 4, OPDI_WIDE(unpack_q5_1)},
    {OPD_Q1_0, 128, 18, 32, 32, 1, false, 8, OPDI_WIDE(unpack_q1_0)},
    {OPD_Q2_0, 64, 18, 32, 32, 1, false, 8, OPDI_WIDE(unpack_q2_0)},
    {OPD_IQ4_NL, 32, 18, 32, 32, 128, false, 1, OPDI_WIDE(unpack_iq4_nl)},
    {OPD_MXFP4, 32, 17, 32, 32, 12, false, 4, OPDI_WIDE(unpack_mxfp4)},
    {OPD_NVFP4, 64, 36, 16, 32, 12, false, 4, OPDI_WIDE(unpack_nvfp4)},
    {OPD_Q2_K, 256, 84, 16, 256, 0, true, 4, OPDI_WIDE(unpack_q2_k)},
    {OPD_Q3_K, 256, 110, 16, 256, 4, false, 4, OPDI_WIDE(unpack_q3_k)},
    {OPD_Q4_K, 256, 144, 32, 256, 0, true, 8, OPDI_WIDE(unpack_q4_k)},
    {OPD_Q5_K, 256, 176, 32, 256, 0, true, 4, OPDI_WIDE(unpack_q5_k)},
    {OPD_Q6_K, 256, 210, 16, 256, 32, false, 2, OPDI_WIDE(unpack_q6_k)},
    {OPD_IQ4_XS, 256, 136, 32, 256, 128, false, 1, OPDI_WIDE(unpack_iq4_xs)},
    {OPD_TQ1_0, 256, 54, 32, 256, 1, false, 8, OPDI_WIDE(unpack_tq1_0)},
    {OPD_TQ2_0, 256, 66, 32, 256, 1, false, 8, OPDI_WIDE(unpack_tq2_0)}
};
