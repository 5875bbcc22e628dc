/* What Fourier transforms, special functions and complex numbers cost, beside PyTorch on the same numbers, in one run.
   cc -O2 bench/functions.c -o bench_functions -lm -lpthread
   ./bench_functions [--quick] [--filter TEXT] [--python PATH] [--markdown] [--worst N] [--help]
   ci: --filter 1009

   All on one thread, warm, in microseconds of that thread's time for one call; medians of rounds, in which both sides
   take turns.  PyTorch is asked by bench/peers/torch_functions.py, which PATH runs (python3); where that has no PyTorch
   its columns stay empty.  PyTorch's time has Python's call in it, about a microsecond, which counts at 1,024 elements
   and nowhere else.  Results are compared: a row that differs says by how much.  Compare only ratios taken in one run:
   clocks float. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

//-- rows ---------------------------------------------------------------------------------------------------------------

enum { ROUNDS = 7, MAX_RESULTS = 2048 };
/* inputs, a letter for each argument: n normal numbers, w ten times as wide, p from 0 to 20, q from 1 to 20, u in (0, 1),
   s in (-1, 1), d whole numbers from 0 to 8, 2 the number itself; upper case: complex. */
typedef struct row { const char *name, *inputs; } row;
static const row functions[] = {
    {"lgamma", "p"}, {"lgamma", "w"}, {"digamma", "p"}, {"digamma", "w"}, {"polygamma", "2p"}, {"erf", "n"}, {"erfc", "n"},
    {"erfinv", "s"}, {"special_erfcx", "w"}, {"i0", "w"}, {"special_i0e", "w"}, {"special_i1", "w"},
    {"special_i1e", "w"}, {"special_gammainc", "pp"}, {"special_gammaincc", "pp"}, {"special_zeta", "qp"},
    {"special_ndtr", "n"}, {"special_ndtri", "u"}, {"special_log_ndtr", "w"}, {"special_entr", "p"},
    {"special_xlog1py", "np"}, {"special_xlogy", "np"}, {"special_expit", "n"}, {"logit", "u"}, {"sinc", "w"},
    {"special_bessel_j0", "w"}, {"special_bessel_j1", "w"}, {"special_bessel_y0", "p"}, {"special_bessel_y1", "p"},
    {"special_modified_bessel_i0", "w"}, {"special_modified_bessel_i1", "w"}, {"special_modified_bessel_k0", "p"},
    {"special_modified_bessel_k1", "p"}, {"special_scaled_modified_bessel_k0", "p"},
    {"special_scaled_modified_bessel_k1", "p"}, {"special_spherical_bessel_j0", "w"}, {"special_airy_ai", "w"},
    {"special_chebyshev_polynomial_t", "sd"}, {"special_chebyshev_polynomial_u", "sd"},
    {"special_chebyshev_polynomial_v", "sd"}, {"special_chebyshev_polynomial_w", "sd"},
    {"special_shifted_chebyshev_polynomial_t", "ud"}, {"special_hermite_polynomial_h", "nd"},
    {"special_hermite_polynomial_he", "nd"}, {"special_laguerre_polynomial_l", "nd"},
    {"special_legendre_polynomial_p", "sd"},
};
static const row complexes[] = {
    {"add", "NN"}, {"sub", "NN"}, {"mul", "NN"}, {"mul", "Nn"}, {"div", "NN"}, {"reciprocal", "N"}, {"square", "N"},
    {"neg", "N"}, {"conj_physical", "N"}, {"abs", "N"}, {"angle", "N"}, {"sgn", "N"}, {"exp", "N"}, {"log", "N"},
    {"sqrt", "N"}, {"rsqrt", "N"}, {"sin", "N"}, {"cos", "N"}, {"tanh", "N"}, {"asin", "N"}, {"atan", "N"},
    {"pow", "NN"}, {"sigmoid", "N"}, {"eq", "NN"}, {"sum", "N"}, {"mean", "N"}, {"prod", "U"}, {"complex", "nn"},
    {"polar", "pn"}, {"view_as_real", "N"}, {"view_as_complex", "n"}, {"clone", "N"}, {"dot", "NN"}, {"vdot", "NN"},
};
static const row transforms[] = {
    {"fft_fft", "N"}, {"fft_ifft", "N"}, {"fft_rfft", "n"}, {"fft_irfft", "N"}, {"fft_hfft", "N"}, {"fft_ihfft", "n"},
};
static const row transforms_2d[] = {{"fft_fft2", "N"}, {"fft_rfft2", "n"}, {"fft_irfft2", "N"}, {"fft_fftn", "N"}};
static const row products[] = {{"matmul", "NN"}, {"matmul", "nn"}};
static const int64_t lengths[][2] = {
    {1, 1024}, {1, 1000}, {1, 1009}, {1, 3072}, {1, 6000}, {1, 16384}, {1, 65536}, {1, 65537}, {1, 98304}, {1, 1 << 20},
    {1, 1000000}, {64, 1024}, {1024, 64}, {64, 1000}, {64, 1009},
};
static const int64_t planes[][2] = {{64, 64}, {256, 256}, {1000, 1000}, {1024, 1024}};
static const int64_t squares[][2] = {{32, 32}, {128, 128}, {512, 512}};
static const int64_t sizes[][2] = {{0, 1024}, {0, 65536}, {0, 1 << 20}};

typedef struct group {
    const char *name;
    const row *rows;
    int nrows;
    const int64_t (*sizes)[2];                    /* rows and columns; without rows one dim */
    int nsizes;
    double most;                                  /* times PyTorch's time */
} group;
#define GROUP(name, rows, sizes, most) \
    {name, rows, (int)(sizeof rows / sizeof *rows), sizes, (int)(sizeof sizes / sizeof *sizes), most}
static const group groups[] = {
    GROUP("transforms", transforms, lengths, 3), GROUP("transforms of planes", transforms_2d, planes, 3),
    GROUP("functions", functions, sizes, 1.3), GROUP("complex numbers", complexes, sizes, 1.3),
    GROUP("complex products", products, squares, 1.3),
};
enum { NGROUPS = (int)(sizeof groups / sizeof *groups) };

/* A measured row. */
typedef struct result { char name[64], shape[32]; double ours, theirs, most, error; } result;
static result results[MAX_RESULTS];
static int nresults;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
static void stop_on_error(const char *where) {
    if (opd_ok()) { return; }
    fprintf(stderr, "%s: %s\n", where, opd_error_message());
    exit(1);
}

//-- PyTorch ------------------------------------------------------------------------------------------------------------

static FILE *to_peer, *from_peer;
static pid_t peer;
static char folder[] = "/tmp/bench_functions_XXXXXX", answer[400];

/* Asks and reads one line into `answer`; without PyTorch false. */
static bool peer_ask(const char *question) {
    if (!to_peer) { return false; }
    fprintf(to_peer, "%s\n", question);
    fflush(to_peer);
    if (!fgets(answer, sizeof answer, from_peer)) {
        fprintf(stderr, "the peer has ended\n");
        exit(1);
    }
    return strncmp(answer, "failed", 6) != 0;
}
static void peer_start(const char *python) {
    int down[2], up[2];
    if (!mkdtemp(folder) || pipe(down) || pipe(up) || (peer = fork()) < 0) {
        perror("pipes");
        exit(1);
    }
    if (peer == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[1]);
        close(up[0]);
        execlp(python, python, "bench/peers/torch_functions.py", (char *)NULL);
        _exit(1);
    }
    close(down[0]);
    close(up[1]);
    to_peer = fdopen(down[1], "w");
    from_peer = fdopen(up[0], "r");
    if (fgets(answer, sizeof answer, from_peer)) {
        printf("%s", answer);
        return;
    }
    fprintf(stderr, "no PyTorch: its columns stay empty\n");
    fclose(to_peer);
    to_peer = NULL;
}
static void peer_end(void) {
    char path[64];
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%d.npy", folder, i);
        remove(path);
    }
    rmdir(folder);
    if (to_peer) { fclose(to_peer); }
    waitpid(peer, NULL, 0);
}

//-- measuring ----------------------------------------------------------------------------------------------------------

/* An argument that `letter` describes, of rows x columns numbers, or of as many as one dim where rows is 0. */
static opd_tensor *argument(char letter, int64_t rows, int64_t columns, opd_scalar_type dtype) {
    const bool pairs = letter >= 'A' && letter <= 'Z';
    const int64_t list[3] = {rows, columns, 2};
    const opd_ints shape = opd_ints_of(list + (rows ? 0 : 1), (rows ? 2 : 1) + pairs);
    const char kind = pairs ? (char)(letter + 32) : letter;
    opd_tensor *x = kind == 'n' || kind == 'w' ? opd_randn(shape, dtype) : opd_rand(shape, dtype);
    switch (kind) {
    case 'w': x = opd_mul_Scalar(x, OPD_V(10)); break;
    case 'p': x = opd_add_Scalar(opd_mul_Scalar(x, OPD_V(20)), OPD_V(0.01)); break;
    case 'q': x = opd_add_Scalar(opd_mul_Scalar(x, OPD_V(19)), OPD_V(1.01)); break;
    case 's': x = opd_sub_Scalar(opd_mul_Scalar(x, OPD_V(2)), OPD_V(1)); break;
    case 'd': x = opd_floor(opd_mul_Scalar(x, OPD_V(9))); break;
    default: break;
    }
    return pairs ? opd_view_as_complex(x) : x;
}
/* The greatest difference of two results, over the greatest number of theirs. */
static double difference(opd_tensor *ours, opd_tensor *theirs) {
    if (opd_is_complex(ours).u.i) {
        ours = opd_view_as_real(opd_contiguous(ours));
        theirs = opd_view_as_real(theirs);
    }
    ours = opd_nan_to_num_full(opd_to_dtype(ours, OPD_FLOAT64), OPD_V(0), OPD_V(0), OPD_V(0));
    theirs = opd_nan_to_num_full(opd_to_dtype(theirs, OPD_FLOAT64), OPD_V(0), OPD_V(0), OPD_V(0));
    opd_tensor *away = opd_abs(opd_sub(ours, theirs)), *scale = opd_abs(theirs);
    stop_on_error("results");
    return opd_item(opd_max(away)).u.d / fmax(opd_item(opd_max(scale)).u.d, 1e-300);
}
/* Has PyTorch call the function on the same arguments and compares; NAN without it. */
static double peer_call(const row *r, opd_tensor *const *args, int nargs, opd_tensor *ours) {
    char question[400], path[64];
    int at = snprintf(question, sizeof question, "call %s/2.npy %s", folder, r->name);
    for (int i = 0; i < nargs && to_peer; i++) {
        snprintf(path, sizeof path, "%s/%d.npy", folder, i);
        if (args[i]) { opd_npy_save(path, args[i]); }
        at += snprintf(question + at, sizeof question - (size_t)at, " %s", args[i] ? path : "2");
    }
    if (!peer_ask(question)) {
        if (to_peer) { fprintf(stderr, "%s: %s", r->name, answer); }
        return NAN;
    }
    snprintf(path, sizeof path, "%s/2.npy", folder);
    return difference(ours, opd_npy_load(path));
}
static double our_time(opd_overloads *overloads, const opd_value *args, int nargs, int count) {
    const double start = now();
    for (int i = 0; i < count; i++) {
        opd_value value;
        OPD_SCOPE { opd_overloads_call(overloads, &value, args, nargs, NULL, 0); }
    }
    return (now() - start) / count;
}
/* Measures a row at one size in turns; a round is long enough for the clock. */
static void measure(const row *r, const group *in, const int64_t *size, opd_scalar_type dtype, int rounds) {
    result *to = &results[nresults];
    const int nargs = (int)strlen(r->inputs);
    const char *name = !strcmp(r->name, "special_gammainc") ? "igamma" : !strcmp(r->name, "special_gammaincc")
        ? "igammac" : !strcmp(r->name, "special_expit") ? "sigmoid" : r->name;
    char full[80], question[40];
    double all[2][ROUNDS];
    opd_tensor *tensors[2] = {NULL, NULL};
    opd_value args[2], value;
    for (int i = 0; i < nargs; i++) {
        if (r->inputs[i] == '2') {
            args[i] = OPD_V(2);
            continue;
        }
        tensors[i] = argument(r->inputs[i], size[0], size[1], dtype);
        args[i] = opd_value_tensor(tensors[i]);
    }
    if (!strcmp(r->name, "view_as_complex")) { args[0] = opd_value_tensor(tensors[0] = opd_view(tensors[0], OPD_INTS(-1, 2))); }
    stop_on_error("arguments");
    snprintf(full, sizeof full, "aten::%s", name);
    opd_overloads *overloads = opd_overloads_find(full);
    opd_overloads_call(overloads, &value, args, nargs, NULL, 0);
    stop_on_error(r->name);
    to->error = peer_call(r, tensors, nargs, value.u.t);
    const double once = our_time(overloads, args, nargs, 3);
    const int count = (int)fmax(1, fmin(2000, 2000 / once));
    snprintf(question, sizeof question, "time %d", count);
    for (int round = -1; round < rounds; round++) {
        all[0][round < 0 ? 0 : round] = our_time(overloads, args, nargs, count);
        all[1][round < 0 ? 0 : round] = peer_ask(question) ? atof(answer) : 0;
    }
    for (int side = 0; side < 2; side++) { qsort(all[side], (size_t)rounds, sizeof(double), compare); }
    to->ours = all[0][rounds / 2];
    to->theirs = all[1][rounds / 2];
    to->most = in->most;
    snprintf(to->name, sizeof to->name, "%s%s", r->name, !strcmp(r->inputs, "w") ? ", wide" : !strcmp(r->inputs, "Nn")
             ? ", by real" : "");
    snprintf(to->shape, sizeof to->shape, size[0] > 1 ? "%lldx%lld %s" : "%.0lld%lld %s",
             (long long)(size[0] > 1 ? size[0] : 0), (long long)size[1],
             opd_dtype_name(tensors[nargs - 1] ? opd_dtype(tensors[nargs - 1]) : dtype));
}
static double ratio(const result *r) { return r->theirs > 0 ? r->ours / r->theirs : 0; }
static bool wrong(const result *r) { return r->error > (strstr(r->shape, "64") && (strstr(r->shape, "float64")) ? 1e-10 : 1e-4); }
static void print_row(const result *r, bool markdown) {
    printf(markdown ? "| %s | %s | %.*f |" : "%-42s %-24s %11.*f", r->name, r->shape, r->ours < 100 ? 2 : 0, r->ours);
    if (r->theirs > 0) {
        printf(markdown ? " %.*f | %.2f%s |" : " %11.*f %6.2f%s", r->theirs < 100 ? 2 : 0, r->theirs, ratio(r),
               ratio(r) <= r->most ? "" : markdown ? ", **missed**" : "!");
    } else if (markdown) { printf(" | |"); }
    if (wrong(r)) { printf(" differs by %.1e", r->error); }
    printf("\n");
    fflush(stdout);
}
static void print_heading(const char *name, bool markdown) {
    if (markdown) { printf("\n| %s | of | here, us | PyTorch, us | ratio |\n|---|---|---|---|---|\n", name); }
    else { printf("\n%-67s %11s %11s  ratio\n", name, "here, us", "PyTorch, us"); }
}
static int compare_ratios(const void *a, const void *b) {
    const double x = ratio((const result *)a) / ((const result *)a)->most;
    const double y = ratio((const result *)b) / ((const result *)b)->most;
    return x > y ? -1 : x < y;
}
static void run_group(const group *in, const char *filter, bool quick, bool markdown) {
    const int before = nresults;
    for (int i = 0; i < in->nrows; i++) {
        for (int k = 0; k < in->nsizes * 2; k++) {
            const int64_t *size = in->sizes[k / 2];
            if (nresults == MAX_RESULTS) { continue; }
            if (!strstr(in->rows[i].name, filter) && !strstr(in->name, filter)) { continue; }
            if (quick && size[1] * (size[0] + 1) > 10000) { continue; }
            OPD_SCOPE { measure(&in->rows[i], in, size, k % 2 ? OPD_FLOAT64 : OPD_FLOAT32, quick ? 3 : ROUNDS); }
            if (nresults == before) { print_heading(in->name, markdown); }
            print_row(&results[nresults++], markdown);
        }
    }
}
/* How many rows of each group hold, and the worst. */
static void print_summary(int worst, bool markdown) {
    int held = 0;
    for (int i = 0; i < nresults; i++) { held += ratio(&results[i]) <= results[i].most; }
    qsort(results, (size_t)nresults, sizeof *results, compare_ratios);
    print_heading("the worst", markdown);
    for (int i = 0; i < worst && i < nresults; i++) { print_row(&results[i], markdown); }
    printf("\n%d of %d rows hold\n", held, nresults);
}
int main(int argc, char **argv) {
    static const char help[] = "bench_functions [--quick] [--filter TEXT] [--python PATH] [--markdown] [--worst N] "
        "[--help]\n"
        "  --quick        few rounds, small sizes\n"
        "  --filter TEXT  the rows whose name or group contains TEXT\n"
        "  --python PATH  a Python that has PyTorch\n"
        "  --markdown     the tables as bench/README.md has them\n"
        "  --worst N      so many rows at the end, 10\n";
    const char *filter = "", *python = "python3";
    bool quick = false, markdown = false;
    int worst = 10;
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--quick")) {
            quick = true;
        } else if (!strcmp(argv[i], "--markdown")) {
            markdown = true;
        } else if (!strcmp(argv[i], "--filter") && more) {
            filter = argv[++i];
        } else if (!strcmp(argv[i], "--python") && more) {
            python = argv[++i];
        } else if (!strcmp(argv[i], "--worst") && more) {
            worst = atoi(argv[++i]);
        } else {
            fputs(help, strcmp(argv[i], "--help") ? stderr : stdout);
            return strcmp(argv[i], "--help") != 0;
        }
    }
    opd_threads_set(1);
    peer_start(python);
    for (int i = 0; i < NGROUPS; i++) { run_group(&groups[i], filter, quick, markdown); }
    if (to_peer) { print_summary(worst, markdown); }
    peer_end();
    return opd_finish();
}
