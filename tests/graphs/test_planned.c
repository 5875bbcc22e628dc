/* Planned memory of graphs: the second run allocates nothing; peak memory compared with the sum of live tensors;
   values that escape in every way, and are read while later runs use the memory around them.  THREADED.  C ONLY:
   pthreads with C function types. */
#include "../inside.h"
#include "../program_files.h"
#include <math.h>
#if !defined(OPD_NO_THREADS) && !defined(__TINYC__)
#include <pthread.h>
#define WITH_THREADS
#endif

//-- a function whose values have several sizes, with an operator that looks at one of them ----------------------------

enum { NOTHING, KEEP, KEEP_VIEW, KEEP_DETACHED, KEEP_PART, RELEASE, FAIL, WAYS };
enum { MOST_KEPT = 64 };
static struct { opd_tensor *tensor; double sum; } kept[MOST_KEPT];
static int nkept, way, releases;
static double sum_of(opd_tensor *tensor) {
    double sum = 0;
    OPD_SCOPE { OPD_NO_GRAD { sum = opd_item_f64(opd_sum(opd_to_dtype(tensor, OPD_FLOAT64))); } }
    return sum;
}
static void keep(opd_tensor *tensor) {
    if (nkept == MOST_KEPT) { return; }
    kept[nkept].sum = sum_of(tensor);
    kept[nkept++].tensor = opd_keep(tensor);
}
/* Checks that a kept value is what it was, and releases it. */
static void let_go(int at) {
    CHECK_NEAR(sum_of(kept[at].tensor), kept[at].sum, 0);
    opd_release(kept[at].tensor);
    kept[at] = kept[--nkept];
    releases++;
}
static int look(opd_call *call) {
    opd_tensor *const self = opd_arg_tensor(call, 0);
    const int what = way;
    if (what != NOTHING) { way = NOTHING; }              /* threads only read it */
    if (what == FAIL) { return opd_fail(OPD_ERROR_USER, "looked away"); }
    if (what == KEEP) { keep(self); }
    if (what == KEEP_VIEW) { keep(opd_alias(self)); }
    if (what == KEEP_DETACHED) { keep(opd_detach(self)); }
    if (what == KEEP_PART) { keep(opd_narrow(self, 0, 1, 2)); }
    if (what == RELEASE && nkept) { let_go(nkept / 2); }
    return opd_return_tensor(call, opd_clone(self));
}
static int look_backward(opd_backward_call *bw) { return opd_bw_return(bw, 0, opd_bw_grad(bw, 0)); }
OPD_LIBRARY(planned, lib) {
    opd_op_desc d;
    memset(&d, 0, sizeof d);
    d.schema = "look(Tensor self) -> Tensor";
    d.any = look;
    d.backward = look_backward;
    (void)opd_define(lib, &d);
}
static opd_tensor *looked(opd_tensor *x) {
    static opd_op *op;
    return OPD_CALL(OPD_OP(&op, "planned::look"), x);
}
/* x: [n, 8], n at least 32; results: [2 n, 8], [8, 8]. */
static int net(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const pair[2] = {opd_mul_Scalar(in[0], opd_value_double(0.5)), opd_tanh(in[0])};
    opd_tensor *const both = opd_cat(opd_tensors_of(pair, 2), 0), *const gram = opd_mm(opd_t(both), looked(opd_exp(both)));
    opd_tensor *const wide = opd_cat(opd_tensors_of(pair, 2), 1), *const seen = opd_sin(looked(opd_abs(wide)));
    opd_tensor *const part = opd_slice(opd_cos(both), 0, opd_value_int(2), opd_value_int(20), 3);
    (void)user;
    (void)n;
    out[0] = opd_add(both, opd_mean(seen));
    out[1] = opd_add(gram, opd_sum(looked(part)));
    return opd_ok() ? 2 : -1;
}
static uint32_t seed = 1;
static int some(int below) { return (int)((seed = seed * 1664525u + 1013904223u) >> 8) % below; }
static opd_tensor *numbers(int64_t rows) {
    const int64_t sizes[2] = {rows, 8};
    opd_tensor *const x = opd_empty(opd_ints_of(sizes, 2), OPD_FLOAT32);
    for (int64_t i = 0; x && i < opd_numel(x); i++) { opd_data_f32(x)[i] = (float)some(1000) / 500 - 1; }
    return x;
}
static bool same(opd_tensor *a, opd_tensor *b) {
    bool equal = false;
    OPD_SCOPE { OPD_NO_GRAD { equal = opd_equal(a, b); } }
    return equal;
}
static opd_graph *traced(opd_transform_fn fn, int64_t rows) {
    opd_graph *graph = NULL;
    OPD_SCOPE {
        opd_tensor *x = numbers(rows);
        graph = opd_graph_trace(fn, NULL, &x, 1, NULL);
    }
    CHECK_OK();
    return graph;
}
/* One run beside one without a graph. */
static bool right(const opd_graph *graph, int64_t rows) {
    bool equal = true;
    OPD_SCOPE {
        opd_tensor *x = numbers(rows), *got[2], *want[2];
        CHECK_INT(opd_graph_run(graph, &x, 1, got, 2), 2);
        CHECK_INT(net(NULL, &x, 1, want), 2);
        equal = opd_ok() && same(got[0], want[0]) && same(got[1], want[1]);
    }
    CHECK(equal);
    return equal;
}

TEST(later_runs_are_right) {
    opd_graph *graph = traced(net, 40);
    for (int i = 0; i < 4; i++) { OPD_NO_GRAD { (void)right(graph, 40); } }
    for (int i = 0; i < 40; i++) { OPD_NO_GRAD { (void)right(graph, 32 + some(3) * 40); } }
    opd_graph_free(graph);
}
TEST(results_stay_what_they_are) {
    enum { RUNS = 8 };
    opd_graph *graph = traced(net, 100);
    OPD_SCOPE {
        opd_tensor *x[RUNS], *got[RUNS][2], *want[2];
        for (int i = 0; i < RUNS; i++) { x[i] = numbers(i < 5 ? 100 : 60); CHECK_INT(opd_graph_run(graph, &x[i], 1, got[i], 2), 2); }
        opd_graph_free(graph);                    /* results outlive it */
        for (int i = 0; i < RUNS; i++) {
            CHECK_INT(net(NULL, &x[i], 1, want), 2);
            CHECK(same(got[i][0], want[0]) && same(got[i][1], want[1]));
        }
    }
}
/* Random sizes, tensors that operators keep or release, errors, autograd, and results that are kept and compared
   later. */
TEST(whatever_escapes_stays_what_it_is) {
    enum { ROUNDS = 600, LATER = 12 };
    opd_tensor *later[LATER][2] = {{NULL, NULL}};
    opd_graph *graph = traced(net, 40);
    int errors = 0;
    int64_t rows = 40;
    for (int i = 0; i < ROUNDS; i++) {
        OPD_SCOPE {
            opd_tensor *got[2], *want[2], *x;
            const int slot = some(LATER), k = some(2);
            const bool tape = some(8) == 0;
            if (some(6) == 0) { rows = 32 + 30 * some(4); }
            x = numbers(rows);
            if (tape) { (void)opd_tensor_set_requires_grad(x, true); }
            if (nkept && some(5) == 0) { let_go(some(nkept)); }
            way = some(3) ? NOTHING : some(WAYS);
            if (opd_graph_run(graph, &x, 1, got, 2) < 0) {
                CHECK_ERROR(OPD_ERROR_USER, "looked away");
                errors++;
            } else {
                way = NOTHING;
                CHECK_INT(net(NULL, &x, 1, want), 2);
                CHECK(same(got[0], want[0]) && same(got[1], want[1]));
                if (later[slot][0]) {
                    CHECK(same(later[slot][0], later[slot][1]));
                    opd_release(later[slot][0]);
                    opd_release(later[slot][1]);
                }
                later[slot][0] = opd_keep(opd_detach(got[k]));
                later[slot][1] = opd_keep(opd_detach(want[k]));
                if (tape) { opd_backward(opd_sum(got[0])); }
            }
            CHECK_OK();
        }
    }
    for (int i = 0; i < LATER; i++) {
        if (!later[i][0]) { continue; }
        CHECK(same(later[i][0], later[i][1]));
        opd_release(later[i][0]);
        opd_release(later[i][1]);
    }
    while (nkept) { let_go(0); }
    CHECK(errors > 5 && releases > 20);
    opd_graph_free(graph);
}

//-- how much ----------------------------------------------------------------------------------------------------------

/* Sizes go down and up again; what comes out is small. */
static int hourglass(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = opd_exp(in[0]), *left[4];
    for (int i = 0; i < 4; i++) {
        left[i] = opd_tanh(x);
        x = opd_slice(opd_sin(left[i]), 0, opd_value_int(0), opd_value_int(opd_size(left[i], 0) / 2), 1);
        x = opd_mul_Scalar(x, opd_value_double(0.5));
    }
    for (int i = 3; i >= 0; i--) {
        opd_tensor *const pair[2] = {x, x};
        x = opd_add(opd_cat(opd_tensors_of(pair, 2), 0), left[i]);
    }
    (void)user;
    (void)n;
    out[0] = opd_mean(x);
    return opd_ok() ? 1 : -1;
}
/* Pointwise to the end: the result is as large as all between. */
static int line(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *x = in[0];
    for (int i = 0; i < 6; i++) { x = opd_tanh(opd_add(x, x)); }
    (void)user;
    (void)n;
    out[0] = x;
    return opd_ok() ? 1 : -1;
}
/* The peak of a later run, beside the largest sum of values that are alive. */
static void check_peak(const char *name, opd_transform_fn fn, int64_t rows, int planned) {
    opd_graph *graph = traced(fn, rows);
    for (int i = 0; i < 4; i++) {
        OPD_SCOPE {
            OPD_NO_GRAD {
                opd_tensor *x = numbers(rows), *out[2];
                const int64_t live = opd_memory_stats().live;
                opd_memory_reset_peak();
                CHECK(opd_graph_run(graph, &x, 1, out, 2) > 0);
                const int64_t peak = opd_memory_stats().peak - live, most = inside_most_alive(graph, &x);
                CHECK(most > (1 << 20));
                if (!check_true(peak <= most + most / 20 && peak >= most - 65536, "the peak is within a twentieth", __FILE__, __LINE__)) {
                    printf("%s, run %d: peak %lld of %lld\n", name, i + 1, (long long)peak, (long long)most);
                }
            }
        }
    }
    CHECK_INT(inside_planned_bytes(graph) != 0, planned);
    opd_graph_free(graph);
}
TEST(peaks_are_the_largest_sum_alive) {
    const int threads = opd_threads();
    opd_threads_set(1);
    check_peak("hourglass", hourglass, 1 << 17, 1);
    check_peak("hourglass of odd size", hourglass, 100016, 1);
    check_peak("line", line, 100001, 0);          /* what comes out would not share */
    opd_threads_set(threads);
}

static void check_mallocs(const char *name, const char *arrays) {
    opd_program *program = opd_program_load(golden(name, ".pt2"), NULL);
    opd_tensor_file *file = opd_tensor_file_open(golden(arrays, ".npz"));
    opd_value inputs[16], outputs[16];
    CHECK_OR_RETURN(program && file);
    const int count = fill(program, file, inputs);
    for (int i = 0; i < 4; i++) {
        const int64_t before = inside_mallocs;
        OPD_SCOPE { OPD_NO_GRAD { CHECK(opd_program_run(program, inputs, count, outputs, 16) >= 0); } }
        const int64_t after = inside_mallocs;
#if defined(CHECK_SANITIZED)                      /* where nothing is cached */
        (void)after;
        (void)before;
#else
        if (i && after != before) { printf("%s, run %d: %d\n", name, i + 1, (int)(after - before)); }
        if (i) { CHECK_INT(after - before, 0); }
#endif
    }
    CHECK_OK();
    opd_tensor_file_close(file);
    opd_program_free(program);
}
TEST(second_runs_of_programs_allocate_nothing) {
    static const char *const names[] = {"mlp", "mlp_bf16", "conv", "conv_training", "branch", "loop", "map", "scan", "state", "tied",
                                        "sizes", "strides", "tree", "fours", "modes", "size_as_input", "item", "heads", "clicks",
                                        "quantized", "ao_dynamic", "ao_groups", "pt2e", "lowered", "experts", "effects"};
    static const char *const cores[] = {"mlp", "conv", "conv_training", "branch", "state", "sizes", "item", "heads"};
    const int threads = opd_threads();
    for (int count = 1; count <= 4; count *= 2) {
        opd_threads_set(count);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) { OPD_SCOPE { check_mallocs(names[i], names[i]); } }
        for (size_t i = 0; i < sizeof cores / sizeof *cores; i++) {
            char name[100];
            (void)snprintf(name, sizeof name, "%s.core", cores[i]);
            OPD_SCOPE { check_mallocs(name, cores[i]); }
        }
    }
    opd_threads_set(threads);
}
/* Kernels that work with memory of their own in every thread: convolutions of both kinds, products of batches, softmax over
   columns, Fourier transforms, attention.  x: [8, 16, 24, 24]. */
static int workers(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *const weight = opd_narrow(opd_reshape(in[0], OPD_INTS(8, 16, 576)), 2, 0, 18);
    opd_tensor *const small = opd_reshape(weight, OPD_INTS(16, 16, 3, 3)), *const wide = opd_cat(OPD_TENSORS(small, small), 0);
    opd_tensor *x = opd_relu(opd_conv2d(in[0], small, NULL, OPD_INTS(1), OPD_INTS(0)));
    x = opd_sigmoid(opd_narrow(opd_conv2d(x, wide, NULL, OPD_INTS(1), OPD_INTS(0)), 1, 4, 16));
    x = opd_reshape(opd_contiguous(x), OPD_INTS(8, 16, 400));
    opd_tensor *const both = opd_bmm(x, opd_transpose(x, 1, 2)), *const soft = opd_softmax(x, 1);
    opd_tensor *const seen = opd_scaled_dot_product_attention(opd_reshape(soft, OPD_INTS(8, 16, 40, 10)),
                                                              opd_reshape(x, OPD_INTS(8, 16, 40, 10)),
                                                              opd_reshape(x, OPD_INTS(8, 16, 40, 10)), NULL, 0, false);
    (void)user;
    (void)n;
    out[0] = opd_add(opd_sum(both), opd_sum(opd_abs(opd_view_as_real(opd_fft_r2c(seen, OPD_INTS(3), 0, true)))));
    return opd_ok() ? 1 : -1;
}
TEST(second_runs_with_threads_allocate_nothing) {
    const int threads = opd_threads();
    for (int count = 1; count <= 4; count++) {
        OPD_SCOPE {
            OPD_NO_GRAD {
                opd_tensor *x = opd_reshape(numbers(9216), OPD_INTS(8, 16, 24, 24)), *out[1], *want[1];
                opd_graph *graph = opd_graph_trace(workers, NULL, &x, 1, NULL);
                opd_threads_set(count);
                CHECK_INT(workers(NULL, &x, 1, want), 1);
                for (int i = 0; i < 12; i++) {
                    const int64_t before = inside_mallocs;
                    OPD_SCOPE {
                        CHECK_INT(opd_graph_run(graph, &x, 1, out, 1), 1);
                        CHECK(same(out[0], want[0]));
                    }
#if defined(CHECK_SANITIZED)
                    (void)before;
#else
                    if (i) { CHECK_INT(inside_mallocs - before, 0); }
#endif
                }
                opd_graph_free(graph);
            }
        }
    }
    opd_threads_set(threads);
}
TEST(second_runs_of_other_sizes_allocate_nothing) {
    opd_graph *graph = traced(net, 40);
    for (int i = 0; i < 12; i++) {
        const int64_t before = inside_mallocs;
        OPD_SCOPE {
            OPD_NO_GRAD {
                static float data[8 * 400];
                opd_tensor *x = opd_tensor_wrap(data, OPD_INTS(100 * (1 + i / 3 % 3), 8), NULL, OPD_FLOAT32, NULL, NULL), *out[2];
                CHECK_INT(opd_graph_run(graph, &x, 1, out, 2), 2);
            }
        }
#if defined(CHECK_SANITIZED)
        (void)before;
#else
        if (i % 3) { CHECK_INT(inside_mallocs - before, 0); }
#endif
    }
    opd_graph_free(graph);
}
/* Frames of a signal: calls of operators, one of them fails, without a graph.  Only the first frame of a thread may ask
   the system for memory. */
static void frame(opd_tensor *weight, int number) {
    static float samples[480];
    for (int i = 0; i < 480; i++) { samples[i] = (float)((i + number) % 7); }
    OPD_SCOPE {
        OPD_NO_GRAD {
            opd_tensor *x = opd_tensor_wrap(samples, OPD_INTS(1, 480), NULL, OPD_FLOAT32, NULL, NULL), *sorted[2];
            opd_tensor *y = opd_softmax(opd_relu(opd_linear(x, weight, NULL)), -1);
            y = opd_cat(OPD_TENSORS(y, opd_narrow(x, 1, 0, 60)), 0);
            CHECK_INT(opd_sort(sorted, y, -1, false), 0);
            y = opd_abs(opd_fft_rfft(sorted[0]));
            CHECK(y && opd_item_f64(opd_sum(y)) > 0);
            CHECK(opd_add(y, x) == NULL);
            opd_error_clear();
        }
    }
}
static void *frames(void *weight) {
    frame((opd_tensor *)weight, 0);
    const int64_t before = inside_mallocs;
    for (int i = 1; i < 50; i++) { frame((opd_tensor *)weight, i); }
#if defined(CHECK_SANITIZED)
    (void)before;
#else
    CHECK_INT(inside_mallocs - before, 0);
#endif
    return NULL;
}
TEST(second_frames_of_a_thread_allocate_nothing) {
    const int threads = opd_threads();
    opd_threads_set(1);
    OPD_SCOPE {
        opd_tensor *weight = opd_reshape(numbers(60 * 60), OPD_INTS(60, 480));
        (void)frames(weight);
#if defined(WITH_THREADS)
        pthread_t thread;
        CHECK_OR_RETURN(pthread_create(&thread, NULL, frames, weight) == 0);
        (void)pthread_join(thread, NULL);
#endif
    }
    opd_threads_set(threads);
}

//-- the arena of compiled graphs --------------------------------------------------------------------------------------

static unsigned drawn_last;
static int drawn(int count) {
    drawn_last = drawn_last * 1664525u + 1013904223u;
    return (int)((drawn_last >> 16) % (unsigned)count);
}
/* Tensors with several numbers of rows of 16, each made of any of those before. */
static int any_rows(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    opd_tensor *made[32];
    int count = 1;
    (void)n;
    made[0] = in[0];
    for (int i = 4 + drawn(26); i > 0; i--) {
        opd_tensor *const x = made[drawn(count)], *const y = made[drawn(count)], *z = x;
        opd_tensor *const pair[2] = {x, y};
        const int64_t rows = opd_size(x, 0);
        switch (drawn(8)) {
        case 0: z = opd_matmul(opd_softmax(opd_matmul(x, opd_t(y)), 1), y); break;
        case 1: z = rows + opd_size(y, 0) < 200 ? opd_cat(opd_tensors_of(pair, 2), 0) : opd_neg(x); break;
        case 2: z = opd_narrow(x, 0, rows / 3, 1 + rows / 2); break;
        case 3: z = opd_add(x, opd_sum_dim(y, OPD_INTS(0), true)); break;
        case 4: z = opd_mul(opd_tanh(x), opd_mean_dim(x, OPD_INTS(1), true)); break;
        case 5: z = opd_matmul(x, (opd_tensor *)user); break;
        case 6: z = opd_dropout(opd_contiguous(x), 0.5, true); break;
        default: z = opd_t(opd_relu(opd_matmul((opd_tensor *)user, opd_t(x)))); break;
        }
        made[count++] = z;
    }
    out[0] = made[count - 1];
    out[1] = opd_sum(made[drawn(count)]);
    return opd_ok() ? 2 : -1;
}
TEST(no_place_of_the_arena_is_used_twice_at_once) {
    int all = 0, most = 0, count = 0;
    OPD_SCOPED;
    opd_manual_seed(1);
    opd_tensor *const weight = opd_randn(OPD_INTS(16, 16), OPD_FLOAT32);
    for (int k = 0; k < 200; k++) {
        OPD_SCOPED;
        drawn_last = (unsigned)k;
        opd_tensor *x = opd_randn(OPD_INTS(1 + drawn(60), 16), OPD_FLOAT32);
        opd_graph *const graph = opd_graph_trace(any_rows, weight, &x, 1, NULL);
        CHECK_OR_RETURN(graph != NULL);
        for (int frozen = 0; frozen < 2; frozen++) {
            const opd_value input = opd_value_tensor(x);
            CHECK_INT(inside_arena_clashes(graph, NULL, &input, 1, frozen != 0, &count), 0);
            CHECK_OK();
            all += count;
            most = count > most ? count : most;
        }
        opd_graph_free(graph);
    }
    CHECK(all > 2000 && most > 20);
}

//-- errors ------------------------------------------------------------------------------------------------------------

TEST(allocations_of_runs_fail) {
    int failed = 0;
    for (int first = 0; first < 3; first++) {     /* the run that meets it */
        int64_t live = 0;
        for (int64_t n = 1, seen = 1; seen + 1 >= n && n < 2000; n++) {
            OPD_SCOPE {
                opd_tensor *x = numbers(64), *out[2], *want[2];
                opd_graph *graph = traced(net, 64);
                CHECK_INT(net(NULL, &x, 1, want), 2);
                for (int i = 0; i < first; i++) { OPD_SCOPE { CHECK_INT(opd_graph_run(graph, &x, 1, out, 2), 2); } }
                for (int i = 0; i < 2; i++) {
                    if (i == 0) { (void)opd_memory_fail_at(n, false); }
                    const int rc = opd_graph_run(graph, &x, 1, out, 2);
                    if (i == 0) { seen = opd_memory_fail_at(0, false); }
                    CHECK(rc == 2 || (i == 0 && opd_error_code() == OPD_ERROR_MEMORY));
                    failed += rc != 2;
                    opd_error_clear();
                    if (rc == 2) { CHECK(same(out[0], want[0]) && same(out[1], want[1])); }
                }
                opd_graph_free(graph);
            }
            if (n == 1) { live = opd_memory_stats().live; }
            CHECK_INT(opd_memory_stats().live, live);
        }
    }
    CHECK(failed > 50);
}

#if defined(WITH_THREADS)
enum { CALLERS = 4, RUNS = 60 };
static opd_graph *shared_graph;
static opd_tensor *passed[CALLERS][RUNS];         /* results that the next thread compares and releases */
static double sums[CALLERS][RUNS];
static int wrong, ready[CALLERS];
static void *caller(void *number) {
    const int me = *(const int *)number, before = (me + 1) % CALLERS;
    uint32_t random = (uint32_t)me + 7;
    int looked_at = 0;
    for (int i = 0; i < RUNS; i++) {
        OPD_SCOPE {
            OPD_NO_GRAD {
                const int64_t sizes[2] = {i < RUNS / 2 ? 64 : 32 + (int64_t)(random >> 9) % 3 * 32, 8};
                opd_tensor *x = opd_empty(opd_ints_of(sizes, 2), OPD_FLOAT32), *got[2], *want[2];
                for (int64_t k = 0; k < opd_numel(x); k++) {
                    opd_data_f32(x)[k] = (float)((random = random * 1664525u + 1013904223u) >> 8 & 1023) / 512 - 1;
                }
                if (opd_graph_run(shared_graph, &x, 1, got, 2) != 2 || net(NULL, &x, 1, want) != 2 || !same(got[0], want[0]) ||
                    !same(got[1], want[1])) { CHECK_COUNT(wrong); }
                sums[me][i] = sum_of(got[0]);
                passed[me][i] = opd_keep(got[0]);
                __atomic_store_n(&ready[me], i + 1, __ATOMIC_RELEASE);
                while (looked_at < __atomic_load_n(&ready[before], __ATOMIC_ACQUIRE)) {
                    if (sum_of(passed[before][looked_at]) != sums[before][looked_at]) { CHECK_COUNT(wrong); }
                    opd_release(passed[before][looked_at++]);
                }
            }
        }
    }
    while (looked_at < RUNS) {
        if (looked_at < __atomic_load_n(&ready[before], __ATOMIC_ACQUIRE)) { opd_release(passed[before][looked_at++]); }
    }
    if (!opd_ok()) { CHECK_COUNT(wrong); }
    (void)opd_finish();
    return NULL;
}
TEST(threads_run_one_graph) {
    pthread_t threads[CALLERS];
    int numbers_of[CALLERS];
    wrong = 0;
    way = NOTHING;
    memset(ready, 0, sizeof ready);
    shared_graph = traced(net, 64);
    for (int i = 0; i < CALLERS; i++) {
        numbers_of[i] = i;
        CHECK_INT(pthread_create(&threads[i], NULL, caller, &numbers_of[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++) { CHECK_INT(pthread_join(threads[i], NULL), 0); }
    CHECK_INT(wrong, 0);
    opd_graph_free(shared_graph);
}
#endif
CHECK_MAIN()
