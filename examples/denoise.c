/* Removes noise from sound while it plays: a small recurrent network, frame by frame, without a call of malloc.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/denoise.c -o denoise -lm -lpthread && ./denoise   (or ./denoise --compile)
   ci: --compile

   A frame has 32 samples.  A cosine transform gives 32 coefficients, and a GRU with 24 units a factor for each of them.
   1. The network learns on tones of random pitch with noise.  The program prints its loss.
   2. The computation of one frame is recorded as a graph.  --compile also compiles it with the system's C compiler.
   3. A thread, like the callback of an audio device, runs the graph on new tones.  The first frame prepares the thread
      and compiles the graph.  The program prints the ratio of signal and noise before and after, and how often the
      other frames called malloc and took a lock. */
#define _GNU_SOURCE 1                             /* for RTLD_NEXT */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#if !defined(OPD_NO_THREADS)
#include <dlfcn.h>
#include <pthread.h>
#endif

enum { FRAME = 32, UNITS = 24, BATCH = 16, LENGTH = 16, STEPS = 120, PLAYED = 2000 };

//-- counting: with glibc and without sanitizers, calls of malloc and of pthread_mutex_lock in the whole program ------

static int64_t mallocs, locks;
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(__GLIBC__) && !defined(SANITIZED) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_malloc(size_t bytes), *__libc_calloc(size_t n, size_t bytes);
extern void *__libc_realloc(void *p, size_t bytes);
void *malloc(size_t bytes) { mallocs++; return __libc_malloc(bytes); }
void *calloc(size_t n, size_t bytes) { mallocs++; return __libc_calloc(n, bytes); }
void *realloc(void *p, size_t bytes) { mallocs++; return __libc_realloc(p, bytes); }
#if !defined(OPD_NO_THREADS)
int pthread_mutex_lock(pthread_mutex_t *mutex) {
    static int (*next)(pthread_mutex_t *mutex);
    if (!next) { *(void **)&next = dlsym(RTLD_NEXT, "pthread_mutex_lock"); }
    locks++;
    return next(mutex);
}
#endif
#endif

//-- sound ------------------------------------------------------------------------------------------------------------

/* Tones of random pitch, loudness and phase: clean and with noise, [count, length, FRAME]. */
static void tones(int64_t count, int64_t length, opd_tensor **clean, opd_tensor **noisy) {
    opd_tensor *at = opd_arange(OPD_V(length * FRAME), OPD_FLOAT32);
    opd_tensor *random = opd_rand(OPD_INTS(3, count, 1), OPD_FLOAT32);
    opd_tensor *pitch = opd_add_Scalar(opd_mul_Scalar(opd_select(random, 0, 0), OPD_V(1.5)), OPD_V(0.2));
    opd_tensor *loud = opd_add_Scalar(opd_select(random, 0, 1), OPD_V(0.3));
    opd_tensor *phase = opd_mul_Scalar(opd_select(random, 0, 2), OPD_V(6.28));
    opd_tensor *sound = opd_mul(opd_sin(opd_add(opd_mul(at, pitch), phase)), loud);
    *clean = opd_view(sound, OPD_INTS(count, length, FRAME));
    *noisy = opd_add_full(*clean, opd_randn(OPD_INTS(count, length, FRAME), OPD_FLOAT32), OPD_V(0.5));
}

//-- the network ------------------------------------------------------------------------------------------------------

static opd_tensor *cosines;                       /* FRAME x FRAME, orthogonal */
static opd_module *net;
static opd_tensor *weight(const char *name) { return opd_module_get(net, name); }

static void make_network(void) {
    static const char *const names[] = {"gru.w_ih", "gru.w_hh", "gru.b_ih", "gru.b_hh", "out.w", "out.b"};
    static const int64_t sizes[][2] = {{3 * UNITS, FRAME}, {3 * UNITS, UNITS}, {3 * UNITS, 1}, {3 * UNITS, 1},
                                       {FRAME, UNITS}, {FRAME, 1}};
    OPD_SCOPED;
    opd_tensor *i = opd_arange(OPD_V(FRAME), OPD_FLOAT64), *row = opd_unsqueeze(i, 1);
    opd_tensor *angle = opd_mul_Scalar(opd_mul(row, opd_add_Scalar(i, OPD_V(0.5))), OPD_V(3.14159265358979 / FRAME));
    cosines = opd_to_dtype(opd_mul_Scalar(opd_cos(angle), OPD_V(sqrt(2.0 / FRAME))), OPD_FLOAT32);
    (void)opd_mul_Scalar_(opd_select(cosines, 0, 0), OPD_V(sqrt(0.5)));
    (void)opd_keep(cosines);
    net = opd_module_new();
    for (int k = 0; k < 6; k++) {
        opd_tensor *w = opd_tensor_new(opd_ints_of(sizes[k], strstr(names[k], ".w") ? 2 : 1), OPD_FLOAT32);
        (void)opd_init_uniform_(w, -0.2, 0.2);
        (void)opd_module_add(net, names[k], opd_tensor_set_requires_grad(w, true), OPD_MODULE_PARAMETER);
    }
}
/* One frame of each sound.  in: samples [n, FRAME], state [n, UNITS].  out: samples without noise, the next state. */
static int denoise(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = opd_linear(in[0], cosines, NULL), *h, *gain;
    (void)user; (void)n;
    h = opd_gru_cell_full(opd_log1p(opd_mul_Scalar(opd_mul(x, x), OPD_V(4))), in[1], weight("gru.w_ih"),
                          weight("gru.w_hh"), weight("gru.b_ih"), weight("gru.b_hh"));
    gain = opd_sigmoid(opd_linear(h, weight("out.w"), weight("out.b")));
    out[0] = opd_matmul(opd_mul(x, gain), cosines);
    out[1] = h;
    return opd_ok() ? 2 : -1;
}
static void train(void) {
    opd_adam_options o = opd_adam_defaults();
    o.lr = 0.01;
    opd_optimizer *adam = opd_module_adam(net, NULL, &o);
    for (int step = 1; step <= STEPS && opd_ok(); step++) {
        OPD_SCOPED;
        opd_tensor *clean, *noisy, *loss = NULL, *in[2], *out[2];
        out[1] = opd_zeros(OPD_INTS(BATCH, UNITS), OPD_FLOAT32);
        tones(BATCH, LENGTH, &clean, &noisy);
        for (int t = 0; t < LENGTH && opd_ok(); t++) {
            in[0] = opd_select(noisy, 1, t);
            in[1] = out[1];
            (void)denoise(NULL, in, 2, out);
            opd_tensor *part = opd_mse_loss(out[0], opd_select(clean, 1, t));
            loss = loss ? opd_add(loss, part) : part;
        }
        (void)opd_backward(loss);
        (void)opd_optimizer_step(adam);
        (void)opd_optimizer_zero_grad(adam);
        if (step != 1 && step % 40) { continue; }
        printf("step %3d: loss %.2f\n", step, opd_item_f64(loss) / LENGTH);
        (void)fflush(stdout);
    }
    opd_optimizer_free(adam);
}

//-- playing ----------------------------------------------------------------------------------------------------------

typedef struct player {
    opd_transform_fn run;                         /* runs `code` on a frame and a state */
    void *code;
    const float *in;                              /* PLAYED frames */
    float out[PLAYED][FRAME];
    int64_t mallocs, locks;                       /* in all frames but the first */
    char error[200];
} player;

/* What the callback does for a frame. */
static void frame(player *p, int i, float *state) {
    OPD_SCOPE {
        OPD_NO_GRAD {
            opd_tensor *in[2], *out[2];
            in[0] = opd_tensor_wrap((void *)(p->in + i * FRAME), OPD_INTS(1, FRAME), NULL, OPD_FLOAT32, NULL, NULL);
            in[1] = opd_tensor_wrap(state, OPD_INTS(1, UNITS), NULL, OPD_FLOAT32, NULL, NULL);
            if (p->run(p->code, in, 2, out) == 2) {
                memcpy(p->out[i], opd_data_f32(out[0]), sizeof p->out[i]);
                memcpy(state, opd_data_f32(out[1]), UNITS * sizeof *state);
            }
        }
    }
}
static void *play(void *memory) {
    player *p = (player *)memory;
    float state[UNITS] = {0};
    frame(p, 0, state);                           /* prepares this thread */
    p->mallocs = mallocs;
    p->locks = locks;
    for (int i = 1; i < PLAYED && opd_ok(); i++) { frame(p, i, state); }
    p->mallocs = mallocs - p->mallocs;
    p->locks = locks - p->locks;
    (void)snprintf(p->error, sizeof p->error, "%s", opd_error_message());
    opd_error_clear();
    return NULL;
}
/* Runs `play` in a thread of its own, where threads exist. */
static int play_in_thread(player *p) {
#if defined(OPD_NO_THREADS)
    (void)play(p);
    return 0;
#else
    pthread_t thread;
    return pthread_create(&thread, NULL, play, p) || pthread_join(thread, NULL);
#endif
}
/* Returns the ratio of signal and noise, in decibels. */
static double decibels(const float *clean, const float *sound) {
    double signal = 0, noise = 0;
    for (int i = 0; i < PLAYED * FRAME; i++) {
        signal += clean[i] * clean[i];
        noise += (sound[i] - clean[i]) * (sound[i] - clean[i]);
    }
    return 10 * log10(signal / noise);
}
/* Plays new tones, and prints the results.  Returns 0, or 1 if they are not as they should be. */
static int play_all(opd_transform_fn run, void *code) {
    static player p;
    opd_tensor *clean, *noisy;
    tones(PLAYED / 40, 40, &clean, &noisy);       /* another tone after each 40 frames */
    p.run = run;
    p.code = code;
    p.in = opd_data_f32(noisy);
    if (!opd_ok() || play_in_thread(&p)) { return 1; }
    if (p.error[0]) { printf("a frame failed: %s\n", p.error); return 1; }
    const double before = decibels(opd_data_f32(clean), p.in), after = decibels(opd_data_f32(clean), p.out[0]);
    printf("signal to noise: %.0f dB before, %.0f dB after\n", before, after);
    printf("in %d frames: %d calls of malloc, %d locks\n", PLAYED - 1, (int)p.mallocs, (int)p.locks);
    return !(after > before + 5) || p.mallocs || p.locks;
}

int main(int argc, char **argv) {
    const bool compile = argc == 2 && strcmp(argv[1], "--compile") == 0;
    int wrong = 0;
    if (argc > 1 && !compile) {
        printf("usage: denoise [--compile]\n");
        return argc == 2 && strcmp(argv[1], "--help") == 0 ? 0 : 2;
    }
    opd_manual_seed(1);
    opd_threads_set(1);                           /* kernels run on the thread that calls them */
    make_network();
    train();
    (void)opd_module_set_requires_grad(net, NULL, false);
    OPD_SCOPE {
        opd_tensor *example[2];
        example[0] = opd_zeros(OPD_INTS(1, FRAME), OPD_FLOAT32);
        example[1] = opd_zeros(OPD_INTS(1, UNITS), OPD_FLOAT32);
        opd_graph *graph = opd_graph_trace(denoise, NULL, example, 2, NULL);
        opd_compile_options frozen = {.frozen = true};
        opd_compiled *compiled = compile ? opd_graph_compile(graph, &frozen) : NULL;
        wrong = compile ? play_all(opd_compiled_function, compiled) : play_all(opd_graph_function, graph);
        const char *reason = compiled ? opd_compiled_reason(compiled) : NULL;
        if (reason) { printf("not compiled: %s\n", reason); }
        opd_compiled_free(compiled);
        opd_graph_free(graph);
    }
    opd_release(cosines);
    opd_module_free(net);
    return opd_finish() || wrong;
}
