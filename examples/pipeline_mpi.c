/* Trains a network that is divided by layers over MPI: each process is a stage, which has some of the layers, and
   passes its results on to the next stage.
   mpicc -O2 examples/pipeline_mpi.c -o pipeline_mpi -lm
   mpirun -n 4 ./pipeline_mpi
   ci: mpirun -n 2 and 4, --plain (tests/mpi.sh)

   A batch is cut into microbatches, so that the stages work at the same time.  The schedule is one forward, one
   backward (1F1B): stage s of n, counted from 0, first runs n - 1 - s forwards, then a forward and a backward in turn,
   and at the end the remaining backwards.  So stage s keeps at most n - s microbatches in memory, whatever their
   number.  With --gpipe, a stage runs all forwards first, and then all backwards.

   Forward and backward of a stage are two graphs, which are recorded once.  isend and irecv of _c10d_functional are
   operators, so a graph can receive, compute and send.  The forward graph of the last stage computes the loss.  Of each
   microbatch, only the input of the stage is kept: the backward graph computes the layers again from this input, and
   returns the gradients, which are summed over the microbatches.  With any number of stages, losses equal those of one
   process, except for rounding.  Options: --steps N, --micro N, --gpipe, --seed N, --plain, --help. */
#define OPDISPATCH_IMPLEMENTATION
#include "mpi_group.c"

#include <math.h>

enum { LAYERS = 8, WIDTH = 32, BATCH = 64, MICRO_MOST = 32, HERE_MOST = 2 * LAYERS };
/* tags of messages; messages with one tag arrive in the order in which they were sent */
enum { VALUES = 1, GRADIENTS = 2 };

typedef struct stage {
    opd_group *world;
    int rank, ranks, layers, nparams, rows;       /* rows: rows of a microbatch */
    opd_tensor *params[HERE_MOST], *sums[HERE_MOST];          /* weights and biases of its layers; sums of gradients */
    opd_graph *forward, *backward;
    opd_tensor *inputs[MICRO_MOST];               /* inputs of microbatches between forward and backward */
    int alive, most;                              /* the number of these inputs, now and at most */
} stage;

//-- forward and backward of a stage, which are recorded as graphs -----------------------------------------------------

static opd_tensor *pair_call(const char *name, opd_tensor *tensor, int peer, int tag) {
    const opd_value args[4] = {opd_value_tensor(tensor), opd_value_int(peer), opd_value_int(tag),
                               opd_value_str("world")};
    return opd_call_op(opd_find(name), args, 4);
}
static opd_tensor *receive(opd_tensor *into, int from, int tag) {
    return pair_call("_c10d_functional::irecv", into, from, tag);
}
static opd_tensor *layers(const stage *s, opd_tensor *x, opd_tensor *const *params) {
    for (int i = 0; i < s->layers; i++) {
        x = opd_tanh(opd_add(opd_matmul(x, params[2 * i]), params[2 * i + 1]));
    }
    return x;
}
/* in: x (memory for the received input, except on the first stage), the target, and the parameters.  Returns the input,
   which is kept for backward, and on the last stage also the loss. */
static int forward_of(void *user, opd_tensor *const *in, int count, opd_tensor **out) {
    const stage *s = (const stage *)user;
    opd_tensor *x = s->rank > 0 ? receive(in[0], s->rank - 1, VALUES) : in[0];
    opd_tensor *y = layers(s, x, in + 2);
    out[0] = x;
    if (s->rank + 1 < s->ranks) {
        out[1] = pair_call("_c10d_functional::isend", y, s->rank + 1, VALUES);
    } else {
        opd_tensor *off = opd_sub(y, in[1]);
        out[1] = opd_mean(opd_mul(off, off));
    }
    return count > 2 && out[0] && out[1] ? 2 : -1;
}
/* in: the input, the target (or memory for the received gradient), and the parameters.  Returns the gradients of the
   parameters. */
static int backward_of(void *user, opd_tensor *const *in, int count, opd_tensor **out) {
    const stage *s = (const stage *)user;
    opd_tensor *leaves[HERE_MOST + 1], *grads[HERE_MOST + 1] = {0};
    opd_backward_options options;
    memset(&options, 0, sizeof options);
    for (int i = 0; i <= s->nparams; i++) {
        leaves[i] = opd_tensor_set_requires_grad(opd_detach(in[i == s->nparams ? 0 : i + 2]), true);
    }
    opd_tensor *y = layers(s, leaves[s->nparams], leaves), *grad = NULL;
    if (s->rank + 1 < s->ranks) {
        grad = receive(in[1], s->rank + 1, GRADIENTS);
    } else {
        opd_tensor *off = opd_sub(y, in[1]);
        y = opd_mean(opd_mul(off, off));
    }
    options.grad_outputs = grad ? &grad : NULL;
    if (!y || opd_autograd_grad(&y, 1, leaves, s->nparams + 1, &options, grads) < 0) { return -1; }
    for (int i = 0; i < s->nparams; i++) { out[i] = grads[i]; }
    if (s->rank > 0) { (void)pair_call("_c10d_functional::isend", grads[s->nparams], s->rank - 1, GRADIENTS); }
    return count > 2 && opd_ok() ? s->nparams : -1;
}

//-- a step: the order of microbatches ---------------------------------------------------------------------------------

static opd_tensor *rows_of(opd_tensor *all, const stage *s, int m) {
    return opd_narrow(all, 0, (int64_t)m * s->rows, s->rows);
}
/* The inputs of both graphs: two tensors, then the parameters. */
static int run(const opd_graph *graph, const stage *s, opd_tensor *first, opd_tensor *second, opd_tensor **out) {
    opd_tensor *in[HERE_MOST + 2];
    in[0] = first;
    in[1] = second;
    for (int i = 0; i < s->nparams; i++) { in[i + 2] = opd_tensor_data(s->params[i]); }
    return opd_graph_run(graph, in, s->nparams + 2, out, HERE_MOST);
}
static opd_tensor *memory(const stage *s) { return opd_zeros(OPD_INTS(s->rows, WIDTH), OPD_FLOAT32); }
/* Forward of microbatch m; returns its loss on the last stage, else 0. */
static double forward(stage *s, opd_tensor *x, opd_tensor *wanted, int m) {
    opd_tensor *out[2];
    double loss = 0;
    OPD_SCOPE {
        opd_tensor *first = s->rank > 0 ? memory(s) : rows_of(x, s, m);
        if (run(s->forward, s, first, rows_of(wanted, s, m), out) == 2) {
            s->inputs[m] = opd_keep(out[0]);
            if (s->rank + 1 == s->ranks) { loss = opd_item_f64(out[1]); }
            if (++s->alive > s->most) { s->most = s->alive; }
        }
    }
    return loss;
}
static void backward(stage *s, opd_tensor *wanted, int m) {
    opd_tensor *out[HERE_MOST];
    OPD_SCOPE {
        opd_tensor *second = s->rank + 1 < s->ranks ? memory(s) : rows_of(wanted, s, m);
        if (run(s->backward, s, s->inputs[m], second, out) == s->nparams) {
            for (int i = 0; i < s->nparams; i++) { opd_add_(s->sums[i], out[i]); }
        }
    }
    opd_release(s->inputs[m]);
    s->inputs[m] = NULL;
    s->alive--;
}
/* Runs one batch.  Returns the mean loss on the last stage. */
static double step(stage *s, opd_tensor *x, opd_tensor *wanted, int micro, bool gpipe) {
    const int ahead = gpipe || micro < s->ranks - s->rank ? micro : s->ranks - s->rank;
    double loss = 0;
    for (int m = 0; m < ahead && opd_ok(); m++) { loss += forward(s, x, wanted, m); }
    for (int m = 0; m < micro && opd_ok(); m++) {
        backward(s, wanted, m);
        if (m + ahead < micro) { loss += forward(s, x, wanted, m + ahead); }
    }
    return loss / micro;
}

//-- the program -------------------------------------------------------------------------------------------------------

/* Every rank computes the random parameters of all layers, and keeps the parameters of its own layers,
   [first, first + layers). */
static void stage_make(stage *s, opd_group *world, int micro) {
    memset(s, 0, sizeof *s);
    s->world = world;
    s->rank = opd_group_rank(world);
    s->ranks = opd_group_size(world);
    s->rows = BATCH / micro;
    const int first = LAYERS * s->rank / s->ranks;
    s->layers = LAYERS * (s->rank + 1) / s->ranks - first;
    s->nparams = 2 * s->layers;
    for (int i = 0; i < LAYERS; i++) {
        OPD_SCOPE {
            opd_tensor *weight = opd_init_normal_(opd_empty(OPD_INTS(WIDTH, WIDTH), OPD_FLOAT32), 0, 1 / sqrt(WIDTH));
            opd_tensor *bias = opd_init_normal_(opd_empty(OPD_INTS(WIDTH), OPD_FLOAT32), 0, 0.1);
            if (i >= first && i < first + s->layers) {
                s->params[2 * (i - first)] = opd_keep(weight);
                s->params[2 * (i - first) + 1] = opd_keep(bias);
            }
        }
    }
    OPD_SCOPE {
        opd_tensor *in[HERE_MOST + 2];
        opd_trace_options options;
        memset(&options, 0, sizeof options);
        options.parts = true;
        for (int i = 0; i < s->nparams; i++) {
            s->sums[i] = opd_keep(opd_zeros_like(s->params[i]));
            in[i + 2] = s->params[i];
        }
        in[0] = in[1] = memory(s);   /* recording runs the function, so all stages must record at the same time */
        s->forward = opd_graph_trace(forward_of, s, in, s->nparams + 2, &options);
        in[0] = memory(s);
        in[1] = memory(s);
        s->backward = opd_graph_trace(backward_of, s, in, s->nparams + 2, &options);
    }
}
static void stage_free(stage *s) {
    for (int i = 0; i < s->nparams; i++) {
        opd_release(s->params[i]);
        opd_release(s->sums[i]);
    }
    for (int m = 0; m < MICRO_MOST; m++) { opd_release(s->inputs[m]); }
    opd_graph_free(s->forward);
    opd_graph_free(s->backward);
}
/* Gradient descent with the mean gradient of the microbatches. */
static void descend(stage *s, int micro) {
    for (int i = 0; i < s->nparams; i++) {
        OPD_SCOPE { opd_sub_(s->params[i], opd_mul_Scalar(s->sums[i], OPD_V(0.5 / micro))); }
        opd_zero_(s->sums[i]);
    }
}
static void train(opd_group *world, int steps, int micro, bool gpipe, bool plain) {
    stage s;
    stage_make(&s, world, micro);
    const double begun = MPI_Wtime();
    for (int i = 1; i <= steps && opd_ok(); i++) {
        OPD_SCOPE {
            double loss = 0;
            opd_tensor *x = opd_randn(OPD_INTS(BATCH, WIDTH), OPD_FLOAT32);   /* the same on every rank */
            opd_tensor *wanted = opd_mul_Scalar(opd_sin(x), OPD_V(0.5));
            loss = step(&s, x, wanted, micro, gpipe);
            descend(&s, micro);
            opd_tensor *all = opd_broadcast(opd_full(OPD_INTS(1), OPD_V(loss), OPD_FLOAT64), s.ranks - 1, "world");
            loss = opd_item_f64(all);
            if (s.rank == 0 && opd_ok() && (plain || i % 10 == 0)) { printf("step %3d, loss %.4f\n", i, loss); }
        }
    }
    OPD_SCOPE {
        double mine[1] = {s.most};
        opd_tensor *all = opd_all_gather(opd_tensor_from(mine, OPD_INTS(1), OPD_FLOAT64), "world");
        const double *most = opd_data_f64(all);
        if (most && s.rank == 0) {
            printf("%d stage(s), %d microbatches, at most alive:", s.ranks, micro);
            for (int i = 0; i < s.ranks; i++) { printf(" %.0f", most[i]); }
            if (!plain) { printf("; %.1f steps per second", steps / (MPI_Wtime() - begun)); }
            printf("\n");
        }
    }
    stage_free(&s);
}

int main(int argc, char **argv) {
    int steps = 100, micro = 8;
    bool gpipe = false, plain = false;
    unsigned long long seed = 0;
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--plain") == 0) { plain = true; }
        else if (strcmp(argv[i], "--gpipe") == 0) { gpipe = true; }
        else if (strcmp(argv[i], "--steps") == 0 && more) { steps = atoi(argv[++i]); }
        else if (strcmp(argv[i], "--micro") == 0 && more) { micro = atoi(argv[++i]); }
        else if (strcmp(argv[i], "--seed") == 0 && more) { seed = strtoull(argv[++i], NULL, 10); }
        else {
            if (mpi_group_speaks()) {
                fprintf(stderr, "usage: mpirun -n STAGES ./pipeline_mpi [--steps N] [--micro N] [--gpipe] [--seed N] "
                        "[--plain]\n");
            }
            return strcmp(argv[i], "--help") == 0 ? 0 : 2;
        }
    }
    if (steps < 1 || micro < 1 || micro > MICRO_MOST || BATCH % micro) {
        fprintf(stderr, "pipeline_mpi: --steps is at least 1, --micro at most %d and divides %d\n", MICRO_MOST, BATCH);
        return 2;
    }
    if (!getenv("OPD_NUM_THREADS")) { opd_threads_set(1); }
    opd_group *world = mpi_group_begin();
    opd_manual_seed(seed);
    if (world && opd_group_size(world) > LAYERS) {
        opd_fail(OPD_ERROR_USER, "there are %d layers for %d stages", LAYERS, opd_group_size(world));
    } else if (world) { train(world, steps, micro, gpipe, plain); }
    mpi_group_end(world);
    return opd_finish();
}
