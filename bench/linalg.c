/* Measures factorisations of matrices and systems of linear equations, beside LAPACK's routines on the same matrices.
   cc -O2 bench/linalg.c -o bench_linalg -lm -lpthread -ldl
   ./bench_linalg [--quick] [--filter TEXT] [--lapack FILE] [--markdown] [--help]

   Everything runs on one thread, after a warm-up.  A time is in microseconds of processor time for one matrix, the
   median of several rounds, in which both sides take turns.  32 matrices of 32 x 32 are one call of our operator and 32
   calls of LAPACK.  A matrix of 512 x 512 is one call of each.  Our times are for whole calls of operators, which
   allocate their results.  LAPACK's times include a copy of the matrix, because LAPACK overwrites it.  The program uses
   the LAPACK in FILE, or in the first of libopenblas.so.0 and liblapack.so.3 that it can load.  Without LAPACK, its
   columns stay empty.  Compare only figures of one run, because the clock rate of a processor varies. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

//-- matrices -----------------------------------------------------------------------------------------------------------

enum { SMALL = 32, BATCH = 32, ROUNDS = 15, COLUMNS = 16 };      /* COLUMNS: number of right-hand sides */
static int large = 512;

/* Matrices of one size and dtype, the factors that are computed before the measurement, and LAPACK's memory. */
typedef struct problem {
    int n, batch, element;
    opd_scalar_type dtype;
    opd_tensor *any, *positive, *lower, *right, *factors, *pivots, *tall, *tall_right;
    char *matrix, *other, *left, *work, *values;
    int *whole, nwork, nwhole;
} problem;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
static void stop_on_error(const char *where) {
    if (opd_ok()) { return; }
    fprintf(stderr, "%s: %s\n", where, opd_error_message());
    exit(1);
}
static void *room(size_t size) {
    void *memory = malloc(size);
    if (!memory) {
        fprintf(stderr, "out of memory\n");
        exit(1);
    }
    memset(memory, 0, size);
    return memory;
}
static opd_tensor *noise(const problem *p, int64_t rows, int64_t columns) {
    return opd_randn(OPD_INTS(p->batch, rows, columns), p->dtype);
}
static void problem_make(problem *p, int n, int batch, opd_scalar_type dtype) {
    const size_t square = (size_t)n * (size_t)n;
    opd_tensor *rets[2];
    p->n = n;
    p->batch = batch;
    p->dtype = dtype;
    p->element = dtype == OPD_FLOAT64 ? 8 : 4;
    p->any = noise(p, n, n);
    opd_tensor *one = opd_diag_embed(opd_full(OPD_INTS(batch, n), OPD_V(n), dtype));
    p->positive = opd_contiguous(opd_add(opd_matmul(p->any, opd_mT(p->any)), one));
    p->lower = opd_linalg_cholesky(p->positive);
    p->right = noise(p, n, COLUMNS);
    p->tall = noise(p, n, n / 2);
    p->tall_right = noise(p, n, COLUMNS);
    opd_linalg_lu_factor(rets, p->any);
    p->factors = rets[0];
    p->pivots = rets[1];
    stop_on_error("matrices");
    p->nwork = (int)(20 * square) + 4096;
    p->nwhole = 20 * n * 16 + 4096;
    p->matrix = (char *)room(4 * square * 8);     /* memory for this and the next members */
    p->other = p->matrix + square * 8;
    p->left = p->other + square * 8;
    p->values = p->left + square * 8;
    p->work = (char *)room((size_t)p->nwork * 8);
    p->whole = (int *)room((size_t)p->nwhole * sizeof(int));
}
static void problem_free(problem *p) {
    free(p->matrix);
    free(p->work);
    free(p->whole);
}

//-- LAPACK -------------------------------------------------------------------------------------------------------------

typedef void routine(void);
static void *lapack;
static const char *lapack_name = "";

static void lapack_load(const char *path) {
    static const char *const names[] = {"libopenblas.so.0", "liblapack.so.3", NULL};
    for (int i = 0; !lapack && names[i]; i++) {
        lapack_name = path ? path : names[i];
        lapack = dlopen(lapack_name, RTLD_NOW | RTLD_LOCAL);
        if (path) { break; }
    }
    if (!lapack) { fprintf(stderr, "LAPACK was not found: its columns stay empty\n"); }
    void (*threads)(int) = NULL;
    if (lapack) { *(void **)(void *)&threads = dlsym(lapack, "openblas_set_num_threads"); }
    if (threads) { threads(1); }
}
/* Returns LAPACK's routine with this name for the dtype.  Looks it up unless the last call was for the same. */
static routine *routine_of(const problem *p, const char *name) {
    static struct { const char *name; char kind; routine *call; } known[8];
    static int next;
    const char kind = p->dtype == OPD_FLOAT64 ? 'd' : 's';
    char text[32];
    for (int i = 0; i < 8; i++) { if (known[i].name == name && known[i].kind == kind) { return known[i].call; } }
    snprintf(text, sizeof text, "%c%s_", kind, name);
    next = (next + 1) % 8;
    known[next].name = name;
    known[next].kind = kind;
    *(void **)(void *)&known[next].call = dlsym(lapack, text);
    if (known[next].call) { return known[next].call; }
    fprintf(stderr, "%s has no %s\n", lapack_name, text);
    exit(1);
}
static void check(int info) {
    if (!info) { return; }
    fprintf(stderr, "LAPACK's info is %d\n", info);
    exit(1);
}
/* Copies matrix `at` of a tensor [batch, rows, columns] to memory, in the same order. */
static void copy_in(const problem *p, char *to, opd_tensor *tensor, int at) {
    const size_t size = (size_t)opd_size(tensor, -2) * (size_t)opd_size(tensor, -1) * (size_t)p->element;
    memcpy(to, (const char *)opd_data(tensor) + (size_t)at * size, size);
}

static void potrf(problem *p, int at) {
    int info;
    copy_in(p, p->matrix, p->positive, at);
    ((void (*)(const char *, int *, void *, int *, int *))routine_of(p, "potrf"))("L", &p->n, p->matrix, &p->n, &info);
    check(info);
}
static void getrf(problem *p, int at) {
    int info;
    copy_in(p, p->matrix, p->any, at);
    ((void (*)(int *, int *, void *, int *, int *, int *))routine_of(p, "getrf"))(&p->n, &p->n, p->matrix, &p->n,
                                                                                  p->whole, &info);
    check(info);
}
typedef void getrs_fn(const char *, int *, int *, void *, int *, int *, void *, int *, int *);
static void getrs(problem *p, int at) {
    int info, columns = COLUMNS;
    copy_in(p, p->other, p->right, at);
    ((getrs_fn *)routine_of(p, "getrs"))("N", &p->n, &columns, (char *)opd_data(p->factors) +
                                         (size_t)at * (size_t)(p->n * p->n * p->element), &p->n,
                                         opd_data_i32(p->pivots) + at * p->n, p->other, &p->n, &info);
    check(info);
}
static void gesv(problem *p, int at) {
    int info, columns = COLUMNS;
    getrf(p, at);
    copy_in(p, p->other, p->right, at);
    ((getrs_fn *)routine_of(p, "getrs"))("N", &p->n, &columns, p->matrix, &p->n, p->whole, p->other, &p->n, &info);
    check(info);
}
static void inverse(problem *p, int at) {
    int info;
    getrf(p, at);
    ((void (*)(int *, void *, int *, int *, void *, int *, int *))routine_of(p, "getri"))(&p->n, p->matrix, &p->n,
                                                                                         p->whole, p->work, &p->nwork,
                                                                                         &info);
    check(info);
}
static void potrs(problem *p, int at) {
    int info, columns = COLUMNS;
    copy_in(p, p->other, p->right, at);
    ((void (*)(const char *, int *, int *, void *, int *, void *, int *, int *))routine_of(p, "potrs"))(
        "U", &p->n, &columns, (char *)opd_data(p->lower) + (size_t)at * (size_t)(p->n * p->n * p->element), &p->n,
        p->other, &p->n, &info);
    check(info);
}
static void trtrs(problem *p, int at) {
    int info, columns = COLUMNS;
    copy_in(p, p->other, p->right, at);
    ((void (*)(const char *, const char *, const char *, int *, int *, void *, int *, void *, int *, int *))routine_of(
        p, "trtrs"))("U", "N", "N", &p->n, &columns,
                     (char *)opd_data(p->lower) + (size_t)at * (size_t)(p->n * p->n * p->element), &p->n, p->other,
                     &p->n, &info);
    check(info);
}
static void geqrf(problem *p, int at) {
    int info;
    copy_in(p, p->matrix, p->any, at);
    ((void (*)(int *, int *, void *, int *, void *, void *, int *, int *))routine_of(p, "geqrf"))(
        &p->n, &p->n, p->matrix, &p->n, p->values, p->work, &p->nwork, &info);
    check(info);
}
static void qr(problem *p, int at) {
    int info;
    geqrf(p, at);
    memcpy(p->other, p->matrix, (size_t)(p->n * p->n * p->element));
    ((void (*)(int *, int *, int *, void *, int *, void *, void *, int *, int *))routine_of(p, "orgqr"))(
        &p->n, &p->n, &p->n, p->matrix, &p->n, p->values, p->work, &p->nwork, &info);
    check(info);
}
static void sytrf(problem *p, int at) {
    int info;
    copy_in(p, p->matrix, p->any, at);
    ((void (*)(const char *, int *, void *, int *, int *, void *, int *, int *))routine_of(p, "sytrf"))(
        "L", &p->n, p->matrix, &p->n, p->whole, p->work, &p->nwork, &info);
    check(info);
}
static void syevd(problem *p, int at, const char *vectors) {
    int info;
    copy_in(p, p->matrix, p->positive, at);
    ((void (*)(const char *, const char *, int *, void *, int *, void *, void *, int *, int *, int *, int *))routine_of(
        p, "syevd"))(vectors, "L", &p->n, p->matrix, &p->n, p->values, p->work, &p->nwork, p->whole, &p->nwhole, &info);
    check(info);
}
static void eigh(problem *p, int at) { syevd(p, at, "V"); }
static void eigvalsh(problem *p, int at) { syevd(p, at, "N"); }
static void gesdd(problem *p, int at, const char *vectors) {
    int info;
    copy_in(p, p->matrix, p->any, at);
    ((void (*)(const char *, int *, int *, void *, int *, void *, void *, int *, void *, int *, void *, int *, int *,
               int *))routine_of(p, "gesdd"))(vectors, &p->n, &p->n, p->matrix, &p->n, p->values, p->other, &p->n,
                                              p->left, &p->n, p->work, &p->nwork, p->whole, &info);
    check(info);
}
static void svd(problem *p, int at) { gesdd(p, at, "S"); }
static void svdvals(problem *p, int at) { gesdd(p, at, "N"); }
static void geev(problem *p, int at, const char *vectors) {
    int info;
    copy_in(p, p->matrix, p->any, at);
    ((void (*)(const char *, const char *, int *, void *, int *, void *, void *, void *, int *, void *, int *, void *,
               int *, int *))routine_of(p, "geev"))("N", vectors, &p->n, p->matrix, &p->n, p->values,
                                                    p->values + p->n * 8, p->other, &p->n, p->left, &p->n, p->work,
                                                    &p->nwork, &info);
    check(info);
}
static void eig(problem *p, int at) { geev(p, at, "V"); }
static void eigvals(problem *p, int at) { geev(p, at, "N"); }
static void gels(problem *p, int at) {
    int info, columns = COLUMNS, half = p->n / 2;
    copy_in(p, p->matrix, p->tall, at);
    copy_in(p, p->other, p->tall_right, at);
    ((void (*)(const char *, int *, int *, int *, void *, int *, void *, int *, void *, int *, int *))routine_of(
        p, "gels"))("N", &p->n, &half, &columns, p->matrix, &p->n, p->other, &p->n, p->work, &p->nwork, &info);
    check(info);
}
static void gelsy(problem *p, int at) {
    int info, columns = COLUMNS, half = p->n / 2, rank;
    double least = p->element == 8 ? 1e-13 : 0;
    const float single = 1e-5f;
    if (p->element == 4) { memcpy(&least, &single, sizeof single); }
    copy_in(p, p->matrix, p->tall, at);
    copy_in(p, p->other, p->tall_right, at);
    memset(p->whole, 0, (size_t)p->n * sizeof(int));
    ((void (*)(int *, int *, int *, void *, int *, void *, int *, int *, void *, int *, void *, int *, int *))routine_of(
        p, "gelsy"))(&p->n, &half, &columns, p->matrix, &p->n, p->other, &p->n, p->whole, &least, &rank, p->work,
                     &p->nwork, &info);
    check(info);
}
static void gelsd(problem *p, int at) {
    int info, columns = COLUMNS, half = p->n / 2, rank;
    double least = p->element == 8 ? 1e-13 : 0;
    const float single = 1e-5f;
    if (p->element == 4) { memcpy(&least, &single, sizeof single); }
    copy_in(p, p->matrix, p->tall, at);
    copy_in(p, p->other, p->tall_right, at);
    ((void (*)(int *, int *, int *, void *, int *, void *, int *, void *, void *, int *, void *, int *, int *,
               int *))routine_of(p, "gelsd"))(&p->n, &half, &columns, p->matrix, &p->n, p->other, &p->n, p->values,
                                              &least, &rank, p->work, &p->nwork, p->whole, &info);
    check(info);
}

//-- ours ---------------------------------------------------------------------------------------------------------------

static void our_cholesky(problem *p) { opd_linalg_cholesky(p->positive); }
static void our_lu(problem *p) {
    opd_tensor *rets[2];
    opd_linalg_lu_factor(rets, p->any);
}
static void our_geqrf(problem *p) {
    opd_tensor *rets[2];
    opd_geqrf(rets, p->any);
}
static void our_qr(problem *p) {
    opd_tensor *rets[2];
    opd_linalg_qr(rets, p->any);
}
static void our_ldl(problem *p) {
    opd_tensor *rets[2];
    opd_linalg_ldl_factor(rets, p->any);
}
static void our_eigh(problem *p) {
    opd_tensor *rets[2];
    opd_linalg_eigh(rets, p->positive);
}
static void our_eigvalsh(problem *p) { opd_linalg_eigvalsh(p->positive); }
static void our_svd(problem *p) {
    opd_tensor *rets[3];
    opd_linalg_svd_full(rets, p->any, false, NULL);
}
static void our_svdvals(problem *p) { opd_linalg_svdvals(p->any); }
static void our_eig(problem *p) {
    opd_tensor *rets[2];
    opd_linalg_eig(rets, p->any);
}
static void our_eigvals(problem *p) { opd_linalg_eigvals(p->any); }
static void our_solve(problem *p) { opd_linalg_solve(p->any, p->right); }
static void our_inverse(problem *p) { opd_linalg_inv(p->any); }
static void our_lu_solve(problem *p) { opd_linalg_lu_solve(p->factors, p->pivots, p->right); }
static void our_cholesky_solve(problem *p) { opd_cholesky_solve(p->right, p->lower); }
static void our_triangle(problem *p) { opd_linalg_solve_triangular(p->lower, p->right, false); }
static void our_lstsq(problem *p, const char *driver) {
    opd_tensor *rets[4];
    opd_linalg_lstsq_full(rets, p->tall, p->tall_right, OPD_NONE, driver);
}
static void our_gels(problem *p) { our_lstsq(p, "gels"); }
static void our_gelsy(problem *p) { our_lstsq(p, "gelsy"); }
static void our_gelsd(problem *p) { our_lstsq(p, "gelsd"); }

//-- the table ----------------------------------------------------------------------------------------------------------

typedef struct row {
    const char *name, *peer;
    void (*ours)(problem *p);
    void (*theirs)(problem *p, int at);
} row;
static const row rows[] = {
    {"linalg_cholesky", "potrf", our_cholesky, potrf},
    {"linalg_lu_factor", "getrf", our_lu, getrf},
    {"geqrf", "geqrf", our_geqrf, geqrf},
    {"linalg_qr", "geqrf, orgqr", our_qr, qr},
    {"linalg_ldl_factor", "sytrf", our_ldl, sytrf},
    {"linalg_eigh", "syevd", our_eigh, eigh},
    {"linalg_eigvalsh", "syevd", our_eigvalsh, eigvalsh},
    {"linalg_svd", "gesdd", our_svd, svd},
    {"linalg_svdvals", "gesdd", our_svdvals, svdvals},
    {"linalg_eig", "geev", our_eig, eig},
    {"linalg_eigvals", "geev", our_eigvals, eigvals},
    {"linalg_solve", "getrf, getrs", our_solve, gesv},
    {"linalg_inv", "getrf, getri", our_inverse, inverse},
    {"linalg_lu_solve", "getrs", our_lu_solve, getrs},
    {"cholesky_solve", "potrs", our_cholesky_solve, potrs},
    {"linalg_solve_triangular", "trtrs", our_triangle, trtrs},
    {"linalg_lstsq, gels", "gels", our_gels, gels},
    {"linalg_lstsq, gelsy", "gelsy", our_gelsy, gelsy},
    {"linalg_lstsq, gelsd", "gelsd", our_gelsd, gelsd},
};
enum { NROWS = (int)(sizeof rows / sizeof *rows) };

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
/* Measures one row for one problem: the medians of both sides, which take turns.  A round is long enough for the
   clock. */
static void measure(const row *r, problem *p, int rounds, double *ours, double *theirs) {
    double all[2][ROUNDS];
    for (int round = -1; round < rounds; round++) {
        double start = now();
        int count = 0;
        do { OPD_SCOPE { r->ours(p); } } while (++count < 50 && now() - start < 2000);
        stop_on_error(r->name);
        if (round >= 0) { all[0][round] = (now() - start) / (count * p->batch); }
        start = now();
        count = 0;
        do { for (int at = 0; lapack && at < p->batch; at++) { r->theirs(p, at); } }
        while (++count < 50 && now() - start < 2000);
        if (round >= 0) { all[1][round] = (now() - start) / (count * p->batch); }
    }
    for (int side = 0; side < 2; side++) { qsort(all[side], (size_t)rounds, sizeof(double), compare); }
    *ours = all[0][rounds / 2];
    *theirs = all[1][rounds / 2];
}
static void print_row(const row *r, double figures[2][2], bool markdown) {
    printf(markdown ? "| %s | %s" : "%-24s %-13s", r->name, r->peer);
    for (int i = 0; i < 2; i++) {
        const double ours = figures[i][0], theirs = figures[i][1];
        printf(markdown ? " | %.*f" : " %10.*f", ours < 100 ? 2 : 0, ours);
        if (!lapack) {
            printf(markdown ? " | |" : " %10s %7s", "", "");
            continue;
        }
        printf(markdown ? " | %.*f | %.2f%s" : " %10.*f %6.2f%s", theirs < 100 ? 2 : 0, theirs, ours / theirs,
               ours / theirs > (i ? 3 : 1.5) ? markdown ? ", **missed**" : "!" : markdown ? "" : " ");
    }
    printf(markdown ? " |\n" : "\n");
    fflush(stdout);
}
static void table(opd_scalar_type dtype, const char *filter, int rounds, bool markdown) {
    problem small, big;
    problem_make(&small, SMALL, BATCH, dtype);
    problem_make(&big, large, 1, dtype);
    if (markdown) {
        printf("\n| %s | LAPACK routine | n = %d here, us | LAPACK, us | ratio (at most 1.5) | n = %d here, us | LAPACK, us | "
               "ratio (at most 3) |\n|---|---|---|---|---|---|---|---|\n", opd_dtype_name(dtype), SMALL, large);
    } else {
        printf("\n%-38s n = %-7d   LAPACK  ratio  n = %-7d   LAPACK  ratio   (us; at most 1.5, at most 3)\n",
               opd_dtype_name(dtype), SMALL, large);
    }
    for (int i = 0; i < NROWS; i++) {
        double figures[2][2];
        if (!strstr(rows[i].name, filter)) { continue; }
        measure(&rows[i], &small, rounds, &figures[0][0], &figures[0][1]);
        measure(&rows[i], &big, rounds, &figures[1][0], &figures[1][1]);
        print_row(&rows[i], figures, markdown);
    }
    problem_free(&small);
    problem_free(&big);
}
int main(int argc, char **argv) {
    static const char help[] = "bench_linalg [--quick] [--filter TEXT] [--lapack FILE] [--markdown] [--help]\n"
        "  --quick        fewer rounds, and matrices of 64 x 64 instead of 512 x 512\n"
        "  --filter TEXT  only rows whose name contains TEXT\n"
        "  --lapack FILE  the shared library that contains LAPACK\n"
        "  --markdown     prints Markdown, as in bench/tables\n";
    const char *filter = "", *path = NULL;
    int rounds = ROUNDS;
    bool markdown = false;
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--quick")) {
            rounds = 3;
            large = 64;
        } else if (!strcmp(argv[i], "--markdown")) {
            markdown = true;
        } else if (!strcmp(argv[i], "--filter") && more) {
            filter = argv[++i];
        } else if (!strcmp(argv[i], "--lapack") && more) {
            path = argv[++i];
        } else {
            fputs(help, strcmp(argv[i], "--help") ? stderr : stdout);
            return strcmp(argv[i], "--help") != 0;
        }
    }
    opd_threads_set(1);
    lapack_load(path);
    OPD_SCOPE {
        table(OPD_FLOAT32, filter, rounds, markdown);
        table(OPD_FLOAT64, filter, rounds, markdown);
    }
    return opd_finish();
}
