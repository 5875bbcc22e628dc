/* A program whose ranks are processes: MPI moves the host's memory, and an emulated NCCL over MPI (nccl.cpp with
   -DNCCL_OVER_MPI) moves device memory.  cuda.sh builds and runs it: OPD_NCCL=... OPD_EMU_DEVICES=2 OPD_EMU_ASYNC=1
   mpirun -n 2. */
#include "../../examples/mpi_group.c"
#include "../mpi_test.h"

#include <math.h>

static opd_device gpu;
static opd_tensor *numbers(int64_t count, double first, double step, opd_device where) {
    opd_tensor *const tensor = opd_empty(OPD_INTS(count), OPD_FLOAT32);
    float *const data = opd_data_f32(tensor);
    for (int64_t i = 0; data && i < count; i++) { data[i] = (float)(first + step * (double)i); }
    return opd_to_device(tensor, where, OPD_FLOAT32);
}
/* Whether the tensor is on this device, and its element i is first + step * i. */
static bool is(opd_tensor *tensor, opd_device where, int64_t count, double first, double step) {
    if (!tensor || opd_tensor_device(tensor).type != where.type || opd_numel(tensor) != count) { return false; }
    const float *const data = opd_data_f32(opd_contiguous(opd_to_device(tensor, opd_device_make(OPD_CPU, -1),
                                                                        OPD_FLOAT32)));
    for (int64_t i = 0; data && i < count; i++) {
        if (!(fabs((double)data[i] - first - step * (double)i) <= 1e-5)) { return false; }
    }
    return data != NULL;
}
static void collectives(opd_group *world, opd_device where) {
    const int rank = rank_here, size = size_here, next = (rank + 1) % size, last = (rank + size - 1) % size;
    const double ranks = size * (size - 1) / 2.0;
    opd_tensor *const x = numbers(4, rank, 1, where), *const got = numbers(4, -1, 0, where);
    OK(is(opd_all_reduce(x, "sum", "world"), where, 4, ranks, size));
    OK(is(opd_all_reduce(x, "avg", "world"), where, 4, ranks / size, 1));
    OK(is(opd_all_reduce(x, "max", "world"), where, 4, size - 1, 1));
    OK(is(opd_broadcast(x, size - 1, "world"), where, 4, size - 1, 1));
    opd_tensor *const all = opd_all_gather(x, "world");
    for (int i = 0; i < size; i++) { OK(is(opd_narrow(all, 0, 4 * i, 4), where, 4, i, 1)); }
    OK(is(opd_reduce_scatter(numbers(3 * size, rank, 1, where), "sum", "world"), where, 3, ranks + 3.0 * rank * size,
          size));
    opd_work *const recv = opd_group_recv(world, got, last, 0), *const send = opd_group_send(world, x, next, 0);
    OK(opd_work_wait(recv) == 0 && opd_work_wait(send) == 0);
    OK(is(got, where, 4, last, 1));
    OK(opd_all_reduce_(x, "sum", "world") == x);
    OK(is(x, where, 4, ranks, size));
}
/* Two layers, trained by all ranks with their parts of each batch, or with the parameters in parts; the last loss of
   all.  Nothing of it goes by way of the host but the batches. */
static double trained(opd_group *group, opd_device where, bool sharded) {
    const int rank = opd_group_rank(group), size = opd_group_size(group);
    double loss = 0;
    opd_tensor *params[2];
    for (int i = 0; i < 2; i++) {
        opd_tensor *const values = opd_sin(numbers(64, i, 0.7, opd_device_make(OPD_CPU, -1)));
        params[i] = opd_to_device(opd_reshape(values, OPD_INTS(8, 8)), where, OPD_FLOAT32);
        params[i] = opd_tensor_set_requires_grad(opd_detach(params[i]), true);
    }
    opd_parallel *const parallel = sharded ? opd_sharded_parallel(params, 2, group, NULL)
        : opd_data_parallel(params, 2, group, NULL);
    opd_optimizer *const adam = opd_adam_new(params, 2, NULL);
    for (int step = 0; step < 3; step++) {
        OPD_SCOPED;
        opd_tensor *const all = opd_reshape(opd_sin(numbers(32, step, 0.3, opd_device_make(OPD_CPU, -1))),
                                            OPD_INTS(4, 8));
        const int begin = 4 * rank / size, mine = 4 * (rank + 1) / size - begin;
        opd_tensor *x = opd_to_device(opd_narrow(all, 0, begin, mine), where, OPD_FLOAT32);
        OK(opd_parallel_begin(parallel, mine) == 4);
        for (int i = 0; i < 2; i++) {
            x = opd_tanh(opd_linear(x, sharded ? opd_parallel_full(parallel, params[i]) : params[i], NULL));
        }
        opd_tensor *const mean = opd_mean(opd_mul(x, x));
        OK(opd_backward(mean) == 0);
        OK(opd_optimizer_step(adam) == 0 && opd_optimizer_zero_grad(adam) == 0);
        opd_tensor *const part = opd_mul_Scalar(opd_detach(mean), OPD_V(mine / 4.0));
        loss = opd_item_f64(opd_all_reduce(part, "sum", opd_group_name(group)));
    }
    opd_optimizer_free(adam);
    opd_parallel_free(parallel);
    return loss;
}

/* The same by an MPI that takes the device's memory, as the emulation's is. */
static int by_mpi(opd_group *world) {
    gpu = opd_device_make(OPD_CUDA, rank_here % 2);
    (void)opd_device_set(gpu);
    OPD_SCOPE {
        const double alone = trained(opd_group_find("self"), opd_device_make(OPD_CPU, -1), false);
        opd_tensor *const x = numbers(4, rank_here, 1, gpu);
        const int64_t before = opd_cpu_fallback_count();
        OK(is(opd_all_reduce(x, "max", "world"), gpu, 4, size_here - 1, 1));              /* a function of mpi_group.c */
        OK(opd_cpu_fallback_count() == before + 1);
        OK(is(opd_all_reduce(x, "avg", "world"), gpu, 4, (size_here - 1) / 2.0, 1));
        OK(is(opd_broadcast(x, 0, "world"), gpu, 4, 0, 1));
        OK(opd_cpu_fallback_count() == before + 1);
        OK(fabs(trained(world, gpu, false) - alone) < 1e-5);
        OK(fabs(trained(world, gpu, true) - alone) < 1e-5);
        collectives(world, gpu);
        OK(opd_cpu_fallback_count() == before + 2);
    }
    const int wrong = mistakes;
    if (rank_here == 0) { printf("%d ranks with devices: %s\n", size_here, wrong ? "mistakes" : "right"); }
    mpi_group_end(world);
    return opd_finish() || wrong ? 1 : 0;
}

int main(void) {
    gpu = opd_device_make(OPD_CUDA, -1);
    opd_group *const world = mpi_group_begin();
    if (!world) { return opd_finish(); }
    rank_here = opd_group_rank(world);
    size_here = opd_group_size(world);
    if (getenv("OPD_MPI_CUDA")) { return by_mpi(world); }
    OPD_SCOPE {
        const double alone = trained(opd_group_find("self"), opd_device_make(OPD_CPU, -1), false);
        OK(mpi_group_device(world, &gpu) == 0);
        const int64_t before = opd_cpu_fallback_count();
        collectives(world, gpu);
        OK(fabs(trained(world, gpu, false) - alone) < 1e-5);
        OK(fabs(trained(world, gpu, true) - alone) < 1e-5);
        OK(opd_cpu_fallback_count() == before);
        collectives(world, opd_device_make(OPD_CPU, -1));
        const int32_t ends[2] = {size_here - 1, 0};
        opd_group *const pair = opd_group_split(world, "ends", ends, 2);
        OK((pair != NULL) == (rank_here == 0 || rank_here == size_here - 1));
        if (pair) {
            OK(is(opd_all_reduce(numbers(2, rank_here, 0, gpu), "sum", "ends"), gpu, 2, size_here - 1, 0));
            OK(opd_group_unregister(pair) == 0);
        }
    }
    const int wrong = mistakes;
    if (rank_here == 0) { printf("%d ranks with devices: %s\n", size_here, wrong ? "mistakes" : "right"); }
    mpi_group_end(world);
    return opd_finish() || wrong ? 1 : 0;
}
