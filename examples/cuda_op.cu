/* A custom operator with a kernel for the CPU and a kernel for the GPU.
   nvcc -O2 -arch=native examples/cuda_op.cu opdispatch_cuda.cu examples/implementation.c -o cuda_op -lcublas -lcublasLt && ./cuda_op

   gate(x, g) = x sigmoid(g), in one pass over memory instead of two.  The backward function is written once, with
   operators, for both devices.  Without a GPU, only the kernel for the CPU runs. */
#include "../opdispatch.h"
#include <cuda_runtime.h>
#include <math.h>
#include <stdio.h>

/* Checks the arguments and makes the result, for both kernels. */
static opd_tensor *gate_result(opd_call *call) {
    opd_tensor *x = opd_arg_tensor(call, 0), *g = opd_arg_tensor(call, 1);
    if (opd_dtype(x) != OPD_FLOAT32 || opd_dtype(g) != OPD_FLOAT32 || !opd_is_same_size(x, g)) {
        (void)opd_fail(OPD_ERROR_SHAPE, "x and g must be float32 tensors of the same sizes");
        return NULL;
    }
    return opd_result(call, 0, opd_sizes(x), opd_ndim(x), OPD_FLOAT32);
}
static int gate_fake(opd_call *call) { return gate_result(call) ? 0 : -1; }

static int gate_cpu(opd_call *call) {
    opd_tensor *out = gate_result(call), *x = opd_contiguous(opd_arg_tensor(call, 0)), *g = opd_contiguous(opd_arg_tensor(call, 1));
    if (!opd_ok()) { return -1; }
    const float *xs = opd_data_f32(x), *gs = opd_data_f32(g);
    float *o = opd_data_f32(out);
    for (int64_t i = 0; i < opd_numel(x); i++) { o[i] = xs[i] / (1 + expf(-gs[i])); }
    return opd_return_tensor(call, out);
}

__global__ void gate_kernel(int64_t n, const float *x, const float *g, float *out) {
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) { out[i] = x[i] / (1 + expf(-g[i])); }
}
/* The dispatcher has made the tensors' device current.  The kernel runs on the thread's current stream. */
static int gate_cuda(opd_call *call) {
    opd_tensor *out = gate_result(call), *x = opd_contiguous(opd_arg_tensor(call, 0)), *g = opd_contiguous(opd_arg_tensor(call, 1));
    if (!opd_ok()) { return -1; }
    const int64_t n = opd_numel(x);
    cudaStream_t stream = (cudaStream_t)opd_stream_current(opd_tensor_device(x)).id;
    const float *xs = (const float *)opd_device_data(x, OPD_CUDA), *gs = (const float *)opd_device_data(g, OPD_CUDA);
    float *o = (float *)opd_device_data(out, OPD_CUDA);
    const int blocks = (int)((n + 255) / 256);
    if (n) { gate_kernel<<<blocks, 256, 0, stream>>>(n, xs, gs, o); }
    if (cudaGetLastError() != cudaSuccess) { return opd_fail(OPD_ERROR_KERNEL, "gate: the kernel did not start"); }
    return opd_return_tensor(call, out);
}

/* s = sigmoid(g): d x = grad s; d g = grad x s (1 - s) */
static int gate_backward(opd_backward_call *bw) {
    opd_tensor *grad = opd_bw_grad(bw, 0), *x = opd_bw_tensor(bw, 0), *s = opd_sigmoid(opd_bw_tensor(bw, 1));
    if (opd_bw_needs(bw, 0)) { (void)opd_bw_return(bw, 0, opd_mul(grad, s)); }
    if (opd_bw_needs(bw, 1)) { (void)opd_bw_return(bw, 1, opd_sigmoid_backward(opd_mul(grad, x), s)); }
    return opd_ok() ? 0 : -1;
}

OPD_LIBRARY(example, lib) {
    opd_op_desc op = opd_op_desc();
    op.schema = "gate(Tensor x, Tensor g) -> Tensor";
    op.cpu = gate_cpu;
    op.cuda = gate_cuda;
    op.fake = gate_fake;
    op.backward = gate_backward;
    op.save = "x, g";
    (void)opd_define(lib, &op);
}

/* Computes gate, and the gradients of its sum with respect to both arguments, on a device.  Copies all to the CPU. */
static void run_on(opd_device device, opd_tensor *x, opd_tensor *g, opd_tensor **y, opd_tensor **dx, opd_tensor **dg) {
    static opd_op *gate;
    const opd_device cpu = opd_device_make(OPD_CPU, -1);
    x = opd_tensor_set_requires_grad(opd_to_device(opd_detach(x), device, OPD_FLOAT32), true);
    g = opd_tensor_set_requires_grad(opd_to_device(opd_detach(g), device, OPD_FLOAT32), true);
    opd_tensor *out = OPD_CALL(OPD_OP(&gate, "example::gate"), x, g);
    (void)opd_backward(opd_sum(out));
    *y = opd_to_device(opd_detach(out), cpu, OPD_FLOAT32);
    *dx = opd_to_device(opd_tensor_grad(x), cpu, OPD_FLOAT32);
    *dg = opd_to_device(opd_tensor_grad(g), cpu, OPD_FLOAT32);
}
static double apart(opd_tensor *a, opd_tensor *b) { return opd_item_f64(opd_max(opd_abs(opd_sub(a, b)))); }

int main() {
    opd_manual_seed(1);
    OPD_SCOPE {
        opd_tensor *x = opd_randn(OPD_INTS(1000), OPD_FLOAT32), *g = opd_randn(OPD_INTS(1000), OPD_FLOAT32);
        opd_tensor *y[2], *dx[2], *dg[2];
        run_on(opd_device_make(OPD_CPU, -1), x, g, &y[0], &dx[0], &dg[0]);
        printf("cpu:  the sum is %.6f\n", opd_item_f64(opd_sum(y[0])));
        if (opd_device_count(OPD_CUDA) == 0) { printf("cuda: there is no GPU here\n"); }
        else {
            run_on(opd_device_make(OPD_CUDA, -1), x, g, &y[1], &dx[1], &dg[1]);
            if (opd_ok()) {
                printf("cuda: the sum is %.6f; largest differences: result %.1e, gradients %.1e and %.1e\n", opd_item_f64(opd_sum(y[1])),
                       apart(y[0], y[1]), apart(dx[0], dx[1]), apart(dg[0], dg[1]));
            }
        }
    }
    return opd_finish();
}
