/* Random graphs, compiled with the flags that opd_graph_compile uses by default, give the same elements as the calls of
   their operators.  The numbers are such that no operator rounds, so that the elements must be equal.

   A batch is one graph with many small ones in it, because that takes a compiler much less time.  OPD_RANDOM_GRAPHS=N
   in the environment runs N batches instead of the usual number, from number OPD_RANDOM_FIRST on. */
#include "../check.h"
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if !defined(_WIN32)
#include <unistd.h>
#endif

/* EACH: graphs in a batch.  STEPS: operators in a graph.  POOL: tensors that a graph can use. */
enum { BATCHES = 25, EACH = 40, STEPS = 7, INPUTS = 14, POOL = INPUTS + STEPS };

static uint64_t dice_state;
static int dice(int count) {
    dice_state = dice_state * 6364136223846793005u + 1442695040888963407u;
    return (int)((dice_state >> 33) % (uint64_t)count);
}

//-- inputs --------------------------------------------------------------------------------------------------------------

/* The inputs of a batch.  Sizes: a letter is a size that the batch chooses, 1 is 1, and 0 is none.  Gap: rows are
   further apart than they are long.  Turned: the last two dims are exchanged. */
static const struct input_kind { opd_scalar_type dtype; const char *sizes; bool gap, turned; } kinds[INPUTS] = {
    {OPD_FLOAT32, "ABC", false, false}, {OPD_FLOAT32, "BC", false, false}, {OPD_FLOAT32, "ABC", true, false},
    {OPD_FLOAT16, "ABC", true, false}, {OPD_FLOAT16, "C", false, false}, {OPD_BFLOAT16, "BC", true, false},
    {OPD_BFLOAT16, "ABC", false, true}, {OPD_FLOAT64, "ABC", false, false}, {OPD_BOOL, "BC", true, false},
    {OPD_BOOL, "ABC", false, false}, {OPD_INT64, "A1C", false, false}, {OPD_INT32, "ABC", true, false},
    {OPD_UINT8, "B1", false, false}, {OPD_INT16, "BC", false, true}
};
static int64_t letters[3];                        /* the sizes of this batch */

static opd_tensor *input_new(const struct input_kind *kind, int round) {
    static const double numbers[] = {1, 2, 0, -1, 3, 0.5, -2.5, 1, -4, 1.5, 0.25, -0.0};
    int64_t sizes[3], whole[3];
    int i;
    const int ndim = (int)strlen(kind->sizes);
    for (i = 0; i < ndim; i++) {
        whole[i] = sizes[i] = kind->sizes[i] == '1' ? 1 : letters[kind->sizes[i] - 'A'];
    }
    if (kind->turned) {
        whole[ndim - 1] = sizes[ndim - 2];
        whole[ndim - 2] = sizes[ndim - 1];
    }
    if (kind->gap) { whole[ndim - 1] = 2 * sizes[ndim - 1]; }
    opd_tensor *x = opd_empty(opd_ints_of(whole, ndim), OPD_FLOAT64);
    for (int64_t k = 0; x && k < opd_numel(x); k++) {
        const double number = numbers[dice(12)];
        opd_data_f64(x)[k] = kind->dtype == OPD_UINT8 ? floor(fabs(number)) : number;
    }
    if (round == 2 && x && opd_numel(x) && opd_dtype_is_floating(kind->dtype)) {
        opd_data_f64(x)[opd_numel(x) / 2] = (double)NAN;
        opd_data_f64(x)[0] = (double)INFINITY;
    }
    x = opd_to_dtype(x, kind->dtype);
    if (kind->gap) { x = opd_narrow(x, ndim - 1, 0, sizes[ndim - 1]); }
    return kind->turned ? opd_transpose(x, -1, -2) : x;
}

//-- a random graph ------------------------------------------------------------------------------------------------------

static opd_op *op_of(const char *name) {
    char full[80];
    (void)snprintf(full, sizeof full, "aten::%s", name);
    return opd_find(full);
}
/* Returns whether the sizes of two tensors can be broadcast. */
static bool suits(const opd_tensor *x, const opd_tensor *y) {
    for (int i = 1; i <= opd_ndim(x) && i <= opd_ndim(y); i++) {
        const int64_t a = opd_sizes(x)[opd_ndim(x) - i], b = opd_sizes(y)[opd_ndim(y) - i];
        if (a != b && a != 1 && b != 1) { return false; }
    }
    return true;
}
/* The tensors of a random graph so far. */
typedef struct pool { opd_tensor *all[POOL]; int count; } pool;
/* Returns a tensor that can be broadcast with x (NULL: any tensor), a late one more often than an early one. */
static opd_tensor *pick(const pool *p, const opd_tensor *x) {
    for (int tries = 0; tries < 40; tries++) {
        const int first = dice(p->count), second = dice(p->count);
        opd_tensor *const y = p->all[first > second ? first : second];
        if (!x || suits(x, y)) { return y; }
    }
    return (opd_tensor *)(uintptr_t)x;
}
static bool floats(const opd_tensor *x) { return opd_dtype_is_floating(opd_dtype(x)); }
static opd_tensor *number_tensor(opd_tensor *x) {
    return opd_dtype(x) == OPD_BOOL ? opd_to_dtype(x, dice(2) ? OPD_FLOAT32 : OPD_INT64) : x;
}
/* Returns a tensor of bools. */
static opd_tensor *condition(const pool *p, const opd_tensor *with) {
    static const char *const compared[] = {"lt", "le", "gt", "ge", "eq", "ne"};
    static const char *const joined[] = {"logical_and", "logical_or", "logical_xor"};
    char name[40];
    opd_tensor *const x = pick(p, with);
    const int way = dice(10);
    if (opd_dtype(x) == OPD_BOOL && dice(2)) { return x; }
    if (way == 0) { return opd_logical_not(x); }
    if (way == 1) { return opd_isnan(x); }
    if (way == 2) { return opd_to_dtype(x, OPD_BOOL); }
    if (way < 5) { return OPD_CALL(op_of(joined[dice(3)]), x, pick(p, x)); }
    (void)snprintf(name, sizeof name, "%s.%s", compared[dice(6)], way < 8 ? "Scalar" : "Tensor");
    return way < 8 ? OPD_CALL(op_of(name), x, (int64_t)(dice(3) - 1)) : OPD_CALL(op_of(name), x, pick(p, x));
}
/* Returns the result of a random operator for every element. */
static opd_tensor *pointwise_step(const pool *p) {
    static const char *const single[] = {"relu", "sign", "abs", "neg", "square", "isinf", "signbit"};
    static const char *const two[] = {"minimum", "maximum", "fmin", "fmax", "mul.Tensor", "logical_and"};
    opd_tensor *x = pick(p, NULL), *y, *mask;
    const char *name;
    switch (dice(9)) {
    case 0: case 1:
        mask = condition(p, x);
        y = pick(p, x);
        return mask && suits(mask, y) && suits(mask, x) ? opd_where_self(mask, x, y) : NULL;
    case 2:
        mask = condition(p, x);
        if (!mask || !suits(mask, x)) { return NULL; }
        return opd_masked_fill_Scalar(x, mask, opd_value_int(opd_dtype(x) == OPD_UINT8 ? 2 : -2));
    case 3: return condition(p, NULL);
    case 4:
        name = single[dice(7)];
        return OPD_CALL(op_of(name), number_tensor(x));
    case 5:
        y = pick(p, x);
        return opd_dtype(x) == OPD_BOOL && opd_dtype(y) == OPD_BOOL ? opd_logical_xor(x, y) : opd_add(x, y);
    case 6: return OPD_CALL(op_of(two[dice(6)]), x, pick(p, x));
    case 7: return OPD_CALL(op_of("clamp"), number_tensor(x), (int64_t)(dice(3) - 1), (int64_t)(dice(3) + 1));
    default: {
        static const opd_scalar_type to[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16, OPD_INT64, OPD_INT32,
                                             OPD_INT8, OPD_BOOL, OPD_FLOAT32};
        const opd_scalar_type dtype = to[dice(9)];
        const bool narrows = floats(x) && !opd_dtype_is_floating(dtype) && dtype != OPD_BOOL;
        return narrows ? NULL : opd_to_dtype(x, dtype);  /* NaN as an integer is any number */
    }
    }
}
/* Returns the result of a random reduction of x, or of an operator that moves elements.  The result may have other
   sizes than the tensors of the pool. */
static opd_tensor *moving_step(opd_tensor *x) {
    const int ndim = opd_ndim(x);
    const int64_t dim = ndim ? dice(ndim) : 0, size = ndim ? opd_sizes(x)[dim] : 1;
    opd_value both[2];
    if (!ndim) { return opd_unsqueeze(x, 0); }
    switch (dice(11)) {
    case 0: return opd_sum_dim(x, opd_ints_of(&dim, 1), dice(2) != 0);
    case 1: return size ? opd_amax(x, opd_ints_of(&dim, 1), dice(2) != 0) : NULL;
    case 2: return size ? opd_amin(x, opd_ints_of(&dim, 1), true) : NULL;
    case 3: return OPD_CALL(op_of(dice(2) ? "any.dim" : "all.dim"), x, dim, dice(2) != 0);
    case 4: return OPD_CALL(op_of("constant_pad_nd"), x, OPD_INTS(2, 2), (int64_t)1);
    case 5: return opd_cumsum(number_tensor(x), dim);
    case 6: return OPD_CALL_N(op_of("cummax"), both, x, dim) ? NULL : both[dice(2)].u.t;
    case 7: return size ? OPD_CALL(op_of("argmax"), number_tensor(x), dim, true) : NULL;
    case 8: return OPD_CALL(op_of("flip"), x, opd_ints_of(&dim, 1));
    case 9: return size > 1 ? opd_narrow(x, (int)dim, 1, size - 1) : opd_cumsum(number_tensor(x), dim);
    default: return OPD_CALL(op_of("count_nonzero.dim_IntList"), x, opd_ints_of(&dim, 1));
    }
}
/* Returns the result of a random graph with the inputs `in`. */
static opd_tensor *random_graph(opd_tensor *const *in) {
    pool p;
    opd_tensor *last = in[0];
    p.count = 0;
    for (int i = 0; i < 5; i++) { p.all[p.count++] = in[dice(INPUTS)]; }
    for (int step = 0; step < STEPS && opd_ok(); step++) {
        const int way = dice(8);
        opd_tensor *const next = way ? pointwise_step(&p) : moving_step(pick(&p, NULL));
        if (!next) { continue; }
        last = p.all[p.count++] = next;
    }
    if (dice(2) && opd_ok()) {
        opd_tensor *const moved = moving_step(last);
        last = moved ? moved : last;
    }
    return opd_ok() ? opd_clone(last) : NULL;
}
static int batch_function(void *user, opd_tensor *const *in, int n, opd_tensor **out) {
    const int batch = *(const int *)user;
    (void)n;
    for (int i = 0; i < EACH; i++) {
        dice_state = (uint64_t)(batch * EACH + i) * 7919u + 17;
        (void)dice(2);
        if (!(out[i] = random_graph(in))) { return -1; }
    }
    return EACH;
}

//-- comparing -----------------------------------------------------------------------------------------------------------

/* Returns the number of elements of two tensors of the same sizes that differ; NaN equals NaN. */
static int64_t differences(opd_tensor *got, opd_tensor *want) {
    int64_t count = 0;
    if (!got || !want || opd_dtype(got) != opd_dtype(want) || opd_numel(got) != opd_numel(want)) { return -1; }
    const opd_scalar_type dtype = floats(want) ? OPD_FLOAT64 : OPD_INT64;
    opd_tensor *const a = opd_contiguous(opd_to_dtype(got, dtype)), *const b = opd_contiguous(opd_to_dtype(want, dtype));
    for (int64_t i = 0; a && b && i < opd_numel(b); i++) {
        if (dtype == OPD_INT64) { count += opd_data_i64(a)[i] != opd_data_i64(b)[i]; }
        else {
            const double x = opd_data_f64(a)[i], y = opd_data_f64(b)[i];
            count += x != y && (x == x || y == y);
        }
    }
    return a && b ? count : -1;
}
/* Compares a compiled batch with calls of its operators, for three kinds of numbers. */
static void compare_batch(opd_compiled *compiled, int batch) {
    for (int round = 0; round < 3; round++) {
        OPD_SCOPED;
        opd_tensor *in[INPUTS], *want[EACH], *got[EACH];
        dice_state = (uint64_t)(batch * 3 + round) * 104729u;
        for (int i = 0; i < INPUTS; i++) { in[i] = input_new(&kinds[i], round); }
        const int count = batch_function(&batch, in, INPUTS, want);
        CHECK_OR_RETURN(count == EACH && opd_compiled_function(compiled, in, INPUTS, got) == EACH);
        if (round) { CHECK_STR(opd_compiled_reason(compiled), NULL); }
        for (int i = 0; i < EACH; i++) {
            const int64_t wrong = differences(got[i], want[i]);
            if (wrong) { printf("batch %d, graph %d, round %d: %lld elements differ\n", batch, i, round, (long long)wrong); }
            CHECK(wrong == 0);
        }
    }
}
static void run_batch(int batch) {
    static const int64_t all[][3] = {{2, 17, 6}, {3, 3, 4}, {1, 5, 8}, {4, 2, 33}, {2, 7, 10}, {3, 1, 16}, {2, 0, 3}};
    opd_tensor *in[INPUTS];
    OPD_SCOPED;
    memcpy(letters, all[batch % 7], sizeof letters);
    dice_state = (uint64_t)batch;
    for (int i = 0; i < INPUTS; i++) { in[i] = input_new(&kinds[i], 0); }
    opd_graph *const graph = opd_graph_trace(batch_function, &batch, in, INPUTS, NULL);
    if (!graph) { printf("%s\n", opd_error_message()); }
    CHECK_OR_RETURN(graph != NULL);
    opd_compiled *const compiled = opd_graph_compile(graph, NULL);
    CHECK(compiled != NULL);
    if (compiled) { compare_batch(compiled, batch); }
    opd_compiled_free(compiled);
    opd_graph_free(graph);
}
TEST(random_graphs) {
    const char *const more = getenv("OPD_RANDOM_GRAPHS"), *const from = getenv("OPD_RANDOM_FIRST");
    const int count = more ? atoi(more) : BATCHES, first = from ? atoi(from) : 0;
    int left = check_compiles_a_share() && !more ? 3 : count;         /* GCC takes more than a second for each batch */
    char name[32];
    if (!check_cache_begin()) { SKIP("no cc"); }
    (void)setenv("OPD_COMPILED_ALWAYS", "1", 1);
    CHECK(count > 0);                             /* a share of the batches may have none */
    for (int i = first; i < first + count && left; i++) {
        (void)snprintf(name, sizeof name, "batch %d", i);
        if (!more && !check_compiles(name)) { continue; }
        run_batch(i);
        left--;
    }
}
TEST(the_cache_goes) {
    if (!check_cache_end()) { SKIP("nothing was compiled"); }
}
CHECK_MAIN()
