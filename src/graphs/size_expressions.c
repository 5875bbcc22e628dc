#include "graphs.h"

//== expressions of open sizes =========================================================================================
//
//  The sizes of values in a graph with open sizes (see >>open_graphs) are expressions of their names: sums, products,
//  and quotients that are rounded downward.  A graph has each expression once, so equal expressions are the same
//  pointer.

#define OPDI_SIZE_TEXT 1000                       /* the longest text of an expression, with its final zero */

static void opdi_gexpr_put(opdi_text *text, const opdi_gsizes *sizes, const opdi_gexpr *expr, bool inner);
/* Appends " + " and an expression; if its text begins with a minus sign, " - " and the rest. */
static void opdi_gexpr_put_more(opdi_text *text, const opdi_gsizes *sizes, const opdi_gexpr *expr) {
    const size_t at = text->length;
    opdi_text_add(text, " + ");
    opdi_gexpr_put(text, sizes, expr, false);
    if (text->length >= text->cap || text->buf[at + 3] != '-') { return; }
    memmove(text->buf + at + 3, text->buf + at + 4, text->length - at - 3);
    text->buf[at + 1] = '-';
    text->length--;
}
/* Appends the text of an expression to a text that has room for it.  If `inner` is true, puts sums and quotients in
   parentheses. */
static void opdi_gexpr_put(opdi_text *text, const opdi_gsizes *sizes, const opdi_gexpr *expr, bool inner) {
    const opdi_gexpr *const one = expr->args[0], *const two = expr->args[1];
    const bool wrap = inner && (expr->kind == OPDI_GEXPR_ADD || expr->kind == OPDI_GEXPR_DIV);
    if (text->length >= text->cap || opdi_stack_is_short("opd_graph_print", OPDI_STACK_CALL)) { return; }
    opdi_text_add(text, wrap ? "(" : "");
    switch (expr->kind) {
    case OPDI_GEXPR_NUMBER: opdi_text_add(text, "%lld", (long long)expr->number); break;
    case OPDI_GEXPR_NAME: opdi_text_add(text, "%s", sizes->names[expr->name].name); break;
    case OPDI_GEXPR_ADD:
        opdi_gexpr_put(text, sizes, one, false);
        opdi_gexpr_put_more(text, sizes, two);
        break;
    case OPDI_GEXPR_MUL: case OPDI_GEXPR_DIV:
        if (expr->kind == OPDI_GEXPR_MUL && one->kind == OPDI_GEXPR_NUMBER && one->number == -1) {
            opdi_text_add(text, "-");
        } else {
            opdi_gexpr_put(text, sizes, one, true);
            opdi_text_add(text, expr->kind == OPDI_GEXPR_MUL ? "*" : "//");
        }
        opdi_gexpr_put(text, sizes, two, true);
        break;
    default: opdi_text_add(text, "?"); break;
    }
    opdi_text_add(text, wrap ? ")" : "");
}
/* Appends the text of an expression, such as "2*T + 1". */
OPDI_INTERNAL void opdi_gexpr_print(opdi_text *out, const opdi_gsizes *sizes, const opdi_gexpr *expr) {
    char buf[OPDI_SIZE_TEXT] = "";
    opdi_text text = opdi_text_of(buf, sizeof buf);
    opdi_gexpr_put(&text, sizes, expr, false);
    opdi_text_add(out, "%s", buf);
}
/* Returns the expression of a graph that is equal to `expr`; adds it if there is none.  Returns NULL and sets an error
   if memory runs out or the expression is too long. */
static const opdi_gexpr *opdi_gexpr_known(opd_graph *graph, const opdi_gexpr *expr) {
    opdi_gsizes *const sizes = graph->sizes;
    char buf[OPDI_SIZE_TEXT] = "";
    opdi_text text = opdi_text_of(buf, sizeof buf);
    opdi_gexpr_put(&text, sizes, expr, false);
    if (text.length >= sizeof buf) {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "the expression of a size is too long: %.60s...", buf);
        return NULL;
    }
    const opdi_gexpr *const known = (const opdi_gexpr *)opdi_index_get(&sizes->exprs, buf, text.length);
    if (known) { return known; }
    char *const key = opdi_arena_copy(&graph->arena, buf, text.length);
    opdi_gexpr *const copy = key ? (opdi_gexpr *)opdi_graph_alloc(graph, sizeof *copy) : NULL;
    if (!copy) { return NULL; }
    *copy = *expr;
    return opdi_index_set(&sizes->exprs, &graph->arena, key, text.length, copy) ? NULL : copy;
}
OPDI_INTERNAL const opdi_gexpr *opdi_gexpr_number(opd_graph *graph, int64_t number) {
    const opdi_gexpr expr = {OPDI_GEXPR_NUMBER, 0, number, {NULL, NULL}};
    return opdi_gexpr_known(graph, &expr);
}
OPDI_INTERNAL const opdi_gexpr *opdi_gexpr_name(opd_graph *graph, int32_t name) {
    const opdi_gexpr expr = {OPDI_GEXPR_NAME, name, 0, {NULL, NULL}};
    return opdi_gexpr_known(graph, &expr);
}
OPDI_INTERNAL const opdi_gexpr *opdi_gexpr_unknown(opd_graph *graph) {
    const opdi_gexpr expr = {OPDI_GEXPR_UNKNOWN, 0, 0, {NULL, NULL}};
    return opdi_gexpr_known(graph, &expr);
}
/* Computes an expression with the sizes `values`.  Returns false if it is unknown, divides by 0 or is too large, or if
   a name in it is not in the mask `bound`. */
OPDI_INTERNAL bool opdi_gexpr_value(const opdi_gexpr *expr, const int64_t *values, uint32_t bound, int64_t *value) {
    int64_t x, y;
    *value = expr->number;
    if (expr->kind == OPDI_GEXPR_NUMBER) { return true; }
    if (expr->kind == OPDI_GEXPR_UNKNOWN) { return false; }
    if (expr->kind == OPDI_GEXPR_NAME) {
        *value = values[expr->name];
        return (bound >> expr->name & 1) != 0;
    }
    if (!opdi_gexpr_value(expr->args[0], values, bound, &x) || !opdi_gexpr_value(expr->args[1], values, bound, &y)) {
        return false;
    }
    const double most = 4e18, size = expr->kind == OPDI_GEXPR_MUL ? (double)x * (double)y
        : expr->kind == OPDI_GEXPR_ADD ? (double)x + (double)y : (double)x;
    if (size > most || size < -most || (expr->kind == OPDI_GEXPR_DIV && y == 0)) { return false; }
    *value = expr->kind == OPDI_GEXPR_ADD ? x + y : expr->kind == OPDI_GEXPR_MUL ? x * y
        : x / y - (x % y != 0 && (x < 0) != (y < 0));
    return true;
}
/* Returns the sum, product or quotient of two expressions.  Returns NULL if one of them is NULL, or if memory runs
   out. */
OPDI_INTERNAL const opdi_gexpr *opdi_gexpr_of(opd_graph *graph, opdi_gexpr_kind kind, const opdi_gexpr *one,
                                              const opdi_gexpr *two) {
    if (!one || !two) { return NULL; }
    const bool first = one->kind == OPDI_GEXPR_NUMBER, second = two->kind == OPDI_GEXPR_NUMBER;
    if (kind == OPDI_GEXPR_ADD && first && one->number == 0) { return two; }
    if (kind == OPDI_GEXPR_ADD && second && two->number == 0) { return one; }
    if (kind == OPDI_GEXPR_MUL && first && one->number == 1) { return two; }
    if (kind == OPDI_GEXPR_MUL && second && two->number == 1) { return one; }
    if (kind == OPDI_GEXPR_DIV && second && two->number == 1) { return one; }
    const opdi_gexpr expr = {(int32_t)kind, 0, 0, {one, two}};
    int64_t number;
    if (first && second && kind != OPDI_GEXPR_DIV && opdi_gexpr_value(&expr, NULL, 0, &number)) {
        return opdi_gexpr_number(graph, number);
    }
    return opdi_gexpr_known(graph, &expr);
}
/* Returns the mask of the names in an expression. */
OPDI_INTERNAL uint32_t opdi_gexpr_names(const opdi_gexpr *expr) {
    if (!expr) { return 0; }
    return expr->kind == OPDI_GEXPR_NAME ? 1u << expr->name : opdi_gexpr_names(expr->args[0]) |
        opdi_gexpr_names(expr->args[1]);
}

//== names =============================================================================================================

#define OPDI_SIZE_NAME "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"

/* Gives a graph an empty table of open sizes, if it has none.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_gsizes_of(opd_graph *graph) {
    return graph->sizes || (graph->sizes = (opdi_gsizes *)opdi_graph_alloc(graph, sizeof *graph->sizes)) ? 0 : -1;
}
/* Returns the number of the open size with a name; if there is none, and `make` is true, adds it.  Returns -1 if there
   is none, and then sets an error if `make` is true. */
OPDI_INTERNAL int32_t opdi_gsizes_find(opd_graph *graph, const char *name, size_t length, bool make) {
    int32_t i = 0;
    if (make && opdi_gsizes_of(graph)) { return -1; }
    opdi_gsizes *const sizes = graph->sizes;
    while (sizes && i < sizes->count && (strncmp(sizes->names[i].name, name, length) != 0 ||
                                         sizes->names[i].name[length])) { i++; }
    if (sizes && i < sizes->count) { return i; }
    if (!make) { return -1; }
    if (i == OPDI_OPEN_NAMES) {
        return opd_fail(OPD_ERROR_ARGUMENT, "a graph has at most %d open sizes", OPDI_OPEN_NAMES);
    }
    opdi_gsize *const size = &sizes->names[i];
    if (!(size->name = opdi_arena_copy(&graph->arena, name, length))) { return -1; }
    size->least = 2;                              /* as in torch.export: 0 and 1 are often special */
    size->most = OPDI_OPEN_MOST;
    size->step = 1;
    return sizes->count++;
}

//== copies ============================================================================================================

/* Gives `copy` the open sizes of a graph.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_gsizes_copy(const opd_graph *graph, opd_graph *copy) {
    if (opdi_gsizes_of(copy)) { return -1; }
    for (int32_t i = 0; i < graph->sizes->count; i++) {
        opdi_gsize *const to = &copy->sizes->names[i];
        *to = graph->sizes->names[i];
        if (!(to->name = opdi_arena_copy(&copy->arena, to->name, strlen(to->name))) ||
            (to->why && !(to->why = opdi_arena_copy(&copy->arena, to->why, strlen(to->why))))) { return -1; }
    }
    copy->sizes->count = graph->sizes->count;
    return 0;
}
/* Returns the expression of `graph`, which has the names of another graph, for an expression of that graph.  Returns
   NULL if memory runs out. */
OPDI_INTERNAL const opdi_gexpr *opdi_gexpr_copy(opd_graph *graph, const opdi_gexpr *expr) {
    const opdi_gexpr *const one = expr->args[0] ? opdi_gexpr_copy(graph, expr->args[0]) : NULL;
    const opdi_gexpr *const two = expr->args[1] ? opdi_gexpr_copy(graph, expr->args[1]) : NULL;
    const opdi_gexpr copy = {expr->kind, expr->name, expr->number, {one, two}};
    return !one == !expr->args[0] && !two == !expr->args[1] ? opdi_gexpr_known(graph, &copy) : NULL;
}
/* Gives a value of `graph`, which has the names of another graph, the expressions of the value `from` of that graph.
   Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_gvalue_open_copy(opd_graph *graph, const opdi_gvalue *from, opdi_gvalue *value) {
    const int count = from->tag == OPD_TAG_TENSOR ? 2 * from->ndim : 1;
    if (!from->open) { return 0; }
    value->open = (const opdi_gexpr **)opdi_graph_alloc(graph, (size_t)count * sizeof *value->open);
    for (int i = 0; value->open && i < count; i++) {
        if (from->open[i] && !(value->open[i] = opdi_gexpr_copy(graph, from->open[i]))) { return -1; }
    }
    return value->open ? 0 : -1;
}

//== examples of sizes, and integers ===================================================================================

OPDI_INTERNAL const int opdi_open_primes[OPDI_OPEN_NAMES] = {11, 13, 17, 19, 23, 29, 31, 37};

/* Returns the smallest allowed value of a size from `from` on; the largest allowed one if there is none. */
OPDI_INTERNAL int64_t opdi_open_allowed(const opdi_gsize *size, int64_t from) {
    const int64_t first = (size->least + size->step - 1) / size->step * size->step;
    const int64_t last = size->most / size->step * size->step, at = (from + size->step - 1) / size->step * size->step;
    return OPDI_MAX(first, OPDI_MIN(last, at));
}
/* Sets the numbers of a tensor whose sizes are expressions to those for the open sizes `values`. */
static void opdi_gvalue_numbers(opdi_gvalue *value, const int64_t *values) {
    int64_t strides[OPD_MAX_DIMS];
    for (int round = 0; value->open && value->dims && value->tag == OPD_TAG_TENSOR && round < 2; round++) {
        for (int i = round * value->ndim; i < (round + 1) * value->ndim; i++) {
            int64_t number;
            if (!value->open[i]) { continue; }
            value->dims[i] = opdi_gexpr_value(value->open[i], values, ~0u, &number) && number >= 0 ? number
                : round ? strides[i - value->ndim] : 0;
        }
        if (round == 0) { opdi_strides_fill(value->dims, strides, value->ndim); }
    }
}
/* Returns the expression of a number of the graph, or NULL if it is not known. */
static const opdi_gexpr *opdi_gvalue_expr(opd_graph *graph, const opdi_gvalue *value) {
    const opdi_gnode *const node = value->node;
    if (value->tag != OPD_TAG_INT) { return NULL; }
    if (value->open) { return value->open[0]; }
    return node && node->kind == OPDI_GNODE_CONSTANT ? opdi_gexpr_number(graph, node->constant.u.i) : NULL;
}
/* Returns the expression of the integer that a node computes, or NULL if it is not known. */
static const opdi_gexpr *opdi_gnode_expr(opd_graph *graph, const opdi_gnode *node) {
    static const struct { const char *name; opdi_gexpr_kind kind; } rows[] = {
        {"aten::add.int(", OPDI_GEXPR_ADD}, {"aten::sub.int(", OPDI_GEXPR_ADD}, {"aten::mul.int(", OPDI_GEXPR_MUL},
        {"aten::floordiv.int(", OPDI_GEXPR_DIV}, {"_operator.add", OPDI_GEXPR_ADD}, {"_operator.sub", OPDI_GEXPR_ADD},
        {"_operator.mul", OPDI_GEXPR_MUL}, {"_operator.floordiv", OPDI_GEXPR_DIV}};
    const char *const name = node->builtin ? node->builtin->schema : node->function ? node->function->name : "";
    if (node->nin != 2) { return NULL; }
    const opdi_gvalue *const tensor = node->in[0];
    const opdi_gexpr *const one = opdi_gvalue_expr(graph, node->in[0]);
    const opdi_gexpr *two = opdi_gvalue_expr(graph, node->in[1]);
    if (node->kind == OPDI_GNODE_OP && strcmp(node->op->name, "aten::sym_size.int") == 0 && tensor->dims &&
        two && two->kind == OPDI_GEXPR_NUMBER) {
        const int64_t dim = two->number < 0 ? two->number + tensor->ndim : two->number;
        if (dim < 0 || dim >= tensor->ndim) { return NULL; }
        return tensor->open && tensor->open[dim] ? tensor->open[dim] : opdi_gexpr_number(graph, tensor->dims[dim]);
    }
    for (size_t i = 0; i < sizeof rows / sizeof *rows && one && two; i++) {
        const size_t length = strlen(rows[i].name);
        if (strncmp(name, rows[i].name, length) != 0 || (*name == '_' && name[length])) { continue; }
        if (strstr(rows[i].name, "sub")) {
            two = opdi_gexpr_of(graph, OPDI_GEXPR_MUL, opdi_gexpr_number(graph, -1), two);
        }
        return opdi_gexpr_of(graph, rows[i].kind, one, two);
    }
    return NULL;
}
/* Finds the expressions of the integers of a graph.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_open_ints(opd_graph *graph) {
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        opdi_gvalue *const out = node->nout == 1 && !node->out[0]->open && node->out[0]->tag == OPD_TAG_INT
            ? node->out[0] : NULL;
        const opdi_gexpr *const expr = out ? opdi_gnode_expr(graph, node) : NULL;
        if (!opd_ok()) { return -1; }
        if (!expr) { continue; }
        if (!(out->open = (const opdi_gexpr **)opdi_graph_alloc(graph, sizeof *out->open))) { return -1; }
        out->open[0] = expr;
    }
    return 0;
}
/* In a graph whose tensors have expressions as sizes: finds the expressions of its integers, and sets the numbers that
   the graph knows of its tensors to examples.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_open_complete(opd_graph *graph) {
    int64_t values[OPDI_OPEN_NAMES];
    for (int32_t i = 0; i < graph->sizes->count; i++) {
        values[i] = opdi_open_allowed(&graph->sizes->names[i], opdi_open_primes[i]);
    }
    for (int32_t i = 0; i < graph->ninputs; i++) { opdi_gvalue_numbers(graph->inputs[i], values); }
    for (opdi_gnode *node = graph->body.first; node; node = opdi_gnode_after(node)) {
        for (int32_t i = 0; i < node->nout; i++) { opdi_gvalue_numbers(node->out[i], values); }
        for (int32_t k = 0; k < node->nblocks; k++) {
            for (int32_t i = 0; i < node->blocks[k].ninputs; i++) {
                opdi_gvalue_numbers(node->blocks[k].inputs[i], values);
            }
        }
    }
    return opdi_graph_open_ints(graph);
}

//== reading expressions ===============================================================================================

/* A text that is read.  `make` is true if new names may be added. */
typedef struct opdi_gsize_reader { opd_graph *graph; const char *at; bool make; int depth; } opdi_gsize_reader;

static void opdi_gsize_blanks(opdi_gsize_reader *reader) {
    while (*reader->at == ' ' || *reader->at == '\t') { reader->at++; }
}
static bool opdi_gsize_is(opdi_gsize_reader *reader, const char *token) {
    const size_t length = strlen(token);
    opdi_gsize_blanks(reader);
    if (strncmp(reader->at, token, length) != 0) { return false; }
    reader->at += length;
    return true;
}
static bool opdi_gsize_digits(opdi_gsize_reader *reader, int64_t *number) {
    char *end;
    opdi_gsize_blanks(reader);
    if (*reader->at < '0' || *reader->at > '9') { return false; }
    errno = 0;
    *number = strtoll(reader->at, &end, 10);
    reader->at = end;
    return !errno && *number <= OPDI_OPEN_MOST;
}
static const opdi_gexpr *opdi_gsize_sum(opdi_gsize_reader *reader);
static const opdi_gexpr *opdi_gsize_factor(opdi_gsize_reader *reader) {
    opd_graph *const graph = reader->graph;
    int64_t number;
    if (reader->depth > 40) { return NULL; }
    if (opdi_gsize_is(reader, "-")) {
        reader->depth++;
        const opdi_gexpr *const inner = opdi_gsize_factor(reader);
        reader->depth--;
        return opdi_gexpr_of(graph, OPDI_GEXPR_MUL, opdi_gexpr_number(graph, -1), inner);
    }
    if (opdi_gsize_is(reader, "(")) {
        reader->depth++;
        const opdi_gexpr *const inner = opdi_gsize_sum(reader);
        reader->depth--;
        return opdi_gsize_is(reader, ")") ? inner : NULL;
    }
    if (opdi_gsize_digits(reader, &number)) { return opdi_gexpr_number(graph, number); }
    const size_t length = strspn(reader->at, OPDI_SIZE_NAME);
    if (!length || (*reader->at >= '0' && *reader->at <= '9')) { return NULL; }
    const int32_t name = opdi_gsizes_find(graph, reader->at, length, reader->make);
    reader->at += length;
    return name < 0 ? NULL : opdi_gexpr_name(graph, name);
}
static const opdi_gexpr *opdi_gsize_product(opdi_gsize_reader *reader) {
    const opdi_gexpr *expr = opdi_gsize_factor(reader);
    while (expr) {
        const bool divide = opdi_gsize_is(reader, "//");
        if (!divide && !opdi_gsize_is(reader, "*")) { break; }
        expr = opdi_gexpr_of(reader->graph, divide ? OPDI_GEXPR_DIV : OPDI_GEXPR_MUL, expr, opdi_gsize_factor(reader));
    }
    return expr;
}
static const opdi_gexpr *opdi_gsize_sum(opdi_gsize_reader *reader) {
    opd_graph *const graph = reader->graph;
    const opdi_gexpr *expr = opdi_gsize_product(reader);
    while (expr) {
        const bool less = opdi_gsize_is(reader, "-");
        if (!less && !opdi_gsize_is(reader, "+")) { break; }
        const opdi_gexpr *next = opdi_gsize_product(reader);
        if (less) {
            const bool scaled = next && next->kind == OPDI_GEXPR_MUL && next->args[0]->kind == OPDI_GEXPR_NUMBER;
            next = scaled ? opdi_gexpr_of(graph, OPDI_GEXPR_MUL, opdi_gexpr_number(graph, -next->args[0]->number),
                                          next->args[1])
                : opdi_gexpr_of(graph, OPDI_GEXPR_MUL, opdi_gexpr_number(graph, -1), next);
        }
        expr = opdi_gexpr_of(graph, OPDI_GEXPR_ADD, expr, next);
    }
    return expr;
}
/* Reads an expression at *at, such as "2*T + 1" or "?", and advances *at.  If `make` is true, names that the graph does
   not have become open sizes.  Returns NULL if there is no expression; sets an error if memory runs out or there are
   too many names. */
OPDI_INTERNAL const opdi_gexpr *opdi_gexpr_read(opd_graph *graph, const char **at, bool make) {
    opdi_gsize_reader reader = {graph, *at, make, 0};
    if (opdi_gsizes_of(graph)) { return NULL; }
    const opdi_gexpr *const expr = opdi_gsize_is(&reader, "?") ? opdi_gexpr_unknown(graph) : opdi_gsize_sum(&reader);
    opdi_gsize_blanks(&reader);
    *at = reader.at;
    return expr;
}

//== ranges ============================================================================================================

/* Reads a name that the graph has, or may get.  Returns the open size, or NULL. */
static opdi_gsize *opdi_gsize_known(opdi_gsize_reader *reader) {
    opdi_gsize_blanks(reader);
    const size_t length = strspn(reader->at, OPDI_SIZE_NAME);
    const bool word = length && (*reader->at < '0' || *reader->at > '9');
    const int32_t name = opdi_gsizes_find(reader->graph, reader->at, length, reader->make && word);
    reader->at += length;
    return name < 0 ? NULL : &reader->graph->sizes->names[name];
}
/* Reads a condition, such as "2 <= B <= 64" or "T % 4 == 0".  Returns the size that it is about, or NULL. */
static opdi_gsize *opdi_gsize_condition(opdi_gsize_reader *reader) {
    int64_t number;
    opdi_gsize *size = NULL;
    bool any = false;
    if (opdi_gsize_digits(reader, &number)) {
        if (!opdi_gsize_is(reader, "<=") || !(size = opdi_gsize_known(reader))) { return NULL; }
        size->least = number;
        size->given[0] = any = true;
    } else if (!(size = opdi_gsize_known(reader))) { return NULL; }
    if (opdi_gsize_is(reader, "<=")) {
        if (!opdi_gsize_digits(reader, &size->most)) { return NULL; }
        size->given[1] = any = true;
    } else if (!any && opdi_gsize_is(reader, ">=")) {
        if (!opdi_gsize_digits(reader, &size->least)) { return NULL; }
        size->given[0] = any = true;
    } else if (!any && opdi_gsize_is(reader, "%")) {
        if (!opdi_gsize_digits(reader, &size->step) || size->step < 1 || !opdi_gsize_is(reader, "==") ||
            !opdi_gsize_digits(reader, &number) || number) { return NULL; }
        size->given[2] = any = true;
    }
    return any ? size : NULL;
}
/* Reads conditions that are separated by commas, up to a "#" or the end of the line.  If `make` is true, names that the
   graph does not have become open sizes.  `who` is the function, for errors.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_gsizes_read_ranges(opd_graph *graph, const char *text, bool make, const char *who) {
    opdi_gsize_reader reader = {graph, text, make, 0};
    for (opdi_gsize_blanks(&reader); *reader.at && *reader.at != '\n'; opdi_gsize_blanks(&reader)) {
        const char *const begin = reader.at;
        opdi_gsize *const size = opdi_gsize_condition(&reader);
        opdi_gsize_blanks(&reader);
        if (size && *reader.at == '#') {          /* the reason */
            const size_t length = strcspn(reader.at, "\n");
            size->why = length < 3 ? NULL : opdi_arena_copy(&graph->arena, reader.at + 2, length - 2);
            reader.at += length;
        }
        if (!size || (*reader.at && *reader.at != ',' && *reader.at != '\n')) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: the range '%.*s' is not understood: write ranges of named sizes, "
                            "such as 2 <= B <= 64, T %% 4 == 0", who, (int)OPDI_MIN(strcspn(begin, ",\n"), 80), begin);
        }
        if (size->least > size->most) {
            return opd_fail(OPD_ERROR_ARGUMENT, "%s: the range of %s is empty: %lld to %lld", who, size->name,
                            (long long)size->least, (long long)size->most);
        }
        reader.at += *reader.at == ',';
    }
    return opd_ok() ? 0 : -1;
}
/* Appends the range of an open size, such as "2 <= B <= 64, B % 4 == 0". */
OPDI_INTERNAL void opdi_gsize_print(opdi_text *text, const opdi_gsize *size) {
    opdi_text_add(text, "%lld <= %s", (long long)size->least, size->name);
    if (size->most < OPDI_OPEN_MOST) { opdi_text_add(text, " <= %lld", (long long)size->most); }
    if (size->step > 1) { opdi_text_add(text, ", %s %% %lld == 0", size->name, (long long)size->step); }
}

//== texts of graphs ===================================================================================================

/* Sets the expressions of a tensor's sizes and strides, if there are any.  Returns 0, or -1 if memory runs out. */
OPDI_INTERNAL int opdi_gvalue_open_set(opd_graph *graph, opdi_gvalue *value, const opdi_gexpr *const *exprs,
                                       int count) {
    bool any = false;
    for (int i = 0; i < count; i++) { any = any || exprs[i]; }
    if (!any) { return 0; }
    value->open = (const opdi_gexpr **)opdi_graph_alloc(graph, (size_t)count * sizeof *value->open);
    if (value->open) { memcpy(value->open, exprs, (size_t)count * sizeof *exprs); }
    return value->open ? 0 : -1;
}
/* Reads the ranges of open sizes at *text: lines such as "# size 2 <= B <= 64".  Moves *text behind them and other
   comments, and advances *line.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_graph_sizes_lines(opd_graph *graph, const char **text, int *line) {
    static const char begin[] = "# size ";
    for (;;) {
        const char *at = *text + strspn(*text, " \t\r");
        if (*at != '\n' && *at != '#') { return 0; }
        if (graph->sizes && strncmp(at, begin, sizeof begin - 1) == 0 &&
            opdi_gsizes_read_ranges(graph, at + sizeof begin - 1, true, "opd_graph_parse")) { return -1; }
        at += strcspn(at, "\n");
        *text = at + (*at == '\n');
        *line += *at == '\n';
        if (!*at) { return 0; }
    }
}
