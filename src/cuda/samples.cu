//----------------------------------------------------------------------------------------------------------------------
//  >>cu:samples     random numbers from distributions, such as Poisson, binomial and gamma
//
//  The functions are the processor's: the texts of src/kernels/ and src/ops/make/.  Their numbers are the same, bit for
//  bit, because each operation is rounded separately, and because they call no function of CUDA that the processor has
//  in another form.  A thread draws one number after the other, each from its own stream of random words.
//----------------------------------------------------------------------------------------------------------------------

/* A double.  Products are not fused with sums. */
struct opdi_cu_exact {
    double v;
    opdi_cu_exact() = default;
    __device__ __forceinline__ opdi_cu_exact(double v_) : v(v_) {}
    typedef const opdi_cu_exact &in;
    __device__ __forceinline__ friend opdi_cu_exact operator-(in a) { return -a.v; }
#if defined(OPD_CUDA_EMULATED)
    friend opdi_cu_exact operator+(in a, in b) { return a.v + b.v; }
    friend opdi_cu_exact operator-(in a, in b) { return a.v - b.v; }
    friend opdi_cu_exact operator*(in a, in b) { return a.v * b.v; }
    friend opdi_cu_exact operator/(in a, in b) { return a.v / b.v; }
    friend opdi_cu_exact sqrt(in a) { return ::sqrt(a.v); }
#else
    __device__ __forceinline__ friend opdi_cu_exact operator+(in a, in b) { return __dadd_rn(a.v, b.v); }
    __device__ __forceinline__ friend opdi_cu_exact operator-(in a, in b) { return __dsub_rn(a.v, b.v); }
    __device__ __forceinline__ friend opdi_cu_exact operator*(in a, in b) { return __dmul_rn(a.v, b.v); }
    __device__ __forceinline__ friend opdi_cu_exact operator/(in a, in b) { return __ddiv_rn(a.v, b.v); }
    __device__ __forceinline__ friend opdi_cu_exact sqrt(in a) { return __dsqrt_rn(a.v); }
#endif
    __device__ __forceinline__ opdi_cu_exact &operator+=(in b) { return *this = *this + b; }
    __device__ __forceinline__ opdi_cu_exact &operator-=(in b) { return *this = *this - b; }
    __device__ __forceinline__ opdi_cu_exact &operator*=(in b) { return *this = *this * b; }
    __device__ __forceinline__ opdi_cu_exact &operator/=(in b) { return *this = *this / b; }
    __device__ __forceinline__ void operator++(int) { *this += 1; }
    __device__ __forceinline__ friend bool operator<(in a, in b) { return a.v < b.v; }
    __device__ __forceinline__ friend bool operator>(in a, in b) { return a.v > b.v; }
    __device__ __forceinline__ friend bool operator<=(in a, in b) { return a.v <= b.v; }
    __device__ __forceinline__ friend bool operator>=(in a, in b) { return a.v >= b.v; }
    __device__ __forceinline__ friend bool operator==(in a, in b) { return a.v == b.v; }
    __device__ __forceinline__ friend bool isnan(in a) { return a.v != a.v; }
    __device__ __forceinline__ friend bool isinf(in a) { return ::fabs(a.v) == (double)INFINITY; }
    __device__ __forceinline__ friend opdi_cu_exact fabs(in a) { return ::fabs(a.v); }
    __device__ __forceinline__ friend opdi_cu_exact floor(in a) { return ::floor(a.v); }
    __device__ __forceinline__ friend opdi_cu_exact ceil(in a) { return ::ceil(a.v); }
    __device__ __forceinline__ friend opdi_cu_exact fmin(in a, in b) { return ::fmin(a.v, b.v); }
    __device__ __forceinline__ friend opdi_cu_exact fmax(in a, in b) { return ::fmax(a.v, b.v); }
};
static __device__ __forceinline__ opdi_cu_exact opdi_cu_fused(opdi_cu_exact a, opdi_cu_exact b, opdi_cu_exact c) {
    return fma(a.v, b.v, c.v);
}
static __device__ __forceinline__ uint64_t opdi_bits64(opdi_cu_exact x) {
    uint64_t bits;
    memcpy(&bits, &x.v, sizeof bits);
    return bits;
}
static __device__ __forceinline__ opdi_cu_exact opdi_double(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static __device__ __forceinline__ void opdi_philox(uint64_t key, uint64_t high, uint64_t low, uint32_t *out /*[4]*/) {
    opdi_cu_philox(key, low, out, high);
}
#define OPDI_FMA(a, b, c) opdi_cu_fused(a, b, c)
#define double opdi_cu_exact                      /* in the processor's texts */
#include "../kernels/double_functions.typed.h"
#include "../ops/make/samples.typed.h"
#undef double

/* The task of drawing n numbers.  first, second: the parameters of each number, of dtype `type`, or NULL: then a and b
   are the parameters of all numbers.  wide: out is float64, not float32.  The guard notes a Poisson rate below 0. */
struct opdi_cu_sampling {
    void *out;
    const void *first, *second;
    double a, b;
    uint64_t key, at;
    int64_t n;
    int32_t type;
    bool wide;
    opdi_cu_guard guard;
};
template <int KIND> static __device__ __forceinline__ opdi_cu_exact opdi_cu_sample(opdi_stream *s, opdi_cu_exact first,
                                                                                   opdi_cu_exact second) {
    return KIND == OPDI_SAMPLE_POISSON ? opdi_sample_poisson(s, first, second)
        : KIND == OPDI_SAMPLE_GEOMETRIC ? opdi_sample_geometric(s, first, second)
        : KIND == OPDI_SAMPLE_BINOMIAL ? opdi_sample_binomial(s, first, second)
        : KIND == OPDI_SAMPLE_CAUCHY ? opdi_sample_cauchy(s, first, second)
        : KIND == OPDI_SAMPLE_LOG_NORMAL ? opdi_sample_log_normal(s, first, second)
        : KIND == OPDI_SAMPLE_GAMMA ? opdi_sample_gamma(s, first, second) : opdi_sample_log_gamma(s, first, second);
}
/* state: in a capture, the generator's key and the position from which s.at is counted, or NULL. */
template <int KIND> __global__ void __launch_bounds__(256) opdi_cu_sample_kernel(const opdi_cu_sampling s,
                                                                                 const uint64_t *state) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    const uint64_t at = s.at + (state ? state[1] : 0);
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < s.n; i += step) {
        opdi_stream stream;
        stream.key = state ? state[0] : s.key;
        stream.place = at / 4 + (uint64_t)i;
        stream.turn = stream.kept = 0;
        stream.full = false;
        const double first = s.first ? opdi_cu_load_as<double>(s.first, i, s.type) : s.a;
        const double second = s.second ? opdi_cu_load_as<double>(s.second, i, s.type) : s.b;
        if (KIND == OPDI_SAMPLE_POISSON && !(first >= 0)) { s.guard.note(i, s.n); }
        const double x = opdi_cu_sample<KIND>(&stream, first, second).v;
        if (s.wide) { ((double *)s.out)[i] = x; } else { ((float *)s.out)[i] = (float)x; }
    }
}
template <int KIND> static int opdi_cu_sample_on(int kind, const opdi_cu_sampling &s, const uint64_t *state) {
    if constexpr (KIND < OPDI_SAMPLES) {
        return kind != KIND ? opdi_cu_sample_on<KIND + 1>(kind, s, state)
            : opdi_cu_launch(opdi_cu_sample_kernel<KIND>, opdi_cu_grid(s.n, 256), dim3(256), 0, s, state);
    }
    return opd_fail(OPD_ERROR_KERNEL, "opd_cuda::sample: no distribution has number %d", kind);
}
/* Runs sample(Tensor like, int kind, Tensor? first, Tensor? second, float a, float b, bool wide, Generator? generator)
   -> Tensor: numbers with like's sizes from the distribution `kind`, an opdi_sample_kind, of dtype float64 or, if
   `wide` is false, float32.  The parameters have one dtype, and are broadcast. */
static int opdi_cu_sample_run(opd_call *call) {
    opd_tensor *const like = opd_arg_tensor(call, 0), *of[2] = {opd_arg_tensor(call, 2), opd_arg_tensor(call, 3)}, *out;
    const opd_ints sizes = opd_ints_of(opd_sizes(like), opd_ndim(like));
    const opd_value generator = opd_arg_value(call, 7);
    const uint64_t *state = NULL;
    opdi_cu_sampling s = opdi_cu_sampling();
    opd_draw draw;
    for (int i = 0; i < 2; i++) {
        if (!of[i]) { continue; }
        s.type = (int32_t)opd_dtype(of[i]);
        if (!(of[i] = opd_contiguous(opd_expand(of[i], sizes)))) { return -1; }
    }
    s.wide = opd_arg_bool(call, 6);
    if (!(out = opdi_cu_new(sizes, s.wide ? OPD_FLOAT64 : OPD_FLOAT32))) { return -1; }
    memset(&draw, 0, sizeof draw);
    draw.generator = generator.tag == OPD_TAG_OBJECT ? (opd_generator *)generator.u.object : NULL;
    draw.words = 4 * opd_numel(like);
    draw.at = opd_generator_take(draw.generator, draw.words, &draw.key);
    if (opdi_cu_sequence_of(opdi_cu_current(), &draw, &state)) { return -1; }
    s.out = opdi_cu_data<void>(out);
    s.first = of[0] ? opdi_cu_data<void>(of[0]) : NULL;
    s.second = of[1] ? opdi_cu_data<void>(of[1]) : NULL;
    s.a = opd_arg_double(call, 4); s.b = opd_arg_double(call, 5);
    s.key = draw.key; s.at = draw.at; s.n = opd_numel(like);
    s.guard = opdi_cu_guard_of(call, "invalid Poisson rate, expected rate to be non-negative");
    s.guard.op = opd_find("aten::poisson");       /* the only operator whose kernel notes faults */
    if (!s.guard.op || (s.n > 0 && opdi_cu_sample_on<0>((int)opd_arg_int(call, 1), s, state))) { return -1; }
    return opd_return_tensor(call, out);
}
