/* Means, variances, norms and normalizations of numbers whose mean is large compared with their deviation,
   uncompiled and compiled.  The errors, compared with long double, are not larger than PyTorch's (written by
   golden/make_statistics.py). */
#include "../../opdispatch.h"
#include "../check.h"

#include <float.h>
#include <math.h>

enum { MOST = 6 * 4 * 1100, EVERY = 120, MOST_LINES = 4000, FORWARD = 40 };
static const int64_t shapes[2][3] = {{6, 4, 1100}, {40, 6, 12}};
static const double eps = 1e-5;

//-- the numbers, as make_statistics.py makes them ---------------------------------------------------------------------

static uint64_t state;
static int known = -1;                            /* the set whose moments are known */
static double draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 40) / 8388608.0 - 1;
}
enum { X, GRAD, WN, BN, WC, BC, GA, INPUTS };
typedef struct numbers {
    int64_t a, c, n;
    opd_scalar_type dtype;
    opd_tensor *in[INPUTS];
    long double *exact[INPUTS];                   /* the same, as they were rounded */
} numbers;
static opd_tensor *drawn(numbers *s, int which, opd_ints sizes, double scale, double offset) {
    opd_tensor *t = opd_empty(sizes, OPD_FLOAT64), *rounded, *back;
    const int64_t count = opd_numel(t);
    int64_t i;
    for (i = 0; i < count; i++) { opd_data_f64(t)[i] = draw() * scale + offset; }
    for (i = 0; which == X && offset < 0 && i < count; i++) {     /* the first of each row is 0 */
        opd_data_f64(t)[i] = i % s->n ? opd_data_f64(t)[i] - 2 * offset : 0;
    }
    rounded = opd_to_dtype(t, s->dtype);
    back = opd_to_dtype(rounded, OPD_FLOAT64);
    s->exact[which] = (long double *)malloc((size_t)count * sizeof(long double));
    for (i = 0; i < count; i++) { s->exact[which][i] = (long double)opd_data_f64(back)[i]; }
    s->in[which] = rounded;
    return rounded;
}
static void make(numbers *s, int shape, opd_scalar_type dtype, double ratio) {
    const double offset = ratio * 0.57735026918962576;
    s->a = shapes[shape][0];
    s->c = shapes[shape][1];
    s->n = shapes[shape][2];
    s->dtype = dtype;
    known = -1;
    state = 1;
    (void)drawn(s, X, OPD_INTS(s->a, s->c, s->n), 1, offset);
    (void)drawn(s, GRAD, OPD_INTS(s->a, s->c, s->n), 1, 0);
    (void)drawn(s, WN, OPD_INTS(s->n), 0.5, 1);
    (void)drawn(s, BN, OPD_INTS(s->n), 1, 0);
    (void)drawn(s, WC, OPD_INTS(s->c), 0.5, 1);
    (void)drawn(s, BC, OPD_INTS(s->c), 1, 0);
    (void)drawn(s, GA, OPD_INTS(s->a, 1, 1), 0.5, 1);
}
static void forget(numbers *s) {
    int i;
    for (i = 0; i < INPUTS; i++) { free(s->exact[i]); }
}

//-- exact results -----------------------------------------------------------------------------------------------------

/* Which numbers belong together: those of a row; of an index in it; all; of a channel; of half of an example's
   channels; of an example. */
typedef enum set { LAST, OUTER, ALL, CHANNEL, GROUP, EXAMPLE } set;
static int64_t set_of(const numbers *s, set by, int64_t i) {
    const int64_t n = i % s->n, c = i / s->n % s->c, a = i / s->n / s->c;
    switch (by) {
        case LAST: return a * s->c + c;
        case OUTER: return n;
        case ALL: return 0;
        case CHANNEL: return c;
        case GROUP: return a * 2 + c / (s->c / 2);
        default: return a;
    }
}
static int64_t sets(const numbers *s, set by) { return set_of(s, by, s->a * s->c * s->n - 1) + 1; }
typedef enum kind {
    SUM, MEAN, VAR, STD, NORM, LSE, RSTD, RUNNING_MEAN, RUNNING_VAR,      /* of each set */
    OUT, RMS, WEIGHT_NORM, DX, VAR_DX, STD_DX, NORM_DX, LSE_DX,           /* of each number */
    DW, DB,                                                               /* of each weight */
    COV, CORRCOEF                                                         /* of two rows */
} kind;
static long double sums[MOST], squares[MOST], means[MOST], offs[MOST], tops[MOST], exps[MOST], gys[MOST], gxs[MOST];
static long double answer[240 * 240 > MOST ? 240 * 240 : MOST];
static int64_t counts[MOST];
static int64_t weight_of(const numbers *s, set by, int64_t i, bool layer) {
    (void)by;
    return layer ? i % s->n : i / s->n % s->c;
}
static void moments(const numbers *s, set by) {
    const int64_t count = s->a * s->c * s->n;
    const long double *x = s->exact[X];
    int64_t i;
    if (known == (int)by) { return; }
    known = (int)by;
    for (i = 0; i < sets(s, by); i++) {
        sums[i] = squares[i] = offs[i] = exps[i] = 0;
        tops[i] = -INFINITY;
        counts[i] = 0;
    }
    for (i = 0; i < count; i++) {
        const int64_t k = set_of(s, by, i);
        sums[k] += x[i];
        squares[k] += x[i] * x[i];
        tops[k] = x[i] > tops[k] ? x[i] : tops[k];
        counts[k]++;
    }
    for (i = 0; i < sets(s, by); i++) { means[i] = sums[i] / (long double)counts[i]; }
    for (i = 0; i < count; i++) {
        const int64_t k = set_of(s, by, i);
        offs[k] += (x[i] - means[k]) * (x[i] - means[k]);
        exps[k] += expl(x[i] - tops[k]);
    }
}
static long double rstd_of(int64_t k) { return 1 / sqrtl(offs[k] / (long double)counts[k] + (long double)eps); }
static long double of_set(kind what, int64_t k) {
    const long double n = (long double)counts[k];
    switch (what) {
        case SUM: return sums[k];
        case MEAN: return means[k];
        case VAR: return offs[k] / (n - 1);
        case STD: return sqrtl(offs[k] / (n - 1));
        case NORM: return sqrtl(squares[k]);
        case LSE: return logl(exps[k]) + tops[k];
        case RSTD: return rstd_of(k);
        case RUNNING_MEAN: return 0.1L * means[k];
        default: return 0.9L + 0.1L * offs[k] / (n - 1);
    }
}
static long double of_number(const numbers *s, kind what, set by, bool layer, int64_t i) {
    const int64_t k = set_of(s, by, i), weight = weight_of(s, by, i, layer);
    const long double x = s->exact[X][i], n = (long double)counts[k], xhat = (x - means[k]) * rstd_of(k);
    const long double w = s->exact[layer ? WN : WC][weight], b = s->exact[layer ? BN : BC][weight];
    switch (what) {
        case OUT: return xhat * w + b;
        case RMS: return x / sqrtl(squares[k] / n + (long double)eps) * w;
        case WEIGHT_NORM: return x * s->exact[GA][k] / sqrtl(squares[k]);
        case DX: return rstd_of(k) * (s->exact[GRAD][i] * w - gys[k] / n - xhat * gxs[k] / n);
        case VAR_DX: return 2 * (x - means[k]) / (n - 1);
        case STD_DX: return (x - means[k]) / ((n - 1) * sqrtl(offs[k] / (n - 1)));
        case NORM_DX: return x / sqrtl(squares[k]);
        default: return expl(x - tops[k]) / exps[k];
    }
}
static int64_t of_rows(const numbers *s, bool correlation) {
    const int64_t rows = s->a * s->c, n = s->n;
    int64_t i, j, k;
    for (i = 0; i < rows; i++) {
        for (j = 0; j <= i; j++) {
            long double sum = 0;
            for (k = 0; k < n; k++) { sum += (s->exact[X][i * n + k] - means[i]) * (s->exact[X][j * n + k] - means[j]); }
            answer[i * rows + j] = answer[j * rows + i] =
                correlation ? sum / sqrtl(offs[i]) / sqrtl(offs[j]) : sum / (long double)(n - 1);
        }
    }
    return rows * rows;
}
/* Fills `answer`, and returns how many there are. */
static int64_t exact(const numbers *s, kind what, set by, bool layer) {
    const int64_t count = s->a * s->c * s->n;
    int64_t i;
    moments(s, by);
    if (what >= COV) { return of_rows(s, what == CORRCOEF); }
    if (what < OUT) {
        for (i = 0; i < sets(s, by); i++) { answer[i] = of_set(what, i); }
        return sets(s, by);
    }
    if (what >= DW) {
        for (i = 0; i < (layer ? s->n : s->c); i++) { answer[i] = 0; }
        for (i = 0; i < count; i++) {
            const int64_t k = set_of(s, by, i);
            answer[weight_of(s, by, i, layer)] += s->exact[GRAD][i] *
                (what == DB ? 1 : (s->exact[X][i] - means[k]) * rstd_of(k));
        }
        return layer ? s->n : s->c;
    }
    for (i = 0; what == DX && i < sets(s, by); i++) { gys[i] = gxs[i] = 0; }
    for (i = 0; what == DX && i < count; i++) {
        const int64_t k = set_of(s, by, i);
        const long double gy = s->exact[GRAD][i] * s->exact[layer ? WN : WC][weight_of(s, by, i, layer)];
        gys[k] += gy;
        gxs[k] += gy * (s->exact[X][i] - means[k]) * rstd_of(k);
    }
    for (i = 0; i < count; i++) { answer[i] = of_number(s, what, by, layer, i); }
    return count;
}

//-- the tested functions ----------------------------------------------------------------------------------------------

typedef struct result { char name[32]; kind what; set by; bool layer; opd_tensor *got; } result;
static result all[EVERY];
static int nall;
static void give(const char *name, const char *part, kind what, set by, bool layer, opd_tensor *got) {
    result *r = &all[nall++];
    (void)snprintf(r->name, sizeof r->name, "%s%s%s", name, *part ? "_" : "", part);
    r->what = what;
    r->by = by;
    r->layer = layer;
    r->got = got;
}
static const char *const set_names[4] = {"last", "outer", "all", "channel"};
static opd_ints dims_of(set by) {
    static const int64_t dims[4][3] = {{2, 0, 0}, {0, 1, 0}, {0, 1, 2}, {0, 2, 0}};
    static const int counts_of[4] = {1, 2, 3, 2};
    return opd_ints_of(dims[by], counts_of[by]);
}
/* Results without gradients: these can be compiled. */
static void forward(opd_tensor *const *in, int64_t a, int64_t c, int64_t n) {
    opd_tensor *x = in[X], *three[3], *running[2];
    int by;
    for (by = LAST; by <= CHANNEL; by++) {
        const opd_ints dims = dims_of((set)by);
        const char *part = set_names[by];
        give("sum", part, SUM, (set)by, false, opd_sum_dim(x, dims, false));
        give("mean", part, MEAN, (set)by, false, opd_mean_dim(x, dims, false));
        give("var", part, VAR, (set)by, false, opd_var_correction(x, dims, opd_value_int(1), false));
        give("std", part, STD, (set)by, false, opd_std_correction(x, dims, opd_value_int(1), false));
        if (opd_var_mean_correction(three, x, dims, opd_value_int(1), false)) { return; }
        give("var_mean", part, MEAN, (set)by, false, three[1]);
        give("norm", part, NORM, (set)by, false,
             opd_linalg_vector_norm_full(x, opd_value_int(2), opd_value_ints(dims.data, dims.n), false, opd_value_none()));
        give("logsumexp", part, LSE, (set)by, false, opd_logsumexp(x, dims, false));
    }
    if (opd_native_layer_norm(three, x, OPD_INTS(n), in[WN], in[BN], eps)) { return; }
    give("layer_norm", "out", OUT, LAST, true, three[0]);
    give("layer_norm", "mean", MEAN, LAST, true, three[1]);
    give("layer_norm", "rstd", RSTD, LAST, true, three[2]);
    if (opd_native_group_norm(three, x, in[WC], in[BC], a, c, n, 2, eps)) { return; }
    give("group_norm", "out", OUT, GROUP, false, three[0]);
    give("group_norm", "mean", MEAN, GROUP, false, three[1]);
    give("group_norm", "rstd", RSTD, GROUP, false, three[2]);
    running[0] = opd_zeros_like(in[WC]);
    running[1] = opd_ones_like(in[WC]);
    if (opd_native_batch_norm(three, x, in[WC], in[BC], running[0], running[1], true, 0.1, eps)) { return; }
    give("batch_norm", "out", OUT, CHANNEL, false, three[0]);
    give("batch_norm", "mean", MEAN, CHANNEL, false, three[1]);
    give("batch_norm", "rstd", RSTD, CHANNEL, false, three[2]);
    give("running_mean", "", RUNNING_MEAN, CHANNEL, false, running[0]);
    give("running_var", "", RUNNING_VAR, CHANNEL, false, running[1]);
    give("instance_norm", "", OUT, LAST, false,
         opd_instance_norm(x, in[WC], in[BC], NULL, NULL, true, 0.1, eps, false));
    give("rms_norm", "", RMS, LAST, true, opd_rms_norm(x, OPD_INTS(n), in[WN], opd_value_double(eps)));
    give("weight_norm", "", WEIGHT_NORM, EXAMPLE, false, opd_weight_norm(x, in[GA]));
    x = opd_reshape(x, OPD_INTS(a * c, n));
    give("cov", "", COV, LAST, false, opd_cov(x));
    give("corrcoef", "", CORRCOEF, LAST, false, opd_corrcoef(x));
}
static void norm_back(const char *name, set by, bool layer, opd_tensor **three) {
    give(name, "dx", DX, by, layer, three[0]);
    give(name, "dw", DW, by, layer, three[1]);
    give(name, "db", DB, by, layer, three[2]);
}
static void backward(const numbers *s) {
    static const bool mask[3] = {true, true, true};
    opd_tensor *const *in = s->in, *got[3], *back[3], *x = opd_detach(in[X]);
    const opd_value wanted = opd_value_bools(mask, 3);
    int by, which;
    if (opd_native_layer_norm(got, x, OPD_INTS(s->n), in[WN], in[BN], eps) ||
        opd_native_layer_norm_backward(back, in[GRAD], x, OPD_INTS(s->n), got[1], got[2], in[WN], in[BN], wanted)) { return; }
    norm_back("layer_norm", LAST, true, back);
    if (opd_native_group_norm(got, x, in[WC], in[BC], s->a, s->c, s->n, 2, eps) ||
        opd_native_group_norm_backward(back, in[GRAD], x, got[1], got[2], in[WC], s->a, s->c, s->n, 2, wanted)) { return; }
    norm_back("group_norm", GROUP, false, back);
    if (opd_native_batch_norm(got, x, in[WC], in[BC], NULL, NULL, true, 0.1, eps) ||
        opd_native_batch_norm_backward(back, in[GRAD], x, in[WC], NULL, NULL, got[1], got[2], true, eps, wanted)) { return; }
    norm_back("batch_norm", CHANNEL, false, back);
    for (by = LAST; by <= CHANNEL; by++) {
        static const char *const names[4] = {"var_dx", "std_dx", "norm_dx", "logsumexp_dx"};
        const opd_ints dims = dims_of((set)by);
        for (which = 0; which < 4; which++) {
            opd_tensor *leaf = opd_tensor_set_requires_grad(opd_detach(x), true), *y, *dx = NULL;
            y = which == 0 ? opd_var_correction(leaf, dims, opd_value_int(1), false)
                : which == 1 ? opd_std_correction(leaf, dims, opd_value_int(1), false)
                : which == 2 ? opd_linalg_vector_norm_full(leaf, opd_value_int(2), opd_value_ints(dims.data, dims.n), false,
                                                           opd_value_none())
                : opd_logsumexp(leaf, dims, false);
            y = opd_sum(y);
            if (opd_autograd_grad(&y, 1, &leaf, 1, NULL, &dx)) { return; }
            give(names[which], set_names[by], (kind)(VAR_DX + which), (set)by, false, dx);
        }
    }
}

//-- PyTorch's results -------------------------------------------------------------------------------------------------

typedef struct line { char name[32], dtype[12]; int shape; double ratio, error; } line;
static line lines[MOST_LINES];
static int nlines;
static bool read_lines(void) {
    FILE *f = nlines ? NULL : check_golden("statistics.txt");
    while (f && nlines < MOST_LINES) {
        line *l = &lines[nlines];
        if (fscanf(f, "%31s %11s %d %lf %lf", l->name, l->dtype, &l->shape, &l->ratio, &l->error) != 5) { break; }
        nlines++;
    }
    if (f) { (void)fclose(f); }
    return nlines > 1000;
}
/* PyTorch's error; negative: it is not written down. */
static double allowed(const char *name, opd_scalar_type dtype, int shape, double ratio) {
    int i;
    for (i = 0; i < nlines; i++) {
        const line *l = &lines[i];
        if (strcmp(l->name, name) == 0 && strcmp(l->dtype, opd_dtype_name(dtype)) == 0 && l->shape == shape &&
            fabs(l->ratio - ratio) < 0.5) { return l->error; }
    }
    return -1;
}
/* What an error is a part of where numbers of both signs cancel out: a sum of so many, or half of the spread. */
static long double least_scale(const numbers *s, kind what, set by) {
    const long double each = (long double)(s->a * s->c * s->n) / (long double)sets(s, by);
    return what == SUM ? sqrtl(each) : what == MEAN ? 0.5L : what == RUNNING_MEAN ? 0.05L : 0;
}
/* The largest error, as a part of the largest exact result. */
static double error_of(const numbers *s, const result *r) {
    const int64_t count = exact(s, r->what, r->by, r->layer);
    opd_tensor *got = r->got ? opd_contiguous(opd_to_dtype(r->got, OPD_FLOAT64)) : NULL;
    long double worst = 0, most = least_scale(s, r->what, r->by);
    int64_t i;
    if (!got || opd_numel(got) != count) { return INFINITY; }
    for (i = 0; i < count; i++) {
        const long double off = fabsl((long double)opd_data_f64(got)[i] - answer[i]);
        if (!(off <= worst)) { worst = off == off ? off : HUGE_VAL; }
        if (isnan(worst)) { return INFINITY; }
        most = fabsl(answer[i]) > most ? fabsl(answer[i]) : most;
    }
    return (double)(worst / most);
}
/* Results may be off by so many units in the last place in any case: they are rounded, and what products or (compiled)
   doubles are added up in has an order of its own. */
static double ulps_of(const numbers *s, const result *r, bool compiled) {
    if (r->what >= COV) { return 16; }
    return !compiled ? 4 : s->dtype == OPD_FLOAT64 ? 256 : 4;
}
/* Compares all results.  A result may be off by half more than PyTorch's: if a mean is rounded, both sides lose the same
   digits, and the rest of the error is the rounding of single numbers, in another order. */
static int look(const numbers *s, int shape, double ratio, bool compiled) {
    const double unit = s->dtype == OPD_FLOAT64 ? DBL_EPSILON : s->dtype == OPD_FLOAT32 ? FLT_EPSILON : 1.0 / 128;
    const char *const how = compiled ? "compiled" : "plain";
    const bool say = getenv("STATISTICS") != NULL;
    int i, seen = 0;
    CHECK_OK();
    for (i = 0; i < nall; i++) {
        const double theirs = allowed(all[i].name, s->dtype, shape, ratio);
        const double most = fmax(1.5 * theirs, ulps_of(s, &all[i], compiled) * unit);
        if (theirs < 0) { continue; }
        const double ours = error_of(s, &all[i]);
        seen++;
        if (say) { printf("%s %s %s %d %g %.2e %.2e\n", how, all[i].name, opd_dtype_name(s->dtype), shape, ratio, ours, theirs); }
        if (ours <= most) { continue; }
        printf("    %s %s of %s, shape %d, ratio %g: off by %.2e, PyTorch's by %.2e\n", how, all[i].name,
               opd_dtype_name(s->dtype), shape, ratio, ours, theirs);
        CHECK(!"as near as PyTorch");
    }
    CHECK_OK();
    return seen;
}

static const opd_scalar_type dtypes[3] = {OPD_FLOAT32, OPD_FLOAT64, OPD_BFLOAT16};
static const double ratios[3][9] = {{0, 10, 100, 1000, 10000, 100000, 1000000, -10000, NAN},
                                    {0, 1000, 1000000, -10000, NAN}, {0, 10, 100, NAN}};
/* Long doubles must be longer than what is looked at. */
static bool can_tell(opd_scalar_type dtype) { return dtype != OPD_FLOAT64 || LDBL_MANT_DIG >= 64; }

TEST(statistics) {
    int d, shape, i, seen = 0;
    CHECK_OR_RETURN(read_lines());
    for (d = 0; d < 3; d++) {
        for (shape = 0; can_tell(dtypes[d]) && shape < 2; shape++) {
            for (i = 0; !isnan(ratios[d][i]); i++) OPD_SCOPE {
                numbers s;
                if (!check_visits((size_t)(shape * 8 + i), 16)) { continue; }
                make(&s, shape, dtypes[d], ratios[d][i]);
                nall = 0;
                forward(s.in, s.a, s.c, s.n);
                backward(&s);
                seen += look(&s, shape, ratios[d][i], false);
                forget(&s);
            }
        }
    }
    CHECK(getenv("CHECK_PART") ? seen > 50 : seen > 1000);
}

//-- compiled ----------------------------------------------------------------------------------------------------------

static int traced(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const numbers *s = (const numbers *)user;
    int i;
    (void)n;
    nall = 0;
    forward(in, s->a, s->c, s->n);
    for (i = 0; i < nall; i++) { out[i] = all[i].got; }
    return opd_ok() ? nall : -1;
}
TEST(statistics_compiled) {
    int d, shape, i, k, seen = 0;
    CHECK_OR_RETURN(read_lines());
    if (system("${CC:-cc} -v >/dev/null 2>&1") != 0) { SKIP("no cc"); }
    check_quick_compiler();
    for (d = 0; d < 3; d++) {
        for (shape = 0; can_tell(dtypes[d]) && shape < 2; shape++) {
            opd_compile_options options;
            opd_graph *graph = NULL;
            opd_compiled *compiled = NULL;
            memset(&options, 0, sizeof options);
            options.flags = "-O1";
            for (i = 0; !isnan(ratios[d][i]); i++) OPD_SCOPE {
                opd_value in[INPUTS], out[EVERY];
                numbers s;
                if (!check_visits((size_t)(shape * 8 + i), 16)) { continue; }
                make(&s, shape, dtypes[d], ratios[d][i]);
                OPD_NO_GRAD {
                    if (!graph) {
                        graph = opd_graph_trace(traced, &s, s.in, INPUTS, NULL);
                        compiled = graph ? opd_graph_compile(graph, &options) : NULL;
                    }
                    for (k = 0; k < INPUTS; k++) { in[k] = opd_value_tensor(s.in[k]); }
                    for (k = 0; compiled && k < 2; k++) { CHECK_INT(opd_compiled_run(compiled, in, INPUTS, out, EVERY), nall); }
                }
                if (compiled) { CHECK_STR(opd_compiled_reason(compiled), NULL); }
                for (k = 0; compiled && k < nall; k++) { all[k].got = out[k].u.t; }
                if (compiled && opd_ok()) { seen += look(&s, shape, ratios[d][i], true); }
                forget(&s);
            }
            opd_compiled_free(compiled);
            opd_graph_free(graph);
            CHECK_OK();
        }
    }
    CHECK(getenv("CHECK_PART") ? seen > 25 : seen > 500);
}

/* batch_norm in evaluation, beside the definition computed in double: short planes, whose channels are joined, long
   ones, and so many that several threads share them. */
TEST(batch_norm_in_evaluation) {
    static const int64_t sizes[][3] = { {5, 7, 3}, {5, 7, 19}, {1, 4, 6}, {6, 1, 40}, {9, 33, 1000}, {300, 20, 16} };
    for (int k = 0; k < 12; k++) OPD_SCOPE {
        const int64_t *size = sizes[k / 2], c = size[1], n = size[2];
        const opd_scalar_type dtype = k % 2 ? OPD_FLOAT64 : OPD_FLOAT32;
        opd_tensor *x = opd_randn(opd_ints_of(size, 3), dtype), *mean = opd_randn(OPD_INTS(c), dtype);
        opd_tensor *var = opd_add_Scalar(opd_rand(OPD_INTS(c), dtype), OPD_V(0.5)), *w = opd_randn(OPD_INTS(c), dtype);
        opd_tensor *b = opd_randn(OPD_INTS(c), dtype), *by[4], *got[3];
        double most = 0;
        if (opd_native_batch_norm(got, x, k % 3 ? w : NULL, k % 3 ? b : NULL, mean, var, false, 0.1, 1e-3)) { break; }
        x = opd_to_dtype(x, OPD_FLOAT64);
        got[0] = opd_to_dtype(got[0], OPD_FLOAT64);
        by[0] = opd_to_dtype(mean, OPD_FLOAT64);
        by[1] = opd_to_dtype(var, OPD_FLOAT64);
        by[2] = opd_to_dtype(w, OPD_FLOAT64);
        by[3] = opd_to_dtype(b, OPD_FLOAT64);
        for (int64_t i = 0; opd_ok() && i < opd_numel(x); i++) {
            const int64_t ch = i / n % c;
            const double normal = (opd_data_f64(x)[i] - opd_data_f64(by[0])[ch]) / sqrt(opd_data_f64(by[1])[ch] + 1e-3);
            const double right = k % 3 ? normal * opd_data_f64(by[2])[ch] + opd_data_f64(by[3])[ch] : normal;
            const double off = fabs(opd_data_f64(got[0])[i] - right) / (1 + fabs(right));
            most = off > most ? off : most;
        }
        CHECK(most <= (k % 2 ? 1e-14 : 2e-6));
    }
    CHECK_OK();
}

CHECK_MAIN()
