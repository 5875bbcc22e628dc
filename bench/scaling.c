/* Predicts how training scales to 1,024 ranks, from the times of a model's layers on one rank and from the latency and
   bandwidth of a network.  With MPI, it also compares predictions with measured steps on this machine.
   cc -O2 bench/scaling.c -o bench_scaling -lm -lpthread
   ./bench_scaling --help
   mpicc -O2 -DSCALING_MPI bench/scaling.c -o bench_scaling_mpi -lm && mpirun -n 2 ./bench_scaling_mpi

   `mpirun -n 2 ./bench_scaling_mpi --measure` prints how much communication is hidden behind computing, and how much
   faster two ranks are than one.  These figures are medians.  All ranks begin a step together, and a step ends when the
   slowest rank ends.

   The program measures forward and backward of each layer of a small transformer for several batch sizes, or reads
   these times from a table (--table).  Between two measured batch sizes, it interpolates linearly.  For larger batches,
   the time per sequence is that of the largest measured batch.  Then it simulates a training step, in the order in
   which the library computes it:
   - Data parallel: the gradients of the layers are ready in reverse order, and go into the buckets of
     opd_data_parallel.  When a bucket is full, it is copied and its all-reduce begins.  Only one all-reduce runs at a
     time.  After backward, the rank waits for the remaining transfers, and then the optimizer steps.  If the number of
     ranks is not a power of two, gradients are divided by this number before they are summed.
   - Sharded: each weight is gathered before its forward and again before its backward, and the rank waits for both.
     The reduce-scatter of a gradient shares the network with the next gather, so the rank waits for it, too.  Each rank
     updates its part of the parameters.

   While a rank computes, a transfer runs at `overlap` times its full speed.  The value is 1 if a network card or a
   thread moves the data, and 0 if data move only inside of MPI calls, as with examples/mpi_group.c without such a
   thread.  The tables have both cases.

   The time of a transfer of n bytes among p ranks, with latency a, b seconds per byte, and g seconds to add a byte
   (Thakur, Rabenseifner and Gropp, Optimization of Collective Communication Operations in MPICH, IJHPCA 19(1), 2005):
       ring      reduce-scatter (p - 1) (a + n/p (b + g)), all-gather (p - 1) (a + n/p b)
       halving   reduce-scatter lg p a + (p - 1)/p n (b + g) by recursive halving, all-gather lg p a + (p - 1)/p n b by
                 recursive doubling.  If p is not a power of two, the extra ranks first send all data to others,
                 a + n (b + g), and get the result at the end, a + n b
       tree      reduce lg p (a + n (b + g)), broadcast lg p (a + n b), with lg p rounded up, by binomial trees
   An all-reduce consists of both parts.  If a node has several ranks, the ranks of each node communicate first, and
   then the nodes.  By ring and halving, each rank of a node sends its part of the n bytes, and all of them share one
   network card.  By tree, one rank of each node sends all n bytes.

   If ranks share cores, they take turns: on 2 cores, 4 ranks take twice as long to compute and to move data (--cores).
   The time that a rank waits for its turn is not in the prediction.  Cores that compute at the same time are slower
   than one core alone, because they share caches and memory.  Therefore, layers are measured on two ranks at once if
   the prediction is compared with steps on this machine. */
#define OPDISPATCH_IMPLEMENTATION
#if defined(SCALING_MPI)
#include "../examples/mpi_group.c"
#else
#include "../opdispatch.h"
#endif
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ALONE = 512 << 10 };                       /* a gradient of more bytes goes into no bucket */
enum { PIECES = 256, BATCHES = 4, HEADS = 4, LETTERS = 256, MOST = 1024, WARM = 2, TURNS = 60 };
enum { RING, HALVING, TREE, ALGORITHMS, FASTEST = ALGORITHMS };
static const char *const algorithm_names[] = {"ring", "halving", "tree", "auto"};

/* A weight, and the computing up to it from the weight before: seconds of forward and backward for each batch size. */
typedef struct piece { char name[24]; int64_t numel; double forward[BATCHES], backward[BATCHES]; } piece;
typedef struct kernels {
    int count, batches;
    int64_t batch[BATCHES];                       /* in ascending order */
    double copy, add, update;   /* seconds per byte for copying into a bucket, for adding, and for the optimizer */
    piece pieces[PIECES];
} kernels;
typedef struct network {
    const char *name, *title;
    double latency, byte;                         /* between nodes, in seconds */
    double inner_latency, inner_byte;             /* between ranks of one node */
    double overlap;
    int per_node, cores;                          /* ranks per node; cores per node, 0: one per rank */
} network;
typedef struct plan {
    network net;
    int algorithm;
    bool sharded;
    double bucket;                                /* bytes */
} plan;
/* A predicted step: its seconds, the seconds of waiting for transfers, and the algorithm of the largest transfer. */
typedef struct outcome { double seconds, waits; int algorithm; } outcome;

#define GIGABITS(n) (8e-9 / (n))
#define ONE_NODE 1e-6, GIGABITS(64)
/* Typical values of such networks, rounded.  --latency and --bandwidth set others. */
static const network networks[] = {
    {"shared", "one machine, shared memory", ONE_NODE, ONE_NODE, 0, 1 << 20, 0},
    {"25gbe", "25 Gb Ethernet, 20 us", 20e-6, GIGABITS(25), ONE_NODE, 1, 1, 0},
    {"100gbe", "100 Gb Ethernet, 5 us", 5e-6, GIGABITS(100), ONE_NODE, 1, 1, 0},
    {"infiniband", "InfiniBand, 200 Gb, 1.5 us", 1.5e-6, GIGABITS(200), ONE_NODE, 1, 1, 0}};
enum { NETWORKS = 4, CURVES = 3 };                /* the plot has the last three networks */

//-- transfers ---------------------------------------------------------------------------------------------------------

/* Returns the time of the first half of an all-reduce among p ranks over one kind of link; with add 0, of the
   second. */
static double half_of(int algorithm, double latency, double byte, int p, double n, double add) {
    int steps = 0;
    while (2 << steps <= p) { steps++; }          /* lg p, rounded down */
    const double q = 1 << steps, each = byte + add;
    if (p <= 1) { return 0; }
    if (algorithm == RING) { return (p - 1) * (latency + n / p * each); }
    if (algorithm == TREE) { return (steps + (p > q)) * (latency + n * each); }
    return steps * latency + (q - 1) / q * n * each + (p > q ? latency + n * each : 0);
}
/* Returns the time of a reduce-scatter over nodes and the ranks inside of them; with add 0, of an all-gather. */
static double half_time(const network *net, int algorithm, int ranks, double n, double add) {
    const int inside = ranks < net->per_node ? ranks : net->per_node, nodes = (ranks + inside - 1) / inside;
    const double inner = half_of(algorithm, net->inner_latency, net->inner_byte, inside, n, add);
    if (algorithm == TREE) { return inner + half_of(TREE, net->latency, net->byte, nodes, n, add); }
    return inner + half_of(algorithm, net->latency, net->byte * inside, nodes, n / inside, add);
}
static double all_reduce_time(const network *net, int algorithm, int ranks, double n, double add) {
    return half_time(net, algorithm, ranks, n, add) + half_time(net, algorithm, ranks, n, 0);
}
enum { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER };
/* Returns the time of a transfer with the algorithm of the plan, or with the fastest one.  Sets *used to the
   algorithm.  A tree cannot compute only one half. */
static double transfer_time(const plan *p, const kernels *k, int kind, int ranks, double n, int *used) {
    double best = INFINITY;
    for (int a = 0; a < ALGORITHMS; a++) {
        if ((p->algorithm != FASTEST && a != p->algorithm) || (a == TREE && kind != ALL_REDUCE)) { continue; }
        const double t = kind == ALL_REDUCE ? all_reduce_time(&p->net, a, ranks, n, k->add)
            : half_time(&p->net, a, ranks, n, kind == REDUCE_SCATTER ? k->add : 0);
        if (t < best) { best = t; *used = a; }
    }
    return best;
}

//-- a step ------------------------------------------------------------------------------------------------------------

/* The simulated time.  It advances by computing, during which queued transfers continue, and by waiting for
   transfers. */
typedef struct walk { double now, queue, waits, overlap, share; } walk;
static void computes(walk *w, double seconds) {
    w->now += seconds * w->share;
    w->queue = fmax(0, w->queue - seconds * w->share * w->overlap);
}
static void waits(walk *w) {
    w->now += w->queue;
    w->waits += w->queue;
    w->queue = 0;
}
static double bytes_of(const kernels *k) {
    double bytes = 0;
    for (int i = 0; i < k->count; i++) { bytes += 4.0 * (double)k->pieces[i].numel; }
    return bytes;
}
/* Returns the time for a batch, interpolated between measured batch sizes.  A larger batch takes as much time per
   sequence as the largest measured one. */
static double time_of(const kernels *k, const double *times, double batch) {
    const int last = k->batches - 1;
    const double most = (double)k->batch[last];
    int i = 1;
    if (batch >= most || last == 0) { return times[last] * batch / most; }
    while (i < last && batch > (double)k->batch[i]) { i++; }
    const double from = (double)k->batch[i - 1], slope = (times[i] - times[i - 1]) / ((double)k->batch[i] - from);
    return fmax(0, times[i - 1] + slope * (batch - from));
}
/* Writes the bucket of each gradient.  Returns the number of buckets. */
static int deal(const kernels *k, double most, int *bucket) {
    double filled = 0, before = 0;
    int count = 0;
    for (int i = k->count - 1; i >= 0; before = 4.0 * (double)k->pieces[i--].numel) {
        const double bytes = 4.0 * (double)k->pieces[i].numel;
        if (count == 0 || filled + bytes > most || fmax(bytes, before) >= ALONE) {
            count++;
            filled = 0;
        }
        bucket[i] = count - 1;
        filled += bytes;
    }
    return count;
}
static void walk_data_parallel(const plan *p, const kernels *k, int ranks, double batch, walk *w, int *used) {
    int bucket[PIECES], other;
    double filled = 0, largest = 0;
    (void)deal(k, p->bucket, bucket);
    if (ranks > 1) {                              /* opd_parallel_begin sums a number over all ranks */
        w->queue += transfer_time(p, k, ALL_REDUCE, ranks, 8, used) * w->share;
        waits(w);
    }
    for (int i = 0; i < k->count; i++) { computes(w, time_of(k, k->pieces[i].forward, batch)); }
    for (int i = k->count - 1; i >= 0; i--) {
        computes(w, time_of(k, k->pieces[i].backward, batch));
        filled += 4.0 * (double)k->pieces[i].numel;
        if (ranks == 1 || (i > 0 && bucket[i - 1] == bucket[i])) { continue; }
        computes(w, k->copy * (filled >= ALONE && 4.0 * (double)k->pieces[i].numel == filled ? filled / 2 : filled));
        w->queue += transfer_time(p, k, ALL_REDUCE, ranks, filled, filled > largest ? used : &other) * w->share;
        largest = fmax(largest, filled);
        filled = 0;
    }
    waits(w);
    computes(w, bytes_of(k) * (k->update + ((ranks & (ranks - 1)) != 0 ? k->copy : 0)));
}
static void walk_sharded(const plan *p, const kernels *k, int ranks, double batch, walk *w, int *used) {
    int other;
    double largest = 0;
    w->queue += transfer_time(p, k, REDUCE_SCATTER, ranks, 8, used) * 2 * w->share;
    waits(w);
    for (int i = 0; i < 2 * k->count; i++) {      /* forward, and then backward */
        const piece *const one = &k->pieces[i < k->count ? i : 2 * k->count - 1 - i];
        const double bytes = 4.0 * (double)one->numel;
        w->queue += transfer_time(p, k, ALL_GATHER, ranks, bytes, bytes > largest ? used : &other) * w->share;
        waits(w);
        largest = fmax(largest, bytes);
        computes(w, time_of(k, i < k->count ? one->forward : one->backward, batch));
        if (i < k->count) { continue; }
        computes(w, ranks > 1 ? k->copy * bytes : 0);
        w->queue += transfer_time(p, k, REDUCE_SCATTER, ranks, bytes, &other) * w->share;
    }
    waits(w);
    computes(w, bytes_of(k) * k->update / ranks);
}
/* Predicts a training step on `ranks` ranks, each with `batch` examples. */
static outcome predict(const plan *p, const kernels *k, int ranks, double batch) {
    const int inside = ranks < p->net.per_node ? ranks : p->net.per_node;
    walk w = {0, 0, 0, p->net.overlap, 1};
    outcome result = {0, 0, RING};
    if (p->net.cores > 0 && inside > p->net.cores) { w.share = (double)inside / p->net.cores; }
    (p->sharded ? walk_sharded : walk_data_parallel)(p, k, ranks, batch, &w, &result.algorithm);
    result.seconds = w.now;
    result.waits = w.waits;
    return result;
}

//-- the times of layers on this machine -------------------------------------------------------------------------------

typedef struct settings {
    int blocks, features, tokens, batch, whole, ranks, rounds;
    const char *table, *record, *plot;
    bool measure;
} settings;
typedef struct model {
    const settings *sizes;
    opd_tensor *params[PIECES];
    int count, at, arrived;
    int64_t batch;
    opd_tensor *x, *labels;
    opd_parallel *parallel;                       /* or NULL */
    bool sharded;
    opd_optimizer *adam;
    double begun, ends[PIECES], arrivals[PIECES], ended, updated;
} model;
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static const char *piece_name(const settings *s, int i, char *buf, size_t cap) {
    static const char *const names[] = {"attention", "out", "up", "down"};
    if (i == 4 * s->blocks) { (void)snprintf(buf, cap, "head"); }
    else { (void)snprintf(buf, cap, "%d.%s", i / 4, names[i % 4]); }
    return buf;
}
static void model_make(model *m, const settings *s, int64_t batch) {
    const int64_t d = s->features;
    const int64_t rows[] = {3 * d, d, 4 * d, d}, columns[] = {d, d, d, 4 * d};
    memset(m, 0, sizeof *m);
    m->sizes = s;
    m->batch = batch;
    m->count = 4 * s->blocks + 1;
    OPD_SCOPED;
    for (int i = 0; i < m->count && opd_ok(); i++) {
        const bool head = i == m->count - 1;
        opd_tensor *w = opd_empty(OPD_INTS(head ? LETTERS : rows[i % 4], head ? d : columns[i % 4]), OPD_FLOAT32);
        m->params[i] = opd_keep(opd_tensor_set_requires_grad(opd_init_normal_(w, 0, 0.02), true));
    }
    m->x = opd_keep(opd_randn(OPD_INTS(batch, s->tokens, d), OPD_FLOAT32));
    m->labels = opd_keep(opd_randint(LETTERS, OPD_INTS(batch * s->tokens), OPD_INT64));
}
static void model_free(model *m) {
    opd_optimizer_free(m->adam);
    opd_parallel_free(m->parallel);
    opd_release(m->x);
    opd_release(m->labels);
    for (int i = 0; i < m->count; i++) { opd_release(m->params[i]); }
}
static opd_tensor *linear(model *m, opd_tensor *x) {
    const int i = m->at++;
    opd_tensor *y = opd_linear(x, m->sharded ? opd_parallel_full(m->parallel, m->params[i]) : m->params[i], NULL);
    m->ends[i] = now();
    return y;
}
/* Returns the queries, keys or values in [n, t, 3 d] as [n, heads, t, d / heads]. */
static opd_tensor *part_of(const model *m, opd_tensor *x, int which) {
    const int64_t d = m->sizes->features;
    opd_tensor *part = opd_narrow(x, 2, which * d, d);
    return opd_transpose(opd_reshape(part, OPD_INTS(opd_size(x, 0), opd_size(x, 1), HEADS, d / HEADS)), 1, 2);
}
static opd_tensor *loss_of(model *m) {
    const int64_t d = m->sizes->features;
    opd_tensor *x = m->x;
    m->at = m->arrived = 0;
    for (int i = 0; i < m->sizes->blocks && opd_ok(); i++) {
        opd_tensor *h = linear(m, opd_rms_norm(x, OPD_INTS(d), NULL, OPD_NONE));
        opd_tensor *seen = opd_scaled_dot_product_attention_full(part_of(m, h, 0), part_of(m, h, 1), part_of(m, h, 2),
                                                                 NULL, 0, true, opd_value_none(), false);
        seen = opd_reshape(opd_transpose(seen, 1, 2), OPD_INTS(opd_size(x, 0), opd_size(x, 1), d));
        x = opd_add(x, linear(m, seen));
        h = linear(m, opd_rms_norm(x, OPD_INTS(d), NULL, OPD_NONE));
        x = opd_add(x, linear(m, opd_gelu(h)));
    }
    opd_tensor *scores = linear(m, opd_reshape(opd_rms_norm(x, OPD_INTS(d), NULL, OPD_NONE), OPD_INTS(-1, d)));
    opd_tensor *loss = opd_cross_entropy_loss(scores, m->labels);
    m->ends[m->count - 1] = now();
    return loss;
}
static int arrives(opd_tensor *leaf, void *user) {
    model *const m = (model *)user;
    if (m->arrived >= m->count || leaf != m->params[m->count - 1 - m->arrived]) {
        return opd_fail(OPD_ERROR_USER, "the gradients do not arrive in reverse order");
    }
    m->arrivals[m->count - 1 - m->arrived++] = now();
    return 0;
}
/* Runs a training step, written as in a user's program. */
static void train(model *m) {
    OPD_SCOPED;
    m->begun = now();
    if (m->parallel) { (void)opd_parallel_begin(m->parallel, m->batch); }
    if (m->sharded) { (void)opd_sharded_hooks_begin(m->parallel); }
    opd_tensor *loss = loss_of(m);
    if (m->sharded) { opd_saved_hooks_end(); }
    opd_backward(loss);
    m->ended = now();
    opd_optimizer_step(m->adam);
    opd_optimizer_zero_grad(m->adam);
    m->updated = now();
}
/* Makes a model whose pieces are timed, and fills in the names and sizes of the pieces. */
static void timed_make(model *m, kernels *k, const settings *s, int64_t batch) {
    model_make(m, s, batch);
    m->adam = opd_adamw_new(m->params, m->count, NULL);
    k->count = m->count;
    for (int i = 0; i < m->count && opd_ok(); i++) {
        k->pieces[i].numel = opd_numel(m->params[i]);
        (void)piece_name(s, i, k->pieces[i].name, sizeof k->pieces[i].name);
        (void)opd_tensor_post_accumulate_hook_add(m->params[i], arrives, m, NULL);
    }
}
/* Adds the times of a step to the means over `rounds` steps. */
static void note(kernels *k, const model *m, int which, int rounds) {
    for (int i = 0; i < k->count; i++) {
        k->pieces[i].forward[which] += (m->ends[i] - (i ? m->ends[i - 1] : m->begun)) / rounds;
        const double before = i < k->count - 1 ? m->arrivals[i + 1] : m->ends[i];
        k->pieces[i].backward[which] += (m->arrivals[i] - before) / rounds;
    }
    k->update += (m->updated - m->ended) / bytes_of(k) / rounds / k->batches;
}
/* Measures the time per byte of a gradient that is not in the caches. */
static void measure_bytes(kernels *k, int rounds) {
    const int64_t numel = 1 << 23;
    OPD_SCOPED;
    opd_tensor *grad = opd_ones(OPD_INTS(numel), OPD_FLOAT32), *flat = opd_ones(OPD_INTS(numel), OPD_FLOAT32);
    k->copy = k->add = INFINITY;
    for (int round = 0; round < rounds && opd_ok(); round++) {
        const double begun = now();
        opd_copy_(flat, grad);
        opd_mul_Scalar_(flat, opd_value_double(1));
        const double copied = now();
        opd_add_(flat, grad);
        k->add = fmin(k->add, (now() - copied) / (4.0 * (double)numel));
        k->copy = fmin(k->copy, (copied - begun) / (4.0 * (double)numel));
    }
}
/* Measures a model with one sequence, and with a quarter, half and all of the batch. */
static int measure_kernels(kernels *k, const settings *s) {
    static model m;
    memset(k, 0, sizeof *k);
    for (int part = BATCHES; part > 0; part--) {
        const int64_t batch = part == BATCHES ? 1 : s->batch >> (part - 1);
        if (k->batches == 0 || batch > k->batch[k->batches - 1]) { k->batch[k->batches++] = batch; }
    }
    for (int which = 0; which < k->batches && opd_ok(); which++) {
        timed_make(&m, k, s, k->batch[which]);
        for (int round = 0; round < s->rounds + WARM && opd_ok(); round++) {
            train(&m);
            if (round >= WARM) { note(k, &m, which, s->rounds); }
        }
        model_free(&m);
    }
    measure_bytes(k, s->rounds);
    return opd_ok() ? 0 : -1;
}

//-- tables of kernels -------------------------------------------------------------------------------------------------

/* Writes a line for each weight: its name, its number of elements, and the seconds of forward and backward for each
   batch size. */
static int write_table(const kernels *k, const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) { perror(path); return -1; }
    fprintf(file, "pieces %d batches %d copy %.6g add %.6g update %.6g\nbatch", k->count, k->batches, k->copy, k->add,
            k->update);
    for (int b = 0; b < k->batches; b++) { fprintf(file, " %lld", (long long)k->batch[b]); }
    fprintf(file, "\n");
    for (int i = 0; i < k->count; i++) {
        fprintf(file, "%s %lld", k->pieces[i].name, (long long)k->pieces[i].numel);
        for (int b = 0; b < k->batches; b++) {
            fprintf(file, "  %.6g %.6g", k->pieces[i].forward[b], k->pieces[i].backward[b]);
        }
        fprintf(file, "\n");
    }
    if (fclose(file) == 0) { return 0; }
    perror(path);
    return -1;
}
static bool seconds_in(FILE *file, double *to) {
    return fscanf(file, "%lf", to) == 1 && *to >= 0 && *to < 1e6;
}
static bool scan_table(FILE *file, kernels *k) {
    long long number;
    memset(k, 0, sizeof *k);
    if (fscanf(file, " pieces %d batches %d copy %lf add %lf update %lf batch", &k->count, &k->batches, &k->copy,
               &k->add, &k->update) != 5 ||
        k->count < 1 || k->count > PIECES || k->batches < 1 || k->batches > BATCHES ||
        !(k->copy >= 0 && k->add >= 0 && k->update >= 0 && k->copy + k->add + k->update < 1)) { return false; }
    for (int b = 0; b < k->batches; b++) {
        if (fscanf(file, "%lld", &number) != 1 || number < 1 || (b && number <= k->batch[b - 1])) { return false; }
        k->batch[b] = number;
    }
    for (int i = 0; i < k->count; i++) {
        piece *const one = &k->pieces[i];
        if (fscanf(file, "%23s %lld", one->name, &number) != 2 || number < 0) { return false; }
        one->numel = number;
        for (int b = 0; b < k->batches; b++) {
            if (!seconds_in(file, &one->forward[b]) || !seconds_in(file, &one->backward[b])) { return false; }
        }
    }
    return fscanf(file, "%23s", k->pieces[0].name) != 1;      /* nothing may follow */
}
static int read_table(kernels *k, const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) { perror(path); return -1; }
    const bool right = scan_table(file, k);
    (void)fclose(file);
    if (right) { return 0; }
    fprintf(stderr, "%s: this is not a table that --record has written\n", path);
    return -1;
}

//-- the printed predictions -------------------------------------------------------------------------------------------

/* Returns the efficiency: the predicted speed divided by the best possible one. */
static double efficiency(const plan *p, const kernels *k, const settings *s, bool weak, int ranks) {
    const double alone = predict(p, k, 1, weak ? s->batch : s->whole).seconds;
    const double each = weak ? s->batch : ceil((double)s->whole / ranks);
    return alone / predict(p, k, ranks, each).seconds / (weak ? 1 : ranks);
}
static void print_scaling(const plan *p, const kernels *k, const settings *s, bool weak) {
    plan without = *p;
    without.net.overlap = 0;
    if (weak) { printf("\nWeak scaling: %d sequences on each rank, %s\n\n", s->batch, p->net.title); }
    else { printf("\nStrong scaling: %d sequences divided among the ranks, %s\n\n", s->whole, p->net.title); }
    printf("| ranks | a step, ms | efficiency | | waits | without overlap | algorithm |\n"
           "|---|---|---|---|---|---|---|\n");
    for (int ranks = 1; ranks <= s->ranks; ranks *= 2) {
        const outcome o = predict(p, k, ranks, weak ? s->batch : ceil((double)s->whole / ranks));
        const double good = efficiency(p, k, s, weak, ranks);
        char bar[21] = "....................";
        for (int i = 0; i < 20 && i < (int)lround(20 * good); i++) { bar[i] = '#'; }
        printf("| %d | %.2f | %.1f%% | %s | %.1f%% | %.1f%% | %s |\n", ranks, 1e3 * o.seconds, 100 * good, bar,
               100 * o.waits / o.seconds, 100 * efficiency(&without, k, s, weak, ranks),
               ranks > 1 ? algorithm_names[o.algorithm] : "");
    }
}
enum { WIDE = 380, HIGH = 260, PANEL = 470, LEFT = 60, TOP = 80 };
static void draw_panel(FILE *out, const plan *p, const kernels *k, const settings *s, bool weak) {
    static const char *const colours[CURVES] = {"#c2452d", "#2a6fbb", "#2f8f5b"};
    const int x = LEFT + (weak ? 0 : PANEL);
    char what[80];
    if (weak) { (void)snprintf(what, sizeof what, "weak: %d sequences on each rank", s->batch); }
    else { (void)snprintf(what, sizeof what, "strong: %d sequences divided", s->whole); }
    fprintf(out, "<text x='%d' y='%d' font-weight='bold'>%s</text>\n", x, TOP - 10, what);
    for (int i = 0; i <= 4; i++) {
        const int y = TOP + HIGH - i * HIGH / 4;
        fprintf(out, "<path d='M%d %dh%d' stroke='#ddd'/><text x='%d' y='%d' text-anchor='end'>%d%%</text>\n", x, y,
                WIDE, x - 6, y + 4, 25 * i);
    }
    for (int i = 0; i <= 10; i += 2) {
        fprintf(out, "<text x='%d' y='%d' text-anchor='middle'>%d</text>\n", x + i * WIDE / 10, TOP + HIGH + 18,
                1 << i);
    }
    for (int c = 0; c < 2 * CURVES; c++) {        /* solid lines, then dashed ones */
        plan other = *p;
        other.net = networks[NETWORKS - CURVES + c % CURVES];
        other.net.per_node = p->net.per_node;
        if (c >= CURVES) { other.net.overlap = 0; }
        fprintf(out, "<polyline fill='none' stroke='%s' stroke-width='2'%s points='", colours[c % CURVES],
                c >= CURVES ? " stroke-dasharray='3 4'" : "");
        for (int i = 0; i <= 10; i++) {
            fprintf(out, "%.1f,%.1f ", x + i * WIDE / 10.0,
                    TOP + HIGH * (1 - fmin(1, efficiency(&other, k, s, weak, 1 << i))));
        }
        fprintf(out, "'/>\n");
        if (c < CURVES) {
            fprintf(out, "<text x='%d' y='%d' fill='%s'>%s</text>\n", LEFT + 12, TOP + HIGH - 54 + 18 * c, colours[c],
                    weak ? other.net.title : "");
        }
    }
}
static int draw(const plan *p, const kernels *k, const settings *s) {
    FILE *out = fopen(s->plot, "w");
    if (!out) { perror(s->plot); return -1; }
    fprintf(out, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-size='12' "
            "font-family='Helvetica, Arial, sans-serif'>\n<rect width='100%%' height='100%%' fill='white'/>\n",
            LEFT + PANEL + WIDE + 30, TOP + HIGH + 40);
    fprintf(out, "<text x='%d' y='24' font-size='16' font-weight='bold'>Efficiency by number of ranks, predicted: %s, "
            "%.1f million numbers</text>\n", LEFT, p->sharded ? "sharded" : "data parallel", bytes_of(k) / 4e6);
    fprintf(out, "<text x='%d' y='44' fill='#666'>dashed: transfers that move only while somebody waits; ranks on a "
            "node: %d</text>\n", LEFT, p->net.per_node);
    draw_panel(out, p, k, s, true);
    draw_panel(out, p, k, s, false);
    fprintf(out, "</svg>\n");
    if (fclose(out) == 0) { return 0; }
    perror(s->plot);
    return -1;
}

//-- measured steps ----------------------------------------------------------------------------------------------------

#if defined(SCALING_MPI) || defined(SCALING_CHECKS)
/* The lower quartile, the median and the upper quartile of some times. */
typedef struct spread { double low, middle, high; } spread;
static int by_size(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
/* Returns the value at a place; for a place like 2.5, the mean of its neighbours. */
static double sorted_at(const double *sorted, double place) {
    const int i = (int)place;
    const double part = place - i;
    return part > 0 ? sorted[i] + part * (sorted[i + 1] - sorted[i]) : sorted[i];
}
static spread spread_of(double *values, int count) {
    spread result;
    qsort(values, (size_t)count, sizeof *values, by_size);
    result.low = sorted_at(values, 0.25 * (count - 1));
    result.middle = sorted_at(values, 0.5 * (count - 1));
    result.high = sorted_at(values, 0.75 * (count - 1));
    return result;
}
/* Writes which part of the communication a step hides.  more: the additional time of steps with communication, over so
   many pairs of steps; step: the time of a step without; moved: the time of only the communication.  The error of the
   median of n values is 0.93 quartile ranges / sqrt n (larger in one of three cases).  If this error is a large part of
   the communication, the number would be meaningless, and is not written. */
static void hidden_says(spread more, int pairs, double step, double moved, char *buf, size_t cap) {
    const double off = 0.93 * (more.high - more.low) / sqrt(pairs), hidden = 1 - more.middle / moved;
    if (moved < 0.03 * step) {
        (void)snprintf(buf, cap, "nothing to hide (%.1f%% of a step)", 100 * moved / step);
    } else if (!(off < 0.2 * moved)) {
        (void)snprintf(buf, cap, "cannot be told (steps vary too much: known to %.2f ms)", 1e3 * off);
    } else {
        (void)snprintf(buf, cap, "%.0f%% (+-%.0f)%s", 100 * fmin(1, hidden), 100 * off / moved,
                       hidden + 2 * off / moved < 0.7 ? ", under the target" : "");
    }
}
#endif
#if defined(SCALING_MPI)
/* Waits for all ranks of a group, sleeping, so that ranks that still work have the cores. */
static void meet(opd_group *group) {
    const struct timespec nap = {0, 1000000};
    opd_work *work = opd_group_barrier(group);
    while (work && opd_work_test(work) == 0) { (void)nanosleep(&nap, NULL); }
    opd_work_release(work);
}
/* Returns the seconds in which two ranks send each other `bytes` bytes: the smallest time of `rounds` rounds. */
static double swap_time(opd_group *pair, int64_t bytes, int rounds) {
    const int other = 1 - opd_group_rank(pair);
    double best = INFINITY;
    OPD_SCOPED;
    opd_tensor *from = opd_zeros(OPD_INTS(bytes), OPD_UINT8), *to = opd_zeros(OPD_INTS(bytes), OPD_UINT8);
    for (int round = 0; round < rounds && opd_ok(); round++) {
        (void)opd_work_wait(opd_group_barrier(pair));
        const double begun = now();
        opd_work *send = opd_group_send(pair, from, other, 1), *receive = opd_group_recv(pair, to, other, 1);
        (void)opd_work_wait(receive);
        (void)opd_work_wait(send);
        best = fmin(best, now() - begun);
    }
    return best;
}
/* Compares measured steps of a group with predictions, as means over some rounds.  Before each step of the group, a
   step on a single rank is run, and its layers are timed.  In a larger group, two ranks run such steps at the same
   time, because ranks share caches and memory. */
static void compare(const plan *p, const settings *s, const char *what, opd_group *group, int64_t batch) {
    static model alone, m;
    static kernels k;
    opd_parallel_options options = {0};
    const int rank = opd_group_rank(group), ranks = opd_group_size(group);
    double measured = 0;
    memset(&k, 0, sizeof k);
    k.batches = 1;
    k.batch[0] = batch;
    options.bucket_bytes = (int64_t)p->bucket;
    timed_make(&alone, &k, s, batch);
    model_make(&m, s, batch);
    m.sharded = p->sharded;
    if (m.sharded) { m.parallel = opd_sharded_parallel(m.params, m.count, group, NULL); }
    else if (ranks > 1) { m.parallel = opd_data_parallel(m.params, m.count, group, &options); }
    m.adam = opd_adamw_new(m.params, m.count, NULL);
    for (int round = 0; round < s->rounds + WARM && opd_ok(); round++) {
        (void)opd_work_wait(opd_group_barrier(group));
        if (rank < 2) { train(&alone); }
        meet(group);
        (void)opd_work_wait(opd_group_barrier(group));
        train(&m);
        if (round < WARM) { continue; }
        note(&k, &alone, 0, s->rounds);
        measured += (m.updated - m.begun) / s->rounds;
    }
    if (rank < 2) { measure_bytes(&k, s->rounds); }
    meet(group);
    model_free(&alone);
    model_free(&m);
    if (rank == 0 && opd_ok()) {
        const double said = predict(p, &k, ranks, (double)batch).seconds;
        printf("| %d, %s%lld sequence%s%s | %.1f ms | %.1f ms | %+.0f%% |\n", ranks, what, (long long)batch,
               batch > 1 ? "s" : "", ranks > 1 ? " each" : "", 1e3 * said, 1e3 * measured, 100 * (said - measured) / measured);
        fflush(stdout);
    }
}
/* Returns the seconds in which the ranks sum the gradients of a model, without computing.  Begins all `messages`
   messages before it waits for the first one. */
static double sum_alone(opd_group *group, float *data, int64_t numel, int messages) {
    opd_transfer transfer;
    opd_work *works[PIECES];
    memset(&transfer, 0, sizeof transfer);
    transfer.kind = OPD_COLLECTIVE_ALL_REDUCE;
    transfer.dtype = OPD_FLOAT32;
    const double begun = now();
    for (int i = 0; i < messages; i++) {
        transfer.send = transfer.recv = data + numel * i / messages;
        transfer.count = numel * (i + 1) / messages - numel * i / messages;
        works[i] = opd_group_start(group, &transfer);
    }
    for (int i = 0; i < messages; i++) { (void)opd_work_wait(works[i]); }
    return now() - begun;
}
/* Returns the seconds of a step of all ranks, from a common begin to the end of the slowest rank, also without
   communication. */
static double step_together(model *m, opd_group *group) {
    (void)opd_work_wait(opd_group_barrier(group));
    const double begun = now();
    train(m);
    (void)opd_work_wait(opd_group_barrier(group));
    return now() - begun;
}
/* A network that takes no time and moves no data.  A gather copies this rank's own data for all ranks. */
static int idle_start(void *user, const opd_transfer *transfer, void **request) {
    const size_t bytes = (size_t)transfer->count * opd_dtype_size(transfer->dtype);
    for (int i = 0; i < *(int *)user && transfer->kind == OPD_COLLECTIVE_ALL_GATHER; i++) {
        memcpy((char *)transfer->recv + (size_t)i * bytes, transfer->send, bytes);
    }
    *request = user;
    return 0;
}
static int idle_test(void *user, void *request, int64_t wait_us) { return (void)user, (void)request, (void)wait_us, 1; }
static opd_group *idle_group(const opd_group *group) {
    static int size;
    opd_group_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.name = "idle";
    desc.rank = opd_group_rank(group);
    desc.size = size = opd_group_size(group);
    desc.start = idle_start;
    desc.test = idle_test;
    desc.user = &size;
    return opd_group_register(&desc);
}
/* Simulates a network card that transfers memory without using a core, at the speed of 25 Gb Ethernet, one transfer at
   a time.  Waits take as long as with such a card.  No data is moved. */
typedef struct card { int size; double latency, byte, free; } card;
static int card_start(void *user, const opd_transfer *transfer, void **request) {
    card *const its = (card *)user;
    double *const until = (double *)malloc(sizeof *until), bytes = (double)transfer->count *
        (double)opd_dtype_size(transfer->dtype), from = fmax(now(), its->free);
    (void)idle_start(&its->size, transfer, request);
    if (!until) { return -1; }
    *until = its->free = from + its->latency + 2 * (its->size - 1) * bytes / its->size * its->byte;
    *request = until;
    return 0;
}
static int card_test(void *user, void *request, int64_t wait_us) {
    const double *const until = (const double *)request, begun = now();
    (void)user;
    while (now() < *until && now() - begun < 1e-6 * (double)wait_us) {}
    if (now() < *until) { return 0; }
    free(request);
    return 1;
}
static opd_group *card_group(const opd_group *group) {
    static card its;
    opd_group_desc desc;
    memset(&desc, 0, sizeof desc);
    its.latency = networks[1].latency;
    its.byte = networks[1].byte;
    desc.name = "card";
    desc.rank = opd_group_rank(group);
    desc.size = its.size = opd_group_size(group);
    desc.start = card_start;
    desc.test = card_test;
    desc.user = &its;
    return opd_group_register(&desc);
}
/* Returns the least seconds that the cores of two ranks need for a sum, both at the same time: each rank adds half
   of the numbers of both, and writes the sums for both. */
static double least_of_sum(opd_group *group, float *data, int64_t numel) {
    float *const mine = data, *const other = data + numel / 2;
    (void)opd_work_wait(opd_group_barrier(group));
    const double begun = now();
    for (int64_t i = 0; i < numel / 2; i++) { mine[i] = other[i] = mine[i] + other[i]; }
    (void)opd_work_wait(opd_group_barrier(group));
    return now() - begun;
}
/* Prints the second and third line of a row: over a network card, and the least time. */
static void measure_step_more(double *waited, double *carded, double *least, int rounds, double apart, double all) {
    char hidden[100];
    const spread more = spread_of(waited, rounds), alone = spread_of(carded, rounds), pass = spread_of(least, rounds);
    hidden_says(more, rounds, apart, alone.middle, hidden, sizeof hidden);
    printf("| ... with a card that moves data by itself, %s | | | | | | %+.2f (%+.2f to %+.2f) | %.2f | %s | |\n",
           networks[1].title, 1e3 * more.middle, 1e3 * more.low, 1e3 * more.high, 1e3 * alone.middle, hidden);
    printf("| ... with the least time for the sums | | | | | | | %.2f | | at most %.2f |\n",
           1e3 * pass.middle, all / (apart + pass.middle));
    fflush(stdout);
}
/* Measures steps of one rank alone; steps of all ranks with communication, with a network that takes no time
   (gradients are only copied into buckets), without communication, and over a simulated card; and only the
   communication.  They take turns, and take turns in being first.  Prints medians. */
static void measure_step(const char *title, const settings *s, int64_t batch, double bucket, opd_group *group) {
    enum { WITH, IDLE, WITHOUT, CARD, WAYS };
    static model models[WAYS];
    static double alone[TURNS], times[WAYS][TURNS], moved[TURNS], more[TURNS], kept[TURNS], least[TURNS];
    static double carded[TURNS], waited[TURNS];
    opd_parallel_options options = {0};
    char hidden[100];
    const int rank = opd_group_rank(group), ranks = opd_group_size(group);
    const int rounds = 3 * s->rounds < TURNS ? 3 * s->rounds : TURNS;
    model *const plain = &models[WITHOUT];        /* not parallel: steps without communication */
    opd_group *const idle = idle_group(group);    /* would accumulate gradients in a parallel model */
    opd_group *const its = card_group(group);
    int64_t numel = 0;
    options.bucket_bytes = (int64_t)bucket;
    for (int way = 0; way < WAYS && idle && its; way++) {
        model *const m = &models[way];
        model_make(m, s, batch);
        if (way != WITHOUT) {
            m->parallel = opd_data_parallel(m->params, m->count, way == IDLE ? idle : way == CARD ? its : group,
                                            &options);
        }
        m->adam = opd_adamw_new(m->params, m->count, NULL);
    }
    for (int i = 0; i < plain->count && opd_ok(); i++) { numel += opd_numel(plain->params[i]); }
    const int messages = (int)fmax(1, fmin(PIECES, ceil(4.0 * (double)numel / bucket)));
    float *const data = (float *)calloc((size_t)numel + 1, sizeof *data);
    for (int round = -WARM; round < rounds && opd_ok() && data; round++) {
        const int at = round < 0 ? 0 : round;
        meet(group);
        if (rank == 0) { train(plain); alone[at] = plain->updated - plain->begun; }
        meet(group);
        for (int turn = 0; turn < WAYS; turn++) {
            const int way = (turn + at) % WAYS;
            times[way][at] = step_together(&models[way], group);
        }
        moved[at] = sum_alone(group, data, numel, messages);
        carded[at] = sum_alone(its, data, numel, messages);
        least[at] = least_of_sum(group, data, numel);
        waited[at] = times[CARD][at] - times[IDLE][at];
        more[at] = times[WITH][at] - times[IDLE][at];
        kept[at] = times[IDLE][at] - times[WITHOUT][at];
    }
    free(data);
    for (int way = 0; way < WAYS; way++) { model_free(&models[way]); }
    if (idle) { (void)opd_group_unregister(idle); }
    if (its) { (void)opd_group_unregister(its); }
    if (rank != 0 || !opd_ok()) { return; }
    const spread one = spread_of(alone, rounds), all = spread_of(times[WITH], rounds);
    const spread apart = spread_of(times[WITHOUT], rounds), buckets = spread_of(kept, rounds);
    const spread difference = spread_of(more, rounds), message = spread_of(moved, rounds);
    const double faster = ranks * one.middle / all.middle;
    hidden_says(difference, rounds, apart.middle, message.middle, hidden, sizeof hidden);
    printf("| %s, %lld sequences | %d, %.2f million numbers | %.2f | %.2f | %.2f | %+.2f | %+.2f (%+.2f to %+.2f) | "
           "%.2f | %s | %.2f%s, %.2f |\n", title, (long long)batch, messages, (double)numel / 1e6, 1e3 * one.middle,
           1e3 * apart.middle, 1e3 * all.middle, 1e3 * buckets.middle, 1e3 * difference.middle, 1e3 * difference.low,
           1e3 * difference.high, 1e3 * message.middle, hidden, faster,
           ranks == 2 && faster < 1.85 ? " (under the target)" : "", ranks * one.middle / apart.middle);
    measure_step_more(waited, carded, least, rounds, apart.middle, ranks * one.middle);
}
/* Targets: 70% of the communication hidden, two ranks 1.85 times as fast as one. */
static void measure_steps(const settings *s, opd_group *world) {
    settings small = *s, large = *s;
    if (s->features > 64) { small.blocks = 2; small.features = 64; small.tokens = 32; }
    if (opd_group_rank(world) == 0) {
        printf("| a training step on each of %d ranks | messages | alone | without communication | with communication | "
               "added by buckets | added by communication (half of all) | communication alone | hidden | times as fast, "
               "and without communication |\n"
               "|---|---|---|---|---|---|---|---|---|---|\n",
               opd_group_size(world));
    }
    measure_step("digits-sized", &small, 16 * s->batch, 100e3, world);
    measure_step("transformer-sized", &large, s->batch, 1 << 20, world);
    measure_step("transformer-sized", &large, 4 * s->batch, 1 << 20, world);
}
/* Describes the link of two ranks of this machine. */
static void measure_network(network *net, opd_group *pair, int rounds) {
    const int64_t small = 8, large = 32 << 20;
    const double few = swap_time(pair, small, 50 * rounds), many = swap_time(pair, large, rounds);
    net->inner_latency = few;
    net->inner_byte = fmax(1e-12, (many - few) / (double)(large - small));
}
/* Trains on 1, 2 and 4 ranks, as far as the group has them, and prints the errors of the predictions. */
static void compare_all(plan p, const settings *s, opd_group *world) {
    static const char *const ways[] = {"data parallel, ", "data parallel, ", "sharded, "};
    const int32_t ranks[] = {0, 1, 2, 3};
    const int rank = opd_group_rank(world), most = opd_group_size(world) < 4 ? opd_group_size(world) : 4;
    p.net = networks[0];
    p.net.cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    for (int n = 1; n <= most && opd_ok(); n *= 2) {
        char name[20];
        (void)snprintf(name, sizeof name, "first %d", n);
        opd_group *group = opd_group_split(world, name, ranks, n);
        if (group && n == 2) { measure_network(&p.net, group, s->rounds); }
        for (int way = 0; way < (n > 1 ? 3 : 1) && opd_ok() && group; way++) {
            p.sharded = way == 2;
            compare(&p, s, n > 1 ? ways[way] : "", group, way == 1 ? (s->batch + n - 1) / n : s->batch);
        }
        meet(world);
        if (group) { (void)opd_group_unregister(group); }
    }
    if (rank != 0 || most < 2) { return; }
    printf("%d cores; two ranks swap 8 bytes in %.2f us, more at %.2f GB/s each way%s\n", p.net.cores,
           1e6 * p.net.inner_latency, 1e-9 / p.net.inner_byte, most > p.net.cores ? "; more ranks take turns" : "");
}
#endif

//-- options -----------------------------------------------------------------------------------------------------------

static int usage(int rc) {
    fputs("bench_scaling: predicts a training step on 1 to 1,024 ranks from the times of the layers on this machine\n"
          "  --net NAME            the network: shared, 25gbe (default), 100gbe, infiniband\n"
          "  --latency US, --bandwidth GBITS      latency and bandwidth (Gbit/s) of a link of the network\n"
          "  --per-node N          ranks on each node, which communicate over shared memory (default: 1)\n"
          "  --inner-latency US, --inner-bandwidth GBITS      latency and bandwidth of this shared memory\n"
          "  --cores N             number of cores of a node, if it has fewer cores than ranks\n"
          "  --overlap X           relative speed of transfers while a rank computes, from 0 to 1\n"
          "  --algorithm NAME      how sums are computed: ring, halving, tree, or auto (the fastest)\n"
          "  --sharded             splits parameters, gradients and optimizer state, like opd_sharded_parallel\n"
          "  --bucket MB           the size of the buckets of opd_data_parallel (default: 25)\n"
          "  --blocks N, --features N, --tokens N      the sizes of the model\n"
          "  --batch N             sequences on each rank\n"
          "  --whole-batch N       sequences that strong scaling divides among all ranks (default: 1024)\n"
          "  --ranks N             the largest number of ranks (default: 1024)\n"
          "  --record FILE, --table FILE          writes the measured times to a file; reads them from a file\n"
          "  --plot FILE           draws the predictions for three networks as a picture (SVG)\n"
          "  --quick               a small model, fewer rounds\n"
          "If the program was built with -DSCALING_MPI and runs under mpirun, it also trains on 1, 2 and 4 ranks, and compares\n"
          "these times with the predictions.\n"
          "  --measure             only prints how much communication is hidden, and how much faster all ranks are than one\n",
          rc ? stderr : stdout);
    return rc;
}
static int refuse(const char *option, const char *why) {
    fprintf(stderr, "bench_scaling: %s is not possible with %s\n", option, why);
    return usage(2);
}
/* Reads the number of an option.  Returns false if it is not a number between least and most. */
static bool number_of(const char *text, double least, double most, double *to) {
    char *end = NULL;
    const double value = text ? strtod(text, &end) : 0;
    if (!text || end == text || *end || !(value >= least && value <= most)) { return false; }
    *to = value;
    return true;
}
static bool take_number(const char *name, const char *text, plan *p, settings *s) {
    const struct { const char *name; int *to; double least, most; } whole[] = {
        {"--per-node", &p->net.per_node, 1, 1 << 20}, {"--cores", &p->net.cores, 1, 1 << 20},
        {"--blocks", &s->blocks, 1, (PIECES - 1) / 4}, {"--features", &s->features, HEADS, 1 << 14},
        {"--tokens", &s->tokens, 1, 1 << 16}, {"--batch", &s->batch, 1, 1 << 16},
        {"--whole-batch", &s->whole, 1, 1 << 24}, {"--ranks", &s->ranks, 1, 1 << 20}};
    const struct { const char *name; double *to, scale; bool bandwidth; double least, most; } real[] = {
        {"--latency", &p->net.latency, 1e-6, false, 0, 1e9}, {"--bandwidth", &p->net.byte, 8e-9, true, 1e-6, 1e9},
        {"--inner-latency", &p->net.inner_latency, 1e-6, false, 0, 1e9},
        {"--inner-bandwidth", &p->net.inner_byte, 8e-9, true, 1e-6, 1e9},
        {"--overlap", &p->net.overlap, 1, false, 0, 1}, {"--bucket", &p->bucket, 1 << 20, false, 1e-6, 1e9}};
    double value = 0;
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        if (strcmp(name, whole[i].name) != 0 || !number_of(text, whole[i].least, whole[i].most, &value)) { continue; }
        *whole[i].to = (int)value;
        return true;
    }
    for (size_t i = 0; i < sizeof real / sizeof real[0]; i++) {
        if (strcmp(name, real[i].name) != 0 || !number_of(text, real[i].least, real[i].most, &value)) { continue; }
        *real[i].to = real[i].bandwidth ? real[i].scale / value : real[i].scale * value;
        return true;
    }
    return false;
}
/* Reads one option and its value.  Returns the number of words, or 0 if it is not an option. */
static int take_option(char **argv, plan *p, settings *s) {
    const struct { const char *name; const char **to; } files[] = {
        {"--table", &s->table}, {"--record", &s->record}, {"--plot", &s->plot}};
    if (strcmp(argv[0], "--sharded") == 0) { p->sharded = true; return 1; }
#if defined(SCALING_MPI)
    if (strcmp(argv[0], "--measure") == 0) { s->measure = true; return 1; }
#endif
    if (strcmp(argv[0], "--quick") == 0) {
        s->blocks = 2; s->features = 32; s->tokens = 8; s->rounds = 2;
        return 1;
    }
    for (int i = 0; i < 3 && argv[1]; i++) {
        if (strcmp(argv[0], files[i].name) == 0) { *files[i].to = argv[1]; return 2; }
    }
    for (int a = 0; a <= FASTEST && argv[1] && strcmp(argv[0], "--algorithm") == 0; a++) {
        if (strcmp(argv[1], algorithm_names[a]) == 0) { p->algorithm = a; return 2; }
    }
    for (int i = 0; i < NETWORKS && argv[1] && strcmp(argv[0], "--net") == 0; i++) {
        if (strcmp(argv[1], networks[i].name) == 0) { p->net = networks[i]; return 2; }
    }
    return take_number(argv[0], argv[1], p, s) ? 2 : 0;
}
static int run(const plan *p, const settings *s, kernels *k) {
    int bucket[PIECES];
    if (s->table ? read_table(k, s->table) : measure_kernels(k, s)) { return -1; }
    const double alone = predict(p, k, 1, s->batch).seconds;
    printf("%d weights, %.2f million numbers, %d bucket(s); a step of %d sequences takes one rank %.2f ms, of one "
           "%.2f ms\n", k->count, bytes_of(k) / 4e6, deal(k, p->bucket, bucket), s->batch, 1e3 * alone,
           1e3 * predict(p, k, 1, 1).seconds);
    print_scaling(p, k, s, true);
    print_scaling(p, k, s, false);
    return (s->record && write_table(k, s->record)) || (s->plot && draw(p, k, s)) ? -1 : 0;
}
int main(int argc, char **argv) {
    static kernels k;
    plan p = {networks[1], FASTEST, false, 25 << 20};
    settings s = {4, 256, 32, 4, 1024, MOST, 20, NULL, NULL, NULL, false};
    int rc = 0;
    for (int i = 1, words; i < argc; i += words) {
        words = take_option(argv + i, &p, &s);
        if (!words && strcmp(argv[i], "--help") == 0) { return usage(0); }
        if (!words) { return refuse(argv[i], argv[i + 1] ? argv[i + 1] : "a missing argument"); }
    }
    if (s.features % HEADS) { return refuse("--features", "a number that is not a multiple of 4 (the number of heads)"); }
    if (p.sharded && p.algorithm == TREE) { return refuse("--sharded", "the algorithm tree, which splits nothing"); }
    opd_threads_set(1);
#if defined(SCALING_MPI)
    opd_group *world = mpi_group_begin();
    if (s.measure) {
        if (world) { measure_steps(&s, world); }
        mpi_group_end(world);
        return opd_finish() ? 1 : 0;
    }
    if (world && opd_group_rank(world) == 0) { rc = run(&p, &s, &k); }
    if (world) { meet(world); }
    if (world && opd_group_rank(world) == 0) {
        printf("\n| ranks on %ld cores | predicted | measured | error |\n|---|---|---|---|\n",
               sysconf(_SC_NPROCESSORS_ONLN));
    }
    if (world) { compare_all(p, &s, world); }
    mpi_group_end(world);
#else
    rc = run(&p, &s, &k);
#endif
    return opd_finish() || rc ? 1 : 0;
}
