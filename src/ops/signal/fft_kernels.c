#if !defined(OPD_NO_OP_FFT)
#if defined(OPDI_OPERATORS)

//----------------------------------------------------------------------------------------------------------------------
//  >>op:fft       discrete Fourier transforms
//----------------------------------------------------------------------------------------------------------------------

OPDI_LOOPS_BEGIN

//== discrete Fourier transforms: _fft_r2c, _fft_c2r, _fft_c2c =========================================================
//
//  Lines along one dim after another, in the type of the numbers.  Those of a pass lie in lanes, whose steps are the
//  same: a vector's worth of lines side by side where there are several, else one line as a matrix of rows x columns,
//  whose columns are transformed, turned by exp(-2 pi i row column / n), transposed and transformed again.  n of small
//  factors is a pass for each factor (8, 4, or any prime up to 257); else the transform is a convolution: of powers of
//  a number that has all remainders among its powers, by transforms of n - 1 points, where n is a prime and n - 1 of
//  small factors (Rader), or with a chirp, by transforms of a rounder length (Bluestein).  For the other direction real
//  and imaginary parts change places.  Lines of an even number of real numbers, side by side, are lines of half as many
//  pairs.

/* SHORT lines are not cut, NEAR ones neither where MANY lie side by side; WHOLE numbers are worked on at a time; primes
   whose n - 1 has no factor above SMOOTH are convolutions of n - 1 points; MOST lanes. */
enum {
    OPDI_FFT_RADIX = 257, OPDI_FFT_SMOOTH = 61, OPDI_FFT_SHORT = 64, OPDI_FFT_NEAR = 4096, OPDI_FFT_MANY = 4,
    OPDI_FFT_WHOLE = 32768, OPDI_FFT_MOST = 16
};
/* Lanes come by so many: numbers of 64 bytes. */
#define OPDI_FFT_LANES ((int)(64 / sizeof(OPDI_T)))
/* Transforms of a length side by side: the factors of it, and turn [length, 2]: exp(-2 pi i t / length). */
typedef struct opdi_fft_side {
    int64_t length;
    int count, factor[64];
    const void *turn;
} opdi_fft_side;
/* exp(-2 pi i t / order) as low[t % 2^bits] high[t / 2^bits] */
typedef struct opdi_fft_roots {
    int bits;
    const double *low, *high;
} opdi_fft_roots;
/* Tables that a void * leads to are of the plan's type, double or float. */
typedef struct opdi_fft_plan {
    int64_t length;
    bool twice;                                   /* of doubles */
    opdi_fft_side rows, columns;                  /* length = rows * columns; columns is 1 where a line is not cut */
    opdi_fft_roots roots;                         /* of the length */
    const void *nearby;                           /* [rows, 2, lanes]: exp(-2 pi i row lane / length) */
    const struct opdi_fft_plan *inner;            /* of m >= 2 n - 1 or of n - 1 points, or NULL */
    const int32_t *order;                         /* [n - 1]: powers of a number, modulo n; NULL: a chirp */
    const void *chirp, *kernel;                   /* [n, 2]: exp(-pi i t t / n); [m, 2]: what is multiplied with */
} opdi_fft_plan;

/* Kernels in vectors.  Rows are [length, 2, lanes]; `swap` says that their second parts are the real ones; lanes is a
   multiple of OPDI_FFT_LANES, and it where it is not given.  Pointers are to numbers of the type. */
typedef struct opdi_fft_steps {
    /* runs pass `place` of transforms side by side from x to y, of a length of which `done` is transformed already */
    void (*pass)(const opdi_fft_side *side, int place, int64_t done, const void *x, void *y, int64_t lanes, bool swap);
    /* x [count, 2, lanes] times weights [count, 2], in place */
    void (*times)(const void *weights, int64_t count, void *x, bool swap);
    /* x [count, 2, lanes], in place: the transform of count pairs of real numbers becomes that of 2 count numbers, the
       last in the imaginary part of the first; or `back`, without its factor 1/2.  turn: exp(-pi i k / count) */
    void (*real)(const void *turn, int64_t count, bool back, void *x, bool swap);
    /* count pairs side by side to re and im, and back, times scale */
    void (*split)(const void *pairs, int64_t count, void *re, void *im);
    void (*join)(const void *re, const void *im, int64_t count, double scale, void *pairs);
    /* count pairs of each of OPDI_FFT_LANES lines, `apart` numbers from each other, to rows, and back, times scale */
    void (*in)(const void *lines, int64_t apart, int64_t count, void *x);
    void (*out)(const void *x, int64_t apart, int64_t count, double scale, void *lines);
    /* turns x [rows, 2, lanes], columns first to first + count of a line as a matrix, by exp(-2 pi i row column / n)
       and writes it transposed to y [columns, 2, height]; height: the rows rounded up, by zeros */
    void (*turn)(const opdi_fft_plan *plan, const void *x, int64_t lanes, int64_t first, int64_t count, void *y,
                 int64_t height, bool swap);
} opdi_fft_steps;
typedef struct opdi_fft opdi_fft;
static void opdi_fft_steps_plain_f32(opdi_fft_steps *steps), opdi_fft_steps_plain_f64(opdi_fft_steps *steps);
#if defined(OPDI_X86)
static void opdi_fft_steps_avx2_f32(opdi_fft_steps *steps), opdi_fft_steps_avx2_f64(opdi_fft_steps *steps);
static void opdi_fft_steps_avx512_f32(opdi_fft_steps *steps), opdi_fft_steps_avx512_f64(opdi_fft_steps *steps);
#endif
static int64_t opdi_fft_room_f32(const opdi_fft_plan *plan), opdi_fft_room_f64(const opdi_fft_plan *plan);
static void opdi_fft_range_f32(void *ctx, int64_t begin, int64_t end);
static void opdi_fft_range_f64(void *ctx, int64_t begin, int64_t end);
static void opdi_fft_once_f64(const opdi_fft_plan *plan, const double *x, double *y, double *room);
#endif
#if defined(OPDI_WIDE)                            /* once for each level, see >>typed */
#define OPDI_FFT_LOAD(p) (*(const OPDI_V *)(const void *)(p))
#define OPDI_FFT_STORE(p, v) (*(OPDI_V *)(void *)(p) = (v))
/* Butterflies of a radix on r + i im, in place, each a vector of lanes. */
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
/* An odd radix: outputs q and radix - q are x0 + sum_k cos (x[k] + x[radix - k]) -+ i sum_k sin (x[k] - x[radix - k]);
   turn [radix, 2]: exp(-2 pi i k / radix). */
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
/* What a pass does with row `row` of a butterfly, before and after; rows of no radix fall away. */
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
/* All lanes of one pass for a radix that compilers know; turn [radix, 2] as above. */
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
/* With s = (Z[k] + conj Z[m - k]) / 2 and d = (Z[k] - conj Z[m - k]) / 2: X[k] = s - i w^k d and X[m - k] =
   conj(s + i w^k d); and back, of s and d doubled, Z[k] = s + i w^-k d and Z[m - k] = conj(s - i w^-k d). */
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
/* Pairs of two vectors to first and second numbers, and back. */
#if OPDI_LEVEL > 0
#if OPDI_LEVEL == 2 && OPDI_BYTES == 4
#define OPDI_FFT_EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define OPDI_FFT_ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define OPDI_FFT_LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define OPDI_FFT_HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#elif OPDI_LEVEL == 2 || OPDI_BYTES == 4
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
/* to[j ts + i] = from[i fs + j] for i, j < 4 */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(fft_four_by_four)(const OPDI_T *from, int64_t fs, OPDI_T *to, int64_t ts) {
#if OPDI_BYTES == 4
    opdi_transpose4(from, from + fs, from + 2 * fs, from + 3 * fs, to, ts);
#elif OPDI_LEVEL > 0
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
/* A cache line of each line at a time. */
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
/* Rows first to first + many, of LANES lanes from x on that are columns from `column` on, turned: to [LANES, 2, LANES],
   rows that are not there 0. */
OPDI_TARGET OPDI_ALWAYS void OPDI_WIDE(fft_turn_rows)(const opdi_fft_plan *plan, const OPDI_T *x, int64_t lanes,
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
OPDI_TARGET static void OPDI_WIDE(fft_turn)(const opdi_fft_plan *plan, const void *x, int64_t lanes, int64_t first,
                                            int64_t count, void *y, int64_t height, bool swap) {
    enum { LANES = OPDI_FFT_LANES };
    const int64_t rows = plan->rows.length;
    OPDI_T block[2 * LANES * LANES];
    for (int64_t lane = 0; lane < count; lane += LANES) {
        const int64_t beside = OPDI_MIN(count - lane, (int64_t)LANES);
        for (int64_t row = 0; row < rows; row += LANES) {
            OPDI_T *to = (OPDI_T *)y + (first + lane) * 2 * height + row;
            OPDI_WIDE(fft_turn_rows)(plan, (const OPDI_T *)x + lane, lanes, row, OPDI_MIN(rows - row, (int64_t)LANES),
                                     first + lane, swap, block);
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
    steps->turn = OPDI_WIDE(fft_turn);
}
#undef OPDI_FFT_LOAD
#undef OPDI_FFT_STORE
#endif
#if defined(OPDI_OPERATORS)
/* Lines of x along a dim, transformed, to y. */
struct opdi_fft {
    const opdi_fft_plan *plan;
    int ndim;                                     /* of the other dims */
    int64_t sizes[OPD_MAX_DIMS], xs[OPD_MAX_DIMS], ys[OPD_MAX_DIMS];   /* strides in numbers, as x, y and steps */
    int64_t lines, xstep, ystep, in, out;         /* in, out: elements of a line that are read and written */
    bool xcomplex, ycomplex, exchange, mirror;    /* exchange: of parts; mirror: the rest are conjugates */
    bool side_by_side;                            /* OPDI_FFT_LANES lines at a time */
    bool halves;                                  /* real lines are pairs of numbers, of which the plan has as many */
    const void *turn;                             /* of halves: exp(-pi i k / pairs) for k up to half of the pairs */
    double scale;
    const void *from;
    void *to;
    int32_t failed;
    opdi_fft_steps steps;
};
/* What the vectors of this machine do. */
static void opdi_fft_steps_here(opdi_fft_steps *steps, bool twice) {
    if (twice) { opdi_fft_steps_plain_f64(steps); } else { opdi_fft_steps_plain_f32(steps); }
#if defined(OPDI_X86)
    const int level = opdi_cpu_level();
    if (level == 2) { if (twice) { opdi_fft_steps_avx512_f64(steps); } else { opdi_fft_steps_avx512_f32(steps); } }
    if (level == 1) { if (twice) { opdi_fft_steps_avx2_f64(steps); } else { opdi_fft_steps_avx2_f32(steps); } }
#endif
}
#endif
#if defined(OPDI_WIDE) && OPDI_LEVEL == 0         /* once for each type */
/* Transforms x [length, 2, lanes], with as much room; returns the one of the two where the result is. */
static OPDI_T *OPDI_TYPED(fft_lanes)(const opdi_fft *fft, const opdi_fft_side *side, OPDI_T *x, OPDI_T *room,
                                     int64_t lanes, bool swap) {
    int64_t done = 1;
    for (int i = 0; i < side->count; i++) {
        fft->steps.pass(side, i, done, x, room, lanes, swap);
        done *= side->factor[i];
        OPDI_T *other = x;
        x = room;
        room = other;
    }
    return x;
}
/* Reads both parts of element `step` of the line that begins at `at`; what `mirror` leaves out are conjugates. */
static void OPDI_TYPED(fft_read)(const opdi_fft *fft, int64_t at, int64_t step, OPDI_T *first, OPDI_T *second) {
    const OPDI_T *x = (const OPDI_T *)fft->from + at;
    const int64_t total = fft->plan->length;
    const bool mirrored = fft->mirror && step >= fft->in;
    const int64_t from = mirrored ? total - step : step;
    const OPDI_T imaginary = fft->xcomplex ? x[from * fft->xstep + 1] : 0;
    *first = x[from * fft->xstep];
    /* of a real result's transform the first, and of even ones the middle, are real */
    *second = !fft->mirror ? imaginary : from == 0 || 2 * from == total ? 0 : mirrored ? -imaginary : imaginary;
}
static void OPDI_TYPED(fft_write)(const opdi_fft *fft, int64_t to, int64_t step, OPDI_T first, OPDI_T second) {
    OPDI_T *y = (OPDI_T *)fft->to + to + step * fft->ystep;
    if (step >= fft->out) { return; }
    y[0] = first * (OPDI_T)fft->scale;
    if (fft->ycomplex) { y[1] = second * (OPDI_T)fft->scale; }
}
/* Reads count elements that lie side by side, from the place `first` on. */
static void OPDI_TYPED(fft_read_run)(const opdi_fft *fft, int64_t first, int64_t count, OPDI_T *a, OPDI_T *b) {
    const OPDI_T *x = (const OPDI_T *)fft->from + first;
    if (fft->xcomplex) {
        fft->steps.split(x, count, a, b);
    } else {
        memcpy(a, x, (size_t)count * sizeof *a);
        memset(b, 0, (size_t)count * sizeof *b);
    }
}
static void OPDI_TYPED(fft_write_run)(const opdi_fft *fft, int64_t first, int64_t count, const OPDI_T *a,
                                      const OPDI_T *b) {
    OPDI_T *y = (OPDI_T *)fft->to + first;
    const OPDI_T scale = (OPDI_T)fft->scale;
    if (fft->ycomplex) { fft->steps.join(a, b, count, fft->scale, y); }
    for (int64_t i = 0; !fft->ycomplex && i < count; i++) { y[i] = a[i] * scale; }
}
/* Reads or writes count elements of a line from `step` on. */
static void OPDI_TYPED(fft_read_row)(const opdi_fft *fft, int64_t at, int64_t step, int64_t count, OPDI_T *a,
                                     OPDI_T *b) {
    const int64_t total = fft->plan->length;
    int64_t i = 0;
    if (fft->xstep == 1 + fft->xcomplex) {
        i = fft->mirror ? OPDI_MAX(OPDI_MIN(fft->in - step, count), (int64_t)0) : count;
        if (i) { OPDI_TYPED(fft_read_run)(fft, at + step * fft->xstep, i, a, b); }
        if (i && fft->mirror && step == 0) { b[0] = 0; }
        if (fft->mirror && total % 2 == 0 && step <= total / 2 && total / 2 < step + i) { b[total / 2 - step] = 0; }
    }
    if (i < count && fft->mirror && fft->xstep == 2) {                         /* steps from `in` on */
        const OPDI_T *x = (const OPDI_T *)fft->from + at + (total - step) * 2;
        for (; i < count; i++) {
            a[i] = x[-2 * i];
            b[i] = -x[-2 * i + 1];
        }
    }
    for (; i < count; i++) { OPDI_TYPED(fft_read)(fft, at, step + i, &a[i], &b[i]); }
}
static void OPDI_TYPED(fft_write_row)(const opdi_fft *fft, int64_t to, int64_t step, int64_t count, const OPDI_T *a,
                                      const OPDI_T *b) {
    count = OPDI_MIN(count, fft->out - step);
    if (fft->ystep == 1 + fft->ycomplex) {
        if (count > 0) { OPDI_TYPED(fft_write_run)(fft, to + step * fft->ystep, count, a, b); }
        return;
    }
    for (int64_t i = 0; i < count; i++) { OPDI_TYPED(fft_write)(fft, to, step + i, a[i], b[i]); }
}
static int64_t OPDI_TYPED(fft_round)(int64_t count) {
    return (count + OPDI_FFT_LANES - 1) / OPDI_FFT_LANES * OPDI_FFT_LANES;
}
/* How many lanes are worked on at a time of `count` for transforms of a length. */
static int64_t OPDI_TYPED(fft_width)(int64_t length, int64_t count) {
    const int64_t all = OPDI_TYPED(fft_round)(count);
    return length * all <= OPDI_FFT_WHOLE ? all : (int64_t)OPDI_FFT_LANES;
}
/* How many numbers fft_line works with. */
static int64_t OPDI_TYPED(fft_room)(const opdi_fft_plan *plan) {
    const int64_t rows = plan->rows.length, columns = plan->columns.length;
    if (plan->inner) { return 4 * plan->inner->length + OPDI_TYPED(fft_room)(plan->inner); }
    const int64_t first = rows * OPDI_TYPED(fft_width)(rows, columns);
    const int64_t second = columns * OPDI_TYPED(fft_width)(columns, rows);
    return 4 * OPDI_MAX(first, second) + (columns > 1 ? 2 * columns * OPDI_TYPED(fft_round)(rows) : 0);
}
static void OPDI_TYPED(fft_chirp)(const opdi_fft *fft, int64_t at, int64_t to, OPDI_T *room);
static void OPDI_TYPED(fft_powers)(const opdi_fft *fft, int64_t at, int64_t to, OPDI_T *room);
/* The columns of a line as a matrix, transformed; where there are several, turned and transposed to `middle`. */
static void OPDI_TYPED(fft_columns)(const opdi_fft *fft, int64_t at, int64_t to, OPDI_T *work, OPDI_T *middle) {
    const opdi_fft_plan *plan = fft->plan;
    const int64_t rows = plan->rows.length, columns = plan->columns.length, height = OPDI_TYPED(fft_round)(rows);
    const int64_t width = OPDI_TYPED(fft_width)(rows, columns);
    for (int64_t first = 0; first < columns; first += width) {
        const int64_t count = OPDI_MIN(width, columns - first);
        if (count < width) { memset(work, 0, (size_t)(2 * rows * width) * sizeof *work); }
        for (int64_t row = 0; row < rows; row++) {
            OPDI_T *parts = work + row * 2 * width;
            OPDI_TYPED(fft_read_row)(fft, at, row * columns + first, count, parts, parts + width);
        }
        const OPDI_T *done = OPDI_TYPED(fft_lanes)(fft, &plan->rows, work, work + 2 * rows * width, width,
                                                   fft->exchange);
        if (columns > 1) { fft->steps.turn(plan, done, width, first, count, middle, height, fft->exchange); }
        for (int64_t row = 0; columns == 1 && row < rows; row++) {
            OPDI_TYPED(fft_write)(fft, to, row, done[row * 2 * width], done[(row * 2 + 1) * width]);
        }
    }
}
/* Transforms the line of x that begins at `at` to that of y that begins at `to`. */
static void OPDI_TYPED(fft_line)(const opdi_fft *fft, int64_t at, int64_t to, OPDI_T *room) {
    const opdi_fft_plan *plan = fft->plan;
    const int64_t rows = plan->rows.length, columns = plan->columns.length, height = OPDI_TYPED(fft_round)(rows);
    if (plan->inner) {
        if (plan->order) { OPDI_TYPED(fft_powers)(fft, at, to, room); }
        else { OPDI_TYPED(fft_chirp)(fft, at, to, room); }
        return;
    }
    const int64_t width = OPDI_TYPED(fft_width)(rows, columns), depth = OPDI_TYPED(fft_width)(columns, rows);
    OPDI_T *middle = room + 4 * OPDI_MAX(rows * width, columns * depth);
    OPDI_TYPED(fft_columns)(fft, at, to, room, middle);
    for (int64_t first = 0; columns > 1 && first < rows; first += depth) {
        const int64_t count = OPDI_MIN(depth, rows - first);
        OPDI_T *work = depth < height ? room + 2 * columns * depth : middle;
        for (int64_t row = 0; depth < height && row < 2 * columns; row++) {
            memcpy(work + row * depth, middle + row * height + first, (size_t)depth * sizeof *work);
        }
        const OPDI_T *done = OPDI_TYPED(fft_lanes)(fft, &plan->columns, work, room, depth, fft->exchange);
        for (int64_t row = 0; row < columns && row * rows + first < fft->out; row++) {
            OPDI_TYPED(fft_write_row)(fft, to, row * rows + first, count, done + row * 2 * depth,
                                      done + (row * 2 + 1) * depth);
        }
    }
}
/* A transform of what is in memory side by side: of pairs x [length, 2], to y, or with parts exchanged. */
static void OPDI_TYPED(fft_inner)(const opdi_fft_plan *plan, const opdi_fft_steps *steps, bool exchange,
                                  const OPDI_T *x, OPDI_T *y, OPDI_T *room) {
    opdi_fft inner;
    memset(&inner, 0, sizeof inner);
    inner.plan = plan;
    inner.steps = *steps;
    inner.in = inner.out = plan->length;
    inner.xstep = inner.ystep = 2;
    inner.xcomplex = inner.ycomplex = true;
    inner.exchange = exchange;
    inner.scale = 1;
    inner.from = x;
    inner.to = y;
    OPDI_TYPED(fft_line)(&inner, 0, 0, room);
}
#if OPDI_BYTES == 8
static void opdi_fft_once_f64(const opdi_fft_plan *plan, const double *x, double *y, double *room) {
    opdi_fft_steps steps;
    opdi_fft_steps_here(&steps, true);
    opdi_fft_inner_f64(plan, &steps, false, x, y, room);
}
#endif
/* x [count, 2] times weights [count, 2], parts exchanged or not, to y. */
static void OPDI_TYPED(fft_weighted)(const OPDI_T *weights, int64_t count, bool exchange, const OPDI_T *x, OPDI_T *y) {
    const int re = exchange, im = !exchange;
    for (int64_t i = 0; i < 2 * count; i += 2) {
        const OPDI_T a = x[i + re], b = x[i + im], wr = weights[i], wi = weights[i + 1];
        y[i + re] = a * wr - b * wi;
        y[i + im] = a * wi + b * wr;
    }
}
/* A line as a convolution with a chirp, by two transforms of the inner plan. */
static void OPDI_TYPED(fft_chirp)(const opdi_fft *fft, int64_t at, int64_t to, OPDI_T *room) {
    const opdi_fft_plan *plan = fft->plan;
    const int64_t count = plan->length, rows = plan->inner->length;
    const OPDI_T *chirp = (const OPDI_T *)plan->chirp, *kernel = (const OPDI_T *)plan->kernel;
    const bool exchange = fft->exchange;
    OPDI_T *a = room, *b = room + 2 * rows, *rest = b + 2 * rows;
    for (int64_t step = 0; step < count; step++) {
        OPDI_TYPED(fft_read)(fft, at, step, &a[2 * step], &a[2 * step + 1]);
    }
    OPDI_TYPED(fft_weighted)(chirp, count, exchange, a, a);
    memset(a + 2 * count, 0, (size_t)(2 * (rows - count)) * sizeof *a);
    OPDI_TYPED(fft_inner)(plan->inner, &fft->steps, exchange, a, b, rest);
    OPDI_TYPED(fft_weighted)(kernel, rows, exchange, b, b);
    OPDI_TYPED(fft_inner)(plan->inner, &fft->steps, !exchange, b, a, rest);    /* back again */
    OPDI_TYPED(fft_weighted)(chirp, count, exchange, a, a);
    for (int64_t step = 0; step < count; step++) {
        OPDI_TYPED(fft_write)(fft, to, step, a[2 * step], a[2 * step + 1]);
    }
}
/* A line of a prime number n of points: those but the first, in the order of powers of g, are convoluted with
   exp(-2 pi i g^-q / n), and the results are in the order of g^-q. */
static void OPDI_TYPED(fft_powers)(const opdi_fft *fft, int64_t at, int64_t to, OPDI_T *room) {
    const opdi_fft_plan *plan = fft->plan;
    const int64_t rows = plan->inner->length;
    const OPDI_T *kernel = (const OPDI_T *)plan->kernel;
    const int32_t *order = plan->order;
    OPDI_T *a = room, *b = room + 2 * rows, *rest = b + 2 * rows, first, second;
    OPDI_TYPED(fft_read)(fft, at, 0, &first, &second);
    for (int64_t k = 0; k < rows; k++) { OPDI_TYPED(fft_read)(fft, at, order[k], &a[2 * k], &a[2 * k + 1]); }
    OPDI_TYPED(fft_inner)(plan->inner, &fft->steps, fft->exchange, a, b, rest);
    const OPDI_T re = b[0] + first, im = b[1] + second;
    OPDI_TYPED(fft_weighted)(kernel, rows, fft->exchange, b, b);
    b[0] += first;
    b[1] += second;
    OPDI_TYPED(fft_inner)(plan->inner, &fft->steps, !fft->exchange, b, a, rest);
    OPDI_TYPED(fft_write)(fft, to, 0, re, im);
    for (int64_t q = 0; q < rows; q++) {
        OPDI_TYPED(fft_write)(fft, to, order[q ? rows - q : 0], a[2 * q], a[2 * q + 1]);
    }
}
/* True where count lines lie `apart` numbers from each other. */
static bool OPDI_TYPED(fft_even)(const int64_t *at, int64_t count, int64_t apart) {
    for (int64_t lane = 1; lane < count; lane++) { if (at[lane] != at[0] + lane * apart) { return false; } }
    return true;
}
/* Reads the pairs of real lines, or the half of a transform that they have, as rows x [pairs, 2, lanes]; the last
   number of that half is real and is the imaginary part of the first. */
static void OPDI_TYPED(fft_read_halves)(const opdi_fft *fft, const int64_t *at, int64_t count, OPDI_T *x) {
    const OPDI_T *from = (const OPDI_T *)fft->from;
    const int64_t pairs = fft->plan->length, apart = count > 1 ? at[1] - at[0] : 0;
    const int64_t pair = fft->mirror ? fft->xstep : 2 * fft->xstep, second = fft->mirror ? 1 : fft->xstep;
    const bool fast = pair == 2 && second == 1 && count == OPDI_FFT_LANES && OPDI_TYPED(fft_even)(at, count, apart);
    if (fast) { fft->steps.in(from + at[0], apart, pairs, x); }
    for (int64_t step = 0; !fast && step < pairs; step++) {
        OPDI_T *a = x + step * 2 * OPDI_FFT_LANES, *b = a + OPDI_FFT_LANES;
        for (int64_t lane = 0; lane < count; lane++) {
            a[lane] = from[at[lane] + step * pair];
            b[lane] = from[at[lane] + step * pair + second];
        }
    }
    for (int64_t lane = 0; fft->mirror && lane < count; lane++) {
        x[OPDI_FFT_LANES + lane] = from[at[lane] + pairs * pair];
    }
}
/* The other way. */
static void OPDI_TYPED(fft_write_halves)(const opdi_fft *fft, const int64_t *to, int64_t count, OPDI_T *x) {
    OPDI_T *out = (OPDI_T *)fft->to;
    const OPDI_T scale = (OPDI_T)fft->scale;
    const int64_t pairs = fft->plan->length, apart = count > 1 ? to[1] - to[0] : 0;
    const int64_t pair = fft->mirror ? 2 * fft->ystep : fft->ystep, second = fft->mirror ? fft->ystep : 1;
    for (int64_t lane = 0; !fft->mirror && lane < count; lane++) {
        out[to[lane] + pairs * pair] = x[OPDI_FFT_LANES + lane] * scale;
        out[to[lane] + pairs * pair + second] = 0;
        x[OPDI_FFT_LANES + lane] = 0;
    }
    if (pair == 2 && second == 1 && count == OPDI_FFT_LANES && OPDI_TYPED(fft_even)(to, count, apart)) {
        fft->steps.out(x, apart, pairs, fft->scale, out + to[0]);
        return;
    }
    for (int64_t step = 0; step < pairs; step++) {
        const OPDI_T *a = x + step * 2 * OPDI_FFT_LANES, *b = a + OPDI_FFT_LANES;
        for (int64_t lane = 0; lane < count; lane++) {
            out[to[lane] + step * pair] = a[lane] * scale;
            out[to[lane] + step * pair + second] = b[lane] * scale;
        }
    }
}
/* Reads count lines as rows x [length, 2, lanes]. */
static void OPDI_TYPED(fft_read_group)(const opdi_fft *fft, const int64_t *at, int64_t count, OPDI_T *x) {
    const int64_t total = fft->plan->length, apart = count > 1 ? at[1] - at[0] : 0;
    const bool beside = !fft->mirror && OPDI_TYPED(fft_even)(at, count, 1 + fft->xcomplex);
    if (!fft->mirror && fft->xcomplex && fft->xstep == 2 && count == OPDI_FFT_LANES && !beside &&
        OPDI_TYPED(fft_even)(at, count, apart)) {
        fft->steps.in((const OPDI_T *)fft->from + at[0], apart, total, x);
        return;
    }
    for (int64_t step = 0; step < total; step++) {
        OPDI_T *a = x + step * 2 * OPDI_FFT_LANES, *b = a + OPDI_FFT_LANES;
        if (beside) { OPDI_TYPED(fft_read_run)(fft, at[0] + step * fft->xstep, count, a, b); }
        for (int64_t lane = 0; !beside && lane < count; lane++) {
            OPDI_TYPED(fft_read)(fft, at[lane], step, a + lane, b + lane);
        }
    }
}
static void OPDI_TYPED(fft_write_group)(const opdi_fft *fft, const int64_t *to, int64_t count, const OPDI_T *x) {
    const int64_t apart = count > 1 ? to[1] - to[0] : 0;
    const bool beside = OPDI_TYPED(fft_even)(to, count, 1 + fft->ycomplex);
    if (fft->ycomplex && fft->ystep == 2 && count == OPDI_FFT_LANES && !beside &&
        OPDI_TYPED(fft_even)(to, count, apart)) {
        fft->steps.out(x, apart, fft->out, fft->scale, (OPDI_T *)fft->to + to[0]);
        return;
    }
    for (int64_t step = 0; step < fft->out; step++) {
        const OPDI_T *a = x + step * 2 * OPDI_FFT_LANES, *b = a + OPDI_FFT_LANES;
        if (beside) { OPDI_TYPED(fft_write_run)(fft, to[0] + step * fft->ystep, count, a, b); }
        for (int64_t lane = 0; !beside && lane < count; lane++) {
            OPDI_TYPED(fft_write)(fft, to[lane], step, a[lane], b[lane]);
        }
    }
}
/* fft_chirp and fft_powers of x [rows of the inner plan or more, 2, lanes], with as much room; returns the one of the
   two where the result is. */
static OPDI_T *OPDI_TYPED(fft_group_chirp)(const opdi_fft *fft, OPDI_T *x, OPDI_T *room, bool swap) {
    const opdi_fft_plan *plan = fft->plan;
    const int64_t total = plan->length, rows = plan->inner->length;
    fft->steps.times(plan->chirp, total, x, swap);
    memset(x + total * 2 * OPDI_FFT_LANES, 0, (size_t)((rows - total) * 2 * OPDI_FFT_LANES) * sizeof *x);
    OPDI_T *done = OPDI_TYPED(fft_lanes)(fft, &plan->inner->rows, x, room, OPDI_FFT_LANES, swap);
    fft->steps.times(plan->kernel, rows, done, swap);
    done = OPDI_TYPED(fft_lanes)(fft, &plan->inner->rows, done, done == x ? room : x, OPDI_FFT_LANES, !swap);
    fft->steps.times(plan->chirp, total, done, swap);
    return done;
}
static OPDI_T *OPDI_TYPED(fft_group_powers)(const opdi_fft *fft, OPDI_T *x, OPDI_T *room, bool swap) {
    enum { ROW = 2 * OPDI_FFT_LANES };
    const opdi_fft_plan *plan = fft->plan;
    const int64_t rows = plan->inner->length;
    OPDI_T first[ROW], all[ROW];
    memcpy(first, x, sizeof first);
    for (int64_t k = 0; k < rows; k++) { memcpy(room + k * ROW, x + plan->order[k] * ROW, sizeof first); }
    OPDI_T *done = OPDI_TYPED(fft_lanes)(fft, &plan->inner->rows, room, x, OPDI_FFT_LANES, swap);
    for (int i = 0; i < ROW; i++) { all[i] = done[i] + first[i]; }
    fft->steps.times(plan->kernel, rows, done, swap);
    for (int i = 0; i < ROW; i++) { done[i] += first[i]; }
    done = OPDI_TYPED(fft_lanes)(fft, &plan->inner->rows, done, done == x ? room : x, OPDI_FFT_LANES, !swap);
    OPDI_T *other = done == x ? room : x;
    memcpy(other, all, sizeof all);
    for (int64_t q = 0; q < rows; q++) {
        memcpy(other + plan->order[q ? rows - q : 0] * ROW, done + q * ROW, sizeof first);
    }
    return other;
}
/* Transforms x [rows, 2, lanes] of the plan's length; returns where the result is. */
static OPDI_T *OPDI_TYPED(fft_group_run)(const opdi_fft *fft, OPDI_T *x, int64_t rows) {
    OPDI_T *room = x + rows * 2 * OPDI_FFT_LANES;
    if (!fft->plan->inner) {
        return OPDI_TYPED(fft_lanes)(fft, &fft->plan->rows, x, room, OPDI_FFT_LANES, fft->exchange);
    }
    return fft->plan->order ? OPDI_TYPED(fft_group_powers)(fft, x, room, fft->exchange)
        : OPDI_TYPED(fft_group_chirp)(fft, x, room, fft->exchange);
}
/* Transforms count lines, at most OPDI_FFT_LANES, side by side: at and to [count] are where they begin. */
static void OPDI_TYPED(fft_group)(const opdi_fft *fft, const int64_t *at, const int64_t *to, int64_t count, OPDI_T *x) {
    const opdi_fft_plan *plan = fft->plan;
    const int64_t rows = plan->inner ? OPDI_MAX(plan->inner->length, plan->length) : plan->length;
    if (count < OPDI_FFT_LANES) { memset(x, 0, (size_t)(rows * 2 * OPDI_FFT_LANES) * sizeof *x); }
    if (!fft->halves) {
        OPDI_TYPED(fft_read_group)(fft, at, count, x);
        OPDI_TYPED(fft_write_group)(fft, to, count, OPDI_TYPED(fft_group_run)(fft, x, rows));
        return;
    }
    OPDI_TYPED(fft_read_halves)(fft, at, count, x);
    if (fft->mirror) { fft->steps.real(fft->turn, plan->length, true, x, false); }
    x = OPDI_TYPED(fft_group_run)(fft, x, rows);
    if (!fft->mirror) { fft->steps.real(fft->turn, plan->length, false, x, false); }
    OPDI_TYPED(fft_write_halves)(fft, to, count, x);
}
/* Transforms groups [begin, end) of lines.  Without memory `failed` is set. */
static void OPDI_TYPED(fft_range)(void *ctx, int64_t begin, int64_t end) {
    opdi_fft *fft = (opdi_fft *)ctx;
    const int64_t most = fft->side_by_side ? OPDI_FFT_LANES : 1;
    const size_t room = (size_t)OPDI_TYPED(fft_room)(fft->plan) * sizeof(OPDI_T);
    OPDI_T *x = (OPDI_T *)(void *)opdi_lend(room);
    if (!x) {
        OPDI_STORE(&fft->failed, 1);
        return;
    }
    for (int64_t group = begin; group < end; group++) {
        const int64_t first = group * most, count = OPDI_MIN(most, fft->lines - first);
        int64_t at[OPDI_FFT_MOST], to[OPDI_FFT_MOST];
        for (int lane = 0; lane < count; lane++) {
            int64_t rest = first + lane;
            at[lane] = to[lane] = 0;
            for (int dim = fft->ndim - 1; dim >= 0; dim--) {
                at[lane] += rest % fft->sizes[dim] * fft->xs[dim];
                to[lane] += rest % fft->sizes[dim] * fft->ys[dim];
                rest /= fft->sizes[dim];
            }
        }
        if (fft->side_by_side) { OPDI_TYPED(fft_group)(fft, at, to, count, x); }
        else { OPDI_TYPED(fft_line)(fft, at[0], to[0], x); }
    }
    opdi_lend_end((char *)x, room);
}
#endif
#if defined(OPDI_OPERATORS)
OPDI_COLD_BEGIN
/* exp(-2 pi i k / order) for k < count, of which an eighth of the circle is computed and the rest are its images. */
static void opdi_fft_turns_mirrored(double *weight, int64_t count, int64_t order) {
    const int64_t quarter = order / 4;
    for (int64_t k = 0; k <= order / 8 && k < count; k++) {
        const double a = 6.283185307179586476925 * (double)k / (double)order, cosine = cos(a), sine = sin(a);
        weight[2 * k] = cosine;
        weight[2 * k + 1] = -sine;
        if (quarter - k < count) {
            weight[2 * (quarter - k)] = sine;
            weight[2 * (quarter - k) + 1] = -cosine;
        }
    }
    for (int64_t k = quarter + 1; k < count; k++) {
        weight[2 * k] = weight[2 * (k - quarter) + 1];
        weight[2 * k + 1] = -weight[2 * (k - quarter)];
    }
}
/* exp(-2 pi i k step / order) for k < count; NULL with an error. */
static double *opdi_fft_turns(int64_t count, int64_t step, int64_t order) {
    double *weight = (double *)opdi_scope_alloc((size_t)(2 * count) * sizeof *weight);
    if (step > 1 && order % step == 0) {
        order /= step;
        step = 1;
    }
    if (weight && step == 1 && order % 8 == 0 && (count <= order / 8 || count > order / 4)) {
        opdi_fft_turns_mirrored(weight, count, order);
        return weight;
    }
    for (int64_t k = 0; weight && k < count; k++) {
        const double a = -6.283185307179586476925 * (double)(k * step) / (double)order;
        weight[2 * k] = cos(a);
        weight[2 * k + 1] = sin(a);
    }
    return weight;
}
/* The same numbers in a plan's type; NULL stays NULL. */
static const void *opdi_fft_typed(const double *numbers, int64_t count, bool twice) {
    if (twice || !numbers) { return numbers; }
    float *rounded = (float *)opdi_scope_alloc((size_t)count * sizeof *rounded);
    for (int64_t i = 0; rounded && i < count; i++) { rounded[i] = (float)numbers[i]; }
    return rounded;
}
static int opdi_fft_roots_make(opdi_fft_roots *roots, int64_t order) {
    roots->bits = 0;
    while ((int64_t)1 << 2 * roots->bits < order) { roots->bits++; }
    const int64_t step = (int64_t)1 << roots->bits;
    roots->low = opdi_fft_turns(step, 1, order);
    roots->high = opdi_fft_turns(order / step + 1, step, order);
    return roots->low && roots->high ? 0 : -1;
}
/* root [2] = exp(-2 pi i at / order) */
static void opdi_fft_root(const opdi_fft_roots *roots, int64_t at, double root[2]) {
    const double *a = roots->low + (at & (((int64_t)1 << roots->bits) - 1)) * 2, *b = roots->high +
        (at >> roots->bits) * 2;
    root[0] = a[0] * b[0] - a[1] * b[1];
    root[1] = a[0] * b[1] + a[1] * b[0];
}
/* Fills in the factors of length; returns what is left of it, 1 where all are small. */
static int64_t opdi_fft_factors(opdi_fft_side *side, int64_t length, int most) {
    int64_t rest = side->length = length;
    side->count = 0;
    while (rest % 8 == 0 && rest != 16) {
        side->factor[side->count++] = 8;
        rest /= 8;
    }
    while (rest % 4 == 0) {
        side->factor[side->count++] = 4;
        rest /= 4;
    }
    for (int radix = 2; radix <= most; radix++) {
        while (rest % radix == 0) {
            side->factor[side->count++] = radix;
            rest /= radix;
        }
    }
    return rest;
}
/* The same with the roots; -1 with an error. */
static int64_t opdi_fft_side_make(opdi_fft_side *side, int64_t length, bool twice) {
    const int64_t rest = opdi_fft_factors(side, length, OPDI_FFT_RADIX);
    if (rest > 1) { return rest; }
    side->turn = opdi_fft_typed(opdi_fft_turns(length, 1, length), 2 * length, twice);
    return side->turn ? 1 : -1;
}
/* The rows of the matrix that a line of `length` becomes: of the divisors nearby its root that which wastes the fewest
   lanes, which come by so many; else, or of a short line, the length. */
static int64_t opdi_fft_cut(int64_t length, int64_t by) {
    int64_t best = length, least = INT64_MAX;
    for (int64_t rows = 2; rows * rows <= length * 16 && length >= OPDI_FFT_SHORT; rows++) {
        const int64_t columns = length / rows;
        if (length % rows || columns * columns > length * 16) { continue; }
        const int64_t lanes = rows * ((columns + by - 1) / by * by) + columns * ((rows + by - 1) / by * by);
        const int64_t cost = 64 * lanes + 8 * (lanes / length) * OPDI_MAX(rows, columns);
        if (cost < least) {
            least = cost;
            best = rows;
        }
    }
    return best;
}
static const opdi_fft_plan *opdi_fft_make(int64_t count, bool twice, bool cut);
/* base^exponent modulo a number below 2^31 */
static int64_t opdi_fft_power(int64_t base, int64_t exponent, int64_t modulus) {
    int64_t power = 1;
    for (; exponent; exponent >>= 1, base = base * base % modulus) {
        if (exponent & 1) { power = power * base % modulus; }
    }
    return power;
}
/* A number whose powers modulo n are all but 0, where n is a prime and n - 1 of small factors; else 0. */
static int64_t opdi_fft_generator(int64_t n) {
    opdi_fft_side side;
    if (n >= INT32_MAX || opdi_fft_factors(&side, n - 1, OPDI_FFT_SMOOTH) > 1) { return 0; }
    for (int64_t base = 2; base < n; base++) {
        bool all = opdi_fft_power(base, n - 1, n) == 1;
        if (!all) { return 0; }
        for (int i = 0; i < side.count; i++) {
            const int factor = side.factor[i] == 8 || side.factor[i] == 4 ? 2 : side.factor[i];
            all = all && opdi_fft_power(base, (n - 1) / factor, n) != 1;
        }
        if (all) { return base; }
    }
    return 0;
}
/* The transform of numbers [n, 2], in double, for a plan of such a convolution; NULL with an error. */
static const void *opdi_fft_kernel(const opdi_fft_plan *plan, const double *numbers, int64_t count) {
    const opdi_fft_plan *wide = opdi_fft_make(count, true, true);
    double *kernel = (double *)opdi_scope_alloc((size_t)(2 * count) * sizeof *kernel);
    double *room = wide ? (double *)opdi_scope_alloc((size_t)opdi_fft_room_f64(wide) * sizeof *room) : NULL;
    if (!kernel || !room) { return NULL; }
    opdi_fft_once_f64(wide, numbers, kernel, room);
    return opdi_fft_typed(kernel, 2 * count, plan->twice);
}
/* Fills in what a convolution in the order of the powers of a number needs; -1 with an error. */
static int opdi_fft_powers_make(opdi_fft_plan *plan, int64_t generator, bool cut) {
    const int64_t count = plan->length, rows = count - 1;
    opdi_fft_roots roots;
    plan->inner = opdi_fft_make(rows, plan->twice, cut);
    int32_t *order = (int32_t *)opdi_scope_alloc((size_t)rows * sizeof *order);
    double *x = (double *)opdi_scope_alloc((size_t)(2 * rows) * sizeof *x);
    if (!plan->inner || !order || !x || opdi_fft_roots_make(&roots, count)) { return -1; }
    for (int64_t k = 0, power = 1; k < rows; k++, power = power * generator % count) { order[k] = (int32_t)power; }
    for (int64_t q = 0; q < rows; q++) {
        opdi_fft_root(&roots, order[q ? rows - q : 0], x + 2 * q);
        x[2 * q] /= (double)rows;
        x[2 * q + 1] /= (double)rows;
    }
    plan->order = order;
    plan->kernel = opdi_fft_kernel(plan, x, rows);
    return plan->kernel ? 0 : -1;
}
/* Fills in what a convolution with a chirp needs; -1 with an error. */
static int opdi_fft_chirp_make(opdi_fft_plan *plan, bool cut) {
    const int64_t count = plan->length;
    opdi_fft_roots roots;
    int64_t rows = 1;
    while (rows < 2 * count - 1) { rows *= 2; }
    if (rows / 8 * 5 >= 2 * count - 1) { rows = rows / 8 * 5; }
    else if (rows / 4 * 3 >= 2 * count - 1) { rows = rows / 4 * 3; }
    plan->inner = opdi_fft_make(rows, plan->twice, cut);
    double *chirp = (double *)opdi_scope_alloc((size_t)(2 * count) * sizeof *chirp);
    double *x = (double *)opdi_scope_alloc((size_t)(2 * rows) * sizeof *x);
    if (!plan->inner || !chirp || !x || opdi_fft_roots_make(&roots, 2 * count)) { return -1; }
    memset(x, 0, (size_t)(2 * rows) * sizeof *x);
    for (int64_t step = 0; step < count; step++) {
        const int64_t at = (int64_t)((uint64_t)step * (uint64_t)step % (uint64_t)(2 * count));
        const int64_t other = step ? rows - step : 0;
        opdi_fft_root(&roots, at, chirp + 2 * step);
        x[2 * step] = x[2 * other] = chirp[2 * step] / (double)rows;
        x[2 * step + 1] = x[2 * other + 1] = -chirp[2 * step + 1] / (double)rows;
    }
    plan->chirp = opdi_fft_typed(chirp, 2 * count, plan->twice);
    plan->kernel = opdi_fft_kernel(plan, x, rows);
    return plan->chirp && plan->kernel ? 0 : -1;
}
/* Fills in what turns a matrix; -1 with an error. */
static int opdi_fft_near_make(opdi_fft_plan *plan, int64_t lanes) {
    const int64_t rows = plan->rows.length;
    double *nearby = (double *)opdi_scope_alloc((size_t)(rows * 2 * lanes) * sizeof *nearby), root[2];
    if (!nearby || opdi_fft_roots_make(&plan->roots, plan->length)) { return -1; }
    for (int64_t row = 0; row < rows; row++) {
        for (int64_t lane = 0; lane < lanes; lane++) {
            opdi_fft_root(&plan->roots, row * lane % plan->length, root);
            nearby[row * 2 * lanes + lane] = root[0];
            nearby[(row * 2 + 1) * lanes + lane] = root[1];
        }
    }
    plan->nearby = opdi_fft_typed(nearby, rows * 2 * lanes, plan->twice);
    return plan->nearby ? 0 : -1;
}
/* Plans lines of count elements, which are cut into matrices or not; NULL with an error. */
static const opdi_fft_plan *opdi_fft_make(int64_t count, bool twice, bool cut) {
    opdi_fft_plan *plan = (opdi_fft_plan *)opdi_scope_alloc(sizeof *plan);
    const int64_t lanes = 64 / (int64_t)(twice ? sizeof(double) : sizeof(float));
    if (!plan) { return NULL; }
    memset(plan, 0, sizeof *plan);
    plan->length = count;
    plan->twice = twice;
    const int64_t rows = cut ? opdi_fft_cut(count, lanes) : count;
    const int64_t rest = opdi_fft_side_make(&plan->rows, rows, twice);
    const int64_t other = rest == 1 ? opdi_fft_side_make(&plan->columns, count / rows, twice) : rest;
    if (other < 0) { return NULL; }
    if (other > 1) {
        const int64_t generator = opdi_fft_generator(count);
        return (generator ? opdi_fft_powers_make(plan, generator, cut) : opdi_fft_chirp_make(plan, cut)) ? NULL : plan;
    }
    return rows == count || !opdi_fft_near_make(plan, lanes) ? plan : NULL;
}
/* output = the transform of input along dim, of count points. */
static int opdi_fft_along(opd_tensor *output, opd_tensor *input, int dim, int64_t count, bool inverse, bool mirror,
                          double scale) {
    const bool twice = input->dtype == OPD_FLOAT64 || input->dtype == OPD_COMPLEX128;
    const int64_t lanes = 64 / (int64_t)(twice ? sizeof(double) : sizeof(float));
    opdi_fft fft;
    if (output->numel == 0) { return 0; }
    memset(&fft, 0, sizeof fft);
    fft.xcomplex = opd_dtype_is_complex(OPDI_DTYPE(input));
    fft.ycomplex = opd_dtype_is_complex(OPDI_DTYPE(output));
    fft.exchange = inverse;
    fft.mirror = mirror;
    fft.scale = scale;
    fft.lines = 1;
    opdi_fft_steps_here(&fft.steps, twice);
    for (int axis = 0; axis < output->ndim; axis++) {
        const int64_t xs = opdi_strides(input)[axis] * (1 + fft.xcomplex),
            ys = opdi_strides(output)[axis] * (1 + fft.ycomplex);
        if (axis == dim) {
            fft.xstep = xs;
            fft.ystep = ys;
            fft.in = opdi_sizes(input)[axis];
            fft.out = opdi_sizes(output)[axis];
            continue;
        }
        fft.sizes[fft.ndim] = opdi_sizes(output)[axis];
        fft.xs[fft.ndim] = xs;
        fft.ys[fft.ndim++] = ys;
        fft.lines *= opdi_sizes(output)[axis];
    }
    fft.from = input->data;
    fft.to = output->data;
    /* neighbouring lines may be neighbours in memory */
    const bool beside = fft.ndim && fft.xs[fft.ndim - 1] == 1 + fft.xcomplex;
    fft.side_by_side = fft.lines > 1 && (count < OPDI_FFT_SHORT || (count <= OPDI_FFT_NEAR &&
                                                                   (beside || fft.lines >= OPDI_FFT_MANY)));
    fft.halves = fft.side_by_side && count % 2 == 0 && (mirror ? !fft.ycomplex : !fft.xcomplex &&
                                                        fft.out == count / 2 + 1);
    if (fft.halves) {
        fft.turn = opdi_fft_typed(opdi_fft_turns(count / 4 + 1, 1, count), 2 * (count / 4 + 1), twice);
        if (!fft.turn) { return -1; }
    }
    fft.plan = opdi_fft_make(fft.halves ? count / 2 : count, twice, !fft.side_by_side);
    if (!fft.plan) { return -1; }
    const int64_t groups = fft.side_by_side ? (fft.lines + lanes - 1) / lanes : fft.lines;
    const int64_t room = twice ? opdi_fft_room_f64(fft.plan) : opdi_fft_room_f32(fft.plan);
    opdi_parallel_lend(groups, OPDI_MAX((int64_t)1, OPDI_GRAIN / 8 / (count * (fft.side_by_side ? lanes : 1))),
                       twice ? opdi_fft_range_f64 : opdi_fft_range_f32, &fft,
                       OPDI_LENT((size_t)room * (twice ? sizeof(double) : sizeof(float))));
    return fft.failed ? opd_fail(OPD_ERROR_MEMORY, "out of memory") : 0;
}
/* Reads dims [n] that are there and differ, and the factor by which `normalization` says; -1 with an error. */
static int opdi_fft_dims(opd_call *call, const int64_t *sizes, int ndim, int *dims, double *scale) {
    const opd_ints list = opd_arg_ints(call, 1);
    const int64_t how = opd_arg_int(call, 2);
    uint64_t seen = 0;
    double n = 1;
    for (int i = 0; i < list.n; i++) {
        const int dim = opdi_dim_of(list.data[i], ndim);
        if (dim < 0) { return -1; }
        if (seen >> dim & 1) { return opd_fail(OPD_ERROR_ARGUMENT, "FFT dims must be unique"); }
        seen |= (uint64_t)1 << dim;
        dims[i] = dim;                            /* at most OPD_MAX_DIMS, as they differ */
        if (ndim) { n *= (double)sizes[dims[i]]; }
    }
    if (how < 0 || how > 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Unsupported normalization type %lld", (long long)how);
    }
    *scale = how == 0 ? 1 : how == 1 ? 1 / sqrt(n) : 1 / n;
    return (int)list.n;
}
static int opdi_fft_dtype(opd_scalar_type dtype, bool pairs) {
    if (pairs ? opd_dtype_is_complex(dtype) : dtype == OPD_FLOAT32 || dtype == OPD_FLOAT64) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, pairs ? "Expected a complex tensor, but got %s" : opd_dtype_is_floating(dtype)
                    ? "Unsupported dtype %s" : "Expected a real floating-point tensor, but got %s",
                    opd_dtype_cname(dtype));
}
/* Transforms output along dims [from, count), in place. */
static int opdi_fft_rest(opd_tensor *output, const int *dims, int from, int count, bool inverse) {
    for (; from < count; from++) {
        if (opdi_fft_along(output, output, dims[from], opdi_sizes(output)[dims[from]], inverse, false, 1)) {
            return -1;
        }
    }
    return 0;
}
/* Real to complex: the last dim first, of which `onesided` keeps the half that the rest are conjugates of. */
static int opdi__fft_r2c_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = input->dtype == OPD_FLOAT64 ? OPD_COMPLEX128 : OPD_COMPLEX64;
    int64_t sizes[OPD_MAX_DIMS];
    int dims[OPD_MAX_DIMS];
    double scale;
    if (opdi_fft_dtype(OPDI_DTYPE(input), false)) { return -1; }
    int count = opdi_fft_dims(call, opdi_sizes(input), input->ndim, dims, &scale);
    if (count <= 0 || input->ndim == 0) { return count < 0 ? -1 : opd_fail(OPD_ERROR_ARGUMENT, "FFT must have dims"); }
    int last = dims[count - 1];
    memcpy(sizes, opdi_sizes(input), (size_t)input->ndim * sizeof *sizes);
    if (opd_arg_bool(call, 3)) { sizes[last] = sizes[last] / 2 + 1; }
    opd_tensor *output = opd_result(call, 0, sizes, input->ndim, dtype);
    if (!output || !output->data || output->numel == 0) { return output ? 0 : -1; }
    if (input->numel == 0) { return opdi_fill_with(output, opd_value_int(0)); }
    opd_tensor *work = opdi_work_for(output, dtype);
    if (!work || opdi_fft_along(work, input, last, opdi_sizes(input)[last], false, false, scale)) { return -1; }
    return opdi_fft_rest(work, dims, 0, count - 1, false) ? -1 : opdi_done_with(output, work);
}
static int opdi__fft_c2c_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const bool inverse = !opd_arg_bool(call, 3);
    int dims[OPD_MAX_DIMS];
    double scale;
    if (opdi_fft_dtype(OPDI_DTYPE(input), true)) { return -1; }
    int count = opdi_fft_dims(call, opdi_sizes(input), input->ndim, dims, &scale);
    opd_tensor *output = count < 0 ? NULL : opd_result(call, 0, opdi_sizes(input), input->ndim, OPDI_DTYPE(input));
    if (!output || !output->data || output->numel == 0) { return output ? 0 : -1; }
    if (count == 0 || input->ndim == 0) { return opdi_copy(output, input); }
    opd_tensor *work = opdi_work_for(output, OPDI_DTYPE(input));
    if (!work || opdi_fft_along(work, input, dims[0], opdi_sizes(input)[dims[0]], inverse, false, scale)) { return -1; }
    return opdi_fft_rest(work, dims, 1, count, inverse) ? -1 : opdi_done_with(output, work);
}
/* Back to real numbers: the last dim last, of last_dim_size points, whose second half is not read. */
static int opdi__fft_c2r_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = input->dtype == OPD_COMPLEX128 ? OPD_FLOAT64 : OPD_FLOAT32;
    const int64_t size = opd_arg_int(call, 3);
    int64_t sizes[OPD_MAX_DIMS];
    int dims[OPD_MAX_DIMS];
    double scale;
    if (opdi_fft_dtype(OPDI_DTYPE(input), true)) { return -1; }
    memcpy(sizes, opdi_sizes(input), (size_t)input->ndim * sizeof *sizes);
    int count = (int)opd_arg_ints(call, 1).n;
    if (count <= 0 || input->ndim == 0) { return opd_fail(OPD_ERROR_ARGUMENT, "FFT must have dims"); }
    int last = opdi_dim_of(opd_arg_ints(call, 1).data[count - 1], input->ndim);
    if (last < 0) { return -1; }
    if (size < 1 || sizes[last] < size / 2 + 1) {
        return opd_fail(OPD_ERROR_SHAPE, "Invalid number of data points (%lld) specified", (long long)size);
    }
    sizes[last] = size;
    count = opdi_fft_dims(call, sizes, input->ndim, dims, &scale);
    opd_tensor *output = count < 0 ? NULL : opd_result(call, 0, sizes, input->ndim, dtype);
    if (!output || !output->data || output->numel == 0) { return output ? 0 : -1; }
    opd_tensor *work = opdi_work_for(output, dtype);
    opd_tensor *part = opd_narrow(input, last, 0, size / 2 + 1);
    if (part && count > 1) { part = opd_clone(part); }
    if (!work || !part || opdi_fft_rest(part, dims, 0, count - 1, true)) { return -1; }
    return opdi_fft_along(work, part, last, size, true, true, scale) ? -1 : opdi_done_with(output, work);
}
static int opdi__fft_c2c_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_fft_c2c(opd_bw_grad(bw, 0), opdi_bw_dims(bw, 1), opd_bw_value(bw, 2).u.i,
                                            opd_bw_value(bw, 3).u.i == 0));
}
/* The real part of the other direction; what a one-sided transform leaves out has no gradient. */
static int opdi__fft_r2c_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    const opd_ints dims = opdi_bw_dims(bw, 1), sizes = opd_bw_sizes(bw, 0);
    int64_t pad[2 * OPD_MAX_DIMS + 2];
    if (!grad) { return 0; }
    int last = opdi_dim_of(dims.data[dims.n - 1], grad->ndim);
    if (opdi_sizes(grad)[last] < sizes.data[last]) {
        const int count = 2 * (grad->ndim - last + 1);
        for (int i = 0; i < count; i++) { pad[i] = 0; }
        pad[count - 1] = sizes.data[last] - opdi_sizes(grad)[last];
        grad = opd_view_as_complex(opd_constant_pad_nd(opd_view_as_real(grad), opd_ints_of(pad, count)));
    }
    grad = opd_view_as_real(opd_fft_c2c(grad, dims, opd_bw_value(bw, 2).u.i, false));
    return opd_bw_return(bw, 0, opd_select(grad, -1, 0));
}
/* The gradient of _fft_c2r: elements that stand for two of the line count twice. */
static int opdi__fft_c2r_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0);
    const opd_ints dims = opdi_bw_dims(bw, 1), sizes = opd_bw_sizes(bw, 0);
    const int64_t total = opd_bw_value(bw, 3).u.i, half = total / 2 + 1, both = total - half;
    int64_t shape[OPD_MAX_DIMS + 1], pad[2 * OPD_MAX_DIMS + 2];
    if (!grad) { return 0; }
    int last = opdi_dim_of(dims.data[dims.n - 1], grad->ndim);
    grad = opd_view_as_real(opd_fft_r2c(grad, dims, opd_bw_value(bw, 2).u.i, true));
    if (!grad) { return -1; }
    pad[0] = 1;
    pad[1] = half - 1 - both;
    opd_tensor *twice = opd_constant_pad_nd(opd_new_ones(grad, opd_ints_of(&both, 1)), opd_ints_of(pad, 2));
    twice = opd_add_Scalar(twice, opd_value_int(1));
    for (int i = 0; i < grad->ndim; i++) { shape[i] = i == last ? half : 1; }
    grad = opd_mul(grad, opdi_reshape_to(twice, shape, grad->ndim));
    if (grad && sizes.data[last] > half) {
        const int count = 2 * (grad->ndim - last);
        for (int i = 0; i < count; i++) { pad[i] = 0; }
        pad[count - 1] = sizes.data[last] - half;
        grad = opd_constant_pad_nd(grad, opd_ints_of(pad, count));
    }
    return opd_bw_return(bw, 0, opd_view_as_complex(grad));
}
OPDI_OP(_fft_r2c) {
    op->schema = "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor";
    op->cpu = op->fake = opdi__fft_r2c_kernel; op->backward = opdi__fft_r2c_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->autocast = OPD_AUTOCAST_KEEP; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_CASTS;
    op->out = "_fft_r2c.out";
    op->cases = "[6], (0,), 0, True; [5], (0,), 1, True; [2,6], (0,1), 2, False; [37], (0,), 0, True; [3,4,5], (2,0), "
        "0, True";
}
OPDI_OP(_fft_c2c) {
    op->schema = "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor";
    op->cpu = op->fake = opdi__fft_c2c_kernel; op->backward = opdi__fft_c2c_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->autocast = OPD_AUTOCAST_KEEP;
    op->out = "_fft_c2c.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "";
}
OPDI_OP(_fft_c2r) {
    op->schema = "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor";
    op->cpu = op->fake = opdi__fft_c2r_kernel; op->backward = opdi__fft_c2r_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->autocast = OPD_AUTOCAST_KEEP;
    op->out = "_fft_c2r.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "";
}
OPDI_COLD_END

