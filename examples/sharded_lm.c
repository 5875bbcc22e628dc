/* Trains a small language model on a text, over MPI.  The model is split over the processes in two directions.
   mpicc -O2 examples/sharded_lm.c -o sharded_lm -lm
   mpirun -n 4 ./sharded_lm
   ci: mpirun -n 4, --steps 20 --plain (tests/mpi.sh)

   Of n processes, groups of T processes (--tensor T; default: 2 if n is even) compute one network together.  Each
   process has some heads of each attention layer, and some features of each layer behind it (column_parallel and
   row_parallel below).  The n / T groups compute different parts of each batch.  Parameters, gradients and Adam's state
   are split over these groups (opd_sharded_parallel), and gathered layer by layer while they are used.  Losses equal
   those of one process, except for rounding.

   Options: --steps N, --text FILE, --seed N, --tensor T, --plain, --help.  With --checkpoint FOLDER, training continues
   from the last complete checkpoint in the folder, and writes a checkpoint at the end.  The number of groups can differ
   from the earlier run, but not T.  With --device cuda and --load FILE, the program runs on GPUs, as digits_mpi.c
   does.

   The model reads bytes.  It has an attention window of 64 bytes, and 2 layers of 64 features.  For clusters, see
   digits_mpi.c. */
#define OPDISPATCH_IMPLEMENTATION
#include "mpi_group.c"

#include <math.h>
#include <sys/stat.h>

enum { TOKENS = 128, FEATURES = 64, HEADS = 4, LAYERS = 2, CONTEXT = 64, BATCH = 16, LETTERS = 160 };
enum { WHOLE, ROWS, COLUMNS };                    /* how a weight is divided over the ranks of a group of T */

typedef struct layer { opd_tensor *norm, *query, *key, *value, *out, *norm2, *up, *down; } layer;
typedef struct model {
    opd_module *module;                           /* this rank's parts of the parameters */
    opd_parallel *parallel;
    opd_optimizer *adam;
    opd_tensor *letters, *places, *norm;
    layer layers[LAYERS];
    int64_t numbers;                              /* number of parameters of the whole model */
} model;
typedef struct settings {
    const char *text, *checkpoint;
    int steps, tensor;
    unsigned long long seed;
    bool plain;
} settings;
static opd_device device;                         /* of the model and the batches */

//-- layers that the ranks of a group compute together -----------------------------------------------------------------

/* The input, equal on all ranks of the group, goes unchanged into each rank's part of a layer.  Its gradient is the
   sum of the ranks' gradients. */
static int to_all_forward(opd_context *ctx) { return opd_context_return(ctx, opd_clone(opd_context_tensor(ctx, 0))); }
static int to_all_backward(opd_backward_call *bw) {
    return opd_bw_return(bw, 0, opd_all_reduce(opd_contiguous(opd_bw_grad(bw, 0)), "sum", "tensor"));
}
/* The reverse: the result is the sum of the ranks' results.  Each rank gets the gradient unchanged. */
static int of_all_forward(opd_context *ctx) {
    return opd_context_return(ctx, opd_all_reduce(opd_contiguous(opd_context_tensor(ctx, 0)), "sum", "tensor"));
}
static int of_all_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
static opd_tensor *apply(const char *name, opd_setup_fn forward, opd_backward_fn backward, opd_tensor *x) {
    opd_autograd_function function = {0};
    const opd_value input = opd_value_tensor(x);
    function.name = name;
    function.forward = forward;
    function.backward = backward;
    return opd_autograd_call(&function, &input, 1);
}
static opd_tensor *to_all(opd_tensor *x) { return apply("ToAll", to_all_forward, to_all_backward, x); }
/* A linear layer.  This rank computes some of its outputs.  x is a result of to_all. */
static opd_tensor *column_parallel(model *m, opd_tensor *x, opd_tensor *weight) {
    return opd_linear(x, opd_parallel_full(m->parallel, weight), NULL);
}
/* A linear layer.  This rank has some of its inputs.  The outputs are summed over the ranks. */
static opd_tensor *row_parallel(model *m, opd_tensor *x, opd_tensor *weight) {
    opd_tensor *part = opd_linear(x, opd_parallel_full(m->parallel, weight), NULL);
    return apply("OfAll", of_all_forward, of_all_backward, part);
}

//-- the model ---------------------------------------------------------------------------------------------------------

/* Makes a random weight, with the same numbers for any number of ranks.  Cuts out this rank's part, and shards it. */
static opd_tensor *parameter(model *m, const char *name, int64_t rows, int64_t columns, int part, double scale) {
    const opd_group *tensor = opd_group_find("tensor");
    const int rank = opd_group_rank(tensor), ranks = opd_group_size(tensor);
    opd_tensor *weight = NULL;
    OPD_SCOPE {
        opd_tensor *all = scale > 0 ? opd_init_normal_(opd_empty(OPD_INTS(rows, columns), OPD_FLOAT32), 0, scale)
            : opd_ones(OPD_INTS(columns), OPD_FLOAT32);
        m->numbers += rows * columns;
        if (part == ROWS) { all = opd_narrow(all, 0, rank * (rows / ranks), rows / ranks); }
        if (part == COLUMNS) { all = opd_narrow(all, 1, rank * (columns / ranks), columns / ranks); }
        all = opd_to_device(opd_clone(opd_contiguous(all)), device, OPD_FLOAT32);
        weight = opd_tensor_set_requires_grad(all, true);
        opd_module_add(m->module, name, weight, OPD_MODULE_PARAMETER);
        opd_sharded_add(m->parallel, &weight, 1); /* from here on, weight is this rank's shard */
    }
    return weight;
}
static void model_make(model *m, opd_group *data) {
    const int64_t d = FEATURES;
    memset(m, 0, sizeof *m);
    m->module = opd_module_new();
    m->parallel = opd_sharded_parallel(NULL, 0, data, NULL);
    m->letters = parameter(m, "letters", TOKENS, d, WHOLE, 0.02);
    m->places = parameter(m, "places", CONTEXT, d, WHOLE, 0.02);
    for (int i = 0; i < LAYERS && opd_ok(); i++) {
        layer *l = &m->layers[i];
        const struct { opd_tensor **to; const char *name; int64_t rows, columns; int part; double scale; } all[] = {
            {&l->norm, "norm", 1, d, WHOLE, 0}, {&l->query, "query", d, d, ROWS, 0.08},
            {&l->key, "key", d, d, ROWS, 0.08}, {&l->value, "value", d, d, ROWS, 0.08},
            {&l->out, "out", d, d, COLUMNS, 0.04}, {&l->norm2, "norm2", 1, d, WHOLE, 0},
            {&l->up, "up", 4 * d, d, ROWS, 0.08}, {&l->down, "down", d, 4 * d, COLUMNS, 0.02}};
        for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
            char name[40];
            snprintf(name, sizeof name, "%d.%s", i, all[k].name);
            *all[k].to = parameter(m, name, all[k].rows, all[k].columns, all[k].part, all[k].scale);
        }
    }
    m->norm = parameter(m, "norm", 1, d, WHOLE, 0);
    m->adam = opd_module_adam(m->module, NULL, NULL);
}
static void model_free(model *m) {
    opd_optimizer_free(m->adam);
    opd_parallel_free(m->parallel);
    opd_module_free(m->module);
}
static opd_tensor *normed(model *m, opd_tensor *x, opd_tensor *weight) {
    return opd_rms_norm(x, OPD_INTS(FEATURES), opd_parallel_full(m->parallel, weight), OPD_V(1e-5));
}
/* [n, t, features of this rank] as [n, its heads, t, features of a head] */
static opd_tensor *heads_of(opd_tensor *x) {
    return opd_transpose(opd_reshape(x, OPD_INTS(opd_size(x, 0), opd_size(x, 1), -1, FEATURES / HEADS)), 1, 2);
}
static opd_tensor *run_layer(model *m, layer *l, opd_tensor *x) {
    opd_tensor *result = NULL;
    OPD_SCOPE {                                   /* frees the gathered parameters */
        opd_tensor *h = to_all(normed(m, x, l->norm));
        opd_tensor *q = heads_of(column_parallel(m, h, l->query)), *k = heads_of(column_parallel(m, h, l->key));
        opd_tensor *v = heads_of(column_parallel(m, h, l->value));
        opd_tensor *seen = opd_scaled_dot_product_attention_full(q, k, v, NULL, 0, true, opd_value_none(), false);
        seen = opd_reshape(opd_transpose(seen, 1, 2), OPD_INTS(opd_size(x, 0), opd_size(x, 1), -1));
        x = opd_add(x, row_parallel(m, seen, l->out));
        h = to_all(normed(m, x, l->norm2));
        result = opd_add(x, row_parallel(m, opd_gelu(column_parallel(m, h, l->up)), l->down));
        if (result) { opd_scope_return(result); }
    }
    return result;
}
/* tokens [n, t] to scores [n, t, TOKENS] of what comes next */
static opd_tensor *forward(model *m, opd_tensor *tokens) {
    opd_tensor *letters = opd_parallel_full(m->parallel, m->letters);
    opd_tensor *places = opd_narrow(opd_parallel_full(m->parallel, m->places), 0, 0, opd_size(tokens, 1));
    opd_tensor *x = opd_add(opd_embedding(letters, tokens), places);
    for (int i = 0; i < LAYERS && opd_ok(); i++) { x = run_layer(m, &m->layers[i], x); }
    return opd_linear(normed(m, x, m->norm), letters, NULL);
}

//-- training ----------------------------------------------------------------------------------------------------------

typedef struct text { unsigned char *bytes; int64_t count; } text;
static int read_text(const char *path, text *t) {
    FILE *file = fopen(path, "rb");
    const int64_t most = 1 << 20;
    if (!file) {
        fprintf(stderr, "%s: cannot be opened (run from the root of the project, or use --text FILE)\n", path);
        return -1;
    }
    t->bytes = (unsigned char *)malloc((size_t)most);
    t->count = t->bytes ? (int64_t)fread(t->bytes, 1, (size_t)most, file) : 0;
    fclose(file);
    for (int64_t i = 0; i < t->count; i++) { if (t->bytes[i] >= TOKENS) { t->bytes[i] = '?'; } }
    if (t->count > 2 * CONTEXT) { return 0; }
    fprintf(stderr, "%s: the text must have more than %d bytes\n", path, 2 * CONTEXT);
    return -1;
}
/* Returns sequences begin .. begin + count - 1 of a step's batch, [count, CONTEXT], and the bytes that follow each
   byte. */
static void batch_of(const text *t, int step, int begin, int count, opd_tensor **tokens, opd_tensor **next) {
    *tokens = opd_empty(OPD_INTS(count, CONTEXT), OPD_INT64);
    *next = opd_empty(OPD_INTS(count, CONTEXT), OPD_INT64);
    int64_t *to = opd_data_i64(*tokens), *then = opd_data_i64(*next);
    for (int i = 0; to && then && i < count; i++) {
        unsigned long long where = (unsigned long long)step * BATCH + (unsigned long long)(begin + i) + 1;
        where = (where * 0x9E3779B97F4A7C15u) >> 20;
        const int64_t at = (int64_t)(where % (unsigned long long)(t->count - CONTEXT));
        for (int k = 0; k < CONTEXT; k++) {
            to[i * CONTEXT + k] = t->bytes[at + k];
            then[i * CONTEXT + k] = t->bytes[at + k + 1];
        }
    }
    *tokens = opd_to_device(*tokens, device, OPD_INT64);
    *next = opd_to_device(*next, device, OPD_INT64);
}
static void show_progress(int step, const settings *s, double loss, double seconds) {
    char bar[31];
    memset(bar, ' ', 30);
    memset(bar, '#', (size_t)(30 * step / s->steps));
    bar[30] = 0;
    if (s->plain) {
        if (step % 10 == 0) { printf("step %4d/%d loss %.3f\n", step, s->steps, loss); }
    } else {
        printf("%sstep %4d/%d [%s] loss %.3f  %.0f bytes per second%s", isatty(1) ? "\r" : "", step, s->steps, bar, loss,
               seconds > 0 ? step * (double)BATCH * CONTEXT / seconds : 0, step == s->steps || !isatty(1) ? "\n" : "");
    }
    fflush(stdout);
}
static void train(model *m, const text *t, const settings *s, const opd_group *data, bool shows) {
    const int rank = opd_group_rank(data), ranks = opd_group_size(data);
    const int begin = BATCH * rank / ranks, mine = BATCH * (rank + 1) / ranks - begin;
    const double begun = MPI_Wtime();
    double mean = 0;
    for (int step = 0; step < s->steps && opd_ok(); step++) {
        OPD_SCOPED;
        opd_tensor *tokens, *next;
        opd_optimizer_set_lr(m->adam, opd_lr_cosine(3e-3, step, s->steps, 1e-4));
        opd_parallel_begin(m->parallel, mine);
        /* a rank without a part computes with any sequence, and ignores the result */
        batch_of(t, step, begin, mine > 0 ? mine : 1, &tokens, &next);
        opd_sharded_hooks_begin(m->parallel);
        opd_tensor *scores = opd_reshape(forward(m, tokens), OPD_INTS(-1, TOKENS));
        opd_tensor *loss = opd_cross_entropy_loss(scores, opd_reshape(next, OPD_INTS(-1)));
        opd_saved_hooks_end();
        opd_backward(loss);
        opd_optimizer_step(m->adam);
        opd_optimizer_zero_grad(m->adam);
        double part = opd_item_f64(loss) * mine / BATCH;
        opd_tensor *all = opd_all_reduce(opd_tensor_from(&part, OPD_INTS(1), OPD_FLOAT64), "sum", "data");
        mean = step ? 0.9 * mean + 0.1 * opd_item_f64(all) : opd_item_f64(all);
        if (shows && opd_ok()) { show_progress(step + 1, s, mean, MPI_Wtime() - begun); }
    }
}
/* All ranks generate the continuation of a few words together, and rank 0 prints it. */
static void tell(model *m, bool shows) {
    int64_t letters[LETTERS] = {'T', 'h', 'e', ' '};
    OPD_NO_GRAD {
        for (int i = 4; i < LETTERS && opd_ok(); i++) {
            OPD_SCOPED;
            const int from = i > CONTEXT ? i - CONTEXT : 0;
            opd_tensor *words = opd_tensor_from(letters + from, OPD_INTS(1, i - from), OPD_INT64);
            opd_tensor *scores = forward(m, opd_to_device(words, device, OPD_INT64));
            scores = opd_to_device(opd_select(opd_select(scores, 0, 0), 0, -1), opd_device_make(OPD_CPU, -1),
                                   OPD_FLOAT32);
            letters[i] = opd_item_i64(opd_multinomial(opd_softmax(opd_mul_Scalar(scores, OPD_V(1.4)), -1), 1, false));
        }
    }
    for (int i = 0; i < LETTERS && shows && opd_ok(); i++) { putchar(letters[i] < 32 ? ' ' : (int)letters[i]); }
    if (shows && opd_ok()) { putchar('\n'); }
}
/* FOLDER/last.pt says which checkpoint is complete.  Each of the T ranks that share the weights saves to its own
   folder, on side a or b.  The other side remains until all ranks have saved, even if the job is killed meanwhile. */
typedef struct saved { double steps, tensor, side; } saved;
static opd_tensor_file *saved_open(const char *folder) {
    char path[420];
    struct stat is;
    snprintf(path, sizeof path, "%s/last.pt", folder);
    return stat(path, &is) == 0 ? opd_tensor_file_open(path) : NULL;
}
/* Rank 0 tells all ranks which checkpoint in the folder is complete.  steps is 0 if there is none. */
static saved saved_last(const char *folder, bool reads) {
    saved last = {0, 0, 1};
    double all[3] = {0, 0, 1};
    opd_tensor_file *const file = reads ? saved_open(folder) : NULL;
    if (file) {
        opd_tensor_file_number(file, "steps", &all[0]);
        opd_tensor_file_number(file, "tensor", &all[1]);
        opd_tensor_file_number(file, "side", &all[2]);
        opd_tensor_file_close(file);
    }
    const double *const said = opd_data_f64(opd_broadcast(opd_tensor_from(all, OPD_INTS(3), OPD_FLOAT64), 0, "world"));
    if (said) {
        last.steps = said[0];
        last.tensor = said[1];
        last.side = said[2];
    }
    return last;
}
/* Makes this rank's folder on a side, and writes its name. */
static void saved_place(const settings *s, int rank, int side, char place[420]) {
    (void)mkdir(s->checkpoint, 0777);
    snprintf(place, 420, "%s/%c", s->checkpoint, 'a' + side);
    (void)mkdir(place, 0777);
    snprintf(place, 420, "%s/%c/%d-of-%d", s->checkpoint, 'a' + side, rank % s->tensor, s->tensor);
    (void)mkdir(place, 0777);
}
/* Loads the complete checkpoint, if there is one. */
static saved go_on(model *m, const settings *s, int rank) {
    char place[420];
    const saved last = saved_last(s->checkpoint, rank == 0);
    if (!opd_ok() || last.steps <= 0) { return last; }
    if (last.tensor != s->tensor) {
        opd_fail(OPD_ERROR_USER, "%s was saved with groups of %.0f ranks (--tensor), not of %d", s->checkpoint, last.tensor, s->tensor);
        return last;
    }
    saved_place(s, rank, (int)last.side, place);
    opd_sharded_load(m->parallel, place, m->module, m->adam);
    if (rank == 0 && opd_ok()) { printf("continues after %.0f steps, from %s\n", last.steps, place); }
    return last;
}
/* Saves to the other side.  When all ranks have saved, marks this side as complete. */
static void save(opd_group *world, const model *m, const settings *s, saved last) {
    char place[420];
    static const char *const names[] = {"steps", "tensor", "side"};
    const int side = last.side > 0 ? 0 : 1;
    const opd_value values[] = {opd_value_double(last.steps + s->steps), opd_value_int(s->tensor), opd_value_int(side)};
    if (!opd_ok()) { return; }
    saved_place(s, opd_group_rank(world), side, place);
    opd_sharded_save(m->parallel, place, m->module, m->adam, NULL, NULL, 0);
    opd_work_wait(opd_group_barrier(world));
    if (opd_group_rank(world) != 0 || !opd_ok()) { return; }
    snprintf(place, sizeof place, "%s/last.pt", s->checkpoint);
    opd_checkpoint_file_save(place, names, values, 3);
}
static void train_all(opd_group *world, const text *t, const settings *s) {
    const int rank = opd_group_rank(world), ranks = opd_group_size(world), groups = ranks / s->tensor;
    const bool shows = rank == 0;
    int32_t near[HEADS], far[1024];
    model m;
    for (int i = 0; i < s->tensor; i++) { near[i] = rank / s->tensor * s->tensor + i; }
    for (int i = 0; i < groups && i < 1024; i++) { far[i] = rank % s->tensor + i * s->tensor; }
    opd_group *tensor = opd_group_split(world, "tensor", near, s->tensor);
    opd_group *data = opd_group_split(world, "data", far, groups);
    model_make(&m, data);
    saved last = {0, 0, 1};
    if (s->checkpoint) { last = go_on(&m, s, rank); }
    if (shows && opd_ok()) {
        printf("%d rank(s), %d for each network: %lld parameters, %lld of them here\n", ranks, s->tensor,
               (long long)m.numbers, (long long)opd_module_numel(m.module, NULL));
    }
    train(&m, t, s, data, shows);
    if (s->checkpoint) { save(world, &m, s, last); }
    tell(&m, shows);
    model_free(&m);
    if (opd_ok() && data) { opd_group_unregister(data); }
    if (opd_ok() && tensor) { opd_group_unregister(tensor); }
}

int main(int argc, char **argv) {
    settings s = {"examples/coming-from.md", NULL, 400, -1, 0, false};
    text t;
    device = opd_device_make(OPD_CPU, -1);
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--plain") == 0) { s.plain = true; }
        else if (strcmp(argv[i], "--steps") == 0 && more) { s.steps = atoi(argv[++i]); }
        else if (strcmp(argv[i], "--tensor") == 0 && more) { s.tensor = atoi(argv[++i]); }
        else if (strcmp(argv[i], "--seed") == 0 && more) { s.seed = strtoull(argv[++i], NULL, 10); }
        else if (strcmp(argv[i], "--text") == 0 && more) { s.text = argv[++i]; }
        else if (strcmp(argv[i], "--checkpoint") == 0 && more) { s.checkpoint = argv[++i]; }
        else if (strcmp(argv[i], "--device") == 0 && more) {
            if (opd_device_parse(argv[++i], &device) < 0) { return opd_finish(); }
        }
        else if (strcmp(argv[i], "--load") == 0 && more) { if (!opd_plugin_load(argv[++i])) { return opd_finish(); } }
        else {
            if (mpi_group_speaks()) {
                fprintf(stderr, "usage: mpirun -n RANKS ./sharded_lm [--steps N] [--text FILE] [--seed N] [--tensor T] "
                        "[--checkpoint FOLDER] [--plain] [--device NAME] [--load FILE]\n");
            }
            return strcmp(argv[i], "--help") == 0 ? 0 : 2;
        }
    }
    if (s.steps < 1) {
        fprintf(stderr, "sharded_lm: --steps needs a number of at least 1\n");
        return 2;
    }
    if (read_text(s.text, &t)) { return 1; }
    if (!getenv("OPD_NUM_THREADS")) { opd_threads_set(1); }
    opd_group *world = mpi_group_begin();         /* from here on an error ends all ranks: see mpi_group_end */
    if (world && device.type != OPD_CPU) { mpi_group_device(world, &device); }
    opd_manual_seed(s.seed);
    if (world && opd_ok()) {
        const int ranks = opd_group_size(world);
        if (s.tensor == -1) { s.tensor = ranks % 2 ? 1 : 2; }
        if (s.tensor < 1 || ranks % s.tensor || HEADS % s.tensor || ranks / s.tensor > 1024) {
            opd_fail(OPD_ERROR_USER, "%d ranks cannot be divided into groups of %d that share the %d heads",
                     ranks, s.tensor, HEADS);
        } else { OPD_SCOPE { train_all(world, &t, &s); } }
    }
    mpi_group_end(world);
    free(t.bytes);
    return opd_finish();
}
