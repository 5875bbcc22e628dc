/* Tests that races.cpp finds mistakes, and reports nothing else: small kernels that each have one mistake, and the
   corrected kernels.  Compiled like the CUDA plug-in (see races.cpp).  The status is 0 if all mistakes are found. */
#include "cuda_runtime.h"

static float *host_memory, *freed_memory;

//-- kernels ------------------------------------------------------------------------------------------------------

template <bool RIGHT> static void missing_barrier(float *to) {
    __shared__ float room[64];
    room[threadIdx.x] = 0;
    __syncthreads();
    room[threadIdx.x] = (float)threadIdx.x;
    if (RIGHT) { __syncthreads(); }
    to[threadIdx.x] = room[63 - threadIdx.x];
}
/* Read by all, written again without a barrier between. */
template <bool RIGHT> static void missing_second_barrier(float *to) {
    __shared__ float room[1];
    for (int i = 0; i < 3; i++) {
        if (threadIdx.x == 0) { room[0] = (float)i; }
        __syncthreads();
        to[threadIdx.x] = room[0];
        if (RIGHT) { __syncthreads(); }
    }
}
template <bool RIGHT> static void missing_syncwarp(float *to) {
    unsigned char *bytes = opd_cuda_emulated_shared();
    float *room = (float *)bytes;
    room[threadIdx.x] = 1;
    if (RIGHT) { __syncwarp(); } else { (void)__shfl_sync(0xffffffffu, 1, 0); }     // which orders no memory
    to[threadIdx.x] = room[threadIdx.x ^ 1];
}
/* A __syncwarp is not enough for two warps. */
template <bool RIGHT> static void syncwarp_for_two(float *to) {
    __shared__ float room[64];
    room[threadIdx.x] = 1;
    if (RIGHT) { __syncthreads(); } else { __syncwarp(); }
    to[threadIdx.x] = room[threadIdx.x ^ 32];
}
template <bool RIGHT> static void two_blocks(float *to) {
    if (RIGHT) { if (threadIdx.x == 0) { to[blockIdx.x] = 1; } }
    else if (threadIdx.x == 0) { to[0] = 1; }     // the same value: a race all the same
}
/* The first reads what others write: seen although blocks run one after another. */
template <bool RIGHT> static void reads_of_another_block(float *to) {
    if (threadIdx.x == 0) { to[1 + blockIdx.x] = to[RIGHT ? 1 + blockIdx.x : 1 + (blockIdx.x + 1) % gridDim.x] + 1; }
}
template <bool RIGHT> static void one_step(float *to) {
    if (RIGHT) { atomicAdd(to, 1.0f); } else if (threadIdx.x == 0 && blockIdx.x == 0) { *to += 1; } else { atomicAdd(to, 1.0f); }
}
template <bool RIGHT> static void behind_the_end(float *to) { to[RIGHT ? threadIdx.x : threadIdx.x + 255] = 1; }
template <bool RIGHT> static void read_behind_the_end(float *to) { to[0] = to[RIGHT ? 255 : 256]; }
/* An address of what was given back. */
OPD_EMU_UNSEEN static float *freed_pointer() { return freed_memory; }
template <bool RIGHT> static void freed(float *to) { *(RIGHT ? to : freed_pointer()) = 1; }
struct alignas(16) vector { float at[4]; };
template <bool RIGHT> static void misaligned(float *to) {
    const vector v = *reinterpret_cast<const vector *>(to + (RIGHT ? 4 : 1));
    to[8] = v.at[0] + v.at[3];
}
template <bool RIGHT> static void unwritten_shared(float *to) {
    __shared__ float room[32];
    if (RIGHT || blockIdx.x == 0) { room[threadIdx.x] = 1; }        // the second block has not what the first wrote
    __syncthreads();
    to[blockIdx.x * 32 + threadIdx.x] = room[threadIdx.x];
}
template <bool RIGHT> static void unwritten_global(float *to) { to[0] = to[RIGHT ? 1 : 200]; }
template <bool RIGHT> static void beyond_shared(float *to) {
    float *room = (float *)opd_cuda_emulated_shared();
    room[RIGHT ? 31 : 32] = 1;
    to[0] = 1;
}
OPD_EMU_UNSEEN static float *host() { return host_memory; }
template <bool RIGHT> static void host_pointer(float *to) { to[0] = *(RIGHT ? to + 1 : host()); }
template <bool RIGHT> static void anothers_local(float **to) {
    float mine = 1, *volatile p = &mine;
    to[threadIdx.x] = p;
    __syncthreads();
    float *other = to[RIGHT ? threadIdx.x : threadIdx.x ^ 1];
    to[32 + threadIdx.x] = *other == 1 ? p : NULL;
}

//-- the checks ---------------------------------------------------------------------------------------------------

static int failures;
/* The kernel, wrong and put right, on 256 numbers of which 64 are written, or all. */
template <class T>
static void expect(const char *name, const char *kind, void (*wrong)(T *), void (*right)(T *), int grid, int block) {
    for (int k = 0; k < 2; k++) {
        T *memory = NULL;
        unsigned long all, of_kind;
        (void)cudaMalloc(&memory, 1024);
        (void)cudaMemset(memory, 0, k ? 1024 : 256);
        opd_emu_call(k ? right : wrong, grid, block, 128)(memory);
        all = opd_emu::races_found(NULL);
        of_kind = opd_emu::races_found(kind);
        if (k ? all != 0 : of_kind == 0 || of_kind != all) {
            printf("FAIL %s, %s: %lu of \"%s\" and %lu in all\n", name, k ? "put right" : "wrong", of_kind, kind, all);
            failures++;
        }
        opd_emu::races_forget();
        (void)cudaFree(memory);
    }
}
#define EXPECT(kind, kernel, grid, block) expect(#kernel, kind, kernel<false>, kernel<true>, grid, block)

int main() {
    float *before;
    host_memory = (float *)calloc(1, sizeof(float));
    (void)cudaMalloc(&before, 4096);
    (void)cudaMalloc(&freed_memory, 4096);
    (void)cudaFree(freed_memory);
    (void)cudaFree(before);                       // what the cases take is here
    EXPECT("race in a block", missing_barrier, 1, 64);
    EXPECT("race in a block", missing_second_barrier, 1, 64);
    EXPECT("race in a block", missing_syncwarp, 1, 32);
    EXPECT("race in a block", syncwarp_for_two, 1, 64);
    EXPECT("race between blocks", two_blocks, 3, 32);
    EXPECT("race between blocks", reads_of_another_block, 3, 32);
    EXPECT("race between blocks", one_step, 2, 1);
    EXPECT("memory that is not allocated", behind_the_end, 1, 32);
    EXPECT("memory that is not allocated", read_behind_the_end, 1, 1);
    EXPECT("memory that is not allocated", freed, 1, 1);
    EXPECT("not aligned", misaligned, 1, 1);
    EXPECT("contents that nobody wrote", unwritten_shared, 2, 32);
    EXPECT("contents that nobody wrote", unwritten_global, 1, 1);
    EXPECT("beyond the dynamic shared memory", beyond_shared, 1, 1);
    EXPECT("memory that is not the device's", host_pointer, 1, 1);
    EXPECT("memory that is not the device's", anothers_local, 1, 32);
    free(host_memory);
    printf("races_test: %d failed\n", failures);
    return failures != 0;
}
