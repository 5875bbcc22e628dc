#include "aoti.h"

//----------------------------------------------------------------------------------------------------------------------
//  >>aoti_loading  compiled models: functions by name, stubs, libraries, packages
//----------------------------------------------------------------------------------------------------------------------

//== functions by name =================================================================================================

#define OPDI_AOTI_FN(name, fn) {name, OPDI_AOTI_PLAIN, 0, (opdi_aoti_fn)fn}
OPDI_INTERNAL int32_t opdi_aoti_proxy(void *executor, int node, int nints, int64_t *ints, int ntensors, void **tensors);
OPDI_INTERNAL const opdi_aoti_symbol opdi_aoti_symbols[] = {
    {"aoti_torch_device_type_cpu", OPDI_AOTI_CONSTANT, 0, NULL},
    {"aoti_torch_device_type_cuda", OPDI_AOTI_CONSTANT, 1, NULL},
    {"aoti_torch_device_type_xpu", OPDI_AOTI_CONSTANT, 12, NULL},
    {"aoti_torch_device_type_mps", OPDI_AOTI_CONSTANT, 13, NULL},
    {"aoti_torch_device_type_meta", OPDI_AOTI_CONSTANT, 14, NULL},
    {"aoti_torch_device_type_privateuse1", OPDI_AOTI_CONSTANT, 20, NULL},
    {"aoti_torch_dtype_uint8", OPDI_AOTI_CONSTANT, 0, NULL}, {"aoti_torch_dtype_int8", OPDI_AOTI_CONSTANT, 1, NULL},
    {"aoti_torch_dtype_int16", OPDI_AOTI_CONSTANT, 2, NULL}, {"aoti_torch_dtype_int32", OPDI_AOTI_CONSTANT, 3, NULL},
    {"aoti_torch_dtype_int64", OPDI_AOTI_CONSTANT, 4, NULL}, {"aoti_torch_dtype_float16", OPDI_AOTI_CONSTANT, 5, NULL},
    {"aoti_torch_dtype_float32", OPDI_AOTI_CONSTANT, 6, NULL},
    {"aoti_torch_dtype_float64", OPDI_AOTI_CONSTANT, 7, NULL},
    {"aoti_torch_dtype_complex32", OPDI_AOTI_CONSTANT, 8, NULL},
    {"aoti_torch_dtype_complex64", OPDI_AOTI_CONSTANT, 9, NULL},
    {"aoti_torch_dtype_complex128", OPDI_AOTI_CONSTANT, 10, NULL},
    {"aoti_torch_dtype_bool", OPDI_AOTI_CONSTANT, 11, NULL},
    {"aoti_torch_dtype_bfloat16", OPDI_AOTI_CONSTANT, 15, NULL},
    {"aoti_torch_dtype_float8_e5m2", OPDI_AOTI_CONSTANT, 23, NULL},
    {"aoti_torch_dtype_float8_e4m3fn", OPDI_AOTI_CONSTANT, 24, NULL},
    {"aoti_torch_dtype_float8_e5m2fnuz", OPDI_AOTI_CONSTANT, 25, NULL},
    {"aoti_torch_dtype_float8_e4m3fnuz", OPDI_AOTI_CONSTANT, 26, NULL},
    {"aoti_torch_dtype_uint16", OPDI_AOTI_CONSTANT, 27, NULL},
    {"aoti_torch_dtype_uint32", OPDI_AOTI_CONSTANT, 28, NULL},
    {"aoti_torch_dtype_uint64", OPDI_AOTI_CONSTANT, 29, NULL},
    {"aoti_torch_dtype_float8_e8m0fnu", OPDI_AOTI_CONSTANT, 44, NULL},
    {"aoti_torch_dtype_float4_e2m1fn_x2", OPDI_AOTI_CONSTANT, 45, NULL},
    {"torch_dtype_float8_e8m0fnu", OPDI_AOTI_CONSTANT, 44, NULL},
    {"torch_dtype_float4_e2m1fn_x2", OPDI_AOTI_CONSTANT, 45, NULL},
    {"aoti_torch_layout_strided", OPDI_AOTI_CONSTANT, 0, NULL},
    {"aoti_torch_layout_sparse_coo", OPDI_AOTI_CONSTANT, 1, NULL},
    {"aoti_torch_layout_sparse_csr", OPDI_AOTI_CONSTANT, 2, NULL},
    {"aoti_torch_layout__mkldnn", OPDI_AOTI_CONSTANT, 3, NULL},
    {"aoti_torch_layout_sparse_csc", OPDI_AOTI_CONSTANT, 4, NULL},
    {"aoti_torch_layout_sparse_bsr", OPDI_AOTI_CONSTANT, 5, NULL},
    {"aoti_torch_layout_sparse_bsc", OPDI_AOTI_CONSTANT, 6, NULL},
    {"aoti_torch_layout_jagged", OPDI_AOTI_CONSTANT, 7, NULL},
    {"aoti_torch_memory_format_contiguous_format", OPDI_AOTI_CONSTANT, 0, NULL},
    {"aoti_torch_memory_format_preserve_format", OPDI_AOTI_CONSTANT, 1, NULL},
    {"aoti_torch_memory_format_channels_last", OPDI_AOTI_CONSTANT, 2, NULL},
    {"aoti_torch_memory_format_channels_last_3d", OPDI_AOTI_CONSTANT, 3, NULL},
    {"aoti_torch_abi_version", OPDI_AOTI_CONSTANT, (uint64_t)2 << 56 | (uint64_t)15 << 48, NULL},
    {"torch_tag_core", OPDI_AOTI_CONSTANT, OPD_OPTAG_CORE, NULL},
    {"torch_tag_cudagraph_unsafe", OPDI_AOTI_CONSTANT, 1 << 16, NULL},
    {"torch_tag_data_dependent_output", OPDI_AOTI_CONSTANT, OPD_OPTAG_DATA_DEPENDENT_OUTPUT, NULL},
    {"torch_tag_dynamic_output_shape", OPDI_AOTI_CONSTANT, OPD_OPTAG_DYNAMIC_OUTPUT_SHAPE, NULL},
    {"torch_tag_flexible_layout", OPDI_AOTI_CONSTANT, OPD_OPTAG_FLEXIBLE_LAYOUT, NULL},
    {"torch_tag_generated", OPDI_AOTI_CONSTANT, OPD_OPTAG_GENERATED, NULL},
    {"torch_tag_inplace_view", OPDI_AOTI_CONSTANT, OPD_OPTAG_INPLACE_VIEW, NULL},
    {"torch_tag_maybe_aliasing_or_mutating", OPDI_AOTI_CONSTANT, OPD_OPTAG_MAYBE_ALIASING_OR_MUTATING, NULL},
    {"torch_tag_needs_contiguous_strides", OPDI_AOTI_CONSTANT, 1 << 17, NULL},
    {"torch_tag_needs_exact_strides", OPDI_AOTI_CONSTANT, OPD_OPTAG_NEEDS_EXACT_STRIDES, NULL},
    {"torch_tag_needs_fixed_stride_order", OPDI_AOTI_CONSTANT, OPD_OPTAG_NEEDS_FIXED_STRIDE_ORDER, NULL},
    {"torch_tag_nondeterministic_bitwise", OPDI_AOTI_CONSTANT, OPD_OPTAG_NONDETERMINISTIC_BITWISE, NULL},
    {"torch_tag_nondeterministic_seeded", OPDI_AOTI_CONSTANT, OPD_OPTAG_NONDETERMINISTIC_SEEDED, NULL},
    {"torch_tag_out_variant", OPDI_AOTI_CONSTANT, 1 << 18, NULL},
    {"torch_tag_pointwise", OPDI_AOTI_CONSTANT, OPD_OPTAG_POINTWISE, NULL},
    {"torch_tag_pt2_compliant_tag", OPDI_AOTI_CONSTANT, OPD_OPTAG_PT2_COMPLIANT, NULL},
    {"torch_tag_reduction", OPDI_AOTI_CONSTANT, 1 << 19, NULL},
    {"torch_tag_view_copy", OPDI_AOTI_CONSTANT, OPD_OPTAG_VIEW_COPY, NULL},
    OPDI_AOTI_FN("aoti_torch_library_init_impl", opdi_ext_init_impl),
    OPDI_AOTI_FN("aoti_torch_library_init_def", opdi_ext_init_def),
    OPDI_AOTI_FN("aoti_torch_library_init_fragment", opdi_ext_init_fragment),
    OPDI_AOTI_FN("aoti_torch_library_impl", opdi_ext_old_impl),
    OPDI_AOTI_FN("torch_library_impl", opdi_ext_impl),
    OPDI_AOTI_FN("aoti_torch_library_def", opdi_ext_def),
    OPDI_AOTI_FN("torch_library_def_with_tags", opdi_ext_def_tags),
    OPDI_AOTI_FN("torch_library_set_python_module", opdi_ext_module),
    OPDI_AOTI_FN("aoti_torch_call_dispatcher", opdi_ext_old_dispatch),
    OPDI_AOTI_FN("torch_call_dispatcher", opdi_ext_dispatch),
    OPDI_AOTI_FN("torch_new_list_reserve_size", opdi_ext_list_new),
    OPDI_AOTI_FN("torch_list_size", opdi_ext_list_size),
    OPDI_AOTI_FN("torch_list_get_item", opdi_ext_list_get),
    OPDI_AOTI_FN("torch_list_set_item", opdi_ext_list_set),
    OPDI_AOTI_FN("torch_list_push_back", opdi_ext_list_push),
    OPDI_AOTI_FN("torch_delete_list", opdi_ext_list_free),
    OPDI_AOTI_FN("torch_new_string_handle", opdi_ext_text_new),
    OPDI_AOTI_FN("torch_delete_string", opdi_ext_text_free),
    OPDI_AOTI_FN("torch_string_length", opdi_ext_text_length),
    OPDI_AOTI_FN("torch_string_c_str", opdi_ext_text_data),
    OPDI_AOTI_FN("torch_new_stable_ivalue", opdi_ext_cell_new),
    OPDI_AOTI_FN("torch_delete_stable_ivalue", opdi_ext_cell_free),
    OPDI_AOTI_FN("torch_exception_get_what", opdi_ext_no_text),
    OPDI_AOTI_FN("torch_exception_get_what_without_backtrace", opdi_ext_what),
    OPDI_AOTI_FN("torch_parse_device_string", opdi_ext_parse_device),
    OPDI_AOTI_FN("torch_parallel_for", opdi_ext_parallel_for),
    OPDI_AOTI_FN("torch_get_thread_idx", opdi_ext_thread),
    OPDI_AOTI_FN("torch_get_num_threads", opdi_ext_threads),
    OPDI_AOTI_FN("torch_set_requires_grad", opdi_ext_requires_grad),
    OPDI_AOTI_FN("torch_from_blob", opdi_ext_from_blob),
    OPDI_AOTI_FN("dlopen", opdi_ext_open),
    OPDI_AOTI_FN("dlclose", opdi_ext_close),
    OPDI_AOTI_FN("dlsym", opdi_ext_symbol),
    OPDI_AOTI_FN("torch_c10_cuda_check_msg", opdi_ext_no_device),
    OPDI_AOTI_FN("torch_get_current_cuda_blas_handle", opdi_ext_no_device),
    OPDI_AOTI_FN("torch_set_current_cuda_stream", opdi_ext_no_device),
    OPDI_AOTI_FN("torch_get_cuda_stream_from_pool", opdi_ext_no_device),
    OPDI_AOTI_FN("torch_cuda_stream_synchronize", opdi_ext_no_device),
    OPDI_AOTI_FN("aoti_torch_get_current_cuda_stream", opdi_ext_no_device),
    OPDI_AOTI_FN("aoti_torch_create_cuda_guard", opdi_ext_no_device),
    OPDI_AOTI_FN("aoti_torch_cuda_guard_set_index", opdi_ext_no_device),
    OPDI_AOTI_FN("aoti_torch_create_cuda_stream_guard", opdi_ext_no_device),
    OPDI_AOTI_FN("aoti_torch_cuda_caching_allocator_raw_alloc", opdi_ext_no_device),
    OPDI_AOTI_FN("aoti_torch_cuda_caching_allocator_raw_delete", opdi_ext_no_device),
    OPDI_AOTI_FN("torch_stream_native_handle", opdi_ext_no_device),
    OPDI_AOTI_FN("torch_new_generator_handle", opdi_ext_no_generator),
    OPDI_AOTI_FN("torch_generator_get_device", opdi_ext_no_generator),
    OPDI_AOTI_FN(OPDI_EXT_STRING_REPLACE, opdi_ext_string_replace),
    OPDI_AOTI_FN("aoti_torch_delete_library_object", opdi_aoti_nothing),
    OPDI_AOTI_FN("torch_c10_cuda_free_error_msg", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_delete_cuda_guard", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_delete_cuda_stream_guard", opdi_aoti_nothing),
    OPDI_AOTI_FN("torch_delete_generator", opdi_aoti_nothing),
    {"aoti_torch_item_uint8", OPDI_AOTI_THIRD, OPD_UINT8, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_uint16", OPDI_AOTI_THIRD, OPD_UINT16, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_uint32", OPDI_AOTI_THIRD, OPD_UINT32, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_uint64", OPDI_AOTI_THIRD, OPD_UINT64, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_int8", OPDI_AOTI_THIRD, OPD_INT8, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_int16", OPDI_AOTI_THIRD, OPD_INT16, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_int32", OPDI_AOTI_THIRD, OPD_INT32, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_int64", OPDI_AOTI_THIRD, OPD_INT64, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_bool", OPDI_AOTI_THIRD, OPD_BOOL, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_float16", OPDI_AOTI_THIRD, OPD_FLOAT16, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_bfloat16", OPDI_AOTI_THIRD, OPD_BFLOAT16, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_float32", OPDI_AOTI_THIRD, OPD_FLOAT32, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_float64", OPDI_AOTI_THIRD, OPD_FLOAT64, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_item_complex64", OPDI_AOTI_THIRD, OPD_COMPLEX64, (opdi_aoti_fn)opdi_aoti_item},
    {"aoti_torch_scalar_to_tensor_uint8", OPDI_AOTI_THIRD, OPD_UINT8, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_uint16", OPDI_AOTI_THIRD, OPD_UINT16, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_uint32", OPDI_AOTI_THIRD, OPD_UINT32, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_uint64", OPDI_AOTI_THIRD, OPD_UINT64, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_int8", OPDI_AOTI_THIRD, OPD_INT8, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_int16", OPDI_AOTI_THIRD, OPD_INT16, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_int32", OPDI_AOTI_THIRD, OPD_INT32, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_int64", OPDI_AOTI_THIRD, OPD_INT64, (opdi_aoti_fn)opdi_aoti_from_bits},
    {"aoti_torch_scalar_to_tensor_bool", OPDI_AOTI_THIRD, OPD_BOOL, (opdi_aoti_fn)opdi_aoti_from_bits},
    OPDI_AOTI_FN("aoti_torch_scalar_to_tensor_float32", opdi_aoti_from_f32),
    OPDI_AOTI_FN("aoti_torch_scalar_to_tensor_float64", opdi_aoti_from_f64),
    OPDI_AOTI_FN("aoti_torch_scalar_to_tensor_complex64", opdi_aoti_from_c64),
    OPDI_AOTI_FN("aoti_torch_scalar_to_tensor_complex128", opdi_aoti_from_c128),
    OPDI_AOTI_FN("aoti_torch_dtype_element_size", opdi_aoti_dtype_size),
    OPDI_AOTI_FN("aoti_torch_grad_mode_is_enabled", opdi_aoti_grad_mode),
    OPDI_AOTI_FN("aoti_torch_grad_mode_set_enabled", opdi_aoti_grad_mode_set),
    OPDI_AOTI_FN("aoti_torch_delete_tensor_object", opdi_aoti_free_handle),
    OPDI_AOTI_FN("aoti_torch_get_data_ptr", opdi_aoti_get_data),
    OPDI_AOTI_FN("torch_get_mutable_data_ptr", opdi_aoti_get_data),
    OPDI_AOTI_FN("torch_get_const_data_ptr", opdi_aoti_get_data),
    OPDI_AOTI_FN("aoti_torch_get_storage_size", opdi_aoti_get_storage_size),
    OPDI_AOTI_FN("aoti_torch_get_storage_numel", opdi_aoti_get_storage_numel),
    OPDI_AOTI_FN("aoti_torch_get_dim", opdi_aoti_get_dim), OPDI_AOTI_FN("aoti_torch_get_numel", opdi_aoti_get_numel),
    OPDI_AOTI_FN("aoti_torch_get_sizes", opdi_aoti_get_sizes), OPDI_AOTI_FN("aoti_torch_get_size", opdi_aoti_get_size),
    OPDI_AOTI_FN("aoti_torch_get_strides", opdi_aoti_get_strides),
    OPDI_AOTI_FN("aoti_torch_get_stride", opdi_aoti_get_stride),
    OPDI_AOTI_FN("aoti_torch_get_dtype", opdi_aoti_get_dtype),
    OPDI_AOTI_FN("aoti_torch_get_device_type", opdi_aoti_get_device_type),
    OPDI_AOTI_FN("aoti_torch_get_device_index", opdi_aoti_get_device_index),
    OPDI_AOTI_FN("aoti_torch_get_layout", opdi_aoti_get_layout),
    OPDI_AOTI_FN("aoti_torch_get_storage_offset", opdi_aoti_get_storage_offset),
    OPDI_AOTI_FN("aoti_torch_is_contiguous", opdi_aoti_is_contiguous),
    OPDI_AOTI_FN("aoti_torch_is_defined", opdi_aoti_is_defined),
    OPDI_AOTI_FN("torch_has_storage", opdi_aoti_is_defined),
    OPDI_AOTI_FN("aoti_torch_new_tensor_handle", opdi_aoti_new_handle),
    OPDI_AOTI_FN("aoti_torch_new_uninitialized_tensor", opdi_aoti_new_undefined),
    OPDI_AOTI_FN("aoti_torch_assign_tensors", opdi_aoti_assign),
    OPDI_AOTI_FN("aoti_torch_assign_tensors_out", opdi_aoti_assign_out),
    OPDI_AOTI_FN("aoti_torch__reinterpret_tensor", opdi_aoti_view),
    OPDI_AOTI_FN("aoti_torch_as_strided", opdi_aoti_as_strided),
    OPDI_AOTI_FN("aoti_torch_empty_strided", opdi_aoti_empty_strided),
    OPDI_AOTI_FN("aoti_torch_empty_strided_pinned", opdi_aoti_empty_strided),
    OPDI_AOTI_FN("aoti_torch__alloc_from_pool", opdi_aoti_from_pool),
    OPDI_AOTI_FN("aoti_torch_create_tensor_from_blob", opdi_aoti_from_blob),
    OPDI_AOTI_FN("aoti_torch_create_tensor_from_blob_v2", opdi_aoti_from_blob_v2),
    OPDI_AOTI_FN("aoti_torch_clone", opdi_aoti_clone),
    OPDI_AOTI_FN("aoti_torch_clone_preserve_strides", opdi_aoti_clone_strides),
    OPDI_AOTI_FN("aoti_torch_copy_", opdi_aoti_copy), OPDI_AOTI_FN("aoti_torch_tensor_copy_", opdi_aoti_copy_to),
    OPDI_AOTI_FN("aoti_torch_zero_", opdi_aoti_zero), OPDI_AOTI_FN("aoti_torch_check", opdi_aoti_check),
    OPDI_AOTI_FN("aoti_torch_warn", opdi_aoti_warn),
    OPDI_AOTI_FN("aoti_torch_check_inf_and_nan", opdi_aoti_check_finite),
    OPDI_AOTI_FN("aoti_torch_print_tensor_handle", opdi_aoti_print),
    OPDI_AOTI_FN("aoti_torch_save_tensor_handle", opdi_aoti_save),
    OPDI_AOTI_FN("aoti_torch_proxy_executor_call_function", opdi_aoti_proxy),
    OPDI_AOTI_FN("aoti_torch_int64_to_ivalue", opdi_aoti_none_2),
    OPDI_AOTI_FN("aoti_torch_str_to_ivalue", opdi_aoti_none_2),
    OPDI_AOTI_FN("aoti_torch_tensor_to_ivalue", opdi_aoti_none_2),
    OPDI_AOTI_FN("aoti_torch_strlist_to_ivalue", opdi_aoti_none_3),
    OPDI_AOTI_FN("aoti_record_function_start", opdi_aoti_none_5),
    OPDI_AOTI_FN("aoti_record_function_end", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_delete_c10_value_object", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_create_device_guard", opdi_aoti_none_2),
    OPDI_AOTI_FN("aoti_torch_delete_device_guard", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_device_guard_set_index", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_get_current_stream", opdi_aoti_none_2),
    OPDI_AOTI_FN("aoti_torch_delete_stream", opdi_aoti_nothing),
    OPDI_AOTI_FN("aoti_torch_stream_id", opdi_aoti_none_2),
    OPDI_AOTI_FN("aoti_torch_get_current_device_index", opdi_aoti_zero_out)
};
OPDI_INTERNAL const size_t opdi_aoti_nsymbols = sizeof opdi_aoti_symbols / sizeof *opdi_aoti_symbols;

/* Finds the operator (such as aten::add.Tensor) of a symbol (such as aoti_torch_cpu_add_Tensor).  Names and overloads
   may contain underscores, so each split is tried.  Returns NULL if there is no such operator. */
static opd_op *opdi_aoti_find_operator(const char *symbol) {
    char name[300];
    const char *rest = strncmp(symbol, "aoti_torch_cpu_", 15) == 0 || strncmp(symbol, "aoti_torch_aten_", 16) == 0
        ? strchr(symbol + 11, '_') + 1 : NULL;
    const size_t length = rest ? strlen(rest) : 0;
    if (length == 0 || length > 200) { return NULL; }
    snprintf(name, sizeof name, "aten::%s", rest);
    opd_op *op = opd_find_quiet(name);
    for (size_t i = length; !op && i-- > 1;) {
        if (rest[i] != '_') { continue; }
        snprintf(name, sizeof name, "aten::%.*s.%s", (int)i, rest, rest + i + 1);
        op = opd_find_quiet(name);
    }
    return op;
}
/* Makes the description of an operator that a model imports as `symbol`; the model owns it.  Returns NULL if there is
   no such operator.  On failure, returns NULL and sets an error. */
OPDI_INTERNAL opdi_aoti_row *opdi_aoti_row_of(opd_aoti *model, const char *symbol) {
    const opdi_aoti_other *other = NULL;
    char text[2000], name[200];
    const char *schema = text;
    for (size_t i = 0; i < opdi_aoti_nothers; i++) {
        if (strcmp(symbol, opdi_aoti_others[i].symbol) == 0) { other = &opdi_aoti_others[i]; }
    }
    opd_op *op = other ? NULL : opdi_aoti_find_operator(symbol);
    const bool written = other && strchr(other->schema, '(');
    if (other) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(other->schema, "("), other->schema);
        if (!other->compose || !written) { op = opd_find_quiet(name); }
    }
    if (written) { schema = other->schema; }
    else if (op && (!opd_op_schema(op) || opd_schema_print(opd_op_schema(op), text, sizeof text) >= sizeof text)) {
        op = NULL;
    }
    if (!op && !(written && other->compose)) { return NULL; }
    opdi_aoti_row **rows = (opdi_aoti_row **)realloc(model->rows, (size_t)(model->nrows + 1) * sizeof *rows);
    opdi_aoti_row *row = rows ? (opdi_aoti_row *)calloc(1, sizeof *row) : NULL;
    if (rows) { model->rows = rows; }
    if (!row) {
        (void)opdi_aoti_no_memory();
        return NULL;
    }
    rows[model->nrows++] = row;
    row->op = op;
    row->compose = other ? other->compose : NULL;
    return opdi_aoti_read_schema(row, schema) ? row : NULL;
}

