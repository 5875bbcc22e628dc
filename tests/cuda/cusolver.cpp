/* The functions of cuSOLVER that opdispatch_cuda.cu uses, by their definition in plain loops: a library that the CUDA
   plug-in loads (OPD_CUSOLVER), for the emulation in cuda_runtime.h.  It computes at once, so streams must not run late.

     g++ -std=c++17 -O1 -shared -fPIC tests/cuda/cusolver.cpp -o cusolver.so

   Matrices are stored column by column.  A call with a wrong handle, size, leading dimension or work space returns 3.
   Environment: OPD_EMU_CUSOLVER_FAILS=7 makes all functions that compute fail with this number; OPD_EMU_CUSOLVER_INFO=3:
   eigenvalues and singular values do not converge, with this info.
   opd_emu_cusolver_count returns how many matrices were computed. */
#include <algorithm>
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

/* Householder reflections as LAPACK's: I - tau v v^T with v[0] = 1, the rest of v below the diagonal. */
template <class T> static void reflect(int64_t m, int64_t k, const T *v, double tau, T *x) {       /* x[m], from row k on */
    double sum = x[k];
    for (int64_t i = k + 1; i < m; i++) { sum += (double)v[i] * x[i]; }
    x[k] = (T)(x[k] - tau * sum);
    for (int64_t i = k + 1; i < m; i++) { x[i] = (T)(x[i] - tau * sum * v[i]); }
}
template <class T> static void geqrf(int64_t m, int64_t n, T *a, int64_t lda, T *tau) {
    for (int64_t k = 0; k < (m < n ? m : n); k++) {
        T *v = a + k * lda;
        double norm = 0;
        for (int64_t i = k + 1; i < m; i++) { norm += (double)v[i] * v[i]; }
        tau[k] = 0;
        if (norm == 0) { continue; }
        const double beta = -std::copysign(std::sqrt(norm + (double)v[k] * v[k]), (double)v[k]), scale = 1 / (v[k] - beta);
        tau[k] = (T)((beta - v[k]) / beta);
        for (int64_t i = k + 1; i < m; i++) { v[i] = (T)(v[i] * scale); }
        for (int64_t j = k + 1; j < n; j++) { reflect(m, k, v, tau[k], a + j * lda); }
        v[k] = (T)beta;
    }
}
API int cusolverDnXgeqrf_bufferSize(void *h, void *p, int64_t m, int64_t n, int type, const void *a, int64_t lda, int tau_type, const void *tau, int compute,
                                    size_t *device, size_t *host) {
    return sizes(h, p, m > 0 && n > 0 && types(type, compute) && type == tau_type && a && tau && lda >= m, m, n, type, device, host);
}
API int cusolverDnXgeqrf(void *h, void *p, int64_t m, int64_t n, int type, void *a, int64_t lda, int tau_type, void *tau, int compute, void *device,
                         size_t bytes, void *host, size_t host_bytes, int *info) {
    const int rc = begins(h, p, m > 0 && n > 0 && types(type, compute) && type == tau_type && a && tau && lda >= m && info &&
                          room(m, n, type, device, bytes, host, host_bytes));
    if (rc) { return rc; }
    if (type == DOUBLE) { geqrf(m, n, (double *)a, lda, (double *)tau); } else { geqrf(m, n, (float *)a, lda, (float *)tau); }
    *info = 0;
    computed++;
    return SUCCESS;
}
/* Columns from k on of a need not be set. */
template <class T> static int orgqr(void *h, int m, int n, int k, T *a, int lda, const T *tau, T *work, int size, int *info) {
    const int rc = begins(h, &parameters, m >= n && n >= k && k > 0 && a && lda >= m && tau && work && size == n * 32 + 1 && info);
    if (rc) { return rc; }
    memset(work, 0x7f, (size_t)size * sizeof *work);
    const std::vector<T> v(a, a + (size_t)k * (size_t)lda);
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < m; i++) { a[i + (int64_t)j * lda] = i == j; }
        for (int r = k - 1; r >= 0; r--) { reflect<T>(m, r, v.data() + (size_t)r * (size_t)lda, tau[r], a + (int64_t)j * lda); }
    }
    *info = 0;
    computed++;
    return SUCCESS;
}
static int orgqr_size(void *h, int m, int n, int k, const void *a, int lda, const void *tau, int *size) {
    *size = n * 32 + 1;
    return begins(h, &parameters, m >= n && n >= k && k > 0 && a && lda >= m && tau);
}
API int cusolverDnSorgqr_bufferSize(void *h, int m, int n, int k, const float *a, int lda, const float *tau, int *size) { return orgqr_size(h, m, n, k, a, lda, tau, size); }
API int cusolverDnDorgqr_bufferSize(void *h, int m, int n, int k, const double *a, int lda, const double *tau, int *size) { return orgqr_size(h, m, n, k, a, lda, tau, size); }
API int cusolverDnSorgqr(void *h, int m, int n, int k, float *a, int lda, const float *tau, float *work, int size, int *info) { return orgqr(h, m, n, k, a, lda, tau, work, size, info); }
API int cusolverDnDorgqr(void *h, int m, int n, int k, double *a, int lda, const double *tau, double *work, int size, int *info) { return orgqr(h, m, n, k, a, lda, tau, work, size, info); }

/* Rotations of pairs of columns of `a` (m, n) make them orthogonal; the same rotations are applied to the columns of v. */
static void orthogonal_columns(int64_t m, int64_t n, std::vector<double> &a, std::vector<double> &v) {
    bool more = true;
    for (int sweep = 0; more && sweep < 60; sweep++) {
        more = false;
        for (int64_t p = 0; p < n; p++) {
            for (int64_t q = p + 1; q < n; q++) {
                double x = 0, y = 0, z = 0;
                for (int64_t i = 0; i < m; i++) { const double c = a[(size_t)(i + p * m)], d = a[(size_t)(i + q * m)]; x += c * c; y += d * d; z += c * d; }
                if (std::fabs(z) <= 1e-15 * std::sqrt(x * y) || z == 0) { continue; }
                more = true;
                const double t0 = (y - x) / (2 * z), t = std::copysign(1.0, t0) / (std::fabs(t0) + std::sqrt(1 + t0 * t0)), c = 1 / std::sqrt(1 + t * t), s = c * t;
                auto turn = [&](std::vector<double> &w, int64_t rows) {
                    for (int64_t i = 0; i < rows; i++) {
                        double &e = w[(size_t)(i + p * rows)], &f = w[(size_t)(i + q * rows)];
                        const double kept = e;
                        e = c * kept - s * f;
                        f = s * kept + c * f;
                    }
                };
                turn(a, m);
                turn(v, n);
            }
        }
    }
}
static double length_of(const std::vector<double> &a, int64_t m, int64_t j) {
    double sum = 0;
    for (int64_t i = 0; i < m; i++) { sum += a[(size_t)(i + j * m)] * a[(size_t)(i + j * m)]; }
    return std::sqrt(sum);
}
static std::vector<double> identity(int64_t n) {
    std::vector<double> v((size_t)(n * n));
    for (int64_t i = 0; i < n; i++) { v[(size_t)(i + i * n)] = 1; }
    return v;
}
/* The eigenvectors of a symmetric matrix plus a multiple of the identity, which makes it positive definite, are its right
   singular vectors. */
template <class T> static void syevd(bool vectors, bool upper, int64_t n, T *a, int64_t lda, T *w) {
    std::vector<double> x((size_t)(n * n)), v = identity(n);
    std::vector<int64_t> order((size_t)n);
    double shift = 1;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            x[(size_t)(i + j * n)] = x[(size_t)(j + i * n)] = upper ? a[j + i * lda] : a[i + j * lda];
            shift += 2 * std::fabs(x[(size_t)(i + j * n)]);
        }
    }
    for (int64_t i = 0; i < n; i++) { x[(size_t)(i + i * n)] += shift; order[(size_t)i] = i; }
    orthogonal_columns(n, n, x, v);
    std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return length_of(x, n, i) < length_of(x, n, j); });
    for (int64_t j = 0; j < n; j++) {
        w[j] = (T)(length_of(x, n, order[(size_t)j]) - shift);
        for (int64_t i = 0; i < n; i++) { a[i + j * lda] = vectors ? (T)v[(size_t)(i + order[(size_t)j] * n)] : (T)NAN; }
    }
}
API int cusolverDnXsyevd_bufferSize(void *h, void *p, int vectors, int uplo, int64_t n, int type, const void *a, int64_t lda, int w_type, const void *w,
                                    int compute, size_t *device, size_t *host) {
    return sizes(h, p, (vectors == 0 || vectors == 1) && (uplo == 0 || uplo == 1) && n > 0 && types(type, compute) && type == w_type && a && w && lda >= n, n, n, type, device, host);
}
API int cusolverDnXsyevd(void *h, void *p, int vectors, int uplo, int64_t n, int type, void *a, int64_t lda, int w_type, void *w, int compute, void *device,
                         size_t bytes, void *host, size_t host_bytes, int *info) {
    const int rc = begins(h, p, (vectors == 0 || vectors == 1) && (uplo == 0 || uplo == 1) && n > 0 && types(type, compute) && type == w_type && a && w && lda >= n &&
                          info && room(n, n, type, device, bytes, host, host_bytes));
    if (rc) { return rc; }
    if (type == DOUBLE) { syevd(vectors == 1, uplo == 1, n, (double *)a, lda, (double *)w); } else { syevd(vectors == 1, uplo == 1, n, (float *)a, lda, (float *)w); }
    const char *stays = getenv("OPD_EMU_CUSOLVER_INFO");
    *info = stays && *stays ? atoi(stays) : 0;
    computed++;
    return SUCCESS;
}
/* A = U S V^T.  Columns of U for singular values of 0, and those beyond column n, are made orthogonal to all others. */
template <class T> static void gesvd(char job, int64_t m, int64_t n, T *a, int64_t lda, T *s, T *u, int64_t ldu, T *vt, int64_t ldv) {
    const int64_t wide = job == 'A' ? m : n;
    std::vector<double> x((size_t)(m * wide)), v = identity(n);
    std::vector<int64_t> order((size_t)n);
    for (int64_t j = 0; j < n; j++) {
        order[(size_t)j] = j;
        for (int64_t i = 0; i < m; i++) { x[(size_t)(i + j * m)] = a[i + j * lda]; a[i + j * lda] = (T)NAN; }
    }
    orthogonal_columns(m, n, x, v);
    std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return length_of(x, m, i) > length_of(x, m, j); });
    std::vector<double> q((size_t)(m * wide));
    for (int64_t j = 0; j < wide; j++) {
        double length = j < n ? length_of(x, m, order[(size_t)j]) : 0;
        if (j < n) { s[j] = (T)length; }
        if (job == 'N') { continue; }
        for (int64_t i = 0; j < n && i < n; i++) { vt[j + i * ldv] = (T)v[(size_t)(i + order[(size_t)j] * n)]; }
        for (int64_t i = 0; i < m; i++) { q[(size_t)(i + j * m)] = length > 1e-30 ? x[(size_t)(i + order[(size_t)j] * m)] / length : 0; }
        for (int64_t unit = 0; length <= 1e-30 && unit < m; unit++) {
            for (int64_t i = 0; i < m; i++) { q[(size_t)(i + j * m)] = i == unit; }
            for (int64_t k = 0; k < j; k++) {
                double dot = 0;
                for (int64_t i = 0; i < m; i++) { dot += q[(size_t)(i + j * m)] * q[(size_t)(i + k * m)]; }
                for (int64_t i = 0; i < m; i++) { q[(size_t)(i + j * m)] -= dot * q[(size_t)(i + k * m)]; }
            }
            const double left = length_of(q, m, j);
            if (left > 0.1) { length = 1; for (int64_t i = 0; i < m; i++) { q[(size_t)(i + j * m)] /= left; } }
        }
        for (int64_t i = 0; i < m; i++) { u[i + j * ldu] = (T)q[(size_t)(i + j * m)]; }
    }
}
static bool svd_fits(int job, int other, int64_t m, int64_t n, int type, const void *a, int64_t lda, int s_type, const void *s, int u_type, const void *u, int64_t ldu,
                     int v_type, const void *v, int64_t ldv, int compute) {
    return job == other && (job == 'A' || job == 'S' || job == 'N') && m >= n && n > 0 && types(type, compute) && type == s_type && type == u_type && type == v_type &&
        a && s && lda >= m && ldu >= m && ldv >= n && (job == 'N' || (u && v));
}
API int cusolverDnXgesvd_bufferSize(void *h, void *p, signed char job, signed char other, int64_t m, int64_t n, int type, const void *a, int64_t lda, int s_type,
                                    const void *s, int u_type, const void *u, int64_t ldu, int v_type, const void *v, int64_t ldv, int compute, size_t *device, size_t *host) {
    return sizes(h, p, svd_fits(job, other, m, n, type, a, lda, s_type, s, u_type, u, ldu, v_type, v, ldv, compute), m, n, type, device, host);
}
API int cusolverDnXgesvd(void *h, void *p, signed char job, signed char other, int64_t m, int64_t n, int type, void *a, int64_t lda, int s_type, void *s, int u_type, void *u,
                         int64_t ldu, int v_type, void *v, int64_t ldv, int compute, void *device, size_t bytes, void *host, size_t host_bytes, int *info) {
    const int rc = begins(h, p, svd_fits(job, other, m, n, type, a, lda, s_type, s, u_type, u, ldu, v_type, v, ldv, compute) && info && room(m, n, type, device, bytes, host, host_bytes));
    if (rc) { return rc; }
    if (type == DOUBLE) { gesvd((char)job, m, n, (double *)a, lda, (double *)s, (double *)u, ldu, (double *)v, ldv); }
    else { gesvd((char)job, m, n, (float *)a, lda, (float *)s, (float *)u, ldu, (float *)v, ldv); }
    const char *stays = getenv("OPD_EMU_CUSOLVER_INFO");
    *info = stays && *stays ? atoi(stays) : 0;
    computed++;
    return SUCCESS;
}
API long opd_emu_cusolver_count(void) { return computed; }
