//----------------------------------------------------------------------------------------------------------------------
//  >>cu:compiled    parts of compiled graphs
//
//  opd_graph_compile and opd_program_compile give parts of graphs to this plug-in: pointwise operators, norms, softmax,
//  and views between them.  For each kind of inputs (dtypes, sizes, strides), opd_graph_gpu_code writes kernels, and
//  NVRTC, NVIDIA's compiler for run time, compiles them.  A part that cannot be written runs operator by operator, as
//  do all parts if NVRTC is not there.
//----------------------------------------------------------------------------------------------------------------------

//== NVRTC =============================================================================================================

/* The functions of NVRTC that are called, by their names without "nvrtc". */
#define OPDI_CU_NVRTC_FUNCTIONS(X) \
    X(CreateProgram, (void **program, const char *text, const char *name, int count, const char *const *headers, \
                      const char *const *names)) \
    X(DestroyProgram, (void **program)) \
    X(CompileProgram, (void *program, int count, const char *const *options)) \
    X(GetCUBINSize, (void *program, size_t *size)) \
    X(GetCUBIN, (void *program, char *code)) \
    X(GetProgramLogSize, (void *program, size_t *size)) \
    X(GetProgramLog, (void *program, char *log))
#define OPDI_CU_NVRTC_MEMBER(name, parameters) int (*name) parameters;
static struct opdi_cu_nvrtc_functions { OPDI_CU_NVRTC_FUNCTIONS(OPDI_CU_NVRTC_MEMBER) bool loaded, missing; }
    opdi_cu_nvrtc;
static std::mutex opdi_cu_nvrtc_lock;

/* Loads NVRTC, unless it is loaded.  Returns whether it is there.  If it is not, warns the first time. */
static bool opdi_cu_nvrtc_load() {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so"};
    std::lock_guard<std::mutex> guard(opdi_cu_nvrtc_lock);
    const char *const given = getenv("OPD_NVRTC"), *missing = NULL;
    opdi_cu_nvrtc_functions all;
    if (opdi_cu_nvrtc.loaded || opdi_cu_nvrtc.missing) { return opdi_cu_nvrtc.loaded; }
    if (opd_code_forbidden("NVRTC")) {
        opd_error_clear();
        return false;
    }
    memset(&all, 0, sizeof all);
    void *library = given && *given ? dlopen(given, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (int i = 0; i < 2 && !library && !(given && *given); i++) { library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL); }
#define OPDI_CU_NVRTC_TAKE(name, parameters) { \
        void *const found = library ? dlsym(library, "nvrtc" #name) : NULL; \
        if (!found && !missing) { missing = "nvrtc" #name; } \
        memcpy(&all.name, &found, sizeof found); \
    }
    OPDI_CU_NVRTC_FUNCTIONS(OPDI_CU_NVRTC_TAKE)
    if (missing) {
        const char *const why = library ? NULL : dlerror();
        all.missing = true;
        opd_warn("CUDA: compiled graphs run operator by operator, because NVRTC cannot be loaded: %s%s. Install "
                 "NVIDIA's package cuda-nvrtc, or set the environment variable OPD_NVRTC to the path of libnvrtc.so.",
                 why ? why : library ? "it has no function " : given && *given ? given : names[0], library ? missing
                 : "");
        if (library) { (void)dlclose(library); }
    } else { all.loaded = true; }
    opdi_cu_nvrtc = all;
    return all.loaded;
}
/* The libraries that were loaded, by device and text.  They are never unloaded: queued work and captures may use their
   kernels after the graph is freed. */
static std::map<std::pair<int, std::string>, cudaLibrary_t> *opdi_cu_built;
/* Compiles the text of kernels for the current device and loads them, unless that was done before.  Returns 0, or 1
   after a warning if that fails. */
static int opdi_cu_nvrtc_build(const char *text, cudaLibrary_t *library) {
    std::lock_guard<std::mutex> guard(opdi_cu_nvrtc_lock);
    if (!opdi_cu_built) { opdi_cu_built = new std::map<std::pair<int, std::string>, cudaLibrary_t>(); }
    const std::pair<int, std::string> key(opdi_cu_current(), text);
    const auto found = opdi_cu_built->find(key);
    if (found != opdi_cu_built->end()) {
        *library = found->second;
        return 0;
    }
    const opdi_cu_device *const device = opdi_cu_properties();
    char arch[40];
    void *program = NULL;
    size_t size = 0;
    if (opd_code_forbidden("NVRTC")) {
        opd_error_clear();
        return 1;
    }
    (void)snprintf(arch, sizeof arch, "--gpu-architecture=sm_%d%d", device->major, device->minor);
    const char *const options[] = {arch, "--std=c++17"};
    if (opdi_cu_nvrtc.CreateProgram(&program, text, "graph.cu", 0, NULL, NULL)) { return 1; }
    int rc = opdi_cu_nvrtc.CompileProgram(program, 2, options) || opdi_cu_nvrtc.GetCUBINSize(program, &size);
    std::vector<char> code(size + 1);
    if (rc == 0) { rc = opdi_cu_nvrtc.GetCUBIN(program, code.data()); }
    if (rc) {
        size_t length = 0;
        (void)opdi_cu_nvrtc.GetProgramLogSize(program, &length);
        std::vector<char> log(length + 1);
        if (length) { (void)opdi_cu_nvrtc.GetProgramLog(program, log.data()); }
        opd_warn("CUDA: NVRTC cannot compile a part of a graph for %s, so it runs operator by operator: %.600s",
                 arch + strlen("--gpu-architecture="), log.data());
    }
    (void)opdi_cu_nvrtc.DestroyProgram(&program);
    if (rc) { return 1; }
    const cudaError_t e = cudaLibraryLoadData(library, code.data(), NULL, NULL, 0, NULL, NULL, 0);
    if (e != cudaSuccess) {
        (void)cudaGetLastError();
        opd_warn("CUDA: the kernels of a part of a graph cannot be loaded, so it runs operator by operator: %s",
                 cudaGetErrorString(e));
        return 1;
    }
    (*opdi_cu_built)[key] = *library;
    return 0;
}

//== the kernels of a part =============================================================================================

/* The dtype, sizes and strides of an input. */
struct opdi_cu_port {
    opd_scalar_type dtype;
    std::vector<int64_t> sizes, strides;
    opdi_cu_port(const opd_tensor *t) : dtype(opd_dtype(t)), sizes(opd_sizes(t), opd_sizes(t) + opd_ndim(t)),
        strides(opd_strides(t), opd_strides(t) + opd_ndim(t)) {}
    bool fits(const opd_tensor *t) const {
        if (opd_dtype(t) != dtype || (size_t)opd_ndim(t) != sizes.size()) { return false; }
        for (size_t i = 0; i < sizes.size(); i++) {
            if (opd_sizes(t)[i] != sizes[i]) { return false; }
            if (opd_strides(t)[i] != strides[i] && sizes[i] != 1) { return false; }
        }
        return true;
    }
};
/* What was compiled for one kind of inputs on one device.  `code` is NULL if the part cannot be written. */
struct opdi_cu_variant {
    int device;
    std::vector<opdi_cu_port> inputs, constants;
    opd_gpu_code *code;
    cudaLibrary_t library;
    std::vector<cudaKernel_t> kernels;
    opdi_cu_variant() : device(0), code(NULL), library(NULL) {}
    ~opdi_cu_variant() { opd_gpu_code_free(code); }
    opdi_cu_variant(const opdi_cu_variant &) = delete;
    opdi_cu_variant &operator=(const opdi_cu_variant &) = delete;
};
/* The most kinds of inputs for which a part is compiled. */
enum { OPDI_CU_KINDS = 8 };
struct opdi_cu_part {
    opd_graph *graph;                             /* a copy of the part, which only this plug-in uses */
    std::mutex lock;                              /* protects the variants, and the graph while code is written */
    std::list<opdi_cu_variant> variants;
    opdi_cu_part() : graph(NULL) {}
};

static bool opdi_cu_variant_fits(const opdi_cu_variant &variant, int device, opd_tensor *const *inputs, int n) {
    if (variant.device != device || variant.inputs.size() != (size_t)n) { return false; }
    for (int i = 0; i < n; i++) { if (!variant.inputs[(size_t)i].fits(inputs[i])) { return false; } }
    for (size_t i = 0; i < variant.constants.size(); i++) {
        if (!variant.constants[i].fits(variant.code->constants[i])) { return false; }
    }
    return true;
}
/* Writes and compiles the kernels for a new kind of inputs.  If that is impossible, variant->code stays NULL.  Returns
   0, or -1 and sets an error if memory ran out. */
static int opdi_cu_variant_make(opdi_cu_part *part, opdi_cu_variant *variant, opd_tensor *const *inputs, int n) {
    for (int i = 0; i < n; i++) { variant->inputs.push_back(opdi_cu_port(inputs[i])); }
    opd_gpu_code *const code = opd_graph_gpu_code(part->graph, inputs, n);
    if (!code) {
        if (opd_error_code() == OPD_ERROR_MEMORY) { return -1; }
        opd_error_clear();                        /* the part stays as it is */
        return 0;
    }
    const int rc = opdi_cu_nvrtc_build(code->text, &variant->library);
    bool whole = rc == 0;
    for (int i = 0; i < code->ncalls && whole; i++) {
        cudaKernel_t kernel = NULL;
        whole = cudaLibraryGetKernel(&kernel, variant->library, code->calls[i].name) == cudaSuccess;
        variant->kernels.push_back(kernel);
    }
    if (whole) {
        for (int i = 0; i < code->nconstants; i++) { variant->constants.push_back(opdi_cu_port(code->constants[i])); }
        variant->code = code;
        return 0;
    }
    opd_gpu_code_free(code);
    return 0;
}
/* Returns the variant for these inputs, and makes it if it is new.  Returns NULL if there is none: because the stream
   is captured, or there are too many kinds; or with an error. */
static opdi_cu_variant *opdi_cu_variant_of(opdi_cu_part *part, int device, opd_tensor *const *inputs, int n) {
    std::lock_guard<std::mutex> guard(part->lock);
    for (opdi_cu_variant &variant : part->variants) {
        if (opdi_cu_variant_fits(variant, device, inputs, n)) { return &variant; }
    }
    if (part->variants.size() >= OPDI_CU_KINDS || opdi_cu_captured(opdi_cu_stream()) || !opdi_cu_nvrtc_load()) {
        return NULL;
    }
    part->variants.emplace_back();
    opdi_cu_variant *const variant = &part->variants.back();
    variant->device = device;
    if (opdi_cu_variant_make(part, variant, inputs, n) == 0) { return variant; }
    part->variants.pop_back();
    return NULL;
}

//== runs ==============================================================================================================

static opd_tensor *opdi_cu_part_new(const int64_t *sizes, const int64_t *strides, int ndim, opd_scalar_type dtype) {
    return opd_empty_strided_full(opd_ints_of(sizes, ndim), opd_ints_of(strides, ndim), opd_value_int(dtype), OPD_NONE,
                                  opd_value_device(opd_device_make(OPD_CUDA, -1)), OPD_NONE);
}
/* Launches the kernels of a variant in order.  `data` has the addresses of the inputs, of the constants, and of the
   tensors that were made; `memory` is the block for values between kernels.  Returns 0, or -1 and sets an error. */
static int opdi_cu_variant_launch(const opdi_cu_variant &variant, char *const *data, int ninputs, char *memory) {
    const opd_gpu_code *const code = variant.code;
    const int64_t most = (int64_t)opdi_cu_properties()->multiprocessors * 64;
    for (int i = 0; i < code->ncalls; i++) {
        const opd_gpu_call *const call = &code->calls[i];
        std::vector<void *> values((size_t)call->narguments + 1), arguments((size_t)call->narguments + 1);
        for (int k = 0; k < call->narguments; k++) {
            const opd_gpu_argument *const argument = &call->arguments[k];
            values[(size_t)k] = argument->kind == OPD_GPU_INPUT ? data[argument->index]
                : argument->kind == OPD_GPU_OUTPUT ? data[ninputs + argument->index] : memory + argument->offset;
            arguments[(size_t)k] = &values[(size_t)k];
        }
        cudaLaunchConfig_t config = cudaLaunchConfig_t();
        config.gridDim = dim3((unsigned)(call->blocks < 1 ? 1 : call->blocks < most ? call->blocks : most));
        config.blockDim = dim3((unsigned)call->threads);
        config.stream = opdi_cu_stream();
        OPDI_CU_TRY(cudaLaunchKernelExC(&config, (const void *)variant.kernels[(size_t)i], arguments.data()),
                    call->name);
        OPDI_CU_TRY(opdi_cu_debug_wait(config.stream), call->name);
    }
    return 0;
}
/* Returns result `i` of a run: a tensor that the run has made, an input, or a view of one of these. */
static opd_tensor *opdi_cu_variant_result(const opd_gpu_result *result, opd_tensor *const *given,
                                          opd_tensor *const *made) {
    opd_tensor *const base = result->of < 0 ? given[~result->of] : made[result->of];
    if (!result->view) { return base; }
    return opd_as_strided_full(base, opd_ints_of(result->sizes, result->ndim), opd_ints_of(result->strides,
        result->ndim), opd_value_int(opd_storage_offset(base).u.i + result->offset));
}
/* Runs a part.  Follows opd_part_function.run: returns the number of results; 0 if the operators of the part have to
   run instead; or -1 and sets an error. */
static int opdi_cu_part_run(void *user, opd_tensor *const *inputs, int n, opd_tensor **outputs) {
    opdi_cu_part *const part = static_cast<opdi_cu_part *>(user);
    for (int i = 0; i < n; i++) {
        const opd_device first = opd_tensor_device(inputs[0]), device = opd_tensor_device(inputs[i]);
        if (device.type != OPD_CUDA || device.index != first.index) { return 0; }
    }
    if (n < 1) { return 0; }
    const int index = opd_tensor_device(inputs[0]).index;
    const opdi_cu_on on(index);
    const opdi_cu_variant *const variant = opdi_cu_variant_of(part, index, inputs, n);
    if (!opd_ok()) { return -1; }
    if (!variant || !variant->code) { return 0; }
    const opd_gpu_code *const code = variant->code;
    for (int i = 0; i < code->nconstants; i++) {
        const opd_tensor *const t = code->constants[i];
        const opd_device device = opd_tensor_device(t);
        if (device.type != OPD_CUDA || device.index != index || opd_tensor_is_neg(t) || opd_tensor_is_conj(t)) {
            return 0;
        }
    }
    std::vector<opd_tensor *> given(inputs, inputs + n), made;
    std::vector<char *> data;
    given.insert(given.end(), code->constants, code->constants + code->nconstants);
    for (opd_tensor *t : given) { data.push_back(static_cast<char *>(opd_device_data(t, OPD_CUDA))); }
    for (int i = 0; i < code->nmade; i++) {
        const opd_gpu_tensor *const tensor = &code->made[i];
        made.push_back(opdi_cu_part_new(tensor->sizes, tensor->strides, tensor->ndim, tensor->dtype));
        if (!made.back()) { return -1; }
        data.push_back(static_cast<char *>(opd_device_data(made.back(), OPD_CUDA)));
    }
    char *const memory = code->memory ? static_cast<char *>(opdi_cu_scratch((int64_t)code->memory)) : NULL;
    if ((code->memory && !memory) || !opd_ok() ||
        opdi_cu_variant_launch(*variant, data.data(), (int)given.size(), memory)) { return -1; }
    for (int i = 0; i < code->nresults; i++) {
        outputs[i] = opdi_cu_variant_result(&code->results[i], given.data(), made.data());
        if (!outputs[i]) { return -1; }
    }
    return code->nresults;
}

//== choosing parts ====================================================================================================

/* Operators that reduce rows, and views, which may stand in a part beside pointwise operators.  Views of a part of a
   tensor (narrow, select, expand) stay outside, because a part only returns tensors that fill their memory. */
static const char *const opdi_cu_part_rows[] = {
    "aten::layer_norm", "aten::native_layer_norm", "aten::rms_norm", "aten::softmax.int", "aten::_softmax",
    "aten::log_softmax.int", "aten::_log_softmax", "aten::sum.dim_IntList", "aten::mean.dim", "aten::amax",
    "aten::amin", NULL};
static const char *const opdi_cu_part_views[] = {
    "aten::view", "aten::reshape", "aten::_unsafe_view", "aten::unsqueeze", "aten::squeeze.dim",
    "aten::transpose.int", "aten::permute", "aten::t", "aten::alias", "aten::detach", NULL};
static bool opdi_cu_part_named(const opd_graph_node *node, const char *const *names) {
    for (; *names; names++) { if (opd_graph_node_is(node, *names)) { return true; } }
    return false;
}
/* Returns whether a call computes: it is a pointwise operator or reduces rows. */
static bool opdi_cu_part_computes(const opd_graph_node *node) {
    const opd_op *const op = opd_graph_node_op(node);
    if (!op || strncmp(opd_op_name(op), "aten::", 6) != 0 || opd_graph_node_has_effects(node)) { return false; }
    return (opd_op_tags(op) & OPD_OPTAG_POINTWISE) || opdi_cu_part_named(node, opdi_cu_part_rows);
}
static bool opdi_cu_part_takes(void *user, const opd_graph_node *node) {
    (void)user;
    return opdi_cu_part_computes(node) || opdi_cu_part_named(node, opdi_cu_part_views);
}
static void opdi_cu_part_free(void *user) {
    opdi_cu_part *const part = static_cast<opdi_cu_part *>(user);
    part->variants.clear();                       /* their code points to constants of the graph */
    opd_graph_free(part->graph);
    delete part;
}
/* Takes a part with two or more calls that compute.  Follows opd_part_compiler.compile. */
static int opdi_cu_part_compile(void *user, const opd_graph *graph, opd_part_function *function) {
    int count = 0;
    (void)user;
    for (const opd_graph_node *node = opd_graph_first(graph); node; node = opd_graph_next(node)) {
        count += opdi_cu_part_computes(node);
    }
    if (count < 2) { return 1; }
    opdi_cu_part *const part = new (std::nothrow) opdi_cu_part;
    if (!part) { return opdi_cu_no_memory("a part of a graph"); }
    part->graph = opd_graph_copy(graph);
    if (!part->graph) {
        delete part;
        return -1;
    }
    function->name = "cuda";
    function->run = opdi_cu_part_run;
    function->user = part;
    function->destroy = opdi_cu_part_free;
    return 0;
}
static const opd_part_compiler opdi_cu_parts = {opdi_cu_part_takes, opdi_cu_part_compile, 2, NULL};
