//----------------------------------------------------------------------------------------------------------------------
//  >>cu:solver      factorizations of matrices, linear equations, eigenvalues and singular values
//
//  cuSOLVER computes them for float32 and float64.  It is loaded when the first one runs; without it, they run on the
//  CPU, and so do complex matrices and tensors without elements.  cuSOLVER stores a matrix column by column, so that
//  a kernel works on contiguous tensors [.., columns, rows], and copies them to the results.
//----------------------------------------------------------------------------------------------------------------------

#define OPDI_CU_SOLVER_ROOM void *device, size_t device_bytes, void *host, size_t host_bytes, int *info
#define OPDI_CU_SOLVER_FUNCTIONS(X) \
    X(Create, (void **handle)) \
    X(CreateParams, (void **params)) \
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
    X(Sorgqr_bufferSize, (void *handle, int m, int n, int k, const float *a, int lda, const float *tau, int *size)) \
    X(Dorgqr_bufferSize, (void *handle, int m, int n, int k, const double *a, int lda, const double *tau, int *size)) \
    X(Sorgqr, (void *handle, int m, int n, int k, float *a, int lda, const float *tau, float *work, int size, \
               int *info)) \
    X(Dorgqr, (void *handle, int m, int n, int k, double *a, int lda, const double *tau, double *work, int size, \
               int *info)) \
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
#define OPDI_CU_SOLVER_MEMBER(name, parameters) int (*name) parameters;
static struct opdi_cu_solver_functions { OPDI_CU_SOLVER_FUNCTIONS(OPDI_CU_SOLVER_MEMBER) } opdi_cu_solver;
static std::mutex opdi_cu_solver_lock;            /* protects the variables below, and the order of calls of a handle */
static int opdi_cu_solver_state;                  /* 0: not yet loaded, 1: loaded, -1: it cannot be loaded */
static void *opdi_cu_solver_handles[OPDI_CU_MAX_DEVICES], *opdi_cu_solver_params;           /* never destroyed */
enum { OPDI_CU_LOWER = 0, OPDI_CU_UPPER = 1 };    /* cuBLAS's cublasFillMode_t */

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
    opdi_cu_solver_state = whole ? 1 : -1;
    return whole;
}
/* Returns whether cuSOLVER computes with a matrix t; otherwise the CPU does. */
static bool opdi_cu_solver_takes(const opd_tensor *t) {
    return (opd_dtype(t) == OPD_FLOAT32 || opd_dtype(t) == OPD_FLOAT64) && opd_numel(t) > 0 && opdi_cu_solver_there();
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
/* Copies `value` to result i.  Returns 0, or -1 and sets an error. */
static int opdi_cu_solver_return(opd_call *call, int i, opd_tensor *value) {
    return value && opd_copy_(opdi_cu_result(call, i), value) ? 0 : -1;
}
/* Matrices [rows, columns] in a contiguous tensor [.., columns, rows]. */
struct opdi_cu_solver_matrices {
    char *data;
    int64_t rows, columns, batch, step;           /* step: bytes of a matrix */
    int type;                                     /* a cudaDataType */
    explicit opdi_cu_solver_matrices(const opd_tensor *t)
        : data(NULL), rows(1), columns(1), batch(0), step(0), type(0) {
        if (!t) { return; }
        const bool wide = opd_dtype(t) == OPD_FLOAT64;
        data = opdi_cu_data<char>(t);
        rows = opd_size(t, -1);
        columns = opd_size(t, -2);
        batch = opd_numel(t) / (rows * columns);
        step = rows * columns * (wide ? 8 : 4);
        type = wide ? CUDA_R_64F : CUDA_R_32F;
    }
    void *at(int64_t i) const { return data + i * step; }
};
/* If an element of `info`, which is on the device, is not 0, fails with the CPU's error, which names the called
   operator and not _linalg_check_errors.  Waits for the device.  Returns 0, or -1 and sets an error. */
static int opdi_cu_solver_check(opd_tensor *info, const char *name, const opd_tensor *input) {
    opd_tensor *const read = info ? opd_to_device(info, opd_device_make(OPD_CPU, -1), OPD_INT32) : NULL;
    if (!read) { return -1; }
    if (opd__linalg_check_errors(read, name, opd_ndim(input) == 2) == 0) { return 0; }
    const char *const found = strstr(opd_error_message(), name);
    if (!found) { return -1; }
    char text[400];
    (void)snprintf(text, sizeof text, "%s", found);
    opd_error_clear();
    return opd_fail(OPD_ERROR_ARGUMENT, "%s", text);
}

//== Cholesky ==========================================================================================================

/* linalg_cholesky_ex */
static int opdi_cu_solver_cholesky(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0), *a, *info;
    const bool upper = opd_arg_bool(call, 1);
    if (!opdi_cu_solver_takes(self)) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call)) { return -1; }
    a = opdi_cu_solver_copy(opdi_cu_solver_turned(self));
    info = opdi_cu_solver_new(self, 2, -1, -1, OPD_INT32);
    const opdi_cu_solver_matrices m(a);
    int *const infos = info ? opdi_cu_data<int>(info) : NULL;
    const int triangle = upper ? OPDI_CU_UPPER : OPDI_CU_LOWER;
    if (!a || !infos || opdi_cu_solver_each(m.batch, "cusolverDnXpotrf", [&](opdi_cu_solver_room &r) {
            return opdi_cu_solver.Xpotrf_bufferSize(r.handle, r.params, triangle, m.rows, m.type, m.data, m.rows,
                                                    m.type, &r.device_bytes, &r.host_bytes);
        }, [&](opdi_cu_solver_room &r, int64_t i) {
            return opdi_cu_solver.Xpotrf(r.handle, r.params, triangle, m.rows, m.type, m.at(i), m.rows, m.type,
                                         r.device, r.device_bytes, r.host, r.host_bytes, infos + i);
        }) || (opd_arg_bool(call, 2) && opdi_cu_solver_check(info, "linalg.cholesky_ex", self))) { return -1; }
    a = opdi_cu_solver_turned(a);
    return opdi_cu_solver_return(call, 0, upper ? opd_triu(a, 0) : opd_tril(a, 0)) ||
        opdi_cu_solver_return(call, 1, info) ? -1 : 0;
}

//== LU, linear equations, inverses and determinants ===================================================================

/* LU factors as [.., columns, rows], pivots as int64 from 1, and info, as int32. */
struct opdi_cu_lu { opd_tensor *factors, *pivots, *info; };

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
/* Returns the solution x of A x = b or, if `left` is false, of x A = b, for b with the batch dims of the solution.
   `adjoint`: A is transposed.  On failure, returns NULL and sets an error. */
static opd_tensor *opdi_cu_lu_solved(const opdi_cu_lu *lu, opd_tensor *b, bool left, bool adjoint) {
    opd_tensor *const x = b ? opdi_cu_solver_copy(left ? opdi_cu_solver_turned(b) : b) : NULL;
    opd_tensor *const factors = x ? opdi_cu_solver_as(lu->factors, 2, x) : NULL;
    opd_tensor *const pivots = factors ? opdi_cu_solver_as(lu->pivots, 1, x) : NULL;
    opd_tensor *const info = pivots ? opdi_cu_solver_new(x, 2, -1, -1, OPD_INT32) : NULL;
    if (!info) { return NULL; }
    const opdi_cu_solver_matrices a(factors), m(x);   /* if `left` is false: the columns of m are the rows of b */
    const int64_t *const exchanged = opdi_cu_data<int64_t>(pivots);
    int *const infos = opdi_cu_data<int>(info);
    return opdi_cu_solver_each(m.batch, "cusolverDnXgetrs", opdi_cu_solver_no_room, [&](opdi_cu_solver_room &r,
                                                                                      int64_t i) {
        return opdi_cu_solver.Xgetrs(r.handle, r.params, left != adjoint ? CUBLAS_OP_N : CUBLAS_OP_T, a.rows, m.columns,
                                     a.type, a.at(i), a.rows, exchanged + i * a.rows, m.type, m.at(i), m.rows,
                                     infos + i);
    }) ? NULL : left ? opdi_cu_solver_turned(x) : x;
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
    opd_tensor *const input = opd_arg_tensor(call, 0), *ones;
    opdi_cu_lu lu;
    if (!opdi_cu_solver_takes(input)) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call) || opdi_cu_lu_factor(&lu, input) ||
        (opd_arg_bool(call, 1) && opdi_cu_solver_check(lu.info, "linalg.inv_ex", input))) { return -1; }
    ones = opdi_cu_solver_new(input, 0, -1, -1, opd_dtype(input));
    if (!ones || !opd_zero_(ones) || !opd_fill_(opd_diagonal_full(ones, 0, -2, -1), opd_value_int(1))) { return -1; }
    return opdi_cu_solver_return(call, 0, opdi_cu_lu_solved(&lu, ones, true, false)) ||
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

/* Overwrites q, which begins with the `count` reflections of geqrf, with the orthogonal matrix.  Returns 0, or -1 and
   sets an error. */
template <typename T, typename S, typename R>
static int opdi_cu_solver_orgqr(opd_tensor *q, opd_tensor *tau, int *infos, S size, R run) {
    const opdi_cu_solver_matrices m(q);
    const int rows = (int)m.rows, columns = (int)m.columns, count = (int)opd_size(tau, -1);
    const T *const factors = opdi_cu_data<const T>(tau);
    return opdi_cu_solver_each(m.batch, "cusolverDnorgqr", [&](opdi_cu_solver_room &r) {
        int n = 0;
        const int rc = size(r.handle, rows, columns, count, (const T *)(void *)m.data, rows, factors, &n);
        r.device_bytes = (size_t)n * sizeof(T);
        return rc;
    }, [&](opdi_cu_solver_room &r, int64_t i) {
        return run(r.handle, rows, columns, count, (T *)m.at(i), rows, factors + i * count, (T *)r.device,
                   (int)(r.device_bytes / sizeof(T)), infos + i);
    });
}
/* linalg_qr */
static int opdi_cu_solver_qr(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *a, *q, *tau, *info;
    if (!opdi_cu_solver_takes(input) || opd_size(input, -2) > INT32_MAX || opd_size(input, -1) > INT32_MAX) {
        return opd_cpu_fallback(call);
    }
    if (opdi_cu_solver_begin(call)) { return -1; }
    const opd_scalar_type type = opd_dtype(input);
    const bool wide = type == OPD_FLOAT64;
    const int64_t rows = opd_size(input, -2), columns = opd_size(input, -1), count = rows < columns ? rows : columns;
    const int64_t high = opd_size(opdi_cu_result(call, 1), -2);             /* rows of R, columns of Q */
    a = opdi_cu_solver_copy(opdi_cu_solver_turned(input));
    tau = opdi_cu_solver_new(input, 2, count, -1, type);
    info = opdi_cu_solver_new(input, 2, -1, -1, OPD_INT32);
    if (!a || !tau || !info) { return -1; }
    const opdi_cu_solver_matrices m(a);
    char *const factors = opdi_cu_data<char>(tau);
    int *const infos = opdi_cu_data<int>(info);
    if (opdi_cu_solver_each(m.batch, "cusolverDnXgeqrf", [&](opdi_cu_solver_room &r) {
            return opdi_cu_solver.Xgeqrf_bufferSize(r.handle, r.params, m.rows, m.columns, m.type, m.data, m.rows,
                                                    m.type, factors, m.type, &r.device_bytes, &r.host_bytes);
        }, [&](opdi_cu_solver_room &r, int64_t i) {
            return opdi_cu_solver.Xgeqrf(r.handle, r.params, m.rows, m.columns, m.type, m.at(i), m.rows, m.type,
                                         factors + i * count * (wide ? 8 : 4), m.type, r.device, r.device_bytes, r.host,
                                         r.host_bytes, infos + i);
        }) || opdi_cu_solver_return(call, 1, opd_triu(opd_narrow(opdi_cu_solver_turned(a), -2, 0, high), 0))) {
        return -1;
    }
    if (strcmp(opd_arg_str(call, 1), "r") == 0) { return 0; }
    q = opdi_cu_solver_new(a, 2, high, rows, type);
    if (!q || !opd_copy_(opd_narrow(q, -2, 0, count), opd_narrow(a, -2, 0, count)) ||
        (wide ? opdi_cu_solver_orgqr<double>(q, tau, infos, opdi_cu_solver.Dorgqr_bufferSize, opdi_cu_solver.Dorgqr)
         : opdi_cu_solver_orgqr<float>(q, tau, infos, opdi_cu_solver.Sorgqr_bufferSize, opdi_cu_solver.Sorgqr))) {
        return -1;
    }
    return opdi_cu_solver_return(call, 0, opdi_cu_solver_turned(q));
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
    w = opdi_cu_solver_new(input, 1, -1, -1, opd_dtype(input));
    info = opdi_cu_solver_new(input, 2, -1, -1, OPD_INT32);
    if (!a || !w || !info) { return -1; }
    const opdi_cu_solver_matrices m(a);
    char *const values = opdi_cu_data<char>(w);
    int *const infos = opdi_cu_data<int>(info);
    if (opdi_cu_solver_each(m.batch, "cusolverDnXsyevd", [&](opdi_cu_solver_room &r) {
            return opdi_cu_solver.Xsyevd_bufferSize(r.handle, r.params, vectors, which, m.rows, m.type, m.data, m.rows,
                                                    m.type, values, m.type, &r.device_bytes, &r.host_bytes);
        }, [&](opdi_cu_solver_room &r, int64_t i) {
            return opdi_cu_solver.Xsyevd(r.handle, r.params, vectors, which, m.rows, m.type, m.at(i), m.rows, m.type,
                                         values + i * (m.step / m.rows), m.type, r.device, r.device_bytes, r.host,
                                         r.host_bytes, infos + i);
        })) { return -1; }
    info = opdi_cu_solver_finite(info, which == OPDI_CU_LOWER ? opd_tril(input, 0) : opd_triu(input, 0),
                                 m.rows > 2 ? m.rows - 1 : 1);
    if (opdi_cu_solver_check(info, "linalg.eigh", input) || opdi_cu_solver_return(call, 0, w)) { return -1; }
    return vectors ? opdi_cu_solver_return(call, 1, opdi_cu_solver_turned(a)) : 0;
}
/* _linalg_svd.  cuSOLVER wants as many rows as columns, or more: a wide matrix is factored as its transpose, whose left
   vectors are the right ones. */
static int opdi_cu_solver_svd(opd_call *call) {
    opd_tensor *const input = opd_arg_tensor(call, 0), *a, *s, *u, *v, *info;
    if (!opdi_cu_solver_takes(input)) { return opd_cpu_fallback(call); }
    if (opdi_cu_solver_begin(call)) { return -1; }
    const opd_scalar_type type = opd_dtype(input);
    const bool vectors = opd_arg_bool(call, 2), tall = opd_size(input, -2) >= opd_size(input, -1);
    const signed char job = !vectors ? 'N' : opd_arg_bool(call, 1) ? 'A' : 'S';
    a = opdi_cu_solver_copy(tall ? opdi_cu_solver_turned(input) : input);
    info = opdi_cu_solver_new(input, 2, -1, -1, OPD_INT32);
    if (!a || !info) { return -1; }
    const opdi_cu_solver_matrices m(a);
    const int64_t wide = job == 'A' ? m.rows : m.columns;
    s = opdi_cu_solver_new(input, 2, m.columns, -1, type);
    u = opdi_cu_solver_new(input, 2, vectors ? wide : 1, vectors ? m.rows : 1, type);
    v = opdi_cu_solver_new(input, 2, vectors ? m.columns : 1, vectors ? m.columns : 1, type);
    if (!s || !u || !v) { return -1; }
    const opdi_cu_solver_matrices left(u), right(v);
    char *const values = opdi_cu_data<char>(s);
    int *const infos = opdi_cu_data<int>(info);
    if (opdi_cu_solver_each(m.batch, "cusolverDnXgesvd", [&](opdi_cu_solver_room &r) {
            return opdi_cu_solver.Xgesvd_bufferSize(r.handle, r.params, job, job, m.rows, m.columns, m.type, m.data,
                                                    m.rows, m.type, values, m.type, left.data, m.rows, m.type,
                                                    right.data, m.columns, m.type, &r.device_bytes, &r.host_bytes);
        }, [&](opdi_cu_solver_room &r, int64_t i) {
            return opdi_cu_solver.Xgesvd(r.handle, r.params, job, job, m.rows, m.columns, m.type, m.at(i), m.rows,
                                         m.type, values + i * (m.step / m.rows), m.type, left.at(i), m.rows, m.type,
                                         right.at(i), m.columns, m.type, r.device, r.device_bytes, r.host, r.host_bytes,
                                         infos + i);
        })) { return -1; }
    info = opdi_cu_solver_finite(info, input, -4);
    if (opdi_cu_solver_check(info, "linalg.svd", input) || opdi_cu_solver_return(call, 1, s)) { return -1; }
    if (!vectors) { return 0; }
    return opdi_cu_solver_return(call, 0, tall ? opdi_cu_solver_turned(u) : v) ||
        opdi_cu_solver_return(call, 2, tall ? opdi_cu_solver_turned(v) : u) ? -1 : 0;
}

static const opdi_cu_registration opdi_cu_table_solver[] = {
    {"linalg_cholesky_ex", opdi_cu_solver_cholesky}, {"linalg_lu_factor_ex", opdi_cu_solver_lu_factor},
    {"linalg_lu_solve", opdi_cu_solver_lu_solve}, {"_linalg_solve_ex", opdi_cu_solver_solve},
    {"linalg_inv_ex", opdi_cu_solver_inverse}, {"_linalg_det", opdi_cu_solver_det},
    {"_linalg_slogdet", opdi_cu_solver_slogdet}, {"linalg_qr", opdi_cu_solver_qr},
    {"_linalg_eigh", opdi_cu_solver_eigh}, {"_linalg_svd", opdi_cu_solver_svd},
    {NULL, NULL}};

