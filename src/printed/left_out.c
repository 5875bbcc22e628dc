//== printed by tests/left_out.py
#if defined(OPD_NO_AUTOCAST)
opd_autocast_region opd_autocast_begin(opd_backend device, opd_scalar_type dtype, bool enabled, int cache) {
    opd_autocast_region none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_AUTOCAST");
    return none;
}
void opd_autocast_end(opd_autocast_region *region) { }
bool opd_autocast_enabled(opd_backend device) { return false; }
opd_scalar_type opd_autocast_dtype(opd_backend device) {
    (void)opdi_without(__func__, "OPD_NO_AUTOCAST");
    return OPD_DTYPE_NONE;
}
bool opd_autocast_cache_enabled(void) { return false; }
int opd_autocast_support(opd_backend device, const opd_scalar_type *dtypes, int count) { return 0; }
void opd_autocast_cache_clear(void) { }
opd_tensor *opd_autocast_cast(opd_scalar_type dtype, opd_tensor *tensor) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_AUTOCAST");
}
opd_scalar_type opd_autocast_promote(opd_scalar_type dtype, opd_tensor *const *tensors, int count) {
    (void)opdi_without(__func__, "OPD_NO_AUTOCAST");
    return OPD_DTYPE_NONE;
}
int opd_autocast_register(opd_library *lib, const char *name, opd_backend device, opd_autocast policy) { return 0; }
int opd_custom_fwd(opd_context *ctx, opd_backend device, opd_scalar_type cast_inputs, opd_setup_fn forward) {
    return opd_ok() && forward ? forward(ctx) : opdi_without(__func__, "OPD_NO_AUTOCAST");
}
int opd_custom_bwd(opd_backward_call *bw, opd_backward_fn backward) {
    return opd_ok() && backward ? backward(bw) : opdi_without(__func__, "OPD_NO_AUTOCAST");
}
#endif
#if defined(OPD_NO_TRANSFORMS)
int opd_vmap_begin(int64_t batch_size, opd_randomness randomness) {
    return opdi_without(__func__, "OPD_NO_TRANSFORMS");
}
opd_tensor *opd_vmap_wrap(opd_tensor *tensor, int in_dim, int level) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_TRANSFORMS");
}
opd_tensor *opd_vmap_unwrap(opd_tensor *tensor, int out_dim, int level) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_TRANSFORMS");
}
int opd_vmap_end(int level) { return 0; }
int opd_vmap(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
             const opd_vmap_options *options, opd_tensor **outputs) {
    opdi_no_results(outputs, 1, sizeof *outputs);
    return opdi_without(__func__, "OPD_NO_TRANSFORMS");
}
int opd_vjp(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
            const opd_transform_options *options, opd_tensor **outputs, opd_derivative **vjp) {
    opdi_no_results(outputs, 1, sizeof *outputs);
    opdi_no_results(vjp, 1, sizeof *vjp);
    return opdi_without(__func__, "OPD_NO_TRANSFORMS");
}
int opd_grad(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
             const opd_transform_options *options, opd_tensor **outputs) {
    opdi_no_results(outputs, 1, sizeof *outputs);
    return opdi_without(__func__, "OPD_NO_TRANSFORMS");
}
int opd_grad_and_value(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                       const opd_transform_options *options, opd_tensor **outputs) {
    opdi_no_results(outputs, 1, sizeof *outputs);
    return opdi_without(__func__, "OPD_NO_TRANSFORMS");
}
int opd_jvp(opd_transform_fn fn, void *user, opd_tensor *const *primals, opd_tensor *const *tangents, int count,
            const opd_transform_options *options, opd_tensor **outputs, opd_tensor **out_tangents) {
    opdi_no_results(outputs, 1, sizeof *outputs);
    opdi_no_results(out_tangents, 1, sizeof *out_tangents);
    return opdi_without(__func__, "OPD_NO_TRANSFORMS");
}
int opd_linearize(opd_transform_fn fn, void *user, opd_tensor *const *primals, int count,
                  const opd_transform_options *options, opd_tensor **outputs, opd_derivative **jvp) {
    opdi_no_results(outputs, 1, sizeof *outputs);
    opdi_no_results(jvp, 1, sizeof *jvp);
    return opdi_without(__func__, "OPD_NO_TRANSFORMS");
}
int opd_derivative_call(opd_derivative *derivative, opd_tensor *const *in, int count, unsigned flags,
                        opd_tensor **out) {
    opdi_no_results(out, 1, sizeof *out);
    return opdi_without(__func__, "OPD_NO_TRANSFORMS");
}
int opd_jacrev(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
               const opd_transform_options *options, opd_tensor **outputs) {
    opdi_no_results(outputs, 1, sizeof *outputs);
    return opdi_without(__func__, "OPD_NO_TRANSFORMS");
}
int opd_jacfwd(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
               const opd_transform_options *options, opd_tensor **outputs) {
    opdi_no_results(outputs, 1, sizeof *outputs);
    return opdi_without(__func__, "OPD_NO_TRANSFORMS");
}
int opd_hessian(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                const opd_transform_options *options, opd_tensor **outputs) {
    opdi_no_results(outputs, 1, sizeof *outputs);
    return opdi_without(__func__, "OPD_NO_TRANSFORMS");
}
#endif
#if defined(OPD_NO_GRAPHS)
opd_cell_kind opd_value_cell(opd_value value) {
    opd_cell_kind none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return none;
}
opd_value opd_value_keep(opd_value value) {
    opd_value none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return none;
}
void opd_value_release(opd_value value) { (void)opdi_without(__func__, "OPD_NO_GRAPHS"); }
opd_value opd_string_new(const char *text, int64_t length) {
    opd_value none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return none;
}
const char *opd_string_text(const opd_value *value, int64_t *length) {
    opdi_no_results(length, 1, sizeof *length);
    return (const char *)opdi_null_without(__func__, "OPD_NO_GRAPHS");
}
opd_value opd_list_new(opd_tag elements) {
    opd_value none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return none;
}
int opd_list_append(opd_value list, opd_value element) { return opdi_without(__func__, "OPD_NO_GRAPHS"); }
int opd_list_set(opd_value list, int64_t place, opd_value element) { return opdi_without(__func__, "OPD_NO_GRAPHS"); }
int64_t opd_list_count(opd_value list) { return opdi_without(__func__, "OPD_NO_GRAPHS"); }
opd_value opd_list_at(opd_value list, int64_t place) {
    opd_value none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return none;
}
opd_value opd_tuple_new(const opd_value *elements, int64_t count) {
    opd_value none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return none;
}
const char *opd_tuple_name(opd_value tuple, int64_t place) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_GRAPHS");
}
opd_value opd_dict_new(void) {
    opd_value none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return none;
}
int opd_dict_set(opd_value dict, opd_value key, opd_value value) { return opdi_without(__func__, "OPD_NO_GRAPHS"); }
int opd_dict_get(opd_value dict, opd_value key, opd_value *value) { return opdi_without(__func__, "OPD_NO_GRAPHS"); }
opd_value opd_dict_key_at(opd_value dict, int64_t place) {
    opd_value none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return none;
}
opd_value opd_dict_value_at(opd_value dict, int64_t place) {
    opd_value none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return none;
}
const char *opd_object_class(opd_value object) { return (const char *)opdi_null_without(__func__, "OPD_NO_GRAPHS"); }
opd_value opd_object_get(opd_value object, const char *name) {
    opd_value none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return none;
}
int opd_object_set(opd_value object, const char *name, opd_value value) {
    return opdi_without(__func__, "OPD_NO_GRAPHS");
}
size_t opd_value_print(opd_value value, char *buf, size_t cap) {
    opdi_no_results(buf, cap != 0, 1);
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return 0;
}
void opd_graph_free(opd_graph *graph) { }
opd_graph *opd_graph_trace(opd_transform_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                           const opd_trace_options *options) {
    return (opd_graph *)opdi_null_without(__func__, "OPD_NO_GRAPHS");
}
size_t opd_graph_print(const opd_graph *graph, char *buf, size_t cap) {
    opdi_no_results(buf, cap != 0, 1);
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return 0;
}
int opd_graph_ninputs(const opd_graph *graph) {
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return 0;
}
int opd_graph_noutputs(const opd_graph *graph) {
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return 0;
}
int opd_graph_count(const opd_graph *graph, const char *name) {
    (void)opdi_without(__func__, "OPD_NO_GRAPHS");
    return 0;
}
int opd_graph_dce(opd_graph *graph) { return opdi_without(__func__, "OPD_NO_GRAPHS"); }
int opd_graph_cse(opd_graph *graph) { return opdi_without(__func__, "OPD_NO_GRAPHS"); }
int opd_graph_fold(opd_graph *graph) { return opdi_without(__func__, "OPD_NO_GRAPHS"); }
int opd_graph_run(const opd_graph *graph, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs,
                  int cap) {
    opdi_no_results(outputs, cap, sizeof *outputs);
    return opdi_without(__func__, "OPD_NO_GRAPHS");
}
int opd_graph_function(void *graph, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    opdi_no_results(outputs, 1, sizeof *outputs);
    return opdi_without(__func__, "OPD_NO_GRAPHS");
}
int opd_graph_run_values(const opd_graph *graph, const opd_value *inputs, int ninputs, opd_value *outputs,
                         int cap) {
    return opdi_without(__func__, "OPD_NO_GRAPHS");
}
opd_graph *opd_graph_parse(const char *text) { return (opd_graph *)opdi_null_without(__func__, "OPD_NO_GRAPHS"); }
opd_graph *opd_graph_new(void) { return (opd_graph *)opdi_null_without(__func__, "OPD_NO_GRAPHS"); }
opd_graph_value *opd_graph_constant(opd_graph *graph, opd_value value) {
    return (opd_graph_value *)opdi_null_without(__func__, "OPD_NO_GRAPHS");
}
opd_graph_value *opd_graph_list(opd_graph *graph, const char *element, opd_graph_value *const *values,
                                int count) {
    return (opd_graph_value *)opdi_null_without(__func__, "OPD_NO_GRAPHS");
}
int opd_graph_unpack(opd_graph *graph, opd_graph_value *list, opd_graph_value **parts, int count) {
    opdi_no_results(parts, count, sizeof *parts);
    return opdi_without(__func__, "OPD_NO_GRAPHS");
}
int opd_graph_call_op(opd_graph *graph, opd_op *op, opd_graph_value *const *args, int nargs,
                      opd_graph_value **results, int cap) {
    opdi_no_results(results, cap, sizeof *results);
    return opdi_without(__func__, "OPD_NO_GRAPHS");
}
int opd_graph_call(opd_graph *graph, const char *name, opd_graph_value *const *args, int nargs,
                   opd_graph_value **results, int cap) {
    opdi_no_results(results, cap, sizeof *results);
    return opdi_without(__func__, "OPD_NO_GRAPHS");
}
opd_graph_value *opd_graph_find(opd_graph *graph, const char *name) {
    return (opd_graph_value *)opdi_null_without(__func__, "OPD_NO_GRAPHS");
}
int opd_graph_describe(opd_graph *graph, opd_graph_value *value, const char *name, const char *type) {
    return opdi_without(__func__, "OPD_NO_GRAPHS");
}
opd_graph_value *opd_graph_input(opd_graph *graph, const char *name, const char *type) {
    return (opd_graph_value *)opdi_null_without(__func__, "OPD_NO_GRAPHS");
}
int opd_graph_insert_before(opd_graph *graph, opd_graph_value *value) {
    return opdi_without(__func__, "OPD_NO_GRAPHS");
}
int opd_graph_output(opd_graph *graph, opd_graph_value *const *values, int count, bool list) {
    return opdi_without(__func__, "OPD_NO_GRAPHS");
}
int opd_graph_erase(opd_graph *graph, opd_graph_value *value) { return opdi_without(__func__, "OPD_NO_GRAPHS"); }
#endif
#if defined(OPD_NO_CHECKING)
opd_gradcheck_options opd_gradcheck_defaults(void) {
    opd_gradcheck_options none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_CHECKING");
    return none;
}
int opd_gradcheck(opd_gradcheck_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                  const opd_gradcheck_options *options) {
    return opdi_without(__func__, "OPD_NO_CHECKING");
}
int opd_gradgradcheck(opd_gradcheck_fn fn, void *user, opd_tensor *const *inputs, int ninputs,
                      opd_tensor *const *grad_outputs, const opd_gradcheck_options *options) {
    return opdi_without(__func__, "OPD_NO_CHECKING");
}
int opd_opcheck(opd_op *op, const opd_value *args, int nargs, const opd_opcheck_options *options) {
    return opdi_without(__func__, "OPD_NO_CHECKING");
}
size_t opd_graph_dot(opd_tensor *const *tensors, int count, const opd_graph_options *options, char *buf,
                     size_t cap) {
    opdi_no_results(buf, cap != 0, 1);
    (void)opdi_without(__func__, "OPD_NO_CHECKING");
    return 0;
}
#endif
#if defined(OPD_NO_TRAINING)
opd_sgd_options opd_sgd_defaults(void) {
    opd_sgd_options none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return none;
}
opd_adam_options opd_adam_defaults(void) {
    opd_adam_options none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return none;
}
opd_adam_options opd_adamw_defaults(void) {
    opd_adam_options none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return none;
}
opd_optimizer *opd_sgd_new(opd_tensor *const *params, int count, const opd_sgd_options *options) {
    return (opd_optimizer *)opdi_null_without(__func__, "OPD_NO_TRAINING");
}
opd_optimizer *opd_adam_new(opd_tensor *const *params, int count, const opd_adam_options *options) {
    return (opd_optimizer *)opdi_null_without(__func__, "OPD_NO_TRAINING");
}
opd_optimizer *opd_adamw_new(opd_tensor *const *params, int count, const opd_adam_options *options) {
    return (opd_optimizer *)opdi_null_without(__func__, "OPD_NO_TRAINING");
}
void opd_optimizer_free(opd_optimizer *optimizer) { }
double opd_optimizer_lr(const opd_optimizer *optimizer) {
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return NAN;
}
int opd_optimizer_set_lr(opd_optimizer *optimizer, double lr) { return opdi_without(__func__, "OPD_NO_TRAINING"); }
int opd_optimizer_zero_grad(opd_optimizer *optimizer) { return opdi_without(__func__, "OPD_NO_TRAINING"); }
int opd_optimizer_groups(const opd_optimizer *optimizer) { return opdi_without(__func__, "OPD_NO_TRAINING"); }
int opd_optimizer_group_size(const opd_optimizer *optimizer, int group) {
    return opdi_without(__func__, "OPD_NO_TRAINING");
}
const char *opd_optimizer_name(const opd_optimizer *optimizer) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_TRAINING");
}
opd_tensor *opd_optimizer_param(const opd_optimizer *optimizer, int i) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_TRAINING");
}
int opd_optimizer_add_group(opd_optimizer *optimizer, opd_tensor *const *params, int count) {
    return opdi_without(__func__, "OPD_NO_TRAINING");
}
int opd_optimizer_move_group(opd_optimizer *optimizer, opd_tensor *const *params, int count) {
    return opdi_without(__func__, "OPD_NO_TRAINING");
}
double opd_optimizer_option(const opd_optimizer *optimizer, int group, const char *name) {
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return NAN;
}
int opd_optimizer_set_option(opd_optimizer *optimizer, int group, const char *name, double value) {
    return opdi_without(__func__, "OPD_NO_TRAINING");
}
opd_tensor *opd_optimizer_state(const opd_optimizer *optimizer, int i, const char *name) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_TRAINING");
}
int opd_optimizer_forget(opd_optimizer *optimizer, int i) { return opdi_without(__func__, "OPD_NO_TRAINING"); }
int opd_optimizer_set_state(opd_optimizer *optimizer, int i, const char *name, const opd_tensor *value) {
    return opdi_without(__func__, "OPD_NO_TRAINING");
}
int opd_optimizer_step(opd_optimizer *optimizer) { return opdi_without(__func__, "OPD_NO_TRAINING"); }
opd_scaler_options opd_scaler_defaults(void) {
    opd_scaler_options none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return none;
}
opd_scaler *opd_scaler_new(const opd_scaler_options *options) {
    return (opd_scaler *)opdi_null_without(__func__, "OPD_NO_TRAINING");
}
void opd_scaler_free(opd_scaler *scaler) { }
opd_scaler_state opd_scaler_get(const opd_scaler *scaler) {
    opd_scaler_state none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return none;
}
int opd_scaler_set(opd_scaler *scaler, opd_scaler_state state) { return opdi_without(__func__, "OPD_NO_TRAINING"); }
opd_tensor *opd_scaler_scale(opd_scaler *scaler, opd_tensor *tensor) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_TRAINING");
}
int opd_scaler_unscale(opd_scaler *scaler, opd_optimizer *optimizer) {
    return opdi_without(__func__, "OPD_NO_TRAINING");
}
int opd_scaler_step(opd_scaler *scaler, opd_optimizer *optimizer) { return opdi_without(__func__, "OPD_NO_TRAINING"); }
int opd_scaler_update(opd_scaler *scaler, double new_scale) { return opdi_without(__func__, "OPD_NO_TRAINING"); }
opd_tensor *opd_clip_grad_norm(opd_tensor *const *params, int count, double max_norm, double norm_type,
                               bool error_if_nonfinite) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_TRAINING");
}
int opd_clip_grad_value(opd_tensor *const *params, int count, double clip_value) {
    return opdi_without(__func__, "OPD_NO_TRAINING");
}
double opd_lr_step(double lr, int64_t epoch, int64_t step_size, double gamma) {
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return NAN;
}
double opd_lr_multi_step(double lr, int64_t epoch, opd_ints milestones, double gamma) {
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return NAN;
}
double opd_lr_exponential(double lr, int64_t epoch, double gamma) {
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return NAN;
}
double opd_lr_linear(double lr, int64_t epoch, double start_factor, double end_factor, int64_t total_iters) {
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return NAN;
}
double opd_lr_cosine(double lr, int64_t epoch, int64_t t_max, double eta_min) {
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return NAN;
}
double opd_lr_cosine_restarts(double lr, int64_t epoch, int64_t t_0, int64_t t_mult, double eta_min) {
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return NAN;
}
opd_one_cycle opd_one_cycle_defaults(double max_lr, int64_t total_steps) {
    opd_one_cycle none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return none;
}
double opd_lr_one_cycle(int64_t step, const opd_one_cycle *cycle) {
    (void)opdi_without(__func__, "OPD_NO_TRAINING");
    return NAN;
}
#endif
#if defined(OPD_NO_EXCHANGE)
struct DLManagedTensorVersioned *opd_dlpack_export(opd_tensor *tensor, unsigned flags) {
    return (struct DLManagedTensorVersioned *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
struct DLManagedTensor *opd_dlpack_export_unversioned(opd_tensor *tensor) {
    return (struct DLManagedTensor *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
opd_tensor *opd_dlpack_import(struct DLManagedTensorVersioned *managed, unsigned *flags) {
    opdi_no_results(flags, 1, sizeof *flags);
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
opd_tensor *opd_dlpack_import_unversioned(struct DLManagedTensor *managed) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
opd_tensor *opd_npy_load(const char *path) { return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_EXCHANGE"); }
opd_tensor *opd_npy_parse(const void *data, size_t size) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
int opd_npy_save(const char *path, opd_tensor *tensor) { return opdi_without(__func__, "OPD_NO_EXCHANGE"); }
opd_json *opd_json_parse(const char *text, size_t size) {
    return (opd_json *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
opd_json *opd_json_load(const char *path) { return (opd_json *)opdi_null_without(__func__, "OPD_NO_EXCHANGE"); }
void opd_json_free(opd_json *json) { }
opd_json_kind opd_json_kind_of(const opd_json *json, int64_t value) {
    (void)opdi_without(__func__, "OPD_NO_EXCHANGE");
    return OPD_JSON_NONE;
}
int64_t opd_json_first(const opd_json *json, int64_t list) { return opdi_without(__func__, "OPD_NO_EXCHANGE"); }
int64_t opd_json_next(const opd_json *json, int64_t value) { return opdi_without(__func__, "OPD_NO_EXCHANGE"); }
const char *opd_json_key(const opd_json *json, int64_t value) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
int64_t opd_json_count(const opd_json *json, int64_t list) { return opdi_without(__func__, "OPD_NO_EXCHANGE"); }
int64_t opd_json_get(const opd_json *json, int64_t object, const char *key) {
    return opdi_without(__func__, "OPD_NO_EXCHANGE");
}
const char *opd_json_text(const opd_json *json, int64_t value, const char *otherwise) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
int64_t opd_json_int(const opd_json *json, int64_t value, int64_t otherwise) {
    return opdi_without(__func__, "OPD_NO_EXCHANGE");
}
double opd_json_float(const opd_json *json, int64_t value, double otherwise) {
    (void)opdi_without(__func__, "OPD_NO_EXCHANGE");
    return NAN;
}
bool opd_json_bool(const opd_json *json, int64_t value, bool otherwise) {
    (void)opdi_without(__func__, "OPD_NO_EXCHANGE");
    return false;
}
void opd_json_place(const opd_json *json, int64_t value, int64_t *line, int64_t *column) {
    (void)opdi_without(__func__, "OPD_NO_EXCHANGE");
}
void opd_tensor_file_close(opd_tensor_file *file) { }
opd_file_kind opd_file_kind_of(const char *path) {
    opd_file_kind none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_EXCHANGE");
    return none;
}
opd_tensor_file *opd_tensor_file_open(const char *path) {
    return (opd_tensor_file *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
opd_tensor_file *opd_tensor_file_parse(void *data, size_t size, void (*deleter)(void *data, void *user),
                                       void *user) {
    return (opd_tensor_file *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
int64_t opd_tensor_file_count(const opd_tensor_file *file) {
    (void)opdi_without(__func__, "OPD_NO_EXCHANGE");
    return 0;
}
const char *opd_tensor_file_name(const opd_tensor_file *file, int64_t i) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
int64_t opd_tensor_file_find(const opd_tensor_file *file, const char *name) {
    return opdi_without(__func__, "OPD_NO_EXCHANGE");
}
const char *opd_tensor_file_metadata_key(const opd_tensor_file *file, int64_t i) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
const char *opd_tensor_file_metadata(const opd_tensor_file *file, const char *key) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
opd_tensor *opd_tensor_file_at(const opd_tensor_file *file, int64_t i) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
opd_tensor *opd_tensor_file_get(const opd_tensor_file *file, const char *name) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
opd_tensor *opd_tensor_file_bytes(const opd_tensor_file *file, int64_t i) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_EXCHANGE");
}
bool opd_tensor_file_requires_grad(const opd_tensor_file *file, int64_t i) {
    (void)opdi_without(__func__, "OPD_NO_EXCHANGE");
    return false;
}
int opd_tensor_file_value_at(const opd_tensor_file *file, int64_t i, opd_value *value) {
    return opdi_without(__func__, "OPD_NO_EXCHANGE");
}
int opd_tensor_file_value(const opd_tensor_file *file, const char *name, opd_value *value) {
    return opdi_without(__func__, "OPD_NO_EXCHANGE");
}
int opd_tensor_file_number(const opd_tensor_file *file, const char *name, double *number) {
    return opdi_without(__func__, "OPD_NO_EXCHANGE");
}
int opd_safetensors_save(const char *path, const char *const *names, opd_tensors tensors,
                         const char *const *metadata) {
    return opdi_without(__func__, "OPD_NO_EXCHANGE");
}
int opd_npz_save(const char *path, const char *const *names, opd_tensors tensors) {
    return opdi_without(__func__, "OPD_NO_EXCHANGE");
}
int opd_checkpoint_file_save(const char *path, const char *const *names, const opd_value *values,
                             int64_t count) {
    return opdi_without(__func__, "OPD_NO_EXCHANGE");
}
#endif
#if defined(OPD_NO_EXCHANGE) || defined(OPD_NO_GRAPHS)
int opd_graph_save(const opd_graph *graph, const char *path) {
    return opdi_without(__func__, "OPD_NO_EXCHANGE or OPD_NO_GRAPHS");
}
opd_graph *opd_graph_from_bytes(const void *data, size_t size) {
    return (opd_graph *)opdi_null_without(__func__, "OPD_NO_EXCHANGE or OPD_NO_GRAPHS");
}
opd_graph *opd_graph_load(const char *path) {
    return (opd_graph *)opdi_null_without(__func__, "OPD_NO_EXCHANGE or OPD_NO_GRAPHS");
}
#endif
#if defined(OPD_NO_MODULES)
opd_module *opd_module_new(void) { return (opd_module *)opdi_null_without(__func__, "OPD_NO_MODULES"); }
opd_module *opd_module_keep(opd_module *module) { return (opd_module *)opdi_null_without(__func__, "OPD_NO_MODULES"); }
void opd_module_free(opd_module *module) { }
int64_t opd_module_find(const opd_module *module, const char *name) { return opdi_without(__func__, "OPD_NO_MODULES"); }
int opd_module_add(opd_module *module, const char *name, opd_tensor *tensor, opd_module_kind kind) {
    return opdi_without(__func__, "OPD_NO_MODULES");
}
int opd_module_set(opd_module *module, const char *name, opd_tensor *tensor) {
    return opdi_without(__func__, "OPD_NO_MODULES");
}
opd_tensor *opd_module_get(const opd_module *module, const char *name) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
int64_t opd_module_count(const opd_module *module) {
    (void)opdi_without(__func__, "OPD_NO_MODULES");
    return 0;
}
const char *opd_module_name(const opd_module *module, int64_t i) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_tensor *opd_module_at(const opd_module *module, int64_t i) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_module_kind opd_module_kind_at(const opd_module *module, int64_t i) {
    opd_module_kind none;
    memset(&none, 0, sizeof none);
    (void)opdi_without(__func__, "OPD_NO_MODULES");
    return none;
}
int opd_module_parameters(const opd_module *module, const char *pattern, opd_tensor **tensors, int cap) {
    opdi_no_results(tensors, cap, sizeof *tensors);
    return opdi_without(__func__, "OPD_NO_MODULES");
}
int64_t opd_module_numel(const opd_module *module, const char *pattern) {
    return opdi_without(__func__, "OPD_NO_MODULES");
}
int opd_module_set_requires_grad(opd_module *module, const char *pattern, bool on) {
    return opdi_without(__func__, "OPD_NO_MODULES");
}
int opd_module_zero_grad(opd_module *module) { return opdi_without(__func__, "OPD_NO_MODULES"); }
int opd_module_to(opd_module *module, const opd_device *device, opd_scalar_type dtype) {
    return opdi_without(__func__, "OPD_NO_MODULES");
}
opd_optimizer *opd_module_sgd(const opd_module *module, const char *pattern, const opd_sgd_options *options) {
    return (opd_optimizer *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_optimizer *opd_module_adam(const opd_module *module, const char *pattern, const opd_adam_options *options) {
    return (opd_optimizer *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_optimizer *opd_module_adamw(const opd_module *module, const char *pattern, const opd_adam_options *options) {
    return (opd_optimizer *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
int opd_module_group(const opd_module *module, opd_optimizer *optimizer, const char *pattern) {
    return opdi_without(__func__, "OPD_NO_MODULES");
}
opd_module *opd_module_open(const char *path, const char *prefix) {
    return (opd_module *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
int opd_module_load(opd_module *module, const opd_tensor_file *file, const opd_module_load_options *options) {
    return opdi_without(__func__, "OPD_NO_MODULES");
}
int opd_module_save(const opd_module *module, const char *path) { return opdi_without(__func__, "OPD_NO_MODULES"); }
int opd_training_save(const char *path, const opd_module *module, const opd_optimizer *optimizer,
                      const char *const *names, const opd_value *values, int64_t count) {
    return opdi_without(__func__, "OPD_NO_MODULES");
}
int opd_training_load(const opd_tensor_file *file, opd_module *module, opd_optimizer *optimizer) {
    return opdi_without(__func__, "OPD_NO_MODULES");
}
int opd_optimizer_load(opd_optimizer *optimizer, const opd_tensor_file *file, const char *prefix) {
    return opdi_without(__func__, "OPD_NO_MODULES");
}
double opd_init_calculate_gain(const char *nonlinearity, double param) {
    (void)opdi_without(__func__, "OPD_NO_MODULES");
    return NAN;
}
int opd_init_fans(const opd_tensor *tensor, int64_t *fan_in, int64_t *fan_out) {
    opdi_no_results(fan_in, 1, sizeof *fan_in);
    opdi_no_results(fan_out, 1, sizeof *fan_out);
    return opdi_without(__func__, "OPD_NO_MODULES");
}
opd_tensor *opd_init_uniform_(opd_tensor *tensor, double from, double to) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_tensor *opd_init_normal_(opd_tensor *tensor, double mean, double std) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_tensor *opd_init_constant_(opd_tensor *tensor, double value) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_tensor *opd_init_ones_(opd_tensor *tensor) { return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES"); }
opd_tensor *opd_init_zeros_(opd_tensor *tensor) { return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES"); }
opd_tensor *opd_init_trunc_normal_(opd_tensor *tensor, double mean, double std, double from, double to) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_tensor *opd_init_eye_(opd_tensor *tensor) { return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES"); }
opd_tensor *opd_init_dirac_(opd_tensor *tensor, int64_t groups) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_tensor *opd_init_xavier_uniform_(opd_tensor *tensor, double gain) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_tensor *opd_init_xavier_normal_(opd_tensor *tensor, double gain) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_tensor *opd_init_kaiming_uniform_(opd_tensor *tensor, double param, bool fan_out, const char *nonlinearity) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_tensor *opd_init_kaiming_normal_(opd_tensor *tensor, double param, bool fan_out, const char *nonlinearity) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_tensor *opd_init_orthogonal_(opd_tensor *tensor, double gain) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
opd_tensor *opd_init_sparse_(opd_tensor *tensor, double sparsity, double std) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_MODULES");
}
#endif
#if defined(OPD_NO_PROGRAMS)
void opd_program_free(opd_program *program) { }
opd_program *opd_program_load(const char *path, const char *name) {
    return (opd_program *)opdi_null_without(__func__, "OPD_NO_PROGRAMS");
}
opd_program *opd_program_parse(const void *data, size_t size, const char *name) {
    return (opd_program *)opdi_null_without(__func__, "OPD_NO_PROGRAMS");
}
opd_module *opd_program_module(const opd_program *program) {
    return (opd_module *)opdi_null_without(__func__, "OPD_NO_PROGRAMS");
}
const opd_graph *opd_program_graph(const opd_program *program) {
    return (const opd_graph *)opdi_null_without(__func__, "OPD_NO_PROGRAMS");
}
const char *opd_program_name(const opd_program *program) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_PROGRAMS");
}
const char *opd_program_file_name(const opd_program *program, int i) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_PROGRAMS");
}
int opd_program_ninputs(const opd_program *program) {
    (void)opdi_without(__func__, "OPD_NO_PROGRAMS");
    return 0;
}
int opd_program_noutputs(const opd_program *program) {
    (void)opdi_without(__func__, "OPD_NO_PROGRAMS");
    return 0;
}
const char *opd_program_input_name(const opd_program *program, int i) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_PROGRAMS");
}
const char *opd_program_output_name(const opd_program *program, int i) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_PROGRAMS");
}
int opd_program_input_constant(const opd_program *program, int i, opd_value *value) {
    return opdi_without(__func__, "OPD_NO_PROGRAMS");
}
size_t opd_program_print(const opd_program *program, char *buf, size_t cap) {
    opdi_no_results(buf, cap != 0, 1);
    (void)opdi_without(__func__, "OPD_NO_PROGRAMS");
    return 0;
}
const char *opd_program_operator(const opd_program *program, int64_t i, int64_t *count, const char **missing) {
    opdi_no_results(count, 1, sizeof *count);
    opdi_no_results(missing, 1, sizeof *missing);
    return (const char *)opdi_null_without(__func__, "OPD_NO_PROGRAMS");
}
const char *opd_program_note(const opd_program *program, int64_t i) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_PROGRAMS");
}
size_t opd_program_input_type(const opd_program *program, int i, char *buf, size_t cap) {
    opdi_no_results(buf, cap != 0, 1);
    (void)opdi_without(__func__, "OPD_NO_PROGRAMS");
    return 0;
}
bool opd_program_writes(const opd_program *program) {
    (void)opdi_without(__func__, "OPD_NO_PROGRAMS");
    return false;
}
int opd_program_run(const opd_program *program, const opd_value *inputs, int ninputs, opd_value *outputs,
                    int cap) {
    return opdi_without(__func__, "OPD_NO_PROGRAMS");
}
int opd_program_find_input(const opd_program *program, const char *name) {
    return opdi_without(__func__, "OPD_NO_PROGRAMS");
}
int opd_program_find_output(const opd_program *program, const char *name) {
    return opdi_without(__func__, "OPD_NO_PROGRAMS");
}
int opd_program_run_named(const opd_program *program, const char *const *names, const opd_value *inputs,
                          int ninputs, opd_value *outputs, int cap) {
    return opdi_without(__func__, "OPD_NO_PROGRAMS");
}
int opd_program_function(void *program, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    opdi_no_results(outputs, 1, sizeof *outputs);
    return opdi_without(__func__, "OPD_NO_PROGRAMS");
}
int opd_program_save(const opd_graph *graph, const opd_module *module, const char *path) {
    return opdi_without(__func__, "OPD_NO_PROGRAMS");
}
int opd_program_save_open(const opd_graph *graph, const opd_graph *other, const opd_module *module,
                          const char *path) {
    return opdi_without(__func__, "OPD_NO_PROGRAMS");
}
int opd_program_save_all(opd_program *const *programs, const char *const *names, int count, const char *path) {
    return opdi_without(__func__, "OPD_NO_PROGRAMS");
}
#endif
#if defined(OPD_NO_SCRIPTS)
void opd_script_free(opd_script *script) { }
opd_script *opd_script_compile(const char *source, const char *name) {
    return (opd_script *)opdi_null_without(__func__, "OPD_NO_SCRIPTS");
}
opd_module *opd_script_module(const opd_script *script) {
    return (opd_module *)opdi_null_without(__func__, "OPD_NO_SCRIPTS");
}
int opd_script_count(const opd_script *script) { return opdi_without(__func__, "OPD_NO_SCRIPTS"); }
const char *opd_script_name(const opd_script *script, int place) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_SCRIPTS");
}
int opd_script_nargs(const opd_script *script, const char *method) { return opdi_without(__func__, "OPD_NO_SCRIPTS"); }
const char *opd_script_arg_name(const opd_script *script, const char *method, int place) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_SCRIPTS");
}
size_t opd_script_arg_type(const opd_script *script, const char *method, int place, char *buf, size_t cap) {
    opdi_no_results(buf, cap != 0, 1);
    (void)opdi_without(__func__, "OPD_NO_SCRIPTS");
    return 0;
}
const opd_graph *opd_script_graph(const opd_script *script, const char *method) {
    return (const opd_graph *)opdi_null_without(__func__, "OPD_NO_SCRIPTS");
}
int opd_script_run_named(const opd_script *script, const char *method, const opd_value *args, int nargs,
                         const opd_keyword *keywords, int nkeywords, opd_value *result) {
    return opdi_without(__func__, "OPD_NO_SCRIPTS");
}
int opd_script_run(const opd_script *script, const char *method, const opd_value *args, int nargs,
                   opd_value *result) {
    return opdi_without(__func__, "OPD_NO_SCRIPTS");
}
const char *opd_script_operator(const opd_script *script, int64_t place, int64_t *count, bool *missing) {
    opdi_no_results(count, 1, sizeof *count);
    return (const char *)opdi_null_without(__func__, "OPD_NO_SCRIPTS");
}
int opd_script_function(void *script, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    opdi_no_results(outputs, 1, sizeof *outputs);
    return opdi_without(__func__, "OPD_NO_SCRIPTS");
}
int opd_script_save(const opd_script *script, const char *path) { return opdi_without(__func__, "OPD_NO_SCRIPTS"); }
opd_script *opd_script_load(const char *path) { return (opd_script *)opdi_null_without(__func__, "OPD_NO_SCRIPTS"); }
opd_script *opd_script_from_bytes(const void *data, size_t size) {
    return (opd_script *)opdi_null_without(__func__, "OPD_NO_SCRIPTS");
}
#endif
#if defined(OPD_NO_COMPILER)
int opd_graph_write_c(const opd_graph *graph, opd_tensor *const *inputs, int ninputs, const char *folder,
                      const opd_c_options *options) {
    return opdi_without(__func__, "OPD_NO_COMPILER");
}
int opd_program_write_c(const opd_program *program, const opd_value *inputs, int ninputs, const char *folder,
                        const opd_c_options *options) {
    return opdi_without(__func__, "OPD_NO_COMPILER");
}
opd_compiled *opd_graph_compile(const opd_graph *graph, const opd_compile_options *options) {
    return (opd_compiled *)opdi_null_without(__func__, "OPD_NO_COMPILER");
}
opd_compiled *opd_program_compile(const opd_program *program, const opd_compile_options *options) {
    return (opd_compiled *)opdi_null_without(__func__, "OPD_NO_COMPILER");
}
void opd_compiled_free(opd_compiled *compiled) { }
const char *opd_compiled_reason(const opd_compiled *compiled) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_COMPILER");
}
int opd_compiled_run(opd_compiled *compiled, const opd_value *inputs, int ninputs, opd_value *outputs, int cap) {
    return opdi_without(__func__, "OPD_NO_COMPILER");
}
int opd_compiled_function(void *compiled, opd_tensor *const *inputs, int ninputs, opd_tensor **outputs) {
    opdi_no_results(outputs, 1, sizeof *outputs);
    return opdi_without(__func__, "OPD_NO_COMPILER");
}
#endif
#if defined(OPD_NO_COLLECTIVES)
opd_group *opd_group_register_sized(const opd_group_desc *desc, size_t size) {
    return (opd_group *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
opd_group *opd_group_find(const char *name) { return (opd_group *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES"); }
int opd_group_rank(const opd_group *group) { return opdi_without(__func__, "OPD_NO_COLLECTIVES"); }
int opd_group_size(const opd_group *group) { return opdi_without(__func__, "OPD_NO_COLLECTIVES"); }
const char *opd_group_name(const opd_group *group) {
    return (const char *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
int opd_group_abandon(opd_group *group, const char *why) { return opdi_without(__func__, "OPD_NO_COLLECTIVES"); }
void opd_work_release(opd_work *work) { (void)opdi_without(__func__, "OPD_NO_COLLECTIVES"); }
int opd_work_wait(opd_work *work) { return opdi_without(__func__, "OPD_NO_COLLECTIVES"); }
int opd_work_test(opd_work *work) { return opdi_without(__func__, "OPD_NO_COLLECTIVES"); }
opd_work *opd_group_start(opd_group *group, const opd_transfer *transfer) {
    return (opd_work *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
int opd_group_unregister(opd_group *group) { return opdi_without(__func__, "OPD_NO_COLLECTIVES"); }
opd_group *opd_group_split(opd_group *group, const char *name, const int32_t *ranks, int32_t count) {
    return (opd_group *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
int opd_group_device_add(opd_group *group, opd_device device) { return opdi_without(__func__, "OPD_NO_COLLECTIVES"); }
opd_work *opd_group_send(opd_group *group, opd_tensor *tensor, int to, int tag) {
    return (opd_work *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
opd_work *opd_group_recv(opd_group *group, opd_tensor *tensor, int from, int tag) {
    return (opd_work *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
opd_work *opd_group_reduce(opd_group *group, opd_tensor *tensor, const char *reduce_op, int root) {
    return (opd_work *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
opd_work *opd_group_gather(opd_group *group, opd_tensor *tensor, opd_tensor *list, int root) {
    return (opd_work *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
opd_work *opd_group_scatter(opd_group *group, opd_tensor *tensor, opd_tensor *list, int root) {
    return (opd_work *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
opd_work *opd_group_barrier(opd_group *group) { return (opd_work *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES"); }
opd_tensor *opd_all_reduce(opd_tensor *input, const char *reduce_op, const char *group_name) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
opd_tensor *opd_all_reduce_(opd_tensor *input, const char *reduce_op, const char *group_name) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
opd_tensor *opd_all_gather(opd_tensor *input, const char *group_name) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
opd_tensor *opd_reduce_scatter(opd_tensor *input, const char *reduce_op, const char *group_name) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
opd_tensor *opd_broadcast(opd_tensor *input, int src, const char *group_name) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
opd_tensor *opd_broadcast_(opd_tensor *input, int src, const char *group_name) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
void opd_parallel_free(opd_parallel *parallel) { }
opd_parallel *opd_data_parallel(opd_tensor *const *params, int count, opd_group *group,
                                const opd_parallel_options *options) {
    return (opd_parallel *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
int64_t opd_parallel_begin(opd_parallel *parallel, int64_t samples) {
    return opdi_without(__func__, "OPD_NO_COLLECTIVES");
}
bool opd_parallel_sync_set(opd_parallel *parallel, bool on) {
    (void)opdi_without(__func__, "OPD_NO_COLLECTIVES");
    return false;
}
opd_tensor *opd_parallel_full(opd_parallel *parallel, opd_tensor *param) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
int opd_sharded_hooks_begin(opd_parallel *parallel) { return opdi_without(__func__, "OPD_NO_COLLECTIVES"); }
int opd_sharded_add(opd_parallel *parallel, opd_tensor *const *params, int count) {
    return opdi_without(__func__, "OPD_NO_COLLECTIVES");
}
opd_parallel *opd_sharded_parallel(opd_tensor *const *params, int count, opd_group *group,
                                   const opd_parallel_options *options) {
    return (opd_parallel *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
opd_tensor *opd_sharded_clip_grad_norm(opd_parallel *parallel, double max_norm) {
    return (opd_tensor *)opdi_null_without(__func__, "OPD_NO_COLLECTIVES");
}
int opd_sharded_save(opd_parallel *parallel, const char *folder, const opd_module *module,
                     const opd_optimizer *optimizer, const char *const *names, const opd_value *values,
                     int64_t count) {
    return opdi_without(__func__, "OPD_NO_COLLECTIVES");
}
int opd_sharded_load(opd_parallel *parallel, const char *folder, opd_module *module, opd_optimizer *optimizer) {
    return opdi_without(__func__, "OPD_NO_COLLECTIVES");
}
#endif
#if defined(OPD_NO_PROFILER)
void opd_profile_free(opd_profile *profile) { }
int opd_profiler_begin(const opd_profiler_options *options) { return opdi_without(__func__, "OPD_NO_PROFILER"); }
opd_profile *opd_profiler_end(void) { return NULL; }
const opd_profile_row *opd_profile_rows(const opd_profile *profile, int64_t *count) {
    opdi_no_results(count, 1, sizeof *count);
    return (const opd_profile_row *)opdi_null_without(__func__, "OPD_NO_PROFILER");
}
size_t opd_profile_table(const opd_profile *profile, char *buf, size_t cap) {
    opdi_no_results(buf, cap != 0, 1);
    (void)opdi_without(__func__, "OPD_NO_PROFILER");
    return 0;
}
void opd_profile_print(const opd_profile *profile) { }
int opd_profile_write_trace(const opd_profile *profile, const char *path) {
    return opdi_without(__func__, "OPD_NO_PROFILER");
}
#endif
