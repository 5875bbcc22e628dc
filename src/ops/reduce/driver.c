#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:reduce    sums, products and variances over dims
//----------------------------------------------------------------------------------------------------------------------

//== the dims of a reduction ===========================================================================================

OPDI_COLD_BEGIN

/* Sets bit i of *mask for each dim i in the list, or all bits if the list is empty (at::dim_list_to_bitset).  Returns
   0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_reduce_mask(opd_ints dims, int ndim, uint64_t *mask) {
    *mask = dims.n ? 0 : OPDI_ALL_DIMS;
    for (int64_t i = 0; i < dims.n; i++) {
        const int dim = opdi_dim_of(dims.data[i], ndim);
        if (dim < 0) { return -1; }
        if (*mask >> dim & 1) { return opdi_dim_twice_fail(dim); }
        *mask |= (uint64_t)1 << dim;
    }
    return 0;
}
/* Sets sizes[] to the sizes of tensor without the dims in mask or, if `keep` is true, with size 1 for these dims.
   Returns the number of sizes. */
OPDI_INTERNAL int opdi_reduce_sizes(const opd_tensor *tensor, uint64_t mask, bool keep, int64_t *sizes) {
    int count = 0;
    for (int dim = 0; dim < tensor->ndim; dim++) {
        if (!(mask >> dim & 1)) { sizes[count++] = opdi_sizes(tensor)[dim]; }
        else if (keep) { sizes[count++] = 1; }
    }
    return count;
}

//== the reduction driver ==============================================================================================
//
//  The input is viewed as `outer` rows of `count` elements, one row for each element of the result.  A fold combines
//  the elements of a row with a state, piece by piece.  A piece is contiguous, in the type in which the fold computes.
//
//  If there are only a few long rows, they are cut into chunks, whose states are joined in order.  The chunks depend
//  only on the sizes, so the number of threads does not change a result.

/* Adds a dim of size `size` to reduce->it; strides[] has the strides of the operands in bytes.  If the strides allow
   it, merges the dim with the dim that was added last, unless the latter comes before dim number `first`. */
static void opdi_reduce_add(opdi_reduce *reduce, int first, int64_t size, const int64_t *strides) {
    opdi_iter *iter = &reduce->it;
    int last = iter->ndim - 1;
    bool join = last >= first;
    if (size == 1) { return; }
    for (int k = 0; k < iter->nops && join; k++) {
        join = (int64_t)((uint64_t)iter->op[k].stride[last] * (uint64_t)iter->sizes[last]) == strides[k];
    }
    if (join) {
        iter->sizes[last] *= size;
        return;
    }
    iter->sizes[iter->ndim] = size;
    for (int k = 0; k < iter->nops; k++) { iter->op[k].stride[iter->ndim] = strides[k]; }
    iter->ndim++;
}
/* Sets perm[] to the dims in mask (if `reduced` is true) or to the other dims, in the order in which they are walked,
   innermost first.  Reduced dims are sorted by stride unless `ordered` is true.  Returns the number of dims. */
static int opdi_reduce_order(const opd_tensor *tensor, uint64_t mask, bool reduced, bool ordered, int *perm) {
    int i, count = 0;
    for (int dim = tensor->ndim - 1; dim >= 0; dim--) {
        if ((mask >> dim & 1) != reduced) { continue; }
        for (i = count++; i > 0 && reduced && !ordered && opdi_strides(tensor)[perm[i - 1]] > opdi_strides(tensor)[dim];
             i--) {
            perm[i] = perm[i - 1];
        }
        perm[i] = dim;
    }
    return count;
}
/* Fills in *reduce for a reduction of tensor over the dims in mask.  outs[nouts] are the results, without the reduced
   dims or, if `keep` is true, with size 1 for these dims.  `compute` is the type in which the fold computes (OPDI_F32,
   ...).  If `ordered` is true, the elements of a row are folded in the order of their indices. */
static void opdi_reduce_init(opdi_reduce *reduce, opd_tensor *tensor, uint64_t mask, bool keep, opd_tensor *const *outs,
                             int nouts, int compute, bool ordered) {
    opdi_iter *iter = &reduce->it;
    opd_tensor *ops[3];
    int64_t strides[3];
    int perm[OPD_MAX_DIMS], at[OPD_MAX_DIMS], count = 0;
    ops[0] = tensor;
    for (int k = 0; k < nouts; k++) { ops[k + 1] = outs[k]; }
    iter->nops = 1 + nouts;
    iter->nout = 0;
    iter->numel = tensor->numel;
    iter->ndim = 0;
    iter->compute = (int8_t)compute;
    iter->common = opdi_compute_dtype[compute];
    iter->buffered = false;
    for (int dim = 0; dim < tensor->ndim; dim++) { at[dim] = (mask >> dim & 1) && !keep ? -1 : count++; }
    for (int group = 0; group < 2; group++) {
        const int first = iter->ndim, m = opdi_reduce_order(tensor, mask, group == 0, ordered, perm);
        for (int i = 0; i < m; i++) {
            int dim = perm[i];
            strides[0] = opdi_broadcast_bytes(tensor, opdi_sizes(tensor), tensor->ndim, dim);
            for (int k = 1; k <= nouts; k++) {
                strides[k] = group == 0 ? 0
                    : opdi_strides(ops[k])[at[dim]] * (int64_t)opd_dtype_size((opd_scalar_type)ops[k]->dtype);
            }
            opdi_reduce_add(reduce, first, opdi_sizes(tensor)[dim], strides);
        }
        if (group == 0 && iter->ndim == 0) {
            iter->sizes[0] = 1;
            iter->ndim = 1;
            for (int k = 0; k <= nouts; k++) { iter->op[k].stride[0] = 0; }
        }
        if (group == 0) { reduce->nred = iter->ndim; }
    }
    reduce->count = reduce->outer = 1;
    for (int i = 0; i < iter->ndim; i++) { *(i < reduce->nred ? &reduce->count : &reduce->outer) *= iter->sizes[i]; }
    for (int k = 0; k < iter->nops; k++) {
        opdi_operand *operand = &iter->op[k];
        operand->data = ops[k]->data;
        operand->size = (int32_t)opd_dtype_size((opd_scalar_type)ops[k]->dtype);
        operand->convert = ops[k]->dtype != opdi_compute_dtype[compute];
        operand->round = false;
        operand->load = opdi_load_of(compute, ops[k]->dtype);
        operand->store = opdi_store_of(compute, ops[k]->dtype);
        operand->walk = (int8_t)(k ? OPDI_WALK_STRIDED : opdi_iter_walk(iter, operand));
    }
    reduce->nouts = nouts;
    reduce->chunks = 1;
    reduce->chunk = reduce->count;
    reduce->states = NULL;
    reduce->tiles = 0;
}

OPDI_COLD_END
OPDI_INTERNAL void opdi_fold_sum_f32(opdi_folded *folded, const void *x, int64_t count, int64_t at,
                                     const opdi_reduce *reduce);
/* Folds `count` elements from element number `at` on into *folded, if they are contiguous, the fold is a sum, and their
   dtype has a special loop: 16-bit floats or complex64.  Otherwise returns false. */
static bool opdi_reduce_contiguous(const opdi_reduce *reduce, int64_t at, int64_t count, opdi_folded *folded) {
    if (reduce->it.compute == OPDI_C128 && reduce->it.op[0].load == opdi_cvt_c128_c64 && count >= 64 &&
        reduce->it.op[0].walk == OPDI_WALK_LINEAR && reduce->fold->step[OPDI_C128] == opdi_fold_sum_c128) {
        double imaginary;
        folded->f += opdi_sum_c64((const float *)(const void *)reduce->it.op[0].data + 2 * at, count, &imaginary);
        folded->g += imaginary;
        return true;
    }
#if defined(OPDI_VECTORS)
    const opdi_operand *const operand = &reduce->it.op[0];
    const bool bf16 = operand->load == opdi_load_of(OPDI_F32, OPD_BFLOAT16);
    if (operand->walk != OPDI_WALK_LINEAR || reduce->fold->step[OPDI_F32] != opdi_fold_sum_f32 || count < 64 ||
        reduce->it.compute != OPDI_F32 || (!bf16 && operand->load != opdi_cvt_f32_f16) || opdi_cpu_level() == 0) {
        return false;
    }
    folded->f += OPDI_WIDEST(opdi_cpu_level(), opdi_sum_halves_avx512_f32, opdi_sum_halves_avx2_f32)
        ((const uint16_t *)(const void *)operand->data + at, count, bf16);
    return true;
#else
    (void)reduce;
    (void)at;
    (void)count;
    (void)folded;
    return false;
#endif
}
/* Folds elements [begin, end) of row number `row` into *folded. */
static void opdi_reduce_part(const opdi_reduce *reduce, int64_t row, int64_t begin, int64_t end, opdi_folded *folded) {
    const opdi_iter *iter = &reduce->it;
    const opdi_operand *operand = &iter->op[0];
    const bool direct = !operand->convert && (operand->stride[0] == operand->size || operand->walk == OPDI_WALK_LINEAR);
    OPDI_ON_LINE uint64_t block[OPDI_BLOCK];
    int64_t idx[OPD_MAX_DIMS], rows, rest = row * reduce->count + begin;
    if (begin >= end || opdi_reduce_contiguous(reduce, rest, end - begin, folded)) { return; }
    for (int dim = 0; dim < iter->ndim; dim++) {
        idx[dim] = rest % iter->sizes[dim];
        rest /= iter->sizes[dim];
    }
    for (int64_t at = begin; at < end; at += rows) {
        const void *x;
        if (direct) {
            const char *here = operand->data;
            rows = OPDI_MIN(end - at, iter->sizes[0] - idx[0]);
            for (int dim = 0; dim < iter->ndim; dim++) { here += idx[dim] * operand->stride[dim]; }
            x = here;
        } else {
            rows = OPDI_MIN(end - at, opdi_iter_most(iter));
            x = opdi_iter_load(iter, operand, idx, row * reduce->count + at, rows, (char *)block);
        }
        reduce->fold->step[iter->compute](folded, x, rows, at, reduce);
        opdi_iter_step(iter, idx, rows);
    }
}
/* Writes the results of the row whose output coordinates are idx: the fields of *folded that reduce->fold names. */
static void opdi_reduce_store(const opdi_reduce *reduce, const int64_t *idx, opdi_folded *folded) {
    if (reduce->fold->finish) { reduce->fold->finish(folded, reduce); }
    for (int k = 0; k < reduce->nouts; k++) {
        const opdi_operand *operand = &reduce->it.op[k + 1];
        const int dtype = reduce->it.common;
        opdi_fold_out out = reduce->fold->out[k];
        char *at = operand->data;
        for (int dim = reduce->nred; dim < reduce->it.ndim; dim++) { at += idx[dim] * operand->stride[dim]; }
        if (out == OPDI_OUT_F_OR_I) { out = dtype == OPD_INT64 ? OPDI_OUT_I : OPDI_OUT_F; }
        if (out == OPDI_OUT_G_OR_N) { out = dtype == OPD_INT64 ? OPDI_OUT_N : OPDI_OUT_G; }
        if (out == OPDI_OUT_N) { operand->store(at, &folded->n, 1); }
        else if (out == OPDI_OUT_INDEX) { memcpy(at, &folded->n, sizeof folded->n); }
        else if (out == OPDI_OUT_I && operand->size == 8) { memcpy(at, &folded->i, sizeof folded->i); }
        else if (operand->load == opdi_cvt_4 && out == OPDI_OUT_F) {
            float v = (float)folded->f;
            memcpy(at, &v, sizeof v);
        }
        else if (out == OPDI_OUT_I) { reduce->it.op[k + 1].store(at, &folded->i, 1); }
        else { reduce->it.op[k + 1].store(at, out == OPDI_OUT_F ? &folded->f : &folded->g, 1); }
    }
}
/* If the results are sums in float that are stored side by side, writes the results of `wide` rows, from the output
   coordinates idx on, and returns true.  Otherwise returns false. */
static bool opdi_reduce_stored(const opdi_reduce *reduce, const int64_t *idx, opdi_folded *foldeds, int64_t wide) {
    const opdi_operand *operand = &reduce->it.op[1];
    const bool floats = operand->load == opdi_cvt_4;
    char *at = operand->data;
    if (reduce->chunks > 1 || reduce->nouts != 1 || reduce->it.compute != OPDI_F32 ||
        (reduce->fold->out[0] != OPDI_OUT_F_OR_I && reduce->fold->out[0] != OPDI_OUT_F) ||
        reduce->it.ndim <= reduce->nred || operand->stride[reduce->nred] != operand->size ||
        (!floats && !opdi_has_vectors())) {
        return false;
    }
    for (int dim = reduce->nred; dim < reduce->it.ndim; dim++) { at += idx[dim] * operand->stride[dim]; }
    for (int64_t j = 0; j < wide && reduce->fold->finish; j++) { reduce->fold->finish(&foldeds[j], reduce); }
    if (floats) {
        for (int64_t j = 0; j < wide; j++) { ((float *)(void *)at)[j] = (float)foldeds[j].f; }
        return true;
    }
    for (int64_t from = 0, count; from < wide; from += count) {
        double block[64];
        count = OPDI_MIN(wide - from, (int64_t)64);
        for (int64_t j = 0; j < count; j++) { block[j] = foldeds[from + j].f; }
        operand->store(at + from * operand->size, block, count);
    }
    return true;
}
/* Sets idx to the coordinates of the first element of row number `row`, so the coordinates in reduced dims are 0.
   opdi_reduce_next moves idx to the next row. */
static void opdi_reduce_index(const opdi_reduce *reduce, int64_t row, int64_t *idx) {
    int dim;
    for (dim = 0; dim < reduce->nred; dim++) { idx[dim] = 0; }
    for (; dim < reduce->it.ndim; dim++) {
        idx[dim] = row % reduce->it.sizes[dim];
        row /= reduce->it.sizes[dim];
    }
}
static void opdi_reduce_next(const opdi_reduce *reduce, int64_t *idx) {
    for (int dim = reduce->nred; dim < reduce->it.ndim; dim++) {
        if (++idx[dim] < reduce->it.sizes[dim]) { return; }
        idx[dim] = 0;
    }
}
/* Folds `rows` neighbouring rows x [rows, reduce->count], at most 16, into foldeds. */
static void opdi_reduce_each(const opdi_reduce *reduce, const char *x, int64_t rows, opdi_folded *foldeds) {
    const opdi_fold_step step = reduce->fold->step[reduce->it.compute];
    const size_t bytes = (size_t)reduce->count * opd_dtype_size((opd_scalar_type)reduce->it.common);
    for (int64_t k = 0; k < rows; k++) { foldeds[k] = reduce->fold->init; }
#if defined(OPDI_X86)
    if (step == opdi_fold_sum_f32 && reduce->count >= 16 && opdi_cpu_level() > 0) {
        double sums[16];
        opdi_sum_rows_avx2((const float *)(const void *)x, rows, reduce->count, sums);
        for (int64_t k = 0; k < rows; k++) { foldeds[k].f += sums[k]; }
        return;
    }
#endif
    for (int64_t k = 0; k < rows; k++) { step(&foldeds[k], x + (size_t)k * bytes, reduce->count, 0, reduce); }
}
/* Reduces items [begin, end) of ctx, an opdi_reduce.  An item is a chunk of a row.  Several short rows are loaded at a
   time. */
static void opdi_reduce_rows(void *ctx, int64_t begin, int64_t end) {
    const opdi_reduce *reduce = (const opdi_reduce *)ctx;
    const opdi_operand *operand = &reduce->it.op[0];
    OPDI_ON_LINE uint64_t block[OPDI_BLOCK];
    int64_t idx[OPD_MAX_DIMS], rows;
    if (reduce->chunks > 1) {
        for (int64_t k = begin; k < end; k++) {
            const int64_t from = k % reduce->chunks * reduce->chunk;
            reduce->states[k] = reduce->fold->init;
            opdi_reduce_part(reduce, k / reduce->chunks, from, OPDI_MIN(from + reduce->chunk, reduce->count),
                             &reduce->states[k]);
        }
        return;
    }
    opdi_reduce_index(reduce, begin, idx);
    for (int64_t row = begin; row < end; row += rows) {
        const char *x = NULL;
        opdi_folded foldeds[16];
        rows = 1;
        if (!operand->convert && operand->walk == OPDI_WALK_LINEAR) {
            x = operand->data + row * reduce->count * operand->size;
            rows = OPDI_MIN(end - row, (int64_t)16);
        }
        else if (reduce->count > 0 && reduce->count <= OPDI_ROW) {
            rows = OPDI_MIN(OPDI_MIN(end - row, (int64_t)16), opdi_iter_most(&reduce->it) / reduce->count);
            x = (const char *)opdi_iter_load(&reduce->it, operand, idx, row * reduce->count, rows * reduce->count,
                                             (char *)block);
        }
        if (rows > 1 && reduce->it.ndim > reduce->nred) {  /* rows whose results are neighbours */
            rows = OPDI_MIN(rows, reduce->it.sizes[reduce->nred] - idx[reduce->nred]);
        }
        if (x) { opdi_reduce_each(reduce, x, rows, foldeds); }
        else {
            foldeds[0] = reduce->fold->init;
            opdi_reduce_part(reduce, row, 0, reduce->count, &foldeds[0]);
        }
        if (opdi_reduce_stored(reduce, idx, foldeds, rows)) {
            idx[reduce->nred] += rows - 1;        /* the coordinates of the last of these rows */
            opdi_reduce_next(reduce, idx);
            continue;
        }
        for (int64_t k = 0; k < rows; k++) {
            opdi_reduce_store(reduce, idx, &foldeds[k]);
            opdi_reduce_next(reduce, idx);
        }
    }
}
#define OPDI_COLUMNS_WIDE 1024                    /* rows that a column loop folds together */
#define OPDI_COLUMN_ROWS 64                       /* elements of a row that are combined before the state of the row
                                                     changes */
#define OPDI_COLUMN_LINE 32                       /* elements of each row that are folded at a time if there is no
                                                     column loop */
/* Moves to the next element of rows that lie side by side in memory.  `base` is the address of the current element of
   the first row; red[] has the coordinates of this element in the reduced dims.  Updates red[] and returns the new
   address. */
static const char *opdi_reduce_down(const opdi_reduce *reduce, const char *base, int64_t *red) {
    for (int dim = 0; dim < reduce->nred; dim++) {
        base += reduce->it.op[0].stride[dim];
        if (++red[dim] < reduce->it.sizes[dim]) { break; }
        base -= red[dim] * reduce->it.op[0].stride[dim];
        red[dim] = 0;
    }
    return base;
}
/* Returns true if the elements are 16-bit floats that opdi_sum_four_halves can read. */
static bool opdi_reduce_halves(const opdi_operand *operand) {
    return opdi_has_vectors() && operand->size == 2 && operand->stride[0] % 2 == 0 &&
        (operand->load == opdi_cvt_f32_f16 || operand->load == opdi_load_of(OPDI_F32, OPD_BFLOAT16));
}
/* Returns true if the fold is a sum of floats that opdi_reduce_four can read in place. */
static bool opdi_reduce_sums(const opdi_reduce *reduce) {
    const opdi_operand *const operand = &reduce->it.op[0];
    return reduce->it.compute == OPDI_F32 && reduce->nred == 1 && reduce->fold->column[OPDI_F32] == opdi_f32_add &&
        (operand->convert ? opdi_reduce_halves(operand) : operand->stride[0] % 4 == 0);
}
/* Adds four elements of each of `wide` rows to acc[wide].  Elements number k + 1 of all rows are `step` bytes after the
   elements number k; `base` is the address of the first one. */
static void opdi_reduce_four(const opdi_reduce *reduce, void *acc, const char *base, int64_t step, int64_t wide) {
    const void *const from = base;
    if (!opdi_has_vectors() || !reduce->it.op[0].convert) {
        opdi_sum_four((float *)acc, (const float *)from, step / 4, wide);
        return;
    }
    opdi_sum_four_halves((float *)acc, (const uint16_t *)from, step / 2, wide,
                         reduce->it.op[0].load != opdi_cvt_f32_f16);
}
/* Folds acc[wide], which has the combined elements of `wide` rows, into the states of the rows, foldeds[wide]. */
static void opdi_reduce_columns_end(const opdi_reduce *reduce, const void *acc, int64_t wide, opdi_folded *foldeds) {
    const opdi_fold_step step = reduce->fold->step[reduce->it.compute];
    const size_t es = opd_dtype_size((opd_scalar_type)reduce->it.common);
    if (step == opdi_fold_sum_f32) {
        for (int64_t j = 0; j < wide; j++) { foldeds[j].f += (double)((const float *)acc)[j]; }
        return;
    }
    for (int64_t j = 0; j < wide; j++) { step(&foldeds[j], (const char *)acc + (size_t)j * es, 1, 0, reduce); }
}
/* Folds `count` elements of each of `wide` rows into foldeds.  In memory, the elements number k + 1 of all rows must
   follow the elements number k.  `group` elements of each row, a power of two, are folded in parallel.  In the end, the
   second half of the group is combined with the first half, until one element of each row is left. */
static void opdi_reduce_grouped(const opdi_reduce *reduce, const char *base, int64_t count, int64_t group, int64_t wide,
                                opdi_folded *foldeds) {
    const opdi_operand *operand = &reduce->it.op[0];
    const opdi_loop loop = reduce->fold->column[reduce->it.compute];
    const size_t es = opd_dtype_size((opd_scalar_type)reduce->it.common);
    OPDI_ON_LINE uint64_t acc[OPDI_COLUMNS_WIDE];
    OPDI_ON_LINE uint64_t row[OPDI_COLUMNS_WIDE];
    void *data[3];
    data[0] = data[1] = acc;
    int64_t k = 0;
    const bool sums = opdi_reduce_sums(reduce) && 4 * group <= count;
    if (sums) {
        memset(acc, 0, (size_t)(group * wide) * es);
    } else {
        operand->load(acc, base, group * wide);
        k = group;
    }
    for (; sums && k + 4 * group <= count; k += 4 * group) {
        opdi_reduce_four(reduce, acc, base + k * wide * operand->size, group * wide * operand->size, group * wide);
    }
    for (; k < count; k += group) {
        const int64_t width = OPDI_MIN(group, count - k) * wide;
        data[2] = (void *)(uintptr_t)(base + k * wide * operand->size);
        if (operand->convert) {
            operand->load(row, base + k * wide * operand->size, width);
            data[2] = row;
        }
        loop(data, width, &opdi_no_params);
    }
    for (int64_t half = group / 2; half > 0; half /= 2) {
        data[2] = (char *)acc + (size_t)(half * wide) * es;
        loop(data, half * wide, &opdi_no_params);
    }
    opdi_reduce_columns_end(reduce, acc, wide, foldeds);
}
/* Folds elements [from, to) of `wide` rows, which lie side by side in memory, into foldeds, by a column loop.  The loop
   combines OPDI_COLUMN_ROWS elements of each row before they change the state of the row. */
static void opdi_reduce_looped(const opdi_reduce *reduce, const char *base, int64_t *red, int64_t from, int64_t to,
                               int64_t wide, opdi_folded *foldeds) {
    const opdi_operand *operand = &reduce->it.op[0];
    const opdi_loop loop = reduce->fold->column[reduce->it.compute];
    const bool sums = opdi_reduce_sums(reduce);
    OPDI_ON_LINE uint64_t acc[OPDI_COLUMNS_WIDE];
    OPDI_ON_LINE uint64_t row[OPDI_COLUMNS_WIDE];
    int64_t group = 1;
    while (2 * group * wide <= OPDI_COLUMNS_WIDE && 4 * group <= to - from) { group *= 2; }
    const bool grouped = group > 1 && reduce->nred == 1 && operand->stride[0] == wide * operand->size;
    while (grouped && to - from >= group) {
        const int64_t count = OPDI_MIN(to - from, OPDI_COLUMN_ROWS * group);
        opdi_reduce_grouped(reduce, base, count, group, wide, foldeds);
        base += count * operand->stride[0];
        red[0] += count;
        from += count;
    }
    for (int64_t k = from; k < to; k++, base = opdi_reduce_down(reduce, base, red)) {
        int64_t inner = (k - from) % OPDI_COLUMN_ROWS;
        void *data[3];
        data[0] = data[1] = acc;
        data[2] = (void *)(uintptr_t)base;
        if (sums && inner + 3 < OPDI_COLUMN_ROWS && k + 3 < to) {
            if (inner == 0) { memset(acc, 0, (size_t)wide * sizeof(float)); }
            opdi_reduce_four(reduce, acc, base, operand->stride[0], wide);
            base += 3 * operand->stride[0];
            red[0] += 3;
            inner += 3;
            k += 3;
        } else if (inner == 0) {
            operand->load(acc, base, wide);
        } else {
            if (operand->convert) {
                operand->load(row, base, wide);
                data[2] = row;
            }
            loop(data, wide, &opdi_no_params);
        }
        if (inner == OPDI_COLUMN_ROWS - 1 || k + 1 == to) { opdi_reduce_columns_end(reduce, acc, wide, foldeds); }
    }
}
/* Does the work of opdi_reduce_looped for folds that have no column loop.  Copies OPDI_COLUMN_LINE elements of each row
   at a time; transposes them unless the fold has a side function. */
static void opdi_reduce_transposed(const opdi_reduce *reduce, const char *base, int64_t *red, int64_t from, int64_t to,
                                   int64_t wide, opdi_folded *foldeds) {
    const opdi_operand *operand = &reduce->it.op[0];
    const size_t es = opd_dtype_size((opd_scalar_type)reduce->it.common);
    opdi_side_fn *const side = reduce->it.compute < 2 ? reduce->fold->side[reduce->it.compute] : NULL;
    uint64_t lines[OPDI_COLUMNS_TRANSPOSED * OPDI_COLUMN_LINE], row[OPDI_COLUMNS_TRANSPOSED];
    for (int64_t k = from; k < to; k++, base = opdi_reduce_down(reduce, base, red)) {
        const int64_t inner = (k - from) % OPDI_COLUMN_LINE;
        if (side) {
            operand->load((char *)lines + (size_t)inner * es * OPDI_COLUMNS_TRANSPOSED, base, wide);
            if (inner == OPDI_COLUMN_LINE - 1 || k + 1 == to) { side(foldeds, lines, wide, inner + 1); }
            continue;
        }
        if (operand->convert) { operand->load(row, base, wide); }
        opdi_scatter((char *)lines + (size_t)inner * es, (int64_t)es * OPDI_COLUMN_LINE,
                     operand->convert ? (const void *)row : base, (int64_t)es, wide, (int)es);
        if (inner != OPDI_COLUMN_LINE - 1 && k + 1 != to) { continue; }
        for (int64_t j = 0; j < wide; j++) {
            reduce->fold->step[reduce->it.compute](&foldeds[j], (char *)lines + (size_t)(j * OPDI_COLUMN_LINE) * es,
                                                   inner + 1, k - inner, reduce);
        }
    }
}
/* Reduces items [begin, end) of ctx, an opdi_reduce, whose rows lie side by side in memory.  An item is a chunk of the
   elements of a tile of such rows. */
static void opdi_reduce_columns(void *ctx, int64_t begin, int64_t end) {
    const opdi_reduce *reduce = (const opdi_reduce *)ctx;
    const opdi_iter *iter = &reduce->it;
    const opdi_operand *operand = &iter->op[0];
    const int64_t width = iter->sizes[reduce->nred];
    opdi_folded foldeds[OPDI_COLUMNS_WIDE];        /* takes 32 KiB */
    for (int64_t item = begin; item < end; item++) {
        const int64_t chunk = item % reduce->chunks, col = item / reduce->chunks % reduce->tiles * reduce->tile,
            from = chunk * reduce->chunk;
        const int64_t first = item / reduce->chunks / reduce->tiles * width + col,
            to = OPDI_MIN(from + reduce->chunk, reduce->count);
        const int64_t wide = OPDI_MIN(width - col, reduce->tile);
        int64_t idx[OPD_MAX_DIMS], red[OPD_MAX_DIMS], rest = from;
        const char *base = operand->data;
        opdi_reduce_index(reduce, first, idx);
        for (int dim = reduce->nred; dim < iter->ndim; dim++) { base += idx[dim] * operand->stride[dim]; }
        for (int dim = 0; dim < reduce->nred; dim++) {
            red[dim] = rest % iter->sizes[dim];
            rest /= iter->sizes[dim];
            base += red[dim] * operand->stride[dim];
        }
        for (int64_t j = 0; j < wide; j++) { foldeds[j] = reduce->fold->init; }
        (reduce->fold->column[iter->compute] ? opdi_reduce_looped : opdi_reduce_transposed)(reduce, base, red, from, to,
                                                                                         wide, foldeds);
        if (opdi_reduce_stored(reduce, idx, foldeds, wide)) { continue; }
        for (int64_t j = 0; j < wide; j++) {
            if (reduce->chunks > 1) {
                reduce->states[(first + j) * reduce->chunks + chunk] = foldeds[j];
                continue;
            }
            opdi_reduce_store(reduce, idx, &foldeds[j]);
            opdi_reduce_next(reduce, idx);
        }
    }
}
static void opdi_reduce_join(void *ctx, int64_t begin, int64_t end) {
    const opdi_reduce *reduce = (const opdi_reduce *)ctx;
    int64_t idx[OPD_MAX_DIMS];
    opdi_reduce_index(reduce, begin, idx);
    for (int64_t row = begin; row < end; row++) {
        opdi_folded *folded = reduce->states + row * reduce->chunks;
        for (int64_t k = 1; k < reduce->chunks; k++) { reduce->fold->join(folded, folded + k, reduce); }
        opdi_reduce_store(reduce, idx, folded);
        opdi_reduce_next(reduce, idx);
    }
}
#define OPDI_REDUCE_CHUNK 131072
/* Runs a reduction that opdi_reduce_init has prepared.  Returns 0, or -1 if memory runs out. */
static int opdi_reduce_run(opdi_reduce *reduce) {
    const opdi_iter *iter = &reduce->it;
    int64_t items = reduce->outer, work = reduce->count;
    size_t bytes = 0;
    if (reduce->outer == 0) { return 0; }
    const bool looped = reduce->fold->column[iter->compute] != NULL;
    if (iter->ndim > reduce->nred && reduce->count > 1 && (looped || iter->compute != OPDI_C128) &&
        iter->op[0].stride[0] != iter->op[0].size && iter->op[0].stride[reduce->nred] == iter->op[0].size &&
        iter->sizes[reduce->nred] >= 8) {
        reduce->tile = OPDI_MIN(iter->sizes[reduce->nred],
                                (int64_t)(looped ? OPDI_COLUMNS_WIDE : OPDI_COLUMNS_TRANSPOSED));
        reduce->tiles = (iter->sizes[reduce->nred] + reduce->tile - 1) / reduce->tile;
        items = reduce->outer / iter->sizes[reduce->nred] * reduce->tiles;
        work = reduce->count * reduce->tile;
        if (opdi_stack_short(NULL, OPDI_STACK_FOR(68 << 10))) { return -1; }
    }
    if ((items < 16 || opd_same_bits()) && work >= 2 * OPDI_REDUCE_CHUNK) {
        reduce->chunk = reduce->tiles ? 4 * OPDI_REDUCE_CHUNK / reduce->tile : OPDI_REDUCE_CHUNK;
        reduce->chunks = (reduce->count + reduce->chunk - 1) / reduce->chunk;
        bytes = (size_t)(reduce->outer * reduce->chunks) * sizeof *reduce->states;
        reduce->states = (opdi_folded *)(void *)opdi_scratch_alloc(bytes);
        if (!reduce->states) { return -1; }
        items *= reduce->chunks;
        work = OPDI_REDUCE_CHUNK;
    }
    if (items * work <= OPDI_GRAIN) { (reduce->tiles ? opdi_reduce_columns : opdi_reduce_rows)(reduce, 0, items); }
    else {
        opdi_parallel_for(items, OPDI_MAX((int64_t)1, OPDI_GRAIN / OPDI_MAX(work, (int64_t)1)),
                          reduce->tiles ? opdi_reduce_columns : opdi_reduce_rows, reduce);
    }
    if (reduce->chunks > 1) { opdi_reduce_join(reduce, 0, reduce->outer); }
    if (reduce->states) { opdi_scratch_free((char *)reduce->states, bytes); }
    return 0;
}
OPDI_COLD_BEGIN
/* The kernel of a reduction: makes results of dtypes out0 and (if there are two) out1, and folds tensor over the dims
   in mask, computing in dtype `compute`.  If `keep` is true, the reduced dims stay, with size 1.  p is a number for the
   fold.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_reduce_kernel(opd_call *call, const opdi_fold *fold, opd_tensor *tensor, uint64_t mask,
                                     bool keep, opd_scalar_type compute, opd_scalar_type out0, opd_scalar_type out1,
                                     double p) {
    int64_t sizes[OPD_MAX_DIMS];
    const bool pairs = opd_dtype_is_complex((opd_scalar_type)tensor->dtype) || opd_dtype_is_complex(compute) ||
        opd_dtype_is_complex(out0);
    const int ndim = opdi_reduce_sizes(tensor, mask, keep, sizes),
        type = pairs ? OPDI_C128 : opdi_compute_type(compute), nouts = fold->out[1] ? 2 : 1;
    opd_tensor *outs[2];
    opdi_reduce reduce;
    if (!fold->step[type]) {
        return opdi_dtype_fail(fold->what, opd_dtype_is_complex(out0) ? (int)out0
                               : opd_dtype_is_complex(compute) ? (int)compute : tensor->dtype);
    }
    outs[0] = opd_result(call, 0, sizes, ndim, out0);
    if (!outs[0]) { return -1; }
    outs[1] = nouts == 2 ? opd_result(call, 1, sizes, ndim, out1) : NULL;
    if (nouts == 2 && !outs[1]) { return -1; }
    if (!outs[0]->data || !tensor->data) { return 0; }
    opdi_reduce_init(&reduce, tensor, mask, keep, outs, nouts, type,
                     fold->out[0] == OPDI_OUT_INDEX || fold->out[1] == OPDI_OUT_INDEX);
    reduce.fold = fold;
    reduce.number = p;
    for (int k = 0; k < nouts; k++) {             /* results are converted from double or int64 */
        const opdi_fold_out out = fold->out[k];
        const bool whole = out == OPDI_OUT_I || out == OPDI_OUT_INDEX ||
            ((out == OPDI_OUT_F_OR_I || out == OPDI_OUT_G_OR_N) && type == OPDI_I64);
        reduce.it.op[k + 1].store = opdi_store_of(whole ? OPDI_I64 : pairs ? OPDI_C128 : OPDI_F64, outs[k]->dtype);
    }
    return opdi_reduce_run(&reduce);
}

//== sums ==============================================================================================================

OPDI_COLD_END
OPDI_INTERNAL void opdi_fold_sum_f32(opdi_folded *folded, const void *x, int64_t count, int64_t at,
                                     const opdi_reduce *reduce) {
    (void)at;
    (void)reduce;
    if (count == 1) {
        folded->f += (double)*(const float *)x;
        return;
    }
#if defined(OPDI_X86)
    if (count >= 16 && opdi_cpu_level() > 0) {
        double sum;
        opdi_sum_rows_avx2((const float *)x, 1, count, &sum);
        folded->f += sum;
        return;
    }
#endif
    folded->f += opdi_sum_f32_plain((const float *)x, count);
}
OPDI_FOLD_SUM(opdi_fold_sum_f64, double, x)
OPDI_LOOP_TEXT void opdi_fold_sum_i64_body(opdi_folded *folded, const void *px, int64_t count, int64_t at,
                                           const opdi_reduce *reduce) {
    const int64_t *x = (const int64_t *)px;
    uint64_t sums[16] = {0}, sum = (uint64_t)folded->i;
    int64_t i = 0;
    (void)at;
    (void)reduce;
    if (count == 1) {
        folded->i = (int64_t)(sum + (uint64_t)x[0]);
        return;
    }
    for (; i + 16 <= count; i += 16) {
        OPDI_UNROLL
        for (int j = 0; j < 16; j++) { sums[j] += (uint64_t)x[i + j]; }
    }
    for (int j = 0; j < 16; j++) { sum += sums[j]; }
    for (; i < count; i++) { sum += (uint64_t)x[i]; }
    folded->i = (int64_t)sum;
}
OPDI_FOLD_WIDE(opdi_fold_sum_i64)
/* Adds up complex128 numbers, in eight sums in parallel. */
OPDI_LOOP_TEXT void opdi_fold_sum_c128_body(opdi_folded *folded, const void *px, int64_t count, int64_t at,
                                            const opdi_reduce *reduce) {
    const double *x = (const double *)px;
    double sums[16] = {0};
    int64_t i = 0;
    (void)at;
    (void)reduce;
    for (; i + 16 <= 2 * count; i += 16) {
        OPDI_UNROLL
        for (int j = 0; j < 16; j++) { sums[j] += x[i + j]; }
    }
    for (; i < 2 * count; i++) { sums[i & 15] += x[i]; }
    for (int j = 8; j > 1; j >>= 1) {
        for (i = 0; i < j; i++) { sums[i] += sums[i + j]; }
    }
    folded->f += sums[0];
    folded->g += sums[1];
}
OPDI_FOLD_WIDE(opdi_fold_sum_c128)
OPDI_INTERNAL void opdi_join_sum(opdi_folded *folded, const opdi_folded *with, const opdi_reduce *reduce) {
    (void)reduce;
    folded->f += with->f;
    folded->g += with->g;
    folded->n += with->n;
    folded->i = opdi_wrap_add(folded->i, with->i);
}
OPDI_INTERNAL const opdi_fold opdi_the_sum = {
    /* step */ {opdi_fold_sum_f32, opdi_fold_sum_f64, opdi_fold_sum_i64, opdi_fold_sum_c128},
    /* column */ {opdi_f32_add, opdi_f64_add, opdi_i64_add, NULL}, /* side */ {NULL, NULL},
    /* join, finish */ opdi_join_sum, NULL, /* init */ {0, 0, 0, 0},
    /* out, what */ {OPDI_OUT_F_OR_I, OPDI_OUT_NONE}, "sum_cpu"};
OPDI_COLD_BEGIN

/* Returns the dtype of a sum or product, in which it is also computed: argument number i of the call, if given; else
   the dtype of the out= tensor, if given; else int64 for integers; else the dtype of the input. */
OPDI_INTERNAL opd_scalar_type opdi_reduce_dtype(const opd_call *call, int i, const opd_tensor *tensor) {
    if (!opd_arg_is_none(call, i)) { return opd_arg_dtype(call, i, OPD_FLOAT32); }
    if (call->targets) { return (opd_scalar_type)call->targets[0]->dtype; }
    return opd_dtype_is_integral((opd_scalar_type)tensor->dtype, true) ? OPD_INT64 : (opd_scalar_type)tensor->dtype;
}
/* Returns a dtype to compute in, which can represent both the elements of tensor and results of `dtype`. */
OPDI_INTERNAL opd_scalar_type opdi_reduce_compute(const opd_tensor *tensor, opd_scalar_type dtype) {
    if (dtype == OPD_BOOL || opd_dtype_is_integral(dtype, true)) { return OPD_INT64; }
    return dtype == OPD_FLOAT64 || dtype == OPD_FLOAT32 ? dtype : tensor->dtype == OPD_FLOAT64 ? OPD_FLOAT64
        : OPD_FLOAT32;
}

//== helpers for the backward functions of reductions ==================================================================

/* Returns grad, the gradient of a reduction over `dims`, with the reduced dims restored, with size 1.  If `keep` is
   true, grad already has these dims.  ndim is the number of dims of the input. */
OPDI_INTERNAL opd_tensor *opdi_unreduce(opd_tensor *grad, opd_ints dims, bool keep, int ndim) {
    uint64_t mask;
    if (keep || ndim == 0 || !grad) { return grad; }
    if (opdi_reduce_mask(dims, ndim, &mask) != 0) { return NULL; }
    if (mask == OPDI_ALL_DIMS) { return grad; }   /* grad has no dims, so it broadcasts as it is */
    for (int dim = 0; dim < ndim && grad; dim++) { if (mask >> dim & 1) { grad = opd_unsqueeze(grad, dim); } }
    return grad;
}
OPDI_INTERNAL opd_ints opdi_bw_dims(opd_backward_call *bw, int i) {
    const opd_value value = opd_bw_value(bw, i);
    return value.tag == OPD_TAG_INTS ? opd_ints_of(value.u.ints, value.n) : opd_ints_of(NULL, 0);
}
OPDI_INTERNAL bool opdi_bw_bool(opd_backward_call *bw, int i) { return opd_bw_value(bw, i).u.i != 0; }
/* Returns grad expanded to the sizes of argument 0, the input.  Arguments i and i + 1 of the forward call are dims and
   keepdim; a negative i means that all dims were reduced.  On failure, returns NULL. */
OPDI_INTERNAL opd_tensor *opdi_bw_expand(opd_backward_call *bw, opd_tensor *grad, int i) {
    const opd_ints sizes = opd_bw_sizes(bw, 0);
    if (i >= 0) { grad = opdi_unreduce(grad, opdi_bw_dims(bw, i), opdi_bw_bool(bw, i + 1), (int)sizes.n); }
    return grad ? opd_expand(grad, sizes) : NULL;
}

/* For the batching rule of an operator that reduces a tensor to one element: returns the tensor of all examples, in
   which the examples are dim 0.  Sets *dims to its other dims, which are written to `buffer`.  On failure, returns NULL
   and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_batch_whole(opd_call *call, int64_t *buffer, opd_ints *dims) {
    opd_tensor *all = opdi_batch_front_arg(call, 0);
    *dims = opdi_batch_all_dims(opd_arg_tensor(call, 0)->ndim, buffer);
    return all && all->ndim == 1 ? opd_unsqueeze(all, 1) : all;
}
OPDI_COLD_END
