/* Trains the network of examples/digits.c with several processes over MPI.  Each process computes a part of every
   batch.
   mpicc -O2 examples/digits_mpi.c -o digits_mpi -lm
   mpirun -n 4 ./digits_mpi

   The network, the images and their order come from digits.c, which this file includes.  This file adds the following:
   it begins MPI, gives the parameters to opd_data_parallel, takes this rank's part of each batch, and sums the printed
   figures over all ranks.  Losses and accuracy equal those of one process, except for rounding.  Rank 0 shows a
   progress bar, and the images per second of all ranks together and of each rank.  Options: --epochs N, --seed N,
   --data FILE, --plain, --help.

   On GPUs, each rank of a machine uses its own GPU, and NCCL moves the memory.  Link or load the CUDA plug-in (see the
   first comment of opdispatch_cuda.cu):
   mpirun -n 4 ./digits_mpi --device cuda --load ./opdispatch_cuda.so

   Each process computes on one thread, unless $OPD_NUM_THREADS is set.  On a cluster with Slurm:
   #SBATCH --ntasks=16
   srun --mpi=pmix ./digits_mpi --plain
   MPICH needs --mpi=pmi2 instead.  srun --mpi=list prints what Slurm supports. */
#define main digits_alone                         /* digits.c has one, too */
#include "digits.c"
#undef main
#include "mpi_group.c"

/* Trains with each training image once.  Every rank has the same order, and takes its part of each batch. */
static void train_epoch_of_ranks(network *net, opd_parallel *parallel, const opd_group *world, const digit_set *set,
                                 const int *train, int n, progress *p) {
    const int rank = opd_group_rank(world), ranks = opd_group_size(world);
    int order[IMAGES];
    OPD_SCOPE {
        const int64_t *perm = opd_data_i64(opd_randperm(n, OPD_INT64));
        for (int i = 0; perm && i < n; i++) { order[i] = train[perm[i]]; }
    }
    for (int at = 0; at < n && opd_ok(); at += BATCH) {
        OPD_SCOPED;
        const int size = n - at < BATCH ? n - at : BATCH;
        const int begin = size * rank / ranks, mine = size * (rank + 1) / ranks - begin;
        double seen[2] = {0, 0};                  /* the sum of the losses, and the number of right predictions */
        opd_optimizer_set_lr(net->adam, 0.002 * (1 - (p->epoch - 1 + (double)at / n) / p->epochs));
        if (opd_parallel_begin(parallel, mine) > 0 && mine > 0) {
            opd_tensor *images, *labels;
            batch_of(set, order + at + begin, mine, &images, &labels);
            opd_tensor *scores = forward(net->weights, images), *loss = opd_cross_entropy_loss(scores, labels);
            opd_backward(loss);                   /* gradients are now the means of all ranks */
            seen[0] = opd_item_f64(loss) * mine;
            seen[1] = count_right(scores, labels);
        }
        opd_optimizer_step(net->adam);
        opd_optimizer_zero_grad(net->adam);
        opd_tensor *all = opd_all_reduce(opd_tensor_from(seen, OPD_INTS(2), OPD_FLOAT64), "sum", opd_group_name(world));
        const double *sums = opd_data_f64(all);   /* waits for the sum */
        if (!sums) { return; }
        p->loss += sums[0];
        p->right += (int)sums[1];
        p->done += size;
        if (rank == 0) { show_progress(p, false); }
    }
}

/* Rank 0 prints the images per second of all ranks together and of each rank. */
static void print_speed(const opd_group *world, double images, double seconds) {
    OPD_SCOPE {
        double mine[1] = {seconds > 0 ? images / opd_group_size(world) / seconds : 0}, sum = 0;
        opd_tensor *all = opd_all_gather(opd_tensor_from(mine, OPD_INTS(1), OPD_FLOAT64), opd_group_name(world));
        const double *each = opd_data_f64(all);
        for (int i = 0; each && i < opd_group_size(world); i++) { sum += each[i]; }
        if (each && opd_group_rank(world) == 0) {
            printf("%d rank(s), %.0f images per second:", opd_group_size(world), sum);
            for (int i = 0; i < opd_group_size(world); i++) { printf(" %.0f", each[i]); }
            printf("\n");
        }
    }
}

static int train_all(opd_group *world, const digit_set *set, int epochs, bool plain) {
    static network net;
    static int train[IMAGES], test[IMAGES], predicted[IMAGES];
    opd_tensor *params[16];
    progress p = {0};
    int ntrain = 0, ntest = 0;
    p.live = !plain && IS_TERMINAL;
    for (int i = 0; i < IMAGES; i++) { if (i % 5 == 4) { test[ntest++] = i; } else { train[ntrain++] = i; } }
    network_make(&net);
    const int count = opd_module_parameters(net.parameters, NULL, params, 16);
    opd_parallel *parallel = opd_data_parallel(params, count, world, NULL);
    const double begun = MPI_Wtime();
    for (int e = 1; e <= epochs && opd_ok(); e++) {
        p.epoch = e; p.epochs = epochs; p.done = p.right = 0; p.loss = 0; p.all = ntrain;
        train_epoch_of_ranks(&net, parallel, world, set, train, ntrain, &p);
        if (opd_group_rank(world) == 0) { show_progress(&p, true); }
    }
    print_speed(world, (double)ntrain * epochs, MPI_Wtime() - begun);
    if (opd_group_rank(world) == 0) {             /* all ranks have the same network */
        const int right = predict(&net, set, test, ntest, predicted);
        if (opd_ok()) { printf("\ntest accuracy %.2f%% (%d of %d)\n", 100.0 * right / ntest, right, ntest); }
    }
    opd_parallel_free(parallel);
    network_free(&net);
    return opd_ok() ? 0 : -1;
}

int main(int argc, char **argv) {
    static digit_set set;
    const char *data = "examples/data/digits.txt";
    int epochs = 30;
    bool plain = false;
    unsigned long long seed = 0;
    device = opd_device_make(OPD_CPU, -1);
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--plain") == 0) { plain = true; }
        else if (strcmp(argv[i], "--epochs") == 0 && more) { epochs = atoi(argv[++i]); }
        else if (strcmp(argv[i], "--seed") == 0 && more) { seed = strtoull(argv[++i], NULL, 10); }
        else if (strcmp(argv[i], "--data") == 0 && more) { data = argv[++i]; }
        else if (strcmp(argv[i], "--device") == 0 && more) {
            if (opd_device_parse(argv[++i], &device) < 0) { return opd_finish(); }
        }
        else if (strcmp(argv[i], "--load") == 0 && more) { if (!opd_plugin_load(argv[++i])) { return opd_finish(); } }
        else {
            if (mpi_group_speaks()) {
                fprintf(stderr, "usage: mpirun -n RANKS ./digits_mpi [--epochs N] [--seed N] [--data FILE] [--plain] "
                        "[--device NAME] [--load FILE]\n");
            }
            return strcmp(argv[i], "--help") == 0 ? 0 : 2;
        }
    }
    if (epochs < 1) {
        fprintf(stderr, "digits_mpi: --epochs needs a number of at least 1\n");
        return 2;
    }
    if (read_digits(data, &set)) { return 1; }
    if (!getenv("OPD_NUM_THREADS")) { opd_threads_set(1); }
    opd_group *world = mpi_group_begin();         /* from here on an error ends all ranks: see mpi_group_end */
    if (world && device.type != OPD_CPU) { mpi_group_device(world, &device); }
    opd_manual_seed(seed);
    if (world && opd_ok()) { train_all(world, &set, epochs, plain); }
    mpi_group_end(world);
    return opd_finish();
}
