//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:solve      matrices factored, equations solved, eigenvalues, powers of matrices
//----------------------------------------------------------------------------------------------------------------------

/* _linalg_check_errors: fails in PyTorch's words of api_name where info is not 0 */
OPD_API int opd__linalg_check_errors(opd_tensor *info, const char *api_name, bool is_matrix);
/* linalg_cholesky_ex: L with self = L L^T, or with upper L^T; info: 0, or the order of a minor that is not positive */
OPD_API int opd_linalg_cholesky_ex(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_linalg_cholesky_ex_full(opd_tensor **rets, opd_tensor *self, bool upper, bool check_errors);
/* linalg_cholesky: linalg_cholesky_ex, with an error */
OPD_API opd_tensor *opd_linalg_cholesky(opd_tensor *self);
OPD_API opd_tensor *opd_linalg_cholesky_full(opd_tensor *self, bool upper);
/* cholesky: linalg_cholesky */
OPD_API opd_tensor *opd_cholesky(opd_tensor *self);
OPD_API opd_tensor *opd_cholesky_full(opd_tensor *self, bool upper);
/* cholesky_solve: solves A x = self, given the factor input2 of A */
OPD_API opd_tensor *opd_cholesky_solve(opd_tensor *self, opd_tensor *input2);
OPD_API opd_tensor *opd_cholesky_solve_full(opd_tensor *self, opd_tensor *input2, bool upper);
/* cholesky_inverse: the inverse of A, given its factor self */
OPD_API opd_tensor *opd_cholesky_inverse(opd_tensor *self);
OPD_API opd_tensor *opd_cholesky_inverse_full(opd_tensor *self, bool upper);
/* linalg_solve_triangular: solves self x = B, or x self = B, for a triangle */
OPD_API opd_tensor *opd_linalg_solve_triangular(opd_tensor *self, opd_tensor *b, bool upper);
OPD_API opd_tensor *opd_linalg_solve_triangular_full(opd_tensor *self, opd_tensor *b, bool upper, bool left,
                                        bool unitriangular);
/* triangular_solve: solves A x = self for a triangle */
OPD_API int opd_triangular_solve(opd_tensor **rets, opd_tensor *self, opd_tensor *a);
OPD_API int opd_triangular_solve_full(opd_tensor **rets, opd_tensor *self, opd_tensor *a, bool upper, bool transpose,
                                      bool unitriangular);
/* linalg_lu_factor_ex: L (below the diagonal) and U in one, exchanged rows from 1, and info */
OPD_API int opd_linalg_lu_factor_ex(opd_tensor **rets, opd_tensor *a);
OPD_API int opd_linalg_lu_factor_ex_full(opd_tensor **rets, opd_tensor *a, bool pivot, bool check_errors);
/* linalg_lu_factor: linalg_lu_factor_ex, with an error */
OPD_API int opd_linalg_lu_factor(opd_tensor **rets, opd_tensor *a);
OPD_API int opd_linalg_lu_factor_full(opd_tensor **rets, opd_tensor *a, bool pivot);
/* _lu_with_info: linalg_lu_factor_ex */
OPD_API int opd__lu_with_info(opd_tensor **rets, opd_tensor *self);
OPD_API int opd__lu_with_info_full(opd_tensor **rets, opd_tensor *self, bool pivot, bool check_errors);
/* lu_unpack: P, L and U of what linalg_lu_factor gave */
OPD_API int opd_lu_unpack(opd_tensor **rets, opd_tensor *lu_data, opd_tensor *lu_pivots);
OPD_API int opd_lu_unpack_full(opd_tensor **rets, opd_tensor *lu_data, opd_tensor *lu_pivots, bool unpack_data,
                               bool unpack_pivots);
/* linalg_lu: P, L and U with A = P L U */
OPD_API int opd_linalg_lu(opd_tensor **rets, opd_tensor *a);
OPD_API int opd_linalg_lu_full(opd_tensor **rets, opd_tensor *a, bool pivot);
/* linalg_lu_solve: solves A x = B or x A = B, or with A^T, given LU and pivots of A */
OPD_API opd_tensor *opd_linalg_lu_solve(opd_tensor *lu, opd_tensor *pivots, opd_tensor *b);
OPD_API opd_tensor *opd_linalg_lu_solve_full(opd_tensor *lu, opd_tensor *pivots, opd_tensor *b, bool left,
                                        bool adjoint);
/* lu_solve: linalg_lu_solve */
OPD_API opd_tensor *opd_lu_solve(opd_tensor *self, opd_tensor *lu_data, opd_tensor *lu_pivots);
/* _linalg_solve_ex: linalg_solve with A's factors and info */
OPD_API int opd__linalg_solve_ex(opd_tensor **rets, opd_tensor *a, opd_tensor *b);
OPD_API int opd__linalg_solve_ex_full(opd_tensor **rets, opd_tensor *a, opd_tensor *b, bool left, bool check_errors);
/* linalg_solve_ex: linalg_solve with info in place of an error */
OPD_API int opd_linalg_solve_ex(opd_tensor **rets, opd_tensor *a, opd_tensor *b);
OPD_API int opd_linalg_solve_ex_full(opd_tensor **rets, opd_tensor *a, opd_tensor *b, bool left, bool check_errors);
/* linalg_solve: solves A x = B, or x A = B */
OPD_API opd_tensor *opd_linalg_solve(opd_tensor *a, opd_tensor *b);
OPD_API opd_tensor *opd_linalg_solve_full(opd_tensor *a, opd_tensor *b, bool left);
/* linalg_ldl_factor_ex: L and the block-diagonal D in one with P^T self P = L D L^T, exchanged rows, and info */
OPD_API int opd_linalg_ldl_factor_ex(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_linalg_ldl_factor_ex_full(opd_tensor **rets, opd_tensor *self, bool hermitian, bool check_errors);
/* linalg_ldl_factor: linalg_ldl_factor_ex, with an error */
OPD_API int opd_linalg_ldl_factor(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_linalg_ldl_factor_full(opd_tensor **rets, opd_tensor *self, bool hermitian);
/* linalg_ldl_solve: solves A x = B, given LD and pivots of A */
OPD_API opd_tensor *opd_linalg_ldl_solve(opd_tensor *ld, opd_tensor *pivots, opd_tensor *b);
OPD_API opd_tensor *opd_linalg_ldl_solve_full(opd_tensor *ld, opd_tensor *pivots, opd_tensor *b, bool hermitian);
/* linalg_inv_ex: the inverse, and info */
OPD_API int opd_linalg_inv_ex(opd_tensor **rets, opd_tensor *a);
OPD_API int opd_linalg_inv_ex_full(opd_tensor **rets, opd_tensor *a, bool check_errors);
/* linalg_inv: the inverse */
OPD_API opd_tensor *opd_linalg_inv(opd_tensor *a);
/* inverse: linalg_inv */
OPD_API opd_tensor *opd_inverse(opd_tensor *self);
/* _linalg_det: the determinant, with A's factors */
OPD_API int opd__linalg_det(opd_tensor **rets, opd_tensor *a);
/* _linalg_slogdet: sign and logarithm of the determinant, with A's factors */
OPD_API int opd__linalg_slogdet(opd_tensor **rets, opd_tensor *a);
/* linalg_det: the determinant */
OPD_API opd_tensor *opd_linalg_det(opd_tensor *a);
/* det: linalg_det */
OPD_API opd_tensor *opd_det(opd_tensor *self);
/* linalg_slogdet: the determinant's sign, and its absolute value's logarithm */
OPD_API int opd_linalg_slogdet(opd_tensor **rets, opd_tensor *a);
/* slogdet: linalg_slogdet */
OPD_API int opd_slogdet(opd_tensor **rets, opd_tensor *self);
/* logdet: the determinant's logarithm */
OPD_API opd_tensor *opd_logdet(opd_tensor *self);
/* geqrf: R above, reflections below the diagonal, and their factors */
OPD_API int opd_geqrf(opd_tensor **rets, opd_tensor *self);
/* linalg_householder_product: the first columns of Q by reflections that geqrf gave */
OPD_API opd_tensor *opd_linalg_householder_product(opd_tensor *input, opd_tensor *tau);
/* orgqr: linalg_householder_product */
OPD_API opd_tensor *opd_orgqr(opd_tensor *self, opd_tensor *input2);
/* ormqr: Q by reflections times input3, or input3 times Q */
OPD_API opd_tensor *opd_ormqr(opd_tensor *self, opd_tensor *input2, opd_tensor *input3);
OPD_API opd_tensor *opd_ormqr_full(opd_tensor *self, opd_tensor *input2, opd_tensor *input3, bool left, bool transpose);
/* linalg_qr: Q and R with A = Q R; mode 'reduced', 'complete', 'r' */
OPD_API int opd_linalg_qr(opd_tensor **rets, opd_tensor *a);
OPD_API int opd_linalg_qr_full(opd_tensor **rets, opd_tensor *a, const char *mode);
/* qr: linalg_qr */
OPD_API int opd_qr(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_qr_full(opd_tensor **rets, opd_tensor *self, bool some);
/* _linalg_eigh: eigenvalues, smallest first, and eigenvectors in columns, of the triangle UPLO */
OPD_API int opd__linalg_eigh(opd_tensor **rets, opd_tensor *a);
OPD_API int opd__linalg_eigh_full(opd_tensor **rets, opd_tensor *a, const char *uplo, bool compute_v);
/* linalg_eigh: eigenvalues and eigenvectors of a symmetric matrix */
OPD_API int opd_linalg_eigh(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_linalg_eigh_full(opd_tensor **rets, opd_tensor *self, const char *uplo);
/* linalg_eigvalsh: the eigenvalues of a symmetric matrix */
OPD_API opd_tensor *opd_linalg_eigvalsh(opd_tensor *self);
OPD_API opd_tensor *opd_linalg_eigvalsh_full(opd_tensor *self, const char *uplo);
/* linalg_eig: eigenvalues and eigenvectors of any matrix, which are complex */
OPD_API int opd_linalg_eig(opd_tensor **rets, opd_tensor *self);
/* _linalg_eigvals: the eigenvalues of any matrix */
OPD_API opd_tensor *opd__linalg_eigvals(opd_tensor *self);
/* linalg_eigvals: the eigenvalues of any matrix, which are complex */
OPD_API opd_tensor *opd_linalg_eigvals(opd_tensor *self);
/* _linalg_svd: U, S and V^T with A = U diag(S) V^T, the largest first */
OPD_API int opd__linalg_svd(opd_tensor **rets, opd_tensor *a);
OPD_API int opd__linalg_svd_full(opd_tensor **rets, opd_tensor *a, bool full_matrices, bool compute_uv,
                                 const char *driver);
/* linalg_svd: _linalg_svd */
OPD_API int opd_linalg_svd(opd_tensor **rets, opd_tensor *a);
OPD_API int opd_linalg_svd_full(opd_tensor **rets, opd_tensor *a, bool full_matrices, const char *driver);
/* linalg_svdvals: the singular values */
OPD_API opd_tensor *opd_linalg_svdvals(opd_tensor *a);
OPD_API opd_tensor *opd_linalg_svdvals_full(opd_tensor *a, const char *driver);
/* linalg_cross: the vector product along dim */
OPD_API opd_tensor *opd_linalg_cross(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_linalg_cross_full(opd_tensor *self, opd_tensor *other, int64_t dim);
/* cross: linalg_cross, along the first dim of size 3 where none is given */
OPD_API opd_tensor *opd_cross(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_cross_full(opd_tensor *self, opd_tensor *other, opd_value dim);
/* linalg_vecdot: the sum of conj(x) * y along dim */
OPD_API opd_tensor *opd_linalg_vecdot(opd_tensor *x, opd_tensor *y);
OPD_API opd_tensor *opd_linalg_vecdot_full(opd_tensor *x, opd_tensor *y, int64_t dim);
/* linalg_matrix_power: the n-th power of a matrix, of its inverse where n < 0 */
OPD_API opd_tensor *opd_linalg_matrix_power(opd_tensor *self, int64_t n);
/* matrix_power: linalg_matrix_power */
OPD_API opd_tensor *opd_matrix_power(opd_tensor *self, int64_t n);
/* linalg_vander: powers 0 to N - 1 of x along a new last dim */
OPD_API opd_tensor *opd_linalg_vander(opd_tensor *x);
OPD_API opd_tensor *opd_linalg_vander_full(opd_tensor *x, opd_value n);
/* vander: powers of x in columns, the highest first or increasing */
OPD_API opd_tensor *opd_vander(opd_tensor *x);
OPD_API opd_tensor *opd_vander_full(opd_tensor *x, opd_value n, bool increasing);
/* linalg_matmul: matmul */
OPD_API opd_tensor *opd_linalg_matmul(opd_tensor *self, opd_tensor *other);
/* linalg_tensorinv: the inverse of a map between the first ind dims and the rest */
OPD_API opd_tensor *opd_linalg_tensorinv(opd_tensor *self);
OPD_API opd_tensor *opd_linalg_tensorinv_full(opd_tensor *self, int64_t ind);
/* linalg_matrix_norm: the norm of order 1, 2 or infinity of matrices, or with a minus what is least in place of most */
OPD_API opd_tensor *opd_linalg_matrix_norm(opd_tensor *self, opd_value ord);
OPD_API opd_tensor *opd_linalg_matrix_norm_full(opd_tensor *self, opd_value ord, opd_ints dim, bool keepdim,
                                        opd_value dtype);
/* linalg_matrix_norm.str_ord: the norm 'fro', or 'nuc', the sum of the singular values */
OPD_API opd_tensor *opd_linalg_matrix_norm_str_ord(opd_tensor *self);
OPD_API opd_tensor *opd_linalg_matrix_norm_str_ord_full(opd_tensor *self, const char *ord, opd_ints dim, bool keepdim,
                                        opd_value dtype);
/* linalg_norm: linalg_vector_norm, or with an order linalg_matrix_norm where dims are two */
OPD_API opd_tensor *opd_linalg_norm(opd_tensor *self);
OPD_API opd_tensor *opd_linalg_norm_full(opd_tensor *self, opd_value ord, opd_ints dim, bool keepdim, opd_value dtype);
/* linalg_norm.ord_str: linalg_matrix_norm, over both dims or two of them */
OPD_API opd_tensor *opd_linalg_norm_ord_str(opd_tensor *self, const char *ord);
OPD_API opd_tensor *opd_linalg_norm_ord_str_full(opd_tensor *self, const char *ord, opd_ints dim, bool keepdim,
                                        opd_value dtype);
/* nuclear_norm: the sum of the singular values */
OPD_API opd_tensor *opd_nuclear_norm(opd_tensor *self);
OPD_API opd_tensor *opd_nuclear_norm_full(opd_tensor *self, bool keepdim);
/* nuclear_norm.dim: the sum of the singular values of the matrices in dims */
OPD_API opd_tensor *opd_nuclear_norm_dim(opd_tensor *self, opd_ints dim);
OPD_API opd_tensor *opd_nuclear_norm_dim_full(opd_tensor *self, opd_ints dim, bool keepdim);
/* linalg_cond: the largest singular value over the smallest, or norm p of a matrix times that of its inverse */
OPD_API opd_tensor *opd_linalg_cond(opd_tensor *self);
OPD_API opd_tensor *opd_linalg_cond_full(opd_tensor *self, opd_value p);
/* linalg_cond.p_str: norm 'fro' or 'nuc' of a matrix times that of its inverse */
OPD_API opd_tensor *opd_linalg_cond_p_str(opd_tensor *self, const char *p);
/* linalg_matrix_rank: how many singular values are above tol */
OPD_API opd_tensor *opd_linalg_matrix_rank(opd_tensor *self, double tol);
OPD_API opd_tensor *opd_linalg_matrix_rank_full(opd_tensor *self, double tol, bool hermitian);
/* linalg_matrix_rank.tol_tensor: how many singular values are above tol */
OPD_API opd_tensor *opd_linalg_matrix_rank_tol_tensor(opd_tensor *input, opd_tensor *tol);
OPD_API opd_tensor *opd_linalg_matrix_rank_tol_tensor_full(opd_tensor *input, opd_tensor *tol, bool hermitian);
/* linalg_matrix_rank.atol_rtol_float: how many singular values are above atol and rtol times the largest */
OPD_API opd_tensor *opd_linalg_matrix_rank_atol_rtol_float(opd_tensor *self);
OPD_API opd_tensor *opd_linalg_matrix_rank_atol_rtol_float_full(opd_tensor *self, opd_value atol, opd_value rtol,
                                        bool hermitian);
/* linalg_matrix_rank.atol_rtol_tensor: how many singular values are above atol and rtol times the largest */
OPD_API opd_tensor *opd_linalg_matrix_rank_atol_rtol_tensor(opd_tensor *input);
OPD_API opd_tensor *opd_linalg_matrix_rank_atol_rtol_tensor_full(opd_tensor *input, opd_tensor *atol, opd_tensor *rtol,
                                        bool hermitian);
/* linalg_pinv.atol_rtol_tensor: the pseudo-inverse, by singular values above atol and rtol times the largest */
OPD_API opd_tensor *opd_linalg_pinv_atol_rtol_tensor(opd_tensor *self);
OPD_API opd_tensor *opd_linalg_pinv_atol_rtol_tensor_full(opd_tensor *self, opd_tensor *atol, opd_tensor *rtol,
                                        bool hermitian);
/* linalg_pinv.atol_rtol_float: the pseudo-inverse, by singular values above atol and rtol times the largest */
OPD_API opd_tensor *opd_linalg_pinv_atol_rtol_float(opd_tensor *self);
OPD_API opd_tensor *opd_linalg_pinv_atol_rtol_float_full(opd_tensor *self, opd_value atol, opd_value rtol,
                                        bool hermitian);
/* linalg_pinv: the pseudo-inverse, by singular values above rcond times the largest */
OPD_API opd_tensor *opd_linalg_pinv(opd_tensor *self, double rcond);
OPD_API opd_tensor *opd_linalg_pinv_full(opd_tensor *self, double rcond, bool hermitian);
/* linalg_pinv.rcond_tensor: the pseudo-inverse, by singular values above rcond times the largest */
OPD_API opd_tensor *opd_linalg_pinv_rcond_tensor(opd_tensor *self, opd_tensor *rcond);
OPD_API opd_tensor *opd_linalg_pinv_rcond_tensor_full(opd_tensor *self, opd_tensor *rcond, bool hermitian);
/* pinverse: linalg_pinv */
OPD_API opd_tensor *opd_pinverse(opd_tensor *self);
OPD_API opd_tensor *opd_pinverse_full(opd_tensor *self, double rcond);
/* linalg_multi_dot: the product of matrices in the cheapest order; the first and the last may be vectors */
OPD_API opd_tensor *opd_linalg_multi_dot(opd_tensors tensors);
/* chain_matmul: the product of matrices in the cheapest order */
OPD_API opd_tensor *opd_chain_matmul(opd_tensors matrices);
/* linalg_matrix_exp: the exponential of a matrix */
OPD_API opd_tensor *opd_linalg_matrix_exp(opd_tensor *self);
/* matrix_exp: linalg_matrix_exp */
OPD_API opd_tensor *opd_matrix_exp(opd_tensor *self);
/* linalg_tensorsolve: solves self x = other, where self maps its last dims to the first */
OPD_API opd_tensor *opd_linalg_tensorsolve(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_linalg_tensorsolve_full(opd_tensor *self, opd_tensor *other, opd_ints dims);
/* svd: linalg_svd with V in place of its transpose, and some in place of full_matrices */
OPD_API int opd_svd(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_svd_full(opd_tensor **rets, opd_tensor *self, bool some, bool compute_uv);
/* linalg_lstsq: x with the least |self x - b|, its squares, rank and singular values; driver 'gels' for full rank */
OPD_API int opd_linalg_lstsq(opd_tensor **rets, opd_tensor *self, opd_tensor *b);
OPD_API int opd_linalg_lstsq_full(opd_tensor **rets, opd_tensor *self, opd_tensor *b, opd_value rcond,
                                  const char *driver);

