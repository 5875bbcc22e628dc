/* Measures whole training steps of models that PyTorch exported, beside the same models in PyTorch.
   cc -O2 bench/steps.c -o bench_steps -lm -lpthread -ldl
   ./bench_steps [--quick] [--filter TEXT] [--python PATH] [--threads N] [--level LEVEL] [--markdown] [--help]
     [FOLDER]
   ci: --filter none

   For each model, FOLDER has a file MODEL.pt2 of torch.export, which returns a loss, and a file MODEL.npz with the
   inputs.  `python3 bench/peers/torch_steps.py FOLDER` writes these files.  A step computes the loss and the gradients,
   and changes the parameters by SGD.  "Loss" computes only the loss, without gradients.  With one thread, a time is
   processor time; with more threads, it is time on the clock.  Times are medians of several rounds, in which both sides
   take turns.  The memory is the most that a side has used at one time, beyond what it used before it loaded the model
   (Linux only).  The program also compares the losses of both sides after the same steps. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include "peer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const models[] = {"mlp", "lstm", "transformer", "gpt_small", "gpt2_124m", "mobilenet_v3", "resnet18"};
enum { STEP, RUN, WAYS, MOST_INPUTS = 8, MOST_ROUNDS = 9 };
static const char *const ways[] = {"step", "run"};
/* The options, and PyTorch's process. */
typedef struct options {
    const char *folder, *filter, *python;
    int rounds, threads;
    double round_us;
    bool markdown;
    bench_peer peer;
} options;
/* A model, and what was measured: by us [0] and by PyTorch [1]. */
typedef struct model {
    const char *name;
    opd_program *program;
    opd_optimizer *optimizer;
    opd_tensor_file *file;
    opd_value inputs[MOST_INPUTS];
    int ninputs, threads;
    double us[WAYS][2], loss[2], memory[2];       /* memory: in MiB */
} model;

/* Returns a number of /proc/self/status in MiB: VmRSS is the memory in use, VmHWM the most so far. */
static double resident(const char *field) {
    FILE *const status = fopen("/proc/self/status", "r");
    char line[200];
    double kib = 0;
    while (status && fgets(line, sizeof line, status)) {
        if (!strncmp(line, field, strlen(field))) { kib = atof(strchr(line, ':') + 1); }
    }
    if (status) { fclose(status); }
    return kib / 1024;
}

//-- PyTorch in another process ----------------------------------------------------------------------------------------

/* Sends a request to PyTorch's process.  Returns the time of one call; 0 if there is none. */
static double time_torch(model *m, options *o, int way, long calls) {
    char line[300];
    fprintf(o->peer.to, "%s %ld\n", ways[way], calls);
    if (!bench_answer(&o->peer, line, sizeof line)) { bench_stop(m->name, "PyTorch's process has ended"); }
    if (!strncmp(line, "error", 5)) { bench_stop(m->name, line); }
    if (way == STEP) { m->loss[1] = atof(strchr(line, ' ')); }
    return atof(line);
}
static bool load_torch(const model *m, options *o) {
    char line[300];
    fprintf(o->peer.to, "model %s/%s\n", o->folder, m->name);
    if (!bench_answer(&o->peer, line, sizeof line)) { bench_stop(m->name, "PyTorch's process has ended"); }
    if (strcmp(line, "ok")) { fprintf(stderr, "%s: PyTorch: %s\n", m->name, line); }
    return !strcmp(line, "ok");
}

//-- a model -----------------------------------------------------------------------------------------------------------

static bool there(const options *o, const char *name) {
    char path[900];
    snprintf(path, sizeof path, "%s/%s.npz", o->folder, name);
    return access(path, R_OK) == 0;
}
static void open_model(model *m, const options *o, const char *name) {
    char path[900];
    memset(m, 0, sizeof *m);
    m->name = name;
    m->threads = o->threads;
    snprintf(path, sizeof path, "%s/%s.npz", o->folder, name);
    m->file = opd_tensor_file_open(path);
    snprintf(path, sizeof path, "%s/%s.pt2", o->folder, name);
    m->program = opd_program_load(path, NULL);
    if (!opd_ok()) { bench_stop(path, opd_error_message()); }
    m->ninputs = opd_program_ninputs(m->program);
    for (int i = 0; i < m->ninputs && i < MOST_INPUTS; i++) {
        char in[20];
        snprintf(in, sizeof in, "in%d", i);
        m->inputs[i] = opd_value_tensor(opd_tensor_file_get(m->file, in));
    }
    m->optimizer = opd_module_sgd(opd_program_module(m->program), NULL, NULL);
    if (!opd_ok() || m->ninputs > MOST_INPUTS) { bench_stop(path, opd_ok() ? "has too many inputs" : opd_error_message()); }
}
static void close_model(model *m) {
    opd_optimizer_free(m->optimizer);
    opd_program_free(m->program);
    opd_tensor_file_close(m->file);
}
/* Computes the loss and, for STEP, changes the parameters.  Returns the loss. */
static double call(const model *m, int way) {
    opd_value out;
    double loss = 0;
    OPD_SCOPE {
        if (way == STEP) { opd_optimizer_zero_grad(m->optimizer); }
        opd_program_run(m->program, m->inputs, m->ninputs, &out, 1);
        if (opd_ok() && way == STEP) {
            opd_backward(out.u.t);
            opd_optimizer_step(m->optimizer);
        }
        if (opd_ok()) { loss = opd_item_f64(opd_detach(out.u.t)); }
    }
    if (!opd_ok()) { bench_stop(m->name, opd_error_message()); }
    return loss;
}
static double time_here(model *m, int way, long calls) {
    const double start = bench_now(m->threads);
    const int before = opd_grad_mode_set(way == STEP);
    double loss = 0;
    for (long i = 0; i < calls; i++) { loss = call(m, way); }
    (void)opd_grad_mode_set(before);
    if (way == STEP) { m->loss[0] = loss; }
    return (bench_now(m->threads) - start) / (double)calls;
}
/* Both sides make the same number of steps in all, so that their losses can be compared at the end. */
static void measure(model *m, options *o, double before) {
    double all[WAYS][2][MOST_ROUNDS];
    const bool peer = o->peer.pid > 0 && load_torch(m, o);
    char line[300];
    for (int way = 0; way < WAYS; way++) {
        double us = time_here(m, way, 1);
        us = fmin(us, time_here(m, way, 1));
        const long calls = (long)fmax(1, o->round_us / us);
        for (int i = 0; peer && i < 2; i++) { (void)time_torch(m, o, way, 1); }
        for (int round = 0; round < o->rounds; round++) {
            all[way][0][round] = time_here(m, way, calls);
            all[way][1][round] = peer ? time_torch(m, o, way, calls) : 0;
        }
        for (int side = 0; side < 2; side++) {
            qsort(all[way][side], (size_t)o->rounds, sizeof(double), bench_order);
            m->us[way][side] = all[way][side][o->rounds / 2];
        }
    }
    m->memory[0] = resident("VmHWM") - before;
    if (peer) {
        fprintf(o->peer.to, "memory\n");
        if (bench_answer(&o->peer, line, sizeof line)) { m->memory[1] = atof(line) / 1024; }
    }
}
static void print_pair(const options *o, const char *form, const double *pair) {
    const char *const end = o->markdown ? " |" : "";
    char text[40];
    for (int side = 0; side < 2; side++) {
        snprintf(text, sizeof text, form, pair[side]);
        printf(" %9s%s", pair[side] > 0 ? text : "", end);
    }
    snprintf(text, sizeof text, "%.2f", pair[1] > 0 ? pair[0] / pair[1] : 0);
    printf(" %6s%s", pair[1] > 0 ? text : "", end);
}
static void print_model(const model *m, const options *o) {
    double ms[WAYS][2];
    const double far = m->us[STEP][1] > 0 ? fabs(m->loss[0] - m->loss[1]) / fmax(fabs(m->loss[1]), 1e-6) : 0;
    for (int way = 0; way < WAYS; way++) {
        for (int side = 0; side < 2; side++) { ms[way][side] = m->us[way][side] / 1000; }
    }
    printf("%s%-14s%s", o->markdown ? "| " : "", m->name, o->markdown ? " |" : "");
    print_pair(o, "%.2f", ms[STEP]);
    print_pair(o, "%.2f", ms[RUN]);
    print_pair(o, "%.0f", m->memory);
    printf("%s\n", far <= 1e-3 ? "" : "   the losses differ");
    fflush(stdout);
}
static void read_options(options *o, int argc, char **argv) {
    memset(o, 0, sizeof *o);
    o->folder = ".";
    o->rounds = 7;
    o->threads = 1;
    o->round_us = 100000;
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (!strcmp(argv[i], "--quick")) { o->rounds = 3; o->round_us = 20000; }
        else if (!strcmp(argv[i], "--markdown")) { o->markdown = true; }
        else if (!strcmp(argv[i], "--filter") && more) { o->filter = argv[++i]; }
        else if (!strcmp(argv[i], "--python") && more) { o->python = argv[++i]; }
        else if (!strcmp(argv[i], "--threads") && more && atoi(argv[i + 1]) > 0) { o->threads = atoi(argv[++i]); }
        else if (!strcmp(argv[i], "--level") && more && bench_level(argv[i + 1])) { i++; }
        else if (argv[i][0] != '-') { o->folder = argv[i]; }
        else {
            printf("usage: %s [--quick] [--filter TEXT] [--python PATH] [--threads N] [--level LEVEL] [--markdown] [FOLDER]\n"
                   "  FOLDER         the folder with MODEL.pt2 and MODEL.npz of each model (default: .)\n"
                   "  --quick        fewer and shorter rounds\n"
                   "  --filter TEXT  only models whose name contains TEXT\n"
                   "  --python PATH  a Python with PyTorch, which is also measured\n"
                   "  --threads N    both sides use N threads (default: 1)\n"
                   BENCH_LEVEL_HELP
                   "  --markdown     prints Markdown, as in bench/tables\n", argv[0]);
            exit(strcmp(argv[i], "--help") != 0);
        }
    }
}
/* Measures a model in a process of its own, so that its memory can be told from that of the other models.  Returns false
   if there is no such model. */
static bool measure_alone(options *o, const char *name) {
    int status = 0;
    const pid_t child = fork();
    if (!child) {
        model m;
        double before;
        opd_threads_set(o->threads);
        if (!there(o, name)) { exit(2); }
        if (o->python) { bench_peer_start(&o->peer, o->python, "torch_steps.py", o->threads, true); }
        before = resident("VmRSS");
        open_model(&m, o, name);
        measure(&m, o, before);
        print_model(&m, o);
        close_model(&m);
        bench_peer_end(&o->peer);
        exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) { bench_stop(name, "cannot be measured in a new process"); }
    if (!WIFEXITED(status) || WEXITSTATUS(status) == 1) { exit(1); }
    return WEXITSTATUS(status) == 0;
}
int main(int argc, char **argv) {
    options o;
    int found = 0;
    read_options(&o, argc, argv);
    printf(o.markdown ? "| ms; MiB | step, here | step, PyTorch | ratio | loss, here | loss, PyTorch | ratio | memory, here "
           "| memory, PyTorch | ratio |\n|---|---|---|---|---|---|---|---|---|---|\n"
           : "ms; MiB             step   PyTorch  ratio      loss   PyTorch  ratio    memory   PyTorch  ratio\n");
    fflush(stdout);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        if (o.filter && !strstr(models[i], o.filter)) { continue; }
        found += measure_alone(&o, models[i]);
    }
    if (!found) { printf("no models in %s\n", o.folder); }
    return 0;
}
