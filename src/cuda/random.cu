//----------------------------------------------------------------------------------------------------------------------
//  >>cu:random      random numbers
//
//  Random numbers are computed from a counter, and are the same as on the CPU for the same seed (see opd_draw).
//  Uniform numbers and integers are equal bit for bit.  Numbers that need a logarithm, sine or cosine (normal,
//  exponential) may differ in the last bits, because these functions differ in CUDA.
//----------------------------------------------------------------------------------------------------------------------

/* Computes four random words from a key and a counter, whose upper half is `high`, by Philox 4x32-10. */
__device__ __forceinline__ void opdi_cu_philox(uint64_t key, uint64_t counter, uint32_t *out /*[4]*/,
                                               uint64_t high = 0) {
    uint32_t a = (uint32_t)counter, b = (uint32_t)(counter >> 32), c = (uint32_t)high, d = (uint32_t)(high >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    OPDI_CU_UNROLL
    for (int round = 0; round < 10; round++, k0 += 0x9e3779b9u, k1 += 0xbb67ae85u) {
        const uint64_t x = (uint64_t)a * 0xd2511f53u, y = (uint64_t)c * 0xcd9e8d57u;
        a = (uint32_t)(y >> 32) ^ b ^ k0;
        b = (uint32_t)y;
        c = (uint32_t)(x >> 32) ^ d ^ k1;
        d = (uint32_t)x;
    }
    out[0] = a; out[1] = b; out[2] = c; out[3] = d;
}
/* Returns x * y + z, rounded after each operation, as on the CPU. */
__device__ __forceinline__ float opdi_cu_mul_add(float x, float y, float z) {
#if defined(OPD_CUDA_EMULATED)
    const float p = x * y;
    return p + z;
#else
    return __fadd_rn(__fmul_rn(x, y), z);
#endif
}
__device__ __forceinline__ double opdi_cu_mul_add(double x, double y, double z) {
#if defined(OPD_CUDA_EMULATED)
    const double p = x * y;
    return p + z;
#else
    return __dadd_rn(__dmul_rn(x, y), z);
#endif
}
__device__ __forceinline__ float opdi_cu_log1p(float x) { return log1pf(x); }
__device__ __forceinline__ double opdi_cu_log1p(double x) { return log1p(x); }
/* Converts four random words to numbers: four uniform floats (two doubles) or, if `normal` is true, pairs of normal
   numbers. */
__device__ __forceinline__ void opdi_cu_drawn(const uint32_t *r /*[4]*/, bool normal, float *x /*[4]*/) {
    OPDI_CU_UNROLL
    for (int k = 0; k < 4; k++) { x[k] = (float)(int32_t)(r[k] >> 8) * 5.9604644775390625e-8f; }
    OPDI_CU_UNROLL
    for (int k = 0; normal && k < 4; k += 2) {
        const float radius = sqrtf(-2.0f * logf(x[k] + 2.98023223876953125e-8f));
        float s, c;
        sincospif((float)(int32_t)(r[k + 1] >> 8) * 1.1920928955078125e-7f, &s, &c);
        x[k] = radius * c;
        x[k + 1] = radius * s;
    }
}
__device__ __forceinline__ void opdi_cu_drawn(const uint32_t *r /*[4]*/, bool normal, double *x /*[2]*/) {
    double s, c, radius;
    OPDI_CU_UNROLL
    for (int k = 0; k < 2; k++) {
        x[k] = (double)(((uint64_t)r[2 * k + 1] << 32 | r[2 * k]) >> 11) * 1.1102230246251565404e-16;
    }
    if (!normal) { return; }
    radius = sqrt(-2.0 * log(1.0 - x[0]));
    sincospi(2 * x[1], &s, &c);
    x[0] = radius * c;
    x[1] = radius * s;
}
/* Draws random floats.  state: in a capture, the generator's key and the position from which d.at is counted; if it is
   NULL, d.key and d.at are used.  W: the type in which numbers are computed, float or double.  bits: how many different
   values a uniform number in [0, 1) can have, or 0 for all. */
template <typename T, typename W> __global__ void opdi_cu_draw_floats(opd_draw d, const uint64_t *state, W bits) {
    constexpr int per = 16 / sizeof(W), wide = per * sizeof(T) <= 16 ? per : 16 / sizeof(T);     /* stored at once */
    const int64_t step = (int64_t)gridDim.x * blockDim.x, nblocks = (d.numel + per - 1) / per;
    const W a = (W)d.a, b = (W)d.b, width = (W)(d.b - d.a);
    const uint64_t key = state ? state[0] : d.key, at = d.at + (state ? state[1] : 0);
    T *out = (T *)d.data;
    const bool even = (uintptr_t)out % sizeof(opdi_cu_vector<T, wide>) == 0;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < nblocks; i += step) {
        uint32_t r[4];
        W x[4];
        opdi_cu_vector<T, wide> drawn[per / wide];
        opdi_cu_philox(key, at / 4 + (uint64_t)i, r);
        opdi_cu_drawn(r, d.kind == OPD_DRAW_NORMAL, x);
        OPDI_CU_UNROLL
        for (int k = 0; k < per; k++) {
            W v = x[k];
            if (d.kind == OPD_DRAW_UNIFORM) {
                if (bits > 0) { v = (W)(int32_t)(v * bits) / bits; }
                v = opdi_cu_mul_add(v, width, a);
            }
            else if (d.kind == OPD_DRAW_NORMAL) { v = opdi_cu_mul_add(v, b, a); }
            else if (d.kind == OPD_DRAW_EXPONENTIAL) { v = -opdi_cu_log1p(-v) / a; }
            else { v = v < a ? 1 : 0; }
            drawn[k / wide].at[k % wide] = opdi_cu_cast<T>(v);
        }
        if (even && i * per + per <= d.numel) {
            OPDI_CU_UNROLL
            for (int k = 0; k < per; k += wide) { opdi_cu_store_vector<wide>(out + i * per + k, drawn[k / wide]); }
            continue;
        }
        for (int k = 0; k < per && i * per + k < d.numel; k++) { out[i * per + k] = drawn[k / wide].at[k % wide]; }
    }
}
template <typename T> __global__ void opdi_cu_draw_integers(opd_draw d, const uint64_t *state) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    const uint64_t key = state ? state[0] : d.key, at = d.at + (state ? state[1] : 0);
    T *out = (T *)d.data;
    for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < (d.numel + 1) / 2; i += step) {
        uint32_t r[4];
        opdi_cu_philox(key, at / 4 + (uint64_t)i, r);
        for (int k = 0; k < 2 && 2 * i + k < d.numel; k++) {
            const uint32_t low = r[2 * k], high = r[2 * k + 1];
            uint64_t x = (uint64_t)high << 32 | low;
            if (d.range && d.range <= UINT32_MAX) { x = (high * d.range + (low * d.range >> 32)) >> 32; }
            else if (d.range) { x %= d.range; }
            opdi_cu_store(out + 2 * i + k, (int64_t)((uint64_t)d.low + x));
        }
    }
}
static int opdi_cu_draw_on(const opd_draw *d, const uint64_t *state) {
    const dim3 grid = opdi_cu_grid(opdi_cu_ceil(d->numel, 2), 256);
    if (d->kind == OPD_DRAW_INTEGERS) {
        OPDI_CU_ALL(d->dtype, T, return opdi_cu_launch(opdi_cu_draw_integers<T>, grid, 256, 0, *d, state))
    }
    if (d->dtype == OPD_FLOAT64) {
        return opdi_cu_launch(opdi_cu_draw_floats<double, double>, grid, 256, 0, *d, state, 0.0);
    }
    OPDI_CU_ALL(d->dtype, T, return opdi_cu_launch(opdi_cu_draw_floats<T, float>, grid, 256, 0, *d, state,
                d->dtype == OPD_FLOAT16 ? 2048.0f : d->dtype == OPD_BFLOAT16 ? 256.0f : 0.0f))
    return 0;
}
static int opdi_cu_draw(void *user, int index, const opd_draw *d) {
    const opdi_cu_on on(index);
    const uint64_t *state = NULL;
    opd_draw part = *d;
    (void)user;
    if (opdi_cu_sequence_of(index, &part, &state)) { return -1; }
    return opdi_cu_draw_on(&part, state);
}


//== dropout ===========================================================================================================

/* Computes out = x * mask * scale, for contiguous, aligned memory. */
template <typename T> __global__ void opdi_cu_dropout_kernel(const T *x, const bool *mask, T *out, opdi_cu_acc<T> scale,
                                                             int64_t n) {
    typedef opdi_cu_acc<T> A;
    constexpr int W = 16 / sizeof(T);
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < opdi_cu_ceil(n, W); i += step) {
        if (i * W + W > n) {
            for (int64_t k = i * W; k < n; k++) { opdi_cu_store(out + k, opdi_cu_load<A>(x + k) * A(mask[k]) * scale); }
            continue;
        }
        opdi_cu_vector<T, W> v = opdi_cu_load_vector<W>(x + i * W);
        const opdi_cu_vector<bool, W> kept = opdi_cu_load_vector<W>(mask + i * W);
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k++) { v.at[k] = opdi_cu_cast<T>(opdi_cu_cast<A>(v.at[k]) * A(kept.at[k]) * scale); }
        opdi_cu_store_vector<W>(out + i * W, v);
    }
}
/* Draws the mask and computes out = x * mask * scale in one pass, for contiguous, aligned memory.  Draws the same mask
   as opdi_cu_draw_floats: an element is kept if its uniform number is below `keep`.  state, key and at: see
   opdi_cu_draw_floats. */
template <typename T> __global__ void __launch_bounds__(256)
opdi_cu_dropout_drawn_kernel(const T *x, bool *mask, T *out, float keep, float scale, int64_t n, uint64_t key,
                             uint64_t at, const uint64_t *state) {
    constexpr int W = 16 / sizeof(T);
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    if (state) { key = state[0]; at += state[1]; }
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i * W < n; i += step) {
        const bool whole = i * W + W <= n;
        opdi_cu_vector<T, W> v;
        opdi_cu_vector<bool, W> kept;
        if (whole) { v = opdi_cu_load_vector<W>(x + i * W); }
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k += 4) {
            uint32_t r[4];
            float u[4];
            opdi_cu_philox(key, at / 4 + (uint64_t)(i * (W / 4) + k / 4), r);
            opdi_cu_drawn(r, false, u);
            OPDI_CU_UNROLL
            for (int j = 0; j < 4; j++) { kept.at[k + j] = u[j] < keep; }
        }
        if (whole) {
            OPDI_CU_UNROLL
            for (int k = 0; k < W; k++) {
                v.at[k] = opdi_cu_cast<T>(opdi_cu_cast<float>(v.at[k]) * float(kept.at[k]) * scale);
            }
            opdi_cu_store_vector<W>(mask + i * W, kept);
            opdi_cu_store_vector<W>(out + i * W, v);
            continue;
        }
        OPDI_CU_UNROLL
        for (int k = 0; k < W; k++) {
            if (i * W + k < n) {
                mask[i * W + k] = kept.at[k];
                opdi_cu_store(out + i * W + k, opdi_cu_load<float>(x + i * W + k) * float(kept.at[k]) * scale);
            }
        }
    }
}
template <typename T> static int opdi_cu_dropout_drawn(const opd_tensor *x, opd_tensor *mask, opd_tensor *out, double p,
                                                      const opd_draw &d, const uint64_t *state) {
    const int64_t n = opd_numel(x);
    return opdi_cu_launch(opdi_cu_dropout_drawn_kernel<T>, opdi_cu_grid(opdi_cu_ceil(n, 16 / (int64_t)sizeof(T)), 256),
                          dim3(256), 0, opdi_cu_data<T>(x), opdi_cu_data<bool>(mask), opdi_cu_data<T>(out),
                          (float)(1 - p), (float)(1 / (1 - p)), n, d.key, d.at, state);
}
/* Runs native_dropout.  This kernel serves only the usual case.  Other cases, such as float64, which has other random
   numbers, run as on other devices. */
static int opdi_cu_native_dropout(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0);
    const double p = opd_arg_double(call, 1);
    const opd_scalar_type t = opd_dtype(x);
    const uint64_t *state = NULL;
    opd_draw draw;
    if (!(p > 0 && p < 1) || !(opd_arg_is_none(call, 2) || opd_arg_bool(call, 2)) || opd_numel(x) == 0 ||
        (t != OPD_FLOAT32 && t != OPD_FLOAT16 && t != OPD_BFLOAT16) || !opd_is_contiguous(x) ||
        !opdi_cu_aligned(opdi_cu_data<void>(x))) { return opd_op_card(opd_call_operator(call))->any(call); }
    opd_tensor *out = opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), t);
    opd_tensor *mask = opdi_cu_new(opd_ints_of(opd_sizes(x), opd_ndim(x)), OPD_BOOL);
    if (!out || !mask) { return -1; }
    memset(&draw, 0, sizeof draw);
    draw.words = opd_numel(x);
    draw.at = opd_generator_take(draw.generator, draw.words, &draw.key);
    if (opdi_cu_sequence_of(opdi_cu_current(), &draw, &state)) { return -1; }
    if (t == OPD_FLOAT32 ? opdi_cu_dropout_drawn<float>(x, mask, out, p, draw, state)
        : t == OPD_FLOAT16 ? opdi_cu_dropout_drawn<opdi_cu_f16>(x, mask, out, p, draw, state)
                           : opdi_cu_dropout_drawn<opdi_cu_bf16>(x, mask, out, p, draw, state)) { return -1; }
    return opd_return_tensor(call, out) || opd_return_tensor(call, mask) ? -1 : 0;
}
/* Runs native_dropout_backward: argument 0 times the mask times the scale. */
static int opdi_cu_native_dropout_backward(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *mask = opd_arg_tensor(call, 1), *out;
    const double scale = opd_arg_double(call, 2);
    bool plain = opd_dtype_is_floating(opd_dtype(x)) && opd_dtype(mask) == OPD_BOOL && opd_ndim(x) == opd_ndim(mask) &&
        opd_is_contiguous(x) && opd_is_contiguous(mask) && scale - scale == 0;
    for (int d = 0; plain && d < opd_ndim(x); d++) { plain = opd_size(x, d) == opd_size(mask, d); }
    if (!plain || !opdi_cu_aligned(opdi_cu_data<void>(x)) || !opdi_cu_aligned(opdi_cu_data<void>(mask))) {
        return opd_return_tensor(call, opd_mul_Scalar(opd_mul(x, mask), opd_value_double(scale)));
    }
    if (opd_results_from_fake(call)) { return -1; }
    out = opdi_cu_result(call, 0);
    OPDI_CU_FLOATS(opd_dtype(x), T, return opdi_cu_launch(opdi_cu_dropout_kernel<T>,
        opdi_cu_grid(opdi_cu_ceil(opd_numel(x), 16 / (int64_t)sizeof(T)), 256), dim3(256), 0, opdi_cu_data<T>(x),
        opdi_cu_data<bool>(mask), opdi_cu_data<T>(out), (opdi_cu_acc<T>)scale, opd_numel(x)))
    return -1;
}
static const opdi_cu_registration opdi_cu_table_random[] = {
    {"native_dropout", opdi_cu_native_dropout}, {"native_dropout_backward", opdi_cu_native_dropout_backward},
    {NULL, NULL}};
