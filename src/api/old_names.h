//----------------------------------------------------------------------------------------------------------------------
//  >>api:old_names  names of version 0.4, which the next version removes
//
//  Programs that use these names compile, with a warning that says the new name.  OPD_NO_OLD_NAMES leaves them out.
//----------------------------------------------------------------------------------------------------------------------

#ifdef __cplusplus
extern "C" {
#endif
/* Functions whose parameters or results were others in version 0.4: the transforms had no length of the array of
   outputs, the outputs of opd_autograd_apply stood before its inputs, and two functions that print returned buf.  Only
   plug-ins of version 0.4 call these functions, through the table of functions. */
OPD_API const char *opdi_old_device_print(opd_device device, char *buf, size_t cap);
OPD_API const char *opdi_old_keyset_print(opd_keyset set, char *buf, size_t cap);
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
#endif
