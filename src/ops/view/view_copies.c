#include "../ops.h"

//== operators that return copies of views =============================================================================

/* The kernel of operators such as "aten::select_copy.int": calls "aten::select.int" and returns a contiguous copy of
   its result, or copies of its list of results.  view_copy calls reshape. */
OPDI_INTERNAL int opdi_view_copy_kernel(opd_call *call) {
    char name[96];
    const char *own = call->op->name, *at = strstr(own, "_copy");
    const opd_value rows = opd_value_int(OPDI_FORMAT_CONTIGUOUS);
    opd_value got;
    opd_tensor **list;
    if (!at || strlen(own) >= sizeof name) {
        return opd_fail(OPD_ERROR_KERNEL, "this operator is not the copy of a view");
    }
    memcpy(name, own, (size_t)(at - own));
    strcpy(name + (at - own), at + 5);
    if (strcmp(name, "aten::view") == 0) { strcpy(name, "aten::reshape"); }
    if (opd_call_all(opd_find(name), &got, call->args, call->op->nargs)) { return -1; }
    if (got.tag == OPD_TAG_TENSOR) { return opd_return_tensor(call, opd_clone_full(got.u.t, rows)); }
    if (!(list = opdi_list_alloc(got.n))) { return -1; }
    for (int32_t i = 0; i < got.n; i++) { if (!(list[i] = opd_clone_full(got.u.tensors[i], rows))) { return -1; } }
    return opd_return_tensors(call, list, got.n);
}
/* opd_view_copy: view that returns a copy */
OPDI_OP(view_copy) {
    op->schema = "view_copy(Tensor self, SymInt[] size) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(reshape);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "view_copy.out";
    op->cases = "[2,3], (3,2)";
}
/* opd_view_copy_dtype: view.dtype that returns a copy */
OPDI_OP(view_copy_dtype) {
    op->schema = "view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(view_dtype);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "view_copy.dtype_out";
    op->cases = "[2,4]i5, 7";
}
/* opd_reshape_alias_copy: _reshape_alias that returns a copy */
OPDI_OP(_reshape_alias_copy) {
    op->schema = "_reshape_alias_copy(Tensor self, SymInt[] size, SymInt[] stride) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(_reshape_alias);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "_reshape_alias_copy.out";
    op->cases = "[2,3], (3,2), (2,1)";
}
/* opd_expand_copy: expand that returns a copy */
OPDI_OP(expand_copy) {
    op->schema = "expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(expand);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "expand_copy.out";
    op->cases = "[3], (2,3)";
}
/* opd_transpose_copy: transpose that returns a copy */
OPDI_OP(transpose_copy_int) {
    op->schema = "transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(transpose_int);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "transpose_copy.int_out";
    op->cases = "[2,3], 0, 1";
}
/* opd_t_copy: t that returns a copy */
OPDI_OP(t_copy) {
    op->schema = "t_copy(Tensor self) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(t);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "t_copy.out";
    op->cases = "[2,3]";
}
/* opd_permute_copy: permute that returns a copy */
OPDI_OP(permute_copy) {
    op->schema = "permute_copy(Tensor self, int[] dims) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(permute);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "permute_copy.out";
    op->cases = "[2,3], (1,0)";
}
/* opd_select_copy: select that returns a copy */
OPDI_OP(select_copy_int) {
    op->schema = "select_copy.int(Tensor self, int dim, SymInt index) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(select_int);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "select_copy.int_out";
    op->cases = "[2,3], 0, 1";
}
/* opd_slice_copy(self, dim, start, end, step): slice that returns a copy */
OPDI_OP(slice_copy_Tensor) {
    op->schema = "slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> "
        "Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(slice_Tensor);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "slice_copy.Tensor_out";
    op->cases = "[4,3], 0, 1, 3";
}
/* opd_unsqueeze_copy: unsqueeze that returns a copy */
OPDI_OP(unsqueeze_copy) {
    op->schema = "unsqueeze_copy(Tensor self, int dim) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(unsqueeze);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "unsqueeze_copy.out";
    op->cases = "[2,3], 1";
}
/* opd_squeeze_copy: squeeze that returns a copy */
OPDI_OP(squeeze_copy) {
    op->schema = "squeeze_copy(Tensor self) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(squeeze);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "squeeze_copy.out";
    op->cases = "[2,1,3]";
}
/* opd_squeeze_copy_dim: squeeze.dim that returns a copy */
OPDI_OP(squeeze_copy_dim) {
    op->schema = "squeeze_copy.dim(Tensor self, int dim) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(squeeze_dim);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "squeeze_copy.dim_out";
    op->cases = "[2,1,3], 1";
}
/* opd_squeeze_copy_dims: squeeze.dims that returns a copy */
OPDI_OP(squeeze_copy_dims) {
    op->schema = "squeeze_copy.dims(Tensor self, int[] dim) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(squeeze_dims);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "squeeze_copy.dims_out";
    op->cases = "[2,1,3,1], (1,-1)";
}
/* opd_detach_copy: detach that returns a copy */
OPDI_OP(detach_copy) {
    op->schema = "detach_copy(Tensor self) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(detach);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "detach_copy.out";
    op->cases = "[2,3]";
}
/* opd_alias_copy: alias that returns a copy */
OPDI_OP(alias_copy) {
    op->schema = "alias_copy(Tensor self) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(alias);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "alias_copy.out";
    op->cases = "[2,3]";
}
/* opd_as_strided_copy: as_strided that returns a copy */
OPDI_OP(as_strided_copy) {
    op->schema = "as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(as_strided);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "as_strided_copy.out";
    op->cases = "[3,4], (2,2), (4,1)";
}
/* opd_diagonal_copy: diagonal that returns a copy */
OPDI_OP(diagonal_copy) {
    op->schema = "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(diagonal);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "diagonal_copy.out";
    op->cases = "[3,4]";
}
/* opd_unfold_copy: unfold that returns a copy */
OPDI_OP(unfold_copy) {
    op->schema = "unfold_copy(Tensor self, int dimension, int size, int step) -> Tensor";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(unfold);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "unfold_copy.out";
    op->cases = "[5], 0, 3, 1";
}
/* opd_split_copy: split that returns copies */
OPDI_OP(split_copy_Tensor) {
    op->schema = "split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(split_Tensor);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "split_copy.Tensor_out";
    op->cases = "[5,2], 2";
}
/* opd_split_with_sizes_copy: split_with_sizes that returns copies */
OPDI_OP(split_with_sizes_copy) {
    op->schema = "split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(split_with_sizes);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "split_with_sizes_copy.out";
    op->cases = "[5,2], (2,3)";
}
/* opd_unbind_copy: unbind that returns copies */
OPDI_OP(unbind_copy_int) {
    op->schema = "unbind_copy.int(Tensor self, int dim=0) -> Tensor[]";
    op->composite = opdi_view_copy_kernel;
    OPDI_NEEDS(unbind_int);
    op->tags = OPD_OPTAG_VIEW_COPY;
    op->out = "unbind_copy.int_out";
    op->cases = "[2,3]";
}
