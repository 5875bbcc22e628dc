//----------------------------------------------------------------------------------------------------------------------
//  >>api:old        functions under the names of version 0.2
//
//  One word for each thing: what is made by _new is freed by _free, what begins ends, what is opened is closed, what
//  is added is removed; a mode of the thread is set by opd_mode_set, a property by opd_object_set_property.  The names
//  from before that rule go with version 0.4.
//----------------------------------------------------------------------------------------------------------------------

OPD_INLINE opd_tensor *opd_make_dual(opd_tensor *primal, opd_tensor *tangent) { return opd_dual_new(primal, tangent); }
OPD_INLINE opd_tensor *opd_unpack_dual(opd_tensor *tensor, opd_tensor **tangent) {
    return opd_dual_unpack(tensor, tangent);
}
OPD_INLINE int opd_dual_enter(void) { return opd_dual_level_begin(); }
OPD_INLINE int opd_dual_exit(int level) { return opd_dual_level_end(level); }
OPD_INLINE opd_plugin *opd_load_library(const char *path) { return opd_library_load(path); }
OPD_INLINE int opd_unload_library(opd_plugin *plugin) { return opd_library_unload(plugin); }
OPD_INLINE int opd_register_autocast(opd_library *lib, const char *name, opd_backend device, opd_autocast policy) {
    return opd_autocast_register(lib, name, device, policy);
}
OPD_INLINE int opd_register_autograd(opd_library *lib, const char *name, opd_backward_fn backward,
                                     opd_setup_fn setup_context) {
    return opd_autograd_register(lib, name, backward, setup_context);
}
OPD_INLINE int opd_register_fake(opd_library *lib, const char *name, opd_kernel fake) {
    return opd_fake_register(lib, name, fake);
}
OPD_INLINE int opd_register_jvp(opd_library *lib, const char *name, opd_jvp_fn jvp) {
    return opd_jvp_register(lib, name, jvp);
}
OPD_INLINE int opd_register_vmap(opd_library *lib, const char *name, opd_vmap_rule rule) {
    return opd_vmap_register(lib, name, rule);
}
OPD_INLINE opd_scalar_type opd_promote_type(opd_scalar_type dtype, opd_tensor *const *tensors, int count) {
    return opd_autocast_promote(dtype, tensors, count);
}
OPD_INLINE opd_tensor *opd_cached_cast(opd_scalar_type dtype, opd_tensor *tensor) {
    return opd_autocast_cast(dtype, tensor);
}
OPD_INLINE void opd_autocast_clear_cache(void) { opd_autocast_cache_clear(); }
OPD_INLINE opd_scaler *opd_scaler_make(const opd_scaler_options *options) { return opd_scaler_new(options); }
OPD_INLINE opd_optimizer *opd_adam(opd_tensor *const *params, int count, const opd_adam_options *options) {
    return opd_adam_new(params, count, options);
}
OPD_INLINE opd_optimizer *opd_adamw(opd_tensor *const *params, int count, const opd_adam_options *options) {
    return opd_adamw_new(params, count, options);
}
OPD_INLINE opd_optimizer *opd_sgd(opd_tensor *const *params, int count, const opd_sgd_options *options) {
    return opd_sgd_new(params, count, options);
}
OPD_INLINE int opd_profiler_start(const opd_profiler_options *options) { return opd_profiler_begin(options); }
OPD_INLINE opd_profile *opd_profiler_stop(void) { return opd_profiler_end(); }
OPD_INLINE int opd_saved_hooks_push(const opd_saved_hooks *hooks) { return opd_saved_hooks_begin(hooks); }
OPD_INLINE void opd_saved_hooks_pop(void) { opd_saved_hooks_end(); }
OPD_INLINE bool opd_grad_set(bool on) { return opd_grad_mode_set(on); }
OPD_INLINE bool opd_grad_enabled(void) { return opd_grad_mode_enabled(); }
OPD_INLINE opd_dispatch_state opd_inference_set(bool on) { return opd_inference_mode_set(on); }
OPD_INLINE bool opd_inference_enabled(void) { return opd_inference_mode_enabled(); }

