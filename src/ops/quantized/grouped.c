#include "../ops.h"

//== products of groups of rows with a matrix for each group: mixtures of experts ======================================
//
//  The ends of the groups are data: offs[i] is the index behind the last row, column or inner index of group i.

/* The forms of a grouped product: which dim is divided into groups.  ROWS: [rows, k] times [groups, k, n].  COLUMNS:
   [groups, m, k] times [k, columns].  INNER: [m, k] times [k, n], to [groups, m, n].  NONE: a product of batches. */
typedef enum opdi_grouped_form { OPDI_GROUPED_ROWS, OPDI_GROUPED_COLUMNS, OPDI_GROUPED_INNER, OPDI_GROUPED_NONE }
    opdi_grouped_form;
typedef struct opdi_group_product {
    opd_tensor *left, *right;
    opdi_grouped_form form;
    int64_t count, all;          /* the number of groups, and the size of the dim that is divided */
    int64_t sizes[3];            /* the sizes of the result */
    int ndim;
    opd_scalar_type dtype;       /* the dtype of the result */
} opdi_group_product;

/* Reads and checks the arguments.  Returns 0, or -1 and sets an error. */
static int opdi_grouped_read(const opd_call *call, opdi_group_product *grouped) {
    const char *const name = "_grouped_mm";
    opd_tensor *const left = opd_arg_tensor(call, 0), *const right = opd_arg_tensor(call, 1);
    const opd_tensor *const offs = opd_arg_is_none(call, 2) ? NULL : opd_arg_tensor(call, 2);
    const bool deep[2] = {left->ndim == 3, right->ndim == 3};
    if ((!deep[0] && left->ndim != 2) || (!deep[1] && right->ndim != 2)) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: self and mat2 must have 2 or 3 dims, but have %d and %d", name,
                        left->ndim, right->ndim);
    }
    const int64_t *const a = opdi_sizes(left), *const b = opdi_sizes(right), k = a[left->ndim - 1];
    grouped->left = left;
    grouped->right = right;
    grouped->form = deep[0] && deep[1] ? OPDI_GROUPED_NONE : deep[0] ? OPDI_GROUPED_COLUMNS
        : deep[1] ? OPDI_GROUPED_ROWS : OPDI_GROUPED_INNER;
    if (k != b[right->ndim - 2]) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: the last size of self is %lld, but mat2 has %lld rows", name,
                        (long long)k, (long long)b[right->ndim - 2]);
    }
    if (left->dtype != right->dtype || !opd_dtype_is_floating(OPDI_DTYPE(left))) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: self and mat2 must have the same floating dtype, but have %s and %s",
                        name, opd_dtype_name(OPDI_DTYPE(left)), opd_dtype_name(OPDI_DTYPE(right)));
    }
    if ((grouped->form == OPDI_GROUPED_NONE) == (offs != NULL)) {
        return opd_fail(OPD_ERROR_ARGUMENT, offs ? "%s: offs must be left out if self and mat2 have 3 dims each"
                        : "%s: offs is missing: with self or mat2 of 2 dims, it has the ends of the groups", name);
    }
    if (offs && (offs->ndim != 1 || (offs->dtype != OPD_INT32 && offs->dtype != OPD_INT64))) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: offs must be a 1-D tensor of int32, but has %d dims and dtype %s",
                        name, offs->ndim, opd_dtype_name(OPDI_DTYPE(offs)));
    }
    grouped->count = offs ? offs->numel : a[0];
    if ((deep[0] && a[0] != grouped->count) || (deep[1] && b[0] != grouped->count)) {
        return opd_fail(OPD_ERROR_SHAPE, "%s: there are %lld groups, but %s has %lld matrices", name,
                        (long long)grouped->count, deep[0] && a[0] != grouped->count ? "self" : "mat2",
                        (long long)(deep[0] && a[0] != grouped->count ? a[0] : b[0]));
    }
    if (!opd_arg_is_none(call, 3)) {
        return opd_fail(OPD_ERROR_ARGUMENT, "%s: bias is not supported, as in PyTorch: add it afterwards", name);
    }
    grouped->dtype = opd_arg_is_none(call, 4) ? OPDI_DTYPE(left) : (opd_scalar_type)opd_arg_int(call, 4);
    if (grouped->dtype != OPDI_DTYPE(left)) {
        return opd_fail(OPD_ERROR_DTYPE, "%s: out_dtype must be the dtype of self, %s, but is %s", name,
                        opd_dtype_name(OPDI_DTYPE(left)), opd_dtype_name(grouped->dtype));
    }
    const int64_t rows = a[left->ndim - 2], columns = b[right->ndim - 1];
    grouped->all = grouped->form == OPDI_GROUPED_ROWS ? rows : grouped->form == OPDI_GROUPED_COLUMNS ? columns : k;
    grouped->ndim = 0;
    if (grouped->form == OPDI_GROUPED_INNER || grouped->form == OPDI_GROUPED_NONE) {
        grouped->sizes[grouped->ndim++] = grouped->count;
    }
    grouped->sizes[grouped->ndim++] = rows;
    grouped->sizes[grouped->ndim++] = columns;
    return 0;
}
/* Returns the product of group i, which goes from index `from` to index `to`. */
static opd_tensor *opdi_grouped_product(const opdi_group_product *grouped, int64_t i, int64_t from, int64_t to) {
    const bool rows = grouped->form == OPDI_GROUPED_ROWS, columns = grouped->form == OPDI_GROUPED_COLUMNS;
    opd_tensor *const left = columns ? opd_select(grouped->left, 0, i)
        : opd_narrow(grouped->left, rows ? 0 : 1, from, to - from);
    opd_tensor *const right = rows ? opd_select(grouped->right, 0, i)
        : opd_narrow(grouped->right, columns ? 1 : 0, from, to - from);
    return opdi_product_as_given(left, right);
}
/* Writes the product of group i to its part of `out`.  Returns 0, or -1 and sets an error. */
static int opdi_grouped_one(const opdi_group_product *grouped, opd_tensor *out, int64_t i, int64_t from, int64_t to) {
    opd_scope scope = opd_scope_open();
    opd_tensor *const part = grouped->form == OPDI_GROUPED_INNER ? opd_select(out, 0, i)
        : opd_narrow(out, grouped->form == OPDI_GROUPED_ROWS ? 0 : 1, from, to - from);
    opd_tensor *const product = part ? opdi_grouped_product(grouped, i, from, to) : NULL;
    const int rc = product && opd_copy_(part, product) ? 0 : -1;
    opd_scope_close(&scope);
    return rc;
}
/* Computes all groups one after the other, each by mm, which uses all threads. */
static opd_tensor *opdi_grouped_all(const opdi_group_product *grouped, const int32_t *ends) {
    opd_tensor *out = opd_new_zeros(grouped->left, opd_ints_of(grouped->sizes, grouped->ndim));
    for (int64_t i = 0, from = 0; out && i < grouped->count; i++) {
        const int64_t to = ends[i];
        if (to < from || to > grouped->all) {
            (void)opd_fail(OPD_ERROR_INDEX, "_grouped_mm: offs[%lld] is %lld, but must be between %lld and %lld",
                           (long long)i, (long long)to, (long long)from, (long long)grouped->all);
            return NULL;
        }
        if (to > from && opdi_grouped_one(grouped, out, i, from, to)) { return NULL; }
        from = to;
    }
    return out;
}
static int opdi_grouped_mm_kernel(opd_call *call) {
    opdi_group_product grouped;
    if (opdi_grouped_read(call, &grouped)) { return -1; }
    if (grouped.form == OPDI_GROUPED_NONE) {      /* autocast does not lower it */
        const opd_key_guard guard = opdi_autocast_off();
        opd_tensor *const product = opd_bmm(grouped.left, grouped.right);
        opd_keys_restore(guard);
        return opd_return_tensor(call, product);
    }
    opd_tensor *const ends = opd_contiguous(opd_to_device(opd_arg_tensor(call, 2), opd_device_make(OPD_CPU, -1),
                                                          OPD_INT32));
    return !ends ? -1 : opd_return_tensor(call, opdi_grouped_all(&grouped, (const int32_t *)(const void *)ends->data));
}
static int opdi_grouped_mm_fake(opd_call *call) {
    opdi_group_product grouped;
    if (opdi_grouped_read(call, &grouped)) { return -1; }
    return opd_result(call, 0, grouped.sizes, grouped.ndim, grouped.dtype) ? 0 : -1;
}
/* The gradients are grouped products of the same groups. */
static int opdi_grouped_mm_backward(opd_backward_call *bw) {
    opd_tensor *const grad = opd_bw_grad(bw, 0);
    opd_tensor *const offs = opd_bw_value(bw, 2).tag == OPD_TAG_NONE ? NULL : opd_bw_tensor(bw, 2);
    if (opd_bw_needs(bw, 0)) {
        opd_tensor *const right = opd_transpose(opd_bw_tensor(bw, 1), -2, -1);
        OPDI_BW_RETURN(0, opd__grouped_mm_full(grad, right, offs, NULL, opd_value_none()));
    }
    if (!opd_bw_needs(bw, 1)) { return 0; }
    opd_tensor *const left = opd_transpose(opd_bw_tensor(bw, 0), -2, -1);
    return opd_bw_return(bw, 1, opd__grouped_mm_full(left, grad, offs, NULL, opd_value_none()));
}
/* opd__grouped_mm: the products of groups of rows of self with the matrices of mat2; offs has the ends of the groups */
OPDI_OP(_grouped_mm) {
    op->schema = "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? "
        "out_dtype=None) -> Tensor";
    op->any = opdi_grouped_mm_kernel; op->fake = opdi_grouped_mm_fake;
    op->backward = opdi_grouped_mm_backward; op->save = "mat2(self), self(mat2), offs";
    op->vmap = OPD_BATCH_LOOP;
    op->cases = "[2,2,3], [2,3,4]";
}

//== transformers ======================================================================================================

/* The operator by which the experts of Hugging Face's models are exported in float32. */
static int opdi_transformers_grouped_kernel(opd_call *call) {
    return opd_return_tensor(call, opd__grouped_mm_full(opd_arg_tensor(call, 0), opd_arg_tensor(call, 1),
                                                        opd_arg_tensor(call, 2), NULL, opd_value_none()));
}
OPDI_INTERNAL void opdi_transformers_grouped(opd_op_desc *op) {
    op->schema = "grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor";
    op->composite = opdi_transformers_grouped_kernel;
}
static int opdi_transformers_grouped_backward_kernel(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *const weight = opd_arg_tensor(call, 1);
    opd_tensor *const offs = opd_arg_tensor(call, 2), *const grad = opd_arg_tensor(call, 3);
    opd_tensor *const left = opd__grouped_mm_full(grad, opd_transpose(weight, -2, -1), offs, NULL, opd_value_none());
    opd_tensor *const right = opd__grouped_mm_full(opd_transpose(input, -2, -1), grad, offs, NULL, opd_value_none());
    return !right || opd_return_tensor(call, left) ? -1 : opd_return_tensor(call, right);
}
OPDI_INTERNAL void opdi_transformers_grouped_backward(opd_op_desc *op) {
    op->schema = "grouped_mm_fallback_backward(Tensor input, Tensor weight, Tensor offs, Tensor grad_output) -> "
        "(Tensor, Tensor)";
    op->composite = opdi_transformers_grouped_backward_kernel;
}
