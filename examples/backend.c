/* A complete backend in one file: a device "npu" with two units, its own memory, copies, current device, streams and a
   few kernels.  All other operators run on the CPU, and are counted.  A small network is trained on the device, and the
   kernels are compared with the CPU's kernels.
   cc -O2 -DOPD_LEAN -DOPD_STATIC examples/backend.c -o backend -lm && ./backend

   The memory of the device cannot be read or written outside of this file's kernels and copy function.  If a kernel of
   the CPU read it, the program would crash. */
#define _DEFAULT_SOURCE 1
#define OPDISPATCH_IMPLEMENTATION
#include "../opdispatch.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

//-- the hardware: protected memory, allocated blocks, a current unit --------------------------------------------------

#define NPU_UNITS 2
#define NPU_MEMORY ((size_t)16 << 20)
#define NPU OPD_PRIVATEUSE1

typedef struct npu_free { size_t at, bytes; } npu_free;
static struct {
    char *base;                                   /* NPU_MEMORY bytes of pages */
    npu_free gaps[4096];                          /* free memory, sorted by address */
    int ngaps;
} npu[NPU_UNITS];
static int npu_current, npu_open, npu_copies;
static int64_t npu_stream[NPU_UNITS], npu_streams;

static int npu_start(void) {
    int i;
    for (i = 0; i < NPU_UNITS; i++) {
        npu[i].base = (char *)mmap(NULL, NPU_MEMORY, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (npu[i].base == MAP_FAILED) { return -1; }
        npu[i].gaps[0].bytes = NPU_MEMORY;
        npu[i].ngaps = 1;
    }
    return 0;
}
/* Only between npu_begin and npu_end can the device's memory be accessed. */
static void npu_begin(void) {
    int i;
    for (i = 0; npu_open == 0 && i < NPU_UNITS; i++) { mprotect(npu[i].base, NPU_MEMORY, PROT_READ | PROT_WRITE); }
    npu_open++;
}
static void npu_end(void) {
    int i;
    npu_open--;
    for (i = 0; npu_open == 0 && i < NPU_UNITS; i++) { mprotect(npu[i].base, NPU_MEMORY, PROT_NONE); }
}

//-- functions of the backend ------------------------------------------------------------------------------------------

static void *npu_alloc(void *user, int unit, size_t bytes) {
    int i;
    (void)user;
    bytes = (bytes + 63) & ~(size_t)63;
    for (i = 0; i < npu[unit].ngaps; i++) {       /* first fit */
        npu_free *gap = &npu[unit].gaps[i];
        if (gap->bytes < bytes) { continue; }
        gap->at += bytes;
        gap->bytes -= bytes;
        return npu[unit].base + gap->at - bytes;
    }
    return NULL;
}
static void npu_release(void *user, int unit, void *data, size_t bytes) {
    npu_free *gaps = npu[unit].gaps;
    size_t at = (size_t)((char *)data - npu[unit].base);
    int i = 0, n = npu[unit].ngaps, k;
    (void)user;
    bytes = (bytes + 63) & ~(size_t)63;
    while (i < n && gaps[i].at + gaps[i].bytes < at) { i++; }
    if (i < n && gaps[i].at + gaps[i].bytes == at) { gaps[i].bytes += bytes; }
    else if (n < 4096) {
        memmove(gaps + i + 1, gaps + i, (size_t)(n - i) * sizeof *gaps);
        gaps[i].at = at;
        gaps[i].bytes = bytes;
        npu[unit].ngaps = ++n;
    }
    for (k = i + 1; k < n && gaps[k].at == gaps[i].at + gaps[i].bytes; ) {    /* joins adjacent gaps */
        gaps[i].bytes += gaps[k].bytes;
        memmove(gaps + k, gaps + k + 1, (size_t)(--n - k) * sizeof *gaps);
        npu[unit].ngaps = n;
    }
}
static int npu_copy(void *user, void *to, int to_unit, const void *from, int from_unit, size_t bytes) {
    (void)user; (void)to_unit; (void)from_unit;   /* -1 would be the host: here all is one address space */
    npu_begin();
    memmove(to, from, bytes);
    npu_end();
    npu_copies++;
    return 0;
}
static int npu_count(void *user) { (void)user; return NPU_UNITS; }
static int npu_get(void *user) { (void)user; return npu_current; }
static int npu_set(void *user, int unit) { (void)user; npu_current = unit; return 0; }
/* Kernels finish their work before they return, so there is nothing to wait for. */
static int npu_synchronize(void *user, int unit) { (void)user; (void)unit; return 0; }
static int npu_stream_new(void *user, int unit, int64_t *id) { (void)user; (void)unit; *id = ++npu_streams; return 0; }
static int64_t npu_stream_get(void *user, int unit) { (void)user; return npu_stream[unit]; }
static int npu_stream_set(void *user, int unit, int64_t id) { (void)user; npu_stream[unit] = id; return 0; }
static int npu_stream_wait(void *user, int unit, int64_t id, int other_unit, int64_t other) {
    (void)user; (void)unit; (void)id; (void)other_unit; (void)other;
    return 0;
}

//-- kernels -----------------------------------------------------------------------------------------------------------

/* The operators without a kernel for the device: the CPU runs them, and each is counted. */
static struct { const char *name; int count; } npu_missing[64];
static int npu_fallback(opd_call *call) {
    const char *name = opd_op_name(opd_call_operator(call));
    int i = 0;
    while (i < 63 && npu_missing[i].name && strcmp(npu_missing[i].name, name) != 0) { i++; }
    npu_missing[i].name = name;
    npu_missing[i].count++;
    return opd_cpu_fallback(call);
}

/* Returns whether the device can compute with t: it supports only float32. */
static bool npu_can(opd_tensor *t) { return opd_dtype(t) == OPD_FLOAT32; }
/* t's elements in a row with these sizes, on the device: a number of the CPU's as well. */
static float *npu_plain(opd_tensor *t, const int64_t *sizes, int ndim) {
    if (opd_tensor_device(t).type == OPD_CPU) { t = opd_to_device(t, opd_device_make(NPU, -1), OPD_FLOAT32); }
    return (float *)opd_device_data(opd_contiguous(opd_expand(t, opd_ints_of(sizes, ndim))), NPU);
}
static int64_t npu_sizes(opd_tensor *a, opd_tensor *b, int64_t *sizes) {
    const int na = opd_ndim(a), nb = opd_ndim(b), n = na > nb ? na : nb;
    int i;
    for (i = 1; i <= n; i++) {
        const int64_t x = i <= na ? opd_sizes(a)[na - i] : 1, y = i <= nb ? opd_sizes(b)[nb - i] : 1;
        if (x != y && x != 1 && y != 1) { return opd_fail(OPD_ERROR_SHAPE, "the sizes do not broadcast"); }
        sizes[n - i] = x == 1 ? y : x;
    }
    return n;
}
/* Kernels write their results in a row: to out itself; or to other memory if out has other strides, as in an in-place
   or out= form.  Then npu_finish copies to out. */
static opd_tensor *npu_row(opd_tensor *out) { return opd_contiguous(out); }
static int npu_finish(opd_tensor *out, opd_tensor *row) { return out == row || opd_copy_(out, row) ? 0 : -1; }
static int npu_binary(opd_call *call, bool multiply) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1), *out, *row;
    opd_value alpha = multiply ? opd_value_int(1) : opd_arg_value(call, 2);
    float scale = alpha.tag == OPD_TAG_FLOAT ? (float)alpha.u.d : (float)alpha.u.i, *x, *y, *o;
    int64_t sizes[OPD_MAX_DIMS], n, i;
    if (!npu_can(a) || (!npu_can(b) && !opd_tensor_is_wrapped_number(b))) { return npu_fallback(call); }
    if ((n = npu_sizes(a, b, sizes)) < 0) { return -1; }
    out = opd_result(call, 0, sizes, (int)n, OPD_FLOAT32);
    row = npu_row(out);
    x = npu_plain(a, sizes, (int)n);
    y = npu_plain(b, sizes, (int)n);
    o = (float *)opd_device_data(row, NPU);
    if (!opd_ok()) { return -1; }
    npu_begin();
    for (i = 0; i < opd_numel(out); i++) { o[i] = multiply ? x[i] * y[i] : x[i] + scale * y[i]; }
    npu_end();
    return npu_finish(out, row);
}
static int npu_add(opd_call *call) { return npu_binary(call, false); }
static int npu_mul(opd_call *call) { return npu_binary(call, true); }
static int npu_relu(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *out, *row;
    const float *x;
    float *o;
    int64_t i;
    if (!npu_can(a)) { return npu_fallback(call); }
    out = opd_result(call, 0, opd_sizes(a), opd_ndim(a), OPD_FLOAT32);
    row = npu_row(out);
    x = npu_plain(a, opd_sizes(a), opd_ndim(a));
    o = (float *)opd_device_data(row, NPU);
    if (!opd_ok()) { return -1; }
    npu_begin();
    for (i = 0; i < opd_numel(out); i++) { o[i] = x[i] > 0 ? x[i] : 0; }
    npu_end();
    return npu_finish(out, row);
}
static int npu_mm(opd_call *call) {
    opd_tensor *a = opd_arg_tensor(call, 0), *b = opd_arg_tensor(call, 1), *out, *row;
    const float *x, *y;
    float *o;
    int64_t sizes[2], i, j, k, n;
    if (!npu_can(a) || !npu_can(b)) { return npu_fallback(call); }
    if (opd_ndim(a) != 2 || opd_ndim(b) != 2 || opd_size(a, 1) != opd_size(b, 0)) {
        return opd_fail(OPD_ERROR_SHAPE, "mat1 and mat2 shapes cannot be multiplied");
    }
    sizes[0] = opd_size(a, 0); sizes[1] = opd_size(b, 1); n = opd_size(a, 1);
    out = opd_result(call, 0, sizes, 2, OPD_FLOAT32);
    row = npu_row(out);
    x = npu_plain(a, opd_sizes(a), 2);
    y = npu_plain(b, opd_sizes(b), 2);
    o = (float *)opd_device_data(row, NPU);
    if (!opd_ok()) { return -1; }
    npu_begin();
    for (i = 0; i < sizes[0]; i++) {
        for (j = 0; j < sizes[1]; j++) {
            float sum = 0;
            for (k = 0; k < n; k++) { sum += x[i * n + k] * y[k * sizes[1] + j]; }
            o[i * sizes[1] + j] = sum;
        }
    }
    npu_end();
    return npu_finish(out, row);
}
/* fill_ and copy_ are optional: without them, the host computes the bytes and npu_copy copies them to the device. */
static int npu_fill(opd_call *call) {
    opd_tensor *self = opd_arg_tensor(call, 0);
    opd_value v = opd_arg_value(call, 1);
    float *o, x = v.tag == OPD_TAG_FLOAT ? (float)v.u.d : (float)v.u.i;
    int64_t i;
    if (!npu_can(self) || !opd_is_contiguous(self)) { return npu_fallback(call); }
    o = (float *)opd_device_data(self, NPU);
    npu_begin();
    for (i = 0; o && i < opd_numel(self); i++) { o[i] = x; }
    npu_end();
    return opd_return_tensor(call, self);
}
/* Copies src, expanded to dst's sizes, to dst.  Only for tensors on this unit with at most two dimensions; the fallback
   does all other copies. */
static int npu_copy_(opd_call *call) {
    opd_tensor *dst = opd_arg_tensor(call, 0), *src = opd_arg_tensor(call, 1);
    const opd_device d = opd_tensor_device(dst), s = opd_tensor_device(src);
    const int64_t *sizes = opd_sizes(dst), *a, *b;
    int64_t i, j;
    float *to;
    const float *from;
    if (d.type != s.type || d.index != s.index || opd_ndim(dst) != 2 || !npu_can(dst) || !npu_can(src)) {
        return npu_fallback(call);
    }
    src = opd_expand(src, opd_ints_of(sizes, 2));
    to = (float *)opd_device_data(dst, NPU);
    from = (const float *)opd_device_data(src, NPU);
    if (!opd_ok()) { return -1; }
    a = opd_strides(dst); b = opd_strides(src);
    npu_begin();
    for (i = 0; i < sizes[0]; i++) {
        for (j = 0; j < sizes[1]; j++) { to[i * a[0] + j * a[1]] = from[i * b[0] + j * b[1]]; }
    }
    npu_end();
    return opd_return_tensor(call, dst);
}

OPD_LIBRARY_IMPL(aten, PrivateUse1, lib) {
    /* With OPD_LEAN, a program must keep a built-in operator before it registers a kernel for it. */
    OPD_KEEP(add_Tensor); OPD_KEEP(mul_Tensor); OPD_KEEP(relu); OPD_KEEP(mm); OPD_KEEP(fill__Scalar); OPD_KEEP(copy_);
    opd_impl(lib, "add.Tensor", npu_add);
    opd_impl(lib, "mul.Tensor", npu_mul);
    opd_impl(lib, "relu", npu_relu);
    opd_impl(lib, "mm", npu_mm);
    opd_impl(lib, "fill_.Scalar", npu_fill);
    opd_impl(lib, "copy_", npu_copy_);
}
OPD_LIBRARY_IMPL(_, PrivateUse1, lib) { opd_fallback(lib, npu_fallback); }

//-- checks of the kernels ---------------------------------------------------------------------------------------------

/* Prints an operator whose results differ from the CPU's. */
static void npu_report(void *user, const opd_device_finding *found) {
    (void)user;
    if (found->outcome == OPD_DEVICE_WRONG || found->outcome == OPD_DEVICE_FAILS) {
        printf("%s(%s): %s\n", opd_op_name(found->op), found->call, found->text);
    }
}
/* Checks the kernels.  opd_opcheck finds a kernel that ignores strides, leaves elements unwritten, or disagrees with
   the schema.  opd_device_check calls all operators of the program on the device and on the CPU, and compares the
   results.  Without a report function, it prints a line for each operator that is missing or wrong, and a table. */
static int npu_check(opd_device device) {
    static const struct { const char *name; int tensors; } kernels[] = {
        {"aten::add.Tensor", 2}, {"aten::mul.Tensor", 2}, {"aten::relu", 1}, {"aten::mm", 2}, {"aten::copy_", 2}};
    int counts[OPD_DEVICE_OUTCOMES];
    opd_device_check_options options;
    for (int k = 0; k < 5 && opd_ok(); k++) {
        OPD_SCOPED;
        opd_value args[2];
        for (int i = 0; i < 2; i++) {
            args[i] = opd_value_tensor(opd_to_device(opd_randn(OPD_INTS(3, 3), OPD_FLOAT32), device, OPD_FLOAT32));
        }
        if (opd_opcheck(opd_find(kernels[k].name), args, kernels[k].tensors, NULL)) { return -1; }
    }
    memset(&options, 0, sizeof options);
    options.report = npu_report;
    options.any_strides = true;                   /* the kernels write contiguous results */
    options.counts = counts;
    if (opd_device_check(device, &options) < 0) { return -1; }
    printf("of %d operators that were compared with the CPU, %d use kernels of the device\n",
           counts[OPD_DEVICE_OK] + counts[OPD_DEVICE_ON_CPU], counts[OPD_DEVICE_OK]);
    return counts[OPD_DEVICE_FAILS] + counts[OPD_DEVICE_WRONG];
}

//-- a network that learns x * y -------------------------------------------------------------------------------------

static opd_tensor *parameter(opd_ints sizes, double scale, opd_device device) {
    opd_tensor *t = NULL;
    OPD_SCOPE {
        t = opd_to_device(opd_mul_Scalar(opd_randn(sizes, OPD_FLOAT32), opd_value_double(scale)), device, OPD_FLOAT32);
        opd_keep(opd_tensor_set_requires_grad(t, true));
    }
    return t;
}

int main(void) {
    opd_backend_desc desc;
    opd_device device;
    opd_tensor *w[3];
    double loss = 0, first = 0;
    int step, i;
    memset(&desc, 0, sizeof desc);
    desc.name = "npu";
    desc.alloc = npu_alloc; desc.free = npu_release; desc.copy = npu_copy;
    desc.device_count = npu_count; desc.device_get = npu_get; desc.device_set = npu_set;
    desc.synchronize = npu_synchronize; desc.stream_new = npu_stream_new; desc.stream_get = npu_stream_get;
    desc.stream_set = npu_stream_set; desc.stream_wait = npu_stream_wait;
    if (npu_start() || opd_backend_register(NPU, &desc) || opd_device_parse("npu:1", &device)) { return opd_finish(); }

    opd_manual_seed(1);
    w[0] = parameter(OPD_INTS(2, 32), 1, device);
    w[1] = parameter(OPD_INTS(1, 32), 1, device);
    w[2] = parameter(OPD_INTS(32, 1), 0.2, device);
    for (step = 0; step < 300 && opd_ok(); step++) {
        OPD_SCOPE {
            opd_tensor *x = opd_to_device(opd_randn(OPD_INTS(64, 2), OPD_FLOAT32), device, OPD_FLOAT32);
            opd_tensor *goal = opd_mul(opd_slice(x, 1, opd_value_int(0), opd_value_int(1), 1),
                                       opd_slice(x, 1, opd_value_int(1), opd_value_int(2), 1));
            opd_tensor *h = opd_relu(opd_add(opd_mm(x, w[0]), w[1]));
            opd_tensor *error = opd_sub(opd_mm(h, w[2]), goal), *mean = opd_mean(opd_mul(error, error));
            bool was;
            opd_backward(mean);
            was = opd_grad_mode_set(false);
            for (i = 0; i < 3; i++) {
                opd_add_full_(w[i], opd_tensor_grad(w[i]), opd_value_double(-0.05));
                opd_tensor_set_grad(w[i], NULL);
            }
            opd_grad_mode_set(was);
            loss = opd_item_f64(mean);
            if (step == 0) { first = loss; }
        }
    }
    OPD_SCOPE {
        opd_print(opd_slice(w[0], 1, opd_value_int(0), opd_value_int(4), 1));
        opd_print(opd_zeros_full(OPD_INTS(2, 2), OPD_NONE, OPD_NONE, opd_value_str("npu"), OPD_NONE));
    }
    printf("loss %.4f at first, %.4f after %d steps; %d copies\n", first, loss, step, npu_copies);
    for (i = 0; i < 63 && npu_missing[i].name; i++) {
        printf("on the CPU: %-36s %d\n", npu_missing[i].name, npu_missing[i].count);
    }
    for (i = 0; i < 3; i++) { opd_release(w[i]); }
    if (npu_check(device) == 0) { printf("the kernels agree with the CPU's kernels\n"); }
    printf("memory of npu:1: %lld bytes in use, %lld at most\n", (long long)opd_device_memory(device).live,
           (long long)opd_device_memory(device).peak);
    if (opd_ok() && (opd_backend_unregister(NPU) || !(loss < first / 4))) { return 1; }
    return opd_finish();
}
