//----------------------------------------------------------------------------------------------------------------------
//  >>cu:indexing    indexing, joining, scattering
//
//  Nearly all kernels of this section are the same loop over positions, which calls a functor for each position.
//  Elements are moved by their size, so that one kernel per size serves all dtypes.
//----------------------------------------------------------------------------------------------------------------------

//== the loop over positions ===========================================================================================

template <class F> __global__ void opdi_cu_each_kernel(int64_t n, F f) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) { f(i); }
}
template <class F> static int opdi_cu_each(int64_t n, const F &f) {
    const int block = 256;
    return n <= 0 ? 0 : opdi_cu_launch(opdi_cu_each_kernel<F>, opdi_cu_grid(n, block), block, 0, n, f);
}
/* Runs the statements with T the type of a unit of `bytes` bytes. */
#define OPDI_CU_UNITS(bytes, T, ...) \
    switch (bytes) { OPDI_CU_CASE(1, uint8_t, T, __VA_ARGS__) OPDI_CU_CASE(2, uint16_t, T, __VA_ARGS__) \
        OPDI_CU_CASE(4, uint32_t, T, __VA_ARGS__) OPDI_CU_CASE(8, uint64_t, T, __VA_ARGS__) \
        default: { typedef opdi_cu_16 T; __VA_ARGS__; break; } }
/* Returns i / n, and sets *r to the remainder.  Divides in 32 bits if both numbers fit, as they nearly always do. */
static __device__ __forceinline__ int64_t opdi_cu_divide(int64_t i, int64_t n, int64_t *r) {
    if (((uint64_t)(i | n) >> 32) == 0) {
        const uint32_t q = (uint32_t)i / (uint32_t)n;
        *r = (int64_t)((uint32_t)i - q * (uint32_t)n);
        return (int64_t)q;
    }
    const int64_t q = i / n;
    *r = i - q * n;
    return q;
}

/* Sizes, and the strides of K operands in elements. */
template <int K> struct opdi_cu_strided {
    int n;
    int64_t size[OPD_MAX_DIMS], stride[K][OPD_MAX_DIMS];
    /* Computes the offset of position i, in row-major order, in each operand. */
    __device__ __forceinline__ void at(int64_t i, int64_t *offset) const {
        for (int k = 0; k < K; k++) { offset[k] = 0; }
        for (int d = n - 1; d > 0; d--) {
            int64_t r;
            i = opdi_cu_divide(i, size[d], &r);
            for (int k = 0; k < K; k++) { offset[k] += r * stride[k][d]; }
        }
        if (n > 0) { for (int k = 0; k < K; k++) { offset[k] += i * stride[k][0]; } }
    }
    void begin() { n = 0; }
    /* Adds a dim of size s inside the existing dims.  It is joined with the dim before it if that is possible for all
       operands. */
    void add(int64_t s, const int64_t *strides) {
        int k;
        if (s == 1) { return; }
        for (k = 0; n > 0 && k < K && stride[k][n - 1] == strides[k] * s; k++) { }
        if (n > 0 && k == K) { size[n - 1] *= s; } else { size[n++] = s; }
        for (k = 0; k < K; k++) { stride[k][n - 1] = strides[k]; }
    }
};

//== tensors ===========================================================================================================

/* Returns `dim` counted from the front.  A 0-dim tensor counts as if it had one dim. */
static int opdi_cu_dim(int64_t dim, const opd_tensor *t) {
    const int n = opd_ndim(t) > 0 ? opd_ndim(t) : 1;
    return (int)(dim < 0 ? dim + n : dim);
}
/* Returns t as a contiguous tensor of `dtype`; this is t itself if possible. */
static opd_tensor *opdi_cu_as(opd_tensor *t, opd_scalar_type dtype) {
    if (t && opd_dtype(t) != dtype) { t = opd_to_dtype(t, dtype); }
    return t && !opd_is_contiguous(t) ? opd_contiguous(t) : t;
}
/* Returns the dtype in which sums are computed: float32 for float32 and 16-bit floats, float64, or int64 for
   integers. */
static opd_scalar_type opdi_cu_compute_dtype(opd_scalar_type t) {
    return t == OPD_FLOAT64 ? OPD_FLOAT64 : opd_dtype_is_floating(t) ? OPD_FLOAT32 : OPD_INT64;
}
/* Returns contiguous memory of `dtype` in which to compute `out`; this is `out` itself if possible. */
static opd_tensor *opdi_cu_staging(opd_tensor *out, opd_scalar_type dtype) {
    return opd_dtype(out) == dtype
        ? opdi_cu_staging(out) : opdi_cu_new(opd_ints_of(opd_sizes(out), opd_ndim(out)), dtype);
}
/* Same as opdi_cu_staging, but the memory has the contents of `out`.  Returns NULL and sets an error if it fails. */
static opd_tensor *opdi_cu_staging_filled(opd_tensor *out, opd_scalar_type dtype) {
    opd_tensor *d = opdi_cu_staging(out, dtype);
    return d == out || (d && opd_copy_(d, out)) ? d : NULL;
}
/* Returns a number as a 0-dim tensor of `dtype` on the device. */
static opd_tensor *opdi_cu_number(opd_value v, opd_scalar_type dtype) {
    opd_tensor *t = opdi_cu_new(opd_ints_of(NULL, 0), dtype);
    return t ? opd_fill_(t, v) : NULL;
}
/* Returns argument i, a Tensor or a Scalar, as a contiguous tensor on the device with this dtype. */
static opd_tensor *opdi_cu_arg_as(opd_call *call, int i, const opd_tensor *like, opd_scalar_type dtype) {
    const opd_value v = opd_arg_value(call, i);
    if (v.tag != OPD_TAG_TENSOR) { return opdi_cu_number(v, dtype); }
    if (opd_tensor_device(v.u.t).type != OPD_CUDA) {                 /* a number in memory of the host */
        return opdi_cu_as(opd_to_device(v.u.t, opd_tensor_device(like), dtype), dtype);
    }
    return opdi_cu_as(v.u.t, dtype);
}
/* Returns the largest power of two, at most 16, that divides `bytes` and the addresses a and b. */
static int64_t opdi_cu_unit(int64_t bytes, uintptr_t a, uintptr_t b) {
    int64_t u = 16;
    while (((uint64_t)bytes | (uint64_t)a | (uint64_t)b) % (uint64_t)u) { u /= 2; }
    return u;
}
static int64_t opdi_cu_span(const int64_t *sizes, int from, int to) {
    int64_t n = 1;
    for (int d = from; d < to; d++) { n *= sizes[d]; }
    return n;
}

//== gather, scatter, and selecting rows ===============================================================================
//
//  For each position p of `index`, there is an element of b at p, and an element of a at p with the coordinate `dim`
//  replaced by index[p].

enum { OPDI_CU_GATHER = 0, OPDI_CU_SCATTER, OPDI_CU_ADD, OPDI_CU_MUL, OPDI_CU_MAX, OPDI_CU_MIN };

static __device__ __forceinline__ float opdi_cu_bits_to(uint32_t x, float *) { return __uint_as_float(x); }
static __device__ __forceinline__ double opdi_cu_bits_to(unsigned long long x, double *) {
    return __longlong_as_double((long long)x);
}
static __device__ __forceinline__ int64_t opdi_cu_bits_to(unsigned long long x, int64_t *) { return (int64_t)x; }
static __device__ __forceinline__ uint32_t opdi_cu_bits_of(float x) { return __float_as_uint(x); }
static __device__ __forceinline__ unsigned long long opdi_cu_bits_of(double x) {
    return (unsigned long long)__double_as_longlong(x);
}
static __device__ __forceinline__ unsigned long long opdi_cu_bits_of(int64_t x) { return (unsigned long long)x; }

/* Returns a * b; int64_t wraps around. */
static __device__ __forceinline__ int64_t opdi_cu_times(int64_t a, int64_t b) {
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
static __device__ __forceinline__ float opdi_cu_times(float a, float b) { return a * b; }
static __device__ __forceinline__ double opdi_cu_times(double a, double b) { return a * b; }

static __device__ __forceinline__ void opdi_cu_atomic_add(float *p, float v) { atomicAdd(p, v); }
static __device__ __forceinline__ void opdi_cu_atomic_add(double *p, double v) { atomicAdd(p, v); }
static __device__ __forceinline__ void opdi_cu_atomic_add(int64_t *p, int64_t v) {
    atomicAdd((unsigned long long *)p, (unsigned long long)v);
}
/* opdi_cu_load_common and opdi_cu_store_common load and store a number at an address at which other threads may store
   at the same time.  Numbers of up to 8 bytes are stored by one instruction, so that memory never has a mixture of
   two such numbers. */
template <class T> static __device__ __forceinline__ T opdi_cu_load_common(const T *p) {
    return *(const volatile T *)p;
}
template <class T> static __device__ __forceinline__ void opdi_cu_store_common(T *p, T v) { *(volatile T *)p = v; }
static __device__ __forceinline__ void opdi_cu_store_common(opdi_cu_16 *p, opdi_cu_16 v) {
    opdi_cu_store_common(&p->a, v.a);
    opdi_cu_store_common(&p->b, v.b);
}
/* Replaces *p by the combination of *p and v, in one atomic step.  `how` is the operation.  For a maximum or minimum,
   NaN stays. */
template <class T> static __device__ void opdi_cu_atomic(int how, T *p, T v) {
    if (how == OPDI_CU_ADD) { opdi_cu_atomic_add(p, v); return; }
    auto *at = (decltype(opdi_cu_bits_of(v)) *)p;
    auto seen = opdi_cu_load_common(at);
    for (;;) {
        const T u = opdi_cu_bits_to(seen, (T *)0);
        const T w = how == OPDI_CU_MUL ? opdi_cu_times(u, v)
            : how == OPDI_CU_MAX ? (u > v || !(u <= u) ? u : v) : (u < v || !(u <= u) ? u : v);
        const auto was = atomicCAS(at, seen, opdi_cu_bits_of(w));
        if (was == seen) { return; }
        seen = was;
    }
}

/* The operands of a walk over `index`: index itself, `a` (with stride 0 along `dim`), and b. */
struct opdi_cu_indexed {
    opdi_cu_strided<3> walk;
    const int64_t *index;
    void *a, *b;
    int64_t at, size;                             /* stride and size of a along `dim` */
    double alpha;
    int how;
    bool wrap;                                    /* true: negative indices count from the end */
    opdi_cu_guard guard;
    __device__ __forceinline__ bool place(int64_t i, int64_t *pa, int64_t *pb) const {
        int64_t o[3], k;
        walk.at(i, o);
        k = index[o[0]];
        if (wrap && k < 0) { k += size; }
        *pa = o[1] + k * at; *pb = o[2];
        if ((uint64_t)k < (uint64_t)size) { return true; }
        guard.note(index[o[0]], size);
        return false;
    }
};
template <class T> struct opdi_cu_gather : opdi_cu_indexed {
    explicit opdi_cu_gather(const opdi_cu_indexed &x) : opdi_cu_indexed(x) { }
    __device__ void operator()(int64_t i) const {
        int64_t pa, pb;
        const bool there = place(i, &pa, &pb);
        ((T *)b)[pb] = there ? ((const T *)a)[pa] : T();
    }
};
/* Stores elements of b in a.  If an index occurs twice, either of the two elements may remain. */
template <class T> struct opdi_cu_scatter : opdi_cu_indexed {
    explicit opdi_cu_scatter(const opdi_cu_indexed &x) : opdi_cu_indexed(x) { }
    __device__ void operator()(int64_t i) const {
        int64_t pa, pb;
        if (place(i, &pa, &pb)) { opdi_cu_store_common((T *)a + pa, ((const T *)b)[pb]); }
    }
};
/* Combines elements of b with elements of a atomically.  The order of additions varies, as in PyTorch. */
template <class T> struct opdi_cu_scatter_fold : opdi_cu_indexed {
    explicit opdi_cu_scatter_fold(const opdi_cu_indexed &x) : opdi_cu_indexed(x) { }
    __device__ void operator()(int64_t i) const {
        int64_t pa, pb;
        if (place(i, &pa, &pb)) { opdi_cu_atomic(how, (T *)a + pa, opdi_cu_times((T)alpha, ((const T *)b)[pb])); }
    }
};
static int opdi_cu_indexed_ordered(const opd_call *call, const opdi_cu_indexed &f, int64_t n, opd_tensor *a);
/* Gathers, scatters or combines, as `how` says.  a and b have the same dtype.  b has at least the sizes of index, or is
   one number.  Combining is possible only for float32, float64 and int64, in which kernels compute.  Returns 0, or -1
   and sets an error. */
static int opdi_cu_indexed_run(const opd_call *call, int how, opd_tensor *a, int dim, opd_tensor *index,
                               opd_tensor *b, bool wrap, double alpha) {
    const int nd = opd_ndim(a);
    const int64_t n = opd_numel(index);
    opdi_cu_indexed f;
    if (n == 0) { return opd_ok() ? 0 : -1; }
    if (opd_dtype(index) != OPD_INT64 && !(index = opd_to_dtype(index, OPD_INT64))) { return -1; }
    f.walk.begin();
    for (int d = 0; d < opd_ndim(index); d++) {
        const int64_t s[3] = {opd_strides(index)[d], d == dim || nd == 0 ? 0 : opd_strides(a)[d],
                              opd_ndim(b) == 0 ? 0 : opd_strides(b)[d]};
        f.walk.add(opd_sizes(index)[d], s);
    }
    f.index = opdi_cu_data<int64_t>(index); f.a = opdi_cu_data<void>(a); f.b = opdi_cu_data<void>(b);
    f.at = nd ? opd_strides(a)[dim] : 0; f.size = nd ? opd_sizes(a)[dim] : 1;
    f.alpha = alpha; f.how = how; f.wrap = wrap; f.guard = opdi_cu_guard_of(call);
    if (!opd_ok()) { return -1; }
    if (how == OPDI_CU_GATHER) { OPDI_CU_SIZES(opd_dtype(a), T, return opdi_cu_each(n, opdi_cu_gather<T>(f))) }
    if (opd_deterministic_mode() != OPD_DETERMINISTIC_OFF && n > 1 &&
        (how == OPDI_CU_SCATTER ? opd_numel(b) > 1 : how <= OPDI_CU_MUL && opd_dtype(a) != OPD_INT64)) {
        return opdi_cu_indexed_ordered(call, f, n, a);
    }
    if (how == OPDI_CU_SCATTER) { OPDI_CU_SIZES(opd_dtype(a), T, return opdi_cu_each(n, opdi_cu_scatter<T>(f))) }
    if (opd_dtype(a) == OPD_FLOAT32) { return opdi_cu_each(n, opdi_cu_scatter_fold<float>(f)); }
    if (opd_dtype(a) == OPD_FLOAT64) { return opdi_cu_each(n, opdi_cu_scatter_fold<double>(f)); }
    return opdi_cu_each(n, opdi_cu_scatter_fold<int64_t>(f));
}
/* Runs gather(self, dim, index). */
static int opdi_cu_gather_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *index = opd_arg_tensor(call, 2);
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_indexed_run(call, OPDI_CU_GATHER, self, opdi_cu_dim(opd_arg_int(call, 1), self), index,
                               opdi_cu_result(call, 0), false, 1);
}
/* Adds complex elements of src, which has at least the sizes of index or is one number, to elements of out, as
   opdi_cu_indexed_run does.  The parts become the elements of one more dim. */
static int opdi_cu_add_pairs(const opd_call *call, opd_tensor *out, int dim, opd_tensor *index, opd_tensor *src) {
    int64_t sizes[OPD_MAX_DIMS];
    const int ndim = opd_ndim(index);
    memcpy(sizes, opd_sizes(index), (size_t)ndim * sizeof *sizes);
    sizes[ndim] = 2;
    if (opd_ndim(src) == 0) { src = opd_expand(src, opd_ints_of(sizes, ndim)); }
    index = opd_expand(opd_unsqueeze(index, -1), opd_ints_of(sizes, ndim + 1));
    out = opd_view_as_real(out);
    src = src ? opd_view_as_real(src) : NULL;
    return index && out && src ? opdi_cu_indexed_run(call, OPDI_CU_ADD, out, dim, index, src, false, 1) : -1;
}
/* Returns whether argument 0 is complex, and has no dim, or so many that its parts cannot be elements of one more. */
static bool opdi_cu_parts_fit_no_dim(opd_call *call) {
    const int ndim = opd_ndim(opd_arg_tensor(call, 0));
    return opdi_cu_is_complex(call, 0) && (ndim == 0 || ndim == OPD_MAX_DIMS);
}
/* Runs scatter(self, dim, index, src or value), or a variant that combines elements, in the dtype in which kernels
   compute, as `how` says. */
static int opdi_cu_scatter_mode(opd_call *call, int how) {
    const bool pairs = how != OPDI_CU_SCATTER && opdi_cu_is_complex(call, 0);
    if (pairs && (how != OPDI_CU_ADD || opdi_cu_parts_fit_no_dim(call))) { return opd_cpu_fallback(call); }
    opd_tensor *index = opd_arg_tensor(call, 2), *out = opd_result_update(call), *src, *staging = out;
    opd_scalar_type t = opd_dtype(out);
    const int dim = opdi_cu_dim(opd_arg_int(call, 1), out);
    if (!out) { return -1; }
    if (pairs) {
        src = opdi_cu_arg_as(call, 3, out, t);
        return src ? opdi_cu_add_pairs(call, out, dim, index, src) : -1;
    }
    if (how != OPDI_CU_SCATTER) { t = opdi_cu_compute_dtype(t); }
    if (t != opd_dtype(out)) { staging = opdi_cu_staging_filled(out, t); }
    src = opd_arg_value(call, 3).tag == OPD_TAG_TENSOR && opd_dtype(opd_arg_tensor(call, 3)) == t
        ? opd_arg_tensor(call, 3) : opdi_cu_arg_as(call, 3, out, t);
    if (!staging || !src || opdi_cu_indexed_run(call, how, staging, dim, index, src, false, 1)) { return -1; }
    return opdi_cu_staging_store(out, staging);
}
static int opdi_cu_scatter_kernel(opd_call *call) { return opdi_cu_scatter_mode(call, OPDI_CU_SCATTER); }
static int opdi_cu_scatter_add_kernel(opd_call *call) { return opdi_cu_scatter_mode(call, OPDI_CU_ADD); }
static int opdi_cu_scatter_reduce_kernel(opd_call *call) {
    const char *how = opd_arg_str(call, 4);
    if (strcmp(how, "add") && strcmp(how, "multiply")) {
        return opd_fail(OPD_ERROR_ARGUMENT, "reduce argument must be either add or multiply.");
    }
    return opdi_cu_scatter_mode(call, *how == 'a' ? OPDI_CU_ADD : OPDI_CU_MUL);
}
/* Divides each sum by its count, or by 1 if the count is 0.  Integers are rounded down. */
template <class T> struct opdi_cu_share {
    T *staging;
    const int64_t *count;
    static __device__ float divide(float x, int64_t k) { return x / (float)k; }
    static __device__ double divide(double x, int64_t k) { return x / (double)k; }
    static __device__ int64_t divide(int64_t x, int64_t k) { return x / k - (x % k < 0); }
    __device__ void operator()(int64_t i) const { staging[i] = divide(staging[i], count[i] > 1 ? count[i] : 1); }
};
/* Combines elements of src with elements of out along dim, at the positions in index.  `name` is sum, prod, mean, amax
   or amin.  If `include_self` is false, the previous elements of out do not count.  Returns 0, or -1 and sets an
   error. */
static int opdi_cu_reduce_into(const opd_call *call, opd_tensor *out, int dim, opd_tensor *index, opd_tensor *src,
                               const char *name, bool include_self) {
    const opd_scalar_type t = opdi_cu_compute_dtype(opd_dtype(out));
    const bool whole = t == OPD_INT64, mean = strcmp(name, "mean") == 0;
    const int how = strcmp(name, "prod") == 0 ? OPDI_CU_MUL : strcmp(name, "amax") == 0 ? OPDI_CU_MAX
        : strcmp(name, "amin") == 0 ? OPDI_CU_MIN : OPDI_CU_ADD;
    opd_tensor *staging = opdi_cu_staging_filled(out, t), *count, *one;
    if (opd_dtype(src) != t) { src = opdi_cu_as(src, t); }
    if (!staging || !src) { return -1; }
    if (!include_self) {                          /* positions to be written start from the neutral value */
        const opd_value start = how == OPDI_CU_MUL ? opd_value_int(1) : how == OPDI_CU_ADD ? opd_value_int(0)
            : whole ? opd_value_int(how == OPDI_CU_MAX ? INT64_MIN : INT64_MAX)
            : opd_value_double(how == OPDI_CU_MAX ? -INFINITY : INFINITY);
        opd_tensor *first = opdi_cu_number(start, t);
        if (!first || opdi_cu_indexed_run(call, OPDI_CU_SCATTER, staging, dim, index, first, false, 1)) { return -1; }
    }
    if (opdi_cu_indexed_run(call, how, staging, dim, index, src, false, 1)) { return -1; }
    if (mean && opd_numel(staging) > 0) {
        one = opdi_cu_number(opd_value_int(1), OPD_INT64);
        count = opdi_cu_new(opd_ints_of(opd_sizes(out), opd_ndim(out)), OPD_INT64);
        if (!one || !count || !opd_fill_(count, opd_value_int(include_self)) ||
            opdi_cu_indexed_run(call, OPDI_CU_ADD, count, dim, index, one, false, 1)) {
            return -1;
        }
        const int64_t n = opd_numel(staging), *c = opdi_cu_data<int64_t>(count);
        if (t == OPD_FLOAT32) {
            const opdi_cu_share<float> f = {opdi_cu_data<float>(staging), c};
            if (opdi_cu_each(n, f)) { return -1; }
        } else if (t == OPD_FLOAT64) {
            const opdi_cu_share<double> f = {opdi_cu_data<double>(staging), c};
            if (opdi_cu_each(n, f)) { return -1; }
        } else {
            const opdi_cu_share<int64_t> f = {opdi_cu_data<int64_t>(staging), c};
            if (opdi_cu_each(n, f)) { return -1; }
        }
    }
    return opdi_cu_staging_store(out, staging);
}
static int opdi_cu_scatter_reduce_two_kernel(opd_call *call) {
    if (opdi_cu_is_complex(call, 0)) { return opd_cpu_fallback(call); }
    opd_tensor *out = opd_result_update(call);
    return !out ? -1 : opdi_cu_reduce_into(call, out, opdi_cu_dim(opd_arg_int(call, 1), out), opd_arg_tensor(call, 2),
                                           opd_arg_tensor(call, 3), opd_arg_str(call, 4), opd_arg_bool(call, 5));
}
/* Expands a vector of indices along dim to a tensor of the given sizes.  Returns NULL and sets an error if it fails. */
static opd_tensor *opdi_cu_expand(opd_tensor *index, int dim, const int64_t *sizes, int ndim) {
    int64_t strides[OPD_MAX_DIMS];
    index = opdi_cu_as(index, OPD_INT64);
    for (int d = 0; d < ndim; d++) { strides[d] = d == dim ? 1 : 0; }
    return index ? opd_tensor_view(index, sizes, strides, ndim, opd_tensor_offset(index)) : NULL;
}
/* Adds alpha * v to the four floats at p.  Each addition is atomic. */
static __device__ __forceinline__ void opdi_cu_atomic_add_4(float *p, opdi_cu_vector<float, 4> v, float alpha) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    atomicAdd(reinterpret_cast<float4 *>(p),
              make_float4(alpha * v.at[0], alpha * v.at[1], alpha * v.at[2], alpha * v.at[3]));
#else
    for (int k = 0; k < 4; k++) { opdi_cu_atomic(OPDI_CU_ADD, p + k, alpha * v.at[k]); }
#endif
}
/* Adds alpha * src[outer, m, inner] to out[outer, index[m], inner], for contiguous, aligned float32 tensors, four
   elements of `inner` at a time.  The order of additions varies, as in opdi_cu_scatter_fold. */
struct opdi_cu_index_add {
    opdi_cu_pointwise_divider inner, many;        /* number of packs of four elements in `inner`; of indices */
    uint32_t all;                                 /* number of packs in src */
    int64_t size;                                 /* size of out along the dim */
    float alpha;
    opdi_cu_guard guard;
};
static __global__ void __launch_bounds__(256) opdi_cu_index_add_packs(const opdi_cu_index_add f, const int64_t *index,
                                                                      const float *src, float *out) {
    const uint32_t i = blockIdx.x * 256 + threadIdx.x;
    if (i >= f.all) { return; }
    const opdi_cu_vector<float, 4> v = opdi_cu_load_vector<4>(src + (int64_t)i * 4);
    const uint32_t line = f.inner.of(i), outer = f.many.of(line);
    const int64_t at = index[line - outer * f.many.d];
    if (!f.guard.inside(at, f.size)) { return; }
    opdi_cu_atomic_add_4(out + ((outer * f.size + at) * f.inner.d + (i - line * f.inner.d)) * 4, v, f.alpha);
}
/* Returns whether opdi_cu_index_add_packs can add src to out along dim. */
static bool opdi_cu_index_add_fits(const opd_tensor *out, int dim, const opd_tensor *src) {
    return opd_dtype(out) == OPD_FLOAT32 && opd_dtype(src) == OPD_FLOAT32 && opd_ndim(out) > 0 &&
        opd_ndim(src) == opd_ndim(out) && opd_is_contiguous(out) && opd_is_contiguous(src) && opd_numel(src) > 0 &&
        opd_numel(src) < INT32_MAX && opdi_cu_line_of(src, dim).inner % 4 == 0 &&
        opdi_cu_aligned(opdi_cu_data<void>(out)) && opdi_cu_aligned(opdi_cu_data<void>(src)) &&
        opd_deterministic_mode() == OPD_DETERMINISTIC_OFF;
}
static int opdi_cu_index_add_run(const opd_call *call, opd_tensor *out, int dim, opd_tensor *index, opd_tensor *src,
                                 double alpha) {
    const opdi_cu_line l = opdi_cu_line_of(src, dim);
    opdi_cu_index_add f;
    if (!(index = opdi_cu_as(index, OPD_INT64))) { return -1; }
    f.inner = opdi_cu_divide_by((uint32_t)(l.inner / 4));
    f.many = opdi_cu_divide_by((uint32_t)l.n);
    f.all = (uint32_t)(opd_numel(src) / 4);
    f.size = opd_size(out, dim);
    f.alpha = (float)alpha;
    f.guard = opdi_cu_guard_of(call);
    return opdi_cu_launch(opdi_cu_index_add_packs, dim3((unsigned)opdi_cu_ceil(f.all, 256)), dim3(256), 0, f,
                          opdi_cu_data<int64_t>(index), opdi_cu_data<float>(src), opdi_cu_data<float>(out));
}
/* These functions run index_add and index_copy(self, dim, index, source, ...). */
static int opdi_cu_index_add_kernel(opd_call *call) {
    if (opdi_cu_parts_fit_no_dim(call)) { return opd_cpu_fallback(call); }
    opd_tensor *src = opd_arg_tensor(call, 3), *out = opd_result_update(call), *staging, *index;
    const opd_scalar_type t = opdi_cu_compute_dtype(opd_dtype(out));
    const opd_value alpha = opd_arg_value(call, 4);
    const int dim = opdi_cu_dim(opd_arg_int(call, 1), out);
    const double times = alpha.tag == OPD_TAG_FLOAT ? alpha.u.d : (double)alpha.u.i;
    if (!out) { return -1; }
    if (opd_dtype_is_complex(opd_dtype(out))) {
        src = opd_mul_Scalar(opdi_cu_as(src, opd_dtype(out)), alpha);
        index = src ? opdi_cu_expand(opd_arg_tensor(call, 2), dim, opd_sizes(src), opd_ndim(src)) : NULL;
        return index ? opdi_cu_add_pairs(call, out, dim, index, src) : -1;
    }
    if (opdi_cu_index_add_fits(out, dim, src)) {
        return opdi_cu_index_add_run(call, out, dim, opd_arg_tensor(call, 2), src, times);
    }
    staging = t == opd_dtype(out) ? out : opdi_cu_staging_filled(out, t);
    index = opdi_cu_expand(opd_arg_tensor(call, 2), dim, opd_sizes(src), opd_ndim(src));
    if (opd_dtype(src) != t) { src = opdi_cu_as(src, t); }
    if (!staging || !index || !src ||
        opdi_cu_indexed_run(call, OPDI_CU_ADD, staging, dim, index, src, false, times)) {
        return -1;
    }
    return opdi_cu_staging_store(out, staging);
}
static int opdi_cu_index_copy_kernel(opd_call *call) {
    opd_tensor *src = opd_arg_tensor(call, 3), *out = opd_result_update(call), *index;
    const int dim = opdi_cu_dim(opd_arg_int(call, 1), out);
    index = out ? opdi_cu_expand(opd_arg_tensor(call, 2), dim, opd_sizes(src), opd_ndim(src)) : NULL;
    return !index ? -1 : opdi_cu_indexed_run(call, OPDI_CU_SCATTER, out, dim, index, src, false, 1);
}
/* Runs index_fill(self, dim, index, value). */
static int opdi_cu_index_fill_kernel(opd_call *call) {
    opd_tensor *index = opd_arg_tensor(call, 2), *out = opd_result_update(call), *value;
    const int dim = opdi_cu_dim(opd_arg_int(call, 1), out);
    int64_t sizes[OPD_MAX_DIMS];
    if (!out) { return -1; }
    for (int d = 0; d < opd_ndim(out); d++) { sizes[d] = opd_sizes(out)[d]; }
    sizes[dim] = opd_numel(index);
    index = opdi_cu_expand(index, dim, sizes, opd_ndim(out) > 0 ? opd_ndim(out) : 1);
    value = opdi_cu_arg_as(call, 3, out, opd_dtype(out));
    return !index || !value ? -1 : opdi_cu_indexed_run(call, OPDI_CU_SCATTER, out, dim, index, value, true, 1);
}
static int opdi_cu_index_reduce_kernel(opd_call *call) {
    opd_tensor *src = opd_arg_tensor(call, 3), *out = opd_result_update(call), *index;
    const int dim = opdi_cu_dim(opd_arg_int(call, 1), out);
    index = out ? opdi_cu_expand(opd_arg_tensor(call, 2), dim, opd_sizes(src), opd_ndim(src)) : NULL;
    return !index ? -1 : opdi_cu_reduce_into(call, out, dim, index, src, opd_arg_str(call, 4), opd_arg_bool(call, 5));
}

/* Sets b[outer][j][inner] to a[outer][index[j]][inner], in units of T.  If `wrap` is true, negative indices count from
   the end. */
template <class T> struct opdi_cu_select_rows {
    const T *a;
    T *b;
    const int64_t *index;
    int64_t n, size, inner;
    bool wrap;
    opdi_cu_guard guard;
    __device__ void operator()(int64_t i) const {
        int64_t c, j, k;
        const int64_t o = opdi_cu_divide(opdi_cu_divide(i, inner, &c), n, &j);
        k = index[j];
        if (wrap && k < 0) { k += size; }
        b[i] = guard.inside(k, size) ? a[(o * size + k) * inner + c] : T();
    }
};
/* Does the same for long rows.  A block copies a piece of U units per thread of one row, with all loads in flight. */
template <class T, int U> __global__ void __launch_bounds__(256) opdi_cu_select_long(const opdi_cu_select_rows<T> f,
                                                                                     int64_t rows, int64_t pieces) {
    for (int64_t p = blockIdx.x; p < rows * pieces; p += gridDim.x) {
        int64_t piece, j;
        const int64_t row = opdi_cu_divide(p, pieces, &piece), o = opdi_cu_divide(row, f.n, &j);
        const int64_t begin = piece * U * 256 + threadIdx.x;
        int64_t k = f.index[j];
        if (f.wrap && k < 0) { k += f.size; }
        const bool fits = (uint64_t)k < (uint64_t)f.size;
        const T *from = f.a + (o * f.size + (fits ? k : 0)) * f.inner;
        T v[U];
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { v[u] = fits && begin + u * 256 < f.inner ? from[begin + u * 256] : T(); }
        OPDI_CU_UNROLL
        for (int u = 0; u < U; u++) { if (begin + u * 256 < f.inner) { f.b[row * f.inner + begin + u * 256] = v[u]; } }
        if (!fits && threadIdx.x == 0) { f.guard.note(f.index[j], f.size); }
    }
}
/* Copies the rows of `a` along dim that index lists to `out` [outer, index, inner].  Returns 0, or -1 and sets an
   error. */
static int opdi_cu_rows_select(const opd_call *call, opd_tensor *a, int dim, opd_tensor *index, opd_tensor *out,
                               bool wrap) {
    const int nd = opd_ndim(a);
    const int64_t outer = nd ? opdi_cu_span(opd_sizes(a), 0, dim) : 1, size = nd ? opd_sizes(a)[dim] : 1;
    int64_t bytes = (int64_t)opd_dtype_size(opd_dtype(a)) * (nd ? opdi_cu_span(opd_sizes(a), dim + 1, nd) : 1), unit;
    opd_tensor *staging = opdi_cu_staging(out, opd_dtype(out));
    a = opdi_cu_as(a, opd_dtype(a));
    index = opdi_cu_as(index, OPD_INT64);
    if (!staging || !a || !index) { return -1; }
    if (opd_numel(out) == 0) { return 0; }
    unit = opdi_cu_unit(bytes, (uintptr_t)opdi_cu_data<void>(a), (uintptr_t)opdi_cu_data<void>(staging));
    OPDI_CU_UNITS(unit, T, {
        const opdi_cu_select_rows<T> f = {opdi_cu_data<T>(a), opdi_cu_data<T>(staging), opdi_cu_data<int64_t>(index),
                                   opd_numel(index), size, bytes / unit, wrap, opdi_cu_guard_of(call)};
        const int64_t pieces = opdi_cu_ceil(f.inner, 4 * 256);
        if (f.inner < 256 ? opdi_cu_each(outer * f.n * f.inner, f)
            : opdi_cu_launch(opdi_cu_select_long<T, 4>, opdi_cu_grid_rows(outer * f.n * pieces), dim3(256), 0, f,
                             outer * f.n, pieces)) { return -1; }
    })
    return opdi_cu_staging_store(out, staging);
}
static int opdi_cu_index_select_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_rows_select(call, self, opdi_cu_dim(opd_arg_int(call, 1), self), opd_arg_tensor(call, 2),
                               opdi_cu_result(call, 0), false);
}
static int opdi_cu_embedding_kernel(opd_call *call) {
    if (opd_results_from_fake(call)) { return -1; }
    return opdi_cu_rows_select(call, opd_arg_tensor(call, 0), 0, opd_arg_tensor(call, 1), opdi_cu_result(call, 0),
                               false);
}
/* Returns the elements of t, in row-major order, as a tensor of one dim. */
static opd_tensor *opdi_cu_flat(opd_tensor *t) {
    const int64_t one = 1, n = opd_numel(t);
    t = opdi_cu_as(t, opd_dtype(t));
    return t ? opd_tensor_view(t, &n, &one, 1, opd_tensor_offset(t)) : NULL;
}
static int opdi_cu_take_kernel(opd_call *call) {
    opd_tensor *self;
    if (opd_results_from_fake(call) || !(self = opdi_cu_flat(opd_arg_tensor(call, 0)))) { return -1; }
    return opdi_cu_rows_select(call, self, 0, opd_arg_tensor(call, 1), opdi_cu_result(call, 0), true);
}

//== nonzero, masked_select, masked_scatter ============================================================================
//
//  There are three steps.  The first counts the selected elements of each tile.  The second computes where each tile's
//  results begin, and the total; the host waits for the total if it is the size of the result.  The third goes through
//  the tiles again, now with the position of each selected element in the result.

enum { OPDI_CU_PICK_THREADS = 256, OPDI_CU_PICK_TILE = 2048 };

/* Replaces each x[i] by the sum of the elements before it, and sets x[n] to the total.  Runs in one block. */
static __global__ void opdi_cu_offsets_kernel(int64_t *x, int64_t n) {
    __shared__ int64_t warps[OPDI_CU_WARP];
    const int lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP;
    const int E = 8;                              /* neighbouring elements per thread */
    int64_t carry = 0;
    for (int64_t from = 0; from < n; from += blockDim.x * E) {
        const int64_t i = from + threadIdx.x * E;
        int64_t v[E], mine = 0, before = carry;
        OPDI_CU_UNROLL
        for (int e = 0; e < E; e++) { v[e] = i + e < n ? x[i + e] : 0; mine += v[e]; }
        int64_t sum = mine;
        for (int d = 1; d < OPDI_CU_WARP; d *= 2) {
            const int64_t left = __shfl_up_sync(OPDI_CU_ALL_LANES, sum, d);
            if (lane >= d) { sum += left; }
        }
        if (lane == OPDI_CU_WARP - 1) { warps[warp] = sum; }
        __syncthreads();
        for (int w = 0; w < (int)blockDim.x / OPDI_CU_WARP; w++) {
            if (w < warp) { before += warps[w]; }
            carry += warps[w];
        }
        before += sum - mine;
        OPDI_CU_UNROLL
        for (int e = 0; e < E; e++) { if (i + e < n) { x[i + e] = before; } before += v[e]; }
        __syncthreads();
    }
    if (threadIdx.x == 0) { x[n] = carry; }
}
static int opdi_cu_offsets(int64_t *x, int64_t n) { return opdi_cu_launch(opdi_cu_offsets_kernel, 1, 1024, 0, x, n); }

template <class P> __global__ void opdi_cu_count_kernel(int64_t n, P in, int64_t *counts) {
    const int64_t from = (int64_t)blockIdx.x * OPDI_CU_PICK_TILE + threadIdx.x;
    int c = 0;
    for (int k = 0; k < OPDI_CU_PICK_TILE; k += OPDI_CU_PICK_THREADS) { c += from + k < n && in(from + k); }
    c = opdi_cu_block_reduce(c, opdi_cu_sum(), 0);
    if (threadIdx.x == 0) { counts[blockIdx.x] = c; }
}
/* For every selected element i, calls each(i, number of selected elements before i). */
template <class P, class E> __global__ void opdi_cu_pick_kernel(int64_t n, P in, const int64_t *counts, E each) {
    __shared__ int warps[OPDI_CU_PICK_THREADS / OPDI_CU_WARP];
    const int64_t from = (int64_t)blockIdx.x * OPDI_CU_PICK_TILE + threadIdx.x;
    const int lane = threadIdx.x % OPDI_CU_WARP, warp = threadIdx.x / OPDI_CU_WARP;
    int64_t at = counts[blockIdx.x];
    for (int k = 0; k < OPDI_CU_PICK_TILE; k += OPDI_CU_PICK_THREADS) {
        const bool mine = from + k < n && in(from + k);
        const unsigned all = __ballot_sync(OPDI_CU_ALL_LANES, mine);
        int64_t before = at + __popc(all & ((1u << lane) - 1));
        if (lane == 0) { warps[warp] = __popc(all); }
        __syncthreads();
        for (int w = 0; w < OPDI_CU_PICK_THREADS / OPDI_CU_WARP; w++) {
            if (w < warp) { before += warps[w]; }
            at += warps[w];
        }
        if (mine) { each(from + k, before); }
        __syncthreads();
    }
}
/* Counts the selected elements (for which in(i) is true) of *tiles tiles.  Returns an array with the number of selected
   elements before each tile, then the total.  Returns NULL and sets an error if it fails. */
template <class P> static int64_t *opdi_cu_count(int64_t n, const P &in, int64_t *tiles) {
    *tiles = opdi_cu_ceil(n, OPDI_CU_PICK_TILE);
    int64_t *counts = (int64_t *)opdi_cu_scratch((*tiles + 1) * 8);
    if (!counts || (n > 0 && opdi_cu_launch(opdi_cu_count_kernel<P>, (unsigned)*tiles, OPDI_CU_PICK_THREADS, 0, n, in,
                                            counts)) || opdi_cu_offsets(counts, *tiles)) {
        return NULL;
    }
    return counts;
}
template <class P, class E> static int opdi_cu_pick(int64_t n, const P &in, const int64_t *counts, const E &each) {
    return n <= 0 ? 0 : opdi_cu_launch(opdi_cu_pick_kernel<P, E>, (unsigned)opdi_cu_ceil(n, OPDI_CU_PICK_TILE),
                                       OPDI_CU_PICK_THREADS, 0, n, in, counts, each);
}
/* Waits for a number that kernels have computed, and returns it.  Returns -1 and sets an error if it fails. */
static int64_t opdi_cu_fetch(const int64_t *at) {
    int64_t v = -1;
    return opdi_cu_copy_bytes(NULL, &v, -1, at, opdi_cu_current(), sizeof v) ? -1 : v;
}

template <class T> struct opdi_cu_is_true {
    const T *x;
    __device__ bool operator()(int64_t i) const { return opdi_cu_load<bool>(x + i); }
};
/* Writes the coordinates of element i to row `at` of the result. */
struct opdi_cu_place {
    opdi_cu_strided<1> walk;                         /* only its sizes are used */
    int64_t *out, row, column;
    __device__ void operator()(int64_t i, int64_t at) const {
        for (int d = walk.n - 1; d >= 0; d--) {
            int64_t r;
            i = opdi_cu_divide(i, walk.size[d], &r);
            out[at * row + d * column] = r;
        }
    }
};
template <class T> static int opdi_cu_nonzero_of(opd_call *call, opd_tensor *t) {
    const opdi_cu_is_true<T> in = {opdi_cu_data<T>(t)};
    int64_t tiles, sizes[2], strides[2], *counts = opdi_cu_count(opd_numel(t), in, &tiles);
    opdi_cu_place each;
    opd_tensor *out;
    sizes[0] = counts ? opdi_cu_fetch(counts + tiles) : -1;
    if (sizes[0] < 0) { return -1; }
    sizes[1] = opd_ndim(t); strides[0] = 1; strides[1] = sizes[0] ? sizes[0] : 1;      /* column-major, as in PyTorch */
    out = opd_result_strided(call, 0, sizes, strides, 2, OPD_INT64, opd_tensor_device(t));
    if (!out || opd_numel(out) == 0) { return out ? 0 : -1; }
    each.walk.n = opd_ndim(t);
    for (int d = 0; d < opd_ndim(t); d++) { each.walk.size[d] = opd_sizes(t)[d]; }
    each.out = opdi_cu_data<int64_t>(out); each.row = opd_strides(out)[0]; each.column = opd_strides(out)[1];
    return opdi_cu_pick(opd_numel(t), in, counts, each);
}
static int opdi_cu_nonzero_kernel(opd_call *call) {
    opd_tensor *t = opd_arg_tensor(call, 0);
    if (opd_dtype_is_complex(opd_dtype(t))) {
        return opd_fail(OPD_ERROR_DTYPE, "\"nonzero\" not implemented for '%s'", opd_dtype_name(opd_dtype(t)));
    }
    if (!(t = opdi_cu_as(t, opd_dtype(t)))) { return -1; }
    OPDI_CU_ALL(opd_dtype(t), T, return opdi_cu_nonzero_of<T>(call, t))
}

/* masked_select: list[at] = self[i].  masked_scatter (`back`): self[i] = list[at]. */
template <class T> struct opdi_cu_masked {
    opdi_cu_strided<1> walk;                         /* of self */
    T *self, *list;
    int64_t n;                                    /* length of list */
    bool back;
    opdi_cu_guard guard;
    __device__ void operator()(int64_t i, int64_t at) const {
        int64_t o;
        walk.at(i, &o);
        if (!back) { list[at] = self[o]; return; }
        if (guard.inside(at, n)) { self[o] = list[at]; }
    }
};
/* Returns the mask as a contiguous tensor of these sizes. */
static opd_tensor *opdi_cu_mask(opd_tensor *mask, const int64_t *sizes, int ndim) {
    mask = opd_expand(mask, opd_ints_of(sizes, ndim));
    return mask ? opdi_cu_as(mask, opd_dtype(mask)) : NULL;
}
template <class T> static int opdi_cu_masked_move(opd_call *call, opd_tensor *self, opd_tensor *mask, opd_tensor *src) {
    const opdi_cu_is_true<uint8_t> in = {opdi_cu_data<uint8_t>(mask)};
    int64_t tiles, n, *counts = opdi_cu_count(opd_numel(mask), in, &tiles);
    opdi_cu_masked<T> each;
    opd_tensor *out = src, *staging = src;
    if (!src) {                                   /* masked_select */
        n = counts ? opdi_cu_fetch(counts + tiles) : -1;
        out = n < 0 ? NULL : opd_result(call, 0, &n, 1, opd_dtype(self));
        staging = out ? opdi_cu_staging(out, opd_dtype(out)) : NULL;
    }
    if (!counts || !staging) { return -1; }
    each.walk.begin();
    for (int d = 0; d < opd_ndim(self); d++) { each.walk.add(opd_sizes(self)[d], opd_strides(self) + d); }
    each.self = opdi_cu_data<T>(self); each.list = opdi_cu_data<T>(staging); each.n = opd_numel(staging);
    each.back = src != NULL;
    each.guard = opdi_cu_guard_of(call, "Number of elements of source < number of ones in mask");
    if (opdi_cu_pick(opd_numel(mask), in, counts, each)) { return -1; }
    return src ? 0 : opdi_cu_staging_store(out, staging);
}
static int opdi_cu_masked_select_kernel(opd_call *call) {
    opd_tensor *both[2] = {opd_arg_tensor(call, 0), opd_arg_tensor(call, 1)};
    opd_tensors wide;
    if (opd_dtype(both[1]) != OPD_BOOL && opd_dtype(both[1]) != OPD_UINT8) {
        return opd_fail(OPD_ERROR_DTYPE, "masked_select: expected BoolTensor for mask");
    }
    wide = opd_broadcast_tensors(opd_tensors_of(both, 2));
    if (wide.n != 2 || !(both[1] = opdi_cu_as(wide.data[1], opd_dtype(both[1])))) { return -1; }
    OPDI_CU_SIZES(opd_dtype(both[0]), T, return opdi_cu_masked_move<T>(call, wide.data[0], both[1], NULL))
    return 0;
}
static int opdi_cu_masked_scatter_kernel(opd_call *call) {
    opd_tensor *out = opd_result_update(call), *src = opd_arg_tensor(call, 2), *mask;
    if (!out || !(mask = opdi_cu_mask(opd_arg_tensor(call, 1), opd_sizes(out), opd_ndim(out))) ||
        !(src = opdi_cu_as(src, opd_dtype(src)))) {
        return -1;
    }
    OPDI_CU_SIZES(opd_dtype(out), T, return opdi_cu_masked_move<T>(call, out, mask, src))
    return 0;
}
/* Sets out to `value` where the mask is true, otherwise to self.  The operands of the walk are out, self and mask. */
template <class T> struct opdi_cu_fill_masked {
    opdi_cu_strided<3> walk;
    T *out;
    const T *self, *value;
    const uint8_t *mask;
    __device__ void operator()(int64_t i) const {
        int64_t o[3];
        walk.at(i, o);
        out[o[0]] = mask[o[2]] ? *value : self[o[1]];
    }
};
static int opdi_cu_masked_fill_kernel(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0), *mask = opd_arg_tensor(call, 1), *out, *value;
    if (opd_results_from_fake(call) || !(out = opdi_cu_result(call, 0))) { return -1; }
    const opd_ints sizes = opd_ints_of(opd_sizes(out), opd_ndim(out));
    self = opd_expand(self, sizes);
    mask = opd_expand(mask, sizes);
    value = opdi_cu_arg_as(call, 2, out, opd_dtype(out));
    if (!self || !mask || !value) { return -1; }
    OPDI_CU_SIZES(opd_dtype(out), T, {
        opdi_cu_fill_masked<T> f;
        f.walk.begin();
        for (int d = 0; d < opd_ndim(out); d++) {
            const int64_t s[3] = {opd_strides(out)[d], opd_strides(self)[d], opd_strides(mask)[d]};
            f.walk.add(sizes.data[d], s);
        }
        f.out = opdi_cu_data<T>(out); f.self = opdi_cu_data<T>(self); f.value = opdi_cu_data<T>(value);
        f.mask = opdi_cu_data<uint8_t>(mask);
        return opdi_cu_each(opd_numel(out), f);
    })
    return 0;
}

