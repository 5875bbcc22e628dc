/* The functions of cuSOLVER that opdispatch_cuda.cu uses, by their definition in plain loops: a library that the CUDA
   plug-in loads (OPD_CUSOLVER), for the emulation in cuda_runtime.h.  It computes at once, so streams must not run late.

     g++ -std=c++17 -O1 -shared -fPIC tests/cuda/cusolver.cpp -o cusolver.so

   Matrices are stored column by column.  A call with a wrong handle, size, leading dimension or work space returns 3.
   Environment: OPD_EMU_CUSOLVER_FAILS=7 makes all functions that compute fail with this number.
   opd_emu_cusolver_count returns how many matrices were computed. */
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))
enum { SUCCESS = 0, INVALID_VALUE = 3, FLOAT = 0, DOUBLE = 1 };
struct Handle { char name[8]; bool streams; };
static Handle handles[64], parameters;
static int nhandles;
static long computed;

API int cusolverDnCreate(void **handle) {
    if (nhandles == 64) { return 2; }
    Handle *h = &handles[nhandles++];
    memcpy(h->name, "handle", 7);
    *handle = h;
    return SUCCESS;
}
API int cusolverDnCreateParams(void **params) {
    memcpy(parameters.name, "params", 7);
    *params = &parameters;
    return SUCCESS;
}
static bool valid(void *handle) {
    Handle *h = (Handle *)handle;
    return h >= handles && h < handles + nhandles && !strcmp(h->name, "handle");
}
API int cusolverDnSetStream(void *handle, void *) {
    if (!valid(handle)) { return INVALID_VALUE; }
    ((Handle *)handle)->streams = true;
    return SUCCESS;
}
/* Whether a call may begin: 0, or what it returns. */
static int begins(void *handle, void *params, bool fits) {
    const char *fails = getenv("OPD_EMU_CUSOLVER_FAILS");
    if (fails && *fails) { return atoi(fails); }
    return valid(handle) && ((Handle *)handle)->streams && params == &parameters && fits ? SUCCESS : INVALID_VALUE;
}
/* The work space of a function, which depends on sizes; it is overwritten, so that a smaller one is seen. */
static size_t device_room(int64_t m, int64_t n, int type) { return (size_t)(m * n + 3 * m + 5) * (type == DOUBLE ? 8 : 4); }
static size_t host_room(int64_t m, int64_t n) { return (size_t)(m + n + 9); }
static bool room(int64_t m, int64_t n, int type, void *device, size_t bytes, void *host, size_t host_bytes) {
    if (!device || bytes != device_room(m, n, type) || !host || host_bytes != host_room(m, n)) { return false; }
    memset(device, 0x7f, bytes);
    memset(host, 0x7f, host_bytes);
    return true;
}
static int sizes(void *handle, void *params, bool fits, int64_t m, int64_t n, int type, size_t *device, size_t *host) {
    const int rc = begins(handle, params, fits);
    if (rc) { return rc; }
    *device = device_room(m, n, type);
    *host = host_room(m, n);
    return SUCCESS;
}
static bool types(int type, int other) { return type == other && (type == FLOAT || type == DOUBLE); }

template <class T> static void potrf(bool upper, int64_t n, T *a, int64_t lda, int *info) {
    auto at = [&](int64_t i, int64_t j) -> T & { return upper ? a[j + i * lda] : a[i + j * lda]; };       /* i >= j */
    *info = 0;
    for (int64_t j = 0; j < n; j++) {
        double sum = at(j, j);
        for (int64_t k = 0; k < j; k++) { sum -= (double)at(j, k) * at(j, k); }
        if (!(sum > 0)) { *info = (int)(j + 1); return; }
        at(j, j) = (T)std::sqrt(sum);
        for (int64_t i = j + 1; i < n; i++) {
            double x = at(i, j);
            for (int64_t k = 0; k < j; k++) { x -= (double)at(i, k) * at(j, k); }
            at(i, j) = (T)(x / at(j, j));
        }
    }
}
API int cusolverDnXpotrf_bufferSize(void *h, void *p, int uplo, int64_t n, int type, const void *a, int64_t lda, int compute, size_t *device, size_t *host) {
    return sizes(h, p, (uplo == 0 || uplo == 1) && n > 0 && types(type, compute) && a && lda >= n, n, n, type, device, host);
}
API int cusolverDnXpotrf(void *h, void *p, int uplo, int64_t n, int type, void *a, int64_t lda, int compute, void *device, size_t bytes, void *host,
                         size_t host_bytes, int *info) {
    const int rc = begins(h, p, (uplo == 0 || uplo == 1) && n > 0 && types(type, compute) && a && lda >= n && info && room(n, n, type, device, bytes, host, host_bytes));
    if (rc) { return rc; }
    if (type == DOUBLE) { potrf(uplo == 1, n, (double *)a, lda, info); } else { potrf(uplo == 1, n, (float *)a, lda, info); }
    computed++;
    return SUCCESS;
}

template <class T> static void getrf(int64_t m, int64_t n, T *a, int64_t lda, int64_t *pivots, int *info) {
    auto at = [&](int64_t i, int64_t j) -> T & { return a[i + j * lda]; };
    *info = 0;
    for (int64_t k = 0; k < (m < n ? m : n); k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < m; i++) { if (std::fabs(at(i, k)) > std::fabs(at(best, k))) { best = i; } }
        pivots[k] = best + 1;
        if (at(best, k) == 0) { if (!*info) { *info = (int)(k + 1); } continue; }
        for (int64_t j = 0; best != k && j < n; j++) { std::swap(at(k, j), at(best, j)); }
        for (int64_t i = k + 1; i < m; i++) {
            at(i, k) /= at(k, k);
            for (int64_t j = k + 1; j < n; j++) { at(i, j) -= at(i, k) * at(k, j); }
        }
    }
}
API int cusolverDnXgetrf_bufferSize(void *h, void *p, int64_t m, int64_t n, int type, const void *a, int64_t lda, int compute, size_t *device, size_t *host) {
    return sizes(h, p, m > 0 && n > 0 && types(type, compute) && a && lda >= m, m, n, type, device, host);
}
API int cusolverDnXgetrf(void *h, void *p, int64_t m, int64_t n, int type, void *a, int64_t lda, int64_t *pivots, int compute, void *device, size_t bytes,
                         void *host, size_t host_bytes, int *info) {
    const int rc = begins(h, p, m > 0 && n > 0 && types(type, compute) && a && lda >= m && pivots && info && room(m, n, type, device, bytes, host, host_bytes));
    if (rc) { return rc; }
    if (type == DOUBLE) { getrf(m, n, (double *)a, lda, pivots, info); } else { getrf(m, n, (float *)a, lda, pivots, info); }
    computed++;
    return SUCCESS;
}
template <class T> static void getrs(bool turned, int64_t n, const T *a, int64_t lda, const int64_t *pivots, T *x) {
    auto at = [&](int64_t i, int64_t j) { return (double)a[i + j * lda]; };
    for (int64_t k = 0; !turned && k < n; k++) { std::swap(x[k], x[pivots[k] - 1]); }
    for (int64_t i = 0; i < n; i++) {             /* L or U^T */
        double sum = x[i];
        for (int64_t k = 0; k < i; k++) { sum -= (turned ? at(k, i) : at(i, k)) * x[k]; }
        x[i] = (T)(turned ? sum / at(i, i) : sum);
    }
    for (int64_t i = n - 1; i >= 0; i--) {        /* U or L^T */
        double sum = x[i];
        for (int64_t k = i + 1; k < n; k++) { sum -= (turned ? at(k, i) : at(i, k)) * x[k]; }
        x[i] = (T)(turned ? sum : sum / at(i, i));
    }
    for (int64_t k = n - 1; turned && k >= 0; k--) { std::swap(x[k], x[pivots[k] - 1]); }
}
API int cusolverDnXgetrs(void *h, void *p, int turned, int64_t n, int64_t columns, int type, const void *a, int64_t lda, const int64_t *pivots, int b_type,
                         void *b, int64_t ldb, int *info) {
    const int rc = begins(h, p, (turned == 0 || turned == 1) && n > 0 && columns > 0 && types(type, b_type) && a && lda >= n && pivots && b && ldb >= n && info);
    if (rc) { return rc; }
    for (int64_t k = 0; k < n; k++) { if (pivots[k] < 1 || pivots[k] > n) { abort(); } }
    for (int64_t j = 0; j < columns; j++) {
        if (type == DOUBLE) { getrs(turned == 1, n, (const double *)a, lda, pivots, (double *)b + j * ldb); }
        else { getrs(turned == 1, n, (const float *)a, lda, pivots, (float *)b + j * ldb); }
    }
    *info = 0;
    computed++;
    return SUCCESS;
}
API long opd_emu_cusolver_count(void) { return computed; }
