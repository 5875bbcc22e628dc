/* The functions of cuSOLVER that opdispatch_cuda.cu uses, by their definition in plain loops: a library that the CUDA
   plug-in loads (OPD_CUSOLVER), for the emulation in cuda_runtime.h.  It computes at once, so streams must not run late.

     g++ -std=c++17 -O1 -shared -fPIC tests/cuda/cusolver.cpp -o cusolver.so

   Matrices are stored column by column.  A call with a wrong handle, size, leading dimension or work space returns 3.
   Environment: OPD_EMU_CUSOLVER_FAILS=7 makes all functions that compute fail with this number; OPD_EMU_CUSOLVER_INFO=3:
   eigenvalues and singular values do not converge, with this info; OPD_EMU_CUSOLVER_JACOBI=1: gesvdjBatched does not
   converge.  With -DOLD, there is no XsyevBatched and no Xgeev.
   opd_emu_cusolver_count returns how many matrices were computed, opd_emu_cusolver_calls by how many calls. */
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#define API extern "C" __attribute__((visibility("default")))
enum { SUCCESS = 0, INVALID_VALUE = 3, FLOAT = 0, DOUBLE = 1, COMPLEX = 4, DOUBLE_COMPLEX = 5 };      /* cudaDataType */
typedef std::complex<float> c64;
typedef std::complex<double> c128;
/* The type in which numbers are added, and the type of their sizes. */
template <class T> struct numbers { typedef double wide; typedef T real; };
template <class P> struct numbers<std::complex<P> > { typedef c128 wide; typedef P real; };
template <class T> using wide = typename numbers<T>::wide;
template <class T> using real = typename numbers<T>::real;
static double conjugate(double x) { return x; }
static c128 conjugate(c128 x) { return std::conj(x); }
static double real_of(double x) { return x; }
static double real_of(c128 x) { return x.real(); }
static double size_of(double x) { return std::fabs(x); }
static double size_of(c128 x) { return std::fabs(x.real()) + std::fabs(x.imag()); }      /* as LAPACK compares pivots */
static void assign(float &to, c128 x) { to = (float)x.real(); }
static void assign(double &to, c128 x) { to = x.real(); }
static void assign(c64 &to, c128 x) { to = c64(x); }
static void assign(c128 &to, c128 x) { to = x; }
/* Calls f with a pointer of the type. */
template <class F> static void with_type(int type, F f) {
    switch (type) {
        case FLOAT: f((float *)0); break;
        case DOUBLE: f((double *)0); break;
        case COMPLEX: f((c64 *)0); break;
        default: f((c128 *)0);
    }
}
static int real_type(int type) { return type == COMPLEX ? FLOAT : type == DOUBLE_COMPLEX ? DOUBLE : type; }
struct Handle { char name[8]; bool streams; };
static Handle handles[64], parameters;
static int nhandles;
static long computed, calls;

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
    calls++;
    const char *fails = getenv("OPD_EMU_CUSOLVER_FAILS");
    if (fails && *fails) { return atoi(fails); }
    return valid(handle) && ((Handle *)handle)->streams && params == &parameters && fits ? SUCCESS : INVALID_VALUE;
}
/* The work space of a function, which depends on sizes; it is overwritten, so that a smaller one is seen. */
static size_t device_room(int64_t m, int64_t n, int type) { return (size_t)(m * n + 3 * m + 5) * (type == FLOAT ? 4 : type == DOUBLE_COMPLEX ? 16 : 8); }
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
static bool types(int type, int other) { return type == other && (type == FLOAT || type == DOUBLE || type == COMPLEX || type == DOUBLE_COMPLEX); }

template <class T> static void potrf(bool upper, int64_t n, T *a, int64_t lda, int *info) {
    /* element (i, j) of L, i >= j */
    auto get = [&](int64_t i, int64_t j) { return upper ? conjugate(wide<T>(a[j + i * lda])) : wide<T>(a[i + j * lda]); };
    auto set = [&](int64_t i, int64_t j, wide<T> v) { if (upper) { a[j + i * lda] = T(conjugate(v)); } else { a[i + j * lda] = T(v); } };
    *info = 0;
    for (int64_t j = 0; j < n; j++) {
        double sum = real_of(get(j, j));
        for (int64_t k = 0; k < j; k++) { sum -= real_of(get(j, k) * conjugate(get(j, k))); }
        if (!(sum > 0)) { *info = (int)(j + 1); return; }
        set(j, j, std::sqrt(sum));
        for (int64_t i = j + 1; i < n; i++) {
            wide<T> x = get(i, j);
            for (int64_t k = 0; k < j; k++) { x -= get(i, k) * conjugate(get(j, k)); }
            set(i, j, x / real_of(get(j, j)));
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
    with_type(type, [&](auto *t) { potrf(uplo == 1, n, (decltype(t))a, lda, info); });
    computed++;
    return SUCCESS;
}

template <class T> static void getrf(int64_t m, int64_t n, T *a, int64_t lda, int64_t *pivots, int *info) {
    auto at = [&](int64_t i, int64_t j) -> T & { return a[i + j * lda]; };
    *info = 0;
    for (int64_t k = 0; k < (m < n ? m : n); k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < m; i++) { if (size_of(wide<T>(at(i, k))) > size_of(wide<T>(at(best, k)))) { best = i; } }
        pivots[k] = best + 1;
        if (at(best, k) == T(0)) { if (!*info) { *info = (int)(k + 1); } continue; }
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
    with_type(type, [&](auto *t) { getrf(m, n, (decltype(t))a, lda, pivots, info); });
    computed++;
    return SUCCESS;
}
/* turned: with A^T (1) or A^H (2) */
template <class T> static void getrs(int turned, int64_t n, const T *a, int64_t lda, const int64_t *pivots, T *x) {
    auto at = [&](int64_t i, int64_t j) {
        const wide<T> v = turned ? a[j + i * lda] : a[i + j * lda];
        return turned == 2 ? conjugate(v) : v;
    };
    for (int64_t k = 0; !turned && k < n; k++) { std::swap(x[k], x[pivots[k] - 1]); }
    for (int64_t i = 0; i < n; i++) {             /* L or U^T */
        wide<T> sum = x[i];
        for (int64_t k = 0; k < i; k++) { sum -= at(i, k) * wide<T>(x[k]); }
        x[i] = T(turned ? sum / at(i, i) : sum);
    }
    for (int64_t i = n - 1; i >= 0; i--) {        /* U or L^T */
        wide<T> sum = x[i];
        for (int64_t k = i + 1; k < n; k++) { sum -= at(i, k) * wide<T>(x[k]); }
        x[i] = T(turned ? sum : sum / at(i, i));
    }
    for (int64_t k = n - 1; turned && k >= 0; k--) { std::swap(x[k], x[pivots[k] - 1]); }
}
API int cusolverDnXgetrs(void *h, void *p, int turned, int64_t n, int64_t columns, int type, const void *a, int64_t lda, const int64_t *pivots, int b_type,
                         void *b, int64_t ldb, int *info) {
    const int rc = begins(h, p, turned >= 0 && turned <= 2 && n > 0 && columns > 0 && types(type, b_type) && a && lda >= n && pivots && b && ldb >= n && info);
    if (rc) { return rc; }
    for (int64_t k = 0; k < n; k++) { if (pivots[k] < 1 || pivots[k] > n) { abort(); } }
    for (int64_t j = 0; j < columns; j++) {
        with_type(type, [&](auto *t) { getrs(turned, n, (decltype(t))a, lda, pivots, (decltype(t))b + j * ldb); });
    }
    *info = 0;
    computed++;
    return SUCCESS;
}

/* Householder reflections as LAPACK's: I - tau v v^H with v[0] = 1, the rest of v below the diagonal. */
template <class T> static void reflect(int64_t m, int64_t k, const T *v, wide<T> tau, T *x, int64_t step = 1) {       /* x[m], from row k on */
    wide<T> sum = x[k * step];
    for (int64_t i = k + 1; i < m; i++) { sum += conjugate(wide<T>(v[i])) * wide<T>(x[i * step]); }
    x[k * step] = T(wide<T>(x[k * step]) - tau * sum);
    for (int64_t i = k + 1; i < m; i++) { x[i * step] = T(wide<T>(x[i * step]) - tau * sum * wide<T>(v[i])); }
}
template <class T> static void geqrf(int64_t m, int64_t n, T *a, int64_t lda, T *tau) {
    for (int64_t k = 0; k < (m < n ? m : n); k++) {
        T *v = a + k * lda;
        double norm = 0;
        for (int64_t i = k + 1; i < m; i++) { norm += std::norm(wide<T>(v[i])); }
        const wide<T> alpha = v[k];
        tau[k] = 0;
        if (norm == 0 && alpha == wide<T>(real_of(alpha))) { continue; }
        const double beta = -std::copysign(std::sqrt(norm + std::norm(alpha)), real_of(alpha));
        const wide<T> scale = 1.0 / (alpha - beta);
        tau[k] = T((beta - alpha) / beta);
        for (int64_t i = k + 1; i < m; i++) { v[i] = T(wide<T>(v[i]) * scale); }
        for (int64_t j = k + 1; j < n; j++) { reflect<T>(m, k, v, conjugate(wide<T>(tau[k])), a + j * lda); }
        v[k] = T(beta);
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
    with_type(type, [&](auto *t) { geqrf(m, n, (decltype(t))a, lda, (decltype(t))tau); });
    *info = 0;
    computed++;
    return SUCCESS;
}
/* Columns from k on of a need not be set. */
template <class T> static int orgqr(void *h, int m, int n, int k, T *a, int lda, const T *tau, T *work, int size, int *info) {
    const int rc = begins(h, &parameters, m >= n && n >= k && k > 0 && a && lda >= m && tau && work && size == n * 32 + 1 && info);
    if (rc) { return rc; }
    memset((void *)work, 0x7f, (size_t)size * sizeof *work);
    const std::vector<T> v(a, a + (size_t)k * (size_t)lda);
    for (int j = 0; j < n; j++) {
        for (int i = 0; i < m; i++) { a[i + (int64_t)j * lda] = T(i == j); }
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
/* c = op(Q) c, or c op(Q) if side is 1; turned: Q^T for real numbers (1), Q^H for complex numbers (2). */
static bool ormqr_fits(int side, int turned, bool pair, int m, int n, int k, const void *a, int lda, const void *tau, const void *c, int ldc) {
    const int high = side == 0 ? m : n;
    return (side == 0 || side == 1) && (turned == 0 || turned == (pair ? 2 : 1)) && m > 0 && n > 0 && k > 0 && k <= high && a && lda >= high && tau && c && ldc >= m;
}
static int ormqr_size(void *h, int side, int turned, bool pair, int m, int n, int k, const void *a, int lda, const void *tau, const void *c, int ldc, int *size) {
    *size = m * 5 + n * 3 + 2;
    return begins(h, &parameters, ormqr_fits(side, turned, pair, m, n, k, a, lda, tau, c, ldc));
}
template <class T> static int ormqr(void *h, int side, int turned, int m, int n, int k, const T *a, int lda, const T *tau, T *c, int ldc, T *work, int size, int *info) {
    const bool pair = sizeof(T) > sizeof(real<T>);
    const int rc = begins(h, &parameters, ormqr_fits(side, turned, pair, m, n, k, a, lda, tau, c, ldc) && work && size == m * 5 + n * 3 + 2 && info);
    if (rc) { return rc; }
    memset((void *)work, 0x7f, (size_t)size * sizeof *work);
    for (int step = 0; step < k; step++) {        /* Q = H_1 .. H_k */
        const int r = (side == 0) == (turned != 0) ? step : k - 1 - step;
        const wide<T> factor = turned ? conjugate(wide<T>(tau[r])) : wide<T>(tau[r]);
        const T *v = a + (int64_t)r * lda;
        for (int j = 0; side == 0 && j < n; j++) { reflect<T>(m, r, v, factor, c + (int64_t)j * ldc); }
        std::vector<T> row((size_t)n), other((size_t)n);
        for (int i = 0; side == 1 && i < m; i++) {          /* x H = (H^H x^H)^H */
            for (int j = 0; j < n; j++) { row[(size_t)j] = T(conjugate(wide<T>(c[i + (int64_t)j * ldc]))); }
            reflect<T>(n, r, v, conjugate(factor), row.data());
            for (int j = 0; j < n; j++) { c[i + (int64_t)j * ldc] = T(conjugate(wide<T>(row[(size_t)j]))); }
        }
    }
    *info = 0;
    computed++;
    return SUCCESS;
}
#define REFLECTIONS(letter, T, pair, org, orm) \
    API int cusolverDn##letter##org##_bufferSize(void *h, int m, int n, int k, const T *a, int lda, const T *tau, int *size) { \
        return orgqr_size(h, m, n, k, a, lda, tau, size); \
    } \
    API int cusolverDn##letter##org(void *h, int m, int n, int k, T *a, int lda, const T *tau, T *work, int size, int *info) { \
        return orgqr(h, m, n, k, a, lda, tau, work, size, info); \
    } \
    API int cusolverDn##letter##orm##_bufferSize(void *h, int side, int turned, int m, int n, int k, const T *a, int lda, const T *tau, const T *c, int ldc, int *size) { \
        return ormqr_size(h, side, turned, pair, m, n, k, a, lda, tau, c, ldc, size); \
    } \
    API int cusolverDn##letter##orm(void *h, int side, int turned, int m, int n, int k, const T *a, int lda, const T *tau, T *c, int ldc, T *work, int size, int *info) { \
        return ormqr<T>(h, side, turned, m, n, k, a, lda, tau, c, ldc, work, size, info); \
    }
REFLECTIONS(S, float, false, orgqr, ormqr)
REFLECTIONS(D, double, false, orgqr, ormqr)
REFLECTIONS(C, c64, true, ungqr, unmqr)
REFLECTIONS(Z, c128, true, ungqr, unmqr)

/* Rotations of pairs of columns of `a` (m, n) make them orthogonal; the same rotations are applied to the columns of v. */
typedef std::vector<c128> columns;
static void orthogonal_columns(int64_t m, int64_t n, columns &a, columns &v) {
    bool more = true;
    for (int sweep = 0; more && sweep < 60; sweep++) {
        more = false;
        for (int64_t p = 0; p < n; p++) {
            for (int64_t q = p + 1; q < n; q++) {
                double x = 0, y = 0;
                c128 dot = 0;
                for (int64_t i = 0; i < m; i++) { const c128 c = a[(size_t)(i + p * m)], d = a[(size_t)(i + q * m)]; x += std::norm(c); y += std::norm(d); dot += std::conj(c) * d; }
                const double z = std::abs(dot);
                if (!(z > 1e-15 * std::sqrt(x * y))) { continue; }
                more = true;
                const c128 phase = std::conj(dot) / z;       /* times column q: then the product of the columns is z */
                const double t0 = (y - x) / (2 * z), t = std::copysign(1.0, t0) / (std::fabs(t0) + std::sqrt(1 + t0 * t0)), c = 1 / std::sqrt(1 + t * t), s = c * t;
                auto turn = [&](columns &w, int64_t rows) {
                    for (int64_t i = 0; i < rows; i++) {
                        c128 &e = w[(size_t)(i + p * rows)], &f = w[(size_t)(i + q * rows)];
                        const c128 kept = e, other = f * phase;
                        e = c * kept - s * other;
                        f = s * kept + c * other;
                    }
                };
                turn(a, m);
                turn(v, n);
            }
        }
    }
}
static double length_of(const columns &a, int64_t m, int64_t j) {
    double sum = 0;
    for (int64_t i = 0; i < m; i++) { sum += std::norm(a[(size_t)(i + j * m)]); }
    return std::sqrt(sum);
}
static columns identity(int64_t n) {
    columns v((size_t)(n * n));
    for (int64_t i = 0; i < n; i++) { v[(size_t)(i + i * n)] = 1; }
    return v;
}
/* The eigenvectors of a Hermitian matrix plus a multiple of the identity, which makes it positive definite, are its right
   singular vectors. */
template <class T> static void syevd(bool vectors, bool upper, int64_t n, T *a, int64_t lda, real<T> *w) {
    columns x((size_t)(n * n)), v = identity(n);
    std::vector<int64_t> order((size_t)n);
    double shift = 1;
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j <= i; j++) {
            c128 value = upper ? std::conj(c128(a[j + i * lda])) : c128(a[i + j * lda]);
            if (i == j) { value = value.real(); }
            x[(size_t)(i + j * n)] = value;
            x[(size_t)(j + i * n)] = std::conj(value);
            shift += 2 * std::abs(value);
        }
    }
    for (int64_t i = 0; i < n; i++) { x[(size_t)(i + i * n)] += shift; order[(size_t)i] = i; }
    orthogonal_columns(n, n, x, v);
    std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return length_of(x, n, i) < length_of(x, n, j); });
    for (int64_t j = 0; j < n; j++) {
        w[j] = (real<T>)(length_of(x, n, order[(size_t)j]) - shift);
        for (int64_t i = 0; i < n; i++) { assign(a[i + j * lda], vectors ? v[(size_t)(i + order[(size_t)j] * n)] : c128(NAN)); }
    }
}
API int cusolverDnXsyevd_bufferSize(void *h, void *p, int vectors, int uplo, int64_t n, int type, const void *a, int64_t lda, int w_type, const void *w,
                                    int compute, size_t *device, size_t *host) {
    return sizes(h, p, (vectors == 0 || vectors == 1) && (uplo == 0 || uplo == 1) && n > 0 && types(type, compute) && real_type(type) == w_type && a && w && lda >= n, n, n, type, device, host);
}
API int cusolverDnXsyevd(void *h, void *p, int vectors, int uplo, int64_t n, int type, void *a, int64_t lda, int w_type, void *w, int compute, void *device,
                         size_t bytes, void *host, size_t host_bytes, int *info) {
    const int rc = begins(h, p, (vectors == 0 || vectors == 1) && (uplo == 0 || uplo == 1) && n > 0 && types(type, compute) && real_type(type) == w_type && a && w && lda >= n &&
                          info && room(n, n, type, device, bytes, host, host_bytes));
    if (rc) { return rc; }
    with_type(type, [&](auto *t) { syevd(vectors == 1, uplo == 1, n, (decltype(t))a, lda, (real<std::remove_pointer_t<decltype(t)> > *)w); });
    const char *stays = getenv("OPD_EMU_CUSOLVER_INFO");
    *info = stays && *stays ? atoi(stays) : 0;
    computed++;
    return SUCCESS;
}
/* A = U S V^H.  Columns of U for singular values of 0, and those beyond column n, are made orthogonal to all others. */
template <class T> static void gesvd(char job, int64_t m, int64_t n, T *a, int64_t lda, real<T> *s, T *u, int64_t ldu, T *vt, int64_t ldv) {
    const int64_t wide = job == 'A' ? m : n;
    columns x((size_t)(m * wide)), v = identity(n);
    std::vector<int64_t> order((size_t)n);
    for (int64_t j = 0; j < n; j++) {
        order[(size_t)j] = j;
        for (int64_t i = 0; i < m; i++) { x[(size_t)(i + j * m)] = a[i + j * lda]; assign(a[i + j * lda], NAN); }
    }
    orthogonal_columns(m, n, x, v);
    std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return length_of(x, m, i) > length_of(x, m, j); });
    columns q((size_t)(m * wide));
    for (int64_t j = 0; j < wide; j++) {
        double length = j < n ? length_of(x, m, order[(size_t)j]) : 0;
        if (j < n) { s[j] = (real<T>)length; }
        if (job == 'N') { continue; }
        for (int64_t i = 0; j < n && i < n; i++) { assign(vt[j + i * ldv], std::conj(v[(size_t)(i + order[(size_t)j] * n)])); }
        for (int64_t i = 0; i < m; i++) { q[(size_t)(i + j * m)] = length > 1e-30 ? x[(size_t)(i + order[(size_t)j] * m)] / length : 0; }
        for (int64_t unit = 0; length <= 1e-30 && unit < m; unit++) {
            for (int64_t i = 0; i < m; i++) { q[(size_t)(i + j * m)] = i == unit; }
            for (int64_t k = 0; k < j; k++) {
                c128 dot = 0;
                for (int64_t i = 0; i < m; i++) { dot += std::conj(q[(size_t)(i + k * m)]) * q[(size_t)(i + j * m)]; }
                for (int64_t i = 0; i < m; i++) { q[(size_t)(i + j * m)] -= dot * q[(size_t)(i + k * m)]; }
            }
            const double left = length_of(q, m, j);
            if (left > 0.1) { length = 1; for (int64_t i = 0; i < m; i++) { q[(size_t)(i + j * m)] /= left; } }
        }
        for (int64_t i = 0; i < m; i++) { assign(u[i + j * ldu], q[(size_t)(i + j * m)]); }
    }
}
static bool svd_fits(int job, int other, int64_t m, int64_t n, int type, const void *a, int64_t lda, int s_type, const void *s, int u_type, const void *u, int64_t ldu,
                     int v_type, const void *v, int64_t ldv, int compute) {
    return job == other && (job == 'A' || job == 'S' || job == 'N') && m >= n && n > 0 && types(type, compute) && real_type(type) == s_type && type == u_type && type == v_type &&
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
    with_type(type, [&](auto *t) {
        gesvd((char)job, m, n, (decltype(t))a, lda, (real<std::remove_pointer_t<decltype(t)> > *)s, (decltype(t))u, ldu, (decltype(t))v, ldv);
    });
    const char *stays = getenv("OPD_EMU_CUSOLVER_INFO");
    *info = stays && *stays ? atoi(stays) : 0;
    computed++;
    return SUCCESS;
}
/* A turn of rows i and j of h [n, n] and of its columns by the adjoint, such that h(j, k) becomes 0; the columns of q turn, too. */
struct turn { double c; c128 s; };
static turn turn_of(c128 x, c128 y) {
    const double r = std::sqrt(std::norm(x) + std::norm(y));
    if (r == 0) { return {1, 0}; }
    return std::abs(x) == 0 ? turn{0, 1} : turn{std::abs(x) / r, x / std::abs(x) * std::conj(y) / r};
}
static void turn_rows(int64_t n, columns &h, const turn &g, int64_t i, int64_t j, int64_t from) {
    for (int64_t k = from; k < n; k++) {
        const c128 x = h[(size_t)(i + k * n)], y = h[(size_t)(j + k * n)];
        h[(size_t)(i + k * n)] = g.c * x + g.s * y; h[(size_t)(j + k * n)] = g.c * y - std::conj(g.s) * x;
    }
}
static void turn_columns(int64_t n, columns &h, const turn &g, int64_t i, int64_t j, int64_t to) {
    for (int64_t k = 0; k < to; k++) {
        const c128 x = h[(size_t)(k + i * n)], y = h[(size_t)(k + j * n)];
        h[(size_t)(k + i * n)] = g.c * x + std::conj(g.s) * y; h[(size_t)(k + j * n)] = g.c * y - g.s * x;
    }
}
/* Overwrites h with its Schur form, and q with the unitary matrix: QR steps with shifts. */
static void schur(int64_t n, columns &h, columns &q) {
    auto at = [&](int64_t i, int64_t j) -> c128 & { return h[(size_t)(i + j * n)]; };
    for (int64_t k = 0; k + 2 < n; k++) {
        for (int64_t i = k + 2; i < n; i++) {
            const turn g = turn_of(at(k + 1, k), at(i, k));
            turn_rows(n, h, g, k + 1, i, 0); turn_columns(n, h, g, k + 1, i, n); turn_columns(n, q, g, k + 1, i, n);
            at(i, k) = 0;
        }
    }
    int steps = 0;
    for (int64_t high = n - 1, low; high > 0; steps++) {
        for (low = high; low > 0; low--) {
            if (std::abs(at(low, low - 1)) <= 1e-16 * (std::abs(at(low, low)) + std::abs(at(low - 1, low - 1))) + 1e-300) { at(low, low - 1) = 0; break; }
        }
        if (low == high) { high--; steps = 0; continue; }
        const c128 a = at(high - 1, high - 1), b = at(high - 1, high), c = at(high, high - 1), d = at(high, high);
        const c128 half = (a - d) / 2.0, root = std::sqrt(half * half + b * c), one = (a + d) / 2.0 + root, two = (a + d) / 2.0 - root;
        const c128 shift = steps % 11 == 10 ? d + std::abs(c) : std::abs(one - d) < std::abs(two - d) ? one : two;
        std::vector<turn> turns;
        for (int64_t i = low; i <= high; i++) { at(i, i) -= shift; }
        for (int64_t k = low; k < high; k++) {
            turns.push_back(turn_of(at(k, k), at(k + 1, k)));
            turn_rows(n, h, turns.back(), k, k + 1, k);
        }
        for (int64_t k = low; k < high; k++) {
            turn_columns(n, h, turns[(size_t)(k - low)], k, k + 1, k + 2 < high + 1 ? k + 2 : high + 1);
            turn_columns(n, q, turns[(size_t)(k - low)], k, k + 1, n);
        }
        for (int64_t i = low; i <= high; i++) { at(i, i) += shift; }
        for (int64_t j = low; j < high; j++) { for (int64_t i = j + 2; i <= high; i++) { at(i, j) = 0; } }
    }
}
/* Eigenvalues of a, and vectors of length 1 whose largest element is real.  Of a real matrix: real and imaginary parts of the values, conjugate pairs
   beside each other, and the real and imaginary part of the vectors of a pair. */
template <class T> static void geev(bool vectors, int64_t n, T *a, int64_t lda, T *w, T *v, int64_t ldv) {
    const bool pairs = !std::is_same<T, real<T> >::value;
    columns h((size_t)(n * n)), q = identity(n), x((size_t)(n * n));
    double size = 1e-300;
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = 0; i < n; i++) { h[(size_t)(i + j * n)] = a[i + j * lda]; size = std::max(size, std::abs(h[(size_t)(i + j * n)])); assign(a[i + j * lda], c128(NAN)); }
    }
    schur(n, h, q);
    for (int64_t k = 0; k < n; k++) {
        std::vector<c128> y((size_t)n);
        double length = 0, most = 0;
        c128 phase = 1;
        y[(size_t)k] = 1;
        for (int64_t i = k - 1; i >= 0; i--) {
            c128 sum = 0, gap = h[(size_t)(i + i * n)] - h[(size_t)(k + k * n)];
            for (int64_t j = i + 1; j <= k; j++) { sum += h[(size_t)(i + j * n)] * y[(size_t)j]; }
            y[(size_t)i] = -sum / (std::abs(gap) < 1e-15 * size ? c128(1e-15 * size) : gap);
        }
        for (int64_t i = 0; i < n; i++) {
            c128 &to = x[(size_t)(i + k * n)];
            for (int64_t j = 0; j <= k; j++) { to += q[(size_t)(i + j * n)] * y[(size_t)j]; }
            length += std::norm(to);
            if (std::abs(to) > most * (1 + 1e-12)) { most = std::abs(to); phase = to / most; }
        }
        for (int64_t i = 0; i < n; i++) { x[(size_t)(i + k * n)] /= phase * std::sqrt(length); }
    }
    for (int64_t k = 0, at = 0; k < n; k++) {
        const c128 value = h[(size_t)(k + k * n)];
        const bool whole = pairs || std::fabs(value.imag()) <= 1e-9 * size;
        if (!whole && value.imag() < 0) { continue; }                     /* beside its conjugate */
        if (pairs) { assign(w[at], value); }
        else {
            w[at] = T(value.real()); w[n + at] = T(whole ? 0 : value.imag());
            if (!whole) { w[at + 1] = T(value.real()); w[n + at + 1] = T(-value.imag()); }
        }
        for (int64_t i = 0; vectors && i < n; i++) {
            assign(v[i + at * ldv], x[(size_t)(i + k * n)]);
            if (!whole) { assign(v[i + (at + 1) * ldv], c128(x[(size_t)(i + k * n)].imag())); }
        }
        at += whole ? 1 : 2;
    }
}
static bool eig_fits(int left, int right, int64_t n, int type, const void *a, int64_t lda, int w_type, const void *w, int l_type, int64_t ldl, int r_type, const void *r, int64_t ldr,
                     int compute) {
    return left == 0 && (right == 0 || right == 1) && n > 0 && types(type, compute) && types(type, w_type) && types(type, l_type) && types(type, r_type) && a && w && lda >= n &&
        ldl >= 1 && (right == 0 || (r && ldr >= n));
}
#if !defined(OLD)
API int cusolverDnXgeev_bufferSize(void *h, void *p, int left, int right, int64_t n, int type, const void *a, int64_t lda, int w_type, const void *w, int l_type, const void *,
                                   int64_t ldl, int r_type, const void *r, int64_t ldr, int compute, size_t *device, size_t *host) {
    return sizes(h, p, eig_fits(left, right, n, type, a, lda, w_type, w, l_type, ldl, r_type, r, ldr, compute), n, n, type, device, host);
}
API int cusolverDnXgeev(void *h, void *p, int left, int right, int64_t n, int type, void *a, int64_t lda, int w_type, void *w, int l_type, void *, int64_t ldl, int r_type, void *r,
                        int64_t ldr, int compute, void *device, size_t bytes, void *host, size_t host_bytes, int *info) {
    const int rc = begins(h, p, eig_fits(left, right, n, type, a, lda, w_type, w, l_type, ldl, r_type, r, ldr, compute) && info && room(n, n, type, device, bytes, host, host_bytes));
    if (rc) { return rc; }
    with_type(type, [&](auto *t) { geev(right == 1, n, (decltype(t))a, lda, (decltype(t))w, (decltype(t))r, ldr); });
    const char *stays = getenv("OPD_EMU_CUSOLVER_INFO");
    *info = stays && *stays ? atoi(stays) : 0;
    computed++;
    return SUCCESS;
}
#endif
API long opd_emu_cusolver_calls(void) { return calls; }

/* Many matrices at once. */
API int cusolverDnCreateGesvdjInfo(void **params) {
    static int jacobi;
    *params = &jacobi;
    return SUCCESS;
}
#if !defined(OLD)
API int cusolverDnXsyevBatched_bufferSize(void *h, void *p, int vectors, int uplo, int64_t n, int type, const void *a, int64_t lda, int w_type, const void *w,
                                          int compute, size_t *device, size_t *host, int64_t batch) {
    return sizes(h, p, batch > 0 && (vectors == 0 || vectors == 1) && (uplo == 0 || uplo == 1) && n > 0 && types(type, compute) && real_type(type) == w_type && a && w && lda >= n,
                 n, n * batch, type, device, host);
}
API int cusolverDnXsyevBatched(void *h, void *p, int vectors, int uplo, int64_t n, int type, void *a, int64_t lda, int w_type, void *w, int compute, void *device,
                               size_t bytes, void *host, size_t host_bytes, int *info, int64_t batch) {
    const int rc = begins(h, p, batch > 0 && (vectors == 0 || vectors == 1) && (uplo == 0 || uplo == 1) && n > 0 && types(type, compute) && real_type(type) == w_type && a && w &&
                          lda >= n && info && room(n, n * batch, type, device, bytes, host, host_bytes));
    if (rc) { return rc; }
    const char *stays = getenv("OPD_EMU_CUSOLVER_INFO");
    with_type(type, [&](auto *t) {
        for (int64_t i = 0; i < batch; i++) {
            syevd(vectors == 1, uplo == 1, n, (decltype(t))a + i * n * lda, lda, (real<std::remove_pointer_t<decltype(t)> > *)w + i * n);
            info[i] = stays && *stays ? atoi(stays) : 0;
        }
    });
    computed += batch;
    return SUCCESS;
}
#endif
template <class T> static int potrf_batched(void *h, int uplo, int n, T **a, int lda, int *info, int batch) {
    const int rc = begins(h, &parameters, (uplo == 0 || uplo == 1) && n > 0 && a && lda >= n && info && batch > 0);
    if (rc) { return rc; }
    for (int i = 0; i < batch; i++) {
        potrf(uplo == 1, n, a[i], lda, info + i);
        for (int k = 0; k < n * n; k++) { if (uplo ? k % n > k / n : k % n < k / n) { a[i][k % n + (int64_t)(k / n) * lda] = T(NAN); } }
    }
    computed += batch;
    return SUCCESS;
}
static int gesvdj_size(void *h, int vectors, int m, int n, const void *a, int lda, const void *s, const void *u, int ldu, const void *v, int ldv, int *size, void *params, int batch) {
    *size = batch * 7 + m + n;
    return begins(h, &parameters, (vectors == 0 || vectors == 1) && m >= n && m <= 32 && n > 0 && a && lda >= m && s && u && ldu >= m && v && ldv >= n && params && batch > 0);
}
template <class T> static int gesvdj(void *h, int vectors, int m, int n, T *a, int lda, real<T> *s, T *u, int ldu, T *v, int ldv, T *work, int size, int *info, void *params, int batch) {
    int want = 0;
    const int rc = gesvdj_size(h, vectors, m, n, a, lda, s, u, ldu, v, ldv, &want, params, batch);
    if (rc || size != want || !work || !info) { return rc ? rc : INVALID_VALUE; }
    memset((void *)work, 0x7f, (size_t)size * sizeof *work);
    const char *stays = getenv("OPD_EMU_CUSOLVER_INFO"), *jacobi = getenv("OPD_EMU_CUSOLVER_JACOBI");
    for (int i = 0; i < batch; i++) {
        std::vector<T> vt((size_t)(n * n));
        T *const left = u + (int64_t)i * m * ldu, *const right = v + (int64_t)i * n * ldv;
        gesvd(vectors ? 'A' : 'N', m, n, a + (int64_t)i * n * lda, lda, s + (int64_t)i * n, left, ldu, vt.data(), n);
        for (int k = 0; vectors && k < n * n; k++) { right[k % n + (int64_t)(k / n) * ldv] = T(conjugate(wide<T>(vt[(size_t)(k / n + k % n * n)]))); }
        info[i] = stays && *stays ? atoi(stays) : jacobi && i == batch - 1 ? n + 1 : 0;
        for (int k = 0; info[i] && k < n; k++) { s[(int64_t)i * n + k] = NAN; right[k] = left[k] = T(NAN); }
    }
    computed += batch;
    return SUCCESS;
}
#define BATCHED(letter, T) \
    API int cusolverDn##letter##potrfBatched(void *h, int uplo, int n, T **a, int lda, int *info, int batch) { return potrf_batched<T>(h, uplo, n, a, lda, info, batch); } \
    API int cusolverDn##letter##gesvdjBatched_bufferSize(void *h, int vectors, int m, int n, const T *a, int lda, const void *s, const T *u, int ldu, const T *v, int ldv, int *size, \
                                                         void *params, int batch) { \
        return gesvdj_size(h, vectors, m, n, a, lda, s, u, ldu, v, ldv, size, params, batch); \
    } \
    API int cusolverDn##letter##gesvdjBatched(void *h, int vectors, int m, int n, T *a, int lda, real<T> *s, T *u, int ldu, T *v, int ldv, T *work, int size, int *info, void *params, \
                                              int batch) { \
        return gesvdj<T>(h, vectors, m, n, a, lda, s, u, ldu, v, ldv, work, size, info, params, batch); \
    }
BATCHED(S, float)
BATCHED(D, double)
BATCHED(C, c64)
BATCHED(Z, c128)
API long opd_emu_cusolver_count(void) { return computed; }
