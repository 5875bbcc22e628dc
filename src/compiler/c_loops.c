#include "compiler.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>nests_c      the loops of nests, and groups of nests, as C text
//----------------------------------------------------------------------------------------------------------------------

//== reductions ========================================================================================================

/* Writes the line that combines the variable `sum` with one more value, as the nest's reduction says. */
OPDI_INTERNAL void opdi_c_write_reduce(opdi_cfile *file, const opdi_nest *nest, const char *sum, const char *value) {
    const bool sums = nest->reduction == OPDI_REDUCTION_SUM || nest->reduction == OPDI_REDUCTION_PROD;
    opdi_c_write_indent(file);
    if (sums && nest->value->dtype == OPD_INT64) {
        opdi_c_write(file, "%s = (int64_t)((uint64_t)%s %c (uint64_t)%s);\n", sum, sum,
                     nest->reduction == OPDI_REDUCTION_SUM ? '+' : '*', value);
        return;
    }
    const char sign = nest->reduction == OPDI_REDUCTION_MAX ? '>' : '<';
    switch (nest->reduction) {
    case OPDI_REDUCTION_SUM: opdi_c_write(file, "%s += %s;\n", sum, value); break;
    case OPDI_REDUCTION_PROD: opdi_c_write(file, "%s *= %s;\n", sum, value); break;
    case OPDI_REDUCTION_MAX: case OPDI_REDUCTION_MIN:
        opdi_c_write(file, "%s = %s %c %s", sum, value, sign, sum);
        if (opd_dtype_is_floating(nest->value->dtype)) { opdi_c_write(file, " || %s != %s", value, value); }
        opdi_c_write(file, " ? %s : %s;\n", value, sum);
        break;
    case OPDI_REDUCTION_ANY: opdi_c_write(file, "%s |= %s != 0;\n", sum, value); break;
    case OPDI_REDUCTION_ALL: opdi_c_write(file, "%s &= %s != 0;\n", sum, value); break;
    default: break;
    }
}
/* Writes the value with which a reduction in `dtype` begins. */
OPDI_INTERNAL void opdi_c_write_first(opdi_cfile *file, const opdi_nest *nest, opd_scalar_type dtype) {
    const bool floating = opd_dtype_is_floating(dtype);
    switch (nest->reduction) {
    case OPDI_REDUCTION_PROD: case OPDI_REDUCTION_ALL: opdi_c_write(file, "1"); break;
    case OPDI_REDUCTION_MAX: case OPDI_REDUCTION_ARGMAX: case OPDI_REDUCTION_POOLED:
        opdi_c_write(file, floating ? "-(%s)INFINITY" : dtype == OPD_INT64 ? "INT64_MIN" : dtype == OPD_INT32
                     ? "INT32_MIN"
                 : dtype == OPD_INT16 ? "INT16_MIN" : dtype == OPD_INT8 ? "INT8_MIN" : "0", opdi_c_value(dtype));
        break;
    case OPDI_REDUCTION_MIN: case OPDI_REDUCTION_ARGMIN:
        opdi_c_write(file, floating ? "(%s)INFINITY" : dtype == OPD_INT64 ? "INT64_MAX" : dtype == OPD_INT32
                     ? "INT32_MAX"
                 : dtype == OPD_INT16 ? "INT16_MAX" : dtype == OPD_INT8 ? "INT8_MAX" : "255", opdi_c_value(dtype));
        break;
    default: opdi_c_write(file, "0"); break;
    }
}
/* The largest number of terms that are added one after the other as floats.  An uncompiled run adds in blocks, so the
   results of longer sums would differ too much. */
#define OPDI_C_ADDED 256
/* Returns whether a sum has too many terms to be computed as `lanes` partial sums of floats.  Its partial sums are then
   doubles. */
static bool opdi_nest_deep(const opdi_nest *nest, int lanes) {
    int64_t count = 1;
    for (int i = nest->ndim - nest->nreduce; i < nest->ndim; i++) { count *= nest->sizes[i]; }
    return nest->reduction == OPDI_REDUCTION_SUM && nest->value->dtype == OPD_FLOAT32 && !nest->order &&
        count / lanes > OPDI_C_ADDED;
}
/* Writes the size of a loop to `text`, rounded down to a multiple of 16, as a C expression. */
static void opdi_c_write_sixteens(char text[48], const opdi_nest *nest, int loop) {
    const long long size = (long long)nest->sizes[loop];
    if (opdi_nest_open(nest, loop)) { (void)snprintf(text, 48, "%lld / 16 * 16", size); }
    else { (void)snprintf(text, 48, "%lld", size / 16 * 16); }
}
/* Writes the line that computes the index of a loop as `first` + l: `first` is the start of a block of iterations, and
   l the number of the lane.  Writes nothing if the value to reduce does not depend on the index. */
static void opdi_c_write_lane(opdi_cfile *file, const opdi_nest *nest, int loop, const char *first) {
    uint32_t loops = 0;
    opdi_fold_loops(nest->value, nest->ndim, &loops);
    if (loops >> loop & 1) { opdi_c_write_line(file, "const ptrdiff_t i%d = %s + l;", loop, first); }
}
/* Writes the lines that compute the value of an iteration and combine the variable `sum` with it. */
static void opdi_c_write_term(opdi_cfile *file, opdi_nest *nest, const char *sum) {
    char value[32], other[32];
    opdi_expr_round++;
    if (nest->order == OPDI_ORDER_CHAIN) {
        opdi_c_need(file, "fused_f32");
        opdi_c_write_value(file, nest->value->in[0], nest->ndim, value);
        opdi_c_write_value(file, nest->value->in[1], nest->ndim, other);
        opdi_c_write_line(file, "%s = fused_f32(%s, %s, %s);", sum, value, other, sum);
        return;
    }
    opdi_c_write_value(file, nest->value, nest->ndim, value);
    opdi_c_write_reduce(file, nest, sum, value);
}
/* Writes the loops that store the values of a row, whose sum becomes the C variable `result`. */
static void opdi_c_write_row(opdi_cfile *file, opdi_nest *nest, const char *result) {
    const int first = nest->ndim - nest->nreduce;
    long long count = 1;
    char value[32];
    for (int i = first; i < nest->ndim; i++) { count *= (long long)nest->sizes[i]; }
    opdi_c_need(file, "sum_row");
    opdi_c_write_line(file, "float %s_row[%lld];", result, count);
    opdi_c_write_line(file, "ptrdiff_t %s_at = 0;", result);
    for (int i = first; i < nest->ndim; i++) { opdi_c_write_for(file, i, nest->sizes[i]); }
    opdi_expr_round++;
    opdi_c_write_value(file, nest->value, nest->ndim, value);
    opdi_c_write_line(file, "%s_row[%s_at++] = (float)%s;", result, result, value);
    opdi_c_write_close(file, nest->nreduce);
    opdi_c_write_line(file, "const double %s = sum_row(%s_row, %lld);", result, result, count);
}
static bool opdi_over_places(opdi_over reduction) {
    return reduction == OPDI_REDUCTION_ARGMAX || reduction == OPDI_REDUCTION_ARGMIN ||
        reduction == OPDI_REDUCTION_POOLED;
}
/* Writes the loops that compute one element of a reduction's result, and store it in the C variable `result`. */
static void opdi_c_write_reduction(opdi_cfile *file, opdi_nest *nest, const char *result) {
    const int first = nest->ndim - nest->nreduce, last = nest->ndim - 1;
    const bool places = opdi_over_places(nest->reduction);
    if (nest->order == OPDI_ORDER_ROW) {
        opdi_c_write_row(file, nest, result);
        return;
    }
    const bool logic = nest->reduction == OPDI_REDUCTION_ANY || nest->reduction == OPDI_REDUCTION_ALL;
    const opd_scalar_type dtype = logic ? OPD_BOOL : nest->value->dtype;
    const int64_t size = nest->sizes[last];
    /* The C compiler may not change the order of floats, so it gets 16 partial results.  It may change that of
       integers; with partial results of these, gcc 12 (-O3 -mavx2) makes wrong code. */
    const bool floats = opd_dtype_is_floating(nest->value->dtype) || opd_dtype_is_complex(nest->value->dtype);
    const bool lanes = size >= 32 && floats && !nest->order && (nest->reduction == OPDI_REDUCTION_SUM ||
                                                nest->reduction == OPDI_REDUCTION_MAX ||
                                                nest->reduction == OPDI_REDUCTION_MIN);
    const bool deep = opdi_nest_deep(nest, lanes ? 16 : 1);
    const char *const type = deep ? "double" : opdi_c_value(dtype);
    char value[32], sum[40], sixteens[48] = "0";
    if (lanes) { opdi_c_write_sixteens(sixteens, nest, last); }
    (void)snprintf(sum, sizeof sum, deep ? "%s_deep" : "%s", result);
    opdi_c_write_indent(file);
    opdi_c_write(file, "%s %s = ", type, sum);
    opdi_c_write_first(file, nest, dtype);
    opdi_c_write(file, ";\n");
    if (places) {
        opdi_c_write_line(file, "int64_t %s_at = 0;", sum);
        for (int i = first; i <= last; i++) { opdi_c_write_for(file, i, nest->sizes[i]); }
        opdi_expr_round++;
        opdi_c_write_value(file, nest->value, nest->ndim, value);
        opdi_c_write_indent(file);
        const char sign = nest->reduction == OPDI_REDUCTION_ARGMIN ? '<' : '>';
        opdi_c_write(file, "if (%s %c %s", value, sign, sum);
        if (opd_dtype_is_floating(dtype) && nest->reduction == OPDI_REDUCTION_POOLED) {
            opdi_c_write(file, " || %s != %s", value, value);
        } else if (opd_dtype_is_floating(dtype)) {
            opdi_c_write(file, " || (%s != %s && %s == %s)", value, value, sum, sum);
        }
        opdi_c_write(file, ") { %s = %s; %s_at = ", sum, value, sum);
        for (int i = first; i <= last; i++) {
            int64_t stride = 1;
            for (int k = i + 1; k <= last; k++) { stride *= nest->sizes[k]; }
            opdi_c_write(file, "%s%lld * i%d", i > first ? " + " : "", (long long)stride, i);
        }
        opdi_c_write(file, "; }\n");
        opdi_c_write_close(file, nest->nreduce);
        return;
    }
    if (lanes) {                                  /* 16 partial sums, so that the C compiler can use vectors */
        opdi_c_write_line(file, "%s %s_16[16];", type, sum);
        opdi_c_write_line(file, "for (int l = 0; l < 16; l++) { %s_16[l] = %s; }", sum, sum);
    }
    for (int i = first; i < last; i++) { opdi_c_write_for(file, i, nest->sizes[i]); }
    if (lanes) {
        char lane[48];
        (void)snprintf(lane, sizeof lane, "%s_16[l]", sum);
        opdi_c_write_open(file, "for (ptrdiff_t j = 0; j < %s; j += 16) {", sixteens);
        opdi_c_write_open(file, "for (int l = 0; l < 16; l++) {");
        opdi_c_write_lane(file, nest, last, "j");
        opdi_c_write_term(file, nest, lane);
        opdi_c_write_close(file, 2);
    }
    if (!lanes || size % 16 || opdi_nest_open(nest, last)) {
        opdi_c_write_open(file, "for (ptrdiff_t i%d = %s; i%d < %lld; i%d++) {", last, sixteens, last, (long long)size,
                          last);
        opdi_c_write_term(file, nest, sum);
        opdi_c_write_close(file, 1);
    }
    opdi_c_write_close(file, last - first);
    if (lanes) {
        char lane[48];
        (void)snprintf(lane, sizeof lane, "%s_16[l]", sum);
        opdi_c_write_open(file, "for (int l = 0; l < 16; l++) {");
        opdi_c_write_reduce(file, nest, sum, lane);
        opdi_c_write_close(file, 1);
    }
    if (deep) { opdi_c_write_line(file, "const float %s = (float)%s;", result, sum); }
}
/* Returns the number of adjacent results that a reduction computes together, if the loop over the results has `size`
   iterations. */
static int opdi_across_lanes(int64_t size) {
    return size >= 16 ? 16 : size >= 8 ? 8 : 4;
}
/* Returns whether a reduction sums products of two loads of floats.  From one result to the next along loop `lane`,
   each load must advance by one element, or not at all. */
static bool opdi_across_products(const opdi_nest *nest, int lane) {
    const opdi_expr *const value = nest->value;
    bool any = false;
    if (nest->reduction != OPDI_REDUCTION_SUM || nest->order || value->kind != OPDI_EXPR_FORMULA ||
        value->formula != OPD_FORMULA_mul || value->dtype != OPD_FLOAT32) { return false; }
    for (int i = 0; i < 2; i++) {
        const opdi_expr *const in = value->in[i];
        const int64_t stride = in->access.strides[lane];
        if (in->kind != OPDI_EXPR_LOAD || in->nin || in->dtype != OPD_FLOAT32 ||
            in->access.buffer->dtype != OPD_FLOAT32 || (stride != 0 && stride != 1)) { return false; }
        any = any || stride == 1;
    }
    return any;
}
/* Writes the line that adds one product to each of `lanes` sums, one for each of `lanes` adjacent results of loop
   `lane`. */
static void opdi_c_write_across_product(opdi_cfile *file, const opdi_nest *nest, int lane, int lanes) {
    const opdi_access *x = &nest->value->in[0]->access, *y = &nest->value->in[1]->access;
    if (x->strides[lane] && !y->strides[lane]) {
        const opdi_access *const other = x;
        x = y;
        y = other;
    }
    const bool all = x->strides[lane] != 0;
    char helper[16];
    (void)snprintf(helper, sizeof helper, all ? "add_all_%d" : "add_%d", lanes);
    opdi_c_need(file, helper);
    opdi_c_write_indent(file);
    opdi_c_write(file, "%s(sums, %s", helper, all ? "&" : "");
    opdi_c_write_element(file, x, nest->ndim, false, "");
    opdi_c_write(file, ", &");
    opdi_c_write_element(file, y, nest->ndim, false, "");
    opdi_c_write(file, ");\n");
}
/* Writes the loops that compute the sums of `lanes` adjacent results, and store them in the C array `row`, from index
   `from` on. */
static void opdi_c_write_across_sums(opdi_cfile *file, opdi_nest *nest, int lane, int lanes, int from) {
    const int inner = nest->ndim - nest->nreduce;
    if (!opdi_nest_deep(nest, 1) && opdi_across_products(nest, lane)) {
        char helper[16];
        (void)snprintf(helper, sizeof helper, "sums_%d", lanes);
        opdi_c_write_line(file, "const ptrdiff_t i%d = start;", lane);
        opdi_c_write_line(file, "%s sums = NO_SUMS_%d;", helper, lanes);
        for (int i = inner; i < nest->ndim; i++) { opdi_c_write_for(file, i, nest->sizes[i]); }
        opdi_c_write_across_product(file, nest, lane, lanes);
        opdi_c_write_close(file, nest->nreduce);
        opdi_c_write_line(file, "memcpy(row + %d, sums, sizeof sums);", from);
        return;
    }
    const char *const type = opdi_nest_deep(nest, 1) ? "double" : opdi_c_value(nest->value->dtype);
    opdi_c_write_line(file, "%s sums[%d];", type, lanes);
    opdi_c_write_indent(file);
    opdi_c_write(file, "for (int l = 0; l < %d; l++) { sums[l] = ", lanes);
    opdi_c_write_first(file, nest, nest->value->dtype);
    opdi_c_write(file, "; }\n");
    for (int i = inner; i < nest->ndim; i++) { opdi_c_write_for(file, i, nest->sizes[i]); }
    opdi_c_write_open(file, "for (int l = 0; l < %d; l++) {", lanes);
    opdi_c_write_lane(file, nest, lane, "start");
    opdi_c_write_term(file, nest, "sums[l]");
    opdi_c_write_close(file, 1 + nest->nreduce);
    opdi_c_write_line(file, "for (int l = 0; l < %d; l++) { row[%d + l] = (%s)sums[l]; }", lanes, from,
                      opdi_c_value(nest->value->dtype));
}
/* Writes a reduction whose operands are adjacent along loop `lane`: it computes 16, 8 or 4 results of this loop
   together.  The last such block may overlap the block before it.  The sums are stored in a row.  A second loop over
   the row computes nest->finish and stores the results. */
static void opdi_c_write_across(opdi_cfile *file, opdi_nest *nest, int lane) {
    const int64_t size = nest->sizes[lane];
    const int lanes = opdi_across_lanes(size), number = (int)++file->next, part = 2048;
    const bool parts = size > part;
    char value[64], sum[64], end[32];
    (void)snprintf(sum, sizeof sum, parts ? "v%d[i%d - part + %d]" : "v%d[i%d]", number, lane, lanes);
    (void)snprintf(end, sizeof end, parts ? "end" : "%lld", (long long)size);
    opdi_c_write_open(file, parts ? "for (ptrdiff_t part = 0; part < %lld; part += %d) {" : "{", (long long)size, part);
    if (parts) {
        opdi_c_write_line(file, "const ptrdiff_t end = part + %d < %lld ? part + %d : %lld;", part,
                          (long long)size, part, (long long)size);
    }
    opdi_c_write_line(file, "%s v%d[%lld];", opdi_c_value(nest->value->dtype), number,
                      (long long)(parts ? part + lanes : size));
    opdi_c_write_open(file, "for (ptrdiff_t j = %s; j < %s; j += %d) {", parts ? "part" : "0", end, lanes);
    if (size % lanes || parts) {
        opdi_c_write_line(file, "const ptrdiff_t start = j + %d <= %s ? j : %s - %d;", lanes, end, end, lanes);
    } else { opdi_c_write_line(file, "const ptrdiff_t start = j;"); }
    opdi_c_write_line(file, "%s *const row = v%d + start%s;", opdi_c_value(nest->value->dtype), number,
                      parts ? " - part" : "");
    opdi_c_write_across_sums(file, nest, lane, lanes, parts ? lanes : 0);
    opdi_c_write_close(file, 1);
    opdi_c_write_open(file, "for (ptrdiff_t i%d = %s; i%d < %s; i%d++) {", lane, parts ? "part" : "0", lane, end, lane);
    (void)snprintf(value, sizeof value, "%s", sum);
    if (nest->finish) {
        file->result = sum;
        opdi_expr_round++;
        opdi_c_write_value(file, nest->finish, nest->ndim, value);
    }
    opdi_c_write_store(file, nest, value);
    opdi_c_write_close(file, 2);
}
/* The types of sort keys, and the suffixes in the names of the functions for these types. */
static const struct { const char *type, *end; bool floats; } opdi_c_keys[] = {
    {"float", "f32", true}, {"double", "f64", true}, {"int64_t", "i64", false}};
/* The text of the C functions that sort keys.  It is written once for each type: $ is replaced by the type, and @ by
   the suffix of the type. */
static const char opdi_c_first[] =
    "/* Returns whether place i comes before place k in sorted order.  NaN is the largest key. */\n"
    "static inline int first_@(const $ *keys, ptrdiff_t step, int most, int64_t i, int64_t k) {\n"
    "    const $ x = keys[step * i], y = keys[step * k];\n"
    "    const int less = x < y || (y != y && x == x), more = x > y || (x != x && y == y);\n"
    "    return most ? more || (!less && i < k) : less || (!more && i < k);\n"
    "}\n",
    opdi_c_first_whole[] =
    "/* Returns whether place i comes before place k in sorted order. */\n"
    "static inline int first_@(const $ *keys, ptrdiff_t step, int most, int64_t i, int64_t k) {\n"
    "    const $ x = keys[step * i], y = keys[step * k];\n"
    "    return (most ? x > y : x < y) || (x == y && i < k);\n"
    "}\n",
    opdi_c_sorted[] =
    "/* Moves element i down the heap until it comes after its children in sorted order. */\n"
    "static void sink_@(const $ *keys, ptrdiff_t step, int most, int64_t *heap, ptrdiff_t count, ptrdiff_t i) {\n"
    "    for (ptrdiff_t below = 2 * i + 1; below < count; i = below, below = 2 * i + 1) {\n"
    "        if (below + 1 < count && first_@(keys, step, most, heap[below], heap[below + 1])) { below++; }\n"
    "        if (!first_@(keys, step, most, heap[i], heap[below])) { return; }\n"
    "        const int64_t place = heap[i];\n"
    "        heap[i] = heap[below];\n"
    "        heap[below] = place;\n"
    "    }\n"
    "}\n"
    "/* Writes the places of the first `count` of all keys to heap, in sorted order. */\n"
    "static void sorted_@(const $ *keys, ptrdiff_t step, ptrdiff_t all, int most, int64_t *heap, ptrdiff_t count) {\n"
    "    for (ptrdiff_t i = 0; i < count; i++) { heap[i] = i; }\n"
    "    for (ptrdiff_t i = count / 2 - 1; i >= 0; i--) { sink_@(keys, step, most, heap, count, i); }\n"
    "    for (ptrdiff_t i = count; i < all; i++) {\n"
    "        if (!first_@(keys, step, most, i, heap[0])) { continue; }\n"
    "        heap[0] = i;\n"
    "        sink_@(keys, step, most, heap, count, 0);\n"
    "    }\n"
    "    for (ptrdiff_t i = count - 1; i > 0; i--) {\n"
    "        const int64_t place = heap[i];\n"
    "        heap[i] = heap[0];\n"
    "        heap[0] = place;\n"
    "        sink_@(keys, step, most, heap, i, 0);\n"
    "    }\n"
    "}\n";
static void opdi_c_write_typed(opdi_cfile *file, const char *text, const char *type, const char *end) {
    for (; *text; text++) {
        if (*text == '@') { opdi_string_add(file->out, end); }
        else if (*text == '$') { opdi_string_add(file->out, type); }
        else { opdi_string_add_n(file->out, text, 1); }
    }
}
/* Writes the C function that computes a tile with `rows` rows of a matrix product: of doubles if `wide` is true, else
   of floats. */
static void opdi_c_write_tiled(opdi_cfile *file, int rows, bool wide) {
    const char *const type = wide ? "double" : "float", *const vector = wide ? "vector64" : "vector";
    const char *const width = wide ? "WIDTH64" : "WIDTH";
    opdi_c_write_line(file, "/* tile[%d][%s] = sum over k of left[k][row] * right[k * step + column]. */", rows, width);
    opdi_c_write_open(file, "static void tile%d_%s(ptrdiff_t depth, const %s *left, const %s *right, ptrdiff_t step, "
                      "%s *tile) {", rows, wide ? "f64" : "f32", type, type, type);
    for (int i = 0; i < rows; i++) { opdi_c_write_line(file, "%s sum%d[PARTS];", vector, i); }
    opdi_c_write_open(file, "for (int p = 0; p < PARTS; p++) {");
    for (int i = 0; i < rows; i++) { opdi_c_write_line(file, "sum%d[p] = (%s){0};", i, vector); }
    opdi_c_write_close(file, 1);
    opdi_c_write_open(file, "for (ptrdiff_t k = 0; k < depth; k++) {");
    opdi_c_write_line(file, "const %s *const row = (const %s *)(const void *)(right + k * step);", vector, vector);
    opdi_c_write_open(file, "for (int p = 0; p < PARTS; p++) {");
    for (int i = 0; i < rows; i++) { opdi_c_write_line(file, "sum%d[p] += left[%d * k + %d] * row[p];", i, rows, i); }
    opdi_c_write_close(file, 2);
    opdi_c_write_open(file, "for (int p = 0; p < PARTS; p++) {");
    for (int i = 0; i < rows; i++) {
        opdi_c_write_line(file, "((%s *)(void *)(tile + %d * %s))[p] = sum%d[p];", vector, i, width, i);
    }
    opdi_c_write_close(file, 2);
}
/* The text of the C function that calls the tile function for one to six rows.  $ is replaced by the type, and @ by the
   suffix of the type. */
static const char opdi_c_tiles[] =
    "static void tiles_@(ptrdiff_t rows, ptrdiff_t depth, const $ *left, const $ *right, ptrdiff_t step, $ *tile) {\n"
    "    switch (rows) {\n"
    "    case 1: tile1_@(depth, left, right, step, tile); break;\n"
    "    case 2: tile2_@(depth, left, right, step, tile); break;\n"
    "    case 3: tile3_@(depth, left, right, step, tile); break;\n"
    "    case 4: tile4_@(depth, left, right, step, tile); break;\n"
    "    case 5: tile5_@(depth, left, right, step, tile); break;\n"
    "    default: tile6_@(depth, left, right, step, tile); break;\n"
    "    }\n"
    "}\n";
/* Writes the functions for sorting and for tiles, for those types and sizes for which they are called. */
OPDI_INTERNAL void opdi_c_write_families(opdi_cfile *file) {
    for (int i = 0; i < 3; i++) {
        if (!(file->sorts >> i & 1)) { continue; }
        opdi_c_write_typed(file, opdi_c_keys[i].floats ? opdi_c_first : opdi_c_first_whole, opdi_c_keys[i].type,
                           opdi_c_keys[i].end);
        opdi_c_write_typed(file, opdi_c_sorted, opdi_c_keys[i].type, opdi_c_keys[i].end);
    }
    for (int i = 0; i < 64; i++) {
        if (!(file->tiles[i / 32] >> (i % 32) & 1)) { continue; }
        if (i % 32 < 7) { opdi_c_write_tiled(file, i % 32, i >= 32); }
        else { opdi_c_write_typed(file, opdi_c_tiles, i < 32 ? "float" : "double", i < 32 ? "f32" : "f64"); }
    }
}
/* Writes the loops of a nest whose value is sorted rows.  The loops call a sorting function for each row. */
static void opdi_c_write_sorted(opdi_cfile *file, const opdi_nest *nest) {
    const opdi_access *const keys = &nest->value->access;
    const int rows = nest->ndim - 2;
    const int type = keys->dtype == OPD_FLOAT64 ? 1 : keys->dtype == OPD_FLOAT32 ? 0 : 2;
    file->sorts |= 1u << type;
    for (int i = 0; i < rows; i++) { opdi_c_write_for(file, i, nest->sizes[i]); }
    opdi_c_write_indent(file);
    opdi_c_write(file, "sorted_%s(&", opdi_c_keys[type].end);
    opdi_c_write_element(file, keys, rows, false, "");
    opdi_c_write(file, ", %lld, %lld, %d, &", (long long)keys->strides[rows + 1], (long long)nest->sizes[rows + 1],
                 nest->reduction == OPDI_REDUCTION_MOST);
    opdi_c_write_element(file, &nest->out, rows, true, "");
    opdi_c_write(file, ", %lld);\n", (long long)nest->sizes[rows]);
    opdi_c_write_close(file, rows);
}
/* Writes the loops of a nest.  The first `outer` loops belong to the group, and are already open. */
OPDI_INTERNAL void opdi_c_write_nest(opdi_cfile *file, opdi_nest *nest, int outer) {
    const int inner = nest->ndim - nest->nreduce;
    char value[32], sum[32];
    if (opdi_nest_stays(nest)) {
        opdi_c_write_sorted(file, nest);
        return;
    }
    if (file->group->nnests > 1) {
        opdi_c_write_line(file, "/* %s */", nest->what ? nest->what : "copy");
    }
    if (outer < inner && nest->nreduce && opdi_nest_across(nest)) {
        for (int i = outer; i < inner - 1; i++) { opdi_c_write_for(file, i, nest->sizes[i]); }
        opdi_c_write_across(file, nest, inner - 1);
        opdi_c_write_close(file, inner - 1 - outer);
        return;
    }
    for (int i = outer; i < inner; i++) { opdi_c_write_for(file, i, nest->sizes[i]); }
    if (outer == inner) {
        opdi_c_write_open(file, "{");
    }
    if (nest->nreduce || nest->reduction) {
        const bool places = opdi_over_places(nest->reduction);
        (void)snprintf(sum, sizeof sum, "v%d", (int)++file->next);
        opdi_c_write_reduction(file, nest, sum);
        if (places) { (void)snprintf(sum + strlen(sum), 8, "_at"); }
        if (nest->finish) {
            file->result = sum;
            opdi_expr_round++;
            opdi_c_write_value(file, nest->finish, nest->ndim, value);
        } else { (void)snprintf(value, sizeof value, "%s", sum); }
    } else {
        opdi_expr_round++;
        opdi_c_write_value(file, nest->value, nest->ndim, value);
    }
    opdi_c_write_store(file, nest, value);
    opdi_c_write_close(file, outer == inner ? 1 : inner - outer);
}

//== matrix products ===================================================================================================

static const opdi_access *opdi_contraction_load(const opdi_expr *expr) {
    while (expr->kind == OPDI_EXPR_CAST) { expr = expr->in[0]; }
    return &expr->access;
}
/* Returns whether an operand can be packed before all runs: it is a constant, and depends neither on the loops over the
   batch nor on open sizes. */
static bool opdi_contraction_early(const opdi_contraction *all, const opdi_access *access) {
    const int inner = all->nest->ndim - all->nest->nreduce;
    for (int i = 0; i < all->nbatch; i++) { if (access->strides[all->batch[i]]) { return false; } }
    for (int i = 0; i < all->nest->ndim; i++) {
        if (opdi_nest_open(all->nest, i) && (access->strides[i] || i >= inner)) { return false; }
    }
    return (access->buffer->role == OPDI_BUFFER_CONSTANT || access->buffer->steady) && !access->buffer->writes;
}
OPDI_INTERNAL void opdi_contraction_of(opdi_contraction *all, opdi_nest *nest) {
    const int inner = nest->ndim - nest->nreduce;
    memset(all, 0, sizeof *all);
    all->nest = nest;
    all->left = opdi_contraction_load(nest->value->in[0]);
    all->right = opdi_contraction_load(nest->value->in[1]);
    for (int i = inner - 1; i >= 0; i--) {        /* if only one operand depends on the innermost loop, it becomes
                                                     `right` */
        const bool left = all->left->strides[i] != 0, right = all->right->strides[i] != 0;
        if (left == right) { continue; }
        if (left) {
            const opdi_access *const other = all->left;
            all->left = all->right;
            all->right = other;
        }
        break;
    }
    all->rows = all->columns = all->depth = 1;
    for (int i = 0; i < nest->ndim; i++) {
        const bool left = all->left->strides[i] != 0, right = all->right->strides[i] != 0;
        if (i >= inner) {
            all->k[all->nk++] = i;
            all->depth *= nest->sizes[i];
        } else if (left == right) { all->batch[all->nbatch++] = i; }
        else if (left) {
            all->m[all->nm++] = i;
            all->rows *= nest->sizes[i];
        } else {
            all->n[all->nn++] = i;
            all->columns *= nest->sizes[i];
        }
    }
    bool open = false;
    for (int i = 0; i < all->nm; i++) { open = open || opdi_nest_open(nest, all->m[i]); }
    all->tile = open ? 6 : (int)OPDI_MIN(all->rows, 6);
    all->few = open || (all->rows % all->tile && all->rows < 256);
    all->direct = all->nn == 1 && all->nk == 1 && all->right->strides[all->n[0]] == 1 &&
        all->right->dtype == nest->value->dtype;
    all->left_early = opdi_contraction_early(all, all->left);
    all->right_early = !all->direct && opdi_contraction_early(all, all->right);
}
/* Returns the C type in which a product is summed. */
OPDI_INTERNAL const char *opdi_contraction_type(const opdi_contraction *all) {
    return all->nest->value->dtype == OPD_FLOAT64 ? "double" : "float";
}
static const char *opdi_contraction_width(const opdi_contraction *all) {
    return all->nest->value->dtype == OPD_FLOAT64 ? "WIDTH64" : "WIDTH";
}
/* Returns the size in bytes of the packed left operand.  It is stored in tiles of rows. */
OPDI_INTERNAL int64_t opdi_contraction_left(const opdi_contraction *all) {
    const int64_t rows = (all->rows + all->tile - 1) / all->tile * all->tile;
    return (rows * all->depth * (int64_t)opd_dtype_size(all->nest->value->dtype) + 63) / 64 * 64;
}
/* Returns the size in bytes of the packed right operand: of all its columns if it is packed before all runs, else of
   the columns of one tile. */
OPDI_INTERNAL int64_t opdi_contraction_right(const opdi_contraction *all) {
    const int64_t columns = all->right_early ? (all->columns + 63) / 64 * 64 : 64;
    return (all->depth * columns * (int64_t)opd_dtype_size(all->nest->value->dtype) + 63) / 64 * 64;
}
/* Writes the offset of an access, such as "s0 * (at / 7) + s1 * (at % 7)".  `loops` are treated as one loop, and `at`
   is the number of its iteration. */
static void opdi_c_write_digits(opdi_cfile *file, const opdi_access *access, const opdi_nest *nest, const int *loops,
                            int count, const char *at) {
    int64_t below = 1;
    bool any = false;
    for (int i = count - 1; i >= 0; i--) {
        const int64_t size = nest->sizes[loops[i]], stride = access->strides[loops[i]];
        if (stride) {
            opdi_c_write(file, "%s%lld * (%s", any ? " + " : "", (long long)stride, at);
            if (below > 1) { opdi_c_write(file, " / %lld", (long long)below); }
            if (i > 0) { opdi_c_write(file, " %% %lld", (long long)size); }
            opdi_c_write(file, ")");
            any = true;
        }
        below *= size;
    }
    if (!any) { opdi_c_write(file, "0"); }
}
/* Writes a line such as "const ptrdiff_t i3 = at / 7 % 5;" for each of `loops`, which computes its index.  The loops
   are treated as one loop, and `at` is the number of its iteration. */
static void opdi_c_write_loops(opdi_cfile *file, const opdi_nest *nest, const int *loops, int count, const char *at) {
    int64_t below = 1;
    for (int i = count - 1; i >= 0; i--) {
        opdi_c_write_indent(file);
        opdi_c_write(file, "const ptrdiff_t i%d = %s", loops[i], at);
        if (below > 1) { opdi_c_write(file, " / %lld", (long long)below); }
        if (i > 0) { opdi_c_write(file, " %% %lld", (long long)nest->sizes[loops[i]]); }
        opdi_c_write(file, ";\n");
        below *= nest->sizes[loops[i]];
    }
}
/* Writes the element pointer[more] of an operand as a C expression.  A 16-bit float is converted to float. */
static void opdi_c_write_operand(opdi_cfile *file, const opdi_access *access, const char *pointer, const char *more) {
    const bool half = access->dtype == OPD_BFLOAT16 || access->dtype == OPD_FLOAT16;
    const char *const helper = access->dtype == OPD_BFLOAT16 ? "from_bf16" : "from_f16";
    if (half) { opdi_c_need(file, helper); }
    opdi_c_write(file, half ? "%s(%s[%s])" : "%s%s[%s]", half ? helper : "", pointer, more);
}
/* Writes the number of rows of a tile to `text` or, if the last tile may have fewer rows, the name of the C variable
   that has this number. */
static void opdi_contraction_high(const opdi_contraction *all, char text[16]) {
    (void)snprintf(text, 16, all->few ? "high" : "%d", all->tile);
}
static void opdi_c_write_high(opdi_cfile *file, const opdi_contraction *all, const char *first) {
    if (!all->few) { return; }
    opdi_c_write_line(file, "const ptrdiff_t high = %lld - %s < %d ? %lld - %s : %d;", (long long)all->rows, first,
                      all->tile,
                      (long long)all->rows, first, all->tile);
}
/* Writes the loops over the depth of an operand, and the line that declares `from`, the operand's address at this
   depth. */
static void opdi_c_write_depth(opdi_cfile *file, const opdi_contraction *all, const opdi_access *access) {
    opdi_c_write_line(file, "ptrdiff_t depth = 0;");
    for (int i = 0; i < all->nk; i++) { opdi_c_write_for(file, all->k[i], all->nest->sizes[all->k[i]]); }
    opdi_c_write_indent(file);
    opdi_c_write(file, "const %s *const from = source", opdi_c_type(access->dtype));
    for (int i = 0; i < all->nk; i++) {
        if (access->strides[all->k[i]]) {
            opdi_c_write(file, " + %lld * i%d", (long long)access->strides[all->k[i]], all->k[i]);
        }
    }
    opdi_c_write(file, ";\n");
}
/* Writes the loops that pack the rows of one tile of the left operand over the whole depth, to the elements to[k *
   width + row]. */
static void opdi_c_write_pack_left(opdi_cfile *file, const opdi_contraction *all) {
    char width[16];
    opdi_contraction_high(all, width);
    opdi_c_write_open(file, "for (ptrdiff_t row = 0; row < %s; row++) {", width);
    opdi_c_write_line(file, "const ptrdiff_t at = first + row < %lld ? first + row : %lld;", (long long)all->rows,
                      (long long)all->rows - 1);
    opdi_c_write_indent(file);
    opdi_c_write(file, "places[row] = ");
    opdi_c_write_digits(file, all->left, all->nest, all->m, all->nm, "at");
    opdi_c_write(file, ";\n");
    opdi_c_write_close(file, 1);
    opdi_c_write_depth(file, all, all->left);
    opdi_c_write_indent(file);
    opdi_c_write(file, "for (ptrdiff_t row = 0; row < %s; row++) { to[depth * %s + row] = ", width, width);
    opdi_c_write_operand(file, all->left, "from", "places[row]");
    opdi_c_write(file, "; }\n");
    opdi_c_write_line(file, "depth++;");
    opdi_c_write_close(file, all->nk);
}
/* Writes the loops that pack the columns of one tile of the right operand.  If the distance between the columns is
   constant, one loop copies them. */
static void opdi_c_write_pack_right(opdi_cfile *file, const opdi_contraction *all) {
    const char *const width = opdi_contraction_width(all), *const type = opdi_contraction_type(all);
    const long long step = all->nn ? (long long)all->right->strides[all->n[all->nn - 1]] : 0;
    char place[32];
    opdi_c_write_line(file, "ptrdiff_t runs = 0;");
    opdi_c_write_open(file, "for (ptrdiff_t row = 0; row < columns; row++) {");
    opdi_c_write_indent(file);
    opdi_c_write(file, "places[row] = ");
    opdi_c_write_digits(file, all->right, all->nest, all->n, all->nn, "(first + row)");
    opdi_c_write(file, ";\n");
    opdi_c_write_line(file, "if (!row || places[row] != places[row - 1] + %lld) { begins[runs++] = row; }", step);
    opdi_c_write_close(file, 1);
    opdi_c_write_line(file, "begins[runs] = columns;");
    opdi_c_write_depth(file, all, all->right);
    opdi_c_write_open(file, "for (ptrdiff_t run = 0; run < runs; run++) {");
    opdi_c_write_line(file, "const ptrdiff_t begin = begins[run], count = begins[run + 1] - begin;");
    opdi_c_write_line(file, "const %s *RESTRICT const row = from + places[begin];", opdi_c_type(all->right->dtype));
    opdi_c_write_line(file, "%s *RESTRICT const into = to + depth * %s + begin;", type, width);
    opdi_c_write_indent(file);
    opdi_c_write(file, "for (ptrdiff_t i = 0; i < count; i++) { into[i] = ");
    (void)snprintf(place, sizeof place, step == 1 ? "i" : "%lld * i", step);
    opdi_c_write_operand(file, all->right, "row", place);
    opdi_c_write(file, "; }\n");
    opdi_c_write_close(file, 1);
    opdi_c_write_line(file, "for (ptrdiff_t i = columns; i < %s; i++) { to[depth * %s + i] = 0; }", width, width);
    opdi_c_write_line(file, "depth++;");
    opdi_c_write_close(file, all->nk);
}
/* Writes the line that declares `source`, the address of the operand's first element in the current batch. */
static void opdi_c_write_source(opdi_cfile *file, const opdi_contraction *all, const opdi_access *access) {
    const char *const type = opdi_c_type(access->dtype);
    char name[64];
    opdi_c_name(access->buffer, name);
    opdi_c_write_indent(file);
    if (access->buffer->dtype == access->dtype) { opdi_c_write(file, "const %s *const source = %s", type, name); }
    else { opdi_c_write(file, "const %s *const source = (const %s *)(const void *)%s", type, type, name); }
    for (int i = 0; i < all->nbatch; i++) {
        const int64_t stride = access->strides[all->batch[i]];
        if (stride) { opdi_c_write(file, " + %lld * i%d", (long long)stride, all->batch[i]); }
    }
    if (access->offset) { opdi_c_write(file, " + %lld", (long long)access->offset); }
    opdi_c_write(file, ";\n");
}
/* Writes the loops that pack all tiles of rows of the left operand. */
static void opdi_c_write_left(opdi_cfile *file, const opdi_contraction *all) {
    opdi_c_write_open(file, "for (ptrdiff_t first = 0; first < %lld; first += %d) {", (long long)all->rows, all->tile);
    opdi_c_write_high(file, all, "first");
    opdi_c_write_source(file, all, all->left);
    opdi_c_write_line(file, "%s *const to = left_rows + first * %lld;", opdi_contraction_type(all),
                      (long long)all->depth);
    opdi_c_write_line(file, "ptrdiff_t places[%d];", all->tile);
    opdi_c_write_pack_left(file, all);
    opdi_c_write_close(file, 1);
}
/* Writes the loops that pack the columns of one tile of the right operand. */
static void opdi_c_write_right_pack(opdi_cfile *file, const opdi_contraction *all) {
    opdi_c_write_source(file, all, all->right);
    if (all->direct) {
        opdi_c_write_open(file, "if (columns == %s) {", opdi_contraction_width(all));
        opdi_c_write_line(file, "rows = source + first;");
        opdi_c_write_line(file, "step = %lld;", (long long)all->right->strides[all->k[0]]);
        opdi_c_write_close(file, 1);
        opdi_c_write_open(file, "else {");
    }
    opdi_c_write_line(file, "%s *const to = right_rows%s;", opdi_contraction_type(all),
                      all->right_early ? " + first * depths" : "");
    opdi_c_write_line(file, "ptrdiff_t places[%s], begins[%s + 1];", opdi_contraction_width(all),
                      opdi_contraction_width(all));
    opdi_c_write_pack_right(file, all);
    if (all->direct) { opdi_c_write_close(file, 1); }
}
/* Opens the loop over the tiles of columns.  Then writes code that packs the columns of a tile or, if possible, only
   finds their address. */
static void opdi_c_write_right(opdi_cfile *file, const opdi_contraction *all) {
    const char *const width = opdi_contraction_width(all), *const type = opdi_contraction_type(all);
    opdi_c_write_open(file, "for (ptrdiff_t first = 0; first < %lld; first += %s) {", (long long)all->columns, width);
    opdi_c_write_line(file, "const ptrdiff_t left = %lld - first, columns = left < %s ? left : %s;",
                      (long long)all->columns, width, width);
    if (all->right_early) {
        opdi_c_write_line(file, "const %s *const rows = right_rows + first * %lld;", type, (long long)all->depth);
        opdi_c_write_line(file, "const ptrdiff_t step = %s;", width);
        return;
    }
    opdi_c_write_line(file, "%s%s *rows = right_rows;", "const ", type);
    opdi_c_write_line(file, "ptrdiff_t step = %s;", width);
    opdi_c_write_right_pack(file, all);
}
/* Writes the functions that pack constant operands.  They are called once, before all runs. */
OPDI_INTERNAL void opdi_c_write_early_packs(opdi_cfile *file, const opdi_contraction *all, const char *name) {
    const char *const type = opdi_contraction_type(all);
    char operand[64];
    if (all->left_early) {
        opdi_c_name(all->left->buffer, operand);
        opdi_c_write(file, "%svoid %s_left(const %s *RESTRICT %s, %s *RESTRICT left_rows) {\n",
                     opdi_c_linkage(file), name, opdi_c_type(all->left->buffer->dtype), operand, type);
        file->indent = 1;
        opdi_c_write_left(file, all);
        opdi_c_write(file, "}\n");
    }
    if (all->right_early) {
        opdi_c_name(all->right->buffer, operand);
        opdi_c_write(file, "%svoid %s_right(const %s *RESTRICT %s, %s *RESTRICT right_rows) {\n",
                     opdi_c_linkage(file), name, opdi_c_type(all->right->buffer->dtype), operand, type);
        file->indent = 1;
        opdi_c_write_line(file, "const ptrdiff_t depths = %lld;", (long long)all->depth);
        opdi_c_write_open(file, "for (ptrdiff_t first = 0; first < %lld; first += %s) {", (long long)all->columns,
                          opdi_contraction_width(all));
        opdi_c_write_line(file, "const ptrdiff_t left = %lld - first, columns = left < %s ? left : %s;",
                          (long long)all->columns, opdi_contraction_width(all), opdi_contraction_width(all));
        opdi_c_write_right_pack(file, all);
        opdi_c_write_close(file, 1);
        opdi_c_write(file, "}\n");
    }
}
/* Writes the loops over the columns of a tile.  The number of a column may be composed of the indices of several loops.
   Columns that differ only in the last index then form a run: writes a loop over the runs, and a loop over the columns
   of a run.  Returns the number of loops. */
static int opdi_c_write_columns(opdi_cfile *file, const opdi_contraction *all) {
    const opdi_nest *const nest = all->nest;
    const int last = all->nn - 1;
    if (all->nn < 2) {
        opdi_c_write_open(file, "for (ptrdiff_t column = 0; column < columns; column++) {");
        if (all->nn) { opdi_c_write_line(file, "const ptrdiff_t i%d = first + column;", all->n[last]); }
        return 1;
    }
    const long long run = (long long)nest->sizes[all->n[last]];
    char outer[48];
    opdi_c_write_open(file, "for (ptrdiff_t done = 0, count; done < columns; done += count) {");
    opdi_c_write_line(file, "const ptrdiff_t n = first + done, start = n %% %lld;", run);
    opdi_c_write_line(file, "count = %lld - start < columns - done ? %lld - start : columns - done;", run, run);
    (void)snprintf(outer, sizeof outer, "(n / %lld)", run);
    opdi_c_write_loops(file, nest, all->n, last, outer);
    opdi_c_write_open(file, "for (ptrdiff_t column = 0; column < count; column++) {");
    opdi_c_write_line(file, "const ptrdiff_t i%d = start + column;", all->n[last]);
    return 2;
}
/* Writes the code that computes a tile.  If the depth is large, it computes the tile in parts, which it adds as
   doubles. */
static void opdi_c_write_tile(opdi_cfile *file, const opdi_contraction *all, const char *helper) {
    const char *const type = opdi_contraction_type(all), *const width = opdi_contraction_width(all);
    const char *const rows = all->few ? "high, " : "";
    const long long depth = (long long)all->depth;
    char high[16];
    opdi_contraction_high(all, high);
    opdi_c_write_high(file, all, "row");
    if (depth <= 2 * OPDI_C_ADDED || *type == 'd') {
        opdi_c_write_line(file, "%s tile[%d * %s];", type, all->tile, width);
        opdi_c_write_line(file, "%s(%s%lld, left_rows + row * %lld, rows, step, tile);", helper, rows, depth, depth);
        return;
    }
    opdi_c_write_line(file, "double tile[%d * %s] = {0};", all->tile, width);
    opdi_c_write_open(file, "for (ptrdiff_t k = 0; k < %lld; k += %d) {", depth, OPDI_C_ADDED);
    opdi_c_write_line(file, "const ptrdiff_t count = %lld - k < %d ? %lld - k : %d;", depth, OPDI_C_ADDED, depth,
                      OPDI_C_ADDED);
    opdi_c_write_line(file, "float part[%d * %s];", all->tile, width);
    opdi_c_write_line(file, "%s(%scount, left_rows + row * %lld + k * %s, rows + k * step, step, part);", helper, rows,
                      depth, high);
    opdi_c_write_line(file, "for (ptrdiff_t i = 0; i < %s * %s; i++) { tile[i] += part[i]; }", high, width);
    opdi_c_write_close(file, 1);
}
/* Writes the loops of a matrix product. */
OPDI_INTERNAL void opdi_c_write_contraction(opdi_cfile *file, opdi_nest *nest) {
    opdi_contraction all;
    char helper[32], value[32];
    opdi_contraction_of(&all, nest);
    const char *const type = opdi_contraction_type(&all), *const width = opdi_contraction_width(&all);
    (void)snprintf(helper, sizeof helper, "tile%d_%s", all.tile, *type == 'd' ? "f64" : "f32");
    if (all.few) { (void)snprintf(helper, sizeof helper, "tiles_%s", *type == 'd' ? "f64" : "f32"); }
    file->tiles[*type == 'd'] |= all.few ? 0xfeu : 1u << all.tile;        /* few: also needs functions for 1 to 6 rows,
                                                                             and one that chooses among them */
    if (all.left_early) { opdi_c_write_line(file, "(void)%s;", all.left->buffer->name); }
    if (all.right_early) { opdi_c_write_line(file, "(void)%s;", all.right->buffer->name); }
    for (int i = 0; i < all.nbatch; i++) { opdi_c_write_for(file, all.batch[i], nest->sizes[all.batch[i]]); }
    if (!all.left_early) { opdi_c_write_left(file, &all); }
    opdi_c_write_right(file, &all);
    opdi_c_write_open(file, "for (ptrdiff_t row = 0; row < %lld; row += %d) {", (long long)all.rows, all.tile);
    opdi_c_write_tile(file, &all, helper);
    opdi_c_write_open(file, "for (ptrdiff_t m = row; m < %lld && m < row + %d; m++) {", (long long)all.rows, all.tile);
    opdi_c_write_loops(file, nest, all.m, all.nm, "m");
    const int loops = opdi_c_write_columns(file, &all);
    opdi_c_write_line(file, "const %s sum = (%s)tile[(m - row) * %s + %scolumn];", type, type, width,
                      loops > 1 ? "done + " : "");
    (void)snprintf(value, sizeof value, "sum");
    if (nest->finish) {
        file->result = "sum";
        opdi_expr_round++;
        opdi_c_write_value(file, nest->finish, nest->ndim, value);
    }
    opdi_c_write_store(file, nest, value);
    opdi_c_write_close(file, loops + 3 + all.nbatch);
}
