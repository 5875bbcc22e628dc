/* Trains two classical models with linear algebra: the length scales of a Gaussian process, the noise of a Kalman
   filter.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/gaussian_process.c -o gaussian_process -lm && ./gaussian_process
   ci: --steps 40

   Both models maximise the likelihood of observations with Adam.  The gradients pass through Cholesky factors,
   triangular systems, determinants and solutions of equations.  The Gaussian process (Rasmussen and Williams, Gaussian
   Processes for Machine Learning, algorithm 2.1) gets two inputs.  The second input has no effect on the observations,
   so its length scale grows.  The Kalman filter follows a swing, whose sensor fails for some time.  --losses prints the
   loss of each step, to compare it with another program (for PyTorch: tests/golden/make_gaussian_process.py). */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { POINTS = 60, INPUTS = 2, TIMES = 72, GAP_BEGIN = 40, GAP_END = 52, COLUMNS = 72, ROWS = 17 };

typedef struct settings { int steps; bool losses; } settings;

/* Random numbers that are easy to repeat in other languages, from a linear congruential generator. */
static double uniform(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (double)(*state >> 8) / 16777216.0;
}
static double normal(uint32_t *state) {
    double sum = -6;
    for (int i = 0; i < 12; i++) { sum += uniform(state); }
    return sum;
}

static opd_tensor *parameter(double value, int64_t count) {
    opd_tensor *p = opd_full(count ? OPD_INTS(count) : opd_ints_of(NULL, 0), OPD_V(value), OPD_FLOAT64);
    return opd_keep(opd_tensor_set_requires_grad(p, true));
}
static double exp_of(const opd_tensor *logarithm) { return exp(opd_item_f64(logarithm)); }

//-- a plot: a band of two standard deviations, its middle, and the observations ---------------------------------------

typedef struct plot { double low, high; char at[ROWS][COLUMNS + 1]; } plot;

static void plot_begin(plot *p, double low, double high) {
    p->low = low;
    p->high = high;
    memset(p->at, ' ', sizeof p->at);
    for (int row = 0; row < ROWS; row++) { p->at[row][COLUMNS] = 0; }
}
static int plot_row(const plot *p, double y) {
    const double row = (p->high - y) / (p->high - p->low) * (ROWS - 1);
    return row < 0 ? 0 : row > ROWS - 1 ? ROWS - 1 : (int)(row + 0.5);
}
static void plot_band(plot *p, int column, double mean, double deviation) {
    for (int row = plot_row(p, mean + 2 * deviation); row <= plot_row(p, mean - 2 * deviation); row++) {
        p->at[row][column] = '.';
    }
    p->at[plot_row(p, mean)][column] = '*';
}
static void plot_point(plot *p, int column, double y) {
    if (column >= 0 && column < COLUMNS) { p->at[plot_row(p, y)][column] = 'o'; }
}
static void plot_show(const plot *p, const char *title) {
    printf("\n%s\n(o observed, * mean, . two standard deviations)\n", title);
    for (int row = 0; row < ROWS; row++) {
        if (row % 4 == 0) { printf("%6.2f |%s\n", p->high - (p->high - p->low) * row / (ROWS - 1), p->at[row]); }
        else { printf("       |%s\n", p->at[row]); }
    }
}

//-- training -----------------------------------------------------------------------------------------------------------

/* Minimises loss(model) with steps of Adam; params are the parameters. */
static int train(const settings *s, const char *name, opd_tensor *(*loss)(const void *model), const void *model,
                 opd_tensor *const *params, int count) {
    opd_adam_options options = opd_adam_defaults();
    options.lr = 0.05;
    opd_optimizer *adam = opd_adam_new(params, count, &options);
    for (int step = 1; step <= s->steps && opd_ok(); step++) {
        OPD_SCOPED;
        opd_tensor *now = loss(model);
        opd_backward(now);
        opd_optimizer_step(adam);
        opd_optimizer_zero_grad(adam);
        if (s->losses) { printf("%s %d %.12f\n", name, step, opd_item_f64(now)); }
        else if (step == 1 || step % 40 == 0 || step == s->steps) {
            printf("step %3d: negative log likelihood %8.4f an observation\n", step, opd_item_f64(now));
        }
    }
    opd_optimizer_free(adam);
    return opd_ok() ? 0 : -1;
}

//-- a Gaussian process ---------------------------------------------------------------------------------------------------

typedef struct process {
    opd_tensor *x, *y;                            /* (POINTS, INPUTS), (POINTS, 1) */
    opd_tensor *length, *scale, *noise;           /* logarithms of the INPUTS length scales and of two deviations */
} process;

/* Returns the covariances (n, m) of f at points a (n, INPUTS) and b (m, INPUTS): a squared exponential kernel with a
   length scale for each input. */
static opd_tensor *covariance(const process *gp, opd_tensor *a, opd_tensor *b) {
    opd_tensor *length = opd_exp(gp->length);
    opd_tensor *apart = opd_sub(opd_unsqueeze(opd_div(a, length), 1), opd_unsqueeze(opd_div(b, length), 0));
    opd_tensor *squares = opd_sum_dim(opd_mul(apart, apart), OPD_INTS(2), false);
    return opd_exp(opd_add(opd_mul_Scalar(squares, OPD_V(-0.5)), opd_mul_Scalar(gp->scale, OPD_V(2))));
}
/* The Cholesky factor of the observations' covariance. */
static opd_tensor *factor(const process *gp) {
    opd_tensor *noise = opd_exp(opd_mul_Scalar(gp->noise, OPD_V(2)));
    opd_tensor *own = opd_mul(noise, opd_eye(POINTS, OPD_FLOAT64));
    return opd_linalg_cholesky(opd_add(covariance(gp, gp->x, gp->x), own));
}
/* -log p(y) / POINTS = (y^T K^-1 y / 2 + sum log L_ii) / POINTS + log(2 pi) / 2. */
static opd_tensor *process_loss(const void *model) {
    const process *gp = (const process *)model;
    opd_tensor *l = factor(gp);
    opd_tensor *fit = opd_mul_Scalar(opd_sum(opd_mul(gp->y, opd_cholesky_solve(gp->y, l))), OPD_V(0.5));
    opd_tensor *volume = opd_sum(opd_log(opd_diagonal(l)));
    return opd_add_Scalar(opd_div_Scalar(opd_add(fit, volume), OPD_V(POINTS)), OPD_V(0.91893853320467274));
}
/* Plots the predicted function along the first input, with the second input 0. */
static void process_plot(const process *gp) {
    OPD_SCOPED;
    plot p;
    double grid[COLUMNS][INPUTS] = {{0}};
    for (int i = 0; i < COLUMNS; i++) { grid[i][0] = -4 + 8.0 * i / (COLUMNS - 1); }
    opd_tensor *at = opd_tensor_from(grid, OPD_INTS(COLUMNS, INPUTS), OPD_FLOAT64);
    opd_tensor *l = factor(gp), *between = covariance(gp, gp->x, at);
    const double *mean = opd_data_f64(opd_contiguous(opd_mm(opd_mT(between), opd_cholesky_solve(gp->y, l))));
    opd_tensor *v = opd_linalg_solve_triangular(l, between, false);
    const double *known = opd_data_f64(opd_contiguous(opd_sum_dim(opd_mul(v, v), OPD_INTS(0), false)));
    const double *x = opd_data_f64(gp->x), *y = opd_data_f64(gp->y);
    if (!opd_ok()) { return; }
    const double prior = exp_of(gp->scale) * exp_of(gp->scale);
    plot_begin(&p, -2, 2);
    for (int i = 0; i < COLUMNS; i++) { plot_band(&p, i, mean[i], sqrt(fmax(prior - known[i], 0))); }
    for (int i = 0; i < POINTS; i++) {
        plot_point(&p, (int)((x[i * INPUTS] + 4) / 8 * (COLUMNS - 1) + 0.5), y[i]);
    }
    plot_show(&p, "A Gaussian process: the function along the first of two inputs");
}
static int gaussian_process(const settings *s) {
    double x[POINTS][INPUTS], y[POINTS];
    uint32_t state = 1;
    for (int i = 0; i < POINTS; i++) {
        x[i][0] = -3 + 6 * uniform(&state);
        x[i][1] = -3 + 6 * uniform(&state);
        y[i] = sin(2 * x[i][0]) + 0.2 * x[i][0] + 0.2 * normal(&state);
    }
    OPD_SCOPED;
    process gp = {opd_tensor_from(x, OPD_INTS(POINTS, INPUTS), OPD_FLOAT64),
                  opd_tensor_from(y, OPD_INTS(POINTS, 1), OPD_FLOAT64), parameter(0, INPUTS), parameter(0, 0),
                  parameter(-0.5, 0)};
    opd_tensor *params[] = {gp.length, gp.scale, gp.noise};
    if (train(s, "process", process_loss, &gp, params, 3) == 0 && !s->losses) {
        const bool was = opd_grad_mode_set(false);
        const double *length = opd_data_f64(gp.length);
        printf("length scales %.2f and %.2f (the second input means nothing), noise %.3f (it is 0.2)\n", exp(length[0]),
               exp(length[1]), exp_of(gp.noise));
        process_plot(&gp);
        opd_grad_mode_set(was);
    }
    for (int i = 0; i < 3; i++) { opd_release(params[i]); }
    return opd_ok() ? 0 : -1;
}

//-- a Kalman filter --------------------------------------------------------------------------------------------------------

/* The position that a filter estimates at each time, and its deviation. */
typedef struct beliefs { double position[TIMES], deviation[TIMES]; } beliefs;

typedef struct filter {
    double seen[TIMES];                           /* observed positions; NAN: no observation */
    opd_tensor *move, *see;                       /* (2, 2) state transition, (1, 2) observation matrix */
    opd_tensor *push;   /* (2, 2) covariance of a step's process noise, for pushes of deviation 1 */
    opd_tensor *jerk, *sensor;                    /* logarithms of the deviations of pushes and of the sensor */
    int count;                                    /* number of observations */
} filter;

/* Runs a filter over all times.  Returns -log p(seen) / count.  If told is not NULL, fills in the estimates. */
static opd_tensor *filtered(const filter *k, beliefs *told) {
    opd_tensor *state = opd_zeros(OPD_INTS(2, 1), OPD_FLOAT64), *spread = opd_eye(2, OPD_FLOAT64);
    opd_tensor *pushed = opd_mul(k->push, opd_exp(opd_mul_Scalar(k->jerk, OPD_V(2))));
    opd_tensor *noise = opd_exp(opd_mul_Scalar(k->sensor, OPD_V(2)));
    opd_tensor *sum = opd_zeros(OPD_INTS(1, 1), OPD_FLOAT64);
    for (int t = 0; t < TIMES && opd_ok(); t++) {
        state = opd_mm(k->move, state);
        spread = opd_add(opd_mm(opd_mm(k->move, spread), opd_mT(k->move)), pushed);
        if (!isnan(k->seen[t])) {
            opd_tensor *across = opd_mm(spread, opd_mT(k->see));                         /* (2, 1) */
            opd_tensor *surprise = opd_add(opd_mm(k->see, across), noise);               /* (1, 1) */
            opd_tensor *off = opd_sub(opd_full(OPD_INTS(1, 1), OPD_V(k->seen[t]), OPD_FLOAT64), opd_mm(k->see, state));
            opd_tensor *gain = opd_linalg_solve_full(surprise, across, false);           /* across surprise^-1 */
            opd_tensor *cost = opd_mm(opd_mT(off), opd_linalg_solve(surprise, off));
            state = opd_add(state, opd_mm(gain, off));
            spread = opd_sub(spread, opd_mm(gain, opd_mT(across)));
            sum = opd_add(sum, opd_mul_Scalar(opd_add(cost, opd_logdet(surprise)), OPD_V(0.5)));
        }
        if (told && opd_ok()) {
            told->position[t] = opd_item_f64(opd_select(state, 0, 0));
            told->deviation[t] = sqrt(opd_item_f64(opd_select(opd_select(spread, 0, 0), 0, 0)));
        }
    }
    return opd_add_Scalar(opd_div_Scalar(opd_sum(sum), OPD_V(k->count)), OPD_V(0.91893853320467274));
}
static opd_tensor *filter_loss(const void *model) { return filtered((const filter *)model, NULL); }

static int kalman_filter(const settings *s) {
    const double step = 0.15;
    const double move[2][2] = {{1, step}, {0, 1}}, see[1][2] = {{1, 0}};
    const double push[2][2] = {{step * step * step / 3, step * step / 2}, {step * step / 2, step}};
    filter k;
    uint32_t state = 2;
    OPD_SCOPED;
    k.count = 0;
    for (int t = 0; t < TIMES; t++) {
        const double noise = 0.25 * normal(&state);
        k.seen[t] = t >= GAP_BEGIN && t < GAP_END ? (double)NAN : 1.5 * sin(0.9 * step * t) + noise;
        k.count += !isnan(k.seen[t]);
    }
    k.move = opd_tensor_from(move, OPD_INTS(2, 2), OPD_FLOAT64);
    k.see = opd_tensor_from(see, OPD_INTS(1, 2), OPD_FLOAT64);
    k.push = opd_tensor_from(push, OPD_INTS(2, 2), OPD_FLOAT64);
    k.jerk = parameter(1, 0);
    k.sensor = parameter(0, 0);
    opd_tensor *params[] = {k.jerk, k.sensor};
    if (train(s, "filter", filter_loss, &k, params, 2) == 0 && !s->losses) {
        const bool was = opd_grad_mode_set(false);
        beliefs told;
        plot p;
        (void)filtered(&k, &told);
        printf("pushes of %.3f, a sensor that is off by %.3f (it is 0.25)\n", exp_of(k.jerk), exp_of(k.sensor));
        plot_begin(&p, -3, 3);
        for (int t = 0; t < TIMES && opd_ok(); t++) {
            plot_band(&p, t, told.position[t], told.deviation[t]);
            if (!isnan(k.seen[t])) { plot_point(&p, t, k.seen[t]); }
        }
        if (opd_ok()) { plot_show(&p, "A Kalman filter: a swing whose sensor fails for a while"); }
        opd_grad_mode_set(was);
    }
    for (int i = 0; i < 2; i++) { opd_release(params[i]); }
    return opd_ok() ? 0 : -1;
}

static int usage(FILE *to, int status) {
    fprintf(to, "usage: gaussian_process [--steps N] [--losses]\n"
                "  Trains a Gaussian process and a Kalman filter, and draws the results.\n"
                "  --steps N   steps of Adam for each of them (200)\n"
                "  --losses    prints the loss of each step instead of pictures\n");
    return status;
}

int main(int argc, char **argv) {
    settings s = {200, false};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) { return usage(stdout, 0); }
        else if (strcmp(argv[i], "--losses") == 0) { s.losses = true; }
        else if (strcmp(argv[i], "--steps") == 0 && i + 1 < argc) { s.steps = atoi(argv[++i]); }
        else { fprintf(stderr, "gaussian_process: '%s' is not understood\n", argv[i]); return usage(stderr, 2); }
    }
    if (s.steps < 1) { fprintf(stderr, "gaussian_process: --steps needs a number of at least 1\n"); return 2; }
    if (gaussian_process(&s) == 0) { kalman_filter(&s); }
    return opd_finish();
}
