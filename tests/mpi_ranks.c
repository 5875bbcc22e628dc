/* Tests collectives over MPI.  tests/mpi.sh builds the program and runs it with `mpirun -n` 1 and more.  Each rank
   checks its results.  The first rank that finds a mistake ends the job with status 1. */
#define OPDISPATCH_IMPLEMENTATION
#include "../examples/mpi_group.c"
#include "mpi_test.h"
#include "mpi_walk.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

static opd_tensor *numbers(int64_t count, double first, double step, opd_scalar_type dtype) {
    opd_tensor *const tensor = opd_empty(OPD_INTS(count), OPD_FLOAT64);
    double *const data = opd_data_f64(tensor);
    for (int64_t i = 0; data && i < count; i++) { data[i] = first + step * (double)i; }
    return opd_to_dtype(tensor, dtype);
}
/* Returns whether element i is first + step * i. */
static bool is(opd_tensor *tensor, int64_t count, double first, double step) {
    opd_tensor *const flat = opd_to_dtype(opd_reshape(tensor, OPD_INTS(-1)), OPD_FLOAT64);
    const double *const data = opd_data_f64(flat);
    if (!data || opd_numel(flat) != count) { return false; }
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs(data[i] - (first + step * (double)i)) <= 1e-6 * (1 + fabs(data[i])))) { return false; }
    }
    return true;
}
static bool failed_with(const char *part) {
    const bool right = !opd_ok() && strstr(opd_error_message(), part);
    if (!right) { (void)fprintf(stderr, "rank %d: %s\n", rank_here, opd_ok() ? "no error" : opd_error_message()); }
    opd_error_clear();
    return right;
}

static void values(const opd_scalar_type dtype) {
    const int rank = rank_here, size = size_here;
    const double ranks = size * (size - 1) / 2.0;
    opd_tensor *const x = numbers(6, rank, 1, dtype);
    OK(is(opd_all_reduce(x, "sum", "world"), 6, ranks, size));
    OK(is(opd_all_reduce(x, "max", "world"), 6, size - 1, 1));
    OK(is(opd_all_reduce(x, "min", "world"), 6, 0, 1));
    OK(is(x, 6, rank, 1));
    if (opd_dtype_is_floating(dtype)) { OK(is(opd_all_reduce(x, "avg", "world"), 6, ranks / size, 1)); }
    OK(is(opd_broadcast(x, size - 1, "world"), 6, size - 1, 1));
    opd_tensor *const all = opd_all_gather(x, "world");
    for (int i = 0; i < size; i++) { OK(is(opd_slice(all, 0, OPD_V(6 * i), OPD_V(6 * i + 6), 1), 6, i, 1)); }
    opd_tensor *const whole = numbers(3 * size, rank, 1, dtype);
    OK(is(opd_reduce_scatter(whole, "sum", "world"), 3, ranks + 3.0 * rank * size, size));
    OK(opd_all_reduce_(x, "sum", "world") == x);
    OK(is(x, 6, ranks, size));
}
/* Runs one collective of the golden file, with the numbers of make_collectives.py. */
static opd_tensor *golden_call(const char *name, const char *reduction, opd_scalar_type dtype) {
    const int64_t two[3] = {2, 2, 2};
    opd_tensor *const real = opd_empty(OPD_INTS(6), OPD_FLOAT32), *const imag = opd_empty(OPD_INTS(6), OPD_FLOAT32);
    float *const numbers_here = opd_data_f32(real), *const others = opd_data_f32(imag);
    for (int i = 0; others && i < 6; i++) {
        numbers_here[i] = (float)((3 * rank_here + i) % 5 + 1);
        if (dtype == OPD_BOOL) { numbers_here[i] = (float)((int)numbers_here[i] % 2 == 0); }
        others[i] = (float)(i - rank_here);
    }
    opd_tensor *const x = opd_to_dtype(opd_dtype_is_complex(dtype) ? opd_complex(real, imag) : real, dtype);
    const opd_value args[4] = {opd_value_tensor(x), opd_value_ints(two, 3), opd_value_ints(two, 3),
                               opd_value_str("world")};
    if (strcmp(name, "all_reduce") == 0) { return opd_all_reduce(x, reduction, "world"); }
    if (strcmp(name, "reduce_scatter") == 0) { return opd_reduce_scatter(x, reduction, "world"); }
    if (strcmp(name, "all_gather") == 0) { return opd_all_gather(x, "world"); }
    if (strcmp(name, "broadcast") == 0) { return opd_broadcast(x, 1, "world"); }
    return opd_call_op(opd_find("_c10d_functional::all_to_all_single"), args, 4);
}
/* Compares with the results of gloo with three ranks. */
static void golden(const char *path) {
    char line[1000], name[40], reduction[20], dtype[20];
    int rank, used, lines = 0;
    FILE *const file = fopen(path, "r");
    OK(file != NULL && size_here == 3);
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%39s %19s %19s %d%n", name, reduction, dtype, &rank, &used) != 4 || rank != rank_here) {
            continue;
        }
        OPD_SCOPE {
            opd_scalar_type type = OPD_FLOAT32;
            for (int i = 0; i < 64; i++) {
                if (opd_dtype_name((opd_scalar_type)i) && strcmp(opd_dtype_name((opd_scalar_type)i), dtype) == 0) {
                    type = (opd_scalar_type)i;
                }
            }
            opd_tensor *y = golden_call(name, reduction, type);
            if (y && opd_dtype_is_complex(type)) { y = opd_view_as_real(y); }
            y = opd_reshape(opd_to_dtype(y, OPD_FLOAT64), OPD_INTS(-1));
            const double *const data = opd_data_f64(y);
            char *at = line + used;
            bool right = data != NULL;
            for (int64_t i = 0; right && i < opd_numel(y); i++) {
                const double wanted = strtod(at, &at);
                right = fabs(data[i] - wanted) <= 1e-5 * fabs(wanted);
            }
            if (!right) { (void)fprintf(stderr, "%s", line); }
            OK(right);
            lines++;
        }
    }
    if (file) { (void)fclose(file); }
    OK(lines > 100);
}
static void derivatives(void) {
    const int rank = rank_here, size = size_here;
    opd_tensor *x = opd_tensor_set_requires_grad(numbers(5, 0, 1, OPD_FLOAT32), true);
    OK(opd_backward(opd_sum(opd_mul_Scalar(opd_all_reduce(x, "sum", "world"), OPD_V(rank + 1)))) == 0);
    OK(is(opd_tensor_grad(x), 5, size * (size + 1) / 2.0, 0));
    x = opd_tensor_set_requires_grad(numbers(5, 0, 1, OPD_FLOAT32), true);
    opd_tensor *const all = opd_all_gather(x, "world");
    OK(opd_backward(opd_sum(opd_mul(all, numbers(5 * size, 0, 1, OPD_FLOAT32)))) == 0);
    OK(is(opd_tensor_grad(x), 5, 5.0 * rank * size, size));
}
/* The gradient of a minimum or maximum: ranks that share the extreme value share the gradient, in the gradient's
   dtype. */
static void extremes(opd_scalar_type dtype) {
    const int rank = rank_here, size = size_here;
    opd_tensor *const x = opd_tensor_set_requires_grad(numbers(3, 1, 2, dtype), true);
    OK(opd_backward(opd_sum(opd_mul_Scalar(opd_all_reduce(x, "max", "world"), OPD_V(size)))) == 0);
    OK(is(opd_tensor_grad(x), 3, size, 0) && opd_dtype(opd_tensor_grad(x)) == dtype);
    opd_tensor *const y = opd_tensor_set_requires_grad(numbers(3, rank, 1, dtype), true);
    OK(opd_backward(opd_sum(opd_all_reduce(y, "min", "world"))) == 0);
    OK(is(opd_tensor_grad(y), 3, rank == 0 ? size : 0, 0));
}
/* A NaN on any rank is the minimum and the maximum on all. */
static void not_numbers(opd_scalar_type dtype) {
    for (int from = 0; from < size_here; from++) {
        const double mine = rank_here == from ? (double)NAN : rank_here;
        opd_tensor *const x = opd_to_dtype(opd_full(OPD_INTS(5), OPD_V(mine), OPD_FLOAT64), dtype);
        OK(isnan(opd_item_f64(opd_select(opd_to_dtype(opd_all_reduce(x, "max", "world"), OPD_FLOAT64), 0, 4))));
        OK(isnan(opd_item_f64(opd_select(opd_to_dtype(opd_all_reduce(x, "min", "world"), OPD_FLOAT64), 0, 0))));
    }
}
/* isend and irecv as operators, which all begin before any rank waits. */
static opd_tensor *pair_call(const char *name, opd_tensor *tensor, int peer, int tag) {
    const opd_value args[4] = {opd_value_tensor(tensor), opd_value_int(peer), opd_value_int(tag),
                               opd_value_str("world")};
    return opd_call_op(opd_find(name), args, 4);
}
static void pairs(void) {
    const int rank = rank_here, size = size_here, next = (rank + 1) % size, last = (rank + size - 1) % size;
    opd_tensor *got[6];
    if (size < 2) { return; }
    for (int i = 0; i < 6; i++) {
        const int64_t count = i % 2 ? 200000 : 5; /* sizes on both sides of where MPI waits for the receiver */
        got[i] = pair_call("_c10d_functional::irecv", numbers(count, -1, 0, OPD_FLOAT32), last, i);
    }
    for (int i = 5; i >= 0; i--) {
        const int64_t count = i % 2 ? 200000 : 5;
        OK(opd_numel(pair_call("_c10d_functional::isend", numbers(count, rank + i, 1, OPD_FLOAT32), next, i)) == 0);
    }
    for (int i = 0; i < 6; i++) { OK(is(got[i], i % 2 ? 200000 : 5, last + i, 1)); }
}
/* Each rank exchanges messages with each other one: two of each size, with one tag.  All begin before the first
   wait.  Some ranks begin with sends, others with receives. */
static void batch(opd_group *world) {
    opd_work *all[8 * 16];
    opd_tensor *got[4 * 16];
    const int size = size_here < 16 ? size_here : 16;
    int count = 0;
    if (rank_here >= size) { return; }
    for (int half = 0; half < 2; half++) {
        for (int i = 0; i < 4 * size; i++) {
            const int64_t numel = i % 2 ? 300000 : 3; /* on both sides of where MPI waits for the receiver */
            const int other = i / 4;
            if (other == rank_here) { continue; }
            if ((half == 0) == (rank_here % 2 == 0)) {
                got[i] = numbers(numel, -1, 0, OPD_FLOAT32);
                all[count++] = opd_group_recv(world, got[i], other, i % 2);
            } else {
                all[count++] = opd_group_send(world, numbers(numel, 10 * rank_here + i % 4, 1, OPD_FLOAT32), other,
                                              i % 2);
            }
        }
    }
    while (count > 0) { OK(opd_work_wait(all[--count]) == 0); }
    for (int i = 0; i < 4 * size; i++) {
        OK(i / 4 == rank_here || is(got[i], i % 2 ? 300000 : 3, 10 * (i / 4) + i % 4, 1));
    }
}
/* The receiving rank fails if a message is shorter or longer than expected.  Calls with something that belongs to an
   unregistered group fail, too. */
static void lengths(opd_group *world) {
    opd_tensor *const x = numbers(6, 1, 1, OPD_FLOAT32), *const y = numbers(8, 1, 1, OPD_FLOAT32);
    const char *const said = getenv("OPD_MPI_CHECKED");
    const bool checked = said && *said == '1';    /* then both learn of it */
    if (rank_here == 0 && size_here > 1) {
        opd_tensor *const all[5] = {x, y, numbers(3, 0, 1, OPD_INT16), numbers(2, 0, 1, OPD_INT32),
                                    numbers(35000, 0, 1, OPD_FLOAT32)};
        for (int i = 0; i < 5; i++) {
            OK((opd_work_wait(opd_group_send(world, all[i], 1, 11 + i)) == 0) == !checked);
            OK(!checked || failed_with("the ranks differ: rank 0 sends "));
        }
    } else if (rank_here == 1) {
        OK(opd_work_wait(opd_group_recv(world, numbers(8, 0, 0, OPD_FLOAT32), 0, 11)) < 0);
        OK(failed_with(checked ? "rank 0 sends 6 element(s), but rank 1 receives 8 element(s) (tag 11)"
                       : "rank 0 sent 6 element(s), but 8 are received"));
        OK(opd_work_wait(opd_group_recv(world, numbers(6, 0, 0, OPD_FLOAT32), 0, 12)) < 0);
        OK(failed_with(checked ? "sends 8 element(s), but rank 1 receives 6 element(s)"
                       : "rank 0 sent 8 element(s), but 6 are received"));
        OK(opd_work_wait(opd_group_recv(world, numbers(2, 0, 0, OPD_FLOAT32), 0, 13)) < 0);
        OK(failed_with(checked ? "sends int16, but rank 1 receives float32" : "rank 0 did not send a whole number of elements"));
        OK((opd_work_wait(opd_group_recv(world, numbers(2, 0, 0, OPD_FLOAT32), 0, 14)) == 0) == !checked);
        OK(!checked || failed_with("rank 0 sends int32, but rank 1 receives float32 (tag 14)"));
        opd_tensor *const room = numbers(60000, -1, 0, OPD_FLOAT32);          /* Open MPI would write behind the end */
        const float *const behind = opd_data_f32(room);
        int written = 0;
        OK(opd_work_wait(opd_group_recv(world, opd_narrow(room, 0, 0, 25000), 0, 15)) < 0);
        OK(failed_with(checked ? "sends 35000 element(s), but rank 1 receives 25000 element(s)"
                       : "rank 0 sent 35000 element(s), but 25000 are received"));
        for (int i = 25000; behind && i < 60000; i++) { written += !(behind[i] < 0); }
        OK(behind && written == 0);
    }
    opd_group *const gone = mpi_group_register("gone", MPI_COMM_WORLD, false, 20000);
    opd_tensor *param = opd_tensor_set_requires_grad(numbers(4, 0, 1, OPD_FLOAT32), true);
    opd_parallel *const parallel = opd_data_parallel(&param, 1, gone, NULL);
    opd_work *const work = opd_group_barrier(gone);
    opd_work_release(opd_group_barrier(gone));
    OK(opd_group_unregister(gone) == 0 && opd_work_wait(work) == 0);          /* it has waited for both */
    OK(opd_parallel_begin(parallel, 1) < 0);
    OK(failed_with("process group 'gone' has been unregistered"));
    opd_parallel_free(parallel);
}
static void parts(opd_group *world) {
    const int rank = rank_here, size = size_here, next = (rank + 1) % size, last = (rank + size - 1) % size;
    opd_tensor *const mine = numbers(4, 10 * rank, 1, OPD_FLOAT32), *const its = numbers(4, -1, 0, OPD_FLOAT32);
    int64_t sent[64], taken[64];
    if (size > 1) {
        opd_work *const recv = opd_group_recv(world, its, last, 3), *const send = opd_group_send(world, mine, next, 3);
        OK(is(its, 4, 10 * last, 1));
        OK(opd_work_wait(send) == 0 && opd_work_wait(recv) == 0);
    }
    opd_tensor *const list = rank == 0 ? opd_zeros(OPD_INTS(size, 4), OPD_FLOAT32) : NULL;
    OK(opd_work_wait(opd_group_gather(world, mine, list, 0)) == 0);
    if (rank == 0) { OK(is(opd_select(list, 0, size - 1), 4, 10 * (size - 1), 1)); }
    OK(opd_work_wait(opd_group_scatter(world, its, list, 0)) == 0);
    OK(is(its, 4, 10 * rank, 1));
    OK(opd_work_wait(opd_group_reduce(world, its, "sum", size - 1)) == 0);
    OK(is(its, 4, rank == size - 1 ? 5.0 * size * (size - 1) : 10 * rank, rank == size - 1 ? size : 1));
    OK(opd_work_wait(opd_group_barrier(world)) == 0);
    for (int i = 0; i < size; i++) {              /* i elements go from rank i to every other one */
        sent[i] = rank;
        taken[i] = i;
    }
    const opd_value args[4] = {opd_value_tensor(numbers((int64_t)rank * size, rank, 0, OPD_INT64)),
                               opd_value_ints(taken, size), opd_value_ints(sent, size), opd_value_str("world")};
    opd_tensor *const got = opd_call_op(opd_find("_c10d_functional::all_to_all_single"), args, 4);
    OK(opd_numel(got) == size * (size - 1) / 2);
    int64_t sum = 0;
    for (int i = 0; i < size; i++) { sum += (int64_t)i * i; }
    OK(opd_item_i64(opd_sum(got)) == sum);
    const int32_t some[2] = {size - 1, 0};
    opd_group *const pair = opd_group_split(world, "pair", some, size > 1 ? 2 : 1);
    OK((pair != NULL) == (rank == 0 || rank == size - 1));
    if (pair) {
        OK(is(opd_all_reduce(numbers(2, rank, 0, OPD_FLOAT32), "sum", "pair"), 2, size - 1, 0));
        OK(opd_group_unregister(pair) == 0);
    }
}
/* Many transfers at the same time, of sizes for which MPI uses different protocols.  Only reading a result waits. */
static void overlaps(void) {
    opd_tensor *all[40];
    for (int i = 0; i < 40; i++) {
        all[i] = opd_all_reduce(opd_ones(OPD_INTS(1 + 997 * i), OPD_FLOAT32), "sum", "world");
    }
    for (int i = 39; i >= 0; i--) { OK(is(all[i], 1 + 997 * i, size_here, 0)); }
    for (int i = 0; i < 10; i++) { (void)opd_all_reduce(opd_ones(OPD_INTS(5000), OPD_FLOAT32), "sum", "world"); }
}
/* Large sums, which two ranks compute by halves: an odd number of elements, in place or not, several at the same
   time with waits in another order, together with other collectives.  All ranks get the same bits. */
static void large_sums(const opd_scalar_type dtype) {
    enum { COUNT = 70001, SUMS = 6 };
    const double first = rank_here, all = size_here * (size_here - 1) / 2.0;
    opd_tensor *x[SUMS];
    for (int i = 0; i < SUMS; i++) {
        x[i] = opd_to_dtype(opd_floor(opd_div_Scalar(numbers(COUNT, 700 * (first + i), 1, OPD_FLOAT64), OPD_V(700))),
                            dtype);
        if (i % 3 == 0) { (void)opd_all_reduce_(x[i], "sum", "world"); }
        else { x[i] = opd_all_reduce(x[i], i % 3 == 1 ? "sum" : "max", "world"); }
        opd_tensor *const between = opd_full(OPD_INTS(3), OPD_V(rank_here), dtype);
        OK(is(opd_broadcast(between, size_here - 1, "world"), 3, size_here - 1, 0));
    }
    for (int i = SUMS - 1; i >= 0; i--) {
        const double at = i % 3 == 2 ? size_here - 1 + i : all + size_here * i, each = i % 3 == 2 ? 1 : size_here;
        const int64_t places[] = {0, 699, 700, COUNT / 2 - 1, COUNT / 2, COUNT - 1};
        for (int k = 0; k < 6; k++) {
            opd_tensor *const one = opd_to_dtype(opd_select(x[i], 0, places[k]), OPD_FLOAT64);
            const double expected = at + each * floor((double)places[k] / 700);
            OK(fabs(opd_item_f64(one) - expected) <= (dtype == OPD_BFLOAT16 ? 0.01 * expected : 0));
        }
        opd_tensor *const its = opd_broadcast(x[i], size_here - 1, "world");
        OK(opd_equal(its, x[i]));
    }
}
/* Large means, which two ranks compute in one pass with the sum: in place or not, and of gradients, also if the sum
   would be infinite. */
static void large_means(opd_group *world, opd_scalar_type dtype) {
    enum { COUNT = 200003 };
    const double mean = (size_here - 1) / 2.0;
    opd_tensor *const x = numbers(COUNT, rank_here, 1, dtype);
    OK(is(opd_all_reduce(x, "avg", "world"), COUNT, mean, 1));
    OK(is(x, COUNT, rank_here, 1));
    OK(is(opd_all_reduce_(x, "avg", "world"), COUNT, mean, 1));
    opd_tensor *param = opd_tensor_set_requires_grad(numbers(COUNT, 1, 0, dtype), true);
    opd_parallel *const parallel = opd_data_parallel(&param, 1, world, NULL);
    for (int step = 0; step < 3; step++) {        /* from the second one on in one bucket, or where it lies */
        OPD_SCOPED;
        const int64_t mine = step == 2 ? rank_here + 1 : 1;   /* at last examples are not as many on each */
        const double weight = step == 2 ? (2 * size_here - 2) / 3.0 : mean;
        OK(opd_parallel_begin(parallel, mine) > 0);
        OK(opd_backward(opd_sum(opd_mul_Scalar(param, OPD_V(rank_here)))) == 0);
        OK(is(opd_tensor_grad(param), COUNT, weight, 0));
        OK(opd_tensor_set_grad(param, NULL) == 0);
    }
    opd_parallel_free(parallel);
    const double most = dtype == OPD_FLOAT32 ? 3e38 : 1.5e308;
    opd_tensor *const large = opd_full(OPD_INTS(COUNT), OPD_V(most), dtype);
    opd_tensor *const one = opd_select(opd_all_reduce(large, "avg", "world"), 0, COUNT - 1);
    OK(size_here != 2 || fabs(opd_item_f64(one) / most - 1) < 1e-6);
}
/* One rank gives up because an allocation fails, while the others wait: all get the reason, and other groups still
   work. */
static void gives_up(int odd) {
    opd_group *const short_lived = mpi_group_register("short-lived", MPI_COMM_WORLD, false, 20000);
    opd_tensor *const x = numbers(4, 0, 1, OPD_FLOAT32);
    OK(is(opd_all_reduce(x, "sum", "short-lived"), 4, 0, size_here));
    if (odd) {
        (void)opd_memory_fail_at(1, true);
        OK(!opd_empty(OPD_INTS(1000), OPD_FLOAT32));
        (void)opd_memory_fail_at(0, false);
        OK(!opd_all_reduce(x, "sum", "short-lived"));         /* tells the others */
        OK(failed_with("out of memory"));
    } else {
        OK(!opd_add(opd_all_reduce(x, "sum", "short-lived"), x));
        OK(failed_with("has given up: aten::empty.memory_format: out of memory"));
    }
    OK(!opd_work_wait(opd_group_barrier(opd_group_find("world"))));
    OK(!opd_all_reduce(x, "sum", "short-lived"));
    OK(failed_with("has given up: aten::empty.memory_format: out of memory"));
    (void)opd_group_unregister(short_lived);
    opd_error_clear();
}
/* Ranks that call collectives in different orders, which MPI does not notice, get an error some calls later, or when
   they compare their calls. */
static void other_order(int odd) {
    opd_group *const mixed = mpi_group_register("mixed", MPI_COMM_WORLD, false, 20000);
    opd_tensor *const x = numbers(4, 0, 1, OPD_FLOAT32), *const y = numbers(4, 1, 0, OPD_FLOAT32);
    for (int i = 0; i < 20; i++) { OK(is(opd_all_reduce(x, "sum", "mixed"), 4, 0, size_here)); }
    for (int i = 0; i < 2; i++) { (void)opd_all_reduce(x, i == odd ? "sum" : "max", "mixed"); }
    for (int i = 0; i < 40 && opd_ok(); i++) { (void)opd_data(opd_all_reduce(y, "sum", "mixed")); }
    OK(failed_with("ranks have called other collectives, or in another order, since call 17 (rank"));
    (void)opd_group_unregister(mixed);
    opd_error_clear();
    opd_group *const few = mpi_group_register("few", MPI_COMM_WORLD, false, 20000);
    for (int i = 0; i < 6; i++) { (void)opd_data(opd_all_reduce(y, i == 4 + odd ? "max" : "sum", "few")); }
    OK(opd_ok() && mpi_group_finish("few") == -1);
    OK(failed_with("ranks have called other collectives, or in another order, since call 5 (rank"));
    (void)opd_group_unregister(few);
    opd_error_clear();
}
static void checks(void) {
    const int odd = rank_here == size_here - 1;
    if (size_here < 2) { return; }
    opd_group *const checked = mpi_group_register("checked", MPI_COMM_WORLD, true, 10000);
    opd_tensor *const x = numbers(4, 0, 1, OPD_FLOAT32);
    OK(is(opd_all_reduce(x, "sum", "checked"), 4, 0, size_here));
    OK(!(odd ? opd_broadcast(x, 0, "checked") : opd_all_reduce(x, "sum", "checked")));
    OK(failed_with("differ in call 2: rank 0 calls all_reduce"));
    OK(!opd_all_reduce(odd ? opd_to_dtype(x, OPD_FLOAT64) : x, "sum", "checked"));
    OK(failed_with("of float64"));
    OK(!opd_all_reduce(odd ? numbers(7, 0, 1, OPD_FLOAT32) : x, "sum", "checked"));
    OK(failed_with("of 7 element(s)"));
    OK(is(opd_all_reduce(x, "sum", "checked"), 4, 0, size_here));             /* and it goes on */
    OK(opd_group_unregister(checked) == 0);
    opd_group *const impatient = mpi_group_register("impatient", MPI_COMM_WORLD, false, 300);
    if (!odd) {
        OK(!opd_add(opd_all_reduce(x, "sum", "impatient"), x));
        OK(failed_with("it did not finish within 0.3 s"));
    } else {
        OK(opd_work_wait(opd_group_barrier(opd_group_find("world"))) == 0 || opd_ok());
        OK(is(opd_all_reduce(x, "sum", "impatient"), 4, 0, size_here));       /* late: MPI itself still does it */
    }
    if (!odd) { OK(opd_work_wait(opd_group_barrier(opd_group_find("world"))) == 0); }
    opd_group *const divided = mpi_group_register("divided", MPI_COMM_WORLD, false, 1000);
    const int32_t ends[2] = {odd ? size_here - 1 : 0, odd ? 0 : size_here - 1}, more[3] = {0, size_here - 1, 1};
    if (rank_here == 0 || odd) {                  /* the same two, each itself first; then one that names a third */
        OK(!opd_group_split(divided, "ends", ends, 2));
        OK(failed_with("it did not finish within 1 s: a rank has ended, or gives other ranks"));
    }
    OK(opd_work_wait(opd_group_barrier(opd_group_find("world"))) == 0);
    opd_group *const named = mpi_group_register("named", MPI_COMM_WORLD, false, 1000);
    if (size_here > 2 && (rank_here == 0 || odd)) {
        OK(!opd_group_split(named, "ends", odd ? more : ends, odd ? 3 : 2));
        OK(failed_with("the ranks give different lists of ranks, or another order"));
    }
    OK(opd_group_unregister(named) == 0);
    other_order(odd);
    gives_up(odd);
    if (size_here == 2) {                         /* of more elements on one rank */
        opd_group *const uneven = mpi_group_register("uneven", MPI_COMM_WORLD, false, 2000);
        OK(!opd_add_Scalar(opd_all_reduce(numbers(60000 + 40000 * odd, 0, 1, OPD_FLOAT32), "sum", "uneven"), OPD_V(1)));
        OK(failed_with(odd ? "rank 0 reduces another number of elements than this rank, which has 100000"
                       : "rank 1 reduces another number of elements than this rank, which has 60000"));
        (void)uneven;                             /* stays MPI's */
    }
    (void)impatient;                              /* its failed work is MPI's: it stays until MPI ends */
}


/* A NaN in a gradient of the last rank is a NaN on all ranks: all skip the step, and continue with the same weights. */
static void gradients_that_are_none(opd_group *world) {
    opd_tensor *param = opd_tensor_set_requires_grad(numbers(4, 1, 0, OPD_FLOAT32), true);
    opd_parallel *const parallel = opd_data_parallel(&param, 1, world, NULL);
    opd_optimizer *const sgd = opd_sgd_new(&param, 1, NULL);
    opd_scaler *const scaler = opd_scaler_new(NULL);
    for (int step = 0; step < 3; step++) {
        OPD_SCOPED;
        const double factor = step == 1 && rank_here == size_here - 1 ? (double)NAN : 1;
        opd_tensor *const before = opd_clone(opd_detach(param));
        OK(opd_parallel_begin(parallel, rank_here + 1) > 0);
        OK(opd_backward(opd_scaler_scale(scaler, opd_sum(opd_mul_Scalar(param, OPD_V(factor))))) == 0);
        OK(isnan(opd_item_f64(opd_select(opd_tensor_grad(param), 0, 3))) == (step == 1));
        OK(opd_scaler_step(scaler, sgd) >= 0 && opd_scaler_update(scaler, 0) == 0);
        OK((opd_equal(opd_detach(param), before)) == (step == 1));
        OK(opd_optimizer_zero_grad(sgd) == 0);
    }
    OK(opd_scaler_get(scaler).scale < 65536);
    opd_tensor *const most = opd_all_reduce(opd_detach(param), "max", "world");
    OK(opd_equal(most, opd_detach(param)));
    opd_parallel_free(parallel);
    opd_optimizer_free(sgd);
    opd_scaler_free(scaler);
}

/* The batch dim may differ between ranks.  Element i of example e on rank r is r + 10 * e + i. */
static void examples(void) {
    static const char *const names[] = {"_c10d_functional::all_reduce", "_c10d_functional::all_reduce_",
                                        "_c10d_functional::broadcast", "_c10d_functional::broadcast_"};
    for (int i = 0; i < 4; i++) {
        OPD_SCOPED;
        opd_tensor *const place = numbers(3, 0, 1, OPD_FLOAT64);
        opd_tensor *const first = opd_reshape(numbers(2, rank_here, 10, OPD_FLOAT64), OPD_INTS(2, 1));
        opd_tensor *const here = opd_add(first, place), *const dim1 = opd_clone(opd_contiguous(opd_t(here)));
        const double factor = i < 2 ? size_here : 1, more = i < 2 ? size_here * (size_here - 1) / 2.0 : 0;
        opd_tensor *const right = opd_add_Scalar(opd_mul_Scalar(opd_sub_Scalar(here, opd_value_double(rank_here)),
                                                               opd_value_double(factor)), opd_value_double(more));
        const int level = opd_vmap_begin(2, OPD_RANDOM_ERROR), odd = rank_here % 2;
        opd_value args[3];
        args[0] = opd_value_tensor(opd_vmap_wrap(odd ? dim1 : here, odd, level));
        args[1] = i < 2 ? opd_value_str("sum") : opd_value_int(0);
        args[2] = opd_value_str("world");
        opd_tensor *const out = opd_vmap_unwrap(opd_call_op(opd_find(names[i]), args, 3), 0, level);
        OK(opd_vmap_end(level) == 0);
        OK(out && opd_equal(out, right));
        if (i % 2) { OK(opd_equal(odd ? opd_t(dim1) : here, right)); }
    }
}

/* A tensor may be sent to several ranks at the same time: rank 1 receives it after rank 2 has it and says so. */
static void one_to_several(void) {
    enum { MANY = 300000 };
    opd_group *const group = mpi_group_register("once", MPI_COMM_WORLD, false, 10000);
    for (int way = 0; way < 2 && size_here > 2; way++) {
        OPD_SCOPED;
        opd_tensor *const x = numbers(MANY, rank_here ? 0 : way + 1, 0, OPD_FLOAT32);
        opd_tensor *const said = numbers(1, 0, 0, OPD_FLOAT32);
        if (rank_here == 0) {
            opd_work *works[2] = {NULL, NULL};
            for (int to = 1; to < 3; to++) {
                if (way) { OK(pair_call("_c10d_functional::isend", x, to, 0)); }
                else { works[to - 1] = opd_group_send(group, x, to, 0); }
            }
            for (int i = 0; i < 2 && !way; i++) { OK(opd_work_wait(works[i]) == 0); }
        } else if (rank_here < 3) {
            if (rank_here == 1) { OK(opd_work_wait(opd_group_recv(group, said, 2, 0)) == 0); }
            if (way) { OK(pair_call("_c10d_functional::irecv", x, 0, 0)); }
            else { OK(opd_work_wait(opd_group_recv(group, x, 0, 0)) == 0); }
            OK(is(x, MANY, way + 1, 0));
            if (rank_here == 2) { OK(opd_work_wait(opd_group_send(group, said, 1, 0)) == 0); }
        }
    }
    OK(opd_group_unregister(group) == 0);
}
/* Results that nothing can use any more are freed when they arrive. */
static void results_left_alone(opd_group *world) {
    enum { MANY = 100000, CALLS = 40 };
    opd_tensor *const x = numbers(MANY, 1, 0, OPD_FLOAT32);
    const int64_t before = opd_memory_stats().live;
    for (int i = 0; i < CALLS; i++) {
        OPD_SCOPE { OK(opd_all_reduce(x, "sum", "world")); }
        OK(opd_work_wait(opd_group_barrier(world)) == 0);
    }
    OK(opd_memory_stats().live - before < (int64_t)(CALLS / 2 * MANY * sizeof(float)));
}

/* Gradients of an earlier backward that nobody has set to zero count also where a rank leaves the parameter out now, and
   stay where all do: the last rank uses params[1] every other time, and nobody does in the end. */
static void gradients_of_before(opd_group *world, bool weighted) {
    opd_parallel_options options;
    opd_tensor *params[2];
    const int last = size_here - 1;
    const double total = weighted ? size_here * (size_here + 1) / 2.0 : size_here;
    double expected = 0;
    memset(&options, 0, sizeof options);
    options.find_unused = true;
    for (int i = 0; i < 2; i++) { params[i] = opd_tensor_set_requires_grad(numbers(3, 1, 0, OPD_FLOAT32), true); }
    opd_parallel *const parallel = opd_data_parallel(params, 2, world, &options);
    for (int step = 0; step < 6; step++) {
        OPD_SCOPED;
        const bool here = step < 4 && (rank_here < last || step % 2 == 0);
        if (weighted) { OK(opd_parallel_begin(parallel, rank_here + 1) > 0); }
        opd_tensor *loss = opd_sum(params[0]);
        if (here) { loss = opd_add(loss, opd_sum(opd_mul_Scalar(params[1], OPD_V(8)))); }
        OK(opd_backward(loss) == 0);
        if (step < 4) { expected += step % 2 == 0 ? 8 : 8 * (1 - (weighted ? size_here : 1) / total); }
        opd_tensor *const grad = opd_tensor_grad(params[1]);
        OK(grad && fabs(opd_item_f64(opd_select(grad, 0, 2)) - expected) < 1e-4);
    }
    opd_parallel_free(parallel);
}

/* Several sums of large tensors must not get memory from the system and return it each time, which would take longer
   than the sums: a megabyte would cause at least 256 faults of 4 KiB pages. */
static void memory_that_stays(void) {
#if defined(__GLIBC__) && !defined(OPD_NO_CACHE)  /* which the sanitizers have, with a malloc of theirs */
    enum { COUNT = 12, ROUNDS = 10 };
    opd_tensor *x[COUNT];
    struct rusage before, after;
    OPD_SCOPE {
        for (int i = 0; i < COUNT; i++) { x[i] = opd_zeros(OPD_INTS(1 << 18), OPD_FLOAT32); }
        for (int round = -3; round < ROUNDS && opd_ok(); round++) {
            if (round == 0) { (void)getrusage(RUSAGE_SELF, &before); }
            for (int i = 0; i < COUNT; i++) { (void)opd_all_reduce_(x[i], "sum", "world"); }
            for (int i = 0; i < COUNT; i++) { OK(opd_data_f32(x[i]) != NULL); }
        }
        (void)getrusage(RUSAGE_SELF, &after);
    }
    OK(after.ru_minflt - before.ru_minflt < 64 * COUNT * ROUNDS);
#endif
}
/* A chain of layers, trained by Adam, with parts of parameters on each rank or with all of them.  Returns how many
   bytes the library had at once, at most, after the parameters were there. */
enum { LAYERS = 8, WIDTH = 256, ROWS = 8, TURNS = 4 };
static opd_tensor *layer(opd_parallel *parallel, opd_tensor *x, opd_tensor *param) {
    opd_tensor *out = NULL;
    OPD_SCOPE {
        opd_tensor *const whole = parallel ? opd_parallel_full(parallel, param) : param;
        out = opd_tanh(opd_matmul(x, whole));
        if (out) { (void)opd_scope_return(out); }
    }
    return out;
}
static int64_t train_layers(opd_group *group, bool sharded, double *losses, int width) {
    const int rank = opd_group_rank(group), size = opd_group_size(group);
    const int first = ROWS * rank / size, rows = ROWS * (rank + 1) / size - first;      /* not as many for each */
    opd_tensor *params[LAYERS];
    opd_parallel *const parallel = sharded ? opd_sharded_parallel(NULL, 0, group, NULL) : NULL;
    const int64_t before = opd_memory_stats().live;
    for (int i = 0; i < LAYERS; i++) {
        OPD_SCOPE {
            opd_tensor *const values = numbers((int64_t)width * width, 0.1 * i, 0.37, OPD_FLOAT32);
            opd_tensor *const waves = opd_mul_Scalar(opd_sin(opd_reshape(values, OPD_INTS(width, width))),
                                                     OPD_V(1.5 / sqrt((double)width)));
            params[i] = opd_keep(opd_tensor_set_requires_grad(waves, true));
            if (sharded) { OK(opd_sharded_add(parallel, &params[i], 1) == 0); }
        }
    }
    opd_optimizer *const adam = opd_adam_new(params, LAYERS, NULL);
    opd_memory_reset_peak();
    for (int turn = 0; turn < TURNS && opd_ok(); turn++) {
        OPD_SCOPE {
            opd_tensor *const all = opd_sin(opd_reshape(numbers(ROWS * width, turn, 0.7, OPD_FLOAT32),
                                                        OPD_INTS(ROWS, width)));
            opd_tensor *x = sharded ? opd_narrow(all, 0, first, rows) : all;
            if (sharded) { OK(opd_parallel_begin(parallel, rows) == ROWS); }
            const bool hooked = sharded && opd_sharded_hooks_begin(parallel) == 0;
            for (int i = 0; i < LAYERS; i++) { x = layer(parallel, x, params[i]); }
            if (hooked) { opd_saved_hooks_end(); }
            opd_tensor *loss = opd_mean(opd_mul(x, x));
            OK(opd_backward(loss) == 0);
            OK(opd_optimizer_step(adam) == 0);
            OK(opd_optimizer_zero_grad(adam) == 0);
            if (sharded) {
                loss = opd_mul_Scalar(opd_detach(loss), OPD_V((double)rows * size / ROWS));
                loss = opd_all_reduce(loss, "avg", opd_group_name(group));
            }
            losses[turn] = opd_item_f64(loss);
        }
    }
    for (int i = 0; i < LAYERS; i++) { opd_release(params[i]); }
    opd_optimizer_free(adam);
    opd_parallel_free(parallel);
    return opd_memory_stats().peak - before;
}
static void shards(opd_group *world, bool measures) {
    double alone[TURNS], several[TURNS];
    const int width = measures ? 1024 : 64;
    OPD_SCOPE {
        const int64_t parts = train_layers(world, true, several, width);
        (void)train_layers(opd_group_find("self"), false, alone, width);
        for (int i = 0; i < TURNS; i++) { OK(fabs(several[i] - alone[i]) <= 1e-5 * fabs(alone[i])); }
        if (!measures) { continue; }
        const double one = (double)width * width * 4, all = 4 * one * LAYERS;         /* a layer; all four of all */
        if (rank_here == 0) {
            printf("%d ranks: at most %.1f MiB for parameters, gradients and Adam's state of %.1f MiB\n", size_here,
                   (double)parts / 1048576, all / 1048576);
        }
        OK((double)parts <= all / size_here + 3 * one);      /* and the layers that are whole for the moment */
    }
}

/* A model of one parameter, whose checkpoint is written whole (7 for each element) or by all but the last rank, or is
   loaded by any number of ranks. */
static void keeps(opd_group *world, const char *folder, bool loads, bool killed) {
    OPD_SCOPE {
        opd_module *const module = opd_module_new();
        opd_tensor *param = opd_full(OPD_INTS(1000), OPD_V(loads ? 0 : killed ? 9 : 7), OPD_FLOAT32);
        param = opd_tensor_set_requires_grad(param, true);
        OK(opd_module_add(module, "weight", param, OPD_MODULE_PARAMETER) == 0);
        opd_parallel *const parallel = opd_sharded_parallel(&param, 1, world, NULL);
        if (loads) {
            OK(opd_sharded_load(parallel, folder, module, NULL) == 0);
            OK(is(opd_detach(opd_parallel_full(parallel, param)), 1000, 7, 0));
        } else {
            if (killed && rank_here == size_here - 1) { (void)raise(SIGKILL); }
            OK(opd_sharded_save(parallel, folder, module, NULL, NULL, NULL, 0) == 0 || killed);
        }
        opd_parallel_free(parallel);
        opd_module_free(module);
    }
}
/* The last rank is killed while the others wait for it: the job ends, because of mpirun or of OPD_MPI_TIMEOUT.  With a
   folder, the rank is killed while the second checkpoint is written. */
static int dies(opd_group *world, const char *folder) {
    if (folder) {
        keeps(world, folder, false, false);
        keeps(world, folder, false, true);
        mpi_group_end(world);
        return opd_finish();
    }
    opd_tensor *const x = numbers(4, 0, 1, OPD_FLOAT32);
    OK(is(opd_all_reduce(x, "sum", "world"), 4, 0, size_here));
    if (rank_here == size_here - 1) { (void)raise(SIGKILL); }
    (void)opd_add(opd_all_reduce(x, "sum", "world"), x);
    mpi_group_end(world);                         /* ends the job with the error */
    return opd_finish();
}
/* If only the main thread may call MPI, other threads get an error, and no rank waits for them. */
static void *beside(void *user) {
    (void)user;
    OPD_SCOPE {
        OK(!opd_all_reduce(numbers(4, 0, 1, OPD_FLOAT32), "sum", "world"));
        OK(failed_with("MPI was initialised with MPI_THREAD_FUNNELED, so only the main thread may use it"));
    }
    return NULL;
}
static int by_one_thread(void) {
    pthread_t thread;
    int level;
    (void)MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    opd_group *const world = mpi_group_begin();
    if (!world || level != MPI_THREAD_FUNNELED) { return 1; }
    rank_here = opd_group_rank(world);
    size_here = opd_group_size(world);
    OK(pthread_create(&thread, NULL, beside, NULL) == 0 && pthread_join(thread, NULL) == 0);
    OPD_SCOPE { OK(is(opd_all_reduce(numbers(4, 0, 1, OPD_FLOAT32), "sum", "world"), 4, 0, size_here)); }
    if (rank_here == 0) { printf("%d ranks: %s\n", size_here, mistakes ? "mistakes" : "right"); }
    mpi_group_end(world);
    (void)MPI_Finalize();
    return opd_finish() || mistakes ? 1 : 0;
}
/* Tests the same group, registered by a plug-in. */
static int with_plugin(const char *path) {
    opd_plugin *const plugin = opd_plugin_load(path);
    const opd_group *const world = plugin ? opd_group_find("world") : NULL;
    OPD_SCOPE {
        const int size = world ? opd_group_size(world) : 0;
        OK(world != NULL);
        OK(is(opd_all_reduce(opd_ones(OPD_INTS(3), OPD_FLOAT32), "sum", "world"), 3, size, 0));
        OK(opd_call_value(opd_find("mpi::ranks"), NULL, 0).u.i == size);
        if (world && opd_group_rank(world) == 0) { 
            printf("%d ranks by a plug-in: %s\n", size, mistakes ? "mistakes" : "right");
        }
    }
    OK(opd_plugin_unload(plugin) == 0);
    return opd_finish() || mistakes ? 1 : 0;
}

int main(int argc, char **argv) {
    if (argc > 2 && strcmp(argv[1], "--plugin") == 0) { return with_plugin(argv[2]); }
    if (argc > 1 && strcmp(argv[1], "--one-thread") == 0) { return by_one_thread(); }
    opd_group *const world = mpi_group_begin();
    if (!world) { return opd_finish(); }
    rank_here = opd_group_rank(world);
    size_here = opd_group_size(world);
    if (argc > 1 && strcmp(argv[1], "--dies") == 0) { return dies(world, argv[2]); }
    if (argc > 1 && strcmp(argv[1], "--leaves") == 0 && rank_here == size_here - 1) { return 0; }
    if (argc > 2 && strcmp(argv[1], "--loads") == 0) {
        keeps(world, argv[2], true, false);
        if (rank_here == 0) { printf("%d ranks: %s\n", size_here, mistakes ? "mistakes" : "right"); }
        mpi_group_end(world);
        return opd_finish() || mistakes ? 1 : 0;
    }
    if (argc > 2 && strcmp(argv[1], "--golden") == 0) {
        golden(argv[2]);
        if (rank_here == 0) { printf("%d ranks: %s\n", size_here, mistakes ? "mistakes" : "right"); }
        mpi_group_end(world);
        return opd_finish() || mistakes ? 1 : 0;
    }
    if (argc > 1 && strcmp(argv[1], "--memory") == 0) {
        shards(world, true);
        mpi_group_end(world);
        return opd_finish() || mistakes ? 1 : 0;
    }
    const opd_scalar_type dtypes[] = {OPD_FLOAT32, OPD_FLOAT64, OPD_FLOAT16, OPD_BFLOAT16, OPD_INT64, OPD_INT32,
                                      OPD_INT16, OPD_UINT8};
    memory_that_stays();                          /* before other large blocks go */
    OPD_SCOPE {
        for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) { values(dtypes[i]); }
        derivatives();
        extremes(OPD_FLOAT32);
        extremes(OPD_FLOAT16);
        for (int i = 0; i < 4; i++) { not_numbers(dtypes[i]); }
        pairs();
        batch(world);
        lengths(world);
        parts(world);
        overlaps();
        for (int i = 0; i < 6; i++) { large_sums(dtypes[i]); }
        for (int i = 0; i < 2; i++) { large_means(world, dtypes[i]); }
        shards(world, false);
        gradients_that_are_none(world);
        examples();
        one_to_several();
        results_left_alone(world);
        for (int i = 0; i < 2; i++) { gradients_of_before(world, i == 1); }
        walk();
        if (argc > 1 && strcmp(argv[1], "--checks") == 0) { checks(); }
    }
    const int wrong = mistakes;
    opd_tensor *sum = opd_keep(opd_all_reduce(numbers(1, wrong, 0, OPD_FLOAT64), "sum", "world"));
    const double all = opd_item_f64(sum);
    opd_release(sum);
    if (rank_here == 0) { printf("%d ranks: %s\n", size_here, all > 0 ? "mistakes" : "right"); }
    mpi_group_end(world);
    return opd_finish() || wrong ? 1 : 0;
}
