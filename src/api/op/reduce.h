//----------------------------------------------------------------------------------------------------------------------
//  >>api:op:reduce     sums, extremes, norms, softmax, running ones, sorting
//----------------------------------------------------------------------------------------------------------------------

/* sum: the sum of all, or over dims */
OPD_API opd_tensor *opd_sum(opd_tensor *self);
OPD_API opd_tensor *opd_sum_full(opd_tensor *self, opd_value dtype);
/* sum.dim_IntList: the sum of all, or over dims */
OPD_API opd_tensor *opd_sum_dim(opd_tensor *self, opd_ints dim, bool keepdim);
OPD_API opd_tensor *opd_sum_dim_full(opd_tensor *self, opd_ints dim, bool keepdim, opd_value dtype);
/* nansum: the sum without NaN */
OPD_API opd_tensor *opd_nansum(opd_tensor *self);
OPD_API opd_tensor *opd_nansum_full(opd_tensor *self, opd_value dim, bool keepdim, opd_value dtype);
/* mean: the mean of all, or over dims */
OPD_API opd_tensor *opd_mean(opd_tensor *self);
OPD_API opd_tensor *opd_mean_full(opd_tensor *self, opd_value dtype);
/* mean.dim: the mean of all, or over dims */
OPD_API opd_tensor *opd_mean_dim(opd_tensor *self, opd_ints dim, bool keepdim);
OPD_API opd_tensor *opd_mean_dim_full(opd_tensor *self, opd_ints dim, bool keepdim, opd_value dtype);
/* prod: the product of all, or over dim */
OPD_API opd_tensor *opd_prod(opd_tensor *self);
OPD_API opd_tensor *opd_prod_full(opd_tensor *self, opd_value dtype);
/* prod.dim_int: the product of all, or over dim */
OPD_API opd_tensor *opd_prod_dim(opd_tensor *self, int64_t dim, bool keepdim);
OPD_API opd_tensor *opd_prod_dim_full(opd_tensor *self, int64_t dim, bool keepdim, opd_value dtype);
/* var: variance: the sum of squared deviations by n - correction (1) */
OPD_API opd_tensor *opd_var(opd_tensor *self);
OPD_API opd_tensor *opd_var_full(opd_tensor *self, bool unbiased);
/* std: the root of var */
OPD_API opd_tensor *opd_std(opd_tensor *self);
OPD_API opd_tensor *opd_std_full(opd_tensor *self, bool unbiased);
/* var_mean: var and mean */
OPD_API int opd_var_mean(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_var_mean_full(opd_tensor **rets, opd_tensor *self, bool unbiased);
/* std_mean: std and mean */
OPD_API int opd_std_mean(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_std_mean_full(opd_tensor **rets, opd_tensor *self, bool unbiased);
/* var.dim: variance: the sum of squared deviations by n - correction (1) */
OPD_API opd_tensor *opd_var_dim(opd_tensor *self, opd_ints dim);
OPD_API opd_tensor *opd_var_dim_full(opd_tensor *self, opd_ints dim, bool unbiased, bool keepdim);
/* std.dim: the root of var */
OPD_API opd_tensor *opd_std_dim(opd_tensor *self, opd_ints dim);
OPD_API opd_tensor *opd_std_dim_full(opd_tensor *self, opd_ints dim, bool unbiased, bool keepdim);
/* var_mean.dim: var and mean */
OPD_API int opd_var_mean_dim(opd_tensor **rets, opd_tensor *self, opd_ints dim);
OPD_API int opd_var_mean_dim_full(opd_tensor **rets, opd_tensor *self, opd_ints dim, bool unbiased, bool keepdim);
/* std_mean.dim: std and mean */
OPD_API int opd_std_mean_dim(opd_tensor **rets, opd_tensor *self, opd_ints dim);
OPD_API int opd_std_mean_dim_full(opd_tensor **rets, opd_tensor *self, opd_ints dim, bool unbiased, bool keepdim);
/* var.correction: variance: the sum of squared deviations by n - correction (1) */
OPD_API opd_tensor *opd_var_correction(opd_tensor *self, opd_ints dim, opd_value correction, bool keepdim);
/* std.correction: the root of var */
OPD_API opd_tensor *opd_std_correction(opd_tensor *self, opd_ints dim, opd_value correction, bool keepdim);
/* var_mean.correction: var and mean */
OPD_API int opd_var_mean_correction(opd_tensor **rets, opd_tensor *self, opd_ints dim, opd_value correction,
                                    bool keepdim);
/* std_mean.correction: std and mean */
OPD_API int opd_std_mean_correction(opd_tensor **rets, opd_tensor *self, opd_ints dim, opd_value correction,
                                    bool keepdim);
/* amax: the greatest over dims; ties share the gradient */
OPD_API opd_tensor *opd_amax(opd_tensor *self, opd_ints dim, bool keepdim);
/* amin: the smallest over dims; ties share the gradient */
OPD_API opd_tensor *opd_amin(opd_tensor *self, opd_ints dim, bool keepdim);
/* max: the greatest: of all; over dim, and where; or of two tensors */
OPD_API opd_tensor *opd_max(opd_tensor *self);
/* min: the smallest: of all; over dim, and where; or of two tensors */
OPD_API opd_tensor *opd_min(opd_tensor *self);
/* max.dim: the greatest: of all; over dim, and where; or of two tensors */
OPD_API int opd_max_dim(opd_tensor **rets, opd_tensor *self, int64_t dim, bool keepdim);
/* min.dim: the smallest: of all; over dim, and where; or of two tensors */
OPD_API int opd_min_dim(opd_tensor **rets, opd_tensor *self, int64_t dim, bool keepdim);
/* argmax: where the greatest is: of all (counted through), or along dim */
OPD_API opd_tensor *opd_argmax(opd_tensor *self);
OPD_API opd_tensor *opd_argmax_full(opd_tensor *self, opd_value dim, bool keepdim);
/* argmin: where the smallest is: of all (counted through), or along dim */
OPD_API opd_tensor *opd_argmin(opd_tensor *self);
OPD_API opd_tensor *opd_argmin_full(opd_tensor *self, opd_value dim, bool keepdim);
/* max.other: the greatest: of all; over dim, and where; or of two tensors */
OPD_API opd_tensor *opd_max_other(opd_tensor *self, opd_tensor *other);
/* min.other: the smallest: of all; over dim, and where; or of two tensors */
OPD_API opd_tensor *opd_min_other(opd_tensor *self, opd_tensor *other);
/* aminmax: the smallest and the greatest */
OPD_API int opd_aminmax(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_aminmax_full(opd_tensor **rets, opd_tensor *self, opd_value dim, bool keepdim);
/* value_selecting_reduction_backward: derivative of max, min, median and mode over a dim */
OPD_API opd_tensor *opd_value_selecting_reduction_backward(opd_tensor *grad, int64_t dim, opd_tensor *indices,
                                        opd_ints sizes, bool keepdim);
/* any: whether any is not 0 */
OPD_API opd_tensor *opd_any(opd_tensor *self);
/* all: whether none is 0 */
OPD_API opd_tensor *opd_all(opd_tensor *self);
/* any.dim: whether any is not 0 */
OPD_API opd_tensor *opd_any_dim(opd_tensor *self, int64_t dim, bool keepdim);
/* all.dim: whether none is 0 */
OPD_API opd_tensor *opd_all_dim(opd_tensor *self, int64_t dim, bool keepdim);
/* any.dims: whether any is not 0 */
OPD_API opd_tensor *opd_any_dims(opd_tensor *self, opd_ints dim, bool keepdim);
/* all.dims: whether none is 0 */
OPD_API opd_tensor *opd_all_dims(opd_tensor *self, opd_ints dim, bool keepdim);
/* count_nonzero.dim_IntList: how many are not 0 */
OPD_API opd_tensor *opd_count_nonzero_dim(opd_tensor *self, opd_ints dim);
/* count_nonzero: how many are not 0 */
OPD_API opd_tensor *opd_count_nonzero(opd_tensor *self);
OPD_API opd_tensor *opd_count_nonzero_full(opd_tensor *self, opd_value dim);
/* linalg_vector_norm: (sum |self|^ord)^(1 / ord) over dims */
OPD_API opd_tensor *opd_linalg_vector_norm(opd_tensor *self);
OPD_API opd_tensor *opd_linalg_vector_norm_full(opd_tensor *self, opd_value ord, opd_value dim, bool keepdim,
                                        opd_value dtype);
/* linalg__powsum: sum |self|^ord over dims */
OPD_API opd_tensor *opd_linalg__powsum(opd_tensor *self);
OPD_API opd_tensor *opd_linalg__powsum_full(opd_tensor *self, opd_value ord, opd_ints dim, bool keepdim,
                                        opd_value dtype);
/* renorm: self, with slices along dim whose p-norm is above maxnorm made as long as that */
OPD_API opd_tensor *opd_renorm(opd_tensor *self, opd_value p, int64_t dim, opd_value maxnorm);
OPD_API opd_tensor *opd_renorm_(opd_tensor *self, opd_value p, int64_t dim, opd_value maxnorm);
/* norm.Scalar: (sum |self|^p)^(1 / p) of all */
OPD_API opd_tensor *opd_norm_Scalar(opd_tensor *self, opd_value p);
/* norm.ScalarOpt_dtype: (sum |self|^p)^(1 / p) of all */
OPD_API opd_tensor *opd_norm_dtype(opd_tensor *self, opd_value p, opd_scalar_type dtype);
/* norm.ScalarOpt_dim: (sum |self|^p)^(1 / p) over dims */
OPD_API opd_tensor *opd_norm_dim(opd_tensor *self, opd_value p, opd_ints dim, bool keepdim);
/* norm.ScalarOpt_dim_dtype: (sum |self|^p)^(1 / p) over dims */
OPD_API opd_tensor *opd_norm_dim_dtype(opd_tensor *self, opd_value p, opd_ints dim, bool keepdim,
                                       opd_scalar_type dtype);
/* frobenius_norm.dim: sqrt(sum |self|^2) over dims */
OPD_API opd_tensor *opd_frobenius_norm(opd_tensor *self, opd_ints dim, bool keepdim);
/* dist: the p-norm of self - other */
OPD_API opd_tensor *opd_dist(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_dist_full(opd_tensor *self, opd_tensor *other, opd_value p);
/* logsumexp: log(sum e^self) over dims */
OPD_API opd_tensor *opd_logsumexp(opd_tensor *self, opd_ints dim);
OPD_API opd_tensor *opd_logsumexp_full(opd_tensor *self, opd_ints dim, bool keepdim);
/* special_logsumexp: logsumexp */
OPD_API opd_tensor *opd_special_logsumexp(opd_tensor *self, opd_ints dim, bool keepdim);
/* sum_to_size: the sum over what expand from size would have repeated */
OPD_API opd_tensor *opd_sum_to_size(opd_tensor *self, opd_ints size);
/* nanmean: the mean without NaN */
OPD_API opd_tensor *opd_nanmean(opd_tensor *self);
OPD_API opd_tensor *opd_nanmean_full(opd_tensor *self, opd_value dim, bool keepdim, opd_value dtype);
/* trace: the sum of a matrix's diagonal */
OPD_API opd_tensor *opd_trace(opd_tensor *self);
/* equal: whether sizes and all elements are the same */
OPD_API opd_value opd_equal(opd_tensor *self, opd_tensor *other);
/* isclose: |self - other| <= atol + rtol |other| */
OPD_API opd_tensor *opd_isclose(opd_tensor *self, opd_tensor *other);
OPD_API opd_tensor *opd_isclose_full(opd_tensor *self, opd_tensor *other, double rtol, double atol, bool equal_nan);
/* allclose: whether isclose everywhere */
OPD_API opd_value opd_allclose(opd_tensor *self, opd_tensor *other);
OPD_API opd_value opd_allclose_full(opd_tensor *self, opd_tensor *other, double rtol, double atol, bool equal_nan);
/* nonzero: where elements are not 0: [count, dims] */
OPD_API opd_tensor *opd_nonzero(opd_tensor *self);
/* _softmax: softmax along dim; half_to_float: of halves as floats */
OPD_API opd_tensor *opd__softmax(opd_tensor *self, int64_t dim, bool half_to_float);
/* _log_softmax: log_softmax along dim; half_to_float: of halves as floats */
OPD_API opd_tensor *opd__log_softmax(opd_tensor *self, int64_t dim, bool half_to_float);
/* _softmax_backward_data: derivative of softmax, by its output */
OPD_API opd_tensor *opd__softmax_backward_data(opd_tensor *grad_output, opd_tensor *output, int64_t dim,
                                        opd_scalar_type input_dtype);
/* _log_softmax_backward_data: derivative of log_softmax, by its output */
OPD_API opd_tensor *opd__log_softmax_backward_data(opd_tensor *grad_output, opd_tensor *output, int64_t dim,
                                        opd_scalar_type input_dtype);
/* softmax.int: e^self / sum e^self along dim */
OPD_API opd_tensor *opd_softmax(opd_tensor *self, int64_t dim);
OPD_API opd_tensor *opd_softmax_full(opd_tensor *self, int64_t dim, opd_value dtype);
/* log_softmax.int: self - log(sum e^self) along dim */
OPD_API opd_tensor *opd_log_softmax(opd_tensor *self, int64_t dim);
OPD_API opd_tensor *opd_log_softmax_full(opd_tensor *self, int64_t dim, opd_value dtype);
/* special_softmax: softmax */
OPD_API opd_tensor *opd_special_softmax(opd_tensor *self, int64_t dim);
OPD_API opd_tensor *opd_special_softmax_full(opd_tensor *self, int64_t dim, opd_value dtype);
/* special_log_softmax: log_softmax */
OPD_API opd_tensor *opd_special_log_softmax(opd_tensor *self, int64_t dim);
OPD_API opd_tensor *opd_special_log_softmax_full(opd_tensor *self, int64_t dim, opd_value dtype);
/* diff: n times each element minus the one before, along dim, with prepend and append at the ends */
OPD_API opd_tensor *opd_diff(opd_tensor *self);
OPD_API opd_tensor *opd_diff_full(opd_tensor *self, int64_t n, int64_t dim, opd_tensor *prepend, opd_tensor *append);
/* cumsum: sums up to each element along dim */
OPD_API opd_tensor *opd_cumsum(opd_tensor *self, int64_t dim);
OPD_API opd_tensor *opd_cumsum_full(opd_tensor *self, int64_t dim, opd_value dtype);
OPD_API opd_tensor *opd_cumsum_(opd_tensor *self, int64_t dim);
OPD_API opd_tensor *opd_cumsum_full_(opd_tensor *self, int64_t dim, opd_value dtype);
/* cumprod: products up to each element along dim */
OPD_API opd_tensor *opd_cumprod(opd_tensor *self, int64_t dim);
OPD_API opd_tensor *opd_cumprod_full(opd_tensor *self, int64_t dim, opd_value dtype);
OPD_API opd_tensor *opd_cumprod_(opd_tensor *self, int64_t dim);
OPD_API opd_tensor *opd_cumprod_full_(opd_tensor *self, int64_t dim, opd_value dtype);
/* logcumsumexp: logsumexp up to each element along dim */
OPD_API opd_tensor *opd_logcumsumexp(opd_tensor *self, int64_t dim);
/* cumprod_backward: derivative of cumprod */
OPD_API opd_tensor *opd_cumprod_backward(opd_tensor *grad, opd_tensor *input, int64_t dim, opd_tensor *output);
/* cummax: the greatest up to each element along dim, and where */
OPD_API int opd_cummax(opd_tensor **rets, opd_tensor *self, int64_t dim);
/* cummin: the smallest up to each element along dim, and where */
OPD_API int opd_cummin(opd_tensor **rets, opd_tensor *self, int64_t dim);
/* sort: along dim in order, and where they were; stable: equal ones stay in order */
OPD_API int opd_sort(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_sort_full(opd_tensor **rets, opd_tensor *self, int64_t dim, bool descending);
/* sort.stable: along dim in order, and where they were; stable: equal ones stay in order */
OPD_API int opd_sort_stable(opd_tensor **rets, opd_tensor *self, opd_value stable, int64_t dim, bool descending);
/* topk: the k greatest (largest false: smallest) along dim, and where */
OPD_API int opd_topk(opd_tensor **rets, opd_tensor *self, int64_t k);
OPD_API int opd_topk_full(opd_tensor **rets, opd_tensor *self, int64_t k, int64_t dim, bool largest, bool sorted);
/* kthvalue: the k-th smallest along dim, and where */
OPD_API int opd_kthvalue(opd_tensor **rets, opd_tensor *self, int64_t k);
OPD_API int opd_kthvalue_full(opd_tensor **rets, opd_tensor *self, int64_t k, int64_t dim, bool keepdim);
/* median.dim: the lower median of all, or along dim and where */
OPD_API int opd_median_dim(opd_tensor **rets, opd_tensor *self, int64_t dim, bool keepdim);
/* nanmedian.dim: median without NaN */
OPD_API int opd_nanmedian_dim(opd_tensor **rets, opd_tensor *self, int64_t dim, bool keepdim);
/* mode: the most frequent along dim, and where */
OPD_API int opd_mode(opd_tensor **rets, opd_tensor *self);
OPD_API int opd_mode_full(opd_tensor **rets, opd_tensor *self, int64_t dim, bool keepdim);
/* median: the lower median of all, or along dim and where */
OPD_API opd_tensor *opd_median(opd_tensor *self);
/* nanmedian: median without NaN */
OPD_API opd_tensor *opd_nanmedian(opd_tensor *self);
/* argsort: where sort takes each element from */
OPD_API opd_tensor *opd_argsort(opd_tensor *self);
OPD_API opd_tensor *opd_argsort_full(opd_tensor *self, int64_t dim, bool descending);
/* argsort.stable: where sort takes each element from */
OPD_API opd_tensor *opd_argsort_stable(opd_tensor *self, bool stable, int64_t dim, bool descending);
/* msort: sort along dim 0 */
OPD_API opd_tensor *opd_msort(opd_tensor *self);
/* trapezoid.x: the integral of y along dim by the trapezoidal rule, at the places x */
OPD_API opd_tensor *opd_trapezoid_x(opd_tensor *y, opd_tensor *x);
OPD_API opd_tensor *opd_trapezoid_x_full(opd_tensor *y, opd_tensor *x, int64_t dim);
/* trapezoid.dx: the integral of y along dim by the trapezoidal rule, in steps of dx */
OPD_API opd_tensor *opd_trapezoid_dx(opd_tensor *y);
OPD_API opd_tensor *opd_trapezoid_dx_full(opd_tensor *y, opd_value dx, int64_t dim);
/* trapz.x: trapezoid.x */
OPD_API opd_tensor *opd_trapz_x(opd_tensor *y, opd_tensor *x);
OPD_API opd_tensor *opd_trapz_x_full(opd_tensor *y, opd_tensor *x, int64_t dim);
/* trapz.dx: trapezoid.dx */
OPD_API opd_tensor *opd_trapz_dx(opd_tensor *y);
OPD_API opd_tensor *opd_trapz_dx_full(opd_tensor *y, double dx, int64_t dim);
/* cumulative_trapezoid.x: the integrals up to each element along dim, at the places x */
OPD_API opd_tensor *opd_cumulative_trapezoid_x(opd_tensor *y, opd_tensor *x);
OPD_API opd_tensor *opd_cumulative_trapezoid_x_full(opd_tensor *y, opd_tensor *x, int64_t dim);
/* cumulative_trapezoid.dx: the integrals up to each element along dim, in steps of dx */
OPD_API opd_tensor *opd_cumulative_trapezoid_dx(opd_tensor *y);
OPD_API opd_tensor *opd_cumulative_trapezoid_dx_full(opd_tensor *y, opd_value dx, int64_t dim);
/* gradient.scalarint: derivatives of samples along dims by central differences, in steps of spacing */
OPD_API opd_tensors opd_gradient_scalarint(opd_tensor *self);
OPD_API opd_tensors opd_gradient_scalarint_full(opd_tensor *self, opd_value spacing, opd_value dim, int64_t edge_order);
/* gradient.scalararray: gradient over several dims, in steps of one size */
OPD_API opd_tensors opd_gradient_scalararray(opd_tensor *self, opd_value spacing, opd_ints dim);
OPD_API opd_tensors opd_gradient_scalararray_full(opd_tensor *self, opd_value spacing, opd_ints dim,
                                        int64_t edge_order);
/* gradient.array: gradient over several dims, in steps of 1 */
OPD_API opd_tensors opd_gradient_array(opd_tensor *self, opd_ints dim);
OPD_API opd_tensors opd_gradient_array_full(opd_tensor *self, opd_ints dim, int64_t edge_order);
/* gradient.scalarrayint: gradient, in steps of a size for each dim */
OPD_API opd_tensors opd_gradient_scalarrayint(opd_tensor *self, opd_value spacing);
OPD_API opd_tensors opd_gradient_scalarrayint_full(opd_tensor *self, opd_value spacing, opd_value dim,
                                        int64_t edge_order);
/* gradient.scalarrayarray: gradient over several dims, in steps of a size for each */
OPD_API opd_tensors opd_gradient_scalarrayarray(opd_tensor *self, opd_value spacing, opd_ints dim);
OPD_API opd_tensors opd_gradient_scalarrayarray_full(opd_tensor *self, opd_value spacing, opd_ints dim,
                                        int64_t edge_order);
/* gradient.tensorarrayint: gradient, at places that a vector gives for each dim */
OPD_API opd_tensors opd_gradient_tensorarrayint(opd_tensor *self, opd_tensors spacing);
OPD_API opd_tensors opd_gradient_tensorarrayint_full(opd_tensor *self, opd_tensors spacing, opd_value dim,
                                        int64_t edge_order);
/* gradient.tensorarray: gradient over several dims, at places that a vector gives for each */
OPD_API opd_tensors opd_gradient_tensorarray(opd_tensor *self, opd_tensors spacing, opd_ints dim);
OPD_API opd_tensors opd_gradient_tensorarray_full(opd_tensor *self, opd_tensors spacing, opd_ints dim,
                                        int64_t edge_order);
/* quantile: the values below which parts q of the elements along dim lie */
OPD_API opd_tensor *opd_quantile(opd_tensor *self, opd_tensor *q);
OPD_API opd_tensor *opd_quantile_full(opd_tensor *self, opd_tensor *q, opd_value dim, bool keepdim,
                                      const char *interpolation);
/* quantile.scalar: the value below which the part q of the elements along dim lies */
OPD_API opd_tensor *opd_quantile_scalar(opd_tensor *self, double q);
OPD_API opd_tensor *opd_quantile_scalar_full(opd_tensor *self, double q, opd_value dim, bool keepdim,
                                        const char *interpolation);
/* nanquantile: quantile of those that are numbers */
OPD_API opd_tensor *opd_nanquantile(opd_tensor *self, opd_tensor *q);
OPD_API opd_tensor *opd_nanquantile_full(opd_tensor *self, opd_tensor *q, opd_value dim, bool keepdim,
                                        const char *interpolation);
/* nanquantile.scalar: quantile of those that are numbers */
OPD_API opd_tensor *opd_nanquantile_scalar(opd_tensor *self, double q);
OPD_API opd_tensor *opd_nanquantile_scalar_full(opd_tensor *self, double q, opd_value dim, bool keepdim,
                                        const char *interpolation);
/* cov: covariances of the rows of self, whose columns are observations */
OPD_API opd_tensor *opd_cov(opd_tensor *self);
OPD_API opd_tensor *opd_cov_full(opd_tensor *self, int64_t correction, opd_tensor *fweights, opd_tensor *aweights);
/* corrcoef: correlations of the rows of self */
OPD_API opd_tensor *opd_corrcoef(opd_tensor *self);

