//----------------------------------------------------------------------------------------------------------------------
//  >>api:host       the table through which plug-ins call
//
//  A plug-in holds no implementation and needs no symbol of the program: opd_library_load finds its one exported
//  symbol, opd_plugin_entry, checks the version there and hands over a table of functions, through which small static
//  functions of the API's names call.  The table and opd_op_desc grow at their ends only, other structs never change,
//  so that a plug-in of an older minor version loads.
//----------------------------------------------------------------------------------------------------------------------

typedef void (*opd_deleter)(void *data, void *user);
/* Every function above but those written out below, new ones at the end: X(result, name, number of parameters,
   (their types)), V without a result. */
#define OPD_HOST_FUNCTIONS(X, V) \
    X(bool, opd_ok, 0, ()) \
    X(opd_code, opd_error_code, 0, ()) \
    X(const char *, opd_error_message, 0, ()) \
    V(opd_error_clear, 0, ()) \
    X(int, opd_error_mark, 0, ()) \
    X(opd_code, opd_error_rewind, 1, (int)) \
    X(int, opd_finish, 0, ()) \
    V(opd_log_set, 2, (opd_log_fn, void *)) \
    X(opd_memory, opd_memory_stats, 0, ()) \
    V(opd_memory_reset_peak, 0, ()) \
    V(opd_memory_trim, 0, ()) \
    X(int64_t, opd_memory_fail_at, 2, (int64_t, bool)) \
    V(opd_threads_set, 1, (int)) \
    X(int, opd_threads, 0, ()) \
    X(const char *, opd_dtype_name, 1, (opd_scalar_type)) \
    X(const char *, opd_dtype_cname, 1, (opd_scalar_type)) \
    X(size_t, opd_dtype_size, 1, (opd_scalar_type)) \
    X(bool, opd_dtype_is_floating, 1, (opd_scalar_type)) \
    X(bool, opd_dtype_is_complex, 1, (opd_scalar_type)) \
    X(bool, opd_dtype_is_integral, 2, (opd_scalar_type, bool)) \
    X(opd_scalar_type, opd_promote_types, 2, (opd_scalar_type, opd_scalar_type)) \
    X(bool, opd_can_cast, 2, (opd_scalar_type, opd_scalar_type)) \
    X(int, opd_device_parse, 2, (const char *, opd_device *)) \
    X(const char *, opd_device_print, 3, (opd_device, char *, size_t)) \
    X(opd_schema *, opd_schema_parse, 1, (const char *)) \
    V(opd_schema_free, 1, (opd_schema *)) \
    X(size_t, opd_schema_print, 3, (const opd_schema *, char *, size_t)) \
    X(int, opd_schema_nargs, 1, (const opd_schema *)) \
    X(int, opd_schema_nreturns, 1, (const opd_schema *)) \
    X(const char *, opd_schema_arg_name, 2, (const opd_schema *, int)) \
    X(bool, opd_schema_is_mutable, 1, (const opd_schema *)) \
    X(opd_key, opd_key_parse, 1, (const char *)) \
    X(const char *, opd_key_name, 1, (opd_key)) \
    X(opd_key, opd_key_define, 2, (int, const char *)) \
    X(bool, opd_key_is_alias, 1, (opd_key)) \
    X(opd_keyset, opd_keyset_add, 2, (opd_keyset, opd_key)) \
    X(opd_keyset, opd_keyset_remove, 2, (opd_keyset, opd_key)) \
    X(bool, opd_keyset_has, 2, (opd_keyset, opd_key)) \
    X(opd_key, opd_keyset_highest, 1, (opd_keyset)) \
    X(const char *, opd_keyset_print, 3, (opd_keyset, char *, size_t)) \
    X(opd_key_guard, opd_keys_include, 1, (opd_keyset)) \
    X(opd_key_guard, opd_keys_exclude, 1, (opd_keyset)) \
    V(opd_keys_restore, 1, (opd_key_guard)) \
    X(opd_keyset, opd_keys_included, 0, ()) \
    X(opd_keyset, opd_keys_excluded, 0, ()) \
    X(int, opd_fallthrough, 1, (opd_call *)) \
    X(int, opd_not_differentiable, 1, (opd_backward_call *)) \
    X(int, opd_batch_pointwise, 1, (opd_call *)) \
    X(int, opd_batch_shift_dim, 1, (opd_call *)) \
    X(int, opd_batch_matmul, 1, (opd_call *)) \
    X(int, opd_batch_view, 1, (opd_call *)) \
    X(int, opd_batch_decompose, 1, (opd_call *)) \
    X(int, opd_batch_factory, 1, (opd_call *)) \
    X(int, opd_batch_loop, 1, (opd_call *)) \
    X(opd_library *, opd_library_open, 5, (opd_library_kind, const char *, const char *, const char *, int)) \
    V(opd_library_close, 1, (opd_library *)) \
    X(int, opd_def, 2, (opd_library *, const char *)) \
    X(opd_op *, opd_find, 1, (const char *)) \
    X(opd_op *, opd_find_quiet, 1, (const char *)) \
    X(const char *, opd_op_name, 1, (const opd_op *)) \
    X(const opd_schema *, opd_op_schema, 1, (const opd_op *)) \
    X(const opd_op_desc *, opd_op_card, 1, (const opd_op *)) \
    X(opd_op *, opd_op_next, 1, (const opd_op *)) \
    X(int, opd_op_check, 2, (const opd_op *, const char *)) \
    X(size_t, opd_dump, 3, (const opd_op *, char *, size_t)) \
    X(size_t, opd_dump_table, 3, (const opd_op *, char *, size_t)) \
    X(int, opd_check_invariants, 0, ()) \
    X(opd_tensor *, opd_call_op, 3, (opd_op *, const opd_value *, int)) \
    X(int, opd_call_all, 4, (opd_op *, opd_value *, const opd_value *, int)) \
    X(int, opd_call_tensors, 4, (opd_op *, opd_tensor **, const opd_value *, int)) \
    X(opd_value, opd_call_value, 3, (opd_op *, const opd_value *, int)) \
    X(opd_tensors, opd_call_list, 3, (opd_op *, const opd_value *, int)) \
    X(int, opd_call_keywords, 6, (opd_op *, opd_value *, const opd_value *, int, const opd_keyword *, int)) \
    X(int, opd_redispatch, 2, (opd_call *, opd_keyset)) \
    X(opd_op *, opd_op_look_up, 3, (opd_op **, const char *, const char *)) \
    X(opd_op *, opd_call_operator, 1, (const opd_call *)) \
    X(opd_keyset, opd_call_keys, 1, (const opd_call *)) \
    X(void *, opd_call_user, 1, (const opd_call *)) \
    X(int, opd_call_nargs, 1, (const opd_call *)) \
    X(const opd_value *, opd_call_args, 1, (const opd_call *)) \
    X(opd_value *, opd_call_rets, 1, (opd_call *)) \
    X(opd_tensor *, opd_arg_tensor, 2, (const opd_call *, int)) \
    X(int64_t, opd_arg_int, 2, (const opd_call *, int)) \
    X(double, opd_arg_float, 2, (const opd_call *, int)) \
    X(bool, opd_arg_bool, 2, (const opd_call *, int)) \
    X(opd_value, opd_arg_value, 2, (const opd_call *, int)) \
    X(bool, opd_arg_is_none, 2, (const opd_call *, int)) \
    X(const char *, opd_arg_str, 2, (const opd_call *, int)) \
    X(opd_ints, opd_arg_ints, 2, (const opd_call *, int)) \
    X(opd_floats, opd_arg_floats, 2, (const opd_call *, int)) \
    X(opd_tensors, opd_arg_tensors, 2, (const opd_call *, int)) \
    X(opd_scalar_type, opd_arg_dtype, 3, (const opd_call *, int, opd_scalar_type)) \
    X(opd_device, opd_arg_device, 3, (const opd_call *, int, opd_device)) \
    X(opd_tensor *, opd_result, 5, (opd_call *, int, const int64_t *, int, opd_scalar_type)) \
    X(opd_tensor *, opd_result_strided, 7, \
      (opd_call *, int, const int64_t *, const int64_t *, int, opd_scalar_type, opd_device)) \
    X(int, opd_return_tensor, 2, (opd_call *, opd_tensor *)) \
    X(int, opd_return_tensors, 3, (opd_call *, opd_tensor *const *, int64_t)) \
    X(int, opd_return_value, 2, (opd_call *, opd_value)) \
    X(opd_scope, opd_scope_open, 0, ()) \
    V(opd_scope_close, 1, (opd_scope *)) \
    X(opd_tensor *, opd_scope_return, 1, (opd_tensor *)) \
    X(opd_scope_info, opd_scope_stats, 0, ()) \
    X(opd_tensor *, opd_keep, 1, (opd_tensor *)) \
    V(opd_release, 1, (opd_tensor *)) \
    X(opd_tensor *, opd_assign, 2, (opd_tensor **, opd_tensor *)) \
    X(opd_tensor *, opd_tensor_new, 2, (opd_ints, opd_scalar_type)) \
    X(opd_tensor *, opd_tensor_new_on, 3, (opd_ints, opd_scalar_type, opd_device)) \
    X(opd_tensor *, opd_tensor_from, 3, (const void *, opd_ints, opd_scalar_type)) \
    X(opd_tensor *, opd_tensor_wrap, 6, (void *, opd_ints, const int64_t *, opd_scalar_type, opd_deleter, void *)) \
    X(opd_tensor *, opd_tensor_wrapped_number, 1, (opd_value)) \
    X(opd_tensor *, opd_tensor_view, 5, (opd_tensor *, const int64_t *, const int64_t *, int, int64_t)) \
    X(int, opd_ndim, 1, (const opd_tensor *)) \
    X(const int64_t *, opd_sizes, 1, (const opd_tensor *)) \
    X(const int64_t *, opd_strides, 1, (const opd_tensor *)) \
    X(int64_t, opd_size, 2, (const opd_tensor *, int)) \
    X(int64_t, opd_numel, 1, (const opd_tensor *)) \
    X(int64_t, opd_offset, 1, (const opd_tensor *)) \
    X(opd_scalar_type, opd_dtype, 1, (const opd_tensor *)) \
    X(opd_device, opd_tensor_device, 1, (const opd_tensor *)) \
    X(opd_keyset, opd_tensor_keys, 1, (const opd_tensor *)) \
    X(bool, opd_is_contiguous, 1, (const opd_tensor *)) \
    X(bool, opd_tensor_is_wrapped_number, 1, (const opd_tensor *)) \
    X(bool, opd_tensor_same_storage, 2, (const opd_tensor *, const opd_tensor *)) \
    X(int64_t, opd_tensor_storage_bytes, 1, (const opd_tensor *)) \
    X(uint32_t, opd_tensor_version, 1, (const opd_tensor *)) \
    X(void *, opd_data, 1, (const opd_tensor *)) \
    X(float *, opd_data_f32, 1, (const opd_tensor *)) \
    X(double *, opd_data_f64, 1, (const opd_tensor *)) \
    X(int64_t *, opd_data_i64, 1, (const opd_tensor *)) \
    X(int32_t *, opd_data_i32, 1, (const opd_tensor *)) \
    X(uint8_t *, opd_data_u8, 1, (const opd_tensor *)) \
    X(bool *, opd_data_bool, 1, (const opd_tensor *)) \
    X(double, opd_item_f64, 1, (const opd_tensor *)) \
    X(int64_t, opd_item_i64, 1, (const opd_tensor *)) \
    X(size_t, opd_tensor_print, 3, (const opd_tensor *, char *, size_t)) \
    V(opd_print, 1, (const opd_tensor *)) \
    V(opd_manual_seed, 1, (uint64_t)) \
    X(opd_generator *, opd_generator_new, 1, (uint64_t)) \
    V(opd_generator_free, 1, (opd_generator *)) \
    V(opd_generator_seed, 2, (opd_generator *, uint64_t)) \
    X(opd_tensor *, opd_tensor_set_requires_grad, 2, (opd_tensor *, bool)) \
    X(bool, opd_tensor_requires_grad, 1, (const opd_tensor *)) \
    X(bool, opd_tensor_is_leaf, 1, (const opd_tensor *)) \
    X(opd_tensor *, opd_tensor_grad, 1, (const opd_tensor *)) \
    X(int, opd_tensor_set_grad, 2, (opd_tensor *, opd_tensor *)) \
    X(const char *, opd_tensor_grad_fn, 1, (const opd_tensor *)) \
    X(int, opd_backward, 1, (opd_tensor *)) \
    X(int, opd_backward_with, 3, (opd_tensor *const *, int, const opd_backward_options *)) \
    X(int, opd_autograd_grad, 6, \
      (opd_tensor *const *, int, opd_tensor *const *, int, const opd_backward_options *, opd_tensor **)) \
    X(bool, opd_grad_mode_enabled, 0, ()) \
    X(bool, opd_grad_mode_set, 1, (bool)) \
    X(opd_tensor *, opd_bw_grad, 2, (opd_backward_call *, int)) \
    X(opd_tensor *, opd_bw_tensor, 2, (opd_backward_call *, int)) \
    X(opd_tensors, opd_bw_tensors, 2, (opd_backward_call *, int)) \
    X(opd_value, opd_bw_value, 2, (opd_backward_call *, int)) \
    X(opd_tensor *, opd_bw_result, 2, (opd_backward_call *, int)) \
    X(bool, opd_bw_needs, 2, (const opd_backward_call *, int)) \
    X(bool, opd_bw_needs_at, 3, (const opd_backward_call *, int, int)) \
    X(opd_ints, opd_bw_sizes, 2, (const opd_backward_call *, int)) \
    X(opd_ints, opd_bw_sizes_at, 3, (const opd_backward_call *, int, int)) \
    X(opd_scalar_type, opd_bw_dtype, 2, (const opd_backward_call *, int)) \
    X(int, opd_bw_return, 3, (opd_backward_call *, int, opd_tensor *)) \
    X(int, opd_bw_return_at, 4, (opd_backward_call *, int, int, opd_tensor *)) \
    X(int, opd_autograd_record, 10, \
      (const char *, opd_backward_fn, opd_tensor *const *, int, opd_tensor *const *, int, const opd_value *, int, \
       opd_tensor *const *, int)) \
    X(bool, opd_call_requires_grad, 1, (const opd_call *)) \
    X(opd_plugin *, opd_library_load, 1, (const char *)) \
    X(int, opd_library_unload, 1, (opd_plugin *)) \
    X(opd_plugin *, opd_load, 3, (const char *, const char *const *, const char *)) \
    X(opd_plugin *, opd_load_inline, 3, (const char *, const char *, const char *)) \
    X(opd_plugin *, opd_plugin_next, 1, (const opd_plugin *)) \
    X(const char *, opd_plugin_path, 1, (const opd_plugin *)) \
    X(int64_t, opd_observer_add, 1, (const opd_observer *)) \
    X(int64_t, opd_observer_add_local, 1, (const opd_observer *)) \
    X(bool, opd_observer_remove, 1, (int64_t)) \
    X(bool, opd_observer_enable, 2, (int64_t, bool)) \
    X(bool, opd_observe_set, 1, (bool)) \
    X(opd_span *, opd_span_open, 1, (const char *)) \
    V(opd_span_close, 1, (opd_span *)) \
    X(int, opd_profiler_begin, 1, (const opd_profiler_options *)) \
    X(opd_profile *, opd_profiler_end, 0, ()) \
    V(opd_profile_free, 1, (opd_profile *)) \
    X(const opd_profile_row *, opd_profile_rows, 2, (const opd_profile *, int64_t *)) \
    X(size_t, opd_profile_table, 3, (const opd_profile *, char *, size_t)) \
    V(opd_profile_print, 1, (const opd_profile *)) \
    X(int, opd_profile_write_trace, 2, (const opd_profile *, const char *)) \
    X(int, opd_backend_register_first, 2, (opd_backend, const opd_backend_desc *)) \
    X(int, opd_backend_unregister, 1, (opd_backend)) \
    X(int, opd_cpu_fallback, 1, (opd_call *)) \
    X(void *, opd_device_data, 2, (const opd_tensor *, opd_backend)) \
    X(opd_tensor *, opd_tensor_wrap_on, 7, \
      (void *, opd_ints, const int64_t *, opd_scalar_type, opd_device, opd_deleter, void *)) \
    X(int, opd_device_count, 1, (opd_backend)) \
    X(opd_device, opd_device_current, 1, (opd_backend)) \
    X(opd_device, opd_device_set, 1, (opd_device)) \
    X(int, opd_device_synchronize, 1, (opd_device)) \
    X(opd_memory, opd_device_memory, 1, (opd_device)) \
    X(opd_stream, opd_stream_new, 1, (opd_device)) \
    V(opd_stream_free, 1, (opd_stream)) \
    X(opd_stream, opd_stream_current, 1, (opd_device)) \
    X(opd_stream, opd_stream_set, 1, (opd_stream)) \
    X(int, opd_stream_wait, 2, (opd_stream, opd_stream)) \
    X(int, opd_stream_synchronize, 1, (opd_stream)) \
    X(opd_device, opd_bw_device, 2, (const opd_backward_call *, int)) \
    X(opd_key, opd_keyset_next, 2, (opd_keyset, opd_key)) \
    X(opd_dispatch_state, opd_dispatch_state_get, 0, ()) \
    X(opd_dispatch_state, opd_dispatch_state_set, 1, (opd_dispatch_state)) \
    X(int, opd_def_with, 3, (opd_library *, const char *, const opd_def_options *)) \
    V(opd_library_at, 3, (opd_library *, const char *, int)) \
    X(int, opd_def_function, 3, (opd_library *, const char *, const opd_function *)) \
    X(int, opd_impl_function, 4, (opd_library *, const char *, const char *, const opd_function *)) \
    X(uint32_t, opd_op_tags, 1, (const opd_op *)) \
    X(size_t, opd_op_list, 3, (const opd_op_filter *, opd_op **, size_t)) \
    X(opd_registry_info, opd_registry_stats, 0, ()) \
    X(size_t, opd_explain, 5, (opd_op *, const opd_value *, int, char *, size_t)) \
    X(opd_listener *, opd_listener_add, 3, (opd_listener_fn, opd_listener_fn, void *)) \
    V(opd_listener_remove, 1, (opd_listener *)) \
    X(int, opd_call_at, 5, (opd_op *, const char *, opd_value *, const opd_value *, int)) \
    X(opd_tensor *, opd_tensor_wrap_key, 2, (opd_tensor *, opd_key)) \
    X(opd_tensor *, opd_tensor_unwrap_key, 2, (const opd_tensor *, opd_key)) \
    X(bool, opd_schema_equal, 2, (const opd_schema *, const opd_schema *)) \
    X(uint64_t, opd_schema_hash, 1, (const opd_schema *)) \
    X(bool, opd_schema_is_backward_compatible_with, 4, (const opd_schema *, const opd_schema *, char *, size_t)) \
    X(bool, opd_schema_is_forward_compatible_with, 4, (const opd_schema *, const opd_schema *, char *, size_t)) \
    X(bool, opd_schema_is_subtype_of, 3, (const opd_schema *, const opd_schema *, bool)) \
    X(bool, opd_schema_is_mutable_at, 3, (const opd_schema *, int, const opd_value *)) \
    X(bool, opd_schema_is_aliasing, 2, (const opd_schema *, int)) \
    X(bool, opd_schema_may_alias, 4, (const opd_schema *, int, int, const opd_value *)) \
    X(bool, opd_schema_may_contain_alias, 5, (const opd_schema *, int, int, bool, const opd_value *)) \
    X(opd_overloads *, opd_overloads_find, 1, (const char *)) \
    X(opd_op *, opd_overloads_at, 2, (opd_overloads *, int)) \
    X(opd_op *, opd_overloads_resolve, 5, (opd_overloads *, const opd_value *, int, const opd_keyword *, int)) \
    X(int, opd_overloads_call, 6, (opd_overloads *, opd_value *, const opd_value *, int, const opd_keyword *, int)) \
    X(bool, opd_dispatch_trace_set, 1, (bool)) \
    X(bool, opd_schema_is_nondeterministic, 2, (const opd_schema *, const opd_value *)) \
    X(opd_gradcheck_options, opd_gradcheck_defaults, 0, ()) \
    X(int, opd_gradcheck, 5, (opd_gradcheck_fn, void *, opd_tensor *const *, int, const opd_gradcheck_options *)) \
    X(int, opd_gradgradcheck, 6, (opd_gradcheck_fn, void *, opd_tensor *const *, int, opd_tensor *const *, \
                                  const opd_gradcheck_options *)) \
    X(int, opd_dual_level_begin, 0, ()) \
    X(int, opd_dual_level_end, 1, (int)) \
    X(opd_tensor *, opd_dual_new, 2, (opd_tensor *, opd_tensor *)) \
    X(opd_tensor *, opd_dual_unpack, 2, (opd_tensor *, opd_tensor **)) \
    X(bool, opd_forward_grad_enabled, 0, ()) \
    X(bool, opd_forward_grad_set, 1, (bool)) \
    X(int, opd_jvp_pointwise, 1, (opd_jvp_call *)) \
    X(int, opd_jvp_linear, 1, (opd_jvp_call *)) \
    X(int, opd_jvp_backward, 1, (opd_jvp_call *)) \
    X(opd_value, opd_jvp_value, 2, (opd_jvp_call *, int)) \
    X(opd_tensor *, opd_jvp_tensor, 2, (opd_jvp_call *, int)) \
    X(opd_tensor *, opd_jvp_tangent, 2, (opd_jvp_call *, int)) \
    X(opd_tensor *, opd_jvp_tangent_at, 3, (opd_jvp_call *, int, int)) \
    X(opd_tensor *, opd_jvp_result, 2, (opd_jvp_call *, int)) \
    X(int, opd_jvp_return, 3, (opd_jvp_call *, int, opd_tensor *)) \
    X(int, opd_autograd_apply, 5, (const opd_autograd_function *, opd_value *, int, const opd_value *, int)) \
    X(int, opd_context_ninputs, 1, (const opd_context *)) \
    X(opd_value, opd_context_input, 2, (const opd_context *, int)) \
    X(opd_tensor *, opd_context_tensor, 2, (const opd_context *, int)) \
    X(opd_value, opd_context_output, 2, (const opd_context *, int)) \
    X(int, opd_context_return, 2, (opd_context *, opd_tensor *)) \
    X(int, opd_context_return_value, 2, (opd_context *, opd_value)) \
    X(bool, opd_context_needs_input_grad, 2, (const opd_context *, int)) \
    X(int, opd_context_save_for_backward, 3, (opd_context *, opd_tensor *const *, int)) \
    X(int, opd_context_save_for_forward, 3, (opd_context *, opd_tensor *const *, int)) \
    X(int, opd_context_nsaved, 1, (const opd_context *)) \
    X(opd_tensor *, opd_context_saved, 2, (opd_context *, int)) \
    X(int, opd_context_mark_dirty, 2, (opd_context *, opd_tensor *)) \
    X(int, opd_context_mark_non_differentiable, 2, (opd_context *, opd_tensor *)) \
    V(opd_context_set_materialize_grads, 2, (opd_context *, bool)) \
    X(int, opd_context_set, 3, (opd_context *, const char *, opd_value)) \
    X(opd_value, opd_context_get, 2, (const opd_context *, const char *)) \
    X(int, opd_context_set_data, 3, (opd_context *, void *, opd_destroy)) \
    X(void *, opd_context_data, 1, (const opd_context *)) \
    X(void *, opd_context_user, 1, (const opd_context *)) \
    X(opd_context *, opd_bw_context, 1, (const opd_backward_call *)) \
    X(opd_autograd_fallback_mode, opd_autograd_fallback_set, 1, (opd_autograd_fallback_mode)) \
    X(int, opd_autograd_not_implemented, 1, (opd_call *)) \
    X(opd_context *, opd_jvp_context, 1, (const opd_jvp_call *)) \
    X(opd_tensor *, opd_autograd_call, 3, (const opd_autograd_function *, const opd_value *, int)) \
    X(int, opd_autograd_register, 4, (opd_library *, const char *, opd_backward_fn, opd_setup_fn)) \
    X(opd_sgd_options, opd_sgd_defaults, 0, ()) \
    X(opd_adam_options, opd_adam_defaults, 0, ()) \
    X(opd_adam_options, opd_adamw_defaults, 0, ()) \
    X(opd_optimizer *, opd_sgd_new, 3, (opd_tensor *const *, int, const opd_sgd_options *)) \
    X(opd_optimizer *, opd_adam_new, 3, (opd_tensor *const *, int, const opd_adam_options *)) \
    X(opd_optimizer *, opd_adamw_new, 3, (opd_tensor *const *, int, const opd_adam_options *)) \
    X(int, opd_optimizer_step, 1, (opd_optimizer *)) \
    X(int, opd_optimizer_zero_grad, 1, (opd_optimizer *)) \
    X(double, opd_optimizer_lr, 1, (const opd_optimizer *)) \
    X(int, opd_optimizer_set_lr, 2, (opd_optimizer *, double)) \
    X(opd_tensor *, opd_optimizer_state, 3, (const opd_optimizer *, int, const char *)) \
    X(int, opd_optimizer_set_state, 4, (opd_optimizer *, int, const char *, const opd_tensor *)) \
    V(opd_optimizer_free, 1, (opd_optimizer *)) \
    X(opd_tensor *, opd_clip_grad_norm, 5, (opd_tensor *const *, int, double, double, bool)) \
    X(int, opd_clip_grad_value, 3, (opd_tensor *const *, int, double)) \
    X(double, opd_lr_step, 4, (double, int64_t, int64_t, double)) \
    X(double, opd_lr_multi_step, 4, (double, int64_t, opd_ints, double)) \
    X(double, opd_lr_exponential, 3, (double, int64_t, double)) \
    X(double, opd_lr_linear, 5, (double, int64_t, double, double, int64_t)) \
    X(double, opd_lr_cosine, 4, (double, int64_t, int64_t, double)) \
    X(double, opd_lr_cosine_restarts, 5, (double, int64_t, int64_t, int64_t, double)) \
    X(opd_one_cycle, opd_one_cycle_defaults, 2, (double, int64_t)) \
    X(double, opd_lr_one_cycle, 2, (int64_t, const opd_one_cycle *)) \
    X(size_t, opd_graph_dot, 5, (opd_tensor *const *, int, const opd_graph_options *, char *, size_t)) \
    X(opd_dispatch_state, opd_inference_mode_set, 1, (bool)) \
    X(bool, opd_inference_mode_enabled, 0, ()) \
    X(bool, opd_tensor_is_inference, 1, (const opd_tensor *)) \
    X(opd_tensor *, opd_tensor_base, 1, (const opd_tensor *)) \
    X(int, opd_inplace_or_view_not_implemented, 1, (opd_call *)) \
    X(opd_node *, opd_tensor_node, 1, (const opd_tensor *)) \
    X(opd_edge, opd_gradient_edge, 1, (opd_tensor *)) \
    X(opd_node *, opd_node_keep, 1, (opd_node *)) \
    V(opd_node_release, 1, (opd_node *)) \
    X(const char *, opd_node_name, 1, (const opd_node *)) \
    X(uint64_t, opd_node_sequence, 1, (const opd_node *)) \
    X(opd_op *, opd_node_op, 1, (const opd_node *)) \
    X(opd_tensor *, opd_node_variable, 1, (const opd_node *)) \
    X(int, opd_node_edges, 1, (const opd_node *)) \
    X(opd_edge, opd_node_edge, 2, (const opd_node *, int)) \
    X(int, opd_node_inputs, 1, (const opd_node *)) \
    X(opd_ints, opd_node_sizes, 2, (const opd_node *, int)) \
    X(opd_scalar_type, opd_node_dtype, 2, (const opd_node *, int)) \
    X(opd_device, opd_node_device, 2, (const opd_node *, int)) \
    X(int64_t, opd_tensor_hook_add, 4, (opd_tensor *, opd_tensor_hook_fn, void *, opd_destroy)) \
    X(int64_t, opd_tensor_post_accumulate_hook_add, 4, (opd_tensor *, opd_accumulate_hook_fn, void *, opd_destroy)) \
    X(int64_t, opd_node_pre_hook_add, 4, (opd_node *, opd_node_pre_hook_fn, void *, opd_destroy)) \
    X(int64_t, opd_node_post_hook_add, 4, (opd_node *, opd_node_post_hook_fn, void *, opd_destroy)) \
    X(int64_t, opd_multi_hook_add, 6, \
      (opd_tensor *const *, int, opd_multi_mode, opd_multi_hook_fn, void *, opd_destroy)) \
    X(bool, opd_hook_remove, 1, (int64_t)) \
    X(int, opd_tensor_retain_grad, 1, (opd_tensor *)) \
    X(bool, opd_tensor_retains_grad, 1, (const opd_tensor *)) \
    X(int64_t, opd_backward_id, 0, ()) \
    X(bool, opd_backward_keeps_graph, 0, ()) \
    X(bool, opd_backward_will_run, 1, (const opd_node *)) \
    X(int64_t, opd_backward_order, 2, (opd_node **, int64_t)) \
    X(int, opd_backward_callback, 3, (opd_callback_fn, void *, opd_destroy)) \
    X(int, opd_saved_hooks_begin, 1, (const opd_saved_hooks *)) \
    V(opd_saved_hooks_end, 0, ()) \
    X(int, opd_saved_hooks_disable, 1, (const char *)) \
    X(const char *, opd_saved_hooks_disabled, 0, ()) \
    X(opd_tensor *, opd_node_saved, 2, (opd_node *, const char *)) \
    X(int, opd_node_saved_hooks, 3, (opd_node *, const char *, const opd_saved_hooks *)) \
    X(int, opd_checkpoint, 7, \
      (opd_checkpoint_fn, void *, opd_destroy, opd_tensor *const *, int, opd_tensor **, int)) \
    X(int, opd_anomaly_set, 2, (bool, bool)) \
    X(opd_tensor *, opd_tensor_data, 1, (opd_tensor *)) \
    X(int, opd_tensor_set_data, 2, (opd_tensor *, opd_tensor *)) \
    X(opd_graph *, opd_graph_trace, 5, \
      (opd_transform_fn, void *, opd_tensor *const *, int, const opd_trace_options *)) \
    V(opd_graph_free, 1, (opd_graph *)) \
    X(int, opd_graph_run, 5, (const opd_graph *, opd_tensor *const *, int, opd_tensor **, int)) \
    X(int, opd_graph_function, 4, (void *, opd_tensor *const *, int, opd_tensor **)) \
    X(size_t, opd_graph_print, 3, (const opd_graph *, char *, size_t)) \
    X(int, opd_graph_ninputs, 1, (const opd_graph *)) \
    X(int, opd_graph_noutputs, 1, (const opd_graph *)) \
    X(int, opd_graph_count, 2, (const opd_graph *, const char *)) \
    X(opd_graph *, opd_graph_parse, 1, (const char *)) \
    X(int, opd_graph_save, 2, (const opd_graph *, const char *)) \
    X(opd_graph *, opd_graph_load, 1, (const char *)) \
    X(opd_graph *, opd_graph_from_bytes, 2, (const void *, size_t)) \
    X(int, opd_graph_dce, 1, (opd_graph *)) \
    X(int, opd_graph_cse, 1, (opd_graph *)) \
    X(int, opd_graph_fold, 1, (opd_graph *)) \
    X(int, opd_vmap, 6, \
      (opd_transform_fn, void *, opd_tensor *const *, int, const opd_vmap_options *, opd_tensor **)) \
    X(int, opd_vmap_begin, 2, (int64_t, opd_randomness)) \
    X(opd_tensor *, opd_vmap_wrap, 3, (opd_tensor *, int, int)) \
    X(opd_tensor *, opd_vmap_unwrap, 3, (opd_tensor *, int, int)) \
    X(int, opd_vmap_end, 1, (int)) \
    X(int, opd_transform_depth, 0, ()) \
    X(bool, opd_tensor_is_batched, 1, (const opd_tensor *)) \
    X(opd_vmap_fallback, opd_vmap_fallback_set, 1, (opd_vmap_fallback)) \
    X(int64_t, opd_vmap_fallback_count, 0, ()) \
    X(opd_tensor *, opd_batch_arg, 3, (opd_call *, int, int *)) \
    X(opd_tensor *, opd_batch_value, 2, (opd_tensor *, int *)) \
    X(opd_tensor *, opd_batch_front, 2, (opd_tensor *, int)) \
    X(int64_t, opd_batch_size, 0, ()) \
    X(opd_randomness, opd_batch_randomness, 0, ()) \
    X(int, opd_batch_return, 3, (opd_call *, opd_tensor *, int)) \
    X(int, opd_batch_return_list, 4, (opd_call *, opd_tensor *const *, int64_t, int)) \
    X(opd_autocast_region, opd_autocast_begin, 4, (opd_backend, opd_scalar_type, bool, int)) \
    V(opd_autocast_end, 1, (opd_autocast_region *)) \
    X(bool, opd_autocast_enabled, 1, (opd_backend)) \
    X(opd_scalar_type, opd_autocast_dtype, 1, (opd_backend)) \
    X(bool, opd_autocast_cache_enabled, 0, ()) \
    V(opd_autocast_cache_clear, 0, ()) \
    X(int, opd_autocast_support, 3, (opd_backend, const opd_scalar_type *, int)) \
    X(int, opd_autocast_register, 4, (opd_library *, const char *, opd_backend, opd_autocast)) \
    X(opd_tensor *, opd_autocast_cast, 2, (opd_scalar_type, opd_tensor *)) \
    X(opd_scalar_type, opd_autocast_promote, 3, (opd_scalar_type, opd_tensor *const *, int)) \
    X(int, opd_allow_mutation_begin, 0, ()) \
    V(opd_allow_mutation_end, 0, ()) \
    X(int, opd_context_maybe_clear_saved_tensors, 1, (opd_context *)) \
    X(int, opd_checkpoint_with, 8, (opd_checkpoint_fn, void *, opd_destroy, opd_tensor *const *, int, opd_tensor **, \
      int, const opd_checkpoint_options *)) \
    X(int, opd_custom_fwd, 4, (opd_context *, opd_backend, opd_scalar_type, opd_setup_fn)) \
    X(int, opd_custom_bwd, 2, (opd_backward_call *, opd_backward_fn)) \
    X(opd_scaler_options, opd_scaler_defaults, 0, ()) \
    X(opd_scaler *, opd_scaler_new, 1, (const opd_scaler_options *)) \
    V(opd_scaler_free, 1, (opd_scaler *)) \
    X(opd_tensor *, opd_scaler_scale, 2, (opd_scaler *, opd_tensor *)) \
    X(int, opd_scaler_unscale, 2, (opd_scaler *, opd_optimizer *)) \
    X(int, opd_scaler_step, 2, (opd_scaler *, opd_optimizer *)) \
    X(int, opd_scaler_update, 2, (opd_scaler *, double)) \
    X(opd_scaler_state, opd_scaler_get, 1, (const opd_scaler *)) \
    X(int, opd_scaler_set, 2, (opd_scaler *, opd_scaler_state)) \
    X(struct DLManagedTensorVersioned *, opd_dlpack_export, 2, (opd_tensor *, unsigned)) \
    X(struct DLManagedTensor *, opd_dlpack_export_unversioned, 1, (opd_tensor *)) \
    X(opd_tensor *, opd_dlpack_import, 2, (struct DLManagedTensorVersioned *, unsigned *)) \
    X(opd_tensor *, opd_dlpack_import_unversioned, 1, (struct DLManagedTensor *)) \
    X(int, opd_grad, 6, \
      (opd_transform_fn, void *, opd_tensor *const *, int, const opd_transform_options *, opd_tensor **)) \
    X(int, opd_grad_and_value, 6, \
      (opd_transform_fn, void *, opd_tensor *const *, int, const opd_transform_options *, opd_tensor **)) \
    X(int, opd_batch_fold, 1, (opd_call *)) \
    X(int, opd_jacrev, 6, \
      (opd_transform_fn, void *, opd_tensor *const *, int, const opd_transform_options *, opd_tensor **)) \
    X(int, opd_jacfwd, 6, \
      (opd_transform_fn, void *, opd_tensor *const *, int, const opd_transform_options *, opd_tensor **)) \
    X(int, opd_hessian, 6, \
      (opd_transform_fn, void *, opd_tensor *const *, int, const opd_transform_options *, opd_tensor **)) \
    X(int, opd_jvp, 8, (opd_transform_fn, void *, opd_tensor *const *, opd_tensor *const *, int, \
      const opd_transform_options *, opd_tensor **, opd_tensor **)) \
    X(int, opd_vjp, 7, (opd_transform_fn, void *, opd_tensor *const *, int, const opd_transform_options *, \
      opd_tensor **, opd_derivative **)) \
    X(int, opd_linearize, 7, (opd_transform_fn, void *, opd_tensor *const *, int, const opd_transform_options *, \
      opd_tensor **, opd_derivative **)) \
    X(int, opd_derivative_call, 5, (opd_derivative *, opd_tensor *const *, int, unsigned, opd_tensor **)) \
    X(opd_tensor *, opd_npy_load, 1, (const char *)) \
    X(opd_tensor *, opd_npy_parse, 2, (const void *, size_t)) \
    X(int, opd_npy_save, 2, (const char *, opd_tensor *)) \
    X(opd_tensor_file *, opd_tensor_file_open, 1, (const char *)) \
    X(opd_tensor_file *, opd_tensor_file_parse, 4, (void *, size_t, opd_deleter, void *)) \
    V(opd_tensor_file_close, 1, (opd_tensor_file *)) \
    X(int64_t, opd_tensor_file_count, 1, (const opd_tensor_file *)) \
    X(const char *, opd_tensor_file_name, 2, (const opd_tensor_file *, int64_t)) \
    X(int64_t, opd_tensor_file_find, 2, (const opd_tensor_file *, const char *)) \
    X(opd_tensor *, opd_tensor_file_at, 2, (const opd_tensor_file *, int64_t)) \
    X(opd_tensor *, opd_tensor_file_get, 2, (const opd_tensor_file *, const char *)) \
    X(const char *, opd_tensor_file_metadata, 2, (const opd_tensor_file *, const char *)) \
    X(const char *, opd_tensor_file_metadata_key, 2, (const opd_tensor_file *, int64_t)) \
    X(int, opd_npz_save, 3, (const char *, const char *const *, opd_tensors)) \
    X(int, opd_safetensors_save, 4, (const char *, const char *const *, opd_tensors, const char *const *)) \
    X(int, opd_opcheck, 4, (opd_op *, const opd_value *, int, const opd_opcheck_options *)) \
    X(opd_fake_block, opd_fake_begin, 0, ()) \
    V(opd_fake_end, 1, (opd_fake_block *)) \
    X(bool, opd_fake_enabled, 0, ()) \
    X(opd_tensor *, opd_fake_tensor, 1, (opd_tensor *)) \
    X(int64_t, opd_fake_new_size, 3, (opd_call *, int64_t, int64_t)) \
    X(opd_cost *, opd_cost_begin, 0, ()) \
    V(opd_cost_end, 1, (opd_cost *)) \
    V(opd_cost_free, 1, (opd_cost *)) \
    X(opd_cost_sum, opd_cost_total, 1, (const opd_cost *)) \
    X(opd_cost_row, opd_cost_at, 2, (const opd_cost *, int)) \
    X(size_t, opd_cost_print, 3, (const opd_cost *, char *, size_t)) \
    X(int, opd_fake_register, 3, (opd_library *, const char *, opd_kernel)) \
    X(int, opd_vmap_register, 3, (opd_library *, const char *, opd_vmap_rule)) \
    X(int, opd_jvp_register, 3, (opd_library *, const char *, opd_jvp_fn)) \
    X(opd_graph *, opd_graph_new, 0, ()) \
    X(opd_graph_value *, opd_graph_input, 3, (opd_graph *, const char *, const char *)) \
    X(opd_graph_value *, opd_graph_constant, 2, (opd_graph *, opd_value)) \
    X(opd_graph_value *, opd_graph_list, 4, (opd_graph *, const char *, opd_graph_value *const *, int)) \
    X(int, opd_graph_unpack, 4, (opd_graph *, opd_graph_value *, opd_graph_value **, int)) \
    X(int, opd_graph_call, 6, (opd_graph *, const char *, opd_graph_value *const *, int, opd_graph_value **, int)) \
    X(int, opd_graph_call_op, 6, (opd_graph *, opd_op *, opd_graph_value *const *, int, opd_graph_value **, int)) \
    X(int, opd_graph_describe, 4, (opd_graph *, opd_graph_value *, const char *, const char *)) \
    X(opd_graph_value *, opd_graph_find, 2, (opd_graph *, const char *)) \
    X(int, opd_graph_insert_before, 2, (opd_graph *, opd_graph_value *)) \
    X(int, opd_graph_output, 4, (opd_graph *, opd_graph_value *const *, int, bool)) \
    X(int, opd_graph_erase, 2, (opd_graph *, opd_graph_value *)) \
    X(int, opd_results_from_fake, 1, (opd_call *)) \
    X(int, opd_backend_register_sized, 3, (opd_backend, const opd_backend_desc *, size_t)) \
    X(int, opd_device_empty_cache, 1, (opd_device)) \
    X(opd_tensor *, opd_tensor_new_pinned, 3, (opd_ints, opd_scalar_type, opd_backend)) \
    X(bool, opd_device_debug_set, 2, (opd_backend, bool)) \
    V(opd_backend_missing_set, 2, (opd_backend, const char *)) \
    X(opd_device_event, opd_device_event_new, 2, (opd_device, bool)) \
    V(opd_device_event_free, 1, (opd_device_event)) \
    X(int, opd_device_event_record, 2, (opd_device_event, opd_stream)) \
    X(int, opd_stream_wait_event, 2, (opd_stream, opd_device_event)) \
    X(int, opd_device_event_synchronize, 1, (opd_device_event)) \
    X(int, opd_device_event_done, 1, (opd_device_event)) \
    X(double, opd_device_event_elapsed, 2, (opd_device_event, opd_device_event)) \
    X(int, opd_capture_begin, 1, (opd_stream)) \
    X(opd_capture *, opd_capture_end, 1, (opd_stream)) \
    X(int, opd_capture_replay, 2, (opd_capture *, opd_stream)) \
    V(opd_capture_free, 1, (opd_capture *)) \
    X(opd_tensor *, opd_result_update, 1, (opd_call *)) \
    X(bool, opd_cpu_fallback_set, 2, (opd_backend, bool)) \
    X(int64_t, opd_cpu_fallback_count, 0, ()) \
    X(opd_matmul_precision, opd_float32_matmul_precision_set, 1, (opd_matmul_precision)) \
    X(opd_matmul_precision, opd_float32_matmul_precision, 0, ()) \
    X(uint64_t, opd_generator_take, 3, (opd_generator *, int64_t, uint64_t *)) \
    V(opd_generator_give_back, 3, (opd_generator *, uint64_t, int64_t)) \
    X(int, opd_tensor_record_stream, 2, (opd_tensor *, opd_stream)) \
    X(opd_scope, opd_scope_open_at, 1, (const char *)) \
    X(int, opd_tensor_file_value, 3, (const opd_tensor_file *, const char *, opd_value *)) \
    X(opd_module *, opd_module_new, 0, ()) \
    X(opd_module *, opd_module_keep, 1, (opd_module *)) \
    V(opd_module_free, 1, (opd_module *)) \
    X(int, opd_module_add, 4, (opd_module *, const char *, opd_tensor *, opd_module_kind)) \
    X(int, opd_module_set, 3, (opd_module *, const char *, opd_tensor *)) \
    X(opd_tensor *, opd_module_get, 2, (const opd_module *, const char *)) \
    X(int64_t, opd_module_find, 2, (const opd_module *, const char *)) \
    X(int64_t, opd_module_count, 1, (const opd_module *)) \
    X(const char *, opd_module_name, 2, (const opd_module *, int64_t)) \
    X(opd_tensor *, opd_module_at, 2, (const opd_module *, int64_t)) \
    X(opd_module_kind, opd_module_kind_at, 2, (const opd_module *, int64_t)) \
    X(opd_json *, opd_json_parse, 2, (const char *, size_t)) \
    X(opd_json *, opd_json_load, 1, (const char *)) \
    V(opd_json_free, 1, (opd_json *)) \
    X(opd_json_kind, opd_json_kind_of, 2, (const opd_json *, int64_t)) \
    X(int64_t, opd_json_first, 2, (const opd_json *, int64_t)) \
    X(int64_t, opd_json_next, 2, (const opd_json *, int64_t)) \
    X(int64_t, opd_json_count, 2, (const opd_json *, int64_t)) \
    X(const char *, opd_json_key, 2, (const opd_json *, int64_t)) \
    X(int64_t, opd_json_get, 3, (const opd_json *, int64_t, const char *)) \
    X(const char *, opd_json_text, 3, (const opd_json *, int64_t, const char *)) \
    X(int64_t, opd_json_int, 3, (const opd_json *, int64_t, int64_t)) \
    X(double, opd_json_float, 3, (const opd_json *, int64_t, double)) \
    X(bool, opd_json_bool, 3, (const opd_json *, int64_t, bool)) \
    V(opd_json_place, 4, (const opd_json *, int64_t, int64_t *, int64_t *)) \
    X(opd_cell_kind, opd_value_cell, 1, (opd_value)) \
    X(opd_value, opd_value_keep, 1, (opd_value)) \
    V(opd_value_release, 1, (opd_value)) \
    X(opd_value, opd_string_new, 2, (const char *, int64_t)) \
    X(const char *, opd_string_text, 2, (const opd_value *, int64_t *)) \
    X(opd_value, opd_list_new, 1, (opd_tag)) \
    X(int, opd_list_append, 2, (opd_value, opd_value)) \
    X(int, opd_list_set, 3, (opd_value, int64_t, opd_value)) \
    X(int64_t, opd_list_count, 1, (opd_value)) \
    X(opd_value, opd_list_at, 2, (opd_value, int64_t)) \
    X(opd_value, opd_tuple_new, 2, (const opd_value *, int64_t)) \
    X(const char *, opd_tuple_name, 2, (opd_value, int64_t)) \
    X(opd_value, opd_dict_new, 0, ()) \
    X(int, opd_dict_set, 3, (opd_value, opd_value, opd_value)) \
    X(int, opd_dict_get, 3, (opd_value, opd_value, opd_value *)) \
    X(opd_value, opd_dict_key_at, 2, (opd_value, int64_t)) \
    X(opd_value, opd_dict_value_at, 2, (opd_value, int64_t)) \
    X(const char *, opd_object_class, 1, (opd_value)) \
    X(opd_value, opd_object_get, 2, (opd_value, const char *)) \
    X(int, opd_object_set, 3, (opd_value, const char *, opd_value)) \
    X(size_t, opd_value_print, 3, (opd_value, char *, size_t)) \
    X(int, opd_checkpoint_file_save, 4, (const char *, const char *const *, const opd_value *, int64_t)) \
    X(int, opd_optimizer_add_group, 3, (opd_optimizer *, opd_tensor *const *, int)) \
    X(int, opd_optimizer_move_group, 3, (opd_optimizer *, opd_tensor *const *, int)) \
    X(int, opd_optimizer_groups, 1, (const opd_optimizer *)) \
    X(int, opd_optimizer_group_size, 2, (const opd_optimizer *, int)) \
    X(double, opd_optimizer_option, 3, (const opd_optimizer *, int, const char *)) \
    X(int, opd_optimizer_set_option, 4, (opd_optimizer *, int, const char *, double)) \
    X(const char *, opd_optimizer_name, 1, (const opd_optimizer *)) \
    X(opd_tensor *, opd_optimizer_param, 2, (const opd_optimizer *, int)) \
    X(int, opd_optimizer_forget, 2, (opd_optimizer *, int)) \
    X(opd_program *, opd_program_load, 2, (const char *, const char *)) \
    X(opd_program *, opd_program_parse, 3, (const void *, size_t, const char *)) \
    V(opd_program_free, 1, (opd_program *)) \
    X(opd_module *, opd_program_module, 1, (const opd_program *)) \
    X(const char *, opd_program_name, 1, (const opd_program *)) \
    X(const char *, opd_program_file_name, 2, (const opd_program *, int)) \
    X(int, opd_program_ninputs, 1, (const opd_program *)) \
    X(int, opd_program_noutputs, 1, (const opd_program *)) \
    X(const char *, opd_program_input_name, 2, (const opd_program *, int)) \
    X(const char *, opd_program_output_name, 2, (const opd_program *, int)) \
    X(int, opd_program_find_input, 2, (const opd_program *, const char *)) \
    X(int, opd_program_find_output, 2, (const opd_program *, const char *)) \
    X(int, opd_program_input_constant, 3, (const opd_program *, int, opd_value *)) \
    X(size_t, opd_program_input_type, 4, (const opd_program *, int, char *, size_t)) \
    X(bool, opd_program_writes, 1, (const opd_program *)) \
    X(int, opd_program_run, 5, (const opd_program *, const opd_value *, int, opd_value *, int)) \
    X(int, opd_program_run_named, 6, \
      (const opd_program *, const char *const *, const opd_value *, int, opd_value *, int)) \
    X(int, opd_program_function, 4, (void *, opd_tensor *const *, int, opd_tensor **)) \
    X(const opd_graph *, opd_program_graph, 1, (const opd_program *)) \
    X(size_t, opd_program_print, 3, (const opd_program *, char *, size_t)) \
    X(const char *, opd_program_operator, 4, (const opd_program *, int64_t, int64_t *, const char **)) \
    X(const char *, opd_program_note, 2, (const opd_program *, int64_t)) \
    X(bool, opd_tensor_file_requires_grad, 2, (const opd_tensor_file *, int64_t)) \
    X(int, opd_module_parameters, 4, (const opd_module *, const char *, opd_tensor **, int)) \
    X(int64_t, opd_module_numel, 2, (const opd_module *, const char *)) \
    X(int, opd_module_set_requires_grad, 3, (opd_module *, const char *, bool)) \
    X(int, opd_module_zero_grad, 1, (opd_module *)) \
    X(int, opd_module_to, 3, (opd_module *, const opd_device *, opd_scalar_type)) \
    X(opd_optimizer *, opd_module_sgd, 3, (const opd_module *, const char *, const opd_sgd_options *)) \
    X(opd_optimizer *, opd_module_adam, 3, (const opd_module *, const char *, const opd_adam_options *)) \
    X(opd_optimizer *, opd_module_adamw, 3, (const opd_module *, const char *, const opd_adam_options *)) \
    X(int, opd_module_group, 3, (const opd_module *, opd_optimizer *, const char *)) \
    X(opd_module *, opd_module_open, 2, (const char *, const char *)) \
    X(int, opd_module_load, 3, (opd_module *, const opd_tensor_file *, const opd_module_load_options *)) \
    X(int, opd_module_save, 2, (const opd_module *, const char *)) \
    X(int, opd_training_save, 6, \
      (const char *, const opd_module *, const opd_optimizer *, const char *const *, const opd_value *, int64_t)) \
    X(int, opd_training_load, 3, (const opd_tensor_file *, opd_module *, opd_optimizer *)) \
    X(int, opd_optimizer_load, 3, (opd_optimizer *, const opd_tensor_file *, const char *)) \
    X(double, opd_init_calculate_gain, 2, (const char *, double)) \
    X(int, opd_init_fans, 3, (const opd_tensor *, int64_t *, int64_t *)) \
    X(opd_tensor *, opd_init_uniform_, 3, (opd_tensor *, double, double)) \
    X(opd_tensor *, opd_init_normal_, 3, (opd_tensor *, double, double)) \
    X(opd_tensor *, opd_init_trunc_normal_, 5, (opd_tensor *, double, double, double, double)) \
    X(opd_tensor *, opd_init_constant_, 2, (opd_tensor *, double)) \
    X(opd_tensor *, opd_init_ones_, 1, (opd_tensor *)) \
    X(opd_tensor *, opd_init_zeros_, 1, (opd_tensor *)) \
    X(opd_tensor *, opd_init_eye_, 1, (opd_tensor *)) \
    X(opd_tensor *, opd_init_dirac_, 2, (opd_tensor *, int64_t)) \
    X(opd_tensor *, opd_init_xavier_uniform_, 2, (opd_tensor *, double)) \
    X(opd_tensor *, opd_init_xavier_normal_, 2, (opd_tensor *, double)) \
    X(opd_tensor *, opd_init_kaiming_uniform_, 4, (opd_tensor *, double, bool, const char *)) \
    X(opd_tensor *, opd_init_kaiming_normal_, 4, (opd_tensor *, double, bool, const char *)) \
    X(opd_tensor *, opd_init_orthogonal_, 2, (opd_tensor *, double)) \
    X(opd_tensor *, opd_init_sparse_, 3, (opd_tensor *, double, double)) \
    X(opd_file_kind, opd_file_kind_of, 1, (const char *)) \
    X(int, opd_graph_run_values, 5, (const opd_graph *, const opd_value *, int, opd_value *, int)) \
    X(opd_script *, opd_script_compile, 2, (const char *, const char *)) \
    X(opd_script *, opd_script_load, 1, (const char *)) \
    X(opd_script *, opd_script_from_bytes, 2, (const void *, size_t)) \
    V(opd_script_free, 1, (opd_script *)) \
    X(opd_module *, opd_script_module, 1, (const opd_script *)) \
    X(int, opd_script_count, 1, (const opd_script *)) \
    X(const char *, opd_script_name, 2, (const opd_script *, int)) \
    X(int, opd_script_nargs, 2, (const opd_script *, const char *)) \
    X(const char *, opd_script_arg_name, 3, (const opd_script *, const char *, int)) \
    X(size_t, opd_script_arg_type, 5, (const opd_script *, const char *, int, char *, size_t)) \
    X(int, opd_script_run, 5, (const opd_script *, const char *, const opd_value *, int, opd_value *)) \
    X(int, opd_script_run_named, 7, \
      (const opd_script *, const char *, const opd_value *, int, const opd_keyword *, int, opd_value *)) \
    X(int, opd_script_function, 4, (void *, opd_tensor *const *, int, opd_tensor **)) \
    X(const opd_graph *, opd_script_graph, 2, (const opd_script *, const char *)) \
    X(int, opd_program_save, 3, (const opd_graph *, const opd_module *, const char *)) \
    X(int, opd_tensor_file_number, 3, (const opd_tensor_file *, const char *, double *)) \
    X(const char *, opd_script_operator, 4, (const opd_script *, int64_t, int64_t *, bool *)) \
    X(int, opd_script_save, 2, (const opd_script *, const char *)) \
    X(int, opd_program_save_all, 4, (opd_program *const *, const char *const *, int, const char *)) \
    X(int, opd_tensor_file_value_at, 3, (const opd_tensor_file *, int64_t, opd_value *)) \
    X(int, opd_program_save_open, 4, (const opd_graph *, const opd_graph *, const opd_module *, const char *)) \
    X(bool, opd_is_conj, 1, (const opd_tensor *)) \
    X(bool, opd_is_neg, 1, (const opd_tensor *)) \
    X(opd_group *, opd_group_register_sized, 2, (const opd_group_desc *, size_t)) \
    X(int, opd_group_unregister, 1, (opd_group *)) \
    X(opd_group *, opd_group_find, 1, (const char *)) \
    X(int, opd_group_rank, 1, (const opd_group *)) \
    X(int, opd_group_size, 1, (const opd_group *)) \
    X(const char *, opd_group_name, 1, (const opd_group *)) \
    X(opd_group *, opd_group_split, 4, (opd_group *, const char *, const int32_t *, int32_t)) \
    X(int, opd_work_wait, 1, (opd_work *)) \
    X(int, opd_work_test, 1, (opd_work *)) \
    V(opd_work_release, 1, (opd_work *)) \
    X(opd_work *, opd_group_send, 4, (opd_group *, opd_tensor *, int, int)) \
    X(opd_work *, opd_group_recv, 4, (opd_group *, opd_tensor *, int, int)) \
    X(opd_work *, opd_group_reduce, 4, (opd_group *, opd_tensor *, const char *, int)) \
    X(opd_work *, opd_group_gather, 4, (opd_group *, opd_tensor *, opd_tensor *, int)) \
    X(opd_work *, opd_group_scatter, 4, (opd_group *, opd_tensor *, opd_tensor *, int)) \
    X(opd_work *, opd_group_barrier, 1, (opd_group *)) \
    X(opd_work *, opd_group_start, 2, (opd_group *, const opd_transfer *)) \
    X(opd_tensor *, opd_all_reduce, 3, (opd_tensor *, const char *, const char *)) \
    X(opd_tensor *, opd_all_reduce_, 3, (opd_tensor *, const char *, const char *)) \
    X(opd_tensor *, opd_all_gather, 2, (opd_tensor *, const char *)) \
    X(opd_tensor *, opd_reduce_scatter, 3, (opd_tensor *, const char *, const char *)) \
    X(opd_tensor *, opd_broadcast, 3, (opd_tensor *, int, const char *)) \
    X(opd_tensor *, opd_broadcast_, 3, (opd_tensor *, int, const char *)) \
    X(opd_parallel *, opd_data_parallel, 4, \
      (opd_tensor *const *, int, opd_group *, const opd_parallel_options *)) \
    X(int64_t, opd_parallel_begin, 2, (opd_parallel *, int64_t)) \
    X(bool, opd_parallel_sync_set, 2, (opd_parallel *, bool)) \
    V(opd_parallel_free, 1, (opd_parallel *)) \
    X(opd_tensor *, opd_tensor_file_bytes, 2, (const opd_tensor_file *, int64_t)) \
    X(int, opd_graph_write_c, 5, \
      (const opd_graph *, opd_tensor *const *, int, const char *, const opd_c_options *)) \
    X(int, opd_program_write_c, 5, \
      (const opd_program *, const opd_value *, int, const char *, const opd_c_options *)) \
    X(opd_parallel *, opd_sharded_parallel, 4, \
      (opd_tensor *const *, int, opd_group *, const opd_parallel_options *)) \
    X(int, opd_sharded_add, 3, (opd_parallel *, opd_tensor *const *, int)) \
    X(opd_tensor *, opd_parallel_full, 2, (opd_parallel *, opd_tensor *)) \
    X(int, opd_sharded_hooks_begin, 1, (opd_parallel *)) \
    X(opd_tensor *, opd_sharded_clip_grad_norm, 2, (opd_parallel *, double)) \
    X(int, opd_sharded_save, 7, (opd_parallel *, const char *, const opd_module *, const opd_optimizer *, \
                                 const char *const *, const opd_value *, int64_t)) \
    X(int, opd_sharded_load, 4, (opd_parallel *, const char *, opd_module *, opd_optimizer *)) \
    X(opd_compiled *, opd_graph_compile, 2, (const opd_graph *, const opd_compile_options *)) \
    X(opd_compiled *, opd_program_compile, 2, (const opd_program *, const opd_compile_options *)) \
    X(int, opd_compiled_run, 5, (opd_compiled *, const opd_value *, int, opd_value *, int)) \
    X(int, opd_compiled_function, 4, (void *, opd_tensor *const *, int, opd_tensor **)) \
    X(const char *, opd_compiled_reason, 1, (const opd_compiled *)) \
    V(opd_compiled_free, 1, (opd_compiled *)) \
    X(int, opd_group_abandon, 2, (opd_group *, const char *)) \
    X(int, opd_group_device_add, 2, (opd_group *, opd_device)) \
    X(int, opd_checkpoint_call, 7, (opd_transform_fn, void *, opd_destroy, opd_tensor *const *, int, \
      const opd_checkpoint_options *, opd_tensor **))

#define OPD_X0() (void)
#define OPD_X1(a) (a x0)
#define OPD_X2(a, b) (a x0, b x1)
#define OPD_X3(a, b, c) (a x0, b x1, c x2)
#define OPD_X4(a, b, c, d) (a x0, b x1, c x2, d x3)
#define OPD_X5(a, b, c, d, e) (a x0, b x1, c x2, d x3, e x4)
#define OPD_X6(a, b, c, d, e, f) (a x0, b x1, c x2, d x3, e x4, f x5)
#define OPD_X7(a, b, c, d, e, f, g) (a x0, b x1, c x2, d x3, e x4, f x5, g x6)
#define OPD_X8(a, b, c, d, e, f, g, h) (a x0, b x1, c x2, d x3, e x4, f x5, g x6, h x7)
#define OPD_X9(a, b, c, d, e, f, g, h, i) (a x0, b x1, c x2, d x3, e x4, f x5, g x6, h x7, i x8)
#define OPD_X10(a, b, c, d, e, f, g, h, i, j) (a x0, b x1, c x2, d x3, e x4, f x5, g x6, h x7, i x8, j x9)
#define OPD_Y0 ()
#define OPD_Y1 (x0)
#define OPD_Y2 (x0, x1)
#define OPD_Y3 (x0, x1, x2)
#define OPD_Y4 (x0, x1, x2, x3)
#define OPD_Y5 (x0, x1, x2, x3, x4)
#define OPD_Y6 (x0, x1, x2, x3, x4, x5)
#define OPD_Y7 (x0, x1, x2, x3, x4, x5, x6)
#define OPD_Y8 (x0, x1, x2, x3, x4, x5, x6, x7)
#define OPD_Y9 (x0, x1, x2, x3, x4, x5, x6, x7, x8)
#define OPD_Y10 (x0, x1, x2, x3, x4, x5, x6, x7, x8, x9)
#define OPD_HOST_FIELD(R, name, n, types) R (*name) OPD_X##n types;
#define OPD_HOST_FIELD_V(name, n, types) void (*name) OPD_X##n types;
#define OPD_HOST_STRUCT struct opd_host { \
    int32_t major, minor; \
    int (*opd_fail)(opd_code, const char *, ...); \
    void (*opd_warn)(const char *, ...); \
    int (*define)(opd_library *, const opd_op_desc *, size_t); \
    int (*impl)(opd_library *, const char *, const char *, opd_kernel, void *, opd_destroy); \
    int (*fallback)(opd_library *, opd_kernel); \
    OPD_HOST_FUNCTIONS(OPD_HOST_FIELD, OPD_HOST_FIELD_V) }

#ifdef __cplusplus
extern "C" {
#endif

struct opd_host;
/* What a plug-in exports as opd_plugin_entry. */
typedef struct opd_plugin_info {
    char magic[12];                               /* "opdispatch" */
    int32_t major, minor;                         /* of the header it was built with */
    const struct opd_host **host;                 /* where the table goes */
    opd_block **blocks;                           /* what its constructors have linked */
} opd_plugin_info;
#define OPD_PLUGIN_MAGIC "opdispatch"

#if defined(OPDISPATCH_PLUGIN)
/* One of each in a plug-in of many files. */
#define OPD_PLUGIN_HIDDEN __attribute__((weak, visibility("hidden")))
extern const struct opd_host *opd_plugin_host OPD_PLUGIN_HIDDEN;
extern opd_block *opd_plugin_blocks OPD_PLUGIN_HIDDEN;
extern const opd_plugin_info opd_plugin_entry __attribute__((weak, visibility("default")));
OPD_HOST_STRUCT;
const struct opd_host *opd_plugin_host = NULL;
opd_block *opd_plugin_blocks = NULL;
const opd_plugin_info opd_plugin_entry = {
    OPD_PLUGIN_MAGIC, OPD_VERSION_MAJOR, OPD_VERSION_MINOR, &opd_plugin_host, &opd_plugin_blocks};
/* A plug-in that goes without ever having had a host: dlopen alone registers nothing, and nobody would say so. */
extern int dprintf(int file, const char *format, ...);
extern void opd_plugin_unused(void) __attribute__((weak, visibility("hidden"), destructor));
void opd_plugin_unused(void) {
    if (!opd_plugin_host && opd_plugin_blocks) {
        (void)dprintf(2, "opdispatch: warning: %s is a plug-in that opd_library_load has not loaded: nothing in it was "
                      "registered\n", opd_plugin_blocks->file);
    }
}

#define OPD_FORWARD(R, name, n, types) static R name OPD_X##n types { return opd_plugin_host->name OPD_Y##n; }
#define OPD_FORWARD_V(name, n, types) static void name OPD_X##n types { opd_plugin_host->name OPD_Y##n; }
OPD_HOST_FUNCTIONS(OPD_FORWARD, OPD_FORWARD_V)
#define opd_fail (opd_plugin_host->opd_fail)
#define opd_warn (opd_plugin_host->opd_warn)

static void opd_block_link(opd_block *block) {
    opd_block **blocks = &opd_plugin_blocks;
    while (*blocks && *blocks != block) { blocks = &(*blocks)->next; }
    if (!*blocks) { *blocks = block; }
}

/* The functions that registrations know by their address are the program's, not those of this file. */
static opd_kernel opd_plugin_kernel(opd_kernel kernel) {
    const struct opd_host *host = opd_plugin_host;
    return kernel == opd_fallthrough ? host->opd_fallthrough : kernel == opd_batch_pointwise ? host->opd_batch_pointwise
        : kernel == opd_batch_shift_dim ? host->opd_batch_shift_dim : kernel == opd_batch_matmul
        ? host->opd_batch_matmul : kernel == opd_batch_fold ? host->opd_batch_fold : kernel == opd_batch_view
        ? host->opd_batch_view : kernel == opd_batch_decompose ? host->opd_batch_decompose : kernel == opd_batch_factory
        ? host->opd_batch_factory : kernel == opd_batch_loop ? host->opd_batch_loop
        : kernel == opd_autograd_not_implemented ? host->opd_autograd_not_implemented
        : kernel == opd_inplace_or_view_not_implemented ? host->opd_inplace_or_view_not_implemented : kernel;
}
static int opd_impl_key(opd_library *lib, const char *name, const char *key, opd_kernel kernel, void *user,
                        void (*destroy)(void *user)) {
    return opd_plugin_host->impl(lib, name, key, opd_plugin_kernel(kernel), user, destroy);
}
static int opd_impl(opd_library *lib, const char *name, opd_kernel kernel) {
    return opd_impl_key(lib, name, NULL, kernel, NULL, NULL);
}
static int opd_fallback(opd_library *lib, opd_kernel kernel) {
    return opd_plugin_host->fallback(lib, opd_plugin_kernel(kernel));
}
static int opd_define(opd_library *lib, const opd_op_desc *desc) {
    opd_op_desc other;
    if (!desc) { return opd_plugin_host->define(lib, NULL, 0); }
    other = *desc;
    other.cpu = opd_plugin_kernel(other.cpu);
    other.cuda = opd_plugin_kernel(other.cuda);
    other.fake = opd_plugin_kernel(other.fake);
    other.composite = opd_plugin_kernel(other.composite);
    other.any = opd_plugin_kernel(other.any);
    other.autograd = opd_plugin_kernel(other.autograd);
    other.vmap = opd_plugin_kernel(other.vmap);
    if (other.backward == opd_not_differentiable) { other.backward = opd_plugin_host->opd_not_differentiable; }
    return opd_plugin_host->define(lib, &other, sizeof other);
}
#endif

#ifdef __cplusplus
}
#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
static inline int opd_caught() {
    try { throw; }
    catch (const std::bad_alloc &e) { return opd_fail(OPD_ERROR_MEMORY, "%s", e.what()); }
    catch (const std::exception &e) {
        const char *what = e.what();
        int count = 0;
        while (what[count]) { count++; }
        while (count && what[count - 1] == '\n') { count--; }
        return opd_fail(OPD_ERROR_USER, "%.*s", count, what);
    }
    catch (...) { return opd_fail(OPD_ERROR_USER, "an exception that is no std::exception"); }
}
#endif
#endif

#endif /* OPDISPATCH_H */

