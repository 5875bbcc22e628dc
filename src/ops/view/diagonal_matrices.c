#include "../ops.h"

//== diagonal matrices =================================================================================================

/* diag_embed: makes a tensor of zeros with self's last dim on the diagonal number `offset` of the new dims dim1 and
   dim2. */
static int opdi_diag_embed_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    int dim = opdi_dim_of(opd_arg_int(call, 2), self->ndim + 1),
        b = dim < 0 ? -1 : opdi_dim_of(opd_arg_int(call, 3), self->ndim + 1);
    int64_t offset = opd_arg_int(call, 1);
    opdi_geometry geometry;
    if (dim < 0 || b < 0) { return -1; }
    if (self->ndim == 0) { return opdi_no_dims_fail(-1); }
    if (dim == b) { return opd_fail(OPD_ERROR_SHAPE, "diagonal dimensions cannot be identical %d, %d", dim, b); }
    opdi_geometry_of(&geometry, self);
    int64_t length = geometry.sizes[geometry.ndim - 1];
    if (offset > INT64_MAX / 2 - length || offset < -(INT64_MAX / 2 - length)) {
        return opd_fail(OPD_ERROR_SHAPE, "with offset %lld, the result does not fit into memory", (long long)offset);
    }
    length += offset < 0 ? -offset : offset;
    opdi_geometry_remove(&geometry, geometry.ndim - 1);
    opdi_geometry_insert(&geometry, OPDI_MIN(dim, b), length, 0);
    opdi_geometry_insert(&geometry, OPDI_MAX(dim, b), length, 0);
    opd_tensor *out = opdi_zero_result(call, opd_ints_of(geometry.sizes, geometry.ndim), (opd_scalar_type)self->dtype);
    return out ? opdi_put_at(out, &geometry, opdi_diagonal_geometry(out, offset, dim, b, &geometry), self) : -1;
}
static int opdi_diag_embed_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_diagonal_full(opd_bw_grad(bw, 0), opd_bw_value(bw, 1).u.i, opd_bw_value(bw, 2).u.i,
                                                  opd_bw_value(bw, 3).u.i));
}
/* opd_diag_embed: zeros with the last dim of self on the diagonal of new dims dim1 and dim2 */
OPDI_OP(diag_embed) {
    op->schema = "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor";
    op->any = opdi_diag_embed_kernel; op->backward = opdi_diag_embed_backward;
    op->vmap = OPD_BATCH_SHIFT_DIM;
    op->out = "diag_embed.out";
    op->cases = "[3]; [2,3], 1; [2,3], -1, 0, 2";
}

static opd_tensor *opdi_diag_of(opd_tensor *tensor, int64_t offset) {
    if (tensor->ndim == 1) { return opd_diag_embed_full(tensor, offset, 0, 1); }
    if (tensor->ndim == 2) { return opd_diagonal_copy_full(tensor, offset, 0, 1); }
    (void)opd_fail(OPD_ERROR_SHAPE, "diag(): Supports 1D or 2D tensors. Got %dD", tensor->ndim);
    return NULL;
}
static int opdi_diag_kernel(opd_call *call) {
    return opd_return_tensor(call, opdi_diag_of(opd_arg_tensor(call, 0), opd_arg_int(call, 1)));
}
static int opdi_diagflat_kernel(opd_call *call) {
    opd_tensor *tensor = opd_ravel(opd_arg_tensor(call, 0));
    return tensor ? opd_return_tensor(call, opdi_diag_of(tensor, opd_arg_int(call, 1))) : -1;
}
/* opd_diag: the diagonal of a matrix, or a matrix that has the vector self on its diagonal */
OPDI_OP(diag) {
    op->schema = "diag(Tensor self, int diagonal=0) -> Tensor";
    op->composite = opdi_diag_kernel;
    op->out = "diag.out";
    op->cases = "[3]; [3,4], 1";
}
/* opd_diagflat: a matrix that has all elements of self on its diagonal */
OPDI_OP(diagflat) {
    op->schema = "diagflat(Tensor self, int offset=0) -> Tensor";
    op->composite = opdi_diagflat_kernel;
    op->cases = "[2,2]";
}

/* Returns tensor with at least the number of dims in the operator's name (atleast_1d, atleast_2d, atleast_3d).  If
   tensor has fewer dims, adds dims of size 1. */
static opd_tensor *opdi_at_least(const opd_call *call, opd_tensor *tensor) {
    static const int64_t ones[3] = {1, 1, 1};
    const int want = call->op->schema->name[8] - '0';
    if (!tensor || tensor->ndim >= want) { return tensor; }
    if (tensor->ndim == 0) { return opd_reshape(tensor, opd_ints_of(ones, want)); }
    if (tensor->ndim == 1) { tensor = opd_unsqueeze(tensor, 0); }
    return want == 3 && tensor ? opd_unsqueeze(tensor, -1) : tensor;
}
static int opdi_at_least_kernel(opd_call *call) {
    return opd_return_tensor(call, opdi_at_least(call, opd_arg_tensor(call, 0)));
}
static int opdi_at_least_all_kernel(opd_call *call) {
    opd_tensors in = opd_arg_tensors(call, 0);
    opd_tensor **list = opdi_list_alloc(in.n);
    for (int64_t i = 0; list && i < in.n; i++) { if (!(list[i] = opdi_at_least(call, in.data[i]))) { return -1; } }
    return list ? opd_return_tensors(call, list, in.n) : -1;
}
/* opd_atleast_1d: self with at least one dim */
OPDI_OP(atleast_1d) {
    op->schema = "atleast_1d(Tensor self) -> Tensor";
    op->composite = opdi_at_least_kernel;
    op->tags = OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING;
    op->cases = "[]; [2]";
}
/* opd_atleast_2d: self with at least two dims */
OPDI_OP(atleast_2d) {
    op->schema = "atleast_2d(Tensor self) -> Tensor";
    op->composite = opdi_at_least_kernel;
    op->tags = OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING;
    op->cases = "[]; [2]";
}
/* opd_atleast_3d: self with at least three dims */
OPDI_OP(atleast_3d) {
    op->schema = "atleast_3d(Tensor self) -> Tensor";
    op->composite = opdi_at_least_kernel;
    op->tags = OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING;
    op->cases = "[]; [2]; [2,3]";
}
/* opd_atleast_1d_Sequence: each of the tensors with at least one dim */
OPDI_OP(atleast_1d_Sequence) {
    op->schema = "atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]";
    op->composite = opdi_at_least_all_kernel;
    op->cases = "{[],[2]}";
}
/* opd_atleast_2d_Sequence: each of the tensors with at least two dims */
OPDI_OP(atleast_2d_Sequence) {
    op->schema = "atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]";
    op->composite = opdi_at_least_all_kernel;
    op->cases = "{[],[2]}";
}
/* opd_atleast_3d_Sequence: each of the tensors with at least three dims */
OPDI_OP(atleast_3d_Sequence) {
    op->schema = "atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]";
    op->composite = opdi_at_least_all_kernel;
    op->cases = "{[],[2]}";
}
