//----------------------------------------------------------------------------------------------------------------------
//  >>cu:fft         discrete Fourier transforms
//
//  cuFFT computes them.  It is loaded when the first transform runs; without it, transforms run on the CPU.  The dims
//  of a transform become the last ones of a contiguous tensor.  The plans of cuFFT that were used last are kept, and
//  not destroyed at the end of the program.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_CU_FFT_FUNCTIONS(X) \
    X(Create, (int *plan)) \
    X(Destroy, (int plan)) \
    X(SetStream, (int plan, cudaStream_t stream)) \
    X(SetAutoAllocation, (int plan, int on)) \
    X(SetWorkArea, (int plan, void *work)) \
    X(MakePlanMany64, (int plan, int rank, long long *n, long long *inembed, long long istride, long long idist, \
                       long long *onembed, long long ostride, long long odist, int type, long long batch, \
                       size_t *bytes)) \
    X(ExecC2C, (int plan, void *in, void *out, int direction)) \
    X(ExecZ2Z, (int plan, void *in, void *out, int direction)) \
    X(ExecR2C, (int plan, void *in, void *out)) \
    X(ExecD2Z, (int plan, void *in, void *out)) \
    X(ExecC2R, (int plan, void *in, void *out)) \
    X(ExecZ2D, (int plan, void *in, void *out))
#define OPDI_CU_FFT_MEMBER(name, parameters) int (*name) parameters;
static struct opdi_cu_fft_functions { OPDI_CU_FFT_FUNCTIONS(OPDI_CU_FFT_MEMBER) } opdi_cu_fft;
static std::mutex opdi_cu_fft_lock;
static int opdi_cu_fft_state;                     /* 0: not yet loaded, 1: loaded, -1: it cannot be loaded */

/* Loads a library: the file that the environment variable `variable` names, or else the first of `names` that there is.
   Returns NULL if there is none, or if loading code is forbidden. */
static void *opdi_cu_library(const char *variable, const char *const *names, int n) {
    const char *const given = getenv(variable);
    void *library = NULL;
    if (opd_code_forbidden(variable)) { opd_error_clear(); return NULL; }
    if (given && *given) { return dlopen(given, RTLD_NOW | RTLD_LOCAL); }
#if defined(OPD_CUDA_EMULATED)
    n = 0;                                        /* a real library would look for a GPU */
#endif
    for (int i = 0; i < n && !library; i++) { library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL); }
    return library;
}
/* Returns whether cuFFT is there; loads it if nobody has tried yet. */
static bool opdi_cu_fft_there() {
    static const char *const names[] = {"libcufft.so.12", "libcufft.so.11", "libcufft.so"};
    std::lock_guard<std::mutex> guard(opdi_cu_fft_lock);
    bool whole = true;
    if (opdi_cu_fft_state) { return opdi_cu_fft_state > 0; }
    void *const library = opdi_cu_library("OPD_CUFFT", names, 3);
#define OPDI_CU_FFT_TAKE(name, parameters) { \
        void *const found = library ? dlsym(library, "cufft" #name) : NULL; \
        memcpy(&opdi_cu_fft.name, &found, sizeof found); \
        whole = whole && found; \
    }
    OPDI_CU_FFT_FUNCTIONS(OPDI_CU_FFT_TAKE)
    opdi_cu_fft_state = whole ? 1 : -1;
    return whole;
}
enum {                                            /* cuFFT's names are cufftType and the directions */
    OPDI_CU_R2C = 0x2a, OPDI_CU_C2R = 0x2c, OPDI_CU_C2C = 0x29, OPDI_CU_D2Z = 0x6a, OPDI_CU_Z2D = 0x6c,
    OPDI_CU_Z2Z = 0x69,
    OPDI_CU_FORWARD = -1, OPDI_CU_INVERSE = 1, OPDI_CU_FFT_KEPT = 128
};
/* A transform over the last `rank` dims of a contiguous tensor; n: their sizes, of the real tensor if one is real. */
struct opdi_cu_fft_key {
    int64_t rank, n[3], batch, type, device;
    bool operator==(const opdi_cu_fft_key &o) const { return memcmp(this, &o, sizeof o) == 0; }
};
/* captured: replays read the plan's memory, so that it is never destroyed. */
struct opdi_cu_fft_plan { opdi_cu_fft_key key; int plan; size_t bytes; bool captured; };
static std::vector<opdi_cu_fft_plan> *opdi_cu_fft_plans;      /* the last used one first */
static int opdi_cu_fft_failed(int rc, const char *what) {
    (void)cudaGetLastError();
    return opd_fail(rc == 2 ? OPD_ERROR_MEMORY : OPD_ERROR_KERNEL, "cuFFT error %d in %s", rc, what);
}
/* Returns the plan of a transform, or NULL and sets an error.  The caller holds the lock. */
static opdi_cu_fft_plan *opdi_cu_fft_plan_of(const opdi_cu_fft_key &key) {
    try {
        if (!opdi_cu_fft_plans) { opdi_cu_fft_plans = new std::vector<opdi_cu_fft_plan>(); }
        opdi_cu_fft_plans->reserve(opdi_cu_fft_plans->size() + 1);
    } catch (const std::exception &) {
        (void)opdi_cu_no_memory("a plan of cuFFT");
        return NULL;
    }
    std::vector<opdi_cu_fft_plan> &all = *opdi_cu_fft_plans;
    for (size_t i = 0; i < all.size(); i++) {
        if (all[i].key == key) {
            std::rotate(all.begin(), all.begin() + (ptrdiff_t)i, all.begin() + (ptrdiff_t)i + 1);
            return &all[0];
        }
    }
    opdi_cu_fft_plan made = {key, 0, 0, false};
    long long n[3] = {key.n[0], key.n[1], key.n[2]};
    int rc = opdi_cu_fft.Create(&made.plan);
    if (rc) { (void)opdi_cu_fft_failed(rc, "cufftCreate"); return NULL; }
    rc = opdi_cu_fft.SetAutoAllocation(made.plan, 0);
    if (!rc) {
        rc = opdi_cu_fft.MakePlanMany64(made.plan, (int)key.rank, n, NULL, 1, 0, NULL, 1, 0, (int)key.type, key.batch,
                                        &made.bytes);
    }
    if (rc) {
        (void)opdi_cu_fft.Destroy(made.plan);
        (void)opdi_cu_fft_failed(rc, "cufftMakePlanMany64");
        return NULL;
    }
    for (size_t i = all.size(); all.size() >= OPDI_CU_FFT_KEPT && i-- > 0;) {
        if (all[i].captured) { continue; }
        (void)opdi_cu_fft.Destroy(all[i].plan);
        all.erase(all.begin() + (ptrdiff_t)i);
        break;
    }
    all.insert(all.begin(), made);                /* its room is reserved */
    return &all[0];
}
/* Transforms the last `rank` dims of `in`, contiguous and of at least one element, to `out`.  `real` has the sizes of
   the real tensor if one is real.  Returns 0, or -1 and sets an error. */
static int opdi_cu_fft_run(opd_tensor *in, opd_tensor *out, opd_tensor *real, int rank, int type, bool inverse) {
    opdi_cu_fft_key key;
    memset(&key, 0, sizeof key);
    key.rank = rank; key.type = type; key.device = opdi_cu_current(); key.batch = 1;
    for (int i = 0; i < opd_ndim(real); i++) {
        const int at = i - (opd_ndim(real) - rank);
        if (at < 0) { key.batch *= opd_size(real, i); } else { key.n[at] = opd_size(real, i); }
    }
    std::lock_guard<std::mutex> guard(opdi_cu_fft_lock);
    opdi_cu_fft_plan *const p = opdi_cu_fft_plan_of(key);
    if (!p) { return -1; }
    p->captured = p->captured || opdi_cu_captured(opdi_cu_stream());
    void *const work = p->bytes ? opdi_cu_scratch((int64_t)p->bytes) : NULL, *const x = opdi_cu_data<void>(in),
        *const y = opdi_cu_data<void>(out);
    if (!x || !y || (p->bytes && !work)) { return -1; }
    int rc = opdi_cu_fft.SetStream(p->plan, opdi_cu_stream());
    if (!rc && work) { rc = opdi_cu_fft.SetWorkArea(p->plan, work); }
    if (!rc) {
        const int direction = inverse ? OPDI_CU_INVERSE : OPDI_CU_FORWARD;
        rc = type == OPDI_CU_C2C ? opdi_cu_fft.ExecC2C(p->plan, x, y, direction)
            : type == OPDI_CU_Z2Z ? opdi_cu_fft.ExecZ2Z(p->plan, x, y, direction)
            : type == OPDI_CU_R2C ? opdi_cu_fft.ExecR2C(p->plan, x, y)
            : type == OPDI_CU_D2Z ? opdi_cu_fft.ExecD2Z(p->plan, x, y)
            : type == OPDI_CU_C2R ? opdi_cu_fft.ExecC2R(p->plan, x, y) : opdi_cu_fft.ExecZ2D(p->plan, x, y);
    }
    if (rc) { return opdi_cu_fft_failed(rc, "a transform"); }
    OPDI_CU_TRY(opdi_cu_debug_wait(opdi_cu_stream()), "cuFFT");
    return 0;
}
/* x = x * scale, for n numbers. */
template <typename T> __global__ void opdi_cu_fft_scale(T *x, T scale, int64_t n) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) { x[i] *= scale; }
}
static int opdi_cu_fft_scaled(opd_tensor *t, double scale) {
    const bool wide = opd_dtype(t) == OPD_COMPLEX128 || opd_dtype(t) == OPD_FLOAT64;
    const int64_t n = opd_numel(t) * (opd_dtype_is_complex(opd_dtype(t)) ? 2 : 1);
    if (scale == 1) { return 0; }
    return wide ? opdi_cu_launch(opdi_cu_fft_scale<double>, opdi_cu_grid(n, 256), dim3(256), 0, opdi_cu_data<double>(t),
                                 scale, n)
                : opdi_cu_launch(opdi_cu_fft_scale<float>, opdi_cu_grid(n, 256), dim3(256), 0, opdi_cu_data<float>(t),
                                 (float)scale, n);
}
/* Sets order to the dims of t, the `count` dims of the transform last.  Returns false if there is no cuFFT, or if it
   does not take the transform. */
static bool opdi_cu_fft_order(const opd_tensor *t, opd_ints dims, int64_t *order) {
    const int nd = opd_ndim(t), count = (int)dims.n;
    bool used[OPD_MAX_DIMS] = {false};
    int at = 0;
    if (count < 1 || count > 3 || nd < 1 || opd_numel(t) == 0 || !opdi_cu_fft_there()) { return false; }
    for (int i = 0; i < count; i++) {
        const int64_t d = dims.data[i] < 0 ? dims.data[i] + nd : dims.data[i];
        if (d < 0 || d >= nd || used[d]) { return false; }
        used[d] = true;
        order[nd - count + i] = d;
    }
    for (int d = 0; d < nd; d++) { if (!used[d]) { order[at++] = d; } }
    return true;
}
/* Moves the dims of t back from `order`. */
static opd_tensor *opdi_cu_fft_back(opd_tensor *t, const int64_t *order) {
    int64_t back[OPD_MAX_DIMS];
    for (int i = 0; i < opd_ndim(t); i++) { back[order[i]] = i; }
    return opd_permute(t, opd_ints_of(back, opd_ndim(t)));
}
static double opdi_cu_fft_factor(const opd_tensor *real, int rank, int64_t norm) {
    double n = 1;
    for (int i = 1; i <= rank; i++) { n *= (double)opd_size(real, -i); }
    return norm == 0 ? 1 : norm == 1 ? 1 / sqrt(n) : 1 / n;
}
/* Returns t with its dims in `order` as a new contiguous tensor, which a transform may overwrite. */
static opd_tensor *opdi_cu_fft_moved(opd_tensor *t, const int64_t *order) {
    opd_tensor *const moved = opd_permute(t, opd_ints_of(order, opd_ndim(t)));
    opd_tensor *const copy = moved ? opdi_cu_new(opd_ints_of(opd_sizes(moved), opd_ndim(t)), opd_dtype(t)) : NULL;
    return copy && opd_copy_(copy, moved) ? copy : NULL;
}
/* y = x as complex numbers. */
template <typename T> __global__ void opdi_cu_fft_widen(const T *x, T *y, int64_t n) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        y[2 * i] = x[i];
        y[2 * i + 1] = 0;
    }
}
static bool opdi_cu_fft_complex(const opd_tensor *t) {        /* others are complex32 and real numbers */
    return opd_dtype(t) == OPD_COMPLEX64 || opd_dtype(t) == OPD_COMPLEX128;
}
/* _fft_c2c */
static int opdi_cu_fft_c2c(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *x, *out;
    const opd_ints dims = opd_arg_ints(call, 1);
    int64_t order[OPD_MAX_DIMS];
    if (!opdi_cu_fft_complex(self) || !opdi_cu_fft_order(self, dims, order)) {
        return opd_cpu_fallback(call);
    }
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (!(x = opdi_cu_fft_moved(self, order)) ||
        opdi_cu_fft_run(x, x, x, (int)dims.n, opd_dtype(x) == OPD_COMPLEX128 ? OPDI_CU_Z2Z : OPDI_CU_C2C,
                        !opd_arg_bool(call, 3)) ||
        opdi_cu_fft_scaled(x, opdi_cu_fft_factor(x, (int)dims.n, opd_arg_int(call, 2)))) { return -1; }
    return opd_copy_(out, opdi_cu_fft_back(x, order)) ? 0 : -1;
}
/* _fft_r2c: if the whole result is wanted, a transform of complex numbers. */
static int opdi_cu_fft_r2c(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *x, *y, *out;
    const opd_ints dims = opd_arg_ints(call, 1);
    const bool wide = opd_dtype(self) == OPD_FLOAT64, half = opd_arg_bool(call, 3);
    const opd_scalar_type type = wide ? OPD_COMPLEX128 : OPD_COMPLEX64;
    int64_t order[OPD_MAX_DIMS], sizes[OPD_MAX_DIMS];
    const int nd = opd_ndim(self), rank = (int)dims.n;
    if ((opd_dtype(self) != OPD_FLOAT32 && !wide) || !opdi_cu_fft_order(self, dims, order)) {
        return opd_cpu_fallback(call);
    }
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (!(x = opdi_cu_fft_moved(self, order))) { return -1; }
    memcpy(sizes, opd_sizes(x), (size_t)nd * sizeof *sizes);
    if (half) { sizes[nd - 1] = sizes[nd - 1] / 2 + 1; }
    if (!(y = opdi_cu_new(opd_ints_of(sizes, nd), type))) { return -1; }
    const dim3 grid = opdi_cu_grid(opd_numel(x), 256);
    if (half ? opdi_cu_fft_run(x, y, x, rank, wide ? OPDI_CU_D2Z : OPDI_CU_R2C, false)
        : (wide ? opdi_cu_launch(opdi_cu_fft_widen<double>, grid, dim3(256), 0, opdi_cu_data<const double>(x),
                                 opdi_cu_data<double>(y), opd_numel(x))
                : opdi_cu_launch(opdi_cu_fft_widen<float>, grid, dim3(256), 0, opdi_cu_data<const float>(x),
                                 opdi_cu_data<float>(y), opd_numel(x))) ||
            opdi_cu_fft_run(y, y, y, rank, wide ? OPDI_CU_Z2Z : OPDI_CU_C2C, false)) { return -1; }
    if (opdi_cu_fft_scaled(y, opdi_cu_fft_factor(x, rank, opd_arg_int(call, 2)))) { return -1; }
    return opd_copy_(out, opdi_cu_fft_back(y, order)) ? 0 : -1;
}
/* _fft_c2r: the other dims are transformed before the last, because cuFFT wants a half of a whole Hermitian tensor. */
static int opdi_cu_fft_c2r(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *x, *y, *out;
    const opd_ints dims = opd_arg_ints(call, 1);
    const bool wide = opd_dtype(self) == OPD_COMPLEX128;
    const int64_t points = opd_arg_int(call, 3);
    int64_t order[OPD_MAX_DIMS], sizes[OPD_MAX_DIMS];
    const int nd = opd_ndim(self), rank = (int)dims.n;
    double factor = 1;
    if (!opdi_cu_fft_complex(self) || !opdi_cu_fft_order(self, dims, order)) {
        return opd_cpu_fallback(call);
    }
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    if (opd_numel(out) == 0) { return 0; }
    self = opd_narrow(self, (int)order[nd - 1], 0, points / 2 + 1);
    if (rank > 1 && self) { self = opd_fft_c2c(self, opd_ints_of(dims.data, rank - 1), 0, false); }
    if (!self || !(x = opdi_cu_fft_moved(self, order))) { return -1; }
    memcpy(sizes, opd_sizes(x), (size_t)nd * sizeof *sizes);
    sizes[nd - 1] = points;
    if (!(y = opdi_cu_new(opd_ints_of(sizes, nd), wide ? OPD_FLOAT64 : OPD_FLOAT32))) { return -1; }
    factor = opdi_cu_fft_factor(y, rank, opd_arg_int(call, 2));
    if (opdi_cu_fft_run(x, y, y, 1, wide ? OPDI_CU_Z2D : OPDI_CU_C2R, true) || opdi_cu_fft_scaled(y, factor)) {
        return -1;
    }
    return opd_copy_(out, opdi_cu_fft_back(y, order)) ? 0 : -1;
}

static const opdi_cu_registration opdi_cu_table_fft[] = {
    {"_fft_c2c", opdi_cu_fft_c2c}, {"_fft_r2c", opdi_cu_fft_r2c}, {"_fft_c2r", opdi_cu_fft_c2r},
    {NULL, NULL}};
