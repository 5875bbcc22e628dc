/* Graphs with conditions and loops, compiled and written as C: one loop or condition of C, whatever the number of
   rounds, gives the same results as the graph. */
#include "../../opdispatch.h"
#include "../traced_control.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static opd_tensor *ramp(opd_ints sizes, double scale) {
    opd_tensor *const x = opd_empty(sizes, OPD_FLOAT32);
    for (int64_t i = 0; x && i < opd_numel(x); i++) {
        opd_data_f32(x)[i] = (float)(((double)((i * 7919 + 13) % 101) / 50 - 1) * scale);
    }
    return x;
}
/* h = tanh(h w + x u + b), y = h * 2. */
BODY(cell) {
    UNUSED();
    out[0] = opd_tanh(opd_add(opd_add(opd_mm(in[0], in[2]), opd_mm(in[1], in[3])), in[4]));
    out[1] = opd_mul_Scalar(out[0], OPD_V(2));
    DONE(2);
}
BODY(rnn) { UNUSED(); return opd_scan(cell, NULL, in, 1, in + 1, 1, in + 2, 3, NULL, out, 2); }

static const int all_five[] = {0, 1, 2, 3, 4};
BODY(rnn_sum) {
    UNUSED();
    opd_tensor *got[2];
    if (rnn(NULL, in, n, got) != 2) { return -1; }
    out[0] = opd_add(opd_sum(got[0]), opd_sum(opd_mul(got[1], got[1])));
    DONE(1);
}
BODY(rnn_by) { UNUSED(); return by(all_five, 5, rnn_sum, in, n, out); }
BODY(rnn_by_w) { UNUSED(); return by(all_five + 2, 1, rnn_sum, in, n, out); }

static char *read_text(const char *end) {
    char path[200];
    (void)snprintf(path, sizeof path, "%s/%s", check_cache, end);
    FILE *const file = fopen(path, "rb");
    char *const text = (char *)calloc(1, 1 << 21);
    CHECK(file && text && fread(text, 1, (1 << 21) - 1, file) > 0);
    if (file) { (void)fclose(file); }
    return text;
}
static int count_of(const char *text, const char *part) {
    int count = 0;
    while ((text = strstr(text, part)) != NULL) {
        count++;
        text++;
    }
    return count;
}
/* Writes a graph as C.  Returns the text. */
static char *written(const opd_graph *graph, opd_tensor *const *in, int n) {
    opd_c_options options;
    memset(&options, 0, sizeof options);
    options.calls = true;
    CHECK_INT(opd_graph_write_c(graph, in, n, check_cache, &options), 0);
    return read_text("model.c");
}
/* Compares a traced function, compiled, with the function, uncompiled.  `nodes` has the numbers of loops over slices,
   other loops, and conditions in the C text; NULL: the graph cannot be compiled because of `why`. */
static void compares(const char *name, opd_transform_fn fn, opd_tensor *const *in, int n, const char *why,
                     const char *nodes) {
    OPD_SCOPED;
    opd_tensor *want[8], *got[8];
    opd_compile_options options;
    opd_graph *const graph = opd_graph_trace(fn, NULL, in, n, NULL);
    memset(&options, 0, sizeof options);
    options.flags = "-O1 -g";
    if (nodes) {
        char counts[40];
        char *const text = written(graph, in, n);
        (void)snprintf(counts, sizeof counts, "%d %d %d", count_of(text, ": a loop of"), count_of(text, ": a loop *"),
                       count_of(text, ": a condition *"));
        if (strcmp(counts, nodes) != 0) { fprintf(stderr, "%s: %s\n", name, counts); }
        CHECK_STR(counts, nodes);
        free(text);
    }
    opd_compiled *const compiled = opd_graph_compile(graph, &options);
    CHECK_OR_RETURN(compiled != NULL);
    for (int round = 0; round < 3; round++) {
        const int count = opd_graph_run(graph, in, n, want, 8);
        CHECK_INT(opd_compiled_function(compiled, in, n, got), count);
        for (int i = 0; i < count && opd_ok(); i++) {
            const bool close = opd_allclose_full(got[i], want[i], 1e-5, 1e-5, false);
            CHECK(close);
            if (!close) { fprintf(stderr, "%s: output %d, round %d\n", name, i, round); }
        }
    }
    if (why) { CHECK(opd_compiled_reason(compiled) && strstr(opd_compiled_reason(compiled), why)); }
    else {
        if (opd_compiled_reason(compiled)) { fprintf(stderr, "%s\n", name); }
        CHECK_STR(opd_compiled_reason(compiled), NULL);
    }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK_OK();
}

TEST(scans) {
    opd_tensor *in[5];
    if (!check_cache_begin()) { SKIP("no cc"); }
    OPD_SCOPED;
    in[0] = ramp(OPD_INTS(4, 8), 1);
    in[1] = ramp(OPD_INTS(10, 4, 6), 1);
    in[2] = ramp(OPD_INTS(8, 8), 0.3);
    in[3] = ramp(OPD_INTS(6, 8), 0.3);
    in[4] = ramp(OPD_INTS(8), 0.3);
    compares("rnn", rnn, in, 5, NULL, "1 0 0");
    compares("rnn_sum", rnn_sum, in, 5, NULL, "1 0 0");
    compares("rnn_by", rnn_by, in, 5, NULL, "2 0 0");
    compares("rnn_by_w", rnn_by_w, in, 5, NULL, "2 0 0");
}

TEST(kinds) {
    static const double x_values[] = {0.5, -1.0, 2.0, 0.25};
    static const struct row {
        const char *name;
        opd_transform_fn fn;
        int n;
        const char *why;
        bool each;
        const char *nodes;
    } all[] = {
#define ROW(fn, n, why, each, nodes) {#fn, fn, n, why, each, nodes},
        ROW(chooses, 2, NULL, 0, "0 0 1") ROW(grows, 2, NULL, 0, "0 1 0")
        ROW(recurrent, 3, NULL, 0, "1 0 0") ROW(counts, 2, NULL, 0, "1 0 0")
        ROW(maps, 3, NULL, 0, "1 0 0") ROW(nested, 3, NULL, 0, "1 0 2")
        ROW(chooses_by, 2, NULL, 0, "0 0 1") ROW(recurrent_by, 3, NULL, 0, "2 0 0")
        ROW(recurrent_twice, 3, NULL, 0, "4 0 0")
        ROW(counts_by, 2, NULL, 0, "2 0 0") ROW(maps_by, 3, NULL, 0, "2 0 0")
        ROW(grows_by, 2, "computed tensor", 0, NULL)
        ROW(chooses_along, 2, NULL, 0, "0 0 1") ROW(grows_along, 2, NULL, 0, "0 1 0")
        ROW(recurrent_along, 3, NULL, 0, "1 0 0")
        ROW(chooses_all, 2, NULL, 1, "0 0 1") ROW(each_chooses, 2, NULL, 1, "0 0 0") ROW(grows_all, 2, NULL, 1, "0 1 0")
        ROW(recurrent_all, 3, NULL, 1, "1 0 0") ROW(recurrent_all_by, 3, NULL, 1, "2 0 0")
        ROW(summed_by, 3, NULL, 1, "2 0 0")
    };
    if (!check_cache_begin()) { SKIP("no cc"); }
    OPD_SCOPED;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        OPD_SCOPED;
        opd_tensor *in[3] = {number(0.7), numbers(x_values, 4), number(1.3)};
        if (all[i].fn == chooses || all[i].fn == chooses_by || all[i].fn == chooses_along) { in[1] = number(2); }
        if (all[i].fn == grows || all[i].fn == grows_by || all[i].fn == grows_along) {
            in[0] = number(1.5);
            in[1] = number(40);
        }
        if (all[i].each) {
            in[0] = numbers(x_values, 4);
            if (all[i].fn == chooses_all || all[i].fn == each_chooses || all[i].fn == grows_all) { in[1] = number(3); }
            else { in[1] = opd_outer(numbers(x_values, 4), numbers(x_values, 3)); }
        }
        if (all[i].fn == grows_all) { in[0] = opd_add_Scalar(opd_abs(in[0]), OPD_V(1)); }
        compares(all[i].name, all[i].fn, in, all[i].n, all[i].why, all[i].nodes);
    }
}

//-- numbers, errors and writes ---------------------------------------------------------------------------------------

static opd_compiled *compiled_of(const opd_graph *graph, bool frozen) {
    opd_compile_options options;
    memset(&options, 0, sizeof options);
    options.flags = "-O1";
    options.frozen = frozen;
    return opd_graph_compile(graph, &options);
}
BODY(rows_of) { UNUSED(); out[0] = opd_index_select(in[0], 0, in[1]); DONE(1); }
BODY(first_rows) { UNUSED(); out[0] = opd_narrow(in[0], 0, 0, 2); DONE(1); }
BODY(chosen_rows) {
    UNUSED();
    return opd_cond(opd_gt_Scalar(in[2], OPD_V(0)), rows_of, first_rows, NULL, in, 2, out, 1);
}
/* Only the side that is taken is computed: an index that is out of range on the other side is no error. */
TEST(errors_of_one_side) {
    const int64_t good[] = {1, 2}, bad[] = {1, 70};
    if (!check_cache_begin()) { SKIP("no cc"); }
    OPD_SCOPED;
    opd_tensor *in[3] = {ramp(OPD_INTS(4, 3), 1), opd_tensor_from(good, OPD_INTS(2), OPD_INT64), number(1)}, *got[1];
    opd_graph *const graph = opd_graph_trace(chosen_rows, NULL, in, 3, NULL);
    opd_compiled *const compiled = compiled_of(graph, false);
    for (int i = 0; i < 2; i++) { CHECK_INT(opd_compiled_function(compiled, in, 3, got), 1); }
    CHECK_STR(opd_compiled_reason(compiled), NULL);
    CHECK(opd_equal(got[0], opd_index_select(in[0], 0, in[1])));
    in[1] = opd_tensor_from(bad, OPD_INTS(2), OPD_INT64);
    in[2] = number(-1);
    CHECK_INT(opd_compiled_function(compiled, in, 3, got), 1);
    CHECK_STR(opd_compiled_reason(compiled), NULL);
    CHECK(opd_equal(got[0], opd_narrow(in[0], 0, 0, 2)));
    in[2] = number(2);
    CHECK_INT(opd_compiled_function(compiled, in, 3, got), -1);
    CHECK_ERROR(OPD_ERROR_INDEX, "out of range");
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}
BODY(noisy_step) {
    UNUSED();
    out[0] = opd_add(in[0], opd_mul(opd_rand_like(in[0]), in[1]));
    out[1] = opd_sum(out[0]);
    DONE(2);
}
BODY(noisy_scan) { UNUSED(); return opd_scan(noisy_step, NULL, in, 1, in + 1, 1, NONE, NULL, out, 2); }
BODY(noise) { UNUSED(); out[0] = opd_add(in[0], opd_rand_like(in[0])); DONE(1); }
BODY(noisy_side) {
    UNUSED();
    if (opd_cond(opd_gt_Scalar(in[1], OPD_V(0)), noise, doubled, NULL, in, 1, out, 1) != 1) { return -1; }
    out[1] = opd_rand_like(in[0]);
    DONE(2);
}
/* Random operators in bodies draw the numbers of an uncompiled run, and only on the side that is taken. */
TEST(random_numbers) {
    static const opd_transform_fn fns[] = {noisy_scan, noisy_side, noisy_side};
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (int i = 0; i < 3; i++) {
        OPD_SCOPED;
        opd_tensor *in[2], *want[2], *got[2];
        in[0] = ramp(OPD_INTS(5), 1);
        in[1] = i ? number(i == 1 ? 1 : -1) : ramp(OPD_INTS(7, 5), 1);
        opd_graph *const graph = opd_graph_trace(fns[i], NULL, in, 2, NULL);
        opd_compiled *const compiled = compiled_of(graph, false);
        for (int round = 0; round < 3; round++) {
            opd_manual_seed(17);
            CHECK_INT(opd_graph_run(graph, in, 2, want, 2), 2);
            opd_manual_seed(17);
            CHECK_INT(opd_compiled_function(compiled, in, 2, got), 2);
            for (int k = 0; k < 2; k++) { CHECK(opd_allclose(got[k], want[k])); }
        }
        CHECK_STR(opd_compiled_reason(compiled), NULL);
        opd_compiled_free(compiled);
        opd_graph_free(graph);
        CHECK_OK();
    }
}
/* A scan in a scan in a cond; several dtypes; slices along another dim; operators without a form in C. */
BODY(add_up) { UNUSED(); out[0] = opd_add(in[0], in[1]); DONE(1); }
BODY(inner_scan) {
    UNUSED();
    opd_tensor *got[2];
    if (opd_scan(step, NULL, in, 1, in + 1, 1, in + 2, 1, NULL, got, 2) != 2) { return -1; }
    out[0] = opd_tanh(got[0]);
    out[1] = opd_sum(got[1]);
    out[2] = got[1];
    DONE(3);
}
BODY(scan_of_scans) { UNUSED(); return opd_scan(inner_scan, NULL, in, 1, in + 1, 1, in + 2, 1, NULL, out, 3); }
BODY(count_while) { UNUSED(); return opd_while(below, grown, NULL, in, 1, in + 2, 1, out, 1); }
BODY(while_in_scan) {
    UNUSED();
    if (count_while(NULL, in, n, out) != 1) { return -1; }
    out[1] = opd_add(out[0], in[1]);
    out[0] = opd_mul_Scalar(out[0], OPD_V(0.1));
    DONE(2);
}
BODY(scan_of_whiles) { UNUSED(); return opd_scan(while_in_scan, NULL, in, 1, in + 1, 1, in + 2, 1, NULL, out, 2); }
BODY(mixed) {
    UNUSED();
    opd_tensor *const holds = opd_logical_xor(in[1], opd_gt_Scalar(in[3], OPD_V(0)));
    out[0] = opd_add_Scalar(in[0], OPD_V(2));
    out[1] = holds;
    out[2] = opd_to_dtype(opd_mul(in[3], in[2]), OPD_FLOAT16);
    out[3] = opd_where_self(holds, in[3], opd_to_dtype(in[0], OPD_FLOAT64));
    out[4] = holds;
    DONE(5);
}
BODY(mixed_scan) {
    UNUSED();
    const opd_scan_options options = {-1, true};
    opd_tensor *init[3];
    init[0] = opd_zeros(opd_ints_of(NULL, 0), OPD_INT32);
    init[1] = opd_zeros(OPD_INTS(4), OPD_BOOL);
    init[2] = opd_ones(OPD_INTS(4), OPD_FLOAT16);
    return opd_scan(mixed, NULL, init, 3, in, 1, NONE, &options, out, 5);
}
BODY(swaps) {                                     /* the carried values change places; one is a view */
    UNUSED();
    out[0] = in[1];
    out[1] = opd_transpose(opd_add(in[0], in[2]), 0, 1);
    out[2] = in[0];
    DONE(3);
}
BODY(swaps_scan) { UNUSED(); return opd_scan(swaps, NULL, in, 2, in + 2, 1, NONE, NULL, out, 3); }
BODY(solves) {
    UNUSED();
    out[0] = opd_linalg_inv(opd_add(in[0], in[1]));
    out[1] = opd_sum(out[0]);
    DONE(2);
}
BODY(solves_scan) { UNUSED(); return opd_scan(solves, NULL, in, 1, in + 1, 1, NONE, NULL, out, 2); }
static opd_tensor *closure;
BODY(closes) {
    UNUSED();
    opd_tensor *const fresh = opd_zeros_like(in[0]);
    opd_add_(fresh, closure);
    out[0] = opd_add(in[0], opd_mul(fresh, in[1]));
    DONE(1);
}
BODY(closes_scan) { UNUSED(); return opd_scan(closes, NULL, in, 1, in + 1, 1, NONE, NULL, out, 1); }
BODY(same_step) { UNUSED(); out[0] = in[0]; out[1] = in[1]; DONE(2); }
BODY(same_scan) { UNUSED(); return opd_scan(same_step, NULL, in, 1, in + 1, 1, NONE, NULL, out, 2); }
BODY(one_round) {
    UNUSED();
    opd_tensor *const xs = opd_narrow(in[1], 0, 0, 1);
    return opd_scan(step, NULL, in, 1, &xs, 1, in + 2, 1, NULL, out, 2);
}
BODY(no_rounds) { UNUSED(); return opd_while(below, grown, NULL, in, 1, in + 1, 1, out, 1); }

TEST(bodies) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    OPD_SCOPED;
    static const double values[] = {0.5, -1.0, 2.0, 0.25, 1.5, -0.5, 0.1, 0.9, -0.2, 0.4, 0.3, -0.7};
    opd_tensor *const vector = numbers(values, 12), *const matrix = opd_reshape(vector, OPD_INTS(3, 4));
    opd_tensor *rows[] = {number(0.7), matrix, number(1.1)}, *more[] = {number(1.5), vector, number(30)};
    opd_tensor *square[] = {ramp(OPD_INTS(3, 3), 1), ramp(OPD_INTS(3, 3), 0.5), ramp(OPD_INTS(5, 3, 3), 1)};
    opd_tensor *const eye = opd_eye(3, OPD_FLOAT64), *const eyes = opd_expand(eye, OPD_INTS(4, 3, 3));
    opd_tensor *const small = opd_reshape(numbers(values, 9), OPD_INTS(1, 3, 3));
    opd_tensor *inverses[] = {eye, opd_add(small, opd_mul_Scalar(eyes, OPD_V(5)))};
    opd_tensor *turned = opd_transpose(matrix, 0, 1), *upright = opd_contiguous(turned);
    opd_tensor *wide[] = {vector, opd_expand(vector, OPD_INTS(6, 12))};
    closure = opd_keep(opd_mul_Scalar(vector, OPD_V(0.3)));
    compares("scan_of_scans", scan_of_scans, rows, 3, NULL, "2 0 0");
    compares("scan_of_whiles", scan_of_whiles, more, 3, NULL, "1 1 0");
    compares("mixed_scan", mixed_scan, &turned, 1, NULL, "1 0 0");
    compares("mixed_scan", mixed_scan, &upright, 1, NULL, "1 0 0");
    compares("swaps_scan", swaps_scan, square, 3, NULL, "1 0 0");
    compares("solves_scan", solves_scan, inverses, 2, NULL, "1 0 0");
    compares("closes_scan", closes_scan, wide, 2, NULL, "1 0 0");
    compares("same_scan", same_scan, wide, 2, NULL, "1 0 0");
    compares("one_round", one_round, more, 3, NULL, "0 0 0");
    more[1] = number(1);
    compares("no_rounds", no_rounds, more, 2, NULL, "0 1 0");
    more[1] = number(1e6);
    compares("many_rounds", no_rounds, more, 2, NULL, "0 1 0");
    opd_release(closure);
}

//-- C files -----------------------------------------------------------------------------------------------------------

/* Replaces each number in a text by one letter. */
static char *without_numbers(char *text) {
    char *to = text;
    for (const char *at = text; *at; at++) {
        if (*at < '0' || *at > '9') { *to++ = *at; }
        else if (to == text || to[-1] != '#') { *to++ = '#'; }
    }
    *to = 0;
    return text;
}
static void rnn_inputs(opd_tensor **in, int64_t steps) {
    in[0] = ramp(OPD_INTS(4, 8), 1);
    in[1] = ramp(OPD_INTS(steps, 4, 6), 1);
    in[2] = ramp(OPD_INTS(8, 8), 0.3);
    in[3] = ramp(OPD_INTS(6, 8), 0.3);
    in[4] = ramp(OPD_INTS(8), 0.3);
}
/* 10 and 1,000 steps, and their gradients, give the same C except for the numbers in it. */
TEST(text_for_any_number_of_steps) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (int k = 0; k < 2; k++) {
        OPD_SCOPED;
        char *texts[2];
        for (int i = 0; i < 2; i++) {
            opd_tensor *in[5];
            rnn_inputs(in, i ? 1000 : 10);
            opd_graph *const graph = opd_graph_trace(k ? rnn_by : rnn, NULL, in, 5, NULL);
            texts[i] = without_numbers(written(graph, in, 5));
            opd_graph_free(graph);
        }
        CHECK_STR(texts[1], texts[0]);
        CHECK(strlen(texts[0]) < 60000);
        free(texts[0]);
        free(texts[1]);
        CHECK_OK();
    }
}
#if !defined(_WIN32)
#include <dlfcn.h>
typedef struct model { const unsigned char *weights; unsigned char *fixed, *arena; } model;
static long long number_after(const char *text, const char *name) {
    const char *const at = strstr(text, name);
    return at ? atoll(at + strlen(name)) : -1;
}
static unsigned char *memory(long long bytes, void **block) {
    *block = malloc((size_t)bytes + 128);
    return (unsigned char *)(((uintptr_t)*block + 63) & ~(uintptr_t)63);
}
/* Writes a traced function as C that needs nothing else, compiles and runs it. */
static void alone(opd_transform_fn fn, opd_tensor *const *in, int n) {
    OPD_SCOPED;
    char command[400], path[200];
    opd_tensor *want[8], *got[8];
    void *blocks[3], *inputs[8], *outputs[8];
    model m;
    opd_graph *const graph = opd_graph_trace(fn, NULL, in, n, NULL);
    CHECK_OR_RETURN(graph != NULL);
    const int count = opd_graph_run(graph, in, n, want, 8);
    static int number_of_models;
    CHECK_INT(opd_graph_write_c(graph, in, n, check_cache, NULL), 0);
    CHECK_OK();
    (void)snprintf(path, sizeof path, "%s/alone%d.so", check_cache, number_of_models++);
    (void)snprintf(command, sizeof command, "${CC:-cc} -Wall -Wextra -Werror -shared -fPIC '%s/model.c' -o '%s' -lm",
                   check_cache, path);
    CHECK_INT(system(command), 0);
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK_OR_RETURN(library != NULL);
    int (*init)(model *, const void *, void *, void *), (*call)(const model *, void *const *, void *const *);
    *(void **)(void *)&init = dlsym(library, "model_init");
    *(void **)(void *)&call = dlsym(library, "model_call");
    char *const header = read_text("model.h");
    const long long arena_bytes = number_after(header, "model_ARENA_BYTES ");
    const long long weight_bytes = number_after(header, "model_WEIGHTS_BYTES ");
    unsigned char *const weights = memory(weight_bytes, &blocks[0]);
    unsigned char *const fixed = memory(number_after(header, "model_FIXED_BYTES "), &blocks[1]);
    unsigned char *const arena = memory(arena_bytes, &blocks[2]);
    if (weight_bytes) {
        char *const bytes = read_text("model.weights");
        memcpy(weights, bytes, (size_t)weight_bytes);
        free(bytes);
    }
    for (int i = 0; i < n; i++) { inputs[i] = opd_data(in[i]); }
    for (int i = 0; i < count; i++) {
        got[i] = opd_empty(opd_ints_of(opd_sizes(want[i]), opd_ndim(want[i])), opd_dtype(want[i]));
        outputs[i] = opd_data(got[i]);
    }
    CHECK_INT(init(&m, weights, fixed, arena), 0);
    for (int round = 0; round < 2; round++) {     /* with memory that has other contents each time */
        memset(arena, round ? 0xA5 : 0, (size_t)arena_bytes + 64);
        CHECK_INT(call(&m, inputs, outputs), 0);
        for (int i = round ? 0 : 64; i < 64; i++) { CHECK_INT(arena[arena_bytes + i], 0xA5); }
        for (int i = 0; i < count; i++) { CHECK(opd_allclose_full(got[i], want[i], 1e-5, 1e-5, true)); }
    }
    for (int i = 0; i < 3; i++) { free(blocks[i]); }
    free(header);
    (void)dlclose(library);
    opd_graph_free(graph);
    CHECK_OK();
}
TEST(files_alone) {
    static const double values[] = {0.5, -1.0, 2.0, 0.25, 1.5, -0.5, 0.1, 0.9, -0.2, 0.4, 0.3, -0.7};
    if (!check_cache_begin()) { SKIP("no cc"); }
    OPD_SCOPED;
    opd_tensor *in[5], *const matrix = opd_reshape(numbers(values, 12), OPD_INTS(3, 4));
    opd_tensor *rows[] = {number(0.7), matrix, number(1.1)}, *more[] = {number(1.5), numbers(values, 12), number(30)};
    opd_tensor *upright = opd_contiguous(opd_transpose(matrix, 0, 1));
    opd_tensor *flat[] = {number(0.7), numbers(values, 12), number(1.1)};
    opd_tensor *wide[] = {numbers(values, 12), opd_contiguous(opd_expand(numbers(values, 12), OPD_INTS(6, 12)))};
    rnn_inputs(in, 9);
    closure = numbers(values, 12);
    alone(rnn, in, 5);
    alone(rnn_by, in, 5);
    alone(nested, &flat[0], 3);
    alone(scan_of_scans, rows, 3);
    alone(scan_of_whiles, more, 3);
    alone(mixed_scan, &upright, 1);
    alone(closes_scan, wide, 2);
    alone(recurrent_twice, more, 3);
}
#endif

//-- constants, memory -------------------------------------------------------------------------------------------------

BODY(through_weights) {
    UNUSED();
    opd_tensor *got[2], *all[5];
    all[0] = in[0];
    all[1] = in[1];
    for (int i = 0; i < 3; i++) { all[2 + i] = ((opd_tensor **)user)[i]; }
    if (rnn(NULL, all, 5, got) != 2) { return -1; }
    out[0] = opd_sum(got[1]);
    out[1] = got[0];
    DONE(2);
}
/* Weights that are constants of the graph, frozen and not; several kinds of inputs. */
TEST(constants) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (int frozen = 0; frozen < 2; frozen++) {
        OPD_SCOPED;
        opd_tensor *in[5], *want[2], *got[2];
        rnn_inputs(in, 6);
        opd_trace_options options;
        memset(&options, 0, sizeof options);
        options.allow_constants = true;
        opd_graph *const graph = opd_graph_trace(through_weights, in + 2, in, 2, &options);
        opd_compiled *const compiled = compiled_of(graph, frozen != 0);
        for (int round = 0; round < 6; round++) {
            if (round == 3) { (void)opd_mul_Scalar_(in[3], OPD_V(0.5)); }
            if (round == 4) { in[1] = ramp(OPD_INTS(13, 4, 6), 0.7); }
            CHECK_INT(opd_graph_run(graph, in, 2, want, 2), 2);
            CHECK_INT(opd_compiled_function(compiled, in, 2, got), 2);
            for (int k = 0; k < 2; k++) { CHECK(opd_allclose_full(got[k], want[k], 1e-5, 1e-5, false)); }
            CHECK_INT(opd_compiled_reason(compiled) == NULL, (round > 0 && round < 4 && !(frozen && round == 3)) ||
                      round == 5);
        }
        opd_compiled_free(compiled);
        opd_graph_free(graph);
        CHECK_OK();
    }
}
typedef struct attempt { const opd_graph *graph; opd_tensor **in; int n; } attempt;
static int writes_c(void *arg) {
    const attempt *const all = (const attempt *)arg;
    return opd_graph_write_c(all->graph, all->in, all->n, check_cache, NULL);
}
TEST(memory_runs_out) {
    static const double values[] = {0.5, -1.0, 2.0, 0.25};
    static const struct { opd_transform_fn fn; int n; } all[] = {{nested, 3}, {recurrent_by, 3}, {grows, 2}};
    if (!check_cache_begin()) { SKIP("no cc"); }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        OPD_SCOPED;
        opd_tensor *in[3] = {number(1.5), numbers(values, 4), number(1.3)};
        if (all[i].fn == grows) { in[1] = number(40); }
        opd_graph *const graph = opd_graph_trace(all[i].fn, NULL, in, all[i].n, NULL);
        attempt now = {graph, in, all[i].n};
        check_allocations(writes_c, &now, "writing C", 400, true);
        opd_graph_free(graph);
    }
}

//-- graphs of texts ---------------------------------------------------------------------------------------------------

/* Runs a graph of a text, which may write into its inputs, compiled and uncompiled.  `nodes` and `why` are as in
   compares(). */
static void text_agrees(const char *text, const char *nodes, const char *why) {
    OPD_SCOPED;
    opd_graph *const graph = opd_graph_parse(text);
    CHECK_OK();
    CHECK_OR_RETURN(graph != NULL);
    opd_compiled *const compiled = compiled_of(graph, false);
    const char *reason = NULL;
    for (int round = 0; round < 4; round++) {
        OPD_SCOPED;
        opd_tensor *want[2], *got[2], *in[2], *other[2];
        in[0] = ramp(OPD_INTS(6, 4), 1);
        in[1] = number(round % 2 ? 1 : 0);
        other[0] = opd_clone(in[0]);
        other[1] = opd_clone(in[1]);
        CHECK_INT(opd_graph_run(graph, in, 2, want, 2), 1);
        CHECK_INT(opd_compiled_function(compiled, other, 2, got), 1);
        CHECK(opd_allclose(got[0], want[0]) && opd_allclose(in[0], other[0]));
        reason = opd_compiled_reason(compiled);
        if (round == 0 && nodes) {
            char counts[40];
            char *const file = written(graph, in, 2);
            (void)snprintf(counts, sizeof counts, "%d %d %d", count_of(file, ": a loop of"),
                           count_of(file, ": a loop *"), count_of(file, ": a condition *"));
            CHECK_STR(counts, nodes);
            free(file);
        }
    }
    if (why) { CHECK(reason && strstr(reason, why)); }
    else { CHECK_STR(reason, NULL); }
    if (why && reason && !strstr(reason, why)) { fprintf(stderr, "%s\n", reason); }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
    CHECK_OK();
}
#define HEAD "graph(%x : Tensor, %f : Tensor):\n  %0 : int = prim::Constant[value=0]()\n" \
    "  %1 : int = prim::Constant[value=1]()\n  %5 : int = prim::Constant[value=5]()\n" \
    "  %true : bool = prim::Constant[value=1]()\n  %c : bool = aten::Bool(%f)\n"
TEST(graphs_of_texts) {
    if (!check_cache_begin()) { SKIP("no cc"); }
    text_agrees(HEAD "  %y : Tensor = prim::If(%c)\n    block0():\n      %a : Tensor = aten::sin(%x)\n      -> (%a)\n"
                "    block1():\n      -> (%x)\n  return (%y)\n", "0 0 1", NULL);
    /* a write into a result that may be the argument; a write into the argument on one side */
    text_agrees(HEAD "  %y : Tensor = prim::If(%c)\n    block0():\n      %a : Tensor = aten::sin(%x)\n      -> (%a)\n"
                "    block1():\n      -> (%x)\n  %z : Tensor = aten::add_(%y, %1, %1)\n  return (%z)\n", NULL,
                "it returns a tensor that it reads");
    text_agrees(HEAD "  %y : Tensor = prim::If(%c)\n    block0():\n      %a : Tensor = aten::add_(%x, %1, %1)\n"
                "      %b : Tensor = aten::neg(%a)\n      -> (%b)\n    block1():\n      %d : Tensor = aten::cos(%x)\n"
                "      -> (%d)\n  return (%y)\n", NULL, "it writes into a tensor");
    /* loops without slices, over some of the slices, and with other uses of the number of the round */
    text_agrees(HEAD "  %y : Tensor = prim::Loop(%5, %true, %x)\n    block0(%i : int, %h : Tensor):\n"
                "      %a : Tensor = aten::sin(%h)\n      %b : Tensor = aten::add(%a, %x, %1)\n      -> (%true, %b)\n"
                "  return (%y)\n", "1 0 0", NULL);
    text_agrees(HEAD "  %y : Tensor = prim::Loop(%5, %true, %f)\n    block0(%i : int, %h : Tensor):\n"
                "      %s : Tensor = aten::select(%x, %0, %i)\n      %t : Tensor = aten::sum(%s)\n"
                "      %b : Tensor = aten::add(%h, %t, %1)\n      -> (%true, %b)\n  return (%y)\n", "1 0 0", NULL);
    text_agrees(HEAD "  %y : Tensor = prim::Loop(%5, %true, %x)\n    block0(%i : int, %h : Tensor):\n"
                "      %b : Tensor = aten::add(%h, %i, %1)\n      -> (%true, %b)\n  return (%y)\n", "0 0 0", NULL);
    /* writes into a slice, and into the carried value */
    text_agrees(HEAD "  %y : Tensor = prim::Loop(%5, %true, %x)\n    block0(%i : int, %h : Tensor):\n"
                "      %s : Tensor = aten::select(%x, %0, %i)\n      %t : Tensor = aten::add_(%s, %1, %1)\n"
                "      %b : Tensor = aten::add(%h, %t, %1)\n      -> (%true, %b)\n  return (%y)\n", "0 0 0", NULL);
    text_agrees(HEAD "  %w : Tensor = aten::clone(%x, %0)\n  %y : Tensor = prim::Loop(%5, %true, %w)\n"
                "    block0(%i : int, %h : Tensor):\n      %b : Tensor = aten::add_(%h, %x, %1)\n      -> (%true, %b)\n"
                "  return (%y)\n", "0 0 0", NULL);
    /* no rounds, and one */
    text_agrees(HEAD "  %y : Tensor = prim::Loop(%0, %true, %x)\n    block0(%i : int, %h : Tensor):\n"
                "      %a : Tensor = aten::sin(%h)\n      -> (%true, %a)\n"
                "  %z : Tensor = aten::neg(%y)\n  return (%z)\n",
                "0 0 0", NULL);
    text_agrees(HEAD "  %y : Tensor = prim::Loop(%1, %true, %x)\n    block0(%i : int, %h : Tensor):\n"
                "      %a : Tensor = aten::sin(%h)\n      -> (%true, %a)\n  return (%y)\n", "0 0 0", NULL);
}

//-- random bodies -----------------------------------------------------------------------------------------------------

/* A random function of `carried` tensors, of which some are int64, and of `others`.  `depth` is the number of
   conditions and loops around it. */
typedef struct random_body { uint64_t seed; int depth, carried, results; struct random_body *inner; } random_body;
static int dice(uint64_t *state, int count) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (int)((*state >> 33) % (uint64_t)count);
}
static int random_fn(void *user, opd_tensor *const *in, int n, opd_tensor **out);
static int random_other(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    random_body other = *(const random_body *)user;
    other.seed ^= 0x9e3779b97f4a7c15u;
    return random_fn(&other, in, n, out);
}
static int random_below(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    (void)user;
    out[0] = opd_lt_Scalar(opd_sum(opd_abs(in[0])), OPD_V(n + 20));
    DONE(1);
}
/* Like the body, but the first carried value grows. */
static int random_grows(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    if (random_fn(user, in, n, out) < 0) { return -1; }
    out[0] = opd_add_Scalar(opd_add(opd_abs(in[0]), opd_sigmoid(out[0])), OPD_V(0.5));
    DONE(((const random_body *)user)->carried);
}
/* Replaces two of the tensors by results of an inner condition or loop. */
static int random_inner(const random_body *body, uint64_t *state, opd_tensor **all, int count) {
    opd_tensor *got[8], *args[3], *xs = opd_stack(opd_tensors_of(all, count), 0);
    const opd_scan_options options = {0, dice(state, 2) == 1};
    random_body *const inner = body->inner;
    for (int i = 0; i < 3; i++) { args[i] = all[dice(state, count)]; }
    inner->depth = body->depth + 1;
    inner->carried = 2;
    inner->results = 0;
    const int kind = dice(state, 4);
    if (kind == 0) {
        opd_tensor *const pred = opd_gt_Scalar(opd_sum(args[0]), OPD_V(0.3));
        if (opd_cond(pred, random_fn, random_other, inner, args, 3, got, 8) != 2) { return -1; }
    } else if (kind == 1) {
        if (opd_while(random_below, random_grows, inner, args, 2, args + 2, 1, got, 8) != 2) { return -1; }
    } else {
        inner->results = 1;
        if (opd_scan(random_fn, inner, args, 2, &xs, 1, args + 2, 1, &options, got, 8) != 3) { return -1; }
        got[1] = opd_add(got[1], opd_sum_dim(got[2], OPD_INTS(0), false));
    }
    all[dice(state, count)] = got[0];
    all[dice(state, count)] = got[1];
    return opd_ok() ? 0 : -1;
}
static int random_fn(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const random_body *const body = (const random_body *)user;
    uint64_t state = body->seed;
    opd_tensor *all[8];
    for (int i = 0; i < n; i++) { all[i] = in[i]; }
    const int steps = 2 + dice(&state, 5), at = body->depth < 2 ? dice(&state, steps) : -1;
    for (int i = 0; i < steps; i++) {
        if (i == at && random_inner(body, &state, all, n)) { return -1; }
        opd_tensor *const x = all[dice(&state, n)], *const y = all[dice(&state, n)], *z;
        switch (dice(&state, 9)) {
        case 0: z = opd_tanh(opd_add(x, y)); break;
        case 1: z = opd_sin(opd_mul(x, y)); break;
        case 2: z = opd_sub(opd_sigmoid(x), y); break;
        case 3: z = opd_tanh(opd_mm(x, opd_transpose(y, 0, 1))); break;
        case 4: z = opd_where_self(opd_gt(x, y), x, opd_neg(y)); break;
        case 5: z = opd_add(opd_mul_Scalar(x, OPD_V(0.5)), opd_mean_dim(y, OPD_INTS(1), true)); break;
        case 6: z = opd_softmax(opd_add(x, y), 1); break;
        case 7: z = opd_add_(opd_clone(opd_transpose(x, 0, 1)), y); break;
        default: z = opd_flip(x, OPD_INTS(1)); break;
        }
        all[dice(&state, n)] = z;
    }
    for (int i = 0; i < body->carried + body->results; i++) { out[i] = opd_tanh(all[dice(&state, n)]); }
    DONE(body->carried + body->results);
}
/* OPD_RANDOM_GRAPHS=N in the environment runs N bodies instead of 15, from number OPD_RANDOM_FIRST on. */
TEST(random_bodies) {
    const char *const count = getenv("OPD_RANDOM_GRAPHS"), *const first = getenv("OPD_RANDOM_FIRST");
    if (!check_cache_begin()) { SKIP("no cc"); }
    const int from = first ? atoi(first) : 0;
    for (int i = from; i < from + (count ? atoi(count) : 15); i++) {
        OPD_SCOPED;
        opd_tensor *in[3], *want[3], *got[3];
        random_body innermost = {(uint64_t)i * 77 + 5, 0, 0, 0, NULL};
        random_body inner = {(uint64_t)i * 31 + 1, 0, 0, 0, &innermost};
        random_body body = {(uint64_t)i, 0, 3, 0, &inner};
        for (int k = 0; k < 3; k++) {
            in[k] = opd_to_dtype(ramp(OPD_INTS(3, 3), 0.5 + k), OPD_FLOAT64);
        }
        opd_graph *const graph = opd_graph_trace(random_fn, &body, in, 3, NULL);
        opd_compiled *const compiled = compiled_of(graph, false);
        CHECK_OR_RETURN(graph && compiled);
        for (int round = 0; round < 3; round++) {
            if (round == 2) { in[0] = opd_neg(in[0]); }
            CHECK_INT(opd_graph_run(graph, in, 3, want, 3), 3);
            CHECK_INT(opd_compiled_function(compiled, in, 3, got), 3);
            for (int k = 0; k < 3; k++) {
                const bool close = opd_allclose_full(got[k], want[k], 1e-9, 1e-9, false);
                CHECK(close);
                if (!close) { fprintf(stderr, "number %d, output %d, round %d\n", i, k, round); }
            }
        }
        if (opd_compiled_reason(compiled)) { fprintf(stderr, "number %d\n", i); }
        CHECK_STR(opd_compiled_reason(compiled), NULL);
        opd_compiled_free(compiled);
        opd_graph_free(graph);
        CHECK_OK();
    }
}
CHECK_MAIN()
