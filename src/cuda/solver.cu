//----------------------------------------------------------------------------------------------------------------------
//  >>cu:solver      factorizations of matrices, linear equations, eigenvalues and singular values
//
//  cuSOLVER computes them, for floats and complex numbers.  It is loaded when the first one runs; without it, they run
//  on the CPU, and so do tensors without elements.  cuSOLVER stores a matrix column by column, so that a kernel works
//  on contiguous tensors [.., columns, rows], and copies them to the results.  Many small matrices are one call of a
//  batched function, of cuSOLVER or cuBLAS; other matrices of a batch are computed one after the other.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_CU_SOLVER_ROOM void *device, size_t device_bytes, void *host, size_t host_bytes, int *info
#define OPDI_CU_SOLVER_FUNCTIONS(X) \
    X(Create, (void **handle)) \
    X(CreateParams, (void **params)) \
    X(CreateGesvdjInfo, (void **params)) \
    X(SetStream, (void *handle, cudaStream_t stream)) \
    X(Xpotrf_bufferSize, (void *handle, void *params, int triangle, int64_t n, int type, const void *a, int64_t lda, \
                          int compute, size_t *device, size_t *host)) \
    X(Xpotrf, (void *handle, void *params, int triangle, int64_t n, int type, void *a, int64_t lda, int compute, \
               OPDI_CU_SOLVER_ROOM)) \
    X(Xgetrf_bufferSize, (void *handle, void *params, int64_t m, int64_t n, int type, const void *a, int64_t lda, \
                          int compute, size_t *device, size_t *host)) \
    X(Xgetrf, (void *handle, void *params, int64_t m, int64_t n, int type, void *a, int64_t lda, int64_t *pivots, \
               int compute, OPDI_CU_SOLVER_ROOM)) \
    X(Xgetrs, (void *handle, void *params, int turned, int64_t n, int64_t columns, int type, const void *a, \
               int64_t lda, const int64_t *pivots, int b_type, void *b, int64_t ldb, int *info)) \
    X(Xgeqrf_bufferSize, (void *handle, void *params, int64_t m, int64_t n, int type, const void *a, int64_t lda, \
                          int tau_type, const void *tau, int compute, size_t *device, size_t *host)) \
    X(Xgeqrf, (void *handle, void *params, int64_t m, int64_t n, int type, void *a, int64_t lda, int tau_type, \
               void *tau, int compute, OPDI_CU_SOLVER_ROOM)) \
    X(Xsyevd_bufferSize, (void *handle, void *params, int vectors, int triangle, int64_t n, int type, const void *a, \
                          int64_t lda, int w_type, const void *w, int compute, size_t *device, size_t *host)) \
    X(Xsyevd, (void *handle, void *params, int vectors, int triangle, int64_t n, int type, void *a, int64_t lda, \
               int w_type, void *w, int compute, OPDI_CU_SOLVER_ROOM)) \
    X(Xgesvd_bufferSize, (void *handle, void *params, signed char job_u, signed char job_v, int64_t m, int64_t n, \
                          int type, const void *a, int64_t lda, int s_type, const void *s, int u_type, const void *u, \
                          int64_t ldu, int v_type, const void *v, int64_t ldv, int compute, size_t *device, \
                          size_t *host)) \
    X(Xgesvd, (void *handle, void *params, signed char job_u, signed char job_v, int64_t m, int64_t n, int type, \
               void *a, int64_t lda, int s_type, void *s, int u_type, void *u, int64_t ldu, int v_type, void *v, \
               int64_t ldv, int compute, OPDI_CU_SOLVER_ROOM))
/* Functions that have a name for each type: for real numbers, and for complex numbers. */
#define OPDI_CU_SOLVER_TYPED(X) \
    X(orgqr_bufferSize, "orgqr_bufferSize", "ungqr_bufferSize", \
      (void *handle, int m, int n, int k, const void *a, int lda, const void *tau, int *size)) \
    X(orgqr, "orgqr", "ungqr", (void *handle, int m, int n, int k, void *a, int lda, const void *tau, void *work, \
                                int size, int *info)) \
    X(ormqr_bufferSize, "ormqr_bufferSize", "unmqr_bufferSize", \
      (void *handle, int side, int turned, int m, int n, int k, const void *a, int lda, const void *tau, \
       const void *c, int ldc, int *size)) \
    X(ormqr, "ormqr", "unmqr", (void *handle, int side, int turned, int m, int n, int k, const void *a, int lda, \
                                const void *tau, void *c, int ldc, void *work, int size, int *info)) \
    X(potrf_all, "potrfBatched", "potrfBatched", (void *handle, int triangle, int n, void **a, int lda, int *info, \
                                                  int batch)) \
    X(gesvdj_all_bufferSize, "gesvdjBatched_bufferSize", "gesvdjBatched_bufferSize", \
      (void *handle, int vectors, int m, int n, const void *a, int lda, const void *s, const void *u, int ldu, \
       const void *v, int ldv, int *size, void *params, int batch)) \
    X(gesvdj_all, "gesvdjBatched", "gesvdjBatched", \
      (void *handle, int vectors, int m, int n, void *a, int lda, void *s, void *u, int ldu, void *v, int ldv, \
       void *work, int size, int *info, void *params, int batch))
/* Functions that cuSOLVER has since a later version: both, or NULL. */
#define OPDI_CU_SOLVER_GEEV(X) \
    X(Xgeev_bufferSize, (void *handle, void *params, int left, int right, int64_t n, int type, const void *a, \
                         int64_t lda, int w_type, const void *w, int left_type, const void *vl, int64_t ldvl, \
                         int right_type, const void *vr, int64_t ldvr, int compute, size_t *device, size_t *host)) \
    X(Xgeev, (void *handle, void *params, int left, int right, int64_t n, int type, void *a, int64_t lda, int w_type, \
              void *w, int left_type, void *vl, int64_t ldvl, int right_type, void *vr, int64_t ldvr, int compute, \
              OPDI_CU_SOLVER_ROOM))
/* Functions that cuSOLVER has since CUDA 12.6: both, or NULL. */
#define OPDI_CU_SOLVER_NEWER(X) \
    X(XsyevBatched_bufferSize, (void *handle, void *params, int vectors, int triangle, int64_t n, int type, \
                                const void *a, int64_t lda, int w_type, const void *w, int compute, size_t *device, \
                                size_t *host, int64_t batch)) \
    X(XsyevBatched, (void *handle, void *params, int vectors, int triangle, int64_t n, int type, void *a, \
                     int64_t lda, int w_type, void *w, int compute, OPDI_CU_SOLVER_ROOM, int64_t batch))
#define OPDI_CU_SOLVER_MEMBER(name, parameters) int (*name) parameters;
#define OPDI_CU_SOLVER_MEMBERS(name, real, complex, parameters) int (*name[4]) parameters;
static struct opdi_cu_solver_functions {
    OPDI_CU_SOLVER_FUNCTIONS(OPDI_CU_SOLVER_MEMBER)
    OPDI_CU_SOLVER_TYPED(OPDI_CU_SOLVER_MEMBERS)             /* float32, float64, complex64, complex128 */
    OPDI_CU_SOLVER_NEWER(OPDI_CU_SOLVER_MEMBER)
    OPDI_CU_SOLVER_GEEV(OPDI_CU_SOLVER_MEMBER)
} opdi_cu_solver;
static std::mutex opdi_cu_solver_lock;            /* protects the variables below, and the order of calls of a handle */
static int opdi_cu_solver_state;                  /* 0: not yet loaded, 1: loaded, -1: it cannot be loaded */
static void *opdi_cu_solver_handles[OPDI_CU_MAX_DEVICES], *opdi_cu_solver_params;           /* never destroyed */
static void *opdi_cu_solver_jacobi;               /* parameters of gesvdjBatched, never destroyed */
enum { OPDI_CU_LOWER = 0, OPDI_CU_UPPER = 1 };    /* cuBLAS's cublasFillMode_t */

/* Returns the function for numbers of type `type` (0 to 3), or NULL. */
static void *opdi_cu_solver_symbol(void *library, int type, const char *name) {
    char text[64];
    (void)snprintf(text, sizeof text, "cusolverDn%c%s", "SDCZ"[type], name);
    return dlsym(library, text);
}
/* Returns whether cuSOLVER is there; loads it if nobody has tried yet. */
static bool opdi_cu_solver_there() {
    static const char *const names[] = {"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"};
    std::lock_guard<std::mutex> guard(opdi_cu_solver_lock);
    bool whole = true;
    if (opdi_cu_solver_state) { return opdi_cu_solver_state > 0; }
    void *const library = opdi_cu_library("OPD_CUSOLVER", names, 3);
#define OPDI_CU_SOLVER_TAKE(name, parameters) { \
        void *const found = library ? dlsym(library, "cusolverDn" #name) : NULL; \
        memcpy(&opdi_cu_solver.name, &found, sizeof found); \
        whole = whole && found; \
    }
    OPDI_CU_SOLVER_FUNCTIONS(OPDI_CU_SOLVER_TAKE)
#define OPDI_CU_SOLVER_TAKE_TYPED(name, real, complex, parameters) for (int i = 0; i < 4; i++) { \
        void *const found = library ? opdi_cu_solver_symbol(library, i, i < 2 ? real : complex) : NULL; \
        memcpy(&opdi_cu_solver.name[i], &found, sizeof found); \
        whole = whole && found; \
    }
    OPDI_CU_SOLVER_TYPED(OPDI_CU_SOLVER_TAKE_TYPED)
    const bool most = whole;
    whole = true;
    OPDI_CU_SOLVER_NEWER(OPDI_CU_SOLVER_TAKE)
    if (!whole) { opdi_cu_solver.XsyevBatched = NULL; }
    whole = true;
    OPDI_CU_SOLVER_GEEV(OPDI_CU_SOLVER_TAKE)
    if (!whole) { opdi_cu_solver.Xgeev = NULL; }
    whole = most;
    opdi_cu_solver_state = whole ? 1 : -1;
    return whole;
}
/* Returns the number of a dtype: 0 to 3 for float32, float64, complex64 and complex128, -1 for others. */
static int opdi_cu_solver_kind(opd_scalar_type t) {
    return t == OPD_FLOAT32 ? 0 : t == OPD_FLOAT64 ? 1 : t == OPD_COMPLEX64 ? 2 : t == OPD_COMPLEX128 ? 3 : -1;
}
/* Returns the dtype of singular values and eigenvalues of matrices of dtype t. */
static opd_scalar_type opdi_cu_solver_real(opd_scalar_type t) {
    return t == OPD_COMPLEX64 ? OPD_FLOAT32 : t == OPD_COMPLEX128 ? OPD_FLOAT64 : t;
}
/* Returns whether cuSOLVER computes with a matrix t; otherwise the CPU does. */
static bool opdi_cu_solver_takes(const opd_tensor *t) {
    return opdi_cu_solver_kind(opd_dtype(t)) >= 0 && opd_numel(t) > 0 && opdi_cu_solver_there();
}
/* Makes the results of a call that cuSOLVER computes.  Fails if the call is captured: cuSOLVER may wait for the device,
   and the host reads whether it succeeded.  Returns 0, or -1 and sets an error. */
static int opdi_cu_solver_begin(opd_call *call) {
    return opd_results_from_fake(call) ||
        opdi_cu_uncaptured(opdi_cu_stream(), opd_op_name(opd_call_operator(call))) ? -1 : 0;
}
static int opdi_cu_solver_failed(int rc, const char *what) {
    (void)cudaGetLastError();
    return opd_fail(rc == 2 ? OPD_ERROR_MEMORY : OPD_ERROR_KERNEL, "cuSOLVER error %d in %s", rc, what);
}
/* What a call of cuSOLVER needs: the handle of the current device, and memory that all calls of a batch share. */
struct opdi_cu_solver_room { void *handle, *params, *device, *host; size_t device_bytes, host_bytes; };

/* Sets the handle to the current stream; makes it if this is the first call.  Returns cuSOLVER's status. */
static int opdi_cu_solver_take(opdi_cu_solver_room *room) {
    void **const handle = &opdi_cu_solver_handles[opdi_cu_current()];
    int rc = opdi_cu_solver_params ? 0 : opdi_cu_solver.CreateParams(&opdi_cu_solver_params);
    if (!rc && !opdi_cu_solver_jacobi) { rc = opdi_cu_solver.CreateGesvdjInfo(&opdi_cu_solver_jacobi); }
    if (!rc && !*handle) { rc = opdi_cu_solver.Create(handle); }
    room->handle = *handle;
    room->params = opdi_cu_solver_params;
    return rc ? rc : opdi_cu_solver.SetStream(*handle, opdi_cu_stream());
}
/* Calls run(room, i) for each of `batch` matrices, after size(room) has set the sizes of the memory that this needs.
   Both return cuSOLVER's status; `what` names the function in errors.  Returns 0, or -1 and sets an error. */
template <typename S, typename R>
static int opdi_cu_solver_each(int64_t batch, const char *what, S size, R run) {
    std::lock_guard<std::mutex> guard(opdi_cu_solver_lock);
    opdi_cu_solver_room room = opdi_cu_solver_room();
    std::vector<char> host;
    if (!opd_ok()) { return -1; }
    int rc = opdi_cu_solver_take(&room);
    if (rc) { return opdi_cu_solver_failed(rc, "cusolverDnCreate"); }
    rc = size(room);
    if (!rc && room.device_bytes && !(room.device = opdi_cu_scratch((int64_t)room.device_bytes))) { return -1; }
    try { host.resize(room.host_bytes); } catch (const std::exception &) { return opdi_cu_no_memory(what); }
    room.host = host.data();
    for (int64_t i = 0; i < batch && !rc; i++) { rc = run(room, i); }
    if (!host.empty()) { OPDI_CU_TRY(cudaStreamSynchronize(opdi_cu_stream()), what); }
    if (rc) { return opdi_cu_solver_failed(rc, what); }
    OPDI_CU_TRY(opdi_cu_debug_wait(opdi_cu_stream()), what);
    return 0;
}
static int opdi_cu_solver_no_room(opdi_cu_solver_room &) { return 0; }

/* Returns a new tensor with the sizes of t without the last `less`, and then rows and columns, if they are not -1. */
static opd_tensor *opdi_cu_solver_new(const opd_tensor *t, int less, int64_t rows, int64_t columns,
                                      opd_scalar_type type) {
    int64_t sizes[OPD_MAX_DIMS];
    int n = t ? opd_ndim(t) - less : 0;
    if (!t) { return NULL; }
    memcpy(sizes, opd_sizes(t), (size_t)n * sizeof *sizes);
    if (rows >= 0) { sizes[n++] = rows; }
    if (columns >= 0) { sizes[n++] = columns; }
    return opdi_cu_new(opd_ints_of(sizes, n), type);
}
static opd_tensor *opdi_cu_solver_turned(opd_tensor *t) { return t ? opd_transpose(t, -2, -1) : NULL; }
/* Returns a new contiguous copy of t, which may be overwritten. */
static opd_tensor *opdi_cu_solver_copy(opd_tensor *t) {
    opd_tensor *const copy = t ? opdi_cu_new(opd_ints_of(opd_sizes(t), opd_ndim(t)), opd_dtype(t)) : NULL;
    return copy && opd_copy_(copy, t) ? copy : NULL;
}
/* Returns new identity matrices with the sizes and the dtype of t. */
static opd_tensor *opdi_cu_solver_identity(const opd_tensor *t) {
    opd_tensor *const ones = opdi_cu_solver_new(t, 0, -1, -1, opd_dtype(t));
    return ones && opd_zero_(ones) && opd_fill_(opd_diagonal_full(ones, 0, -2, -1), opd_value_int(1)) ? ones : NULL;
}
/* Copies `value` to result i.  Returns 0, or -1 and sets an error. */
static int opdi_cu_solver_return(opd_call *call, int i, opd_tensor *value) {
    return value && opd_copy_(opdi_cu_result(call, i), value) ? 0 : -1;
}
/* Matrices [rows, columns] in a contiguous tensor [.., columns, rows]. */
struct opdi_cu_solver_matrices {
    char *data;
    int64_t rows, columns, batch, bytes, step;    /* bytes: of a number; step: of a matrix */
    int64_t real_bytes;
    int kind, type, real;                         /* type, real: cudaDataType of the numbers, and of real results */
    explicit opdi_cu_solver_matrices(const opd_tensor *t)
        : data(NULL), rows(1), columns(1), batch(0), bytes(0), step(0), real_bytes(0), kind(0), type(0), real(0) {
        static const int types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};
        if (!t) { return; }
        kind = opdi_cu_solver_kind(opd_dtype(t));
        data = opdi_cu_data<char>(t);
        rows = opd_size(t, -1);
        columns = opd_size(t, -2);
        batch = opd_numel(t) / (rows * columns);
        bytes = opd_dtype_size(opd_dtype(t));
        step = rows * columns * bytes;
        type = types[kind];
        real = types[kind % 2];
        real_bytes = kind % 2 ? 8 : 4;
    }
    /* whether they are many square matrices that a batched function takes at once */
    bool many() const { return batch > 1 && batch <= INT32_MAX && rows == columns && rows < 512; }
    void *at(int64_t i) const { return data + i * step; }
};
__global__ void opdi_cu_solver_address(void **to, char *data, int64_t step, int64_t n) {
    const int64_t all = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += all) { to[i] = data + i * step; }
}
/* Returns the addresses of n matrices that are `step` bytes apart, in an array on the device, or NULL and sets an
   error. */
static void **opdi_cu_solver_addresses(char *data, int64_t step, int64_t n) {
    void **const to = static_cast<void **>(opdi_cu_scratch(n * (int64_t)sizeof *to));
    return !to || opdi_cu_launch(opdi_cu_solver_address, opdi_cu_grid(n, 256), dim3(256), 0, to, data, step, n)
        ? NULL : to;
}
/* The four functions of cuBLAS for the types of numbers, as functions of type `fn`. */
#define OPDI_CU_BLAS_TYPED(fn, name) { \
        reinterpret_cast<fn *>(cublasS##name), reinterpret_cast<fn *>(cublasD##name), \
        reinterpret_cast<fn *>(cublasC##name), reinterpret_cast<fn *>(cublasZ##name)}
/* If an element of `info`, which is on the device, is not 0, fails with the CPU's error, which names the called
   operator and not _linalg_check_errors.  `single`: the tensor has no batch dims.  Waits for the device.  Returns 0, or
   -1 and sets an error. */
static int opdi_cu_solver_check(opd_tensor *info, const char *name, bool single) {
    opd_tensor *const read = info ? opd_to_device(info, opd_device_make(OPD_CPU, -1), OPD_INT32) : NULL;
    if (!read) { return -1; }
    if (opd__linalg_check_errors(read, name, single) == 0) { return 0; }
    const char *const found = strstr(opd_error_message(), name);
    if (!found) { return -1; }
    char text[400];
    (void)snprintf(text, sizeof text, "%s", found);
    opd_error_clear();
    return opd_fail(OPD_ERROR_ARGUMENT, "%s", text);
}
static int opdi_cu_solver_check(opd_tensor *info, const char *name, const opd_tensor *input) {
    return opdi_cu_solver_check(info, name, opd_ndim(input) == 2);
}

//== Cholesky ==========================================================================================================

/* Overwrites a triangular part of the matrices a with their Cholesky factors.  Returns 0, or -1 and sets an error. */
static int opdi_cu_solver_potrf(const opdi_cu_solver_matrices &m, int triangle, int *infos) {
    if (m.many()) {
        void **const all = opdi_cu_solver_addresses(m.data, m.step, m.batch);
        return !all || opdi_cu_solver_each(1, "cusolverDnpotrfBatched", opdi_cu_solver_no_room,
                                           [&](opdi_cu_solver_room &r, int64_t) {
            return opdi_cu_solver.potrf_all[m.kind](r.handle, triangle, (int)m.rows, all, (int)m.rows, infos,
                                                    (int)m.batch);
        }) ? -1 : 0;
    }
    return opdi_cu_solver_each(m.batch, "cusolverDnXpotrf", [&](opdi_cu_solver_room &r) {
        return opdi_cu_solver.Xpotrf_bufferSize(r.handle, r.params, triangle, m.rows, m.type, m.data, m.rows, m.type,
                                                &r.device_bytes, &r.host_bytes);
    }, [&](opdi_cu_solver_room &r, int64_t i) {
        return opdi_cu_solver.Xpotrf(r.handle, r.params, triangle, m.rows, m.type, m.at(i), m.rows, m.type, r.device,
                                     r.device_bytes, r.host, r.host_bytes, infos + i);
    });
}
/* linalg_cholesky_ex */
static int opdi_cu_solver_cholesky(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *a, *info;
    const bool upper = opd_arg_bool(call, 1);
    if (!opdi_cu_solver_takes(self)) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call)) { return -1; }
    a = opdi_cu_solver_copy(opdi_cu_solver_turned(self));
    info = opdi_cu_solver_new(self, 2, -1, -1, OPD_INT32);
    int *const infos = info ? opdi_cu_data<int>(info) : NULL;
    if (!a || !infos ||
        opdi_cu_solver_potrf(opdi_cu_solver_matrices(a), upper ? OPDI_CU_UPPER : OPDI_CU_LOWER, infos) ||
        (opd_arg_bool(call, 2) && opdi_cu_solver_check(info, "linalg.cholesky_ex", self))) { return -1; }
    a = opdi_cu_solver_turned(a);
    return opdi_cu_solver_return(call, 0, upper ? opd_triu(a, 0) : opd_tril(a, 0)) ||
        opdi_cu_solver_return(call, 1, info) ? -1 : 0;
}

//== LU, linear equations, inverses and determinants ===================================================================

typedef cublasStatus_t opdi_cu_getrf_all_fn(cublasHandle_t, int, void *const *, int, int *, int *, int);
typedef cublasStatus_t opdi_cu_getrs_all_fn(cublasHandle_t, cublasOperation_t, int, int, const void *const *, int,
                                            const int *, void *const *, int, int *, int);
static opdi_cu_getrf_all_fn *const opdi_cu_getrf_all[] = OPDI_CU_BLAS_TYPED(opdi_cu_getrf_all_fn, getrfBatched);
static opdi_cu_getrs_all_fn *const opdi_cu_getrs_all[] = OPDI_CU_BLAS_TYPED(opdi_cu_getrs_all_fn, getrsBatched);
/* Sets an error if cuBLAS failed; in debug mode, waits.  Returns 0, or -1. */
static int opdi_cu_blas_ran(cublasStatus_t s, const char *what) {
    if (s != CUBLAS_STATUS_SUCCESS) { return opdi_cu_blas_failed(s, what); }
    OPDI_CU_TRY(opdi_cu_debug_wait(opdi_cu_stream()), what);
    return 0;
}
/* LU factors as [.., columns, rows], pivots as int64 from 1, and info, as int32. */
struct opdi_cu_lu { opd_tensor *factors, *pivots, *info; };

/* Factors many small matrices m.  Returns 0, or -1 and sets an error. */
static int opdi_cu_lu_factor_all(const opdi_cu_lu *lu, const opdi_cu_solver_matrices &m) {
    opd_tensor *const pivots = opdi_cu_solver_new(lu->pivots, 0, -1, -1, OPD_INT32);
    void **const all = pivots ? opdi_cu_solver_addresses(m.data, m.step, m.batch) : NULL;
    cublasHandle_t h = all ? opdi_cu_blas() : NULL;
    return !h || opdi_cu_blas_ran(opdi_cu_getrf_all[m.kind](h, (int)m.rows, all, (int)m.rows, opdi_cu_data<int>(pivots),
                                                            opdi_cu_data<int>(lu->info), (int)m.batch),
                                  "cublas getrfBatched") || !opd_copy_(lu->pivots, pivots) ? -1 : 0;
}
/* Factors the matrices `input`.  Returns 0, or -1 and sets an error. */
static int opdi_cu_lu_factor(opdi_cu_lu *lu, opd_tensor *input) {
    const int64_t count = opd_size(input, -2) < opd_size(input, -1) ? opd_size(input, -2) : opd_size(input, -1);
    lu->factors = opdi_cu_solver_copy(opdi_cu_solver_turned(input));
    lu->pivots = opdi_cu_solver_new(input, 2, count, -1, OPD_INT64);
    lu->info = opdi_cu_solver_new(input, 2, -1, -1, OPD_INT32);
    if (!lu->factors || !lu->pivots || !lu->info) { return -1; }
    const opdi_cu_solver_matrices m(lu->factors);
    int64_t *const pivots = opdi_cu_data<int64_t>(lu->pivots);
    int *const infos = opdi_cu_data<int>(lu->info);
    if (m.many()) { return opdi_cu_lu_factor_all(lu, m); }
    return opdi_cu_solver_each(m.batch, "cusolverDnXgetrf", [&](opdi_cu_solver_room &r) {
        return opdi_cu_solver.Xgetrf_bufferSize(r.handle, r.params, m.rows, m.columns, m.type, m.data, m.rows, m.type,
                                                &r.device_bytes, &r.host_bytes);
    }, [&](opdi_cu_solver_room &r, int64_t i) {
        return opdi_cu_solver.Xgetrf(r.handle, r.params, m.rows, m.columns, m.type, m.at(i), m.rows, pivots + i * count,
                                     m.type, r.device, r.device_bytes, r.host, r.host_bytes, infos + i);
    });
}
/* Returns t, of which `less` dims at the end are not dims of a batch, contiguous and expanded to the batch of `like`,
   which has two such dims. */
static opd_tensor *opdi_cu_solver_as(opd_tensor *t, int less, const opd_tensor *like) {
    int64_t sizes[OPD_MAX_DIMS];
    const int n = opd_ndim(like) - 2;
    memcpy(sizes, opd_sizes(like), (size_t)n * sizeof *sizes);
    for (int i = 0; i < less; i++) { sizes[n + i] = opd_size(t, i - less); }
    return opd_contiguous(opd_expand(t, opd_ints_of(sizes, n + less)));
}
/* Solves equations with the factors a of many small matrices; x overwrites b.  Returns 0, or -1 and sets an error. */
static int opdi_cu_lu_solve_all(const opdi_cu_solver_matrices &a, opd_tensor *pivots, const opdi_cu_solver_matrices &x,
                                cublasOperation_t turned) {
    pivots = opd_to_dtype(pivots, OPD_INT32);
    void **const from = pivots ? opdi_cu_solver_addresses(a.data, a.step, a.batch) : NULL;
    void **const to = from ? opdi_cu_solver_addresses(x.data, x.step, x.batch) : NULL;
    cublasHandle_t h = to ? opdi_cu_blas() : NULL;
    int info = 0;                                 /* wrong arguments, for which the status is not success, too */
    return !h ? -1 : opdi_cu_blas_ran(opdi_cu_getrs_all[a.kind](h, turned, (int)a.rows, (int)x.columns, from,
                                                                (int)a.rows, opdi_cu_data<int>(pivots), to,
                                                                (int)x.rows, &info, (int)a.batch),
                                      "cublas getrsBatched");
}
/* Returns the solution x of A x = b or, if `left` is false, of x A = b, for b with the batch dims of the solution.
   `adjoint`: with A^H, which on the right is computed as conj(x) A^T = conj(b).  On failure, returns NULL and sets an
   error. */
static opd_tensor *opdi_cu_lu_solved(const opdi_cu_lu *lu, opd_tensor *b, bool left, bool adjoint) {
    const bool conjugate = adjoint && !left && b && opd_dtype_is_complex(opd_dtype(b));
    if (conjugate) { b = opd_conj_physical(b); }
    opd_tensor *x = b ? opdi_cu_solver_copy(left ? opdi_cu_solver_turned(b) : b) : NULL;
    opd_tensor *const factors = x ? opdi_cu_solver_as(lu->factors, 2, x) : NULL;
    opd_tensor *const pivots = factors ? opdi_cu_solver_as(lu->pivots, 1, x) : NULL;
    opd_tensor *const info = pivots ? opdi_cu_solver_new(x, 2, -1, -1, OPD_INT32) : NULL;
    if (!info) { return NULL; }
    const opdi_cu_solver_matrices a(factors), m(x);   /* if `left` is false: the columns of m are the rows of b */
    const int64_t *const exchanged = opdi_cu_data<int64_t>(pivots);
    int *const infos = opdi_cu_data<int>(info);
    const cublasOperation_t turned = left == adjoint ? (left ? CUBLAS_OP_C : CUBLAS_OP_T) : CUBLAS_OP_N;
    if (a.many() && m.columns <= INT32_MAX ? opdi_cu_lu_solve_all(a, pivots, m, turned)
        : opdi_cu_solver_each(m.batch, "cusolverDnXgetrs", opdi_cu_solver_no_room, [&](opdi_cu_solver_room &r,
                                                                                     int64_t i) {
            return opdi_cu_solver.Xgetrs(r.handle, r.params, turned, a.rows, m.columns, a.type, a.at(i), a.rows,
                                         exchanged + i * a.rows, m.type, m.at(i), m.rows, infos + i);
        })) { return NULL; }
    return left ? opdi_cu_solver_turned(x) : conjugate ? opd_conj_physical(x) : x;
}
/* Returns b expanded to the sizes of `like`. */
static opd_tensor *opdi_cu_solver_expanded(opd_tensor *b, const opd_tensor *like) {
    return opd_expand(b, opd_ints_of(opd_sizes(like), opd_ndim(like)));
}
/* linalg_lu_factor_ex */
static int opdi_cu_solver_lu_factor(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    opdi_cu_lu lu;
    if (!opdi_cu_solver_takes(input)) { return opd_cpu_fallback(call); }
    return opdi_cu_solver_begin(call) || opdi_cu_lu_factor(&lu, input) ||
        (opd_arg_bool(call, 2) && opdi_cu_solver_check(lu.info, "linalg.lu_factor_ex", input)) ||
        opdi_cu_solver_return(call, 0, opdi_cu_solver_turned(lu.factors)) ||
        opdi_cu_solver_return(call, 1, lu.pivots) || opdi_cu_solver_return(call, 2, lu.info) ? -1 : 0;
}
/* Pivots for cuSOLVER, which would exchange rows outside of the matrix. */
__global__ void opdi_cu_solver_pivots(const int32_t *from, int64_t *to, int64_t count, int64_t n, opdi_cu_guard guard) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        to[i] = guard.inside((int64_t)from[i] - 1, count) ? from[i] : 1;
    }
}
/* linalg_lu_solve */
static int opdi_cu_solver_lu_solve(opd_call *call) {
    opd_tensor *const factors = opd_arg_tensor(call, 0), *const b = opd_arg_tensor(call, 2), *pivots;
    opdi_cu_lu lu = opdi_cu_lu();
    if (!opdi_cu_solver_takes(factors) || opd_numel(b) == 0) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call) || !(pivots = opd_contiguous(opd_arg_tensor(call, 1)))) { return -1; }
    lu.factors = opd_contiguous(opdi_cu_solver_turned(factors));
    lu.pivots = opdi_cu_solver_new(pivots, 0, -1, -1, OPD_INT64);
    if (!lu.factors || !lu.pivots ||
        opdi_cu_launch(opdi_cu_solver_pivots, opdi_cu_grid(opd_numel(pivots), 256), dim3(256), 0,
                       opdi_cu_data<const int32_t>(pivots), opdi_cu_data<int64_t>(lu.pivots), opd_size(pivots, -1),
                       opd_numel(pivots), opdi_cu_guard_of(call, "Pivots given to lu_solve must all be between 1 and "
                                                           "LU.size(-2). Did you properly pass the result of "
                                                           "lu_factor?"))) { return -1; }
    opd_tensor *const whole = opdi_cu_solver_expanded(b, opdi_cu_result(call, 0));
    return opdi_cu_solver_return(call, 0, opdi_cu_lu_solved(&lu, whole, opd_arg_bool(call, 3), opd_arg_bool(call, 4)));
}
/* _linalg_solve_ex */
static int opdi_cu_solver_solve(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1), *x;
    opdi_cu_lu lu;
    if (!opdi_cu_solver_takes(input) || opd_numel(b) == 0) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call)) { return -1; }
    /* b has one vector for each matrix if it has the sizes of the pivots, or one dim */
    opd_tensor *const first = opdi_cu_result(call, 0), *const pivots = opdi_cu_result(call, 2);
    const bool vectors = opd_ndim(b) == 1 || (opd_ndim(b) == opd_ndim(pivots) &&
        memcmp(opd_sizes(b), opd_sizes(pivots), (size_t)opd_ndim(b) * sizeof(int64_t)) == 0);
    opd_tensor *const result = vectors ? opd_unsqueeze(first, -1) : first;
    if (vectors) { b = opd_unsqueeze(b, -1); }
    if (!b || !result || opdi_cu_lu_factor(&lu, input) ||
        (opd_arg_bool(call, 3) && opdi_cu_solver_check(lu.info, "linalg.solve_ex", input))) { return -1; }
    x = opdi_cu_lu_solved(&lu, opdi_cu_solver_expanded(b, result), opd_arg_bool(call, 2), false);
    return !x || !opd_copy_(result, x) || opdi_cu_solver_return(call, 1, opdi_cu_solver_turned(lu.factors)) ||
        opdi_cu_solver_return(call, 2, lu.pivots) || opdi_cu_solver_return(call, 3, lu.info) ? -1 : 0;
}
/* linalg_inv_ex */
static int opdi_cu_solver_inverse(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    opdi_cu_lu lu;
    if (!opdi_cu_solver_takes(input)) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call) || opdi_cu_lu_factor(&lu, input) ||
        (opd_arg_bool(call, 1) && opdi_cu_solver_check(lu.info, "linalg.inv_ex", input))) { return -1; }
    return opdi_cu_solver_return(call, 0, opdi_cu_lu_solved(&lu, opdi_cu_solver_identity(input), true, false)) ||
        opdi_cu_solver_return(call, 1, lu.info) ? -1 : 0;
}
/* Returns 1 for an even number of row exchanges, and -1 for an odd one. */
static opd_tensor *opdi_cu_lu_parity(opd_tensor *pivots, opd_scalar_type type) {
    const int64_t last = -1;
    opd_tensor *const kept = opd_cumsum(opd_ones_like(pivots), -1);
    opd_tensor *const odd = opd_remainder_Scalar(opd_sum_dim(opd_ne(pivots, kept), opd_ints_of(&last, 1), false),
                                                 opd_value_int(2));
    return opd_to_dtype(opd_rsub_Scalar(opd_mul_Scalar(odd, opd_value_int(2)), opd_value_int(1)), type);
}
/* _linalg_det and _linalg_slogdet, which has the sign and the logarithm of the absolute value. */
static int opdi_cu_solver_determinant(opd_call *call, bool both) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *diagonal, *parity, *logs;
    const int64_t last = -1;
    opdi_cu_lu lu;
    if (!opdi_cu_solver_takes(input)) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call) || opdi_cu_lu_factor(&lu, input)) { return -1; }
    diagonal = opd_diagonal_full(lu.factors, 0, -2, -1);
    parity = opdi_cu_lu_parity(lu.pivots, opd_dtype(input));
    logs = both ? opd_sum_dim(opd_log(opd_abs(diagonal)), opd_ints_of(&last, 1), false) : NULL;
    if (both) { diagonal = opd_sgn(diagonal); }
    return opdi_cu_solver_return(call, 0, opd_mul(opd_prod_dim(diagonal, -1, false), parity)) ||
        (both && opdi_cu_solver_return(call, 1, logs)) ||
        opdi_cu_solver_return(call, 1 + both, opdi_cu_solver_turned(lu.factors)) ||
        opdi_cu_solver_return(call, 2 + both, lu.pivots) ? -1 : 0;
}
static int opdi_cu_solver_det(opd_call *call) { return opdi_cu_solver_determinant(call, false); }
static int opdi_cu_solver_slogdet(opd_call *call) { return opdi_cu_solver_determinant(call, true); }

//== QR ================================================================================================================

/* Overwrites q, which begins with the reflections of geqrf, with the orthogonal matrix.  Returns 0, or -1 and sets an
   error. */
static int opdi_cu_solver_orgqr(opd_tensor *q, const opd_tensor *tau, int *infos) {
    const opdi_cu_solver_matrices m(q);
    const int rows = (int)m.rows, columns = (int)m.columns, count = (int)opd_size(tau, -1);
    const char *const factors = opdi_cu_data<const char>(tau);
    return opdi_cu_solver_each(m.batch, "cusolverDnorgqr", [&](opdi_cu_solver_room &r) {
        int n = 0;
        const int rc = opdi_cu_solver.orgqr_bufferSize[m.kind](r.handle, rows, columns, count, m.data, rows, factors,
                                                               &n);
        r.device_bytes = (size_t)n * (size_t)m.bytes;
        return rc;
    }, [&](opdi_cu_solver_room &r, int64_t i) {
        return opdi_cu_solver.orgqr[m.kind](r.handle, rows, columns, count, m.at(i), rows,
                                            factors + i * count * m.bytes, r.device,
                                            (int)(r.device_bytes / (size_t)m.bytes), infos + i);
    });
}
/* Factors the matrices a: R, and the reflections below it.  Returns their factors, or NULL and sets an error. */
static opd_tensor *opdi_cu_solver_geqrf(opd_tensor *a, int *infos) {
    const opdi_cu_solver_matrices m(a);
    const int64_t count = m.rows < m.columns ? m.rows : m.columns;
    opd_tensor *const tau = infos ? opdi_cu_solver_new(a, 2, count, -1, opd_dtype(a)) : NULL;
    char *const factors = tau ? opdi_cu_data<char>(tau) : NULL;
    return !factors || opdi_cu_solver_each(m.batch, "cusolverDnXgeqrf", [&](opdi_cu_solver_room &r) {
        return opdi_cu_solver.Xgeqrf_bufferSize(r.handle, r.params, m.rows, m.columns, m.type, m.data, m.rows,
                                                m.type, factors, m.type, &r.device_bytes, &r.host_bytes);
    }, [&](opdi_cu_solver_room &r, int64_t i) {
        return opdi_cu_solver.Xgeqrf(r.handle, r.params, m.rows, m.columns, m.type, m.at(i), m.rows, m.type,
                                     factors + i * count * m.bytes, m.type, r.device, r.device_bytes, r.host,
                                     r.host_bytes, infos + i);
    }) ? NULL : tau;
}
/* Returns memory for an int of each matrix of t, or NULL and sets an error. */
static int *opdi_cu_solver_infos(const opd_tensor *t) {
    return static_cast<int *>(opdi_cu_scratch(opd_numel(t) / (opd_size(t, -1) * opd_size(t, -2)) * 4));
}
static bool opdi_cu_solver_takes_small(const opd_tensor *t) {
    return opdi_cu_solver_takes(t) && opd_size(t, -2) <= INT32_MAX && opd_size(t, -1) <= INT32_MAX;
}
/* geqrf */
static int opdi_cu_solver_geqrf_of(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *a, *tau;
    if (opd_ndim(input) < 2 || !opdi_cu_solver_takes(input)) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call) || !(a = opdi_cu_solver_copy(opdi_cu_solver_turned(input)))) { return -1; }
    tau = opdi_cu_solver_geqrf(a, opdi_cu_solver_infos(a));
    return !tau || opdi_cu_solver_return(call, 0, opdi_cu_solver_turned(a)) || opdi_cu_solver_return(call, 1, tau)
        ? -1 : 0;
}
/* linalg_qr */
static int opdi_cu_solver_qr(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *a, *q, *tau;
    if (opd_ndim(input) < 2 || !opdi_cu_solver_takes_small(input)) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call)) { return -1; }
    const int64_t rows = opd_size(input, -2), columns = opd_size(input, -1), count = rows < columns ? rows : columns;
    const int64_t high = opd_size(opdi_cu_result(call, 1), -2);             /* rows of R, columns of Q */
    if (!(a = opdi_cu_solver_copy(opdi_cu_solver_turned(input)))) { return -1; }
    int *const infos = opdi_cu_solver_infos(a);
    tau = opdi_cu_solver_geqrf(a, infos);
    if (!tau || opdi_cu_solver_return(call, 1, opd_triu(opd_narrow(opdi_cu_solver_turned(a), -2, 0, high), 0))) {
        return -1;
    }
    if (strcmp(opd_arg_str(call, 1), "r") == 0) { return 0; }
    q = opdi_cu_solver_new(a, 2, high, rows, opd_dtype(a));
    if (!q || !opd_copy_(opd_narrow(q, -2, 0, count), opd_narrow(a, -2, 0, count)) ||
        opdi_cu_solver_orgqr(q, tau, infos)) { return -1; }
    return opdi_cu_solver_return(call, 0, opdi_cu_solver_turned(q));
}
/* linalg_householder_product */
static int opdi_cu_solver_householder(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *const factors = opd_arg_tensor(call, 1), *q, *tau;
    if (opd_ndim(input) < 2 || !opdi_cu_solver_takes_small(input) || opd_numel(factors) == 0) {
        return opd_cpu_fallback(call);
    }
    if (opdi_cu_solver_begin(call)) { return -1; }
    q = opdi_cu_solver_copy(opdi_cu_solver_turned(input));
    tau = q ? opd_contiguous(factors) : NULL;
    int *const infos = tau ? opdi_cu_solver_infos(q) : NULL;
    return !infos || opdi_cu_solver_orgqr(q, tau, infos) ? -1
        : opdi_cu_solver_return(call, 0, opdi_cu_solver_turned(q));
}
/* ormqr: the product of other and Q or Q^H. */
static int opdi_cu_solver_ormqr(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *const other = opd_arg_tensor(call, 2), *a, *c, *tau;
    const int side = opd_arg_bool(call, 3) ? 0 : 1;               /* cublasSideMode_t: left, right */
    if (opd_ndim(input) < 2 || opd_ndim(other) < 2 || !opdi_cu_solver_takes_small(input) ||
        !opdi_cu_solver_takes_small(other) || opd_numel(opd_arg_tensor(call, 1)) == 0) {
        return opd_cpu_fallback(call);
    }
    if (opdi_cu_solver_begin(call)) { return -1; }
    c = opdi_cu_solver_copy(opdi_cu_solver_turned(other));
    a = c ? opd_contiguous(opdi_cu_solver_turned(input)) : NULL;
    tau = a ? opd_contiguous(opd_arg_tensor(call, 1)) : NULL;
    int *const infos = tau ? opdi_cu_solver_infos(c) : NULL;
    if (!infos) { return -1; }
    const opdi_cu_solver_matrices m(c), v(a);
    const int turned = !opd_arg_bool(call, 4) ? CUBLAS_OP_N : m.kind < 2 ? CUBLAS_OP_T : CUBLAS_OP_C;
    const int rows = (int)m.rows, columns = (int)m.columns, high = (int)v.rows, count = (int)opd_size(tau, -1);
    const char *const factors = opdi_cu_data<const char>(tau);
    return opdi_cu_solver_each(m.batch, "cusolverDnormqr", [&](opdi_cu_solver_room &r) {
        int n = 0;
        const int rc = opdi_cu_solver.ormqr_bufferSize[m.kind](r.handle, side, turned, rows, columns, count, v.data,
                                                               high, factors, m.data, rows, &n);
        r.device_bytes = (size_t)n * (size_t)m.bytes;
        return rc;
    }, [&](opdi_cu_solver_room &r, int64_t i) {
        return opdi_cu_solver.ormqr[m.kind](r.handle, side, turned, rows, columns, count, v.at(i), high,
                                            factors + i * count * m.bytes, m.at(i), rows, r.device,
                                            (int)(r.device_bytes / (size_t)m.bytes), infos + i);
    }) ? -1 : opdi_cu_solver_return(call, 0, opdi_cu_solver_turned(c));
}

//== eigenvalues and singular values ===================================================================================

/* Returns info, with `number` for each matrix of `read` that has an infinite element or NaN, as on the CPU.  What
   cuSOLVER computes for such matrices is not known. */
static opd_tensor *opdi_cu_solver_finite(opd_tensor *info, opd_tensor *read, int64_t number) {
    static const int64_t last[] = {-2, -1};
    opd_tensor *const finite = read ? opd_all_dims(opd_isfinite(read), opd_ints_of(last, 2), false) : NULL;
    return finite ? opd_where_ScalarOther(finite, info, opd_value_int(number)) : NULL;
}
/* _linalg_eigh */
static int opdi_cu_solver_eigh(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *a, *w, *info;
    if (!opdi_cu_solver_takes(input)) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call)) { return -1; }
    const char triangle = *opd_arg_str(call, 1);
    const int which = triangle == 'L' || triangle == 'l' ? OPDI_CU_LOWER : OPDI_CU_UPPER;
    const int vectors = opd_arg_bool(call, 2);
    a = opdi_cu_solver_copy(opdi_cu_solver_turned(input));
    w = opdi_cu_solver_new(input, 1, -1, -1, opdi_cu_solver_real(opd_dtype(input)));
    info = opdi_cu_solver_new(input, 2, -1, -1, OPD_INT32);
    if (!a || !w || !info) { return -1; }
    const opdi_cu_solver_matrices m(a);
    char *const values = opdi_cu_data<char>(w);
    int *const infos = opdi_cu_data<int>(info);
    const bool many = m.many() && opdi_cu_solver.XsyevBatched;
    if (many ? opdi_cu_solver_each(1, "cusolverDnXsyevBatched", [&](opdi_cu_solver_room &r) {
            return opdi_cu_solver.XsyevBatched_bufferSize(r.handle, r.params, vectors, which, m.rows, m.type, m.data,
                                                          m.rows, m.real, values, m.type, &r.device_bytes,
                                                          &r.host_bytes, m.batch);
        }, [&](opdi_cu_solver_room &r, int64_t) {
            return opdi_cu_solver.XsyevBatched(r.handle, r.params, vectors, which, m.rows, m.type, m.data, m.rows,
                                               m.real, values, m.type, r.device, r.device_bytes, r.host, r.host_bytes,
                                               infos, m.batch);
        }) : opdi_cu_solver_each(m.batch, "cusolverDnXsyevd", [&](opdi_cu_solver_room &r) {
            return opdi_cu_solver.Xsyevd_bufferSize(r.handle, r.params, vectors, which, m.rows, m.type, m.data, m.rows,
                                                    m.real, values, m.type, &r.device_bytes, &r.host_bytes);
        }, [&](opdi_cu_solver_room &r, int64_t i) {
            return opdi_cu_solver.Xsyevd(r.handle, r.params, vectors, which, m.rows, m.type, m.at(i), m.rows, m.real,
                                         values + i * m.rows * m.real_bytes, m.type, r.device, r.device_bytes, r.host,
                                         r.host_bytes, infos + i);
        })) { return -1; }
    info = opdi_cu_solver_finite(info, which == OPDI_CU_LOWER ? opd_tril(input, 0) : opd_triu(input, 0),
                                 m.rows > 2 ? m.rows - 1 : 1);
    if (opdi_cu_solver_check(info, "linalg.eigh", input) || opdi_cu_solver_return(call, 0, w)) { return -1; }
    return vectors ? opdi_cu_solver_return(call, 1, opdi_cu_solver_turned(a)) : 0;
}
/* Makes complex eigenvalues w [batch, n] from their real and imaginary parts, parts [batch, 2, n], and complex vectors
   v [batch, n, n], of which one is a row, from `real` [batch, n, n], unless this is NULL.  In `real`, two rows have the
   real and imaginary part of the vector of an eigenvalue and of its conjugate, which follow each other, the one with
   the positive imaginary part first.  A complex number is two numbers. */
template <typename P> __global__ void opdi_cu_eig_pairs(const P *parts, const P *real, P *w, P *v, int64_t n,
                                                        int64_t all) {
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += step) {
        const int64_t row = real ? i / n : i, matrix = row / n, at = row - matrix * n, column = real ? i - row * n : 0;
        const P *const of = parts + matrix * 2 * n;
        const P imaginary = of[n + at];
        if (column == 0) { w[2 * row] = of[at]; w[2 * row + 1] = imaginary; }
        if (!real) { continue; }
        /* eigenvalues that are no pair, after a computation that failed, must not make a row outside of the matrix */
        const bool first = imaginary > 0 && at + 1 < n, second = imaginary < 0 && at > 0;
        v[2 * i] = real[second ? i - n : i];
        v[2 * i + 1] = first ? real[i + n] : second ? -real[i] : P(0);
    }
}
/* linalg_eig and _linalg_eigvals.  The processor computes many small matrices: cuSOLVER takes one after the other, and
   waits for each. */
static int opdi_cu_solver_eig(opd_call *call, const char *name, int vectors) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *a, *w, *v = NULL, *info, *finite, *values, *columns = NULL;
    if (opd_ndim(input) < 2 || !opdi_cu_solver_takes(input) || !opdi_cu_solver.Xgeev) { return opd_cpu_fallback(call); }
    const int64_t n = opd_size(input, -1);
    if (n < 64 && opd_numel(input) > 4 * n * n) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call)) { return -1; }
    finite = opd_all(opd_isfinite(input));
    if (!finite || opd_item_f64(finite) == 0) {
        return !opd_ok() ? -1
            : opd_fail(OPD_ERROR_ARGUMENT, "linalg.eig: input tensor should not contain infs or NaNs.");
    }
    const bool pair = opd_dtype_is_complex(opd_dtype(input));
    a = opdi_cu_solver_copy(opdi_cu_solver_turned(input));
    w = opdi_cu_solver_new(input, 2, pair ? n : 2 * n, -1, opd_dtype(input));
    info = opdi_cu_solver_new(input, 2, -1, -1, OPD_INT32);
    if (!a || !w || !info || (vectors && !(v = opdi_cu_solver_new(a, 0, -1, -1, opd_dtype(a))))) { return -1; }
    const opdi_cu_solver_matrices m(a), right(v);
    char *const all = opdi_cu_data<char>(w);
    int *const infos = opdi_cu_data<int>(info);
    if (opdi_cu_solver_each(m.batch, "cusolverDnXgeev", [&](opdi_cu_solver_room &r) {
            return opdi_cu_solver.Xgeev_bufferSize(r.handle, r.params, 0, vectors, n, m.type, m.data, n, m.type, all,
                                                   m.type, NULL, n, m.type, right.data, n, m.type, &r.device_bytes,
                                                   &r.host_bytes);
        }, [&](opdi_cu_solver_room &r, int64_t i) {
            return opdi_cu_solver.Xgeev(r.handle, r.params, 0, vectors, n, m.type, m.at(i), n, m.type,
                                        all + i * n * m.bytes * (pair ? 1 : 2), m.type, NULL, n, m.type,
                                        vectors ? right.at(i) : NULL, n, m.type, r.device, r.device_bytes, r.host,
                                        r.host_bytes, infos + i);
        }) || opdi_cu_solver_check(info, name, input)) { return -1; }
    values = w;
    columns = v;
    if (!pair) {
        const opd_scalar_type wide = m.kind == 1 ? OPD_COMPLEX128 : OPD_COMPLEX64;
        const int64_t count = vectors ? m.batch * n * n : m.batch * n;
        values = opdi_cu_solver_new(input, 2, n, -1, wide);
        columns = vectors ? opdi_cu_solver_new(a, 0, -1, -1, wide) : NULL;
        if (!values || (vectors && !columns)) { return -1; }
        const dim3 grid = opdi_cu_grid(count, 256);
        if (m.kind == 1 ? opdi_cu_launch(opdi_cu_eig_pairs<double>, grid, dim3(256), 0, (const double *)(void *)all,
                                         (const double *)(void *)right.data, opdi_cu_data<double>(values),
                                         columns ? opdi_cu_data<double>(columns) : NULL, n, count)
            : opdi_cu_launch(opdi_cu_eig_pairs<float>, grid, dim3(256), 0, (const float *)(void *)all,
                             (const float *)(void *)right.data, opdi_cu_data<float>(values),
                             columns ? opdi_cu_data<float>(columns) : NULL, n, count)) { return -1; }
    }
    return opdi_cu_solver_return(call, 0, values) ||
        (vectors && opdi_cu_solver_return(call, 1, opdi_cu_solver_turned(columns))) ? -1 : 0;
}
static int opdi_cu_solver_eig_of(opd_call *call) { return opdi_cu_solver_eig(call, "linalg.eig", 1); }
static int opdi_cu_solver_eigvals(opd_call *call) { return opdi_cu_solver_eig(call, "linalg.eigvals", 0); }
/* Matrices a with at least as many rows as columns, as [.., columns, rows], which cuSOLVER overwrites, and their
   results: values, left vectors as [.., vector, row], right vectors V^H as [.., column, vector]. */
struct opdi_cu_svd { opd_tensor *a, *s, *u, *v, *info; };

/* Computes the results for one matrix after the other.  Returns 0, or -1 and sets an error. */
static int opdi_cu_svd_each(opdi_cu_svd *svd, signed char job) {
    const opdi_cu_solver_matrices m(svd->a);
    const bool vectors = job != 'N';
    svd->u = opdi_cu_solver_new(svd->a, 2, !vectors ? 1 : job == 'A' ? m.rows : m.columns, vectors ? m.rows : 1,
                                opd_dtype(svd->a));
    svd->v = opdi_cu_solver_new(svd->a, 2, vectors ? m.columns : 1, vectors ? m.columns : 1, opd_dtype(svd->a));
    if (!svd->u || !svd->v) { return -1; }
    const opdi_cu_solver_matrices left(svd->u), right(svd->v);
    char *const values = opdi_cu_data<char>(svd->s);
    int *const infos = opdi_cu_data<int>(svd->info);
    return opdi_cu_solver_each(m.batch, "cusolverDnXgesvd", [&](opdi_cu_solver_room &r) {
        return opdi_cu_solver.Xgesvd_bufferSize(r.handle, r.params, job, job, m.rows, m.columns, m.type, m.data,
                                                m.rows, m.real, values, m.type, left.data, m.rows, m.type,
                                                right.data, m.columns, m.type, &r.device_bytes, &r.host_bytes);
    }, [&](opdi_cu_solver_room &r, int64_t i) {
        return opdi_cu_solver.Xgesvd(r.handle, r.params, job, job, m.rows, m.columns, m.type, m.at(i), m.rows,
                                     m.real, values + i * m.columns * m.real_bytes, m.type, left.at(i), m.rows,
                                     m.type, right.at(i), m.columns, m.type, r.device, r.device_bytes, r.host,
                                     r.host_bytes, infos + i);
    });
}
/* Computes the results of many matrices with at most 32 rows at once, by rotations (gesvdjBatched).  Returns 0, or -1
   and sets an error. */
static int opdi_cu_svd_all(opdi_cu_svd *svd, signed char job) {
    const opdi_cu_solver_matrices m(svd->a);
    const int vectors = job != 'N', rows = (int)m.rows, columns = (int)m.columns, batch = (int)m.batch;
    opd_tensor *const u = opdi_cu_solver_new(svd->a, 2, m.rows, m.rows, opd_dtype(svd->a));
    opd_tensor *const v = opdi_cu_solver_new(svd->a, 2, m.columns, m.columns, opd_dtype(svd->a));
    if (!u || !v) { return -1; }
    void *const left = opdi_cu_data<void>(u), *const right = opdi_cu_data<void>(v),
        *const values = opdi_cu_data<void>(svd->s);
    int *const infos = opdi_cu_data<int>(svd->info);
    if (opdi_cu_solver_each(1, "cusolverDngesvdjBatched", [&](opdi_cu_solver_room &r) {
            int n = 0;
            const int rc = opdi_cu_solver.gesvdj_all_bufferSize[m.kind](r.handle, vectors, rows, columns, m.data, rows,
                                                                        values, left, rows, right, columns, &n,
                                                                        opdi_cu_solver_jacobi, batch);
            r.device_bytes = (size_t)n * (size_t)m.bytes;
            return rc;
        }, [&](opdi_cu_solver_room &r, int64_t) {
            return opdi_cu_solver.gesvdj_all[m.kind](r.handle, vectors, rows, columns, m.data, rows, values, left, rows,
                                                     right, columns, r.device, (int)(r.device_bytes / (size_t)m.bytes),
                                                     infos, opdi_cu_solver_jacobi, batch);
        })) { return -1; }
    svd->u = opd_narrow(u, -2, 0, job == 'A' ? m.rows : m.columns);
    svd->v = opdi_cu_solver_turned(v);            /* V, of which V^H is wanted */
    if (m.kind > 1) { svd->v = opd_conj_physical(svd->v); }
    return svd->u && svd->v ? 0 : -1;
}
/* _linalg_svd.  cuSOLVER wants as many rows as columns, or more: a wide matrix is factored as its transpose, whose left
   vectors are the right ones. */
static int opdi_cu_solver_svd(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0);
    if (!opdi_cu_solver_takes(input)) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call)) { return -1; }
    const bool vectors = opd_arg_bool(call, 2), tall = opd_size(input, -2) >= opd_size(input, -1);
    const signed char job = !vectors ? 'N' : opd_arg_bool(call, 1) ? 'A' : 'S';
    opd_tensor *const matrices = tall ? opdi_cu_solver_turned(input) : input;
    opdi_cu_svd svd = {opdi_cu_solver_copy(matrices), NULL, NULL, NULL,
                       opdi_cu_solver_new(input, 2, -1, -1, OPD_INT32)};
    if (!svd.a || !svd.info) { return -1; }
    const opdi_cu_solver_matrices m(svd.a);
    bool many = m.batch > 1 && m.batch <= INT32_MAX && m.rows <= 32;
    svd.s = opdi_cu_solver_new(input, 2, m.columns, -1, opdi_cu_solver_real(opd_dtype(input)));
    if (!svd.s || (many && opdi_cu_svd_all(&svd, job))) { return -1; }
    if (many) {                                   /* if a matrix needs more rotations, gesvd computes all of them */
        opd_tensor *const bad = opd_gt_Scalar(opdi_cu_solver_finite(svd.info, input, -4), opd_value_int(0));
        many = bad && opd_item_f64(opd_any(bad)) == 0;
        if (!opd_ok() || (!many && !opd_copy_(svd.a, matrices))) { return -1; }
    }
    if (!many && opdi_cu_svd_each(&svd, job)) { return -1; }
    svd.info = opdi_cu_solver_finite(svd.info, input, -4);
    if (opdi_cu_solver_check(svd.info, "linalg.svd", input) || opdi_cu_solver_return(call, 1, svd.s)) { return -1; }
    if (!vectors) { return 0; }
    return opdi_cu_solver_return(call, 0, tall ? opdi_cu_solver_turned(svd.u) : svd.v) ||
        opdi_cu_solver_return(call, 2, tall ? opdi_cu_solver_turned(svd.v) : svd.u) ? -1 : 0;
}

static const opdi_cu_registration opdi_cu_table_solver[] = {
    {"linalg_cholesky_ex", opdi_cu_solver_cholesky}, {"linalg_lu_factor_ex", opdi_cu_solver_lu_factor},
    {"linalg_lu_solve", opdi_cu_solver_lu_solve}, {"_linalg_solve_ex", opdi_cu_solver_solve},
    {"linalg_inv_ex", opdi_cu_solver_inverse}, {"_linalg_det", opdi_cu_solver_det},
    {"_linalg_slogdet", opdi_cu_solver_slogdet}, {"linalg_qr", opdi_cu_solver_qr}, {"geqrf", opdi_cu_solver_geqrf_of},
    {"linalg_householder_product", opdi_cu_solver_householder}, {"ormqr", opdi_cu_solver_ormqr},
    {"_linalg_eigh", opdi_cu_solver_eigh}, {"_linalg_svd", opdi_cu_solver_svd}, {"linalg_eig", opdi_cu_solver_eig_of},
    {"_linalg_eigvals", opdi_cu_solver_eigvals},
    {NULL, NULL}};

