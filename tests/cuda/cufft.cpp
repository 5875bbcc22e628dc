/* The functions of cuFFT that opdispatch_cuda.cu uses, as sums by their definition: a library that the CUDA plug-in
   loads (OPD_CUFFT), for the emulation in cuda_runtime.h.  It computes at once, so streams must not run late.

     g++ -std=c++17 -O1 -shared -fPIC tests/cuda/cufft.cpp -o cufft.so

   Environment: OPD_EMU_CUFFT_FAILS=2 makes plans fail with this number.  opd_emu_cufft_count returns how many plans
   were made ("plans"), are there ("there"), and how many transforms ran ("runs"). */
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))
enum { SUCCESS = 0, INVALID_PLAN = 1, INVALID_VALUE = 4 };
enum { R2C = 0x2a, C2R = 0x2c, C2C = 0x29, D2Z = 0x6a, Z2D = 0x6c, Z2Z = 0x69 };
struct Plan { bool there, made; int rank, type; long long n[3], batch; void *work; };
static std::vector<Plan> plans(1);
static long made, there, runs;

static Plan *plan_of(int i) { return i > 0 && i < (int)plans.size() && plans[(size_t)i].there ? &plans[(size_t)i] : NULL; }
API int cufftCreate(int *plan) {
    plans.push_back(Plan());
    plans.back().there = true;
    *plan = (int)plans.size() - 1;
    made++; there++;
    return SUCCESS;
}
API int cufftDestroy(int plan) {
    Plan *p = plan_of(plan);
    if (!p) { return INVALID_PLAN; }
    p->there = false;
    there--;
    return SUCCESS;
}
API int cufftSetStream(int plan, void *) { return plan_of(plan) ? SUCCESS : INVALID_PLAN; }
API int cufftSetAutoAllocation(int plan, int on) { return plan_of(plan) && !on ? SUCCESS : INVALID_PLAN; }
API int cufftSetWorkArea(int plan, void *work) {
    if (!plan_of(plan)) { return INVALID_PLAN; }
    plan_of(plan)->work = work;
    return SUCCESS;
}
API int cufftMakePlanMany64(int plan, int rank, long long *n, long long *in, long long, long long, long long *out, long long, long long,
                            int type, long long batch, size_t *bytes) {
    Plan *p = plan_of(plan);
    const char *fails = getenv("OPD_EMU_CUFFT_FAILS");
    if (fails && *fails) { return atoi(fails); }
    if (!p || p->made || rank < 1 || rank > 3 || in || out || batch < 1) { return INVALID_VALUE; }
    p->made = true; p->rank = rank; p->type = type; p->batch = batch;
    for (int i = 0; i < rank; i++) { if ((p->n[i] = n[i]) < 1) { return INVALID_VALUE; } }
    *bytes = 64;
    return SUCCESS;
}
/* Transforms the dim of size n of x [outer, n, inner]. */
static void along(std::vector<std::complex<double>> &x, long long outer, long long n, long long inner, int sign) {
    std::vector<std::complex<double>> line((size_t)n);
    for (long long o = 0; o < outer * inner; o++) {
        std::complex<double> *at = x.data() + o / inner * n * inner + o % inner;
        for (long long k = 0; k < n; k++) {
            line[(size_t)k] = 0;
            for (long long j = 0; j < n; j++) { line[(size_t)k] += at[j * inner] * std::polar(1.0, sign * 2 * M_PI * (double)(j * k % n) / (double)n); }
        }
        for (long long k = 0; k < n; k++) { at[k * inner] = line[(size_t)k]; }
    }
}
template <class T> static int run(int plan, int type, const T *in, T *out, int sign) {
    Plan *p = plan_of(plan);
    if (!p || !p->made || !p->work || p->type != type) { return INVALID_PLAN; }
    const bool from_real = type == R2C || type == D2Z, to_real = type == C2R || type == Z2D;
    const long long last = p->n[p->rank - 1], half = last / 2 + 1;
    long long lines = p->batch;
    for (int i = 0; i + 1 < p->rank; i++) { lines *= p->n[i]; }
    if (to_real && p->rank > 1) { return INVALID_VALUE; }         /* this needs a Hermitian input */
    std::vector<std::complex<double>> x((size_t)(lines * last));
    for (long long i = 0; i < lines * last; i++) {
        const long long line = i / last, c = i % last, h = c < half ? c : last - c;
        if (from_real) { x[(size_t)i] = in[i]; }
        else if (!to_real) { x[(size_t)i] = std::complex<double>(in[2 * i], in[2 * i + 1]); }
        else {                                    /* imaginary parts that must be 0 are not read */
            const double im = h == 0 || 2 * h == last ? 0 : in[2 * (line * half + h) + 1];
            x[(size_t)i] = std::complex<double>(in[2 * (line * half + h)], c < half ? im : -im);
        }
    }
    if (to_real) { for (long long i = 0; i < lines * half * 2; i++) { ((T *)in)[i] = (T)NAN; } }     /* cuFFT may overwrite it */
    for (int d = 0, inner = 1; d < p->rank; d++) {
        const long long n = p->n[p->rank - 1 - d];
        along(x, (long long)x.size() / n / inner, n, inner, sign);
        inner = (int)(inner * n);
    }
    for (long long i = 0, at = 0; i < lines * last; i++) {
        if (to_real) { out[i] = (T)x[(size_t)i].real(); continue; }
        if (from_real && i % last >= half) { continue; }
        out[at++] = (T)x[(size_t)i].real();
        out[at++] = (T)x[(size_t)i].imag();
    }
    runs++;
    return SUCCESS;
}
API int cufftExecC2C(int plan, void *in, void *out, int sign) { return run(plan, C2C, (const float *)in, (float *)out, sign); }
API int cufftExecZ2Z(int plan, void *in, void *out, int sign) { return run(plan, Z2Z, (const double *)in, (double *)out, sign); }
API int cufftExecR2C(int plan, void *in, void *out) { return run(plan, R2C, (const float *)in, (float *)out, -1); }
API int cufftExecD2Z(int plan, void *in, void *out) { return run(plan, D2Z, (const double *)in, (double *)out, -1); }
API int cufftExecC2R(int plan, void *in, void *out) { return run(plan, C2R, (const float *)in, (float *)out, 1); }
API int cufftExecZ2D(int plan, void *in, void *out) { return run(plan, Z2D, (const double *)in, (double *)out, 1); }
API long opd_emu_cufft_count(const char *what) { return !strcmp(what, "plans") ? made : !strcmp(what, "there") ? there : runs; }
