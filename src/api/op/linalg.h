//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:linalg     products of matrices
//----------------------------------------------------------------------------------------------------------------------

/* mm: the product of two matrices */
OPD_API opd_tensor *opd_mm(opd_tensor *self, opd_tensor *mat2);
/* mm.dtype: mm with a result of float32 of halves, or of their own dtype */
OPD_API opd_tensor *opd_mm_dtype(opd_tensor *self, opd_tensor *mat2, opd_scalar_type out_dtype);
/* bmm: products of two batches of matrices */
OPD_API opd_tensor *opd_bmm(opd_tensor *self, opd_tensor *mat2);
/* bmm.dtype: bmm with a result of float32 of halves, or of their own dtype */
OPD_API opd_tensor *opd_bmm_dtype(opd_tensor *self, opd_tensor *mat2, opd_scalar_type out_dtype);
/* addmm: beta * self + alpha * mat1 mat2 */
OPD_API opd_tensor *opd_addmm(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2);
OPD_API opd_tensor *opd_addmm_full(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2, opd_value beta,
                                   opd_value alpha);
OPD_API opd_tensor *opd_addmm_(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2);
OPD_API opd_tensor *opd_addmm_full_(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2, opd_value beta,
                                    opd_value alpha);
/* addmm.dtype: addmm with a result of float32 of halves, or of their own dtype */
OPD_API opd_tensor *opd_addmm_dtype(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2, opd_scalar_type out_dtype);
OPD_API opd_tensor *opd_addmm_dtype_full(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2,
                                        opd_scalar_type out_dtype, opd_value beta, opd_value alpha);
/* _addmm_activation: relu, or gelu, of addmm */
OPD_API opd_tensor *opd__addmm_activation(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2);
OPD_API opd_tensor *opd__addmm_activation_full(opd_tensor *self, opd_tensor *mat1, opd_tensor *mat2, opd_value beta,
                                        opd_value alpha, bool use_gelu);
/* _int_mm: the product of two matrices of bytes, in int32 */
OPD_API opd_tensor *opd__int_mm(opd_tensor *self, opd_tensor *mat2);
/* baddbmm: beta * self + alpha * bmm(batch1, batch2) */
OPD_API opd_tensor *opd_baddbmm(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2);
OPD_API opd_tensor *opd_baddbmm_full(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2, opd_value beta,
                                     opd_value alpha);
OPD_API opd_tensor *opd_baddbmm_(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2);
OPD_API opd_tensor *opd_baddbmm_full_(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2, opd_value beta,
                                      opd_value alpha);
/* baddbmm.dtype: baddbmm with a result of float32 of halves, or of their own dtype */
OPD_API opd_tensor *opd_baddbmm_dtype(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2,
                                      opd_scalar_type out_dtype);
OPD_API opd_tensor *opd_baddbmm_dtype_full(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2,
                                        opd_scalar_type out_dtype, opd_value beta, opd_value alpha);
/* addbmm: beta * self + alpha * sum of bmm(batch1, batch2) */
OPD_API opd_tensor *opd_addbmm(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2);
OPD_API opd_tensor *opd_addbmm_full(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2, opd_value beta,
                                    opd_value alpha);
OPD_API opd_tensor *opd_addbmm_(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2);
OPD_API opd_tensor *opd_addbmm_full_(opd_tensor *self, opd_tensor *batch1, opd_tensor *batch2, opd_value beta,
                                     opd_value alpha);
/* mv: a matrix times a vector */
OPD_API opd_tensor *opd_mv(opd_tensor *self, opd_tensor *vec);
/* addmv: beta * self + alpha * mat vec */
OPD_API opd_tensor *opd_addmv(opd_tensor *self, opd_tensor *mat, opd_tensor *vec);
OPD_API opd_tensor *opd_addmv_full(opd_tensor *self, opd_tensor *mat, opd_tensor *vec, opd_value beta, opd_value alpha);
OPD_API opd_tensor *opd_addmv_(opd_tensor *self, opd_tensor *mat, opd_tensor *vec);
OPD_API opd_tensor *opd_addmv_full_(opd_tensor *self, opd_tensor *mat, opd_tensor *vec, opd_value beta,
                                    opd_value alpha);
/* dot: the inner product of two vectors */
OPD_API opd_tensor *opd_dot(opd_tensor *self, opd_tensor *tensor);
/* vdot: dot, self complex conjugate */
OPD_API opd_tensor *opd_vdot(opd_tensor *self, opd_tensor *other);
/* outer: self_i * vec2_j */
OPD_API opd_tensor *opd_outer(opd_tensor *self, opd_tensor *vec2);
/* ger: outer */
OPD_API opd_tensor *opd_ger(opd_tensor *self, opd_tensor *vec2);
/* addr: beta * self + alpha * outer(vec1, vec2) */
OPD_API opd_tensor *opd_addr(opd_tensor *self, opd_tensor *vec1, opd_tensor *vec2);
OPD_API opd_tensor *opd_addr_full(opd_tensor *self, opd_tensor *vec1, opd_tensor *vec2, opd_value beta,
                                  opd_value alpha);
OPD_API opd_tensor *opd_addr_(opd_tensor *self, opd_tensor *vec1, opd_tensor *vec2);
OPD_API opd_tensor *opd_addr_full_(opd_tensor *self, opd_tensor *vec1, opd_tensor *vec2, opd_value beta,
                                   opd_value alpha);
/* matmul: the product by the number of dims: dot, mv, mm, or batches broadcast */
OPD_API opd_tensor *opd_matmul(opd_tensor *self, opd_tensor *other);
/* einsum: sums of products of elements, by letters: "ij,jk->ik"; in an order that saves work, or by path */
OPD_API opd_tensor *opd_einsum(const char *equation, opd_tensors tensors);
OPD_API opd_tensor *opd_einsum_full(const char *equation, opd_tensors tensors, opd_ints path);
/* linear: input weight^T + bias */
OPD_API opd_tensor *opd_linear(opd_tensor *input, opd_tensor *weight);
OPD_API opd_tensor *opd_linear_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias);
/* tensordot: the sum over dims_self of self and dims_other of other */
OPD_API opd_tensor *opd_tensordot(opd_tensor *self, opd_tensor *other, opd_ints dims_self, opd_ints dims_other);
/* inner: the sum over the last dims */
OPD_API opd_tensor *opd_inner(opd_tensor *self, opd_tensor *other);
/* kron: every element of self times all of other */
OPD_API opd_tensor *opd_kron(opd_tensor *self, opd_tensor *other);
/* norm_except_dim: norms over all dims but dim; -1: over all */
OPD_API opd_tensor *opd_norm_except_dim(opd_tensor *v);
OPD_API opd_tensor *opd_norm_except_dim_full(opd_tensor *v, int64_t pow, int64_t dim);

/* _trilinear: the sum over sumdim of i1 * i2 * i3, of size 1 in the dims of their expand */
OPD_API opd_tensor *opd__trilinear(opd_tensor *i1, opd_tensor *i2, opd_tensor *i3, opd_ints expand1, opd_ints expand2,
                                   opd_ints expand3, opd_ints sumdim);
OPD_API opd_tensor *opd__trilinear_full(opd_tensor *i1, opd_tensor *i2, opd_tensor *i3, opd_ints expand1,
                                        opd_ints expand2, opd_ints expand3, opd_ints sumdim, int64_t unroll_dim);
/* bilinear: input1 weight[k] input2 + bias for each k */
OPD_API opd_tensor *opd_bilinear(opd_tensor *input1, opd_tensor *input2, opd_tensor *weight);
OPD_API opd_tensor *opd_bilinear_full(opd_tensor *input1, opd_tensor *input2, opd_tensor *weight, opd_tensor *bias);

