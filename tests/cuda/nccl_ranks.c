/* Process groups over NCCL.  Ranks are threads of this program, each with its own device.  The group of threads
   moves the host's memory.  cuda.sh builds it and runs it with the emulation in nccl.cpp: OPD_NCCL=nccl.so
   OPD_EMU_DEVICES=4 OPD_EMU_ASYNC=1 (to 3).  first_gpu_run.sh runs it on GPUs, without OPD_NCCL. */
#include "../thread_group.h"
#include "../check.h"

#include <dlfcn.h>

#define SEEN(cond) check_true(!!(cond), #cond, __FILE__, __LINE__)

static opd_device mine(int rank) { return opd_device_make(OPD_CUDA, rank); }
/* The group with the rank's device, which is the current one. */
static bool joined(opd_group *group, int rank) {
    (void)opd_device_set(mine(rank));
    return SEEN(opd_group_device_add(group, mine(rank)) == 0);
}
static opd_tensor *there(opd_tensor *tensor, int rank) { return opd_to_device(tensor, mine(rank), opd_dtype(tensor)); }
static opd_tensor *numbers(int64_t count, double first, double step, opd_scalar_type dtype, int rank) {
    opd_tensor *const tensor = opd_empty(OPD_INTS(count), OPD_FLOAT64);
    double *const data = opd_data_f64(tensor);
    for (int64_t i = 0; data && i < count; i++) { data[i] = first + step * (double)i; }
    return there(opd_to_dtype(tensor, dtype), rank);
}
static bool holds(opd_tensor *tensor, const double *want, int64_t count) {
    opd_tensor *const host = tensor ? opd_to_device(tensor, opd_device_make(OPD_CPU, -1), opd_dtype(tensor)) : NULL;
    const double *const data = host ? opd_data_f64(opd_to_dtype(opd_reshape(host, OPD_INTS(-1)), OPD_FLOAT64)) : NULL;
    if (!data || opd_numel(host) != count) { return false; }
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs(data[i] - want[i]) <= 1e-5)) {
            printf("element %d is %.9g, not %.9g\n", (int)i, data[i], want[i]);
            return false;
        }
    }
    return true;
}
#define HOLDS(tensor, ...) do { \
        const double want_[] = {__VA_ARGS__}; \
        opd_tensor *const tensor_ = (tensor); \
        CHECK(!tensor_ || opd_tensor_device(tensor_).type == OPD_CUDA); \
        CHECK(holds(tensor_, want_, (int64_t)(sizeof want_ / sizeof *want_))); \
        CHECK_OK(); \
    } while (0)
static opd_tensor *call(const char *name, const opd_value *args, int count) {
    char whole[100];
    (void)snprintf(whole, sizeof whole, "_c10d_functional::%s", name);
    return opd_call_op(opd_find(whole), args, count);
}
static void all_ranks(int size, void (*run)(opd_group *group, int rank, void *user), bool checked) {
    static char messages[RANKS_MOST][600];
    run_ranks(size, run, NULL, checked, 20000, messages);
    for (int rank = 0; rank < size; rank++) { CHECK_STR(messages[rank], ""); }
}
static void nccl_fails(int rank, int result) {
    void *const library = dlopen(getenv("OPD_NCCL"), RTLD_NOW);
    void (*fail)(int, int);
    void *const found = library ? dlsym(library, "opd_emu_nccl_fail") : NULL;
    if (!SEEN(found != NULL)) { return; }
    memcpy(&fail, &found, sizeof fail);
    fail(rank, result);
}

//== collectives =======================================================================================================

/* By way of NCCL unless `host`. */
static void reduces(opd_group *group, opd_scalar_type dtype, const char *reduce_op, bool host, double a, double b) {
    const int rank = opd_group_rank(group);
    OPD_SCOPE {
        const bool truth = dtype == OPD_BOOL;
        opd_tensor *const x = truth ? numbers(2, rank, rank == 0, dtype, rank) : numbers(2, rank + 1, 1, dtype, rank);
        const int64_t before = opd_cpu_fallback_count();
        opd_tensor *const y = opd_all_reduce(x, reduce_op, opd_group_name(group));
        const int64_t ways = opd_cpu_fallback_count() - before;
        const double want[2] = {a, b};
        if (!SEEN(holds(y, want, 2)) || !SEEN(host == (ways > 0))) {
            printf("  %s by %s, %d\n", opd_dtype_cname(dtype), reduce_op, (int)ways);
        }
        CHECK_OK();
    }
}
/* Of ranks 0 and 1: [1, 2] and [2, 3], or of truth values [0, 1] and [1, 1]. */
static void all_dtypes(opd_group *group, int rank, void *user) {
    static const opd_scalar_type numbers_of[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16, OPD_INT8,
                                                 OPD_UINT8, OPD_INT32, OPD_INT64, OPD_INT16};
    (void)user;
    if (!joined(group, rank)) { return; }
    for (size_t i = 0; i < sizeof numbers_of / sizeof *numbers_of; i++) {
        const opd_scalar_type dtype = numbers_of[i];
        const bool host = dtype == OPD_INT16;
        if (host) { continue; }                   /* the tests' group of threads cannot sum it */
        reduces(group, dtype, "sum", host, 3, 5);
        reduces(group, dtype, "product", host, 2, 6);
        reduces(group, dtype, "min", host, 1, 2);
        reduces(group, dtype, "max", host, 2, 3);
        if (opd_dtype_is_floating(dtype)) { reduces(group, dtype, "avg", host, 1.5, 2.5); }
    }
    reduces(group, OPD_BOOL, "sum", false, 1, 1);
    reduces(group, OPD_BOOL, "product", false, 0, 1);
    reduces(group, OPD_BOOL, "band", false, 0, 1);
    reduces(group, OPD_BOOL, "bor", false, 1, 1);
    CHECK_INT(opd_work_wait(opd_group_barrier(group)), 0);    /* the count was of all threads */
    opd_tensor *const z = opd_complex(numbers(2, rank, 1, OPD_FLOAT32, rank), numbers(2, 1, rank, OPD_FLOAT32, rank));
    HOLDS(opd_view_as_real(opd_all_reduce(z, "sum", opd_group_name(group))), 1, 2, 3, 3);
    HOLDS(opd_view_as_real(opd_all_reduce(z, "avg", opd_group_name(group))), 0.5, 1, 1.5, 1.5);
    opd_tensor *const gathered = opd_all_gather(z, opd_group_name(group));
    HOLDS(opd_view_as_real(gathered), 0, 1, 1, 1, 1, 1, 2, 2);
    CHECK(opd_group_reduce(group, numbers(2, 1, 1, OPD_INT64, rank), "bor", 0) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "NCCL does not support this reduction for int64");
}
TEST_KEEPS(dtypes_and_reductions) { all_ranks(2, all_dtypes, false); }

static void all_kinds(opd_group *group, int rank, void *user) {
    const char *const world = opd_group_name(group);
    const double r = rank;
    (void)user;
    if (!joined(group, rank)) { return; }
    const int64_t before = opd_cpu_fallback_count();
    opd_tensor *const x = numbers(2, 10 * r, 1, OPD_FLOAT32, rank);
    HOLDS(opd_all_gather(x, world), 0, 1, 10, 11, 20, 21);
    HOLDS(opd_reduce_scatter(numbers(6, r, 1, OPD_FLOAT32, rank), "sum", world), 3 + 6 * r, 6 + 6 * r);
    HOLDS(opd_reduce_scatter(numbers(3, 3 * r, 1, OPD_FLOAT32, rank), "avg", world), 3 + r);
    HOLDS(opd_broadcast(x, 1, world), 10, 11);
    opd_tensor *const y = numbers(2, 10 * r, 1, OPD_INT16, rank);
    CHECK(opd_broadcast_(y, 2, world) == y);
    HOLDS(y, 20, 21);
    /* rank r sends r + 1 elements to each, and has them doubled from the last one */
    const int64_t sent[3] = {rank + 1, rank + 1, rank + 1}, taken[3] = {1, 2, 3};
    const opd_value args[4] = {opd_value_tensor(numbers(3 * (rank + 1), 100 * r, 1, OPD_FLOAT64, rank)),
                               opd_value_ints(taken, 3), opd_value_ints(sent, 3), opd_value_str(world)};
    HOLDS(call("all_to_all_single", args, 4), r, 100 + 2 * r, 101 + 2 * r, 200 + 3 * r, 201 + 3 * r, 202 + 3 * r);
    /* in place; of a tensor with gaps; of none */
    CHECK(opd_all_reduce_(x, "max", world) == x);
    HOLDS(x, 20, 21);
    opd_tensor *const square = opd_reshape(numbers(4, r, 1, OPD_FLOAT32, rank), OPD_INTS(2, 2));
    HOLDS(opd_all_reduce(opd_t(square), "sum", world), 3, 9, 6, 12);
    CHECK_INT(opd_numel(opd_all_reduce(numbers(0, 0, 0, OPD_FLOAT32, rank), "sum", world)), 0);
    opd_tensor *const list = rank == 1 ? opd_reshape(numbers(6, 0, 1, OPD_FLOAT32, rank), OPD_INTS(3, 2)) : NULL;
    opd_tensor *const part = numbers(2, 0, 0, OPD_FLOAT32, rank);
    CHECK_INT(opd_work_wait(opd_group_scatter(group, part, list, 1)), 0);
    HOLDS(part, 2 * r, 2 * r + 1);
    CHECK_INT(opd_work_wait(opd_group_reduce(group, part, "sum", 1)), 0);
    if (rank == 1) { HOLDS(part, 6, 9); }
    opd_tensor *const own = numbers(2, r, 1, OPD_FLOAT32, rank);
    CHECK_INT(opd_work_wait(opd_group_gather(group, own, list, 1)), 0);
    if (rank == 1) { HOLDS(list, 0, 1, 1, 2, 2, 3); }
    CHECK_INT(opd_work_wait(opd_group_barrier(group)), 0);
    CHECK_INT(opd_cpu_fallback_count() - before, 0);
    /* what lies on the CPU goes by the group's own functions */
    opd_tensor *const host = opd_full(OPD_INTS(2), opd_value_double(r), OPD_FLOAT32);
    CHECK_NEAR(opd_item_f64(opd_sum(opd_all_reduce(host, "sum", world))), 6, 0);
}
TEST_KEEPS(every_kind_of_collective) { all_ranks(3, all_kinds, false); }
TEST_KEEPS(every_kind_of_collective_checked) { all_ranks(3, all_kinds, true); }

static opd_tensor *pair_call(const char *name, opd_tensor *tensor, int peer, int tag, const char *world) {
    const opd_value args[4] = {opd_value_tensor(tensor), opd_value_int(peer), opd_value_int(tag), opd_value_str(world)};
    return call(name, args, 4);
}
static void sends(opd_group *group, int rank, void *user) {
    const char *const world = opd_group_name(group);
    const int other = 1 - rank;
    opd_work *works[4];
    (void)user;
    if (!joined(group, rank)) { return; }
    /* each sends before it takes, twice; one asks for the second message's handle first */
    opd_tensor *const first = numbers(3, 10 * rank, 1, OPD_FLOAT32, rank), *const second = opd_add(first, first);
    opd_tensor *const a = opd_empty_like(first), *const b = opd_empty_like(first);
    works[0] = opd_group_send(group, first, other, 0);
    works[1] = opd_group_send(group, second, other, 0);
    works[2] = opd_group_recv(group, a, other, 0);
    works[3] = opd_group_recv(group, b, other, 0);
    for (int i = 0; i < 4; i++) { CHECK_INT(opd_work_wait(works[rank ? i : 3 - i]), 0); }
    HOLDS(a, 10 * other, 10 * other + 1, 10 * other + 2);
    HOLDS(b, 20 * other, 20 * other + 2, 20 * other + 4);
    /* by operators, whose sends nobody waits for */
    if (rank == 0) { CHECK(pair_call("isend", second, 1, 0, world) != NULL); }
    else {
        opd_tensor *const got = opd_zeros_like(first);
        CHECK(pair_call("irecv", got, 0, 0, world) == got);
        HOLDS(opd_add(got, got), 0, 4, 8);
    }
    /* a tag goes by way of the host, in any order */
    if (rank == 0) {
        CHECK(pair_call("isend", first, 1, 5, world) != NULL);
        CHECK(pair_call("isend", second, 1, 4, world) != NULL);
    } else {
        HOLDS(pair_call("irecv", a, 0, 4, world), 0, 2, 4);
        HOLDS(pair_call("irecv", b, 0, 5, world), 0, 1, 2);
    }
    opd_work *const work = rank ? opd_group_recv(group, a, 0, 0) : opd_group_send(group, first, 1, 0);
    int how = 0;
    while ((how = opd_work_test(work)) == 0) { thread_rest(1000); }
    CHECK_INT(how, 1);
    CHECK_INT(opd_work_wait(work), 0);
    if (rank == 1) { HOLDS(a, 0, 1, 2); }
    /* what nobody waits for is on its way before the host waits for the group */
    works[0] = rank ? opd_group_recv(group, b, 0, 0) : opd_group_send(group, second, 1, 0);
    if (rank == 1) { CHECK_INT(opd_work_wait(works[0]), 0); }
    if (rank == 1) { HOLDS(b, 0, 2, 4); }
    CHECK_INT(opd_work_wait(opd_group_barrier(group)), 0);
    if (rank == 0) { opd_work_release(works[0]); }
    CHECK(opd_group_send(group, first, other, 1) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "NCCL supports no tags but 0");
}
TEST_KEEPS(sends_and_receives_in_any_order) { all_ranks(2, sends, false); }
/* In a checked group: two messages that are what the other expects, then one that is not. */
static void checked_sends(opd_group *group, int rank, void *user) {
    const int other = 1 - rank;
    (void)user;
    if (!joined(group, rank)) { return; }
    opd_tensor *const first = numbers(3, 10 * rank, 1, OPD_FLOAT32, rank);
    for (int turn = 0; turn < 2; turn++) {
        opd_tensor *const got = opd_zeros_like(first);
        opd_work *const send = opd_group_send(group, first, other, 0);
        opd_work *const recv = opd_group_recv(group, got, other, 0);
        CHECK_INT(opd_work_wait(rank ? send : recv), 0);
        CHECK_INT(opd_work_wait(rank ? recv : send), 0);
        HOLDS(got, 10 * other, 10 * other + 1, 10 * other + 2);
    }
    if (rank == 0) { CHECK_INT(opd_work_wait(opd_group_send(group, numbers(3, 0, 1, OPD_INT32, 0), 1, 0)), -1); }
    else { CHECK_INT(opd_work_wait(opd_group_recv(group, first, 0, 0)), -1); }
    CHECK_ERROR(OPD_ERROR_KERNEL, "the ranks differ: rank 0 sends int32, but rank 1 receives float32 (tag 0)");
}
TEST_KEEPS(checked_sends_of_devices) { all_ranks(2, checked_sends, true); }

static void differentiates(opd_group *group, int rank, void *user) {
    const char *const world = opd_group_name(group);
    const double r = rank;
    (void)user;
    if (!joined(group, rank)) { return; }
    opd_tensor *const x = opd_tensor_set_requires_grad(numbers(2, r + 1, 1, OPD_FLOAT32, rank), true);
    opd_tensor *const y = opd_all_reduce(opd_mul(x, x), "sum", world);
    CHECK_INT(opd_backward(opd_sum(opd_mul_Scalar(y, opd_value_double(r + 1)))), 0);
    HOLDS(opd_tensor_grad(x), 6 * (r + 1), 6 * (r + 2));
    opd_tensor *const z = opd_tensor_set_requires_grad(numbers(2, r, 1, OPD_FLOAT32, rank), true);
    CHECK_INT(opd_backward(opd_sum(opd_mul_Scalar(opd_all_gather(z, world), opd_value_double(r + 1)))), 0);
    HOLDS(opd_tensor_grad(z), 3, 3);
    /* a subgroup has it, too; the last rank of three would be alone */
    const int32_t turned[2] = {1, 0};
    opd_group *const part = opd_group_split(group, rank ? "part1" : "part0", turned, 2);
    if (!SEEN(part != NULL)) { return; }
    CHECK_INT(opd_group_rank(part), 1 - rank);
    HOLDS(opd_all_gather(opd_detach(z), opd_group_name(part)), 1, 2, 0, 1);
    CHECK_INT(opd_group_unregister(part), 0);
    opd_group *const alone = opd_group_split(group, rank ? "alone1" : "alone0", &(const int32_t){rank}, 1);
    HOLDS(opd_all_gather(opd_detach(z), opd_group_name(alone)), r, r + 1);
    CHECK_INT(opd_work_wait(opd_group_reduce(alone, opd_detach(z), "sum", 0)), 0);
    CHECK_INT(opd_group_unregister(alone), 0);
}
TEST_KEEPS(derivatives_and_subgroups) { all_ranks(2, differentiates, false); }

/* The host goes on while the other rank has not come, and so does other work of the device. */
static int said;
static void goes_on(opd_group *group, int rank, void *user) {
    const char *const world = opd_group_name(group);
    (void)user;
    if (!joined(group, rank)) { return; }
    opd_tensor *const x = numbers(4, rank, 1, OPD_FLOAT32, rank);
    if (rank == 1) {
        while (__atomic_load_n(&said, __ATOMIC_ACQUIRE) == 0) { thread_rest(50); }
        HOLDS(opd_all_reduce(x, "sum", world), 1, 3, 5, 7);
        HOLDS(opd_all_reduce(opd_add(x, x), "sum", world), 2, 6, 10, 14);
        return;
    }
    opd_tensor *const y = opd_all_reduce(x, "sum", world);
    opd_tensor *const beside = opd_mul(numbers(2, 3, 0, OPD_FLOAT32, rank), numbers(2, 2, 0, OPD_FLOAT32, rank));
    const opd_stream stream = opd_stream_new(mine(0)), was = opd_stream_set(stream);
    opd_tensor *const after = opd_add(y, y);      /* of another stream, which waits for it */
    (void)opd_stream_set(was);
    opd_tensor *const again = opd_all_reduce(after, "sum", "nobody");
    CHECK(again == NULL);
    CHECK_ERROR(OPD_ERROR_NOT_FOUND, "'world0'");
    const double six[2] = {6, 6};
    CHECK(holds(beside, six, 2));                 /* waits for the device's own stream, which waits for nobody */
    __atomic_store_n(&said, 1, __ATOMIC_RELEASE);
    CHECK_INT(opd_stream_wait(was, stream), 0);
    HOLDS(after, 2, 6, 10, 14);
    HOLDS(y, 1, 3, 5, 7);
    HOLDS(opd_all_reduce(opd_add(x, x), "sum", world), 2, 6, 10, 14);
    opd_stream_free(stream);
}
TEST_KEEPS(nobody_waits_on_the_host) {
    said = 0;
    all_ranks(2, goes_on, false);
}

//== training ==========================================================================================================

enum { ROWS = 8, INPUTS = 5, STEPS = 4 };
typedef struct training { bool sharded, device, hooks; double losses[STEPS], values[INPUTS * 3 + 3]; } training;
static opd_tensor *wave(opd_ints sizes, double seed) {
    opd_tensor *const tensor = opd_empty(sizes, OPD_FLOAT32);
    float *const data = opd_data_f32(tensor);
    for (int64_t i = 0; data && i < opd_numel(tensor); i++) { data[i] = (float)sin(seed + 0.7 * (double)i); }
    return tensor;
}
static void keep_values(const training *run, opd_parallel *parallel, opd_tensor **params, double *values) {
    int64_t at = 0;
    OPD_NO_GRAD {
        for (int i = 0; i < 2; i++) {
            opd_tensor *const whole = run->sharded ? opd_parallel_full(parallel, params[i]) : params[i];
            opd_tensor *const host = opd_to_device(opd_detach(whole), opd_device_make(OPD_CPU, -1), OPD_FLOAT64);
            const double *const data = opd_data_f64(opd_contiguous(host));
            for (int64_t k = 0; data && k < opd_numel(host); k++) { values[at++] = data[k]; }
        }
    }
}
/* Two of the ranks have rows of each batch, the third one fewer; the last batch is of rank 0 alone. */
static void trains(opd_group *group, int rank, void *user) {
    training *const run = (training *)user;
    const int size = opd_group_size(group);
    if (run->device && !joined(group, rank)) { return; }
    opd_tensor *params[2] = {wave(OPD_INTS(3, INPUTS), 1 + rank), wave(OPD_INTS(3), 2 + rank)}, *whole[2];
    for (int i = 0; i < 2; i++) {
        if (run->device) { params[i] = there(params[i], rank); }
        params[i] = opd_tensor_set_requires_grad(params[i], true);
    }
    opd_parallel *const parallel = run->sharded ? opd_sharded_parallel(params, 2, group, NULL)
        : opd_data_parallel(params, 2, group, NULL);
    opd_optimizer *const sgd = opd_sgd_new(params, 2, &(opd_sgd_options){.lr = 0.1, .momentum = 0.9});
    for (int step = 0; step < STEPS && parallel && opd_ok(); step++) {
        OPD_SCOPE {
            const int64_t begin = step == STEPS - 1 ? (rank == 0 ? 0 : ROWS) : ROWS * rank / size;
            const int64_t rows = (step == STEPS - 1 ? ROWS : ROWS * (rank + 1) / size) - begin;
            opd_tensor *x = opd_narrow(wave(OPD_INTS(ROWS, INPUTS), step), 0, begin, rows);
            opd_tensor *want = opd_narrow(wave(OPD_INTS(ROWS, 3), 5 + step), 0, begin, rows);
            if (run->device) { x = there(opd_contiguous(x), rank); want = there(opd_contiguous(want), rank); }
            CHECK_INT(opd_parallel_begin(parallel, rows), ROWS);
            if (run->hooks) { CHECK_INT(opd_sharded_hooks_begin(parallel), 0); }
            for (int i = 0; i < 2; i++) {
                whole[i] = run->sharded ? opd_parallel_full(parallel, params[i]) : params[i];
            }
            opd_tensor *const apart = opd_sub(opd_add(opd_linear(x, whole[0], NULL), whole[1]), want);
            opd_tensor *const sum = opd_sum(opd_mul(apart, apart));
            if (run->hooks) { opd_saved_hooks_end(); }
            if (rows > 0 || run->sharded) {
                CHECK_INT(opd_backward(rows > 0 ? opd_div_Scalar(sum, opd_value_int(3 * rows)) : sum), 0);
            }
            CHECK_INT(opd_optimizer_step(sgd), 0);
            (void)opd_optimizer_zero_grad(sgd);
            opd_tensor *const all = opd_all_reduce(opd_detach(sum), "sum", opd_group_name(group));
            if (rank == 0) { run->losses[step] = opd_item_f64(all); }
        }
    }
    if (rank == 0) { keep_values(run, parallel, params, run->values); }
    else { double others[INPUTS * 3 + 3]; keep_values(run, parallel, params, others); }
    opd_optimizer_free(sgd);
    opd_parallel_free(parallel);
}
static void train(training *run, int ranks) {
    static char messages[RANKS_MOST][600];
    run_ranks(ranks, trains, run, false, 20000, messages);
    for (int rank = 0; rank < ranks; rank++) { CHECK_STR(messages[rank], ""); }
}
static void same(const training *a, const training *b) {
    for (int i = 0; i < STEPS; i++) { CHECK_NEAR(a->losses[i], b->losses[i], 1e-4); }
    for (int i = 0; i < INPUTS * 3 + 3; i++) { CHECK_NEAR(a->values[i], b->values[i], 1e-5); }
}
static void train_as(bool sharded, bool hooks) {
    training alone, several, again;
    memset(&alone, 0, sizeof alone);
    train(&alone, 1);
    alone.sharded = sharded;
    CHECK(alone.losses[0] > 0);
    memset(&several, 0, sizeof several);
    several.device = true;
    several.sharded = sharded;
    several.hooks = hooks;
    again = several;
    train(&several, 3);
    same(&alone, &several);
    train(&again, 3);
    CHECK(memcmp(&several, &again, sizeof again) == 0);       /* to the bit */
}
TEST_KEEPS(data_parallel_on_devices) { train_as(false, false); }
TEST_KEEPS(sharded_on_devices) { train_as(true, false); }
TEST_KEEPS(sharded_on_devices_gathered_again) { train_as(true, true); }

/* Parts on devices in a checkpoint, which any ranks load, on devices or not. */
typedef struct shelf {
    char folder[64];
    bool saves, device;
    double values[INPUTS * 3 + 3], next[INPUTS * 3 + 3];
} shelf;
static void one_step(opd_parallel *parallel, opd_tensor **params, opd_optimizer *adam, opd_tensor *x) {
    OPD_SCOPE {
        opd_tensor *const w = opd_parallel_full(parallel, params[0]), *const b = opd_parallel_full(parallel, params[1]);
        CHECK_INT(opd_backward(opd_sum(opd_sin(opd_add(opd_linear(x, w, NULL), b)))), 0);
        CHECK_INT(opd_optimizer_step(adam), 0);
        CHECK_INT(opd_optimizer_zero_grad(adam), 0);
    }
}
static void saves_or_loads(opd_group *group, int rank, void *user) {
    shelf *const its = (shelf *)user;
    training how;
    double values[INPUTS * 3 + 3], next[INPUTS * 3 + 3];
    opd_tensor *params[2] = {wave(OPD_INTS(3, INPUTS), its->saves), wave(OPD_INTS(3), 2 * its->saves)};
    opd_tensor *x = wave(OPD_INTS(2, INPUTS), 3);
    opd_module *const module = opd_module_new();
    memset(&how, 0, sizeof how);
    how.sharded = true;
    if (its->device && !joined(group, rank)) { return; }
    for (int i = 0; i < 2; i++) {
        if (its->device) { params[i] = there(params[i], rank); }
        params[i] = opd_tensor_set_requires_grad(params[i], true);
        CHECK_INT(opd_module_add(module, i ? "bias" : "weight", params[i], OPD_MODULE_PARAMETER), 0);
    }
    if (its->device) { x = there(x, rank); }
    opd_parallel *const parallel = opd_sharded_parallel(params, 2, group, NULL);
    opd_optimizer *const adam = opd_adam_new(params, 2, NULL);
    if (its->saves) {
        one_step(parallel, params, adam, x);
        CHECK_INT(opd_sharded_save(parallel, its->folder, module, adam, NULL, NULL, 0), 0);
    } else { CHECK_INT(opd_sharded_load(parallel, its->folder, module, adam), 0); }
    keep_values(&how, parallel, params, values);
    one_step(parallel, params, adam, x);
    keep_values(&how, parallel, params, next);
    if (its->saves && rank == 0) {
        memcpy(its->values, values, sizeof values);
        memcpy(its->next, next, sizeof next);
    }
    for (int i = 0; i < INPUTS * 3 + 3 && !its->saves; i++) {
        CHECK_NEAR(values[i], its->values[i], 0);
        CHECK_NEAR(next[i], its->next[i], 1e-5);
    }
    opd_optimizer_free(adam);
    opd_parallel_free(parallel);
    opd_module_free(module);
}
TEST_KEEPS(checkpoints_of_parts_on_devices) {
    static char messages[RANKS_MOST][600];
    char command[100];
    shelf its;
    memset(&its, 0, sizeof its);
    (void)snprintf(its.folder, sizeof its.folder, "/tmp/opd_nccl.XXXXXX");
    if (!SEEN(mkdtemp(its.folder) != NULL)) { return; }
    its.saves = its.device = true;
    for (int ranks = 3; ranks > 0; ranks--) {
        run_ranks(ranks, saves_or_loads, &its, false, 20000, messages);
        for (int rank = 0; rank < ranks; rank++) { CHECK_STR(messages[rank], ""); }
        its.saves = false;
        its.device = ranks == 3;
    }
    (void)snprintf(command, sizeof command, "rm -r %s", its.folder);
    CHECK_INT(system(command), 0);
}

static void lacks(opd_group *group, int rank, void *user) {
    opd_tensor *params[2];
    (void)user;
    if (!joined(group, rank)) { return; }
    for (int i = 0; i < 2; i++) { params[i] = opd_tensor_set_requires_grad(numbers(2, i, 1, OPD_FLOAT32, rank), true); }
    opd_parallel *const parallel = opd_data_parallel(params, 2, group, NULL);
    opd_tensor *const loss = opd_sum(rank == 1 ? params[0] : opd_mul(params[0], params[1]));
    CHECK_INT(opd_backward(loss), -1);
    CHECK_ERROR(OPD_ERROR_AUTOGRAD, "parameter 1 of 2 got no gradient in this backward on rank 1");
    opd_parallel_free(parallel);
}
TEST_KEEPS(a_gradient_that_is_missing) { all_ranks(2, lacks, false); }

//== errors ============================================================================================================

static void differs(opd_group *group, int rank, void *user) {
    const char *const how = (const char *)user, *const world = opd_group_name(group);
    if (!joined(group, rank)) { return; }
    opd_tensor *const x = numbers(strcmp(how, "sizes") == 0 ? 2 + rank : 2, rank, 1, OPD_FLOAT32, rank);
    opd_tensor *const y = strcmp(how, "devices") == 0 && rank == 1 ? opd_zeros(OPD_INTS(2), OPD_FLOAT32) : x;
    CHECK(opd_all_reduce(y, "sum", world) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, strcmp(how, "sizes") == 0
                ? "rank 0 calls all_reduce of 2 element(s), rank 1 calls all_reduce of 3 element(s)"
                : "rank 0 calls all_reduce on cuda, rank 1 calls all_reduce on cpu");
    opd_tensor *const elsewhere = there(x, 2);
    CHECK(opd_all_reduce(elsewhere, "sum", world) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "a tensor on cuda:2 cannot be sent");
    CHECK_INT(opd_group_device_add(group, mine(rank)), -1);
    CHECK_ERROR(OPD_ERROR_KERNEL, "the group already has a device");
}
TEST_KEEPS(ranks_that_differ) {
    static char how[2][10] = {"sizes", "devices"};
    for (int i = 0; i < 2; i++) { run_ranks(2, differs, how[i], true, 20000, NULL); }
}

/* Rank 1 does not come: the others' streams go on, and whoever reads the device is told. */
static int done;
static void stays_away(opd_group *group, int rank, void *user) {
    const bool says = *(const bool *)user;
    if (!joined(group, rank)) { return; }
    opd_tensor *const x = numbers(2, rank, 1, OPD_FLOAT32, rank);
    if (rank == 1) {
        if (says) { nccl_fails(0, 6); }           /* what NCCL tells rank 0 */
        while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) == 0) { thread_rest(1000); }
        return;
    }
    opd_tensor *const y = opd_all_reduce(x, "sum", "world0");
    opd_tensor *const z = y ? opd_mul(y, y) : NULL;
    CHECK(y ? opd_ok() : says);                   /* nobody has waited yet */
    opd_error_clear();
    (void)opd_item_f64(opd_sum(z ? z : x));
    CHECK(strstr(opd_error_message(), "process group 'world0' (rank 0 of 2): ") != NULL);
    CHECK(strstr(opd_error_message(), says ? "NCCL: remote process exited" : "all_reduce, transfer 1 over NCCL"));
    CHECK_ERROR(OPD_ERROR_KERNEL, says ? "NCCL" : "it was not done after 0.4 s: a rank has ended");
    (void)opd_item_f64(opd_sum(x));               /* neither now */
    CHECK_ERROR(OPD_ERROR_KERNEL, "Results computed on cuda:0 since then may be wrong");
    CHECK(opd_all_reduce(x, "sum", "world0") == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "all_reduce, call");
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
}
static void go_away(bool says) {
    done = 0;
    if (!getenv("OPD_NCCL")) { check_skip("of the emulation"); return; }
    run_ranks(2, stays_away, &says, false, 400, NULL);
    nccl_fails(0, 0);
    opd_tensor *const x = numbers(2, 1, 1, OPD_FLOAT32, 0);
    HOLDS(x, 1, 2);                               /* the group is gone, and its device is as good as before */
}
TEST_KEEPS(a_rank_that_does_not_come) { go_away(false); }
TEST_KEEPS(an_error_of_nccl) { go_away(true); }

/* What is captured is done again and again, and the others know nothing of that. */
static void captures(opd_group *group, int rank, void *user) {
    const char *const world = opd_group_name(group);
    (void)user;
    if (!joined(group, rank)) { return; }
    opd_tensor *const x = numbers(2, rank, 1, OPD_FLOAT32, rank);
    const opd_stream stream = opd_stream_new(mine(rank)), was = opd_stream_set(stream);
    CHECK_INT(opd_capture_begin(stream), 0);
    CHECK(opd_all_reduce(x, "sum", world) == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "a collective operation cannot be captured");
    opd_capture *const capture = opd_capture_end(stream);
    CHECK(capture == NULL);
    CHECK_ERROR(OPD_ERROR_KERNEL, "the capture failed");
    (void)opd_stream_set(was);
    opd_stream_free(stream);
    HOLDS(opd_all_reduce(x, "sum", world), 1, 3);
}
TEST_KEEPS(what_is_captured_has_no_collectives) {
    if (getenv("OPD_TEST_NCCL")) { check_skip("there is no NCCL"); return; }
    all_ranks(2, captures, false);
}

static void gives_up(opd_group *group, int rank, void *user) {
    (void)user;
    if (!joined(group, rank)) { return; }
    opd_tensor *const x = numbers(2, rank, 1, OPD_FLOAT32, rank);
    if (rank == 1) { CHECK_INT(opd_group_abandon(group, "no more data"), 0); }
    else { while (opd_work_wait(opd_group_barrier(group)) == 0) {} }
    CHECK(rank == 1 || strstr(opd_error_message(), "rank 1 of process group 'world1' has given up: no more data"));
    opd_error_clear();
    if (rank == 1) {
        CHECK(opd_all_reduce(x, "sum", opd_group_name(group)) == NULL);
        CHECK_ERROR(OPD_ERROR_KERNEL, "has given up: no more data");
    }
}
TEST_KEEPS(a_rank_that_gives_up) { run_ranks(2, gives_up, NULL, false, 20000, NULL); }

/* One rank has no NCCL, or another one than it should: all are told which. */
static const char *cannot_part;
static void cannot(opd_group *group, int rank, void *user) {
    (void)user;
    (void)opd_device_set(mine(rank));
    CHECK_INT(opd_group_device_add(group, mine(rank)), -1);
    if (!SEEN(strstr(opd_error_message(), cannot_part) != NULL)) { printf("  %s\n", opd_error_message()); }
    opd_error_clear();
    opd_tensor *const x = numbers(2, rank, 1, OPD_FLOAT32, rank);
    HOLDS(opd_all_reduce(x, "sum", opd_group_name(group)), 1, 3);     /* by way of the host, as before */
    CHECK(opd_group_send(group, x, 1 - rank, 0) == NULL);
    CHECK_ERROR(OPD_ERROR_ARGUMENT, "nor on a device of the group: add its device with");
}
static void all_cannot(const char *part) {
    cannot_part = part;
    run_ranks(2, cannot, NULL, false, 2000, NULL);
}
/* The first use of NCCL fails; OPD_TEST_NCCL is a part of the error. */
TEST_KEEPS(nccl_that_cannot_be_used) {
    const char *const part = getenv("OPD_TEST_NCCL");
    if (!part) { check_skip("OPD_TEST_NCCL is not set"); return; }
    all_cannot(part);
}
TEST_KEEPS(a_rank_that_cannot_join) {
    if (getenv("OPD_TEST_NCCL") || !getenv("OPD_NCCL")) { check_skip("of the emulation"); return; }
    nccl_fails(1, 3);
    all_cannot("opd_group_device_add: rank 1 of process group 'world");
    nccl_fails(1, 0);
}
static void no_device(opd_group *group, int rank, void *user) {
    (void)user;
    CHECK_INT(opd_group_device_add(group, rank == 0 ? mine(0) : opd_device_make(OPD_CPU, -1)), -1);
    CHECK_ERROR(OPD_ERROR_KERNEL, "rank 1 of process group 'world");
}
TEST_KEEPS(a_device_that_is_none) {
    if (getenv("OPD_TEST_NCCL")) { check_skip("there is no NCCL"); return; }
    run_ranks(2, no_device, NULL, false, 2000, NULL);
}

int main(int argc, char **argv) {
    const char *const plugin = getenv("OPD_TEST_PLUGIN");
    if (plugin && !opd_plugin_load(plugin)) { return opd_finish(); }
    if (getenv("OPD_TEST_FALLBACK")) { (void)opd_cpu_fallback_set(OPD_CUDA, true); }
    return check_main(argc, argv, __FILE__);
}
