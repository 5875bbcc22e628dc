/* Tests the computations of bench/scaling.c.  Nothing here depends on how long anything takes.  See tests/mpi.sh. */
#define main scaling_main
#define SCALING_CHECKS                      /* the functions for measured steps, without MPI */
#include "../bench/scaling.c"
#undef main

static int failures;
#define OK(condition) do { \
        if (!(condition)) { \
            failures++; \
            fprintf(stderr, "%s:%d: %s %s\n", __FILE__, __LINE__, #condition, opd_ok() ? "" : opd_error_message()); \
        } \
    } while (0)
static bool near(double a, double b) { return fabs(a - b) <= 1e-9 * fabs(b); }

/* Five weights of 1,000 numbers, which take 1 s forward and 2 s backward for each sequence. */
static void made_up(kernels *k) {
    memset(k, 0, sizeof *k);
    k->count = 5;
    k->batches = 2;
    k->batch[0] = 1;
    k->batch[1] = 4;
    for (int i = 0; i < k->count; i++) {
        k->pieces[i].numel = 1000;
        k->pieces[i].forward[0] = 1;
        k->pieces[i].forward[1] = 4;
        k->pieces[i].backward[0] = 2;
        k->pieces[i].backward[1] = 8;
    }
}
static plan plan_of(double latency, double byte, double overlap, int per_node, int algorithm) {
    plan p = {{"", "", 0, 0, 0, 0, 0, 1, 0}, RING, false, 4000};
    p.net.latency = latency;
    p.net.byte = byte;
    p.net.overlap = overlap;
    p.net.per_node = per_node;
    p.algorithm = algorithm;
    return p;
}

/* Worked out by hand: latency 10, 2 a byte, 1 to add a byte, 80 bytes. */
static void formulas(void) {
    plan p = plan_of(10, 2, 0, 1, RING);
    OK(near(half_time(&p.net, RING, 4, 80, 1), 3 * (10 + 20 * 3)));            /* three times a quarter */
    OK(near(half_time(&p.net, RING, 4, 80, 0), 3 * (10 + 20 * 2)));
    OK(near(all_reduce_time(&p.net, RING, 4, 80, 1), 210 + 150));
    OK(near(all_reduce_time(&p.net, RING, 5, 80, 1), 4 * (10 + 16 * 3) + 4 * (10 + 16 * 2)));
    OK(near(half_time(&p.net, HALVING, 4, 80, 1), (10 + 40 * 3) + (10 + 20 * 3)));       /* a half, then a quarter */
    OK(near(all_reduce_time(&p.net, HALVING, 4, 80, 1), 200 + 140));
    OK(near(all_reduce_time(&p.net, HALVING, 5, 80, 1), 340 + (10 + 80 * 3) + (10 + 80 * 2)));
    OK(near(all_reduce_time(&p.net, TREE, 4, 80, 1), 2 * (10 + 80 * 3) + 2 * (10 + 80 * 2)));
    OK(near(all_reduce_time(&p.net, TREE, 5, 80, 1), 3 * (10 + 80 * 3) + 3 * (10 + 80 * 2)));
    OK(near(half_time(&p.net, HALVING, 1024, 1024, 0), 10 * 10 + 1023 * 2));
    OK(near(half_time(&p.net, RING, 1024, 1024, 0), 1023 * (10 + 2)));
    /* two nodes of two ranks: inside latency 1, 0.5 a byte; then halves of each over one card */
    p.net.per_node = 2;
    p.net.inner_latency = 1;
    p.net.inner_byte = 0.5;
    OK(near(half_time(&p.net, RING, 4, 80, 1), (1 + 40 * 1.5) + (10 + 20 * (4 + 1))));
    OK(near(half_time(&p.net, TREE, 4, 80, 1), (1 + 80 * 1.5) + (10 + 80 * 3)));
    OK(near(half_time(&p.net, RING, 2, 80, 1), 1 + 40 * 1.5));
    for (int a = 0; a < ALGORITHMS; a++) { OK(all_reduce_time(&p.net, a, 1, 80, 1) == 0); }
}
/* Steps of the five weights: 5 s forward, 10 s backward. */
static void steps(void) {
    static kernels k;
    made_up(&k);
    plan p = plan_of(0, 1e-3, 1, 1, RING);        /* a weight between two ranks: 2 * 4000 / 2 * 1e-3 = 4 s */
    outcome o = predict(&p, &k, 1, 1);
    OK(near(o.seconds, 15) && o.waits == 0);
    o = predict(&p, &k, 1, 2.5);                  /* between two that were measured; and beyond */
    OK(near(o.seconds, 37.5));
    OK(near(predict(&p, &k, 1, 8).seconds, 120));
    /* one begins at 7 s and each takes 4 s: the fifth is done at 27 s; a number before them takes 8 ms */
    o = predict(&p, &k, 2, 1);
    OK(near(o.seconds, 27.008) && near(o.waits, 12.008));
    p.net.overlap = 0;
    o = predict(&p, &k, 2, 1);
    OK(near(o.seconds, 35.008) && near(o.waits, 20.008));
    p.net.overlap = 1;
    p.net.byte = 2.5e-4;                          /* 1 s each: the last one alone is not hidden */
    OK(near(predict(&p, &k, 2, 1).waits, 1.002));
    p.bucket = 1e9;                               /* one bucket: nothing is */
    OK(near(predict(&p, &k, 2, 1).waits, 5.002));
    p.bucket = 4000;
    k.copy = 1e-4;                                /* 0.4 s for each, which hides as backward does */
    OK(near(predict(&p, &k, 2, 1).seconds, 15 + 2 + 1.002));
    OK(near(predict(&p, &k, 3, 1).seconds - predict(&p, &k, 3, 1).waits, 15 + 2 * 2));        /* and divided */
    k.update = 1e-4;
    OK(near(predict(&p, &k, 1, 1).seconds, 17));
    k.copy = 0;
    /* sharded: ten gathers of 0.5 s and five sums of 0.5 s, of which none is left when the next gather is done */
    p.sharded = true;
    o = predict(&p, &k, 2, 1);
    OK(near(o.seconds, 15 + 1 + o.waits) && o.waits >= 7 && o.waits < 7.51);
    o = predict(&p, &k, 1, 1);
    OK(near(o.seconds, 17) && o.waits == 0);
    /* four ranks on two cores take turns */
    p.sharded = false;
    p.net.per_node = 4;
    p.net.cores = 2;
    const double turns = predict(&p, &k, 4, 1).seconds;
    p.net.cores = 4;
    OK(near(turns, 2 * predict(&p, &k, 4, 1).seconds));
}
/* More bandwidth, less latency, more overlap never make anything slower. */
static void orders(void) {
    static kernels k;
    made_up(&k);
    k.add = 1e-5;
    for (int i = 0; i < 4 * 2 * 3; i++) {
        plan p = plan_of(0.01, 1e-3, 0.5, i % 3 ? 1 + 3 * (i % 3) : 1, i / 6), other = p;
        p.sharded = other.sharded = i % 2;
        if (p.sharded && p.algorithm == TREE) { continue; }
        p.net.inner_byte = other.net.inner_byte = 1e-4;
        for (int ranks = 1; ranks <= 1024; ranks += 1 + ranks / 3) {
            const double seconds = predict(&p, &k, ranks, 3).seconds;
            other.net = p.net;
            other.net.byte /= 2;
            OK(predict(&other, &k, ranks, 3).seconds <= seconds);
            other.net.latency /= 2;
            other.net.inner_byte /= 2;
            OK(predict(&other, &k, ranks, 3).seconds <= seconds);
            other.net = p.net;
            other.net.overlap = 1;
            OK(predict(&other, &k, ranks, 3).seconds <= seconds);
            OK(predict(&p, &k, ranks, 3).seconds >= predict(&p, &k, 1, 3).seconds || p.sharded);
            other = p;
            other.algorithm = FASTEST;
            OK(predict(&other, &k, ranks, 3).seconds <= seconds);
        }
    }
}

/* A group of two that are always the same, and how much is summed at once. */
static int64_t summed[64];
static int nsummed;
static int starts(void *user, const opd_transfer *t, void **request) {
    const size_t bytes = (size_t)t->count * opd_dtype_size(t->dtype);
    (void)user;
    *request = &nsummed;
    const bool sums = t->kind == OPD_COLLECTIVE_ALL_REDUCE && t->dtype == OPD_FLOAT32;
    if (sums && nsummed < 64) { summed[nsummed++] = t->count; }
    if (t->kind == OPD_COLLECTIVE_ALL_GATHER) {
        for (int i = 0; i < 2; i++) { memcpy((char *)t->recv + (size_t)i * bytes, t->send, bytes); }
    }
    return 0;
}
static int tests(void *user, void *request, int64_t wait_us) { (void)user; (void)request; (void)wait_us; return 1; }
/* Buckets are those of the library, in its order. */
static void buckets(double most) {
    static model m;
    static kernels k;
    const settings s = {2, 16, 4, 1, 1, 1, 1, NULL, NULL, NULL, false};
    opd_parallel_options options = {0};
    opd_group_desc desc = {0};
    int bucket[PIECES];
    int64_t sizes[64] = {0};
    OPD_SCOPED;
    desc.name = "two";
    desc.size = 2;
    desc.start = starts;
    desc.test = tests;
    options.bucket_bytes = (int64_t)most;
    opd_group *group = opd_group_register(&desc);
    model_make(&m, &s, 1);
    m.parallel = opd_data_parallel(m.params, m.count, group, &options);
    for (int step = 0; step < 3; step++) {        /* from the second one on in the order of arrival */
        nsummed = 0;
        opd_backward(loss_of(&m));
    }
    k.count = m.count;
    for (int i = 0; i < m.count; i++) { k.pieces[i].numel = opd_numel(m.params[i]); }
    const int count = deal(&k, most, bucket);
    for (int i = 0; i < m.count; i++) { sizes[bucket[i]] += k.pieces[i].numel; }
    sizes[count - 1]++;                           /* who lacks a gradient */
    OK(nsummed == count);
    for (int i = 0; i < count && i < nsummed; i++) { OK(summed[i] == sizes[i]); }
    model_free(&m);
    (void)opd_group_unregister(group);
}
static int refused(const char *text, const char *path) {
    static kernels k;
    FILE *file = fopen(path, "w");
    if (!file || fputs(text, file) < 0 || fclose(file)) { return 0; }
    return read_table(&k, path) < 0;
}
static void tables(const char *path) {
    static kernels k, back;
    made_up(&k);
    for (int i = 0; i < k.count; i++) { (void)snprintf(k.pieces[i].name, sizeof k.pieces[i].name, "w%d", i); }
    k.copy = 0.25;
    OK(write_table(&k, path) == 0 && read_table(&back, path) == 0);
    OK(memcmp(&k, &back, sizeof k) == 0);
    OK(!refused("pieces 1 batches 1 copy 0 add 0 update 0\nbatch 2\na 5 1 2\n", path));
    OK(refused("", path));
    OK(refused("pieces 1 batches 1 copy 0 add 0 update 0\nbatch 2\na 5 1\n", path));
    OK(refused("pieces 1 batches 1 copy 0 add 0 update 0\nbatch 2\na 5 1 nan\n", path));
    OK(refused("pieces 1 batches 1 copy 0 add 0 update 0\nbatch 2\na 5 1 -2\n", path));
    OK(refused("pieces 1 batches 1 copy 0 add 0 update 0\nbatch 0\na 5 1 2\n", path));
    OK(refused("pieces 1 batches 1 copy -1 add 0 update 0\nbatch 2\na 5 1 2\n", path));
    OK(refused("pieces 1 batches 2 copy 0 add 0 update 0\nbatch 2 2\na 5 1 2 3 4\n", path));
    OK(refused("pieces 1 batches 1 copy 0 add 0 update 0\nbatch 2\na 5 1 2\nmore\n", path));
    OK(refused("pieces 999 batches 1 copy 0 add 0 update 0\nbatch 2\na 5 1 2\n", path));
    (void)remove(path);
}

/* What a step hides, and what cannot be said of it. */
static void hidden(void) {
    double odd[] = {5, 1, 4, 2, 3}, even[] = {4, 1, 3, 2};
    char says[100];
    spread more = spread_of(odd, 5);
    OK(near(more.low, 2) && near(more.middle, 3) && near(more.high, 4));
    more = spread_of(even, 4);
    OK(near(more.low, 1.75) && near(more.middle, 2.5) && near(more.high, 3.25));
    more.low = 0.0009;
    more.middle = 0.001;
    more.high = 0.0011;
    hidden_says(more, 25, 0.1, 0.01, says, sizeof says);      /* off by 0.93 * 0.0002 / 5 */
    OK(strcmp(says, "90% (+-0)") == 0);
    more.middle = -0.0001;                        /* faster than without */
    hidden_says(more, 25, 0.1, 0.01, says, sizeof says);
    OK(strcmp(says, "100% (+-0)") == 0);
    more.middle = 0.008;
    hidden_says(more, 25, 0.1, 0.01, says, sizeof says);
    OK(strcmp(says, "20% (+-0), under the target") == 0);
    hidden_says(more, 25, 1, 0.01, says, sizeof says);
    OK(strcmp(says, "nothing to hide (1.0% of a step)") == 0);
    more.low = -0.03;                             /* by which -695% were had */
    more.high = 0.03;
    hidden_says(more, 25, 0.1, 0.01, says, sizeof says);
    OK(strcmp(says, "cannot be told (steps vary too much: known to 11.16 ms)") == 0);
    hidden_says(more, 25, 0, 0, says, sizeof says);
    OK(strncmp(says, "cannot be told", 14) == 0);
}
int main(int argc, char **argv) {
    formulas();
    steps();
    orders();
    buckets(25 << 20);
    buckets(4 * 700);
    buckets(4 * 2000);
    buckets(1);
    hidden();
    if (argc > 1) { tables(argv[1]); }
    if (!failures && opd_ok()) { printf("scaling: right\n"); }
    return opd_finish() || failures ? 1 : 0;
}
