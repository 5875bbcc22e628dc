#define OPDI_FFT_LOAD(p) (*(const OPDI_V *)(const void *)(p))
#define OPDI_FFT_STORE(p, v) (*(OPDI_V *)(void *)(p) = (v))
/* The butterflies: transforms of 2, 3, ... complex points r + i im, in place.  Each element is a vector of lanes. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(fft_two)(OPDI_V *a, OPDI_V *b) {
    const OPDI_V sum = *a + *b;
    *b = *a - *b;
    *a = sum;
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(fft_three)(OPDI_V *r, OPDI_V *im) {
    const OPDI_T half = (OPDI_T)0.5, sine = (OPDI_T)0.86602540378443864676;
    const OPDI_V sr = r[1] + r[2], si = im[1] + im[2];
    const OPDI_V dr = (im[1] - im[2]) * sine, di = (r[2] - r[1]) * sine;
    const OPDI_V mr = r[0] - sr * half, mi = im[0] - si * half;
    r[0] = r[0] + sr;
    im[0] = im[0] + si;
    r[1] = mr + dr;
    im[1] = mi + di;
    r[2] = mr - dr;
    im[2] = mi - di;
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(fft_four)(OPDI_V *r0, OPDI_V *r1, OPDI_V *r2, OPDI_V *r3, OPDI_V *i0,
                                                 OPDI_V *i1, OPDI_V *i2, OPDI_V *i3) {
    const OPDI_V ar = *r0 + *r2, ai = *i0 + *i2, br = *r0 - *r2, bi = *i0 - *i2;
    const OPDI_V cr = *r1 + *r3, ci = *i1 + *i3, dr = *r1 - *r3, di = *i1 - *i3;
    *r0 = ar + cr;
    *i0 = ai + ci;
    *r1 = br + di;
    *i1 = bi - dr;
    *r2 = ar - cr;
    *i2 = ai - ci;
    *r3 = br - di;
    *i3 = bi + dr;
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(fft_five)(OPDI_V *r, OPDI_V *im) {
    const OPDI_T c1 = (OPDI_T)0.30901699437494742410, c2 = (OPDI_T)-0.80901699437494742410;
    const OPDI_T s1 = (OPDI_T)0.95105651629515357212, s2 = (OPDI_T)0.58778525229247312917;
    const OPDI_V ar = r[1] + r[4], ai = im[1] + im[4], br = r[2] + r[3], bi = im[2] + im[3];
    const OPDI_V cr = r[1] - r[4], ci = im[1] - im[4], dr = r[2] - r[3], di = im[2] - im[3];
    const OPDI_V er = r[0] + ar * c1 + br * c2, ei = im[0] + ai * c1 + bi * c2;
    const OPDI_V fr = r[0] + ar * c2 + br * c1, fi = im[0] + ai * c2 + bi * c1;
    const OPDI_V gr = ci * s1 + di * s2, gi = cr * s1 + dr * s2, hr = ci * s2 - di * s1, hi = cr * s2 - dr * s1;
    r[0] = r[0] + ar + br;
    im[0] = im[0] + ai + bi;
    r[1] = er + gr;
    im[1] = ei - gi;
    r[2] = fr + hr;
    im[2] = fi - hi;
    r[3] = fr - hr;
    im[3] = fi + hi;
    r[4] = er - gr;
    im[4] = ei + gi;
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(fft_eight)(OPDI_V *r, OPDI_V *im) {
    const OPDI_T half = (OPDI_T)0.70710678118654752440;
    OPDI_WIDE(fft_four)(&r[0], &r[2], &r[4], &r[6], &im[0], &im[2], &im[4], &im[6]);
    OPDI_WIDE(fft_four)(&r[1], &r[3], &r[5], &r[7], &im[1], &im[3], &im[5], &im[7]);
    const OPDI_V ar = (r[3] + im[3]) * half, ai = (im[3] - r[3]) * half;
    const OPDI_V cr = (im[7] - r[7]) * half, ci = (im[7] + r[7]) * -half;
    const OPDI_V br = im[5], bi = -r[5], r1 = r[1], i1 = im[1], r2 = r[2], i2 = im[2], r4 = r[4], i4 = im[4],
        r6 = r[6], i6 = im[6];
    r[4] = r[0] - r1;
    im[4] = im[0] - i1;
    r[0] = r[0] + r1;
    im[0] = im[0] + i1;
    r[1] = r2 + ar;
    im[1] = i2 + ai;
    r[5] = r2 - ar;
    im[5] = i2 - ai;
    r[2] = r4 + br;
    im[2] = i4 + bi;
    r[3] = r6 + cr;
    im[3] = i6 + ci;
    r[7] = r6 - cr;
    im[7] = i6 - ci;
    r[6] = r4 - br;
    im[6] = i4 - bi;
}
/* Computes the butterfly of an odd radix.  With a = 2 pi q k / radix and sums over k = 1 .. radix / 2, outputs q and
   radix - q are x[0] + sum cos(a) * (x[k] + x[radix - k]) -+ i * sum sin(a) * (x[k] - x[radix - k]).  turn [radix,
   2] has exp(-2 pi i k / radix). */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(fft_odd)(OPDI_V *r, OPDI_V *im, const OPDI_T *turn, const int radix) {
    OPDI_V sr[OPDI_FFT_RADIX], si[OPDI_FFT_RADIX], first = r[0], second = im[0];
    for (int k = 1; k <= radix / 2; k++) {
        sr[k] = r[k] + r[radix - k];
        si[k] = im[k] + im[radix - k];
        sr[radix - k] = r[k] - r[radix - k];
        si[radix - k] = im[k] - im[radix - k];
        first = first + sr[k];
        second = second + si[k];
    }
    for (int q = 1; q <= radix / 2; q++) {
        OPDI_V ar = r[0], ai = im[0], br = turn[2 * q + 1] * si[radix - 1], bi = turn[2 * q + 1] * sr[radix - 1];
        for (int k = 1, at = q; k <= radix / 2; k++, at = at + q < radix ? at + q : at + q - radix) {
            const OPDI_T cosine = turn[2 * at], sine = turn[2 * at + 1];
            ar = ar + cosine * sr[k];
            ai = ai + cosine * si[k];
            if (k > 1) {
                br = br + sine * si[radix - k];
                bi = bi + sine * sr[radix - k];
            }
        }
        r[q] = ar - br;
        im[q] = ai + bi;
        r[radix - q] = ar + br;
        im[radix - q] = ai - bi;
    }
    r[0] = first;
    im[0] = second;
}
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(fft_butterfly)(OPDI_V *r, OPDI_V *im, const OPDI_T *turn, const int radix) {
    if (radix == 2) {
        OPDI_WIDE(fft_two)(&r[0], &r[1]);
        OPDI_WIDE(fft_two)(&im[0], &im[1]);
    } else if (radix == 3) {
        OPDI_WIDE(fft_three)(r, im);
    } else if (radix == 4) {
        OPDI_WIDE(fft_four)(&r[0], &r[1], &r[2], &r[3], &im[0], &im[1], &im[2], &im[3]);
    } else if (radix == 5) {
        OPDI_WIDE(fft_five)(r, im);
    } else if (radix == 8) {
        OPDI_WIDE(fft_eight)(r, im);
    } else {
        OPDI_WIDE(fft_odd)(r, im, turn, radix);
    }
}
/* OPDI_FFT_IN loads row `row` for a butterfly and multiplies the row by its twiddle factor.  OPDI_FFT_OUT stores the
   row afterwards.  Compilers remove rows beyond the radix. */
#define OPDI_FFT_IN(row) \
    if ((row) < radix) { \
        r[row] = OPDI_FFT_LOAD(from + (row) * apart + re); \
        im[row] = OPDI_FFT_LOAD(from + (row) * apart + lanes - re); \
        if ((row) > 0 && depth) { \
            const OPDI_T wr = turns[(row) * depth * step], wi = turns[(row) * depth * step + 1]; \
            const OPDI_V a = r[row], b = im[row]; \
            r[row] = a * wr - b * wi; \
            im[row] = a * wi + b * wr; \
        } \
    }
#define OPDI_FFT_OUT(row) \
    if ((row) < radix) { \
        OPDI_FFT_STORE(to + (row) * done * 2 * lanes + re, r[row]); \
        OPDI_FFT_STORE(to + (row) * done * 2 * lanes + lanes - re, im[row]); \
    }
/* Processes all lanes of one pass, from x to y, for a radix that is known at compile time.  turn [radix, 2] has
   exp(-2 pi i k / radix); `done` is the product of the earlier radices. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(fft_radix)(const opdi_fft_side *side, const int radix, const OPDI_T *turn,
                                                  int64_t done, const OPDI_T *x, OPDI_T *y, int64_t lanes, bool swap) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const OPDI_T *const turns = (const OPDI_T *)side->turn;
    const int64_t part = side->length / radix, step = part / done * 2, apart = part * 2 * lanes;
    const int64_t re = swap ? lanes : 0;
    for (int64_t j = 0, depth = 0; j < part; j++, depth = depth + 1 < done ? depth + 1 : 0) {
        const OPDI_T *from = x + j * 2 * lanes;
        OPDI_T *to = y + ((j - depth) * radix + depth) * 2 * lanes;
        for (const OPDI_T *const end = from + lanes; from < end; from += WIDTH, to += WIDTH) {
            OPDI_V r[OPDI_FFT_RADIX], im[OPDI_FFT_RADIX];
            OPDI_FFT_IN(0) OPDI_FFT_IN(1) OPDI_FFT_IN(2) OPDI_FFT_IN(3)
            OPDI_FFT_IN(4) OPDI_FFT_IN(5) OPDI_FFT_IN(6) OPDI_FFT_IN(7)
            for (int row = 8; row < radix; row++) { OPDI_FFT_IN(row) }
            OPDI_WIDE(fft_butterfly)(r, im, turn, radix);
            OPDI_FFT_OUT(0) OPDI_FFT_OUT(1) OPDI_FFT_OUT(2) OPDI_FFT_OUT(3)
            OPDI_FFT_OUT(4) OPDI_FFT_OUT(5) OPDI_FFT_OUT(6) OPDI_FFT_OUT(7)
            for (int row = 8; row < radix; row++) { OPDI_FFT_OUT(row) }
        }
    }
}
#undef OPDI_FFT_IN
#undef OPDI_FFT_OUT
OPDI_TARGET static void OPDI_WIDE(fft_pass)(const opdi_fft_side *side, int place, int64_t done, const void *x, void *y,
                                            int64_t lanes, bool swap) {
    const int radix = side->factor[place];
    const OPDI_T *const turns = (const OPDI_T *)side->turn, *const from = (const OPDI_T *)x;
    OPDI_T turn[2 * OPDI_FFT_RADIX], *const to = (OPDI_T *)y;
    for (int k = 0; k < radix; k++) {
        turn[2 * k] = turns[k * (side->length / radix) * 2];
        turn[2 * k + 1] = turns[k * (side->length / radix) * 2 + 1];
    }
    switch (radix) {
    case 2: OPDI_WIDE(fft_radix)(side, 2, turn, done, from, to, lanes, swap); break;
    case 3: OPDI_WIDE(fft_radix)(side, 3, turn, done, from, to, lanes, swap); break;
    case 4: OPDI_WIDE(fft_radix)(side, 4, turn, done, from, to, lanes, swap); break;
    case 5: OPDI_WIDE(fft_radix)(side, 5, turn, done, from, to, lanes, swap); break;
    case 8: OPDI_WIDE(fft_radix)(side, 8, turn, done, from, to, lanes, swap); break;
    default: OPDI_WIDE(fft_radix)(side, radix, turn, done, from, to, lanes, swap); break;
    }
}
OPDI_TARGET static void OPDI_WIDE(fft_times)(const void *weights, int64_t count, void *x, bool swap) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const OPDI_T *w = (const OPDI_T *)weights;
    OPDI_T *re = (OPDI_T *)x + (swap ? OPDI_FFT_LANES : 0), *im = (OPDI_T *)x + (swap ? 0 : OPDI_FFT_LANES);
    for (int64_t row = 0; row < count; row++, re += 2 * OPDI_FFT_LANES, im += 2 * OPDI_FFT_LANES) {
        const OPDI_T wr = w[2 * row], wi = w[2 * row + 1];
        for (int at = 0; at < OPDI_FFT_LANES; at += WIDTH) {
            const OPDI_V a = OPDI_FFT_LOAD(re + at), b = OPDI_FFT_LOAD(im + at);
            OPDI_FFT_STORE(re + at, a * wr - b * wi);
            OPDI_FFT_STORE(im + at, a * wi + b * wr);
        }
    }
}
/* The function `real` of opdi_fft_steps.  Let Z be the transform of m = count pairs, X the transform of the 2 m real
   numbers, and w = exp(-pi i / m).

   Computes X from Z: X[k] = s - i * w^k * d and X[m - k] = conj(s + i * w^k * d), where s = (Z[k] + conj(Z[m - k])) / 2
   and d = (Z[k] - conj(Z[m - k])) / 2.

   If `back` is true, computes Z from X: Z[k] = s + i * w^-k * d and Z[m - k] = conj(s - i * w^-k * d), where s and d
   are made from X in the same way, but are twice as large. */
OPDI_TARGET static void OPDI_WIDE(fft_real)(const void *turn, int64_t count, bool back, void *x, bool swap) {
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const OPDI_T half = back ? (OPDI_T)1 : (OPDI_T)0.5, way = back ? (OPDI_T)-1 : (OPDI_T)1;
    const OPDI_T *w = (const OPDI_T *)turn;
    OPDI_T *re = (OPDI_T *)x + (swap ? OPDI_FFT_LANES : 0), *im = (OPDI_T *)x + (swap ? 0 : OPDI_FFT_LANES);
    for (int lane = 0; lane < OPDI_FFT_LANES; lane += WIDTH) {
        const OPDI_V a = OPDI_FFT_LOAD(re + lane), b = OPDI_FFT_LOAD(im + lane);
        OPDI_FFT_STORE(re + lane, a + b);
        OPDI_FFT_STORE(im + lane, a - b);
    }
    for (int64_t row = 1; row <= count / 2; row++) {
        const OPDI_T wr = w[2 * row] * way, wi = w[2 * row + 1];
        OPDI_T *first = re + row * 2 * OPDI_FFT_LANES, *second = im + row * 2 * OPDI_FFT_LANES;
        OPDI_T *third = re + (count - row) * 2 * OPDI_FFT_LANES, *fourth = im + (count - row) * 2 * OPDI_FFT_LANES;
        for (int lane = 0; lane < OPDI_FFT_LANES; lane += WIDTH) {
            const OPDI_V ar = OPDI_FFT_LOAD(first + lane), ai = OPDI_FFT_LOAD(second + lane);
            const OPDI_V br = OPDI_FFT_LOAD(third + lane), bi = OPDI_FFT_LOAD(fourth + lane);
            const OPDI_V sr = (ar + br) * half, si = (ai - bi) * half, dr = (ar - br) * half, di = (ai + bi) * half;
            const OPDI_V tr = wr * di + wi * dr, ti = wi * di - wr * dr;
            OPDI_FFT_STORE(first + lane, sr + tr);
            OPDI_FFT_STORE(second + lane, si + ti);
            OPDI_FFT_STORE(third + lane, sr - tr);
            OPDI_FFT_STORE(fourth + lane, ti - si);
        }
    }
}
/* fft_even and fft_odd_ones separate pairs in two vectors into a vector of first and one of second numbers.  fft_low
   and fft_high do the inverse. */
#if OPDI_LEVEL > 0
#if defined(OPDI_NEON) && OPDI_BYTES == 8
#define OPDI_FFT_EVEN 0, 2
#define OPDI_FFT_ODD 1, 3
#define OPDI_FFT_LOW 0, 2
#define OPDI_FFT_HIGH 1, 3
#elif OPDI_LEVEL == 2 && OPDI_BYTES == 4
#define OPDI_FFT_EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define OPDI_FFT_ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define OPDI_FFT_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define OPDI_FFT_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif OPDI_LEVEL == 2 || (OPDI_BYTES == 4 && !defined(OPDI_NEON))
#define OPDI_FFT_EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define OPDI_FFT_ODD 1, 3, 5, 7, 9, 11, 13, 15
#define OPDI_FFT_LOW 0, 8, 1, 9, 2, 10, 3, 11
#define OPDI_FFT_HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define OPDI_FFT_EVEN 0, 2, 4, 6
#define OPDI_FFT_ODD 1, 3, 5, 7
#define OPDI_FFT_LOW 0, 4, 1, 5
#define OPDI_FFT_HIGH 2, 6, 3, 7
#endif
#if defined(__clang__)
#define OPDI_FFT_MIX(name, ...) \
    OPDI_TARGET OPDI_ALWAYS OPDI_V OPDI_WIDE(name)(OPDI_V a, OPDI_V b) { \
        return __builtin_shufflevector(a, b, __VA_ARGS__); \
    }
#else
#define OPDI_FFT_MIX(name, ...) \
    OPDI_TARGET OPDI_ALWAYS OPDI_V OPDI_WIDE(name)(OPDI_V a, OPDI_V b) { \
        const OPDI_V_BITS mix = {__VA_ARGS__}; \
        return __builtin_shuffle(a, b, mix); \
    }
#endif
OPDI_FFT_MIX(fft_even, OPDI_FFT_EVEN)
OPDI_FFT_MIX(fft_odd_ones, OPDI_FFT_ODD)
OPDI_FFT_MIX(fft_low, OPDI_FFT_LOW)
OPDI_FFT_MIX(fft_high, OPDI_FFT_HIGH)
#undef OPDI_FFT_MIX
#undef OPDI_FFT_EVEN
#undef OPDI_FFT_ODD
#undef OPDI_FFT_LOW
#undef OPDI_FFT_HIGH
#endif
OPDI_TARGET static void OPDI_WIDE(fft_split)(const void *pairs, int64_t count, void *re, void *im) {
    const OPDI_T *const p = (const OPDI_T *)pairs;
    OPDI_T *const a = (OPDI_T *)re, *const b = (OPDI_T *)im;
    int64_t i = 0;
#if OPDI_LEVEL > 0
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    for (; i + WIDTH <= count; i += WIDTH) {
        const OPDI_V u = OPDI_FFT_LOAD(p + 2 * i), v = OPDI_FFT_LOAD(p + 2 * i + WIDTH);
        OPDI_FFT_STORE(a + i, OPDI_WIDE(fft_even)(u, v));
        OPDI_FFT_STORE(b + i, OPDI_WIDE(fft_odd_ones)(u, v));
    }
#endif
    for (; i < count; i++) {
        a[i] = p[2 * i];
        b[i] = p[2 * i + 1];
    }
}
OPDI_TARGET static void OPDI_WIDE(fft_join)(const void *re, const void *im, int64_t count, double by, void *pairs) {
    const OPDI_T *const a = (const OPDI_T *)re, *const b = (const OPDI_T *)im, scale = (OPDI_T)by;
    OPDI_T *const p = (OPDI_T *)pairs;
    int64_t i = 0;
#if OPDI_LEVEL > 0
    enum { WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    for (; i + WIDTH <= count; i += WIDTH) {
        const OPDI_V u = OPDI_FFT_LOAD(a + i) * scale, v = OPDI_FFT_LOAD(b + i) * scale;
        OPDI_FFT_STORE(p + 2 * i, OPDI_WIDE(fft_low)(u, v));
        OPDI_FFT_STORE(p + 2 * i + WIDTH, OPDI_WIDE(fft_high)(u, v));
    }
#endif
    for (; i < count; i++) {
        p[2 * i] = a[i] * scale;
        p[2 * i + 1] = b[i] * scale;
    }
}
/* Transposes a block of 4 x 4 numbers: to[j ts + i] = from[i fs + j] for i, j < 4. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(fft_four_by_four)(const OPDI_T *from, int64_t fs, OPDI_T *to, int64_t ts) {
#if OPDI_BYTES == 4
    opdi_transpose4(from, from + fs, from + 2 * fs, from + 3 * fs, to, ts);
#elif OPDI_LEVEL > 0 && !defined(OPDI_NEON)
    typedef opdi_v4d pack;
#if !defined(__clang__)
    const opdi_v4w low = {0, 4, 2, 6}, high = {1, 5, 3, 7}, first = {0, 1, 4, 5}, last = {2, 3, 6, 7};
#define OPDI_FFT_MIX4(a, b, how, i, j, k, l) __builtin_shuffle(a, b, how)
#else
#define OPDI_FFT_MIX4(a, b, how, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#endif
    const pack a = *(const pack *)(const void *)from, b = *(const pack *)(const void *)(from + fs);
    const pack c = *(const pack *)(const void *)(from + 2 * fs), d = *(const pack *)(const void *)(from + 3 * fs);
    const pack e = OPDI_FFT_MIX4(a, b, low, 0, 4, 2, 6), f = OPDI_FFT_MIX4(a, b, high, 1, 5, 3, 7);
    const pack g = OPDI_FFT_MIX4(c, d, low, 0, 4, 2, 6), h = OPDI_FFT_MIX4(c, d, high, 1, 5, 3, 7);
    *(pack *)(void *)to = OPDI_FFT_MIX4(e, g, first, 0, 1, 4, 5);
    *(pack *)(void *)(to + ts) = OPDI_FFT_MIX4(f, h, first, 0, 1, 4, 5);
    *(pack *)(void *)(to + 2 * ts) = OPDI_FFT_MIX4(e, g, last, 2, 3, 6, 7);
    *(pack *)(void *)(to + 3 * ts) = OPDI_FFT_MIX4(f, h, last, 2, 3, 6, 7);
#undef OPDI_FFT_MIX4
#else
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 4; j++) { to[j * ts + i] = from[i * fs + j]; }
    }
#endif
}
/* The function `in` of opdi_fft_steps: reads one cache line of each line at a time. */
OPDI_TARGET static void OPDI_WIDE(fft_in)(const void *lines, int64_t apart, int64_t count, void *x) {
    enum { LANES = OPDI_FFT_LANES, STEPS = LANES / 2 };
    const OPDI_T *p = (const OPDI_T *)lines;
    OPDI_T *to = (OPDI_T *)x;
    int64_t step = 0;
    for (; step + STEPS <= count; step += STEPS, p += 2 * STEPS, to += 2 * STEPS * LANES) {
        for (int lane = 0; lane < LANES; lane += 4) {
            for (int i = 0; i < STEPS; i += 2) {
                OPDI_WIDE(fft_four_by_four)(p + lane * apart + 2 * i, apart, to + 2 * i * LANES + lane, LANES);
            }
        }
    }
    for (; step < count; step++, p += 2, to += 2 * LANES) {
        for (int lane = 0; lane < LANES; lane++) {
            to[lane] = p[lane * apart];
            to[LANES + lane] = p[lane * apart + 1];
        }
    }
}
OPDI_TARGET static void OPDI_WIDE(fft_out)(const void *x, int64_t apart, int64_t count, double by, void *lines) {
    enum { LANES = OPDI_FFT_LANES, STEPS = LANES / 2, WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const OPDI_T *from = (const OPDI_T *)x, scale = (OPDI_T)by;
    OPDI_T *p = (OPDI_T *)lines, scaled[2 * STEPS * LANES];
    int64_t step = 0;
    for (; step + STEPS <= count; step += STEPS, p += 2 * STEPS, from += 2 * STEPS * LANES) {
        const OPDI_T *block = from;
        for (int i = 0; by != 1 && i < 2 * STEPS * LANES; i += WIDTH) {
            OPDI_FFT_STORE(scaled + i, OPDI_FFT_LOAD(from + i) * scale);
            block = scaled;
        }
        for (int lane = 0; lane < LANES; lane += 4) {
            for (int i = 0; i < STEPS; i += 2) {
                OPDI_WIDE(fft_four_by_four)(block + 2 * i * LANES + lane, LANES, p + lane * apart + 2 * i, apart);
            }
        }
    }
    for (; step < count; step++, p += 2, from += 2 * LANES) {
        for (int lane = 0; lane < LANES; lane++) {
            p[lane * apart] = from[lane] * scale;
            p[lane * apart + 1] = from[LANES + lane] * scale;
        }
    }
}
/* Multiplies rows first .. first + many - 1 of x by their twiddle factors.  The lanes of a row are LANES columns of the
   matrix, from `column` on.  Writes the rows transposed to `to` [LANES, 2, LANES].  Missing rows become 0. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(fft_twiddle_rows)(const opdi_fft_plan *plan, const OPDI_T *x, int64_t lanes,
                                                         int64_t first, int64_t many, int64_t column, bool swap,
                                                         OPDI_T *to) {
    enum { LANES = OPDI_FFT_LANES, WIDTH = (int)(sizeof(OPDI_V) / sizeof(OPDI_T)) };
    const double *low = plan->roots.low, *high = plan->roots.high;
    const OPDI_T *nearby = (const OPDI_T *)plan->nearby + first * 2 * LANES;
    const int64_t re = swap ? lanes : 0, im = lanes - re;
    for (int64_t row = 0; row < many; row++, nearby += 2 * LANES, to += 2 * LANES) {
        const int64_t at = (first + row) * column;
        const double *a = low + (at & (((int64_t)1 << plan->roots.bits) - 1)) * 2;
        const double *b = high + (at >> plan->roots.bits) * 2;
        const OPDI_T ur = (OPDI_T)(a[0] * b[0] - a[1] * b[1]), ui = (OPDI_T)(a[0] * b[1] + a[1] * b[0]);
        const OPDI_T *from = x + (first + row) * 2 * lanes;
        for (int lane = 0; lane < LANES; lane += WIDTH) {
            const OPDI_V vr = OPDI_FFT_LOAD(nearby + lane), vi = OPDI_FFT_LOAD(nearby + LANES + lane);
            const OPDI_V wr = vr * ur - vi * ui, wi = vr * ui + vi * ur;
            const OPDI_V r = OPDI_FFT_LOAD(from + re + lane), i = OPDI_FFT_LOAD(from + im + lane);
            OPDI_FFT_STORE(to + lane + (swap ? LANES : 0), r * wr - i * wi);
            OPDI_FFT_STORE(to + lane + (swap ? 0 : LANES), r * wi + i * wr);
        }
    }
    memset(to, 0, (size_t)((LANES - many) * 2 * LANES) * sizeof *to);
}
OPDI_TARGET static void OPDI_WIDE(fft_twiddle)(const opdi_fft_plan *plan, const void *x, int64_t lanes, int64_t first,
                                               int64_t count, void *y, int64_t height, bool swap) {
    enum { LANES = OPDI_FFT_LANES };
    const int64_t rows = plan->rows.length;
    OPDI_T block[2 * LANES * LANES];
    for (int64_t lane = 0; lane < count; lane += LANES) {
        const int64_t beside = OPDI_MIN(count - lane, (int64_t)LANES);
        for (int64_t row = 0; row < rows; row += LANES) {
            OPDI_T *to = (OPDI_T *)y + (first + lane) * 2 * height + row;
            OPDI_WIDE(fft_twiddle_rows)(plan, (const OPDI_T *)x + lane, lanes, row,
                                        OPDI_MIN(rows - row, (int64_t)LANES), first + lane, swap, block);
            int64_t j = 0;
            for (; j + 4 <= beside; j += 4) {
                for (int i = 0; i < LANES; i += 4) {
                    const OPDI_T *from = block + i * 2 * LANES + j;
                    OPDI_WIDE(fft_four_by_four)(from, 2 * LANES, to + j * 2 * height + i, 2 * height);
                    OPDI_WIDE(fft_four_by_four)(from + LANES, 2 * LANES, to + (j * 2 + 1) * height + i, 2 * height);
                }
            }
            for (; j < beside; j++) {
                for (int i = 0; i < LANES; i++) {
                    to[j * 2 * height + i] = block[i * 2 * LANES + j];
                    to[(j * 2 + 1) * height + i] = block[(i * 2 + 1) * LANES + j];
                }
            }
        }
    }
}
static void OPDI_WIDE(fft_steps)(opdi_fft_steps *steps) {
    steps->pass = OPDI_WIDE(fft_pass);
    steps->times = OPDI_WIDE(fft_times);
    steps->real = OPDI_WIDE(fft_real);
    steps->split = OPDI_WIDE(fft_split);
    steps->join = OPDI_WIDE(fft_join);
    steps->in = OPDI_WIDE(fft_in);
    steps->out = OPDI_WIDE(fft_out);
    steps->turn = OPDI_WIDE(fft_twiddle);
}
#undef OPDI_FFT_LOAD
#undef OPDI_FFT_STORE
