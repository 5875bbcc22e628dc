#include "tensor.h"

//== the iterator ======================================================================================================

/* Joins neighbouring dims that can be walked as one dim in every operand, and drops dims of size 1.  The elements and
   their order stay the same. */
static void opdi_iter_coalesce(opdi_iter *iter) {
    int last = 0;
    for (int dim = 1; dim < iter->ndim; dim++) {
        bool join = true;
        if (iter->sizes[dim] == 1) { continue; }
        for (int k = 0; k < iter->nops && join; k++) {
            join = iter->sizes[last] == 1 || iter->op[k].stride[last] * iter->sizes[last] == iter->op[k].stride[dim];
        }
        if (join) {
            if (iter->sizes[last] == 1) {
                for (int k = 0; k < iter->nops; k++) { iter->op[k].stride[last] = iter->op[k].stride[dim]; }
            }
            iter->sizes[last] *= iter->sizes[dim];
            continue;
        }
        last++;
        iter->sizes[last] = iter->sizes[dim];
        for (int k = 0; k < iter->nops; k++) { iter->op[k].stride[last] = iter->op[k].stride[dim]; }
    }
    iter->ndim = last + 1;
}
OPDI_INTERNAL int opdi_iter_walk(const opdi_iter *iter, const opdi_operand *operand) {
    int64_t expect = operand->size;
    bool scalar = true, linear = true;
    for (int dim = 0; dim < iter->ndim; dim++) {
        if (iter->sizes[dim] > 1 && operand->stride[dim] != 0) { scalar = false; }
        if (iter->sizes[dim] > 1 && operand->stride[dim] != expect) { linear = false; }
        expect *= iter->sizes[dim];
    }
    return linear ? OPDI_WALK_LINEAR : scalar ? OPDI_WALK_SCALAR : OPDI_WALK_STRIDED;
}
/* Returns the dtype of a complex number's parts. */
OPDI_INTERNAL int32_t opdi_real_dtype(int32_t t) {
    return t == OPD_COMPLEX64 ? (int32_t)OPD_FLOAT32 : t == OPD_COMPLEX128 ? (int32_t)OPD_FLOAT64
        : t == OPD_COMPLEX32 ? (int32_t)OPD_FLOAT16 : t;
}
/* Prepares a pass over nops operands, of which nout are outputs.  Every operand broadcasts to the sizes of ops[0], the
   inputs are promoted to dtype `common`, and loops compute in the type `compute` (OPDI_F32, ...).  If common is
   OPD_DTYPE_NONE (copies), nothing is promoted, and the pass visits only the real parts of a complex operand: the
   caller makes a second pass over the imaginary parts.  Returns 0, or -1 and sets an error if an output overlaps itself
   or, partially, an input. */
OPDI_INTERNAL int opdi_iter_init(opdi_iter *iter, opd_tensor *const *ops, int nops, int nout, opd_scalar_type common,
                                 int compute) {
    const opd_tensor *out = ops[0];
    const int ndim = out->ndim;
    int perm[OPD_MAX_DIMS];
    for (int k = 0; k < nout; k++) {
        if (opdi_check_internal_overlap(ops[k]) != 0) { return -1; }
        for (int dim = nout; dim < nops; dim++) {
            if (opdi_check_partial_overlap(ops[k], ops[dim]) != 0) { return -1; }
        }
    }
    opdi_dims_order(ops, nops, opdi_sizes(out), ndim, perm);
    iter->nops = nops;
    iter->nout = nout;
    iter->numel = out->numel;
    iter->ndim = OPDI_MAX(ndim, 1);
    iter->sizes[0] = 1;
    iter->compute = (int8_t)compute;
    iter->common = (int32_t)common;
    iter->buffered = false;
    iter->row_op = 0;
    for (int dim = 0; dim < ndim; dim++) { iter->sizes[dim] = opdi_sizes(out)[perm[dim]]; }
    for (int k = 0; k < nops; k++) {
        opdi_operand *operand = &iter->op[k];
        const int32_t full = ops[k]->dtype, t = common == OPD_DTYPE_NONE ? opdi_real_dtype(full) : full;
        operand->data = ops[k]->data;
        operand->size = (int32_t)opd_dtype_size((opd_scalar_type)t);
        operand->convert = t != opdi_compute_dtype[compute];
        operand->round = k >= nout && t != common && common != opdi_compute_dtype[compute] && common != OPD_DTYPE_NONE;
        operand->load = opdi_load_of(compute, t);
        operand->store = opdi_store_of(compute, t);
        operand->stride[0] = 0;
        for (int dim = 0; dim < ndim; dim++) {
            operand->stride[dim] = opdi_broadcast_bytes(ops[k], opdi_sizes(out), ndim, perm[dim]);
        }
        if (!operand->load) {
            return opd_fail(OPD_ERROR_DTYPE, "not implemented for '%s'", opd_dtype_name((opd_scalar_type)t));
        }
    }
    opdi_iter_coalesce(iter);
    for (int k = 0; k < nops; k++) {
        opdi_operand *operand = &iter->op[k];
        operand->walk = (int8_t)opdi_iter_walk(iter, operand);
        if (operand->convert || operand->round || operand->stride[0] != operand->size) { iter->buffered = true; }
    }
    return 0;
}

/* Copies `count` elements of an operand to buf, beginning at index idx[ndim] of the pass.  If `store` is true, copies
   them from buf to the operand instead. */
static void opdi_iter_move(const opdi_iter *iter, const opdi_operand *operand, const int64_t *idx, int64_t count,
                           char *buf, bool store) {
    int64_t at[OPD_MAX_DIMS], left = count;
    const int ndim = iter->ndim;
    char *here = operand->data;
    for (int dim = 0; dim < ndim; dim++) {
        at[dim] = idx[dim];
        here += idx[dim] * operand->stride[dim];
    }
    for (;;) {
        int64_t run = OPDI_MIN(iter->sizes[0] - at[0], left);
        if (store) { opdi_scatter(here, operand->stride[0], buf, operand->size, run, operand->size); }
        else { opdi_gather(buf, here, operand->stride[0], run, operand->size); }
        buf += run * operand->size;
        left -= run;
        if (left == 0) { return; }
        here -= at[0] * operand->stride[0];
        at[0] = 0;
        for (int dim = 1; dim < ndim; dim++) {
            here += operand->stride[dim];
            if (++at[dim] < iter->sizes[dim]) { break; }
            here -= at[dim] * operand->stride[dim];
            at[dim] = 0;
        }
    }
}
/* Returns the address of the `count` elements of an operand that begin at index `idx` (`pos` in linear order), if they
   are consecutive in memory; else NULL. */
static char *opdi_iter_run_at(const opdi_iter *iter, const opdi_operand *operand, const int64_t *idx, int64_t pos,
                              int64_t count) {
    char *at = operand->data;
    if (operand->walk == OPDI_WALK_LINEAR) { return at + pos * operand->size; }
    if (operand->stride[0] != operand->size || idx[0] + count > iter->sizes[0]) { return NULL; }
    for (int dim = 0; dim < iter->ndim; dim++) { at += idx[dim] * operand->stride[dim]; }
    return at;
}
/* Returns the address of `count` elements of an input operand, beginning at `idx` (`pos` in linear order), in the type
   in which the loop computes.  If necessary, they are gathered and converted into buf. */
OPDI_INTERNAL void *opdi_iter_load(const opdi_iter *iter, const opdi_operand *operand, const int64_t *idx, int64_t pos,
                                   int64_t count, char *buf) {
    uint64_t raw[OPDI_BLOCK];                     /* elements in the operand's dtype, later in the common dtype */
    char *src = opdi_iter_run_at(iter, operand, idx, pos, count);
    const bool plain = !operand->convert && !operand->round;
    if (src && plain) { return src; }
    if (!src) {
        src = operand->convert ? (char *)raw : buf;
        if (idx[0] + count <= iter->sizes[0]) {   /* the block is within one row */
            const char *row = operand->data;
            for (int dim = 0; dim < iter->ndim; dim++) { row += idx[dim] * operand->stride[dim]; }
            opdi_gather(src, row, operand->stride[0], count, operand->size);
        } else { opdi_iter_move(iter, operand, idx, count, src, false); }
        if (plain) { return buf; }
    }
    if (src != buf) { operand->load(buf, src, count); }
    if (operand->round) {
        opdi_store_of(iter->compute, iter->common)(raw, buf, count);
        opdi_load_of(iter->compute, iter->common)(buf, raw, count);
    }
    return buf;
}
/* Returns the address at which the loop may write `count` elements of the output operand directly.  Returns NULL if the
   loop must write to a buffer, from which opdi_iter_store moves them. */
OPDI_INTERNAL void *opdi_iter_target(const opdi_iter *iter, const opdi_operand *operand, const int64_t *idx,
                                     int64_t pos, int64_t count) {
    return operand->convert ? NULL : opdi_iter_run_at(iter, operand, idx, pos, count);
}
OPDI_INTERNAL void opdi_iter_store(const opdi_iter *iter, const opdi_operand *operand, const int64_t *idx, int64_t pos,
                                   int64_t count, char *buf) {
    uint64_t raw[OPDI_BLOCK];
    char *at = opdi_iter_run_at(iter, operand, idx, pos, count);
    if (at) {
        operand->store(at, buf, count);
        return;
    }
    if (operand->convert) { operand->store(raw, buf, count); }
    opdi_iter_move(iter, operand, idx, count, operand->convert ? (char *)raw : buf, true);
}
/* Moves `idx` on by `count` elements, which do not go beyond the end. */
OPDI_INTERNAL void opdi_iter_step(const opdi_iter *iter, int64_t *idx, int64_t count) {
    for (int dim = 0; dim < iter->ndim; dim++) {
        idx[dim] += count;
        if (idx[dim] < iter->sizes[dim]) { return; }
        count = idx[dim] / iter->sizes[dim];
        idx[dim] -= count * iter->sizes[dim];
    }
}
/* The present contents of an operand's block, for an operand that repeats one number along a row: `count` copies of the
   number at `at`. */
typedef struct opdi_held { const char *at; int64_t count; } opdi_held;
/* Returns true if the block of an operand already holds the `count` copies that a load at `idx` would put there.  If
   not, sets *held to the new contents, which the caller loads. */
static bool opdi_iter_holds(const opdi_iter *iter, const opdi_operand *operand, const int64_t *idx, int64_t count,
                            opdi_held *held) {
    const char *at = operand->data;
    for (int dim = 1; dim < iter->ndim; dim++) { at += idx[dim] * operand->stride[dim]; }
    if (held->at == at && held->count >= count) { return true; }
    held->at = at;
    held->count = count;
    return false;
}
/* Returns true if the loop can read and write rows of every operand in place, apart from inputs that repeat one number
   along a row.  Unless such a number is the same in all rows, rows must have OPDI_ROW elements. */
static bool opdi_iter_in_place(const opdi_iter *iter) {
    if (iter->ndim < 2 || iter->sizes[0] < 16) { return false; }
    for (int k = 0; k < iter->nops; k++) {
        const opdi_operand *const operand = &iter->op[k];
        const bool row = operand->stride[0] == operand->size;
        if (operand->walk == OPDI_WALK_SCALAR && k >= iter->nout) { continue; }
        if (operand->convert || operand->round || (!row && (operand->stride[0] != 0 || k < iter->nout ||
                                                            iter->sizes[0] < OPDI_ROW))) { return false; }
    }
    return true;
}
/* Runs the loop over `rows` whole rows from index `idx` on, which are neighbours along dim 1, if opdi_iter_in_place.
   block: memory for the numbers that are repeated along a row.  scalars: for operands that are a single number, blocks
   that are filled with it. */
static void opdi_iter_rows(const opdi_iter *iter, const int64_t *idx, int64_t rows,
                           uint64_t (*block)[OPDI_BLOCK], void *const *scalars) {
    void *data[OPDI_ITER_OPS];
    char *at[OPDI_ITER_OPS];
    int64_t most = iter->sizes[0];
    for (int k = 0; k < iter->nops; k++) {
        at[k] = iter->op[k].data;
        for (int dim = 0; dim < iter->ndim; dim++) { at[k] += idx[dim] * iter->op[k].stride[dim]; }
        if (iter->op[k].stride[0] == 0) { most = OPDI_MIN(most, opdi_iter_most(iter)); }
    }
    for (int64_t row = 0; row < rows; row++) {
        for (int k = 0; k < iter->nops; k++) {
            const opdi_operand *const operand = &iter->op[k];
            data[k] = at[k];
            at[k] += operand->stride[1];
            if (operand->walk == OPDI_WALK_SCALAR && k >= iter->nout) { data[k] = scalars[k]; }
            else if (operand->stride[0] == 0) {
                if (row == 0 || operand->stride[1] != 0) { opdi_gather(block[k], data[k], 0, most, operand->size); }
                data[k] = block[k];
            }
        }
        for (int64_t i = 0; i < iter->sizes[0]; i += most) {
            for (int k = 0; k < iter->nops && i; k++) {
                data[k] = (char *)data[k] + (iter->op[k].stride[0] ? most * iter->op[k].size : 0);
            }
            iter->loop(data, OPDI_MIN(most, iter->sizes[0] - i), iter->params);
        }
    }
}
/* Sets idx[ndim] to the index of element `pos` of the pass. */
static void opdi_iter_seek(const opdi_iter *iter, int64_t *idx, int64_t pos) {
    for (int dim = 0; dim < iter->ndim; dim++) {
        idx[dim] = pos % iter->sizes[dim];
        pos /= iter->sizes[dim];
    }
}
/* Returns true if an operand repeats one row of the pass, or one number. */
static bool opdi_iter_repeats(const opdi_iter *iter, const opdi_operand *operand) {
    for (int dim = 1; dim < iter->ndim; dim++) { if (operand->stride[dim] != 0) { return false; } }
    return true;
}
/* Returns true if blocks of several short rows can be used in place, or are the same for the whole pass: if each
   operand is contiguous, or an input that repeats one row. */
static bool opdi_iter_in_blocks(const opdi_iter *iter) {
    if (iter->sizes[0] >= OPDI_ROW || iter->ndim < 2) { return false; }
    for (int k = 0; k < iter->nops; k++) {
        if (iter->op[k].walk != OPDI_WALK_LINEAR && (k < iter->nout || !opdi_iter_repeats(iter, &iter->op[k]))) {
            return false;
        }
    }
    return true;
}
/* Runs the loop over elements `begin` to `end` - 1 of the pass.  If rows have at least OPDI_ROW elements, the loop runs
   row by row, so that contiguous rows are used in place.  Shorter rows are gathered into blocks of whole rows, unless
   all operands can be used in place. */
static void opdi_iter_range(const opdi_iter *iter, int64_t begin, int64_t end) {
    OPDI_ON_LINE uint64_t block[OPDI_ITER_OPS][OPDI_BLOCK];      /* 36 KiB */
    void *data[OPDI_ITER_OPS];
    opdi_held held[OPDI_ITER_OPS];
    int64_t idx[OPD_MAX_DIMS], count, most = opdi_iter_most(iter);
    bool kept[OPDI_ITER_OPS];                     /* the operand's block is the same for the whole pass */
    const bool in_place = !opdi_iter_in_blocks(iter) && opdi_iter_in_place(iter);
    const bool rows = in_place || iter->sizes[0] >= OPDI_ROW;
    if (!rows) { most -= most % iter->sizes[0]; }
    opdi_iter_seek(iter, idx, begin);
    for (int k = iter->nout; k < iter->nops; k++) {
        const opdi_operand *const operand = &iter->op[k];
        held[k].at = NULL;
        kept[k] = operand->walk == OPDI_WALK_SCALAR ||
            (!rows && operand->walk != OPDI_WALK_LINEAR && opdi_iter_repeats(iter, operand));
        if (!kept[k]) { continue; }
        data[k] = opdi_iter_load(iter, operand, idx, 0, OPDI_MIN(end - begin, most), (char *)block[k]);
    }
    for (int64_t pos = begin; pos < end; pos += count) {
        count = end - pos;
        if (in_place && idx[0] == 0 && count >= iter->sizes[0]) {
            count = OPDI_MIN(count / iter->sizes[0], iter->sizes[1] - idx[1]);
            opdi_iter_rows(iter, idx, count, block, data);
            count *= iter->sizes[0];
            for (int k = iter->nout; k < iter->nops; k++) { held[k].at = NULL; }
            opdi_iter_step(iter, idx, count);
            continue;
        }
        if (rows) { count = OPDI_MIN(count, iter->sizes[0] - idx[0]); }
        if (iter->buffered || !rows) { count = OPDI_MIN(count, most); }
        for (int k = iter->nout; k < iter->nops; k++) {
            const opdi_operand *const operand = &iter->op[k];
            if (kept[k] || (rows && operand->stride[0] == 0 &&
                            opdi_iter_holds(iter, operand, idx, count, &held[k]))) { continue; }
            data[k] = opdi_iter_load(iter, operand, idx, pos, count, (char *)block[k]);
        }
        for (int k = 0; k < iter->nout; k++) {
            data[k] = opdi_iter_target(iter, &iter->op[k], idx, pos, count);
            if (!data[k]) { data[k] = block[k]; }
        }
        iter->loop(data, count, iter->params);
        for (int k = 0; k < iter->nout; k++) {
            if (data[k] == (void *)block[k]) { opdi_iter_store(iter, &iter->op[k], idx, pos, count, (char *)block[k]); }
        }
        opdi_iter_step(iter, idx, count);
    }
}
/* Sums, differences, products and quotients of float32 in which one operand is a single number for each row, as in
   outer products.  These loops run over many rows in one call and need no copies of the number.  The resulting bits are
   those of the loops of the formulas. */
enum { OPDI_ROWS_ADD = 1, OPDI_ROWS_LESS, OPDI_ROWS_SUB, OPDI_ROWS_MUL, OPDI_ROWS_DIV };
/* Sets elements j < count to `value`. */
#define OPDI_ROWS_EACH(value) \
    for (; i + 8 <= count; i += 8) { \
        OPDI_IVDEP \
        for (int lane = 0; lane < 8; lane++) { \
            const int64_t j = i + lane; \
            out[j] = value; \
        } \
    } \
    for (int64_t j = i; j < count; j++) { out[j] = value; }
/* Computes `rows` rows of `count` elements by the operation `what`.  at: the addresses of the first row of the result,
   of its number, and of its other input.  step: the bytes from one row to the next. */
OPDI_VECTOR_LOOP static void opdi_rows_run(int what, int64_t rows, int64_t count, char *const *at,
                                           const int64_t *step) {
    for (int64_t row = 0; row < rows; row++) {
        float *const out = (float *)(void *)(at[0] + row * step[0]);
        const float number = *(const float *)(const void *)(at[1] + row * step[1]);
        const float *const x = (const float *)(const void *)(at[2] + row * step[2]);
        int64_t i = 0;
        switch (what) {
            case OPDI_ROWS_ADD: OPDI_ROWS_EACH(x[j] + number) break;
            case OPDI_ROWS_LESS: OPDI_ROWS_EACH(x[j] - number) break;
            case OPDI_ROWS_SUB: OPDI_ROWS_EACH(number - x[j]) break;
            case OPDI_ROWS_MUL: OPDI_ROWS_EACH(x[j] * number) break;
            default: OPDI_ROWS_EACH(x[j] / number) break;
        }
    }
}
#if !defined(OPD_NO_OPERATORS)
OPDI_INTERNAL void opdi_f32_add(void *const *data, int64_t count, const opdi_params *params);
OPDI_INTERNAL void opdi_f32_sub(void *const *data, int64_t count, const opdi_params *params);
OPDI_INTERNAL void opdi_f32_mul(void *const *data, int64_t count, const opdi_params *params);
OPDI_INTERNAL void opdi_f32_div(void *const *data, int64_t count, const opdi_params *params);
#endif
/* Returns OPDI_ROWS_.. for a loop whose operand `number` (1 or 2) repeats one number along a row, or 0. */
static int opdi_rows_op(opdi_loop loop, int number) {
#if !defined(OPD_NO_OPERATORS)
    return loop == opdi_f32_mul ? OPDI_ROWS_MUL : loop == opdi_f32_add ? OPDI_ROWS_ADD
        : loop == opdi_f32_sub ? (number == 1 ? OPDI_ROWS_SUB : OPDI_ROWS_LESS)
        : loop == opdi_f32_div && number == 2 ? OPDI_ROWS_DIV : 0;
#else
    (void)loop;
    (void)number;
    return 0;
#endif
}
/* Sets iter->row_op and iter->row_number if opdi_iter_number_rows can run the loop of this pass. */
static void opdi_iter_find_numbers(opdi_iter *iter) {
    if (!opdi_has_vectors() || iter->nops != 3 || iter->nout != 1 || iter->compute != OPDI_F32 || iter->ndim < 2 ||
        iter->sizes[0] < 4) { return; }
    const int number = iter->op[1].stride[0] == 0 ? 1 : 2;
    const opdi_operand *const one = &iter->op[number], *const row = &iter->op[3 - number], *const out = &iter->op[0];
    if (one->stride[0] != 0 || (one->walk != OPDI_WALK_SCALAR && (one->convert || one->round)) ||
        row->stride[0] != row->size || row->convert || row->round || out->stride[0] != out->size || out->convert) {
        return;
    }
    iter->row_op = (int8_t)opdi_rows_op(iter->loop, number);
    iter->row_number = (int8_t)number;
}
/* Computes elements `begin` to `end` - 1 of a pass with iter->row_op. */
static void opdi_iter_number_rows(const opdi_iter *iter, int64_t begin, int64_t end) {
    const int order[3] = {0, iter->row_number, 3 - iter->row_number};
    const bool scalar = iter->op[iter->row_number].walk == OPDI_WALK_SCALAR;
    int64_t idx[OPD_MAX_DIMS], step[3], count;
    uint64_t number;
    char *at[3];
    opdi_iter_seek(iter, idx, begin);
    for (int k = 0; k < 3; k++) { step[k] = iter->op[order[k]].stride[1]; }
    if (scalar) { opdi_iter_load(iter, &iter->op[iter->row_number], idx, 0, 1, (char *)&number); }
    for (int64_t pos = begin; pos < end; pos += count) {
        int64_t rows = 1;
        count = OPDI_MIN(end - pos, iter->sizes[0] - idx[0]);
        if (count == iter->sizes[0]) { rows = OPDI_MIN((end - pos) / count, iter->sizes[1] - idx[1]); }
        for (int k = 0; k < 3; k++) {
            at[k] = iter->op[order[k]].data;
            for (int dim = 0; dim < iter->ndim; dim++) { at[k] += idx[dim] * iter->op[order[k]].stride[dim]; }
        }
        if (scalar) { at[1] = (char *)&number; }
        opdi_rows_run(iter->row_op, rows, count, at, step);
        count *= rows;
        opdi_iter_step(iter, idx, count);
    }
}
static void opdi_iter_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_iter *const iter = (const opdi_iter *)ctx;
    if (opdi_has_vectors() && iter->row_op) { opdi_iter_number_rows(iter, begin, end); }
    else { opdi_iter_range(iter, begin, end); }
}

/* Sums, differences and products of 16-bit floats (float16, bfloat16), which are converted, computed and converted back
   without leaving registers.  The resulting bits are the same as with separate passes.  For bfloat16, OPDI_HALF_BF16 is
   added to the number of the operation. */
enum { OPDI_HALF_ADD = 1, OPDI_HALF_SUB, OPDI_HALF_MUL, OPDI_HALF_BF16 = 4 };
#if !defined(OPD_NO_OPERATORS)
OPDI_INTERNAL void opdi_f32_add(void *const *data, int64_t count, const opdi_params *params);
OPDI_INTERNAL void opdi_f32_sub(void *const *data, int64_t count, const opdi_params *params);
OPDI_INTERNAL void opdi_f32_mul(void *const *data, int64_t count, const opdi_params *params);
static int opdi_half_op(opdi_loop loop) {
    return loop == opdi_f32_add ? OPDI_HALF_ADD : loop == opdi_f32_sub ? OPDI_HALF_SUB
        : loop == opdi_f32_mul ? OPDI_HALF_MUL : 0;
}
#else
static int opdi_half_op(opdi_loop loop) {
    (void)loop;
    return 0;
}
#endif
#if defined(OPDI_VECTORS)
OPDI_AVX2 static int64_t opdi_half_loop_avx2_f32(int what, bool bf16, uint16_t *to, const uint16_t *x,
                                                 const uint16_t *y, int64_t count);
OPDI_AVX2 OPDI_INTERNAL double opdi_sum_halves_avx2_f32(const uint16_t *x, int64_t count, bool bf16);
#endif
#if defined(OPDI_X86)
OPDI_AVX512 static int64_t opdi_half_loop_avx512_f32(int what, bool bf16, uint16_t *to, const uint16_t *x,
                                                     const uint16_t *y, int64_t count);
OPDI_AVX512 OPDI_INTERNAL double opdi_sum_halves_avx512_f32(const uint16_t *x, int64_t count, bool bf16);
#endif
OPDI_LOOPS_BEGIN
#if defined(OPDI_VECTORS)
#include "../typed/f32_avx2.h"
#include "sums_of_halves.typed.h"
#endif
#if defined(OPDI_X86)
#include "../typed/f32_avx512.h"
#include "sums_of_halves.typed.h"
#endif
#include "../typed/end.h"
OPDI_LOOPS_END
/* Adds the sum of four rows of `count` floats to acc[count]: acc[j] += from[j] + from[step + j] + ...  Rows are `step`
   elements apart. */
OPDI_ALWAYS void opdi_sum_four_body(float *acc, const float *from, int64_t step, int64_t count) {
    const float *first = from, *second = from + step, *third = second + step, *fourth = third + step;
    int64_t i;
    OPDI_SIXTEENS(acc[j] += (first[j] + second[j]) + (third[j] + fourth[j]))
    for (; i < count; i++) { acc[i] += (first[i] + second[i]) + (third[i] + fourth[i]); }
}
#if defined(OPDI_X86)
OPDI_AVX2 static void opdi_sum_four_avx2(float *acc, const float *from, int64_t step, int64_t count) {
    opdi_sum_four_body(acc, from, step, count);
}
#endif
OPDI_INTERNAL void opdi_sum_four(float *acc, const float *from, int64_t step, int64_t count) {
#if defined(OPDI_X86)
    if (opdi_cpu_level() > 0) {
        opdi_sum_four_avx2(acc, from, step, count);
        return;
    }
#endif
    opdi_sum_four_body(acc, from, step, count);
}
/* Does the work of opdi_sum_four for rows of bfloat16 (if `bf16` is true) or float16, if there are vectors. */
OPDI_INTERNAL void opdi_sum_four_halves(float *acc, const uint16_t *from, int64_t step, int64_t count, bool bf16) {
#if defined(OPDI_VECTORS)
    OPDI_WIDEST(opdi_cpu_level(), opdi_sum_four_halves_avx512_f32, opdi_sum_four_halves_avx2_f32)(acc, from, step,
                                                                                                 count, bf16);
#else
    (void)acc;
    (void)from;
    (void)step;
    (void)count;
    (void)bf16;
#endif
}
/* Computes elements of a pass over 16-bit floats, beginning at `begin`, as many before `end` as fill whole vectors.
   `what` is OPDI_HALF_*.  Returns how many were computed. */
static int64_t opdi_half_loop(int what, void *const *data, int64_t begin, int64_t end) {
#if defined(OPDI_VECTORS)
    uint16_t *const to = (uint16_t *)data[0] + begin;
    const uint16_t *const x = (const uint16_t *)data[1] + begin, *const y = (const uint16_t *)data[2] + begin;
    const bool bf16 = what > OPDI_HALF_BF16;
    const int level = opdi_cpu_level(), plain = bf16 ? what - OPDI_HALF_BF16 : what;
    if (level == 0) { return 0; }
    return OPDI_WIDEST(level, opdi_half_loop_avx512_f32, opdi_half_loop_avx2_f32)(plain, bf16, to, x, y, end - begin);
#else
    (void)what;
    (void)data;
    (void)begin;
    (void)end;
    return 0;
#endif
}
/* Returns the number (OPDI_HALF_*) under which opdi_half_loop can run `loop` over these operands, or 0 if it cannot. */
static int opdi_half_loop_of(opd_tensor *const *ops, int nops, opdi_loop loop) {
    const int dtype = ops[0]->dtype;
    const int what = opdi_half_op(loop);
    if (nops != 3 || !what || (dtype != OPD_FLOAT16 && dtype != OPD_BFLOAT16)) { return 0; }
    for (int k = 1; k < 3; k++) { if (ops[k]->dtype != dtype || ops[k]->numel != ops[0]->numel) { return 0; } }
    return what + (dtype == OPD_BFLOAT16 ? OPDI_HALF_BF16 : 0);
}

/* A pass in which each operand is contiguous or a single number that is repeated, so that no index arithmetic is
   needed. */
typedef struct opdi_flat {
    char *places[OPDI_ITER_OPS];                  /* first element; for a single number, address of `number` */
    opdi_convert convert[OPDI_ITER_OPS];          /* converts to the type in which the loop computes (output: from it);
                                                     NULL: no conversion */
    int32_t size[OPDI_ITER_OPS];                  /* bytes from one element to the next; 0 for numbers */
    uint64_t number[OPDI_ITER_OPS];
    int nops, compute_size;
    bool whole;                                   /* no operand is converted or repeated */
    int half_loop;                                /* OPDI_HALF_* of the loop; 0: none */
    opdi_loop loop;
    const opdi_params *params;
} opdi_flat;
/* Fills block[count] with one element of 4 or 8 bytes. */
static void opdi_fill_block(void *block, const uint64_t *number, int64_t count, int size) {
    if (size == 8) {
        uint64_t *to = (uint64_t *)block, value = *number;
        for (int64_t i = 0; i < count; i++) { to[i] = value; }
    }
    else {
        uint32_t *to = (uint32_t *)block, value;
        memcpy(&value, number, 4);
        for (int64_t i = 0; i < count; i++) { to[i] = value; }
    }
}
/* Runs elements `begin` to `end` - 1 of a flat pass (`ctx`): block by block if an operand is converted or repeated,
   else with one call of the loop. */
static void opdi_flat_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_flat *flat = (const opdi_flat *)ctx;
    OPDI_ON_LINE uint64_t block[OPDI_ITER_OPS][OPDI_BLOCK];
    void *data[OPDI_ITER_OPS];
    int64_t count;
    if (flat->half_loop) { begin += opdi_half_loop(flat->half_loop, (void *const *)flat->places, begin, end); }
    for (int k = 1; k < flat->nops; k++) {
        if (flat->size[k]) { continue; }
        count = OPDI_MIN(end - begin, (int64_t)OPDI_BLOCK);
        data[k] = flat->places[k];
        if (count > 1) {
            opdi_fill_block(block[k], &flat->number[k], count, flat->compute_size);
            data[k] = block[k];
        }
    }
    for (int64_t pos = begin; pos < end; pos += count) {
        count = flat->whole ? end - pos : OPDI_MIN(end - pos, (int64_t)OPDI_BLOCK);
        for (int k = 1; k < flat->nops; k++) {
            char *at = flat->places[k] + pos * flat->size[k];
            if (flat->convert[k]) {
                flat->convert[k](block[k], at, count);
                data[k] = block[k];
            }
            else if (flat->size[k]) { data[k] = at; }
        }
        data[0] = flat->convert[0] ? (void *)block[0] : (void *)(flat->places[0] + pos * flat->size[0]);
        flat->loop(data, count, flat->params);
        if (flat->convert[0]) { flat->convert[0](flat->places[0] + pos * flat->size[0], block[0], count); }
    }
}
/* Fills *flat for a pass.  Returns false if an operand is strided, broadcast or overlapping, or needs rounding: then an
   opdi_iter must be used. */
static bool opdi_flat_init(opdi_flat *flat, opd_tensor *const *ops, int nops, opd_scalar_type common, int compute) {
    const opd_tensor *out = ops[0];
    flat->nops = nops;
    flat->whole = true;
    flat->compute_size = compute == OPDI_F32 ? 4 : 8;
    for (int k = 0; k < nops; k++) {
        const opd_tensor *tensor = ops[k];
        const int32_t dtype = tensor->dtype;
        flat->convert[k] = dtype == opdi_compute_dtype[compute] ? NULL : k ? opdi_load_of(compute, dtype)
            : opdi_store_of(compute, dtype);
        flat->places[k] = tensor->data;
        flat->size[k] = (int32_t)opd_dtype_size((opd_scalar_type)dtype);
        if (flat->convert[k]) { flat->whole = false; }
        else if (dtype != opdi_compute_dtype[compute]) { return false; }   /* opdi_iter reports the error */
        if (!(tensor->flags & OPDI_CONTIGUOUS) ||
            (k > 0 && (tensor->data != out->data || tensor->numel != out->numel) && opdi_same_memory(tensor, out))) {
            return false;
        }
        bool round = k > 0 && dtype != (int32_t)common && (int32_t)common != opdi_compute_dtype[compute];
        if (!round && tensor->numel == out->numel && (k == 0 || tensor->numel != 1 || !flat->convert[k])) { continue; }
        if (k == 0 || tensor->numel != 1 || !opdi_load_of(compute, dtype)) { return false; }
        opdi_load_of(compute, dtype)(&flat->number[k], tensor->data, 1);
        if (round) {                              /* rounds the number to the common dtype */
            uint64_t raw = 0;
            opdi_store_of(compute, common)(&raw, &flat->number[k], 1);
            opdi_load_of(compute, common)(&flat->number[k], &raw, 1);
        }
        flat->places[k] = (char *)&flat->number[k];
        flat->convert[k] = NULL;
        flat->size[k] = 0;
        flat->whole = flat->whole && out->numel == 1;
    }
    return true;
}
#define OPDI_MAX_TRANSPOSED 2                     /* the most operands of a pass that are transposed by tiles */
/* Transposes a tile of at most 64 x 64 elements: dst[j][i] = src[i][j], i < ni, j < nj.  Rows of dst are `ds` bytes
   apart, rows of src `ss` bytes.  With the buffer `table`, src is read and dst is written along cache lines.  The next
   tile begins `next` bytes after src.  Its rows are fetched into the cache, because the processor cannot foresee reads
   of so many rows.  For whole tiles, the loops have a constant length. */
#define OPDI_TILE_MOVE(type, ni_, nj_) do {                                                                 \
        for (i = 0; i < ni_; i++) {                                                                         \
            const type *sizes = (const type *)(const void *)(src + i * ss);                                 \
            opdi_tile_fetch(sizes, next, (nj_) * (int64_t)sizeof(type));                                    \
            for (j = 0; j < nj_; j++) { table[j][i] = sizes[j]; }                                           \
        }                                                                                                   \
        for (j = 0; j < nj_; j++) { memcpy(dst + j * ds, table[j], (size_t)(ni_) * sizeof(type)); }         \
    } while (0)
#define OPDI_TRANSPOSE(type)                                                                                \
    static void opdi_transpose_##type(char *dst, int64_t ds, const char *src, int64_t ss, int64_t ni, int64_t nj, \
                                      int64_t next) {                                                       \
        type table[OPDI_TILE][OPDI_TILE];                                                                   \
        int64_t i, j;                                                                                       \
        if (ni == OPDI_TILE && nj == OPDI_TILE) { OPDI_TILE_MOVE(type, OPDI_TILE, OPDI_TILE); }             \
        else { OPDI_TILE_MOVE(type, ni, nj); }                                                              \
    }
/* Fetches into the cache the `bytes` bytes that begin `next` bytes after `row`. */
OPDI_ALWAYS void opdi_tile_fetch(const void *row, int64_t next, int64_t bytes) {
    for (int64_t at = 0; at < bytes; at += 64) { OPDI_PREFETCH((uintptr_t)row + (uintptr_t)(next + at)); }
}
/* Transposes a tile of 4-byte elements in blocks of 4 x 4, which are held in registers. */
static void opdi_transpose_uint32_t(char *dst, int64_t ds, const char *src, int64_t ss, int64_t ni, int64_t nj,
                                    int64_t next) {
    uint32_t table[OPDI_TILE][OPDI_TILE];
    for (int64_t i = 0; i < ni; i += 4) {
        const char *row = src + i * ss;
        int64_t j = 0;
        for (; i + 4 <= ni && j + 4 <= nj; j += 4, row += 16) {
            for (int64_t k = 0; k < 4 && j % 16 == 0; k++) { opdi_tile_fetch(row + k * ss, next, 64); }
            opdi_transpose4(row, row + ss, row + 2 * ss, row + 3 * ss, &table[j][i], OPDI_TILE);
        }
        for (; j < nj; j++, row += 4) {
            for (int64_t k = 0; k < 4 && i + k < ni; k++) { memcpy(&table[j][i + k], row + k * ss, 4); }
        }
    }
    for (int64_t j = 0; j < nj; j++) { memcpy(dst + j * ds, table[j], (size_t)ni * 4); }
}
OPDI_TRANSPOSE(uint64_t)
OPDI_COLD_BEGIN
OPDI_TRANSPOSE(uint8_t)
OPDI_TRANSPOSE(uint16_t)
OPDI_COLD_END
OPDI_INTERNAL opdi_tile_fn opdi_transpose_of(int size) {
    if (size == 1) { return opdi_transpose_uint8_t; }
    if (size == 2) { return opdi_transpose_uint16_t; }
    return size == 4 ? opdi_transpose_uint32_t : opdi_transpose_uint64_t;
}
/* Returns the distance, in bytes, from the tile that begins at index i of dim 0 to the next tile of operand k: the next
   one in the band, or the first one of the next band. */
OPDI_INTERNAL int64_t opdi_tile_next(const opdi_iter *iter, int k, int64_t i) {
    const opdi_operand *const operand = &iter->op[k];
    return i + OPDI_TILE < iter->sizes[0] ? OPDI_TILE * operand->stride[0]
        : OPDI_TILE * (int64_t)operand->size - i * operand->stride[0];
}
/* Computes at[nops], the addresses at which the operands of band number `item` begin.  A band covers OPDI_TILE indices
   of dim `across` and all indices of dim 0, at one index of each other dim.  Returns its length in dim `across`. */
OPDI_INTERNAL int64_t opdi_band_at(const opdi_transpose *tr, int64_t item, char **at) {
    const opdi_iter *iter = tr->it;
    const int64_t bands = (iter->sizes[tr->across] + OPDI_TILE - 1) / OPDI_TILE, j = item % bands * OPDI_TILE;
    int64_t rest = item / bands;
    for (int k = 0; k < iter->nops; k++) { at[k] = iter->op[k].data + j * iter->op[k].stride[tr->across]; }
    for (int dim = 1; dim < iter->ndim; dim++) {
        if (dim == tr->across) { continue; }
        for (int k = 0; k < iter->nops; k++) { at[k] += rest % iter->sizes[dim] * iter->op[k].stride[dim]; }
        rest /= iter->sizes[dim];
    }
    return OPDI_MIN((int64_t)OPDI_TILE, iter->sizes[tr->across] - j);
}
static bool opdi_iter_transposed(const opdi_iter *iter, int k, int across) {
    return iter->op[k].stride[0] != iter->op[k].size && iter->op[k].stride[across] == iter->op[k].size;
}
/* Returns the dim, other than dim 0, along which one or two inputs are contiguous, if all other operands are contiguous
   along dim 0.  Tiles of these inputs are transposed before the loop reads them.  Returns 0 for any other pass, and for
   a pass that is too small for tiles. */
static int opdi_iter_across(const opdi_iter *iter) {
    int across = 0, turned = 0;
    if (iter->sizes[0] < 32 || iter->compute == OPDI_C128) { return 0; }
    for (int k = 0; k < iter->nops; k++) {
        const opdi_operand *operand = &iter->op[k];
        if (operand->convert || operand->round || operand->stride[0] == 0) { return 0; }
        if (operand->stride[0] == operand->size) { continue; }
        for (int dim = 1; dim < iter->ndim && k >= iter->nout && !across; dim++) {
            if (operand->stride[dim] == operand->size && iter->sizes[dim] >= 32) { across = dim; }
        }
        if (!across || !opdi_iter_transposed(iter, k, across) || turned++ == OPDI_MAX_TRANSPOSED) { return 0; }
    }
    return across;
}
/* Runs the loop over bands [begin, end) (see opdi_band_at), tile by tile.  Tiles of inputs that are contiguous along
   tr->across are transposed first. */
static void opdi_iter_bands(void *ctx, int64_t begin, int64_t end) {
    const opdi_transpose *tr = (const opdi_transpose *)ctx;
    const opdi_iter *iter = tr->it;
    OPDI_ON_LINE uint64_t tiles[OPDI_MAX_TRANSPOSED][OPDI_TILE * OPDI_TILE];
    char *at[OPDI_ITER_OPS];
    for (int64_t item = begin; item < end; item++) {
        const int64_t high = opdi_band_at(tr, item, at);
        for (int64_t i = 0; i < iter->sizes[0]; i += OPDI_TILE) {
            const int64_t count = OPDI_MIN((int64_t)OPDI_TILE, iter->sizes[0] - i);
            int turned = 0;
            char *from[OPDI_ITER_OPS];
            int64_t step[OPDI_ITER_OPS];
            for (int k = 0; k < iter->nops; k++) {
                const opdi_operand *operand = &iter->op[k];
                from[k] = at[k] + i * operand->stride[0];
                step[k] = operand->stride[tr->across];
                if (!opdi_iter_transposed(iter, k, tr->across)) { continue; }
                char *const tile = (char *)tiles[turned++];
                step[k] = OPDI_TILE * operand->size;
                opdi_transpose_of(operand->size)(tile, step[k], from[k], operand->stride[0], count, high,
                                                 opdi_tile_next(iter, k, i));
                from[k] = tile;
            }
            for (int64_t j = 0; j < high; j++) {
                void *data[OPDI_ITER_OPS];
                for (int k = 0; k < iter->nops; k++) { data[k] = from[k] + j * step[k]; }
                iter->loop(data, count, iter->params);
            }
        }
    }
}
OPDI_INTERNAL int64_t opdi_bands_of(const opdi_iter *iter, int across) {
    return iter->numel / iter->sizes[across] / iter->sizes[0] * ((iter->sizes[across] + OPDI_TILE - 1) / OPDI_TILE);
}
OPDI_INTERNAL int64_t opdi_bands_grain(const opdi_iter *iter) {
    return OPDI_MAX((int64_t)1, OPDI_GRAIN / (OPDI_TILE * iter->sizes[0]));
}
OPDI_NOINLINE OPDI_INTERNAL int opdi_iter_run(opd_tensor *const *ops, int nops, int nout, opd_scalar_type common,
                                              int compute, opdi_loop loop, const opdi_params *params) {
    opdi_iter iter;
    if (opdi_iter_init(&iter, ops, nops, nout, common, compute) != 0) { return -1; }
    iter.loop = loop;
    iter.params = params;
    const int across = opdi_iter_across(&iter);
    if (opdi_stack_short(NULL, across ? OPDI_STACK_FOR((OPDI_MAX_TRANSPOSED + 1) * OPDI_TILE_BYTES)
                         : OPDI_STACK_BLOCKS)) { return -1; }
    if (across) {
        opdi_transpose tr;
        tr.it = &iter;
        tr.across = across;
        opdi_parallel_for(opdi_bands_of(&iter, across), opdi_bands_grain(&iter), opdi_iter_bands, &tr);
    }
    else {
        opdi_iter_find_numbers(&iter);
        if (iter.numel <= OPDI_GRAIN) { opdi_iter_part(&iter, 0, iter.numel); }
        else { opdi_parallel_for(iter.numel, OPDI_GRAIN, opdi_iter_part, &iter); }
    }
    return 0;
}
OPDI_NOINLINE OPDI_INTERNAL int opdi_run_general(opd_tensor *const *ops, int nops, int nout, opd_scalar_type common,
                                                 int compute, opdi_loop loop, const opdi_params *params) {
    opdi_flat flat;
    if (nout != 1 || !opdi_flat_init(&flat, ops, nops, common, compute)) {
        return opdi_iter_run(ops, nops, nout, common, compute, loop, params);
    }
    flat.loop = loop;
    flat.params = params;
    flat.half_loop = opdi_half_loop_of(ops, nops, loop);
    if (opdi_stack_short(NULL, OPDI_STACK_BLOCKS)) { return -1; }
    if (ops[0]->numel <= OPDI_GRAIN) { opdi_flat_part(&flat, 0, ops[0]->numel); }
    else { opdi_parallel_for(ops[0]->numel, OPDI_GRAIN, opdi_flat_part, &flat); }
    return 0;
}
