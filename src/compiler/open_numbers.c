#include "compiler.h"

//== numbers as polynomials of open sizes ==============================================================================
//
//  A number is a sum of multiples of products of the sizes.  No size is cubed in a product, and a product has at most
//  four factors.  So such a number is known if it is known for some sizes: each size has three values, and for each
//  product of sizes there is a point (opdi_open_points), on which size k has the value whose index is the exponent of
//  size k in this product.  One more point, the last, confirms the polynomial.
//
//  A power code stands for a product: its digit k to the base 3, of which that for size 0 is the most significant one,
//  is the exponent of size k.

/* Returns the exponent of size k in the product with a power code. */
static int opdi_open_exponent(const opdi_open *open, int code, int k) {
    int digit = open->npowers;
    for (int i = 0; i <= k; i++) { digit /= 3; }
    return code / digit % 3;
}
/* Returns the number of factors in the product with a power code. */
static int opdi_open_degree(int code) {
    int degree = 0;
    for (; code; code /= 3) { degree += code % 3; }
    return degree;
}
/* Sets `points` from four values of each size.  Returns the number of points. */
OPDI_INTERNAL int opdi_open_points(const opdi_open *open, int64_t (*values)[4], opdi_open_at *points) {
    int count = 0;
    for (int code = 0; code <= open->npowers; code++) {
        const bool last = code == open->npowers;
        if (!last && opdi_open_degree(code) > 4) { continue; }
        memset(&points[count], 0, sizeof *points);
        for (int k = 0; k < open->n; k++) {
            points[count].sizes[k] = values[k][last ? 3 : opdi_open_exponent(open, code, k)];
        }
        count++;
    }
    return count;
}
/* Returns the number that has the terms `terms`, for the sizes `at`. */
OPDI_INTERNAL int64_t opdi_open_number(const opdi_open_terms *terms, const opdi_open_at *at) {
    uint64_t sum = 0;                             /* unsigned: terms that are wrong may overflow */
    for (int i = 0; i < terms->count; i++) {
        uint64_t product = (uint64_t)terms->all[i].times;
        uint32_t powers = terms->all[i].powers;
        for (const int64_t *size = at->sizes; powers; size++, powers >>= 4) {
            for (uint32_t k = powers & 15; k; k--) { product *= (uint64_t)*size; }
        }
        sum += product;
    }
    return (int64_t)sum;
}
/* Replaces values at the points by divided differences in size k, which has the values x.  Element `code` of c belongs
   to a power code.  Returns false if the differences are not integers. */
static bool opdi_open_divide(const opdi_open *open, int k, const int64_t x[3], int64_t *c) {
    int digit = open->npowers;
    for (int i = 0; i <= k; i++) { digit /= 3; }
    for (int code = 0; code < open->npowers; code++) {
        const int degree = opdi_open_degree(code);
        int64_t *const y = c + code;
        if (code / digit % 3 || degree > 3) { continue; }
        const int64_t first = y[digit] - y[0], second = degree < 3 ? y[2 * digit] - y[digit] : 0;
        if (first % (x[1] - x[0]) || second % (x[2] - x[1])) { return false; }
        y[digit] = first / (x[1] - x[0]);
        if (degree > 2) { continue; }
        const int64_t change = second / (x[2] - x[1]) - y[digit];
        if (change % (x[2] - x[0])) { return false; }
        y[2 * digit] = change / (x[2] - x[0]);
    }
    return true;
}
/* Replaces divided differences in size k by the coefficients of the powers of this size. */
static void opdi_open_expand(const opdi_open *open, int k, const int64_t x[3], int64_t *c) {
    int digit = open->npowers;
    for (int i = 0; i <= k; i++) { digit /= 3; }
    for (int code = 0; code < open->npowers; code++) {
        int64_t *const y = c + code;
        if (code / digit % 3) { continue; }
        const uint64_t square = (uint64_t)y[2 * digit], first = (uint64_t)x[0], second = (uint64_t)x[1];
        y[0] = (int64_t)((uint64_t)y[0] - (uint64_t)y[digit] * first + square * first * second);
        y[digit] = (int64_t)((uint64_t)y[digit] - square * (first + second));
    }
}
/* Finds the terms of a number whose value for the sizes points[i] is numbers[i].  Returns false if there are none: the
   number is then not such a polynomial (opdi_open_terms) of the sizes. */
OPDI_INTERNAL bool opdi_open_fit(const opdi_open *open, const opdi_open_at *points, const int64_t *numbers,
                                 opdi_open_terms *terms) {
    int64_t c[OPDI_OPEN_POWERS] = {0}, x[OPDI_OPEN_SIZES][3] = {{0}};
    int at = 0;
    terms->count = 0;
    for (int code = 0; code < open->npowers; code++) {
        if (opdi_open_degree(code) > 4) { continue; }
        if (numbers[at] > INT64_MAX / 8 || numbers[at] < INT64_MIN / 8) { return false; }
        c[code] = numbers[at];
        for (int k = 0; k < open->n; k++) { x[k][opdi_open_exponent(open, code, k)] = points[at].sizes[k]; }
        at++;
    }
    for (int k = 0; k < open->n; k++) { if (!opdi_open_divide(open, k, x[k], c)) { return false; } }
    for (int k = 0; k < open->n; k++) { opdi_open_expand(open, k, x[k], c); }
    for (int code = open->npowers - 1; code >= 0; code--) {
        uint32_t powers = 0;
        if (!c[code]) { continue; }
        if (terms->count == OPDI_OPEN_TERMS) { return false; }
        for (int k = 0; k < open->n; k++) { powers |= (uint32_t)opdi_open_exponent(open, code, k) << 4 * k; }
        terms->all[terms->count].times = c[code];
        terms->all[terms->count++].powers = powers;
    }
    return opdi_open_number(terms, &points[at]) == numbers[at];
}
/* Returns a power of a size. */
static double opdi_open_power(int64_t size, int exponent) {
    return exponent == 0 ? 1 : exponent == 1 ? (double)size : (double)size * (double)size;
}
/* Returns a bound of a number over all sizes in the ranges: an upper bound if `above` is true, else a lower bound.  The
   bound is exact if the number only grows, or only shrinks, with each size. */
OPDI_INTERNAL double opdi_open_bound(const opdi_open *open, const opdi_open_terms *terms, bool above) {
    static const double choose[3][3] = {{1, 0, 0}, {1, 1, 0}, {1, 2, 1}};
    double sum = 0;
    for (int code = 0; code < open->npowers; code++) {         /* rewrites the sum in terms of (size - smallest size) */
        double moved = 0;
        for (int i = 0; i < terms->count; i++) {
            double part = (double)terms->all[i].times;
            for (int k = 0; k < open->n && part != 0; k++) {
                const int of = (int)(terms->all[i].powers >> 4 * k & 15), kept = opdi_open_exponent(open, code, k);
                part *= kept > of ? 0 : choose[of][kept] * opdi_open_power(open->least.sizes[k], of - kept);
            }
            moved += part;
        }
        for (int k = 0; k < open->n && moved != 0; k++) {
            moved *= opdi_open_power(open->most.sizes[k] - open->least.sizes[k], opdi_open_exponent(open, code, k));
        }
        if (code == 0 || (moved > 0) == above) { sum += moved; }
    }
    return sum;
}
/* Raises most[code], for each power code in a number, to the absolute multiple of this product. */
OPDI_INTERNAL void opdi_open_most(double *most, const opdi_open *open, const opdi_open_terms *terms) {
    for (int i = 0; i < terms->count; i++) {
        const int64_t times = terms->all[i].times;
        int code = 0;
        for (int k = 0; k < open->n; k++) { code = 3 * code + (int)(terms->all[i].powers >> 4 * k & 15); }
        most[code] = OPDI_MAX(most[code], (double)(times < 0 ? -times : times));
    }
}

//== inputs with open sizes ============================================================================================

/* Returns the expression of the size of dim `dim` of an input, or NULL if this size is fixed. */
OPDI_INTERNAL const opdi_gexpr *opdi_open_dim(const opdi_open_sizes *sizes, int input, int dim) {
    static const opdi_gexpr names[2] = {{OPDI_GEXPR_NAME, 0, 0, {NULL, NULL}}, {OPDI_GEXPR_NAME, 1, 0, {NULL, NULL}}};
    if (sizes->graph) {
        const opdi_gvalue *const value = sizes->graph->inputs[input];
        return value->open && dim < value->ndim ? value->open[dim] : NULL;
    }
    for (int k = 0; k < sizes->n; k++) { if (sizes->dims[k][input] == dim) { return &names[k]; } }
    return NULL;
}
/* Returns the size of dim `dim` of an input for the open sizes `at`; `size` if it is fixed; -1 if there is none. */
OPDI_INTERNAL int64_t opdi_open_size(const opdi_open_sizes *sizes, int input, int dim, const opdi_open_at *at,
                                     int64_t size) {
    const opdi_gexpr *const expr = opdi_open_dim(sizes, input, dim);
    int64_t all[OPDI_OPEN_NAMES] = {0};
    if (!expr) { return size; }
    for (int k = 0; k < sizes->n; k++) { all[k] = at->sizes[k] * sizes->step[k]; }
    return opdi_gexpr_value(expr, all, ~0u, &size) ? size : -1;
}
/* Finds the open sizes of inputs, and stores them in *at.  Returns false if they do not follow from the inputs, or are
   not in their ranges. */
OPDI_INTERNAL bool opdi_open_find_sizes(const opdi_open_sizes *sizes, const opd_value *inputs, int ninputs,
                                        opdi_open_at *at) {
    uint32_t found = 0;
    memset(at, 0, sizeof *at);
    for (int i = 0; i < ninputs; i++) {
        const opd_tensor *const tensor = inputs[i].tag == OPD_TAG_TENSOR ? inputs[i].u.t : NULL;
        for (int dim = 0; tensor && dim < tensor->ndim; dim++) {
            const opdi_gexpr *const expr = opdi_open_dim(sizes, i, dim);
            int64_t factor, rest;
            int32_t name;
            if (!expr || !opdi_gexpr_line(expr, &name, &factor, &rest) || found >> name & 1) { continue; }
            const int64_t whole = factor * sizes->step[name], size = (tensor->dims[dim] - rest) / whole;
            if ((tensor->dims[dim] - rest) % whole || size < sizes->least[name] || size > sizes->most[name]) {
                return false;
            }
            at->sizes[name] = size;
            found |= 1u << name;
        }
    }
    return found == (1u << sizes->n) - 1;
}
/* Returns the number of ranges of open sizes in which compiled code is compared with uncompiled runs. */
OPDI_INTERNAL int opdi_open_ranges(const opdi_open_sizes *sizes) { return 1 << 3 * sizes->n; }
/* Returns the number of the range that has the open sizes `at`.  Within a range, the largest value of a size is less
   than four times the smallest one, except in the last range. */
OPDI_INTERNAL int opdi_open_range(const opdi_open_sizes *sizes, const opdi_open_at *at) {
    int range = 0;
    for (int k = 0; k < sizes->n; k++) {
        int part = 0;
        while (part < 7 && at->sizes[k] >> 2 * (part + 1)) { part++; }
        range = range << 3 | part;
    }
    return range;
}
/* Returns whether compiled code can have the open sizes of a graph, and sets *sizes to them: there are at most four,
   with upper bounds, and all follow from sizes of inputs. */
OPDI_INTERNAL bool opdi_open_of_graph(const opd_graph *graph, opdi_open_sizes *sizes) {
    memset(sizes, 0, sizeof *sizes);
    sizes->n = opd_graph_nsizes(graph);
    sizes->graph = graph;
    if (sizes->n < 1 || sizes->n > OPDI_OPEN_SIZES) { return false; }
    for (int k = 0; k < sizes->n; k++) {
        const opdi_gsize *const size = &graph->sizes->names[k];
        sizes->step[k] = size->step;
        sizes->least[k] = OPDI_MAX((size->least + size->step - 1) / size->step, 1);
        sizes->most[k] = size->most / size->step;
        if (size->most >= OPDI_OPEN_MOST || sizes->most[k] < OPDI_MAX(sizes->least[k], 2) ||
            !opdi_gsize_follows(graph, k)) { return false; }
    }
    return true;
}
/* Sets *sizes to the one or two open sizes whose dims options name, without their ranges.  Returns whether there are
   some. */
OPDI_INTERNAL bool opdi_open_of_options(opdi_open_sizes *sizes, const int *open, const int *open_2) {
    memset(sizes, 0, sizeof *sizes);
    sizes->n = !open ? 0 : open_2 ? 2 : 1;
    sizes->dims[0] = open;
    sizes->dims[1] = open_2;
    sizes->step[0] = sizes->step[1] = 1;
    return sizes->n > 0;
}
