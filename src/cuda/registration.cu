//----------------------------------------------------------------------------------------------------------------------
//  >>cu:registration registering kernels for operators
//----------------------------------------------------------------------------------------------------------------------

static const opdi_cu_registration *const opdi_cu_rows[] = {
    opdi_cu_table_random, opdi_cu_table_reductions, opdi_cu_table_softmax, opdi_cu_table_scans, opdi_cu_table_indexing,
    opdi_cu_table_pooling, opdi_cu_table_resampling, opdi_cu_table_filters, opdi_cu_table_losses,
    opdi_cu_table_ctc, opdi_cu_table_distances, opdi_cu_table_matmul,
    opdi_cu_table_fft, opdi_cu_table_solver, opdi_cu_table_triangles, opdi_cu_table_ldl,
    opdi_cu_table_convolution, opdi_cu_table_attention, opdi_cu_table_recurrent, opdi_cu_table_optimizers};

/* Operators that only the library itself calls, of namespace opd_cuda: their schemas and kernels. */
typedef struct opdi_cu_own { const char *name, *schema; opd_kernel kernel; } opdi_cu_own;
static const opdi_cu_own opdi_cu_own_rows[] = {
    {"list_norm", "list_norm(Tensor[] self, float order) -> Tensor", opdi_cu_list_norm},
    {"rms_norm", "rms_norm(Tensor x, Tensor? w, int n, float eps, Tensor? r) -> (Tensor, Tensor, Tensor)",
     opdi_cu_rms_norm},
    {"rms_norm_backward", "rms_norm_backward(Tensor g, Tensor x, Tensor? w, Tensor rstd, int n, bool need, Tensor? r) "
     "-> (Tensor, Tensor)", opdi_cu_rms_norm_backward},
    {"layer_norm_sum", "layer_norm_sum(Tensor x, Tensor r, Tensor? w, Tensor? b, int n, float eps) -> (Tensor, Tensor)",
     opdi_cu_layer_norm_sum},
    {"linear_relu", "linear_relu(Tensor bias, Tensor a, Tensor b) -> Tensor", opdi_cu_linear_relu},
    {"scaled_mm", "scaled_mm(Tensor a, Tensor b, Tensor left, Tensor right, Tensor? bias, int kinds, int dtype, bool "
     "fast) -> Tensor", opdi_cu_scaled_mm},
    {"rotary", "rotary(Tensor x, Tensor cos, Tensor sin, bool next, bool back) -> Tensor", opdi_cu_rotary_run},
    {"cross_entropy", "cross_entropy(Tensor x, Tensor target, int reduction, int ignore) -> (Tensor, Tensor, Tensor)",
     opdi_cu_cross_entropy},
    {"cross_entropy_backward", "cross_entropy_backward(Tensor g, Tensor x, Tensor target, Tensor lse, Tensor total, "
     "int reduction, int ignore) -> Tensor", opdi_cu_cross_entropy_backward},
    {"sample", "sample(Tensor like, int kind, Tensor? first, Tensor? second, float a, float b, bool wide, Generator? "
     "generator) -> Tensor", opdi_cu_sample_run},
    {"attention_dropout", "attention_dropout(Tensor q, Tensor k, Tensor v, Tensor? mask, float p, bool causal, float "
     "scale) -> (Tensor, Tensor, Tensor)", opdi_cu_attention_dropout},
    {"attention_dropout_backward", "attention_dropout_backward(Tensor g, Tensor q, Tensor k, Tensor v, Tensor out, "
     "Tensor lse, Tensor seed, Tensor? mask, float p, bool causal, float scale) -> (Tensor, Tensor, Tensor)",
     opdi_cu_attention_dropout_backward},
    {"attention_kept", "attention_kept(Tensor seed, int[] size, float p) -> Tensor", opdi_cu_attention_kept},
    {"attention_texts", "attention_texts(Tensor q, Tensor k, Tensor v, Tensor at, Tensor begin, int left, int right, "
     "float scale) -> (Tensor, Tensor, Tensor)", opdi_cu_attention_texts},
    {"attention_texts_backward", "attention_texts_backward(Tensor g, Tensor q, Tensor k, Tensor v, Tensor out, Tensor "
     "lse, Tensor offsets, int left, int right, float scale) -> (Tensor, Tensor, Tensor)",
     opdi_cu_attention_texts_backward}};
static void opdi_cu_own_register() {
    opd_library *lib = opd_library_open(OPD_DEF, "opd_cuda", NULL, __FILE__, __LINE__);
    for (const opdi_cu_own &r : opdi_cu_own_rows) {
        if (!lib || opd_def(lib, r.schema)) { return; }
        (void)opd_impl_key(lib, r.name, "CUDA", r.kernel, NULL, NULL);
    }
}

/* Returns the number of GPUs that can be used.  If it is 0, because there is no GPU or no driver, later errors will say
   so.  Does not make a context on any GPU; the first call that needs a context makes it. */
static int opdi_cu_find_devices() {
    static char why[400];
    int n = 0, i;
    const cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess || n == 0) {
        (void)cudaGetLastError();
        (void)snprintf(why, sizeof why, "the NVIDIA driver of this machine does not work: %s (%s, %d)%s",
                       cudaGetErrorString(e), cudaGetErrorName(e), (int)e, e == cudaErrorSystemNotReady
                       ? "; the GPUs may wait for the fabric manager (systemctl status nvidia-fabricmanager)"
                       : "; nvidia-smi may tell more");
        opd_backend_missing_set(OPD_CUDA, e == cudaErrorInsufficientDriver
            ? "this machine has no NVIDIA driver, or one that is too old for the CUDA plug-in"
            : e == cudaSuccess || e == cudaErrorNoDevice ? "this machine has no GPU, or none is visible "
            "(CUDA_VISIBLE_DEVICES)" : why);
        return 0;
    }
    n = n < OPDI_CU_MAX_DEVICES ? n : OPDI_CU_MAX_DEVICES;
    for (i = 0; i < n; i++) {
        opdi_cu_device *p = &opdi_cu_devices[i];
        (void)cudaDeviceGetAttribute(&p->multiprocessors, cudaDevAttrMultiProcessorCount, i);
        (void)cudaDeviceGetAttribute(&p->threads, cudaDevAttrMaxThreadsPerMultiProcessor, i);
        (void)cudaDeviceGetAttribute(&p->shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, i);
        (void)cudaDeviceGetAttribute(&p->major, cudaDevAttrComputeCapabilityMajor, i);
        (void)cudaDeviceGetAttribute(&p->minor, cudaDevAttrComputeCapabilityMinor, i);
    }
    return n;
}

OPD_LIBRARY_IMPL(aten, CUDA, lib) {
    opd_backend_desc d = opd_backend_desc();
    const char *debug = getenv("OPD_CUDA_DEBUG");
    const char *no_cache = getenv("OPD_CUDA_NO_CACHE");
    const char *winograd = getenv("OPD_WINOGRAD");
    const char *ranges = getenv("OPD_CUDA_NVTX");
    opdi_cu_debug = debug && *debug && *debug != '0';
    opdi_cu_no_cache = no_cache && *no_cache && *no_cache != '0';
    opdi_cu_no_winograd = winograd && *winograd == '0';
    opdi_cu_all_pieces = new std::unordered_map<void *, opdi_cu_piece *>();
    opdi_cu_all_pinned = new std::map<char *, opdi_cu_piece *>();
    opdi_cu_free_pinned = new std::multimap<size_t, opdi_cu_piece *>();
    opdi_cu_capturing = new std::vector<opdi_cu_pool *>();
    opdi_cu_marks = new std::vector<opdi_cu_mark>();
    opdi_cu_held = new std::vector<opdi_cu_piece *>();
    opdi_cu_idle_streams = new std::vector<opdi_cu_use>();
    opdi_cu_idle_handles = new std::vector<cublasHandle_t>[OPDI_CU_MAX_DEVICES];
    for (int i = 0; i < OPDI_CU_MAX_DEVICES; i++) { opdi_cu_pools[i].device = i; }
    d.alloc = opdi_cu_alloc; d.free = opdi_cu_free; d.copy = opdi_cu_copy_bytes;
    d.device_count = opdi_cu_device_count; d.device_get = opdi_cu_device_get; d.device_set = opdi_cu_device_set;
    d.synchronize = opdi_cu_synchronize;
    d.stream_new = opdi_cu_stream_new; d.stream_free = opdi_cu_stream_free;
    d.stream_get = opdi_cu_stream_get; d.stream_set = opdi_cu_stream_set; d.stream_wait = opdi_cu_stream_wait;
    d.stream_synchronize = opdi_cu_stream_synchronize;
    d.pointwise = opdi_cu_pointwise; d.draw = opdi_cu_draw;
    d.copy_async = opdi_cu_copy_async; d.host_alloc = opdi_cu_host_alloc; d.host_free = opdi_cu_host_free;
    d.empty_cache = opdi_cu_empty_cache; d.cached = opdi_cu_cached;
    d.event_new = opdi_cu_event_new; d.event_free = opdi_cu_event_free; d.event_record = opdi_cu_event_record;
    d.event_wait = opdi_cu_event_wait; d.event_synchronize = opdi_cu_event_synchronize;
    d.event_done = opdi_cu_event_done; d.event_elapsed = opdi_cu_event_elapsed;
    d.capture_begin = opdi_cu_capture_begin; d.capture_end = opdi_cu_capture_end;
    d.capture_replay = opdi_cu_capture_replay; d.capture_free = opdi_cu_capture_free;
    d.debug_set = opdi_cu_debug_set; d.record_stream = opdi_cu_record_stream;
    d.group_id = opdi_cu_group_id; d.group_new = opdi_cu_group_new;
    d.parts = &opdi_cu_parts;
    d.attention_backward = opdi_cu_attention_backward;
    d.gather = opdi_cu_gather_set;
    d.blocks = opdi_cu_blocks;
    d.convert = opdi_cu_stored_convert;
    d.complex_formulas = true;
    if (opd_backend_register(OPD_CUDA, &d)) { return; }
    opdi_cu_own_register();
    for (size_t s = 0; s < sizeof opdi_cu_rows / sizeof *opdi_cu_rows; s++) {
        for (const opdi_cu_registration *r = opdi_cu_rows[s]; r->name; r++) { (void)opd_impl(lib, r->name, r->kernel); }
    }
    opdi_cu_special_register(lib);
    if (ranges && *ranges && *ranges != '0') { (void)opdi_cu_ranges_begin(); }
}

/* torchvision's operators */
OPD_LIBRARY_IMPL(torchvision, CUDA, lib) {
    for (const opdi_cu_registration *r = opdi_cu_table_vision; r->name; r++) {
        (void)opd_impl(lib, r->name, r->kernel);
    }
}
