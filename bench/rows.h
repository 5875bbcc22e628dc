/* A framework for benchmarks whose rows are expressions.  Each expression is run here as TorchScript, and by PyTorch in
   another process, on the same tensors.  A program consists of a table of rows and a call of bench_main:

       static const bench_row rows[] = {
           {"reductions", "sum over columns", "f32 4096,1024", "torch.sum(a, 0)", 0},
           {"losses", "gelu, forward and backward", "f32 1024,1024", "F.gelu(a)", BENCH_GRAD}};
       int main(int argc, char **argv) { return bench_main(argc, argv, rows, sizeof rows / sizeof *rows); }

   The tensors of a row are named a, b, c and so on.  For each tensor, a row gives the dtype (f64 f32 f16 bf16 i64 i32
   i16 i8 u8 bool c64 c128), the sizes, and the distribution of the elements: nothing for the standard normal
   distribution, w for standard deviation 10, + for positive numbers, u for (0, 1), s for (-1, 1), p for (0, 20), q for
   (1, 20), <N for whole numbers below N.
   bench/peers/torch_rows.py runs the expressions in PyTorch.  A time is the median of several rounds, in which both
   sides take turns.  It is processor time if one thread is used, and wall-clock time otherwise.  Before each
   measurement, a side makes the same calls for 3 ms, which are not measured.  Before a row is measured, the results of
   both sides are compared. */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "peer.h"

enum { BENCH_GRAD = 1, BENCH_LOOSE = 2 /* BENCH_LOOSE: results may differ by 1e-4, and doubles by 1e-9 */ };
enum { BENCH_ROUNDS = 15, BENCH_ARGS = 6, BENCH_WORST = 10 };
/* How long each side makes calls before each measurement.  After a pause, the first calls take longer: on an AMD EPYC
   (Zen 5), up to three times as long for about 2 ms. */
#define BENCH_WARM_US 3000.0

typedef struct bench_row {
    const char *section, *name, *inputs, *expression;
    int flags;
} bench_row;
/* The times of a row.  theirs is 0 if there is no peer. */
typedef struct bench_figures {
    const bench_row *row;
    double ours, theirs, gigabytes, difference;
    bool agrees;
} bench_figures;
/* The options, and PyTorch's process. */
typedef struct bench_run {
    const char *filter, *python;
    int threads, rounds;
    double round_us;
    bool quick, markdown;
    bench_peer peer;
} bench_run;
/* One row while it is measured. */
typedef struct bench_case {
    const bench_row *row;
    opd_script *script;
    opd_tensor *args[BENCH_ARGS], *wanted[BENCH_ARGS], *grad;
    int nargs, nwanted;
    int64_t bytes;
} bench_case;

//-- tensors and expressions --------------------------------------------------------------------------------------------

static opd_scalar_type bench_dtype(const char *name) {
    static const struct { const char *name; opd_scalar_type dtype; } known[] = {
        {"f64", OPD_FLOAT64}, {"f32", OPD_FLOAT32}, {"f16", OPD_FLOAT16}, {"bf16", OPD_BFLOAT16}, {"i64", OPD_INT64},
        {"i32", OPD_INT32}, {"i16", OPD_INT16}, {"i8", OPD_INT8}, {"u8", OPD_UINT8}, {"bool", OPD_BOOL},
        {"c64", OPD_COMPLEX64}, {"c128", OPD_COMPLEX128}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!strcmp(known[i].name, name)) { return known[i].dtype; }
    }
    bench_stop(name, "no dtype of rows");
    return OPD_FLOAT32;
}
/* Reads the sizes at the beginning of a text, such as "2,3".  Returns their number. */
static int bench_sizes(const char *text, int64_t *sizes) {
    int ndim = 0;
    for (char *end; *text >= '0' && *text <= '9' && ndim < 8; text = *end == ',' ? end + 1 : end) {
        sizes[ndim++] = strtoll(text, &end, 10);
    }
    return ndim;
}
static opd_tensor *bench_tensor(const char *spec) {
    char name[8] = "", shape[64] = "", kind[24] = "";
    int64_t sizes[8];
    opd_ints ints;
    opd_tensor *made;
    if (sscanf(spec, " %7s %63s %23[^ ;]", name, shape, kind) < 2) { bench_stop(spec, "no tensor"); }
    ints.data = sizes;
    ints.n = bench_sizes(shape, sizes);
    if (kind[0] == '<') { made = opd_randint(atoll(kind + 1), ints, OPD_INT64); }
    else if (kind[0] == 'u') { made = opd_rand(ints, OPD_FLOAT64); }
    else if (kind[0] == 's') { made = opd_sub_Scalar(opd_mul_Scalar(opd_rand(ints, OPD_FLOAT64), OPD_V(2)), OPD_V(1)); }
    else if (kind[0] == 'p') { made = opd_mul_Scalar(opd_rand(ints, OPD_FLOAT64), OPD_V(20)); }
    else if (kind[0] == 'q') { made = opd_add_Scalar(opd_mul_Scalar(opd_rand(ints, OPD_FLOAT64), OPD_V(19)), OPD_V(1)); }
    else if (kind[0] == 'w') { made = opd_mul_Scalar(opd_randn(ints, OPD_FLOAT64), OPD_V(10)); }
    else if (name[0] == 'c') { made = opd_randn(ints, OPD_COMPLEX128); }
    else if (kind[0] == '+') { made = opd_add_Scalar(opd_abs(opd_randn(ints, OPD_FLOAT64)), OPD_V(0.01)); }
    else { made = opd_randn(ints, OPD_FLOAT64); }
    made = opd_contiguous(opd_to_dtype(made, bench_dtype(name)));
    if (!opd_ok()) { bench_stop(spec, opd_error_message()); }
    return made;
}
static void bench_open(bench_case *one, const bench_row *row) {
    char source[600], list[BENCH_ARGS * 3] = "";
    const char *spec = row->inputs;
    memset(one, 0, sizeof *one);
    one->row = row;
    for (; spec; spec = strchr(spec, ';') ? strchr(spec, ';') + 1 : NULL) {
        if (one->nargs == BENCH_ARGS) { bench_stop(row->inputs, "too many tensors"); }
        opd_tensor *made = bench_tensor(spec);
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%c", one->nargs ? ", " : "", 'a' + one->nargs);
        one->bytes += opd_numel(made) * (int64_t)opd_dtype_size(opd_dtype(made));
        if (row->flags & BENCH_GRAD && opd_dtype_is_floating(opd_dtype(made))) {
            one->wanted[one->nwanted++] = opd_tensor_set_requires_grad(made, true);
        }
        one->args[one->nargs++] = made;
    }
    snprintf(source, sizeof source, "def f(%s):\n    return %s\n", list, row->expression);
    one->script = opd_script_compile(source, row->name);
    if (!opd_ok()) { bench_stop(row->name, opd_error_message()); }
}
/* The gradient of a result: the cosines of 0, 1, 2 and so on. */
static opd_tensor *bench_gradient(opd_tensor *of) {
    opd_tensor *numbers = opd_cos(opd_arange(OPD_V(opd_numel(of)), OPD_FLOAT64));
    return opd_view(opd_to_dtype(numbers, opd_dtype(of)), opd_ints_of(opd_sizes(of), opd_ndim(of)));
}
/* Runs the expression once.  With BENCH_GRAD, also computes the gradients of its tensors, and returns the first one. */
static opd_tensor *bench_call(bench_case *one) {
    opd_value args[BENCH_ARGS], result;
    opd_tensor *grads[BENCH_ARGS];
    opd_backward_options options;
    for (int i = 0; i < one->nargs; i++) { args[i] = opd_value_tensor(one->args[i]); }
    if (opd_script_run(one->script, "f", args, one->nargs, &result) || result.tag != OPD_TAG_TENSOR) { return NULL; }
    if (!one->nwanted) { return result.u.t; }
    if (!one->grad) { one->grad = bench_gradient(result.u.t); }
    memset(&options, 0, sizeof options);
    options.grad_outputs = &one->grad;
    return opd_autograd_grad(&result.u.t, 1, one->wanted, one->nwanted, &options, grads) ? NULL : grads[0];
}

//-- PyTorch in another process ----------------------------------------------------------------------------------------

static void bench_ask(bench_run *run, char *line, int size) {
    if (!bench_answer(&run->peer, line, size)) { bench_stop("bench/peers/torch_rows.py", "ended before its time"); }
}
static bool bench_send(bench_run *run, const bench_case *one) {
    char line[300];
    for (int i = 0; i < one->nargs; i++) {
        const opd_tensor *t = one->args[i];
        const size_t bytes = (size_t)opd_numel(t) * opd_dtype_size(opd_dtype(t));
        fprintf(run->peer.to, "tensor %c %s ", 'a' + i, opd_dtype_name(opd_dtype(t)));
        for (int d = 0; d < opd_ndim(t); d++) { fprintf(run->peer.to, "%s%lld", d ? "," : "", (long long)opd_size(t, d)); }
        fprintf(run->peer.to, " %zu\n", bytes);
        fwrite(opd_data(t), 1, bytes, run->peer.to);
    }
    fprintf(run->peer.to, "row %s %s\n", one->row->flags & BENCH_GRAD ? "grad" : "plain", one->row->expression);
    bench_ask(run, line, sizeof line);
    if (strcmp(line, "ok")) { fprintf(stderr, "%s: PyTorch: %s\n", one->row->name, line); }
    return !strcmp(line, "ok");
}
/* Returns the largest difference relative to the largest element; infinity if sizes, infinities or NaN differ. */
static double bench_difference(bench_run *run, opd_tensor *ours) {
    char line[200];
    int64_t sizes[8], count = opd_numel(ours);
    double worst = 0, most = 0, theirs;
    if (opd_dtype_is_complex(opd_dtype(ours))) {
        ours = opd_view_as_real(opd_contiguous(ours));
        count *= 2;
    }
    const double *x = opd_data_f64(opd_contiguous(opd_to_dtype(ours, OPD_FLOAT64)));
    fprintf(run->peer.to, "result\n");
    bench_ask(run, line, sizeof line);
    bool same = bench_sizes(line, sizes) == opd_ndim(ours);
    for (int d = 0; same && d < opd_ndim(ours); d++) { same = sizes[d] == opd_size(ours, d); }
    if (!same) { bench_stop(line, "are the sizes of PyTorch's result, not ours"); }
    for (int64_t i = 0; i < count; i++) {
        if (fread(&theirs, sizeof theirs, 1, run->peer.from) != 1) { bench_stop("PyTorch", "gave no result"); }
        if (isnan(theirs) != isnan(x[i]) || isinf(theirs) != isinf(x[i])) { worst = HUGE_VAL; }
        if (!isfinite(theirs) || !isfinite(x[i])) { continue; }
        if (fabs(theirs - x[i]) > worst) { worst = fabs(theirs - x[i]); }
        if (fabs(theirs) > most) { most = fabs(theirs); }
    }
    return worst > 0 ? worst / (most > 0 ? most : 1) : 0;
}
/* Returns the tolerance for sums in another order, in the row's dtype of lowest precision. */
static double bench_tolerance(const bench_row *row) {
    if (row->flags & BENCH_LOOSE) { return strstr(row->inputs, "f32") || strstr(row->inputs, "c64") ? 1e-4 : 1e-9; }
    if (strstr(row->inputs, "bf16") || strstr(row->expression, "bfloat16")) { return 0.02; }
    if (strstr(row->inputs, "f16") || strstr(row->expression, "float16")) { return 0.003; }
    return strstr(row->inputs, "f32") || strstr(row->inputs, "c64") ? 1e-5 : 1e-12;
}

//-- measuring ----------------------------------------------------------------------------------------------------------

static double bench_time(const bench_run *run, bench_case *one, int count) {
    const double begin = bench_now(run->threads);
    do { OPD_SCOPE { bench_call(one); } } while (opd_ok() && bench_now(run->threads) - begin < BENCH_WARM_US);
    const double start = bench_now(run->threads);
    for (int i = 0; i < count; i++) { OPD_SCOPE { bench_call(one); } }
    if (!opd_ok()) { bench_stop(one->row->name, opd_error_message()); }
    return (bench_now(run->threads) - start) / count;
}
static double bench_peer_time(bench_run *run, int count) {
    char line[80];
    fprintf(run->peer.to, "time %d\n", count);
    bench_ask(run, line, sizeof line);
    return atof(line);
}
static int bench_count(const bench_run *run, double us) {
    const double count = run->round_us / (us + 0.01);
    return count < 1 ? 1 : count > 100000 ? 100000 : (int)count;
}
static void bench_measure(bench_run *run, const bench_row *row, bench_figures *out) {
    double all[2][BENCH_ROUNDS];
    int counts[2] = {1, 1};
    bench_case one;
    bool peer;
    bench_open(&one, row);
    opd_grad_mode_set((row->flags & BENCH_GRAD) != 0);
    opd_tensor *made = bench_call(&one);
    if (!made) { bench_stop(row->name, opd_ok() ? "gives no tensor" : opd_error_message()); }
    memset(out, 0, sizeof *out);
    out->row = row;
    one.bytes += opd_numel(made) * (int64_t)opd_dtype_size(opd_dtype(made));
    peer = run->peer.pid && bench_send(run, &one);
    if (peer) { out->difference = bench_difference(run, made); }
    out->agrees = out->difference <= bench_tolerance(row);
    for (int round = -2; round < run->rounds; round++) {
        const double ours = bench_time(run, &one, counts[0]), theirs = peer ? bench_peer_time(run, counts[1]) : 0;
        counts[0] = round < 0 ? bench_count(run, ours) : counts[0];
        counts[1] = round < 0 ? bench_count(run, theirs) : counts[1];
        if (round < 0) { continue; }
        all[0][round] = ours;
        all[1][round] = theirs;
    }
    for (int side = 0; side < 2; side++) { qsort(all[side], (size_t)run->rounds, sizeof(double), bench_order); }
    out->ours = all[0][run->rounds / 2];
    out->theirs = all[1][run->rounds / 2];
    out->gigabytes = (double)one.bytes / out->ours / 1e3;
    opd_script_free(one.script);
    opd_grad_mode_set(true);
}
static void bench_us(char *text, size_t size, double us) {
    if (us <= 0) { text[0] = 0; }
    else if (us >= 9999.5) { snprintf(text, size, "%.1f ms", us / 1000); }
    else { snprintf(text, size, us < 100 ? "%.2f us" : "%.0f us", us); }
}
static void bench_print(const bench_run *run, const bench_figures *f) {
    const bool m = run->markdown;
    char ours[32], theirs[32], ratio[32] = "", wrong[40] = "";
    bench_us(ours, sizeof ours, f->ours);
    bench_us(theirs, sizeof theirs, f->theirs);
    if (f->theirs > 0) { snprintf(ratio, sizeof ratio, "%.2f", f->ours / f->theirs); }
    if (!f->agrees) { snprintf(wrong, sizeof wrong, " **differs: %.1e**", f->difference); }
    printf(m ? "| %s | %s | %s | %s | %s | %s%s | %.1f |\n" : "%-11s %-46s %-22.22s %10s %10s %6s%s %7.1f GB/s\n",
           f->row->section, f->row->name, f->row->inputs, ours, theirs, ratio, wrong, f->gigabytes);
    fflush(stdout);
}
static int bench_by_ratio(const void *a, const void *b) {
    const bench_figures *x = (const bench_figures *)a, *y = (const bench_figures *)b;
    const double of_x = x->ours / x->theirs, of_y = y->ours / y->theirs;
    return of_x > of_y ? -1 : of_x < of_y;
}
/* Prints how many rows take at most 1.05 times PyTorch's time, and the rows with the largest ratios. */
static void bench_summary(const bench_run *run, bench_figures *all, int count) {
    double logs = 0;
    int held = 0, wrong = 0;
    for (int i = 0; i < count; i++) {
        held += all[i].ours <= 1.05 * all[i].theirs;
        wrong += !all[i].agrees;
        logs += log(all[i].ours / all[i].theirs);
    }
    printf("\n%s, %d thread%s%s: **%.0f%%** of %d rows take at most 1.05 times its time; "
           "geometric mean of the ratios %.2f; the results of %d rows differ.\n", run->peer.version, run->threads, run->threads == 1 ? "" : "s",
           bench_level_text, 100.0 * held / count, count,
           exp(logs / count), wrong);
    qsort(all, (size_t)count, sizeof *all, bench_by_ratio);
    printf("The largest ratios:");
    for (int i = 0; i < count && i < BENCH_WORST; i++) {
        printf("%s %s, %s (%.2f)", i ? ";" : "", all[i].row->name, all[i].row->inputs, all[i].ours / all[i].theirs);
    }
    printf(".\n");
}

//-- the program --------------------------------------------------------------------------------------------------------

static bool bench_options(bench_run *run, int argc, char **argv) {
    memset(run, 0, sizeof *run);
    run->filter = "";
    run->python = "python3";
    run->threads = 1;
    run->rounds = BENCH_ROUNDS;
    run->round_us = 10000;
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--quick")) {
            run->quick = true;
            run->rounds = 3;
            run->round_us = 1000;
        } else if (!strcmp(argv[i], "--markdown")) {
            run->markdown = true;
        } else if (!strcmp(argv[i], "--filter") && more) {
            run->filter = argv[++i];
        } else if (!strcmp(argv[i], "--python") && more) {
            run->python = argv[++i];
        } else if (!strcmp(argv[i], "--threads") && more) {
            run->threads = atoi(argv[++i]);
        } else if (!strcmp(argv[i], "--level") && more) {
            if (!bench_level(argv[++i])) { return false; }
        } else {
            return false;
        }
    }
    return run->threads > 0;
}
/* The main function for a table of rows.  Run it in the folder of opdispatch.h. */
static int bench_main(int argc, char **argv, const bench_row *rows, size_t nrows) {
    static const char help[] = "[--quick] [--filter TEXT] [--python PATH] [--threads N] [--level LEVEL] [--markdown]\n"
        "  --quick        fewer and shorter rounds\n"
        "  --filter TEXT  only rows whose section, name, tensors or expression contain TEXT\n"
        "  --python PATH  a Python with PyTorch (default: python3)\n"
        "  --threads N    threads that each side uses (default: 1); above 1, times are wall-clock times\n"
        BENCH_LEVEL_HELP
        "  --markdown     prints Markdown, as in bench/tables\n";
    bench_run run;
    int count = 0;
    if (!bench_options(&run, argc, argv)) {
        const bool asked = argc == 2 && !strcmp(argv[1], "--help");
        fprintf(asked ? stdout : stderr, "%s %s", argv[0], help);
        return asked ? 0 : 1;
    }
    bench_figures *all = (bench_figures *)calloc(nrows, sizeof *all);
    if (!all) { bench_stop("rows", "out of memory"); }
    opd_threads_set(run.threads);
    bench_peer_start(&run.peer, run.python, "torch_rows.py", run.threads, true);
    if (run.markdown) {
        printf("| kind | operator | tensors | here | PyTorch | ratio | here, GB/s |\n|---|---|---|---|---|---|---|\n");
    }
    for (size_t i = 0; i < nrows; i++) {
        const bench_row *row = &rows[i];
        if (!strstr(row->section, run.filter) && !strstr(row->name, run.filter) && !strstr(row->inputs, run.filter) &&
            !strstr(row->expression, run.filter)) { continue; }
        OPD_SCOPE { bench_measure(&run, row, &all[count]); }
        bench_print(&run, &all[count++]);
    }
    if (run.peer.pid && count) { bench_summary(&run, all, count); }
    bench_peer_end(&run.peer);
    free(all);
    return opd_finish();
}
#endif
