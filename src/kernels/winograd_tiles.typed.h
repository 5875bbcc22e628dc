#define OPDI_AT(p) (*(const OPDI_V *)(const void *)(p))
#define OPDI_TO(p) (*(OPDI_V *)(void *)(p))
/* The interpolation points of F(4, 3) are 0, +-NEAR, +-FAR and infinity. */
#define OPDI_TILE_NEAR 0.70710678f
#define OPDI_TILE_FAR 1.41421356f
/* Multiplies six inputs of a line, which are `step` elements apart, by B^T (6 x 6).  Writes the six results to `to`,
   where they are `apart` elements apart. */
OPDI_TARGET static inline void OPDI_WIDE(tile_in)(const OPDI_T *from, int64_t step, OPDI_T *to, int64_t apart) {
    const OPDI_V d0 = OPDI_AT(from), d1 = OPDI_AT(from + step), d2 = OPDI_AT(from + 2 * step);
    const OPDI_V d3 = OPDI_AT(from + 3 * step), d4 = OPDI_AT(from + 4 * step), d5 = OPDI_AT(from + 5 * step);
    const OPDI_V even = d4 - 2.0f * d2, odd = (d3 - 2.0f * d1) * OPDI_TILE_NEAR;
    const OPDI_V far_even = d4 - 0.5f * d2, far_odd = (d3 - 0.5f * d1) * OPDI_TILE_FAR;
    OPDI_TO(to) = d0 + (d4 - 2.5f * d2);
    OPDI_TO(to + apart) = even + odd;
    OPDI_TO(to + 2 * apart) = even - odd;
    OPDI_TO(to + 3 * apart) = far_even + far_odd;
    OPDI_TO(to + 4 * apart) = far_even - far_odd;
    OPDI_TO(to + 5 * apart) = d1 + (d5 - 2.5f * d3);
}
/* Multiplies the gradients of four results by A (6 x 4, the transpose of the output transform A^T), which gives six
   values. */
OPDI_TARGET static inline void OPDI_WIDE(tile_grad)(const OPDI_T *from, int64_t step, OPDI_T *to, int64_t apart) {
    const OPDI_V g0 = OPDI_AT(from), g1 = OPDI_AT(from + step), g2 = OPDI_AT(from + 2 * step);
    const OPDI_V g3 = OPDI_AT(from + 3 * step);
    const OPDI_V even = g0 + 0.5f * g2, odd = (g1 + 0.5f * g3) * OPDI_TILE_NEAR;
    const OPDI_V far_even = g0 + 2.0f * g2, far_odd = (g1 + 2.0f * g3) * OPDI_TILE_FAR;
    OPDI_TO(to) = g0;
    OPDI_TO(to + apart) = even + odd;
    OPDI_TO(to + 2 * apart) = even - odd;
    OPDI_TO(to + 3 * apart) = far_even + far_odd;
    OPDI_TO(to + 4 * apart) = far_even - far_odd;
    OPDI_TO(to + 5 * apart) = g3;
}
/* Multiplies six products by A^T (4 x 6), which gives four results. */
OPDI_TARGET static inline void OPDI_WIDE(tile_out)(const OPDI_T *from, int64_t step, OPDI_T *to, int64_t apart) {
    const OPDI_V m0 = OPDI_AT(from), m1 = OPDI_AT(from + step), m2 = OPDI_AT(from + 2 * step);
    const OPDI_V m3 = OPDI_AT(from + 3 * step), m4 = OPDI_AT(from + 4 * step), m5 = OPDI_AT(from + 5 * step);
    const OPDI_V even = m1 + m2, odd = (m1 - m2) * OPDI_TILE_NEAR;
    const OPDI_V far_even = m3 + m4, far_odd = (m3 - m4) * OPDI_TILE_FAR;
    OPDI_TO(to) = m0 + even + far_even;
    OPDI_TO(to + apart) = odd + far_odd;
    OPDI_TO(to + 2 * apart) = 0.5f * even + 2.0f * far_even;
    OPDI_TO(to + 3 * apart) = 0.5f * odd + 2.0f * far_odd + m5;
}
/* Multiplies three taps by G (6 x 3), which gives six values. */
OPDI_TARGET static inline void OPDI_WIDE(tile_weight)(const OPDI_T *from, int64_t step, OPDI_T *to, int64_t apart) {
    const OPDI_V g0 = OPDI_AT(from), g1 = OPDI_AT(from + step), g2 = OPDI_AT(from + 2 * step);
    const OPDI_V even = (g0 + 0.5f * g2) * (-2.0f / 3), odd = g1 * (-2.0f / 3 * OPDI_TILE_NEAR);
    const OPDI_V far_even = (g0 + 2.0f * g2) * (1.0f / 6), far_odd = g1 * (1.0f / 6 * OPDI_TILE_FAR);
    OPDI_TO(to) = g0;
    OPDI_TO(to + apart) = even + odd;
    OPDI_TO(to + 2 * apart) = even - odd;
    OPDI_TO(to + 3 * apart) = far_even + far_odd;
    OPDI_TO(to + 4 * apart) = far_even - far_odd;
    OPDI_TO(to + 5 * apart) = g2;
}
/* Multiplies six sums by G^T (3 x 6), which gives three taps. */
OPDI_TARGET static inline void OPDI_WIDE(tile_taps)(const OPDI_T *from, int64_t step, OPDI_T *to, int64_t apart) {
    const OPDI_V p0 = OPDI_AT(from), p1 = OPDI_AT(from + step), p2 = OPDI_AT(from + 2 * step);
    const OPDI_V p3 = OPDI_AT(from + 3 * step), p4 = OPDI_AT(from + 4 * step), p5 = OPDI_AT(from + 5 * step);
    const OPDI_V even = p1 + p2, far_even = p3 + p4;
    OPDI_TO(to) = p0 - even * (2.0f / 3) + far_even * (1.0f / 6);
    OPDI_TO(to + apart) = (p2 - p1) * (2.0f / 3 * OPDI_TILE_NEAR) + (p3 - p4) * (1.0f / 6 * OPDI_TILE_FAR);
    OPDI_TO(to + 2 * apart) = (far_even - even) * (1.0f / 3) + p5;
}
OPDI_TARGET static void OPDI_WIDE(tiles_in)(const float *strip, int64_t line, int64_t count, float *to, int64_t tile,
                                            int64_t plane) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    float half[36 * WIDTH];
    for (int64_t i = 0; i < count; i++, to += tile, strip += 4 * OPDI_TILE_BLOCK) {
        for (int part = 0; part < OPDI_TILE_BLOCK; part += WIDTH) {
            for (int j = 0; j < 6; j++) {
                OPDI_WIDE(tile_in)(strip + j * OPDI_TILE_BLOCK + part, line, half + j * WIDTH, 6 * WIDTH);
            }
            for (int j = 0; j < 6; j++) {
                OPDI_WIDE(tile_in)(half + j * 6 * WIDTH, WIDTH, to + j * 6 * plane + part, plane);
            }
        }
    }
}
OPDI_TARGET static void OPDI_WIDE(tiles_grad)(const float *strip, int64_t line, int64_t count, float *to, int64_t tile,
                                              int64_t plane) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    float half[24 * WIDTH];
    for (int64_t i = 0; i < count; i++, to += tile, strip += 4 * OPDI_TILE_BLOCK) {
        for (int part = 0; part < OPDI_TILE_BLOCK; part += WIDTH) {
            for (int j = 0; j < 4; j++) {
                OPDI_WIDE(tile_grad)(strip + j * OPDI_TILE_BLOCK + part, line, half + j * WIDTH, 4 * WIDTH);
            }
            for (int j = 0; j < 6; j++) {
                OPDI_WIDE(tile_grad)(half + j * 4 * WIDTH, WIDTH, to + j * 6 * plane + part, plane);
            }
        }
    }
}
OPDI_TARGET static bool OPDI_WIDE(tiles_out)(const float *from, int64_t plane, int64_t count, int64_t lanes,
                                             const float *bias, float *strip, int64_t line) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    float half[24 * WIDTH], sums[WIDTH];
    OPDI_V bad = OPDI_AT(bias) * 0.0f;
    for (int64_t i = 0; i < count; i++, from += OPDI_TILE_OUT, strip += 4 * OPDI_TILE_OUT) {
        for (int64_t part = 0; part < lanes; part += WIDTH) {
            for (int j = 0; j < 6; j++) {
                OPDI_WIDE(tile_out)(from + j * plane + part, 6 * plane, half + j * WIDTH, 6 * WIDTH);
            }
            for (int j = 0; j < 4; j++) {
                float *const to = strip + j * line + part;
                OPDI_WIDE(tile_out)(half + j * 6 * WIDTH, WIDTH, to, OPDI_TILE_OUT);
                for (int k = 0; k < 4; k++) { 
                    const OPDI_V sum = OPDI_AT(to + k * OPDI_TILE_OUT) + OPDI_AT(bias + part);
                    OPDI_TO(to + k * OPDI_TILE_OUT) = sum;
                    bad += sum * 0.0f;
                }
            }
        }
    }
    OPDI_TO(sums) = bad;
    for (int lane = 1; lane < WIDTH; lane++) { sums[0] += sums[lane]; }
    return sums[0] == 0;
}
OPDI_TARGET static void OPDI_WIDE(tiles_weight)(const float *weights, int64_t count, float *to, int64_t width,
                                                int64_t panel, int64_t step, int64_t plane) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    float half[18 * WIDTH];
    for (int64_t i = 0; i < count; i++, to += step, weights += 9 * OPDI_TILE_BLOCK) {
        for (int64_t part = 0; part < OPDI_TILE_BLOCK; part += WIDTH) {
            float *const there = to + part / width * panel + part % width;
            for (int j = 0; j < 3; j++) {
                OPDI_WIDE(tile_weight)(weights + j * OPDI_TILE_BLOCK + part, 3 * OPDI_TILE_BLOCK, half + j * WIDTH,
                                       3 * WIDTH);
            }
            for (int j = 0; j < 6; j++) {
                OPDI_WIDE(tile_weight)(half + j * 3 * WIDTH, WIDTH, there + j * 6 * plane, plane);
            }
        }
    }
}
OPDI_TARGET static void OPDI_WIDE(tiles_taps)(const float *from, int64_t plane, float *to, float *check) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    float half[18 * WIDTH];
    for (int part = 0; part < OPDI_TILE_BLOCK; part += WIDTH) {
        for (int j = 0; j < 6; j++) {
            OPDI_WIDE(tile_taps)(from + j * plane + part, 6 * plane, half + j * WIDTH, 6 * WIDTH);
        }
        for (int j = 0; j < 3; j++) {
            OPDI_WIDE(tile_taps)(half + j * 6 * WIDTH, WIDTH, to + 3 * j * OPDI_TILE_BLOCK + part, OPDI_TILE_BLOCK);
        }
        OPDI_V bad = OPDI_AT(to + part) * 0.0f;
        for (int tap = 1; tap < 9; tap++) { bad += OPDI_AT(to + tap * OPDI_TILE_BLOCK + part) * 0.0f; }
        OPDI_TO(check + part) = bad;
    }
}
#undef OPDI_AT
#undef OPDI_TO
#undef OPDI_TILE_NEAR
#undef OPDI_TILE_FAR
