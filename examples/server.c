/* A server that recognises digits: threads that share one model, which is loaded again while they answer.
   cc -O2 examples/server.c -o server -lm -lpthread && ./server

   1. Four threads take requests from a queue, and run an exported program of PyTorch (examples/data/four_digits.pt2).
      A thread owns a model while it answers.  So the last owner of an old model frees it.
   2. After each 60 requests, another model is loaded: the same network, but with its outputs in reverse order, and the
      first one again.  One file is cut off: it is refused, and the old model goes on.
   3. Every tenth request is bad: its sizes, its dtype or a number.  Its answer is an error, and the thread goes on.
   The program prints how many answers were right and how many requests were rejected, with the first three errors. */
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { THREADS = 4, REQUESTS = 600, RELOAD = 60, PIXELS = 64 };
static const char first_path[] = "examples/data/four_digits.pt2", second_path[] = "server_second.pt2",
                  damaged_path[] = "server_damaged.pt2";

//-- a lock for the queue and the current model; without threads, the main thread does all work -----------------------

#if defined(OPD_NO_THREADS)
static void lock(void) { }
static void unlock(void) { }
static bool wait_for_more(void) { return false; }
static void wake_all(void) { }
#else
#include <pthread.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static void lock(void) { (void)pthread_mutex_lock(&mutex); }
static void unlock(void) { (void)pthread_mutex_unlock(&mutex); }
static bool wait_for_more(void) { return pthread_cond_wait(&more, &mutex) == 0; }
static void wake_all(void) { (void)pthread_cond_broadcast(&more); }
#endif

//-- models -----------------------------------------------------------------------------------------------------------

typedef struct model { opd_program *program; bool reversed; int owners; } model;
static model *current;

static model *model_take(void) {
    lock();
    model *m = current;
    m->owners++;
    unlock();
    return m;
}
static void model_leave(model *m) {
    lock();
    const bool last = m && --m->owners == 0;
    unlock();
    if (last) {
        opd_program_free(m->program);
        free(m);
    }
}
/* Loads a model in place of the current one.  Returns 0, or -1 with an error, and the current one stays. */
static int model_load(const char *path, bool reversed) {
    opd_program *program = opd_program_load(path, NULL);      /* meanwhile, the threads go on */
    model *m = program ? (model *)malloc(sizeof *m) : NULL, *old;
    if (!m) {
        opd_program_free(program);
        return -1;
    }
    m->program = program;
    m->reversed = reversed;
    m->owners = 1;                                /* `current` */
    lock();
    old = current;
    current = m;
    unlock();
    model_leave(old);
    return 0;
}
/* Writes the second model: that of `path`, with the rows of its last layer in reverse order. */
static int write_second(const char *path, const char *to) {
    int failed = -1;
    OPD_SCOPE {
        opd_program *program = opd_program_load(path, NULL);
        opd_module *net = program ? opd_program_module(program) : NULL;
        OPD_NO_GRAD {
            for (int i = 0; i < 2 && net; i++) {
                opd_tensor *t = opd_module_get(net, i ? "head.2.bias" : "head.2.weight");
                (void)opd_copy_(t, opd_flip(t, OPD_INTS(0)));
            }
        }
        failed = opd_ok() ? opd_program_save(opd_program_graph(program), net, to) : -1;
        opd_program_free(program);
    }
    return failed;
}

//-- requests ---------------------------------------------------------------------------------------------------------

typedef struct request {
    float pixels[PIXELS];
    int64_t height, width;
    opd_scalar_type dtype;
    int digit;                                    /* the answer */
    char error[200];                              /* or what is wrong */
} request;
static request requests[REQUESTS];
static int submitted, taken;
static bool closed;

/* Runs the model.  Everything in a request comes from outside and may be wrong.  opd_program_run compares the sizes and
   the dtype with those of the model before it reads a pixel. */
static void answer(request *r) {
    model *m = model_take();
    OPD_SCOPE {
        OPD_NO_GRAD {
            const opd_ints sizes = OPD_INTS(1, 1, r->height, r->width);
            opd_tensor *image = opd_tensor_wrap(r->pixels, sizes, NULL, r->dtype, NULL, NULL);
            opd_value in = opd_value_tensor(image), out = OPD_NONE;
            if (image && opd_program_run(m->program, &in, 1, &out, 1) == 1) {
                if (opd_item_f64(opd_all(opd_isfinite(out.u.t))) == 0) {
                    (void)opd_fail(OPD_ERROR_ARGUMENT, "a pixel is not a number");
                }
                r->digit = (int)opd_item_i64(opd_argmax(out.u.t, OPD_NONE, false));
                r->digit = m->reversed ? 9 - r->digit : r->digit;
            }
        }
    }
    (void)snprintf(r->error, sizeof r->error, "%s", opd_error_message());
    opd_error_clear();                            /* for the next request */
    model_leave(m);
}
/* What each thread does: answers requests until the queue is empty and closed. */
static void *serve(void *unused) {
    for (;;) {
        lock();
        while (taken == submitted && !closed && wait_for_more()) { }
        request *r = taken < submitted ? &requests[taken++] : NULL;
        unlock();
        if (!r) { return unused; }
        answer(r);
    }
}
static void submit(bool last) {
    lock();
    submitted++;
    closed = last;
    wake_all();
    unlock();
#if defined(OPD_NO_THREADS)
    (void)serve(NULL);
#endif
}
/* Reads the digits 0 to 3 of the file into requests.  Returns how many there are. */
static int read_digits(const char *path, int *labels) {
    char line[512];
    int n = 0;
    FILE *f = fopen(path, "r");
    while (f && n < REQUESTS && fgets(line, sizeof line, f)) {
        if (line[0] == '#' || strlen(line) < PIXELS + 2 || line[PIXELS + 1] > '3') { continue; }
        for (int i = 0; i < PIXELS; i++) {
            requests[n].pixels[i] = (float)(line[i] <= '9' ? line[i] - '0' : line[i] - 'a' + 10) / 16.0f;
        }
        requests[n].height = requests[n].width = 8;
        requests[n].dtype = OPD_FLOAT32;
        labels[n++] = line[PIXELS + 1] - '0';
    }
    if (f) { fclose(f); }
    return n;
}
/* Makes every tenth request bad. */
static void spoil(int i) {
    if (i % 30 == 9) { requests[i].height = 7; }
    if (i % 30 == 19) { requests[i].dtype = OPD_INT32; }
    if (i % 30 == 29) { requests[i].pixels[20] = NAN; }
}

//-- the program ------------------------------------------------------------------------------------------------------

/* Copies the first half of a file. */
static void write_damaged(const char *path, const char *to) {
    static char half[30000];
    FILE *from = fopen(path, "rb"), *f = fopen(to, "wb");
    if (from && f) { (void)fwrite(half, 1, fread(half, 1, sizeof half, from), f); }
    if (from) { fclose(from); }
    if (f) { fclose(f); }
}
/* Loads another model: the second, the first, a damaged one, the first, the second, ...  Returns 1 if it is refused. */
static int reload(int turn) {
    const bool second = turn % 2 == 0;
    if (model_load(turn == 2 ? damaged_path : second ? second_path : first_path, second) == 0) { return 0; }
    printf("a reload is refused: %s\n", opd_error_message());
    opd_error_clear();
    return 1;
}
int main(void) {
    static int labels[REQUESTS];
    int refused = 0, right = 0, wrong = 0, rejected = 0;
    opd_threads_set(1);                           /* one thread for each request is enough */
    if (read_digits("examples/data/digits.txt", labels) < REQUESTS || write_second(first_path, second_path) ||
        model_load(first_path, false)) {
        printf("run this from the folder of opdispatch.h\n");
        return opd_finish() || 1;
    }
    write_damaged(first_path, damaged_path);
#if !defined(OPD_NO_THREADS)
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, serve, NULL)) { return 1; }
    }
#endif
    for (int i = 0; i < REQUESTS; i++) {
        spoil(i);
        submit(i == REQUESTS - 1);
        if (i % RELOAD == RELOAD - 1) { refused += reload(i / RELOAD); }
    }
#if !defined(OPD_NO_THREADS)
    for (int i = 0; i < THREADS; i++) { (void)pthread_join(threads[i], NULL); }
#endif
    for (int i = 0; i < REQUESTS; i++) {
        if (requests[i].error[0]) {
            if (rejected++ < 3) { printf("request %d is rejected: %s\n", i, requests[i].error); }
        }
        else if (requests[i].digit == labels[i]) { right++; }
        else { wrong++; }
    }
    printf("%d requests: %d right answers, %d wrong, %d rejected\n", REQUESTS, right, wrong, rejected);
    printf("%d reloads, %d refused\n", REQUESTS / RELOAD, refused);
    model_leave(current);
    (void)remove(second_path);
    (void)remove(damaged_path);
    return opd_finish() || rejected != REQUESTS / 10 || wrong > REQUESTS / 50;
}
