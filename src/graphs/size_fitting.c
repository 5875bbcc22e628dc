#include "graphs.h"

//== finding expressions of open sizes =================================================================================
//
//  A number that differs between traces is a function of the open sizes, of which the traces give values at some
//  points.  Along a line, where one size differs and the others have their base values, the function is a polynomial of
//  degree 1 or 2 of the size, or of a quotient (size + q) // d, perhaps plus a multiple of the size.  Functions of
//  several sizes are sums and products of these.  Two sizes belong to different terms of a sum if
//  f(x, y) + f(0, 0) = f(x, 0) + f(0, y), and to different factors of a product if f(x, y) f(0, 0) = f(x, 0) f(0, y),
//  where 0 means the base value.  Functions that are no such sums and products may be functions of one expression that
//  was found before, such as (S + T) // 2.
//  An expression that was found is compared with the numbers at all points.

#define OPDI_FIT_TERMS 16
/* A sum of multiples of expressions.  The expression NULL is the number 1. */
typedef struct opdi_fit_sum {
    int count;
    int64_t factors[OPDI_FIT_TERMS];
    const opdi_gexpr *terms[OPDI_FIT_TERMS];
} opdi_fit_sum;

static bool opdi_fit_add(opdi_fit_sum *sum, int64_t factor, const opdi_gexpr *term) {
    for (int i = 0; i < sum->count; i++) {
        if (sum->terms[i] != term) { continue; }
        sum->factors[i] += factor;
        if (sum->factors[i] == 0) {
            sum->count--;
            for (int k = i; k < sum->count; k++) {
                sum->factors[k] = sum->factors[k + 1];
                sum->terms[k] = sum->terms[k + 1];
            }
        }
        return true;
    }
    if (factor == 0) { return true; }
    if (sum->count == OPDI_FIT_TERMS) { return false; }
    sum->factors[sum->count] = factor;
    sum->terms[sum->count++] = term;
    return true;
}
/* Divides a sum by the greatest common divisor of its factors, with the sign of the first of them, and returns it. */
static int64_t opdi_fit_content(opdi_fit_sum *sum) {
    int64_t content = 0;
    for (int i = 0; i < sum->count; i++) {
        int64_t a = sum->factors[i] < 0 ? -sum->factors[i] : sum->factors[i];
        while (a) {
            const int64_t rest = content % a;
            content = a;
            a = rest;
        }
    }
    if (sum->count && sum->factors[0] < 0) { content = -content; }
    for (int i = 0; i < sum->count; i++) { sum->factors[i] /= content; }
    return content;
}
/* Returns a sum as an expression; its number is the last term.  Returns NULL if memory runs out. */
static const opdi_gexpr *opdi_fit_expr(opd_graph *graph, const opdi_fit_sum *sum) {
    const opdi_gexpr *expr = opdi_gexpr_number(graph, 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < sum->count; i++) {
            const opdi_gexpr *const factor = opdi_gexpr_number(graph, sum->factors[i]);
            if (!sum->terms[i] == !round) { continue; }
            expr = opdi_gexpr_of(graph, OPDI_GEXPR_ADD, expr,
                                 round ? factor : opdi_gexpr_of(graph, OPDI_GEXPR_MUL, factor, sum->terms[i]));
        }
    }
    return expr;
}

//-- functions of one number -------------------------------------------------------------------------------------------

/* Values y[count] of a function at the numbers x[count]. */
typedef struct opdi_fit_line { const int64_t *x, *y; int count; } opdi_fit_line;

static int64_t opdi_fit_floor(int64_t x, int64_t q, int64_t d) {
    const int64_t rest = ((x + q) % d + d) % d;
    return (x + q - rest) / d;
}
/* Finds c with y = c[0] + c[1] F + c[2] F^2 + c[3] x at all points, where F = (x + q) // d.  `degree` 1: c[2] and c[3]
   are 0.  2: c[3] is 0.  3: c[2] is 0.  Returns false if there are no such integers. */
static bool opdi_fit_with(const opdi_fit_line *line, int64_t q, int64_t d, int degree, int64_t c[4]) {
    int at[3] = {0, -1, -1};
    int64_t f[3], x[3], y[3];
    for (int i = 1; i < line->count && at[1] < 0; i++) {
        if (opdi_fit_floor(line->x[i], q, d) != opdi_fit_floor(line->x[0], q, d)) { at[1] = i; }
    }
    if (at[1] < 0) { return false; }
    for (int i = 0; i < 2; i++) {
        x[i] = line->x[at[i]];
        y[i] = line->y[at[i]];
        f[i] = opdi_fit_floor(x[i], q, d);
    }
    memset(c, 0, 4 * sizeof *c);
    if (degree == 1) {
        if ((y[1] - y[0]) % (f[1] - f[0])) { return false; }
        c[1] = (y[1] - y[0]) / (f[1] - f[0]);
    }
    for (int i = 0; i < line->count && degree > 1 && at[2] < 0; i++) {
        f[2] = opdi_fit_floor(line->x[i], q, d);
        x[2] = line->x[i];
        y[2] = line->y[i];
        const int64_t det = (x[1] - x[0]) * (f[2] - f[0]) - (x[2] - x[0]) * (f[1] - f[0]);
        if (degree == 2 ? f[2] != f[0] && f[2] != f[1] : det != 0) { at[2] = i; }
    }
    if (degree > 1 && at[2] < 0) { return false; }
    if (degree == 2) {
        const int64_t first = (y[1] - y[0]) / (f[1] - f[0]), second = (y[2] - y[1]) / (f[2] - f[1]);
        c[2] = (second - first) / (f[2] - f[0]);
        c[1] = first - c[2] * (f[0] + f[1]);
    } else if (degree == 3) {
        const int64_t det = (x[1] - x[0]) * (f[2] - f[0]) - (x[2] - x[0]) * (f[1] - f[0]);
        c[3] = ((y[1] - y[0]) * (f[2] - f[0]) - (y[2] - y[0]) * (f[1] - f[0])) / det;
        c[1] = (y[1] - y[0] - c[3] * (x[1] - x[0])) / (f[1] - f[0]);
    }
    c[0] = y[0] - c[1] * f[0] - c[2] * f[0] * f[0] - c[3] * x[0];
    for (int i = 0; i < line->count; i++) {
        const int64_t now = opdi_fit_floor(line->x[i], q, d);
        const double size = fabs((double)c[1] * (double)now) + fabs((double)c[2] * (double)now * (double)now);
        if (size > 4e18 || c[0] + c[1] * now + c[2] * now * now + c[3] * line->x[i] != line->y[i]) { return false; }
    }
    return true;
}
/* Finds a function of the expression `of`, whose values are line->x, as a sum.  Returns false if there is none; sets an
   error if memory runs out. */
static bool opdi_fit_one(opd_graph *graph, const opdi_fit_line *line, const opdi_gexpr *of, opdi_fit_sum *sum) {
    static const int degrees[] = {1, 2, 3};
    int64_t c[4], d = 1, q = 0;
    bool found = false;
    for (int k = 0; k < 3 && !found; k++) {
        for (d = 1; d <= 64 && !found; d++) {
            for (q = 0; q < d && !found; q++) {
                found = (degrees[k] < 3 || d > 1) && opdi_fit_with(line, q, d, degrees[k], c);
            }
        }
    }
    if (!found) { return false; }
    d--, q--;
    const opdi_gexpr *const moved = opdi_gexpr_of(graph, OPDI_GEXPR_ADD, of, opdi_gexpr_number(graph, q));
    const opdi_gexpr *const part = opdi_gexpr_of(graph, OPDI_GEXPR_DIV, moved, opdi_gexpr_number(graph, d));
    const opdi_gexpr *const square = opdi_gexpr_of(graph, OPDI_GEXPR_MUL, part, part);
    memset(sum, 0, sizeof *sum);
    return square && opdi_fit_add(sum, c[2], square) && opdi_fit_add(sum, c[3], of) && opdi_fit_add(sum, c[1], part) &&
        opdi_fit_add(sum, c[0], NULL);
}

//-- functions of several numbers --------------------------------------------------------------------------------------

/* A function of open sizes whose values are y. */
typedef struct opdi_fit_function {
    opd_graph *graph;
    const opdi_fit_points *points;
    const int64_t *y;
    const bool *skip;                             /* points that do not count; NULL: all count */
} opdi_fit_function;

/* Sets *line to the points of f where only size `name` differs from its base value, with room for OPDI_FIT_LINE numbers
   in x and y.  Returns whether the values differ. */
static bool opdi_fit_line_of(const opdi_fit_function *f, int name, int64_t *x, int64_t *y, opdi_fit_line *line) {
    const opdi_fit_points *const points = f->points;
    line->x = x;
    line->y = y;
    line->count = 0;
    bool differs = false;
    for (int i = 0; i < points->count && line->count < OPDI_FIT_LINE; i++) {
        if ((points->along[i] != name && i) || (f->skip && f->skip[i])) { continue; }
        x[line->count] = points->at[i][name];
        y[line->count++] = f->y[i];
        differs = differs || f->y[i] != f->y[0];
    }
    return differs;
}
/* Returns the value where the sizes `one` and `two` have their other values. */
static int64_t opdi_fit_pair(const opdi_fit_function *f, int one, int two) {
    return f->y[f->points->pairs[OPDI_MIN(one, two)][OPDI_MAX(one, two)]];
}
static int64_t opdi_fit_other(const opdi_fit_function *f, int name) { return f->y[f->points->others[name]]; }
/* Returns whether two sizes belong to the same factor, if `product` is true, of f - c, else to the same term of f. */
static bool opdi_fit_joined(const opdi_fit_function *f, int one, int two, bool product, int64_t c) {
    const int64_t base = f->y[0] - c, a = opdi_fit_other(f, one) - c, b = opdi_fit_other(f, two) - c;
    const int64_t both = opdi_fit_pair(f, one, two) - c;
    if (!product) { return both + base != a + b; }
    if (fabs((double)both * (double)base) > 4e18 || fabs((double)a * (double)b) > 4e18) { return true; }
    return both * base != a * b;
}
/* Returns the sizes of `mask` that are joined with the first of them. */
static uint32_t opdi_fit_component(const opdi_fit_function *f, uint32_t mask, bool product, int64_t c) {
    uint32_t part = mask & (0u - mask), before = 0;
    while (part != before) {
        before = part;
        for (int i = 0; i < OPDI_OPEN_NAMES; i++) {
            for (int k = 0; k < OPDI_OPEN_NAMES && (before >> i & 1); k++) {
                if ((mask & ~part) >> k & 1 && opdi_fit_joined(f, i, k, product, c)) { part |= 1u << k; }
            }
        }
    }
    return part;
}
/* Finds c such that f - c may be a product.  Returns false if there is none. */
static bool opdi_fit_offset(const opdi_fit_function *f, uint32_t mask, int64_t *c) {
    for (int i = 0; i < OPDI_OPEN_NAMES; i++) {
        for (int k = i + 1; k < OPDI_OPEN_NAMES; k++) {
            if (!(mask >> i & 1) || !(mask >> k & 1) || !opdi_fit_joined(f, i, k, false, 0)) { continue; }
            const int64_t both = opdi_fit_pair(f, i, k), a = opdi_fit_other(f, i), b = opdi_fit_other(f, k);
            const int64_t under = both + f->y[0] - a - b;
            if (fabs((double)both * (double)f->y[0]) > 4e18 || fabs((double)a * (double)b) > 4e18) { return false; }
            const int64_t over = both * f->y[0] - a * b;
            *c = over / under;
            if (over % under == 0 && opdi_fit_component(f, mask, true, *c) != mask) { return true; }
        }
    }
    return false;
}
static bool opdi_fit_mask(const opdi_fit_function *f, uint32_t mask, opdi_fit_sum *sum, int depth);
/* Finds f - c as a product.  Returns false if it is none. */
static bool opdi_fit_product(const opdi_fit_function *f, uint32_t mask, int64_t c, opdi_fit_sum *sum, int depth) {
    const opdi_gexpr *all = NULL;
    int64_t values[OPDI_OPEN_NAMES], base = 1;
    for (int i = 0; i < OPDI_OPEN_NAMES; i++) { values[i] = i < f->points->n ? f->points->at[0][i] : 0; }
    while (mask) {
        const uint32_t part = opdi_fit_component(f, mask, true, c);
        opdi_fit_sum factor;
        int64_t value;
        if (!opdi_fit_mask(f, part, &factor, depth + 1) || !opdi_fit_add(&factor, -c, NULL)) { return false; }
        (void)opdi_fit_content(&factor);
        const opdi_gexpr *const next = opdi_fit_expr(f->graph, &factor);
        if (!next || !opdi_gexpr_value(next, values, ~0u, &value) || fabs((double)base * (double)value) > 4e18) {
            return false;
        }
        base *= value;
        all = all ? opdi_gexpr_of(f->graph, OPDI_GEXPR_MUL, all, next) : next;
        mask &= ~part;
    }
    memset(sum, 0, sizeof *sum);
    return all && base && (f->y[0] - c) % base == 0 && opdi_fit_add(sum, (f->y[0] - c) / base, all) &&
        opdi_fit_add(sum, c, NULL);
}
/* Finds f as a function of the sizes in `mask`, where the others have their base values.  Returns false if it finds
   none. */
static bool opdi_fit_mask(const opdi_fit_function *f, uint32_t mask, opdi_fit_sum *sum, int depth) {
    uint32_t part = opdi_fit_component(f, mask, false, 0);
    int64_t c, x[OPDI_FIT_LINE], y[OPDI_FIT_LINE];
    if (depth > OPDI_OPEN_NAMES || opdi_stack_is_short("opd_graph_trace_open", OPDI_STACK_CALL)) { return false; }
    if (!(mask & (mask - 1))) {
        opdi_fit_line line;
        const int name = opdi_low_bit(mask);
        (void)opdi_fit_line_of(f, name, x, y, &line);
        return opdi_fit_one(f->graph, &line, opdi_gexpr_name(f->graph, name), sum);
    }
    if (part == mask) { return opdi_fit_offset(f, mask, &c) && opdi_fit_product(f, mask, c, sum, depth); }
    memset(sum, 0, sizeof *sum);
    for (bool first = true; mask; mask &= ~part, first = false) {
        opdi_fit_sum term;
        part = opdi_fit_component(f, mask, false, 0);
        if (!opdi_fit_mask(f, part, &term, depth + 1) || (!first && !opdi_fit_add(sum, -f->y[0], NULL))) {
            return false;
        }
        for (int i = 0; i < term.count; i++) {
            if (!opdi_fit_add(sum, term.factors[i], term.terms[i])) { return false; }
        }
    }
    return true;
}
/* Returns whether an expression has the values y at all points that count. */
OPDI_INTERNAL bool opdi_fit_holds(const opdi_fit_points *points, const int64_t *y, const opdi_gexpr *expr,
                                  const bool *skip) {
    for (int i = 0; i < points->count; i++) {
        int64_t value;
        if (skip && skip[i]) { continue; }
        if (!opdi_gexpr_value(expr, points->at[i], ~0u, &value) || value != y[i]) { return false; }
    }
    return true;
}
/* Finds f as a function of one of the expressions that were found before.  Returns NULL if it finds none. */
static const opdi_gexpr *opdi_fit_by_known(const opdi_fit_function *f, const opdi_fit_known *known) {
    const bool *const skip = f->skip;
    for (int k = 0; k < known->count; k++) {
        const opdi_gexpr *const expr = known->exprs[k];
        const uint32_t names = opdi_gexpr_names(expr);
        int64_t x[OPDI_FIT_LINE], y[OPDI_FIT_LINE];
        opdi_fit_line line = {x, y, 0};
        opdi_fit_sum sum;
        if (!(names & (names - 1))) { continue; }
        for (int i = 0; i < f->points->count && line.count < OPDI_FIT_LINE; i++) {
            if ((skip && skip[i]) || !opdi_gexpr_value(expr, f->points->at[i], ~0u, &x[line.count])) { continue; }
            y[line.count++] = f->y[i];
        }
        if (line.count < 3 || !opdi_fit_one(f->graph, &line, expr, &sum)) { continue; }
        const opdi_gexpr *const found = opdi_fit_expr(f->graph, &sum);
        if (found && opdi_fit_holds(f->points, f->y, found, skip)) { return found; }
    }
    return NULL;
}
/* Finds an expression with the values y[points->count]; points with skip[i] do not count (NULL: all count).  Returns
   NULL if it finds none; sets an error if memory runs out. */
OPDI_INTERNAL const opdi_gexpr *opdi_fit_find(opd_graph *graph, const opdi_fit_points *points, const int64_t *y,
                                              opdi_fit_known *known, const bool *skip) {
    const opdi_fit_function f = {graph, points, y, skip};
    opdi_fit_sum sum;
    uint32_t mask = 0;
    int64_t along[OPDI_FIT_LINE], values[OPDI_FIT_LINE];
    for (int k = 0; k < known->count; k++) {
        if (opdi_fit_holds(points, y, known->exprs[k], skip)) { return known->exprs[k]; }
    }
    for (int i = 0; i < points->n; i++) {
        opdi_fit_line line;
        if (opdi_fit_line_of(&f, i, along, values, &line)) { mask |= 1u << i; }
    }
    const opdi_gexpr *expr = mask && opdi_fit_mask(&f, mask, &sum, 0) ? opdi_fit_expr(graph, &sum) : NULL;
    if (!expr || !opdi_fit_holds(points, y, expr, skip)) { expr = opdi_fit_by_known(&f, known); }
    if (expr && known->count < OPDI_FIT_KNOWN) { known->exprs[known->count++] = expr; }
    return expr;
}
