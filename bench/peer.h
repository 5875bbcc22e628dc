/* What the benchmarks share that measure PyTorch, too: clocks, and PyTorch in another process.  The process runs a
   program of bench/peers.  It first writes its version, and then one line for each request that it reads. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "level.h"

/* PyTorch's process.  pid is 0 if there is none. */
typedef struct bench_peer {
    pid_t pid;
    FILE *to, *from;
    char version[80];
} bench_peer;

static void bench_stop(const char *where, const char *why) {
    fprintf(stderr, "%s: %s\n", where, why);
    exit(1);
}
/* Returns a time in microseconds: the processor time of this thread or, if kernels use several threads, the time on the
   clock. */
static double bench_now(int threads) {
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
static int bench_order(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}
/* Sends the requests that were written to peer->to, and reads a line.  Returns false if the process has ended. */
static bool bench_answer(bench_peer *peer, char *line, int size) {
    fflush(peer->to);
    if (!fgets(line, size, peer->from)) { return false; }
    line[strcspn(line, "\n")] = 0;
    return true;
}
/* Starts `script` of bench/peers with the Python `python`, for a number of threads.  If `keeps_memory` is true, malloc
   of the process keeps freed memory, as our allocator does.  Without PyTorch, says so, and sets peer->pid to 0. */
static void bench_peer_start(bench_peer *peer, const char *python, const char *script, int threads, bool keeps_memory) {
    int down[2], up[2];
    char path[80], count[16];
    snprintf(path, sizeof path, "bench/peers/%s", script);
    snprintf(count, sizeof count, "%d", threads);
    signal(SIGPIPE, SIG_IGN);
    if (pipe(down) || pipe(up)) { bench_stop("pipe", "none"); }
    peer->pid = fork();
    if (!peer->pid) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        close(down[1]);
        close(up[0]);
        if (keeps_memory) {
            setenv("MALLOC_MMAP_MAX_", "0", 1);
            setenv("MALLOC_TRIM_THRESHOLD_", "8589934592", 1);
        }
        execlp(python, python, path, "--threads", count, (char *)NULL);
        _exit(1);
    }
    close(down[0]);
    close(up[1]);
    peer->to = fdopen(down[1], "w");
    peer->from = fdopen(up[0], "r");
    if (peer->pid > 0 && bench_answer(peer, peer->version, sizeof peer->version)) { return; }
    fprintf(stderr, "no PyTorch (--python PATH says where): its columns stay empty\n");
    peer->version[0] = 0;
    peer->pid = 0;
}
static void bench_peer_end(bench_peer *peer) {
    if (peer->to) { fclose(peer->to); }
    if (peer->from) { fclose(peer->from); }
    if (peer->pid > 0) { waitpid(peer->pid, NULL, 0); }
}
#endif
