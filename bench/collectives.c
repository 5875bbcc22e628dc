/* Compares the operator all_reduce with MPI_Iallreduce.  If a Python with PyTorch is given, it also measures the gloo
   backend of torch.distributed, with the same number of ranks.
   mpicc -O2 bench/collectives.c -o bench_collectives -lm
   mpirun -n 2 ./bench_collectives --python python3

   All ranks begin a round together.  A time is measured on rank 0, from the call until the result is there, and is the
   smallest of many rounds.  The operator and MPI take turns, and take turns in being first.  In the second table, the
   sum overwrites the input: all_reduce_ is compared with MPI_IN_PLACE.  The target is that the operator takes at most
   3% or 5 us more than MPI_Iallreduce.  If the sums differ, the program fails.  Options: --quick, --python PROGRAM,
   --help. */
#define OPDISPATCH_IMPLEMENTATION
#include "../examples/mpi_group.c"

enum { COUNTS = 6 };
static const int counts[COUNTS] = {1, 256, 4096, 65536, 1 << 20, 1 << 22};
typedef struct row { double plain, called, plain_here, called_here, gloo, sum, gloo_sum; } row;

static void fill(float *data, int count, int rank) {
    for (int i = 0; i < count; i++) { data[i] = (float)rank + 0.5f * (float)(i % 7); }
}
static double sum_of(const float *data, int count) {
    double sum = 0;
    for (int i = 0; data && i < count; i++) { sum += (double)data[i]; }
    return sum;
}
/* Measures one round, with the result in new memory or, if here is set, over a copy of the input.  Returns seconds. */
static double round_of(opd_tensor *x, int count, bool called, bool here, double *sum) {
    MPI_Request request;
    double seconds = 0;
    OPD_SCOPE {
        opd_tensor *input = here ? opd_clone(x) : x, *out = input;
        const float *from = opd_data_f32(input), *to = NULL;
        (void)MPI_Barrier(MPI_COMM_WORLD);
        const double begun = MPI_Wtime();
        if (called) {
            out = here ? opd_all_reduce_(input, "sum", "world") : opd_all_reduce(input, "sum", "world");
            to = opd_data_f32(out);               /* waits for the result */
        } else {
            if (!here) { out = opd_empty(OPD_INTS(count), OPD_FLOAT32); }
            to = opd_data_f32(out);
            (void)MPI_Iallreduce(here ? MPI_IN_PLACE : from, (void *)(uintptr_t)to, count, MPI_FLOAT, MPI_SUM,
                                 MPI_COMM_WORLD, &request);
            (void)MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        seconds = MPI_Wtime() - begun;
        *sum = sum_of(to, count);
    }
    return seconds;
}
static int measure(int count, bool quick, int rank, row *r) {
    const int rounds = (count > 1000000 ? 200 : 1000) / (quick ? 20 : 1);
    int wrong = 0;
    memset(r, 0, sizeof *r);
    r->plain = r->called = r->plain_here = r->called_here = 1e9;
    double *const times[4] = {&r->plain, &r->called, &r->plain_here, &r->called_here};
    OPD_SCOPE {
        opd_tensor *x = opd_empty(OPD_INTS(count), OPD_FLOAT32);
        fill(opd_data_f32(x), count, rank);
        (void)round_of(x, count, false, false, &r->sum);
        for (int i = 0; i < 4 * rounds && opd_ok(); i++) {
            double sum = 0;
            const int which = (i ^ (i / 4 % 2)) % 4;          /* in the order 0 1 2 3 1 0 3 2 */
            const double seconds = round_of(x, count, which % 2 == 1, which >= 2, &sum);
            if (seconds < *times[which]) { *times[which] = seconds; }
            wrong += sum < r->sum || sum > r->sum;
        }
    }
    return wrong;
}
/* Runs the peer and reads its times.  Returns the number of rows whose sums differ. */
static int ask_gloo(const char *python, int ranks, row *rows, const char *path) {
    char line[1000];
    int wrong = 0;
    int used = snprintf(line, sizeof line, "%s %s %d", python, path, ranks);
    for (int i = 0; i < COUNTS; i++) { used += snprintf(line + used, sizeof line - (size_t)used, " %d", counts[i]); }
    FILE *pipe = popen(line, "r");
    for (int i = 0; pipe && i < COUNTS && fgets(line, sizeof line, pipe); i++) {
        int count;
        if (sscanf(line, "%d %lf %lf", &count, &rows[i].gloo, &rows[i].gloo_sum) != 3 || count != counts[i]) {
            wrong++;
            continue;
        }
        const double off = rows[i].gloo_sum - rows[i].sum;
        wrong += off > 0.06 || off < -0.06;       /* it was printed with one decimal */
    }
    if (pipe) { (void)pclose(pipe); }
    return wrong;
}

int main(int argc, char **argv) {
    static row rows[COUNTS];
    const char *python = NULL;
    bool quick = false;
    int wrong = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) { quick = true; }
        else if (strcmp(argv[i], "--python") == 0 && i + 1 < argc) { python = argv[++i]; }
        else {
            const bool asked = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
            fputs("usage: mpirun -n RANKS bench_collectives [--quick] [--python PATH] [--help]\n"
                  "  --quick        fewer rounds\n"
                  "  --python PATH  also measures the gloo backend of the PyTorch of this Python\n",
                  asked ? stdout : stderr);
            return asked ? 0 : 2;
        }
    }
    opd_threads_set(1);
    opd_group *world = mpi_group_begin();
    const int rank = world ? opd_group_rank(world) : 0, ranks = world ? opd_group_size(world) : 0;
    for (int i = 0; i < COUNTS && world && opd_ok(); i++) { wrong += measure(counts[i], quick, rank, &rows[i]); }
    mpi_group_end(world);                         /* no rank may use a core while the peer runs */
    if (rank != 0 || !opd_ok()) { return opd_finish() || wrong; }
    if (python) { wrong += ask_gloo(python, ranks, rows, "bench/peers/gloo_collectives.py"); }
    for (int here = 0; here < 2; here++) {
        printf("%s| number of floats, %d ranks | MPI_Iallreduce, us | our operator, us | difference |%s\n"
               "|---|---|---|---|%s\n", here ? "\nThe result overwrites the input:\n\n" : "", ranks,
               here ? "" : " PyTorch with gloo, us |", here ? "" : "---|");
        for (int i = 0; i < COUNTS; i++) {
            const double plain = here ? rows[i].plain_here : rows[i].plain;
            const double called = here ? rows[i].called_here : rows[i].called;
            const double more = 1e6 * (called - plain), part = 1e-4 * more / plain;
            printf("| %d | %.2f | %.2f | %.2f us, %.1f%%%s |", counts[i], 1e6 * plain, 1e6 * called, more, part,
                   more <= 5 || part <= 3 ? "" : ", over the target");
            if (rows[i].gloo > 0 && !here) { printf(" %.2f |", rows[i].gloo); }
            printf(rows[i].gloo > 0 || here ? "\n" : " |\n");
        }
    }
    if (wrong) { printf("%d sums differ\n", wrong); }
    return opd_finish() || wrong;
}
