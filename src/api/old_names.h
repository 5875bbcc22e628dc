//----------------------------------------------------------------------------------------------------------------------
//  >>api:old_names  names of version 0.4, which the next version removes
//
//  Programs that use these names compile, with a warning that says the new name.  OPD_NO_OLD_NAMES leaves them out.
//----------------------------------------------------------------------------------------------------------------------

#ifdef __cplusplus
extern "C" {
#endif
/* Functions whose parameters or results were others in version 0.4: the transforms had no length of the array of
   outputs, the outputs of opd_autograd_apply stood before its inputs, two functions that print returned buf, and
   opd_op_list returned 0 after an error.  Only plug-ins of version 0.4 call these functions, through the table of
   functions. */
OPD_API const char *opdi_old_device_print(opd_device device, char *buf, size_t cap);
OPD_API const char *opdi_old_keyset_print(opd_keyset set, char *buf, size_t cap);
OPD_API size_t opdi_old_op_list(const opd_op_filter *filter, opd_op **ops, size_t cap);
OPD_API int opdi_old_autograd_apply(const opd_autograd_function *fn, opd_value *outputs, int cap,
                                   const opd_value *inputs, int count);
OPD_API int opdi_old_vmap(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                         const opd_vmap_options *options, opd_tensor **outputs);
OPD_API int opdi_old_grad(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                         const opd_transform_options *options, opd_tensor **outputs);
OPD_API int opdi_old_grad_and_value(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                                   const opd_transform_options *options, opd_tensor **outputs);
OPD_API int opdi_old_jacrev(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                           const opd_transform_options *options, opd_tensor **outputs);
OPD_API int opdi_old_jacfwd(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                           const opd_transform_options *options, opd_tensor **outputs);
OPD_API int opdi_old_hessian(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                            const opd_transform_options *options, opd_tensor **outputs);
OPD_API int opdi_old_jvp(opd_transform_fn fn, void *user, opd_tensor *const *primals, opd_tensor *const *tangents,
                        int count, const opd_transform_options *options, opd_tensor **outputs,
                        opd_tensor **out_tangents);
OPD_API int opdi_old_vjp(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
                        const opd_transform_options *options, opd_tensor **outputs, opd_derivative **vjp);
OPD_API int opdi_old_linearize(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
                              const opd_transform_options *options, opd_tensor **outputs, opd_derivative **jvp);
OPD_API int opdi_old_derivative_call(opd_derivative *derivative, opd_tensor *const *in, int count, unsigned flags,
                                    opd_tensor **outputs);
OPD_API int opdi_old_checkpoint_call(opd_transform_fn fn, void *user, opd_destroy destroy, opd_tensor *const *inputs,
                                    int ninputs, const opd_checkpoint_options *options, opd_tensor **outputs);
#ifdef __cplusplus
}
#endif

#if !defined(OPD_NO_OLD_NAMES)
#if defined(_MSC_VER) && !defined(__clang__)
#define OPDI_OLD_NAME(text) __declspec(deprecated(text))
#elif defined(__GNUC__) && !defined(__TINYC__)
#define OPDI_OLD_NAME(text) __attribute__((deprecated(text)))
#else
#define OPDI_OLD_NAME(text)
#endif

OPDI_OLD_NAME("use opd_arg_double") OPD_INLINE double opd_arg_float(const opd_call *call, int i) {
    return opd_arg_double(call, i);
}
OPDI_OLD_NAME("use opd_arg_doubles") OPD_INLINE opd_doubles opd_arg_floats(const opd_call *call, int i) {
    return opd_arg_doubles(call, i);
}
OPDI_OLD_NAME("use opd_value_double") OPD_INLINE opd_value opd_value_float(double d) { return opd_value_double(d); }
OPDI_OLD_NAME("use opd_value_doubles") OPD_INLINE opd_value opd_value_floats(const double *doubles, int64_t count) {
    return opd_value_doubles(doubles, count);
}
OPDI_OLD_NAME("use opd_value_of_doubles") OPD_INLINE opd_value opd_value_of_floats(opd_doubles list) {
    return opd_value_of_doubles(list);
}
OPDI_OLD_NAME("use opd_doubles") typedef opd_doubles opd_floats;
OPDI_OLD_NAME("use opd_doubles_of") OPD_INLINE opd_doubles opd_floats_of(const double *doubles, int64_t count) {
    return opd_doubles_of(doubles, count);
}
OPDI_OLD_NAME("use OPD_DOUBLES") OPD_INLINE opd_doubles opdi_old_floats(opd_doubles list) { return list; }
#define OPD_FLOATS(...) opdi_old_floats(OPD_DOUBLES(__VA_ARGS__))
OPDI_OLD_NAME("use opd_return_double") OPD_INLINE int opd_return_float(opd_call *call, double d) {
    return opd_return_double(call, d);
}
OPDI_OLD_NAME("use opd_json_double")
OPD_INLINE double opd_json_float(const opd_json *json, int64_t value, double otherwise) {
    return opd_json_double(json, value, otherwise);
}
OPDI_OLD_NAME("use opd_device_make") OPD_INLINE opd_device opd_device_of(opd_backend type, int index) {
    return opd_device_make(type, index);
}
OPDI_OLD_NAME("use opd_tensor_is_conj") OPD_INLINE bool opd_is_conj(const opd_tensor *tensor) {
    return opd_tensor_is_conj(tensor);
}
OPDI_OLD_NAME("use opd_tensor_is_neg") OPD_INLINE bool opd_is_neg(const opd_tensor *tensor) {
    return opd_tensor_is_neg(tensor);
}
OPDI_OLD_NAME("use opd_tensor_offset") OPD_INLINE int64_t opd_offset(const opd_tensor *tensor) {
    return opd_tensor_offset(tensor);
}
OPDI_OLD_NAME("use opd_plugin_load") OPD_INLINE opd_plugin *opd_library_load(const char *path) {
    return opd_plugin_load(path);
}
OPDI_OLD_NAME("use opd_plugin_unload") OPD_INLINE int opd_library_unload(opd_plugin *plugin) {
    return opd_plugin_unload(plugin);
}
OPDI_OLD_NAME("use opd_plugin_lacks") OPD_INLINE const char *opd_library_lacks(const char *path) {
    return opd_plugin_lacks(path);
}
OPDI_OLD_NAME("use opd_compile_and_load")
OPD_INLINE opd_plugin *opd_load(const char *name, const char *const *files, const char *flags) {
    return opd_compile_and_load(name, files, flags);
}
OPDI_OLD_NAME("use opd_compile_and_load_inline")
OPD_INLINE opd_plugin *opd_load_inline(const char *name, const char *source, const char *flags) {
    return opd_compile_and_load_inline(name, source, flags);
}
/* Functions that were the long forms of functions which now take all arguments. */
OPDI_OLD_NAME("use opd_cat") OPD_INLINE opd_tensor *opd_cat_full(opd_tensors tensors, int64_t dim) {
    return opd_cat(tensors, dim);
}
OPDI_OLD_NAME("use opd_stack") OPD_INLINE opd_tensor *opd_stack_full(opd_tensors tensors, int64_t dim) {
    return opd_stack(tensors, dim);
}
OPDI_OLD_NAME("use opd_flatten")
OPD_INLINE opd_tensor *opd_flatten_full(opd_tensor *self, int64_t start_dim, int64_t end_dim) {
    return opd_flatten(self, start_dim, end_dim);
}
OPDI_OLD_NAME("use opd_split")
OPD_INLINE opd_tensors opd_split_full(opd_tensor *self, int64_t split_size, int64_t dim) {
    return opd_split(self, split_size, dim);
}
OPDI_OLD_NAME("use opd_chunk") OPD_INLINE opd_tensors opd_chunk_full(opd_tensor *self, int64_t chunks, int64_t dim) {
    return opd_chunk(self, chunks, dim);
}
OPDI_OLD_NAME("use opd_split_with_sizes")
OPD_INLINE opd_tensors opd_split_with_sizes_full(opd_tensor *self, opd_ints split_sizes, int64_t dim) {
    return opd_split_with_sizes(self, split_sizes, dim);
}
OPDI_OLD_NAME("use opd_split_sizes")
OPD_INLINE opd_tensors opd_split_sizes_full(opd_tensor *self, opd_ints split_size, int64_t dim) {
    return opd_split_sizes(self, split_size, dim);
}
OPDI_OLD_NAME("use opd_argmax") OPD_INLINE opd_tensor *opd_argmax_full(opd_tensor *self, opd_value dim, bool keepdim) {
    return opd_argmax(self, dim, keepdim);
}
OPDI_OLD_NAME("use opd_argmin") OPD_INLINE opd_tensor *opd_argmin_full(opd_tensor *self, opd_value dim, bool keepdim) {
    return opd_argmin(self, dim, keepdim);
}
OPDI_OLD_NAME("use opd_sort")
OPD_INLINE int opd_sort_full(opd_tensor **rets, opd_tensor *self, int64_t dim, bool descending) {
    return opd_sort(rets, self, dim, descending);
}
OPDI_OLD_NAME("use opd_argsort")
OPD_INLINE opd_tensor *opd_argsort_full(opd_tensor *self, int64_t dim, bool descending) {
    return opd_argsort(self, dim, descending);
}
OPDI_OLD_NAME("use opd_clamp") OPD_INLINE opd_tensor *opd_clamp_full(opd_tensor *self, opd_value min, opd_value max) {
    return opd_clamp(self, min, max);
}
OPDI_OLD_NAME("use opd_clamp_") OPD_INLINE opd_tensor *opd_clamp_full_(opd_tensor *self, opd_value min, opd_value max) {
    return opd_clamp_(self, min, max);
}
OPDI_OLD_NAME("use opd_linear")
OPD_INLINE opd_tensor *opd_linear_full(opd_tensor *input, opd_tensor *weight, opd_tensor *bias) {
    return opd_linear(input, weight, bias);
}
OPDI_OLD_NAME("use opd_rms_norm")
OPD_INLINE opd_tensor *opd_rms_norm_full(opd_tensor *input, opd_ints normalized_shape, opd_tensor *weight,
                                         opd_value eps) {
    return opd_rms_norm(input, normalized_shape, weight, eps);
}
OPDI_OLD_NAME("use opd_leaky_relu")
OPD_INLINE opd_tensor *opd_leaky_relu_full(opd_tensor *self, opd_value negative_slope) {
    return opd_leaky_relu(self, negative_slope);
}
OPDI_OLD_NAME("use opd_leaky_relu_")
OPD_INLINE opd_tensor *opd_leaky_relu_full_(opd_tensor *self, opd_value negative_slope) {
    return opd_leaky_relu_(self, negative_slope);
}
OPDI_OLD_NAME("use opd_pad")
OPD_INLINE opd_tensor *opd_pad_full(opd_tensor *self, opd_ints pad, const char *mode, opd_value value) {
    return opd_pad(self, pad, mode, value);
}
OPDI_OLD_NAME("use opd_tril") OPD_INLINE opd_tensor *opd_tril_full(opd_tensor *self, int64_t diagonal) {
    return opd_tril(self, diagonal);
}
OPDI_OLD_NAME("use opd_tril_") OPD_INLINE opd_tensor *opd_tril_full_(opd_tensor *self, int64_t diagonal) {
    return opd_tril_(self, diagonal);
}
OPDI_OLD_NAME("use opd_triu") OPD_INLINE opd_tensor *opd_triu_full(opd_tensor *self, int64_t diagonal) {
    return opd_triu(self, diagonal);
}
OPDI_OLD_NAME("use opd_triu_") OPD_INLINE opd_tensor *opd_triu_full_(opd_tensor *self, int64_t diagonal) {
    return opd_triu_(self, diagonal);
}
OPDI_OLD_NAME("use opd_one_hot") OPD_INLINE opd_tensor *opd_one_hot_full(opd_tensor *self, int64_t num_classes) {
    return opd_one_hot(self, num_classes);
}
OPDI_OLD_NAME("use opd_addcmul")
OPD_INLINE opd_tensor *opd_addcmul_full(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2, opd_value value) {
    return opd_addcmul(self, tensor1, tensor2, value);
}
OPDI_OLD_NAME("use opd_addcmul_")
OPD_INLINE opd_tensor *opd_addcmul_full_(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2, opd_value value) {
    return opd_addcmul_(self, tensor1, tensor2, value);
}
OPDI_OLD_NAME("use opd_addcdiv")
OPD_INLINE opd_tensor *opd_addcdiv_full(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2, opd_value value) {
    return opd_addcdiv(self, tensor1, tensor2, value);
}
OPDI_OLD_NAME("use opd_addcdiv_")
OPD_INLINE opd_tensor *opd_addcdiv_full_(opd_tensor *self, opd_tensor *tensor1, opd_tensor *tensor2, opd_value value) {
    return opd_addcdiv_(self, tensor1, tensor2, value);
}
OPDI_OLD_NAME("use opd_logsumexp")
OPD_INLINE opd_tensor *opd_logsumexp_full(opd_tensor *self, opd_ints dim, bool keepdim) {
    return opd_logsumexp(self, dim, keepdim);
}
OPDI_OLD_NAME("use opd_roll") OPD_INLINE opd_tensor *opd_roll_full(opd_tensor *self, opd_ints shifts, opd_ints dims) {
    return opd_roll(self, shifts, dims);
}
OPDI_OLD_NAME("use opd_std_dim")
OPD_INLINE opd_tensor *opd_std_dim_full(opd_tensor *self, opd_ints dim, bool unbiased, bool keepdim) {
    return opd_std_dim(self, dim, unbiased, keepdim);
}
OPDI_OLD_NAME("use opd_var_dim")
OPD_INLINE opd_tensor *opd_var_dim_full(opd_tensor *self, opd_ints dim, bool unbiased, bool keepdim) {
    return opd_var_dim(self, dim, unbiased, keepdim);
}
OPDI_OLD_NAME("use opd_index_put")
OPD_INLINE opd_tensor *opd_index_put_full(opd_tensor *self, opd_tensors indices, opd_tensor *values, bool accumulate) {
    return opd_index_put(self, indices, values, accumulate);
}
OPDI_OLD_NAME("use opd_index_put_")
OPD_INLINE opd_tensor *opd_index_put_full_(opd_tensor *self, opd_tensors indices, opd_tensor *values, bool accumulate) {
    return opd_index_put_(self, indices, values, accumulate);
}
#endif
