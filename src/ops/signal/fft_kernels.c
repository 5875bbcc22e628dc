#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:fft       discrete Fourier transforms
//----------------------------------------------------------------------------------------------------------------------

//== discrete Fourier transforms: _fft_r2c, _fft_c2r, _fft_c2c =========================================================
//
//  One dim is transformed after another, in the dtype of the numbers.  Lines are processed in vector lanes, one line
//  per lane.  A single long line is treated as a matrix of rows x columns: its columns are transformed, multiplied by
//  the twiddle factors exp(-2 pi i * row * column / n), transposed, and transformed again.  A length n with small
//  factors takes one pass per factor (8, 4, or any prime up to 257).  Other lengths are computed as a convolution: by
//  Rader's algorithm if n is prime and n - 1 has small factors, else by Bluestein's.  The inverse transform exchanges
//  real and imaginary parts.  Two neighbouring numbers of a real line of even length n are taken as one complex number,
//  so that a transform of n / 2 points suffices.

/* Limits:
   RADIX: the largest prime factor that has its own pass.
   SMOOTH: Rader's algorithm is used for a prime n if n - 1 has no prime factor above this.
   SHORT: shorter lines are not cut into matrices.
   NEAR, MANY: lines of at most NEAR numbers are not cut either, if they are adjacent in memory or at least MANY.
   WHOLE: columns of a matrix are transformed all at once if they have at most this many numbers in all, else
   OPDI_FFT_LANES at a time.
   MOST: the largest number of lines that are transformed side by side. */
enum {
    OPDI_FFT_RADIX = 257, OPDI_FFT_SMOOTH = 61, OPDI_FFT_SHORT = 64, OPDI_FFT_NEAR = 4096, OPDI_FFT_MANY = 4,
    OPDI_FFT_WHOLE = 32768, OPDI_FFT_MOST = 16
};
/* The smallest number of lanes: as many numbers as fit into 64 bytes. */
#define OPDI_FFT_LANES ((int)(64 / sizeof(OPDI_T)))
/* The factors of a length, for transforms that run side by side.  turn [length, 2] has exp(-2 pi i t / length). */
typedef struct opdi_fft_side {
    int64_t length;
    int count, factor[64];
    const void *turn;
} opdi_fft_side;
/* A table of roots of unity: exp(-2 pi i t / order) is the product of low[t % 2^bits] and high[t / 2^bits]. */
typedef struct opdi_fft_roots {
    int bits;
    const double *low, *high;
} opdi_fft_roots;
/* A plan for the transform of a line.  Tables that a void * points to have the plan's type, double or float. */
typedef struct opdi_fft_plan {
    int64_t length;
    bool twice;                                   /* true: double, false: float */
    opdi_fft_side rows, columns;                  /* length = rows * columns; columns is 1 if a line is not cut */
    opdi_fft_roots roots;                         /* the roots of unity of the length */
    const void *nearby;                           /* [rows, 2, lanes]: exp(-2 pi i * row * lane / length) */
    const struct opdi_fft_plan *inner;   /* plan of a convolution's transforms, of m >= 2 n - 1 points (Bluestein) or n
                                            - 1 points (Rader); NULL: no convolution */
    const int32_t *order;                         /* Rader: [n - 1] powers of the generator; Bluestein: NULL */
    const void *chirp, *kernel;                   /* chirp [n, 2]: exp(-pi i t^2 / n); kernel [m, 2]: transformed
                                                     kernel */
} opdi_fft_plan;

/* The functions that are compiled for each vector width.  Rows are [length, 2, lanes].  If `swap` is true, the
   imaginary part comes first.  `lanes` is a multiple of OPDI_FFT_LANES; functions without this argument have
   OPDI_FFT_LANES lanes.  Pointers point to numbers of the plan's type. */
typedef struct opdi_fft_steps {
    /* runs pass number `place` of several transforms at once, from x to y; `done` is the product of the factors of the
       earlier passes */
    void (*pass)(const opdi_fft_side *side, int place, int64_t done, const void *x, void *y, int64_t lanes, bool swap);
    /* multiplies x [count, 2, lanes] by weights [count, 2], in place */
    void (*times)(const void *weights, int64_t count, void *x, bool swap);
    /* Turns x [count, 2, lanes], the transform of count pairs of real numbers, into the transform of the 2 count
       real numbers, in place.  Number `count` of the result is stored as the imaginary part of number 0.  If `back`
       is true, does the inverse, without its factor 1/2.  `turn` has exp(-pi i k / count) for k <= count / 2. */
    void (*real)(const void *turn, int64_t count, bool back, void *x, bool swap);
    /* split copies the two numbers of `count` pairs to re and im; join does the opposite and multiplies by scale */
    void (*split)(const void *pairs, int64_t count, void *re, void *im);
    void (*join)(const void *re, const void *im, int64_t count, double scale, void *pairs);
    /* `in` reads `count` pairs of each of OPDI_FFT_LANES lines as rows x; the lines are `apart` numbers from each
       other.  `out` writes such rows back to the lines, multiplied by scale */
    void (*in)(const void *lines, int64_t apart, int64_t count, void *x);
    void (*out)(const void *x, int64_t apart, int64_t count, double scale, void *lines);
    /* Multiplies columns first .. first + count - 1 of x [rows, 2, lanes], a line stored as a matrix, by exp(-2 pi i *
       row * column / n).  Writes them transposed to y [columns, 2, height].  `height` is the number of rows rounded up
       to whole vectors; the additional elements are zeros */
    void (*turn)(const opdi_fft_plan *plan, const void *x, int64_t lanes, int64_t first, int64_t count, void *y,
                 int64_t height, bool swap);
} opdi_fft_steps;
typedef struct opdi_fft opdi_fft;
static void opdi_fft_steps_plain_f32(opdi_fft_steps *steps), opdi_fft_steps_plain_f64(opdi_fft_steps *steps);
#if defined(OPDI_VECTORS)
static void opdi_fft_steps_avx2_f32(opdi_fft_steps *steps), opdi_fft_steps_avx2_f64(opdi_fft_steps *steps);
#endif
#if defined(OPDI_X86)
static void opdi_fft_steps_avx512_f32(opdi_fft_steps *steps), opdi_fft_steps_avx512_f64(opdi_fft_steps *steps);
#endif
static int64_t opdi_fft_scratch_size_f32(const opdi_fft_plan *plan),
    opdi_fft_scratch_size_f64(const opdi_fft_plan *plan);
static void opdi_fft_range_f32(void *ctx, int64_t begin, int64_t end);
static void opdi_fft_range_f64(void *ctx, int64_t begin, int64_t end);
static void opdi_fft_once_f64(const opdi_fft_plan *plan, const double *x, double *y, double *scratch);
#include "../../typed/f32.h"
#include "fft_passes.typed.h"
#if defined(OPDI_VECTORS)
#include "../../typed/f32_avx2.h"
#include "fft_passes.typed.h"
#endif
#if defined(OPDI_X86)
#include "../../typed/f32_avx512.h"
#include "fft_passes.typed.h"
#endif
#include "../../typed/f64.h"
#include "fft_passes.typed.h"
#if defined(OPDI_VECTORS)
#include "../../typed/f64_avx2.h"
#include "fft_passes.typed.h"
#endif
#if defined(OPDI_X86)
#include "../../typed/f64_avx512.h"
#include "fft_passes.typed.h"
#endif
#include "../../typed/end.h"
/* The transforms of all lines of x along one dim, which are written to lines of y. */
struct opdi_fft {
    const opdi_fft_plan *plan;
    int ndim;                                     /* number of the other dims */
    int64_t sizes[OPD_MAX_DIMS], xs[OPD_MAX_DIMS], ys[OPD_MAX_DIMS];   /* sizes, and strides in real numbers, of the
                                                                          other dims */
    int64_t lines, xstep, ystep, in, out;         /* xstep, ystep: distances between the elements of a line, in real
                                                     numbers; in, out: how many elements of a line are read and
                                                     written */
    bool xcomplex, ycomplex, exchange, mirror;    /* exchange: exchanges real and imaginary parts; mirror: reads the
                                                     second half of a line as the conjugate of the first half's mirror
                                                     image */
    bool side_by_side;                            /* true: OPDI_FFT_LANES lines are transformed at a time */
    bool halves;                                  /* true: real lines of 2 n numbers are transformed as n complex
                                                     numbers */
    const void *turn;                             /* if `halves` is true: exp(-pi i k / pairs) for k <= pairs / 2 */
    double scale;
    const void *from;
    void *to;
    int32_t failed;
    opdi_fft_steps steps;
};
/* Sets *steps to the functions for this machine's vectors, in double if `twice` is true, else in float. */
static void opdi_fft_steps_here(opdi_fft_steps *steps, bool twice) {
    if (twice) { opdi_fft_steps_plain_f64(steps); } else { opdi_fft_steps_plain_f32(steps); }
#if defined(OPDI_VECTORS)
    const int level = opdi_cpu_level();
#endif
#if defined(OPDI_X86)
    if (level == 2) { if (twice) { opdi_fft_steps_avx512_f64(steps); } else { opdi_fft_steps_avx512_f32(steps); } }
#endif
#if defined(OPDI_VECTORS)
    if (level == 1) { if (twice) { opdi_fft_steps_avx2_f64(steps); } else { opdi_fft_steps_avx2_f32(steps); } }
#endif
}
#include "../../typed/f32.h"
#include "fft_lines.typed.h"
#include "../../typed/f64.h"
#include "fft_lines.typed.h"
#include "../../typed/end.h"
OPDI_COLD_BEGIN
/* Sets cosine[j] and sine[j] to the cosine and sine of 2 pi (at + j) step / order, for j < 8, with the same bits on all
   machines. */
static void opdi_fft_circle(int64_t at, int64_t step, int64_t order, double cosine[8], double sine[8]) {
    double angle[8];
    for (int64_t j = 0; j < 8; j++) { angle[j] = 6.283185307179586476925 * (double)((at + j) * step) / (double)order; }
    opdi_vcos64_same(8, cosine, angle);
    opdi_vsin64_same(8, sine, angle);
}
/* Sets weight [count, 2] to exp(-2 pi i k / order).  Computes only one eighth of the circle; all other values are
   mirror images of these. */
static void opdi_fft_twiddles_mirrored(double *weight, int64_t count, int64_t order) {
    const int64_t quarter = order / 4, most = OPDI_MIN(order / 8 + 1, count);
    double cosine[8], sine[8];
    for (int64_t k = 0; k < most; k++) {
        if (k % 8 == 0) { opdi_fft_circle(k, 1, order, cosine, sine); }
        weight[2 * k] = cosine[k % 8];
        weight[2 * k + 1] = -sine[k % 8];
        if (quarter - k < count) {
            weight[2 * (quarter - k)] = sine[k % 8];
            weight[2 * (quarter - k) + 1] = -cosine[k % 8];
        }
    }
    for (int64_t k = quarter + 1; k < count; k++) {
        weight[2 * k] = weight[2 * (k - quarter) + 1];
        weight[2 * k + 1] = -weight[2 * (k - quarter)];
    }
}
/* Returns a table of exp(-2 pi i k step / order) for k < count, as [count, 2].  On failure, returns NULL and sets an
   error. */
static double *opdi_fft_twiddles(int64_t count, int64_t step, int64_t order) {
    double *weight = (double *)opdi_scope_alloc((size_t)(2 * count) * sizeof *weight), cosine[8], sine[8];
    if (step > 1 && order % step == 0) {
        order /= step;
        step = 1;
    }
    if (weight && step == 1 && order % 8 == 0 && (count <= order / 8 || count > order / 4)) {
        opdi_fft_twiddles_mirrored(weight, count, order);
        return weight;
    }
    for (int64_t k = 0; weight && k < count; k++) {
        if (k % 8 == 0) { opdi_fft_circle(k, step, order, cosine, sine); }
        weight[2 * k] = cosine[k % 8];
        weight[2 * k + 1] = -sine[k % 8];
    }
    return weight;
}
/* Returns `count` numbers converted to a plan's type (double if `twice` is true, else float), or NULL if `numbers`
   is NULL or on failure. */
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
    roots->low = opdi_fft_twiddles(step, 1, order);
    roots->high = opdi_fft_twiddles(order / step + 1, step, order);
    return roots->low && roots->high ? 0 : -1;
}
/* Sets root [2] to the real and the imaginary part of exp(-2 pi i at / order), where `roots` is the table for this
   order. */
static void opdi_fft_root(const opdi_fft_roots *roots, int64_t at, double root[2]) {
    const double *a = roots->low + (at & (((int64_t)1 << roots->bits) - 1)) * 2, *b = roots->high +
        (at >> roots->bits) * 2;
    root[0] = a[0] * b[0] - a[1] * b[1];
    root[1] = a[0] * b[1] + a[1] * b[0];
}
/* Sets the factors of *side to those factors of `length` that are at most `most`.  Returns the quotient of length
   and these factors, which is 1 if all factors are small. */
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
/* Fills in *side: the factors and the roots of unity for `length`.  Returns 1, or the quotient that has no small
   factors.  On failure, returns -1 and sets an error. */
static int64_t opdi_fft_side_make(opdi_fft_side *side, int64_t length, bool twice) {
    const int64_t rest = opdi_fft_factors(side, length, OPDI_FFT_RADIX);
    if (rest > 1) { return rest; }
    side->turn = opdi_fft_typed(opdi_fft_twiddles(length, 1, length), 2 * length, twice);
    return side->turn ? 1 : -1;
}
/* Returns the number of rows of the matrix into which a line of `length` is cut: among the divisors near the square
   root of length, the one for which padding rows and columns to multiples of `by` (the width of a vector) costs least.
   Returns length itself if the line is short, or if there is no such divisor. */
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
/* Returns base^exponent modulo `modulus`, which is below 2^31. */
static int64_t opdi_fft_power(int64_t base, int64_t exponent, int64_t modulus) {
    int64_t power = 1;
    for (; exponent; exponent >>= 1, base = base * base % modulus) {
        if (exponent & 1) { power = power * base % modulus; }
    }
    return power;
}
/* Returns a generator modulo n: a number whose powers modulo n are all of 1 .. n - 1.  Returns 0 if n is not prime or n
   - 1 has a prime factor above OPDI_FFT_SMOOTH. */
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
/* Returns the transform of `numbers` [count, 2], computed in double and converted to the type of `plan`, as the
   kernel of its convolution.  On failure, returns NULL and sets an error. */
static const void *opdi_fft_kernel(const opdi_fft_plan *plan, const double *numbers, int64_t count) {
    const opdi_fft_plan *wide = opdi_fft_make(count, true, true);
    double *kernel = (double *)opdi_scope_alloc((size_t)(2 * count) * sizeof *kernel);
    double *scratch = wide
        ? (double *)opdi_scope_alloc((size_t)opdi_fft_scratch_size_f64(wide) * sizeof *scratch) : NULL;
    if (!kernel || !scratch) { return NULL; }
    opdi_fft_once_f64(wide, numbers, kernel, scratch);
    return opdi_fft_typed(kernel, 2 * count, plan->twice);
}
/* Fills in the tables of a plan for Rader's algorithm, a convolution in the order of the powers of `generator`.
   `cut` is passed to opdi_fft_make for the inner plan.  Returns 0, or -1 and sets an error. */
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
/* Fills in the tables of a plan for Bluestein's algorithm, a convolution with a chirp.  `cut` is passed to
   opdi_fft_make for the inner plan.  Returns 0, or -1 and sets an error. */
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
/* Sets plan->roots and plan->nearby, the twiddle factors of a line that is cut into a matrix.  Returns 0, or -1 and
   sets an error. */
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
/* Plans the transform of lines of `count` elements, in double if `twice` is true.  If `cut` is true, lines may be
   cut into matrices.  On failure, returns NULL and sets an error. */
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
/* Sets output to the transform of input along dim, which has `count` points, times `scale`.  If `inverse` is true,
   computes the inverse transform.  If `mirror` is true, input has only the first half of a line, and the second half is
   the conjugate of its mirror image.  Returns 0, or -1 and sets an error. */
static int opdi_fft_along(opd_tensor *output, opd_tensor *input, int dim, int64_t count, bool inverse, bool mirror,
                          double scale) {
    const bool twice = input->dtype == OPD_FLOAT64 || input->dtype == OPD_COMPLEX128;
    const int64_t lanes = 64 / (int64_t)(twice ? sizeof(double) : sizeof(float));
    opdi_fft fft;
    if (output->numel == 0) { return 0; }
    if (opdi_stack_short(NULL, OPDI_STACK_FOR((opdi_cpu_level() > 1 ? 70 : 38) << 10))) { return -1; }
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
    /* neighbouring lines are adjacent in memory */
    const bool beside = fft.ndim && fft.xs[fft.ndim - 1] == 1 + fft.xcomplex;
    fft.side_by_side = fft.lines > 1 && (count < OPDI_FFT_SHORT || (count <= OPDI_FFT_NEAR &&
                                                                   (beside || fft.lines >= OPDI_FFT_MANY)));
    if (opd_same_bits()) { fft.side_by_side = count < OPDI_FFT_SHORT; }
    fft.halves = fft.side_by_side && count % 2 == 0 && (mirror ? !fft.ycomplex : !fft.xcomplex &&
                                                        fft.out == count / 2 + 1);
    if (fft.halves) {
        fft.turn = opdi_fft_typed(opdi_fft_twiddles(count / 4 + 1, 1, count), 2 * (count / 4 + 1), twice);
        if (!fft.turn) { return -1; }
    }
    fft.plan = opdi_fft_make(fft.halves ? count / 2 : count, twice, !fft.side_by_side);
    if (!fft.plan) { return -1; }
    const int64_t groups = fft.side_by_side ? (fft.lines + lanes - 1) / lanes : fft.lines;
    const int64_t scratch = twice ? opdi_fft_scratch_size_f64(fft.plan) : opdi_fft_scratch_size_f32(fft.plan);
    opdi_parallel_for_scratch(groups, OPDI_MAX((int64_t)1, OPDI_GRAIN / 8 / (count * (fft.side_by_side ? lanes : 1))),
                              twice ? opdi_fft_range_f64 : opdi_fft_range_f32, &fft,
                              OPDI_SCRATCH_BYTES((size_t)scratch * (twice ? sizeof(double) : sizeof(float))));
    return fft.failed ? opdi_buffer_fail() : 0;
}
/* Reads the argument dim, whose dims must exist and be distinct, into `dims`, and sets *scale to the factor for the
   argument normalization.  Returns the number of dims, or -1 and sets an error. */
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
        dims[i] = dim;                            /* i < OPD_MAX_DIMS, as dims are distinct */
        if (ndim) { n *= (double)sizes[dims[i]]; }
    }
    if (how < 0 || how > 2) {
        return opd_fail(OPD_ERROR_ARGUMENT, "Unsupported normalization type %lld, which must be 0, 1 or 2",
                        (long long)how);
    }
    *scale = how == 0 ? 1 : how == 1 ? 1 / sqrt(n) : 1 / n;
    return (int)list.n;
}
OPDI_INTERNAL int opdi_fft_dtype(opd_scalar_type dtype, bool pairs) {
    if (pairs ? opd_dtype_is_complex(dtype) : dtype == OPD_FLOAT32 || dtype == OPD_FLOAT64) { return 0; }
    return opd_fail(OPD_ERROR_DTYPE, pairs ? "Expected a complex tensor, but got %s" : opd_dtype_is_floating(dtype)
                    ? "Unsupported dtype %s" : "Expected a real floating-point tensor, but got %s",
                    opd_dtype_name(dtype));
}
static int opdi_fft_dims_fail(void) {
    return opd_fail(OPD_ERROR_ARGUMENT, "self must have at least one dimension, and dim at least one element");
}
/* Sorts axes[count] by their strides, the largest stride first.  Axes with equal strides keep their order. */
OPDI_INTERNAL void opdi_fft_sort(int64_t *axes, int64_t count, const int64_t *strides) {
    for (int64_t i = 1; i < count; i++) {
        const int64_t axis = axes[i];
        int64_t to = i;
        for (; to > 0 && strides[axes[to - 1]] < strides[axis]; to--) { axes[to] = axes[to - 1]; }
        axes[to] = axis;
    }
}
/* Changes `strides` from the strides of an input to the strides of its transform along dims[count], which has these
   sizes.  As in PyTorch, the transformed dims are innermost in memory, and the other dims keep the order of their
   strides.  If `all` is true, the transformed dims are ordered by their strides, too.  If false, the last one of
   dims[count] is the innermost one, and the others are ordered by their strides. */
static void opdi_fft_strides(int64_t *strides, const int64_t *sizes, int ndim, const int *dims, int count, bool all) {
    int64_t order[OPD_MAX_DIMS], step = 1;
    uint64_t transformed = 0;
    int n = 0;
    for (int i = 0; i < count; i++) { transformed |= (uint64_t)1 << dims[i]; }
    for (int axis = 0; axis < ndim; axis++) { if (!(transformed >> axis & 1)) { order[n++] = axis; } }
    opdi_fft_sort(order, n, strides);
    for (int i = 0; i < count; i++) { order[n + i] = dims[i]; }
    opdi_fft_sort(order + n, all ? count : count - 1, strides);
    for (int i = ndim - 1; i >= 0; i--) {
        strides[order[i]] = step;
        step *= sizes[order[i]];
    }
}
/* Makes the result of a transform of `input` along dims[count].  Returns NULL and sets an error if that fails. */
static opd_tensor *opdi_fft_result(opd_call *call, const opd_tensor *input, const int64_t *sizes, const int *dims,
                                   int count, opd_scalar_type dtype) {
    const bool to_real = !opd_dtype_is_complex(dtype), all = !to_real && opd_dtype_is_complex(OPDI_DTYPE(input));
    int64_t strides[OPD_MAX_DIMS];
    bool empty = count <= 0;
    if (count < 0) { return NULL; }
    for (int i = 0; i < input->ndim; i++) { empty |= sizes[i] == 0; }
    if (empty) { return opd_result(call, 0, sizes, input->ndim, dtype); }
    memcpy(strides, opdi_strides(input), (size_t)input->ndim * sizeof *strides);
    if (to_real && count > 1) {                   /* transforms the last dim of another result */
        opdi_fft_strides(strides, opdi_sizes(input), input->ndim, dims, count - 1, true);
        dims += count - 1;
        count = 1;
    }
    opdi_fft_strides(strides, sizes, input->ndim, dims, count, all);
    return opd_result_strided(call, 0, sizes, strides, input->ndim, dtype, opdi_call_device(call));
}
/* Transforms output in place along dims[from] .. dims[count - 1].  Returns 0, or -1 and sets an error. */
static int opdi_fft_rest(opd_tensor *output, const int *dims, int from, int count, bool inverse) {
    for (; from < count; from++) {
        if (opdi_fft_along(output, output, dims[from], opdi_sizes(output)[dims[from]], inverse, false, 1)) {
            return -1;
        }
    }
    return 0;
}
/* _fft_r2c: transforms real to complex numbers, the last dim first.  If `onesided` is true, only the first half of
   that dim is returned; the second half is the conjugate of its mirror image. */
static int opdi__fft_r2c_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const opd_scalar_type dtype = input->dtype == OPD_FLOAT64 ? OPD_COMPLEX128 : OPD_COMPLEX64;
    int64_t sizes[OPD_MAX_DIMS];
    int dims[OPD_MAX_DIMS];
    double scale;
    if (opdi_fft_dtype(OPDI_DTYPE(input), false)) { return -1; }
    int count = opdi_fft_dims(call, opdi_sizes(input), input->ndim, dims, &scale);
    if (count <= 0 || input->ndim == 0) { return count < 0 ? -1 : opdi_fft_dims_fail(); }
    int last = dims[count - 1];
    memcpy(sizes, opdi_sizes(input), (size_t)input->ndim * sizeof *sizes);
    if (opd_arg_bool(call, 3)) { sizes[last] = sizes[last] / 2 + 1; }
    opd_tensor *output = opdi_fft_result(call, input, sizes, dims, count, dtype);
    if (!output || !output->data || output->numel == 0) { return output ? 0 : -1; }
    if (input->numel == 0) { return opdi_fill_with(output, opd_value_int(0)); }
    if (opdi_fft_along(output, input, last, opdi_sizes(input)[last], false, false, scale)) { return -1; }
    return opdi_fft_rest(output, dims, 0, count - 1, false);
}
static int opdi__fft_c2c_kernel(opd_call *call) {
    opd_tensor *input = opd_arg_tensor(call, 0);
    const bool inverse = !opd_arg_bool(call, 3);
    int dims[OPD_MAX_DIMS];
    double scale;
    if (opdi_fft_dtype(OPDI_DTYPE(input), true)) { return -1; }
    int count = opdi_fft_dims(call, opdi_sizes(input), input->ndim, dims, &scale);
    opd_tensor *output = opdi_fft_result(call, input, opdi_sizes(input), dims, count, OPDI_DTYPE(input));
    if (!output || !output->data || output->numel == 0) { return output ? 0 : -1; }
    if (count == 0 || input->ndim == 0) { return opdi_copy(output, input); }
    if (opdi_fft_along(output, input, dims[0], opdi_sizes(input)[dims[0]], inverse, false, scale)) { return -1; }
    return opdi_fft_rest(output, dims, 1, count, inverse);
}
/* _fft_c2r: transforms back to real numbers.  The last of the dims gets last_dim_size elements.  This dim is
   transformed last, and its second half is not read. */
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
    if (count <= 0 || input->ndim == 0) { return opdi_fft_dims_fail(); }
    int last = opdi_dim_of(opd_arg_ints(call, 1).data[count - 1], input->ndim);
    if (last < 0) { return -1; }
    if (size < 1 || sizes[last] < size / 2 + 1) {
        return opd_fail(OPD_ERROR_SHAPE, "Invalid number of data points (%lld) specified", (long long)size);
    }
    sizes[last] = size;
    count = opdi_fft_dims(call, sizes, input->ndim, dims, &scale);
    opd_tensor *output = opdi_fft_result(call, input, sizes, dims, count, dtype);
    if (!output || !output->data || output->numel == 0) { return output ? 0 : -1; }
    opd_tensor *part = opd_narrow(input, last, 0, size / 2 + 1);
    if (part && count > 1) { part = opd_clone(part); }
    if (!part || opdi_fft_rest(part, dims, 0, count - 1, true)) { return -1; }
    return opdi_fft_along(output, part, last, size, true, true, scale);
}
static int opdi__fft_c2c_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_fft_c2c(opd_bw_grad(bw, 0), opdi_bw_dims(bw, 1), opd_bw_value(bw, 2).u.i,
                                            opd_bw_value(bw, 3).u.i == 0));
}
/* Computes the gradient of _fft_r2c: the real part of the inverse transform.  Elements that a one-sided transform
   leaves out have no gradient. */
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
/* Computes the gradient of _fft_c2r.  The gradient of an element whose mirror image was left out of the input counts
   twice, because that mirror image was read as the element's conjugate. */
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
/* opd_fft_r2c: Fourier transform of real numbers; if onesided, only half of the last dim */
OPDI_OP(_fft_r2c) {
    op->schema = "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor";
    op->cpu = op->fake = opdi__fft_r2c_kernel; op->backward = opdi__fft_r2c_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = OPD_BATCH_SHIFT_DIM; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_CASTS;
    op->out = "_fft_r2c.out";
    op->cases = "[6], (0,), 0, True; [5], (0,), 1, True; [2,6], (0,1), 2, False; [37], (0,), 0, True; [3,4,5], (2,0), "
        "0, True";
}
/* opd_fft_c2c: Fourier transform of complex numbers, forward or inverse */
OPDI_OP(_fft_c2c) {
    op->schema = "_fft_c2c(Tensor self, SymInt[] dim, int normalization, bool forward) -> Tensor";
    op->cpu = op->fake = opdi__fft_c2c_kernel; op->backward = opdi__fft_c2c_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->out = "_fft_c2c.out"; op->tags = OPDI_OPTAG_OUT_CASTS;
    op->cases = "";
}
/* opd_fft_c2r: inverse of _fft_r2c; the last dim of the result has last_dim_size elements */
OPDI_OP(_fft_c2r) {
    op->schema = "_fft_c2r(Tensor self, int[] dim, int normalization, SymInt last_dim_size) -> Tensor";
    op->cpu = op->fake = opdi__fft_c2r_kernel; op->backward = opdi__fft_c2r_backward; op->jvp = OPD_JVP_LINEAR;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->out = "_fft_c2r.out"; op->tags = OPD_OPTAG_CORE | OPDI_OPTAG_OUT_CASTS;
    op->cases = "";
}
OPDI_COLD_END
