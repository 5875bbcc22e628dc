/* Measures exported programs: as they were loaded, compiled by opd_program_compile, and compiled by PyTorch
   (torch.compile and AOTInductor).
   cc -O2 bench/compiled.c -o bench_compiled -lm -lpthread -ldl
   ./bench_compiled [--quick] [--filter TEXT] [--python PATH] [--level LEVEL] [--markdown] [--help] [FOLDER]
   ci: --filter none

   For each model, FOLDER has a file MODEL.pt2 of torch.export, and a file MODEL.npz with the inputs (in0, in1, ...) and
   the results (out0, ...).  bench/peers/compiled_models.py writes these files; bench/peers/quantized_models.py writes
   quantised models and the same models in float32.  The program uses one thread.  A time is processor time, the median
   of several rounds.  In each round, all ways to run the model take turns.
   The columns c/plain and f/plain are the times of compiled and of frozen runs, divided by those of uncompiled runs.  A
   row in which one of them is above 1.00 is marked.  If the library has found that uncompiled runs of a model are
   faster, compiled runs are uncompiled, too, and the row says so.
   bench/peers/torch_compiled.py measures PyTorch.  Its times include a call from Python, which takes ten microseconds
   or more.  The first run also compiles the models, which takes seconds for each. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include "peer.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const models[] = {
    "resnet18", "mnist_cnn", "convnext_tiny", "unet", "vae", "yolo_like", "bert", "transformer_enc", "gpt2_static",
    "llama_kv", "lstm_lm", "mlp", "bf16_mlp", "dlrm", "quant_int8_weight", "mobilenet_v3_small", "minilm_l6", "vit_tiny",
    "lstm_256", "unet_128", "convnext_tiny_224", "small_mlp", "small_cnn", "chain_of_ten", "mlp_float", "mlp_static",
    "mlp_dynamic", "mlp_weight", "mlp_8da4w", "cnn_float", "cnn_static", "residual_float", "residual_static",
    "block_float", "block_static", "block_dynamic", "block_weight", "block_8da4w"};
enum { MOST_ENDS = 64, ROUNDS = 15, SIDES = 5 };
enum { PLAIN, LIVE, FROZEN, TORCH, AOTI };
/* The options, and PyTorch's process. */
typedef struct options {
    const char *folder, *filter, *python;
    int rounds;
    double round_us;
    bool markdown;
    bench_peer peer;
} options;
/* A model, loaded once for each way to run it. */
typedef struct model {
    const char *name;
    opd_program *programs[TORCH];
    opd_compiled *compiled[TORCH];
    opd_tensor_file *file;
    opd_value inputs[MOST_ENDS];
    int ninputs;
    long calls[SIDES];
    double us[SIDES], difference;                 /* 0: it cannot run in this way */
    const char *why;
    bool kept[SIDES];                             /* the compiled runs are uncompiled, because these are faster */
} model;

/* Returns a tensor of the .npz file, where bfloat16 is stored as int16 with the suffix .bf16; NULL if there is none. */
static opd_tensor *array(const opd_tensor_file *file, const char *kind, int at) {
    char name[40];
    snprintf(name, sizeof name, "%s%d.bf16", kind, at);
    if (opd_tensor_file_find(file, name) >= 0) { return opd_view_dtype(opd_tensor_file_get(file, name), OPD_BFLOAT16); }
    snprintf(name, sizeof name, "%s%d", kind, at);
    return opd_tensor_file_find(file, name) >= 0 ? opd_tensor_file_get(file, name) : NULL;
}
/* Returns the flags of the C compiler for the option --level: without them, compiled code uses all instructions. */
static const char *level_flags(void) {
    const char *const level = getenv("OPD_CPU_LEVEL");
#if defined(__x86_64__)
    if (level && *level == '0') { return "-O3 -fno-math-errno -fno-trapping-math -w"; }
    if (level && *level == '1') { return "-O3 -march=haswell -fno-math-errno -fno-trapping-math -w"; }
#endif
    (void)level;
    return NULL;
}
static bool open_model(model *m, const options *o, const char *name) {
    char path[900];
    memset(m, 0, sizeof *m);
    m->name = name;
    snprintf(path, sizeof path, "%s/%s.npz", o->folder, name);
    if (access(path, R_OK) != 0 || !(m->file = opd_tensor_file_open(path))) { return false; }
    snprintf(path, sizeof path, "%s/%s.pt2", o->folder, name);
    for (int side = 0; side < TORCH; side++) {
        opd_compile_options how;
        memset(&how, 0, sizeof how);
        how.frozen = side == FROZEN;
        how.flags = level_flags();
        if (!(m->programs[side] = opd_program_load(path, NULL))) { return false; }
        if (side != PLAIN && !(m->compiled[side] = opd_program_compile(m->programs[side], &how))) { return false; }
    }
    m->ninputs = opd_program_ninputs(m->programs[PLAIN]);
    for (int i = 0; i < m->ninputs && i < MOST_ENDS; i++) {
        char type[200];
        opd_tensor *const tensor = array(m->file, "in", i);
        (void)opd_program_input_type(m->programs[PLAIN], i, type, sizeof type);
        m->inputs[i] = !tensor ? opd_value_default() : !strcmp(type, "int") ? opd_value_int(opd_item_i64(tensor))
            : opd_value_tensor(opd_clone(tensor));
    }
    return opd_ok() && m->ninputs <= MOST_ENDS;
}
static void close_model(model *m) {
    for (int side = 0; side < TORCH; side++) {
        opd_compiled_free(m->compiled[side]);
        opd_program_free(m->programs[side]);
    }
    opd_tensor_file_close(m->file);
    opd_error_clear();
}
/* Runs the model once.  Returns the number of results, or -1 and sets an error. */
static int run_once(const model *m, int side, opd_value *out) {
    return side == PLAIN ? opd_program_run(m->programs[PLAIN], m->inputs, m->ninputs, out, MOST_ENDS)
        : opd_compiled_run(m->compiled[side], m->inputs, m->ninputs, out, MOST_ENDS);
}
/* Returns the largest difference to the results in the file, relative to the largest of them. */
static double far_from(const model *m, const opd_value *out, int count) {
    double most = 0;
    for (int i = 0, at = 0; i < count; i++) {
        opd_tensor *const want = out[i].tag == OPD_TAG_TENSOR ? array(m->file, "out", at++) : NULL;
        if (!want || opd_numel(want) != opd_numel(out[i].u.t) || !opd_numel(want)) { continue; }
        opd_tensor *const a = opd_to_dtype(opd_detach(out[i].u.t), OPD_FLOAT64), *const b = opd_to_dtype(want, OPD_FLOAT64);
        const double far = opd_item_f64(opd_amax(opd_abs(opd_sub(a, b)), opd_ints_of(NULL, 0), false));
        const double size = opd_item_f64(opd_amax(opd_abs(b), opd_ints_of(NULL, 0), false));
        if (!(far <= most * fmax(size, 1e-30))) { most = far / fmax(size, 1e-30); }
    }
    return most;
}
static double time_here(const model *m, int side, long calls) {
    const double start = bench_now(1);
    for (long i = 0; i < calls; i++) {
        opd_value out[MOST_ENDS];
        OPD_SCOPED;
        if (run_once(m, side, out) < 0) { return 0; }
    }
    return (bench_now(1) - start) / (double)calls;
}

//-- PyTorch in another process ----------------------------------------------------------------------------------------

static double time_torch(options *o, int side, long calls) {
    char line[100];
    fprintf(o->peer.to, "%s %ld\n", side == AOTI ? "aoti" : "time", calls);
    return bench_answer(&o->peer, line, sizeof line) ? atof(line) : 0;
}

//-- a model ------------------------------------------------------------------------------------------------------------

static void measure(model *m, options *o) {
    double all[SIDES][ROUNDS];
    char line[300];
    bool there[SIDES] = {true, true, true, false, false};
    for (int side = 0; side < TORCH; side++) {
        opd_value out[MOST_ENDS];
        OPD_SCOPED;
        int count = run_once(m, side, out);
        if (side != PLAIN && count >= 0) { count = run_once(m, side, out); }
        const double far = count < 0 ? 0 : far_from(m, out, count);
        m->difference = fmax(m->difference, far);
        const char *const why = side == PLAIN ? NULL : opd_compiled_reason(m->compiled[side]);
        m->kept[side] = why && strstr(why, "are faster");
        if (why) { m->why = why; }
        there[side] = count >= 0 && (!why || m->kept[side]);
        opd_error_clear();
    }
    if (o->peer.pid > 0) {
        fprintf(o->peer.to, "model %s/%s\n", o->folder, m->name);
        there[TORCH] = bench_answer(&o->peer, line, sizeof line) && !strncmp(line, "ok", 2);
        there[AOTI] = there[TORCH] && !strcmp(line, "ok aoti");
        if (!there[TORCH]) { fprintf(stderr, "%s: PyTorch: %s\n", m->name, line); }
    }
    for (int side = 0; side < SIDES; side++) {    /* chooses the number of calls in a round */
        if (!there[side]) { continue; }
        double one = side >= TORCH ? time_torch(o, side, 3) : time_here(m, side, 3);
        one = side >= TORCH ? time_torch(o, side, 3) : time_here(m, side, 3);
        m->calls[side] = (long)fmax(1, o->round_us / fmax(one, 0.1));
    }
    for (int round = 0; round < o->rounds; round++) {
        for (int side = 0; side < SIDES; side++) {
            if (!there[side]) { continue; }
            const long calls = m->calls[side];
            all[side][round] = side >= TORCH ? time_torch(o, side, calls) : time_here(m, side, calls);
        }
    }
    for (int side = 0; side < SIDES; side++) {
        if (!there[side]) { continue; }
        qsort(all[side], (size_t)o->rounds, sizeof **all, bench_order);
        m->us[side] = all[side][o->rounds / 2];
    }
}
static void print_ratio(const options *o, double us, double to) {
    const char *const end = o->markdown ? " |" : "";
    if (us > 0 && to > 0) { printf(" %8.2f%s", us / to, end); } else { printf(" %8s%s", "", end); }
}
static void print_model(const model *m, const options *o) {
    const char *const end = o->markdown ? " |" : "";
    printf("%s%-18s%s %10.1f%s", o->markdown ? "| " : "", m->name, end, m->us[PLAIN], end);
    for (int side = LIVE; side < SIDES; side++) {
        if (m->us[side] > 0) { printf(" %10.1f%s", m->us[side], end); } else { printf(" %10s%s", "", end); }
    }
    print_ratio(o, m->us[LIVE], m->us[PLAIN]);
    print_ratio(o, m->us[FROZEN], m->us[PLAIN]);
    print_ratio(o, m->us[FROZEN], m->us[TORCH]);
    print_ratio(o, m->us[FROZEN], m->us[AOTI]);
    const bool slower = m->us[LIVE] > 1.005 * m->us[PLAIN] || m->us[FROZEN] > 1.005 * m->us[PLAIN];
    printf("%s%s\n", m->difference > 1e-3 ? "   differs" : "", slower && !o->markdown ? "   above 1" : "");
    if (m->why && !o->markdown) {
        printf("    %s%s\n", m->kept[LIVE] && m->kept[FROZEN] ? "" : m->kept[LIVE] ? "compiled: " : m->kept[FROZEN]
               ? "frozen: " : "", m->why);
    }
    fflush(stdout);
}
static void say_nothing(void *user, int is_error, const char *text) {
    (void)user;
    (void)is_error;
    (void)text;
}
int main(int argc, char **argv) {
    options o;
    int found = 0;
    memset(&o, 0, sizeof o);
    o.folder = ".";
    o.rounds = ROUNDS;
    o.round_us = 20000;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--quick")) { o.rounds = 5; o.round_us = 5000; }
        else if (!strcmp(argv[i], "--markdown")) { o.markdown = true; }
        else if (!strcmp(argv[i], "--filter") && i + 1 < argc) { o.filter = argv[++i]; }
        else if (!strcmp(argv[i], "--python") && i + 1 < argc) { o.python = argv[++i]; }
        else if (!strcmp(argv[i], "--level") && i + 1 < argc && bench_level(argv[i + 1])) { i++; }
        else if (argv[i][0] != '-') { o.folder = argv[i]; }
        else {
            printf("usage: %s [--quick] [--filter TEXT] [--python PATH] [--level LEVEL] [--markdown] [FOLDER]\n"
                   "  FOLDER         the folder with MODEL.pt2 and MODEL.npz of each model (default: .)\n"
                   "  --quick        fewer and shorter rounds\n"
                   "  --filter TEXT  only models whose name contains TEXT\n"
                   "  --python PATH  a Python with PyTorch, which is also measured\n"
                   BENCH_LEVEL_HELP
                   "  --markdown     prints Markdown, as in bench/tables\n", argv[0]);
            return strcmp(argv[i], "--help") != 0;
        }
    }
    opd_threads_set(1);
    (void)opd_grad_mode_set(false);
    opd_log_set(say_nothing, NULL);
    if (o.python) { bench_peer_start(&o.peer, o.python, "torch_compiled.py", 1, false); }
    printf(o.markdown ? "| one run, us | not compiled | compiled | frozen | torch.compile | AOTInductor | compiled / not "
           "compiled | frozen / not compiled | frozen / torch.compile | frozen / AOTInductor |\n"
           "|---|---|---|---|---|---|---|---|---|---|\n"
           : "one run, us             plain   compiled     frozen      torch       aoti  c/plain  f/plain  f/torch   f/aoti\n");
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        model m;
        OPD_SCOPED;
        if (o.filter && !strstr(models[i], o.filter)) { continue; }
        if (open_model(&m, &o, models[i])) {
            measure(&m, &o);
            print_model(&m, &o);
            found++;
        }
        close_model(&m);
    }
    if (!found) { printf("no models in %s\n", o.folder); }
    if (o.peer.version[0]) { printf("%s%s\n", o.markdown ? "\n" : "", o.peer.version); }
    bench_peer_end(&o.peer);
    return 0;
}
