static int says(const char *function, const char *macro) {
    char text[200];
    int differ;
    (void)snprintf(text, sizeof text, "opd_%s is left out: OPD_NO_%s was defined", function, macro);
    differ = strcmp(opd_error_message(), text) || opd_error_code() != OPD_ERROR_NOT_FOUND;
    if (differ) { printf("not \"%s\" but \"%s\"\n", text, opd_error_message()); }
    opd_error_clear();
    return differ;
}
static int seven(opd_context *ctx) { return ctx ? 0 : 7; }
static int ask_tools(void) {
    opd_tensor *x = opd_ones(opd_ints_of(NULL, 0), OPD_FLOAT32), *outputs[2] = {x, x};
    opd_derivative *derivative = (opd_derivative *)(void *)x;
    opd_backward_options options;
    opd_autocast_region region;
    opd_profile *profile;
    char text[2] = "x";
    int wrong = 0;
    wrong += opd_vmap(NULL, NULL, &x, 1, NULL, outputs, 2) != -1 || outputs[0] || says("vmap", "TRANSFORMS");
    wrong += opd_vjp(NULL, NULL, &x, 1, NULL, outputs, 2, &derivative) != -1 || derivative || says("vjp", "TRANSFORMS");
    wrong += opd_vmap_wrap(x, 0, 1) || says("vmap_wrap", "TRANSFORMS");
    memset(&options, 0, sizeof options);
    options.is_grads_batched = true;
    wrong += opd_autograd_grad(&x, 1, &x, 1, &options, outputs) != -1 || !strstr(opd_error_message(), "TRANSFORMS");
    opd_error_clear();
    wrong += opd_graph_new() || says("graph_new", "GRAPHS");
    wrong += opd_graph_run(NULL, &x, 1, outputs, 2) != -1 || outputs[1] || says("graph_run", "GRAPHS");
    wrong += opd_graph_print(NULL, text, sizeof text) || *text || says("graph_print", "GRAPHS");
    wrong += opd_graph_load("x") || says("graph_load", "EXCHANGE or OPD_NO_GRAPHS");
    wrong += opd_opcheck(NULL, NULL, 0, NULL) != -1 || says("opcheck", "CHECKING");
    wrong += opd_gradcheck_defaults().fast_mode || says("gradcheck_defaults", "CHECKING");
    wrong += opd_adam_new(&x, 1, NULL) || says("adam_new", "TRAINING");
    wrong += opd_lr_step(1, 1, 1, 1) > 0 || says("lr_step", "TRAINING");
    wrong += opd_module_new() || says("module_new", "MODULES");
    wrong += opd_npy_load("x") || says("npy_load", "EXCHANGE");
    wrong += opd_tensor_file_find(NULL, "x") != -1 || says("tensor_file_find", "EXCHANGE");
    wrong += opd_profiler_begin(NULL) != -1 || says("profiler_begin", "PROFILER");
    region = opd_autocast_begin(OPD_CPU, OPD_BFLOAT16, true, -1);
    wrong += region.open || opd_autocast_enabled(OPD_CPU) || says("autocast_begin", "AUTOCAST");
    wrong += opd_autocast_dtype(OPD_CPU) != OPD_DTYPE_NONE || says("autocast_dtype", "AUTOCAST");
    wrong += opd_custom_fwd(NULL, OPD_CPU, OPD_FLOAT16, seven) != 7;
    wrong += opd_custom_fwd(NULL, OPD_CPU, OPD_FLOAT16, NULL) != -1 || says("custom_fwd", "AUTOCAST");
    opd_autocast_end(&region);
    opd_autocast_cache_clear();
    wrong += opd_vmap_end(1) || (profile = opd_profiler_end()) != NULL;
    opd_graph_free(NULL);
    opd_optimizer_free(NULL);
    opd_scaler_free(NULL);
    opd_tensor_file_close(NULL);
    opd_profile_print(NULL);
    opd_profile_free(NULL);
    return wrong || !opd_ok();
}
