#include "../ops.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>op:index     reading and writing by indices: gather, scatter, rows, masks
//----------------------------------------------------------------------------------------------------------------------

//== results that begin as a copy of self ==============================================================================

OPDI_COLD_BEGIN
/* Returns result 0, filled with the contents of self; an in-place form may return self.  If `keep_strides`, a new
   result gets the strides that a clone of self has.  A fake result has no data (NULL).  On failure, returns NULL
   and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_update(opd_call *call, bool keep_strides) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (opdi_updates_self(call)) { return self; }
    int64_t strides[OPD_MAX_DIMS];
    opdi_strides_like(self, strides);
    opd_tensor *out = opd_result_strided(call, 0, opdi_sizes(self), keep_strides ? strides : NULL,
                                         self->ndim, (opd_scalar_type)self->dtype, opd_tensor_device(self));
    if (out && out->data && opdi_copy(out, self)) { return NULL; }
    return out;
}
/* Returns scratch memory of this dtype, filled with the contents of `out`, or NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_scratch_filled(opd_tensor *out, opd_scalar_type dtype) {
    opd_tensor *delta = opdi_staging(out, dtype);
    return delta && delta != out && opdi_copy(delta, out) ? NULL : delta;
}
OPDI_INTERNAL int opdi_index_dtype(const opd_tensor *index, const char *text) {
    return index->dtype == OPD_INT64 || index->dtype == OPD_INT32 ? 0 : opd_fail(OPD_ERROR_DTYPE, "%s", text);
}
OPDI_INTERNAL int opdi_out_of_bounds(int64_t i, int dim, int64_t size) {
    return opd_fail(OPD_ERROR_INDEX, "index %lld is out of bounds for dimension %d with size %lld", (long long)i, dim,
                    (long long)size);
}
OPDI_COLD_END
/* Returns index as contiguous int64 numbers.  Each must be in [0, size) or, if `wrap`, in [-size, size); size is added
   to negative indices.  If all indices are valid, sets *bad to -1; otherwise sets *bad to the position of the first
   invalid index and returns the indices unchanged.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_index_load(opd_tensor *index, int64_t size, bool wrap, int64_t *bad) {
    opd_tensor *tensor = opdi_dense_as(index, OPD_INT64);
    int64_t i, negative = 0;
    *bad = -1;
    if (!tensor) { return NULL; }
    const int64_t *at = (const int64_t *)(const void *)tensor->data;
    uint64_t signs[16] = {0}, any = 0;            /* the signs of indices, and of their distances to the last index */
    const int64_t count = tensor->numel;
    OPDI_SIXTEENS(signs[lane] |= (uint64_t)at[j] | ((uint64_t)size - 1 - (uint64_t)at[j]))
    for (; i < count; i++) { any |= (uint64_t)at[i] | ((uint64_t)size - 1 - (uint64_t)at[i]); }
    for (int lane = 0; lane < 16; lane++) { any |= signs[lane]; }
    if (!(any >> 63)) { return tensor; }
    for (i = 0; i < count; i++) {
        const int64_t depth = at[i] < 0 && wrap ? at[i] + size : at[i];
        if ((uint64_t)depth >= (uint64_t)size) {
            *bad = i;
            return tensor;
        }
        negative |= at[i];
    }
    if (negative < 0) {                           /* negative indices: a copy has the corrected numbers */
        opd_tensor *third = opdi_own(opdi_tensor_make(tensor->dims, NULL, tensor->ndim, OPD_INT64, OPD_CPU));
        if (!third) { return NULL; }
        int64_t *to = (int64_t *)(void *)third->data;
        for (i = 0; i < count; i++) { to[i] = at[i] < 0 ? at[i] + size : at[i]; }
        return third;
    }
    return tensor;
}

//== gather and scatter: walks =========================================================================================
//
//  A walk visits every position p of `index`.  At p, the walk pairs the element of b at p with an element of a.  The
//  element of a has the coordinates of p, except that its coordinate in dim is index[p].  A gather copies from a to b,
//  a scatter from b to a.  A fold combines the element of a with the element of b.  Folds compute blocks of elements in
//  float32, float64 or int64 and store them in a's dtype immediately; sums of 16-bit floats need float32 memory instead
//  (opdi_fold_into).  A walk may be divided among threads, which never write the same element of a, so results do not
//  depend on the number of threads.

typedef struct opdi_indexed {
    int ndim, row, split;                         /* row: the dim of the inner loop; split: the dim that is divided
                                                     among threads, or -1 */
    int kind, compute, size, bsize;               /* size, bsize: bytes of an element of a and of an element of b */
    opd_scalar_type dtype;                        /* the dtype of a */
    int64_t sizes[OPD_MAX_DIMS];                  /* the sizes of index or, if index has fewer dims than b, of b */
    int64_t as[OPD_MAX_DIMS], bs[OPD_MAX_DIMS], xs[OPD_MAX_DIMS];     /* strides of a, b and index, in elements; a's
                                                                         stride along dim is 0 here */
    int64_t at;                                   /* a's stride along dim */
    const int64_t *index;                         /* checked indices */
    char *a, *b;
    opdi_convert load_a, store_a, load_b;         /* conversions of folds; NULL: no conversion, because folds compute in
                                                     the dtype itself */
    double alpha;                                 /* elements of b are multiplied by alpha */
} opdi_indexed;

/* Elements of a walk, as m rows of n elements.  self, source and index point to the first row in a, b and the index.
   as and bs (in bytes) and xs (in indices) are the distances from one row to the next there. */
typedef struct opdi_indexed_rows { char *self, *source; const int64_t *index; int64_t n, m, as, bs, xs;
                                  } opdi_indexed_rows;

#define OPDI_INDEXED_MOVE(type)                                                                            \
    for (; other.m > 0; other.m--, other.self += other.as, other.source += other.bs, places += other.xs) { \
        type *pa = (type *)(void *)other.self; type *pb = (type *)(void *)other.source; const int64_t *px = places; \
        if (plain && gather) { for (int64_t k = 0; k < other.n; k++) { pb[k] = pa[px[k]]; } }              \
        else if (plain) { for (int64_t k = 0; k < other.n; k++) { pa[px[k]] = pb[k]; } }                   \
        else if (gather) { \
            for (int64_t k = other.n; k > 0; k--, pa += as, pb += bs, px += xs) { *pb = pa[*px * at]; } \
        } \
        else { for (int64_t k = other.n; k > 0; k--, pa += as, pb += bs, px += xs) { pa[*px * at] = *pb; } } \
    } break;
/* Gathers or scatters the elements of *rows.  If all elements of a row have the same index, moves the row as a
   whole. */
static void opdi_indexed_move(const opdi_indexed *indexed, const opdi_indexed_rows *rows) {
    opdi_indexed_rows other = *rows;
    const int64_t as = indexed->as[indexed->row], bs = indexed->bs[indexed->row], xs = indexed->xs[indexed->row],
        at = indexed->at, size = indexed->size;
    const int64_t *places = other.index;
    const bool gather = indexed->kind == OPDI_WALK_GATHER;
    const bool plain = as == 0 && at == 1 && bs == 1 && xs == 1;   /* along a contiguous dim */
    /* xs is 0: all elements of a row have the same index */
    for (; xs == 0 && other.m > 0; other.m--, other.self += other.as, other.source += other.bs, places += other.xs) {
        char *pa = other.self + *places * at * size;
        if (gather) { opdi_move_run(other.source, bs * size, pa, as * size, other.n, indexed->size); }
        else { opdi_move_run(pa, as * size, other.source, bs * size, other.n, indexed->size); }
    }
    switch (indexed->size) {
        case 1: OPDI_INDEXED_MOVE(uint8_t)
        case 2: OPDI_INDEXED_MOVE(uint16_t)
        case 4: OPDI_INDEXED_MOVE(uint32_t)
        case 8: OPDI_INDEXED_MOVE(uint64_t)
        default:
            for (; other.m > 0; other.m--, other.self += other.as, other.source += other.bs, places += other.xs) {
                for (int64_t k = 0; k < other.n; k++) {
                    char *pa = other.self + (k * as + places[k * xs] * at) * size, *pb = other.source + k * bs * size;
                    memcpy(gather ? pb : pa, gather ? pa : pb, (size_t)size);
                }
            }
    }
}
#include "../../typed/f32.h"
#include "indexed_elements.typed.h"
#include "../../typed/f64.h"
#include "indexed_elements.typed.h"
#include "../../typed/i64.h"
#include "indexed_elements.typed.h"
#include "../../typed/end.h"
/* Folds *rows into a.  b has the type in which the fold computes; its elements are `bs` elements apart. */
static void opdi_indexed_fold(const opdi_indexed *indexed, const opdi_indexed_rows *rows, int64_t bs) {
    if (indexed->dtype == OPD_FLOAT64) { opdi_indexed_fold_f64(indexed, rows, bs); }
    else if (opd_dtype_is_floating(indexed->dtype)) { opdi_indexed_fold_f32(indexed, rows, bs); }
    else { opdi_indexed_fold_i64(indexed, rows, bs); }
}
/* Adds `count` elements of second to `count` elements of first.  Both are arrays of the type `type` (OPDI_F32, ...). */
static void opdi_indexed_sum(int type, void *first, const void *second, int64_t count) {
    void *data[3];
    data[0] = data[1] = first;
    data[2] = (void *)(uintptr_t)second;
    (type == OPDI_F32 ? opdi_f32_add : type == OPDI_F64 ? opdi_f64_add : opdi_i64_add)(data, count, &opdi_no_params);
}
/* Reads `count` elements of `second` (b), which are `bs` elements apart, converts them to the type in which the fold
   computes, multiplies them by alpha, and writes them to `to`. */
static void opdi_indexed_load(const opdi_indexed *indexed, void *to, const char *second, int64_t bs, int64_t count) {
    uint64_t raw[OPDI_BLOCK];
    opdi_gather(indexed->load_b ? raw : to, second, bs * indexed->bsize, count, indexed->bsize);
    if (indexed->load_b) { indexed->load_b(to, raw, count); }
    for (int64_t k = 0; indexed->alpha != 1 && k < count; k++) {
        if (indexed->compute == OPDI_F32) { ((float *)to)[k] *= (float)indexed->alpha; }
        else if (indexed->compute == OPDI_F64) { ((double *)to)[k] *= indexed->alpha; }
        else { ((int64_t *)to)[k] = opdi_wrap_mul(((int64_t *)to)[k], (int64_t)indexed->alpha); }
    }
}
/* Folds one row of b into a, block by block.  If `loads`, elements of b are first converted and multiplied by alpha.
   If `sums`, all elements of the row have the same index, and contiguous blocks of b are added to contiguous blocks of
   a. */
static void opdi_indexed_fold_blocks(const opdi_indexed *indexed, const opdi_indexed_rows *rows, bool loads,
                                     bool sums) {
    const int64_t as = indexed->as[indexed->row], bs = indexed->bs[indexed->row], xs = indexed->xs[indexed->row];
    const int64_t count = rows->n;
    uint64_t from[OPDI_BLOCK], to[OPDI_BLOCK];
    int64_t many;
    for (int64_t i = 0; i < count; i += many) {
        char *pb = rows->source + i * bs * indexed->bsize,
            *pa = rows->self + (i * as + (sums ? *rows->index * indexed->at : 0)) * indexed->size;
        opdi_indexed_rows part = {pa, pb, rows->index + i * xs, /* count, many */ 0, 1, /* as, bs, xs */ 0, 0, 0};
        part.n = many = OPDI_MIN(count - i, (int64_t)OPDI_BLOCK);
        if (loads) {
            opdi_indexed_load(indexed, from, pb, bs, many);
            part.source = pb = (char *)from;
        }
        if (!sums) { opdi_indexed_fold(indexed, &part, loads ? 1 : bs); }
        else if (!indexed->load_a) { opdi_indexed_sum(indexed->compute, pa, pb, many); }
        else {
            indexed->load_a(to, pa, many);
            opdi_indexed_sum(indexed->compute, to, pb, many);
            indexed->store_a(pa, to, many);
        }
    }
}
/* Runs part [begin, end) of dim indexed->split, which is divided among threads; if split is -1, runs the whole walk.
   The two innermost dims are processed together as rows if possible, otherwise row after row. */
static void opdi_indexed_part(void *ctx, int64_t begin, int64_t end) {
    const opdi_indexed *indexed = (const opdi_indexed *)ctx;
    const int row = indexed->row;
    const bool loads = indexed->kind >= OPDI_WALK_ADD && (indexed->load_b || indexed->alpha != 1);
    int64_t idx[OPD_MAX_DIMS], sizes[OPD_MAX_DIMS], first = 0, second = 0, x = 0;
    opdi_indexed_rows rows = {/* first, second, x */ NULL, NULL, NULL, /* n, m */ 0, 1, /* as, bs, xs */ 0, 0, 0};
    int dim, outer = row;
    if (indexed->split >= 0) {
        first = begin * indexed->as[indexed->split];
        second = begin * indexed->bs[indexed->split];
        x = begin * indexed->xs[indexed->split];
    }
    rows.n = row == indexed->split ? end - begin : indexed->sizes[row];
    bool sums = rows.n > 16 && indexed->xs[row] == 0 && indexed->as[row] == 1 && indexed->kind == OPDI_WALK_ADD &&
        (loads || indexed->bs[row] == 1);
    if (row > 0 && !loads && !sums) {
        outer = row - 1;
        rows.m = outer == indexed->split ? end - begin : indexed->sizes[outer];
        rows.as = indexed->as[outer] * indexed->size;
        rows.bs = indexed->bs[outer] * indexed->bsize;
        rows.xs = indexed->xs[outer];
    }
    for (dim = 0; dim < outer; dim++) {
        idx[dim] = 0;
        sizes[dim] = dim == indexed->split ? end - begin : indexed->sizes[dim];
    }
    do {
        rows.self = indexed->a + first * indexed->size;
        rows.source = indexed->b + second * indexed->bsize;
        rows.index = indexed->index + x;
        if (indexed->kind < OPDI_WALK_ADD) { opdi_indexed_move(indexed, &rows); }
        else if (loads || sums) { opdi_indexed_fold_blocks(indexed, &rows, loads, sums); }
        else { opdi_indexed_fold(indexed, &rows, indexed->bs[row]); }
        for (dim = outer - 1; dim >= 0; dim--) {  /* dims after the row's dim have size 1 */
            if (++idx[dim] < sizes[dim]) {
                first += indexed->as[dim];
                second += indexed->bs[dim];
                x += indexed->xs[dim];
                break;
            }
            first -= --idx[dim] * indexed->as[dim];
            second -= idx[dim] * indexed->bs[dim];
            x -= idx[dim] * indexed->xs[dim];
            idx[dim] = 0;
        }
    } while (dim >= 0);
}
/* Adds element `from` of second to element `at` of first.  If `product`, multiplies element `at` by element `from`
   instead.  Both tensors have the same complex dtype. */
static void opdi_complex_fold(bool product, opd_tensor *first, int64_t at, const opd_tensor *second, int64_t from) {
    const bool wide = first->dtype == OPD_COMPLEX128;
    double to[2], by[2];
    for (int i = 0; i < 2; i++) {
        to[i] = wide ? ((double *)(void *)first->data)[2 * at + i] : ((float *)(void *)first->data)[2 * at + i];
        by[i] = wide ? ((double *)(void *)second->data)[2 * from + i] : ((float *)(void *)second->data)[2 * from + i];
    }
    const double re = product ? to[0] * by[0] - to[1] * by[1] : to[0] + by[0];
    const double im = product ? to[0] * by[1] + to[1] * by[0] : to[1] + by[1];
    for (int i = 0; i < 2; i++) {
        if (wide) { ((double *)(void *)first->data)[2 * at + i] = i ? im : re; }
        else { ((float *)(void *)first->data)[2 * at + i] = (float)(i ? im : re); }
    }
}
/* Returns a dim that can be divided among threads, or -1 if there is none.  Two positions that differ in this dim never
   write the same element of a. */
static int opdi_indexed_split(const opdi_indexed *indexed) {
    int best = -1;
    for (int dim = 0; dim < indexed->ndim; dim++) {
        if (indexed->kind != OPDI_WALK_GATHER && indexed->as[dim] == 0) { continue; }
        if (best < 0 || (indexed->sizes[best] < 64 && indexed->sizes[dim] > indexed->sizes[best])) { best = dim; }
    }
    return best;
}
/* Runs sums and products of complex numbers for opdi_indexed_go, one element after another.  Returns 0, or -1 and sets
   an error. */
static int opdi_indexed_complex(int kind, opd_tensor *first, int dim, const opd_tensor *index, opd_tensor *second) {
    const opd_tensor *like = index->ndim < second->ndim ? second : index;
    const int64_t *places = (const int64_t *)(const void *)index->data;
    for (int64_t i = 0; i < like->numel && index->numel; i++) {
        int64_t rest = i, at = 0, from = 0, place = 0;
        for (int axis = like->ndim - 1; axis >= 0; axis--) {
            const int64_t k = rest % opdi_sizes(like)[axis];
            rest /= opdi_sizes(like)[axis];
            at += axis == dim || !first->ndim ? 0 : k * opdi_strides(first)[axis];
            from += second->ndim ? k * opdi_strides(second)[axis] : 0;
            if (like == index) { place += k * opdi_strides(index)[axis]; }
            else if (axis == dim && index->ndim) { place += k * opdi_strides(index)[0]; }
        }
        at += first->ndim ? places[place] * opdi_strides(first)[dim] : 0;
        opdi_complex_fold(kind == OPDI_WALK_MUL, first, at, second, from);
    }
    return 0;
}
/* Runs a gather, scatter or fold, as `kind` (OPDI_WALK_..) says.  `first` (a) is indexed along dim by `index`, which
   holds checked int64 numbers.  `second` (b) has at least index's sizes, or is a single number.  Except for folds, both
   must have the same dtype.  If index has fewer dims than second, index is a list of positions along dim that applies
   to all other coordinates.  Folds multiply second by alpha.  Returns 0, or -1 and sets an error. */
OPDI_INTERNAL int opdi_indexed_go(int kind, opd_tensor *first, int dim, const opd_tensor *index, opd_tensor *second,
                                  double alpha) {
    opdi_indexed indexed;
    const opd_tensor *like = index->ndim < second->ndim ? second : index;
    const int64_t *as = opdi_strides(first), *bs = opdi_strides(second), *xs = opdi_strides(index),
        *sizes = opdi_sizes(like);
    const int ndim = like->ndim, type = opdi_compute_type((opd_scalar_type)first->dtype);
    int axis;
    if (like->numel == 0 || index->numel == 0) { return 0; }
    if (kind >= OPDI_WALK_ADD && opdi_is_complex(first)) {
        return opdi_indexed_complex(kind, first, dim, index, second);
    }
    indexed.kind = kind;
    indexed.compute = type;
    indexed.alpha = alpha;
    indexed.dtype = (opd_scalar_type)first->dtype;
    indexed.size = (int)opd_dtype_size(indexed.dtype);
    indexed.bsize = first->dtype == second->dtype ? indexed.size : (int)opd_dtype_size((opd_scalar_type)second->dtype);
    if (kind >= OPDI_WALK_ADD) {
        indexed.load_a = first->dtype == opdi_compute_dtype[type] ? NULL : opdi_load_of(type, first->dtype);
        indexed.store_a = opdi_store_of(type, first->dtype);
        indexed.load_b = second->dtype == opdi_compute_dtype[type] ? NULL : opdi_load_of(type, second->dtype);
    }
    indexed.ndim = OPDI_MAX(ndim, 1);
    indexed.index = (const int64_t *)(const void *)index->data;
    indexed.a = first->data;
    indexed.b = second->data;
    indexed.sizes[0] = 1;
    indexed.as[0] = indexed.bs[0] = indexed.xs[0] = 0;
    indexed.at = first->ndim ? as[dim] : 0;
    for (axis = 0; axis < ndim; axis++) {
        indexed.sizes[axis] = sizes[axis];
        indexed.as[axis] = first->ndim ? as[axis] : 0;
        indexed.bs[axis] = second->ndim ? bs[axis] : 0;
        indexed.xs[axis] = like == index ? xs[axis] : 0;
    }
    if (dim < ndim) {
        indexed.as[dim] = 0;
        if (like != index && index->ndim) { indexed.xs[dim] = xs[0]; }
    }
    for (axis = indexed.ndim - 1; axis > 0 && indexed.sizes[axis] == 1; axis--) { }
    indexed.row = axis;
    indexed.split = like->numel <= OPDI_GRAIN ? -1 : opdi_indexed_split(&indexed);
    if (indexed.split < 0) {
        opdi_indexed_part(&indexed, 0, 0);
        return 0;
    }
    opdi_parallel_for(indexed.sizes[indexed.split], OPDI_MAX((int64_t)(indexed.split == indexed.row ? 1024 : 1),
                                                             OPDI_GRAIN / (like->numel / indexed.sizes[indexed.split])),
                      opdi_indexed_part, &indexed);
    return 0;
}
OPDI_COLD_BEGIN
/* Checks that the indices are in [0, size) (with `wrap`, in [-size, size)) and returns them as int64 numbers in [0,
   size).  If the indices need no change, returns index itself; its strides may be 0.  If an index is out of range,
   fails with the message `text` or, if that is NULL, a message that names the index and dim.  On failure, returns NULL
   and sets an error. */
OPDI_INTERNAL opd_tensor *opdi_index_checked(opd_tensor *index, int dim, int64_t size, bool wrap, const char *text) {
    int64_t sizes[OPD_MAX_DIMS], strides[OPD_MAX_DIMS], bad;
    opd_tensor *once = index;
    bool spread = false;
    if (index->numel == 0) { return index; }
    for (int axis = 0; axis < index->ndim && !(index->flags & OPDI_CONTIGUOUS); axis++) {
        sizes[axis] = opdi_strides(index)[axis] == 0 ? 1 : opdi_sizes(index)[axis];
        spread = spread || sizes[axis] != opdi_sizes(index)[axis];
    }
    if (spread) { once = opdi_view(index, sizes, opdi_strides(index), index->ndim, 0); }
    opd_tensor *input = once ? opdi_index_load(once, size, wrap, &bad) : NULL;
    if (!input) { return NULL; }
    if (bad >= 0) {
        (void)(text ? opd_fail(OPD_ERROR_INDEX, "%s", text)
               : opdi_out_of_bounds(((const int64_t *)(const void *)input->data)[bad], dim, size));
        return NULL;
    }
    if (!spread) { return input; }
    for (int axis = 0; axis < index->ndim; axis++) { strides[axis] = sizes[axis] == 1 ? 0 : opdi_strides(input)[axis]; }
    return opdi_view(input, opdi_sizes(index), strides, index->ndim, 0);
}
OPDI_INTERNAL int opdi_indexed_run(int kind, opd_tensor *first, int dim, opd_tensor *index, opd_tensor *second) {
    index = opdi_index_checked(index, dim, first->ndim ? opdi_sizes(first)[dim] : 1, false, NULL);
    return index ? opdi_indexed_go(kind, first, dim, index, second, 1) : -1;
}
OPDI_COLD_END
