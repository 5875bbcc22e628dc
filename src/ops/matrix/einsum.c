#include "../ops.h"

//== inner, tensordot, kron ============================================================================================

#if !defined(OPD_NO_OPERATORS)
OPDI_LOOPS_BEGIN
OPDI_COLD_BEGIN

/* Contracts dims da[count] of a with dims db[count] of b by one matrix product.  If the other dims of both have the
   size 1, computes a dot product, as PyTorch does, which autocast does not lower on the CPU.  The result has the other
   dims of a, then the other dims of b.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_contract(opd_tensor *a, opd_tensor *b, const int64_t *da, const int64_t *db, int count) {
    int64_t pa[OPD_MAX_DIMS], pb[OPD_MAX_DIMS], sizes[OPD_MAX_DIMS], two[2], depth = 1, rows = 1, width = 1;
    bool in_a[OPD_MAX_DIMS] = {false}, in_b[OPD_MAX_DIMS] = {false};
    int dim, rest = 0, at = 0;
    for (int i = 0; i < count; i++) {
        in_a[da[i]] = in_b[db[i]] = true;
        depth *= opdi_sizes(a)[da[i]];
    }
    if (a->ndim + b->ndim - 2 * count > OPD_MAX_DIMS) {
        (void)opdi_dims_fail(a->ndim + b->ndim - 2 * count);
        return NULL;
    }
    for (dim = 0; dim < a->ndim; dim++) {
        if (!in_a[dim]) {
            pa[at++] = dim;
            sizes[rest++] = opdi_sizes(a)[dim];
            rows *= opdi_sizes(a)[dim];
        }
    }
    for (int i = 0; i < count; i++) {
        pa[at++] = da[i];
        pb[i] = db[i];
    }
    for (at = count, dim = 0; dim < b->ndim; dim++) {
        if (!in_b[dim]) {
            pb[at++] = dim;
            sizes[rest++] = opdi_sizes(b)[dim];
            width *= opdi_sizes(b)[dim];
        }
    }
    two[0] = rows;
    two[1] = depth;
    a = opdi_permute_to(a, pa, a->ndim);
    if (rows == 1 && width == 1) {
        a = opdi_reshape_to(a, &depth, 1);
        b = opdi_reshape_to(opdi_permute_to(b, pb, b->ndim), &depth, 1);
        return opdi_reshape_to(opd_dot(a, b), sizes, rest);
    }
    a = opdi_reshape_to(a, two, 2);
    two[0] = depth;
    two[1] = width;
    b = opdi_reshape_to(opdi_permute_to(b, pb, b->ndim), two, 2);
    return opdi_reshape_to(opd_mm(a, b), sizes, rest);
}
static int opdi_wrap_dim(int64_t *dim, int ndim) {
    const int count = ndim > 0 ? ndim : 1;
    if (*dim < -count || *dim >= count) {
        return opd_fail(OPD_ERROR_INDEX, "Dimension out of range (expected to be in range of [%d, %d], but got %lld)",
                        -count, count - 1, (long long)*dim);
    }
    if (*dim < 0) { *dim += count; }
    return 0;
}
/* tensordot: contracts dims_self of a with dims_other of b.  If only one of two contracted dims has size 1, the other
   dim is summed first. */
static int opdi_tensordot_kernel(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    opd_ints list = opd_arg_ints(call, 2), ints = opd_arg_ints(call, 3);
    int64_t da[OPD_MAX_DIMS], db[OPD_MAX_DIMS];
    uint64_t seen_a = 0, seen_b = 0;
    int count = (int)list.n;
    if (list.n != ints.n) { return opd_fail(OPD_ERROR_ARGUMENT, "both dimension lists should have same length"); }
    if (list.n > a->ndim || list.n > b->ndim) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%lld dimensions cannot be contracted in tensors with %d and %d dimensions",
                        (long long)list.n, a->ndim, b->ndim);
    }
    for (int i = 0; i < count; i++) {
        int64_t place = list.data[i], q = ints.data[i];
        if (opdi_wrap_dim(&place, a->ndim) != 0 || opdi_wrap_dim(&q, b->ndim) != 0) { return -1; }
        if ((seen_a >> place & 1) || (seen_b >> q & 1)) { return opdi_dim_twice_fail(seen_a >> place & 1 ? place : q); }
        seen_a |= (uint64_t)1 << place;
        seen_b |= (uint64_t)1 << q;
        int64_t sum = opdi_sizes(a)[place];
        int64_t t = opdi_sizes(b)[q];
        da[i] = place;
        db[i] = q;
        if (sum == t) { continue; }
        if (t == 1) { a = opdi_sum_over(a, &place, 1, true); }
        else if (sum == 1) { b = opdi_sum_over(b, &q, 1, true); }
        else {
            return opd_fail(OPD_ERROR_SHAPE, "contracted dimensions need to match, "
                            "but first has size %lld in dim %lld and second has size %lld in dim %lld", (long long)sum,
                            (long long)place, (long long)t, (long long)q);
        }
        if (!a || !b) { return -1; }
    }
    return opd_return_tensor(call, opdi_contract(a, b, da, db, count));
}
/* opd_tensordot: the sum of the products over dims_self of self and dims_other of other */
OPDI_OP(tensordot) {
    op->schema = "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor";
    op->composite = opdi_tensordot_kernel;
    op->autocast = OPD_AUTOCAST_PROMOTE_NOT_CPU;
    op->out = "tensordot.out";
    op->cases = "[2,3,4], [4,3,2], (1,2), (1,0)";
}

static int opdi_inner_kernel(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1);
    int64_t da = a->ndim - 1, db = b->ndim - 1;
    char x[256], y[256];
    if (a->ndim == 0 || b->ndim == 0) { return opd_return_tensor(call, opd_mul(a, b)); }
    if (opdi_sizes(a)[da] != opdi_sizes(b)[db]) {
        return opd_fail(OPD_ERROR_SHAPE,
                        "inner() the last dimension must match on both input tensors but got shapes %s and %s",
                        opdi_sizes_text(opdi_sizes(a), a->ndim, x, sizeof x),
                        opdi_sizes_text(opdi_sizes(b), b->ndim, y, sizeof y));
    }
    return opd_return_tensor(call, opdi_contract(a, b, &da, &db, 1));
}
/* opd_inner: the sum of the products over the last dims of self and other */
OPDI_OP(inner) {
    op->schema = "inner(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_inner_kernel;
    op->out = "inner.out";
    op->cases = "[2,3], [4,3]; [3], [3]";
}
OPDI_COLD_END
/* kron: each dim of the result combines a dim of self with a dim of other.  Computes one outer product with pairs of
   dims, then merges each pair. */
static int opdi_kron_kernel(opd_call *call) {
    opd_tensor *in[2];
    int64_t sizes[OPD_MAX_DIMS], out[OPD_MAX_DIMS];
    in[0] = opd_arg_tensor(call, 0);
    in[1] = opd_arg_tensor(call, 1);
    int count = OPDI_MAX(in[0]->ndim, in[1]->ndim);
    if (2 * count > OPD_MAX_DIMS) { return opdi_dims_fail(2 * count); }
    for (int dim = 0; dim < count; dim++) { out[dim] = 1; }
    for (int k = 0; k < 2; k++) {
        for (int dim = 0; dim < count; dim++) {
            const int from = dim - (count - in[k]->ndim);
            sizes[2 * dim + k] = from < 0 ? 1 : opdi_sizes(in[k])[from];
            sizes[2 * dim + 1 - k] = 1;
            out[dim] = opdi_size_times(out[dim], sizes[2 * dim + k]);
        }
        in[k] = opdi_reshape_to(in[k], sizes, 2 * count);
    }
    return opd_return_tensor(call, opdi_reshape_to(opd_mul(in[0], in[1]), out, count));
}
OPDI_COLD_BEGIN
/* opd_kron: the Kronecker product: every element of self times all of other */
OPDI_OP(kron) {
    op->schema = "kron(Tensor self, Tensor other) -> Tensor";
    op->composite = opdi_kron_kernel;
    op->out = "kron.out"; op->tags = OPDI_OPTAG_OUT_CASTS | OPDI_OPTAG_OUT_PART;
    op->cases = "[2,3], [2,2]; [2], [2,3]";
}

static int opdi_norm_except_kernel(opd_call *call) {
    opd_tensor *v = opd_arg_tensor(call, 0);
    const int64_t dim = opd_arg_int(call, 2);
    const opd_value pow = opd_value_int(opd_arg_int(call, 1));
    int64_t dims[OPD_MAX_DIMS], count = 0;
    if (dim == -1) { return opd_return_tensor(call, opd_norm_Scalar(v, pow)); }
    const int keep = opdi_dim_of(dim, v->ndim);
    if (keep < 0) { return -1; }
    for (int i = 0; i < v->ndim; i++) { if (i != keep) { dims[count++] = i; } }
    if (count) { return opd_return_tensor(call, opd_norm_dim(v, pow, opd_ints_of(dims, count), true)); }
    return opd_return_tensor(call, opd_reshape(opd_norm_dim(opd_unsqueeze(v, -1), pow, OPD_INTS(-1), false),
                                               opd_ints_of(opdi_sizes(v), v->ndim)));
}
/* opd_norm_except_dim: norms of order pow over all dims except dim, or over all dims if dim is -1 */
OPDI_OP(norm_except_dim) {
    op->schema = "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor";
    op->composite = opdi_norm_except_kernel;
    op->cases = "[3,2]; [2,3,4], 1, 1; [2,3], 2, -1; [3]";
}

//== einsum ============================================================================================================
//
//  einsum computes sums of products; letters name the dims.  It follows PyTorch's order of operations, so that the
//  result has the same strides.  Each operand is given one dim for each letter, with the letters of the result first;
//  then pairs of operands are multiplied by bmm.

enum { OPDI_EINSUM_LETTERS = 52, OPDI_EINSUM_DOTS = 52 };
/* An equation and its letters.  For each letter: how often it occurs left of the arrow (count), its dim (at) and its
   size (size).  For the dims of "...": their number (dots), first dim (dots_at) and sizes (dots_size).  dims is the
   number of all dims, out the number of dims of the result. */
typedef struct opdi_einsum {
    uint8_t labels[OPD_MAX_DIMS + 1];             /* letters of the operand that was read last */
    int nlabels;
    int count[OPDI_EINSUM_LETTERS], at[OPDI_EINSUM_LETTERS];
    int64_t size[OPDI_EINSUM_LETTERS], dots_size[OPD_MAX_DIMS];
    int dots, dots_at, out, dims;
    int seen[OPD_MAX_DIMS];                       /* number of operands in which the dim's size is not 1 */
} opdi_einsum;

static int opdi_einsum_letter(char c) {
    return c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 : -1;
}
static char opdi_einsum_name(int label) { return (char)(label < 26 ? 'A' + label : 'a' + label - 26); }

/* Reads the letters of operand i, or of the output if i is -1, from `at` up to a comma, the arrow or the end of the
   equation into sum->labels.  Returns the rest of the text, or NULL and sets an error. */
static const char *opdi_einsum_read(opdi_einsum *sum, const char *at, const char *equation, int i) {
    char who[24] = "output";
    bool dots = false;
    if (i >= 0) { (void)snprintf(who, sizeof who, "operand %d", i); }
    for (sum->nlabels = 0; *at && *at != ',' && *at != '-'; at++) {
        int label = opdi_einsum_letter(*at);
        if (*at == ' ') { continue; }
        if (*at == '.') {
            if (dots || at[1] != '.' || at[2] != '.') {
                (void)opd_fail(OPD_ERROR_ARGUMENT, dots ? "einsum(): found '.' for %s for which an ellipsis was "
                               "already found" : "einsum(): found '.' for %s that is not part of any ellipsis", who);
                return NULL;
            }
            at += 2;
            dots = true;
            label = OPDI_EINSUM_DOTS;
        }
        if (label < 0) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "einsum(): invalid subscript given at index %d in the equation string, "
                           "subscripts must be in [a-zA-Z]", (int)(at - equation));
            return NULL;
        }
        if (sum->nlabels > OPD_MAX_DIMS) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "%s has more than %d subscripts", who, OPD_MAX_DIMS);
            return NULL;
        }
        sum->labels[sum->nlabels++] = (uint8_t)label;
    }
    return at;
}
/* Reads the letters of operand i from `at` and checks that they match its ndim dims.  Returns the rest of the text, or
   NULL and sets an error. */
static const char *opdi_einsum_operand(opdi_einsum *sum, const char *at, const char *equation, int i, int ndim) {
    bool dots = false;
    if (!(at = opdi_einsum_read(sum, at, equation, i))) { return NULL; }
    for (int k = 0; k < sum->nlabels; k++) { dots = dots || sum->labels[k] == OPDI_EINSUM_DOTS; }
    const int letters = sum->nlabels - dots;
    if (dots ? letters <= ndim : letters == ndim) { return at; }
    (void)opd_fail(OPD_ERROR_SHAPE, "einsum(): the number of subscripts in the equation (%d) %s the number of "
                   "dimensions (%d) for operand %d%s", letters, dots ? "is more than" : "does not match", ndim, i,
                   dots ? "" : " and no ellipsis was given");
    return NULL;
}
/* Counts the letters left of the arrow for the operands `in`.  Returns the address of the arrow, or of the end of the
   text if there is no arrow.  On failure, returns NULL and sets an error. */
static const char *opdi_einsum_count(opdi_einsum *sum, const char *equation, opd_tensors in) {
    const char *at = equation;
    for (int i = 0; i < in.n; i++) {
        if (!(at = opdi_einsum_operand(sum, at, equation, i, in.data[i]->ndim))) { return NULL; }
        for (int k = 0; k < sum->nlabels; k++) {
            const int label = sum->labels[k];
            if (label == OPDI_EINSUM_DOTS) { sum->dots = OPDI_MAX(sum->dots, in.data[i]->ndim - sum->nlabels + 1); }
            else { sum->count[label]++; }
        }
        if (i + 1 < in.n && *at != ',') {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "einsum(): more operands were provided than specified in the equation");
            return NULL;
        }
        at += i + 1 < in.n;
    }
    if (*at == ',') {
        (void)opd_fail(OPD_ERROR_ARGUMENT, "einsum(): fewer operands were provided than specified in the equation");
        return NULL;
    }
    return at;
}
/* Assigns dims to "..." and to the letters of the result.  `at` points to the arrow or, if there is no arrow, to the
   end of the text; then the letters that occur once form the result.  Returns 1 if there is an arrow, 0 if not, or -1
   and sets an error. */
static int opdi_einsum_result(opdi_einsum *sum, const char *at, const char *equation) {
    if (!*at) {
        sum->dims = sum->dots;
        for (int label = 0; label < OPDI_EINSUM_LETTERS; label++) {
            if (sum->count[label] == 1) { sum->at[label] = sum->dims++; }
        }
        return 0;
    }
    if (at[1] != '>' || !(at = opdi_einsum_read(sum, at + 2, equation, -1)) || *at) {
        return opd_ok() ? opd_fail(OPD_ERROR_ARGUMENT, "einsum(): invalid subscript given at index %d in the equation "
                                   "string, subscripts must be in [a-zA-Z]", (int)(at - equation)) : -1;
    }
    bool dots = false;
    for (int k = 0; k < sum->nlabels; k++) {
        const int label = sum->labels[k];
        if (label == OPDI_EINSUM_DOTS) {
            sum->dots_at = sum->dims;
            sum->dims += sum->dots;
            dots = true;
            continue;
        }
        if (sum->at[label] >= 0 || sum->count[label] == 0) {
            return opd_fail(OPD_ERROR_ARGUMENT, "einsum(): output subscript %c %s", opdi_einsum_name(label),
                            sum->at[label] >= 0 ? "appears more than once in the output"
                            : "does not appear in the equation for any input operand");
        }
        sum->at[label] = sum->dims++;
    }
    sum->out = sum->dims;
    if (!dots) {                                  /* "..." is not in the result: its dims are summed */
        sum->dots_at = sum->dims;
        sum->dims += sum->dots;
    }
    return 1;
}
/* Reads the equation for the operands `in` into *sum.  Returns 0, or -1 and sets an error. */
static int opdi_einsum_open(opdi_einsum *sum, const char *equation, opd_tensors in) {
    memset(sum, 0, sizeof *sum);
    for (int label = 0; label < OPDI_EINSUM_LETTERS; label++) {
        sum->at[label] = -1;
        sum->size[label] = 1;
    }
    for (int i = 0; i < OPD_MAX_DIMS; i++) { sum->dots_size[i] = 1; }
    const char *at = opdi_einsum_count(sum, equation, in);
    const int given = at ? opdi_einsum_result(sum, at, equation) : -1;
    if (given < 0) { return -1; }
    if (!given) { sum->out = sum->dims; }
    for (int label = 0; label < OPDI_EINSUM_LETTERS; label++) {
        if (sum->count[label] > 0 && sum->at[label] < 0) { sum->at[label] = sum->dims++; }
    }
    return sum->dims <= OPD_MAX_DIMS ? 0 : opdi_dims_fail(sum->dims);
}
/* Records that operand i has size `size` in dim `at`.  *known is the size of the dim's letter so far; a size other
   than 1 must agree with it.  `label` is for the message.  Returns 0, or -1 and sets an error. */
static int opdi_einsum_check_size(opdi_einsum *sum, int at, int64_t *known, int64_t size, int i, int label) {
    if (size == 1) { return 0; }
    if (*known != 1 && *known != size) {
        char name[2] = {label < OPDI_EINSUM_DOTS ? opdi_einsum_name(label) : '.', 0};
        return opd_fail(OPD_ERROR_SHAPE, "einsum(): subscript %s has size %lld for operand %d which does not broadcast "
                        "with previously seen size %lld", label < OPDI_EINSUM_DOTS ? name : "...", (long long)size, i,
                        (long long)*known);
    }
    *known = size;
    sum->seen[at]++;
    return 0;
}
/* Returns operand i with one dim for each letter.  If a letter occurs twice in the operand, takes the diagonal of its
   two dims.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_einsum_operand_dims(opdi_einsum *sum, opd_tensor *tensor, int i) {
    int64_t order[OPD_MAX_DIMS];
    int dim = 0;
    const int covered = tensor->ndim - sum->nlabels + 1;
    for (int k = 0; k < sum->dims; k++) { order[k] = -1; }
    for (int k = 0; k < sum->nlabels && tensor; k++) {
        const int label = sum->labels[k];
        for (int j = sum->dots - covered; label == OPDI_EINSUM_DOTS && j < sum->dots; j++) {
            const int at = sum->dots_at + j;
            if (opdi_einsum_check_size(sum, at, &sum->dots_size[j], tensor->dims[dim], i, label)) { return NULL; }
            order[at] = dim++;
        }
        if (label == OPDI_EINSUM_DOTS) { continue; }
        const int at = sum->at[label];
        if (order[at] < 0) {
            if (opdi_einsum_check_size(sum, at, &sum->size[label], tensor->dims[dim], i, label)) { return NULL; }
            order[at] = dim++;
            continue;
        }
        if (tensor->dims[dim] != tensor->dims[order[at]]) {
            (void)opd_fail(OPD_ERROR_SHAPE, "einsum(): subscript %c is repeated for operand %d but the sizes don't "
                           "match, %lld != %lld", opdi_einsum_name(label), i, (long long)tensor->dims[dim],
                           (long long)tensor->dims[order[at]]);
            return NULL;
        }
        tensor = opd_movedim(opd_diagonal_full(tensor, 0, order[at], dim), -1, order[at]);
    }
    for (int k = 0; k < sum->dims && tensor; k++) {
        if (order[k] >= 0) { continue; }
        tensor = opd_unsqueeze(tensor, dim);
        order[k] = dim++;
    }
    return tensor ? opd_permute(tensor, opd_ints_of(order, sum->dims)) : NULL;
}

/* A list of dims, and the product of their sizes. */
typedef struct opdi_einsum_dims { int64_t dims[OPD_MAX_DIMS], size; int count; } opdi_einsum_dims;
static void opdi_einsum_add(opdi_einsum_dims *list, int dim, int64_t size) {
    list->dims[list->count++] = dim;
    list->size = opdi_size_times(list->size, size);
}
static opd_tensor *opdi_einsum_factor(opd_tensor *tensor, const opdi_einsum_dims *const *lists) {
    int64_t order[OPD_MAX_DIMS], sizes[3];
    int count = 0;
    for (int i = 0; i < 4; i++) { for (int k = 0; k < lists[i]->count; k++) { order[count++] = lists[i]->dims[k]; } }
    for (int i = 0; i < 3; i++) { sizes[i] = lists[i]->size; }
    return opd_reshape(opd_permute(tensor, opd_ints_of(order, count)), opd_ints_of(sizes, 3));
}
/* Returns the product of left and right, whose dims broadcast, summed over the dims in `inner`, which remain with size
   1.  Computes it as a bmm of [both, left, inner] and [both, inner, right], where `both` stands for the dims that left
   and right share, and `left` and `right` for dims that only one of them has.  On failure, returns NULL and sets an
   error. */
static opd_tensor *opdi_einsum_pair(opd_tensor *left, opd_tensor *right, opdi_einsum_dims *inner) {
    opdi_einsum_dims lists[3];                    /* dims of both, of left only, of right only */
    const opdi_einsum_dims *order[4];
    int64_t sizes[OPD_MAX_DIMS], back[OPD_MAX_DIMS];
    int count = 0, next = 0;
    if (!left || !right || inner->count == 0) { return opd_mul(left, right); }
    memset(lists, 0, sizeof lists);
    for (int i = 0; i < 3; i++) { lists[i].size = 1; }
    inner->size = 1;
    for (int dim = 0; dim < left->ndim; dim++) {
        const int64_t one = left->dims[dim], other = right->dims[dim];
        if (next < inner->count && inner->dims[next] == dim) {
            inner->size = opdi_size_times(inner->size, one);
            next++;
        } else { opdi_einsum_add(&lists[one == 1 ? 2 : other == 1 ? 1 : 0], dim, one == 1 ? other : one); }
    }
    if (lists[1].count && lists[2].count && lists[2].dims[lists[2].count - 1] < lists[1].dims[0]) {
        const opdi_einsum_dims list = lists[1];
        opd_tensor *tensor = left;
        lists[1] = lists[2];
        lists[2] = list;
        left = right;
        right = tensor;
    }
    order[0] = &lists[0];
    order[1] = &lists[1];
    order[2] = inner;
    order[3] = &lists[2];
    for (int i = 0; i < 4; i++) {
        for (int k = 0; k < order[i]->count; k++) {
            const int64_t dim = order[i]->dims[k];
            sizes[count] = i == 2 ? 1 : (i == 3 ? right : left)->dims[dim];
            back[dim] = count++;
        }
    }
    left = opdi_einsum_factor(left, order);
    order[1] = inner;
    order[2] = &lists[2];
    order[3] = &lists[1];
    right = opdi_einsum_factor(right, order);
    return opd_permute(opd_view(opd_bmm(left, right), opd_ints_of(sizes, count)), opd_ints_of(back, count));
}
/* Returns the product of left and right, summed over the dims that no other operand has.  On failure, returns NULL and
   sets an error. */
static opd_tensor *opdi_einsum_contract(opdi_einsum *sum, opd_tensor *left, opd_tensor *right) {
    opdi_einsum_dims inner, alone[2];
    inner.count = alone[0].count = alone[1].count = 0;
    for (int dim = sum->out; dim < sum->dims; dim++) {
        const bool one = left->dims[dim] != 1, other = right->dims[dim] != 1;
        opdi_einsum_dims *list = one && other ? &inner : one ? &alone[0] : &alone[1];
        if (one && other) { sum->seen[dim]--; }
        if (sum->seen[dim] != 1 || (!one && !other)) { continue; }
        list->dims[list->count++] = dim;
        sum->seen[dim] = 0;
    }
    if (alone[0].count) { left = opdi_sum_over(left, alone[0].dims, alone[0].count, true); }
    if (alone[1].count) { right = opdi_sum_over(right, alone[1].dims, alone[1].count, true); }
    return opdi_einsum_pair(left, right, &inner);
}
/* Returns the number of multiplications in a product of two operands with sizes left[dims] and right[dims]: the number
   of elements of their broadcast product. */
static double opdi_einsum_work(const int64_t *left, const int64_t *right, int dims) {
    double work = 1;
    for (int dim = 0; dim < dims; dim++) { work *= (double)OPDI_MAX(left[dim], right[dim]); }
    return work;
}
/* Sets product[sum->dims] to the sizes that operands i and j give when they are multiplied and summed over the dims
   that no other operand has.  sizes [count, sum->dims] holds the sizes of all operands. */
static void opdi_einsum_product(const opdi_einsum *sum, const int64_t *sizes, int count, int i, int j,
                                int64_t *product) {
    for (int dim = 0; dim < sum->dims; dim++) {
        bool stays = dim < sum->out;
        for (int k = 0; k < count; k++) { stays = stays || (k != i && k != j && sizes[k * sum->dims + dim] != 1); }
        product[dim] = stays ? OPDI_MAX(sizes[i * sum->dims + dim], sizes[j * sum->dims + dim]) : 1;
    }
}
/* How the next pair of operands is chosen.  IN_ORDER: the product so far and the next operand.  BY_WORK: the pair with
   the fewest multiplications; pairs that are summed over a dim come first.  BY_GROWTH: the pair whose product adds the
   fewest elements to the operands. */
typedef enum opdi_einsum_search { OPDI_EINSUM_IN_ORDER, OPDI_EINSUM_BY_WORK, OPDI_EINSUM_BY_GROWTH } opdi_einsum_search;
/* Writes to `path` the pairs of operands in the order in which they are multiplied.  sizes [count, dims] holds the
   operands' sizes and is overwritten.  Each product is appended to the list of the remaining operands.  Returns the
   number of multiplications. */
static double opdi_einsum_path(const opdi_einsum *sum, int64_t *sizes, int count, opdi_einsum_search how,
                               int64_t *path) {
    const int dims = sum->dims;
    double all = 0;
    int64_t product[OPD_MAX_DIMS];
    for (bool first = true; count > 1; count--, path += 2, first = false) {
        double least = 0;
        path[0] = 0;
        path[1] = first ? 1 : count - 1;
        for (int i = 0, tried = 0; i < count && how != OPDI_EINSUM_IN_ORDER; i++) {
            for (int j = i + 1; j < count; j++, tried++) {
                const int64_t *left = sizes + i * dims, *right = sizes + j * dims;
                double score = opdi_einsum_work(left, right, dims);
                bool summed = false;
                for (int dim = sum->out; dim < dims; dim++) { summed = summed || (left[dim] != 1 && right[dim] != 1); }
                if (!summed) { score *= 1e30; }       /* choose this pair only if no pair is summed over a dim */
                if (how == OPDI_EINSUM_BY_GROWTH) {
                    opdi_einsum_product(sum, sizes, count, i, j, product);
                    score = opdi_einsum_work(product, product, dims) - opdi_einsum_work(left, left, dims) -
                        opdi_einsum_work(right, right, dims);
                }
                if (tried && score >= least) { continue; }
                least = score;
                path[0] = i;
                path[1] = j;
            }
        }
        const int i = (int)path[0], j = (int)path[1];
        all += opdi_einsum_work(sizes + i * dims, sizes + j * dims, dims);
        opdi_einsum_product(sum, sizes, count, i, j, product);
        memmove(sizes + j * dims, sizes + (j + 1) * dims, (size_t)(count - 1 - j) * (size_t)dims * sizeof *sizes);
        memmove(sizes + i * dims, sizes + (i + 1) * dims, (size_t)(count - 2 - i) * (size_t)dims * sizeof *sizes);
        memcpy(sizes + (count - 2) * dims, product, (size_t)dims * sizeof *sizes);
    }
    return all;
}
enum { OPDI_EINSUM_SEARCHED = 32 };               /* with more operands, no order is searched */
/* Returns the order in which three or more operands are contracted, as pairs of indices, or None for the given order,
   which PyTorch uses.  Chooses another order only if there are many multiplications and the order saves at least half
   of them (Smith and Gray, opt_einsum).  The results then differ only by rounding errors. */
static opd_value opdi_einsum_best(const opdi_einsum *sum, opd_tensor *const *list, int count) {
    const int dims = OPDI_MAX(sum->dims, 1);
    int64_t *sizes = NULL, *paths = NULL;
    double work[3];
    int best = 0;
    if (count < 3 || count > OPDI_EINSUM_SEARCHED) { return opd_value_none(); }
    sizes = (int64_t *)opdi_scope_alloc((size_t)count * (size_t)dims * sizeof *sizes);
    paths = (int64_t *)opdi_scope_alloc(6 * (size_t)count * sizeof *paths);
    for (int how = 0; how < 3 && sizes && paths; how++) {
        for (int k = 0; k < count; k++) { memcpy(sizes + k * dims, list[k]->dims, (size_t)sum->dims * sizeof *sizes); }
        work[how] = opdi_einsum_path(sum, sizes, count, (opdi_einsum_search)how, paths + 2 * count * how);
        if (work[how] < work[best]) { best = how; }
    }
    if (!sizes || !paths || !best || work[0] < 1e6 || work[best] > work[0] / 2) { return opd_value_none(); }
    return opd_value_ints(paths + 2 * count * best, 2 * (int64_t)(count - 1));
}
/* Contracts the `count` tensors in list, pair by pair, until one is left.  The pairs are those in path or, if path is
   None, always the first two tensors.  Returns the result, or NULL and sets an error. */
static opd_tensor *opdi_einsum_all(opdi_einsum *sum, opd_tensor **list, int count, const opd_value *path) {
    for (int64_t step = 0; count > 1; count--, step++) {
        int64_t i = 0, j = 1;
        if (path->tag != OPD_TAG_NONE) {
            if (2 * step + 1 >= path->n) {
                (void)opd_fail(OPD_ERROR_ARGUMENT, "path has only %d numbers, but needs two for each "
                               "contraction", (int)path->n);
                return NULL;
            }
            i = OPDI_MIN(path->u.ints[2 * step], path->u.ints[2 * step + 1]);
            j = OPDI_MAX(path->u.ints[2 * step], path->u.ints[2 * step + 1]);
        }
        if (i < 0 || i == j || j >= count) {
            (void)opd_fail(OPD_ERROR_ARGUMENT, "path has the pair (%lld, %lld), but needs two different "
                           "positions in a list of %lld operands", (long long)i, (long long)j, (long long)count);
            return NULL;
        }
        opd_tensor *product = opdi_einsum_contract(sum, list[i], list[j]);
        if (!product) { return NULL; }
        memmove(list + j, list + j + 1, (size_t)(count - 1 - j) * sizeof *list);
        memmove(list + i, list + i + 1, (size_t)(count - 2 - i) * sizeof *list);
        if (path->tag == OPD_TAG_NONE) { memmove(list + 1, list, (size_t)(count - 2) * sizeof *list); }
        list[path->tag == OPD_TAG_NONE ? 0 : count - 2] = product;
    }
    return list[0];
}
static int opdi_einsum_kernel(opd_call *call) {
    const char *equation = opd_arg_str(call, 0), *at = equation;
    const opd_tensors in = opd_arg_tensors(call, 1);
    opd_tensor **list = opdi_list_alloc(in.n);
    opdi_einsum sum;
    int64_t dims[OPD_MAX_DIMS];
    if (in.n < 1) { return opd_fail(OPD_ERROR_ARGUMENT, "einsum(): must provide at least one operand"); }
    if (!list || opdi_einsum_open(&sum, equation, in)) { return -1; }
    for (int i = 0; i < in.n; i++) {
        if (!(at = opdi_einsum_operand(&sum, at, equation, i, in.data[i]->ndim))) { return -1; }
        if (!(list[i] = opdi_einsum_operand_dims(&sum, in.data[i], i))) { return -1; }
        at += i + 1 < in.n;
    }
    const opd_value path = opd_arg_is_none(call, 2) ? opdi_einsum_best(&sum, list, (int)in.n) : call->args[2];
    opd_tensor *result = opd_ok() ? opdi_einsum_all(&sum, list, (int)in.n, &path) : NULL;
    if (!result || sum.dims == sum.out) { return opd_return_tensor(call, result); }
    if (in.n > 1) { return opd_return_tensor(call, opd_view(result, opd_ints_of(result->dims, sum.out))); }
    for (int dim = sum.out; dim < sum.dims; dim++) { dims[dim - sum.out] = dim; }
    return opd_return_tensor(call, opdi_sum_over(result, dims, sum.dims - sum.out, false));
}
/* opd_einsum: sums of products, e.g. "ij,jk->ik", where letters name dims; in a cheap order, or in the order of path */
OPDI_OP(einsum) {
    op->schema = "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor";
    op->composite = opdi_einsum_kernel;
    op->tags = OPDI_OPTAG_SHARES;
    op->autocast = OPD_AUTOCAST_LOWER_NOT_CPU;
    op->cases = "'ij,jk->ik', {[2,3],[3,2]}; 'bij, bjk', {[2,2,3],[2,3,2]}; 'ii', {[3,3]}; '...a,ab,b->...', "
        "{[2,3],[3,2],[2]}; 'i,j->ji', {[2],[3]}; 'ab->', {[2,3]}";
}

//== _trilinear, bilinear ==============================================================================================

/* Appends the letters of a tensor's dims to an equation for einsum, at text + *at.  Dim i of the `total` dims has
   letter i; the dims in `absent` are left out.  ndim is the tensor's number of dims, which is checked, or -1.  Returns
   0, or -1 and sets an error. */
static int opdi_trilinear_letters(char *text, size_t *at, opd_ints absent, int total, int ndim) {
    bool out[26] = {false};
    for (int i = 0; i < absent.n; i++) {
        const int dim = opdi_dim_of(absent.data[i], total);
        if (dim < 0) { return -1; }
        if (out[dim]) { return opdi_dim_twice_fail(dim); }
        out[dim] = true;
    }
    if (ndim >= 0 && ndim + absent.n != total) {
        return opd_fail(OPD_ERROR_SHAPE, "the dimensions of each operand and its expand list must add up to %d, but "
                        "one operand has %d and a list of %lld", total, ndim, (long long)absent.n);
    }
    for (int i = 0; i < total; i++) { if (!out[i]) { text[(*at)++] = (char)('a' + i); } }
    return 0;
}
/* _trilinear: computes the sum of i1 * i2 * i3 over the dims sumdim by an einsum.  The expand list of an operand names
   the dims of the product that the operand does not have; the operand is repeated along these dims. */
static int opdi_trilinear_kernel(opd_call *call) {
    opd_tensor *each[3];
    char text[4 * 26 + 5];
    size_t at = 0;
    const int64_t total = opd_arg_tensor(call, 0)->ndim + (int64_t)opd_arg_ints(call, 3).n;
    if (total > 26) {
        return opd_fail(OPD_ERROR_ARGUMENT, "the result has %lld dimensions, but at most 26 are possible",
                        (long long)total);
    }
    for (int i = 0; i < 3; i++) {
        each[i] = opd_arg_tensor(call, i);
        if (opdi_trilinear_letters(text, &at, opd_arg_ints(call, 3 + i), (int)total, each[i]->ndim)) { return -1; }
        text[at++] = i < 2 ? ',' : '-';
    }
    text[at++] = '>';
    if (opdi_trilinear_letters(text, &at, opd_arg_ints(call, 6), (int)total, -1)) { return -1; }
    text[at] = 0;
    const opd_key_guard guard = opdi_autocast_off();
    opd_tensor *const sum = opd_einsum(text, opd_tensors_of(each, 3));
    opd_keys_restore(guard);                      /* as in PyTorch, autocast does not lower the products */
    return opd_return_tensor(call, opd_clone_full(sum, opd_value_int(0)));
}
/* Computes the gradients.  The gradient of one operand is a _trilinear product of grad and the other two operands.
   grad does not have the dims that were summed, so they take the place of grad's expand list. */
static int opdi_trilinear_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *i1 = opd_bw_tensor(bw, 0), *i2 = opd_bw_tensor(bw, 1),
        *i3 = opd_bw_tensor(bw, 2);
    const opd_ints e1 = opd_bw_ints(bw, 3), e2 = opd_bw_ints(bw, 4), e3 = opd_bw_ints(bw, 5),
        sum = opd_bw_ints(bw, 6);
    OPDI_BW_RETURN(0, opd__trilinear(grad, i2, i3, sum, e2, e3, e1));
    OPDI_BW_RETURN(1, opd__trilinear(i1, grad, i3, e1, sum, e3, e2));
    OPDI_BW_RETURN(2, opd__trilinear(i1, i2, grad, e1, e2, sum, e3));
    return 0;
}
/* Checks the arguments of bilinear.  Returns 0, or -1 and sets an error. */
static int opdi_bilinear_check(const opd_tensor *first, const opd_tensor *second, const opd_tensor *weight,
                               const opd_tensor *bias) {
    if (first->ndim != second->ndim) {
        return opd_fail(OPD_ERROR_SHAPE, "bilinear(): input dimensions do not match: got %d and %d", first->ndim,
                        second->ndim);
    }
    if (first->ndim < 1 || weight->ndim != 3) {
        return opd_fail(OPD_ERROR_SHAPE, "inputs must have 1 dimension or more and weight 3, but they have %d and %d",
                        first->ndim, weight->ndim);
    }
    for (int i = 0; i + 1 < first->ndim; i++) {
        if (opdi_sizes(first)[i] != opdi_sizes(second)[i]) {
            return opd_fail(OPD_ERROR_SHAPE, "bilinear(): input batch dimensions do not match at dim %d: got %lld and "
                            "%lld", i, (long long)opdi_sizes(first)[i], (long long)opdi_sizes(second)[i]);
        }
    }
    for (int i = 1; i < 3; i++) {
        const opd_tensor *input = i == 1 ? first : second;
        if (opdi_sizes(input)[input->ndim - 1] != opdi_sizes(weight)[i]) {
            return opd_fail(OPD_ERROR_SHAPE, "bilinear(): input%d size does not match weight size: got %lld but "
                            "expected %lld", i, (long long)opdi_sizes(input)[input->ndim - 1],
                            (long long)opdi_sizes(weight)[i]);
        }
    }
    if (bias && (bias->ndim != 1 || opdi_sizes(bias)[0] != opdi_sizes(weight)[0])) {
        return opd_fail(OPD_ERROR_SHAPE, "bilinear(): bias size does not match weight size: got %lld but expected "
                        "%lld", (long long)(bias->ndim ? opdi_sizes(bias)[0] : 1), (long long)opdi_sizes(weight)[0]);
    }
    return 0;
}
static int opdi_bilinear_kernel(opd_call *call) {
    static const int64_t lacks[] = {1, 3}, sum[] = {2, 3}, zero = 0, middle[] = {1, 2};
    opd_tensor *first = opd_arg_tensor(call, 0), *second = opd_arg_tensor(call, 1), *weight = opd_arg_tensor(call, 2),
        *bias = opd_arg_tensor(call, 3);
    int64_t sizes[OPD_MAX_DIMS], flat[2];
    const int last = first->ndim - 1;
    if (opdi_bilinear_check(first, second, weight, bias)) { return -1; }
    flat[0] = 1;
    for (int i = 0; i < last; i++) { flat[0] *= sizes[i] = opdi_sizes(first)[i]; }
    sizes[last] = opdi_sizes(weight)[0];
    flat[1] = opdi_sizes(first)[last];
    first = opdi_reshape_to(first, flat, 2);
    flat[1] = opdi_sizes(second)[last];
    second = opdi_reshape_to(second, flat, 2);
    opd_tensor *out = opd__trilinear(first, weight, second, opd_ints_of(lacks, 2), opd_ints_of(&zero, 1),
                                     opd_ints_of(middle, 2), opd_ints_of(sum, 2));
    out = out ? opdi_reshape_to(out, sizes, last + 1) : NULL;
    return opd_return_tensor(call, out && bias ? opd_add(out, bias) : out);
}
/* opd__trilinear: the sum over sumdim of i1 * i2 * i3, where each has new dims of size 1 at its expand list */
OPDI_OP(_trilinear) {
    op->schema = "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] "
        "sumdim, int unroll_dim=1) -> Tensor";
    op->any = opdi_trilinear_kernel; op->backward = opdi_trilinear_backward; op->save = "i1, i2, i3";
    op->vmap = OPD_BATCH_DECOMPOSE;
    op->out = "_trilinear.out";
    op->cases = "[2,3], [4,3,2], [2,2], (1,3), (0), (1,2), (2,3); [2,3], [1,3], [2,3], (), (), (), (1); [2], [3], [2], "
        "(1), (0), (1), (0)";
}
/* opd_bilinear: the sum of input1_i weight_kij input2_j over i and j, plus bias_k, for each k */
OPDI_OP(bilinear) {
    op->schema = "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor";
    op->composite = opdi_bilinear_kernel;
    op->autocast = OPD_AUTOCAST_PROMOTE_NOT_CPU;
    op->cases = "[2,3], [2,2], [4,3,2], [4]; [2,2,3], [2,2,2], [1,3,2]; [3], [2], [4,3,2]";
}

OPDI_COLD_END

OPDI_LOOPS_END

/* Returns element number `element` of argument i, an output_mask, or false if the mask has no such element. */
OPDI_INTERNAL bool opdi_mask_at(const opd_call *call, int i, int element) {
    const opd_value value = call->args[i];
    return value.tag == OPD_TAG_BOOLS && element < value.n && value.u.bools[element];
}
OPDI_INTERNAL int64_t opdi_floor_div(int64_t first, int64_t second) {
    return first / second - (first % second != 0 && (first < 0) != (second < 0));
}
OPDI_INTERNAL opd_tensor *opdi_plus(opd_tensor *a, opd_tensor *b) { return !a ? b : !b ? a : opd_add(a, b); }
#endif   /* OPD_NO_OPERATORS */
